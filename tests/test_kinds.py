"""Kinds of numbers in combination: a Python float, which takes on single precision beside it, NumPy's numbers, 0-d arrays.

Whatever they go through, values are NumPy's, derivatives are of the kind of their arguments, compiled as traced.
"""

import ast
import linecache
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from agreement import agrees
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from symgrad import export, grad, stop_gradient, value_and_grad, vjp
from symgrad.emit import build
from symgrad.errors import LeavesNumPy

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

KINDS = {
    "a Python float": float,
    "float32": np.float32,
    "float64": np.float64,
    "0-d, single": lambda x: np.array(x, np.float32),
    "0-d": np.array,
    "one, single": lambda x: np.array([x], np.float32),
    "one": lambda x: np.array([x]),
    "some, single": lambda x: np.array([x, 0.5 - x, 0.25 * x], np.float32),
    "some": lambda x: np.array([x, 0.5 - x, 0.25 * x]),
    "rows, single": lambda x: np.array([[x, 0.5, 1.0], [0.1, -x, 0.3]], np.float32),
}
EXPRESSIONS = (
    """
np.sin({a})|-{a}|{a}**2|{a}*2|2.5*{a}|{a}/3|{a}+np.float32(0.5)|{a}*np.float64(1.5)|{a}-np.int64(2)|np.abs({a})|np.square({a})
np.expand_dims({a},0)|np.reshape({a},(-1,))|np.squeeze({a})|np.ravel({a})|np.atleast_1d({a})|np.atleast_2d({a})|np.asarray({a})
np.array({a})|np.copy({a})|np.real({a})|np.transpose({a})|np.repeat({a},2)|np.tile({a},2)|np.roll({a},1)|np.sort(np.ravel({a}))
np.broadcast_to({a},(2,)+np.shape({a}))|np.full(2,np.sum({a}))|np.ones_like({a})*{b}|np.clip({a},-1,1)|np.nan_to_num({a})
np.sum({a})|np.max({a})|np.mean({a})|np.prod({a})|np.cumsum({a})|np.var({a})|np.std({a})|np.median({a})|np.average({a})|np.ptp({a})
np.linalg.norm(np.ravel({a}))|np.trapezoid(np.ravel({a}))|np.diff(np.ravel({a}),append=0)|np.array([np.sum({a}),1.0])
{a}+{b}|{a}-{b}|{a}*{b}|{a}/({b}*{b}+1)|np.where({a}>0,{a},{b})|np.maximum({a},{b})|np.fmax({a},{b})|np.hypot({a},{b}+2)
np.arctan2({a},{b}+2)|np.logaddexp({a},{b})|np.power(np.abs({a})+1,0.5)*{b}|np.copysign({a},{b})|np.select([{a}>0],[{a}],np.sum({b}))
np.outer({a},{b})|np.multiply.outer(np.sum({a}),{b})|np.subtract.outer(np.ravel({a}),np.sum({b}))|np.dot(np.sum({a}),{b})
np.stack([np.sum({a}),np.sum({b})])|np.concatenate([np.ravel({a}),np.ravel({b})])|np.append({a},{b})|np.array([np.sum({a}),np.sum({b})])
np.interp(np.ravel({a}),[0.0,1.0],[0.0,2.0])*np.sum({b})|np.astype(np.asarray({a}),np.float32)
""".strip()
    .replace("\n", "|")
    .split("|")
)


@st.composite
def functions(draw):
    """The source of a function of up to three numbers, and what they are."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    known = list("xyz"[: len(kinds)])
    args = [KINDS[kind](draw(st.integers(-16, 16)) / 8 + 0.03) for kind in kinds]
    lines = []
    for number in range(draw(st.integers(1, 5))):
        expression = draw(st.sampled_from(EXPRESSIONS))
        a, b = draw(st.sampled_from(known[-4:])), draw(st.sampled_from(known))
        lines.append(f"    v{number} = {expression.format(a=a, b=b)}")
        known.append(f"v{number}")
    inputs = ", ".join("xyz"[: len(kinds)])
    return f"def fun({inputs}):\n" + "\n".join(lines) + f"\n    return np.sum({known[-1]}) + np.sum({known[-2]})\n", args


def made(source):
    """The function, as if it stood in a file."""
    file = f"<kinds {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace = {"np": np}
    exec(compile(source, file, "exec"), namespace)
    return namespace["fun"]


def kind_of(x):
    return type(x), getattr(x, "dtype", None), np.shape(x)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(functions())
def test_kinds_of_numbers_in_combination(case):
    source, args = case
    fun = made(source)
    try:
        value = fun(*args)
    except (ValueError, IndexError):
        assume(False)  # shapes that do not fit
    assume(np.isfinite(value))
    places = tuple(range(len(args)))
    expected = value_and_grad(fun, places, mode="dynamic")(*args)
    assert (kind_of(expected[0]), expected[0]) == (kind_of(value), value), source
    derivative = value_and_grad(fun, places)
    narrow = any(np.result_type(x) == np.float32 for x in args) or "float32" in source
    close = {"rtol": 1e-5, "atol": 1e-5 * (1 + abs(value))} if narrow else {"rtol": 1e-11, "atol": 1e-11 * (1 + abs(value))}
    for _ in range(3):
        found, slopes = derivative(*args)
        assert kind_of(found) == kind_of(value), source
        np.testing.assert_allclose(found, value, **close)
        for slope, wanted, x in zip(slopes, expected[1], args, strict=True):
            assert kind_of(slope) == kind_of(wanted) == kind_of(x), source
            np.testing.assert_allclose(slope, wanted, **close)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.flatnonzero(x > 0).size * x,
        lambda x: np.argwhere(x > 0).size + x,
        lambda x: np.sum(np.compress([True], x, axis=0)) * x,
        lambda x: np.sum(np.cov(np.zeros((0, 3)), np.full(3, x))) + x,
    ],
)
def test_numbers_that_stand_for_arrays(fun):
    for x in (0.5, np.float64(0.5), np.array(0.5)):
        derivative = value_and_grad(fun)
        for _ in range(3):
            value, slope = derivative(x)
            np.testing.assert_allclose((value, slope), (fun(x), (fun(x + 1e-6) - fun(x - 1e-6)) / 2e-6), rtol=1e-6)


def test_views_of_numbers_that_fold_are_numbers():
    """NumPy makes an array without axes of ``np.reshape(2.0, ())``, where ``2.0`` stands for a number of its own."""
    x, y, z = np.array(0.03), np.float64(0.03), np.array(0.03, np.float32)
    derivative = grad(lambda x, y, z: np.sum(np.ones_like(x) * np.squeeze(y)) + np.sum(np.squeeze(y)), (0, 1, 2))
    for _ in range(4):
        assert [type(slope) for slope in derivative(x, y, z)] == [np.ndarray, np.float64, np.ndarray]


@pytest.mark.parametrize("quantile", [np.quantile, np.nanquantile])
@pytest.mark.parametrize("q", [0.5, np.float64(0.5), np.array(0.5), [0.5]])
def test_weighted_quantiles_are_arrays(quantile, q):
    """NumPy's are, even of all numbers; without weights they are numbers."""
    x = np.array([1.0, 3.0, 2.0])
    fun = lambda x: quantile(x, q, weights=np.array([1.0, 1.0, 2.0]), method="inverted_cdf")
    for _ in range(3):
        value, pullback = vjp(fun, x)
        assert kind_of(value) == kind_of(fun(x)) == (np.ndarray, float, np.shape(q))
        np.testing.assert_array_equal(pullback(value)[0], [0, 0, 2])


def begins_as_an_array(x):
    z, total = np.array(0.5), 0.0
    for i in range(4):
        total = total + (x[1] if isinstance(z, np.ndarray) else x[2])
        z = z * x[i]
    return total + z


def stays_an_array(x):
    z = np.array(0.5)
    for t in x:
        if t > 0 and z == 0.5:
            z = np.array(0.3 if isinstance(z, np.ndarray) else x[1])
    return z + x[0] + isinstance(z, np.ndarray)


def may_become_a_number(x):
    z = np.zeros(())
    for t in x:
        if t > 1.0:
            z = z + 0.1
    return z + x[0] + isinstance(z, np.ndarray)


@pytest.mark.parametrize("fun", [begins_as_an_array, stays_an_array, may_become_a_number])
def test_arrays_of_one_number_that_loops_begin_with_are_arrays(fun):
    """They were NumPy's numbers."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(8).normal(size=(20, 4)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-12, atol=1e-14)


def as_long_as_it_may(u):
    """Steps whose length a float says that nothing is differentiated by."""
    t = 0.0
    while t < 1.0:
        dt = min(0.2 / float(np.max(np.abs(stop_gradient(u)))), 1.0 - t)
        u = u - dt * (np.roll(u, 1) - np.roll(u, -1)) * u
        t += dt
    return np.sum(u**2)


def float_of_an_argument(u, k):
    return np.sum(u**2) / float(k) + float(k > 1.2) * (u[0] if float(k).is_integer() else u[1])


@pytest.mark.long
def test_floats_of_what_nothing_is_differentiated_by():
    """``float(x)`` is traced there: code hangs on no value of it."""
    rng = np.random.default_rng(0)
    first, second = grad(as_long_as_it_may), grad(float_of_an_argument)
    dynamic = [grad(fun, mode="dynamic") for fun in (as_long_as_it_may, float_of_an_argument)]
    for u, k in zip(rng.normal(size=(30, 5)), rng.uniform(1, 2, 30), strict=True):
        np.testing.assert_allclose(first(u), dynamic[0](u), rtol=1e-10)
        for number in (float(k), np.float32(k), np.array(k), 1, 2.0):
            np.testing.assert_allclose(second(u, number), dynamic[1](u, number), rtol=1e-6)
    assert first.cache_info().misses < 10
    assert second.cache_info().misses < 40


def annealed(w, t):
    rate = 0.1 * math.exp(-t / 50.0) * (1 + math.cos(math.pi * t / 100))
    return rate * np.sum(w**2) + math.hypot(t, 1, 2) * np.sin(w[0])


def driven(w, t):
    y = w.copy()
    for _ in range(60):
        force = math.sin(t)
        y = y + 0.01 * np.sin(y) * force if force > 0 else y * (1 + 0.01 * force)
        t += 0.1
    return np.sum(y)


def decaying(w, t):
    while math.exp(-t) > 0.01:
        w, t = w + 0.01 * np.sin(w) * math.log(t + 1), t + 0.1
    return np.sum(w)


def at_a_time(w, t):
    k = math.floor(t)
    return (k + 1 - t) * w[k] ** 2 + (t - k) * w[math.ceil(t)] ** 2


def weighted(w, t):
    return sum(a * math.erf(b) for a, b in zip(w, t * np.arange(1.0, 6.0), strict=True))


def root_and_nothing_else(w, t):
    math.log(t)
    return w[0] * math.sqrt(t)


@pytest.mark.parametrize("fun", [annealed, driven, decaying, at_a_time, weighted, root_and_nothing_else])
def test_math_of_what_nothing_is_differentiated_by(fun):
    """Functions of ``math`` are traced there, and raise what they raise."""
    rng = np.random.default_rng(0)
    found, dynamic = grad(fun), grad(fun, mode="dynamic")
    for w, t in zip(rng.normal(size=(30, 5)), rng.uniform(0.1, 4, 30), strict=True):
        np.testing.assert_allclose(found(w, float(t)), dynamic(w, float(t)), rtol=1e-10)
        np.testing.assert_allclose(found(w, t), dynamic(w, t), rtol=1e-10)
    assert found.cache_info().misses < 12
    module: dict[str, object] = {}
    exec(export(found, w, float(t)), module)
    np.testing.assert_allclose(module[f"grad_{fun.__name__}"](w, float(t)), found(w, float(t)), rtol=1e-10)
    if fun is root_and_nothing_else:
        for t in (-1.0, 0.0, 2.0, -2.0):
            if t > 0:
                assert found(w, t)[0] == math.sqrt(t)
            else:
                with pytest.raises(ValueError, match="math domain error"):
                    found(w, t)


def test_math_of_what_is_differentiated_is_refused():
    fun = grad(lambda x, t: x * math.sin(t), argnums=(0, 1))
    with pytest.raises(LeavesNumPy, match=r"write np\.sin"):
        fun(1.0, 2.0)
    with pytest.raises(LeavesNumPy, match=r"write np\.sin"):
        grad(lambda t: grad(lambda x: x * x * math.sin(t))(3.0))(1.0)


def taken_or_not(x, p):
    s = 1.0
    for v in x:
        if v < 0:
            s += v
    return np.exp(s * p)


def goes_on_by_it(x, p):
    s, t = 1.0, x[-1]
    for v in x:
        if v < 0:
            s += t
        t = 0.9 * t + np.exp(-s) * p
    return t


def is_returned(x, p):
    s = 0.1
    for v in x:
        if v < 0:
            s += v
    return s * (1.0 + 0.0 * p)


def largest_so_far(x, p):
    t = 1.0
    for _ in range(12):
        t = max(t, np.tanh(0.1 * t))
    return (t + x[0]) * p


def largest_until(x, p):
    t, k = 1.0, 0
    while k < 12 and t < 3:
        t = max(t, np.tanh(np.exp(-(t**2))))
        k += 1
    return (0.9 * t + x[0]) * p


@pytest.mark.parametrize("fun", [taken_or_not, goes_on_by_it, is_returned, largest_so_far, largest_until])
@pytest.mark.parametrize("first", [1, -1])
def test_numbers_that_stay_pythons_beside_single_precision(fun, first):
    """They are of double precision, and what is made of them is of the dtype that it has in the function."""
    ways = [np.array([-1, 1] * 4, np.float32), np.ones(8, np.float32), np.linspace(0.1, 0.9, 8).astype(np.float32)][::first]
    derivative, plain = value_and_grad(fun, argnums=1), value_and_grad(fun, argnums=1, mode="dynamic")
    for x in ways * 3:
        (value, slope), (same, other) = derivative(x, 0.3), plain(x, 0.3)
        single = type(value) is np.float32
        assert type(value) is type(same) is type(fun(x, 0.3))
        assert value == pytest.approx(fun(x, 0.3), rel=1e-6 if single else 1e-12)
        assert slope == pytest.approx(other, rel=1e-5 if single else 1e-12)


ROW, SQUARE, PLACE = [1.0, 2.0, 0.0], [[1.0, 2.0], [3.0, 4.0]], 0


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.take(ROW, PLACE) * x,
        lambda x: np.take(a=SQUARE, indices=PLACE % 2, axis=1)[0] * x,
        lambda x: x / np.take(ROW, PLACE),
        lambda x: np.repeat(ROW, PLACE).sum() * x,
        lambda x: np.roll(ROW, PLACE)[0] * x,
        lambda x: np.sum(SQUARE, PLACE % 2)[0] * x,
        lambda x: np.diag(SQUARE, PLACE - 1)[0] * x,
        lambda x: np.pad(ROW, PLACE)[PLACE] * x,
        lambda x: np.array_split(ROW, PLACE + 1)[0][0] * x,
        lambda x: np.concatenate([ROW[:PLACE], ROW[PLACE:]])[0] * x,
        lambda x: np.hstack([ROW[:PLACE], ROW])[0] * x,
        lambda x: np.select([[PLACE > 0, True, False]], [ROW], 3.0)[0] * x,
        lambda x: np.choose([0, PLACE % 2], [ROW[:2], ROW[1:]])[1] * x,
        lambda x: np.broadcast_arrays(ROW, 1.0)[0][PLACE] * x,
    ],
)
def test_lists_of_numbers_are_arrays_for_numpy(fun):
    """What they are read by, or moved by, may have changed: then it is traced, and NumPy asks the list alone."""
    global PLACE
    derivative, x = value_and_grad(fun), np.float32(1 / 3)
    for place in (0, 0, 0, 1, 1, 1, 2, 2, 2):
        PLACE = place
        value, slope = derivative(x)
        assert (kind_of(value), value) == (kind_of(fun(x)), fun(x))
        assert kind_of(slope) == kind_of(x)
        np.testing.assert_allclose(slope * x, value, rtol=1e-6)


OUTSIDE, POINT = np.array([1.0, 2.0]), 1 + 2j


def _both(a, b):
    return a * b


@pytest.mark.parametrize("x", [np.float32(1 / 3), 0.25])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: POINT.conjugate().real * x,
        lambda x: (POINT.conjugate() * 1j).imag * x,
        lambda x: complex.conjugate(POINT).imag * x,
        lambda x: np.frompyfunc(_both, 2, 1)(OUTSIDE, 1.0)[1] * x,
        lambda x: np.frompyfunc(_both, 2, 1)(x, 2.0),
        lambda x: np.frompyfunc(_both, 2, 1).outer(OUTSIDE, [3.0])[1, 0] * x,
        lambda x: OUTSIDE.astype(object)[1] * x,
        lambda x: np.array(OUTSIDE, dtype=object)[1] * x,
        lambda x: next(map(np.max, [ROW, ROW])) * x,
    ],
)
def test_numbers_that_are_pythons_stay_so(fun, x):
    """What Python's methods make of them, and what is an object in an array."""
    derivative = value_and_grad(fun)
    for _ in range(3):
        value, slope = derivative(x)
        assert (kind_of(value), value) == (kind_of(fun(x)), fun(x))
        assert kind_of(slope) == kind_of(x)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, y: x * ((x > 0) + (y > 0)),
        lambda x, y: x * (~(x > 0) + 2),
        lambda x, y: x * ((x > 0) * (y > 0) + (x > -1)),
        lambda x, y: x * ((x > 0) + (y > 0)) ** 2,
        lambda x, y: x * float((x > 0) + (y > 0)),
        lambda x, y: x * (-1.0) ** ((x > 0) + (y > 0)),
        lambda x, y: x * np.square((x > 0) + (y > 0)),
        lambda x, y: x * np.abs((-2.0) ** y),
        lambda x, y: x * np.real((-2.0) ** y),
        lambda x, y: x * np.abs(np.power(-2.0, y)),
        lambda x, y: x * 2.0**y * 0.0**y,
    ],
)
def test_numpys_numbers_reckon_as_numpys_do(fun):
    """Truth values add up to one, and a negative number has no power that is not whole, where Python's are 2 and complex."""
    derivative = grad(fun, (0, 1))
    for i in range(4):
        args = np.float64(1.5 + i), np.float64(2.5 + i)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(derivative(*args), grad(fun, (0, 1), mode="dynamic")(*args))


@pytest.mark.parametrize("fun", [lambda x: np.real(1j**x), lambda x: abs((1 + 2j) ** x), lambda x: np.imag(2j ** (x * x))])
def test_powers_of_complex_constants(fun):
    derivative = value_and_grad(fun)
    for x in (0.5, 1.5, 2.5, -0.5):
        np.testing.assert_allclose(derivative(x), value_and_grad(fun, mode="dynamic")(x), rtol=1e-13)
    assert derivative.cache_info().hits, derivative.explain()


def test_whole_numbers_to_negative_powers_are_an_error():
    fun = lambda x, y: x * 2 ** ((x > 0) * 1 - 1 + (y > 0) * 1)
    derivative = grad(fun)
    for _ in range(3):
        assert derivative(np.float64(1.0), np.float64(2.0)) == 2.0
    with pytest.raises(ValueError, match="negative integer powers"):
        derivative(np.float64(-1.0), np.float64(-2.0))


@pytest.mark.parametrize("part", [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("other", [0.0, -0.0, 1.5, -np.inf, np.nan])
def test_complex_literals(part, other):
    """Zeros keep their sign, which tells the side of a branch cut; what is not finite has a literal."""
    number = complex(part, other)
    evaluated = eval(ast.unparse(build.number(number)), {"np": np})
    assert repr(complex(evaluated)) == repr(number)
    value = value_and_grad(lambda x: np.real(np.sum(np.where(x > 9, x, np.sqrt(np.where(x > 9, x * 1j, number))))))
    x = np.array([1.0, 10.0])
    with np.errstate(all="ignore"):
        for _ in range(3):
            np.testing.assert_array_equal(value(x)[0], np.real(np.sum(np.append(np.sqrt(np.array([number])), 10.0))))
    assert "flaw" not in value.explain()


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_attributes_are_those_of_the_value(mode):
    """``x.value if hasattr(x, "value") else x``: what a traced value has for symgrad alone is not there."""

    def f(x, t, k):
        x, t = (getattr(one, "value", one) for one in (x, t))
        x = x.node if hasattr(x, "node") else x
        return np.sum(x**2) * t**2 * k

    x = np.array([[1.0, 2.0]])
    for _ in range(3):
        slopes = grad(f, argnums=(0, 1), mode=mode)(x, 3.0, 2)
        np.testing.assert_allclose(slopes[0], 36.0 * x)
        assert slopes[1] == 60.0
    with pytest.raises(AttributeError, match=r"'numpy\.ndarray' object has no attribute 'value'"):
        grad(lambda x: np.sum(x.value), mode=mode)(x)

    def has(x, t, k):
        names = {*dir(np.ndarray), *dir(np.float64), *dir(int), "value", "node", "tape", "how", "written"}
        return [[hasattr(one, name) for name in sorted(names)] for one in (x, t, k, x[0, 0], t * 2)]

    for _ in range(3):
        found = value_and_grad(lambda x, t, k: (np.sum(x), has(x, t, k)), has_aux=True, mode=mode)(x, 3.0, 2)
        assert found[0][1] == has(x, 3.0, 2)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_whose_view_it_is(mode):
    def f(x):
        y = x.copy()
        bases = y[1:].base is y, y[1:][:1].base is y, y.T.base is y, (y + 1).base is None, x.base is None, x[1:].base is x
        return np.sum(y), bases

    for _ in range(3):
        assert value_and_grad(f, has_aux=True, mode=mode)(np.ones((2, 3)))[0][1] == (True,) * 6


V = np.array([0.31, -1.23, 0.74, 2.17])
OBJECTS = [None, "a", b"a", Fraction(1, 3), Decimal("0.5"), object(), {1}, ...]


@pytest.mark.parametrize("other", OBJECTS, ids=repr)
def test_arrays_compare_with_objects_one_by_one(other):
    agrees(lambda x: (x[x != other] * 2, np.where(x == other, x, 3.0 * x), np.where(other == x, 1.0, x)), V)
    if isinstance(other, (Fraction, Decimal)):
        agrees(lambda x: (np.where(x < other, x, 2.0 * x), np.where(other <= x, x, 2.0 * x)), V)
    else:
        with pytest.raises(TypeError):
            grad(lambda x: np.sum(x < other))(V)


@pytest.mark.parametrize("exponent", [1 + 2j, 2, 0.5, -1, 0])
def test_powers_with_exponents_of_single_precision(exponent):
    agrees(lambda x: (x**2 + 1.0) ** np.complex64(exponent) + np.sqrt(np.exp(x) + np.complex64(exponent + 2)), V)
