"""More of torch's names for what moves elements: compositions of the operations in ``shapes`` and ``indexing``."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from symgrad.eager import ops
from symgrad.eager.core import (
    AS_COMPLEX,
    AS_REAL,
    AS_STRIDED,
    NONE,
    Fused,
    Tensor,
    apply,
    axis_of,
    called,
    labelled,
    lead,
    look,
    method,
    methods,
    plain,
    renew,
    requires,
    strided,
    tied,
    whole,
    wrap,
    writable,
)
from symgrad.eager.creation import complex, meshgrid
from symgrad.eager.dtypes import Size, title
from symgrad.eager.indexing import (
    check_places,
    check_slices,
    common,
    flat_index,
    gather,
    getitem,
    index_select,
    narrow,
    scatter,
    scatter_add,
    source_of,
)
from symgrad.eager.modes import mode
from symgrad.eager.pointwise import FUNCTIONS, function, in_place
from symgrad.eager.shapes import (
    cat,
    diagonal,
    expand,
    flip,
    in_shape,
    permute,
    reshape,
    several,
    sizes,
    split,
    squeeze,
    stack,
    t,
    transpose,
    unbind,
    unsqueeze,
)
from symgrad.eager.values import clone
from symgrad.ops.core import Traced
from symgrad.ops.reduction import along, vector_shape

# -- joining and splitting -----------------------------------------------------------------------------------------


def _at_least(name: str, widen: Any) -> Any:
    @called(name, f"Tensors with at least {name[8]} dimensions.")
    def fun(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return widen(tensors[0])
        return tuple([widen(x) for x in several(tensors)])

    FUNCTIONS[name] = fun
    return fun


def _wide(x: Tensor) -> Any:
    return x if x.value.ndim > 1 else unsqueeze(x, 0) if x.value.ndim else reshape(x, (1, 1))


def _deep(x: Tensor) -> Any:
    return x if x.value.ndim > 2 else unsqueeze(_wide(x), -1) if x.value.ndim else reshape(x, (1, 1, 1))


atleast_1d = _at_least("atleast_1d", lambda x: x if x.value.ndim else reshape(x, (1,)))
atleast_2d, atleast_3d = _at_least("atleast_2d", _wide), _at_least("atleast_3d", _deep)


def hstack(tensors: Any) -> Any:
    """Joined from left to right."""
    parts = atleast_1d(list(tensors))
    return cat(parts, 0 if parts[0].value.ndim == 1 else 1)


def vstack(tensors: Any) -> Any:
    """Joined from top to bottom."""
    return cat(atleast_2d(list(tensors)), 0)


def column_stack(tensors: Any) -> Any:
    """Joined from left to right, vectors as columns."""
    return hstack([x if x.value.ndim > 1 else reshape(x, (x.value.size, 1)) for x in tensors])


def dstack(tensors: Any) -> Any:
    """Joined along the third dimension."""
    return cat(atleast_3d(list(tensors)), 2)


@function
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> Any:
    """Pieces along ``dim``: so many, about equal; or cut at these places."""
    if not input.value.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = axis_of(dim, input.value.ndim)
    n = input.value.shape[axis]
    given = indices_or_sections.tolist() if isinstance(indices_or_sections, Tensor) else indices_or_sections
    if isinstance(given, int):
        if given < 1:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        each, more = divmod(n, given)
        cuts = [0, *itertools.accumulate([each + (i < more) for i in range(given)])]
        ranges = list(itertools.pairwise(cuts))
    else:
        ranges = [slice(a, b).indices(n)[:2] for a, b in itertools.pairwise([0, *given, n])]
    return tuple([getitem(input, along(axis, slice(a, max(a, b)))) for a, b in ranges])


def _splitter(name: str, least: int, axis: Any) -> None:
    @function
    @called(name, "Pieces of equal size, or cut at these places.")
    def fun(input: Tensor, indices_or_sections: Any) -> Any:
        if input.value.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
                f"{input.value.ndim} dimensions!"
            )
        dim = axis(input.value.ndim)
        n = input.value.shape[dim]
        if isinstance(indices_or_sections, int) and (indices_or_sections < 1 or n % indices_or_sections):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {n} is not divisible "
                f"by the split_size {indices_or_sections}!"
            )
        return tensor_split(input, indices_or_sections, dim)


_splitter("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1)
_splitter("vsplit", 2, lambda ndim: 0)
_splitter("dsplit", 3, lambda ndim: 2)


@function
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Pieces of these sizes."""
    return split(input, list(split_sizes), dim)


def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of one, zeros elsewhere."""
    blocks = atleast_2d(list(tensors))
    for i, x in enumerate(blocks):
        if x.value.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {x.value.ndim} dimensions"
            )
    width, left, rows = sum([x.value.shape[1] for x in blocks]), 0, []
    for x in blocks:
        right = width - left - x.value.shape[1]
        rows.append(apply(ops.PAD, (x,), {"widths": ((0, 0), (left, right)), "value": 0}))
        left += x.value.shape[1]
    return labelled(cat(rows), "BlockDiagBackward0")


def cartesian_prod(*tensors: Any) -> Any:
    """All ways to pick one element of each vector."""
    given = several(tensors)
    if len(given) == 1:
        return given[0]
    return stack([reshape(x, (-1,)) for x in meshgrid(*given)], 1)


@function
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """All ways to pick ``r`` elements of a vector, in order."""
    if input.value.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.value.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return wrap(np.empty(0, input.value.dtype))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(input.value.size), r)), np.int64).reshape(-1, r)
    return stack([index_select(input, 0, wrap(column)) for column in places.T], 1)


@function
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Any:
    """Each element several times in a row; of ``repeats`` alone, each place as often as the number there says."""
    if repeats is None:
        return wrap(np.repeat(np.arange(input.value.size), input.value))
    x = input if dim is not None else reshape(input, (-1,))
    axis = axis_of(dim or 0, x.value.ndim)
    if np.min(plain(repeats), initial=0) < 0:
        raise RuntimeError("Repeats must be non-negative" if isinstance(repeats, int) else "repeats can not be negative")
    if isinstance(repeats, int):
        shape = x.value.shape
        apart = expand(unsqueeze(x, axis + 1), (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
        return labelled(reshape(clone(apart), (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])), "ViewBackward0")
    return index_select(x, axis, wrap(np.repeat(np.arange(x.value.shape[axis]), plain(repeats))))


# -- turning, diagonals, windows -----------------------------------------------------------------------------------


@function
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turned by ``k`` right angles, from the first of ``dims`` to the second."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.value.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.value.ndim}")
    a, b = (axis_of(dim, input.value.ndim) for dim in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turned = (clone, lambda x: transpose(flip(x, b), a, b), lambda x: flip(x, a, b), lambda x: flip(transpose(x, a, b), b))
    return labelled(turned[k % 4](input), "Rot90Backward0")


@function
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with these diagonals, zeros elsewhere."""
    *lead, n = input.value.shape
    ndim = len(lead) + 2
    a, b = axis_of(dim1, ndim), axis_of(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape = list(lead)
    for axis in sorted((a, b)):
        shape.insert(axis, n + abs(offset))
    places = np.diagonal(flat_index(tuple(shape)), offset, a, b)
    return apply(ops.PUT, (input, places), {"shape": tuple(shape)}, "DiagEmbedBackward0")


@function
def diagflat(input: Tensor, offset: int = 0) -> Any:
    """The matrix whose diagonal holds all elements."""
    return diag_embed(reshape(input, (-1,)), offset)


def _windows(x: Any, axis: int, size: int, step: int) -> Any:
    if not x.ndim:
        return x.reshape(1)[:size]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis, writeable=x.flags.writeable)
    return windows[along(axis, slice(None, None, step))]


UNFOLD = Fused(
    _windows,
    lambda g, y, x, axis, size, step: ops.ADD_UP(g, _windows(flat_index(np.shape(x)), axis, size, step), shape=np.shape(x)),
    family="linear",
    name="unfold",
    alias=True,
)


@method
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Any:
    """Windows of ``size`` along a dimension, ``step`` apart, as a new last dimension."""
    axis = axis_of(dimension, self.value.ndim)
    longest = self.value.shape[axis] if self.value.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > longest:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {longest} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return apply(UNFOLD, (self,), {"axis": axis, "size": size, "step": step})


@function
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """The elements of a tensor's memory that lie ``stride`` apart, from ``storage_offset`` on."""
    shape, steps, value = sizes((size,)), sizes((stride,)), whole(input)
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if any([step < 0 for step in steps]):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    traced = isinstance(value, Traced)  # as if it lay there in order
    memory = flat_index(value.shape) if traced else value if input.base is None else input.base.value
    start = (0 if traced else input.storage_offset()) if storage_offset is None else storage_offset
    low, high = np.lib.array_utils.byte_bounds(memory)
    kind = memory.dtype if traced else value.dtype  # of parts of complex numbers, memory holds the whole ones
    unit = kind.itemsize
    needed = (start + sum([(n - 1) * step for n, step in zip(shape, steps, strict=True)]) + 1) * unit if 0 not in shape else 0
    if needed > high - low:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {start}, and itemsize {unit} requiring a "
            f"storage size of {needed} are out of bounds for storage of size {high - low}"
        )
    row = np.lib.stride_tricks.as_strided(memory, ((high - low) // memory.itemsize,), (memory.itemsize,)).view(kind)
    found = np.lib.stride_tricks.as_strided(row[start:], shape, [step * unit for step in steps])
    if traced:
        return apply(AS_STRIDED, (input, found), {"shape": value.shape})
    tensor = wrap(found)
    look((tensor,), input)
    if mode.grad and requires(input):
        renew(input)
        lead(tensor, strided(found, value, input.node or input))
    return labelled(tensor, "AsStridedBackward0")


@function
def view_as_real(input: Tensor) -> Any:
    """Complex numbers as pairs of real ones, in the same memory."""
    if input.value.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return apply(AS_REAL, (input,))


@function
def view_as_complex(input: Tensor) -> Any:
    """Pairs of real numbers as complex ones."""
    value = input.value
    if not value.ndim or value.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if not isinstance(value, Traced):
        *strides, last = [n // value.itemsize for n in value.strides]
        if last != 1:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        if any([step % 2 for step in strides]):
            raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return apply(AS_COMPLEX, (input,))


def polar(abs: Tensor, angle: Tensor) -> Any:
    """Complex numbers of these sizes and angles."""
    return labelled(complex(abs * angle.cos(), abs * angle.sin()), "PolarBackward0")


# -- copies --------------------------------------------------------------------------------------------------------


def _copied(name: str, fun: Any, label: str | None = None) -> None:
    label = label or f"{name.title().replace('_', '')}Backward0_copy"

    @called(f"{name}_copy", f"``{name}``, in memory of its own.")
    def copied(input: Tensor, *args: Any, **options: Any) -> Any:
        result = fun(input, *args, **options)
        if isinstance(result, tuple):
            return tuple([labelled(clone(part), label) for part in result])
        several = name == "squeeze" and len(args)
        return labelled(clone(result), f"SqueezeBackward{1 + isinstance(args[0], tuple)}_copy" if several else label)

    FUNCTIONS[f"{name}_copy"] = copied


for _name, _fun in {
    "alias": lambda x: x, "diagonal": diagonal, "expand": expand, "permute": permute, "squeeze": squeeze, "t": t,
    "transpose": transpose, "unbind": unbind, "unfold": unfold, "unsqueeze": unsqueeze, "view": reshape,
    "as_strided": as_strided, "split_with_sizes": split_with_sizes,
}.items():  # fmt: skip
    _copied(_name, _fun)
_copied("narrow", narrow, "NarrowCopyBackward0")
methods(narrow_copy=FUNCTIONS["narrow_copy"])


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once here."""
    return input


resolve_neg = resolve_conj


@method
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number on the diagonal; with ``wrap`` it goes on below in tall matrices."""
    shape, steps = self.value.shape, self.stride()
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    writable(self)
    size, step, start = min(shape), sum(steps), self.storage_offset()
    as_strided(self, (size,), (step,), start).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        rest = -(-self.value.size // (shape[1] + 1)) - size
        as_strided(self, (rest,), (step,), start + steps[0] * (shape[1] + 1)).fill_(fill_value)
    return self


@function
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """The places of what is not zero: so many, ``fill_value`` where there are fewer."""
    places = np.argwhere(input.value)[:size]
    return wrap(np.concatenate((places, np.full((size - len(places), input.value.ndim), fill_value))))


# -- putting into a copy -------------------------------------------------------------------------------------------


def _into(input: Tensor, src: Tensor, look_at: Any, label: str) -> Any:
    """A copy of ``input`` with ``src`` where ``look_at`` looks."""
    places = look_at(flat_index(input.value.shape))
    if places.shape != src.value.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.value.shape)}, slice size = "
            f"{list(places.shape)}"
        )
    return apply(ops.SCATTER, (input, src, places), NONE, label)


@function
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Any:
    """A copy, with ``src`` at one place along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    return _into(input, src, lambda places: places[along(axis, index)], "SelectScatterBackward0")


@function
def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """A copy, with ``src`` in a slice along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    return _into(input, src, lambda places: places[along(axis, slice(start, end, step))], "SliceScatterBackward0")


@function
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A copy, with ``src`` where ``as_strided`` would look."""
    places = as_strided(wrap(flat_index(input.value.shape)), size, stride, storage_offset).value
    return _into(input, src, lambda _: places, "AsStridedScatterBackward0")


@function
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy, with ``src`` on the diagonal."""
    return _into(input, src, lambda places: np.diagonal(places, offset, dim1, dim2), "DiagonalScatterBackward0")


@function
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Any:
    """A copy, with the elements of ``source``, one after the other, where the mask is set."""
    if mask.value.dtype != bool:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype " + title(mask.value.dtype))
    if source.value.dtype != input.value.dtype:
        kinds = f"{title(input.value.dtype)} and {title(source.value.dtype)}"
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got{kinds}")
    shape = common(mask, input)
    input = input if input.value.shape == shape else expand(input, shape)
    places = np.flatnonzero(np.broadcast_to(mask.value, shape))
    if source.value.size < places.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return apply(ops.SCATTER, (input, reshape(source, (-1,))[: places.size], places), NONE, "MaskedScatterBackward0")


@function
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """A copy, with elements put, or added, at places of the flattened tensor."""
    n = input.value.size
    check_places("put_", index.value)
    if index.value.size != source.value.size:
        counts = f"source.numel() = {source.value.size}, index.numel() = {index.value.size}"
        raise IndexError(f"put_(): Expected source and index to have the same number of elements, but got {counts}")
    if source.value.dtype != input.value.dtype:
        kinds = f"self.dtype = {title(input.value.dtype)} and source.dtype = {title(source.value.dtype)}"
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got {kinds}")
    outside = index.value[(index.value < -n) | (index.value >= n)]
    if outside.size:
        raise IndexError(f"out of range: tried to access index {outside[0]} on a tensor of {n} elements.")
    places = (index.value % max(n, 1)).reshape(-1)
    op = ops.SCATTER_ADD if accumulate else ops.SCATTER
    return apply(op, (input, reshape(source, (-1,)), places), NONE, "PutBackward0")


def _table(index: Tensor, axis: int, shape: tuple[int, ...]) -> Tensor:
    """A vector of places along an axis as a table of places for ``scatter``."""
    return tied(np.broadcast_to(index.value.reshape(vector_shape(axis, len(shape))), shape), index)


@function
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    """A copy, with slices of ``source`` at places along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    if source.value.dtype != input.value.dtype:
        dtypes = f"(self) {title(input.value.dtype)} and (source) {title(source.value.dtype)}"
        raise RuntimeError(f"index_copy_(): self and source expected to have the same dtype, but got {dtypes}")
    if source.value.ndim not in (0, input.value.ndim) and input.value.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.value.ndim}), destination dimensionality ({input.value.ndim})"
        )
    check_places("index_copy_", index.value)
    count = source.value.shape[axis] if source.value.ndim else 1
    if index.value.size != count:
        raise IndexError(f"index_copy_(): Number of indices ({index.value.size}) should be equal to source.size(dim) ({count})")
    own, other = (x.value.shape[:axis] + x.value.shape[axis + 1 :] for x in (input, source))
    if own != other:
        shown = (f"slice shape: {' '.join(map(str, shape))} at dimension {axis}" for shape in (own, other))
        raise RuntimeError(
            f"index_copy_(): Source/destination tensor must have same slice shapes. Destination {' and source '.join(shown)}."
        )
    table = _table(index, axis, source.value.shape)
    return labelled(scatter(input, axis, table, source), "IndexCopyBackward0")


@function
def index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Any:
    """Slices of ``source`` that go to the same place along a dimension are multiplied, averaged, …"""
    axis = axis_of(dim, input.value.ndim)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    check_slices("index_reduce", input, axis, index, source)
    table = _table(index, axis, source.value.shape)
    return labelled(scatter_reduce(input, axis, table, source, reduce, include_self=include_self), "IndexReduceBackward0")


@function
def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Any:
    """Elements of ``src`` that go to the same place are summed, multiplied, averaged, or the extreme one is taken."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin.")
    value = input.value
    src = source_of(input, dim, index, src)
    if reduce in ("sum", "mean"):
        result = scatter_add(input if include_self else scatter(input, dim, index, 0), dim, index, src)
        if reduce == "mean":
            start = np.full(value.shape, include_self, value.dtype)
            counts = scatter_add(wrap(start), dim, index, wrap(np.ones(index.value.shape, value.dtype)))
            counts.value = np.maximum(counts.value, 1)
            result = result / counts if value.dtype.kind in "fc" else FUNCTIONS["div"](result, counts, rounding_mode="floor")
        return labelled(result, "ScatterReduceBackward0")
    rows = _met(input, dim, index, src, _unit(reduce, value.dtype), include_self)
    return labelled(FUNCTIONS[reduce](rows, -1).to(value.dtype), "ScatterReduceBackward0")


def _unit(reduce: str, kind: Any) -> Any:
    """What changes no product, or no extreme one."""
    if reduce == "prod":
        return 1
    if kind.kind in "fc":
        return -np.inf if reduce == "amax" else np.inf
    if kind == bool:
        return reduce == "amin"
    return getattr(np.iinfo(kind), "min" if reduce == "amax" else "max")


def _met(input: Tensor, dim: int, index: Tensor, src: Tensor, unit: Any, include_self: bool) -> Any:
    """The elements that meet at each place, along one more dimension, filled up with units."""
    shape, n, m = input.value.shape, input.value.size, src.value.size
    places = gather(wrap(flat_index(shape)), dim, index).value if shape else np.zeros(m, np.int64)
    order = np.argsort(places, axis=None, kind="stable")
    targets = places.reshape(-1)[order]
    counts = np.bincount(targets, minlength=n)
    table = np.full((n, counts.max(initial=0) + 1), n + m)
    table[:, 0] = np.where(include_self | (counts == 0), np.arange(n), n + m)
    table[targets, 1 + np.arange(m) - (np.cumsum(counts) - counts)[targets]] = n + order
    everything = cat([reshape(input, (-1,)), reshape(src, (-1,)), wrap(np.array([unit], input.value.dtype))])
    return apply(ops.GATHER, (everything, table.reshape(*shape, table.shape[1])), {"shape": (n + m + 1,)})


# -- places --------------------------------------------------------------------------------------------------------


@function
def argwhere(input: Tensor) -> Any:
    """The places of what is not zero, one a row."""
    return FUNCTIONS["nonzero"](input)


def unravel_index(indices: Tensor, shape: Any) -> Any:
    """Places of the flattened tensor as places along each dimension."""
    form = sizes((shape,)) if not isinstance(shape, int) else (shape,)
    return tuple([wrap(np.asarray(part)) for part in np.unravel_index(indices.value, form)])


@function
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements without those that equal the one before; or the slices along ``dim``."""
    axis = 0 if dim is None else axis_of(dim, input.value.ndim)
    value = input.value.reshape(-1) if dim is None else np.moveaxis(input.value, axis, 0)
    differ = (value[1:] != value[:-1]).any(tuple(range(1, value.ndim)))
    starts = np.flatnonzero(np.concatenate(([True], differ))) if len(value) else np.zeros(0, np.int64)
    found = [np.moveaxis(value[starts], 0, axis)]
    if return_inverse:
        inverse = np.concatenate(([0], np.cumsum(differ))) if len(value) else np.zeros(0, np.int64)
        found.append(inverse.reshape(input.value.shape if dim is None else -1))
    if return_counts:
        found.append(np.diff(np.append(starts, len(value))))
    return tuple([wrap(part) for part in found]) if len(found) > 1 else wrap(found[0])


@method
def sum_to_size(self: Tensor, *size: Any) -> Any:
    """Summed over dimensions, so that broadcasting would lead back."""
    shape = sizes(size)
    lead = self.value.ndim - len(shape)
    if lead < 0 or any([m not in (1, n) for m, n in zip(shape, self.value.shape[lead:], strict=True)]):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(self.value.shape)}}}.")
    axes = [i + lead for i, (m, n) in enumerate(zip(shape, self.value.shape[lead:], strict=True)) if m == 1 != n]
    result = self.sum(axes, keepdim=True) if axes else self
    return result.sum(tuple(range(lead))) if lead else result


methods(
    as_strided_=lambda self, size, stride, storage_offset=None: in_shape(
        self, lambda: labelled(as_strided(self, size, stride, storage_offset), "AsStridedBackward1")
    )
)
for _fun in (index_copy, index_reduce, scatter_reduce, put, masked_scatter):
    in_place(_fun.__name__, _fun)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that all of these are broadcast to."""
    given = [sizes((shape,)) if not isinstance(shape, int) else (shape,) for shape in shapes]
    found = [1] * max([len(shape) for shape in given], default=0)
    for i, shape in enumerate(given):
        for at in range(-1, -1 - len(shape), -1):
            if shape[at] != 1 != found[at] != shape[at]:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[at]} at {at}! Mismatching argument at index {i} had "
                    f"{shape}; but expected shape should be broadcastable to {found}"
                )
            found[at] = shape[at] if found[at] == 1 else found[at]
    return Size(found)


FUNCTIONS.update(
    hstack=hstack, vstack=vstack, row_stack=vstack, column_stack=column_stack, dstack=dstack, block_diag=block_diag,
    cartesian_prod=cartesian_prod, polar=polar, resolve_conj=resolve_conj, resolve_neg=resolve_neg, unravel_index=unravel_index,
    broadcast_shapes=broadcast_shapes,
)  # fmt: skip
methods(resolve_conj=resolve_conj, resolve_neg=resolve_neg)
