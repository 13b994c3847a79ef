"""A linear softmax classifier with an L2 penalty: rows of 64 features, 10 classes, integer labels."""

import numpy as np

from .common import Workload, empty

PENALTY = 1e-3


def make(np):
    def loss(w, b, x, labels):
        z = x @ w + b
        z = z - np.max(z, axis=1, keepdims=True)
        logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
        return -np.mean(logp[np.arange(labels.shape[0]), labels]) + 0.5 * PENALTY * np.sum(w * w)

    return loss


def make_torch(torch):
    def loss(w, b, x, labels):
        return torch.nn.functional.cross_entropy(x @ w + b, labels) + 0.5 * PENALTY * (w * w).sum()

    return loss


def inputs(rng, n):
    return rng.standard_normal((64, 10)) / 8, rng.standard_normal(10), rng.standard_normal((n, 64)), rng.integers(0, 10, n)


def hand(w, b, x, labels):
    n = len(labels)
    p = w.T @ x.T  # classes first: a reduction over ten adjacent numbers would cost five times as much
    p += b[:, None]
    p -= p.max(axis=0)
    np.exp(p, out=p)
    scale = p.sum(axis=0)
    scale *= n
    p /= scale
    p[labels, np.arange(n)] -= 1.0 / n
    g_w = x.T @ p.T
    g_w += PENALTY * w
    return g_w, p.sum(axis=1)


def floor(w, b, x, labels):
    """The calls of the derivative by hand, into buffers, and one place in memory for each label."""
    n = len(labels)
    p, g_w, penalty = empty((w.shape[1], n)), empty(w.shape, w.dtype), empty(w.shape, w.dtype)
    rows, flat, columns = empty(n), p.reshape(-1), np.arange(n)

    def calls():
        w.T.dot(x.T, p)
        np.add(p, b[:, None], p)
        np.maximum.reduce(p, 0, None, rows)
        np.subtract(p, rows, p)
        np.exp(p, p)
        np.add.reduce(p, 0, None, rows)
        np.divide(1.0 / n, rows, rows)
        np.multiply(p, rows, p)
        flat[labels * n + columns] -= 1.0 / n
        x.T.dot(p.T, g_w)
        np.multiply(w, PENALTY, penalty)
        return np.add(g_w, penalty, g_w), np.add.reduce(p, 1)

    return calls


WORKLOAD = Workload(
    "S", "softmax classifier", make, inputs, hand, 2_000, 20, argnums=(0, 1), words={"torch": make_torch}, floor=floor
)
