"""Sums, moments, extremes, order statistics and scans, with torch's ``dim`` and ``keepdim``."""

from __future__ import annotations

import builtins
import functools
import math
import warnings
from collections import namedtuple
from typing import Any

import numpy as np

from symgrad.eager import ops, shapes
from symgrad.eager.core import (
    NAMES,
    PARTS,
    Fused,
    Tensor,
    apply,
    as_tensor_of,
    axis_of,
    called,
    known,
    labelled,
    plain,
    plan_of,
    requires,
    tied,
    variant,
    wrap,
)
from symgrad.eager.dtypes import as_numpy, title
from symgrad.eager.indexing import flat_places, gather
from symgrad.eager.pointwise import FUNCTIONS, apply_alike, apply_floating, binary, function, in_place
from symgrad.ops.core import Op, Traced, count, expand
from symgrad.ops.reduction import along, vector_shape
from symgrad.tracing.tracer import Tracer


def named(name: str, fields: str) -> Any:
    """Torch's result type of a function: prints as ``torch.return_types.max(values=..., indices=...)``."""

    def show(self: Any) -> str:
        items = ",\n".join([f"{field}={part!r}" for field, part in zip(self._fields, self, strict=True)])
        return f"torch.return_types.{name}(\n{items})"

    return type(name, (namedtuple(name, fields),), {"__slots__": (), "__repr__": show})


RESULTS = {
    name: named(name, "values indices") for name in "max min median mode sort topk kthvalue cummax cummin nanmedian".split()
}
_MIN_MAX = named("aminmax", "min max")


def _axes(dim: Any, keepdim: bool, ndim: int) -> dict[str, Any]:
    """The parameters of a NumPy reduction."""
    params: dict[str, Any] = {}
    if dim is not None and not (isinstance(dim, (list, tuple)) and not dim):
        axis = axis_of(dim, ndim)
        if ndim:
            params["axis"] = axis
    if keepdim:
        params["keepdims"] = True
    return params


def _truth_axes(dim: Any, keepdim: bool, ndim: int) -> dict[str, Any]:
    """The same for ``all`` and ``any``, to which no dimensions are none, and not all."""
    return {"axis": ()} if isinstance(dim, (list, tuple)) and not dim else _axes(dim, keepdim, ndim)


_AXIS: Any = lambda name: lambda node: f"{name}Backward{int('axis' in node.params)}"
NAMES.update({
    np.sum: _AXIS("Sum"), np.mean: _AXIS("Mean"), np.prod: _AXIS("Prod"), np.std: "StdBackward0", np.var: "VarBackward0",
    np.max: "MaxBackward1", np.min: "MinBackward1", np.cumsum: "CumsumBackward0", np.cumprod: "CumprodBackward0",
    np.linalg.norm: "LinalgVectorNormBackward0",
})  # fmt: skip


def _cast(input: Any, dtype: Any) -> Any:
    return input if dtype is None else input.to(dtype)


def _counted(input: Any, dtype: Any) -> Any:
    """The input in the dtype in which torch adds up and multiplies."""
    return _cast(input, np.int64 if dtype is None and input.value.dtype.kind == "u" else dtype)


@function
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over all dimensions, or over ``dim``."""
    if dtype is None and input.value.dtype.kind == "u":
        dtype = np.int64
    if dim is None and not keepdim and dtype is None:
        return apply(SUM, (input,))
    params = _axes(dim, keepdim, input.value.ndim)
    if dtype is not None:
        params["dtype"] = as_numpy(dtype)
    return apply(SUM, (input,), params, "SumBackward1" if dim is not None else None)


_add: Any = np.add.reduce


def _mean(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    total = _add(a, axis, None, None, keepdims)
    return total / (a.size // (total.size or 1))


SUM = known(np.sum)
MEAN = variant(known(np.mean), fun=lambda a, axis=None, keepdims=False: _mean(a, axis, keepdims))


def _unsigned(g: Any, where: Any) -> Any:
    """``g``, whose zeros are positive in some places."""
    zero = np.zeros_like(g)
    return g + np.where(where, zero, -zero)


def _prod_rule(g: Any, y: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Where several factors are zero, no product of the others has torch's sign of zero."""
    found = _RULES[0](g, y, a, axis=axis, keepdims=keepdims)
    several = axis is None and not isinstance(g, Tensor) and np.count_nonzero(a) < np.size(a) - 1
    return _unsigned(found, True) if several else found


def _cumprod_rule(g: Any, y: Any, a: Any, axis: int) -> Any:
    """Nor what comes after the first zero."""
    found = _RULES[1](g, y, a, axis=axis)
    if np.count_nonzero(a) == np.size(a):
        return found
    zeros = np.cumsum(a == 0, axis=axis)
    return _unsigned(found, zeros > (a == 0))


_RULES: Any = known(np.prod).rules[0], known(np.cumprod).rules[0]
PROD = variant(known(np.prod), rules=(_prod_rule,))
CUMPROD = variant(known(np.cumprod), rules=(_cumprod_rule,))


def _variance(a: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    if a.dtype.kind != "f":
        return np.var(a, axis, ddof=ddof, keepdims=keepdims)
    n = count(a, axis)
    gap = a - _add(a, axis, None, None, True) / a.dtype.type(n)
    return _add(gap * gap, axis, None, None, keepdims) / a.dtype.type(n - ddof if n > ddof else 0)


VAR = variant(known(np.var), fun=_variance)
STD = variant(known(np.std), fun=lambda a, **params: np.sqrt(_variance(a, **params)))


def _floats_only(name: str, input: Tensor) -> None:
    if input.value.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {title(input.value.dtype)}"
        )


@function
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean over all dimensions, or over ``dim``."""
    input = _cast(input, dtype)
    _floats_only("mean", input)
    if not input.value.size and dim is None:
        return apply(SUM, (input,)) / 0
    params = _axes(dim, keepdim, input.value.ndim)
    return apply(MEAN, (input,), params, "MeanBackward1" if dim is not None else None)


@function
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product over all elements, or over ``dim``."""
    input = _counted(input, dtype)
    result = apply(PROD, (input,), _axes(dim, keepdim, input.value.ndim), f"ProdBackward{int(dim is not None)}")
    return _cast(result, dtype)


@function
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """``sum`` of what is no NaN."""
    return _cast(apply(NANSUM, (_counted(input, dtype),), _axes(dim, keepdim, input.value.ndim)), dtype)


NANSUM = Fused(
    lambda a, axis=None, keepdims=False: _add(np.where(np.isnan(a), 0, a), axis, None, None, keepdims),
    lambda g, y, a, axis=None, keepdims=False: np.where(np.isnan(a), 0, expand(g, a, axis, keepdims)),
    name="nansum",
)


@function
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """``mean`` of what is no NaN."""
    gone = FUNCTIONS["isnan"](input)
    return nansum(input, dim, keepdim, dtype=dtype) / sum(~gone, dim, keepdim)


def _moment(
    op: Op, name: str, input: Tensor, dim: Any, unbiased: Any = None, keepdim: bool = False, correction: Any = None
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if input.value.dtype.kind not in "fc":
        raise RuntimeError(
            f"{'std and var' if name in ('std', 'var') else name} only support floating point and complex dtypes"
        )
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    params = _axes(dim, keepdim, input.value.ndim)
    if input.value.size and count(input.value, params.get("axis")) <= correction:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
            "divided by output numel).",
            stacklevel=3,
        )
    if correction:
        params["ddof"] = correction
    return apply(op, (input,), params)


@function
def std(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The standard deviation, by default with Bessel's correction."""
    return _moment(STD, "std", input, dim, unbiased, keepdim, correction)


@function
def var(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The variance, by default with Bessel's correction."""
    return _moment(VAR, "var", input, dim, unbiased, keepdim, correction)


def var_mean(input: Tensor, dim: Any = None, **options: Any) -> Any:
    """``var`` and ``mean``."""
    return _moment(_both(VAR), "var_mean", input, dim, **options)


def std_mean(input: Tensor, dim: Any = None, **options: Any) -> Any:
    """``std`` and ``mean``."""
    return _moment(_both(STD), "std_mean", input, dim, **options)


@functools.cache
def _both(op: Op) -> Op:
    """``op``, a moment, together with the mean."""

    def fun(a: Any, ddof: Any = 0, **params: Any) -> Any:
        return op.fun(a, ddof=ddof, **params), MEAN.fun(a, **params)

    def rule(g: Any, y: Any, a: Any, *, ddof: Any = 0, **params: Any) -> Any:
        parts = [op.rules[0](g[0], y[0], a, ddof=ddof, **params) if g[0] is not None else None]  # type: ignore[misc]
        parts.append(MEAN.rules[0](g[1], None, a, **params) if g[1] is not None else None)  # type: ignore[misc]
        found = [part for part in parts if part is not None]
        return found[0] if len(found) == 1 else found[0] + found[1]

    made = Fused(fun, rule, name=f"{op.name.removeprefix('np.')}_mean")
    PARTS[made.key] = (0,) if plan_of(op, 1, (0,)).result else ()
    return made


# -- norms ---------------------------------------------------------------------------------------------------------


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The ``ord``-norm of all elements, or along ``dim``."""
    if x.value.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {title(x.value.dtype)}"
        )
    x = widened("linalg.vector_norm", x, dtype)
    params = _axes(dim, keepdim, x.value.ndim)
    if (ord < 0 or ord == math.inf) and not x.value.size:
        _check_some(x.value.shape, params.get("axis"), ord)
    if ord == 0:
        return apply(NONZERO, (x,), params)
    if ord != 2:
        params["ord"] = ord
        if type(x.value) is Tracer:
            return _traced_norm(x, ord, params.get("axis"), keepdim)
    return apply(NORM, (x,), params)


def widened(name: str, x: Tensor, dtype: Any) -> Tensor:
    """``x`` in a dtype that has no less digits."""
    if dtype is None:
        return x
    kind, given = as_numpy(dtype), x.value.dtype
    if kind.kind != given.kind:
        which = "complex" if given.kind == "c" else "real"
        raise RuntimeError(f"{name}: dtype should be {which} for {which} inputs, but got {title(kind)}")
    if kind.itemsize < given.itemsize:
        raise RuntimeError(
            f"{name}: the dtype of the input ({title(given)}) should be convertible without narrowing to the specified dtype "
            f"({title(kind)})"
        )
    return x.to(dtype)  # type: ignore[no-any-return]


def _check_some(shape: tuple[int, ...], axis: Any, ord: Any) -> None:
    """Raise where there is nothing along the axes of a norm that nothing has."""
    if not math.prod(shape if axis is None else [shape[i] for i in np.atleast_1d(axis)]):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have an "
            "identity"
        )


def _traced_norm(x: Tensor, ord: Any, axis: Any, keepdim: bool) -> Any:
    """The norms of vectors: NumPy's, which is recorded, of matrices is another one."""
    shape = x.value.shape
    axes = tuple(range(len(shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    kept = [i for i in range(len(shape)) if i not in axes]
    rows = [*[shape[i] for i in kept], math.prod([shape[i] for i in axes])]
    found = apply(NORM, (shapes.reshape(shapes.permute(x, (*kept, *axes)), rows),), {"ord": ord, "axis": -1})
    return shapes.reshape(found, [1 if i in axes else n for i, n in enumerate(shape)]) if keepdim else found


def _norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
    if ord == 2 and x.dtype.kind == "f":
        return np.sqrt(_add(x * x, axis, None, None, keepdims))
    size = np.abs(x)
    if ord in (math.inf, -math.inf):
        extreme: Any = np.maximum if ord > 0 else np.minimum
        return extreme.reduce(size, axis, None, None, keepdims)
    return _add(size, axis, None, None, keepdims) if ord == 1 else _add(size**ord, axis, None, None, keepdims) ** (1 / ord)


NORM = variant(known(np.linalg.norm), fun=_norm)
NONZERO = Fused(  # the 0-norm, through which torch's gradient does not go at all
    lambda a, axis=None, keepdims=False: _add(a != 0, axis, a.real.dtype, None, keepdims),
    lambda g, y, a, axis=None, keepdims=False: None,
    name="linalg_vector_norm",
)


@function
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The norm of all elements, or along ``dim``; "nuc" is one of matrices."""
    if p == "nuc":
        axes = axis_of((-2, -1) if dim is None else tuple(dim), input.value.ndim)
        found: Any = np.linalg.svdvals(shapes.movedim(_cast(input, dtype), axes, (-2, -1))).sum(-1)
        kept = [1 if i in axes else n for i, n in enumerate(input.value.shape)]
        return labelled(shapes.reshape(found, kept) if keepdim else found, "SumBackward1")
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


@function
def dist(input: Tensor, other: Tensor, p: float = 2) -> Any:
    """The ``p``-norm of the difference."""
    if p == 0 or Tracer in (type(plain(input)), type(plain(other))):
        return vector_norm(input - other, p)
    return apply_alike(DIST, (input, other), {"ord": p})


def _dist_rule(g: Any, y: Any, x: Any, other: Any, ord: Any) -> Any:
    return NORM.rules[0](g, y, x - other, ord=ord)  # type: ignore[misc]


DIST = Fused(
    lambda x, other, ord: _norm(x - other, ord),
    _dist_rule,
    lambda g, y, x, other, ord: -_dist_rule(g, y, x, other, ord),
    name="dist",
)


@function
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Any:
    """``log(sum(exp(input)))``, without overflow."""
    axis = axis_of(dim, input.value.ndim)
    axes = (axis if isinstance(axis, tuple) else (axis,)) or tuple(range(input.value.ndim))
    params = {"axis": axes if input.value.ndim else (), "keepdims": keepdim}
    return apply_floating(ops.LOGSUMEXP, input, params)


# -- extremes ------------------------------------------------------------------------------------------------------


def _extreme(name: str, op: Op, arg: Any, pairwise: Op, input: Tensor, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, Tensor):
        return binary(pairwise, input, dim)
    if dim is None:
        if not input.value.size:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                f"the reduction dim with the 'dim' argument."
            )
        return apply(op, (input,))
    axis = axis_of(dim, input.value.ndim)
    if input.value.ndim and not input.value.shape[axis]:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
    places = arg(input.value, axis=axis) if input.value.ndim else _first()
    return RESULTS[name](*picked(input, places, axis, keepdim, f"{name.title()}Backward0"))


@function
def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element; along ``dim``, the largest ones and their places; of two tensors, as ``maximum``."""
    return _extreme("max", ops.MAX, np.argmax, ops.MAXIMUM, input, dim, keepdim)


@function
def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; along ``dim``, the smallest ones and their places; of two tensors, as ``minimum``."""
    return _extreme("min", ops.MIN, np.argmin, ops.MINIMUM, input, dim, keepdim)


@function
def amax(input: Tensor, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest elements; equal ones share the gradient."""
    return apply(ops.AMAX, (input,), _axes(dim, keepdim, input.value.ndim), "AmaxBackward0")


@function
def amin(input: Tensor, dim: Any = (), keepdim: bool = False) -> Any:
    """The smallest elements; equal ones share the gradient."""
    return apply(ops.AMIN, (input,), _axes(dim, keepdim, input.value.ndim), "AminBackward0")


@function
def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    """``amin`` and ``amax``."""
    dims = () if dim is None else dim
    return _MIN_MAX(*(labelled(fun(input, dims, keepdim), "AminmaxBackward0") for fun in (amin, amax)))


def _places(input: Tensor, arg: Any, dim: Any, keepdim: bool) -> Any:
    value = input.value
    if dim is None:
        if not value.size:
            raise IndexError(f"{arg.__name__}(): Expected reduction dim to be specified for input.numel() == 0.")
        return wrap(np.reshape(arg(value), (1,) * value.ndim if keepdim else ()))
    axis = axis_of(dim, value.ndim)
    return wrap(arg(value, axis=axis, keepdims=keepdim) if value.ndim else np.asarray(0))


@function
def argmax(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The place of the largest element."""
    return _places(input, np.argmax, dim, keepdim)


@function
def argmin(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The place of the smallest element."""
    return _places(input, np.argmin, dim, keepdim)


@function
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all elements are true."""
    return _truth(np.all(input.value, **_truth_axes(dim, keepdim, input.value.ndim)), input)


@function
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether one element is true."""
    return _truth(np.any(input.value, **_truth_axes(dim, keepdim, input.value.ndim)), input)


def _truth(found: Any, input: Tensor) -> Tensor:
    """Booleans, or bytes of bytes."""
    return wrap(found.astype(np.uint8) if input.value.dtype == np.uint8 else found)


@function
def count_nonzero(input: Tensor, dim: Any = None) -> Any:
    """How many elements are not zero."""
    return wrap(np.asarray(np.count_nonzero(input.value, **_axes(dim, False, input.value.ndim))))


# -- order ---------------------------------------------------------------------------------------------------------


def _lower_median(value: Any, axis: int) -> Any:
    order = value.argsort(axis, kind="stable")
    place = order[along(axis, (value.shape[axis] - 1) // 2)]
    if value.dtype.kind == "f":
        nan = np.isnan(value)
        place = np.where(nan.any(axis), nan.argmax(axis), place)
    return place


@function
def median(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The median, the lower one of two; along ``dim``, with its places."""
    value = input.value
    if dim is None:
        if not value.size:
            return apply(SUM, (input,)) / 0
        place = _lower_median(value.reshape(-1), 0)
        return apply(ops.MEDIAN, (input, np.asarray(place)))
    axis = axis_of(dim, value.ndim)
    places = _lower_median(value, axis) if value.ndim else _first()
    return RESULTS["median"](*picked(input, places, axis, keepdim, "MedianBackward1"))


def _first() -> Any:
    """The place of the only element."""
    return np.zeros((), np.int64)


def picked(input: Tensor, places: Any, axis: int, keepdim: bool, label: str) -> Any:
    """The elements at ``places`` along an axis, and these places. ``places`` may lack the axis; ``keepdim``: it comes back."""
    shape = input.value.shape
    places = places if isinstance(places, Traced) else np.asarray(places)
    flat = flat_places(places, axis, shape)
    if keepdim and shape:
        places, flat = (x.reshape((*shape[:axis], 1, *shape[axis + 1 :])) for x in (places, flat))
    found = wrap(places)
    return apply(ops.PICK, (input, tied(flat, found)), {"shape": shape}, label), found


@function
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The ``k``-th smallest elements along ``dim``, and their places."""
    axis, value = axis_of(dim, input.value.ndim), input.value
    if not 1 <= k <= (value.shape[axis] if value.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    places = _order(value, axis, False)[along(axis, k - 1)] if value.ndim else _first()
    return RESULTS["kthvalue"](*picked(input, places, axis, keepdim, "KthvalueBackward0"))


def _order(value: Any, axis: int, descending: bool) -> Any:
    if not value.ndim:
        return _first()
    if not descending:
        return value.argsort(axis, kind="stable")
    backwards = along(axis, slice(None, None, -1))
    return (value.shape[axis] - 1 - value[backwards].argsort(axis, kind="stable"))[backwards]


@function
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Any:
    """The elements in order along ``dim``, and their places."""
    axis = axis_of(dim, input.value.ndim)
    order = _order(input.value, axis, descending)
    return RESULTS["sort"](*picked(input, order, axis, False, f"SortBackward{int(stable is not None)}"))


@function
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Any:
    """The places of the elements in order."""
    return wrap(_order(input.value, axis_of(dim, input.value.ndim), descending))


@function
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim``, and their places."""
    axis = axis_of(dim, input.value.ndim)
    if not 0 <= k <= (input.value.shape[axis] if input.value.ndim else 1):
        raise RuntimeError("selected index k out of range")
    order = _order(input.value, axis, largest)
    order = order[along(axis, slice(k))] if input.value.ndim else order
    return RESULTS["topk"](*picked(input, order, axis, False, "TopkBackward0"))


@function
def quantile(input: Tensor, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """The ``q``-quantiles; between two elements by ``interpolation``: linear, lower, higher, midpoint or nearest."""
    return _quantiles("quantile", input, q, dim, keepdim, interpolation)


@function
def nanquantile(input: Tensor, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """``quantile`` of what is no NaN."""
    return _quantiles("nanquantile", input, q, dim, keepdim, interpolation)


def _quantiles(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str) -> Any:
    if not input.value.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if input.value.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    ndim, shape = input.value.ndim, input.value.shape
    axis = 0 if dim is None else axis_of(dim, ndim)
    levels = q.value if isinstance(q, Tensor) else np.asarray(q, input.value.dtype)
    if levels.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if levels.dtype != input.value.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if np.any((levels < 0) | (levels > 1)):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if dim is None or not ndim:
        kept: tuple[int, ...] = (1,) * ndim if keepdim else ()
        ordered = sort(shapes.flatten(input)).values
    else:
        kept = tuple([n if i != axis else 1 for i, n in enumerate(shape) if i != axis or keepdim])
        ordered = sort(input if axis == ndim - 1 else shapes.transpose(shapes.unsqueeze(input, -1), axis, -1)).values
    n = ordered.value.shape[-1]
    ordered = shapes.reshape(ordered, (*kept, n))
    nan = np.isnan(ordered.value)
    places: Any = (q if isinstance(q, Tensor) and requires(q) else levels).reshape(-1)
    if name == "quantile":
        places = np.where(nan.any(-1, keepdims=True), n - 1, places * (n - 1))
    else:
        places = places * np.maximum((~nan).sum(-1, keepdims=True) - 1, 0).astype(levels.dtype)
    ranks = plain(places).astype(levels.dtype, copy=False)
    if interpolation != "linear" and interpolation != "midpoint":
        rounding: Any = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}[interpolation]
        ranks = rounding(ranks)
    below = gather(ordered, -1, wrap(np.floor(ranks).astype(np.int64)))
    if interpolation in ("linear", "midpoint"):
        above = gather(ordered, -1, wrap(np.ceil(ranks).astype(np.int64)))
        weight = as_tensor_of(places) - wrap(np.floor(ranks)) if interpolation == "linear" else wrap(np.full_like(ranks, 0.5))
        below = FUNCTIONS["lerp"](below, above, weight)
    if levels.ndim:
        below.unsqueeze_(0).transpose_(0, -1)
    return below.squeeze_(-1)


# -- scans ---------------------------------------------------------------------------------------------------------


@function
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """Running sums along ``dim``."""
    input = _counted(input, dtype)
    axis = axis_of(dim, input.value.ndim)
    if not input.value.ndim:
        return labelled(_alone(input, dtype), "CumsumBackward0")
    return _cast(apply(known(np.cumsum), (input,), {"axis": axis}), dtype)


@function
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """Running products along ``dim``."""
    input = _counted(input, dtype)
    axis = axis_of(dim, input.value.ndim)
    if not input.value.ndim:
        return labelled(_alone(input, dtype), "CumprodBackward0")
    return _cast(apply(CUMPROD, (input,), {"axis": axis}), dtype)


def _alone(input: Tensor, dtype: Any) -> Any:
    """The running sum or product of one number: a copy, of whole numbers and truth values in int64."""
    return input.to(np.int64) if dtype is None and input.value.dtype.kind in "bi" else input.clone()


def _running(name: str, arg: Any) -> Any:
    """The running extreme along a dimension, and its places."""

    @function
    @called(name, f"The running {name[3:]}imum along a dimension, and its places.")
    def fun(input: Tensor, dim: int) -> Any:
        value = input.value
        axis, places = axis_of(dim, value.ndim), _first()
        if value.ndim:
            best = arg.accumulate(value, axis)
            here = np.arange(value.shape[axis]).reshape(vector_shape(axis, value.ndim))
            places = np.maximum.accumulate(np.where((value == best) | (value != value), here, 0), axis)  # each NaN is one
        where = wrap(places)
        flat = tied(flat_places(places, axis, value.shape), where)
        return RESULTS[name](apply(ops.GATHER, (input, flat), {"shape": value.shape}, f"{name.title()}Backward0"), where)

    return fun


cummax, cummin = _running("cummax", np.maximum), _running("cummin", np.minimum)


@function
def msort(input: Tensor) -> Any:
    """The elements in order along the first dimension."""
    return sort(input, 0).values


@function
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along ``dim``, of what is joined to both ends, too."""
    if not input.value.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    parts = [x for x in (prepend, input, append) if x is not None]
    x = input if len(parts) == 1 or not n else shapes.cat(parts, dim)
    if not n:
        return labelled(input.clone(), "CopyBackwards")
    less = FUNCTIONS["logical_xor" if x.value.dtype == bool else "sub"]
    for _ in range(builtins.min(n, x.value.shape[dim])):
        size = x.value.shape[dim]
        x = less(x.narrow(dim, 1, size - 1), x.narrow(dim, 0, size - 1))
    return x


@function
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Any:
    """``exp(input)``, scaled so that it sums to one along ``dim``."""
    input = _cast(input, dtype)
    return apply(ops.SOFTMAX, (input,), {"axis": axis_of(dim, input.value.ndim)})


@function
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Any:
    """``log(softmax(input))``, without overflow."""
    input = _cast(input, dtype)
    return apply(ops.LOG_SOFTMAX, (input,), {"axis": axis_of(dim, input.value.ndim)})


for _name, _fun in {"cumsum": cumsum, "cumprod": cumprod}.items():
    in_place(_name, _fun)
FUNCTIONS.update(var_mean=var_mean, std_mean=std_mean)
