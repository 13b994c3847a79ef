"""A local that only ever stands for tuples of one length is as many locals in the traced function.

``best = (d, i)``, ``if d < best[0]:``, ``d, i = best`` is ``best_0, best_1 = d, i``, ``if d < best_0:``, ``d, i = best_0,
best_1``: what is known of loops over locals holds for it, too. One that is None at times has a flag beside it.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from symgrad.source.lists import tells_apart
from symgrad.source.syntax import (
    LOCAL_READERS,
    FunctionNode,
    assigned,
    copied,
    ends_of,
    fresh,
    int_of,
    is_none,
    located,
    placed,
    walk,
)
from symgrad.source.texts import bound_beside

_LOOPS = (ast.For, ast.While)
LONGEST = 6  # items of such a tuple


@dataclass
class _Tuple:
    """The locals in its place, and the flag that says whether it is a tuple, if it may be None."""

    items: list[str]
    flag: str | None


def item_by_item(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            found = _tuples(node)
            if found:
                _Items(found).generic_visit(node)
    return function


def _tuples(function: ast.FunctionDef) -> dict[str, _Tuple]:
    """The locals that only stand for tuples of one length, or None, and of which items are asked for."""
    every = [*walk(function)]
    names = {node.id for node in every if isinstance(node, ast.Name)}
    if not names.isdisjoint(LOCAL_READERS) or any(map(tells_apart, every)):
        return {}
    made: dict[str, list[ast.Assign]] = {}
    for node in every:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            made.setdefault(node.targets[0].id, []).append(node)
    again = {id(node) for loop in every if isinstance(loop, _LOOPS) for node in walk(loop)}
    found: dict[str, _Tuple] = {}
    others: set[str] | None = None
    for name, statements in made.items():
        ends = [end for node in statements for end in ends_of(node.value)]
        lengths = {len(end.elts) for end in ends if isinstance(end, ast.Tuple)}
        if len(lengths) != 1 or not any([id(node) in again for node in statements]) or not 0 < min(lengths) <= LONGEST:
            continue
        if not all([_is_known(end, name) for end in ends]) or not _is_taken_apart(every, name, len(statements), min(lengths)):
            continue
        others = bound_beside(function, every) if others is None else others
        if name not in others:
            items = [fresh(f"{name}_{i}", names) for i in range(min(lengths))]
            found[name] = _Tuple(items, fresh(f"is_{name}", names) if any(map(is_none, ends)) else None)
    return found


def _made_none(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement, or one in it, may make None."""
    for node in walk(statement):
        if isinstance(node, ast.Assign) and any(map(is_none, ends_of(node.value))):
            yield from [target.id for target in node.targets if isinstance(target, ast.Name)]


def _is_known(end: ast.expr, name: str) -> bool:
    """Whether it is a tuple whose items are named one by one, None, or the local itself."""
    if isinstance(end, ast.Tuple):
        return not any([isinstance(item, ast.Starred) for item in end.elts])
    return is_none(end) or (isinstance(end, ast.Name) and end.id == name)


def _is_taken_apart(every: list[ast.AST], name: str, often: int, length: int) -> bool:
    """Whether so many statements alone assign a local, others ask for its items, and none whether it is another object."""
    stored = [node for node in every if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)]
    if len(stored) != often:
        return False
    for node in every:
        if isinstance(node, ast.Compare) and any([isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops]):
            sides = [node.left, *node.comparators]
            named = any([isinstance(side, ast.Name) and side.id == name for side in sides])
            if named and not (len(sides) == 2 and any(map(is_none, sides))):
                return False
    unpacked = [node for node in every if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)]
    apart = any([isinstance(node.value, ast.Name) and node.value.id == name for node in unpacked])
    return apart or any([_place(node, name, length) is not None for node in every])


def _place(node: Any, name: str, length: int) -> int | None:
    """Which item ``name[1]`` or ``name[-1]`` is; None for anything else."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load) or getattr(node.value, "id", "") != name:
        return None
    place = int_of(node.slice)
    return place % length if place is not None and -length <= place < length else None


class _Items(ast.NodeTransformer):
    """Puts locals in the place of these tuples."""

    def __init__(self, tuples: dict[str, _Tuple]) -> None:
        self.tuples = tuples
        self.sure = set[str]()  # those that are no None where a node stands

    @contextlib.contextmanager
    def _told_of(self, names: set[str]) -> Iterator[None]:
        """So many more are no None."""
        before, self.sure = self.sure, self.sure | names
        yield
        self.sure = before

    def _visited(self, nodes: Sequence[Any], sure: set[str]) -> list[Any]:
        """These nodes, where so many more are no None."""
        with self._told_of(sure):
            made = [self.visit(node) for node in nodes]
        return [one for item in made for one in (item if isinstance(item, list) else [item])]

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        sure, values = set[str](), list[Any]()
        for value in node.values:
            names = self._told(value, isinstance(node.op, ast.And))
            values += self._visited([value], sure)
            sure |= names
        node.values = values
        return node

    def visit_If(self, node: ast.If) -> Any:
        sides = []
        for side, when in ((node.body, True), (node.orelse, False)):
            told = self._told(node.test, when)
            told -= {name for part in side for name in _made_none(part)}
            sides.append((side, told))
        (node.test,) = self._visited([self._asked(node.test)], set())
        node.body, node.orelse = [self._visited(side, told) for side, told in sides]
        return node

    def _asked(self, test: ast.expr) -> ast.expr:
        """``if best:``, of what may be None: whether it is none."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return placed(ast.UnaryOp(test.op, self._asked(test.operand)), test)  # type: ignore[no-any-return]
        known = self.tuples.get(test.id) if isinstance(test, ast.Name) else None
        return placed(self._flag(known), test) if known is not None and known.flag is not None else test

    def _told(self, test: ast.expr, when: bool) -> set[str]:
        """The names that are no None if a test is so: ``best is not None and ...``, or ``best is None or ...`` if it is not."""
        if isinstance(test, ast.BoolOp):
            known = isinstance(test.op, ast.And if when else ast.Or)
            return set[str]().union(*[self._told(value, when) for value in test.values]) if known else set()
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._told(test.operand, not when)
        if isinstance(test, ast.Name):
            return {test.id} & self.tuples.keys() if when else set()
        if not isinstance(test, ast.Compare) or len(test.ops) > 1 or not any(map(is_none, test.comparators)):
            return set()
        asked = isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.IsNot if when else ast.Is)
        return {test.left.id} & self.tuples.keys() if asked else set()  # type: ignore[attr-defined]

    def visit_Assign(self, node: ast.Assign) -> Any:
        name = getattr(node.targets[0], "id", "")
        known = self.tuples.get(name)
        if known is None:
            self.generic_visit(node)
            return node
        return self._assigned(name, known, node.value, node)

    def _assigned(self, name: str, known: _Tuple, value: ast.expr, node: ast.Assign) -> list[ast.stmt]:
        if isinstance(value, ast.IfExp):
            told = [self._told(value.test, when) for when in (True, False)]
            test, sides = self.visit(value.test), []
            for side, more in zip((value.body, value.orelse), told, strict=True):
                with self._told_of(more):
                    sides.append(self._assigned(name, known, side, node))
            body, other = sides
            return [located(placed(ast.If(test, body or [placed(ast.Pass(), node)], other), node))]
        if isinstance(value, ast.Name):  # as it was
            return [placed(ast.Pass(), node)]
        there = [] if known.flag is None else [assigned(known.flag, ast.Constant(not is_none(value)), node)]
        if not isinstance(value, ast.Tuple):
            return [*[assigned(item, ast.Constant(0.0), node) for item in known.items], *there]
        given: ast.expr = placed(ast.Tuple([self.visit(item) for item in value.elts], ast.Load()), value)
        targets: list[ast.expr] = [ast.Name(item, ast.Store()) for item in known.items]
        made = ast.Assign([ast.Tuple(targets, ast.Store())], given)
        return [located(placed(made, node)), *there]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        for name, known in self.tuples.items():
            place = _place(node, name, len(known.items))
            if place is not None:
                item = ast.Name(known.items[place], ast.Load())
                none = ast.Subscript(ast.Constant(None), ast.Constant(place), ast.Load())
                return located(
                    placed(item if known.flag is None or name in self.sure else ast.IfExp(self._flag(known), item, none), node)
                )
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        sides = [node.left, *node.comparators]
        named = [self.tuples[side.id] for side in sides if isinstance(side, ast.Name) and side.id in self.tuples]
        if len(named) != 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or not any(map(is_none, sides)):
            self.generic_visit(node)
            return node
        flag = self._flag(named[0])
        return located(placed(ast.UnaryOp(ast.Not(), flag) if isinstance(node.ops[0], ast.Is) else flag, node))

    def visit_Name(self, node: ast.Name) -> Any:
        known = self.tuples.get(node.id)
        if known is None:
            return node
        made: ast.expr = ast.Tuple([ast.Name(item, ast.Load()) for item in known.items], ast.Load())
        if known.flag is not None:
            made = ast.IfExp(self._flag(known), made, ast.Constant(None))
        return located(placed(made, node))

    def _flag(self, known: _Tuple) -> ast.expr:
        return copied(ast.Constant(True) if known.flag is None else ast.Name(known.flag, ast.Load()))  # type: ignore[no-any-return]
