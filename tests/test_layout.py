"""Short last axes that are moved to the front: the same derivatives as without, and arrays as they should lie."""

import re

import numpy as np
import pytest

from symgrad import grad, jacobian, runtime, value_and_grad, without

APART = {
    "norms": lambda x, y: np.sum(np.linalg.norm(x[:, None] - y, axis=-1)),
    "squares": lambda x, y: np.sum(np.exp(-np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=2))),
    "einsum": lambda x, y: np.sum(np.exp(-np.einsum("ijk,ijk->ij", x[:, None] - y, x[:, None] - y))),
    "means": lambda x, y: np.sum(np.mean(np.sin(x[:, None] * y), axis=-1) * np.mean(np.cos(x[:, None] * y), axis=2)),
    "elements": lambda x, y: np.sum(np.arctan2((x[:, None] - y)[..., 0], (x[:, None] - y)[..., -1] + 2.5)),
    "nearest": lambda x, y: np.sum(np.min(np.sum((x[:, None] - y) ** 2, axis=2), axis=1)),
    "scales": lambda x, y: np.sum(np.exp(-0.5 * np.sum(((x[:, None] - y) / (1.5 + y[0])) ** 2, axis=-1))),
    "choices": lambda x, y: np.sum(np.where(x[:, None] > y, x[:, None] * y, y - x[:, None]).sum(axis=(0, 2)) ** 2),
    "kept": lambda x, y: np.sum(np.sum(np.abs(x[:, None] - y), axis=2, keepdims=True) * (x[:, None] - y)),
}
STAY = {
    "read otherwise": lambda x, y: np.sum(np.cumsum(np.sin(x[:, None] - y), axis=1) ** 2),
    "large arguments": lambda x, y: np.sum(np.sum(x[:, None] * np.cumsum(x[:, None] * y, axis=0), axis=2) ** 2),
}


def points(size, dtype="f8"):
    rng = np.random.default_rng(0)
    return rng.standard_normal((90, size)).astype(dtype), rng.standard_normal((70, size)).astype(dtype)


@pytest.mark.parametrize("size", [2, 3, 5, 16])
@pytest.mark.parametrize("name", APART | STAY)
def test_derivatives(name, size):
    fun = (APART | STAY)[name]
    args = points(size)
    derivative = grad(fun, (0, 1))
    with without("layout"):
        plain = grad(fun, (0, 1))
    for _ in range(3):
        results = derivative(*args)
    for got, want in zip(results, plain(*args), strict=True):
        assert got.flags.c_contiguous
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12 * np.max(np.abs(want)))
    text = re.sub(r"runtime\.by_columns\((\w+), ", r"\1(", derivative.source(*args, fast=True))  # where they lie as they did
    assert (text != plain.source(*args, fast=True)) == (name in APART)


@pytest.mark.parametrize("name", ["norms", "squares", "means"])
def test_single_precision(name):
    derivative = grad(APART[name], (0, 1))
    args = points(3, "f4")
    expected = grad(APART[name], (0, 1), mode="dynamic")(*[arg.astype(float) for arg in args])
    for _ in range(3):
        results = derivative(*args)
    for got, want in zip(results, expected, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.max(np.abs(want)))


def test_products_that_are_turned_already():
    def loss(w, b, x):
        z = x @ w + b
        return np.sum(np.log(np.sum(np.exp(z - np.max(z, axis=1, keepdims=True)), axis=1)))

    rng = np.random.default_rng(0)
    args = rng.standard_normal((20, 10)), rng.standard_normal(10), rng.standard_normal((2000, 20))
    derivative, expected = grad(loss, (0, 1)), grad(loss, (0, 1), mode="dynamic")(*args)
    for _ in range(3):
        for got, want in zip(derivative(*args), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    with without("layout"):
        assert derivative.source(*args, fast=True) != grad(loss, (0, 1)).source(*args, fast=True)


def test_what_is_a_result_stays_as_it_is():
    x, y = points(3)
    fun = lambda x: x[:, None] * np.sin(y)
    derivative = jacobian(fun)
    with without("layout"):
        plain = jacobian(fun)
    for _ in range(3):
        got = derivative(x[:4])
    np.testing.assert_allclose(got, plain(x[:4]), rtol=1e-14)


def test_variances_and_norms_are_written_out():
    x = np.random.default_rng(0).standard_normal((300, 40))
    for fun in (lambda x: np.sum(np.sqrt(np.var(x, axis=1))), lambda x: np.sum(np.linalg.norm(x, axis=0) ** 3)):
        derivative, expected = grad(fun), grad(fun, mode="dynamic")(x)
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), expected, rtol=1e-12, atol=1e-15)
        code = re.sub("#.*", "", derivative.source(x, fast=True))
        assert "np.var" not in code
        assert "norm" not in code


PLACES, LABELS = np.arange(500), np.arange(500) * 5 % 13 - 6
ROW, COLUMN = np.sin(np.arange(7.0)), np.cos(np.arange(500.0))[:, None]
PICKED = {
    "of a row": lambda x: (x * ROW - COLUMN)[PLACES, LABELS],
    "of a grid": lambda x: (np.exp(x) - COLUMN)[PLACES[::7, None], np.array([0, -1])],
    "of an outer product": lambda x: np.multiply(x[:, :1], x[0])[PLACES, LABELS],
    "of a stack": lambda x: (x[:, None, :] - np.sum(x[:40, :3], -1)[:, None])[PLACES, PLACES % 40, LABELS],
    "of masks": lambda x: (np.exp(x) - COLUMN)[PLACES > 3, 2],
    "of a few": lambda x: (x[:, :1] * ROW)[PLACES[:5], LABELS[:5]],
    "of shares": lambda x: np.log(np.exp(x) / np.sum(np.exp(x), 1, keepdims=True))[PLACES, LABELS],
    "of logarithms": lambda x: (x - np.log(np.sum(np.exp(x), 1, keepdims=True)))[PLACES, LABELS],
}


@pytest.mark.parametrize("name", PICKED)
def test_elements_are_picked_before_they_are_computed(name):
    x = np.cos(np.arange(3500.0)).reshape(500, 7)
    for wrapped in (grad, value_and_grad):
        derivative, dynamic = (wrapped(lambda x: np.sum(PICKED[name](x) ** 2), mode=mode) for mode in ("auto", "dynamic"))
        for _ in range(3):
            for found, expected in zip(derivative(x), dynamic(x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


CROSSED = {
    "alone": lambda x, y: np.sum(np.cross(x, y) ** 2),
    "norms": lambda x, y: np.sum(np.linalg.norm(np.cross(x, y), axis=-1)),
    "with what lies as it did": lambda x, y: np.sum(np.cumsum(x, axis=0) * np.cross(x, y / np.linalg.norm(y, axis=1)[:, None])),
    "of differences": lambda x, y: np.sum(np.cross(x[1:] - x[:-1], y[1:] - x[:-1])[::2] ** 3),
    "one vector": lambda x, y: np.sum(np.sin(np.cross(x, y[0]) - np.cross(np.array([1.0, 2.0, 3.0]), y))),
    "pairs": lambda x, y: np.sum(np.cross(x[:50, None], y[:60]) ** 2 * x[:50, None, :1]),
    "again": lambda x, y: np.sum(np.tanh(np.cross(x, np.cross(x, y) * 2 + y) + x[:, :1])),
    "choices": lambda x, y: np.sum(np.where(np.cross(x, y) > 0.1, x, 0.0) * np.cross(y, x)),
    "added at places": lambda x, y: np.sum(np.cross(x[np.arange(1500) % 7], x[5:1505]) ** 2 * y[:1500]),
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", CROSSED)
def test_vector_products(name, dtype):
    rng = np.random.default_rng(0)
    args = rng.standard_normal((1600, 3)).astype(dtype), rng.standard_normal((1600, 3)).astype(dtype)
    odd = args[0].copy()
    odd[7, 1], odd[9, 2] = np.nan, np.inf
    derivative, plain = value_and_grad(CROSSED[name], (0, 1)), value_and_grad(CROSSED[name], (0, 1), mode="dynamic")
    with np.errstate(all="ignore"):
        for given in (args, (np.asfortranarray(args[0]), args[1]), (odd, args[1])):
            for _ in range(3):
                value, results = derivative(*given)
            other, expected = plain(*given)
            np.testing.assert_allclose(value, other, rtol=2e-5 if dtype == "f4" else 1e-12)
            for got, want in zip(results, expected, strict=True):
                assert got.dtype == dtype
                assert got.flags.c_contiguous
                np.testing.assert_allclose(
                    got, want, rtol=1e-3 if dtype == "f4" else 1e-9, atol=2e-3 if dtype == "f4" else 1e-10
                )
    text = derivative.source(*args, fast=True)
    assert "runtime.cross(" in text
    with without("layout"):
        assert "runtime.cross(" not in value_and_grad(CROSSED[name], (0, 1)).source(*args, fast=True)


def test_vector_products_of_other_vectors_stay():
    x = np.random.default_rng(0).standard_normal((3, 1600))
    fun = lambda x: np.sum(np.cross(x, x**2, axis=0) ** 2)
    assert "cross = np.cross(" in grad(fun).source(x, fast=True)
    np.testing.assert_allclose(grad(fun)(x), grad(fun, mode="dynamic")(x))
    few = x.T[:9].copy()
    assert "cross = np.cross(" in grad(lambda x: np.sum(np.cross(x, x**2) ** 2)).source(few, fast=True)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 3, 3), (2, 3, 1), (1, 3, 3), (3, 1, 2), (3, 2, 3), (1, 1, 1)])
def test_products_of_many_tiny_matrices(shape, dtype):
    """As accurate as NumPy's, wherever the numbers lie; infinities and NaNs where NumPy has them."""
    rng = np.random.default_rng(0)
    rows, inner, columns = shape
    a = rng.standard_normal((2500, rows, inner)).astype(dtype)
    b = rng.standard_normal((2500, inner, columns)).astype(dtype)
    fun = lambda a, b: np.sum(np.sin(a @ b))
    derivative, plain = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    for x, y in ((a, b), (np.asfortranarray(a), b), (a[::-1], b.transpose(0, 2, 1).copy().transpose(0, 2, 1))):
        for _ in range(3):
            value, results = derivative(x, y)
        other, expected = plain(x.astype(np.longdouble), y.astype(np.longdouble))
        np.testing.assert_allclose(value, float(other), rtol=1e-4 if dtype == "f4" else 1e-12)
        for got, want in zip(results, expected, strict=True):
            assert got.dtype == dtype
            assert got.flags.c_contiguous
            np.testing.assert_allclose(got, want.astype(dtype), rtol=0, atol=8 * np.finfo(dtype).eps * np.max(np.abs(want)))
        np.testing.assert_allclose(runtime.matrices(x, y), x @ y, rtol=0, atol=8 * np.finfo(dtype).eps * np.max(np.abs(x @ y)))
    a[7, 0, 0], b[9, 0, 0] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isfinite(runtime.matrices(a, b)), np.isfinite(a @ b))


def test_stacks_of_tiny_matrices_that_are_many():
    rng = np.random.default_rng(0)
    fun = lambda a, b: np.sum(np.sin(a @ b))
    for shape, other, tiny in (
        ((600, 3, 3), (600, 3, 3), True),
        ((40, 3, 3), (40, 3, 3), False),
        ((600, 4, 3), (600, 3, 3), False),
        ((600, 3, 3), (1, 3, 3), False),  # one product of all
        ((2, 600, 3, 3), (2, 600, 3, 3), False),
    ):
        a, b = rng.standard_normal(shape), rng.standard_normal(other)
        derivative = grad(fun, (0, 1))
        for _ in range(3):
            results = derivative(a, b)
        for got, want in zip(results, grad(fun, (0, 1), mode="dynamic")(a, b), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
        assert ("runtime.matrices(" in derivative.source(a, b, fast=True)) == tiny
        with without("layout"):
            assert "runtime.matrices(" not in grad(fun, (0, 1)).source(a, b, fast=True)


def test_values_that_are_gone_make_no_warnings():
    """How a repeated result lies in memory is found out by running it again on what stands in for large arrays."""
    r = np.random.default_rng(0)
    w = r.random((256, 64)), r.random((256, 64, 3))
    choice = lambda w: np.sum(np.sum(w[0][:, :, None] / (1 + np.exp(-w[1])), axis=1) ** 2)
    for mode in ("auto", "dynamic"):
        g, _ = grad(choice, mode=mode)(w)  # warnings are errors
        s = 1 / (1 + np.exp(-w[1]))
        total = 2 * np.sum(w[0][:, :, None] * s, axis=1)
        np.testing.assert_allclose(g, np.sum(total[:, None] * s, axis=2), rtol=1e-12)


# -- what is a view hangs on which way an if went ------------------------------------------------------------------


def swapped_in_a_loop(x):
    a, b = x.copy(), 2.0 * x.T  # by rows, and by columns
    for i in range(5):
        if x[i, 0] > 0:
            a, b = b, a
        else:
            b.ravel()[::6] = 0.5  # of what lies by rows it is a view
    return np.sum(a * 3) + np.sum(b**2)


def read_as_it_lies(x):
    b, s = 2.0 * x, 0.0
    for i in range(5):
        if x[i, 0] > 0:
            b = b.T * 1.0
        s = s + b.ravel("K")[i + 2] * (i + 1)
    return s + np.sum(b**2 * np.arange(5))


def turned_by_ifs(x):
    b = 2.0 * x
    if x[0, 0] > 0:
        b = b.T
    b.ravel()[1:3] = 0.5 * x[0, 1]
    if x[1, 0] > 0:
        b = np.asarray(b.T) * 1.0
    if x[2, 0] > 0:
        b = b + x[0]
    if x[3, 0] > 0:
        b = b * x.T
    b.reshape(25)[7:9] = x[2, 2]
    if x[4, 0] > 0:
        b = b.T
    b.ravel()[3] = x[1, 1]
    return np.sum(b**2 * np.arange(5))


@pytest.mark.parametrize("fun", [swapped_in_a_loop, read_as_it_lies, turned_by_ifs])
def test_ways_that_leave_arrays_lying_otherwise(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(0).normal(size=(40, 5, 5)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-10, atol=1e-12)
