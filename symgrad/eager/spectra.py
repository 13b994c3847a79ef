"""Short-time Fourier transforms, and the windows that signals are seen through."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from symgrad.eager import fft
from symgrad.eager.core import Tensor, called, labelled, methods, wrap
from symgrad.eager.creation import creates
from symgrad.eager.dtypes import as_numpy, c_name, default, title
from symgrad.eager.nn.functional import pad
from symgrad.eager.pointwise import FUNCTIONS
from symgrad.eager.shapes import reshape, squeeze, transpose, unsqueeze

# -- windows -------------------------------------------------------------------------------------------------------


def _window(name: str, doc: str, shape: Any, *numbers: Any) -> Any:
    """A window function: ``shape`` gives the value at angles from 0 to 2 pi, by these further numbers."""

    @creates
    @called(f"{name}_window", f"{doc} ``periodic``: as of a period, whose end begins the next one.")
    def make(window_length: int, periodic: bool = True, *given: float, dtype: Any = None, **named: float) -> Any:
        kind = default.real if dtype is None else as_numpy(dtype)
        if kind.kind not in "fc":
            raise RuntimeError(
                f"{name}_window expects floating point dtypes, got: TensorOptions(dtype={c_name(kind)}, device=cpu, layout="
                "Strided (default), requires_grad=false (default), pinned_memory=false, memory_format=(nullopt))"
            )
        if window_length < 0:
            raise RuntimeError(f"{name}_window requires non-negative window_length, got window_length={window_length}")
        options = {**dict(numbers), **dict(zip([key for key, _ in numbers], given, strict=False)), **named}
        if window_length < 2:
            return np.ones(window_length, kind)
        count = window_length + periodic
        return shape(np.arange(window_length, dtype=kind) / kind.type(count - 1), **options).astype(kind)

    return make


def _kaiser(x: Any, beta: float) -> Any:
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))) / np.i0(beta)


hann_window = _window("hann", "Half a cosine's dip.", lambda x: 0.5 - 0.5 * np.cos(2 * np.pi * x))
hamming_window = _window(
    "hamming",
    "``alpha`` less ``beta`` times a cosine.",
    lambda x, alpha, beta: alpha - beta * np.cos(2 * np.pi * x),
    ("alpha", 0.54),
    ("beta", 0.46),
)
blackman_window = _window(
    "blackman", "Of two cosines.", lambda x: 0.08 * np.cos(4 * np.pi * x) - 0.5 * np.cos(2 * np.pi * x) + 0.42
)
bartlett_window = _window("bartlett", "A triangle.", lambda x: 1 - np.abs(2 * x - 1))
kaiser_window = _window("kaiser", "Of Bessel's function.", _kaiser, ("beta", 12.0))

# -- transforms ----------------------------------------------------------------------------------------------------

_NO_WINDOW = {
    "stft": "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other "
    "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress this "
    "warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
    "istft": "A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to "
    "make the inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
    "`window=torch.ones(n_fft, device=<device>)`.",
}


_PAIRS = (
    "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all "
    "inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the complex output "
    "to recover the old return format."
)


def _type(x: Tensor) -> str:
    kind = x.value.dtype
    return f"CPU{title(kind)}Type" if kind.kind == "c" else f"torch.{title(kind)}Tensor"


def _told(name: str, x: Tensor, **options: Any) -> str:
    """What torch's messages begin with."""
    shown = [f"{key}={_shown(value)}" for key, value in options.items()]
    return f"{name}({_type(x)}{list(x.value.shape)}, {', '.join(shown)}) "


def _shown(option: Any) -> Any:
    if isinstance(option, Tensor):
        return f"{_type(option)}{{{list(option.value.shape)}}}"
    return int(option) if isinstance(option, bool) else option


def _seen_through(window: Any, size: int, n: int) -> Any:
    """The window, ones if there is none, with zeros around it."""
    left = (n - size) // 2
    window = wrap(np.ones(size, default.real)) if window is None else window
    return window if size == n else pad(window, (left, n - size - left))


def _complex(x: Any) -> bool:
    return x is not None and x.value.dtype.kind == "c"


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """The Fourier transforms of what a window sees of a signal while it moves on by ``hop_length``, as columns."""
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if align_to_window:
        raise NotImplementedError("stft: align_to_window is not here")
    alone = input.value.ndim == 1
    if center:
        lead = (1,) * (3 - input.value.ndim)
        padded = pad(reshape(input, (*lead, *input.value.shape)), (n_fft // 2, n_fft // 2), pad_mode)
        input = reshape(padded, padded.value.shape[len(lead) :])
    hop, size = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if window is None:
        warnings.warn(_NO_WINDOW["stft"], stacklevel=2)
    some = _complex(input) or _complex(window)
    if return_complex is None and not some:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    told = _told(
        "stft", input, n_fft=n_fft, hop_length=hop, win_length=size, window=window, normalized=normalized,
        onesided=onesided, return_complex=return_complex, align_to_window=align_to_window,
    )  # fmt: skip
    if input.value.dtype.kind not in "fc":
        raise RuntimeError(f"{told}: expected a tensor of floating point or complex values")
    if input.value.ndim not in (1, 2):
        raise RuntimeError(f"{told}: expected a 1D or 2D tensor")
    rows = unsqueeze(input, 0) if alone else input
    n = rows.value.shape[1]
    if not 0 < n_fft <= n:
        raise RuntimeError(f"{told}: expected 0 < n_fft < {n}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{told}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"{told}: expected 0 < win_length <= n_fft, but got win_length={size}")
    if window is not None and window.value.shape != (size,):
        raise RuntimeError(
            f"{told}: expected a 1D window tensor of size equal to win_length={size}, but got window with size "
            f"{list(window.value.shape)}"
        )
    half = not some if onesided is None else onesided
    if half and some:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = rows.unfold(1, n_fft, hop)
    if window is not None or size < n_fft:
        frames = frames * _seen_through(window, size, n_fft)
    found = (fft.rfft if half else fft.fft)(frames, norm="ortho" if normalized else None)
    found = labelled(transpose(found, 1, 2), "TransposeBackward1")
    found = squeeze(found, 0) if alone else found
    if return_complex is not False:
        return found
    warnings.warn(_PAIRS, stacklevel=2)
    return FUNCTIONS["view_as_real"](found)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal whose ``stft`` is nearest to ``input``."""
    if window is None:
        warnings.warn(_NO_WINDOW["istft"], stacklevel=2)
    if input.value.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    hop, size = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    told = _told(
        "istft", input, n_fft=n_fft, hop_length=hop, win_length=size, window=window, center=center, normalized=normalized,
        onesided=onesided, length=length, return_complex=return_complex,
    )  # fmt: skip
    if not input.value.size:
        raise RuntimeError(f"{told}: input tensor cannot be empty.")
    if input.value.ndim not in (2, 3):
        raise RuntimeError(
            f"{told}: expected a tensor with 3 or 4 dimensions (complex: 2 or 3), but got {input.value.ndim + 1}"
        )
    alone = input.value.ndim == 2
    rows = unsqueeze(input, 0) if alone else input
    images, bins, count = rows.value.shape
    half = bins != n_fft if onesided is None else onesided
    if bins != (n_fft // 2 + 1 if half else n_fft):
        goal = " / 2 + 1 when onesided=True" if half else " when onesided=False"
        raise RuntimeError(
            f"{told}: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft{goal}, but got "
            f"{bins}"
        )
    if not 0 < hop <= size:
        raise RuntimeError(f"{told}: expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"{told}: expected 0 < win_length <= n_fft")
    if window is not None and window.value.shape != (size,):
        raise RuntimeError(f"{told}: Invalid window shape. window has to be 1D and length of `win_length`")
    if half and (return_complex or _complex(window)):
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    kind = rows.value.real.dtype
    window = _seen_through(wrap(np.ones(size, kind)) if window is None else window, size, n_fft)
    norm = "ortho" if normalized else None
    frames = transpose(rows, 1, 2)
    frames = fft.ifft(frames, norm=norm) if return_complex else fft.irfft(frames[..., : n_fft // 2 + 1], n_fft, norm=norm)
    frames = frames * window
    whole = n_fft + hop * (count - 1)
    places = wrap((np.arange(count)[:, None] * hop + np.arange(n_fft)).reshape(-1))
    add = FUNCTIONS["index_add"]
    y = add(wrap(np.zeros((images, whole), frames.value.dtype)), 1, places, reshape(frames, (images, count * n_fft)))
    squares = window.square().expand(count, n_fft)
    weights = add(wrap(np.zeros(whole, squares.value.dtype)), 0, places, reshape(squares, (count * n_fft,)))
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else whole - start
    y, weights = y[:, start:stop], weights[start:stop]
    if not np.abs(weights.value).min(initial=math.inf) > 1e-11:
        raise RuntimeError(f"{told}window overlap add min: 1")
    y = y / weights
    if stop > whole:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please "
            "check your center and hop_length settings.",
            stacklevel=2,
        )
        y = pad(y, (0, stop - whole))
    return squeeze(y, 0) if alone else y


FUNCTIONS.update(
    stft=stft, istft=istft, hann_window=hann_window, hamming_window=hamming_window, blackman_window=blackman_window,
    bartlett_window=bartlett_window, kaiser_window=kaiser_window,
)  # fmt: skip
methods(stft=stft, istft=istft)
