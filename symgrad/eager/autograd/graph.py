"""``torch.autograd.graph``: what the graph saves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

from symgrad.eager.core import Node, Tensor, user_line
from symgrad.eager.modes import Switch

__all__ = ["Node", "increment_version", "save_on_cpu", "saved_tensors_hooks"]


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count one more write to a tensor, or to several, whose memory was written to behind their backs."""
    for x in (tensor,) if isinstance(tensor, Tensor) else tensor:
        x.counter[0] += 1
        x.counter[1:] = ("increment_version", user_line())


class saved_tensors_hooks(Switch):
    """Within the block, what is saved for backward goes through ``pack_hook``, and comes back through ``unpack_hook``.

    >>> import symgrad.eager as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda x: x.numpy() * 2, torch.from_numpy):
    ...     y = x * x
    >>> y.sum().backward()
    >>> x.grad
    tensor([4., 4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.values = MappingProxyType({"packing": (pack_hook, unpack_hook)})

    def clone(self) -> Any:
        return type(self)(*self.values["packing"])


class save_on_cpu(saved_tensors_hooks):
    """What is saved stays on the CPU, where it is anyway: as a copy."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: x.clone(), lambda x: x)

    def clone(self) -> Any:
        return type(self)()
