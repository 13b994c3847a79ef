"""Long loops with ``if``s: the first calls trace some of their iterations, and run the others at once."""

import random

import numpy as np
import pytest

from symgrad import grad, value_and_grad
from symgrad.loops import rolling
from symgrad.loops.rolling import Roller

N = 400


class Body:
    def __init__(self, y):
        self.y, self.hits = y, 0

    def step(self, force):
        self.y = 0.99 * self.y + 0.01 * force
        if self.y > 0.2:
            self.y = self.y - 0.1
            self.hits += 1


def bounce(x):
    p, v = x[0], x[1]
    for _ in range(N):
        a = -x[2] * p
        if p < 0:
            a = a + x[3]
        v = v + 0.05 * a
        p = p + 0.05 * v
    return p * v


def late(x):  # two ways of which the first comes late, and once
    p, best, prev, where = x[0], x[1], x[2], 0
    for i in range(N):
        if i == 130:
            prev = p
        if i > 200 and p > best:
            best, where = p, i
        p = 0.999 * p + 0.02 * np.sin(x[3] * i * 0.1)
    return best + prev * p + where


def written(x):
    out = np.zeros(N)
    p = x[0]
    for i in range(N):
        p = 0.99 * p + 0.01 * x[1] if p < x[2] else 0.9 * p
        out[i] = p
        if i % 7 == 0:
            out[i // 2] += p * p
    return out @ np.cos(np.arange(N))


def trajectory(x):
    p, out, high = x[0], [], [x[1]]
    for i in range(N):
        p = 0.99 * p + 0.03 * np.sin(0.1 * i) * x[1]
        if p > 0.1:
            p = p - 0.05 * x[2]
            high.append(p)
        out.append(p)
    return np.sum(np.array(out) ** 2) + out[7] * out[-2] + np.sum(np.array(high))


def over_numbers(x):
    total = 0.0
    for u, w in zip(np.linspace(-2, 2, N), np.arange(N), strict=True):
        r = u * x[0] - x[1]
        total = total + r * r * w if r > 0 else total - x[2] * r
    return total


def objects(x):
    body, total = Body(x[0]), 0.0
    for i in range(N):
        body.step(x[1] * np.cos(0.1 * i))
        if body.y < 0:
            total += body.y**2
    return total + body.y + 0.01 * body.hits


def arrays(x):
    p, v = x[:2].copy(), 2 * x[2:]
    for i in range(N):
        if p[0] < 0:
            v = v + 0.01 * x[2]
        v = v - 0.1 * p
        p += 0.1 * v
        if i == 300:
            v = v * 0.5
    return p[0] * p[1]


def backwards(x):
    p, rate = x[0], x[1]
    for i in range(3 * N, N, -2):
        p = p - 0.001 * (p - i * 0.001) if p > rate else p + 0.002 * i * 0.001
    return p * rate


def until(x):
    p, v, i = x[0], x[1], 0
    while i < N and p * p < 100:
        a = -p - 0.1 * v
        if p < 0:
            a = a + 0.1 * x[3]
        v = v + 0.02 * a
        p = p + 0.02 * v
        i += 1
    return p * v * i


def converges(x):
    p, i = x[0] + 3, 0
    while abs(p - x[1]) > 1e-6:
        if i == 150:
            p = p + x[2]
        p = p - 0.05 * (p - x[1]) if p > x[1] else p + 0.03 * (x[1] - p)
        i += 1
    return p * i


def left(x):
    p = x[0] + 3
    for _ in range(2000):
        p = p - 0.05 * (p - x[1]) if p > x[1] else p + 0.03 * (x[1] - p)
        if abs(p - x[1]) < 1e-6:
            break
    return p * x[2]


def read_near_the_end(x):
    xs, vs = [x[0]], [x[1]]
    for i in range(N):
        vs.append(vs[-1] - 0.01 * x[2] * xs[-1])
        xs.append(xs[-1] + 0.01 * vs[-1] if xs[-1] < 2.0 else 0.99 * xs[-1])
        if i == 200:
            vs[-1] *= 0.5
    return np.sum(np.array(xs) ** 2) + vs[-1] * xs[100] * len(vs)


def waves(x):
    us = [np.sin(x), np.cos(x)]
    for _ in range(N):
        around = np.roll(us[-1], 1) + np.roll(us[-1], -1) - 2 * us[-1]
        us.append(2 * us[-1] - us[-2] + 0.1 * np.cos(x[0]) ** 2 * around)
    us[-1][0] += 1.0
    return np.sum(us[-1] ** 2) + us[N // 2][1] * us[-2][2]


def third_from_the_end(x):
    f = [x[0], 1.0, x[1] * 0.5]
    for i in range(N):
        f.append(0.5 * f[-1] + 0.3 * f[-2] * f[-3] + 0.01 * np.sin(0.1 * i))
    return sum(f) + f[-1] * x[3]


LOOPS = [bounce, late, written, trajectory, over_numbers, objects, arrays, backwards, until, converges, left]
LOOPS += [waves, third_from_the_end]


@pytest.mark.parametrize("fun", LOOPS)
def test_iterations_that_run_at_once(fun, monkeypatch):
    leaps, leap = [], Roller._leap_known
    monkeypatch.setattr(Roller, "_leap_known", lambda *args: leaps.append(leap(*args)) or leaps[-1])
    compiled, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for seed in range(6):
        x = np.random.default_rng(seed).normal(size=4)
        (value, gradient), (_, want) = compiled(x.copy()), dynamic(x.copy())
        np.testing.assert_allclose(value, fun(x), rtol=1e-9)
        np.testing.assert_allclose(gradient, want, rtol=1e-7, atol=1e-9)
    assert any(leaps)
    assert compiled.cache_info().hits


@pytest.mark.long
def test_lists_that_are_read_near_the_end():
    compiled = value_and_grad(read_near_the_end)
    for x in np.random.default_rng(3).normal(size=(6, 4)):
        value, gradient = compiled(x.copy())
        np.testing.assert_allclose(value, read_near_the_end(x), rtol=1e-9)
        np.testing.assert_allclose(gradient, grad(read_near_the_end, mode="dynamic")(x), rtol=1e-7, atol=1e-9)


def test_an_error_of_a_late_iteration():
    def fun(x):
        p = x[0]
        for i in range(N):
            p = 0.99 * p + 0.01 if p < x[1] else 0.98 * p
            if i * x[2] > 300:
                raise ValueError(f"iteration {i}")
        return p

    g = grad(fun)
    for _ in range(2):
        np.testing.assert_allclose(g([0.1, 0.5, 0.1]), grad(fun, mode="dynamic")([0.1, 0.5, 0.1]))
        with pytest.raises(ValueError, match="iteration 334"):
            g([0.1, 0.5, 0.9])


def test_few_iterations_are_traced():
    traced = []

    def fun(x):
        p = x[0]
        for _ in range(5000):
            p = step(p, x)
        return p

    def step(p, x):
        return 0.999 * p + 0.001 * x[1] if p < x[2] else 0.99 * p

    leap = Roller._boundary
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Roller, "_boundary", lambda *args: traced.append(1) or leap(*args))
        grad(fun)([0.1, 2.0, 0.5])
    assert 50 < len(traced) < 200


def test_few_iterations_are_traced_where_they_ask_what_stays():
    """As how long a loop in them is, which an argument tells."""
    traced = []

    def fun(q, y, count):
        total = 0.0
        for t in range(count, len(y)):
            mean = q[0]
            for k in range(1, count + 1):
                mean = mean + q[k] * y[t - k]
            total += (y[t] - mean) ** 2
        return total

    leap, y = Roller._boundary, np.random.default_rng(0).normal(size=600)
    derivative = grad(fun)
    for count in (5, 7, 5):
        q, expected = np.linspace(0.1, 0.3, 8), np.zeros(8)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Roller, "_boundary", lambda *args: traced.append(1) or leap(*args))
            for _ in range(2):
                found = derivative(q, y, count)
        rows = np.array([[1.0, *y[t - count : t][::-1]] for t in range(count, len(y))])
        expected[: count + 1] = -2 * (y[count:] - rows @ q[: count + 1]) @ rows
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert 50 < len(traced) < 1200


@pytest.mark.long
def test_what_iterations_ask_may_change_later():
    def by_sum(x, count):
        s, total, k = x[0], 0.0, count
        for _ in range(90):
            s = s + x[1]
            for j in range(k):
                total = total + np.sin(s + j)
            if s > 3:
                k = k + 1 if k < 9 else k
        return total

    def by_index(x, count):
        total, k = 0.0, count
        for i in range(90):
            for j in range(k):
                total = total + np.sin(x[0] + j * i)
            if i == 70:
                k = k + 2
        return total

    def by_flag(x, count):
        s, total, flag = x[0], 0.0, False
        for _ in range(90):
            if flag:
                total = total + s * x[2] * count
            s = s + x[1]
            flag = s > 3
        return total + s

    x = np.array([0.1, 0.06, 0.7])
    for fun in (by_sum, by_index, by_flag):
        derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
        for count in (5, 6):
            for scale in (1.0, 1.3, 0.2):
                for _ in range(2):
                    found = derivative(scale * x, count)
                np.testing.assert_allclose(found, dynamic(scale * x, count), rtol=1e-9)


def test_a_write_that_may_raise_into_an_array_beside_numbers():
    def fun(x):
        w, s = np.zeros(200) + x[0] * 0.1, 0.0
        for i in range(60):
            if x[0] * x[0] > 4.0:
                break
            w[i] += 0.5 * s
        return np.sum(w[:90] * np.cos(np.arange(90)))

    compiled, dynamic = grad(fun), grad(fun, mode="dynamic")
    for x in (0.3, 2.5, 1.2, 3.0, 0.1):
        np.testing.assert_allclose(compiled([x]), dynamic([x]), rtol=1e-9)


def test_a_leap_over_items_that_come_to_no_test(monkeypatch):
    def continues(x):
        p, hits = x[0], 0
        for i in range(300):
            p = 0.9 * p + 0.1 * x[1] if p > 0.3 * x[2] else 0.95 * p + 0.2 * np.sin(0.3 * i)
            if p > 0.1:
                continue
            hits += 1
            if hits > 100 + 80 * x[3]:
                break
        else:
            hits *= 2
        return p * x[2] * 0.3 + hits + i

    leaps, leap = [], Roller._leap_known
    monkeypatch.setattr(Roller, "_leap_known", lambda *args: leaps.append(leap(*args)) or leaps[-1])
    compiled = value_and_grad(continues)
    for x in np.random.default_rng(81).normal(size=(6, 4)):
        value, gradient = compiled(x.copy())
        np.testing.assert_allclose(value, continues(x), rtol=1e-9)
        np.testing.assert_allclose(gradient, grad(continues, mode="dynamic")(x), rtol=1e-7, atol=1e-9)
    assert any(leaps)


def wandering(x, steps):
    """Values of a dict change by what tuples name: hardly two iterations do the same."""
    state = {k: x * (0.1 + 0.1 * k) for k in range(9)}
    for kind, i, j, k in steps:
        state[k] = np.tanh(state[i] + state[j]) if kind < 3 else np.cos(state[i]) * state[j]
        if state[k][0] > 0.5:
            state[k] = state[k] * 0.9
    return np.sum(sum(state.values()))


@pytest.mark.long
def test_loops_that_do_ever_new_things_are_given_up(monkeypatch):
    """... after some iterations: the rest is traced as it comes, by plain numbers; what changes later is seen."""
    rng = random.Random(1)
    steps = [(rng.randrange(6), *(rng.randrange(9) for _ in range(3))) for _ in range(700)]
    recorded, look = [], Roller._always_turns
    monkeypatch.setattr(Roller, "_always_turns", lambda self: recorded.append(look(self)) or recorded[-1])
    derivative, x = value_and_grad(wandering), np.linspace(0.1, 0.9, 3)
    for turn in range(6):
        if turn == 4:
            steps[650] = (steps[650][0] ^ 4, *steps[650][1:])
        args = (x + 0.01 * turn, steps)
        value, slope = derivative(*args)
        expected = value_and_grad(wandering, mode="dynamic")(*args)
        np.testing.assert_allclose(value, wandering(*args), rtol=1e-12)
        np.testing.assert_allclose(slope, expected[1], rtol=1e-10)
    assert recorded
    assert all(recorded)


def test_loops_that_decide_on_many_things_are_not_given_up(monkeypatch):
    """Ways that meet again are few, however many there are in all."""

    def program(x):
        total = 0.0
        for value in x:
            for bound in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
                if np.sin(value * bound * 99.0) > 0.0:
                    total = total * 0.99 + value * bound
        return total

    looked, look = [], Roller._always_turns
    monkeypatch.setattr(Roller, "_always_turns", lambda self: looked.append(look(self)) or looked[-1])
    monkeypatch.setattr(rolling, "WAYS", 48)
    derivative, x = grad(program), np.random.default_rng(0).uniform(0.0, 1.0, 400)
    for _ in range(4):
        found = derivative(x)
    np.testing.assert_allclose(found, grad(program, mode="dynamic")(x), rtol=1e-10)
    assert not any(looked)


def close_pairs(x):
    energy = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = x[i] - x[j]
            r2 = np.dot(d, d)
            if r2 < 1.0:
                energy += 1 / (0.1 + r2)
    return energy


def rows_in_turn(x):
    total, at = 0.0, x[0, 0]
    for i in range(len(x)):
        for j in range(40):
            y = x[j % 30, 1] * at
            if y > 0.3:
                at = at * 0.9 + y
            elif y < -0.1:
                at = at + 0.1 * x[i, 2]
        total += at
        if at > 1.5:
            at -= 2.0
    return total


def some_of_each(x):
    total = 0.0
    for i in range(len(x)):
        some = [x[j, 0] for j in range(30) if x[j, 1] > x[i, 2]]
        if some:
            total += np.log(np.sum(np.exp(np.array(some))))
    return total


@pytest.mark.parametrize(("fun", "most"), [(close_pairs, 200), (rows_in_turn, 300), (some_of_each, 700)])
def test_loops_in_loops_leap_by_the_ways_that_others_have_gone(fun, most):
    """Of 435 pairs, or some 1,000 iterations, in two calls."""
    traced, boundary = [], Roller._boundary
    compiled, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Roller, "_boundary", lambda *args: traced.append(1) or boundary(*args))
        found = [compiled(np.random.default_rng(seed).normal(size=(30, 3))) for seed in range(4)]
    for seed, (value, gradient) in enumerate(found):
        x = np.random.default_rng(seed).normal(size=(30, 3))
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(gradient, dynamic(x)[1], rtol=1e-9, atol=1e-12)
    assert len(traced) < most
