"""``scipy.stats``: densities, distribution functions and quantiles of the usual distributions.

``norm.logpdf(x, loc=0, scale=1)`` and so on, as SciPy has them, of traced and plain arrays in any argument.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp
import scipy.stats

from symgrad.ops.core import Traced
from symgrad.ops.index import array_of
from symgrad.ops.reduction import vector_shape
from symgrad.scipy.linalg import solve_triangular
from symgrad.watch.likeness import Holding

Fun = Callable[..., Any]
INF, ROOT_2, LOG_2PI = math.inf, math.sqrt(2), math.log(2 * math.pi)


def __getattr__(name: str) -> Any:
    return getattr(scipy.stats, name)


def _number(x: Any) -> Any:
    """NumPy's number or an array, lists as one too; of double precision at least, which SciPy computes in."""
    x = x if isinstance(x, Traced) else array_of(x)
    return x if hasattr(x, "dtype") and x.dtype.char == "d" else np.multiply(x, np.float64(1))


def _positive(*shapes: Any) -> list[Any]:
    """What must hold of the shape parameters of most distributions."""
    return [shape > 0 for shape in shapes]


class Distribution:
    """What is not here is SciPy's own, of plain numbers: random numbers, moments, intervals."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._scipys(), name)

    def _scipys(self) -> Any:
        return next(getattr(scipy.stats, name) for name, mirror in globals().items() if mirror is self)


class Frozen(Holding):
    """A distribution with its parameters: its functions take the argument alone."""

    def __init__(self, distribution: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = distribution, args, kwds

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        function = getattr(type(self.dist), name, None)
        if function is None:
            return getattr(self.dist._scipys()(*self.args, **self.kwds), name)
        return functools.partial(_frozen, self, function)


def _frozen(frozen: Frozen, function: Fun, *x: Any) -> Any:
    return function(frozen.dist, *x, *frozen.args, **frozen.kwds)


class Continuous(Distribution):
    """A distribution in standard form; each function takes the standardised ``z`` and the shape parameters."""

    def __init__(
        self,
        shapes: str,
        logpdf: Fun,
        cdf: Fun,
        ppf: Fun | None = None,
        *,
        sf: Fun | None = None,
        logcdf: Fun | None = None,
        logsf: Fun | None = None,
        support: tuple[float, float] = (-INF, INF),
        inner: float = 0.0,
        open: str = "",
        valid: Fun = _positive,
    ) -> None:
        self.names = [*shapes.split(), "loc", "scale"]
        self._logpdf, self._cdf, self._ppf = logpdf, cdf, ppf
        self._sf, self._logcdf, self._logsf = sf, logcdf, logsf
        self.support, self.inner, self.open, self.valid = support, inner, open, valid

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with these parameters: ``norm(loc, scale).logpdf(x)``."""
        self._given(args, kwds)
        return Frozen(self, args, kwds)

    def _given(self, args: tuple[Any, ...], kwds: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        """The shape parameters, the location and the scale, ``None`` for those two where they are left out."""
        if len(args) > len(self.names):
            raise TypeError(f"at most {len(self.names)} parameters are expected: {', '.join(self.names)}")
        given = {**dict(zip(self.names, args, strict=False)), **kwds}
        if unknown := [name for name in given if name not in self.names]:
            raise TypeError(f"unknown parameter {unknown[0]!r}")
        if missing := [name for name in self.names[:-2] if name not in given]:
            raise TypeError(f"missing parameter {missing[0]!r}")
        *shapes, loc, scale = (_number(given[name]) if name in given else None for name in self.names)
        return shapes, loc, scale

    def _standard(self, x: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        """The standardised argument, the shape parameters, and whether all are valid: a mask, or True."""
        shapes, loc, scale = self._given(args, kwds)
        z = _number(x)
        z = z if loc is None else z - loc
        z = z if scale is None else z / scale
        return z, shapes, self._valid(shapes, scale)

    def _valid(self, shapes: list[Any], scale: Any) -> Any:
        return _where_all(self.valid(*shapes) + ([] if scale is None else [scale > 0]))

    def _within(self, z: Any) -> tuple[Any, Any, Any]:
        """``z`` where the formulas hold, else some number where they do; and where it is below and above, if anywhere.

        They hold at the ends of the support, but at those that are ``open``.
        """
        low, high = self.support
        below = z <= low if "low" in self.open else None if low == -INF else z < low
        above = z >= high if "high" in self.open else None if high == INF else z > high
        outside = below if above is None else above if below is None else below | above
        return (z if outside is None else np.where(outside, self.inner, z)), below, above

    def _extended(self, x: Any, args: Any, kwds: Any, fun: Fun, first: float, last: float) -> Any:
        """``fun``, and beyond the ends of the support ``first`` and ``last``."""
        z, shapes, valid = self._standard(x, args, kwds)
        z, below, above = self._within(z)
        value = fun(z, *shapes)
        value = value if below is None else np.where(below, first, value)
        return _checked(value if above is None else np.where(above, last, value), valid)

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the density."""
        scale = self._given(args, kwds)[2]
        value = self._extended(x, args, kwds, self._logpdf, -INF, -INF)
        return value if scale is None else value - np.log(np.abs(scale))  # where it is negative, the value is NaN

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, *args, **kwds))

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The distribution function."""
        return self._extended(x, args, kwds, self._cdf, 0.0, 1.0)

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The survival function, ``1 - cdf``."""
        return self._extended(x, args, kwds, self._sf or (lambda *values: 1 - self._cdf(*values)), 1.0, 0.0)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the distribution function."""
        fun = self._logcdf or (lambda *values: np.log(self._cdf(*values)))
        return self._extended(x, args, kwds, fun, -INF, 0.0)

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the survival function."""
        if self._logsf is None:
            return np.log(self.sf(x, *args, **kwds))
        return self._extended(x, args, kwds, self._logsf, 0.0, -INF)

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The quantile function, the inverse of ``cdf``."""
        if self._ppf is None:
            raise NotImplementedError("the quantiles of this distribution are not here")
        shapes, loc, scale = self._given(args, kwds)
        q = _number(q)
        q = _checked(q, _where_all([q >= 0, q <= 1]))
        z: Any = _checked(self._ppf(q, *shapes), self._valid(shapes, scale))
        z = z if scale is None else z * scale
        return z if loc is None else z + loc


def _where_all(conditions: list[Any]) -> Any:
    """Where all hold: a mask, or True."""
    masks = [condition for condition in conditions if isinstance(condition, Traced) or not np.all(condition)]
    return functools.reduce(operator.and_, masks) if masks else True


def _checked(value: Any, valid: Any) -> Any:
    """NaN for parameters that are none."""
    return value if valid is True else np.where(valid, value, np.nan)


def _laplace_cdf(z: Any) -> Any:
    left = z < 0
    return np.where(left, 0.5 * np.exp(np.where(left, z, 0)), 1 - 0.5 * np.exp(-np.where(left, 0, z)))


def _laplace_ppf(q: Any) -> Any:
    left = q < 0.5
    return np.where(left, np.log(2 * np.where(left, q, 0.5)), -np.log(2 * np.where(left, 0.5, 1 - q)))


def _log_of(p: Any, rest: Any) -> Any:
    """The logarithm of a probability, given that of the rest, which has the digits where ``p`` is nearly 1."""
    near = p > 0.5
    return np.where(near, np.log1p(-np.where(near, rest, 0)), np.log(np.where(near, 1, p)))


def _cauchy_tail(z: Any) -> Any:
    return np.arctan2(1, z) / math.pi


def _cauchy_ppf(q: Any) -> Any:
    side = np.minimum(q, 1 - q)
    tail = side < 0.25
    far = np.where(q < 0.5, -1.0, 1.0) / np.tan(math.pi * np.where(tail, side, 0.25))
    return np.where(tail, far, np.tan(math.pi * (np.where(tail, 0.5, q) - 0.5)))


# fmt: off
norm = Continuous("", lambda z: -0.5 * z * z - 0.5 * LOG_2PI, lambda z: sp.ndtr(z), lambda q: sp.ndtri(q),
                  sf=lambda z: sp.ndtr(-z), logcdf=lambda z: sp.log_ndtr(z), logsf=lambda z: sp.log_ndtr(-z))
uniform = Continuous("", lambda z: 0 * z, lambda z: z, lambda q: q, sf=lambda z: 1 - z, support=(0.0, 1.0), inner=0.5)
expon = Continuous("", lambda z: -z, lambda z: -np.expm1(-z), lambda q: -np.log1p(-q), sf=lambda z: np.exp(-z),
                   logsf=lambda z: -z, support=(0.0, INF), inner=1.0)
laplace = Continuous("", lambda z: -np.abs(z) - math.log(2), _laplace_cdf, sf=lambda z: _laplace_cdf(-z),
                     ppf=_laplace_ppf)
logistic = Continuous("", lambda z: sp.log_expit(z) + sp.log_expit(-z), lambda z: sp.expit(z), lambda q: sp.logit(q),
                      sf=lambda z: sp.expit(-z), logcdf=lambda z: sp.log_expit(z), logsf=lambda z: sp.log_expit(-z))
cauchy = Continuous("", lambda z: -math.log(math.pi) - np.log1p(z * z), lambda z: _cauchy_tail(-z), _cauchy_ppf,
                    sf=_cauchy_tail, logcdf=lambda z: _log_of(_cauchy_tail(-z), _cauchy_tail(z)),
                    logsf=lambda z: _log_of(_cauchy_tail(z), _cauchy_tail(-z)))
gumbel_r = Continuous("", lambda z: -z - np.exp(-z), lambda z: np.exp(-np.exp(-z)), lambda q: -np.log(-np.log(q)),
                      sf=lambda z: -np.expm1(-np.exp(-z)), logcdf=lambda z: -np.exp(-z))
halfnorm = Continuous("", lambda z: 0.5 * math.log(2 / math.pi) - 0.5 * z * z, lambda z: sp.erf(z / ROOT_2),
                      lambda q: sp.ndtri(0.5 * (1 + q)), sf=lambda z: sp.erfc(z / ROOT_2), support=(0.0, INF), inner=1.0)
gumbel_l = Continuous("", lambda z: z - np.exp(z), lambda z: -np.expm1(-np.exp(z)), lambda q: np.log(-np.log1p(-q)),
                      sf=lambda z: np.exp(-np.exp(z)), logsf=lambda z: -np.exp(z))
halfcauchy = Continuous("", lambda z: math.log(2 / math.pi) - np.log1p(z * z), lambda z: 2 / math.pi * np.arctan(z),
                        lambda q: _halfcauchy_ppf(q), sf=lambda z: 2 * _cauchy_tail(z),
                        logcdf=lambda z: _log_of(2 / math.pi * np.arctan(z), 2 * _cauchy_tail(z)), support=(0.0, INF),
                        inner=1.0)
maxwell = Continuous("", lambda z: 0.5 * math.log(2 / math.pi) + 2 * np.log(z) - 0.5 * z * z,
                     lambda z: sp.gammainc(1.5, 0.5 * z * z), lambda q: np.sqrt(2 * sp.gammaincinv(1.5, q)),
                     sf=lambda z: sp.gammaincc(1.5, 0.5 * z * z), support=(0.0, INF), inner=1.0)
rayleigh = Continuous("", lambda z: np.log(z) - 0.5 * z * z, lambda z: -np.expm1(-0.5 * z * z),
                      lambda q: np.sqrt(-2 * np.log1p(-q)), sf=lambda z: np.exp(-0.5 * z * z),
                      logsf=lambda z: -0.5 * z * z, support=(0.0, INF), inner=1.0, open="low high")
t = Continuous("df", lambda z, df: -sp.betaln(0.5 * df, 0.5) - 0.5 * np.log(df) - 0.5 * (df + 1) * np.log1p(z * z / df),
               lambda z, df: sp.stdtr(df, z), lambda q, df: _t_ppf(q, df), sf=lambda z, df: sp.stdtr(df, -z))
gamma = Continuous("a", lambda z, a: sp.xlogy(a - 1, z) - z - sp.gammaln(a), lambda z, a: sp.gammainc(a, z),
                   lambda q, a: sp.gammaincinv(a, q), sf=lambda z, a: sp.gammaincc(a, z), support=(0.0, INF), inner=1.0)
invgamma = Continuous("a", lambda z, a: -(a + 1) * np.log(z) - sp.gammaln(a) - 1 / z, lambda z, a: sp.gammaincc(a, 1 / z),
                      lambda q, a: 1 / sp.gammainccinv(a, q), sf=lambda z, a: sp.gammainc(a, 1 / z), support=(0.0, INF),
                      inner=1.0, open="low")
chi2 = Continuous("df", lambda z, df: sp.xlogy(0.5 * df - 1, z) - 0.5 * z - sp.gammaln(0.5 * df) - 0.5 * df * math.log(2),
                  lambda z, df: sp.chdtr(df, z), lambda q, df: 2 * sp.gammaincinv(0.5 * df, q),
                  sf=lambda z, df: sp.chdtrc(df, z), support=(0.0, INF), inner=1.0)
chi = Continuous("df", lambda z, df: (1 - 0.5 * df) * math.log(2) - sp.gammaln(0.5 * df) + sp.xlogy(df - 1, z) - 0.5 * z * z,
                 lambda z, df: sp.gammainc(0.5 * df, 0.5 * z * z), lambda q, df: np.sqrt(2 * sp.gammaincinv(0.5 * df, q)),
                 sf=lambda z, df: sp.gammaincc(0.5 * df, 0.5 * z * z), support=(0.0, INF), inner=1.0)
f = Continuous("dfn dfd", lambda z, n, d: 0.5 * n * np.log(n) + 0.5 * d * np.log(d) + sp.xlogy(0.5 * n - 1, z)
               - 0.5 * (n + d) * np.log(d + n * z) - sp.betaln(0.5 * n, 0.5 * d),
               lambda z, n, d: sp.betainc(0.5 * n, 0.5 * d, n * z / (d + n * z)), lambda q, n, d: _f_ppf(q, n, d),
               sf=lambda z, n, d: sp.betainc(0.5 * d, 0.5 * n, d / (d + n * z)), support=(0.0, INF), inner=1.0, open="high")
beta = Continuous("a b", lambda z, a, b: sp.xlogy(a - 1, z) + sp.xlog1py(b - 1, -z) - sp.betaln(a, b),
                  lambda z, a, b: sp.betainc(a, b, z), lambda q, a, b: sp.betaincinv(a, b, q),
                  sf=lambda z, a, b: sp.betaincc(a, b, z), support=(0.0, 1.0), inner=0.5)
lognorm = Continuous("s", lambda z, s: -0.5 * (np.log(z) / s) ** 2 - np.log(s * z) - 0.5 * LOG_2PI,
                     lambda z, s: sp.ndtr(np.log(z) / s), lambda q, s: np.exp(s * sp.ndtri(q)),
                     sf=lambda z, s: sp.ndtr(-np.log(z) / s), support=(0.0, INF), inner=1.0, open="low")
weibull_min = Continuous("c", lambda z, c: np.log(c) + sp.xlogy(c - 1, z) - z ** c, lambda z, c: -np.expm1(-(z ** c)),
                         lambda q, c: (-np.log1p(-q)) ** (1 / c), sf=lambda z, c: np.exp(-(z ** c)),
                         logsf=lambda z, c: -(z ** c), support=(0.0, INF), inner=1.0)
weibull_max = Continuous("c", lambda z, c: np.log(c) + sp.xlogy(c - 1, -z) - (-z) ** c, lambda z, c: np.exp(-((-z) ** c)),
                         lambda q, c: -((-np.log(q)) ** (1 / c)), sf=lambda z, c: -np.expm1(-((-z) ** c)),
                         logcdf=lambda z, c: -((-z) ** c), support=(-INF, 0.0), inner=-1.0)
powerlaw = Continuous("a", lambda z, a: np.log(a) + np.where((z == 0) & (a < 1), -INF, sp.xlogy(a - 1, z)),
                      lambda z, a: z ** a, lambda q, a: q ** (1 / a), support=(0.0, 1.0), inner=0.5)
fisk = Continuous("c", lambda z, c: np.log(c) + sp.xlogy(c - 1, z) - 2 * np.log1p(z ** c),
                  lambda z, c: -np.expm1(-np.log1p(z ** c)), lambda q, c: (1 / q - 1) ** (-1 / c),
                  sf=lambda z, c: 1 / (1 + z ** c), support=(0.0, INF), inner=1.0, open="high")
pareto = Continuous("b", lambda z, b: np.log(b) - (b + 1) * np.log(z), lambda z, b: 1 - z ** -b,
                    lambda q, b: (1 - q) ** (-1 / b), sf=lambda z, b: z ** -b,
                    logsf=lambda z, b: -b * np.log(z), support=(1.0, INF), inner=2.0)
lomax = Continuous("c", lambda z, c: np.log(c) - (c + 1) * np.log1p(z), lambda z, c: -np.expm1(-c * np.log1p(z)),
                   lambda q, c: np.expm1(-np.log1p(-q) / c), sf=lambda z, c: np.exp(-c * np.log1p(z)),
                   logsf=lambda z, c: -c * np.log1p(z), support=(0.0, INF), inner=1.0)
gompertz = Continuous("c", lambda z, c: np.log(c) + z - c * np.expm1(z), lambda z, c: -np.expm1(-c * np.expm1(z)),
                      lambda q, c: np.log1p(-np.log1p(-q) / c), sf=lambda z, c: np.exp(-c * np.expm1(z)),
                      logsf=lambda z, c: -c * np.expm1(z), support=(0.0, INF), inner=1.0)
invgauss = Continuous("mu", lambda z, mu: -0.5 * LOG_2PI - 1.5 * np.log(z) - (z - mu) ** 2 / (2 * mu * mu * z),
                      lambda z, mu: sp.ndtr((z / mu - 1) / np.sqrt(z))
                      + np.exp(2 / mu + sp.log_ndtr(-(z / mu + 1) / np.sqrt(z))),
                      sf=lambda z, mu: -sp.ndtr((1 - z / mu) / np.sqrt(z)) * np.expm1(
                          2 / mu + sp.log_ndtr(-(z / mu + 1) / np.sqrt(z)) - sp.log_ndtr((1 - z / mu) / np.sqrt(z))),
                      support=(0.0, INF), inner=1.0, open="low high")
loggamma = Continuous("c", lambda z, c: c * z - np.exp(z) - sp.gammaln(c), lambda z, c: sp.gammainc(c, np.exp(z)),
                      lambda q, c: np.log(sp.gammaincinv(c, q)), sf=lambda z, c: sp.gammaincc(c, np.exp(z)))
nakagami = Continuous("nu", lambda z, nu: math.log(2) + nu * np.log(nu) - sp.gammaln(nu) + sp.xlogy(2 * nu - 1, z) - nu * z * z,
                      lambda z, nu: sp.gammainc(nu, nu * z * z), lambda q, nu: np.sqrt(sp.gammaincinv(nu, q) / nu),
                      sf=lambda z, nu: sp.gammaincc(nu, nu * z * z), support=(0.0, INF), inner=1.0)
burr12 = Continuous("c d", lambda z, c, d: np.log(c * d) + sp.xlogy(c - 1, z) - (d + 1) * np.log1p(z ** c),
                    lambda z, c, d: -np.expm1(-d * np.log1p(z ** c)), lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (1 / c),
                    sf=lambda z, c, d: np.exp(-d * np.log1p(z ** c)), logsf=lambda z, c, d: -d * np.log1p(z ** c),
                    support=(0.0, INF), inner=1.0)
invweibull = Continuous("c", lambda z, c: np.log(c) - (c + 1) * np.log(z) - z ** -c, lambda z, c: np.exp(-(z ** -c)),
                        lambda q, c: (0 - np.log(q)) ** (-1 / c), sf=lambda z, c: -np.expm1(-(z ** -c)),
                        logcdf=lambda z, c: -(z ** -c), support=(0.0, INF), inner=1.0, open="low")
levy = Continuous("", lambda z: -0.5 * LOG_2PI - 1.5 * np.log(z) - 0.5 / z, lambda z: sp.erfc(np.sqrt(0.5 / z)),
                  lambda q: sp.ndtri(0.5 * q) ** -2, sf=lambda z: sp.erf(np.sqrt(0.5 / z)), support=(0.0, INF), inner=1.0,
                  open="low")
moyal = Continuous("", lambda z: -0.5 * (z + np.exp(-z) + LOG_2PI), lambda z: sp.erfc(np.exp(-0.5 * z) / ROOT_2),
                   lambda q: -np.log(2 * sp.erfcinv(q) ** 2), sf=lambda z: sp.erf(np.exp(-0.5 * z) / ROOT_2))
johnsonsu = Continuous("a b", lambda z, a, b: np.log(b) - 0.5 * np.log1p(z * z) - 0.5 * LOG_2PI
                       - 0.5 * (a + b * np.arcsinh(z)) ** 2, lambda z, a, b: sp.ndtr(a + b * np.arcsinh(z)),
                       lambda q, a, b: np.sinh((sp.ndtri(q) - a) / b), sf=lambda z, a, b: sp.ndtr(-(a + b * np.arcsinh(z))),
                       valid=lambda a, b: [a == a, b > 0])
betaprime = Continuous("a b", lambda z, a, b: sp.xlogy(a - 1, z) - (a + b) * np.log1p(z) - sp.betaln(a, b),
                       lambda z, a, b: sp.betainc(a, b, z / (1 + z)), lambda q, a, b: 1 / (1 / sp.betaincinv(a, b, q) - 1),
                       sf=lambda z, a, b: sp.betainc(b, a, 1 / (1 + z)), support=(0.0, INF), inner=1.0, open="low high")
# fmt: on


def _halfcauchy_ppf(q: Any) -> Any:
    tail = q > 0.5
    return np.where(tail, 1 / np.tan(math.pi / 2 * np.where(tail, 1 - q, 0.5)), np.tan(math.pi / 2 * np.where(tail, 0.5, q)))


def _t_ppf(q: Any, df: Any) -> Any:
    mirrored = q == 0  # where the ufunc has inf
    return np.where(mirrored, -1, 1) * sp.stdtrit(df, np.where(mirrored, 1 - q, q))


def _f_ppf(q: Any, n: Any, d: Any) -> Any:
    share = sp.betaincinv(0.5 * n, 0.5 * d, q)
    return d * share / (n * (1 - share))


class Discrete(Distribution):
    """A distribution of whole numbers; each function takes the number ``k`` and the shape parameters."""

    def __init__(self, shapes: str, logpmf: Fun, cdf: Fun, valid: Fun, low: int = 0, high: Fun | None = None) -> None:
        self.names = [*shapes.split(), "loc"]
        self._logpmf, self._cdf, self.valid, self.low, self.high = logpmf, cdf, valid, low, high

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with these parameters: ``poisson(mu).logpmf(k)``."""
        return Frozen(self, args, kwds)

    def _given(self, k: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        """The number, counted from the location, the shape parameters, and whether all are valid: a mask, or True."""
        if len(args) > len(self.names):
            raise TypeError(f"at most {len(self.names)} parameters are expected: {', '.join(self.names)}")
        given = {**dict(zip(self.names, args, strict=False)), **kwds}
        if set(given) - {"loc"} != set(self.names[:-1]):
            raise TypeError(f"the parameters are {', '.join(self.names)}, got {', '.join(given)}")
        k = _number(k) - _number(given["loc"]) if "loc" in given else _number(k)
        shapes = [_number(given[name]) for name in self.names[:-1]]
        return k, shapes, _where_all([*self.valid(*shapes), k == k])

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the probability."""
        k, shapes, valid = self._given(k, args, kwds)
        inside = (k >= self.low) & (k == np.floor(k))
        inside = inside if self.high is None else inside & (k <= self.high(*shapes))
        return _checked(np.where(inside, self._logpmf(np.where(inside, k, self.low), *shapes), -INF), valid)

    def pmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability."""
        return np.exp(self.logpmf(k, *args, **kwds))

    def cdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of ``k`` or less."""
        k, shapes, valid = self._given(k, args, kwds)
        k = np.floor(k)
        top = None if self.high is None else self.high(*shapes)
        inside = k >= self.low if top is None else (k >= self.low) & (k < top)
        value = np.where(inside, self._cdf(np.where(inside, k, self.low), *shapes), 0.0)
        return _checked(value if top is None else np.where(k >= top, 1.0, value), valid)

    def sf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of more than ``k``."""
        return 1 - self.cdf(k, *args, **kwds)

    def logcdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of ``cdf``."""
        return np.log(self.cdf(k, *args, **kwds))


def _log_choose(n: Any, k: Any) -> Any:
    return sp.gammaln(n + 1) - sp.gammaln(k + 1) - sp.gammaln(n - k + 1)


# fmt: off
poisson = Discrete("mu", lambda k, mu: sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu, lambda k, mu: sp.gammaincc(k + 1, mu),
                   valid=lambda mu: [mu >= 0])
binom = Discrete("n p", lambda k, n, p: _log_choose(n, k) + sp.xlogy(k, p) + sp.xlog1py(n - k, -p),
                 lambda k, n, p: sp.betaincc(k + 1, n - k, p), high=lambda n, p: n,
                 valid=lambda n, p: [n >= 0, n == np.floor(n), p >= 0, p <= 1])
bernoulli = Discrete("p", lambda k, p: sp.xlogy(k, p) + sp.xlog1py(1 - k, -p), lambda k, p: 1 - p, high=lambda p: 1,
                     valid=lambda p: [p >= 0, p <= 1])
geom = Discrete("p", lambda k, p: sp.xlog1py(k - 1, -p) + np.log(p), lambda k, p: -np.expm1(np.log1p(-p) * k), low=1,
                valid=lambda p: [p > 0, p <= 1])
nbinom = Discrete("n p", lambda k, n, p: _log_choose(n + k - 1, k) + n * np.log(p) + sp.xlog1py(k, -p),
                  lambda k, n, p: sp.betainc(n, k + 1, p), valid=lambda n, p: [n > 0, p > 0, p <= 1])
# fmt: on


class _MultivariateNormal(Distribution):
    """``multivariate_normal``: ``x`` has its components along the last axis."""

    def __call__(self, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Frozen:
        """The distribution with these parameters: ``multivariate_normal(mean, cov).logpdf(x)``."""
        return Frozen(self, (mean, cov, allow_singular), {})

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density; ``cov`` is a matrix, its diagonal, or one number.

        Of a singular matrix, if allowed, it is the density in the space where the points are: elsewhere ``-inf``.
        """
        x, cov = _number(x), _number(cov)
        mean = None if mean is None else _number(mean)
        size = _size(mean, cov)
        x = x[..., None] if size == 1 and (np.ndim(x) == 0 or np.shape(x)[-1] != 1) else x
        away = x if mean is None else x - mean
        if np.ndim(cov) < 2:
            variance = np.broadcast_to(cov, (size,))
            parts = away / np.sqrt(variance)
            logdet = np.sum(np.log(variance))
        elif allow_singular:
            return _singular_logpdf(away, cov)
        else:
            factor = np.linalg.cholesky(cov)
            columns = np.reshape(away, (-1, size)).T
            parts = np.reshape(solve_triangular(factor, columns, lower=True).T, np.shape(away))
            logdet = 2 * np.sum(np.log(np.diagonal(factor)))
        return -0.5 * (size * LOG_2PI + logdet + np.sum(parts * parts, axis=-1))

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: Any = None, cov: Any = 1, allow_singular: bool = True) -> Any:
        """The differential entropy."""
        cov = _number(cov)
        size = _size(mean, cov)
        rank, logdet, _ = _spectrum(cov if np.ndim(cov) == 2 else np.eye(size) * cov)
        return 0.5 * (rank * (1 + LOG_2PI) + logdet)


def _size(mean: Any, cov: Any) -> int:
    return int(np.shape(cov)[-1] if np.ndim(cov) else np.size(mean) if mean is not None else 1)


def _spectrum(cov: Any) -> tuple[Any, Any, float]:
    """The rank of a covariance matrix, the logarithm of the product of its eigenvalues but zeros, and what counts as zero."""
    values = np.linalg.eigvalsh(cov)
    relative = 1e6 * float(np.finfo(cov.dtype).eps)  # SciPy's
    kept = np.abs(values) > relative * np.max(np.abs(values))
    return np.sum(kept), np.sum(np.log(np.where(kept, values, 1.0))), relative


def _singular_logpdf(away: Any, cov: Any) -> Any:
    rank, logdet, relative = _spectrum(cov)
    inverse = np.linalg.pinv(cov, relative, hermitian=True)
    value = -0.5 * (rank * LOG_2PI + logdet + np.sum((away @ inverse) * away, axis=-1))
    outside = away - (away @ inverse) @ cov  # in the null space
    return np.where(np.sqrt(np.sum(outside * outside, axis=-1)) < 1e3 * relative, value, -INF)


class _Dirichlet(Distribution):
    """``dirichlet``: ``x`` has its components along the first axis."""

    def __call__(self, alpha: Any) -> Frozen:
        """The distribution with these parameters: ``dirichlet(alpha).logpdf(x)``."""
        return Frozen(self, (alpha,), {})

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density."""
        x, alpha = _number(x), _number(alpha)
        if np.shape(x)[0] == np.size(alpha) - 1:
            x = np.concatenate((x, 1 - np.sum(x, axis=0, keepdims=True)))
        column = np.reshape(alpha, vector_shape(0, np.ndim(x)))
        scale = np.sum(sp.gammaln(alpha)) - sp.gammaln(np.sum(alpha))
        return np.sum(sp.xlogy(column - 1, x), axis=0) - scale

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, alpha))


multivariate_normal, dirichlet = _MultivariateNormal(), _Dirichlet()
