"""Single rewrites of the tables of ``optimize/simplify.py``: where they apply, where they must not, and what they give."""

import itertools
import re
from contextlib import nullcontext

import numpy as np
import pytest

from symgrad import elementwise_grad, export, grad, jacfwd, jvp, runtime, stop_gradient, value_and_grad, without
from symgrad.ir import Graph, aval_of
from symgrad.ops.core import REGISTRY
from symgrad.optimize import places as places_of_arrays
from symgrad.optimize import rewriting

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
        ((s[[0, 1]], s[2]), True),
        ((s[[1, 0]], s[2]), False),
    ],
)
def test_what_is_added_where_nothing_was_is_written(places, apart):
    fun = parts(*places)
    derivative, expected = grad(fun), grad(fun, mode="dynamic")(X)
    for _ in range(3):
        np.testing.assert_allclose(derivative(X), expected, rtol=1e-13)
    assert ("+=" not in derivative.source(X)) == apart


def _random_writes(seed):
    """A function that writes and reads numbers, rows, columns and parts of them, at random places."""
    rng = np.random.default_rng(seed)
    places = [
        "{i}, {j}",
        "{i}",
        ":, {j}",
        "{i}, :{k}",
        "{k}:, {j}",
        "{i}, {k}:",
        ":{k}, {j}",
        "{k}:, :2",
        "{i}, ::2",
        "-1, {j}",
        "..., {j}",
    ]
    lines = ["def fun(x):", "    y, z = np.zeros_like(x), x * 0.5"]
    for n in range(40):
        one, other = (rng.choice(places).format(i=rng.integers(4), j=rng.integers(6), k=rng.integers(1, 4)) for _ in range(2))
        name, source = rng.choice(["y", "z"], 2)
        operation = rng.choice(["=", "+=", "=", "*="])
        lines.append(f"    {name}[{one}] {operation} np.sin(np.sum({source}[{other}]) + x[{n % 4}, {n % 6}])")
    space = {"np": np}
    exec("\n".join([*lines, "    return np.sum(np.sin(y) * 2 + z)"]), space)
    return space["fun"]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_read_after_writes_is_the_last_of_them(seed):
    fun = _random_writes(seed)
    derivative = value_and_grad(fun)
    expected, other = value_and_grad(fun, mode="dynamic")(X)
    for _ in range(3):
        value, slope = derivative(X)
        assert value == pytest.approx(expected)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-12)


def test_few_writes_are_looked_at_for_what_is_read(monkeypatch):
    def factor(a):
        a = a.copy()
        for i in range(len(a)):
            for j in range(i):
                a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
            a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
        return np.sum(np.log(np.diag(a)))

    looks = []
    apart = places_of_arrays._disjoint
    monkeypatch.setattr(places_of_arrays, "_disjoint", lambda *args: looks.append(args) or apart(*args))
    counts = []
    for n in (11, 22):
        derivative, a = grad(factor), np.eye(n) * 3 + 0.1
        looks.clear()
        for _ in range(2):
            derivative(a)
        np.testing.assert_allclose(np.tril(derivative(a) + derivative(a).T, -1), np.tril(np.linalg.inv(a), -1), atol=1e-12)
        counts.append(len(looks))
    assert 0 < counts[1] < 6 * counts[0]  # there are four times as many reads


FEW, MANY = np.array([True, False, True]), np.isin(np.arange(1600), [1, 7])


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: np.exp(x * 3.0)[FEW, [-1, 2]], X[:3]),
        (lambda x: (np.arange(3)[:, None] * 2.5 * np.ones(3))[FEW, [0, 1]] * x[0, 0], X),
        (lambda x: (2.0 * np.exp(x))[MANY, [0, 1]], np.tile(X, (400, 100))),
        (lambda x: (x[0, 0] * np.exp(x))[MANY, [0, 1]], np.tile(X, (400, 100))),
    ],
)
@pytest.mark.usefixtures("sharing")
def test_factors_move_out_of_what_a_mask_and_places_pick(fun, x):
    total = lambda x: np.sum(fun(x))
    expected = grad(total, mode="dynamic")(x)
    for _ in range(4):
        np.testing.assert_allclose(jvp(total, (x,), (np.ones_like(x),))[1], np.sum(expected))
    derivative = grad(total)
    for _ in range(4):
        np.testing.assert_allclose(derivative(x), expected)


THROUGHOUT = [s[:], s[...], s[:, :], s[..., :], s[0:, :6], s[::-1], s[:, ::-1]]


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_what_is_written_throughout_is_the_array(place, dtype):
    def fun(x):
        y = x.copy()
        y[place] = np.sin(y[place])
        y[place] *= y
        z = np.ones_like(y)
        z[place] = np.sum(y, axis=0)
        return np.sum(y**2) + np.sum(z * x)

    x = X.astype(dtype)
    derivative, expected = grad(fun), grad(fun, mode="dynamic")(x)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-13 if dtype == "f8" else 1e-5)
        assert derivative(x).dtype == x.dtype
    assert not re.search(r"\] [+*]?= ", re.sub("#.*", "", derivative.source(x)))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c8"])
@pytest.mark.parametrize("place", [s[:1, :3:-2], s[:0, ::-2], s[::-1, 0:0], s[:, ::2]])
def test_what_is_written_into_an_empty_array_has_a_shape_of_its_own(place, dtype):
    def added(x):
        y = x * 1
        np.add.at(y, place, np.sin(x[place]) * 2)
        return y * x

    for shape in ((0, 3), (0, 0)):
        x = np.ones(shape, dtype)
        for fun in (lambda x: np.sin(x[place]) * np.zeros(x[place].shape), added):
            derivative = value_and_grad(lambda x, fun=fun: np.real(np.sum(fun(x))))
            for _ in range(3):
                _, found = derivative(x)
                assert (found.shape, found.dtype) == (x.shape, x.dtype)


def test_rows_of_empty_arrays_are_taken_apart():
    scales, none = np.array([[-0.57], [1.45]]), np.zeros((0, 0))
    derivative = value_and_grad(lambda x: np.vdot(none, np.array([a * b for a, b in zip(x, scales, strict=True)])[3::3, ::-1]))
    for _ in range(3):
        value, found = derivative(np.zeros((2, 0)))
        assert value == 0.0
        assert found.shape == (2, 0)


def test_parts_are_read_and_written_as_they_were():
    def fun(x):
        y = x.copy()
        y[1:] = np.sin(y[1:])
        y[..., :-1] = y[:, 1:]
        return np.sum(y[0:3] ** 2) + np.sum(y[::-1] * x)

    derivative, expected = grad(fun), grad(fun, mode="dynamic")(X)
    for _ in range(3):
        np.testing.assert_allclose(derivative(X), expected, rtol=1e-13)


def test_rows_are_added_to_what_nobody_else_reads():
    def fun(p):
        p = p.copy()
        for k in range(4):
            p[:] = np.minimum(p, np.add.outer(p[:, k], p[k, :]))
        return np.sum(p**2)

    x = 1.5 + np.sin(np.arange(100.0)).reshape(10, 10)
    derivative, expected = grad(fun), grad(fun, mode="dynamic")(x)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-13)
    assert "zeros" not in derivative.source(x, fast=True)
    assert ".copy()" not in derivative.source(x, fast=True).partition("return")[0]


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


SUMS = {
    "np.sum(x[0] * y[0])": ".dot(",
    "np.sum(x[0] ** 2)": ".dot(",
    "np.sum(x * y)": "np.vdot(",
    "np.sum(np.exp(np.sum(x * y, axis=1)))": "np.vecdot(",
    "np.sum(np.sin(np.sum(x * y, axis=1, keepdims=True)) * x)": "",
    "np.sum(np.sin(np.sum(x * y, axis=0)))": "",
    "np.sum(x * y[0])": "",
    "np.mean(x * y) + np.mean(x[0] ** 2)": "np.vdot(",
    "np.mean(x * y, axis=1)[0] * np.sum(x.T * y.T)": "",
}


@pytest.mark.parametrize("dtype", [float, np.float32, complex])
@pytest.mark.parametrize("text", SUMS)
def test_sums_of_few_products_are_one_call(text, dtype):
    fun = eval(f"lambda x, y: np.real({text})" if dtype is complex else f"lambda x, y: {text}", {"np": np})
    args = [x.astype(dtype) for x in (X, np.cos(X))]
    with without("lower"):
        plain = value_and_grad(fun, argnums=(0, 1))
    derivative = value_and_grad(fun, argnums=(0, 1))
    for scale in (1.0, 1.0, 1.0, 0.0, np.inf, np.nan):
        with np.errstate(all="ignore"):
            (value, slopes), (expected, others) = (d(*[scale * x for x in args]) for d in (derivative, plain))
        assert type(value) is type(expected)
        np.testing.assert_allclose(value, expected, rtol=1e-13 if dtype is not np.float32 else 1e-5)
        for got, want in zip(slopes, others, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-13 if dtype is not np.float32 else 1e-5)
    if dtype is float:
        with without("scalarize"):
            whole = value_and_grad(fun, argnums=(0, 1))
        assert SUMS[text] in whole.source(*args, fast=True)


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


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_choices_are_made_by_bits(dtype):
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1.5, -2.5], dtype)
    x, mask = np.tile(odd, 512), np.random.default_rng(0).random(4096) < 0.5
    fun = lambda x, y: np.sum(np.where(mask, x, y) * np.where(mask, 0, x) + np.where(mask, y, -1.5))
    derivative = grad(fun, (0, 1))
    with without("lower"):
        plain = grad(fun, (0, 1))
    with np.errstate(invalid="ignore"):
        assert "runtime.select" in derivative.source(x, x[::-1], fast=True)
        assert "runtime.select" not in plain.source(x, x[::-1], fast=True)
        for _ in range(3):
            results = derivative(x, x[::-1])
        for got, want in zip(results, plain(x, x[::-1]), strict=True):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got[want != 0]), np.signbit(want[want != 0]))


@pytest.mark.parametrize("over", [0, 1, None])
def test_choices_written_over_what_they_choose_from(over):
    mask = np.random.default_rng(0).random((30, 30)) < 0.5
    args = [np.arange(900.0).reshape(30, 30), -np.arange(900.0).reshape(30, 30).T]
    for a, b in (args, [args[0], args[0].T], [args[0], 0.0], [2.5, args[1]]):
        expected, given = np.where(mask, a, b), [np.array(a, order="K"), np.array(b, order="K")]
        out = None if over is None or given[over].ndim == 0 else given[over]
        if b is getattr(a, "T", None):
            given[1] = given[0].T
        bits = runtime.bits(mask)
        result = runtime.select(mask, *given, out)
        assert out is None or result is out
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(runtime.select(bits, a, b), expected)


BIG = np.sin(np.arange(3000.0)).reshape(40, 75)
SUMS_OF_MANY = {
    "np.sum(x * y)": 1,
    "np.mean((x - y) ** 2)": 1,
    "np.sum(2.0 * x**2 + y**2)": 2,
    "np.sum(x.T * y.T)": 1,
    "np.sum(x * x[:1]) + np.sum(x.T[:40, :] * y[:, :40])": 1,
    "np.sum(x[:, None, :] ** 2 + y[:5] ** 2)": 0,
    "np.sum(x[:, ::2] * y[:, 1:39])": 1,
    "np.sum(x * y, axis=1)[3] + np.sum(x * y, axis=0)[2]": 0,
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("text", SUMS_OF_MANY)
def test_sums_of_many_products_make_no_products(text, dtype, order):
    fun = eval(f"lambda x, y: {text}", {"np": np})
    args = np.array(BIG, dtype, order=order), np.array(np.cos(BIG) + 0.1, dtype)
    derivative = value_and_grad(fun, (0, 1))
    with without("lower"):
        plain = value_and_grad(fun, (0, 1))
    for _ in range(3):
        (value, slopes), (expected, others) = derivative(*args), plain(*args)
    assert type(value) is type(expected)
    assert len(re.findall(r"runtime\.inner|np\.vdot", derivative.source(*args, fast=True))) == SUMS_OF_MANY[text]
    exact = fun(*[arg.astype(np.longdouble) for arg in args])
    assert abs(value - exact) <= max(3 * abs(expected - exact), 1e-15 if dtype == "f8" else 1e-6) * max(1.0, abs(float(exact)))
    for got, want in zip(slopes, others, strict=True):  # sums of numbers as large as the largest of them
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=2 * np.finfo(dtype).eps * np.max(np.abs(want)))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("size", [4, 40])
def test_traces_of_products_need_no_product(size, dtype):
    fun = lambda x, y: np.real(np.trace(x @ y)) ** 2 + np.real(np.trace(np.exp(y) @ x))
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(shape).astype(dtype) for shape in ((size, size + 3), (size + 3, size))]
    derivative, dynamic = (value_and_grad(fun, (0, 1), mode=mode) for mode in ("auto", "dynamic"))
    tolerance = 1e-11 if dtype != "f4" else 1e-3
    for _ in range(3):
        (value, slopes), (expected, others) = derivative(*args), dynamic(*args)
        assert value == pytest.approx(expected, rel=tolerance)
        for got, want in zip(slopes, others, strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    with without("scalarize"):
        assert "trace(" not in re.sub("#.*", "", value_and_grad(fun).source(*args, fast=True))


@pytest.mark.parametrize(("n", "k", "m"), [(1, 4, 3), (3, 4, 1), (2, 4, 3), (1, 40, 70), (70, 40, 1), (30, 2, 50), (1, 1, 4)])
@pytest.mark.parametrize("trace", [np.trace, lambda x: np.sum(np.diag(x)), lambda x: np.sum(np.diagonal(x))])
def test_traces_of_products_that_are_not_square(trace, n, k, m):
    fun = lambda x, y: trace(x @ y) ** 2
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((n, k)), rng.standard_normal((k, m))
    part = np.eye(n, m)
    expected = [2 * np.trace(x @ y) * slope for slope in (part @ y.T, x.T @ part)]
    for off in ((), ("scalarize",)):
        with without(*off):
            derivative = value_and_grad(fun, (0, 1))
            for _ in range(3):
                value, slopes = derivative(x, y)
                assert value == pytest.approx(fun(x, y), rel=1e-12)
                for got, want in zip(slopes, expected, strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)
            assert derivative.cache_info().currsize == 1  # it is code


RUNTIME = [
    "np.sum(np.exp(-x * y / s) / s)",
    "np.sum(np.tanh(x / s) * y) * s",
    "np.sum(np.sin(s * x) / t @ y.T)",
    "np.sum(np.sqrt(x**2 / s**2 + t)) / t",
    "np.sum((s * x - t * y) ** 2 * s / t)",
    "np.sum(np.cos(x[1:] / s) * y[1:] / t - np.sin(x[1:] * t) / t / s)",
    "np.sum(np.outer(x[0] * s, np.tanh(y[0] / t)) ** 2)",
]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("text", RUNTIME)
def test_numbers_move_outward(text, dtype):
    fun = eval(f"lambda s, t, x, y: {text}", {"np": np})
    x, y = X.astype(dtype), np.cos(X).astype(dtype)
    for make in (grad, value_and_grad):
        derivative = make(fun, (0, 1, 2, 3))
        with without():
            plain = make(fun, (0, 1, 2, 3))
        for s, t in ((0.7, 1.3), (2.5, 0.25), (1.0, 1e-3), (-3.0, 2.0), (np.float64(0.5), np.float32(1.5)), (0.7, 1.3)):
            got, want = (np.concatenate([np.ravel(part) for part in _leaves(d(s, t, x, y))]) for d in (derivative, plain))
            assert got.dtype == want.dtype
            size = np.max(np.abs(want))
            np.testing.assert_allclose(got, want, rtol=0, atol=size * (1e-13 if dtype == "f8" else 1e-5))


def _leaves(tree):
    return [leaf for item in tree for leaf in _leaves(item)] if isinstance(tree, tuple) else [tree]


def test_numbers_leave_sums():
    def fun(s, x):
        return np.sum(np.exp(-x / s) * s)

    source = grad(fun).source(0.7, X).split("# backward")[1]
    assert source.count("np.sum(") == 2
    assert "* s)" not in source


@pytest.mark.parametrize("choice", ["np.where(x > 0, np.sin(x) / 7, np.cos(x) / 7)", "np.maximum(x, 0) * -3.0"])
def test_factors_leave_choices(choice):
    fun = eval(f"lambda x: np.sum({choice} * x / 5)", {"np": np})
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    odd = np.where(np.arange(24).reshape(4, 6) % 5, X, 0.0)
    for x in (X, X, X, odd):
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-13, atol=1e-16)


SLICED = {
    "a slice": lambda x, y: np.sum((np.exp(x) * y)[:, 1:-1] ** 3),
    "slices of slices": lambda x, y: np.sum(np.sin((x[1:] - y[:-1])[:-1, 2:]) * x[1:-1, :-2]),
    "a broadcast": lambda x, y: np.sum(np.tanh((x * y[0] + y[:, :1])[2:, ::2])),
    "read twice": lambda x, y: np.sum((z := np.exp(x * y))[1:] * z[:-1]),
    "backwards": lambda x, y: np.sum(np.cos(x * y)[::-1] * y[:, ::-1]),
}


def test_numbers_have_common_factors_too():
    damped = grad(lambda x: np.exp(-x) * np.sin(x))
    for x in (0.5, 0.7, -3.0, 800.0):
        np.testing.assert_allclose(damped(x), np.exp(-x) * (np.cos(x) - np.sin(x)), rtol=1e-13)
    assert damped.source(0.5, fast=True).count("*") == 1
    written = grad(lambda x, y: np.sin(x * y - x * np.sqrt(y)), (0, 1))  # what the user wrote is computed as written
    for _ in range(3):
        written(0.5, 2.0)
    assert "x * y - x * " in written.source(0.5, 2.0, fast=True)


@pytest.mark.parametrize("name", SLICED)
def test_slices_are_taken_before(name):
    fun = SLICED[name]
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 50)), rng.normal(size=(40, 50))
    with without("lower"):
        plain = value_and_grad(fun, (0, 1))
    derivative = value_and_grad(fun, (0, 1))
    for _ in range(3):
        (value, gradients), (other, others) = derivative(x, y), plain(x, y)
    np.testing.assert_allclose(value, other, rtol=1e-13)
    for got, want in zip(gradients, others, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_what_is_cut_away_is_not_computed():
    def fun(x, y):
        return np.sum(np.log(x)[1:] * y[1:])

    x, y = np.arange(2000.0), np.ones(2000)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert "log(x[1:])" in value_and_grad(fun).source(x, y, fast=True)


CUBE = np.sin(np.arange(2280.0)).reshape(30, 4, 19)


@pytest.mark.parametrize(
    ("pick", "in_order"),
    [
        (lambda x: x[np.arange(30), 1], True),
        (lambda x: x[1, np.arange(4)], True),
        (lambda x: x[:, np.arange(4), -1], True),
        (lambda x: x[np.arange(30)], True),
        (lambda x: x[1, :, np.arange(19)], False),  # which are the rows of the result
        (lambda x: x[np.arange(20), 1], False),
        (lambda x: x[:2, 1][np.array([False, True])], False),  # a mask
        (lambda x: x[np.arange(30)[::-1], 1], False),
        (lambda x: x[np.arange(30), [1, 0, 2] * 10], False),
        (lambda x: x[np.arange(30)[:, None], 1], False),
    ],
)
def test_places_in_order_are_a_slice(pick, in_order):
    fun = lambda x: np.sum(np.sin(pick(x)) ** 2)
    derivative, expected = value_and_grad(fun), value_and_grad(fun, mode="dynamic")(CUBE)
    for _ in range(3):
        value, slopes = derivative(CUBE)
        np.testing.assert_allclose(value, expected[0], rtol=1e-13)
        np.testing.assert_allclose(slopes, expected[1], rtol=1e-13)
    assert ("const" not in derivative.source(CUBE, fast=True).split("# backward")[0]) == in_order


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
def test_repeated_rows_add_up(dtype):
    rng = np.random.default_rng(0)
    rows, columns, every = rng.integers(0, 7, (600, 4)), rng.integers(0, 5, (4,)), slice(None)
    cases = [
        ((7, 5), rows, (600, 4, 5)),
        ((7, 5), rows - 7, (600, 4, 5)),
        ((7, 5), rows.astype("i1"), (600, 4, 1)),
        ((7, 5), rows.astype("u1"), (5,)),
        ((7, 5, 6), (rows, columns), (600, 4, 6)),
        ((7, 5, 6), (rows, columns - 5), (600, 4, 6)),
        ((7, 5, 6), (rows.astype("i1"), columns.astype("i4"), every), (600, 4, 6)),
        ((2999, 5), rows, (600, 4, 5)),
        ((2999, 5), rows - 2999, (600, 4, 5)),
        ((7, 5), (rows, columns), (600, 4)),
        ((7, 5), (slice(1, 3), columns.repeat(600)), (2, 2400)),
        ((7,), rows, (600, 4)),
        ((7, 5), rows[:0], (0, 4, 5)),
        ((7, 0), rows, (600, 4, 1)),
        ((7, 700), np.array(3), (700,)),
        ((7, 900), rows[:30], (30, 1, 900)),
        ((3, 7, 6), (every, rows), (3, 600, 4, 6)),
        ((3, 7, 6), (every, rows - 7, every), (3, 600, 4, 6)),
        ((3, 2, 7), (every, every, rows), (2, 600, 4)),
        ((3, 7, 5, 2), (every, rows, columns), (3, 600, 4, 2)),
        ((3, 7, 5), (every, rows[:, 0], slice(1, 3)), (3, 600, 2)),
        ((3, 7), (0, rows), (600, 4)),
        ((7,), rows, (600, 4)),
        ((7,), rows, (600, 1)),
        ((3, 7, 5), (2, rows, every), (600, 4, 5)),
        ((3, 5, 7), (2, every, rows), (600, 4, 5)),
        ((3, 5, 7), (every, 4, rows), (3, 600, 4)),
        ((3, 7, 5), (..., rows, every), (3, 600, 4, 5)),
        ((3, 7, 5), (0, None, rows), (600, 4, 1, 5)),
        ((3, 5, 7), (0, ..., rows), (600, 4, 5)),
    ]
    for shape, places, size in cases:
        value = (10 * rng.normal(size=size)).astype(dtype)
        for out in (np.ones(shape, dtype), np.asfortranarray(np.ones(shape, dtype))):
            expected = out.copy()
            np.add.at(expected, places, value)
            runtime.add_each(out, places, value)
            np.testing.assert_array_equal(out, expected)
    n, every = 2900, slice(None)
    wild = np.full(n, -(2**63))  # which NumPy makes of NaN; the place of its row in memory would be 0 again
    for wrong in (np.full(n, 7), np.full(n, -8), wild, wild // 4):
        with pytest.raises(IndexError):
            runtime.add_each(np.zeros((7, 8)), wrong, np.ones((n, 8)))
    with pytest.raises(IndexError):
        runtime.add_each(np.zeros((2 * n, 8)), wild, np.ones((n, 8)))
    for wrong in ((np.zeros(n, int), np.full(n, 8)), (wild, wild)):
        with pytest.raises(IndexError):
            runtime.add_each(np.zeros((7, 8)), wrong, np.ones(n))
    for places in (np.full(n, 8), np.full(n, -9), wild):
        with pytest.raises(IndexError):
            runtime.add_each(np.zeros((7, 8)), (every, places), np.ones((7, n)))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("text", ["(0, x)", "(x, 0.0)", "(-2.5, x)", "(x, 3)", "(0, -x)", "(-2 * x, 0.5)", "(0, 1.25 * x)"])
def test_slopes_of_softplus_are_logistic_functions(text, dtype):
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1.5, -2.5, 40.0, -40.0, -60.0, 900.0, -900.0], dtype)
    x = np.tile(odd, 200)
    fun = eval(f"lambda x: np.sum(np.logaddexp{text})", {"np": np})
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    with np.errstate(invalid="ignore"):  # NumPy warns of NaNs
        for point in (x, x[::-1], 0.5 * x):
            found, expected = derivative(point), dynamic(point)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=1e-14 if dtype == "f8" else 1e-5)
        assert "runtime.logistic" in derivative.source(x, fast=True)
        assert "runtime.logistic" in derivative.source(x[:128], fast=True)
        both = grad(lambda x: np.sum(np.logaddexp(x, x[::-1])))
        assert "logistic" not in both.source(x, fast=True)


@pytest.mark.parametrize("columns", [1, 3, 4, 5])
def test_few_columns_add_up_one_by_one(columns):
    rng = np.random.default_rng(0)
    places = rng.integers(0, 7, (800, 2))
    flat = places[:, 0]
    wrong = [np.full(800, 7), np.full(800, -8)]
    for at in (places, places.T, flat, flat - 7, flat.astype("i1"), flat[:5], *wrong):
        _add_up((7, columns), at, rng.normal(size=(*at.shape, columns)))
    for at in ((places, places % 2), (places, np.arange(2)), (places, np.array([0, 2]))):
        _add_up((7, 2, columns), at, rng.normal(size=(800, 2, columns)))


@pytest.mark.parametrize(
    "read", ["x[I]", "x[..., I]", "x[I, ...]", "x[I.astype('u4')]", "np.take(x, I)", "np.concatenate([x, x])[I]"]
)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_one_row_for_all_that_index_arrays_read_of_an_axis(read, mode):
    """``np.add.at`` adds what lies behind a row, where it is to be added at many rows of places along one axis."""
    rng = np.random.default_rng(0)
    x, w, places = rng.normal(size=60), rng.normal(size=60), rng.integers(0, 60, (7, 60))
    total = np.bincount(places.ravel(), np.tile(w, 7), 60)
    slope = grad(eval(f"lambda x, I, w: np.sum({read} @ w)", {"np": np}), mode=mode)
    for k in (1.0, 1.0, 2.0):
        np.testing.assert_allclose(slope(x, places, k * w), k * total, 1e-12)
    if mode == "auto":
        module = {}
        exec(export(slope, x, places, w), module)
        np.testing.assert_allclose(next(v for k, v in module.items() if k.startswith("grad"))(x, places, w), total, 1e-12)


def _add_up(shape, places, value):
    out, expected = np.ones(shape), np.ones(shape)
    try:
        np.add.at(expected, places, value)
    except IndexError:
        with pytest.raises(IndexError):
            runtime.add_each(out, places, value)
    else:
        runtime.add_each(out, places, value)
        np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(200,), (40, 5), (1, 200), (5, 8, 5)])
def test_few_columns_are_read_at_index_arrays_of_any_shape(shape):
    rng = np.random.default_rng(0)
    x, places, weights = rng.normal(size=(7, 3)), rng.integers(0, 7, shape), rng.normal(size=(*shape, 3))
    derivative = grad(lambda x: np.sum(x[places] ** 2 * weights))
    sums = np.zeros((7, 3))
    np.add.at(sums, places, weights)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), 2 * x * sums, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum])
def test_many_short_rows_are_put_together_in_long_ones(ufunc, dtype):
    rng = np.random.default_rng(0)
    for shape in [(1000, 3), (1024, 4), (255, 2), (256, 1), (700, 2, 3), (90, 200), (3, 0), (0, 3), (5000,)]:
        x = (rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype == "c16" else 0)).astype(dtype)
        if ufunc is not np.add and not len(x):
            continue
        for given in (x, np.asfortranarray(x), x[::-1]):
            for keepdims in (False, True):
                got, want = runtime.reduce_rows(ufunc, given, keepdims), ufunc.reduce(given, 0, keepdims=keepdims)
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "f4" else 1e-11, atol=1e-4)
    odd = rng.normal(size=(1000, 3))
    odd[500, 0], odd[700, 1], odd[3, 2] = np.nan, np.inf, -np.inf
    np.testing.assert_allclose(runtime.reduce_rows(ufunc, odd), ufunc.reduce(odd, 0))


def test_sums_of_many_short_rows_lose_no_digits():
    x = np.random.default_rng(0).random((200_000, 3)).astype("f4")
    exact = np.sum(x.astype("f8"), 0)
    assert np.all(np.abs(runtime.reduce_rows(np.add, x) - exact) <= np.abs(np.sum(x, 0) - exact) + 1e-6 * exact)


SHORT_ROWS = {
    "standardised": lambda x, s: np.sum(((x - np.mean(x, axis=0)) / np.std(x, axis=0) * s) ** 4),
    "scaled": lambda x, s: np.sum(np.tanh(x * s[None, :] + s) * np.exp(-x)),
    "softmax": lambda x, s: np.sum(np.log(np.sum(np.exp(x * s), axis=1, keepdims=True)) ** 2),
    "row sums": lambda x, s: np.sum(np.sum(np.sin(x) * x, axis=1) ** 2) + np.sum(np.max(x, axis=0) * s),
    "column means": lambda x, s: np.sum(np.sin(np.mean(x * x, axis=0, keepdims=True) * s) + np.sum(x, axis=0) * s),
}


@pytest.mark.parametrize("name", SHORT_ROWS)
@pytest.mark.parametrize("columns", [2, 5, 31])
def test_arrays_of_short_rows(name, columns):
    fun = SHORT_ROWS[name]
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(9001, columns)), rng.normal(size=columns)
    with without("lower", "blocks", "contract"):
        plain = value_and_grad(fun, (0, 1))
    derivative = value_and_grad(fun, (0, 1))
    for given in (x, np.asfortranarray(x)):
        for _ in range(3):
            (value, gradients), (other, others) = derivative(given, s), plain(given, s)
        np.testing.assert_allclose(value, other, rtol=1e-12)
        for got, want in zip(gradients, others, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10 * np.max(np.abs(want)))


SHORT_AXES = {
    "pooled maxima": lambda x: np.sum(np.max(x.reshape(40, 3, 2, 20, 3), axis=(1, 4)) ** 2),
    "pooled means": lambda x: np.sum(np.mean(x.reshape(40, 6, 10, 2, 3), axis=(3,), keepdims=True) ** 3),
    "minima of rows": lambda x: np.sum(np.min(x, axis=-1, keepdims=True) * x),
    "sums of rows": lambda x: np.sum(np.exp(np.sum(x, axis=-1))) + np.sum(np.sum(x.reshape(-1, 6), axis=1) ** 2),
    "products of rows": lambda x: np.sum(np.sqrt(np.einsum("ij,ij->i", x, x) + 1.0) * np.einsum("ij,ij->i", x, x[::-1])),
    "norms": lambda x: np.sum(np.linalg.norm(x, axis=-1)),
    "rows": lambda x: np.sum(np.sum(x[PLACES] * x[PLACES[::-1]], axis=-1) ** 2) + np.sum(x[PLACES.astype("i4"), :] ** 3),
    "columns": lambda x: np.sum(x.reshape(40, 360)[:, PLACES % 360] ** 2) + np.sum(x[..., PLACES % 3] ** 3),
    "sums before short rows": lambda x: (
        np.sum(np.sum(np.sin(x.reshape(60, 20, 12)), axis=1) ** 2) + np.sum(x.reshape(9, 2, 40, 20).sum((1, 2)) ** 3)
    ),
    "means before short rows": lambda x: np.sum(
        x.reshape(60, 40, 6) * np.mean(x.reshape(60, 40, 6) ** 2, axis=-2, keepdims=True)
    ),
    "factors of rows": lambda x: (
        np.sum(np.sin(np.prod(x, axis=-1))) + np.sum(np.prod(x.reshape(-1, 8), axis=1, keepdims=True) ** 2)
    ),
    "factors of two axes": lambda x: np.sum(np.prod(x.reshape(40, 20, 2, 3, 3), axis=(2, 4)) ** 2),
    "running factors": lambda x: np.sum(np.cumprod(x, axis=1) ** 2) + np.sum(np.cumprod(x.reshape(20, 6, 120), axis=-2)),
    "factors put together": lambda x: np.sum(
        (np.stack([x[:, 0], x[:, 1]]) * np.stack([x[:, 2] ** 2, x[:, 0]])) ** 2
        + np.stack([x[:, 1], x[:, 1]], axis=-2) * np.stack([x[:, 2], x[:, 2]], axis=0)[::-1]
    ),
    "tables": lambda x: np.sum(np.sin(x[PLACES.reshape(20, 50) - 2000])),
}
PLACES = np.random.default_rng(3).integers(0, 2000, 1000)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("name", SHORT_AXES)
def test_reductions_along_short_axes(name, dtype):
    """As NumPy has them, ties and NaN too; ``take`` for rows at places."""
    if dtype == "c16" and name in ("pooled maxima", "minima of rows", "norms"):
        return
    fun = (lambda x: np.real(SHORT_AXES[name](x))) if dtype == "c16" else SHORT_AXES[name]
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(4800, 3)) + (1j * rng.normal(size=(4800, 3)) if dtype == "c16" else 0.0), 1).astype(dtype)
    odd = x.copy()
    odd[7, 1] = np.nan
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    with np.errstate(all="ignore"):
        for given in (x, odd, np.asfortranarray(x)):
            for _ in range(3):
                got = derivative(given)
            for one, other in zip(got, plain(given), strict=True):
                np.testing.assert_allclose(
                    one, other, rtol=2e-4 if dtype == "f4" else 1e-11, atol=1e-5 if dtype == "f4" else 1e-11
                )
    assert derivative.cache_info().hits


ORDERS = {
    "sort": lambda x: np.sum(np.sort(x, axis=-1) * np.arange(60.0)) ** 2,
    "sort by columns": lambda x: np.sum(np.sort(x, axis=0) ** 3 * np.arange(80.0)[:, None]),
    "sort all": lambda x: np.sum(np.sort(x.ravel()) * np.cos(np.arange(4800.0))),
    "median": lambda x: np.sum(np.median(x, axis=1) ** 2) + np.median(x),
    "quantiles": lambda x: np.sum(np.quantile(x, [0.1, 0.5, 0.77], axis=0) ** 2),
    "stable order": lambda x: np.sum(np.take_along_axis(x, np.argsort(x, axis=0, kind="stable"), 0) * np.arange(80.0)[:, None]),
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", ORDERS)
def test_orders_are_stable(name, dtype):
    """Equal elements keep their order, zeros of both signs, infinities and NaNs too."""
    fun = ORDERS[name]
    x = np.random.default_rng(0).normal(size=(80, 60)).astype(dtype)
    odd = np.round(x, 1)
    odd[3, :5], odd[4, 2:5], odd[7, 3:6] = [0.0, -0.0, np.inf, -np.inf, np.inf], np.nan, -0.0
    derivative, plain = grad(fun), grad(fun, mode="dynamic")
    with np.errstate(all="ignore"):
        for given in (x, odd, np.round(x, 1), x, np.asfortranarray(x)):
            expected = plain(given)
            for _ in range(3):
                found = derivative(given)
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=1e-11 if dtype == "f8" else 1e-4)
    text = derivative.source(x, fast=True)
    assert ("runtime.order" in text) == (name != "median")
    assert ("runtime.ranks" in text) == (name == "quantiles")
    assert ("runtime.hat" in text) == (name == "median")
    assert ("runtime.back_in_place" in text) == name.startswith("sort")
    assert "= np.sort(" not in text  # the order is there
    assert "= np.argsort" not in text


def test_orders_along_an_axis_by_position():
    x = np.random.default_rng(0).normal(size=(80, 60))
    fun = lambda x: np.sum(np.partition(x, 3, axis=0) * np.arange(60.0)) + np.sum(x[np.argsort(x, 0)[0], 0] ** 2)
    np.testing.assert_allclose(grad(fun)(x), grad(fun, mode="dynamic")(x), rtol=1e-13)


COLUMN_BY_COLUMN = {
    "factors": lambda x, s, c: np.sum(np.tan(np.cumsum(x, axis=0) * c * 1e-3) ** 2),
    "rows": lambda x, s, c: np.sum(np.cumsum(x / s, axis=0) ** 2),
    "norms": lambda x, s, c: np.sum(np.cumsum(x / np.linalg.norm(x, axis=1, keepdims=True), axis=0) ** 2),
    "part of itself": lambda x, s, c: np.sum(np.cumsum(x / x[:, :1], axis=0) * np.cumsum(x * x[:, 1:2] + x[0], axis=0)),
    "images": lambda x, s, c: np.sum(np.cumsum(x.reshape(100, 30, 3) + c, axis=1) ** 2 * c),
    "both": lambda x, s, c: np.sum(np.cumsum((s**2 - np.sum(x, axis=1, keepdims=True)) * c, axis=0) ** 2),
    "pieces": lambda x, s, c: np.sum(np.concatenate([x[:, :1] * s, x[:, 1:] ** 2], axis=1) * c),
    "pieces of pieces": lambda x, s, c: np.sum(np.cumsum(x[:, 1:] - x[:, :-1], axis=0) ** 2 * s) + np.sum(c * x[:, ::-1]),
    "backwards": lambda x, s, c: np.sum(np.exp(-(x[::-1] * x)) * c * s),
    "between others": lambda x, s, c: np.sum(
        np.cumsum((y := np.concatenate([x, x * s, x + c], axis=1).reshape(-1, 3, 3))[:, 1] * y[:, 0], axis=0) ** 2
    ),
    "every other": lambda x, s, c: np.sum(np.tanh(x[:, ::2]) ** 2 * s * c[1:]),
}


@pytest.mark.parametrize("name", COLUMN_BY_COLUMN)
def test_numbers_repeated_along_short_rows(name):
    rng = np.random.default_rng(0)
    given = rng.normal(size=(3000, 3)), 2.0 + rng.random((3000, 1)), rng.normal(size=3)
    derivative, plain = grad(COLUMN_BY_COLUMN[name], (0, 1, 2)), grad(COLUMN_BY_COLUMN[name], (0, 1, 2), mode="dynamic")
    kept = [x.copy() for x in given]
    for args in (given, (np.asfortranarray(given[0]), *given[1:]), (given[0][::-1], *given[1:])):
        for _ in range(3):
            found = derivative(*args)
        for one, other in zip(found, plain(*args), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.max(np.abs(other)))
    for x, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(x, before)
    assert "runtime.by_columns(" in derivative.source(*given, fast=True)
    with without("layout"):
        assert "by_columns" not in grad(COLUMN_BY_COLUMN[name]).source(*given, fast=True)


def test_largest_of_parts_with_gaps():
    """NumPy 2.4 wants the ``out`` of ``np.maximum`` by its name."""

    def pooled(x):
        y = x.reshape((64, 16, 4, 2, 4, 2))
        return np.sum(np.max(np.max(y, axis=3), axis=4) ** 2)

    derivative, x = grad(pooled), np.random.default_rng(0).standard_normal((64, 16, 8, 8))
    expected = grad(pooled, mode="dynamic")(x)
    for _ in range(4):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-12)
    assert "runtime.by_columns(maximum" in derivative.source(x, fast=True)


ROW_BY_ROW = {
    "distances": lambda x, s, c: np.sum(np.exp(-np.abs(c[:, None] - c)) * (c[:, None] - c) ** 2),
    "softmax": lambda x, s, c: np.sum(
        (e := np.exp(x - np.max(x, axis=1, keepdims=True))) / np.sum(e, axis=1, keepdims=True) * c
    ),
    "rows": lambda x, s, c: np.sum(np.cumsum(np.sin(x + c) * c - c, axis=1) ** 2),
    "columns": lambda x, s, c: np.sum(np.cumsum(np.sin(x / s) * s - s, axis=1) ** 2),
    "outer product": lambda x, s, c: np.sum(np.cumsum(np.outer(s[:, 0], c) * x, axis=0) ** 2),
    "images": lambda x, s, c: np.sum(np.cumsum((x.reshape(-1, 2, 300) - s.reshape(-1, 2, 1)) * c, axis=2) ** 2),
    "extrema": lambda x, s, c: np.sum(np.cumsum(np.maximum(x * s, c), axis=0) * np.minimum(s, x)),
}


@pytest.mark.parametrize("off", [(), ("blocks",), ("buffers",)])
@pytest.mark.parametrize("rows", [300, 1000])
@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_numbers_repeated_along_long_rows(name, dtype, rows, off):
    rng = np.random.default_rng(0)
    given = rng.normal(size=(rows, 300)), 2.0 + rng.random((rows, 1)), rng.normal(size=300)
    given = tuple(x.astype(dtype) for x in given)
    with without("threads", *off):
        derivative = grad(ROW_BY_ROW[name], (0, 1, 2))
    with without("rows", "threads", *off):
        plain = grad(ROW_BY_ROW[name], (0, 1, 2))
    for args in (given, (np.asfortranarray(given[0]), *given[1:]), (given[0][::-1], *given[1:])):
        for _ in range(3):
            found, without_rows = derivative(*args), plain(*args)
        for one, other in zip(found, without_rows, strict=True):
            np.testing.assert_array_equal(one, other)
    expected = grad(ROW_BY_ROW[name], (0, 1, 2), mode="dynamic")(*args)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e4 * np.finfo(dtype).eps * np.max(np.abs(other)))
    assert off == ("buffers",) or "runtime.row_by_row()" in derivative.source(*given, fast=True)
    assert "row_by_row" not in plain.source(*given, fast=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_numbers_over_one(dtype):
    x, eps = np.concatenate([np.sin(np.arange(3000.0)), [0.0, -0.0, np.inf, np.nan]]).astype(dtype), np.finfo(dtype).eps
    others = (0.3, -7.0, 1e-37, 1e37, 0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny, np.finfo(dtype).max)
    for times, v in itertools.product((1, -0.7, 1e4), others):
        with np.errstate(all="ignore"):
            found, plain = runtime.over(x, times, dtype(v)), times * x / dtype(v)
            out = x.copy()
            assert runtime.over(out, times, dtype(v), out) is out
        np.testing.assert_array_equal(out, found)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, plain, rtol=3 * eps)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        runtime.over(x[:5], 1, dtype(0.0))


def test_derivatives_of_many_numbers_over_one():
    fun = lambda x, s: np.sum(np.sin(-0.7 * x / np.exp(s))) + np.sum(x / np.sum(x**2))
    x, derivative = np.sin(np.arange(3000.0)), value_and_grad(fun, (0, 1))
    for s in (0.5, 0.5, 0.5, 400.0, 600.0):
        value, slopes = derivative(x, s)
        expected, others = value_and_grad(fun, (0, 1), mode="dynamic")(x, s)
        assert value == pytest.approx(expected, rel=1e-12)
        for got, want in zip(slopes, others, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12 * np.max(np.abs(want)))
    assert ", -0.7, " in derivative.source(x, 0.5, fast=True).split("runtime.over(")[1]


def test_row_by_row_numpy_is_as_the_caller_has_it():
    before = np.getbufsize()
    for handling in ("ignore", "raise"):
        with np.errstate(divide=handling):
            by_row = runtime.row_by_row()
            with nullcontext() if handling == "ignore" else pytest.raises(FloatingPointError):
                assert by_row(np.divide, np.ones((2, 1)), np.zeros(3))[0, 0] == np.inf
    assert np.getbufsize() == before


def test_columns_that_share_memory():
    x = np.arange(1.0, 10.0).reshape(3, 3)
    for part in (np.s_[:, :1], np.s_[:, ::-1], np.s_[::-1]):
        out = x.copy()
        runtime.by_columns(np.divide, out, out[part], out)
        np.testing.assert_array_equal(out, x / x[part])


def test_traces_of_small_matrices():
    x = np.random.default_rng(0).normal(size=(900, 3, 4))
    for fun in (
        lambda x: np.sum(np.trace(np.exp(x), axis1=1, axis2=2) ** 2),
        lambda x: np.sum(np.exp(np.trace(np.swapaxes(x, 0, 1), axis1=0, axis2=-1))),
        lambda x: np.sum(np.sin(np.trace(np.moveaxis(x, 0, -1)))),
    ):
        derivative = grad(fun)
        assert not re.search(r"(?<!np)\.trace\(", derivative.source(x, fast=True))
        np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x), rtol=1e-13)
    for fun in (lambda x: np.sum(np.trace(x, 1, 1, 2) ** 2), lambda x: np.sum(np.trace(x[:7], axis1=1, axis2=2) ** 2)):
        assert re.search(r"(?<!np)\.trace\(", grad(fun).source(x, fast=True))
        np.testing.assert_allclose(grad(fun)(x), grad(fun, mode="dynamic")(x), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_masks_are_counted(dtype):
    """As numbers of the same types: ``np.sum(mask)`` makes doubles of singles, where a number of Python's would not."""
    x, mask = np.linspace(-1.0, 1.0, 500).astype(dtype).reshape(50, 10), np.arange(500).reshape(50, 10) % 3 == 0
    for fun in (
        lambda x, m: np.sum(np.where(m, x**2, 0)) / np.sum(m),
        lambda x, m: np.sum(np.exp(x / np.sum(m, dtype=np.float32))) + np.max(x) ** 2,
        lambda x, m: np.sum(x**2 * np.sum(m, axis=0)) / np.sum(m, axis=(0, 1)),
        lambda x, m: np.sum(x**2) / np.sum(m, keepdims=True).ravel()[0],
    ):
        for given in (mask, np.zeros_like(mask)):
            derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
            with np.errstate(all="ignore"):
                for _ in range(3):
                    found = derivative(x, given)
                for one, other in zip(found, plain(x, given), strict=True):
                    assert np.asarray(one).dtype == np.asarray(other).dtype
                    np.testing.assert_allclose(one, other, rtol=1e-12 if dtype == "f8" else 1e-5)
    text = grad(lambda x, m: np.sum(np.where(m, x**2, 0)) / np.sum(m)).source(x, mask, fast=True)
    assert "np.int64(count_nonzero(m))" in text


@pytest.mark.parametrize("rest", [(), (3,), (2, 2)])
def test_elements_at_places_of_several_axes(rest):
    rng = np.random.default_rng(0)
    x, i, j = rng.normal(size=(40, 50, *rest)), rng.integers(0, 40, 900), rng.integers(0, 50, 900)
    fun = lambda x, i, j: np.sum(np.sin(x[i, j]) * x[i - 1, j])
    derivative, plain = grad(fun), grad(fun, mode="dynamic")
    for given in (x, np.asfortranarray(x), x[::-1]):
        for places in ((i, j), (np.maximum(i - 40, -39), j), (i, j - 25)):
            for _ in range(3):
                found = derivative(given, *places)
            np.testing.assert_allclose(found, plain(given, *places), rtol=1e-13, atol=1e-15)
            np.testing.assert_array_equal(runtime.pick(given, *places), given[places])
    np.testing.assert_array_equal(runtime.pick(x, i[:0], j[:0]), x[i[:0], j[:0]])
    assert ("runtime.pick(x, i, j)" if rest else "runtime.elements(x, ") in derivative.source(x, i, j, fast=True)
    with pytest.raises(IndexError):
        derivative(x, i, j + 50)


def test_rows_at_places_that_are_not_there():
    derivative = grad(lambda x, i: np.sum(x[i] ** 2))
    for _ in range(4):
        derivative(np.ones((5, 3)), np.array([0, -5, 4]))
    for places in ([0, 5, 1], [0, -6, 1]):
        with pytest.raises(IndexError, match="out of bounds"):
            derivative(np.ones((5, 3)), np.array(places))


def test_short_axes_in_the_code_that_runs():
    x = np.random.default_rng(0).normal(size=(4096, 3))
    text = str(grad(lambda x: np.sum(np.max(np.sin(x), axis=-1) ** 2)).source(x, fast=True))
    assert "maximum(" in text
    assert "maximum_reduce" not in text
    text = str(grad(lambda x, i: np.sum(x[i] ** 2)).source(x, np.arange(100), fast=True))
    assert ".take(i, 0)" in text


@pytest.mark.parametrize("n", [1, 2, 3, 8, 100, 1023])
@pytest.mark.parametrize("side", ["left", "right"])
def test_places_of_many_numbers(n, side):
    rng = np.random.default_rng(n)
    knots = np.sort(np.round(rng.normal(size=n), 2))  # some twice
    x = np.concatenate((np.round(2 * rng.normal(size=20_000), 2), knots, [np.nan, np.inf, -np.inf, 0.0, -0.0]))
    for given in (knots, np.append(knots, np.inf), np.append(knots, np.nan), np.insert(knots, 0, -np.inf), knots[:0]):
        for one in (x, np.sort(x), x[:20_000].reshape(4, -1).T):
            np.testing.assert_array_equal(runtime.search(given, one, side), np.searchsorted(given, one, side))


@pytest.mark.parametrize("scale", [1.0, 1e-310, 1e307, 1e16])
def test_knots_are_searched_cell_by_cell(scale):
    rng = np.random.default_rng(0)
    even, flat = rng.normal(size=300), np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1.7e308])
    for spread, is_even in (
        (even, True),
        (np.round(even, 1), False),
        (np.exp(20 * even), False),
        (np.append(even, [np.inf, -np.inf]), False),
    ):
        with np.errstate(all="ignore"):
            knots = np.sort(spread * scale)
            near = [np.nextafter(knots, to) for to in (-np.inf, np.inf)]
            x = rng.permutation(np.concatenate((knots, *near, scale * rng.normal(size=20_000), flat)))
        for side in ("left", "right"):
            np.testing.assert_array_equal(runtime.search(knots, x, side), np.searchsorted(knots, x, side))
        if is_even and scale > 1e-300:
            assert runtime._cells(knots, x.size)[1] <= 16  # without cells, 256


@pytest.mark.parametrize("xp", [[3.0, 1.0, 2.0, 0.0], [0.0, np.nan, 2.0, 3.0], [0.0, 1.0, 2.0, np.nan]])
def test_what_does_not_ascend_is_searched_as_numpy_does(xp):
    xp, fp, x = np.array(xp), np.array([5.0, 7.0, 6.0, 9.0]), np.random.default_rng(0).uniform(-1, 4, 5000)
    for side in ("left", "right"):
        np.testing.assert_array_equal(runtime.search(xp, x, side), np.searchsorted(xp, x, side))
    places = np.searchsorted(xp, x, "right")
    np.testing.assert_array_equal(runtime.interpolate(x, xp, fp, places), np.interp(x, xp, fp))


def test_slopes_of_maxima_are_as_large_as_cotangents():
    x, w = np.arange(2000.0), np.full(2000, 1.5e308)
    y = x.copy()
    y[::2] += 1
    derivative = grad(lambda x, y, w: np.sum(np.maximum(x, y) * w), argnums=(0, 1))
    with np.errstate(over="ignore"):
        slopes = [derivative(x, y, w) for _ in range(3)][-1]
    for g, share in zip(slopes, (0.0, 1.0), strict=True):
        np.testing.assert_array_equal(g, w * np.where(x == y, 0.5, share))


def test_interpolation_searches_once():
    rng = np.random.default_rng(0)
    x, xp, fp = rng.normal(size=20_000), np.sort(rng.normal(size=50)), rng.normal(size=50)
    fun = lambda fp, x, xp: np.sum(np.interp(x, xp, fp) ** 2)
    derivative, plain = value_and_grad(fun, (0, 1, 2)), value_and_grad(fun, (0, 1, 2), mode="dynamic")
    odd = np.concatenate((x[:-3], [np.nan, np.inf, xp[3]]))
    twice, gap = xp.copy(), fp.copy()
    twice[7], gap[9] = twice[8], np.inf
    with np.errstate(all="ignore"):
        for given in ((fp, x, xp), (fp, odd, xp), (fp, x, twice), (gap, x, xp), (fp, np.sort(x), xp)):
            for _ in range(3):
                value, results = derivative(*given)
            other, expected = plain(*given)
            np.testing.assert_allclose(value, other, rtol=1e-13)
            for one, wanted in zip(results, expected, strict=True):
                np.testing.assert_allclose(one, wanted, rtol=1e-12)
    alone = str(grad(fun).source(fp, x, xp, fast=True))
    assert alone.count("runtime.search(") == 1
    assert "runtime.interpolate(" in alone
    np.testing.assert_array_equal(runtime.interpolate(odd, xp, gap, np.searchsorted(xp, odd, "right")), np.interp(odd, xp, gap))


@pytest.mark.parametrize("argnums", [0, 2, (0, 1, 2)])
def test_slopes_of_interpolation_cost_one_search(argnums):
    rng = np.random.default_rng(0)
    xp, fp = np.sort(rng.normal(size=50)), rng.normal(size=50)
    xp[7], fp[20:23], fp[30:33] = xp[8], [1.0, 3.0, 2.0], [1.0, 2.0, 2.5]
    x = rng.permutation(np.concatenate((rng.normal(size=20_000), xp, xp - 1e-12, xp + 1e-12, [np.nan, np.inf, -np.inf])))
    fun = lambda x, xp, fp: np.sum(np.sin(x) * np.interp(x, xp, fp))
    plain = elementwise_grad(lambda x, xp, fp: np.interp(x, xp, fp))
    with np.errstate(all="ignore"):
        few = [plain(x[i : i + 1000], xp, fp) for i in range(0, len(x), 1000)]
        np.testing.assert_array_equal(plain(x, xp, fp), np.concatenate(few))
        assert str(grad(fun, argnums).source(x, xp, fp, fast=True)).count("runtime.search(") == 1


def test_sums_before_short_rows_in_the_code_that_runs():
    x = np.random.default_rng(0).normal(size=(500, 20, 3))
    for fun, few in (
        (lambda x: np.sum(np.sum(x, axis=1) ** 2), True),
        (lambda x: np.sum(np.mean(x, axis=1, keepdims=True) ** 2), True),
        (lambda x: np.sum(np.sum(x, axis=-1) ** 2), False),
        (lambda x: np.sum(np.sum(x.reshape(3, 500, 20), axis=1) ** 2), True),
        (lambda x: np.sum(np.sum(x.reshape(20, 15, 100), axis=1) ** 2), True),
        (lambda x: np.sum(np.mean(x.reshape(20, 15, 100), axis=-1, keepdims=True) ** 2), True),
        (lambda x: np.sum(np.sum(x.reshape(20, 15, 100), axis=0) ** 2), False),
    ):
        derivative = grad(fun)
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x), rtol=1e-12, atol=1e-13)
        assert ("matmul(" in derivative.source(x, fast=True)) == few


SUMS_ALONG_AXES = {
    "rows": lambda x, c: np.sum(np.sum(x, axis=1) ** 2),
    "rows that stay": lambda x, c: np.sum(np.sum(np.exp(x), axis=-1, keepdims=True) ** 2 * x),
    "columns": lambda x, c: np.sum(np.sum(np.sin(x), axis=0) ** 2 * c),
    "columns that stay": lambda x, c: np.sum(np.mean(x**2, axis=0, keepdims=True) * x**3),
    "what was broadcast": lambda x, c: np.sum(np.tanh(x + c) ** 2),
    "turned": lambda x, c: np.sum(np.sum(x.T, axis=0) ** 3) + np.sum(np.sum(x[:, ::-1] * c, axis=-1) ** 2),
    "stacks": lambda x, c: np.sum(np.sum(x.reshape(-1, 20, len(c)), axis=2, keepdims=True) ** 2),
    "columns of stacks": lambda x, c: np.sum(np.mean(x.reshape(-1, 20, len(c)), axis=1, keepdims=True) ** 2 * c),
}


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("shape", [(40, 1), (20, 3), (60, 33), (400, 600), (20, 9000), (9000, 20)])
@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("name", SUMS_ALONG_AXES)
def test_sums_along_axes_in_the_code_that_runs(name, dtype, shape, alone, monkeypatch):
    """Whether BLAS has one thread or several."""
    monkeypatch.setattr("symgrad.emit.blocks.alone", lambda: alone)
    rng = np.random.default_rng(0)
    x, c = rng.normal(size=shape).astype(dtype), rng.normal(size=shape[1]).astype(dtype)
    fun = SUMS_ALONG_AXES[name]
    with without("taps" if alone else "chains"):  # which make code of its own
        derivative, dynamic = (value_and_grad(fun, (0, 1), mode=mode) for mode in ("auto", "dynamic"))
    exact = fun(x.astype(np.longdouble), c.astype(np.longdouble))
    largest = fun(np.abs(x), np.abs(c))  # where nothing cancels
    for args in ((x, c), (np.asfortranarray(x), c)):
        for _ in range(3):
            value, slopes = derivative(*args)
        expected, others = dynamic(*args)
        assert abs(value - exact) <= max(3 * abs(expected - exact), 8 * np.finfo(dtype).eps * largest)
        for got, want in zip(slopes, others, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=0, atol=100 * np.finfo(dtype).eps * np.max(np.abs(want)))


def test_sums_that_overflow_and_of_what_is_not_finite():
    x = np.ones((30, 40))
    x[3, 4], x[5, 6], x[7, 8] = np.inf, np.nan, -np.inf
    derivative = value_and_grad(lambda x: np.sum(np.sum(x, axis=1) * np.sum(x, axis=0)[:30]))
    with np.errstate(invalid="ignore"):
        for _ in range(3):
            value, slope = derivative(x)
        expected, other = value_and_grad(lambda x: np.sum(np.sum(x, axis=1) * np.sum(x, axis=0)[:30]), mode="dynamic")(x)
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(slope, other)


def test_products_of_short_rows_in_the_code_that_runs():
    x = np.random.default_rng(0).normal(size=(4096, 3))
    text = str(grad(lambda x: np.sum(np.prod(x, axis=-1) ** 2)).source(x, fast=True))
    assert "accumulate" not in text
    assert "multiply_reduce" not in text
    text = str(grad(lambda x: np.sum(np.prod(x, axis=0) ** 2)).source(x, fast=True))
    assert "accumulate" not in text
    assert "product_of_others" in text


MAXIMA = {
    "number": lambda x, y: np.sum(np.maximum(x, 0.5) ** 3),
    "hinge": lambda x, y: np.sum(np.maximum(x, 0.5)),
    "array": lambda x, y: np.sum(np.maximum(x, y) ** 2 * y),
    "minima": lambda x, y: np.sum(np.minimum(x * y, -0.5)) - np.sum(np.minimum(y, x) ** 2),
    "chain": lambda x, y: np.sum(np.minimum(np.maximum(2 * x, -0.5), 0.8) * x),
    "repeated": lambda x, y: np.sum(np.maximum(x.reshape(-1, 4), y[:4]) ** 3),
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", MAXIMA)
def test_slopes_of_maxima_make_no_choices(name, dtype):
    """Ties share evenly; infinities and NaNs go where they went."""
    fun, rng = MAXIMA[name], np.random.default_rng(0)
    x, y = (np.round(2 * rng.normal(size=4000)).astype(dtype) / 2 for _ in range(2))
    odd = x.copy()
    odd[[3, 5, 7]] = np.inf, -np.inf, np.nan
    derivative, plain = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    with np.errstate(all="ignore"):
        for given in (x, y), (odd, y):
            for _ in range(3):
                got = derivative(*given)
            for one, other in zip(got, plain(*given), strict=True):
                assert one.dtype == dtype
                np.testing.assert_allclose(one, other, rtol=1e-5 if dtype == "f4" else 1e-13)
    text = str(derivative.source(x, y, fast=True))
    assert "runtime.steps(" in text or (name, dtype) == ("hinge", "f4")
    assert "runtime.select(" not in text or (name, dtype) == ("hinge", "f4")
    with without("lower"):
        assert "runtime.steps(" not in grad(fun).source(x, y, fast=True)


CHOICES = {
    **{name: MAXIMA[name] for name in ("number", "array", "minima", "chain")},
    "of zeros": lambda x, y: np.sum(np.where(x > y, 0, x * y) ** 2),
    "of arrays": lambda x, y: np.sum(np.where(x > y, x, np.sin(x * y)) ** 2),
    "of a view": lambda x, y: np.sum(np.where(x > y, np.exp(x)[::-1], np.exp(x)) ** 2),
    "of an element": lambda x, y: np.sum(np.where(x > y, 2 * np.exp(x)[3], np.exp(x)) ** 2),
    "of what is read later": lambda x, y: np.sum(np.where(x > y, y, np.exp(x)) * np.exp(x)),
    "of what is turned": lambda x, y: np.sum(np.where(x > 1, 0.5, np.outer(x[8:16], y[8:16]).T[:, :1].ravel()[0] * x) ** 2),
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", CHOICES)
def test_choices_from_what_nobody_reads_any_more_are_made_in_place(name, dtype):
    fun, rng = CHOICES[name], np.random.default_rng(0)
    x, y = (np.round(2 * rng.normal(size=200)).astype(dtype) / 2 for _ in range(2))
    odd = x.copy()
    odd[[3, 5, 7]] = np.inf, -np.inf, np.nan
    derivative, plain = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    with np.errstate(all="ignore"):
        for given in (x, y), (odd, y), (x, x):
            for _ in range(3):
                value, got = derivative(*given)
            expected, slopes = plain(*given)
            np.testing.assert_allclose(value, expected, rtol=1e-5 if dtype == "f4" else 1e-13)
            for one, other in zip(got, slopes, strict=True):
                assert one.dtype == dtype
                np.testing.assert_allclose(one, other, rtol=1e-5 if dtype == "f4" else 1e-13)
    if name in ("array", "minima", "of zeros", "of arrays"):
        assert "putmask(" in derivative.source(x, y, fast=True)
    with without("buffers"):
        assert "putmask(" not in value_and_grad(fun, (0, 1)).source(x, y, fast=True)


def test_what_is_added_to_a_whole_array_turned_around():
    for fun in (
        lambda x: np.sum(x[::-1] * x),
        lambda x: np.sum(np.sin(x[::-1, ::-1]) * x[:, ::-1]),
        lambda x: np.sum(np.concatenate([x[:, :1], x[:, 1:] ** 2], axis=1)) + np.sum(x[::-1, :] ** 2 * x),
    ):
        x = np.random.default_rng(0).normal(size=(40, 3))
        derivative = grad(fun)
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x), rtol=1e-13)
        assert "-1] +=" not in derivative.source(x)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, mask: -np.sum(np.clip(x, -1, 1)),
        lambda x, mask: np.sum(1 - (x > 0) * x),
        lambda x, mask: np.sum(x * (-1 * mask)),
        lambda x, mask: np.sum(x * (-1.0 * (mask & (x > 0)))),
        lambda x, mask: np.sum(x * (0.0 - mask)),
        lambda x, mask: np.sum(x * (2.0 * mask + 2.0 * (x > 0))) - np.sum(0.5 * mask - 0.5 * (x > 0)),
        lambda x, mask: sum([-1 * (v > 0) * v for v in x]) + sum([(0 - (v > 0)) * v for v in x]),
    ],
)
def test_truth_values_are_no_numbers(fun):
    x, mask = np.array([0.5, -2.0, 0.3, 1.5]), np.array([True, True, False, False])
    steps = [(fun(x + step, mask) - fun(x - step, mask)) / 2e-6 for step in 1e-6 * np.eye(4)]
    for derivative in (value_and_grad(fun), value_and_grad(fun, mode="dynamic")):
        for _ in range(3):
            value, slope = derivative(x, mask)
            assert np.isclose(value, fun(x, mask))
            assert np.allclose(slope, steps)


def _written_flags(a, b, k):
    m = np.zeros(3, bool)
    m[0], m[1] = a > 0, b > 0
    return (m[0] + m[1]) * 1.0


def _written_int(a, b, k):
    held = np.zeros(3, int)
    held[0] = k
    return held[0] * 10**18


NUMPYS = {
    "written flags": _written_flags,
    "written int": _written_int,
    "an opposite": lambda a, b, k: float(~np.logical_or(a > 0, False)),
    "both": lambda a, b, k: np.logical_and(a > 0, True) + np.logical_and(b > 0, True),
    "chosen flags": lambda a, b, k: np.where(True, a > 0, False) + np.where(True, b > 0, False),
    "times one": lambda a, b, k: (k * np.int64(1)) * 10**18,
    "and nothing": lambda a, b, k: (k + np.int64(0)) * 10**18,
    "chosen": lambda a, b, k: np.where(True, k, k) * 10**18,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NUMPYS)
def test_numpys_flags_and_ints_do_not_become_pythons(name):
    """``True + True`` is 2, ``~True`` is -2, and ints have no end."""

    def fun(x, *numbers):
        return np.sum(x) * NUMPYS[name](*numbers)

    derivative, x = value_and_grad(fun), np.array([1.0, 2.0])
    for _ in range(4):
        value, slope = derivative(x, 1.0, 2.0, 50)
        assert value == fun(x, 1.0, 2.0, 50)
        np.testing.assert_array_equal(slope, NUMPYS[name](1.0, 2.0, 50) * np.ones(2))


def _log_sum_exp(axis, shape):
    """``log(sum(exp(z)))`` with the maximum taken out and put back, in the ways that people write it."""

    def total(z, shift):
        return np.log(np.sum(np.exp(z - shift), axis=axis))

    def kept(z):
        m = np.max(z, axis=axis, keepdims=True)
        return shape(m) + total(z, m)

    def dropped(z):
        m = np.max(z, axis=axis)
        return m + total(z, np.expand_dims(m, axis))

    return kept, dropped


@pytest.mark.parametrize(
    "outer", [np.sum, np.mean, lambda y: np.sum(np.sin(y)), lambda y: np.sum(y * np.cos(np.arange(len(y))))]
)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("columns", [4, 7])
def test_no_gradient_goes_through_the_shift_of_a_log_sum_exp(outer, axis, columns):
    z = np.cos(np.arange(4.0 * columns)).reshape(4, columns)
    for shape in (np.squeeze, lambda m: m.reshape(-1), lambda m: m[0] if axis == 0 else m[:, 0]):
        for fun in _log_sum_exp(axis, shape):
            derivative = value_and_grad(lambda z, fun=fun: outer(fun(z)))
            with without():
                plain = value_and_grad(lambda z, fun=fun: outer(fun(z)))
            assert "==" not in derivative.source(z)
            for _ in range(3):
                (value, gradient), (other, expected) = derivative(z), plain(z)
            np.testing.assert_allclose(value, other, rtol=1e-14)
            np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("axis", [0, 1])
def test_no_gradient_goes_through_the_shift_of_logarithms_of_shares(axis):
    z, w = np.cos(np.arange(28.0)).reshape(4, 7), np.sin(np.arange(28.0)).reshape(4, 7)
    for total in _log_sum_exp(axis, np.squeeze):
        functions = [
            lambda z, w, total=total: np.sum((z - np.expand_dims(total(z), axis)) * w),
            lambda z, w, total=total: np.sum((z - np.expand_dims(total(z), axis)) ** 2),
            lambda z, w, total=total: np.mean(0.3 * np.expand_dims(total(z), axis) * w - np.sin(z)),
        ]
        for fun in functions:
            derivative, plain = grad(fun), grad(fun, mode="dynamic")
            assert "==" not in derivative.source(z, w)
            for _ in range(3):
                np.testing.assert_allclose(derivative(z, w), plain(z, w), rtol=1e-12, atol=1e-14)
    single = grad(lambda z: np.max(z, axis=0, keepdims=True)[0] + np.log(np.sum(np.exp(z - np.max(z, axis=0, keepdims=True)))))
    assert "==" not in single.source(z[0])
    np.testing.assert_allclose(single(z[0]), np.exp(z[0]) / np.sum(np.exp(z[0])), rtol=1e-14)


def test_a_shift_that_is_none_keeps_its_gradient():
    """The same sums along the other axis of a square, of something else, or with another weight."""
    z = np.cos(np.arange(16.0)).reshape(4, 4)
    functions = [
        lambda z: np.sum((m := np.max(z, axis=1)) * 2 + np.log(np.sum(np.exp(z - m[:, None]), axis=1))),
        lambda z: np.sum(np.sin((m := np.max(z, axis=1)) + np.log(np.sum(np.exp(z - m), axis=1)))),
        lambda z: np.sum(np.sin((m := np.max(z, axis=1)) + np.log(np.sum(np.exp(z - m[:, None]), axis=0)))),
        lambda z: np.sum(np.sin(m := np.max(z, axis=0)) + np.sin(np.log(np.sum(np.exp(z - m), axis=0)))),
        lambda z: np.sum(np.sin(np.max(z, axis=1) + np.log(np.sum(np.exp(z - z[:, :1]), axis=1)))),
        lambda z: np.sum((z - ((m := np.max(z, axis=1)) * 2 + np.log(np.sum(np.exp(z - m[:, None]), axis=1)))[:, None]) ** 2),
        lambda z: np.sum((z - ((m := np.max(z, axis=1)) + 2 * np.log(np.sum(np.exp(z - m[:, None]), axis=1)))[:, None]) ** 2),
        lambda z: np.sum((z - ((m := np.max(z, axis=1)) - np.log(np.sum(np.exp(z - m[:, None]), axis=1)))[:, None]) ** 2),
    ]
    for fun in functions:
        derivative = grad(fun)
        with without():
            plain = grad(fun)
        for _ in range(3):
            got, want = derivative(z), plain(z)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


TWICE = {
    "squares and more": lambda x: np.sum(np.sqrt(1 + x * x)) + 0.1 * np.sum(np.abs(x)),
    "unit vectors": lambda x: np.sum(np.sin(x / np.sqrt(np.sum(x * x, axis=1, keepdims=True)))),
    "one unit vector": lambda x: np.sum(np.sin(x[0] / np.sqrt(np.sum(x[0] * x[0])))),
    "less": lambda x: np.sum(np.cos(x)) - 3.0 * np.sum(x * x * x[0, 0]),
    "together none": lambda x: np.sum(np.sin(x)) + np.sum(x * x - (x * x[::-1])[::-1]),
}


@pytest.mark.parametrize("name", TWICE)
def test_what_is_added_twice(name):
    derivative, plain = grad(TWICE[name]), grad(TWICE[name], mode="dynamic")
    for _ in range(3):
        np.testing.assert_allclose(derivative(X), plain(X), rtol=1e-13, atol=1e-14)
    source = derivative.source(X)
    assert re.search(r"(?<![.\w])(\w+)( [+-] [^\n]*)? [+-] \1$", source, re.MULTILINE) is None, source


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply])
def test_running_totals_of_rows_are_those_of_numpy(ufunc, dtype):
    rng = np.random.default_rng(0)
    for shape, axis in [((5, 300), 0), ((5, 300), -2), ((3, 7, 40), 1), ((2, 3, 4, 50), 1), ((0, 300), 0), ((1, 9), 0)]:
        x = rng.normal(size=shape).astype(dtype)
        for given in (x, np.asfortranarray(x), x[::-1], x[..., ::-2], np.broadcast_to(x[:1], shape)):
            np.testing.assert_array_equal(runtime.running(ufunc, given, axis), ufunc.accumulate(given, axis))


def test_running_totals_in_the_code_that_runs():
    rng = np.random.default_rng(0)
    for shape, rows in [((20, 400), True), ((400, 4), False), ((3, 4, 50), False), ((3, 4, 100), True)]:
        x, axis = rng.normal(size=shape), len(shape) - 2
        fun = lambda x, axis=axis: np.sum(np.cumsum(x, axis=axis) ** 3) + np.sum(np.cumprod(x, axis=axis))
        derivative, plain = grad(fun), grad(fun, mode="dynamic")
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), plain(x), rtol=1e-12, atol=1e-12)
        assert ("runtime.running(add, " in derivative.source(x, fast=True)) == rows


def test_a_choice_that_is_known_is_none():
    fun = lambda q: np.sum(np.sin(q / np.sqrt(np.sum(q * q))) * np.array([1.0, 2.0, 3.0, 0.0])) + q[0] * np.sum(q[1:] ** 2)
    for mask in (np.ones((4, 6), bool), np.zeros((4, 6), bool)):
        derivative = grad(lambda x, mask=mask: np.sum(np.sin(np.where(mask, x**2, np.exp(x)))))
        for _ in range(3):
            np.testing.assert_allclose(
                derivative(X), np.cos(X**2) * 2 * X if mask.all() else np.cos(np.exp(X)) * np.exp(X), rtol=1e-14
            )
    assert "where" not in grad(fun).source(X[0, :4], fast=True)


def test_sums_keep_no_axis_that_is_dropped():
    fun = lambda x, y: np.sum(np.sin(y[:, None] * x)) + np.sum(np.round(7.0 * x, 0) * x) + np.sum(np.round(x, 1) * x)
    x, y = np.sin(np.arange(600.0)).reshape(20, 30), np.cos(np.arange(20.0))
    derivative, plain = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    for _ in range(3):
        for got, want in zip(derivative(x, y), plain(x, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13)
    text = str(derivative.source(x, y, fast=True))
    assert "reshape" not in text
    assert "rint(" in text
    assert "np.round(" in text


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("rows", [2, 3])
def test_determinants_of_many_small_matrices(rows, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 10, rows, rows)).astype(dtype)
    fun = lambda x: np.sum(np.log(np.abs(np.linalg.det(x)))) + np.sum(np.linalg.det(x) ** 3)
    derivative, plain = grad(fun), grad(fun, mode="dynamic")
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), plain(x), rtol=1e-9 if dtype == "f8" else 1e-2)
    assert "runtime.determinants(" in derivative.source(x, fast=True)
    assert "runtime.determinants(" not in derivative.source(x[0], fast=True)
    assert "runtime.determinants(" not in grad(fun).source(x[..., :1, :1], fast=True)
    for scale in (1.0, 1e-30, 1e30, 1e-120 if dtype == "f8" else 1e-8, 1e80 if dtype == "f8" else 1e10):
        for given in (x * np.array(scale, dtype), np.asfortranarray(x * np.array(scale, dtype)), x[::-1, ::2].swapaxes(2, 3)):
            with np.errstate(all="ignore"):
                found, expected = runtime.determinants(given), np.linalg.det(given)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(found, expected, rtol=1e-9 if dtype == "f8" else 1e-2)
    graded = x * np.array([1e30, 1e-30, 1.0][:rows], dtype)[:, None]
    np.testing.assert_allclose(runtime.determinants(graded), np.linalg.det(graded), rtol=1e-9 if dtype == "f8" else 1e-2)
    x[0, 0] = 1.0
    x[0, 1, 0] = 0.0
    np.testing.assert_array_equal(runtime.determinants(x)[0, :2], np.linalg.det(x)[0, :2])
    x[1, 1, 0, 0], x[2, 2, 1, 1] = np.nan, np.inf
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(runtime.determinants(x), np.linalg.det(x))


def test_products_are_turned_before_they_are_made():
    u, v = X, X[:3]
    fun = lambda u, v: np.sum(np.sin(u @ v.T))
    derivative, expected = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")(u, v)
    for _ in range(3):
        for found, wanted in zip(derivative(u, v), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14)
    assert ").T" not in derivative.source(u, v)
    kept = value_and_grad(lambda u, v: np.sum(np.sin((p := u.T @ v).T) * p.T), (0, 1))  # not where both are there
    both = value_and_grad(kept.__wrapped__, (0, 1), mode="dynamic")(u, v[:, :2].repeat(2, 0)[:4])
    for _ in range(3):
        found = kept(u, v[:, :2].repeat(2, 0)[:4])
        np.testing.assert_allclose(found[0], both[0], rtol=1e-14)
        np.testing.assert_allclose(found[1][0], both[1][0], rtol=1e-13)


VIEWS = [
    lambda x: np.flip(x) * x,
    lambda x: np.flip(x, 1) * x,
    lambda x: np.flip(x, (0, -1)) * x,
    lambda x: np.cumsum(x, -1) ** 2,
    lambda x: np.cumsum(np.flip(x[0])) * x[1],
    lambda x: np.cumsum(x) ** 2,
    lambda x: np.cumprod(x, axis=1),
    lambda x: np.cumsum(np.sum(x), axis=0) * np.cumprod(np.array(x[0, 1]), axis=0),
    lambda x: np.cumsum(np.sum(x, axis=(0, 1), keepdims=True).reshape(()), axis=0) ** 2,
    lambda x: np.transpose(np.stack([x, x**2]), (2, 0, 1)) ** 2,
    lambda x: np.moveaxis(np.stack([x, x**2]), -1, 0) * x.T[:, None],
    lambda x: np.swapaxes(np.stack([x, x**2]), 1, -1) ** 3,
    lambda x: np.diagonal(x, 1) * np.diag(x),
    lambda x: np.trace(x, offset=-1) * np.squeeze(x[:1], 0) * np.ravel(x, "F")[:6],
    lambda x: np.concatenate([x, np.copy(x)], axis=1) ** 2 * 3.0,
    lambda x: np.concatenate([x[0], x[1].astype(np.float32)]) ** 2,
]


@pytest.mark.parametrize("number", range(len(VIEWS)))
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_cheap_spellings_mean_the_same(number, dtype):
    fun = lambda x: np.sum(np.real(VIEWS[number](x)))
    x = X.astype(dtype)
    if dtype is np.complex128 and number == len(VIEWS) - 1:
        return
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for layout in (x, np.asfortranarray(x), x[::-1]):
        for _ in range(3):
            for found, expected in zip(derivative(layout), dynamic(layout), strict=True):
                np.testing.assert_allclose(found, expected, rtol=3e-6 if dtype == np.float32 else 1e-13)


LABELS, WEIGHTS = np.array([1, 0, 5, 3]), np.array([0.3, 2.0, 1.0, 0.5])
ONE_HOT = np.eye(6)[LABELS]


def log_shares(x):
    x = x - np.max(x, axis=1, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=1))[:, None]


CROSS_ENTROPIES = {
    "labels": lambda x: -np.mean(log_shares(x)[np.arange(4), LABELS]),
    "weights": lambda x: -np.sum(WEIGHTS * log_shares(x)[np.arange(4), LABELS]),
    "shares": lambda x: -np.sum(ONE_HOT * log_shares(x)) / 3,
    "both": lambda x: np.sum((0.1 * np.abs(ONE_HOT - 0.3) - ONE_HOT) * log_shares(x)),
    "several": lambda x: -np.sum(log_shares(x)[np.arange(4), LABELS] - 2 * log_shares(x)[np.arange(4), 0 * LABELS]) / 7,
}


def shares(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def shifted(x):
    return x - np.max(x, axis=1, keepdims=True)


def log_shares_of_last(x):
    x = x - np.max(x, axis=-1, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True))


def log_total(x, total):
    """``log(total(exp(x)))``, whatever is added up by ``total``, shifted by the maxima of rows."""
    top = np.max(x, axis=1, keepdims=True)
    return np.log(total(np.exp(x - top))) + top[:, 0]


CROSS_ENTROPIES |= {
    "added to": lambda x: -np.sum(WEIGHTS * (x[np.arange(4), LABELS] - log_total(x, lambda e: np.sum(e, axis=1)))),
    "along": lambda x: -np.sum(WEIGHTS * np.take_along_axis(log_shares(x), LABELS[:, None], 1)[:, 0]),
    "along the last": lambda x: -np.sum(WEIGHTS * np.take_along_axis(log_shares(x), LABELS[:, None], axis=-1)[:, 0]),
    "labels before": lambda x: -np.mean(shifted(x)[np.arange(4), LABELS] - np.log(np.exp(shifted(x)).sum(axis=1))),
    "pairs": lambda x: np.mean(np.log(np.exp(shifted(x @ x.T)).sum(axis=1)) - np.diag(shifted(x @ x.T))),
    "logarithms": lambda x: -np.sum(ONE_HOT * np.log(shares(x) + 1e-9)),
    "labels' logarithms": lambda x: -np.sum(WEIGHTS * np.log(shares(x)[np.arange(4), LABELS] + 1e-9)),
    "entropy": lambda x: -np.sum(shares(x) * log_shares(x)),
    "entropy of shares": lambda x: -np.sum(shares(x) * np.log(1e-9 + shares(x))),
    "mixture": lambda x: np.sum(log_total(x, lambda e: np.sum((0.1 + ONE_HOT.astype(x.dtype)) * e, axis=1))),
    "product": lambda x: np.sum(log_total(x, lambda e: e @ (0.1 + ONE_HOT[0].astype(x.dtype)))),
    "squares": lambda x: np.sum((shares(x) - ONE_HOT) ** 2),
}


def risk(x, order=1):
    """Cox's partial likelihood, of one column."""
    z = x[:, 0]
    top = np.max(z)
    return np.sum(WEIGHTS * (np.log(np.cumsum(np.exp(z - top)[::order])) + top - z))


CROSS_ENTROPIES["risk"] = risk


@pytest.mark.parametrize("name", CROSS_ENTROPIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_shifts_of_cross_entropies_get_no_cotangent(name, dtype):
    derivative, dynamic = (value_and_grad(CROSS_ENTROPIES[name], mode=mode) for mode in ("auto", "dynamic"))
    for x in (X, np.round(X), 300 * X):  # with ties, too
        for _ in range(3):
            for found, expected in zip(derivative(x.astype(dtype)), dynamic(x.astype(dtype)), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-7)
    assert "==" not in derivative.source(X.astype(dtype))


def test_shifts_that_do_not_cancel_keep_their_cotangents():
    for fun in (
        lambda x: np.sum(log_shares(x)[np.arange(4), LABELS] + (x - np.max(x, axis=1, keepdims=True))[np.arange(4), LABELS]),
        lambda x: np.sum(ONE_HOT * log_shares(x)) + np.sum((x - np.max(x, axis=1, keepdims=True))[:, 0]),
        lambda x: np.sum((z := x - np.max(x, axis=1, keepdims=True))[[0, 0, 1, 1], LABELS] - np.log(np.sum(np.exp(z), axis=1))),
        lambda x: np.sum(WEIGHTS * log_total(x, lambda e: np.sum(e * (1 + e), axis=1))),
        lambda x: np.sum(log_total(x, lambda e: 1 + np.sum(e, axis=1))),
        lambda x: np.sum(log_total(x, lambda e: np.sum(e, axis=1)) * np.max(x, axis=1)),
        lambda x: np.sum(shares(x) * np.log(np.exp(x - np.max(x, axis=1, keepdims=True)))),
        lambda x: np.sum(log_total(x, lambda e: (e * e) @ ONE_HOT[0] + e @ ONE_HOT[1])),
        lambda x: -np.sum(log_shares_of_last(x[:, :, None] * x[:, None])[np.arange(4), np.arange(4) % 3, LABELS]),
        lambda x: risk(x) + np.sum(np.cumsum(np.exp(x[:, 0] - np.max(x[:, 0])))),
    ):
        derivative = grad(fun)
        for _ in range(3):
            np.testing.assert_allclose(derivative(X), grad(fun, mode="dynamic")(X), rtol=1e-13, atol=1e-15)
        assert "==" in derivative.source(X)


@pytest.mark.parametrize("seed", range(12))
def test_sums_of_what_has_shifts(seed):
    """Some of them do not hang on the shift, others do."""
    rng = np.random.default_rng(seed)
    parts = [
        lambda x, e: np.sum(e / np.sum(e, axis=1, keepdims=True) * ONE_HOT, axis=1),
        lambda x, e: np.log(np.sum(e, axis=1)) + np.max(x, axis=1),
        lambda x, e: np.log(np.sum(e * ONE_HOT, axis=1)) - np.log(np.sum(e, axis=1)),
        lambda x, e: np.sum(e * e, axis=1) / np.sum(e, axis=1) ** 2,
        lambda x, e: np.sum(e * ONE_HOT, axis=1) * np.sum(e, axis=1),
        lambda x, e: np.sum(e * ONE_HOT, axis=1) / np.sum(e * e, axis=1),
        lambda x, e: np.sum(x * e, axis=1) / np.sum(e, axis=1),
        lambda x, e: e[np.arange(4), LABELS] / np.sum(e, axis=1),
        lambda x, e: np.sum(np.log(e), axis=1),
    ]
    chosen = rng.choice(len(parts), 3, replace=False)
    factors = rng.normal(size=3)

    def f(x):
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        found = [parts[k](x, e) for k in chosen]
        return np.sum(factors[0] * found[0] * found[1] + factors[1] * found[1] + WEIGHTS * found[2])

    derivative, dynamic = grad(f), grad(f, mode="dynamic")
    x = np.abs(X) + 0.1
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-10, atol=1e-12)


PYTHONS_AMONG_SINGLES = [
    lambda x, z: np.sum(np.sin(np.expand_dims(z, 0) + x) * 2.0),
    lambda x, z: np.sum(np.sin(np.atleast_1d(z) - x)),
    lambda x, z: np.sum(np.sin(np.reshape(z, (1,)) * x)),
    lambda x, z: np.sum(np.sin(np.full(3, z) / x)),
    lambda x, z: np.sum(np.sin(np.asarray(z) + x)),
    lambda x, z: np.sum(np.sin(z + x)),
    lambda x, z: np.sum(np.where(x > 0, np.expand_dims(z, 0), x)),
    lambda x, z: np.sum(np.atleast_2d(z) @ x[None]),
    lambda x, z: np.sum(np.abs(np.expand_dims(z, 0) + 1j * x)),
    lambda x, z: np.sum(x) + np.sum(np.broadcast_to(z, (2,))),
    lambda x, z: np.sum(np.multiply.outer(z, x)) + np.sum(np.add.outer(np.sum(x), z)),
    lambda x, z: np.sum(np.sum(np.broadcast_to(z, (2,))) * x),
]


@pytest.mark.parametrize("fun", PYTHONS_AMONG_SINGLES)
def test_arrays_of_pythons_numbers_are_double(fun):
    """A Python float takes on float32 beside it; an array that was made of one does not."""
    x, z = np.array([0.3, -0.2, 0.1], np.float32), 0.7
    derivative, expected = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")(x, z)
    for _ in range(3):
        value, (g_x, g_z) = derivative(x, z)
        assert (value.dtype, g_x.dtype, type(g_z)) == (fun(x, z).dtype, np.float32, float)
        np.testing.assert_allclose(value, fun(x, z), rtol=1e-15 if value.dtype == float else 1e-6)
        np.testing.assert_allclose(g_z, expected[1][1], rtol=1e-14 if value.dtype == float else 1e-6)
        np.testing.assert_allclose(g_x, expected[1][0], rtol=1e-6)


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


SOFTPLUSES = {
    "weighted": lambda x: np.sum(softplus(x) * np.arange(1.0, 7)),
    "less labels": lambda x: np.sum(softplus(x) - (x > 0.2) * x),
    "beside others": lambda x: np.sum(2 * softplus(x) + np.sin(x)) - np.sum(x[0] ** 2),
    "of the opposite": lambda x: np.mean(np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))),
}


@pytest.mark.parametrize("name", SOFTPLUSES)
@pytest.mark.parametrize("rows", [1, 300])
def test_steps_and_shares_are_logistic_functions(name, rows):
    x = np.tile(np.concatenate([X, [[0.0, -0.0, 800.0, -800.0, 40.0, -40.0]]]), (rows, 1))
    for wrapped in (grad, value_and_grad):
        derivative, dynamic = wrapped(SOFTPLUSES[name]), wrapped(SOFTPLUSES[name], mode="dynamic")
        for _ in range(3):
            found, expected = derivative(x), dynamic(x)
            np.testing.assert_allclose(found[-1], expected[-1], rtol=1e-13, atol=1e-16)
    assert "heaviside" not in grad(SOFTPLUSES[name]).source(x, fast=True) or name == "weighted"


@pytest.mark.parametrize("place", [s[0], s[:3], s[2, 1:5], s[-1], s[[1, 2], [3, 0]], s[[0, 0, 1]]])
def test_what_is_added_to_few_elements_is_added_last(place):
    x = np.sin(np.arange(30_000.0)).reshape(300, 100)
    fun = lambda x: np.sum(x**4) - np.sum(np.exp(x[place])) + np.sum(np.sin(x) * x)
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("shape", [(5000,), (300_001,), (700, 600), (600, 700), (40_000, 6), (3, 200)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_maxima_of_numbers_and_arrays(shape, dtype):
    """NumPy's loops are quicker beside a row of the number; it changes nothing."""

    def fun(x):
        return np.sum(np.maximum(x, 0) * np.minimum(1.5, np.cos(x)) + np.maximum(-1, x) * x)

    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x.flat[:5] = np.nan, 0.0, -0.0, 1.5, -1.0
    derivative = value_and_grad(fun)
    with without():
        plain = value_and_grad(fun)
    for layout in (x, x, x, np.asfortranarray(x), x[::-1]):
        with np.errstate(invalid="ignore"):
            (value, slope), (expected, other) = derivative(layout), plain(layout)
        assert slope.dtype == dtype
        assert np.isnan([value, expected]).all()
        np.testing.assert_allclose(slope, other, rtol=1e-5 if dtype == np.float32 else 1e-13)
    rows = [c.shape for key, c in derivative.compiled(x).__globals__.items() if re.fullmatch(r"c0(_\d+)?", key)]
    assert any(rows) == (shape[-1] > 64)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sum(np.maximum(x, 0) ** 2),
        lambda x: 3.0 * np.sum(np.minimum(x, 0.0) ** 2),
        lambda x: np.sum(np.maximum(0, 1 - x) ** 2),
        lambda x: np.sum(np.sin(x) * np.maximum(x, 0.0) ** 2),
        lambda x: np.sum(np.maximum(x, 0) * np.minimum(x, 0)),
    ],
)
def test_slopes_of_what_is_cut_off_and_squared(fun):
    """Where it is cut off, it is zero, and so is its slope: no step has to say so."""
    x = np.array([-1.0, 0.0, -0.0, 0.5, 2.0, 1.0, np.nan, 1e300, 700.0, -3e-9])
    slopes = grad(fun), grad(fun, mode="dynamic")
    for point in (x, x, x):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(*(slope(point) for slope in slopes), rtol=1e-15)
    assert "where" not in slopes[0].source(x)


def test_steps_of_other_things_stay():
    fun = lambda x, y: np.sum(np.maximum(x, 0) * np.maximum(y, 0) + np.maximum(x, 1) ** 2)
    x, y = np.array([-1.0, 0.0, 1.0, 2.0, 2.0]), np.array([1.0, -1.0, 0.0, 3.0, 0.0])
    derivative, dynamic = grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    for _ in range(3):
        for found, expected in zip(derivative(x, y), dynamic(x, y), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("function", [np.add, np.subtract, np.multiply, np.true_divide, np.negative])
def test_what_arithmetic_gives_is_known_without_running_it(function, monkeypatch):
    values = [
        *(2.0, 3, np.float64(2.0), np.float32(2.0), np.complex128(1j), np.array(2.0), np.array(2.0, np.float32)),
        *(np.ones(3), np.ones((2, 1)), np.ones((2, 3), np.float32), np.ones((4, 1, 3), np.complex128)),
    ]
    runs = []
    like = rewriting.like_result
    monkeypatch.setattr(rewriting, "like_result", lambda *args: runs.append(args) or like(*args))
    for pair in itertools.product(values, repeat=function.nin):
        if not all(isinstance(value, (int, float)) and not isinstance(value, np.generic) for value in pair):
            nodes = [Graph().input(i, aval_of(value)) for i, value in enumerate(pair)]
            runs.clear()
            assert rewriting.infer(REGISTRY[function], nodes, ()) == aval_of(function(*pair))
            dtypes = {value.dtype for value in pair if isinstance(value, (np.ndarray, np.generic))}
            assert bool(runs) == (len(dtypes) != 1)


def test_rewrites_apply_only_where_they_are_tried(monkeypatch):
    """What a rewrite says that it needs among the arguments, all that it rewrites has."""
    hits, missed = [], []

    def checked(rule):
        def run(s, node, args):
            better = rule(s, node, args)
            if better is not None and rule in rewriting.OF:
                (missed if rewriting.OF[rule].isdisjoint([arg.op for arg in args]) else hits).append(rule.__name__)
            return better

        return run

    monkeypatch.setattr(rewriting.Simplifier, "_rules_for", lambda s, op, ops: [checked(rule) for rule in s.rules.get(op, ())])

    def fun(x, y):
        z = np.where(x > 0, 2.0 * x, -3.0 * (x - y)) / 4.0 + np.maximum(y, 0.0) ** 2
        w = (z[1:3] * z[0, 0] - 0.0) / (1.0 + np.exp(-z[1:3])) - (y[:2] * -1.0) * 0.0
        return np.sum(w[:, None] * x[:2]) / np.sum(z) - np.sum(np.log(x / y) * (x / y))

    for derivative in (grad(fun, (0, 1)), grad(lambda x, y: np.sum(grad(fun)(x, y) * X))):
        for _ in range(3):
            derivative(X + 2.0, np.cos(X) + 2.0)
    assert len(set(hits)) > 6
    assert not missed


def test_what_was_written_at_a_place_known_at_run_time_is_read():
    """Not at index arrays, of which the last of two equal ones counts."""

    def table(x, k, i):
        R = np.zeros((5, 5))
        best = np.float64(0.0)
        for j in range(1, 5):
            R[k, j] = R[k, j - 1] * 0.5 + x[j]
            best = np.maximum(best, R[k, j] ** 2)
        y = x.copy()
        y[i] = np.sin(x)
        return best + np.sum(y[i] * x)

    x, i = np.linspace(0.2, 1.0, 5), np.array([0, 1, 1, 3, 0])
    derivative = value_and_grad(table)
    for k in (1, 2, 3, -1):
        value, slope = derivative(x + 0.1 * k, k, i)
        expected, theirs = value_and_grad(table, mode="dynamic")(x + 0.1 * k, k, i)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, theirs, rtol=1e-12)
    assert ".append(R)" not in derivative.source(x, 1, i)  # all of it


LONG_X = np.linspace(-2.0, 3.0, 400)
WRAPPED = {  # what runs, and runs no more, in place of functions that NumPy has written in Python
    "np.diff": (lambda x: np.sum(np.diff(x) ** 3) + np.sum(np.diff(x.reshape(20, 20), axis=0) ** 2), "[1:]"),
    "np.stack": (
        lambda x: np.sum(np.stack([x, np.sin(x)]) ** 2) + np.sum(np.cumsum(np.stack([x, x * x], 1), 1) ** 2),
        "np.array(",
    ),
    "np.clip": (lambda x: np.sum(np.clip(np.clip(x, -1.0, 1.0) * 2.0, x - 1.0, 1.5) ** 2), "np.ndarray.clip("),
    "np.any": (lambda x: np.sum(np.maximum(x.max(), 0.0) ** 0.3 * x) * np.any(x > 0.5), "logical_or_reduce("),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_functions_written_in_python_are_not_called(name):
    fun, instead = WRAPPED[name]
    derivative = value_and_grad(fun)
    for turn in range(3):
        value, slope = derivative(LONG_X + 0.01 * turn)
    expected, theirs = value_and_grad(fun, mode="dynamic")(LONG_X + 0.02)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slope, theirs, rtol=1e-11, atol=1e-12)
    text = re.sub("#.*", "", derivative.source(LONG_X, fast=True))
    assert f"{name}(" not in text
    assert instead in text


def test_what_is_made_of_constants_alone_is_made_once():
    """Loops count in numbers that are known when the code is made."""

    def turns(angles):
        whole = np.eye(3)
        for k in range(4):
            shift = np.array([[0.0, 0.0, 0.1 * k], [0.0, 0.0, 0.5], [0.0, 0.0, 1.0]]) + np.diag([1.0, 1.0, 0.0])
            whole = whole @ (shift * np.cos(angles[k]))
        return np.sum(whole)

    derivative, angles = grad(turns), np.linspace(0.1, 0.7, 4)
    with without("scalarize"):
        plain = grad(turns)
    for _ in range(3):
        np.testing.assert_allclose(plain(angles), derivative(angles), rtol=1e-12)
    assert not re.search(
        r"np\.(stack|array|diag)\(|\+", re.sub("#.*", "", plain.source(angles, fast=True)).split("backward")[0]
    )


@pytest.mark.parametrize("shape", [(40, 30), (40, 700), (40, 3)])
def test_inner_products_of_windows(shape):
    big, other = np.random.default_rng(0).standard_normal((2, 50, 800)).astype(np.longdouble)
    for x, y in (
        (big[2 : 2 + shape[0], 3 : 3 + shape[1]], other[: shape[0], : shape[1]]),
        (big[: shape[0], : shape[1]].T, other[: shape[0], : shape[1]].T),
    ):
        expected = np.sum(x * y)
        assert abs(runtime.inner(x.astype(float), y.astype(float)) - expected) < 1e-14 * np.sum(abs(x * y))


def test_dead_arrays_are_written_over_whatever_windows_results_are_of():
    """Of many products of windows of a big array, two are in memory at a time."""

    def convolution(x, k):
        out = 0.0
        for i in range(8):
            out = out + k[i] * x[i : i + 250, i : i + 250]
        return np.sum(out**2)

    derivative, args = grad(convolution, (0, 1)), (np.cos(np.arange(258.0 * 258)).reshape(258, 258), np.arange(8.0))
    for _ in range(3):
        results = derivative(*args)
    for got, want in zip(results, grad(convolution, (0, 1), mode="dynamic")(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-10)
    assert derivative.source(*args, fast=True).split("# backward")[0].count("empty((250, 250)") == 2


OF_ONE_NUMBER = {
    "np.sum(np.exp(x) @ w)": "return w * np.exp(x)",
    "np.sum(w @ np.exp(x))": "return w[:, None] * np.exp(x)",
    "np.mean(np.exp(x) @ m)": "return np.sum(m, axis=1) * np.exp(x) / 48",
    "np.mean(np.exp(x) @ m.T)": "return np.sum(m, axis=0) * np.exp(x) / 48",
    "np.sum(m @ np.exp(x))": "return np.sum(m, axis=0)[:, None] * np.exp(x)",
    "np.sum(m.T @ np.exp(x))": "return np.sum(m, axis=1)[:, None] * np.exp(x)",
    "np.sum(np.exp(x[0]) @ m)": "np.sum(m, axis=1) * np.exp(x[0])",
}


@pytest.mark.parametrize("text", OF_ONE_NUMBER)
def test_products_with_one_number_everywhere(text):
    """Of which all rows, or all columns, are the same."""
    x, w, m = np.sin(np.arange(16.0).reshape(4, 4)), np.arange(4.0) - 1.5, np.cos(np.arange(48.0).reshape(4, 12))
    m = m.T if re.search(r"\bm @|m\.T\)", text) else m
    derivative = grad(eval(f"lambda x, w, m: {text}", {"np": np}))
    for turn in range(3):
        slope = derivative(x + 0.1 * turn, w, m)
    np.testing.assert_allclose(slope, grad(derivative.__wrapped__, mode="dynamic")(x + 0.2, w, m), rtol=1e-12)
    assert OF_ONE_NUMBER[text] in derivative.source(x, w, m)


def test_cross_products_of_many():
    """In NumPy's own operations, without what its function looks at first."""
    x, y = np.random.default_rng(0).standard_normal((2, 30, 4, 3))
    for a, b in ((x, y), (x, y[0]), (y[0, 0], x), (x.T.copy().T, y)):
        shape = np.broadcast_shapes(a.shape, b.shape)
        np.testing.assert_array_equal(runtime.cross_rows(a, b, shape), np.cross(a, b))
    fun = lambda x, k: np.sum(np.sin(np.cross(x, k)) * np.cross(k, np.cos(x)))
    derivative = grad(fun, (0, 1))
    for turn in range(3):
        found = derivative(x + 0.1 * turn, y[0, 0])
    for got, want in zip(found, grad(fun, (0, 1), mode="dynamic")(x + 0.2, y[0, 0]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert "np.cross(" not in re.sub("#.*", "", derivative.source(x, y[0, 0], fast=True))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("np.where(np.logical_or(np.broadcast_to(m, (3, 4)), np.zeros_like(m)), x, 0.0)", "np.where(m, x, 0.0)"),
        ("np.where(np.logical_and(m, np.ones_like(m)), x, 0.0)", "np.where(m, x, 0.0)"),
        ("np.where(np.logical_and(m, m), x, 0.0)", "np.where(m, x, 0.0)"),
        ("np.where(m, np.where(m, x, 1.0), 0.0)", "np.where(m, x, 0.0)"),
        ("np.where(m, x, np.where(m, 1.0, 2.0 * x))", "np.where(m, x, 2.0 * x)"),
        ("np.where(m, x, np.zeros((3, 4)))", "np.where(m, x, 0)"),
        ("np.where(m, x, np.broadcast_to(np.zeros(4), (3, 4)))", "np.where(m, x, 0)"),
        (
            "x * np.where(np.any(np.broadcast_to(m[:, :1], (3, 4)), axis=1), 2.0, 3.0)[:, None]",
            "np.where(m[:, 0], 2.0, 3.0)[:, None] * x",
        ),
        ("np.squeeze(x[:, None, :], axis=1) * 2.0", "2.0 * x"),
        ("np.reshape(np.reshape(x, (12,)), (3, 4)) * 2.0", "2.0 * x"),
        ("x * np.reshape(np.reshape(x, (12,), order='F'), (3, 4))", "x * np.reshape(np.ravel(x, order='F'), (3, 4))"),
        ("np.where(np.logical_or(m, np.ones_like(m[:, :1])), x, 0.0) * 2.0", "2.0 * x"),
    ],
)
def test_masks_that_are_known_are_left_out(text, left):
    """Of what this says, as little is left in code as of ``left``."""
    sizes = []
    for body in (text, left):
        names = {"np": np}
        exec(f"def fun(x, m):\n    m = x > m\n    return np.sum(np.sin({body}))", names)
        fun, derivative = names["fun"], value_and_grad(names["fun"])
        for k in range(3):
            x = np.sin(np.arange(12.0) + k).reshape(3, 4)
            value, slope = derivative(x, 0.2)
            np.testing.assert_allclose(value, fun(x, 0.2), rtol=1e-14)
            np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x, 0.2), rtol=1e-14)
        sizes.append(len(re.findall(r"np\.\w+", derivative.source(x, 0.2))))
    assert sizes[0] <= sizes[1]


@pytest.mark.parametrize("spec", ["1, 2", "1", ":, 1", "1:, 1:3", "::2", "0:0", "i, 2", "i, i", "[0, 1, 1], [0, 2, 2]", "m"])
@pytest.mark.parametrize("value", ["True", "x.sum() > 0", "m[{0}]", "np.False_"])
@pytest.mark.parametrize("mask", ["m & ~n", "m | n", "~n & m", "n | m", "m & n", "m | ~n"])
def test_masks_beside_those_of_a_place_are_written_there(mask, value, spec):
    """Whatever the place is, and whatever else reads the one that is written into."""
    text = f"n = np.zeros_like(m); n[{spec}] = {value.format(spec)}; return np.sum(np.where({mask}, np.sin(x), 0.0))"
    for tail in ("", " + np.sum(np.where(m, x, 2 * x)) * np.sum(n)"):
        names = {"np": np}
        exec(f"def fun(x, i):\n    m = x > 0.2\n    {text}{tail}", names)
        derivative, plain = value_and_grad(names["fun"]), value_and_grad(names["fun"], mode="dynamic")
        for k in range(4):
            x = np.sin(np.arange(12.0) + k).reshape(3, 4)
            for got, want in zip(derivative(x, k % 3), plain(x, k % 3), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-13)


def test_an_outer_product_of_a_number_and_others_is_as_numpy_has_it():
    """``np.outer`` makes rows of all that it gets, of one number too."""
    for fun in (
        lambda z, y: np.outer(np.sum(np.sin(y - z)), y - z),
        lambda z, y: np.outer(y - z, np.sum(np.sin(y - z))),
        lambda z, y: np.outer(np.broadcast_to(z, (2, 2)), y[:, None] * z),
    ):
        derivative, plain = jacfwd(fun), jacfwd(fun, mode="dynamic")
        for z in (0.1, 0.2, 0.3):
            np.testing.assert_allclose(derivative(z, X[0]), plain(z, X[0]), rtol=1e-12)


@pytest.mark.parametrize(
    "fun",
    [
        lambda a: np.sum(np.where(a > 0, a, 0) / np.sum(a > 0, axis=1)),
        lambda a: np.sum(np.where(a > 0, a / np.sum(a > 0, axis=1), 0)),
        lambda a: np.sum(np.where(a > 0, a, 0) / np.sum(a > 0, axis=0)[:, None]),
    ],
)
def test_shares_of_a_square_array_along_its_other_axis(fun):
    a = np.random.default_rng(0).normal(size=(40, 40))
    derivative = grad(fun)
    for _ in range(3):
        np.testing.assert_allclose(derivative(a), grad(fun, mode="dynamic")(a), rtol=1e-12)


# -- what is read and written at places known at run time ----------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int8])
def test_what_is_read_beside_what_was_written_was_there_before(kind):
    """Small integers wrap around: there, another number may be the same place."""

    def fun(x, i):
        y = x * 2.0
        y[i] = np.sin(x[0])
        y[i] = y[i + kind(1)] * y[i - kind(1)]
        return y[i] * y[i + kind(1)] + np.sum(y**2)

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    x = np.linspace(0.3, 1.4, 256)
    for i in (5, 100, 126, 3, 7):
        for _ in range(2):
            value, slope = derivative(x, kind(i))
            assert value == pytest.approx(fun(x, kind(i)))
            np.testing.assert_allclose(slope, dynamic(x, kind(i))[1], rtol=1e-12)


def test_what_is_written_over_at_once_is_not_written():
    def fun(x):
        out = np.zeros((40, 3))
        for i in range(1, 40):
            out[i] = np.sin(x) * i
            out[i] = out[i - 1] * x + i
        return np.sum(out**2)

    derivative, x = value_and_grad(fun), np.array([0.3, 0.5, 0.9])
    for _ in range(3):
        value, slope = derivative(x)
    assert value == pytest.approx(fun(x))
    np.testing.assert_allclose(slope, value_and_grad(fun, mode="dynamic")(x)[1], rtol=1e-12)
    forward = str(derivative.source(x)).split("# backward")[0]
    assert sum("[i] = " in line for line in forward.splitlines() if "#" not in line) == 1


WINDOWED = {
    "from the left": lambda windows, k: windows @ k,
    "from the right": lambda windows, k: k @ windows.T,
    "summed": lambda windows, k: np.sum(windows * k, axis=1),
}


@pytest.mark.parametrize("kind", WINDOWED)
@pytest.mark.parametrize(("n", "m"), [(200, 9), (60, 51), (7, 7), (9, 1)])
def test_products_of_windows_are_correlations(kind, n, m):
    def fun(k, x):
        windows = np.lib.stride_tricks.sliding_window_view(x, m)
        return np.sum(np.tanh(WINDOWED[kind](windows, k)) ** 2)

    def loop(k, x):
        return sum([np.tanh(x[i : i + m] @ k) ** 2 for i in range(n - m + 1)])

    rng = np.random.default_rng(0)
    k, x = rng.normal(size=m), rng.normal(size=n)
    derivative = grad(fun, (0, 1))
    for _ in range(3):
        for found, expected in zip(derivative(k, x), grad(loop, (0, 1), mode="dynamic")(k, x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    if n == 200:
        code = derivative.source(k, x, fast=True)
        assert "correlate(" in code
        assert "convolve(" in code


POWERS = [
    lambda x: x[:, None] ** np.arange(6),
    lambda x: x ** np.arange(4)[:, None],
    lambda x: np.power(x.reshape(4, 1, 10), np.array([3, 1, 0, 7])[:, None]),
    lambda x: np.power(x[:, None], np.array([2.0, 5.0])),
    lambda x: np.vander(x, 5),
]


@pytest.mark.parametrize("powers", POWERS)
def test_powers_of_one_array_are_products(powers):
    """Of negative numbers NumPy's power takes some 50 times as long."""
    x = np.random.default_rng(0).normal(size=40)
    x[:2] = 0.0, -1.0
    derivative = grad(lambda x: np.sum(np.sin(powers(x))))
    np.testing.assert_allclose(
        derivative(x), grad(lambda x: np.sum(np.sin(powers(x))), mode="dynamic")(x), rtol=1e-13, atol=1e-15
    )
    assert derivative.source(x, fast=True).count("runtime.powers") == 2  # and of their slopes


@pytest.mark.parametrize(("shape", "kth", "axis"), [((2000,), 5, 0), ((40, 60), (-3, 0, 30), 1), ((6, 40, 9), -2, -2)])
@pytest.mark.parametrize("kind", ["apart", "equal", "nan"])
def test_partitions_go_back_in_stable_order(shape, kth, axis, kind):
    """However little of them is sorted."""
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=shape), rng.normal(size=shape)
    x = np.round(x) if kind == "equal" else np.where(rng.random(shape) < 0.1, np.nan, x) if kind == "nan" else x
    parts = np.partition(x, kth, axis)
    few = np.zeros(shape)
    np.moveaxis(few, axis, 0)[:4] = np.moveaxis(weights, axis, 0)[:4]
    for g in (weights, np.zeros(shape), few):
        expected = np.empty(shape)
        ordered = np.take_along_axis(g, np.argsort(parts, axis, kind="stable"), axis)
        np.put_along_axis(expected, np.argsort(x, axis, kind="stable"), ordered, axis)
        derivative = grad(lambda x, g: np.sum(np.partition(x, kth, axis) * g))
        for _ in range(3):
            np.testing.assert_array_equal(derivative(x, g), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("shape", "axis"), [((90, 100), 1), ((90, 100), 0), ((8, 30, 40), (0, 2)), ((9000,), 0), ((90, 100), None)]
)
@np.errstate(all="ignore")
def test_extremes_are_few(shape, axis, dtype):
    """What goes back to them is put where they are; equal ones share it, many or few."""
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    wild = x.copy()
    wild.flat[::77], wild.flat[3] = np.nan, np.inf
    for extreme in (np.max, np.min):
        for keepdims in (False, True):
            for power in (1, 2):
                fun = lambda x, extreme=extreme, keepdims=keepdims, power=power: np.sum(
                    3 * extreme(x, axis=axis, keepdims=keepdims) ** power
                )
                derivative = grad(fun)
                for some in (x, np.asarray(x, order="F"), np.round(x), np.ones_like(x), wild):
                    for _ in range(3):
                        found = derivative(some)
                    expected = grad(fun, mode="dynamic")(some)
                    assert found.dtype == dtype
                    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == np.float32 else 1e-14)
                assert "runtime.to_extremes" in derivative.source(x, fast=True)


def test_powers_of_a_number():
    derivative = grad(lambda x: np.sum(np.sum(x) ** np.array([1, 1, 2])) + np.sum(np.sum(x) ** np.arange(4)))
    for total in (3.0, 6.0, 9.0):
        slope = 2 + 2 * total + 1 + 2 * total + 3 * total**2
        np.testing.assert_allclose(derivative(np.full(3, total / 3)), np.full(3, slope), rtol=1e-12)


@pytest.mark.parametrize("exponent", [3, 5, 6, 7, 8, -3])
def test_small_powers_are_products(exponent):
    x = np.random.default_rng(0).normal(size=50)
    derivative = grad(lambda x: np.sum(x**exponent * np.sin(x)))
    np.testing.assert_allclose(derivative(x), x ** (exponent - 1) * (exponent * np.sin(x) + x * np.cos(x)), rtol=1e-13)
    assert "power(" not in derivative.source(x, fast=True)
    derivative(np.full(50, 1e79 if exponent < 0 else 1e30))  # and overflow no more than the power itself


def test_outer_products_are_multiplied_vector_by_vector():
    rng = np.random.default_rng(0)
    a, b, c, v = *[rng.normal(size=(60, 60)) for _ in range(3)], rng.normal(size=60)
    derivative = grad(lambda a, b, c, v: np.sum((a @ b @ c @ v) ** 2), (0, 1, 3))
    r = 2 * (a @ b @ c @ v)
    wanted = np.outer(r, b @ (c @ v)), np.outer(a.T @ r, c @ v), c.T @ (b.T @ (a.T @ r))
    for found, expected in zip(derivative(a, b, c, v), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-8)
    backward = derivative.source(a, b, c, v, fast=True).split("# backward")[1]
    assert backward.count("[:, None].dot(") == 2


def test_diagonals_of_products_need_no_product():
    rng = np.random.default_rng(0)
    w, x, y = rng.normal(size=(8, 8)), rng.normal(size=(50, 8)), rng.normal(size=(50, 8))
    derivative = grad(lambda w, x, y: np.sum(np.tanh(np.diag(x @ w @ y.T)) ** 2), (0, 1, 2))
    apart = grad(lambda w, x, y: np.sum(np.tanh(np.sum((x @ w) * y, axis=1)) ** 2), (0, 1, 2))
    for found, expected in zip(derivative(w, x, y), apart(w, x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert "(50, 50)" not in derivative.source(w, x, y, fast=True)
    assert "np.diag" not in re.sub("#.*", "", derivative.source(w, x, y, fast=True))


def test_shifts_of_softmax_have_no_derivative_however_axes_are_put_back():
    def kept(x, y):
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        return np.sum(np.log(e / np.sum(e, axis=1, keepdims=True)) * y)

    def put_back(x, y):
        e = np.exp(x - x.max(axis=1)[:, None])
        return np.sum(np.log(e / e.sum(axis=1)[:, None]) * y)

    x, y = np.random.default_rng(0).normal(size=(2, 6, 4))
    np.testing.assert_allclose(grad(put_back)(x, y), grad(kept)(x, y), rtol=1e-12)
    assert "==" not in grad(put_back).source(x, y)


TWO_NAMES = {
    "twice": lambda z: np.sum(np.max(z, axis=1) + np.log(np.sum(np.exp(z - np.max(z, axis=1, keepdims=True)), axis=1))),
    "twice, put back": lambda z: np.sum(z.max(1) + np.log(np.exp(z - z.max(1)[:, None]).sum(1))),
    "kept first": lambda z: np.sum(np.log(np.sum(np.exp(z - np.max(z, 1, keepdims=True)), axis=1)) + np.max(z, 1)),
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", TWO_NAMES)
def test_maxima_by_two_names_are_one(name, dtype):
    """Where they are but subtracted for safety, no derivative goes through them; ties make no difference."""
    derivative, rng = grad(TWO_NAMES[name]), np.random.default_rng(0)
    for z in (rng.normal(size=(7, 5)), np.round(rng.normal(size=(7, 5))), 300 * rng.normal(size=(7, 5))):
        z = z.astype(dtype)
        for _ in range(3):
            found = derivative(z)
        assert found.dtype == z.dtype
        rtol, atol = (1e-10, 1e-12) if dtype == "f8" else (1e-4, 1e-6)
        np.testing.assert_allclose(found, grad(TWO_NAMES[name], mode="dynamic")(z), rtol=rtol, atol=atol)
    text = re.sub("#.*", "", derivative.source(z))
    assert "==" not in text
    assert text.count("np.max(") == 1


def test_powers_of_two_are_taken_out_of_sums_in_single_precision():
    """Which is exact; of other numbers each product would be rounded once more, or once less."""
    x = np.random.default_rng(0).normal(size=(40, 30)).astype("f4")
    for factor in (-1.0, -2.0, 4.0, 0.5, 3.0):
        fun = lambda x, c=factor: np.sum(np.exp(c * np.sum(c * np.sin(x), axis=1) / 30))
        np.testing.assert_allclose(grad(fun)(x), grad(fun, mode="dynamic")(x), rtol=2e-5, atol=1e-6)


PARTS = {
    "concatenate": lambda x: np.sum(np.sin(np.concatenate((10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]))[5:]) ** 2),
    "concatenate, all": lambda x: np.sum(np.concatenate((x[1:] * x[:-1], 1 - x)) ** 2),
    "rows": lambda x: np.sum(np.concatenate((np.outer(x, x), np.outer(x, x**2)), axis=1)[2, 3:7] ** 3),
    "one": lambda x: np.concatenate((x * x, x**3))[-2] * np.concatenate((x * x, x**3))[3],
    "beyond": lambda x: np.sum(np.concatenate((x, x**2))[4:20] ** 2),
    "stack": lambda x: np.sum(np.stack((x * x, np.sin(x)))[1] ** 2 + np.stack((x * x, np.sin(x)), axis=-1)[:, 0]),
    "roll": lambda x: np.sum((np.roll(x, -1)[:-1] - x[:-1] ** 2) ** 2),
    "roll, back": lambda x: np.sum((np.roll(x, 3)[3:] * x[3:]) ** 2 + np.roll(x, 3)[1] + np.roll(x, 3)[2:4].sum()),
    "roll, rows": lambda x: np.sum((np.roll(np.outer(x, x), -2, axis=1)[:, :-2] * np.sin(x)[:, None]) ** 2),
    "arange": lambda x: np.sum((x[np.arange(1, 12)] - x[np.arange(11)] ** 2) ** 2) + np.sum(x[np.arange(0, 12, 3)] ** 3),
    "set": lambda x: np.sum(put(x) ** 2),
}


def put(x):
    y, i = x.copy(), np.arange(2, 10, 2)
    y[i] = np.sin(x[i + 1])
    y[np.arange(3)] += x[-3:]
    return y


@pytest.mark.parametrize("fun", PARTS.values(), ids=PARTS.keys())
def test_parts_are_read_where_they_are_from(fun):
    rng = np.random.default_rng(0)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for _ in range(3):
        x = rng.normal(size=12)
        value, slope = derivative(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["concatenate, all", "stack", "roll", "arange"])
def test_what_parts_are_read_of_is_not_made(name):
    derivative = grad(PARTS[name])
    derivative(np.linspace(0.1, 1.0, 12))
    code = re.sub("#.*", "", derivative.source(np.linspace(0.1, 1.0, 12), fast=True))
    assert not re.search(r"concatenate|stack|roll|array\(|take", code)


def test_differences_of_long_arrays_have_no_joined_derivative():
    x = np.random.default_rng(0).normal(size=200_000)
    derivative = grad(lambda x: np.sum(np.diff(x) ** 2))
    d = 2 * np.diff(x)
    np.testing.assert_allclose(derivative(x), np.append(0, d) - np.append(d, 0), rtol=1e-12)
    assert "concatenate" not in derivative.source(x, fast=True)


@pytest.mark.parametrize("n", [400, 40_000])
def test_products_of_matrices_however_they_lie(n):
    """Long ones are multiplied block by block, if they are tall; how they lie in memory is not known before."""
    rng = np.random.default_rng(0)
    x, w, y = rng.normal(size=(n, 50)), rng.normal(size=50) * 0.1, (rng.random(n) < 0.5) * 1.0

    def loss(w, x, y):
        p = 1 / (1 + np.exp(-(x @ w)))
        return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))

    def features_first(w, x, y):
        return -np.mean(np.log(1 / (1 + np.exp(-(2 * y - 1) * (w @ x)))))

    wanted = x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / n
    for fun, array in [(loss, x), (loss, np.asfortranarray(x)), (features_first, x.T.copy()), (features_first, x.T)]:
        derivative = grad(fun)
        for _ in range(3):
            np.testing.assert_allclose(derivative(w, array, y), wanted, rtol=1e-9, atol=1e-12)


ZEROS = [
    "y + 0", "0 + y", "y - 0", "0 - y", "y + 0.0", "0.0 - y", "y - -0.0", "-0.0 - y", "y * 1 + 0", "0 - (-y)", "-(0 - y)",
    "-(y - 0)", "(y + 0) + 0", "y + 1 - 1", "abs(y) * -1 + 0", "0 * y", "y / -1", "-2 * y * 3", "y - (0 - y)", "sum([y])",
    "sum([y, y])", "sum([y, y], -0.0)",
]  # fmt: skip
THERE = ["np.copysign(1.0, {})", "1 // {}", "np.arctan2({}, -1.0)", "1 / {}"]
OF_ARRAYS = ["np.sort({})[::-1]", "np.where(y > 5, 1.0, {})", "np.maximum({}, -1)", "np.concatenate([{}, y])", "np.cumsum({})",
             "np.add.reduceat({}, [0, 1])", "np.ravel({}) + np.sum({}[1:])"]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("text", ZEROS)
def test_zeros_keep_their_signs(text, mode):
    """In what the user wrote, whatever tells them apart."""
    for kind in ("array", "numpy", "python"):
        steps = ["{}", *(OF_ARRAYS if kind == "array" else [])]
        calls = [last.format(step.format(f"({text})", f"({text})")) for step in steps for last in THERE]
        calls = [call for call in calls if kind == "array" or "/" not in call]  # of numbers, Python raises
        fun = eval("lambda y: [" + ", ".join(calls) + "]", {"np": np})
        derivative = value_and_grad(lambda y, fun=fun: (np.sum(y), fun(y)), has_aux=True, mode=mode)
        made = {"array": lambda *y: np.array(y), "numpy": lambda y, _: np.float64(y), "python": lambda y, _: y}[kind]
        for _ in range(3):
            derivative(made(0.3, 0.7))
        for odd in ((-0.0, 0.0), (0.0, -0.0), (-0.0, -0.0)):
            for call, found, wanted in zip(calls, derivative(made(*odd))[0][1], fun(made(*odd)), strict=True):
                np.testing.assert_array_equal(found, wanted, err_msg=call)


OF_INTEGERS = [
    "np.sum(x * -a)", "np.sum(-a * x)", "np.sum((x - -a) ** 2)", "np.sum(x / -(a + 1))", "np.sum(x * -(a - a[::-1]))",
    "np.sum(np.outer(x, -a))", "np.sum(x - (a - a[::-1]))", "sum(-v * u for v, u in zip(a, x))",
    "sum(u / -(v | 1) for v, u in zip(a, x))", "sum((u - -v) ** 2 for v, u in zip(a, x))",
    "sum(u * -(v * v) for v, u in zip(a, x))",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["u1", "i1", "u4", "u8", "i8"])
@pytest.mark.parametrize("text", OF_INTEGERS)
def test_opposites_of_integers_are_numpys(text, dtype):
    """Those without a sign wrap round, and the least one of the others is its own."""
    fun = eval(f"lambda x, a: {text}", {"np": np})
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for least in (1, np.iinfo(dtype).min):
        a = np.array([least, 7, 0, 3, 100]).astype(dtype)
        for factor in (0.5, 1.0, 1.5, 2.0):
            x = factor * np.array([0.3, -1.5, 2.0, 0.7, -0.1])
            for found, expected in zip(derivative(x, a), plain(x, a), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12)
            np.testing.assert_allclose(derivative(x, a)[0], fun(x, a), rtol=1e-12)


FAR = {  # functions, of numbers from which a product of the factors alone is out of their precision's range
    "physical": (lambda x: np.sum((x / (1.380649e-23 * 300.0)) ** 2), "f4", [4e-21, 2e-21, 1e-20]),
    "small": (lambda x: np.sum((1e-25 * x) ** 2), "f4", [1e24, 2e24, 3e24]),
    "subnormal": (lambda x: np.sum((3e-22 * x) ** 2), "f4", [1e18, 2e18]),
    "half": (lambda x: np.sum((300 * x) ** 2), "f2", [0.01, 0.02]),
    "half by": (lambda x: np.mean((x / 0.003) ** 2), "f2", [0.01, 0.02]),
    "out of a sum": (lambda x: np.sum(1e-20 * x * x), "f4", [1e20, 2e20]),
    "into a sum": (lambda x: np.sum(1e20 * x * x), "f4", [1e-25, 2e-25]),
    "of a sum": (lambda x: np.sum((x / 1e20) ** 2) * 1e30, "f4", [1e20, 2e20]),
    "of a sum of doubles": (lambda x: np.sum((x / 1e20) ** 2) * 1e30, "f8", [1e155, 2e155]),
    "twice": (lambda x: np.sum(np.log(1e20 * x * 1e20)), "f4", [0.01, 0.02]),
    "of an inverse": (lambda x: np.sum((1e20 * x) ** -1 * 1e20), "f4", [10.0, 5.0]),
    "gaussian": (lambda x: np.sum(np.exp(-x * x / (2 * 1e-20**2))), "f4", [1e-17, 1e-18]),
    "quadratic": (lambda x: np.sum(-0.5 * (x / 1e-20) ** 2), "f4", [1e-19, 2e-19]),
    "norm of inverses": (lambda x: np.linalg.norm(1 / x), "f4", [1e-14, 2e-14]),
    "norm of large inverses": (lambda x: np.linalg.norm(1 / x), "f4", [1e17, 2e17]),
    "dot": (lambda x: np.dot(1e20 * x, 1e20 * x), "f4", [1e-19, 2e-19]),
    "inverse square": (lambda x: np.sum(x**-2) * 1e35, "f4", [3e19, 4e19]),
    "inverse square of doubles": (lambda x: np.sum(x**-2) * 1e35, "f8", [1e156, 1e155]),
    "inverse of a power": (lambda x: np.sum(np.sqrt(np.abs(x**5 * ((x**5) ** -1 * x)))), "f4", [8000.0, 7000.0, 6000.0]),
}


@pytest.mark.parametrize("times", [1, 30, 1500])
@pytest.mark.parametrize(("fun", "dtype", "numbers"), FAR.values(), ids=FAR)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_factors_stay_in_the_range_of_the_precision(fun, dtype, numbers, times):
    x = np.repeat(np.array(numbers, dtype), times if dtype != "f2" else min(times, 30))
    rtol = {"f2": 5e-3, "f4": 2e-5, "f8": 1e-12}[dtype]
    value, slope = value_and_grad(fun, mode="dynamic")(x)
    np.testing.assert_allclose(value, fun(x), rtol=rtol)
    derivative = value_and_grad(fun)
    for _ in range(4):
        found, other = derivative(x)
        np.testing.assert_allclose(found, value, rtol=rtol)
        np.testing.assert_allclose(other, slope, rtol=rtol, atol=0.0)


def of_three(x):
    a, b, c = x[0], x[1], x[2]
    m = max(a, b, c)
    return 2.0 * (m + np.log(np.exp(a - m) + np.exp(b - m) + np.exp(c - m)))


def of_rows(x):
    a, b = x[:2], x[2:]
    m = np.maximum(a, b)
    return np.sum((m + np.log(np.exp(a - m) + 3.0 * np.exp(b - m))) ** 2)


def of_two_beside_another(x):
    m = np.maximum(x[0], x[1])
    return np.sin(m + np.log(np.exp(x[0] - m) + np.exp(x[1] - m))) * x[2]


def soft_distance(x):
    n = len(x) - 1
    d = np.full((n + 1, n + 1), np.inf)
    d[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            r = np.array([d[i - 1, j - 1], d[i - 1, j], d[i, j - 1]]) / -0.5
            top = np.max(r)
            d[i, j] = (x[i] - 0.5 * x[j]) ** 2 - 0.5 * (top + np.log(np.sum(np.exp(r - top))))
    return d[n, n]


@pytest.mark.parametrize(("fun", "chosen"), [(of_three, 2), (of_rows, 2), (of_two_beside_another, 1), (soft_distance, 2)])
def test_no_gradient_goes_through_the_shift_of_a_sum_that_is_written_out(fun, chosen):
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    for _ in range(4):
        x = rng.normal(size=8 if fun is soft_distance else (4 if fun is of_rows else 3))
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-12, atol=1e-15)
    source = str(derivative.source(x, fast=True))
    assert source.count(" if ") == chosen
    assert "equal" not in source
    assert "heaviside" not in source


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: max(x[0], x[1]) + np.log(np.exp(x[0]) + np.exp(x[1])),
        lambda x: 2.0 * max(x[0], x[1]) + np.log(np.exp(x[0] - max(x[0], x[1])) + np.exp(x[1] - max(x[0], x[1]))),
        lambda x: (m := max(x[0], x[1])) + np.log(np.exp(x[0] - m) + 2.0 * np.exp(x[1] - m) + np.exp(x[2])),
        lambda x: (m := max(x[0], x[1])) + 0.5 * np.log(np.exp(x[0] - m) + np.exp(x[1] - m)),
    ],
)
def test_sums_that_hang_on_their_shift_have_its_gradient(fun):
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    for _ in range(4):
        x = rng.normal(size=3)
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-12)


@pytest.mark.parametrize("exponent", [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
def test_half_powers_of_what_is_not_below_zero_are_roots(exponent):
    """Off by a rounding or two, and with the same infinities; of other numbers, they are powers still but in derivatives."""
    names = {"np": np}
    exec(f"lengths = lambda x: np.sum(np.log1p(np.sum(x**2, axis=1) ** {exponent}))", names)
    exec(f"whole = lambda x: np.sum(np.where(x > -2.0, x, 1.0) ** {exponent})", names)
    exec(f"powers = lambda y: (np.sum(p := np.square(y) ** {exponent}), p)", names)
    lengths, x = names["lengths"], np.random.default_rng(0).normal(size=(300, 3)) + 0.5
    derivative, powers = value_and_grad(lengths), value_and_grad(names["powers"], has_aux=True)
    for _ in range(3):
        value, slope = derivative(x)
        powers(np.ones(300))
    assert "power" not in derivative.source(x, fast=True)
    value, slope = str(value_and_grad(names["whole"]).source(np.abs(x), fast=True)).split("# backward")
    # before NumPy 2.3, np.power is another one than the root, which ``x**0.5`` is
    is_root = exponent == 0.5 and not np.signbit(np.power(np.array([-0.0]), 0.5))[0]
    assert ("power" in value) != is_root
    assert "power" not in slope
    small = grad(names["whole"])
    for _ in range(2):
        found = small(np.abs(x))
    np.testing.assert_allclose(found, exponent * np.abs(x) ** (exponent - 1), rtol=1e-13)
    y = np.zeros(300)
    y[::2] = -0.0
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(small(y), 0.5 / np.sqrt(y) if is_root else exponent * y ** (exponent - 1))
    value, slope = derivative(x)
    np.testing.assert_allclose(value, lengths(x), rtol=1e-13)
    np.testing.assert_allclose(slope, grad(lengths, mode="dynamic")(x), rtol=1e-12)
    with np.errstate(all="ignore"):
        for special in (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-160, 1e150, 5e-324):
            y = np.full(300, special)
            (_, found), _ = powers(y)
            np.testing.assert_allclose(found, names["powers"](y)[1], rtol=1e-14)


def test_what_is_added_to_elements_is_not_taken_out_and_put_back():
    """However much is added elsewhere meanwhile, or at the same place."""

    def fun(x, w, more=False):
        y = 1.0 * x
        for i in range(2, 7):
            y[i] += w[i] * y[i - 1] * np.tanh(y[i - 2])
            if more:
                y[i % 3] += y[i]
        y[2:5] += y[3:6] * w[:3]
        return np.sum(y * w)

    rng = np.random.default_rng(5)
    derivative = grad(fun, (0, 1))
    with without("loops", "simplify", "share"):
        others = grad(fun, (0, 1))
    for more in (False, True):
        for _ in range(4):
            x, w = rng.normal(size=8), rng.normal(size=8)
            for found, expected in zip(derivative(x, w, more), others(x, w, more), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert "= 0" not in derivative.source(x, w)


SLOPES = {
    "leaky": lambda x: np.sum(np.maximum(x, 0.1 * x) * np.cos(x)),
    "leaky the other way": lambda x: np.sum(np.maximum(0.2 * x, x) * x),
    "smallest": lambda x: np.sum(np.minimum(x, 3 * x) * np.cos(x)),
    "chosen": lambda x: np.sum(np.where(x > 0, x, 0.1 * x) * np.cos(x)),
    "chosen otherwise": lambda x: np.sum(np.where(x > 0, -0.1 * x, 2 * x)),
    "more than": lambda x: np.mean(np.maximum(-x - 0.1, 0)) / 0.05,
    "of a mask": lambda x: np.mean(np.where(np.isfinite(x), np.maximum(x, 0.1 * x), 0)),
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", SLOPES)
def test_one_slope_or_another(name, dtype):
    fun = SLOPES[name]
    x = np.sin(np.arange(4096.0)).reshape(64, 64).astype(dtype)
    tied = np.where(np.arange(64) % 3, x, 0).astype(dtype)
    derivative, plain = grad(fun), grad(fun, mode="dynamic")
    for given in (x, tied, x, -x):
        for _ in range(2):
            found = derivative(given)
        expected = plain(given)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(
            found, expected, rtol=1e-12 if dtype == "f8" else 1e-5, atol=1e-18 if dtype == "f8" else 1e-7
        )
    source = str(derivative.source(x, fast=True))
    assert source.count("runtime.steps") == (not name.startswith(("chosen", "more")))
    assert source.count("runtime.select(") == (name in ("chosen", "of a mask"))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (2, 5, 3)])
def test_triangles_by_masks(shape, dtype):
    def fun(x):
        parts = [np.tril(x), np.triu(x, 1), np.tril(x, -1), np.triu(x, -2), np.tril(x, 1)]
        return np.sum(np.abs(sum((i + 1) * part**2 for i, part in enumerate(parts))))

    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape).astype(dtype) * (1 + 0.5j if dtype == "c16" else 1)
    derivative = grad(fun)
    for _ in range(3):
        found = derivative(x)
    np.testing.assert_allclose(found, grad(fun, mode="dynamic")(x), rtol=1e-12 if dtype != "f4" else 1e-5)
    assert "= np.tri" not in derivative.source(x, fast=True)
    infinite = np.where(np.tri(*shape[-2:], dtype=bool), x, np.inf).astype(dtype)
    lower = grad(lambda x: np.sum(np.abs(np.tril(x)) ** 2))
    for _ in range(3):
        np.testing.assert_allclose(lower(infinite), 2 * np.tril(x), rtol=1e-5)


def test_quotients_that_are_there():
    def fun(x, y, v):
        r = x / v
        return np.sum(r**2) + np.sum(r * y) + np.sum(x * y / v)

    derivative = grad(fun, (0, 1, 2))
    args = np.sin(np.arange(2000.0)), np.cos(np.arange(2000.0)), 3.0
    for _ in range(3):
        found = derivative(*args)
    for one, other in zip(found, grad(fun, (0, 1, 2), mode="dynamic")(*args), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shapes", [((20, 30), (20, 30)), ((20, 1), (20, 30)), ((30,), (20, 30)), ((20, 30), (1, 30))])
def test_sums_of_two_exponentials(shapes, dtype):
    fun = lambda x, y: np.sum(np.logaddexp(x, y) * np.cos(x) + np.logaddexp(y, x) ** 2)
    alone = lambda x, y: np.sum(np.logaddexp(x, y))
    x, y = (5 * np.sin(np.arange(float(np.prod(shape)))).reshape(shape).astype(dtype) for shape in shapes)
    far = [np.where(np.arange(z.shape[-1]) % 3, z, 800 * np.sign(z)).astype(dtype) for z in (x, y)]
    nothing = [np.where(np.arange(z.shape[-1]) % (3 + i), z, -np.inf).astype(dtype) for i, z in enumerate((x, y))]
    derivative, only = value_and_grad(fun, (0, 1)), grad(alone, (0, 1))
    for made, given in itertools.product((derivative, only), ((x, y), far, (x, x[:]), nothing, (x, y))):
        if (made is derivative and given is nothing) or given[1].shape != y.shape:
            continue
        for _ in range(2):
            found = made(*given)
        expected = (value_and_grad(fun, (0, 1), mode="dynamic") if made is derivative else grad(alone, (0, 1), mode="dynamic"))(
            *given
        )
        for one, other in zip(_leaves(found), _leaves(expected), strict=True):
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, rtol=1e-12 if dtype == "f8" else 1e-3, atol=1e-14 if dtype == "f8" else 1e-6)
    assert "runtime.weight" in only.source(x, y, fast=True)
    assert "logaddexp(" not in str(only.source(x, y, fast=True)).split("# backward")[1]


def _leaves(found):
    return [leaf for part in found for leaf in (part if isinstance(part, tuple) else (part,))]


@pytest.mark.parametrize("size", [50, 2000])
def test_what_is_nearly_a_logistic_function_is_none(size):
    """A factor more on one side."""
    z = 3 * np.sin(np.arange(float(size)))
    for fun in (
        lambda z: np.sum(np.maximum(z, 0) + np.sign(z) * np.log1p(np.exp(-np.abs(z)))),
        lambda z: np.sum(np.maximum(z, 0) + stop_gradient(np.exp(-np.abs(z))) * np.log1p(np.exp(-np.abs(z)))),
        lambda z: np.sum(np.cos(z) * np.maximum(z, 0) + np.sin(z) * np.log1p(np.exp(-np.abs(z)))),
        lambda z: np.sum(np.maximum(z, 0) - 0.3 * z + np.sign(z) * np.log1p(np.exp(-np.abs(z)))),
        lambda z: np.sum(np.cos(z) * (np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))) ** 2),
    ):
        derivative = grad(fun)
        for _ in range(3):
            found = derivative(z)
        np.testing.assert_allclose(found, grad(fun, mode="dynamic")(z), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("small", [1e-3, 1e-7, 1e-12])
def test_small_slopes_keep_their_digits(small):
    x = np.sin(np.arange(2000.0))
    x[5] = 0.0
    for fun in (
        lambda x, c: np.sum(np.where(x < 0, c * x, x) * np.cos(x)),
        lambda x, c: np.sum(np.where(x < 0, x, c * x) ** 2),
        lambda x, c: np.sum(np.maximum(x, c * x) ** 2 + np.minimum(c * x, x)),
    ):
        derivative = grad(lambda x: fun(x, small))  # noqa: B023
        for _ in range(3):
            found = derivative(x)
        np.testing.assert_allclose(found, grad(fun, mode="dynamic")(x, small), rtol=1e-12, atol=1e-30)


def jumping_loop(x, h):
    """An iteration decides by a mask on what the one before has left."""
    total, v = 0.0, x
    for _ in range(5):
        v = v / h
        total = total + np.floor(v) * x + (v >= 1.0) * x
        v = v * h
    return np.sum(total)


JUMPING = [
    lambda x, h: np.sum(np.floor(x / h) * x),
    lambda x, h: np.sum(np.floor(x / 49.0) * x),
    lambda x, h: np.sum((x / h >= 1.0) * x),
    lambda x, h: np.sum(np.where(x / 49.0 == 1.0, x, 0.0)),
    lambda x, h: np.sum((x / h).astype(int) * x),
    lambda x, h: np.sum(np.floor(x**-2 * x * x) * x),
    lambda x, h: np.sum(np.trunc(x / h * 3.0) * x) + np.sum(np.sign(x / h - 1.0) * x),
    lambda x, h: np.sum(np.round(x / h - 0.5) * x) + np.sum((x / h % 1.0 < 0.5) * x),
    lambda x, h: np.sum(np.take(x, np.searchsorted(np.array([0.5, 1.0]), x / h, side="right"))),
    lambda x, h: np.sum((np.stack([x / h, x]).max(axis=0) // 1.0).reshape(-1) * x),
    lambda x, h: np.sum(np.exp(-x) * ((2.0 * x[::-1] + x) / (3.0 * h) < 1.0)),
    jumping_loop,
]


@pytest.mark.parametrize("fun", JUMPING)
@pytest.mark.parametrize("size", [4, 1500, 200_000])
def test_what_jumps_look_at_is_computed_to_the_bit(fun, size):
    """Of so many numbers, the quotient by themselves is no product with the reciprocal, which is a bit less than one."""
    off = [h for h in map(float, range(2, 300)) if h * (1 / h) != 1.0]
    assert 49.0 in off
    x = np.resize(off, size)
    for h in (x, np.full(size, 49.0)):
        derivative, dynamic = (value_and_grad(fun, mode=mode) for mode in ("auto", "dynamic"))
        for _ in range(3):
            (value, slope), (other, expected) = derivative(x, h), dynamic(x, h)
            assert value == pytest.approx(other, rel=1e-13)
            np.testing.assert_allclose(slope, expected, rtol=1e-13, atol=1e-13)


def _put(v):
    out = np.zeros(v.size)
    out[...] = v
    return out


def _added_at(v):
    out = np.zeros(v.size)
    np.add.at(out, np.arange(v.size)[::-1], v)
    return out


def _looped(v):
    out = np.zeros(v.size)
    for k in range(v.size):
        out[k] = np.clip(v[k], 0.0, 9.0)
    return out


def _until(v):
    k = 0
    while k < 3 and np.sum(v) < 1e12:
        v, k = np.maximum(v, 0.0), k + 1
    return v


BETWEEN = {
    "where": lambda v: np.where(v > 0, v, 0.0),
    "clip": lambda v: np.clip(v, 0.0, 9.0),
    "clip, within": lambda v: np.clip(v, 0.0, 1.5).astype(int).astype(float),
    "pad": lambda v: np.pad(v, 1),
    "windows": lambda v: np.lib.stride_tricks.sliding_window_view(v, 2),
    "nan_to_num": np.nan_to_num,
    "running maximum": np.maximum.accumulate,
    "maxima of segments": lambda v: np.maximum.reduceat(v, [0, 2]),
    "partition": lambda v: np.partition(v, 1),
    "median": lambda v: np.median(v.reshape(-1, 2)[:, :1], axis=1),
    "signs": lambda v: np.copysign(v, -1.0),
    "ldexp": lambda v: np.ldexp(v, 1),
    "outer": lambda v: np.outer(v, np.ones(2)),
    "kron": lambda v: np.kron(np.ones(2), v),
    "cross": lambda v: np.cross(np.stack([v, 0 * v, 0 * v], 1), np.array([0.0, 1.0, 0.0])),
    "einsum": lambda v: np.einsum("i,i->i", v, np.ones(v.size)),
    "mask": lambda v: v[v > 0.5],
    "select": lambda v: np.select([v > 2, v > 0], [v + 1, v], 0.0),
    "choose": lambda v: np.choose((v > 2).astype(int), [v, v + 1]),
    "piecewise": lambda v: np.piecewise(v, [v > 2], [lambda v: v + 1, lambda v: v]),
    "written": _put,
    "added": _added_at,
    "looped": _looped,
    "until": _until,
    "modf": lambda v: np.modf(v)[1],
    "triangle": lambda v: np.tril(np.stack([v, v])),
    "take": lambda v: np.take(v, np.arange(v.size)),
    "pieces": lambda v: np.concatenate(np.split(v, 2)),
    "matrix": lambda v: np.matrix_transpose(v.reshape(2, -1)),
}


@pytest.mark.parametrize("name", BETWEEN)
@pytest.mark.parametrize("size", [60, 1500, 40_000])
def test_what_jumps_look_at_behind_others_is_computed_to_the_bit(name, size):
    """As above; whatever hands the quotients on, and whatever takes its place in the code."""
    assert 49.0 * (1 / 49.0) != 1.0
    x, between = np.resize([49.0, 98.0, 196.0, 5.0], size), BETWEEN[name]
    weights = np.random.default_rng(0).normal(size=3 * size + 4)

    def fun(x, w):
        jumps = np.floor(np.ravel(between(x / 49.0)))
        return np.sum(jumps * w[: jumps.size]) + np.sum(x[:2])

    derivative, dynamic = (value_and_grad(fun, (0, 1), mode=mode) for mode in ("auto", "dynamic"))
    expected, (_, slope) = dynamic(x, weights)
    for _ in range(4):
        value, (_, found) = derivative(x, weights)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(found, slope, rtol=1e-12, atol=1e-12)


DECIDED = {
    "rows": (lambda x: np.sum(x, axis=1), [(300, 20)]),
    "columns": (lambda x: np.sum(x, axis=0, keepdims=True), [(900, 7)]),
    "means": (lambda x: np.mean(x, axis=0), [(900, 7)]),
    "products": (lambda x: np.prod(x, axis=1), [(300, 20)]),
    "with gaps": (lambda x, w: x[:, ::2] @ w, [(30, 70), 35]),
    "few with gaps": (lambda x, w: x[:, ::2] @ w, [(3, 6), 3]),
    "backwards": (lambda x, w: x[::-1] @ w[::-1], [(300, 70), 70]),
    "argument with gaps": (lambda x, w: x.T @ w, [(70, 30), 70]),
    "solution": (np.linalg.solve, [(10, 10), (10, 400)]),
}


@pytest.mark.parametrize("name", DECIDED)
def test_branches_look_at_the_functions_own_sums(name):
    """At the very number, where one that is added up in another order decides otherwise."""
    score, shapes = DECIDED[name]

    def fun(w, c, *args):
        return w * w if np.all(score(*args) >= c) else 3.0 * w

    derivative, rng = grad(fun), np.random.default_rng(0)
    for k in range(10):
        args = [rng.normal(size=shape) for shape in shapes]
        assert derivative(2.0, score(*args) + (k == 0), *args) == (3.0 if k == 0 else 4.0)
    assert derivative.cache_info().hits > 5


def test_ifs_of_loops_look_at_the_functions_own_sums_outside():
    """As above, where each iteration decides on what was there before the loop."""

    def fun(w, c, x):
        sums, y = np.sum(x * x, axis=1), w
        for t in range(len(c)):
            y = np.sin(y) + w if sums[t] >= c[t] else 0.5 * y
        return y

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for k in range(8):
        x = rng.normal(size=(40, 60))
        c = np.sum(x * x, axis=1) + (rng.choice([-1.0, 1.0], 40) if k < 3 else 0.0)
        assert derivative(2.0, c, x)[0] == pytest.approx(fun(2.0, c, x), rel=1e-12)
    assert derivative.cache_info().hits > 3


SHARES = {
    "rows by columns": lambda e, t: e / np.sum(e, axis=1) * t[:, None],
    "rows": lambda e, t: e / np.sum(e, axis=1)[:, None] * t[:, None],
    "rows, written": lambda e, t: e / np.sum(e, axis=1)[None, :] * t[:, None],
    "columns": lambda e, t: e / np.sum(e, axis=0) * t,
    "columns by rows": lambda e, t: e / np.sum(e, axis=0)[:, None] * t,
    "columns of rows": lambda e, t: e / np.sum(e, axis=0) * t[:, None],
    "all": lambda e, t: e / np.sum(e) * t[:, None],
    "shift of columns": lambda e, t: np.exp(e - np.max(e, axis=1)) / np.sum(np.exp(e - np.max(e, axis=1)), axis=1) * t,
    "shift of rows": lambda e, t: (
        np.log(np.sum(np.exp(e - np.max(e, axis=1)[None]), axis=1)) + np.max(e, axis=1)[None] * t[:, None]
    ),
    "turned": lambda e, t: e.T / np.sum(e, axis=1) * t + e / np.sum(e.T, axis=0)[:, None],
}


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (40, 40)])
def test_shares_of_a_square_are_of_the_axis_that_they_are_of(name, shape):
    rng, fun = np.random.default_rng(0), lambda e, t: np.sum(SHARES[name](e, t) * np.arange(1.0, t.size + 1))
    args = 0.5 + rng.random(shape), rng.normal(size=shape[0])
    for weights in (fun, lambda e, t: np.sum(SHARES[name](e, t))):
        derivative, dynamic = (grad(weights, (0, 1), mode=mode) for mode in ("auto", "dynamic"))
        for _ in range(3):
            for got, want in zip(derivative(*args), dynamic(*args), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


ROWS = {
    "floor": (lambda a, b: np.floor(np.linspace(a, b, 11) * 10), [(1.0, 2.0), (0.1, 0.9), (-1.0, 2.3)]),
    "whole": (lambda a, b: np.linspace(a, b, 11, dtype=int) * 1.0, [(1.0, 11.0), (2.0, 32.0)]),
    "open": (lambda a, b: np.floor(np.linspace(a, b, 10, endpoint=False) * 10), [(1.0, 2.0), (0.7, 1.3)]),
    "equal": (lambda a, b: np.floor(np.linspace(np.stack([a, b]), np.stack([b, b]), 9) * 10), [(0.3, 1.1), (1.0, 2.0)]),
    "last": (lambda a, b: np.linspace(a, b, 5)[-1], [(np.inf, 1.0), (np.nan, 1.0)]),
    "steps": (lambda a, b: (np.arange(a, a + b, 0.1) * 10).astype(int) * 1.0, [(0.7, 3.0), (0.1, 2.0)]),
    "edges": (lambda a, b: np.digitize(np.arange(0.1, 3, 0.1), np.linspace(a, b, 11)) * 1.0, [(0.1, 2.1), (0.0, 3.0)]),
    "bins": (lambda a, b: np.histogram(np.arange(0.1, 3, 0.1), 10, (a, b))[0] * 1.0, [(0.1, 2.1), (0.2, 1.2), (0.0, 3.0)]),
}


@pytest.mark.parametrize("name", ROWS)
def test_numbers_in_a_row_are_numpys_to_the_last_bit(name):
    """What jumps, or is compared, sees the very numbers."""
    fun, calls = ROWS[name]
    derivatives = [
        value_and_grad(lambda a, b: (np.sum(fun(a, b)) + 0.0 * a, fun(a, b)), has_aux=True, mode=mode)
        for mode in ("auto", "dynamic")
    ]
    for a, b in calls * 3:
        for derivative in derivatives:
            with np.errstate(invalid="ignore"):
                (_, found), _ = derivative(a, b)
                np.testing.assert_array_equal(found, fun(np.float64(a), np.float64(b)))
