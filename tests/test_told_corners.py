"""Corners of loops that run as often as arguments tell: each program against the plain run and dynamic mode, often called."""

import types

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad

SERIES = [np.random.default_rng(seed).normal(size=8) for seed in range(14)]


def against_plain(fun, series=SERIES):
    """``fun`` at one point after the other; the derivative that was made of the first ones answers the last ones."""
    derivative = value_and_grad(fun)
    for x in series:
        right_at(derivative, fun, x, value=(5e-12, 5e-15), slope=(1e-9, 1e-12))
    return derivative


def last_place(x):
    i = -1
    for i, _ in enumerate(x[x > 0]):  # noqa: B007
        pass
    return x[0] * i


def last_pair(x):
    s, p = 0.0, (0, 0.0)
    for p in enumerate(x[x > 0]):
        s += p[1]
    return s + x[1] * p[0]


def last_of_inner(x):
    s, i = 0.0, 0
    for k in range(3):
        for i, v in enumerate(x[x > 0.2 * k]):  # noqa: B007
            s += v
        s += i * x[k]
    return s


def two_at_once(x):
    s = 0.0
    for i, (a, b) in enumerate(zip(x[x > 0], x[x > 0], strict=True)):
        s += a * b * i
    return s


def neighbours(x):
    s, m = 0.0, x[x > 0]
    for i, (a, b) in enumerate(zip(m[:-1], m[1:], strict=True)):  # noqa: RUF007
        s += i * b * a
    return s


def twice_counted(x):
    s = 0.0
    for i, (j, b) in enumerate(enumerate(x[x > 0])):
        s += i * b * j
    return s


@pytest.mark.parametrize("fun", [last_place, last_pair, last_of_inner, two_at_once, neighbours, twice_counted])
def test_what_enumerate_gives_is_there_after_the_loop(fun):
    against_plain(fun)


def positive(x):
    return [v for v in x if v > 0]


def at_most(x):
    items, m, t = positive(x), int(abs(x[7]) * 2), 0.0
    for i in range(min(m, len(items))):
        t = t * 0.5 + items[i]
    return t


def one_or_the_other(x):
    a, b, t = int(abs(x[6]) * 3), int(abs(x[7]) * 3), 0.0
    for i in range(a if x[0] > 0 else b):
        t = t * 0.5 + x[i % 5] * a
    return t


def chosen_before(x):
    a, b, t = int(abs(x[6]) * 3), int(abs(x[7]) * 3), 0.0
    n = a
    if x[0] > 0:
        n = b
    if x[1] > 0.5:
        n = 3
    for i in range(n):
        t = t * 0.5 + x[i % 5] * b + n
    return t


def chosen_within(x):
    a, b, t = int(abs(x[6]) * 3), int(abs(x[7]) * 3), 0.0
    for k in range(3):
        for i in range(max(a, b) if x[k] > 0 else 4):
            t = t * 0.5 + x[i % 5] * b
    return t


@pytest.mark.parametrize("fun", [at_most, one_or_the_other, chosen_before, chosen_within])
def test_a_range_ends_where_this_call_says(fun):
    against_plain(fun)


def pairs(x):
    return [np.array([v, v]) for v in x if v > 0]


def written_each(x):
    rows = pairs(x)
    for i in range(len(rows)):
        rows[i][0] = x[0]
    return sum(row[0] for row in rows)


def written_by_name(x):
    rows = pairs(x)
    for i in range(len(rows)):
        row = rows[i]
        row[0] = x[0]
    return sum(row[0] for row in rows)


def summed_up(x):
    rows = pairs(x)
    for i in range(1, len(rows)):
        rows[i][0] += rows[i - 1][0]
    return sum(row[0] for row in rows)


def filled(x):
    rows = pairs(x)
    for i in range(len(rows)):
        rows[i].fill(2.0)
    return sum(row[0] for row in rows) * x[0]


def of_views(x):
    rows = [x[k : k + 2] * 2 for k in range(7) if x[k] > 0]
    for i in range(len(rows)):
        rows[i][0] = x[0]
    return sum(row[0] for row in rows)


def by_out(x):
    rows = pairs(x)
    for i in range(len(rows)):
        np.multiply(rows[i], x[0], out=rows[i])
    return sum(row[0] for row in rows)


@pytest.mark.parametrize("fun", [written_each, written_by_name, summed_up, filled, of_views, by_out])
def test_what_is_written_into_an_item_by_place_is_in_the_list(fun):
    against_plain(fun, [x if np.any(x > 0) else np.abs(x) for x in SERIES])


def returned_within(x):
    t = x[0]
    for _ in range(int(abs(x[1]) * 10)):
        for j in range(2):
            if x[2] > j:
                return t
        t = t + 0.1
    return t * 2


def returned_of_some(x):
    t = x[0]
    for _ in x[x > 0]:
        for j in range(3):
            t = t * 0.9
            if t > 1 + j:
                return t
    return t * 2


def returned_of_many(x):
    t = x[0]
    for i in range(int(abs(x[1]) * 10)):
        for _ in range(i):
            t = t * 1.1
            if t > 5:
                return t
    return t * 2


@pytest.mark.parametrize("fun", [returned_within, returned_of_some, returned_of_many])
def test_a_return_leaves_both_loops(fun):
    against_plain(fun)


HELD = types.SimpleNamespace(rate=1.5)


def whole_over_held(x):
    s = 0.0
    for v in x:
        t = 1.0 if v > 0 else v
        if v > 0:
            s += t / HELD.rate
        else:
            s += v
    return s


def ints_over_held(x):
    s = 0.0
    for v in x:
        t = 0
        if v > 0:
            t = t + 1
        elif v < -1:
            t = v * 1.5
        s += t / HELD.rate if t > 0.1 else v
    return s


@pytest.mark.parametrize("fun", [whole_over_held, ints_over_held])
def test_a_zero_that_somebody_else_holds_divides_as_it_does(fun, monkeypatch):
    derivative = value_and_grad(fun)
    for k, x in enumerate(SERIES):
        monkeypatch.setattr(HELD, "rate", 0.0 if k in (6, 7, 11) else 1.5 + 0.5 * (k % 3))
        try:
            expected = fun(x)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                derivative(x)
        else:
            assert derivative(x)[0] == pytest.approx(expected, rel=1e-12)


def powers(x):
    s = 0.0
    for v in x:
        for a in [1, -2.0]:
            if v > 0:
                s += abs(a**0.5) * v
    return s


def squares(x):
    s = 0.0
    for v in x:
        for a in [1, 1e100]:
            if v > 0:
                s += a**2 * v
    return s


@pytest.mark.parametrize("fun", [powers, squares])
def test_powers_of_ints_beside_floats_are_as_python_has_them(fun):
    against_plain(fun)


def caught_reads(x):
    t = x[0]
    for i in range(int(abs(x[1]) * 8)):
        try:
            _ = x[i]
        except IndexError:
            t = t * 2
    return t


def caught_used(x):
    t = x[0]
    for i in range(int(abs(x[1]) * 8)):
        try:
            t = t + x[i] ** 2
        except IndexError:
            t = t * 1.5
    return t


def caught_writes(x):
    t, y, i = x[0], np.zeros(4), 0
    while i < abs(x[1]) * 8:
        try:
            y[i] = x[1]
        except IndexError:
            t = t * 2
        i += 1
    return t + np.sum(y**2)


def caught_around(x):
    i = 0
    try:
        while i < abs(x[1]) * 12:
            _ = x[i]
            i += 1
    except IndexError:
        return x[0] * 3
    return x[0]


def caught_always(x):
    t, z = x[0], np.concatenate([x] * 5)
    for i in range(60):
        try:
            _ = z[i]
        except IndexError:
            t = t * 1.1
    return t


def caught_past_the_end(x):
    t = x[0]
    for i in range(len(x)):
        for j in range(-3, 4):
            try:
                t = t + x[i] * x[i + j] ** 2
            except IndexError:
                continue
    return t


def caught_in_two_axes(x):
    a, t = np.outer(x, x), 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            try:
                t = t + a[i, j] * a[i + 1, j + 1]
            except IndexError:
                t = t - a[i, j]
    return t


def caught_once(x):
    y = np.zeros(7)
    try:
        y[int(x[0] * 10)] += x[1]
    except IndexError:
        y[0] = x[2]
    return np.sum(y * np.arange(1, 8))


def caught_otherwise(x):
    a, t = np.outer(x, x), x[0]
    for i in range(int(abs(x[1]) * 8)):
        try:
            _ = a[..., i]
        except IndexError:
            t = t * 1.5
        try:
            _ = x[None, i]
            _ = a[[0, 1], i + 1]
            _ = x[[2, i + 2]]
            _ = x[np.array([i + 3])]
        except IndexError:
            t = t * 1.25
    return t


def caught_for_many(x):
    try:
        return np.sum(x[np.array([0, 3, 6]) + int(abs(x[0]) * 3)])
    except IndexError:
        return x[2] * 2


CAUGHT = [caught_reads, caught_used, caught_writes, caught_always, caught_past_the_end, caught_in_two_axes, caught_once]
CAUGHT += [caught_otherwise, caught_for_many]


@pytest.mark.parametrize("fun", CAUGHT)
def test_that_nothing_is_at_a_place_may_be_caught(fun):
    derivative = against_plain(fun)
    misses = derivative.cache_info().misses
    assert [derivative(x)[0] for x in SERIES] == pytest.approx([fun(x) for x in SERIES], rel=1e-11)
    assert derivative.cache_info().misses == misses < len(SERIES)  # code answers all of them


def test_that_nothing_is_at_a_place_may_be_caught_around_a_loop():
    against_plain(caught_around)
