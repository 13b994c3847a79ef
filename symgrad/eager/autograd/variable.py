"""``Variable``: how tensors that require grad were made before ``requires_grad`` was theirs."""

from __future__ import annotations

from typing import Any

from symgrad.eager.core import Tensor


class _OfTensors(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_OfTensors):
    """``Variable(x, requires_grad=True)`` is a leaf that shares the memory of ``x``; all tensors are instances.

    >>> import symgrad.eager as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False) -> Any:
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return (Tensor() if data is None else data.detach()).requires_grad_(requires_grad)
