"""Large values are computed later than they are recorded: at the end, by code, or when somebody looks at them."""

import numpy as np
import pytest

from symgrad import grad, hvp, value_and_grad, vjp
from symgrad.tracing.trace import Trace

X = np.random.default_rng(0).uniform(0.5, 1.5, (200, 200))
OUTSIDE = np.linspace(1.0, 2.0, 200)


def elementwise(x):
    return np.sum(np.where(x > 1.0, np.exp(-x) * x**3, np.sqrt(x) / OUTSIDE))


def looked_at(x):
    y = np.tanh(x)
    for _ in range(3):
        if np.sum(y) > 1.0:
            y = y * x
    return float(np.max(y.shape)) * np.mean(y**2)


def written_through_views(x):
    y = x * 2.0
    row, turned = y[3], y.T
    row += x[4]
    turned[5] *= 3.0
    z = y.reshape(-1)
    z[::7] = 0.5
    return np.sum(y**2) + np.sum(row) * np.sum(turned[:, 1])


def written_through_copies(x):
    y = np.sin(x)
    z = y.copy()
    y[0] = 1.0
    z.T[1] += y[0]
    return np.sum(y * z) + np.sum(np.swapaxes(z, 0, 1).ravel()[:300] ** 2)


def products(x):
    h = np.maximum(x @ x.T - 200.0, 0.0) @ OUTSIDE
    rows = np.arange(50)
    return np.sum(np.log1p(h**2)) + np.sum((x - np.mean(x, axis=1, keepdims=True))[rows, rows + 1])


def taps(x):
    rows, columns = 190, 198
    z = 0.0
    for i in range(2):
        for j in range(3):
            z = z + x[i, j] * x[i : i + rows, j : j + columns]
    return np.sum(np.tanh(z))


def a_loop(x):
    s = x[0, :3]
    for _ in range(200):
        a, b, c = s
        s = s + 0.001 * np.array([b - a, a * (2.0 - c) - b, a * b - c])
    return np.sum(s)


def a_number_in_a_loop(x):
    total, t = 0.0, x[0, 0]
    for i in range(300):
        t = t * 0.99 + 0.01 * i
        total = total + t
    return total


FUNCTIONS = [elementwise, looked_at, written_through_views, written_through_copies, products, taps, a_loop, a_number_in_a_loop]


@pytest.mark.parametrize("fun", FUNCTIONS)
def test_first_calls_give_what_later_ones_do(fun):
    value, expected = value_and_grad(fun, mode="dynamic")(X)
    derivative = value_and_grad(fun)
    for _ in range(3):
        for found, wanted in zip(derivative(X), (value, expected), strict=True):
            np.testing.assert_allclose(found, wanted, 1e-10, 1e-10)
            assert type(found) is type(wanted)
    assert derivative.cache_info().hits == 1
    v = np.cos(X)
    wanted = vjp(grad(fun), X)[1](v)[0]
    product = hvp(fun)
    for _ in range(2):
        np.testing.assert_allclose(product(X, v), wanted, 1e-8, 1e-8)


def convolution(x, w):
    """The derivative by ``w`` is written element by element."""
    z = 0
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            z = z + w[i, j] * x[i : i + 190, j : j + 190]
    return np.sum(np.tanh(z))


@pytest.mark.parametrize(("fun", "argnums"), [(elementwise, 0), (convolution, 1)])
def test_what_nobody_looks_at_is_computed_by_code(monkeypatch, fun, argnums):
    x = np.tile(X, (10, 10))[:, :200]
    given = (x, X[:5, :5].copy())[: argnums + 1]
    one, expected = grad(fun, argnums), grad(fun, argnums, mode="dynamic")(*given)
    derivative = lambda x: one(*given)
    alone = []
    computed = Trace.computed
    monkeypatch.setattr(Trace, "computed", lambda self, node: alone.extend(self.missing([node])) or computed(self, node))
    for _ in range(2):
        np.testing.assert_allclose(derivative(x), expected, 1e-10)
    assert not alone


def test_errors_are_the_users():
    def raises(x):
        y = np.exp(x)
        with np.errstate(all="raise"):
            return np.sum(np.log(y - y))

    with pytest.raises(FloatingPointError, match="divide by zero"):
        grad(raises)(X)

    def caught(x):
        try:
            with np.errstate(all="raise"):
                return np.sum(np.log(x - 1.5))
        except FloatingPointError:
            return np.sum(x)

    np.testing.assert_array_equal(grad(caught)(X), np.ones_like(X))
    with pytest.raises(ValueError, match="broadcast"):
        grad(lambda x: np.sum(x * 2.0 + np.ones(3)))(X)
    with pytest.raises(np.linalg.LinAlgError):
        grad(lambda x: np.sum(np.linalg.inv(x * 0.0)))(X)

    def overflows(x):
        t = 1.3 + x
        for _ in range(300):
            t = t**2
        return t

    with pytest.raises(OverflowError):
        grad(overflows)(2.0)


def test_warnings_are_as_they_were():
    with pytest.warns(RuntimeWarning, match="invalid value"):
        value_and_grad(lambda x: np.sum(np.log(x - 1.0)))(X)

    def silent(x):
        with np.errstate(invalid="ignore"):
            return np.sum(np.where(x > 1.0, np.log(x - 1.0), 0.0))

    derivative = grad(silent)
    for _ in range(3):
        assert np.all(np.isfinite(derivative(X)))
