"""Views that a loop chooses go round as arrays of their own, unless something is written into them or what they show."""

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad


def nearest(x):
    rows, best, chosen = x.reshape(20, 4), np.inf, None
    for row in rows:
        v = np.sum(row**2)
        if v < best:
            best, chosen = v, row
    return best + chosen @ chosen


def begun_with_the_first(x):
    rows = x.reshape(20, 4)
    best, chosen = np.sum(rows[0] ** 2), rows[0]
    for i in range(1, 20):
        v = np.sum(rows[i] ** 2)
        if v > best:
            best = v
            chosen = rows[i]
    return best * np.prod(chosen)


def columns(x):
    rows, best, chosen = x.reshape(4, 20) * 2.0, -1.0, None
    for i in range(20):
        if rows[1, i] > best:
            best = rows[1, i]
            chosen = rows[:, i]
    return best if chosen is None else np.sum(chosen**3)


def either(x):
    rows, s = x.reshape(20, 4), 0.0
    for i in range(1, 20):
        chosen = rows[i] if rows[i, 0] > 0 else rows[i - 1]
        s += chosen @ chosen
    return s


def several(x):
    rows = x.reshape(20, 4)
    first, second, low, high = rows[0], rows[1], 0.0, 0.0
    for row in rows:
        v = row @ row
        if v > high:
            first, second, high, low = row, first, v, high
        elif v > low:
            second, low = row, v
    return first @ second + high * low


def in_a_while_loop(x):
    rows, i, best = x.reshape(20, 4) * 2.0, 0, 0.0
    chosen = rows[0]
    while i < 20:
        if rows[i, 1] > best:
            best = rows[i, 1]
            chosen = rows[i]
        i += 1
    return best + chosen @ chosen


GOING_ROUND = [in_a_while_loop, nearest, begun_with_the_first, columns, either, several]


def written_later(x):
    rows, best, chosen = x.reshape(20, 4) * 1.0, -1.0, None
    for row in rows:
        v = np.sum(row**2)
        if v > best:
            best, chosen = v, row
    chosen[0] = 3.0 * x[1]
    return np.sum(rows**2) + np.sum(chosen**3)


def base_written_later(x):
    rows = x.reshape(20, 4) * 1.0
    best, chosen = -1.0, rows[0]
    for i in range(20):
        if rows[i, 2] > best:
            best = rows[i, 2]
            chosen = rows[i]
    rows *= 2.0
    return chosen @ chosen + best


def written_within(x):
    rows, best = x.reshape(20, 4) * 1.0, -1.0
    chosen = rows[0]
    for i in range(20):
        if rows[i, 2] > best:
            best = rows[i, 2]
            chosen = rows[i]
        chosen[1] = chosen[1] * 0.5
    return np.sum(rows**2) + chosen[1]


def base_written_within(x):
    rows, best = x.reshape(20, 4) * 1.0, -1.0
    chosen, s = rows[0], 0.0
    for i in range(20):
        if rows[i, 2] > best:
            best = rows[i, 2]
            chosen = rows[i]
        rows[i // 2] = 0.5 * rows[i]
        s += chosen[0] ** 2
    return s


def of_two_loops(x):
    rows = x.reshape(20, 4) * 1.0
    high, low = rows[0], rows[0]
    for i in range(20):
        if rows[i, 2] > high[2]:
            high = rows[i]
    for i in range(20):
        if rows[i, 2] < low[2]:
            low = rows[i]
    high[:] = 2.0 * low
    return np.sum(rows**2) + high @ low


def added_to(x):
    rows, chosen = x.reshape(20, 4) * 1.0, None
    for row in rows:
        if row[0] > 0:
            chosen = row
    if chosen is not None:
        chosen += x[:4]
    return np.sum(rows**3)


def through_another_view(x):
    rows = x.reshape(20, 4) * 1.0
    flat, chosen = rows.ravel(), rows[0]
    for i in range(20):
        if rows[i, 0] > chosen[0]:
            chosen = rows[i]
    flat[::2] = 0.0
    return chosen @ chosen + np.sum(rows)


def only_at_times(x):
    rows = x.reshape(20, 4) * 1.0
    chosen = rows[0]
    for i in range(20):
        if rows[i, 0] > chosen[0]:
            chosen = rows[i]
    if x[3] > 0:
        chosen[1] = 2.0 * x[0]
    return np.sum(rows**2) + chosen @ chosen


def view_or_not(x):
    rows = x.reshape(20, 4) * 1.0
    chosen = rows[0] * 1.0
    for i in range(20):
        if rows[i, 0] > 1.0:
            chosen = rows[i]
        elif rows[i, 1] > 1.0:
            chosen = rows[i] * 2.0
    rows *= 2.0
    return chosen @ chosen


def one_of_two(x):
    rows, others = x.reshape(20, 4) * 1.0, x.reshape(20, 4) * 2.0
    chosen = rows[0]
    for i in range(20):
        if x[4 * i] > 1.5:
            chosen = others[i]
        elif x[4 * i + 1] > 0.5:
            chosen = rows[i]
    if x[0] > 0.0:
        others *= 2.0
    return chosen @ chosen


def written_after_a_while_loop(x):
    rows, i = x.reshape(20, 4) * 2.0, 0
    chosen = rows[0]
    while i < 20:
        if rows[i, 1] > 0.5:
            chosen = rows[i]
        i += 1
    rows[::2] *= 3.0
    if x[0] > 0.3:
        chosen[2] += x[1]
    return np.sum(rows**2) + chosen @ chosen


def which_is_it(x):
    rows, best, chosen = x.reshape(20, 4), -1.0, None
    for row in rows:
        if row @ row > best:
            best, chosen = row @ row, row
    others = [row for row in rows if row is not chosen]
    return sum(np.sum(row**3) for row in others)


def one_or_two(x):
    rows = x.reshape(20, 4) * 1.0
    low = high = rows[0]
    s = 0.0
    for row in rows:
        if row[0] > 0.5:
            low = high = row
        elif row[0] < -0.5:
            low = row
        if low is high:
            s += row[1]
    return s + low @ high


WRITTEN = [
    which_is_it, one_or_two,
    written_after_a_while_loop,
    view_or_not, one_of_two,
    written_later, base_written_later, written_within, base_written_within, of_two_loops, added_to, through_another_view,
    only_at_times,
]  # fmt: skip


@pytest.mark.parametrize("fun", [*GOING_ROUND, *WRITTEN])
def test_they_do_what_they_did(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(24):
        right_at(derivative, fun, rng.normal(size=80), (1e-12, 0), (1e-9, 1e-12))


@pytest.mark.parametrize("fun", GOING_ROUND)
def test_code_answers_them(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for _ in range(60):
        derivative(rng.normal(size=80))
    assert derivative.cache_info().misses < 20


def test_what_is_chosen_of_an_argument_is_still_the_arguments():
    def fun(x):
        chosen = x[0]
        for i in range(20):
            if x[i, 0] > chosen[0]:
                chosen = x[i]
        chosen[0] = 1.0
        return np.sum(x)

    with pytest.raises(ValueError, match="copy it first"):
        value_and_grad(fun)(np.random.default_rng(0).normal(size=(20, 4)))


def test_what_is_an_arguments_in_some_calls_only():
    def fun(x):
        chosen = x[0] * 1.0
        for i in range(20):
            if x[i, 0] > 1.0:
                chosen = x[i]
            elif x[i, 1] > 1.0:
                chosen = x[i] * 2.0
        chosen[0] = 1.0
        return np.sum(chosen**2)

    derivative, rng, refused = value_and_grad(fun), np.random.default_rng(0), 0
    for _ in range(40):
        x = rng.normal(size=(20, 4))
        given = x.copy()
        expected = fun(x)
        if (x == given).all():
            right_at(derivative, fun, x, (1e-12, 0), (1e-9, 1e-12))
            assert np.isclose(derivative(x)[0], expected)
            continue
        refused += 1
        with pytest.raises(ValueError, match="copy it first"):
            derivative(given)
    assert 0 < refused < 40


# ---- views of the state that have a name, which the next iteration gives to another ---------------------------------


def start(p):
    return np.array([np.full(20, p[0]), np.linspace(0, 1, 20) * p[1]])


def a_row_has_a_name(p):
    U = start(p)
    t = 0.0
    while t < 1.0:
        a = U[0]
        dt = 0.05 / np.max(np.abs(a) + 1)
        U = U - dt * np.roll(U, 1, axis=1) * a
        t += dt
    return np.sum(U**2)


def rows_are_unpacked(p):
    U = start(p)
    t = 0.0
    while t < 1.0:
        a, b = U
        dt = 0.05 / np.max(np.abs(a) + 1)
        U = U - dt * np.array([b, a])
        t += dt
    return np.sum(U**2)


def shifted_views(p):
    U = start(p)
    t = 0.0
    while t < 1.0:
        L, R = U[:, :-1], U[:, 1:]
        dt = 0.05 / np.max(np.abs(U) + 1)
        U = np.concatenate([U[:, :1], U[:, 1:] - dt * (R - L)], axis=1)
        t += dt
    return np.sum(U**2)


def a_view_of_a_vector(p):
    u = np.linspace(0, 1, 20) * p[1] + p[0]
    t = 0.0
    while t < 1.0:
        L = u[:-1]
        dt = 0.05 / np.max(np.abs(u) + 1)
        u = np.concatenate([u[:1], u[1:] - dt * (u[1:] - L)])
        t += dt
    return np.sum(u**2)


def a_transposed_view(p):
    U = start(p)
    t = 0.0
    while t < 1.0:
        V = U.T
        dt = 0.05 / np.max(np.abs(U) + 1)
        U = U - dt * (V @ V.T)[0, 0] * U
        t += dt
    return np.sum(U**2)


def a_loop_that_breaks(p):
    U = start(p)
    for _ in range(200):
        a = U[0]
        U = U - 0.05 * np.roll(U, 1, axis=1) * a
        if np.max(np.abs(U)) < 0.5:
            break
    return np.sum(U**2)


def late_closure(p):
    a = np.sin(p)
    get = lambda: a
    U = np.stack([p, 2 * p])
    t = 0.0
    while t < 1:
        a = U[0]
        U = U - 0.1 * a * np.cos(U)
        t += 0.05 + 0.2 * np.max(np.abs(a))
    return np.sum(get() * p) + np.sum(U)


def zero_runs(p):
    a = np.sin(p)
    U = np.stack([p, 2 * p])
    t = p[0]
    while t < 1:
        a = U[0]
        U = U - 0.1 * a * np.cos(U)
        t += 0.2
    return np.sum(a * U)


def read_when_it_is_over(p):
    U = np.stack([p, 2 * p])
    t = 0.0
    a = p
    while t < 1:
        a = U[0]
        U = U - 0.1 * a * np.cos(U)
        t += 0.05 + 0.2 * np.max(np.abs(p))
    b = a
    return np.sum(b) + np.sum(U)


def nested(p):
    U = np.stack([p, 2 * p])
    s = 0.0
    for _k in range(4):
        t = 0.0
        while t < 1:
            a = U[0]
            U = U - 0.1 * a * np.cos(U)
            t += 0.05 + 0.2 * np.max(np.abs(a))
        s = s + np.sum(a * U[1])
    return s


def writes(p):
    U = np.stack([p, 2 * p])
    t = 0.0
    while t < 1:
        a = U[0]
        m = np.max(np.abs(a))
        a *= 0.9
        U[1] += 0.1 * np.sin(a)
        V = U.T
        V[1] *= 0.95
        U = U * 1.0
        t += 0.05 + 0.2 * m
    return np.sum(U**2)


def swap(p):
    U = np.stack([p, 2 * p])
    W = U * 0.5
    t = 0.0
    while t < 1:
        a = U[0]
        U, W = W - 0.1 * a, U * 0.9
        a = W[1]
        t += 0.05 + 0.2 * np.max(np.abs(a))
    return np.sum(U * W)


def keeps(p):
    U = np.stack([p, 2 * p])
    t = 0.0
    last = U[1]
    while t < 1:
        a = U[0]
        old = last
        last = U[1]
        U = U - 0.1 * a * old
        t += 0.05 + 0.2 * np.max(np.abs(a))
    return np.sum(U**2) + np.sum(old)


def decides(p):
    U = np.stack([p, 2 * p])
    t = 0.0
    while t < 1:
        a, b = U
        if np.sum(a) > 1.2:
            b = a
        else:
            a = b * 0.5
        U = U - 0.1 * np.stack([b, np.sin(a)])
        t += 0.2
    return np.sum(U**2)


def left_at_a_test(p):
    U = np.stack([p, 2 * p])
    for _k in range(50):
        a = U[0]
        U = U - 0.1 * a * np.cos(U)
        if np.max(np.abs(a)) < p[1] * 0.7:
            break
    return np.sum(U**2)


def left_with_a_view(p):
    U = np.stack([p, 2 * p])
    for _k in range(50):
        a = U[0]
        U = U - 0.1 * a * np.cos(U)
        if np.max(np.abs(a)) < p[1] * 0.7:
            break
    return np.sum(U**2) * np.sum(a)


NAMED = [
    a_row_has_a_name,
    rows_are_unpacked,
    shifted_views,
    a_view_of_a_vector,
    a_transposed_view,
    a_loop_that_breaks,
    late_closure,
    zero_runs,
    read_when_it_is_over,
    nested,
    writes,
    swap,
    keeps,
    decides,
    left_at_a_test,
    left_with_a_view,
]


@pytest.mark.parametrize("fun", NAMED)
def test_names_of_views_that_nobody_reads_any_more(fun):
    derivative, oracle = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(7):
        p = np.array([0.5, 0.7, 0.6]) * (1 + 0.15 * (k % 4)) if k < 6 else np.array([1.5, 0.7, 0.6])
        value, slope = derivative(p.copy())
        np.testing.assert_allclose(value, fun(p.copy()), rtol=1e-11)
        np.testing.assert_allclose(slope, oracle(p.copy())[1], rtol=1e-9, atol=1e-12)
    assert fun in (late_closure, nested) or derivative.cache_info().hits  # what is read later is a view


def test_steps_to_a_final_time_are_a_loop():
    """Euler's equations: the state has rows, and the fluxes have parts on the left and on the right."""

    def tube(p, n=40):
        x = (np.arange(n) + 0.5) / n
        rho, u, pressure = np.where(x < 0.5, p[0], 0.125), np.zeros(n), np.where(x < 0.5, p[1], 0.1)
        U, t = np.array([rho, rho * u, pressure / 0.4 + 0.5 * rho * u**2]), 0.0
        while t < 0.06:
            rho, u = U[0], U[1] / U[0]
            pressure = 0.4 * (U[2] - 0.5 * rho * u**2)
            c = np.sqrt(1.4 * pressure / rho)
            dt = 0.5 / n / np.max(np.abs(u) + c)
            if t + dt > 0.06:
                dt = 0.06 - t
            F = np.array([U[1], U[1] * u + pressure, u * (U[2] + pressure)])
            UL, UR, FL, FR = U[:, :-1], U[:, 1:], F[:, :-1], F[:, 1:]
            speed = np.maximum(np.abs(u[:-1]) + c[:-1], np.abs(u[1:]) + c[1:])
            flux = 0.5 * (FL + FR) - 0.5 * speed * (UR - UL)
            U = U.copy()
            U[:, 1:-1] -= dt * n * (flux[:, 1:] - flux[:, :-1])
            t += dt
        return U[0] @ x

    derivative = value_and_grad(tube)
    for k in range(6):
        right_at(derivative, tube, np.array([1.0 + 0.3 * k, 1.0 + 0.1 * k]), (1e-12, 0), (1e-9, 1e-12))
    assert derivative.cache_info().misses <= 3


def test_the_array_that_a_view_is_of():
    def fun(p):
        c = np.sin(np.outer(np.ones(4), p))
        v = c[-1]
        return np.sum(c) * (2.0 if v.base is c else 3.0) * (1.0 if c.base is None else 5.0)

    p = np.ones(3)
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(fun, mode=mode)
        for _ in range(3):
            np.testing.assert_allclose(derivative(p)[0], fun(p), rtol=1e-14)
