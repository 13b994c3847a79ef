"""Where scale factors go: fewer passes over large arrays, the same derivatives to rounding, special values included."""

import re

import numpy as np
import pytest

from symgrad import grad, value_and_grad, without

RNG = np.random.default_rng(0)
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e200, -1e-200, 1e308])
X = RNG.standard_normal(2000)
W = RNG.standard_normal((40, 60))
V = RNG.standard_normal(60)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.sum((e / np.sum(e, axis=1, keepdims=True) * V) ** 2)


def gelu(x):
    return np.sum((0.5 * x * (1.0 + np.tanh(0.8 * (x + 0.04 * x**3))) - V) ** 3 * x)


@pytest.mark.parametrize(
    ("fun", "x", "passes"),
    [
        (rosenbrock, X, 8),
        (lambda x: -(np.sum(x * V) ** 2), V, 1),
        (lambda x: np.sum(np.tanh(0.8 * (x + 0.04 * x**3))), X, 10),
        (lambda x: np.sum((x * V) ** 2) / 7.0, W, 3),
        (lambda x: np.sum((x / np.sqrt(np.abs(V))) ** 2), W, 5),
        (lambda x: np.sum(np.sin(x @ (V / 3.0) / 7.0)), np.tile(W, (50, 1)), None),
        (softmax, W, None),
        (gelu, W, 21),
        (lambda x: np.sum(np.sin(np.sin(x) * x * np.cos(x))), X, 9),
    ],
)
def test_fewer_passes_and_the_same_results(fun, x, passes):
    derivative = grad(fun)
    with without("factors"):
        plain = grad(fun)
    exact = grad(fun, mode="dynamic")(x.astype(np.longdouble)).astype(float)
    odd = np.where(np.arange(x.size).reshape(x.shape) % 9, x, np.resize(ODD, x.shape))
    for given in (x, x, x, odd):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(derivative(given), plain(given), rtol=1e-12, atol=1e-13)
    error, plain_error = [np.max(np.abs(d(x) - exact)) for d in (derivative, plain)]
    assert error <= 2 * plain_error + 1e-16
    calls = r"(?:add|subtract|multiply|divide|square|negative|tanh|absolute)"
    found = re.findall(rf"^ +(?:\w+ = )?{calls}\(", derivative.source(x, fast=True), re.MULTILINE)
    assert passes is None or len(found) == passes


def named(x, y):
    half = 0.5 * (x * y)
    quarter = 0.5 * half
    return np.sum(quarter * np.sin(y))


MULTIPLES = {
    "the same number twice": lambda x, y: np.sum(0.5 * (0.5 * np.tanh(x * y) * y) * x),
    "with names": named,
    "of steps": lambda x, y: np.mean(np.maximum(np.minimum(x - y, 0.0) ** 2 * (x * y), 0)) + np.sum(x * y),
    "quotients": lambda x, y: np.sum(0.25 * (np.sin(x * y) / 4.0) * x) - np.sum(2.0 * -(2.0 * np.cos(x * y))),
}


@pytest.mark.parametrize("case", MULTIPLES)
def test_multiples_of_multiples(case):
    """Their rewriting came back to where it began."""
    fun, args = MULTIPLES[case], (X, X[::-1].copy())
    derivative, dynamic = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    for _ in range(3):
        (value, slopes), (expected, others) = derivative(*args), dynamic(*args)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slopes, others, rtol=1e-12, atol=1e-15)


SUMMED = [
    "np.sum(np.tanh((x - m) / v), axis=0) @ m",
    "np.sum(np.exp(-(((x - m) / v) ** 2)) * np.cos(x * v))",
    "np.sum(np.tanh((x.T * v[:, None] - m[:, None]) / 7.0))",
    "np.sum(np.max(x * v, axis=1) * np.sum(np.abs(x / v), axis=1)) * 0.3",
]


@pytest.mark.parametrize("text", SUMMED)
def test_small_factors_leave_sums(text):
    """Standardised columns: what all numbers of a column are multiplied by, or divided by, is put to their sum."""
    fun = eval(f"lambda x, m, v: {text}", {"np": np})
    x, m, v = np.tile(W, (2, 1)), V, np.abs(V) + 0.5
    derivative = value_and_grad(fun, (1, 2))
    with without("factors"):
        plain = value_and_grad(fun, (1, 2))
    for scale in (1.0, 1.0, 1.0, 1e100, 1e-100):
        (value, slopes), (expected, others) = derivative(x, m, v * scale), plain(x, m, v * scale)
        assert value == pytest.approx(expected, rel=1e-13)
        for got, want in zip(slopes, others, strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.max(np.abs(want)))


def test_no_pass_for_the_scale_of_a_column():
    source = grad(lambda m, v, x: np.sum(np.tanh((x - m) / v) ** 2), (0, 1)).source(V, np.abs(V) + 0.5, W, fast=True)
    assert len(re.findall(r"divide\((?!total)", source)) == 1


def test_only_what_surely_has_an_inverse_is_inverted():
    def shares(x):
        e = np.exp(x)  # all of which may be so small that their sum has no inverse
        return np.sum((e / np.sum(e, axis=1, keepdims=True) * V) ** 2)

    assert "divide(c1, total" in grad(softmax).source(W, fast=True)
    assert "divide(c1, total" not in grad(shares).source(W, fast=True)


def test_attention_scales_what_is_small():
    def loss(q, k):
        scores = q @ k.T / 8.0
        e = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        return np.sum(np.tanh(e / np.sum(e, axis=1, keepdims=True)))

    args = RNG.standard_normal((60, 8)), RNG.standard_normal((50, 8))
    derivative, expected = grad(loss, (0, 1)), grad(loss, (0, 1), mode="dynamic")(*args)
    for _ in range(3):
        for got, want in zip(derivative(*args), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)
    assert re.search(r"multiply\(c0_125, [qk]", derivative.source(*args, fast=True))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_classification(dtype):
    """The largest entry is subtracted, labels are picked: what comes back is a softmax, less one at each label."""

    def loss(w, x, labels):
        z = x @ w
        z = z - np.max(z, axis=1, keepdims=True)
        return -np.mean((z - np.log(np.sum(np.exp(z), axis=1, keepdims=True)))[np.arange(len(x)), labels])

    w, x = RNG.standard_normal((7, 10)).astype(dtype), RNG.standard_normal((900, 7)).astype(dtype)
    labels = RNG.integers(-10, 10, 900)  # negative ones count from the end
    both, expected = value_and_grad(loss), value_and_grad(loss, mode="dynamic")(w, x, labels)
    for _ in range(3):
        value, gradient = both(w, x, labels)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(value, expected[0], rtol=1e-5 if dtype == "f4" else 1e-13)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-3, atol=1e-6 if dtype == "f4" else 1e-15)
    assert "zeros" not in both.source(w, x, labels, fast=True)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_logistic_function_neither_overflows_nor_warns(dtype):
    def loss(z, y):
        return np.sum(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))

    z = np.concatenate([np.linspace(-900, 900, 2995), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(dtype)
    derivative = grad(loss)
    with np.errstate(invalid="ignore"):
        derivative(z, np.zeros_like(z))  # the trace computes the loss, in which infinities meet zeros
    for _ in range(3):
        result = derivative(z[:-5], np.zeros_like(z[:-5]))
    for _ in range(3):
        with np.errstate(invalid="ignore"):
            odd = derivative(z, np.zeros_like(z))[-5:]
    wide = z[:-5].astype(float)
    expected = np.exp(np.minimum(wide, 0)) / (1 + np.exp(-np.abs(wide)))
    np.testing.assert_allclose(result, expected, rtol=1e-5 if dtype == "f4" else 1e-14, atol=np.finfo(dtype).tiny)
    np.testing.assert_array_equal(odd, np.array([0.5, 0.5, 1.0, 0.0, np.nan], dtype))
    assert "logistic" in derivative.source(z[:-5], z[:-5], fast=True)


@pytest.mark.parametrize("fun", [lambda x: np.mean(np.maximum(x, 0.0)), lambda x: np.sum(np.minimum(x, 0.0).mean(axis=0) ** 2)])
def test_steps_of_many_numbers_are_by_signs(fun):
    """... whatever they are multiplied by: NumPy's ``heaviside`` branches at each number."""
    x = np.random.default_rng(0).normal(size=(40, 50))
    x[3, :4] = 0.0, -0.0, 1e-300, -1e-300
    derivative = grad(fun)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x), rtol=1e-12)
    assert "heaviside" not in derivative.source(x, fast=True)
