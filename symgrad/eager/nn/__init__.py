"""``nn.functional``, ``nn.Parameter``, ``nn.init`` and ``nn.utils``: what small training loops need of torch.nn."""

from typing import Any

from symgrad.eager.core import Tensor, whole
from symgrad.eager.nn import functional, init, utils

__all__ = ["Parameter", "functional", "init", "utils"]


class Parameter(Tensor):
    """A leaf that requires grad."""

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        self.value, self.counter = whole(data), [0]
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{Tensor.__repr__(self)}"

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(self.detach().clone(), self.needs)
