"""Loops over what is left of an iterator are one loop of the generated code, by place, where there are places."""

import collections.abc
import itertools

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad


def rises(x):
    it = iter(x)
    before = next(it)
    s = 0.0
    for v in it:
        if v > before:
            s += (v - before) ** 2
        before = v
    return s


def after_two(x):
    squares = [v * v for v in x]
    it = iter(squares)
    a = next(it)
    b = next(it) + 1.0
    s = a * b
    for v in it:
        s += v * a if v > b else v
    return s


def of_places(x):
    it = iter(range(len(x)))
    s = x[next(it)]
    for k in it:
        if x[k] > 0:
            s += x[k] * k
    return s


def of_some(x):
    it = iter((x[0], x[1], x[2], x[3]))
    a = next(it)
    for v in it:
        a = a * v
    return a


def slices(x):
    s = 0.0
    for v in itertools.islice(x, 1, None):
        if v > 0:
            s += v
    for v in itertools.islice(x, 5):
        if v < 0:
            s += v * v
    return s


def slices_beside(x):
    s = 0.0
    for k, v in enumerate(itertools.islice(x, 2, 9)):
        if v > 0:
            s += v * k
    for a, b in zip(x, itertools.islice(x, 2, None), strict=False):
        if b > a:
            s += b * b
    return s


def left(x):
    it = iter(x)
    best = next(it)
    for v in it:
        if v > 1.5:
            break
        if v > best:
            best = v
    return best**2


def twice(x):
    it = iter(x)
    s = 0.0
    for v in it:
        if v > 0.5:
            break
        s += v
    for v in it:
        s -= 2 * v
    return s


def of_a_generator(x):
    it = iter(v * v for v in x)
    a = next(it)
    for v in it:
        a = a + v * a if v > 1 else a
    return a


def of_a_list_that_grows(x):
    y = list(x)
    it = iter(y)
    a, n = next(it), 0
    for v in it:
        if v > 0 and n < 3:
            y.append(v - 1)
            n += 1
        a += v
    return a


def of_a_list_that_changes(x):
    y = list(x)
    it = iter(y)
    a, k = next(it), 0
    for v in it:
        k += 1  # noqa: SIM113
        if v > 0 and k + 1 < len(y):
            y[k + 1] = v * 0.5
        a += v * v
    return a


def of_some_kept(x):
    y = [v for v in x if v > -1.5]
    it = iter(y)
    a = next(it)
    for v in it:
        a += v * v
    return a


def of_pairs_kept(x):
    pairs = [(k, v) for k, v in enumerate(x) if v > -1.5]
    it = iter(pairs)
    _, a = next(it)
    for k, v in it:
        a += v * k
    return a


def seen_as_what_it_is(x):
    it = iter([1.0, 2.0, 3.0])
    a = next(it)
    for v in it:
        a += v * x[0]
    return a + len([*locals()["it"]])


def taken_at_times(x):
    it = iter(x)
    a = next(it)
    near = 0 < a < next(it)
    for v in it:
        a = a + v if v > 0 else a
    return a + near


CODE = rises, after_two, of_places, of_some, slices, slices_beside
AS_PYTHON = (
    of_some_kept,
    of_pairs_kept,
    seen_as_what_it_is,
    taken_at_times,
    left,
    twice,
    of_a_generator,
    of_a_list_that_grows,
    of_a_list_that_changes,
)


@pytest.mark.parametrize("fun", [*CODE, *AS_PYTHON])
def test_iterators(fun):
    derivative = value_and_grad(fun)
    for k in range(30):
        right_at(derivative, fun, np.random.default_rng(k).normal(size=20), (1e-12, 1e-12), (1e-8, 1e-11))
    if fun in CODE:
        assert derivative.cache_info().misses <= 6


@pytest.mark.parametrize("size", range(3))
@pytest.mark.parametrize("fun", [rises, after_two, of_places, left, of_a_list_that_grows, slices])
def test_iterators_of_too_little(fun, size):
    derivative = value_and_grad(fun)
    for k in range(4):
        x = np.random.default_rng(k).normal(size=size)
        try:
            expected = fun(x)
        except StopIteration:
            with pytest.raises(StopIteration):
                derivative(x)
        else:
            assert derivative(x)[0] == pytest.approx(expected)


MARKS = [2**63 + 12345, *range(-1, -40, -1)]


def marked(x):
    s = 0.0
    for k, mark in enumerate(MARKS):
        s = s + x[k % 5] * (mark % 1000)
    return s


def test_ints_beyond_those_of_numpy():
    """Large ones beside negative ones, of which NumPy makes floats, are the ints that they are."""
    g = value_and_grad(marked)
    for k in range(4):
        x = np.cos(np.arange(5.0) + k)
        right_at(g, marked, x, (1e-13, 0), (1e-13, 0))


@pytest.mark.parametrize("made", [enumerate, lambda x: zip(x, x, strict=True), itertools.pairwise])
def test_what_cannot_be_reversed(made):
    def f(x):
        return sum(k * v for k, v in reversed(made(x)))

    def loops(x):
        s = 0.0
        for k, v in reversed(zip(x, x, strict=True)):
            s = s + k * v
        return s

    for fun in (f, loops):
        with pytest.raises(TypeError, match="not reversible"):
            value_and_grad(fun)(np.ones(5))


class Pairs:
    """As datasets and meshes are: a container of its own."""

    def __init__(self, *items):
        self.items = list(items)

    def __iter__(self):
        yield from self.items


class Dataset:
    """The same with nothing but places."""

    scale = 1.0

    def __init__(self, *items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, k):
        return self.items[k] * self.scale


class Ordered(Dataset, collections.abc.Sequence):
    pass


def extended(held):
    items = []
    items.extend(held)
    return items


HELD = {}
RUN_OVER = {
    "for": lambda x, held: sum(v * x for v in held),
    "enumerate": lambda x, held: sum(v * x * k for k, v in enumerate(held)),
    "zip": lambda x, held: sum(v * x * w for v, w in zip([1.0, 3.0], held, strict=True)),
    "list": lambda x, held: x * list(held)[1],
    "sum": lambda x, held: x * sum(held),
    "max": lambda x, held: x * max(held) * min(held),
    "max of two": lambda x, held: max(x * tuple(held)[1], 0.0),
    "map": lambda x, held: sum(map(x.__mul__, held)),
    "sorted": lambda x, held: x * sorted(held, reverse=True)[0],
    "array": lambda x, held: np.sum(x * np.array(tuple(held))),
    "any": lambda x, held: x if any(held) else 2.0 * x,
    "extend": lambda x, held: x * extended(held)[1],
}


@pytest.mark.parametrize("kind", [Pairs, Dataset, Ordered])
@pytest.mark.parametrize("name", RUN_OVER)
def test_containers_of_the_users(kind, name, monkeypatch):
    def fun(x):
        return RUN_OVER[name](x, HELD["it"])

    derivative = value_and_grad(fun)
    for items in ((1.0, 2.0), (5.0, 3.0)):
        monkeypatch.setitem(HELD, "it", kind(*items))
        for x in (0.5, 1.5, 2.5):
            assert derivative(x)[0] == fun(x)
    hits = derivative.cache_info().hits
    HELD["it"].items[1] = 7.0
    monkeypatch.setattr(Dataset, "scale", 2.0)
    for _ in range(3):
        assert derivative(2.5)[0] == fun(2.5)
    assert derivative.cache_info().hits > hits
    assert "dynamic" not in derivative.explain()
