"""Shapes, joining and splitting, indexing, casts and products of matrices: torch's names for what moves elements."""

from __future__ import annotations

import functools
import itertools
import math
import string
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.eager import ops
from symgrad.eager.core import (
    NAMES,
    NONE,
    Fused,
    Label,
    Tensor,
    apply,
    as_tensor_of,
    assign,
    axis_of,
    called,
    execute,
    known,
    labelled,
    look,
    method,
    methods,
    plain,
    requires,
    unlike,
    variant,
    whole,
    wrap,
    writable,
)
from symgrad.eager.dtypes import as_numpy, c_name, device, dtype, on_cpu, title
from symgrad.eager.modes import mode
from symgrad.eager.pointwise import FUNCTIONS, cast_alike, function, in_place
from symgrad.ops import index
from symgrad.ops.contract import matmul_a, matmul_b
from symgrad.ops.core import Traced
from symgrad.ops.engine import ASTYPE
from symgrad.ops.reduction import along, vector_shape

RESHAPE, TRANSPOSE, SWAPAXES, SQUEEZE, EXPAND_DIMS, BROADCAST, MATMUL, COPY, CONCATENATE, STACK, SUM = (
    known(key)
    for key in (
        np.reshape, np.transpose, np.swapaxes, np.squeeze, np.expand_dims, np.broadcast_to, np.matmul, np.copy, np.concatenate,
        np.stack, np.sum,
    )
)  # fmt: skip
RESHAPE = variant(RESHAPE, fun=lambda a, shape: a.reshape(shape))
TRANSPOSE = variant(TRANSPOSE, fun=lambda a, axes=None: a.transpose(axes))
SWAPAXES = variant(SWAPAXES, fun=lambda a, axis1, axis2: a.swapaxes(axis1, axis2))
SQUEEZE = variant(SQUEEZE, fun=lambda a, axis=None: a.squeeze(axis))
NAMES.update({
    np.reshape: "ViewBackward0", np.transpose: "PermuteBackward0", np.swapaxes: "TransposeBackward0",
    np.squeeze: lambda node: f"SqueezeBackward{int('axis' in node.params)}", np.expand_dims: "UnsqueezeBackward0",
    np.broadcast_to: "ExpandBackward0", np.copy: "CloneBackward0", np.concatenate: "CatBackward0", np.stack: "StackBackward0",
    index.SETITEM.key: "IndexPutBackward0", index.GETITEM.key: "IndexBackward0", index.INDEX_ADD.key: "IndexAddBackward0",
    np.take_along_axis: "GatherBackward0", np.flip: "FlipBackward0", np.roll: "RollBackward0", np.tril: "TrilBackward0",
    np.triu: "TriuBackward0", np.trace: "TraceBackward0", np.diagonal: "DiagonalBackward0", np.outer: "MulBackward0",
    np.pad: "ConstantPadNdBackward0",
    np.linalg.inv: "LinalgInvExBackward0", np.linalg.det: "LinalgDetBackward0", np.linalg.solve: "LinalgSolveExBackward0",
    np.linalg.cholesky: "LinalgCholeskyExBackward0", np.linalg.slogdet: "LinalgSlogdetBackward0",
    np.linalg.eigh: "LinalgEighBackward0", np.linalg.svd: "LinalgSvdBackward0", np.linalg.qr: "LinalgQrBackward0",
    np.matmul: lambda node: _PRODUCTS.get(tuple(map(np.ndim, node.args or ())), "MmBackward0"),
})  # fmt: skip
_PRODUCTS: dict[Any, str] = {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (2, 2): "MmBackward0", (3, 3): "BmmBackward0"}


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


# -- sizes and values ----------------------------------------------------------------------------------------------


@method
def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or its size along ``dim``."""
    return self.shape if dim is None else self.value.shape[axis_of(dim, self.value.ndim)]


@method
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self.value.ndim  # type: ignore[no-any-return]


methods(ndimension=dim)


@function
def numel(input: Tensor) -> int:
    """The number of elements."""
    return int(input.value.size)


methods(nelement=numel)


@method
def element_size(self: Tensor) -> int:
    return int(self.value.itemsize)


@method
def stride(self: Tensor, dim: int | None = None) -> Any:
    """How many elements lie between neighbours along each dimension."""
    steps = tuple(n // self.value.itemsize for n in self.value.strides)
    return steps if dim is None else steps[dim]


@method
def is_contiguous(self: Tensor) -> bool:
    return bool(self.value.flags.c_contiguous)


@function
def is_floating_point(input: Tensor) -> bool:
    """Whether its numbers are floating-point ones."""
    return bool(input.value.dtype.kind == "f")


@function
def is_complex(input: Tensor) -> bool:
    """Whether its numbers are complex."""
    return bool(input.value.dtype.kind == "c")


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a tensor."""
    return isinstance(x, Tensor)


@method
def tolist(self: Tensor) -> Any:
    """The numbers in nested lists, Python's own."""
    return self.value.tolist()


@method
def numpy(self: Tensor, *, force: bool = False) -> Any:
    """The NumPy array itself, whose memory stays shared."""
    if requires(self) and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return whole(self)


@method
def detach(self: Tensor) -> Tensor:
    """The same values, as a constant; the memory is shared."""
    same = wrap(whole(self))
    same.counter, same.inference = self.counter, self.inference
    return same


@method
def detach_(self: Tensor) -> Tensor:
    """Make this tensor itself a constant."""
    if mode.inference:  # as torch has it
        return self
    if self.base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
            "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
            "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
            "torch/optim/optimizer.py as the solution."
        )
    self.node, self.needs = None, False
    return self


@function
def clone(input: Tensor, *, memory_format: Any = None) -> Any:
    """A copy of its own memory, still part of the graph."""
    if type(input.value) is not np.ndarray:
        whole(input)
    return apply(COPY, (input,))


@method
def contiguous(self: Tensor) -> Any:
    """This tensor, or a copy that lies in memory in order."""
    return self if isinstance(self.value, Traced) or self.value.flags.c_contiguous else apply(CONTIGUOUS, (self,))


def _writable(y: Any, x: Any) -> Any:
    """A view that may be written to wherever its base may."""
    if isinstance(y, np.ndarray) and x.flags.writeable:
        y.flags.writeable = True
    return y


CONTIGUOUS = variant(COPY, fun=lambda a: np.array(a, order="C"))
EXPAND = variant(BROADCAST, fun=lambda array, shape: _writable(np.broadcast_to(array, shape), array))
DIAGONAL = variant(known(np.diagonal), fun=lambda a, **where: _writable(np.diagonal(a, **where), a))
FLIP = variant(known(np.flip), fun=lambda m, axis: np.flip(m, axis).copy(), alias=False)


def _cast(x: Tensor, kind: Any) -> Any:
    wanted = as_numpy(kind)
    if x.value.dtype == wanted:
        return x
    return apply(ASTYPE, (x,), {"dtype": wanted})


@method
def to(self: Tensor, *target: Any, copy: bool = False, memory_format: Any = None, **options: Any) -> Any:
    """In another dtype (or that of another tensor); there is only one device."""
    flags = [given for given in target if isinstance(given, bool)]  # non_blocking and copy
    kind = None
    for given in (*target, *options.values()):
        if isinstance(given, (str, device)):
            on_cpu(given)
        elif isinstance(given, Tensor):
            kind = given.dtype
        elif given is not None and not isinstance(given, bool):
            kind = given
    if copy or flags[1:] == [True]:
        return apply(ASTYPE, (self,), {"dtype": self.value.dtype if kind is None else as_numpy(kind)})
    return self if kind is None else _cast(self, kind)


def _caster(name: str, kind: Any) -> None:
    @called(name, f"In the dtype {np.dtype(kind).name}.")
    def fun(self: Tensor, memory_format: Any = None) -> Any:
        return _cast(self, kind)

    setattr(Tensor, name, fun)


for _name, _kind in {
    "float": np.float32, "double": np.float64, "half": np.float16, "long": np.int64, "int": np.int32, "short": np.int16,
    "bool": np.bool_, "char": np.int8, "byte": np.uint8, "cfloat": np.complex64, "cdouble": np.complex128,
}.items():  # fmt: skip
    _caster(_name, _kind)
methods(cpu=lambda self: self)


def _type(self: Tensor, dtype: Any = None) -> Any:
    """The name of its type, or this tensor in another dtype."""
    return f"torch.{title(self.value.dtype)}Tensor" if dtype is None else _cast(self, dtype)


methods(type=_type)


@method
def type_as(self: Tensor, other: Tensor) -> Any:
    """In the dtype of ``other``."""
    return _cast(self, other.dtype)


@method
def share_memory_(self: Tensor) -> Tensor:
    return self


@method
def data_ptr(self: Tensor) -> int:
    """Where its first element lies in memory."""
    return int(whole(self).ctypes.data)


@method
def set_(self: Tensor, source: Tensor) -> Tensor:
    """Take the memory of ``source``."""
    self.data = source
    self.counter[0] += 1
    return self


def _number(x: Tensor) -> Any:
    return x.value if isinstance(x.value, Traced) else x.item()


def _bool(self: Tensor) -> bool:
    if self.value.size != 1:
        count = "more than one value" if self.value.size else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
    return bool(_number(self))


def _float(self: Tensor) -> float:
    if requires(self):
        warnings.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using "
            "tensor.detach() first.",
            stacklevel=2,
        )
    return float(_number(self))


def _index(self: Tensor) -> int:
    if self.value.dtype.kind not in "iub" or self.value.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(_number(self))


methods(
    __bool__=_bool, __float__=_float, __index__=_index,
    __int__=lambda self: int(_number(self)), __complex__=lambda self: complex(_number(self)),
)  # fmt: skip


def _len(self: Tensor) -> int:
    if self.value.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return len(self.value)


def _iter(self: Tensor) -> Any:
    if self.value.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


methods(__len__=_len, __iter__=_iter)
methods(__contains__=lambda self, item: bool(np.any(self.value == plain(item))))


def _deepcopy(self: Tensor, memo: Any) -> Tensor:
    if self.node is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    same = _rebuild(self.__class__, np.array(self.value), self.needs)
    same._grad = None if self._grad is None else _deepcopy(self._grad, memo)
    return same


def _rebuild(kind: Any, value: Any, needs: bool) -> Tensor:
    made: Tensor = kind.__new__(kind)
    made.value, made.counter, made.needs = value, [0], needs
    return made


methods(__deepcopy__=_deepcopy)
methods(__reduce_ex__=lambda self, version: (_rebuild, (self.__class__, np.array(self.value), self.needs)))


# -- new shapes ----------------------------------------------------------------------------------------------------


def _shape_error(shape: tuple[int, ...], value: Any) -> RuntimeError:
    if shape.count(-1) > 1:
        return RuntimeError("only one dimension can be inferred")
    return RuntimeError(f"shape '{list(shape)}' is invalid for input of size {value.size}")


def _reshaped(x: Tensor, shape: tuple[int, ...], label: str) -> Any:
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
        return wrap(self.value.view(shape[0].dtype))
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
    if first == last and input.value.ndim:
        return input
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@function
def unflatten(input: Tensor, dim: int, sizes: Any) -> Any:
    """One dimension as several."""
    shape = input.value.shape
    axis = axis_of(dim, len(shape))
    return reshape(input, (*shape[:axis], *sizes, *shape[axis + 1 :]))


@function
def ravel(input: Tensor) -> Any:
    """All elements in one dimension."""
    return reshape(input, (-1,))


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


def _expanded(x: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    own = x.value.shape
    lead = len(shape) - len(own)
    for i, n in enumerate(shape):
        have = own[i - lead] if i >= lead else 1
        if n not in (-1, have) and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton dimension {i}.  "
                f"Target sizes: {list(shape)}.  Tensor sizes: {list(own)}"
            )
    return tuple(own[i - lead] if n == -1 else n for i, n in enumerate(shape))


@method
def expand(self: Tensor, *size: Any, implicit: bool = False, **named: Any) -> Any:
    """Dimensions of size 1 stretched, without copying."""
    wanted = listed("expand", "size", size, named)
    try:
        return apply(EXPAND, (self,), {"shape": wanted})
    except ValueError:
        return apply(EXPAND, (self,), {"shape": _expanded(self, wanted)})


@method
def expand_as(self: Tensor, other: Tensor) -> Any:
    """``expand`` to the shape of ``other``."""
    return expand(self, other.value.shape)


def broadcast_to(input: Tensor, shape: Any) -> Any:
    """``expand`` to ``shape``."""
    return expand(input, shape)


def broadcast_tensors(*tensors: Tensor) -> Any:
    """All expanded to their common shape."""
    shape = np.broadcast_shapes(*(t.value.shape for t in tensors))
    return tuple(t if t.value.shape == shape else expand(t, shape) for t in tensors)


@method
def repeat(self: Tensor, *repeats: Any, **named: Any) -> Any:
    """Copies side by side, so often along each dimension."""
    counts = listed("repeat", "repeats", repeats, named)
    if len(counts) < self.value.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return apply(REPEAT, (self,), {"times": counts})


def _repeated(x: Any, times: tuple[int, ...]) -> Any:
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
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Any:
    """Each element several times in a row; of ``repeats`` alone, each place as often as the number there says."""
    if repeats is None:
        return wrap(np.repeat(np.arange(input.value.size), input.value))
    x = input if dim is not None else ravel(input)
    axis = axis_of(dim or 0, x.value.ndim)
    if isinstance(repeats, int):
        shape = x.value.shape
        apart = expand(unsqueeze(x, axis + 1), (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
        return _reshaped(clone(apart), (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]), "ViewBackward0")
    return index_select(x, axis, wrap(np.repeat(np.arange(x.value.shape[axis]), plain(repeats))))


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
    source, destination = np.atleast_1d(source).tolist(), np.atleast_1d(destination).tolist()
    ndim = input.value.ndim
    rest = [i for i in range(ndim) if i not in [s % ndim for s in source]]
    for d, s in sorted(zip([d % ndim for d in destination], [s % ndim for s in source], strict=True)):
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
methods(mT=property(lambda self: transpose(self, -2, -1) if self.value.ndim else self))
_hermitian = property(lambda self: transpose(self, -2, -1).conj() if self.is_complex() else transpose(self, -2, -1))
methods(H=_hermitian, mH=_hermitian)


@function
def flip(input: Tensor, *dims: Any, **named: Any) -> Any:
    """In reverse order along ``dims``."""
    axes = axis_of(listed("flip", "dims", dims, named), input.value.ndim)
    return apply(FLIP, (input,), {"axis": axes if input.value.ndim else ()})


@function
def fliplr(input: Tensor) -> Any:
    """In reverse order along the second dimension."""
    return flip(input, 1)


@function
def flipud(input: Tensor) -> Any:
    """In reverse order along the first dimension."""
    return flip(input, 0)


@function
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Any:
    """Elements moved on, and round."""
    if isinstance(shifts, (tuple, list)) and not shifts:
        raise RuntimeError("`shifts` required")
    lengths = [len(x) if isinstance(x, (tuple, list)) else 1 for x in (shifts, dims) if x is not None]
    if dims is not None and lengths[0] != lengths[1]:
        raise RuntimeError(f"shifts and dimensions must align. shifts: {lengths[0]}, dims:{lengths[1]}")
    params = {"shift": shifts if isinstance(shifts, int) else tuple(shifts)}
    if dims is not None:
        if not input.value.ndim:
            raise IndexError("Dimension specified as 0 but tensor has no dimensions")
        params["axis"] = dims if isinstance(dims, int) else tuple(dims)
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
    return apply(DIAGONAL, (input,), {"offset": offset, "axis1": dim1, "axis2": dim2})


@function
def diag(input: Tensor, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    label = "DiagEmbedBackward0" if input.value.ndim == 1 else "DiagonalBackward0_copy"
    return labelled(np.diag(input, diagonal), label)


@function
def trace(input: Tensor) -> Any:
    """The sum of the diagonal."""
    return np.trace(input)


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
    axis = axis_of(dim, tensor.value.ndim)
    n = tensor.value.shape[axis]
    if isinstance(split_size_or_sections, int):
        cuts = (*range(0, n, split_size_or_sections), n) if n else (0, 0)
        label = "SplitBackward0"
    else:
        cuts, label = tuple(np.cumsum([0, *split_size_or_sections]).tolist()), "SplitWithSizesBackward0"
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
    return split(input, max(1, math.ceil(input.value.shape[axis_of(dim, input.value.ndim)] / chunks)), dim)


@function
def unbind(input: Tensor, dim: int = 0) -> Any:
    """The slices along ``dim``."""
    if not input.value.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return _views(UNBIND, input, {"axis": axis_of(dim, input.value.ndim)})


# -- indexing ------------------------------------------------------------------------------------------------------


def _index_of(x: Tensor, key: Any) -> tuple[tuple[Any, ...], list[Any], Label]:
    """The static part of an index, its arrays, and torch's name of the operation."""
    parts: list[Any] = []
    arrays: list[Any] = []
    steps: list[str] = []
    keys = key if isinstance(key, tuple) else (key,)
    shape, axis = x.value.shape, 0
    for part in keys:
        if part.__class__ is slice:
            first, last, step = part.start, part.stop, part.step
            if not (first.__class__ in _PLAIN and last.__class__ in _PLAIN and step.__class__ in _PLAIN):
                first, last, step = [end if end is None else int(end) for end in (first, last, step)]
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
            if array.dtype.kind not in "iub":
                if array.size:
                    raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
                array = array.astype(np.int64)
            parts.append(index.Hole(len(arrays)))
            arrays.append(array)
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


def _width(part: Any) -> int:
    """How many dimensions a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    array = part.value if isinstance(part, Tensor) else part
    return array.ndim if getattr(array, "dtype", None) == bool else 1


def chained(steps: Sequence[str], start: Any = 0) -> Any:
    """The label of operations that follow each other, the first one of argument ``start``."""
    if len(steps) == 1 and start == 0:
        return steps[0]
    label = start
    for step in steps:
        label = (step, label)
    return label


def getitem(self: Tensor, key: Any) -> Any:
    """``x[key]``: a view for integers and slices, a copy for index tensors and masks."""
    spec, arrays, label = _index_of(self, key)
    if not isinstance(self.value, np.ndarray):
        whole(self)
    try:
        return apply(index.GETITEM, (self, *arrays), {"spec": spec}, label)
    except IndexError as error:
        raise IndexError(_out_of_range(self, spec, arrays) or str(error)) from None


def _out_of_range(x: Tensor, spec: Any, arrays: Any) -> str | None:
    """Torch's words for what is wrong with an index."""
    shape, axis = x.value.shape, 0
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
    if not isinstance(self.value, np.ndarray):
        whole(self)
    if not isinstance(value, Tensor):
        if isinstance(value, (str, list, tuple)) or value is None:
            raise TypeError(f"can't assign a {type(value).__name__} to a torch.{title(self.value.dtype)}Tensor")
        value = np.asarray(value).astype(self.value.dtype)
    if key is Ellipsis:
        self.copy_(as_tensor_of(value)) if np.ndim(value) else self.fill_(as_tensor_of(value))
        return
    if arrays:
        kept = self.value.dtype
        value = value.to(kept) if isinstance(value, Tensor) and value.value.dtype != kept else value
        try:
            new = apply(index.SETITEM, (self, value, *arrays), {"spec": spec}, "IndexPutBackward0")
        except IndexError as error:
            raise IndexError(_out_of_range(self, spec, arrays) or str(error)) from None
        except ValueError:
            place = self.value[index.fill(spec, arrays)].shape
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape "
                f"{list(place)}"
            ) from None
        assign(self, new, "index_put_")
        return
    if not isinstance(value, Tensor):
        value = wrap(value)
    try:
        target = self.value[index.fill(spec, ())]
    except IndexError as error:
        raise IndexError(_out_of_range(self, spec, arrays) or str(error)) from None
    v = value.value
    try:
        np.broadcast_shapes(v.shape, target.shape)
        fits = v.ndim - target.ndim <= sum(n == 1 for n in v.shape)
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"The expanded size of the tensor ({target.shape[-1] if target.ndim else 1}) must match the existing size "
            f"({v.shape[-1]}) at non-singleton dimension {max(target.ndim - 1, 0)}.  Target sizes: {list(target.shape)}.  "
            f"Tensor sizes: {list(v.shape)}"
        )
    if v.ndim > target.ndim:
        value = value.reshape(v.shape[v.ndim - target.ndim :])
    assign(self, value, "copy_", spec)


@method
def index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Write ``values`` at places given by index tensors, or add them there."""
    spec, arrays, _ = _index_of(self, tuple(indices))
    op = index.INDEX_ADD if accumulate else index.SETITEM
    return assign(self, apply(op, (self, values, *arrays), {"spec": spec}, "IndexPutBackward0"), "index_put_")


@function
def index_put(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """``index_put_``, into a copy."""
    return index_put_(clone(input), indices, values, accumulate)


@function
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """One number at places along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    mask = np.isin(np.arange(input.value.shape[axis] if input.value.ndim else 1), index.value)
    shaped = mask.reshape(vector_shape(axis, input.value.ndim))
    label = f"IndexFillBackward{int(isinstance(value, Tensor))}"
    return labelled(FUNCTIONS["masked_fill"](input, wrap(shaped), value), (label, 2))


methods(__getitem__=getitem, __setitem__=setitem)


@function
def narrow(input: Tensor, dim: int, start: int, length: int) -> Any:
    """A range along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    if start + length > input.value.shape[axis]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({input.value.shape[axis]}).")
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
    if places.dtype.kind not in "iu":
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if places.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    try:
        if not input.value.ndim:
            return apply(ops.GATHER, (input, places.reshape(())), {"shape": ()}, "IndexSelectBackward0")
        return apply(ops.TAKE, (input, places.reshape(-1)), {"axis": axis})
    except IndexError:
        raise IndexError("index out of range in self") from None


@function
def masked_select(input: Tensor, mask: Tensor) -> Any:
    """The elements where the mask is set."""
    if mask.value.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = np.broadcast_shapes(input.value.shape, mask.value.shape)
    both = [x if x.value.shape == shape else expand(x, shape) for x in (input, mask)]
    return labelled(getitem(*both), "MaskedSelectBackward0")


def _table(x: Tensor, dim: int, places: Tensor, label: str) -> Any:
    """A table of places along a dimension as places in the flattened tensor."""
    shape, table = x.value.shape, places.value
    axis = axis_of(dim, len(shape))
    if not shape or not table.size:
        return table.astype(_INT64)
    if table.ndim != len(shape):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {label} tensor")
    if table.dtype is not _INT64:
        table = table.astype(_INT64)
    if _highest(table.view(np.uint64), None) >= shape[axis]:  # or negative
        wrong = table[(table < 0) | (table >= shape[axis])][0]
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {axis} with size {shape[axis]}")
    return flat_places(table, axis, shape)


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


_INT64 = np.dtype(np.int64)
_highest: Any = np.maximum.reduce


@function
def gather(input: Tensor, dim: int, index: Tensor) -> Any:
    """Elements picked along a dimension by a table of places."""
    shape, table, axis = input.value.shape, index.value.shape, axis_of(dim, input.value.ndim)
    if index.value.dtype.kind not in "iu":
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    for i, (have, want) in enumerate(zip(shape, table, strict=False)):
        if i != axis and want > have and index.value.size:
            raise RuntimeError(
                f"Size does not match at dimension {i} expected index {list(table)} to be no larger than self {list(shape)} "
                f"apart from dimension {axis}"
            )
    return apply(ops.GATHER, (input, _table(input, dim, index, "input")), {"shape": shape}, "GatherBackward0")


@function
def take(input: Tensor, index: Tensor) -> Any:
    """Elements by their places in the flattened tensor."""
    shape, places = input.value.shape, index.value
    n = input.value.size
    if places.size and (places.min() < -n or places.max() >= n):
        wrong = places.max() if places.max() >= n else places.min()
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {n} elements.")
    return apply(ops.GATHER, (input, places % max(n, 1)), {"shape": shape}, "TakeBackward0")


@function
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Any:
    """As ``gather``, of tensors that are expanded to each other's size in the other dimensions; or of all elements."""
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
    if reduce is None:
        return _scattered(input, dim, index, src, False)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    table = src if isinstance(src, Tensor) else wrap(np.full(index.value.shape, src, input.value.dtype))
    return FUNCTIONS["scatter_reduce"](input, dim, index, table, "sum" if reduce == "add" else "prod")


@function
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Any) -> Any:
    """``input`` with elements of ``src`` added at places along a dimension."""
    return _scattered(input, dim, index, src, True)


def _scattered(x: Tensor, dim: int, places: Tensor, src: Any, adds: bool) -> Any:
    flat = _table(x, dim, places, "self")
    if isinstance(src, Tensor):
        if src.value.shape != places.value.shape:
            src = getitem(src, tuple([slice(n) for n in places.value.shape]))
    else:
        src = np.asarray(src, x.value.dtype)
    op, label = (ops.SCATTER_ADD, "ScatterAddBackward0") if adds else (ops.SCATTER, "ScatterBackward0")
    return apply(op, (x, src, flat), NONE, label if adds or isinstance(src, Tensor) else "ScatterBackward1")


@function
def index_add(input: Tensor, dim: int, index: Tensor, source: Any, *, alpha: Any = 1) -> Any:
    """``input`` with rows of ``source`` added at places along a dimension."""
    axis = axis_of(dim, input.value.ndim)
    shapes = [x.value.shape[:axis] + x.value.shape[axis + 1 :] for x in (input, source)]
    if shapes[0] != shapes[1]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(input.value.shape)} source.shape = {list(source.value.shape)}"
        )
    rows = source if alpha == 1 else source * alpha
    if not input.value.ndim:
        return labelled(reshape(index_add(reshape(input, (1,)), dim, index, reshape(rows, (-1,))), ()), "IndexAddBackward0")
    return apply(ops.INDEX_ADD, (input, rows, index.value), {"axis": axis})


for _fun in (scatter, scatter_add, index_add, index_fill, tril, triu):
    in_place(_fun.__name__, _fun)


def _reshaped_in_place(self: Tensor, fun: Any) -> Tensor:
    recorded = writable(self)
    new = fun()
    self.value = new.value
    self.counter[0] += 1
    if recorded:
        self.node, self.needs, self.seen = new.node, new.needs, self.counter[0]
    return self


def _squeezed_in_place(self: Tensor, dim: int | None = None) -> Tensor:
    """Take a dimension of size 1, or all of them, away from this tensor itself."""
    return _reshaped_in_place(self, lambda: labelled(squeeze(self, dim), f"SqueezeBackward{3 if dim is None else 4}"))


def _unsqueezed_in_place(self: Tensor, dim: int) -> Tensor:
    """Give this tensor itself a new dimension of size 1."""
    return _reshaped_in_place(self, lambda: labelled(unsqueeze(self, dim), "UnsqueezeBackward1"))


def _transposed_in_place(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions of this tensor itself."""
    return _reshaped_in_place(self, lambda: labelled(transpose(self, dim0, dim1), "TransposeBackward1"))


methods(
    squeeze_=_squeezed_in_place, unsqueeze_=_unsqueezed_in_place, transpose_=_transposed_in_place,
    swapaxes_=_transposed_in_place, swapdims_=_transposed_in_place,
    t_=lambda self: _reshaped_in_place(self, lambda: labelled(t(self), "TBackward1")),
)  # fmt: skip


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
    return wrap(np.bincount(input.value, None if weights is None else plain(weights), minlength))


# -- products ------------------------------------------------------------------------------------------------------


def _same_kind(a: Tensor, b: Tensor) -> None:
    if a.value.dtype is not b.value.dtype and a.value.dtype != b.value.dtype:
        kinds = f"{c_name(a.value.dtype)} != {c_name(b.value.dtype)}"
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {kinds}")


def _check_matrices(x: Any, y: Any, names: tuple[str, str]) -> None:
    if x.ndim != 2 or y.ndim != 2:
        raise RuntimeError(f"{names[x.ndim == 2]} must be a matrix")
    if x.shape[1] != y.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({x.shape[0]}x{x.shape[1]} and {y.shape[0]}x{y.shape[1]})"
        )


@function
def matmul(input: Tensor, other: Tensor) -> Any:
    """The product of matrices, of stacks of them, and of vectors."""
    if not isinstance(other, Tensor):
        raise TypeError(f"matmul(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    x, y = input.value, other.value
    if x.dtype is not y.dtype:
        _same_kind(input, other)
    n, m = x.ndim, y.ndim
    if n == 1 and m == 2:
        if x.shape[0] != y.shape[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied (1x{x.shape[0]} and {y.shape[0]}x{y.shape[1]})")
        return _row_times_matrix(input, other)
    if n == 2 and m == 2:
        return mm(input, other)
    if n == 0 or m == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {n}D and {m}D")
    if n == 2 and m == 1:
        return mv(input, other)
    if n == 1:
        if m == 1:
            return dot(input, other)
        folded = requires(input) or _lies_in_rows(y.swapaxes(-1, -2))
        return apply(MATMUL, (input, other), NONE, _turned_label(y, False) if folded else _bmm_label(x, y))
    if m == 2:
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        _check_matrices(rows, y, ("self", "mat2"))
        folded = requires(other) or _lies_in_rows(x)
        label: Any = ("MmBackward0", _rows_label(x), 1)
        return apply(ROWS_MM, (input, other), NONE, ("UnsafeViewBackward0", label) if folded else _bmm_label(x, y))
    wrong = unlike(x.shape[:-2], y.shape[:-2])
    if wrong is not None:
        raise wrong
    if x.shape[-1] != y.shape[-2 if m > 1 else 0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{math.prod(x.shape[:-2])}, {x.shape[-1]}] but "
            f"got: [{math.prod(y.shape[:-2])}, {y.shape[-2]}]."
        )
    if m == 1:
        if x.shape[-1] != y.shape[0]:
            rows = math.prod(x.shape[:-1])
            raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{x.shape[-1]}), vec ({y.shape[0]})")
        if requires(other) or _lies_in_rows(x):
            label = ("UnsafeViewBackward0", ("MvBackward0", _rows_label(x), 1))
        else:
            label = ("UnsafeViewBackward0", ("SqueezeBackward1", _bmm_label(x, y)[1]))
    elif n == m == 3 and y.shape[0] == 1 != x.shape[0] and requires(other):
        label = ("UnsafeViewBackward0", ("MmBackward0", _rows_label(x), ("SqueezeBackward1", 1)))
    else:
        label = _turned_label(y, True) if n == 2 and requires(input) else _bmm_label(x, y)
    return apply(MATMUL, (input, other), NONE, label)


def _turned_label(y: Any, rows: bool) -> Any:
    """A vector, or the rows of a matrix, times a stack of matrices, which torch turns round."""
    turned = _rows_label(y.swapaxes(-1, -2), ("TransposeBackward0", 1))
    if not rows:
        return ("UnsafeViewBackward0", ("MvBackward0", turned, 0))
    return chained(["UnsafeViewBackward0", "TransposeBackward0", "CloneBackward0"], ("MmBackward0", turned, ("TBackward0", 0)))


def _lies_in_rows(x: Any) -> bool:
    """Whether torch takes a stack of matrices for one, of all their rows."""
    return not x.size or all([x.strides[i] == x.strides[i + 1] * x.shape[i + 1] for i in range(x.ndim - 2)])


def _rows_label(x: Any, start: Any = 0) -> Any:
    """How torch makes a matrix of the rows of a stack."""
    if x.flags.c_contiguous:
        return ("ViewBackward0", start)
    rows = x.reshape(-1, x.shape[-1])
    shared = rows.base is not None and (rows.base is x or rows.base is x.base)
    return ("ReshapeAliasBackward0", start) if shared else ("UnsafeViewBackward0", ("CloneBackward0", start))


def _bmm_label(*values: Any) -> Any:
    names = ["ViewBackward0" if value.flags.c_contiguous else "ReshapeAliasBackward0" for value in values]
    return ("UnsafeViewBackward0", ("BmmBackward0", *[(name, ("ExpandBackward0", i)) for i, name in enumerate(names)]))


def _row_times_matrix(x: Tensor, w: Tensor) -> Any:
    """As torch has it: the vector as a matrix of one row, whose product is squeezed again."""
    row = unsqueeze(x, 0) if x.needs else x.value.reshape(1, -1)
    product = apply(ROW_MM, (row, w), NONE, "MmBackward0")
    if product.node is None:
        return wrap(product.value.reshape(-1))
    return apply(ROW, (product,), NONE, "SqueezeBackward4")


def _rows_times_matrix(x1: Any, x2: Any) -> Any:
    """One product in place of one for each matrix of a stack."""
    return (x1.reshape(math.prod(x1.shape[:-1]), x1.shape[-1]) @ x2).reshape((*x1.shape[:-1], x2.shape[-1]))


ROWS_MM = variant(MATMUL, fun=_rows_times_matrix)
ROW_MM = variant(MATMUL, rules=(MATMUL.rules[0], lambda g, y, x1, x2: x1.reshape(-1, 1) * g))
ROW = Fused(lambda x: x.reshape(-1), lambda g, y, x: g.reshape(1, -1), family="linear", name="squeeze")


def _times(a: Any, b: Any) -> Any:
    both = [x if isinstance(x, Tensor) else wrap(x) if isinstance(x, np.ndarray) else None for x in (a, b)]
    return matmul(*both) if all([x is not None for x in both]) else NotImplemented


methods(__matmul__=_times)
methods(__rmatmul__=lambda self, other: _times(other, self))


@function
def mm(input: Tensor, mat2: Tensor) -> Any:
    """The product of two matrices."""
    _check_matrices(input.value, mat2.value, ("self", "mat2"))
    return apply(MATMUL, (input, mat2), NONE, "MmBackward0")


@function
def mv(input: Tensor, vec: Tensor) -> Any:
    """A matrix times a vector."""
    a, b = input.value.shape, vec.value.shape
    if len(a) != 2 or len(b) != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {len(a)}, {len(b)}")
    if a[1] != b[0]:
        raise RuntimeError(f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})")
    return apply(MATMUL, (input, vec), NONE, "MvBackward0")


@function
def bmm(input: Tensor, mat2: Tensor) -> Any:
    """Products of two stacks of matrices."""
    a, b = input.value.shape, mat2.value.shape
    for name, shape in (("batch1", a), ("batch2", b)):
        if len(shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}]."
        )
    return apply(MATMUL, (input, mat2), NONE, "BmmBackward0")


@function
def dot(input: Tensor, tensor: Tensor) -> Any:
    """The inner product of two vectors."""
    if input.value.ndim != 1 or tensor.value.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.value.ndim}D and {tensor.value.ndim}D tensors")
    if input.value.dtype != tensor.value.dtype:
        kinds = f"{title(input.value.dtype)} and {title(tensor.value.dtype)}"
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {kinds}")
    n, m = input.value.size, tensor.value.size
    if n != m:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} "
            f"and {m} elements respectively"
        )
    return apply(MATMUL, (input, tensor), NONE, "DotBackward0")


@function
def outer(input: Tensor, vec2: Tensor) -> Any:
    """All products of the elements of two vectors."""
    for name, x in (("self", input), ("vec2", vec2)):
        if x.value.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.value.ndim}-D")
    return reshape(input, (-1, 1)) * vec2


ADDMM = Fused(
    lambda c, a, b, beta=1, alpha=1: a @ b + c if beta == alpha == 1 else c * beta + (a @ b) * alpha,
    lambda g, y, c, a, b, beta=1, alpha=1: g if beta == 1 else g * beta,
    lambda g, y, c, a, b, beta=1, alpha=1: matmul_a(g if alpha == 1 else g * alpha, None, a, b),
    lambda g, y, c, a, b, beta=1, alpha=1: matmul_b(g if alpha == 1 else g * alpha, None, a, b),
    family="multilinear",
    name="addmm",
)


@function
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * mat1 @ mat2``."""
    _check_matrices(mat1.value, mat2.value, ("mat1", "mat2"))
    if beta == alpha == 1:
        return apply(ADDMM, (input, mat1, mat2))
    return apply(ADDMM, (input, mat1, mat2), {"beta": beta, "alpha": alpha})


def _combined(input: Tensor, product: Any, beta: Any, alpha: Any, label: str) -> Any:
    """``beta * input + alpha * product``; NaNs of ``input`` do not matter where ``beta`` is 0."""
    kind = input.value.dtype
    if kind.kind in "iub":
        beta, alpha = int(beta), int(alpha)
    scaled = product if alpha == 1 else (product * alpha).to(kind)
    if product.value.dtype != kind:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_name(kind)} != {c_name(product.value.dtype)}"
        )
    if beta == 0:
        return labelled(expand(scaled, np.broadcast_shapes(input.value.shape, scaled.value.shape)), label)
    return labelled((input if beta == 1 else (input * beta).to(kind)) + scaled, label)


@function
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * mat @ vec``."""
    return _combined(input, mv(mat, vec), beta, alpha, "AddmvBackward0")


@function
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * outer(vec1, vec2)``."""
    return _combined(input, outer(vec1, vec2), beta, alpha, "AddrBackward0")


@function
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * bmm(batch1, batch2)``."""
    return _combined(input, bmm(batch1, batch2), beta, alpha, "BaddbmmBackward0")


@function
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * bmm(batch1, batch2).sum(0)``."""
    return _combined(input, bmm(batch1, batch2).sum(0), beta, alpha, "AddbmmBackward0")


@function
def vdot(input: Tensor, other: Tensor) -> Any:
    """The inner product of two vectors, the first one conjugated."""
    return labelled(dot(input.conj(), other), "VdotBackward0")


def einsum(*args: Any) -> Any:
    """Sums of products, by Einstein's convention: an equation and operands, or operands, each with a list of subscripts."""
    if not isinstance(args[0], str):
        args = _lettered(args)
    equation, *operands = args
    given = several(operands)
    equation = equation.replace(" ", "")
    for i, (term, x) in enumerate(zip(equation.partition("->")[0].split(","), given, strict=False)):
        if "." not in term and len(term) != x.value.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the number of dimensions "
                f"({x.value.ndim}) for operand {i} and no ellipsis was given"
            )
    terms, output = _terms(equation, given)
    if "." in equation.partition("->")[0] and "." not in equation.partition("->")[2] and "->" in equation:
        equation = f"{','.join(terms)}->{output}"  # which sums what the ellipsis stands for
    if len(given) < 3 or "." in equation:
        return _einsum(equation, given, terms, output, "".join(terms))
    return _pairwise(list(given), terms, output)


def _lettered(args: Sequence[Any]) -> tuple[Any, ...]:
    """An equation and operands of operands that are each followed by a list of subscripts, the result's perhaps last."""
    operands, lists = args[:-1:2] if len(args) % 2 else args[::2], [*args[1::2], *(args[-1:] if len(args) % 2 else ())]
    letters = string.ascii_uppercase + string.ascii_lowercase
    terms = ["".join(["..." if n is Ellipsis else letters[n] for n in subscripts]) for subscripts in lists]
    inputs = ",".join(terms[: len(operands)])
    return (f"{inputs}->{terms[-1]}" if len(args) % 2 else inputs, *operands)


def _pairwise(operands: list[Any], terms: list[str], output: str) -> Any:
    """Several operands, multiplied one after the other."""
    product, *rest = operands
    term, *later = terms
    letters = "".join(terms)
    earlier: tuple[int, ...] = ()
    for x, other in zip(rest, list(later), strict=True):
        later = later[1:]
        wanted = output + "".join(later)
        kept = "".join([c for c in dict.fromkeys(letters) if c in term + other and c in wanted]) if later else output
        product = _einsum(f"{term},{other}->{kept}", (product, x), (term, other), kept, letters, earlier, not later)
        term, earlier = kept, (0,)
    return product


def _terms(equation: str, operands: Sequence[Any]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, also those that an ellipsis and a missing result stand for."""
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    free = [c for c in _LETTERS if c not in equation]
    wide = [x.value.ndim - len(term) + 3 for term, x in zip(terms, operands, strict=True) if "." in term]
    dots = "".join(free[: max(wide, default=0)])
    terms = [
        term.replace("...", dots[len(dots) - (x.value.ndim - len(term) + 3) :]) for term, x in zip(terms, operands, strict=True)
    ]
    letters = "".join(terms)
    if not arrow:
        output = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots))
    return terms, output.replace("...", dots)


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _einsum(
    equation: str,
    operands: Sequence[Any],
    terms: Sequence[str],
    output: str,
    letters: str,
    earlier: Sequence[int] = (),
    last: bool = True,
) -> Any:
    result = np.einsum(equation, *operands)
    if not isinstance(result, Tensor) or result.node is None:
        return result
    return labelled(result, _einsum_label(operands, terms, output, letters, earlier, last))


def _einsum_label(
    operands: Sequence[Any], terms: Sequence[str], output: str, letters: str, earlier: Sequence[int], last: bool
) -> Any:
    """How torch puts an einsum together: operands lined up by ``permute``, multiplied or summed by ``bmm``.

    ``letters``: of all operands, also of those that come later. ``earlier``: which operands are products of others, lined up
    already. ``last``: whether this is the whole.
    """
    lined: list[Any] = []
    for i, term in enumerate(terms):
        repeated = sum(term.count(c) - 1 for c in set(term))
        missing = len(set(letters)) - len(set(term))
        steps = ["DiagonalBackward0", "PermuteBackward0"] * repeated + ["UnsqueezeBackward0"] * missing + ["PermuteBackward0"]
        lined.append(i if i in earlier else chained(steps, i) if len(steps) > 1 or i else (steps[0], i))
    summed = [c for c in dict.fromkeys(letters) if c not in output]
    if len(terms) == 1:
        return ("SumBackward1", lined[0]) if summed else lined[0]
    if not summed:
        return ("MulBackward0", *lined)
    sides = []
    for i, (side, term) in enumerate(zip(lined, terms, strict=True)):
        alone = [c for c in summed if c in term and c not in terms[1 - i]]
        steps = ["SumBackward1"] * len(alone) + ["PermuteBackward0", _reshape_name(operands[i], term, terms, output, i)]
        sides.append(chained(steps, side))
    steps = ["ViewBackward0", "PermuteBackward0", "ViewBackward0"]
    return chained(steps if last else steps[:-1], ("BmmBackward0", *sides))


def _reshape_name(x: Tensor, term: str, terms: Sequence[str], output: str, place: int) -> str:
    """How an operand of ``bmm`` gets its shape: a view of memory that lies in order, or of one that does not."""
    other = terms[1 - place]
    kinds = [
        [c for c in output if c in term and c in other],
        [c for c in output if c in term and c not in other],
        [c for c in term if c not in output],
    ]
    order = [*kinds[0], *(kinds[1] + kinds[2] if place == 0 else kinds[2] + kinds[1])]
    if sorted(order) != sorted(term):
        return "ViewBackward0"
    return "ViewBackward0" if x.value.transpose([term.index(c) for c in order]).flags.c_contiguous else "ReshapeAliasBackward0"


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Any:
    """Products summed over pairs of dimensions."""
    if isinstance(dims, int):
        dims = (range(a.value.ndim - dims, a.value.ndim), range(dims))
    axes = tuple(tuple(axis_of(d, x.value.ndim) for d in given) for x, given in zip((a, b), dims, strict=True))
    for i, j in zip(*axes, strict=True):
        m, n = a.value.shape[i], b.value.shape[j]
        if m != n and 1 in (m, n):  # what is summed is as long as the other
            a, b = (a.sum(i, keepdim=True), b) if n == 1 else (a, b.sum(j, keepdim=True))
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in dim {j}"
            )
    result = np.tensordot(a, b, axes)  # type: ignore[arg-type]
    lined = [("ViewBackward0", ("PermuteBackward0", i)) for i in (0, 1)]
    return labelled(result, ("ViewBackward0", ("MmBackward0" if np.ndim(result) else "DotBackward0", *lined)))


@function
def kron(input: Tensor, other: Tensor) -> Any:
    """The Kronecker product."""
    n = max(input.value.ndim, other.value.ndim)
    a, b = ((1,) * (n - x.value.ndim) + x.value.shape for x in (input, other))
    left = labelled(reshape(input, [m for size in a for m in (size, 1)]), "UnsafeViewBackward0")
    right = labelled(reshape(other, [m for size in b for m in (1, size)]), "UnsafeViewBackward0")
    return labelled(reshape(left * right, [i * j for i, j in zip(a, b, strict=True)]), "UnsafeViewBackward0")


@function
def cross(input: Tensor, other: Tensor, dim: int = -1) -> Any:
    """Cross products along a dimension."""
    return labelled(np.cross(input, other, axis=dim), "LinalgCrossBackward0")


@function
def inner(input: Tensor, other: Tensor) -> Any:
    """Products summed over the last dimension."""
    if not input.value.ndim or not other.value.ndim:
        return input * other
    lined = [("PermuteBackward0", i) for i in (0, 1)]
    if input.value.ndim == other.value.ndim == 1:
        return labelled(np.inner(input, other), ("ViewBackward0", ("DotBackward0", *lined)))
    label = ("MmBackward0", ("ViewBackward0", lined[0]), ("ReshapeAliasBackward0", lined[1]))
    return labelled(np.inner(input, other), ("ViewBackward0", label))


FUNCTIONS.update(
    cat=cat, concat=cat, concatenate=cat, stack=stack, einsum=einsum, tensordot=tensordot,
    broadcast_to=broadcast_to, broadcast_tensors=broadcast_tensors, is_tensor=is_tensor, moveaxis=movedim, swapaxes=transpose,
    swapdims=transpose,
)  # fmt: skip
