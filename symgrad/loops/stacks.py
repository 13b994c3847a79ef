"""Lists from which loops take items, in the run of a function that does so (see ``symgrad.source.stacks``).

A run begins with lists as they are. Where a loop that decides takes an item from one, ``Otherwise`` ends the run, and in the
next one that list has two ends, in an array with some room; where there is not enough, one more run has more. Where the list
turns out to be none of numbers, or where anything is raised, the run ends once more, and the list stays one.
"""

from __future__ import annotations

from collections.abc import Collection
from types import CodeType
from typing import Any, NamedTuple

from symgrad.ir import Aval
from symgrad.loops.tables import Lists, may_end
from symgrad.source.stacks import Stack
from symgrad.tracing.mixed import Otherwise
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer

ROOM = 128  # items that there is room for at first
MORE = 8  # times as many, where there were more
MOST = ROOM * MORE**3


class Stacked(NamedTuple):
    """Among what is ``apart``: the list of a ``name`` in a function's code has so much ``room``; with none, it stays a list.
    As arrays, it has these names."""

    code: CodeType
    name: str
    columns: tuple[str, ...]
    room: int


class Kind(NamedTuple):
    """And what is in a column of such a list: ints, flags, or other numbers, and numbers of several kinds."""

    code: CodeType
    column: str
    kind: type


def stacks(apart: Collection[Any], code: CodeType) -> frozenset[Stack]:
    """The lists of a function that have two ends, or stay as they are."""
    own = [one for one in apart if type(one) is Stacked and one.code is code]
    stay = {name for one in apart if type(one) is Lists and one.code is code and one.stay for name in one.group}
    rooms = {one.name: max([other.room for other in own if other.name == one.name]) for one in own}
    lists = {one.name for one in own if not one.room or not stay.isdisjoint(one.columns)}
    zeros = {one.name: tuple([kind_of(apart, code, column)() for column in one.columns]) for one in own}
    return frozenset([Stack(name, 0 if name in lists else room, zeros[name]) for name, room in rooms.items()])


def kind_of(apart: Collection[Any], code: CodeType, column: str) -> type:
    """What is in a column."""
    kinds = {one.kind for one in apart if type(one) is Kind and one.code is code and one.column == column}
    return kinds.pop() if len(kinds) == 1 else float


def put(trace: Trace, code: CodeType, column: str, value: Any) -> None:
    """A number is put into a column, if it is one of such a list: it may tell of what kind that is."""
    if any([type(one) is Stacked and one.code is code and column in one.columns for one in trace.apart]):
        known = any([type(one) is Kind and one.code is code and one.column == column for one in trace.apart])
        kind = _kind(value)
        if kind is not kind_of(trace.apart, code, column) and (kind is not float or known):
            asked = {Kind(code, column, kind)} - trace.apart
            if asked:
                raise trace.refuse(Otherwise(frozenset(asked)))


def _kind(value: Any) -> type:
    aval = value.node.aval if type(value) is Tracer else None
    if type(value) in (int, bool):
        return type(value)  # type: ignore[no-any-return]
    if not isinstance(aval, Aval) or aval.kind != "python":
        return float
    return int if aval.dtype.kind == "i" else bool if aval.dtype.kind == "b" else float


def shrinks(trace: Trace, code: CodeType, told: Collection[tuple[str, tuple[str, ...]]]) -> None:
    """A loop takes items from lists, of these names and columns."""
    loop = trace.innermost_loop()
    if loop is not None and loop.is_long() and may_end(trace):
        asked = {Stacked(code, name, columns, ROOM) for name, columns in told}
        asked_arrays = {Lists(code, (column,), False) for _, columns in told for column in columns}
        if not asked <= trace.apart:
            raise trace.refuse(Otherwise(frozenset(asked | asked_arrays)))


def full(trace: Trace, code: CodeType, name: str, room: int) -> Exception:
    """What ends a run in which there is no room for another item."""
    [columns] = {one.columns for one in trace.apart if type(one) is Stacked and (one.code, one.name) == (code, name)}
    more = Stacked(code, name, columns, room * MORE if room < MOST else 0)
    return trace.refuse(Otherwise(frozenset([more])))


def as_lists(apart: Collection[Any]) -> set[Stacked]:
    """What says that those which have two ends stay lists after all."""
    return {one._replace(room=0) for one in apart if type(one) is Stacked and one.room}
