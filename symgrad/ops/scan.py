"""Running sums and products, and differences, along an axis."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from symgrad import runtime
from symgrad.ops.core import REGISTRY, A, Op, Rule, Sample, composite, linear, op
from symgrad.ops.elementwise import weight
from symgrad.ops.index import array_of
from symgrad.ops.reduction import NONE, along, cast, vector_shape

_scans = [
    Sample(A(5)),
    Sample(A(3, 4)),
    Sample(A(3, 4), axis=0),
    Sample(A(2, 3, 4), axis=-2),
    Sample(A()),
    Sample(A(1)),
    Sample(A(0, 3), axis=0),
    Sample(A(3, 1), axis=1),
]


@linear(np.cumsum, lanes="moved", samples=[*_scans, Sample(A(3), dtype=complex)])
def _cumsum(g: Any, y: Any, a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    if axis is None or np.ndim(a) < 2:
        back = np.flip(np.cumsum(np.flip(g)))
        return back if np.ndim(a) == 1 else np.reshape(back, np.shape(a))
    return np.flip(np.cumsum(np.flip(g, axis), axis), axis)


@op(np.cumprod, lanes="scan", samples=[*_scans, Sample(A(3), dtype=complex)])
def _cumprod(g: Any, y: Any, a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    a = a if dtype is None else cast(a, np.dtype(dtype))
    if np.ndim(a) == 1:
        return _cumprod_along(g, y, a, 0)
    if axis is None or np.ndim(a) == 0:
        return np.reshape(_cumprod_along(g, y, np.ravel(a), 0), np.shape(a))
    return _cumprod_along(g, y, a, axis % np.ndim(a))


def _cumprod_along(g: Any, y: Any, a: Any, axis: int) -> Any:
    n = np.shape(a)[axis]
    return g if n < 2 else _scanned_back(g, a[along(axis, slice(1, None))], y[along(axis, slice(None, -1))], axis)


WIDE = 32  # numbers in a row, from which on a loop over the rows takes less time than doubling,
LONG = 8192  # and rows, from which on one over parts of them does
MANY = 1024  # numbers in all, from which on calls do not take most of the time


def _scanned_back(g: Any, ratio: Any, own: Any, axis: int) -> Any:
    """``s[0]`` and ``own[i] * s[i+1]`` with ``s[i] = g[i] + ratio[i] * s[i+1]``, solved row by row or by doubling, without
    division: what ``y[i+1] = f(y[i], a[i+1])`` with slopes ``ratio`` and ``own`` says of all ``a``."""
    n = np.shape(g)[axis]
    apart = n >= LONG or np.size(g) >= WIDE * n
    s = RECURRENCE(g, ratio, axis=axis - np.ndim(g), back=True, summed=True) if apart else _doubled(g, ratio, axis)
    return np.concatenate((s[along(axis, slice(0, 1))], own * s[along(axis, slice(1, None))]), axis)


def _doubled(s: Any, ratio: Any, axis: int) -> Any:
    step, n = 1, np.shape(s)[axis]
    while True:
        early, late = along(axis, slice(None, -step)), along(axis, slice(step, None))
        s = np.concatenate((s[early] + ratio * s[late], s[along(axis, slice(-step, None))]), axis)
        if 2 * step >= n:
            return s
        step, ratio = 2 * step, ratio[early] * ratio[late]


def _recurrence(c: Any, y: Any, x: Any, ratio: Any, axis: int = -1, back: bool = False, **summed: bool) -> Any:
    """It goes the other way."""
    return RECURRENCE(c, ratio, axis=axis, back=not back, **summed)


def _by_ratio(c: Any, y: Any, x: Any, ratio: Any, axis: int = -1, back: bool = False, **summed: bool) -> Any:
    early, late = along(axis + np.ndim(y), slice(None, -1)), along(axis + np.ndim(y), slice(1, None))
    own = _recurrence(c, y, x, ratio, axis, back, **summed)
    return own[early] * y[late] if back else own[late] * y[early]


op(
    runtime.recurrence,
    _recurrence,
    _by_ratio,
    name="runtime.recurrence",
    lanes="mixed",
    samples=[
        Sample(A(5), A(4), axis=-1, back=True),
        Sample(A(3, 4), A(3, 3), axis=-1, back=False),
        Sample(A(3, 4), A(2, 4), axis=-2, back=True, summed=True),
        Sample(A(1), A(0), axis=-1, back=False),
        Sample(A(2, 0), A(1, 0), axis=-2, back=True),
    ],
)
RECURRENCE: Any = REGISTRY[runtime.recurrence]


class Running(NamedTuple):
    """``ufunc.accumulate``, of which NumPy makes a new object each time that it is asked for."""

    ufunc: np.ufunc

    def __call__(self, a: Any, axis: int) -> Any:
        return self.ufunc.accumulate(a, axis)


def _exponentials(exp: Any) -> Rule:
    def rule(g: Any, y: Any, a: Any, axis: int = 0) -> Any:
        axis %= np.ndim(a)
        if np.shape(a)[axis] < 2:
            return g
        before, late = along(axis, slice(None, -1)), along(axis, slice(1, None))
        return _scanned_back(g, weight(exp, y[before], a[late], y[late]), weight(exp, a[late], y[before], y[late]), axis)

    return rule


SHARES = Op(runtime.shares, "constant", (), name="runtime.shares")


def _extremes(g: Any, y: Any, a: Any, axis: int = 0) -> Any:
    axis %= np.ndim(a)
    if np.shape(a)[axis] < 2:
        return g
    if np.size(a) >= MANY:
        return FROM_RUNNING(g, a, y, axis=axis - np.ndim(a))
    return _scanned_back(g, *_kept(a, y, axis), axis)


def _kept(x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """By how much each running extreme but the first takes after the one before it, and after its own element."""
    before, late = along(axis, slice(None, -1)), along(axis, slice(1, None))
    own = SHARES(x, y, axis=axis - np.ndim(x))[late]
    return np.where(y[late] == y[before], 1 - own, 0), own


def _to_running(c: Any, out: Any, g: Any, x: Any, y: Any, axis: int = -1) -> Any:
    ratio, own = _kept(x, y, axis % np.ndim(x))
    first, late = (along(axis % np.ndim(x), part) for part in (slice(0, 1), slice(1, None)))
    return RECURRENCE(np.concatenate((c[first], own * c[late]), axis), ratio, axis=axis, back=False)


FROM_RUNNING = Op(
    runtime.from_running,
    "linear",
    (_to_running, None, None),
    name="runtime.from_running",
    samples=[
        Sample(A(*x.shape), x, np.maximum.accumulate(x, axis), axis=axis)
        for x in (np.array([1.0, 3, 2, 3, 4]), np.array([[2.0, 1, 2], [1, 1, 3]]), np.zeros((1, 2)))
        for axis in range(-x.ndim, 0)
    ],
)
REGISTRY[runtime.from_running] = FROM_RUNNING


_each_axis = [Sample(A(5), axis=0), Sample(A(1), axis=0), *(sample for sample in _scans if "axis" in sample.kwargs)]
for _ufunc, _rule in (
    (np.logaddexp, _exponentials(np.exp)),
    (np.logaddexp2, _exponentials(np.exp2)),
    *[(extreme, _extremes) for extreme in (np.maximum, np.minimum, np.fmax, np.fmin)],
):
    _name = f"np.{_ufunc.__name__}.accumulate"
    op(Running(_ufunc), _rule, name=_name, lanes="scan", samples=_each_axis, complex=False)


# -- of segments ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Segments:
    """``ufunc.reduceat``, likewise; the axis counts from the end."""

    ufunc: np.ufunc

    def __call__(self, x: Any, starts: Any, axis: int) -> Any:
        return self.ufunc.reduceat(x, starts, axis)


def _sums(g: Any, y: Any, x: Any, starts: Any, axis: int = -1) -> Any:
    return FROM_SEGMENTS(g, starts, size=np.shape(x)[axis], axis=axis)


def _extremes_of_segments(g: Any, y: Any, x: Any, starts: Any, axis: int = -1) -> Any:
    """No element is in several of them."""
    whole = {"size": np.shape(x)[axis], "axis": axis}
    met = x == FROM_SEGMENTS(y, starts, **whole)
    ties = SUMS(met.astype(y.dtype), starts, axis=axis)
    return np.where(met, FROM_SEGMENTS(g / ties, starts, **whole), 0)


_segments = [
    Sample(A(6, kind="distinct"), np.array([0, 2, 3]), axis=-1),
    Sample(A(3, 5, kind="distinct"), np.array([1, 4]), axis=-1),
    Sample(A(5, 2, kind="distinct"), np.array([0, 3]), axis=-2),
]
op(
    Segments(np.add),
    _sums,
    None,
    name="np.add.reduceat",
    lanes=("mixed", None),
    samples=[*_segments, Sample(A(5), np.array([1, 0, 0, 3, 3]), axis=-1), Sample(A(4, 2), np.array([2, 1]), axis=-2)],
)
for _extreme in (np.maximum, np.minimum):
    op(
        Segments(_extreme),
        _extremes_of_segments,
        None,
        name=f"np.{_extreme.__name__}.reduceat",
        lanes=("mixed", None),
        samples=_segments,
        complex=False,
    )
SUMS: Any = REGISTRY[Segments(np.add)]
FROM_SEGMENTS = Op(
    runtime.from_segments,
    "linear",
    (lambda c, y, g, starts, size=0, axis=-1: SUMS(c, starts, axis=axis), None),
    name="runtime.from_segments",
    lanes=("mixed", None),
    samples=[
        Sample(A(3), np.array([0, 2, 3]), size=6, axis=-1),
        Sample(A(2, 3), np.array([1, 0, 0]), size=4, axis=-1),
        Sample(A(2, 3), np.array([1, 2]), size=4, axis=-2),
    ],
)
REGISTRY[runtime.from_segments] = FROM_SEGMENTS


@composite(np.nancumsum, samples=_scans)
def _nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    return np.cumsum(np.where(np.isnan(a), 0, a), axis=axis, dtype=dtype)


@composite(np.nancumprod, samples=_scans)
def _nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
    return np.cumprod(np.where(np.isnan(a), 1, a), axis=axis, dtype=dtype)


def _cumulative(key: Any, scan: Any, like: Any) -> None:
    def fun(x: Any, /, *, axis: Any = None, dtype: Any = None, out: None = None, include_initial: bool = False) -> Any:
        x = np.atleast_1d(x)
        axis = normalize_axis_index(0 if axis is None else axis, np.ndim(x))
        y = scan(x, axis=axis, dtype=dtype)
        if not include_initial:
            return y
        start = like((*np.shape(y)[:axis], 1, *np.shape(y)[axis + 1 :]), y.dtype)
        return np.concatenate((start, y), axis)

    samples = [Sample(A(4)), Sample(A(3, 4), axis=1), Sample(A(2, 3), axis=-2, include_initial=True)]
    composite(key, samples=samples)(fun)


if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    _cumulative(np.cumulative_sum, np.cumsum, np.zeros)
    _cumulative(np.cumulative_prod, np.cumprod, np.ones)


# -- differences ----------------------------------------------------------------------------------------------------


def _ends(a: Any, n: int = 1, axis: int = -1, prepend: Any = NONE, append: Any = NONE) -> dict[str, Any]:
    parts = [p if p is a else _end(p, a, axis) for p in (prepend, a, append) if p is not NONE]
    return {"a": np.concatenate(parts, axis) if len(parts) > 1 else a, "axis": axis}


def _again_and_again(a: Any, n: int, axis: int = -1, **ends: Any) -> Any:
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    for _ in range(operator.index(n)):  # none: the very array
        a, ends = np.diff(a, axis=axis, **ends), {}
    return a


def _end(value: Any, a: Any, axis: int) -> Any:
    if np.ndim(value):
        return value
    shape = list(np.shape(a))
    shape[axis] = 1
    return np.broadcast_to(value, tuple(shape))


@linear(
    np.diff,
    prepare=_ends,
    instead={"n": _again_and_again},
    samples=[
        Sample(A(5)),
        Sample(A(3, 4)),
        Sample(A(3, 4), axis=0),
        Sample(A(2, 5), n=3),
        Sample(A(5, 2), n=2, axis=-2),
        Sample(A(1)),
        Sample(A(2), n=4),
        Sample(A(4), n=0),
        Sample(A(0)),
        Sample(A(3, 4), axis=0, prepend=0.5),
        Sample(A(4), prepend=A(2), append=A()),
    ],
)
def _diff(g: Any, y: Any, a: Any, axis: int = -1) -> Any:
    if not np.shape(a)[axis]:
        return g
    axis %= np.ndim(a)
    zero = np.zeros_like(a[along(axis, slice(0, 1))])
    return -np.diff(np.concatenate((zero, g, zero), axis), axis=axis - np.ndim(a))


@composite(
    np.ediff1d,
    samples=[
        Sample(A(4)),
        Sample(A(2, 3)),
        Sample(A(4), to_end=A()),
        Sample(A(4), to_begin=A(2), to_end=A(3)),
        Sample(A(1)),
        Sample(A(3), None, 2.0),
    ],
)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    steps = np.diff(np.ravel(ary))
    parts = [steps if p is None else np.ravel(array_of(p)) for p in (to_begin, None, to_end)]
    parts = [parts[0], steps, parts[2]][to_begin is None : 3 - (to_end is None)]
    return np.concatenate([p if p.dtype == steps.dtype else p.astype(steps.dtype) for p in parts])


@composite(
    np.trapezoid,
    samples=[
        Sample(A(5)),
        Sample(A(3, 4), dx=0.5),
        Sample(A(3, 4), axis=0),
        Sample(A(5), A(5)),
        Sample(A(3, 4), A(3), axis=0),
        Sample(A(3, 4), A(3, 4), axis=-1),
        Sample(A(4), A(3, 4)),
        Sample(A(2, 3, 4), A(3, 4), axis=-2),
        Sample(A(4), None, A(2, 3)),
    ],
)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = array_of(y)
    own = normalize_axis_index(axis, np.ndim(y))  # of ``y``: ``axis`` is counted anew in ``x`` and in the products
    if x is None:
        width = dx
    elif np.ndim(x) == 1:
        width = np.reshape(np.diff(x), vector_shape(own, np.ndim(y)))
    else:
        width = np.diff(x, axis=axis)
    heights = y[along(own, slice(1, None))] + y[along(own, slice(None, -1))]
    return np.sum(width * heights / 2.0, axis=axis)
