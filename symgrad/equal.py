"""What equal values may differ in: 1, True and 1.0, 0.0 and -0.0, ranges, a moment in two time zones."""

from __future__ import annotations

import datetime
import decimal
from types import NoneType
from typing import Any

import numpy as np

_EXACT = frozenset({str, bytes, int, bool, NoneType})
_BY_TEXT = (float, complex, slice, range, np.generic, datetime.date, datetime.time, decimal.Decimal)


def is_exact(value: Any) -> bool:
    """Whether all that equal a value and are of its type are the same."""
    return type(value) in _EXACT or (isinstance(value, np.generic) and value.dtype.kind in "biu")


def told(value: Any) -> Any:
    """What tells a value from others that equal it, hashable."""
    kind = type(value)
    if kind is str:
        return str
    if isinstance(value, tuple):
        return kind, tuple(map(told, value))
    if isinstance(value, (set, frozenset)):
        return kind, frozenset([(item, told(item)) for item in value])
    return (kind, repr(value)) if isinstance(value, _BY_TEXT) else kind


def is_same(a: Any, b: Any) -> bool:
    """Whether two values are equal, and nothing tells them apart."""
    return a is b or (told(a) == told(b) and bool(a == b))
