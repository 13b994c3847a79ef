"""Single rewrites of the table in ``optimize/simplify.py``: where they apply, where they must not, and what they give."""

import numpy as np
import pytest

from symgrad import grad

X = np.sin(np.arange(24.0)).reshape(4, 6)


def parts(*places):
    """A sum over parts of an array, each with a derivative of its own."""
    return lambda x: sum(np.sum(np.sin((i + 1) * x[place])) for i, place in enumerate(places))


s = np.s_


@pytest.mark.parametrize(
    ("places", "apart"),
    [
        ((s[:, :2], s[:, 2:4], s[:, 4:]), True),
        ((s[0], s[1], s[3]), True),
        ((s[0], s[-1]), True),
        ((s[0], s[-4]), False),
        ((s[::2], s[1::2]), False),  # not overlapping, but it takes more to see that
        ((s[:2, :3], s[2:, 3:], s[:2, 3:]), True),
        ((s[:, :3], s[:, 2:]), False),
        ((s[:2], s[1:]), False),
        ((s[:1:-1], s[2:]), False),
        ((s[3:0:-1], s[0]), True),
        ((s[..., 0], s[..., 1]), False),
        ((s[[0, 1]], s[2]), False),
    ],
)
def test_what_is_added_where_nothing_was_is_written(places, apart):
    fun = parts(*places)
    derivative, expected = grad(fun), grad(fun, mode="dynamic")(X)
    for _ in range(3):
        np.testing.assert_allclose(derivative(X), expected, rtol=1e-13)
    assert ("+=" not in derivative.source(X)) == apart


@pytest.mark.parametrize("scale", [1.0, 40.0, 700.0, 800.0])
def test_slopes_of_logistic_functions_divide_once(scale):
    fun = lambda x: np.sum(1.0 / (1.0 + np.exp(-x)) * x)
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    for x in (X, -X, X[0]):
        with np.errstate(all="ignore"):
            for _ in range(3):
                np.testing.assert_allclose(derivative(scale * x), dynamic(scale * x), rtol=1e-14)
    assert "broadcast" not in derivative.source(X)
    assert " / " not in derivative.source(X).split("# backward")[1]


def test_zeros_that_are_a_result_are_not_written_into():
    def fun(x, y):
        filled = np.zeros_like(x)
        filled[...] = y
        filled[0] -= 0.5
        return np.sum(np.sin(filled))

    derivative = grad(fun, argnums=(0, 1))
    expected = derivative(X[0], X[1])
    space = {"np": np}
    exec(derivative.source(X[0], X[1]), space)
    for got, want in zip(space["grad_fun"](X[0], X[1]), expected, strict=True):
        np.testing.assert_allclose(got, want)
