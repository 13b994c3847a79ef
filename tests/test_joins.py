"""Loops whose iterations go different ways, and meet again: each ``if`` is learnt by itself, not with all that follow."""

import ast
import random
import textwrap
from collections.abc import Iterator

import numpy as np
import pytest
from agreement import program_of, right_at, right_in_other_calls
from hypothesis import example, given
from hypothesis import strategies as st

from symgrad import value_and_grad
from symgrad.source.liveness import live_between, read_later, used_between

# ---- programs that people write: after a call or three, none is traced again --------------------------------------


def ball_in_a_box(x):
    p, q, u, v, s = x[0], x[1], 3 * x[2], 3 * x[3], 0.0
    for _ in range(60):
        p, q = p + 0.1 * u, q + 0.1 * v
        if p > 1.0 or p < -1.0:
            u = -u
        if q > 1.0 or q < -1.0:
            v = -v
        s = s + p**2 + q**2
    return s


def ball_in_an_array(x):
    p, v, s = np.zeros(2), np.array([1.0, 0.5]) * x[0], 0.0
    for t in range(60):
        p = p + 0.1 * v
        if p[0] > 1:
            v = v * np.array([-1.0, 1.0])
            p[0] = 2 - p[0]
        if p[0] < -1:
            v = v * np.array([-1.0, 1.0])
            p[0] = -2 - p[0]
        if p[1] > 1:
            v = v * np.array([1.0, -1.0])
            p[1] = 2 - p[1]
        v = v + 0.2 * x[t]
        s = s + p @ p
    return s


def controller(x):
    last, total, y, cost = 0.0, 0.0, 0.0, 0.0
    for _ in range(60):
        e = 1.0 - y
        total = total + 0.1 * e
        u = x[0] * e + x[1] * total + x[2] * (e - last)
        if u > 2.0:
            u = 2.0
        elif u < -2.0:
            u = -2.0
        y = y + 0.1 * (u - y)
        last, cost = e, cost + e**2
    return cost


def thermostat(x):
    t, on, cost = 20.0, False, 0.0
    for k in range(60):
        if on and t > 21.0:
            on = False
        elif not on and t < 19.0:
            on = True
        t = t + 0.5 * (x[k] - 0.2 * (t - 18)) + (1.0 if on else 0.0)
        cost = cost + (t - 20) ** 2
    return cost


def states(x):
    state, cost, v = 0, 0.0, 0.0
    for t in range(60):
        if state == 0:
            v = v + x[t]
            if v > 2:
                state = 1
        elif state == 1:
            v = 0.5 * v
            if v < 0.5:
                state = 2
        else:
            v = v - 0.3
            if v < -1:
                state = 0
        cost = cost + v**2
    return cost


def steps_of_their_own_size(x):
    y, t, h, k = x[0], 0.0, 0.1, 0.5 + x[1] ** 2
    while t < 1.0:
        if t + h > 1.0:
            h = 1.0 - t
        first = -k * y
        second = -k * (y + h * first)
        error = abs(h * (second - first) / 2)
        if error < 1e-3:
            t, y = t + h, y + h * (first + second) / 2
        h = h * min(2.0, max(0.3, 0.9 * np.sqrt(1e-3 / (error + 1e-12))))
    return y


def range_so_far(x):
    low, high, s = -1.0, 1.0, 0.0
    for y in x:
        if y < low:
            low = y
        if y > high:
            high = y
        middle = 0.5 * (low + high)
        s = s + (y - middle if y > middle else 0.5 * (middle - y))
    return s


def stopped_when_stuck(x):
    w, m, best, stuck = x[:3] * 1.0, np.zeros(3), 1e9, 0
    for _ in range(40):
        g = 2 * (w - 1) + 0.3 * np.sin(5 * w)
        size = np.sqrt(np.sum(g**2))
        if size > 1.0:
            g = g / size
        m = 0.9 * m + 0.1 * g
        w = w - 0.3 * m
        loss = np.sum((w - 1) ** 2)
        if loss < best:
            best, stuck = loss, 0
        else:
            stuck += 1
        if stuck > 5:
            break
    return best


def found_by_a_flag(x):
    low, high, c, found = 0.0, 3.0, 1.0 + x[0] ** 2 / (1 + x[0] ** 2), False
    while not found:
        middle = 0.5 * (low + high)
        v = middle * middle - c
        if abs(v) < 1e-9:
            found = True
        elif v > 0:
            high = middle
        else:
            low = middle
    return middle


def done_or_given_up(x):
    c = 1.0 + x[0] ** 2
    z, done, k = c, False, 0
    while not done and k < 50:
        d = (z**3 - c) / (3 * z**2)
        z, k = z - d, k + 1
        if abs(d) < 1e-12:
            done = True
    return z


def returned_in_the_middle(x):
    low, high, c = 0.0, 3.0, 1.0 + x[0] ** 2 / (1 + x[0] ** 2)
    for _ in range(60):
        middle = 0.5 * (low + high)
        v = middle * middle - c
        if abs(v) < 1e-9:
            return middle
        if v > 0:
            high = middle
        else:
            low = middle
    return middle


def power_iteration(x):
    a = np.diag([2.0, 1.8, 1.0, 0.5]) + 0.01 * np.outer(x[:4], x[:4])
    v = np.ones(4)
    for _ in range(200):
        w = a @ v
        n = np.sqrt(w @ w)
        u = w / n
        if np.max(np.abs(u - v)) < 1e-9:
            break
        v = u
    return n


PROGRAMS = [
    power_iteration,
    found_by_a_flag, done_or_given_up, returned_in_the_middle,
    ball_in_a_box, ball_in_an_array, controller, thermostat, states, steps_of_their_own_size, range_so_far, stopped_when_stuck,
]  # fmt: skip


@pytest.mark.parametrize("fun", PROGRAMS)
def test_few_calls_are_traced(fun):
    """An iteration with five ``if``s has 32 ways through it, of which a call goes a few."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(16):
        right_at(derivative, fun, rng.normal(size=60), (1e-10, 0.0), (1e-7, 1e-9))
    assert derivative.cache_info().misses <= 6


def test_code_grows_with_the_ifs_and_not_with_their_ways():
    """Each ``if`` is there once, and its derivative."""
    lengths = []
    for count in (2, 4, 8):
        ifs = [f"if s > {0.1 * k}: s = s - {0.1 + 0.05 * k} * v" for k in range(count)]
        lines = [
            "def program(x):",
            "    s = x[0]",
            "    for v in x:",
            "        s = s + v",
            *["        " + line for line in ifs],
        ]
        fun = program_of([*lines, "        s = 0.9 * s", "    return s"], {"x": (40,)}, 0)
        derivative, rng = value_and_grad(fun.fun), np.random.default_rng(0)
        for _ in range(5):
            x = rng.normal(size=40)
            right_at(derivative, fun.fun, x, (1e-10, 1e-12), (1e-8, 1e-10))
        lengths.append(len(str(derivative.source(x)).splitlines()))
    assert lengths[2] - lengths[1] < 3 * (lengths[1] - lengths[0])


# ---- one ``if`` learnt without the other must not be wrong where they meet in a new way ---------------------------


def another_name_or_a_copy(x, w):
    a, s = np.zeros(3), 0.0
    for i in range(len(x)):
        tmp = a if x[i] > 0 else a.copy()
        if w[i] > 0:
            tmp[0] = tmp[0] + x[i]
        else:
            s = s + a[0]
        s = s + 0.1 * np.sum(a**2)
    return s


def views_of_other_parts(x, w):
    a, s = np.zeros(4), 0.0
    for i in range(len(x)):
        tmp = a[0:2] if x[i] > 0 else a[2:4]
        if w[i] > 0:
            tmp[0] = tmp[0] + x[i]
        else:
            s = s + a[0]
        s = s + 0.1 * np.sum(a**2 * np.arange(4.0))
    return s


def view_or_an_array(x, w):
    a, s = np.zeros(4), 0.0
    for i in range(len(x)):
        tmp = a[0:2] if x[i] > 0 else np.ones(2)
        if w[i] > 0:
            a[0] = a[0] + x[i]
        else:
            s = s + tmp[1]
        s = s + 0.1 * np.sum(a**2) + tmp[0]
    return s


def names_of_two(x, w):
    a, b, s = np.zeros(3), np.ones(3), 0.0
    for i in range(len(x)):
        u = a if x[i] > 0 else b
        if w[i] > 0:
            a = a + x[i]
        else:
            b = b * 0.9
        s = s + np.sum(u) + a[0] * b[1]
    return s


def one_number_or_another(x, w):
    s, t = 0.0, 1.0
    for i in range(len(x)):
        t = 3.0 if x[i] > 0 else 4.0
        s = s + (t * x[i] if w[i] > 0 else -0.1 * x[i])
    return s


def there_at_times(x, w):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            d = 2 * x[i]
        if w[i] > 0:
            s = s + 0.1
        if x[i] > 0:
            s = s + d * w[i]
        s = s + 0.1 * w[i]
    return s


def left_by_an_earlier_iteration(x, w):
    s, d = 0.0, 1.0
    for i in range(len(x)):
        if x[i] > 0:
            d = 2 * x[i]
        if w[i] > 0:
            s = s + d * w[i]
        s = 0.9 * s
    return s


def lists_of_two_names(x, w):
    items, s = [x[0], w[0]], 0.0
    for i in range(len(x)):
        m = items if x[i] > 0 else [items[1], items[0]]
        if w[i] > 0:
            m[0] = m[0] * 0.5 + x[i]
        s = s + items[0] * 0.1 - m[1] * 0.2
    return s + items[0] * items[1]


def swapped(x, w):
    a, b, s = x[0], w[0], 0.0
    for i in range(len(x)):
        if x[i] > 0:
            a, b = b, a
        if w[i] > 0:
            a = a + x[i]
        if a > b:
            b = a
        s = s + a - 0.5 * b
    return s


class Particle:
    def __init__(self, v):
        self.v = v


def objects_of_two_names(x, w):
    p, s = Particle(x[0]), 0.0
    q = p
    for i in range(len(x)):
        if x[i] > 1.0:
            q = Particle(w[i])
        if w[i] > 0:
            p.v = 0.9 * p.v + x[i]
        q.v = q.v + 0.5 * w[i]
        s = s + p.v - 0.1 * q.v
    return s + p.v * q.v


def best_of_many_lists(x, w):
    p, low = [x[0], w[0]], 1e9
    best = p
    for i in range(len(x)):
        p = [0.9 * p[0] + x[i], p[1] - 0.1 * w[i]]
        if p[0] > 1:
            p = [p[0] - 1, p[1]]
        loss = p[0] ** 2 + p[1] ** 2
        if loss < low:
            low, best = loss, p
    return best[0] + 2 * best[1] + low


def read_by_a_function(x, w):
    s, k = 0.0, 1.0

    def twice():
        return 2 * k

    for i in range(len(x)):
        if x[i] > 0:
            k = x[i]
        if w[i] > 0:
            s = s + twice()
        s = s + 0.1 * x[i]
    return s


def changed_in_place(x, w):
    a, s = x[:3] * 1.0, 0.0
    b = a
    for i in range(len(x)):
        if x[i] > 0:
            a += 0.1
        if w[i] > 0:
            b = b * 0.9
        if x[i] > w[i]:
            b = a
        s = s + np.sum(a) * 0.1 + b[0]
    return s


def items_of_a_dict(x, w):
    d, s = {"a": x[0], "b": 0.0}, 0.0
    for i in range(len(x)):
        if x[i] > 0:
            d["a"] = d["a"] * 0.5
        if w[i] > 0:
            d["b"] = d["a"] + w[i]
        s = s + d["a"] - d["b"] * 0.1
    return s


def read_after_the_loop(x, w):
    s = 0.0
    for i in range(len(x)):
        q = x[i] if x[i] > 0 else -x[i]
        r = q * 2 if w[i] > 0 else w[i]
        s = s + q * r
    return s + q - r


def gone_on_in_the_middle(x, w):
    s, k = 0.0, 1.0
    for i in range(len(x)):
        if x[i] > 0:
            k = 0.5 * k + x[i]
        if w[i] > 1:
            continue
        if k > 1:
            k = k - 1
        s = s + k * w[i]
    return s


MEETINGS = [
    another_name_or_a_copy, views_of_other_parts, view_or_an_array, names_of_two, one_number_or_another, there_at_times,
    left_by_an_earlier_iteration, lists_of_two_names, objects_of_two_names, best_of_many_lists, swapped, read_by_a_function,
    changed_in_place, items_of_a_dict, read_after_the_loop, gone_on_in_the_middle,
]  # fmt: skip


@pytest.mark.parametrize("together", [1.0, -1.0])
@pytest.mark.parametrize("fun", MEETINGS)
def test_ways_that_no_call_has_gone_together(fun, together):
    """The first calls decide twice alike, or never; later ones otherwise."""
    derivative, rng = value_and_grad(fun, (0, 1)), np.random.default_rng(0)
    for number in range(10):
        signs = np.where(rng.random(12) < 0.5, 1.0, -1.0)
        signs[0] = 1.0  # so that what is there at times is there at first
        x, w = np.abs(rng.normal(size=12)) * signs, np.abs(rng.normal(size=12)) * signs * together
        if number > 2:
            w[rng.integers(12)] *= -1
        value, slopes = derivative(x, w)
        np.testing.assert_allclose(value, fun(x.copy(), w.copy()), rtol=1e-11)
        for mine, other in zip(slopes, value_and_grad(fun, (0, 1), mode="dynamic")(x, w)[1], strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-11)


def test_what_raises_on_one_way_raises_on_it():
    """A Python number that one way leaves behind is not NumPy's, of which an infinity would be made."""

    def total(a, b):
        s, h = a, 0.5
        for _ in range(12):
            if s > b:
                h = 0.0
            if s < 5:
                s = s + 0.1
            s = s + 0.001 / h
        return s

    derivative = value_and_grad(total)
    for a in (0.1, 0.2, 0.3):
        assert derivative(a, 9.0)[0] == pytest.approx(total(a, 9.0))
    with pytest.raises(ZeroDivisionError):
        derivative(0.1, 0.5)


def test_a_way_that_no_call_has_gone_may_not_run_for_ever():
    """What follows it computes with what was there before, until the iteration is over; nobody sees that."""

    def total(a, b):
        s, step = a, 0.0
        for _ in range(6):
            if s < b:
                step = 0.5
            y = s
            while y < 3.0:
                y = y + step
            s = s + 0.1 * y
        return s

    derivative = value_and_grad(total)
    for a, b in [(4.0, 1.0), (5.0, 1.0), (4.0, 2.0), (0.3, 9.0), (0.2, 9.0)]:
        assert derivative(a, b)[0] == pytest.approx(total(a, b))


# ---- flags and numbers of states that go round are what Python sees -----------------------------------------------

READ = [
    "s + x[i] if on is True else s", "s - x[i] if on is not False else s", "s + x[i] if on == True else s",
    "s + x[i] if not on else s", "s + on * x[i]", "s + [0.5, 1.5, 2.5][on] * x[i]", "s + {0: 2.0, 1: 1.0, 2: 3.0}[on] * x[i]",
    "s + float(on) * x[i]", "s + (on ^ True) * x[i]", "s + x[i] * len(str(on))",
    "s + x[i] * (1 if isinstance(on, bool) else 2)", "s + x[i] * (1 if type(on) is bool else 2)",
    "s + sum([x[j] for j in range(on + 1)])", "s + np.where(on, x[i], 0.0)", "s + x[i] * (on or 2)", "s + x[i] * (on and 2)",
    "s + x[i] * max(on, 0.5)", "s + x[i] / (1 + on)", "s + x[i] * (on in (1, 2))", "s + x[i] * f'{on}'.count('e')",
]  # fmt: skip


@pytest.mark.parametrize("values", ["False True False", "0 2 1"])
@pytest.mark.parametrize("read", READ)
def test_flags_are_read_as_they_are(read, values):
    """In a loop they are traced, as numbers are, for what it decides may hang on them."""
    first, high, low = values.split()
    lines = [
        "def program(x):", f"    on, s = {first}, 0.0", "    for i in range(len(x)):", f"        if x[i] > 0.3: on = {high}",
        f"        if x[i] < -0.3: on = {low}", f"        s = {read}", "        s = 0.9 * s", "    return s + np.sum(x)",
    ]  # fmt: skip
    fun = program_of(lines, {"x": (12,)}, 0).fun
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(6):
        right_at(derivative, fun, rng.normal(size=12), (1e-11, 1e-13), (1e-9, 1e-12))


def test_what_python_numbers_compare_to_is_true_or_false():
    def total(a, b):
        more = a > b
        return (2 * a if more is True else 3 * a) + (b if more is not False else 4 * b)

    derivative = value_and_grad(total, (0, 1))
    for a, b in [(1.0, 2.0), (2.0, 1.0), (3.0, 1.0), (1.0, 3.0), (5.0, 2.0)]:
        value, slopes = derivative(a, b)
        assert value == total(a, b)
        assert slopes == ((2.0, 1.0) if a > b else (3.0, 4.0))


NUMBERS = "uvz"


def meeting_lines(rng: random.Random) -> Iterator[str]:
    """The lines of a simulation: ``if`` after ``if``, of numbers, items, and an array."""

    def term() -> str:
        return rng.choice([*NUMBERS, *NUMBERS, "xi", "w[0]", "p[0]", "p[i % 3]", "d"])

    def expression() -> str:
        a, b, c = term(), term(), term()
        shapes = [
            "{a}",
            "({a} - {b})",
            "{a} * {b}",
            "np.tanh({a} + {b})",
            "{a} / (1.5 + {b} ** 2)",
            "min({a}, {b})",
            "abs({a})",
        ]
        return rng.choice([*shapes, "({a} if {b} > {c} else {b})", "0.5"]).format(a=a, b=b, c=c)

    def test() -> str:
        a, b = term(), term()
        return rng.choice([f"{a} > 0.2", f"{a} < -0.1", f"{a} * xi > {b}", f"{a} > 0.4 or {a} < -0.4"])

    def statement(indent: str, depth: int) -> Iterator[str]:
        name = rng.choice([*NUMBERS, *NUMBERS, "p[0]", "p[i % 3]"])
        kind = rng.random()
        if kind < 0.4:
            yield f"{indent}{name} = 0.6 * {name} + 0.2 * np.tanh({expression()}) + 0.3 * xi"
        elif kind < 0.5:
            yield f"{indent}{rng.choice(NUMBERS)} = {rng.choice([*NUMBERS, '0.0', '1.0', '-w[0]'])}"
        elif kind < 0.6:
            yield f"{indent}s = s + 0.1 * {expression()}"
        elif kind < 0.7:
            yield f"{indent}{rng.choice(['d', 'd', 'u, v'])} = ".replace("u, v = ", "u, v = v, 0.9 * ") + rng.choice(NUMBERS)
        elif kind < 0.75:
            yield f"{indent}p = {rng.choice(['p.copy()', '0.5 * p', 'q'])}"
        elif depth:
            yield f"{indent}if {test()}:"
            yield from statement(indent + "    ", depth - 1)
            if rng.random() < 0.4:
                yield f"{indent}else:"
                yield from statement(indent + "    ", depth - 1)
        else:
            yield f"{indent}s = s - 0.1 * {term()}"

    yield "def program(x, w):"
    yield f"    s, u, v, z, d = 0.0, {rng.choice(['0.3', 'w[0]'])}, {rng.choice(['0.0', 'w[1]'])}, 1.0, 0.1"
    yield "    p, q = " + rng.choice(["np.zeros(3), np.ones(3)", "x[:3] * 1.0, x[:3] * w[0]"])
    yield from rng.choice([["    for i, xi in enumerate(x):"], ["    for i in range(len(x)):", "        xi = x[i]"]])
    for _ in range(rng.randint(2, 4)):
        yield f"        if {test()}:"
        yield from statement("            ", 1)
        if rng.random() < 0.3:
            yield "        else:"
            yield from statement("            ", 1)
        if rng.random() < 0.5:
            yield from statement("        ", 0)
    yield "        s = s + 0.1 * u"
    yield "    return s + u + v + z + np.sum(p * p) + np.sum(q)"


@pytest.mark.long
@given(st.integers(0, 2**40))
@example(999)  # two loops have one array's elements in their bodies, and read others of them
def test_random_loops_with_ifs_one_after_the_other(seed: int) -> None:
    """Other calls go other ways, and other ways together."""
    program = program_of(meeting_lines(random.Random(seed)), {"x": (14,), "w": (2,)}, seed)
    right_in_other_calls(program, seed)


# ---- which names may be read later --------------------------------------------------------------------------------


def places(text: str, after: str = "") -> tuple[list[str], list[str]]:
    """Before each statement in a loop, and after the last: the names that are live, and those that the iteration reads."""
    (loop,) = ast.parse(textwrap.dedent(text)).body
    live, used = live_between(loop, frozenset(after)), used_between(loop, False)
    return ["".join(sorted(names)) for names in live], ["".join(sorted(names)) for names in used]


def test_names_are_live_until_they_are_assigned():
    live, used = places(
        """
        for i in r:
            a = b
            c = a
            b = c
        """,
        after="c",
    )
    assert live == ["b", "a", "c", "bc"]
    assert used == ["b", "a", "c", ""]


def test_names_that_one_side_assigns_stay_live():
    live, used = places(
        """
        for i in r:
            if i > 0:
                a = 1
            b = a
        """
    )
    assert live == ["ai", "a", "a"]
    assert used == ["ai", "a", ""]


def test_names_that_both_sides_assign_do_not():
    live, _ = places(
        """
        for i in r:
            if i > 0:
                a = 1
            else:
                a, (b, *c) = 2, (3, 4)
            d = a
        """
    )
    assert live == ["i", "a", ""]


def test_a_loop_in_a_loop_may_not_run():
    live, _ = places(
        """
        for i in r:
            while t:
                a = 1
                break
            for j in s:
                b = a
            d = b
        """
    )
    assert [set(names) & {"a", "b"} for names in live] == [{"a", "b"}, {"a", "b"}, {"a", "b"}, {"a", "b"}]


def test_what_is_live_where_a_loop_is_left_or_goes_on():
    live, _ = places(
        """
        while t:
            if a:
                break
            if b:
                continue
            c = 0
            d = c
        """,
        after="c",
    )
    assert live[0] == "abct"
    assert live[2] == "abt"


def test_what_is_hard_to_follow_reads_all_its_names():
    live, _ = places(
        """
        for i in r:
            try:
                a = 1
            except E:
                b = c
            with m as n:
                a = 2
            del e
            d += 1
        """
    )
    assert set(live[0]) >= set("cEmed")


def test_names_that_functions_read_later():
    tree = ast.parse("def f(a):\n    b = lambda: c\n    def g(): return d\n    return [e for e in a], (h for i in a)")
    assert read_later(tree.body[0]) >= {"c", "d", "h"}
    assert "e" not in read_later(tree.body[0])
