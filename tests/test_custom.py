"""Rules of the user's own, written as they are for other libraries."""

import numpy as np
import pytest

from symgrad import custom_vjp, grad, hessian, value_and_grad, vmap

X = np.array([0.3, -0.7, 1.2])


@custom_vjp
def wave(x, y=2.0):
    return np.sin(x) * y


def _wave_forwards(x, y=2.0):
    return wave(x, y), (np.cos(x), np.sin(x), y)


wave.defvjp(_wave_forwards, lambda kept, g: (kept[0] * kept[2] * g, kept[1] * g))


@custom_vjp
def cents(x):
    return np.round(x * 100.0) / 100.0


cents.defvjp(lambda x: (cents(x), cents(x)), lambda found, g: (found**2 * g,))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_forward_rules_that_call_the_function(mode):
    slope, twice = grad(wave, argnums=(0, 1), mode=mode), grad(grad(wave), mode=mode)
    for _ in range(4):
        np.testing.assert_allclose(slope(0.5, 3.0), (3.0 * np.cos(0.5), np.sin(0.5)))
        np.testing.assert_allclose(twice(0.5, 3.0), -3.0 * np.sin(0.5))
    np.testing.assert_allclose(vmap(grad(wave), (0, None), mode=mode)(X, 3.0), 3.0 * np.cos(X))
    np.testing.assert_allclose(hessian(lambda x: np.sum(wave(x, 3.0)), mode=mode)(X), np.diag(-3.0 * np.sin(X)))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_forward_rules_keep_of_the_function_has_its_rule(mode):
    """Which the function's own steps have not: they are rounded."""
    once, twice, thrice = grad(cents, mode=mode), grad(grad(cents), mode=mode), grad(grad(grad(cents)), mode=mode)
    for _ in range(4):
        np.testing.assert_allclose(value_and_grad(cents, mode=mode)(1.234), (1.23, 1.23**2))
        np.testing.assert_allclose([once(1.234), twice(1.234), thrice(1.234)], [1.23**2, 2 * 1.23**3, 6 * 1.23**4])
    np.testing.assert_allclose(vmap(grad(grad(cents)), mode=mode)(X), 2.0 * X**3)


def test_arguments_by_keyword():
    for _ in range(3):
        np.testing.assert_allclose(grad(lambda x: wave(x, y=3.0))(0.5), 3.0 * np.cos(0.5))
        np.testing.assert_allclose(grad(lambda x: wave(y=3.0, x=x))(0.5), 3.0 * np.cos(0.5))
        np.testing.assert_allclose(grad(lambda x: wave(x=x))(0.5), 2.0 * np.cos(0.5))
    np.testing.assert_allclose(wave(0.5, y=3.0), 3.0 * np.sin(0.5))
    scaled = custom_vjp(lambda x, *, k: x * k).defvjp(lambda x: (x, None), lambda _, g: (g,))
    with pytest.raises(TypeError, match="takes arguments by position; k can be given by keyword only"):
        grad(lambda x: scaled(x, k=2.0))(0.5)


def test_forward_rules_that_return_no_pair():
    half = custom_vjp(lambda x: x * 2.0).defvjp(lambda x: x * 2.0, lambda _, g: (g,))
    with pytest.raises(TypeError, match=r"fwd must return a pair \(result, residuals\), it returned "):
        grad(lambda x: np.sum(half(x)))(X)
