"""Lists that the iterations of a loop append numbers to.

Beside such a list an array goes round, with the same numbers in it. So a loop with ``if``s in it can be rolled up; when it is,
the items of the list are what is in the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir import CONST, Aval
from symgrad.ops import index
from symgrad.ops.engine import INDEX, TO_PYTHON
from symgrad.patterns import Key
from symgrad.trace import Trace, is_held_so_often
from symgrad.tracer import NUMBERS, Tracer, plain

GROWN = ("grown",)  # what is noted of such a list, but for its items
WHOLE = "[:]"  # the last part of the key of its array; that of item ``-i`` is ``-i``


class Grown:
    """A list to which each iteration, from number ``first`` on, appends a number; ``begin`` items were there before.

    ``deepest``: how far from its end iterations read it.
    """

    def __init__(self, owner: list[Any], deepest: int) -> None:
        self.owner, self.deepest, self.begin = owner, deepest, len(owner)
        self.first = 0
        self.items: list[Any] = []  # that were appended
        self.scalar = False  # whether one of them is NumPy's
        self.array: Tracer | None = None  # has what iteration ``i`` has appended at ``i``
        self.whole = True  # whether nothing else has happened to it, as far as is known

    def begins(self, trace: Trace, count: int, number: int) -> Tracer | None:
        """Make the array, of ``count`` numbers, at the first one, which iteration ``number`` has appended."""
        item, self.first = self.owner[-1], number
        known = type(item) is Tracer and isinstance(item.node.aval, Aval)
        dtype = item.node.aval.dtype if known else np.result_type(item, 0.0) if type(item) in NUMBERS else None
        if self.whole and dtype is not None and dtype.kind in "fc":
            self.array = trace.constant_like(0.0, Aval((count,), dtype, "array"))
        self.whole = self.array is not None
        return self.array

    def take_in(self, place: Tracer) -> None:
        """Iteration number ``place`` has appended an item."""
        item = self.owner[-1]
        in_turn = len(self.owner) == self.end + 1 and place.value == self.first + len(self.items)
        self.whole = self.whole and in_turn and self.array is not None and self._fits(item, self.array.node.aval.dtype)
        if self.whole and self.array is not None:
            self.array[place] = item
            self.items.append(item)

    def _fits(self, item: Any, dtype: np.dtype[Any]) -> bool:
        """Whether an item is a number of this dtype, or one that is known beforehand."""
        if type(item) in NUMBERS or (type(item) is Tracer and item.node.op in (INDEX, CONST)):
            number = plain(item)
            return bool(dtype.type(number) == number)
        if type(item) is not Tracer or item.base is not None or item.node.aval.dtype != dtype:
            return False
        kind = item.node.aval.kind
        self.scalar |= kind == "scalar"
        return bool(kind != "array")

    @property
    def end(self) -> int:
        """How many items there are, as far as is known."""
        return self.begin + len(self.items)

    def is_as_noted(self, often: int, iterations: int) -> bool:
        """Whether all ``iterations`` have appended an item, or none has, and nothing else has happened; and whether only a
        local of the function holds the list, and others here, so ``often``."""
        owner, own = self.owner, self.owner[self.begin :]
        if not is_held_so_often(owner, often + 1, 1) or not self.whole or len(owner) != self.end:
            return False
        if len(own) != (0 if self.array is None else iterations) or (own and all([type(one) is int for one in own])):
            return False
        return all([item is one for item, one in zip(self.items, own, strict=True)])

    def seen(self, name: str, trace: Trace) -> tuple[Any, dict[Key, Tracer]]:
        """What is noted of it between iterations, and the traced values that go round for it."""
        if not self.whole or len(self.owner) != self.end:
            self.whole = False
            return (object(),), {}
        found: dict[Key, Tracer] = {} if self.array is None else {(name, WHOLE): self.array}
        for i in range(1, 1 + min(self.deepest, len(self.owner))):
            item = self.owner[-i]
            if type(item) is Tracer or type(item) in NUMBERS:
                found[name, -i] = trace.lookup(item.node if type(item) is Tracer else trace.constant(item)[0])
        return GROWN, found

    def spread(self) -> None:
        """The loop is rolled up: the items are what it has left in the array."""
        if self.array is None:
            return
        items = [index.GETITEM(self.array, spec=(self.first + i,)) for i in range(len(self.items))]
        self.owner[self.begin :] = items if self.scalar else map(TO_PYTHON, items)
