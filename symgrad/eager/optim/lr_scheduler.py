"""Learning rates that change from step to step: torch.optim.lr_scheduler.

Most say how the next rate follows from the present one, so that several may work on one optimiser.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from symgrad.eager.core import Tensor
from symgrad.eager.optim.optimizer import Optimizer

Rates = Callable[[int], float]


class LRScheduler:
    """Changes the rates of an optimiser's groups, at once and at each ``step()``."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer, self.last_epoch = _checked(optimizer), last_epoch
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.start()

    def start(self) -> None:
        """The first epoch's rates; where training is resumed, those that the groups have."""
        self._step_count = 0
        self._first(self.step)

    def _first(self, run: Callable[[], Any]) -> None:
        """Run what sets the first rates, which follow from none before."""
        self._is_initial = True
        try:
            run()
        finally:
            self._is_initial = False

    def rate(self, lr: float, base: float, group: int) -> float:
        """The rate of a group at ``last_epoch``, from the one before and the first one."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """The rates at ``last_epoch``, one a group, from those before: what own schedulers say."""
        return [
            self.rate(float(group["lr"]), base, i)
            for i, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True))
        ]

    def step(self) -> None:
        """The next epoch's rates."""
        if self._step_count == 1 and not self.optimizer.stepped:
            warnings.warn(_ORDER, stacklevel=2)
        self._step_count += 1
        self.last_epoch += 1
        self.set_rates(self.get_lr())

    def restart(self) -> None:
        """The first epoch's rates once more."""
        self.last_epoch = 0
        self.set_rates(self.base_lrs)
        self._first(lambda: self.set_rates(self.get_lr()))

    def set_rates(self, rates: Sequence[float]) -> None:
        """Give each group its rate; a tensor is written to."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self._last_lr = _rates(self.optimizer)

    def get_last_lr(self) -> list[float]:
        """The rates, one a group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser, and functions."""
        return {name: value for name, value in vars(self).items() if name != "optimizer" and not _has_function(value)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        vars(self).update(state_dict)


def _checked(optimizer: Optimizer) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def _rates(optimizer: Optimizer) -> list[Any]:
    return [lr.clone() if isinstance(lr, Tensor) else lr for lr in (group["lr"] for group in optimizer.param_groups)]


def _each(name: str, optimizer: Optimizer, value: Any) -> list[float]:
    """An option of each group, given as one for all or as a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has "
            f"{count}."
        )
    return list(value)


_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in the "
    "opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the "
    "first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


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

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser and functions; of other callable objects, what is in them."""
        plain = [isinstance(fun, FunctionType) or not hasattr(fun, "__dict__") for fun in self.lr_lambdas]
        kept = [None if is_plain else dict(vars(fun)) for is_plain, fun in zip(plain, self.lr_lambdas, strict=True)]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        rest = dict(state_dict)
        kept = rest.pop("lr_lambdas", ())
        super().load_state_dict(rest)
        for fun, state in zip(self.lr_lambdas, kept, strict=False):
            if state is not None:
                vars(fun).update(state)


class MultiplicativeLR(LambdaLR):
    """The rate before, times a function of the epoch."""

    def rate(self, lr: float, base: float, group: int) -> float:
        return lr if self._is_initial else float(lr * self.lr_lambdas[group](self.last_epoch))

    def restart(self) -> None:
        """The first epoch's rates once more, which here are no more than what the rates are times the functions."""
        self.last_epoch = 0
        rates = zip(_rates(self.optimizer), self.lr_lambdas, strict=True)
        self.set_rates([float(lr) * function(0) for lr, function in rates])


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
        return lr if self._is_initial else lr * self.gamma


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
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        return lr * (1 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))


class PolynomialLR(LRScheduler):
    """A power of a line that falls to zero in ``total_iters`` epochs."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        left = self.total_iters - self.last_epoch
        return float(lr * (left / (left + 1)) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Half a wave down to ``eta_min`` in ``T_max`` epochs, and up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        if self._is_initial:
            return lr
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return lr + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        now, before = (1 + math.cos(math.pi * i / self.T_max) for i in (self.last_epoch, self.last_epoch - 1))
        return now / before * (lr - self.eta_min) + self.eta_min


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a wave down to ``eta_min`` in ``T_0`` epochs, then from the top again, each time ``T_mult`` times as long."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, float(last_epoch)
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2

    def step(self, epoch: float | None = None) -> None:
        """The next epoch's rates, or those of an epoch, which need not be a whole number."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = epoch or 0
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            count = epoch // self.T_0
            if self.T_mult > 1:
                count = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                passed = self.T_0 * (self.T_mult**count - 1) / (self.T_mult - 1)
            else:
                passed = count * self.T_0
            self.T_cur, self.T_i = epoch - passed, self.T_0 * self.T_mult ** int(count)
        self.last_epoch = math.floor(epoch)
        self.set_rates(self.get_lr())


class _Cycle(LRScheduler):
    """Rates that go up and down and, if asked for, momenta that go down and up."""

    def cycle(self, cycle_momentum: bool, base_momentum: Any, max_momentum: Any, last_epoch: int) -> None:
        """Begin with the momenta."""
        self.cycle_momentum, optimizer = cycle_momentum, self.optimizer
        if not cycle_momentum:
            return
        if not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.base_momentums = _each("base_momentum", optimizer, base_momentum)
        self.max_momentums = _each("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                _set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(_Cycle):
    """Up from ``base_lr`` to ``max_lr`` and down again, over and over, all the way or less and less far."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = _checked(optimizer)
        base_lrs = _each("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            self.set_rates(base_lrs)
        self.max_lrs = _each("max_lr", optimizer, max_lr)
        self.total_size = float(step_size_up) + float(step_size_up if step_size_down is None else step_size_down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        self.cycle(cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How far a cycle (the first is 1) or an epoch goes."""
        if self._scale is not None:
            return self._scale(x)
        return float({"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode])

    def rate(self, lr: float, base: float, group: int) -> float:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            low, high = self.base_momentums[group], self.max_momentums[group]
            _set_momentum(self.optimizer.param_groups[group], high - (high - low) * up * scale)
        return base + (self.max_lrs[group] - base) * up * scale


class OneCycleLR(_Cycle):
    """Up from ``max_lr / div_factor`` to ``max_lr``, and down to far less than at first."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 10000.0,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = _checked(optimizer)
        counts: dict[str, Any] = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        if total_steps is not None:
            counts = {"total_steps": total_steps}
        if None in counts.values():
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, count in counts.items():
            if not isinstance(count, int) or count <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {count}")
        self.total_steps = math.prod(counts.values())
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.anneal_strategy, up, last = anneal_strategy, pct_start * self.total_steps, self.total_steps - 1
        rise, high, low = ("initial_lr", "max_lr"), "max_momentum", "base_momentum"
        if three_phase:
            self._phases = [
                (up - 1, *rise, high, low),
                (2 * up - 2, *rise[::-1], low, high),
                (last, "initial_lr", "min_lr", high, high),
            ]
        else:
            self._phases = [(up - 1, *rise, high, low), (last, "max_lr", "min_lr", low, high)]
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, _each("max_lr", optimizer, max_lr), strict=True):
                first = most / div_factor
                group.update(initial_lr=first, max_lr=most, min_lr=first / final_div_factor)
        self.cycle(cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def rate(self, lr: float, base: float, group: int) -> float:
        step, options, ends = self.last_epoch, self.optimizer.param_groups[group], [phase[0] for phase in self._phases]
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        i = min(bisect_left(ends, step), len(ends) - 1)
        begin = ends[i - 1] if i else 0.0
        passed = (step - begin) / (ends[i] - begin)

        def between(first: str, last: str) -> Any:
            start, end = options[first], options[last]
            if self.anneal_strategy == "linear":
                return start + (end - start) * passed
            return end + (start - end) / 2 * (1 + math.cos(math.pi * passed))

        _, low, high, *momenta = self._phases[i]
        if self.cycle_momentum:
            _set_momentum(options, between(*momenta))
        return float(between(low, high))


class _Several(LRScheduler):
    """Schedulers of one optimiser."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None, purpose: str = "") -> None:
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name} expects at least one scheduler{purpose}, but got no scheduler.")
        self.optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified "
                    f"when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if scheduler.optimizer is not self.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                    f"{type(self.optimizer).__name__}."
                )
        self._schedulers = schedulers

    def restart(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} cannot begin at a milestone of another scheduler")

    def state_dict(self) -> dict[str, Any]:
        """The states of the schedulers, and what else there is."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class ChainedScheduler(_Several):
    """Several schedulers at once."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        super().__init__(schedulers, optimizer, " to be chained")
        self._last_lr = _rates(self.optimizer)

    def step(self) -> None:
        """The next epoch's rates."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _rates(self.optimizer)


class SequentialLR(_Several):
    """One scheduler after the other; ``milestones`` are the epochs at which the next one begins."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        super().__init__(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._milestones, self.last_epoch = milestones, last_epoch + 1
        self.set_rates([group["initial_lr"] for group in optimizer.param_groups])
        _undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first.start()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:
        """The next epoch's rates."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler.restart()
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo(scheduler: LRScheduler) -> None:
    """Take back the step that schedulers make when they are made."""
    if isinstance(scheduler, _Several):
        for part in scheduler._schedulers:
            _undo(part)
    else:
        scheduler.last_epoch -= 1


class ReduceLROnPlateau(LRScheduler):
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
        self.optimizer, self.mode, self.factor, self.patience = _checked(optimizer), mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        count = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        if len(self.min_lrs) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(self.min_lrs)}")
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = _rates(optimizer)

    def step(self, metrics: Any) -> None:  # type: ignore[override]
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
            before = [float(group["lr"]) for group in self.optimizer.param_groups]
            after = [max(lr * self.factor, least) for lr, least in zip(before, self.min_lrs, strict=True)]
            self.set_rates([new if old - new > self.eps else old for old, new in zip(before, after, strict=True)])
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = _rates(self.optimizer)

    def is_better(self, a: float, best: float) -> bool:
        """Whether ``a`` is better than ``best``, by more than the threshold."""
        sign = 1 if self.mode == "max" else -1
        margin = self.threshold * (best if self.threshold_mode == "rel" else 1)
        return sign * (a - best) > (margin if math.isfinite(margin) else 0)
