"""Loops that are rolled up: the code does not grow with the trip count, and stays right for those never traced."""

import re
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from agreement import agrees, slopes
from benchmarks.workloads import lorenz as lorenz_workload
from benchmarks.workloads import newton as newton_workload
from hypothesis import assume, given
from hypothesis import strategies as st

from symgrad import (
    check_grads,
    elementwise_grad,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    value_and_grad,
    vmap,
    without,
)
from symgrad.ir import Graph, aval_of
from symgrad.loops import rolling
from symgrad.ops.core import REGISTRY
from symgrad.pytree import flatten
from symgrad.transform.loop import Body, Course, loop_of

X = np.array([0.5, -1.25, 2.0, 0.75])
M = np.array([[0.5, 0.1, 0.0, 0.2], [0.2, 0.4, 0.1, 0.0], [0.0, 0.3, 0.5, 0.1], [0.1, 0.0, 0.2, 0.6]])


def source(derivative, *args):
    """The source after two traces."""
    for _ in range(2):
        derivative(*args)
    return derivative.source(*args)


# -- what is rolled up ---------------------------------------------------------------------------------------------


def lorenz(sigma, rho, beta, n):
    x = y = z = 1.0
    for _ in range(n):
        dx = sigma * (y - x)
        dy = x * (rho - z) - y
        dz = x * y - beta * z
        x = x + 0.01 * dx
        y = y + 0.01 * dy
        z = z + 0.01 * dz
    return x + y + z


def by_elements(x, n):
    y = 0.5
    for v in np.tile(x, n):
        y = np.sin(y + v)
    return y


def by_zip(x, n):
    y = 0.5
    for a, b in zip(np.tile(x, n), np.repeat(x, n), strict=True):
        y = np.sin(y * a + b)
    return y


def by_enumerate(x, n):
    y = 0.5
    for i, a in enumerate(np.tile(x, n)):
        y = np.sin(y * a + i)
    return y


def by_reversed(x, n):
    y = 0.5
    for a in reversed(np.tile(x, n)):
        y = np.sin(y * a)
    return y


def by_index(x, n):
    long = np.tile(x, n)
    y = 0.5
    for i in range(1, len(long)):
        y = y * 0.5 + long[i] * long[i - 1]
    return y


def with_clock(x, n):
    t, y = 0.0, x
    for _ in range(4 * n):
        y = y + 0.01 * np.cos(t) * y
        t = t + 0.01
    return np.sum(y * t)


def with_counter(x, n):
    k, y = 0, x
    for _ in range(4 * n):
        k += 1
        y = y + x / k
    return np.sum(y) * k


def in_place(x, n):
    y = np.tile(x, n)
    for i in range(1, len(y)):
        y[i] += 0.5 * y[i - 1]
    return np.sum(y**2)


def nested(x, n):
    y = x[0]
    for i in range(4 * n):
        z = x[1]
        for j in range(4 * n):
            z = 0.5 * z + np.sin(z + i + j)
        y = 0.5 * y + z
    return y


def inner_derivative(x, n):
    y = x
    for _ in range(4 * n):
        y = y - 0.05 * grad(lambda v: np.sum(np.sin(v) * v))(y)
    return np.sum(y)


def invariant(x, n):
    y = x
    for _ in range(4 * n):
        y = y * np.exp(-x) + 1
    return np.sum(y)


def states(x, n):
    s = {"x": x, "v": (x * 0.5, x * 0.1)}
    for _ in range(4 * n):
        s = {"x": s["x"] + 0.1 * s["v"][0], "v": (s["v"][1], s["x"] * 0.1)}
    return np.sum(s["x"] * s["v"][0])


def costs_on_the_way(x, n):
    """What an iteration asks of the state that it leaves, the next one asks again."""
    cost = 0.0
    for v in np.tile(x, n):
        angle, speed = x[0], x[1]
        x = np.array([angle + 0.1 * speed, speed - 0.1 * np.sin(angle) + v])
        cost += x[0] ** 2 + np.sin(x[0])
    return cost


def costs_nested(x, n):
    cost = x[0] ** 2
    for v in np.tile(x, n):
        for _ in range(4 * n):
            x = np.array([x[0] + 0.1 * x[1], x[1] - 0.1 * np.sin(x[0]) + v])
        cost += np.sin(x[0])
    return cost


def energies(x, n):
    energy = lambda s: 0.5 * s[1] ** 2 - np.cos(s[0])
    state, lost = [x[0], x[1]], 0.0
    for v in np.tile(x, n):
        before = energy(state)
        state = [state[0] + 0.1 * state[1], state[1] - 0.1 * np.sin(state[0]) + v]
        lost = lost + energy(state) - before
    return lost


FOR = [by_elements, by_zip, by_enumerate, by_reversed, by_index, with_clock, with_counter, in_place, nested, invariant,
       inner_derivative, states, costs_on_the_way, costs_nested, energies]  # fmt: skip


@pytest.mark.parametrize("fun", FOR)
def test_code_does_not_grow(fun):
    """Twice the iterations, the same code but for the numbers in it."""
    sizes = [len(source(value_and_grad(fun), X, n).splitlines()) for n in (3, 6)]
    assert sizes[0] == sizes[1]
    check_grads(fun, (X, 3), argnums=0)


def both_sides(x, labels, times):
    """All of ``p`` is chosen, some of it on each side."""
    total = np.zeros(4)
    for t in times:
        p = 1 / (1 + np.exp(-(x + t * x[0])))
        total = total + t**2 * np.where(labels, p, 1 - p)
    return -np.sum(np.log(total))


def test_masks_that_are_true_everywhere_do_not_go_round():
    labels, times = np.array([True, False, False, True]), np.linspace(-1.0, 1.0, 7)
    check_grads(both_sides, (X, labels, times), argnums=0)
    text = source(grad(both_sides), X, labels, times)
    assert "np.any(" not in text, text
    assert "np.logical" not in text


def test_lorenz():
    arguments = (10.0, 28.0, 8 / 3)
    derivative = grad(lorenz, argnums=(0, 1, 2))
    text = source(derivative, *arguments, 50)
    assert text.count("for ") - text.count(" for ") <= 4
    assert "g_dx = 0.0" not in text
    np.testing.assert_allclose(derivative(*arguments, 50), grad(lorenz, (0, 1, 2), mode="dynamic")(*arguments, 50))


def plain_in_turn(x):
    """What was traced is a plain number in the end."""
    s, t, u = 0.0, 0.5, 0.2
    for _ in x:
        u = min(0.5, 0.4)
        s, t, u = t, u, s
    return s * x[0] + t


def test_locals_that_hold_plain_numbers_in_the_end():
    derivative = value_and_grad(plain_in_turn)
    for n in range(4):
        value, slope = derivative(X * n)
        assert value == plain_in_turn(X * n)
        np.testing.assert_allclose(slope, [0.4, 0, 0, 0])


def newton(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


def newton_counting(a):
    x, k = a, 0
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
        k += 1
    return x * k


def newton_break(a):
    x = a
    while True:
        x = 0.5 * (x + a / x)
        if abs(x * x - a) < 1e-10:
            break
    return x


def newton_for(a):
    x = a
    for i in range(50):  # noqa: B007 -- read afterwards
        x = 0.5 * (x + a / x)
        if abs(x * x - a) < 1e-10:
            break
    return x * i


def newton_return(a):
    x = a
    while True:
        x = 0.5 * (x + a / x)
        if abs(x * x - a) < 1e-10:
            return x


def newton_object(a):
    class State:
        pass

    return newton(a)


def newton_residual(a):
    x, r = a, 1.0
    while abs(r) > 1e-10:
        r = 0.5 * (x - a / x)
        x = x - r
    return x + r


def newton_nested(a):
    total = 0.0
    for i in range(4):
        total = total + newton(a + i)
    return total


def newton_twice(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = x - (x * x - a) / (2.0 * x)
    return x


WHILE = [newton, newton_counting, newton_break, newton_for, newton_return, newton_residual, newton_nested, newton_twice]


@pytest.mark.parametrize("fun", WHILE)
def test_trip_counts_never_traced(fun):
    """Two traced calls are enough for any tolerance loop; the rest is compiled."""
    derivative = value_and_grad(fun)
    dynamic = value_and_grad(fun, mode="dynamic")
    for a in (2.1, 9.2, 0.3, 100.0, 12345.0, 1.1, 3e-4):
        np.testing.assert_allclose(derivative(a), dynamic(a), rtol=1e-9)
    assert derivative.cache_info().misses <= 3


def test_short_runs_do_not_spoil_it():
    """A loop that runs too short to be rolled up is one that another call has rolled up."""
    derivative = grad(newton)
    for a in (1.0, 1.0, 1.0, 2.1, 1.0, 9.2, 100.0, 1.0, 5.0):
        assert derivative(a) == pytest.approx(grad(newton, mode="dynamic")(a))
    misses = derivative.cache_info().misses
    assert derivative(7.7) == pytest.approx(0.5 / np.sqrt(7.7), rel=1e-4)
    assert derivative.cache_info().misses == misses
    assert "dynamic" not in derivative.explain()


def made_anew(x):
    """Filters make the same matrices in each step, and look at one from other sides."""
    step = np.array([[1.0, 0.1], [0.0, 1.0]])
    state, spread = np.zeros(2), np.eye(2)
    for v in x:
        state, spread = step @ state, step @ spread @ step.T + 0.5 * np.eye(2)
        gain = spread[0] / (spread[0, 0] + v**2)
        state, spread = state + gain * (v - state[0]), spread - np.outer(gain, spread[0])
    return state @ state


def made_anew_while(x):
    state = x[:2]
    while np.sum(state**2) < 50.0:
        state = state @ (1.2 * np.eye(2)) + np.array([0.1, 0.2])
    return np.sum(state)


@pytest.mark.parametrize("fun", [made_anew, made_anew_while])
def test_arrays_that_each_iteration_makes_anew(fun):
    x = np.tile(X, 2)
    agrees(fun, x)
    assert ("while again" if fun is made_anew_while else "in range(1, 8)") in source(grad(fun), x)


def test_arrays_that_are_alike_and_live_on():
    """Arrays of the same content are not taken for one where each may change: those here are nobody's that a trace knows."""
    kept = [np.eye(4) for _ in range(6)]
    hand_out = dict(enumerate(kept)).__getitem__

    def fun(x):
        for i in range(6):
            x = np.sin(x) @ hand_out(int(i))
        return np.sum(x)

    derivative = grad(fun)
    for _ in range(4):
        derivative(X)
    kept[4][1, 2] = 3.0
    np.testing.assert_allclose(derivative(X), grad(fun, mode="dynamic")(X))

    def last_changes(x):
        made = []
        for _ in range(6):
            made.append(np.eye(4))
            x = np.sin(x) @ made[-1]
        made[0][0, 0] = 2.0
        return np.sum(x @ made[0])

    agrees(last_changes, X)


def test_tables_of_the_functions_own():
    """A place in a plain array that hangs on an argument is not looked at."""

    def fun(p, seen):
        table = np.array([[0.9, 0.1, 0.4], [0.2, 0.8, 0.3]])
        state = p
        for v in seen:
            state = np.sin(state + 1.0) * table[:, v]
        return np.sum(state)

    derivative, rng = grad(fun), np.random.default_rng(0)
    for _ in range(6):
        p, seen = rng.standard_normal(2), rng.integers(0, 3, 20)
        np.testing.assert_allclose(derivative(p, seen), grad(fun, mode="dynamic")(p, seen))
    assert derivative.cache_info().misses == 2


def test_born_inside():
    """What is there only after an iteration must not be read where the loop does not run."""

    def fun(a):
        x = a
        while x > 1.5:
            half = x / 2
            x = half
        return x * half

    derivative = grad(fun)
    for a in (5.0, 9.0, 5.0, 9.0):
        derivative(a)
    with pytest.raises(UnboundLocalError):
        derivative(1.0)
    assert derivative(20.0) == pytest.approx(grad(fun, mode="dynamic")(20.0))


HAND_WRITTEN = {
    "newton": (newton_workload, [(a,) for a in np.random.default_rng(0).uniform(0.1, 1000.0, 64).tolist()]),
    "lorenz": (lorenz_workload, [(10.0 + s, 28.0, 8 / 3, 1000) for s in (0.3, 0.8)]),
}


@pytest.mark.parametrize(("module", "calls"), HAND_WRITTEN.values(), ids=HAND_WRITTEN)
def test_hand_written_gradients_agree(module, calls):
    """Those that the benchmarks compare to, at full length and in many trip counts."""
    derivative = grad(module.make(np), module.WORKLOAD.argnums)
    for _ in range(2):
        for call in calls:
            np.testing.assert_allclose(derivative(*call), module.hand(*call), rtol=1e-8)


# -- every kind of derivative --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fun", [by_elements, by_index, with_clock, in_place, nested, states])
def test_higher_orders(fun):
    check_grads(fun, (X, 2), argnums=0, order=2)
    matrix, direction = hessian(fun), hvp(fun)
    expected = hessian(fun, mode="dynamic")(X, 2)
    for _ in range(3):
        np.testing.assert_allclose(matrix(X, 2), expected, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(direction(X, X[::-1].copy(), 2), expected @ X[::-1], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("fun", WHILE)
def test_higher_orders_of_while(fun):
    for order in (2, 3):
        one, other = fun, fun
        for _ in range(order):
            one, other = grad(one), grad(other, mode="dynamic")
        for a in (2.1, 9.2, 0.3, 30.0):
            assert one(a) == pytest.approx(other(a), rel=1e-8)
    for a in (2.1, 9.2, 0.3, 30.0):
        value, tangent = jvp(fun, (a,), (2.0,))
        assert (value, tangent) == pytest.approx((fun(a), 2 * grad(fun, mode="dynamic")(a)))


def steps(x, n):
    y = x
    for i in range(n):
        y = np.tanh(M @ y) + 0.1 * i
    return y


def cells(w, x, n):
    h = x
    for _ in range(n):
        h = np.tanh(w @ h) + 0.1 * np.exp(-h[1:2]) * h
    return np.sum(h**2)


@pytest.mark.parametrize("make", [grad, elementwise_grad, hvp, hessian])
def test_what_is_dear_is_computed_once(make):
    w, x = np.array([[0.3, -0.2], [0.5, 0.1]]), np.array([0.4, -0.7])
    args = (w, 0.1 * w, x, 9) if make is hvp else (w, x, 9)
    derivative = make(cells)
    with without("share"):
        plain = make(cells)
    for _ in range(3):
        np.testing.assert_allclose(derivative(*args), plain(*args), rtol=1e-12, atol=1e-14)
    both = [re.sub("#.*", "", made.source(*args)) for made in (derivative, plain)]
    shared, anew = [text.count("np.tanh") + text.count("np.exp") for text in both]
    assert shared == 2 if make in (grad, elementwise_grad) else shared < anew


def walk(p, n):
    """What an iteration ends with is looked at, too."""
    x, y = p[0], p[1]
    total = 0.0
    for i in range(n):
        x, y = x + 0.1 * np.sin(y) * x, y - 0.2 * x * y + 0.01 * i
        total = total + (x - 1.0) ** 2 + np.tanh(y) ** 2
    return total


def fall(p, n):
    x, total = p, 0.0
    while np.sum(x) > 0.5 * n:
        x = x * 0.8 - 0.01 * x[::-1] ** 2
        total = total + np.sum(x**3)
    return total


@pytest.mark.parametrize("fun", [walk, fall])
@pytest.mark.parametrize("make", [grad, value_and_grad, hessian, hvp])
def test_what_an_iteration_ended_with_goes_round(fun, make):
    points = [np.array([0.5, 1.2]), np.array([0.1, 0.2]), np.array([2.5, 1.7])]
    derivative = make(fun)
    with without():
        plain = make(fun)
    for n in (1, 2, 7, 7, 7):
        for p in points:
            args = (p, 0.1 * p, n) if make is hvp else (p, n)
            got, want = flatten(derivative(*args))[0], flatten(plain(*args))[0]
            for x, y in zip(got, want, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-11)


def test_no_iteration_is_computed_again():
    derivative = grad(walk)
    with without("share"):
        plain = grad(walk)
    both = [re.sub("#.*", "", source(made, np.array([0.5, 1.2]), 9)) for made in (derivative, plain)]
    assert [text.count("np.sin") for text in both] == [1, 2]  # forward; and in the slope, which has it from there
    assert [text.count("0.01 * i") for text in both] == [1, 2]


def controls(us, x0):
    x, total = x0, 0.0
    for t in range(1, len(us)):
        x = np.tanh(0.5 * x[::-1] + us[t] - 0.5 * us[t - 1])
        total = total + np.sum(x * us[t])
    return total


def weights(us, x0):
    x, total = x0[0], 0.0
    for t in range(len(us)):
        x = x + 0.1 * np.sin(x) * us[t, 0] + us[t % 3, 1]
        total = total + x**2
    return total


def written(us, x0):
    y, h = np.zeros((len(us), 4), like=us), us[0]
    for t in range(len(us)):
        h = np.tanh(0.9 * h + us[t])
        y[t] = h * x0
    return np.sum(y**3)


@pytest.mark.parametrize("fun", [controls, weights, written])
@pytest.mark.parametrize("make", [grad, value_and_grad, hessian, jacrev])
def test_each_iteration_writes_only_what_it_has(fun, make):
    rng = np.random.default_rng(0)
    derivative = make(fun)
    with without():
        plain = make(fun)
    for n in (3, 12, 12, 12, 30):
        us, x0 = rng.standard_normal((n, 4)), rng.standard_normal(4)
        got, want = flatten(derivative(us, x0))[0], flatten(plain(us, x0))[0]
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
        kept = np.array(got[-1])
        derivative(2 * us, x0)
        np.testing.assert_array_equal(got[-1], kept)  # no call writes into another's
    if make is grad:
        us = rng.standard_normal((400, 4))
        inside = [line for line in str(source(derivative, us, x0)).splitlines() if line.startswith("        ")]
        assert not any("np.zeros((400" in line or ".copy()" in line for line in inside) or fun is written


def saves_much(p):
    x, y, z = p
    total = 0.0
    for i in range(7):
        inner = x * y
        for _ in range(5):
            inner = np.sin(inner * z + y * x)
            z = z * np.cos(inner) + 0.1
        x, y, z = np.exp(-x * z), np.sin(y * z) * x, x + y * i
        total = total + inner * x * y
    return total * z


@pytest.mark.parametrize("make", [grad, value_and_grad, hessian])
def test_what_is_read_together_lies_in_one_list(make):
    p = np.array([0.5, 1.2, 0.3])
    derivative = make(saves_much)
    with without("math"):
        apart = make(saves_much)
    for _ in range(3):
        got, want = flatten(derivative(p))[0], flatten(apart(p))[0]
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11)
    assert ".append((" in derivative.source(p, fast=True)
    assert ".append((" not in derivative.source(p)


def test_jacobians():
    expected = jacobian(steps, mode="dynamic")(X, 6)
    for make in (jacobian, jacrev, jacfwd):
        derivative = make(steps)
        for _ in range(3):
            np.testing.assert_allclose(derivative(X, 6), expected, rtol=1e-9, atol=1e-12)


def test_aux():
    def fun(a):
        x, k = a, 0
        while abs(x * x - a) > 1e-10:
            x = 0.5 * (x + a / x)
            k += 1
        return x, {"steps": k, "residual": x * x - a}

    derivative = value_and_grad(fun, has_aux=True)
    for a in (2.1, 9.2, 0.3, 100.0, 1.0, 30.0):
        (value, aux), slope = derivative(a)
        plain, expected = fun(a)
        assert (value, aux["steps"]) == (plain, expected["steps"])
        assert type(aux["steps"]) is int
        assert slope == pytest.approx(grad(lambda a: fun(a)[0], mode="dynamic")(a))


def test_numbers_of_all_kinds():
    def fun(x, n):
        y = x
        for i in range(n):
            y = y * 0.5 + x * (i + 1)
        return np.sum(np.real(y * np.conj(y)))

    for x in (X.astype(np.float32), X * (1 + 0.5j), np.float32(2.0), np.float64(0.5), 0.5, X[:0]):
        derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
        for _ in range(3):
            found, expected = derivative(x, 7), dynamic(x, 7)
            assert type(found) is type(expected)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5)


# -- long ones -----------------------------------------------------------------------------------------------------


def test_memory_of_a_long_loop():
    """Tracing holds what is saved, not what was recorded: some hundred operations an iteration would be too much."""

    def fun(x, n):
        y = x
        for _ in range(n):
            y = y + 0.001 * np.sin(y) * (1 - y) * x
        return y

    peaks = []
    for n in (2000, 5000):
        tracemalloc.start()
        grad(fun)(0.5, n)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 3000 * 400


@pytest.mark.long
def test_a_long_loop_that_changes_late():
    def fun(x, n):
        y = x
        for i in range(n):
            y = y * 0.999 if i != 3000 else y + x
        return y

    derivative = value_and_grad(fun)
    for _ in range(3):
        assert derivative(0.5, 5000) == pytest.approx((fun(0.5, 5000), fun(1.0, 5000) - fun(0.0, 5000)))


@pytest.mark.long
def test_a_long_loop_whose_arrays_are_held_for_a_while():
    def fun(x):
        y, held = x, []
        for i in range(3000):
            a = np.array([0.999, 0.9995])
            y = y * a + x * 0.001
            if i == 1500:
                held.append(a)
            if i == 2100:
                held.clear()
        return np.sum(y)

    derivative, x = grad(fun), np.array([0.3, 0.4])
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x), rtol=1e-9)


ENDS_OF_LISTS = [
    lambda found, n: np.sum(np.stack(found) ** 2),
    lambda found, n: np.mean(found),
    lambda found, n: np.sum(np.array(found)[3:].T @ np.ones(n - 3)),
    lambda found, n: np.sum(found[-1] * found[2]),
]


@pytest.mark.parametrize("end", ENDS_OF_LISTS)
@pytest.mark.parametrize("start", [0.5, np.array([0.5, 0.3])])
def test_a_long_loop_that_fills_a_list_is_a_loop(end, start):
    def fun(x, n):
        y, found = x, []
        for i in range(n):
            y = y * 0.999 + np.sin(x) * (0.1 * i)
            found.append(y)
        return end(found, n)

    derivative = grad(fun)
    for n in (40, 300, 1200):
        expected = grad(fun, mode="dynamic")(start, n)
        for _ in range(3):
            np.testing.assert_allclose(derivative(start, n), expected, rtol=1e-9)
    lines = {len(derivative.source(start, n, fast=True).splitlines()) for n in (300, 1200)}
    assert max(lines) < 120, lines


class Slot:
    """An object that a loop may change."""

    def __init__(self):
        self.value, self.count = 0.0, 0

    def step(self, y):
        self.count += 1
        return y * 0.99 if self.count < 150 else y + 1.0


def leap_by_plain_counter(x):
    y, k = x, 0
    for _ in range(200):
        k = min(k + 1, 50)
        y = y * 0.99 if k < 50 else y * 0.98 + x
    return y


def leap_by_index_of_list(x):
    weights = [0.99] * 150 + [0.5] * 50
    y = x
    for i in range(200):
        y = y * weights[i] + x
    return y


def leap_by_plain_array(x):
    weights = np.full(200, 0.99)
    weights[150:] = 0.5
    y = x
    for i in range(200):
        y = y * weights[i] + x
    return y


def leap_by_late_branch(x):
    y = x
    for i in range(200):
        y = y * 0.99 if i < 150 else y + x
    return y


def leap_by_bits(x):
    y = x
    for i in range(200):
        y = y * 0.9 + x * int(i).bit_length() + 0 * i
    return y


def leap_by_objects(x):
    slot, y = Slot(), x
    for _ in range(200):
        y = slot.step(y)
    return y


def leap_by_hidden_state(x):
    made = iter([0.99] * 150 + [0.5] * 50)

    def factor():
        return next(made)

    y = x
    for _ in range(200):
        y = y * factor() + x
    return y


def leap_by_closure(x):
    count = 0

    def factor():
        nonlocal count
        count += 1
        return 0.99 if count < 150 else 0.5

    y = x
    for _ in range(200):
        y = y * factor() + x
    return y


def leap_by_default(x):
    def factor(seen=[]):  # noqa: B006
        seen.append(1)
        return 0.99 if len(seen) < 150 else 0.5

    y = x
    for _ in range(200):
        y = y * factor() + x
    return y


def leap_with_caught_error(x):
    y, left = x, 150.0
    for _ in range(200):
        left = left - 1.0
        try:
            y = y + x / left
        except ZeroDivisionError:
            y = y * 0.5
    return y


def leap_into_complex(x):
    y, t = x, 3.0
    for _ in range(100):
        t = t - 0.1
        y = y * 0.99 + abs(t**0.5) * x
    return y


def leap_with_last_index(x):
    y, before = x, 0.0
    for i in range(200):
        y = y * 0.99 + x * i
        if i == 120:
            before = y
    return y * i + before


def leap_in_place(x):
    y = np.zeros_like(x)
    first = y[:1]
    for i in range(150):
        y[i % 3] = y[i % 3] + x[0] * i
    return np.sum(y) + first[0]


def leap_swaps(x):
    a, b = x, x * 2.0
    for _ in range(101):
        a, b = b, a * 0.99
    return a + 3.0 * b


def leap_swaps_with_a_number(x):
    a, b = x + 0.0, 2.0
    for _ in range(40):
        if len(X) < 4:
            a = a * x
        a, b = b, a
    return a


def leap_along_a_line(x):
    a, b, c, d, e, f, g, h, n = x, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0
    for _ in range(50):
        if len(X) < 4:
            a = a * x
        a, b, c, d, e, f, g, h, n = h, a, b, c, d, e, f, g, n + 1
    return a + 2 * c + 3 * d + n + sum([x for _ in range(n)])


def leap_within_loops(x):
    y = x
    for k in range(5):
        for i in range(100):
            y = y * 0.99 + x * i * 0.01
        y = y * k
    return y


def leap_while_counting(x):
    y, i = x, 0
    while i < 200:
        y = y * 0.99 + 0.001 * i
        i += 1
    return y * i


def leap_while_value(x):
    y, steps = x, 0
    while abs(y) > 1e-3:
        y = y * 0.97
        steps += 1
    return y * steps


def leap_while_counting_what_is_left(x):
    y, i, share = x, 0, 1.0
    while i < 200:
        share = 1.0 / (i + 1)
        y, i = y * 0.99 + share, i + 1
    return y * share * i


def leap_while_both(x):
    y, i = x, 0
    while i < 150 and abs(y) > 1e-9:
        y, i = y * 0.95, i + 1
    return y * i


def leap_while_one_of_three_fails(x):
    y, i, left = x, 0, 10.0
    while i < 150 and abs(y) > 1e-9 and left > 0.5:
        y, left, i = y * 0.95, left - 0.1 * y, i + 1
    return y * i + left


def leap_while_an_element_is_there(x):
    values, y, i = [0.1 * k for k in range(60)], x, 0
    while i < 60 and values[i] < 100.0:
        y, i = y + values[i] * x, i + 1
    return y


def leap_while_something_holds_the_last_iteration(x):
    y, i, share = x, 0, 1.0
    while i < 200 and y > 0.02:
        i += 1
        share = 1.0 / (i + 1)
        y = y * 0.97
    return y * (i + 1) + share * x


def leap_while_a_number_is_there(x):
    y, i, limit = x, 0, 100.0
    while i < 60 and y < limit:
        y = y + 0.1 * x
        i += 1
        limit = 100.0 if i < 60 else None
    return y * i


def leap_while_nothing_is_to_do(x):
    y, i = x, 0
    while y > 10.0 and before > i:  # noqa: F821
        y, before, i = y * 0.9, y, i + 1  # noqa: F841
    return y * 2.0


def leap_while_with_late_branch(x):
    y, i = x, 0
    while i < 200:
        y = y * 0.99 if i < 150 else y + x
        i += 1
    return y


def leap_while_by_objects(x):
    slot, y, i = Slot(), x, 0
    while i < 200:
        y = slot.step(y)
        i += 1
    return y


def leap_while_tested_by_state(x):
    left = iter([True] * 100)

    def more(y):
        return (y > 0) if next(left, False) else (y > 10)

    y = x
    while more(y):
        y = y * 0.99 + 0.01
    return y


def leap_while_with_error(x):
    y, left = x, 150.0
    try:
        while y < 1e9:
            left = left - 1.0
            y = y + 1.0 / left
    except ZeroDivisionError:
        y = y * 0.5
    return y


def leap_while_true(x):
    y, before = x, 0.0
    while True:
        before = y
        y = y * 0.97 + 0.01 * x
        if abs(y - before) < 1e-4:
            break
    return y - before * x


def leap_to_a_break(x):
    y = x
    for i in range(1000):
        y = y * 0.97 + 0.001 * i * x
        if y < 0.3:
            break
    return y * i


def leap_past_a_break(x):
    y = x
    for i in range(100):
        y = y * 0.97 + 0.01 * x * i
        if y < -1.0:
            break
    return y + i


def leap_while_in_place(x):
    y, i = np.zeros_like(x), 0
    first = y[:1]
    while i < 150:
        y[1:] = y[1:] * 0.9 + x[:-1] * i
        y[0] = y[2] * 0.1 + x[0]
        i += 1
    return np.sum(y) + first[0]


def leap_while_within_loops(x):
    y = x
    for k in range(5):
        i = 0
        while i < 100:
            y = y * 0.99 + x * i * 0.01
            i += 1
        y = y * k
    return y


def leap_while_swapping(x):
    a, b, i = x, x * 2.0, 0
    while i < 101:
        a, b, i = b, a * 0.99, i + 1
    return a + 3.0 * b


def leap_while_growing_kinds(x):
    y, t, i = x, 3.0, 0
    while i < 100:
        t = t - 0.1
        y, i = y * 0.99 + abs(t**0.5) * x, i + 1
    return y


@pytest.mark.parametrize(
    "fun", [f for name, f in list(globals().items()) if name.startswith("leap_")], ids=lambda f: f.__name__
)
def test_long_loops_leap_to_no_other_result(fun):
    x = np.array([0.5, 0.25, 2.0]) if fun in (leap_in_place, leap_while_in_place) else 0.5
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    want = dynamic(x)
    np.testing.assert_allclose(want[0], fun(x.copy() if isinstance(x, np.ndarray) else x), rtol=1e-12)
    for _ in range(3):
        value, slope = derivative(x)
        np.testing.assert_allclose(value, want[0], rtol=1e-12)
        np.testing.assert_allclose(slope, want[1], rtol=1e-9)


def test_loops_that_end_by_either_of_two_tests():
    def fun(x, most):
        y, i = x, 0
        while i < most and abs(y) > 1e-3:
            y = y * 0.5 + 0.01 * y * y
            i += 1
        return y * i + x

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x, most in [(0.5, 60.0), (0.25, 60.0), (0.7, 3.0), (0.9, 0.0), (1e-4, 60.0), (0.5, 5.0), (20.0, 60.0), (0.3, 60.0)] * 2:
        np.testing.assert_allclose(derivative(x, most), dynamic(x, most), rtol=1e-12)
    assert derivative.cache_info().misses <= 4  # however often it runs
    x = np.array([0.5, 1e-4, 0.9, 20.0])
    np.testing.assert_allclose(vmap(grad(fun), (0, None))(x, 60.0), [grad(fun, mode="dynamic")(t, 60.0) for t in x], rtol=1e-12)
    np.testing.assert_allclose(hessian(fun)(0.5, 60.0), hessian(fun, mode="dynamic")(0.5, 60.0), rtol=1e-10)


@pytest.mark.parametrize(
    ("fun", "boundaries"),
    [
        (lorenz, 20),
        (by_elements, 20),
        (leap_swaps, 20),
        (leap_by_late_branch, None),
        (leap_while_counting, 40),
        (leap_while_value, 40),
        (leap_while_both, 40),
        (leap_while_true, 40),
        (leap_to_a_break, 40),
        (leap_past_a_break, 40),
        (leap_while_with_late_branch, None),
        (leap_while_by_objects, None),
        (leap_while_tested_by_state, None),
    ],
)
def test_long_loops_are_not_traced_to_their_end(fun, boundaries, monkeypatch):
    seen = []
    boundary = rolling.Roller._boundary
    monkeypatch.setattr(rolling.Roller, "_boundary", lambda *args: seen.append(args) or boundary(*args))
    args = {lorenz: (10.0, 28.0, 2.5, 500), by_elements: (X, 100)}.get(fun, (0.5,))
    derivative = grad(fun)
    for _ in range(3):
        derivative(*args)
    assert (len(seen) <= 2 * boundaries) if boundaries else (len(seen) > 200)


def test_a_leap_that_no_loop_took_the_place_of_is_of_one_call(monkeypatch):
    finish = rolling.Roller._finish
    monkeypatch.setattr(rolling.Roller, "_finish", lambda self: None if self.leaps is not self.trace.leaps else finish(self))
    derivative = value_and_grad(leap_while_value)
    for x in (0.5, 0.5, 0.9, 0.3, 0.4, 0.6):
        assert derivative(x) == pytest.approx(value_and_grad(leap_while_value, mode="dynamic")(x), rel=1e-12)
    assert derivative.cache_info().hits


@pytest.mark.long
def test_what_a_long_loop_leaves_behind():
    """Traced values that a list or an attribute holds stay what they were."""

    class Log:
        last = None

    def fun(x, n):
        y, kept, log = x, [], Log()
        for i in range(n):
            y = y * 0.999
            if i % 1000 == 0:
                kept.append(y)
            if i == 2000:
                log.last = y
        return y + sum(kept) * log.last

    derivative = value_and_grad(fun)
    for _ in range(3):
        assert derivative(0.5, 4500) == pytest.approx(value_and_grad(fun, mode="dynamic")(0.5, 4500))


# -- random programs -----------------------------------------------------------------------------------------------

UPDATES = [
    "{a} = np.sin({b}) * 0.9",
    "{a} = {a} * 0.5 + {b} * 0.25",
    "{a}, {b} = {b}, {a} * 0.8",
    "{a} = np.tanh({b} + {c})",
    "{a} = 0.6 * {a} + 0.1 * k",
    "{a} = {a} * {b} * 0.3 + 0.2",
    "{a} = {b}",
    "t = t + 0.25; {a} = {a} * 0.9 + 0.01 * t",
    "k += 1; {a} = {a} * 0.7 + 0.1 * k",
    "tmp = {b} - {c}; {a} = {a} * 0.5 + tmp * 0.3",
    "if {T}: {a} = {a} * 0.5",
    "{a} = {a} * 0.9 if {T} else {b} * 0.8",
    "if k > 3: {a} = {a} * 0.5",
    "state = (state[1], {a} * 0.5); {b} = {b} * 0.5 + state[0] * 0.3",
    "items[0] = items[1] * 0.5 + {a} * 0.1; items[1] = {b} * 0.5",
    "table['u'] = table['u'] * 0.5 + {a}",
    "w[0] = w[0] * 0.5 + {s}; w[1:] *= 0.9",
    "head *= 0.9; {a} = {a} * 0.5 + w[0] * 0.1",
    "log.append({a})",
    "last = {a}; {a} = {a} * 0.75",
    "box.v = box.v * 0.5 + {a}; box.n += 1",
]
HEADS = [
    "for i in range({n}):",
    "for i in range({n}, 0, -1):",
    "for i, v in enumerate(xs):",
    "for v in xs:",
    "for u, v in zip(xs, reversed(xs)):",
    "while norm(p) > {tol} and k < 9:",
    "while norm(p) > {tol}:",
    "while True:",
    "for i in range({m}):",
]
SETUP = """
def program(x, y):
    p, q, r = x * 1.0, y * 0.5, 1.0
    xs = np.stack([x, y, x * y, x - y, y])
    t, k, state, items, table = 0.0, 0, (x, y), [x, y], {"u": x}
    w = np.stack([x, y, x * 0.5])
    head, log, box, last = w[:2], [], Box(), q
    box.v, box.n = y, 0
"""
RESULT = """
    whole = p + 2 * q + 3 * r + t * p + k * q + state[0] + items[0] - items[1] + table["u"] + np.sum(w) + sum(log)
    return whole * 0.1 + box.v * box.n + last * len(log)
"""


class Box:
    pass


def norm(v):
    return np.abs(v)


@st.composite
def bodies(draw, depth, targets):
    """Statements of a loop, one to four; behind them a loop sometimes."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        a, b = draw(st.permutations(targets))[:2]
        c, d = draw(st.sampled_from("pqr")), draw(st.sampled_from("pqr"))
        test = draw(st.sampled_from([f"{c} > 0.4", f"{c} < {d}", "k % 2", "t > 0.6"]))
        lines.append(draw(st.sampled_from(UPDATES)).format(a=a, b=b, c=c, s=d, T=test))
    return lines, draw(loops(depth + 1, targets)) if depth < 1 and draw(st.integers(0, 3)) == 0 else []


@st.composite
def loops(draw, depth=0, targets="pqr"):
    """A loop as lines of source. Every one ends: by a count, or by a test on ``p``, to which it does nothing but halve it."""
    head = draw(st.sampled_from(HEADS))
    tested = head.startswith("while") or "{m}" in head
    lines, inner = draw(bodies(depth, "qr" if tested else targets))
    if tested:
        halve, way_out = "p = p * 0.5", draw(st.sampled_from(["if norm(p) < 0.05: break", "if norm(p) < 0.3: break"]))
        if head != HEADS[5]:
            lines.insert(draw(st.integers(0, len(lines))), way_out)
        lines.insert(draw(st.integers(0, len(lines))), halve)
    head = head.format(n=draw(st.sampled_from([0, 1, 3, 4, 5, 7])), m=12, tol=draw(st.sampled_from([0.5, 0.05])))
    return [head, *("    " + line for line in [*lines, *inner])]


def compiled(lines):
    """The function of these lines."""
    return of_source(SETUP + "".join(f"    {line}\n" for line in lines) + RESULT)


def of_source(text):
    """The function ``program`` of a text, in a file of its own, where its source is found again."""
    import linecache

    filename = f"/nowhere/loops_{abs(hash(text))}.py"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space = {"np": np, "norm": norm, "Box": Box}
    exec(compile(text, filename, "exec"), space)
    return space["program"], text


@given(st.lists(loops(), min_size=1, max_size=2), st.integers(0, 2**32 - 1))
def test_random_loops(parts, seed):
    """Traced, compiled and dynamic runs agree on inputs that take different courses, and with finite differences."""
    fun, text = compiled([line for part in parts for line in part])
    rng = np.random.default_rng(seed)
    inputs = [tuple(map(float, rng.uniform(0.1, 2.0, 2))) for _ in range(4)]
    derivative = value_and_grad(fun, argnums=(0, 1))
    dynamic = value_and_grad(fun, argnums=(0, 1), mode="dynamic")
    expected = [dynamic(*point) for point in inputs]
    for place in [0, 1, 0, 2, 1, 3, 2, 3, 0, 1, 2, 3]:
        value, slopes = derivative(*inputs[place])
        np.testing.assert_allclose(value, fun(*inputs[place]), rtol=1e-9, err_msg=text)
        np.testing.assert_allclose(value, expected[place][0], rtol=1e-9, err_msg=text)
        np.testing.assert_allclose(slopes, expected[place][1], rtol=1e-7, atol=1e-10, err_msg=text)
    for (x, y), (_, slopes) in zip(inputs, expected, strict=True):
        for way, slope in zip(((1, 0), (0, 1)), slopes, strict=True):
            ends = [fun(x + h * way[0], y + h * way[1]) for h in (2e-6, 1e-6, -1e-6, -2e-6)]
            near, wide = (ends[1] - ends[2]) / 2e-6, (ends[0] - ends[3]) / 4e-6
            left, right = (ends[0] - ends[1]) / 1e-6, (ends[2] - ends[3]) / 1e-6
            if abs(left - right) + abs(near - wide) < 1e-3 * (1 + abs(near)):  # no jump or kink nearby
                np.testing.assert_allclose(slope, near, rtol=1e-3, atol=1e-3, err_msg=text)


@pytest.mark.parametrize("turn", ["b, c, a", "c, a, b", "b, a, c", "a, c, b", "b, a + c, b", "c, c, a * b", "b + c, a, a + b"])
def test_values_that_change_places(turn):
    """New values are all computed from old ones."""
    space: dict[str, Any] = {}
    exec(
        f"def fun(x, n):\n a, b, c = x, 0.5 * x, x * x\n for _ in range(n):\n  a, b, c = {turn}\n return a + 2 * b + 3 * c",
        space,
    )
    derivative, dynamic = value_and_grad(space["fun"]), value_and_grad(space["fun"], mode="dynamic")
    for n in (5, 5, 5, 6, 7):
        assert derivative(0.7, n) == pytest.approx(dynamic(0.7, n), rel=1e-12)


def diffused(u, k, n):
    for _ in range(n):
        u = np.concatenate([u[:1], u[1:-1] + k * (u[2:] - 2 * u[1:-1] + u[:-2]), u[-1:]])
    return np.sum(u**2)


def waves(u, c, n):
    v = u
    for _ in range(n):
        u, v = v, 2 * v - u + c * c * (np.roll(v, 1) + np.roll(v, -1) - 2 * v)
    return np.sum(v**2)


def squeezed(u, k, n):
    for _ in range(n):
        u = np.tanh(k * u[::-1] + u) * u  # u itself is needed, too
    return np.sum(u)


@pytest.mark.parametrize(("fun", "lists"), [(diffused, 1), (waves, 1), (squeezed, 2)])
def test_loops_keep_what_takes_no_more_memory_than_what_it_is_made_of(fun, lists):
    u = np.sin(np.arange(30.0))
    derivative, dynamic = (grad(fun, (0, 1), mode=mode) for mode in ("auto", "dynamic"))
    for k in (0.1, np.linspace(0.05, 0.15, 28 if fun is diffused else 30)):
        for _ in range(3):
            for found, expected in zip(derivative(u, k, 40), dynamic(u, k, 40), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
        assert derivative.source(u, k, 40).count(".append(") == lists


def normalised(u, a, n):
    for _ in range(n):
        u = a @ u
        u = u / np.sum(u)
    return np.sum(u**2)


def test_loops_keep_the_number_and_not_the_array_that_gave_it():
    u, a = 1.0 + np.sin(np.arange(30.0)), np.cos(np.arange(900.0).reshape(30, 30)) + 2.0
    derivative, dynamic = (grad(normalised, (0, 1), mode=mode) for mode in ("auto", "dynamic"))
    for _ in range(3):
        for found, expected in zip(derivative(u, a, 40), dynamic(u, a, 40), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    forwards, backwards = derivative.source(u, a, 40).split("# backward")
    assert forwards.count(".append(") == 2
    assert "reversed(totals)" in backwards
    assert backwards.count("np.sum(") == 1


# -- what is done once ---------------------------------------------------------------------------------------------


def decays(x, rate, step, n):
    total = 0.0
    for i in range(n):
        x = x - step * (rate * x)
        total = total + step * (x * rate) * x - i * step
    return total * x


def drifts(x, rate, step, n):
    v = 1.0
    for _ in range(n):
        v = v + step * ((rate - step) * x - 0.5 * v)
        x = x + step * v
    return x * v


def turns(x, rate, step, n):
    y = np.array([1.0, 0.5])
    for _ in range(n):
        y = y + step * (rate * np.array([x * y[1], -y[0]]))
    return y @ y


@pytest.mark.parametrize("fun", [decays, drifts, turns])
def test_what_does_not_change_is_put_together_before_the_loop(fun):
    derivative, first = value_and_grad(fun, (0, 1, 2)), (0.75, 1.5, 0.01, 50)
    with without("hoist"):
        plain = value_and_grad(fun, (0, 1, 2))
    for _ in range(3):
        derivative(*first), plain(*first)
    assert "runtime.product(" in derivative.source(*first, fast=True)
    assert "runtime.product(" not in plain.source(*first, fast=True)
    for args in [first, (0.0, 0.0, 0.01, 50), (-0.5, 2.0, 0.0, 50), (1e-150, 1e-170, 1e-140, 50), (np.inf, 0.0, 0.01, 50)]:
        with np.errstate(invalid="ignore"):
            value, slopes = derivative(*args)
            expected = plain(*args)
        np.testing.assert_allclose([value, *slopes], [expected[0], *expected[1]], rtol=1e-12)


@pytest.mark.parametrize(("rate", "step"), [(1e200, 1e200), (1e-200, 1e-200), (1e-200, 1e200), (1e180, 1e-150)])
def test_numbers_too_large_or_small_to_be_put_together_stay_apart(rate, step):
    """``rate * step`` is no number with all its digits, ``step * (rate * x)`` is."""

    def fun(x, rate, step):
        total = 0.0
        for _ in range(20):
            total = total + step * (rate * x)
        return total

    derivative = value_and_grad(fun)
    x = 1.0 / rate
    for _ in range(3):
        derivative(0.5, 0.5, 0.5)
    traced = derivative.cache_info().misses
    value, slope = derivative(x, rate, step)
    np.testing.assert_allclose(value, 20.0 * step * (rate * x), rtol=1e-12)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(slope, 20.0 * np.float64(step) * rate, rtol=1e-12)
    assert derivative.cache_info().misses == traced


def test_locals_that_are_one_only_after_an_iteration():
    def fun(x, y):
        p, q, r = x, y * 0.5, 1.0
        last, k = q, 0
        while np.abs(p) > 0.5 and k < 9:
            p = p * 0.5
            q = np.sin(r) * 0.9
            last, q = q, q * 0.75
            while True:
                if np.abs(p) < 0.3:
                    break
                p = p * 0.5
                r = np.sin(q) * 0.9
                q = r
                last, q = q, q * 0.75
        return p + q + r + last

    derivative, dynamic = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    for x in (0.49, 1.48, 0.49, 0.55, 1.48, 0.42, 0.55, 0.42, 0.49, 1.48, 0.55, 0.42):
        value, slopes = derivative(x, 0.8)
        assert value == pytest.approx(fun(x, 0.8), rel=1e-12)
        assert slopes == pytest.approx(dynamic(x, 0.8)[1], rel=1e-12)


def strays(x, y, n):
    z = x + y
    for _ in range(n):
        y = y - 0.3 * y * y
        x = x * 0.9 + 0.05 * z
    return x


def test_what_grows_beyond_all_bounds_and_reaches_no_result():
    """Its cotangent and its tangent do not go round: zero times infinity is no number."""
    for derivative in (grad(strays, (0, 1)), grad(strays, (0, 1), mode="dynamic")):
        for _ in range(3):
            with np.errstate(all="ignore"):
                slopes = derivative(2.0, -0.3, 60)
            assert slopes == pytest.approx((0.5 + 0.5 * 0.9**60, 0.5 - 0.5 * 0.9**60), rel=1e-12)
    pushed = jacfwd(lambda x: strays(x, np.float64(-0.3), 60))
    for _ in range(3):
        with np.errstate(all="ignore"):
            assert pushed(2.0) == pytest.approx(0.5 + 0.5 * 0.9**60, rel=1e-12)


def test_inputs_of_loops_that_are_trimmed_again_and_again_stay_apart():
    """Arrays that stay what they were are taken out of what goes round, in several rounds."""

    def fun(x, y):
        a, b, c = x * y, x.copy(), x.copy()
        for j in range(4, 0, -1):
            a[-j] = b[j - 1]
            c += c * np.roll(a, 1)
        for i in range(4):
            b[i - 1] = a[1] * a[-1]
        return np.sum(c * c)

    slope = grad(fun)
    twice = lambda x, y: np.sum(slope(x, y) ** 2)
    x, y = np.linspace(-0.5, 0.8, 5), np.linspace(0.3, -0.7, 5)
    derivative, expected = grad(twice), grad(twice, mode="dynamic")(x, y)
    for _ in range(4):
        np.testing.assert_allclose(derivative(x, y), expected, rtol=1e-10)


# -- arrays that loops read and write ------------------------------------------------------------------------------


def recurrence(u):
    x = np.zeros(len(u))
    x[0] = u[0]
    for i in range(1, len(u)):
        x[i] = np.sin(x[i - 1]) * 0.5 + u[i]
    return np.sum(x**2)


def unrolled_network(u):
    h = np.zeros((len(u) + 1, 3))
    for t in range(len(u)):
        h[t + 1] = np.tanh(0.5 * h[t] + u[t])
    return np.sum(h**2)


@pytest.mark.parametrize("fun", [recurrence, unrolled_network])
def test_loops_over_arrays_take_memory_for_what_they_read(fun):
    derivative, peaks = grad(fun), []
    u = np.linspace(-1.0, 1.0, 40)
    expected = grad(fun, mode="dynamic")(u)
    for _ in range(3):
        np.testing.assert_allclose(derivative(u), expected, rtol=1e-12)
    for n in (1000, 4000):
        for _ in range(3):
            tracemalloc.start()
            derivative(np.linspace(-1.0, 1.0, n))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[5] < 8 * peaks[2]  # of four times the size; a copy for each iteration would be sixteen times as much
    assert peaks[5] < 4000 * 400
    assert not re.search(r"^ {8}\w+ = \w+\.copy\(\)", str(derivative.source(u, fast=True)), re.MULTILINE)


PLACES = ["{a}[i]", "{a}[i - 1]", "{a}[0]", "{a}[-1]", "{a}[2]", "np.sum({a}[1:3])", "({a}[:3] @ {b}[i - 1 : i + 2])"]
WRITTEN = [
    "{a}[i] = np.sin({p}) * 0.5 + u[i]",
    "{a}[i] += {p} * {q} * 0.3",
    "{a}[i - 1] = 0.5 * {p} + 0.1",
    "{a}[i] *= np.tanh({p} + {q})",
    "{a}[1:-1] = 0.3 * ({a}[:-2] + {b}[1:-1] + {a}[2:]) * {a}[1:-1]",
    "{a}[2:] += 0.1 * np.sin({b}[:-2])",
    "{a}[i - 1 : i + 1] *= 0.9",
    "t = {p}; {a}[i] = {q} * 0.5; {b}[i - 1] += 0.3 * t",
    "z = {a}[1:4]; {a}[2] = np.sum(z) * 0.2; {b}[0] += 0.1 * z[1]",
    "s = 0.5 * s + {p}",
    "{a}[i] += s",
    "w = {a}[2:5]",
    "{b}[1:4] += 0.2 * w",
    "{a}[::-1][i] = {p}",
]


@st.composite
def recurrences(draw):
    """The source of a function with a loop that reads and writes arrays."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        a, b = draw(st.permutations("xy"))
        p, q = (draw(st.sampled_from(PLACES)).format(a=draw(st.sampled_from("xy")), b=b) for _ in range(2))
        lines.append("        " + draw(st.sampled_from(WRITTEN)).format(a=a, b=b, p=p, q=q))
    head = draw(st.sampled_from(["range(1, 7)", "range(6, 1, -1)", "[k % 5 + 2 for k in range(11)]"]))
    start = draw(st.sampled_from(["np.zeros(9)", "0.5 * u", "x[::-1].copy()", "x[::-1]", "np.sin(u)"]))
    return "\n".join([
        "def program(u):",
        f"    x = np.cos(u); y = {start}; s = u[0]; w = u[:3]",
        f"    for i in {head}:",
        *lines,
        "    return np.sum(x**2) + np.sum(np.sin(y)) + s + np.sum(w)",
    ])  # fmt: skip


@given(recurrences(), st.integers(0, 2**32 - 1))
def test_random_recurrences(text, seed):
    """Traced, compiled and dynamic runs agree, with all optimisations and with none."""
    fun, _ = of_source(text)
    rng = np.random.default_rng(seed)
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    with without():
        plain = grad(fun)
    for u in [0.5 * rng.standard_normal(9) for _ in range(3)]:
        with np.errstate(all="ignore"):
            assume(abs(fun(u)) < 1e6)  # some grow beyond all bounds
        expected = dynamic(u)
        size = np.max(np.abs(expected))
        for run in (derivative, derivative, plain, plain):
            np.testing.assert_allclose(run(u), expected, rtol=1e-9, atol=1e-11 * size, err_msg=text)


# -- loops in loops ------------------------------------------------------------------------------------------------


def read_in_the_next_run(x):
    s = 0.0
    for i in range(6):
        for j in range(6):
            if i + j > 0:
                s = s + z * x[j]  # noqa: F821
            z = np.sin(x[i] * x[j] + s)  # noqa: F841
    return s


def with_a_flag(x):
    s = 0.0
    for i in range(6):
        first = True
        for j in range(6):
            if not first:
                s = s + z * x[j]  # noqa: F821
            z = np.sin(x[i] * x[j] + s)  # noqa: F841
            first = False
    return s


def of_rows_of_a_table(x):
    R = np.zeros((7, 7))
    for i in range(1, 7):
        for j in range(1, 7):
            row = R[i - 1]
            z = row[j] * 2 + x[j - 1]
            R[i, j] = np.sin(z) * x[i - 1]
    return R.sum()


def into_a_row_of_a_table(x):
    R = np.zeros((7, 7))
    for i in range(1, 7):
        row = R[i]
        for j in range(1, 7):
            z = R[i - 1, j] * 2 + x[j - 1]
            row[j] = np.sin(z) * x[i - 1]
    return R.sum()


def with_a_test(x):
    t = 0.0
    for i in range(6):
        y = x[i]
        n = 0
        while abs(y) > 0.3:
            z = y * 0.5
            y = z - 0.01 * x[0]
            n += 1
        t = t + y * n
    return t


def of_copies(x):
    t = 0.0
    for i in range(6):
        for j in range(6):
            z = x.copy()
            z[j] = t
            t = np.sum(z * z) * 0.1 + x[i]
    return t


def with_several_names(x):
    R = np.zeros((7, 7))
    for i in range(1, 7):
        for j in range(1, 7):
            z = R[i - 1, j] + R[i, j - 1]
            a = z
            b = a * x[i - 1]
            c = b
            R[i, j] = np.sin(c) + x[j - 1] * a
        R[i] = R[i] * 0.9
    return R[6, 6]


def of_one_of_two(x):
    t = 0.0
    for i in range(8):
        for j in range(8):
            z = x[i % 6] * t if j > 3 else x[j]
            t = t * 0.5 + z
    return t


def of_views(x):
    t = np.zeros(6)
    for i in range(6):
        for j in range(6):
            z = t * x[j]
            w = z[1:]
            t = np.sin(t + x[i])
            t[1:] += w
    return t.sum()


def of_two_that_are_one(x):
    A, B = np.zeros(6), np.zeros(6)
    s = 0.0
    for i in range(6):
        A[i] = x[i]
        for j in range(5):
            t = A * x[j] + B
            A = np.sin(t)
            B = np.sin(t)
        s = s + B[i] * B[(i + 1) % 6]
    return s + np.sum(A * B)


def that_take_what_is_outside(x):
    A = np.ones(6) * x[0]
    s = 0.0
    X = np.cos(x)
    for i in range(6):
        A[i] = x[i] * s + 1
        for _ in range(5):
            s = s + np.sum(A * X)
            A = X
        s = s * 0.1
    return s + np.sum(A * X)


def that_change_places(x):
    A, B = np.ones(6) * x[0], np.ones(6) * x[1]
    s = 0.0
    for i in range(6):
        A[i] = x[i] * s + 1
        for j in range(5):
            A, B = B, A
            A[j] = A[j] * 0.5 + x[j]
            s = s * 0.5 + np.sum(A * B) * 0.1
        B[i] = B[i] * 0.3 + s
    return s + np.sum(A * B)


def with_copies_kept(x):
    A = np.ones(6) * x[0]
    s = 0.0
    keep = []
    for _ in range(6):
        for j in range(5):
            A[j] = A[j + 1] * x[j] + s
            s = s * 0.5 + A[j] * 0.1
        keep.append(A.copy())
        W = A
        for j in range(5):
            W[j] = W[j] * 0.9
    return s + np.sum(A) + np.sum(keep[2] * keep[4])


X6 = np.array([1.0, -0.5, 0.25, 0.75, -1.0, 0.5])
IN_LOOPS = [
    read_in_the_next_run,
    with_a_flag,
    of_rows_of_a_table,
    into_a_row_of_a_table,
    with_a_test,
    of_copies,
    with_several_names,
    of_one_of_two,
    of_views,
    of_two_that_are_one,
    that_take_what_is_outside,
    that_change_places,
    with_copies_kept,
]


@pytest.mark.parametrize("fun", IN_LOOPS)
def test_loops_in_loops(fun):
    """What is left in a local, read in the next run, written in place or known by two names."""
    derivative, second = value_and_grad(fun), hvp(fun)
    for turn in range(4):
        x = np.linspace(0.2, 0.9, 6) + 0.01 * turn
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(second(x, X6), hvp(fun, mode="dynamic")(x, X6), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("fun", [of_rows_of_a_table, into_a_row_of_a_table, with_several_names])
def test_code_of_loops_in_loops_is_short(fun):
    assert len(source(grad(fun), np.linspace(0.2, 0.9, 6)).splitlines()) < 100


def test_of_two_names_of_an_array_one_goes_round():
    """The other one is read by nobody."""

    def heat(u, k):
        for _ in range(20):
            n = u.copy()
            n[1:-1] = u[1:-1] + k * (u[2:] - 2 * u[1:-1] + u[:-2])
            u = n
        return np.sum(u * u)

    derivative, u = grad(heat), np.sin(np.arange(200.0))
    for _ in range(3):
        np.testing.assert_allclose(derivative(u, 0.2), grad(heat, mode="dynamic")(u, 0.2), rtol=1e-12)
    text = derivative.source(u, 0.2, fast=True)
    assert "n = " not in text
    assert text.count("np.zeros(") == 0


@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_a_loop_only_compares_with_takes_no_part_in_the_slope():
    """In the first call, too, which is computed step by step: no NaN of a root whose slope nobody asked for."""

    def above_the_root(x):
        roots, s = np.sqrt(x), 0.0
        for i in range(len(x)):
            s = s + x[i] * (x[i] > roots[i])
        return s

    derivative, x = grad(above_the_root), np.array([-1.0, 2.0, 3.0, -4.0, 0.5, 6.0])
    for _ in range(3):
        np.testing.assert_array_equal(derivative(x), [0.0, 1.0, 1.0, 0.0, 0.0, 1.0])


def inner_points(x):
    total = 0.0
    for i in range(len(x)):
        if i < len(x) - 1:
            total += x[i] * x[i + 1]
    return total


def both_ends(x):
    total, n = 0.0, len(x)
    for i in range(n):
        if i == 0:
            total += x[i] ** 2
        elif i == n - 1:
            total += x[i] ** 3
        else:
            total += np.sin(x[i]) * x[i - 1]
    return total


def nothing_at_the_edges(x):
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        left = x[i - 1] if i > 0 else 0.0
        right = x[i + 1] if i < n - 1 else 0.0
        out[i] = left - 2 * x[i] + right
    return np.sum(out**2)


def linear_at_the_end(x):
    state = 0.0
    for i in range(len(x)):
        state = 0.5 * state + x[i]
        if i != len(x) - 1:
            state = np.tanh(state)
    return state


@pytest.mark.parametrize("fun", [inner_points, both_ends, nothing_at_the_edges, linear_at_the_end])
def test_last_iterations_may_be_others(fun):
    """What comes before is a loop, or done at once; all iterations were written out."""
    derivative, rng = grad(fun), np.random.default_rng(0)
    for n in (90, 90, 90, 41, 41, 3, 1):
        x = rng.normal(size=n)
        np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x), rtol=1e-12, atol=1e-14)
    assert len(str(derivative.source(np.ones(90))).splitlines()) < 40


def filled(v):
    parts = np.zeros(3)
    parts[0] = v
    parts[1] = v * v
    return np.sum(np.sin(parts))


def put(row, number):
    row[0] = number


def with_arrays_of_its_own(x):
    """Each iteration fills an array, which is gone when the next one begins."""
    t, s = x[0], 0.0
    while t < 5.0:
        s = s + filled(t) * x[1]
        t = t + 0.7
    return s


def with_lists_of_its_own(x):
    y = x
    for _ in range(20):
        parts = []
        for i in range(len(x)):
            parts.append(0.1 * np.sin(y[i]))
        y = y + np.array(parts)
    return np.sum(y**2)


def through_a_view(x):
    """What is written to is gone, too, but what it shows part of is not."""
    t, s, k, both = x[0], 0.0, 0, np.zeros((2, 3))
    while t < 5.0:
        put(both[k % 2], float(k))
        s = s + both[0, 0] * x[1] + both[1, 0] * x[2]
        t, k = t + 0.7, k + 1
    return s


def through_out(x):
    t, s, k, both, ones = x[0], 0.0, 0.0, np.zeros((2, 3)), np.ones(3)
    while t < 5.0:
        np.multiply(ones, k, out=both[0])
        s = s + np.sum(both[0]) * x[1]
        t, k = t + 0.7, k + 1.0
    return s


@pytest.mark.parametrize(
    ("fun", "lines"), [(with_arrays_of_its_own, 50), (with_lists_of_its_own, 60), (through_a_view, None), (through_out, None)]
)
def test_what_iterations_write_to_and_nobody_sees(fun, lines):
    g = value_and_grad(fun)
    rng = np.random.default_rng(5)
    for _ in range(8):
        x = rng.normal(size=4)
        value, slope = g(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x), rtol=1e-12, atol=1e-13)
    if lines is not None:
        assert g.cache_info().misses == 2
        assert len(g.source(x).splitlines()) < lines


def test_what_lies_behind_a_decision_that_went_one_way_does_not_warn():
    """Means of clusters: where no call has met an empty one, the mean behind ``if np.any(...)`` is not computed before it."""

    def fun(x):
        c = x[:2] * 1.0
        points = x[2:]
        for _ in range(4):
            nearest = np.argmin(np.abs(points[:, None] - c[None, :]), axis=1)
            for k in range(2):
                if np.any(nearest == k):
                    c[k] = np.mean(points[nearest == k])
        return c[0] * c[1]

    derivative = value_and_grad(fun)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in np.random.default_rng(0).normal(size=(40, 8)):
            assert derivative(x)[0] == pytest.approx(fun(x))
    assert not caught


def test_long_loops_whose_iterations_compute_what_nobody_reads():
    """What nobody holds is gone when an iteration is compared with those before; the last one was left out of the loop."""

    def first(x, k):
        for _ in range(100):
            x * 2.5
            x = np.sin(x) * k
        return np.sum(x**2)

    def between(x, k):
        for _ in range(100):
            y = np.sin(x)
            y[1:] + 1.0
            x = y * k
            np.cos(x)
        return np.sum(x**2)

    def added(x, k):
        x = x.copy()
        for _ in range(100):
            x[1:-1] += k * (x[2:] - x[1:-1])
        return np.sum(x**2)

    x = np.linspace(0.0, 1.0, 200) ** 2
    for fun in (first, between, added):
        derivative = grad(fun, argnums=(0, 1))
        for _ in range(3):
            found = derivative(x, 0.1)
        assert str(derivative.source(x, 0.1)).count("in range(100)") == 1
        for a, b in zip(found, grad(fun, argnums=(0, 1), mode="dynamic")(x, 0.1), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "view",
    [
        lambda: np.arange(6.0).reshape(2, 3),
        lambda: np.eye(3)[0],
        lambda: np.linspace(0.0, 1.0, 4)[:, None],
        lambda: np.ones((2, 3)).T,
    ],
)
def test_views_that_iterations_make_leave_loops_loops(view):
    def waves(x):
        s = 0.0
        for i in range(len(x)):
            s = s + np.sum(np.sin(x[i] * view()))
        return s

    derivative, x = grad(waves), np.sin(np.arange(40.0))
    for _ in range(3):
        slope = derivative(x)
    np.testing.assert_allclose(slope, [np.sum(np.cos(u * view()) * view()) for u in x], rtol=1e-12)
    assert len(derivative.source(x).splitlines()) < 20


def test_views_of_what_iterations_change_later():
    """What an iteration reads of an array is what was there then."""

    def waves(x):
        s, kept = 0.0, []
        for i in range(len(x)):
            row = np.arange(10.0)
            kept.append(row)
            s = s + np.sum(np.sin(x[i] * row[2:5]))
            if i > 3:
                kept[-3][3] = 7.0
            s = s + np.sum(x[i] * kept[-1 if i < 3 else -3][2:5])
        return s

    derivative, dynamic, x = value_and_grad(waves), value_and_grad(waves, mode="dynamic"), np.sin(np.arange(40.0))
    for _ in range(3):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(waves(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_random_numbers_drawn_before_a_loop_that_decides(kind):
    def fun(x):
        rng = kind(3)
        noise, y, path = rng.standard_normal(50), x[0], []
        for k in range(50):
            y = y * 0.9 + 0.1 * noise[k] * x[1] if y > 0.5 else y + 0.3 * x[2]
            path.append(y)
        return np.mean(path) + rng.standard_normal() * y

    derivative, anew = grad(fun), grad(fun, mode="dynamic")
    for k in range(8):
        x = np.array([0.2, 0.5, 0.9]) + 0.02 * k
        np.testing.assert_allclose(derivative(x), anew(x), rtol=1e-9)
    assert derivative.cache_info().misses == 2


def test_random_numbers_drawn_in_a_loop_that_decides():
    def fun(x):
        rng, y = np.random.default_rng(3), x[0]
        for _ in range(50):
            y = y * 0.9 + 0.1 * rng.standard_normal() * x[1] if y > 0.5 else y + 0.3 * x[2]
        return y

    derivative, anew = grad(fun), grad(fun, mode="dynamic")
    for k in range(8):
        x = np.array([0.2, 0.5, 0.9]) + 0.02 * k
        np.testing.assert_allclose(derivative(x), anew(x), rtol=1e-9)


def test_items_of_arrays_of_one_number_are_numbers():
    def fun(x, n):
        a, y = np.full(n, -0.5), np.zeros(n)
        y[0] = x[0]
        for i in range(1, n):
            y[i] = np.sin(x[i % 3]) - a[i] * y[i - 1] * a[n - i]
        return np.sum(y * y)

    derivative, x = grad(fun), np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(derivative(x, 60), grad(fun, mode="dynamic")(x, 60), rtol=1e-9)
    assert "broadcast_to" not in derivative.source(x, 60, fast=True)


def test_a_call_of_a_new_way_through_a_long_loop_takes_no_more_memory():
    def fun(x, n):
        z = np.zeros((n, 8))
        z[0] = x
        for i in range(1, n):
            z[i] = z[i - 1] + 0.01 * np.cos(z[i - 1])
        return np.mean(z)

    derivative, x = grad(fun), np.linspace(0.2, 0.9, 8)
    for _ in range(3):
        derivative(x, 50)
    tracemalloc.start()
    derivative(x, 2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2000 * 8 * 8


def hushed_rows(x):
    out = np.zeros((40, x.size))
    for i in range(1, 40):
        with np.errstate(all="ignore"):
            out[i] = np.where(x > 0.1 * i, np.log(x - 0.1 * i), out[i - 1])
    return np.sum(out * x)


def test_what_a_function_does_not_want_to_hear_of_stays_unheard():
    """Warnings are errors here: a loop is run once more for its derivative, and says nothing then."""
    derivative, x = value_and_grad(hushed_rows), np.linspace(-1.0, 2.0, 7)
    for _ in range(4):
        value, slope = derivative(x)
        assert value == pytest.approx(hushed_rows(x))
        np.testing.assert_allclose(slope, value_and_grad(hushed_rows, mode="dynamic")(x)[1], rtol=1e-9)


def until_there_are_none(x):
    left = [y for v in x if (y := v * v) > 1]
    while left and (last := left.pop()) > 2:
        pass
    return last + len(left)


def until_one_is_none(x):
    numbers, total = iter(x), 0.0
    while (v := next(numbers, None)) is not None and v > -1 and [v]:
        total += v * v
    return total


@pytest.mark.parametrize("fun", [until_there_are_none, until_one_is_none])
def test_tests_that_end_with_something_plain(fun):
    """An empty list, or None, where iterations before had a number."""
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    for x in (np.array([1.5, 2.0, 0.5]), np.array([1.5, 1.2, 3.0]), np.array([3.0, 2.0, 1.5, 4.0])) * 3:
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-12)


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_decompositions_are_computed_once(name):
    """Also for those of their results that the way back alone needs: a loop saves them, too."""

    def settled(h):
        density = np.zeros((4, 4))
        for _ in range(12):
            vectors = np.linalg.eigh(h + density)[1] if name == "eigh" else np.linalg.svd(h + density)[0]
            density = vectors[:, :2] @ vectors[:, :2].T
        return np.sum(density * h)

    derivative, rng = grad(settled), np.random.default_rng(0)
    for _ in range(3):
        h = rng.normal(size=(4, 4)) + np.diag(np.arange(4.0) * 3.0)
        slope = derivative(h + h.T)
    np.testing.assert_allclose(slope, grad(settled, mode="dynamic")(h + h.T), rtol=1e-7, atol=1e-9)
    assert f"np.linalg.{name}(" not in derivative.source(h, fast=True).split("# backward")[1]


def test_a_loop_that_holds_copies_of_its_arrays_is_not_known_by_the_ids_of_others():
    """Memory of an array that is gone is soon another one's, of other content."""

    def times(array):
        graph = Graph()
        x, index = graph.input(("carry", 0), aval_of(array)), graph.input("index", aval_of(0))
        end = graph.add(REGISTRY[np.multiply], (x, graph.captured(array)), (), x.aval)
        return loop_of(Body(graph, [x], index, [], [], [end], []), Course(2))

    first = times(np.array([1.0, 2.0, 3.0]))
    first.freeze()
    kept = [np.array([4.0, 5.0, 6.0]) for _ in range(100)]
    for array in kept:
        np.testing.assert_array_equal(times(array).run(np.ones(3))[0], array**2)
    np.testing.assert_array_equal(first.run(np.ones(3))[0], [1.0, 4.0, 9.0])


def test_a_product_that_is_chosen_where_a_loop_ends_early():
    """The larger of a number and a product of what a loop within gives: what it is chosen by is no expression of its own."""

    def program(p, x):
        v, old = 0.3 + p[1] ** 2, -1e9
        for _ in range(30):
            likely = -((x - p[0]) ** 2) / v
            v = max(np.exp(likely) @ x**2 / 40, 0.2)
            if likely.sum() < old:
                break
            old = likely.sum()
        return v

    derivative = value_and_grad(program)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = np.array([-2, 0.5]) + 0.3 * rng.standard_normal(2)
        x = np.array([-2, 0, 2.5])[rng.integers(0, 3, 40)] + 0.5 * rng.standard_normal(40)
        value, gradient = derivative(p, x)
        np.testing.assert_allclose(value, program(p, x), rtol=1e-12)
        np.testing.assert_allclose(gradient, slopes(lambda p, x=x: program(p, x), (p,))[0], rtol=1e-6, atol=1e-8)
    assert derivative.cache_info().hits
