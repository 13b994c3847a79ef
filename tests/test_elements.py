"""Elements at an index of several arrays, read and added to by their places in memory."""

import numpy as np
import pytest

import symgrad
import symgrad.runtime


def array(*shape):
    return np.random.default_rng(len(shape)).uniform(0.2, 1.0, shape)


def both(f, *args, wrt=0):
    """The gradient by compiled code, and without optimisations."""
    g = symgrad.grad(f, wrt)
    for _ in range(2):
        found = g(*args)
    with symgrad.without():
        return g, found, symgrad.grad(f, wrt)(*args)


def places(*shape, n=600, signed=True):
    r = np.random.default_rng(len(shape))
    return [r.integers(-m if signed else 0, m, n) for m in shape]


CASES = {
    "a table": lambda x, i, j: np.sum(np.sin(x[i, j]) * np.arange(len(i))),
    "twice": lambda x, i, j: np.sum(x[i, j] * x[i, -1 - j] * x[-1 - i, j]),
    "turned": lambda x, i, j: np.sum(np.exp(x.T[j, i])),
    "two tables": lambda x, i, j: np.sum((2 * x)[i, j] * np.cos(x)[i, j] * x[j % len(x), i % x.shape[1]]),
    "written into": lambda x, i, j: np.sum(added(x, i, j) ** 2),
    "in rows": lambda x, i, j: np.sum(np.sin(x[i, j].reshape(20, -1)) * np.arange(20)[:, None]),
    "masks": lambda x, i, j: np.sum(np.where(np.isfinite(x[i, j]), x[i, j], 0) ** 3),
}


def added(x, i, j):
    total = np.zeros_like(x)
    np.add.at(total, (i, j), np.sin(x[j % len(x), i % x.shape[1]]))
    return total


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("name", CASES)
def test_elements_of_tables(name, order, dtype):
    x = np.asarray(array(7, 5), dtype, order=order)
    g, found, expected = both(CASES[name], x, *places(7, 5))
    np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype == np.float64 else 1e-4)
    assert "runtime.within" in g.source(x, *places(7, 5), fast=True)


def test_places_are_computed_once():
    def f(u, v, i, j):
        for _ in range(4):
            i = (i * 3 + 1) % len(u)
            u, v = np.sin(u), np.cos(v)
            u = u + np.sum(u[i, j] * v[i, j] * u[i, (j + 1) % 5]) * 1e-3
        return np.sum(u * v)

    args = (array(7, 5), array(7, 5), *places(7, 5, signed=False))
    g, found, expected = both(f, *args, wrt=(0, 1))
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    source = g.source(*args, fast=True)
    assert source.count("runtime.sum_elements") == 3
    assert source.count("runtime.within") <= 8


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 2, 3)])
def test_more_axes(shape):
    index = places(*shape)
    x = array(*shape)
    f = lambda x: np.sum(x[tuple(index)] ** 3)
    _, found, expected = both(f, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    flat = np.ravel_multi_index([i % n for i, n in zip(index, shape, strict=True)], shape)
    counts = np.bincount(flat, minlength=x.size)
    hessian = symgrad.hessian(f)
    found = [hessian(x).reshape(x.size, x.size) for _ in range(2)][1]
    np.testing.assert_allclose(found, np.diag(6 * counts * x.ravel()))


@pytest.mark.parametrize("wrong", [5, -6])
def test_a_place_that_is_not_there(wrong):
    f = lambda x, i, j: np.sum(np.sin(x[i, j]))
    g, x, (i, j) = symgrad.grad(f), array(7, 5), places(7, 5)
    for _ in range(3):
        g(x, i, j)
    outside = j.copy()
    outside[100] = wrong
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 1 with size 5"):
        g(x, i, outside)
    np.testing.assert_allclose(g(x, i, j), np.cos(x) * np.bincount(i % 7 * 5 + j % 5, minlength=35).reshape(7, 5))


@pytest.mark.parametrize("n", [30, 3000])
def test_places_along_one_axis(n):
    """On zeros, or where there are no more numbers than places, counted; else added one by one."""

    def f(x, i, j):
        return np.sum(x[i] * np.sin(x[j])) + np.sum(x**2)

    x, i = array(n), np.random.default_rng(0).integers(-n, n, (20, 10))
    g, found, expected = both(f, x, i, i[::-1, ::2].repeat(2, axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    source = g.source(x, i, i, fast=True)
    assert ("runtime.sum_elements" in source) == (n == 30)
    for wrong in (n, -n - 1):
        outside = i.copy()
        outside[3, 4] = wrong
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size {n}"):
            g(x, i, outside)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("order", "CF")
def test_as_many_places_as_elements(dtype, order):
    """Which may be written over the table, or over the places."""
    table = np.asarray(10 * array(30, 40), dtype, order=order)
    i, j = (np.random.default_rng(k).integers(-n, n, (30, 40)) for k, n in enumerate((30, 40)))

    def f(x, t):
        return np.sum((t * 2)[i, j] * np.sin(x)[i, j] * np.cos(x[i, j] * t[i, j]))

    x = np.asarray(array(30, 40), order=order)
    derivative = symgrad.value_and_grad(f)
    for _ in range(3):
        value, slope = derivative(x, table)
    assert value == pytest.approx(f(x, table))
    with symgrad.without():
        np.testing.assert_allclose(slope, symgrad.grad(f)(x, table), rtol=1e-11, atol=1e-12)
    flat = np.arange(1200).reshape(30, 40)[i, j]
    for given in (table, np.ascontiguousarray(table)):
        expected = given[i, j]
        np.testing.assert_array_equal(symgrad.runtime.elements(given, flat), expected)
        np.testing.assert_array_equal(symgrad.runtime.elements(given, flat, np.empty((30, 40), dtype)), expected)
        over = given.copy(order)
        assert symgrad.runtime.elements(over, flat, over) is over
        np.testing.assert_array_equal(over, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_what_is_added_may_lie_where_the_result_goes(dtype):
    i, j = (np.random.default_rng(k).integers(-n, n, (20, 16)) for k, n in enumerate((20, 16)))
    x = array(20, 16).astype(np.float32 if dtype == np.float32 else float)
    table = np.arange(320).reshape(20, 16).astype(dtype)

    def f(x, t):
        y = np.zeros_like(x)
        np.add.at(y, (i, j), x[i, j] ** 2)
        for k in range(12):
            np.add.at(y, (i, j), 0.01 * np.sin(y[j % 20, i % 16] + k))
        z = np.zeros_like(t)
        np.add.at(z, (i, j), i * 3)
        return np.sum(np.sin(x[i, j]) * np.cos(j)) + np.sum(y * y * x) + np.sum(z * x) * 1e-3

    derivative = symgrad.value_and_grad(f)
    with symgrad.without():
        value, slope = symgrad.value_and_grad(f)(x, table)
    for _ in range(4):
        found = derivative(x, table)
        np.testing.assert_allclose(found[0], value, rtol=1e-11 if dtype != np.float32 else 1e-4)
        np.testing.assert_allclose(
            found[1], slope, rtol=1e-10 if dtype != np.float32 else 1e-3, atol=1e-3 * (dtype == np.float32)
        )
    flat, values = np.arange(9).reshape(3, 3), np.arange(9).reshape(3, 3).astype(dtype)
    for out in (flat, values) if dtype == np.int64 else (values,):
        ones, given = np.ones((3, 3), dtype), values.copy()
        if out is flat:
            given, out = values, flat.copy()
            np.testing.assert_array_equal(symgrad.runtime.add_elements(ones, out, given, out), 1 + values)
        else:
            np.testing.assert_array_equal(symgrad.runtime.add_elements(ones, flat, given, given), 1 + values)
    with pytest.raises(IndexError, match="out of bounds"):
        symgrad.runtime.sum_elements(np.array([2**45]), np.ones(1), (3,))


def of_none(x, v, k):
    x = x.copy()
    x[7:7] = v[k] * x[k]
    return np.sum(x * np.arange(9))


def test_sums_of_nothing_are_floats():
    derivative = symgrad.grad(of_none, (0, 1))
    for _ in range(4):
        assert [g.dtype for g in derivative(np.ones(9), np.ones(9), np.zeros(0, int))] == [np.float64, np.float64]
    assert symgrad.runtime.sum_elements(np.zeros(0, int), np.zeros(0), (2, 3)).dtype == np.float64
