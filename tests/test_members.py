"""Loops that ask whether containers have what their indices name, and loops that look other things up in each iteration."""

import itertools

import numpy as np
import pytest
import test_forks

from symgrad import compile as compiling
from symgrad import grad, value_and_grad
from symgrad.watch import calls

SKIPPED = {(i, i + 1) for i in range(7)} | {(i, i + 2) for i in range(6)}
ODD = {1: "a", 3: "b", 5.0: "c", "x": "d", 2.5: "e"}
KINDS = ["C", "H", "O", "H", "C", "O", "H", "C"]
WEIGHTS = {"C": 1.0, "H": 0.3, "O": 0.7}
OF_PAIRS = {(a, b): 0.1 * i + j for i, a in enumerate("CHO") for j, b in enumerate("CHO")}
LOWER = {(i, j): 0.1 * i + j + 1 for i in range(8) for j in range(i)}
NEXT = {i: [(i + 1) % 8, (i + 3) % 8] for i in range(8)}


def close(x):
    r = np.linalg.norm(x)
    return (1 / r) ** 4 - (1 / r) ** 2 if r < 4.0 else 0.0


def pairs_but_some(x):
    e = 0.0
    for i, j in itertools.combinations(range(8), 2):
        if (i, j) in SKIPPED:
            continue
        r = np.linalg.norm(x[i] - x[j])
        if r < 4.0:
            e += (1 / r) ** 4 - (1 / r) ** 2
    return e


def in_two_loops(x):
    e = 0.0
    for i in range(8):
        for j in range(i + 1, 8):
            if (i, j) not in SKIPPED and (j - i, 3) not in ((4, 3), (5, 2)):
                e += close(x[i] - x[j])
    return e


def one_index(x):
    e = 0.0
    for i in range(8):
        if i in ODD or i - 1 in (6, 9):
            e += x[i, 0] ** 2
        elif x[i, 0] > 0:
            e += x[i, 1] * i
    return e


@pytest.mark.parametrize("fun", [pairs_but_some, in_two_loops, one_index])
def test_what_indices_name_is_looked_up(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).normal(size=(24, 8, 3)) * 2:
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses <= 5


def test_what_a_container_has_is_guarded():
    bonds = {(0, 1), (2, 3)}

    def fun(x):
        e = 0.0
        for i in range(6):
            for j in range(i):
                if (j, i) in bonds and x[i] > x[j]:
                    e += x[i] * x[j] * (i + 1)
        return e

    derivative = grad(fun)
    x = np.arange(1.0, 7.0)
    for more in [(0, 1)] * 3 + [(1, 4)] * 3 + [(2, 5)] * 3:
        bonds.add(more)
        np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x), rtol=1e-12)
    bonds.clear()
    np.testing.assert_array_equal(derivative(x), np.zeros(6))


# -- iterations that are not alike -----------------------------------------------------------------------------------


def by_kind(x):
    e = 0.0
    for i in range(8):
        r = np.linalg.norm(x[i])
        if r < 3:
            e += WEIGHTS[KINDS[i]] / r
    return e


def by_two_kinds(x):
    e = 0.0
    for i in range(8):
        for j in range(i):
            r = np.linalg.norm(x[i] - x[j])
            if r < 4:
                e += OF_PAIRS[KINDS[i], KINDS[j]] / r
    return e


def by_products(x):
    """What one iteration looks up and multiplies, others may have made before, in some calls."""
    e = 0.0
    for i in range(8):
        for j in range(i):
            r = np.linalg.norm(x[i] - x[j])
            if r < 4.0:
                e += WEIGHTS[KINDS[i]] * WEIGHTS[KINDS[j]] / r
    return e


def over_a_dict(x):
    e = 0.0
    for (i, j), k in LOWER.items():
        r = np.linalg.norm(x[i] - x[j])
        if r > 4:
            continue
        e += k / r
        if r < 1:
            e = e * 0.9
    return e


def over_neighbours(x):
    e, last = 0.0, 1.0
    for i in range(8):
        for j in NEXT[i]:
            r = np.linalg.norm(x[i] - x[j])
            if r < 4:
                e, last = e + last / r, r
    return e * last


def left_out_by_kind(x):
    e = x[0, 0]
    for i in range(8):
        if KINDS[i] == "H":
            continue
        r = np.linalg.norm(x[i])
        e = e + 1 / r if r < 3 else e - x[i, 1] if x[i, 1] > 0 else e * 1.1
    return e


def that_fill_an_array(x):
    out, total = np.zeros(8), 0.0
    for i, kind in enumerate(KINDS):
        if x[i, 0] > 0:
            out[i] = x[i, 1] * WEIGHTS[kind]
        else:
            total += out[i - 1] * x[i, 2]
    return np.sum(out**2) + total


@pytest.mark.parametrize(
    "fun",
    [by_kind, by_two_kinds, by_products, over_a_dict, over_neighbours, left_out_by_kind, that_fill_an_array],
    ids=lambda fun: fun.__name__,
)
def test_what_they_decide_does_not_multiply(fun):
    """Each iteration has its ways, which meet behind it."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(40, 8, 3)) * 2:
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses <= 20
    assert derivative.cache_info().hits >= 20


def test_what_only_some_calls_look_up_is_read_anew(monkeypatch):
    """A number outside is an input of code in calls, too, that do not look at it."""
    derivative = grad(by_kind)
    rng = np.random.default_rng(5)
    for _ in range(30):
        derivative(rng.normal(size=(8, 3)) * 2)
    monkeypatch.setitem(WEIGHTS, "O", 5.0)
    for x in rng.normal(size=(10, 8, 3)) * 2:
        np.testing.assert_allclose(derivative(x), grad(by_kind, mode="dynamic")(x), rtol=1e-9)


def lines_of(code, lines):
    every = [code, *[one for one in code.co_consts if isinstance(one, type(code))]]
    return frozenset([line for one in every for *_, line in one.co_lines() if line])


@pytest.mark.parametrize("fun", test_forks.ROLLED, ids=lambda fun: fun.__name__)
def test_each_iteration_alone_gives_what_a_loop_gives(fun, monkeypatch):
    """Loops that could be rolled up, with sections in each iteration instead."""
    begin = compiling.Family.__init__

    def begun(family, *args, **kwargs):
        begin(family, *args, **kwargs)
        family.sections = frozenset([("somewhere", 1)])

    monkeypatch.setattr(compiling.Family, "__init__", begun)
    monkeypatch.setattr(calls, "_lines_of", lines_of)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in test_forks.points(10):
        value, slope = derivative(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-10, atol=1e-12)
