"""List comprehensions that decide become loops that append, so that these can be rolled up, whatever their items decide.

``y = np.sum([f(v) for v in x])`` runs as ``listed = []``, ``for v_ in x: listed.append(f(v_))``, ``y = np.sum(listed)``; so
does ``sum(f(v) for v in x)``. This is done where nothing but names and arithmetic come first in the statement, and where the
names of the function show that it makes no difference.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any

from symgrad.syntax import FRAME_READERS, FunctionNode, copied, located, names_read, names_stored, placed, walk

_TAKES_ALL = frozenset(["sum", "max", "min", "list", "tuple", "sorted"])  # builtins that take an iterator to its end
_MODULES = frozenset(["np", "numpy", "math"])
_SCOPES = (ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)


def unrolled(function: FunctionNode, own: Collection[str]) -> FunctionNode:
    """The function, changed in place: its comprehensions are loops. ``own``: names that do not stand for the builtins."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            names = {item.id for item in walk(node) if isinstance(item, ast.Name)}
            names |= {item.arg for item in walk(node) if isinstance(item, ast.arg)}
            if names.isdisjoint(FRAME_READERS):
                _Unroller(names, _TAKES_ALL - {*own, *names_stored(node)}).generic_visit(node)
    return function


class _Unroller(ast.NodeTransformer):
    """Writes the comprehensions of one function as loops; those of functions in it have their own turn.

    ``names`` are taken; the ``builtins`` are what they are.
    """

    def __init__(self, names: set[str], builtins: Collection[str]) -> None:
        self.names, self.builtins = names, builtins

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef

    def generic_visit(self, node: Any) -> Any:
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, [new for statement in statements for new in self._written(statement)])
        for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.generic_visit(handler)
        return node

    def _written(self, statement: Any) -> list[ast.stmt]:
        """A statement, after the loops that make the lists in it."""
        loops, lists = list[ast.stmt](), list[str]()
        if isinstance(statement, _SIMPLE):
            while (found := next(self._first(statement), None)) is not None and found[2] is not None:
                parent, place, comprehension = found
                name = self._fresh("listed")
                lists.append(name)
                loops += self._loop(name, comprehension)
                _put(parent, place, placed(ast.Name(name, ast.Load()), comprehension))
        else:
            self.visit(statement)
        done = [] if isinstance(statement, ast.Return) else lists
        return [*loops, statement, *[_assigned(name, ast.Constant(None), statement) for name in done]]

    def _first(self, node: Any) -> Iterator[tuple[Any, Any, Any]]:
        """In the order in which they are computed: comprehensions to be written as loops, by node and place; nothing, from
        where on something else would come before the loop."""
        for place, part in _computed(node):
            if isinstance(part, ast.ListComp) and _decides(part):
                yield node, place, part
            elif isinstance(part, ast.Call) and self._takes_all(part) and _decides(part.args[0]):
                yield part, ("args", 0), part.args[0]
            elif isinstance(part, (ast.Name, ast.Constant)):
                continue
            elif isinstance(part, (ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.keyword, ast.Subscript)):
                yield from self._first(part)
            elif isinstance(part, ast.Call):
                yield from self._first(part)
                if not self._is_pure(part):
                    yield node, place, None
            else:
                yield node, place, None

    def _takes_all(self, call: ast.Call) -> bool:
        """Whether it is ``sum(... for ...)`` or its like."""
        known = isinstance(call.func, ast.Name) and call.func.id in self.builtins
        return known and len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp)

    def _is_pure(self, call: ast.Call) -> bool:
        """Whether a call changes nothing: one of NumPy's, or of these builtins."""
        fun = call.func
        while isinstance(fun, ast.Attribute):
            fun = fun.value
        return isinstance(fun, ast.Name) and fun.id in (_MODULES if fun is not call.func else self.builtins)

    def _loop(self, name: str, comprehension: Any) -> list[ast.stmt]:
        """What makes the list."""
        (clause,) = comprehension.generators
        target, item = copied(clause.target), copied(comprehension.elt)
        fresh = {old: self._fresh(old) for old in names_stored(clause.target)}
        for part in [*walk(target), *walk(item)]:
            if isinstance(part, ast.Name):
                part.id = fresh.get(part.id, part.id)
        append = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()), [item], [])
        body = self._written(located(placed(ast.Expr(append), comprehension)))
        loop: ast.stmt = placed(ast.For(target, clause.iter, body, []), comprehension)
        return [_assigned(name, ast.List([], ast.Load()), comprehension), located(loop)]

    def _fresh(self, name: str) -> str:
        """A name that is not taken."""
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name


def _assigned(name: str, value: ast.expr, like: Any) -> Any:
    made = placed(ast.Assign([ast.Name(name, ast.Store())], value), like)
    return located(made)


def _computed(node: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of a statement or an expression in the order in which Python computes them, with their places."""
    for field in ("value",) if isinstance(node, ast.stmt) else node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            yield from [((field, i), item) for i, item in enumerate(value)]
        elif isinstance(value, (ast.expr, ast.keyword)):
            yield (field, None), value


def _put(parent: Any, place: Any, node: ast.expr) -> None:
    field, i = place
    if i is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[i] = node


def _decides(node: Any) -> bool:
    """Whether the items of a comprehension may decide on something, and it can be written as a loop."""
    first, *others = node.generators
    own = set(names_stored(first.target))
    plain = not others and not first.ifs and not first.is_async and all([_is_plain(part) for part in walk(first.target)])
    inner = [part for part in walk(node.elt) if isinstance(part, ast.comprehension)]
    if not plain or any([isinstance(part, _SCOPES) for part in walk(node.elt)]) or names_read(first.iter).keys() & own:
        return False
    if not own.isdisjoint([name for part in inner for name in names_stored(part.target)]):
        return False
    return any([isinstance(part, (ast.IfExp, ast.BoolOp)) or _is_own_call(part) for part in walk(node.elt)])


def _is_plain(part: ast.AST) -> bool:
    return isinstance(part, (ast.Name, ast.Tuple, ast.expr_context))


def _is_own_call(node: ast.AST) -> bool:
    """Whether it is a call that may decide on something: none of NumPy's."""
    if not isinstance(node, ast.Call):
        return False
    fun = node.func
    while isinstance(fun, ast.Attribute):
        fun = fun.value
    return not isinstance(fun, ast.Name) or fun is node.func or fun.id not in _MODULES
