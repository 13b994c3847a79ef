"""Convolutions written as sums over taps: the same results as without, in single products."""

import re

import numpy as np
import pytest

from symgrad import grad, value_and_grad, without

RNG = np.random.default_rng(0)


def array(*shape, dtype=float):
    return RNG.standard_normal(shape).astype(dtype)


def line(w, x, n=90, start=0, step=1, stride=1, order=None):
    z = 0
    for k in order or range(len(w)):
        first = start + step * k
        z = z + w[k] * x[first : first + stride * (n - 1) + 1 : stride]
    return np.sum(np.sin(z) * np.arange(n))


def image(w, x, form="bchw,oc->bohw", stride=1, apart=1, back=False):
    kh, kw = w.shape[2:]
    high, wide = [(n - apart * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], (kh, kw), strict=True)]
    z = 0
    for i in range(kh):
        for j in range(kw):
            a, b = i * apart, j * apart
            part = x[:, :, a : a + stride * (high - 1) + 1 : stride, b : b + stride * (wide - 1) + 1 : stride]
            z = z + np.einsum(form, part, w[:, :, kh - 1 - i, j] if back else w[:, :, i, j])
    return np.sum(np.maximum(z, 0.1) ** 2)


def channels_last(w, b, x):
    n = x.shape[1] - len(w) + 1
    z = b
    for k in range(len(w)):
        z = z + x[:, k : k + n] @ w[k]
    return np.mean(np.tanh(z) ** 2)


CASES = {
    "line": (line, (array(7), array(96)), "np.convolve"),
    "line, not from the start": (lambda w, x: line(w, x, start=4), (array(7), array(110)), "np.convolve"),
    "line, backwards": (lambda w, x: line(w, x, start=6, step=-1), (array(7), array(96)), "np.convolve"),
    "line, in another order": (lambda w, x: line(w, x, 200, order=[3, 1, 0, 2]), (array(4), array(203)), "np.convolve"),
    "line, part of the kernel": (lambda w, x: line(w, x, 200, order=[2, 3, 4]), (array(7), array(206)), "np.convolve"),
    "line, one left out": (lambda w, x: line(w, x, 200, order=[0, 1, 2, 4]), (array(7), array(206)), ""),
    "line, with gaps": (lambda w, x: line(w, x, step=2), (array(7), array(110)), ""),
    "line, with stride": (lambda w, x: line(w, x, stride=2), (array(7), array(200)), ""),
    "line, longer than sums may be": (lambda w, x: line(w, x, 70_000), (array(3), array(70_002)), "runtime.correlate"),
    "line, single precision": (line, (array(7, dtype="f"), array(96, dtype="f")), "np.convolve"),
    "line, subtracted": (
        lambda w, x: np.sum(np.sin(x[6:] - w[0] * x[:-6] - w[1] * x[1:-5] - w[2] * x[2:-4])),
        (array(3), array(300)),
        "np.correlate",
    ),
    "image": (image, (array(4, 3, 3, 2), array(2, 3, 9, 10)), "runtime.add_windows"),
    "image, strides": (lambda w, x: image(w, x, stride=2), (array(4, 3, 3, 2), array(2, 3, 19, 20)), "sliding_window_view"),
    "image, gaps": (lambda w, x: image(w, x, apart=2), (array(4, 3, 3, 2), array(2, 3, 19, 20)), "sliding_window_view"),
    "image, kernel turned": (
        lambda w, x: image(w, x, back=True),
        (array(4, 3, 3, 2), array(2, 3, 9, 10)),
        "runtime.add_windows",
    ),
    "image, channels added up": (
        lambda w, x: image(w, x, "bchw,oc->bhw"),
        (array(4, 3, 3, 2), array(2, 3, 9, 10)),
        "sliding_window_view",
    ),
    "channels last": (channels_last, (array(5, 3, 4), array(4), array(6, 30, 3)), "runtime.add_windows"),
}


@pytest.mark.parametrize("case", CASES)
def test_as_without(case):
    fun, args, spelling = CASES[case]
    everything = tuple(range(len(args)))
    with without("taps"):
        plain = value_and_grad(fun, everything)
    derivative = value_and_grad(fun, everything)
    tight = 1e-5 if args[0].dtype == np.float32 else 1e-12
    for scale in (1.0, 0.5, -1.0):
        point = [scale * arg for arg in args]
        (value, slopes), (expected, others) = derivative(*point), plain(*point)
        np.testing.assert_allclose(value, expected, rtol=tight)
        for mine, theirs in zip(slopes, others, strict=True):
            assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(mine, theirs, rtol=tight, atol=tight * np.max(np.abs(theirs)))
    source = derivative.source(*args, fast=True)
    if spelling:
        assert spelling in source
    else:
        assert "np.convolve" not in source
        assert "np.correlate" not in source


def test_few_taps_and_those_used_elsewhere_stay():
    def fun(w, x):
        first = w[0] * x[:-2]
        z = first + w[1] * x[1:-1] + w[2] * x[2:]
        return np.sum(np.sin(z) + np.cos(first))

    w, x = array(3), array(300)
    derivative, dynamic = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    for _ in range(3):
        for mine, theirs in zip(derivative(w, x), dynamic(w, x), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    two = grad(lambda w, x: np.sum(np.sin(w[0] * x[:-1] + w[1] * x[1:])), (0, 1))
    assert "correlate" not in two.source(w, x, fast=True)


def test_products_of_complex_numbers_are_not_conjugated():
    w, x, v = (array(n) + 1j * array(n) for n in (4, 303, 300))
    derivative = grad(lambda w, x, v: sum(w[k] * (x[k : k + 300] @ v) for k in range(4)), holomorphic=True)
    for _ in range(3):
        np.testing.assert_allclose(derivative(w, x, v), [x[k : k + 300] @ v for k in range(4)], rtol=1e-12)


def test_products_of_sums_are_no_correlation():
    w, x, v = array(5), array(204), array(200)
    derivative = grad(lambda w, x, v: sum(w[k] * np.einsum("a,b->", x[k : k + 200], v) for k in range(5)))
    for _ in range(3):
        np.testing.assert_allclose(derivative(w, x, v), [np.sum(x[k : k + 200]) * np.sum(v) for k in range(5)], rtol=1e-12)


def test_sums_of_long_lines_lose_no_digits():
    w, x = array(3), array(1_000_002) + 3.0
    derivative = grad(lambda w, x: np.sum((w[0] * x[:-2] + w[1] * x[1:-1] + w[2] * x[2:]) ** 2))
    exact_x, exact_w = x.astype(np.longdouble), w.astype(np.longdouble)
    z = sum(exact_w[k] * exact_x[k : k + 1_000_000] for k in range(3))
    exact = np.array([2 * np.sum(z * exact_x[k : k + 1_000_000]) for k in range(3)])
    for _ in range(3):
        np.testing.assert_allclose(derivative(w, x), exact.astype(float), rtol=3e-15)


@pytest.mark.parametrize("width", [1, (1, 2), ((0, 1), (2, 0)), ((1,), (2,)), 0])
def test_padding_with_zeros_is_a_slice_written(width):
    fun = lambda x: np.sum(np.sin(np.pad(x, width)) * 1.5) + np.sum(np.pad(x**2, width, constant_values=0.0) ** 2)
    x = array(120, 60)
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    for point in (x, 2 * x, -x):
        np.testing.assert_allclose(derivative(point), dynamic(point), rtol=1e-13)
    assert not re.search(r"= .*np\.pad", re.sub("#.*", "", derivative.source(x, fast=True)))
    assert "np.pad" in grad(lambda x: np.sum(np.sin(np.pad(x, 1, constant_values=2.0)) * np.pad(x, 1, mode="edge"))).source(x)


def test_taps_of_single_precision_summed_in_double():
    """As one product in double precision: no less precise than what adds products in single precision up."""

    def fun(w, x):
        out = np.zeros((12, 10, 4))
        for i in range(3):
            for j in range(3):
                out = out + x[i : i + 12, j : j + 10] @ w[i, j]
        return np.sum(np.tanh(out))

    rng = np.random.default_rng(0)
    w, x = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 3, 2, 4), (14, 12, 2)))
    derivative = grad(fun, (0, 1))
    for _ in range(3):
        found = derivative(w, x)
    for one, expected in zip(found, grad(fun, (0, 1), mode="dynamic")(w.astype(float), x.astype(float)), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)
    assert "sliding_window_view" in derivative.source(w, x, fast=True).partition("# backward")[0]
