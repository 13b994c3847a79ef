"""``scipy.fft``: cosine transforms; the others are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft as sf

from symgrad.errors import NotDifferentiable
from symgrad.ops.index import array_of, floating
from symgrad.ops.reduction import along, vector_shape
from symgrad.scipy.plain import rest_of

fft, ifft, rfft, irfft, hfft, ihfft = np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft
fft2, ifft2, rfft2, irfft2 = np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2
fftn, ifftn, rfftn, irfftn = np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn


__getattr__ = rest_of(sf)


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None, **options: Any) -> Any:
    """The cosine transform of type 2 or 3 along an axis."""
    x, axis = _sized(x, type, n, axis, norm, options)
    return _second(x, axis, norm) if type == 2 else _third(x, axis, norm)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None, **options: Any) -> Any:
    """Its inverse."""
    x, axis = _sized(x, type, n, axis, norm, options)
    scale = 1.0 if norm == "ortho" else 0.5 / np.shape(x)[axis]
    return scale * (_third(x, axis, norm) if type == 2 else _second(x, axis, norm))


def dctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, **options: Any) -> Any:
    """The cosine transform along several axes, all by default."""
    return _along_all(dct, x, type, s, axes, norm, options)


def idctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, **options: Any) -> Any:
    """Its inverse."""
    return _along_all(idct, x, type, s, axes, norm, options)


def _along_all(transform: Any, x: Any, type: int, s: Any, axes: Any, norm: Any, options: Any) -> Any:
    if s is not None:
        raise NotDifferentiable("scipy.fft.dctn and idctn have no derivative rule for s=; pad or cut before")
    x = array_of(x)
    for axis in range(np.ndim(x)) if axes is None else np.atleast_1d(axes).tolist():
        x = transform(x, type, axis=axis, norm=norm, **options)
    return x


def _sized(x: Any, type: int, n: int | None, axis: int, norm: Any, options: Any) -> tuple[Any, int]:
    if (
        type not in (2, 3)
        or n is not None
        or norm not in (None, "backward", "ortho")
        or options.get("orthogonalize") is not None
    ):
        raise NotDifferentiable("scipy.fft.dct and idct are here for types 2 and 3, without n=, and norm=None or 'ortho'")
    x = floating(x)
    if np.iscomplexobj(x):
        raise NotDifferentiable("scipy.fft.dct and idct are here for real arrays")
    x = x.astype(np.float32) if x.dtype == np.float16 else x
    return x, axis % np.ndim(x)


def _turns(x: Any, axis: int, sign: int) -> Any:
    """By which the transform of a sequence and its mirror image is real."""
    n = np.shape(x)[axis]
    turns = np.exp(sign * 0.5j * np.pi / n * np.arange(n)).astype(np.result_type(x.dtype, np.complex64))
    return np.reshape(turns, vector_shape(axis, np.ndim(x)))


def _weights(x: Any, axis: int, first: float, rest: float) -> Any:
    n = np.shape(x)[axis]
    return np.reshape(np.array([first, *[rest] * (n - 1)], x.dtype), vector_shape(axis, np.ndim(x)))


def _second(x: Any, axis: int, norm: Any) -> Any:
    n = np.shape(x)[axis]
    whole = np.fft.rfft(np.concatenate((x, np.flip(x, axis)), axis), axis=axis)[along(axis, slice(0, n))]
    y = np.real(whole * _turns(x, axis, -1))
    return y * _weights(x, axis, 0.5 / n**0.5, (0.5 / n) ** 0.5) if norm == "ortho" else y


def _third(x: Any, axis: int, norm: Any) -> Any:
    """The transpose of the second but for scales: of real parts, with the first counted once."""
    n = np.shape(x)[axis]
    x = x * _weights(x, axis, 1 / n**0.5, (0.5 / n) ** 0.5) if norm == "ortho" else x
    half = x * _turns(x, axis, 1)
    whole = np.concatenate((half, np.zeros_like(half[along(axis, slice(0, 1))])), axis)
    return 2 * n * np.fft.irfft(whole, 2 * n, axis=axis)[along(axis, slice(0, n))]
