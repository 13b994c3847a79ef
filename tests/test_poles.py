"""Random chains of functions with poles, movements, masks, sums and products, at their poles.

The reference is forward mode with a dict of derivatives for each number: what is not in it is known to be zero, and stays so.
"""

import operator
import warnings
from functools import reduce

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symgrad import checkpoint, grad, hessian, jacfwd, jacrev, jvp, value_and_grad
from symgrad.scipy.linalg import solve_banded

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


class Number:
    """A number, and its derivatives by those variables that it depends on."""

    def __init__(self, value, slopes=()):
        self.value, self.slopes = np.float64(value), dict(slopes)

    def __add__(self, other):
        slopes = dict(self.slopes)
        for i, slope in getattr(other, "slopes", {}).items():
            slopes[i] = slopes[i] + slope if i in slopes else slope
        return Number(self.value + getattr(other, "value", other), slopes)

    def __mul__(self, factor):
        a, b = self.value, getattr(factor, "value", factor)
        left = Number(0, {i: slope * b for i, slope in self.slopes.items()})
        right = Number(0, {i: slope * a for i, slope in getattr(factor, "slopes", {}).items()})
        return Number(a * b, (left + right).slopes)

    __radd__, __rmul__ = __add__, __mul__

    def __gt__(self, other):
        return self.value > other


STEEP = {
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "log": (np.log, lambda x: 1 / x),
    "reciprocal": (np.reciprocal, lambda x: -1 / (x * x)),
    "cbrt": (np.cbrt, lambda x: 1 / (3 * np.cbrt(x) ** 2)),
    "square": (np.square, lambda x: 2 * x),
    "sine": (np.sin, np.cos),
}
MOVES = [
    lambda y: y[::-1],
    lambda y: np.roll(y, 1),
    lambda y: y.T,
    lambda y: np.concatenate([y, y[:1]]),
    lambda y: np.stack([y, y * 2.0]) if y.ndim < 2 else y.reshape(-1),
    lambda y: y[np.arange(y.shape[0]) * 2 % y.shape[0]],
    lambda y: y[1:] if y.shape[0] > 2 else y,
    lambda y: np.repeat(y, 2, axis=0) if y.size < 9 else y,
    lambda y: y.reshape(-1)[:, None] * np.array([1.0, 2.0]) if y.size < 9 else y,
    lambda y: np.sum(y, axis=0) if y.ndim > 1 else y,
    lambda y: y * y[::-1],
    lambda y: y + np.roll(y, 1, axis=0),
    lambda y: y * y[:1],
]
PRODUCTS = [
    lambda y, w: y @ w,
    lambda y, w: np.einsum("...i,ij->...j", y, w),
    lambda y, w: np.dot(y, w),
    lambda y, w: np.tensordot(y, w, 1),
]
STEPS = st.one_of(
    st.tuples(st.just("steep"), st.sampled_from(sorted(STEEP))),
    st.tuples(st.just("move"), st.sampled_from(MOVES)),
    st.tuples(st.just("positive"), st.none()),
    st.tuples(st.just("mask"), st.integers(0, 99)),
    st.tuples(st.just("product"), st.sampled_from(PRODUCTS)),
)


def run(steps, y, exact):
    """The chain on an array; ``exact``: one of ``Number``s."""
    for kind, what in steps:
        if kind == "steep":
            fun, slope = STEEP[what]
            each = lambda n, fun=fun, slope=slope: Number(fun(n.value), (n * slope(n.value)).slopes)
            y = np.vectorize(each, otypes=[object])(y) if exact else fun(y)
        elif kind == "move":
            y = what(y)
        elif kind == "positive":
            y = np.where(y > 0, y, 1.0)
        elif kind == "mask":
            y = np.where(np.random.default_rng(what).random(y.shape) < 0.6, y, 2.0)
        else:
            w = np.arange(1.0, 2 * y.shape[-1] + 1).reshape(-1, 2)
            y = reduce(operator.add, [y[..., i, None] * row for i, row in enumerate(w)]) if exact else what(y, w)
        y = np.vectorize(lambda n: n if isinstance(n, Number) else Number(n), otypes=[object])(y) if exact else y
    return y


@given(
    st.lists(STEPS, min_size=2, max_size=6), st.lists(st.sampled_from([0.0, 0.0, 1.0, 0.25, -1.0, 4.0]), min_size=2, max_size=4)
)
@example([("steep", "log"), ("product", PRODUCTS[0]), ("mask", 0), ("move", MOVES[10])], [0.0, 1.0])
def test_derivatives_are_finite_where_they_are(steps, values):
    x = np.array(values)
    exact = run(steps, np.array([Number(v, {i: np.float64(1)}) for i, v in enumerate(x)]), True)
    slopes = np.array([[number.slopes.get(i, 0.0) for i in range(x.size)] for number in exact.flat])
    fun = lambda x: run(steps, x, False)
    np.testing.assert_allclose(fun(x).ravel(), [number.value for number in exact.flat], 1e-9, 1e-12)
    finite = np.isfinite(slopes)
    for derivative in (jacrev(fun), jacfwd(fun), jacrev(fun, mode="dynamic"), jacfwd(fun, mode="dynamic")):
        for _ in range(3):
            found = derivative(x).reshape(slopes.shape)
            np.testing.assert_allclose(found[finite], slopes[finite], 1e-9, 1e-9)
            assert not np.isfinite(found[~finite]).any()
    kept = finite.all(axis=1).reshape(exact.shape)
    for mode in ("auto", "dynamic"):
        derivative = grad(lambda x: np.sum(np.where(kept, fun(x), 0.0)), mode=mode)
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), slopes[kept.ravel()].sum(axis=0), 1e-9, 1e-9)


NORMS = {
    "np.sqrt(np.var(x, axis=0) + 1e-5)": True,
    "np.sqrt(np.mean(x**2) + 1e-8)": True,
    "(np.var(x) + 1e-6) ** 0.5": True,
    "(0.1 + np.abs(x))": True,
    "(2.0 + np.square(x)) ** 2": True,
    "np.maximum(np.std(x), 1e-3)": True,
    "np.sqrt(np.var(x, axis=0))": False,
    "np.sqrt(x + 1e-5)": False,
    "(np.var(x) + 1e-30)": False,
    "(np.var(x) - 1e-5)": False,
    "np.sqrt(np.sum(x[:0] ** 2) + 0.0)": False,
}


@pytest.mark.parametrize("text", NORMS)
def test_what_is_away_from_zero_needs_no_masks(text):
    fun = eval(f"lambda x: np.sum(np.maximum(x / {text}, 0.0) * x)", {"np": np})
    x = np.sin(np.arange(6.0)).reshape(3, 2) ** 2
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    with np.errstate(all="ignore"):
        for point in (x, x, x, np.zeros((3, 2)), np.ones((3, 2))):
            np.testing.assert_allclose(derivative(point), dynamic(point), rtol=1e-12)
    masked = any(test in derivative.source(x) for test in ("greater_equal", ">="))
    assert masked != NORMS[text]


def test_masks_smaller_than_what_was_chosen():
    """Of a number that a mask chooses, broadcast to what several are made of."""

    def chosen(x):
        stacked = np.stack([x, x])
        return np.sum(np.where(x > 0.1, (x - 0.1) ** 0.7 * stacked, np.sin(stacked)))

    for derivative in (grad(chosen), grad(chosen, mode="dynamic")):
        for _ in range(3):
            assert derivative(0.1) == pytest.approx(2 * np.cos(0.1), rel=1e-12)
            assert derivative(0.4) == pytest.approx(2 * (0.3**0.7 + 0.4 * 0.7 * 0.3**-0.3), rel=1e-12)


def test_one_array_in_several_places_of_a_product():
    """Each place has a mask of its own: what meets nothing but zeros in one place matters in another."""

    def largest(weights, x):
        inverse = 1.0 / x
        return np.max(np.einsum("jk,ij,k->i", inverse, inverse, weights))

    x = np.array([[1.0, 2.0], [4.0, 5.0]])
    for derivative in (grad(largest), grad(largest, mode="dynamic")):
        for _ in range(3):
            np.testing.assert_allclose(derivative(np.array([1.0, 2.0]), x), ((1.0 / x) @ (1.0 / x))[0], rtol=1e-12)


def test_rows_picked_from_what_takes_signs():
    """By signs nothing is differentiated; what they are taken from is no part of what is picked."""

    def picked(x, signs):
        signed = np.copysign(np.sqrt(x), signs - 0.5)
        return np.sum(signed[np.argsort(signs)[:2]])

    x, signs = np.array([1.0, 4.0, 9.0]), np.array([0.3, 0.9, 0.1])
    for derivative in (grad(picked, (0, 1)), grad(picked, (0, 1), mode="dynamic")):
        for _ in range(3):
            by_x, by_signs = derivative(x, signs)
            np.testing.assert_allclose(by_x, [-0.5, 0.0, -1 / 6], rtol=1e-12)
            np.testing.assert_array_equal(by_signs, np.zeros(3))


def test_many_choices_from_what_has_poles():
    """Of hundreds of elements, in a loop that is no two times the same."""

    def total(x):
        logs, found = np.log(x), 0.0
        for i in range(400):
            found = np.maximum(found, logs[i]) if i * i % 7 % 3 else found + logs[i] * logs[i - 1]
        return found

    x = np.sin(np.arange(400.0)) + 2
    expected = grad(total, mode="dynamic")(x)
    derivative = grad(total)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "fun",
    [
        lambda a, b: np.dot(np.hypot(a[0], b), np.hypot(a[0], b)),
        lambda a, b: np.vdot(np.hypot(b, a[1]), 3.0 * np.hypot(b, a[1])),
        lambda a, b: np.tensordot(np.hypot(np.outer(a, b), b), np.hypot(np.outer(a, b), b)),
        lambda a, b: np.vdot(np.std(np.outer(a, b), axis=1), np.std(np.outer(a, b), axis=1)),
        lambda a, b: np.vdot(np.abs(a[2]) * b, np.abs(a[2]) * b),
    ],
)
def test_multiples_of_results_of_other_shapes(fun):
    """A cotangent that is twice the result is no smaller than the result."""
    a, b = np.array([0.5, -1.5, 2.0]), np.array([1.0, 0.3, -0.7, 2.0])
    step = 1e-6 * np.eye(7)
    for derivative in (grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")):
        for _ in range(3):
            found = np.concatenate(derivative(a, b))
            expected = [(fun(a + s[:3], b + s[3:]) - fun(a - s[:3], b - s[3:])) / 2e-6 for s in step]
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_division_of_a_numpy_number_by_a_literal_zero():
    """The derivative's own numbers, ``1 / 0.0`` here, raise nothing where the function's do not."""

    def f(x):
        s, t = x[0] + np.exp(-abs(x[1])), 0.0
        try:
            u = s / t
        except ZeroDivisionError:
            u = 0.1
        return x[0] * x[1] - 0.3 * u

    x = np.array([0.5, 2.0])
    expected, slope = value_and_grad(f, mode="dynamic")(x)
    assert expected == f(x) == -np.inf
    derivative = value_and_grad(f)
    for _ in range(3):
        value, found = derivative(x)
        assert value == expected
        np.testing.assert_array_equal(found, slope)


def element_of_a_table(x):
    """Of a table that a loop fills to its end, with ``if``s: what nobody reads stays out, poles and all."""
    v = np.zeros(40)
    v[0] = 1.0
    for i in range(1, 40):
        if x[i] > 0.5:
            v[i] = v[i - 1] * np.sqrt(x[i])
        else:
            v[i] = v[i - 1] * 0.5 * np.sqrt(x[i])
    return v[3]


def roots_under_an_if(x):
    """With poles where they are chosen, too: an infinite slope, and zero times that."""
    s = 0.1
    for i in range(40):
        s = s + np.sqrt(x[i]) * x[0] if x[i] > 0.6 or i % 7 == 3 else s * 0.9 + 0.0 * np.sqrt(x[39])
    return s


@pytest.mark.parametrize("fun", [element_of_a_table, roots_under_an_if])
def test_masks_in_loops_at_poles_and_elsewhere(fun):
    """Loops run without masks until one is missed, then with them; and are right in either case, whatever came before."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for round, poles in enumerate([(), (30, 31), (), (), (31, 39), (31, 39), (10, 17), (10, 17), (), (24,), ()]):
        x = np.arange(40) / 40 + 0.1 + 0.001 * round
        x[list(poles)] = 0.0
        value, slopes = derivative(x)
        expected, theirs = dynamic(x)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slopes, theirs, rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().hits


def hidden_by_a_choice(x):
    q, v, n = 0.5, 0.5 * x, len(x)
    for k in range(30):
        if x[n - 1 - k] > 0.5:
            v[k] = np.where(q * q > 0.0, np.hypot(q * q, v[k - 1] * v[k]), 0.0)
        else:
            s = np.sqrt(max(x[k * 2 % n] - q, 0.0)) if x[k * 2 % n] - q > 0.0 else x[(k + 5) % n]
            v[0] = v[0] + 0.1 * s
    return np.sum(v**2)


def ended_early(x):
    s = q = 0.0
    u, j = np.zeros(20), 0
    while j < 24:
        j += 1
        if x[(3 * j) % 20] > 0.8:
            break
        for i, _ in enumerate(x[:6]):
            s = max(s, np.cos(1.0) + x[19 - i] + x[2])
        u[(j + 3) % 20] = np.where(q > 0.0, np.hypot(x[j % 20], 1.0), u[j * 2 % 20] + s)
    for k in range(24):
        u[(k + 2) % 20] = np.arctan(np.maximum(u[(k + 3) % 20], 0.0) + 0.1 * u[k % 20])
    return np.sum(u)


@pytest.mark.long
@pytest.mark.parametrize(("fun", "n"), [(hidden_by_a_choice, 50), (ended_early, 20)])
def test_second_derivatives_of_loops_that_mix_numbers(fun, n):
    derivative, dynamic = hessian(fun), hessian(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.normal(size=n)
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-8, atol=1e-8)


def test_infinite_results_of_loops_are_compared_in_silence():
    def f(x):
        t = np.ones((30, 5))
        least = x[3]
        for k in range(40):  # noqa: B007
            for i, v in enumerate(x[:6]):  # noqa: B007
                t[i, 1] = 1.0 / np.maximum(least, 0.0)
        return np.sum(t)

    derivative = value_and_grad(f)
    for k in range(3):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert derivative(np.full(40, -1.0 - k))[0] == np.inf
        assert not [one for one in told if "atol" in str(one.message)]


@pytest.mark.parametrize("exponent", [1.5, 2.5, 0.5, -0.5, 3])
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_broken_powers_of_negative_numbers_that_nobody_reads(exponent, mode):
    def f(x):
        u = np.zeros(4)
        u[0] = x[1] ** exponent
        u[0] = x[0]
        return np.sum(u)

    derivative = value_and_grad(f, mode=mode)
    for sign in (1.0, -1.0, 1.0, -1.0):
        np.testing.assert_array_equal(derivative(np.full(3, 0.5 * sign))[1], [1.0, 0.0, 0.0])


def read_of_a_table(x):
    table = np.zeros(len(x))
    table[0] = 1.0
    for i in range(1, len(x)):
        table[i] = table[i - 1] * np.sqrt(x[i])
    return table[3]


def read_of_a_list(x):
    found = [1.0]
    for i in range(1, len(x)):
        found.append(found[-1] * np.sqrt(x[i]))
    return np.array(found)[3]


def read_of_rows(x):
    rows = np.zeros((len(x), 3))
    for i in range(1, len(x)):
        rows[i] = 0.5 * rows[i - 1] + np.sqrt(x[i]) * np.arange(3.0)
    return np.sum(rows[4])


@pytest.mark.parametrize("n", [12, 40, 130])
@pytest.mark.parametrize("fun", [read_of_a_table, read_of_a_list, read_of_rows])
def test_what_loops_compute_and_nobody_reads(fun, n):
    """... takes no part, at poles either: the loop goes on with what is finite."""
    compiled, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for turn in range(6):
        x = np.arange(n) / n + 0.1
        if turn % 2:
            x[n - 4 : n - 1] = 0.0
        (value, slope), (want, slopes) = compiled(x), dynamic(x)
        np.testing.assert_allclose(value, want)
        np.testing.assert_allclose(slope, slopes, rtol=1e-9, atol=1e-12)
    assert compiled.cache_info().hits


def not_entered(x):
    """What has an infinite slope is read by a loop that may run no iteration."""
    s, root = x[0], np.sqrt(x[1])
    while s > 1:
        s = 0.5 * s + 0.1 * root
    return s


def directed_while_far(x):
    direction, s = x[1:] / np.linalg.norm(x[1:]), x[0]
    while s > 1:
        s = 0.5 * s + 0.1 * np.sum(direction)
    return s + np.sum(x)


def not_entered_within(x):
    total = 0.0
    for i in range(len(x) - 1):
        u, root = x[i], np.sqrt(x[i + 1])
        while u > 1:
            u = 0.5 * u + 0.1 * root
        total = np.sin(total) + u
    return total


def read_from_outside_within(x):
    total, root = 0.0, np.sqrt(x[1])
    for i in range(len(x)):
        u = 0.9 * x[i]
        while u > 1:
            u = 0.5 * u + 0.1 * root
        total = np.sin(total) + u
    return total


@checkpoint
def halved(s, root):
    while s > 1:
        s = 0.5 * s + 0.1 * root
    return np.sin(s)


def not_entered_and_computed_again(x):
    return halved(x[0], np.sqrt(x[1]))


NOT_ENTERED = [not_entered, directed_while_far, not_entered_within, read_from_outside_within, not_entered_and_computed_again]


@pytest.mark.parametrize("fun", NOT_ENTERED)
def test_what_a_loop_reads_that_runs_no_iteration_takes_no_part(fun):
    compiled, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for turn in range(8):
        x = np.array([0.9, 0.0, 0.0, 0.0]) if turn % 4 == 3 else np.array([30.0, 2.0, 0.5, 3.0]) / (1 + turn)
        value, slope = compiled(x)
        assert value == pytest.approx(fun(x), rel=1e-14)
        assert np.all(np.isfinite(slope))
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-12)
    assert compiled.cache_info().hits


def beside_a_loop(x):
    t = 1.0
    for k in range(len(x)):
        t = np.sqrt(t * x[k])
    return np.array([x[0] * x[1], t, x[2]])


def beside_a_loop_of_rows(x):
    t = np.ones(2)
    for k in range(len(x)):
        t = np.sqrt(t * x[k])
    return np.concatenate([x[:2] * x[1], t * x[0]])


@pytest.mark.parametrize("fun", [beside_a_loop, beside_a_loop_of_rows])
def test_rows_of_jacobians_that_a_loop_takes_no_part_in(fun):
    compiled, dynamic = jacrev(fun), jacrev(fun, mode="dynamic")
    for turn in range(6):
        x = np.arange(30) / 30 + 0.1
        if turn % 2:
            x[5] = 0.0
        found, want = compiled(x), dynamic(x)
        for row in (0, 2) if len(found) == 3 else (0, 1):
            assert np.all(np.isfinite(want[row]))
            np.testing.assert_allclose(found[row], want[row], rtol=1e-9, atol=1e-12)
        if turn % 2 == 0:
            np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)
    assert compiled.cache_info().hits


@pytest.mark.parametrize(
    "text",
    [
        *(
            "np.real(np.sqrt(z))",
            "np.imag(3 * np.sqrt(z) / 2) + np.abs(z)",
            "np.real(np.sqrt(z) / 3)",
            "np.real(np.sqrt(2 * z))",
        ),
        *("np.real(np.sqrt(z)) + np.real(3 * np.sqrt(z))", "np.real(np.sqrt(z) + np.log(2 * z))", "-np.real(1j * np.sqrt(z))"),
    ],
)
def test_complex_poles_stay_infinite(text):
    """A factor that is applied after a division by zero makes NaN of both parts, and a warning."""
    fun = eval(f"lambda z: np.mean({text})", {"np": np})
    derivative, z = grad(fun), np.array([0j, 1 + 1j, -1 + 0j])
    with pytest.warns(RuntimeWarning) as heard:
        expected = grad(fun, mode="dynamic")(z)
    known = {str(one.message) for one in heard}
    for _ in range(3):
        with pytest.warns(RuntimeWarning) as heard:
            np.testing.assert_allclose(derivative(z), expected, rtol=1e-12)
        assert {str(one.message) for one in heard} <= known


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fun", [np.sqrt, np.log, np.log2, np.log10, np.log1p], ids=lambda fun: fun.__name__)
def test_slopes_of_complex_roots_and_logarithms_vanish_at_infinity(fun):
    """And are infinite at the pole: a factor that is applied to what is infinite makes NaN."""
    z = np.array([complex(np.inf, 0.0), complex(np.inf, 1.0), -1.0 if fun is np.log1p else 0.0])
    for mode in ("auto", "dynamic"):
        derivative = grad(lambda z: np.sum(np.real(fun(z))), mode=mode)
        for point in (np.full(3, 1 + 1j), np.full(3, 2 + 1j), z, z):
            slope = derivative(point)
        np.testing.assert_array_equal(slope[:2], 0, err_msg=mode)
        assert np.isinf(slope[2]), mode


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_python_numbers_at_poles_in_the_derivative_of_a_loop():
    """The function's own numbers are NumPy's there, and raise nothing; those of the way back begin as Python's."""
    scales = [0.5, 1.5, 0.0]

    def fun(x, k):
        s = x[0]
        for _ in x:
            s = np.tanh(s) / scales[k]
        return s

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    x = np.array([0.3, 0.7, 0.2, 0.1, 0.5, 0.6])
    for k in (2, 0, 2, 1, 2, 0):
        for found, expected in zip(derivative(x, k), dynamic(x, k), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def by_mask(x):
    y = x.copy()
    y[y < 0] = 0
    return np.sum(np.sqrt(y) * x)


def by_place(x):
    y = x**2
    y[0] = 0.0
    y[[1, 3]] = 0.0
    return np.sum(np.sqrt(y) + np.sqrt(y[::-1]))


def turned(x):
    y = np.where(x > 0, x, 0.0)
    return np.sum(np.sqrt(y[::-1]))


@pytest.mark.parametrize("fun", [by_mask, by_place, turned])
def test_what_is_overwritten_has_no_share_in_a_pole_forward(fun):
    x, t = np.array([-1.0, 4.0, 2.0, 0.5]), np.array([1.0, 2.0, -1.0, 3.0])
    slope = grad(fun)(x)
    assert np.all(np.isfinite(slope))
    for _ in range(4):
        _, change = jvp(fun, (x,), (t,))
        assert change == pytest.approx(slope @ t, rel=1e-12)


def of_elements(p, labels):
    q, s = np.log(p), 0.0
    for i in range(len(labels)):
        s -= q[i, labels[i]] * (1 + 0.01 * s)
    return s


def of_elements_in_two_loops(p, labels):
    q, s = np.sqrt(p), 0.5
    for i in range(len(labels)):
        for _ in range(2):
            s = np.sin(s + q[i, labels[i]])
    return s


def of_rows(p, labels):
    q, s = np.log(p[:, 1:].T), np.zeros(3)
    for i in range(8):
        s = np.tanh(s + q[i % 2, labels])
    return s[0] * s[1]


@pytest.mark.parametrize("fun", [of_elements, of_elements_in_two_loops, of_rows])
@pytest.mark.parametrize("derive", [grad, jacrev])
def test_elements_that_loops_do_not_read_take_no_part(fun, derive):
    p, labels = np.full((6, 3), 0.5), np.array([0, 2, 4]) if fun is of_rows else np.arange(6) % 3
    p[(slice(1, None, 2),) if fun is of_rows else (np.arange(6), (labels + 1) % 3)] = 0.0
    derivative, expected = derive(fun), derive(fun, mode="dynamic")(p, labels)
    assert np.isfinite(expected).all()
    for _ in range(3):
        np.testing.assert_allclose(derivative(p, labels), expected, atol=1e-14)


def american_put(volatility, rate, strike, expiry, steps):
    """By Crank and Nicolson, in steps that hand on a row of which each picks parts."""
    payoff = np.maximum(strike - strike * np.exp(np.linspace(-2, 2, 21)), 0.0)
    a, b, dt = 12.5 * volatility**2, 2.5 * (rate - 0.5 * volatility**2), expiry / steps
    low, middle, high = (a - b) * dt / 2, (-2 * a - rate) * dt / 2, (a + b) * dt / 2
    system, value = np.zeros((3, 19)), payoff
    system[0, 1:], system[1], system[2, :-1] = -high, 1 - middle, -low
    for _ in range(steps):
        right = value[1:-1] + low * value[:-2] + middle * value[1:-1] + high * value[2:]
        value = np.concatenate(([strike], np.maximum(solve_banded((1, 1), system, right), payoff[1:-1]), [0.0]))
    return value[10]


def test_what_is_picked_of_a_row_that_an_iteration_is_handed():
    derivative, expected = grad(american_put), grad(american_put, mode="dynamic")
    for steps in (8, 8, 12, 8):
        np.testing.assert_allclose(derivative(0.2, 0.05, 9.0, 1.0, steps), expected(0.2, 0.05, 9.0, 1.0, steps), rtol=1e-10)
    assert derivative.cache_info().hits
