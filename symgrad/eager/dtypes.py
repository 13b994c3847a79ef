"""Torch's dtypes and sizes over NumPy's, the default dtype, and torch's rules of type promotion."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np


class dtype:
    """An element type: prints as ``torch.float32``, and is NumPy's ``float32`` wherever NumPy asks.

    >>> float32, np.dtype(float32), float32 == np.float32
    (torch.float32, dtype('float32'), True)
    """

    __slots__ = ("dtype",)

    def __init__(self, numpy: Any) -> None:
        self.dtype: np.dtype[Any] = np.dtype(numpy)

    def __repr__(self) -> str:
        return f"torch.{self.dtype.name}"

    def __reduce__(self) -> Any:
        return (as_dtype, (self.dtype.str,))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dtype):
            return self.dtype is other.dtype or self.dtype == other.dtype
        return isinstance(other, (np.dtype, type)) and self.dtype == other

    def __hash__(self) -> int:
        return hash(self.dtype)

    @property
    def is_floating_point(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    @property
    def is_signed(self) -> bool:
        return self.dtype.kind in "ifc"

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    # what rules ask of NumPy's dtypes

    @property
    def kind(self) -> str:
        return self.dtype.kind

    @property
    def type(self) -> Any:
        return self.dtype.type

    @property
    def name(self) -> str:
        return self.dtype.name


_NAMES = "float16 float32 float64 complex64 complex128 uint8 uint16 uint32 uint64 int8 int16 int32 int64 bool".split()
_KNOWN = {np.dtype(name): dtype(name) for name in _NAMES}


def as_dtype(given: Any) -> dtype:
    """Torch's dtype of a NumPy dtype, a Python type or a torch dtype."""
    if type(given) is dtype:
        return given
    return _KNOWN[np.dtype(given)]


def as_numpy(given: Any) -> np.dtype[Any]:
    """NumPy's dtype of the same."""
    return as_dtype(given).dtype


float16, float32, float64, complex64, complex128 = (_KNOWN[np.dtype(name)] for name in _NAMES[:5])
uint8, uint16, uint32, uint64, int8, int16, int32, int64 = (_KNOWN[np.dtype(name)] for name in _NAMES[5:13])
bool_ = _KNOWN[np.dtype(bool)]
half, double, cfloat, cdouble = float16, float64, complex64, complex128
short, long = int16, int64

# what ``.type()`` and error messages call a tensor of each dtype
TITLES = {
    "float16": "Half", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip


def title(numpy: np.dtype[Any]) -> str:
    """``Float`` for float32, as torch's messages say."""
    return TITLES[numpy.name]


def type_name(kind: Any) -> str:
    """Torch's older name of tensors of a dtype, as some messages have it."""
    return f"CPU{title(kind)}Type" if kind.kind in "bc" else f"torch.{title(kind)}Tensor"


def c_name(numpy: np.dtype[Any]) -> str:
    """What C++ calls it, as some of torch's messages do."""
    return {"float32": "float", "float64": "double", "int64": "long int", "int32": "int"}.get(numpy.name, numpy.name)


_C_TYPES = {
    "float32": "float", "float64": "double", "int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t",
    "uint8": "uint8_t",
}  # fmt: skip


@functools.lru_cache(maxsize=16)
def _limits(kind: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the largest number of a dtype of real numbers."""
    if kind.kind == "f":
        return float(np.finfo(kind).min), float(np.finfo(kind).max)
    return np.iinfo(kind).min, np.iinfo(kind).max


def number_in(value: Any, kind: np.dtype[Any]) -> Any:
    """A number in a dtype, as torch converts it: an error where it does not fit. Negative integers become bytes as in C."""
    number = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
    if kind.kind in "fiu":
        least, most = _limits(kind)
        real, imag = number.real, number.imag
        if kind.kind == "u" and isinstance(real, int):
            least = -most
        fits = not imag and (least <= real <= most or (kind.kind == "f" and not math.isfinite(real)))
        if not fits:
            raise RuntimeError(f"value cannot be converted to type {_C_TYPES[kind.name]} without overflow")
        number = real
    return np.asarray(number).astype(kind)


class _Default:
    real = np.dtype(np.float32)
    complex = np.dtype(np.complex64)


default = _Default


def get_default_dtype() -> dtype:
    """The dtype of tensors that are made from Python's floats."""
    return _KNOWN[default.real]


def set_default_dtype(d: dtype) -> None:
    """Let tensors that are made from Python's floats have this dtype from now on."""
    given = as_dtype(d)
    if not given.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    default.real = given.dtype
    default.complex = np.result_type(given.dtype, np.complex64)


class Size(tuple[int, ...]):
    """A shape: a tuple that prints as ``torch.Size([5, 3])``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        """How many elements."""
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        part = tuple.__getitem__(self, key)
        return Size(part) if isinstance(key, slice) else part

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))


_DEVICES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
    "privateuseone"
)


class device:
    """Where a tensor lives. Tensors are made on the CPU only.

    >>> device("cpu"), device("cuda", 1)
    (device(type='cpu'), device(type='cuda', index=1))
    """

    __slots__ = ("index", "type")

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        name, _, number = str(type).partition(":")
        if name not in _DEVICES.split(", "):
            raise RuntimeError(f"Expected one of {_DEVICES} device type at start of device string: {name}")
        self.type, self.index = name, int(number) if number else index

    def __repr__(self) -> str:
        return f"device(type={self.type!r}{'' if self.index is None else f', index={self.index}'})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


CPU = device("cpu")


def on_cpu(given: Any) -> None:
    """Refuse a device that is none of ours."""
    kind = device(given).type
    if kind == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    if kind != "cpu":
        raise NotImplementedError(f"symgrad.eager runs on the CPU only, not on {str(given)!r}")


def set_default_device(given: Any) -> None:
    """Where tensors are made from now on: on the CPU, as ever."""
    on_cpu(given)


def get_default_device() -> device:
    """Where tensors are made."""
    return CPU


class _Constant:
    """A name of torch's for a way to lie in memory; of each kind there is one way here."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class layout(_Constant):
    """Whether elements lie in memory as an array: ``strided``."""


class memory_format(_Constant):
    """In what order dimensions lie in memory. Tensors take no notice of it: it changes no result."""


strided = layout("strided")
contiguous_format, preserve_format, channels_last, channels_last_3d = map(
    memory_format, "contiguous_format preserve_format channels_last channels_last_3d".split()
)

# -- promotion -----------------------------------------------------------------------------------------------------

RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_PYTHON = (bool, int, float, complex)


def promoted(operands: Any) -> np.dtype[Any]:
    """Torch's result type of plain values: arrays with dimensions lead, 0-d ones and Python's numbers only lift the kind."""
    best: list[Any] = [None, None, None]  # of arrays with dimensions, of 0-d ones, of Python's numbers
    for value in operands:
        if value.__class__ in _PYTHON:  # also traced ones; np.float64 is a float, too
            place, kind = 2, python_dtype(value)
        else:
            place, kind = 0 if value.ndim else 1, value.dtype
        best[place] = kind if best[place] is None else joined(best[place], kind)
    result = best[0]
    for kind in best[1:]:
        if kind is not None and (result is None or RANK[kind.kind] > RANK[result.kind]):
            result = kind if result is None or kind.kind != "c" or result.kind != "f" else joined(result, np.complex64)
    return result  # type: ignore[no-any-return]


def joined(a: Any, b: Any) -> Any:
    a, b = np.dtype(a), np.dtype(b)
    if a == b:
        return a
    ranks = RANK[a.kind], RANK[b.kind]
    if ranks[0] < ranks[1] and ranks[1] > 1:
        return b if a.kind != "f" else np.result_type(a, b)
    if ranks[1] < ranks[0] and ranks[0] > 1:
        return a if b.kind != "f" else np.result_type(a, b)
    return np.result_type(a, b)


def python_dtype(value: Any) -> np.dtype[Any]:
    """The dtype that torch infers for a Python number."""
    kind = value.__class__
    if kind is bool:
        return bool_.dtype
    if kind is int:
        return int64.dtype
    return default.complex if kind is complex else default.real


def result_type(a: Any, b: Any) -> dtype:
    """The dtype of ``a + b``, for tensors and numbers."""
    return _KNOWN[promoted([getattr(x, "value", x) for x in (a, b)])]


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether an in-place operation may put ``source`` values into a ``target`` tensor."""
    return RANK[source.kind] <= RANK[target.kind] and not (target.kind == "b" and source.kind != "b")


def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest dtype that both fit into."""
    return _KNOWN[joined(a.dtype, b.dtype)]


class finfo:
    """The limits of a floating-point dtype, the default one if none is given.

    >>> finfo(float32)
    finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, \
tiny=1.17549e-38, dtype=float32)
    """

    def __init__(self, type: Any = None) -> None:
        info: Any = np.finfo(as_numpy(type or default.real))
        for name in ("min", "max", "eps", "smallest_normal", "tiny"):
            setattr(self, name, float(getattr(info, name)))
        self.resolution = 10.0**-info.precision
        self.bits, self.dtype = info.bits, info.dtype.name

    def __repr__(self) -> str:
        names = "resolution min max eps smallest_normal tiny".split()
        return f"finfo({', '.join([f'{name}={getattr(self, name):g}' for name in names])}, dtype={self.dtype})"


class iinfo:
    """The limits of an integer dtype.

    >>> iinfo(int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type: Any) -> None:
        info = np.iinfo(as_numpy(type))
        self.min, self.max, self.bits, self.dtype = info.min, info.max, info.bits, info.dtype.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
