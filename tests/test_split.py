"""Loops in loops: what stays in all iterations of the outer one is computed before it; rows are read, written and added to
without the array going round."""

import ast

import numpy as np
import pytest

from symgrad import grad, value_and_grad, without

N, STEPS = 30, 12
RNG = np.random.default_rng(4)


def thomas(a, b, c, d):
    """The solution of a tridiagonal system."""
    n = len(d)
    cp, dp, x = np.zeros(n), np.zeros(n), np.zeros(n)
    cp[0], dp[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def diffusion(u, k):
    """Backward Euler steps."""
    n = len(u)
    for _ in range(STEPS):
        u = thomas(-k * np.ones(n), 1 + 2 * k, -k * np.ones(n), u)
    return np.sum(u * np.cos(np.arange(n)))


def filtered(u, k):
    """A gain that hangs on no measurement, beside a state that does."""
    total = 0.0
    for r in range(STEPS):
        p, s = 1.0, 0.1 * r
        for i in range(len(u)):
            p = 0.9 * p + k[i] ** 2 / (1.0 + p)
            s = s + p / (p + 0.5) * (u[i] * np.cos(s) - s)
        total = total + s * p
    return total


def rows(u, k):
    """Arrays that stay, and what is written and read again."""
    v = u.copy()
    for _ in range(STEPS):
        w = np.zeros((5, len(u)))
        for i in range(5):
            w[i] = np.sin(k * i) * v + np.exp(-(k**2)) * i
        v = 0.1 * v + np.tanh(w[0] + w[4] * w[2])
    return np.sum(v * k)


def alone(u, k):
    """All of a loop stays."""
    total = 0.0
    for r in range(STEPS):
        s = 0.3
        for i in range(len(k)):
            s = np.sin(s * k[i]) + 0.1
        total = total + s * u[r]
    return total


def counted(u, k):
    """The index of the loop around is no number that stays."""
    total = 0.0
    for r in range(STEPS):
        s = 0.3
        for i in range(r, len(k)):
            s = np.sin(s * k[i]) + 0.1
        total = total + s * u[r]
    return total


PROGRAMS = [diffusion, filtered, rows, alone, counted]


def divisions(source):
    """How many there are in loops in loops."""
    tree = ast.parse(source)
    outer = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    inner = [node for loop in outer for node in ast.walk(loop) if isinstance(node, ast.For) and node is not loop]
    return sum([isinstance(node, ast.Div) for loop in inner for node in ast.walk(loop)])


@pytest.mark.parametrize("n", [N, 150])
@pytest.mark.parametrize("fun", PROGRAMS)
def test_what_stays_is_computed_once(fun, n):
    u, k = RNG.uniform(0.2, 1.0, (2, n))
    derivative, dynamic = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    with without("split"):
        other = value_and_grad(fun, (0, 1))
    for _ in range(4):
        u, k = RNG.uniform(0.2, 1.0, (2, n))
        want, slopes = dynamic(u, k)
        for one in (derivative, other):
            value, found = one(u, k)
            np.testing.assert_allclose(value, want, rtol=1e-12)
            for mine, theirs in zip(found, slopes, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12 * np.abs(theirs).max())
    if fun in (diffusion, filtered):
        assert divisions(derivative.source(u, k, fast=True)) < divisions(other.source(u, k, fast=True))


def test_nothing_is_computed_before_a_loop_that_does_not_run():
    def fun(x, count):
        total = np.sum(x)
        for _ in range(count):
            s = 1.0
            for i in range(20):
                s = s / x[i]
            total = total + s * total
        return total

    derivative = grad(fun)
    zeros = np.zeros(20)
    for _ in range(4):
        np.testing.assert_allclose(derivative(zeros, 0), np.ones(20))
        x = RNG.uniform(0.9, 1.1, 20)
        np.testing.assert_allclose(derivative(x, 6), grad(fun, mode="dynamic")(x, 6), rtol=1e-10)


def seidel(b, w):
    n = len(b)
    u = np.zeros((n, n))
    for _ in range(8):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                u[i, j] = (1 - w) * u[i, j] + w * 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + b[i, j])
    return np.sum(u * u)


def steps(u, w):
    """Arrays that go round whole, and a sweep through their elements in each step."""
    v = np.cos(u)
    for _ in range(6):
        v, s = np.sin(v[::-1] + w * u), 0.0
        new = np.zeros(len(v))
        for i in range(len(v)):
            s = 0.5 * s + v[i] / (1.0 + s * s)
            new[i] = s
        v = new * u
    return np.sum(v)


@pytest.mark.long
@pytest.mark.parametrize(("fun", "shape"), [(seidel, (14, 14)), (steps, (150,))])
def test_long_arrays_are_lists_while_loops_run(fun, shape):
    derivative, dynamic = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    for _ in range(4):
        b = RNG.uniform(0.1, 1.0, shape)
        for mine, theirs in zip(derivative(b, 1.2), dynamic(b, 1.2), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    assert ".tolist()" in derivative.source(b, 1.2, fast=True)


def test_rows_that_are_set_to_a_number_do_not_go_round():
    def fun(x, k):
        y = x.copy()
        total = 0.0
        for i in range(1, len(x)):
            total = np.sin(total * k + y[i])
            y[i] = 0.5
        return total + np.sum(y * x) + y[0]

    derivative = value_and_grad(fun, (0, 1))
    for n in (12, 12, 12, 120, 120, 120):
        x = RNG.uniform(0.2, 1.0, n)
        value, slopes = derivative(x, 0.3)
        want, expected = value_and_grad(fun, (0, 1), mode="dynamic")(x, 0.3)
        assert value == pytest.approx(want, rel=1e-12)
        np.testing.assert_allclose(slopes[0], expected[0], rtol=1e-10)
        assert slopes[1] == pytest.approx(expected[1], rel=1e-10)
