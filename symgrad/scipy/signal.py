"""``scipy.signal``: convolutions and filters."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as ss

from symgrad.errors import NotDifferentiable
from symgrad.ir import Node
from symgrad.ops.contract import conj
from symgrad.ops.core import A, Op, Sample
from symgrad.ops.index import array_of
from symgrad.ops.reduction import along
from symgrad.transform.batch import Batch, rule


def __getattr__(name: str) -> Any:
    return getattr(ss, name)


# -- convolution ---------------------------------------------------------------------------------------------------


def _other(g: Any, first: Any, mine: Any, other: Any, mode: str, method: str) -> Any:
    """The cotangent of one factor: the cotangent of the whole convolution, convolved with the other one reversed."""
    widths = []
    for n, a, b, have in zip(np.shape(mine), np.shape(other), np.shape(first), np.shape(g), strict=True):
        before = {"full": 0, "same": (n + a - 1 - b) // 2, "valid": min(n, a) - 1}[mode]
        widths.append((before, n + a - 1 - before - have))
    whole = np.pad(g, tuple(widths)) if any(map(any, widths)) else g
    return CONVOLVE(whole, np.flip(other), mode="valid", **({} if method == "auto" else {"method": method}))


CONVOLVE = Op(
    ss.convolve,
    "multilinear",
    (
        lambda g, y, in1, in2, mode="full", method="auto": _other(g, in1, in1, in2, mode, method),
        lambda g, y, in1, in2, mode="full", method="auto": _other(g, in1, in2, in1, mode, method),
    ),
    name="convolve",
    samples=[
        *(Sample(A(5), A(3), mode=mode) for mode in ("full", "same", "valid")),
        *(Sample(A(3), A(5), mode=mode) for mode in ("full", "same", "valid")),
        *(Sample(A(4, 5), A(2, 3), mode=mode) for mode in ("full", "same", "valid")),
        Sample(A(6), A(4), mode="same", method="fft"),
        Sample(A(2, 3, 4), A(2, 1, 2), method="direct"),
        Sample(A(1), A(1)),
    ],
)


@rule(CONVOLVE)
def batched_convolve(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """With what is the same for all as an array that is one element wide along the batch."""
    params, (x, y) = dict(node.params), args
    mode = params.get("mode", "full")
    if flags[1] and mode == "full":  # it does not matter which is first
        x, y = y, x
    elif flags[1] or (mode == "valid" and any(n < m for n, m in zip(np.shape(x)[1:], np.shape(y), strict=True))):
        return None
    return None if all(flags) else CONVOLVE(x, np.expand_dims(y, 0), **params)


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of arrays of any dimension."""
    options = {} if mode == "full" else {"mode": mode}
    return CONVOLVE(array_of(in1), array_of(in2), **options, **({} if method == "auto" else {"method": method}))


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The same by Fourier transforms."""
    ndim = np.ndim(in1)
    if axes is not None and {axis % ndim for axis in np.atleast_1d(axes).tolist()} != set(range(ndim)):
        raise NotDifferentiable("scipy.signal.fftconvolve is differentiable over all axes only; use symgrad.vmap for some")
    return convolve(in1, in2, mode, "fft")


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The cross-correlation of arrays of any dimension."""
    in1, in2 = array_of(in1), array_of(in2)
    swapped = mode == "valid" and any(a < b for a, b in zip(np.shape(in1), np.shape(in2), strict=True))
    if swapped:  # SciPy puts the longer one first, and turns the result
        return np.flip(conj(correlate(in2, in1, mode, method)))
    return convolve(in1, np.flip(conj(in2)), mode, method)


def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The same by Fourier transforms."""
    return fftconvolve(in1, in2, mode, axes)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """The convolution of matrices, with zeros around them."""
    _with_zeros("convolve2d", boundary, fillvalue)
    return convolve(in1, in2, mode, "direct")


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """The cross-correlation of matrices, with zeros around them."""
    _with_zeros("correlate2d", boundary, fillvalue)
    if mode != "same":
        return correlate(in1, in2, mode, "direct")
    middle = [slice(m // 2, m // 2 + n) for n, m in zip(np.shape(in1), np.shape(in2), strict=True)]  # not that of correlate
    return correlate(in1, in2, "full", "direct")[tuple(middle)]


def _with_zeros(name: str, boundary: str, fillvalue: float) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotDifferentiable(f"scipy.signal.{name} is differentiable with zeros around only; use np.pad, and mode='valid'")


# -- filters -------------------------------------------------------------------------------------------------------


def _lags(g: Any, u: Any, like: Any, axis: int) -> Any:
    """``sum(g[n] * u[n - k])`` for each coefficient number ``k``."""
    n = np.shape(u)[axis]
    parts = [np.sum(g[along(axis, slice(k, None))] * u[along(axis, slice(None, max(n - k, 0)))]) for k in range(np.size(like))]
    return np.stack(parts)


def _back(g: Any, b: Any, a: Any, axis: int) -> Any:
    return np.flip(LFILTER(b, a, np.flip(g, axis), axis=axis), axis)


LFILTER: Op = Op(  # for a filter with a[0] == 1
    ss.lfilter,
    "op",
    (
        lambda g, y, b, a, x, axis: _lags(g, LFILTER(np.ones_like(a[:1]), a, x, axis=axis), b, axis),
        lambda g, y, b, a, x, axis: -_lags(g, LFILTER(np.ones_like(a[:1]), a, y, axis=axis), a, axis),
        lambda g, y, b, a, x, axis: _back(g, b, a, axis),
    ),
    name="lfilter",
)


@rule(LFILTER)
def batched_filter(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    return LFILTER(*args, axis=dict(node.params)["axis"] + 1) if flags == [False, False, True] else None


def lfilter(b: Any, a: Any, x: Any, axis: int = -1) -> Any:
    """``x`` through the recursive filter with numerator ``b`` and denominator ``a``."""
    b, a, x = np.atleast_1d(array_of(b)), np.atleast_1d(array_of(a)), array_of(x)
    return LFILTER(b / a[0], a / a[0], x, axis=axis % np.ndim(x))
