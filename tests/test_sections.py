"""Functions with many ``if``s outside of loops: their ways meet behind each, so that few calls tell all of them."""

import numpy as np
import pytest
from agreement import right_at

from symgrad import grad, hessian, value_and_grad, vmap
from symgrad.source.instrument import instrumented


def tax(x):
    income, credit = 50 * x[0], 0.0
    owed = 0.0
    if income > 10:
        owed += 0.1 * (min(income, 30) - 10)
    if income > 30:
        owed += 0.2 * (income - 30)
    if x[1] > 0.3:
        credit += 0.5 * x[1]
    if x[2] > 0.7:
        credit += 0.3
    elif x[2] > 0.2:
        credit += 0.1 * x[2]
    rate = 2.0 if x[3] > 0 else 0.5
    bonus = x[4] if x[5] > 0 else 0.0
    return owed * rate - credit + bonus


def clipped(v, low, high):
    if v < low:
        return low + 0.1 * (v - low)
    if v > high:
        return high + 0.1 * (v - high)
    return v


def controller(x):
    e = x[0] - x[1]
    u = 2.0 * e + 0.5 * clipped(x[2] + 0.1 * e, -1.0, 1.0) + 0.1 * clipped(e - x[3], -0.5, 0.5)
    y = x[4] + 0.1 * clipped(u, -2.0, 2.0)
    return clipped(y - x[5], -0.3, 0.3) ** 2 + 0.01 * clipped(u, -1.0, 1.0) ** 2


class Bond:
    def __init__(self, k, length):
        self.k, self.length = k, length

    def energy(self, r):
        if r < self.length:
            return self.k * (r - self.length) ** 2
        if r < 2 * self.length:
            return 0.5 * self.k * (r - self.length) ** 2
        return 0.1 * self.k


class Molecule:
    def __init__(self, x):
        self.bonds, self.x, self.total = [Bond(1.0, 0.5), Bond(2.0, 0.3), Bond(1.5, 0.8)], x, 0.0

    def energy(self):
        e = self.bonds[0].energy(abs(self.x[0] - self.x[1])) + self.bonds[1].energy(abs(self.x[1] - self.x[2]))
        e += self.bonds[2].energy(abs(self.x[2] - self.x[3]))
        if e > 1.0:
            self.total = 1.0 + np.log(e)
        else:
            self.total = e
        return self.total


def molecule(x):
    return Molecule(x).energy()


def written(x):
    y = x * 2
    if y[0] > 1:
        y[0] = 1.0
    if y[1] < 0:
        y[1] = 0.0
    if y[2] > y[3]:
        y[2] = y[3]
    m = y.mean()
    if m > 0.1:
        y = y - m
    else:
        y = y + m * m
        y[5] = 0.5 * m
    if np.linalg.norm(y) > 3:
        y = 3 * y / np.linalg.norm(y)
    return np.sum(y**2 * x)


def extremes(x):
    low, high = x[0], x[0]
    if x[1] < low:
        low = x[1]
    if x[1] > high:
        high = x[1]
    if x[2] < low:
        low = x[2]
    if x[2] > high:
        high = x[2]
    if x[3] < low:
        low = x[3]
    if x[3] > high:
        high = x[3]
    return high - low


def counted(x):
    total, n, any_big = 0.0, 0, False
    if x[0] > 0:
        total += x[0]
        n += 1
    if x[1] > 0:
        total += x[1]
        n += 1
    if x[2] > 0:
        total += x[2] ** 2
        n += 1
    if x[3] > 1:
        any_big = True
    if x[4] > 0:
        n = n + 2
    if any_big:
        total = total * x[5]
    return total / n if n > 0 else x[6]


def configured(x):
    options = {"a": 1.0, "b": 0.5}
    if x[0] > 0:
        options["a"] = x[1]
    if x[2] > 0:
        options["b"] = x[3] ** 2
    if x[4] > 0:
        options["a"] = options["a"] * 2
    if x[5] > 0:
        options["b"] = options["a"]
    return options["a"] * x[6] + options["b"]


PROGRAMS = [tax, controller, molecule, written, extremes, counted, configured]


def checked(fun, points):
    """How many of the calls at these points were traced; all of them agree with the function and with dynamic mode."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in points:
        value, slope = derivative(x)
        assert np.isclose(value, fun(x), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-9, atol=1e-12)
    return derivative.cache_info().misses


@pytest.mark.parametrize("fun", PROGRAMS)
def test_many_ways_are_few_traces(fun):
    rng = np.random.default_rng(0)
    assert checked(fun, rng.normal(size=(400, 8))) < 90


@pytest.mark.parametrize("fun", PROGRAMS)
@pytest.mark.parametrize("seed", range(4))
def test_correlated_at_first(fun, seed):
    """What went together in the first calls need not later."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(120, 8))
    points[:20] = points[:20, :1] * np.sign(rng.normal(size=8))
    points[20:30] = np.abs(points[20:30])
    points[30:60] = np.round(points[30:60] * 2) / 2
    checked(fun, points)


@pytest.mark.parametrize("fun", [controller, written])
def test_second_order(fun):
    rng = np.random.default_rng(1)
    compiled, dynamic = hessian(fun), hessian(fun, mode="dynamic")
    for x in rng.normal(size=(60, 8)):
        np.testing.assert_allclose(compiled(x), dynamic(x), rtol=1e-9, atol=1e-12)


def large(x):
    y = x * 2
    if x[0] > 0:
        y = np.sin(y)
    if x[1] > 0:
        y = y * x
    if x[2] > 0:
        y = y + x
    if x[3] > 0:
        y = np.tanh(y)
    if x[4] > 0:
        y = y - x
    return np.sum(y)


def large_in_a_loop(x):
    y = x * 2
    for i in range(6):
        if x[i] > 0:
            y = np.sin(y)
        elif x[i] < -1:
            y = y * x
    return np.sum(y)


@pytest.mark.parametrize("fun", [large, large_in_a_loop])
def test_large_arrays(fun):
    """What is left to be computed later is compared by its value."""
    assert checked(fun, np.random.default_rng(0).normal(size=(40, 50_000))) < 25


@pytest.mark.parametrize("fun", [tax, controller, extremes])
def test_vmap_of_many_ways(fun):
    """Each element runs alone, by the code of the derivative."""
    rng = np.random.default_rng(2)
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    batched = vmap(derivative)
    for points in rng.normal(size=(8, 40, 8)):
        np.testing.assert_allclose(batched(points), [dynamic(x) for x in points], rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().hits > 100
    assert points.flags.writeable


def test_vmap_of_many_ways_within_a_derivative():
    points = np.random.default_rng(3).normal(size=(30, 8))
    found = [grad(lambda x: np.sum(vmap(controller)(x) ** 2), mode=mode)(points) for mode in ("auto", "dynamic")]
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)
    expected = [2 * controller(x) * grad(controller, mode="dynamic")(x) for x in points]
    np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-12)


def chain(x):
    if x[0] < -2.0:
        y = x[1]
    elif x[0] < -1.5:
        y = x[2] * 2
    elif x[0] < -1.0:
        y = x[3] ** 2
    elif x[0] < -0.5:
        y = np.sin(x[4])
    elif x[0] < 0.0:
        y = x[5] * x[6]
    elif x[0] < 0.5:
        y = x[7]
    elif x[0] < 1.0:
        y = x[1] + x[2]
    elif x[0] < 1.5:
        y = x[3] - x[4]
    elif x[0] < 2.0:
        y = x[5] * 0.5
    else:
        y = x[6]
    return y * x[0]


def test_long_chains_stay_ways():
    """One ``if`` within the other, deep down, would be slow to compile; their ways are few."""
    derivative, points = value_and_grad(chain), np.random.default_rng(4).normal(size=(600, 8)) * 1.5
    checked(chain, points[:100])
    for x in points:
        derivative(x)
    assert derivative.source(points[0]).count("if ") < 40
    assert derivative.cache_info().misses < 200


def named(x):
    flow = abs(x[0])
    if flow < 0.3:
        factor, kind = 2 / (flow + 1), ("laminar", 1)
    elif flow < 0.8:
        factor, kind = 0.3, ("transition", 1)
    else:
        factor, kind = 0.316 / flow**0.25, ("turbulent", 1)
    if x[2] > 0:
        factor = factor + x[2] ** 2
    if kind[0] == "laminar":
        factor = factor * 2
    if kind[0] == "turbulent" and x[3] > 0:
        factor = factor * 1.1
    if x[4] > 0:
        factor = factor * x[4]
    return factor * x[1]


def listed(x):
    points = [x[0]]
    if x[1] > 0:
        points.append(x[1])
    if x[2] > 0:
        points.append(x[2] ** 2)
    if x[3] > 0:
        points[0] = x[4]
    if x[5] > 0:
        points.pop()
    return sum(points) * x[6] if points else x[7]


def chosen(x):
    first, second = Bond(x[0], 0.5), Bond(x[1], 0.8)
    best = first
    if x[2] > 0:
        best = second
    if x[3] > 0:
        best.k = x[4] ** 2
    if x[5] > 0:
        first.length = x[6]
    if x[7] > 0:
        best.length = best.length * 2
    return first.k * first.length + second.k * second.length + best.k


def same_array(x):
    y, z = x * 2, x * 3
    if x[0] > 0:
        z = y
    if x[1] > 0:
        z[2] = x[3]
    if x[2] > 0:
        y[4] = 1.0
    if x[5] > 0:
        y = z * 2
    return np.sum(y * x) + np.sum(z**2)


@pytest.mark.parametrize("fun", [named, listed, chosen, same_array])
@pytest.mark.parametrize("seed", range(3))
def test_what_hangs_on_the_way(fun, seed):
    """Tuples of texts, lists, objects and names of arrays that an ``if`` chooses."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(120, 8))
    points[:15] = points[:15, :1] * np.sign(rng.normal(size=8))
    checked(fun, points)


def test_what_a_loop_leaves_plain():
    """A local that an iteration sets to something plain tells ways apart: code had that of the call that was traced."""

    def last(x):
        total = 0.0
        for v in x:
            if v > 0:
                kind = ("up", 1)
                total = total + v
            else:
                kind = ("down", 1)
                total = total + 2 * v
        return total if kind[0] == "up" else -total

    rng = np.random.default_rng(0)
    points = rng.normal(size=(24, 8))
    points[:4], points[4:8], points[8:12] = np.abs(points[:4]), -np.abs(points[4:8]), np.abs(points[8:12])
    checked(last, points)


def test_errors_as_python_has_them():
    def f(x):
        scale = 1.0
        if x[0] > 0:
            scale = scale * 2
        if x[1] > 0:
            scale = scale + x[1]
        if x[2] > 0:
            raise ValueError("no")
        if x[3] > 0:
            scale = scale * x[3]
        if x[4] > 0 and x[5] < 0:
            raise IndexError("negative")
        return scale * x[6]

    rng = np.random.default_rng(0)
    derivative = grad(f)
    for x in rng.normal(size=(150, 8)):
        try:
            expected = f(x)
        except (ValueError, IndexError) as error:
            with pytest.raises(type(error), match=str(error)):
                derivative(x)
        else:
            assert np.isclose(x[6] * derivative(x)[6], expected)


def test_lines_stay():
    """A function in sections is as it was, line by line, for those who look at tracebacks."""

    class Hooks:
        def __getattr__(self, name):
            raise AttributeError(name)

    made = instrumented(clipped, Hooks(), sections=True)
    lines = {line for _, _, line in made.__code__.co_lines() if line}
    first = clipped.__code__.co_firstlineno
    assert lines <= set(range(first, first + 7))


NUMBERS = [1.0]


def larger_first(a, b):
    if a > b:
        return a * b
    return a - b


def reads_a_global_in_its_ways(x, c):
    q = x + NUMBERS[0] if x > 0.5 else c * x
    s = 0.1
    if c > 0:
        if x > 0 and c < 1:
            s = larger_first((c * x if c > x else c), np.tanh(NUMBERS[0]))
        else:
            return np.sin(c * x)
    return s + q


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_globals_first_read_in_a_way(seed):
    """They are inputs, as those that are read before, not operations of the way."""
    rng = np.random.default_rng(seed)
    code, dynamic = grad(reads_a_global_in_its_ways), grad(reads_a_global_in_its_ways, mode="dynamic")
    for number, x, c in rng.normal(size=(100, 3)).tolist():
        NUMBERS[0] = number
        np.testing.assert_allclose(code(x, c), dynamic(x, c), rtol=1e-12)


def counted(x):
    k, a, b = 1, 0.0, 0.0
    for v in x:
        if v > 0.5:
            k += 1
        if v < 0:
            a, b = k, v
    return a * b


def pairs(x):
    r, out = x[-1], []
    for v in x:
        if v > 0.5:
            r = r * v
        if v < 0:
            out.append((r, v))
    return sum(r * v * v for r, v in out)


def stretches(x):
    start, found = None, []
    for i, v in enumerate(x):
        if v > 0 and start is None:
            start = i
        if v < -0.5 and start is not None:
            found.append((start, i))
            start = None
    return sum((x[a] * x[b] for a, b in found), 0.0 * x[0])


def both_signs(x):
    k, a, b = 1.0, 0.0, 0.0
    for v in x:
        for sign in (1.0, -1.0):
            if sign * v > 0.5:
                k = k * v
            if sign * v < -1:
                a, b = k, v
    return a * b


def named(x):
    state, total = "low", 0.0 * x[0]
    for v in x:
        if v > 0.5:
            state = "high" if state == "low" else "low"
        if v < 0:
            total = total + (v if state == "high" else 2.0 * v * v)
    return total


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fun", [counted, pairs, stretches, both_signs, named])
def test_what_an_iteration_leaves_for_the_next_one_alone(fun, seed):
    """Nothing but the loop reads it; but each of its iterations does, and so does each run of a loop in it."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(seed)
    for _ in range(14):
        right_at(derivative, fun, np.round(4 * rng.uniform(-2.5, 2.5, 4)) / 4, value=(1e-12, 1e-14), slope=(1e-12, 1e-14))
