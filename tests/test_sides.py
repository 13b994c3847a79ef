"""Loops with ``if``s in them are done for all iterations at once, and only what an iteration takes counts."""

import random
import re
from math import isfinite

import numpy as np
import pytest
from agreement import few
from hypothesis import assume, example, given
from hypothesis import strategies as st
from test_vectorize import SPECS, lines

from symgrad import grad, hvp, jvp, value_and_grad, vmap
from symgrad.loops import iterables
from symgrad.testing import Program
from symgrad.transform import vectorize

RNG = np.random.default_rng(8)
N = 90
X, Y = RNG.normal(size=(N, 3)), np.sign(RNG.normal(size=N))
PLACES = RNG.integers(0, 5, N)
LOOP = r"(?m)^ *for "


def huber(w):
    total = 0.0
    for i in range(N):
        r = w[i] * Y[i] - 1
        if abs(r) < 1:
            total += 0.5 * r * r
        else:
            total += abs(r) - 0.5
    return total


def hinge(w):
    total = 0.0
    for x, y in zip(X, Y, strict=True):
        margin = y * np.dot(x, w[:3])
        if margin < 1:
            total += 1 - margin
    return total / N


def cutoff(w):
    p, energy = X * w[:3], 0.0
    for i in range(16):
        for j in range(i + 1, 16):
            d = p[i] - p[j]
            r2 = np.dot(d, d)
            if r2 < 1.5:
                s = 1.0 / (r2 + 0.1) ** 3
                energy += s * s - s
    return energy


def written(w):
    out = np.zeros(N)
    for i in range(N):
        if w[i] > 0:
            out[i] = w[i] * 2
        else:
            out[i] = np.exp(w[i])
    return np.sum(out**2)


def written_now_and_then(w):
    out = w * w
    for i in range(N):
        if w[i] > 0.3:
            out[i] = np.sin(w[i])
    return np.sum(out * Y)


def added_to_rows(w):
    f = np.zeros(5)
    for i in range(N):
        if w[i] > 0:
            f[PLACES[i]] += w[i] ** 2
        else:
            f[0] -= w[i]
    return np.sum(f**2)


def chosen_local(w):
    total = 0.0
    for i in range(N):
        if w[i] > 0.5:
            a = np.sin(w[i])
        elif w[i] < -0.5:
            a = w[i] ** 2
        else:
            a = w[i]
        total += a * Y[i]
    return total


def counted(w):
    total, count = 0.0, 0
    for i in range(N):
        if w[i] > 0:
            total += w[i] ** 2
            count += 1
    return total / max(count, 1)


def logarithms(w):
    total = 0.0
    for i in range(N):
        for k in range(2):
            if w[i] > 0:
                total += np.log(w[i]) * np.sqrt(w[i] + k) / w[i]
    return total


def skipping(w):
    total = 0.0
    for i in range(N):
        for j in range(3):
            if w[i] < 0:
                continue
            if X[i, j] > 1:
                continue
            total += np.log(1e-3 + w[i]) * X[i, j]
    return total


def by_index(w):
    total = 0.0
    for i in range(N):
        if i % 2:
            total += np.sin(w[i])
        else:
            total -= w[i] ** 2
    return total


def last_that_passed(w):
    total, last = 0.0, w[0]
    for i in range(N):
        if w[i] > 0.4:
            last = w[i] * Y[i]
        total += w[i] ** 2
    return total * last


ARRAYS = [
    huber,
    hinge,
    cutoff,
    written,
    written_now_and_then,
    added_to_rows,
    chosen_local,
    counted,
    logarithms,
    by_index,
    last_that_passed,
]


def largest(w):
    best = w[0]
    for i in range(1, N):
        if w[i] > best:
            best = w[i]
    return best


def reset(w):
    v, spikes = 0.0, 0.0
    for i in range(N):
        v = 0.9 * v + w[i]
        if v > 1:
            spikes += v
            v = 0.0
    return spikes


def neighbour(w):
    total = 0.0
    for i in range(N):
        if i < N - 1:
            total += w[i] * w[i + 1]
    return total


LOOPS = [largest, reset]


def points():
    yield from RNG.normal(size=(6, N))
    yield np.abs(RNG.normal(size=N)) + 0.6  # all alike
    yield -np.abs(RNG.normal(size=N))
    yield from RNG.normal(size=(3, N))


@pytest.fixture(autouse=True)
def _all_that_can_be_arrays_are(monkeypatch):
    monkeypatch.setattr(vectorize, "WILD", 1)


@pytest.mark.parametrize("fun", [*ARRAYS, *LOOPS, skipping, neighbour])
def test_gives_what_the_function_gives(fun):
    derivative = value_and_grad(fun)
    for w in points():
        value, slope = derivative(w)
        np.testing.assert_allclose(value, fun(w), rtol=1e-12)
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(w), rtol=1e-10, atol=1e-10)
    assert derivative.cache_info().hits


@pytest.mark.parametrize("fun", ARRAYS)
def test_code_is_of_arrays(fun):
    derivative = grad(fun)
    for w in points():
        derivative(w)
    assert not re.search(LOOP, str(derivative.source(w)))


@pytest.mark.parametrize("fun", LOOPS)
def test_what_needs_the_one_before_stays_a_loop(fun):
    derivative = grad(fun)
    for w in points():
        derivative(w)
    assert re.search(LOOP, str(derivative.source(w)))


@pytest.mark.parametrize("fun", ARRAYS)
def test_other_derivatives(fun):
    product, forward, many = hvp(fun), jvp, vmap(grad(fun))
    for w in points():
        v = np.cos(np.arange(N))
        np.testing.assert_allclose(product(w, v), hvp(fun, mode="dynamic")(w, v), rtol=1e-8, atol=1e-8)
        expected = grad(fun, mode="dynamic")(w)
        np.testing.assert_allclose(forward(fun, (w,), (v,))[1], expected @ v, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(many(np.stack([w, w * 0.5]))[0], expected, rtol=1e-9, atol=1e-9)


def test_first_iterations_are_as_others():
    """Tables are no array that the first iteration makes; and a local that only one side assigns, and nobody reads, is left."""
    derivative = grad(cutoff)
    for w in [np.full(N, 0.7), np.linspace(0.5, 1.0, N), np.full(N, 0.9), np.full(N, 0.8)]:
        derivative(w)
    assert derivative.cache_info().hits == 2
    assert "p[0]" not in str(derivative.source(w))


def test_sides_that_are_not_taken_do_not_raise():
    matrices = np.eye(2) + 0.1 * RNG.normal(size=(40, 2, 2))
    matrices[::3] = 0.0  # singular

    def fun(w, ms):
        total = 0.0
        for m in ms:
            if m[0, 0] > 0.2:
                total += np.sum(np.linalg.solve(m, w))
        return total

    derivative, w = grad(fun), np.array([1.0, 2.0])
    for shift in range(6):
        ms = np.roll(matrices, shift, axis=0)
        np.testing.assert_allclose(derivative(w, ms), grad(fun, mode="dynamic")(w, ms))


def of_valid_rows(w, x, valid):
    total = 0.0
    for i in range(len(x)):
        if valid[i]:
            total += np.tanh(x[i] @ w)
    return total


def of_small_margins(w, x, y):
    total = 0.0
    for row, label in zip(x, y, strict=True):
        margin = label * (row @ w)
        if margin < 1:
            total += (1 - margin) ** 2
    return total


def of_valid_rows_again_and_again(w, x, valid):
    for _ in range(4):
        total = 0.0
        for i in range(len(x)):
            if valid[i]:
                total += np.tanh(x[i] @ w)
        w = w * np.cos(total)
    return w @ w


@pytest.mark.parametrize("fun", [of_valid_rows, of_small_margins, of_valid_rows_again_and_again])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_that_are_no_numbers_take_no_part_where_ifs_leave_them_out(fun):
    x, valid, w = X[:40].copy(), np.ones(40), np.ones(3)
    x[7], valid[7] = np.nan, 0.0
    derivative = grad(fun)
    expected = grad(fun, mode="dynamic")(w, x, valid)
    assert np.isfinite(expected).all()
    for _ in range(3):
        np.testing.assert_allclose(derivative(w, x, valid), expected)
    along = lambda w: fun(w, x, valid)
    np.testing.assert_allclose(hvp(along)(w, w), hvp(along, mode="dynamic")(w, w))


def test_random_loops_have_ifs():
    assert sum("if " in "\n".join(lines(random.Random(seed), True)) for seed in range(20)) == 20


@few
@given(st.integers(0, 2**40))
@example(319)
def test_random_sides(seed: int) -> None:
    source = "\n".join(lines(random.Random(seed), True)) + "\n"
    program = Program(source, {name: ("float64", shape) for name, shape in SPECS.items()}, seed)
    every = tuple(range(len(SPECS)))
    derivative = value_and_grad(program.fun, every)
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(vectorize, "WORTH", 0)
        patch.setattr(iterables, "FEWEST", 4)
        for turn in (0, 0, 1, 2, 3, 3):
            args = program.arguments(seed + turn)
            try:
                value = program(*args)
            except (ValueError, IndexError, TypeError):  # a row where a number was, or the other way round
                assume(False)
            assume(isfinite(value) and abs(value) < 1e6)
            _, expected = value_and_grad(program.fun, every, mode="dynamic")(*args)
            scale = 1 + max(np.max(np.abs(part)) for part in expected)
            assume(scale < 1e6)
            found, slopes = derivative(*args)
            np.testing.assert_allclose(found, value, rtol=1e-9)
            for mine, theirs in zip(slopes, expected, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-10 * scale)
