"""Loops with a test that run no iteration at times, or one, in a loop: they become the loop that longer runs became."""

import threading

import numpy as np
import pytest

from symgrad import value_and_grad


def wells(p, x):
    return np.sum((p - 1) ** 2) + np.cos(p @ x[3:6])


def slope_of(p, x):
    return 2 * (p - 1) - np.sin(p @ x[3:6]) * x[3:6]


def line_search(x):
    p = x[:3]
    for _ in range(6):
        g = slope_of(p, x)
        step = 1.0
        while wells(p - step * g, x) > wells(p, x) - 0.1 * step * g @ g and step > 1e-3:
            step *= 0.5
        p = p - step * g
    return p @ p


def line_search_until(x):
    p = x[:3]
    for _ in range(50):
        g = slope_of(p, x)
        if g @ g < 1e-4:
            break
        step = 1.0
        while wells(p - step * g, x) > wells(p, x) - 0.1 * step * g @ g:
            step *= 0.5
        p = p - step * g
    return p @ p


def shrunk(x):
    total = 0.0
    y = x[0]
    for i in range(6):
        z = y
        while abs(z) > 0.5:
            z = z * 0.7
        total = total + z * x[i]
        y = y + x[i]
    return total


def shrunk_by_size(x):
    total = 0.0
    for i in range(8):
        v = x[i] * 3
        while v > 1.0:
            if v > 2.0:
                v = v * 0.5
            if v < 2.0:
                v = v - 0.3
        total = total + v * v
    return total


def halved_until(x):
    total = 0.0
    for v in x:
        t = v
        for _ in range(10):
            if abs(t) < 0.5:
                break
            t = t * 0.5
        total = total + t
    return total


def rows_shrunk(x):
    total = 0.0
    for i in range(5):
        z = x[:3] * x[i]
        while z @ z > 1.0:
            z = z * 0.5
        total = total + np.sum(z)
    return total


def rows_shrunk_in_place(x):
    total = 0.0
    for i in range(5):
        z = x[:3] * x[i]
        while z @ z > 1.0:
            z *= 0.5
        total = total + np.sum(z)
    return total


def written_into(x):
    z, total = x[:3] * 1.0, 0.0
    for i in range(6):
        total = total + x[i]
        while abs(total) > 1.0:
            z[i % 3] = z[i % 3] * 0.5
            total = total * 0.6
    return total + np.sum(z)


def one_in_another(x):
    total, n = 0.0, x[0]
    while n < 3:
        m = n
        while m > 0.5:
            m = m - 0.4
        total = total + m * m
        n = n + 0.5 + x[1] ** 2
    return total


def counted(x):
    total, n = 0.0, 0
    for i in range(6):
        v = x[i]
        while v > 0.7 and n < 9:
            v = v * 0.6
            n += 1
        total = total + v
    return total + n * x[0]


def with_another_name(x):
    total = 0.0
    for i in range(6):
        v = x[i] * 2
        begun = v
        while abs(v) > 1.0:
            v = v * 0.5
        total += v * begun
    return total


def with_a_step(x):
    total = 0.0
    for i in range(6):
        v = x[i] * 3
        while abs(v) > 0.4:
            v = v * 0.6
            u = v * 2
            while abs(u) > 0.5:
                u = u * 0.5
            total = total + u
        total = total + v
    return total


def in_a_dict(x):
    total, state = 0.0, {"rate": 1.0}
    for i in range(6):
        v = x[i] * 2
        while abs(v) > 1.0:
            state["rate"] = state["rate"] + 0.1 * v
            v = v * 0.5
        total += v
    return total * state["rate"]


class State:
    def __init__(self):
        self.done = 0.2


def in_an_object(x):
    total, state = 0.0, State()
    for i in range(6):
        v = x[i] * 2
        while abs(v) > 1.0:
            state.done += 0.1 * v
            v = v * 0.5
        total += v
    return total + state.done


def one_after_the_other(x):
    total, weight = 0.0, 1.0
    for i in range(6):
        v = x[i] * 3
        while abs(v) > 0.4:
            v = v * 0.6
        total = total + v
        while abs(total) > 1.0:
            total = total * 0.5
            weight = weight * 0.9
    return total * weight


def seen_by_a_view(x):
    total = 0.0
    for i in range(5):
        z = x[:3] * x[i]
        last = z[2:]
        while z @ z > 1.0:
            z *= 0.5
        total = total + last[0]
    return total


def two_names_of_an_array(x):
    total = 0.0
    for i in range(5):
        z = x[:3] * x[i]
        y = z if i % 2 else z * 1.0
        while z @ z > 1.0:
            z *= 0.5
        total = total + np.sum(y)
    return total


def two_names_by_slices(x):
    total = 0.0
    for i in range(5):
        z = x[:3] * x[i]
        y = z if i % 2 else z * 1.0
        while z @ z > 1.0:
            z[:] = z * 0.5
        total = total + np.sum(y)
    return total


def two_names_by_out(x):
    total = 0.0
    for i in range(5):
        z = x[:3] * x[i]
        y = z if i % 2 else z * 1.0
        while z @ z > 1.0:
            np.multiply(z, 0.5, out=z)
        total = total + np.sum(y)
    return total


def two_names_of_a_dict(x):
    total = 0.0
    for i in range(5):
        first = {"v": x[i] * 2}
        second = first if i % 2 else {"v": x[i]}
        while abs(first["v"]) > 1.0:
            first["v"] = first["v"] * 0.5
        total = total + second["v"]
    return total


def left_behind(x):
    total = 0.0
    for i in range(6):
        v, last = x[i] * 2, x[0]
        while abs(v) > 1.0:
            last = v
            v = v * 0.5
        total += v * last
    return total


def through_its_numbers(x):
    out, r = 0.0, 0.0
    for i in range(6):
        v = x[i]
        while abs(v) > 1:
            r = r + v * 0.1
            v = v * 0.5
        try:
            out = out + v * (1 / r)
        except ZeroDivisionError:
            out = out + 100.0
    return out


CODE = [line_search, line_search_until, shrunk, shrunk_by_size, halved_until, rows_shrunk, rows_shrunk_in_place, written_into]
CODE += [one_in_another, counted, with_another_name, with_a_step, in_a_dict, in_an_object, one_after_the_other, left_behind]
OTHERS = [
    seen_by_a_view,
    two_names_of_an_array,
    two_names_by_slices,
    two_names_by_out,
    two_names_of_a_dict,
    through_its_numbers,
]


@pytest.mark.parametrize("fun", [*CODE, *OTHERS])
def test_short_runs_are_numpys(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).normal(size=(24, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x.copy()), rel=1e-9)
        np.testing.assert_allclose(slope, other, rtol=1e-7, atol=1e-9)
    assert fun in OTHERS or derivative.cache_info().misses <= 14


def test_what_longer_runs_read_from_outside_is_read_in_short_ones():
    """A run of no iteration does not come to ``rate``: other calls of its code do."""
    rate = 0.5

    def fun(x):
        total = 0.0
        for i in range(6):
            v = x[i]
            while abs(v) > 1.0:
                v = v * rate
            total = total + v
        return total

    derivative = value_and_grad(fun)
    rng = np.random.default_rng(0)
    for k in range(40):
        rate = (0.5, 0.7)[k // 20]
        x = rng.normal(size=6) * (2.0 if k % 3 else 0.1)
        value, slope = derivative(x)
        times = [next(n for n in range(99) if abs(v) * rate**n <= 1.0) for v in x]
        np.testing.assert_allclose(slope, [rate**n for n in times], rtol=1e-12)
        assert value == pytest.approx(fun(x))
    assert derivative.cache_info().hits > 20


def test_the_last_iteration_of_a_long_loop_may_be_short():
    """Iterations that are left out of the trace are alike; the one that ends the loop searches for a step no more."""

    def fun(x):
        p = x[0]
        for _ in range(60):
            g = 2 * (p - 1) * (1 + 0.1 * np.sin(p) ** 2)
            if abs(g) < 1e-5:
                break
            step = 1.0
            while (p - step * g - 1) ** 2 > 0.9 * (p - 1) ** 2:
                step *= 0.5
            p = p - 0.2 * step * g
        return p * x[1]

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(0).normal(size=(20, 2)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x))
        np.testing.assert_allclose(slope, other, rtol=1e-8, atol=1e-12)
    assert derivative.cache_info().hits


def test_empty_lists_of_loops_are_known_by_their_iterations():
    """Second derivatives of a loop that this call does not enter: what its iterations save has a kind all the same."""

    def fun(x):
        total = 0.0
        for i in range(4):
            v = x[i]
            while v > 1.0:
                v = v**2 * 0.3
            total = total + v**3
        return total

    derivative = value_and_grad(lambda x: np.sum(value_and_grad(fun)(x)[1] ** 2))
    for x in np.random.default_rng(0).normal(size=(30, 4)) * 1.5:
        _, slope = derivative(x)
        step = 1e-6 * np.eye(4)
        ends = [np.sum(value_and_grad(fun, mode="dynamic")(x + s)[1] ** 2) for s in (*step, *-step)]
        np.testing.assert_allclose(slope, (np.array(ends[:4]) - ends[4:]) / 2e-6, rtol=1e-5, atol=1e-5)
    assert derivative.cache_info().hits


def left_alike(x):
    """What each iteration leaves in two locals is one number; what they hold before the loop is two."""
    s, t, total, u = x[1], x[2], x[3], x[0]
    while u > 1:
        total = total + s + 5 * t if u > 3 else total + s * t
        s = t = u
        u = u * 0.5
    return total + s + 3 * t


def test_locals_that_iterations_leave_alike_may_begin_otherwise_where_none_has_run():
    derivative = value_and_grad(left_alike)
    for first in (20.0, 20.0, 0.5, 0.5, 0.5, 20.0, 7.0, 2.5):
        x = np.array([first, 0.3, -0.7, 0.2])
        value, slope = derivative(x)
        assert value == pytest.approx(left_alike(x), rel=1e-14)
        np.testing.assert_allclose(slope, value_and_grad(left_alike, mode="dynamic")(x)[1], rtol=1e-14)


def test_threads_share_what_runs_told():
    derivative = value_and_grad(counted)
    expected = value_and_grad(counted, mode="dynamic")
    points = np.random.default_rng(0).normal(size=(4, 12, 8))
    found = {}

    def work(k):
        found[k] = [derivative(x)[1] for x in points[k]]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_allclose(found[k], [expected(x)[1] for x in points[k]], rtol=1e-9)
