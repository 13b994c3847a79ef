"""Tensors from data, numbers and sizes."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from symgrad.eager.core import NONE, Tensor, apply, method, methods, wrap
from symgrad.eager.dtypes import as_numpy, default, title
from symgrad.eager.shapes import expand, reshape, sizes, transpose
from symgrad.ops.index import COMPLEX


def _made(value: Any, requires_grad: bool) -> Tensor:
    tensor = wrap(value)
    if requires_grad:
        if value.dtype.kind not in "fc":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        tensor.requires_grad = True
    return tensor


def _inferred(data: Any, dtype: Any = None) -> Any:
    """The array of nested lists and numbers, in the dtype that torch infers where none is given."""
    if isinstance(data, (list, tuple)) and _holds(Tensor, data):
        data = _unwrapped(data)
    try:
        value = np.array(data)
    except ValueError as error:
        raise ValueError(_ragged(data) or str(error)) from None
    if value.dtype.kind in "US":
        raise TypeError("new(): invalid data type 'str'")
    if value.dtype == object:
        odd = next((x for x in value.ravel() if not isinstance(x, (int, float, np.generic))), data)
        raise RuntimeError(f"Could not infer dtype of {type(odd).__name__}")
    if dtype is not None:
        return value.astype(as_numpy(dtype))
    if isinstance(data, (np.ndarray, np.generic)) or (isinstance(data, (list, tuple)) and _holds(np.generic, data)):
        return value
    if value.dtype.kind == "f":
        return value.astype(default.real)
    return value.astype(default.complex) if value.dtype.kind == "c" else value


def _holds(kind: Any, data: Any) -> bool:
    return any(isinstance(x, kind) or (isinstance(x, (list, tuple)) and _holds(kind, x)) for x in data)


def _unwrapped(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.value.tolist()
    return [_unwrapped(x) for x in data] if isinstance(data, (list, tuple)) else data


def _ragged(data: Any) -> str | None:
    level, depth = [data], 0
    while level and all(isinstance(x, (list, tuple)) for x in level):
        for x in level:
            if len(x) != len(level[0]):
                return f"expected sequence of length {len(level[0])} at dim {depth} (got {len(x)})"
        level, depth = [y for x in level for y in x], depth + 1
    return None


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor of these numbers: a scalar, nested lists, an array or a tensor. Floats become float32 unless told."""
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        value = np.array(data.value)
    else:
        value = _inferred(data, dtype)
    if dtype is not None and value.dtype != as_numpy(dtype):
        value = value.astype(as_numpy(dtype))
    return _made(value, requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor as it is; an array as a tensor that shares its memory; anything else as ``tensor`` makes it."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, np.ndarray):
        return from_numpy(data) if dtype is None else wrap(data.astype(as_numpy(dtype), copy=False))
    return tensor(data, dtype=dtype)


asarray = as_tensor


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares the memory of an array."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return wrap(ndarray)


def _filled(number: float) -> Any:
    def make(
        *size: Any,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        kind = default.real if dtype is None else as_numpy(dtype)
        value = np.empty(sizes(size), kind)
        value.fill(number)
        return _made(value, requires_grad)

    return make


zeros, ones, empty = _filled(0), _filled(1), _filled(0)
for _fun, _name, _doc in (
    (zeros, "zeros", "A tensor of zeros."),
    (ones, "ones", "A tensor of ones."),
    (empty, "empty", "A tensor with no particular numbers in it: zeros, here."),
):
    _fun.__name__ = _fun.__qualname__ = _name
    _fun.__doc__ = _doc


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of one number."""
    number = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    kind = as_numpy(dtype) if dtype is not None else _inferred(number).dtype
    return _made(np.full(sizes((size,)), number, kind), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal."""
    return _made(np.eye(n, m, dtype=default.real if dtype is None else as_numpy(dtype)), requires_grad)


def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Numbers from ``start`` on, ``step`` apart, before ``end``."""
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))
    if dtype is not None:
        kind = as_numpy(dtype)
    else:
        kind = np.dtype(np.int64) if all(isinstance(x, int) for x in (start, end, step)) else default.real
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = max(0, math.ceil((end - start) / step))
    return _made((start + np.arange(count) * step).astype(kind), requires_grad)


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, evenly spaced."""
    kind = default.real if dtype is None else as_numpy(dtype)
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))
    if steps == 1:
        return _made(np.full(1, start, kind), requires_grad)
    if kind.kind != "f":
        return _made(np.linspace(start, end, steps).astype(kind), requires_grad)
    step = (kind.type(end) - kind.type(start)) / kind.type(max(steps - 1, 1))
    places = np.arange(steps, dtype=kind)
    up, down = kind.type(start) + step * places, kind.type(end) - step * (steps - 1 - places)
    return _made(np.where(np.arange(steps) < steps // 2, up, down).astype(kind), requires_grad)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Powers of ``base`` whose exponents are evenly spaced."""
    kind = default.real if dtype is None else as_numpy(dtype)
    return _made((base ** np.linspace(start, end, steps)).astype(kind), requires_grad)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Coordinates of a grid."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    shape = tuple([x.value.size for x in given])
    grid = [expand(reshape(x, (1,) * i + (-1,) + (1,) * (len(given) - i - 1)), shape) for i, x in enumerate(given)]
    return tuple(grid) if indexing == "ij" or len(grid) < 2 else tuple(transpose(x, 0, 1) for x in grid)


def complex(real: Tensor, imag: Tensor) -> Any:
    """Complex numbers from real and imaginary parts."""
    if real.value.dtype != imag.value.dtype:
        found, other = title(real.value.dtype), title(imag.value.dtype)
        raise RuntimeError(f"Expected object of scalar type {found} but got scalar type {other} for second argument")
    return apply(COMPLEX, (real, imag), NONE, "ComplexBackward0")


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The places of the lower triangle."""
    return wrap(np.stack(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The places of the upper triangle."""
    return wrap(np.stack(np.triu_indices(row, offset, col)))


def _like(make: Any) -> Any:
    def made(
        input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
    ) -> Tensor:
        return make(input.value.shape, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad)  # type: ignore[no-any-return]

    made.__name__ = made.__qualname__ = f"{make.__name__}_like"
    made.__doc__ = f"As ``{make.__name__}``, with the size and dtype of another tensor."
    return made


zeros_like, ones_like, empty_like = _like(zeros), _like(ones), _like(empty)


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of one number, with the size and dtype of another one."""
    return full(input.value.shape, fill_value, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad)


@method
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """``tensor`` in this one's dtype."""
    return tensor(data, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad)


@method
def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """``full`` in this one's dtype."""
    return full(size, fill_value, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad)


def _new(make: Any) -> Any:
    return lambda self, *size, dtype=None, device=None, requires_grad=False: make(
        *size, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad
    )


methods(new_zeros=_new(zeros), new_ones=_new(ones), new_empty=_new(empty))
