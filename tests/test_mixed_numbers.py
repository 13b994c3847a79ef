"""Locals that hold Python's number where some way was taken, and NumPy's where another one was: what divides by zero, and what
has another power, is as the function has it."""

import numpy as np
import pytest

from symgrad import value_and_grad

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def caught(x):
    total = 0.0
    for v in x:
        if v > 0.7:
            total += v
    try:
        return x[1] * (1.0 / total)
    except ZeroDivisionError:
        return x[2]


def mean(x):
    total, n = 0.0, 0
    for v in x:
        if v > 0.7:
            total += v
            n += 1
    try:
        return total / n + x[0]
    except ZeroDivisionError:
        return x[2]


def raised(x):
    total = 0.0
    for v in x:
        if v > 0.7:
            total += v
    scale = 3.0 * total + 1.0
    return 2.0 / (scale - 1.0) + x[0]


def root(x):
    c = 0.0
    for v in x:
        if v > 0.7:
            c = v
    return x[1] * (c + 1.0) ** 0.5 if c else abs((c - 1.0) ** 0.5) * x[2]


def remainder(x):
    c = 0.0
    for v in x:
        if v > 0.7:
            c = v
    try:
        return x[0] * (3.0 % c)
    except ZeroDivisionError:
        return x[2]


def made_anew(x):
    total = x[0]
    for v in x:
        y = 0.0 if v > 0.5 else v
        total = total + y
    try:
        return total + 1.0 / y
    except ZeroDivisionError:
        return x[4]


def array_divided(x):
    total = 0.0
    for v in x:
        if v > 0.2:
            total += v
    out = 0.0
    for v in x:
        out = out + v / total
    return out


def without_a_loop(x):
    t = 0.0
    if x[0] > 0:
        t += x[0]
    if x[1] > 0:
        t += x[1]
    if x[2] > 0:
        t += x[2]
    if x[3] > 0:
        t += x[3]
    return x[4] * (2.0 / t)


def two_counts(x):
    t, n = 0.0, 0
    if x[0] > 0:
        t += x[0]
        n += 1
    if x[1] > 0:
        t += x[1]
        n += 1
    if x[2] > 0:
        t += x[2]
        n += 1
    if x[3] > 0:
        t = x[3]
        n += 1
    return t / n * x[4]


def outcome(fun, x):
    try:
        return fun(x)
    except ArithmeticError as error:
        return repr(error)


@pytest.mark.parametrize("fun", [caught, mean, raised, root, remainder, made_anew, array_divided, without_a_loop, two_counts])
@pytest.mark.parametrize("often", [2, 7, 1000])
def test_as_python_has_it(fun, often):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(60):
        x = np.random.default_rng(k).normal(size=5)
        if k % often == often - 1:
            x = -abs(x)  # no way is taken
        expected, found, slope = outcome(fun, x), outcome(derivative, x), outcome(dynamic, x)
        if isinstance(expected, str):
            assert found == slope == expected
        else:
            np.testing.assert_allclose(found[0], expected, rtol=1e-12)
            np.testing.assert_allclose(found[1], slope[1], rtol=1e-9)
