"""``SGD``, ``Adam``, ``AdamW`` and ``RMSprop``: steps along gradients that ``backward`` has left in ``.grad``."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from symgrad.eager.core import Tensor, user_line, whole, wrap
from symgrad.eager.modes import enable_grad


class Optimizer:
    """Parameters in groups with their options, and what is remembered of each between steps."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got torch.FloatTensor"
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters, with options of their own."""
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if p.node is not None:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) < len(params):
            warnings.warn(_DUPLICATES, stacklevel=3)
        if {id(p) for group in self.param_groups for p in group["params"]} & {id(p) for p in params}:
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(
            {**param_group, "params": params, **{k: v for k, v in self.defaults.items() if k not in param_group}}
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    p._grad = wrap(np.zeros_like(p.value))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the parameters. ``closure`` computes the loss anew, and its gradients."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        line = user_line()
        with np.errstate(all="ignore"):
            for group in self.param_groups:
                for p in group["params"]:
                    if p._grad is not None:
                        g = np.asarray(p._grad.value)
                        self.move(p, whole(p), -g if group["maximize"] else g, group)
                        p.counter[0] += 1
                        p.counter[1:] = ("step", line)
        return loss

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        """Move one parameter, in its own memory."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The state and the options, with numbers in place of the parameters."""
        order = self._order()
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [order[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        return {"state": {order[id(p)]: dict(values) for p, values in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        if len(state_dict["param_groups"]) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        params = [p for group in self.param_groups for p in group["params"]]
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            if len(saved["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
            group.update({k: v for k, v in saved.items() if k != "params"})
        self.state.clear()
        for i, values in state_dict["state"].items():
            self.state[params[i]] = dict(values)  # whose tensors are shared, as in torch

    def _order(self) -> dict[int, int]:
        params: Iterable[Tensor] = (p for group in self.param_groups for p in group["params"])
        return {id(p): i for i, p in enumerate(params)}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


_DUPLICATES = (
    "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
    "github.com/pytorch/pytorch/issues/40967 for more information"
)


def check(**options: float) -> None:
    """Raise for an option below zero."""
    titles = {
        "lr": "learning rate",
        "weight_decay": "weight_decay value",
        "momentum": "momentum value",
        "eps": "epsilon value",
        "alpha": "alpha value",
    }
    for name, value in options.items():
        if value < 0:
            raise ValueError(f"Invalid {titles[name]}: {value}")


def _plus(x: Any, factor: Any, y: Any, z: Any = None) -> Any:
    """``x + factor * y`` (times ``z``), rounded once in float32, as by the fused multiply-add that torch uses."""
    if x.dtype != np.float32:
        return x + factor * (y if z is None else y * z)
    product = np.float32(factor) * y.astype(np.float64)
    return (x + (product if z is None else product * z)).astype(np.float32)


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
        if group["weight_decay"]:
            g = _plus(g, group["weight_decay"], value)
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
        betas: tuple[float, float] = (0.9, 0.999),
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
        check(lr=lr, eps=eps, weight_decay=weight_decay)
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
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
        state = self.state[p]
        if not state:
            state["step"] = wrap(np.array(0, np.float32))
            state["exp_avg"], state["exp_avg_sq"] = wrap(np.zeros_like(value)), wrap(np.zeros_like(value))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = wrap(np.zeros_like(value))
        beta1, beta2 = group["betas"]
        state["step"].value += 1
        step, first, second = float(state["step"].value), state["exp_avg"].value, state["exp_avg_sq"].value
        if group["weight_decay"]:
            if group["decoupled_weight_decay"]:
                value *= 1 - group["lr"] * group["weight_decay"]
            else:
                g = _plus(g, group["weight_decay"], value)
        first[...] = _plus(first, 1 - beta1, g - first)
        second[...] = _plus(second * beta2, 1, value.dtype.type(1 - beta2) * g, g)
        if group["amsgrad"]:
            np.maximum(state["max_exp_avg_sq"].value, second, out=state["max_exp_avg_sq"].value)
            second = state["max_exp_avg_sq"].value
        scale = np.sqrt(second) / math.sqrt(1 - beta2**step) + group["eps"]
        value -= group["lr"] / (1 - beta1**step) * first / scale


class AdamW(Adam):
    """``Adam``, whose weight decay acts on the parameters themselves."""

    decoupled = True

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
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
        state, alpha = self.state[p], group["alpha"]
        if not state:
            state["step"] = wrap(np.array(0, np.float32))
            kept = ["square_avg", *["momentum_buffer"] * (group["momentum"] > 0), *["grad_avg"] * group["centered"]]
            state.update({name: wrap(np.zeros_like(value)) for name in kept})
        state["step"].value += 1
        if group["weight_decay"]:
            g = _plus(g, group["weight_decay"], value)
        square = state["square_avg"].value
        square[...] = _plus(square * alpha, 1, value.dtype.type(1 - alpha) * g, g)
        if group["centered"]:
            mean = state["grad_avg"].value
            mean[...] = _plus(mean, 1 - alpha, g - mean)
            square = _plus(square, -1, mean, mean)
        step = g / (np.sqrt(square) + group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].value
            buffer[...] = buffer * group["momentum"] + step
            step = buffer
        value -= group["lr"] * step
