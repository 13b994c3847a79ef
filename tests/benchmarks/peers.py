"""Other differentiators. Each makes, from a workload and its inputs, a function without arguments that goes round the
inputs' derivatives. One that is not installed takes no part. All get their arguments ready-made: tensors, symbols, NumPy
arrays; what they give back stays theirs until it is compared.
"""

import importlib.util
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from workloads import Workload
from workloads.common import leaves

Inputs = Sequence[tuple[Any, ...]]
Contender = Callable[[], Any]


def contender(function: Callable[..., Any], inputs: Inputs) -> Contender:
    """A call of ``function`` on the next of the inputs."""
    if len(inputs) == 1:
        (args,) = inputs
        return lambda: function(*args)
    step = itertools.cycle(inputs).__next__
    return lambda: function(*step())


def hand(workload: Workload, inputs: Inputs) -> Contender:
    """The expert's NumPy."""
    return contender(workload.hand, inputs)


def symgrad(workload: Workload, inputs: Inputs) -> Contender:
    """The function as it is."""
    return contender(symgrad_derivative(workload), inputs)


def symgrad_derivative(workload: Workload) -> Any:
    """A fresh derivative of a fresh function."""
    import symgrad

    function = workload.function("symgrad", np)
    if workload.kind == "hessian":
        return symgrad.hessian(function)
    if workload.kind == "hvp":
        return symgrad.hvp(function)
    return symgrad.grad(function, workload.argnums)


def autograd(workload: Workload, inputs: Inputs) -> Contender:
    """HIPS autograd, on the same function over its own NumPy namespace."""
    import autograd
    import autograd.numpy

    function = workload.function("autograd", autograd.numpy)
    if workload.kind == "hessian":
        return contender(autograd.hessian(function), inputs)
    if workload.kind == "hvp":
        return contender(autograd.hessian_vector_product(function), inputs)
    return contender(autograd.grad(function, workload.argnums), inputs)


def mygrad(workload: Workload, inputs: Inputs) -> Contender:
    """MyGrad's tensors, on the same function over its own NumPy namespace."""
    import mygrad

    function = workload.function("mygrad", mygrad)
    wanted = _wanted(workload)

    def gradient(*args: Any) -> Any:
        args = tuple(_map(mygrad.tensor, arg) if i in wanted else arg for i, arg in enumerate(args))
        function(*args).backward()
        return [leaf.grad for i in wanted for leaf in leaves(args[i])]

    return contender(gradient, inputs)


def _jax(workload: Workload) -> Callable[..., Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    function = workload.function("jax", jax.numpy)
    if workload.kind == "hessian":
        return jax.jit(jax.hessian(function))
    if workload.kind == "hvp":
        return jax.jit(lambda x, v: jax.jvp(jax.grad(function), (x,), (v,))[1])
    static = tuple(i for i, arg in enumerate(workload.inputs(np.random.default_rng(0), workload.tiny)) if type(arg) is int)
    return jax.jit(jax.grad(function, workload.argnums), static_argnums=static)


def jax(workload: Workload, inputs: Inputs) -> Contender:
    """JAX, compiled, called with NumPy arrays."""
    import jax

    gradient = _jax(workload)
    return contender(lambda *args: jax.block_until_ready(gradient(*args)), inputs)


def jax_device(workload: Workload, inputs: Inputs) -> Contender:
    """JAX, compiled, its arguments on its side already."""
    import jax

    gradient = _jax(workload)
    there = [tuple(arg if type(arg) is int else jax.tree.map(jax.numpy.asarray, arg) for arg in args) for args in inputs]
    return contender(lambda *args: jax.block_until_ready(gradient(*args)), there)


def _torch(workload: Workload, inputs: Inputs, compiled: bool) -> Contender:
    import torch

    def tensor(value: Any) -> Any:
        return value if type(value) is int else torch.tensor(value, dtype=torch.float64 if type(value) is float else None)

    function = workload.function("torch", torch)
    wanted = _wanted(workload)
    there = [tuple(_map(tensor, arg) for arg in args) for args in inputs]
    if workload.kind == "hessian":
        derivative = torch.func.hessian(function)
        return contender(torch.compile(derivative) if compiled else derivative, there)
    if workload.kind == "hvp":

        def product(x: Any, v: Any) -> Any:
            return torch.func.jvp(torch.func.grad(function), (x,), (v,))[1]

        return contender(torch.compile(product) if compiled else product, there)
    variables = [[leaf.requires_grad_() for i in wanted for leaf in leaves(args[i])] for args in there]
    if compiled:
        function = torch.compile(function)
    calls = list(zip(there, variables, strict=True))
    return contender(lambda args, variables: torch.autograd.grad(function(*args), variables), calls)


def torch(workload: Workload, inputs: Inputs) -> Contender:
    """PyTorch, eager."""
    return _torch(workload, inputs, False)


def torch_compile(workload: Workload, inputs: Inputs) -> Contender:
    """PyTorch, compiled."""
    return _torch(workload, inputs, True)


def pytensor(workload: Workload, inputs: Inputs) -> Contender:
    """PyTensor, on its symbols."""
    import pytensor
    import pytensor.tensor as pt

    def symbol(value: Any) -> Any:
        array = np.asarray(value)
        return pt.tensor(dtype=array.dtype.name, shape=array.shape)

    symbols = [_map(symbol, arg) for arg in inputs[0]]
    wanted = [leaf for i in _wanted(workload) for leaf in leaves(symbols[i])]
    value = workload.function("pytensor", pt)(*symbols)
    compiled = pytensor.function(leaves(symbols), pytensor.grad(value, wanted), on_unused_input="ignore")
    compiled.trust_input = False
    return contender(compiled, [tuple(leaves(args)) for args in inputs])


def casadi(workload: Workload, inputs: Inputs) -> Contender:
    """CasADi, with its buffers bound to the arguments."""
    import casadi as ca

    fixed = [arg if type(arg) is int else None for arg in inputs[0]]
    symbols = [arg if type(arg) is int else ca.SX.sym(f"x{i}", *np.atleast_1d(arg).shape) for i, arg in enumerate(inputs[0])]
    free = [s for s, f in zip(symbols, fixed, strict=True) if f is None]
    value = workload.function("casadi", ca)(*symbols)
    function = ca.Function("g", free, [ca.gradient(value, symbols[i]) for i in _wanted(workload)])
    bound = []
    for args in inputs:
        buffer, evaluate = function.buffer()
        arrays = [np.ravel(np.asarray(a, float), order="F") for a, f in zip(args, fixed, strict=True) if f is None]
        found = [np.zeros(np.size(args[i])) for i in _wanted(workload)]
        for i, array in enumerate(arrays):
            buffer.set_arg(i, memoryview(array))
        for i, array in enumerate(found):
            buffer.set_res(i, memoryview(array))
        results = [array.reshape(np.shape(args[i]), order="F") for i, array in zip(_wanted(workload), found, strict=True)]
        bound.append((evaluate, results, buffer, arrays))

    def run(evaluate: Any, results: Any, *_: Any) -> Any:
        evaluate()
        return results

    return contender(run, bound)


# names, the module that each needs, and how it takes part
PEERS: dict[str, tuple[str, Callable[[Workload, Inputs], Contender]]] = {
    "autograd": ("autograd", autograd),
    "jax": ("jax", jax),
    "jax device": ("jax", jax_device),
    "torch": ("torch", torch),
    "torch.compile": ("torch", torch_compile),
    "pytensor": ("pytensor", pytensor),
    "casadi": ("casadi", casadi),
    "mygrad": ("mygrad", mygrad),
}


def installed() -> list[str]:
    """The names of the peers that are installed."""
    return [name for name, (module, _) in PEERS.items() if importlib.util.find_spec(module) is not None]


def takes_part(name: str, workload: Workload) -> bool:
    """Whether a peer can do a workload, in its words or in the function's own."""
    if name in workload.skips or (workload.kind != "grad" and name in ("pytensor", "mygrad")):
        return False
    return name != "casadi" or name in workload.words  # small programs only


def as_numpy(tree: Any) -> list[Any]:
    """The leaves of a result as NumPy arrays."""
    return [np.asarray(leaf.detach() if hasattr(leaf, "detach") else leaf) for leaf in leaves(tree)]


def _wanted(workload: Workload) -> tuple[int, ...]:
    return (workload.argnums,) if isinstance(workload.argnums, int) else workload.argnums


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, tuple | list):
        return type(tree)(_map(function, item) for item in tree)
    return function(tree)
