"""Zeros of either sign, infinities, NaN, the largest and the smallest numbers: compiled code gives what NumPy gives.

What the user's function returns, and in both modes the same derivative.
"""

import itertools
import linecache
import re

import numpy as np
import pytest

from symgrad import grad, hessian, hvp, jvp, value_and_grad, vmap

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -5e-324, 1.0, -1.0, 0.5, 2.0, -2.5, 3.0]
UNARY = """sin cos tan exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal negative positive absolute fabs sign
    arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh deg2rad floor ceil trunc rint nan_to_num conjugate real
    i0""".split()
BINARY = """add subtract multiply divide power float_power fmax fmin hypot arctan2 logaddexp logaddexp2 fmod remainder copysign
    nextafter floor_divide""".split()
REDUCTIONS = """sum prod max min mean var std median ptp nansum nanprod nanmax nanmean nanstd cumsum cumprod sort diff
    flip""".split()
NUMBERS = ["0.0", "-0.0", "0", "1", "-1.0", "2.0", "0.5", "np.inf", "C", "np.ones_like(x)", "x[::-1]"]
EXPRESSIONS = [
    *(f"np.{name}(x)" for name in (*UNARY, *REDUCTIONS)),
    *(f"np.{name}(x, {other})" for name, other in itertools.product(BINARY, NUMBERS)),
    *(f"np.{name}({other}, x)" for name, other in itertools.product(BINARY, NUMBERS)),
    *(f"np.{name}(np.stack([x, x]), axis=0)" for name in REDUCTIONS[:6]),
    *(f"{s}({a}x {op} {b}x[::-1]){end}" for s, a, b, op, end in itertools.product(*[("", "-")] * 3, "+-*/", ("", " * 1 / 1"))),
    *"x+0.0 0.0+x 0-x x-0.0 x-(-0.0) -0.0+x -(x-1.0) -(1-x) 0.0*x x*0 3*x-x -(-x) x*1e10/1e10 1e30*x*1e-30 x**0 x**1".split(),
    *"np.eye(len(x))@x np.diag(np.ones_like(x))@x np.sum(np.eye(len(x))*x,axis=1) C*x+1 x-np.mean(x)".split(),
]  # fmt: skip


def _together(expressions):
    """One function of many arguments: what each expression makes of its own; and their sum."""
    lines = [re.sub(r"\bx\b", f"x{i}", f"    r{i} = {text}") for i, text in enumerate(expressions)]
    results = [f"r{i}" for i in range(len(lines))]
    head = f"def fun({', '.join(f'x{i}' for i in range(len(lines)))}):"
    tail = f"    return {' + '.join(f'np.sum({r})' for r in results)}, [{', '.join(results)}]"
    source = "\n".join([head, *lines, tail])
    file = f"<special values {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace = {"np": np, "C": np.array([0.0, 1.0, -0.0] * 5)}
    exec(compile(source, file, "exec"), namespace)
    return namespace["fun"]


def _same(found, expected, what):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), what
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=what)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]), err_msg=what)
    np.testing.assert_allclose(found, expected, 1e-12 if found.dtype == np.float64 else 1e-5, 1e-320, err_msg=what)


COMPLEX = """np.exp(x) np.log(x) np.sqrt(x) np.sin(x) np.tanh(x) x*x x/x x*2.0 x*1.0 1.0*x x/1.0 x**1 x**2 -x x+0.0 x+-0.0 x-0.0
    0-x x*1j abs(x) np.conj(x) -(x-1) -x-x x-(-x) x+(-x) np.sum(x) np.mean(x) np.cumsum(x) np.where(x==0,x,-x) 3*x-x x/x[::-1]
    """.split()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_numpy_gives_of_complex_numbers():
    fun = _together(COMPLEX)
    parts = [0.0, -0.0, np.inf, np.nan, 5e-324, 1.0, -2.0]
    args = [np.array([complex(re, im) for re in parts for im in parts]) for _ in COMPLEX]
    for mode in ("auto", "dynamic"):
        derivative = grad(lambda *xs: (np.real(fun(*xs)[0]), fun(*xs)[1]), tuple(range(len(args))), has_aux=True, mode=mode)
        for _ in range(3):
            for text, one, wanted in zip(COMPLEX, derivative(*args)[1], fun(*args)[1], strict=True):
                _same(one.real, wanted.real, f"{mode}: {text}")
                _same(one.imag, wanted.imag, f"{mode}: {text}")


@pytest.mark.parametrize("name", "arcsin arccos arctan arcsinh arccosh arctanh sqrt log log2 log10 log1p".split())
def test_derivatives_on_the_cuts_of_complex_functions(name):
    """Along an axis, where the sign of a zero says on which side of a cut a number lies."""
    fun = getattr(np, name)
    for far, zero, turn in itertools.product((1.5, -1.5, 0.5, -0.5), (0.0, -0.0), (False, True)):
        at = lambda x, zero=zero, turn=turn: np.array(complex(zero, x) if turn else complex(x, zero))
        steps = [(fun(at(far + h)) - fun(at(far - h))) / (2 * h) for h in (1e-3, 5e-4)]
        derivative = jvp(fun, (at(far),), (np.array(1j if turn else 1 + 0j),))[1]
        np.testing.assert_allclose(derivative, (4 * steps[1] - steps[0]) / 3, 1e-8, 1e-8, err_msg=f"{at(far)}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("part", range(12))
def test_what_numpy_gives(part, dtype):
    expressions = EXPRESSIONS[part::12]
    fun = _together(expressions)
    x = np.array(SPECIAL, dtype)
    args = [x.copy() for _ in expressions]
    moderate = [np.where((np.abs(x) > 9) & np.isfinite(x) | (np.abs(x) < 0.1) & (x != 0), 0.5, x) for _ in expressions]
    expected, slopes = fun(*args)[1], []
    for mode in ("auto", "dynamic"):
        derivative = grad(fun, tuple(range(len(args))), has_aux=True, mode=mode)
        for _ in range(3):
            for text, one, wanted in zip(expressions, derivative(*args)[1], expected, strict=True):
                _same(one, wanted, f"{mode}: {text}")
        slopes.append(derivative(*moderate)[0])  # products of many factors, in whatever order
    for text, one, wanted in zip(expressions, *slopes, strict=True):
        _same(one + 0, wanted + 0, f"derivative of {text}")


SUMS = [
    "np.sum(x)", "np.mean(x)", "x @ y", "np.dot(x, y)", "np.vdot(x, y)", "np.inner(x, y)", "np.einsum('i,i->', x, y)",
    "np.tensordot(x, y, 1)", "np.vecdot(x, y)", "np.outer(x, y) @ y", "np.trace(np.diag(x))", "np.sum(np.outer(x, y), axis=0)",
    "-np.sum(x)", "np.sum(x) + np.sum(y)", "np.sum(x * x)", "np.sum(np.array([x[0], y[1]]))", "np.outer(x, y)", "x[0] + y[1]",
]  # fmt: skip


@pytest.mark.parametrize("text", SUMS)
def test_sums_of_zeros_in_small_arrays_start_from_zero(text):
    file = f"<zeros {text}>"
    source = f"def fun(x, y):\n    r = {text}\n    return np.sum(r), r\n"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace = {"np": np}
    exec(compile(source, file, "exec"), namespace)
    fun = namespace["fun"]
    derivative = value_and_grad(fun, (0, 1), has_aux=True)
    zeros = [np.full(3, 0.0), np.full(3, -0.0), np.array([-0.0, 0.0, -0.0])]
    for _ in range(3):
        for x, y in itertools.product(zeros, zeros):
            for one, wanted in zip(derivative(x, y)[0], fun(x, y), strict=True):
                _same(one, wanted, f"{text} of {x} and {y}")


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_least_squares_of_nearly_singular_matrices(mode):
    """As accurate as by hand: where all equations hold, the slope is that of ``solve``."""
    left, right = (np.linalg.qr(np.sin(np.arange(36.0) ** power).reshape(6, 6))[0] for power in (1.5, 2.0))
    a, x, weights = left * np.logspace(0, -8, 6) @ right, np.cos(np.arange(6.0)), np.sin(np.arange(6.0))
    slope = grad(lambda a, b: weights @ np.linalg.lstsq(a, b, rcond=None)[0], mode=mode)
    expected = -np.outer(np.linalg.solve(a.T, weights), x)
    for _ in range(3):
        np.testing.assert_allclose(slope(a, a @ x), expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_shares_of_a_sum_of_exponentials_are_of_one():
    """In few calls, also where rounding swallows the logarithm of their number."""
    slope = grad(lambda x: np.sum(np.logaddexp.reduce(x, axis=0)))
    for x in (
        np.cos(np.arange(12.0)).reshape(4, 3),
        np.full((4, 3), 1e17),
        np.full((4, 3), -np.inf),
        np.r_["0,2", [0.0] * 3, [-1e3] * 3],
    ):
        for _ in range(3):
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(np.sum(slope(x), axis=0), 1.0, rtol=1e-15)
    large = np.cos(np.arange(3000.0)).reshape(30, 100)
    slope(large)
    assert "maximum" not in slope.source(large, fast=True)


@pytest.mark.parametrize("ufunc", [np.logaddexp, np.logaddexp2])
def test_running_sums_of_exponentials_are_those_in_turn(ufunc):
    """In a number of calls that hardly grows, as exact as one by one, and where some are infinite, too."""

    def in_turn(x, weights):
        found = [x[0]]
        for row in x[1:]:
            found.append(ufunc(found[-1], row))
        return np.sum(weights * np.stack(found))

    slope, expected = grad(lambda x, weights: np.sum(weights * ufunc.accumulate(x, axis=0))), grad(in_turn)
    inf, some = np.inf, np.sin(np.arange(60.0)).reshape(20, 3) * 30
    columns = [[-inf, -inf, 1, 2], [1, inf, inf, 3], [-inf, 1, -inf, 2], [1e3, -1e3, 0, 1e3], [1, np.nan, 2, 3], [-inf] * 4]
    for x in (some, some.astype(np.float32), some[:1], np.array(columns).T):
        weights = np.cos(np.arange(x.size)).reshape(x.shape).astype(x.dtype)
        for _ in range(3):
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(slope(x, weights), expected(x, weights), rtol=5e-14 if x.dtype == float else 1e-5)
    assert slope(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)
    long = np.cos(np.arange(500.0))
    slope(long, long)
    assert len(slope.source(long, long).splitlines()) < 60


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.fmax, np.fmin], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize(("shape", "axis"), [((1,), 0), ((6,), 0), ((90,), -1), ((7, 40), 0), ((2, 40, 5), 2), ((9, 120), 0)])
def test_running_extremes_share_alike(ufunc, shape, axis):
    """At ties as the extreme of all until there does, by least norm; also wide ones, and in ``vmap``."""
    rng = np.random.default_rng(0)
    x, g = rng.integers(0, 5, shape) / 2, rng.standard_normal(shape)
    many = np.moveaxis(x, axis, -1)
    met = many[..., None, :] == np.moveaxis(ufunc.accumulate(x, axis), axis, -1)[..., None]
    met &= np.tri(many.shape[-1], dtype=bool)
    expected = np.einsum("...i,...ij->...j", np.moveaxis(g, axis, -1), met / met.sum(-1, keepdims=True))

    def fun(x, g):
        return np.sum(g * ufunc.accumulate(x, axis))

    for derivative in (grad(fun), grad(fun, mode="dynamic")):
        for _ in range(3):
            np.testing.assert_allclose(np.moveaxis(derivative(x, g), axis, -1), expected, rtol=1e-12, atol=1e-14)
    rows = vmap(grad(fun), in_axes=(None, 0))(x, np.stack([g, 2 * g]))
    np.testing.assert_allclose(np.moveaxis(rows[1], axis, -1), 2 * expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("fun", [lambda x: np.cumprod(x, 0), lambda x: np.logaddexp.accumulate(x, 1), np.maximum.accumulate])
def test_running_ones_of_wide_arrays(fun):
    """Which a loop over rows goes back through; sums over all that an element is the largest of do, too."""
    x, g = np.random.default_rng(1).uniform(0.5, 1.5, (2, 40, 50))
    derivative = grad(lambda x: np.sum(g * fun(x) ** 2))
    assert any([helper in derivative.source(x) for helper in ("runtime.recurrence", "runtime.from_running")])
    central = (np.sum(g * fun(x + 1e-6 * g) ** 2) - np.sum(g * fun(x - 1e-6 * g) ** 2)) / 2e-6
    np.testing.assert_allclose(np.sum(derivative(x) * g), central, rtol=1e-6)
    np.testing.assert_allclose(
        hvp(lambda x: np.sum(g * fun(x) ** 2))(x, g), (derivative(x + 1e-6 * g) - derivative(x - 1e-6 * g)) / 2e-6, atol=1e-5
    )


@pytest.mark.parametrize(
    "fun",
    [
        lambda p: p[0] ** p[1],
        lambda p: np.power(p[0], p[1]),
        lambda p: np.sum(np.float_power(p[:1], p[1])),
    ],
)
@pytest.mark.parametrize("y", [0.0, 1.0, 2.0, -1.0, 0.5])
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_second_derivatives_of_powers(fun, y, mode):
    """d2 / dx dy = x ** (y - 1) * (1 + y * log(x)), at exponents where the first by x is 0, too."""
    x = 3.0
    mixed = x ** (y - 1) * (1 + y * np.log(x))
    expected = [[y * (y - 1) * x ** (y - 2), mixed], [mixed, x**y * np.log(x) ** 2]]
    np.testing.assert_allclose(hessian(fun, mode=mode)(np.array([x, y])), expected, rtol=1e-12, atol=1e-15)
    assert grad(lambda x, y: x**y, (0, 1), mode=mode)(0.0, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("power", [2.2, 2.5, 3, 3.5])
@pytest.mark.parametrize("size", [np.abs, np.linalg.norm, lambda x: np.hypot(x[0], x[1])])
def test_second_derivatives_of_powers_of_sizes_at_zero(size, power):
    np.testing.assert_array_equal(hessian(lambda x: np.sum(size(x) ** power))(np.zeros(2)), np.zeros((2, 2)))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_residuals_of_dependent_columns(mode):
    """There are none, so that nothing moves them, whatever calls before had."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 2)), rng.normal(size=5)
    derivative = grad(lambda a, b: np.sum(np.linalg.lstsq(a, b, rcond=None)[1]), (0, 1), mode=mode)
    for matrix in (a, a, a, np.outer(b, [1.0, 2.0]), np.zeros((5, 2)), a):
        x, rest, *_ = np.linalg.lstsq(matrix, b, rcond=None)
        away = 2 * (b - matrix @ x) * np.size(rest)
        by_a, by_b = derivative(matrix, b)
        np.testing.assert_allclose(by_a, -np.outer(away, x), atol=1e-14)
        np.testing.assert_allclose(by_b, away, atol=1e-14)
