"""Loops over data of narrow types: the same code as for wide ones, where that gives the same numbers."""

import warnings

import numpy as np
import pytest

from symgrad import grad, value_and_grad

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 120)
CUTS = np.array([0.3, -0.2, 0.9, 0.1])
INTS = [np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32]
NARROW = [*INTS, np.float16, np.float32]


def decides(b, y):
    total, e = 0.0, 0.0
    for t in range(len(y)):
        e = np.exp(-e * e) * b
        if y[t] == 1:
            total += e
    return total


def items(b, y):
    total, e = 0.0, 0.0
    for v in y:
        e = np.exp(-e * e) * b + v * b
        total += e
    return total


def casts(b, y):
    total, e = 0.0, 0.0
    for t in range(len(y)):
        e = np.tanh(e + float(y[t]) * b) - (0.5 if y[t] > b else 0.0)
        total += e * int(y[t])
    return total


def places(b, y):
    total, e = 0.0, 0.0
    for t in range(1, len(y)):
        e = np.tanh(e + CUTS[y[t]] * b) * CUTS[y[t - 1] + 1]
        total += e
    return total


def labels_from_one(b, y):
    total, e = 0.0, 0.0
    for t in range(len(y)):
        e = np.tanh(e + CUTS[y[t] - 1] * b) if y[t] > 0 else e * CUTS[y[t] + 2]
        total += e
    return total


def nested(b, y):
    total = 0.0
    for i in range(40):
        e = b
        for k in range(3):
            e = np.tanh(e * y[i + 3 * k]) + b
        total += e
    return total


def table(b, y):
    rows, total, e = y.reshape(-1, 4), 0.0, b
    for i in range(len(rows)):
        for j in range(4):
            if rows[i, j] != 0:
                e = np.sin(e) + rows[i, j] * b
        total += e
    return total


def single(b, y):  # which is rounded to the narrow type
    total, e = 0.0, b
    for t in range(len(y)):
        e = np.tanh(e + y[t] * 0.1) * b
        if y[t] * 3 > 2.7:
            total += e
    return total


def compared(b, y):  # 0.1 in single precision is above 0.1
    total, e = 0.0, b
    for t in range(len(y)):
        e = np.tanh(e) + b
        if y[t] / y[t].dtype.type(10) > 0.1:
            total += e
    return total


FUNCTIONS = [decides, items, casts, places, labels_from_one, nested, table, single, compared]
OF_INTS = (places, labels_from_one)


@pytest.mark.parametrize("fun", FUNCTIONS)
@pytest.mark.parametrize("kind", NARROW)
def test_derivatives_are_those_of_the_function(fun, kind):
    if fun in OF_INTS and kind not in INTS:
        pytest.skip("no places")
    derivative, b = value_and_grad(fun), np.float64(0.3)
    for seed in range(3):
        y = np.random.default_rng(seed).permutation(LABELS).astype(kind)
        for _ in range(3):
            found = derivative(b, y)
        np.testing.assert_allclose(found, value_and_grad(fun, mode="dynamic")(b, y), rtol=1e-11)
        assert type(found[1]) is np.float64


@pytest.mark.parametrize("fun", [decides, items, casts, places, labels_from_one, nested, table])
@pytest.mark.parametrize("kind", [np.int16, np.int32])
def test_the_code_is_that_of_wide_data(fun, kind):
    def length(y):
        derivative = grad(fun)
        for _ in range(3):
            derivative(np.float64(0.3), y)
        return len(str(derivative.source(np.float64(0.3), y, fast=True)).splitlines())

    assert length(LABELS.astype(kind)) <= length(LABELS) + 3


def test_numbers_at_the_end_of_their_type():
    """What would not fit is what NumPy makes of it."""

    def fun(b, y):
        total, e = 0.0, b
        for t in range(len(y)):
            e = np.tanh(e + b)
            if y[t] - 1 > 0:
                total += e
        return total

    derivative, b = grad(fun), np.float64(0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ends in (0, 5, -128, 127, -127, 3, -128, 1):
            y = np.full(100, 1, np.int8)
            y[::3] = ends
            assert derivative(b, y) == pytest.approx(grad(fun, mode="dynamic")(b, y), rel=1e-11)


def test_single_precision_is_compared_in_single_precision():
    def fun(b, y):
        total, e = 0.0, b
        for t in range(len(y)):
            e = np.tanh(e + b)
            if y[t] == 0.1:
                total += e
            if y[t] > 16777217:
                total += 2 * e
        return total

    derivative, b = grad(fun), np.float64(0.3)
    for value in (0.1, 16777218.0, 16777216.0, 0.2):
        y = np.full(100, value, np.float32)
        for _ in range(2):
            found = derivative(b, y)
        assert found == pytest.approx(grad(fun, mode="dynamic")(b, y), rel=1e-11)


def test_arrays_that_the_function_finds_outside():
    data = {kind: LABELS.astype(kind) for kind in NARROW}

    def fun(b, kind):
        total, e = 0.0, b
        for t in range(len(data[kind])):
            e = np.tanh(e + data[kind][t] * b)
            total += e
        return total

    for kind in NARROW:
        derivative = grad(lambda b, kind=kind: fun(b, kind))
        for b in (0.3, 0.4, 0.5):
            b = np.float64(b)
            assert derivative(b) == pytest.approx(grad(fun, mode="dynamic")(b, kind), rel=1e-11)
        data[kind] = data[kind][::-1].copy()
        assert derivative(b) == pytest.approx(grad(fun, mode="dynamic")(b, kind), rel=1e-11)


def test_derivatives_by_narrow_arrays():
    """They are narrow."""

    def fun(y, b):
        total, e = 0.0, b
        for t in range(len(y)):
            e = np.tanh(e + y[t] * b)
            total += e
        return total

    derivative, b = grad(fun), np.float64(0.3)
    for _ in range(3):
        y = RNG.normal(size=60).astype(np.float32)
        found = derivative(y, b)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, grad(fun, mode="dynamic")(y, b), rtol=1e-5)
