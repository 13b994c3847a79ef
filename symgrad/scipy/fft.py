"""``scipy.fft``: NumPy's transforms with SciPy's options, and cosine and sine transforms.

What says how they are computed (``overwrite_x``, ``workers``, ``plan``) is taken, and has no effect.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft as sf
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from symgrad.errors import NotDifferentiable
from symgrad.ops.fft import INVERSE, resized
from symgrad.ops.index import array_of, floating
from symgrad.ops.reduction import along, vector_shape
from symgrad.scipy.plain import named, rest_of

__getattr__ = rest_of(sf)

Fun = Callable[..., Any]


# -- Fourier transforms --------------------------------------------------------------------------------------------


def _given(x: Any) -> Any:
    x = array_of(x)
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _places(x: Any, s: Any, axes: Any) -> tuple[Any, Any]:
    """The lengths, and the axes that have them, which are the last ones by default."""
    s = None if s is None else [operator.index(n) for n in (s if np.iterable(s) else [s])]
    if s is not None and axes is None:
        axes = range(-len(s), 0)
    axes = None if axes is None else normalize_axis_tuple(axes, np.ndim(x))
    if s is not None and len(s) != len(axes):
        raise ValueError("when given, axes and shape arguments have to be of the same length")
    return s, axes


def _along_one(name: str, text: str) -> Fun:
    """A transform along one axis."""
    transform = getattr(np.fft, name)

    def fun(
        x: Any,
        n: int | None = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        return transform(_given(x), n, axis, norm)

    return named(fun, name, text)


def _along_several(name: str, text: str, transform: Fun, default: Any = None) -> Fun:
    """A transform along several axes."""

    def fun(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        x = _given(x)
        return transform(x, *_places(x, s, axes), norm)

    return named(fun, name, text)


def _hfftn(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    return np.fft.irfftn(np.conj(x), s, axes, INVERSE.get(norm, norm))


def _ihfftn(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    return np.conj(np.fft.rfftn(x, s, axes, INVERSE.get(norm, norm)))


# fmt: off
fft = _along_one("fft", "The Fourier transform along an axis.")
ifft = _along_one("ifft", "Its inverse.")
rfft = _along_one("rfft", "The Fourier transform of real numbers: the first half, which the other one mirrors.")
irfft = _along_one("irfft", "Its inverse: real numbers.")
hfft = _along_one("hfft", "The Fourier transform, real, of a sequence that is its mirror image conjugated, by the first half.")
ihfft = _along_one("ihfft", "Its inverse: the first half.")
fftn = _along_several("fftn", "The Fourier transform along several axes, all by default.", np.fft.fftn)
ifftn = _along_several("ifftn", "Its inverse.", np.fft.ifftn)
rfftn = _along_several("rfftn", "The Fourier transform of real numbers; of the last axis, the first half.", np.fft.rfftn)
irfftn = _along_several("irfftn", "Its inverse: real numbers.", np.fft.irfftn)
hfftn = _along_several("hfftn", "``hfft`` along the last axis, of Fourier transforms along the others.", _hfftn)
ihfftn = _along_several("ihfftn", "Its inverse.", _ihfftn)
fft2 = _along_several("fft2", "``fftn`` along two axes.", np.fft.fftn, (-2, -1))
ifft2 = _along_several("ifft2", "``ifftn`` along two axes.", np.fft.ifftn, (-2, -1))
rfft2 = _along_several("rfft2", "``rfftn`` along two axes.", np.fft.rfftn, (-2, -1))
irfft2 = _along_several("irfft2", "``irfftn`` along two axes.", np.fft.irfftn, (-2, -1))
hfft2 = _along_several("hfft2", "``hfftn`` along two axes.", _hfftn, (-2, -1))
ihfft2 = _along_several("ihfft2", "``ihfftn`` along two axes.", _ihfftn, (-2, -1))
# fmt: on


# -- cosine and sine transforms ------------------------------------------------------------------------------------


def _real(name: str, text: str) -> Fun:
    """A transform along one axis."""
    inverse, kinds = name[0] == "i", name.removeprefix("i")

    def fun(
        x: Any,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Any:
        return _transformed({"dct": COSINE, "dst": SINE}[kinds], x, type, n, axis, norm, orthogonalize, inverse)

    return named(fun, name, text)


def _several_real(name: str, text: str, one: Fun) -> Fun:
    """A transform along one axis after the other."""

    def fun(
        x: Any,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Any:
        x = array_of(x)
        s, axes = _places(x, s, range(np.ndim(x)) if s is None and axes is None else axes)
        sizes = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
        for axis, n in zip(axes, sizes, strict=True):
            x = one(x, type, n, axis, norm, orthogonalize=orthogonalize)
        return x if axes else x.copy()

    return named(fun, name, text)


dct = _real("dct", "The cosine transform of type 1 to 4 along an axis.")
idct = _real("idct", "Its inverse.")
dst = _real("dst", "The sine transform of type 1 to 4 along an axis.")
idst = _real("idst", "Its inverse.")
dctn = _several_real("dctn", "The cosine transform along several axes, all by default.", dct)
idctn = _several_real("idctn", "Its inverse.", idct)
dstn = _several_real("dstn", "The sine transform along several axes, all by default.", dst)
idstn = _several_real("idstn", "Its inverse.", idst)


def _transformed(kinds: Any, x: Any, type: int, n: int | None, axis: int, norm: Any, orthogonalize: Any, inverse: bool) -> Any:
    """The transform, or its inverse: those of types 2 and 3 are each other's, the others their own, but for scales."""
    if type not in (1, 2, 3, 4) or norm not in (None, "backward", "forward", "ortho") or orthogonalize is not None:
        raise NotDifferentiable("scipy.fft.dct, dst and their inverses are here for types 1 to 4, and without orthogonalize=")
    x = floating(x)
    if np.iscomplexobj(x):
        raise NotDifferentiable("scipy.fft.dct, dst and their inverses are here for real arrays")
    x, axis = x.astype(np.float32) if x.dtype == np.float16 else x, normalize_axis_index(axis, np.ndim(x))
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
