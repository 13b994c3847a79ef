"""Dictionaries of known keys are made by displays, each in a statement of its own, which others ask for.

``w, log = f(x), {"x": []}`` is ``w = f(x)``, ``log = {"x": []}``; ``dict(x=[])`` and ``{key: [] for key in ("x", "y")}`` are
displays, too.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from symgrad.source.constants import bound_anywhere
from symgrad.source.syntax import (
    COMPREHENSIONS,
    FunctionNode,
    blocks_of,
    copied,
    located,
    names_read,
    names_stored,
    paired,
    parts_of,
    placed,
    walk,
)

_PLAIN = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub, ast.Load)


def displayed(function: FunctionNode, space: Mapping[str, Any]) -> FunctionNode:
    """The function, changed in place, as are those in it. ``space``: what is outside of it."""
    bound = bound_anywhere(function)
    for one in [part for part in walk(function) if isinstance(part, ast.FunctionDef)]:
        for block in [*blocks_of(one)]:
            block[:] = [made for part in block for made in _apart(_spelled(part, space, bound))]
    return function


def _spelled(statement: Any, space: Mapping[str, Any], bound: Collection[str]) -> Any:
    """A statement that makes such dictionaries by displays."""
    if isinstance(statement, ast.Assign):
        if isinstance(statement.value, ast.Tuple):
            statement.value.elts = [_display(value, space, bound) for value in statement.value.elts]
        else:
            statement.value = _display(statement.value, space, bound)
    return statement


def _display(value: Any, space: Mapping[str, Any], bound: Collection[str]) -> Any:
    """``{"x": a}`` for ``dict(x=a)``, and for what makes items for the keys of a display."""
    made: ast.Dict | None = None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict" and value.keywords:
        known = "dict" not in bound and "dict" not in space and not value.args and all([one.arg for one in value.keywords])
        if known:
            made = ast.Dict([ast.Constant(one.arg) for one in value.keywords], [one.value for one in value.keywords])
    elif isinstance(value, ast.DictComp) and len(value.generators) == 1:
        (loop,) = value.generators
        keys: list[Any] = loop.iter.elts if isinstance(loop.iter, (ast.Tuple, ast.List)) else []
        texts = [key.value for key in keys if isinstance(key, ast.Constant) and type(key.value) is str]
        name = getattr(loop.target, "id", "")
        by_key = name and isinstance(value.key, ast.Name) and value.key.id == name and not (loop.ifs or loop.is_async)
        if by_key and keys and len({*texts}) == len(keys) and all([isinstance(part, _PLAIN) for part in walk(value.value)]):
            made = ast.Dict([ast.Constant(text) for text in texts], [copied(value.value) for _ in texts])
    return value if made is None else located(placed(made, value))


def _apart(statement: Any) -> list[Any]:
    """Displays of nothing but constants, and of such as are empty, are made and bound to their names after all others."""
    pairs = paired(statement.targets[0], statement.value) if isinstance(statement, ast.Assign) else []
    names = [target for target, _ in pairs if isinstance(target, ast.Name)]
    made = [pair for pair in pairs if _is_plain(pair[1])]
    if len(pairs) < 2 or not made or len(statement.targets) > 1 or len({name.id for name in names}) < len(pairs):
        return [statement]
    others: list[Any] = [pair for pair in pairs if pair not in made]
    alone = [placed(ast.Assign([target], value), statement) for target, value in made]
    if not others:
        return [located(one) for one in alone]
    targets, values = [list(side) for side in zip(*others, strict=True)]
    if len(others) > 1:
        targets, values = [ast.Tuple(targets, ast.Store())], [ast.Tuple(values, ast.Load())]
    return [located(one) for one in [placed(ast.Assign(targets, values[0]), statement), *alone]]


def _is_plain(value: ast.expr) -> bool:
    """Whether it is such a display."""
    return isinstance(value, ast.Dict) and all([isinstance(part, _PLAIN) for part in walk(value)]) and not names_read(value)


# -- what runs over the items of such a dictionary -----------------------------------------------------------------------

TAKES_ALL = frozenset(["sum", "max", "min", "list", "tuple", "sorted", "dict"])  # builtins that take an iterator to its end
_INNER = (ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, *COMPREHENSIONS, ast.FunctionDef, ast.ClassDef)
_LEAVES = (*_INNER, ast.Break, ast.Continue, ast.Return, ast.For, ast.While)  # what no statement that is written out has
_LONGEST = 4  # statements that are written out for each key


def written_out(function: ast.FunctionDef, name: str, keys: Sequence[str], builtins: Collection[str]) -> bool:
    """Whether something in a function runs over the items of a dictionary of known keys, which it does no more: ``{k: f(v) for
    k, v in log.items()}`` is ``{"x": f(log["x"]), "y": f(log["y"])}``, and ``for k in log: b`` is ``b`` for each. ``builtins``
    are those that mean what they do."""
    writer = _Writer(function, name, keys, builtins)
    writer.generic_visit(function)
    return writer.changes


class _Writer(ast.NodeTransformer):
    def __init__(self, function: ast.FunctionDef, name: str, keys: Sequence[str], builtins: Collection[str]) -> None:
        self.name, self.keys, self.builtins, self.changes = name, keys, builtins, False
        self.outside = {*_read_outside(function, frozenset())}

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        self.generic_visit(node)
        every = self._each(node.generators, [node.elt])
        return node if every is None else self._made(ast.List([elt for (elt,) in every], ast.Load()), node)

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        self.generic_visit(node)
        every = self._each(node.generators, [node.key, node.value])
        return node if every is None else self._made(ast.Dict([key for key, _ in every], [value for _, value in every]), node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        takes = isinstance(node.func, ast.Name) and node.func.id in TAKES_ALL & {*self.builtins}
        if takes and node.args and isinstance(node.args[0], ast.GeneratorExp):
            every = self._each(node.args[0].generators, [node.args[0].elt])
            if every is not None:
                node.args[0] = self._made(ast.List([elt for (elt,) in every], ast.Load()), node.args[0])
        return node

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        every = [part for statement in node.body for part in walk(statement)]
        names = [part for part in every if isinstance(part, ast.Name)]
        bound, read = [*self._bound(node)], {part.id for part in names}
        others = self.outside | {part.id for part in names if not isinstance(part.ctx, ast.Load)}
        alone = bound and not any([one in others for one, _ in bound])
        if not alone or len(node.body) > _LONGEST or node.orelse or any([isinstance(part, _LEAVES) for part in every]):
            return node
        reads = any([one in read for one, what in bound if what == "value"])
        puts = any([_is_put(part, self.name) for part in every])
        if reads and puts and len(node.body) > 1:  # what it reads may be another by then
            return node
        self.changes = True
        return [self._put(copied(statement), bound, key) for key in self.keys for statement in node.body]

    def _made(self, made: ast.expr, node: ast.expr) -> ast.expr:
        self.changes = True
        return located(placed(made, node))  # type: ignore[no-any-return]

    def _each(self, generators: Sequence[ast.comprehension], parts: Sequence[ast.expr]) -> list[list[ast.expr]] | None:
        """The ``parts`` of a comprehension for each key; None where it is not known to run over nothing else."""
        (loop, *others), bound = generators, [*self._bound(generators[0])]
        inner = any([isinstance(one, _INNER) for part in parts for one in walk(part)])
        if others or loop.ifs or loop.is_async or inner or not bound:
            return None
        return [[self._put(copied(part), bound, key) for part in parts] for key in self.keys]

    def _bound(self, loop: Any) -> Iterator[tuple[str, str]]:
        """The names that something binds which runs over the items, and whether each gets a key or a value."""
        over, target = loop.iter, loop.target
        fun = over.func if isinstance(over, ast.Call) and not over.args and not over.keywords else None
        owner = fun.value if isinstance(fun, ast.Attribute) and fun.attr in ("items", "values", "keys") else over
        if not isinstance(owner, ast.Name) or owner.id != self.name:
            return
        what = fun.attr if isinstance(fun, ast.Attribute) else "keys"
        if what == "items":
            names = [one.id for one in getattr(target, "elts", ()) if isinstance(one, ast.Name)]
            if isinstance(target, ast.Tuple) and len({*names}) == len(target.elts) == 2:
                yield from zip(names, ("key", "value"), strict=True)
        elif isinstance(target, ast.Name):
            yield target.id, what[:-1]

    def _put(self, node: Any, bound: Sequence[tuple[str, str]], key: str) -> Any:
        """The same with a key, and what is there, in place of the names."""
        return _Put(self.name, dict(bound), key).visit(node)


def _read_outside(node: Any, within: frozenset[str]) -> Iterator[str]:
    """The names that are read, but for those that a loop or a comprehension binds, in what it runs."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in within:
        yield node.id
    generators = node.generators if isinstance(node, COMPREHENSIONS) else ()
    inner = within.union(*[names_stored(loop.target) for loop in ((node,) if isinstance(node, ast.For) else generators)])
    for part in parts_of(node):
        own = part in node.body if isinstance(node, ast.For) else bool(generators)
        yield from _read_outside(part, inner if own else within)


def _is_put(node: ast.AST, owner: str) -> bool:
    """Whether it is an item of a dictionary that is assigned to."""
    return isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == owner and not isinstance(node.ctx, ast.Load)


class _Put(ast.NodeTransformer):
    def __init__(self, owner: str, bound: Mapping[str, str], key: str) -> None:
        self.owner, self.bound, self.key = owner, bound, key

    def visit_Name(self, node: ast.Name) -> Any:
        what = self.bound.get(node.id)
        if what is None:
            return node
        key = ast.Constant(self.key)
        return located(placed(key if what == "key" else ast.Subscript(ast.Name(self.owner, ast.Load()), key, ast.Load()), node))
