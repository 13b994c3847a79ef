"""Loops whose ends, and slices whose lengths, hang on the index of a loop around: kept as such where they would be long."""

import numpy as np
import pytest

from symgrad import grad, hvp, value_and_grad, without
from symgrad.tracing import trace

R = np.random.default_rng(0).normal
N = 14


def spd(n):
    b = np.random.default_rng(1).normal(size=(n, n))
    return b @ b.T + n * np.eye(n)


def cholesky(a):
    a = a.copy()
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, len(a)):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return np.sum(np.tril(a) ** 2) + a[-1, 0]


def lower_upper(a):
    a = a.copy()
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, len(a)):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return np.sum(a * a)


def by_columns(a):
    a = a.copy()
    for k in range(len(a)):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] /= a[k, k]
        for j in range(k + 1, len(a)):
            a[j:, j] -= a[j, k] * a[j:, k]
    return np.sum(np.tril(a) ** 3)


def eliminated(a):
    a, b = a.copy(), np.sin(a[0])
    for k in range(len(b) - 1):
        for i in range(k + 1, len(b)):
            m = a[i, k] / a[k, k]
            a[i, k:] -= m * a[k, k:]
            b[i] -= m * b[k]
    x = np.zeros_like(b)
    for i in range(len(b) - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return np.sum(x**2)


def number_by_number(a):
    b, x = np.cos(a[0]), np.zeros_like(a[0])
    for i in range(len(b)):
        s = b[i]
        for j in range(i):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]
    return np.sum(x**2)


def from_the_end(a):
    x = a[0].copy()
    for i in reversed(range(len(x))):
        for j in range(len(x) - 1, i, -2):
            x[i] = np.tanh(x[i] + 0.1 * a[i, j] * x[j])
    return np.sum(x**2)


def by_while(a):
    x = a[0].copy()
    for i in range(len(x)):
        j = 0
        while j < i:
            x[i] -= np.sin(x[j]) * 0.1
            j += 1
        x[i] = np.cos(x[i])
    return np.sum(x)


def of_three(a):
    c = np.zeros_like(a)
    for width in range(2, len(a)):
        for i in range(len(a) - width):
            best = 0.0
            for k in range(i + 1, i + width):
                best = best + np.exp(-(c[i, k] + c[k, i + width] + 0.01 * a[i, k] * a[k, i + width]))
            c[i, i + width] = -np.log(best)
    return c[0, -1]


def all_pairs(a):
    x, energy = a[0], 0.0
    for i in range(len(x)):
        d = x[i + 1 :] - x[i]
        energy = energy + np.sum(1 / (1 + d * d))
    return energy


def rows_before(a):
    s = a[0].copy()
    for i in range(1, len(s)):
        s[i] = np.sin(np.sum(a[:i] * a[i], axis=0)[0]) + np.linalg.norm(1 + s[:i]) + len(s[:i]) * 0.1
    return np.sum(s)


def through_views(a):
    x = a[0].copy()
    for i in range(1, len(x)):
        v = x[:i]
        v *= 0.9
        w = x[i:]
        x[0] = 0.1 * a[i, 0]
        x[-1] = v[0] * w[0]
        v[...] = np.sin(v)
    return np.sum(x**2)


def beyond_the_ends(a):
    x, total = a[0], 0.0
    for i in range(len(x) + 3):
        total = total + np.sum(x[i - 3 : i + 2] ** 2) + np.sum(x[: i - 2]) * np.sum(x[-i:]) + np.sum(x[i:3])
    return total


def two_ways(a):
    x = a[0].copy()
    for i in range(len(x)):
        if x[i] > 0:
            x[:i] *= 0.9
            for j in range(i):
                x[i] += 0.01 * np.cos(x[j])
        else:
            x[i:] = np.sin(x[i:])
    return np.sum(x**2)


def noted_places(a):
    """Where a loop was at last, and where it was best: other names of its numbers."""
    x, total = a[0].copy(), 0.0
    for i in range(1, len(x)):
        last, least, best, both = 0, 10.0, 0, [0, 0]
        for j in range(i):
            x[i] += 0.01 * np.sin(x[j])
            last, both = j, [j, i]
            if x[j] < least:
                least, best = x[j], j
        total = total + x[last] * last + a[1, best] * best + x[both[0]] * both[1]
    return total


def noted_at_last(a):
    x, total = a[0].copy(), 0.0
    for i in range(1, len(x)):
        last = 0
        for j in range(i):
            x[i] += 0.01 * np.sin(x[j])
            last = j
        total = total + x[last] * a[0, last] * i
    return total


ROLLED = [cholesky, lower_upper, by_columns, eliminated, number_by_number, by_while, of_three, rows_before]
PROGRAMS = [*ROLLED, from_the_end, all_pairs, through_views, beyond_the_ends, two_ways, noted_places, noted_at_last]


@pytest.fixture
def short(monkeypatch):
    """Traces are long from the first nodes on."""
    monkeypatch.setattr(trace, "LONG", 10)


def points(count):
    """Arguments at which ``two_ways`` goes different ways."""
    rng = np.random.default_rng(3)
    return [spd(N) * rng.uniform(0.9, 1.1) + rng.normal(size=(N, N)) * 0.1 for _ in range(count)]


@pytest.mark.parametrize("fun", PROGRAMS)
@pytest.mark.usefixtures("short")
def test_values_and_derivatives(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    with np.errstate(all="ignore"):
        for a in [*points(5), *points(2)]:
            before = a.copy()
            value, slope = derivative(a)
            other, expected = dynamic(a)
            np.testing.assert_allclose([value, value], [other, fun(a)], rtol=1e-10)
            np.testing.assert_allclose(slope, expected, rtol=1e-8, atol=1e-10)
            np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("fun", [cholesky, number_by_number, all_pairs, rows_before, through_views])
@pytest.mark.usefixtures("short")
def test_second_derivatives(fun):
    (a, b, _), v = points(3), np.random.default_rng(5).normal(size=(N, N))
    product, slope = hvp(fun), grad(fun, mode="dynamic")
    for x in (a, b, a):
        step = 1e-5 * v
        expected = (slope(x + step) - slope(x - step)) / 2e-5
        np.testing.assert_allclose(product(x, v), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("fun", ROLLED)
def test_long_ones_are_loops(fun, monkeypatch):
    """Their code is as long for many rows as for few, calls are compiled, and the first ones leave little to be done."""
    monkeypatch.setattr(trace, "LONG", 300)
    derivative = grad(fun)
    for _ in range(4):
        derivative(spd(40))
    assert derivative.cache_info().hits >= 1
    lines = derivative.source(spd(40)).splitlines()
    assert len(lines) < 330
    assert any([line.lstrip().startswith("for ") for line in lines])


def test_code_has_the_slices_of_the_function(monkeypatch):
    monkeypatch.setattr(trace, "LONG", 300)
    derivative = grad(cholesky)
    for _ in range(3):
        derivative(spd(40))
    source = derivative.source(spd(40))
    assert any(["np.dot(" in line and line.count(":j") == 2 for line in source.splitlines()]), source


def test_short_ones_are_written_out():
    derivative = grad(cholesky)
    for _ in range(3):
        derivative(spd(8))
    assert "for j" not in derivative.source(spd(8))


@pytest.mark.parametrize("fun", PROGRAMS)
@pytest.mark.usefixtures("short")
def test_switched_off(fun):
    with np.errstate(all="ignore"):
        with without("spans"):
            plain = grad(fun)
            for a in points(3):
                expected = plain(a)
        with without():
            bare = grad(fun)
            for a in points(3):
                slope = bare(a)
    np.testing.assert_allclose(slope, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.usefixtures("short")
def test_what_is_done_outside_is_done_once(late):
    done = []

    def fun(x):
        y = x.copy()
        if not late:
            done.append(0)
        for i in range(len(x)):
            for j in range(i):
                y[i] -= np.sin(y[j]) * 0.1
        if late:
            done.append(0)
        return np.sum(y)

    derivative, x = grad(fun), R(size=12)
    for _ in range(3):
        derivative(x)
    assert len(done) == 3


def windows_in_ifs(x):
    total = 0.0
    for i in range(2, len(x) - 2):
        total = total * 0.9
        if x[i] > 0.5:
            total = total + 0.2 * np.sum(np.sin(x[i - 3 : i + 2]))
    return total


@pytest.mark.parametrize("count", [9, 40])
def test_a_window_that_is_not_there_in_all_iterations(count):
    """Calls that do not get there where it begins before the first element, and one that does: it is empty then."""
    derivative, rng = value_and_grad(windows_in_ifs), np.random.default_rng(0)
    for call in range(8):
        x = rng.uniform(0.1, 0.4, count)
        x[rng.random(count) < 0.6] += 0.55
        x[2] = 0.2 if call < 5 else 0.9
        value, _ = derivative(x)
        assert value == pytest.approx(windows_in_ifs(x), rel=1e-10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("beyond", [np.nan, np.inf, -1.0, 0.0])
@pytest.mark.usefixtures("short")
def test_what_is_beyond_a_slice_is_not_looked_at(beyond):
    def fun(a):
        x, total = np.zeros_like(a[:, 0]), 0.0
        for i in range(1, len(x)):
            x[i] = (a[i, 0] - a[i, :i] @ x[:i]) / a[i, i]
            total = total + np.sum(np.log(a[i, :i])) + np.mean(np.sqrt(a[i, :i])) + np.sum(x[i:] / a[i:, i - 1])
        return total + np.sum(x**2)

    a = np.tril(np.random.default_rng(7).uniform(0.5, 1, size=(N, N))) + N * np.eye(N)
    a[np.triu_indices(N, 1)] = beyond
    derivative, expected = value_and_grad(fun), value_and_grad(fun, mode="dynamic")(a)
    for _ in range(3):
        value, slope = derivative(a)
        assert value == pytest.approx(expected[0])
        np.testing.assert_allclose(slope, expected[1], rtol=1e-9, atol=1e-12)


def test_windows_that_a_condition_keeps_within_the_ends_are_code():
    def fun(x):
        total = 0.0
        for i in range(len(x)):
            if 2 <= i < len(x) - 2 and x[i] > 0.5:
                total = total * 0.9 + np.sum(np.sin(x[i - 2 : i + 3]))
            total = total + x[i] ** 2
        return total

    derivative, dynamic, rng = grad(fun), grad(fun, mode="dynamic"), np.random.default_rng(0)
    for _ in range(8):
        x = rng.uniform(0, 1, 60)
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-10)
    assert derivative.cache_info().hits >= 3


@pytest.mark.usefixtures("short")
def test_what_is_left_in_a_local_of_another_loop():
    """A selection that one loop makes and nobody reads is no part of the next one."""

    def fun(x):
        total, last = 0.0, 0.0
        for i in range(1, len(x)):
            v = x[:i]
            v = v * 0.7
            total = total + np.sum(v)
        for i in range(1, len(x)):
            last = last * 0.5 + np.sin(x[i] * last + total) + np.sum(x[i:] * 0.1)
        return last

    derivative, dynamic, x = grad(fun), grad(fun, mode="dynamic"), R(size=12)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-10)


def test_short_nests_that_decide_have_code_for_all_their_ways():
    def sorted_by_hand(w):
        x = w.copy()
        for i in range(len(x)):
            for j in range(len(x) - 1 - i):
                if x[j] > x[j + 1]:
                    kept = x[j]
                    x[j] = x[j + 1]
                    x[j + 1] = 0.9 * kept
            x[0] = 0.5 * x[0]
        return sum([(i + 1) * x[i] for i in range(len(x))])

    derivative, dynamic = value_and_grad(sorted_by_hand), value_and_grad(sorted_by_hand, mode="dynamic")
    for w in np.random.default_rng(0).normal(size=(20, 8)):
        (value, slope), (expected, other) = derivative(w), dynamic(w)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11)
    assert derivative.cache_info().misses <= 4


def pairs_of_a_list(x):
    items, total = [v * 2 for v in x], 0.0
    for i, u in enumerate(items):
        for v in items[i + 1 :]:
            total += u * v if u > v else 0.1 * v
    return total


def up_to_the_first(x):
    items, total = [v * 2 for v in x], 0.0
    for i in range(len(items)):
        for v in items[:i]:
            if v > 2:
                break
            total += v
        else:
            total += 10
    return total


def a_list_that_is_written_into(x):
    items, total = [v * 2 for v in x], 0.0
    for i in range(len(items) - 1):
        for v in items[i + 1 :]:
            items[-1] = items[-1] * 0.99 + v * 0.01
            total += v if v > 0 else 0.0
    return total + items[-1]


def an_array_that_is_written_into(x):
    items, total = x * 2.0, 0.0
    for i in range(len(items)):
        for v in items[i + 1 :]:
            items[-1] += 0.01 * v
            total += v if v > 0 else 0.0
    return total


def a_list_that_grows(x):
    items, total = [v * 2 for v in x], 0.0
    for i in range(len(items)):
        for v in items[i + 1 :]:
            if v > 1 and len(items) < 12:
                items.append(v * 0.5)
            total += v
    return total


def from_before_the_first(x):
    items, total = [v * 2 for v in x], 0.0
    for i in range(len(items)):
        for v in items[i - 1 :]:
            total += v * i
    return total


def many_of_an_array(x):
    items, total = np.concatenate([x] * 5), 0.0
    for i in range(40):
        for v in items[i + 1 :]:
            if v > items[i]:
                total += np.cos(v - items[i])
    return total


STRETCHES = [pairs_of_a_list, up_to_the_first, a_list_that_is_written_into, an_array_that_is_written_into]
STRETCHES += [a_list_that_grows, from_before_the_first, many_of_an_array]


@pytest.mark.parametrize("fun", STRETCHES)
def test_parts_that_move_are_run_over(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in R(size=(8, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x.copy()), rel=1e-11)
        np.testing.assert_allclose(slope, other, rtol=1e-8, atol=1e-11)


def test_pairs_of_many_by_parts_are_a_loop_in_a_loop():
    def fun(x):
        items, total = [x[0] * k + x[1] for k in range(40)], 0.0
        for i, u in enumerate(items):
            for v in items[i + 1 :]:
                if abs(u - v) < 3.0:
                    total += 1 / ((u - v) ** 2 + 0.1)
        return total

    derivative, x = value_and_grad(fun), np.array([1.1, 0.5])
    for _ in range(3):
        assert derivative(x)[0] == pytest.approx(fun(x), rel=1e-11)
    assert derivative.source(x, fast=True).count("\n") < 400
