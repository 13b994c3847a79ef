"""What products in derivatives have in common is multiplied once: fewer multiplications, the same derivatives to rounding."""

import random
import re

import numpy as np
import pytest

from symgrad import grad, hvp, value_and_grad, without

RNG = np.random.default_rng(0)
ARRAYS = [RNG.uniform(0.5, 1.5, 2000) for _ in range(4)]
ODD = np.resize([1.0, 0.0, np.inf, np.nan, -1e300, 1e-300, -0.0], 2000)


def both(make):
    """A derivative, and the same without."""
    with without("products"):
        plain = make()
    return make(), plain


def multiplications(derivative, args):
    return len(re.findall(r"\bmultiply\(", derivative.source(*args, fast=True)))


def agree(derivative, plain, args):
    for _ in range(3):  # traced, compiled and cached results alike
        for got, want in zip(derivative(*args), plain(*args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


def discounted(strike, rate, years, odds):
    return np.sum(strike * np.exp(-rate * years) * (0.5 * (1.0 + np.tanh(odds))))


@pytest.mark.parametrize("make", [grad, value_and_grad])
def test_what_products_share_is_multiplied_once(make):
    derivative, plain = both(lambda: make(discounted, (0, 1, 2, 3)))
    got, want = derivative(*ARRAYS), plain(*ARRAYS)
    if make is value_and_grad:
        (value, got), (expected, want) = got, want
        assert value == expected
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-14)
    assert multiplications(plain, ARRAYS) - multiplications(derivative, ARRAYS) == 2


def test_a_multiple_that_comes_later_is_shared():
    x, v = ARRAYS[:2]
    derivative, plain = both(lambda: hvp(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)))
    for _ in range(3):
        np.testing.assert_allclose(derivative(x, v), plain(x, v), rtol=1e-13, atol=1e-13)
    assert multiplications(derivative, (x, v)) < multiplications(plain, (x, v))


def test_what_the_user_multiplies_is_multiplied_as_written():
    """To the bit; a decision hangs on it, and the value."""

    def fun(x, y, z):
        product = 0.1 * (x * y) * z
        return np.sum(np.sin(product) * x) if np.sum(product) > 0.3 else np.sum(product)

    derivative, plain = both(lambda: value_and_grad(fun, (0, 1, 2)))
    for args in (ARRAYS[:3], ARRAYS[:3], ARRAYS[1:], [1e-3 * x for x in ARRAYS[1:]]):
        (value, slopes), (expected, others) = derivative(*args), plain(*args)
        assert value == expected
        for got, want in zip(slopes, others, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.parametrize("seed", range(30))
def test_random_products(seed):
    draw = random.Random(seed)

    def factor(depth):
        if not depth:
            return draw.choice(["x", "y", "z", "w", "2.0", "0.5"])
        kind = draw.choice(["{} * {}", "{} * {}", "{} * {}", "{} + {}", "np.tanh({})", "{} * {} * {}", "-{}"])
        return f"({kind.format(*(factor(depth - 1) for _ in range(kind.count('{}'))))})"

    fun = eval(f"lambda x, y, z, w: np.sum({factor(4)} * x * y * z * w)", {"np": np})
    derivative, plain = both(lambda: grad(fun, (0, 1, 2, 3)))
    agree(derivative, plain, ARRAYS)
    assert multiplications(derivative, ARRAYS) <= multiplications(plain, ARRAYS)


def test_powers_stay_few_products():
    derivative, plain = both(lambda: grad(lambda x, y: np.sum(x**4 * y**4 * np.sin(x) ** 4), (0, 1)))
    agree(derivative, plain, ARRAYS[:2])
    assert multiplications(derivative, ARRAYS[:2]) <= multiplications(plain, ARRAYS[:2])


def test_special_values():
    derivative, plain = both(lambda: grad(discounted, (0, 1, 2, 3)))
    args = [*ARRAYS[:3], ODD]
    with np.errstate(all="ignore"):
        agree(derivative, plain, args)


def test_logarithms_of_quotients():
    fun = lambda a, b: np.sum(np.log(a / b) * np.sqrt(a / b))
    slopes = grad(fun, (0, 1))
    a, b = ARRAYS[:2]
    slope = (1.0 + 0.5 * np.log(a / b)) / np.sqrt(a / b)
    for _ in range(3):
        for got, want in zip(slopes(a, b), (slope / b, -slope * a / b**2), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13)
    log = grad(lambda a, b: np.sum(np.log(a / b)), (0, 1))
    for _ in range(3):
        for got, want in zip(log(a, b), (1 / a, -1 / b), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-15)
    assert log.source(a, b).count("/") <= 2, log.source(a, b)


def test_a_product_that_comes_later():
    """One of the function's, behind a derivative that it takes itself, is no part of that."""
    inner = grad(lambda x, y, z: np.sum(x * y * z * np.sin(x)))

    def fun(x, y, z):
        p = inner(x, y, z)
        q = y * z
        return np.sum(p * q)

    args = [np.random.default_rng(i).normal(size=2048) for i in range(3)]
    derivative, dynamic = grad(fun, (0, 1, 2)), grad(fun, (0, 1, 2), mode="dynamic")
    for _ in range(4):
        for mine, theirs in zip(derivative(*args), dynamic(*args), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)
    assert derivative.cache_info().hits >= 1


def test_numbers_of_single_precision_stay_apart():
    """Their products may be too large, or too small, where no element is."""

    def both_normalised(x, w):
        return np.sum(np.sin(1e6 * (x / x.sum() * w / w.sum())))

    def twice(x, w, s):
        return np.sum(np.sin(x * s * w * s))

    rng = np.random.default_rng(0)
    x, w = (rng.random((2, 2048)) + 0.5).astype("f4")
    calls = (both_normalised, x * np.float32(1e20), w * np.float32(1e25)), (twice, x * np.float32(1e23), w * np.float32(1e23))
    for fun, *args in calls:
        args += [np.float32(1e-23)] * (fun is twice)
        exact = grad(fun, mode="dynamic")(*[np.float64(arg) for arg in args])
        derivative = grad(fun)
        for _ in range(3):
            found = derivative(*args)
            assert found.dtype == np.float32
            assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max()


def test_shares_of_a_sum_with_a_term_twice():
    def fun(w, e, h):
        s = e + h + e
        return np.sum(w - e / s * w - h / s * w)

    args = np.random.default_rng(0).random((3, 5)) + 1
    derivative, expected = grad(fun, (0, 1, 2)), grad(fun, (0, 1, 2), mode="dynamic")(*args)
    for _ in range(3):
        for mine, theirs in zip(derivative(*args), expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)
