"""Single-head self-attention, sequences of 128, 64 features: batched matrix products and a softmax."""

import math

import numpy as np

from .common import Workload

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


WORKLOAD = Workload("M", "attention", make, inputs, hand, 8, 1, words={"torch": make_torch, "pytensor": make_pytensor})
