"""Tensors through ``symgrad.grad`` and its kin: a function of tensors as one of arrays, and back.

A derivative that is called with tensors hands tensors to the function, is compiled as ever, and gives tensors back. Where an
argument requires grad, the call is recorded as one operation, whose backward is a compiled pullback of the derivative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad import api, pytree
from symgrad.api import Derivative
from symgrad.eager.autograd.function import Function
from symgrad.eager.core import OUTSIDE, Tensor, constant, look, wrap
from symgrad.eager.dtypes import default
from symgrad.eager.modes import following, mode
from symgrad.errors import NotDifferentiable
from symgrad.ir import is_inexact_leaf
from symgrad.signature import FOREIGN, Bridge
from symgrad.tracing.trace import active_trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform import calculus


def _to_tensor(leaf: Any) -> Any:
    if type(leaf) is Tracer:
        return constant(leaf) if mode.constant else wrap(leaf)
    return wrap(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf


def _to_argument(leaf: Any) -> Any:
    """As ``_to_tensor``, but for Python's numbers, which stay what they are."""
    if type(leaf) is Tracer and not isinstance(leaf.like, (np.ndarray, np.generic)):
        return leaf
    return _to_tensor(leaf)


def _to_value(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    if leaf.needs and mode.recording and not mode.constant:
        raise NotDifferentiable(OUTSIDE)
    return leaf.value


def on_tensors(fun: Any, recording: bool) -> Any:
    """``fun``, which is to see tensors, as a function of what lies within them. ``recording``: whether calls are recorded."""

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        trace = active_trace()
        assert trace is not None
        with following(recording):
            out = calculus.run(trace, fun, pytree.map_tree(_to_argument, args), pytree.map_tree(_to_argument, kwargs))
        return pytree.map_tree(_to_value, out)

    wrapped.in_trace = True  # type: ignore[attr-defined]  # it runs nowhere else
    return wrapped


# -- one operation on tensors --------------------------------------------------------------------------------------


class Step:
    """A function of arrays, to be run on tensors; ``pullback(places)`` is the step that its backward takes.

    ``run(*leaves)`` takes leaves of any kind and returns a tree. ``compiled``: whether the pullbacks are.
    """

    def __init__(self, run: Callable[..., Any], compiled: bool = True) -> None:
        self.run, self.compiled = run, compiled
        self._pullbacks: dict[tuple[int, ...], Step] = {}

    def pullback(self, places: tuple[int, ...]) -> Step:
        """From all leaves and the cotangents of the results to the cotangents of the leaves at ``places``."""
        step = self._pullbacks.get(places)
        if step is None:

            def pulled(count: int, *flat: Any) -> Any:
                leaves = list(flat[:count])

                def moving(*given: Any) -> Any:
                    for place, value in zip(places, given, strict=True):
                        leaves[place] = value
                    return tuple([part for part in pytree.flatten(self.run(*leaves))[0] if is_inexact_leaf(part)])

                return api.vjp(moving, *[leaves[place] for place in places])[1](tuple(flat[count:]))

            step = Step(Derivative("function", pulled, {}) if self.compiled else pulled, self.compiled)
            self._pullbacks[places] = step
        return step

    def __call__(self, *leaves: Any) -> Any:
        """Run it on tensors (among other leaves); what comes back holds tensors, recorded where that is wanted."""
        form: list[Any] = []
        outs = Derived.apply(self, form, *leaves)
        tree, found, moving = form
        for place, out in zip(moving, outs, strict=True):
            found[place] = out
            for leaf in leaves:
                if isinstance(leaf, Tensor) and np.may_share_memory(leaf.value, out.value):
                    look((out,), leaf)
                    break
        return tree.unflatten([_to_tensor(out) for out in found])


class Derived(Function):
    """A step as an operation that ``backward`` goes through."""

    @staticmethod
    def forward(ctx: Any, step: Step, form: list[Any], *leaves: Any) -> Any:
        ctx.step, ctx.leaves = step, [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        ctx.save_for_backward(*[leaf for leaf in leaves if isinstance(leaf, Tensor)])
        found, tree = pytree.flatten(step.run(*map(_to_value, leaves)))
        moving = [i for i, out in enumerate(found) if is_inexact_leaf(out)]
        form[:] = tree, found, moving
        return tuple([wrap(np.asarray(found[i])) for i in moving])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        tensors = iter(ctx.saved_tensors)
        leaves = [next(tensors) if leaf is None else leaf for leaf in ctx.leaves]
        places = tuple([i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.value.dtype.kind in "fc"])
        parts = ctx.step.pullback(places)(len(leaves), *leaves, *grads)
        found: list[Any] = [None] * len(leaves)
        for place, part in zip(places, parts, strict=True):
            found[place] = part
        return (None, None, *found)


# -- the ways through ----------------------------------------------------------------------------------------------


def through(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function that is made of others: run on arrays, and differentiated by tracing it."""
    leaves, tree = pytree.flatten((args, kwargs))

    def run(*given: Any) -> Any:
        positional, named = tree.unflatten(given)
        return func(*positional, **named)

    if any(isinstance(leaf, Tensor) and type(leaf.value) is Tracer for leaf in leaves):
        return pytree.map_tree(_to_tensor, run(*map(_to_value, leaves)))
    with np.errstate(all="ignore"):
        result = Step(run, compiled=False)(*leaves)
    for out in pytree.flatten(result)[0]:
        if isinstance(out, Tensor) and out.grad_fn is not None:
            out.grad_fn.label = f"{func.__name__.title().replace('_', '')}Backward0"
    return result


def _recording() -> bool:
    """Whether calls are recorded here."""
    return mode.recording if mode.tracing else mode.grad


def _inner(derivative: Derivative[..., Any]) -> Derivative[..., Any]:
    """The derivative of arrays behind one of tensors. Another default dtype may make another function of it."""
    recording = _recording()
    return derivative.stand_in((Tensor, default.real, recording), lambda fun: on_tensors(fun, recording))


def call(derivative: Derivative[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a derivative with tensors among its arguments."""
    inner = _inner(derivative)
    leaves, tree = pytree.flatten((args, kwargs))
    if active_trace() is not None:  # within another derivative
        positional, named = tree.unflatten([_to_value(leaf) for leaf in leaves])
        return pytree.map_tree(_to_tensor, inner(*positional, **named))
    steps: dict[Any, Step] = inner.__dict__.setdefault("_steps", {})
    step = steps.get(tree)
    if step is None:

        def run(*given: Any) -> Any:
            positional, named = tree.unflatten(given)
            return inner(*positional, **named)

        step = steps[tree] = Step(run)
    return step(*leaves)


def plain(derivative: Derivative[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The derivative, and its arguments, that a call with tensors comes down to."""
    return _inner(derivative), pytree.map_tree(_to_value, args), pytree.map_tree(_to_value, kwargs)


def vjp(fun: Any, primals: tuple[Any, ...], has_aux: bool) -> Any:
    """``symgrad.vjp`` of a function of tensors."""
    if active_trace() is not None:  # within another derivative
        out, inner, *rest = api.vjp(on_tensors(fun, _recording()), *pytree.map_tree(_to_value, primals), has_aux=has_aux)
        pulled = lambda cotangent: pytree.map_tree(_to_tensor, inner(pytree.map_tree(_to_value, cotangent)))
        return (pytree.map_tree(_to_tensor, out), pulled, *pytree.map_tree(_to_tensor, rest))
    leaves, tree = pytree.flatten(primals)
    values: Derivative[..., Any] = Derivative("function", on_tensors(fun, mode.grad), {})
    step = Step(lambda *given: values(*tree.unflatten(given)))
    result = step(*leaves)
    out, aux = result if has_aux else (result, None)
    places = tuple([i for i, leaf in enumerate(leaves) if is_inexact_leaf(_to_value(leaf))])

    def pullback(cotangent: Any) -> Any:
        given = [*pytree.flatten(cotangent)[0], *[x * 0 for x in pytree.flatten(aux)[0] if is_inexact_leaf(_to_value(x))]]
        parts = dict(zip(places, step.pullback(places)(len(leaves), *leaves, *given), strict=True))
        return tree.unflatten([parts.get(i) for i in range(len(leaves))])

    return (out, pullback, aux) if has_aux else (out, pullback)


def jvp(fun: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...], has_aux: bool) -> Any:
    """``symgrad.jvp`` of a function of tensors."""
    leaves, tree = pytree.flatten((primals, tangents))
    if active_trace() is not None:
        both = pytree.map_tree(_to_value, (primals, tangents))
        return pytree.map_tree(_to_tensor, api.jvp(on_tensors(fun, _recording()), *both, has_aux=has_aux))
    inner = on_tensors(fun, mode.grad)
    values: Derivative[..., Any] = Derivative("function", lambda xs, ts: api.jvp(inner, xs, ts, has_aux=has_aux), {})
    return Step(lambda *given: values(*tree.unflatten(given)))(*leaves)


FOREIGN[Tensor] = Bridge(call, plain, vjp, jvp)
