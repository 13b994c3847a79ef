"""``scipy.fft``: cosine and sine transforms; the others are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft as sf

from symgrad.errors import NotDifferentiable
from symgrad.ops.fft import resized
from symgrad.ops.index import array_of, floating
from symgrad.ops.reduction import along, vector_shape
from symgrad.scipy.plain import rest_of

fft, ifft, rfft, irfft, hfft, ihfft = np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft
fft2, ifft2, rfft2, irfft2 = np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2
fftn, ifftn, rfftn, irfftn = np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn


__getattr__ = rest_of(sf)


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None, **options: Any) -> Any:
    """The cosine transform of type 1 to 4 along an axis."""
    return _transformed(COSINE, x, type, n, axis, norm, options, False)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None, **options: Any) -> Any:
    """Its inverse."""
    return _transformed(COSINE, x, type, n, axis, norm, options, True)


def dst(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None, **options: Any) -> Any:
    """The sine transform of type 1 to 4 along an axis."""
    return _transformed(SINE, x, type, n, axis, norm, options, False)


def idst(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None, **options: Any) -> Any:
    """Its inverse."""
    return _transformed(SINE, x, type, n, axis, norm, options, True)


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


def _transformed(kinds: Any, x: Any, type: int, n: int | None, axis: int, norm: Any, options: Any, inverse: bool) -> Any:
    """The transform, or its inverse: those of types 2 and 3 are each other's, the others their own, but for scales."""
    if (
        type not in (1, 2, 3, 4)
        or norm not in (None, "backward", "forward", "ortho")
        or options.get("orthogonalize") is not None
    ):
        raise NotDifferentiable("scipy.fft.dct, dst and their inverses are here for types 1 to 4, and without orthogonalize=")
    x = floating(x)
    if np.iscomplexobj(x):
        raise NotDifferentiable("scipy.fft.dct, dst and their inverses are here for real arrays")
    x, axis = x.astype(np.float32) if x.dtype == np.float16 else x, axis % np.ndim(x)
    x = x if n is None else resized(x, (*np.shape(x)[:axis], max(n, 0), *np.shape(x)[axis + 1 :]))
    size = np.shape(x)[axis]
    period = 2 * (size if type > 1 else size - 1 if kinds is COSINE else size + 1)
    if not size or not period:
        raise ValueError(f"invalid number of data points ({size}) specified")
    y = kinds[{2: 3, 3: 2}.get(type, type) if inverse else type](x, axis, norm)
    return y if norm == "ortho" or (norm == "forward") == inverse else 1.0 / period * y


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


def _first(x: Any, axis: int, norm: Any) -> Any:
    """That of the sequence and its mirror image, which have both ends in common."""
    n = np.shape(x)[axis]
    ends = np.reshape(np.array([2**0.5, *[1.0] * (n - 2), 2**0.5], x.dtype), vector_shape(axis, np.ndim(x)))
    x = x * ends if norm == "ortho" else x
    y = np.real(np.fft.rfft(np.concatenate((x, np.flip(x[along(axis, slice(1, n - 1))], axis)), axis), axis=axis))
    return y / ends * (0.5 / (n - 1)) ** 0.5 if norm == "ortho" else y


def _fourth(x: Any, axis: int, norm: Any) -> Any:
    n = np.shape(x)[axis]
    turned = x * _turns(x, axis, -1)
    whole = np.fft.fft(np.concatenate((turned, np.zeros_like(turned)), axis), axis=axis)[along(axis, slice(0, n))]
    turn = np.exp(-0.25j * np.pi / n).astype(whole.dtype)
    y = 2.0 * np.real(whole * (_turns(x, axis, -1) * turn))
    return y * (0.5 / n) ** 0.5 if norm == "ortho" else y


def _first_sine(x: Any, axis: int, norm: Any) -> Any:
    """That of the sequence and its negative mirror image, with zeros between."""
    n = np.shape(x)[axis]
    zero = np.zeros_like(x[along(axis, slice(0, 1))])
    whole = np.fft.rfft(np.concatenate((zero, x, zero, -np.flip(x, axis)), axis), axis=axis)
    y = -np.imag(whole[along(axis, slice(1, n + 1))])
    return y * (0.5 / (n + 1)) ** 0.5 if norm == "ortho" else y


def _signs(x: Any, axis: int) -> Any:
    return np.reshape((1 - 2 * (np.arange(np.shape(x)[axis]) % 2)).astype(x.dtype), vector_shape(axis, np.ndim(x)))


COSINE = {1: _first, 2: _second, 3: _third, 4: _fourth}
SINE = {  # cosine transforms read backwards
    1: _first_sine,
    2: lambda x, axis, norm: np.flip(_second(x * _signs(x, axis), axis, norm), axis),
    3: lambda x, axis, norm: _third(np.flip(x, axis), axis, norm) * _signs(x, axis),
    4: lambda x, axis, norm: _fourth(np.flip(x, axis), axis, norm) * _signs(x, axis),
}
