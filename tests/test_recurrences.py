"""Loops that go on from a multiple of what the iteration before has made, plus something, are done at once, and are right."""

import re

import numpy as np
import pytest
from agreement import agrees, agrees_with_dynamic, program_of
from hypothesis import given
from hypothesis import strategies as st

from symgrad import grad, hessian, jvp, value_and_grad, vmap

RNG = np.random.default_rng(2)
N = 330
X = RNG.normal(size=N)


def averages(p, x):
    s, total = x[0], 0.0
    for t in range(1, len(x)):
        total += (x[t] - s) ** 2
        s = p[0] * x[t] + (1 - p[0]) * s
    return total / len(x)


def variances(p, x):
    h, total = np.mean(x**2), 0.0
    for t in range(len(x)):
        total += 0.5 * (np.log(h) + x[t] ** 2 / h)
        h = p[0] + p[1] * x[t] ** 2 + 0.3 * h
    return total


def written(p, x):
    y = np.empty_like(x)
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = y[t - 1] + p[0] * (x[t] - y[t - 1])
    return np.sum(np.sin(y))


def listed(p, x):
    y = [x[0]]
    for t in range(1, len(x)):
        y.append(p[0] * x[t] + p[1] * y[-1])
    return np.sum(np.array(y) ** 2)


def backwards(p, x):
    n = len(x) - 1
    advantages, last = np.zeros(n), 0.0
    for t in reversed(range(n)):
        last = x[t] + p[0] * x[t + 1] - x[t] ** 2 + p[0] * p[1] * last
        advantages[t] = last
    return np.sum(advantages**2)


def backwards_in_an_array(p, x):
    y = np.ones_like(x)
    for t in range(len(x) - 2, -1, -1):
        y[t] = x[t] - p[1] * y[t + 1]
    return np.sum(y**3)


def from_the_end_of_the_array(p, x):
    y = np.full_like(x, 0.5)
    for t in range(len(x)):
        y[t] = p[0] * y[t - 1] + x[t]  # the first reads the last
    return np.sum(np.cos(y))


def running_sums(p, x):
    s = np.zeros(len(x) + 1)
    for i in range(len(x)):
        s[i + 1] = s[i] + p[0] * x[i]
    total = 0.0
    for i in range(5, len(x) + 1):
        total += np.exp(-((s[i] - s[i - 5]) ** 2))
    return total


def running_products(p, x):
    w, path = 1.0, []
    for r in x * 0.1:
        w = w * (1 + p[0] * r)
        path.append(w)
    return np.mean(np.array(path) ** 2)


def running_moments(p, x):
    m, s = 0.0, 0.0
    for i in range(len(x)):
        d = x[i] * p[0] - m
        m = m + d / (i + 1)
        s = s + d * (x[i] * p[0] - m)
    return s / len(x) + m


def one_after_the_other(p, x):
    fast = slow = signal = total = 0.0
    for v in x:
        fast += p[0] * (v - fast)
        slow += p[1] * (v - slow)
        signal = signal - 0.2 * (signal - (fast - slow))
        total += (fast - slow - signal) ** 2
    return total


def rows(p, x):
    y = np.zeros((90, 4))
    for t in range(1, len(y)):
        y[t] = p[0] * y[t - 1] + np.tanh(x[t : t + 4])
    return np.sum(y**2)


def columns(p, x):
    y = np.ones((4, 90))
    for t in range(1, y.shape[1]):
        y[:, t] = p[:1] * x[t] - y[:, t - 1] / 3
    return np.sum(np.sin(y))


def several_series(p, x):
    z, total = np.reshape(x[:120], (3, 40)), 0.0
    y = np.zeros((12, 160))
    for b in range(12):
        s = 0.0
        for t in range(1, 160):
            y[b, t] = p[0] * y[b, t - 1] + x[b + t]
            s = p[1] * s + x[t] * (b + 1)
            total += 0.01 * s * s
    return total + np.sum(y**2) + np.sum(z)


AT_ONCE = [averages, variances, written, listed, backwards, backwards_in_an_array, from_the_end_of_the_array]
AT_ONCE += [running_sums, running_products, running_moments, one_after_the_other, rows, columns, several_series]
P = np.array([0.3, 0.6])


@pytest.mark.parametrize("fun", AT_ONCE)
def test_value_and_slopes(fun):
    agrees(fun, P, X)


@pytest.mark.parametrize("fun", AT_ONCE)
def test_no_loop_is_left(fun):
    assert not re.search(r"(?m)^ *for ", grad(fun, (0, 1)).source(P, X))


@pytest.mark.parametrize("fun", AT_ONCE)
def test_other_derivatives(fun):
    slope = grad(fun)
    step = 1e-6 * np.eye(2)
    want = np.stack([(slope(P + e, X) - slope(P - e, X)) / 2e-6 for e in step])
    np.testing.assert_allclose(hessian(fun)(P, X), want, rtol=1e-5, atol=1e-6 * np.abs(want).max())
    value, along = jvp(fun, (P, X), (np.ones(2), np.cos(X)))
    by_p, by_x = grad(fun, (0, 1))(P, X)
    np.testing.assert_allclose(along, np.sum(by_p) + by_x @ np.cos(X))
    np.testing.assert_allclose(value, fun(P, X))
    both = np.stack([P, P[::-1]])
    np.testing.assert_allclose(vmap(slope, in_axes=(0, None))(both, X), [slope(p, X) for p in both], atol=1e-12)


@pytest.mark.parametrize("fun", [averages, written, rows, running_products])
def test_dtypes(fun):
    p, x = P.astype(np.float32), X.astype(np.float32)
    derivative = value_and_grad(fun, (0, 1))
    for _ in range(3):
        value, (by_p, by_x) = derivative(p, x)
        assert value.dtype == fun(p, x).dtype
        assert by_p.dtype == by_x.dtype == np.float32
    np.testing.assert_allclose(by_p, grad(fun)(P, X), rtol=1e-3, atol=1e-4)


def test_numbers_that_are_no_multiples():
    def logistic(r, x):
        y = np.zeros(N)
        y[0] = x[0]
        for t in range(N - 1):
            y[t + 1] = r[0] * 4 * y[t] * (1 - y[t]) + 0.1 * y[t - 1]
        return np.sum(y**2)

    agrees(logistic, P, np.array([0.4, 0.3]))
    # what was written goes round: the array is not read
    assert "[i]" not in grad(logistic).source(P, np.array([0.4, 0.3])).split("# backward")[0]


def test_rows_of_long_ago_are_read_where_they_are():
    def seasonal(p, x):
        y = np.array(x)
        for t in range(30, len(x)):
            y[t] = p[0] * y[t - 30] + np.sin(y[t - 1])
        return np.sum(y**2)

    agrees(seasonal, P, X[:120])
    assert "[i - 30]" in grad(seasonal).source(P, X)


def test_rows_that_later_iterations_write_are_read_as_they_were():
    def mixture(p, x):
        y = np.array(x)
        for t in range(3, len(x) - 3):
            y[t] = p[0] * y[t - 3] + p[1] * y[t + 3] - 0.2 * y[t - 1]
        return np.sum(np.sin(y))

    agrees(mixture, P, X[:120])


def test_what_is_read_after_it_is_written():
    def again(p, x):
        y, total = np.zeros_like(x), 0.0
        for t in range(1, len(x)):
            y[t] = p[0] * y[t - 1] + x[t]
            total += y[t] ** 2
            y[t] *= 0.9
        return total + np.sum(y)

    agrees(again, P, X[:120])


def test_what_grows_is_not_made_of_rounding():
    """``s`` stays 1, where a difference of the last digit would grow beyond all bounds."""

    def fixed(a, x):
        s = 1.0
        for v in x:
            s = a * s + (v - a)
        return s

    derivative = value_and_grad(fixed, (0, 1))
    for a in (0.5, 0.7, 1.1, 1.3, 2.5):
        for n in (150, 300, 600):
            value, _ = derivative(a, np.ones(n))
            assert value == 1.0 or (a < 1 and value == pytest.approx(1.0, rel=1e-15))


@pytest.mark.parametrize("n", [350, 700])
def test_warnings_are_those_of_the_iterations(n):
    def discounted(c, x):
        s = 1.0
        for v in x:
            s = c * s + v
        return s

    derivative = value_and_grad(discounted)
    for c in (0.5, 0.6, 0.7):
        derivative(np.float64(c), np.ones(n))
    at_the_end = np.ones(n)
    at_the_end[-1] = np.inf
    assert derivative(np.float64(0.5), at_the_end)[0] == np.inf
    if n > 256:
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            derivative(np.float64(1e10), np.ones(n))


def test_numbers_that_numpy_divides_by_zero():
    def divided(x, c):
        s = 1.0
        for v in x:
            s = (s + v) / c
        return s

    derivative, x = value_and_grad(divided), np.abs(X)
    for c in (2.0, 3.0, np.float64(2.0), 0.0, np.float64(0.0)):
        with np.errstate(all="ignore"):
            assert derivative(x, c)[0] == pytest.approx(divided(x, c))


def quotients(a, b):
    h, out = 1.0, np.zeros(N)
    for t in range(N):
        h = h * a[t] / b[t]
        out[t] = h
    return out.sum()


def products(a, b):
    h, out = 1.0, np.zeros(N)
    for t in range(N):
        h = h * a[t] * b[t]
        out[t] = h
    return out[-1]


def sums(a, b):
    s, out = 0.0, np.zeros(N)
    for t in range(N):
        s = s + a[t] - b[t]
        out[t] = s
    return out[-1]


def distributed(a, b):
    s, out = 1.0, np.zeros(N)
    for t in range(N):
        s = (s - a[t]) * b[t]
        out[t] = s
    return out[0]


def reciprocals(a, b):
    h, out = 49.0 * a[0], np.zeros(N)
    for t in range(N):
        h = h / b[t]
        out[t] = h
    return np.floor(out).sum()


def drifts(a, b):
    s, out = 0.0, np.zeros(N)
    for t in range(N):
        s = 0.5 * s + a[t] - b[t]
        out[t] = s
    return out[-1]


def relaxes(a, b):
    s, out = 0.0, np.zeros(N)
    for t in range(N):
        s = s + 0.1 * (a[t] - b[t] * s)
        out[t] = s
    return out[-1]


def first_of(*numbers):
    return np.append(numbers, np.ones(N - len(numbers)))


LAST = np.zeros(N)
LAST[-2:] = -1e20, 1e20
EXTREMES = [
    (quotients, first_of(1e-200, 1e200, 1e-200), first_of(1.0, 1e-200)),
    (products, first_of(1e200, 1e-200), first_of(1e-200, 1e200)),
    (sums, LAST, np.append(LAST[1:], 1.0)),
    (distributed, np.full(N, 0.5), first_of(np.inf)),
    (reciprocals, np.ones(N), first_of(49.0)),
    (drifts, np.ones(N), np.ones(N)),
    (relaxes, np.ones(N), np.ones(N)),
]


@pytest.mark.parametrize(("fun", "a", "b"), EXTREMES)
def test_products_and_sums_are_made_in_order(fun, a, b):
    derivative, generic = value_and_grad(fun, (0, 1)), (1 + 0.01 * X, 1 - 0.01 * np.flip(X))
    for _ in range(3):
        value, slopes = derivative(*generic)
    expected, by = value_and_grad(fun, (0, 1), mode="dynamic")(*generic)
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(slopes, by, rtol=1e-6, atol=1e-12)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(derivative(a, b)[0], fun(a, b))


@pytest.mark.parametrize("fun", [products, sums, drifts, relaxes])
def test_steps_in_order_leave_no_loop(fun):
    assert not re.search(r"(?m)^ *for ", grad(fun, (0, 1)).source(X, X))


PARTS = ["x[t]", "p[0]", "0.4", "np.sin(x[t])", "s", "u", "y[t - 1]", "y[t - 2]"]
MADE = [
    "{c} * {own} + {part}",
    "{own} + {c} * ({part} - {own})",
    "{own} * 0.9 - {part} / 3",
    "{own} + {part} * 0.1",
    "{own} * (1 + 0.01 * x[t])",
    "0.1 * np.cos({part}) - {own} * p[1]",
    "0.3 * np.sin({own}) + {part} * 0.2",
]


@st.composite
def recurrences(draw):
    made = {"s": "s", "u": "u", "y[t]": "y[t - 1]"}
    names = draw(st.lists(st.sampled_from([*made]), min_size=1, max_size=3, unique=True))
    lines = ["y, s, u, total = np.ones(len(x)), x[1] * p[0], 0.5, 0.0", "for t in range(2, len(x)):"]
    for name in names:
        part, c = draw(st.sampled_from(PARTS)), draw(st.sampled_from(["p[0]", "0.5", "0.3", "(1 - p[1])", "x[t] * 0.1", "0.0"]))
        lines.append(f"    {name} = {draw(st.sampled_from(MADE)).format(c=c, own=made[name], part=part)}")
    lines.append(f"    total = total + np.tanh({draw(st.sampled_from([*made]))})")
    return "\n".join([*lines, "return total + np.mean(np.tanh(y)) + np.tanh(s) + np.tanh(u)"])


@given(recurrences(), st.integers(0, 2**32 - 1))
def test_random_recurrences(text, seed):
    body = "\n".join(f"    {line}" for line in text.splitlines())
    agrees_with_dynamic(program_of([f"def program(p, x):\n{body}"], {"p": (2,), "x": (320,)}, seed), scaled=True)
