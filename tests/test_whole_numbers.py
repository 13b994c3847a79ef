"""Ints and flags beside floats, as some way of a loop leaves the ones, and another one the others: code has floats there, and
what shows the difference (a type, a text, a place, the dtype of an array) is as the function has it."""

import math

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def counted(x):
    c = 0
    for v in x:
        if v > 1.0:
            c = c + 1
        elif v < -1.0:
            c = c + 0.5
    return c


def put(x):
    c = 0
    for v in x:
        if v > 1.0:
            c = c + 0.5
        elif v < -1.0:
            c = 3
    return c


def added(x):
    c = 0
    for v in x:
        if v > 1.0:
            c += v
    return c


def flagged(x):
    c = True
    for v in x:
        c = 0.5 if v > 1.2 else c
    return c


def in_a_while(x):
    c, k = 0, 0
    while k < len(x):
        if x[k] > 1.0:
            c = c + 0.5
        elif x[k] < -1.0:
            c = 3
        k += 1
    return c


def in_a_dictionary(x):
    d = {"c": 0}
    for v in x:
        if v > 1.0:
            d["c"] += 0.5
        elif v < -1.0:
            d["c"] = 3
    return d["c"]


def in_a_list(x):
    c = [0, 0]
    for v in x:
        if v > 1.0:
            c[0] += 0.5
        elif v < -1.0:
            c[0] = 3
    return c[0]


def chosen_for_a_list(x):
    return [1.5 if v > 1.0 else 1 for v in x]


def beside_flags(x):
    some = []
    for v in x:
        if v > 1.0:
            some.append(1)
        elif v > 0.0:
            some.append(0.5)
        else:
            some.append(True)
    return some


def of_some(x):
    some = []
    for v in x:
        if v > 1.0:
            some.append(2)
        elif v > 0.0:
            some.append(0.5)
    return some


def beside_numpys(x):
    return [v if v > 1.0 else 2 for v in x]


def so_far(x):
    c, some = 0, []
    for v in x:
        if v > 1.0:
            c = c + 1
        elif v < -1.0:
            c = c + 0.5
        some.append(c)
    return some


def totals(x):
    c, some = 0, []
    for v in x:
        if v > 1.0:
            c = c + v
        some.append(c)
    return some


NUMBERS = [counted, put, added, flagged, in_a_while, in_a_dictionary, in_a_list]
LISTS = [chosen_for_a_list, beside_flags, of_some, beside_numpys, so_far, totals]


def is_int(c, x):
    return c * x[0] + (x[1] if isinstance(c, int) else x[2])


def of_type(c, x):
    return c * x[0] + (x[1] if type(c) is float else x[2])


def as_place(c, x):
    return x[c % 9] * 2.0 if isinstance(c, int) and not isinstance(c, bool) else c * x[2]


def as_a_place_if_whole(c, x):
    return x[c] * 2.0 if c in (3, 0) and not hasattr(c, "dtype") and type(c) is not float else x[2]


def in_an_array(c, x):
    made = np.array([c, 1])
    return made.sum() * x[0] + (x[1] if made.dtype == int else x[2])


def put_into_an_array(c, x):
    made = np.full(3, c)
    made[1] = 0.7
    return made.sum() * x[0]


def like_an_array(c, x):
    made = np.zeros_like(np.full(3, c))
    made[1] = 0.7
    return made.sum() * x[0]


def divided(c, x):
    return x[0] / (c + 1) + x[1] * (c % 2) + x[2] * (c // 2) + c**2


def numpys_operations(c, x):
    """NumPy's ints have no infinity, nor quotients but ints."""
    return np.floor_divide(7, c) * x[0] + np.mod(7, c + 0) * x[1] + np.int64(9) // c * x[2] + np.reciprocal(c + 2) * x[3]


def numpys_kinds(c, x):
    square, first = np.square(c + 0), np.array([c, 1])[0]
    return x[0] * isinstance(square, np.integer) + x[1] * isinstance(first, np.integer) + x[2] * square


def pythons_kinds(c, x):
    return (x[0] if type(c.real) is int else x[1]) + (x[2] if type(np.array([c, 1]).tolist()[0]) is int else x[3])


def filled_like(c, x):
    return np.full_like(c, 2.7) * x[0] + np.full_like(np.array([c, 1]), 2.7).sum() * x[1] + np.arange(c + 1).sum() * x[2]


def by_bits(c, x):
    if isinstance(c, bool) or c % 1:
        return x[0] * c
    return x[0] * (int(c) & 1) + (x[1] * (c & 3) if not isinstance(c, (float, np.floating)) else x[2])


OF_NUMBERS = [
    is_int, of_type, as_place, as_a_place_if_whole, in_an_array, put_into_an_array, like_an_array, divided,
    numpys_operations, numpys_kinds, pythons_kinds, filled_like, by_bits,
]  # fmt: skip


def one_is_int(some, x):
    return sum([x[0] if isinstance(c, int) else x[1] * c for c in some])


def one_is_of_type(some, x):
    total = 0.0
    for c in some:
        total = total + (x[0] * c if type(c) is int else x[1])
    return total


def dtype_of_all(some, x):
    made = np.array(some)
    return made.sum() * x[0] + (x[1] if made.dtype == int else x[2])


def written_into(some, x):
    made = np.array(some)
    made[0] = 0.5
    return made.sum() * x[0]


def zeros_like_all(some, x):
    made = np.zeros_like(some)
    made[0] = 0.5
    return made.sum() * x[0]


def running(some, x):
    made = np.cumsum(some)
    made[0] = 0.5
    return made.sum() * x[0]


def weighed(some, x):
    return sum(some) * x[0] + max(some) * x[1] + len(some)


def as_indices(some, x):
    one = some[2]
    if isinstance(one, (float, bool)):
        return x[0] * one
    made = np.zeros(4)
    made[one] = 3.0
    return x[0] * (one & 2) + np.arange(9.0)[one] * x[1] + made.sum() * x[2] + len([0] * one)


def put_into_ints(some, x):
    made = np.array([1, 2, 3])
    for one in some:
        if not isinstance(one, float):
            made += one
            made <<= one % 3
    return x[0] * made.sum()


OF_LISTS = [as_indices, put_into_ints, one_is_int, one_is_of_type, dtype_of_all, written_into, zeros_like_all, running, weighed]


def of_both(make, use):
    def fun(x):
        return use(make(x), x)

    return fun


def as_the_function(fun):
    derivative = value_and_grad(fun)
    for k in range(24):
        x = np.random.default_rng(k).normal(size=9)
        if k % 5 == 4:
            x = -abs(x)
        elif k % 7 == 6:
            x = np.abs(x) + 1.0
        right_at(derivative, fun, x, (1e-12, 1e-12), (1e-9, 1e-12))


@pytest.mark.parametrize("use", OF_NUMBERS)
@pytest.mark.parametrize("make", NUMBERS)
def test_numbers(make, use):
    as_the_function(of_both(make, use))


@pytest.mark.parametrize("use", OF_LISTS)
@pytest.mark.parametrize("make", LISTS)
def test_lists(make, use):
    def some(x):
        made = make(x)
        return [*made, 1, 1, 1] if len(made) < 3 else made

    as_the_function(of_both(some, use))


@pytest.mark.parametrize("make", NUMBERS)
def test_texts(make):
    def fun(x):
        return x[0] * len(f"{make(x) * 1}")

    if make is not added:  # whose text a derivative would follow
        as_the_function(fun)


@pytest.mark.parametrize("use", [is_int, of_type, in_an_array, put_into_an_array])
def test_the_larger_of_an_int_and_a_float(use):
    def fun(a):
        return use(max(2, a), np.ones(3)) * a + use(min(a, 1, 0.5), np.ones(3) * 2.0)

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for a in (1.0, 2.5, 1.5, 3.5, 0.5, -0.3, 1.2, 4.0):
        assert derivative(a)[0] == pytest.approx(fun(a))
        assert derivative(a)[1] == pytest.approx(dynamic(a)[1])


def from_the_second_on(x):
    s, n = 0, 0
    for v in x:
        if v > 0:
            if n > 1:
                s += v
            n += 1
    return s


def every_few(x):
    s, c = 0, 0
    for v in x:
        if v > 0:
            if c > 2:
                s += v
            c += 1
            if c > 5:
                c = 0
    return s / (c + 1)


def from_a_traced_int(x):
    n = int(x[0] > 0) + 1
    s = n
    for v in x:
        if v > 0:
            if v > 0.5:
                s = s + v
            elif v < 0.2:
                s = s * 0.5
    return s * x[1]


def from_a_number_cut_off(x):
    s = int(abs(x[0]) * 3)
    for v in x:
        if v > 0.5:
            s = s + v
        elif v < 0.2:
            s = s * 2
    return s * x[1]


def largest_from_an_int(x):
    best = int(abs(x[0]) * 2)
    for v in x:
        if v > best:
            best = v
    return best * x[3]


def divided_by_what_may_be_an_int(x):
    s = int(abs(x[0]) * 3)
    for v in x:
        if v > 1.0:
            s = v
    try:
        return x[1] / s
    except ZeroDivisionError:
        return x[2]


def flags_as_places(x):
    weights, found, count = [0.3, 0.9], [0.0, 0.0], 0
    for v in x:
        found[int(v > 0)] += v * weights[int(v > 0.5)]
        count += int(v > 0.2)
    return found[0] * found[1] + count * x[count % 7]


FROM_INTS = [from_the_second_on, every_few, from_a_traced_int, from_a_number_cut_off, largest_from_an_int]
FROM_INTS += [divided_by_what_may_be_an_int, flags_as_places]


@pytest.mark.parametrize("fun", FROM_INTS)
def test_sums_that_begin_as_ints_are_code(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for i in range(30):
        x = rng.normal(size=20)
        right_at(derivative, fun, -np.abs(x) if i % 7 == 6 else x, (1e-12, 1e-12), (1e-9, 1e-12))
    assert derivative.cache_info().misses <= 6


def negative_powers(x):
    return x[0] * np.sum(np.array([v if v > 1.0 else 2 for v in x]) ** -1)


def test_negative_powers_of_ints_are_refused_as_numpy_does():
    derivative = value_and_grad(negative_powers)
    for k in range(12):
        x = np.random.default_rng(k).normal(size=9)
        x[0] = 2.0
        derivative(x)
    with pytest.raises(ValueError, match="Integers to negative"):
        negative_powers(-np.ones(9))
    with pytest.raises(ValueError, match="Integers to negative"):
        derivative(-np.ones(9))


def divided_by_some(x):
    some = []
    for v in x:
        if v > 1.0:
            some.append(0.0)
        elif v > 0.0:
            some.append(2.0)
        else:
            some.append(v)
    total = 0.0
    for k in range(len(x)):
        if some[k] != 0.0 or x[0] > 1.0:
            total = total + 1.0 / some[k]
    return total


def test_pythons_zero_in_a_list_beside_numpys_raises():
    derivative = value_and_grad(divided_by_some)
    for k in range(40):
        x = np.random.default_rng(k).normal(size=16)
        try:
            right_at(derivative, divided_by_some, x, (1e-12, 1e-12), (1e-9, 1e-12))
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                divided_by_some(x)
            with pytest.raises(ZeroDivisionError):
                derivative(x)


def turned(x):
    c = 0
    for v in x:
        if v > 1.0:
            c = 0.5
    return np.arctan2(-c, -1.0) * x[0]


def signed_as(x):
    c = 0
    for v in x:
        if v > 1.0:
            c += 0.5
    return np.copysign(2.0, -c) * x[0]


def below_zero(x):
    c = 0
    for v in x:
        if v > 1.0:
            c += v
    return np.where(np.signbit(-3 * c), x[0], x[1])


@pytest.mark.parametrize("fun", [turned, signed_as, below_zero])
def test_the_zero_of_ints_has_no_sign(fun):
    derivative = value_and_grad(fun)
    for k in range(30):
        x = np.random.default_rng(k).normal(size=4) - 0.5 * (k % 2)
        right_at(derivative, fun, x, (1e-12, 1e-12), (1e-9, 1e-12))


WHOLE = [math.floor, math.ceil, math.trunc, round, int]


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
@pytest.mark.parametrize("whole", WHOLE)
def test_whole_numbers_by_python_are_places_in_code(whole, kind):
    table = np.arange(20.0) ** 2

    def fun(x):
        total = 0.0
        for k in range(5):
            i = whole(x * (k + 1))
            total = total + table[i] * (x - i)
        return total

    if whole is math.trunc and kind is np.float32:
        return  # which has none
    derivative = value_and_grad(fun)
    for x in (0.3, 1.75, 2.25, 0.4, 1.5, 0.5, 2.5):
        value, slope = derivative(kind(x))
        assert value == pytest.approx(fun(kind(x)), rel=1e-5)
        assert slope == pytest.approx(sum(table[whole(kind(x) * (k + 1))] for k in range(5)), rel=1e-6)
    assert derivative.cache_info().hits >= 4
    for wrong, error in ((math.inf, OverflowError), (math.nan, ValueError)):
        with pytest.raises(error, match="cannot convert float"):
            derivative(kind(wrong))
