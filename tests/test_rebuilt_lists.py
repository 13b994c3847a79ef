"""Lists that an inner loop builds anew in each iteration of one around it, which goes on with them: the loop is rolled up."""

import dataclasses

import numpy as np
import pytest

from symgrad import grad

R = np.random.default_rng


def forward(a, b):
    """A hidden Markov model, in logarithms."""
    count = len(a)
    states = [b[k, 0] for k in range(count)]
    for t in range(60):
        new = []
        for j in range(count):
            terms = [states[i] + a[i, j] for i in range(count)]
            top = max(terms)
            new.append(top + np.log(sum(np.exp(v - top) for v in terms)) + b[j, t % 5])
        states = new
    return sum(states)


def summed(a, b):
    states = [b[k, 0] for k in range(len(a))]
    for _ in range(60):
        new = []
        for j in range(len(a)):
            new.append(sum(states[i] * a[i, j] for i in range(len(a))))
        states = list(new)
    return sum(states)


def heat(a, b):
    u = [*a[0], *b[0], *b[1]]
    for _ in range(40):
        v = [u[0]]
        for i in range(1, len(u) - 1):
            v.append(u[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1]) + 0.01 * np.sin(u[i]))
        v.append(u[-1])
        u = v
    return sum(q * q for q in u)


def distance(a, b):
    x, y = np.tile(a.ravel(), 3)[:36], np.tile(b.ravel(), 2)[:36]
    row = [float(j) for j in range(len(y) + 1)]
    for i in range(len(x)):
        cur = [i + 1.0]
        for j in range(len(y)):
            cur.append(min(row[j + 1] + 1, cur[j] + 1, row[j] + (x[i] - y[j]) ** 2))
        row = cur
    return row[-1]


def warped(a, b):
    x, y = np.tile(a.ravel(), 3)[:36], np.tile(b.ravel(), 2)[:36]
    row = [0.0, *[np.inf] * len(y)]
    for i in range(len(x)):
        cur = [np.inf]
        for j in range(len(y)):
            cur.append(min(row[j + 1], cur[j], row[j]) + (x[i] - y[j]) ** 2)
        row = cur
    return row[-1]


def kept_apart(a, b):
    """A list of all rows shows what each was."""
    row, rows = [*a[0]], []
    for _ in range(40):
        new = []
        for j in range(len(row)):
            new.append(sum(row[i] * a[i, j] for i in range(len(row))) * 0.3)
        rows.append(new)
        row = new
    return sum(rows[7]) + sum(row) + rows[20][1] * b[0, 0]


def changed_later(a, b):
    """What was built goes on in an iteration that changes it."""
    row = [*a[0]]
    for _ in range(40):
        new = []
        for j in range(len(row)):
            new.append(sum(row[i] * a[i, j] for i in range(len(row))) * 0.3 + b[0, j])
        row = new
        row[0] = row[1] + row[0] * 0.5
    return sum(row)


@pytest.mark.parametrize("fun", [forward, summed, heat, distance, warped, kept_apart, changed_later])
def test_they_go_round(fun):
    args = lambda k: (R(k).normal(size=(4, 4)) * 0.3, R(k + 50).normal(size=(4, 5)))
    slope, dynamic = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    for k in range(4):
        for ours, theirs in zip(slope(*args(k)), dynamic(*args(k)), strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-9, 1e-11)
    if fun is not kept_apart:
        assert len(slope.source(*args(3)).splitlines()) < 400


LENGTHS = [3] * 30 + [4] * 10


def by_lengths(a, b):
    """Iterations are alike for long, and then they are not."""
    row = [*a[0]]
    for length in LENGTHS:
        new = []
        for j in range(4):
            new.append(sum(row[k] * a[j, k] for k in range(length)) + b[0, j])
        row = new
    return sum(row)


def by_place(a, b):
    row = [*a[0]]
    for i in range(40):
        new = []
        for j in range(4):
            new.append(sum(row[k] * a[j, k] for k in range(LENGTHS[i])) + b[0, j])
        row = new
    return sum(row)


def by_both_places(a, b):
    row = [*a[0]]
    for i in range(40):
        new = []
        for j in range(4):
            total = 0.0
            for k in range(4):
                if k < 3 or k <= i - 30:
                    total = total + row[k] * a[j, k] * b[0, j]
            new.append(total)
        row = new
    return sum(row)


def in_turn(a, b):
    row, lengths = [*a[0]], iter(LENGTHS)
    for _ in range(40):
        length, new = next(lengths), []
        for j in range(4):
            new.append(sum(row[k] * a[j, k] for k in range(length)) + b[0, j])
        row = new
    return sum(row)


@pytest.mark.parametrize("fun", [by_lengths, by_place, by_both_places, in_turn])
def test_iterations_that_do_more_later(fun):
    slope, dynamic = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    for k in range(3):
        args = R(k).normal(size=(4, 4)) * 0.5, R(k + 50).normal(size=(4, 5))
        for ours, theirs in zip(slope(*args), dynamic(*args), strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-9, 1e-12)


@dataclasses.dataclass
class Body:
    mass: float
    x: float
    v: float
    radius: float = 0.1


def bodies(p):
    state, path = [Body(p[2], p[0], p[1]), Body(p[2], p[1], p[0])], []
    for _ in range(50):
        state = [Body(b.mass, b.x + 0.05 * b.v, b.v - 0.05 * b.x / b.mass, b.radius) for b in state]
        path.append(state[0].x * state[0].radius)
    return sum(path) + state[0].mass * state[1].x


def bodies_until(p):
    state, path = [Body(p[2], p[0], p[1]), Body(p[2], p[1], p[0])], []
    while state[0].x < 2.2 and len(path) < 70:
        new = []
        for b in state:
            new.append(Body(b.mass, b.x + 0.05 * b.v, b.v - 0.05 * b.x / b.mass))
        state = new
        path.append(state[0].x)
    return sum(path) + state[0].mass * state[1].x


@pytest.mark.parametrize("fun", [bodies, bodies_until])
def test_what_objects_in_them_hand_on(fun):
    """The masses are in each new object, and stay what they were."""
    g, dynamic = grad(fun), grad(fun, mode="dynamic")
    for p in R(0).uniform(0.5, 1.5, (8, 3)):
        np.testing.assert_allclose(g(p), dynamic(p), rtol=1e-10)
    assert len(g.source(p).splitlines()) < 120
