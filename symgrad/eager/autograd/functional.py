"""Derivatives of functions of tensors: ``jacobian``, ``hessian``, ``vjp``, ``jvp``, ``vhp``, ``hvp``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.eager.core import Tensor, wrap
from symgrad.eager.engine import grad
from symgrad.eager.modes import enable_grad
from symgrad.eager.shapes import stack

Fun = Callable[..., Any]


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _like(parts: tuple[Any, ...], x: Any) -> Any:
    return parts if isinstance(x, (tuple, list)) else parts[0]


def _fresh(inputs: Any, create: bool) -> tuple[Any, ...]:
    """The inputs as views that require grad, so that those given are left alone."""
    return tuple(x.view_as(x) if create and x.requires_grad else x.detach().clone().requires_grad_() for x in _tuple(inputs))


def _zeros(x: Tensor) -> Tensor:
    return wrap(np.zeros(x.value.shape, x.value.dtype))


def _settled(parts: Any, create: bool) -> tuple[Any, ...]:
    return tuple(x if create else x.detach() for x in parts)


def _grads(outs: Any, ins: Any, cotangents: Any, create: bool) -> tuple[Any, ...]:
    used = [(o, c) for o, c in zip(outs, cotangents, strict=True) if o.requires_grad]
    if not used:
        return tuple(_zeros(x) for x in ins)
    outs, cotangents = zip(*used, strict=True)
    found = grad(outs, ins, cotangents, retain_graph=True, create_graph=create, allow_unused=True)
    return tuple(_zeros(x) if g is None else g for g, x in zip(found, ins, strict=True))


def vjp(func: Fun, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and ``v`` times the Jacobian."""
    with enable_grad():
        ins = _fresh(inputs, create_graph)
        outs = func(*ins)
        flat = _tuple(outs)
        if v is None and (len(flat) != 1 or flat[0].value.size != 1):
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
            )
        cotangents = [wrap(np.ones_like(o.value)) for o in flat] if v is None else _tuple(v)
        found = _grads(flat, ins, cotangents, create_graph)
    return _like(_settled(flat, create_graph), outs), _like(_settled(found, create_graph), inputs)


def jvp(func: Fun, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and the Jacobian times ``v``."""
    with enable_grad():
        ins = _fresh(inputs, create_graph)
        if v is None and (len(ins) != 1 or ins[0].value.size != 1):
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a "
                "single Tensor with a single element."
            )
        tangents = [wrap(np.ones_like(x.value)) for x in ins] if v is None else _tuple(v)
        outs = func(*ins)
        flat = _tuple(outs)
        seeds = [_zeros(o).requires_grad_() for o in flat]
        pulled = _grads(flat, ins, seeds, True)
        kept = [(p, t) for p, t in zip(pulled, tangents, strict=True) if p.requires_grad]
        if kept:
            ps, ts = zip(*kept, strict=True)
            found = grad(ps, seeds, ts, create_graph=create_graph, allow_unused=True)
        else:
            found = (None,) * len(seeds)
        pushed = tuple(_zeros(o) if g is None else g for g, o in zip(found, flat, strict=True))
    return _like(_settled(flat, create_graph), outs), _like(_settled(pushed, create_graph), outs)


def _jacobian_rows(out: Tensor, ins: Any, create: bool) -> tuple[Any, ...]:
    rows = []
    for i in range(out.value.size):
        seed = np.zeros(out.value.size, out.value.dtype)
        seed[i] = 1
        rows.append(_grads((out,), ins, (wrap(seed.reshape(out.value.shape)),), create))
    columns = zip(*rows, strict=True) if rows else [()] * len(ins)
    return tuple(
        stack(column).reshape((*out.value.shape, *x.value.shape))
        if column
        else wrap(np.zeros((*out.value.shape, *x.value.shape), x.value.dtype))
        for column, x in zip(columns, ins, strict=True)
    )


def jacobian(
    func: Fun,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """All derivatives of all outputs: shaped as the output and then the input."""
    with enable_grad():
        ins = _fresh(inputs, create_graph)
        outs = func(*ins)
        rows = tuple(_settled(_jacobian_rows(out, ins, create_graph), create_graph) for out in _tuple(outs))
    if isinstance(outs, (tuple, list)):
        return tuple(_like(row, inputs) for row in rows)
    return _like(rows[0], inputs)


def hessian(
    func: Fun,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function with one number as its result."""

    def gradient(*ins: Any) -> Any:
        out = _scalar(func(*ins), "hessian")
        return _grads((out,), ins, (wrap(np.ones_like(out.value)),), True)

    rows = jacobian(gradient, _tuple(inputs), create_graph)
    return rows if isinstance(inputs, (tuple, list)) else rows[0][0]


def _scalar(out: Any, name: str) -> Tensor:
    if not isinstance(out, Tensor) or out.value.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return out.reshape(()) if out.value.ndim else out


def vhp(func: Fun, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value, and ``v`` times the Hessian."""
    with enable_grad():
        ins = _fresh(inputs, create_graph)
        out = _scalar(func(*ins), "vhp")
        first = _grads((out,), ins, (wrap(np.ones_like(out.value)),), True)
        tangents = [wrap(np.ones_like(x.value)) for x in ins] if v is None else _tuple(v)
        found = _grads(first, ins, tangents, create_graph)
    return _settled((out,), create_graph)[0], _like(_settled(found, create_graph), inputs)


def hvp(func: Fun, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value, and the Hessian times ``v`` (which is the same: the Hessian is symmetric)."""
    return vhp(func, inputs, v, create_graph, strict)
