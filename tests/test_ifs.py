"""What an ``if`` in a loop reads of arrays and writes into them: kept in rows, and written in place."""

import tracemalloc

import numpy as np
import pytest

from symgrad import grad, hvp, value_and_grad
from symgrad.ir import Aval
from symgrad.transform.loop import Loop

N = 60


def one_side(x):
    out = np.zeros((N, x.size))
    for i in range(1, N):
        out[i] = np.sin(x) + 0.1 * np.cos(out[i - 1])
        if i % 3 == 0:
            out[i] = np.cos(out[i] * out[i - 1])
    return np.sum(out**2)


def many_sides(x):
    out = np.zeros((N, x.size))
    for i in range(1, N):
        out[i] = np.sin(x) + 0.1 * np.cos(out[i - 1])
        if i % 3 == 0:
            out[i] = np.cos(out[i] * out[i - 1])
        elif i % 3 == 1:
            out[i] = np.exp(-out[i] * out[i - 1])
        elif i % 5 == 0:
            out[i] = out[i] * out[i - 2]
    return np.sum(out**2)


def on_values(x):
    """Which rows there are is not known beforehand, and some are not there where they are not asked for."""
    out, k = np.ones((N, x.size)), 0
    for i in range(N):
        out[i] = x * (1 + 0.01 * i)
        if np.sin(i * x[0]) > 0.2:
            k = i
        if k + 3 < N:
            out[i] = out[i] * out[k] - 0.1 * out[i] ** 2
        else:
            out[i] = np.tanh(out[i] + out[N - 1 - k])
    return np.sum(np.sin(out))


def out_of_bounds_elsewhere(x):
    out = np.zeros((N, x.size))
    out[0] = x
    for i in range(N + 20):
        if 0 < i < N:
            out[i] = np.cos(out[i - 1]) * x
    return np.sum(out**3)


def two_arrays(x):
    a, b = np.zeros((N, x.size)), np.ones((N, x.size))
    for i in range(1, N):
        if x[i % x.size] > 0.5:
            a[i] = np.sin(b[i - 1]) + x
            b[i] = a[i] * a[i - 1]
        else:
            a[i] = a[i - 1] * 0.9
            b[i] = np.sqrt(1 + a[i] ** 2)
    return np.sum(a * b)


def views(x):
    """What a row was, once it is written over, is what the view shows."""
    out, last = np.zeros((N, x.size)), x
    for i in range(1, N):
        if i % 4 == 0:
            last = out[i - 1]
        out[i - 1] = np.sin(x) * i
        out[i] = 0.5 * last + out[i - 1]
    return np.sum(out**2) + np.sum(last)


def copies(x):
    out, last = np.zeros((N, x.size)), x
    for i in range(1, N):
        if i % 4 == 0:
            last = out[i - 1].copy()
        out[i - 1] = np.sin(x) * i
        out[i] = 0.5 * last + out[i - 1]
    return np.sum(out**2) + np.sum(last)


def elements(x):
    v = np.zeros(4 * N)
    for i in range(2, 4 * N):
        v[i] = x[i % x.size] * 0.9
        if i % 3:
            v[i] = v[i - 1] * x[0] + np.sin(v[i])
        if v[i] > 0.4:
            v[i] = v[i] - v[i - 2] * 0.1
    return np.sum(v**2)


def with_poles(x):
    out = np.ones((N, x.size))
    for i in range(1, N):
        out[i] = x + 0.1 * i
        if i % 2:
            out[i] = np.where(out[i] > 2.0, np.log(out[i] - 1.0), out[i - 1] * 0.5)
        elif i % 3 == 0:
            out[i] = np.sqrt(out[i] * out[i - 1])
    return np.sum(out)


def while_loop(x):
    out, i = np.zeros((N, x.size)), 1
    out[0] = x
    while i < N and out[i - 1, 0] < 50.0:
        if i % 2:
            out[i] = out[i - 1] * 1.02 + 0.1
        else:
            out[i] = np.sin(out[i - 1]) + out[i - 2]
        i += 1
    return np.sum(out**2)


FUNCTIONS = [
    one_side,
    many_sides,
    on_values,
    out_of_bounds_elsewhere,
    two_arrays,
    views,
    copies,
    elements,
    with_poles,
    while_loop,
]


@np.errstate(divide="ignore", invalid="ignore")
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_derivatives_of_what_ifs_read_and_write(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    points = [np.linspace(0.2, 0.9, 7)] * 3 + [rng.uniform(0.2, 1.2, 7) for _ in range(4)]
    for x in points:
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-9, atol=1e-11)
    assert derivative.cache_info().hits


@np.errstate(divide="ignore", invalid="ignore")
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_second_derivatives_of_what_ifs_read_and_write(fun):
    product, step = hvp(fun), 1e-6
    x, t = np.linspace(0.21, 0.93, 7), np.cos(np.arange(7.0))
    slope = grad(fun, mode="dynamic")
    expected = (slope(x + step * t) - slope(x - step * t)) / (2 * step)
    for _ in range(3):
        np.testing.assert_allclose(product(x, t), expected, rtol=1e-5, atol=1e-5 * np.max(np.abs(expected)))


@pytest.mark.parametrize("fun", [one_side, many_sides, two_arrays])
def test_ifs_in_loops_keep_rows(fun):
    """Of an array that is filled row by row, an iteration keeps what it reads, whichever side it takes."""
    derivative, x = grad(fun), np.linspace(0.2, 0.9, 500)
    for _ in range(3):
        derivative(x)
    tracemalloc.start()
    derivative(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * N * x.nbytes  # with whole arrays, it is 60 times as much


@pytest.mark.parametrize("fun", [one_side, many_sides])
def test_ifs_in_loops_write_in_place(fun):
    derivative, x = grad(fun), np.linspace(0.2, 0.9, 500)
    for _ in range(3):
        derivative(x)
    forward = str(derivative.source(x, fast=True)).split("# backward")[0]
    assert "out.copy()" not in forward
    assert "(60, 500)" not in forward.split("    for ")[1]


def test_traced_loops_leave_alone_what_others_hold():
    """A loop that is run while it is traced writes into what it made itself, not into what it was given."""
    x = np.linspace(0.2, 0.9, 500)

    def fun(x):
        before = np.zeros((N, 500)) + x
        after = before + 0.0
        for i in range(1, N):
            if i % 2:
                after[i] = np.sin(x) + after[i - 1]
            else:
                after[i] = x * after[i - 1]
        return np.sum(after * before)

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for _ in range(3):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-9)


def counts_rows(x):
    out, often = np.zeros((N, x.size)), 0
    for i in range(1, N):
        out[i] = np.where(x > 0.3, np.sqrt(x), 0.0) * out[i - 1] + x
        if np.sum(out[i - 1]) > 3.0:
            out[i] = 0.5 * out[i]
            often += 1
    return np.sum(out**2) * often


def test_first_calls_run_no_loop_that_keeps_whole_arrays(monkeypatch):
    """A counter, of which the derivative knows nothing, and masks of rows are no reason to compute what each iteration began
    with before the code is there that keeps less."""
    saved = []
    iterated = Loop._iterated

    def noted(loop, order, *args):
        if type(order) is not tuple:  # two iterations, that tell what the results are like
            saved.append([node.aval.shape for node in loop.body.saved if isinstance(node.aval, Aval)])
        return iterated(loop, order, *args)

    monkeypatch.setattr(Loop, "_iterated", noted)
    derivative, x = value_and_grad(counts_rows), np.linspace(0.2, 0.9, 500)
    value, slope = derivative(x)
    assert (N, 500) not in [shape for shapes in saved for shape in shapes]
    assert value == pytest.approx(counts_rows(x))
    np.testing.assert_allclose(slope, value_and_grad(counts_rows, mode="dynamic")(x)[1], rtol=1e-9)


def test_what_an_if_adds_to_a_total_is_added_in_its_place():
    """Not to zeros that are added then, for every iteration; nor are masks made of what nobody asks for."""

    def drained(w):
        level, spent = 1.0, 0.0
        for t in range(200):
            if level > 0.5:
                level -= 0.1 * w[t]
                spent += level**2
            else:
                level += 0.3
        return spent

    derivative, dynamic = grad(drained), grad(drained, mode="dynamic")
    for w in np.random.default_rng(0).normal(size=(5, 200)):
        np.testing.assert_allclose(derivative(w), dynamic(w), rtol=1e-12)
    backward = derivative.source(w).partition("# backward")[2]
    assert "zeros(200)" in backward.partition("for ")[0]
    assert "zeros" not in backward.partition("for ")[2]
    assert "bool" not in backward
