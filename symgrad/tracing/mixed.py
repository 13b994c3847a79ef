"""Numbers that are Python's where some way was taken, and NumPy's where another one was.

``total = 0.0``, and ``total += x[i]`` under an ``if`` in a loop; or ``max(0.0, x[i])``. A trace has NumPy's stand for both, and
keeps in mind which ones these are: where the function asks, where Python's raises, or is of no dtype of its own, they differ.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.errors import SymgradError
from symgrad.ir import CONST, Aval, Node
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import ASTYPE, INT, NAMED, ROUND


class Bounds(NamedTuple):
    """Between what a number lies, unless it is NaN."""

    low: float = -math.inf
    high: float = math.inf


class Mixed(NamedTuple):
    """What is known of such a number.

    ``python``: whether Python has it as its own here, None if that is not known; ``causes`` are the loops, sections (their
    places) and choices that made the ways one. ``whole``: whether it may be an int, or a flag, for which a float stands.
    """

    python: bool | None
    causes: frozenset[Any]
    bounds: Bounds = Bounds()
    whole: bool = False


class Otherwise(SymgradError):
    """Ended a run that cannot tell Python's numbers from NumPy's, or an array from its copy, where that matters: in the next
    one, nothing mixes them. Or one in which there was no room for the items of lists: in the next one there is more.

    ``causes`` are as those of ``Mixed``, or say how much room there is to be.
    """

    def __init__(self, causes: frozenset[Any]) -> None:
        super().__init__("a number is Python's, or an array a copy, where some way is taken, and not where another one is")
        self.causes = causes


def result(op: Any, nodes: Sequence[Node], mixed: Mapping[Node, Mixed]) -> Mixed | None:
    """What ``op`` makes of mixed numbers and others; None where that is NumPy's for sure. Raises ``Otherwise``."""
    if nodes[0] in mixed and nodes[0].aval.kind == "array":  # of the items of a list
        return mixed[nodes[0]]
    every = [mixed[node] for node in nodes if node in mixed]
    causes = frozenset[Any]().union(*[one.causes for one in every])
    if _widens(op, nodes, mixed):
        raise Otherwise(causes)
    whole = any([one.whole for one in every]) and all([_may_be_whole(node, mixed) for node in nodes])
    if op not in MIXING or not all([node in mixed or node.aval.kind == "python" for node in nodes]):
        if whole and op in _OF_INTS:
            raise Otherwise(causes)
        return Mixed(False, causes, whole=True) if whole and not _makes_floats(op) else None
    if op not in _ALIKE and all([node.aval.dtype == bool for node in nodes]):
        raise Otherwise(causes)  # True + True
    known = [one.python for one in every]
    python = False if False in known else None if None in known else True
    whole = whole and op not in _TRUTHS and op is not _TRUE_DIVIDE
    return Mixed(python, causes, _bounds(op, [bounds_of(node, mixed) for node in nodes]), whole)


def _may_be_whole(node: Node, mixed: Mapping[Node, Mixed]) -> bool:
    """Whether a number may be an int, or a flag."""
    return mixed[node].whole if node in mixed else isinstance(node.aval, Aval) and node.aval.dtype.kind in "biu"


@functools.lru_cache(1024)
def _makes_floats(op: Any) -> bool:
    """Whether an operation makes floats of ints."""
    ufunc = getattr(op, "key", None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1:
        return False
    try:
        return ufunc.resolve_dtypes((np.dtype(int),) * ufunc.nin + (None,))[-1].kind != "i"
    except TypeError:
        return False


@functools.lru_cache(1024)
def keeps_floats(op: Any) -> bool:
    """Whether an operation that makes ints of ints makes floats of floats."""
    ufunc = getattr(op, "key", None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1:
        return op not in _TO_INTS
    try:
        return ufunc.resolve_dtypes((np.dtype(float),) * ufunc.nin + (None,))[-1].kind == "f"
    except TypeError:
        return True  # it would raise


def bad(op: Any, nodes: Sequence[Node], mixed: Mapping[Node, Mixed]) -> tuple[int, Any] | None:
    """The argument that decides whether Python's numbers raise or give another kind, where NumPy's do not, and its comparison
    with zero then; None where they do not, whatever the arguments are."""
    if op in DIVISIONS:
        low, high = bounds_of(nodes[1], mixed)
        return None if low > 0 or high < 0 else (1, EQUAL)
    if op is not POWER:
        return None
    low, high = bounds_of(nodes[0], mixed)
    exponent = bounds_of(nodes[1], mixed).low if nodes[1].op is CONST else None
    if exponent is None or exponent < 0:
        return None if low > 0 else (0, LESS_EQUAL)
    return None if low >= 0 or nodes[1].aval.dtype == int else (0, LESS)


def bounds_of(node: Node, mixed: Mapping[Node, Mixed]) -> Bounds:
    """Between what an argument lies."""
    value = dict(node.params)["value"] if node.op is CONST else None
    if isinstance(value, (int, float)):
        return Bounds(float(value), float(value))
    return mixed[node].bounds if node in mixed else Bounds()


def _bounds(op: Any, sides: Sequence[Bounds]) -> Bounds:
    """Between what a result lies; floating-point operations are monotone."""
    if op in _CORNERS:
        corners = [_CORNERS[op](x, y) for x in sides[0] for y in sides[1]]
        return Bounds() if any(map(math.isnan, corners)) else Bounds(min(corners), max(corners))
    if op is _NEGATIVE:
        return Bounds(-sides[0].high, -sides[0].low)
    return sides[0] if op in (NAMED, _POSITIVE) else Bounds()


def is_narrow(aval: Aval) -> bool:
    """Whether Python's number, which NumPy's stands for, would be of a wider dtype."""
    return bool(aval.dtype != np.result_type(aval.dtype.type(0).item()))


def _widens(op: Any, nodes: Sequence[Node], mixed: Mapping[Node, Mixed]) -> bool:
    """Whether NumPy's number instead of Python's lets others be of a wider dtype, or is computed with in a narrower one."""
    avals = [node.aval for node in nodes if node not in mixed]
    strong = [aval.dtype for aval in avals if isinstance(aval, Aval) and aval.kind != "python"]
    if not strong:
        return op not in EXACT and any([is_narrow(node.aval) for node in nodes if node in mixed])
    dtype = np.result_type(*strong)
    own = [node.aval.dtype for node in nodes if node in mixed]
    return any([np.result_type(dtype, one) != np.result_type(dtype, one.type(0).item()) for one in own])


def _of(*ufuncs: np.ufunc) -> list[Any]:
    return [REGISTRY[ufunc] for ufunc in ufuncs]


POWER: Any = REGISTRY[np.power]
EQUAL: Any = REGISTRY[np.equal]
LESS, LESS_EQUAL = _of(np.less, np.less_equal)
DIVISIONS = frozenset(_of(np.true_divide, np.floor_divide, np.remainder))
_TRUE_DIVIDE = REGISTRY[np.true_divide]
_NEGATIVE, _POSITIVE = _of(np.negative, np.positive)
_CORNERS = {  # operators whose least and largest results are those of least and largest arguments
    REGISTRY[np.add]: lambda x, y: x + y,
    REGISTRY[np.subtract]: lambda x, y: x - y,
    REGISTRY[np.multiply]: lambda x, y: x * y,
}
_TRUTHS = frozenset(_of(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))
_ALIKE = {  # operators of which truth values are truth values
    NAMED,
    *_TRUTHS,
    *_of(np.bitwise_and, np.bitwise_or, np.bitwise_xor),
}
_OF_INTS = frozenset(  # that give other numbers of ints, or none
    [POWER, REGISTRY[np.floor_divide], REGISTRY[np.remainder], *_of(np.fmod, np.reciprocal, np.invert)]
)
SIGNED = frozenset(_of(np.arctan2, np.copysign, np.signbit))  # that tell zeros apart, of which ints have but one
EXACT = {*_ALIKE, _NEGATIVE, _POSITIVE, *_of(np.absolute)}  # operators that round nothing
_TO_INTS = frozenset([ASTYPE, INT, ROUND, *map(REGISTRY.__getitem__, (np.searchsorted, np.digitize))])
MIXING = {  # operators that give a Python number of Python numbers
    POWER,
    *DIVISIONS,
    *_of(np.add, np.subtract, np.multiply, np.negative, np.positive, np.absolute, np.invert),
    *_ALIKE,
}
