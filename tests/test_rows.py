"""Rows that loops append to lists are arrays where nothing but an array is made of the lists, and stay lists elsewhere."""

import ast
import inspect
import textwrap

import numpy as np
import pytest
from agreement import right_at

from symgrad import grad, value_and_grad
from symgrad.source.rows import as_arrays

RNG = np.random.default_rng(5)


def changed(fun):
    """Whether the function's text is another one when its rows are arrays."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(fun))).body[0]
    before = ast.unparse(tree)
    return ast.unparse(ast.fix_missing_locations(as_arrays(tree, fun.__globals__))) != before


def kernel(x):
    n, rows = len(x), []
    for i in range(n):
        row = []
        for j in range(n):
            row.append(np.exp(-((x[i] - x[j]) ** 2)))
        rows.append(row)
    return np.sum(np.array(rows) ** 2)


def that_decide(x):
    rows = []
    for a in x:
        row = []
        for b in x:
            if a > b:
                row.append(a * b)
            else:
                row.append(np.sin(b) + 1.0)
        rows.append(row)
    return np.sum(np.asarray(rows)[::2] ** 2)


def comprehensions(x):
    rows = []
    for a in x:
        rows.append([np.tanh(a * b) for b in x])
    return np.sum(np.stack(rows, axis=1)[0] * x)


def trajectory(x):
    path, p, q = [], x[0], x[1]
    for k in range(40):
        p, q = p + 0.1 * q, q - 0.1 * np.sin(p)
        path.append((p, q, k))
    return np.sum(np.array(path)[5:] ** 2)


def several_lists(x):
    us, vs = [], []
    for a in x:
        v = []
        v.append(1)
        us.append([a, 2])
        v.append(a * a)
        v.append(v[1] * len(v))
        vs.append(v)
    return np.sum(np.vstack(us) ** 2) + np.sum(np.array(vs))


def one_below_an_if(x):
    rows = []
    if x[0] > -10:
        for a in x:
            row = []
            for b in x:
                row.append(a / (1.0 + b * b))
            rows.append(row)
    return np.sum(np.array(rows) * 2.0)


ARRAYS = [kernel, that_decide, comprehensions, trajectory, one_below_an_if]


def read_later(x):
    rows = []
    for a in x:
        row = []
        for b in x:
            row.append(a * b)
        rows.append(row)
        row[0] = 0.0
    return np.sum(np.array(rows))


def lists_asked_for(x):
    rows, last = [], 0.0
    for a in x:
        row = [a * b for b in x]
        rows.append(row)
        last = rows[-1][0]
    return np.sum(np.array(rows)) * last


def same_row_twice(x):
    rows, row = [], []
    for a in x:
        row.append(a)
    rows.append(row)
    rows.append(row)
    row.append(2.0)
    return np.sum(np.array(rows) ** 2)


def begun_outside(x):
    rows, row = [], []
    for a in x[:3]:
        row.append(a)
        rows.append(row)
    return np.sum(np.array(rows) ** 2)


def kept_elsewhere(x):
    rows, kept = [], []
    for a in x:
        row = []
        kept.append(row)
        row.append(a * a)
        rows.append(row)
        kept[0].append(3.0)
        kept[0].pop()
    return np.sum(np.array(rows))


def added_up(x):
    rows = []
    for a in x:
        rows.append([a, 1.0])
    return sum(rows[0] + rows[1]) * np.sum(np.array(rows))


def of_objects(x):
    rows = []
    for a in x:
        rows.append([a, None])
    return np.array(rows, dtype=object)[0, 0] * x[1]


def in_a_function(x):
    rows = []

    def add(a):
        rows.append([a, a * a])

    for a in x:
        add(a)
    return np.sum(np.array(rows))


def own_array(x):
    class np2:
        array = staticmethod(len)

    rows = []
    for a in x:
        rows.append([a, a])
    return np2.array(rows) * x[0]


LISTS = [
    read_later,
    lists_asked_for,
    same_row_twice,
    begun_outside,
    kept_elsewhere,
    added_up,
    of_objects,
    in_a_function,
    own_array,
]


@pytest.mark.parametrize("fun", [*ARRAYS, *LISTS, several_lists])
def test_rows_are_right(fun):
    derivative = value_and_grad(fun)
    for n in (6, 18, 18, 18, 36, 36, 36):
        right_at(derivative, fun, RNG.normal(size=n), (1e-11, 1e-12), (1e-9, 1e-11))


@pytest.mark.parametrize("fun", ARRAYS)
def test_rows_of_which_arrays_are_made(fun):
    assert changed(fun)


@pytest.mark.parametrize("fun", LISTS)
def test_rows_that_stay_lists(fun):
    assert not changed(fun)


@pytest.mark.parametrize("n", [18, 36])
def test_code_for_rows_is_short(n):
    derivative = grad(kernel)
    for _ in range(3):
        derivative(RNG.normal(size=n))
    assert len(derivative.source(RNG.normal(size=n), fast=True).splitlines()) < 30


def flat(x):
    n, every = len(x), []
    for i in range(n):
        for j in range(n):
            d = x[i] - x[j]
            every.append(np.exp(-d * d))
    return np.sum(np.array(every).reshape(n, n) @ x)


def test_code_for_lists_over_all_pairs_is_short():
    derivative = value_and_grad(flat)
    for _ in range(4):
        right_at(derivative, flat, RNG.normal(size=20), (1e-11, 0), (1e-9, 1e-11))
    assert len(derivative.source(RNG.normal(size=20), fast=True).splitlines()) < 40


def ragged(x):
    rows = []
    for k in range(3):
        row = []
        for a in x[: k + 2]:
            row.append(a * a)
        rows.append(row)
    return np.sum(np.array(rows))


def test_ragged_rows_are_an_error():
    derivative = grad(ragged)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"inhomogeneous|same shape"):
            derivative(RNG.normal(size=6))
