"""Lists of numbers that loops fill: arrays, where the loop decides or is long, and lists for whom that matters."""

import math

import numpy as np
import pytest

from symgrad import grad, value_and_grad, without

A = np.random.default_rng(0).integers(0, 4, 9)
B = np.random.default_rng(1).integers(0, 4, 8)


def in_a_row(w):
    y = [0.0] * 13
    for t in range(12):
        if w[t] > 0:
            y[t + 1] = y[t] + w[t]
        else:
            y[t + 1] = y[t] * 0.5
    return sum(y) + y[-1]


def changed_again(w):
    y = [0] * 12
    for t in range(1, 12):
        y[t] = 0.8 * y[t - 1] + w[t]
        if y[t] < 0:
            y[t] = 0.0
    return np.sum(np.array(y) ** 2)


def edit_distance(w):
    n, m = len(A), len(B)
    d = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        d[i][0] = d[i - 1][0] + w[0]
    for j in range(1, m + 1):
        d[0][j] = d[0][j - 1] + w[1]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            best = d[i - 1][j] + w[0]
            if d[i][j - 1] + w[1] < best:
                best = d[i][j - 1] + w[1]
            other = d[i - 1][j - 1] + (0.0 if A[i - 1] == B[j - 1] else w[2])
            if other < best:
                best = other
            d[i][j] = best
    return d[n][m] + sum(d[n])


def two_rows(w):
    previous = [j * w[1] for j in range(len(B) + 1)]
    for a in A:
        current = [previous[0] + w[0]] + [0] * len(B)
        for j in range(len(B)):
            best = min(previous[j + 1] + w[0], current[j] + w[1])
            other = previous[j] + (0.0 if a == B[j] else w[2])
            current[j + 1] = other if other < best else best
        previous = current
    return previous[-1]


def swapped_rows(w):
    previous, current = [0.0] * 9, [0.0] * 9
    for i in range(8):
        for j in range(8):
            best = previous[j + 1] + w[i]
            if current[j] + w[j] < best:
                best = current[j] + w[j] * w[11]
            current[j + 1] = best
        previous, current = current, previous
    return sum(previous) * current[3]


def from_a_copy(w):
    u = [0.0] * 10
    u[5] = w[0]
    for _ in range(6):
        v = u[:]
        for i in range(1, 9):
            bend = u[i - 1] - 2 * u[i] + u[i + 1]
            v[i] = u[i] + (0.2 * w[1] if bend > 0 else 0.1 * w[2]) * bend
        u = v
    return sum(a * a for a in u)


def sorted_by_hand(w):
    x = list(w)
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return sum((i + 1) * x[i] for i in range(len(x)))


def read_by_place(w):
    y = [0.1, 0.2]
    for t in range(2, 12):
        v = 0.5 * y[t - 1] - 0.2 * y[t - 2] + w[t]
        if v > 0.5:
            v = 0.5 + 0.1 * (v - 0.5)
        y.append(v)
    return sum(v * v for v in y)


ARRAYS = [in_a_row, changed_again, edit_distance, two_rows, swapped_rows, from_a_copy, sorted_by_hand, read_by_place]


@pytest.mark.parametrize("fun", ARRAYS)
def test_a_list_that_a_loop_fills_is_rolled_up(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for i, x in enumerate(np.random.default_rng(5).normal(size=(40, 12))):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
        if i == 19:
            known = derivative.cache_info().misses
    assert derivative.cache_info().misses <= known + 1


def test_without_it_lists_stay_lists():
    with without("tables"):
        plain = grad(edit_distance)
    x = np.random.default_rng(5).normal(size=12)
    np.testing.assert_allclose(plain(x), grad(edit_distance)(x), rtol=1e-12)


def other_name(w):
    y = [0.0] * 12
    same = [y]
    for t in range(1, 12):
        y[t] = y[t - 1] + w[t] if w[t] > 0 else same[0][t - 1]
    return sum(same[0])


def one_row_often(w):
    d = [[0.0] * 3] * 2
    for t in range(1, 12):
        if w[t] > 0:
            d[0][1] = w[t] + d[1][1]
    return d[1][1] + d[0][1]


def of_arrays(w):
    y = [0.0] * 12
    for t in range(12):
        y[t] = w[:2] if w[t] > 0 else w[2:4] * w[t]
    return np.sum(np.array(y))


def of_other_things(w):
    y = [None] * 12
    for t in range(12):
        y[t] = w[t] if w[t] > 0 else "none"
    return sum([item for item in y if item != "none"])


def handed_on(w):
    y = [0.0] * 12

    def shrink(items):
        items[0] = w[3] * 0.5

    for t in range(1, 12):
        y[t] = y[t - 1] + w[t] if w[t] > 0 else y[t - 1]
        shrink(y)
    return sum(y)


def run_over_while_it_changes(w):
    y = [1.0, 2.0, 3.0, 4.0, 5.0]
    total = 0.0
    for i, v in enumerate(y):
        if w[i] > 0:
            y[(i + 1) % 5] = w[i] * v
        total = total + v
    return total + sum(y)


def by_a_truth(w):
    y = [0.0, 0.0]
    for t in range(12):
        y[int(w[t] > 0)] += w[t]
    return y[0] * y[1]


def counted(w):
    places, total = [0] * 4, 0.0
    for t in range(12):
        k = t % 4
        if w[t] > 0:
            places[k] = places[k] + 1
            total = total + w[places[k]]
    return total


def of_kinds(w):
    """What is Python's number stays one."""
    y = [0.0] * 12
    for t in range(1, 12):
        if w[t] > 0:
            y[t] = w[t]
    return sum([w[0] if type(item) is float else item for item in y])


def row_put(w):
    d = [[0.0] * 2 for _ in range(12)]
    for t in range(1, 12):
        d[t][0] = w[t] if w[t] > 0 else d[t - 1][1]
        d[t - 1] = d[t]
        d[t][1] = 0.5 * w[t]
    return d[3][1] + d[10][0] + sum(d[4])


def run_over_under_another_name(w):
    y = [1.0, 2.0, 3.0, 4.0]
    z, total = y, 0.0
    for i in range(4):
        if w[i] > 0:
            z[i] = w[i]
        for v in y:
            total = total + v
            z[3] = v * w[0]
    return total


def handed_to_python(w):
    y, total = [0.5, 2.0, 3.0, 0.0, 0.0], 0.0
    for t in range(12):
        if w[t] > 0:
            y[4] = y[4] + w[t] * float(y[1])
        for _ in range(int(y[2])):
            total = total + y[4]
    return total + len(str(y[0]))


def told_apart(w):
    y = [w[0], w[0], 0.0, 0.0]
    for t in range(2, 12):
        if w[t] > 0:
            y[2 + t % 2] = w[t]
    return y[2] + 2 * y[3] if y[0] is y[1] else y[2]


def of_shared_rows(w):
    row = [w[0], 0.0, 0.0]
    d = [row, [0.0] * 3]
    for t in range(12):
        if w[t] > 0:
            d[t % 2][t % 3] = w[t]
    row[0] = 2.0 * w[1]
    return d[0][0] + d[1][2]


def copied_with_its_rows(w):
    d = [[0.0] * 3 for _ in range(2)]
    e = d[:]
    for t in range(12):
        if w[t] > 0:
            d[t % 2][t % 3] = w[t]
    return e[0][0] + e[1][2]


def made_of_rows(w):
    rows = [[0.0] * 3 for _ in range(2)]
    d = [*rows, [w[0]] * 3]
    for t in range(12):
        if w[t] > 0:
            d[t % 3][t % 2] = w[t]
    return rows[0][0] + rows[1][1] + d[2][0]


def max(items, at_most=None):  # no builtin
    if type(items) is list:
        items[0] = 7.0
    return items[1] if at_most is None else items


def with_another_max(w):
    y = [0.0] * 12
    for t in range(1, 12):
        y[t] = w[t] + max(y) if w[t] > 0 else y[t - 1]
    return y[0] + y[11]


@pytest.mark.parametrize(
    "fun",
    [
        of_shared_rows,
        copied_with_its_rows,
        made_of_rows,
        run_over_under_another_name,
        handed_to_python,
        told_apart,
        other_name,
        one_row_often,
        of_arrays,
        of_other_things,
        handed_on,
        run_over_while_it_changes,
        by_a_truth,
        counted,
        of_kinds,
        row_put,
    ],
)
def test_other_lists_are_what_they_are(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(6).normal(size=(12, 12)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)


def test_a_division_by_its_zeros_raises_as_the_function_does():
    def shares(w):
        y = [0.0] * 12
        for t in range(1, 12):
            if w[t] > 0:
                y[t] = w[t]
        return 1.0 / y[0] if w[0] > 0 else 1.0 / y[1]

    derivative = grad(shares)
    x = np.array([-1.0, 2.0, *[0.5] * 10])
    for factor in (1.0, 2.0, 3.0):
        assert derivative(factor * x)[1] == pytest.approx(-1 / (2 * factor) ** 2)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            derivative(-x)
        with pytest.raises(ZeroDivisionError):
            shares(-x)


def test_an_index_beyond_its_end_raises_as_the_function_does():
    def beyond(w, n):
        y = [0.0] * 8
        for t in range(n):
            y[t] = w[t] if w[t] > 0 else 0.0
        return sum(y)

    derivative = grad(beyond)
    x = np.random.default_rng(1).normal(size=12)
    for n in (7, 8, 7, 8):
        derivative(x, n)
    with pytest.raises(IndexError, match="list assignment index out of range"):
        derivative(x, 9)


def test_numbers_of_python_alone():
    def powers(x):
        y = [1.0] * 10
        for t in range(1, 10):
            y[t] = y[t - 1] * x if x * t > 1.0 else y[t - 1] + math.pi * x
        return y[-1]

    derivative = value_and_grad(powers)
    for x in (0.3, 0.7, 1.2, -0.4, 0.35, 0.9):
        value, slope = derivative(x)
        assert type(slope) is float
        assert value == pytest.approx(powers(x), rel=1e-12)
        assert slope == pytest.approx((powers(x + 1e-7) - powers(x - 1e-7)) / 2e-7, rel=1e-5)
