# ruff: noqa: F401 (some are defined next door)
"""Activations, losses and layers as functions: torch.nn.functional."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.eager import ops, reductions
from symgrad.eager.core import (
    Tensor,
    apply,
    assign,
    axis_of,
    called,
    check_kernel,
    check_scalars,
    check_within,
    labelled,
    methods,
    numbers,
    plain,
    rewrite,
    tied,
    wrap,
)
from symgrad.eager.creation import laid_out
from symgrad.eager.dtypes import c_name, title, type_name
from symgrad.eager.indexing import check_range, flat_places, narrow, within
from symgrad.eager.nn.grids import affine_grid, grid_sample
from symgrad.eager.nn.losses import (
    REDUCTIONS,
    constant,
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    pairwise_distance,
    poisson_nll_loss,
    reduced,
    reduction_of,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from symgrad.eager.nn.sequences import ctc_loss
from symgrad.eager.nn.windows import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    channel_shuffle,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    fold,
    interpolate,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)  # fmt: skip
from symgrad.eager.pointwise import FUNCTIONS, apply_alike, require_tensor
from symgrad.eager.products import addmm, matmul
from symgrad.eager.random import default_generator
from symgrad.eager.shapes import broadcast_tensors, expand_as, reshape
from symgrad.eager.statistics import pdist
from symgrad.ops.reduction import vector_shape

sigmoid, tanh = FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]


def _maybe_in_place(x: Tensor, fun: Callable[[Tensor], Any], inplace: bool, name: str) -> Any:
    """What a function makes of a tensor, written into that if wanted."""
    return rewrite(x, fun, f"{name}_") if inplace else fun(x)


def _activation(name: str, op: Any) -> Any:
    @called(name, f"``{name}`` of each element.")
    def fun(input: Tensor, inplace: bool = False) -> Any:
        require_tensor(name, input)
        if name == "relu" and input.value.dtype.kind in "bc":
            kind, why = _REFUSED[input.value.dtype.kind]
            raise kind(why)
        return _maybe_in_place(input, lambda x: apply(op, (x,)), inplace, name)

    return fun


_REFUSED = {
    "b": (NotImplementedError, "Boolean inputs not supported for relu"),
    "c": (NotImplementedError, "clamp is not supported for complex types"),
}
relu, silu = _activation("relu", ops.RELU), _activation("silu", ops.SILU)


def logsigmoid(input: Tensor) -> Any:
    """``log(sigmoid(input))``, without overflow."""
    return apply(ops.LOG_SIGMOID, (input,))


def gelu(input: Tensor, approximate: str = "none") -> Any:
    """``input`` times the normal distribution function of it; ``approximate="tanh"`` is faster."""
    require_tensor("gelu", input)
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return apply(ops.GELU, (input,), {"approximate": approximate})


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """``input``, scaled by ``negative_slope`` below zero."""
    require_tensor("leaky_relu", input)
    params, label = {"negative_slope": negative_slope}, f"LeakyReluBackward{int(inplace)}"
    return _maybe_in_place(input, lambda x: apply(ops.LEAKY_RELU, (x,), params, label), inplace, "leaky_relu")


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """``input``, and ``alpha * (exp(input) - 1)`` below zero."""
    require_tensor("elu", input)
    label = f"EluBackward{int(inplace)}"
    return _maybe_in_place(input, lambda x: apply(ops.ELU, (x,), {"alpha": alpha}, label), inplace, "elu")


def selu(input: Tensor, inplace: bool = False) -> Any:
    """``elu``, scaled so that it normalises itself."""
    params, label = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805}, f"EluBackward{int(inplace)}"
    return _maybe_in_place(input, lambda x: apply(ops.ELU, (x,), params, label), inplace, "selu")


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """``log(1 + exp(beta * input)) / beta``, and ``input`` where that is large."""
    require_tensor("softplus", input)
    return apply(ops.SOFTPLUS, (input,), {"beta": beta, "threshold": threshold})


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """``input``, kept between two numbers."""
    if input.value.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if input.value.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input.value.dtype.kind == "u" and min_val < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if input.value.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    params = {"low": min_val, "high": max_val}
    return _maybe_in_place(input, lambda x: apply(ops.HARDTANH, (x,), params), inplace, "hardtanh")


def relu6(input: Tensor, inplace: bool = False) -> Any:
    """``relu``, at most 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """``input``, and ``alpha * (exp(input / alpha) - 1)`` below zero."""
    if not alpha:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    label = f"CeluBackward{int(inplace)}"
    return _maybe_in_place(input, lambda x: apply(ops.CELU, (x,), {"alpha": alpha}, label), inplace, "celu")


def glu(input: Tensor, dim: int = -1) -> Any:
    """The first half along ``dim``, times the sigmoid of the other."""
    if not input.value.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    check_kernel("glu_cpu", input.value.dtype, "fc")
    axis = axis_of(dim, input.value.ndim)
    size = input.value.shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    a, b = narrow(input, dim, 0, size // 2), narrow(input, dim, size // 2, size // 2)
    return labelled(a * sigmoid(b), "GluBackward0")


def hardsigmoid(input: Tensor, inplace: bool = False) -> Any:
    """``input / 6 + 1 / 2``, kept between 0 and 1."""
    return _maybe_in_place(input, lambda x: apply(ops.HARDSIGMOID, (x,)), inplace, "hardsigmoid")


def hardswish(input: Tensor, inplace: bool = False) -> Any:
    """``input`` times ``hardsigmoid`` of it."""
    return _maybe_in_place(input, lambda x: apply(ops.HARDSWISH, (x,)), inplace, "hardswish")


def softshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """``input``, nearer to zero by ``lambd``, and zero where it gets there."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    return apply(ops.SOFTSHRINK, (input,), {"lambd": lambd})


def hardshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """``input``, and zero where it is no larger than ``lambd``."""
    return apply(ops.HARDSHRINK, (input,), {"lambd": lambd})


def tanhshrink(input: Tensor) -> Any:
    """``input - tanh(input)``."""
    return input - tanh(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Any:
    """``input`` where it is above a threshold, else ``value``."""
    params, label = {"threshold": threshold, "value": value}, f"ThresholdBackward{int(inplace)}"
    return _maybe_in_place(input, lambda x: apply(ops.THRESHOLD, (x,), params, label), inplace, "threshold")


def prelu(input: Tensor, weight: Tensor) -> Any:
    """``input``, scaled below zero by ``weight``, one number or one for each channel."""
    if weight.value.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.value.ndim}")
    if weight.value.size != 1:
        if not input.value.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.value.shape[1] if input.value.ndim > 1 else 1
        if weight.value.size != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.value.size} and "
                f"channel size = {channels}."
            )
    form = vector_shape(1, input.value.ndim) if input.value.ndim > 1 else (1,) * input.value.ndim
    return apply(ops.PRELU, (input, reshape(weight, form)), {}, "PreluKernelBackward0")


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Any:
    """``leaky_relu``, by a slope that is drawn for each element while training, else by their mean."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    label = f"RreluWithNoiseBackward{int(inplace)}"
    if not training:
        return _maybe_in_place(input, lambda x: labelled(leaky_relu(x, (lower + upper) / 2), label), inplace, "rrelu")
    value = input.value
    drawn = default_generator.uniform(int((value <= 0).sum()), np.dtype(np.float64)) * (upper - lower) + lower
    slopes = np.ones(value.shape, value.dtype)
    slopes[value <= 0] = drawn
    return _maybe_in_place(input, lambda x: labelled(x * wrap(slopes), label), inplace, "rrelu")


def _in_place(fun: Any) -> Any:
    @called(f"{fun.__name__}_", f"``{fun.__name__}``, written into its argument.")
    def written(*args: Any, **options: Any) -> Any:
        return fun(*args, **options, inplace=True)

    return written


relu_, elu_, selu_, celu_ = map(_in_place, (relu, elu, selu, celu))
leaky_relu_, hardtanh_, threshold_, rrelu_ = map(_in_place, (leaky_relu, hardtanh, threshold, rrelu))


def softsign(input: Tensor) -> Any:
    """``input / (1 + |input|)``."""
    return input / (abs(input) + 1)


def mish(input: Tensor, inplace: bool = False) -> Any:
    """``input * tanh(softplus(input))``."""
    return _maybe_in_place(input, lambda x: apply(ops.MISH, (x,)), inplace, "mish")


def _dim_of(dim: Any, input: Tensor, name: str) -> int:
    if dim is None:
        warnings.warn(
            f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
            stacklevel=3,
        )
        return 0 if input.value.ndim in (0, 1, 3) else 1
    return int(dim)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """``exp(input)``, scaled so that it sums to one along ``dim``."""
    return reductions.softmax(input, _dim_of(dim, input, "softmax"), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """``log(softmax(input))``, without overflow."""
    return reductions.log_softmax(input, _dim_of(dim, input, "log_softmax"), dtype)


def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Any:
    """``softmax(-input)``."""
    return softmax(-input, dim, dtype=dtype)


# -- losses --------------------------------------------------------------------------------------------------------


def _weight_of(input: Tensor, weight: Any, function: str, argument: str) -> Any:
    """A weight of elements of ``input``, which is no wider, in its dtype."""
    check_within(input.value.shape, weight)
    return weight if weight is None else constant(weight, function, argument).to(input.value.dtype)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """The binary cross entropy of ``sigmoid(input)``, without its overflow."""
    reduction = reduction_of(reduction, size_average, reduce)
    if target.value.shape != input.value.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    args: tuple[Any, ...] = (input, target)
    if target.value.dtype.kind in "iub" and input.value.dtype.kind == "f":
        kinds = title(input.value.dtype), title(target.value.dtype)
        raise RuntimeError(f"result type {kinds[0]} can't be cast to the desired output type {kinds[1]}")
    if weight is not None or pos_weight is not None:
        weights = {"weight": weight, "pos_weight": pos_weight}
        args += tuple(_weight_of(input, x, "binary_cross_entropy_with_logits", name) for name, x in weights.items())
    return apply(ops.BCE_LOGITS, args, {"reduction": reduction})


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The cross entropy of probabilities."""
    reduction = reduction_of(reduction, size_average, reduce)
    if target.value.shape != input.value.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. Please "
            "ensure they have the same size."
        )
    if input.value.dtype != target.value.dtype:
        raise RuntimeError(f"Found dtype {title(target.value.dtype)} but expected {title(input.value.dtype)}")
    for name, x in (("input", input), ("target", target)):
        if x.value.dtype.kind == "f" and not np.all((x.value >= 0) & (x.value <= 1)):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    args = (input, target) if weight is None else (input, target, _weight_of(input, weight, "binary_cross_entropy", "weight"))
    return apply(ops.BCE, args, {"reduction": reduction})


def _expanded(input: Tensor, target: Tensor) -> Any:
    """Both in one shape, so that a number's dtype counts as that of the others; a warning where they were not."""
    if input.value.shape == target.value.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead "
        "to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=4,
    )
    return broadcast_tensors(input, target)


def _pair(op: Any, input: Tensor, target: Tensor, reduction: str, weight: Any = None, **options: Any) -> Any:
    """A loss of each element of a tensor and its target, reduced."""
    shape = input.value.shape
    input, target = _expanded(input, target)
    if weight is None:
        return apply_alike(op, (input, target), {"reduction": reduction, **options})
    if weight.value.shape != shape:
        raise ValueError("Weights and input must have the same size.")
    loss = apply(op, (input, target), {"reduction": "none", **options}) * weight
    counted = op is not ops.HUBER  # whose mean does not count the weights
    return loss.sum() / weight.sum() if reduction == "mean" and counted else reduced(loss, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """The squared error."""
    reduction = reduction_of(reduction, size_average, reduce)
    return _pair(ops.MSE, input, target, reduction, weight)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """The absolute error."""
    reduction = reduction_of(reduction, size_average, reduce)
    if weight is not None:
        return _pair(ops.L1, input, target, reduction, weight)
    input, target = _expanded(input, target)
    return reduced(FUNCTIONS["abs"](input - target), reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """The squared error where it is small, else the absolute one."""
    reduction = reduction_of(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if not beta:
        return l1_loss(input, target, reduction=reduction)
    return _pair(ops.SMOOTH_L1, input, target, reduction, beta=beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """The squared error where it is below ``delta``, else a linear one."""
    reduction = reduction_of(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    kinds = input.value.dtype, target.value.dtype
    if kinds[0].kind in "iub" and kinds[1].kind == "f":
        raise RuntimeError(f"result type {title(kinds[1])} can't be cast to the desired output type {title(kinds[0])}")
    return _pair(ops.HUBER, input, target, reduction, weight, delta=delta).to(kinds[0])


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The negative log likelihood of classes, from log probabilities (N, C, ...)."""
    reduction = reduction_of(reduction, size_average, reduce)
    x, shape, places = input, input.value.shape, target.value
    if places.dtype not in (np.int64, np.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {title(places.dtype)}")
    _check_classes(shape, places.shape)
    label: Any = "NllLossBackward0"
    if len(shape) == 1:
        shape, places = (1, *shape), places.reshape(-1)
    elif len(shape) == 3:
        label = ("NllLoss2DBackward0", ("ViewBackward0", 0))
        label = ("ViewBackward0", label) if reduction == "none" else label
    elif len(shape) > 3:
        label = "NllLoss2DBackward0"
    classes = shape[1]
    if weight is None and _plain_classes(places, classes, ignore_index):
        weights, known, kept = None, places, None
    else:
        kept = places != ignore_index
        outside = kept & ((places < 0) | (places >= classes))
        if np.any(outside):
            raise IndexError(f"Target {places[outside][0]} is out of bounds.")
        known = np.where(kept, places, 0)
        table = np.ones(classes, x.value.dtype) if weight is None else plain(constant(weight, "nll_loss_forward", "weight"))
        _check_class_weights(table, classes)
        if weight is not None:
            check_scalars(x, weight)
        weights = np.where(kept, table[known], 0).astype(x.value.dtype)
    flat = known + np.arange(0, shape[0] * classes, classes) if len(shape) == 2 else flat_places(known, 1, shape)
    if reduction == "none" and not target.value.ndim:
        reduction = "sum"  # of one, which is as small as the target
    return apply(ops.NLL, (x, weights, flat, kept), {"reduction": reduction}, label)


def _check_classes(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Raise where classes of this shape are not one for each place of (N, C, ...)."""
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) > 1 and target[:1] != shape[:1]:
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({[*target, 0][0]}).")
    if len(shape) < 3 and len(target) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(shape) == 1 and math.prod(target) != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {math.prod(target)}")
    wanted = (*shape[:1], *shape[2:])
    if len(shape) == 4 and len(target) != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(target)}"
        )
    if len(shape) == 4 and target != wanted:
        raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(target)}")
    if len(shape) > 2 and target != wanted:
        raise RuntimeError(f"Expected target size {list(wanted)}, got {list(target)}")


def _check_class_weights(weight: Any, classes: int, name: str = "") -> None:
    """Raise where these are not one weight for each class."""
    if weight.shape != (classes,):
        raise RuntimeError(
            f"{name}weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )


def _plain_classes(places: Any, classes: int, ignore_index: int) -> bool:
    """Whether these are class numbers, all in range and none to be ignored."""
    if places.dtype != np.int64 or not places.size or 0 <= ignore_index < classes:
        return False
    return within(places, classes)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """The cross entropy of ``softmax(input)``; ``target`` holds classes, or probabilities of all classes."""
    reduction = reduction_of(reduction, size_average, reduce)
    axis = 0 if input.value.ndim == 1 else 1
    classes = input.value.shape[axis]
    places = target.value
    rows = input.value.ndim == 2 and weight is None and not label_smoothing and places.shape == input.value.shape[:1]
    if rows and _plain_classes(places, classes, ignore_index):
        flat = places + np.arange(0, len(places) * classes, classes)
        label = ("NllLossBackward0", ("LogSoftmaxBackward0", 0))
        return apply(ops.CROSS_ENTROPY, (input, flat), {"reduction": reduction}, label)
    logs = reductions.log_softmax(input, axis)
    by_class = places.shape != input.value.shape
    if not by_class and places.dtype.kind in "iu":
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {title(places.dtype)}")
    if not by_class and ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if by_class and not label_smoothing:
        return nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if by_class:
        hard = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
        soft = _smooth_loss(logs, target, weight, ignore_index, reduction, axis)
        return _times(hard, 1 - label_smoothing) + _times(soft, label_smoothing / classes)
    if weight is not None:
        _check_class_weights(weight.value, classes, "cross_entropy: ")
    goal = target * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else target
    loss = logs * goal if weight is None else logs * goal * _along(weight, logs, axis)
    if reduction == "none":
        return -loss.sum(axis)
    total = -loss.sum()
    return total if reduction == "sum" else labelled(total / (loss.value.size // classes), "DivBackward1")


def _times(x: Tensor, number: float) -> Any:
    return labelled(x * number, "MulBackward1")


def _along(weight: Tensor, x: Tensor, axis: int) -> Any:
    """A weight of each class, lined up with ``x``."""
    return weight if axis == x.value.ndim - 1 else weight.reshape(vector_shape(axis, x.value.ndim))


def _smooth_loss(logs: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str, axis: int) -> Any:
    """The loss of targets that are spread evenly over all classes, times their number; in torch's steps."""
    gone = target.value == ignore_index
    kept = ~gone if np.bitwise_or.reduce(gone, None) else None
    scale = None if weight is None else _along(weight, logs, axis)
    label: Any = ("MaskedFillBackward0", ("NegBackward0", ("SumBackward1", 0 if weight is None else ("MulBackward0", 0, 1))))
    total = None
    if reduction == "mean":
        total = np.asarray(gone.size if kept is None else np.add.reduce(kept, None), logs.value.dtype)
        if weight is not None:
            chosen = weight.value[np.where(gone, 0, target.value)]
            total = np.add.reduce(chosen if kept is None else np.where(kept, chosen, 0), None)
    if reduction != "none":
        label = ("SumBackward0", label) if reduction == "sum" else ("DivBackward0", ("SumBackward0", label), 3)
    return apply(ops.EVEN, (logs, scale, kept, total), {"axis": axis, "reduction": reduction}, label)


_MEAN = (
    "reduction: 'mean' divides the total loss by both the batch size and the support size."
    "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
    "'mean' will be changed to behave the same as 'batchmean' in the next major release."
)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """The Kullback-Leibler divergence, from log probabilities."""
    reduction = reduction_of(reduction, size_average, reduce, (*REDUCTIONS, "batchmean"))
    if reduction == "mean":
        warnings.warn(_MEAN, stacklevel=2)
    loss = FUNCTIONS["exp"](target) * (target - input) if log_target else FUNCTIONS["xlogy"](target, target) - target * input
    return loss.sum() / loss.value.shape[0] if reduction == "batchmean" else reduced(loss, reduction)


# -- layers --------------------------------------------------------------------------------------------------------


def linear(input: Tensor, weight: Tensor, bias: Any = None) -> Any:
    """``input @ weight.T + bias``."""
    require_tensor("linear", input)
    if not input.value.ndim or not weight.value.ndim:
        both = f"{input.value.ndim}D and {weight.value.ndim}D"
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {both}")
    turned = weight.t()
    if bias is not None and input.value.ndim == 2:
        return addmm(bias, input, turned)
    shape = input.value.shape
    if bias is not None and shape and bias.value.ndim == 1 and bias.value.flags.c_contiguous and input.value.flags.c_contiguous:
        return reshape(addmm(bias, reshape(input, (-1, shape[-1])), turned), (*shape[:-1], weight.value.shape[0]))
    y = matmul(input, turned)
    return y if bias is None else y + bias


def layer_norm(input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """Each row less its mean, over its deviation."""
    shape = _row_shape(input, normalized_shape, weight, bias)
    _check_mixed(input, weight, bias)
    return apply(ops.LAYER_NORM, (input, weight, bias), {**_of_rows(shape), "eps": eps})


def _check_mixed(x: Tensor, *others: Any) -> None:
    """Raise where parameters or statistics, each a tensor or None, are of another dtype than the input."""
    kinds = {part.value.dtype for part in others if part is not None} - {x.value.dtype}
    if kinds:
        texts = "expect parameter to have scalar type of Float", "all inputs must share same datatype."
        raise RuntimeError(f"mixed dtype (CPU): {texts[np.dtype(np.float32) in kinds]}")


def _row_shape(x: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None) -> tuple[int, ...]:
    """The shape of what counts as a row of ``x``, which its own must end in, and which that of its parameters is."""
    shape = tuple([int(n) for n in normalized_shape])  # also of numbers from outside that are traced
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    if x.value.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input "
            f"of size{list(x.value.shape)}"
        )
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.value.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(part.value.shape)} "
                f"and normalized_shape = {list(shape)}"
            )
    return shape


@functools.lru_cache(maxsize=64)
def _of_rows(shape: tuple[int, ...]) -> dict[str, Any]:
    axes = -1 if len(shape) == 1 else tuple(range(-len(shape), 0))
    return {"axes": axes, "n": math.prod(shape)}


def _affine(x: Tensor, weight: Any, bias: Any) -> Any:
    """``x`` scaled and moved, each channel by numbers of its own."""
    form = vector_shape(1, x.value.ndim)
    for fun, part in ((FUNCTIONS["mul"], weight), (FUNCTIONS["add"], bias)):
        x = x if part is None else fun(x, reshape(part, form))
    return x


def _normalised(x: Tensor, axes: tuple[int, ...], eps: float) -> Any:
    """``x`` less its mean over axes, over its deviation."""
    n = math.prod([x.value.shape[axis] for axis in axes])
    return apply(ops.LAYER_NORM, (x, None, None), {"axes": axes, "n": n, "eps": eps})


def _keep(kept: Any, new: Any, momentum: float, verb: str) -> None:
    """Move a running statistic, if it is kept at all, towards a new one."""
    if kept is not None:
        new = numbers(wrap(new)) * momentum
        assign(kept, wrap((kept.value * (1 - momentum) + new).astype(kept.value.dtype)), verb)


def _check_channels(x: Tensor, **given: Any) -> None:
    """Raise where parameters or statistics are not one number for each channel, or of another dtype."""
    check_kernel("batch_norm", x.value.dtype)
    for name, part in given.items():
        if part is not None and x.value.ndim > 1 and part.value.size != x.value.shape[1]:
            raise RuntimeError(f"{name} should contain {x.value.shape[1]} elements not {part.value.size}")
    _check_mixed(x, *given.values())


def batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Any:
    """Each channel less its mean, over its deviation: those of the batch while training, which are kept, else those kept."""
    axes = (0, *range(2, input.value.ndim))
    _check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if training and (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
        form = vector_shape(1, input.value.ndim)
        scale = 1 / np.sqrt(running_var.value.reshape(form) + eps)
        y = (input - wrap(running_mean.value.reshape(form))) * wrap(scale)
        return labelled(_affine(y, weight, bias), "NativeBatchNormBackward0")
    n = math.prod([input.value.shape[axis] for axis in axes])
    if n == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    _keep(running_mean, np.mean(input.value, axes), momentum, "batch_norm")
    _keep(running_var, np.var(input.value, axes, ddof=1), momentum, "batch_norm")
    return labelled(_affine(_normalised(input, axes, eps), weight, bias), "NativeBatchNormBackward0")


def instance_norm(
    input: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Any:
    """Each channel of each example less its mean, over its deviation."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    axes = tuple(range(2, input.value.ndim))
    if math.prod([input.value.shape[axis] for axis in axes]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    _keep(running_mean, np.mean(input.value, axes).mean(0), momentum, "instance_norm")
    _keep(running_var, np.var(input.value, axes, ddof=1).mean(0), momentum, "instance_norm")
    return labelled(_affine(_normalised(input, axes, eps), weight, bias), "ViewBackward0")


def group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """Each group of channels of each example less its mean, over its deviation."""
    if input.value.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.value.ndim}")
    n, channels, *rest = input.value.shape
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.value.shape)} and num_groups={num_groups}"
        )
    check_kernel("GroupNormKernelImpl", input.value.dtype)
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.value.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{list(part.value.shape)} and input of shape {list(input.value.shape)}"
            )
    _check_mixed(input, weight, bias)
    groups = reshape(input, (n, num_groups, channels // num_groups * math.prod(rest)))
    y = reshape(_normalised(groups, (2,), eps), input.value.shape)
    return labelled(_affine(y, weight, bias), "NativeGroupNormBackward0")


def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Each row over the root of the mean of its squares."""
    axes = tuple(range(-len(_row_shape(input, normalized_shape, weight)), 0))
    check_kernel("rms_norm", input.value.dtype, "fc")
    small = float(np.finfo(input.value.dtype).eps) if eps is None else eps
    y = input * (FUNCTIONS["square"](input).mean(axes, keepdim=True) + small).rsqrt()
    return y if weight is None else y * weight


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Each channel over a power of the sum of the squares of its neighbours."""
    if input.value.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.value.ndim} dimensions)")
    if not input.value.size:
        return input
    squares = pad(FUNCTIONS["square"](input), (0, 0) * (input.value.ndim - 2) + (size // 2, (size - 1) // 2))
    n = input.value.shape[1]
    total = functools.reduce(operator.add, [narrow(squares, 1, i, n) for i in range(size)])
    return input / (total / size * alpha + k).pow(beta)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """``softmax(query @ key.T * scale) @ value``, where a mask lets look."""
    _check_attention(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        times = query.value.shape[-3] // key.value.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scores = matmul(query, key.mT) * (1 / math.sqrt(query.value.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = wrap(np.tri(*scores.value.shape[-2:], dtype=bool))
    if attn_mask is not None and attn_mask.value.dtype == bool:
        scores = FUNCTIONS["where"](attn_mask, scores, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = softmax(scores, -1)
    if attn_mask is not None:  # a row that may look nowhere sees zeros
        weights = FUNCTIONS["where"](wrap(np.all(scores.value == -np.inf, -1, keepdims=True)), 0.0, weights)
    return matmul(dropout(weights, dropout_p), value)


def _check_attention(query: Tensor, key: Tensor, value: Tensor, mask: Any, is_causal: bool) -> None:
    """Raise for dtypes, dimensions and masks that attention does not take."""
    given = {"query": query.value, "key": key.value, "value": value.value}
    if len({x.dtype for x in given.values()}) > 1:
        kinds = [f"{name}.dtype: {c_name(x.dtype)}" for name, x in given.items()]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got {kinds[0]} {kinds[1]} and {kinds[2]} instead."
        )
    if min([x.ndim for x in given.values()]) < 2:
        sizes = [f"{name}.dim: {x.ndim}" for name, x in given.items()]
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got {sizes[0]} {sizes[1]} and {sizes[2]} "
            "instead."
        )
    if mask is None:
        return
    kind = mask.value.dtype
    if kind not in (bool, np.float32, query.value.dtype):
        raise RuntimeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {c_name(kind)} "
            f"and  query.dtype: {c_name(query.value.dtype)} instead."
        )
    if is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Any = None) -> Any:
    """For each matrix of ``weight`` its product with both inputs."""
    shapes = input1.value.shape, input2.value.shape
    if len(shapes[0]) != len(shapes[1]):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(shapes[0])} and {len(shapes[1])}")
    for i, (n, m) in enumerate(zip(shapes[0][:-1], shapes[1][:-1], strict=True)):
        if n != m:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {n} and {m}")
    sizes = {"input1": shapes[0][-1], "input2": shapes[1][-1], "bias": None if bias is None else bias.value.size}
    for i, (name, size) in enumerate(sizes.items()):
        wanted = weight.value.shape[(i + 1) % 3]
        if size not in (None, wanted):
            raise RuntimeError(f"bilinear(): {name} size does not match weight size: got {size} but expected {wanted}")
    y = FUNCTIONS["einsum"]("...i,oij,...j->...o", input1, weight, input2)
    return labelled(y, "ViewBackward0") if bias is None else y + bias


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zeros in place of some elements, drawn with probability ``p``; the others are scaled up."""
    return _dropped(input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """What ``selu`` tends to far below zero in place of some elements, so that mean and variance stay."""
    return _dropped(input, p, training, inplace, alpha=True)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """``alpha_dropout`` of whole channels."""
    return _dropped(input, p, training, inplace, True, True)


def _dropped(input: Tensor, p: float, training: bool, inplace: bool, features: bool = False, alpha: bool = False) -> Any:
    """Elements, or whole channels, dropped; see Klambauer et al., "Self-normalizing neural networks" (2017), for ``alpha``."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0 or not input.value.size:
        return input
    shape, kind = input.value.shape, input.value.dtype
    if features:
        if len(shape) < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        shape = (*shape[:2], *(1,) * (len(shape) - 2))
    if p == 1:
        return _maybe_in_place(input, lambda x: x * wrap(np.zeros((), kind)), inplace, "dropout")
    if kind.kind not in "fc":
        raise RuntimeError(f"result type Float can't be cast to the desired output type {title(kind)}")
    drawn = default_generator.uniform(math.prod(shape), np.dtype(np.float64))
    drawn = drawn.reshape(shape) if features else laid_out(drawn, input.value)
    kept = (drawn < 1 - p).astype(kind)
    if not alpha:
        return _maybe_in_place(input, lambda x: x * wrap(kept / kind.type(1 - p)), inplace, "dropout")
    limit = 1.7580993408473766
    scale = 1 / math.sqrt((limit * limit * p + 1) * (1 - p))
    moved = (kept - 1) * kind.type(limit * scale) + kind.type(limit * scale * p)
    return _maybe_in_place(input, lambda x: x * wrap(kept * kind.type(scale)) + wrap(moved), inplace, "dropout")


def _channel_dropout(d: int) -> Any:
    name = f"dropout{d}d"

    @called(name, f"Zeros in place of some channels of {d} dimension{'s' * (d > 1)}, drawn with probability ``p``.")
    def fun(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        ndim = input.value.ndim
        both = f"(i.e. {d + 1}D or {d + 2}D inputs)."
        about = f"{name} exists to provide channel-wise dropout on inputs with {d} spatial dimension{'s' * (d > 1)}, "
        if ndim not in (d + 1, d + 2):
            if d == 1:
                raise RuntimeError(
                    f"{name}: Expected 2D or 3D input, but received a {ndim}D input. Note that {about}a channel dimension, and "
                    f"an optional batch dimension {both}"
                )
            warnings.warn(
                f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
                "release. To retain the behavior and silence this warning, please use dropout instead. Note that "
                f"{about}a channel dimension, and an optional batch dimension {both}",
                stacklevel=2,
            )
        if d == 2 and ndim == 3:
            warnings.warn(_NO_BATCH, stacklevel=2)
        if d == 2 or ndim == d + 2:
            return _dropped(input, p, training, inplace, True)
        shape = input.value.shape
        one = lambda x: reshape(_dropped(reshape(x, (1, *shape)), p, training, False, True), shape)
        return _maybe_in_place(input, one, inplace, "dropout")

    return fun


_NO_BATCH = (
    "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
    "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret "
    "the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, "
    "please switch to using dropout1d instead."
)
dropout1d, dropout2d, dropout3d = map(_channel_dropout, (1, 2, 3))


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """Draws from the Gumbel-softmax distribution; ``hard``: ones and zeros, with the gradient of the soft draw."""
    if logits.value.dtype.kind != "f":
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {title(logits.value.dtype)}"
        )
    noise = -np.log(default_generator.exponential(logits.value.size).astype(logits.value.dtype))
    soft = softmax((logits + wrap(noise.reshape(logits.value.shape))) / tau, dim)
    if not hard:
        return soft
    axis = dim % soft.value.ndim
    classes = np.arange(soft.value.shape[axis]).reshape(vector_shape(axis, soft.value.ndim))
    chosen = np.argmax(soft.value, axis, keepdims=True) == classes
    return wrap(chosen.astype(soft.value.dtype)) - soft.detach() + soft


def one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    """A one at each class, else zeros."""
    if tensor.value.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes == -1 and not tensor.value.size:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    n = int(tensor.value.max()) + 1 if num_classes == -1 else num_classes
    if np.any(tensor.value < 0):
        raise RuntimeError("Class values must be non-negative.")
    if np.any(tensor.value >= n):
        raise RuntimeError("Class values must be smaller than num_classes.")
    return wrap(np.eye(n, dtype=np.int64)[tensor.value])


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of ``weight``; that of ``padding_idx`` gets no gradient, and those longer than ``max_norm`` are shortened first."""
    many = len(weight.value)
    if weight.value.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if padding_idx is not None and not -many <= padding_idx < many:
        raise AssertionError("Padding_idx must be within num_embeddings")
    _check_rows("embedding", input.value)
    if max_norm is not None:
        used = np.unique(input.value)
        check_range(used, 0, many)
        lengths = np.linalg.norm(weight.value[used], norm_type, -1)
        scale = np.where(lengths > max_norm, max_norm / (lengths + 1e-7), 1).astype(weight.value.dtype)
        weight.value[used] *= scale[:, None]
        weight.counter[0] += 1
    return _embedded(weight, input, -1 if padding_idx is None else padding_idx % many, scale_grad_by_freq)


def _embedded(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """Rows of ``weight``, as ``torch.embedding`` gives them: no row but that of ``padding_idx`` lacks a gradient."""
    places = indices.value
    _check_rows("embedding", places)
    check_range(places, 0, len(weight.value))
    if padding_idx < 0 and not scale_grad_by_freq:
        return apply(ops.TAKE, (weight, indices), {"axis": 0}, "EmbeddingBackward0")
    shares = np.ones(places.shape, weight.value.dtype)
    if scale_grad_by_freq:
        shares /= np.bincount(places.reshape(-1))[places]
    shares[places == padding_idx] = 0
    return apply(ops.EMBEDDING, (weight, indices, shares))


def _check_rows(name: str, *indices: Any) -> None:
    """Raise for numbers of rows that are of other dtypes than torch's function of this name takes."""
    for places in indices:
        if places.dtype not in (np.int64, np.int32):
            raise RuntimeError(
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                f"{type_name(places.dtype)} instead (while checking arguments for {name})"
            )


def _bags(input: Tensor, offsets: Any, include_last_offset: bool) -> tuple[Any, Any, int]:
    """The numbers of all bags in a row, the bag of each, and how many bags there are."""
    ids = input.value
    if ids.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                f"However, found offsets of type {type(offsets)}"
            )
        return ids.reshape(-1), np.repeat(np.arange(len(ids)), ids.shape[1]), len(ids)
    if ids.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {ids.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.value.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    starts = offsets.value
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {starts[0]}"
        )
    if starts.size and starts[-1] > len(ids):
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length: {len(ids)}, but got offsets[-1] of {starts[-1]}"
        )
    count = len(starts) - include_last_offset
    kept = ids[: starts[-1]] if include_last_offset else ids
    return kept, np.searchsorted(starts[:count], np.arange(len(kept)), "right") - 1, count


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The sum, mean or maximum of the rows of ``weight`` in each bag; those of ``padding_idx`` do not count."""
    if per_sample_weights is not None and input.value.shape != per_sample_weights.value.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape "
            f"as the input ({input.shape})"
        )
    if weight.value.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.value.ndim}")
    _check_rows("embedding_bag", input.value, *(() if offsets is None else (offsets.value,)))
    many = len(weight.value)
    if padding_idx is not None and not -many <= padding_idx < many:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-many} through {many - 1}, but got {padding_idx}"
        )
    if per_sample_weights is not None and per_sample_weights.value.dtype != weight.value.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; "
            f"but type {type_name(weight.value.dtype)} does not equal {type_name(per_sample_weights.value.dtype)} (while "
            "checking arguments for embedding_bag)"
        )
    ids, bags, count = _bags(input, offsets, include_last_offset)
    outside = np.flatnonzero((ids < 0) | (ids >= many))
    if outside.size:
        place = outside[0]
        raise RuntimeError(f"Index {place} of input takes value {ids[place]} which is not in the valid range [0, {many})")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    rows = embedding(tied(ids, input), weight, None, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * reshape(per_sample_weights, (-1, 1))[: len(ids)]
    if padding_idx is not None:
        counts = np.flatnonzero(ids != padding_idx % many)
        rows, bags = rows[wrap(counts)], bags[counts]
    if mode == "max":
        y = _largest_of(rows, bags, count)
    else:
        y = FUNCTIONS["index_add"](wrap(np.zeros((count, weight.value.shape[1]), weight.value.dtype)), 0, wrap(bags), rows)
    if mode == "mean":
        y = y / wrap(np.maximum(np.bincount(bags, minlength=count), 1).astype(weight.value.dtype)[:, None])
    return labelled(y, "EmbeddingBagBackward0")


def _largest_of(rows: Tensor, bags: Any, count: int) -> Any:
    """The largest elements of the rows of each bag, the first of equal ones; zeros of empty bags."""
    width = rows.value.shape[1]
    shape = rows.value.shape
    keys = np.broadcast_to(np.arange(len(bags))[:, None], shape), -rows.value, np.broadcast_to(bags[:, None], shape)
    order = np.lexsort(keys, 0)
    starts = np.searchsorted(bags, np.arange(count))
    filled = np.flatnonzero(np.bincount(bags, minlength=count))
    best = FUNCTIONS["gather"](rows, 0, wrap(order[starts[filled]]))
    return FUNCTIONS["index_add"](wrap(np.zeros((count, width), rows.value.dtype)), 0, wrap(filled), best)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """``input`` over its norm along ``dim``."""
    return input / expand_as(reductions.vector_norm(input, p, dim, True).clamp_min(eps), input)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between rows."""
    x1, x2 = broadcast_tensors(x1, x2)
    norms = (reductions.vector_norm(x, 2, dim, True) for x in (x1, x2))
    one, two = (x / apply(ops.RAISED, (norm,), {"eps": eps}, "CloneBackward0") for x, norm in zip((x1, x2), norms, strict=True))
    return (one * two).sum(dim)


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """``input`` with margins, given from the last dimension on; negative ones cut off."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    shape, n = input.value.shape, len(pad) // 2
    if n > len(shape):
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length {len(pad)} "
            f"and input of dimension {len(shape)}"
        )
    widths = (*[(0, 0)] * (len(shape) - n), *[tuple(pad[i : i + 2]) for i in range(len(pad) - 2, -1, -2)])
    after = [low + size + high for (low, high), size in zip(widths, shape, strict=True)]
    if mode == "constant" and min(after, default=0) < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if mode == "constant":
        return apply(ops.PAD, (input,), {"widths": widths, "value": value or 0})
    if mode not in _MARGINS:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if len(shape) - n not in (1, 2):
        raise NotImplementedError(f"Padding size {len(pad)} is not supported for {len(shape)}D input tensor.")
    if mode == "reflect" and any([max(width) >= size for width, size in zip(widths, shape, strict=True) if any(width)]):
        axis = next(i for i, (width, size) in enumerate(zip(widths, shape, strict=True)) if max(width) >= size and any(width))
        raise RuntimeError(
            f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({', '.join(map(str, widths[axis]))}) at dimension {axis} of input {list(shape)}"
        )
    if mode == "circular" and any([max(width) > size for width, size in zip(widths, shape, strict=True)]):
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if any([length < 1 <= size for length, size in zip(after, shape, strict=True)]):
        sides = "DHW"[3 - n :] if n <= 3 else ""
        before, now = (", ".join(map("{}: {}".format, sides, sizes[len(shape) - n :])) for sizes in (shape, after))
        raise RuntimeError(f"input ({before}) is too small. Calculated output {now}")
    name, source = _MARGINS[mode]
    places: Any = np.zeros((), np.int64)
    for (low, high), size in zip(widths, shape, strict=True):
        places = places[..., None] * size + source(np.arange(-low, size + high), size)
    return apply(ops.GATHER, (input, places), {"shape": shape}, name.format(n))


_MARGINS: dict[str, Any] = {  # torch's name of each mode, and from where the elements come
    "reflect": ("ReflectionPad{}DBackward0", lambda i, n: n - 1 - np.abs(n - 1 - np.abs(i))),
    "replicate": ("ReplicationPad{}DBackward0", lambda i, n: np.clip(i, 0, n - 1)),
    "circular": ("CopySlices", lambda i, n: _wrapped(i, i[(i >= 0) & (i < n)])),
}


def _wrapped(places: Any, inner: Any) -> Any:
    """Places outside of ``inner``, a range that is cut out of a dimension, as those where it begins anew."""
    return inner[(places - inner[0]) % len(inner)] if len(inner) else places


methods(hardshrink=hardshrink, prelu=prelu)
FUNCTIONS.update(
    embedding=_embedded,
    batch_norm=lambda input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False: batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    ),
    constant_pad_nd=lambda input, pad_, value=0: pad(input, pad_, value=value),
)
