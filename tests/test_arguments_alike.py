"""Arguments that are no trees of numbers: made anew for each call, or found in several places."""

import collections
import datetime

import numpy as np
import pytest

from symgrad import grad, value_and_grad
from symgrad.errors import MutatedInput, NotDifferentiable

X = np.array([0.3, -0.7, 1.2])


def of_items(x, o):
    return sum([x[i] for i in o])


def of_pairs(x, o):
    return sum([x[i] * v for i, v in o.items()])


def of_sets(x, o):
    return sum([x[i] * x[j] for i, s in o.items() for j in s])


def of_words(x, o):
    return np.sum(x * (o == "a"))


ANEW = {
    "set": (lambda: {0, 2}, of_items),
    "frozenset": (lambda: frozenset({0, 2}), of_items),
    "deque": (lambda: collections.deque([0, 1, 1]), of_items),
    "Counter": (lambda: collections.Counter([0, 1, 1]), of_pairs),
    "defaultdict": (lambda: collections.defaultdict(list, {0: [1], 2: [0]}), of_sets),
    "sets in a list": (lambda: [{1}, {0, 2}], lambda x, o: sum([x[i] * x[j] for i, s in enumerate(o) for j in s])),
    "words": (lambda: np.array(["a", "b", "a"]), of_words),
    "a day": (lambda: datetime.date(2020, 1, 2), lambda x, o: x[0] * o.day),
}


@pytest.mark.parametrize("name", ANEW)
def test_containers_made_anew_share_code(name):
    make, fun = ANEW[name]
    derivative = value_and_grad(fun)
    for i in range(6):
        value, slope = derivative(X + i, make())
        assert value == pytest.approx(fun(X + i, make()))
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(X + i, make()))
    assert derivative.cache_info().misses == 2, derivative.explain()


@pytest.mark.parametrize("name", ANEW)
def test_what_is_in_them_counts(name):
    make, fun = ANEW[name]
    others = {
        "set": [{1}, {0}, {0, 1, 2}],
        "frozenset": [frozenset({1}), frozenset({0, 1})],
        "deque": [collections.deque([2, 1, 1]), collections.deque([2])],
        "Counter": [collections.Counter([0, 0]), collections.Counter([1, 0, 1])],
        "defaultdict": [collections.defaultdict(list, {0: [2], 2: [0]})],
        "sets in a list": [[{1}, {0, 1}], [set(), {2}]],
        "words": [np.array(["b", "b", "a"]), np.array(["a", "ab", "a"])],
        "a day": [datetime.date(2020, 1, 3), datetime.date(2021, 1, 2)],
    }[name]
    derivative = value_and_grad(fun)
    for _ in range(4):
        for given in [make(), *others]:
            value, slope = derivative(X, given)
            assert value == pytest.approx(fun(X, given))
            np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(X, given))


def changes_one(x, node, nodes):
    node["deg"] += 1
    return x * nodes[0]["deg"]


def appends(x, a, b):
    a.append(3.0)
    return x * sum(b)


def rows(x, table):
    table[0][0] = 3.0
    return x * sum([row[0] for row in table])


def is_one(x, a, b):
    return x * (2 if a is b else 1)


def root_of(x, nodes, root):
    return x * sum([2 if node is root else 1 for node in nodes])


def seen_by_id(x, nodes):
    seen, total = set(), 0.0
    for node in nodes:
        if id(node) not in seen:
            seen.add(id(node))
            total = total + x * node["v"]
    return total


def shared(make, *places):
    """Arguments in which one new container is in several places."""
    one = make()
    return [place(one, make()) for place in places]


SHARED = {
    "a node": (changes_one, lambda: {"deg": 0}, [lambda one, _: one, lambda one, _: [one]]),
    "no node": (changes_one, lambda: {"deg": 0}, [lambda one, _: one, lambda _, other: [other]]),
    "a list": (appends, lambda: [1.0, 2.0], [lambda one, _: one, lambda one, _: one]),
    "two lists": (appends, lambda: [1.0, 2.0], [lambda one, _: one, lambda _, other: other]),
    "rows": (rows, lambda: [1.0, 2.0], [lambda one, _: [one] * 3]),
    "other rows": (rows, lambda: [1.0, 2.0], [lambda one, other: [one, other, other]]),
    "is": (is_one, lambda: [1, 2], [lambda one, _: one, lambda one, _: one]),
    "is not": (is_one, lambda: [1, 2], [lambda one, _: one, lambda _, other: other]),
    "tuples": (is_one, lambda: (1.0, np.ones(2)), [lambda one, _: one, lambda one, _: one]),
    "root": (root_of, lambda: {"v": 1.0}, [lambda one, other: [one, other], lambda one, _: one]),
    "ids": (seen_by_id, lambda: {"v": 1.0}, [lambda one, other: [one, one, other]]),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", dict.fromkeys(fun for fun, *_ in SHARED.values()), ids=lambda fun: fun.__name__)
def test_containers_that_are_one_stay_one(fun, mode):
    """In whatever order calls come in which they are, or are not."""
    cases = [(make, places) for other, make, places in SHARED.values() if other is fun]
    for order in (cases, cases[::-1]):
        derivative = value_and_grad(fun, mode=mode)
        for _ in range(4):
            for make, places in order:
                for x in (1.0, 2.0):
                    expected = fun(x, *shared(make, *places))
                    value, slope = derivative(x, *shared(make, *places))
                    assert value == pytest.approx(expected)
                    assert slope == pytest.approx(expected / x)


def test_containers_that_come_twice_are_read_where_they_are():
    """Code that was traced with one in several places is right for several."""

    def network(layers, x):
        for w, b in layers:
            x = np.tanh(w @ x + b)
        return np.sum(x)

    def weighted(x, nodes):
        return x * sum([node["v"] * (i + 1) for i, node in enumerate(nodes)])

    rng = np.random.default_rng(0)
    one, two, three = [(rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(3)]
    derivative = grad(network)
    for layers in ([one] * 3, [one] * 3, [one, two, three], [three, one, three]):
        for found, expected in zip(derivative(layers, X), grad(network, mode="dynamic")(layers, X), strict=True):
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-10)
    derivative, node = grad(weighted), {"v": 2.0}
    for nodes in ([node, node], [node, node], [{"v": 1.0}, {"v": 5.0}], [node, {"v": 7.0}]):
        assert derivative(1.0, nodes) == weighted(1.0, nodes)


EDGES = [1.0]


@pytest.mark.parametrize("first", [True, False])
def test_an_argument_that_is_outside_too(first):
    def changes_outside(x, edges):
        EDGES[0] = 5.0
        return x * edges[0]

    def changes_argument(x, edges):
        edges[0] = 5.0
        return x * EDGES[0]

    fun = changes_outside if first else changes_argument
    with pytest.raises(MutatedInput, match="among the arguments is changed, which is EDGES, too; pass a copy"):
        grad(fun)(2.0, EDGES)
    derivative = grad(lambda x, edges: x * (2.0 if edges is EDGES else 1.0))
    for _ in range(3):
        assert derivative(1.0, EDGES) == 2.0
        assert derivative(1.0, [1.0]) == 1.0


def test_integers_that_numpy_has_no_dtype_for():
    def fun(x, numbers):
        a = np.array(numbers)
        return np.sum(x[:2] * a / (a.max() + 1)) if a.dtype.kind == "i" else np.sum(x[:2] * a)

    derivative = value_and_grad(fun)
    for numbers in ([1, 2], [2, 3], [1, 2], [1, 2**62], [1, 2**63], [1, 2]):
        assert derivative(X, numbers)[0] == pytest.approx(fun(X, numbers), rel=1e-12)
    with pytest.raises(NotDifferentiable, match="array of objects"):
        derivative(X, [1, 2**70])
