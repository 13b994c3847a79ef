"""Logistic regression on 10,000 rows of 50: two passes over the matrix and a chain of elementwise functions."""

import numpy as np

from .common import Workload


def make(np):
    def loss(w, x, y):
        z = x @ w
        return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))

    return loss


def make_torch(torch):
    def loss(w, x, y):
        return torch.nn.functional.binary_cross_entropy_with_logits(x @ w, y)

    return loss


def inputs(rng, small):
    n, k = (30, 4) if small else (10_000, 50)
    return rng.standard_normal(k), rng.standard_normal((n, k)), rng.integers(0, 2, n).astype(float)


def hand(w, x, y):
    g = x @ w
    np.negative(g, out=g)
    np.exp(g, out=g)
    g += 1.0
    np.divide(1.0, g, out=g)
    g -= y
    gradient = g @ x
    gradient /= len(y)
    return gradient


WORKLOAD = Workload("logistic", make, inputs, hand, make_torch)
