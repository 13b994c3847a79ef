"""Tensors from data, numbers and sizes."""

from __future__ import annotations

import builtins
import functools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from symgrad.eager.core import NONE, Tensor, apply, assign, called, check_kernel, methods, numbers, plain, wrap
from symgrad.eager.dtypes import TITLES, as_numpy, default, joined, number_in, on_cpu, preserve_format, python_dtype, title
from symgrad.eager.modes import mode
from symgrad.eager.pointwise import resize
from symgrad.eager.shapes import broadcast_tensors, expand, reshape, several, sizes, transpose
from symgrad.ops.core import Traced
from symgrad.ops.create import contains_traced
from symgrad.ops.index import COMPLEX
from symgrad.tracing.trace import active_trace
from symgrad.tracing.tracer import Tracer


def follow(tensor: Tensor) -> None:
    """Trace a new tensor, under a derivative of symgrad's: traced values may be written into it."""
    trace = active_trace()
    assert trace is not None
    tensor.value = trace.adopt(tensor.value).copy()


def creates(make: Any) -> Any:
    """A function that makes a tensor, of one that makes its array: with torch's options of where and how."""

    @functools.wraps(make)
    def made(
        *args: Any,
        out: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        memory_format: Any = None,
        requires_grad: bool = False,
        order: Any = None,
        **options: Any,
    ) -> Tensor:
        """``order``: of the dimensions in memory; the sizes are given in that order, and the tensor has them in its own."""
        if device is not None:
            on_cpu(device)
        if out is not None:
            kind = out.value.dtype
            if as_numpy(options.setdefault("dtype", kind)) != kind:
                names = title(as_numpy(options["dtype"])), title(kind)
                raise RuntimeError(f"dtype {names[0]} does not match dtype of out parameter ({names[1]})")
        value = make(*args, **options)
        value = value if order is None else value.transpose(np.argsort(order))
        if out is not None:
            if out.value.shape != value.shape:
                resize(out, value.shape)
            return assign(out, wrap(value), make.__name__)
        tensor = wrap(value)
        if mode.tracing and value.dtype.kind in "fc":
            follow(tensor)
        if requires_grad:
            if value.dtype.kind not in "fc":
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            tensor.requires_grad = True
        return tensor

    return made


def _inferred(data: Any, dtype: Any = None) -> Any:
    """The array of nested lists and numbers, in the dtype that torch infers where none is given."""
    kind = None
    whole = isinstance(data, (np.ndarray, np.generic))
    if whole and data.dtype != object:  # which holds traced values, or what is refused below
        check_array(data)
    elif isinstance(data, (list, tuple)) and _holds((Tensor, np.ndarray, np.generic), data):
        kind = functools.reduce(joined, _kinds(data))
        data = _unwrapped(data)
    trace = active_trace() if mode.tracing else None
    try:
        value = np.array(data) if trace is None or not contains_traced([data]) else trace.adopt(data)
    except ValueError as error:
        raise ValueError(_ragged(data) or str(error)) from None
    if value.dtype.kind in "US":
        raise TypeError("new(): invalid data type 'str'")
    if value.dtype == object:
        odd = [type(x).__name__ for x in value.ravel() if not isinstance(x, (int, float, np.generic))]
        if not odd:
            raise ValueError("Overflow when unpacking long long")
        raise RuntimeError(f"Could not infer dtype of {odd[0]}")
    if dtype is not None:
        if not isinstance(data, (np.ndarray, np.generic)):
            _check_fits(value, as_numpy(dtype))
        return _as(value, as_numpy(dtype))
    if whole:
        return value
    if kind is not None:
        return _as(value, kind)
    if value.dtype == np.uint64:
        raise ValueError("Overflow when unpacking long long")
    if value.dtype.kind == "f":
        return _as(value, default.real)
    return _as(value, default.complex) if value.dtype.kind == "c" else value


def check_array(array: Any) -> None:
    """Raise for arrays that cannot be a tensor's."""
    if array.dtype.name not in TITLES:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: float64, "
            "float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    if any([step < 0 for step in array.strides]):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
            "supported. (You can probably work around this by making a copy of your array with array.copy().)"
        )


def _kinds(data: Any) -> Iterator[np.dtype[Any]]:
    """The dtypes of what nested lists hold: numbers, of Python's or NumPy's, arrays and tensors."""
    for x in data:
        if isinstance(x, (list, tuple)):
            yield from _kinds(x)
        else:
            value = x.value if isinstance(x, Tensor) else x
            yield value.dtype if isinstance(value, (np.ndarray, np.generic, Tracer)) else python_dtype(value)


def _as(value: Any, kind: Any) -> Any:
    """The value in a dtype; what is too large for it becomes infinite without a warning, as in torch."""
    return mode.quiet(value.astype, kind) if type(value) is np.ndarray else value.astype(kind)


def _check_fits(value: Any, wanted: np.dtype[Any]) -> None:
    """Raise for Python's numbers that cannot be of a dtype."""
    kind = value.dtype.kind
    if isinstance(value, Traced) or not value.size:
        return
    if kind == "c" and wanted.kind in "iuf":
        raise TypeError(
            "must be real number, not complex" if wanted.kind == "f" else "'complex' object cannot be interpreted as an integer"
        )
    if kind in "iuf" and wanted.kind in "iu":
        most = np.iinfo(wanted).max
        least = np.iinfo(wanted).min if kind == "f" or wanted.kind == "i" else -most
        if not (value.min() >= least and value.max() <= most):
            raise RuntimeError(f"value cannot be converted to type {wanted.name} without overflow")


def _holds(kind: Any, data: Any) -> bool:
    return any(isinstance(x, kind) or (isinstance(x, (list, tuple)) and _holds(kind, x)) for x in data)


def _unwrapped(data: Any) -> Any:
    if isinstance(data, Tensor):
        if data.value.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return numbers(data).reshape(()).tolist()
    return [_unwrapped(x) for x in data] if isinstance(data, (list, tuple)) else data


def _ragged(data: Any) -> str | None:
    level, depth = [data], 0
    while level and all(isinstance(x, (list, tuple)) for x in level):
        for x in level:
            if len(x) != len(level[0]):
                return f"expected sequence of length {len(level[0])} at dim {depth} (got {len(x)})"
        level, depth = [y for x in level for y in x], depth + 1
    return None


@creates
def tensor(data: Any, *, dtype: Any = None) -> Any:
    """A new tensor of these numbers: a scalar, nested lists, an array or a tensor. Floats become float32 unless told."""
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=3,
        )
        value: Any = numbers(data)
        value = value.copy() if type(value) is Tracer else np.array(value)
    else:
        value = _inferred(data, dtype)
    return value if dtype is None or value.dtype == as_numpy(dtype) else value.astype(as_numpy(dtype))


@creates
def range(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """Numbers from ``start`` on, with ``end``."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    warnings.warn(_RANGE, stacklevel=3)
    kind = default.real if dtype is None else as_numpy(dtype)
    return (start + np.arange(math.floor((end - start) / step) + 1) * step).astype(kind)


_RANGE = (
    "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's "
    "range builtin. Instead, use torch.arange, which produces values in [start, end)."
)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor as it is; an array as a tensor that shares its memory; anything else as ``tensor`` makes it."""
    if device is not None:
        on_cpu(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, np.ndarray):
        return from_numpy(data) if dtype is None else wrap(data.astype(as_numpy(dtype), copy=False))
    return tensor(data, dtype=dtype, device=device)  # type: ignore[no-any-return]


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """``as_tensor``, or a copy."""
    made = as_tensor(obj, dtype, device)
    if requires_grad is None and made.requires_grad:
        warnings.warn(_AS_IT_IS, stacklevel=2)
    elif made.requires_grad and not requires_grad:
        made = made.detach()
    made = made.clone() if copy and made is obj else wrap(np.array(made.value)) if copy else made
    return made.requires_grad_() if requires_grad else made


_AS_IT_IS = (
    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass requires_grad=False "
    "explicitly to get the old behavior and silence this warning."
)


@creates
def scalar_tensor(s: Any, *, dtype: Any = None) -> Any:
    """A tensor of one number, in the default dtype."""
    return number_in(plain(s), default.real if dtype is None else as_numpy(dtype))


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares the memory of an array."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    check_array(ndarray)
    return wrap(ndarray)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A tensor that shares the memory of a buffer."""
    made = from_numpy(np.frombuffer(buffer, as_numpy(dtype), count, offset))
    return made.requires_grad_() if requires_grad else made


def from_dlpack(ext_tensor: Any, **options: Any) -> Tensor:
    """A tensor that shares the memory of another library's."""
    return from_numpy(ext_tensor.value if isinstance(ext_tensor, Tensor) else np.from_dlpack(ext_tensor, **options))


@creates
def empty_strided(size: Any, stride: Any, *, dtype: Any = None) -> Any:
    """Zeros that lie in memory as far apart as ``stride`` says."""
    kind = default.real if dtype is None else as_numpy(dtype)
    shape, steps = sizes((size,)), sizes((stride,))
    needed = 0 if 0 in shape else 1 + sum([(n - 1) * step for n, step in zip(shape, steps, strict=True)])
    return np.ndarray(shape, kind, np.zeros(needed, kind), 0, [step * kind.itemsize for step in steps])


@creates
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None) -> Any:
    """Zeros whose dimensions lie in memory in this order."""
    order = tuple(physical_layout)
    made = np.zeros([size[i] for i in order], default.real if dtype is None else as_numpy(dtype))
    return made.transpose(np.argsort(order))


def _size(name: str, given: Any) -> tuple[int, ...]:
    """``sizes`` of whole numbers."""
    for n in given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given:
        if isinstance(n, float):
            raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not float")
    return sizes(given)


def _filled(name: str, number: float, doc: str) -> Any:
    @creates
    @called(name, doc)
    def make(*size: Any, dtype: Any = None, **named: Any) -> Any:
        shape = _size(name, size or (named["size"],))
        if any([n < 0 for n in shape]):
            raise RuntimeError(f"{name}: Dimension size must be non-negative.")
        value = np.empty(shape, default.real if dtype is None else as_numpy(dtype))
        value.fill(number)
        return value

    return make


zeros, ones = _filled("zeros", 0, "A tensor of zeros."), _filled("ones", 1, "A tensor of ones.")
empty = _filled("empty", 0, "A tensor with no particular numbers in it: zeros, here.")


@creates
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """A tensor of one number."""
    number = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    if isinstance(size, (int, float)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    shape, kind = sizes((size,)), as_numpy(dtype) if dtype is not None else _inferred(number).dtype
    if type(number) is not Tracer:
        number = number_in(number, kind)
    return np.broadcast_to(number, shape).astype(kind)


@creates
def eye(n: int, m: int | None = None, *, dtype: Any = None) -> Any:
    """Ones on the diagonal."""
    for name, size in (("n", n), ("m", m or 0)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return np.eye(n, m, dtype=default.real if dtype is None else as_numpy(dtype))


def _number(x: Any) -> Any:
    """What a 0-d tensor in place of a number stands for."""
    if isinstance(x, Tensor) and x.value.ndim:
        raise RuntimeError(f"only 0-dimensional start and end tensors are supported, but got {x.value.ndim} dimension(s)")
    return x.item() if isinstance(x, Tensor) else x


@creates
def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """Numbers from ``start`` on, ``step`` apart, before ``end``."""
    start, end = (0, start) if end is None else (start, end)
    start, end, step = map(_number, (start, end, step))
    if dtype is not None:
        kind = as_numpy(dtype)
    else:
        kind = np.dtype(np.int64) if all(isinstance(x, int) for x in (start, end, step)) else default.real
    check_kernel("arange_cpu", kind, "fiu")
    if not (np.isfinite(start) and np.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = max(0, math.ceil((end - start) / step))
    if kind.kind in "iu":
        start, step = int(start), int(step)
    return (start + np.arange(count) * step).astype(kind)


def _spaced(start: Any, end: Any, steps: int, kind: Any) -> Any:
    """Evenly spaced numbers, counted from the nearer end; whole numbers are those below numbers that lie between whole ends."""
    if kind.kind not in "fc":
        return _spaced(int(start), int(end), steps, np.dtype(np.float32)).astype(kind)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if steps == 1:
        return np.full(1, start, kind)
    step = (kind.type(end) - kind.type(start)) / kind.type(max(steps - 1, 1))
    places = np.arange(steps, dtype=kind)
    up, down = kind.type(start) + step * places, kind.type(end) - step * (steps - 1 - places)
    return np.where(np.arange(steps) < steps // 2, up, down).astype(kind)


def _spaced_kind(name: str, start: Any, end: Any, dtype: Any) -> np.dtype[Any]:
    """The dtype of numbers between two, one of which may be complex."""
    found = default.complex if isinstance(start, _COMPLEX) or isinstance(end, _COMPLEX) else default.real
    kind = found if dtype is None else as_numpy(dtype)
    if found.kind == "c" != kind.kind:
        raise RuntimeError(f"torch.{name}(): inferred dtype {title(found)} can't be safely cast to passed dtype {title(kind)}")
    check_kernel(f"{name}_cpu", kind, "fciu")
    return kind


_COMPLEX = (builtins.complex, np.complexfloating)


@creates
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None) -> Any:
    """``steps`` numbers from ``start`` to ``end``, evenly spaced."""
    start, end = _number(start), _number(end)
    kind = _spaced_kind("linspace", start, end, dtype)
    return _spaced(start, end, steps, kind)


@creates
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None) -> Any:
    """Powers of ``base`` whose exponents are evenly spaced."""
    start, end = _number(start), _number(end)
    kind = _spaced_kind("logspace", start, end, dtype)
    wide = kind if kind.kind in "fc" else np.dtype(np.float64)
    return np.power(wide.type(base), _spaced(start, end, steps, wide)).astype(kind)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Coordinates of a grid."""
    given = several(tensors)
    if not given:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in given:
        if x.value.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x}")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if len({x.value.dtype for x in given}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    shape = tuple([x.value.size for x in given])
    grid = [expand(reshape(x, (1,) * i + (-1,) + (1,) * (len(given) - i - 1)), shape) for i, x in enumerate(given)]
    return tuple(grid) if indexing == "ij" or len(grid) < 2 else tuple(transpose(x, 0, 1) for x in grid)


def complex(real: Tensor, imag: Tensor) -> Any:
    """Complex numbers from real and imaginary parts."""
    if real.value.dtype.kind != "f" or imag.value.dtype.kind != "f":
        kinds = " and ".join([title(x.value.dtype) for x in (real, imag)])
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {kinds}")
    if real.value.dtype != imag.value.dtype:
        found, other = title(real.value.dtype), title(imag.value.dtype)
        raise RuntimeError(f"Expected object of scalar type {found} but got scalar type {other} for second argument")
    if real.value.shape != imag.value.shape:
        real, imag = broadcast_tensors(real, imag)
    return apply(COMPLEX, (real, imag), NONE, "ComplexBackward0")


def _triangle(name: str, doc: str) -> Any:
    @creates
    @called(name, doc)
    def make(row: int, col: int, offset: int = 0, *, dtype: Any = np.int64) -> Any:
        for which, n in (("row", row), ("col", col)):
            if n < 0:
                raise RuntimeError(f"{which} must be non-negative, got{n}")
        return np.stack(getattr(np, name)(row, offset, col)).astype(as_numpy(dtype))

    return make


tril_indices = _triangle("tril_indices", "The places of the lower triangle.")
triu_indices = _triangle("triu_indices", "The places of the upper triangle.")


def like(make: Any) -> Any:
    """As ``make``, with the size and dtype of another tensor."""

    @called(f"{make.__name__}_like", f"As ``{make.__name__}``, with the size and dtype of another tensor.")
    def made(input: Tensor, *args: Any, dtype: Any = None, **options: Any) -> Any:
        shape, options = laid_as(input, options)
        return make(shape, *args, dtype=input.dtype if dtype is None else dtype, **options)

    return made


def laid_as(x: Tensor, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The sizes of a tensor and options for one that ``creates`` makes: with its dimensions in the same order in memory.

    Those that repeat elements stay where they are.
    """
    order = order_of(x.value) if options.get("memory_format") in (None, preserve_format) else None
    return (x.value.shape, options) if order is None else ([x.value.shape[i] for i in order], {**options, "order": order})


def order_of(value: Any) -> list[int] | None:
    """The dimensions of an array as they lie in memory, the outermost first; None where they lie in order."""
    if type(value) is not np.ndarray or value.flags.c_contiguous:
        return None
    moved = [axis for axis, step in enumerate(value.strides) if step]
    ranked = iter(sorted(moved, key=lambda axis: -value.strides[axis]))
    return [next(ranked) if axis in moved else axis for axis in builtins.range(value.ndim)]


def laid_out(drawn: Any, value: Any) -> Any:
    """Numbers in the shape of an array, in the order in which that lies in memory."""
    order = order_of(value)
    if order is None:
        return drawn.reshape(value.shape)
    return drawn.reshape([value.shape[i] for i in order]).transpose(np.argsort(order))


zeros_like, ones_like, empty_like, full_like = like(zeros), like(ones), like(empty), like(full)


def _new(make: Any) -> Any:
    @called(f"new_{make.__name__}", f"``{make.__name__}`` in this tensor's dtype.")
    def made(self: Tensor, *args: Any, dtype: Any = None, **options: Any) -> Any:
        return make(*args, dtype=self.dtype if dtype is None else dtype, **options)

    return made


methods(
    new_empty_strided=lambda self, size, stride, dtype=None, **options: empty_strided(
        size, stride, dtype=self.dtype if dtype is None else dtype, **options
    )
)
methods(new_zeros=_new(zeros), new_ones=_new(ones), new_empty=_new(empty), new_full=_new(full), new_tensor=_new(tensor))
