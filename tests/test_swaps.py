"""Swaps that are only done where they change something are done always, and nothing else is."""

import ast
import inspect
import textwrap

import numpy as np
import pytest

from symgrad import hessian, hvp, value_and_grad
from symgrad.source.swaps import always


def ifs_left(fun):
    tree = always(ast.parse(textwrap.dedent(inspect.getsource(fun))).body[0])
    return sum([isinstance(node, ast.If) and isinstance(node.test, ast.Compare) for node in ast.walk(tree)])


def eliminated(a):
    a = a.copy()
    n = len(a)
    b = np.cos(np.arange(n))
    for i in range(n):
        p = i + np.argmax(np.abs(a[i:, i]))
        if p != i:
            a[[i, p]] = a[[p, i]]
            b[i], b[p] = b[p], b[i]
        for k in range(i + 1, n):
            f = a[k, i] / a[i, i]
            a[k, i:] -= f * a[i, i:]
            b[k] -= f * b[i]
    return np.sum(np.tanh(b / np.diag(a))) + np.sum(a**2)


def by_columns(a):
    a = a * 1.0
    for i in range(len(a)):
        p = np.argmax(a[i])
        if i != p:
            a[:, [p, i]] = a[:, [i, p]]
        a[i] *= 1.5
    return np.sum(np.sin(a) * np.arange(len(a)))


def beyond_the_end(a):
    a, b = a.copy(), None
    for i in range(len(a) + 2):
        p = i if i >= len(a) else (i + 1) % len(a)
        if p != i:
            a[i, 0], a[p, 0] = a[p, 0], a[i, 0]
        if p != i:
            a[[i, p]] = a[[p, i]]
        p = i
        if p != i:
            b[[i, p]] = b[[p, i]]
    return np.sum(a**2 * np.arange(len(a)))


ALWAYS = [eliminated, by_columns]


def with_more(a):
    a, n = a.copy(), 0.0
    for i in range(len(a)):
        p = np.argmax(a[i])
        if p != i:
            a[[i, p]] = a[[p, i]]
            n += a[0, 0]
    return np.sum(a[0]) * n


def other_rows(a):
    a = a.copy()
    for i in range(len(a)):
        p = np.argmax(a[i])
        if p != i:
            a[[i, p]] = a[[i, 0]]
        if p != i:
            a[[i, 1]] = a[[1, i]]
    return np.sum(a[0] ** 2)


def one_above(a):
    a = a.copy()
    for i in range(len(a)):
        p = np.argmax(a[i])
        if p > i:
            a[[i, p]] = a[[p, i]]
    return np.sum(a[0] ** 2)


def otherwise(a):
    a = a.copy()
    for i in range(len(a)):
        p = np.argmax(a[i])
        if p != i:
            a[[i, p]] = a[[p, i]]
        else:
            a[i] *= 2.0
    return np.sum(a[0] ** 2)


def between_arrays(a):
    a, b = a.copy(), a * 2.0
    for i in range(len(a)):
        p = np.argmax(a[i])
        if p != i:
            a[[i, p]] = b[[p, i]]
    return np.sum(a**2)


SOMETIMES = [with_more, other_rows, one_above, otherwise, between_arrays]


def of_an_argument(a):
    for i in range(len(a)):
        p = int(np.argmax(a[i])) if len(a) > 2 else i
        if p != i:
            a[[i, p]] = a[[p, i]]
    return np.sum(a)


@pytest.mark.parametrize("fun", ALWAYS)
def test_swaps_without_an_if(fun):
    assert ifs_left(fun) == 0


@pytest.mark.parametrize("fun", [*SOMETIMES, of_an_argument])
def test_ifs_that_stay(fun):
    assert ifs_left(fun) > 0


@pytest.mark.parametrize("fun", [*ALWAYS, *SOMETIMES, beyond_the_end])
def test_they_are_right(fun):
    derivative, plain, rng = value_and_grad(fun), value_and_grad(fun, mode="dynamic"), np.random.default_rng(0)
    for _ in range(12):
        a = rng.normal(size=(5, 5))
        value, slope = derivative(a)
        np.testing.assert_allclose(value, fun(a), rtol=1e-9)
        np.testing.assert_allclose(slope, plain(a)[1], rtol=1e-7, atol=1e-9)
    assert fun not in ALWAYS or derivative.cache_info().misses == 2


def test_second_derivatives_of_elimination():
    a, v = np.random.default_rng(0).normal(size=(2, 4, 4))
    expected = hvp(eliminated, mode="dynamic")(a, v)
    np.testing.assert_allclose(hvp(eliminated)(a, v), expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(np.einsum("abcd,cd->ab", hessian(eliminated)(a), v), expected, rtol=1e-7, atol=1e-8)


def test_an_argument_that_need_not_be_changed():
    derivative = value_and_grad(of_an_argument)
    for _ in range(3):
        assert derivative(np.ones((2, 2)))[0] == 4.0


def before_it_is_there(a):
    for i in range(3):
        p = i
        if p != i:
            b[[i, p]] = b[[p, i]]  # noqa: F821
    b = a * 2.0
    return np.sum(b)


def of_bools(a):
    a = a * 1.0
    for i in (True, False):
        p = i
        if p != i:
            a[[i, p]] = a[[p, i]]
    return np.sum(a**2)


def of_a_second_name(a):
    b = a
    for i in range(3):
        p = i
        if p != i:
            b[[i, p]] = b[[p, i]]
    return np.sum(b**2)


@pytest.mark.parametrize("fun", [before_it_is_there, of_bools, of_a_second_name])
def test_nothing_is_swapped_that_is_not_to_be(fun):
    a = np.random.default_rng(0).normal(size=(5, 5))
    assert value_and_grad(fun)(a)[0] == fun(a)
