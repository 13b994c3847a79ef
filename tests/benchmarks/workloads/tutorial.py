"""The one-layer network of PyTorch's autograd tutorial: small arrays, so every NumPy call counts."""

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


WORKLOAD = Workload(
    "B", "tutorial network", make, inputs, hand, argnums=(0, 1), words={"torch": make_torch, "casadi": make_casadi}
)
