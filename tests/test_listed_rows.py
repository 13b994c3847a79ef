"""Lists of arrays: what loops read of them, at places that are known to code alone, comes from one array that has all items."""

import numpy as np
import pytest

from symgrad import value_and_grad

STEPS = 50


def slopes(y, p):
    return np.array([p[0] * y[0] - y[0] * y[1], -p[1] * y[1] + 0.5 * y[0] * y[1]])


def four_steps(y, p):
    fs = [slopes(y, p)] * 4
    for k in range(3, STEPS):
        y = y + 0.01 / 24 * (55 * fs[k] - 59 * fs[k - 1] + 37 * fs[k - 2] - 9 * fs[k - 3])
        fs.append(slopes(y, p))
    return np.sum(y**2)


def delayed(y, p):
    ys = [y] * 13
    for k in range(STEPS):
        late, now = ys[k], ys[-1]
        ys.append(now + 0.1 * (p[0] * late / (1 + late**2) - p[1] * now))
    return np.sum(np.stack(ys) ** 2)


def delayed_later(y, p):
    ys = [y]
    for k in range(STEPS):
        late = ys[k - 9] if k >= 9 else y
        ys.append(ys[k] + 0.1 * (p[0] * late / (1 + late**2) - p[1] * ys[k]))
    return np.sum(ys[-1] ** 2)


def three_steps_of_four(y, p):
    xs = [np.append(y, y), np.append(y, p)]
    for i in range(1, STEPS):
        xs.append(2 * xs[i] - xs[i - 1] - 0.01 * p[0] * xs[i])
    return np.sum(xs[-1] ** 2) + xs[-2][0]


def both_read(y, p):
    ys = [y]
    for _ in range(STEPS):
        ys.append(ys[-1] + 0.01 * slopes(ys[-1], p))
    return np.sum(np.array(ys) ** 2) * ys[-1][0] + ys[-2][1]


def read_by_another_loop(y, p):
    ys = [y]
    for _ in range(STEPS):
        ys.append(ys[-1] + 0.01 * slopes(ys[-1], p))
    total = 0.0
    for k in range(1, STEPS):
        total = total + np.sum((ys[k] - ys[k - 1]) ** 2)
    for one in ys:
        total = total + np.sum(np.tanh(one)) * one[0]
    return total


def read_beside_data(y, p):
    ys = [y]
    for _ in range(STEPS):
        ys.append(ys[-1] + 0.01 * slopes(ys[-1], p))
    return sum(np.sum((one - seen) ** 2) for one, seen in zip(ys, DATA, strict=True))


def read_with_a_constant(y, p):
    ys = [np.array([1.0, 0.5])]
    for _ in range(STEPS):
        ys.append(ys[-1] * p + 0.1 * y)
    return sum(np.sum(one**2) * k for k, one in enumerate(ys))


DATA = np.random.default_rng(3).normal(size=(STEPS + 1, 2))
LOOPS = [
    four_steps,
    delayed,
    delayed_later,
    three_steps_of_four,
    both_read,
    read_by_another_loop,
    read_beside_data,
    read_with_a_constant,
]


def _compare(fun, arguments, calls=3):
    """The derivative, after some calls; each one is as in dynamic mode."""
    derivative, dynamic = value_and_grad(fun, argnums=(0, 1)), value_and_grad(fun, argnums=(0, 1), mode="dynamic")
    for seed in range(calls):
        found, expected = derivative(*arguments(seed)), dynamic(*arguments(seed))
        np.testing.assert_allclose(found[0], fun(*arguments(seed)), rtol=1e-12)
        for one, other in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    return derivative


def _pair(seed):
    return np.array([1.0, 0.5]) + 0.01 * seed, np.array([0.6, 0.8])


@pytest.mark.parametrize("fun", LOOPS)
def test_rows_of_lists_are_read_in_loops(fun):
    derivative = _compare(fun, _pair)
    assert derivative.cache_info().misses <= 2
    assert len(derivative.source(*_pair(0)).splitlines()) < 180


def test_the_last_items_need_no_array():
    derivative = _compare(three_steps_of_four, _pair)
    assert "zeros" not in derivative.source(*_pair(0), fast=True)


def along_a_tree(w, u, parents):
    states = [np.tanh(u[0])]
    for t in range(1, len(u)):
        states.append(np.tanh(w @ states[parents[t]] + u[t]))
    return np.sum(np.array(states) ** 2)


def _tree(seed, least=lambda t: 0):
    rng = np.random.default_rng(seed)
    parents = np.array([0] + [int(rng.integers(least(t), t)) for t in range(1, 40)])
    return rng.normal(size=(6, 6)) * 0.3, rng.normal(size=(40, 6)), parents


def test_places_may_be_data():
    """Which are other ones in each call; beyond the beginning, they count from the end, as they do in Python."""
    derivative = _compare(along_a_tree, _tree)
    assert derivative.cache_info().misses == 2
    assert "raise Unexplored" in derivative.source(*_tree(0))
    for seed in range(4, 8):
        args = _tree(seed, least=lambda t: -t)
        expected = value_and_grad(along_a_tree, mode="dynamic")(*args)
        found = derivative(*args)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1][0], expected[1], rtol=1e-9)


def test_places_beyond_the_end_of_a_list_of_arrays():
    derivative = _compare(along_a_tree, _tree)
    w, u, parents = _tree(1)
    parents[7] = 7
    with pytest.raises(IndexError, match="list index out of range"):
        derivative(w, u, parents)


def writes_to_one_read(y, p):
    ys = [y * 1.0, y * 1.1]
    for t in range(STEPS):
        if t >= 9:
            far = ys[t - 9]
            far += 0.1
        ys.append(0.9 * ys[-1] + np.sin(p * ys[-2]))
    return np.sum(np.array(ys) ** 2)


def writes_to_an_item(y, p):
    ys = [y * 1.0]
    for t in range(STEPS):
        far = ys[t - 8] if t >= 8 else y
        ys.append(np.sin(p * ys[-1]) + 0.1 * far)
        if t >= 12:
            ys[t - 11][0] = far[1]
    return np.sum(np.array(ys) ** 2)


def writes_to_what_was_there(y, p):
    ys = [y * 1.0] * 8
    for t in range(STEPS):
        ys.append(np.sin(p * ys[-1] + y) + 0.3 * ys[t])
        if t == 20:
            ys[0][0] = 9.0
    return np.sum(np.array(ys) ** 2)


def writes_to_what_it_filled(y, p):
    begin = np.zeros(2)
    begin[0] = 2.0
    ys = [begin] * 8
    for t in range(STEPS):
        ys.append(np.sin(p * ys[-1] + y) + 0.3 * ys[t])
    begin[1] = 5.0
    return np.sum(np.array(ys) ** 2)


def writes_to_all(y, p):
    ys = []
    for _ in range(STEPS):
        y = y + 0.01 * np.sin(p * y)
        ys.append(y)
    for one in ys:
        one *= 2.0
    return np.sum(np.array(ys) ** 2) + np.sum(y)


def writes_to_the_largest(y, p):
    ys = [y * 1.0]
    for _ in range(STEPS):
        ys.append(ys[-1] + 0.01 * np.sin(p * ys[-1]))
    most, best = -9.0, ys[0]
    for one in ys:
        if np.sum(np.cos(9 * one)) > most:
            most, best = np.sum(np.cos(9 * one)), one
    best[0] = 3.0
    return np.sum(np.array(ys) ** 2) * most


def asks_which_it_is(y, p):
    ys = []
    for _ in range(STEPS):
        y = y + 0.01 * np.sin(p * y)
        ys.append(y)
    total = 0.0
    for one in ys:
        total = total + np.sum(one) * (3 if one is ys[-1] else 1)
    return total


def shows_another_array(y, p):
    table = np.outer(np.arange(1.0, STEPS + 1), y)
    rows, total = [table[i] for i in range(STEPS)], 0.0
    for i, row in enumerate(rows):
        total = total + np.sum(row * p)
        if i + 1 < STEPS:
            table[i + 1, 0] = total * 0.01
    return total


def two_lists_of_one_array(y, p):
    a, b = [y], [y]
    for t in range(STEPS):
        z = np.sin(p * a[t // 2])
        a.append(z)
        b.append(z)
    b[5][0] = 4.0
    return np.sum(np.array(a)) + np.sum(np.array(b) ** 2)


def other_shapes_later(y, p):
    ys = [y]
    for t in range(STEPS):
        ys.append(np.sin(p * ys[t]) if t < 30 else np.append(np.sin(ys[t])[:1], 1.0))
    return np.sum(ys[-1]) + np.sum(ys[7])


def ints_before(y, p):
    ys = [np.array([1, 2]), y]
    for t in range(STEPS):
        ys.append(np.sin(p * ys[t + 1]) + ys[t] * 0.1)
    return np.sum(ys[-1])


def items_of_two_lists(y, p):
    ys = [y * 1.0]
    for _ in range(STEPS):
        ys.append(np.tanh(ys[-1] + p))
    zs = []
    for t in range(STEPS):
        zs.append(ys[t // 3])
    zs[7][0] = 2.0
    return np.sum(np.array(ys) ** 3) + np.sum(np.array(zs) ** 2)


def some_items_of_two_lists(y, p):
    ys = [y * 1.0]
    for _ in range(STEPS):
        ys.append(ys[-1] + 0.1 * np.sin(ys[-1] * p))
    kept = []
    for t in range(STEPS):
        if DATA[t, 0] > 0.1:
            kept.append(ys[t // 3])
    kept[2][0] = 2.0
    return sum(np.sum(one**3) * (k + 1) for k, one in enumerate(ys)) + sum(np.sum(one * one) for one in kept)


def writes_to_a_constant(y, p):
    begin = np.array([1.0, 0.5])
    ys = [begin]
    for _ in range(STEPS):
        ys.append(ys[-1] * p + 0.1 * y)
    total = sum(np.sum(one**2) for one in ys)
    begin[0] = 7.0
    return total + sum(np.sum(one**3) for one in ys)


def writes_to_each(y, p):
    ys, total = [np.array([1.0, 0.5])], 0.0
    for _ in range(STEPS):
        ys.append(ys[-1] * p + 0.1 * y)
    for one in ys:
        total = total + np.sum(one**2)
        one *= 2.0
    return total + np.sum(ys[0]) + np.sum(ys[5])


WRITES = [
    writes_to_a_constant, writes_to_each,
    items_of_two_lists, some_items_of_two_lists,
    writes_to_one_read, writes_to_an_item, writes_to_what_was_there, writes_to_what_it_filled, writes_to_all,
    writes_to_the_largest, asks_which_it_is, shows_another_array, two_lists_of_one_array, other_shapes_later, ints_before,
]  # fmt: skip


@pytest.mark.parametrize("fun", WRITES)
def test_copies_of_items_are_never_told_from_them(fun):
    _compare(fun, _pair)


def rows_of_a_table(y, p):
    a = np.zeros((STEPS + 3, 2))
    first = a[1]
    a[:3] = y
    for t in range(STEPS):
        row = a[t]
        a[t + 3] = np.array([row[0] * p[0], np.sin(a[t + 1][1]) + row[1]])
        if t == 5:
            a[1, 1] = a[t, 0]
    a[4] += 1.0
    return np.sum(a[-1]) + np.sum(a[:5] ** 2) + np.sum(first)


def test_short_rows_of_a_table_are_numbers():
    """Which are read and written one by one; views that were made before show what is written."""
    _compare(rows_of_a_table, _pair)


def rows_of_truth_values(y, p):
    above, total = np.zeros((STEPS, 2), bool), 0.0
    for t in range(1, STEPS):
        above[t] = DATA[t] * p > -0.1
        total = total + np.sum((above[t] + above[t - 1]) * DATA[t]) * y[0]
    return total


def test_rows_of_truth_values_add_up_to_such():
    _compare(rows_of_truth_values, _pair)
