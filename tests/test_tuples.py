"""Locals that only stand for tuples are locals, item by item, and what the function does stays as it is."""

import ast
import inspect
import textwrap

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad
from symgrad.source.targets import one_by_one
from symgrad.source.tuples import item_by_item


def rewritten(fun):
    return ast.unparse(
        ast.fix_missing_locations(item_by_item(one_by_one(ast.parse(textwrap.dedent(inspect.getsource(fun))).body[0])))
    )


def nearest_pair(x):
    best = (9.0, -1, -1)
    for i in range(len(x)):
        for j in range(len(x)):
            d = (x[i] - 2 * x[j]) ** 2
            if d < best[0]:
                best = (d, i, j)
    d, i, j = best
    return d + x[i] * x[j]


def largest(x):
    best = None
    for i in range(len(x)):
        d = (x[i] - 0.3) ** 2
        best = (d, i) if best is None or d > best[0] else best
    if not best:
        return x[0]
    d, i = best
    return d + x[i]


def turned(x):
    a = (x[0], x[1])
    for v in x:
        a = (a[1], v) if v > 0 else (a[-1] * 0.5, a[-2])
    return a[0] * a[1]


def seldom(x):
    found = None
    for v in x:
        if v > 1.9 and found is None:
            found = (v, 2.0)
        elif found is not None and v < -1.5:
            found = None
    return x[0] if found is None else found[0] * found[1]


def handed_on(x):
    best = (0.0, 0.0)
    for v in x:
        if v > best[0]:
            best = (v, v * v)
    return max(best) + sum(best) + len(best)


def closest_pair(x):
    best = None
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = abs(x[i] - x[j])
            if best is None or d < best[0]:
                best = (d, i, j)
    if best:
        d, i, j = best
    return d + x[i] * x[j]


def read_where_it_is_there(x):
    best, s = None, 0.0
    for v in x:
        if best is not None and best[0] > v:
            s += best[0]
        if best is None:
            best = (v, 1.0)
        elif v > best[0]:
            s -= best[1]
            best = (v, 2 * v)
    return s


APART = [closest_pair, read_where_it_is_there, nearest_pair, largest, turned, seldom, handed_on]


def kept(x):
    best, every = (x[0] * 0.0, 0.0), []
    for v in x:
        if v > best[0]:
            best = (v, v * v)
            every.append(best)
    return sum(b[1] for b in every)


def of_several_lengths(x):
    best = (0.0,)
    for v in x:
        if v > best[0]:
            best = (v, v * v)
    return best[-1]


def in_a_function(x):
    best = (x[0], 0.0)

    def more(v):
        return best[0] + v

    for v in x:
        if v > best[0]:
            best = (more(v), v)
    return best[0] * best[1]


def another_object(x):
    best = (x[0], 0.0)
    first = best
    for v in x:
        if v > best[0]:
            best = (v, 1.0)
    return best[0] * (2.0 if best is first else 3.0)


def changed(x):
    best = (x[0], 1.0)
    for v in x:
        if v > best[0]:
            best = (v, 1.0)
    best += (x[1],)
    return sum(best)


def kept_in_a_list(x):
    every, best, total = [], (x[0], 0), 0.0
    for i, v in enumerate(x):
        if v > best[0]:
            best = (v, i)
        every.append(best)
        if i > 0 and every[-1] is every[-2]:
            total = total + v * 10.0
    return total + best[0] * best[1]


def assigned_to_itself(x):
    best = (x[0], 1.0)
    for v in x:
        if v <= best[0]:
            best = best
        elif v < 9.0:
            best = (v, best[1] + 1.0)
    return best[0] * best[1]


LEFT = [kept_in_a_list, of_several_lengths, in_a_function, another_object, changed]


@pytest.mark.parametrize("fun", APART)
def test_tuples_are_locals(fun):
    assert rewritten(fun) != ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(fun))))


@pytest.mark.parametrize("fun", LEFT)
def test_others_stay(fun):
    assert rewritten(fun) == ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(fun))))


@pytest.mark.parametrize("fun", [*APART, *LEFT, kept, assigned_to_itself])
def test_they_do_what_they_did(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(12):
        right_at(derivative, fun, rng.normal(size=12), (1e-12, 0), (1e-9, 1e-12))


@pytest.mark.parametrize("fun", APART)
def test_code_answers(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for _ in range(60):
        derivative(rng.normal(size=12))
    assert derivative.cache_info().misses <= 12


def test_items_of_none():
    def fun(x):
        best = None
        for v in x:
            if v > 1:
                best = (v, 1.0)
        return best[0] * 2

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(3):
        right_at(derivative, fun, np.abs(rng.normal(size=8)) + 1, (1e-12, 0), (1e-9, 1e-12))
        with pytest.raises(TypeError, match="'NoneType' object is not subscriptable"):
            derivative(np.zeros(8))
