"""ADBench's Gaussian mixture: log likelihood with a Wishart prior, by the weights, means and inverse covariances.

A component's inverse covariance is given by a lower triangle Q, its diagonal as logarithms.
"""

import math

import numpy as np

from .common import Workload

GAMMA, M = 1.0, 0


def triangle(d):
    """Where each entry of a lower triangle lies among its diagonal, the entries below that column by column, and zero."""
    place = np.full((d, d), d * (d + 1) // 2)
    place[np.diag_indices(d)] = np.arange(d)
    place.T[np.triu_indices(d, 1)] = np.arange(d, d * (d + 1) // 2)
    return place


def make(np):
    def objective(alphas, means, icf, x, place, zeros):
        n, d = x.shape
        logs, below = icf[:, :d], icf[:, d:]
        q = np.concatenate([np.exp(logs), below, zeros], axis=1)[:, place]
        centered = x[:, None, :] - means
        scaled = np.einsum("kij,nkj->nki", q, centered)
        inner = alphas + np.sum(logs, axis=1) - 0.5 * np.sum(scaled**2, axis=2)
        likelihood = np.sum(log_sum_exp(inner)) - n * log_sum_exp(alphas)
        prior = 0.5 * GAMMA**2 * (np.sum(np.exp(logs) ** 2) + np.sum(below**2)) - M * np.sum(logs)
        return likelihood - 0.5 * n * d * math.log(2 * math.pi) + prior - len(alphas) * constant(d)

    def log_sum_exp(x):
        top = np.max(x, axis=-1, keepdims=True)
        return np.log(np.sum(np.exp(x - top), axis=-1)) + top[..., 0]

    return objective


def make_torch(torch):
    def objective(alphas, means, icf, x, place, zeros):
        n, d = x.shape
        logs, below = icf[:, :d], icf[:, d:]
        q = torch.cat([torch.exp(logs), below, zeros], 1)[:, place]
        scaled = torch.einsum("kij,nkj->nki", q, x[:, None, :] - means)
        inner = alphas + logs.sum(1) - 0.5 * (scaled**2).sum(2)
        likelihood = torch.logsumexp(inner, 1).sum() - n * torch.logsumexp(alphas, 0)
        prior = 0.5 * GAMMA**2 * ((torch.exp(logs) ** 2).sum() + (below**2).sum()) - M * logs.sum()
        return likelihood - 0.5 * n * d * math.log(2 * math.pi) + prior - len(alphas) * constant(d)

    return objective


def make_pytensor(pt):
    def objective(alphas, means, icf, x, place, zeros):
        n, d = x.type.shape
        logs, below = icf[:, :d], icf[:, d:]
        q = pt.concatenate([pt.exp(logs), below, zeros], axis=1)[:, place]
        scaled = pt.einsum("kij,nkj->nki", q, x[:, None, :] - means)
        inner = alphas + logs.sum(1) - 0.5 * (scaled**2).sum(2)
        likelihood = pt.logsumexp(inner, 1).sum() - n * pt.logsumexp(alphas)
        prior = 0.5 * GAMMA**2 * ((pt.exp(logs) ** 2).sum() + (below**2).sum()) - M * logs.sum()
        return likelihood - 0.5 * n * d * math.log(2 * math.pi) + prior - alphas.type.shape[0] * constant(d)

    return objective


def constant(d):
    """The logarithm of the Wishart prior's normalisation."""
    n = d + M + 1
    gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (n - j)) for j in range(d))
    return n * d * (math.log(GAMMA) - 0.5 * math.log(2)) - gamma


def sized(d, k):
    def inputs(rng, n):
        return (
            rng.standard_normal(k),
            rng.standard_normal((k, d)),
            0.3 * rng.standard_normal((k, d * (d + 1) // 2)),
            rng.standard_normal((n, d)),
            triangle(d),
            np.zeros((k, 1)),
        )

    return inputs


def hand(alphas, means, icf, x, place, zeros):
    (n, d), k = x.shape, len(alphas)
    diagonal = np.exp(icf[:, :d])
    q = np.concatenate([diagonal, icf[:, d:], zeros], axis=1)[:, place]
    flat = q.reshape(k * d, d)
    y = flat @ x.T  # all components in one product, points last, so that sums over d add long rows
    y -= (q @ means[:, :, None]).reshape(k * d, 1)
    y = y.reshape(k, d, n)
    w = np.einsum("kdn,kdn->kn", y, y)
    w *= -0.5
    w += (alphas + icf[:, :d].sum(axis=1))[:, None]
    w -= w.max(axis=0)
    np.exp(w, out=w)
    w /= w.sum(axis=0)
    share = w.sum(axis=1)
    y *= w[:, None, :]
    total = y.sum(axis=2)
    g_means = (total[:, None, :] @ q).reshape(k, d)
    g_q = total[:, :, None] * means[:, None, :]
    g_q -= (y.reshape(k * d, n) @ x).reshape(k, d, d)
    g_icf = np.empty_like(icf)
    rows, columns = np.tril_indices(d)
    g_icf[:, place[rows, columns]] = g_q[:, rows, columns]
    g_icf[:, d:] += GAMMA**2 * icf[:, d:]
    g_icf[:, :d] += GAMMA**2 * diagonal
    g_icf[:, :d] *= diagonal
    g_icf[:, :d] += (share - M)[:, None]
    weights = np.exp(alphas - alphas.max())
    weights *= n / weights.sum()
    share -= weights
    return share, g_means, g_icf


WORDS = {"torch": make_torch, "pytensor": make_pytensor}
SMALL = Workload("G1", "GMM, d=10 K=25", make, sized(10, 25), hand, 1_000, 6, argnums=(0, 1, 2), words=WORDS)
LARGE = Workload("G2", "GMM, d=20 K=50", make, sized(20, 50), hand, 1_000, 6, argnums=(0, 1, 2), words=WORDS)
