"""Other differentiators, as functions of the workload's arguments. One that is not installed is None."""

import importlib
from typing import Any

import numpy as np
from workloads import Workload
from workloads.common import leaves


def autograd(workload: Workload, args: tuple[Any, ...]) -> Any:
    """HIPS autograd, on the same function over its own NumPy namespace."""
    from autograd import grad

    gradient = grad(workload.make(importlib.import_module("autograd.numpy")), workload.argnums)
    return lambda: gradient(*args)


def jax(workload: Workload, args: tuple[Any, ...]) -> Any:
    """JAX, compiled, on the same function over jax.numpy, with its arguments already on its side."""
    import jax

    jax.config.update("jax_enable_x64", True)
    gradient = jax.jit(jax.grad(workload.make(jax.numpy), workload.argnums))
    args = jax.tree.map(jax.numpy.asarray, args)
    return lambda: jax.block_until_ready(gradient(*args))


def torch(workload: Workload, args: tuple[Any, ...]) -> Any:
    """PyTorch, eager, on the function in its own words, with its arguments already tensors."""
    import torch

    def tensors(tree: Any, differentiate: bool) -> Any:
        if isinstance(tree, tuple | list):
            return type(tree)(tensors(item, differentiate) for item in tree)
        return torch.tensor(tree, dtype=torch.float64 if isinstance(tree, float) else None, requires_grad=differentiate)

    loss = workload.make_torch(torch)
    wanted = (workload.argnums,) if isinstance(workload.argnums, int) else workload.argnums
    args = tuple(tensors(arg, i in wanted) for i, arg in enumerate(args))
    variables = leaves([args[i] for i in wanted])
    return lambda: torch.autograd.grad(loss(*args), variables)


def available() -> dict[str, Any]:
    """The peers that can be imported, by name."""
    found = {}
    for peer in (autograd, jax, torch):
        try:
            importlib.import_module(peer.__name__)
        except ImportError:
            continue
        found[peer.__name__] = peer
    return found


def as_numpy(tree: Any) -> list[Any]:
    """The leaves of a peer's result as NumPy arrays."""
    return [np.asarray(leaf) for leaf in leaves(tree)]
