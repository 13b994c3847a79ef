"""How far integers go: the least and the largest value that each may have, as indices of loops have them, and what is made of
such."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import NAMED, WITHIN

Span = tuple[int, int]  # the least and the largest value that an index may have


def _divided(a: Span, b: Span) -> Span | None:
    return (a[0] // b[0], a[1] // b[1]) if b[0] == b[1] > 0 else None


_ANYWHERE: Any = (-math.inf, math.inf)


def span_of(op: Any, parts: Sequence[Span | None]) -> Span | None:
    """How far goes what an operation makes of integers, of how far those go; None where that is not known."""
    rule = SPANS.get(op)
    found = None if rule is None else rule(*[part or _ANYWHERE for part in parts])
    return found if found is not None and -math.inf < found[0] <= found[1] < math.inf else None


#: By the operation that makes an integer of others, how far it goes, of how far those go.
SPANS: dict[Any, Callable[..., Span | None]] = {
    NAMED: lambda a: a,
    WITHIN: lambda a, low, high: (low[0], high[0]),
    REGISTRY[np.add]: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    REGISTRY[np.subtract]: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    REGISTRY[np.negative]: lambda a: (-a[1], -a[0]),
    REGISTRY[np.multiply]: lambda a, b: (min(products := [x * y for x in a for y in b]), max(products)),
    REGISTRY[np.floor_divide]: _divided,
    REGISTRY[np.remainder]: lambda a, b: (0, b[0] - 1) if b[0] == b[1] > 0 else None,
}
