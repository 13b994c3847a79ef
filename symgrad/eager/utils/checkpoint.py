"""``torch.utils.checkpoint``: what the backward pass reads is computed once more instead of kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from symgrad import pytree
from symgrad.eager.autograd.graph import saved_tensors_hooks
from symgrad.eager.core import Tensor, modified
from symgrad.eager.modes import enable_grad
from symgrad.eager.random import default_generator

__all__ = ["CheckpointError", "checkpoint"]


class CheckpointError(RuntimeError):
    """The function saved other tensors when it ran again."""


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, which runs again in the backward pass, with the same random numbers.

    Both of torch's ways (``use_reentrant``) are one here, the one without re-entrance.

    >>> import symgrad.eager as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.utils.checkpoint.checkpoint(lambda x: x.exp() * x, x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([5.4366, 5.4366])
    """
    if use_reentrant is None:
        warnings.warn(_PASS_IT, stacklevel=2)
    drawn = default_generator.get_state()
    given = [(x, x.counter[0]) for x in pytree.flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    count = 0
    again: dict[int, Tensor] = {}

    def pack(x: Tensor) -> int:
        nonlocal count
        count += 1
        return count - 1

    def unpack(number: int) -> Tensor:
        if number not in again:
            again.update(enumerate(recomputed()))
            if len(again) != count:
                raise CheckpointError(
                    "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                    f"recomputation.\nNumber of tensors saved during forward: {count}\nNumber of tensors saved during "
                    f"recomputation: {len(again)}."
                )
        return again.pop(number)

    def recomputed() -> list[Tensor]:
        for x, seen in given:
            if x.counter[0] != seen:
                made = x.grad_fn and x.grad_fn.name()
                raise RuntimeError(modified(x.value, made, x.counter, seen, "checkpoint"))
        found: list[Tensor] = []
        now = default_generator.get_state()
        if preserve_rng_state:
            default_generator.set_state(drawn)
        with enable_grad(), saved_tensors_hooks(found.append, lambda x: x):
            function(*args, **kwargs)
        if preserve_rng_state:
            default_generator.set_state(now)
        return found

    with saved_tensors_hooks(pack, unpack):
        return function(*args, **kwargs)


_PASS_IT = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
    "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve "
    "the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the differences between "
    "the two variants."
)
