"""Rosenbrock's valley in a million dimensions: elementwise throughout, memory traffic sets the pace; and its HVP."""

import numpy as np

from .common import Workload, empty


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


def blocks(n):
    """The blocks of rows that have a next one."""
    return [slice(lo, min(lo + BLOCK, n - 1)) for lo in range(0, n - 1, BLOCK)]


def floor(x):
    """Eight passes over blocks that stay in the cache; each element of the gradient is written once."""
    g = empty(x.shape, x.dtype)
    scaled, scratch = empty(BLOCK + ALIGNED), empty(BLOCK)
    c1, c2, c200 = map(np.array, (1.0, 2.0, 200.0))  # which ufuncs take quicker than Python's numbers

    def passes():
        scaled[ALIGNED - 1] = 0.0  # what the pair before gives to the first element of a block
        for rows in blocks(len(x)):
            head, following = x[rows], x[rows.start + 1 : rows.stop + 1]
            n = len(head)
            t, pairs = scratch[:n], scaled[ALIGNED : ALIGNED + n]
            np.multiply(head, head, t)
            np.subtract(following, t, t)
            np.multiply(t, c200, pairs)
            np.subtract(c1, pairs, t)
            np.multiply(t, head, t)
            np.subtract(t, c1, t)
            np.multiply(t, c2, t)
            np.add(t, scaled[ALIGNED - 1 : ALIGNED - 1 + n], g[rows])
            scaled[ALIGNED - 1] = pairs[-1]
        g[-1] = scaled[ALIGNED - 1]
        return g

    return passes


def floor_hvp(x, v):
    """Ten passes over blocks, all products with one element of the direction put together."""
    h = empty(x.shape, x.dtype)
    scaled, beside, scratch = empty(BLOCK + 1), empty(BLOCK + ALIGNED), empty(BLOCK)
    c3, c202, c400 = map(np.array, (3.0, 202.0, 400.0))

    def passes():
        beside[ALIGNED - 1] = 0.0
        for rows in blocks(len(x)):
            head, turn, following = x[rows], v[rows], v[rows.start + 1 : rows.stop + 1]
            n = len(head)
            t, pairs = scratch[:n], beside[ALIGNED : ALIGNED + n]
            np.multiply(x[rows.start : rows.stop + 1], c400, scaled[: n + 1])
            np.multiply(scaled[:n], turn, pairs)
            np.multiply(scaled[:n], head, t)
            np.multiply(t, c3, t)
            np.subtract(t, scaled[1 : n + 1], t)
            np.add(t, c202, t)
            np.multiply(t, turn, t)
            np.multiply(scaled[:n], following, scaled[:n])
            np.subtract(t, scaled[:n], t)
            np.subtract(t, beside[ALIGNED - 1 : ALIGNED - 1 + n], h[rows])
            beside[ALIGNED - 1] = pairs[-1]
        h[0] -= 200.0 * v[0]  # it is in one pair, and so is the last
        h[-1] = 200.0 * v[-1] - beside[ALIGNED - 1]
        return h

    return passes


BLOCK = 16_384
ALIGNED = 8  # numbers to a cache line
WORKLOAD = Workload("E", "Rosenbrock", make, inputs, hand, 1_000_000, 10, floor=floor)
HVP = Workload("L2", "HVP of E", make, inputs_hvp, hand_hvp, 1_000_000, 10, kind="hvp", floor=floor_hvp)
