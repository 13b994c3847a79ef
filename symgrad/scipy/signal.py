"""``scipy.signal``: convolutions, filters and spectra."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.signal as ss
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from symgrad.errors import NotDifferentiable
from symgrad.ir import Node
from symgrad.ops import fft as transforms
from symgrad.ops.contract import conj
from symgrad.ops.core import A, Op, Sample
from symgrad.ops.index import array_of, floating, traced_in
from symgrad.ops.reduction import along, vector_shape
from symgrad.scipy.linalg import companion
from symgrad.scipy.plain import rest_of
from symgrad.transform.batch import Batch, rule

__getattr__ = rest_of(ss)


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
    if axes is not None and len(normalize_axis_tuple(axes, ndim)) < ndim:
        raise NotDifferentiable("scipy.signal.fftconvolve is differentiable over all axes only; use symgrad.vmap for some")
    in1, in2 = floating(in1), floating(in2)
    return convolve(in1, in2, mode, "fft") if np.size(in1) and np.size(in2) else np.zeros(0)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The cross-correlation of arrays of any dimension."""
    in1, in2 = array_of(in1), array_of(in2)
    if np.ndim(in1) != np.ndim(in2):
        raise ValueError("in1 and in2 should have the same dimensionality")
    pairs = [*zip(np.shape(in1), np.shape(in2), strict=True)]
    swapped = mode == "valid" and any(a < b for a, b in pairs)
    if swapped and any(a > b for a, b in pairs):
        raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
    if swapped:  # SciPy puts the longer one first, and turns the result
        return np.flip(conj(correlate(in2, in1, mode, method)))
    return convolve(in1, np.flip(conj(in2)), mode, method)


def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The same by Fourier transforms."""
    return fftconvolve(in1, in2, mode, axes)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """The convolution of matrices, with zeros around them."""
    _with_zeros("convolve2d", boundary, fillvalue, in1, in2)
    return convolve(in1, in2, mode, "direct")


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """The cross-correlation of matrices, with zeros around them."""
    _with_zeros("correlate2d", boundary, fillvalue, in1, in2)
    if mode == "valid" and any(n < m for n, m in zip(np.shape(in1), np.shape(in2), strict=True)):
        return np.flip(correlate(in2, in1, mode, "direct"))  # not the conjugate, which that of correlate is
    if mode != "same":
        return correlate(in1, in2, mode, "direct")
    middle = [slice(m // 2, m // 2 + n) for n, m in zip(np.shape(in1), np.shape(in2), strict=True)]  # not that of correlate
    return correlate(in1, in2, "full", "direct")[tuple(middle)]


def _with_zeros(name: str, boundary: str, fillvalue: float, *matrices: Any) -> None:
    if any([np.ndim(array_of(matrix)) != 2 for matrix in matrices]):
        raise ValueError(f"{name} inputs must both be 2-D arrays")
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


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """``x`` through the recursive filter with numerator ``b`` and denominator ``a``; with a state ``zi``, also the last."""
    b, a, x = np.atleast_1d(array_of(b)), np.atleast_1d(array_of(a)), array_of(x)
    axis = normalize_axis_index(axis, np.ndim(x))
    if traced_in(a) is None and a[0] == 0:
        raise ValueError("the first coefficient of the denominator must not be zero")
    b, a = b / a[0], a / a[0]
    if zi is None:
        return LFILTER(b, a, x, axis=axis)
    order, n = max(np.size(a), np.size(b)) - 1, np.shape(x)[axis]
    shape = (*np.shape(x)[:axis], order, *np.shape(x)[axis + 1 :])
    if np.ndim(zi) != np.ndim(x) or np.shape(zi)[axis] != order:
        raise ValueError(f"zi has shape {np.shape(zi)}; {shape} is expected")
    z, zero = np.broadcast_to(array_of(zi), shape), np.zeros_like(x)
    # what the state adds has the denominator alone to go through
    added = np.concatenate((z, zero), axis)[along(axis, slice(0, n))]
    y = LFILTER(b, a, x, axis=axis) + LFILTER(np.ones_like(a[:1]), a, added, axis=axis)
    b, a = (np.pad(c, (0, order + 1 - np.size(c))) for c in (b, a))
    inputs, outputs, states = (np.moveaxis(c, axis, 0) for c in (x, y, z))
    after = [states[i + n] if i + n < order else np.zeros_like(states[i]) for i in range(order)]
    for i in range(order):
        for k in range(1, min(order - i, n) + 1):
            after[i] = after[i] + b[i + k] * inputs[n - k] - a[i + k] * outputs[n - k]
    return y, np.moveaxis(np.stack(after), 0, axis) if order else z


def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of a filter whose input has been 1 for ever."""
    b, a = np.atleast_1d(array_of(b)), np.atleast_1d(array_of(a))
    size = max(np.size(a), np.size(b), 2)
    b, a = (np.pad(c / a[0], (0, size - np.size(c))) for c in (b, a))
    return np.linalg.solve(np.eye(size - 1, dtype=a.dtype) - companion(a).T, b[1:] - a[1:] * b[0])


def _both_ways(run: Any, x: Any, axis: int, padtype: str | None, padlen: int) -> Any:
    """``run(x, start)`` forwards and then backwards, over ends that are drawn out."""
    if padtype not in ("odd", "even", "constant", None):
        raise ValueError(f"Unknown value {padtype!r} given to padtype. padtype must be 'even', 'odd', 'constant', or None.")
    width, n = 0 if padtype is None else padlen, np.shape(x)[axis]
    if n <= width:
        raise ValueError(f"The length of the input vector x must be greater than padlen, which is {width}.")
    pads = [(width, width) if i == axis else (0, 0) for i in range(np.ndim(x))]
    if width:
        mode: Any = "edge" if padtype == "constant" else "reflect"
        x = np.pad(x, pads, mode, **({"reflect_type": "odd"} if padtype == "odd" else {}))
    for _ in range(2):
        x = np.flip(run(x, x[along(axis, slice(0, 1))]), axis)
    return x[along(axis, slice(width, width + n))]


def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Any:
    """``x`` through the filter forwards, and then backwards."""
    if method != "pad":
        raise NotDifferentiable(f"scipy.signal.filtfilt has no derivative rule for method={method!r}; choose 'pad'")
    b, a, x = np.atleast_1d(array_of(b)), np.atleast_1d(array_of(a)), floating(x)
    axis, size = normalize_axis_index(axis, np.ndim(x)), max(np.size(a), np.size(b))
    start = np.reshape(lfilter_zi(b, a), vector_shape(axis, np.ndim(x)))
    run = lambda x, first: lfilter(b, a, x, axis, start * first)[0]
    return _both_ways(run, x, axis, padtype, 3 * size if padlen is None else padlen)


def _sections(sos: Any) -> Any:
    """The coefficients of filters of second order, one row each."""
    sos = array_of(sos)
    sos = sos if np.ndim(sos) > 1 else np.reshape(sos, (1, -1))
    if np.ndim(sos) != 2 or np.shape(sos)[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    return sos


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """``x`` through filters of second order, one after the other; with their states ``zi``, also those after it."""
    sos, x, after = _sections(sos), array_of(x), []
    shape = list(np.shape(x))
    shape[axis] = 2
    if zi is not None and np.shape(zi) != (len(sos), *shape):
        raise ValueError(f"zi has shape {np.shape(zi)}; {(len(sos), *shape)} is expected")
    for i in range(np.shape(sos)[0]):
        x = lfilter(sos[i, :3], sos[i, 3:], x, axis, None if zi is None else zi[i])
        if zi is not None:
            x, state = x
            after.append(state)
    return x if zi is None else (x, np.stack(after))


def sosfilt_zi(sos: Any) -> Any:
    """The states of the filters whose input has been 1 for ever."""
    sos, scale, states = _sections(sos), 1.0, []
    for i in range(np.shape(sos)[0]):
        b, a = sos[i, :3], sos[i, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * np.sum(b) / np.sum(a)
    return np.stack(states)


def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None) -> Any:
    """``x`` through the filters forwards, and then backwards."""
    sos, x = _sections(sos), floating(x)
    axis = normalize_axis_index(axis, np.ndim(x))
    size = 2 * np.shape(sos)[0] + 1 - int(np.min([np.sum(sos[:, 2] == 0), np.sum(sos[:, 5] == 0)]))
    states = np.reshape(sosfilt_zi(sos), (-1, *(2 if i == axis else 1 for i in range(np.ndim(x)))))
    run = lambda x, first: sosfilt(sos, x, axis, states * first)[0]
    return _both_ways(run, x, axis, padtype, 3 * size if padlen is None else padlen)


PADDED = {"mirror": "reflect", "reflect": "symmetric", "nearest": "edge", "wrap": "wrap", "constant": "constant"}
PADDED |= {"grid-mirror": "symmetric", "grid-wrap": "wrap", "grid-constant": "constant"}  # which are the same of filters


def extended(x: Any, pads: Any, mode: str, cval: float = 0.0) -> Any:
    """An image with what is beyond its edges."""
    known: Any = PADDED[mode]
    return np.pad(x, pads, known, **({"constant_values": cval} if known == "constant" else {}))


def window(x: Any, weights: Any, axis: int, mode: str, cval: float = 0.0) -> Any:
    """``scipy.ndimage.convolve1d``: around each element the weights, turned, times those next to it."""
    if not np.size(x):
        return x.astype(np.result_type(x.dtype, weights.dtype))
    size = np.size(weights)
    pads = [((size - 1) // 2, size // 2) if i == axis else (0, 0) for i in range(np.ndim(x))]
    whole = extended(x, pads, mode, cval) if size > 1 else x
    return convolve(whole, np.reshape(weights, [size if i == axis else 1 for i in range(np.ndim(x))]), "valid", "direct")


def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: float = 0.0,
) -> Any:
    """The values, or derivatives, of polynomials that are fit to the elements around each one."""
    scale = delta**deriv
    x, cval, fit = array_of(x) / scale, cval / scale, (window_length, polyorder, deriv)
    axis, half = normalize_axis_index(axis, np.ndim(x)), window_length // 2
    if mode not in ("mirror", "constant", "nearest", "wrap", "interp"):
        raise ValueError("mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp'.")
    weights = ss.savgol_coeffs(*fit).astype(x.dtype)
    if mode != "interp":
        return window(x, weights, axis, mode, cval)
    if window_length > np.shape(x)[axis]:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    ends = ss.savgol_filter(np.eye(window_length), *fit, axis=0).astype(x.dtype)
    first, last = (x[along(axis, slice(*ends))] for ends in ((0, window_length), (np.shape(x)[axis] - window_length, None)))
    middle = convolve(x, np.reshape(weights, [-1 if i == axis else 1 for i in range(np.ndim(x))]), "valid", "direct")
    middle = middle if window_length % 2 else middle[along(axis, slice(1, None))]
    fitted = [
        np.moveaxis(np.tensordot(rows, x, (1, axis)), 0, axis) for rows, x in ((ends[:half], first), (ends[-half:], last))
    ]
    return np.concatenate((fitted[0], middle, fitted[1]), axis) if half else middle


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    """Without its mean, or the line that fits it best."""
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    x = floating(data)
    if type[0] == "c":
        return x - np.mean(x, axis=axis, keepdims=True)
    if np.any(np.asarray(bp) != 0):
        raise NotDifferentiable("scipy.signal.detrend has no derivative rule for bp=; call it for each part")
    n = np.shape(x)[axis]
    lines = np.linalg.qr(np.stack((np.arange(1, n + 1) / n, np.ones(n)), axis=1))[0].astype(x.dtype)
    return x - np.moveaxis(np.tensordot(lines @ lines.T, x, (1, axis)), 0, axis)


# -- spectra -------------------------------------------------------------------------------------------------------


def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:
    """The analytic signal: without the negative frequencies."""
    x = floating(x)
    if np.iscomplexobj(x):
        raise ValueError("x must be real.")
    n = np.shape(x)[axis] if N is None else N
    if n <= 0:
        raise ValueError("N must be positive.")
    x = x.astype(np.float32) if x.dtype == np.float16 else x
    shares = np.zeros(n, x.dtype)
    shares[1 : (n + 1) // 2] = 2
    shares[[0, n // 2] if n % 2 == 0 else [0]] = 1  # the last of an even number has no other one beside it
    whole = np.fft.fft(x, n, axis=axis)
    return np.fft.ifft(whole * np.reshape(shares, vector_shape(normalize_axis_index(axis, np.ndim(x)), np.ndim(x))), axis=axis)


def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """So many samples of the same signal, by its frequencies."""
    if domain not in ("time", "freq"):
        raise ValueError(f"Parameter domain={domain!r} not in ('time', 'freq')!")
    x = np.moveaxis(floating(x), axis, -1)
    n = np.shape(x)[-1]
    few = min(num, n)
    half, factor, weights = few // 2 + 1, n / num, _frequency_weights(window, n)
    x = x.astype(np.float32) if x.dtype == np.float16 else x
    whole: Any
    y: Any
    if domain == "time" and not np.iscomplexobj(x):
        whole = np.fft.rfft(x)[..., :half]
        if weights is not None:
            back = weights[-np.arange(n) % n]
            whole = whole * (0.5 * (weights + back))[:half].astype(x.dtype)
        if few % 2 == 0 and num != n:  # the last has no other one beside it in one of the two
            shares = np.ones(half, x.dtype)
            shares[-1] = 2 if num < n else 0.5
            whole = whole * shares
        y = np.fft.irfft(whole / factor, num)
    else:
        whole = np.fft.fft(x) if domain == "time" else x
        whole = whole if weights is None else whole * weights
        low, high, middle = whole[..., :half], whole[..., n - few + half :], num - few
        parts = [low, high]
        if few % 2 == 0 and num < n:
            parts = [low[..., :-1], low[..., -1:] + whole[..., n - half + 1 : n - half + 2], high]
        elif middle:
            split = few % 2 == 0
            last = [0.5 * low[..., -1:]] if split else []
            zeros = np.zeros((*np.shape(x)[:-1], middle - split), x.dtype)
            parts = [low[..., :-1] if split else low, *last, zeros, *last, high]
        y = np.fft.ifft(np.concatenate(parts, axis=-1) / factor)
    y = np.moveaxis(y, -1, axis)
    return y if t is None else (y, t[0] + (t[1] - t[0]) * factor * np.arange(num))


def _frequency_weights(window: Any, n: int) -> Any:
    if window is None:
        return None
    if callable(window):
        return window(np.fft.fftfreq(n))
    if not hasattr(window, "shape"):
        return np.fft.fftshift(ss.get_window(window, n))
    if window.shape != (n,):
        raise ValueError(f"{window.shape=} != ({n},), i.e., window length is not equal to number of frequency bins!")
    return window


def periodogram(
    x: Any,
    fs: float = 1.0,
    window: Any = "boxcar",
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> Any:
    """The frequencies, and the power at each."""
    if traced_in([x, window]) is None:
        return ss.periodogram(x, fs, window, nfft, detrend, return_onesided, scaling, axis)
    x = array_of(x)
    size = np.shape(x)[axis]
    if nfft is not None and nfft < size:
        x, size, nfft = x[along(normalize_axis_index(axis, np.ndim(x)), slice(0, nfft))], nfft, None
    window = "boxcar" if window is None else window
    return welch(x, fs, window, size, 0, nfft, detrend, return_onesided, scaling, axis)


def welch(
    x: Any,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> Any:
    """The frequencies, and the mean power at each, of segments of the signal."""
    found = csd(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return found[0], np.real(found[1])


def csd(
    x: Any,
    y: Any,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> Any:
    """The frequencies, and the mean cross power at each, of segments of two signals."""
    if traced_in([x, y, window]) is None:
        return ss.csd(x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    if average not in ("mean", "median"):
        raise ValueError(f"Parameter {average=} must be 'median' or 'mean'!")
    same = y is x
    signals = [array_of(x)] if same else [array_of(x), array_of(y)]
    if not all(map(np.size, signals)):
        return _of_nothing(signals, axis)
    dtype = np.result_type(*[signal.dtype for signal in signals], np.complex64)
    signals = [np.moveaxis(signal, axis, -1) for signal in signals]
    n = max(np.shape(signal)[-1] for signal in signals)
    signals = [np.concatenate((a, np.zeros((*a.shape[:-1], n - a.shape[-1]))), -1) if a.shape[-1] < n else a for a in signals]
    onesided = return_onesided and not any(map(np.iscomplexobj, signals))
    win, step, size = _segmented("csd", window, nperseg, noverlap, nfft, n, detrend)
    spectra = [_spectra(a, win, step, size, detrend, onesided) for a in signals]
    first, second = spectra[0], spectra[-1]
    power = np.real(first) ** 2 + np.imag(first) ** 2 if same else conj(first) * second
    power = power * _scale(win, fs, scaling)
    if onesided:
        power = power * transforms.weights(size, -1, np.zeros(0), 2.0)
    count = np.shape(power)[-2]
    if average == "mean" or count == 1:
        power = np.mean(power, axis=-2)
    else:  # by SciPy's factor, the median of squares of normal numbers is their mean
        pairs = 2.0 * np.arange(1.0, (count - 1) // 2 + 1)
        median = np.median(np.real(power), axis=-2)
        power = (median if same else median + 1j * np.median(np.imag(power), axis=-2)) / (
            1 + np.sum(1 / (pairs + 1) - 1 / pairs)
        )
    power = power.astype(np.zeros(0, dtype).real.dtype if same else dtype)
    return _frequencies(size, fs, onesided), np.moveaxis(power, -1, axis)


def _of_nothing(signals: list[Any], axis: int, count: int = 2) -> tuple[Any, ...]:
    """What SciPy makes of signals that are empty."""
    shapes = [np.shape(np.moveaxis(signal, axis, -1)) for signal in signals]
    outer, n = np.broadcast_shapes(*[shape[:-1] for shape in shapes]), min(shape[-1] for shape in shapes)
    return tuple([np.moveaxis(np.zeros((*outer, n)), -1, axis) for _ in range(count)])


def _frequencies(size: int, fs: float, onesided: bool) -> Any:
    return np.fft.rfftfreq(size, 1 / fs) if onesided else np.fft.fftfreq(size, 1 / fs)


def _scale(win: Any, fs: float, scaling: str) -> Any:
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Parameter {scaling=} not in ['density', 'spectrum']!")
    return 1 / (fs * np.sum(win * win)) if scaling == "density" else 1 / np.sum(win) ** 2


def _segmented(
    name: str, window: Any, nperseg: int | None, noverlap: int | None, nfft: int | None, n: int | None, detrend: Any
) -> tuple[Any, int, int]:
    """The window, how far apart segments begin, and how many elements are transformed."""
    if callable(detrend):
        raise NotDifferentiable(
            f"scipy.signal.{name} has no derivative rule for a function detrend=; choose 'constant' or 'linear'"
        )
    if isinstance(window, (str, tuple)):
        size = 256 if nperseg is None else int(nperseg)
        if size < 1:
            raise ValueError(f"Parameter {nperseg=} is not a positive integer!")
        if n is not None and n < size:
            warnings.warn(f"nperseg={size} is greater than signal length {n}, using nperseg = {n}", stacklevel=3)
            size = n
        win: Any = ss.get_window(window, size)
    else:
        win = array_of(window)
        if np.ndim(win) != 1:
            raise ValueError("window must be 1-D")
        size = np.size(win) if nperseg is None else int(nperseg)
        if np.size(win) != size:
            raise ValueError("value specified for nperseg is different from length of window")
        if n is not None and n < size:
            raise ValueError("window is longer than input signal")
    whole, overlap = size if nfft is None else int(nfft), size // 2 if noverlap is None else int(noverlap)
    if whole < size:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    if overlap >= size:
        raise ValueError("noverlap must be less than nperseg.")
    return win, size - overlap, whole


def _spectra(x: Any, win: Any, step: int, size: int, kind: Any, onesided: bool) -> Any:
    """The transforms of the segments of ``x``, without their means or lines."""
    parts = np.lib.stride_tricks.sliding_window_view(x, np.size(win), axis=-1)[..., ::step, :]
    parts = (detrend(parts, type=kind) if kind else parts) * win
    return np.fft.rfft(parts, size) if onesided else np.fft.fft(parts, size)


def stft(
    x: Any,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> Any:
    """The frequencies, the times, and the transforms of segments of the signal around them."""
    if traced_in([x, window]) is None:
        return ss.stft(x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, boundary, padded, axis, scaling)
    if scaling not in ("spectrum", "psd"):
        raise ValueError(f"Parameter {scaling=} not in ['spectrum', 'psd']!")
    if boundary not in EXTENDED:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {list(EXTENDED)}")
    x = array_of(x)
    if not np.size(x):
        return _of_nothing([x], axis, 3)
    dtype, x = np.result_type(x.dtype, np.complex64), np.moveaxis(x, axis, -1)
    win, step, size = _segmented("stft", window, nperseg, noverlap, nfft, np.shape(x)[-1], detrend)
    width, options = np.size(win), EXTENDED[boundary]
    edges = [(0, 0)] * (np.ndim(x) - 1)
    if options is not None and width > 1:
        if boundary in ("even", "odd") and width // 2 > np.shape(x)[-1] - 1:
            raise ValueError(f"The extension length n ({width // 2}) is too big. It must not exceed x.shape[axis]-1.")
        x = np.pad(x, [*edges, (width // 2, width // 2)], **options)
    if padded:
        more = -(np.shape(x)[-1] - width) % step % width
        x = np.pad(x, [*edges, (0, more)]) if more else x
    onesided = return_onesided and not np.iscomplexobj(x)
    if onesided != return_onesided:
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=2)
    y = _spectra(x, win, step, size, detrend, onesided) * np.sqrt(_scale(win, fs, {"psd": "density"}.get(scaling, scaling)))
    times = np.arange(width / 2, np.shape(x)[-1] - width / 2 + 1, step) / float(fs)
    times = times if options is None else times - width / 2 / fs
    return _frequencies(size, fs, onesided), times, np.moveaxis(y.astype(dtype), -1, axis - 1 if axis < 0 else axis)


def spectrogram(
    x: Any,
    fs: float = 1.0,
    window: Any = ("tukey", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> Any:
    """The frequencies, the times, and the power at each, or what ``mode`` says of the transforms there."""
    if traced_in([x, window]) is None:
        return ss.spectrogram(x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, mode)
    if mode not in ("psd", "complex", "magnitude", "angle", "phase"):
        raise ValueError(f"unknown value for mode {mode}, must be one of 'psd', 'complex', 'magnitude', 'angle', 'phase'")
    x = array_of(x)
    if not np.size(x):
        return _of_nothing([x], axis, 3)
    size = np.size(window) if not isinstance(window, (str, tuple)) else min(nperseg or 256, np.shape(x)[axis])
    overlap, scale = size // 8 if noverlap is None else noverlap, {"density": "psd"}.get(scaling, scaling)
    onesided, where = return_onesided and not np.iscomplexobj(x), axis - 1 if axis < 0 else axis
    f, t, z = stft(x, fs, window, nperseg, overlap, nfft, detrend, onesided, None, False, axis, scale)
    if mode == "psd":
        power = np.real(z) ** 2 + np.imag(z) ** 2
        return f, t, power * transforms.weights(nfft or size, where, power, 2.0) if onesided else power
    if mode == "magnitude":
        return f, t, np.abs(z)
    if mode == "complex":
        return f, t, z
    return f, t, np.angle(z) if mode == "angle" else np.unwrap(np.angle(z), axis=where)


def coherence(
    x: Any,
    y: Any,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    axis: int = -1,
) -> Any:
    """The frequencies, and how much of the power at each two signals have in common."""
    options = (fs, window, nperseg, noverlap, nfft, detrend)
    f, cross = csd(x, y, *options, axis=axis)
    first, second = (welch(signal, *options, axis=axis)[1] for signal in (x, y))
    return f, (np.real(cross) ** 2 + np.imag(cross) ** 2) / first / second


EXTENDED: dict[str | None, Any] = {
    "even": {"mode": "reflect"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
    "constant": {"mode": "edge"},
    "zeros": {},
    None: None,
}


def istft(
    Zxx: Any,
    fs: float = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> Any:
    """The times, and the signal that has these transforms of its segments."""
    if traced_in([Zxx, window]) is None:
        return ss.istft(Zxx, fs, window, nperseg, noverlap, nfft, input_onesided, boundary, time_axis, freq_axis, scaling)
    if scaling not in ("spectrum", "psd"):
        raise ValueError(f"Parameter {scaling=} not in ['spectrum', 'psd']!")
    z = array_of(Zxx) + 0j
    if np.ndim(z) < 2:
        raise ValueError("Input stft must be at least 2d!")
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    freq_axis, time_axis = (normalize_axis_index(axis, np.ndim(z)) for axis in (freq_axis, time_axis))
    z = np.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    usual = 2 * (np.shape(z)[-1] - 1) if input_onesided else np.shape(z)[-1]
    width = usual if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = width if input_onesided and width == usual + 1 else usual
    win, step, size = _segmented("istft", window, width, noverlap, nfft, None, False)
    parts = (np.fft.irfft(z, size) if input_onesided else np.fft.ifft(z, size))[..., :width]
    win = win.astype(np.result_type(parts.dtype, np.float32)) if win.dtype != parts.dtype else win
    scale = np.sum(win) if scaling == "spectrum" else np.sqrt(fs * np.sum(win**2))
    count = np.shape(z)[-2]
    x = _overlapping(parts * (scale * win), step)
    norm = np.real(_overlapping(np.tile(win**2, (count, 1)), step))
    if boundary:
        x, norm = (a[..., width // 2 : -(width // 2)] for a in (x, norm))
    some = norm > 1e-10
    if not np.all(some):
        more = "" if boundary else " Possibly due to missing boundary"
        warnings.warn(f"NOLA condition failed, STFT may not be invertible.{more}", stacklevel=2)
    x = x / np.where(some, norm, 1.0)
    x = np.real(x) if input_onesided else x
    x = np.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
    return np.arange(np.shape(x)[0]) / float(fs), x  # as many as SciPy's


def _overlapping(parts: Any, step: int) -> Any:
    """The sum of the rows, of which each begins ``step`` elements after the one before."""
    *outer, count, width = np.shape(parts)
    edges, several = [(0, 0)] * len(outer), -(-width // step)
    parts = np.pad(parts, [*edges, (0, 0), (0, several * step - width)])
    total: Any = 0
    for i in range(several):  # elements of rows that do not overlap follow one another
        row = np.reshape(parts[..., i * step : (i + 1) * step], (*outer, count * step))
        total = total + np.pad(row, [*edges, (i * step, (several - 1 - i) * step)])
    return total[..., : width + (count - 1) * step]
