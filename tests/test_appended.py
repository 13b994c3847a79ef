"""Lists that loops with ``if``s append to: one loop, whichever ways its iterations go."""

import numpy as np
import pytest

from symgrad import grad, value_and_grad


def on_both_sides(x):
    out = []
    for i in range(20):
        if x[i] > 0:
            out.append(x[i] ** 2)
        else:
            out.append(-x[i])
    return np.sum(np.array(out) * x)


def after_an_if(x):
    h, states = 0.0, []
    for xi in x:
        h = 0.5 * h + xi if xi > 0 else 0.9 * h
        states.append(h)
    return np.sum(np.array(states) ** 2) + states[-1]


def read_from_the_end(x):
    hist = [x[0], x[1]]
    for i in range(2, 20):
        y = 0.5 * hist[-1] - 0.3 * hist[-2] + x[i]
        if y < 0:
            y = 0.0
        hist.append(y)
    return sum(h * h for h in hist)


def backwards_and_two_lists(x):
    total, value, values = 0.0, [1.0], []
    for i in range(19, 0, -2):
        if x[i] * total > 0.1:
            value.append(x[i])
            total = total * 0.5
        elif x[i] > 0:
            total = total + x[i]
            value.append(0.0)
        else:
            value.append(total)
        values.append(total + value[-1])
    return sum(value) * values[3] + len(values)


def in_a_loop(x):
    v = [max(y, 0.0) for y in x[:8]]
    for k in range(7, 0, -1):
        new = []
        for i in range(k):
            held = 0.5 * (v[i] + v[i + 1])
            if held < x[8 + i]:
                new.append(x[8 + i])
            else:
                new.append(held)
        v = new
    return v[0]


def argument_itself(x):
    first, out = x[0], []
    for i in range(1, 20):
        if x[i] > first:
            out.append(first)
        else:
            out.append(x[i])
    return first * out[3] + sum(out)


def changed_afterwards(x):
    out = []
    for y in x:
        out.append(y if y > 0 else 0.1 * y)
    out[3] = 2.0 * x[0]
    out.append(x[1])
    return np.array(out) @ np.arange(len(out)) + max(out)


@pytest.mark.parametrize(
    ("fun", "misses"),
    [
        (on_both_sides, 3),
        (after_an_if, 3),
        (read_from_the_end, 3),
        (backwards_and_two_lists, 5),
        (argument_itself, 3),
        (changed_afterwards, 40),  # but for its maximum, which is looked for item by item
        (in_a_loop, 40),  # but for its first line
    ],
)
def test_a_list_to_which_all_ways_append_is_rolled_up(fun, misses):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(5).normal(size=(12, 20)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= misses


def test_items_are_of_the_kind_that_they_were():
    def listed(x, y):
        out, known = [], []
        for i in range(6):
            out.append(x * i if x * i > 1.0 else x - y)
            known.append(1.0 if y > i else -1.0)
        return sum(out) * sum(known)

    derivative = grad(listed, (0, 1))
    for args in [(0.5, 2.5), (-1.0, 0.5), (1.5, 7.5), (0.3, -2.0)]:
        assert derivative(*args) == pytest.approx(grad(listed, (0, 1), mode="dynamic")(*args))


def at_times(x):
    out = [0.0]
    for i in range(12):
        if x[i] > 0:
            out.append(x[i])
    return sum(out) * len(out)


def while_positive(x):
    """In some calls the first iteration alone."""
    out, u = [1.0], x[0] - 0.5
    for i in range(12):
        if u < 0:
            continue
        out.append(u * x[i])
        if x[i] > 0.5:
            u = x[i + 1] * u
        elif x[i] < 0.2:
            u = u - x[i + 1]
    return sum(out) * len(out)


def twice_at_times(x):
    out = []
    for i in range(12):
        out.append(x[i])
        if x[i] > 0.5:
            out.append(x[i] ** 2)
    return sum(out) * len(out)


def under_another_name(x):
    out = []
    same = out
    for i in range(12):
        out.append(x[i] if x[i] > 0 else same[0] if same else 0.1)
    same[0] = 3.0
    return sum(out) + len(same)


def counted(x):
    out = []
    for i in range(12):
        if x[i] > 0:
            out.append(x[i] * len(out))
        else:
            out.append(x[i])
    return sum(out)


def changed_by_a_function(x):
    out = []

    def shrink():
        if len(out) > 3:
            out[-1] = 0.5 * out[-1]

    for i in range(12):
        out.append(x[i] if x[i] > 0 else 0.2 * x[i])
        shrink()
    return sum(out)


def added_by_a_method(x):
    out = []
    add = out.append
    for i in range(12):
        out.append(x[i] if x[i] > 0 else 0.2 * x[i])
    add(x[0])
    return sum(out) * len(out)


def of_several_kinds(x):
    out = []
    for i in range(12):
        if x[i] > 0:
            out.append(x[i : i + 2])
        else:
            out.append(np.float32(0.1) * np.ones(2))
    return np.sum(np.array(out) ** 2)


OTHERS = [at_times, while_positive, twice_at_times, under_another_name, counted, changed_by_a_function, added_by_a_method]


@pytest.mark.parametrize("fun", [*OTHERS, of_several_kinds])
def test_other_lists_are_what_they_are(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(6).normal(size=(40, 14)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
