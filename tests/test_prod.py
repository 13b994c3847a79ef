"""Products of all elements: what is left of one when some are taken out, at zeros and at the ends of what floats can tell."""

import itertools

import numpy as np
import pytest

from symgrad import export, grad, hessian, hvp, runtime, vmap, without
from symgrad.sparse import sparse_hessian

RNG = np.random.default_rng(0)


def one_by_one(a, *directions):
    """What ``runtime.others`` promises, term by term."""
    out = np.zeros(len(a), np.result_type(a, *directions))
    for k in range(len(a)):
        rest = [i for i in range(len(a)) if i != k]
        for places in itertools.permutations(rest, len(directions)):
            factors = [directions[places.index(i)][i] if i in places else a[i] for i in rest]
            out[k] += np.prod(factors, dtype=out.dtype)
    return out


def agree(a, *directions):
    found = runtime.others(a, *directions, axis=-1)
    assert not any(np.shares_memory(found, x) for x in (a, *directions))
    np.testing.assert_allclose(found, one_by_one(a, *directions), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("n", range(13))
@pytest.mark.parametrize("count", range(3))
@pytest.mark.parametrize("zeros", range(4))
def test_all_others_one_by_one(n, count, zeros):
    a, *directions = RNG.uniform(0.5, 1.5, (1 + count, n))
    a[: min(zeros, n)] = 0.0
    agree(RNG.permutation(a), *directions)
    agree(a * np.exp(1j * np.arange(n)), *directions)


@pytest.mark.parametrize("axis", [-1, -2, -3])
@pytest.mark.parametrize("n", [1, 3, 4, 12])
def test_along_an_axis_of_arrays_that_broadcast(axis, n):
    shape = [3, 2, 40]
    shape[axis] = n
    a, v = RNG.uniform(0.5, 1.5, shape), RNG.uniform(0.5, 1.5, [1 if k - 3 != axis else n for k in range(3)][max(axis, -2) :])
    for arrays in ([a], [a, a], [a, v], [v, a]):
        found = np.moveaxis(runtime.others(*arrays, axis=axis), axis, -1)
        lines = [np.moveaxis(np.broadcast_to(x, shape), axis, -1) for x in arrays]
        for place in np.ndindex(found.shape[:-1]):
            np.testing.assert_allclose(found[place], one_by_one(*[line[place] for line in lines]), rtol=1e-12)


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_no_digits_are_lost_to_large_and_small_numbers(dtype):
    tiny, big = np.finfo(dtype).tiny * 1e3, np.finfo(dtype).max / 1e3
    ones = np.ones(10, dtype)
    for some in ([tiny, tiny], [tiny], [big], [tiny, big], [tiny**0.5] * 3, [big**0.5]):
        a = ones.copy()
        a[: len(some)] = some
        for v in (ones, ones * dtype(big**0.5), ones * dtype(tiny**0.5)):
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(runtime.others(a, v, axis=-1), one_by_one(a, v), rtol=1e-6)
    np.testing.assert_array_equal(runtime.others(np.r_[np.inf, ones], np.r_[ones, 1], axis=-1), np.r_[10, [np.inf] * 10])


FUNCTIONS = {
    "all": np.prod,
    "and others": lambda x: np.sum(np.sin(x)) * np.prod(np.cos(x)),
    "columns": lambda x: np.sum(np.prod(np.reshape(x, (-1, 4)), axis=0) ** 2),
    "rows": lambda x: np.sum(np.prod(np.reshape(x, (-1, 3)), axis=1) ** 2),
    "two axes": lambda x: np.sum(np.prod(np.reshape(x, (2, -1, 3)), axis=(0, 2)) ** 2),
}


@pytest.mark.parametrize("zeros", [0, 1, 2])
@pytest.mark.parametrize("n", [12, 120])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name, n, zeros):
    fun = FUNCTIONS[name]
    x, v = RNG.uniform(0.8, 1.2, n), RNG.standard_normal(n)
    x[: 2 * zeros : 2] = 0.0
    slope = grad(fun, mode="dynamic")
    step = 1e-5
    expected = (slope(x + step * v) - slope(x - step * v)) / (2 * step)
    with without("simplify"):
        plain = hvp(fun)
    products, matrix, batch = hvp(fun), hessian(fun), vmap(hvp(fun), in_axes=(None, 0))
    for _ in range(3):
        found = products(x, v)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.max(np.abs(expected)))
        np.testing.assert_allclose(plain(x, v), found, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(matrix(x) @ v, found, rtol=1e-10, atol=1e-12 * np.max(np.abs(found)))
        np.testing.assert_allclose(batch(x, np.stack([v, 2 * v])), [found, 2 * found], rtol=1e-12, atol=1e-14)


def test_second_derivatives_are_few_calls():
    x = RNG.uniform(0.8, 1.2, 1000)
    source = hvp(np.prod).source(x, x, fast=True)
    assert source.count("runtime.others") == 1
    assert "cumprod" not in source


def test_third_derivatives():
    x, v, w = RNG.uniform(0.8, 1.2, (3, 5))
    x[1] = 0.0
    third = grad(lambda x: hvp(np.prod)(x, v) @ w)
    for _ in range(3):
        np.testing.assert_allclose(third(x), one_by_one(x, v, w), rtol=1e-12)


def test_sparse_hessians():
    x = RNG.uniform(0.8, 1.2, 40)
    fun = lambda x: np.sum(np.prod(np.reshape(x, (-1, 4)), axis=1))
    found = sparse_hessian(fun, x)
    np.testing.assert_allclose(found.toarray(), hessian(fun)(x), rtol=1e-12)
    assert found.nnz == 40 * 3


def test_exported(tmp_path):
    x = RNG.uniform(0.8, 1.2, 50)
    path = tmp_path / "product.py"
    export(hvp(np.prod), x, x, path=path)
    module = {}
    exec(path.read_text(), module)
    np.testing.assert_array_equal(module["hvp_prod"](x, x), hvp(np.prod)(x, x))


@pytest.mark.parametrize("shape", [(5000,), (4097,), (90, 71), (3, 2000), (2000, 3), (20, 15, 31), (0, 3), (1, 5000)])
def test_all_others_of_many_numbers(shape):
    """From halves, as from both sides; zeros and what is not finite reach all but themselves."""
    x = 1 + np.random.default_rng(0).standard_normal(shape) / 100
    if x.size:
        x.flat[7], x.flat[x.size // 2] = 0.0, np.inf
    for axis in range(-x.ndim, 0):
        with np.errstate(invalid="ignore"):
            want = runtime.others(x, axis=axis)
            np.testing.assert_allclose(runtime.product_of_others(x, axis=axis), want, rtol=1e-12)
            np.testing.assert_allclose(runtime.product_of_others(x, np.empty_like(x), axis=axis), want, rtol=1e-12)


@pytest.mark.parametrize("shape", [(8193,), (31,), (32,), (255,), (256,), (257,), (500, 3), (64, 2, 2), (9, 40)])
@pytest.mark.parametrize("dtype", [float, np.float32, complex])
def test_recurrences_in_parts(shape, dtype):
    rng = np.random.default_rng(0)
    x, ratio = rng.standard_normal(shape).astype(dtype), rng.uniform(-1, 1, (shape[0] - 1, *shape[1:])).astype(dtype)
    ratio[3] = 0
    want = x.copy()
    for i in range(1, len(x)):
        want[i] += ratio[i - 1] * want[i - 1]
    for order in (1, -1):
        got = runtime.recurrence(x[::order], ratio[::order], axis=-len(shape), back=order < 0)
        assert got.dtype == dtype
        tolerance = (1e-5 if dtype is np.float32 else 1e-14) * np.abs(want).max()
        np.testing.assert_allclose(got[::order], want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("width", [1, 3])
def test_recurrences_whose_slopes_overflow_together(width):
    x, ratio = np.zeros((400, width)), np.full((399, width), 1e200)
    x[-1] = 1.0
    want = np.zeros((400, width))
    want[-1] = 1.0
    np.testing.assert_array_equal(runtime.recurrence(x, ratio, axis=-2, back=False), want)


def test_long_running_products():
    x = np.exp(np.random.default_rng(0).standard_normal(10_000) / 50)
    x[4000] = -1.0
    fun = lambda x: np.sum(np.sin(np.cumprod(x)))
    gradient, y = grad(fun), np.cumprod(x)
    for _ in range(3):
        got = gradient(x)
    np.testing.assert_allclose(got, np.cumsum((np.cos(y) * y)[::-1])[::-1] / x, rtol=0, atol=1e-10 * np.abs(got).max())


@pytest.mark.parametrize("spread", [1e-3, 0.05, 0.5])
@pytest.mark.parametrize("zero", [False, True])
def test_running_products_are_as_exact_as_number_by_number(spread, zero):
    """Sums where nothing is zero, and all stays far from the ends of what numbers can hold: as exact as number by number."""
    x = 1 + spread * np.random.default_rng(0).standard_normal(10_000)
    x[5_000] = 0.0 if zero else 1.0
    w = np.random.default_rng(1).standard_normal(x.size)
    s = w.astype(np.longdouble)
    for i in range(x.size - 2, -1, -1):
        s[i] += x[i + 1] * s[i + 1]
    before = np.concatenate(([1.0], np.cumprod(x.astype(np.longdouble))[:-1]))
    derivative = grad(lambda x: np.sum(np.cumprod(x) * w))
    for _ in range(3):
        found = derivative(x)
    known = (before * s).astype(float)
    np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12 * np.max(np.abs(known)))
