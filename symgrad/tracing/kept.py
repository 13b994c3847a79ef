"""What a run that no code is made of leaves outside: plain arrays and numbers, where no derivative flows into them.

``self.last = y * 2`` in a function that is traced at every call puts a Tracer into the object. When the run is over, nobody
could compute with it any more; so what was written into is looked through then, and holds what the Tracers stand for.
"""

from __future__ import annotations

import copyreg
import dis
import functools
from collections import deque
from types import CellType, CodeType
from typing import Any

from symgrad.ir import INPUT
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


def _settle(holder: Any, trace: Trace, made: dict[int, Any]) -> None:
    """Put what they stand for in the place of Tracers, without what a class of the user's makes of that."""
    if isinstance(holder, (list, deque)):
        for i, item in enumerate(holder):
            if type(item) in _LOOKED_INTO:
                holder[i] = _plain(item, trace, made)
    elif isinstance(holder, dict):
        for key, item in [*dict.items(holder)]:
            if type(item) in _LOOKED_INTO:
                dict.__setitem__(holder, key, _plain(item, trace, made))
    elif isinstance(holder, CellType):
        if type(holder.cell_contents) in _LOOKED_INTO:
            holder.cell_contents = _plain(holder.cell_contents, trace, made)
    elif isinstance(holder, type):
        for name, item in [*vars(holder).items()]:
            if type(item) in _LOOKED_INTO:
                type.__setattr__(holder, name, _plain(item, trace, made))
    else:
        if hasattr(holder, "__dict__"):
            _settle(holder.__dict__, trace, made)
        for name in copyreg._slotnames(type(holder)):  # type: ignore[attr-defined]
            item = getattr(holder, name, None)
            if type(item) in _LOOKED_INTO:
                object.__setattr__(holder, name, _plain(item, trace, made))


_LOOKED_INTO = frozenset([Tracer, list, tuple, dict, deque])


def _plain(value: Any, trace: Trace, made: dict[int, Any], depth: int = 0) -> Any:
    """What a Tracer stands for: the user's array, or one that the run does not need, whatever is written into it."""
    kind = type(value)
    if kind is not Tracer:
        if kind is tuple and depth < DEEPEST:
            found = [_plain(item, trace, made, depth + 1) for item in value]
            return value if all([one is item for one, item in zip(found, value, strict=True)]) else tuple(found)
        if kind in _LOOKED_INTO and depth < DEEPEST:
            for key, item in [*(value.items() if kind is dict else enumerate(value))]:
                if type(item) in _LOOKED_INTO:
                    value[key] = _plain(item, trace, made, depth + 1)
        return value
    if value.node.differentiated or (value.tape is not trace and value.tape is not trace.drafts):
        return value
    if id(value) not in made:
        if value.base is not None:
            value.refresh()
        whole = value.node.op is INPUT or value.tape.draft or not hasattr(value.value, "copy")
        made[id(value)] = value, value.value if whole else value.value.copy("K")
    return made[id(value)][1]
