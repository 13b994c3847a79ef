"""``scipy.special``: its ufuncs get their rules here, so that ``scipy.special.erf(x)`` itself is differentiable.

Its Python functions (``logsumexp``, ``softmax``, ``polygamma`` …), which NumPy's protocols do not reach, are here under the
same names; every other name is SciPy's.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import Any

import numpy as np
import scipy.special as sp

from symgrad.errors import NotDifferentiable
from symgrad.ir import Node
from symgrad.ops.core import A, Op, Rule, Sample, constant, dtype_of, elementwise, op
from symgrad.ops.elementwise import precise
from symgrad.ops.engine import STOP
from symgrad.ops.index import array_of
from symgrad.optimize.lower import EXPIT, LOWER, MANY
from symgrad.optimize.rewriting import Simplifier, elements_of, rewrite
from symgrad.scipy.plain import rest_of

# fmt: off

ROOT_2, ROOT_PI, ROOT_2PI, ROOT_2_PI = math.sqrt(2), math.sqrt(math.pi), math.sqrt(2 * math.pi), math.sqrt(2 / math.pi)
LN2, LN10, DEGREE = math.log(2), math.log(10), math.pi / 180


__getattr__ = rest_of(sp)


def _no_rule(function: str, argument: str) -> Rule:
    def refuse(g: Any, y: Any, *args: Any) -> Any:
        raise NotDifferentiable(
            f"scipy.special.{function} has no derivative rule by {argument}; "
            f"wrap that in symgrad.stop_gradient if it is a constant, or use symgrad.primitive with a rule of your own"
        )

    return refuse


def _rule(ufunc: Any, *rules: Rule | str | None, complex: bool = False, **options: Any) -> None:
    """Register a ufunc; in place of a rule, the name of an argument for which there is none."""
    made = [_no_rule(ufunc.__name__, rule) if isinstance(rule, str) else rule and _precisely(ufunc, rule) for rule in rules]
    elementwise(ufunc, *made, name=ufunc.__name__, complex=complex, **options)


def _precisely(ufunc: Any, rule: Rule) -> Rule:
    """A rule with arguments in the precision of the result; whole numbers stay such where SciPy counts by them."""
    if ufunc.nin == 1:
        return rule
    counts = any(set(loop.partition("->")[0]) & set("ilqp") for loop in ufunc.types)

    def taken(x: Any, y: Any) -> Any:
        if counts and hasattr(x, "dtype") and x.dtype.kind in "biu":
            return x if x.dtype.itemsize == 8 else x.astype(np.int64)
        return precise(x, y)

    return lambda g, y, *args: rule(g, y, *[taken(x, y) for x in args])


def _of(*first: Any, lo: float = 0.3, hi: float = 2.5) -> list[Sample]:
    """Samples for a function whose first arguments are parameters without a rule."""
    shapes: list[tuple[int, ...]] = [(3, 4), (5,), (), (2, 1, 3), (1,), (0,)]
    return [Sample(*first, A(*shape, lo=lo, hi=hi)) for shape in shapes]


def _three(domain: Any) -> list[Sample]:
    """Samples for a function of two or three arguments."""
    shapes: Any = (((3, 4), (4,), (3, 1)), ((5,), (), (5,)), ((), (), ()), ((2, 1), (1, 3), (2, 3)), ((0,), (1,), ()))
    return [Sample(*[A(*s, lo=lo, hi=hi) for s, (lo, hi) in zip(each, domain, strict=False)]) for each in shapes]


def _voigt(x: Any, sigma: Any, gamma: Any, n: int = 0, turns: int = 0) -> Any:
    """The real part of ``i**turns`` times the ``n``-th derivative of ``wofz(z) / (sigma * sqrt(2 pi))`` by ``x + i gamma``,
    where ``z = (x + i gamma) / (sigma sqrt(2))``. Where that is large, of its asymptotic series (DLMF 7.12.1), and what the
    series lacks near the real axis; else by ``w' = 2 i / sqrt(pi) - 2 z w``.
    """
    point, width = np.asarray(x + 1j * gamma), np.asarray(ROOT_2 * np.abs(sigma))
    far = np.abs(point) > 7 * width
    spread = np.where(np.abs(point) > 30 * width, np.abs(point), width)  # where exp(-z^2) is 0
    z = point / spread
    least = np.where(spread == width, np.exp(-np.where(far & (np.abs(z.imag) < 0.01), z, 30) ** 2), 0)
    last: Any = 0
    value = np.where(far, least, sp.wofz(z))
    for k in range(n):
        last, value = value, np.where(far | (k > 0), 0, 2j / ROOT_PI) - 2 * z * value - 2 * k * last
    value = value / (ROOT_PI * spread ** (n + 1))
    if np.any(far):
        inverse = 1 / np.where(far, point, 1)
        ratio, total = (np.where(far, width, 0) * inverse) ** 2, 0
        for k in range(40, -1, -1):
            total = total * ratio + sp.poch(0.5, k) * sp.poch(2 * k + 1, n)
        value = value + np.where(far, (-1) ** n * 1j / math.pi * total * inverse ** (n + 1), 0)
    return np.real((1, 1j, -1, -1j)[turns % 4] * value)


VOIGT: Op = Op(
    _voigt, "elementwise",
    (lambda g, y, x, sigma, gamma, n=0, turns=0: g * VOIGT(x, sigma, gamma, n=n + 1, turns=turns),
     lambda g, y, x, sigma, gamma, n=0, turns=0: g * (sigma * VOIGT(x, sigma, gamma, n=n + 2, turns=turns)),
     lambda g, y, x, sigma, gamma, n=0, turns=0: g * VOIGT(x, sigma, gamma, n=n + 1, turns=turns + 1)),
    name="voigt", complex=False, samples=_three([(-2, 2), (0.1, 3), (0.4, 3)]))

# fmt: on


def _recurrent(a: float, x: Any, y: Any, b: Any, n: int) -> Any:
    """The ``n``-th derivative of what is ``y``, and has the first ``a x y + b``."""
    last = 0
    for k in range(n):
        last, y, b = y, a * (x * y + k * last) + b, 0
    return y


def _far_away(fun: Any, a: float, b: complex, decayed: Any) -> Op:
    """The ``n``-th derivative of ``fun``, of which the first is ``a x y + b``; far from 0, where these cancel, of its
    asymptotic series (DLMF 7.12.1). Beside that the function has a share of ``exp(a x^2 / 2)``, but where it has ``decayed``;
    on the real axis ``wofz`` has nothing else that is real."""

    def slope(x: Any, n: int = 1) -> Any:
        x = np.asarray(x)
        far: Any = np.abs(x) > 10
        if not np.any(far):
            return _recurrent(a, x, fun(x), b, n)[()]
        across, along = (x.imag, x.real) if a < 0 else (x.real, x.imag)
        far = far & (decayed(x) | (np.abs(across) <= 0.6 * np.abs(along)))
        rest = np.exp(-(np.where(x.imag == 0, np.clip(x.real, -30, 30), 30) ** 2)) if fun is sp.wofz else 0
        z = np.where(far & (np.abs(x) > 30), 30, x)  # where nothing but the series is left
        value = _recurrent(a, z, np.where(far, rest, fun(x)), np.where(far, 0, b), n)
        inverse, k = 1 / np.where(far, x, 1), np.arange(18, -1, -1.0)
        square, total = inverse * inverse, 0
        for term in ((-1) ** n * b / -a * (-0.5 * a) ** k * sp.poch(0.5, k) * sp.poch(2 * k + 1, n)).tolist():
            total = total * square + term
        return np.where(far, value + total * inverse ** (n + 1), value)[()]

    made: Op = Op(
        slope,
        "elementwise",
        (lambda g, y, x, n=1: g * made(x, n=n + 1),),
        name=f"{fun.__name__}_slope",
        samples=_of(lo=-2, hi=12),
    )
    return made


# fmt: off
ERFCX_SLOPE = _far_away(sp.erfcx, 2.0, -2 / ROOT_PI, lambda x: x.real > 0)
DAWSN_SLOPE = _far_away(sp.dawsn, -2.0, 1.0, lambda x: False)
WOFZ_SLOPE = _far_away(sp.wofz, -2.0, 2j / ROOT_PI, lambda x: x.imag > 0)

# -- logistic, error and normal functions --------------------------------------------------------------------------


def _log_ndtr_curvature(slope: Any, x: Any) -> Any:
    """The slope's slope; to the right ``erfcx`` overflows, to the left, the two in the other formula cancel."""
    right = x > 0
    by_ratio = slope * (slope * (ROOT_PI / 2 * ERFCX_SLOPE(np.where(right, 0, x) / -ROOT_2)))
    return np.where(right, -slope * (np.clip(x, 0, 100) + slope), by_ratio)


LOG_NDTR_SLOPE = Op(
    lambda x: ROOT_2_PI / sp.erfcx(x / -ROOT_2), "elementwise", (lambda g, y, x: g * _log_ndtr_curvature(y, x),),
    name="log_ndtr_slope", complex=False, samples=_of(lo=-5, hi=5))

_rule(sp.expit,     lambda g, y, x: g * (y * (1 - y)))
_rule(sp.logit,     lambda g, y, x: g / (x * (1 - x)), domain=(0.1, 0.9))
_rule(sp.log_expit, lambda g, y, x: g * sp.expit(-x))
_rule(sp.erf,       lambda g, y, x: g * (2 / ROOT_PI * np.exp(-x * x)), complex=True)
_rule(sp.erfc,      lambda g, y, x: g * (-2 / ROOT_PI * np.exp(-x * x)), complex=True)
_rule(sp.erfcx,     lambda g, y, x: g * ERFCX_SLOPE(x), complex=True)
_rule(sp.erfi,      lambda g, y, x: g * (2 / ROOT_PI * np.exp(x * x)), complex=True)
_rule(sp.dawsn,     lambda g, y, x: g * DAWSN_SLOPE(x), complex=True)
_rule(sp.wofz,      lambda g, y, x: g * WOFZ_SLOPE(x), complex=True)
_rule(sp.erfinv,    lambda g, y, x: g * (ROOT_PI / 2 * np.exp(y * y)), domain=(-0.9, 0.9))
_rule(sp.erfcinv,   lambda g, y, x: g * (-ROOT_PI / 2 * np.exp(y * y)), domain=(0.1, 1.9))
_rule(sp.ndtr,      lambda g, y, x: g * (np.exp(-0.5 * x * x) / ROOT_2PI), complex=True)
_rule(sp.log_ndtr,  lambda g, y, x: g * LOG_NDTR_SLOPE(x))
_rule(sp.ndtri,     lambda g, y, x: g * (ROOT_2PI * np.exp(0.5 * y * y)), domain=(0.1, 0.9))
_rule(sp.ndtri_exp, lambda g, y, x: g * (sp.erfcx(y / -ROOT_2) / ROOT_2_PI), domain=(-3, -0.2))
_rule(sp.voigt_profile, lambda g, y, x, sigma, gamma: g * VOIGT(x, sigma, gamma, n=1),
                        lambda g, y, x, sigma, gamma: g * (sigma * VOIGT(x, sigma, gamma, n=2)),
                        lambda g, y, x, sigma, gamma: g * VOIGT(x, sigma, gamma, n=1, turns=1),
                        samples=_three([(-2, 2), (0.4, 3), (0.4, 3)]))
_rule(sp.owens_t,   lambda g, y, h, a: g * (-0.5 / ROOT_2PI * np.exp(-0.5 * h * h) * sp.erf(h * a / ROOT_2)),
                    lambda g, y, h, a: g * (np.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))))

# fmt: on


@rewrite(sp.expit, rules=LOWER)
def by_exponentials(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Of many numbers, in the code that runs: SciPy takes one at a time."""
    many = elements_of(node) >= MANY and node.aval.dtype.char in "fd" and args[0].aval == node.aval
    return s.graph.add(EXPIT, args, (), node.aval) if many and not s.exact else None


# fmt: off

# -- gamma and beta functions --------------------------------------------------------------------------------------


def polygamma(n: Any, x: Any) -> Any:
    """The ``n``-th derivative of ``digamma``."""
    return POLYGAMMA(n, array_of(x))


def zeta(x: Any, q: Any = None) -> Any:
    """Hurwitz' zeta function, Riemann's for ``q=None``. By ``x`` it has no derivative rule."""
    return RIEMANN(array_of(x)) if q is None else ZETA(array_of(x), array_of(q))


def _polygamma(n: Any, x: Any) -> Any:
    """SciPy's; of complex numbers by DLMF 5.15.5 and 5.15.8, from where ``x`` is far enough from 0 and the poles."""
    if dtype_of(x).kind != "c":
        return sp.polygamma(n, x)
    z, order, total = np.asarray(x, complex), np.maximum(n, 1), np.zeros((), complex)
    while np.any(near := (np.abs(z) < 15 + order) | ((z.real < 0) & (np.abs(z.imag) < 30 + order))):
        total = total + np.where(near, np.where(near, z, 1) ** (-1.0 - order), 0)
        z = z + near
    tail: Any = 0
    for k in range(12, 0, -1):
        tail = tail / (z * z) + BERNOULLI[2 * k] / math.factorial(2 * k) * sp.poch(order + 1, 2 * k - 1)
    total = total + z**-order * (1 / order + 0.5 / z + tail / (z * z))
    return np.where(n == 0, sp.digamma(x), (-1) ** (order + 1) * sp.gamma(order + 1) * total).astype(x.dtype)[()]


BERNOULLI = sp.bernoulli(24)
_ORDERS: Any = ((0, (3, 4)), (1, (5,)), (2, ()), (3, (2, 1)), (1, (0,)), (5, (2,)))
_SHIFTED = [Sample(n, A(*shape, lo=0.5, hi=3)) for n, shape in _ORDERS]
POLYGAMMA = Op(_polygamma, "elementwise", (None, lambda g, y, n, x: g * polygamma(n + 1, x)), name="polygamma",
               samples=_SHIFTED)
RIEMANN = Op(sp.zeta, "elementwise", (_no_rule("zeta", "x"),), name="riemann")
ZETA = Op(sp.zeta, "elementwise", (_no_rule("zeta", "x"), lambda g, y, x, q: g * (-x * zeta(x + 1, q))), name="zeta",
          complex=False, samples=[Sample(s.args[0] + 2.5, s.args[1]) for s in _SHIFTED])



def _rgamma_slope(y: Any, x: Any) -> Any:
    """Of ``1 / gamma(x)``; to the left of 1/2, where that has zeros and ``digamma`` poles, by reflection (DLMF 5.5.3)."""
    left = x < 0.5
    z = 1 - np.where(left, x, 0.5)
    mirrored = sp.gamma(z) * (np.cos(math.pi * x) - np.sin(math.pi * x) * sp.digamma(z) / math.pi)
    return np.where(left, mirrored, -y * sp.digamma(np.where(left, 0.5, x)))


def _digammas(x: Any, m: Any) -> Any:
    """``digamma(x + m) - digamma(x)``; for whole ``m``, where both have poles, by reflection (DLMF 5.5.4): cotangents, which
    cancel there, have a slope by ``m``."""
    left = (x < 0.5) & (x + m < 0.5) & (m == np.round(m))
    between = left & (x != np.round(x))
    cancelled = np.where(between, (m - np.round(m)) * (math.pi / np.sin(math.pi * np.where(between, x, 0.5))) ** 2, 0)
    return sp.digamma(np.where(left, 1 - x - m, x + m)) - sp.digamma(np.where(left, 1 - x, x)) + cancelled


def _at_zeros(x: Any, slope: Any) -> Any:
    """The derivative of ``sin(pi x) / pi * f(x)`` over ``f(x)``, given that of the logarithm of ``f``."""
    return np.cos(math.pi * x) + np.sin(math.pi * x) * slope / math.pi


def _poch_slope(y: Any, z: Any, m: Any) -> Any:
    """... by ``z``; where ``1 / gamma(z)`` may be 0, of ``gamma(z + m) gamma(1 - z) sin(pi z) / pi``."""
    zeros = (z < 0.5) & (z + m >= 0.5)
    x, n = np.where(zeros, z, 0.5), np.where(zeros, m, 0.5)
    near = sp.gamma(x + n) * sp.gamma(1 - x) * _at_zeros(x, sp.digamma(x + n) - sp.digamma(1 - x))
    mirrored = (z < 0.5) & (z + m < 0.5) & (m != np.round(m))
    beyond = _mirrored_poch_slope(np.where(mirrored, z, -0.5), np.where(mirrored, m, 0.25))
    rest = y * _digammas(np.where(zeros | mirrored, 1, z), np.where(zeros | mirrored, 1, m))
    return np.where(zeros, near, np.where(mirrored, beyond, rest))


def _mirrored_poch_slope(z: Any, m: Any) -> Any:
    """The same of ``poch(1 - z - m, m) sin(pi z) / sin(pi (z + m))`` (DLMF 5.5.3)."""
    below = np.sin(math.pi * (z + m))
    slope = math.pi * np.sin(math.pi * m) / below**2
    logs = sp.digamma(1 - z - m) - sp.digamma(1 - z)
    return sp.poch(1 - z - m, m) * (slope + np.sin(math.pi * z) / below * logs)


def _beta_slope(y: Any, a: Any, b: Any) -> Any:
    """By ``a``; where ``1 / gamma(a + b)`` may be 0, of ``beta(a, 1 - a - b) sin(pi (a + b)) / sin(pi b)``."""
    zeros = (a + b < 0.5) & (a != np.round(a)) & (b != np.round(b))
    x, n = np.where(zeros, a, 0.25), np.where(zeros, b, 0.125)
    rest, least = 1 - x - n, x < n
    scale = math.pi * sp.beta(np.where(least, n, x), rest) / np.sin(math.pi * np.where(least, x, n))
    near = scale * _at_zeros(x + n, sp.digamma(x) - sp.digamma(rest))
    return np.where(zeros, near, -y * _digammas(np.where(zeros, 1, a), np.where(zeros, 1, b)))


def _binom_slope(y: Any, n: Any, k: Any, by_k: bool) -> Any:
    """The same for ``1 / gamma(n - k + 1)``, of ``beta(n + 1, k - n)``."""
    zeros = (k - n > 0.5) & (n >= -0.5)
    a, b = np.where(zeros, n, 0), np.where(zeros, k, 1)
    slope = sp.digamma((b if by_k else a) + 1) - sp.digamma(b - a)
    near = (-1 if by_k else 1) * sp.beta(a + 1, b - a) * _at_zeros(a - b + 1, slope)
    n, k = np.where(zeros, 1, n), np.where(zeros, 1, k)
    logs = sp.digamma(n - k + 1) - sp.digamma(k + 1) if by_k else _digammas(n - k + 1, k)
    return np.where(zeros, near, y * logs)


_POSITIVE = (0.4, 3)
for _digamma in {sp.digamma, sp.psi}:
    _rule(_digamma, lambda g, y, x: g * polygamma(1, x), domain=_POSITIVE, complex=True)
constant(sp.gammasgn, sp.round, complex=False)
_rule(sp.gamma,     lambda g, y, x: g * (y * sp.digamma(x)), domain=_POSITIVE, complex=True)
_rule(sp.gammaln,   lambda g, y, x: g * sp.digamma(x), domain=_POSITIVE)
_rule(sp.loggamma,  lambda g, y, x: g * sp.digamma(x), domain=_POSITIVE, complex=True)
_rule(sp.rgamma,    lambda g, y, x: g * _rgamma_slope(y, x), domain=(-3, 3))
_rule(sp.beta,      lambda g, y, a, b: g * _beta_slope(y, a, b), lambda g, y, a, b: g * _beta_slope(y, b, a),
                    domain=_POSITIVE)
_rule(sp.betaln,    lambda g, y, a, b: g * -_digammas(a, b), lambda g, y, a, b: g * -_digammas(b, a), domain=_POSITIVE)
_rule(sp.binom,     lambda g, y, n, k: g * _binom_slope(y, n, k, False), lambda g, y, n, k: g * _binom_slope(y, n, k, True),
                    domain=[(3.2, 4.8), (0.3, 2.8)])
_rule(sp.poch,      lambda g, y, z, m: g * _poch_slope(y, z, m), lambda g, y, z, m: g * (y * sp.digamma(z + m)),
                    domain=_POSITIVE)


# ``base**power * exp(log)``, with its derivatives where the base is 0
POWER_EXP: Op = Op(
    lambda base, power, log: np.exp(sp.xlogy(power, base) + log), "elementwise",
    (lambda g, y, base, power, log: g * (power * POWER_EXP(base, power - ((power != 0) | (base != 0)), log)),
     lambda g, y, base, power, log: g * sp.xlogy(y, base + ((base == 0) & (power >= 0))),
     lambda g, y, base, power, log: g * y),
    name="power_exp", complex=False, samples=_three([(0.3, 2), (0.4, 3), (-1, 1)]))

HUGE, LARGE = 1e30, 700.0  # the exponential of the latter does not overflow


def _gamma_density(a: Any, x: Any) -> Any:
    x = np.minimum(x, HUGE)  # to have 0 at infinity
    return POWER_EXP(x, a - 1, -x - sp.gammaln(a))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    upper = x > 0.5  # the end that is near has the power, which has its derivatives there; the other one is in the logarithm
    near, power, other = np.where(upper, 1 - x, x), np.where(upper, b, a) - 1, np.where(upper, a, b) - 1
    return POWER_EXP(near, power, sp.xlog1py(other, -near) - sp.betaln(a, b))


# -- by their shapes: integrals over a tail of the density times the derivative of its logarithm, which there has one sign


def _nodes(step: float = 1 / 32, end: float = 3.4) -> tuple[Any, Any]:
    """Nodes and weights on [0, 1], dense at the ends. H. Takahasi, M. Mori, Publ. RIMS 9 (1974) 721: double exponentials."""
    u = np.arange(-end, end + step / 2, step)
    nodes = 1 / (1 + np.exp(-math.pi * np.sinh(u)))
    return nodes, step * math.pi * np.cosh(u) * nodes * (1 - nodes)


NODES, WEIGHTS = _nodes()
FALL = 50.0  # beyond where the density has fallen by exp(-FALL), nothing is counted


ROWS = 128  # integrals at once: what they are made of stays near


def _column(x: Any) -> Any:
    return np.expand_dims(array_of(x), -1)


def _in_blocks(fun: Any) -> Any:
    """An elementwise function that makes much of each element, of few at a time."""

    @functools.wraps(fun)
    def blocks(*args: Any, **params: Any) -> Any:
        shape = np.broadcast_shapes(*map(np.shape, args))
        if (size := math.prod(shape)) <= ROWS:
            return fun(*args, **params)
        rows = [x if np.ndim(x) == 0 else np.broadcast_to(x, shape).ravel() for x in args]
        parts = [[x if np.ndim(x) == 0 else x[i : i + ROWS] for x in rows] for i in range(0, size, ROWS)]
        return np.concatenate([fun(*part, **params) for part in parts]).reshape(shape)

    return blocks


def _psi(n: int, x: Any) -> Any:
    return polygamma(n, x) if n else sp.digamma(x)


def _bell(logs: Any, n: int, m: int = 0) -> Any:
    """The derivative of a density, ``n`` times by one shape and ``m`` times by another, over the density: of those of its
    logarithm, ``logs(i, j)`` (Bell's polynomials)."""
    if n + m == 1:
        return logs(n, m)
    found: dict[tuple[int, int], Any] = {(0, 0): 1.0}
    logs = functools.cache(logs)
    for i, j in itertools.product(range(n + 1), range(m + 1)):
        if i:
            terms = [(math.comb(i - 1, p) * math.comb(j, q), (p + 1, q), (i - 1 - p, j - q))
                     for p, q in itertools.product(range(i), range(j + 1))]
        else:
            terms = [(math.comb(j - 1, q), (0, q + 1), (0, j - 1 - q)) for q in range(j)]
        if terms:
            found[i, j] = functools.reduce(operator.add, [times * (logs(*one) * found[rest]) for times, one, rest in terms])
    return found[n, m]


def _log_from(x: Any, shape: Any) -> Any:
    """The logarithm, but 0 at 0 where a power by the ``shape`` has no pole: the derivative of ``0**0`` is 0."""
    return np.log(x + ((x == 0) & (shape >= 1)))


def _gamma_logs(a: Any, log: Any) -> Any:
    """The derivatives of the logarithm of the density by ``a``."""
    return lambda i, j: (log if i == 1 else 0) - _psi(i - 1, a)


@_in_blocks
def _gammainc_slope(a: Any, x: Any, n: int = 1, root: bool = False) -> Any:
    """By ``a``, ``n`` times, of ``x`` or, given its root, of that squared: with t = exp(v), the integral of exp(a v - e^v) /
    gamma(a) (DLMF 8.2.4) times what that brings, the first time v - digamma(a)."""
    a, x = _column(a), _column(x * x if root else x)
    inside = (x > 0) & (x < np.inf)
    x = np.where(inside, x, 1.0)
    log, mean = np.log(x), sp.digamma(a)
    upper = log > mean + 1 / a
    width = np.where(upper, np.log1p(FALL / x) + 10 / np.sqrt(x), (FALL + x) / a)
    v = np.where(upper, width, -width) * NODES  # from log(x)
    density = np.exp(a * v - x * np.expm1(v) + (a * log - x - sp.gammaln(a)))
    terms = np.where(upper, -1.0, 1.0) * density * _bell(_gamma_logs(a, log + v), n)
    return np.sum(np.where(inside, width * WEIGHTS * terms, 0.0), axis=-1)


def _beta_logs(a: Any, b: Any, log: Any, log_rest: Any) -> Any:
    """The derivatives of the logarithm of the density by ``a`` and ``b``."""

    def at(i: int, j: int) -> Any:
        both = _psi(i + j - 1, a + b)
        if i and j:
            return both
        return both - _psi(i + j - 1, a if i else b) + ((log if i else log_rest) if i + j == 1 else 0)

    return at


@_in_blocks
def _betainc_slope(a: Any, b: Any, x: Any, rest: Any, n: int = 1, m: int = 0) -> Any:
    """By ``a``, ``n`` times, and by ``b``: with v the logit of t, the integral of exp(a v) / (1 + e^v)^(a + b) / beta(a, b)
    (DLMF 8.17.1) times what that brings, the first time log(t) - digamma(a) + digamma(a + b). The ``rest`` of 1 beside ``x``
    may be too small to tell ``x`` from 1."""
    if not n:
        return -_betainc_slope(b, a, rest, x, m)
    a, b, x, rest = _column(a), _column(b), _column(x), _column(rest)
    inside = (x > 0) & (rest > 0)
    x, rest = np.where(inside, x, 0.5), np.where(inside, rest, 0.5)
    log, log_rest = _logs(x, rest)
    upper = log > sp.digamma(a) - sp.digamma(a + b) + 1 / a - 1 / (a + b)
    near, far = np.where(upper, b, a), np.where(upper, rest, x)
    width = (FALL - (a + b) * np.log1p(-far)) / near
    v = -width * NODES  # from the logit of x, away from the middle
    moved = np.log1p(far * np.expm1(v))
    density = np.exp(near * v - (a + b) * moved + (a * log + b * log_rest - sp.betaln(a, b)))
    rests = log_rest + np.where(upper, v, 0.0) - moved if m else None  # else nothing is made of them
    logs = _beta_logs(a, b, log + np.where(upper, 0.0, v) - moved, rests)
    terms = np.where(upper, -1.0, 1.0) * density * _bell(logs, n, m)
    return np.sum(np.where(inside, width * WEIGHTS * terms, 0.0), axis=-1)


def _logs(x: Any, rest: Any) -> tuple[Any, Any]:
    """Of two numbers that are 1 together."""
    log = np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(x))
    return log, np.where(x < 0.5, np.log1p(-np.minimum(x, 0.5)), np.log(rest))


def _from_zero(terms: Any, x: Any, inner: Any, width: Any) -> Any:
    """The integral from 0 to ``x`` of a density's derivative by a shape, which ``terms`` has times s, given log(s): or, as all
    of it is 0, that of the tail from ``x`` on, of so much ``width`` in log(s)."""
    log = np.log(x) + np.where(inner, np.log(NODES), width * NODES)
    return np.sum(terms(log) * np.where(inner, WEIGHTS / NODES, -width * WEIGHTS), axis=-1)


# by the shapes ``n`` times, and by the argument what that makes of the density: it is not 0 where these are
_GAMMA, _GAMMA_INVERSE = [_POSITIVE, (0.3, 2.5)], [_POSITIVE, (0.1, 0.9)]
_BETA = [_POSITIVE, _POSITIVE, (0.1, 0.9)]
GAMMAINC_A: Op = Op(
    _gammainc_slope, "elementwise",
    (lambda g, y, a, x, n=1, root=False: g * GAMMAINC_A(a, x, n=n + 1, root=root),
     lambda g, y, a, x, n=1, root=False: g * _gamma_density_a(a, x, n, root)),
    name="gammainc_a", complex=False, samples=_three(_GAMMA))
BETAINC_AB: Op = Op(
    _betainc_slope, "elementwise",
    (lambda g, y, a, b, x, rest, n=1, m=0: g * BETAINC_AB(a, b, x, rest, n=n + 1, m=m),
     lambda g, y, a, b, x, rest, n=1, m=0: g * BETAINC_AB(a, b, x, rest, n=n, m=m + 1),
     lambda g, y, a, b, x, rest, n=1, m=0: g * _beta_density_ab(a, b, x, rest, n, m),
     None), name="betainc_ab")


def _gamma_density_a(a: Any, x: Any, n: int, root: bool) -> Any:
    if root:
        return _gamma_root_density(a, x) * _bell(_gamma_logs(a, 2 * _log_from(np.minimum(x, HUGE), 2 * a)), n)
    return _gamma_density(a, x) * _bell(_gamma_logs(a, _log_from(np.minimum(x, HUGE), a)), n)


def _beta_density_ab(a: Any, b: Any, x: Any, rest: Any, n: int, m: int) -> Any:
    ends = np.where(x < 0.5, _log_from(x, a), 0), np.where(rest < 0.5, _log_from(rest, b), 0)
    logs = [np.where(z < 0.5, end, np.log1p(-np.minimum(w, 0.5))) for z, w, end in ((x, rest, ends[0]), (rest, x, ends[1]))]
    return _beta_density(a, b, x) * _bell(_beta_logs(a, b, *logs), n, m)


def _betainc_a(a: Any, b: Any, x: Any) -> Any:
    return BETAINC_AB(a, b, x, 1 - x)


def _betainc_b(a: Any, b: Any, x: Any) -> Any:
    return BETAINC_AB(a, b, x, 1 - x, n=0, m=1)


def _none(*zero: Any) -> Any:
    """1 where all are zero: what to divide by there, for 0/0 to be 0."""
    both = zero[0] == 0
    for x in zero[1:]:
        both = both & (x == 0)
    return both


def _ratio(slope: Any, density: Any) -> Any:
    """0 where both are: at an end, which is the same for all shapes."""
    return slope / (density + _none(slope, density))


_rule(sp.gammainc,     lambda g, y, a, x: g * GAMMAINC_A(a, x), lambda g, y, a, x: g * _gamma_density(a, x), domain=_GAMMA)
_rule(sp.gammaincc,    lambda g, y, a, x: g * -GAMMAINC_A(a, x), lambda g, y, a, x: g * -_gamma_density(a, x), domain=_GAMMA)
_rule(sp.gammaincinv,  lambda g, y, a, p: g * -_ratio(GAMMAINC_A(a, y), _gamma_density(a, y)),
                       lambda g, y, a, p: g / _gamma_density(a, y), domain=_GAMMA_INVERSE)
_rule(sp.gammainccinv, lambda g, y, a, p: g * -_ratio(GAMMAINC_A(a, y), _gamma_density(a, y)),
                       lambda g, y, a, p: g / -_gamma_density(a, y), domain=_GAMMA_INVERSE)
_rule(sp.betainc,      lambda g, y, a, b, x: g * _betainc_a(a, b, x), lambda g, y, a, b, x: g * _betainc_b(a, b, x),
                       lambda g, y, a, b, x: g * _beta_density(a, b, x), samples=_three(_BETA))
_rule(sp.betaincc,     lambda g, y, a, b, x: g * -_betainc_a(a, b, x), lambda g, y, a, b, x: g * -_betainc_b(a, b, x),
                       lambda g, y, a, b, x: g * -_beta_density(a, b, x), samples=_three(_BETA))
_rule(sp.betaincinv,   lambda g, y, a, b, p: g * -_ratio(_betainc_a(a, b, y), _beta_density(a, b, y)),
                       lambda g, y, a, b, p: g * -_ratio(_betainc_b(a, b, y), _beta_density(a, b, y)),
                       lambda g, y, a, b, p: g / _beta_density(a, b, y), samples=_three(_BETA))
_rule(sp.betainccinv,  lambda g, y, a, b, p: g * -_ratio(_betainc_a(a, b, y), _beta_density(a, b, y)),
                       lambda g, y, a, b, p: g * -_ratio(_betainc_b(a, b, y), _beta_density(a, b, y)),
                       lambda g, y, a, b, p: g / -_beta_density(a, b, y), samples=_three(_BETA))

# -- logarithms, powers, divergences -------------------------------------------------------------------------------


def _whole(n: Any) -> Any:
    """An order as SciPy takes it, cut off to an integer."""
    return n if dtype_of(n).kind in "iu" else np.trunc(n)


_rule(sp.xlogy,    lambda g, y, x, z: g * np.log(z + _none(x, z)),
                   lambda g, y, x, z: g * (x / (z + _none(x, z))), domain=[(-2, 2), (0.4, 2)], complex=True)
_rule(sp.xlog1py,  lambda g, y, x, z: g * np.log1p(z + _none(x, 1 + z)),
                   lambda g, y, x, z: g * (x / (1 + z + _none(x, 1 + z))), domain=[(-2, 2), (-0.6, 2)], complex=True)
_rule(sp.entr,     lambda g, y, x: g * (-np.log(x) - 1), domain=(0.3, 2))
_rule(sp.rel_entr, lambda g, y, x, z: g * (np.log(x / (z + _none(x, z)) + _none(x, z)) + 1),
                   lambda g, y, x, z: g * -(x / (z + _none(x, z))), domain=(0.3, 2))
_rule(sp.kl_div,   lambda g, y, x, z: g * np.log(x / (z + _none(x, z)) + _none(x, z)),
                   lambda g, y, x, z: g * (1 - x / (z + _none(x, z))), domain=(0.3, 2))
_rule(sp.exp2,     lambda g, y, x: g * (LN2 * y))
_rule(sp.exp10,    lambda g, y, x: g * (LN10 * y))
_rule(sp.expm1,    lambda g, y, x: g * np.exp(x), complex=True)
_rule(sp.log1p,    lambda g, y, x: g / (x + 1), domain=(-0.5, 2), complex=True)
_rule(sp.cbrt,     lambda g, y, x: g / (3 * y * y), domain=(0.5, 3))
_rule(sp.cosm1,    lambda g, y, x: g * -np.sin(x))
_rule(sp.sindg,    lambda g, y, x: g * (DEGREE * sp.cosdg(x)), domain=(-80, 80))
_rule(sp.cosdg,    lambda g, y, x: g * (-DEGREE * sp.sindg(x)), domain=(-80, 80))
_rule(sp.tandg,    lambda g, y, x: g * (DEGREE * (1 + y * y)), domain=(-60, 60))
_rule(sp.cotdg,    lambda g, y, x: g * (-DEGREE * (1 + y * y)), domain=(20, 70))
_rule(sp.powm1,    lambda g, y, x, p: g * (p * x ** (p - ((p != 0) | (x != 0)))),
                   lambda g, y, x, p: g * sp.xlogy(y + 1, x + (x == 0)), domain=[(0.5, 2), (-2, 2)])


def _exprel_slope(x: Any) -> Any:
    """The derivative of ``exprel``; where ``x`` is small, its Taylor polynomial."""
    small = np.abs(x) < 0.5
    t = np.where(small, 1, x)
    near = np.polyval(np.array([1 / math.factorial(k) / (k + 2) for k in range(14, -1, -1)]), np.where(small, x, 0))
    return np.where(small, near, (np.exp(t) * (t - 1) + 1) / (t * t))


_rule(sp.exprel, lambda g, y, x: g * _exprel_slope(x))


def _boxcox_lmbda(x: Any, p: Any) -> Any:
    """The derivative of ``(exp(p l) - 1) / p``, ``l = log(x)``, by ``p``: ``l * l`` times that of ``exprel``."""
    end = (x == 0) & (p > 0)  # of ``-1 / p``
    log = np.log(np.where(end, 1, x))
    return np.where(end, 1 / np.where(end, p, 1) ** 2, log**2 * _exprel_slope(p * log))


_rule(sp.boxcox,       lambda g, y, x, p: g * x ** (p - 1),
                       lambda g, y, x, p: g * _boxcox_lmbda(x, p), domain=[(0.4, 3), (-2, 2)])
_rule(sp.boxcox1p,     lambda g, y, x, p: g * (1 + x) ** (p - 1),
                       lambda g, y, x, p: g * _boxcox_lmbda(1 + x, p), domain=[(-0.6, 2), (-2, 2)])
_rule(sp.inv_boxcox,   lambda g, y, z, p: g * y ** (1 - p),
                       lambda g, y, z, p: g * (-y ** (1 - p) * _boxcox_lmbda(y, p)), domain=[(-0.5, 0.7), (-1, 1.2)])
_rule(sp.inv_boxcox1p, lambda g, y, z, p: g * (1 + y) ** (1 - p),
                       lambda g, y, z, p: g * (-(1 + y) ** (1 - p) * _boxcox_lmbda(1 + y, p)), domain=[(-0.5, 0.7), (-1, 1.2)])
_rule(sp.huber,        lambda g, y, delta, r: g * np.maximum(np.abs(r) - delta, 0),
                       lambda g, y, delta, r: g * np.clip(r, -delta, delta), domain=[(0.5, 1), (-2, 2)])
_rule(sp.pseudo_huber, lambda g, y, delta, r: g * (r * np.sin(np.arctan2(r, delta)) * np.tan(0.5 * np.arctan2(r, delta)) ** 2),
                       lambda g, y, delta, r: g * (delta * np.sin(np.arctan2(r, delta))), domain=[(0.5, 1), (-2, 2)])
_rule(sp.wrightomega,  lambda g, y, z: g * (y / (1 + y)), complex=True)

# -- Bessel functions ----------------------------------------------------------------------------------------------


def _damped(ufunc: Any, turn: complex, slope: Any) -> None:
    """Register a Bessel function times ``exp(-abs(real(turn * z)))``, of which ``slope`` has the derivative but by that factor:
    by complex ``z`` it is not holomorphic."""
    refuse = _no_rule(ufunc.__name__, "v")

    def even(z: Any) -> bool:
        return turn != 1 and dtype_of(z).kind != "c"

    def vjp(g: Any, y: Any, v: Any, z: Any) -> Any:
        part = g * slope(v, z)
        return part if even(z) else part - turn * (np.sign(np.real(turn * z)) * np.real(g * y))

    def jvp(ts: Any, y: Any, v: Any, z: Any) -> Any:
        t = ts[1] if ts[0] is None else refuse(ts, y)
        part = t * slope(v, z)
        return part if even(z) else part - np.sign(np.real(turn * z)) * np.real(turn * t) * y

    _rule(ufunc, "v", vjp, jvp=_precisely(ufunc, jvp), samples=_of(1.5), complex=True)


_rule(sp.j0,  lambda g, y, x: g * -sp.j1(x))
_rule(sp.j1,  lambda g, y, x: g * (0.5 * (sp.j0(x) - sp.jv(2, x))))
_rule(sp.y0,  lambda g, y, x: g * -sp.y1(x), domain=_POSITIVE)
_rule(sp.y1,  lambda g, y, x: g * (0.5 * (sp.y0(x) - sp.yv(2, x))), domain=_POSITIVE)
_rule(sp.i0,  lambda g, y, x: g * sp.i1(x))
_rule(sp.i1,  lambda g, y, x: g * (0.5 * (sp.i0(x) + sp.iv(2, x))))
_rule(sp.k0,  lambda g, y, x: g * -sp.k1(x), domain=_POSITIVE)
_rule(sp.k1,  lambda g, y, x: g * (-0.5 * (sp.k0(x) + sp.kv(2, x))), domain=_POSITIVE)
_rule(sp.i0e, lambda g, y, x: g * (sp.i1e(x) - np.sign(x) * y))
_rule(sp.i1e, lambda g, y, x: g * (0.5 * (sp.i0e(x) + sp.ive(2, x)) - np.sign(x) * y))
_rule(sp.k0e, lambda g, y, x: g * (y - sp.k1e(x)), domain=_POSITIVE)
_rule(sp.k1e, lambda g, y, x: g * (y - 0.5 * (sp.k0e(x) + sp.kve(2, x))), domain=_POSITIVE)
_rule(sp.jv,  "v", lambda g, y, v, z: g * (0.5 * (sp.jv(v - 1, z) - sp.jv(v + 1, z))), samples=_of(1.5), complex=True)
_rule(sp.yv,  "v", lambda g, y, v, z: g * (0.5 * (sp.yv(v - 1, z) - sp.yv(v + 1, z))), samples=_of(1.5), complex=True)
_rule(sp.iv,  "v", lambda g, y, v, z: g * (0.5 * (sp.iv(v - 1, z) + sp.iv(v + 1, z))), samples=_of(1.5), complex=True)
_rule(sp.kv,  "v", lambda g, y, v, z: g * (-0.5 * (sp.kv(v - 1, z) + sp.kv(v + 1, z))), samples=_of(1.5), complex=True)
_rule(sp.kve, "v", lambda g, y, v, z: g * (y - 0.5 * (sp.kve(v - 1, z) + sp.kve(v + 1, z))), samples=_of(1.5), complex=True)
_rule(sp.hankel1, "v", lambda g, y, v, z: g * (0.5 * (sp.hankel1(v - 1, z) - sp.hankel1(v + 1, z))), samples=_of(1.5),
      complex=True)
_rule(sp.hankel2, "v", lambda g, y, v, z: g * (0.5 * (sp.hankel2(v - 1, z) - sp.hankel2(v + 1, z))), samples=_of(1.5),
      complex=True)
_damped(sp.ive, 1,   lambda v, z: 0.5 * (sp.ive(v - 1, z) + sp.ive(v + 1, z)))
_damped(sp.jve, -1j, lambda v, z: 0.5 * (sp.jve(v - 1, z) - sp.jve(v + 1, z)))
_damped(sp.yve, -1j, lambda v, z: 0.5 * (sp.yve(v - 1, z) - sp.yve(v + 1, z)))
_rule(sp.yn,  None, lambda g, y, n, x: g * (0.5 * (sp.yv(_whole(n) - 1.0, x) - sp.yv(_whole(n) + 1.0, x))), samples=_of(2))
_rule(sp.kn,  None, lambda g, y, n, x: g * (-0.5 * (sp.kv(_whole(n) - 1.0, x) + sp.kv(_whole(n) + 1.0, x))), samples=_of(2))
_rule(sp.struve, "v", lambda g, y, v, x: g * _struve_slope(sp.struve, -1, y, v, x), samples=_of(1.5))
_rule(sp.modstruve, "v", lambda g, y, v, x: g * _struve_slope(sp.modstruve, 1, y, v, x), samples=_of(1.5))


def _struve_slope(fun: Any, sign: int, y: Any, v: Any, x: Any) -> Any:
    """DLMF 11.4.24 and 11.4.26 where ``x`` is small; for the order 0, 11.4.28 and 11.4.30, which have no pole there then."""
    near, zero = np.abs(x) < 2, v == 0
    lower = fun(np.where(near & zero, 1, v) - 1, x)
    rest = sign * fun(v + 1, np.where(near, x, 0)) + (0.5 * np.where(near, x, 1)) ** v * (sp.rgamma(v + 1.5) / ROOT_PI)
    return np.where(near, np.where(zero, rest, 0.5 * (lower + rest)), lower - v * np.where(near, 0, y) / np.where(near, 1, x))


_rule(sp.wright_bessel, "a", "b", lambda g, y, a, b, x: g * sp.wright_bessel(a, b + a, x), samples=_of(0.7, 1.5))
if hasattr(sp, "log_wright_bessel"):  # since SciPy 1.14
    _rule(sp.log_wright_bessel, "a", "b", lambda g, y, a, b, x: g * np.exp(sp.log_wright_bessel(a, b + a, x) - y),
          samples=_of(0.7, 1.5))

# -- integrals -----------------------------------------------------------------------------------------------------

_rule(sp.exp1,   lambda g, y, x: g * -(np.exp(-x) / x), domain=_POSITIVE, complex=True)
_rule(sp.expi,   lambda g, y, x: g * (np.exp(x) / x), domain=_POSITIVE, complex=True)
_rule(sp.expn,   None, lambda g, y, n, x: g * -np.where(_whole(n) == 0, y + y / x, sp.expn(np.maximum(_whole(n) - 1, 0), x)),
      samples=_of(4))
_K, _E = (math.pi / 8, 1.5, 1.5, 2), (-math.pi / 8, 0.5, 1.5, 2)  # of derivatives of ``ellipk`` and ``ellipe``: see below
_rule(sp.spence,   lambda g, y, z: g * _by_series(1 - z, (-1, 1, 1, 2), lambda m: np.log(z) / m), domain=_POSITIVE)
_rule(sp.ellipk,   lambda g, y, m: g * _by_series(m, _K, lambda m: (sp.ellipe(m) / (1 - m) - sp.ellipk(m)) / (2 * m)),
      domain=(0.1, 0.9))
_rule(sp.ellipe,   lambda g, y, m: g * _by_series(m, _E, lambda m: (sp.ellipe(m) - sp.ellipk(m)) / (2 * m)), domain=(0.1, 0.9))
_rule(sp.ellipkm1, lambda g, y, p: g * -_by_series(1 - p, _K, lambda m: (sp.ellipe(m) / p - y) / (2 * m)), domain=(0.1, 0.9))
_rule(sp.ellipkinc, lambda g, y, phi, m: g / np.sqrt(1 - m * np.sin(phi) ** 2), lambda g, y, phi, m: g * _ellipkinc_m(phi, m),
      samples=_three([(-4, 4), (-0.9, 0.9)]))
_rule(sp.ellipeinc, lambda g, y, phi, m: g * np.sqrt(1 - m * np.sin(phi) ** 2),
                    lambda g, y, phi, m: g * -_carlsons(phi, m, lambda c, m: sp.elliprd(c, m, 1)),
      samples=_three([(-4, 4), (-0.9, 0.9)]))
_rule(sp.agm,      lambda g, y, a, b: g * _agm_slope(y, a, b), lambda g, y, a, b: g * _agm_slope(y, b, a), domain=_POSITIVE)


def _by_series(m: Any, series: tuple[float, ...], slope: Any) -> Any:
    """A slope that is 0/0 at 0, and whose own slopes lose their digits near that: there, a multiple of ``hyp2f1``."""
    near, (factor, a, b, c) = np.abs(m) < 0.1, series
    return np.where(near, factor * sp.hyp2f1(a, b, c, np.where(near, m, 0)), slope(np.where(near, 0.5, m)))


def _ellipkinc_m(phi: Any, m: Any) -> Any:
    return _carlsons(phi, m, lambda c, m: sp.elliprd(c, 1, m))


def _carlsons(phi: Any, m: Any, symmetric: Any) -> Any:
    """Derivatives of Legendre's integrals by ``m`` as Carlson's (DLMF 19.25.5, 19.25.9, 19.18.1), up to a quarter of a turn;
    the rest are half turns."""
    turns = np.round(phi / math.pi)
    sin, cos = np.sin(phi - math.pi * turns), np.cos(phi)
    half = np.where(turns == 0, 0, 2 * turns * symmetric(0, 1 - np.where(turns == 0, 0, m)))
    return (half + sin**3 * symmetric(cos * cos, 1 - m * sin * sin)) / 6


def _agm_slope(y: Any, a: Any, b: Any) -> Any:
    """By ``a``, of ``pi (a + b) / (4 K(m))``, where ``m = ((a - b) / (a + b))**2`` (DLMF 19.8.5)."""
    t, p, mean = (a - b) / (a + b), 4 * a * b / (a + b) ** 2, y / (a + b)
    slope = _by_series(t * t, _K, lambda m: (sp.ellipe(m) / p - sp.ellipkm1(p)) / (2 * m))
    return mean * (1 - 16 / math.pi * mean * t * slope * b / (a + b))


# -- Carlson's elliptic integrals ----------------------------------------------------------------------------------

TICKS = np.linspace(0, 1, 401)


def _powers_over(*bases: tuple[Any, float]) -> Any:
    """The integral of the product of ``(t + x)**-power`` over positive ``t``: by the trapezoidal rule in the logarithm of
    ``t``, of which that is analytic in a strip around the real line, so that no digits are lost."""
    _real("elliptic integrals", *[x for x, _ in bases])
    columns = [_column(x) for x, _ in bases]
    valid = functools.reduce(operator.and_, [x >= 0 for x in columns])
    columns = [np.where(valid, x, 1) for x in columns]
    top = functools.reduce(np.maximum, [STOP(x) for x in columns])
    least = functools.reduce(np.minimum, [np.where(x > 0, STOP(x), top) / top for x in columns])
    low = np.log(least) - 80
    width = 40 - low
    t = np.exp(low + width * TICKS)
    product = functools.reduce(operator.mul, [(t + x / top) ** -power for x, (_, power) in zip(columns, bases, strict=True)])
    total = np.sum(product * t, axis=-1) * (width[..., 0] / 400)
    scaled = total * top[..., 0] ** (1 - sum(power for _, power in bases))
    poles = functools.reduce(operator.or_, [(x == 0) & (power > 1) for x, (_, power) in zip(columns, bases, strict=True)])
    return np.where(valid[..., 0], np.where(poles[..., 0], np.inf, scaled), np.nan)


def _real(what: str, *args: Any) -> None:
    """Raise for complex numbers."""
    if any(dtype_of(x).kind == "c" for x in args):
        raise NotDifferentiable(f"scipy.special's {what} have no derivative rule for complex numbers")


def _elliprc_x(value: Any, x: Any, y: Any) -> Any:
    """Where ``y`` is negative, of the principal value (DLMF 19.2.20) as it is."""
    _real("elliptic integrals", x, y)
    positive = y > 0
    symmetric = sp.elliprd(np.where(positive, y, 1), np.where(positive, y, 1), np.where(positive, x, 1)) / -6
    x, y = np.where(positive, 1, x), np.where(positive, -1, y)
    return np.where(positive, symmetric, (value - 1 / np.sqrt(x)) / (2 * (y - x)))


def _elliprc_y(value: Any, x: Any, y: Any) -> Any:
    _real("elliptic integrals", x, y)
    positive = y > 0
    symmetric = sp.elliprd(np.where(positive, x, 1), np.where(positive, y, 1), np.where(positive, y, 1)) / -3
    x, y = np.where(positive, 1, x), np.where(positive, -1, y)
    return np.where(positive, symmetric, -(value + (x * value - np.sqrt(x)) / (y - x)) / (2 * y))


def _elliprd_x(x: Any, y: Any, z: Any) -> Any:
    return -0.75 * _powers_over((x, 1.5), (y, 0.5), (z, 1.5))


def _elliprg_x(x: Any, y: Any, z: Any) -> Any:
    return sp.elliprf(x, y, z) / 4 - np.where(x == 0, 0, x * sp.elliprd(y, z, np.where(x == 0, 1, x))) / 12


def _elliprj_x(x: Any, y: Any, z: Any, p: Any) -> Any:
    return -0.75 * _powers_over((x, 1.5), (y, 0.5), (z, 0.5), (p, 1.0))


_AWAY = (0.3, 3)
_rule(sp.elliprc, lambda g, r, x, y: g * _elliprc_x(r, x, y), lambda g, r, x, y: g * _elliprc_y(r, x, y), domain=_AWAY)
_rule(sp.elliprf, lambda g, r, x, y, z: g * (sp.elliprd(y, z, x) / -6), lambda g, r, x, y, z: g * (sp.elliprd(x, z, y) / -6),
                  lambda g, r, x, y, z: g * (sp.elliprd(x, y, z) / -6), samples=_three([_AWAY] * 3))
_rule(sp.elliprg, lambda g, r, x, y, z: g * _elliprg_x(x, y, z), lambda g, r, x, y, z: g * _elliprg_x(y, x, z),
                  lambda g, r, x, y, z: g * _elliprg_x(z, x, y), samples=_three([_AWAY] * 3))
_rule(sp.elliprd, lambda g, r, x, y, z: g * _elliprd_x(x, y, z), lambda g, r, x, y, z: g * _elliprd_x(y, x, z),
                  lambda g, r, x, y, z: g * (-2.25 * _powers_over((x, 0.5), (y, 0.5), (z, 2.5))), samples=_three([_AWAY] * 3))
_rule(sp.elliprj, lambda g, r, x, y, z, p: g * _elliprj_x(x, y, z, p), lambda g, r, x, y, z, p: g * _elliprj_x(y, x, z, p),
                  lambda g, r, x, y, z, p: g * _elliprj_x(z, x, y, p),
                  lambda g, r, x, y, z, p: g * (-1.5 * _powers_over((x, 0.5), (y, 0.5), (z, 0.5), (p, 2.0))),
      samples=[Sample(*[A(*shape, lo=0.3, hi=3) for shape in each]) for each in (((5,), (), (5,), (1,)), ((), (), (), ()))])

# -- distribution functions ----------------------------------------------------------------------------------------


def _t_density(df: Any, t: Any) -> Any:
    df = np.minimum(df, HUGE)  # to have the normal density at infinity
    return np.exp(-sp.betaln(0.5 * df, 0.5) - 0.5 * np.log(df) - 0.5 * (df + 1) * np.log1p(t * t / df))


def _t_logs(df: Any, square: Any, grown: Any) -> Any:
    """The derivatives of the logarithm of the density by ``df``, given t^2 and log(1 + t^2 / df)."""
    total = df + square

    def at(i: int, j: int) -> Any:
        gammas = (_psi(i - 1, 0.5 * (df + 1)) - _psi(i - 1, 0.5 * df)) / 2**i
        if i == 1:  # where ``df`` is large, these are nearly 0
            return gammas - 0.5 / df + 0.5 * ((1 + 1 / df) * square / total - grown)
        powers = df ** (1 - i) - i * total ** (1 - i) + (i - 1) * (df + 1) * total**-i
        return gammas + 0.5 * (-1) ** i * math.factorial(i - 2) * powers

    return at


@_in_blocks
def _stdtr_slope(df: Any, t: Any, n: int = 1) -> Any:
    df, t = np.minimum(_column(df), HUGE), _column(t)
    inside = (t != 0) & (np.abs(t) < np.inf)
    x = np.where(inside, np.abs(t), 1)
    grown = np.logaddexp(0, 2 * np.log(x) - np.log(df))
    inner = _t_logs(df, np.exp(np.minimum(2 * np.log(x), LARGE)), grown)(1, 0) > 0
    ends = 2 * FALL / df + grown  # of log(1 + s^2 / df)
    width = 0.5 * (np.log(df) + ends + np.log(-np.expm1(-ends))) - np.log(x)

    def terms(log: Any) -> Any:
        grown = np.logaddexp(0, 2 * log - np.log(df))
        density = np.exp(log - 0.5 * (df + 1) * grown - sp.betaln(0.5 * df, 0.5) - 0.5 * np.log(df))
        return density * _bell(_t_logs(df, np.exp(np.minimum(2 * log, LARGE)), grown), n)

    return np.where(inside, np.sign(t), 0)[..., 0] * _from_zero(terms, x, inner, width)


STDTR_DF: Op = Op(
    _stdtr_slope, "elementwise",
    (lambda g, y, df, t, n=1: g * STDTR_DF(df, t, n=n + 1),
     lambda g, y, df, t, n=1: g * _t_density_df(np.minimum(df, HUGE), t, n)),
    name="stdtr_df", complex=False, samples=_three([(1.5, 6), (-2, 2)]))


def _t_density_df(df: Any, t: Any, n: int) -> Any:
    grown = np.minimum(np.log1p(t * t / df), HUGE)  # to have 0 at infinity
    return _t_density(df, t) * _bell(_t_logs(df, np.minimum(t * t, HUGE), grown), n)


def _f_density(power: Any, n: Any, d: Any, x: Any) -> Any:
    """With another power of ``x`` than ``n / 2 - 1``, if it is to be multiplied by ``x``."""
    logs = 0.5 * n * np.log(n) + 0.5 * d * np.log(d) - 0.5 * (n + d) * np.log(d + n * x)
    return POWER_EXP(x, power, logs - sp.betaln(0.5 * n, 0.5 * d))


def _fdtr_n(n: Any, d: Any, x: Any) -> Any:
    return 0.5 * BETAINC_AB(0.5 * n, 0.5 * d, n * x / (d + n * x), d / (d + n * x)) + _f_density(0.5 * n, n, d, x) / n


def _fdtr_d(n: Any, d: Any, x: Any) -> Any:
    slope = BETAINC_AB(0.5 * n, 0.5 * d, n * x / (d + n * x), d / (d + n * x), n=0, m=1)
    return 0.5 * slope - _f_density(0.5 * n, n, d, x) / d


_STUDENT = [(1.5, 6), (-2, 2)]
_rule(sp.stdtr,   lambda g, y, df, t: g * STDTR_DF(df, t), lambda g, y, df, t: g * _t_density(df, t), domain=_STUDENT)
_rule(sp.stdtrit, lambda g, y, df, p: g * -_ratio(STDTR_DF(df, y), _t_density(df, y)),
                  lambda g, y, df, p: g / _t_density(df, y), domain=[(1.5, 6), (0.1, 0.9)])
_rule(sp.chdtr,   lambda g, y, v, x: g * (0.5 * GAMMAINC_A(0.5 * v, 0.5 * x)),
                  lambda g, y, v, x: g * (0.5 * _gamma_density(0.5 * v, 0.5 * x)), domain=_POSITIVE)
_rule(sp.chdtrc,  lambda g, y, v, x: g * (-0.5 * GAMMAINC_A(0.5 * v, 0.5 * x)),
                  lambda g, y, v, x: g * (-0.5 * _gamma_density(0.5 * v, 0.5 * x)), domain=_POSITIVE)
_rule(sp.chdtri,  lambda g, y, v, p: g * -_ratio(GAMMAINC_A(0.5 * v, 0.5 * y), _gamma_density(0.5 * v, 0.5 * y)),
                  lambda g, y, v, p: g * (-2 / _gamma_density(0.5 * v, 0.5 * y)), domain=[_POSITIVE, (0.1, 0.9)])
_rule(sp.fdtr,    lambda g, y, n, d, x: g * _fdtr_n(n, d, x), lambda g, y, n, d, x: g * _fdtr_d(n, d, x),
                  lambda g, y, n, d, x: g * _f_density(0.5 * n - 1, n, d, x), samples=_three([_POSITIVE] * 3))
_rule(sp.fdtrc,   lambda g, y, n, d, x: g * -_fdtr_n(n, d, x), lambda g, y, n, d, x: g * -_fdtr_d(n, d, x),
                  lambda g, y, n, d, x: g * -_f_density(0.5 * n - 1, n, d, x), samples=_three([_POSITIVE] * 3))
_rule(sp.fdtri,   lambda g, y, n, d, p: g * -_ratio(_fdtr_n(n, d, y), _f_density(0.5 * n - 1, n, d, y)),
                  lambda g, y, n, d, p: g * -_ratio(_fdtr_d(n, d, y), _f_density(0.5 * n - 1, n, d, y)),
                  lambda g, y, n, d, p: g / _f_density(0.5 * n - 1, n, d, y),
      samples=_three([_POSITIVE, _POSITIVE, (0.1, 0.9)]))
_rule(sp.pdtr,    None, lambda g, y, k, m: g * -_gamma_density(np.floor(k) + 1, m), samples=_of(2.0))
_rule(sp.pdtrc,   None, lambda g, y, k, m: g * _gamma_density(np.floor(k) + 1, m), samples=_of(2.0))
_rule(sp.gdtr,    lambda g, y, a, b, x: g * (x * _gamma_density(b, a * x)), lambda g, y, a, b, x: g * GAMMAINC_A(b, a * x),
                  lambda g, y, a, b, x: g * (a * _gamma_density(b, a * x)), samples=_three([_POSITIVE] * 3))
_rule(sp.gdtrc,   lambda g, y, a, b, x: g * -(x * _gamma_density(b, a * x)), lambda g, y, a, b, x: g * -GAMMAINC_A(b, a * x),
                  lambda g, y, a, b, x: g * -(a * _gamma_density(b, a * x)), samples=_three([_POSITIVE] * 3))
_rule(sp.gdtrix,  lambda g, y, a, b, p: g * (-y / a),
                  lambda g, y, a, b, p: g * -_ratio(GAMMAINC_A(b, a * y), a * _gamma_density(b, a * y)),
                  lambda g, y, a, b, p: g / (a * _gamma_density(b, a * y)), samples=_three([_POSITIVE, _POSITIVE, (0.1, 0.9)]))
_rule(sp.gdtria,  lambda g, y, p, b, x: g / (x * _gamma_density(b, x * y)),
                  lambda g, y, p, b, x: g * -_ratio(GAMMAINC_A(b, x * y), x * _gamma_density(b, x * y)),
                  lambda g, y, p, b, x: g * (-y / x), samples=_three([(0.1, 0.9), _POSITIVE, _POSITIVE]))
_rule(sp.gdtrib,  lambda g, y, a, p, x: g * -_ratio(x * _gamma_density(y, a * x), GAMMAINC_A(y, a * x)),
                  lambda g, y, a, p, x: g / GAMMAINC_A(y, a * x),
                  lambda g, y, a, p, x: g * -_ratio(a * _gamma_density(y, a * x), GAMMAINC_A(y, a * x)),
                  samples=_three([_POSITIVE, (0.1, 0.9), _POSITIVE]))

# -- parts of the formulas of symgrad.scipy.stats ------------------------------------------------------------------

# ``gammainc(a, x**2)``, ``gammaincc(a, x**2)`` and their inverses, with their derivatives where ``x`` is 0
GAMMAINC_SQUARE = Op(
    lambda a, x: sp.gammainc(a, x * x), "elementwise",
    (lambda g, y, a, x: g * GAMMAINC_A(a, x, root=True), lambda g, y, a, x: g * _gamma_root_density(a, x)),
    name="gammainc_square", complex=False, samples=_three(_GAMMA))
GAMMAINCC_SQUARE = Op(
    lambda a, x: sp.gammaincc(a, x * x), "elementwise",
    (lambda g, y, a, x: g * -GAMMAINC_A(a, x, root=True), lambda g, y, a, x: g * -_gamma_root_density(a, x)),
    name="gammaincc_square", complex=False, samples=_three(_GAMMA))
GAMMAINCINV_ROOT = Op(
    lambda a, p: np.sqrt(sp.gammaincinv(a, p)), "elementwise",
    (lambda g, y, a, p: g * -_ratio(GAMMAINC_A(a, y, root=True), _gamma_root_density(a, y)),
     lambda g, y, a, p: g / _gamma_root_density(a, y)),
    name="gammaincinv_root", complex=False, samples=_three(_GAMMA_INVERSE))
GAMMAINCCINV_ROOT = Op(
    lambda a, p: np.sqrt(sp.gammainccinv(a, p)), "elementwise",
    (lambda g, y, a, p: g * -_ratio(GAMMAINC_A(a, y, root=True), _gamma_root_density(a, y)),
     lambda g, y, a, p: g / -_gamma_root_density(a, y)),
    name="gammainccinv_root", complex=False, samples=_three(_GAMMA_INVERSE))

# ``gammaincc(1 / b, x**b)`` and its inverse, with their derivatives where ``x`` is 0
GAMMAINCC_POWER = Op(
    lambda b, x: sp.gammaincc(1 / b, x ** b), "elementwise",
    (lambda g, y, b, x: g * GAMMAINCC_POWER_B(b, x), lambda g, y, b, x: g * -_gamma_power_density(b, x)),
    name="gammaincc_power", complex=False, samples=_three([(0.6, 3), (0.2, 1.8)]))
GAMMAINCCINV_POWER = Op(
    lambda b, p: sp.gammainccinv(1 / b, p) ** (1 / b), "elementwise",
    (lambda g, y, b, p: g * _ratio(GAMMAINCC_POWER_B(b, y), _gamma_power_density(b, y)),
     lambda g, y, b, p: g / -_gamma_power_density(b, y)),
    name="gammainccinv_power", complex=False, samples=_three([(0.6, 3), (0.1, 0.9)]))

# ``betainc`` and ``betaincc`` of ``x / (1 + x)``, to have all digits where that is nearly 1
BETAINC_ODDS = Op(
    lambda a, b, x: sp.betainc(a, b, x / (1 + x)), "elementwise",
    (lambda g, y, a, b, x: g * _betainc_a(a, b, x / (1 + x)), lambda g, y, a, b, x: g * -_betainc_a(b, a, 1 / (1 + x)),
     lambda g, y, a, b, x: g * _beta_odds_density(a, b, x)),
    name="betainc_odds", complex=False, samples=_three([_POSITIVE] * 3))
BETAINCC_ODDS = Op(
    lambda a, b, x: sp.betainc(b, a, 1 / (1 + x)), "elementwise",
    (lambda g, y, a, b, x: g * -_betainc_a(a, b, x / (1 + x)), lambda g, y, a, b, x: g * _betainc_a(b, a, 1 / (1 + x)),
     lambda g, y, a, b, x: g * -_beta_odds_density(a, b, x)),
    name="betaincc_odds", complex=False, samples=_three([_POSITIVE] * 3))


def _beta_odds_density(a: Any, b: Any, x: Any) -> Any:
    return POWER_EXP(x, a - 1, -(a + b) * np.log1p(x) - sp.betaln(a, b))


def _gamma_power_density(b: Any, x: Any) -> Any:
    return b * np.exp(-(x**b) - sp.gammaln(1 / b))


def _gamma_power_logs(b: Any, log: Any) -> Any:
    """The derivatives of the logarithm of the density by ``b``, given log(x)."""
    power = np.exp(np.minimum(b * log, LARGE))

    def at(i: int, j: int) -> Any:
        gammas = [math.comb(i - 1, k - 1) * math.factorial(i) // math.factorial(k) * _psi(k - 1, 1 + 1 / b) / b ** (i + k)
                  for k in range(1, i + 1)]  # by Lah's numbers
        return -(-1) ** i * functools.reduce(operator.add, gammas) - power * log**i

    return at


@_in_blocks
def _gamma_power_slope(b: Any, x: Any, n: int = 1) -> Any:
    b, x = _column(b), _column(x)
    inside = (x > 0) & (x < np.inf)
    x = np.where(inside, x, 1)
    power = np.exp(np.minimum(b * np.log(x), LARGE))

    def terms(log: Any) -> Any:
        fall = log - np.exp(np.minimum(b * log, LARGE)) - sp.gammaln(1 + 1 / b)
        return np.exp(fall) * _bell(_gamma_power_logs(b, log), n)

    return np.where(inside[..., 0], -_from_zero(terms, x, x < 1, (np.log1p(FALL / power) + 10 / np.sqrt(power)) / b), 0.0)[()]


GAMMAINCC_POWER_B: Op = Op(
    _gamma_power_slope, "elementwise",
    (lambda g, y, b, x, n=1: g * GAMMAINCC_POWER_B(b, x, n=n + 1),
     lambda g, y, b, x, n=1: g * -(_gamma_power_density(b, x) * _bell(_gamma_power_logs(b, np.log(x + (x == 0))), n))),
    name="gammaincc_power_b", complex=False, samples=_three([(0.6, 3), (0.2, 1.8)]))


def _gamma_root_density(a: Any, x: Any) -> Any:
    return 2 * POWER_EXP(x, 2 * a - 1, -x * x - sp.gammaln(a))


# the logarithm of a probability, with the digits that it lacks where that is nearly 1: those of the rest, 1 minus it
LOG_DIGITS = Op(
    lambda log, rest: np.where(log > -LN2, np.log1p(-np.where(log > -LN2, rest, 0)), log), "elementwise",
    (lambda g, y, log, rest: g, None),
    name="log_digits", complex=False, samples=[Sample(A(*shape, lo=-3, hi=-1), 0.7) for shape in ((3, 4), (5,), (), (0,))])

# -- hypergeometric functions and orthogonal polynomials -----------------------------------------------------------

_rule(sp.hyp0f1, "v", lambda g, y, v, z: g * (sp.hyp0f1(v + 1, z) / v), samples=_of(1.5))
_rule(sp.hyp1f1, "a", "b", lambda g, y, a, b, x: g * (a / b * sp.hyp1f1(a + 1, b + 1, x)), samples=_of(0.7, 1.5))
_rule(sp.hyperu, "a", "b", lambda g, y, a, b, x: g * (-a * sp.hyperu(a + 1, b + 1, x)), samples=_of(0.7, 1.5))
_rule(sp.hyp2f1, "a", "b", "c", lambda g, y, a, b, c, z: g * (a * b / c * sp.hyp2f1(a + 1, b + 1, c + 1, z)),
      samples=_of(0.7, 1.2, 2.5, lo=-0.7, hi=0.7))
_UNIT = {"lo": -0.9, "hi": 0.9}


def _jacobi_slope(n: Any, a: Any, b: Any, x: Any) -> Any:
    """0 for a constant, of degree 0."""
    return 0.5 * (n != 0) * (n + a + b + 1) * sp.eval_jacobi(n - (n != 0), a + 1, b + 1, x)


def _gegenbauer_slope(n: Any, a: Any, x: Any) -> Any:
    return 2 * (n != 0) * a * sp.eval_gegenbauer(n - (n != 0), a + 1, x)


def _sh_jacobi_slope(n: Any, p: Any, q: Any, x: Any) -> Any:
    return 2 * _jacobi_slope(n, p - q, q - 1, 2 * x - 1) / sp.binom(2 * n + p - 1, n)


_rule(sp.eval_jacobi,      "n", "alpha", "beta",
      lambda g, y, n, a, b, x: g * _jacobi_slope(n, a, b, x),
      samples=_of(3, 0.5, 1.5, **_UNIT))
_rule(sp.eval_gegenbauer,  "n", "alpha",
      lambda g, y, n, a, x: g * _gegenbauer_slope(n, a, x), samples=_of(3, 0.7, **_UNIT))
_rule(sp.eval_legendre,    "n", lambda g, y, n, x: g * _jacobi_slope(n, 0.0, 0.0, x),
      samples=_of(3, **_UNIT))
_rule(sp.eval_chebyt,      "n", lambda g, y, n, x: g * (n * sp.eval_chebyu(n - (n != 0), x)), samples=_of(4, **_UNIT))
_rule(sp.eval_chebyu,      "n", lambda g, y, n, x: g * _gegenbauer_slope(n, 1.0, x), samples=_of(3, **_UNIT))
_rule(sp.eval_chebyc,      "n", lambda g, y, n, x: g * (n * sp.eval_chebys(n - (n != 0), x)), samples=_of(4, **_UNIT))
_rule(sp.eval_chebys,      "n", lambda g, y, n, x: g * (0.5 * _gegenbauer_slope(n, 1.0, 0.5 * x)), samples=_of(3, **_UNIT))
_rule(sp.eval_sh_legendre, "n", lambda g, y, n, x: g * (2 * _jacobi_slope(n, 0.0, 0.0, 2 * x - 1)), samples=_of(3))
_rule(sp.eval_sh_chebyt,   "n", lambda g, y, n, x: g * (2 * n * sp.eval_chebyu(n - (n != 0), 2 * x - 1)), samples=_of(4))
_rule(sp.eval_sh_chebyu,   "n", lambda g, y, n, x: g * (2 * _gegenbauer_slope(n, 1.0, 2 * x - 1)), samples=_of(3))
_rule(sp.eval_sh_jacobi,   "n", "p", "q", lambda g, y, n, p, q, x: g * _sh_jacobi_slope(n, p, q, x), samples=_of(3, 2.5, 1.5))
_rule(sp.eval_laguerre,    "n", lambda g, y, n, x: g * -sp.eval_genlaguerre(n - 1, 1.0, x), samples=_of(3))
_rule(sp.eval_genlaguerre, "n", "alpha", lambda g, y, n, a, x: g * -sp.eval_genlaguerre(n - 1, a + 1, x), samples=_of(3, 0.5))
_rule(sp.eval_hermite,     None, lambda g, y, n, x: g * (2 * n * sp.eval_hermite(np.maximum(n - 1, 0), x)), samples=_of(3))
_rule(sp.eval_hermitenorm, None, lambda g, y, n, x: g * (n * sp.eval_hermitenorm(np.maximum(n - 1, 0), x)), samples=_of(3))

# -- functions with several results --------------------------------------------------------------------------------


def _several(ufunc: Any, *slopes: tuple[Any, ...], samples: list[Sample]) -> None:
    """A ufunc with several results; ``slopes`` has their derivatives for each argument, of ``(y, *args)``."""

    def jvp(ts: Any, y: Any, *args: Any) -> Any:
        moved = [[t * slope(y, *args) for slope in by] for t, by in zip(ts, slopes, strict=True) if t is not None]
        return tuple(functools.reduce(operator.add, terms) for terms in zip(*moved, strict=True))

    op(ufunc, *map(_sum_of, slopes), jvp=jvp, name=ufunc.__name__, complex=False, samples=samples)


def _sum_of(slopes: tuple[Any, ...]) -> Rule:
    def rule(g: Any, y: Any, *args: Any) -> Any:
        terms = [part * slope(y, *args) for part, slope in zip(g, slopes, strict=True) if part is not None]
        return functools.reduce(operator.add, terms)

    return rule


def _sinhc(x: Any) -> Any:
    """``sinh(x) / x``, with its derivatives where ``x`` is nearly 0."""
    near = np.abs(x) < 1
    return np.where(near, sp.hyp0f1(1.5, 0.25 * np.where(near, x, 0) ** 2), np.sinh(x) / np.where(near, 1, x))


def _ellipj_m(y: Any, m: Any) -> Any:
    """Of the amplitude."""
    return -y[2] * _ellipkinc_m(y[3], m)


_several(sp.sici,    (lambda y, x: np.sinc(x / math.pi), lambda y, x: np.cos(x) / x), samples=_of(lo=0.3, hi=3))
_several(sp.shichi,  (lambda y, x: _sinhc(x), lambda y, x: np.cosh(x) / x), samples=_of(lo=0.3, hi=3))
_several(sp.fresnel, (lambda y, x: np.sin(math.pi / 2 * x * x), lambda y, x: np.cos(math.pi / 2 * x * x)),
         samples=_of(lo=-2, hi=2))
_several(sp.airy,    (lambda y, x: y[1], lambda y, x: x * y[0], lambda y, x: y[3], lambda y, x: x * y[2]),
         samples=_of(lo=-2, hi=2))
_several(sp.ellipj,  (lambda y, u, m: y[1] * y[2], lambda y, u, m: -y[0] * y[2], lambda y, u, m: -m * y[0] * y[1],
                      lambda y, u, m: y[2]),
                     (lambda y, u, m: y[1] * _ellipj_m(y, m), lambda y, u, m: -y[0] * _ellipj_m(y, m),
                      lambda y, u, m: -y[0] * (0.5 * y[0] + m * y[1] * _ellipj_m(y, m)) / y[2],
                      lambda y, u, m: _ellipj_m(y, m)), samples=_three([(-4, 4), (0.1, 0.9)]))

# fmt: on

# -- Python functions ----------------------------------------------------------------------------------------------


def _shift(a: Any, axis: Any) -> Any:
    """The largest element, which exponentials are taken relative to; 0 where it is infinite. It has no derivative."""
    top = STOP(np.max(np.real(a) if np.iscomplexobj(a) else a, axis=axis, keepdims=True))
    return np.where(np.isfinite(top), top, 0)


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """``log(sum(b * exp(a)))`` without overflow."""
    a = array_of(a)
    if b is not None:
        b = array_of(b)
    top = _shift(a if b is None else np.where(b == 0, -np.inf, a), axis)
    a = a - top
    if b is not None:  # what has the weight 0 counts in the derivative by that, and may be as large as a number can be
        a = np.where(b == 0, np.fmin(a, int(math.log(np.finfo(a.dtype).max))), a)
    terms = np.exp(a)
    total = np.sum(terms if b is None else b * terms, axis=axis, keepdims=keepdims)
    top = top if keepdims else np.reshape(top, np.shape(total))
    sign = np.sign(total) if return_sign else None
    if return_sign:
        total = np.abs(total)
    with np.errstate(divide="ignore"):
        result = np.log(total) + top
    return (result, sign) if return_sign else result


def softmax(x: Any, axis: Any = None) -> Any:
    """``exp(x)``, scaled to sum to one."""
    x = array_of(x)
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of ``softmax``."""
    x = array_of(x)
    x = x - _shift(x, axis)
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return np.logaddexp(0, x)


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the ``d``-dimensional gamma function."""
    a = array_of(a)
    return sum((sp.gammaln(a - 0.5 * j) for j in range(d)), d * (d - 1) * 0.25 * math.log(math.pi))


def factorial(n: Any, exact: bool = False) -> Any:
    """``gamma(n + 1)``, and 0 where ``n`` is negative; ``exact`` ones are of plain whole numbers."""
    if exact:
        return sp.factorial(n, exact=True)
    n = array_of(n)
    return np.where(n < 0, 0.0, sp.gamma(np.where(n < 0, 0, n) + 1))[()]


def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """The binomial coefficient, of real numbers, too, and 0 where ``k`` is none of 0 to ``N``; ``exact`` ones are of plain
    whole numbers."""
    if exact:
        return sp.comb(N, k, exact=True, repetition=repetition)
    N, k = array_of(N), array_of(k)
    if repetition:
        return np.where((k == 0) & (N >= 0), 1.0, sp.binom(N + k - 1, k))[()]
    inside = (k >= 0) & (k <= N)
    return np.where(inside, sp.binom(np.where(inside, N, 1), np.where(inside, k, 0)), 0.0)[()]


def sinc(x: Any) -> Any:
    """``sin(pi x) / (pi x)``."""
    return np.sinc(x)


def _spherical(fun: Any) -> Op:
    bessel: Op = Op(
        fun,
        "elementwise",
        (None, lambda g, y, n, z: g * _spherical_slope(bessel, n, z)),
        name=fun.__name__,
        samples=[Sample(n, A(*shape, lo=0.4, hi=3)) for n, shape in _ORDERS],
    )
    return bessel


def _spherical_slope(bessel: Op, n: Any, z: Any) -> Any:
    """By those of the orders beside ``n`` (DLMF 10.51.2, 10.51.5), which have no pole where the function has none."""
    above = bessel(n + 1, z)
    below = np.where(np.isinf(above), 0, bessel(np.maximum(n - 1, 0), z))
    first, second = SIGNS[bessel.name]
    return (first * n * below + second * (n + 1) * above) / (2 * n + 1)


SIGNS = {"spherical_jn": (1, -1), "spherical_yn": (1, -1), "spherical_in": (1, 1), "spherical_kn": (-1, -1)}
SPHERICAL_JN, SPHERICAL_YN = _spherical(sp.spherical_jn), _spherical(sp.spherical_yn)
SPHERICAL_IN, SPHERICAL_KN = _spherical(sp.spherical_in), _spherical(sp.spherical_kn)


def _spherical_or_slope(bessel: Op, n: Any, z: Any, derivative: bool) -> Any:
    n, z = array_of(n), array_of(z)
    return _spherical_slope(bessel, n, z) if derivative else bessel(n, z)


def spherical_jn(n: Any, z: Any, derivative: bool = False) -> Any:
    """The spherical Bessel function of the first kind, or its derivative."""
    return _spherical_or_slope(SPHERICAL_JN, n, z, derivative)


def spherical_yn(n: Any, z: Any, derivative: bool = False) -> Any:
    """The spherical Bessel function of the second kind, or its derivative."""
    return _spherical_or_slope(SPHERICAL_YN, n, z, derivative)


def spherical_in(n: Any, z: Any, derivative: bool = False) -> Any:
    """The modified spherical Bessel function of the first kind, or its derivative."""
    return _spherical_or_slope(SPHERICAL_IN, n, z, derivative)


def spherical_kn(n: Any, z: Any, derivative: bool = False) -> Any:
    """The modified spherical Bessel function of the second kind, or its derivative."""
    return _spherical_or_slope(SPHERICAL_KN, n, z, derivative)


LAMBERTW = Op(
    sp.lambertw,
    "elementwise",
    (lambda g, y, z, k=0: g * (np.exp(-y) / (1 + y)),),
    name="lambertw",
    complex=False,
    samples=[Sample(A(3, 4, lo=0.1)), Sample(A(lo=0.1)), Sample(A(2, lo=-0.3, hi=-0.1), k=-1)],
)


def lambertw(z: Any, k: int = 0, tol: float = 1e-8) -> Any:
    """The branch ``k`` of the inverse of ``w * exp(w)``."""
    return LAMBERTW(array_of(z), k=k) if k else LAMBERTW(array_of(z))
