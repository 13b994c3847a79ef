"""``nn.utils``: gradients that are clipped, and parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from symgrad.eager.core import Tensor
from symgrad.eager.creation import tensor
from symgrad.eager.modes import unrecorded
from symgrad.eager.pointwise import FUNCTIONS

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "parameters_to_vector",
    "vector_to_parameters",
]  # fmt: skip

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Tensors) -> list[Any]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


@unrecorded
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """The norm of all elements of all tensors."""
    given, norm_type = _listed(tensors), float(norm_type)
    if not given:
        return tensor(0.0)
    total = FUNCTIONS["stack"]([x.norm(norm_type) for x in given]).norm(norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@unrecorded
def clip_grads_with_norm_(parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale the gradients, which have this norm, down to at most ``max_norm``."""
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for g in _grads(parameters):
        g.mul_(scale)


def clip_grad_norm_(
    parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """Scale the gradients down to a norm, of them all, of at most ``max_norm``; returns the norm that there was.

    >>> import symgrad.eager as torch
    >>> x = torch.ones(4, requires_grad=True)
    >>> (x * 3).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_(x, 1.0), x.grad
    (tensor(6.), tensor([0.5000, 0.5000, 0.5000, 0.5000]))
    """
    given = _listed(parameters)
    total = get_total_norm(_grads(given), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


@unrecorded
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clip each element of the gradients."""
    for g in _grads(parameters):
        g.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Any:
    """All elements of all parameters in one vector."""
    return FUNCTIONS["cat"]([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters be views of the parts of a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()
