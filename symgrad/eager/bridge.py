"""Tensors in the functions that ``symgrad.grad`` and its kin make, and back.

A derivative that is called with tensors hands tensors to the user's function, traced ones, and returns tensors. It is a
recorded operation like any other: ``backward`` goes through it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from symgrad import pytree
from symgrad.api import Derivative, vjp
from symgrad.compile import FOREIGN
from symgrad.eager.autograd.function import Function
from symgrad.eager.core import Tensor, tracing, wrap
from symgrad.eager.modes import mode
from symgrad.trace import Tracer


def _to_tensor(leaf: Any) -> Any:
    return wrap(leaf) if type(leaf) is Tracer or isinstance(leaf, (np.ndarray, np.generic)) else leaf


def _to_value(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Tensor) else leaf


def on_tensors(fun: Any) -> Any:
    """``fun``, which is to see tensors, as a function of what lies within them."""

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        recording, mode.grad = mode.grad, False
        tracing.depth += 1
        try:
            out = fun(*pytree.map_tree(_to_tensor, args), **pytree.map_tree(_to_tensor, kwargs))
        finally:
            tracing.depth -= 1
            mode.grad = recording
        return pytree.map_tree(_to_value, out)

    return wrapped


class _Derived(Function):
    """A function of arrays as an operation on tensors; its gradient is one too."""

    @staticmethod
    def forward(ctx: Any, run: Any, *tensors: Any) -> Any:
        ctx.run = run
        ctx.save_for_backward(*tensors)
        return tuple(_to_tensor(np.asarray(out)) for out in run(*[x.value for x in tensors]))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        xs, run = ctx.saved_tensors, ctx.run

        def pulled(*args: Any) -> Any:
            return vjp(run, *args[: len(xs)])[1](args[len(xs) :])

        return (None, *_Derived.apply(pulled, *xs, *grads))


def through(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function that is made of others: run on arrays, and differentiated by tracing it."""
    leaves, tree = pytree.flatten((args, kwargs))
    values = [_to_value(leaf) for leaf in leaves]
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.value.dtype.kind in "fc"]
    form: list[Any] = []

    def run(*given: Any) -> Any:
        for i, value in zip(places, given, strict=True):
            values[i] = value
        positional, named = tree.unflatten(values)
        found, shape = pytree.flatten(func(*positional, **named))
        moving = [i for i, out in enumerate(found) if hasattr(out, "dtype") and out.dtype.kind in "fc"]
        form[:] = [shape, found, moving]
        return tuple(found[i] for i in moving)

    if any(type(leaves[i].value) is Tracer for i in places):
        outs = run(*[leaves[i].value for i in places])
    else:
        with np.errstate(all="ignore"):
            outs = _Derived.apply(run, *[leaves[i] for i in places])
    shape, found, moving = form
    for out in outs:
        if isinstance(out, Tensor) and out.grad_fn is not None:
            out.grad_fn.label = f"{func.__name__.title().replace('_', '')}Backward0"
    for i, out in zip(moving, outs, strict=True):
        found[i] = out
    return shape.unflatten([_to_tensor(out) for out in found])


def bridge(derivative: Derivative, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a derivative with tensors among its arguments."""
    inner = derivative.__dict__.get("_on_tensors")
    if inner is None:  # traced anew at every call, as eager code is run anew
        options = {**derivative._options, "mode": "dynamic"}
        inner = derivative.__dict__["_on_tensors"] = Derivative(derivative._kind, on_tensors(derivative._fun), options)
    leaves, tree = pytree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    values = [_to_value(leaf) for leaf in leaves]
    form: list[Any] = []

    def run(*given: Any) -> Any:
        for i, value in zip(places, given, strict=True):
            values[i] = value
        positional, named = tree.unflatten(values)
        found, shape = pytree.flatten(inner(*positional, **named))
        form[:] = [shape]
        return tuple(found)

    if any(isinstance(leaves[i].value, Tracer) for i in places):  # within another derivative
        return form_of(form, [_to_tensor(out) for out in run(*[leaves[i].value for i in places])])
    return form_of(form, list(_Derived.apply(run, *[leaves[i] for i in places])))


def form_of(form: list[Any], leaves: list[Any]) -> Any:
    """The leaves as the tree that the function returned."""
    return form[0].unflatten(leaves)


FOREIGN[Tensor] = bridge
