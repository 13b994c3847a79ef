"""``torch.autograd.graph``: what the graph saves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any

from symgrad.eager.core import Node, RemovableHandle, Tensor, requires, user_line
from symgrad.eager.engine import edge_of
from symgrad.eager.modes import Switch
from symgrad.eager.modes import mode as modes

__all__ = [
    "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "increment_version", "register_multi_grad_hook",
    "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


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

    def set(self) -> None:
        if modes.unhooked is not None:
            raise RuntimeError(modes.unhooked)
        super().set()

    def clone(self) -> Any:
        return type(self)(*self.values["packing"])


class save_on_cpu(saved_tensors_hooks):
    """What is saved stays on the CPU, where it is anyway: as a copy."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: x.clone(), lambda x: x)

    def clone(self) -> Any:
        return type(self)()


class allow_mutation_on_saved_tensors(save_on_cpu):
    """Within the block, what is saved for backward may be written to: a copy is saved."""

    def __init__(self) -> None:
        super().__init__()


class disable_saved_tensors_hooks(Switch):
    """Within the block, ``saved_tensors_hooks`` is an error with this message."""

    def __init__(self, error_message: str) -> None:
        self.values = MappingProxyType({"unhooked": error_message})

    def clone(self) -> Any:
        return type(self)(self.values["unhooked"])


class _Handles:
    """The handles of a hook that several tensors have."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], Any], *, mode: str = "all") -> _Handles:
    """``fn(grads)`` runs in a backward pass when the gradients of all tensors that it comes to are known.

    ``grads`` has None for the others. With ``mode="any"``, ``fn(grad)`` runs when the first one is known.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of {('all', 'any')} but got {mode}")
    pending: dict[Any, list[Any]] = {}  # of each backward pass: the gradients so far, and how many are to come

    def arrived(place: int, grad: Tensor) -> None:
        sweep = modes.sweeps[-1]
        if sweep not in pending:
            pending[sweep] = [[None] * len(tensors), sum([sweep.reaches(edge_of(x)) for x in tensors])]
            if mode == "any":
                fn(grad)
        grads, left = pending[sweep]
        grads[place] = grad
        pending[sweep][1] = left - 1
        if left == 1:
            del pending[sweep]
            if mode == "all":
                fn(grads)

    taking = [x for x in tensors if mode == "all" or requires(x)]
    return _Handles([x.register_hook(functools.partial(arrived, i)) for i, x in enumerate(taking)])
