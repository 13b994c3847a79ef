"""``torch.fft``: NumPy's transforms, with torch's argument names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.eager.core import Tensor, axis_of, called, labelled, wrap
from symgrad.eager.creation import creates
from symgrad.eager.dtypes import as_numpy, default, title
from symgrad.eager.modes import mode
from symgrad.eager.pointwise import as_floats
from symgrad.eager.shapes import cat, roll

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
    "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def _ready(name: str, x: Tensor, dims: Sequence[int], sizes: Sequence[Any] = ()) -> Tensor:
    """The input in a floating-point dtype, checked as torch does."""
    if not x.value.ndim and dims:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    axes = [axis_of(dim, x.value.ndim) for dim in dims]
    if len(set(axes)) < len(axes):
        raise RuntimeError("FFT dims must be unique")
    for n in [*sizes, *([x.value.shape[axis] for axis in axes] if not sizes else [])]:
        if n is not None and n < 1 and n != -1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    if x.value.dtype == np.float16:
        raise NotImplementedError("Unsupported dtype Half")
    if name.startswith(("rfft", "ihfft")) and x.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {title(x.value.dtype)}")
    return as_floats(x)


def _label(name: str, x: Tensor) -> str:
    """Torch's name: from real or complex numbers to these, the last of its steps."""
    if name.startswith(("irfft", "hfft")):
        return "FftC2RBackward0"
    if x.is_complex() or name in ("fft2", "fftn", "ifft2", "ifftn"):
        return "FftC2CBackward0"
    return "ConjBackward0" if name in ("ifft", "ihfft") else "FftR2CBackward0"


def _started(x: Tensor, dim: int) -> Tensor:
    """A zero where there is nothing along a dimension, which NumPy does not fill up."""
    axis, shape = axis_of(dim, x.value.ndim), list(x.value.shape)
    if shape[axis]:
        return x
    shape[axis] = 1
    return cat((x, wrap(np.zeros(shape, x.value.dtype))), axis)  # type: ignore[no-any-return]


def _one(name: str, doc: str) -> Callable[..., Any]:
    numpys: Any = getattr(np.fft, name)

    @called(name, doc)
    def fun(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        x = _ready(name, input, (dim,), () if n is None else (n,))
        if name in ("irfft", "hfft") and n is not None:
            x = _started(x, dim)
        return labelled(numpys(x, n, dim, norm), _label(name, x))

    return fun


fft, ifft = _one("fft", "The Fourier transform along a dimension."), _one("ifft", "The inverse of ``fft``.")
rfft, irfft = _one("rfft", "The first half of ``fft``, of real numbers."), _one("irfft", "The inverse of ``rfft``.")
hfft, ihfft = _one("hfft", "The transform of the first half of a Hermitian signal."), _one("ihfft", "The inverse of ``hfft``.")


def _axes(x: Tensor, s: Any, dim: Any) -> tuple[Any, Any]:
    """Sizes and dimensions of a transform along several of these, all of them by default."""
    if dim is None:
        dim = tuple(range(-x.value.ndim, 0)) if s is None else tuple(range(-len(s), 0))
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    if s is not None:
        s = tuple([x.value.shape[d] if n == -1 else n for n, d in zip(s, dim, strict=True)])
    return s, dim


def _several(name: str, doc: str, dims: Any = None) -> Callable[..., Any]:
    numpys: Any = getattr(np.fft, name.replace("2", "n"))

    @called(name, doc)
    def fun(input: Tensor, s: Any = None, dim: Any = dims, norm: str | None = None) -> Any:
        if dims is not None and dim is None:
            raise TypeError(f"fft_{name}(): argument 'dim' must be tuple of ints, not NoneType")
        s, dim = _axes(input, s, dim)
        x = _ready(name, input, dim, s or ())
        if not dim:
            if "r" in name:
                raise RuntimeError(f"{name} must transform at least one axis")
            return x.to(np.result_type(x.value.dtype, np.complex64))
        if name.startswith("irfft") and s is not None:
            x = _started(x, dim[-1])
        return labelled(numpys(x, s, dim, norm), _label(name, x))

    return fun


_DOC = "As ``{}``, along several dimensions."
fftn, ifftn, rfftn, irfftn = (_several(f"{name}n", _DOC.format(name)) for name in ("fft", "ifft", "rfft", "irfft"))
fft2, ifft2, rfft2, irfft2 = (
    _several(f"{name}2", _DOC.format(name).replace("several", "two"), (-2, -1)) for name in ("fft", "ifft", "rfft", "irfft")
)


def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """As ``hfft`` along the last of several dimensions, and ``fft`` along the others."""
    s, dim = _axes(input, s, dim)
    if not dim:
        raise RuntimeError("hfftn must transform at least one axis")
    _ready("hfftn", input, dim, s or ())
    x = fftn(input, None if s is None else s[:-1], dim[:-1], norm) if dim[1:] else input
    return hfft(x, None if s is None else s[-1], dim[-1], norm)


def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of ``hfftn``."""
    s, dim = _axes(input, s, dim)
    if not dim:
        raise RuntimeError("ihfftn must transform at least one axis")
    _ready("ihfftn", input, dim, s or ())
    x = ihfft(input, None if s is None else s[-1], dim[-1], norm)
    return ifftn(x, None if s is None else s[:-1], dim[:-1], norm) if dim[1:] else x


def hfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """``hfftn`` along two dimensions."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """``ihfftn`` along two dimensions."""
    return ihfftn(input, s, dim, norm)


def _shift(input: Tensor, dim: Any, back: bool) -> Any:
    dims = range(input.value.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    sizes = [input.value.shape[axis_of(d, input.value.ndim)] for d in dims]
    return roll(input, tuple([(n + 1) // 2 if back else n // 2 for n in sizes]), tuple(dims))


def fftshift(input: Tensor, dim: Any = None) -> Any:
    """The zero frequency moved to the middle."""
    return _shift(input, dim, False)


def ifftshift(input: Tensor, dim: Any = None) -> Any:
    """The inverse of ``fftshift``."""
    return _shift(input, dim, True)


def _frequencies(fun: Any, n: int, d: float, dtype: Any) -> Any:
    """NumPy's ``fun``; of no samples, or of samples that are not apart, too."""
    kind = default.real if dtype is None else as_numpy(dtype)
    if kind.kind not in "fc":
        raise RuntimeError(f"{fun.__name__} requires a floating point or complex dtype")
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if n and d:
        return fun(n, d).astype(kind)
    found = mode.quiet(np.divide, fun(max(n, 1)), n * d).astype(kind)
    return found if n or fun is np.fft.rfftfreq else found[:0]


@creates
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None) -> Any:
    """The frequencies that ``fft`` of ``n`` samples, ``d`` apart, gives."""
    return _frequencies(np.fft.fftfreq, n, d, dtype)


@creates
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None) -> Any:
    """The frequencies that ``rfft`` of ``n`` samples, ``d`` apart, gives."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype)
