"""Loops whose iterations go different ways: their ``if``s are in the code, which is right whichever way they go."""

import itertools
import random
import time
import warnings
from collections import OrderedDict, deque
from collections.abc import Iterator

import numpy as np
import pytest
from agreement import few, program_of, right_at, right_in_other_calls
from hypothesis import assume, given
from hypothesis import strategies as st

from symgrad import grad, hessian, hvp, jvp, stop_gradient, value_and_grad, vmap, without
from symgrad.testing import Program
from symgrad.tracing import trace


def huber(x):
    s = 0.0
    for v in x:
        if abs(v) < 1:
            s += 0.5 * v * v
        else:
            s += abs(v) - 0.5
    return s


def clipped(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 1:
            s += 1.0
        elif x[i] < -1:
            s -= 1.0
        else:
            s += x[i] ** 3
    return s


def logarithms(x):
    s = 0.0
    for v in x:
        s += np.log(v) if v > 0 else v * v
    return s


def reciprocals(x):
    """Of Python's numbers: to divide by zero raises an error, on the side that is not taken."""
    s = 0.0
    for i in range(len(x)):
        v = (x[i] > 0.3) * x[i]
        if v != 0:
            s += 1.0 / v
        else:
            s -= 2.0
    return s * x[0]


def spikes(x):
    v, total = 0.0, 0.0
    for i in range(len(x)):
        v = 0.9 * v + x[i] ** 2
        if v > 1.5:
            v = 0.0
            total = total + x[i]
    return v + total


def bounces(x):
    place, speed = x[:2] + 1.0, x[2:4]
    for _ in range(40):
        speed = speed + np.array([0.0, -0.3])
        place = place + 0.1 * speed
        if place[1] < 0:
            place, speed = place * np.array([1.0, -1.0]), speed * np.array([0.9, -0.8])
    return place @ speed


def bisection(x):
    a = x @ x
    low, high = 0.0, 20.0
    for _ in range(30):
        middle = (low + high) / 2
        if middle**3 + middle < a:
            low = middle
        else:
            high = middle
    return (low + high) * a


def largest(x):
    best, at = x[0], 0.0
    for i in range(1, len(x)):
        if x[i] > best:
            best = x[i] * 1.0
            at = at + best
    return best * at


def mean_of_some(x):
    count, s = 0, 0.0
    for v in x:
        if v < 0:
            continue
        count += 1
        s = 0.9 * s + np.sqrt(v)
    return s / max(count, 1)


def asymmetric(x):
    """Volatility that rises with losses: a plain number on one side, which no later iteration reads."""
    h, total = 1.0, 0.0
    for i in range(1, len(x)):
        leverage = 0.3 * x[i - 1] ** 2 if x[i - 1] < 0 else 0.0
        h = 0.1 + 0.2 * x[i - 1] ** 2 + leverage + 0.5 * h
        total += np.log(h) + x[i] ** 2 / h
    return total


def slope_of(v):
    if v > 0:
        return v if v < 0.7 else np.sqrt(v)
    return 0.1 * v


def in_a_function(x):
    s = 1.0
    for v in x:
        s = np.sin(s) + slope_of(v)
    return s


def into_an_array(x):
    y = np.zeros(len(x))
    for i in range(1, len(x)):
        if x[i] > 0:
            y[i] = x[i] * y[i - 1] + 1.0
        else:
            y[i - 1] = y[i - 1] * 0.5
    return y @ y


def two_loops(x):
    s = 0.0
    for i in range(5):
        t = x[i]
        for j in range(6):
            if x[j] > t:
                t = t * 0.5 + x[j]
            s = s + t * x[i]
    return s


def by_rows(x):
    """What the lambda calls ``v`` is its own."""
    size = lambda v: v @ v
    s, t = 1.0, 0.0
    for v in x.reshape(-1, 2):
        if size(v) > 1.0:
            s = s * 0.9 + v[0]
        else:
            t = t + v @ v * s
    return s + t


ROLLED = [huber, clipped, logarithms, reciprocals, spikes, bounces, bisection, largest, mean_of_some, asymmetric, in_a_function,
          into_an_array, by_rows]  # fmt: skip


def points(count, size=40):
    return np.random.default_rng(7).standard_normal((count, size))


@pytest.mark.parametrize("fun", ROLLED)
def test_loop_is_compiled_once_for_all_ways(fun):
    derivative, other = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in points(12):
            value, slope = derivative(x)
            expected, theirs = other(x)
            np.testing.assert_allclose(value, fun(x), rtol=1e-13)
            assert value == pytest.approx(expected, rel=1e-12)
            np.testing.assert_allclose(slope, theirs, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 3  # a call that went one way only at some decision has nothing to say of the other
    assert len(derivative.source(x).splitlines()) < 150


@pytest.mark.parametrize("fun", ROLLED)
def test_other_derivatives_of_forked_loops(fun):
    x = points(3)
    product, forward, many = hvp(fun), lambda x, t: jvp(fun, (x,), (t,))[1], vmap(grad(fun))
    slopes = [grad(fun, mode="dynamic")(row) for row in x]
    for row, slope in zip(x, slopes, strict=True):
        t = np.cos(row)
        np.testing.assert_allclose(forward(row, t), slope @ t, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(product(row, t), hvp(fun, mode="dynamic")(row, t), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(many(x), slopes, rtol=1e-10, atol=1e-12)


def roots(x):
    s = 0.0
    for i in range(len(x)):
        s += np.sqrt(x[i] - 0.5) if x[i] > 0.5 else x[i] * x[i]
    return s


def test_sides_that_are_not_taken_raise_nothing_in_second_derivatives():
    derivative = hessian(roots)
    with np.errstate(all="raise"):
        for x in points(3, 10):
            np.testing.assert_allclose(derivative(x), hessian(roots, mode="dynamic")(x), rtol=1e-12)


def turning(x):
    """Nothing here hangs on the index: what iterations compute goes back to the first."""
    s, t = x[0], x[1]
    for _ in range(len(x)):
        t = 0.99 * t + 0.1 * np.sin(s)
        s = np.cos(s) - 0.1 * t if t > 0 else 0.9 * s + t
    return s * t


def test_time_of_a_trace_grows_with_the_iterations_alone():
    def seconds(size):
        x = points(1, size)[0]
        start = time.process_time()
        grad(turning)(x)
        return time.process_time() - start

    seconds(20)
    assert min(seconds(1200) for _ in range(2)) < 8 * min(seconds(300) for _ in range(3))


def written_both_ways(x):
    f, g = np.zeros(len(x)), np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 0:
            f[i] += x[0]
        g[i] = 2.0 * f[i]
    return np.sum(f * g)


def test_each_write_is_looked_at_a_few_times(monkeypatch):
    seen, owns_all = [], trace._owns_all
    monkeypatch.setattr(trace, "_owns_all", lambda owner: seen.append(owner) or owns_all(owner))
    derivative = grad(written_both_ways)
    derivative(points(1, 300)[0])
    assert len(seen) < 10 * 300


def test_code_reads_as_it_was_written():
    with without("vectorize"):
        derivative = grad(huber)
    for x in points(3):
        derivative(x)
    lines = [line.strip() for line in derivative.source(x).splitlines()]
    assert lines.count("if less:") == lines.count("else:") == 1
    assert "not" not in derivative.source(x)
    assert not any(line.startswith(("while", "raise")) for line in lines)


def without_what_is_no_number(x):
    """The slopes of the square roots are infinite, or none, where the ``if`` leaves them out."""
    y, s = np.sqrt(x), 1.0
    for v in y:
        if v >= 0:
            s = 0.9 * s + v * s
    return s


def without_infinities(x):
    y, s, t = np.log(np.abs(x) * (x > -1)), 1.0, 0.0
    for v in y:
        if np.isfinite(v):
            s = s * 0.9 + v * v
        else:
            t = t + s
    return s * t


@pytest.mark.parametrize("fun", [without_what_is_no_number, without_infinities])
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_what_is_left_out_takes_no_part(fun):
    derivative, other = grad(fun), grad(fun, mode="dynamic")
    for x in points(8):
        found = derivative(x)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, other(x), rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 3


def with_a_class(x):
    class Kept:
        first = x * 1.0

    s = 0.0
    for v in x:
        if v > 0:
            Kept.first[0] += v
            s += v
        else:
            s -= v
    return s * Kept.first[0]


def with_large_numbers(x):
    n, s = 1, 0.0
    for v in x:
        if v > 0:
            n = n * 1000003
        s += v * (n % 7)
    return s


def with_a_list(x):
    kept = []
    for v in x:
        if v > 0:
            kept.append(v * v)
    return sum(kept) + len(kept) * x[0]


def with_a_flag(x):
    found, s = False, 0.0
    for v in x:
        if v > 1:
            found = True
        s += 2.0 * v if found else v
    return s


def with_a_name(x):
    mode, s = "up", 0.0
    for v in x:
        if v > 1:
            mode = "down"
        s += {"up": v, "down": v * v}[mode]
    return s


def with_an_error(x):
    s = 0.0
    for v in x:
        if v > 2.4:
            raise ValueError("too large")
        s += v if v > 0 else v * v
    return s


def with_a_local_of_some(x):
    s = 0.0
    for v in x:
        if v > 0.5:
            last = v * v
        elif v < -1:
            s += last if s != 0 else v
        s += v
    return s + last


def counted(x):
    n = 0
    for v in x:
        if v > 0:
            n += 1
    return np.sum(x[:n]) * n


def one_of_two(x):
    a, b = x[0], x[1]
    for v in x[2:]:
        if v > 0:
            a, b = b, a + v
        else:
            b = a
    return a * b


def there_already(x):
    """One side computes what the other has left in a local, as long as they take turns."""
    s, w = 0.5, 0.1
    for v in x:
        if v > 0:
            w = np.sin(s) * 1.5
        else:
            s = s + np.sin(s) * 1.5 * v
    return s * w


def put_and_changed(x):
    """What a side leaves as it is, is computed again by the other one, of a number that is put there meanwhile."""
    s, u = 0.1, x[0]
    for v in x:
        if v > 0.2:
            s = 0.5 * x[1] + u
        u = -0.5
        u = u + s
    return s + s * u


def put_as_it_began(x):
    s, u = 0.1, -0.5
    for v in x:
        if v > 0.2:
            s = 0.5 * v + u
        u = -0.5
        u = u + s
    return s + s * u


@pytest.mark.parametrize("fun", [put_and_changed, put_as_it_began])
def test_numbers_put_meanwhile(fun):
    derivative, other = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(3)
    for turn in range(12):
        x = rng.standard_normal(11)
        x[1:4] = (1.0, -1.0, 1.0) if turn < 4 else x[1:4]
        (value, slope), (expected, theirs) = derivative(x), other(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, theirs, rtol=1e-11, atol=1e-13)


def test_what_is_there_already_is_computed_again():
    derivative = grad(there_already)
    turns = np.array([0.1, -0.2, 0.3, -0.4, 0.2, -0.1, 0.5, -0.3])
    for factor in (1.0, 0.9, 0.8, 0.7):
        derivative(factor * turns)
    for x in (turns - 0.25, turns + 0.15, -turns):
        np.testing.assert_allclose(derivative(x), grad(there_already, mode="dynamic")(x), rtol=1e-12, atol=1e-14)


def single(x):
    t, s = np.float32(0.5), 0.0
    for v in x:
        t = np.float32(0.25) if v > 0 else t * np.float32(1.1)
        s += t * v
    return s


def test_plain_numbers_that_the_next_iteration_reads():
    derivative = grad(single)
    turns = np.cos(np.pi * np.arange(12)) * np.linspace(0.3, 1.9, 12)
    for x in (turns, 0.9 * turns, 0.8 * turns, turns - 0.7, -turns):
        np.testing.assert_allclose(derivative(x), grad(single, mode="dynamic")(x), rtol=1e-12)


OTHERS = [with_a_list, with_a_flag, with_a_name, with_an_error, with_a_local_of_some, counted, one_of_two, two_loops,
          with_a_class, with_large_numbers]  # fmt: skip


@pytest.mark.parametrize("fun", OTHERS)
def test_what_is_left_behind_counts_whichever_way_it_went(fun):
    derivative, other = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in points(25, 12):
        try:
            value = fun(x)
        except (ValueError, UnboundLocalError) as error:
            with pytest.raises(type(error)):
                derivative(x)
            continue
        found, slope = derivative(x)
        assert found == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)


class WithSlot:
    __slots__ = ("__dict__", "n")

    def __init__(self):
        self.n = 0

    def add(self):
        self.n += 1


class Listed(list):
    n = 0

    def add(self):
        self.n += 1


class Queue(deque):
    n = property(len)

    def add(self):
        self.append(None)


class Ordered(OrderedDict):
    n = property(len)

    def add(self):
        self[len(self)] = None


@pytest.mark.parametrize("kind", [WithSlot, Listed, Queue, Ordered])
@pytest.mark.parametrize("size", [12, 120])
def test_what_objects_count(kind, size):
    """In what is no ``__dict__`` of theirs, on one side, in a loop that is long, and in one that ends by a test."""

    def of_one_side(x):
        counter, s = kind(), 0.0
        for v in x:
            if v > 0:
                counter.add()
                s += v
            else:
                s -= v * v
        return s * counter.n

    def of_all(x):
        counter, s = kind(), 0.0
        for v in x:
            counter.add()
            s = 0.9 * s + np.sin(v)
        return s * counter.n

    def of_a_test(x):
        counter, s = kind(), 1.0
        while s < 50:
            counter.add()
            s = 1.05 * s + 0.1 * x[0] * x[0]
        return s * counter.n

    turns = np.cos(np.pi * np.arange(size)) * np.linspace(0.3, 1.9, size)
    for fun in (of_one_side, of_all, of_a_test):
        derivative = value_and_grad(fun)
        for x in (turns, 0.9 * turns, 0.8 * turns, 1.1 * turns, turns + 0.7, turns - 0.7, np.sin(turns)):
            value, slope = derivative(x)
            assert value == pytest.approx(fun(x), rel=1e-12)
            np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x), rtol=1e-11, atol=1e-13)


def with_a_class(x):
    class Counter:
        n = 0

    s = 0.0
    for v in x:
        if v > 0:
            setattr(Counter, "n", Counter.n + 1)  # noqa: B010
            s += v
        else:
            s -= v * v
    return s * Counter.n


def test_what_setattr_writes():
    derivative = value_and_grad(with_a_class)
    turns = np.cos(np.pi * np.arange(12)) * np.linspace(0.3, 1.9, 12)
    for x in (turns, 0.9 * turns, 0.8 * turns, turns + 0.7, turns - 0.7):
        assert derivative(x)[0] == pytest.approx(with_a_class(x), rel=1e-12)


def running(x):
    s = 0.0
    for v in x:
        if v > 0:
            s = 0.5 * s + v
            yield s


def of_some(x):
    return sum(s * s for s in running(x)) * x[0]


def of_some_in_turn(x):
    total = 0.1
    for i, s in enumerate(running(x)):
        total = 0.9 * total + i * s if s > 0.5 else total - s
    return total


@pytest.mark.parametrize("fun", [of_some, of_some_in_turn])
def test_what_others_do_between_iterations(fun):
    derivative = value_and_grad(fun)
    turns = np.cos(np.pi * np.arange(12)) * np.linspace(0.3, 1.9, 12)
    for x in (turns, 0.9 * turns, 0.8 * turns, turns + 0.7, turns - 0.7, np.sin(turns)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x), rtol=1e-11, atol=1e-13)


def views_in_turn(x):
    y, z, s = x[3:6], x[:3], 0.1
    for v in x:
        if v > 0:
            s = 0.5 * s + v
        y, z = z, y
    return s + y @ z


def test_locals_that_are_views_when_the_loop_ends():
    derivative = value_and_grad(views_in_turn)
    for x in points(4, 12):
        value, slope = derivative(x)
        assert value == pytest.approx(views_in_turn(x), rel=1e-12)
        np.testing.assert_allclose(slope, grad(views_in_turn, mode="dynamic")(x), rtol=1e-11, atol=1e-13)


# -- random programs -----------------------------------------------------------------------------------------------

EXPRESSIONS = """
    {a}*0.9+{b} np.sin({a})*{b} {a}*{b}*0.5 {a}-0.3*{b} np.tanh({a}+{b}) abs({a})*0.7 {a}*{a}*0.2+{b} max({a},{b}) min({a},0.5)
    np.exp(-{a}*{a}) x[i]*{a} x[i]+{b} {a}/(1.5+{b}*{b}) np.sqrt(1+{a}*{a}) max(0,{a})*{b}
""".split()
CONDITIONS = ["{a} > 0", "{a} > {b}", "x[i] > 0.2", "abs({a}) < 0.7", "{a}*{b} < 0.1", "x[i] < {a}", "{a} > 0.1 and {b} > 0",
              "{a} < 0 or {b} > 0.3", "not {a} > 0.2", "0 < {a} < 0.8"]  # fmt: skip
STATEMENTS = [
    *["{t} = {e}"] * 6, "{t} += 0.3*{e}", "{t} = 0.0", "{t} = -0.5", "{t} = {a}", "R[i] = {e}", "R[i - 1] += {e}", "c += 1",
    "r = {e} if {b} > 0 else 0.0; {t} = {t}*0.7 + r", "r = 0.5 if {b} > 0.1 else {e}; {t} = r - 0.5*{t}",
    "q = {e}", "z = 0.5*z + {e}*y", "m = 1", "m = 0", "s, t = t, s", "w = {e}",
]  # fmt: skip
TURNS = ["for i in range(1, 12):", "for i in range(11, 0, -1):", "for i, v in enumerate(x[:11], 1):"]
WHILES = [
    ["    i = 0", "    while i < 11:", "        i += 1"],
    ["    h = 1.0; i = 3", "    while h > 0.05:", "        h = h * (0.7 + 0.1 * np.tanh(p))"],
    ["    i = 0", "    while True:", "        i += 1", "        if i > 10: break"],
]
EXITS = ["s > 2.0", "s*s > 1.5", "t < -1.0", "abs(u) > 1.2", "s + t > 1"]
LAST = ["s = s + 0.1*t", "t = t*0.9 + x[i]*s", "u = u + s", "s = np.sin(s)", "u = u*0.5 + m*x[i]"]
ENDS = ["s + t*u + np.sum(R) + q + c*0.1*s + np.sum(z)", "s*t + u", "s + np.sum(z*z)", "s + c*t + m*u", "np.sum(R*R) + s*u"]


def block(rng: random.Random, depth: int, indent: str) -> Iterator[str]:
    for _ in range(rng.randrange(1, 4)):
        a, b, t = rng.choice("stup"), rng.choice("stup"), rng.choice("stu")
        if rng.random() < 0.75 or depth == 3:
            e = rng.choice(EXPRESSIONS).format(a=a, b=b)
            yield indent + rng.choice(STATEMENTS).format(a=a, b=b, t=t, e=e)
            continue
        yield f"{indent}if {rng.choice(CONDITIONS).format(a=a, b=b)}:"
        yield from block(rng, depth + 1, indent + "    ")
        if rng.random() < 0.2:
            yield f"{indent}    continue"
        elif rng.random() < 0.7:
            yield f"{indent}elif {rng.choice(CONDITIONS).format(a=b, b=a)}:" if rng.random() < 0.3 else f"{indent}else:"
            yield from block(rng, depth + 1, indent + "    ")


def forked(rng: random.Random) -> Iterator[str]:
    pausing = rng.random() < 0.2  # others go on between the iterations
    yield "def steps(x, p):" if pausing else "def program(x, p):"
    yield "    s = 0.1; t = p; u = x[0]; q = 0.0; c = 0; m = 0; w = 0.0"
    yield "    y = x[:3]; z = np.ones(3); R = np.zeros(13)"
    if rng.random() < 0.4:
        yield from rng.choice(WHILES)
    else:
        yield f"    {rng.choice(TURNS)}"
    yield f"        if {rng.choice(CONDITIONS).format(a='x[i]', b='s')}:"
    yield from block(rng, 1, "            ")
    if rng.random() < 0.3:
        yield f"        if {rng.choice(EXITS)}: break"
    yield from block(rng, 0, "        ")
    yield f"        {rng.choice(LAST)}"
    if not pausing:
        yield f"    return {rng.choice(ENDS)}"
        return
    yield rng.choice(["        yield 0.5*s + t", "        if s > 0.1:\n            yield s*t"])
    yield "def program(x, p):"
    yield "    total = 0.1"
    yield "    for n, v in enumerate(steps(x, p)):"
    yield rng.choice(["        total = 0.8*total + v*n", "        total = total - v if v < 0.3 else 0.5*total + v*v"])
    yield "    return total"


@few
@given(st.integers(0, 2**40))
def test_random_forks(seed: int) -> None:
    """At many points, and with second derivatives."""
    shapes = {"x": ("float64", (12,)), "p": ("float64", ())}
    program = Program("\n".join(forked(random.Random(seed))) + "\n", shapes, seed)
    derivative, product = value_and_grad(program.fun, (0, 1)), hvp(program.fun)
    rng = np.random.default_rng(seed)
    for turn in range(8):
        x, p = rng.standard_normal(12), float(rng.standard_normal())
        if turn < 3 and seed % 4:  # what is compiled has seen one way to take turns, or numbers in order, or many alike
            x = [np.sort(x), np.round(x) * 0.5, np.abs(x) * np.cos(np.pi * np.arange(12))][seed % 4 - 1]
        with np.errstate(all="ignore"):  # of numbers that grow without bound
            value = program(x, p)
            assume(np.isfinite(value) and abs(value) < 1e4)
            _, expected = value_and_grad(program.fun, (0, 1), mode="dynamic")(x, p)
            assume(all(np.max(np.abs(part)) < 1e4 for part in expected))
            found, slopes = derivative(x, p)
            assert found == pytest.approx(value, rel=1e-10, abs=1e-12)
            for mine, theirs in zip(slopes, expected, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
            if turn % 2:
                second = hvp(program.fun, mode="dynamic")(x, np.ones(12), p)
                assume(np.max(np.abs(second)) < 1e5)
                assert product(x, np.ones(12), p) == pytest.approx(second, rel=1e-7, abs=1e-7)


def better_of_two(x):
    """No call goes both sides at once: if one of them is much better, the other one is not."""
    a, b = x[0], -x[0]
    for v in x[1:]:
        a, b = (a if a > b - 0.5 else b - 0.5) + v, (b if b > a - 0.5 else a - 0.5) - v
    return a if a > b else b


def reservoir(x):
    """That runs dry in few calls, and over in few others."""
    s, short = 5.0, 0.0
    for v in x:
        s = s + v
        if s > 12.0:
            s = 12.0
        elif s < 0.0:
            short += s * s
            s = 0.0
    return short + s


def greatest(x):
    """In some calls, the first number is the greatest."""
    m, s = x[0], 0.0
    for i in range(1, len(x)):
        if x[i] > m:
            m = x[i]
        s += m - x[i]
    return s


def regimes(x):
    fast = slow = x[0]
    position, s = 0.0, 0.0
    for i in range(1, len(x)):
        s += position * (x[i] - x[i - 1])
        fast, slow = 0.5 * fast + 0.5 * x[i], 0.9 * slow + 0.1 * x[i]
        position = 1.0 if fast > slow else -1.0
    return s


def from_an_argument(x, p=0.7):
    """A local that is Python's number until an iteration puts NumPy's there."""
    s, t = 0.1, p
    for v in x:
        if v > 1.0:
            s = 0.9 * s + t * v
        elif v > 0.0:
            s = 0.9 * s + 2 * t * v
        else:
            t = 0.5 * t + 0.1 * v * s
    return s + t


@pytest.mark.parametrize("fun", [better_of_two, reservoir, greatest, regimes, from_an_argument])
def test_what_earlier_calls_did_is_known(fun):
    derivative, other = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for turn, x in enumerate(points(40, 30)):
        if turn in (1, 2, 20):
            x[0] = 5.0
        value, slope = derivative(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-13)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 7


def remembered(x, p):
    """As long as no number after a positive one is negative, ``t`` stays what it was in the first iteration."""
    s, t, u = 0.1, p, x[0]
    for i in range(1, len(x)):
        if x[i] > 0:
            s = t / (1.5 + p * p)
            if t * t < 0.1:
                u = 0.9 * u + s
                continue
        t = min(s, 0.5)
        u = u * 0.5 + 0.3 * s * 0.9
    return s * t + u


def put_once(x, p):
    s, t = 0.1, p
    for i in range(1, len(x)):
        if x[i] > 0.1 and s > -9:
            t = -0.5
        s = s + 0.1 * t
    return s * t


def shrinking(x):
    s, u, t = 0.5, x[0], 0.5
    for i in range(1, len(x)):
        if x[i] > 0:
            u, t = 0.9 * u, 0.7 * t
            s = 0.8 * s + x[i]
        else:
            s = s - 0.1 * u - 0.2 * t
    return s


def set_back(x):
    s, u = 0.5, x[0]
    for i in range(1, len(x)):
        if x[i] > 0:
            u = 0.9 * u
            s = 0.8 * s + x[i]
        else:
            u = x[0]
            s = s - 0.1
    return s * u


@pytest.mark.parametrize("fun", [remembered, put_once, *ROLLED, greatest, regimes, shrinking, set_back])
def test_calls_that_went_alike_say_nothing_of_others(fun):
    """The first calls have sorted numbers, in one order or the other; or numbers of one sign, and then of the other."""
    more = (0.7,) if fun in (remembered, put_once) else ()
    for order in (1, -1, 0):
        derivative, other = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
        for turn, x in enumerate(points(12, 12)):
            if turn < 5:
                x = np.sort(x)[::order] if order else np.abs(x) * (-1 if turn < 2 else 1)
            value, slope = derivative(x, *more)
            np.testing.assert_allclose(value, fun(x, *more), rtol=1e-13)
            np.testing.assert_allclose(slope, other(x, *more)[1], rtol=1e-11, atol=1e-13)


def settled_by_the_arguments(x):
    """One decision is the same in all iterations of a call, and another one in the next call."""
    s, t, u, h = 0.1, x[1], x[0], 1.0
    while h > 0.05:
        h = h * (0.7 + 0.1 * np.tanh(x[1]))
        if abs(x[3]) < 0.7:
            s = s * s * 0.2 + s
            t = np.exp(-u * u)
        if u > 0.1 and t > 0:
            u = np.sqrt(1 + s * s)
        else:
            s, t = t, s
            u = -0.5
            t = 0.0
        t = t * 0.9 + x[3] * s
    return s


def test_decisions_that_no_iteration_changes():
    derivative, other = value_and_grad(settled_by_the_arguments), value_and_grad(settled_by_the_arguments, mode="dynamic")
    first = [(-0.8, 0.3, 0.7), (0.2, 0.2, 0.4), (0.7, -1.0, -0.1), (1.6, -0.4, -0.3), (-0.6, -0.2, 1.2), (-1.9, 1.3, -0.2)]
    for turn, x in enumerate(points(30, 4)):
        if turn < len(first):
            x[[0, 1, 3]] = first[turn]
        value, slope = derivative(x)
        np.testing.assert_allclose(value, settled_by_the_arguments(x), rtol=1e-13)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().hits > 10


def settled_by_the_first(x):
    """Where the first iteration takes the first side, what a later one decides on hangs on the arguments alone."""
    p, s, t, u = x[1], 0.1, x[1], x[0]
    for i in range(2, len(x)):
        if x[i] > s:
            s = t / (1.5 + t * t)
            t = 0.0
        t = p
        u = t - 0.3 * p
        if 0 < s < 0.8:
            s, t = t, s
            u = max(0, u) * p
            continue
        u = u * 0.5 + 0.1 * x[i]
    return s + t * u


def test_decisions_on_what_the_first_iteration_leaves():
    derivative, other = value_and_grad(settled_by_the_first), value_and_grad(settled_by_the_first, mode="dynamic")
    for turn, x in enumerate(points(24, 12)):
        x[1] = -1 - abs(x[1])
        x[2] = 1.0 if turn < 6 else -1.0
        value, slope = derivative(x)
        np.testing.assert_allclose(value, settled_by_the_first(x), rtol=1e-13)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)


def many_ways(count):
    lines = [f"        {'elif' if i else 'if'} v > {1.5 - i / 4}: s = 0.9 * s + {i + 1} * t * v" for i in range(count)]
    text = "\n".join(["def program(x):", "    s, t, z = 0.1, 0.7, np.zeros(3)", "    for v in x:", *lines,
                      "        else: t = 0.5 * t + 0.1 * v * s", "    return s + t"])  # fmt: skip
    return Program(text + "\n", {"x": ("float64", (60,))}, 0).fun


def test_time_to_compile_grows_with_the_ways():
    def seconds(count):
        derivative, xs = grad(many_ways(count)), points(4, 60)
        start = time.process_time()
        for x in xs:
            derivative(x)
        assert derivative.cache_info().hits
        return time.process_time() - start

    seconds(2)
    assert seconds(12) < 12 * seconds(4)


def adaptive_steps(x):
    """An initial value problem, with steps that shrink where the error is large."""
    h, t, y = 0.1, 0.0, 1.0 + x[0] ** 2
    while t < 1.0:
        k1, k2 = -y * y, -((y - h * y * y) ** 2)
        if abs(k1 - k2) * h > 1e-3:
            h = h * 0.5
        else:
            y, t = y + 0.5 * h * (k1 + k2), t + h
            h = min(h * 1.2, 1.0 - t + 1e-12) if t < 1 else h
    return y


def golden_section(x):
    lo, hi = -6.0, 7.0
    while hi - lo > 1e-6:
        one, other = lo + (hi - lo) / 3, hi - (hi - lo) / 3
        if (one - x[0]) ** 2 < (other - x[0]) ** 2:
            hi = other
        else:
            lo = one
    return lo * x[0]


def halvings(x):
    n, y = 0, 5.0 + x[0] ** 2
    while y > 1.0:
        y = 0.5 * y + 0.3 if y > 3.0 else 0.9 * y - 0.05
        n += 1
    return y * n


def differences(x):
    a, b = 3.0 + x[0] ** 2, 1.0 + x[1] ** 2
    while b > 0.01:
        if a > b:
            a = a - b
        else:
            a, b = 0.9 * b, 0.8 * a
    return a + b


def left_by_a_break(x):
    s, t = 0.1, 0.0
    for v in x:
        if v > 0:
            s = s + v * v
        else:
            t = t + v * s
        if s > 6.0:
            break
    return s * t


def left_in_the_middle(x):
    """What is assigned before the ``if`` that leaves the loop is read after it."""
    i, s, t = 0, 0.1, x[0]
    while True:
        i += 1
        d = x[i] * 0.5
        if i > 20 or s > 5.0:
            break
        if d > 0.1:
            s, t = s + d, t * 0.9
        else:
            t = t + d * s
    return s * t


def accepted_steps(x):
    """Of gradient descent; arrays that one side alone keeps."""
    p, step = x.copy(), 0.02
    f = np.sum(p**4)
    for _ in range(20):
        q = p - step * 4 * p**3
        g = np.sum(q**4)
        if g < f:
            p, f, step = q, g, step * 1.1
        else:
            step = step * 0.5
    return f


WHILE = [adaptive_steps, golden_section, halvings, differences, left_by_a_break, left_in_the_middle, accepted_steps]


@pytest.mark.parametrize("fun", WHILE)
def test_loops_with_tests_and_choices_of_arrays(fun):
    derivative, other = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in points(24, 30):
        value, slope = derivative(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-13)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().misses <= 8
    product, x = hvp(fun), points(1, 30)[0]
    for _ in range(3):
        expected = hvp(fun, mode="dynamic")(x, np.cos(x))
        np.testing.assert_allclose(product(x, np.cos(x)), expected, rtol=1e-8, atol=1e-8)


def halved_where_large(x):
    """It is in no call."""
    y, done = x[0], False
    while not done:
        large = False
        new = x[1] + 0.4 * np.sin(y)
        done = abs(new - y) < 1e-6
        if new > 50.0:
            large = True
        y = new * 0.5 if large else new
    return y * x[2]


def test_sides_that_no_call_takes_beside_numbers_that_each_iteration_sets():
    """However often the loop runs, it is the same."""
    derivative, other = value_and_grad(halved_where_large), value_and_grad(halved_where_large, mode="dynamic")
    for x in points(8, 3) * 5:
        value, slope = derivative(x)
        assert value == pytest.approx(halved_where_large(x), rel=1e-12)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 3


def held_or_made_anew(x):
    t, w = 0.3, 1
    z, y, q = x[:3] * 0.5, x[3:6], 0.0
    for i in range(len(x)):
        w = 1
        if x[i] > 0.2:
            z = z * 1.0
            z[0] = w
            t = 1.0
        else:
            z = z.copy()
            z = z.copy()
            t *= 0.9
    return x[0] * t + np.sum(z * y) + q


def test_loops_that_give_other_kinds_of_numbers_in_other_calls():
    """In the last call, no iteration takes the first side."""
    derivative, other = value_and_grad(held_or_made_anew), value_and_grad(held_or_made_anew, mode="dynamic")
    for x in [
        [0.34, -2.71, 0.23, -0.67, 0.35, -0.18, 1.62, -0.29, 1.61, -0.59, 0.82, -0.62],
        [0.82, -0.79, 0.95, -0.14, 0.78, -1.5, 0.51, -1.69, 0.13, -1.82, 1.47, -0.69],
        [0.2, -0.59, 1.01, -0.68, 1.28, -2.21, 0.26, -0.85, 0.27, -1.47, 1.24, -0.95],
        [0.33, -2.57, 0.21, -0.64, 0.33, -0.17, 1.54, -0.27, 1.53, -0.56, 0.78, -0.59],
        [-0.12, -0.51, -1.85, -0.56, -0.78, -0.45, 1.6, 0.49, -0.7, -1.65, 0.91, 0.61],
        [-0.91, -2.44, -1.99, -1.03, -1.33, -0.42, -1.24, -1.81, -0.99, -0.35, -0.69, -0.85],
    ]:
        value, slope = derivative(np.array(x))
        assert value == pytest.approx(held_or_made_anew(np.array(x)), rel=1e-12)
        np.testing.assert_allclose(slope, other(np.array(x))[1], rtol=1e-11, atol=1e-13)


def filled_on_one_side(x):
    i = 0
    while i < 6:
        i += 1
        row = np.ones(4)
        if 0.5 * i >= x[0]:
            row[1:] = x[1:] * x[0]
    return np.sum(row * np.cos(row)) + x[0]


def test_arrays_made_in_a_loop_that_some_calls_leave_plain():
    """Where no iteration writes to it, the array that is left behind is none of the loop's."""
    derivative, other = value_and_grad(filled_on_one_side), value_and_grad(filled_on_one_side, mode="dynamic")
    for first in (-0.2, -0.2, 9.0, -0.2, 9.0, 0.4, 9.0, 1.2, -0.2, 9.0):
        x = np.array([first, 0.3, 0.7, 1.1])
        value, slope = derivative(x)
        assert value == pytest.approx(filled_on_one_side(x), rel=1e-12)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)


def lowered_once(x):
    y = x @ x[::-1]
    for v in x:
        if not (y < v or y >= 0.5):
            y = 0.5
    return y * x[0]


def test_what_no_iteration_of_one_call_changes_and_those_of_others_do():
    """Where a decision hangs on it, the loop of the calls that change it is right for all of them."""
    derivative, other = value_and_grad(lowered_once), value_and_grad(lowered_once, mode="dynamic")
    for x in 4 * [np.array([1.6, 0.2, 0.9, 0.1, 0.3, 0.3]), np.array([0.1, 0.2, 0.3, -0.4, 0.2, 0.1])]:
        value, slope = derivative(x)
        assert value == pytest.approx(lowered_once(x), rel=1e-12)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 4


def found_by_a_break(x):
    found = x[0]
    for v in x[::-1]:
        if v <= x[0]:
            near = np.sum(x) / (1.0 + v * v)
            if near < x[1]:
                break
    return found * x[1]


def found_by_a_return(x):
    i = 0
    while i < len(x):
        if x[i] <= x[1]:
            near = np.sum(x) / (1.0 + x[i] ** 2)
            if near < x[2]:
                return x[0] * x[2]
        i += 1
    return x[0] * x[2]


@pytest.mark.parametrize("fun", [found_by_a_break, found_by_a_return])
def test_loops_left_below_an_if(fun):
    """What their last iteration decides on is the loop's: calls that get to the end know more of it."""
    derivative, other = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in points(24, 6):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)
    assert "dynamic mode" not in derivative.explain()
    assert derivative.cache_info().hits


def made_smaller_now_and_then(x):
    last, cost = 0.0, 0.0
    for i in range(len(x)):
        e = x[i] + 0.0
        u = 1.5 * e + 0.2 * (e - last)
        if u > 1.0:
            cost = cost + u
        while abs(e) > 0.8:
            e = e * 0.6
        cost = e * e + 0.1 * u * u
    return cost


def test_second_derivatives_of_loops_that_do_not_run():
    """Loops in a loop, with a test: some iterations have none of theirs to look at."""
    product, other = hvp(made_smaller_now_and_then), hvp(made_smaller_now_and_then, mode="dynamic")
    for x in [[0.85, 0.24, 0.26, 1.45, -0.91, 0.3], [0.1, 0.24, 1.26, 3.45, -0.91, 0.3], [0.85, 0.24, 0.26, 0.3, 0.91, 4.3]]:
        for _ in range(3):
            found = product(np.array(x), np.cos(np.arange(6.0)))
            np.testing.assert_allclose(found, other(np.array(x), np.cos(np.arange(6.0))), rtol=1e-11, atol=1e-13)


@pytest.mark.long
@pytest.mark.parametrize("count", [60, 240])
def test_many_decisions_in_an_iteration(count):
    """As ``if``s in ``if``s they would be more than Python takes."""
    lines = [f"        if v > {k}e-3:\n            s = s + v * {k % 7}\n" for k in range(count)]
    fun = Program(
        f"def program(x):\n    s = x[0]\n    for v in x:\n{''.join(lines)}    return s\n", {"x": ("float64", (6,))}, 0
    )
    derivative = value_and_grad(fun.fun)
    for x in points(4, 6):
        assert derivative(x)[0] == pytest.approx(fun(x), rel=1e-12)


def pairs_within_steps(x):
    v, n = np.zeros_like(x), len(x)
    for _ in range(6):
        f = np.zeros_like(x)
        for i in range(n):
            for j in range(i + 1, n):
                d = x[i] - x[j]
                r2 = np.dot(d, d) + 0.1
                if r2 < 3.0:
                    f[i] += d / r2
                    f[j] -= d / r2
        v = v + 0.01 * f
        x = x + 0.01 * v
    return np.sum(x**2)


def test_what_was_made_of_the_same_zeros_before_is_no_part_of_a_loop():
    """Loops begin with the very zeros that ``x`` came from: code and tracing grew with the square of the steps."""
    derivative, rng = grad(pairs_within_steps), np.random.default_rng(0)
    for _ in range(6):
        x = rng.normal(size=(10, 3)) * 1.5
        np.testing.assert_allclose(derivative(x), grad(pairs_within_steps, mode="dynamic")(x), rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().hits >= 3
    assert len(str(derivative.source(x)).splitlines()) < 60 * 6


def twins(x):
    """Both arrays are the same zeros in the first iterations, in which what is read of both is read once."""
    s, t = np.zeros_like(x[:3]), np.zeros_like(x[:3])
    for i in range(len(x)):
        if x[i] > 0.3:
            s[i % 3] = s[i % 3] + np.sin(x[i])
            t[i % 3] = t[i % 3] - x[i] ** 2
    return np.sum(s * t)


def twins_that_swap(x):
    s, t = np.zeros_like(x[:3]), np.zeros_like(x[:3])
    for i in range(len(x)):
        if x[i] > 0.3:
            s[i % 3] = t[i % 3] + np.sin(x[i])
        else:
            t[i % 3] = s[i % 3] - x[i] ** 2
    return np.sum(s * s - t)


def twins_for_long(x):
    """They differ from half-way on; before, one way is taken, and after, another."""
    s, t = np.zeros_like(x[:3]), np.zeros_like(x[:3])
    for i in range(len(x)):
        if i + 0.0 * x[i] < 20:
            s = s + x[i]
            t = t + x[i]
        else:
            s = s + x[i] * t
            t = t * 0.5 + s
    return np.sum(s * t)


def first_is_another(x):
    """The list has another number where the arrays are the same."""
    s, t = np.zeros_like(x[:3]), np.zeros_like(x[:3])
    for i, c in enumerate([7.0] + 39 * [1.0]):
        if x[i] > -9.0:
            s[0] = s[0] + c * x[i]
            t[0] = t[0] + x[i] ** 2
    return np.sum(s * t)


@pytest.mark.parametrize("fun", [twins, twins_that_swap, twins_for_long, first_is_another])
def test_locals_that_begin_alike(fun):
    derivative = value_and_grad(fun)
    rng = np.random.default_rng(8)
    for k in range(8):
        x = rng.normal(size=40) * (0.1 if fun is twins_for_long else 1.0)
        x[:5] -= 2.0 * (k % 2)
        value, slope = derivative(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x), rtol=1e-11, atol=1e-12)
    assert derivative.cache_info().hits > 3


def results_of_a_loop(x):
    """One is decided on, the other is read on one side alone."""
    s, a = 0.0, np.zeros(4)
    for i in range(12):
        for k in range(6):
            s = s + 0.01 * np.sin(s + x[i])
            a[k % 4] += 0.1 * x[i] * s + 0.01
        if a[1] > 0.2:
            s = 0.5 * s
        else:
            a[2] -= s
    return s + np.sum(a * a)


def results_of_a_decomposition(x):
    s = 0.0
    for i in range(10):
        w, v = np.linalg.eigh(np.outer(x[:3], x[:3]) + np.diag(x[i : i + 3] ** 2))
        if w[2] > 2.0:
            s = s + v[0, 2] ** 2
        s = s - 0.1 * w[1]
    return s


@pytest.mark.parametrize("fun", [results_of_a_loop, results_of_a_decomposition])
def test_results_that_one_side_reads(fun):
    derivative = value_and_grad(fun)
    rng = np.random.default_rng(9)
    for _ in range(8):
        x = rng.normal(size=12)
        value, slope = derivative(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-11)
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x), rtol=1e-8, atol=1e-10)
    assert derivative.cache_info().hits > 2


def bisection(w):
    low, high = w[0] - 10.0, w[0] + 10.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if middle**3 + middle * w[1] ** 2 - w[2] > 0:
            high = middle
        else:
            low = middle
    return middle


def bisection_of_numbers(w):
    low, high = -10.0, 10.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle**3 + middle * w[1] ** 2 > w[2] else (middle, high)
    return middle - (middle**3 + middle * w[1] ** 2 - w[2]) / (3 * middle**2 + w[1] ** 2)


def kept_and_best(w):
    best, second = 0.0 * w[0], -1.0
    for i in range(40):
        value = np.sin(w[0] * i) * w[1]
        if value > best:
            second, best = best, value
    return best + 0.1 * second


@pytest.mark.parametrize("fun", [bisection, bisection_of_numbers, kept_and_best])
def test_a_number_may_get_another_name_on_one_side(fun):
    """Where two names of one number are left in the end, each goes round on its own."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(4)
    for _ in range(8):
        right_at(derivative, fun, rng.normal(size=3), (1e-12, 1e-12), (1e-10, 1e-12))
    assert derivative.cache_info().misses <= 3


def in_a_box(w):
    p, q, v, u, s = w[0], w[1], 3 * w[2], 3 * w[0], 0.0
    for _ in range(60):
        p, q = p + 0.1 * v, q + 0.1 * u
        if p > 1.0 or p < -1.0:
            v = -v
        if not (q > -1.0 and q < 1.0):
            u = -u
        s = s + p * q
    return s


def few_in_the_middle(w):
    s, n = 0.0, 0
    for i in range(60):
        v = np.sin(w[0] * i) * w[1]
        if v > -0.5 and v < 0.5 and n < 20:
            s, n = s + v * w[2], n + 1
    return s


@pytest.mark.parametrize("fun", [in_a_box, few_in_the_middle])
def test_parts_of_a_test_are_looked_at_together(fun):
    """Where Python may compute them all: one decision for ``p > 1 or p < -1``."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(6)
    for _ in range(8):
        right_at(derivative, fun, rng.normal(size=3), (1e-12, 1e-12), (1e-9, 1e-11))
    assert derivative.cache_info().hits


def test_parts_of_a_test_are_computed_when_python_does():
    """What is no number decides what is computed after it."""

    class Loud:
        def __gt__(self, other):
            raise AssertionError

    def total(x, limit, flag):
        s = 0.0
        for i in range(40):
            if flag or x[i] > limit:
                s = s + x[i]
            if x[i] < 9.0 or limit > 3:
                s = s + 1.0
            if (x[i] > 0 and limit) or flag:
                s = s * 1.01
        return s

    derivative, x = value_and_grad(total), np.random.default_rng(1).normal(size=40)
    for limit, flag in ((0.5, False), (0.5, True), (-0.5, False), (0.5, 0), (0.0, [1]), (0.5, False)):
        value, slope = derivative(x, limit, flag)
        np.testing.assert_allclose(value, total(x, limit, flag), rtol=1e-12)
        np.testing.assert_allclose(slope, value_and_grad(total, mode="dynamic")(x, limit, flag)[1], rtol=1e-12)
    loud = Loud()

    def shy(x):
        s = 0.0
        for i in range(40):
            if x[i] < 9.0 or loud > 3:
                s = s + x[i]
        return s

    assert value_and_grad(shy)(x)[0] == pytest.approx(np.sum(x))


def named_anew(x):
    n, s = len(x), 0.0
    a = np.zeros(n)
    b = a
    for i in range(n):
        b[i] += 0.5 * b[i - 1] + x[i]
        if x[i] > 0.3:
            a = np.zeros(n)
        a[i % 3] *= 0.5
        s = s + 0.01 * b[i]
    return s + np.sum(b * b) + np.sum(a * a)


def one_or_the_other(x):
    a, b = x * 1.0, x * 2.0
    for i in range(len(x)):
        if x[i] > 0.4:
            b = a
        elif x[i] < -0.4:
            b = a.copy()
        b[i] = b[i] + 0.5 * a[i - 1]
    return np.sum(a * a) + np.sum(b * np.arange(len(x)))


def changed_while_best_holds_it(x):
    w, best, low = x[:3] * 1.0, x[:3] * 0.0, 1e9
    for i in range(3, len(x)):
        w -= 0.1 * x[i] * w
        loss = np.sum(w**2) + x[i]
        if loss < low:
            low, best = loss, w
    return np.sum(best) + low


def kept_while_another_is_made(x):
    w, low = np.zeros(3), 1e9
    w[0] = x[0]
    best = w
    for i in range(3, len(x)):
        w = w - 0.1 * x[i] * w
        loss = np.sum(w**2) + x[i]
        if loss < low:
            low, best = loss, w
    return np.sum(best) + low


@pytest.mark.parametrize("fun", [named_anew, one_or_the_other, changed_while_best_holds_it, kept_while_another_is_made])
def test_names_that_are_one_array_at_times(fun):
    """What is written into one is in the other then, whatever decided that in an earlier iteration."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(20):
        right_at(derivative, fun, rng.normal(size=12), (1e-11, 0.0), (1e-9, 1e-12))
    if fun is kept_while_another_is_made:
        assert derivative.cache_info().misses <= 3


def best_so_far(x):
    w, best, low = x[:3] / (1.0 + np.sum(x[:3] ** 2)), x[:3], np.inf
    for i in range(3, len(x)):
        w = w - 0.1 * (w - 1.0) + 0.05 * x[i]
        loss = np.sum((w - 1.0) ** 2)
        if loss < low:
            low, best = loss, w
    return np.sum(best**2) + low


def back_to_the_start(x):
    start = x[:3] / (1.0 + np.sum(x[:3] ** 2))
    w, turns = start, 0
    for i in range(3, len(x)):
        w = w * (1.0 + x[i])
        if np.sum(np.abs(w - start)) > 0.4:
            w, turns = start, turns + 1
    return np.sum(w**2) / max(1, turns)


def best_of_starts(x):
    best, low, total = x[:3], np.inf, 0.0
    for i in range(3):
        w = best
        for j in range(3, len(x)):
            w = w - 0.1 * (w - 1.0) + 0.05 * x[i] * x[j]
            loss = np.sum((w - 1.0) ** 2)
            if loss < low:
                low, best = loss, w
        total = total + np.sum(w)
    return np.sum(best**2) + total


@pytest.mark.parametrize("fun", [best_so_far, back_to_the_start, best_of_starts])
def test_a_name_that_is_given_in_the_last_iteration(fun):
    """Whether two names are of one array when a loop is over is all one to code, where nobody can tell."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(20):
        right_at(derivative, fun, rng.normal(size=34), (1e-11, 0.0), (1e-9, 1e-12))
    assert derivative.cache_info().misses <= 6


def changed_behind_the_loop(x):
    w, best, low = x[:3] * 1.0, x[:3], np.inf
    for i in range(3, len(x)):
        w = w - 0.2 * w + x[i]
        if np.sum(w**2) < low:
            low, best = np.sum(w**2), w
    w[0] = 3.0
    return np.sum(best**2) + np.sum(w)


def asked_behind_the_loop(x):
    w, best, low = x[:3] * 1.0, x[:3], np.inf
    for i in range(3, len(x)):
        w = w - 0.2 * w + x[i]
        if np.sum(w**2) < low:
            low, best = np.sum(w**2), w
    return np.sum(best**2) * (2.0 if best is w else 1.0)


def filled_while_it_is_best(x):
    w, best, low = np.zeros(3), x[:3], np.inf
    for i in range(3, len(x)):
        np.add(0.8 * w, x[i], out=w)
        if np.sum(w**2) < low:
            low, best = np.sum(w**2), w
    return np.sum(best**2) + np.sum(w)


@pytest.mark.parametrize("fun", [changed_behind_the_loop, asked_behind_the_loop, filled_while_it_is_best])
def test_a_name_that_is_given_in_the_last_iteration_where_it_matters(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(12):
        right_at(derivative, fun, rng.normal(size=9), (1e-11, 0.0), (1e-9, 1e-12))


def test_what_is_put_outside_under_two_names_is_one_array():
    kept = {}

    def total(x):
        w, best, low = stop_gradient(x[:3] * 1.0), stop_gradient(x[:3]), np.inf
        for i in range(3, len(x)):
            w = w - 0.2 * w + stop_gradient(x[i])
            if np.sum(w**2) < low:
                low, best = np.sum(w**2), w
        kept["best"], kept["last"] = best, w
        return np.sum(x[:3] * best)

    derivative, x = grad(total), np.zeros(9)
    for x[-1], x[0] in ((0.0, 1.0), (3.0, 1.5), (0.0, 2.0), (3.0, 0.5)):
        derivative(x)
        assert (kept["best"] is kept["last"]) == (x[-1] == 0.0)


NAMES = "abc"
ALIASES = [
    "{a}[{i}] {o} {t}", "{a}[{i}] {o} {t}", "{a}[{i}] {o} {t}", "{a} = {b}", "{a} = {b}", "{a} = np.zeros(n)",
    "{a} = {b}.copy()", "{a} += 0.1 * x", "{a} = {b} + 0.1 * x", "{a}, {b} = {b}, {a}", "s = s + 0.1 * {t}",
]  # fmt: skip


def renaming_lines(rng: random.Random) -> Iterator[str]:
    """The lines of a loop in which arrays get other names, and are written into, below ``if``s."""

    def drawn(text: str) -> str:
        term = rng.choice(["x[{i}]", "w[0] * x[i]", "{a}[{i}]", "0.5", "np.sin(s)", "{b}[{i}] * w[0]"])
        a, b = rng.sample(NAMES, 2)
        places = {"i": rng.choice(["i", "i", "i - 1", "i % 3", "0"]), "o": rng.choice(["=", "+=", "*="])}
        return text.replace("{t}", term).format(a=a, b=b, **places)

    def statement(indent: str, depth: int) -> Iterator[str]:
        if rng.random() < 0.6 or not depth:
            yield indent + drawn(rng.choice(ALIASES))
            return
        yield indent + drawn(rng.choice(["if x[{i}] > 0.1:", "if {a}[{i}] > 0.1:", "if i % 3 == 1:", "if s < 0.5:"]))
        yield from statement(indent + "    ", depth - 1)
        if rng.random() < 0.4:
            yield f"{indent}else:"
            yield from statement(indent + "    ", depth - 1)

    yield "def program(x, w):"
    yield "    n, s, a = len(x), 0.0, " + rng.choice(["x * 1.0", "np.zeros(len(x))", "np.zeros_like(x)"])
    yield "    b = " + rng.choice(["a", "a", "x * w[0]", "np.zeros(n)"])
    yield "    c = " + rng.choice(["a", "b", "np.ones(n)"])
    yield "    for i in range(n):"
    for _ in range(rng.randint(2, 4)):
        yield from statement("        ", 2)
    yield "    return s + np.sum(a * a) + np.sum(b * np.arange(n)) + np.sum(c * c * w[1])"


@given(st.integers(0, 2**40))
def test_random_loops_in_which_arrays_get_other_names(seed: int) -> None:
    """Other calls decide otherwise, and other names are one."""
    program = program_of(renaming_lines(random.Random(seed)), {"x": (6,), "w": (2,)}, seed)
    right_in_other_calls(program, seed)


def test_an_array_in_a_later_part_is_not_looked_at():
    def total(x, y):
        s = 0.0
        for i in range(40):
            if x[i] < 9.0 or y > 3:
                s = s + x[i]
        return s

    x = np.linspace(0.0, 1.0, 40)
    assert value_and_grad(total)(x, np.ones(3))[0] == pytest.approx(np.sum(x))
    with pytest.raises(ValueError, match="ambiguous"):
        value_and_grad(total)(x + 9.0, np.ones(3))


# ---- what both sides do is done once ---------------------------------------------------------------------------


def best_of_two(x):
    """A tree of options that may be exercised early, node by node."""
    v = np.zeros(12)
    for j in range(12):
        v[j] = x[j]
    for i in range(11, 0, -1):
        for j in range(i):
            held = 0.9 * (0.6 * v[j + 1] + 0.4 * v[j])
            v[j] = held if held > x[j] * x[0] else x[j] * x[0]
    return v[0]


def fluxes_of_functions(x):
    def flux(a, b):
        if a > b:
            return a * a if a + b > 0 else b * b
        if a > 0:
            return a * a
        if b < 0:
            return b * b
        return 0.0

    u = x[:40] * 1.0
    for _ in range(3):
        f = np.zeros(41)
        for i in range(1, 40):
            f[i] = flux(u[i - 1], u[i])
        for i in range(40):
            u[i] = u[i] - 0.1 * (f[i + 1] - f[i])
    return u @ u


def relaxed_until_nothing_moves(x):
    u, worst = np.zeros((6, 6)), 1.0
    for _ in range(4):
        worst = 0.0
        for i in range(1, 5):
            for j in range(1, 5):
                step = 0.3 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - x[6 * i + j]) - u[i, j]
                u[i, j] += step
                if abs(step) > worst:
                    worst = abs(step)
    return worst * np.sum(u**2)


def rows_on_both_sides(x):
    rows = np.zeros((20, 3))
    for i in range(20):
        if x[i] > 0:
            rows[i] = x[i] * np.array([1.0, 2.0, 3.0])
        else:
            rows[i] = np.sin(x[i : i + 3])
    return np.sum(rows**2)


def another_place_on_each_side(x):
    a = np.zeros(30)
    for i in range(1, 29):
        if x[i] > 0:
            a[i] = x[i] ** 2
        else:
            a[i - 1] = x[i]
    return np.sum(a * x[:30])


def another_array_on_each_side(x):
    a, b = x[:30] * 1.0, x[:30] ** 2
    for i in range(30):
        a = a * 0.9
        if x[i] > 0:
            a[i] = x[i]
        else:
            a = b + 0.0
            a[i] = 2.0 * x[i]
    return np.sum(a * x[:30])


def read_before_it_is_written(x):
    a = np.zeros(30)
    for i in range(1, 30):
        if x[i] > 0:
            a[i] = a[i - 1] + x[i]
        elif x[i] > -1:
            a[i] = 0
        else:
            a[i] = x[i] * a[i - 1]
    return a @ x[:30]


def written_twice_on_one_side(x):
    a = np.zeros(30)
    for i in range(29):
        if x[i] > 0:
            a[i + 1] = x[i]
            a[i] = a[i + 1] * a[i]
        else:
            a[i] = x[i] + a[i]
    return a @ a


def whose_place_hangs_on_the_side(x):
    a, k = np.zeros(41), 0
    for i in range(40):
        if x[i] > 0:
            k = k + 1
            a[k] = x[i]
        else:
            a[k] = 2.0 * x[i]
    return a @ np.arange(41.0) + k * x[0]


WRITERS = [
    best_of_two, fluxes_of_functions, relaxed_until_nothing_moves, rows_on_both_sides, another_place_on_each_side,
    another_array_on_each_side, read_before_it_is_written, written_twice_on_one_side, whose_place_hangs_on_the_side,
]  # fmt: skip


@pytest.mark.parametrize("fun", WRITERS)
def test_sides_that_write_into_one_array(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for shift in (0.3, 0.3, 0.3, -0.4, 2.0, -2.0, 0.0, 0.1):
        right_at(derivative, fun, rng.normal(size=60) + shift, (1e-10, 1e-12), (1e-8, 1e-10))


@pytest.mark.parametrize("fun", [best_of_two, read_before_it_is_written])
def test_what_both_sides_write_is_written_once(fun):
    """The array does not go through the ``if``, where each side would need a copy."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(3):
        x = rng.normal(size=60)
        derivative(x)
    lines = str(derivative.source(x, fast=True)).split("    for ", 1)[1].splitlines()[1:]
    body = list(itertools.takewhile(lambda line: line.startswith("        "), lines))
    assert len(body) > 3
    assert not any(".copy()" in line for line in body)


def test_what_both_sides_leave_alike_does_not_go_through_the_if():
    def largest(x):
        u, worst = x[:20] * 1.0, 0.0
        for i in range(1, 20):
            u[i] = u[i] - 0.5 * u[i - 1]
            if abs(u[i]) > worst:
                worst = abs(u[i])
        return worst + u @ u

    derivative, rng = value_and_grad(largest), np.random.default_rng(0)
    for _ in range(4):
        x = rng.normal(size=20)
        right_at(derivative, largest, x, (1e-10, 0.0), (1e-8, 1e-10))
    lines = str(derivative.source(x, fast=True)).split("    for ", 1)[1].splitlines()[1:]
    body = list(itertools.takewhile(lambda line: line.startswith("        "), lines))
    assert len(body) > 3
    assert not any(".copy()" in line for line in body)


# ---- calls that a loop with ifs does not answer ----------------------------------------------------------------


def kept_in_an_object(x):
    """What an object counts under an ``if`` is no local: iterations that count are no pattern."""
    log = Log()
    s = 0.0
    for v in x:
        if v > 1.5:
            log.often += 1
            s = s + v * v
        elif v > 0:
            s = 0.9 * s + v
    return s * (1.0 + 0.1 * log.often)


class Log:
    def __init__(self):
        self.often = 0


def steps_with_an_inner_iteration(x):
    """Inner loops that run too short to be known beside those that are, and steps of time of which calls take more or fewer."""
    y, t, dt = 1.0, 0.0, 0.05
    while t < 1.0:
        z = y
        for _ in range(12):
            change = (z - y - dt * x[0] * np.cos(z)) / (1.0 + dt * x[0] * np.sin(z))
            z = z - change
            if abs(change) < x[1]:
                break
        y, t = z, t + dt
        dt = dt * (1.3 if abs(change) < x[1] else 0.5)
    return y


@pytest.mark.parametrize(
    ("fun", "calls"),
    [
        (kept_in_an_object, [np.sin(np.arange(30.0)), 2.0 * np.sin(np.arange(30.0)), 1.6 * np.cos(np.arange(30.0))]),
        (steps_with_an_inner_iteration, [np.array([0.5, 1e-12]), np.array([3.0, 1e-4]), np.array([2.0, 1e-9])]),
    ],
)
def test_calls_that_a_known_loop_does_not_answer_are_compiled_all_the_same(fun, calls):
    """Where the loop leaves them off, their own course goes on."""
    derivative = value_and_grad(fun)
    for _ in range(3):
        for x in calls:
            for _ in range(3):
                right_at(derivative, fun, x, (1e-10, 1e-12), (1e-8, 1e-10))
    misses = derivative.cache_info().misses
    for x in calls:
        right_at(derivative, fun, x, (1e-10, 1e-12), (1e-8, 1e-10))
    assert derivative.cache_info().misses == misses


# ---- what only one side meets ----------------------------------------------------------------------------------


def an_array_of_constants(x):
    s, c = 0.0, np.array([1.0, 2.0, 3.0])
    for i in range(20):
        if x[i] > 0:
            s += np.sum((x[i] + c) ** 2)
        else:
            s += x[i] * x[1]
    return s


def constants_written_before(x):
    s, c = 0.0, np.arange(3.0)
    c[1] = 5.0
    for i in range(20):
        if x[i] > 0:
            s += np.sum((x[i] + c) ** 2)
        else:
            s += x[i] * x[1]
    return s


def constants_written_between(x):
    s, c = 0.0, np.arange(3.0)
    for i in range(20):
        if x[i] > 0:
            s += np.sum((x[i] + c) ** 2)
        else:
            c[1] += 1.0
            s += x[i]
    return s


def traced_values_put_among_constants(x):
    s, c = 0.0, np.arange(3.0)
    for i in range(20):
        if x[i] > 0:
            s += np.sum((x[i] + c) ** 2)
        else:
            c[i % 3] = x[i]
    return s


def constants_under_two_names(x):
    s, c = 0.0, np.arange(3.0)
    d = c
    for i in range(20):
        if x[i] > 0:
            s += np.sum((x[i] + c) ** 2)
        elif x[i] > -0.5:
            d[0] = x[i]
    return s + np.sum(d)


def the_same_part_in_each_iteration(x):
    s = 0.0
    for i in range(20):
        if x[i] > 0:
            s += np.sum((x[:3] * x[i]) ** 2)
        else:
            s += x[i] * x[1]
    return s


def several_parts(x):
    s = 0.0
    for i in range(20):
        if x[i] > 0:
            s += x[i] * np.sum(x[:3])
        elif x[i] < -0.5:
            s += x[1:4] @ x[2:5] * x[i]
        else:
            s += x[i] * x[2]
    return s


ONE_SIDED = [
    an_array_of_constants, constants_written_before, constants_written_between, traced_values_put_among_constants,
    constants_under_two_names, the_same_part_in_each_iteration, several_parts,
]  # fmt: skip


@pytest.mark.parametrize("fun", ONE_SIDED)
def test_what_one_side_alone_meets(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for shift in (0.3, 0.3, 0.3, -0.4, 2.0, -2.0, 0.0, 0.1):
        right_at(derivative, fun, rng.normal(size=20) + shift, (1e-10, 1e-12), (1e-8, 1e-10))


@pytest.mark.parametrize(
    "fun", [an_array_of_constants, constants_written_before, the_same_part_in_each_iteration, several_parts]
)
def test_calls_that_meet_it_in_other_orders_are_one_loop(fun):
    """Constants that the first iterations do not read were there before all the same; and the slopes of parts of an argument
    add up in the order in which a call met them, which is no other result."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(10):
        derivative(rng.normal(size=20))
    assert derivative.cache_info().misses <= 4
    assert "dynamic" not in derivative.explain()


# ---- a side that the first iteration cannot take ---------------------------------------------------------------


def from_the_last_on(x):
    """The first iteration has no next one: there is nothing at its index."""
    t = np.full(8, 10.0)
    for i in range(7, -1, -1):
        following = t[i + 1] if i < 7 else 10.0
        before = t[i - 1] if i > 0 else 10.0
        trial = x[i] + 0.5 * min(before, following)
        if trial < t[i]:
            t[i] = trial
    return np.sum(t**2)


def there_and_back(x):
    t = x[:8] * 1.0
    for step in (1, -1):
        for i in range(8)[::step]:
            t[i] = x[i] * np.sin(t[i]) + 0.5 * (t[i + 1] if i < 7 else 10.0)
    return np.sum(t**2)


def written_beyond(x):
    t = np.zeros(8)
    for i in range(7, -1, -1):
        if i < 7:
            t[i + 1] = t[i + 1] * x[i]
        t[i] = x[i] ** 2
    return t @ x[:8]


def swept_both_ways(x):
    t = np.full((4, 4), 10.0)
    t[1, 2] = 0.0
    for rows in (1, -1):
        for i in range(4)[::rows]:
            for j in range(3, -1, -1):
                above = t[i + 1, j] if i < 3 else 10.0
                right = t[i, j + 1] if j < 3 else 10.0
                trial = x[4 * i + j] + min(above, right)
                if trial < t[i, j]:
                    t[i, j] = trial
    return np.sum(t**2)


@pytest.mark.parametrize("fun", [from_the_last_on, there_and_back, written_beyond, swept_both_ways])
def test_sides_that_the_first_iteration_cannot_take(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(5):
        right_at(derivative, fun, 3.0 * rng.uniform(size=16), (1e-10, 1e-12), (1e-8, 1e-10))
    x, v = rng.uniform(size=16), rng.normal(size=16)
    for _ in range(3):
        pushed = jvp(fun, (x,), (v,))[1]
        np.testing.assert_allclose(pushed, derivative(x)[1] @ v, rtol=1e-8)
        h = 1e-6
        slope = (grad(fun)(x + h * v) - grad(fun)(x - h * v)) / (2 * h)
        np.testing.assert_allclose(hvp(fun)(x, v), slope, rtol=1e-4, atol=1e-5)


# -- runs of a loop within another know each other's ways ---------------------------------------------------------


def first_number_again(x, y, w):
    c = x[0]
    u = w
    s = 0.0
    for i in range(6):
        for j in range(5):
            u = u - x[0] * 0.4 - 0.3 if x[j] * 0.01 + y[i] > 0 else u + c * 0.5 + 0.2
        s = s + u * u
        c = c * 0.5
    return s + u


def first_array_again(x, y, w):
    z = x
    u = w
    s = 0.0
    for i in range(6):
        for j in range(5):
            u = u * 0.9 - 2.0 * x[j] if x[j] * 0.01 + y[i] > 0 else u + z[j] * 0.1
        s = s + u * u
        z = z * 0.5
    return s + u


def at_the_index_around(x, y, w):
    u = w
    s = 0.0
    for i in range(6):
        for j in range(5):
            u = u * 0.9 - 2.0 * x[i] if x[j] * 0.01 + y[i] > 0 else u + x[1] * 0.1
        s = s + u * u
    return s + u


def of_the_run_before(x, y, w):
    u = w
    s = 0.0
    v = x[0]
    for i in range(6):
        for j in range(5):
            u = u * 0.9 - 0.3 * v if x[j] * 0.01 + y[i] > 0 else u + x[1] * 0.1
        s = s + u * u
        v = x[i] * 1.0
    return s + u


def items_of_a_list(x, y, w):
    u = w
    s = 0.0
    L = [x[0], x[1]]
    for i in range(6):
        for j in range(5):
            u = u * 0.9 - 0.3 * L[0] * x[0] if x[j] * 0.01 + y[i] > 0 else u + x[1] * 0.1
        s = s + u * u
        L[0] = L[1] * 0.5
        L[1] = x[i]
    return s + u


def odd_runs(x, y, w):
    u = w
    s = 0.0
    for i in range(6):
        for j in range(5):
            u = (u * 0.9 - 0.3 * x[0] if i % 2 == 0 else u * 0.8) if x[j] * 0.01 + y[i] > 0 else u + x[1] * 0.1
        s = s + u * u
    return s + u


def called_with_others(x, y, w):
    def g(u, c, x0, yi):
        for j in range(5):
            u = u - x0 * 0.4 - 0.3 if x[j] * 0.01 + yi > 0 else u + c * 0.5 + 0.2
        return u

    return (
        g(w, x[0], x[0], y[0]) * g(w, x[1], x[0], y[1])
        + g(w, x[0], x[1], y[2]) * g(w, x[2], x[3], y[3])
        + g(w, x[4], x[4], y[4])
    )


def longer_and_shorter(x, y, w):
    u = w
    s = 0.0
    for i in range(6):
        v = x[: 3 + i % 2]
        for j in range(5):
            u = u * 0.9 - 0.3 * np.mean(v) if x[j] * 0.01 + y[i] > 0 else u + x[1] * 0.1
        s = s + u * u
    return s + u


def numbers_of_the_code(x, y, w):
    u = w
    s = 0.0
    b = 1.0
    for i in range(6):
        for j in range(5):
            u = u * 0.9 - 0.3 * b * x[j] + 1.0 if x[j] * 0.01 + y[i] > 0 else u + x[1] * 0.1 + 0.5
        s = s + u * u
        b = 0.5 * i
    return s + u


RUNS = [
    first_number_again,
    first_array_again,
    at_the_index_around,
    of_the_run_before,
    items_of_a_list,
    odd_runs,
    called_with_others,
    longer_and_shorter,
    numbers_of_the_code,
]


@pytest.mark.parametrize("fun", RUNS)
@pytest.mark.parametrize("seed", range(4))
def test_what_one_run_of_a_loop_was_given_is_not_taken_for_what_another_one_is_given(fun, seed):
    """A side that one run alone took is known to all: with what they hold there, not with what that one did."""
    rng = np.random.default_rng(seed)
    derivative, dynamic = value_and_grad(fun, (0, 1, 2)), value_and_grad(fun, (0, 1, 2), mode="dynamic")
    usual = rng.choice([-1.0, 1.0], size=6) if seed > 1 else np.array([1.0, -1.0, -1.0, -1.0, -1.0, -1.0]) * (1 - 2 * seed)
    for call in range(12):
        sides = usual * (1.0 + rng.random(6)) if call < 4 else rng.choice([-1.0, 1.0], size=6) * (1.0 + rng.random(6))
        args = rng.normal(size=8) * 0.7, sides, float(rng.normal())
        value, slopes = derivative(*args)
        expected, others = dynamic(*args)
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
        for slope, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)


def warped(x):
    p, q = x[:10], x[10:22]
    n, m = len(p), len(q)
    costs = np.full((n + 1, m + 1), 1e6)
    costs[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            best = costs[i - 1, j]
            if costs[i, j - 1] < best:
                best = costs[i, j - 1]
            if costs[i - 1, j - 1] < best:
                best = costs[i - 1, j - 1]
            costs[i, j] = (p[i - 1] - q[j - 1]) ** 2 + best
    return costs[n, m]


def between_walls(x):
    p, v = x[:8] * 0.5, x[8:16] * 1.0
    for _ in range(12):
        for i in range(8):
            p[i] = p[i] + 0.1 * v[i]
            if p[i] > 0.8:
                p[i] = 1.6 - p[i]
                v[i] = -v[i]
            elif p[i] < -0.8:
                p[i] = -1.6 - p[i]
                v[i] = -v[i]
    return np.sum(p**2) + np.sum(v * p)


def shortest_ways(x):
    d = np.abs(x[:36]).reshape(6, 6) * 1.0
    for k in range(6):
        for i in range(6):
            for j in range(6):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return np.sum(d)


def aligned(x):
    first, second = [0, 1, 2, 3, 1, 0, 2, 3], [1, 2, 3, 3, 0, 2, 1]
    match, gap = x[:16].reshape(4, 4), -0.5 + 0.1 * x[16]
    score = np.zeros((9, 8))
    for i in range(1, 9):
        score[i, 0] = gap * i
    for j in range(1, 8):
        score[0, j] = gap * j
    for i in range(1, 9):
        for j in range(1, 8):
            a = score[i - 1, j - 1] + match[first[i - 1], second[j - 1]]
            b = score[i - 1, j] + gap
            c = score[i, j - 1] + gap
            if a >= b and a >= c:
                score[i, j] = a
            elif b >= c:
                score[i, j] = b
            else:
                score[i, j] = c
    return score[8, 7]


def over_edges(x):
    begins, ends = [0, 0, 1, 2, 3, 1, 4, 5, 2, 3], [1, 2, 3, 3, 4, 4, 5, 6, 5, 6]
    d, w = np.full(7, 1e3), np.abs(x[:10]) + 0.1
    d[0] = 0.0
    for _ in range(6):
        for e in range(10):
            if d[begins[e]] + w[e] < d[ends[e]]:
                d[ends[e]] = d[begins[e]] + w[e]
    return d[6]


@pytest.mark.parametrize("fun", [warped, between_walls, shortest_ways, aligned, over_edges])
def test_loops_with_ifs_in_loops_are_loops(fun):
    """What one run decides, the next ones know; each had been traced, and written down, for itself."""
    derivative, dynamic, rng = value_and_grad(fun), value_and_grad(fun, mode="dynamic"), np.random.default_rng(0)
    for _ in range(8):
        x = rng.normal(size=40)
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)
    assert derivative.cache_info().hits >= 4
    assert len(derivative.source(x).splitlines()) < 220


def turned_back(y, w):
    if y > 0.4:
        y = 0.8 - y
    return y * w


def left_to_others(x, w):
    s, u, v, c = 0.0, 1.0, w, 0.1
    for i in range(6):
        a = x[i] * w
        c = 0.3 if i % 2 else 0.1
        v = x[i]
        for _ in range(5):
            if c < -0.3:
                u = 0.7 * (s + s)
            elif a > -0.5:
                v = 0.7 * (v * 0.5)
                u = 0.7 * (turned_back(v, w))
            else:
                s = s + 0.1 * x[i]
        if v > 0.3:
            s = s * 0.9 + 0.1 * w
    return s + u + v


def test_what_an_iteration_left_to_the_next_ones_is_not_what_they_compute():
    """A loop within it bound the local anew, to what it held: code computed that once more, of the iteration that did so."""
    derivative, dynamic = value_and_grad(left_to_others, (0, 1)), value_and_grad(left_to_others, (0, 1), mode="dynamic")
    rng = np.random.default_rng(50227)
    for args in [(rng.normal(size=12) * 0.6, float(rng.normal())) for _ in range(11)][2:]:
        (value, slopes), (expected, others) = derivative(*args), dynamic(*args)
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
        for slope, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)


def filtered(f, y):
    m, p, total = np.zeros(2), np.eye(2), 0.0
    for t in range(len(y)):
        m, p = f @ m, f @ p @ f.T + np.eye(2)
        if np.isnan(y[t]).any():
            continue
        gain = np.linalg.solve(p + np.eye(2), p).T
        m = m + gain @ (y[t] - m)
        p = p - gain @ p
        total += m @ m
    return total


def test_a_view_that_only_some_iterations_make_and_no_other_reads():
    derivative = value_and_grad(filtered)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = np.where(rng.uniform(size=(40, 1)) < 0.3, np.nan, rng.normal(size=(40, 2)))
        f = 0.9 * np.eye(2) + 0.05 * rng.normal(size=(2, 2))
        value, slope = derivative(f, y)
        assert value == pytest.approx(filtered(f, y), rel=1e-12)
        np.testing.assert_allclose(slope, grad(filtered, mode="dynamic")(f, y), rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 4


def one_side_alone_reads(x):
    n, m, k, s, u = 5, 9, 1, 0.0, 0.0
    p = x[: n + m] * 1.0
    for i in range(n):
        k = k + 1 if k < 3 else 1
        for j in range(m):
            if j > i:
                v = 0.7 * (u if u > 0.0 and p[i + j] > -0.2 else p[i])
        v = 0.1
        j = 0
        while j < m:
            if x[j] < -0.3:
                best = x[j]
                if best > s:
                    best = 0.5
            j += 1
    return s + u + v + p @ p


def test_what_a_loop_left_and_one_side_alone_reads_is_given_to_it_by_itself():
    derivative, dynamic = value_and_grad(one_side_alone_reads), value_and_grad(one_side_alone_reads, mode="dynamic")
    rng = np.random.default_rng(30544)
    for x in rng.normal(size=(9, 17))[:, :16] * 0.6:
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)


def bisected(p):
    f = lambda x: p[0] * x**3 + p[1] * x - p[2]
    lo, hi = 0.0, 3.0
    for _ in range(30):
        m = (lo + hi) / 2
        if f(m) > 0:
            hi = m
        else:
            lo = m
    return p[0] * m


def of_a_function_within(p):
    def step(x, often=2):
        if x > 0.5:
            return p[0] * x
        return x * x + p[1] * often

    s = 0.0
    for i in range(3, 15):
        s = s + step(p[i])
        if s > 1.0:
            s = s * 0.5
    return s


def of_functions_in_turn(p):
    s = 0.0
    for i in range(3, 15):
        step = (lambda x, k=i: x * k) if i % 3 else (lambda x, k=-i: x + k)
        s = s + step(p[i]) if p[i] > 0.5 else s * 0.5
    return s


def over_few_numbers(p):
    s = 0.0
    for weight in np.linspace(0.5, 2.0, 12):
        s = s + weight * p[3] if weight < p[4] + 1.0 else s * p[5]
    return s


@pytest.mark.parametrize(
    ("fun", "misses"), [(bisected, 3), (of_a_function_within, 5), (of_functions_in_turn, 20), (over_few_numbers, 4)]
)
def test_functions_that_the_function_makes_are_the_same_ones_in_the_next_call(fun, misses):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for p in np.random.default_rng(8).uniform(0.1, 1.0, size=(20, 15)):
        (value, slope), (expected, other) = derivative(p), dynamic(p)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().misses <= misses


def largest(x):
    best, place = x[0], 0
    for i, v in enumerate(x):
        if v > best:
            best, place = v, i
    return best**2 * (place + 1)


def place_of_the_least(x):
    best, place = x[0], 0
    for i in range(1, len(x)):
        if x[i] < best:
            best = x[i]
            place = i
    return np.sin(x[place]) + x[place - 1]


def since_the_last_rise(x):
    last, total = -1, 0.0
    for i in range(1, len(x)):
        if x[i] > x[i - 1]:
            last = i - 1
        elif i - last > 1:
            total = total + x[i] * last
    return total


@pytest.mark.parametrize("fun", [largest, place_of_the_least, since_the_last_rise])
def test_places_that_an_iteration_notes(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(0).normal(size=(30, 9)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x))
        np.testing.assert_allclose(slope, dynamic(x)[1])
    assert derivative.cache_info().misses <= 6


IMAGE = np.random.default_rng(2).uniform(size=(8, 8))


def mean_of_those_inside(a):
    total, count = 0.0, 0
    for i in range(8):
        for j in range(8):
            x = a[0] * j - a[1] * i + a[2]
            place = int(np.floor(x))
            if 0 <= place < 7:
                f = x - place
                total += ((1 - f) * IMAGE[i, place] + f * IMAGE[i, place + 1] - IMAGE[i, j]) ** 2
                count += 1
    return total / count if count else 0.0


def test_what_is_decided_on_after_loops_that_are_told_of_more_ways():
    """The later calls' loops take the place of those that the first calls had."""
    derivative, other = value_and_grad(mean_of_those_inside), value_and_grad(mean_of_those_inside, mode="dynamic")
    for x in points(16, 3):
        a = x * 0.5 + np.array([1.0, 0.0, 0.0])
        value, slope = derivative(a)
        assert value == pytest.approx(mean_of_those_inside(a), rel=1e-12)
        np.testing.assert_allclose(slope, other(a)[1], rtol=1e-10, atol=1e-12)
    assert "dynamic mode" not in derivative.explain()
    assert derivative.cache_info().misses < 10


def counted_calls(x):
    calls = 0

    def residual(y):
        nonlocal calls
        calls += 1
        return y * y - 2.0 - x[0] ** 2

    y = 3.0 + x[1] ** 2
    while True:
        error = residual(y)
        if abs(error) < 1e-10 or calls > 40:
            break
        y = y - error / (2 * y)
    return y * calls


def kept_around(x):
    count, best = 0, -10.0

    def see(v):
        nonlocal count, best
        if v > 0:
            count += 1
        if v > best:
            best = v

    for v in x:
        see(v)
    return best * count + x[0]


def read_by_another(x):
    """What one function puts there, and the loop changes, another one reads."""
    k = 0.1

    def read():
        return k * x[0]

    def put(v):
        nonlocal k
        k = v

    total = 0.0
    for v in x:
        if v > 0.2:
            put(v)
        total += read()
        k = k * 0.5
    return total + read()


def vector_around(x):
    state, n = np.zeros(3) * x[0], 0

    def add(v):
        nonlocal state, n
        state, n = state + v * x[:3], n + 1

    for v in x:
        if v > 0.2:
            add(v)
        if np.sum(state) > 3.0:
            break
    return np.sum(state * state) + n


def in_functions_made_by_others(x):
    """Each has a variable of its own, whichever calls it."""

    def make():
        total = 0.0

        def add(v):
            nonlocal total
            total = total * 0.9 + v
            return total

        return add

    one, other = make(), make()
    both = [one, other, one]
    result = 0.0
    for v in x:
        if v > 0:
            result += one(v) * x[0]
        else:
            result -= both[1](v)
    return result + both[2](0.0) * other(1.0)


def flags_around(x):
    seen, before = False, None

    def check(v):
        nonlocal seen, before
        if v > 0.8:
            seen = True
        before = v if before is None or seen else before
        return seen

    total = 0.0
    for v in x:
        total += v if check(v) else v * before
    return total


AROUND = [counted_calls, kept_around, read_by_another, vector_around]


@pytest.mark.parametrize("fun", [*AROUND, in_functions_made_by_others, flags_around])
def test_variables_that_functions_in_the_function_assign(fun):
    derivative = value_and_grad(fun)
    for x in np.random.default_rng(5).normal(size=(50, 12)):
        right_at(derivative, fun, x, (1e-12, 1e-13), (1e-10, 1e-12))
    assert fun not in AROUND or derivative.cache_info().misses <= 10


def test_windows_beside_decisions():
    """Calls that go the same ways give the same, whatever arrays of places their iterations have made."""

    def followed(x, k):
        p, s = x * 1.0, 0.1
        for i in range(33, -1, -1):
            s = s + np.sum(x[i + 1 : i + 4])
            if x[i] > 0:
                p[i] += x[i]
            p[i] = p[i] + k[0]
        return np.sum(p * np.cos(p)) + s

    derivative, dynamic = value_and_grad(followed), value_and_grad(followed, mode="dynamic")
    x, k = np.random.default_rng(0).normal(size=160), np.ones(3)
    for _ in range(4):
        np.testing.assert_allclose(derivative(x, k)[1], dynamic(x, k)[1], rtol=1e-12)
    assert derivative.cache_info().hits == 2


@pytest.mark.parametrize("test", ["e * x[1] < 0.3", "e < 0.5 - x[1]"])
@pytest.mark.parametrize("value", ["x[1]", "q[1]", "2 * x[1]"])
@pytest.mark.parametrize("begin", ["0.5", "q[0]", "x[0]"])
@pytest.mark.parametrize("over", ["q", "range(3)", "range(40)"])
def test_what_only_a_loop_within_hands_on_is_carried(over, begin, value, test):
    """No statement reads it; whether it stays as it was, or gets what it held in all iterations so far, others tell."""
    lines = ["def program(x, q):", f"    a = {begin}", "    for e in x:", f"        for _ in {over}:"]
    lines += [f"            if {test}:", f"                a = {value}", "    return a"]
    fun, q = program_of(lines, {"x": (5,), "q": (3,)}, 0).fun, np.array([0.1, 0.2, 0.3])
    every = np.array([[-10, -5, 9, 12, -1], [10, 15, 9, 8, 7], [20, 7, 8, 1, 9], [-10, -5, -9, -2, -1]]) / 10
    for order in ((0, 0, 0, 1, 1), (0, 0, 2, 2, 1), (1, 1, 1, 0, 0, 2), (3, 3, 1, 0, 2)):
        derivative = value_and_grad(fun, (0, 1))
        for i in order:
            found, expected = derivative(every[i], q), value_and_grad(fun, (0, 1), mode="dynamic")(every[i], q)
            assert found[0] == expected[0] == fun(every[i], q)
            np.testing.assert_array_equal(found[1][0], expected[1][0])
            np.testing.assert_array_equal(found[1][1], expected[1][1])


@pytest.mark.long
@pytest.mark.parametrize("first", ["first", "firsts[0]"])
def test_what_was_computed_before_the_loop_is_not_what_its_first_iteration_computes(first):
    lines = ["def program(x, q):", "    a, b, v = np.sum(x), 1.0, x[:4] * q", "    first = np.sum(v)", "    firsts = [first]"]
    lines += ["    for _ in x:", "        b -= 0.5 * np.sum(v)", "        for z in (a, b):", "            y = abs(z)"]
    lines += ["            if y > 0.1:", "                a = a * 0.5 + y / (1 + y)"]
    lines += ["            else:", "                a = a + y * z"]
    lines += [f"        a -= q[0] * {first}", "        for _ in x:", "            a = 0.5 * a + np.sum(v)"]
    lines += ["            v = np.tanh(v * a)", "    return a + b"]
    fun = program_of(lines, {"x": (6,), "q": (4,)}, 0).fun
    for seed in range(6):
        rng, derivative = np.random.default_rng(seed), value_and_grad(fun)
        points = [(rng.normal(size=6), rng.normal(size=4)) for _ in range(4)]
        for i in (0, 0, 0, 1, 1, 2, 3, 0):
            found, expected = derivative(*points[i]), value_and_grad(fun, mode="dynamic")(*points[i])
            assert found[0] == pytest.approx(expected[0], rel=1e-12)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-9, atol=1e-12)


def sign_turned(x):
    sign, total = 1, 0.0
    for v in x:
        if v < 0:
            sign = -sign
        total += sign * v
    return total


def sign_turned_at_crossings(x):
    sign, before, total = -1, 0.0, 0.0
    for i, v in enumerate(x):
        if v * before < 0:
            sign = -sign
        total += sign * v * x[i - sign - 1] if sign == 1 else v / sign
        before = v
    return total, sign


def flag_turned(x):
    up, total = False, 0.0
    for v in x:
        if v < 0:
            up = not up
        if up:
            total += v * v
        else:
            total += v
    return total, up


def flag_turned_and_counted(x):
    up, total, often = True, 0.0, 0
    for v in x:
        if abs(v) > 1:
            up = not up
            often += up
        total += v if not up else v**2 * (2 - up)
        total += 1.0 if up is True else v
    return total * (1 + often), not up, often


def flag_turned_by_cases(x):  # as what the test of the inner ``if`` becomes, it begins as ``up``, and ends as False
    up, total = False, 0.0
    for v in x:
        if v < 0:
            if up:  # noqa: SIM108 (an expression would not part the ways)
                up = False
            else:
                up = True
        if up:
            total += v
        else:
            total += v * v
    return total, up


def number_turned_to_a_flag(x):
    last = 0.0
    total = 0.0
    for v in x:
        if v > 0.5:
            last = not last
        total += v * (2 + last)
    return total, last


TURNED = [sign_turned_at_crossings, flag_turned, flag_turned_by_cases, flag_turned_and_counted, number_turned_to_a_flag]


@pytest.mark.parametrize("fun", [sign_turned, *TURNED])
@pytest.mark.parametrize("size", [3, 10, 40])
def test_signs_and_flags_that_ifs_turn_are_learnt(fun, size):
    has_aux = fun is not sign_turned
    plain = (lambda x: (fun(x)[0], fun(x)[1:])) if has_aux else fun
    derivative, dynamic = [value_and_grad(plain, has_aux=has_aux, mode=mode) for mode in ("auto", "dynamic")]
    points = np.random.default_rng(3).normal(size=(40, size))
    for i, x in enumerate([*points, *points[:5]]):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        expected = plain(x)
        if has_aux:
            assert (value[1], [*map(type, value[1])]) == (expected[1], [*map(type, expected[1])])
            value, expected = value[0], expected[0]
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
        if i == 15:
            learnt = derivative.cache_info().misses
    if size > 3 and fun is not number_turned_to_a_flag:  # what is of two kinds is learnt more slowly
        assert derivative.cache_info().misses <= learnt + 3


def hinge(weights, rows, labels):
    """The support vector machine of lectures, with the label's score picked in each iteration."""
    loss = 0.0
    for i in range(len(rows)):
        scores = rows[i] @ weights
        for k in range(3):
            if k != labels[i]:
                margin = scores[k] - scores[labels[i]] + 1.0
                if margin > 0:
                    loss += margin
    return loss / len(rows) + np.sum(weights**2)


def own_arrays(weights, rows, labels):
    """Arrays that each call makes anew, and such as rules make."""
    loss = 0.0
    for i in range(len(rows)):
        row = rows[i] @ weights
        if row[0] > 0:
            loss = loss + np.sum(np.diag(row) @ np.linspace(0.0, 1.0, 3)) + np.trace(np.outer(row, row)) + row[labels[i]]
    return loss


@pytest.mark.parametrize("fun", [hinge, own_arrays])
def test_loops_that_hold_arrays_which_each_trace_makes_anew_are_one(fun):
    rng = np.random.default_rng(3)
    derivative = grad(fun)
    for _ in range(12):
        args = rng.standard_normal((4, 3)), rng.standard_normal((20, 4)), rng.integers(0, 3, 20)
        np.testing.assert_allclose(derivative(*args), grad(fun, mode="dynamic")(*args), rtol=1e-12, atol=1e-13)
    assert derivative.cache_info().hits >= 8


def flag_named_on_the_way(x):
    s = 0.0
    for v in x:
        if v > 0.5:
            z = True
            s += v
    return s + z


def text_named_on_the_way(x):
    s = 0.0
    for v in x:
        if v > 0.5:
            kind = "big"
            s += v
    return s if kind == "big" else -s


def only_named_on_the_way(x):
    for v in x:
        if v > 0.5:
            found = True
    return x[0] if found else x[1]


def named_behind_continue(x):
    s = 0.0
    for v in x:
        if v < 0.5:
            continue
        z = -0.4
        s += v
    return s + z


def named_in_a_while(x):
    s, k = 0.0, 0
    while k < len(x):
        k += 1
        if x[k - 1] > 0.5:
            z = 2
            s += x[k - 1]
    return s * z


def named_in_an_inner_loop(x):
    s = 0.0
    for v in x:
        for k in range(2):
            if v * (k + 1) > 0.5:
                z = 3.0
                s += 1
        s += v
    return s + z


WAYS = flag_named_on_the_way, text_named_on_the_way, only_named_on_the_way
WAYS += named_behind_continue, named_in_a_while, named_in_an_inner_loop


@pytest.mark.parametrize("fun", WAYS)
def test_what_no_iteration_named_is_not_there_after_a_loop(fun):
    rng = np.random.default_rng(2)
    derivative = value_and_grad(fun)
    for i in range(24):
        x = rng.standard_normal(16)
        if i % 6 == 5:
            with pytest.raises(UnboundLocalError) as told:
                fun(-np.abs(x))
            with pytest.raises(UnboundLocalError) as other:
                derivative(-np.abs(x))
            assert str(told.value) == str(other.value)
        value, slope = derivative(x)
        expected, other_slope = value_and_grad(fun, mode="dynamic")(x)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other_slope)


ONES, TWOS = np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 7.0])


def number_of_the_iteration_before(x):
    s = 0.0
    for i in range(6):
        if x[i] > 0:
            b = 0 if x[i] > 0.5 else 1
        elif b == 0:
            s += 2 * x[i]
        else:
            s += 3 * x[i]
        s += x[i]
    return s


def flag_of_the_iteration_before(x):
    s = 0.0
    for i in range(6):
        if x[i] > 0:
            b = True
        else:
            s += (3.0 if b else 5.0) * x[i]
        s += x[i] ** 2
    return s


def text_of_the_iteration_before(x):
    s = 0.0
    for i in range(6):
        if x[i] > 0:
            b = None if x[i] > 0.5 else "u"
        else:
            s += x[i] * 2 if b is None else x[i] * 3
        s += x[i]
    return s


def array_of_the_iteration_before(x):
    s, y, z = 0.0, x[:3], x[3:]
    for i in range(6):
        if x[i] > 0:
            v = y if x[i] > 0.5 else z
        else:
            s = s + np.sum(v * v) * x[i]
        s = s + x[i] ** 2
    return s


def global_of_the_iteration_before(x):
    s = 0.0
    for i in range(6):
        if x[i] > 0:
            v = ONES if x[i] > 0.5 else TWOS
        else:
            s = s + np.sum(v) * x[i]
        s = s + x[i] ** 2
    return s


def list_of_the_iteration_before(x):
    s = 0.0
    for i in range(6):
        if x[i] > 0:
            v = [1.0, x[i]] if x[i] > 0.5 else [2.0, 1.0]
        else:
            s = s + (v[0] + 2 * v[1]) * x[i]
        s = s + x[i] ** 2
    return s


def function_of_the_iteration_before(x):
    s = 0.0
    for i in range(6):
        if x[i] > 0:
            v = np.sin if x[i] > 0.5 else np.cos
        else:
            s = s + v(x[i])
        s = s + x[i] ** 2
    return s


def number_of_the_turn_before(x):
    s, i = 0.0, 0
    while True:
        if x[i] > 0:
            v = 2.0
            if x[i] > 0.5:
                v = 3.0
        else:
            s = s + v * x[i]
        s = s + x[i] ** 2
        i += 1
        if i == 6:
            break
    return s


BEFORE = number_of_the_iteration_before, flag_of_the_iteration_before, text_of_the_iteration_before
BEFORE += array_of_the_iteration_before, global_of_the_iteration_before, list_of_the_iteration_before
BEFORE += function_of_the_iteration_before, number_of_the_turn_before


@pytest.mark.parametrize("fun", BEFORE)
def test_what_an_iteration_before_has_named_is_not_there_in_the_first_one(fun):
    rng = np.random.default_rng(0)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for i in range(40):
        x = rng.uniform(-1, 1, 6)
        if i % 4 == 3 and x[0] < 0:
            for call in (fun, derivative):
                with pytest.raises(UnboundLocalError, match=r"cannot access local variable '[bv]'"):
                    call(x)
        x[0] = abs(x[0])
        value, slope = derivative(x)
        expected, other_slope = dynamic(x)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other_slope, atol=1e-12)


def int_again_at_times(x):
    s, w = 0.0, 1
    for i in range(6):
        if x[i] > 0:
            w = x[i]
        else:
            s = s + (w + 1) * 0.5
        if x[i] > 0.5:
            w = 1
        s = s + x[i] * x[i]
    return s


def int_minus_at_times(x):
    s, w = 0.0, 2
    for i in range(6):
        if x[i] > 0.3:
            w = x[i]
        elif x[i] > 0:
            w = 3
        else:
            s = s + abs(-w * 2) * x[i]
    return s


def int_divided_at_times(x):
    s, w = 0.0, 7
    for i in range(6):
        if x[i] > 0.3:
            w = 9 * x[i]
        elif x[i] > 0:
            w = 7
        else:
            s = s + (w // 2) * x[i] + w % 3
    return s


def flag_at_times(x):
    s, w = 0.0, True
    for i in range(6):
        if x[i] > 0:
            w = x[i] if i % 2 else -1.0
        else:
            s = s + (w + 1) * 0.5
        if i % 2 == 0 and x[i] > 0:
            w = True
        s = s + x[i] * x[i]
    return s


@pytest.mark.parametrize("fun", [int_again_at_times, int_minus_at_times, int_divided_at_times, flag_at_times])
def test_what_is_made_of_ints_has_a_slope_where_floats_go_round_for_them(fun):
    rng = np.random.default_rng(0)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for _ in range(40):
        x = rng.uniform(-1, 1, 6)
        value, slope = derivative(x)
        expected, other_slope = dynamic(x)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other_slope, atol=1e-12)


@pytest.mark.parametrize("places", [[100, -1], [-1], [150, -1], [3, 100, -2]])
@pytest.mark.parametrize("kind", [dict, list, tuple])
def test_a_leaf_that_a_local_shows_last_stays_what_it_is(places, kind):
    name = "g" if kind is dict else 0

    def total(p, r):
        total = 0.0
        for t in range(len(r)):
            lev = p[name] if r[t] < 0 else 0.0
            total += lev * r[t]
        return total

    derivative = grad(total)
    for size in (200, 300, 513):
        r = np.ones(size)
        r[places] = -1.0
        slope = derivative({"g": 0.3} if kind is dict else kind([0.3]), r)
        assert slope[name] == -len(places)


def shortest_paths(w):
    """Until a number changes, ``d`` and ``w`` are one array; and many runs of the inner loop change none."""
    d = w.copy()
    for k in range(len(d)):
        for i in range(len(d)):
            for j in range(len(d)):
                s = d[i, k] + d[k, j]
                if s < d[i, j]:
                    d[i, j] = s
    return np.sum(d**2)


def shortest_beside_the_first(w):
    """The same, where ``w`` is read too, by a function within the function, as both may be one array."""
    d, first = w.copy(), lambda i, j: w[i, j]
    for k in range(len(d)):
        for i in range(len(d)):
            for j in range(len(d)):
                s = d[i, k] + d[k, j]
                if s < d[i, j]:
                    d[i, j] = s + 0.1 * first(i, j)
    return np.sum(d**2)


@pytest.mark.parametrize("fun", [shortest_paths, shortest_beside_the_first])
def test_runs_that_find_nothing_are_as_those_that_do(fun):
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    for _ in range(8 if fun is shortest_paths else 4):
        w = rng.random((8, 8)) + 0.5
        value, slope = derivative(w)
        known, known_slope = plain(w)
        assert value == pytest.approx(known, rel=1e-13)
        np.testing.assert_allclose(slope, known_slope, rtol=1e-12)
    if fun is shortest_paths:
        assert derivative.cache_info().hits >= 4


def bounded(x, p):
    total = 0.0
    for v in x:
        if v > 4.0:
            total = 0.5 * total - v
        total = total * p + np.tanh(v)
    return total


def guarded(x, p):
    state = np.zeros(4)
    for v in x:
        state = np.tanh(state * p + v)
        if np.sum(state) > 3.9:
            raise ValueError("too large")
    return np.sum(state)


def pairs_apart(x, p):
    total = 0.0
    for i in range(1, len(x)):
        for j in range(i):
            d = x[i] - x[j]
            if d == 0.0:
                continue
            total = total + d * d * p
    return total


@pytest.mark.parametrize("fun", [bounded, guarded, pairs_apart])
def test_a_decision_that_went_one_way_is_a_check(fun):
    """Code stops there, and goes on as it did where a call has gone the other way: that is an ``if`` then."""
    derivative, dynamic = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    for seed in range(8):
        x = np.random.default_rng(seed).uniform(0.1, 0.9, 40)
        if seed in (3, 5, 6):
            x[7 * (seed - 2)] = {3: 5.0, 5: x[9], 6: 9.0}[seed]
        if fun is guarded and seed in (3, 6):
            with pytest.raises(ValueError, match="too large"):
                derivative(x, 0.7)
            continue
        found, expected = derivative(x, 0.7), dynamic(x, 0.7)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        for one, other in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().hits > 2


def picks(x, w, where):
    states = [np.tanh(x)]
    for t in range(len(where)):
        states.append(np.tanh(w * states[where[t]] + x))
    return np.sum(states[-1])


def test_code_stops_in_the_loop():
    derivative = value_and_grad(picks)
    for seed in range(3):
        where = [int(np.random.default_rng(t + seed).integers(0, t + 1)) for t in range(60)]
        derivative(np.arange(3.0), np.ones(3) * 0.5, np.array(where))
    code = derivative.source(np.arange(3.0), np.ones(3), np.array(where))
    assert "        if not" in code
    assert "            raise Unexplored" in code
    assert "unseen" not in code


def test_what_hangs_on_no_test_need_not_be_to_the_bit():
    """Of a loop whose ``if``s ask for the index alone; Python's own functions do."""

    def fun(x, n):
        s = x
        for i in range(40):
            s = np.tanh(s * 1.1) if n[i] > 2 else np.exp(-s)
        return s

    derivative = value_and_grad(fun)
    for seed in range(3):
        n = np.random.default_rng(seed).integers(0, 5, 40)
        value, slope = derivative(0.3 + seed, n)
        assert value == pytest.approx(fun(0.3 + seed, n), rel=1e-13)
        assert slope == pytest.approx(value_and_grad(fun, mode="dynamic")(0.3 + seed, n)[1], rel=1e-11)
    assert "= tanh(" in derivative.source(0.3, n, fast=True)


def covered(x, q):
    """Of an array that each iteration makes anew, and a number from outside: the same in all, but never the same node."""
    turn, state, cover, total = np.array([[1.0, 0.1], [0.0, 1.0]]), np.zeros(2), np.eye(2), 0.0
    for v in x:
        state, cover = turn @ state, turn @ cover @ turn.T + q * np.eye(2)
        if v > -2.0:
            total += (v - state[0]) ** 2 / cover[0, 0] + np.log(cover[0, 0])
            state, cover = state + cover[:, 0] * (v - state[0]), cover - np.outer(cover[:, 0], cover[0]) / (1.0 + cover[0, 0])
    return total


@pytest.mark.parametrize("gaps", [False, True])
def test_what_iterations_make_of_new_arrays_alone_is_a_step(gaps):
    derivative, dynamic = value_and_grad(covered, (0, 1)), value_and_grad(covered, (0, 1), mode="dynamic")
    for seed in range(6):
        x = np.random.default_rng(seed).uniform(-1.0, 1.0, 40)
        if gaps:
            x[np.random.default_rng(seed).integers(0, 40, 5)] = -3.0
        q = 0.3 + 0.1 * seed
        found, expected = derivative(x, q), dynamic(x, q)
        assert found[0] == pytest.approx(covered(x, q), rel=1e-12)
        for one, other in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses <= 3
    assert len(derivative.source(x, q, fast=True).splitlines()) < 250


def limited(u, low=-2.0, high=2.0):
    if u > high:
        return high
    if u < low:
        return low
    return u


def kept_within(u):
    if u > 2:
        u = 2
    elif u < -2:
        u = -2
    return u


class Controller:
    def __init__(self, p, i):
        self.p, self.i, self.sum = p, i, 0.0

    def step(self, error):
        u = self.p * error + self.i * self.sum
        if u > 2.0:
            u = 2.0
        elif u < -2.0:
            u = -2.0
        else:
            self.sum += 0.05 * error
        return u

    __call__ = step


def by_a_function(x, aims):
    y, v, cost = 0.0, 0.0, 0.0
    for aim in aims:
        u = limited(x[0] * (aim - y) - x[1] * v)
        v += 0.1 * (u - v)
        y += 0.1 * v
        cost += (aim - y) ** 2 + 0.01 * u * u
    return cost


def by_ints(x, aims):
    y = x[1]
    for aim in aims:
        u = kept_within(x[0] * (aim - y))
        y += 0.1 * u
    return y * u


def by_an_object(x, aims):
    control, y, cost = Controller(x[0], x[1]), 0.0, 0.0
    for aim in aims:
        u = control.step(aim - y)
        y += 0.1 * (u - 0.3 * y)
        cost += abs(aim - y) + 0.01 * u**2
    return cost


def by_a_call_of_an_object(x, aims):
    control, y, cost = Controller(x[0], x[1]), 0.0, 0.0
    for aim in aims:
        u = control(aim - y)
        y += 0.1 * (u - 0.3 * y)
        cost += abs(aim - y) + 0.01 * u**2
    return cost


def several_limits(x, aims):
    y, v, held = 0.0, 0.0, []
    for aim in aims:
        force = limited(x[0] * (aim - y))
        change = limited(force - v, -0.5, 0.5)
        held.append(change)
        v += x[1] * change
        y += 0.1 * v
    return y + sum(held) * 0.1


@pytest.mark.parametrize("fun", [by_a_function, by_ints, by_an_object, by_a_call_of_an_object, several_limits])
def test_numbers_that_functions_give_now_plain_and_now_traced_are_in_one_loop(fun):
    """Such loops were written out, each iteration on its own, and traced anew for each way through them."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    aims = np.where(np.arange(60) < 30, 1.0, -0.4)
    for turn, x in enumerate(
        ((3.1, 0.9), (3.1, 0.9), (1.3, 0.4), (0.2, 0.3), (9.0, 1.1), (-0.7, 0.2), (30.0, 0.9), (3.0, 0.8))
    ):
        x, aim = np.array(x), aims * (1.0 + 0.1 * turn)
        (value, slope), (expected, other) = derivative(x, aim), dynamic(x, aim)
        assert value == pytest.approx(fun(x, aim), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses <= 4
    assert len(derivative.source(x, aim, fast=True).splitlines()) < 200


DRAWN = np.random.default_rng(51).gamma(2.0, 3.0, size=60)
LIMITS = [(-2, 2), (-1, 1.5), (-2, 2), (-3, 3), (-1.5, 1.5)] * 4
WEIGHTS = [1, 2.5, 3, 0.5, 2, 1.5, 1, 4] * 4


class Store:
    def __init__(self, p):
        self.p, self.x = p, 30.0

    def step(self, demand):
        self.x = self.x - demand
        cost = self.x * self.x
        if self.x < self.p["low"]:
            self.x = self.p["high"]
        return cost


def filled_up(p):
    x, cost = 30.0, 0.0
    for demand in DRAWN:
        x = x - demand
        cost += x * x
        if x < p["low"]:
            x = p["high"]
    return cost


def filled_up_by_a_method(p):
    store, cost = Store(p), 0.0
    for demand in DRAWN:
        cost += store.step(demand)
    return cost


def bucket(p):
    x, total = 75.0, 0.0
    for k in range(60):
        q = 0.0 if k % 7 < p["low"] - 12 else DRAWN[k]
        r = q * x / p["high"]
        x = max(x + q - r - 4.0, 0.0)
        total += r**2
    return total


def beyond_limits(p):
    cost = 0.0
    for k, (low, high) in enumerate(LIMITS):
        v = 4 * np.sin(k * p["low"]) * p["high"] / 40
        if v < low:
            cost += (low - v) ** 2
        elif v > high:
            cost += (v - high) ** 2
    return cost


def weighted_by_kind(p):
    total = 0.0
    for k, w in enumerate(WEIGHTS):
        v = np.sin(k * p["low"])
        if isinstance(w, int) and v > 0:
            total += w // 2 * v
        else:
            total += v * w / p["high"]
    return total


@pytest.mark.parametrize("fun", [filled_up, filled_up_by_a_method, bucket, beyond_limits, weighted_by_kind])
def test_what_arguments_and_lists_outside_hold_goes_round(fun):
    """Parameters that a way puts into what goes round, or that divide numbers of Python's; ints among floats."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(12):
        p = {"low": 12.0 + 0.3 * k, "high": 40.0 + k}
        (value, slope), (_, other) = derivative(p), dynamic(p)
        assert value == pytest.approx(fun(p), rel=1e-12)
        assert slope == pytest.approx(other, rel=1e-9)
    assert fun is weighted_by_kind or derivative.cache_info().misses <= 5


def test_a_divisor_that_is_zero_divides_as_it_does_in_python():
    def fun(p):
        total, x = 0.0, 75.0
        for k in range(20):
            q = 0.0 if k < p["low"] else x
            x = x * 0.9
            try:
                total += q / p["high"]
            except ZeroDivisionError:
                total += 1.0
        return total + x * p["low"]

    derivative = value_and_grad(fun)
    for k in (3.0, 2.0, 1.0, 0.0, 4.0, 0.0, 5.0):
        p = {"low": 7.5 + k, "high": k}
        assert derivative(p)[0] == pytest.approx(fun(p), rel=1e-12)


class Rated:
    def __init__(self, rate):
        self.rate, self.seen = rate, 0


def stores_by_state(x):
    stores, state, s = {"a": Rated(0.2), "b": Rated(0.5)}, "a", x[0]
    for v in x:
        stores[state].seen += 1
        stores[state].rate = stores[state].rate * 0.9 + v * 0.01
        s = s + v * stores[state].rate
        state = "b" if s > 0 else "a"
    return s + stores["a"].seen * x[1] + stores["b"].rate


def rows_by_state(x):
    rows, state = {"a": {"n": 0, "sum": 0.0}, "b": {"n": 0, "sum": 0.0}}, "a"
    for v in x:
        rows[state]["n"] += 1
        rows[state]["sum"] += v
        state = "b" if v > 0.1 else "a"
    return rows["a"]["sum"] / max(rows["a"]["n"], 1) + rows["b"]["sum"] ** 2 / max(rows["b"]["n"], 1)


@pytest.mark.parametrize("fun", [stores_by_state, rows_by_state])
def test_what_iterations_compute_and_put_into_objects_needs_no_other_name(fun):
    derivative = value_and_grad(fun)
    for seed in range(10):
        x = np.random.default_rng(seed).normal(size=30)
        right_at(derivative, fun, x, value=(5e-13, 5e-13), slope=(1e-9, 1e-12))
    assert derivative.cache_info().misses <= 4
