"""``gradcheck`` and ``gradgradcheck``: the backward pass against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.eager.core import Tensor, wrap
from symgrad.eager.engine import grad
from symgrad.eager.modes import enable_grad, no_grad


class GradcheckError(RuntimeError):
    """A derivative that finite differences contradict."""


def _outs(fun: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    out = fun(*inputs)
    return tuple(o for o in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(o, Tensor))


def _numbers(x: Any) -> Any:
    """The elements in one dimension, complex ones as two numbers each."""
    flat = np.array(x).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _tensor(numbers: Any, like: Any) -> Tensor:
    """The inverse of ``_numbers``."""
    return wrap(np.asarray(numbers, like.real.dtype).view(like.dtype).reshape(like.shape))


def numeric_jacobian(fun: Callable[..., Any], inputs: tuple[Any, ...], which: int, number: int, eps: float) -> Any:
    """Central differences of one output by one input, (numbers of the input, numbers of the output)."""
    flat = _numbers(inputs[which].value)
    rows = []
    with no_grad():
        for i in range(flat.size):
            ends = []
            for sign in (1, -1):
                moved = flat.copy()
                moved[i] += sign * eps
                args = list(inputs)
                args[which] = _tensor(moved, inputs[which].value)
                ends.append(_numbers(_outs(fun, tuple(args))[number].value))
            rows.append((ends[0] - ends[1]) / (2 * eps))
    return np.array(rows)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """Whether the gradients of all inputs that require grad agree with finite differences. Use float64."""
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        _check(func, given, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Callable[..., Any], inputs: tuple[Any, ...], eps: float, atol: float, rtol: float) -> None:
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i in wanted:
        if inputs[i].value.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely "
                "fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
    outs = _outs(func, inputs)
    if not any([out.requires_grad for out in outs]):
        for j in wanted:
            if any([np.any(numeric_jacobian(func, inputs, j, number, eps)) for number in range(len(outs))]):
                raise GradcheckError("Numerical gradient for function expected to be zero")
    for number, out in enumerate(outs):
        if not out.requires_grad:
            continue
        rows: list[list[Any]] = []
        for seed in np.eye(_numbers(out.value).size):
            given = [inputs[j] for j in wanted]
            found = grad(out, given, _tensor(seed, out.value), retain_graph=True, allow_unused=True)
            rows.append([_numbers(np.zeros_like(x.value) if g is None else g.value) for x, g in zip(given, found, strict=True)])
        for place, j in enumerate(wanted):
            numeric = numeric_jacobian(func, inputs, j, number, eps)
            analytic = np.array([row[place] for row in rows]).T.reshape(numeric.shape)
            if not np.allclose(analytic, numeric, rtol, atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {number} with respect to input {j},\n"
                    f"numerical:{wrap(numeric)}\nanalytical:{wrap(analytic)}\n"
                )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """As ``gradcheck``, of the gradients themselves."""
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outs = _outs(func, given)
    generator = np.random.default_rng(0)
    if grad_outputs is None:
        drawn = [generator.standard_normal(_numbers(o.value).size) for o in outs]
        seeds = tuple(_tensor(numbers, o.value).requires_grad_() for numbers, o in zip(drawn, outs, strict=True))
    else:
        seeds = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    count = len(given)

    def first(*args: Any) -> Any:
        with enable_grad():
            ins = tuple(
                x if not isinstance(x, Tensor) or x.needs or not given[i].needs else x.detach().requires_grad_()
                for i, x in enumerate(args[:count])
            )
            found = grad(
                _outs(func, ins),
                [x for x in ins if isinstance(x, Tensor) and x.needs],
                list(args[count:]),
                create_graph=True,
                allow_unused=True,
            )
        return tuple(g for g in found if g is not None)

    return gradcheck(first, (*given, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
