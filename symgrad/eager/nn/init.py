"""``nn.init``: what parameters start from, drawn as torch draws it."""

from __future__ import annotations

import math
import warnings
from typing import Any

from symgrad.eager.core import Tensor
from symgrad.eager.creation import eye
from symgrad.eager.linalg import qr
from symgrad.eager.modes import unrecorded
from symgrad.eager.pointwise import FUNCTIONS
from symgrad.eager.random import Generator, randperm

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_",
    "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip

Source = Generator | None
_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before a nonlinearity should be larger."""
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "leaky_relu":
        if isinstance(param, bool) or not isinstance(param, (int, float, type(None))):
            raise ValueError(f"negative_slope {param} not a valid number")
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    known = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in known:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return known[nonlinearity]


@unrecorded
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Source = None) -> Any:
    """Numbers between ``a`` and ``b``."""
    return tensor.uniform_(a, b, generator=generator)


@unrecorded
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Source = None) -> Any:
    """Normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


@unrecorded
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Source = None
) -> Tensor:
    """Normal numbers, drawn again where they are not in ``[a, b]``; where most would not be, uniform ones are thinned out."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=3,
        )
    low, high = (tensor.new_tensor(bound).item() for bound in (a, b))
    draws, chances = (tensor.new_empty(tensor.shape) for _ in range(2))
    if math.erf((b - mean) / std / math.sqrt(2.0)) - math.erf((a - mean) / std / math.sqrt(2.0)) > 0.6:

        def drawn() -> Any:
            draws.normal_(mean, std, generator=generator)
            return (draws >= low) & (draws <= high)

    else:
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

        def drawn() -> Any:
            draws.uniform_(a, b, generator=generator)
            density = draws.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
            return ~chances.uniform_(generator=generator).log_().gt(density)

    taken = drawn()
    result = draws.clone()
    while not taken.all():
        fits = drawn()
        result = FUNCTIONS["where"](taken, result, draws)
        taken = taken | fits
    return tensor.copy_(result)  # type: ignore[no-any-return]


@unrecorded
def constant_(tensor: Tensor, val: float) -> Any:
    """The same number everywhere."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Any:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Any:
    """Zeros."""
    return constant_(tensor, 0.0)


@unrecorded
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(eye(*tensor.shape))  # type: ignore[no-any-return]


@unrecorded
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Kernels of convolutions that change nothing."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    out = tensor.shape[0] // groups
    tensor.zero_()
    for group in range(groups):
        for channel in range(min(out, tensor.shape[1])):
            tensor[(group * out + channel, channel, *[n // 2 for n in tensor.shape[2:]])] = 1
    return tensor


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs a weight's output hangs on, and how many outputs its input goes to."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Source = None) -> Any:
    """Uniform numbers that keep the variance on the way forward and back."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(sum(_fans(tensor)))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Source = None) -> Any:
    """Normal numbers that keep the variance on the way forward and back."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(_fans(tensor)))), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    mode, modes = mode.lower(), ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[modes.index(mode)])


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Source = None
) -> Any:
    """Uniform numbers that keep the variance through rectifiers."""
    if 0 in tensor.shape:
        return _nothing(tensor)
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Source = None
) -> Any:
    """Normal numbers that keep the variance through rectifiers."""
    if 0 in tensor.shape:
        return _nothing(tensor)
    return normal_(tensor, 0, _kaiming(tensor, a, mode, nonlinearity), generator)


def _nothing(tensor: Tensor) -> Tensor:
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return tensor


@unrecorded
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Source = None) -> Tensor:
    """An orthogonal matrix."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel():
        rows = tensor.shape[0]
        drawn = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
        tall = rows >= drawn.shape[1]
        q, r = qr(drawn if tall else drawn.t())
        q = q * r.diagonal().sign()
        tensor.copy_((q if tall else q.t()).reshape(tensor.shape)).mul_(gain)
    return tensor


@unrecorded
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Source = None) -> Tensor:
    """Normal numbers, and in each column that part of zeros."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[randperm(rows)[: math.ceil(sparsity * rows)], column] = 0
    return tensor
