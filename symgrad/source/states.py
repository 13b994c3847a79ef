"""Locals that a loop hands on, and that are now one text, now another one, go round as numbers.

Where calls give them (``state, s = step(state, s, v)``), or more is done with them than ``symgrad.source.texts`` knows to do
with numbers, the loop's body has the texts, as functions want them, and a number goes from one iteration to the next, which
each iteration decides on when it begins: ``state_code = code of state``, ``for v in x: state = text of state_code; state, s =
step(state, s, v); state_code = code of state``, and ``state = text of state_code`` behind the loop. Members of an ``Enum``, and
None, are as good as texts, and so is an object, or a function, that there is elsewhere when the loop begins (``gain = low``,
``gain = gains[1]``, ``step = car.fall``); anything else stands for itself. Runs tell of which locals in which lines that is so.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from symgrad.source.liveness import live_after
from symgrad.source.syntax import (
    LOCAL_READERS,
    SCOPES,
    FunctionNode,
    assigned,
    blocks_of,
    bound_in,
    declared,
    fresh,
    located,
    mentioned,
    names_stored,
    parameters,
    placed,
    walk,
)
from symgrad.source.texts import bound_otherwise

CODE, TEXT, IS_TEXT, HELD = "__symgrad_code__", "__symgrad_text__", "__symgrad_is_text__", "__symgrad_held__"
FIRST = "_first_"  # how names of locals end that hold what was there when a loop began
_LOOPS = (ast.For, ast.While)
# the line of a loop, a local, and other places, what is there may be in it: a local, and what it has at a key
State = tuple[int, str, frozenset[tuple[Any, ...]]]


def with_codes(function: FunctionNode, states: Collection[State]) -> FunctionNode:
    """The function, changed in place: so it is with these locals in the loops in these lines."""
    if not isinstance(function, ast.FunctionDef):
        return function
    every = [*walk(function)]
    used = {node.id for node in every if isinstance(node, ast.Name)}
    if not used.isdisjoint(LOCAL_READERS):
        return function
    beside, taken, after = _beside(function, every), mentioned(function), live_after(function)
    deleted = {name for node in every if isinstance(node, ast.Delete) for name in names_stored(node)}
    given, doubtful = parameters(function), deleted | declared(function)
    firsts: dict[Any, str] = {}
    for name in sorted({name for _, name, _ in states} - beside):
        lines = {line for line, other, _ in states if other == name}
        among = sorted({place for _, other, places in states if other == name for place in places}, key=repr)
        loops = [loop for loop in every if isinstance(loop, _LOOPS) and loop.lineno in lines and not _is_in_scopes(name, loop)]
        within = {id(part) for loop in loops for statement in loop.body for part in walk(statement)}
        for block, before in [*_blocks(function.body, ())]:
            for i, loop in reversed([*enumerate(block)]):
                if isinstance(loop, _LOOPS) and loop in loops and id(loop) not in within:
                    inner = [part for part in walk(loop) if isinstance(part, _LOOPS) and part in loops]
                    if _is_assigned(name, (*before, *block[:i])) and all([_is_plain(one, name) for one in inner]):
                        done = *before, *block[:i]
                        held = [one for one in among if one[0] not in doubtful and (one[0] in given or _is_made(one[0], done))]
                        others = {place: _held_by(place, loop, block, firsts, taken) for place in held}
                        local = _Local(name, fresh(f"{name}_code", taken), others)
                        _change(block, block.index(loop), local, inner, name in after.get(loop, {name}))
    return function


def _beside(function: ast.FunctionDef, every: Sequence[ast.AST]) -> set[str]:
    """The names that are bound by what is no assignment, or that functions and classes in the function share with it."""
    scopes = [node for node in every if isinstance(node, SCOPES) and node is not function]
    own = {id(part) for node in scopes if not isinstance(node, ast.ClassDef) for part in walk(node.args)}
    alone = [node for node in every if node not in (function, *scopes) and id(node) not in own]
    found = {name for node in alone for name in bound_otherwise(node)}
    for node in scopes:
        found |= {*bound_otherwise(node)} - (set() if isinstance(node, ast.ClassDef) else bound_in(node)[0])
    return found


def _is_in_scopes(name: str, loop: ast.AST) -> bool:
    """Whether functions and classes that a loop makes have such a name, if only for something else."""
    return any([name in mentioned(node) for node in walk(loop) if isinstance(node, SCOPES)])


class _Local(NamedTuple):
    """A local, the one with its number, and the locals that now hold what it may hold as well."""

    name: str
    code: str
    others: dict[tuple[Any, ...], str]

    def coded(self, like: ast.AST) -> ast.stmt:
        """``state_code = code of state``."""
        return assigned(self.code, ast.Call(_at(CODE), [_at(self.name), *self._facts()], []), like)

    def text(self, like: ast.AST) -> ast.stmt:
        """``state = text of state_code``."""
        return assigned(self.name, ast.Call(_at(TEXT), [_at(self.code), *self._facts()], []), like)

    def _facts(self) -> list[ast.expr]:
        places: list[Any] = [*self.others]
        held = ast.Dict([ast.Constant(place) for place in places], [_at(name) for name in self.others.values()])
        return [ast.Constant(self.name), *([held] if self.others else [])]


def _held_by(place: tuple[Any, ...], loop: Any, block: list[ast.stmt], firsts: dict[Any, str], taken: set[str]) -> str:
    """The local that holds all the time what is at a place when a loop begins, which is put before that if need be."""
    name, *keys = place
    if not keys and name not in names_stored(loop):
        return name  # type: ignore[no-any-return]
    if (id(loop), place) not in firsts:
        first = firsts[id(loop), place] = fresh(f"{name}_{len(firsts)}{FIRST}", taken)
        value = ast.Call(_at(HELD), [_at(name), ast.Constant(keys[0])], []) if keys else _at(name)
        block.insert(block.index(loop), assigned(first, value, loop))
    return firsts[id(loop), place]


def _is_made(name: str, before: Sequence[ast.stmt]) -> bool:
    functions = [node.name for node in before if isinstance(node, ast.FunctionDef)]
    return name in functions or _is_assigned(name, before)


def _is_assigned(name: str, before: Sequence[ast.stmt]) -> bool:
    return any([name in _targets(statement) for statement in before])


def _is_plain(loop: ast.For | ast.While, name: str) -> bool:
    """Whether a loop assigns such a local by plain statements alone, and its test does nothing but to compare it."""
    given = [statement for block in blocks_of(loop) for statement in block if name in _targets(statement)]
    often = sum([one == name for statement in loop.body for one in names_stored(statement)])
    plain = often == sum([_targets(statement).count(name) for statement in given])
    return plain and not loop.orelse and (isinstance(loop, ast.For) or _tests(loop.test, name) is not None)


def _change(block: list[ast.stmt], i: int, local: _Local, loops: Sequence[ast.For | ast.While], live: bool) -> None:
    """So it is with a local in a loop that stands in this place of a block, which is the first of these ``loops``; the others
    are in it. ``live``: it is read when that is over, if only by its next run."""
    outer: Any = block[i]
    name = local.name
    read = {id(loop): _reads(loop, name) for loop in loops}
    blocks = [*blocks_of(outer)]
    for inner in blocks:
        for place, statement in reversed([*enumerate(inner)]):
            if name in _targets(statement):
                inner.insert(place + 1, local.coded(statement))
    for loop in loops:
        if isinstance(loop, ast.While):
            for test in _tests(loop.test, name) or ():
                same = ast.Call(_at(IS_TEXT), [_at(local.code), test.comparators[0], ast.Constant(name)], [])
                test.left, test.comparators = same, [ast.Constant(isinstance(test.ops[0], (ast.Eq, ast.Is)))]
                test.ops = [ast.Eq()]
                located(placed(test, test))
        within = [other for other in loops if other is not loop and any([part is other for part in walk(loop)])]
        if read[id(loop)] > sum([read[id(other)] for other in within]):
            loop.body.insert(0, local.text(loop.body[0]))
    for inner in [block, *blocks]:
        for place, statement in reversed([*enumerate(inner)]):
            if live if statement is outer else id(statement) in read and read[id(outer)] > read[id(statement)]:
                inner.insert(place + 1, local.text(statement))
    block.insert(i, local.coded(outer))


def _blocks(block: list[ast.stmt], before: Sequence[ast.stmt]) -> Iterator[tuple[list[ast.stmt], Sequence[ast.stmt]]]:
    """The blocks of a function, each with the statements that come before it in those around."""
    yield block, before
    for i, statement in enumerate(block):
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for inner in [one for one in (getattr(statement, field, None) for field in ("body", "orelse", "finalbody")) if one]:
                yield from _blocks(inner, (*before, *block[:i]))


def _targets(statement: ast.stmt) -> list[str]:
    """The names that a plain statement assigns."""
    return [name for target in statement.targets for name in names_stored(target)] if isinstance(statement, ast.Assign) else []


def _tests(test: ast.expr, name: str) -> list[ast.Compare] | None:
    """Where the test of a loop compares a name with something; None where it reads it otherwise."""
    found = [
        part
        for part in walk(test)
        if isinstance(part, ast.Compare)
        and getattr(part.left, "id", "") == name
        and len(part.ops) == 1
        and isinstance(part.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot))
        and isinstance(part.comparators[0], (ast.Constant, ast.Attribute))
    ]
    return found if len(found) == _reads(test, name) else None


def _reads(node: ast.AST, name: str) -> int:
    return sum([isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load) for part in walk(node)])


def codes_in(loop: ast.AST) -> set[str]:
    """The names of such numbers in a loop."""
    calls = [part for part in walk(loop) if isinstance(part, ast.Call) and getattr(part.func, "id", "") == TEXT]
    return {arg.id for call in calls for arg in call.args if isinstance(arg, ast.Name)}


def decoded_in(loop: ast.AST) -> set[str]:
    """The locals that stand for texts in a loop."""
    given = [part for part in walk(loop) if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call)]
    return {name for part in given if getattr(part.value.func, "id", "") == TEXT for name in _targets(part)}  # type: ignore[attr-defined]


def _at(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())
