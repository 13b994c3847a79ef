"""What a run that no code is made of leaves outside: plain arrays and numbers, where no derivative flows into them.

``self.last = y * 2`` in a function that is traced at every call puts a Tracer into the object. When the run is over, nobody
could compute with it any more; so what still holds one then gets what it stands for.
"""

from __future__ import annotations

import copyreg
import gc
import sys
from collections import Counter, deque
from collections.abc import Sequence
from types import CellType, FrameType
from typing import Any

from symgrad.ir import INPUT
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer

_IN_HAND = 3  # holders of a value in a dictionary: that, a local of ``leave``, and the argument of the call that counts


def begin(trace: Trace, given: Sequence[Any]) -> int:
    """How often a run that begins, and what it is ``given``, are held: ``leave`` is to know."""
    return _often(trace, given)


def _often(trace: Trace, given: Sequence[Any]) -> int:
    """How often a run and its drafts are held, as they are by each of their Tracers, and of those that it is given each."""
    runs = [trace] if trace.drafts is None else [trace, trace.drafts]
    return sum(map(sys.getrefcount, [*runs, *[value for value in given if type(value) is Tracer]]))


def leave(trace: Trace, given: Sequence[Any], outputs: list[Any], before: int) -> None:
    """Let all that holds Tracers of a run, but for what it was ``given`` and its ``outputs``, hold what these stand for;
    ``before`` is what ``begin`` has told."""
    if any(map(callable, outputs)):  # a pullback, which needs them; what is used elsewhere raises an error
        return
    ours = {id(value) for value in given}
    made: dict[int, Tracer] = {}
    by: Counter[int] = Counter()
    for leaf in outputs:
        while type(leaf) is Tracer:  # and what it is a view of
            by[id(leaf)] += 1
            if id(leaf) in made or id(leaf) in ours:
                break
            made[id(leaf)] = leaf
            leaf = leaf.base
    known = len(made) + sum([often for one, often in by.items() if one in ours])
    several = [sys.getrefcount(one) - by[id(one)] > _IN_HAND for one in made.values()]
    if not any(several) and _often(trace, given) <= before + known:
        return
    gc.unfreeze()  # what nobody looks through may hold some
    runs = [trace] if trace.drafts is None else [trace, trace.drafts]
    alive = [one for one in gc.get_referrers(*runs) if type(one) is Tracer and not one.node.differentiated]
    plain = {id(one): _plain(one) for one in alive}
    for holder in gc.get_referrers(*alive) if alive else ():
        if all([holder is not own for own in (alive, outputs, given)]) and not isinstance(holder, (Tracer, FrameType)):
            _replace(holder, plain)


def _plain(x: Tracer) -> Any:
    """What a Tracer stands for: the user's array, or one that the run does not need, whatever is written into it."""
    if x.base is not None:
        x.refresh()
    return x.value.copy("K") if hasattr(x.value, "copy") and x.node.op is not INPUT and not x.tape.draft else x.value


def _replace(holder: Any, plain: dict[int, Any]) -> None:
    """Put what they stand for in the place of Tracers, without what a class of the user's makes of that."""
    if isinstance(holder, list):
        holder[:] = [plain.get(id(item), item) for item in holder]
    elif isinstance(holder, deque):
        for i, item in enumerate(holder):
            holder[i] = plain.get(id(item), item)
    elif isinstance(holder, CellType):
        holder.cell_contents = plain[id(holder.cell_contents)]
    elif isinstance(holder, dict):
        kinds = [kind for kind in gc.get_referrers(holder) if isinstance(kind, type)]  # it is the class's, which is to know
        for key, item in [*dict.items(holder)]:
            if id(item) in plain and kinds:
                type.__setattr__(kinds[0], key, plain[id(item)])
            elif id(item) in plain:
                dict.__setitem__(holder, key, plain[id(item)])
    else:
        for name in [*getattr(holder, "__dict__", ()), *copyreg._slotnames(type(holder))]:  # type: ignore[attr-defined]
            item = getattr(holder, name, None)
            if id(item) in plain:
                object.__setattr__(holder, name, plain[id(item)])
