"""Slices whose ends move with a loop: what is computed of them is computed of slices, without zeros around them."""

import numpy as np
import pytest

from symgrad import grad, jvp, value_and_grad, without
from symgrad.tracing import trace

N = 14


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Traces are long from the first nodes on."""
    monkeypatch.setattr(trace, "LONG", 10)


def lower_upper(a):
    a = a.copy()
    for k in range(len(a)):
        for i in range(k + 1, len(a)):
            m = a[i, k] / a[k, k]
            a[i, k:] = a[i, k:] - m * a[k, k:]
    return np.sum(np.log(np.abs(np.diag(a))))


def cholesky(a):
    low = np.zeros_like(a)
    for j in range(len(a)):
        low[j, j] = np.sqrt(a[j, j] - low[j, :j] @ low[j, :j])
        for i in range(j + 1, len(a)):
            low[i, j] = (a[i, j] - low[i, :j] @ low[j, :j]) / low[j, j]
    return np.sum(low**2) + low[-1, 0]


def by_columns(a):
    a = a.copy()
    for k in range(len(a)):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        for j in range(k + 1, len(a)):
            a[j:, j] = a[j:, j] - a[j:, k] * a[j, k]
    return np.sum(np.tril(a) ** 3)


def products_of_what_is_computed(a):
    """Rows that begin and end in the middle are multiplied, after something elementwise."""
    a, x = a / 9, np.zeros(len(a))
    for i in range(1, len(a) - 1):
        x[i] = (0.2 * np.sin(a[i, i:-1])) @ (a[i - 1, i:-1] + 1.0) + np.dot(a[i, :i] * x[:i], x[:i])
        a[i + 1, i:] = np.tanh(a[i, i:] * x[i]) + a[i + 1, i:]
    return np.sum(a * a) + np.sum(x)


def read_whole_as_well(a):
    """Of some slices, more than the same slice is read."""
    a, total = a.copy(), 0.0
    for i in range(1, len(a)):
        part = a[i, :i] * 2.0
        total = total + np.sum(part) + np.sum(a[i, i:] ** 2) + np.max(part)
        a[i, :i] = part - 0.1 * a[i - 1, :i]
        a[i, : i + 1] = a[i, : i + 1] + np.exp(-a[i - 1, : i + 1])
    return total + np.sum(np.sin(a))


def two_ends(a):
    """One value is read by slices with other ends."""
    a = a / 4
    for i in range(2, len(a)):
        row = np.cos(a[i - 1, :i])
        a[i, :i] = a[i, :i] + row
        a[i, : i - 1] = a[i, : i - 1] * row[: i - 1]
    return np.sum(a**2)


def blocks(a):
    """Slices of several rows."""
    a = a.copy()
    for i in range(1, len(a)):
        a[:i, :] = a[:i, :] + 0.1 * np.sin(a[:i, :] * a[i, 0])
        a[i:, i] = a[i:, i] - 0.1 * a[i:, 0] * a[0, i]
    return np.sum(a**2)


FUNCTIONS = [
    lower_upper, cholesky, by_columns, products_of_what_is_computed, read_whole_as_well, two_ends, blocks,
]  # fmt: skip


def given(seed=0, n=N):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T / n + 3 * np.eye(n)


@pytest.mark.filterwarnings("error")
@pytest.mark.whole
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_values_and_derivatives(fun):
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    with without("uncut"):
        cut = value_and_grad(fun)
    for seed in range(4):
        a = given(seed)
        value, slope = derivative(a)
        known, known_slope = plain(a)
        np.testing.assert_allclose(value, known, rtol=1e-12)
        np.testing.assert_allclose(slope, known_slope, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(slope, cut(a)[1], rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(a, given(seed))
    assert derivative.cache_info().hits


@pytest.mark.parametrize("fun", [lower_upper, cholesky])
def test_nothing_is_cut(fun):
    with without("uncut"):
        cut = grad(fun)
    sources = []
    for derivative in (grad(fun), cut):
        for seed in range(2):
            derivative(given(seed))
        sources.append(derivative.source(given(), fast=True))
    assert "runtime.cut(" not in sources[0]
    assert "runtime.cut(" in sources[1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("beyond", [np.nan, np.inf, 1e308])
def test_what_is_beyond_is_not_computed(beyond):
    def fun(a):
        b = a.copy()
        for k in range(1, len(b)):
            m = b[k, 0] / b[0, 0]
            b[k, : k - 1] = np.exp(b[k, : k - 1]) - m * b[k - 1, : k - 1] * np.sqrt(b[k, : k - 1] ** 2 + 4)
        return np.sum(np.tril(b, -1) ** 2)

    derivative, plain = grad(fun), grad(fun, mode="dynamic")
    for seed in range(4):
        a = np.tril(np.abs(given(seed)) / 4, -1)
        known = plain(a + np.eye(N))
        a[np.triu_indices(N, 0)] = beyond
        a[0, 0] = 1.0
        slope = derivative(a)
        np.testing.assert_allclose(slope[np.tril_indices(N, -1)], known[np.tril_indices(N, -1)], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("fun", [lower_upper, cholesky])
def test_second_derivatives(fun):
    a, v = given(n=8), np.random.default_rng(5).standard_normal((8, 8))
    second = [jvp(grad(fun, mode=mode), (a,), (v,))[1] for mode in ("auto", "dynamic")]
    np.testing.assert_allclose(second[0], second[1], rtol=1e-8, atol=1e-10)


def functions_of_what_is_left(x, a):
    """A list would hold what is computed of ``u[i:]``, which is read with the same ends on the way back."""
    u = x.copy()
    for i in range(len(x)):
        for j in range(i):
            u[j] = np.tanh(u[j] + 0.1 * u[i])
        u[i] -= np.tanh(np.dot(np.cos(u[i:]), np.cos(np.sin(a[i:, i]))) + x[i])
    return np.sum(np.sin(u))


def test_lists_hold_no_slices():
    slope, theirs = grad(functions_of_what_is_left), grad(functions_of_what_is_left, mode="dynamic")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, a = rng.normal(size=40), rng.normal(size=(40, 40))
        np.testing.assert_allclose(slope(x, a), theirs(x, a), rtol=1e-9, atol=1e-12)
        slope.compiled(x, a)(x, a)
    assert slope.cache_info().hits >= 1
