"""Rosenbrock's valley in a million dimensions: elementwise throughout, memory traffic sets the pace."""

import numpy as np

from .common import Workload


def make(np):
    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return rosenbrock


def make_torch(torch):
    return make(torch)


def inputs(rng, small):
    return (rng.standard_normal(10 if small else 1_000_000),)


def hand(x):
    head, g = x[:-1], np.empty_like(x)
    t = head * head
    np.subtract(x[1:], t, out=t)
    np.multiply(t, 200.0, out=g[1:])
    g[0] = 0.0
    # the derivative by x[:-1]: 2 (x - 1) - 400 x (next - x^2) = 2 (x (1 - 200 (next - x^2)) - 1)
    np.subtract(1.0, g[1:], out=t)
    t *= head
    t -= 1.0
    t *= 2.0
    g[:-1] += t
    return g


WORKLOAD = Workload("rosenbrock", make, inputs, hand, make_torch)
