"""Losses that are compositions of others: torch.nn.functional's less common ones."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from symgrad.eager import ops
from symgrad.eager.core import Tensor, apply, check_within, labelled, requires, wrap
from symgrad.eager.indexing import gather
from symgrad.eager.modes import mode
from symgrad.eager.pointwise import FUNCTIONS, where
from symgrad.eager.reductions import vector_norm
from symgrad.eager.shapes import unsqueeze

REDUCTIONS = ("mean", "sum", "none")


def reduction_of(reduction: str, size_average: Any = None, reduce: Any = None, known: tuple[str, ...] = REDUCTIONS) -> str:
    """The reduction, checked; torch's two older arguments say which, where they are given."""
    if size_average is not None or reduce is not None:
        keeps, sums = (given is not None and not given for given in (reduce, size_average))
        reduction = "none" if keeps else "sum" if sums else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3
        )
    if reduction not in known:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def constant(weight: Any, function: str, argument: str) -> Any:
    """A weight, to which no gradient flows."""
    if isinstance(weight, Tensor) and mode.grad and requires(weight):
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot have "
            "requires_grad True."
        )
    return weight


def reduced(loss: Tensor, reduction: str) -> Any:
    """What a checked ``reduction`` makes of the losses of all elements."""
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The negative log likelihood of counts; ``input`` is their expected number, or its logarithm."""
    reduction = reduction_of(reduction, size_average, reduce)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(wrap(target.value <= 1), 0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """The negative log likelihood of normal numbers with these means and variances."""
    reduction = reduction_of(reduction)
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * FUNCTIONS["square"](input.detach() * 0 + 1)
    elif np.any(var.value < 0):
        raise ValueError("var has negative entry/entries")
    if var.value.shape != input.value.shape:
        if var.value.shape == input.value.shape[:-1]:
            var = unsqueeze(var, -1)
        elif not (var.value.shape[:-1] == input.value.shape[:-1] and var.value.shape[-1] == 1) and var.value.ndim != 0:
            raise ValueError("var is of incorrect size")
    var = apply(ops.RAISED, (var,), {"eps": eps})
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """How far two inputs are from the order that ``target`` (1 or -1) asks for."""
    reduction = reduction_of(reduction, size_average, reduce)
    if not input1.value.ndim == input2.value.ndim == target.value.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """A distance where ``target`` is 1, and what it lacks to ``margin`` where it is -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    zero = wrap(np.zeros((), input.value.dtype))
    apart = where(wrap(target.value != 1), (margin - input).clamp_min(0), zero)
    return reduced(apart + where(wrap(target.value != -1), input, zero), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """How far rows are from pointing the same way (where ``target`` is 1), or from not doing so (-1)."""
    reduction = reduction_of(reduction, size_average, reduce)
    rows = target.value.ndim
    if rows > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.value.ndim == input2.value.ndim == rows + 1:
        sizes = f"{list(input1.value.shape)} and {list(input2.value.shape)}"
        raise RuntimeError(f"{rows}D target tensor expects {rows + 1}D input tensors, but found inputs with sizes {sizes}.")
    total = [(x * y).sum(-1) for x, y in ((input1, input2), (input1, input1), (input2, input2))]
    cosine = total[0] / ((total[1] + _TINY) * (total[2] + _TINY)).sqrt()
    zero = wrap(np.zeros((), cosine.value.dtype))
    loss = where(wrap(target.value == 1), 1 - cosine, zero)
    return reduced(loss + where(wrap(target.value == -1), (cosine - margin).clamp_min(0), zero), reduction)


_TINY = 1e-12


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """The logistic loss of classes 1 and -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    check_within(input.value.shape, constant(target, "soft_margin_loss", "target"))
    return labelled(reduced((-target * input).exp().log1p(), reduction), "SoftMarginLossBackward0")


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The mean logistic loss of all classes, each 0 or 1."""
    reduction = reduction_of(reduction, size_average, reduce)
    high, low = (apply(ops.LOG_SIGMOID, (x,)) for x in (input, -input))
    loss = -(target * high + (1 - target) * low)
    loss = loss if weight is None else loss * weight
    return reduced(loss.sum(-1) / input.value.shape[-1], reduction)


def _check_rows(input: Tensor) -> None:
    """Raise for what is neither a row nor several."""
    if input.value.ndim > 2 or not all(input.value.shape[-1:]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.value.shape)}"
        )


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """How far the right class is from leading all others by ``margin``."""
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    _check_rows(input)
    x = input if input.value.ndim == 2 else input.reshape(1, -1)
    count, classes = x.value.shape
    if target.value.ndim > 1 or target.value.size != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{count}], but got {list(target.value.shape)}. Input has shape {list(input.value.shape)}."
        )
    if weight is not None and (weight.value.ndim > 1 or weight.value.size != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.value.shape)}")
    if not np.all((target.value >= 0) & (target.value < classes)):
        raise RuntimeError("target out of range")
    constant(weight, "multi_margin_loss", "weight")
    places = target.reshape(-1, 1)
    gap = FUNCTIONS["relu"](margin - gather(x, 1, places) + x)
    gap = gap if p == 1 else gap**2
    gap = gap if weight is None else gap * weight[places]
    others = np.arange(x.value.shape[1]) != places.value
    loss = (gap * wrap(others.astype(x.value.dtype))).sum(1) / x.value.shape[1]
    loss = loss if input.value.ndim == 2 or target.value.ndim else loss.reshape(())
    return labelled(reduced(loss, reduction), "MultiMarginLossBackward0")


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """How far all of the right classes, those before the first -1, are from leading all others by 1."""
    reduction = reduction_of(reduction, size_average, reduce)
    classes = input.value.shape[-1] if input.value.ndim else 1
    _check_rows(input)
    one = input.value.ndim < 2 and target.value.ndim < 2
    if target.value.size != classes if one else target.value.shape != input.value.shape:
        sizes = f"{list(target.value.shape)} for input of size: {list(input.value.shape)}"
        raise RuntimeError(f"inconsistent target size: {sizes}")
    if not np.all((target.value >= -1) & (target.value < classes)):
        raise RuntimeError("argument #2 'target' is out of range")
    x, places = input.reshape(-1, classes), target.value.reshape(-1, classes)
    right = np.cumprod(places >= 0, axis=1).astype(bool)
    wrong = ~((places[:, :, None] == np.arange(classes)) & right[:, :, None]).any(1)
    counted = (right[:, :, None] & wrong[:, None, :]).astype(x.value.dtype)
    gap = FUNCTIONS["relu"](1 - unsqueeze(gather(x, 1, wrap(np.where(right, places, 0))), 2) + unsqueeze(x, 1))
    loss = (gap * wrap(counted)).sum((1, 2)) / classes
    loss = loss if input.value.ndim == 2 else loss.reshape(())
    return labelled(reduced(loss, reduction), "MultilabelMarginLossBackward0")


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The norms of the differences of rows."""
    return labelled(vector_norm(x1 - x2 + eps, p, -1, keepdim), "NormBackward1")


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """How far the anchor is from being nearer to one row than to another by ``margin``."""
    reduction = reduction_of(reduction, size_average, reduce)
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda x, y: pairwise_distance(x, y, p, eps),
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """``triplet_margin_loss``, by any distance."""
    reduction = reduction_of(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    sizes = [x.value.ndim for x in (anchor, positive, negative)]
    if len(set(sizes)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
            f"{sizes[0]}D, positive {sizes[1]}D, and negative {sizes[2]}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = FUNCTIONS["minimum"](far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)
