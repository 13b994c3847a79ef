"""Sorting, order statistics, and picking along an axis by a table of indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.errors import NotDifferentiable
from symgrad.ops.core import REGISTRY, A, Choice, Op, Sample, composite, constant, dtype_of, expand, linear, op
from symgrad.ops.index import array_of
from symgrad.ops.reduction import spread, vector_shape
from symgrad.ops.shape import scatter

MANY = 1024  # elements, from which on it is worth to look at which of them need an order

constant(np.argsort)
constant(np.argpartition, samples=[Sample(A(5), 2), Sample(A(3, 4), (0, 2), axis=0)])
constant(np.searchsorted, samples=[Sample(np.arange(3.0), A(4)), Sample(A(1), A()), Sample(A(1), A(2, 3), side="right")])
constant(np.digitize, samples=[Sample(A(4), np.arange(3.0)), Sample(A(2, 3), A(1), right=True)])
constant(np.lexsort, samples=[Sample((A(4), A(4))), Sample((A(2, 3), A(2, 3)), axis=0)])

# -- picking by indices ---------------------------------------------------------------------------------------------


def _take_along_axis(g: Any, y: Any, arr: Any, indices: Any, axis: int = -1) -> Any:
    shape = np.shape(arr)
    axis %= len(shape)
    index = [np.reshape(np.arange(n), vector_shape(i, len(shape))) for i, n in enumerate(shape)]
    index[axis] = indices
    return scatter(g, tuple(index), shape)


linear(
    np.take_along_axis,
    _take_along_axis,
    None,
    lanes=("some", None),
    prepare=lambda arr, indices, axis=-1: (
        {"arr": np.ravel(arr), "indices": indices, "axis": 0}
        if axis is None
        else {"arr": arr, "indices": indices, "axis": axis}
    ),
    samples=[
        Sample(A(4), np.array([3, 0, 0]), 0),
        Sample(A(3, 4), np.array([[0], [-1], [2]]), 1),
        Sample(A(3, 4), np.array([[2, 0, 0, 1]]), axis=0),
        Sample(A(2, 3, 2), np.array([[[1], [0], [1]]]), axis=-1),
        Sample(A(2, 3), np.array([5, 0, 0]), axis=None),
        Sample(A(1, 3), np.zeros((1, 0), int), axis=1),
    ],
)

# -- sorting: the cotangent takes the way back ----------------------------------------------------------------------


def ranks(a: Any, axis: int) -> Any:
    """The place that each element has in sorted order; equal ones keep their order."""
    along: dict[str, Any] = {} if axis in (-1, np.ndim(a) - 1) else {"axis": axis}
    return np.argsort(np.argsort(a, kind="stable", **along), **along)


def _flat(a: Any, axis: int | None = -1, **rest: Any) -> dict[str, Any]:
    return {"a": np.ravel(a), **rest} if axis is None else {"a": a, "axis": axis, **rest}


_sorts = [
    Sample(A(6, kind="distinct")),
    Sample(A(3, 4, kind="distinct")),
    Sample(A(3, 4, kind="distinct"), axis=0),
    Sample(A(2, 3, 4, kind="distinct"), axis=-2),
    Sample(A(2, 3, kind="distinct"), axis=None),
    Sample(A(1)),
    Sample(A(0, 3), axis=0),
]


@op(
    np.sort,
    lanes="moved",
    prepare=_flat,
    complex=False,
    samples=[*_sorts, Sample(A(5, kind="distinct"), kind="stable"), Sample(A(5, kind="distinct"), stable=True)],
)
def _sort(g: Any, y: Any, a: Any, axis: int = -1, kind: str | None = None, stable: bool | None = None) -> Any:
    return np.take_along_axis(g, ranks(a, axis), axis)


@composite(np.sort_complex, samples=[Sample(A(4)), Sample(A(2, 3)), Sample(A(1)), Sample(A(0, 2))])
def _sort_complex(a: Any) -> Any:
    a = np.take_along_axis(a, np.argsort(a, kind="stable"), -1)
    wide = {"b": "F", "h": "F", "B": "F", "H": "F", "g": "G"}.get(a.dtype.char, "D")
    return a if a.dtype.kind == "c" else a.astype(wide)


@op(
    np.partition,
    lanes="moved",
    prepare=_flat,
    complex=False,
    samples=[Sample(*s.args, kth, **s.kwargs) for s, kth in zip(_sorts, (2, -1, (0, 2), 1, 3, 0), strict=False)],
)
def _partition(g: Any, y: Any, a: Any, kth: Any = None, axis: int = -1, kind: str = "introselect") -> Any:
    if np.size(a) < MANY:
        return _back(g, y, a, axis)
    return FROM_PARTS(g, y, a, kth=kth if isinstance(kth, tuple) else (kth,), axis=axis % np.ndim(a) - np.ndim(a))


def _back(g: Any, y: Any, a: Any, axis: int) -> Any:
    """The elements of ``g`` where those of ``y`` were in ``a``; equal ones keep their order."""
    return np.take_along_axis(np.take_along_axis(g, np.argsort(y, axis, kind="stable"), axis), ranks(a, axis), axis)


def _into_parts(c: Any, y: Any, g: Any, parts: Any, x: Any, kth: tuple[int, ...] = (), axis: int = -1) -> Any:
    return _back(c, x, parts, axis)


FROM_PARTS = Op(
    runtime.from_parts,
    "linear",
    (_into_parts, None, None),
    name="runtime.from_parts",
    samples=[
        Sample(A(*shape), np.partition(x, kth, axis), x, kth=kth, axis=axis)
        for shape, kth, axis in (((5,), (2,), -1), ((3, 7), (1, -2), -1), ((4, 3), (0,), -2))
        for x in [np.sin(np.arange(math.prod(shape)) * 7.0).reshape(shape)]
    ],
)
REGISTRY[runtime.from_parts] = FROM_PARTS


# -- order statistics: each element's weight is a hat over its rank -------------------------------------------------


def _ranks_over(a: Any, axis: Any) -> Any:
    """``ranks`` over several axes together."""
    if isinstance(axis, int):
        return ranks(a, axis)
    if axis is None:
        return ranks(a, 0) if np.ndim(a) == 1 else np.reshape(ranks(np.ravel(a), 0), np.shape(a))
    ends = tuple(range(-len(axis), 0))
    return np.moveaxis(np.reshape(ranks(_together(a, axis), -1), np.shape(np.moveaxis(a, axis, ends))), ends, axis)


def _together(a: Any, axis: tuple[int, ...]) -> Any:
    """``a`` with several axes as one, which is last."""
    ends = np.moveaxis(a, axis, tuple(range(-len(axis), 0)))
    split = np.ndim(a) - len(axis)
    return np.reshape(ends, (*np.shape(ends)[:split], math.prod(np.shape(ends)[split:])))


def _kept(a: Any, axis: Any) -> tuple[int, ...]:
    """The shape of a reduction of ``a`` that keeps its axes."""
    shape = np.shape(a)
    axes = range(len(shape)) if axis is None else [i % len(shape) for i in (axis if isinstance(axis, tuple) else (axis,))]
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def _last_rank(a: Any, axis: Any, nan: bool) -> Any:
    if nan:
        return np.sum(~np.isnan(a), axis=axis, keepdims=True) - 1
    return math.prod(np.shape(a)) // max(math.prod(_kept(a, axis)), 1) - 1


def _place(q: Any, a: Any, axis: Any, nan: bool, method: Any) -> Any:
    """The rank, in general between two, that the quantile has: what it is of the ranks themselves. Axes of ``q`` are first."""
    kept = _kept(a, axis)
    if method == "linear":
        return (np.reshape(q, np.shape(q) + (1,) * len(kept)) if np.ndim(q) else q) * _last_rank(a, axis, nan)
    known: Any = _ranks_over(a, axis)
    if nan:
        return np.nanquantile(np.where(np.isnan(a), np.nan, known), q, axis=axis, method=method, keepdims=True)
    return np.quantile(known, q, axis=axis, method=method, keepdims=True)


def _hat(a: Any, q: Any, axis: Any, nan: bool, method: str) -> Any:
    """How much of each element there is in a quantile."""
    return np.maximum(0, 1 - np.abs(_ranks_over(a, axis) - _place(q, a, axis, nan, method)))


def _quantile_a(nan: bool) -> Callable[..., Any]:
    def rule(g: Any, y: Any, a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
        hat = _hat(a, q, axis, nan, method)
        g = np.reshape(g, np.shape(q) + _kept(a, axis)) if np.ndim(q) else expand(g, a, axis, keepdims)
        parts = np.where(hat > 0, g * hat, 0)
        return np.sum(parts, axis=tuple(range(np.ndim(q)))) if np.ndim(q) else parts

    return rule


def _quantile_lanes(nan: bool) -> Choice:
    def test(y: Any, a: Any, q: Any = 0.5, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
        taken = _hat(a, q, axis, nan, method) > 0
        return np.any(taken, axis=tuple(range(np.ndim(q)))) if np.ndim(q) else taken, True, False

    return Choice(test)


# how many ranks a step of q from 0 to 1 passes, beyond the number of elements; with the other methods, the rank jumps
_PASSED = {
    "linear": -1, "interpolated_inverted_cdf": 0, "hazen": 0, "weibull": 1, "median_unbiased": 1 / 3, "normal_unbiased": 1 / 4,
}  # fmt: skip


def _quantile_q(nan: bool) -> Callable[..., Any]:
    def rule(g: Any, y: Any, a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
        kept, last = _kept(a, axis), _last_rank(a, axis, nan)
        if method not in _PASSED or (isinstance(last, int) and last < 1):
            return np.zeros_like(q)
        axes = tuple(range(len(kept))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        steps = np.diff(np.sort(_together(a, axes)))
        rest = np.shape(steps)[:-1]
        last = np.reshape(last, (*rest, 1)) if nan else last
        place = np.broadcast_to(_place(q, a, axis, nan, method), np.shape(q) + kept)
        place = np.reshape(place, np.shape(q) + rest + (1,))
        here = np.arange(np.shape(steps)[-1]) == np.minimum(np.floor(place), last - 1)
        if method != "linear":  # which alone reaches the ends at 0 and 1
            here = here & (place > 0) & (place < last)
        slope = np.sum(np.where(here, steps * (last + 1 + _PASSED[method]), 0), axis=-1)
        g = np.reshape(g, np.shape(q) + rest) * slope
        return np.sum(g, axis=tuple(range(np.ndim(q), np.ndim(q) + len(rest)))) if rest else g

    return rule


def _median_a(nan: bool) -> Callable[..., Any]:
    quantile = _quantile_a(nan)

    def rule(g: Any, y: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return quantile(g, y, a, 0.5, axis, keepdims=keepdims)

    return rule


def _weighted(a: Any, q: Any, weights: Any, axis: Any, keepdims: bool, nan: bool) -> Any:
    """The first element up to which the share of the weights in their sum reaches ``q``."""
    kept = _kept(a, axis)
    axes = tuple(range(len(kept))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if np.any((q < 0) | (q > 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    if np.any(weights < 0):
        raise ValueError("Weights must be non-negative.")
    weights = np.broadcast_to(weights if np.shape(weights) == np.shape(a) else spread(weights, a, axis), np.shape(a))
    gone = np.isnan(a)
    rows, weights = _together(a, axes), _together(np.where(gone, 0, weights) if nan else weights, axes)
    order = np.argsort(rows, kind="stable")
    share = np.cumsum(np.take_along_axis(weights, order, -1), axis=-1, dtype=float)
    if not np.all(np.isfinite(share[..., -1]) & (share[..., -1] > 0)):
        raise ValueError("Weights included NaN, inf or were all zero.")
    share = share / share[..., -1:]
    level = np.reshape(q, np.shape(q) + (1,) * np.ndim(rows))
    place = np.sum((share < level) | (share == 0), axis=-1, keepdims=True)
    place = np.take_along_axis(np.broadcast_to(order, np.shape(q) + np.shape(order)), place, -1)
    found = np.take_along_axis(np.broadcast_to(rows, np.shape(q) + np.shape(rows)), place, -1)[..., 0]
    if not nan:
        found = np.where(np.any(np.isnan(rows), axis=-1), np.nan, found)
    return np.reshape(found, np.shape(q) + kept) if keepdims else found


def _counted(a: Any) -> Any:
    """``a``, with NaNs that depend on nothing: they do not count."""
    return np.where(np.isnan(a), np.nan, a) if dtype_of(a).kind == "f" else a


def _median_call(nan: bool) -> Callable[..., dict[str, Any]]:
    def prepare(a: Any, overwrite_input: bool = False, **rest: Any) -> dict[str, Any]:
        return {"a": _counted(a) if nan else a, **rest}

    return prepare


def _quantile_call(nan: bool) -> Callable[..., dict[str, Any]]:
    def prepare(a: Any, q: Any, weights: Any = None, overwrite_input: bool = False, **rest: Any) -> dict[str, Any]:
        a, q = _counted(a) if nan else a, np.asarray(q) if isinstance(q, (list, tuple)) else q
        if nan and np.ndim(q) > 1:
            raise NotDifferentiable("np.nanquantile mixes up the axes of q with more than one; ravel it")
        return {"a": a, "q": q, **rest}

    return prepare


def _weighted_call(nan: bool) -> Callable[..., Any]:
    """With weights, the quantile is one of the elements."""

    def quantile(a: Any, q: Any, weights: Any, axis: Any = None, keepdims: Any = False, **rest: Any) -> Any:
        call = _quantile_call(nan)(a, q)
        return _weighted(call["a"], call["q"], array_of(weights), axis, keepdims is True, nan)

    return quantile


_medians = [
    Sample(A(5, kind="distinct")),
    Sample(A(3, 4, kind="distinct")),
    Sample(A(3, 4, kind="distinct"), axis=0),
    Sample(A(2, 3, 4, kind="distinct"), axis=(0, -1), keepdims=True),
    Sample(A(2, 3, 4, kind="distinct"), axis=(2, 0)),
    Sample(A(4, 1), axis=1),
    *(Sample(A(), keepdims=keepdims) for keepdims in (False, True)),
]
_quantiles = [
    *(Sample(*s.args, 0.3, **s.kwargs) for s in _medians),
    Sample(A(3, 4, kind="distinct"), [0.1, 0.85], axis=-1),
    Sample(A(2, 3, 4, kind="distinct"), A(2, lo=0.21, hi=0.24), axis=(0, 2), keepdims=True),
    Sample(A(5, kind="distinct"), A(lo=0.55, hi=0.7)),
    Sample(A(5, kind="distinct"), 1.0),
]
op(np.median, _median_a(False), prepare=_median_call(False), lanes=_quantile_lanes(False), samples=_medians, complex=False)
op(np.nanmedian, _median_a(True), prepare=_median_call(True), lanes=_quantile_lanes(True), samples=_medians, complex=False)
_methods = [
    *(Sample(A(6, kind="distinct"), [0.13, 0.62], method=method) for method in (*_PASSED, "midpoint", "nearest", "lower")),
    Sample(A(6, kind="distinct"), A(2, lo=0.21, hi=0.24), method="hazen"),
    Sample(A(3, 5, kind="distinct"), A(2, lo=0.62, hi=0.66), axis=1, method="weibull", keepdims=True),
    Sample(A(3, 5, kind="distinct"), A(lo=0.62, hi=0.66), axis=0, method="averaged_inverted_cdf"),
    Sample(A(5, kind="distinct"), [0.05, 0.3, 0.8], method="inverted_cdf", weights=[0, 2, 1, 1, 3]),
]
_tables = [  # which NumPy's nanquantile is not up to
    Sample(A(2, 3, 4, kind="distinct"), A(2, 2, lo=0.21, hi=0.24), axis=(2, 0)),
    Sample(A(4, 5, kind="distinct"), [0.3, 0.8], axis=-1, method="inverted_cdf", weights=[1, 2, 0, 1, 3]),
    Sample(A(2, 3, 2, kind="distinct"), 0.3, axis=(2, 0), method="inverted_cdf", weights=np.eye(2) + 1, keepdims=True),
]
for _key, _nan in ((np.quantile, False), (np.nanquantile, True)):
    op(
        _key,
        *(_quantile_a(_nan), _quantile_q(_nan)),
        prepare=_quantile_call(_nan),
        instead={"weights": _weighted_call(_nan)},
        lanes=(_quantile_lanes(_nan), None),
        samples=[*_quantiles, *_methods, *([] if _nan else _tables)],
        complex=False,
    )


def _percentile(key: Any, quantile: Any) -> None:
    def fun(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, **rest: Any) -> Any:
        return quantile(a, (np.asarray(q) if isinstance(q, (list, tuple)) else q) / 100, axis, **rest)

    samples = [
        Sample(A(5, kind="distinct"), 30),
        Sample(A(3, 4, kind="distinct"), [20, 90], axis=0),
        Sample(A(5, kind="distinct"), 40, method="inverted_cdf", weights=[1, 2, 1, 1, 3]),
    ]
    composite(key, samples=samples, complex=False)(fun)


_percentile(np.percentile, np.quantile)
_percentile(np.nanpercentile, np.nanquantile)
