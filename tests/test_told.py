"""Loops that run as often as arguments tell: over ranges with traced ends, over what masks select, and by places of lists."""

import numpy as np
import pytest
from agreement import right_at

from symgrad import grad, value_and_grad


def told(x):
    return int(abs(x[7]) * 5)


def horner(x):
    t = 0.0
    for i in range(told(x), -1, -1):
        t = t * x[0] + x[1] * i
    return t


def euler(x):
    n = int(np.ceil(abs(x[7]) / 0.1)) + 1
    dt, y = abs(x[7]) / n, x[0]
    for _ in range(n):
        y = y + dt * (x[1] - y)
    return y


def every_third(x):
    t = x[0]
    for i in range(1, told(x), 3):
        t = t * x[1] + i * x[2]
    return t


def between_two(x):
    t = x[0]
    for i in range(int(abs(x[6]) * 2), told(x)):
        t = t * x[1] + i
    return t


def filled(x):
    y = np.zeros(40)
    y[0] = x[0]
    for i in range(1, told(x)):
        y[i] = y[i - 1] * x[1] + np.sin(i)
    return np.sum(y**2)


def with_ways(x):
    t = x[0]
    for _ in range(told(x)):
        if t > x[1]:
            t = t - x[2] ** 2
        else:
            t = t + x[3] ** 2
            t = t * 1.1
    return t


def in_another(x):
    t = 0.0
    for i in range(3):
        for j in range(told(x)):
            t = t * 0.5 + x[i] * j
    return t


def left_early(x):
    t = x[0]
    for i in range(told(x)):
        t = t * 0.9 + x[1]
        if t > 2.0:
            break
        t = t + i
    return t


def found_at(x):
    t, found = x[0], -1
    for i in range(2, told(x) + 2, 2):
        t = t * 0.9 + x[1]
        if t > 1.0:
            found = i
            break
    return t * found


def returned(x):
    t = x[0]
    for _ in range(told(x)):
        t = t * 0.8 + x[1]
        if abs(t) > 1.5:
            return t * 10
    return t


def none_left(x):
    t = x[0]
    for _ in range(told(x)):
        t = t * 0.9 + x[1]
        if t > 2.0:
            return t * 2
    else:
        return t - 10


def selected(x):
    s, t = x[x > 0], 0.0
    for v in s:
        t = t * 0.5 + v
    return t


def selected_until(x):
    s, t, i = x[x > 0], 0.0, 7
    for i, v in enumerate(s):
        if v > 1.5:
            break
        t = t + i * v
    return t + i


def side_by_side(x):
    s, t = x[x > 0], 0.0
    for v, w in zip(s, s**2):  # noqa: B905
        t = t * 0.5 + v * w
    return t


def places(x):
    t = 0.0
    for k in np.flatnonzero(x > 0):
        t = t + x[k] * k
    return t


def rows(x):
    cells = x.reshape(4, 2)
    some, t = cells[cells[:, 0] > 0], 0.0
    for i in range(len(some)):
        t = t + some[i] @ some[-i]
    return t


def positive(x):
    found = []
    for k in range(8):
        if x[k] > 0:
            found.append(x[k] * 2)
    return found


def neighbours(x):
    some, t = positive(x), 0.0
    for i in range(1, len(some)):
        t = t + (some[i] - some[i - 1]) ** 2
    return t


def from_both_ends(x):
    some, t = positive(x), 0.0
    for i in range(len(some)):
        t = t * 0.5 + some[i] * some[-1 - i]
    return t


def backwards(x):
    some, t = positive(x), 0.0
    for i in range(len(some) - 1, -1, -1):
        t = 0.5 * t + some[i]
    return t


def by_hand(x):
    some, i, t = positive(x), 0, x[0]
    while i < len(some) and some[i] < 1.5:
        t = t * 0.5 + some[i]
        i += 1
    return t + i


def largest(x):
    some, best = positive(x), 0
    for i in range(1, len(some)):
        if some[i] > some[best]:
            best = i
    return some[best] * best if some else 0.0


def pairs_at_places(x):
    some = []
    for k in range(8):
        if x[k] > 0:
            some.append((k, x[k]))
    t = 0.0
    for i in range(len(some)):
        t = t + some[i][0] * some[i][1]
    return t


def appended(x):
    found = []
    for i in range(told(x)):
        found.append(x[0] * i)
    return sum(found) + x[1]


def appended_to_the_last(x):
    found = [x[0]]
    for i in range(told(x)):
        found.append(found[-1] * x[1] + i)
    return np.sum(np.array(found)) + found[-1]


def path(x):
    states = [x[:2]]
    for _ in range(told(x)):
        states.append(states[-1] * 0.9 + x[2:4])
    every = np.array(states)
    return np.sum(every[:, 0] * every[:, 1]) + every[-1, 0]


def history(x):
    log, v = {"t": [], "v": []}, x[0]
    for i in range(told(x)):
        v = v + 0.1 * (x[1] - v)
        log["t"].append(i * 0.1)
        log["v"].append(v)
    return sum([t * v for t, v in zip(log["t"], log["v"])])  # noqa: B905


def two_lists_of_last_items(x):
    one, other = [x[0]], [x[1]]
    for _ in range(told(x)):
        one.append(one[-1] * 0.8 + other[-1] * 0.1)
        other.append(other[-1] * 0.9 - one[-1] * 0.1)
    return one[-1] * other[-1] + sum(one) + sum(other)


def read_later(x):
    i, t = 0, x[0]
    for i in range(told(x)):
        t = t * x[1] + i
    return t * i


def until_close(x):
    found = [x[0]]
    for _ in range(60):
        if len(found) > 1 and abs(found[-1] - found[-2]) < 0.05:
            break
        found.append(found[-1] * 0.6 + 0.1 * x[1])
    return sum(found) * found[-1]


CODE = [horner, euler, every_third, between_two, filled, with_ways, in_another, left_early, found_at, returned, none_left]
CODE += [selected, selected_until, side_by_side, places, rows]
CODE += [read_later, appended, appended_to_the_last, path, history, two_lists_of_last_items, until_close]
CODE += [neighbours, from_both_ends, backwards, by_hand, largest, pairs_at_places]


def beyond(x):
    t = 0.0
    for i in range(told(x)):
        t = t + x[0] * x[i]
    return t


def beyond_a_list(x):
    some, t = positive(x), 0.0
    for i in range(3):
        t = t + some[i + 1]
    return t


def written(x):
    some, t = x[x > 0], 0.0
    for i in range(some.size):
        some[i] = some[i] * 2
        t = t + some[i]
    return t + np.sum(some)


def put_in(x):
    some, t = positive(x), 0.0
    for i in range(len(some)):
        some[i] = some[i] * 2
        t = t + some[i]
    return t + sum(some)


OTHERS = [beyond, beyond_a_list, written, put_in]


@pytest.mark.parametrize("fun", [*CODE, *OTHERS])
def test_loops_run_as_often_as_arguments_tell(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(5)
    for scale in rng.choice([0.1, 0.5, 1.0, 3.0], size=24):
        x = rng.normal(size=8) * scale
        try:
            expected = fun(x.copy())
        except IndexError:
            with pytest.raises(IndexError):
                derivative(x)
            continue
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(slope, other, rtol=1e-7, atol=1e-9)
    assert fun in OTHERS or derivative.cache_info().misses <= 16


def test_a_number_that_an_argument_tells():
    def fun(x, n):
        t = x
        for _ in range(n):
            t = t - 0.1 * np.sin(t)
        return np.sum(t)

    derivative, x = grad(fun), np.array([0.3, 0.5, 0.2])
    for n in (3, 7, 12, 5, 0, 1, 20, 8, 100, 30, 9, 3):
        np.testing.assert_allclose(derivative(x, n), grad(fun, mode="dynamic")(x, n), rtol=1e-9)
    assert derivative.cache_info().misses <= 4


def test_as_long_as_it_is_the_same_number_the_loop_is_plain():
    def fun(x, t):
        n, y = int(np.ceil(t / 0.1)), x
        for _ in range(n):
            y = y * 0.9 + x
        return y

    derivative = grad(fun)
    for t in (1.0, 0.95, 0.99, 1.0):
        derivative(2.0, t)
    assert "while" not in derivative.source(2.0, 1.0, fast=True)
    for t in (2.0, 3.0, 4.0, 0.05):
        assert derivative(2.0, t) == pytest.approx(grad(fun, mode="dynamic")(2.0, t), rel=1e-12)
    assert derivative.cache_info().misses <= 4


def of_ranks(x):
    s = np.sort(x[x > 0])
    n = len(s)
    return np.sum((2 * np.arange(1, n + 1) - n - 1) * s) / (n * np.sum(s))


def of_weights(x):
    s = x[x > 0]
    return np.sum(s * np.linspace(x[0], 1.0, len(s))) + np.sum(s[::-1] * np.arange(2, 2 + len(s)))


def of_extremes(x):
    s = x[x > 0]
    return np.sum(np.maximum.accumulate(s) - s) + np.sum(np.minimum.accumulate(s) ** 2) + s[1] * s[-2]


def of_floats(x):
    k = np.arange(1, len(x[x > 0]) + 1, dtype=float)
    return np.sum(x[x > 0] * k**-1) * (1.0 if k.dtype == np.float64 else 2.0)


@pytest.mark.parametrize("fun", [of_ranks, of_weights, of_extremes, of_floats])
def test_what_is_made_of_as_many_hangs_on_no_count(fun):
    derivative = value_and_grad(fun)
    rng = np.random.default_rng(2)
    for n in range(2, 9):
        x = -np.abs(rng.normal(size=9))
        x[rng.permutation(9)[:n]] *= -1.0
        right_at(derivative, fun, x, value=(5e-13, 5e-13), slope=(1e-9, 1e-12))
    assert derivative.cache_info().misses <= 3
