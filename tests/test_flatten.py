"""Structures as vectors: there and back, and derivatives through both."""

import pickle
from collections import OrderedDict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from symgrad import check_grads, flatten, grad, jacobian, pytree, value_and_grad


class Line(NamedTuple):
    slope: Any
    offset: Any


@dataclass
class Layer:
    weight: Any
    bias: Any


NUMBERS = st.floats(-1e3, 1e3, width=32)
LEAVES = st.one_of(
    NUMBERS, NUMBERS.map(np.float64), NUMBERS.map(np.float32), st.integers(-5, 5), st.text(max_size=3), st.none(),
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=3, max_side=3), elements=NUMBERS), st.booleans(),
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=2, max_side=3), elements=NUMBERS),
    hnp.arrays(np.int64, (2,)),
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.builds(Line, inner, inner), st.builds(Layer, inner, inner),
        st.dictionaries(st.integers(), inner, max_size=2).map(OrderedDict),
    ),
    max_leaves=8,
)  # fmt: skip


@given(TREES)
def test_there_and_back(tree):
    vector, unflatten = flatten(tree)
    assert vector.ndim == 1
    again = pickle.loads(pickle.dumps(unflatten))(vector)
    (leaves, expected), (found, actual) = pytree.flatten(tree), pytree.flatten(again)
    assert actual == expected
    for a, b in zip(found, leaves, strict=True):
        assert type(a) is type(b)
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
        np.testing.assert_array_equal(a, b)


TREE = {"w": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": (0.5, np.float32(2.0)), "n": 3, "z": np.array(1.5)}


def loss(p):
    return np.sum(np.sin(p["w"])) * p["b"][0] ** p["n"] + p["b"][1] * p["z"]


def test_derivatives():
    vector, unflatten = flatten(TREE)
    through = grad(lambda v: loss(unflatten(v)))
    expected = flatten(grad(loss)({**TREE, "n": 3.0}))[0]
    for _ in range(3):
        np.testing.assert_allclose(through(vector), np.delete(expected, 6), rtol=1e-6)  # n is kept as it is
    assert through.cache_info().hits == 1
    check_grads(lambda w, b: flatten({"w": w, "b": [b, 3.0]})[0] ** 2, (TREE["w"], 0.5))
    np.testing.assert_array_equal(jacobian(lambda v: flatten(unflatten(v))[0])(vector), np.eye(vector.size))


def test_complex_numbers():
    vector, unflatten = flatten([1.0 + 2.0j, np.array([3.0])])
    assert vector.dtype == complex
    assert unflatten(vector)[0] == 1.0 + 2.0j


def test_other_lengths_are_refused():
    _, unflatten = flatten([1.0, np.ones(3)])
    with pytest.raises(ValueError, match=r"a vector of 4 numbers, not of shape \(5,\)"):
        unflatten(np.ones(5))


def test_what_is_put_back_is_no_view_of_the_vector():
    vector, unflatten = flatten({"w": np.ones((2, 2)), "b": np.arange(3.0)})

    def fun(vector):
        first, second = unflatten(vector), unflatten(vector)
        first["w"] *= 2.0
        first["b"][0] = 5.0
        return np.sum(first["w"] * second["w"]) + np.sum(first["b"] * second["b"]) + np.sum(vector**2)

    x = vector + 0.5
    assert fun(x) == fun(x.copy())
    np.testing.assert_array_equal(x, vector + 0.5)
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(fun, mode=mode)
        for _ in range(3):
            value, slope = derivative(x)
            assert value == fun(x)
            steps = np.eye(7) * 1e-6
            np.testing.assert_allclose(slope, [(fun(x + step) - fun(x - step)) / 2e-6 for step in steps], rtol=1e-7)


@pytest.mark.usefixtures("sharing")
def test_structures_that_are_flattened_anew_share_code():
    """Once a fit, say: what puts a vector back is known by its structure."""
    rng = np.random.default_rng(0)

    def fit(params, x):
        vector, unflatten = flatten(params)
        derivative = grad(lambda v: np.sum((x @ unflatten(v)["w"] + unflatten(v)["b"]) ** 2))
        return derivative, derivative(vector)

    for _ in range(6):
        w, b, x = rng.normal(size=3), 0.5, rng.normal(size=(4, 3))
        derivative, slope = fit({"w": w, "b": b, "kind": "linear"}, x)
        r = 2 * (x @ w + b)
        np.testing.assert_allclose(slope, np.append(x.T @ r, r.sum()))
    assert derivative.cache_info().hits == 4
    _, slope = fit({"w": np.ones((3, 2)), "b": 0.5, "kind": "linear"}, np.ones((4, 3)))
    assert slope.shape == (7,)
    _, slope = fit({"w": np.ones(3), "kind": 3, "b": 0.5}, np.ones((4, 3)))
    np.testing.assert_allclose(slope, [28, 28, 28, 28])


def test_flags_are_no_numbers():
    """1 is equal to True, and 0 to False: what puts a vector back is not the same with one of them as with the other."""
    kept = (True, 1, False, 0)
    back = [flatten({"w": np.ones(2), "kept": value})[1] for value in kept]
    outside = back[0]
    fun = lambda v: np.sum(outside(v)["w"]) * (1.0 + kept.index(outside(v)["kept"]) + (outside(v)["kept"] is True))
    derivative, handed = (
        grad(fun),
        grad(lambda v, back: np.sum(back(v)["w"]) * (2.0 if isinstance(back(v)["kept"], bool) else 3.0)),
    )
    for value, outside in [*zip(kept, back, strict=True)] * 3:
        np.testing.assert_array_equal(derivative(np.ones(2)), 2 * [1.0 + kept.index(value) + (value is True)])
        np.testing.assert_array_equal(handed(np.ones(2), outside), 2 * [2.0 if isinstance(value, bool) else 3.0])


def test_whole_numbers_are_put_back_as_floats():
    back = flatten({"w": 0.5, "z": 1j, "v": np.ones(2)})[1]
    found = back(np.arange(4))
    assert (type(found["w"]), type(found["z"]), found["v"].dtype) == (float, complex, float)


def test_what_is_kept_is_read():
    """Whole numbers in arrays, texts and objects were constants of the code."""
    config = SimpleNamespace(scale=2.0)
    params = {"w": np.array([1.0, 2.0, 3.0]), "rows": np.array([0, 1]), "names": np.array(["a"]), "config": config}
    vector, outside = flatten(params)

    def loss(v, back):
        p = back(v)
        return np.sum(p["w"][p["rows"]] ** 2) * p["config"].scale * (1.0 if p["names"][0] == "a" else -1.0)

    read, handed = grad(lambda v: loss(v, outside)), grad(loss)
    for i in range(8):
        params["rows"][0], params["names"][0], config.scale = i // 2 % 3, "ab"[i // 3 % 2], 2.0 + i // 4
        expected = np.zeros(3)
        np.add.at(expected, params["rows"], 2 * vector[params["rows"]] * config.scale * (1.0 - 2.0 * (i // 3 % 2)))
        np.testing.assert_allclose(read(vector), expected)
        np.testing.assert_allclose(handed(vector, outside), expected)
    assert read.cache_info().hits
