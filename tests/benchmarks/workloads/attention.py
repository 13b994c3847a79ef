"""Single-head self-attention, sequences of 128, 64 features: batched matrix products and a softmax."""

import math

import numpy as np

from .common import Workload, empty

T, D = 128, 64


def make(np):
    def loss(params, x, target):
        wq, wk, wv = params
        q, k, v = x @ wq, x @ wk, x @ wv
        scores = q @ np.swapaxes(k, 1, 2) / math.sqrt(q.shape[2])
        weights = np.exp(scores - np.max(scores, axis=2, keepdims=True))
        weights = weights / np.sum(weights, axis=2, keepdims=True)
        return np.mean((weights @ v - target) ** 2)

    return loss


def make_torch(torch):
    def loss(params, x, target):
        wq, wk, wv = params
        q, k, v = x @ wq, x @ wk, x @ wv
        weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[2]), 2)
        return ((weights @ v - target) ** 2).mean()

    return loss


def make_pytensor(pt):
    def loss(params, x, target):
        wq, wk, wv = params
        q, k, v = x @ wq, x @ wk, x @ wv
        weights = pt.special.softmax(q @ pt.swapaxes(k, 1, 2) / math.sqrt(D), axis=2)
        return pt.mean((weights @ v - target) ** 2)

    return loss


def inputs(rng, n):
    return (
        [rng.standard_normal((D, D)) / 8 for _ in range(3)],
        rng.standard_normal((n, T, D)),
        rng.standard_normal((n, T, D)),
    )


def hand(params, x, target):
    wq, wk, wv = params
    batch, t, d = x.shape
    flat = x.reshape(-1, d)  # one product of tall matrices beats many small ones
    q = flat @ wq
    q *= 1.0 / math.sqrt(d)
    q = q.reshape(batch, t, d)
    k, v = (flat @ wk).reshape(batch, t, d), (flat @ wv).reshape(batch, t, d)
    p = q @ k.transpose(0, 2, 1)
    p -= p.max(axis=2, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=2, keepdims=True)
    g = p @ v
    g -= target
    g *= 2.0 / g.size
    g_v = p.transpose(0, 2, 1) @ g
    g_p = g @ v.transpose(0, 2, 1)
    g_p -= np.einsum("bij,bij->bi", g_p, p)[:, :, None]
    g_p *= p
    g_q = g_p @ k
    g_q *= 1.0 / math.sqrt(d)
    g_k = g_p.transpose(0, 2, 1) @ q
    return tuple(flat.T @ part.reshape(-1, d) for part in (g_q, g_k, g_v))


def floor(params, x, target):
    """The fewest products that round no more than those by hand, and a softmax in place, each sequence's in the cache."""
    wq, wk, wv = params
    batch, t, d = x.shape
    flat, turned = x.reshape(-1, d), x.transpose(0, 2, 1)
    scaled, back, between = empty((3, d, d))
    q, k, mean, out, g = empty((5, batch, t, d))  # mean: of the rows of x by the weights
    p, g_p, total = empty((batch, t, t)), empty((t, t)), empty((batch, t, 1))
    results = [empty(w.shape, w.dtype) for w in params]

    def calls():
        np.multiply(wq, 1.0 / math.sqrt(d), scaled)
        np.dot(flat, scaled, q.reshape(-1, d))
        np.dot(flat, wk, k.reshape(-1, d))
        for i in range(batch):
            np.matmul(q[i], k[i].T, p[i])
            np.maximum.reduce(p[i], 1, None, total[i], True)
            np.subtract(p[i], total[i], p[i])
            np.exp(p[i], p[i])
            np.add.reduce(p[i], 1, None, total[i], True)
            np.divide(1.0, total[i], total[i])
            np.matmul(p[i], x[i], mean[i])
        np.multiply(mean, total, mean)
        np.dot(mean.reshape(-1, d), wv, out.reshape(-1, d))
        np.subtract(out, target, out)
        np.dot(mean.reshape(-1, d).T, out.reshape(-1, d), results[2])
        np.multiply(wv.T, 2.0 / out.size, back)
        np.dot(out.reshape(-1, d), back, g.reshape(-1, d))
        np.multiply(g, total, g)
        shift = np.vecdot(g, mean)[:, :, None]
        for i in range(batch):
            np.matmul(g[i], turned[i], g_p)
            np.subtract(g_p, shift[i], g_p)
            np.multiply(g_p, p[i], g_p)
            np.matmul(g_p, x[i], q[i])
        np.dot(flat.T, q.reshape(-1, d), between)
        np.multiply(between, 1.0 / math.sqrt(d), between)
        np.dot(between, wk, results[0])
        np.dot(between.T, wq, results[1])
        np.multiply(results[2], 2.0 / out.size, results[2])
        return tuple(results)

    return calls


WORDS = {"torch": make_torch, "pytensor": make_pytensor}
WORKLOAD = Workload("M", "attention", make, inputs, hand, 8, 1, words=WORDS, floor=floor)
