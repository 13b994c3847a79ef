"""``int(x)`` is a number of the code, by which tables are looked up; a branch where Python looks at it."""

import math

import numpy as np
import pytest

from symgrad import grad, value_and_grad, vmap

PLACES = np.linspace(-3, 3, 13)
TABLE = np.sin(PLACES)
LISTED = TABLE.tolist()


def interpolated(x):
    t = min(max((x[0] + 3) * 2, 0.0), 11.9)
    i = int(t)
    return TABLE[i] * (1 - (t - i)) + TABLE[i + 1] * (t - i)


def interpolated_in_a_loop(x):
    total = 0.0
    for v in x:
        t = min(max((v + 3) * 2, 0.0), 11.9)
        i = int(t)
        total += TABLE[i] * (1 - (t - i)) + TABLE[i + 1] * (t - i)
    return total


def held_within_bounds(x):
    t = (x[0] + 3) * 2
    i = int(t)
    if i < 0:
        i = 0
    if i >= len(TABLE) - 1:
        i = len(TABLE) - 2
    return TABLE[i] + (t - i) * (TABLE[i + 1] - TABLE[i])


def in_a_grid(x):
    a, b = (x[0] + 3) * 1.5, (x[1] + 3) * 1.5
    i, j = int(a) % 8, int(b) % 8
    grid = np.outer(np.arange(10.0), np.cos(np.arange(10.0)))
    a, b = a - i, b - j
    return (grid[i, j] * (1 - b) + grid[i, j + 1] * b) * (1 - a) + (grid[i + 1, j] * (1 - b) + grid[i + 1, j + 1] * b) * a


def in_bins(x):
    bins = np.zeros(6)
    for v in x:
        k = int(v + 3)
        if 0 <= k < 6:
            bins[k] += v
    return np.sum(bins**2)


def so_many_steps(x):
    steps, y, k = int(abs(x[0]) * 10) + 3, x[1], 0
    while k < steps:
        y = y + 0.01 * np.sin(y)
        k += 1
    return y


@pytest.mark.parametrize("fun", [interpolated, interpolated_in_a_loop, held_within_bounds, in_a_grid, in_bins, so_many_steps])
def test_cells_of_tables(fun):
    derivative = checked(fun)
    assert derivative.cache_info().misses <= 6


def from_a_list(x):
    i = int((x[0] + 3) * 2) % 12
    return LISTED[i] * x[1] + LISTED[i + 1]


def counted(x):
    total = x[1]
    for _ in range(int(abs(x[0]) * 4)):
        total = total * 1.1 + x[2]
    return total + np.sum(np.ones(int(abs(x[0])) + 1) * x[3]) + np.sum(x[: int(abs(x[0])) + 1])


def by_keys(x):
    k = int(x[0] * 2)
    return {0: 1.0, 1: 2.0, -1: 3.0}.get(k, 4.0) * x[1] + math.factorial(abs(k) % 5) * x[2] + float(f"{k}") + float(str(k))


@pytest.mark.parametrize("fun", [from_a_list, counted, by_keys])
def test_where_python_looks(fun):
    checked(fun)


def checked(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(1).normal(size=(40, 8)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-11, atol=1e-13)
    return derivative


@pytest.mark.parametrize("end", [10, 10.0])
def test_the_item_of_a_slice_is_a_number(end):
    def fun(x):
        kinds = np.arange(end) % 2
        kind = kinds[int(x) : int(x) + 1].item()
        return kind * x if kind == 1 else 3.0 * x

    derivative = value_and_grad(fun)
    for x in (1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5):
        assert derivative(x) == (fun(x), fun(x) / x)
    assert derivative.cache_info().hits > 2


def unread(x):
    k = int(x)  # noqa: F841
    return x * 2


@pytest.mark.parametrize("fun", [unread, lambda x: x * int(x), lambda x: x if int(x) > 3 else -x])
def test_there_is_no_int_of_what_is_not_finite(fun):
    derivative = grad(fun)
    for x in (1.0, 2.5, 3.5, 4.5, 5.5):
        derivative(x)
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        derivative(np.nan)
    with pytest.raises(OverflowError, match="cannot convert float infinity to integer"):
        derivative(np.inf)


def test_ints_are_pythons():
    def fun(x):
        k = int(x * 1.5)
        if not isinstance(k, int) or type(k) is not int:
            raise TypeError("no int")
        return x * k / 2 + x // k + (x * k) ** 2 + k // 2 + k**2

    derivative = value_and_grad(fun)
    for x in (1.5, 2.5, 3.5, 4.5, -2.5):
        value, slope = derivative(x)
        assert value == fun(x)
        assert type(value) is float
        k = int(x * 1.5)
        assert slope == pytest.approx(k / 2 + 2 * x * k**2)


def test_batches():
    """Elements in one cell go one way."""

    def fun(x):
        i = int(x)
        return TABLE[i] * (1 - (x - i)) + TABLE[i + 1] * (x - i)

    rows, slopes = vmap(fun), vmap(grad(fun))
    for _ in range(3):
        x = np.array([0.3, 2.2, 3.7, 2.9])
        i = x.astype(int)
        np.testing.assert_allclose(rows(x), TABLE[i] * (1 - (x - i)) + TABLE[i + 1] * (x - i))
        np.testing.assert_allclose(slopes(x), TABLE[i + 1] - TABLE[i])
    assert "dynamic" not in rows.explain()


def test_batches_of_ints_that_no_array_holds():
    """All of 2**63 and more were taken to be the same."""
    rows = vmap(lambda x: int(x * 1e19) % 7 * x + (int(x * 1e300) > 0))
    for x in ([1.2, 2.3, -3.1], [1.7, 2.3, 3.1], [-1.2, 5.3, -3.1], [1.2, 2.3, -3.1]):
        np.testing.assert_allclose(rows(np.array(x)), [int(v * 1e19) % 7 * v + (int(v * 1e300) > 0) for v in x])


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: TABLE[int(x[0])] + x[1] ** 2,
        lambda x: np.take(TABLE, int(x[0])) + x[1] ** 2,
        lambda x: 0 * x[int(x[0])] + x[1] ** 2,
    ],
)
def test_there_is_nothing_beyond_the_end(fun):
    """Though the gradient does not hang on what is there."""
    derivative = grad(fun)
    for x in (1.0, 2.5, 0.0, 1.5, 2.0):
        np.testing.assert_allclose(derivative(np.array([x, 3.0, 1.0])), [0, 6, 0])
    with pytest.raises(IndexError, match="out of bounds"):
        derivative(np.array([99.0, 3.0, 1.0]))


def found_by_halving(x):
    low, high = 0, len(TABLE) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if PLACES[middle] <= x[0]:
            low = middle
        else:
            high = middle
    part = (x[0] - PLACES[low]) / (PLACES[high] - PLACES[low])
    return TABLE[low] * (1 - part) + TABLE[high] * part


def found_early(x):
    keys, low, high = np.linspace(-3.0, 3.0, 64), 0, 63
    while low < high:
        middle = (low + high) // 2
        if abs(keys[middle] - x[0]) < 0.02:
            return x[1] * keys[middle] + middle
        if keys[middle] < x[0]:
            low = middle + 1
        else:
            high = middle
    return x[1] * keys[low] - low


def largest_run(x):
    best, total, first, start, end = x[0], x[0], 0, 0, 0
    for i in range(1, len(x)):
        if total < 0:
            total, first = x[i], i
        else:
            total = total + x[i]
        if total > best:
            best, start, end = total, first, i + 1
    return best * (end - start + 1)


def halved_sizes(x):
    """What is counted is a size, which Python looks at."""
    n, half, total = 8, 0, 0.0
    while n > 1:
        half = n // 2
        n = half
        total = total + np.sum(x[:n]) if x[n] > 0 else total * 0.5 + x[n]
    return total


@pytest.mark.parametrize("fun", [found_by_halving, found_early, largest_run, halved_sizes])
def test_places_that_are_made_of_each_other(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).uniform(-2.9, 2.9, (60, 12)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-11, atol=1e-13)
    assert fun is halved_sizes or derivative.cache_info().misses <= 10


# -- ints as arguments ---------------------------------------------------------------------------------------------

STEPS = [1.0] * 64 + [2.0] * 400


def counted_on(x, n):
    s, y = 0.0, x[:n]
    for i in range(100):
        s = s + x[i] * STEPS[n]
        n += 1
    return s + len(y)


def by_sizes_of_ranges(x, n):
    s, y = 0.0, x[:n]
    for i in range(100):
        k = n + i
        s = s + np.sum(x[i : i + 2]) * len(range(k % 7))
    return s + np.sum(y)


def grown_once(x, n):
    y, s = x[:n], np.sum(x[:n])
    for i in range(100):
        s = s + np.sum(x[i : i + n]) * n
        if i == 70:
            n += 1
    return s + np.sum(y)


def grown_where_large(x, n):
    s = np.sum(x[:n])
    for i in range(80):
        s = s + np.sum(x[i : i + n] * np.arange(n))
        if x[i] > 1:
            n = min(n + 1, 6)
    return s


def seen_on_one_side(x, n):
    s = np.sum(x[:n]) if x[0] > 0 else 0.0
    return s * n + np.sum(x) * n


def counted_down(x, n):
    s = np.sum(x[:n])
    while n > 0:
        s = s + np.sum(x[n : 2 * n]) ** 2
        n -= 1
    return s


def windows(x, n):
    h, s = (n - 1) // 2, 0.0
    for i in range(h, len(x) - h):
        s = s + np.median(x[i - h : i + h + 1]) ** 2
    return s


def strides(x, n):
    out = np.zeros(n * 20 + 8)
    for i in range(20):
        out[i * n : i * n + 8] += np.tanh(x[i * n : i * n + 8])
    return np.sum(out**2)


def seen_again(x, n):
    def first(k):
        return np.sum(x[:k]) * k

    return first(n) + first(n + 1) * first(2 * n) + first(7 - n) * n**2


@pytest.mark.parametrize(
    "fun",
    [
        counted_on,
        by_sizes_of_ranges,
        grown_once,
        grown_where_large,
        seen_on_one_side,
        counted_down,
        windows,
        strides,
        seen_again,
    ],
)
def test_ints_of_each_call(fun):
    """What Python has seen of an int is that of the calls that go this way, and of no others; in loops it may change."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(1)
    for n in (3, 3, 3, 4, 4, 4, 5, 3, 4, 2, 2, 2, True, np.int64(3), np.int64(3), np.int64(3)):
        x = rng.normal(size=120)
        (value, slope), (_, other) = derivative(x, n), dynamic(x, n)
        assert value == pytest.approx(fun(x, n), rel=1e-10)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("fun", [windows, strides])
def test_loops_by_ints_that_calls_have_in_common_are_done_at_once(fun):
    derivative = value_and_grad(fun)
    for x in np.random.default_rng(1).normal(size=(3, 120)):
        derivative(x, 5)
    code = derivative.source(x, 5)
    assert "for " not in code.replace("   for x: ", "")
    assert code.count("if ") == 1


def products(w, a):
    return w[0] * (a[0] * a[1]) - w[1] * (a[0] << 40) + w[2] * a[1] ** 7


def negatives(w, a):
    return w[0] * (-a[0]) * np.abs(a[1]) + np.sum(w[:2] * ((a * 6364136223846793005 + 1442695040888963407) % 7))


def hashed(w, a):
    h, total = np.int64(1469598103934665603), 0.0
    for k in range(60):
        h = (h ^ a[k % 2]) * np.int64(1099511628211)
        total = total + w[k % 3] * (h % 5)
    return total


LARGE = 2**53 + 1  # which a float is too short for
BESIDE = {
    "above": lambda x, a: np.sum((a > x) * x),
    "alike": lambda x, a: np.sum((x == a) * x),
    "constant": lambda x, a: np.sum(np.where(x < LARGE, x * x, x)) + a[0] * 0.0,
    "constants": lambda x, a: np.sum(np.where(x < np.array([LARGE, 3]), x * x, x)) + a[0] * 0.0,
    "element": lambda x, a: x[0] * x[0] if a[0] > x[0] else x[0],
    "in a loop": lambda x, a: sum([x[i] * x[i] if a[i] > x[i] else x[i] for i in range(2)]),
    "pythons": lambda x, a: np.where(a[0].item() > x[0].item(), x[0] * x[0], x[0]),
}


@pytest.mark.parametrize("name", BESIDE)
def test_large_ints_beside_floats_are_compared_as_numpy_does(name):
    """In double precision, where Python compares the numbers as they are."""
    fun = BESIDE[name]
    derivative, x = value_and_grad(fun), np.array([2.0**53, 1.0])
    for a in [np.array([LARGE, 3]), np.array([LARGE - 1, 3]), np.array([5, 7])] * 3:
        for scale in (1.0, 0.5):
            assert derivative(x * scale, a)[0] == fun(x * scale, a)
    assert derivative.cache_info().hits > 5


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("fun", [products, negatives, hashed])
def test_integers_of_numpy_begin_anew(fun):
    """Where they are too large, in code that works with Python's, which have no end."""
    derivative, w = value_and_grad(fun), np.array([0.5, 1.5, 2.5])
    for a in [np.array([3, 4]), np.array([-(2**63), -(2**63)]), np.array([2**40, 2**30]), np.array([2**62, 77])] * 3:
        assert derivative(w, a)[0] == fun(w, a)
    assert derivative.cache_info().hits > 6


def in_cents(x):
    total = 0.0
    for _ in range(20):
        total = round(total * 1.01 + x[0], 2)
    return total * x[1]


@pytest.mark.parametrize("fun", [lambda x: round(x[0], 2) * x[1], lambda x: round(x[0] * 1000, -1) * x[1], in_cents])
def test_numbers_of_numpy_are_rounded_as_numpy_does(fun):
    derivative = value_and_grad(fun)
    for k in range(300):
        x = np.array([k / 200 - 0.5, 1.0])
        assert derivative(x)[0] == fun(x)
    assert derivative.cache_info().hits > 200
