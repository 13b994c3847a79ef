"""Tables that loops write into, taken back on the way back: the same results as of copies, and no copies."""

import numpy as np
import pytest

from symgrad import grad, hessian, jvp, value_and_grad, without


def cholesky(a):
    n = len(a)
    factor = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s = s - factor[i, k] * factor[j, k]
            if i == j:
                factor[i, j] = np.sqrt(s)
            else:
                factor[i, j] = s / factor[j, j]
    return np.sum(np.sin(factor))


def in_place(a):
    """Every number of a row, several times, by what the row is then."""
    x = np.array(a[0])
    n = len(x)
    for i in range(4 * n):
        k = (3 * i) % n
        x[k] = np.tanh(x @ a[k]) + x[(k + 1) % n] * x[k]
    return np.sum(x**2)


def two_places(a):
    x = np.sin(a)
    for i in range(1, len(a)):
        x[i, 0] = np.sum(x[i - 1] * a[i]) * x[i, 0]
        x[0, i] = np.sum(np.cos(x[:, i])) + x[0, i] ** 2
    return np.sum(x * a)


def rows(a):
    x = a * 1.0
    for i in range(1, len(a)):
        x[i] = np.tanh(x[i - 1] * x[i] + np.sum(x @ a[i]))
    return np.sum(x**2)


def while_it_moves(a):
    x = np.array(a[:, 0])
    i = 0
    while i < 3 * len(x) and np.sum(x * x) < 200.0:
        x[i % len(x)] = 1.1 * x[i % len(x)] + 0.2 * np.sum(np.sin(x) * a[i % len(x)])
        i += 1
    return np.sum(x**3)


def two_tables(a):
    x, y = np.sin(a[0]), np.cos(a[1])
    for i in range(len(a)):
        x[i] = np.sum(x * y * a[i])
        y[len(a) - 1 - i] = np.sum(np.tanh(x) * y)
    return np.sum(x * y)


def left_as_it_was(a):
    """The table is read after the loop, too, and once more by another one that writes into it."""
    x = a * a
    for i in range(1, len(a)):
        x[i, i] = np.sum(np.sin(x)) * a[i, 0]
    y = x * 1.0
    for i in range(1, len(a)):
        x[i, 0] = np.sum(np.sin(x) * a[i])
    return np.sum(x * y)


def in_what_order(a):
    """A table of all stretches of a row, each by how it is taken apart, as of products of several matrices."""
    n = len(a)
    table = np.zeros((n, n))
    for width in range(1, n):
        for i in range(n - width):
            total = a[i, i + width]
            for k in range(i, i + width):
                total = total + np.tanh(table[i, k] - table[k + 1, i + width] * a[k, k])
            table[i, i + width] = total
    return table[0, n - 1] ** 2


def knapsack(a):
    """Two writes to each number, of which the second is read at places that hang on values."""
    values, weights = a[0], (np.abs(a[1]) * 9).astype(int) + 1
    table = np.zeros((len(values) + 1, 15))
    for i in range(1, len(values) + 1):
        for c in range(15):
            table[i, c] = table[i - 1, c]
            if c >= weights[i - 1]:
                table[i, c] = np.logaddexp(table[i - 1, c], table[i - 1, c - weights[i - 1]] + values[i - 1])
    return table[-1, -1]


def two_loops_read_by_one(a):
    """Tables of one loop, and of what it ended with the next one."""
    x, y = np.zeros((len(a), len(a))), np.zeros((len(a), len(a)))
    for i in range(1, len(a)):
        for j in range(1, len(a)):
            total = a[i, j]
            for k in range(j):
                total = total + np.sin(x[i - 1, k] * x[i, k])
            x[i, j] = total
    for i in range(1, len(a)):
        for j in range(1, len(a)):
            total = x[i, j]
            for k in range(i):
                total = total + np.cos(y[k, j - 1]) * x[k, j]
            y[i, j] = total
    return np.sum(y * x)


FUNCTIONS = [
    two_loops_read_by_one, cholesky, in_what_order, knapsack, in_place,
    two_places, rows, while_it_moves, two_tables, left_as_it_was,
]  # fmt: skip


def given(fun, seed=0, size=10):
    a = 0.3 * np.random.default_rng(seed).standard_normal((size, size))
    return a @ a.T + size * np.eye(size) if fun is cholesky else a


@pytest.mark.parametrize("fun", FUNCTIONS)
def test_values_and_derivatives(fun):
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    with without("undo"):
        copying = value_and_grad(fun)
    for seed in range(4):
        a = given(fun, seed)
        value, slope = derivative(a)
        traced_value, traced_slope = plain(a)
        np.testing.assert_allclose(value, traced_value, rtol=1e-12)
        np.testing.assert_allclose(slope, traced_slope, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(slope, copying(a)[1], rtol=1e-12, atol=1e-13)
    assert derivative.cache_info().hits


@pytest.mark.parametrize("fun", [in_place, two_tables])
def test_second_derivatives(fun):
    a, v = given(fun)[:5, :5], np.random.default_rng(1).standard_normal((5, 5))
    second = jvp(grad(fun), (a,), (v,))[1]
    np.testing.assert_allclose(np.einsum("abcd,cd->ab", hessian(fun)(a), v), second, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("fun", [cholesky, in_what_order, knapsack])
def test_nobody_keeps_copies(fun):
    with without("undo", "keep"):
        copying = grad(fun)
    sources = []
    for derivative in (grad(fun), copying):
        for seed in range(4):
            derivative(given(fun, seed, 20))
        sources.append(derivative.source(given(fun, size=20), fast=True))
    assert sources[0].count(".copy()") < sources[1].count(".copy()")


def skipping(a):
    a = a.copy()
    n = len(a)
    for i in range(n - 1):
        if abs(a[i, i]) < 0.2:
            continue
        for j in range(i, n):
            a[j, i:] -= 0.1 * np.sum(a[j, i:]) * a[i, i:]
            if abs(a[j, i]) < 0.2:
                continue
            a[i, i] = np.sqrt(1 + np.sum(a[i, :i] ** 2))
    return np.sum(np.tanh(a))


@pytest.mark.parametrize("n", [5, 6])
def test_two_loops_with_one_body(n):
    derivative, rng = value_and_grad(skipping), np.random.default_rng(n)
    for _ in range(8):
        a = rng.normal(size=(n, n))
        value, slope = derivative(a)
        np.testing.assert_allclose(value, skipping(a), rtol=1e-12)
        np.testing.assert_allclose(slope, value_and_grad(skipping, mode="dynamic")(a)[1], rtol=1e-9, atol=1e-11)
