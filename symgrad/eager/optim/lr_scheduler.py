"""Learning rates that change from step to step: torch.optim.lr_scheduler.

Most say how the next rate follows from the present one, so that several may work on one optimiser.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.eager.optim.optimizers import Optimizer

Rates = Callable[[int], float]


class LRScheduler:
    """Changes the rates of an optimiser's groups, at once and at each ``step()``."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def rate(self, lr: float, base: float, group: int) -> float:
        """The rate of a group at ``last_epoch``, from the one before and the first one."""
        raise NotImplementedError

    def step(self) -> None:
        """The next epoch's rates."""
        self.last_epoch += 1
        for i, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True)):
            group["lr"] = self.rate(group["lr"], base, i)
        self._last_lr = self.get_last_lr()

    def get_last_lr(self) -> list[float]:
        """The rates, one a group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser, and functions."""
        return {name: value for name, value in vars(self).items() if name != "optimizer" and not _has_function(value)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        vars(self).update(state_dict)


def _has_function(value: Any) -> bool:
    return callable(value) or (isinstance(value, list) and any(map(callable, value)))


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch; one function for all groups, or one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Rates | Sequence[Rates], last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        return float(base * self.lr_lambdas[group](self.last_epoch))


class MultiplicativeLR(LambdaLR):
    """The rate before, times a function of the epoch."""

    def rate(self, lr: float, base: float, group: int) -> float:
        return float(lr * self.lr_lambdas[group](self.last_epoch)) if self.last_epoch > 0 else lr


class StepLR(LRScheduler):
    """``gamma`` times less each ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        return lr if self.last_epoch == 0 or self.last_epoch % self.step_size else lr * self.gamma


class MultiStepLR(LRScheduler):
    """``gamma`` times less at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        return lr * self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else lr


class ExponentialLR(LRScheduler):
    """``gamma`` times less at each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        return lr * self.gamma if self.last_epoch > 0 else lr


class ConstantLR(LRScheduler):
    """``factor`` times the rate, until ``total_iters``."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        if self.last_epoch == 0:
            return lr * self.factor
        return lr / self.factor if self.last_epoch == self.total_iters else lr


class LinearLR(LRScheduler):
    """A factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        return lr * (1 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))


class PolynomialLR(LRScheduler):
    """A power of a line that falls to zero in ``total_iters`` epochs."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        if not 0 < self.last_epoch <= self.total_iters:
            return lr
        left = self.total_iters - self.last_epoch
        return float(lr * (left / (left + 1)) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Half a wave down to ``eta_min`` in ``T_max`` epochs, and up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        if self.last_epoch == 0:
            return lr
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return lr + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        now, before = (1 + math.cos(math.pi * i / self.T_max) for i in (self.last_epoch, self.last_epoch - 1))
        return now / before * (lr - self.eta_min) + self.eta_min


class ReduceLROnPlateau:
    """``factor`` times less, once the metric has been no better for ``patience`` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        count = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        if len(self.min_lrs) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(self.min_lrs)}")
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def step(self, metrics: Any) -> None:
        """What has come of an epoch."""
        current = float(metrics)
        self.last_epoch += 1
        better = self.is_better(current, self.best)
        self.best = current if better else self.best
        self.num_bad_epochs = 0 if better else self.num_bad_epochs + 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                lower = max(group["lr"] * self.factor, least)
                if group["lr"] - lower > self.eps:
                    group["lr"] = lower
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether ``a`` is better than ``best``, by more than the threshold."""
        sign = 1 if self.mode == "max" else -1
        margin = self.threshold * (best if self.threshold_mode == "rel" else 1)
        return sign * (a - best) > (margin if math.isfinite(margin) else 0)

    get_last_lr = LRScheduler.get_last_lr
    state_dict = LRScheduler.state_dict
    load_state_dict = LRScheduler.load_state_dict
