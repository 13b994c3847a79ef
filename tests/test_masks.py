"""Derivatives without masks as long as nothing infinite is met: the same results, conventions and warnings, in less code."""

import warnings

import numpy as np
import pytest
from agreement import agrees, slopes
from ops_samples import OPERATIONS, some

from symgrad import compile, custom_vjp, grad, hessian, jacfwd, jacobian, jacrev, value_and_grad, without
from symgrad.ops.core import Op
from symgrad.optimize import masks
from symgrad.transform.lanes import Lanes, _union, mask_of

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, 300)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """However few the masks are."""
    monkeypatch.setattr(masks, "MORE", 0)


def tree(p, steps=40):
    up = np.exp(p[0] / 10)
    spot = p[1] * up ** np.arange(-steps, steps + 1, 2.0)
    chance, value = (1 - 1 / up) / (up - 1 / up), np.maximum(p[2] - spot, 0.0)
    for _ in range(steps):
        spot = spot[1:] / up
        value = np.maximum(p[2] - spot, 0.99 * (chance * value[1:] + (1 - chance) * value[:-1]))
    return value[0]


def logs(x):
    return np.sum(np.where(x > 0, np.log(x) * np.sqrt(x), -x))


def larger(x):
    return np.sum(np.maximum(np.log(x[:150]), np.sqrt(x[150:])) / x[:150])


def scan(x):
    y = x
    for _ in range(12):
        y = np.where(y > 1, np.sqrt(y) + 0.1, y / (1 + np.log(1 + y)))
    return np.sum(y)


CASES = [(tree, np.array([0.2, 100.0, 105.0])), (logs, X), (larger, X)]


def compiled(derivative, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            result = derivative(*args)
    assert derivative.cache_info().hits > 0
    return result


def masked(fun):
    with without("masks"):
        return grad(fun)


def is_strict(derivative, *args):
    return "runtime.raising" in derivative.source(*args, fast=True)


@pytest.mark.parametrize(("fun", "x"), CASES)
def test_without_masks_the_results_are_the_same(fun, x):
    derivative, other = grad(fun), masked(fun)
    np.testing.assert_allclose(compiled(derivative, x), compiled(other, x), rtol=1e-13)
    assert is_strict(derivative, x)
    assert not is_strict(other, x)
    value, slope = compiled(value_and_grad(fun), x)
    assert value == pytest.approx(fun(x), rel=1e-14)
    np.testing.assert_allclose(slope, derivative(x), rtol=1e-13)


@pytest.mark.parametrize("number", [float, np.float64, np.array])
def test_derivatives_by_numbers_have_no_masks_either(number):
    fun, args = lambda rate, spot, strike: tree([rate, spot, strike]), [number(n) for n in (0.2, 100.0, 105.0)]
    derivative = grad(fun, (0, 1, 2))
    with without("masks"):
        other = grad(fun, (0, 1, 2))
    for found, expected in zip(compiled(derivative, *args), compiled(other, *args), strict=True):
        assert type(found) is type(expected)
        assert found == pytest.approx(expected, rel=1e-13)
    assert "logical_or" in other.source(*args, fast=True)
    assert "logical_or" not in derivative.source(*args, fast=True)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("fun", [logs, larger, scan])
def test_what_is_not_finite_is_masked_as_ever(fun, bad):
    derivative, other = grad(fun), masked(fun)
    compiled(derivative, X), compiled(other, X)
    for place in (7, 160):
        x = X.copy()
        x[place] = bad
        with warnings.catch_warnings(record=True) as expected:
            warnings.simplefilter("always")
            slope = other(x)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            np.testing.assert_allclose(derivative(x), slope, rtol=1e-13)
        assert [str(one.message) for one in found] == [str(one.message) for one in expected]
    np.testing.assert_allclose(derivative(X), other(X), rtol=1e-13)
    assert derivative.cache_info().misses == 2


def roots(p):
    p = 1.0 * p  # of which more is done than to read its numbers
    return np.sum(np.sqrt(p[0] * X) / (p[1] + X) * np.log(p[2] * X))


def curves(p):
    p = 1.0 * p
    return np.sqrt(p[0] * X) * np.log(p[2] + p[1] * X)


@pytest.mark.parametrize(("derive", "fun"), [(hessian, roots), (jacobian, curves)])
def test_matrices_of_derivatives_have_no_masks_either(derive, fun):
    with without("masks"):
        other = derive(fun)
    derivative, p = derive(fun), np.array([0.5, 1.5, 2.0])
    np.testing.assert_allclose(compiled(derivative, p), compiled(other, p), rtol=1e-12)
    assert is_strict(derivative, p)
    assert "depends" not in derivative.source(p, fast=True)
    assert "depends" in other.source(p, fast=True)
    assert not is_strict(other, p)
    for bad in (
        np.array([0.0, 1.5, 2.0]),
        np.array([0.5, 0.0, 0.0]),
        np.array([0.5, 1.5, np.inf]),
        np.array([np.nan, 1.5, 2.0]),
    ):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(derivative(bad), other(bad), rtol=1e-12)
    assert derivative.cache_info().misses == 2


def test_what_raises_errors_again_and_again_is_given_up():
    derivative, x = grad(logs), np.r_[X, -1.0]
    compiled(derivative, np.r_[X, 1.0])
    with np.errstate(all="ignore"):
        for _ in range(compile.PATIENCE):
            assert is_strict(derivative, x)
            assert derivative(x)[-1] == -1
        assert not is_strict(derivative, x)
        assert derivative(x)[-1] == -1
    np.testing.assert_allclose(derivative(np.r_[X, 1.0]), masked(logs)(np.r_[X, 1.0]), rtol=1e-13)


def test_errors_now_and_then_are_no_reason_to_give_up():
    derivative, good, bad = grad(logs), np.r_[X, 1.0], np.r_[X, -1.0]
    compiled(derivative, good)
    for _ in range(2 * compile.PATIENCE):
        with np.errstate(all="ignore"):
            derivative(bad)
        derivative(good)
    assert is_strict(derivative, good)


def test_where_traces_meet_infinities_there_are_masks_at_once():
    derivative = grad(logs)
    compiled(derivative, np.r_[X, 0.0])
    assert not is_strict(derivative, np.r_[X, 1.0])


def test_equal_infinities_share_evenly_all_the_same():
    def fun(x):
        return np.sum(np.maximum(x[:150] * 2, x[150:]) / (1 + np.log(x[:150])))

    derivative, x = grad(fun), X.copy()
    x[3] = 1e308
    compiled(derivative, X)
    assert "heaviside" in derivative.source(X, fast=True)
    x[153] = np.inf
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(derivative(x), compiled(masked(fun), x))


def test_ties_share_evenly():
    def fun(x):
        return np.sum(np.maximum(x[:150], x[150:]) * 3 - np.minimum(x[:150], np.log(x[150:])))

    x = np.r_[X[:150], X[:150]]
    np.testing.assert_allclose(compiled(grad(fun), x), compiled(masked(fun), x), rtol=1e-13)


def test_masks_that_cost_little_stay(monkeypatch):
    monkeypatch.undo()
    one, many = grad(logs), grad(tree)
    compiled(one, X)
    compiled(many, CASES[0][1])
    assert not is_strict(one, X)
    assert is_strict(many, CASES[0][1])


def test_numbers_taken_apart_keep_their_masks():
    derivative = grad(logs)
    compiled(derivative, X[:5])
    assert not is_strict(derivative, X[:5])


def test_masks_that_change_nothing_are_no_reason():
    def fun(x):
        return np.sum(np.log(x[2] + x[3]) * x)

    derivative = grad(fun)
    compiled(derivative, X)
    assert not is_strict(derivative, X)


def test_ways_through_a_function_have_code_of_their_own(monkeypatch):
    monkeypatch.setattr(masks, "LARGEST", 0)
    monkeypatch.setattr(masks, "MOST", 0)

    def fun(x):
        y = np.where(x > 0, np.log(x), 0.0)
        return np.sum(y * x) if np.sum(x) > 4 else np.sum(y / x)

    derivative, other = grad(fun), masked(fun)
    for scale in (3.0, 0.1, 2.0, 0.2, 3.0, 0.1):
        np.testing.assert_allclose(derivative(X[:5] * scale), other(X[:5] * scale), rtol=1e-13)
    x = X[:5] * np.array([1.0, -1.0, 0.1, 0.1, 0.1])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(derivative(x), other(x), rtol=1e-13)


def strided_after_ifs(x, m):
    y, v, c, total = x.copy(), np.tanh(m), 0, 0.0
    for i in range(5):
        if m[i, 1] < 0.5:
            v[i, 0] += 0.5
            c += 1
        y[1] *= 0.7
        total += 1.0 / (1 + c)
    return np.sum(v[::2]) + np.sum(y)


def test_masks_of_no_argument_are_the_same_in_each_trace():
    """In the body of a loop they are arrays that are there, which are told apart by what is in them."""
    derivative, rng = grad(strided_after_ifs, (0, 1)), np.random.default_rng(0)
    x, m = rng.normal(size=40), rng.normal(size=(5, 2))
    for _ in range(4):
        found = derivative(x, m)
    assert derivative.cache_info().hits == 2
    for mine, theirs in zip(found, grad(strided_after_ifs, (0, 1), mode="dynamic")(x, m), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-14)


def paths(x, low=np.maximum):
    """Volatilities that are cut off at zero, as programs for finance have them."""
    v, total = x, 0.0 * x
    for i in range(12):
        up = low(v, 0.0)
        total = total + np.sqrt(up) * NOISE[i]
        v = v + 0.1 * (0.3 - up) + 0.4 * np.sqrt(up) * NOISE[i]
    return np.sum(np.where(total > 0.1, total * v, 0.0))


NOISE = RNG.normal(size=(12, 300))


def clipped(x):
    return paths(x, lambda v, low: np.clip(v, low, 4.0))


def negated(x):
    return paths(x, lambda v, low: -np.minimum(-v, low))


def ignoring(x):
    return paths(x, np.fmax)


@pytest.mark.parametrize("fun", [paths, clipped, negated, ignoring])
def test_what_was_not_chosen_is_left_there(fun):
    derivative, other = grad(fun), masked(fun)
    for _ in range(compile.PATIENCE + 4):
        x = RNG.uniform(0, 0.1, 300)
        np.testing.assert_allclose(derivative(x), other(x), rtol=1e-11, atol=1e-13)
    code = derivative.source(x, fast=True)
    assert is_strict(derivative, x)
    assert "require_finite" in code
    assert "logical_or" not in code
    assert "logical_or" in other.source(x, fast=True)
    x[:100] = 0.0  # ties, whose slope is infinite
    with np.errstate(all="ignore"):
        found, expected = derivative(x), other(x)
    assert not np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@custom_vjp
def cured(x):
    return 1.0 * x


cured.defvjp(lambda x: (cured(x), None), lambda residuals, g: (np.where(np.isnan(g), 1.0, g),))


def test_what_a_rule_cures_takes_all_masks():
    """It must not see what is no number where there is a zero with the masks."""

    def fun(x):
        v = np.where(x > 0.05, cured(np.sqrt(np.maximum(x - 0.04, 0.0) + np.maximum(x - 0.05, 0.0))), 0.3 * x)
        return paths(v)

    derivative, other = grad(fun), masked(fun)
    for _ in range(2 * compile.PATIENCE + 4):
        x = RNG.uniform(0, 0.1, 300)
        np.testing.assert_allclose(derivative(x), other(x), rtol=1e-11, atol=1e-13)
    assert not is_strict(derivative, x)


def test_a_value_may_be_infinite_where_choices_do():
    """It is the gradient alone that has to be finite."""

    def both(x):
        return paths(x), {"all": np.where(x > 2, x, np.inf), "count": 3}

    derivative = value_and_grad(both, has_aux=True)
    with without("masks"):
        other = value_and_grad(both, has_aux=True)
    for _ in range(compile.PATIENCE + 4):
        x = RNG.uniform(0, 0.1, 300)
        (_, aux), slope = derivative(x)
        assert aux["count"] == 3
        assert np.isinf(aux["all"]).all()
        np.testing.assert_allclose(slope, other(x)[1], rtol=1e-11, atol=1e-13)
    assert is_strict(derivative, x)


@pytest.mark.parametrize("inside", [False, True])
def test_what_was_chosen_before_a_loop_with_poles(inside):
    """The slopes of a loop's argument may be infinite, too."""

    def fun(y, x):
        b, s = np.maximum(y, 0), 0.0
        for _ in range(10):
            b = np.maximum(y, 0) if inside else b
            s = s + np.sum(np.sqrt(x * x * b))
            x = np.sin(x) * 0.9 + 0.1
        return s

    x, y = np.array([0.5, -0.5, 0.3, -0.2, 0.9]), np.array([0.3, 0.2, -0.4, -0.5, 1.0])
    kept = np.array([0, 1, 4])
    want = np.zeros(5)
    want[kept] = [(fun(y + h, x) - fun(y - h, x)) / 2e-6 for h in 1e-6 * np.eye(5)[kept]]
    for derivative in (grad(fun), grad(fun, mode="dynamic")):
        for _ in range(4):
            np.testing.assert_allclose(derivative(y, x), want, rtol=1e-7)


# -- data with gaps ------------------------------------------------------------------------------------------------


def terms(w, x, y):
    s = 0.0
    for v in x[:, 0]:
        t = v * w[0]
        if np.isfinite(t):
            s += t
    return s


def residuals(w, x, y):
    s = 0.0
    for i in range(len(y)):
        r = x[i] @ w - y[i]
        if np.isfinite(r):
            s += r * r
        else:
            s += 1.0
    return s


def skipped(w, x, y):
    s, n = 0.0, 0
    for row, at in zip(x, y, strict=True):
        r = np.sum(row * w) - at
        if not np.isfinite(r):
            continue
        s, n = s + abs(r) ** 1.5, n + 1
    return s / n


def filtered(w, x, y):
    s = 0.0
    for row in x:
        r = row @ w - s
        if np.isfinite(r):
            s = np.tanh(r)
    return s


def states(w, x, y):
    h = np.ones(3)
    for row in x:
        g = row * w
        if np.all(np.isfinite(g)):
            h = np.tanh(g + h)
    return np.sum(h)


def overwritten(w, x, y):
    s = 0.0
    for q in x[:, 1]:
        if w[0] > q or np.isnan(q):
            s = 0.3 * w[1]
            if np.isfinite(q):
                s = np.tanh(q * w[1])
        else:
            s = s - np.cos(q * w[2])
    return s


def chosen(w, x, y):
    r = x @ w - y
    return np.sum(np.where(np.isfinite(r), r * r, 0.0))


def picked(w, x, y):
    r = np.tanh(x @ w) - y
    return np.sum(r[~np.isnan(r)] ** 2)


def whole(w, x, y):
    h = np.tanh(x @ np.outer(w, [1.0, 2.0]))
    return np.sum(np.where(np.isnan(h).any(axis=1), 0.0, (h @ w[:2] - y) ** 2))


def among_them(w, x, y):
    z = np.where(np.isfinite(x[:, 1]), np.log1p((w[0] - x[:, 1]) ** 2) + np.exp(-((w[1] * x[:, 1]) ** 2)), 0.0)
    return np.sum(z[(np.arange(12) * 5 + len(y)) % 12] * y)


@pytest.mark.parametrize("gap", [np.nan, np.inf])
@pytest.mark.parametrize("fun", [among_them, terms, residuals, skipped, filtered, states, overwritten, chosen, picked, whole])
def test_gaps_in_data_are_left_out(fun, gap):
    """As if the rows with gaps were not there, whatever the calls before have met."""
    if gap == np.inf and fun in (overwritten, picked, whole):
        pytest.skip("of which these make something")
    w, x, y = np.array([0.7, 0.5, -0.3]), np.cos(np.arange(36.0)).reshape(12, 3), np.sin(np.arange(12.0))
    broken = x.copy()
    broken[4, 0 if fun is terms else 1] = gap
    with warnings.catch_warnings():
        if gap == np.inf:  # 0 * inf, which masks leave out, is computed
            warnings.filterwarnings("ignore", "invalid value")
        expected = {id(x): slopes(fun, (w, x, y))[0], id(broken): slopes(fun, (w, broken, y))[0]}
        for switches in ((), ("pool",)):
            with without(*switches):
                for first in (x, broken):
                    derivative = grad(fun)
                    for given in (first, first, first, broken, x, broken, broken, x):
                        np.testing.assert_allclose(derivative(w, given, y), expected[id(given)], rtol=1e-6, atol=1e-8)
        found = grad(fun, mode="dynamic")(w, broken, y)
        np.testing.assert_allclose(found, expected[id(broken)], rtol=1e-6, atol=1e-8)


def cholesky_in_place(a):
    a = a.copy()
    n = len(a)
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
    return np.sum(np.log(np.diag(a)))


def test_hundreds_of_masks_on_numbers():
    """Code has none as long as all is finite; what is not read is not asked for either way."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(9, 9))
    a = a @ a.T + 9 * np.eye(9)
    derivative = grad(cholesky_in_place)
    for _ in range(4):
        np.testing.assert_allclose(np.tril(derivative(a)), np.tril(grad(cholesky_in_place, mode="dynamic")(a)), rtol=1e-11)
    assert "logical_or" not in str(derivative.source(a, fast=True))
    a[:, 3] = 0.0  # so that what comes next divides by nothing
    with np.errstate(all="ignore"):
        expected = grad(cholesky_in_place, mode="dynamic")(a)
        np.testing.assert_array_equal(derivative(a), expected)


def largest(x):
    best = 0.0
    for i in range(len(x)):
        v = x[i] @ x[i]
        if v > best:
            best = v
    return best


def largest_of_some(x):
    best = None
    for i in range(len(x)):
        v = np.dot(x[i], x[i])
        if best is None or v > best:
            best = v
    return best


@pytest.mark.parametrize("fun", [largest, largest_of_some])
def test_products_that_an_if_in_a_loop_leaves_out(fun):
    slope, theirs, rng = grad(fun), grad(fun, mode="dynamic"), np.random.default_rng(0)
    for k in range(5):
        x = rng.normal(size=(6, 2))
        x[2, 0] = np.nan if k > 2 else 0.0
        np.testing.assert_allclose(slope(x), theirs(x), 1e-12)


def test_masks_of_masks_are_made_one_after_the_other():
    """Sums, and what elements were moved to, of masks made like that themselves, thousands of times."""
    ones, mask = np.ones(3, bool), np.array([True, False, True])
    lanes = Lanes(None, "first", mask)
    for i in range(3000):
        moved = Lanes(None, i, lambda inner=lanes: np.roll(mask_of(inner, None, None), 1), parts=(lanes,))
        within = Lanes(moved, (i, "if"), ones)
        lanes = _union(within, Lanes(None, (i, "other"), ~ones), None)
    np.testing.assert_array_equal(lanes.test, np.roll(mask, 3000))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.abs(np.fft.rfft(np.log(x))[1]) ** 2,
        lambda x: np.abs(np.fft.fft(np.log(x))[3]) ** 2,
        lambda x: np.sum(np.abs(np.fft.rfft(np.sqrt(x))[1:4:2]) ** 2),
        lambda x: np.imag(np.fft.fft(np.sqrt(x)))[1],
        lambda x: np.sum(np.abs(np.where(np.arange(len(x) // 2 + 1) < 2, np.fft.rfft(np.sqrt(x)), 0)) ** 2),
        lambda x: np.sum(np.log(9 + np.fft.irfft(1j * np.sqrt(x))) ** 2),
        lambda x: np.sum(np.log(50 + np.fft.hfft(1j * np.sqrt(x)))[1:4] ** 2),
    ],
)
@pytest.mark.parametrize("n", [8, 12])
def test_transforms_mix_imaginary_parts_too(fun, n):
    """Which elements a spectrum's are made of hangs on both of its parts: n / 4 has real parts alone at some frequencies."""
    x = np.random.default_rng(n).uniform(0.5, 2.0, n)
    agrees(fun, x)
    central = [[(grad(fun)(x + 1e-6 * e) - grad(fun)(x - 1e-6 * e)) / 2e-6 for e in np.eye(n)], hessian(fun)(x)]
    np.testing.assert_allclose(*central, atol=2e-7)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.fft.irfft(x * (1 + 0.5j)) / (3 - x[0]),
        lambda x: np.sqrt(3 + np.fft.irfft(1j * x)),
        lambda x: np.abs(np.fft.rfft(np.sqrt(x))),
    ],
)
def test_jacobians_through_transforms_of_imaginary_numbers(fun):
    x = np.random.default_rng(1).uniform(0.5, 2.0, 5)
    expected = np.stack([(fun(x + 1e-6 * e) - fun(x - 1e-6 * e)) / 2e-6 for e in np.eye(5)], axis=-1)
    for one in (jacfwd, jacrev, jacobian):
        for mode in ("auto", "dynamic"):
            derivative = one(fun, mode=mode)
            for _ in range(3):
                np.testing.assert_allclose(derivative(x), expected, atol=1e-8)


MIXED = [
    case
    for op in OPERATIONS
    if isinstance(op, Op) and "mixed" in [op.lanes_of(i) for i in range(len(op.rules) or 1)]
    for dtype in (np.float64, np.complex128)
    if dtype is np.float64 or op.complex
    for case in some(op, dtype)
]


@pytest.mark.parametrize("case", MIXED, ids=repr)
def test_elements_that_are_mixed_are_so_by_either_part(case):
    """A pole behind which only some elements of a result are looked at has the derivatives that it has without masks."""
    places = tuple(range(len(case.primals)))
    for number, y in enumerate(case.outputs):
        for place in [*np.ndindex(np.shape(y))][::-1][:6]:

            def one(*primals, number=number, place=place):
                element = case(*[np.log(np.exp(x)) for x in primals])[number][place]
                return np.real((1 - 2j) * element)

            found, expected = [grad(one, places, double_where=on)(*case.primals) for on in (True, False)]
            for slope, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)
