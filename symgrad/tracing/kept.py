"""What a run that no code is made of leaves outside: plain arrays and numbers, where no derivative flows into them.

``self.last = y * 2`` in a function that is traced at every call puts a Tracer into the object. When the run is over, nobody
could compute with it any more; so what was written into is looked through then, and holds what the Tracers stand for.
"""

from __future__ import annotations

import dis
import functools
import operator
from collections import OrderedDict, deque
from types import CellType, CodeType, ModuleType
from typing import Any

from symgrad.ir import INPUT
from symgrad.tracing.kinds import attributes
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer

DEEPEST = 8  # containers in containers that are looked into


@functools.lru_cache(1024)
def assigned_outside(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The global variables, and those of functions around it, that a function assigns."""
    stores = [step for step in dis.get_instructions(code) if step.opname in ("STORE_GLOBAL", "STORE_DEREF")]
    names, free = [{step.argval for step in stores if step.opname == name} for name in ("STORE_GLOBAL", "STORE_DEREF")]
    return frozenset(names), frozenset(free.intersection(code.co_freevars))


class Holders:
    """What a run has written into."""

    def __init__(self) -> None:
        self.every: dict[int, Any] = {}
        self.names: dict[int, tuple[dict[str, Any], set[str]]] = {}  # global variables, by module
        self.open = True

    def note(self, owner: Any) -> None:
        if self.open:  # functions that were made in the run may live on
            self.every[id(owner)] = owner

    def leave(self, trace: Trace) -> None:
        """The run is over."""
        self.open, made = False, dict[int, Any]()
        for space, names in self.names.values():
            space.update({name: _plain(space[name], trace, made) for name in names & space.keys()})
        for owner in self.every.values():
            _settle(owner, trace, made)
        self.every, self.names = {}, {}


def _settle(holder: Any, trace: Trace, made: dict[int, Any], depth: int = 0) -> None:
    """Put what they stand for in the place of Tracers, without what a class of the user's makes of that."""
    holder = vars(holder) if isinstance(holder, ModuleType) else holder
    items: list[tuple[Any, Any]]
    put: Any
    if isinstance(holder, (dict, set)):
        _settle_keys(holder, trace, made, depth)
    if isinstance(holder, set):
        return
    if isinstance(holder, dict):
        items, put = [*dict.items(holder)], dict.__setitem__
    elif isinstance(holder, (list, deque)):
        items, put = [*enumerate(holder)], list.__setitem__ if isinstance(holder, list) else deque.__setitem__
    elif isinstance(holder, CellType):
        items, put = _content(holder), setattr
    else:
        kind = isinstance(holder, type)
        items, put = [*(vars(holder) if kind else attributes(holder)).items()], (type if kind else object).__setattr__
    for key, item in items:
        if type(item) in _LOOKED_INTO or (trace.texts and isinstance(item, str)):
            new = _plain(item, trace, made, depth)
            if new is not item:
                put(holder, key, new)


def _settle_keys(holder: Any, trace: Trace, made: dict[int, Any], depth: int) -> None:
    """The same for the keys of a dict, or the members of a set: all are put anew, so that they stay in their order."""
    if isinstance(holder, OrderedDict):  # which asks each key for its hash, to find the next one
        return
    old = [*(dict.keys(holder) if isinstance(holder, dict) else set.__iter__(holder))]
    new = [_plain(key, trace, made, depth) if type(key) in (Tracer, tuple) else key for key in old]
    if all(map(operator.is_, old, new)):
        return
    if isinstance(holder, dict):
        pairs = [*zip(new, dict.values(holder), strict=True)]
        dict.clear(holder)
        dict.update(holder, pairs)
    else:
        set.clear(holder)
        set.update(holder, new)


_LOOKED_INTO = frozenset([Tracer, list, tuple, dict, set, deque])


def _content(cell: CellType) -> list[tuple[str, Any]]:
    try:
        return [("cell_contents", cell.cell_contents)]
    except ValueError:  # nobody has assigned the variable yet
        return []


def _plain(value: Any, trace: Trace, made: dict[int, Any], depth: int = 0) -> Any:
    """What a Tracer stands for: the user's array, or one that the run does not need, whatever is written into it."""
    if type(value) is tuple and depth < DEEPEST:
        found = [_plain(item, trace, made, depth + 1) for item in value]
        return value if all(map(operator.is_, found, value)) else tuple(found)
    if isinstance(value, str):
        return trace.plain_text(value)
    if type(value) is not Tracer:
        if type(value) in _LOOKED_INTO and depth < DEEPEST:
            _settle(value, trace, made, depth + 1)
        return value
    if value.node.differentiated or (value.tape is not trace and value.tape is not trace.drafts):
        return value
    if id(value) not in made:
        now = _now(value)
        whole = value.node.op is INPUT or value.tape.draft or not hasattr(now, "copy")
        made[id(value)] = value, now if whole else now.copy("K")
    return made[id(value)][1]


def _now(value: Tracer) -> Any:
    """What a Tracer stands for; a view shows what its base holds by now, which the run, that is over, does not record."""
    if value.base is None:
        return value.value
    op, rest, params = value.how
    return op.fun(_now(value.base), *[_now(arg) if type(arg) is Tracer else arg for arg in rest], **params)
