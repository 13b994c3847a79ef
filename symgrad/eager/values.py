"""What a tensor tells of itself, and its values: as others, as Python's numbers and NumPy's arrays, as copies."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.eager.core import (
    NAMES,
    Tensor,
    apply,
    assign,
    axis_of,
    called,
    constant,
    known,
    method,
    methods,
    numbers,
    plain,
    requires,
    variant,
    whole,
    wrap,
)
from symgrad.eager.creation import order_of
from symgrad.eager.dtypes import as_numpy, contiguous_format, device, on_cpu, strided, title
from symgrad.eager.modes import mode
from symgrad.eager.pointwise import FUNCTIONS, function
from symgrad.eager.shapes import sizes
from symgrad.ops.core import Traced
from symgrad.ops.engine import ASTYPE


def _unrepeated(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that copies arrays: dimensions that repeat elements lie in the copy where they stand, as in torch."""

    def copied(x: Any, **params: Any) -> Any:
        order = order_of(x) if type(x) is np.ndarray and 0 in x.strides else None
        if order is None:
            return fun(x, **params)
        return fun(np.ascontiguousarray(x.transpose(order)), **params).transpose(np.argsort(order))

    return copied


COPY, CAST = [variant(op, fun=_unrepeated(op.fun)) for op in (known(np.copy), ASTYPE)]
CONTIGUOUS = variant(COPY, fun=lambda a: np.array(a, order="C"))
NAMES[np.copy] = "CloneBackward0"


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
def storage_offset(self: Tensor) -> int:
    """How many elements lie in memory before its first one."""
    top = whole(self if self.base is None else self.base)
    return int(whole(self).ctypes.data - top.ctypes.data) // int(self.value.itemsize)


@method
def is_contiguous(self: Tensor) -> bool:
    return bool(self.value.flags.c_contiguous)


@function
def is_signed(input: Tensor) -> bool:
    """Whether its numbers may be negative."""
    return input.dtype.is_signed


@function
def is_nonzero(input: Tensor) -> bool:
    """Whether its one number is not zero."""
    return bool(input)


@function
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return bool(input.value.shape == other.value.shape)


@function
def is_conj(input: Tensor) -> bool:
    """Whether conjugates are still to be taken: they never are, here."""
    return False


@function
def is_neg(input: Tensor) -> bool:
    """Whether signs are still to be changed: they never are, here."""
    return False


@function
def get_device(input: Tensor) -> int:
    """The number of its device, -1 for the CPU."""
    return -1


@method
def cuda(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """There is none."""
    on_cpu("cuda")


@method
def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions as they lie in memory, the one with the longest steps first."""
    return tuple(sorted(range(self.value.ndim), key=lambda i: -self.value.strides[i]))


methods(
    is_cpu=True, is_cuda=False, is_sparse=False, is_meta=False, is_quantized=False, is_nested=False, layout=strided,
    itemsize=property(lambda self: int(self.value.itemsize)), nbytes=property(lambda self: int(self.value.nbytes)),
    is_shared=lambda self: False, is_pinned=lambda self: False,
)  # fmt: skip


def typename(obj: Any) -> str:
    """What torch calls the type of a tensor, or of something else."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


@method
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Take another shape, and as many elements of the memory, of new one where there are too few."""
    if requires(self):
        raise RuntimeError("cannot resize variables that require grad")
    shape, value = sizes(size), whole(self)
    memory = value.base if isinstance(value.base, np.ndarray) and value.base.dtype == value.dtype else value
    start = (value.ctypes.data - memory.ctypes.data) // value.itemsize
    count = math.prod(shape)
    if not memory.flags.c_contiguous or start + count > memory.size:
        memory, start = np.zeros(count, value.dtype), 0
        memory[: value.size] = value.reshape(-1)[:count]
    self.value = memory.reshape(-1)[start : start + count].reshape(shape)
    self.counter[0] += 1
    return self


@method
def resize_as_(self: Tensor, the_template: Tensor) -> Tensor:
    """``resize_`` to the shape of another tensor."""
    return resize_(self, the_template.shape)  # type: ignore[no-any-return]


def _each_written(self: Tensor, fun: Any, *others: Tensor) -> Tensor:
    """Write what a function of Python's numbers gives for each element."""
    if requires(self) or any([requires(x) for x in others]):
        raise TypeError("Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.")
    found = np.frompyfunc(fun, 1 + len(others), 1)(*[x.value for x in (self, *others)])
    return assign(self, wrap(np.asarray(found).astype(self.value.dtype)), "apply_")


methods(
    apply_=_each_written,
    map_=lambda self, tensor, fun: _each_written(self, fun, tensor),
)


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
    return numbers(self).tolist()


@method
def numpy(self: Tensor, *, force: bool = False) -> Any:
    """The NumPy array itself, whose memory stays shared."""
    if (mode.grad or mode.tracing) and requires(self) and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return whole(self)


@method
def detach(self: Tensor) -> Tensor:
    """The same values, as a constant; the memory is shared."""
    same = constant(whole(self), True)
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
    self.value, self.node, self.needs = constant(self.value).value, None, False
    return self


@function
def clone(input: Tensor, *, memory_format: Any = None) -> Any:
    """A copy of its own memory, still part of the graph."""
    if type(input.value) is not np.ndarray:
        whole(input)
    return apply(CONTIGUOUS if memory_format is contiguous_format else COPY, (input,))


@method
def contiguous(self: Tensor) -> Any:
    """This tensor, or a copy that lies in memory in order."""
    return self if isinstance(self.value, Traced) or self.value.flags.c_contiguous else apply(CONTIGUOUS, (self,))


def _cast(x: Tensor, kind: Any) -> Any:
    wanted = as_numpy(kind)
    if x.value.dtype == wanted:
        return x
    return apply(CAST, (x,), {"dtype": wanted})


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
        return apply(CAST, (self,), {"dtype": self.value.dtype if kind is None else as_numpy(kind)})
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
    if isinstance(x.value, Traced):
        return x.value
    if x.value.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return x.item()


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


methods(__len__=_len)
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

FUNCTIONS.update(is_tensor=is_tensor, typename=typename, detach=detach, is_inference=Tensor.is_inference)
