"""Lists from which loops take items, in the run of a function that does so (see ``symgrad.source.stacks``).

A run begins with lists as they are. Where a loop that decides takes an item from one, ``Otherwise`` ends the run, and in the
next one that list has two ends, in arrays with some room; where there is not enough, one more run has more. What is in them is
Python's and NumPy's, ``mixed``; where that matters, where the list turns out to be none of numbers, or where anything is
raised, the run ends once more, and the list stays one.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Collection, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import Aval
from symgrad.loops.tables import is_flag, is_number, is_whole, may_end
from symgrad.ops.engine import NAMED
from symgrad.source.stacks import Stack
from symgrad.tracing.mixed import Mixed, Otherwise
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer

SIZE = 128  # items that there is room for at first
MORE = 8  # times as many, where there were more
MOST = SIZE * MORE**3
_ASKED = frozenset(["__getattribute__", "__getattr__", "__setattr__"])
_FITS: dict[type, Any] = {bool: is_flag, int: is_whole, float: is_number}


class Stacked(NamedTuple):
    """Among what is ``apart``: the list of a ``name`` has so much ``room``, in as many ``columns`` as its tuples have items,
    none if it has no tuples; without room, it stays a list. It is a local of a function's ``code``, or an attribute."""

    code: CodeType | None
    name: str
    columns: int
    room: int


class Kind(NamedTuple):
    """And what is in a column of such a list: ints, flags, or other numbers, and numbers of several kinds."""

    code: CodeType | None
    name: str
    column: int
    kind: type


def stacks(apart: Collection[Any], code: CodeType | None) -> frozenset[Stack]:
    """The lists of a function that have two ends, or stay as they are."""
    own = [one for one in apart if type(one) is Stacked and one.code in (code, None)]
    stay = {one.name for one in own if not one.room}
    rooms = {one.name: max([other.room for other in own if other.name == one.name]) for one in own}
    rooms |= dict.fromkeys(stay, 0)
    return frozenset([Stack(one.name, rooms[one.name], one.columns, _whole(apart, one)) for one in own if one.room])


def shrinks(trace: Trace, code: CodeType | None, lists: Collection[tuple[str, Any]]) -> None:
    """A loop takes items from lists: locals, of so many columns, or attributes, which are these."""
    loop = trace.innermost_loop()
    if loop is None or not loop.is_long() or not may_end(trace):
        return
    asked = set[Any]()
    for name, one in lists:
        if type(one) is int:
            asked.add(Stacked(code, name, one, SIZE))
        elif (type(one) is list or (type(one) is deque and one.maxlen is None)) and one:
            asked.add(Stacked(None, name, len(one[0]) if type(one[0]) is tuple else 0, SIZE))
    known = {(one.code, one.name) for one in trace.apart if type(one) is Stacked}
    if not {(one.code, one.name) for one in asked} <= known:
        raise trace.refuse(Otherwise(frozenset(asked)))


def room(trace: Trace, code: CodeType | None, name: str, column: int, owner: Any = None) -> Tracer:
    """An array for a column of a list, which an ``owner`` has, or no object."""
    one = _known(trace, code, name)
    if owner is not None:
        if not _may_own(owner, name[1:]):
            raise trace.refuse(Otherwise(frozenset([one._replace(room=0)])))
        trace.owners.append((weakref.ref(owner), one))
    kinds = _kinds(trace.apart, one, column)
    array = trace.filled(np.full(one.room, _common(kinds)()))
    assert array is not None
    result: Tracer = trace.record(NAMED, (array,), {"place": (name, column)})
    trace.mixed[result.node] = Mixed(None, frozenset([one._replace(room=0)]), whole=len(kinds) > 1)
    return result


def made_by(trace: Trace, code: CodeType | None, name: str, maker: Any) -> None:
    """A list is begun by calling something: by no function or class of another name."""
    if maker is not list and maker is not deque:
        raise trace.refuse(Otherwise(frozenset([_known(trace, code, name)._replace(room=0)])))


def _may_own(owner: Any, name: str) -> bool:
    """Whether nobody finds another attribute of this name in the place of the list."""
    kind = type(owner)
    own = [part for part in kind.__mro__ if part is not object and not _ASKED.isdisjoint(vars(part))]
    plain = not own and not hasattr(kind, name)
    return plain and hasattr(owner, "__weakref__") and name not in getattr(owner, "__dict__", {name})


def settle(trace: Trace, outputs: Sequence[Any]) -> None:
    """The run is over: objects that have such lists are gone, or the lists have to be lists for who has got the objects; and no
    int is among the ``outputs`` for which a float stands."""
    trace.weed(0, len(trace.writes))
    left = {one._replace(room=0) for owner, one in trace.owners if owner() is not None}
    known = [trace.mixed.get(leaf.node) for leaf in outputs if type(leaf) is Tracer]
    left |= {cause for one in known if one is not None and one.whole for cause in one.causes if type(cause) is Stacked}
    if left:
        raise trace.refuse(Otherwise(frozenset(left)))


def put(trace: Trace, code: CodeType | None, name: str, column: int, value: Any) -> Any:
    """A number that is put into a column: it may tell of what kind that is."""
    one = _known(trace, code, name)
    kinds, own = _kinds(trace.apart, one, column), _kind(trace, value)
    kind = _common(kinds)
    if own is not kind and own not in kinds and (own is not float or kinds):
        raise trace.refuse(Otherwise(frozenset([Kind(one.code, name, column, own)])))
    if not _FITS[kind](value):
        raise trace.refuse(Otherwise(frozenset([one._replace(room=0)])))
    return value


def adopt(trace: Trace, made: Any) -> None:
    """The lists that an object has which no function of the user's has made, as a dataclass makes them, have two ends."""
    names = {one.name for one in trace.apart if type(one) is Stacked and one.code is None}
    for name in names & {f".{name}" for name in getattr(made, "__dict__", ())}:
        [stack] = [one for one in stacks(trace.apart, None) if one.name == name]
        attribute, items = name[1:], vars(made)[name[1:]]
        if not stack.room or type(items) not in (list, deque) or getattr(items, "maxlen", None) is not None:
            continue
        if len(items) > stack.room:
            raise full(trace, None, name)
        delattr(made, attribute)
        for i in range(stack.columns or 1):
            array = room(trace, None, name, i, made)
            for place, item in enumerate(items):
                array[place] = put(trace, None, name, i, item[i] if stack.columns else item)
            setattr(made, f"{attribute}_{i}", array)
        setattr(made, f"{attribute}_first", 0)
        setattr(made, f"{attribute}_end", len(items))


def full(trace: Trace, code: CodeType | None, name: str) -> Exception:
    """What ends a run in which there is no room for another item."""
    one = _known(trace, code, name)
    return trace.refuse(Otherwise(frozenset([one._replace(room=one.room * MORE if one.room < MOST else 0)])))


def as_lists(apart: Collection[Any]) -> set[Stacked]:
    """What says that those which have two ends stay lists after all."""
    return {one._replace(room=0) for one in apart if type(one) is Stacked and one.room}


def _known(trace: Trace, code: CodeType | None, name: str) -> Stacked:
    own = [one for one in trace.apart if type(one) is Stacked and one.name == name and one.code in (code, None)]
    return max(own, key=lambda one: one.room)


def _kinds(apart: Collection[Any], one: Stacked, column: int) -> set[type]:
    """What was seen in a column, if it was no float at first."""
    return {other.kind for other in apart if type(other) is Kind and other[:3] == (one.code, one.name, column)}


def _whole(apart: Collection[Any], one: Stacked) -> frozenset[int]:
    """The columns with nothing but ints in them."""
    return frozenset([column for column in range(one.columns or 1) if _kinds(apart, one, column) == {int}])


def _common(kinds: Collection[type]) -> type:
    """What a column has that has all of these."""
    return next(iter(kinds)) if len(kinds) == 1 else float


def _kind(trace: Trace, value: Any) -> type:
    """Of what kind a number is: Python's ints and flags, which may have been in such an array, or any other."""
    aval = value.node.aval if type(value) is Tracer else None
    if type(value) in (int, bool):
        return type(value)
    if not isinstance(aval, Aval) or not (aval.kind == "python" or value.node in trace.mixed):
        return float
    return int if aval.dtype.kind == "i" else bool if aval.dtype.kind == "b" else float
