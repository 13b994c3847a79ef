"""Reductions: sums, products, extremes, moments and norms over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from symgrad import runtime
from symgrad.ops.core import (
    REGISTRY,
    A,
    Choice,
    Op,
    Rule,
    Sample,
    composite,
    constant,
    count,
    dtype_of,
    expand,
    linear,
    multiple,
    nonzero,
    op,
)
from symgrad.ops.create import scalar
from symgrad.ops.index import array_of, listed

NONE = np._NoValue


def over(*shapes: tuple[int, ...], **kind: Any) -> list[Sample]:
    """The usual samples of a reduction: every way to say axis and keepdims; then one of each shape in ``shapes``."""
    return [
        Sample(A(3, 4, **kind)),
        Sample(A(5, **kind), axis=0),
        Sample(A(3, 4, **kind), axis=-1),
        Sample(A(2, 3, 4, **kind), axis=(0, 2), keepdims=True),
        Sample(A(2, 3, 4, **kind), axis=(-1, 0)),
        Sample(A(2, 1, 3, **kind), axis=1, keepdims=True),
        Sample(A(3, 4, **kind), keepdims=True),
        *(Sample(A(*shape, **kind)) for shape in shapes),
    ]


def conj(x: Any) -> Any:
    return np.conj(x) if np.iscomplexobj(x) else x


def real(x: Any) -> Any:
    return np.real(x) if np.iscomplexobj(x) else x


# -- where= and initial=, which become steps of their own -----------------------------------------------------------


def given(value: Any) -> bool:
    return value is not NONE and value is not None


def masks(where: Any) -> bool:
    return given(where) and where is not True


def masked(reduce: Any, combine: Any, neutral: float | None) -> dict[str, Callable[..., Any]]:
    """What ``where`` and ``initial`` stand for: a choice before the reduction, and ``combine`` after it.

    Without a ``neutral`` element, ``where`` needs ``initial``.
    """

    def fun(a: Any, where: Any = NONE, initial: Any = NONE, **rest: Any) -> Any:
        a = listed(a)
        if masks(where):
            fill = initial if neutral is None else neutral
            a = np.where(where, a, cast(fill, dtype_of(a)))
        if not given(initial):
            return reduce(a, **rest)
        empty = neutral is None and not count(a, rest.get("axis"))
        part = np.sum(a, **rest) if empty else reduce(a, **rest)  # a zero, where nothing is there
        initial = cast(cast(initial, dtype_of(a)) if empty else initial, part.dtype)
        return np.subtract(initial, part, dtype=part.dtype) if empty else combine(initial, part)

    return {"where": fun, "initial": fun}


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype) if hasattr(x, "astype") else scalar(x, dtype.type)


MASKED = [
    Sample(A(3, 4), where=A(3, 4, kind="bool")),
    Sample(A(3, 4), axis=1, where=A(4, kind="bool"), keepdims=True),
    Sample(A(3, 4), axis=0, initial=0.5),
    Sample(A(2, 3), initial=-1.0, where=A(2, 3, kind="bool")),
    Sample(A(0, 3), axis=0, initial=2.0),
    Sample(A(2, 3), axis=1, initial=A()),
]


# -- sum and mean ---------------------------------------------------------------------------------------------------


_add: Any = np.add.reduce  # what np.sum calls in the end


@linear(
    np.sum,
    lanes="moved",
    instead=masked(np.sum, np.add, 0),
    fun=lambda a, axis=None, dtype=None, keepdims=False: _add(a, axis, dtype, None, keepdims),
    samples=[
        *over((), (0,), (1,)),
        *MASKED,
        Sample(A(3, 0), axis=1),
        Sample(A(3), dtype=complex),
        Sample(A(3), axis=()),
    ],
)
def _sum(g: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return expand(g, a, axis, keepdims)


def _mean_where(a: Any, where: Any, **rest: Any) -> Any:
    a = listed(a)
    total = np.sum(a, where=where, **rest)
    return total / _counted(where, a, total.dtype, rest.get("axis"), rest.get("keepdims", NONE))


def _counted(where: Any, a: Any, dtype: Any, axis: Any, keepdims: Any) -> Any:
    """How many elements of ``a`` the mask lets through, in its floating-point type."""
    real = dtype if dtype.kind in "fc" else np.dtype(float)
    mask = where if np.shape(where) == np.shape(a) else np.broadcast_to(where, np.shape(a))
    return np.sum(mask, axis=axis, dtype=real, keepdims=keepdims)


@linear(
    np.mean,
    lanes="moved",
    instead={"where": _mean_where},
    samples=[
        *over((), (1,)),
        Sample(A(3, 4), where=np.array([[True], [False], [True]])),
        Sample(A(2, 3), axis=1, where=np.array([True, False, True])),
        Sample(A(0, 3), axis=1),
    ],
)
def _mean(g: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    n = count(a, axis) or math.nan
    return expand(g / n, a, axis, keepdims)


@composite(
    np.average,
    samples=[
        Sample(A(3, 4)),
        Sample(A(3, 4), axis=1),
        Sample(A(3, 4), axis=0, weights=A(3, lo=0.5)),
        Sample(A(3, 4), weights=A(3, 4, lo=0.5), keepdims=True),
        Sample(A(2, 3, 4), axis=(2, 0), weights=A(4, 2, lo=0.5)),
        Sample(A(5), weights=A(5, lo=0.5), returned=True),
        Sample(A(3, 4), axis=-1, returned=True),
    ],
)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    keepdims, a = keepdims is not NONE and keepdims, array_of(a)
    if weights is None:
        mean = np.mean(a, axis, keepdims=keepdims)
        return (mean, np.broadcast_to(mean.dtype.type(count(a, axis)), np.shape(mean))) if returned else mean
    weights = array_of(weights)
    if np.shape(weights) != np.shape(a):
        weights = spread(weights, a, axis)
    kind = np.result_type(a, weights, *([float] if dtype_of(a).kind in "iub" else []))
    scale = np.sum(weights, axis, kind, keepdims=keepdims)
    if np.any(scale == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    a = a if np.result_type(a, weights) == kind else a.astype(kind)  # small integers overflow
    mean = np.sum(a * weights, axis, keepdims=keepdims) / scale
    if not returned:
        return mean
    return mean, np.broadcast_to(scale if scale.dtype == mean.dtype else scale.astype(mean.dtype), np.shape(mean))


def spread(weights: Any, a: Any, axis: Any) -> Any:
    """Weights that were given for the reduced axes only, lined up with ``a``."""
    ndim = np.ndim(a)
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = [i % ndim for i in (axis if isinstance(axis, tuple) else (axis,))]
    if np.shape(weights) != tuple(np.shape(a)[i] for i in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    ordered = np.transpose(weights, tuple(int(i) for i in np.argsort(axes))) if len(axes) > 1 else weights
    return np.reshape(ordered, tuple(n if i in axes else 1 for i, n in enumerate(np.shape(a))))


# -- products: never a division, so that zeros are exact ------------------------------------------------------------


def along(axis: int, *index: Any) -> tuple[Any, ...]:
    """An index along one axis; ``axis`` is not negative."""
    return (slice(None),) * axis + index


def vector_shape(axis: int, ndim: int) -> tuple[int, ...]:
    """The shape in which a vector lies along an axis of an array with ``ndim`` dimensions, to which it broadcasts."""
    return (-1,) + (1,) * (ndim - axis - 1) if ndim else ()


def _others_rule(position: int, g: Any, y: Any, *arrays: Any, axis: int) -> Any:
    """How a product changes in several directions does not hang on their order: the derivative is one more, or another."""
    return OTHERS(arrays[0], *[x for i, x in enumerate(arrays) if i not in (0, position)], g, axis=axis)


OTHERS = Op(
    runtime.others,
    "op",
    (_others_rule,),
    name="runtime.others",
    fun=runtime.others,
    variadic=True,
    lanes="mixed",
    samples=[
        Sample(A(4), axis=-1),
        Sample(A(3, 2), axis=-2),
        Sample(A(5), A(5), axis=-1),
        Sample(A(10), A(10), axis=-1),
        Sample(A(2, 3), A(2, 3), axis=-2),
        Sample(A(3), A(3), A(3), axis=-1),
        Sample(A(1), A(1), axis=-1),
        Sample(A(0, 2), axis=-2),
    ],
)
REGISTRY[runtime.others] = OTHERS


def _others_over(a: Any, axis: Any) -> Any:
    """For each element the product of all others over an axis, several, or all."""
    axes = tuple(range(np.ndim(a))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) == 1:
        return OTHERS(a, axis=axes[0] % np.ndim(a) - np.ndim(a))
    first = np.moveaxis(a, axes, range(len(axes)))
    line = np.reshape(first, (count(a, axes), *np.shape(first)[len(axes) :]))
    return np.moveaxis(np.reshape(OTHERS(line, axis=-np.ndim(line)), np.shape(first)), range(len(axes)), axes)


@op(
    np.prod,
    instead=masked(np.prod, np.multiply, 1),
    lanes="row",
    samples=[*over((), (0,), (1,)), *MASKED, Sample(A(3), axis=()), Sample(A(2, 3, 2), axis=(2, 1))],
)
def _prod(g: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if axis == () or np.ndim(a) == 0:
        return g
    return expand(g, a, axis, keepdims) * _others_over(a if dtype is None else a.astype(dtype), axis)


# -- extremes: ties share evenly ------------------------------------------------------------------------------------


def _extreme(g: Any, y: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if axis == ():
        return g
    hit = a == expand(y, a, axis, keepdims)
    ties = np.sum(hit, axis=axis, dtype=y.dtype, keepdims=keepdims or NONE)
    return np.where(hit, expand(g / ties, a, axis, keepdims), 0)


_extremes = [
    *over((), (1,), kind="distinct"),
    Sample(A(3, 4, kind="distinct"), axis=0, initial=0.1),
    Sample(A(3, 4, kind="distinct"), axis=0, where=A(3, 1, kind="bool"), initial=0.1),
    Sample(A(0, 3), axis=0, initial=0.1),
]


def _hit(y: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return a == expand(y, a, axis, keepdims), True, False


for _combine, _keys in ((np.maximum, (np.max, np.amax)), (np.minimum, (np.min, np.amin))):
    for _key in _keys:
        op(
            _key,
            _extreme,
            instead=masked(_key, _combine, None),
            lanes=Choice(_hit),
            samples=_extremes,
            complex=False,
        )


# -- logarithms of sums of exponentials ------------------------------------------------------------------------------

_logaddexp: Any = np.logaddexp.reduce
_logaddexp2: Any = np.logaddexp2.reduce


def logaddexp_reduce(a: Any, axis: Any, keepdims: bool = False) -> Any:
    return _logaddexp(a, axis, keepdims=keepdims)


def logaddexp2_reduce(a: Any, axis: Any, keepdims: bool = False) -> Any:
    return _logaddexp2(a, axis, keepdims=keepdims)


def _shares(exp: Any) -> Rule:
    def rule(g: Any, y: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        whole = expand(y, a, axis, keepdims)
        alone = a == whole  # infinite as the sum is
        share = exp(np.where(alone, 0, a) - np.where(alone, 0, whole))
        if not count(a, axis):
            return share
        total = np.sum(share, axis=axis, keepdims=keepdims or NONE)  # one, but for rounding and where several are infinite
        return expand(g / total, a, axis, keepdims) * share

    return rule


_each_axis = [sample for sample in over() if "axis" in sample.kwargs]  # no axis means the first one in NumPy's method
for _total, _name, _exp in (
    (logaddexp_reduce, "np.logaddexp.reduce", np.exp),
    (logaddexp2_reduce, "np.logaddexp2.reduce", np.exp2),
):
    op(_total, _shares(_exp), name=_name, lanes="row", samples=_each_axis, complex=False)
SUMS_OF_EXPONENTIALS: dict[Any, Any] = {np.logaddexp: REGISTRY[logaddexp_reduce], np.logaddexp2: REGISTRY[logaddexp2_reduce]}


@composite(np.ptp, samples=over((), kind="distinct"), complex=False)
def _ptp(a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Any:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def _masked_truth(neutral: bool) -> Callable[..., Any]:
    def bind(a: Any, axis: Any = None, out: None = None, keepdims: Any = NONE, *, where: Any = NONE) -> Any:
        options = {"axis": axis, "keepdims": keepdims}
        a = np.where(np.broadcast_to(where, np.shape(a)), a, neutral) if masks(where) else a
        return [a], {k: v for k, v in options.items() if v not in (None, NONE)}

    return bind


constant(np.any, bind=_masked_truth(False))
constant(np.all, bind=_masked_truth(True))
constant(np.count_nonzero)
constant(np.argmax, np.argmin, np.nanargmax, np.nanargmin, samples=[Sample(A(5)), Sample(A(3, 4), axis=0, keepdims=True)])


# -- variance and standard deviation --------------------------------------------------------------------------------


def _deviation(a: Any, axis: Any, dtype: Any) -> Any:
    return conj(a - np.mean(a, axis=axis, dtype=dtype, keepdims=True))


def _freedom(a: Any, axis: Any, ddof: float) -> float:
    return max(count(a, axis) - ddof, 0) or math.nan


def _about(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = NONE,
    correction: Any = NONE,
) -> Any:
    """The variance of what a mask lets through, or about a mean that is given."""
    a, ddof = listed(a), correction if given(correction) else ddof
    dtype = float if dtype is None and dtype_of(a).kind in "iub" else dtype
    options: dict[str, Any] = {"axis": axis, "dtype": dtype, "where": where}

    def n(kept: Any) -> Any:
        return _counted(where, a, np.dtype(float), axis, kept) if masks(where) else count(a, axis)

    if not given(mean):
        total = np.sum(a, keepdims=True, **options)
        mean = _of(total.dtype, total / n(True))
    away = a - mean
    total = np.sum(np.real(away * conj(away)) if np.iscomplexobj(a) else away * away, keepdims=keepdims, **options)
    return _of(total.dtype, total / np.maximum(n(keepdims) - ddof, 0))


def _of(dtype: np.dtype[Any], x: Any) -> Any:
    return x if x.dtype == dtype else x.astype(dtype)


def _half(g: Any, y: Any, variance: Any) -> Any:
    h = multiple(g, y)
    return g / (2 * nonzero(y)) if h is None else h / 2


# Of what is never negative, as variances are: norms have slope 0 at 0, and so has this.
ROOT = Op(np.sqrt, "elementwise", (_half,), name="np.sqrt", partial="finite")


def _root_about(a: Any, **options: Any) -> Any:
    return ROOT(_about(a, **options))


_moments = [
    Sample(A(3, 4), mean=A(3, 1), axis=1),
    Sample(A(3, 4), mean=A(1, 4), axis=0, ddof=1, keepdims=True, where=np.array([[True], [False], [True]])),
    Sample(A(5), correction=1, mean=A(1)),
    *over((), (1,)),
    Sample(A(5), ddof=1),
    Sample(A(3, 4), axis=0, ddof=1, keepdims=True),
    Sample(A(4, 2), axis=0, correction=1),
    Sample(A(3, 4), axis=1, where=np.array([True, False, True, True])),
    Sample(A(2, 3), ddof=1, where=np.array([[True, False, True], [False, True, True]])),
    Sample(A(2, 3), axis=1, dtype=complex),
]


@op(np.var, lanes="row", instead=dict.fromkeys(("mean", "where", "correction"), _about), samples=_moments)
def _var(g: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    return expand(2 * real(g) / _freedom(a, axis, ddof), a, axis, keepdims) * _deviation(a, axis, dtype)


@op(np.std, lanes="row", instead=dict.fromkeys(("mean", "where", "correction"), _root_about), samples=_moments)
def _std(g: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
    h = multiple(g, y)
    scale = g / (_freedom(a, axis, ddof) * nonzero(real(y))) if h is None else h / _freedom(a, axis, ddof)
    return expand(real(scale), a, axis, keepdims) * _deviation(a, axis, dtype)


# -- the same without NaNs ------------------------------------------------------------------------------------------


def _without_nan(key: Any, plain: Any, some: Any = None, **options: Any) -> None:
    """Register ``key`` as ``plain``; of numbers that may be NaN, as that, or ``some``, with a mask that leaves NaNs out."""

    def fun(a: Any, axis: Any = None, dtype: Any = None, out: None = None, *, where: Any = NONE, **rest: Any) -> Any:
        if dtype is not None:
            rest["dtype"] = dtype
        if dtype_of(a).kind not in "fc":
            return plain(a, axis=axis, where=where, **rest)
        kept = ~np.isnan(a)
        return (some or plain)(a, axis=axis, where=kept & where if masks(where) else kept, **rest)

    composite(key, **options)(fun)


def _var_of_some(a: Any, where: Any, ddof: Any = 0, correction: Any = NONE, **rest: Any) -> Any:
    """The variance; NaN, where no degree of freedom is left."""
    ddof = correction if given(correction) else ddof
    variance = np.var(a, where=where, ddof=ddof, **rest)
    n = _counted(where, a, np.dtype(float), rest.get("axis"), rest.get("keepdims", False))
    return np.where(n <= ddof, np.nan, variance)[()]


_without_nan(np.nansum, np.sum, samples=over((1,)))
_without_nan(np.nanprod, np.prod, samples=over((1,)))
_without_nan(np.nanmean, np.mean, samples=over((1,)))
_without_nan(np.nanvar, np.var, _var_of_some, samples=[*over(), Sample(A(4), ddof=1)])
_without_nan(np.nanstd, np.std, lambda a, **rest: ROOT(_var_of_some(a, **rest)), samples=[*over(), Sample(A(4), ddof=1)])


def _nan_extreme(key: Any, plain: Any, worst: float) -> None:
    def fun(a: Any, axis: Any = None, out: None = None, keepdims: Any = False, initial: Any = NONE, where: Any = NONE) -> Any:
        rest = {name: value for name, value in (("initial", initial), ("where", where)) if given(value)}
        if dtype_of(a).kind not in "fc":
            return plain(a, axis=axis, keepdims=keepdims, **rest)
        gone = np.isnan(a)
        best = plain(np.where(gone, worst, a), axis=axis, keepdims=keepdims, **rest)
        if given(initial):
            return best
        return np.where(np.all(gone, axis=axis, keepdims=keepdims), np.nan, best)[()]

    composite(key, samples=over((1,), kind="distinct"), complex=False)(fun)


_nan_extreme(np.nanmax, np.max, -np.inf)
_nan_extreme(np.nanmin, np.min, np.inf)


# -- norms: zero at the origin --------------------------------------------------------------------------------------


def _norm_kind(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> dict[str, Any]:
    """Matrix norms become vector norms of sums of magnitudes, or of singular values."""
    ndim = np.ndim(x)
    axes = tuple(range(ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) != 2 or ord in (None, "fro", "f") or ord not in (1, -1, 2, -2, np.inf, -np.inf, "nuc"):
        return {"x": x, "ord": ord, "axis": axis, "keepdims": keepdims}
    row, col = normalize_axis_tuple(axes, ndim)
    if ord in ("nuc", 2, -2):
        x = np.linalg.svd(np.moveaxis(x, (row, col), (-2, -1)), compute_uv=False)
        ord = 1 if ord == "nuc" else math.copysign(np.inf, ord)
        if not keepdims:
            return {"x": x, "ord": ord, "axis": -1}
        return {"x": np.moveaxis(x[..., None], (-2, -1), (row, col)), "ord": ord, "axis": row, "keepdims": True}
    inner, outer = (row, col) if abs(ord) == 1 else (col, row)
    x = np.sum(np.abs(x), axis=inner, keepdims=keepdims)
    outer -= 0 if keepdims else inner < outer
    return {"x": x, "ord": math.copysign(np.inf, ord), "axis": outer, "keepdims": keepdims}


@op(
    np.linalg.norm,
    prepare=_norm_kind,
    lanes="row",
    samples=[
        Sample(A(5)),
        Sample(A()),
        Sample(A(0)),
        Sample(A(2, 3, 4)),
        Sample(A(3, 4), keepdims=True),
        Sample(A(3, 4), axis=-1),
        Sample(A(2, 3, 4), axis=(2, 0), keepdims=True),
        Sample(A(3, 4), "fro"),
        *(Sample(A(4, lo=0.5), p) for p in (2, 1, 3, 2.5, 0.5, -2, 0)),
        *(Sample(A(3, 4), p, axis=0) for p in (np.inf, -np.inf)),
        Sample(A(2, 1, 4), 1, axis=1, keepdims=True),
        *(Sample(A(3, 4), p) for p in (1, -1, np.inf, -np.inf, 2, -2, "nuc")),
        *(Sample(A(2, 3, 4), p, axis=(2, 0), keepdims=True) for p in (1, np.inf, 2, "nuc")),
        *(Sample(A(2, 3, 4), p, axis=(0, 1)) for p in (1, -np.inf, "nuc")),
    ],
)
def _norm(g: Any, y: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord in (None, 2, "fro", "f"):
        h = multiple(g, y)
        return expand(g / nonzero(y) if h is None else h, x, axis, keepdims) * conj(x)
    if ord == 0:
        return np.zeros_like(x)
    sign = conj(np.sign(x))
    if ord == 1:
        return expand(g, x, axis, keepdims) * sign
    size = np.abs(x)
    if ord in (np.inf, -np.inf):
        return _extreme(g, y, size, axis, keepdims) * sign
    if ord < 1:  # a cusp at zero, where sign makes it zero
        part = (expand(y, x, axis, keepdims) / np.where(size == 0, 1, size)) ** (1 - ord)
    else:
        part = (size / expand(nonzero(y), x, axis, keepdims)) ** (ord - 1)
    return expand(g, x, axis, keepdims) * sign * part


@composite(
    np.linalg.vector_norm,
    samples=[
        Sample(A(5)),
        Sample(A(3, 4), ord=1),
        Sample(A(3, 4), keepdims=True, ord=3),
        Sample(A(3, 4), axis=0, keepdims=True),
        Sample(A(2, 3, 4), axis=(2, 0), ord=np.inf),
        Sample(A(2, 3, 4), axis=(0, 1), keepdims=True, ord=1),
    ],
)
def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    shape = np.shape(x)
    if isinstance(axis, int) or (axis is None and len(shape) == 1):
        return np.linalg.norm(x, ord, axis, keepdims)
    axes = range(len(shape)) if axis is None else [i % len(shape) for i in axis]
    rest = [i for i in range(len(shape)) if i not in axes]
    line = np.transpose(x, (*rest, *axes)) if rest else x
    line = np.reshape(line, (*(shape[i] for i in rest), math.prod(shape[i] for i in axes)))
    norm = np.linalg.norm(line, ord, -1)
    return np.reshape(norm, tuple(1 if i in axes else n for i, n in enumerate(shape))) if keepdims else norm


@composite(
    np.linalg.matrix_norm,
    samples=[Sample(A(3, 4)), Sample(A(2, 3, 4), keepdims=True), Sample(A(2, 3, 4), ord=1)],
)
def _matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return np.linalg.norm(x, ord, (-2, -1), keepdims)
