"""``SGD``, ``Adam`` and their kin: steps along gradients that ``backward`` has left in ``.grad``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.eager.core import Tensor, whole, wrap
from symgrad.eager.optim.optimizer import Optimizer, counted

Betas = tuple[float, float]


def check(betas: Betas = (0.0, 0.0), **options: float) -> None:
    """Raise for an option below zero."""
    titles = {"lr": "learning rate", "eps": "epsilon value"}
    for name, value in options.items():
        if not value >= 0:
            raise ValueError(f"Invalid {titles.get(name, f'{name} value')}: {value}")
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def _plus(x: Any, factor: Any, y: Any, z: Any = None) -> Any:
    """``x + factor * y`` (times ``z``), rounded once in float32, as by the fused multiply-add that torch uses."""
    if x.dtype != np.float32:
        return x + factor * (y if z is None else y * z)
    product = np.float32(factor) * y.astype(np.float64)
    return (x + (product if z is None else product * z)).astype(np.float32)


def _decayed(value: Any, g: Any, group: dict[str, Any]) -> Any:
    """The gradient with weight decay, or without, where that acts on the parameter itself."""
    if not group["weight_decay"]:
        return g
    if group.get("decoupled_weight_decay"):
        value *= 1 - group["lr"] * group["weight_decay"]
        return g
    return _plus(g, group["weight_decay"], value)


def _reals(*arrays: Any) -> list[Any]:
    """The arrays or, of complex ones, first the real parts and then the imaginary ones, which are moved as if alone."""
    return [arrays] if arrays[0].dtype.kind != "c" else [[x.real for x in arrays], [x.imag for x in arrays]]


def _mean(mean: Any, g: Any, weight: float) -> None:
    """Move a running mean towards the gradient."""
    mean[...] = _plus(mean, weight, g - mean)


def _mean_of_squares(mean: Any, g: Any, beta: float) -> None:
    """Move a running mean of squares towards that of the gradient."""
    mean[...] = _plus(mean * beta, 1, mean.dtype.type(1 - beta) * g, g)


class SGD(Optimizer):
    """Gradient descent, with momentum (Nesterov's too) and weight decay."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        rest = {"maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused}
        super().__init__(params, {**options, **rest})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        g = _decayed(value, g, group)
        if group["momentum"]:
            state = self.state[p]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                state["momentum_buffer"] = buffer = wrap(np.array(g))
            else:
                buffer.value[...] = _plus(buffer.value * group["momentum"], 1 - group["dampening"], g)
            g = _plus(g, group["momentum"], buffer.value) if group["nesterov"] else buffer.value
        value[...] = _plus(value, -group["lr"], g)


class Adam(Optimizer):
    """Steps scaled by running means of the gradients and of their squares."""

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check(lr=lr, eps=eps)
        check(betas, weight_decay=weight_decay)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
        }
        rest = {"foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused}
        decoupled = decoupled_weight_decay or self.decoupled
        super().__init__(params, {**options, **rest, "decoupled_weight_decay": decoupled})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        names = ["exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * group["amsgrad"]]
        step, kept = self.remembered(p, *names)
        beta1, beta2 = group["betas"]
        g = _decayed(value, g, group)
        for x, d, mean, square, *largest in _reals(value, g, *kept):
            _mean(mean, d, 1 - beta1)
            _mean_of_squares(square, d, beta2)
            for most in largest:
                square = np.maximum(most, square, out=most)
            scale = np.sqrt(square) / math.sqrt(1 - beta2**step) + group["eps"]
            x -= group["lr"] / (1 - beta1**step) * mean / scale


class AdamW(Adam):
    """``Adam``, whose weight decay acts on the parameters themselves."""

    decoupled = True

    def __init__(self, params: Any, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, **options: Any) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class RMSprop(Optimizer):
    """Steps over the root of a running mean of the gradients' squares, or variances."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        options = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
        }
        rest = {"capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable}
        super().__init__(params, {**options, **rest})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        momentum, alpha = group["momentum"], group["alpha"]
        _, kept = self.remembered(p, "square_avg", *["momentum_buffer"] * (momentum > 0), *["grad_avg"] * group["centered"])
        g = _decayed(value, g, group)
        for x, d, square, *others in _reals(value, g, *kept):
            _mean_of_squares(square, d, alpha)
            if group["centered"]:
                _mean(others[-1], d, 1 - alpha)
                square = _plus(square, -1, others[-1], others[-1])
            step = d / (np.sqrt(square) + group["eps"])
            if momentum > 0:
                step = np.add(others[0] * momentum, step, out=others[0])
            x -= group["lr"] * step


class Adagrad(Optimizer):
    """Steps over the root of the sum of the gradients' squares."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        start = initial_accumulator_value
        check(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=start, eps=eps)
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": start,
        }
        rest = {"foreach": foreach, "maximize": maximize, "differentiable": differentiable, "fused": fused}
        super().__init__(params, {**options, **rest})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters, whose sums begin here."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in group["params"]:
            start = group["initial_accumulator_value"]
            total = np.full_like(whole(p), complex(start, start) if p.is_complex() else start)
            self.state[p] = {"step": counted(0), "sum": wrap(total)}

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        step, kept = self.remembered(p, "sum")
        lr = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        g = _decayed(value, g, group)
        for x, d, total in _reals(value, g, *kept):
            total[...] = _plus(total, 1, d, d)
            x -= lr * d / (np.sqrt(total) + group["eps"])


class Adadelta(Optimizer):
    """Steps as long as the root of a running mean of past ones' squares, over that of the gradients' squares."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check(eps=eps, weight_decay=weight_decay)
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, {**options, "capturable": capturable, "foreach": foreach, "differentiable": differentiable})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        _, kept = self.remembered(p, "square_avg", "acc_delta")
        g = _decayed(value, g, group)
        for x, d, square, steps in _reals(value, g, *kept):
            _mean_of_squares(square, d, group["rho"])
            step = np.sqrt(steps + group["eps"]) / np.sqrt(square + group["eps"]) * d
            _mean_of_squares(steps, step, group["rho"])
            x[...] = _plus(x, -group["lr"], step)


class Adamax(Optimizer):
    """``Adam``, with a running maximum in place of the mean of squares."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps)
        check(betas, weight_decay=weight_decay)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach}
        super().__init__(params, {**options, "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        step, kept = self.remembered(p, "exp_avg", "exp_inf")
        beta1, beta2 = group["betas"]
        g = _decayed(value, g, group)
        for x, d, mean, most in _reals(value, g, *kept):
            _mean(mean, d, 1 - beta1)
            np.maximum(most * beta2, np.abs(d) + group["eps"], out=most)
            x -= group["lr"] / (1 - beta1**step) * mean / most


class NAdam(Optimizer):
    """``Adam`` with Nesterov's momentum."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps)
        check(betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        rest = {"maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable}
        super().__init__(params, {**options, **rest})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        step, (*kept, product) = self.remembered(p, "exp_avg", "exp_avg_sq", mu_product=1.0)
        beta1, beta2 = group["betas"]
        g = _decayed(value, g, group)
        now, later = (beta1 * (1 - 0.5 * 0.96 ** (i * group["momentum_decay"])) for i in (step, step + 1))
        product *= now
        for x, d, mean, square in _reals(value, g, *kept):
            _mean(mean, d, 1 - beta1)
            _mean_of_squares(square, d, beta2)
            scale = np.sqrt(square / (1 - beta2**step)) + group["eps"]
            x += -group["lr"] * (1 - now) / (1 - float(product)) * d / scale
            x += -group["lr"] * later / (1 - float(product) * later) * mean / scale


class RAdam(Optimizer):
    """``Adam``, whose steps are scaled once the mean of squares is of enough of them."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps)
        check(betas, weight_decay=weight_decay)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        rest = {"foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, {**options, **rest, "differentiable": differentiable})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        step, kept = self.remembered(p, "exp_avg", "exp_avg_sq")
        beta1, beta2 = group["betas"]
        g = _decayed(value, g, group)
        most = 2 / (1 - beta2) - 1
        many = most - 2 * step * beta2**step / (1 - beta2**step)
        for x, d, mean, square in _reals(value, g, *kept):
            _mean(mean, d, 1 - beta1)
            _mean_of_squares(square, d, beta2)
            move = mean / (1 - beta1**step) * group["lr"]
            if many > 5:
                move = move * (math.sqrt(1 - beta2**step) / (np.sqrt(square) + group["eps"]))
                move = move * math.sqrt((many - 4) * (many - 2) * most / ((most - 4) * (most - 2) * many))
            x -= move


class ASGD(Optimizer):
    """Gradient descent, which keeps a mean of the parameters, ``ax``, in the state."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check(lr=lr, weight_decay=weight_decay)
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach}
        super().__init__(params, {**options, "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        lr = group["lr"]
        step, (mean, eta, mu) = self.remembered(p, "ax", eta=lr, mu=1.0)
        g = _decayed(value, g, group)
        value *= 1 - group["lambd"] * float(eta)
        value[...] = _plus(value, -float(eta), g)
        mean[...] = value if mu == 1 else mean + (value - mean) * value.dtype.type(mu)
        eta[...] = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
        mu[...] = 1 / max(1, step - group["t0"])


class Rprop(Optimizer):
    """Steps by the signs of gradients, longer while a sign stays, shorter where it has changed."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        options = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize}
        super().__init__(params, {**options, "differentiable": differentiable, "capturable": capturable})

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        new = not self.state[p]
        _, kept = self.remembered(p, "prev", "step_size")
        shorter, longer = group["etas"]
        for x, d, before, size in _reals(value, g, *kept):
            if new:
                size[...] = group["lr"]
            sign = np.sign(d * before)
            size *= np.where(sign > 0, longer, np.where(sign < 0, shorter, 1)).astype(size.dtype)
            np.clip(size, *group["step_sizes"], out=size)
            before[...] = np.where(sign < 0, 0, d)
            x -= np.subtract(before > 0, before < 0, dtype=size.dtype) * size  # nowhere where it is NaN
