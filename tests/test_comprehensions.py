"""Comprehensions that decide: loops like any other, with the names and the order that Python has."""

import numpy as np
import pytest

from symgrad import value_and_grad


def huber(r):
    return 0.5 * r * r if abs(r) < 1.0 else abs(r) - 0.5


def summed(x):
    return sum(huber(v) for v in x)


def in_an_array(x):
    return np.sum(np.array([huber(v) for v in x]) * np.arange(len(x)))


def hinge(x):
    return 0.5 * np.mean([max(0.0, 1.0 - a * b) if a > 0 else a for a, b in zip(x[:10], x[10:], strict=True)])


def rows(x):
    return np.sum(np.array([[huber(a - b) for b in x[:6]] for a in x[6:10]]))


def two_in_a_statement(x):
    i = 3.0
    low, high = min(huber(v) for v in x[:2]), np.sum([i * v if v > 0 else -v for v in x])
    return low + high * i


def named_as_what_it_reads(x):
    v = [huber(u) for u in x]
    v = [u if u > 0.2 else v[0] for u in v]
    return sum(v) + len(v)


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        total += sum([huber(v - 0.1 * total) for v in x[k:]])
    return total


def called(f, x):
    return np.sum(np.array([f(v) if v > 0 else 0.5 * v for v in x]))


def of_functions(x):
    return called(lambda v: v * v, x) + called(np.sin, x)


@pytest.mark.parametrize(
    ("fun", "misses"),
    [
        (summed, 4),
        (in_an_array, 4),
        (hinge, 4),
        (rows, 8),
        (two_in_a_statement, 10),
        (named_as_what_it_reads, 5),
        (in_a_loop, 6),
        (of_functions, 4),
    ],
)
def test_comprehensions_that_decide_are_loops(fun, misses):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).normal(size=(20, 20)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= misses


def own_sum(items):
    return next(iter(items)) * 10.0


def with_its_own_sum(x):
    sum = own_sum
    return sum(huber(v) for v in x)


def after_a_call(x):
    log = []

    def noted(v):
        log.append(len(log))
        return v * log[-1] if v > 0 else v

    return noted(x[0]) + sum([noted(v) for v in x])


def variable_of_its_own(x):
    v = x[0]
    y = [huber(v) for v in x[1:]]
    return v * sum(y) + sum(v if v > 0 else 1.0 for v in x)


def of_late_functions(x):
    made = [lambda: v if v > 0 else -v for v in x[:4]]  # noqa: B023
    return sum(f() for f in made)


def until_one_fails(x):
    try:
        roots = [np.sqrt(v + 1.0) if v > -0.8 else 1.0 / 0 for v in x**2 - 0.9]
    except ZeroDivisionError:
        roots = [x[0]]
    return sum(roots)


def some_left_out(x):
    return sum(huber(v) for v in x if v > 0) + sum(1.0 for v in x if v > 0)


class Model:
    def __init__(self, scale):
        self.scale = scale

    def one(self, v):
        return self.scale * v if v > 0 else v

    def all(self, x):
        return np.array([self.one(v) for v in x])


def by_a_method(x):
    return np.sum(Model(x[0]).all(x))


OTHERS = [with_its_own_sum, after_a_call, variable_of_its_own, of_late_functions, some_left_out, by_a_method]


@pytest.mark.parametrize("fun", [*OTHERS, until_one_fails])
def test_comprehensions_are_what_they_are(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(8, 9)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
