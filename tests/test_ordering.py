"""Python's ``min``, ``max`` and ``sorted`` of traced numbers: no branch for each order."""

from operator import itemgetter

import numpy as np
import pytest

from symgrad import value_and_grad, vmap


def largest(x):
    return max(x, key=abs) ** 2 * min(x.tolist(), key=lambda v: v * v - v)


def nearest(x):
    i = min(range(len(x)), key=lambda i: abs(x[i] - 0.3))
    return x[i] ** 2 * (i + 1)


def of_pairs(x):
    i, v = max(enumerate(x), key=itemgetter(1))
    a, b = min(zip(x, x[::-1], strict=True), key=lambda pair: pair[0] - pair[1] ** 2)
    return i * v + a * b


def of_rows(x):
    rows = x[:6].reshape(3, 2)
    return np.sum(max(rows, key=lambda row: row @ row) * [1.0, 2.0])


def median(x):
    s = sorted(x)
    return s[len(s) // 2] - 0.5 * (s[0] + s[-1]) ** 2


def by_size(x):
    return sum(k * v for k, v in enumerate(sorted(x.tolist(), key=lambda v: -abs(v))))


def downwards(x):
    values = [v * v - v for v in x]
    values.sort(key=lambda v: v - v * v, reverse=True)
    return values[0] - values[1] * values[2]


def permuted(x):
    order = sorted(range(len(x)), key=lambda i: x[i], reverse=True)
    return sum(x[j] * k for k, j in enumerate(order)) * order[0] * x[order[1]]


def of_tuples(x):
    rows = sorted([(v, v * v, i) for i, v in enumerate(x)], key=lambda row: row[1] - row[0])
    return sum(a * b * (i + 1) for a, b, i in rows[:3])


def by_tuples(x):
    """The numbers that come first are alike, at times."""
    total = share = 0.0
    for k, (a, b) in enumerate(sorted(zip(np.round(x), x[::-1], strict=True), reverse=True)):
        share += np.exp(b)
        if b > a:
            total += (k + 1) * a * b * share
    return total


def by_three(x):
    rows = [(np.round(v), i % 3, v * v) for i, v in enumerate(x)]
    rows.sort()
    rows.sort(key=lambda row: (row[1], -row[2]), reverse=True)
    return sum((k + 1) * a * c + i for k, (a, i, c) in enumerate(rows))


def first_of_tuples(x):
    a, b = min(zip(np.round(x), x[::-1], strict=True))
    c, d = max(zip(np.round(x), x[::-1], strict=True))
    return a * b**2 + c * d**3


def weighted_median(x):
    pairs = sorted(zip(x, np.exp(x[::-1]), strict=True))
    total, share = sum([b for _, b in pairs]), 0.0
    for a, b in pairs:
        share += b
        if share >= 0.5 * total:
            return a * total
    return 0.0


def in_a_loop(x):
    total = 0.0
    for _ in range(6):
        x = 0.9 * x - 0.1 * x[::-1] ** 2
        total = total + sorted(x)[2] * max(x, key=lambda v: np.sin(v))
    return total


OF_TUPLES = [by_tuples, by_three, first_of_tuples, weighted_median]
PROGRAMS = [largest, nearest, of_pairs, of_rows, median, by_size, downwards, permuted, of_tuples, *OF_TUPLES, in_a_loop]


@pytest.mark.parametrize("size", [7, 40])
@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda fun: fun.__name__)
def test_no_order_is_a_branch(fun, size):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(2).normal(size=(12, size)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= (6 if fun is of_rows else 4)  # whose rows are no numbers


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda fun: fun.__name__)
def test_numbers_that_are_alike_and_that_are_none(fun):
    """Those alike stay in their order, in reverse, too; NaN is passed over, or not, as Python does.

    By what is NaN, or meets it, a derivative is 0 or NaN where nothing of it was chosen.
    """
    rng = np.random.default_rng(3)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(8):
        x = np.round(rng.normal(size=7))
        if k > 3:
            x[rng.integers(7)] = np.nan
        (value, slope), (_, other) = derivative(x), dynamic(x)
        np.testing.assert_equal(value, fun(x))
        left_out = np.isnan(other) & (slope == 0)
        np.testing.assert_allclose(slope, np.where(left_out, 0, other), rtol=1e-11, atol=1e-13)


def test_keys_are_asked_once_and_in_order():
    def fun(x):
        asked = []

        def key(v):
            asked.append(v)
            return v * v

        found = max(x, key=key) + sorted(["b", "a", "c"], key=lambda name: key({"a": x[0], "b": x[1], "c": x[2]}[name]))[
            0
        ].count("a")
        return found * sum(v * k for k, v in enumerate(asked))

    for x in np.random.default_rng(4).normal(size=(6, 5)):
        assert value_and_grad(fun)(x)[0] == pytest.approx(fun(x), rel=1e-12)


@pytest.mark.parametrize("fun", [largest, nearest, median, by_size, permuted, *OF_TUPLES], ids=lambda fun: fun.__name__)
def test_in_a_batch(fun):
    rows = np.random.default_rng(5).normal(size=(4, 7))
    np.testing.assert_allclose(vmap(fun)(rows), [fun(row) for row in rows], rtol=1e-12)


def test_tuples_with_an_int_in_some_calls():
    def fun(x):
        rows = sorted([(max(v, 0), i) for i, v in enumerate(x)])
        largest, _ = max([(max(v, 0), v) for v in x])
        return (x[0] if type(rows[0][0]) is int else x[1]) + largest * x[2] + (x[3] if isinstance(largest, int) else x[4])

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for i in range(24):
        x = rng.normal(size=7)
        x = -np.abs(x) if i % 5 == 4 else np.abs(x) if i % 7 == 6 else x
        assert derivative(x)[0] == pytest.approx(fun(x), rel=1e-12)
