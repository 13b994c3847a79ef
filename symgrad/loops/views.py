"""Locals that iterations leave as views: ``for row in rows: if row @ row < best: best, nearest = row @ row, row``.

In code they are arrays of their own, whichever row they are of. So nothing may be written from then on into them, or into what
they show: where the function does that after all, such a loop is not rolled up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from symgrad.loops.patterns import Boundary, Key
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer


class Shown(NamedTuple):
    """Which locals iterations leave as views, and those that these show; and all these arrays."""

    pairs: frozenset[tuple[Key, Key]]
    arrays: list[Tracer]


def shown(
    trace: Trace, bounds: Sequence[Boundary], keys: Collection[Key], known: Collection[tuple[Key, Key]], many: bool
) -> Shown | None:
    """Of the locals ``keys``, here or in other runs; None where it is not known what they show, or an iteration has written
    into that. What shows an argument, which stays as it is, is paired with itself; so is what shows an array that has no other
    name (``u = np.reshape(step(u.ravel()), u.shape)``), where the iterations have ``many`` operations."""
    start, end = bounds[0].holds, bounds[-1].holds
    pairs = {*known}
    for bound in bounds:
        for key, tracer in bound.holds.items():
            if key not in keys or tracer.base is None:
                continue
            array = tracer.owner()
            alone = many and not any([other.owner() is array for name, other in bound.holds.items() if name != key])
            names = (
                [key] if array.frozen or alone else [name for name, other in start.items() if other is array is end.get(name)]
            )
            if len(key) > 1 or not names:
                return None
            pairs.add((key, names[0]))
    if any([name not in start or end.get(name) is not start[name] for key, name in pairs if name != key]):
        return None
    arrays = [end[name].owner() for pair in pairs for name in pair if name in end]
    before = trace.index_before(bounds[0].length)
    return None if any([array.written > before for array in arrays]) else Shown(frozenset(pairs), arrays)
