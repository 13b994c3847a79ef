"""Shapes, joining and splitting: torch's names for what moves elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.eager.core import (
    NAMES,
    NONE,
    Fused,
    Label,
    Tensor,
    apply,
    axis_of,
    execute,
    known,
    labelled,
    lead,
    look,
    method,
    methods,
    requires,
    tied,
    unlike,
    variant,
    writable,
)
from symgrad.eager.dtypes import dtype, title
from symgrad.eager.pointwise import FUNCTIONS, cast_alike, function, in_place
from symgrad.ops.core import Traced
from symgrad.ops.reduction import along
from symgrad.tracing.tracer import Tracer

RESHAPE, TRANSPOSE, SWAPAXES, SQUEEZE, EXPAND_DIMS, BROADCAST, CONCATENATE, STACK, SUM = (
    known(key)
    for key in (
        np.reshape, np.transpose, np.swapaxes, np.squeeze, np.expand_dims, np.broadcast_to, np.concatenate, np.stack, np.sum,
    )
)  # fmt: skip
RESHAPE = variant(RESHAPE, fun=lambda a, shape: a.reshape(shape))
TRANSPOSE = variant(TRANSPOSE, fun=lambda a, axes=None: a.transpose(axes))
SWAPAXES = variant(SWAPAXES, fun=lambda a, axis1, axis2: a.swapaxes(axis1, axis2))
SQUEEZE = variant(SQUEEZE, fun=lambda a, axis=None: a.squeeze(axis))
EXPAND = variant(BROADCAST, fun=lambda array, shape: _writable(np.broadcast_to(array, shape), array))
DIAGONAL = variant(known(np.diagonal), fun=lambda a, **where: _writable(np.diagonal(a, **where), a))
FLIP = variant(known(np.flip), fun=lambda m, axis: np.flip(m, axis).copy(), alias=False)
NAMES.update({
    np.reshape: "ViewBackward0", np.transpose: "PermuteBackward0", np.swapaxes: "TransposeBackward0",
    np.squeeze: lambda node: f"SqueezeBackward{int('axis' in node.params)}", np.expand_dims: "UnsqueezeBackward0",
    np.broadcast_to: "ExpandBackward0", np.concatenate: "CatBackward0", np.stack: "StackBackward0", np.flip: "FlipBackward0",
    np.roll: "RollBackward0", np.tril: "TrilBackward0", np.triu: "TriuBackward0", np.trace: "TraceBackward0",
    np.diagonal: "DiagonalBackward0", np.pad: "ConstantPadNdBackward0",
})  # fmt: skip


def sizes(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape that was given as several numbers, or as one list of them."""
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return tuple([int(n) for n in given])


def several(tensors: Sequence[Any]) -> Sequence[Any]:
    """Tensors that were given as several arguments, or as one list of them."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def listed(fun: str, key: str, given: Sequence[Any], named: dict[str, Any]) -> tuple[int, ...]:
    """``sizes`` of what was given as positional arguments, or by name."""
    if given and not named:
        return sizes(given)
    if len(named) + bool(given) != 1 or key not in named:
        wrong = next((name for name in named if name != key), None)
        raise TypeError(
            f'{fun}() missing 1 required positional arguments: "{key}"'
            if wrong is None
            else f"{fun}() got an unexpected keyword argument '{wrong}'"
        )
    return sizes((named[key],))


def _writable(y: Any, x: Any) -> Any:
    """A view that may be written to wherever its base may."""
    if isinstance(y, np.ndarray) and x.flags.writeable:
        y.flags.writeable = True
    return y


# -- new shapes ----------------------------------------------------------------------------------------------------


def _shape_error(shape: tuple[int, ...], value: Any) -> RuntimeError:
    if shape.count(-1) > 1:
        return RuntimeError("only one dimension can be inferred")
    return RuntimeError(f"shape '{list(shape)}' is invalid for input of size {value.size}")


def _reshaped(x: Tensor, shape: tuple[int, ...], label: str) -> Any:
    for i, n in enumerate(shape):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(shape)}")
    try:
        return apply(RESHAPE, (x,), {"shape": shape}, label)
    except ValueError:
        raise _shape_error(shape, x.value) from None


@function
def reshape(input: Tensor, *shape: Any, **named: Any) -> Any:
    """The same elements in another shape; one size may be -1."""
    value, wanted = input.value, listed("reshape", "shape", shape, named)
    if isinstance(value, Traced) or not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return _reshaped(input, wanted, "ViewBackward0")
    result = _reshaped(input, wanted, "ReshapeAliasBackward0")
    return result if result.base is not None else labelled(result, ("UnsafeViewBackward0", ("CloneBackward0", 0)))


def _view(self: Tensor, *shape: Any, **named: Any) -> Any:
    """``reshape``, of a tensor that lies in memory in order; or its bytes in another dtype."""
    if len(shape) == 1 and isinstance(shape[0], dtype):
        return tied(self.value.view(shape[0].dtype), self)
    wanted = listed("view", "size", shape, named)
    result = _reshaped(self, wanted, "ViewBackward0")
    if result.base is None and isinstance(self.value, np.ndarray) and self.value.size and not self.value.flags.c_contiguous:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return result


methods(view=_view)


@method
def view_as(self: Tensor, other: Tensor) -> Any:
    """``view`` in the shape of ``other``."""
    return _view(self, other.value.shape)


@method
def reshape_as(self: Tensor, other: Tensor) -> Any:
    """``reshape`` to the shape of ``other``."""
    return reshape(self, other.value.shape)


@function
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The dimensions from ``start_dim`` to ``end_dim`` as one."""
    shape = input.value.shape or (1,)
    first, last = axis_of(start_dim, len(shape)), axis_of(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last and input.value.ndim:
        return input
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@function
def unflatten(input: Tensor, dim: int, sizes: Any) -> Any:
    """One dimension as several."""
    shape = input.value.shape
    axis, form = axis_of(dim, len(shape)), list(sizes)
    known = math.prod([n for n in form if n != -1])
    if not form:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if form.count(-1) < 2 and (shape[axis] % (known or 1) if -1 in form else known != shape[axis]):
        raise RuntimeError(
            f"unflatten: Provided sizes {form} don't multiply up to the size of dim {axis} ({shape[axis]}) in the input tensor"
        )
    if known and form.count(-1) == 1:
        form[form.index(-1)] = shape[axis] // known  # which the size of a tensor without elements would not tell
    return reshape(input, (*shape[:axis], *form, *shape[axis + 1 :]))


@function
def ravel(input: Tensor) -> Any:
    """All elements in one dimension; a copy, where they do not lie in order."""
    return reshape(input.contiguous(), (-1,))


@function
def squeeze(input: Tensor, dim: Any = None) -> Any:
    """Without dimensions of size 1: all of them, or ``dim``."""
    shape = input.value.shape
    if dim is None:
        return apply(SQUEEZE, (input,), NONE, "SqueezeBackward0")
    several = isinstance(dim, (tuple, list))
    axes = tuple([axis for axis in axis_of(dim if several else (dim,), len(shape)) if shape and shape[axis] == 1])
    label = f"SqueezeBackward{1 + several}"
    if len(axes) == 1:
        return apply(SQUEEZE, (input,), {"axis": axes[0]}, label)
    return apply(SQUEEZE, (input,), {"axis": axes}, label) if axes else apply(RESHAPE, (input,), {"shape": shape}, label)


@function
def unsqueeze(input: Tensor, dim: int) -> Any:
    """With a new dimension of size 1."""
    return apply(EXPAND_DIMS, (input,), {"axis": axis_of(dim, input.value.ndim + 1)})


def expanded(x: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that a tensor can be expanded to, -1 for dimensions that stay; torch's error where it cannot be."""
    own = x.value.shape
    more = len(shape) - len(own)
    if more < 0:
        raise RuntimeError(
            f"expand(torch.{title(x.value.dtype)}Tensor{{{list(own)}}}, size={list(shape)}): the number of sizes provided "
            f"({len(shape)}) must be greater or equal to the number of dimensions in the tensor ({len(own)})"
        )
    for i, n in enumerate(shape):
        if n == -1 and i < more:
            raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}")
        have = own[i - more] if i >= more else 1
        if n not in (-1, have) and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton dimension {i}.  "
                f"Target sizes: {list(shape)}.  Tensor sizes: {list(own)}"
            )
    return tuple(own[i - more] if n == -1 else n for i, n in enumerate(shape))


@method
def expand(self: Tensor, *size: Any, implicit: bool = False, **named: Any) -> Any:
    """Dimensions of size 1 stretched, without copying."""
    wanted = listed("expand", "size", size, named)
    try:
        return apply(EXPAND, (self,), {"shape": wanted})
    except ValueError:
        return apply(EXPAND, (self,), {"shape": expanded(self, wanted)})


@method
def expand_as(self: Tensor, other: Tensor) -> Any:
    """``expand`` to the shape of ``other``."""
    return expand(self, other.value.shape)


def broadcast_to(input: Tensor, shape: Any) -> Any:
    """``expand`` to ``shape``."""
    return expand(input, shape)


def broadcast_tensors(*tensors: Tensor) -> Any:
    """All expanded to their common shape."""
    shapes = [t.value.shape for t in tensors]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise next(filter(None, itertools.starmap(unlike, itertools.combinations(shapes, 2)))) from None
    return tuple(t if t.value.shape == shape else expand(t, shape) for t in tensors)


@method
def repeat(self: Tensor, *repeats: Any, **named: Any) -> Any:
    """Copies side by side, so often along each dimension."""
    counts = listed("repeat", "repeats", repeats, named)
    if len(counts) < self.value.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return apply(REPEAT, (self,), {"times": counts})


def _repeated(x: Any, times: tuple[int, ...]) -> Any:
    if type(x) is Tracer:
        return np.tile(x, times)
    shape = (1,) * (len(times) - x.ndim) + x.shape
    out = np.empty([n for pair in zip(times, shape, strict=True) for n in pair], x.dtype)
    out[...] = x.reshape([n for size in shape for n in (1, size)])
    return out.reshape([t * n for t, n in zip(times, shape, strict=True)])


def _repeated_rule(g: Any, y: Any, x: Any, times: tuple[int, ...]) -> Any:
    shape = (1,) * (len(times) - np.ndim(x)) + np.shape(x)
    apart = np.reshape(g, tuple([n for pair in zip(times, shape, strict=True) for n in pair]))
    return np.reshape(SUM(apart, axis=tuple(range(0, 2 * len(times), 2))), np.shape(x))


REPEAT = Fused(_repeated, _repeated_rule, family="linear", name="repeat")


@function
def tile(input: Tensor, *dims: Any, **named: Any) -> Any:
    """As ``repeat``; missing dimensions once."""
    times = listed("tile", "dims", dims, named)
    return apply(REPEAT, (input,), {"times": (1,) * (input.value.ndim - len(times)) + times})


@function
def permute(input: Tensor, *dims: Any, **named: Any) -> Any:
    """The dimensions in another order."""
    axes = tuple([axis_of(dim, input.value.ndim) for dim in listed("permute", "dims", dims, named)])
    if len(set(axes)) < len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if len(axes) != input.value.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
            f"of dimensions i.e. input.dim() = {input.value.ndim} is not equal to len(dims) = {len(axes)}"
        )
    return apply(TRANSPOSE, (input,), {"axes": axes})


@function
def transpose(input: Tensor, dim0: int, dim1: int) -> Any:
    """Two dimensions exchanged."""
    ndim = input.value.ndim
    if not ndim and not axis_of((dim0,), ndim)[0] and not axis_of((dim1,), ndim)[0]:
        return apply(TRANSPOSE, (input,), NONE, "TransposeBackward0")
    return apply(SWAPAXES, (input,), {"axis1": axis_of(dim0, ndim), "axis2": axis_of(dim1, ndim)})


methods(swapaxes=transpose, swapdims=transpose)


@function
def movedim(input: Tensor, source: Any, destination: Any) -> Any:
    """Dimensions moved to other places."""
    ndim, ends = input.value.ndim, [np.atleast_1d(dims).tolist() for dims in (source, destination)]
    if len(ends[0]) != len(ends[1]):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({ends[0]} dims) should contain the same number of dims as "
            f"destination ({ends[1]} dims)"
        )
    for name, dims in zip(("source", "destination"), ends, strict=True):
        dims[:] = [axis_of(dim, ndim) for dim in dims]
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({dims})")
    rest = [i for i in range(ndim) if i not in ends[0]]
    for d, s in sorted(zip(ends[1], ends[0], strict=True)):
        if ndim:
            rest.insert(d, s)
    return apply(TRANSPOSE, (input,), {"axes": tuple(rest)})


methods(moveaxis=movedim)


@function
def t(input: Tensor) -> Any:
    """The transpose of a matrix."""
    if input.value.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.value.ndim}D")
    return apply(TRANSPOSE, (input,), NONE, "TBackward0")


methods(T=property(lambda self: apply(TRANSPOSE, (self,), NONE, "PermuteBackward0")))


def _mt(self: Tensor) -> Any:
    if self.value.ndim == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transpose(self, -2, -1) if self.value.ndim else self


methods(mT=property(_mt), broadcast_to=lambda self, *size: broadcast_to(self, size[0] if isinstance(size[0], tuple) else size))
_hermitian = property(lambda self: transpose(self, -2, -1).conj() if self.is_complex() else transpose(self, -2, -1))


def _turned(self: Tensor) -> Any:
    """The conjugate transpose of one matrix."""
    if self.value.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.value.ndim}-D tensor.")
    return self.mH if self.value.ndim else self.conj()


methods(H=property(_turned), mH=_hermitian)


@function
def flip(input: Tensor, *dims: Any, **named: Any) -> Any:
    """In reverse order along ``dims``."""
    axes = axis_of(listed("flip", "dims", dims, named), input.value.ndim)
    return apply(FLIP, (input,), {"axis": axes if input.value.ndim else ()})


@function
def fliplr(input: Tensor) -> Any:
    """In reverse order along the second dimension."""
    if input.value.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@function
def flipud(input: Tensor) -> Any:
    """In reverse order along the first dimension."""
    if not input.value.ndim:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@function
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Any:
    """Elements moved on, and round."""
    if isinstance(shifts, (tuple, list)) and not shifts:
        raise RuntimeError("`shifts` required")
    lengths = [len(x) if isinstance(x, (tuple, list)) else 1 for x in (shifts, dims) if x is not None]
    if (dims is not None or lengths[0] > 1) and lengths[0] != lengths[-1] * (dims is not None):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {lengths[0]}, dims:{0 if dims is None else lengths[1]}")
    params = {"shift": shifts if isinstance(shifts, int) else tuple(shifts)}
    if dims is not None:
        if not input.value.ndim:
            raise IndexError("Dimension specified as 0 but tensor has no dimensions")
        params["axis"] = (
            axis_of(dims, input.value.ndim)
            if isinstance(dims, int)
            else tuple([axis_of(dim, input.value.ndim) for dim in dims])
        )
    return apply(known(np.roll), (input,), params)


def _matrices(name: str, input: Tensor) -> None:
    if input.value.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@function
def tril(input: Tensor, diagonal: int = 0) -> Any:
    """The lower triangle, zeros elsewhere."""
    _matrices("tril", input)
    return apply(known(np.tril), (input,), {"k": diagonal})


@function
def triu(input: Tensor, diagonal: int = 0) -> Any:
    """The upper triangle, zeros elsewhere."""
    _matrices("triu", input)
    return apply(known(np.triu), (input,), {"k": diagonal})


@function
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of a matrix."""
    dim1, dim2 = axis_of(dim1, input.value.ndim), axis_of(dim2, input.value.ndim)
    view = apply(DIAGONAL, (input,), {"offset": offset, "axis1": dim1, "axis2": dim2})
    if type(view.value) is Tracer:
        _writable(view.value.like, input.value.like)
    return view


@function
def diag(input: Tensor, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    label = "DiagEmbedBackward0" if input.value.ndim == 1 else "DiagonalBackward0_copy"
    return apply(DIAG, (input,), {"k": diagonal}, label)


DIAG = variant(known(np.diag), fun=lambda v, k: np.array(np.diag(v, k)))


@function
def trace(input: Tensor) -> Any:
    """The sum of the diagonal."""
    if input.value.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.value.ndim}")
    return np.trace(input.to(np.int64) if input.value.dtype.kind == "u" else input)


for _fun in (tril, triu):
    in_place(_fun.__name__, _fun)


def in_shape(self: Tensor, fun: Any) -> Tensor:
    """Let a tensor itself become the view of it that a function makes."""
    recorded = writable(self)
    new = fun()
    self.value = new.value
    self.counter[0] += 1
    if recorded:
        lead(self, new.node)
        self.seen = self.counter[0]
    return self


def _squeezed_in_place(self: Tensor, dim: int | None = None) -> Tensor:
    """Take a dimension of size 1, or all of them, away from this tensor itself."""
    return in_shape(self, lambda: labelled(squeeze(self, dim), f"SqueezeBackward{3 if dim is None else 4}"))


def _unsqueezed_in_place(self: Tensor, dim: int) -> Tensor:
    """Give this tensor itself a new dimension of size 1."""
    return in_shape(self, lambda: labelled(unsqueeze(self, dim), "UnsqueezeBackward1"))


def _transposed_in_place(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions of this tensor itself."""
    return in_shape(self, lambda: labelled(transpose(self, dim0, dim1), "TransposeBackward1"))


methods(
    squeeze_=_squeezed_in_place, unsqueeze_=_unsqueezed_in_place, transpose_=_transposed_in_place,
    swapaxes_=_transposed_in_place, swapdims_=_transposed_in_place,
    t_=lambda self: in_shape(self, lambda: labelled(t(self), "TBackward1")),
)  # fmt: skip


# -- joining and splitting -----------------------------------------------------------------------------------------


def _joined(op: Any, tensors: Any, axis: int) -> Any:
    tensors = list(tensors)
    kinds = {x.value.dtype for x in tensors}
    values = [x.value for x in tensors]
    if len(kinds) > 1:
        common = values[0]
        for value in values[1:]:
            common = cast_alike(common, value)[0]
        values = [value.astype(common.dtype) for value in values]
    wanting = tuple([i for i, x in enumerate(tensors) if requires(x)])
    return execute(op, tensors, values, wanting, {"axis": axis}, None)


def _shaped_alike(tensors: list[Any], dim: int) -> list[Any]:
    """Tensors, of which those of shape (0,) may be joined to any."""
    form = next((x.value.shape for x in tensors if x.value.shape != (0,)), (0,))
    if len(form) < 2:
        return tensors
    axis = axis_of(dim, len(form))
    none = (*form[:axis], 0, *form[axis + 1 :])
    return [reshape(x, none) if x.value.shape == (0,) else x for x in tensors]


def cat(tensors: Any, dim: int = 0) -> Any:
    """Tensors joined along a dimension."""
    tensors = list(tensors)
    if (0,) in [x.value.shape for x in tensors]:
        tensors = _shaped_alike(tensors, dim)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    first = tensors[0].value
    for i, x in enumerate(tensors):
        if not x.value.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    for i, x in enumerate(tensors[1:], 1):
        axis = axis_of(dim, first.ndim)
        if x.value.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {x.value.ndim}")
        for j, (m, n) in enumerate(zip(first.shape, x.value.shape, strict=True)):
            if j != axis and m != n:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {m} but got size {n} for tensor "
                    f"number {i} in the list."
                )
    return _joined(CONCATENATE, tensors, axis_of(dim, first.ndim))


def stack(tensors: Any, dim: int = 0) -> Any:
    """Tensors of one shape, joined along a new dimension."""
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, x in enumerate(tensors):
        if x.value.shape != tensors[0].value.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].value.shape)} at entry 0 and "
                f"{list(x.value.shape)} at entry {i}"
            )
    return _joined(STACK, tensors, axis_of(dim, tensors[0].value.ndim + 1))


def _cuts(x: Any, cuts: Any, axis: int) -> tuple[Any, ...]:
    return tuple([x[along(axis, slice(a, b))] for a, b in itertools.pairwise(cuts)])


def _split_rule(g: Any, y: Any, x: Any, cuts: Any, axis: int) -> Any:
    shapes = [list(np.shape(x)) for _ in cuts[1:]]
    for shape, a, b in zip(shapes, cuts, cuts[1:], strict=False):
        shape[axis] = b - a
    return _joined_again(np.concatenate, g, x, axis, shapes, lambda i: slice(cuts[i], cuts[i + 1]))


def _unbind_rule(g: Any, y: Any, x: Any, axis: int) -> Any:
    shape = np.shape(x)
    return _joined_again(np.stack, g, x, axis, [shape[:axis] + shape[axis + 1 :]] * len(g), lambda i: i)


def _joined_again(join: Any, parts: Any, x: Any, axis: int, shapes: Any, place: Any) -> Any:
    """The parts of ``x``, of which some may be missing, joined along an axis. ``place``: where each belongs."""
    there = [i for i, part in enumerate(parts) if part is not None]
    if len(there) == 1 and parts[there[0]].__class__ is np.ndarray:
        whole = np.zeros(x.shape, x.dtype)
        whole[along(axis, place(there[0]))] = parts[there[0]]
        return whole
    return join([np.zeros(shape, x.dtype) if part is None else part for part, shape in zip(parts, shapes, strict=True)], axis)


SPLIT = Fused(_cuts, _split_rule, family="linear", name="split")
UNBIND = Fused(
    lambda x, axis: tuple([x[along(axis, i, ...)] for i in range(np.shape(x)[axis])]),
    _unbind_rule,
    family="linear",
    name="unbind",
)


def _views(op: Any, x: Tensor, params: dict[str, Any], label: Label = None) -> Any:
    """What an operation makes of ``x``, as views of it."""
    parts = apply(op, (x,), params, label)
    look(parts, x, "several")
    return parts


@function
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of one size, or of the given sizes, along ``dim``."""
    if not tensor.value.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis = axis_of(dim, tensor.value.ndim)
    n = tensor.value.shape[axis]
    if isinstance(split_size_or_sections, int):
        if split_size_or_sections < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size_or_sections}")
        if n and not split_size_or_sections:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        cuts = (*range(0, n, split_size_or_sections), n) if n else (0, 0)
        label = "SplitBackward0"
    else:
        cuts, label = tuple(np.cumsum([0, *split_size_or_sections]).tolist()), "SplitWithSizesBackward0"
        if any(size < 0 for size in split_size_or_sections):
            raise RuntimeError(
                "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes="
                f"{list(split_size_or_sections)}"
            )
        if cuts[-1] != n:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {axis}), but "
                f"got split_sizes={list(split_size_or_sections)}"
            )
    return _views(SPLIT, tensor, {"cuts": cuts, "axis": axis}, label)


@function
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """About equal pieces along ``dim``."""
    if not input.value.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input.value.shape[axis_of(dim, input.value.ndim)]
    return split(input, math.ceil(n / chunks) if n else [0] * chunks, dim)


@function
def unbind(input: Tensor, dim: int = 0) -> Any:
    """The slices along ``dim``."""
    if not input.value.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return _views(UNBIND, input, {"axis": axis_of(dim, input.value.ndim)})


def _iter(self: Tensor) -> Any:
    if self.value.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


methods(__iter__=_iter)
FUNCTIONS.update(
    cat=cat, concat=cat, concatenate=cat, stack=stack, broadcast_to=broadcast_to, broadcast_tensors=broadcast_tensors,
    moveaxis=movedim, swapaxes=transpose, swapdims=transpose,
)  # fmt: skip
