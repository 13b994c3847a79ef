"""Derivatives that are traced anew at every call (``mode="dynamic"``) against HIPS autograd, which always does that.

    python tests/benchmarks/dynamic.py [--rounds N] [--only NAME]

Every contender is called with the same arguments, in turn, and the gradients are compared; what is reported are medians over
the rounds of ratios within a round.
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from run import interleaved
from workloads import mlp, tutorial
from workloads.common import disagreement


def twenty(np):
    """Twenty operations on a Python float."""

    def fun(x):
        a = np.sin(x) * np.cos(x) + x
        b = np.exp(-a * a) + np.log(1.0 + x * x)
        c = np.tanh(b) - a / b
        d = np.sqrt(c * c + 1.0) * x
        return d + c * b - a

    return fun


def walk(np):
    """A loop of 100 steps on small arrays."""

    def fun(x, a):
        for _ in range(100):
            x = x + 0.01 * np.tanh(a @ x)
        return np.sum(x * x)

    return fun


def branches(np):
    """Branches that hang on values."""

    def fun(x):
        total = 0.0
        for i in range(len(x)):
            v = x[i]
            if v > 1.0:
                v = v * v
            elif v < -1.0:
                v = -v
            else:
                v = np.sin(v)
            total = total + v
        return total if total > 0.0 else -total

    return fun


def noisy(np):
    """A network of two layers with dropout: random numbers are drawn at every call."""

    def fun(params, x, y):
        (w, b), (v, c) = params
        h = np.tanh(x @ w + b)
        h = np.where(np.random.random(h.shape) < 0.5, 2.0 * h, 0.0)
        return np.mean((h @ v + c - y) ** 2)

    return fun


def mlp_inputs(rng):
    """Parameters of three small layers, inputs, labels."""
    params = [(rng.standard_normal((m, n)), rng.standard_normal(n)) for m, n in ((7, 6), (6, 5), (5, 4))]
    return params, rng.standard_normal((8, 7)), rng.integers(0, 4, 8)


def noisy_inputs(rng):
    """Parameters, inputs and targets."""
    params = [(rng.standard_normal((4, 3)), np.zeros(3)), (rng.standard_normal((3, 1)), np.zeros(1))]
    return params, rng.standard_normal((5, 4)), np.ones((5, 1))


def same_noise(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the same random numbers at each call, so that gradients can be compared."""

    def call() -> Any:
        np.random.seed(0)
        return function()

    return call


def contenders() -> dict[str, tuple[Any, Any, tuple[Any, ...]]]:
    """By name: a function's maker, ``argnums`` and arguments."""
    rng = np.random.default_rng(0)
    return {
        "tutorial": (tutorial.make, (0, 1), tutorial.inputs(rng, 1)),
        "mlp": (mlp.make, 0, mlp_inputs(rng)),
        "scalar20": (twenty, 0, (0.7,)),
        "loop100": (walk, 0, (rng.standard_normal(3), 0.5 * rng.standard_normal((3, 3)))),
        "branches": (branches, 0, (2.0 * rng.standard_normal(8),)),
        "random": (noisy, 0, noisy_inputs(rng)),
    }


def measure(make: Any, argnums: Any, args: tuple[Any, ...], rounds: int) -> dict[str, float]:
    """Microseconds of both, and their ratio; raises where the gradients disagree."""
    from autograd import grad as autograd

    from symgrad import grad

    ours = grad(make(np), argnums, mode="dynamic")
    theirs = autograd(make(importlib.import_module("autograd.numpy")), argnums)
    calls = {"symgrad": lambda: ours(*args), "autograd": lambda: theirs(*args)}
    found = [same_noise(call)() for call in calls.values()]
    if not disagreement(*found) <= 1e-8:
        raise ArithmeticError(f"the gradients differ: {found}")
    times = interleaved(calls, rounds)
    result = {f"{name} us": 1e6 * median(values) for name, values in times.items()}
    ratios = [a / b for a, b in zip(times["autograd"], times["symgrad"], strict=True)]
    return {**result, "autograd/symgrad": median(ratios)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--only", metavar="NAME")
    options = parser.parse_args()
    for name, contender in contenders().items():
        if options.only in (None, name):
            found = measure(*contender, options.rounds)
            print(f"{name:10}", "  ".join(f"{key} {value:.2f}" for key, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
