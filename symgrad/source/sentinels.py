"""Locals that hold None until an iteration gives them a number have a flag that says whether they do.

``best = None``, ``for v in x: if best is None or v > best: best = v`` runs as ``best, best_there = 0.0, False``, ``if not
best_there or v > best: best, best_there = v, True``: numbers and flags can go round a loop, and be decided on in
code; None cannot. Where a local may be None when it is read, it is ``best if best_there else None``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any, NamedTuple

from symgrad.source.syntax import (
    LOCAL_READERS,
    SCOPES,
    FunctionNode,
    assigned,
    counted_by,
    fresh,
    is_none,
    is_truth,
    located,
    names_stored,
    paired,
    placed,
    walk,
)
from symgrad.source.texts import bound_beside

_LOOPS = (ast.For, ast.While)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_COMPUTED = (ast.BinOp, ast.Compare, ast.UnaryOp)  # what is never None


def with_flags(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it: such locals have flags."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            names = _sentinels(node)
            if names:
                taken = {part.id for part in walk(node) if isinstance(part, ast.Name)}
                flags = {name: fresh(f"{name}_there", taken) for name in sorted(names)}
                node.body, _ = _Flags(flags, _blanks(node)).block(node.body, ())
    return function


def _sentinels(function: ast.FunctionDef) -> set[str]:
    """The locals that are None at first, and that a loop gives something else, where an ``if`` says whether, or asks for it."""
    every = [*walk(function)]
    values = [pair for node in every for pair in _pairs(node)]
    names = {name for name, value in values if is_none(value)}
    used = {node.id for node in every if isinstance(node, ast.Name)}
    if not names or not used.isdisjoint(LOCAL_READERS):
        return set()
    names -= bound_beside(function, every)
    inside = [part for node in every if isinstance(node, _LOOPS) for part in walk(node)]
    names &= {name for node in inside for name, value in _pairs(node) if not is_none(value)}
    chosen = {name for node in inside if isinstance(node, ast.If) for part in walk(node) for name, _ in _pairs(part)}
    names &= chosen | {node.left.id for node in every if _is_asked(node)}  # type: ignore[attr-defined]
    stored = [node.id for node in every if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    return {name for name in names if stored.count(name) == sum([name == other for other, _ in values])}


def _pairs(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """The names that a statement assigns one by one, and what."""
    pairs = paired(node.targets[0], node.value) if isinstance(node, ast.Assign) and len(node.targets) == 1 else []
    return [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]


def _blanks(function: ast.FunctionDef) -> dict[str, Any]:
    """What stands for None in names that get nothing beside it but places, made of the numbers of ranges and such, or flags."""
    every = [*walk(function)]
    loops = [node for node in every if isinstance(node, ast.For)]
    known = {name for loop in loops for name in counted_by(loop)}
    made: dict[str, list[ast.expr]] = {}
    for name, value in [pair for node in every for pair in _pairs(node)]:
        made.setdefault(name, []).extend([] if is_none(value) else [value])
    places = {name: 0 for name, values in made.items() if values and all([_is_place(value, known) for value in values])}
    return places | {name: False for name, values in made.items() if values and all(map(_is_flag, values))}


def _is_flag(value: ast.expr) -> bool:
    if isinstance(value, ast.BoolOp):
        return all(map(_is_flag, value.values))
    return is_truth(value) or (isinstance(value, ast.Constant) and type(value.value) is bool)


def _is_place(value: ast.expr, known: Collection[str]) -> bool:
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, (ast.Add, ast.Sub)) and _is_place(value.left, known) and _is_place(value.right, known)
    return value.id in known if isinstance(value, ast.Name) else isinstance(value, ast.Constant) and type(value.value) is int


def _is_asked(node: ast.AST) -> bool:
    """Whether it is ``name is None``, or ``name is not None``."""
    if not isinstance(node, ast.Compare) or len(node.ops) > 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return False
    return isinstance(node.left, ast.Name) and is_none(node.comparators[0])


class _Told(NamedTuple):
    """The names that are not None if a test is true, and if it is not."""

    true: frozenset[str]
    false: frozenset[str]


_NOTHING = _Told(frozenset(), frozenset())


def _told(test: ast.expr) -> _Told:
    if _is_asked(test):
        found = frozenset([test.left.id])  # type: ignore[attr-defined]
        return _Told(frozenset(), found) if isinstance(test.ops[0], ast.Is) else _Told(found, frozenset())  # type: ignore[attr-defined]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _Told(*_told(test.operand)[::-1])
    if isinstance(test, ast.BoolOp):
        true, false = [frozenset[str]().union(*sets) for sets in zip(*map(_told, test.values), strict=True)]
        return _Told(true, frozenset()) if isinstance(test.op, ast.And) else _Told(frozenset(), false)
    return _NOTHING


class _Flags:
    """Gives ``flags`` to names, in which ``blanks`` stand for None, or 0.0. What is ``known`` are those that are not None, at
    some place."""

    def __init__(self, flags: dict[str, str], blanks: dict[str, Any]) -> None:
        self.flags, self.blanks = flags, blanks

    def block(self, statements: list[Any], known: Collection[str]) -> tuple[list[Any], Collection[str]]:
        """Statements, and what is known after them."""
        made = []
        for statement in statements:
            new, known = self._statement(statement, known)
            made += new
        return made, known

    def _statement(self, node: Any, known: Collection[str]) -> tuple[list[Any], Collection[str]]:
        flagged = [(name, value) for name, value in _pairs(node) if name in self.flags]
        if flagged:
            return self._assigned(node, flagged, known)
        if isinstance(node, ast.If):
            told = _told(node.test)
            node.test = self.expression(node.test, known)
            sides = [self.block(side, {*known, *more}) for side, more in zip((node.body, node.orelse), told, strict=True)]
            (node.body, _), (node.orelse, _) = sides
            left = [{*after} for side, after in sides if not (side and isinstance(side[-1], _LEAVING))]
            return [node], set.intersection(*left) if left else known
        start = {*known} - {*names_stored(node)}
        if isinstance(node, ast.While):
            told = _told(node.test)
            node.test = self.expression(node.test, start)
            node.body, _ = self.block(node.body, start | told.true)
            node.orelse, _ = self.block(node.orelse, start)
            return [node], start
        self._parts(node, start if isinstance(node, ast.stmt) and hasattr(node, "body") else known)
        return [node], start

    def _assigned(self, node: ast.Assign, pairs: Any, known: Collection[str]) -> tuple[list[Any], Collection[str]]:
        nothing = [value for _, value in pairs if is_none(value)]
        node.value = self.expression(node.value, known)
        made: list[Any] = [node]
        known = {*known} - {name for name, _ in pairs}
        for name, value in pairs:
            flag = self.flags[name]
            made.append(assigned(flag, ast.Constant(not any([value is one for one in nothing])), node))
            if isinstance(value, _COMPUTED) or (isinstance(value, ast.Constant) and not is_none(value)):
                known.add(name)
            elif value not in nothing:
                none = ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [ast.Constant(None)])
                made.append(located(placed(ast.If(none, [assigned(flag, ast.Constant(False), node)], []), node)))
        for name, value in pairs:
            if value in nothing:
                value.value = self.blanks.get(name, 0.0)
        return made, known

    def _parts(self, node: Any, known: Collection[str]) -> None:
        """What is in a node, in place."""
        if isinstance(node, SCOPES):
            return
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self.block(value, known)[0])
            elif isinstance(value, list):
                setattr(node, field, [self.expression(item, known) if isinstance(item, ast.AST) else item for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, self.expression(value, known))

    def expression(self, node: Any, known: Collection[str]) -> Any:
        """An expression, or a part of a statement, in which names are read."""
        if _is_asked(node) and node.left.id in self.flags:
            flag = placed(ast.Name(self.flags[node.left.id], ast.Load()), node)
            return flag if isinstance(node.ops[0], ast.IsNot) else placed(ast.UnaryOp(ast.Not(), flag), node)
        if isinstance(node, ast.Name):
            if node.id not in self.flags or node.id in known or not isinstance(node.ctx, ast.Load):
                return node
            return located(placed(ast.IfExp(ast.Name(self.flags[node.id], ast.Load()), node, ast.Constant(None)), node))
        if isinstance(node, ast.BoolOp):
            for i, value in enumerate(node.values):
                told = _told(value)
                node.values[i] = self.expression(value, known)
                known = {*known, *(told.true if isinstance(node.op, ast.And) else told.false)}
        elif isinstance(node, ast.IfExp):
            told = _told(node.test)
            node.test = self.expression(node.test, known)
            node.body = self.expression(node.body, {*known, *told.true})
            node.orelse = self.expression(node.orelse, {*known, *told.false})
        else:
            self._parts(node, () if isinstance(node, ast.GeneratorExp) else known)
        return node
