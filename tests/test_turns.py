"""Loops whose iterations do otherwise from some place on, as plain values tell: indices, counters of objects, texts."""

import math

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad
from symgrad.loops import iterables


def the_last_one_reads(p):
    x, s = p[0], 0.0
    for k in range(200):
        x = x + 0.01 * (p[1] - x * x)
        if k == 199:
            s += x
    return s


def the_last_one_goes_on(p):
    x, s = p[0], 0.0
    for k in range(200):
        x = x + 0.01 * (p[1] - x * x)
        if k < 199:
            continue
        s = s - 2 * x
    return s


def late_ones_read(p):  # of more iterations than are rolled up at a time
    x, v, s = p[0], 0.1, 0.0
    for k in range(1200):
        x, v = x + 0.01 * v, v - 0.01 * p[1] * x
        if k >= 1100:
            s += v
    return s


@pytest.mark.parametrize("fun", [the_last_one_reads, the_last_one_goes_on, late_ones_read])
def test_what_no_iteration_reads_but_those_to_come(fun):
    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-11, 1e-14))
    assert derivative.cache_info().hits


def current(p):
    x, total = p[0], 0.0
    for k in range(300):
        drive = 1.0 if 60 <= k < 200 else 0.1
        x = x + 0.02 * (drive - p[1] * x * x)
        total += x
    return total


def stimulus(t):
    return 2.0 if 1.0 < t < 3.0 else 0.0


def by_time(p):
    x, total, t = p[0], 0.0, 0.0
    while t < 6.0:
        x = x + 0.02 * (stimulus(t) - p[1] * x * x)
        total += x
        t += 0.02
    return total


def warm_up(p):
    x, total, count = p[0], 0.0, 0
    for k in range(250):
        x = x + 0.05 * (p[1] - x**3)
        if k >= 120:
            total += x
            count += 1
    return total / count


def schedule(p):
    w, momentum = p * 1.0, np.zeros(2)
    for k in range(300):
        rate = 0.1 if k < 100 else 0.05 if k < 200 else 0.01
        momentum = 0.9 * momentum + 2 * w * np.array([1.0, 3.0]) - np.array([0.3, 0.4])
        w = w - 0.1 * rate * momentum
    return np.sum(w**2)


def pulses(p):
    x, total = p[0], 0.0
    for k in range(500):
        x = x + 0.01 * ((k // 40 % 3 == 0) * p[1] - x * x) if k // 40 % 3 < 2 else x * 0.99
        total += x
    return total


def into_an_array(p):
    x = np.zeros(200)
    x[0] = p[0]
    for k in range(1, 200):
        if k < 80:
            x[k] = x[k - 1] + 0.01 * (p[1] - x[k - 1] ** 2)
        else:
            x[k] = x[k - 1] - 0.01 * p[1] * x[k - 1] + 0.001 * x[k - 40]
    return np.sum(x**2)


def in_a_dictionary(p):
    state, total = {"v": p[0], "n": 0}, 0.0
    for k in range(150):
        if k == 75:
            state["n"] = 5
        state["v"] = state["v"] + 0.01 * (p[1] * (1 + state["n"]) - state["v"] ** 2)
        total += state["v"]
    return total


def around_a_loop(p):
    x, total = p[0], 0.0
    for k in range(100):
        rate = 0.5 if k < 50 else 0.2
        for i in range(8):
            x = x + 0.01 * (rate * p[1] * (i + 1) - x * x)
        total += x
    return total


class Counter:
    def __init__(self, x):
        self.x, self.n = x, 0

    def add(self, x):
        self.n += 1
        self.x = self.x + 0.01 * x


def beside_an_object(p):
    x, total, seen = p[0], 0.0, {"n": 0}
    counter, out = Counter(p[1]), np.zeros(90)
    for k in range(90):
        if k < 50:
            total += seen["n"] * x
            continue
        if k % 45 == 44:
            counter.add(x)
        if x > 0.8:
            out[k] += total * 0.1
    return total + x * p[1]


TURNING = [current, by_time, warm_up, schedule, pulses, into_an_array, in_a_dictionary, around_a_loop, beside_an_object]


@pytest.mark.parametrize("fun", TURNING)
def test_before_and_after_a_turn_there_are_loops(fun):
    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-10, 1e-12))
    assert derivative.cache_info().hits
    assert len(derivative.source(np.array([0.5, 0.3])).splitlines()) < 140


class Adam:
    def __init__(self, rate):
        self.rate, self.m, self.v, self.t = rate, 0.0, 0.0, 0

    def __call__(self, w, g):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.99 * self.v + 0.01 * g**2
        return w - self.rate * (self.m / (1 - 0.9**self.t)) / (np.sqrt(self.v / (1 - 0.99**self.t)) + 1e-8)


def adam(p):
    w, optimizer = np.array([1.0, -1.0]), Adam(p[0] * 0.1)
    for _ in range(100):
        w = optimizer(w, 2 * w * np.array([1.0, 3.0]) - p)
    return np.sum(w**2)


def math_of_the_index(p):
    y = np.zeros(202)
    for i in range(199, -1, -1):
        y[i] = p[0] * y[i + 1] - 0.1 * p[1] * y[i + 2] + math.sin(i) * math.exp(-0.01 * i)
    return np.sum(y**2)


@pytest.mark.parametrize("fun", [adam, math_of_the_index])
def test_loops_with_counters_in_objects_and_mathematics_of_indices(fun):
    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-10, 1e-12))
    assert derivative.cache_info().hits
    assert len(derivative.source(np.array([0.5, 0.3])).splitlines()) < 120


@pytest.fixture
def few_rows(monkeypatch):
    """What is done for many rows is done for few."""
    monkeypatch.setattr(iterables, "OFTEN", 100)


KINDS = ["rise" if k % 3 else "fall" for k in range(150)]
EVENTS = [(kind, 0.01 * k) for k, kind in enumerate(KINDS)]
RATES = {"rise": 0.9, "fall": 0.5}


def events(p):
    x, last, total = 0.0, 0.0, 0.0
    for kind, t in EVENTS:
        x = x * np.exp(-(t - last) * p[1] * 10)
        if kind == "rise":
            x = x + p[0]
        elif kind == "fall":
            total = total + x * x
            x = x * 0.5
        last = t
    return total


def letters(p):
    x, total = 0.1, 0.0
    for c in "ACGTTGACA" * 20:
        x = np.sin(x + (p[0] if c == "A" else p[1] if c in "CG" else 0.1))
        total += x * x
    return total


def listed(p):
    x, total = 0.1, 0.0
    for k, kind in enumerate(KINDS):
        x = x * RATES[kind] + p[0] * np.sin(p[1] * k)
        total += x * x
    return total


def beside(p):
    x, total = 0.1, 0.0
    for one, other in zip(KINDS, KINDS[2:], strict=False):
        x = np.cos(x * p[0]) if one == other else x * p[1]
        total += x
    return total


def records(seed):
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["dose", "skip", "wash"], 140)
    seen = [None if v < 0.5 else v for v in rng.random(140).tolist()]
    return [{"kind": str(kind), "dose": 0.1 * k, "seen": v} for k, (kind, v) in enumerate(zip(kinds, seen, strict=True))]


@pytest.mark.usefixtures("few_rows")
def test_texts_and_missing_numbers_of_records():
    """Another text, another number, and one that was missing, at a later call."""

    def fun(p, rows):
        x, loss = 0.1, 0.0
        for row in rows:
            if row["kind"] == "dose":
                x = x * p[0] + row["dose"]
            elif row["kind"] == "wash":
                x = x * 0.5
            if row["seen"] is not None:
                loss = loss + (x * p[1] - row["seen"]) ** 2
        return loss

    def pairs(p):
        x, loss = 0.1, 0.0
        for dose, seen in given:
            x = x * p[0] + dose
            if seen is not None:
                loss = loss + (x * p[1] - seen) ** 2
        return loss

    rows = records(0)
    given = [(row["dose"], row["seen"]) for row in rows]
    derivatives = [value_and_grad(lambda p: fun(p, rows)), value_and_grad(pairs)]
    for round in range(3):
        for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9]):
            right_at(derivatives[0], lambda p: fun(p, rows), np.array(x), (1e-12, 0.0), (1e-10, 1e-12))
            right_at(derivatives[1], pairs, np.array(x), (1e-12, 0.0), (1e-10, 1e-12))
        if not round:
            assert all([derivative.cache_info().hits for derivative in derivatives])
        rows[60 + round]["kind"] = "dose" if rows[60 + round]["kind"] == "skip" else "skip"
        rows[61]["seen"] = 0.7 if rows[61]["seen"] is None else None
        rows[62]["dose"] += 1.0
        given[63] = (0.3, 0.2 if given[63][1] is None else None)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("fun", [events, letters, listed, beside])
def test_what_the_items_of_a_loop_are_called(fun, monkeypatch):
    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-10, 1e-12))
    hits = derivative.cache_info().hits
    assert hits
    text = str(derivative.source(np.array([0.5, 0.3])))
    assert len([line for line in text.splitlines() if not line.strip().startswith("EVENTS_")]) < 120
    for name in ("KINDS", "EVENTS"):
        items = list(globals()[name])
        items[70], items[71] = items[71], items[72]
        monkeypatch.setitem(globals(), name, items)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-10, 1e-12))


@pytest.mark.usefixtures("few_rows")
def test_texts_that_the_loop_changes():
    def fun(p):
        kinds, x = ["up"] * 150, 0.0
        kinds[3] = kinds[90] = "down"
        for k, kind in enumerate(kinds):
            x = x + p[0] if kind == "up" else x * p[1]
            if k == 20:
                kinds[100] = "down"
            if k == 60:
                kinds.pop()
        return x

    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-10, 1e-12))
