"""Rosenbrock's valley in a million dimensions: elementwise throughout, memory traffic sets the pace; and its HVP."""

import numpy as np

from .common import Workload


def make(np):
    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return rosenbrock


def inputs(rng, n):
    return (rng.standard_normal(n),)


def inputs_hvp(rng, n):
    return rng.standard_normal(n), rng.standard_normal(n)


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


def hand_hvp(x, v):
    # the Hessian is tridiagonal: 2 - 400 (next - 3 x^2) and, from each pair, 200 below, and -400 x beside
    head, h = x[:-1], np.empty_like(x)
    t = head * head
    t *= 3.0
    t -= x[1:]
    t *= 400.0
    t += 2.0
    np.multiply(t, v[:-1], out=h[:-1])
    h[-1] = 0.0
    np.multiply(head, 400.0, out=t)
    h[:-1] -= t * v[1:]
    t *= v[:-1]
    np.subtract(200.0 * v[1:], t, out=t)
    h[1:] += t
    return h


WORKLOAD = Workload("E", "Rosenbrock", make, inputs, hand, 1_000_000, 10)
HVP = Workload("L2", "HVP of E", make, inputs_hvp, hand_hvp, 1_000_000, 10, kind="hvp")
