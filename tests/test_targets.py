"""Statements that assign to several targets do what they did, one after the other."""

import ast
import re

import numpy as np
import pytest
from agreement import function_of, right_at

from symgrad import value_and_grad
from symgrad.source.targets import one_by_one, taken_apart


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b = 0.0", "a = 0.0; b = 0.0"),
        ("a = b = c", "a = c; b = c"),
        ("a = b = f(x)", "a = f(x); b = a"),
        ("a = x[a] = f(x)", "a = f(x); x[a] = a"),
        ("a = b, c = f(x)", "a = f(x); b, c = a"),
        ("x[0] = a = c", "x[0] = a = c"),
        ("a = b.c = d = f(x)", "a = b.c = d = f(x)"),
        ("x[0] = a = 1", "x[0] = 1; a = 1"),
        ("x[0] = a = f(x)", "x[0] = a = f(x)"),
        ("a = (a, b) = c", "a = c; a, b = c"),
        ("a = (a, b) = f(x)", "a = (a, b) = f(x)"),
        ("c, b = a = c", "c, b = a = c"),
        ("if t:\n    a = b = 1\nelse:\n    while t:\n        a = b = 2", "if t: a = 1; b = 1\nelse:\n while t: a = 2; b = 2"),
    ],
)
def test_one_by_one(text, expected):
    assert ast.unparse(one_by_one(ast.parse(text))) == ast.unparse(ast.parse(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a[0], a[1] = a[1], a[0]", "a[0], a[1] = a[1], a[0]"),
        ("a.b, c = c, a.b", "a.b, c = c, a.b"),
        ("c, *d = f(x)", "c, *d = f(x)"),
        ("a[0], c = f(x)", "A, B = f(x); a[0] = A; c = B"),
        ("i, a[i] = 1, k", "i, A = 1, k; a[i] = A"),
        ("c, (a.b, *a[:2]) = f(x)", "c, (A, *B) = f(x); a.b = A; a[:2] = B"),
        ("c = (a[0], d) = f(x)", "A = f(x); c = A; B, C = A; a[0] = B; d = C"),
        ("for i, a[i] in x: f()", "for i, A in x:\n a[i] = A\n f()"),
        ("with a as b[0], c: f()", "with a as A:\n b[0] = A\n with c: f()"),
        ("class K: a[0], b = f()", "class K: a[0], b = f()"),
    ],
)
def test_taken_apart(text, expected):
    for i, name in enumerate("ABC"):
        expected = re.sub(rf"\b{name}\b", f"item{'_' * i}", expected)
    assert ast.unparse(taken_apart(ast.parse(text))) == ast.unparse(ast.parse(expected))


def test_they_do_what_they_did():
    def fun(x):
        y = x * 1.0
        i = total = 0
        while i < 6:
            y[i] = last = x[i] * (total + 1.0)
            if last > 0.5:
                total = before = last
                i = y[i] = i + 1
            else:
                before, (p, q) = pair = total, (last, i)
                i += 1
                total += pair[0] * p + q * before
        return total + np.sum(y)

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(12):
        right_at(derivative, fun, rng.normal(size=8), (1e-12, 0), (1e-9, 1e-12))


def test_what_is_put_into_an_object_may_change_the_name_that_is_read():
    def fun(x):
        a = b = total = 0.0

        class Box:
            def __setattr__(self, name, value):
                nonlocal a
                a = 2.0 * value

        box = Box()
        for v in x:
            if v > 0:
                box.held = b = a
            a = b = v
            total += a * b
        return total + a

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(8):
        right_at(derivative, fun, rng.normal(size=6), (1e-12, 0), (1e-9, 1e-12))


def test_two_names_of_one_number_are_one():
    def fun(x):
        s = 0.0
        for v in x:
            a = b = v * 2.0
            if v > 0.5:
                a = b = 1.0
            elif v < -0.5:
                a = v
            if a is b:
                s += v
        return s

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(8):
        x = rng.normal(size=6)
        np.testing.assert_allclose(derivative(x)[0], fun(x), rtol=1e-12)


HELD = """
BUF, SPARE, MADE = [0.0, 0.0], [0.0, 0.0], {}

class Box:
    def __init__(self):
        self.buf = [0.0, 0.0]

LEFT, RIGHT = Box(), Box()

class Holding:
    def __init__(self, held):
        self.held = held
    def __enter__(self):
        return self.held
    def __exit__(self, *_):
        pass

def rebuilt(box, k):
    box.buf = [1.0, 2.0]
    return k

def put(table, i, k):
    table[i] = [k, k]
    return k * k

def two(k):
    return k, k * 2.0

def fun(x, k):
    a, left = [0.0, 0.0], Box()
    def moved(v):
        nonlocal a
        a = BUF
        return v
    STATEMENT
    return x[0] * (a[0] + BUF[0]) + x[1] * (BUF[1] + left.buf[0]) + x[0] * x[1] * k

def state():
    return [*BUF, *SPARE, *LEFT.buf, *RIGHT.buf, *[v for row in MADE.values() for v in row]]
"""


def check_outside(text, path):
    """What the statement leaves outside, and the value, are as they are without symgrad, call by call."""
    text = HELD.replace("STATEMENT", text)
    plain, traced = function_of(text, path / "plain.py"), function_of(text, path / "traced.py")
    derivative, x = value_and_grad(traced), np.array([1.0, 2.0])
    for k in (1.0, 2.0, 3.0, 4.0):
        expected, found = plain(x, k), derivative(x, k)[0]
        left = traced.__globals__["state"]()
        assert (found, left) == (expected, plain.__globals__["state"]())
        assert {*map(type, left)} <= {float, np.float64}


@pytest.mark.parametrize(
    "text",
    [
        "a[0] = (a := BUF)[1] + k",
        "a[0] = moved(k)",
        "a[0]: float = moved(k)",
        "b, a[0] = 1.0, moved(k)",
        "del left.buf; left.buf[0] = rebuilt(left, k)",
        "MADE[k][0] = put(MADE, k, k)",
        "a, a[1] = BUF, k",
        "for i in range(3): d = {}; d[i][0] = put(d, i, k); a[0] += d[i][0]",
    ],
)
def test_what_is_written_into_is_what_the_value_has_left_there(text, tmp_path):
    check_outside(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "BUF[0], BUF[1] = two(k)",
        "LEFT.buf[0], RIGHT.buf[1] = two(k)",
        "LEFT.buf, RIGHT.buf = [two(k), two(k)]",
        "BUF[0], *BUF[1:] = two(k)",
        "[BUF[0], (b, BUF[1])] = k, two(k)",
        "b = BUF[0], BUF[1] = two(k)",
        "for BUF[0] in [k, k + 1.0]: BUF[1] += 2.0 * BUF[0]",
        "for i, BUF[i] in enumerate([k, k + 1.0]): pass",
        "with Holding(k) as BUF[0]: BUF[1] += BUF[0]",
        "with Holding(BUF) as a, Holding(k) as a[0]: pass",
    ],
)
def test_nothing_traced_is_unpacked_into_what_is_outside(text, tmp_path):
    check_outside(text, tmp_path)
