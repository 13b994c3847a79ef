"""What loops in loops compute is kept for the way back, up to so much memory: no loop runs again."""

import ast
import tracemalloc

import numpy as np
import pytest

from symgrad import grad, jvp, value_and_grad, vmap, without
from symgrad.optimize import share

N = 36
RNG = np.random.default_rng(5)


def cholesky(a):
    n = len(a)
    low = np.zeros((n, n))
    for j in range(n):
        low[j, j] = np.sqrt(a[j, j] - low[j, :j] @ low[j, :j])
        for i in range(j + 1, n):
            low[i, j] = (a[i, j] - low[i, :j] @ low[j, :j]) / low[j, j]
    return np.sum(np.log(np.diag(low))) + np.sum(low * np.cos(np.arange(n)))


def shortest_paths(a):
    a = np.abs(a)
    for k in range(len(a)):
        for i in range(len(a)):
            a[i, :] = np.minimum(a[i, :], a[i, k] + a[k, :])
    return np.sum(a**2)


def gram_schmidt(a):
    q, r = np.zeros_like(a), np.zeros_like(a)
    for k in range(len(a)):
        v = a[:, k]
        for j in range(k):
            r[j, k] = q[:, j] @ v
            v = v - r[j, k] * q[:, j]
        r[k, k] = np.sqrt(v @ v)
        q[:, k] = v / r[k, k]
    return np.sum(r**3) + np.sum(q * np.sin(np.arange(len(a))))


def sweeps(a):
    a = a / len(a)
    for t in range(24):
        for i in range(1, len(a) - 1):
            a[i] = a[i] + 0.1 * (a[i - 1] - 2 * a[i] + a[i + 1]) * np.tanh(a[i] * t)
    return np.sum(a**2)


def gauss_jordan(a):
    a, total = a.copy(), 0.0
    for k in range(len(a)):
        total = total + np.log(a[k, k])
        a[k] = a[k] / a[k, k]
        for i in range(len(a)):
            if i != k:
                a[i] = a[i] - a[i, k] * a[k]
    return total + np.sum(a**2)


def two_inner_loops(a):
    """The second one reads what the first one wrote; what is carried on is an array that none of them writes into."""
    a, state = a / len(a), np.ones(len(a))
    for t in range(20):
        for i in range(t, len(a)):
            a[i] = np.sin(a[i]) + 0.1 * state
        for i in range(len(a) - 1):
            state = np.tanh(state + a[i] * a[i + 1])
        a[t] = a[t] * state
    return np.sum(a) + np.sum(state**2)


def three_levels(a):
    a = a / len(a)
    for t in range(3):
        for i in range(1, 18):
            for j in range(1, 18):
                a[i, j] = a[i, j] + 0.2 * np.sin(a[i - 1, j] + a[i, j - 1] * t)
    return np.sum(a**2)


def while_it_moves(a):
    """How often the loop around runs is known when it has run."""
    a, moved = a / len(a), 1.0
    while moved > 1e-3:
        before = a[0, 0]
        for i in range(len(a)):
            a[i] = 0.5 * a[i] + 0.1 * np.sin(a[i - 1])
        moved = abs(a[0, 0] - before)
    return np.sum(a**2)


def by_what_was_read(a):
    """How often the inner loop runs is in an array."""
    ends, a = [3, 20, 11, 0, 34, 7] * 5, a / len(a)
    for t, end in enumerate(ends):
        for i in range(end):
            a[i] = np.cos(a[i] + a[t] * a[i + 1])
    return np.sum(a**2)


FUNCTIONS = [
    cholesky, shortest_paths, gram_schmidt, sweeps, gauss_jordan, two_inner_loops, three_levels, while_it_moves,
    by_what_was_read,
]  # fmt: skip


def given(fun, seed=0, n=N):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T / n + 3 * np.eye(n) if fun in (cholesky, gauss_jordan) else a


def nests(source):
    """How many loops there are in others."""
    loops = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.For)]
    return len({inner for loop in loops for inner in ast.walk(loop) if isinstance(inner, ast.For) and inner is not loop})


@pytest.mark.parametrize("fun", FUNCTIONS)
def test_values_and_derivatives(fun):
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    with without("keep"):
        again = value_and_grad(fun)
    for seed in range(3):
        a = given(fun, seed)
        value, slope = derivative(a)
        known, known_slope = plain(a)
        np.testing.assert_allclose(value, known, rtol=1e-12)
        np.testing.assert_allclose(slope, known_slope, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(slope, again(a)[1], rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(a, given(fun, seed))


@pytest.mark.parametrize("fun", [shortest_paths, two_inner_loops])
def test_no_loop_runs_again(fun):
    with without("keep"):
        again = grad(fun)
    sources = []
    for derivative in (grad(fun), again):
        for seed in range(2):
            derivative(given(fun, seed))
        sources.append(derivative.source(given(fun), fast=True))
    kept, more = map(nests, sources)
    inner = 2 if fun is two_inner_loops else 1
    assert kept == 2 * inner < more


def test_no_more_than_so_much(monkeypatch):
    """What would take more memory is computed again."""
    peaks = []
    for most, loops in ((share.KEPT, 2), (1 << 16, 3)):
        monkeypatch.setattr(share, "KEPT", most)
        derivative = grad(shortest_paths)
        for seed in range(3):
            derivative(given(shortest_paths, seed, 64))
        tracemalloc.start()
        derivative(given(shortest_paths, 3, 64))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert nests(derivative.source(given(shortest_paths, 0, 64), fast=True)) == loops
    assert peaks[0] < 64 * 64 * 4 * (64 * 8 + 128)


@pytest.mark.parametrize("fun", [cholesky, sweeps])
def test_derivatives_of_derivatives_and_batches(fun):
    a, v = given(fun, n=12), RNG.standard_normal((12, 12))
    second, plain = jvp(grad(fun), (a,), (v,))[1], jvp(grad(fun, mode="dynamic"), (a,), (v,))[1]
    np.testing.assert_allclose(second, plain, rtol=1e-8, atol=1e-10)
    several = np.stack([given(fun, seed, 12) for seed in range(3)])
    np.testing.assert_allclose(vmap(grad(fun))(several), [grad(fun)(one) for one in several], rtol=1e-10, atol=1e-12)
