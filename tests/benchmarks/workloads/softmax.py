"""A linear softmax classifier with an L2 penalty: 2,000 rows of 64 features, 10 classes, integer labels."""

import numpy as np

from .common import Workload

PENALTY = 1e-3


def make(np):
    def loss(w, b, x, labels):
        z = x @ w + b
        z = z - np.max(z, axis=1, keepdims=True)
        logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
        return -np.mean(logp[np.arange(len(labels)), labels]) + 0.5 * PENALTY * np.sum(w * w)

    return loss


def make_torch(torch):
    def loss(w, b, x, labels):
        return torch.nn.functional.cross_entropy(x @ w + b, labels) + 0.5 * PENALTY * (w * w).sum()

    return loss


def inputs(rng, small):
    n, k, classes = (20, 6, 4) if small else (2_000, 64, 10)
    return (
        rng.standard_normal((k, classes)) / np.sqrt(k),
        rng.standard_normal(classes),
        rng.standard_normal((n, k)),
        rng.integers(0, classes, n),
    )


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


WORKLOAD = Workload("softmax", make, inputs, hand, make_torch, argnums=(0, 1))
