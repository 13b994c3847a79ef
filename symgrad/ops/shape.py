"""Rearranging: shapes, axes, joining, splitting, repeating, padding, diagonals; questions about shapes and dtypes."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from symgrad import runtime
from symgrad.errors import NotDifferentiable
from symgrad.ops.core import REGISTRY, A, Op, Sample, Traced, composite, linear, refused, static
from symgrad.ops.create import UNASKED, contains_traced
from symgrad.ops.index import EVERY, SCATTER, Hole, Slice, array_of, listed, take_at
from symgrad.ops.reduction import along, vector_shape

# -- questions that shapes and dtypes answer ------------------------------------------------------------------------

static(
    *(np.shape, np.size, np.broadcast_shapes),
    *(np.einsum_path, np.diag_indices_from, np.tril_indices_from, np.triu_indices_from),
)
static(np.ndim, np.result_type, np.can_cast, np.common_type, np.iscomplexobj, np.isrealobj, sizes=False)
refused("depends on the value; use np.result_type", np.min_scalar_type)


# -- new shapes -----------------------------------------------------------------------------------------------------


def _ravel_args(a: Any, order: str = "C") -> dict[str, Any]:
    if np.ndim(a) < 2:
        return {"a": a}
    if order == "K":  # as the elements lie in memory
        a, order = array_of(a), "C"
        a = np.transpose(a, sorted(range(np.ndim(a)), key=lambda axis: -abs(a.strides[axis])))
    return {"a": a, "order": _known_order(a, order)}


def _known_order(a: Any, order: str) -> str:
    return ("F" if array_of(a).flags.fnc else "C") if order == "A" else order


def _reshape_args(a: Any, shape: Any = None, order: str = "C", newshape: Any = None) -> dict[str, Any]:
    return {"a": a, "shape": newshape if shape is None else shape, "order": _known_order(a, order)}


@linear(
    np.reshape,
    lanes="moved",
    prepare=_reshape_args,
    instead={"copy": lambda a, copy, **options: np.reshape(a, **options).copy() if copy else np.reshape(a, **options)},
    fun=lambda a, shape, order="C": np.reshape(a, shape, order=order),
    alias=True,
    samples=[
        Sample(A(3, 4), (2, 6)),
        Sample(A(3, 4), -1),
        Sample(A(2, 3, 4), (4, -1)),
        Sample(A(2, 3, 4), (6, 4), order="F"),
        Sample(A(), (1, 1)),
        Sample(A(1), ()),
        Sample(A(0, 3), (3, 0)),
    ],
)
def _reshape(g: Any, y: Any, a: Any, shape: Any = None, order: Any = "C") -> Any:
    return np.reshape(g, np.shape(a), order=order)


@linear(
    np.ravel,
    lanes="moved",
    prepare=_ravel_args,
    alias=True,
    samples=[
        Sample(A(3, 4)),
        Sample(A(2, 3, 4), order="F"),
        Sample(A()),
        Sample(A(5), "K"),
        Sample(A(0, 2)),
        Sample(A(1)),
    ],
)
def _ravel(g: Any, y: Any, a: Any, order: Any = "C") -> Any:
    return np.reshape(g, np.shape(a), order=order)


linear(
    np.squeeze,
    lambda g, y, a, axis=None: np.reshape(g, np.shape(a)) if axis is None else EXPAND_DIMS(g, axis=axis),
    lanes="moved",
    alias=True,
    samples=[
        Sample(A(1, 3, 1)),
        Sample(A(1, 3, 1), axis=-1),
        Sample(A(1, 3, 1), axis=(0, 2)),
        Sample(A(1, 1)),
        Sample(A(3, 4)),
        Sample(A(1, 0), axis=0),
    ],
)


def _with_ones(a: Any, axis: Any) -> Any:
    """``np.expand_dims``, by way of an index where that costs less."""
    if type(a) is np.ndarray and type(axis) is int and 0 <= axis <= a.ndim:
        return a[along(axis, None)]
    return np.expand_dims(a, axis)


linear(
    np.expand_dims,
    lambda g, y, a, axis=None: np.squeeze(g, axis),
    fun=_with_ones,
    lanes="moved",
    alias=True,
    samples=[
        Sample(A(3), 0),
        Sample(A(3, 4), -1),
        Sample(A(3, 4), axis=(0, 2)),
        Sample(A(), 0),
        Sample(A(1, 3), 1),
        Sample(A(0), 1),
    ],
)
EXPAND_DIMS: Any = REGISTRY[np.expand_dims]
linear(
    np.broadcast_to,
    lambda g, y, array, shape=None: g,
    prepare=lambda array, shape, subok=False: {"array": array, "shape": shape},
    prepared=("subok",),
    lanes="moved",
    alias=True,
    samples=[
        Sample(A(3), (4, 3)),
        Sample(A(3, 1), (3, 4)),
        Sample(A(), (2, 3)),
        Sample(A(1, 3, 1), (2, 2, 3, 4)),
        Sample(A(3), (3,)),
        Sample(A(1), (0,)),
        Sample(A(), 3),
    ],
)


@composite(np.broadcast_arrays, samples=[Sample(A(3), A(2, 1)), Sample(A(), A(2)), Sample(A(2, 3))])
def _broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    arrays = [array_of(a) for a in args]
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    return tuple(a if np.shape(a) == shape else np.broadcast_to(a, shape) for a in arrays)


def _at_least(key: Any, reshape: Any) -> None:
    def fun(*arys: Any) -> Any:
        arrays = tuple(reshape(a) for a in arys)
        return arrays[0] if len(arrays) == 1 else arrays

    composite(key, samples=[*(Sample(A(*(2, 3, 4, 2)[:n])) for n in range(5)), Sample(A(), A(2, 3))])(fun)


def _atleast_3d(a: Any) -> Any:
    missing = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(np.ndim(a))
    return a if missing is None else np.expand_dims(a, missing)


_at_least(np.atleast_1d, lambda a: a if np.ndim(a) else np.expand_dims(a, 0))
_at_least(np.atleast_2d, lambda a: a if np.ndim(a) > 1 else np.expand_dims(a, (0,) if np.ndim(a) else (0, 1)))
_at_least(np.atleast_3d, _atleast_3d)


# -- the order of axes and elements ---------------------------------------------------------------------------------


@linear(
    np.transpose,
    prepare=lambda a, axes: {"a": a, "axes": None if axes is None else tuple(np.atleast_1d(axes).tolist())},
    prepared=("axes",),
    lanes="moved",
    alias=True,
    samples=[
        Sample(A(5), 0),
        Sample(A(3, 4)),
        Sample(A(2, 3, 4)),
        Sample(A(2, 3, 4), (1, 2, 0)),
        Sample(A(2, 3, 4), axes=(-1, 0, 1)),
        Sample(A(5)),
        Sample(A()),
        Sample(A(0, 3)),
    ],
)
def _transpose(g: Any, y: Any, a: Any, axes: Any = None) -> Any:
    if axes is None:
        return np.transpose(g)
    back = [i % len(axes) for i in axes]
    return np.transpose(g, tuple(back.index(i) for i in range(len(back))))


linear(
    np.matrix_transpose,
    lambda g, y, x: np.matrix_transpose(g),
    lanes="moved",
    alias=True,
    samples=[Sample(A(*shape)) for shape in ((3, 4), (2, 3, 4), (1, 3), (0, 2), (1, 1), (3, 3, 2, 1))],
)
composite(np.linalg.matrix_transpose, samples=[Sample(A(3, 4)), Sample(A(2, 3, 4))])(lambda x, /: np.matrix_transpose(x))
linear(
    np.swapaxes,
    lambda g, y, a, axis1=None, axis2=None: np.swapaxes(g, axis1, axis2),
    lanes="moved",
    alias=True,
    samples=[
        Sample(A(3, 4), 0, 1),
        Sample(A(2, 3, 4), -1, 0),
        Sample(A(2, 3, 4), axis1=1, axis2=2),
        Sample(A(1), 0, 0),
        Sample(A(3, 1), -1, -2),
        Sample(A(0, 2), 1, 0),
    ],
)
linear(
    np.moveaxis,
    lambda g, y, a, source=None, destination=None: np.moveaxis(g, destination, source),
    lanes="moved",
    alias=True,
    samples=[
        Sample(A(3, 4), 0, 1),
        Sample(A(2, 3, 4), 0, -1),
        Sample(A(2, 3, 4), -1, 0),
        Sample(A(2, 3, 4), (0, 1), (-1, 0)),
        Sample(A(1, 3, 1), 2, 1),
        Sample(A(0, 2), 0, 1),
    ],
)


@composite(np.rollaxis, samples=[Sample(A(2, 3, 4), 2), Sample(A(2, 3, 4), 0, 3), Sample(A(2, 3, 4), -2, -1)])
def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    ndim = np.ndim(a)
    axis, start = normalize_axis_index(axis, ndim), start + ndim if start < 0 else start
    return np.moveaxis(a, axis, start - (axis < start))


linear(
    np.flip,
    lambda g, y, m, axis=None: np.flip(g, axis),
    lanes="moved",
    alias=True,
    samples=[
        Sample(A(5)),
        Sample(A(3, 4)),
        Sample(A(3, 4), axis=-1),
        Sample(A(2, 3, 4), axis=(0, 2)),
        Sample(A()),
        Sample(A(0, 2), 0),
    ],
)
composite(np.flipud, samples=[Sample(A(3, 4)), Sample(A(3))])(lambda m: np.flip(m, 0))
composite(np.fliplr, samples=[Sample(A(3, 4)), Sample(A(2, 3, 4))])(lambda m: np.flip(m, 1))
linear(
    np.rot90,
    lambda g, y, m, k=1, axes=(0, 1): np.rot90(g, -k, axes),
    lanes="moved",
    alias=True,
    samples=[
        Sample(A(3, 4)),
        Sample(A(3, 4), 2),
        Sample(A(3, 4), k=-1),
        Sample(A(2, 3, 4), 3, (1, 2)),
        Sample(A(2, 3, 4), axes=(2, 0)),
        Sample(A(3, 1), 4),
    ],
)


@linear(
    np.roll,
    lanes="moved",
    samples=[
        Sample(A(5), 2),
        Sample(A(3, 4), 1),
        Sample(A(3, 4), -2, axis=1),
        Sample(A(3, 4), (1, 2), axis=(0, 1)),
        Sample(A(3, 4), 1, axis=(0, -1)),
        Sample(A(1), 3),
        Sample(A(0), 1),
    ],
)
def _roll(g: Any, y: Any, a: Any, shift: Any = None, axis: Any = None) -> Any:
    return np.roll(g, -shift if np.ndim(shift) == 0 else tuple(-s for s in shift), axis)


linear(
    np.copy,
    lambda g, y, a: g,
    lanes="same",
    prepare=lambda a, order="K", subok=False: {"a": a if order == "K" else array_of(a).copy(order)},
    samples=[
        Sample(A(3, 4)),
        Sample(A(3), order="C"),
        Sample(A(2, 3), order="F"),
        Sample(A()),
        Sample(A(0, 2)),
        Sample(A(1)),
        Sample(A(2, 1, 2)),
    ],
)
if hasattr(np, "astype"):  # NumPy 2.1
    composite(np.astype, samples=[Sample(A(3), np.complex128), Sample(A(2, 3), complex)])(
        lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype, copy=copy)
    )


# -- joining --------------------------------------------------------------------------------------------------------


def _joined(arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    if axis is None:
        arrays = [a if np.ndim(a) == 0 else np.ravel(a) for a in arrays]
        kind = np.result_type(*arrays)  # in which Python's numbers give way
        arrays, axis = [np.ravel(a) if hasattr(a, "dtype") else np.ravel(a).astype(kind) for a in arrays], 0
    if dtype is not None:
        arrays = [a if hasattr(a, "dtype") else np.asarray(a) for a in arrays]
        if not all(np.can_cast(a.dtype, dtype, casting) for a in arrays):
            raise TypeError(f"Cannot cast the arrays to {np.dtype(dtype)} according to the rule {casting!r}")
        arrays = [a.astype(dtype) for a in arrays]
    return tuple(arrays), {"axis": axis} if axis != 0 else {}


@linear(
    np.concatenate,
    lanes="moved",
    variadic=True,
    bind=_joined,
    samples=[
        Sample([A(3), A(2)]),
        Sample((A(2, 3), A(1, 3), A(2, 3)), 0),
        Sample([A(2, 3), A(2, 1)], axis=1),
        Sample([A(2, 3, 1), A(2, 3, 4)], axis=-1),
        Sample([A(2, 3), A(4)], axis=None),
        Sample([A(0), A(3)]),
        Sample([A(3)]),
        Sample([A(3, kind="int"), A(2)]),
    ],
)
def _concatenate(position: int, g: Any, y: Any, *arrays: Any, axis: int = 0) -> Any:
    axis %= np.ndim(y)
    first = sum([a.shape[axis] for a in arrays[:position]])
    last = first + arrays[position].shape[axis] if position + 1 < len(arrays) else None
    return g[along(axis, slice(first or None, last))]


@linear(
    np.stack,
    lanes="moved",
    variadic=True,
    bind=_joined,
    samples=[
        Sample([A(3), A(3)]),
        Sample((A(2, 3), A(2, 3), A(2, 3)), 1),
        Sample([A(2, 3), A(2, 3)], axis=-1),
        Sample([A(), A()]),
        Sample([A(2, 1)], axis=2),
        Sample([A(0, 3), A(0, 3)], axis=-2),
    ],
)
def _stack(position: int, g: Any, y: Any, *arrays: Any, axis: int = 0) -> Any:
    return g[along(axis % np.ndim(y), position)]


def _dtype(dtype: Any, casting: str = "same_kind") -> dict[str, Any]:
    return {} if dtype is None else {"dtype": dtype, **({} if casting == "same_kind" else {"casting": casting})}


@composite(np.vstack, samples=[Sample([A(3), A(3)]), Sample([A(2, 3), A(3)]), Sample((A(), A()))])
def _vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    ndims = set(map(np.ndim, tup))
    if ndims in ({0}, {1}):
        rows = np.stack(tup, **_dtype(dtype, casting))
        return rows if ndims == {1} else np.expand_dims(rows, 1)
    return np.concatenate([np.atleast_2d(a) for a in tup], **_dtype(dtype, casting))


@composite(np.hstack, samples=[Sample([A(3), A(2)]), Sample([A(2, 3), A(2, 1)]), Sample([A(), A(2)])])
def _hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    if not any(map(np.ndim, tup)):
        return np.stack(tup, **_dtype(dtype, casting))
    arrays = [np.atleast_1d(a) for a in tup]
    return np.concatenate(arrays, 0 if np.ndim(arrays[0]) == 1 else 1, **_dtype(dtype, casting))


@composite(np.dstack, samples=[Sample([A(3), A(3)]), Sample([A(2, 3), A(2, 3, 2)]), Sample([A(), A()])])
def _dstack(tup: Any) -> Any:
    return np.concatenate([np.atleast_3d(a) for a in tup], 2)


@composite(np.column_stack, samples=[Sample([A(3), A(3)]), Sample([A(3, 2), A(3)]), Sample([A(), A()])])
def _column_stack(tup: Any) -> Any:
    return np.concatenate([a if np.ndim(a) > 1 else np.reshape(a, (-1, 1)) for a in tup], 1)


@composite(
    np.block,
    samples=[
        Sample([A(2), A(3)]),
        Sample([[A(2, 2), A(2, 1)], [A(1, 2), A(1, 1)]]),
        Sample([[A(), A(2)]]),
        Sample([[A(2, 2)], [A(2)]]),
        Sample(A(3)),
    ],
)
def _block(arrays: Any) -> Any:
    def depth(part: Any) -> int:
        return 1 + depth(part[0]) if isinstance(part, list) else 0

    def widest(part: Any) -> int:
        return max(map(widest, part)) if isinstance(part, list) else np.ndim(part)

    levels = depth(arrays)
    ndim = max(widest(arrays), levels)

    def join(part: Any, level: int) -> Any:
        if isinstance(part, list):
            return np.concatenate([join(p, level + 1) for p in part], ndim - levels + level)
        missing = ndim - np.ndim(part)
        return np.expand_dims(part, tuple(range(missing))) if missing else part

    return np.copy(arrays) if levels == 0 else join(arrays, 0)


@composite(np.append, samples=[Sample(A(3), A()), Sample(A(2, 3), A(2)), Sample(A(2, 3), A(2, 1), axis=1)])
def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, values, axis = np.ravel(arr), np.ravel(values), 0
    return np.concatenate((arr, values), axis)


@composite(np.delete, samples=[Sample(A(4), 1), Sample(A(3, 4), [0, -1], axis=1), Sample(A(3, 4), slice(2), axis=0)])
def _delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    arr, axis = (np.ravel(arr), 0) if axis is None else (arr, axis)
    places = np.arange(np.shape(arr)[axis])
    if not contains_traced(obj):
        return np.take(arr, np.delete(places, obj), axis)
    obj = array_of(obj)
    if obj.dtype == bool and obj.shape != places.shape:
        raise ValueError(f"a mask of what to delete must have the length of the axis, {places.size}")
    gone = np.flatnonzero(obj) if obj.dtype == bool else take_at(places, obj)  # which notices what is out of bounds
    return take_at(arr, np.setdiff1d(places, gone, assume_unique=True), axis)


@composite(
    np.insert,
    samples=[
        Sample(A(4), 1, A()),
        Sample(A(3), -1, A(2)),
        Sample(A(2, 3), 1, A(2), axis=1),
        Sample(A(2, 3), [0, 2], A(2, 2), axis=1),
        Sample(A(2, 3), [0], A(2, 2), axis=1),
        Sample(A(2, 2), [1, 3, 1], A(3)),
        Sample(A(4), slice(1, 3), A()),
        Sample(A(2, 3), 3, 0.5, axis=-1),
        Sample(A(3), [0, 1], A(1, 2)),
        Sample(A(2, 3), [1], A(1, 2, 1), axis=1),
    ],
)
def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    arr, axis = (np.ravel(arr), 0) if axis is None else (array_of(arr), normalize_axis_index(axis, np.ndim(arr)))
    shape = list(np.shape(arr))
    n = shape[axis]
    places = np.arange(n)[obj] if isinstance(obj, slice) else array_of(obj)
    places = np.flatnonzero(places) if places.dtype == bool else places
    if np.any((places < -n) | (places > n)):
        raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {n}")
    values = array_of(values)
    values = values if values.dtype == arr.dtype else values.astype(arr.dtype)
    if np.size(places) == 1:
        values = np.reshape(values, (1,) * (len(shape) - np.ndim(values)) + np.shape(values))
        values = np.moveaxis(values, 0, axis) if np.ndim(places) == 0 else values
        shape[axis] = np.shape(values)[axis]
    else:
        shape[axis] = np.size(places)
    if (more := np.ndim(values) - len(shape)) > 0:  # axes of 1 in front, as where one writes into an array
        values = np.reshape(values, np.shape(values)[more:])
    both = np.concatenate((arr, np.broadcast_to(values, tuple(shape))), axis)
    before = np.broadcast_to(np.where(places < 0, places + n, places) - 0.5, (shape[axis],))
    return np.take(both, np.argsort(np.concatenate((np.arange(n), before)), kind="stable"), axis)


@composite(
    np.meshgrid,
    samples=[
        Sample(A(3), A(2)),
        Sample(A(3), A(2), indexing="ij"),
        Sample(A(3), A(2), A(4), sparse=True),
        Sample(A(3)),
        Sample(A(), A(2)),
    ],
)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    ndim = len(xi)
    xi = tuple(map(array_of, xi))
    places = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        places[:2] = 1, 0
    grids = [np.reshape(x, (1,) * i + (np.size(x),) + (1,) * (ndim - i - 1)) for x, i in zip(xi, places, strict=True)]
    if not sparse:
        grids = list(np.broadcast_arrays(*grids))
    return tuple([grid.copy() for grid in grids] if copy else grids)


# -- splitting: slices ----------------------------------------------------------------------------------------------


@composite(
    np.array_split,
    samples=[Sample(A(5), 3), Sample(A(4, 5), [1, 3], axis=1), Sample(A(4), [2, 1, 9]), Sample(A(3, 4), 2, -1)],
)
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    axis = normalize_axis_index(axis, np.ndim(ary))
    n = np.shape(ary)[axis]
    if np.ndim(indices_or_sections):
        cuts = [0, *map(int, indices_or_sections), n]
    else:
        size, extra = divmod(n, int(indices_or_sections))
        cuts = [i * size + min(i, extra) for i in range(int(indices_or_sections) + 1)]
    return [ary[along(axis, slice(*ends))] for ends in itertools.pairwise(cuts)]


@composite(np.split, samples=[Sample(A(4), 2), Sample(A(4, 6), 3, axis=1), Sample(A(5), [1, -1]), Sample(A(4), 1)])
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    if np.ndim(indices_or_sections) == 0 and np.shape(ary)[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return np.array_split(ary, indices_or_sections, axis)


composite(np.vsplit, samples=[Sample(A(4, 2), 2), Sample(A(4, 2), [1])])(
    lambda ary, indices_or_sections: np.split(ary, indices_or_sections, 0)
)
composite(np.hsplit, samples=[Sample(A(2, 4), 2), Sample(A(4), [1])])(
    lambda ary, indices_or_sections: np.split(ary, indices_or_sections, min(np.ndim(ary) - 1, 1))
)
composite(np.dsplit, samples=[Sample(A(2, 1, 4), 2)])(lambda ary, indices_or_sections: np.split(ary, indices_or_sections, 2))
if hasattr(np, "unstack"):  # NumPy 2.1
    composite(np.unstack, samples=[Sample(A(3)), Sample(A(2, 3), axis=-1)])(
        lambda x, /, *, axis=0: tuple(x[along(normalize_axis_index(axis, np.ndim(x)), i)] for i in range(np.shape(x)[axis]))
    )


# -- repeating and padding ------------------------------------------------------------------------------------------


def scatter(g: Any, index: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Zeros of ``shape`` with ``g`` added at ``index``, which is made of arrays, ``:`` and ``...``."""
    arrays = [part for part in index if not isinstance(part, (slice, type(...)))]
    holes = map(Hole, itertools.count())
    spec = [EVERY if isinstance(part, slice) else part if part is ... else next(holes) for part in index]
    return SCATTER(g, *arrays, spec=tuple(spec), shape=shape)


@linear(
    np.tile,
    lanes="moved",
    samples=[
        Sample(A(3), 2),
        Sample(A(3), (2, 2)),
        Sample(A(2, 3), 2),
        Sample(A(2, 3), (2, 1)),
        Sample(A(2, 3), (2, 1, 3)),
        Sample(A(), 3),
        Sample(A(1), (2, 1)),
        Sample(A(2), 0),
    ],
)
def _tile(g: Any, y: Any, A: Any, reps: Any = None) -> Any:
    shape = np.shape(A)
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    ndim = max(len(reps), len(shape))
    reps, lengths = (1,) * (ndim - len(reps)) + reps, (1,) * (ndim - len(shape)) + shape
    sizes: list[int] = []
    copies: list[int] = []
    for times, length in zip(reps, lengths, strict=True):
        if times != 1:
            copies.append(len(sizes))
            sizes.append(times)
        sizes.append(length)
    return np.reshape(np.sum(np.reshape(g, tuple(sizes)), axis=tuple(copies)), shape) if copies else g


def _repeats(a: Any, repeats: Any, axis: int | None = None) -> dict[str, Any]:
    times = tuple(int(n) for n in repeats) if np.ndim(repeats) else int(repeats)
    return {"a": a, "repeats": times[0] if isinstance(times, tuple) and len(times) == 1 else times, "axis": axis}


@linear(
    np.repeat,
    lanes="moved",
    prepare=_repeats,
    samples=[
        Sample(A(3), 2),
        Sample(A(2, 3), 2),
        Sample(A(2, 3), 3, axis=-1),
        Sample(A(3, 2), [1, 0, 2], axis=0),
        Sample(A(2, 2), [1, 2, 0, 1]),
        Sample(A(), 3),
        Sample(A(), 2, axis=0),
        Sample(A(1, 3), [2], axis=0),
        Sample(A(3), 0),
    ],
)
def _repeat(g: Any, y: Any, a: Any, repeats: Any = None, axis: int | None = None) -> Any:
    shape = np.shape(a)
    line, axis = ((math.prod(shape),), 0) if axis is None or not shape else (shape, axis % len(shape))
    if isinstance(repeats, int):
        return np.reshape(np.sum(np.reshape(g, (*line[: axis + 1], repeats, *line[axis + 1 :])), axis=axis + 1), shape)
    return np.reshape(scatter(g, along(axis, np.repeat(np.arange(line[axis]), repeats)), line), shape)


@composite(np.resize, samples=[Sample(A(3), 7), Sample(A(2, 3), (2, 2)), Sample(A(), (2, 3)), Sample(A(4), (2, 2))])
def _resize(a: Any, new_shape: Any) -> Any:
    if not np.size(a):
        return np.zeros_like(a, shape=new_shape)
    return np.take(np.ravel(a), np.resize(np.arange(np.size(a)), new_shape))


ADD_WINDOWS = Op(
    runtime.add_windows,
    "linear",
    (
        lambda g, y, windows, shape, axes, steps=None: np.lib.stride_tricks.sliding_window_view(
            g, np.shape(windows)[len(shape) :], axis=axes
        )[tuple([slice(None, None, step) for step in steps or ()])],
    ),
    name="runtime.add_windows",
    samples=[
        Sample(A(3, 2), shape=(4,), axes=(0,)),
        Sample(A(2, 3, 4), shape=(2, 6), axes=(1,)),
        Sample(A(2, 1, 3, 2), shape=(4, 2), axes=(0, 1)),
        Sample(A(3, 2, 2), shape=(5,), axes=(0, 0)),
        Sample(A(3, 4), shape=(8,), axes=(0,), steps=(2,)),
        Sample(A(2, 2, 3, 2), shape=(6, 3), axes=(0, 1), steps=(3, 1)),
        Sample(A(2, 2, 2), shape=(2, 5), axes=(1,), steps=(1, 3)),
    ],
)


def _windows(g: Any, y: Any, x: Any, window_shape: Any = None, axis: Any = None) -> Any:
    """Each element gets back what all windows that it is in say of it."""
    ndim = np.ndim(x)
    axes = range(ndim) if axis is None else axis if np.ndim(axis) else (axis,)
    return ADD_WINDOWS(g, shape=np.shape(x), axes=tuple([i % ndim for i in axes]))


linear(
    np.lib.stride_tricks.sliding_window_view,
    _windows,
    name="np.lib.stride_tricks.sliding_window_view",
    prepare=lambda x, window_shape, axis=None, *, subok=False, writeable=False: {
        "x": x,
        "window_shape": tuple(window_shape) if np.ndim(window_shape) else window_shape,
        "axis": tuple(axis) if np.ndim(axis) else axis,
    },
    alias=True,
    samples=[
        Sample(A(5), 3),
        Sample(A(3, 4), (2, 2)),
        Sample(A(3, 4), 2, axis=1),
        Sample(A(3, 4), 3, 0),
        Sample(A(2, 3, 4), (2, 3), axis=(2, 1)),
        Sample(A(5), (2, 2), axis=(0, 0)),
        Sample(A(3), 3),
    ],
)


def _as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """``as_strided`` where it shows steps, windows or repetitions along the axes of ``x``: as a view of that kind."""
    own, sizes = x.strides, np.shape(x)
    shape = sizes if shape is None else tuple(map(operator.index, shape))
    steps = own if strides is None else tuple(map(operator.index, strides))
    along: list[list[tuple[int, int, int]]] = [[] for _ in own]  # how far a new axis goes along an old one, and its step
    for k, (n, step) in enumerate(zip(shape, steps, strict=True)):
        if n > 1 and step:
            fits = [axis for axis in range(len(own)) if sizes[axis] > 1 and 0 < own[axis] <= step and step % own[axis] == 0]
            axis = max(fits, key=own.__getitem__, default=0)
            along[axis].append(((n - 1) * (step // own[axis]), k, step // own[axis]))
            if not fits or len(along[axis]) > 2 or sum([far for far, *_ in along[axis]]) >= sizes[axis]:
                raise NotDifferentiable("as_strided is followed where it shows windows, steps or repetitions along axes alone")
    ends = [sorted(places, reverse=True)[1:] for places in along]
    windows = {axis: (far + 1, k, step) for axis, places in enumerate(ends) for far, k, step in places}
    if windows:
        x = np.lib.stride_tricks.sliding_window_view(x, [n for n, *_ in windows.values()], axis=tuple(windows))
    firsts = [max(places, default=None) for places in along]
    index = [0 if first is None else slice(None, first[0] + 1, first[2]) for first in firsts]
    found = x[(*index, *[slice(None, None, step) for *_, step in windows.values()])]
    order = [first[1] for first in firsts if first is not None] + [k for _, k, _ in windows.values()]
    found = np.transpose(found, np.argsort(order))
    return np.broadcast_to(np.expand_dims(found, [k for k in range(len(shape)) if k not in order]), shape)


UNASKED[np.lib.stride_tricks.as_strided] = _as_strided


MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _pad_args(array: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0, **rest: Any) -> Any:
    ndim = np.ndim(array)
    if isinstance(pad_width, dict):
        pad_width = {axis % ndim: width if np.ndim(width) else (width, width) for axis, width in pad_width.items()}
        pad_width = tuple(pad_width.get(i, (0, 0)) for i in range(ndim))
    if np.ndim(pad_width):
        pad_width = tuple(tuple(map(operator.index, w)) if np.ndim(w) else operator.index(w) for w in pad_width)
    if mode == "linear_ramp" or mode in _STATISTICS:
        for axis, widths in enumerate(np.broadcast_to(pad_width, (ndim, 2)).tolist()):
            options = {name: _by_axis(option, ndim)[axis] for name, option in rest.items()}
            array = _pad_along(array, axis, widths, mode, **options)
        return {"array": array, "pad_width": 0}
    if rest.pop("reflect_type", "even") == "odd":
        for axis, widths in enumerate(np.broadcast_to(pad_width, (ndim, 2)).tolist()):
            array = _reflected(array, axis, widths, mode)
        return {"array": array, "pad_width": 0}
    if mode not in MODES:
        given = repr(mode) if isinstance(mode, str) else "a function"
        raise NotDifferentiable(f"np.pad with {given} for mode= has no derivative rule; use np.concatenate")
    if ndim == 0:  # nothing is padded
        return {"array": array, "pad_width": pad_width}
    constant_values = listed(constant_values)
    if contains_traced(constant_values) and np.ndim(constant_values):
        for axis, widths in enumerate(np.broadcast_to(pad_width, (ndim, 2)).tolist()):
            array = _pad_along(array, axis, widths, mode, _by_axis(constant_values, ndim)[axis])
        return {"array": array, "pad_width": 0}
    if isinstance(constant_values, Traced):
        inside = np.pad(np.ones(np.shape(array), bool), pad_width)
        return {
            "array": np.where(inside, np.pad(array, pad_width), array_of(constant_values).astype(array.dtype)),
            "pad_width": 0,
        }
    if np.any(np.not_equal(constant_values, 0)):
        frame = np.pad(np.zeros(np.shape(array), array.dtype), pad_width, constant_values=constant_values)
        return {"array": np.pad(array, pad_width) + frame, "pad_width": 0}
    return {"array": array, "pad_width": pad_width, "mode": mode, **rest}


_STATISTICS: dict[str, Any] = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}


def _by_axis(option: Any, ndim: int) -> list[Any]:
    """For each axis, the two values of an option of ``np.pad`` for its two ends."""
    if not np.ndim(option := listed(option)):
        return [(option, option)] * ndim
    option = np.broadcast_to(option, (ndim, 2))
    return [(option[i, 0], option[i, 1]) for i in range(ndim)]


def _pad_along(
    array: Any, axis: int, widths: list[int], mode: str, end_values: Any = (0, 0), stat_length: Any = (None, None)
) -> Any:
    """Padded along one axis by what is at its ends; NumPy, too, takes one axis after the other."""
    ends = []
    for back, width, end, n in zip((1, -1), widths, end_values, stat_length, strict=True):
        n = np.shape(array)[axis] if n is None else min(operator.index(n), np.shape(array)[axis])
        if n < 0:
            raise ValueError("index can't contain negative values")
        edge = array[along(axis, slice(0, 1) if back > 0 else slice(-1, None))]
        if mode == "constant":
            ends.append(np.broadcast_to(end, (*edge.shape[:axis], width, *edge.shape[axis + 1 :])))
        elif mode == "linear_ramp":
            ends.append(_ramp(array, edge, end, axis, width, back))
        else:
            some = array[along(axis, slice(0, n) if back > 0 else slice(np.shape(array)[axis] - n, None))]
            found = _STATISTICS[mode](some, axis=axis, keepdims=True)
            ends.append(np.repeat(np.rint(found) if array.dtype.kind in "iu" else found, width, axis))
    return np.concatenate((ends[0].astype(array.dtype), array, ends[1].astype(array.dtype)), axis)


def _ramp(array: Any, edge: Any, end: Any, axis: int, width: int, back: int) -> Any:
    """From ``end`` to ``edge`` in ``width`` steps of which the last is left out, or back."""
    if array.dtype.kind in "biu":  # rounded down, so that the last bit counts
        row = np.linspace(end, np.squeeze(edge, axis), width, endpoint=False, dtype=array.dtype, axis=axis)
        return np.flip(row, axis) if back < 0 else row
    way = np.reshape(np.arange(width)[::back] / max(width, 1), vector_shape(axis, np.ndim(array)))
    return end + (edge - end) * way


def _reflected(array: Any, axis: int, widths: list[int], mode: str) -> Any:
    """Padded along one axis by its reflection in the points at its ends."""
    if max(widths) > max(np.shape(array)[axis] - (mode == "reflect"), 1):
        raise NotDifferentiable("np.pad by more than the array itself has no derivative rule with reflect_type='odd'")
    pad: Any = np.pad
    width = tuple([tuple(widths) if i == axis else (0, 0) for i in range(np.ndim(array))])
    found = 2 * pad(array, width, "edge") - pad(array, width, mode)
    return found if found.dtype == array.dtype else found.astype(array.dtype)


@linear(
    np.pad,
    lanes="moved",
    prepare=_pad_args,
    samples=[
        Sample(A(3), 1),
        Sample(A(2, 3), (1, 2)),
        Sample(A(2, 3), ((0, 1), (2, 0)), constant_values=1.5),
        Sample(A(2, 3), ((1,), (2,))),
        *(Sample(A(3, 4), ((2, 1), (0, 3)), mode=mode) for mode in MODES[1:]),
        *(Sample(A(3), 7, mode=mode) for mode in MODES[1:]),
        Sample(A(1, 3), 1, mode="edge"),
        Sample(A(0), 2),
        Sample(A(2, 3), (1, 2), constant_values=A()),
        Sample(A(2, 3), (1, 2), constant_values=A(2, 2)),
        Sample(A(2, 3), {-1: (1, 2), 0: 1}) if np.__version__ >= "2.3" else Sample(A(2), 1),
        Sample(A(2, 3), (1, 2), mode="mean"),
        Sample(A(4), (1, 2), mode="mean", stat_length=2),
        Sample(A(3, 4), ((2, 1), (0, 3)), mode="reflect", reflect_type="odd"),
        Sample(A(3), (3, 1), mode="symmetric", reflect_type="odd"),
        Sample(A(2, 3), (3, 2), mode="linear_ramp", end_values=A()),
        Sample(A(3, 2), ((3, 2), (0, 1)), mode="linear_ramp"),
        Sample(A(2, 3), (3, 2), mode="linear_ramp", end_values=A(1, 2)),
        Sample(A(3, 4), (1, 2), mode="median", stat_length=((2, 1), (3, 2))),
    ],
)
def _pad(g: Any, y: Any, array: Any, pad_width: Any = None, mode: Any = "constant") -> Any:
    shape = np.shape(array)
    if not shape:
        return g
    widths = np.broadcast_to(pad_width, (len(shape), 2)).tolist()
    if mode == "constant":
        return g[tuple(slice(before or None, -after or None) for before, after in widths)]
    once = mode == "reflect"  # the element at the end, which it does not repeat
    if mode == "edge" or all([max(sides) <= n - once for n, sides in zip(shape, widths, strict=True)]):
        for axis, (before, after) in enumerate(widths):
            g = _folded(g, axis, shape[axis], before, after, mode) if before + after and shape[axis] else g
        return g
    return scatter(g, np.ix_(*(np.pad(np.arange(n), w, mode) for n, w in zip(shape, widths, strict=True))), shape)


def _folded(g: Any, axis: int, n: int, before: int, after: int, mode: str) -> Any:
    """What padding has taken from elements along an axis, added to them: each end of ``g`` lies over one part of the middle."""
    every = (slice(None),) * axis
    total = g[(*every, slice(before, before + n))]
    shape, once = np.shape(total), int(mode == "reflect")
    for end, width, first in ((slice(0, before), before, True), (slice(before + n, None), after, False)):
        part = g[(*every, end)]
        if mode == "edge":
            part, start = np.sum(part, axis=axis, keepdims=True), 0 if first else n - 1
        elif mode == "wrap":
            start = n - width if first else 0
        else:
            part, start = np.flip(part, axis), once if first else n - width - once
        if width:
            spec = (*[EVERY] * axis, Slice(start, start + np.shape(part)[axis], None))
            total = total + SCATTER(part, spec=spec, shape=shape)
    return total


# -- diagonals and triangles ----------------------------------------------------------------------------------------


def on_diagonal(g: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Zeros like ``a`` with ``g`` on the diagonals that ``np.diagonal`` would take from it."""
    shape = np.shape(a)
    rows, cols = shape[axis1], shape[axis2]
    if len(shape) == 2 and rows == cols > abs(offset):
        return np.diag(g, offset if axis1 % 2 == 0 else -offset)
    i = np.arange(max(0, min(rows + min(offset, 0), cols - max(offset, 0))))
    axes = (axis1 % len(shape), axis2 % len(shape))
    rest = tuple(n for k, n in enumerate(shape) if k not in axes)
    flat = scatter(g, (..., i - min(offset, 0), i + max(offset, 0)), (*rest, rows, cols))
    return np.moveaxis(flat, (-2, -1), axes)


linear(
    np.diagonal,
    lambda g, y, a, offset=0, axis1=0, axis2=1: on_diagonal(g, a, offset, axis1, axis2),
    lanes="some",
    alias=True,
    samples=[
        Sample(A(3, 3)),
        Sample(A(3, 3), -1, 1, 0),
        Sample(A(3, 4), 2),
        Sample(A(4, 3), -1),
        Sample(A(2, 3, 4), axis1=2, axis2=0),
        Sample(A(2, 3, 3), 1, -2, -1),
        Sample(A(1, 3)),
        Sample(A(2, 2), 5),
        Sample(A(2, 3), 5),
    ],
)
linear(
    np.diag,
    lambda g, y, v, k=0: np.diag(g, k) if np.ndim(v) == 1 else on_diagonal(g, v, k),
    lanes="some",
    alias=True,
    samples=[
        Sample(A(3)),
        Sample(A(3), 1),
        Sample(A(2), -2),
        Sample(A(3, 3)),
        Sample(A(3, 3), -1),
        Sample(A(2, 4), 1),
        Sample(A(4, 2), -3),
        Sample(A(0)),
    ],
)
composite(np.diagflat, samples=[Sample(A(3), -1), Sample(A(2, 2)), Sample(A())])(lambda v, k=0: np.diag(np.ravel(v), k))


@linear(
    np.trace,
    lanes="some",
    samples=[
        Sample(A(3, 3)),
        Sample(A(3, 4), 1),
        Sample(A(4, 3), offset=-2),
        Sample(A(2, 3, 4)),
        Sample(A(2, 3, 3), 0, 1, 2),
        Sample(A(2, 3, 4), axis1=-1, axis2=0),
        Sample(A(2, 2), 4),
    ],
)
def _trace(g: Any, y: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    length = np.shape(np.diagonal(np.empty(np.shape(a), bool), offset, axis1, axis2))
    return on_diagonal(np.broadcast_to(g[..., None] if np.ndim(g) else g, length), a, offset, axis1, axis2)


composite(np.linalg.diagonal, samples=[Sample(A(3, 4)), Sample(A(2, 3, 3), offset=1)])(
    lambda x, /, *, offset=0: np.diagonal(x, offset, -2, -1)
)
composite(np.linalg.trace, samples=[Sample(A(3, 4)), Sample(A(2, 3, 3), offset=1)])(
    lambda x, /, *, offset=0, dtype=None: np.trace(x, offset, -2, -1, **_dtype(dtype))
)
_triangles = [
    Sample(A(3, 3)),
    Sample(A(3, 4), 1),
    Sample(A(4, 3), k=-1),
    Sample(A(2, 3, 3)),
    Sample(A(3)),
    Sample(A(0, 2)),
]
linear(np.tril, lambda g, y, m, k=0: np.tril(g, k), lanes="some", samples=_triangles)
linear(np.triu, lambda g, y, m, k=0: np.triu(g, k), lanes="some", samples=_triangles)
