"""``np.fft``: discrete Fourier transforms, which are linear and, but for padding, their own transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.errors import NotDifferentiable
from symgrad.ops.core import A, Sample, composite, linear
from symgrad.ops.reduction import vector_shape

# the transform the other way is scaled where this one is not
INVERSE: dict[Any, Any] = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def resized(g: Any, shape: tuple[int, ...]) -> Any:
    """Cut off, or filled up with zeros, to ``shape``: the transpose of doing the opposite."""
    lengths = np.shape(g)
    if any(have > want for have, want in zip(lengths, shape, strict=True)):
        g = g[tuple(slice(want if have > want else None) for have, want in zip(lengths, shape, strict=True))]
    if any(have < want for have, want in zip(lengths, shape, strict=True)):
        g = np.pad(g, tuple((0, max(want - have, 0)) for have, want in zip(lengths, shape, strict=True)))
    return g


def weights(n: int, axis: int, y: Any, middle: float) -> Any:
    """How often a term of a real signal's spectrum counts: the middle ones stand for their conjugates, too."""
    w = np.full(n // 2 + 1, middle, np.real(np.empty(0, y.dtype)).dtype)
    w[0] = 1
    if n % 2 == 0:
        w[-1] = 1
    return w if axis in (-1, np.ndim(y) - 1) else np.reshape(w, vector_shape(axis % np.ndim(y), np.ndim(y)))


# -- along one axis ------------------------------------------------------------------------------------------------

_ONE = [
    Sample(A(6)),
    Sample(A(3, 5)),
    Sample(A(5, 3), axis=0),
    Sample(A(3, 4), 6),
    Sample(A(2, 5), n=3),
    Sample(A(4, 2), 6, 0, "ortho"),
    Sample(A(5), norm="forward"),
    Sample(A(2, 4, 3), 2, axis=-2, norm="backward"),
    Sample(A(1)),
]

linear(
    np.fft.fft,
    lambda g, y, a, n=None, axis=-1, norm=None: resized(np.fft.fft(g, axis=axis, norm=norm), np.shape(a)),
    samples=_ONE,
)
linear(
    np.fft.ifft,
    lambda g, y, a, n=None, axis=-1, norm=None: resized(np.fft.ifft(g, axis=axis, norm=norm), np.shape(a)),
    samples=_ONE,
)


@linear(np.fft.rfft, samples=_ONE, complex=False)
def rfft(g: Any, y: Any, a: Any, n: int | None = None, axis: int = -1, norm: Any = None) -> Any:
    n = np.shape(a)[axis] if n is None else n
    g = np.conj(g) * weights(n, axis, y, 0.5)
    return resized(np.fft.irfft(g, n, axis, INVERSE[norm]), np.shape(a))


@linear(np.fft.irfft, samples=[s for s in _ONE if s.args[0].shape != (1,)])
def irfft(g: Any, y: Any, a: Any, n: int | None = None, axis: int = -1, norm: Any = None) -> Any:
    g = np.conj(np.fft.rfft(g, axis=axis, norm=INVERSE[norm])) * weights(np.shape(y)[axis], axis, y, 2.0)
    return resized(g, np.shape(a))


@composite(np.fft.hfft, samples=[s for s in _ONE if s.args[0].shape != (1,)])
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    return np.fft.irfft(np.conj(a), n, axis, INVERSE[norm])


@composite(np.fft.ihfft, samples=_ONE, complex=False)
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: None = None) -> Any:
    return np.conj(np.fft.rfft(a, n, axis, INVERSE[norm]))


# -- along several -------------------------------------------------------------------------------------------------

_SEVERAL = [
    Sample(A(3, 4)),
    Sample(A(2, 3, 4)),
    Sample(A(4, 3), axes=(0, 1), norm="ortho"),
    Sample(A(2, 3, 4), axes=(2, 0), norm="forward"),
    Sample(A(3, 4), (2, 6), (-2, -1)),
    Sample(A(2, 3, 4), s=(5, 2), axes=(2, 1)),
    Sample(A(3, 4), s=(-1, 6), axes=(0, 1)),
    Sample(A(4, 2), axes=(0,)),
]


def _distinct(a: Any, s: Any = None, axes: Any = None, norm: Any = None, **default: Any) -> dict[str, Any]:
    if s is not None and axes is not None and len({i % np.ndim(a) for i in axes}) < len(axes):
        raise NotDifferentiable("np.fft with s= and an axis twice in axes= has no derivative rule; use one after the other")
    return {"a": a, "s": None if s is None else tuple(s), "axes": None if axes is None else tuple(axes), "norm": norm}


def _same(transform: Any, default: Any) -> Any:
    def rule(g: Any, y: Any, a: Any, s: Any = None, axes: Any = default, norm: str | None = None) -> Any:
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        options = {"norm": norm} if axes == default else {"axes": axes, "norm": norm}
        return resized(transform(g, **options), np.shape(a))

    return rule


def _with_default(axes: Any) -> Any:
    return lambda a, s=None, axes=axes, norm=None: _distinct(a, s, axes, norm)


linear(np.fft.fftn,  _same(np.fft.fftn, None), prepare=_distinct, samples=_SEVERAL)  # fmt: skip
linear(np.fft.ifftn, _same(np.fft.ifftn, None), prepare=_distinct, samples=_SEVERAL)
linear(np.fft.fft2,  _same(np.fft.fft2, (-2, -1)), prepare=_with_default((-2, -1)), samples=_SEVERAL)  # fmt: skip
linear(np.fft.ifft2, _same(np.fft.ifft2, (-2, -1)), prepare=_with_default((-2, -1)), samples=_SEVERAL)


def _sizes(a: Any, s: Any, axes: Any) -> tuple[Sequence[Any], Sequence[int]]:
    """One length for each of the axes, ``None`` for as it is."""
    axes = tuple(range(np.ndim(a)) if s is None else range(-len(s), 0)) if axes is None else tuple(axes)
    if len({k % np.ndim(a) for k in axes}) < len(axes):
        raise NotDifferentiable("np.fft of real numbers with an axis twice in axes= has no rule; use one after the other")
    return [None] * len(axes) if s is None else [np.shape(a)[k] if n == -1 else n for n, k in zip(s, axes, strict=True)], axes


def _rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    sizes, axes = _sizes(a, s, axes)
    a = np.fft.rfft(a, sizes[-1], axes[-1], norm)
    return np.fft.fftn(a, None if s is None else sizes[:-1], axes[:-1], norm) if len(axes) > 1 else a


def _irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: None = None) -> Any:
    sizes, axes = _sizes(a, s, axes)
    if len(axes) > 1:
        a = np.fft.ifftn(a, None if s is None else sizes[:-1], axes[:-1], norm)
    return np.fft.irfft(a, sizes[-1], axes[-1], norm)


composite(np.fft.rfftn, samples=_SEVERAL, complex=False)(_rfftn)
composite(np.fft.irfftn, samples=_SEVERAL)(_irfftn)
composite(np.fft.rfft2, samples=_SEVERAL, complex=False)(
    lambda a, s=None, axes=(-2, -1), norm=None, out=None: _rfftn(a, s, axes, norm)
)
composite(np.fft.irfft2, samples=_SEVERAL)(lambda a, s=None, axes=(-2, -1), norm=None, out=None: _irfftn(a, s, axes, norm))

# -- the order of frequencies --------------------------------------------------------------------------------------

_SHIFTS = [
    Sample(A(5)),
    Sample(A(3, 4)),
    Sample(A(3, 4), axes=1),
    Sample(A(2, 3, 5), axes=(0, -1)),
    Sample(A(1)),
    Sample(A(0, 2)),
]
linear(np.fft.fftshift,  lambda g, y, x, axes=None: np.fft.ifftshift(g, axes), samples=_SHIFTS)  # fmt: skip
linear(np.fft.ifftshift, lambda g, y, x, axes=None: np.fft.fftshift(g, axes), samples=_SHIFTS)
