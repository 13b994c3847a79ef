"""Histories: lists that loops append to, whose last items tell when they end."""

import contextlib

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad


def iterated(a):
    xs = [a[0]]
    for _ in range(50):
        xs.append(np.cos(a[1] * xs[-1]))
        if abs(xs[-1] - xs[-2]) < 1e-6:
            break
    return xs[-1]


def for_ever(a):
    xs = [a[0]]
    while True:
        xs.append(np.cos(a[1] * xs[-1]))
        if abs(xs[-1] - xs[-2]) < 1e-6:
            break
    return xs[-1] + len(xs)


def secant(a):
    f = lambda x: x**3 - a[0]
    xs = [0.5 + a[1], 1.0 + a[1]]
    while abs(xs[-1] - xs[-2]) > 1e-8:
        slope = (f(xs[-1]) - f(xs[-2])) / (xs[-1] - xs[-2])
        xs.append(xs[-1] - f(xs[-1]) / slope)
    return xs[-1]


def losses(a):
    x, history = a * 1.0, []
    for _ in range(60):
        r = x**2 - a
        history.append(np.sum(r**2))
        x = x - 0.1 * r
        if history[-1] < 1e-5:
            break
    return np.sum(x) + history[-1]


def best_loss(a):
    x, history = a * 1.0, [np.inf]
    for _ in range(60):
        r = x**2 - a
        history.append(np.sum(r**2))
        x = x - 0.1 * r
        if history[-2] - history[-1] < 1e-5:
            break
    return np.sum(x) + min(history)


def guarded_by_length(a):
    x, history = a * 1.0, []
    for _ in range(60):
        r = x**2 - a
        history.append(np.sum(r**2))
        if len(history) > 1 and abs(history[-1] - history[-2]) < 1e-5:
            break
        x = x - 0.1 * r
    return np.sum(x) + np.sum(history)


def guarded_by_index(a):
    x, history = a * 1.0, []
    for k in range(60):
        history.append(np.sum((x**2 - a) ** 2))
        if k > 0 and history[-2] - history[-1] < 1e-5:
            break
        x = x - 0.1 * (x**2 - a)
    return np.sum(x) * len(history)


def three_back(a):
    xs = [a[0], a[1], a[0] * a[1]]
    for _ in range(40):
        xs.append(0.5 * xs[-1] + 0.3 * xs[-2] - 0.1 * xs[-3])
        if abs(xs[-1]) < 1e-4:
            break
    return sum(xs)


def begun_before(a):
    xs = [a[0]]
    xs.append(xs[-1] * a[1])
    xs.append(xs[-1] * a[1] + xs[-2])
    while xs[-1] + xs[-2] < 20:
        xs.append(xs[-1] + xs[-2])
    return xs[-1] * len(xs)


def in_an_if(a):
    peaks, x = [a[0]], a[1]
    for k in range(12):
        x = 1.1 * x
        if k % 3 == 0:
            peaks.append(x * peaks[-1])
        if peaks[-1] > 3.0:
            break
    return peaks[-1] + x


def vectors(a):
    path = [a * 1.0]
    for _ in range(30):
        path.append(path[-1] - 0.2 * (path[-1] ** 2 - a))
        if np.max(np.abs(path[-1] - path[-2])) < 1e-3:
            break
    return np.sum(path[-1]) + np.sum(path[0])


def in_a_loop(a):
    total = 0.0
    for start in a:
        xs = [start]
        while xs[-1] > 0.1:
            xs.append(0.5 * xs[-1])
        total = total + xs[-1] * len(xs)
    return total


def counted(a):
    steps = [0]
    while a[0] * steps[-1] < 3:
        steps.append(steps[-1] + 1)
    return a[1] * steps[-1]


def pairs(a):
    state = [(a[0], a[1])]
    while state[-1][0] < 3:
        x, y = state[-1]
        state.append((x + y, 1.1 * y))
    return state[-1][0] * state[-1][1]


HISTORIES = [
    iterated, for_ever, secant, losses, best_loss, guarded_by_length, guarded_by_index, three_back, begun_before, in_an_if,
    vectors, in_a_loop, counted, pairs,
]  # fmt: skip


@pytest.mark.parametrize("fun", HISTORIES)
def test_loops_that_end_by_what_a_list_ends_with(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(10):
        right_at(derivative, fun, rng.uniform(0.4, 0.9, 2), value=(1e-12, 0.0), slope=(1e-10, 1e-13))
    assert derivative.cache_info().hits >= (0 if fun in (pairs, in_a_loop, counted) else 5)


def given_away(a):
    xs = [a[0]]
    others = [xs]
    while xs[-1] < 3:
        xs.append(xs[-1] * 1.5)
        others[0][-1] = xs[-1] * 0.9
    return xs[-1]


def popped(a):
    xs = [a[0], a[1]]
    while len(xs) < 5:
        xs.append(xs[-1] + xs[-2])
        if xs[-1] > 2.5:
            xs.pop()
            break
    return xs[-1] * len(xs)


def of_a_function(a):
    xs = [a[0]]

    def more():
        xs.append(xs[-1] * a[1] + 2)

    while xs[-1] < 3:
        xs.append(xs[-1] * 1.1)
        more()
    return xs[-1]


def written_later(a):
    xs = [a * 1.0]
    while np.sum(xs[-1]) < 5:
        x = 1.2 * xs[-1]
        xs.append(x)
        x[0] += 0.1
    return np.sum(xs[-1] * xs[-2])


def item_written(a):
    xs = [a * 1.0]
    while np.sum(xs[-1]) < 5:
        xs.append(1.2 * xs[-1])
        xs[-1][0] += 0.1
    return np.sum(xs[-1] * xs[-2])


def rebound(a):
    xs = [a[0]]
    for _ in range(8):
        xs.append(xs[-1] * 1.3)
        if xs[-1] > 2:
            xs = [xs[-1] / 4]
    return xs[-1] + len(xs)


def lazily(a):
    xs, later = [a[0]], []
    while xs[-1] < 3:
        later.append(xs[-1] * y for y in [1.0, 2.0])
        xs.append(xs[-1] * 1.5)
    return sum(sum(one) for one in later)


def one_in_the_other(a):
    xs = [a[0]]
    for _ in range(20):
        ys = [xs[-1]]
        while ys[-1] < 2:
            ys.append(ys[-1] * 1.5)
        xs.append(xs[-1] * 0.7 + 0.01 * ys[-1])
        if abs(xs[-1] - xs[-2]) < 1e-2:
            break
    return xs[-1]


def bound_again(a):
    xs = [a[0]]
    if a[1] > 0.6:
        xs = [2 * a[1]]
    while xs[-1] < 3:
        xs.append(xs[-1] * 1.5)
    return xs[-1]


def nothing(a):
    notes, x = [], a[0]
    for k in range(20):
        x = 1.2 * x
        notes.append(None if k % 2 else x)
        if k > 1 and notes[-2] is None and x > 1.5:
            break
    return x


def in_order(a):
    numbers = iter([a[0], a[1], 1.0])
    s, xs = next(numbers), [next(numbers)]
    while xs[-1] < 3:
        xs.append(xs[-1] * 1.5)
    return s * xs[-1] + len(xs)


def named_so(a):
    xs_new, xs_last, xs = a[1], 2.0, [a[0], a[1]]
    while xs[-1] < 3:
        xs.append(xs[-1] + xs[-2])
    return xs_new * xs_last * xs[-1]


def suppressed(a):
    xs = [a[0], a[1]]

    def next_of(v):
        if v > 2:
            raise ValueError
        return 1.3 * v

    for _ in range(12):
        with contextlib.suppress(ValueError):
            xs.append(next_of(xs[-1]))
        if xs[-1] - xs[-2] == 0:
            break
    return 10 * xs[-1] + xs[-2]


def other_length(a, len=lambda items: 7.0):
    xs = [a[0]]
    while xs[-1] < 3:
        xs.append(xs[-1] * 1.5)
        if len(xs) > 8:
            break
    return xs[-1] + len(xs)


def lazily_before(a):
    xs = [a[0]]
    later = (xs[-1] * v for v in a)
    while xs[-1] < 3:
        xs.append(xs[-1] * 1.5)
    xs.pop()
    return sum(later) + xs[-1]


def steps(n):
    yield from range(n)


def with_another_name(a):
    xs = [a[0]]
    other = xs
    for _ in steps(20):
        xs.append(xs[-1] * 1.5)
        other[-1] = 0.9 * other[-1]
        if xs[-1] > 3:
            break
    return xs[-1] + len(other)


def counted_on(a):
    k = a[0]

    def count():
        nonlocal k
        k = 3 * a[1]
        return a[0]

    xs = [k, count()]
    while xs[-1] < 3:
        xs.append(xs[-1] * 1.5)
    return xs[0] + xs[-1]


def factorials(a):
    xs, total = [1], 1.0
    for n in range(1, 40):
        xs.append(xs[-1] * n)
        term = a[0] ** n / xs[-1]
        total = total + term
        if term < 1e-30:
            break
    return total


OTHERS = [
    given_away, popped, of_a_function, written_later, item_written, rebound, lazily, one_in_the_other, bound_again, nothing,
    in_order, named_so, suppressed, other_length, lazily_before, with_another_name,
    counted_on, factorials,
]  # fmt: skip


@pytest.mark.parametrize("fun", OTHERS)
def test_lists_that_others_may_change(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for _ in range(6):
        right_at(derivative, fun, rng.uniform(0.4, 0.9, 2), value=(1e-12, 0.0), slope=(1e-10, 1e-13))


def test_items_that_are_not_there_are_an_error():
    def short(a):
        xs = [a]
        while xs[-1] < 3:
            if xs[-2] > 0:
                break
            xs.append(2 * xs[-1])
        return xs[-1]

    for _ in range(3):
        with pytest.raises(IndexError, match="list index out of range"):
            value_and_grad(short)(1.0)
