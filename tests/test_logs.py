"""Lists that objects hold, or dicts, to which loops append in methods: loops, unless somebody reads the lists meanwhile."""

import copy
from dataclasses import dataclass, field

import numpy as np
import pytest
from agreement import right_at

from symgrad import grad, hessian, value_and_grad


class Spring:
    def __init__(self, x, k):
        self.x, self.v, self.k, self.t, self.log, self.events, self.saved = x, 0.0, k, 0.0, [], [], None

    def move(self):
        self.v -= 0.05 * self.k * self.x
        self.x += 0.05 * self.v

    def step(self):
        self.move()
        self.log.append(self.x)

    def run(self, n):
        for _ in range(n):
            self.move()
            self.t += 0.05
            if self.x < 0.4:
                self.v *= 0.98
            self.log.append(self.x)

    def size(self):
        return len(self.log)


def in_its_own_loop(p):
    spring = Spring(p[0], p[1])
    spring.run(80)
    return np.sum(np.array(spring.log) ** 2) + spring.t * spring.x


def in_a_method(p):
    spring = Spring(p[0], p[1])
    for _ in range(80):
        spring.step()
    return np.sum(np.array(spring.log) ** 2) + spring.log[-1] + spring.log[3]


def of_several_objects(p):
    springs = [Spring(p[0] * i, p[1]) for i in (1, 2, 3)]
    for _ in range(60):
        for spring in springs:
            spring.step()
    return sum(np.mean(spring.log) for spring in springs)


@dataclass
class Fit:
    w: np.ndarray
    losses: list = field(default_factory=list)
    ws: list = field(default_factory=list)
    history: dict = field(default_factory=lambda: {"norm": [], "step": []})


def of_a_dataclass(p):
    fit = Fit(np.zeros(2))
    for k in range(50):
        slope = fit.w * p - np.array([1.0, -0.5])
        fit.w = fit.w - 0.1 * slope
        fit.losses.append(np.sum(slope**2))
        fit.ws.append(fit.w)
        fit.history["norm"].append(np.sqrt(np.sum(fit.w**2)))
        fit.history["step"].append(k)
    return fit.losses[-1] + np.sum(np.array(fit.ws)) + np.mean(fit.history["norm"]) + fit.history["step"][-1]


class Path:
    def __init__(self, y, rate):
        self.ts, self.ys, self.rate = [0.0], [y], rate

    def slope(self, t, y):
        return np.array([y[1], -self.rate * y[0] + 0.1 * np.sin(t)])

    def step(self, dt):
        t, y = self.ts[-1], self.ys[-1]
        middle = y + dt / 2 * self.slope(t, y)
        self.ys.append(y + dt * self.slope(t + dt / 2, middle))
        self.ts.append(t + dt)


def from_the_end(p):
    path = Path(np.array([p[0], 0.0]), p[1])
    for _ in range(60):
        path.step(0.05)
    return np.sum(np.array(path.ys)[:, 0] ** 2) + path.ts[-1] * path.ys[-1][1]


def by_its_length(p):
    spring = Spring(p[0], p[1])
    for _ in range(80):
        if len(spring.log) % 20 == 19:
            spring.v *= 0.5
        spring.step()
        spring.x += 0.001 * spring.size()
    return np.sum(np.array(spring.log))


def some_of_them(p):
    spring = Spring(p[0], p[1])
    for k in range(80):
        spring.step()
        if k % 10 == 9:
            spring.events.append(spring.x)
    return np.sum(np.array(spring.events)) + len(spring.events) * spring.x


def twice(p):  # in two loops
    spring = Spring(p[0], p[1])
    spring.run(40)
    spring.v = 0.0
    spring.run(50)
    return np.sum(np.array(spring.log) * np.arange(90))


def rows(p):
    spring = Spring(p[0], p[1])
    for k in range(80):
        spring.step()
        spring.t += 0.05
        spring.events.append((k, spring.t, spring.x, np.array([spring.v, 1.0])))
    table = np.array([row[:3] for row in spring.events])
    return np.sum(table[:, 2] ** 2) + table[-1, 1] * spring.x + sum(k * np.sum(v) for k, _, _, v in spring.events)


def records(p):
    spring, total = Spring(p[0], p[1]), 0.0
    for k in range(80):
        spring.step()
        if spring.x < 0.3:
            spring.v *= 0.9
        spring.events.append({"k": k, "x": spring.x, "energy": spring.v**2})
    for event in spring.events:
        total += event["x"] * event["energy"]
    return total + spring.events[-1]["x"] + spring.events[5]["k"] + np.mean([event["x"] for event in spring.events])


def rows_as_arrays(p):
    spring = Spring(p[0], p[1])
    for _ in range(80):
        spring.step()
        spring.events.append([spring.x, spring.x * spring.v])
    return np.sum(np.array(spring.events) ** 2)


def some_rows(p):
    spring = Spring(p[0], p[1])
    for k in range(80):
        spring.step()
        if k % 8 == 0:
            spring.events.append((0.1 * k, spring.x))
    return sum(t * x for t, x in spring.events) + len(spring.events)


def the_last_row(p):
    spring = Spring(p[0], p[1])
    spring.events.append((0.0, spring.x))
    for _ in range(80):
        t, x = spring.events[-1]
        spring.events.append((t + 0.1, x + 0.1 * (p[1] - x * x)))
    return sum(x for _, x in spring.events) + spring.events[-1][0]


def some_rows_and_more(p):
    spring = Spring(p[0], p[1])
    for k in range(40):
        spring.step()
        if k < 3:
            spring.events.append((spring.x, k))
    for k in range(50):
        spring.move()
        if len(spring.events) >= 1:
            spring.v += 0.01 * spring.events[-1][0] * spring.events[-1][1]
        spring.events.append((spring.x, k))
    return spring.x + sum(x * k for x, k in spring.events)


KNOWN = [
    rows, records, rows_as_arrays, some_rows, the_last_row, in_its_own_loop, in_a_method, of_several_objects, of_a_dataclass,
    from_the_end, by_its_length, some_of_them, twice,
]  # fmt: skip


@pytest.mark.parametrize("fun", KNOWN)
def test_lists_that_objects_hold_are_arrays_of_loops(fun):
    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9], [0.9, 0.4]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-9, 1e-12))
    assert derivative.cache_info().hits
    assert len(derivative.source(np.array([0.5, 0.3]), fast=True).splitlines()) < 200


@pytest.mark.parametrize("fun", [in_its_own_loop, from_the_end, some_of_them])
def test_their_second_derivatives(fun):
    x = np.array([0.5, 0.3])
    first, second = grad(fun, mode="dynamic"), hessian(fun)
    steps = np.array([[1e-5, 0.0], [0.0, 1e-5]])
    want = [(first(x + step) - first(x - step)) / 2e-5 for step in steps]
    for _ in range(3):
        np.testing.assert_allclose(second(x), want, rtol=1e-6, atol=1e-7)


def spikes(p):
    spring = Spring(p[0], p[1])
    for _ in range(200):
        spring.step()
        if spring.x > 0.2:
            spring.events.append(spring.x * spring.v)
    return np.sum(np.array(spring.events)) + sum(spring.events) * spring.x + len(spring.events)


def test_how_many_there_are_is_not_asked():
    derivative = value_and_grad(spikes)
    for scale in (1.0, 1.01, 1.1, 1.2, 1.3, 1.4, 1.6):
        right_at(derivative, spikes, np.array([0.3, 0.4]) * scale, (1e-12, 0.0), (1e-9, 1e-12))
    assert derivative.cache_info().hits > 2


def in_the_middle(spring, k):
    spring.x += 0.01 * spring.log[k // 2]


def all_of_them(spring, k):
    spring.x += 0.001 * sum(spring.log)


def one_after_the_other(spring, k):
    for item in spring.log[-3:]:
        spring.x += 0.001 * item


def under_another_name(spring, k):
    log = spring.log
    spring.x += 0.001 * len(log)


def by_its_name(spring, k):
    spring.x += 0.001 * len(getattr(spring, "log"))  # noqa: B009


def among_its_fields(spring, k):
    spring.x += 0.001 * sum(len(value) for value in vars(spring).values() if isinstance(value, list))


def of_a_copy(spring, k):
    spring.saved = copy.copy(spring)
    spring.x += 0.001 * len(spring.saved.log)


def now_and_then(spring, k):
    if k % 30 == 29:
        spring.x += 0.001 * sum(spring.log)


def no_more_than_so_many(spring, k):
    if len(spring.log) > 7:
        spring.log.pop(0)


def the_first_one(spring, k):
    spring.log[0] = spring.log[0] * 0.9


def begun_anew(spring, k):
    if spring.x < 0.3:
        spring.log = []


def two_at_a_time(spring, k):
    spring.log.append(spring.v)


def one_beside_the_other(spring, k):
    spring.log, spring.events = spring.events, spring.log


def a_row_of_its_own(spring, k):
    spring.events.append((spring.x,) if k % 7 else (spring.x, spring.v))
    spring.events[-1] = spring.x


def rows_that_are_one(spring, k):
    spring.saved = spring.saved or {"x": 0.0}
    spring.saved["x"] = spring.x
    if len(spring.events) < 90:
        spring.log[-1] *= 1.0 + 0.01 * spring.saved["x"]


def asked_once(spring, k):
    if k == 40 and len(spring.log) > 30:
        spring.v *= 0.5


def counted(spring, k):
    if sum(1 for _ in spring.log) % 25 == 24:
        spring.v *= 0.5


def counted_as_a_list(spring, k):
    if len(list(spring.log)) > 50:
        spring.v *= 0.99


def counted_but_for_one(spring, k):
    spring.v *= 0.99 if len(spring.log[1:]) > 50 else 1.0


def counted_in_a_copy(spring, k):
    spring.saved = None
    if len(copy.copy(spring).log[1:]) > 50:
        spring.v *= 0.99


def counted_among_its_fields(spring, k):
    for value in vars(spring).values():
        if isinstance(value, list) and sum(1 for _ in value) > 50:
            spring.v *= 0.99


def as_it_reads(spring, k):
    spring.v *= 0.99 if len([*map(type, spring.log)]) > 50 else 1.0


def by_a_method(spring, k):
    spring.v *= 0.99 if spring.log.__len__() > 50 else 1.0


def of_its_shape(spring, k):
    spring.v *= 0.99 if np.shape(spring.log)[0] > 50 else 1.0


@pytest.mark.parametrize(
    "reads",
    [
        in_the_middle, all_of_them, one_after_the_other, under_another_name, by_its_name, among_its_fields, of_a_copy,
        now_and_then, no_more_than_so_many, the_first_one, begun_anew, two_at_a_time, one_beside_the_other, asked_once, counted,
        a_row_of_its_own, rows_that_are_one,
        counted_as_a_list, counted_but_for_one, counted_in_a_copy, counted_among_its_fields, as_it_reads, by_a_method,
        of_its_shape,
    ],
)  # fmt: skip
def test_who_reads_them_meanwhile_sees_what_is_there(reads):
    def fun(p):
        spring = Spring(p[0], p[1])
        for k in range(90):
            spring.step()
            reads(spring, k)
        return np.sum(np.array(spring.log)) + spring.x + sum(spring.events)

    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9], [0.9, 0.4]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-9, 1e-12))


@pytest.mark.parametrize("late", [len, sum, np.mean, list, tuple, np.max, lambda log: log[-1], lambda log: log[2], copy.copy])
def test_whoever_asks_afterwards(late):
    def fun(p):
        spring = Spring(p[0], p[1])
        for _ in range(70):
            spring.step()
            if spring.x > 0.2:
                spring.events.append(spring.x)
        other = spring.events
        return np.sum(np.array(late(spring.events))) * spring.x + 0.01 * len(other) + other[-1]

    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.4, 0.9], [0.9, 0.4]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-9, 1e-12))


class Descent:
    def __init__(self, c):
        self.c, self.x, self.losses, self.kept = c, np.zeros(2), [], {"x": []}

    def step(self):
        slope = 2 * (self.x - self.c) + 0.4 * self.x**3
        self.x = self.x - 0.1 * slope
        self.losses.append(np.sum((self.x - self.c) ** 2) + 0.1 * np.sum(self.x**4))
        self.kept["x"].append(self.x)
        return np.sqrt(np.sum(slope**2))


def until_it_is_small(p):
    descent = Descent(p)
    while descent.step() > 1e-4:
        pass
    return np.sum(np.array(descent.losses)) + descent.losses[-1] + len(descent.losses) * descent.x[0]


def until_it_changes_no_more(p):
    descent = Descent(p)
    for k in range(300):
        descent.step()
        if k > 1 and abs(descent.losses[-1] - descent.losses[-2]) < 1e-6:
            break
    kept = np.array(descent.kept["x"])
    return np.sum(kept[:, 0]) + (np.mean(descent.losses) if descent.losses else 0.0)


class Adaptive:
    def __init__(self, y, k):
        self.t, self.y, self.k, self.ts, self.ys = 0.0, y, k, [0.0], [y]

    def slope(self, y):
        return -self.k * y + 0.1 * y * y

    def solve(self, end, tolerance=1e-4):
        h = 0.1
        while self.t < end:
            h = min(h, end - self.t)
            first = self.slope(self.y)
            second = self.slope(self.y + h * first)
            error = abs(h * (second - first) / 2)
            if error < tolerance:
                self.t, self.y = self.t + h, self.y + h * (first + second) / 2
                self.ts.append(self.t)
                self.ys.append(self.y)
            h = h * np.clip(0.9 * np.sqrt(tolerance / max(error, 1e-12)), 0.3, 2.0)


def by_steps_of_its_own(p):
    path = Adaptive(p[0], 3 * p[1])
    path.solve(2.0)
    return np.trapezoid(path.ys, path.ts) + np.sum(path.ys) + 0.01 * len(path.ts)


@pytest.mark.parametrize("fun", [until_it_is_small, until_it_changes_no_more, by_steps_of_its_own])
def test_loops_that_end_as_values_tell(fun):
    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.2, 0.9], [0.9, 0.4], [0.3, 0.3], [0.7, 1.2], [1.3, 0.1]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-8, 1e-11))
    assert derivative.cache_info().hits


def test_one_row_that_is_appended_again_and_again():
    def fun(p):
        spring, row = Spring(p[0], p[1]), {"x": 0.0}
        for _ in range(60):
            spring.step()
            row["x"] = spring.x
            spring.events.append(row)
        return sum(event["x"] for event in spring.events) + spring.log[3]

    def held(p):
        spring = Spring(p[0], p[1])
        for k in range(60):
            spring.step()
            row = [spring.x, spring.v]
            if k == 30:
                spring.saved = row
            spring.events.append(row)
        spring.saved[0] = 3.0
        return sum(x * v for x, v in spring.events)

    def written(p):
        spring = Spring(p[0], p[1])
        for _ in range(60):
            spring.step()
            spring.events.append([spring.x, spring.x * spring.v])
        spring.events[3][1] = 2.0
        return np.sum(np.array(spring.events) ** 2) + spring.events[3][1]

    for one in (fun, held, written):
        derivative = value_and_grad(one)
        for x in ([0.5, 0.3], [0.6, 0.2], [0.4, 0.9]):
            right_at(derivative, one, np.array(x), (1e-12, 0.0), (1e-9, 1e-12))


def by_an_if(p):
    found, x = {"up": [], "down": []}, p[0]
    for k in range(60):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        (found["up"] if x > 0.4 else found["down"]).append(x)
    return x + sum(np.sum(values) for values in found.values()) + sum(len(values) for _, values in found.items())


def of_two_names(p):
    both, x = [[], []], p[0]
    for k in range(60):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        both[1 if x > 0.4 else 0].append(x)
    low, high = both
    return sum(low) * len(high) + sum(high)


class Named:
    def __init__(self):
        self.log, self.more = [], {"v": []}

    def __len__(self):
        return len(self.log)

    def __eq__(self, other):
        return len(self.log) == len(other.log)


def asked_by_python(p):
    named, x, total = Named(), p[0], 0.0
    for k in range(60):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        named.log.append(x)
        total += x if [Named()] == [named] else 0.5 * x
        if list(range(99))[: len(named)][-1] > 40:
            x *= 0.9
    return total + x


def looked_into(p):
    spring = Spring(p[0], p[1])
    for _ in range(60):
        spring.step()
        if spring.x > 0.1:
            spring.events.append(spring.x)
    match spring:
        case Spring(events=[first, *others]):
            return first * len(others)
        case _:
            return spring.x


def begun_by_patterns(p):
    spring = Spring(p[0], p[1])
    for _ in range(60):
        spring.step()
        match spring:
            case Spring(log=[*values]) if len(values) > 30:
                spring.v *= 0.9
    return np.sum(np.array(spring.log))


def doubled(p):
    spring = Spring(p[0], p[1])
    for _ in range(60):
        spring.step()
        if spring.x > 0.1:
            spring.events.append(spring.x)
    spring.events *= 2
    return sum(spring.events)


@dataclass
class Held:
    values: list = field(default_factory=list)
    rate: float = 0.5


def compared(p):
    held, other, x = Held(), Held(), p[0]
    for k in range(60):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        if x > 0.4:
            held.values.append(x)
    return x * (1.0 if [held] == [other] else 2.0) + (held == other) + 0.1 * len(f"{len(held.values)}")


def given_to_another(p):
    def count(values, x):
        values.append(x)
        return sum(1 for _ in values)

    spring = Spring(p[0], p[1])
    for _ in range(60):
        spring.move()
        if count(spring.log, spring.x) > 30:
            spring.v *= 0.9
    return np.sum(np.array(spring.log))


def in_loops_within(p):
    path, x = Path(p[0], p[1]), p[0]
    for _ in range(50):
        for i in range(3):
            x = x * 0.97 + 0.02 * np.sin(p[1] * i)
            if path.ts[-1] > 2.0 or len(path.ys) > 40:
                x = x * 0.99
        path.ts.append(path.ts[-1] + 0.1)
        path.ys.append(x)
    return x + path.ts[-1] + sum(path.ys)


def counted_by_another_len(p, len=lambda values: sum(1 for _ in values)):
    spring = Spring(p[0], p[1])
    for _ in range(60):
        spring.step()
        if len(spring.log) > 30:
            spring.v *= 0.9
    return np.sum(np.array(spring.log))


@pytest.mark.parametrize(
    "fun",
    [
        in_loops_within,
        counted_by_another_len,
        by_an_if,
        of_two_names,
        asked_by_python,
        looked_into,
        begun_by_patterns,
        doubled,
        compared,
        given_to_another,
        some_rows_and_more,
    ],
)
def test_who_gets_them_by_no_name(fun):
    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9], [0.9, 0.4], [0.3, 1.4]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-9, 1e-12))


class Kept:
    def __init__(self):
        self.log, self.child, self.other = [], [0.0, 0], []


def a_row_that_is_kept(p):
    kept, x = Kept(), p[0]
    for k in range(50):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        kept.log.append([x, k])
        kept.child = kept.log[-1]
    kept.child[0] = 5.0
    return sum(a * b for a, b in kept.log)


def rows_in_two_lists(p):
    kept, x = Kept(), p[0]
    for k in range(50):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        kept.log.append({"x": x, "k": k})
        if x > 0.4:
            kept.other.append(kept.log[-1])
    for row in kept.other:
        row["x"] *= 2
    return sum(row["x"] * row["k"] for row in kept.log)


def the_best_row(p):
    kept, x = Kept(), p[0]
    for k in range(50):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        kept.log.append([x, k])
        if x > kept.child[0]:
            kept.child = kept.log[-1]
    kept.child[0] = 100.0
    return sum(a * b for a, b in kept.log) + kept.child[1]


def the_last_array_is_written_into(p):
    kept, x = Kept(), p[0]
    for k in range(50):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        if x > 0.4 or k == 3:
            kept.log.append(np.array([x, x * k]))
    kept.log[-1][0] = 3.0
    return np.sum(np.array(kept.log))


def the_last_array_of_a_local(p):
    log, x = [], p[0]
    for k in range(50):
        x = x * 0.95 + 0.1 * np.sin(p[1] * x + k)
        if x > 0.4 or k == 3:
            log.append(np.array([x, x * k]))
    log[-1][0] = 3.0
    return np.sum(np.array(log))


@pytest.mark.parametrize(
    "fun",
    [a_row_that_is_kept, rows_in_two_lists, the_best_row, the_last_array_is_written_into, the_last_array_of_a_local],
)
def test_rows_and_arrays_are_the_objects_that_they_were(fun):
    derivative = value_and_grad(fun)
    for x in ([0.5, 0.3], [0.6, 0.2], [0.1, 0.9], [0.9, 0.4], [0.3, 1.4]):
        right_at(derivative, fun, np.array(x), (1e-12, 0.0), (1e-9, 1e-12))
