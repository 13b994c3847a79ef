"""NumPy's elementwise functions: one statement each, from ``np.add`` to ``np.nan_to_num``.

The conventions at kinks and poles are those of the design's table: ties are shared, 0/0 is 0, a bound counts as inside.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from symgrad.errors import NotDifferentiable
from symgrad.ir import Node
from symgrad.ops.core import A, Choice, Op, Sample, Traced, composite, constant, elementwise, literal, multiple, nonzero, op
from symgrad.ops.index import array_of

# fmt: off

LN2, LN10, DEGREE = float(np.log(2)), float(np.log(10)), np.pi / 180


def product(x1: Any, x2: Any) -> str:
    """How large the partials of a product get."""
    return "finite" if x1 is None and x2 is None else "zero" if 0 in (x1, x2) else "constant"


def quotient(x1: Any, x2: Any) -> str:
    """How large the partials of a quotient or a remainder get."""
    return "zero" if x1 == 0 else "constant" if x2 else "pole"


# -- arithmetic ----------------------------------------------------------------------------------------------------

elementwise(np.positive,   lambda g, y, x: g, fun=operator.pos, partial="constant")
elementwise(np.negative,   lambda g, y, x: -g, fun=operator.neg, partial="constant")
elementwise(np.add,        lambda g, y, x1, x2: g,
                           lambda g, y, x1, x2: g, fun=operator.add, partial="constant")
elementwise(np.subtract,   lambda g, y, x1, x2: g,
                           lambda g, y, x1, x2: -g, fun=operator.sub, partial="constant")
elementwise(np.multiply,   lambda g, y, x1, x2: g * x2,
                           lambda g, y, x1, x2: g * x1, fun=operator.mul, partial=product)
elementwise(np.divide,     lambda g, y, x1, x2: g / x2,
                           lambda g, y, x1, x2: -(g / x2) * y, fun=operator.truediv,
                           partial=quotient, pole=1, domain=[(-2, 2), (0.5, 2)])
elementwise(np.remainder,  lambda g, y, x1, x2: g,
                           lambda g, y, x1, x2: -g * np.rint((x1 - y) / x2), fun=operator.mod,
                           partial=quotient, pole=1, domain=[(-4.8, -4.2), (1.7, 2)], complex=False)
elementwise(np.fmod,       lambda g, y, x1, x2: g,
                           lambda g, y, x1, x2: -g * np.rint((x1 - y) / x2),
                           partial=quotient, pole=1, domain=[(-4.8, -4.2), (1.7, 2)], complex=False)
op(np.divmod,              lambda g, y, x1, x2: g[1],
                           lambda g, y, x1, x2: None if g[1] is None else -g[1] * np.rint((x1 - y[1]) / x2),
                           domain=[(-4.8, -4.2), (1.7, 2)], complex=False, samples=[
    Sample(A(3, 4, lo=-4.8, hi=-4.2), A(4, lo=1.7, hi=2)), Sample(A(3, lo=-4.8, hi=-4.2), 1.9),
    Sample(4.5, A(2, lo=1.7, hi=2)), Sample(A(lo=4.2, hi=4.8), A(lo=1.7, hi=2))])
op(np.modf,                lambda g, y, x: g[0], complex=False, samples=[
    Sample(A(3, 4, lo=1.1, hi=1.9)), Sample(A(2, lo=-1.9, hi=-1.1)), Sample(A(lo=0.1, hi=0.9))])
op(np.frexp,               lambda g, y, x: None if g[0] is None else np.ldexp(g[0], -y[1]), complex=False, samples=[
    Sample(A(3, 4, lo=1.1, hi=1.9)), Sample(A(2, lo=-7.9, hi=-4.1)), Sample(A(lo=0.6, hi=0.9))])
elementwise(np.reciprocal, lambda g, y, x: -g * y * y, partial="pole", domain=(0.5, 2))
elementwise(np.square,     lambda g, y, x: 2 * g * x, partial="finite")
elementwise(np.sqrt,       lambda g, y, x: 0.5 * g / y, partial="pole", domain=(0.5, 3))
elementwise(np.cbrt,       lambda g, y, x: g / (3 * y * y), domain=(0.5, 3), complex=False)


def precise(x: Any, y: Any) -> Any:
    """An argument in the precision of the result: small integers overflow, and have logarithms of half precision."""
    if not hasattr(x, "dtype") or not hasattr(y, "dtype"):
        return x
    dtype = np.result_type(x.dtype, np.finfo(y.dtype).dtype)
    return x if x.dtype == dtype else x.astype(dtype)


def power_x1(g: Any, y: Any, x1: Any, x2: Any) -> Any:
    """``x2 * x1 ** (x2 - 1)``, and 0 for ``0 ** 0``."""
    x2 = precise(x2, y)
    below = x2 != 0
    if moves(x2):  # it may, away from zero
        below = below | (abs(x1) > 0)
    return g * (x2 * x1 ** (x2 - below))


def power_x2(g: Any, y: Any, x1: Any, x2: Any) -> Any:
    x1 = precise(x1, y)
    x1 = x1 + (x1 == 0)
    return g * (y * np.log(x1 + 0j if np.iscomplexobj(y) and np.isrealobj(x1) else x1))


def powers(x1: Any, x2: Any) -> str:
    """How large the partials of a power get."""
    if x1 == 0 or x2 == 0:
        return "zero"
    if x2 is None or np.iscomplexobj(x2):
        return "poles"
    whole = x2 == x2 // 1  # of negative numbers, broken powers are no numbers
    return "finite" if x2 >= 1 and whole else "pole" if x2 >= -2 else "poles"


# NumPy's ``x ** 0.5`` is the square root; before NumPy 2.3, ``np.power(x, 0.5)`` is not
_APART = not np.signbit(np.power(np.array([-0.0]), 0.5))[0]
_pow: Any = (lambda x1, x2: np.power(x1, x2) if isinstance(x1, np.ndarray) else x1**x2) if _APART else operator.pow


def operator_power(x: Any, exponent: Any) -> Any:
    """The other ufunc that ``x ** exponent`` is, if any."""
    if isinstance(x, np.ndarray) and x.dtype == bool and type(exponent) is int and exponent == 2:
        return np.square  # of small integers, where np.power makes large ones
    if not _APART or not isinstance(x, np.ndarray) or x.dtype.kind not in "fc" or type(exponent) not in (int, float):
        return None
    if exponent == 0.5:
        return np.sqrt
    return {1: np.positive, 2: np.square, -1: np.reciprocal}.get(exponent) if x.dtype.kind == "c" else None


elementwise(np.power,       power_x1, power_x2, fun=_pow, partial=powers, domain=[(0.5, 2), (-2, 2)])
elementwise(np.float_power, power_x1, power_x2, partial=powers, domain=[(0.5, 2), (-2, 2)])

# -- exponentials and logarithms -----------------------------------------------------------------------------------

elementwise(np.exp,   lambda g, y, x: g * y)
elementwise(np.exp2,  lambda g, y, x: g * (LN2 * y))
elementwise(np.expm1, lambda g, y, x: g * np.exp(x))  # of which y + 1 has no digits, where it is nearly 0
elementwise(np.log,   lambda g, y, x: g / x, partial="pole", domain=(0.5, 3))
elementwise(np.log2,  lambda g, y, x: g / LN2 / x, partial="pole", domain=(0.5, 3))
elementwise(np.log10, lambda g, y, x: g / LN10 / x, partial="pole", domain=(0.5, 3))
elementwise(np.log1p, lambda g, y, x: g / (x + 1), domain=(-0.5, 2))


def weight(exp: Any, x: Any, other: Any, y: Any) -> Any:
    """``exp(x - y)``; 1 for the argument that alone is infinite as the sum is, a half for each of two."""
    if exp is np.exp and _is_zero(other):
        return -np.expm1(-y)  # which is right for infinities too
    alone = x == y
    return np.where(alone & (other == y), 0.5, exp(np.where(alone, 0, x) - np.where(alone, 0, y)))


def _number(x: Any) -> Any:
    """A plain number that an argument is; None for others."""
    node = getattr(x, "node", None)
    value = literal(node) if isinstance(node, Node) else x
    return value if isinstance(value, (int, float, complex, np.generic)) else None


def moves(x: Any) -> bool:
    """Whether an argument hangs on anything that derivatives may be taken by."""
    node = getattr(x, "node", None)
    return node.active if isinstance(node, Node) else isinstance(x, Traced)


def _is_zero(x: Any) -> bool:
    value = _number(x)
    return type(value) in (int, float) and value == 0


elementwise(np.logaddexp,  lambda g, y, x1, x2: g * weight(np.exp, x1, x2, y),
                           lambda g, y, x1, x2: g * weight(np.exp, x2, x1, y), partial="finite", complex=False)
elementwise(np.logaddexp2, lambda g, y, x1, x2: g * weight(np.exp2, x1, x2, y),
                           lambda g, y, x1, x2: g * weight(np.exp2, x2, x1, y), partial="finite", complex=False)

# -- trigonometric and hyperbolic ----------------------------------------------------------------------------------

def _slope(inverse: Any, y: Any, root: Any) -> Any:
    """A root, or minus it: on the cut of a complex function the sign is that of the slope of the inverse at ``y``."""
    if not np.iscomplexobj(y):
        return root
    slope = inverse(y)
    return np.where(np.real(slope) * np.real(root) + np.imag(slope) * np.imag(root) < 0, -root, root)


elementwise(np.sin,     lambda g, y, x: g * np.cos(x), partial="finite")
elementwise(np.cos,     lambda g, y, x: -g * np.sin(x), partial="finite")
elementwise(np.tan,     lambda g, y, x: g * (y * y + 1), partial="finite", domain=(-1, 1))
elementwise(np.arcsin,  lambda g, y, x: g / _slope(np.cos, y, np.sqrt((1 - x) * (1 + x))), domain=(-0.8, 0.8))
elementwise(np.arccos,  lambda g, y, x: -g / _slope(np.sin, y, np.sqrt((1 - x) * (1 + x))), domain=(-0.8, 0.8))
elementwise(np.arctan,  lambda g, y, x: g / (x * x + 1), partial="finite", domain=(-0.8, 0.8))
elementwise(np.sinh,    lambda g, y, x: g * np.cosh(x))
elementwise(np.cosh,    lambda g, y, x: g * np.sinh(x))
elementwise(np.tanh,    lambda g, y, x: g * (1 - y * y), partial="finite", domain=(-1, 1))
elementwise(np.arcsinh, lambda g, y, x: g / _slope(np.cosh, y, np.sqrt(x * x + 1)), partial="finite", domain=(-0.8, 0.8))
elementwise(np.arccosh, lambda g, y, x: g / _slope(np.sinh, y, np.sqrt(x - 1) * np.sqrt(x + 1)), domain=(1.5, 3))
elementwise(np.arctanh, lambda g, y, x: g / ((1 - x) * (1 + x)), domain=(-0.8, 0.8))
elementwise(np.deg2rad, lambda g, y, x: np.deg2rad(g), partial="constant", complex=False)
elementwise(np.radians, lambda g, y, x: np.radians(g), partial="constant", complex=False)
elementwise(np.rad2deg, lambda g, y, x: np.rad2deg(g), partial="constant", complex=False)
elementwise(np.degrees, lambda g, y, x: np.degrees(g), partial="constant", complex=False)


def squares(x1: Any, x2: Any) -> Any:
    """The sum of squares to divide by: 1 for two zeros, so that 0/0 is 0; not where the squares of others are too small."""
    return x1 * x1 + x2 * x2 + ((x1 == 0) & (x2 == 0))


def angles(x1: Any, x2: Any) -> str:
    """How large the partials of an angle get."""
    return "zero" if 0 in (x1, x2) else "finite"


def leg(g: Any, y: Any, x: Any) -> Any:
    h = multiple(g, y)
    return g * (x / nonzero(y)) if h is None else h * x


elementwise(np.hypot,   lambda g, y, x1, x2: leg(g, y, x1),
                        lambda g, y, x1, x2: leg(g, y, x2), partial="finite", domain=(0.3, 2), complex=False)
elementwise(np.arctan2, lambda g, y, x1, x2: g * (x2 / squares(precise(x1, y), precise(x2, y))),
                        lambda g, y, x1, x2: -g * (x1 / squares(precise(x1, y), precise(x2, y))),
                        partial=angles, domain=(0.3, 2), complex=False)


@elementwise(np.sinc, partial="finite", samples=[
    Sample(A(3, 4)), Sample(A()), Sample(A(5, lo=-0.02, hi=0.02)), Sample(A(2, 1, 3))])
def sinc(g: Any, y: Any, x: Any) -> Any:
    near = np.abs(x) < 0.03
    t = np.pi * x
    s = t * t
    series = t * (-1 / 3 + s * (1 / 30 - s * (1 / 840 - s / 45360)))
    return g * np.where(near, np.pi * series, (np.cos(t) - y) / np.where(near, 1, x))


_COSINES = np.cos((np.arange(64) + 0.5) * (np.pi / 128))


@elementwise(np.i0, domain=(-3, 3), complex=False, samples=[Sample(A(3, 4)), Sample(A(5, lo=5, hi=30)), Sample(A(2, 1, 3))])
def i0(g: Any, y: Any, x: Any) -> Any:
    """``I1``, as the mean of ``sinh(x cos t) cos t`` over a quarter of a circle; the trapezoidal sum is exact to rounding."""
    return g * np.mean(np.sinh(np.expand_dims(x, -1) * _COSINES) * _COSINES, axis=-1)


# -- signs, extrema, choices ---------------------------------------------------------------------------------------


@elementwise(np.absolute, fun=operator.abs, partial="finite")
def absolute(g: Any, y: Any, x: Any) -> Any:
    h = multiple(g, y)
    if h is not None:
        return h * (np.conj(x) if np.iscomplexobj(x) else x)
    return g * (np.conj(x) / nonzero(y)) if np.iscomplexobj(x) else g * np.sign(x)


def sign(g: Any, y: Any, x: Any) -> Any:
    """Constant for real numbers; for complex ones ``x / abs(x)``, whose direction moves."""
    return (g - np.conj(g * y * y)) * turning(x) if np.iscomplexobj(x) else None


def sign_jvp(ts: Any, y: Any, x: Any) -> Any:
    return (ts[0] - np.conj(ts[0]) * y * y) * turning(x) if np.iscomplexobj(x) else None


def turning(x: Any) -> Any:
    """Half of ``1 / abs(x)``, and 0 for 0."""
    size = np.abs(x)
    return 0.5 / np.where(size == 0, np.inf, size)


elementwise(np.sign, sign, jvp=sign_jvp, partial="finite")
elementwise(np.fabs,      absolute, partial="finite", complex=False)
elementwise(np.copysign,  lambda g, y, x1, x2: g * (np.sign(x1) * np.sign(y)), None, partial="finite", complex=False)
elementwise(np.heaviside, None, lambda g, y, x1, x2: g * (x1 == 0), partial="constant", complex=False)
elementwise(np.ldexp,     lambda g, y, x1, x2: np.ldexp(g, x2), None, partial="finite", complex=False, samples=[
    Sample(A(3, 4), A(3, 4, lo=-3, hi=3, kind="int")), Sample(A(3, 1), A(4, lo=-3, hi=3, kind="int")),
    Sample(A(3, 4), 2), Sample(A(), -1)])

UPPER = (Choice(lambda y, x1, x2: (x1 >= x2, True, False)), Choice(lambda y, x1, x2: (x2 >= x1, True, False)))
LOWER = (Choice(lambda y, x1, x2: (x1 <= x2, True, False)), Choice(lambda y, x1, x2: (x2 <= x1, True, False)))
EQUAL = (Choice(lambda y, x1, x2: (x1 == y, True, False)), Choice(lambda y, x1, x2: (x2 == y, True, False)))
MASKED = (None, Choice(lambda y, condition, *_: (condition, True, True)),
                Choice(lambda y, condition, *_: (condition, False, True)))

elementwise(np.maximum, lambda g, y, x1, x2: np.where(x1 == x2, 0.5 * g, g * (x1 > x2)),
                        lambda g, y, x1, x2: np.where(x1 == x2, 0.5 * g, g * (x2 > x1)),
                        partial="finite", lanes=UPPER, complex=False)
elementwise(np.minimum, lambda g, y, x1, x2: np.where(x1 == x2, 0.5 * g, g * (x1 < x2)),
                        lambda g, y, x1, x2: np.where(x1 == x2, 0.5 * g, g * (x2 < x1)),
                        partial="finite", lanes=LOWER, complex=False)
elementwise(np.fmax,    lambda g, y, x1, x2: np.where(x1 == x2, 0.5 * g, g * (x1 == y)),
                        lambda g, y, x1, x2: np.where(x1 == x2, 0.5 * g, g * (x2 == y)),
                        partial="constant", lanes=EQUAL, complex=False)
elementwise(np.fmin,    lambda g, y, x1, x2: np.where(x1 == x2, 0.5 * g, g * (x1 == y)),
                        lambda g, y, x1, x2: np.where(x1 == x2, 0.5 * g, g * (x2 == y)),
                        partial="constant", lanes=EQUAL, complex=False)


def bind_clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None,
              **options: Any) -> Any:
    """The three arrays of any call of ``np.clip``; a bound that was not given is an infinite one."""
    if out is not None or options:
        raise NotDifferentiable(f"np.clip has no derivative rule for {', '.join(options) or 'out'}=")
    a_min, a_max = min if a_min is None else a_min, max if a_max is None else a_max
    dtype = array_of(a).dtype
    limits = np.iinfo(int if dtype.kind == "b" else dtype) if dtype.kind in "iub" else None
    low, high = (int(limits.min), int(limits.max)) if limits else (-np.inf, np.inf)
    return (a, low if a_min is None else a_min, high if a_max is None else a_max), {}


def _kept(y: Any, a: Any, a_min: Any, a_max: Any) -> Any:
    """Where what is clipped is the result: nowhere between bounds that are in reverse, of which the upper one is."""
    low, high = _number(a_min), _number(a_max)
    in_order = low is not None and high is not None and low <= high
    return y == a if in_order else (y == a) & (a_min <= a_max)


elementwise(np.clip,  lambda g, y, a, a_min, a_max: g * _kept(y, a, a_min, a_max),
                      lambda g, y, a, a_min, a_max: g * ((a < a_min) & (a_min <= a_max)),
                      lambda g, y, a, a_min, a_max: g * (np.maximum(a, a_min) > a_max),
                      partial="constant", lanes=(Choice(lambda y, a, a_min, a_max: (y == a, True, False)), "same", "same"),
                      bind=bind_clip, complex=False, samples=[
    Sample(A(3, 4), -0.7, 0.9), Sample(A(3, 4), None, 0.3), Sample(A(4), a_min=-0.2, a_max=None), Sample(A(), -1, 1),
    Sample(A(3, 4), A(4, lo=-0.8, hi=-0.2), A(3, 1, lo=0.2, hi=0.8)), Sample(A(4), A(3, 4, lo=-1, hi=0), 0.5)])
elementwise(np.where, None,
                      lambda g, _, condition, x, y: np.where(condition, g, 0),
                      lambda g, _, condition, x, y: np.where(condition, 0, g),
                      partial="constant", lanes=MASKED,
                      samples=[
    Sample(A(3, 4, kind="bool"), A(3, 4), A(3, 4)), Sample(A(4, kind="bool"), A(3, 1), A(3, 4)),
    Sample(A(3, 4, kind="bool"), A(4), 0.0), Sample(A(3, 1, kind="bool"), 1.0, A()),
    Sample(A(kind="bool"), A(3), A(2, 1))])


# what Python's ``min`` and ``max`` choose between two numbers
EXTREME = Op("extreme", "elementwise", (None, lambda g, _, condition, x, y: np.where(condition, g, 0),
                                              lambda g, _, condition, x, y: np.where(condition, 0, g)),
             name="np.where", fun=np.where, partial="constant", lanes=MASKED)


# -- complex numbers, numbers that are none ------------------------------------------------------------------------

ANY = [Sample(A(3, 4)), Sample(A(4)), Sample(A()), Sample(A(2, 1, 3))]

elementwise(np.conjugate, lambda g, y, x: np.conj(g) if np.iscomplexobj(x) else g, partial="constant")
elementwise(np.real,      lambda g, y, val: g, partial="constant", alias=True, samples=ANY)
elementwise(np.imag,      lambda g, y, val: -1j * g if np.iscomplexobj(val) else None,
            partial="constant", alias=True, samples=ANY)


@elementwise(np.angle, partial="finite", samples=[*ANY, Sample(A(3), deg=True), Sample(A(3, 1), True)])
def angle(g: Any, y: Any, z: Any, deg: bool = False) -> Any:
    if not np.iscomplexobj(z):
        return None
    g = -1j * g / np.where(z == 0, np.inf, z)
    return g / DEGREE if deg else g


def _finite(y: Any, x: Any, **_: Any) -> Any:
    return None if np.iscomplexobj(x) else (np.isfinite(x), True, True)


def _in_place(x: Any, copy: bool, **options: Any) -> Any:
    x[...] = np.nan_to_num(x, **options)
    return x


@elementwise(np.nan_to_num, partial="constant", lanes=(Choice(_finite),), instead={"copy": _in_place}, samples=[
    *ANY, Sample(A(3), nan=1.0), Sample(A(3, 2), posinf=9.0, neginf=-9.0)])
def nan_to_num(g: Any, y: Any, x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not np.iscomplexobj(x):
        return np.where(np.isfinite(x), g, 0)
    re, im = np.isfinite(np.real(x)), np.isfinite(np.imag(x))
    return np.where(re, np.real(g), 0) + 1j * np.where(im, np.imag(g), 0)


elementwise(np.nextafter, lambda g, y, x1, x2: g, None, partial="constant", complex=False)


# np.emath: complex where a real result would be NaN, which is looked at


def _widened(x: Any, inside: Any) -> Any:
    x = array_of(x)
    if x.dtype.kind == "c" or bool(np.all(inside(x))):
        return x
    return x.astype(np.complex64 if x.dtype.char in "fbhBH" else np.complex128)  # as NumPy's own


_positive, _within = (lambda x: x >= 0), (lambda x: np.abs(x) <= 1)
_any = [Sample(A(3, lo=0.2, hi=0.8)), Sample(A(2, lo=-2, hi=-1.2)), Sample(A(lo=0.2, hi=0.8))]
for _name in ("sqrt", "log", "log2", "log10", "arcsin", "arccos", "arctanh"):
    composite(getattr(np.emath, _name), samples=_any)(
        lambda x, plain=getattr(np, _name), inside=_within if _name[0] == "a" else _positive: plain(_widened(x, inside)))
composite(np.emath.power, samples=[Sample(A(3, lo=0.2), 2.5), Sample(A(2, lo=-2, hi=-1.2), A(2))])(
    lambda x, p: np.power(_widened(x, _positive), p if hasattr(p, "dtype") else np.multiply(p, 1.0)))
composite(np.emath.logn, samples=[Sample(2, A(3, lo=0.2)), Sample(A(lo=2, hi=3), A(2, lo=-2, hi=-1.2))])(
    lambda n, x: np.log(_widened(x, _positive)) / np.log(_widened(n, _positive)))



@composite(np.real_if_close, samples=[Sample(A(3, 4)), Sample(A())])
def real_if_close(a: Any, tol: float = 100) -> Any:
    """The real part, where all imaginary parts are zero but for rounding, which is looked at."""
    a = array_of(a)
    if not np.iscomplexobj(a):
        return a
    bound = tol * np.finfo(a.dtype).eps if tol > 1 else tol
    return np.real(a) if np.all(np.abs(np.imag(a)) < bound) else a

# -- no derivative -------------------------------------------------------------------------------------------------

constant(np.floor, np.ceil, np.trunc, np.rint, np.round, np.around, np.fix, np.spacing)
constant(np.isnan, np.isinf, np.isfinite, np.isposinf, np.isneginf, np.isclose, np.isreal, np.iscomplex, np.signbit)
constant(np.logical_and, np.logical_or, np.logical_xor, np.logical_not, np.gcd, np.lcm, np.bitwise_count)

for key, fun in {
    np.less: operator.lt, np.less_equal: operator.le, np.equal: operator.eq,
    np.greater: operator.gt, np.greater_equal: operator.ge, np.not_equal: operator.ne,
    np.bitwise_and: operator.and_, np.bitwise_or: operator.or_, np.bitwise_xor: operator.xor,
    np.left_shift: operator.lshift, np.right_shift: operator.rshift, np.invert: operator.invert,
    np.floor_divide: operator.floordiv,
}.items():
    constant(key, fun=fun)
