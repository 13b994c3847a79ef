"""``LBFGS``: steps along gradients turned by what the last few say about the curvature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symgrad.eager.core import Tensor, plain, user_line, whole, wrap
from symgrad.eager.modes import enable_grad
from symgrad.eager.optim.optimizer import Optimizer
from symgrad.eager.optim.optimizers import check


class Point(NamedTuple):
    """A place on a line: how far along, the loss there, its gradient, and its slope along the line."""

    t: float
    loss: float
    grad: Any
    slope: float


class LBFGS(Optimizer):
    """The method of Broyden, Fletcher, Goldfarb and Shanno with limited memory; its closure may be called many times a step."""

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check(lr=lr)
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to ``max_iter`` steps. ``closure`` computes the loss anew, and its gradients."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        group, state, line = self.param_groups[0], self.state[self._params[0]], user_line()
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        evaluations, found = 0, None

        def evaluate() -> tuple[float, Any]:
            nonlocal evaluations, found
            evaluations += 1
            with enable_grad():
                found = closure()
            return float(plain(found)), self._gathered(
                [np.zeros_like(p.value) if p._grad is None else p._grad.value for p in self._params]
            )

        loss, grad = evaluate()
        first, flat = found, np.abs(grad).max() <= group["tolerance_grad"]
        state.setdefault("n_iter", 0)
        for i in range(1, 0 if flat else group["max_iter"] + 1):
            direction = self._direction(state, grad, group["history_size"])
            alone = min(1.0, 1.0 / float(np.abs(grad).sum())) if state["n_iter"] == 1 else 1.0
            t, before, slope = alone * group["lr"], loss, float(grad @ direction)
            state["prev_flat_grad"], state["prev_loss"], state["d"], state["t"] = wrap(grad), loss, wrap(direction), t
            if slope > -group["tolerance_change"]:
                break
            start = self._gathered([p.value for p in self._params])

            def at(t: float, start: Any = start, direction: Any = direction) -> Point:
                self._move_to(start + t * direction, line)
                loss, grad = evaluate()
                return Point(t, loss, grad, float(grad @ direction))

            if group["line_search_fn"]:
                reach = float(np.abs(direction).max())
                t, loss, grad, _ = strong_wolfe(at, Point(0.0, loss, grad, slope), t, group["tolerance_change"] / reach)
                self._move_to(start + t * direction, line)
                state["t"] = t
            elif i < group["max_iter"]:
                t, loss, grad, _ = at(t)
            else:
                self._move_to(start + t * direction, line)
            if evaluations >= group["max_eval"] or np.abs(grad).max() <= group["tolerance_grad"]:
                break
            if np.abs(direction * t).max() <= group["tolerance_change"] or abs(loss - before) < group["tolerance_change"]:
                break
        state["func_evals"] = state.get("func_evals", 0) + evaluations
        return first

    def _direction(self, state: dict[str, Any], grad: Any, size: int) -> Any:
        """Minus the gradient times what is known of the inverse of the Hessian, to which the last step adds."""
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -grad
        y, s = grad - state["prev_flat_grad"].value, state["d"].value * state["t"]
        if (curvature := float(y @ s)) > 1e-10:
            for name, value in (("old_dirs", wrap(y)), ("old_stps", wrap(s)), ("ro", 1.0 / curvature)):
                state[name] = [*state[name], value][-size:]
            state["H_diag"] = curvature / float(y @ y)
        pairs = [(y.value, s.value, ro) for y, s, ro in zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True)]
        q, weights = -grad, []
        for y, s, ro in reversed(pairs):
            weights.append(float(s @ q) * ro)
            q = q - weights[-1] * y
        q = q * state["H_diag"]
        for (y, s, ro), weight in zip(pairs, reversed(weights), strict=True):
            q = q + (weight - float(y @ q) * ro) * s
        return q

    @staticmethod
    def _gathered(values: list[Any]) -> Any:
        """All numbers in one vector; complex ones as their real and imaginary parts."""
        return np.concatenate([np.ravel(value).view(value.real.dtype) for value in values])

    def _move_to(self, flat: Any, line: Any) -> None:
        place = 0
        for p in self._params:
            value = whole(p)
            count = value.size * (1 + (value.dtype.kind == "c"))
            value[...] = flat[place : place + count].view(value.dtype).reshape(value.shape)
            place += count
            p.counter[0] += 1
            p.counter[1:] = ("step", line)


def strong_wolfe(at: Callable[[float], Point], start: Point, t: float, least: float) -> Point:
    """A point where the loss has fallen enough, and its slope too: one is bracketed, and the bracket made smaller.

    ``least``: the length of a bracket that is not worth it.
    """
    enough, flat, most = 1e-4, 0.9, 25

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + enough * point.t * start.slope

    def settled(point: Point) -> bool:
        return abs(point.slope) <= -flat * start.slope

    before, here, count = start, at(t), 0
    while count < most and not too_high(here) and not (count > 1 and here.loss >= before.loss):
        if settled(here):
            return here
        if here.slope >= 0:
            break
        further = _minimum_of_cubic(before, here, here.t + 0.01 * (here.t - before.t), here.t * 10)
        before, here = here, at(further)
        count += 1
    low, high = sorted((start if count == most else before, here), key=lambda point: point.loss)
    stuck = False
    while count < most and abs(high.t - low.t) >= least:
        first, last = (low, high) if low.t < high.t else (high, low)
        left, right, margin = first.t, last.t, 0.1 * (last.t - first.t)
        t = _minimum_of_cubic(first, last, left, right)
        close = min(right - t, t - left) < margin
        if close and (stuck or not left < t < right):
            t, close = (right - margin if abs(t - right) < abs(t - left) else left + margin), False
        stuck, new = close, at(t)
        count += 1
        if too_high(new) or new.loss >= low.loss:
            low, high = sorted((low, new), key=lambda point: point.loss)
            continue
        if settled(new):
            return new
        low, high = new, low if new.slope * (high.t - low.t) >= 0 else high
    return low


def _minimum_of_cubic(a: Point, b: Point, least: float, most: float) -> float:
    """Where the cubic with these values and slopes has its minimum, within bounds; their middle where it has none."""
    d = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d * d - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2
    root = math.sqrt(square)
    top, span = b.slope + root - d, b.slope - a.slope + 2 * root
    if not span:  # a line, on which it lies beyond one of the bounds
        return least if top > 0 else most if top < 0 else (least + most) / 2
    return min(max(b.t - (b.t - a.t) * (top / span), least), most)
