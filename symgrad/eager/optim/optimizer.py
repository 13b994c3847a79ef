"""``Optimizer``: parameters in groups, what is remembered of each between steps, and hooks."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from symgrad.eager.core import RemovableHandle, Tensor, user_line, whole, wrap
from symgrad.eager.dtypes import float64, get_default_dtype
from symgrad.eager.modes import enable_grad


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A class's ``step``, with the hooks before and after it."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *given: Any, **kwargs: Any) -> Any:
        args = (self, *given)
        if type(self).step is not hooked:  # called by the step of a subclass, which has run them
            return step(*args, **kwargs)
        self.stepped = True
        for hook in self._hooked("before step"):
            new = hook(self, args, kwargs)
            if new is not None:
                if not (isinstance(new, tuple) and len(new) == 2):
                    raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {new}.")
                args, kwargs = new
        result = step(*args, **kwargs)
        for hook in self._hooked("after step"):
            hook(self, args, kwargs)
        return result

    return hooked


class Optimizer:
    """Parameters in groups with their options, and what is remembered of each between steps."""

    stepped = False  # whether a step has been made, which schedulers of learning rates ask for

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._hooks: dict[Any, Any] = {}
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got torch.FloatTensor"
            )
        if defaults.get("differentiable"):
            raise NotImplementedError(
                "optimisers move parameters in place, unrecorded: instead of differentiable=True, write the step as an "
                "expression, such as p - lr * g with g from autograd.grad(..., create_graph=True)"
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __init_subclass__(cls) -> None:
        if "step" in vars(cls):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_hooks": {}}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters, with options of their own. Parameters may be named, by pairs of a name and a tensor."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                "change between runs. Please use a list instead."
            )
        items = [params] if isinstance(params, Tensor) else list(params)
        named = [item for item in items if isinstance(item, tuple)]
        params = [item[1] if isinstance(item, tuple) else item for item in items]
        if named and len(named) < len(items):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if p.node is not None and not p.kept:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) < len(params):
            warnings.warn(_DUPLICATES, stacklevel=3)
        if any(bool(named) != ("param_names" in group) for group in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if named else 'without'} names to the optimizer"
            )
        if {id(p) for group in self.param_groups for p in group["params"]} & {id(p) for p in params}:
            raise ValueError("some parameters appear in more than one parameter group")
        names = {"param_names": [name for name, _ in named]} if named else {}
        rest = {name: value for name, value in self.defaults.items() if name not in param_group}
        self.param_groups.append({**param_group, "params": params, **names, **rest})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    p._grad.detach_().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the parameters. ``closure`` computes the loss anew, and its gradients."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        line = user_line()
        with np.errstate(all="ignore"):
            for group in self.param_groups:
                options = {**group, "lr": float(group["lr"])}
                for p in group["params"]:
                    if p._grad is not None:
                        g = np.asarray(p._grad.value)
                        self.move(p, whole(p), -g if group["maximize"] else g, options)
                        p.counter[0] += 1
                        p.counter[1:] = ("step", line)
        return loss

    step = _with_hooks(step)

    def move(self, p: Tensor, value: Any, g: Any, group: dict[str, Any]) -> None:
        """Move one parameter, in its own memory."""
        raise NotImplementedError

    def remembered(self, p: Tensor, *names: str, **starts: Any) -> tuple[float, list[Any]]:
        """The number of a parameter's step, and the arrays remembered of it: zeros at first, or what ``starts`` says."""
        state = self.state[p]
        if not state:
            state["step"] = counted(0)
            state.update({name: counted(start) for name, start in starts.items()})
            state.update({name: wrap(np.zeros_like(whole(p))) for name in names})
        state["step"].value += 1
        return float(state["step"].value), [state[name].value for name in (*names, *starts)]

    # ---- saving and loading ----

    def state_dict(self) -> dict[str, Any]:
        """The state and the options, with numbers in place of the parameters."""
        for hook in self._hooked("before saving"):
            hook(self)
        params: Iterable[Tensor] = (p for group in self.param_groups for p in group["params"])
        order: dict[Any, int] = {}
        for i, p in enumerate(params):
            order.setdefault(id(p), i)
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [order[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        state = {order[id(key)] if isinstance(key, Tensor) else key: values for key, values in self.state.items()}
        return self._passed("after saving", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        state_dict = self._passed("before loading", dict(state_dict))
        groups = copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        params: dict[Any, Tensor] = {}
        for group, saved in zip(self.param_groups, groups, strict=True):
            if len(saved["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
            params.update(zip(saved["params"], group["params"], strict=True))
        self.state = defaultdict(dict)
        for key, values in state_dict["state"].items():
            p = params.get(key)
            self.state[key if p is None else p] = values if p is None else _for(p, values)
        for group, saved in zip(self.param_groups, groups, strict=True):
            names = {"param_names": group["param_names"]} if "param_names" in group else {}
            new = {**names, **saved, "params": group["params"]}
            group.clear()
            group.update(new)
        for hook in self._hooked("after loading"):
            hook(self)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ---- hooks ----

    def register_step_pre_hook(self, hook: Any) -> RemovableHandle:
        """``hook(optimizer, args, kwargs)`` runs before each step; a pair that it returns replaces the arguments."""
        return RemovableHandle(self._hooks, "before step", hook)

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        """``hook(optimizer, args, kwargs)`` runs after each step."""
        return RemovableHandle(self._hooks, "after step", hook)

    def register_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer)`` runs before ``state_dict``."""
        return self._hook("before saving", hook, prepend)

    def register_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer, state_dict)`` runs after ``state_dict``; what it returns replaces the result."""
        return self._hook("after saving", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer, state_dict)`` runs before ``load_state_dict``; what it returns is loaded."""
        return self._hook("before loading", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer)`` runs after ``load_state_dict``."""
        return self._hook("after loading", hook, prepend)

    def _hook(self, kind: str, hook: Any, prepend: bool) -> RemovableHandle:
        others = dict(self._hooks)
        if prepend:
            self._hooks.clear()
        handle = RemovableHandle(self._hooks, kind, hook)
        self._hooks.update(others)
        return handle

    def _hooked(self, kind: str) -> list[Any]:
        return [hook for (of, _), hook in self._hooks.items() if of == kind]

    def _passed(self, kind: str, state_dict: dict[str, Any]) -> dict[str, Any]:
        """What hooks that may replace it have made of a state."""
        for hook in self._hooked(kind):
            new = hook(self, state_dict)
            state_dict = state_dict if new is None else new
        return state_dict


def counted(value: float) -> Tensor:
    """A number in the state of a parameter."""
    return wrap(np.array(value, np.float64 if get_default_dtype() is float64 else np.float32))


def _for(p: Tensor, value: Any, key: Any = None) -> Any:
    """Saved state of a parameter, in its dtype; tensors that have it are shared, as in torch."""
    if isinstance(value, Tensor):
        return value.to(p.dtype) if key != "step" and p.dtype.is_floating_point else value
    if isinstance(value, dict):
        return {name: _for(p, part, name) for name, part in value.items()}
    return type(value)(_for(p, part) for part in value) if isinstance(value, (list, tuple)) else value


_DUPLICATES = (
    "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
    "github.com/pytorch/pytorch/issues/40967 for more information"
)
