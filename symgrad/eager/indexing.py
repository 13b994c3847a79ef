"""Indexing: what picks elements by places and masks, and writes to them."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np

from symgrad.eager import ops
from symgrad.eager.core import (
    NAMES,
    NONE,
    Label,
    Tensor,
    apply,
    as_tensor_of,
    assign,
    axis_of,
    chained,
    labelled,
    method,
    methods,
    numbers,
    plain,
    rewrite,
    tied,
    unlike,
    variant,
    whole,
    wrap,
)
from symgrad.eager.dtypes import number_in, title
from symgrad.eager.modes import mode
from symgrad.eager.pointwise import FUNCTIONS, function, in_place
from symgrad.eager.shapes import expand, expanded, reshape
from symgrad.eager.values import clone
from symgrad.ops import index
from symgrad.ops.core import Traced
from symgrad.ops.reduction import along, vector_shape
from symgrad.tracing.tracer import Tracer

NAMES.update({
    index.SETITEM.key: "IndexPutBackward0", index.GETITEM.key: "IndexBackward0", index.INDEX_ADD.key: "IndexAddBackward0",
    np.take_along_axis: "GatherBackward0",
})  # fmt: skip

# -- what places may be --------------------------------------------------------------------------------------------

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_COUNTED = "{0}_(): Expected dtype int32/int64 for index but got: {1}"
_LONG = "{0}(): Expected a long tensor for index, but got {1}"
# torch's functions whose places are int64, or also int32, and what they say of others
_WHOLE: dict[str, tuple[Any, type[Exception], str]] = {
    "gather": ((_INT64, _INT32), RuntimeError, "gather(): Expected dtype int32/int64 for index"),
    "scatter": ((_INT64, _INT32), RuntimeError, "scatter(): Expected dtype int32/int64 for index"),
    "index_select": ((_INT64, _INT32), RuntimeError, "index_select(): Expected dtype int32 or int64 for index"),
    "index_add": ((_INT64, _INT32), RuntimeError, _COUNTED),
    "index_reduce": ((_INT64, _INT32), RuntimeError, _COUNTED),
    "index_fill": ((_INT64,), IndexError, "index_fill_(): Expected dtype int64 for index."),
    "index_copy_": ((_INT64,), RuntimeError, _LONG),
    "put_": ((_INT64,), RuntimeError, _LONG),
    "take": ((_INT64,), RuntimeError, _LONG),
    "take_along_dim": ((_INT64,), RuntimeError, "torch.take_along_dim(): dtype of indices should be Long but got {1}"),
}
_A_VECTOR = "{0}_(): Index is supposed to be a vector, but got dim: {2} with type: {1} and size: {3}"
# those whose places are a vector, or one place, and what they say of more dimensions
_VECTORS: dict[str, tuple[type[Exception], str]] = {
    "index_select": (IndexError, "index_select(): Index is supposed to be a vector"),
    "index_add": (IndexError, _A_VECTOR),
    "index_reduce": (IndexError, _A_VECTOR),
    "index_fill": (RuntimeError, "Index has to be a vector/scalar"),
    "index_copy_": (IndexError, "index_copy_(): Index should have dimension 1 or 0 (got {2})"),
}


def check_places(name: str, index: Any) -> None:
    """Raise for places whose dtype or number of dimensions torch's function of this name refuses."""
    kinds, error, text = _WHOLE[name]
    if index.dtype in kinds:
        if index.ndim < 2 or name not in _VECTORS:
            return
        error, text = _VECTORS[name]
    raise error(text.format(name, title(index.dtype), index.ndim, list(index.shape)))


def check_slices(name: str, x: Tensor, axis: int, index: Tensor, source: Tensor) -> None:
    """Raise where ``source`` is not one slice of ``x`` along an axis for each place."""
    check_places(name, index.value)
    if source.value.dtype != x.value.dtype:
        dtypes = f"self ({title(x.value.dtype)}) and source ({title(source.value.dtype)})"
        raise RuntimeError(f"{name}_(): {dtypes} must have the same scalar type")
    count = source.value.shape[axis] if source.value.ndim else 1
    if index.value.size != count:
        raise RuntimeError(
            f"{name}_(): Number of indices ({index.value.size}) should be equal to source.size(dim): ({count}), for dim: {axis}"
        )
    shapes = [y.value.shape[:axis] + y.value.shape[axis + 1 :] for y in (x, source)]
    if shapes[0] != shapes[1] or (x.value.ndim == 0 and source.value.ndim):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(x.value.shape)} source.shape = {list(source.value.shape)}"
        )


# -- by indices ----------------------------------------------------------------------------------------------------


def _index_of(x: Tensor, key: Any) -> tuple[tuple[Any, ...], list[Any], Label]:
    """The static part of an index, its arrays (or tensors, writes to which are noticed), and torch's name of the operation."""
    parts: list[Any] = []
    arrays: list[Any] = []
    steps: list[str] = []
    if _is_many(key):
        warnings.warn(_NOT_A_TUPLE, stacklevel=4)
        key = tuple(key)
    keys = tuple(map(_of_bytes, key)) if isinstance(key, tuple) else (_of_bytes(key),)
    shape, axis = x.value.shape, 0
    for part in keys:
        if part.__class__ is slice:
            first, last, step = part.start, part.stop, part.step
            if not (first.__class__ in _PLAIN and last.__class__ in _PLAIN and step.__class__ in _PLAIN):
                first, last, step = [end if end is None else int(end) for end in (first, last, step)]
            if step is not None and step <= 0:
                raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
            parts.append(index.Slice(first, last, step))
            whole_of_it = not first and step in (None, 1) and (last is None or (axis < len(shape) and last == shape[axis]))
            if not whole_of_it or part is key:
                steps.append("SliceBackward0")
            axis += 1
            continue
        if isinstance(part, Tensor) and part.value.ndim == 0 and part.value.dtype.kind in "iu":
            part = part if isinstance(part.value, Traced) else int(part.value)
        if isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)):
            parts.append(int(part))
            steps.append("SelectBackward0")
            axis += 1
        elif part is None:
            parts.append(part)
            steps.append("UnsqueezeBackward0")
        elif part is Ellipsis:
            parts.append(part)
            axis = len(shape) - sum([_width(later) for later in keys[len(parts) :]])
        else:
            array = part.value if isinstance(part, Tensor) else _index_array(part)
            if array.dtype not in _PLACES:
                if array.size:
                    raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
                array = array.astype(np.int64)
            parts.append(index.Hole(len(arrays)))
            arrays.append(part if isinstance(part, Tensor) and part.value is array else array)
            if array.dtype == bool and not array.ndim:
                steps.append("UnsqueezeBackward0")
            axis += array.ndim if array.dtype == bool else 1
    if axis > len(shape):
        if not shape and isinstance(keys[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        if not shape and not arrays:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
                "0-dim tensor to a number"
            )
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    if arrays:
        steps.append("IndexBackward0")
    elif Ellipsis not in parts:
        parts.append(Ellipsis)  # so that NumPy gives an array that shares memory, not a number
    return tuple(parts), arrays, chained(steps) if steps else "AliasBackward0"


_PLAIN = {int, type(None)}
_PLACES = {_INT64, _INT32, np.dtype(bool)}  # bytes are masks


_NOT_A_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], which "
    "will result either in an error or a different result"
)


def _is_many(key: Any) -> bool:
    """Whether a list is as many indices, as torch takes it (and as NumPy did): one with lists, tensors, slices … in it."""
    if not isinstance(key, list) or len(key) >= 32:
        return False
    return any(part is None or part is Ellipsis or isinstance(part, (list, tuple, range, str, slice, Tensor)) for part in key)


def _index_array(part: Any) -> Any:
    """The array of an index that is neither a tensor, a whole number nor a slice."""
    if isinstance(part, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(part, (float, complex)):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
            f"(got {type(part).__name__})"
        )
    return np.asarray(part)


def _of_bytes(part: Any) -> Any:
    """Bytes are a mask, to torch."""
    if (part.__class__ is Tensor or part.__class__ is np.ndarray) and part.dtype == np.uint8:
        warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", stacklevel=4)
        return part != 0
    return part


def _width(part: Any) -> int:
    """How many dimensions a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    array = part.value if isinstance(part, Tensor) else part
    return array.ndim if getattr(array, "dtype", None) == bool else 1


def _numbers_first(spec: Any, arrays: Any) -> tuple[Any, Any] | None:
    """The numbers of an index, and the rest of it, where that comes to other dimensions than both at once do.

    Torch selects by numbers first; NumPy counts them among the arrays, and puts what arrays that lie apart pick in front.
    """
    held = [plain(arrays[part.number]) if type(part) is index.Hole else part for part in spec]
    picks = [i for i, part in enumerate(held) if type(spec[i]) is index.Hole and (part.ndim or part.dtype == bool)]
    numbers = [i for i, part in enumerate(held) if i not in picks and (isinstance(part, int) or type(spec[i]) is index.Hole)]
    if not (picks and numbers) or _together(sorted(picks + numbers)):
        return None
    left = [i for i in range(len(spec)) if i not in numbers]
    if not _together([left.index(i) for i in picks]):
        return None
    first: list[Any] = []
    for i, part in enumerate(held):
        if i in numbers or part is Ellipsis:
            first.append(wrap(part) if type(spec[i]) is index.Hole else part)
        else:
            first += [slice(None)] * _width(part)
    ends = [(part.start, part.stop, part.step) if type(part) is index.Slice else None for part in spec]
    rest = [slice(*end) if (end := ends[i]) else arrays[spec[i].number] if i in picks else held[i] for i in left]
    return tuple(first), tuple(rest)


def _together(places: list[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


def getitem(self: Tensor, key: Any) -> Any:
    """``x[key]``: a view for integers and slices, a copy for index tensors and masks."""
    spec, arrays, label = _index_of(self, key)
    if arrays and (split := _numbers_first(spec, arrays)):
        return getitem(getitem(self, split[0]), split[1])
    if not isinstance(self.value, np.ndarray):
        whole(self)
    try:
        op = TAKEN if arrays and not mode.tracing else index.GETITEM
        return apply(op, (self, *arrays), {"spec": spec}, label)
    except IndexError as error:
        raise IndexError(_out_of_range(self, spec, arrays) or str(error)) from None


def _taken(x: Any, *arrays: Any, spec: Any) -> Any:
    """In order, as torch has it, where NumPy has the axes of index arrays outermost in memory."""
    y = x[index.fill(spec, arrays)]
    return y if y.flags.c_contiguous or not x.flags.c_contiguous else y.copy()


TAKEN = variant(index.GETITEM, fun=_taken)
PUT = variant(  # where a place is given more than once, each value gets what flows back from there, as in torch
    index.SETITEM,
    rules=(
        lambda g, y, base, value, *arrays, spec: index.SETITEM(g, 0.0, *arrays, spec=spec),
        lambda g, y, base, value, *arrays, spec: index.GETITEM(g, *arrays, spec=spec),
    ),
)


def _out_of_range(x: Tensor, spec: Any, arrays: Any) -> str | None:
    """Torch's words for what is wrong with an index."""
    shape, axis, arrays = x.value.shape, 0, list(map(plain, arrays))
    for i, part in enumerate(spec):
        array = arrays[part.number] if type(part) is index.Hole else None
        if part is Ellipsis:
            axis = len(shape) - sum([_width(arrays[p.number] if type(p) is index.Hole else p) for p in spec[i + 1 :]])
        elif array is not None and array.dtype == bool:
            for j, n in enumerate(array.shape):
                if n != shape[axis + j]:
                    return (
                        f"The shape of the mask {list(array.shape)} at index {j} does not match the shape of the indexed "
                        f"tensor {list(shape)} at index {axis + j}"
                    )
            axis += array.ndim
        elif part is not None:
            n = shape[axis]
            given = np.ravel(part if array is None else array) if isinstance(part, int) or array is not None else np.empty(0)
            wrong = given[(given < -n) | (given >= n)]
            if wrong.size:
                place = axis if array is None else part.number
                return f"index {wrong[0]} is out of bounds for dimension {place} with size {n}"
            axis += 1
    shapes = [list(array.shape) for array in arrays]
    if len(shapes) > 1:
        listed = ", ".join(map(str, shapes))
        return f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
    return None


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    spec, arrays, _ = _index_of(self, key)
    if arrays and (split := _numbers_first(spec, arrays)):
        setitem(getitem(self, split[0]), split[1], value)
        return
    if not isinstance(self.value, np.ndarray):
        whole(self)
    if not isinstance(value, Tensor):
        if isinstance(value, (str, list, tuple)) or value is None:
            raise TypeError(f"can't assign a {type(value).__name__} to a torch.{title(self.value.dtype)}Tensor")
        value = value if isinstance(value, Traced) or np.ndim(value) else number_in(value, self.value.dtype)
        value = np.asarray(value).astype(self.value.dtype)
    if key is Ellipsis:
        value = as_tensor_of(value)
        if not value.value.ndim:
            self.fill_(value)
        else:
            self.copy_(value if value.value.shape == self.value.shape else expand(_shortened(value), self.value.shape))
        return
    if arrays:
        kept = self.value.dtype
        if isinstance(value, Tensor) and value.value.dtype != kept:
            if value.value.size != 1 or [plain(array).dtype for array in arrays] != [bool]:
                _check_dtypes(self, value)
            number_in(numbers(value), kept)
            value = value.to(kept)
        rewrite(self, lambda x: _put(x, _shortened(value), spec, arrays, PUT), "index_put_")
        return
    if not isinstance(value, Tensor):
        value = wrap(value)
    try:
        target = self.value[index.fill(spec, ())]
    except IndexError as error:
        raise IndexError(_out_of_range(self, spec, arrays) or str(error)) from None
    if value.value.ndim > target.ndim:
        value = _shortened(value)
    expanded(value, target.shape)
    assign(self, value, "copy_", spec)


def _shortened(value: Any) -> Any:
    """Without dimensions of size 1 in front, of which an assigned value may have more than its place."""
    shape = np.shape(value)
    ones = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return value.reshape(tuple(shape[ones:])) if ones else value


def _check_dtypes(x: Tensor, values: Tensor) -> None:
    """Raise where what is put is of another dtype than the tensor."""
    if values.value.dtype != x.value.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {title(x.value.dtype)} for the destination "
            f"and {title(values.value.dtype)} for the source."
        )


@method
def index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Write ``values`` at places given by index tensors, or add them there."""
    for i, part in enumerate(indices):
        if not isinstance(part, (Tensor, np.ndarray)):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(part).__name__}")
    spec, arrays, _ = _index_of(self, tuple(indices))
    if isinstance(values, Tensor):
        _check_dtypes(self, values)
    op = index.INDEX_ADD if accumulate else PUT
    return rewrite(self, lambda x: _put(x, values, spec, arrays, op), "index_put_")


def _put(x: Tensor, values: Any, spec: Any, arrays: Any, op: Any) -> Tensor:
    """A copy of a tensor, with values written to, or added at, what an index leads to."""
    try:
        return apply(op, (x, values, *arrays), {"spec": spec}, "IndexPutBackward0")  # type: ignore[no-any-return]
    except IndexError as error:
        raise IndexError(_out_of_range(x, spec, arrays) or str(error)) from None
    except ValueError:
        place = x.value[index.fill(spec, list(map(plain, arrays)))].shape
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
            f"{list(place)}"
        ) from None


@function
def index_put(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """``index_put_``, into a copy."""
    return index_put_(clone(input), indices, values, accumulate)


@function
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """One number at places along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    n = input.value.shape[axis] if input.value.ndim else 1
    check_places("index_fill", index.value)
    if isinstance(value, Tensor) and value.value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.value.ndim} dimension(s)."
        )
    if np.iscomplexobj(plain(value)) and input.value.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    check_range(index.value, -n, n, axis)
    mask = np.isin(np.arange(n), index.value % max(n, 1))
    shaped = mask.reshape(vector_shape(axis, input.value.ndim))
    label = f"IndexFillBackward{int(isinstance(value, Tensor))}"
    return labelled(FUNCTIONS["masked_fill"](input, wrap(shaped), value), (label, 2))


methods(__getitem__=getitem, __setitem__=setitem)


@function
def narrow(input: Tensor, dim: int, start: int, length: int) -> Any:
    """A range along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    if not input.value.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    n, start = input.value.shape[axis], int(start)
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [-{n}, {n}], but got {start})")
    start += n * (start < 0)
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return labelled(getitem(input, along(axis, slice(start, start + length))), "SliceBackward0")


@function
def select(input: Tensor, dim: int, index: int) -> Any:
    """One place along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    if not -input.value.shape[axis] <= index < input.value.shape[axis]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.value.shape)} at dimension {axis}"
        )
    return getitem(input, along(axis, index))


@function
def index_select(input: Tensor, dim: int, index: Tensor) -> Any:
    """Places along a dimension."""
    axis, places = axis_of(dim, input.value.ndim), index.value
    check_places("index_select", places)
    check_range(places, 0, input.value.shape[axis] if input.value.ndim else 1)
    if not input.value.ndim:
        if places.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {places.size} value(s)")
        return apply(ops.GATHER, (input, tied(places.reshape(()), index)), {"shape": ()}, "IndexSelectBackward0")
    return apply(ops.TAKE, (input, tied(places.reshape(-1), index)), {"axis": axis})


def check_range(places: Any, least: int, end: int, axis: int | None = None) -> None:
    """Raise for places that do not exist; of traced ones nothing is known."""
    if not isinstance(places, Traced) and places.size and not (least <= places.min() and places.max() < end):
        wrong = places[(places < least) | (places >= end)].flat[0]
        which = f"index {wrong} is out of bounds for dimension {axis} with size {end}"
        raise IndexError("index out of range in self" if axis is None else which)


def common(*tensors: Tensor) -> tuple[int, ...]:
    """The shape that two tensors are broadcast to."""
    shapes = [x.value.shape for x in tensors]
    if wrong := unlike(*shapes):
        raise wrong
    return np.broadcast_shapes(*shapes)


@function
def masked_select(input: Tensor, mask: Tensor) -> Any:
    """The elements where the mask is set."""
    if mask.value.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = common(mask, input)
    both = [x if x.value.shape == shape else expand(x, shape) for x in (input, mask)]
    return labelled(getitem(*both), "MaskedSelectBackward0")


# -- by tables of places -------------------------------------------------------------------------------------------


def _check_table(name: str, of: str, x: Tensor, dim: int, table: Any) -> int:
    """The axis, unless a table of places along it is of another dtype or number of dimensions than ``x`` needs."""
    axis: int = axis_of(dim, x.value.ndim)
    if table.size:
        check_places(name, table)
        if max(table.ndim, 1) != max(x.value.ndim, 1):
            raise RuntimeError(f"Index tensor must have the same number of dimensions as {of} tensor")
    return axis


def _flat(x: Tensor, axis: int, places: Tensor) -> Any:
    """A table of places along an axis as places in the flattened tensor."""
    shape, table = x.value.shape or (1,), places.value
    if not table.size:
        return table.astype(_INT64)
    if table.dtype is not _INT64:
        table = table.astype(_INT64)
    if not within(table, shape[axis]):
        wrong = table[(table < 0) | (table >= shape[axis])][0]
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {axis} with size {shape[axis]}")
    return tied(flat_places(table, axis, shape), places)


def wider(a: tuple[int, ...], b: tuple[int, ...], axis: int | None = None) -> int | None:
    """The first dimension, other than ``axis``, in which one shape is larger than another; None where there is none."""
    return next((i for i, (n, m) in enumerate(zip(a, b, strict=False)) if n > m and i != axis), None)


def within(places: Any, size: int) -> bool:
    """Whether all places, int64, are in ``range(size)``."""
    if type(places) is Tracer:
        return bool((np.min(places) >= 0) & (np.max(places) < size))
    return bool(_highest(places.view(np.uint64), None) < size)  # no negative one either


def flat_places(places: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Places along an axis as places in the flattened array; ``places`` has that axis, or lacks it."""
    if not shape:
        return places
    if places.dtype is not _INT64:
        places = places.astype(_INT64)
    sizes = places.shape if places.ndim == len(shape) else (*places.shape[:axis], 1, *places.shape[axis:])
    others, step = (_others if places.size <= SMALL else _others.__wrapped__)(shape, axis, sizes)
    flat = places if step == 1 else places * step
    return flat if others is None else (flat.reshape(sizes) + others).reshape(places.shape)


SMALL = 4096  # places that are kept


@functools.lru_cache(maxsize=64)
def _others(shape: tuple[int, ...], axis: int, sizes: tuple[int, ...]) -> tuple[Any, int]:
    """Where the elements of a table are in the flattened tensor by their other dimensions, and the step along ``axis``."""
    flat, step, along = None, 1, 1
    for i in range(len(shape) - 1, -1, -1):  # from the last dimension on, whose neighbours lie side by side
        if i == axis:
            along = step
        else:
            at = np.arange(sizes[i]).reshape(-1, *(1,) * (len(shape) - i - 1)) * step
            flat = at if flat is None else flat + at
        step *= shape[i]
    return flat, along


def flat_index(shape: tuple[int, ...]) -> Any:
    """The place of each element in the flattened array."""
    return np.arange(math.prod(shape)).reshape(shape)


_highest: Any = np.maximum.reduce


@function
def gather(input: Tensor, dim: int, index: Tensor) -> Any:
    """Elements picked along a dimension by a table of places."""
    shape, table = input.value.shape, index.value.shape
    axis = _check_table("gather", "input", input, dim, index.value)
    if index.value.size and (at := wider(table, shape, axis)) is not None:
        raise RuntimeError(
            f"Size does not match at dimension {at} expected index {list(table)} to be no larger than self {list(shape)} "
            f"apart from dimension {axis}"
        )
    return apply(ops.GATHER, (input, _flat(input, axis, index)), {"shape": shape}, "GatherBackward0")


@function
def take(input: Tensor, index: Tensor) -> Any:
    """Elements by their places in the flattened tensor."""
    shape, places = input.value.shape, index.value
    n = input.value.size
    check_places("take", places)
    if places.size and (places.min() < -n or places.max() >= n):
        wrong = places.max() if places.max() >= n else places.min()
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {n} elements.")
    return apply(ops.GATHER, (input, places % max(n, 1)), {"shape": shape}, "TakeBackward0")


@function
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Any:
    """As ``gather``, of tensors that are expanded to each other's size in the other dimensions; or of all elements."""
    check_places("take_along_dim", indices.value)
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    shapes = [list(x.value.shape) for x in (input, indices)]
    axis = axis_of(dim, input.value.ndim)
    if len(shapes[0]) != len(shapes[1]):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shapes[0])} dimensions for input, and {len(shapes[1])} dimensions for indices"
        )
    lengths = [shape[axis] for shape in shapes]
    for shape in shapes:
        shape[axis] = 1
    common = np.broadcast_shapes(*shapes)
    both = [expand(x, (*common[:axis], n, *common[axis + 1 :])) for x, n in zip((input, indices), lengths, strict=True)]
    places = both[1].value
    return gather(both[0], axis, wrap(np.where(places < 0, places + lengths[0], places)))


@function
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """``input`` with elements of ``src`` put at places along a dimension; ``reduce``: added to, or multiplied with them."""
    src = value if src is None else src
    if src is None:
        raise TypeError("scatter() received an invalid combination of arguments: neither src nor value")
    if reduce is None:
        return _scattered(input, dim, index, src, False)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    table = src if isinstance(src, Tensor) else wrap(np.full(index.value.shape, src, input.value.dtype))
    return FUNCTIONS["scatter_reduce"](input, dim, index, table, "sum" if reduce == "add" else "prod")


@function
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Any) -> Any:
    """``input`` with elements of ``src`` added at places along a dimension."""
    if not isinstance(src, Tensor):
        raise TypeError(f"scatter_add(): argument 'src' (position 3) must be Tensor, not {type(src).__name__}")
    return _scattered(input, dim, index, src, True)


def source_of(x: Tensor, dim: int, index: Tensor, src: Any) -> Any:
    """The part of ``src`` that a table of places leads into ``x``, all of sizes and dtypes that fit; numbers as they are.

    To torch, what has no dimension has one, and a table without places fits everything.
    """
    axis, shape, of_src = _check_table("scatter", "self", x, dim, index.value), index.value.shape, isinstance(src, Tensor)
    if of_src and src.value.dtype != x.value.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if of_src and not index.value.size:
        return reshape(getitem(reshape(src, (-1,)), slice(0)), shape)
    sizes, of_one = shape or (1,), src.value.shape or (1,) if of_src else ()
    if of_src and len(of_one) != len(sizes):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    misses = of_src and wider(sizes, of_one) is not None
    if index.value.size and (misses or wider(shape, x.value.shape, axis) is not None):
        more = f" and to be no larger size than src {list(src.value.shape)}" if of_src else ""
        raise RuntimeError(
            f"Expected index {list(shape)} to be no larger than self {list(x.value.shape)} apart from dimension {axis}{more}"
        )
    if not of_src or src.value.shape == shape:
        return src
    return reshape(getitem(reshape(src, of_one), tuple([slice(n) for n in sizes])), shape)


def _scattered(x: Tensor, dim: int, places: Tensor, src: Any, adds: bool) -> Any:
    src = source_of(x, dim, places, src)
    flat = _flat(x, axis_of(dim, x.value.ndim), places)
    if not isinstance(src, Tensor):
        src = number_in(src, x.value.dtype)
    op, label = (ops.SCATTER_ADD, "ScatterAddBackward0") if adds else (ops.SCATTER, "ScatterBackward0")
    return apply(op, (x, src, flat), NONE, label if adds or isinstance(src, Tensor) else "ScatterBackward1")


@function
def index_add(input: Tensor, dim: int, index: Tensor, source: Any, *, alpha: Any = 1) -> Any:
    """``input`` with rows of ``source`` added at places along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    check_slices("index_add", input, axis, index, source)
    rows = source if alpha == 1 else source * alpha
    if not input.value.ndim:
        return labelled(reshape(index_add(reshape(input, (1,)), dim, index, reshape(rows, (-1,))), ()), "IndexAddBackward0")
    check_range(index.value, 0, input.value.shape[axis])
    return apply(ops.INDEX_ADD, (input, rows, tied(index.value.reshape(-1), index)), {"axis": axis})


for _fun in (scatter, scatter_add, index_add, index_fill):
    in_place(_fun.__name__, _fun)


# -- places and counts ---------------------------------------------------------------------------------------------


def _nonzero(input: Tensor, as_tuple: bool = False) -> Any:
    """The places of what is not zero."""
    places = np.nonzero(input.value if input.value.ndim else input.value.reshape(1))
    return tuple(wrap(p) for p in places) if as_tuple else wrap(np.stack(places, -1)[:, : input.value.ndim])


FUNCTIONS["nonzero"] = _nonzero
methods(nonzero=_nonzero)


@function
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The different elements, in order; or the different slices along ``dim``."""
    axis = None if dim is None else axis_of(dim, input.value.ndim)
    value = input.value if dim is None or input.value.ndim else input.value.reshape(1)
    found, inverse, counts = np.unique(value, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    inverse = inverse.reshape(input.value.shape if axis is None else -1)
    parts = [found, *[part for part, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]]
    return tuple([wrap(part) for part in parts]) if len(parts) > 1 else wrap(found)


@function
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number occurs."""
    kind = input.value.dtype
    if kind.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{title(kind)}'")
    if input.value.ndim != 1 or (input.value < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return wrap(np.bincount(input.value, None, minlength))
    if weights.value.shape != input.value.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    counts = np.bincount(input.value, weights.value, minlength)
    return wrap(counts.astype(np.float32 if weights.value.dtype == np.float32 else np.float64))
