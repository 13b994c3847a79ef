"""``torch.func``: derivatives of functions of tensors. They are symgrad's own, with torch's names and orders."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from symgrad import api

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]

Fun = Callable[..., Any]


def grad(func: Fun, argnums: Any = 0, has_aux: bool = False) -> Fun:
    """The gradient of ``func``, which returns one number; with ``has_aux`` a pair of that and more, which is returned, too.

    >>> import symgrad.eager as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(1.0))
    tensor(-0.8415)
    """
    return api.grad(func, argnums, has_aux=has_aux, double_where=False)


def grad_and_value(func: Fun, argnums: Any = 0, has_aux: bool = False) -> Fun:
    """``grad`` and the value (with ``has_aux``, the pair)."""
    both = api.value_and_grad(func, argnums, has_aux=has_aux, double_where=False)
    return lambda *args, **kwargs: both(*args, **kwargs)[::-1]


def vjp(func: Fun, *primals: Any, has_aux: bool = False) -> Any:
    """The result of ``func`` (and what else it returns, with ``has_aux``), and a function from cotangents to gradients."""
    out, pullback, *aux = api.vjp(func, *primals, has_aux=has_aux)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        return pullback(cotangents if len(cotangents) > 1 else cotangents[0])

    return (out, pull, *aux)


def jvp(func: Fun, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The result of ``func`` and its tangent (and what else ``func`` returns, with ``has_aux``)."""
    return api.jvp(func, primals, tangents, has_aux=has_aux)


def linearize(func: Fun, *primals: Any) -> Any:
    """The result of ``func``, and a function from tangents to its tangent."""
    return api.linearize(func, *primals)


def jacrev(func: Fun, argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Fun:
    """All derivatives, in reverse mode: for each output, tensors of shape ``output.shape + argument.shape``."""
    return api.jacrev(func, argnums, has_aux=has_aux, double_where=False)


def jacfwd(func: Fun, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Fun:
    """``jacrev`` in forward mode."""
    return api.jacfwd(func, argnums, has_aux=has_aux, double_where=False)


def hessian(func: Fun, argnums: Any = 0) -> Fun:
    """Second derivatives, forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


def vmap(func: Fun, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None) -> Fun:
    """``func`` of each element of a batch; what is passed by name is the same for all.

    Random numbers are drawn for each, and so ``randomness="same"`` is refused.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if randomness == "same":
        raise NotImplementedError("randomness='same': draw the numbers outside, and pass them with None in in_dims")
    mapped = api.vmap(func, in_dims, out_dims)

    @functools.wraps(func, updated=())
    def batched(*args: Any, **named: Any) -> Any:
        if not named:
            return mapped(*args)
        axes = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        return api.vmap(lambda named, *given: func(*given, **named), (None, *axes), out_dims)(named, *args)

    return batched
