"""Values that loops put into locals at times: arrays and containers with other names, which are written into afterwards, and
values that are there already."""

import numpy as np
import pytest

from symgrad import value_and_grad, vmap


def array_in_a_while(x):
    z = x[:3] * 1.5
    y = z
    while z @ z > 2.4:
        z = z * 0.6
    z[1] = z[1] * 0.3
    return y[1] + z[1]


def view_in_a_while(x):
    z = x[:3] * 1.5
    y = z[1:]
    while z @ z > 2.4:
        z = z * 0.6
    z += 1.0
    return y[0] + z[1]


def array_in_an_object(x):
    z = x[:3] * 1.5
    o = Holder(z)
    i = 0
    while z @ z > 1.2 and i < 5:
        z = z * 0.6
        i += 1
    z[:2] = z[:2] * 0.5
    return np.sum(o.held) + np.sum(z)


class Holder:
    def __init__(self, held):
        self.held = held


def array_under_an_if(x):
    z = x[:3] * 1.5
    y = z
    for i in range(8):
        if x[i] > 1.5:
            z = z * 0.6
    z[1] = z[1] * 0.3
    return y[1] + z[1]


def other_name_is_written(x):
    z = x[:3] * 1.5
    y = z
    for i in range(8):
        if x[i] > 1.5:
            z = z * 0.6
    y[1] = y[1] * 0.3
    return y[1] + z[1]


def view_under_an_if(x):
    z = x[:3] * 1.5
    y = z[1:]
    for i in range(8):
        z = z * 0.6 if x[i] > 1.5 else z
    z[1] = z[1] * 0.3
    return y[0] + z[1]


def views_in_a_loop(x):
    total = 0.0
    for i in range(6):
        z = x[i : i + 2] * 1.5
        y = z[1:]
        while z @ z > 0.4:
            z = z * 0.6
        z[1] = z[1] * 0.3
        total = total + 0.3 * y[0] + z[1]
    return total


def in_a_helper(x):
    def damped(z):
        for i in range(8):
            if x[i] > 1.5:
                z = z * 0.6
        return z

    y = x[:3] * 1.5
    z = damped(y)
    z[0] = 1.0
    return y[0] * x[1] + np.sum(z)


def dict_in_a_while(x):
    d = {"a": x[0] * 3}
    e = d
    while d["a"] > 1:
        d = {"a": d["a"] * 0.5}
    d["a"] = d["a"] + 1
    return e["a"] + x[1]


def dict_under_an_if(x):
    d = {"a": x[0]}
    e = d
    for i in range(8):
        if x[i] > 1.5:
            d = {"a": x[i]}
    d["a"] = d["a"] + 1
    return e["a"] + d["a"]


def list_under_an_if(x):
    d = [0.0]
    e = d
    for i in range(8):
        if x[i] > 1.5:
            d = [x[i]]
    d.append(x[0])
    return sum(e) + sum(d)


def the_same_each_time(x):
    """The first time, an iteration puts it there; then, it is there."""
    z = x[:3] * 1.5
    y = x[1:4] * 1.0
    i = 0
    while y[0] > 0.2 and i < 5:
        y = y * 0.8
        if y[0] < 0.1:
            y = z * 1.0
    for i in range(6):
        if x[i] < -0.8:
            z = np.sin(y)
    return np.sum(z)


def the_same_views(x):
    total, i = 0.0, 0
    z = x[:3] * 1.5
    w = x[2:5] * 1.0
    held = [x[:3] * 0.3]
    while abs(total) < 1.5 and i < 6:
        i += 1
        if z @ z > 1.0:
            held[0] = z
        if x[i] < -0.8:
            w = z.T
    return 0.4 * w[0] + held[0][1]


def set_within(x):
    total, last = 0.0, x[0]
    for i in range(6):
        v, y = x[i] * 3, x[1]
        while v > 1.0:
            v = v * 0.5
            last = y
        total = total + v * last
        if i == 2:
            last = x[2]
    return total


def copied_under_an_if(x):
    z = x[:3] * 1.5
    y = z * 1.0
    z = y
    for i in range(8):
        if x[i] < -0.8:
            y = z.copy()
    y *= 0.8
    return np.sum(z)


def one_of_two(x):
    z = x[:3] * 1.5
    w = x[2:5] * 1.0
    for i in range(6):
        if x[i] < -0.8:
            z = w
    w[0] = 5.0
    z *= 0.5
    return np.sum(z) + w[1]


def the_same_of_a_constant(x):
    total = x[0]
    m = np.outer(x[:3], x[3:6]) + np.eye(3)
    n = x[:3][:, None] * np.ones((3, 3))
    v = x[2:5] * 1.0
    for _ in range(3):
        m = m + 0.1 * np.outer(v, v)
    for _ in range(6):
        n = m.copy()
        total = total * 0.9 if total > 1 else total + 0.1
    return np.sum(n[0]) + total


def array_in_a_list(x):
    y = x * 2.0
    keep = [y]
    for i in range(8):
        y[i] = y[i] * 1.5
        if x[i] > 1:
            y = y * 1.0
    return np.sum(keep[0]) + np.sum(y)


def list_of_numbers_under_an_if(x):
    d = [x[0], x[1]]
    e = d
    for i in range(8):
        if x[i] > 1.0:
            d = [x[i], x[0]]
        d[0] = d[0] * 1.1
    return sum(e) * 2 + sum(d)


def row_of_a_list(x):
    d = [[x[0], x[1]], [x[2], x[3]]]
    row = d[0]
    for i in range(8):
        if x[i] > 0.5:
            row = d[1]
        row[0] = row[0] * 1.1 + x[i]
    return sum(d[0]) * 2 + sum(d[1]) + row[0]


def row_of_a_long_list(x):
    d = [[x[0] * k for k in range(12)] for _ in range(3)]
    row = d[0]
    for i in range(8):
        row[i] = row[i] * 1.1 + x[i]
    return sum(d[0]) * 2 + sum(d[1]) + row[0]


def list_that_a_function_changes(x):
    d = [[x[0] * k for k in range(12)] for _ in range(3)]

    def touch(i):
        d[1][i] = d[1][i] * 2

    s = 0.0
    for i in range(8):
        if x[i] > 0:
            touch(i)
        s += x[i]
    return sum(d[0]) * 2 + sum(d[1]) + s


def list_in_an_object(x):
    class Box:
        pass

    box = Box()
    box.held = [x[0]]
    held = box.held
    for i in range(40):
        box.held.append(box.held[-1] * 0.9 + x[i % 8])
    return sum(held)


FUNCTIONS = [array_in_a_while, view_in_a_while, array_in_an_object, array_under_an_if, other_name_is_written, view_under_an_if]
FUNCTIONS += [views_in_a_loop, in_a_helper, dict_in_a_while, dict_under_an_if, list_under_an_if]
FUNCTIONS += [array_in_a_list, list_of_numbers_under_an_if, row_of_a_list, row_of_a_long_list, list_that_a_function_changes]
FUNCTIONS += [list_in_an_object]
FUNCTIONS += [the_same_each_time, the_same_views, set_within, copied_under_an_if, one_of_two, the_same_of_a_constant]


@pytest.mark.parametrize("seed", [1, 204, 821, 1026])
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_names_that_loops_give_to_others_at_times_are_pythons(fun, seed):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(seed).normal(size=(24, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x.copy()), rel=1e-10)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)


def test_a_write_that_comes_late_is_seen():
    """Code that no call has asked for that write may stand: it goes another way."""

    def fun(x, writes):
        z = x[:3] * 1.5
        y = z
        for i in range(6):
            if x[i] > 0.8:
                z = z * 0.6
        if writes[0] > 0:
            z[1] = 0.0
        return y[1] * x[2] + z[1]

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    for k in range(40):
        x, writes = rng.normal(size=6), np.array([1.0 if k > 12 and k % 3 == 0 else -1.0])
        (value, slope), (_, other) = derivative(x, writes), dynamic(x, writes)
        assert value == pytest.approx(fun(x.copy(), writes), rel=1e-10)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)
    assert derivative.cache_info().hits


@pytest.mark.parametrize("fun", FUNCTIONS)
def test_names_hold_in_each_element_of_a_batch(fun):
    """The first call, which no other told of the names, too."""
    for seed in (5, 6):
        x = np.random.default_rng(seed).normal(size=(6, 8))
        values, slopes = vmap(value_and_grad(fun))(x)
        np.testing.assert_allclose(values, [fun(row.copy()) for row in x], rtol=1e-10)
        expected = [value_and_grad(fun, mode="dynamic")(row)[1] for row in x]
        np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-11)
