"""The one-layer network of PyTorch's autograd tutorial: small arrays, so every NumPy call counts."""

import struct
from math import exp

import numpy as np

from .common import Workload


def make(np):
    def loss(w, b, x, y):
        z = x @ w + b
        return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))

    return loss


def make_torch(torch):
    def loss(w, b, x, y):
        return torch.nn.functional.binary_cross_entropy_with_logits(torch.matmul(x, w) + b, y)

    return loss


def make_casadi(ca):
    def loss(w, b, x, y):
        z = ca.mtimes(w.T, x) + b
        return ca.sum1(ca.fmax(z, 0) - z * y + ca.log1p(ca.exp(-ca.fabs(z)))) / 3

    return loss


def inputs(rng, n):
    return rng.standard_normal((5, 3)), rng.standard_normal(3), np.ones(5), np.zeros(3)


def hand(w, b, x, y):
    z = x.dot(w)
    z += b
    np.negative(z, z)  # a positional out, since on three numbers even a keyword costs
    np.exp(z, z)
    z += 1.0
    np.divide(1.0, z, z)
    z -= y
    z /= z.size
    return x[:, None] * z, z


def floor(w, b, x, y):
    """One product of NumPy's, and the rest in Python's floats, which come from arrays and go into arrays."""
    pack_15, pack_3 = struct.Struct("15d").pack_into, struct.Struct("3d").pack_into

    def gradient():
        product = x.dot(w)
        p, q, r = product.tolist()
        b_0, b_1, b_2 = b.tolist()
        y_0, y_1, y_2 = y.tolist()
        s, t, u, v, z = x.tolist()
        i = (1.0 / (1.0 + exp(-(p + b_0))) - y_0) / 3.0
        j = (1.0 / (1.0 + exp(-(q + b_1))) - y_1) / 3.0
        k = (1.0 / (1.0 + exp(-(r + b_2))) - y_2) / 3.0
        g = np.empty((5, 3))
        pack_15(g, 0, s * i, s * j, s * k, t * i, t * j, t * k, u * i, u * j, u * k, v * i, v * j, v * k, z * i, z * j, z * k)
        pack_3(product, 0, i, j, k)
        return g, product

    return gradient


WORDS = {"torch": make_torch, "casadi": make_casadi}
WORKLOAD = Workload("B", "tutorial network", make, inputs, hand, argnums=(0, 1), words=WORDS, floor=floor)
