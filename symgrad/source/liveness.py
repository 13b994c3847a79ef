"""Liveness: which local variables may be read, from a place in a function on, before they are assigned anew."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from symgrad.source.syntax import LATER, names_read, names_stored, walk

Names = frozenset[str]


class Ends(NamedTuple):
    """The names that are live where the loop around is left by ``break``, and where it goes on by ``continue``."""

    left: Names = frozenset()
    again: Names = frozenset()


def read_later(function: ast.AST) -> Names:
    """What functions inside this one read, whenever they are called."""
    inner = [item for item in walk(function) if isinstance(item, LATER) and item is not function]
    return frozenset([name for item in inner for name in names_read(item)])


def note_live(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Note of each loop in a function, but for those in ``try`` and ``with``, which names are ``live`` after it."""
    for loop, names in live_after(function).items():
        loop.live = names  # type: ignore[attr-defined]


def live_after(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[ast.AST, Names]:
    """The names that are live after each loop in a function, but for those in ``try`` and ``with``."""
    live(function.body, frozenset(), Ends())
    return {item: item.after for item in walk(function) if hasattr(item, "after")}  # which other questions may change


def live(statements: Sequence[ast.stmt], after: Names, ends: Ends) -> Names:
    """The names that are live before ``statements``, where those ``after`` them are."""
    for statement in reversed(statements):
        after = _before(statement, after, ends)
    return after


def live_between(loop: ast.For | ast.While, after: Names) -> list[Names]:
    """The names that are live before each statement in the body of a loop, and those that are before its next iteration.

    The loop may run again when it is over, where it is in another one.
    """
    head = after
    while (found := _at_head(loop, after | head, head)) != head:
        head = found
    return _between(loop.body, head, Ends(after | head, head))


def used_between(loop: ast.For | ast.While, twice: bool) -> list[Names]:
    """The same of what the rest of an iteration alone may read; ``twice``: and the whole next one."""
    test = frozenset(names_read(loop.test)) if isinstance(loop, ast.While) else Names()
    if twice:
        test |= live(loop.body, test, Ends(test, test))
    return _between(loop.body, test, Ends(test, test))


def used_from(loop: ast.For | ast.While, leaving: ast.If) -> Names:
    """The names that iterations may read behind the test of the ``if`` that leaves the loop, where each begins its turn."""
    at, head = loop.body.index(leaving), Names()
    while (found := _at_head(loop, Names(), head)) != head:
        head = found
    ends = Ends(Names(), head)
    later = _between(loop.body, head, ends)[at + 1]
    return later | live(leaving.body, later, ends)


def _between(body: Sequence[ast.stmt], after: Names, ends: Ends) -> list[Names]:
    places = [after]
    for statement in reversed(body):
        places.append(_before(statement, places[-1], ends))
    return places[::-1]


def _at_head(loop: ast.For | ast.While, after: Names, head: Names) -> Names:
    """The names that are live before an iteration, if those in ``head`` are before the next one."""
    within = live(loop.body, head, Ends(after, head))
    if isinstance(loop, ast.For):
        return head | after | names_read(loop.target).keys() | (within - _bound(loop.target))
    return head | after | names_read(loop.test).keys() | within


def _before(node: ast.stmt, after: Names, ends: Ends) -> Names:
    if isinstance(node, ast.Assign):
        return after.difference(*map(_bound, node.targets)) | names_read(node).keys()
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return (after - _bound(node.target)) | names_read(node).keys()
    if isinstance(node, ast.If):
        return live(node.body, after, ends) | live(node.orelse, after, ends) | names_read(node.test).keys()
    if isinstance(node, (ast.For, ast.While)):
        node.after = after  # type: ignore[union-attr]
        done, head = live(node.orelse, after, ends), frozenset[str]()
        while (found := _at_head(node, after | done, head)) != head:
            head = found
        return head | (names_read(node.iter).keys() if isinstance(node, ast.For) else frozenset())
    if isinstance(node, ast.Break):
        return ends.left
    if isinstance(node, ast.Continue):
        return ends.again
    if isinstance(node, ast.Return):
        return frozenset(names_read(node))
    found = after | names_read(node).keys()
    if isinstance(node, ast.Delete):
        found |= frozenset(names_stored(node))
    return found | ends.left | ends.again if any([isinstance(item, _JUMPS) for item in walk(node)]) else found


_JUMPS = (ast.Break, ast.Continue)


def _bound(target: ast.expr) -> Names:
    """The names that an assignment to ``target`` binds whatever it does."""
    if isinstance(target, ast.Name):
        return frozenset([target.id])
    if isinstance(target, (ast.Tuple, ast.List)):
        return frozenset().union(*map(_bound, target.elts))
    return _bound(target.value) if isinstance(target, ast.Starred) else frozenset()
