"""Loops over pairs that decide on both indices, or run as far as the index around tells, with totals in between: one code."""

import itertools
import random
import re
import types
from collections.abc import Iterator

import numpy as np
import pytest
from agreement import agrees_with_dynamic, few, program_of
from hypothesis import given
from hypothesis import strategies as st

from symgrad import grad, value_and_grad
from symgrad.loops import rolling

X = np.random.default_rng(0).normal(size=24)
MANY = np.random.default_rng(2).normal(size=40)
P = np.random.default_rng(1).normal(size=(18, 3))


def others(x):
    """Lagrange's weights are such products."""
    s = 0.0
    for i in range(len(x)):
        a = 1.0
        for j in range(len(x)):
            if i != j:
                a *= np.tanh(x[i] - x[j] + 0.1)
        s += np.sin(a)
    return s


def left_out(x):
    s = 0.0
    for i in range(len(x)):
        a = 0.0
        for j in range(len(x)):
            if j == i:
                continue
            a += np.sin(x[i] * x[j])
        s += np.sin(a)
    return s


def below(x):
    s = 0.0
    for i in range(len(x)):
        a = 0.0
        for j in range(len(x)):
            if j < i:
                a += np.sin(x[i] * x[j])
        s += np.sin(a)
    return s


def up_to(x):
    s = 0.0
    for i in range(len(x)):
        a = 0.0
        for j in range(i):
            a += np.sin(x[i] * x[j]) * j
        s += np.sin(a)
    return s


def down_from(x):
    s = 0.0
    for i in range(len(x)):
        a = 0.0
        for j in range(i - 1, -1, -1):
            a -= np.sin(x[i] * x[j])
        s += np.sin(a)
    return s


def behind(x):
    s = 0.0
    for i in range(len(x)):
        a = x[i]
        for j in range(i + 1, len(x)):
            a += np.sqrt((x[i] - x[j]) ** 2 + 0.1)
        s += np.sin(a)
    return s


def roots_of_others(x):
    """Where ``i == j`` the root has no slope, and is not taken."""
    s = 0.0
    for i in range(len(x)):
        a = 0.0
        for j in range(len(x)):
            if i != j:
                a += np.sqrt(np.abs(x[i] - x[j]))
        s += np.sin(a)
    return s


def folded_over(x):
    """``i - j`` is out of bounds where it is not read."""
    s = 0.0
    for i in range(len(x)):
        a = 0.0
        for j in range(i + 1):
            a += x[j] * x[i - j]
        s += np.sin(a)
    return s


def goes_on(x):
    s = 0.0
    for i in range(len(x)):
        a = 0.0
        for j in range(i + 1, len(x)):
            a = np.sin(a + x[i] * x[j])
        s += np.sin(a)
    return s


def forces(p):
    f = np.zeros_like(p)
    for i in range(len(p)):
        a = np.zeros(3)
        for j in range(len(p)):
            if i != j:
                d = p[j] - p[i]
                a += d / (d @ d) ** 1.5
        f[i] = a
    return np.sum(np.sin(f))


def steps(p):
    p, v = p.copy(), 0.1 * p[::-1]
    for _ in range(30):
        for i in range(len(p)):
            a = np.zeros(3)
            for j in range(len(p)):
                if i != j:
                    d = p[j] - p[i]
                    a += d / (d @ d + 0.1) ** 1.5
            v[i] += 0.01 * a
        p += 0.01 * v
    return np.sum(p**2)


AT_ONCE = [(left_out, X), (below, X), (up_to, X), (down_from, X), (behind, X), (forces, P), (roots_of_others, MANY)]
SHORT = [*AT_ONCE, (others, X), (goes_on, X), (folded_over, X), (steps, P[:6])]


@pytest.mark.parametrize(("fun", "x"), SHORT)
def test_few_lines_give_what_the_function_gives(fun, x):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(5):
        value, slope = derivative(x + 0.1 * k)
        np.testing.assert_allclose(value, fun(x + 0.1 * k), rtol=1e-12)
        np.testing.assert_allclose(slope, dynamic(x + 0.1 * k)[1], rtol=1e-9, atol=1e-10)
    assert derivative.cache_info().hits >= 2
    assert len(derivative.source(x).splitlines()) < 50


@pytest.mark.parametrize(("fun", "x"), AT_ONCE)
def test_no_loop_is_left(fun, x):
    assert not re.search(r"(?m)^ *for ", grad(fun).source(x))


def band(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if abs(i - j) == 1:
                s += x[i] * x[j]
            elif i == j:
                s += x[i] ** 3
    return s


def test_what_few_of_the_pairs_do_is_written_out():
    text = grad(band).source(X)
    assert "np.where" not in text
    assert "if " not in text
    np.testing.assert_allclose(grad(band)(X), grad(band, mode="dynamic")(X), rtol=1e-12)


TESTS = ["i != j", "j < i", "j > i", "i + j < n", "(i + j) % 2 == 0", "abs(i - j) > 2", "i >= j and j > 0", "j != i + 1"]
RANGES = ["n", "i", "i + 1", "i, n", "i + 1, n", "n - 1, i, -1", "i, -1, -1", "0, i, 2", "i % 3, n", "1, n - i", "i // 2, i"]
ATOMS = ["x[i]", "x[j]", "w[j]", "x[n - 1 - j]", "float(j)", "(i + 1.0)", "(x[i] - x[j])", "m[i, j]", "m[j, i]", "a"]
WAYS = ["({})", "np.sin({})", "np.exp(-({}) ** 2)", "np.sqrt(({}) ** 2 + 0.1)", "1.0 / (9.0 + np.sin({}))", "({}) ** 2"]
LINES = [
    "a += {}",
    "a -= {}",
    "a = np.sin(a + {})",
    "y[i] += {}",
    "y[j] += {}",
    "v += {} * u",
    "b[i, j] = {}",
    "top = max(top, {})",
]


def lines(rng: random.Random) -> Iterator[str]:
    """The lines of a nest of loops that knows which pairs do something, or how far it goes."""

    def term() -> str:
        both = f"{rng.choice(ATOMS)} {rng.choice('+-*')} {rng.choice(ATOMS)}"
        return rng.choice(WAYS).format(both)

    def line() -> str:
        return rng.choice(LINES).format(term())

    yield "def program(x, w, m):"
    yield "    n, s, y, b, u = len(x), 0.0, np.zeros(len(x)), np.zeros((len(x), len(x))), np.array([1.0, -0.5])"
    yield "    for i in range(n):"
    yield f"        a, top, v = {rng.choice(['0.0', '1.0', 'x[i]'])}, -1.0, np.zeros(2)"
    yield f"        for j in range({rng.choice(RANGES)}):"
    if rng.random() < 0.6:
        yield f"            if {rng.choice(TESTS)}:"
        yield f"                {line()}"
        if rng.random() < 0.3:
            yield "            else:"
            yield f"                {line()}"
    else:
        yield f"            {line()}"
    yield "        s = s + np.sin(a) + 0.1 * np.tanh(top) + np.sum(v)"
    yield "    return s + np.sum(np.sin(y)) + np.sum(b * np.cos(m))"


@few
@given(st.integers(0, 2**40))
def test_random_nests(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.choice([5, 8])
    program = program_of(lines(rng), {"x": (n,), "w": (n,), "m": (n, n)}, seed)
    with pytest.MonkeyPatch.context() as patch:  # as long ones are done
        patch.setattr(rolling, "RANGED", 4)
        patch.setattr(rolling, "OFTEN", 4)
        agrees_with_dynamic(program, calls=4)


def near(r, end):
    if r >= end:
        return 0.0
    return 0.5 * (1.0 + np.cos(np.pi * r / end))


class Near:
    end = 2.5

    @staticmethod
    def static(r, end):
        return 0.0 if r >= end else 0.5 * (1.0 + np.cos(np.pi * r / end))

    def method(self, r, end):
        if r >= end:
            return 0.0
        return 0.5 * (1.0 + np.cos(np.pi * r / end))


NEAR, TABLE, SPACE = Near(), {"near": near}, types.SimpleNamespace(near=near)


def by_name(x, e=0.0):
    for i, j in itertools.combinations(range(len(x)), 2):
        e += near(np.sqrt(np.sum((x[i] - x[j]) ** 2)) + 0.5, 2.5)
    return e


def by_object(x, e=0.0):
    for i, j in itertools.combinations(range(len(x)), 2):
        e += NEAR.method(np.sqrt(np.sum((x[i] - x[j]) ** 2)) + 0.5, 2.5)
    return e


def by_class(x, e=0.0):
    for i, j in itertools.combinations(range(len(x)), 2):
        e += Near.static(np.sqrt(np.sum((x[i] - x[j]) ** 2)) + 0.5, 2.5)
    return e


def by_table(x, e=0.0):
    for i, j in itertools.combinations(range(len(x)), 2):
        e += TABLE["near"](np.sqrt(np.sum((x[i] - x[j]) ** 2)) + 0.5, 2.5)
    return e


def by_module(x, e=0.0):
    for i, j in itertools.combinations(range(len(x)), 2):
        e += SPACE.near(np.sqrt(np.sum((x[i] - x[j]) ** 2)) + 0.5, 2.5)
    return e


def by_local(x, e=0.0):
    one = Near()
    for i, j in itertools.combinations(range(len(x)), 2):
        e += one.method(np.sqrt(np.sum((x[i] - x[j]) ** 2)) + 0.5, 2.5)
    return e


@pytest.mark.parametrize("fun", [by_name, by_object, by_class, by_table, by_module, by_local])
def test_functions_that_decide_are_found_wherever_they_are(fun):
    derivative, dynamic, rng = grad(fun), grad(fun, mode="dynamic"), np.random.default_rng(0)
    for _ in range(12):
        x = np.cumsum(rng.uniform(0.6, 1.2, 6))[:, None] * np.ones(3) / 1.7 + 0.2 * rng.normal(size=(6, 3))
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses <= 3


def boosted(stumps, x):
    """Of so few iterations, the first is another one: the array is one of plain numbers."""
    out = np.zeros(len(x))
    for left, right, at in stumps:
        for i in range(len(x)):
            out[i] += left if x[i] < at else right
    return np.sum((out - np.sin(x)) ** 2)


@pytest.mark.parametrize("size", [4, 5, 6])
def test_short_runs_are_loops_as_others_tell(size):
    derivative, dynamic, rng = grad(boosted), grad(boosted, mode="dynamic"), np.random.default_rng(0)
    for _ in range(14):
        args = rng.normal(size=(6, 3)), rng.normal(size=size)
        np.testing.assert_allclose(derivative(*args), dynamic(*args), rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses <= 8
