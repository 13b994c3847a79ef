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


def _checked(given: Any, what: str, name: str) -> tuple[Any, ...]:
    """A tensor, or several, as a tuple."""
    parts = given if isinstance(given, tuple) else (given,)
    for i, part in enumerate(parts):
        if not isinstance(part, Tensor):
            place = f"the value at index {i}" if isinstance(given, tuple) else f"the given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but {place} has type {type(part)}."
            )
    return parts


_OUTPUTS = "outputs of the user-provided function"


def _vectors(v: Any, like: tuple[Any, ...], single: bool, name: str) -> list[Any]:
    """The vector ``v`` of a product, checked against what it goes with; ones where there is but one number."""
    if v is None:
        if len(like) != 1 or like[0].value.size != 1:
            what = "user-provided function returns" if name == "vjp" else "input to the user-provided function is"
            raise RuntimeError(f"The vector v can only be None if the {what} a single Tensor with a single element.")
        return [wrap(np.ones_like(x.value)) for x in like]
    vectors = _checked(v, "v", name)
    if len(vectors) != len(like):
        if single:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for i, (vector, x) in enumerate(zip(vectors, like, strict=True)):
        if vector.value.shape != x.value.shape:
            entry = f"Entry {i} in " if len(like) > 1 else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {x.shape} but got {vector.shape}.")
    return list(vectors)


def _depends(found: Any, which: str, at: str = "input") -> None:
    """For strict mode: every gradient must be there."""
    for i, g in enumerate(found):
        if g is None:
            raise RuntimeError(f"{which} is independent of {at} {i}. This is not allowed in strict mode.")


def _vary(found: Any, what: str) -> None:
    """For strict mode, where gradients may be differentiated in turn: each must be fit for that."""
    for i, g in enumerate(found):
        if g is not None and not g.requires_grad:
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode "
                "when create_graph=True."
            )


def _all_tracked(outs: Any) -> None:
    for i, out in enumerate(outs):
        if not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                "differentiable manner from the input when running in strict mode."
            )


def _twice(first: Any, ins: Any) -> None:
    """For strict mode: each gradient must depend on the inputs in turn, on one of them at least."""
    for i, g in enumerate(first):
        if not g.requires_grad or set(grad(g.sum(), ins, retain_graph=True, allow_unused=True)) == {None}:
            raise RuntimeError(
                f"While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} "
                "is independent of the input. This is not allowed in strict mode. You should ensure that your function is "
                "twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function "
                "for example)."
            )


def _fresh(inputs: Any, create: bool) -> tuple[Any, ...]:
    """The inputs as views that require grad, so that those given are left alone."""
    return tuple(x.view_as(x) if create and x.requires_grad else x.detach().clone().requires_grad_() for x in _tuple(inputs))


def _zeros(x: Tensor) -> Tensor:
    return wrap(np.zeros(x.value.shape, x.value.dtype))


def _settled(parts: Any, create: bool) -> tuple[Any, ...]:
    return tuple(x if create else x.detach() for x in parts)


def _grads(outs: Any, ins: Any, cotangents: Any, create: bool, strict: str = "") -> tuple[Any, ...]:
    """The gradients, zeros where there is none. ``strict``: what must not be independent of an input, if anything."""
    used = [(o, c) for o, c in zip(outs, cotangents, strict=True) if o.requires_grad]
    if not used:
        _depends([None] if strict else [], strict)
        return tuple(_zeros(x) for x in ins)
    outs, cotangents = zip(*used, strict=True)
    found = grad(outs, ins, cotangents, retain_graph=True, create_graph=create, allow_unused=True)
    _depends(found if strict else [], strict)
    return tuple(_zeros(x) if g is None else g for g, x in zip(found, ins, strict=True))


def vjp(func: Fun, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and ``v`` times the Jacobian."""
    with enable_grad():
        ins = _fresh(_checked(inputs, "inputs", "vjp"), create_graph)
        outs = func(*ins)
        flat = _checked(outs, _OUTPUTS, "vjp")
        if strict:
            _all_tracked(flat)
        cotangents = _vectors(v, flat, not isinstance(outs, (tuple, list)), "vjp")
        found = _grads(flat, ins, cotangents, create_graph, (strict and "The output of the user-provided function") or "")
        _vary(found if strict and create_graph else [], "jacobian")
    return _like(_settled(flat, create_graph), outs), _like(_settled(found, create_graph), inputs)


def jvp(func: Fun, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and the Jacobian times ``v``."""
    with enable_grad():
        ins = _fresh(_checked(inputs, "inputs", "jvp"), create_graph)
        tangents = _vectors(v, ins, not isinstance(inputs, (tuple, list)), "jvp")
        outs = func(*ins)
        flat = _checked(outs, _OUTPUTS, "jvp")
        if strict:
            _all_tracked(flat)
        seeds = [_zeros(o).requires_grad_() for o in flat]
        pulled = _grads(flat, ins, seeds, True, (strict and "The output of the user-provided function") or "")
        kept = [(p, t) for p, t in zip(pulled, tangents, strict=True) if p.requires_grad]
        if kept:
            ps, ts = zip(*kept, strict=True)
            found = grad(ps, seeds, ts, create_graph=create_graph, allow_unused=True)
        else:
            found = (None,) * len(seeds)
        _vary(found if strict and create_graph else [], "jacobian")
        pushed = tuple(_zeros(o) if g is None else g for g, o in zip(found, flat, strict=True))
    return _like(_settled(flat, create_graph), outs), _like(_settled(pushed, create_graph), outs)


def _jacobian_rows(out: Tensor, ins: Any, create: bool, strict: str) -> tuple[Any, ...]:
    rows = []
    for i in range(out.value.size):
        seed = np.zeros(out.value.size, out.value.dtype)
        seed[i] = 1
        rows.append(_grads((out,), ins, (wrap(seed.reshape(out.value.shape)),), create, strict))
        _vary(rows[-1] if strict and create else [], "jacobian")
    columns = zip(*rows, strict=True) if rows else [()] * len(ins)
    return tuple(
        stack(column).reshape((*out.value.shape, *x.value.shape))
        if column
        else wrap(np.zeros((*out.value.shape, *x.value.shape), x.value.dtype))
        for column, x in zip(columns, ins, strict=True)
    )


_STRATEGIES = ("forward-mode", "reverse-mode")


def _vectorized(strategy: str, vectorize: bool, strict: bool) -> None:
    """Forward mode is there with ``vectorize`` only, and that without ``strict``, as in torch; the results are the same."""
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either "
            "set `strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
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
    if strategy not in _STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
            'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    _vectorized(strategy, vectorize, strict)
    with enable_grad():
        ins = _fresh(_checked(inputs, "inputs", "jacobian"), create_graph)
        outs = func(*ins)
        flat = _checked(outs, _OUTPUTS, "jacobian")
        for out in flat:
            if out.value.dtype.kind == "c" and not vectorize:
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
        if strict:
            _all_tracked(flat)
        which = [f"Output {i} of the user-provided function" if strict else "" for i in range(len(flat))]
        rows = tuple(
            _settled(_jacobian_rows(out, ins, create_graph, name), create_graph) for out, name in zip(flat, which, strict=True)
        )
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
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    _vectorized(outer_jacobian_strategy, vectorize, strict)

    def gradient(*ins: Any) -> Any:
        out = _scalar(func(*ins), "hessian")
        first = _grads((out,), ins, (wrap(np.ones_like(out.value)),), True)
        if strict:
            _twice(first, ins)
        return first

    rows = jacobian(gradient, _checked(inputs, "inputs", "hessian"), create_graph, strict)
    return rows if isinstance(inputs, (tuple, list)) else rows[0][0]


def _scalar(out: Any, name: str) -> Tensor:
    _checked(out, _OUTPUTS, name)
    if not isinstance(out, Tensor):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if out.value.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return out.reshape(()) if out.value.ndim else out


def vhp(func: Fun, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value, and ``v`` times the Hessian."""
    return _hessian_product(func, inputs, v, create_graph, strict, "vhp")


def _hessian_product(func: Fun, inputs: Any, v: Any, create_graph: bool, strict: bool, name: str) -> tuple[Any, Any]:
    with enable_grad():
        ins = _fresh(_checked(inputs, "inputs", name), create_graph)
        tangents = _vectors(v, ins, not isinstance(inputs, (tuple, list)), name)
        out = _scalar(func(*ins), name)
        first = _grads((out,), ins, (wrap(np.ones_like(out.value)),), True)
        if strict:
            _twice(first, ins)
        found = _grads(first, ins, tangents, create_graph)
        _vary(found if strict and create_graph else [], "hessian")
    return _settled((out,), create_graph)[0], _like(_settled(found, create_graph), inputs)


def hvp(func: Fun, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value, and the Hessian times ``v`` (which is the same: the Hessian is symmetric)."""
    return _hessian_product(func, inputs, v, create_graph, strict, "hvp")
