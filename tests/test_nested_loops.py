"""Objects, lists and dictionaries that loops in loops change, item by item, and decide on."""

import numpy as np
import pytest

from symgrad import stop_gradient, value_and_grad
from symgrad.optimize import exact


class Ball:
    def __init__(self, y, v):
        self.y, self.v = y, v

    def step(self, dt):
        self.v = self.v - 9.8 * dt
        self.y = self.y + self.v * dt
        if self.y < 0:
            self.y = -self.y
            self.v = -0.9 * self.v


class Counting(Ball):
    def __init__(self, y, v):
        super().__init__(y, v)
        self.hits, self.alive = 0, True

    def step(self, dt):
        if not self.alive:
            return
        super().step(dt)
        if self.v > 0:
            self.hits += 1
        if self.hits > 5:
            self.alive = False


class Vec:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)

    def __mul__(self, number):
        return Vec(self.x * number, self.y * number)


class Body:
    def __init__(self, p, v):
        self.p, self.v = p, v

    def step(self, dt):
        self.v = self.v + Vec(0.0, -1.0) * dt
        self.p = self.p + self.v * dt
        if self.p.y < 0:
            self.p = Vec(self.p.x, -self.p.y)
            self.v = Vec(self.v.x, -self.v.y * 0.8)


class Particle:
    def __init__(self, pos, vel):
        self.pos, self.vel = pos, vel

    def move(self, dt):
        self.pos = self.pos + dt * self.vel
        for k in range(2):
            if self.pos[k] < 0:
                self.pos[k] = -self.pos[k]
                self.vel[k] = -self.vel[k]


class Tank:
    def __init__(self, h):
        self.h, self.out, self.open = h, 0.0, False

    def update(self, q, dt):
        if self.h > 1.0:
            self.open = True
        elif self.h < 0.3:
            self.open = False
        self.out = 0.5 * np.sqrt(abs(self.h)) if self.open else 0.0
        self.h = self.h + dt * (q - self.out)
        return self.out


class World:
    def __init__(self, balls):
        self.balls, self.t = balls, 0.0

    def step(self, dt):
        for ball in self.balls:
            ball.step(dt)
        self.t += dt


def balls(x):
    every = [Ball(x[0], x[1]), Ball(x[2], x[3]), Ball(x[4], 0.0)]
    for _ in range(60):
        for b in every:
            b.step(0.02)
    return sum(b.y for b in every)


def one_ball_after_the_other(x):
    every = [Ball(x[0], x[1]), Ball(x[2], x[3]), Ball(x[4], 0.0)]
    for b in every:
        for _ in range(60):
            b.step(0.02)
    return sum(b.y for b in every)


def many_balls(x):
    every = [Ball(x[i], 0.1 * i) for i in range(8)]
    for _ in range(40):
        for b in every:
            b.step(0.02)
    return sum(b.y for b in every)


def balls_that_count(x):
    every = [Counting(x[0], x[1]), Counting(x[2], x[3]), Counting(x[4], 0.0)]
    for _ in range(60):
        for b in every:
            b.step(0.02)
    return sum(b.y * (1 + b.hits) for b in every)


def balls_by_name(x):
    every = {"a": Ball(x[0], x[1]), "b": Ball(x[2], 0.0)}
    for _ in range(50):
        for name in every:
            every[name].step(0.02)
        if every["a"].y > every["b"].y:
            every["a"].v = every["a"].v * 0.9
    return every["a"].y + every["b"].y


def pairs(x):
    every = [Ball(x[i], x[i + 4]) for i in range(4)]
    for _ in range(30):
        for i, a in enumerate(every):
            for b in every[i + 1 :]:
                if abs(a.y - b.y) < 0.3:
                    a.v, b.v = b.v, a.v
        for b in every:
            b.step(0.02)
    return sum(b.y for b in every)


def world(x):
    w = World([Ball(x[0], x[1]), Ball(x[2], 0.0)])
    for _ in range(60):
        w.step(0.02)
    return sum([b.y for b in w.balls]) + w.t


def above(every):
    total = 0.0
    for ball in every:
        if ball.y > 0.5:
            total = total + ball.y
    return total


def worlds_of_many(x):
    w = World([Ball(x[i], 0.0) for i in range(7)])
    total = 0.0
    for _ in range(40):
        w.step(0.02)
        total = total + above(w.balls)
    return total + w.t


def bodies(x):
    every = [Body(Vec(x[0], x[1]), Vec(x[2], 0.0)), Body(Vec(x[3], x[4]), Vec(0.0, x[5]))]
    for _ in range(40):
        for b in every:
            b.step(0.05)
    return every[0].p.x * every[0].p.y + every[1].p.y


def particles(x):
    every = [Particle(x[:2] * 1.0, x[2:4] * 1.0), Particle(x[4:6] * 1.0, np.zeros(2))]
    for _ in range(30):
        for p in every:
            p.vel = p.vel - 0.1 * np.array([0.0, 1.0])
            p.move(0.1)
    return np.sum(every[0].pos) + np.sum(every[1].pos ** 2)


def tanks(x):
    every, total = [Tank(x[0] ** 2), Tank(x[1] ** 2), Tank(0.5)], 0.0
    for i in range(50):
        q = 0.4 + 0.3 * np.sin(0.2 * i) + 0.1 * x[2]
        for t in every:
            q = t.update(q, 0.1)
        total = total + q
    return total + every[2].h


def attributes(x):
    every = [Ball(x[0], x[1]), Ball(x[2], x[3]), Ball(x[4], 0.0)]
    for _ in range(60):
        for b in every:
            b.v = b.v - 0.2
            b.y = b.y + 0.02 * b.v
            if b.y < 0:
                b.y = -b.y
                b.v = -0.9 * b.v
    return every[0].y + every[1].y + every[2].y


def items(x):
    ys, vs = [0.0, 0.0, 0.0], [x[0], x[1], x[2]]
    for _ in range(50):
        for i in range(3):
            vs[i] = vs[i] - 0.2
            ys[i] = ys[i] + 0.1 * vs[i]
            if ys[i] < 0:
                ys[i] = 0.0
                vs[i] = abs(vs[i])
    return ys[0] + 2 * ys[1] + 3 * ys[2]


def many_items(x):
    ys, vs = [0.0] * 6, [*x[:6]]
    for _ in range(50):
        for i in range(6):
            vs[i] = vs[i] - 0.2
            ys[i] = ys[i] + 0.1 * vs[i]
            if ys[i] < 0:
                ys[i] = 0.0
                vs[i] = abs(vs[i])
    return ys[0] + 2 * ys[3] + 3 * ys[5]


def items_of_items(x):
    state = {"pos": [0.0, x[1]], "vel": [x[0], 0.0], "n": 0}
    for _ in range(50):
        for k in range(2):
            state["pos"][k] += 0.1 * state["vel"][k]
            if state["pos"][k] > 1.0:
                state["vel"][k] = -state["vel"][k]
                state["n"] += 1
    return state["pos"][0] * state["pos"][1] + state["n"]


def the_best(x):
    """Which one has two names hangs on what the loop did."""
    every = [Ball(x[i], x[i + 4]) for i in range(4)]
    best = every[0]
    for b in every:
        b.step(0.1)
        if b.y > best.y:
            best = b
    best.y = best.y * 2
    return best.y * best.v + every[1].y


def two_names(x):
    """Which one has two names hangs on what comes before the loop."""
    a, b = Ball(x[0], x[1]), Ball(x[2], x[3])
    every = [a, b]
    chosen = a if x[5] > 0 else b
    for i in range(12):
        chosen.step(0.05)
        if x[i % 6] > 0.5:
            every[0].v = every[0].v * 0.5
    return a.y + 2 * b.y


OFTEN = {
    the_best: 30,
    tanks: 24,
    worlds_of_many: 8,
    bodies: 8,
    particles: 9,
    two_names: 12,
    balls_that_count: 12,
    items_of_items: 16,
}  # calls that are traced


@pytest.mark.parametrize(
    "fun",
    [balls, one_ball_after_the_other, many_balls, balls_that_count, balls_by_name, pairs, world, worlds_of_many,
     bodies, particles, tanks, attributes, items, many_items,
     items_of_items, the_best, two_names],
)  # fmt: skip
def test_what_loops_in_loops_change_goes_round(fun):
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).normal(size=(30, 8)):
        (value, slope), (same, other) = derivative(x), plain(x)
        assert value == pytest.approx(fun(x.copy()), rel=1e-9)
        assert same == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(slope, other, rtol=1e-7, atol=1e-9)
    assert derivative.cache_info().misses <= OFTEN.get(fun, 6)


def root(y, a):
    return y * y - a


class Cell:
    def __init__(self, v):
        self.v = v


def swept(cells, s):
    for cell in cells:
        if cell.v > 0.2:
            s = s + 0.1 * cell.v
    return s


def from_two_places(x):
    s, cells = x[0] * 1.0, [Cell(-1.0), Cell(x[1])]
    for t in range(8):
        cells[1].v = x[t]
        if x[t] > 0:
            s = swept(cells, s)
            s = s * 0.9
        else:
            s = swept(cells, s)
            s = s * 1.2
    return s


def once_or_twice(x):
    s, cell = x[0] * 1.0, Cell(x[1])
    for t in range(8):
        cell.v = x[t]
        for k in [0] if x[t] > 0 else [0, 0]:
            if cell.v > 0.2 - k:
                s = s + 0.1 * cell.v
            s = s * 0.9
    return s


def once_or_twice_in_a_range(x):
    s, ys = x[0] * 1.0, [0.0, x[1], 1.0, x[2], 0.0]
    for t in range(8):
        for j in range(5):
            ys[j] = ys[j] * 0.9 + 0.1 * s
            for k in [0] if x[t] > 0 else [0, 0]:
                if x[t] * (1.0 + 0.01 * ys[j]) > 0.2 - k:
                    s = s + 0.1 * ys[j]
                s = s * 0.9
    return s


def of_one_or_the_other(x):
    s, cell, a, b = x[0] * 1.0, Cell(x[1]), np.array([-1.0, 0.1, 0.3]), np.array([-1.0, 0.1, 0.5])
    for t in range(8):
        cell.v = x[t]
        for w in a if x[t] > 0 else b:
            if cell.v > 0.2 and w > 0.0:
                s = s + w * cell.v
            elif cell.v > -9.0:
                s = s * (1.0 - w)
    return s


def of_one_or_the_other_range(x):
    s, ys = x[0] * 1.0, [0.0, x[1], 1.0, x[2], 0.0, 0.5]
    for t in range(8):
        for k in range(5) if x[t] > 0 else range(1, 6):
            if x[t] > 0.2:
                ys[k] = ys[k] * 0.5 + s
            else:
                s = s * 0.9 + 0.1 * ys[k]
    return s + sum(ys)


def in_some(x):
    s, cells = x[0] * 1.0, [Cell(x[1]), Cell(x[2]), Cell(1.0)]
    for t in range(8):
        for a in cells:
            a.v = a.v * 0.5 + x[t]
            if a is cells[int(x[t] <= 0)]:
                for b in cells:
                    if b.v > 0.2:
                        s = s + 0.1 * b.v
            s = s * 0.9
    return s


def of_a_generator(x):
    def given(cell):
        last = 1.0 if cell.v > 0 else 2.0
        for k in range(3):
            yield 0.0 * k
            last = last + 1.0
        yield last

    s, cell = x[0] * 1.0, Cell(x[1])
    for t in range(8):
        cell.v = x[t]
        for w in given(cell):
            s = s * 0.99
            if cell.v > 0.2:
                s = s + w * cell.v
    return s


@pytest.mark.parametrize(
    "fun",
    [from_two_places, once_or_twice, once_or_twice_in_a_range, of_one_or_the_other, of_one_or_the_other_range, in_some,
     of_a_generator],
)  # fmt: skip
def test_where_an_iteration_is_hangs_on_more_than_locals_hold(fun):
    """How an inner loop goes on is not in them, nor where a function that has one was called; at first, decisions tell it."""
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    random = np.random.default_rng(3)
    for k in range(24):
        x = random.choice([-1.0, 1.0], size=8) * (0.5 + random.random(8)) if k < 12 else random.normal(size=8) * 0.3
        (value, slope), (same, other) = derivative(x), plain(x)
        assert value == pytest.approx(fun(x.copy()), rel=1e-9)
        assert same == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(slope, other, rtol=1e-7, atol=1e-9)


class Root:
    def __init__(self, y):
        self.y, self.n = y, 0

    def error(self, a):
        return root(self.y, a)


def one_after_the_other(x):
    a, y, n = x[0] ** 2 * 9 + 0.1, 3.0 + x[1], 0
    while n < 50 and abs(root(y, a)) > 1e-9:
        y = y - root(y, a) / (2 * y)
        n += 1
    return y * (n + 1)


def either_may_end_it(x):
    a, y, n = x[0] ** 2 * 9 + 0.1, 3.0 + x[1], 0

    def far():
        return abs(root(y, a)) > 1e-9

    while far() and n < 6:
        y = 0.5 * (y + a / y)
        n += 1
    return y * (n + 1)


def negated(x):
    a, y, n = x[0] ** 2 * 9 + 0.1, 3.0 + x[1], 0
    while True:
        if not (n < 6 and not abs(root(y, a)) <= 1e-9):
            break
        dy = root(y, a) / (2 * y)
        if abs(dy) > 1.0:
            dy = dy * 0.5
        y = y - dy
        n += 1
    return y * (n + 1)


def plainly_false(x):
    a, y, n = x[0] ** 2 * 9 + 0.1, 3.0 + x[1], 0
    while abs(root(y, a)) > 1e-9 if n < 6 else False:
        y = y - root(y, a) / (2 * y)
        n += 1
    return y * (n + 1)


def of_an_object(x):
    a, s = x[0] ** 2 * 9 + 0.1, Root(3.0 + x[1])
    while s.n < 6 and abs(s.error(a)) > 1e-9:
        s.y = s.y - s.error(a) / (2 * s.y)
        s.n += 1
    return s.y * (s.n + 1)


def of_a_list(x):
    s = [x[0], 0]
    while s[0] < 3.0 + x[1] ** 2 and s[1] < 100:
        s[0] = s[0] + 0.05 * s[0] * np.sin(s[0])
        s[1] += 1
    return s[0] * s[1]


def in_another_loop(x):
    s = 0.0
    for c in (0.5, 1.0, 2.0, 3.0):
        y, n = 1.0 + x[0] ** 2, 0
        while n < 20 and abs(y * y - c - x[1] ** 2) > 1e-10:
            y = 0.5 * (y + (c + x[1] ** 2) / y)
            n += 1
        s = s + y
    return s


def backtracking(x):
    w = x[:2] * 1.0

    def f(w):
        return np.sum(w**4) + np.sum((w - x[2:4]) ** 2)

    for _ in range(5):
        g, s, n = 4 * w**3 + 2 * (w - x[2:4]), 1.0, 0
        while n < 20 and f(w - s * g) > f(w) - 0.3 * s * (g @ g):
            s *= 0.5
            n += 1
        w = w - s * g
    return f(w)


def mixture(x):
    m, old, it, ll = np.array([-1.0, 1.0]), -np.inf, 0, 0.0
    while it < 50 and (it == 0 or abs(ll - old) > 1e-6):
        old = ll
        p = np.exp(-0.5 * (x[:, None] - m) ** 2)
        s = p.sum(1)
        m = (p / s[:, None] * x[:, None]).sum(0) / (p / s[:, None]).sum(0)
        ll = np.sum(np.log(s))
        it += 1
    return ll


@pytest.mark.parametrize(
    "fun",
    [one_after_the_other, either_may_end_it, negated, plainly_false, of_an_object, of_a_list, in_another_loop, backtracking,
     mixture],
)  # fmt: skip
def test_loops_that_one_of_two_tests_ends_are_known_after_few_calls(fun):
    """A count and a tolerance: which of them is looked at last hangs on how the loop ended."""
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).normal(size=(24, 8)):
        (value, slope), (same, other) = derivative(x), plain(x)
        assert value == pytest.approx(fun(x.copy()), rel=1e-9)
        assert same == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(slope, other, rtol=1e-7, atol=1e-9)
    assert derivative.cache_info().misses <= 6
    assert all([family.dynamic is None for family in derivative._compiler.known.values()])


def counted(x):
    s, y = x[0], 0.0
    for _ in range(5):
        y = 0
        if x[2] > s:
            y += 1
        if x[3] > s:
            y += 1
        n = 0
        while n < 5:
            n += 1
            y += 0.1
            s = s * 0.7
    return s + 0.5 * y


def counted_by_a_sum(x):
    s, y, every, n = x[0], 0.5, [0.0, x[2]], 0
    for _ in range(5):
        y = sum(1 for v in every if v > s)
        n = 0
        while n < 5:
            n += 1
            y += 0.1
            s = s * 0.7
    return s + 0.5 * y + 0.01 * n


@pytest.mark.parametrize("fun", [counted, counted_by_a_sum])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_plain_numbers_that_hang_on_decisions_go_through_inner_loops(fun, sign):
    """What an inner loop makes of a count is no number that is known: calls that decide otherwise have another one."""
    derivative, random = value_and_grad(fun), np.random.default_rng(3)
    known = [[2.1, 0.9, 1.0, -0.5 * sign, 0.0, 0.0, 0.0, 0.0], [-0.8, -1.1, -0.4, -0.9 * sign, 0.0, 0.0, 0.0, 0.0]]
    alike = [np.array(x) + 0.01 * random.random() for x in known for _ in range(4)]
    for x in [*alike, *random.normal(size=(30, 8))]:
        assert derivative(x)[0] == pytest.approx(fun(x), rel=1e-9)


def test_a_few_iterations_within_others_are_written_out():
    """So what they read of a table that the loop around fills is saved, not a copy of all the table for each iteration."""
    moves, heard = (
        np.log([[0.7, 0.2, 0.1, 0.3], [0.1, 0.6, 0.3, 0.2], [0.2, 0.2, 0.6, 0.1], [0.3, 0.1, 0.1, 0.5]]),
        np.arange(60) % 5,
    )

    def forward(moves, signs):
        table = np.zeros((60, 4))
        table[0] = signs[:, heard[0]]
        for t in range(1, 60):
            for s in range(4):
                total = 0.0
                for p in range(4):
                    total += np.exp(table[t - 1, p] + moves[p, s])
                table[t, s] = np.log(total) + signs[s, heard[t]]
        return np.log(np.sum(np.exp(table[-1])))

    derivative = value_and_grad(forward, (0, 1))
    for turn in range(4):
        args = moves + 0.01 * turn, np.cos(np.arange(20.0) + turn).reshape(4, 5)
        value, slopes = derivative(*args)
        expected, others = value_and_grad(forward, (0, 1), mode="dynamic")(*args)
        assert value == pytest.approx(expected, rel=1e-12)
        for mine, theirs in zip(slopes, others, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    code = derivative.source(*args, fast=True)
    assert ".append(table" not in code
    assert "g_table.copy()" not in code


def pairs_added_up(x):
    total = 0.0
    for i in range(1, len(x)):
        for j in range(1, len(x)):
            total = np.sin(total + (x[i] - 0.5 * x[j]) ** 2)
    return total


def rows_added_up(x):
    rows, total = np.outer(x, x), 0.0
    for i in range(6):
        for j in range(6):
            total = np.cos(total + rows[i, j] * rows[j, i] + rows[0, j])
    return total


def spans_added_up(x):
    table = np.zeros((6, 6))
    for i in range(6):
        table[i, i] = x[i]
    for span in range(2, 7):
        for i in range(7 - span):
            for k in range(i, i + span - 1):
                table[i, i + span - 1] += table[i, k] * table[k + 1, i + span - 1] * x[span]
    return table[0, 5]


@pytest.mark.parametrize("fun", [pairs_added_up, rows_added_up, spans_added_up])
def test_inner_loops_add_to_the_totals_of_the_loops_around(fun):
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).uniform(0.2, 1.0, size=(4, 8)):
        (value, slope), (same, other) = derivative(x), plain(x)
        assert value == pytest.approx(same, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-14)
    lines = str(derivative.source(x)).splitlines()
    inner = [line for line in lines if line.startswith(" " * 8)]
    assert not [line for line in inner if "zeros" in line]


# -- loops in loops whose iterations decide ------------------------------------------------------------------------


def pivoted(a, b):
    """Gauss's elimination by the largest pivot, row by row."""
    a, b, n = a.copy(), b.copy(), len(b)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            row = a[k].copy()
            a[k] = a[p]
            a[p] = row
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            m = a[i, k] / a[k, k]
            a[i] -= m * a[k]
            b[i] -= m * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return np.sum(x**2)


def accepted(a, b):
    """Steps of a length that hangs on the error, from one of some times to the next: no, one or several each."""
    y, t, h = b[:2] * 1.0, np.float64(0.0), np.float64(0.05)
    f = -a[0, 0] * y
    for i in range(1, 16):
        while t < i * 0.1:
            k = -a[0, 0] * (y + 0.5 * h * f) + 0.1 * a[0, 1]
            y_new = y + h * k
            f_new = -a[0, 0] * y_new
            error = stop_gradient(np.sum(abs(h * (k - f))) * 100)
            if error < 1:
                t, y, f = t + h, y_new, f_new
                h = h * min(1.3, 0.9 / error)
            else:
                h = h * max(0.2, 0.9 / error)
    return np.sum(y * f)


def between_steps(a, b):
    """The same, with what is between the ends of a step, in a list."""
    y, t, h = b[:2] * 1.0, np.float64(0.0), np.float64(0.05)
    old, begun, length, states = y * 1.0, t * 1.0, np.float64(1.0), []
    for i in range(1, 16):
        while t < i * 0.1:
            y_new = y - h * a[0, 0] * y + 0.1 * h * a[0, 1]
            error = stop_gradient(np.sum(abs(y_new - y)) * 10)
            if error < 1:
                old, begun, length = y, t, h
                t, y = t + h, y_new
                h = h * min(1.3, 0.9 / error)
            else:
                h = h * max(0.2, 0.9 / error)
        states.append(old + (i * 0.1 - begun) / length * (y - old))
    return np.sum(np.stack(states) ** 2)


@pytest.mark.parametrize("fun", [pivoted, accepted, between_steps])
def test_what_loops_within_decide_is_code(fun):
    rng = np.random.default_rng(5)
    derivative, oracle = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    for _ in range(12):
        a, b = rng.uniform(0.5, 3.0, (6, 6)), rng.uniform(0.5, 2.0, 6)
        (value, found), (other, expected) = derivative(a, b), oracle(a, b)
        assert value == pytest.approx(other, rel=1e-11)
        for one, another in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, another, 1e-8, 1e-10)
    assert derivative.cache_info().hits >= 6


def test_what_jumps_look_at_is_found_once_for_each_loop(monkeypatch):
    """It was found twice, once for each way in which a loop may be looked at, in each loop around: times two a level."""

    def fun(x):
        s = 0.1
        for a in range(2):
            for b in range(3):
                for c in range(3):
                    for i in range(4):
                        if x[i] * s > 0.2 * a:
                            if s > 0.1 * b:  # noqa: SIM108
                                s = s + 0.1 * np.sin(x[i])
                            else:
                                s = s - 0.1 * x[(i + c) % 4]
                        elif s < 0.5:
                            s = 0.9 * s + x[i] ** 2
        return s

    often, looked_at = [], exact._looked_at

    def counted(*args):
        often.append(None)
        return looked_at(*args)

    monkeypatch.setattr(exact, "_looked_at", counted)
    derivative = value_and_grad(fun)
    for k in range(6):
        x = np.round(np.random.default_rng(k).normal(size=4) * 4) / 4
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, value_and_grad(fun, mode="dynamic")(x)[1], rtol=1e-10, atol=1e-12)
    assert 0 < len(often) < 20_000
