"""Logistic regression on rows of 50: two passes over the matrix and a chain of elementwise functions; and its Hessian."""

import os

import numpy as np

from .common import Workload, empty


def make(np):
    def loss(w, x, y):
        z = x @ w
        return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))

    return loss


def make_torch(torch):
    def loss(w, x, y):
        return torch.nn.functional.binary_cross_entropy_with_logits(x @ w, y)

    return loss


def inputs(rng, n):
    return rng.standard_normal(50), rng.standard_normal((n, 50)), rng.integers(0, 2, n).astype(float)


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


def hand_hessian(w, x, y):
    p = x @ w
    np.negative(p, out=p)
    np.exp(p, out=p)
    p += 1.0
    np.divide(1.0, p, out=p)
    p -= np.square(p)
    p /= len(p)
    return x.T @ (x * p[:, None])


def floor(w, x, y):
    """The two products, and the logistic function between them; for one thread, so many rows at a time as stay in its cache."""
    rows = 1_500 if os.environ.get("OMP_NUM_THREADS") == "1" else len(y)
    t, gradient = empty(rows), empty(w.shape)
    blocks = [(x[lo : lo + rows], y[lo : lo + rows]) for lo in range(0, len(y), rows)]

    def calls():
        turned = -w
        gradient[...] = 0.0
        for some, labels in blocks:
            g = t[: len(labels)]
            some.dot(turned, g)
            np.exp(g, g)
            np.add(g, 1.0, g)
            np.divide(1.0, g, g)
            np.subtract(g, labels, g)
            np.add(gradient, g.dot(some), gradient)
        return np.divide(gradient, len(y), gradient)

    return calls


WORDS = {"torch": make_torch}
WORKLOAD = Workload("C", "logistic regression", make, inputs, hand, 10_000, 30, words=WORDS, floor=floor)
HESSIAN = Workload("L1", "Hessian of C", make, inputs, hand_hessian, 10_000, 30, kind="hessian", words=WORDS)
