"""Loops over pairs become one loop where that makes no difference, and stay two where it might."""

import ast
import dataclasses
import inspect
import re
import textwrap

import numpy as np
import pytest
from agreement import function_of

from symgrad import grad, value_and_grad
from symgrad.source.nests import joined

RNG = np.random.default_rng(11)
X = RNG.normal(size=(12, 3))
OUTSIDE = RNG.normal(size=12)


def rewritten(fun):
    """The function's text, its nests joined."""
    return ast.unparse(ast.fix_missing_locations(joined(ast.parse(textwrap.dedent(inspect.getsource(fun))).body[0], fun)))


def energy(x):
    n, e = len(x), 0.0
    for i in range(n):
        for j in range(i + 1, n):
            d = x[i] - x[j]
            e += 1.0 / np.dot(d, d)
    return e


def energy_with_rows(x):
    e = 0.0
    for i in range(x.shape[0]):
        p, w = x[i], OUTSIDE[i] * 2.0
        for j in range(i):
            d = p - x[j]
            e += w * np.sqrt(np.dot(d, d))
    return e


def other_pairs(x):
    n, e = len(x), 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                e += np.exp(-np.sum((x[i] - x[j]) ** 2))
    return e


def skipped_pairs(x):
    n, e = len(x), 0.0
    for i in range(n):
        for j in range(n):
            if abs(i - j) < 2:
                continue
            e += np.exp(-np.sum((x[i] - x[j]) ** 2))
    return e


def forces(x):
    f = np.zeros_like(x)
    for i in range(len(x)):
        p = x[i]
        for j in range(i + 1, len(x)):
            d = p - x[j]
            f[i] += d / np.dot(d, d)
            f[j] -= d / np.dot(d, d)
    return np.sum(f**2)


def triples(x):
    n, e = 8, 0.0
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                e += np.dot(np.cross(x[i], x[j]), x[k]) ** 2
    return e


def two_nests(x):
    n, e = len(x), 0.0
    for i in range(n):
        for j in range(i + 1, n):
            e += np.dot(x[i], x[j]) ** 2
    for i in range(n):
        for j in range(i + 1):
            e -= np.sin(np.dot(x[i], x[j]))
    return e


def a_table(x):
    n = len(x)
    c = np.zeros((n, n))
    for i in range(1, n):
        for j in range(i):
            c[i, j] = np.sin(c[i - 1, j]) + x[i, 0] * x[j, 1]
    return np.sum(c)


def listed(x):
    n, found = len(x), []
    for i in range(n):
        p = x[i]
        for j in range(n):
            d = p - x[j]
            found.append(np.exp(-np.dot(d, d)))
    return np.sum(np.array(found) ** 2)


JOINED = [listed, energy, energy_with_rows, other_pairs, skipped_pairs, forces, triples, two_nests, a_table]


@pytest.mark.parametrize("fun", JOINED)
def test_pairs_are_one_loop(fun):
    text = rewritten(fun)
    assert text.count("for ") - text.count("_ in ") == text.count("in [("), text


@pytest.mark.parametrize("fun", JOINED)
@pytest.mark.parametrize("n", [12, 5, 2, 1, 0])
def test_gives_what_the_function_gives(fun, n):
    if fun is triples and n < 8:
        n = 9
    g = value_and_grad(fun)
    for _ in range(4):
        x, v = RNG.normal(size=(2, n, 3))
        value, slope = g(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-10)
        h = 1e-6
        expected = (fun(x + h * v) - fun(x - h * v)) / (2 * h)
        np.testing.assert_allclose(np.sum(slope * v), expected, rtol=1e-5, atol=1e-5)


def test_code_is_of_arrays():
    assert re.search(r"(?m)^ *for ", str(grad(energy).source(X))) is None


def rectangle(x):
    e = 0.0
    for i in range(4):
        for j in range(3):
            e += x[i] * x[j]
    return e


def last_index(x):
    e = 0.0
    for i in range(4):
        for j in range(i):
            e += x[i] * x[j]
    return e * i


def last_row(x):
    e = 0.0
    for i in range(4):
        p = x[i]
        for j in range(i):
            e += p * x[j]
    return e * p


def afterwards(x):
    e = 0.0
    for i in range(4):
        for j in range(i):
            e += x[i] * x[j]
        e = e * e
    return e


def left_early(x):
    e = 0.0
    for i in range(4):
        for j in range(i):
            if j == 2:
                break
            e += x[i] * x[j]
    return e


def left_by_return(x):
    e = 0.0
    for i in range(4):
        for j in range(i):
            e += x[i] * x[j]
            if i == 3:
                return e
    return e


def moving_end(x):
    e, n = 0.0, 3
    for i in range(3):
        for j in range(i, n):
            e += x[i] * x[j]
            n = 4
    return e


def number_that_changes(x):
    e, y = 0.0, x * 1.0
    for i in range(4):
        p = y[i]
        for j in range(i):
            e += p * y[j]
            y[i] = y[i] * 0.5
    return e


def another_name(x):
    e, y = 0.0, x * 1.0
    z = y
    for i in range(4):
        p = z[i]
        for j in range(i):
            e += p * z[j]
            y[i] = y[i] * 0.5
    return e


def growing(x):
    e, found = 0.0, [x[0], x[1]]
    for i in range(4):
        for j in range(i, len(found)):
            e += x[i] * found[j]
            if len(found) < 5:
                found.append(x[j] * 2.0)
    return e


def target_that_is_put(x):
    e = 0.0
    for i in range(4):
        for j in range(i):
            i = j
            e += x[i] * x[j]
    return e


def else_part(x):
    e = 0.0
    for i in range(4):
        for j in range(i):
            e += x[i] * x[j]
        else:
            e *= 2.0
    return e


def called_between(x):
    e, seen = 0.0, []
    for i in range(4):
        p = np.sin(x[i])
        for j in range(i):
            e += p * x[j]
    return e + len(seen)


def looks_at_locals(x):
    e = 0.0
    for i in range(4):
        for j in range(i):
            e += x[locals()["i"]] * x[j]
    return e


def closed_over(x):
    y, e = x * 1.0, 0.0

    def halved():
        y[:] = y * 0.5
        return 1.0

    for i in range(3):
        p = y[i]
        for _ in range(i, 3):
            e += halved() * p
    return e


def list_of_a_closure(x):
    kept, out = [], []

    def put(v):
        kept.append(v)
        return v

    for i in range(4):
        for j in range(len(kept) + 1):
            out.append(put(x[i] * (j + 1)))
    return sum(out)


NUMBER = 2


def one_more():
    global NUMBER
    NUMBER = NUMBER % 5 + 1
    return 1.0


def number_of_the_module(x):
    while NUMBER != 2:
        one_more()
    return with_number_of_the_module(x)


def with_number_of_the_module(x):
    out = []
    for i in range(3):
        for _ in range(NUMBER):
            out.append(x[i] * one_more())
    return sum(out)


def under_two_names(x):
    kept, out = [1.0], []
    other = kept
    for i in range(3):
        for _ in range(len(kept)):
            out.append(x[i] * longer(other))
    return sum(out)


def longer(kept):
    kept.append(1.0)
    return 1.0


def grows_under_another_name(x):
    kept, total = [v * 1.0 for v in x], 0.0
    other = kept
    for i in range(3):
        for j in range(i + 1, len(kept)):
            total = total + kept[j] * x[i]
            other += [x[i]] if len(kept) < 9 else []
    return total


STAY = [
    grows_under_another_name,
    rectangle,
    closed_over,
    list_of_a_closure,
    with_number_of_the_module,
    under_two_names,
    last_index,
    last_row,
    afterwards,
    left_early,
    left_by_return,
    moving_end,
    number_that_changes,
    another_name,
    growing,
    target_that_is_put,
    else_part,
    called_between,
    looks_at_locals,
]


CHANGING = """
class Tracker:
    def __init__(self, held):
        self.held = held
    def log(self, v):
        self.held[0] = self.held[0] + v
        return v

def applied(fun, v):
    return fun(v)

def logged(tracker, v):
    return tracker.log(v)

def cleaned(v):
    return np.nan_to_num(v, copy=False)

def adding(held):
    def added(v):
        held[0] = held[0] + v
        return v
    return added

def decorator(held):
    return lambda fun: lambda v: adding(held)(fun(v))

def fun(x):
    held, rows, u = [1.0], x * 1.0, x * 2.0
    rows[3] = np.nan
    tracker, added, other = Tracker(held), adding(held), rows

    def through(v):
        return added(v) * v

    @decorator(held)
    def decorated(v):
        return v * v

    total = 0.0
    for i in range(3):
        p = held[0]
        q = rows[3]
        for j in range(i + 1, 4):
            total = total + (p + (q if q == q else 5.0)) * CALL
    return total
"""


@pytest.mark.parametrize(
    "call",
    [
        "applied(added, x[j])",
        "through(x[j])",
        "decorated(x[j])",
        "tracker.log(x[j])",
        "logged(tracker, x[j])",
        "(x[j] + 0.0 * len(cleaned(other)))",
        "np.concatenate((u[:2], u[1:3]), 0, other)[j]",
        "np.clip(u, -1.0, 1.0, other)[j]",
        "np.sum(x, 0, None, other[3:].reshape(()))",
    ],
)
def test_what_calls_change_is_read_in_its_turn(call, tmp_path):
    fun = function_of(CHANGING.replace("CALL", call), tmp_path / "changing.py")
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(3):
        x = rng.normal(size=4)
        np.testing.assert_allclose(derivative(x)[0], fun(x), rtol=1e-12)


SHARED = """
import copy

class Pool:
    def __init__(self, n):
        self.held = np.zeros(n)
    def zeros(self):
        return self.held

def fun(x):
    pool, total = Pool(4), 0.0
    MADE
    for i in range(4):
        p = READ
        for j in range(i + 1, 4):
            total = total + p * x[j]
            WRITTEN
    return total
"""


@pytest.mark.parametrize(
    ("made", "read", "written"),
    [
        ("one = pool.zeros(); other = pool.zeros(); one[:] = x", "one[i]", "other[i] = p * x[j] + 1.0"),
        ("one = [x * 1.0, x * 2.0]; other = copy.copy(one)", "one[0][i]", "other[0][i] = p * x[j] + 1.0"),
        ("one, more = [x * 1.0, x * 2.0], [x]; other = one + more", "one[0][i]", "other[0][i] = p * x[j] + 1.0"),
        ("one = {0: x * 1.0}; other = one | {1: x}", "one[0][i]", "other[0][i] = p * x[j] + 1.0"),
        ("one, more = [x * 1.0, x * 2.0], 1; other = one.copy()", "one[i % 2][0]", "other[i % 2] += p * x[j]"),
        ("one = [x[0], 2.0]; other = one", "one[-1]", "other.append(x[j] * p)"),
    ],
)
def test_what_is_written_under_another_name_is_read_in_its_turn(made, read, written, tmp_path):
    text = SHARED.replace("MADE", made).replace("READ", read).replace("WRITTEN", written)
    fun = function_of(text, tmp_path / "shared.py")
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(3):
        x = rng.normal(size=4)
        np.testing.assert_allclose(derivative(x)[0], fun(x), rtol=1e-12)


def distance(u, v):
    return np.sqrt(np.sum((u - v) ** 2) + softening(v))


def softening(v):
    return 0.01 * len(v)


def of_other_functions(x):
    n, e = len(x), 0.0
    for i in range(n):
        p = x[i]
        for j in range(i + 1, n):
            e += distance(p, x[j])
    return e


def test_functions_that_change_nothing_may_be_called():
    assert "[(" in rewritten(of_other_functions)
    x = RNG.normal(size=(5, 3))
    expected = value_and_grad(of_other_functions, mode="dynamic")(x)
    for _ in range(2):
        for found, right in zip(value_and_grad(of_other_functions)(x), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12)


@pytest.mark.parametrize("fun", STAY)
def test_nests_that_stay(fun):
    assert rewritten(fun) == ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(fun))))


@pytest.mark.parametrize("fun", [number_of_the_module, *[fun for fun in STAY if fun is not with_number_of_the_module]])
def test_nests_that_stay_are_right(fun):
    g = value_and_grad(fun)
    for _ in range(3):
        x, v = RNG.normal(size=(2, 6))
        value, slope = g(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-10)
        h = 1e-6
        np.testing.assert_allclose(slope @ v, (fun(x + h * v) - fun(x - h * v)) / (2 * h), rtol=1e-5, atol=1e-6)


def forces(x, cutoff):
    f = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = x[i] - x[j]
            r2 = np.dot(d, d) + 0.1
            if r2 < cutoff:
                w = d / r2**2
                f[i] += w
                f[j] -= w
    return f


def steps_of_time(x, steps=12):
    v = np.zeros_like(x)
    for _ in range(steps):
        v = v + 0.01 * forces(x, 3.0)
        x = x + 0.01 * v
    return np.sum(x**2)


def steps_written_out(x, steps=12):
    v = np.zeros_like(x)
    for _ in range(steps):
        f = np.zeros_like(x)
        for i in range(len(x)):
            for j in range(i + 1, len(x)):
                d = x[i] - x[j]
                r2 = np.dot(d, d) + 0.1
                if r2 < 3.0:
                    w = d / r2**2
                    f[i] += w
                    f[j] -= w
        v = v + 0.01 * f
        x = x + 0.01 * v
    return np.sum(x**2)


def steps_without_ifs(x, steps=12):
    v = np.zeros_like(x)
    for _ in range(steps):
        f = np.zeros_like(x)
        for i in range(len(x)):
            for j in range(i + 1, len(x)):
                d = x[i] - x[j]
                w = d / (np.dot(d, d) + 0.1)
                f[i] += w
                f[j] -= w
        v = v + 0.01 * f
        x = x + 0.01 * v
    return np.sum(x**2)


def steps_in_zeros(x, steps=12):
    """The array is one of plain numbers until the first pair is near enough, which is another one in each call."""
    v = np.zeros((len(x), 3))
    for _ in range(steps):
        f = np.zeros((len(x), 3))
        for i in range(len(x)):
            for j in range(i + 1, len(x)):
                d = x[i] - x[j]
                r2 = np.dot(d, d) + 0.1
                if r2 < 3.0:
                    f[i] += d / r2**2
                    f[j] -= d / r2**2
        v = v + 0.01 * f
        x = x + 0.01 * v
    return np.sum(x**2)


@pytest.mark.parametrize("fun", [steps_of_time, steps_written_out, steps_without_ifs, steps_in_zeros])
@pytest.mark.parametrize("size", [9, 12])
def test_steps_of_time_around_pairs_are_a_loop(fun, size):
    """What an iteration's arrays were written is noted, but nobody holds them any more."""
    g, rng = grad(fun), np.random.default_rng(0)
    for _ in range(5):
        x = 1.5 * rng.normal(size=(size, 3))
        np.testing.assert_allclose(g(x), grad(fun, mode="dynamic")(x), rtol=1e-10, atol=1e-12)
    assert g.cache_info().hits >= 2
    code = [line for line in g.source(x).splitlines() if not line.lstrip().startswith("#")]
    assert len(code) < 110
    assert sum(line.strip() in ("for _ in range(12):", "for _ in range(1, 12):") for line in code) == 1
    assert "logical_" not in g.source(x)  # what is known of masks before a loop is known in it


def collisions(p, v, steps=12):
    p, v = p.copy(), v.copy()
    for _ in range(steps):
        p += 0.05 * v
        for a in range(len(p)):
            for b in range(a + 1, len(p)):
                d = p[a] - p[b]
                r = np.sqrt(d @ d)
                if r < 0.5:
                    n = d / r
                    rel = (v[a] - v[b]) @ n
                    if rel < 0:
                        v[a] -= rel * n
                        v[b] += rel * n
    return np.sum(p**2)


def parts_in_lists(p, v, steps=12):
    v = v.copy()
    for t in range(steps):
        for a in range(len(p)):
            for b in range(len(p)):
                if p[b, 0] < v[a, 1]:
                    part = v[b, 0] * 0.5
                    v[b, 1] -= part
                elif t > 3 and v[b, 1] > 0.4:
                    part = v[a, 0] + p[b, 1]
                    v[b, 0] += 0.1 * part
    return np.sum(v**2)


@pytest.mark.long
@pytest.mark.parametrize("fun", [collisions, parts_in_lists])
def test_what_some_ways_leave_in_locals_is_that_of_no_way(fun):
    """It is there, or not, by what the first iterations happen to do, and nobody reads it."""
    g, rng = value_and_grad(fun, (0, 1)), np.random.default_rng(3)
    for _ in range(10):
        p, v = rng.uniform(-0.8, 0.8, (5, 2)), rng.normal(size=(5, 2))
        value, slopes = g(p, v)
        want, other = value_and_grad(fun, (0, 1), mode="dynamic")(p, v)
        assert value == pytest.approx(want)
        for mine, theirs in zip(slopes, other, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert g.cache_info().hits >= 4
    assert "nan" not in g.source(p, v)


@dataclasses.dataclass
class Mass:
    at: np.ndarray
    speed: np.ndarray
    fixed: bool = False


class Net:
    """Masses on springs, in a method of an object, whose loops decide."""

    def __init__(self, k, stretch):
        self.k = k
        self.masses = [Mass(np.array([i * stretch, 0.1 * i * i]), np.zeros(2), i == 0) for i in range(6)]

    def step(self):
        forces = [np.array([0.0, -9.8]) for _ in self.masses]
        for i, j in LINKS:
            d = self.masses[j].at - self.masses[i].at
            length = np.linalg.norm(d)
            if length < 1e-9:
                continue
            pull = self.k * (length - 1.0) * d / length
            forces[i] = forces[i] + pull
            forces[j] = forces[j] - pull
        for mass, force in zip(self.masses, forces):  # noqa: B905
            if mass.fixed:
                continue
            mass.speed = 0.99 * mass.speed + 0.02 * force
            mass.at = mass.at + 0.02 * mass.speed


LINKS = [(i, i + 1) for i in range(5)] + [(i, i + 2) for i in range(4)]


def net_of_objects(k, stretch, steps=16):
    net = Net(k, stretch)
    for _ in range(steps):
        net.step()
    return sum(mass.at @ mass.at for mass in net.masses)


def net_of_lists(k, stretch, steps=16):
    at = [np.array([i * stretch, 0.1 * i * i]) for i in range(6)]
    speed = [np.zeros(2) for _ in range(6)]
    for _ in range(steps):
        forces = [np.array([0.0, -9.8]) for _ in at]
        for i, j in LINKS:
            d = at[j] - at[i]
            length = np.linalg.norm(d)
            if length < 1e-9:
                continue
            pull = k * (length - 1.0) * d / length
            forces[i] = forces[i] + pull
            forces[j] = forces[j] - pull
        for i in range(6):
            if i == 0:
                continue
            speed[i] = 0.99 * speed[i] + 0.02 * forces[i]
            at[i] = at[i] + 0.02 * speed[i]
    return sum(one @ one for one in at)


def net_without_ifs(k, stretch, steps=16):
    masses = [Mass(np.array([i * stretch, 0.1 * i * i]), np.zeros(2)) for i in range(6)]
    for _ in range(steps):
        forces = [np.array([0.0, -9.8]) for _ in masses]
        for i, j in LINKS:
            d = masses[j].at - masses[i].at
            length = np.linalg.norm(d)
            pull = k * (length - 1.0) * d / length
            forces[i] = forces[i] + pull
            forces[j] = forces[j] - pull
        for mass, force in zip(masses, forces):  # noqa: B905
            mass.speed = 0.99 * mass.speed + 0.02 * force
            mass.at = mass.at + 0.02 * mass.speed
    return sum(mass.at @ mass.at for mass in masses)


@pytest.mark.whole
@pytest.mark.parametrize("fun", [net_of_objects, net_of_lists, net_without_ifs])
def test_steps_of_time_around_springs_are_a_loop(fun):
    """``zip`` of lists keeps those, and an inner loop need not look into lists that it has nothing to do with."""
    derivative, dynamic = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    for k in range(4):
        args = 10.0 + k, 0.9 + 0.1 * k
        np.testing.assert_allclose(derivative(*args), dynamic(*args), rtol=1e-8)
    assert derivative.cache_info().misses == 2
    code = derivative.source(*args)
    assert sum(line.strip() in ("for _ in range(16):", "for _ in range(1, 16):") for line in code.splitlines()) == 1
    assert len(code.splitlines()) < 900  # of some thousands, written out


RAYS = np.array([[(i - 2.0) / 5, (j - 1.5) / 5, 1.0] for j in range(4) for i in range(5)])
RAYS /= np.linalg.norm(RAYS, axis=1)[:, None]
EYE = np.array([0.0, 0.3, -3.0])


def marched(ray, r):
    t = 0.0
    for _ in range(40):
        x = EYE + t * ray
        h = np.sqrt(x @ x) - r
        if h < 1e-4:
            return t
        t += h
        if t > 8.0:
            return 8.0
    return t


def seen(r):
    total = 0.0
    for ray in RAYS:
        total += np.exp(-marched(ray, r))
    return total


def marched_to_breaks(ray, r):
    t = 0.0
    for _ in range(40):
        x = EYE + t * ray
        h = np.sqrt(x @ x) - r
        if h < 1e-4:
            break
        t += h
        if t > 8.0:
            t = 8.0
            break
    return t


def seen_to_breaks(r):
    total = 0.0
    for ray in RAYS:
        total += np.exp(-marched_to_breaks(ray, r))
    return total


@pytest.mark.parametrize("fun", [seen, seen_to_breaks])
def test_rays_that_leave_a_loop_in_several_ways(fun):
    """What a way does not read of an inner loop's results is there all the same, so that one loop stands for all rays."""
    slope, theirs = grad(fun), grad(fun, mode="dynamic")
    for k in range(14):
        np.testing.assert_allclose(slope(0.5 + 0.03 * k), theirs(0.5 + 0.03 * k), 1e-9)
    assert slope.cache_info().misses <= 6
    assert len(slope.source(0.6).splitlines()) < 300
