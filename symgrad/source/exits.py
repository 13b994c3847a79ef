"""Loops that are left in several places, or in one that is not their only end, get one end, as loops of the code have.

``while a: b; if c: d; break; e`` runs as ``leaves = 0; while leaves == 0 and a: b; if c: leaves = 1; else: e``, and then
``if leaves == 1: d``: what is done on the way out is done when the loop is over. Other loops begin their iterations with
``leaves = 0``, and end them by ``if leaves != 0: break``.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from inspect import CO_GENERATOR
from types import FunctionType
from typing import Any

from symgrad.source.syntax import (
    LOCAL_READERS,
    SCOPES,
    TRIES,
    FunctionNode,
    assigned,
    declared,
    fresh,
    is_append,
    is_range,
    located,
    names_read,
    names_stored,
    names_within,
    parts_of,
    placed,
    walk,
)

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_EXITS = (ast.Break, ast.Return)
_JUMPS = (*_EXITS, ast.Continue)


def at_the_end(function: FunctionNode, space: Mapping[str, Any], with_lists: bool = False) -> FunctionNode:
    """The function, changed in place, as are those in it: such loops end in one place. ``space``: what is outside of it;
    ``with_lists``: but those that return what they make of a list to which they append."""
    if not isinstance(function, ast.Lambda):
        made = {node.name for node in walk(function) if isinstance(node, ast.FunctionDef) and _tidies_up(node)}
        _Exits(made | {name for name, value in space.items() if _is_generator(value)}, with_lists).visit(function)
    return function


def _tidies_up(function: ast.FunctionDef) -> bool:
    """Whether a function is a generator that does something when it is closed, which it is where a loop over it is left."""
    kinds = {type(node) for node in walk(function)}
    return not kinds.isdisjoint([ast.Yield, ast.YieldFrom]) and not kinds.isdisjoint(TRIES)


def _is_generator(value: Any) -> bool:
    """Whether it may be such a one."""
    return type(value) is FunctionType and bool(value.__code__.co_flags & CO_GENERATOR and value.__code__.co_exceptiontable)


def has_test(loop: ast.For | ast.While) -> bool:
    """Whether a loop ends by a test at its beginning, too."""
    return isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant)


def leaves(loop: ast.For | ast.While) -> bool:
    """Whether something in a loop ends it, or the function."""
    return bool(_jumps(_EXITS, loop.body))


def way_out(loop: ast.For | ast.While) -> ast.If | None:
    """The one ``if`` among the statements of a loop without a test that leaves it."""
    exits = [item for item in loop.body if isinstance(item, ast.If) and isinstance(item.body[-1], _EXITS)]
    return exits[0] if len(exits) == 1 and not exits[0].orelse and not has_test(loop) else None


class _Exits(ast.NodeTransformer):
    def __init__(self, generators: Collection[str], with_lists: bool) -> None:
        self.generators, self.with_lists = generators, with_lists  # those are told when they are left
        self.names: set[str] | None = None  # of the function that it is in; None where somebody sees all locals
        self.within = False  # whether it is in a loop
        self.counters: set[str] = set()  # the locals that are but the numbers of ranges

    def _in_function(self, node: Any, names: set[str] | None) -> Any:
        before = self.names, self.within, self.counters
        self.names, self.within, self.counters = names, False, _counters(node)
        self.generic_visit(node)
        self.names, self.within, self.counters = before
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        names = {item.id for item in walk(node) if isinstance(item, ast.Name)}
        return self._in_function(node, names if names.isdisjoint(LOCAL_READERS) else None)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._in_function(node, None)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._in_function(node, None)

    def visit_For(self, node: ast.For) -> Any:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> Any:
        return self._loop(node)

    def _loop(self, loop: ast.For | ast.While) -> Any:
        """The statements in place of a loop, of which those in it come first."""
        within, self.within = self.within, True
        self.generic_visit(loop)
        self.within = within
        exits = [*_all(_EXITS, loop.body)]
        over = walk(loop.iter) if isinstance(loop, ast.For) else ()
        if any([isinstance(part, ast.Name) and part.id in self.generators for part in over]):
            return loop
        if self.names is None or not exits or len(exits) < len(_jumps(_EXITS, loop.body)):
            return loop
        if self.with_lists and not any([isinstance(end, ast.Return) and _reads_appended(loop, end) for end in exits]):
            return loop
        begin = self._from_zero(loop) if within and isinstance(loop, ast.For) else []
        ended = self._ended(loop, exits, within)
        return [*begin, *ended] if isinstance(ended, list) else [*begin, ended]

    def _from_zero(self, loop: ast.For) -> list[ast.stmt]:
        """``for j in range(i, i + 8)`` counts from zero on, as it does in all iterations of the loop around it."""
        assert self.names is not None
        over = loop.iter
        if not isinstance(loop.target, ast.Name) or not is_range(over) or len(over.args) != 2:
            return []
        ends: Any = over.args
        start, stop = ends
        count = stop.right if isinstance(stop, ast.BinOp) and isinstance(stop.op, ast.Add) else None
        if not isinstance(count, ast.Constant) or type(count.value) is not int or ast.unparse(stop.left) != ast.unparse(start):
            return []
        if isinstance(start, ast.Constant) or not _is_whole(start, self.counters):
            return []
        first, turn = fresh("first", self.names), fresh("turn", self.names)
        place = ast.BinOp(ast.Name(first, ast.Load()), ast.Add(), ast.Name(turn, ast.Load()))
        loop.body.insert(0, assigned(loop.target.id, place, loop.target))
        loop.target, over.args = placed(ast.Name(turn, ast.Store()), loop.target), [count]
        return [assigned(first, start, start)]

    def _ended(self, loop: ast.For | ast.While, exits: list[ast.stmt], within: bool) -> Any:
        assert self.names is not None
        late = way_out(loop) if len(exits) == 1 and not [*_all(ast.Continue, loop.body)] else None
        returns = isinstance(exits[0], ast.Return) and (within or _reads_appended(loop, exits[0]))
        if late and not (returns or (within and _jumps(_JUMPS, loop.orelse))):
            return loop
        return _Leaving(fresh("leaves", self.names)).ended(loop, late)


def _reads_appended(loop: ast.For | ast.While, end: ast.stmt) -> bool:
    """Whether a loop appends to a list that the statement which ends it reads."""
    appends: list[Any] = [part for part in walk(loop) if is_append(part)]
    return not {part.func.value.id for part in appends}.isdisjoint(names_read(end))


def _counters(function: ast.AST) -> set[str]:
    """The locals that only ``for`` statements over ranges assign."""
    every = [*walk(function)]
    targets = [
        node.target.id
        for node in every
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and is_range(node.iter)
    ]
    stored = Counter(names_stored(function))
    others = {part.arg for part in every if isinstance(part, ast.arg)} | declared(function) | names_within(function)
    return {name for name in targets if stored[name] == targets.count(name)} - others


def _is_whole(node: ast.AST, counters: Collection[str]) -> bool:
    """Whether an expression is made of such numbers alone."""
    if isinstance(node, ast.BinOp):
        known = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
        return known and _is_whole(node.left, counters) and _is_whole(node.right, counters)
    return (isinstance(node, ast.Name) and node.id in counters) or (isinstance(node, ast.Constant) and type(node.value) is int)


class _Leaving:
    """Ends a loop in one place. ``name`` is the local that tells whether, and by which of its exits, it has been left."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.later: list[list[ast.stmt]] = []  # what is done on the way out of each exit, but for those where that is nothing

    def ended(self, loop: ast.For | ast.While, late: ast.If | None) -> list[ast.stmt]:
        """The statements in place of the loop, which ends in one place already if it has a ``late`` way out."""
        begun, orelse, loop.orelse = assigned(self.name, ast.Constant(0), loop), loop.orelse, []
        if late is None:
            self._end(loop)
        else:
            late.body = [*self._left(late.body), placed(ast.Break(), late.body[-1])]
        after = [self._if(ast.Eq(), i, block) for i, block in enumerate(self.later, 2)]
        if orelse:
            after.append(self._if(ast.Eq(), 0, orelse))
        for one, other in itertools.pairwise(after):
            one.orelse = [other]
        return [begun, loop, *after[:1]]

    def _end(self, loop: ast.For | ast.While) -> None:
        """Let a loop end by its test, or one at the end of its body."""
        loop.body = self._going_on(loop.body)
        if isinstance(loop, ast.While) and has_test(loop):
            stays = self._is(ast.Eq(), 0, loop.test)
            loop.test = located(placed(ast.BoolOp(ast.And(), [stays, loop.test]), loop.test))
        else:
            end = self._if(ast.NotEq(), 0, [placed(ast.Break(), loop)])
            loop.body = [assigned(self.name, ast.Constant(0), loop), *loop.body, end]

    def _going_on(self, body: Sequence[ast.stmt], last: bool = True) -> list[ast.stmt]:
        """Statements that go on to the end of an iteration, and say by a local where they have left the loop before; they are
        the ``last`` ones in it, or others follow."""
        for i, statement in enumerate(body):
            if isinstance(statement, _EXITS):
                return self._left([*body[:i], statement])
            if isinstance(statement, ast.Continue) and last:
                return [*body[:i], placed(ast.Pass(), statement)]
            if not isinstance(statement, ast.If) or not [*_all(_JUMPS, [statement])]:
                continue
            sides, rest = [statement.body, statement.orelse], body[i + 1 :]
            on = [_goes_on(side) for side in sides]
            later = [self._if(ast.Eq(), 0, self._going_on(rest, last))] if all(on) and rest else []
            follows = [rest if goes and not later else [] for goes in on]
            last = last and not later
            ended = [self._going_on([*side, *more], last) for side, more in zip(sides, follows, strict=True)]
            return [*body[:i], placed(ast.If(statement.test, *ended), statement), *later]
        return [*body]

    def _left(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """In place of statements of which the last one leaves the loop: they are run when that is over, but for what may go on
        with it."""
        *before, end = body
        first = max([i + 1 for i, statement in enumerate(before) if _jumps(ast.Continue, [statement])], default=0)
        later = body[first:] if isinstance(end, ast.Return) else before[first:]
        self.later += [later] if later else []
        return [*before[:first], assigned(self.name, ast.Constant(len(self.later) + 1 if later else 1), end)]

    def _if(self, op: ast.cmpop, number: int, body: list[ast.stmt]) -> ast.If:
        """These statements, where the local is this number, or is not."""
        return located(placed(ast.If(self._is(op, number, body[0]), body, []), body[0]))  # type: ignore[no-any-return]

    def _is(self, op: ast.cmpop, number: int, like: ast.AST) -> ast.expr:
        return placed(ast.Compare(ast.Name(self.name, ast.Load()), [op], [ast.Constant(number)]), like)  # type: ignore[no-any-return]


def _goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows these statements may run."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _goes_on(last.body) or _goes_on(last.orelse)
    return not isinstance(last, (*_JUMPS, ast.Raise))


def _all(kind: Any, statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a kind among the statements of a loop, and in ``if``s among them."""
    for statement in statements:
        if isinstance(statement, kind):
            yield statement
        elif isinstance(statement, ast.If):
            yield from _all(kind, [*statement.body, *statement.orelse])


def _jumps(kind: Any, nodes: Sequence[ast.AST]) -> list[ast.AST]:
    """All of a kind in these statements of a loop that end it, or its iteration."""
    found: list[ast.AST] = [node for node in nodes if isinstance(node, kind)]
    for node in nodes:
        if isinstance(node, _LOOPS):
            found += [part for part in _own(node.body) if isinstance(part, ast.Return) and isinstance(part, kind)]
            found += _jumps(kind, node.orelse)
        elif not isinstance(node, SCOPES):
            found += _jumps(kind, parts_of(node))
    return found


def _own(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All in these statements, but for functions and classes."""
    for node in nodes:
        if not isinstance(node, SCOPES):
            yield node
            yield from _own(parts_of(node))
