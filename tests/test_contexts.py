"""Loops that decide are code wherever they stand: in methods, in a ``with`` or a ``try``, in functions of functions."""

import itertools
import linecache
import textwrap
import types
from typing import NamedTuple

import numpy as np
import pytest

from symgrad import value_and_grad

BODIES = {
    "decides": """
        r = 0.0
        for t in x:
            if t > 0:
                r += t * t
            else:
                r -= t
    """,
    "appends": """
        out = []
        for t in x:
            if t > 0:
                out.append(t ** 2)
        r = sum(out) + x[0]
    """,
    "writes": """
        y = np.zeros(len(x))
        for i in range(len(x)):
            if x[i] > 0:
                y[i] = x[i] ** 2
        r = np.sum(y * np.arange(len(x)))
    """,
    "pairs": """
        r = 0.0
        for i in range(len(x)):
            for j in range(i):
                d = x[i] - x[j]
                if abs(d) < 1:
                    r += d * d
    """,
    "comprehension": """
        r = sum([t * t if t > 0 else -t for t in x]) + max(abs(t) for t in x)
    """,
    "resets": """
        v, best = x[0], 0.0
        for t in x:
            v = v * 0.5 + t
            if v < 0:
                v = 0.0
            best = max(best, v)
        r = best + v
    """,
}
CONTEXTS = {
    "function": "def fun(x):\n{1}\n    return r",
    "method": "class C:\n    def m(self, x):\n{2}\n        return r\nfun = C().m",
    "static method": "class C:\n    @staticmethod\n    def m(x):\n{2}\n        return r\nfun = C.m",
    "class method": "class C:\n    @classmethod\n    def m(cls, x):\n{2}\n        return r\nfun = C.m",
    "object that is called": "class C:\n    def __call__(self, x):\n{2}\n        return r\nfun = C()",
    "property": """
class C:
    def __init__(self, x):
        self.x = x
    @property
    def value(self):
        x = self.x
{2}
        return r
def fun(x):
    return C(x).value""",
    "beside super": """
class B:
    def scale(self):
        return 2.0
class C(B):
    def m(self, x):
        scale = super().scale()
{2}
        return r * scale
fun = C().m""",
    "closure": "def make(c):\n    def inner(x):\n{2}\n        return r * c\n    return inner\nfun = make(2.0)",
    "function in a function": """
def fun(x):
    def inner():
        nonlocal scale
        scale = 1.5
{2}
        return r * scale
    scale = 1.0
    return inner()""",
    "with": "def fun(x):\n    with np.errstate(all='ignore'):\n{2}\n    return r",
    "try": "def fun(x):\n    try:\n{2}\n    except ValueError:\n        return x[0]\n    return r",
    "finally": "def fun(x):\n    try:\n{2}\n    finally:\n        scale = 2.0\n    return r * scale",
    "under an if": "def fun(x):\n    r = 0.0\n    if x[0] > -100:\n{2}\n    return r",
    "in a loop": """
def fun(x):
    total = 0.0
    for k in range(3):
{2}
        total = total + r * (k + 1)
    return total""",
    "beside a global": "SCALE = 2.0\ndef fun(x):\n    global UNUSED\n{1}\n    return r * SCALE",
    "generator": "def parts(x):\n{1}\n    yield r\n    yield r * 2\ndef fun(x):\n    return sum(parts(x))",
    "match": """
def fun(x, kind="a"):
    match kind:
        case "a":
{3}
        case _:
            r = 0.0
    return r""",
    "called twice": "def part(x):\n{1}\n    return r\ndef fun(x):\n    return part(x) + part(x**2 - 0.5)",
}


def written(context, body):
    """The function of a source that Python can find again."""
    source = CONTEXTS[context]
    for depth in (1, 2, 3):
        source = source.replace(f"{{{depth}}}", textwrap.indent(textwrap.dedent(BODIES[body]).strip(), "    " * depth))
    name, space = f"<{context}, {body}>", {"np": np, "__name__": "a_module"}
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)
    return space["fun"]


@pytest.mark.parametrize(("context", "body"), [*itertools.product(CONTEXTS, BODIES)])
def test_loops_that_decide_are_code_wherever_they_stand(context, body):
    fun = written(context, body)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k, x in enumerate(np.random.default_rng(7).normal(size=(20, 8))):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        if k % 4 == 3:
            np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().misses <= 8


class Counter:
    def __init__(self):
        self.up, self.down, self.often = 0.0, 1.0, 0

    def note(self, t):
        if t > 0:
            self.up += t
            self.often += 1
        else:
            self.down = 0.5 * self.down - t


class Pair(NamedTuple):
    up: float
    down: float


def noted(state, t):
    if t > 0:
        state["up"] += t
    else:
        state["down"] = state["down"] * 0.5 + t


def after(state, t):
    if t > 0:
        return state._replace(up=state.up + t)
    return Pair(state.up, state.down * 0.9 - t)


def in_a_list(x):
    state = [0.0, 0]
    for t in x:
        if t > 0:
            state[0] = 0.0
        else:
            state[0] -= t
            state[1] += 1
    return state[0] * state[1] + x[0]


def in_a_dict(x):
    state = {"n": 0, "sum": 0.0}
    for t in x:
        if t > 0:
            state["n"] += 1
            state["sum"] += t
    return state["sum"] / max(state["n"], 1)


def in_a_tuple(x):
    state = (0.0, 1.0)
    for t in x:
        up, down = state
        state = (up + t, down) if t > 0 else (up, down * 0.9 - t)
    return state[0] * state[1]


def in_an_object(x):
    state = types.SimpleNamespace(up=0.0, down=1.0)
    for t in x:
        if t > 0:
            state.up += t
        else:
            state.down = 0.5 * state.down - t
    return state.up * state.down


def by_a_method(x):
    state = Counter()
    for t in x:
        state.note(t)
    return state.up * state.down * state.often


def by_a_function(x):
    state = {"up": 0.0, "down": 1.0}
    for t in x:
        noted(state, t)
    return state["up"] * state["down"]


def made_by_a_function(x):
    state = Pair(0.0, 1.0)
    for t in x:
        state = after(state, t)
    return state.up * state.down


def within_another(x):
    state = {"a": {"up": 0.0, "down": 1.0}, "b": [0.0, 0.0]}
    for t in x:
        if t > 0:
            state["a"]["up"] += t
        else:
            state["b"][1] -= t
    return state["a"]["up"] * state["b"][1]


def shared(x):
    one = {"up": 0.0}
    both = [one, one]
    for t in x:
        if t > 0:
            one["up"] += t
    return both[1]["up"] * x[0] + len(both)


def kept_from_before(x):
    """A tuple of the numbers that there were before is not what becomes of them."""
    state = [0.0, 1.0]
    before = tuple(state)
    for t in x:
        if t > 0:
            state[0] += t
    return state[0] * before[1] + before[0] + (type(before[0]) is float)


def perceptron(x):
    w, points, labels = np.zeros(2), x.reshape(4, 2), [1, -1, 1, -1]
    for _ in range(3):
        for point, label in zip(points, labels, strict=True):
            if label * (w @ point) <= 0.1:
                w = w + 0.5 * label * point
    return w @ w + 0.1 * np.sum(x)


def transforms(x):
    """A row of the matrix is of plain numbers."""
    whole = np.eye(2)
    for t in x:
        if abs(t) < 1:
            whole = whole @ np.array([[1.0, t], [0.0, 1.0]])
    return np.sum(whole**2)


def added_to(x):
    total, step = np.zeros(3), np.arange(3.0)
    for t in x:
        if t > 0:
            total += t * step
        else:
            total = total - step
    return total @ total


def two_names(x):
    """What is added in place is seen under both."""
    total = np.zeros(3)
    other = total
    for t in x:
        if t > 0:
            total += t
    return total @ other


MISSES = {shared: 20, two_names: 20}  # into which something is put under two names

STATES = [in_a_list, in_a_dict, in_a_tuple, in_an_object, by_a_method, by_a_function, made_by_a_function, within_another]


@pytest.mark.parametrize("fun", [*STATES, shared, kept_from_before, perceptron, transforms, added_to, two_names])
def test_numbers_in_objects_go_round_in_loops_that_decide(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(7).normal(size=(20, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().misses <= MISSES.get(fun, 4)


OUTSIDE = {"up": 0.0, "pair": [1.0, 2.0]}


def test_numbers_in_objects_from_outside_stay():
    def fun(x):
        total = 0.0
        for t in x:
            if t > 0:
                total += t * OUTSIDE["pair"][1]
        return total

    derivative = value_and_grad(fun)
    for x in np.random.default_rng(7).normal(size=(6, 8)):
        assert derivative(x)[0] == pytest.approx(fun(x))
    assert OUTSIDE == {"up": 0.0, "pair": [1.0, 2.0]}
    assert {*map(type, OUTSIDE["pair"])} == {float}


def patience(x):
    p, best, waited = x[0], 1e9, 0
    for k in range(40):
        p = p - 0.2 * (p - x[1])
        loss = (p - x[1]) ** 2 + 0.01 * k
        if loss < best - 1e-4:
            best, waited = loss, 0
        else:
            waited += 1
            if waited >= 3:
                break
    return best


def with_an_else(x):
    total = 0.0
    for t in x:
        if t > 0:
            total += t
            if total > 2:
                break
        elif t < -1:
            continue
        else:
            total -= t**2
    else:
        total *= 2.0
    return total


def in_a_while(x):
    total, i = 0.0, 0
    while i < len(x):
        total += x[i] ** 2
        i += 1
        if total > 1:
            total *= 0.9
        else:
            total += 0.1
            if x[i - 1] < -0.5:
                break
    return total * i


def with_two(x):
    total = 0.0
    for t in x:
        if t > 0:
            total += t
            if total > 2:
                break
        else:
            total -= t
            if total > 1:
                break
    return total


def around_another(x):
    total = 0.0
    for t in x:
        for u in x[:3]:
            if u > t:
                total += u - t
                if total > 4:
                    break
        if total > 1:
            total -= 0.3
        else:
            total += 0.1
            if t > 1:
                break
    return total


def with_several(x):
    """One that a side leaves as it goes on, one amid the body, and one at its end."""
    total, i = 0.0, -1
    while True:
        i += 1
        if i > 4:
            if i >= len(x):
                break
            total *= 0.9
        t = x[i]
        if t > 1.2:
            total += t
            break
        elif t < 0:
            total -= t**2
        else:
            total += t
        if total < -1.5:
            break
    return total * i


def beside_a_test(x):
    y, i, last = 0.5, 0, x[0]
    while i < 20 and y < 1e3:
        new = 0.5 * np.cos(y) + 0.1 * x[0] * y
        if abs(new - y) < 1e-4:
            last = new
            break
        y = new
        i += 1
    else:
        y = -y
    return y * x[1] + last


def to_the_one_or_the_other(x):
    """The last test is true in no call."""
    y = x[0]
    for _ in range(40):
        new = x[1] + 0.4 * np.sin(y)
        if abs(new - y) < 1e-4:
            break
        y = new
        if y > 50:
            break
    return y * x[2]


def after_some_are_passed_over(x):
    total = 0.0
    for t in x:
        if t > 0.5:
            continue
        total += t**2
        if total > 2:
            break
    return total


def left_by_a_return(x):
    total = 0.0
    for t in x:
        if t > 0:
            total += t
            if total > 2:
                break
        else:
            total -= t
            if total > 1:
                return total * 3.0
    return total


LEFT_AMID = [patience, beside_a_test, to_the_one_or_the_other, after_some_are_passed_over]
LEFT = [*LEFT_AMID, in_a_while, with_two, with_several, with_an_else, around_another, left_by_a_return]


@pytest.mark.parametrize("fun", LEFT)
def test_loops_that_one_side_of_an_if_leaves(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(7).normal(size=(20, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fun", LEFT_AMID)
def test_loops_that_are_left_amid_their_bodies_are_code(fun):
    derivative = value_and_grad(fun)
    for x in np.random.default_rng(8).normal(size=(20, 60)) * 0.6:
        assert derivative(x)[0] == pytest.approx(fun(x), rel=1e-12)
    assert derivative.cache_info().misses <= 4


def by_number(x):
    total, found, i = x[0], {}, 0
    while total < 1.0 and i < 5:
        i += 1
        total = total + 0.2
        found[i] = 0.3 * x[i]
    for t in x:
        if t > 0.4:
            total = total * 0.9 + t
    return total + sum([k * t for k, t in found.items()]) + found.get(2, 0.5)


def by_pairs(x):
    total, found, i = x[0], {}, 0
    while True:
        i += 1
        total = total + 0.2
        if total > 1.0 or i > 5:
            break
        found[i, "a"] = total
    for t in x:
        if t > 0.4:
            found[1, "a"] = total * 0.9 + t
    return total + sum(found.values()) + len(found)


def of_a_slice(x):
    total, part, i = x[0], slice(0, 1), 0
    while total < 1.0 and i < 5:
        i += 1
        total = total + 0.2
        part = slice(0, i + 1)
    for t in x:
        if t > 0.4:
            total = total * 0.9 + t
    return total + np.sum(x[part])


def by_its_slices(x):
    total, i = x[0], 0
    while total < 1.0 and i < 5:
        i += 1
        total = total + 0.2
        part = slice(i, None)
        for t in x[part]:
            if t > 0.4:
                total = total * 0.9 + 0.1 * t
    return total


def a_power_of_a_count(x):
    total, count = x[0], 0
    for t in x:
        if t > 0.3:
            count += 1
        total = total + t * (count**-1 if count else 0.0)
    return total + count


@pytest.mark.parametrize("fun", [by_number, by_pairs, of_a_slice, by_its_slices, a_power_of_a_count])
def test_numbers_that_go_round_are_keys_ends_of_slices_and_powers(fun):
    """A later call found the numbers of an earlier one: an error."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(7).normal(size=(20, 8)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-11, atol=1e-13)
