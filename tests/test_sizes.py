"""Results whose size hangs on values are branches of compiled code, and arrays that a function makes take traced indices."""

import numpy as np
import pytest

from symgrad import value_and_grad

PLACES = {
    "flatnonzero": lambda x: np.sum(x[np.flatnonzero(x > 1)] ** 2),
    "nonzero": lambda x: np.sum(np.outer(x, x)[np.nonzero(np.outer(x, x) > 1)]),
    "where": lambda x: np.sum(x[np.where(x > 1)] * 2) + x[0],
    "argwhere": lambda x: np.sum(np.argwhere(x > 1)) * x[0],
    "size": lambda x: np.flatnonzero(x > 1).size * x[0],
    "test of a size": lambda x: x[0] * 2 if np.size(np.flatnonzero(x > 1)) else x[1],
    "unique": lambda x: np.sum(np.unique(np.round(x)) * x[0]),
    "compress": lambda x: np.sum(np.compress(x > 1, x) ** 2),
    "compress a constant": lambda x: np.sum(np.compress(x > 1, np.arange(6.0))) * x[0],
    "extract": lambda x: np.sum(np.extract(x > 1, x) ** 2),
    "loop": lambda x: sum([x[i] * i for i in np.where(x > 1)[0]], x[0]),
    "place": lambda x: np.place(y := x * 1.0, y > 1, [0.5, 2.0]) or np.sum(y * x),
    "setdiff1d": lambda x: np.sum(x[np.setdiff1d(np.arange(6), np.flatnonzero(x > 1))]),
    "delete": lambda x: np.sum(np.delete(x, np.argmax(x)) ** 2),
    "delete a list": lambda x: np.sum(np.delete(x, [np.argmax(x), 0]) * x[0]),
    "delete a mask": lambda x: np.sum(np.delete(x, x > 1) ** 2),
    "delete a slice": lambda x: np.sum(np.delete(x, slice(0, np.argmax(x))) ** 2),
    "delete of a constant": lambda x: np.sum(np.delete(np.arange(6.0), np.argmax(x))) * x[0],
    "one hot": lambda x: np.sum(np.eye(3)[(x > 1).astype(int)] @ x[:3]),
    "constant by a mask": lambda x: np.sum(np.arange(6.0)[x > 1]) * x[0],
}


@pytest.mark.parametrize("name", PLACES)
def test_sizes_that_hang_on_values(name):
    fun, rng = PLACES[name], np.random.default_rng(0)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for _ in range(10):
        x = rng.normal(size=6) * 1.5
        value, slope = derivative(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-14)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-12)
        steps = 1e-6 * np.eye(6)
        expected = [(fun(x + step) - fun(x - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7)
    assert "dynamic" not in derivative.explain()


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.delete(x, np.argmax(x) + 9),
        lambda x: np.delete(x, [-9, np.argmax(x)]),
        lambda x: np.delete(x, x[:2] > 0),
        lambda x: np.eye(2)[np.argsort(x)],
    ],
)
def test_places_out_of_bounds(fun):
    x = np.array([0.5, -1.0, 2.0])
    with pytest.raises((IndexError, ValueError)) as plain:
        fun(x)
    for mode in ("auto", "dynamic"):
        with pytest.raises(plain.type):
            value_and_grad(lambda x: np.sum(fun(x) * x[0]), mode=mode)(x)


def test_views_of_arrays_that_the_function_makes_are_views():
    def fun(x, i):
        counts = np.zeros((2, 3))
        row = counts[i]
        row += 1.0
        return np.sum(counts * x)

    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(fun, mode=mode)
        for i in (0, 1, 0, 1):
            assert np.array_equal(derivative(np.ones((2, 3)), i)[1], np.eye(2)[:, [i] * 3])


def test_arrays_that_branches_make_anew_are_their_own():
    def fun(x, k):
        for bound in (3.0, 2.0, 1.0):
            if k > bound:
                return np.sum(x * (np.array([1.0, 2.0, 3.0]) * bound))
        return np.sum(x * (np.array([4.0, 5.0, 6.0]) * 2))

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for k in rng.uniform(0, 4, size=30):
        expected = np.array([1, 2, 3]) * np.floor(k) if k > 1 else np.array([8, 10, 12])
        assert np.array_equal(derivative(np.ones(3), float(k))[1], expected)
    assert "dynamic" not in derivative.explain()
