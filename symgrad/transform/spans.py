"""How far integers go: the least and the largest value that each may have, as indices of loops have them, and what is made of
such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import NAMED

Span = tuple[int, int]  # the least and the largest value that an index may have


def _divided(a: Span, b: Span) -> Span | None:
    return (a[0] // b[0], a[1] // b[1]) if b[0] == b[1] > 0 else None


#: By the operation that makes an integer of others, how far it goes, of how far those go.
SPANS: dict[Any, Callable[..., Span | None]] = {
    NAMED: lambda a: a,
    REGISTRY[np.add]: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    REGISTRY[np.subtract]: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    REGISTRY[np.negative]: lambda a: (-a[1], -a[0]),
    REGISTRY[np.multiply]: lambda a, b: (min(products := [x * y for x in a for y in b]), max(products)),
    REGISTRY[np.floor_divide]: _divided,
    REGISTRY[np.remainder]: lambda a, b: (0, b[0] - 1) if b[0] == b[1] > 0 else None,
}
