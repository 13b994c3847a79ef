"""Integrals and differences over samples, counts, order and moments of several variables."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from symgrad.eager import ops
from symgrad.eager.core import NONE, Fused, Tensor, apply, axis_of, check_scalars, labelled, plain, variant, wrap
from symgrad.eager.dtypes import default, title
from symgrad.eager.indexing import narrow
from symgrad.eager.pointwise import FUNCTIONS, apply_floating, as_floats, function, where
from symgrad.eager.products import matmul
from symgrad.eager.reductions import NONZERO, NORM, RESULTS, median, named, picked, vector_norm
from symgrad.eager.shapes import cat, expand, flatten, reshape, transpose, unsqueeze
from symgrad.ops.core import nonzero
from symgrad.ops.reduction import along, vector_shape

# -- integrals and differences -------------------------------------------------------------------------------------


def _panels(name: str, y: Tensor, x: Any, dim: int) -> Any:
    """Twice the areas between neighbours, by the trapezoidal rule; they are 1 wide where no places ``x`` are given."""
    axis, ndim = axis_of(dim, y.value.ndim), y.value.ndim
    heights = _pairs(y, axis, FUNCTIONS["add"])
    if x is None:
        return heights
    if x.value.dtype == bool:
        raise NotImplementedError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if x.value.ndim == 1:
        if x.value.size != y.value.shape[axis]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = reshape(x, vector_shape(axis, ndim))
    elif x.value.ndim < ndim:
        x = reshape(x, (*[1] * (ndim - x.value.ndim), *x.value.shape))
    return heights * _pairs(x, axis_of(dim, x.value.ndim), FUNCTIONS["sub"])


def _pairs(x: Tensor, dim: int, fun: Any) -> Any:
    """``fun`` of each element and the one before."""
    n = x.value.shape[dim]
    return fun(narrow(x, dim, min(n, 1), max(n - 1, 0)), narrow(x, dim, 0, max(n - 1, 0)))


@function
def trapezoid(y: Tensor, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """The integral of samples along ``dim``, at places ``x`` or ``dx`` apart."""
    axis = axis_of(dim, y.value.ndim)
    if not y.value.shape[axis]:
        return y.sum(dim)
    if x is not None:
        return labelled(_panels("trapezoid", y, x, dim).sum(dim) / 2, "DivBackward1")
    ends = y.select(axis, 0) + y.select(axis, -1)
    return labelled((y.sum(dim) - ends * 0.5) * dx, "MulBackward1")


@function
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """The integrals up to each sample."""
    panels = _panels("cumulative_trapezoid", y, x, dim)
    return (panels * (dx / 2)).cumsum(dim) if x is None else labelled(panels.cumsum(dim) / 2, "DivBackward1")


def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """Derivatives along dimensions, estimated by central differences."""
    if input.value.dtype == bool:
        raise NotImplementedError("gradient: received a bool input, but bool is not supported")
    spacing = 1 if spacing is None else spacing
    dims = range(input.value.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    axes = axis_of(tuple(dims), input.value.ndim)
    alike = isinstance(spacing, (int, float, complex)) or (isinstance(spacing, Tensor) and not spacing.value.ndim)
    steps = [spacing] * len(axes) if alike else [spacing] if isinstance(spacing, Tensor) else list(spacing)
    if len(steps) != len(axes):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {len(axes)}, but got a list of "
            f"length {len(steps)}"
        )
    for axis in axes:
        if input.value.shape[axis] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple([_slope(input, plain(h), axis, edge_order) for h, axis in zip(steps, axes, strict=True)])


def _slope(x: Tensor, h: Any, axis: int, edge_order: int) -> Any:
    """The derivative along an axis: at each place the sum of three neighbours (or two) with weights that the steps give."""
    n = x.value.shape[axis]
    kind = x.value.dtype if x.value.dtype.kind in "fc" else default.real
    d = np.diff(h) if np.ndim(h) else np.full(n - 1, h, kind)

    def combined(start: int, length: int, weights: Any) -> Any:
        shaped = [np.asarray(w, kind).reshape(vector_shape(axis, x.value.ndim)) for w in weights]
        terms = [narrow(x, axis, start + i, length) * wrap(w) for i, w in enumerate(shaped)]
        return functools.reduce(operator.add, terms)

    a, b = d[:-1], d[1:]
    parts = [combined(0, n - 2, (-b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))))] if n > 2 else []
    if edge_order == 1:
        first, last = combined(0, 1, (-1 / d[0], 1 / d[0])), combined(n - 2, 1, (-1 / d[-1], 1 / d[-1]))
    else:
        a, b = d[0], d[1]
        first = combined(0, 1, (-(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))))
        a, b = d[-2], d[-1]
        last = combined(n - 3, 1, (b / (a * (a + b)), -(b + a) / (a * b), (2 * b + a) / (b * (a + b))))
    return cat([first, *parts, last], axis)


# -- moments of several variables ----------------------------------------------------------------------------------


def _check_rows(name: str, x: Tensor) -> None:
    if x.value.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {x.value.ndim} dimensions"
        )


@function
def cov(input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariances of variables, one a row; ``fweights`` says how often each column counts, ``aweights`` how much."""
    _check_rows("cov", input)
    x = as_floats(input)
    x = reshape(x, (1, -1)) if x.value.ndim < 2 else x
    _check_weights(x, fweights, aweights)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    n = x.value.shape[1]
    total = n if weights is None else weights.sum()
    if isinstance(total, Tensor) and total.value == 0:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (x if weights is None else x * weights).sum(1, keepdim=True) / total
    gap = x - mean
    if weights is None or aweights is None or not correction:
        scale = total - correction
    else:
        scale = total - correction * (weights * aweights).sum() / total
    scale = FUNCTIONS["clamp_min"](scale, 0) if isinstance(scale, Tensor) else max(scale, 0)
    turned = transpose(gap if weights is None else gap * weights, 0, 1).conj()
    return matmul(gap, turned).div(scale).squeeze()


def _check_weights(x: Tensor, fweights: Any, aweights: Any) -> None:
    """Raise for weights of the columns of ``x`` that are none."""
    for name, weights, kinds, wanted in (
        ("fweights", fweights, "iu", "integral"),
        ("aweights", aweights, "f", "floating point"),
    ):
        if weights is None:
            continue
        value, columns = weights.value, x.value.shape[1]
        if value.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {value.ndim} dimensions"
            )
        if value.dtype.kind not in kinds:
            raise RuntimeError(f"cov(): expected {name} to have {wanted} dtype but got {name} with {title(value.dtype)} dtype")
        if value.size != columns:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got {value.size} != "
                f"{columns}"
            )
        if (value < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative")


@function
def corrcoef(input: Tensor) -> Any:
    """The correlations of variables, one a row."""
    _check_rows("corrcoef", input)
    c = cov(input)
    if not c.value.ndim:
        return c / c
    deviation = c.diagonal().real.sqrt() if c.is_complex() else c.diagonal().sqrt()
    c = c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0)
    return c if c.is_complex() else c.clamp(-1, 1)


@function
def logcumsumexp(input: Tensor, dim: int) -> Any:
    """The logarithms of running sums of exponentials, without overflow."""
    axis = axis_of(dim, input.value.ndim)
    if not input.value.ndim:
        return labelled(input.clone(), "LogcumsumexpBackward0")
    return apply_floating(LOGCUMSUMEXP, input, {"axis": axis})


def _logcumsumexp(x: Any, axis: int) -> Any:
    return np.logaddexp.accumulate(x, axis)


def _logcumsumexp_rule(g: Any, y: Any, x: Any, axis: int) -> Any:
    """From the last element on: what flows back to each sum is its own cotangent and a share of the next one's."""
    y = np.where(y == -np.inf, 0, y)
    total: Any = 0
    totals: list[Any] = []
    for i in range(np.shape(y)[axis] - 1, -1, -1):
        here = along(axis, i)
        share = np.exp(np.minimum(y[here] - y[along(axis, i + 1)], 0)) if totals else 0
        total = g[here] + share * total
        totals.append(total)
    return np.exp(x - y) * np.stack(totals[::-1], axis) if totals else g


LOGCUMSUMEXP = Fused(_logcumsumexp, _logcumsumexp_rule, name="logcumsumexp")

# -- order ---------------------------------------------------------------------------------------------------------


@function
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent elements along ``dim``, the least of several, and the place of the last one of each."""
    value = input.value
    axis = axis_of(dim, value.ndim)
    if not value.ndim:
        return RESULTS["mode"](*picked(input, np.zeros((), np.int64), axis, keepdim, "ModeBackward0"))
    order = value.argsort(axis, kind="stable")
    ranked = np.take_along_axis(value, order, axis)
    ranks = np.arange(value.shape[axis]).reshape(vector_shape(axis, value.ndim))
    alike = np.zeros(value.shape, dtype=bool)  # as the one before
    alike[along(axis, slice(1, None))] = ranked[along(axis, slice(1, None))] == ranked[along(axis, slice(None, -1))]
    met = ranks - np.maximum.accumulate(np.where(alike, 0, ranks), axis)  # how many alike have been met before
    places = np.take_along_axis(order, met.argmax(axis, keepdims=True), axis).squeeze(axis)
    return RESULTS["mode"](*picked(input, places, axis, keepdim, "ModeBackward0"))


@function
def nanmedian(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """``median`` of what is no NaN."""
    value = input.value
    if value.dtype.kind != "f" or not np.isnan(value).any():
        found = median(input) if dim is None else median(input, dim, keepdim)
        label = "NanmedianBackward0" if dim is None else "NanmedianBackward1"
        return labelled(found, label) if dim is None else RESULTS["nanmedian"](labelled(found[0], label), found[1])
    if dim is None:
        place = nanmedian(flatten(input), 0)[1].value
        return apply(ops.MEDIAN, (input, place), NONE, "NanmedianBackward0")
    axis = axis_of(dim, value.ndim)
    if not value.ndim:
        return RESULTS["nanmedian"](*picked(input, np.zeros((), np.int64), axis, keepdim, "NanmedianBackward1"))
    order = value.argsort(axis, kind="stable")
    rank = np.maximum((~np.isnan(value)).sum(axis, keepdims=True) - 1, 0) // 2
    places = np.take_along_axis(order, rank, axis).squeeze(axis)
    return RESULTS["nanmedian"](*picked(input, places, axis, keepdim, "NanmedianBackward1"))


# -- distances -----------------------------------------------------------------------------------------------------


def _euclidean(a: Any, b: Any) -> Any:
    total = np.sum(a * a, -1)[..., :, None] + np.sum(b * b, -1)[..., None, :]
    squares = total - 2 * (a @ np.swapaxes(b, -1, -2))
    if type(squares) is np.ndarray:  # what is left by rounding only is computed anew: equal rows are 0 apart
        *batch, i, j = near = np.nonzero(squares <= 64 * np.finfo(a.dtype).eps * total)
        squares[near] = np.sum((a[*batch, i] - b[*batch, j]) ** 2, -1)
    return np.sqrt(np.maximum(squares, 0))


def _euclidean_rule(g: Any, y: Any, a: Any, b: Any) -> Any:
    ratio = g / nonzero(y)
    return a * np.sum(ratio, -1, keepdims=True) - ratio @ b


EUCLIDEAN = Fused(  # without the differences of all rows, which may be many
    _euclidean,
    _euclidean_rule,
    lambda g, y, a, b: _euclidean_rule(np.swapaxes(g, -1, -2), np.swapaxes(y, -1, -2), b, a),
    name="cdist",
)
UNEQUAL = variant(  # as torch's distances have it
    NONZERO,
    fun=lambda a, axis: np.sum(np.where(np.isnan(a), a, np.asarray(a != 0, a.dtype)), axis),
    rules=(lambda g, y, a, **params: np.zeros_like(a),),
)
FARTHEST = variant(  # of differences that are equally large, each gets all that flows back
    NORM, rules=(lambda g, y, a, ord, axis: g[..., None] * ops.SIGN(a) * (np.abs(a) == y[..., None]),)
)
_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@function
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Any:
    """The ``p``-norms of the differences of each row of ``x1`` and each of ``x2``."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.value.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.value.ndim}D")
        if x.value.dtype.kind != "f":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {title(x.value.dtype)}")
    check_scalars(x1, x2)
    (*batch, rows, columns), (*others, more, width) = x1.value.shape, x2.value.shape
    if columns != width:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {columns} X2: {width}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    many = compute_mode == _MODES[1] or (compute_mode == _MODES[0] and (rows > 25 or more > 25))
    if p == 2 and many:
        shape = np.broadcast_shapes(tuple(batch), tuple(others))
        return apply(EUCLIDEAN, (expand(x1, *shape, rows, columns), expand(x2, *shape, more, columns)), NONE, "CdistBackward0")
    return _norms(unsqueeze(x1, -2) - unsqueeze(x2, -3), p, "CdistBackward0")


def _norms(difference: Tensor, p: float, label: str) -> Any:
    if p == 0:
        return apply(UNEQUAL, (difference,), {"axis": -1}, label)
    if not difference.value.shape[-1] or p in (1, 2):
        return labelled(vector_norm(difference, p if difference.value.shape[-1] else 2, -1), label)
    if p == math.inf:
        return apply(FARTHEST, (difference,), {"ord": p, "axis": -1}, label)
    equal = wrap(np.asarray((difference.value == 0).all(-1)))  # rows, which no derivative goes through
    return labelled(where(equal, 0.0, vector_norm(where(unsqueeze(equal, -1), 1.0, difference), p, -1)), label)


@function
def pdist(input: Tensor, p: float = 2) -> Any:
    """The ``p``-norms of the differences of each row and each later one."""
    if input.value.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.value.ndim}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    first, second = map(wrap, np.triu_indices(input.value.shape[0], 1))
    return _norms(input[first] - input[second], p, "PdistBackward0")


# -- counts and places ---------------------------------------------------------------------------------------------


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Where elements are among others."""
    for kind in (plain(elements).dtype, plain(test_elements).dtype):
        if kind == bool:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {title(kind)}")
    return wrap(np.asarray(np.isin(plain(elements), plain(test_elements), invert=invert)))


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Tensor:
    """Where numbers would go in a sequence that is in order, row by row."""
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    row, found = sorted_sequence.value, plain(input)
    if row.ndim != 1 and row.shape[:-1] != found.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(row.shape)} and input value tensor "
            f"{list(found.shape)}"
        )
    if sorter is not None:
        row = np.take_along_axis(row, sorter.value, -1)
    last: Any = "right" if right or side == "right" else "left"
    if row.ndim == 1:
        places = np.asarray(np.searchsorted(row, found, last))
    else:
        count = math.prod(row.shape[:-1])
        pairs = zip(row.reshape(count, row.shape[-1]), found.reshape(count, found.shape[-1]), strict=True)
        places = np.array([np.searchsorted(a, v, last) for a, v in pairs], np.int64).reshape(found.shape)
    return wrap(places.astype(np.int32 if out_int32 else np.int64))


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Between which boundaries numbers lie."""
    if boundaries.value.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.value.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def _range(name: str, value: Any, bounds: Any, margin: float) -> Any:
    """From where to where elements are counted: between the extremes if that is not given, and never nowhere."""
    low, high = bounds or ((value.min(), value.max()) if value.size else (0, 1 if name == "histogramdd" else 0))
    if not np.isfinite([low, high]).all():
        raise RuntimeError(f"torch.{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.{name}: max must be larger than min, but got min {low} max {high}")
    return (low - margin, high + margin) if low == high else (low, high)


def _check_bins(bins: int) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")


@function
def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many elements lie in each of so many equal ranges."""
    value = input.value
    _check_bins(bins)
    bounds = _range("histc", value, None if min == max else (min, max), 1)
    return wrap(np.histogram(value, bins, bounds)[0].astype(value.dtype))


@function
def histogram(input: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """How many elements lie between neighbouring edges, and these."""
    value = input.value
    for name, other in (("bins", bins), ("weight", weight)):
        if isinstance(other, Tensor) and other.value.dtype != value.dtype:
            kinds = f"{title(value.dtype)} and {title(other.value.dtype)}"
            raise RuntimeError(f"torch.histogramdd: input tensor and {name} tensor should have the same dtype, but got {kinds}")
    if isinstance(bins, Tensor):
        given: Any = plain(bins)
    else:
        _check_bins(bins)
        low, high = _range("histogramdd", value, range, 0.5)
        given = np.linspace(low, high, bins + 1)
    counts, edges = np.histogram(value, given, weights=None if weight is None else plain(weight), density=density)
    return _HISTOGRAM(wrap(counts.astype(value.dtype)), wrap(edges.astype(value.dtype)))


_HISTOGRAM = named("histogram", "hist bin_edges")
FUNCTIONS.update(gradient=gradient, isin=isin, searchsorted=searchsorted, bucketize=bucketize, trapz=trapezoid)
