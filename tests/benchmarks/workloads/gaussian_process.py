"""A Gaussian process's marginal likelihood by its three hyperparameters: dense linear algebra."""

import math

import numpy as np

from .common import Workload, empty

try:
    from scipy.linalg import lapack
except ImportError:
    lapack = None


def make(np):
    def loss(theta, x, y):
        scale, signal, noise = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2])
        distance = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2)
        k = signal**2 * np.exp(-0.5 * distance / scale**2) + noise**2 * np.eye(len(x))
        chol = np.linalg.cholesky(k)
        alpha = np.linalg.solve(chol, y)
        return 0.5 * np.sum(alpha**2) + np.sum(np.log(np.diagonal(chol))) + 0.5 * len(x) * math.log(2 * math.pi)

    return loss


def make_autograd(np):
    def loss(theta, x, y):  # its diagonal has no derivative of a view
        scale, signal, noise = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2])
        distance = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2)
        k = signal**2 * np.exp(-0.5 * distance / scale**2) + noise**2 * np.eye(len(x))
        chol = np.linalg.cholesky(k)
        alpha = np.linalg.solve(chol, y)
        return 0.5 * np.sum(alpha**2) + np.sum(np.log(np.diag(chol))) + 0.5 * len(x) * math.log(2 * math.pi)

    return loss


def make_torch(torch):
    def loss(theta, x, y):
        scale, signal, noise = torch.exp(theta)
        distance = ((x[:, None, :] - x[None, :, :]) ** 2).sum(2)
        k = signal**2 * torch.exp(-0.5 * distance / scale**2) + noise**2 * torch.eye(len(x), dtype=x.dtype)
        chol = torch.linalg.cholesky(k)
        alpha = torch.linalg.solve_triangular(chol, y[:, None], upper=False)
        return 0.5 * (alpha**2).sum() + torch.log(torch.diagonal(chol)).sum() + 0.5 * len(x) * math.log(2 * math.pi)

    return loss


def make_jax(jnp):
    from jax.scipy.linalg import solve_triangular

    def loss(theta, x, y):
        scale, signal, noise = jnp.exp(theta)
        distance = jnp.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2)
        k = signal**2 * jnp.exp(-0.5 * distance / scale**2) + noise**2 * jnp.eye(len(x))
        chol = jnp.linalg.cholesky(k)
        alpha = solve_triangular(chol, y, lower=True)
        return 0.5 * jnp.sum(alpha**2) + jnp.sum(jnp.log(jnp.diagonal(chol))) + 0.5 * len(x) * math.log(2 * math.pi)

    return loss


def make_pytensor(pt):
    def loss(theta, x, y):
        scale, signal, noise = pt.exp(theta[0]), pt.exp(theta[1]), pt.exp(theta[2])
        distance = pt.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2)
        n = x.type.shape[0]
        k = signal**2 * pt.exp(-0.5 * distance / scale**2) + noise**2 * np.eye(n)
        chol = pt.linalg.cholesky(k)
        alpha = pt.linalg.solve_triangular(chol, y, lower=True)
        return 0.5 * pt.sum(alpha**2) + pt.sum(pt.log(pt.diagonal(chol))) + 0.5 * n * math.log(2 * math.pi)

    return loss


def inputs(rng, n):
    x = rng.uniform(-2.0, 2.0, (n, 3))
    return np.log([1.0, 1.5, 0.3]), x, np.sin(x).sum(axis=1) + 0.3 * rng.standard_normal(n)


def hand(theta, x, y):
    scale, signal, noise = np.exp(theta)
    norms = np.einsum("ij,ij->i", x, x)
    distance = x @ x.T
    distance *= -2.0
    distance += norms
    distance += norms[:, None]
    kernel = distance * (-0.5 / scale**2)
    np.exp(kernel, out=kernel)
    kernel *= signal**2
    noisy = kernel.copy()
    noisy.flat[:: len(x) + 1] += noise**2
    g = np.linalg.inv(noisy)  # log det's derivative; the quadratic form's is -outer(alpha, alpha)
    alpha = g @ y
    g -= np.multiply.outer(alpha, alpha)
    by_noise = noise**2 * np.trace(g)
    g *= kernel
    return np.array([0.5 * np.vdot(g, distance) / scale**2, g.sum(), by_noise])


def floor(theta, x, y):
    """LAPACK's inverse of half of a symmetric matrix, which SciPy has, and a few passes to and from it."""
    n, columns = len(x), x.T.copy()
    distance, kernel, product, matrix = empty((4, n, n))

    def calls():
        scale, signal, noise = np.exp(theta)
        np.subtract(columns[0][:, None], columns[0], distance)
        np.square(distance, distance)
        for column in columns[1:]:
            np.subtract(column[:, None], column, product)
            np.square(product, product)
            np.add(distance, product, distance)
        np.multiply(distance, -0.5 / scale**2, product)
        np.exp(product, kernel)
        np.multiply(kernel, product, product)
        np.multiply(kernel, signal**2, matrix)
        matrix.ravel()[:: n + 1] += noise**2
        alpha = inverted(matrix, y)
        diagonal = matrix.diagonal()
        by_signal = 2.0 * np.vdot(matrix, kernel) - diagonal.sum() - alpha @ (kernel @ alpha)
        by_scale = 2.0 * np.vdot(matrix, product) - alpha @ (product @ alpha)
        by_noise = diagonal.sum() - alpha @ alpha
        return np.array([-(signal**2) * by_scale, signal**2 * by_signal, noise**2 * by_noise])

    return calls


def inverted(matrix, y):
    """``inv(matrix) @ y``, while the matrix's inverse takes its place, of which only a triangle is there."""
    factor, _ = lapack.dpotrf(matrix.T, overwrite_a=1)
    alpha, _ = lapack.dpotrs(factor, y)
    lapack.dpotri(factor, overwrite_c=1)
    return alpha


WORDS = {"autograd": make_autograd, "torch": make_torch, "jax": make_jax, "pytensor": make_pytensor}
WORKLOAD = Workload(
    "N", "Gaussian process", make, inputs, hand, 300, 8, words=WORDS, skips=("mygrad",), floor=floor if lapack else None
)
