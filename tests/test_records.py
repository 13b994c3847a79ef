"""Loops that decide, over lists of records: dicts, named tuples, objects. Numbers in them are read as columns."""

import collections
import dataclasses

import numpy as np
import pytest

from symgrad import grad, value_and_grad

Pair = collections.namedtuple("Pair", "t y")


@dataclasses.dataclass
class Seen:
    t: float
    y: float
    kind: str = "gps"

    @property
    def early(self):
        return self.t < 2.0

    def misfit(self, p):
        return p[0] * np.sin(p[1] * self.t) - self.y


class Slotted:
    __slots__ = ("t", "y")

    def __init__(self, t, y):
        self.t, self.y = t, y


N = 20
RNG = np.random.default_rng(3)
TIMES, VALUES = (np.arange(N) * 0.3).tolist(), RNG.normal(size=N).tolist()
MAKERS = {
    "dicts": lambda t, y: {"t": t, "y": y, "kind": "gps"},
    "pairs": Pair,
    "objects": Seen,
    "slots": Slotted,
}


def made(kind, times=TIMES, values=VALUES):
    return [MAKERS[kind](t, y) for t, y in zip(times, values, strict=True)]


def huber(d):
    if d > 1:
        return d - 0.5
    if d < -1:
        return -d - 0.5
    return 0.5 * d * d


def of_dicts(p, seen):
    s = 0.0
    for one in seen:
        s += huber(p[0] * np.sin(p[1] * one["t"]) - one["y"])
    return s


def of_objects(p, seen):
    s = 0.0
    for one in seen:
        s += huber(p[0] * np.sin(p[1] * one.t) - one.y)
    return s


def model(p, one):
    return p[0] * np.sin(p[1] * one.t) - one.y


def in_functions(p, seen):
    return sum([huber(model(p, one)) for one in seen])


def counted(p, seen):
    s = 0.0
    for i, one in enumerate(seen):
        s += huber(model(p, one)) * (i + 1)
    return s


def beside_weights(p, seen):
    s = 0.0
    for one, w in zip(seen, np.linspace(0.5, 1.5, N), strict=True):
        s += w * huber(model(p, one))
    return s


def with_methods(p, seen):
    s = 0.0
    for one in seen:
        s += huber(one.misfit(p))
        if one.kind != "gps":
            s += 1.0
    return s


def left_early(p, seen):
    s = 0.0
    for one in seen:
        s += huber(model(p, one))
        if s > 2.0:
            break
    return s * one.t


def read_after(p, seen):
    s = 0.0
    for one in seen:
        s += huber(model(p, one))
    return s * one.y + one.t


ROLLED = [
    *[(of_dicts, "dicts")],
    *[(fun, kind) for fun in (of_objects, in_functions, counted, beside_weights) for kind in ("pairs", "objects", "slots")],
    (with_methods, "objects"),
    (read_after, "objects"),
]


def agree(fun, calls, derivative=None):
    derivative, theirs = derivative or value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for args in calls:
        (value, slope), (expected, other) = derivative(*args), theirs(*args)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(value, fun(*args), rtol=1e-12)
    return derivative


@pytest.mark.parametrize(("fun", "kind"), ROLLED)
def test_records_are_one_loop(fun, kind):
    points = [np.array([1.0 + 0.2 * k, 0.9 + 0.1 * k]) for k in range(8)]
    derivative = agree(fun, [(p, made(kind)) for p in points])
    assert derivative.cache_info().misses <= 3
    agree(fun, [(points[k], made(kind, TIMES[::-1], RNG.normal(size=N).tolist())) for k in range(4)], derivative)
    agree(fun, [(points[k], made(kind)[: N - 2] + made(kind)[:2]) for k in range(4)], derivative)
    assert derivative.cache_info().misses <= 6


SEEN = made("objects")


def of_globals(p):
    s = 0.0
    for one in SEEN:
        s += huber(model(p, one))
    return s


def test_records_outside_that_change():
    derivative, p = value_and_grad(of_globals), np.array([1.2, 0.8])
    agree(of_globals, [(p,)] * 4, derivative)
    assert derivative.cache_info().misses <= 3
    kept = [dataclasses.replace(one) for one in SEEN]
    try:
        SEEN[3].y = 5.0
        agree(of_globals, [(p,)] * 2, derivative)
        SEEN[4].t = 2  # an int
        agree(of_globals, [(p,)] * 3, derivative)
        SEEN[7] = Seen(1.0, -3.0)
        SEEN.append(Seen(0.5, 0.5))
        agree(of_globals, [(p,)] * 3, derivative)
        SEEN[2] = Slotted(0.1, 0.2)
        agree(of_globals, [(p,)] * 3, derivative)
        SEEN[5].y = np.float64(0.25)
        agree(of_globals, [(p,)] * 3, derivative)
    finally:
        SEEN[:] = kept


def of_kinds(p, seen):
    s = 0.0
    for one in seen:
        d = model(p, one)
        if one.kind == "odometer":
            d = d * 2.0
        s += huber(d)
    return s


def by_name(p, seen):
    sums = {"gps": 0.0, "odometer": 0.0}
    for one in seen:
        sums[one.kind] += huber(model(p, one))
    return sums["gps"] + 3.0 * sums["odometer"]


def the_very_one(p, seen):
    s, best = 0.0, seen[5]
    for one in seen:
        d = huber(model(p, one))
        s += d * 7.0 if one is best else d
    return s


def all_pairs(p, seen):
    s = 0.0
    for a in seen[:7]:
        for b in seen[:7]:
            if a is not b:
                d = a.t - b.t + p[0]
                s += huber(d * p[1]) * a.y
    return s


def written(p, seen):
    for one in seen:
        if one.t > p[0]:
            one.y = one.y * p[1]
    return sum([one.y * one.t for one in seen])


def twice_written(p, seen):
    s = 0.0
    for _ in range(3):
        for one in seen:
            if one.t > p[0]:
                one.y = one.y * p[1] + 0.1
            s += one.y
    return s


def missing(p, seen):
    s = 0.0
    for one in seen:
        d = p[0] * one["t"]
        s += huber(d * one["w"] if "w" in one else d)
    return s


def in_time(p, seen):
    s = 0.0
    for _ in range(5):
        for one in seen:
            s += huber(model(p, one)) * 0.2
            if s > 50.0:
                s = s - 50.0
    return s


def gone_on(p, seen):
    s, before = 0.0, seen[0]
    for one in seen:
        s += huber(p[0] * (one.y - before.y) + p[1])
        before = one
    return s


def of_both_kinds(seen):
    return [dataclasses.replace(one, kind="odometer" if i % 3 == 0 else "gps") for i, one in enumerate(seen)]


OTHERS = [
    (of_kinds, lambda: of_both_kinds(made("objects"))),
    (by_name, lambda: of_both_kinds(made("objects"))),
    (the_very_one, lambda: made("objects")),
    (all_pairs, lambda: made("objects")),
    (written, lambda: made("slots")),
    (written, lambda: made("objects")),
    (twice_written, lambda: made("objects")),
    (missing, lambda: [{**one, "w": 2.0} if i % 4 == 0 else one for i, one in enumerate(made("dicts"))]),
    (in_time, lambda: made("objects")),
    (gone_on, lambda: made("objects")),
    (left_early, lambda: made("objects")),
    (of_objects, lambda: [Seen(t if i != 4 else 1, y) for i, (t, y) in enumerate(zip(TIMES, VALUES, strict=True))]),
    (of_objects, lambda: made("objects")[:4] + made("slots")[4:]),
    (of_objects, lambda: made("objects", np.arange(N) * 0.3, np.array(VALUES))),
    (of_objects, lambda: made("objects", list(range(N)), VALUES)),
]


@pytest.mark.parametrize(("fun", "records"), OTHERS)
def test_what_else_loops_do_with_records(fun, records):
    """Identity, texts, fields that some have, what is written: whether it is one loop or not, it is right."""
    derivative, theirs = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(7):
        p = np.array([1.0 + 0.3 * k, 0.8 + 0.1 * k])
        value, slope = derivative(p, records())
        expected, other = theirs(p, records())
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-12)


def of_rows(p, rows):
    s = 0.0
    for t, y, name, note in rows:
        d = huber(p[0] * np.sin(p[1] * t) - y)
        s += d * 2.0 if name == "gps" and note is None else d
    return s


def test_rows_with_one_text():
    derivative = value_and_grad(of_rows)
    for names, most in ((["gps"] * N, 3), (["odometer"] * N, 6), (["gps"] * 9 + ["odometer"] * (N - 9), 20)):
        rows = [(t, y, name, None) for t, y, name in zip(TIMES, VALUES, names, strict=True)]
        agree(of_rows, [(np.array([1.0 + 0.2 * k, 0.9]), rows) for k in range(4)], derivative)
        assert derivative.cache_info().misses <= most


def from_inside(p):
    seen = [Seen(0.3 * i, p[1] * i) for i in range(N)]
    s = 0.0
    for one in seen:
        s += huber(model(p, one))
        if one.y > 3.0:
            one.y = 3.0
    for one in seen:
        if one.early:
            s += one.y
        else:
            s += huber(one.y)
    return s


def test_records_that_the_function_makes():
    agree(from_inside, [(np.array([1.0 + 0.3 * k, 0.3 + 0.1 * k]),) for k in range(7)])


def many(p):
    s = 0.0
    for one in MANY:
        s += huber(model(p, one)) * 0.01
    return s


MANY = made("objects", (np.arange(400) * 0.02).tolist(), np.random.default_rng(1).normal(size=400).tolist())


def test_many_records():
    derivative = agree(many, [(np.array([1.0 + 0.3 * k, 0.8]),) for k in range(4)])
    assert derivative.cache_info().misses <= 3
    before = MANY[350].y
    try:
        MANY[350].y = 100.0
        agree(many, [(np.array([1.0, 0.8]),)] * 2, derivative)
    finally:
        MANY[350].y = before


def test_derivatives_by_fields_of_records():
    seen, p, step = made("pairs"), np.array([1.1, 0.9]), 1e-6
    slope = grad(of_objects, argnums=1)
    for _ in range(3):
        found = slope(p, seen)
        for i in (0, 7, 19):
            for name in ("t", "y"):
                moved = [
                    [*seen[:i], seen[i]._replace(**{name: getattr(seen[i], name) + h}), *seen[i + 1 :]] for h in (step, -step)
                ]
                expected = (of_objects(p, moved[0]) - of_objects(p, moved[1])) / (2 * step)
                assert getattr(found[i], name) == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert slope.cache_info().misses <= 2


def made_inside(p):
    return [Seen(0.3 * i, p[1] * (i % 5) - 1.0) for i in range(N)]


def replaced_ahead(p, seen=None):
    seen, s = seen or made_inside(p), 0.0
    for i, one in enumerate(seen):
        s += huber(model(p, one))
        seen[(i + 3) % N] = seen[0]
    return s


def appended_to(p, seen=None):
    seen, s = seen or made_inside(p), 0.0
    for one in seen:
        s += huber(model(p, one))
        if len(seen) < N + 5:
            seen.append(Seen(5.0, 0.1))
    return s


def turned_over(p, seen=None):
    seen, s = seen or made_inside(p), 0.0
    for one in seen:
        s = 0.9 * s + huber(model(p, one))
        seen.reverse()
    return s


def in_their_place(p, seen=None):
    seen, s = seen or made_inside(p), 0.0
    for one, w in zip(seen, range(N), strict=False):
        s += huber(model(p, one)) * w
        seen.pop(0)
        seen.append(one)
    return s


@pytest.mark.parametrize("fun", [replaced_ahead, appended_to, turned_over, in_their_place])
def test_lists_of_records_that_change_meanwhile(fun):
    derivative, of_given = value_and_grad(fun), value_and_grad(fun)
    for k in range(5):
        p = np.array([1.0 + 0.3 * k, 0.8])
        value, slope = derivative(p)
        np.testing.assert_allclose(value, fun(p), rtol=1e-12)
        ends = [fun(p + h) for h in ([1e-6, 0.0], [-1e-6, 0.0])]
        np.testing.assert_allclose(slope[0], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(of_given(p, made("objects"))[0], fun(p, made("objects")), rtol=1e-12)


SOME = made("objects")


def kept_by_number(p):
    s, kept = 0.0, {}
    for i, one in enumerate(SOME):
        kept[i % 4] = one
        if p[0] * one.t > p[1] * one.y:
            s += p[0] * one.y
    return s + sum([one.t for one in kept.values()]) * p[1]


def best_of_all(p):
    s, best = 0.0, None
    for one in SOME:
        d = p[0] * one.y
        if best is None or d > best[0]:
            best = (d, one)
        s += huber(d)
    return s + best[0] * best[1].t


def read_by_the_last(p):
    s = 0.0
    for one in SOME:
        late = lambda: one.t  # noqa: B023
        s += huber(model(p, one))
    return s + late() * p[1]


@pytest.mark.parametrize("fun", [kept_by_number, best_of_all, read_by_the_last])
def test_records_are_read_after_their_turn(fun):
    derivative, p, kept = value_and_grad(fun), np.array([1.2, 0.7]), [*SOME]
    try:
        for k in range(5):
            SOME[:] = made("objects", TIMES, np.random.default_rng(k).normal(size=N).tolist())
            agree(fun, [(p,)], derivative)
    finally:
        SOME[:] = kept


class Whole:
    def __init__(self, t, i):
        self.t, self.i = t, i


def poles_aside(p, seen):
    s = 0.0
    for one in seen:
        if p * one.t > 0:
            s += p * one.t
        s += p * one.i + (one.i**-1 * p if one.i else p) * (10**one.i)
    return s


def test_poles_of_the_side_that_is_not_taken():
    """Derivatives compute both sides; Python's numbers would raise where the function did not divide."""
    derivative = value_and_grad(poles_aside)
    for k in range(6):
        rng = np.random.default_rng(k)
        seen = [Whole(t, i) for t, i in zip(rng.normal(size=N).tolist(), rng.integers(0, 3, N).tolist(), strict=True)]
        value, slope = derivative(1.3, seen)
        assert value == pytest.approx(poles_aside(1.3, seen))
        assert slope == pytest.approx(poles_aside(1.3, seen) / 1.3)
