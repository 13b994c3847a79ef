"""Of a matrix of which LAPACK reads a triangle, the derivative is that of the triangle, unless the matrix is symmetric."""

import sys

import numpy as np
import pytest

from symgrad import grad, hessian, jvp, value_and_grad, vmap
from symgrad.ops import linalg as linear
from symgrad.ops.symmetry import is_symmetric
from symgrad.scipy import linalg
from symgrad.tracing.trace import Trace, tracing

B = np.array([1.0, 2.0, 3.0])
T = np.array([1.0, 0.3, 2.0, -0.4, 0.5, 3.5])
RNG = np.random.default_rng(0)
M, B40 = RNG.normal(size=(40, 40)), RNG.normal(size=40)


def lower(t):
    return np.array([[4 + t[0], 0.0, 0.0], [t[1], 4 + t[2], 0.0], [t[3], t[4], 4 + t[5]]])


def factor(t):
    return np.sum(np.cos(np.linalg.cholesky(lower(t))))


def upper_factor(t):
    return np.sum(np.cos(np.linalg.cholesky(lower(t).T, upper=True)))


def both_systems(t):
    known = np.linalg.cholesky(lower(t))
    return np.sum(np.sin(np.linalg.solve(known.T, np.linalg.solve(known, B))))


def likelihood(t):
    known = np.linalg.cholesky(np.tril(M * t[0] + np.eye(40) * (60 + t[1])))
    return B40 @ np.linalg.solve(known.T, np.linalg.solve(known, B40)) + np.sum(np.log(np.diag(known))) * t[2]


def eigenvalues(t):
    return np.sum(np.linalg.eigvalsh(lower(t)) ** 2 * np.arange(3))


def eigenvectors(t):
    return np.linalg.eigh(lower(t).T, UPLO="U")[1][0, 0] ** 2


def pseudoinverse(t):
    return np.sum(np.linalg.pinv(lower(t), hermitian=True) ** 2)


def stacked(t):
    whole = lower(t) + np.triu(lower(t).T, 1)
    return np.sum(np.linalg.eigvalsh(np.stack([lower(t), whole])) ** 3)


def of_scipys(t):
    return np.sum(np.sin(linalg.cho_solve(linalg.cho_factor(lower(t), lower=True), B)))


def assumed(t):
    return np.sum(np.sin(linalg.solve(lower(t).T, B, assume_a="pos")))


ONE_SIDED = [factor, upper_factor, both_systems, likelihood, eigenvalues, eigenvectors, pseudoinverse, stacked, of_scipys]


@pytest.mark.parametrize("fun", [*ONE_SIDED, assumed])
def test_one_triangle_is_filled(fun):
    step = 1e-6 * np.eye(len(T))
    derivative = value_and_grad(fun)
    for t in (T, T + 0.1, T + 0.2):
        value, slopes = derivative(t)
        want = np.array([(fun(t + h) - fun(t - h)) / 2e-6 for h in step])
        assert value == pytest.approx(fun(t))
        np.testing.assert_allclose(slopes, want, atol=1e-7 * max(1.0, abs(value)) + 1e-6 * np.abs(want).max())
    np.testing.assert_allclose(jvp(fun, (t,), (np.cos(t),))[1], slopes @ np.cos(t), rtol=1e-9)
    slope = grad(fun)
    second = np.stack([(slope(t + h) - slope(t - h)) / 2e-6 for h in step])
    np.testing.assert_allclose(hessian(fun)(t), second, atol=1e-5 * max(1.0, np.abs(second).max()))
    points = np.stack([T, t])
    np.testing.assert_allclose(vmap(slope)(points), [slope(t) for t in points], rtol=1e-9, atol=1e-12)


def test_a_symmetric_matrix_has_a_symmetric_cotangent():
    a = M @ M.T + 40 * np.eye(40)
    for fun in (lambda a: np.sum(np.cos(np.linalg.cholesky(a))), lambda a: np.linalg.eigh(a)[1][0, 0]):
        for matrix in (a, a + 1e-15 * M):
            found = grad(fun)(matrix)
            np.testing.assert_allclose(found, found.T, atol=1e-12)
        one_sided = grad(fun)(np.tril(a))
        assert not np.triu(one_sided, 1).any()
        np.testing.assert_allclose(np.tril(one_sided, -1), 2 * np.tril(found, -1), rtol=1e-9, atol=1e-12)


X = RNG.normal(size=(12, 2))


def squares(x):
    return np.sum((x[:, None] - x[None]) ** 2, axis=-1)


SYMMETRIC = {
    "kernel": lambda p, x: p[0] * np.exp(-squares(x) / p[1]) + np.eye(12) * p[2],
    "lengths": lambda p, x: np.exp(-np.square((x[:, 0][:, None] - x[:, 0]) / p[0] * 2.0)) + np.eye(12) * p[2],
    "expanded": lambda p, x: np.exp(-((n := np.sum(x**2, 1))[:, None] + n[None, :] - 2 * x @ x.T) / p[1]) + np.eye(12) * p[2],
    "product": lambda p, x: x @ x.T * p[0] + np.eye(12) * p[1],
    "distances": lambda p, x: np.exp(-np.abs(x[:, 0][:, None] - x[:, 0]) / p[0]) + p[1] * np.eye(12),
    "periodic": lambda p, x: np.exp(-2 * np.sin(np.pi * np.abs(x[:, 0][:, None] - x[:, 0]) / p[1]) ** 2) + np.eye(12),
    "mean": lambda p, x: ((a := np.tanh(x @ x.T) * p[0]) + a.T) / 2 + 20 * np.eye(12),
    "outer": lambda p, x: np.diag(np.exp(x[:, 0])) * p[0] + np.outer(x[:, 1], x[:, 1]),
    "reshaped": lambda p, x: np.exp(-((x[:, 0].reshape(-1, 1) - x[:, 0].reshape(1, -1)) ** 2) / p[0]) + np.eye(12),
    "sums": lambda p, x: np.sum((k := x @ np.sin(x).T)[:, None] * k * p[0], axis=-1) + 20 * np.eye(12),
    "sign": lambda p, x: np.cos(p[0] * ((x[:, 0][:, None] - x[:, 0]) * (x[:, 1][:, None] - x[:, 1])) / 2) + 20 * np.eye(12),
}
OTHERS = {
    "triangle": lambda p, x: np.tril(x @ x.T) * p[0] + 99 * np.eye(12),
    "difference": lambda p, x: (x[:, :1] - x[:, 0]) * p[0] + 99 * np.eye(12),
    "rows": lambda p, x: x[:, :1] ** 2 * p[0] + 99 * np.eye(12),
    "two": lambda p, x: x @ np.sin(x).T * p[0] + 99 * np.eye(12),
    "turned": lambda p, x: np.outer(x[:, 0], x[:, 1]) * p[0] + 99 * np.eye(12),
    "outer sums": lambda p, x: np.sum(np.outer(x[:, 0], x[:, 1])[:, None] * np.ones((12, 12, 12)) * p[0], -1) + 99 * np.eye(12),
    "sums of rows": lambda p, x: np.sum((k := x @ np.sin(x).T)[:, None] * k.T * p[0], axis=-1) / 9 + 99 * np.eye(12),
    "at one": lambda p, x: np.exp(-((x[:, 0][:, None] - p[0] * x[:, 0]) ** 2)) + 99 * np.eye(12),
    "odd": lambda p, x: np.sin(x[:, 0][:, None] - x[:, 0]) * p[0] + 99 * np.eye(12),
}


def test_one_answer_in_every_mode():
    """What is symmetric by the values at hand alone is read as a triangle, however its derivative is run."""
    field = RNG.normal(size=(4, 5, 5))
    field = np.einsum("pij,pkl->ijkl", field + field.transpose(0, 2, 1), field + field.transpose(0, 2, 1)) / 20

    def energy(h):
        density = np.zeros((5, 5))
        for _ in range(3):
            _, orbitals = np.linalg.eigh(h + np.einsum("ijkl,kl->ij", field, density))
            density = 0.7 * (orbitals[:, :2] @ orbitals[:, :2].T) + 0.3 * density
        return np.sum(density * h) + np.linalg.eigvalsh(h + np.einsum("ijkl,kl->ij", field, density))[0]

    h = RNG.normal(size=(5, 5))
    h = h + h.T - 3 * np.diag(np.arange(5))
    step = 1e-6 * RNG.normal(size=(5, 5))
    slope = (energy(h + step) - energy(h - step)) / 2
    for derivative in (grad(energy), grad(energy, mode="dynamic")):
        for _ in range(3):
            np.testing.assert_allclose(np.sum(derivative(h) * step), slope, rtol=1e-6)


@pytest.mark.parametrize("count", [8, 30, 40])
def test_symmetric_however_long_a_loop_goes_on(count):
    """The matrices of its last iterations are made by many operations."""

    def energy(h):
        density = np.eye(4) / 2
        for _ in range(count):
            fock = h + np.diag(0.5 * np.diag(density)) - 0.5 * density
            vectors = np.linalg.eigh(fock)[1][:, :1]
            density = 0.6 * (2 * vectors @ vectors.T) + 0.4 * density
        return np.sum(density * (h + fock))

    h = np.random.default_rng(1).normal(size=(4, 4))
    h = h + h.T + 3 * np.diag(np.arange(4))
    derivative = grad(energy)
    for _ in range(3):
        found = derivative(h)
        np.testing.assert_allclose(found, found.T, atol=1e-12)
    np.testing.assert_allclose(grad(energy, mode="dynamic")(h), found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("count", [60, 5_000])
def test_all_that_a_matrix_is_made_of_is_looked_at(count):
    trace = Trace()
    with tracing(trace):
        x = trace.input(0, X)
        matrix, other = x @ x.T, x @ np.cos(x).T
        for k in range(count):
            matrix = np.sin(matrix * matrix.T + k)
            other = np.sin(other * other + k)
    assert is_symmetric(matrix.node, trace.graph)
    assert not is_symmetric(other.node, trace.graph)


@pytest.mark.parametrize("name", [*SYMMETRIC, *OTHERS])
def test_matrices_that_are_symmetric_by_the_way_they_are_made(name):
    """It is seen where they are, and nowhere else."""
    made, p = (SYMMETRIC | OTHERS)[name], np.array([1.0, 0.7, 0.6])
    fun = lambda p, x: np.sum(np.sin(np.linalg.cholesky(made(p, x))))
    derivative = grad(fun)
    step = 1e-6 * np.eye(3)
    want = [(fun(p + h, X) - fun(p - h, X)) / 2e-6 for h in step]
    for _ in range(3):
        np.testing.assert_allclose(derivative(p, X), want, atol=1e-6)
    np.testing.assert_allclose(grad(fun, mode="dynamic")(p, X), want, atol=1e-6)
    trace = Trace()
    with tracing(trace):
        matrix = made(trace.input(0, p), trace.input(1, X))
    assert is_symmetric(matrix.node, trace.graph) == (name in SYMMETRIC)
    assert is_symmetric(matrix.node, trace.graph, inputs=True) == (name in SYMMETRIC)


def calls_of(fun, *args, **options):
    """How many functions of NumPy's and of Python's are called."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        fun(*args, **options)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("options", [{}, {"skew": True}, {"skew": True, "hollow": True}, {"hollow": True}])
@pytest.mark.parametrize("turn", [1.0, 1.0 + 0.5j])
def test_few_calls_where_no_eigenvalues_coincide(options, turn):
    """And what those give, where one of several matrices has eigenvalues that do."""
    rng = np.random.default_rng(0)
    m, w = rng.normal(size=(3, 4, 4)) * turn, np.sort(rng.normal(size=(3, 1, 4)))
    m[2], w[2] = np.eye(4), 1.0
    stacked = linear.over_gaps(m, w, **options)
    for k in range(2):
        np.testing.assert_array_equal(linear.over_gaps(m[k], w[k], **options), stacked[k])
    assert calls_of(linear.over_gaps, m[0], w[0], **options) < 34
    matrix = m[0] + m[0].T.conj()
    for close in (matrix, matrix * (1 + 1e-16 * rng.normal(size=(4, 4)))):
        np.testing.assert_array_equal(linear.of_triangle(m[1], close), m[1])
        assert calls_of(linear.of_triangle, m[1], close) < 25
