"""What a traced value can do: everything that its plain value can, with the same result and the right derivative."""

import collections.abc
import copy
import decimal
import functools
import gc
import io
import itertools
import json
import math
import numbers
import operator
import re
import statistics
import tracemalloc
from array import array

import numpy as np
import pytest
from agreement import agrees

import symgrad.numpy as snp
from symgrad import elementwise_grad, grad, hessian, jacobian, value_and_grad, without
from symgrad.errors import LeavesNumPy, NotDifferentiable
from symgrad.tracing.tracer import Tracer

V = np.array([0.31, -1.23, 0.74, 2.17])
W = np.array([0.52, 1.81, 0.93, 1.36])
M = np.arange(12.0).reshape(3, 4) / 5.3 - 1.07


def check(table):
    """One test for each entry: a function and the arguments to try it at."""
    return pytest.mark.parametrize(("fun", "args"), [(f, a) for f, *a in table.values()], ids=list(table))


# -- operators -----------------------------------------------------------------------------------------------------


@check(
    {
        "arrays": (lambda x, y: [x + y, x - y, x * y, x / y, y**x, x // y, x % y, x @ y, divmod(x, y)], V, W),
        "right": (lambda x: [1 + x, 1 - x, 2 * x, 2 / x, 2.0**x, 3 // x, 3 % x, divmod(3, x)], W),
        "left": (lambda x: [x + 1, x - 1, x * 2, x / 2, x**2, x**0.5, x**-1, x // 0.4, x % 0.7, divmod(x, 0.7)], W),
        "unary": (lambda x: [-x, +x, abs(x), x.conjugate()], V),
        "plain arrays": (lambda x: [np.ones(4) - x, x - np.ones(4), np.eye(4) @ x, x @ np.eye(4), np.ones(4) ** x], V),
        "lists": (lambda x: [[1, 2, 3, 4] * x, x.__add__((1, 2, 3, 4)), [1, 2, 3, 4] @ x, x @ [1, 2, 3, 4], x > [0] * 4], V),
        "numpy numbers": (lambda x: [np.float64(2) * x, x / np.float32(2), np.int64(3) - x, np.float64(2) ** x], V),
        "booleans": (lambda x: [(x > 0) * x, (x >= 0) & (x < 1), (x < 0) | (x == 2), ~(x > 0), (x > 0) ^ (x > 1)], V),
        "comparisons": (lambda x: [x != 0, x > 0, x <= 1, (x > 0) + (x > 1), (x > 0).sum() * x], V),
        "integers": (lambda x: [np.argsort(x) << 1, 1 | np.argsort(x), np.argsort(x) // 2 * x, -np.argmax(x) * x], V),
        "broadcasting": (lambda x, y: [x + y, x * y[:3, None], y[None, 1:].T / (x + 3), x.T @ y[:3]], M, W),
        "matrices": (lambda x: [x @ x.T, x.T @ x, x[0] @ x.T, x @ x[0], x[None] @ x.T], M),
        "complex": (lambda x: [x * 1j, (1 + 2j) / x, abs(x + 1j), (x + 1j) ** 2, (x * 1j).conjugate().imag], V),
        "python": (lambda a, b: [a + b, a - b, a * b, a / b, a // b, a % b, a**b, -a, +a, abs(a), divmod(a, b)], 0.7, 1.3),
        "python right": (lambda a: [1 + a, 1 - a, 2 * a, 2 / a, 2**a, 3 // a, 3 % a, divmod(3, a), pow(a, 2)], 0.7),
        "python complex": (lambda a: [abs(a * 1j), (a + 1j).real, ((a + 2j) ** 2).imag, (a * 1j).conjugate()], 0.7),
        "number and array": (lambda a, x: [a * x, x**a, a**x, x / a, a - x, np.maximum(a, x)], 1.7, W),
        "repetition": (lambda x: [[x[0]] * np.argmax(x), x * ([1.0] * 4)], V),
    }
)
def test_operators(fun, args):
    agrees(fun, *args)


def test_dtypes_follow_numpy():
    """Python numbers are weak, NumPy's are not; the derivative has its argument's dtype."""
    single = np.array([0.5, 1.5], dtype=np.float32)
    cases = [
        lambda x: x * 2.5,
        lambda x: x * np.float64(2.5),
        lambda x: x + np.ones(2),
        lambda x: x ** np.float32(2),
        lambda x: x * np.float16(2),
        lambda x: x.astype(np.float64) * x,
        lambda x: np.add(x, 1, dtype=np.float64),
        lambda x: np.mean(x) * x,
        lambda x: np.array([x[0], x[1]]) * x,
        lambda x: np.array([x[0], 1.0]) * x,
        lambda x: x[0] * 2.0 * x,
        lambda x: x.sum() + 1j * x,
        lambda x: np.asarray(x) * 1.0 * x,
    ]
    for fun in cases:
        seen = []

        def total(x, fun=fun, seen=seen):
            y = fun(x)
            seen.append(y.dtype)
            return np.sum(np.real(y))

        derivative = grad(total)
        for _ in range(3):
            assert derivative(single).dtype == np.float32
        assert set(seen) == {fun(single).dtype}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_dtypes_of_results(dtype):
    x = np.array([0.5, 1.5], dtype=dtype)
    derivative = value_and_grad(lambda x: np.sum(x * x + np.sin(x)))
    for _ in range(3):
        value, g = derivative(x)
        assert value.dtype == g.dtype == dtype
    assert np.allclose(g.astype(float), 2 * x.astype(float) + np.cos(x.astype(float)), rtol=1e-2)
    number = derivative(dtype(0.5))[1]
    assert type(number) is dtype
    assert np.allclose(float(number), 1 + math.cos(0.5), rtol=1e-2)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_arguments(dtype):
    z = np.array([0.5 + 1j, 1.5 - 0.5j], dtype=dtype)
    derivative = grad(lambda z: np.sum(np.abs(z) ** 2))
    for _ in range(3):
        g = derivative(z)
        assert g.dtype == dtype
        assert np.allclose(g, 2 * z)
    assert np.allclose(grad(lambda z: (z * z).imag)(1 + 2j), 4 + 2j)  # steepest ascent of 2 re im


# -- ufuncs --------------------------------------------------------------------------------------------------------


@check(
    {
        "calls": (lambda x: [np.sin(x), np.multiply(x, 2), np.power(2.0, x), np.hypot(x, 1), np.logaddexp(x, 0)], V),
        "python numbers": (lambda a: [np.sin(a), np.add(a, 1), np.multiply(2, a), np.negative(a), np.exp2(a)], 0.7),
        "lists": (lambda x: [np.add([1, 2, 3, 4], x), np.sin([x[0], x[1]]), np.multiply([x[0], 1], x[:2])], V),
        "several results": (lambda x: [np.divmod(x, 0.61), np.modf(x), np.frexp(x)[0] * 2], V),
        "dtype": (lambda x: [np.add(x, 1, dtype=complex), np.multiply(x, x, dtype=np.longdouble)], V),
        "dtype of a predicate": (lambda x: [np.greater(x, 0, dtype=bool) * x, np.isfinite(x, dtype=bool) * x], V),
        "dtype of integers": (lambda x: np.divide(np.argsort(x), 2, dtype=np.float32) * x, V),
        "signature": (lambda x: np.add(x, 1, signature=(None, None, np.complex128)), V),
        "casting": (lambda x: np.add(x, 1, casting="unsafe", order="K", subok=False), V),
        "reduce": (lambda x: [np.add.reduce(x), np.multiply.reduce(x, axis=1), np.add.reduce(x, axis=None)], M),
        "reduce axes": (lambda x: [np.add.reduce(x, axis=(0, 1)), np.maximum.reduce(x, (0, 1)), np.minimum.reduce(x)], M),
        "reduce keepdims": (lambda x: [np.add.reduce(x, keepdims=True), np.logaddexp.reduce(x, 1, keepdims=True)], M),
        "reduce initial": (lambda x: [np.add.reduce(x, initial=0.5), np.maximum.reduce(x, 1, initial=0.13)], M),
        "reduce where": (lambda x: [np.add.reduce(x, where=x > 0), np.multiply.reduce(x, 1, where=x > 0.1)], M),
        "reduce dtype": (lambda x: np.add.reduce(x, dtype=complex), M),
        "reduce by hand": (lambda x: [np.subtract.reduce(x), np.hypot.reduce(x, axis=1), np.divide.reduce(x, -1)], M + 3),
        "reduce where by hand": (lambda x: np.logaddexp.reduce(x, 0, where=x > -0.5), M),
        "reduce initial by hand": (lambda x: np.hypot.reduce(x, 0, initial=0.4, where=x > 0), M),
        "reduce all by hand": (lambda x: [np.logaddexp.reduce(x, axis=None), np.hypot.reduce(x, axis=(1, 0))], M),
        "reduce booleans": (lambda x: [np.logical_and.reduce(x > -1) * x, np.logical_or.reduce(x > 0, 1) * x[:, 0]], M),
        "accumulate": (lambda x: [np.add.accumulate(x), np.multiply.accumulate(x, axis=1), np.maximum.accumulate(x)], M),
        "extremes": (
            lambda x: [
                f.accumulate(y, axis)
                for f in (np.maximum, np.minimum, np.fmax, np.fmin)
                for y in (np.sin(9.0 * x), x[:1])
                for axis in (0, 1)
            ],
            M,
        ),
        "accumulate by hand": (lambda x: [np.subtract.accumulate(x, 1), np.logaddexp.accumulate(x, dtype=float)], M),
        "outer": (lambda x: [np.multiply.outer(x, x), np.subtract.outer(x, [1, 2]), np.maximum.outer(0.3, x)], V),
        "outer of matrices": (lambda x: np.add.outer(x, x[0]), M),
        "reduceat": (lambda x: [np.add.reduceat(x, [0, 2], axis=1), np.add.reduceat(x, [0, 2, 1])], M),
        "reduceat by hand": (lambda x: [np.multiply.reduceat(x[0], [0, 1, 1]), np.maximum.reduceat(x, [1, 0], 1)], M),
        "axes": (lambda x: [np.matmul(x, x, axes=[(1, 0), (0, 1), (1, 0)]), np.vecdot(x, x, axes=[0, (0,)])], M),
        "axes of the result": (lambda x: np.matmul(x[None], x.T, axes=[(1, 2), (0, 1), (0, 2)]), M),
        "generalised": (lambda x: [np.vecdot(x, x), np.vecdot(x, x, axis=0), np.matmul(x, x.T, dtype=complex)], M),
        "clip method of a plain array": (lambda x: np.array([0.0, 3.0, 1.0, 2.2]).clip(x, 2.5), V),
    }
)
def test_ufuncs(fun, args):
    agrees(fun, *args)


def test_ufunc_methods_are_compiled():
    derivative = grad(lambda x: np.add.reduce(np.multiply.outer(x, x)[0]) * np.maximum.accumulate(x)[-1] + at(x).sum())

    def at(x):
        x = x.copy()
        np.multiply.at(x, [0, 2], W[:2])
        np.add.at(x, np.argsort(x)[:2], W[2:])
        return np.logaddexp.reduceat(x, [0, 2])

    for _ in range(3):
        derivative(V)
    assert "dynamic" not in derivative.explain()


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum], ids=lambda ufunc: ufunc.__name__)
def test_segments_are_one_operation(ufunc):
    """However many there are; equal elements share an extreme."""
    x = np.round(np.random.default_rng(0).normal(size=(3, 500)) * 2)
    starts = np.arange(1, 500, 4)
    fun = lambda x: np.sum(ufunc.reduceat(x, starts, 1) ** 2)
    parts = lambda x: sum([np.sum(ufunc.reduce(x[:, i : i + 4], 1) ** 2) for i in range(1, 500, 4)])
    for mode in ("auto", "dynamic"):
        derivative = grad(fun, mode=mode)
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), grad(parts, mode="dynamic")(x), rtol=1e-14)
    by_order = grad(lambda x, order: np.sum(np.add.reduceat(x, np.argsort(order)) * np.arange(4.0)))  # places from values
    for order in (np.array([0.0, 1, 2, 3]), np.array([3.0, 1, 2, 0]), np.array([1.0, 0, 2, 3])):
        expected = grad(lambda x, order=order: np.sum(np.add.reduceat(x, np.argsort(order)) * np.arange(4.0)), mode="dynamic")
        np.testing.assert_allclose(by_order(x[0, :6], order), expected(x[0, :6]), rtol=1e-14)
    assert len(grad(lambda x: np.sum(ufunc.reduceat(x, np.arange(1, 500, 4), 1))).source(x).splitlines()) < 12


def test_empty_reductions():
    empty = np.zeros((0, 3))
    for fun in (np.add.reduce, np.logaddexp.reduce, np.multiply.reduce):
        derivative = value_and_grad(lambda x, fun=fun: np.sum(np.exp(fun(x))))
        for _ in range(3):
            value, g = derivative(empty)
            assert value == np.sum(np.exp(fun(empty)))
            assert g.shape == (0, 3)
    with pytest.raises(ValueError, match="identity"):
        grad(lambda x: np.sum(np.maximum.reduce(x)))(empty)


def test_sums_of_exponentials_are_one_operation():
    """Not a line of code for each number."""
    for fun in (np.logaddexp, np.logaddexp2):
        derivative = grad(lambda x, fun=fun: np.sum(fun.reduce(x, axis=0)))
        for n in (3, 300):
            for _ in range(2):
                derivative(np.ones((n, 2)))
        assert (
            len(derivative.source(np.ones((3, 2))).splitlines()) == len(derivative.source(np.ones((300, 2))).splitlines()) < 10
        )


# -- methods and attributes ----------------------------------------------------------------------------------------


@check(
    {
        "reductions": (lambda x: [x.sum(), x.sum(0), x.mean(axis=1), x.prod(), x.max(), x.min(1), x.var(), x.std(ddof=1)], M),
        "reduction options": (lambda x: [x.sum(axis=(0, 1), keepdims=True), x.max(axis=0, initial=0.1), x.mean(0)], M),
        "scans": (lambda x: [x.cumsum(), x.cumsum(0), x.cumprod(1)], M),
        "shapes": (lambda x: [x.reshape(4, 3), x.reshape((2, -1)), x.reshape(-1, order="F"), x.ravel(), x.flatten("F")], M),
        "axes": (lambda x: [x.T, x.mT, x.transpose(), x.transpose(1, 0), x.transpose((1, 0)), x.swapaxes(0, 1)], M),
        "squeeze": (lambda x: [x[None].squeeze(), x[None].squeeze(0)], M),
        "picking": (lambda x: [x.take([1, 2]), x.take([0], axis=1), x.take(7, mode="wrap"), x.diagonal(1), x.trace()], M),
        "repeat": (lambda x: [x.repeat(2), x.repeat([1, 0, 2], axis=0)], M),
        "numbers": (lambda x: [x.clip(-0.5, 0.5), x.round(1) * x, x.conj(), x.conjugate(), x.real, x.imag], M),
        "clip by name": (lambda x: [x.clip(min=-0.5), x.clip(max=0.5), x.clip(None, 0.5)], M),
        "products": (lambda x: [x.dot(x.T), x.dot(x[0]), x[0].dot(x[1])], M),
        "elements": (lambda x: [x.item(3), x.item(1, 2), x.item((1, 2)), x.item(-1), x[0, 0].item(), x.tolist()], M),
        "copies": (lambda x: [x.copy(), x.copy(order="F"), x.astype(complex), x.view(), copy.copy(x), copy.deepcopy([x])], M),
        "orders": (lambda x: [x.argmax() * x, x.argmin(1) * x[:, 0], x.argsort() * x, x.argpartition(1) * 0], M),
        "questions": (lambda x: [x.any() * x, x.all(axis=0) * x, (x > 0).sum() * x, x.nonzero()[0] * 1.0], M),
        "choices": (lambda x: [x.compress([True, False, True], axis=0), x.argmin(0).choose([x[0], x[1], x[2]])], M),
        "searchsorted": (lambda x: [x[0].searchsorted(0.1) * x, x[0].searchsorted([0.1, -0.9], side="right") * 1.0], M),
        "sizes": (lambda x: [x.size * x, x.ndim * x, x.shape[1] * x, len(x) * x, x.nbytes * x, x.itemsize * x], M),
        "memory": (lambda x: [x * x.flags.c_contiguous, x * len(x.strides), x * (x.dtype == float), x.device == "cpu"], M),
        "numpy number": (
            lambda a: [a.sum(), a.mean(), a.reshape(1, 1), a.ravel(), a.item() * 2, a[()], a[None], a[...], a.T, a.tolist(),
                       a.clip(0, 1), a.astype(complex), a.copy(), a.real, a.squeeze(), a.flatten(), a.ndim * a, a.round(1)],
            np.float64(0.34),
        ),
        "0-d array": (lambda a: [a + 1, a * a, a.item(), a[()], a[None], a[...], abs(a), a.sum(), a.T, -a], np.array(0.5)),
        "python number": (lambda a: [a.real, a.imag, a.conjugate(), a.is_integer() * a, (a * 2).real], 0.7),
        "array api": (lambda x: x.__array_namespace__().sin(x), V),
    }
)  # fmt: skip
def test_methods(fun, args):
    agrees(fun, *args)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.var(correction=1),
        lambda x: x.std(correction=1),
        lambda x: x.conj(out=None),
        lambda x: x.conjugate(where=True),
    ],
)
def test_methods_take_what_those_of_ndarray_take(call):
    with pytest.raises(TypeError):
        call(np.ones(3))
    for mode in ("auto", "dynamic"):
        with pytest.raises(TypeError):
            grad(lambda x: np.sum(call(x)), mode=mode)(np.ones(3))


NUMBERS_AND_LISTS = [
    lambda x: np.average(x, weights=[1.0, 2.0, 3.0]),
    lambda x: np.average([x, x * x], axis=0, weights=(1.0, 3.0))[1],
    lambda x: np.linspace(x[0], [0.4, 0.2], 3),
    lambda x: np.logspace([0.4, 0.2], x[0] / 4, 3),
    lambda x: np.geomspace(x[0], [0.4, 0.2], 3),
    lambda x: np.i0(x[0].item() * 0.5),
    lambda x: np.piecewise(x[1].item(), [False, True], [np.square, np.sqrt]),
    lambda x: np.pad(x[0].item(), 2),
    lambda x: np.resize(x[:0], 3) * x,
    lambda x: np.sum(-np.inf * np.ones_like(x[:0])) * x,
]


@pytest.mark.parametrize("fun", NUMBERS_AND_LISTS)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_numbers_and_lists_in_place_of_arrays(fun, mode):
    x, total = np.array([1.5, 0.7, 2.0]), lambda x: np.sum(fun(x) ** 2)
    derivative = value_and_grad(total, mode=mode)
    slopes = [(total(x + step) - total(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    for _ in range(3):
        value, slope = derivative(x)
        np.testing.assert_allclose(value, total(x))
        np.testing.assert_allclose(slope, slopes, 1e-6, 1e-6)


def test_attributes_are_those_of_ndarray():
    """Each is there, or refused by name."""
    outside = {
        "__array_interface__", "__array_struct__", "__class_getitem__", "__setstate__", "__dlpack__", "__dlpack_device__",
        "__array_finalize__", "__buffer__", "__release_buffer__", "__array_wrap__",
    }  # fmt: skip
    asked = []

    def fun(x):
        for name in dir(np.ndarray):
            if name in outside or name in dir(object) or name.startswith("_set_") or not hasattr(M, name):
                continue
            try:
                getattr(x, name)
            except (NotDifferentiable, LeavesNumPy) as error:
                asked.append((name, str(error)))
        return np.sum(x)

    with pytest.raises((NotDifferentiable, LeavesNumPy)):  # also where the function catches them
        grad(fun, mode="dynamic")(M)
    assert all(f".{name} " in message and "test_trace.py" in message for name, message in asked)
    assert {name for name, _ in asked} - {"tostring"} == {  # which NumPy 2.3 has dropped
        "byteswap",
        "ctypes",
        "data",
        "dump",
        "dumps",
        "getfield",
        "setfield",
        "tobytes",
        "tofile",
    }


@pytest.mark.parametrize(
    "value", [0.5, 2 + 1j, np.float32(0.5), np.float64(0.5), np.complex128(1j), np.array(0.5), V], ids=repr
)
def test_duck_typing(value):
    """``hasattr``, ``isinstance`` and the like say of a traced value what they say of its plain value."""
    kinds = (
        float, int, complex, bool, str, list, np.ndarray, np.generic, np.floating, np.float64, np.float32, np.number,
        numbers.Number, numbers.Real, numbers.Complex, numbers.Integral, collections.abc.Sequence,
    )  # fmt: skip
    names = (
        "shape dtype ndim __len__ sum T real item tolist __getitem__ append keys is_integer reshape copy read mean nope".split()
    )

    def traits(x):
        found = [isinstance(x, kind) for kind in kinds] + [hasattr(x, name) for name in names]
        found += [np.iterable(x), np.isscalar(x), np.ndim(x), np.shape(x), np.size(x), callable(x), x is None]
        found += [np.iscomplexobj(x), np.isrealobj(x), np.result_type(x), x.__class__]
        for ask in (len, iter, operator.index, reversed):
            try:
                ask(x)
                found.append("ok")
            except TypeError:
                found.append("TypeError")
        return found

    seen = []

    def fun(x):
        seen.append(traits(x))
        return np.sum(np.real(x * x))

    grad(fun, mode="dynamic")(value)
    assert seen[0] == traits(value)


@functools.singledispatch
def kind_of(x):
    return 1.0


@kind_of.register
def _(x: np.ndarray):
    return 2.0


@kind_of.register
def _(x: float):
    return 3.0


def test_single_dispatch_and_match():
    def fun(x, a):
        match a:
            case float():
                b = a * 2
            case _:
                b = a * 0
        return kind_of(x) * x * kind_of(a) * b

    agrees(fun, V, 0.7)


# -- Python's built-ins --------------------------------------------------------------------------------------------


@check(
    {
        "unpacking": (lambda x: (lambda a, b, *c: [a * b, c[0], len(c) * a])(*x), V),
        "iteration": (lambda x: [v * i for i, v in enumerate(x)] + [v for row in [x, x] for v in row], V),
        "rows": (lambda x: [row.sum() * row for row in x], M),
        "reversed, zip": (lambda x: [a * b for a, b in zip(reversed(x), x, strict=True)], V),
        "sum": (lambda x: [sum(x), sum(x, 1.0), sum(v * v for v in x), sum([]) * x], V),
        "min, max": (lambda x: [max(x), min(x), max(x[0], x[1], 0.5), min(x, key=lambda v: abs(v - 1)), max(x, default=0)], V),
        "sorted": (lambda x: [sorted(x)[1], sorted(x, reverse=True)[0], sorted(x, key=abs)[0], sorted(x, key=lambda v: -v)], V),
        "any, all": (lambda x: [any(x > 0) * x, all(x > 0) * x, any(v > 2 for v in x) * x], V),
        "map, filter": (lambda x: [*map(abs, x), *filter(lambda v: v > 0.5, x)], V),
        "reduce": (lambda x: [functools.reduce(lambda a, b: a * b + 1, x), math.prod(x), *itertools.accumulate(x)], V),
        "in": (lambda x: [(0.123 in x) * x, (x[0] in [7, 8]) * x, (x[1] in [*x]) * x, [1.0, x[1]].index(x[1]) * x], V),
        "branches": (lambda x: x * 2 if x[0] > 0 and not x[1] > 0 else x * 3, V),
        "chained comparison": (lambda x: x * 2 if 0 < x[0] < 1 else x * 3, V),
        "while": (lambda a: next(b for b in itertools.accumulate(itertools.repeat(a), operator.mul) if b < 0.3), 0.7),
        "int": (lambda x: [int(x[3] * 3.1) * x, round(x[3] * 3.1) * x, range(int(x[3]))[-1] * x, x[: int(x[3])]], V),
        "floor": (lambda a: [math.floor(a * 5) * a, math.ceil(a * 5) * a, math.trunc(a * 5) * a, round(a, 1) * a], 0.73),
        "round numpy": (lambda a: [round(a * 7) * a, round(a, 1) * a, math.floor(a * 7) * a], np.float64(0.73)),
        "abs, pow": (lambda a: [abs(-a), pow(a, 2), pow(2, a), a.__pow__(3)], 0.73),
        "bool": (lambda x: [bool(x[0]) * x, (not x[0]) * x, (x[0] or 5.0) * x, (x[0] and 5.0) * x], V),
        "operator": (lambda x: [operator.add(x, 1), operator.itemgetter(1)(x), operator.mul(2, x), operator.matmul(x, x)], V),
        "string keys": (lambda x: sum({"a": x[0], "b": x[1]}.values()) * {"n": x[2]}["n"], V),
        "classes": (lambda x: type("Box", (), {"value": x})().value * 2, V),
        "generators": (lambda x: sum(map(operator.mul, (v for v in x), itertools.count(1))), V),
    }
)
def test_builtins(fun, args):
    agrees(fun, *args)


def test_integer_arguments():
    """A Python int is traced, and guarded only where Python looks at it; what is made of it alone may be plain."""

    def fun(x, n, scale):
        y = x**n * math.sqrt(n) * math.factorial(n)
        for _ in range(n):
            y = y * 1.5
        return np.sum(y) * {1: 2.0, 2: 3.0, 3: 5.0}[n] * [0.0, 1.0, 2.0, 3.0][n] * float(scale) * len(f"w{n}") * n

    derivative = grad(fun)
    for n, scale in [(2, 0.5), (2, 0.5), (2, 0.5), (3, 0.5), (3, 0.5), (1, 0.25), (2, 0.0), (3, -0.0), (3, 0.5)]:
        x = W * n
        eps = 1e-6
        slope = [(fun(x + eps * e, n, scale) - fun(x - eps * e, n, scale)) / (2 * eps) for e in np.eye(4)]
        assert np.allclose(derivative(x, n, scale), slope, rtol=1e-5)


COUNTS = {
    "maxlen": lambda x, n: sum(collections.deque(x, maxlen=n)),
    "deque": lambda x, n: sum(collections.deque(x, n)),
    "permutations": lambda x, n: sum(i * p[0] for i, p in enumerate(itertools.permutations(x, n))),
    "pow": lambda x, n: pow(7, n, 5) * x[0] + pow(n, 2, 3) * x[1] + pow(11, 2, n + 4) * x[2],
    "json": lambda x, n: json.loads(json.dumps({"n": n}))["n"] * x[0],
    "decimal": lambda x, n: float(decimal.Decimal(n) / 4) * x[0],
    "statistics": lambda x, n: statistics.mean([n, 2]) * x[0],
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", COUNTS)
def test_integer_arguments_for_code_that_takes_no_other_numbers(name, mode):
    fun = COUNTS[name]
    derivative = value_and_grad(fun, mode=mode)
    for n in (1, 1, 1, 2, 2, 3, 2, 1):
        value, slope = derivative(V, n)
        assert value == pytest.approx(fun(V, n), rel=1e-12)
        np.testing.assert_allclose(slope, [fun(e, n) for e in np.eye(len(V))], rtol=1e-12)


def test_values_without_derivative_may_leave():
    """Where no derivative is lost, a traced value may become a plain number or array."""
    math_of = lambda y: math.sin(y[0]) + float(y[1]) + np.float64(y[2])

    def fun(x, y):
        plain = np.zeros(4)
        plain[0] = y[0]
        plain[1:] += y[1:]
        table = np.array(y, dtype=float)
        order = np.arange(4.0)[np.argsort(x)]
        count = math.sqrt(np.argmax(x) + 1)
        text = float(f"{y[0]:.3f}") + float(str(y[1]))
        return np.sum(x * plain * table * order) * count * math_of(y) * text + np.sum(np.floor(x)) * float(np.ceil(x[0]))

    derivative = grad(fun)
    for y in (W, W, W, W + 1, V + 3, W):
        for x in (V, V[::-1].copy()):
            eps = 1e-6
            slope = [(fun(x + eps * e, y) - fun(x - eps * e, y)) / (2 * eps) for e in np.eye(4)]
            assert np.allclose(derivative(x, y), slope, rtol=1e-5)


# -- indexing ------------------------------------------------------------------------------------------------------


@check(
    {
        "basic": (lambda x: [x[0], x[-1, 2], x[1:, ::2], x[::-1], x[-1:0:-1], x[...], x[()], x[:]], M),
        "ellipsis": (lambda x: [x[..., 0], x[0, ...], x[..., None], x[None, ..., 1]], M),
        "newaxis": (lambda x: [x[None], x[:, None, :], x[np.newaxis, 0], x[None, :, None, 1]], M),
        "numbers": (lambda x: [x[np.int64(1)], x[np.array(1)], x[(0, 1)], x[slice(0, 2)], x[True], x[False]], M),
        "arrays": (lambda x: [x[[0, 2]], x[np.array([[0, 1]])], x[[0, 2], [1, -1]], x[[[0, 1], [1, 2]]], x[[]]], M),
        "repeated": (lambda x: [x[[0, 0, 1]], x[[1, 1], [2, 2]]], M),
        "mixed": (lambda x: [x[1, [0, 3]], x[[0, 1], 1:], x[:, [0, 1]][..., None], x[[0, 1], None, 1], x[:2, [[0], [1]]]], M),
        "separated": (lambda x: x[None][[0], :, [1, 2]], M),
        "masks": (lambda x: [x[x > 0], x[x[:, 0] > -0.5], x[:, x[0] > -0.9], x[np.eye(3, 4) > 0]], M),
        "mask and array": (lambda x: [x[[True, False, True]], x[[True, False, True], 1], x[x[:, 1] > -0.5, [0]]], M),
        "ix_": (lambda x: [x[np.ix_([0, 2], [1, 3])], x[np.ix_([True, False, True], [1])]], M),
        "where": (
            lambda x: [x[np.where(x > 0)], x[np.nonzero(x > 0)], x[(x > 0).nonzero()], x.ravel()[np.flatnonzero(x > 0)]],
            M,
        ),
        "argwhere": (lambda x: x[tuple(np.argwhere(x > 0).T)], M),
        "traced": (lambda x: [x[x[:, 0].argmax()], x[np.argmax(x, axis=0)], x[x[0].argsort()[:3]], x[:, x[0] > x[1] - 1]], M),
        "traced in lists": (lambda x: [x[[np.argmax(x[:, 0]), 0]], x[x[0].argsort().tolist()[:2]], x[int(x[2, 3])]], M),
        "traced bounds": (lambda x: [x[np.argmax(x[:, 0]) :], x[: np.argmax(x[0]), 1], x[:: int(x[2, 3]) + 1]], M),
        "traced index of plain": (
            lambda x: [np.arange(3.0)[np.argmax(x[:, 0])] * x, [5.0, 6.0, 7.0][np.argmax(x[:, 0])] * x],
            M,
        ),
        "traced indices of plain": (lambda x: [np.arange(4.0)[np.argsort(x[0])] * x, np.arange(12.0).reshape(3, 4)[x > 0]], M),
        "take": (lambda x: [np.take(x, [0, 5]), np.take(x, 1, axis=1), np.take_along_axis(x, np.argsort(-x, 1), 1)], M),
        "put together": (lambda x: [np.choose([0, 1, 0, 1], [x[0], x[1]]), np.select([x > 0.5, x > 0], [x**2, x], x * 3)], M),
        "extract": (lambda x: [np.extract(x > 0, x), np.compress([True, False, True], x, axis=0)], M),
        "zero size": (lambda x: [x[5:], x[:, :0], x[x > 100]], M),
    }
)
def test_indexing(fun, args):
    agrees(fun, *args)


def test_masks_whose_count_changes():
    """The shape of ``x[mask]`` depends on values: generated code looks at it, and a new count is traced."""
    derivative = grad(lambda x: np.sum(x[x > 0] ** 2) * len(x[x > 0]))
    for x in (V, V, V, -V, -V, -V, np.abs(V), V, -np.abs(V), V):
        count = np.sum(x > 0)
        assert np.allclose(derivative(x), np.where(x > 0, 2 * x * count, 0))


class Place:
    """An integer of another library's."""

    def __init__(self, at):
        self.at = at

    def __index__(self):
        return self.at


def test_indices_that_are_integers_of_others():
    place = Place(1)

    def fun(x):
        y = x * 2.0
        y[place] = x[place] ** 2
        return y[place] + np.sum(x[place, None] * y[:place]) + np.sum(x[[True, False, True]])

    agrees(fun, np.array([0.5, -1.5, 2.0]))
    derivative = grad(lambda x: x[place] ** 2)
    for place.at in (1, 1, 1, 2, 0):
        assert np.array_equal(derivative(np.ones(3)), 2.0 * (np.arange(3) == place.at))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_objects_that_answer_for_any_name(mode):
    """They are asked for nothing that the function does not ask for."""

    class Columns:
        def __init__(self, x):
            self.x = x

        def __getattr__(self, name):
            return self.x[int(name[1:])]

    def fun(x):
        columns = Columns(x)
        return columns.a0 * getattr(columns, "a1") * len([columns])  # noqa: B009

    assert np.array_equal(grad(fun, mode=mode)(np.array([2.0, 3.0])), [3.0, 2.0])
    beside = Columns(None)
    assert grad(lambda x: (np.sum(x), beside), has_aux=True, mode=mode)(np.ones(1))[1] is beside


def test_index_errors_are_numpys():
    for bad in (lambda x: x[9], lambda x: x[0.5], lambda x: x["a"], lambda x: x[0, 0], lambda x: x[[True, False]]):
        with pytest.raises((IndexError, NotDifferentiable)):
            grad(lambda x, bad=bad: np.sum(bad(x)))(V)
    with pytest.raises(TypeError):
        grad(lambda a: a[0])(0.5)


# -- arrays of traced values ---------------------------------------------------------------------------------------


@check(
    {
        "list": (lambda x: [np.array([x[0], x[1] * 2, 1.0]) * 2, np.array([x[0], x[1]]).sum(), np.array([x[0]])], V),
        "matrix": (lambda x: [np.array([[x[0], 0], [1, x[2]]]) @ x[:2], np.array([[np.cos(x[0]), -x[1]], [x[1], x[0]]]).T], V),
        "comprehension": (lambda x: [np.array([v**2 for v in x]), np.array([[v, v * 2] for v in x]).T], V),
        "arrays": (lambda x: [np.array([x, x * 2]), np.array([x, [1, 2, 3, 4]]).sum(axis=0), np.array([x, x])[:, 1]], V),
        "python numbers": (lambda a, b: [np.array([a, b]), np.array([a, b, 1]) @ np.array([1.0, 2.0, b])], 0.7, 1.3),
        "asarray": (lambda x: [np.asarray(x) * 2, np.sin(np.asarray(x)), np.asarray(x).sum(), np.asarray(x) @ x], V),
        "asarray of a matrix": (lambda x: [np.asarray(x).T @ x, np.asarray(x)[0], np.asarray(x).sum(axis=0)], M),
        "array": (lambda x: [np.array(x) * x, np.array(x, copy=True), np.array(x, ndmin=2), np.ascontiguousarray(x)], V),
        "asarray of a number": (lambda a: [np.asarray(a) * 2, np.array(a), np.atleast_1d(np.asarray(a))], 0.7),
        "asarray of 0-d": (lambda a: [np.asarray(a) * 2, np.asarray(a).item() * a], np.array(0.7)),
        "operators": (lambda x: (lambda a: [-a, a**2, 2**a, abs(a), a / x, x - a, a @ a, a > 0])(np.array([*x])), V),
        "functions": (lambda x: (lambda a: [np.exp(a), np.tanh(a), np.cumsum(a), np.prod(a), np.dot(a, a)])(np.array([*x])), V),
        "statistics": (
            lambda x: (lambda a: [np.mean(a), np.var(a), np.std(a), np.max(a), a.mean(), a.std()])(np.array([*x])),
            V,
        ),
        "more": (lambda x: (lambda a: [np.median(a), np.linalg.norm(a), np.maximum(a, 0.1), np.diff(a)])(np.array([*x])), V),
        "lists to functions": (lambda x: [np.sum([x[0], x[1]]), np.mean([v * v for v in x]), np.dot([x[0], x[1]], [1, 2])], V),
        "lists of arrays": (lambda x: [np.sum([x, x * 2], axis=0), np.mean([x, x**2], axis=0), np.max([x, -x], axis=0)], V),
        "joined": (lambda x: [np.concatenate([np.array([x[0]]), x]), np.hstack([x, np.array([x[1], 1.0])]), np.stack([*x])], V),
        "stack of numbers": (lambda x: [np.stack([x[0], x[1]]), np.vstack([x, x]), np.column_stack([x, [1, 2, 3, 4]])], V),
        "r_": (lambda x: [np.r_[x[0], x, 1.0], np.r_[x, x]], V),
        "c_": (lambda x: np.c_[x, x * 2], V),
        "full": (lambda x: [np.full(3, x[0]) * 2, np.full((2, 2), x[1]).sum()], V),
        "full_like": (
            lambda x: [np.full_like(np.ones(3), x[0]) * 2, np.full_like([1.0, 2.0], [x[1], x[2]]), np.full_like(x, x[3])],
            V,
        ),
        "dtype object": (lambda x: np.array([x[0], x[1]], dtype=object).sum() * x, V),
        "object array to fill": (lambda x: (lambda a: a * x[:2])(np.array([x[0] * 2, None])[:1]), V),
        "ndenumerate": (lambda x: sum(v * i[0] for i, v in np.ndenumerate(x)), V),
        "vectorize": (lambda x: np.vectorize(lambda v: v**2 if v > 0 else v)(x), V),
        "frompyfunc": (lambda x: np.frompyfunc(lambda v: v * 3, 1, 1)(np.asarray(x)), V),
        "apply_along_axis": (lambda x: [np.apply_along_axis(lambda r: r * r.sum(), 1, x), np.apply_along_axis(sum, 0, x)], M),
        "piecewise": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: v * v, lambda v: v * 3]), V),
        "piecewise default": (lambda x: np.piecewise(x, [x > 1], [np.sqrt, 0.5]), V),
        "shuffled": (lambda x: np.random.default_rng(0).permutation(x) * x, V),
        "sliding loop": (lambda x: np.array([x[i : i + 2].sum() for i in range(3)]), V),
    }
)
def test_object_arrays(fun, args):
    agrees(fun, *args)


@pytest.mark.skipif(not hasattr(np, "row_stack"), reason="NumPy has dropped it")
@pytest.mark.filterwarnings("ignore:`row_stack`")
def test_the_old_name_of_vstack():
    agrees(lambda x: np.row_stack([x, np.stack([x, x])]), V)


@check(
    {
        "array": (lambda x: [np.array([x[0], 1.0], like=x), np.asarray([1.0, 2.0], like=x) * x[0]], V),
        "array of arrays": (lambda x: np.array([x, x * 2], like=x), V),
        "dtype": (lambda x: np.array([x[0], 1], dtype=complex, like=x), V),
        "full": (lambda x: [np.full(3, x[0], like=x), np.full((2, 4), x, like=x), np.full((2,), 2.0, like=x) * x[1]], V),
        "full_like": (lambda x: [np.full_like(x, x[0]), np.full_like(x, 3.0) * x, np.full_like(x, x[1], shape=(2, 2))], V),
        "ones": (lambda x: [np.ones(2, like=x) * x[0], np.ones_like(x) * x, np.ones((), like=x) * x], V),
        "zeros": (lambda x: [np.zeros(4, like=x) + x, np.zeros_like(x, shape=(2,)) + x[0], np.empty_like(x).shape[0] * x], V),
        "arange": (lambda x: [np.arange(3, like=x) * x[0], np.arange(1, 5, 2, like=x) * x[1]], V),
        "eye": (lambda x: [np.eye(2, like=x) * x[0], np.identity(2, like=x) * x[1], np.tri(2, like=x) * x[0]], V),
        "fromfunction": (lambda x: np.fromfunction(lambda i: i * 2.0, (4,), like=x) * x, V),
        "linspace": (lambda x: [np.linspace(x[0], x[1], 5), np.linspace(0, x[3], 3), np.linspace(x, 1, 3, axis=1)], V),
        "linspace step": (lambda x: np.linspace(x[0], x[1], 4, endpoint=False, retstep=True), V),
        "logspace": (lambda x: [np.logspace(x[0], x[1], 4), np.geomspace(x[0], x[3], 4)], V),
        "snp": (
            lambda x: [snp.zeros(4) + x, snp.array([x[0], 1.0]), snp.asarray([x, x]), snp.full(2, x[0]), snp.eye(2) * x[1],
                       snp.linspace(x[0], x[1], 3), snp.sin(x), snp.ones_like(V) * x, snp.asarray(x), snp.linalg.norm(x),
                       snp.arange(0, x[3], 0.9), snp.zeros((2, 2), like=x) + x[0], snp.array(x, dtype=complex), snp.pi * x],
            V,
        ),
    }
)  # fmt: skip
def test_creation(fun, args):
    agrees(fun, *args)


MAKERS = {
    np.empty: (3,), np.zeros: (3,), np.ones: (3,), np.full: (3, 2.0), np.eye: (1, 3), np.identity: (1,), np.tri: (1, 3),
    np.arange: (3.0,), np.array: ([1.0, 2.0],), np.asarray: ([1.0, 2.0],), np.asanyarray: ([1.0, 2.0],),
    np.ascontiguousarray: ([1.0, 2.0],), np.asfortranarray: ([1.0, 2.0],), np.require: ([1.0, 2.0],),
    np.fromfunction: (np.sin, (3,)), np.fromiter: ([1.0, 2.0], float), np.frombuffer: (bytes(24),),
    np.fromstring: ("1 2", float, -1, " "), np.loadtxt: (["1 2"],), np.genfromtxt: (["1 2"],),
}  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_arrays_made_like_a_traced_one_take_traced_values(maker):
    def fun(x):
        made = maker(*MAKERS[maker], like=x)
        made[..., 0] = x[0] * x[1]
        return np.sum(made)

    for mode in ("auto", "dynamic"):
        assert np.array_equal(grad(fun, mode=mode)(V), [V[1], V[0], 0, 0])


@pytest.mark.parametrize("stop", [3, 3.0, np.int8(3), np.int32(3), np.float16(3), np.float32(3), np.array(3.0, np.float32)])
@pytest.mark.parametrize("start", [None, 0, 0.0, np.int32(0), np.float32(0)])
def test_ranges_have_the_dtype_of_their_ends(start, stop):
    """Also where an end is an argument: it was that of what begins them, and what was written into them was cut off."""
    ends = (stop,) if start is None else (start, stop)

    def fun(x, *ends):
        made = np.arange(*ends) if len(ends) > 1 else np.arange(*ends, like=x)
        dtypes.append(made.dtype)
        return np.sum(x * made)

    dtypes = []
    for mode in ("auto", "dynamic"):
        assert np.array_equal(grad(fun, mode=mode)(V[:3], *ends), np.arange(*ends))
    assert set(dtypes) == {np.arange(*ends).dtype}


SCALES = {"a": 2.0, "b": 3.0}


def some_taken(x):
    left = iter(x)
    return np.fromiter(left, float, 2).prod() + np.fromiter(left, float, count=1)[0] ** 2 + sum(left)


def until_large(x):
    def sums(total=0.0):
        for v in x:
            total = total + v * v
            if total > 20:
                return
            yield total

    return np.sum(np.fromiter(sums(), np.float64))


OF_ITERATORS = {
    "generator": lambda x: np.sum(np.fromiter((np.sin(v) for v in x), dtype=float) ** 2),
    "with a test": lambda x: np.sum(np.fromiter((v * v for v in x if v > 1.5), float)),
    "endless": lambda x: np.sum(np.fromiter((v * k for k, v in zip(itertools.count(1), itertools.cycle(x))), float, 6) ** 2),
    "map": lambda x: np.prod(np.fromiter(map(np.exp, x), "f8", len(x))),
    "values": lambda x: np.fromiter({k: v * x[0] for k, v in SCALES.items()}.values(), float) @ x[1:3],
    "array": lambda x: np.sum(np.fromiter(x, float, 2)) ** 2,
    "list": lambda x: np.sum(np.fromiter([x[0], 1, x[1] ** 2], float)),
    "complex": lambda x: np.sum(np.abs(np.fromiter((v * 1j + 1 for v in x), complex))),
    "one in another": lambda x: (
        np.fromiter((np.fromiter((v * v for v in row), float).sum() for row in np.outer(x, x)), float) @ x
    ),
    "written into": lambda x: np.multiply(a := np.fromiter((v * v for v in x), float), np.arange(4.0), out=a).sum(),
    "nothing": lambda x: np.sum(np.fromiter((v for v in x if v > 99), float)) + x[0],
    "of constants": lambda x: (
        np.fromiter((k * 2 for k in range(4)), int) @ x + np.fromiter(SCALES.values(), float).sum() * x[0]
    ),
    "some taken": some_taken,
    "until large": until_large,
}


@pytest.mark.parametrize("fun", OF_ITERATORS.values(), ids=OF_ITERATORS)
def test_arrays_of_what_iterators_give(fun, monkeypatch):
    """``np.fromiter`` of traced values was refused."""
    slopes = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for turn, x in enumerate((V, V, V * 1.1, V * 0.3, V, V)):
        monkeypatch.setitem(SCALES, "b", 3.0 + turn // 2)
        expected = [(fun(x + d) - fun(x - d)) / 2e-6 for d in 1e-6 * np.eye(4)]
        for value, slope in (one(x) for one in slopes):
            assert np.isclose(value, fun(x), rtol=1e-14)
            assert np.allclose(slope, expected, rtol=1e-6, atol=1e-6)


def test_what_no_array_can_be_made_of_raises_as_in_numpy():
    for fun in (lambda x: np.fromiter((v for v in x), float, 9), lambda x: np.fromiter((x for _ in x), float)):
        with pytest.raises(ValueError) as expected:
            fun(V)
        for mode in ("auto", "dynamic"):
            with pytest.raises(ValueError, match=str(expected.value)):
                grad(lambda x, fun=fun: fun(x).sum(), mode=mode)(V)


def test_symgrad_numpy_is_numpy_outside():
    assert type(snp.zeros(3)) is np.ndarray
    assert np.array_equal(snp.linspace(0, 1, 3), [0, 0.5, 1])
    assert snp.float64 is np.float64
    assert snp.linalg is np.linalg
    assert "einsum" in dir(snp)
    with pytest.raises(AttributeError):
        snp.no_such_function  # noqa: B018


OTHERS = [range(4), memoryview(np.arange(4.0)), array("d", [0.5, 1.0, 2.0, 3.0]), (1, 2, 3, 4), np.arange(4)]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
def test_what_numpy_takes_for_arrays(other, mode):
    for fun, expected in (
        (lambda x: np.sum(x * other) + np.sum(other * x), 2 * np.array(other)),
        (lambda x: np.sum(np.multiply(other, x)) + np.dot(x, other), 2 * np.array(other)),
        (lambda x: x @ np.asarray(other), np.array(other)),
    ):
        derivative = grad(fun, mode=mode)
        for _ in range(3):
            np.testing.assert_array_equal(derivative(V), expected)


COUNTED = {
    "arange": lambda x, n: np.sum(np.arange(n) * x[0]) + np.sum(np.arange(1, n + 1)) * x[1],
    "ends": lambda x, n: np.sum(np.arange(x[0], x[3], 0.4) ** 2) * n,
    "mgrid": lambda x, n: np.sum(np.mgrid[0:n] * x[0]) + np.sum(np.r_[0:n] * x[1]),
    "window": lambda x, n: np.sum(np.hanning(n) * x[0]),
    "generator": lambda x, n: np.sum(np.random.default_rng(n).normal(size=n) * x[0]),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", COUNTED)
def test_counts_that_are_arguments(name, mode):
    fun, steps = COUNTED[name], 1e-6 * np.eye(4)
    derivative = grad(fun, mode=mode)
    for n in (3, 3, 3, 1, 3):
        expected = [(fun(V + step, n) - fun(V - step, n)) / 2e-6 for step in steps]
        np.testing.assert_allclose(derivative(V, n), expected, rtol=1e-6, atol=1e-8)


def test_large_arrays_are_not_taken_apart():
    x = np.ones(5000)
    with pytest.raises(LeavesNumPy, match=r"5000 elements.*symgrad\.numpy\.asarray"):
        grad(eval("lambda x: np.sum(np.asarray(x))"))(x)  # its source is not at hand
    for mode in ("auto", "dynamic"):
        assert np.allclose(grad(lambda x: np.sum(np.asarray(x, dtype=float) ** 2), mode=mode)(x), 2)
        assert np.allclose(grad(lambda x: np.sum(np.r_[0.0, x, x] ** 2), mode=mode)(x), 4)
    assert np.allclose(grad(lambda x: np.sum(snp.asarray(x) ** 2))(x), 2)
    assert np.allclose(grad(lambda x: np.sum(snp.array([x, x]) ** 2))(x), 4)
    assert np.allclose(grad(lambda x: np.sum([1.0, 2.0] * np.array([x, x], like=x).T))(x), 3)


# by other names, so that no look at the code tells
made, number, total, product = np.asarray, np.float64, np.ndarray.sum, np.ndarray.__mul__


@check(
    {
        "method of arrays": (lambda x: [np.ndarray.sum(x * x, axis=0), np.ndarray.reshape(x, 2, 2)[0], x.sum()], V),
        "by another name": (lambda x: [total(x * x), product(x, x)], V),
        "operator of numbers": (lambda a, b: np.float64.__mul__(a, b), np.float64(2.0), np.float64(3.0)),
        "operator of Python's": (lambda a, b: float.__mul__(a, b), 2.0, 3.0),
        "of all numbers": (lambda a: np.generic.reshape(a, 1), np.float64(2.0)),
        "handed on": (lambda x: [sum(map(np.ndarray.sum, [x, x * x])), functools.reduce(product, [x, x, x])], V),
        "makers by another name": (lambda x: [made(x) * x, made(x[:0]), *map(made, [x, x[:0]])], V),
        "numbers by another name": (lambda a: number(a) * 2, 0.7),
    }
)
def test_what_is_called_without_its_object_or_by_another_name(fun, args):
    agrees(fun, *args)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", [np.asarray, np.float64, functools.partial(np.asarray, dtype=float), np.ndarray.sum])
def test_functions_of_numpys_themselves(fun, mode):
    for x in (V, V[:0]):
        np.testing.assert_array_equal(elementwise_grad(fun, mode=mode)(x), np.ones_like(x))


# -- together ------------------------------------------------------------------------------------------------------


def test_text_of_traced_values():
    """What a derivative follows is marked in its text, so that it cannot be read back as a number; that of it which is left
    outside is as that of plain values."""
    seen, shown = [], io.StringIO()

    def fun(x, n, y):
        text = f"{x[0]:.1f}"
        shown.write(f"{text} {text.startswith('0')}" if n < 0 else f"{x[0]:.1f};")
        seen.append((str(x[0]), f"{x[0]:.2f}", repr(x[0]), f"{x}", f"{n}", f"w{n}", f"{y[0]:.1f}", str(np.argmax(x))))
        return np.sum(x) * n

    derivative = grad(fun)
    for _ in range(4):
        assert np.allclose(derivative(V, 2, W), 2.0)
    with pytest.raises(LeavesNumPy):
        derivative(V, -2, W)
    assert seen[0][:4] == ("0.31", "0.31", "np.float64(0.31)", f"{V}")
    assert seen[0][4:] == ("2", "w2", "0.5", "3")
    assert len(seen) == 4, "text of a value is made at every call"
    assert shown.getvalue() == "0.3;" * 4
    assert "dynamic mode" in derivative.explain()
    other = grad(lambda x: np.sum(x) if f"{x[0]:.1f}" else 0.0)
    other(V)
    assert "becomes text" in other.explain()


def test_views_and_guards_in_a_training_loop():
    """A function as users write them: state in arrays, branches, slices, in-place updates."""

    def simulate(x, steps):
        state = np.zeros_like(x)
        velocity = x * 0.5
        for step in range(steps):
            force = -state + np.roll(state, 1) * 0.1
            velocity += 0.1 * force
            state += 0.1 * velocity
            if state[0] > 1.0:
                state[0] = 1.0
            if step % 2:
                velocity[1:] *= 0.99
        return np.sum(state**2)

    derivative = grad(simulate)
    for _ in range(3):
        g = derivative(V, 7)
    slope = [(simulate(V + 1e-6 * e, 7) - simulate(V - 1e-6 * e, 7)) / 2e-6 for e in np.eye(4)]
    assert np.allclose(g, slope, rtol=1e-6)


def test_higher_orders_through_python():
    def fun(x):
        a, b, *rest = x
        z = np.array([a * b, *rest])
        z = snp.array(z)
        z[0] *= a
        return sum(v**3 for v in z) if a > 0 else a

    full = hessian(fun)(V)
    step = 1e-5
    slope = np.array([(grad(fun)(V + step * e) - grad(fun)(V - step * e)) / (2 * step) for e in np.eye(4)])
    assert np.allclose(full, slope, rtol=1e-6, atol=1e-7)
    assert np.allclose(jacobian(grad(fun))(V), full)


def test_tracers_do_not_show():
    """Results, and what a finished function returned, hold plain values only."""

    def fun(x):
        return {"loss": np.sum(x), "parts": [x[0], (x * 2, 3, "name")], "none": None, "index": np.argmax(x)}

    derivative = value_and_grad(lambda x: (fun(x)["loss"], fun(x)), has_aux=True)
    for _ in range(3):
        (value, aux), g = derivative(V)
        assert type(value) is np.float64
        assert type(g) is np.ndarray
        assert type(aux["parts"][0]) is np.float64
        assert type(aux["parts"][1][0]) is np.ndarray
        assert aux["parts"][1][1:] == (3, "name")
        assert not any(type(leaf) is Tracer for leaf in (value, g, *aux.values()))


def test_running_extremes_of_long_arrays():
    """In a few steps, with the gradient of each to the element that it is."""
    x = np.cumsum(np.cos(np.arange(3000.0) ** 2))
    derivative = grad(lambda x: np.sum(np.maximum.accumulate(x) * np.arange(3000.0)))
    expected = np.zeros(3000)
    np.add.at(expected, np.maximum.accumulate(np.where(x == np.maximum.accumulate(x), np.arange(3000), 0)), np.arange(3000.0))
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), expected)
    assert len(str(derivative.source(x)).splitlines()) < 300
    tied = grad(lambda x: np.maximum.accumulate(x)[-1])(np.ones(4))
    np.testing.assert_allclose(tied, 0.25)


DATA = np.ones((5000, 400))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_calls_hold_no_arrays_when_they_are_over(mode):
    """Nothing has to be collected."""
    with without("pool"):  # which keeps some
        derivative = grad(lambda x: np.sum(np.sin(DATA @ x) ** 2) + np.sum((DATA * x) ** 2), mode=mode)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(4):
            derivative(np.ones(400))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert held < DATA.nbytes / 2


class Unit:
    """A number with operators of its own, which takes Python's floats alone."""

    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        return self.value * other if isinstance(other, float) else NotImplemented

    def __rmul__(self, other):
        return other * self.value

    def __rsub__(self, other):
        return Unit(other - self.value)

    def __rpow__(self, other):
        return other**self.value

    def __lt__(self, other):
        return self.value < other


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x[0] * Unit(2.0),
        lambda x: Unit(2.0) * x.astype(np.float32)[0],
        lambda x: x.astype(np.float32)[0] * Unit(2.0),
        lambda x: (x[0] - Unit(2.0)).value * 3,
        lambda x: x[1] ** Unit(3) if x[0] > Unit(1.0) else x[0] * Unit(0.5),
        lambda x: np.argmax(x) * Unit(2.0) * x[0],
        lambda x: abs((x[0] + 1j) * Unit(2.0)),
        lambda x: x[0] * object(),
    ],
)
def test_objects_that_compute_get_numpys_numbers_as_pythons(fun):
    """As NumPy hands them over, by way of an array of objects."""
    for derivative in (value_and_grad(fun), value_and_grad(fun, mode="dynamic")):
        for x in np.random.default_rng(0).uniform(0.5, 2.0, (6, 2)):
            try:
                want = fun(x)
            except TypeError as error:
                with pytest.raises(TypeError, match=re.escape(str(error))):
                    derivative(x)
                continue
            value, slope = derivative(x)
            assert type(value) is type(want)
            assert value == pytest.approx(want)
            steps = [(fun(x + h) - fun(x - h)) / 0.002 for h in 0.001 * np.eye(2)]
            np.testing.assert_allclose(slope, steps, rtol=1e-3, atol=1e-4)
