"""Statements that assign to several targets do what they did, one after the other."""

import ast

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad
from symgrad.source.targets import one_by_one


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
