"""Loops whose ends are looked up in arrays: rows of sparse matrices, groups of data."""

import numpy as np
import pytest

from symgrad import value_and_grad

ENDS = np.array([0, 3, 3, 7, 8, 12, 20])
LISTED = [0, 3, 3, 7, 8, 12, 20]


def sparse_product(vals, w, ip):
    y = np.zeros(len(w))
    for i in range(len(w)):
        for j in range(ip[i], ip[i + 1]):
            y[i] += np.sin(vals[j]) * w[i]
    return np.sum(y**2)


def every_other_row(vals, w, ip):
    total = 0.0
    for i in range(1, len(w) - 1, 2):
        twice = w[i] * 2
        for j in range(ip[i] + 1, ip[i + 1]):
            total += (vals[j] - twice) ** 2 * j
    return total


def counted(vals, w, ip):
    total = 0.0
    for i in range(len(w)):
        for j in range(ip[i + 1] - ip[i]):
            total += vals[ip[i] + j] * w[i] * (j + 1)
    return total


def decided(vals, w, ip):
    y = np.zeros(len(w))
    for i in range(len(w)):
        for j in range(ip[i], ip[i + 1]):
            if vals[j] > 0:
                y[i] += np.log(vals[j]) * w[i]
            else:
                y[i] -= vals[j]
    return np.sum(y**2)


def carried(vals, w, ip):
    h = 1.0
    for i in range(len(w)):
        for j in range(ip[i], ip[i + 1]):
            h = np.tanh(h * w[i] + vals[j])
    return h * np.sum(w)


def two_columns(vals, w, ip):
    bounds = np.stack([ip[:-1], ip[1:]], axis=1)
    total = 0.0
    for i in range(len(w)):
        for j in range(bounds[i, 0], bounds[i, 1]):
            total += vals[j] * w[i]
    return total


def appended(vals, w, ip):
    found = []
    for i in range(len(w)):
        for j in range(ip[i], ip[i + 1]):
            found.append(vals[j] * w[i])
    return np.sum(np.array(found) ** 2) + w[0]


def of_whole_numbers(vals, w, ip):
    total = 0.0
    for i in range(len(w)):
        for j in range(ip[i], ip[i + 1]):
            total += vals[j] * w[i] / (j + 1) ** 2 + (j // 2) * w[i]
    return total


def summed_row_by_row(vals, w, ip):
    total = 0.0
    for i in range(len(w)):
        row = 0.0
        for j in range(ip[i], ip[i + 1]):
            row += vals[j] * w[i]
        total += row**2
    return total


def ends_outside(vals, w, ip):
    total = 0.0
    for i in range(6):
        for j in range(ENDS[i], ENDS[i + 1]):
            total += vals[j] * w[i]
    return total


def item_of_an_item(vals, w, ip):
    bounds = np.stack([ip[:-1], ip[1:]], axis=1)
    total = 0.0
    for i in range(len(w)):
        for j in range(bounds[i][0], bounds[i][1]):
            total += vals[j] * w[i]
    return total


def ends_that_change(vals, w, ip):
    ends = np.array(ip)
    total = 0.0
    for i in range(len(w)):
        for j in range(ends[i], ends[i + 1]):
            total += vals[j] * w[i]
            ends[i + 1] = max(ends[i + 1] - 1, 0)
    return total


def counter_read_later(vals, w, ip):
    total, j = 0.0, 0
    for i in range(len(w)):
        for j in range(ip[i], ip[i + 1]):
            total += vals[j] * w[i]
    return total + j * w[0] + i * w[1]


def ends_listed(vals, w, ip):
    total = 0.0
    for i in range(6):
        for j in range(LISTED[i], LISTED[i + 1]):
            total += vals[j] * w[i]
    return total


def backwards(vals, w, ip):
    total = 0.0
    for i in range(len(w)):
        for j in range(ip[i + 1], ip[i]):
            total += vals[j] * w[i]
    return total + np.sum(w)


ONCE = (sparse_product, counted, decided, carried, two_columns, appended, of_whole_numbers, summed_row_by_row, ends_outside)
ALL = (
    *ONCE, every_other_row, item_of_an_item, ends_that_change, counter_read_later, ends_listed, backwards
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", [np.int64, np.int32, list])
@pytest.mark.parametrize("fun", ALL)
def test_ends_that_are_looked_up(fun, kind):
    """Whatever they are, and however many there are between them; some rows are empty."""
    rng, derivative = np.random.default_rng(0), value_and_grad(fun, (0, 1))
    known = value_and_grad(fun, (0, 1), mode="dynamic")
    traces = []
    for n, size, some in [(20, 80, 1), (20, 80, 1), (20, 80, 1), (20, 80, 1), (20, 80, 1), (8, 40, 1), (20, 80, 0)]:
        ip = np.sort(rng.integers(0, size + 1, n + 1)) * some
        ip[0], ip[-1] = 0, size * some
        if fun in (two_columns, item_of_an_item) and kind is list:
            args = rng.normal(size=size), rng.normal(size=n), ip
        else:
            args = rng.normal(size=size), rng.normal(size=n), ip.tolist() if kind is list else ip.astype(kind)
        value, slopes = derivative(*args)
        expected, others = known(*args)
        assert value == pytest.approx(expected, rel=1e-11, abs=1e-12)
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        traces.append(derivative.cache_info().misses)
    if kind is not list and fun in ONCE:
        assert traces[4] <= 4  # of other ends code knows as well
        assert len(str(derivative.source(*args)).splitlines()) < 100


def test_an_end_that_is_not_there():
    """It raises when its turn comes."""

    def beyond(vals, w, ip):
        total = 0.0
        for i in range(len(w) + 1):
            for j in range(ip[i], ip[i + 1]):
                total += vals[j] * w[i]
        return total

    for _ in range(3):
        with pytest.raises(IndexError):
            value_and_grad(beyond)(np.ones(6), np.ones(2), np.array([0, 3, 6]))


def rows_from_an_int(vals, w, ip):
    y = np.zeros(len(w))
    for i in range(len(w)):
        row = 0
        for j in range(ip[i], ip[i + 1]):
            row += vals[j] ** 2 * w[i]
        y[i] = row
    return np.sum(np.sin(y))


def ends_of_few_bits(vals, w, ip):
    ends = (np.minimum(ip, 100)).astype(np.int8)
    total = 0.0
    for i in range(len(w)):
        for j in range(ends[i] - 100, ends[i + 1]):
            total += vals[max(j, 0)] * w[i]
    return total


def ends_written_by_out(vals, w, ip):
    ends, total = np.array(ip) * 1, 0.0
    for i in range(len(w)):
        for j in range(ends[i], ends[i + 1]):
            total += vals[j] * w[i]
            made = np.subtract(ends, 1, ends) if j % 7 == 3 and ends[0] > -4 else w
            total += 0.1 * np.sum(made)
    return total


def ends_under_two_names(vals, w, ip):
    ends, total = np.array(ip) * 1, 0.0
    both = [ends] * 2
    for i in range(len(w)):
        for j in range(ends[i], ends[i + 1]):
            total += vals[j] * w[i]
            both[0][i + 1] = max(both[1][i + 1] - 1, 0)
    return total


def ends_written_by_a_view(vals, w, ip):
    ends, total = np.array(ip) * 1, 0.0
    rest = ends[1:]
    for i in range(len(w)):
        for j in range(ends[i], ends[i + 1]):
            total += vals[j] * w[i]
            rest[i] = rest[i] - 1 if j % 3 == 2 and rest[i] > 0 else rest[i]
    return total


def ends_with_names(vals, w, ip):
    total = 0.0
    for i in range(len(w)):
        low = ip[i]
        high = ip[i + 1]
        for j in range(low, high):
            total += vals[j] * w[i]
    return total


def ends_with_names_at_once(vals, w, ip):
    total = 0.0
    for i in range(len(w)):
        low, high = ip[i], ip[i + 1]
        for j in range(low, high):
            total += vals[j] * w[i]
    return total


def one_end_with_a_name(vals, w, ip):
    y = np.zeros(len(w))
    for i in range(len(w)):
        low = ip[i]
        twice = w[i] * 2
        for j in range(low, ip[i + 1]):
            y[i] += np.sin(vals[j]) * twice
    return np.sum(y**2)


def array_of_each_row(vals, w, ip):
    total = 0.0
    for i in range(len(w) - 3):
        p = w[i : i + 3] * 2
        for j in range(ip[i], ip[i + 1]):
            p[0] += vals[j]
            total += p[0] * p[1]
    return total


def array_of_each_row_of_a_triangle(vals, w, ip):
    total = 0.0
    for i in range(len(w) - 3):
        p = w[i : i + 3] * 2
        for j in range(i + 1):
            p[0] += vals[j]
            total += p[0] * p[1]
    return total


def sizes_of_rows(vals, w, ip):
    rows, total = np.zeros((len(w), 3)), 0.0
    for i in range(len(w)):
        for j in range(rows[i].size):
            total += vals[j] * w[i]
    return total


def another_range(vals, w, ip):
    def range(low, high):
        return [high - 1 - k for k in np.arange(high - low)]

    total = 0.0
    for i in range(0, len(w)):
        for j in range(ip[i], ip[i + 1]):
            total = total * 0.9 + vals[j] * w[i]
    return total


@pytest.mark.parametrize(
    "fun",
    [
        rows_from_an_int,
        ends_of_few_bits,
        ends_written_by_out,
        ends_under_two_names,
        ends_written_by_a_view,
        ends_with_names,
        ends_with_names_at_once,
        one_end_with_a_name,
        array_of_each_row,
        array_of_each_row_of_a_triangle,
        sizes_of_rows,
        another_range,
    ],
)
def test_ends_that_are_something_else_by_then(fun):
    """Rows that were empty may not be, at other calls; ends have the numbers that they had when their loop began."""
    rng, derivative = np.random.default_rng(1), value_and_grad(fun, (0, 1))
    one = np.array([0, 3, 3, 3, 9, 12, 20])
    for ip in (one, one, one, np.array([0, 0, 0, 12, 12, 12, 12]), np.sort(rng.integers(0, 21, 7)), one):
        args = rng.normal(size=20), rng.normal(size=6), ip
        value, slopes = derivative(*args)
        expected, others = value_and_grad(fun, (0, 1), mode="dynamic")(*args)
        assert value == pytest.approx(expected, rel=1e-11, abs=1e-12)
        for found, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-12)
