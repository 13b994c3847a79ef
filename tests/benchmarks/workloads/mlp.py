"""A perceptron 784-512-256-10 on a batch, softmax cross entropy with integer labels: BLAS sets the pace."""

from itertools import pairwise

import numpy as np

from .common import Workload, empty


def make(np):
    def loss(params, x, labels):
        h = x
        for w, b in params[:-1]:
            h = np.maximum(h @ w + b, 0)
        w, b = params[-1]
        z = h @ w + b
        z = z - np.max(z, axis=1, keepdims=True)
        logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
        return -np.mean(logp[np.arange(labels.shape[0]), labels])

    return loss


def make_torch(torch):
    def loss(params, x, labels):
        h = x
        for w, b in params[:-1]:
            h = torch.relu(h @ w + b)
        w, b = params[-1]
        return torch.nn.functional.cross_entropy(h @ w + b, labels)

    return loss


def inputs(rng, n, dtype=np.float64):
    sizes = (784, 512, 256, 10)
    params = [
        ((rng.standard_normal((m, n)) * np.sqrt(2 / m)).astype(dtype), 0.1 * rng.standard_normal(n).astype(dtype))
        for m, n in pairwise(sizes)
    ]
    return params, rng.standard_normal((n, sizes[0])).astype(dtype), rng.integers(0, sizes[-1], n)


def hand(params, x, labels):
    n = len(labels)
    inputs = [x]
    for w, b in params[:-1]:
        h = inputs[-1] @ w
        h += b
        inputs.append(np.maximum(h, 0, out=h))
    w, b = params[-1]
    g = inputs[-1] @ w
    g += b
    g -= g.max(axis=1, keepdims=True)
    np.exp(g, out=g)
    scale = g.sum(axis=1, keepdims=True)
    scale *= n
    g /= scale
    g[np.arange(n), labels] -= 1.0 / n
    gradient = []
    for (w, _), h in zip(reversed(params), reversed(inputs), strict=True):
        gradient.append((h.T @ g, g.sum(axis=0)))
        if h is not x:
            g = g @ w.T
            g *= h > 0
    return gradient[::-1]


def floor(params, x, labels):
    """The matrix products alone."""
    weights = [w for w, _ in params]
    inputs = [x, *(np.ones((len(x), w.shape[1]), x.dtype) for w in weights)]
    gradients = [empty(w.shape, w.dtype) for w in weights]
    backs = [empty(h.shape, h.dtype) for h in inputs]

    def products():
        for i, w in enumerate(weights):
            np.matmul(inputs[i], w, out=backs[i + 1])
        for i in reversed(range(len(weights))):
            np.matmul(inputs[i].T, inputs[i + 1], out=gradients[i])
            if i:
                np.matmul(inputs[i + 1], weights[i].T, out=backs[i])

    return products


def inputs32(rng, n):
    return inputs(rng, n, np.float32)


WORDS = {"torch": make_torch}
WORKLOAD = Workload("D", "MLP", make, inputs, hand, 128, 4, words=WORDS, floor=floor)
WORKLOAD32 = Workload("D32", "MLP, float32", make, inputs32, hand, 128, 4, tolerance=1e-4, words=WORDS, floor=floor)
