"""Comprehensions become loops, so that these can be rolled up, and done for all items at once.

``y = np.sum([f(v) for v in x])`` runs as ``listed = []``, ``for v_ in x: listed.append(f(v_))``, ``y = np.sum(listed)``.
``np.fromiter`` is given such a list, too.
``sum(f(v) for v in x if c)`` runs as ``total = 0`` and a loop with ``total = total + f(v_)`` below an ``if``; ``any(c for v in
x)`` as ``found = False`` and a loop that ends with ``found = True`` where ``c`` is true, also in the test of an ``if``. What
comes first in the statement is computed first.

Where a builtin takes all that ``map`` and ``filter`` give, they are such comprehensions; ``functools.reduce`` is a loop, too,
and ``y += [v]`` is ``y.append(v)`` if ``y`` is a list for sure.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from symgrad.source.constants import bound_anywhere
from symgrad.source.rows import as_array, is_of_rows, makers_of_arrays
from symgrad.source.syntax import (
    COMPREHENSIONS,
    LATER,
    LOCAL_READERS,
    MODULES,
    TRIES,
    FunctionNode,
    assigned,
    copied,
    declared,
    fresh,
    is_append,
    is_none,
    local_names,
    located,
    names_read,
    names_stored,
    owner_of,
    paired,
    placed,
    walk,
)
from symgrad.source.texts import bound_beside

_TAKES_ALL = frozenset(["sum", "max", "min", "list", "tuple", "sorted"])  # builtins that take an iterator to its end
_TAKES_SOME = frozenset(["any", "all"])  # that take it as far as they must
_ITERATORS = frozenset(["map", "filter"])
_SCOPES = (ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_IN_ORDER = (ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.keyword, ast.Subscript, ast.Call)
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
_NEW = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.List, ast.ListComp)  # what these give, nothing else stands for
_PARTS = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.IfExp, ast.Tuple, ast.Call)
_HARMLESS = (ast.Add, ast.Sub, ast.Mult)  # what raises no error, of numbers
_PLAIN = (ast.Constant, ast.Name, ast.Lambda)  # what is the same after a loop
_TESTS = (ast.If, ast.Assert)  # statements that compute a test first, and once


def unrolled(function: FunctionNode, own: Mapping[str, Any]) -> FunctionNode:
    """The function, changed in place: its comprehensions are loops. ``own``: the module's names, no more those of builtins."""
    bound = bound_anywhere(function)
    _list_items(function, {name: value for name, value in own.items() if name not in bound})
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            names = {item.id for item in walk(node) if isinstance(item, ast.Name)}
            if names.isdisjoint(LOCAL_READERS):
                local = local_names(node)
                builtins = (_TAKES_ALL | _TAKES_SOME | _ITERATORS | {"zip"}) - {*own, *bound}
                folds = {name for name, value in own.items() if value is functools.reduce} - local
                folds |= {f"{name}.reduce" for name, value in own.items() if value is functools and name not in local}
                _append_items(node, declared(node), "sum" in builtins)
                arrays = makers_of_arrays(own, local)
                tries = any([isinstance(item, TRIES) for item in walk(node)])
                alone = set() if tries else local - bound_beside(node, walk(node)) - _read_in_turn(node, builtins)
                _Unroller(names | local, local, builtins, folds, arrays, _made_anew(node), alone, declared(node)).generic_visit(
                    node
                )
    return function


def _list_items(function: FunctionNode, own: Mapping[str, Any]) -> None:
    """``np.fromiter((f(v) for v in x), float)``, which takes all at once, is given a list of them."""
    takers = {name for name, value in own.items() if value is np.fromiter}
    takers |= {f"{name}.fromiter" for name, value in own.items() if value is np}
    for call in [*walk(function)] if takers else ():
        items = call.args[0] if isinstance(call, ast.Call) and call.args else None
        if not isinstance(call, ast.Call) or not isinstance(items, ast.GeneratorExp) or ast.unparse(call.func) not in takers:
            continue
        counted = len(call.args) > 2 or {option.arg for option in call.keywords} - {"dtype"}
        if not counted and not any([clause.is_async for clause in items.generators]):
            call.args[0] = located(placed(ast.ListComp(items.elt, items.generators), items))


def _read_in_turn(function: ast.FunctionDef, builtins: Collection[str]) -> set[str]:
    """The names that generator expressions read, but for those that builtins take at once."""
    every = [*walk(function)]
    calls = [part for part in every if isinstance(part, ast.Call) and getattr(part.func, "id", "") in builtins]
    taken = {id(arg) for call in calls for arg in call.args}
    kept = [part for part in every if isinstance(part, ast.GeneratorExp) and id(part) not in taken]
    return {name for part in kept for name in names_read(part)}


def _made_anew(function: ast.FunctionDef) -> set[str]:
    """The locals that only ever stand for numbers, and lists, which nothing else in the function has a name for."""
    every = [*walk(function)]
    pairs = [pair for node in every if isinstance(node, ast.Assign) for one in node.targets for pair in paired(one, node.value)]
    made = Counter([one.id for one, value in pairs if isinstance(one, ast.Name) and isinstance(value, _NEW)])
    made += Counter([node.target.id for node in every if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)])
    stored = Counter(names_stored(function))
    known = {name for name, often in made.items() if stored[name] == often} - bound_beside(function, every)
    values = [getattr(node, "value", None) for node in every if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr))]
    values += [node.iter for node in every if isinstance(node, (ast.For, ast.comprehension))]
    values += [arg for node in every if isinstance(node, ast.Call) and not _is_pure(node) for arg in node.args]
    return known - {name for value in values if value is not None for name in _under_other_names(value)}


def _under_other_names(value: ast.expr) -> Iterator[str]:
    """The names of which an expression may give what they stand for, or a part of it."""
    if isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant)):
        return
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, ast.Call) and not isinstance(value.func, ast.Attribute):
        return
    for part in ast.iter_child_nodes(value):
        if isinstance(part, (ast.expr, ast.keyword)):
            yield from _under_other_names(part.value if isinstance(part, ast.keyword) else part)


def _is_pure(call: ast.Call) -> bool:
    """Whether it is a builtin, or one of NumPy's functions, that changes nothing it is given, and draws no numbers."""
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name) or call.keywords:
        return isinstance(call.func, ast.Name) and call.func.id in ("len", "sum", "abs", "float", "min", "max")
    known = call.func.value.id in ("np", "numpy") and _WITHOUT_EFFECTS.get(call.func.attr) == len(call.args)
    return known and not any([isinstance(arg, ast.Starred) for arg in call.args])


_OF_ONE = "sin cos tan tanh exp log log1p expm1 sqrt abs square sign arctan sum mean".split()
_WITHOUT_EFFECTS = {**dict.fromkeys(_OF_ONE, 1), "maximum": 2, "minimum": 2, "dot": 2, "hypot": 2, "arctan2": 2, "where": 3}


def iterators(fun: FunctionType) -> set[str]:
    """The names by which a function may run loops that are written as calls."""
    return {*_ITERATORS, *[name for name, value in fun.__globals__.items() if value is functools or value is functools.reduce]}


def _append_items(function: ast.FunctionDef, others: Collection[str], sums: bool) -> None:
    """``y += [v]`` becomes ``y.append(v)``, where all that the function assigns to ``y`` are new lists, and so does ``y = y +
    [v]`` where nobody else may have the list; ``(y if c else z).append(v)`` becomes an ``if``. ``y.count(1)`` of such a list is
    a sum, if there are ``sums``."""
    stored = Counter(names_stored(function))
    made, alone = Counter[str](), _only_looked_into(function)
    added: list[tuple[ast.stmt, str, ast.expr]] = []
    for part in walk(function):
        if isinstance(part, ast.Assign) and (longer := _longer_by_one(part)) is not None:
            added += [(part, longer[0].id, longer[1])] if longer[0].id in alone else []
        elif isinstance(part, ast.Assign):
            pairs = [pair for target in part.targets for pair in paired(target, part.value)]
            lists = [target for target, value in pairs if isinstance(value, (ast.List, ast.ListComp))]
            made.update([target.id for target in lists if isinstance(target, ast.Name)])
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name) and _is_one_item(part):
            added.append((part, part.target.id, part.value.elts[0]))  # type: ignore[attr-defined]
        elif isinstance(part, ast.Expr) and _is_append_to_one(part.value):
            call: Any = part.value
            test, *sides = call.func.value.test, call.func.value.body, call.func.value.orelse
            calls = [ast.Attribute(side, "append", ast.Load()) for side in sides]
            body = [placed(ast.Expr(placed(ast.Call(one, copied(call).args, []), call)), part) for one in calls]
            _replace(function, part, located(placed(ast.If(test, body[:1], body[1:]), part)))
    made.update([name for _, name, _ in added])
    given = {arg.arg for arg in walk(function.args) if isinstance(arg, ast.arg)}
    for statement, name, item in added:
        if made[name] == stored[name] and name not in others and name not in given:
            append = ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load())
            _replace(function, statement, located(placed(ast.Expr(ast.Call(append, [item], [])), statement)))
    for call in [part for part in walk(function) if sums and _is_count(part)]:
        owner: Any = call.func.value
        if 0 < made[owner.id] == stored[owner.id] and owner.id not in others and owner.id not in given:
            same = ast.Compare(ast.Name("item", ast.Load()), [ast.Eq()], call.args)
            over = ast.comprehension(ast.Name("item", ast.Store()), owner, [same], 0)
            call.func, call.args = ast.Name("sum", ast.Load()), [ast.GeneratorExp(ast.Constant(1), [over])]
            located(call)


def _is_count(node: ast.AST) -> bool:
    """Whether it is ``y.count(1)``, of an int or a text."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords or not isinstance(node.func, ast.Attribute):
        return False
    known = node.func.attr == "count" and isinstance(node.func.value, ast.Name) and isinstance(node.args[0], ast.Constant)
    return known and type(node.args[0].value) in (int, str)  # type: ignore[attr-defined]


def _is_append_to_one(call: Any) -> bool:
    """Whether it is ``(y if c else z).append(v)``."""
    if not is_append(call, ast.IfExp):
        return False
    return all([isinstance(side, ast.Name) for side in (call.func.value.body, call.func.value.orelse)])


def _longer_by_one(node: ast.Assign) -> tuple[ast.Name, ast.expr] | None:
    """The name and the item of ``y = y + [v]`` or ``y = [*y, v]``; None for other statements."""
    value, (target, *others) = node.value, node.targets
    before, items = None, []
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and isinstance(value.right, ast.List):
        before, items = value.left, value.right.elts
    elif isinstance(value, ast.List) and value.elts and isinstance(value.elts[0], ast.Starred):
        before, items = value.elts[0].value, value.elts[1:]
    known = isinstance(target, ast.Name) and isinstance(before, ast.Name) and before.id == target.id
    if others or not known or len(items) != 1 or isinstance(items[0], ast.Starred):
        return None
    return before, items[0]  # type: ignore[return-value]


def _only_looked_into(function: ast.FunctionDef) -> set[str]:
    """The locals that are only asked for an item, or the length, given to NumPy's functions, or made longer by an item."""
    seen, counted = Counter[str](), Counter[str]()
    for node in walk(function):
        if isinstance(node, ast.Name):
            counted[node.id] += 1
        inside: list[Any] = []
        if isinstance(node, ast.Assign):
            inside = [*node.targets, *(_longer_by_one(node) or ())[:1]]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice):
            inside = [node.value]
        elif isinstance(node, ast.Call):
            fun = owner_of(node.func)
            known = isinstance(fun, ast.Name) and (fun.id in MODULES if fun is not node.func else fun.id in ("len", "sum"))
            inside = node.args if known else []
        seen.update([part.id for part in inside if isinstance(part, ast.Name)])
    within = {
        name.id
        for node in walk(function)
        if isinstance(node, LATER) and node is not function
        for name in walk(node)
        if isinstance(name, ast.Name)
    }
    return {name for name, often in seen.items() if often == counted[name]} - within


def _is_one_item(node: ast.AugAssign) -> bool:
    items = node.value.elts if isinstance(node.value, ast.List) and isinstance(node.op, ast.Add) else []
    return len(items) == 1 and not isinstance(items[0], ast.Starred)


def _replace(tree: ast.AST, old: ast.stmt, new: ast.stmt) -> None:
    for part in walk(tree):
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(part, field, None)
            if isinstance(statements, list) and any([item is old for item in statements]):
                statements[:] = [new if item is old else item for item in statements]


class _Unroller(ast.NodeTransformer):
    """Writes the comprehensions of one function as loops; those of functions in it have their own turn.

    ``names`` are taken; those that are ``local`` only it assigns, and those that are ``new`` stand for numbers and lists of its
    own; the ``builtins`` are what they are, ``folds`` stand for ``functools.reduce``, and ``arrays`` for what makes arrays of
    rows; the ``own`` ones nobody sees but it, and not after an error, and those that are ``shared`` others may assign.
    """

    def __init__(
        self,
        names: set[str],
        local: set[str],
        builtins: Collection[str],
        folds: Collection[str],
        arrays: Collection[str],
        new: Collection[str],
        own: Collection[str],
        shared: Collection[str],
    ) -> None:
        self.names, self.local, self.builtins, self.folds, self.arrays = names, local, builtins, folds, arrays
        self.new, self.own, self.shared = new, own, shared

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
        before = list[ast.stmt]()
        if isinstance(statement, _TESTS):
            self.visit(statement)
            while (found := self._found_in_test(statement, ("test", None), statement.test)) is not None:
                before += found
            return [*before, statement]
        if not isinstance(statement, _SIMPLE):
            while isinstance(statement, ast.For) and (one := self._fused(statement)) is not None:
                statement = one
            self.visit(statement)
        elif not isinstance(statement, ast.AugAssign) or getattr(statement.target, "id", "") in self.local:
            while (found := self._found(statement)) is not None:
                before += found
        made = [name for item in before if isinstance(item, ast.Assign) for name in names_stored(item.targets[0])]
        if isinstance(statement, ast.Return):
            made = []
        if isinstance(statement, ast.Assign) and self._is_list(statement, made, before):
            for part in [part for item in before for part in walk(item) if isinstance(part, ast.Name)]:
                part.id = statement.targets[0].id if part.id in made else part.id  # type: ignore[attr-defined]
            return before
        return [*before, statement, *[assigned(name, ast.Constant(None), statement) for name in made]]

    def _is_list(self, statement: ast.Assign, made: list[str], before: list[ast.stmt]) -> bool:
        """Whether a local gets a list that was made for it alone, and nobody can see that it has it while that grows."""
        target, value = statement.targets[0], statement.value
        if len(made) != 1 or len(statement.targets) > 1 or not isinstance(target, ast.Name) or not isinstance(value, ast.Name):
            return False
        named = [part.id for item in before for part in walk(item) if isinstance(part, ast.Name)]
        marked = hasattr(target, "table")  # see ``tables.py``
        return value.id == made[0] and target.id in self.own and target.id not in named and not marked

    def _fused(self, loop: ast.For) -> ast.For | None:
        """``for v in (f(u) for u in x if c):`` as ``for u_ in x:``, with ``v = f(u_)`` and the body below an ``if``; None for
        other loops. A list, which is whole before the loop begins, may have to be."""
        items: Any = loop.iter
        stored = {name for part in (loop.target, *loop.body) for name in names_stored(part)}
        if self._is_builtin(items, _ITERATORS):
            if len(items.args) != 2 or getattr(items.args[0], "id", "") in stored:  # which function it is, it asks once
                return None
            items = self._items_of(items)
        if not isinstance(items, (ast.GeneratorExp, ast.ListComp)) or len(items.generators) > 1 or not _is_loop(items):
            return None
        if any([isinstance(part, ast.Name) and part.id == "next" for part in walk(items)]):  # it may end the loop
            return None
        if isinstance(items, ast.ListComp) and not (items.generators[0].ifs and self._may_wait(items, loop.body, stored)):
            return None
        clause = copied(items.generators[0])
        over, clause.iter = clause.iter, ast.Constant(None)
        first: Any = assigned("", copied(items.elt), items)
        new = {old: fresh(old, self.names) for old in names_stored(clause.target)}
        for part in [part for item in (clause, first) for part in walk(item)]:
            if isinstance(part, ast.Name):
                part.id = new.get(part.id, part.id)
        first.targets = [loop.target]
        body = [first, *loop.body]
        for test in reversed(clause.ifs):
            body = [placed(ast.If(test, body, []), items)]
        return located(placed(ast.For(clause.target, over, body, loop.orelse), loop))  # type: ignore[no-any-return]

    def _may_wait(self, items: ast.ListComp, body: list[ast.stmt], stored: Collection[str]) -> bool:
        """Whether what is in a list may as well be computed one by one, as a loop runs over it that has ``stored`` these."""
        (clause,) = items.generators
        parts = [part for item in (items.elt, *clause.ifs) for part in walk(item)]
        if not all([self._is_harmless(part) for part in parts]):
            return False  # errors come before the loop
        every = [part for statement in body for part in walk(statement)]
        read = {part.id for item in (items.elt, clause.iter, *clause.ifs) for part in walk(item) if isinstance(part, ast.Name)}
        read -= {*names_stored(clause.target)}  # which are its own
        changed = {name for part in every if isinstance(part, ast.AugAssign) for name in names_stored(part)}
        places = [part for part in every if isinstance(part, (ast.Subscript, ast.Attribute))]
        if any([not isinstance(part.ctx, ast.Load) for part in places]) or not changed <= {*self.new}:
            return False
        if not read.isdisjoint(stored):
            return False
        appends: list[Any] = [part for part in every if is_append(part)]
        if any([part.func.value.id not in self.new or part.func.value.id in read for part in appends]):
            return False
        return all([self._is_without_effects(part) for part in every if part not in appends])

    def _is_harmless(self, node: Any) -> bool:
        """Whether it raises no error, of numbers, and has no effects."""
        if isinstance(node, ast.Attribute):  # of a module
            return isinstance(node.value, ast.Name) and node.value.id in MODULES
        if not isinstance(node, (*_PARTS, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)):
            return False
        return self._is_without_effects(node) and (not isinstance(node, ast.BinOp) or isinstance(node.op, _HARMLESS))

    def _is_without_effects(self, node: Any) -> bool:
        """Whether it calls nothing but some of NumPy's functions and builtins, which change nothing that they are given."""
        if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete)):
            return False
        if not isinstance(node, ast.Call):
            return True
        owner = owner_of(node.func)
        return _is_pure(node) and isinstance(owner, ast.Name) and owner.id not in self.local

    def _found_in_test(self, parent: Any, place: Any, test: Any) -> list[ast.stmt] | None:
        """What computes the first ``any`` or ``all`` in a test, and what of it comes before; None where there is none."""
        while isinstance(test, ast.UnaryOp):
            parent, place, test = test, ("operand", None), test.operand
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        for part in parts:
            self._spell_out(part)
        at = next((i for i, part in enumerate(parts) if self._takes_some(part)), None)
        if at is None:
            return None
        if at == 0:
            return self._search(parent, place, test) if parts[0] is test else self._search(test, ("values", 0), parts[0])
        name = fresh("held", self.names)
        _put(parent, place, placed(ast.Name(name, ast.Load()), test))
        first, rest = _joined(test, parts[:at]), _joined(test, parts[at:])
        asked: ast.expr = placed(ast.Name(name, ast.Load()), test)
        if isinstance(test.op, ast.Or):
            asked = placed(ast.UnaryOp(ast.Not(), asked), test)
        later = placed(ast.If(asked, self._written(assigned(name, rest, test)), []), test)
        return [*self._written(assigned(name, first, test)), located(later)]

    def _found(self, node: Any) -> list[ast.stmt] | None:
        """The first comprehension in a node that can be a loop has a name from here on: what makes the list, after what comes
        first in the node; None where there is none."""
        first: list[tuple[Any, Any]] = []
        for place, part in _computed(node):
            if isinstance(part, ast.Starred):
                return None
            found = None
            self._spell_out(part)
            if isinstance(part, ast.ListComp) and _is_one_loop(part):
                found = self._loop(node, place, part)
            elif self._adds_up(part):
                found = self._total(node, place, part.args[0])
            elif self._takes_some(part):
                found = self._search(node, place, part)
            elif self._takes_all(part) and _is_one_loop(part.args[0]):
                whole = part.func.id == "list"  # of a list that nobody else has
                found = self._loop(node if whole else part, place if whole else ("args", 0), part.args[0])
            elif self._folds(part):
                found = self._fold(node, place, part)
            elif isinstance(part, ast.IfExp):
                found = self._found_in_test(part, ("test", None), part.test)
            elif isinstance(part, ast.BoolOp):
                found = self._found_in_test(node, place, part)
            elif isinstance(part, _IN_ORDER):
                found = self._found(part)
            if found is not None:
                every = [one for item in (node, *found) for one in walk(item)]
                known = self.local - {one.target.id for one in every if isinstance(one, ast.NamedExpr)}
                first = [(place, one) for place, one in first if not (isinstance(one, ast.Name) and one.id in known)]
                return [*self._named(node, first), *found]
            if not isinstance(part, ast.Constant) and not _is_callee(part, place):
                first.append((place, part))
        return None

    def _named(self, node: Any, parts: list[tuple[Any, Any]]) -> Iterator[ast.stmt]:
        """Statements that give these parts of a node names, so that they are computed before what follows."""
        for place, part in parts:
            parent, where, value = (part, ("value", None), part.value) if isinstance(part, ast.keyword) else (node, place, part)
            name = fresh("first", self.names)
            _put(parent, where, placed(ast.Name(name, ast.Load()), value))
            yield assigned(name, value, value)

    def _spell_out(self, call: Any) -> None:
        """``sum(map(f, x))`` becomes ``sum(f(v) for v in x)``, and ``list(filter(f, x))`` a comprehension with an ``if``;
        ``np.array([[f(u, v) for v in y] for u in x])`` makes an array of each row first, which loops know how to keep."""
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and is_of_rows(call):
            if ast.unparse(call.func) in self.arrays:
                rows: Any = call.args[0]
                rows.elt = as_array(rows.elt, call.func)
            return
        if not self._is_builtin(call, _TAKES_ALL | _TAKES_SOME) or len(call.args) != 1:
            return
        if self._is_builtin(call.args[0], _ITERATORS):
            call.args[0] = self._items_of(call.args[0])

    def _items_of(self, inner: Any) -> Any:
        """What ``map`` or ``filter`` gives, as a comprehension; itself, where that is not possible."""
        if inner.keywords or len(inner.args) < 2:
            return inner
        fun, *over = inner.args
        kept = inner.func.id == "filter"
        names = [fresh("item", self.names) for _ in over]
        given = [placed(ast.Name(name, ast.Load()), inner) for name in names]
        made = given[0] if kept and is_none(fun) else _called(fun, given)
        if (
            any([isinstance(item, ast.Starred) for item in over])
            or made is None
            or getattr(fun, "id", "") in self.shared
            or (len(over) > 1 and "zip" not in self.builtins)
        ):
            return inner
        targets = [placed(ast.Name(name, ast.Store()), inner) for name in names]
        target = targets[0] if len(over) == 1 else placed(ast.Tuple(targets, ast.Store()), inner)
        each = over[0] if len(over) == 1 else placed(ast.Call(ast.Name("zip", ast.Load()), over, []), inner)
        clause = ast.comprehension(target, each, [made] if kept else [], 0)
        return located(placed(ast.GeneratorExp(copied(given[0]) if kept else made, [clause]), inner))

    def _is_builtin(self, call: Any, names: Collection[str]) -> bool:
        named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        return named and call.func.id in names and call.func.id in self.builtins

    def _folds(self, call: Any) -> bool:
        """Whether it is ``functools.reduce(f, x, start)``."""
        if not isinstance(call, ast.Call) or len(call.args) != 3 or call.keywords or ast.unparse(call.func) not in self.folds:
            return False
        plain = not any([isinstance(arg, ast.Starred) or getattr(arg, "id", "") in self.shared for arg in call.args])
        return plain and _called(call.args[0], [ast.Name("a", ast.Load()), ast.Name("b", ast.Load())]) is not None

    def _fold(self, parent: Any, place: Any, call: Any) -> list[ast.stmt]:
        """What computes, in a loop, what ``functools.reduce`` gives."""
        fun, over, start = call.args
        every, name, item = [fresh(word, self.names) for word in ("over", "total", "item")]
        _put(parent, place, placed(ast.Name(name, ast.Load()), call))
        made = _called(fun, [placed(ast.Name(one, ast.Load()), call) for one in (name, item)])
        assert made is not None
        body = self._written(assigned(name, made, call))
        loop = placed(ast.For(ast.Name(item, ast.Store()), ast.Name(every, ast.Load()), body, []), call)
        return [assigned(every, over, call), assigned(name, start, call), located(loop)]

    def _takes_all(self, call: Any) -> bool:
        """Whether it is ``sum(... for ...)`` or its like."""
        known = self._is_builtin(call, _TAKES_ALL) and all([isinstance(word.value, _PLAIN) for word in call.keywords])
        return known and len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp)

    def _takes_some(self, call: Any) -> bool:
        """Whether it is ``any(... for ...)`` or ``all(... for ...)``, which one loop can search."""
        one = call.args[0] if self._is_builtin(call, _TAKES_SOME) and len(call.args) == 1 and not call.keywords else None
        return isinstance(one, ast.GeneratorExp) and len(one.generators) == 1 and _is_loop(one)

    def _adds_up(self, call: Any) -> bool:
        """Whether it is ``sum(... for ...)``, or that of a list."""
        known = isinstance(call, ast.Call) and getattr(call.func, "id", None) == "sum" and "sum" in self.builtins
        one = call.args[0] if known and len(call.args) == 1 and not call.keywords else None
        return isinstance(one, (ast.GeneratorExp, ast.ListComp)) and _is_loop(one)

    def _loop(self, parent: Any, place: Any, comprehension: Any) -> list[ast.stmt]:
        """What makes the list that stands at a place from here on."""
        name = fresh("listed", self.names)
        _put(parent, place, placed(ast.Name(name, ast.Load()), comprehension))
        append = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()), [comprehension.elt], [])
        loop = self._loops(comprehension, placed(ast.Expr(append), comprehension))
        return [assigned(name, ast.List([], ast.Load()), comprehension), loop]

    def _total(self, parent: Any, place: Any, comprehension: Any) -> list[ast.stmt]:
        """What makes the sum that stands at a place from here on."""
        name = fresh("total", self.names)
        _put(parent, place, placed(ast.Name(name, ast.Load()), comprehension))
        added = assigned(name, ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), comprehension.elt), comprehension)
        return [assigned(name, ast.Constant(0), comprehension), self._loops(comprehension, added)]

    def _search(self, parent: Any, place: Any, call: Any) -> list[ast.stmt]:
        """What computes ``any`` or ``all`` of some items, for a place from here on: a loop that ends once it is known."""
        name, every, [items] = fresh("found", self.names), call.func.id == "all", call.args
        _put(parent, place, placed(ast.Name(name, ast.Load()), call))
        test = placed(ast.UnaryOp(ast.Not(), items.elt), items) if every else items.elt
        known = assigned(name, ast.Constant(not every), call)
        end = placed(ast.If(test, [known, placed(ast.Break(), call)], []), call)
        return [assigned(name, ast.Constant(every), call), self._loops(items, end)]

    def _loops(self, comprehension: Any, statement: Any) -> ast.stmt:
        """The loops that do what a statement says for each item of a comprehension, whose names are others."""
        first, *_ = clauses = [copied(clause) for clause in comprehension.generators]
        over, first.iter = first.iter, ast.Constant(None)  # which knows none of these names
        new = {old: fresh(old, self.names) for clause in clauses for old in names_stored(clause.target)}
        statement = copied(statement)
        for part in [part for item in (*clauses, statement) for part in walk(item)]:
            if isinstance(part, ast.Name):
                part.id = new.get(part.id, part.id)
        first.iter = over
        for clause in reversed(clauses):
            for test in reversed(clause.ifs):
                statement = placed(ast.If(test, [statement], []), comprehension)
            body = self._written(located(statement))
            statement = placed(ast.For(clause.target, clause.iter, body, []), comprehension)
        return located(statement)  # type: ignore[no-any-return]


def _joined(test: ast.BoolOp, parts: list[ast.expr]) -> ast.expr:
    """These parts of a test, joined as they are in it."""
    return parts[0] if len(parts) == 1 else placed(ast.BoolOp(test.op, parts), test)


def _called(fun: ast.expr, given: list[Any]) -> Any:
    """What a function gives for these names: the expression of a lambda, or a call by a name; None for what is neither."""
    if isinstance(fun, ast.Name):
        return placed(ast.Call(copied(fun), given, []), fun)
    if not isinstance(fun, ast.Lambda) or len(fun.args.args) != len(given):
        return None
    args = fun.args
    if args.posonlyargs or args.vararg or args.kwonlyargs or args.kwarg or args.defaults:
        return None
    parts, names = [*walk(fun.body)], dict(zip([arg.arg for arg in args.args], given, strict=True))
    if any([isinstance(part, (ast.Lambda, ast.NamedExpr, ast.comprehension, ast.Yield, ast.Await)) for part in parts]):
        return None
    body = copied(fun.body)
    for part in [part for part in walk(body) if isinstance(part, ast.Name) and part.id in names]:
        part.id = names[part.id].id
    return body


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


def _is_callee(part: Any, place: Any) -> bool:
    """Whether it is the name of what is called, with those of what that is found in."""
    while isinstance(part, ast.Attribute):
        part = part.value
    return place[0] == "func" and isinstance(part, ast.Name)


def _is_one_loop(node: Any) -> bool:
    """Whether a comprehension, which runs over each item once, is better a loop.

    Of tuples and lists it is only where they decide on something: a loop makes no array of them. Of arrays of what other
    comprehensions give it is.
    """
    rows = isinstance(node.elt, ast.Call) and len(node.elt.args) == 1 and isinstance(node.elt.args[0], ast.ListComp)
    several = not rows and any([isinstance(part, (ast.Tuple, ast.List, ast.Dict, *COMPREHENSIONS)) for part in _made(node.elt)])
    return len(node.generators) == 1 and _is_loop(node) and not (several and not _decides(node))


def _made(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, and what it makes an array of, or a sum."""
    yield node
    if isinstance(node, ast.Call):
        for arg in node.args:
            yield from _made(arg)


def _decides(node: Any) -> bool:
    """Whether the items of a comprehension may decide on something."""
    parts = [isinstance(part, (ast.IfExp, ast.BoolOp)) or _is_own_call(part) for part in walk(node.elt)]
    return bool(node.generators[0].ifs) or any(parts)


def _is_loop(node: Any) -> bool:
    """Whether a comprehension can be written as loops."""
    targets = [clause.target for clause in node.generators]
    own, parts = {name for target in targets for name in names_stored(target)}, [*walk(node)]
    if any([clause.is_async for clause in node.generators]) or not all(
        [_is_plain(p) for target in targets for p in walk(target)]
    ):
        return False
    if any([isinstance(part, _SCOPES) for part in parts[1:]]) or names_read(node.generators[0].iter).keys() & own:
        return False
    inner = [part for part in parts if isinstance(part, ast.comprehension) and part not in node.generators]
    return own.isdisjoint([name for part in inner for name in names_stored(part.target)])


def _is_plain(part: ast.AST) -> bool:
    return isinstance(part, (ast.Name, ast.Tuple, ast.expr_context))


def _is_own_call(node: ast.AST) -> bool:
    """Whether it is a call that may decide on something: none of NumPy's."""
    if not isinstance(node, ast.Call):
        return False
    fun = node.func
    while isinstance(fun, ast.Attribute):
        fun = fun.value
    return not isinstance(fun, ast.Name) or fun is node.func or fun.id not in MODULES
