"""Numbers that are Python's where some way was taken, and NumPy's where another one was: what divides by zero, what has another
power, and what the function asks about them, is as the function has it."""

import numpy as np
import pytest

from symgrad import grad, hessian, value_and_grad

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning"),  # of Python's truth values, by Python 3.12
]


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


def positive(x):
    """The sum of what is large: Python's zero where nothing is."""
    total = 0.0
    for v in x:
        if v > 0.7:
            total += v
    return total


def by_type(x):
    total = positive(x)
    return x[0] * total + (x[1] if type(total) is float else x[2])


def by_class(x):
    total = positive(x)
    return x[0] * total + (x[1] if isinstance(total, np.floating) else x[2])


def by_method(x):
    total = positive(x)
    return x[0] * total + (x[1] if hasattr(total, "dtype") else x[2])


def by_default(x):
    total = positive(x)
    return x[0] * total + x[1] * getattr(total, "ndim", 3)


def of_attribute(x):
    total = positive(x)
    return x[0] * total + total.ndim + x[1]


def caught_nothing(x):
    total = positive(x)
    try:
        return x[0] * (1 if type(total) is float else 2)
    except Exception:
        return x[1]


def truths(x):
    total = positive(x)
    return x[0] * ((total > -1) + (total > -5)) + x[1]


def inverted(x):
    return x[0] * (~(positive(x) > 5)) + x[1]


def narrow(x):
    y = x.astype(np.float32) * (positive(x) + 0.1)
    return y.dtype.itemsize * x[1]


def divided_by_numpy(x):
    total = positive(x)
    inverse = np.divide(1.0, total)
    return x[1] * 2 if np.isinf(inverse) else x[2] * inverse


def asked_in_the_loop(x):
    c, n = 0.0, 0
    for v in x:
        if v > 0.3:
            c = c + v
        n += 1 if type(c) is float else 10
    return c * x[0] + n * x[1]


def asked_before_it_is_set(x):
    c, total = 0.0, x[0]
    for v in x:
        total = total + 2 * v if type(c) is float else total - v
        if v > 0.3:
            c = c + v
    return total


def of_an_inner_loop(x):
    total = x[0]
    for v in x:
        c = 0.0
        for w in x:
            if w > v:
                c = c + w
        total = total + (v if type(c) is float else 2 * v * c)
    return total


def of_an_outer_loop(x):
    total, d = x[0], 0.0
    for v in x:
        c = 0.0
        for w in x:
            if w > v + 0.5:
                c = c + w
        d = c * 2
        total = total + d * v
    return total * (2 if type(d) is float else 3)


def in_sections(x):
    t = 0.0
    if x[0] > 0:
        t += x[0]
    if x[1] > 0:
        t += x[1]
    if x[2] > 0:
        t += x[2]
    if x[3] > 0:
        t += x[3]
    return x[4] * 2 if type(t) is float else t * x[4] * t.ndim + t


def chosen(x):
    c = max(0.0, x[0])
    return x[1] * (c + 1) if type(c) is float else x[2]


def chosen_int(x):
    c = max(x[0], 0)
    return x[1] * (c + 1) if isinstance(c, int) else x[2] * c


def chosen_divides(x):
    return 1.0 / max(0.0, x[0]) + x[1]


def chosen_in_turn(x):
    m = 0.0
    for v in x:
        m = max(m, v - 0.5)
    return x[0] * (2 if type(m) is float else 3) * (m + 1)


def chosen_last(x):
    m = s = 0.0
    for v in x:
        m = max(0.0, v - 0.3)
        s += m * v
    return s + 1.0 / m


def chosen_of_many(x):
    c = max([0.0, *[v * (i + 1) for i in range(8) for v in x]])
    return x[0] * (2 if type(c) is float else 3) * c


def in_order(x):
    a = sorted([0.0, x[0], x[1], x[2], 0.3])
    return a[1] * (2 if type(a[1]) is float else 3) + a[2] * x[3]


def chosen_truths(x):
    c = max(0.0, x[0])
    return x[1] * ((c > -1) + (c > -2))


def chosen_narrow(x):
    y = x.astype(np.float32) * max(0.5, x[0])
    return y.dtype.itemsize * x[0]


def of_a_list(x):
    y = [v if v > 0 else 0.0 for v in x]
    return x[0] * (2 if type(y[1]) is float else 3) + y[2] * x[3]


def of_a_list_divides(x):
    y = []
    for v in x:
        if v > 0.3:
            y.append(v)
        else:
            y.append(0.0)
    return x[0] + 1.0 / y[1]


def along_a_list(x):
    y = [v if v > 0 else 0.0 for v in x]
    return sum([1.0 / (0.0 + v) for v in y if type(v) is not float]) + x[0]


def before_a_break(x):
    s = 0.0
    for v in x:
        if v > 0.5:
            break
        s += v
    return x[0] * (2 if type(s) is float else 3) + s


def before_a_break_divides(x):
    s = 0.0
    for v in x:
        if v > 0.5:
            break
        s += v
    return x[0] + 1.0 / s


def of_a_function(x):
    def clipped(v):
        return 0.0 if v < 0 else 1.0 if v > 1 else v

    a, b, c, d = [clipped(v) for v in x[:4]]
    return x[4] * (1 if type(a) is float else 2) + a * b + c / (1 + d)


ASKING = [
    by_type, by_class, by_method, by_default, of_attribute, caught_nothing, truths, inverted, narrow, divided_by_numpy,
    asked_in_the_loop, asked_before_it_is_set, of_an_inner_loop, of_an_outer_loop, in_sections, chosen, chosen_int,
    chosen_divides, chosen_in_turn, chosen_last, chosen_of_many, in_order, chosen_truths, chosen_narrow, of_a_list,
    of_a_list_divides, along_a_list, before_a_break, before_a_break_divides, of_a_function,
]  # fmt: skip


def listed(x):
    total, totals = 0.0, []
    for v in x:
        if v > 0:
            total = total + v
        totals.append(total)
    return x[1] ** 2 * (1 / totals[-1]) + totals[0]


def listed_after_others(x):
    """In some calls, all that is appended is Python's; in others, NumPy's."""
    path = [0.0]
    for v in x:
        if v > 0:
            path.append(path[-1] + v)
        else:
            path.append(path[-1] * 0.5)
    return x[1] ** 2 * (1 / path[-1]) + sum([v * v for v in path])


def listed_and_asked(x):
    total, totals = 0.0, []
    for v in x:
        if v > 0.7:
            total = total + v
        totals.append(total)
    return x[1] if type(totals[-1]) is float else x[2] * totals[-1]


def outcome(fun, x):
    try:
        return fun(x)
    except (ArithmeticError, AttributeError) as error:
        return repr(error)


LISTED = [listed, listed_after_others]


@pytest.mark.parametrize("fun", LISTED)
def test_divisions_by_items_of_lists_in_second_derivatives(fun):
    derivative, dynamic = hessian(fun), hessian(fun, mode="dynamic")
    for k in range(20):
        x = np.random.default_rng(k).normal(size=5)
        x = -abs(x) if k % 3 == 2 else x
        expected, found, curvature = outcome(fun, x), outcome(derivative, x), outcome(dynamic, x)
        if isinstance(expected, str):
            assert found == curvature == expected
        else:
            np.testing.assert_allclose(found, curvature, rtol=1e-9, atol=1e-14)


def safe(x):
    return x[0] / max(1e-3, x[1]) + min(-0.5, x[2]) * (x[3] / min(-0.5, x[2])) + max(0.0, x[4]) ** 2


def summed(x):
    return sum([max(0.0, v) for v in x]) / max(1, len(x))


@pytest.mark.parametrize("fun", [safe, summed])
def test_choices_that_nobody_asks_about_are_no_branches(fun):
    derivative = value_and_grad(fun)
    for k in range(40):
        derivative(np.random.default_rng(k).normal(size=5))
    assert derivative.cache_info().misses == 2
    assert " if " not in str(derivative.source(np.ones(5))).partition('"""')[2].replace("# ", "")


DIVIDING = [caught, mean, raised, root, remainder, made_anew, array_divided, without_a_loop, two_counts]


@pytest.mark.parametrize("fun", [*DIVIDING, *ASKING, *LISTED, listed_and_asked])
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


def rational(x):
    s = 0.0
    for v in x:
        s += v / 3.0 + 1.0 / (1.0 + max(0.0, v)) + max(0.0, v) ** 1.5
    return s


def recursive(x):
    s = x[0]
    for v in x:
        s = s * 0.9 + 2.0 / (0.1 + max(0.0, s)) * v
    return s


@pytest.mark.parametrize("fun", [rational, recursive])
def test_what_cannot_be_zero_is_no_decision(fun):
    derivative = value_and_grad(fun)
    for k in range(20):
        x = np.random.default_rng(k).normal(size=30)
        np.testing.assert_allclose(derivative(x)[0], fun(x), rtol=1e-12)
    assert derivative.cache_info().misses == 2
    assert "== 0" not in str(derivative.source(x))


def both_of(x):
    return ((x[0] > 0) + (x[1] > 0)) % 3 * x[0]


def both_and_nought(x):
    return ((x[0] > 0) + (x[1] > 0) + 0) * x[0] + (True + (x[1] > 0)) // 1 * x[1]


def both_in_a_loop(x):
    n = False
    for v in x:
        n += v > 0
    return n % 3 * x[0]


def largest_of_truths(x):
    return np.sum((np.maximum(x > 0, x < 2) + (x < 1)) * x) + np.sum(((x > 0) * np.minimum(x < 2, x > 1) + 0) * x)


def chosen_by_truths(x):
    return np.choose((x[0] > 0) + (x[0] > -1), [x[0], 2 * x[0], 0.5]) + abs((x[0] > 0) + (x[1] > 0)) // 1 * x[1]


def squared_truths(x):
    return np.sum(np.log1p((x > 0) ** 2) * x)


def chosen_of_two_kinds(x):
    return -np.where((x > -9).sum(), np.uint8(7), np.int64(3)) * np.sum(x)


without_source = eval("lambda x: np.sum([x[0] > 0, x[1] < 2, x[0] < 1]) * x[0] + np.mean([x[0] > 0, x[1] > 0]) * x[1]")


@pytest.mark.parametrize(
    "fun",
    [
        both_of, both_and_nought, both_in_a_loop, largest_of_truths, chosen_by_truths, squared_truths, without_source,
        chosen_of_two_kinds,
    ],
)  # fmt: skip
def test_sums_of_truths_are_numpys(fun):
    derivative = value_and_grad(fun)
    for x in np.array([[2.1, 1.1], [0.5, 1.5], [4.0, 0.4], [0.7, -0.5], [5.0, 0.2]]):
        found, slopes = derivative(x)
        step = 1e-6
        expected = [(fun(x + step * e) - fun(x - step * e)) / (2 * step) for e in np.eye(2)]
        np.testing.assert_allclose(found, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slopes, expected, rtol=1e-6, atol=1e-8)
    assert derivative.cache_info().hits or fun is without_source


def test_narrow_numbers_stay_narrow_in_loops():
    """A Python number beside NumPy's of single precision is one of those."""

    def fun(x):
        s, total = np.float32(1e30), 0.0
        for v in x:
            s = np.multiply(1e5, s)
            if np.isinf(s):
                s = np.float32(1e30)
                total += v
            else:
                total -= 0.5 * v
        return total

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    with np.errstate(over="ignore"):
        for _ in range(6):
            x = rng.normal(size=20)
            np.testing.assert_allclose(derivative(x)[0], fun(x), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_slopes_of_pythons_numbers_add_up_in_double_precision(dtype):
    """Beside narrow numbers, too: in half precision, a sum of ones would end at 2048."""

    def fun(c, x):
        total = np.float64(0.0)
        for v in x:
            total = total + np.real(c * v)
        return total

    x = np.full(3000, 1.0 if dtype is np.float16 else 0.1, dtype)
    for mode, rtol in (("auto", 1e-6), ("dynamic", 1e-12)):
        derivative = grad(fun, mode=mode)
        for _ in range(3):
            np.testing.assert_allclose(derivative(1.0, x), np.sum(x.real, dtype=float), rtol=rtol)
