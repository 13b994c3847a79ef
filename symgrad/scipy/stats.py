# ruff: noqa: F401 (statistics of samples are defined next door)
"""``scipy.stats``: densities, distribution functions and quantiles of the usual distributions, and statistics of samples.

``norm.logpdf(x, loc=0, scale=1)``, ``zscore(x)`` and so on, as SciPy has them, of traced and plain arrays in any argument.
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

from symgrad.errors import NotDifferentiable
from symgrad.ops.core import Traced
from symgrad.ops.engine import STOP
from symgrad.ops.index import array_of, traced_in
from symgrad.ops.reduction import vector_shape
from symgrad.scipy.linalg import solve_triangular
from symgrad.scipy.plain import rest_of
from symgrad.scipy.samples import (
    boxcox,
    boxcox_llf,
    circmean,
    circstd,
    circvar,
    entropy,
    gaussian_kde,
    gstd,
    gzscore,
    iqr,
    kurtosis,
    linregress,
    moment,
    pearsonr,
    sem,
    skew,
    tmean,
    tsem,
    tstd,
    ttest_1samp,
    ttest_ind,
    ttest_rel,
    tvar,
    variation,
    yeojohnson,
    yeojohnson_llf,
    zmap,
    zscore,
)
from symgrad.scipy.special import (
    BETAINC_ODDS,
    BETAINCC_ODDS,
    GAMMAINC_SQUARE,
    GAMMAINCC_POWER,
    GAMMAINCC_SQUARE,
    GAMMAINCCINV_POWER,
    GAMMAINCCINV_ROOT,
    GAMMAINCINV_ROOT,
    LOG_DIGITS,
    POWER_EXP,
)
from symgrad.tracing.frames import where
from symgrad.watch.likeness import Holding

Fun = Callable[..., Any]
INF, ROOT_2, LOG_2, LOG_2PI = math.inf, math.sqrt(2), math.log(2), math.log(2 * math.pi)
LEAST = -746.0  # of what is less, ``exp`` is 0
LARGE = 700.0  # its ``exp`` does not overflow
FAR = 1e100  # as good as infinity under a normal density, and not squared either
TINY = 1e-150  # its inverse does not overflow, and that squared neither


__getattr__ = rest_of(scipy.stats)


def _number(x: Any) -> Any:
    """NumPy's number or an array, lists as one too; of double precision at least, which SciPy computes in."""
    x = x if isinstance(x, Traced) else array_of(x)
    return x if hasattr(x, "dtype") and x.dtype.char == "d" else np.multiply(x, np.float64(1))


def _positive(*shapes: Any) -> list[Any]:
    """What must hold of the shape parameters of most distributions."""
    return [shape > 0 for shape in shapes]


# -- parts of formulas ---------------------------------------------------------------------------------------------


def _exp(x: Any) -> Any:
    """``exp(x)``; where that is 0, its derivative is too, however steeply ``x`` falls."""
    return np.where(x < LEAST, 0.0, np.exp(x))


def _without_exp(x: Any) -> Any:
    """``1 - exp(x)``; where that is 1, its derivative is 0, too."""
    return np.where(x < LEAST, 1.0, -sp.expm1(x))


def _log_of(p: Any, rest: Any) -> Any:
    """The logarithm of a probability, given that of the rest, which has the digits where ``p`` is nearly 1."""
    return LOG_DIGITS(np.log(p), rest)


def _log_erfc(x: Any) -> Any:
    """The logarithm of ``erfc(x)``, where ``x`` is not negative."""
    return LOG_DIGITS(np.log(sp.erfcx(x)) - x * x, sp.erf(x))


def _log_powers(powers: Any, log: Any) -> Any:
    """The logarithm of ``base**low * (1 - base)**high * exp(log)``; ``powers`` are ``(base, low)`` or these three."""
    base, low, *high = powers
    value = sp.xlogy(low, base) + log
    return value + sp.xlog1py(high[0], -base) if high else value


def _powers(powers: Any, log: Any) -> Any:
    """The same without the logarithm, with its derivatives where the base is 0 or 1."""
    base, low, *high = powers
    if high:  # the end that is near has the power, the other one is part of the logarithm
        upper = base > 0.5
        base, low, other = np.where(upper, 1 - base, base), np.where(upper, high[0], low), np.where(upper, low, high[0])
        log = log + sp.xlog1py(other, -base)
    return POWER_EXP(base, low, log)


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


class Density(Distribution):
    """A distribution in standard form; each function takes the standardised ``z`` and the shape parameters.

    ``powers`` are factors of the density that ``logpdf`` then leaves out, as ``_log_powers`` takes them; it is ``steep``
    where it falls so fast that its slope overflows. The ``support`` may hang on the shape parameters, and with it ``inner``.
    """

    def __init__(
        self,
        shapes: str,
        logpdf: Fun,
        *,
        powers: Fun | None = None,
        steep: bool = False,
        support: tuple[float, float] | Fun = (-INF, INF),
        inner: float | Fun = 0.0,
        open: str = "",
        valid: Fun = _positive,
    ) -> None:
        self.names = [*shapes.split(), "loc", "scale"]
        self._logpdf, self._powers = logpdf, powers
        self._exp: Fun = _exp if steep else np.exp
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

    def _within(self, z: Any, shapes: list[Any]) -> tuple[Any, Any, Any]:
        """``z`` where the formulas hold, else some number where they do; and where it is below and above, if anywhere.

        They hold at the ends of the support, but at those that are ``open``.
        """
        support, inner = self.support, self.inner
        low, high = support(*shapes) if callable(support) else support
        below = z <= low if "low" in self.open else None if not callable(support) and low == -INF else z < low
        above = z >= high if "high" in self.open else None if not callable(support) and high == INF else z > high
        outside = below if above is None else above if below is None else below | above
        return (z if outside is None else np.where(outside, inner(*shapes) if callable(inner) else inner, z)), below, above

    def _extended(self, x: Any, args: Any, kwds: Any, fun: Fun, first: float, last: float) -> Any:
        """``fun``, and beyond the ends of the support ``first`` and ``last``."""
        z, shapes, valid = self._standard(x, args, kwds)
        z, below, above = self._within(z, shapes)
        value = fun(z, *shapes)
        value = value if below is None else np.where(below, first, value)
        return _checked(value if above is None else np.where(above, last, value), valid)

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the density."""
        powers, fun = self._powers, self._logpdf
        whole = fun if powers is None else lambda *values: _log_powers(powers(*values), fun(*values))
        scale = self._given(args, kwds)[2]
        value = self._extended(x, args, kwds, whole, -INF, -INF)
        return value if scale is None else value - np.log(np.abs(scale))  # where it is negative, the value is NaN

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The density."""
        scale = self._given(args, kwds)[2]

        def fun(*values: Any) -> Any:
            log = self._logpdf(*values)
            log = log if scale is None else log - np.log(np.abs(scale))
            if self._powers is None:
                return self._exp(log)
            return np.where(log == -INF, 0.0, _powers(self._powers(*values), log))

        return self._extended(x, args, kwds, fun, 0.0, 0.0)


class Continuous(Density):
    """One with a distribution function, and quantiles: ``ppf`` and ``isf`` of the probability at either side, if any."""

    def __init__(
        self,
        shapes: str,
        logpdf: Fun,
        cdf: Fun,
        ppf: Fun | None = None,
        isf: Fun | None = None,
        *,
        sf: Fun | None = None,
        logcdf: Fun | None = None,
        logsf: Fun | None = None,
        **options: Any,
    ) -> None:
        super().__init__(shapes, logpdf, **options)
        self._cdf, self._ppf, self._isf = cdf, ppf, isf
        self._sf: Fun = sf or (lambda *values: 1 - cdf(*values))
        self._logcdf: Fun = logcdf or (lambda *values: _log_of(cdf(*values), self._sf(*values)))
        self._logsf: Fun = logsf or (lambda *values: _log_of(self._sf(*values), cdf(*values)))

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The distribution function."""
        return self._extended(x, args, kwds, self._cdf, 0.0, 1.0)

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The survival function, ``1 - cdf``."""
        return self._extended(x, args, kwds, self._sf, 1.0, 0.0)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the distribution function."""
        return self._extended(x, args, kwds, self._logcdf, -INF, 0.0)

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the survival function."""
        return self._extended(x, args, kwds, self._logsf, 0.0, -INF)

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The quantile function, the inverse of ``cdf``."""
        if self._ppf is None:
            raise NotImplementedError("the quantiles of this distribution are not here")
        return self._quantile(self._ppf, q, args, kwds)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """The inverse of ``sf``."""
        if self._isf is not None:
            return self._quantile(self._isf, q, args, kwds)
        if traced_in((q, *args, *kwds.values())) is not None:
            raise NotDifferentiable(
                f"{where()}: the quantiles of this distribution have no derivative rule; a root of its sf has: optimize.brentq"
            )
        return self._scipys().isf(q, *args, **kwds)

    def _quantile(self, fun: Fun, q: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> Any:
        shapes, loc, scale = self._given(args, kwds)
        q = _number(q)
        q = _checked(q, _where_all([q >= 0, q <= 1]))
        valid, given = self._valid(shapes, scale), shapes
        if not callable(self.support):  # its ends do not move with the shapes
            ends = (q == 0) | (q == 1)
            given = [np.where(ends, STOP(shape), shape) for shape in shapes]
        z: Any = _checked(fun(q, *given), valid)
        z = z if scale is None else z * scale
        return z if loc is None else z + loc


def _where_all(conditions: list[Any]) -> Any:
    """Where all hold: a mask, or True."""
    masks = [condition for condition in conditions if isinstance(condition, Traced) or not np.all(condition)]
    return functools.reduce(operator.and_, masks) if masks else True


def _checked(value: Any, valid: Any) -> Any:
    """NaN for parameters that are none; a number, where it is no array."""
    value = value if valid is True else np.where(valid, value, np.nan)
    return value[()] if hasattr(value, "dtype") and np.ndim(value) == 0 else value


def _laplace_cdf(z: Any) -> Any:
    left = z < 0
    return np.where(left, 0.5 * np.exp(np.where(left, z, 0)), 1 - 0.5 * np.exp(-np.where(left, 0, z)))


def _laplace_ppf(q: Any) -> Any:
    left = q < 0.5
    return np.where(left, np.log(2 * np.where(left, q, 0.5)), -np.log(2 * np.where(left, 0.5, 1 - q)))


def _laplace_logcdf(z: Any) -> Any:
    left = z < 0
    return np.where(left, z - LOG_2, np.log1p(-0.5 * np.exp(-np.where(left, 0, z))))


def _log_without_gumbel(z: Any) -> Any:
    """The logarithm of ``1 - exp(-exp(z))``, which in the left tail is ``exp(z)``."""
    tail = z < -40
    rate = np.exp(np.where(tail, 0, z))
    return np.where(tail, z, _log_of(_without_exp(-rate), _exp(-rate)))


def _large_exp(z: Any) -> Any:
    """``exp(z)``, of something that is nearly 0 or 1 where this would overflow."""
    return np.exp(np.minimum(z, LARGE))


def _large_log(z: Any) -> Any:
    """The logarithm, of infinity a number that is as good."""
    return np.minimum(np.log(z), FAR)


def _large_arcsinh(z: Any) -> Any:
    return np.clip(np.arcsinh(z), -FAR, FAR)


def _levy_root(z: Any) -> Any:
    """Of whose ``erfc`` and ``erf`` nothing is left below ``TINY``."""
    return np.sqrt(0.5 / np.maximum(z, TINY))


def _odds_at(a: Any, b: Any, q: Any) -> Any:
    """The odds of the number below which a beta distribution has ``q``; from above, where there is less."""
    upper = (q > 0.5) & (q < 1)
    below, above = sp.betaincinv(a, b, np.where(upper, 0.5, q)), sp.betaincinv(b, a, np.where(upper, 1 - q, 0.5))
    return np.where(upper, (1 - above) / above, below / (1 - below))


def _invgauss_log(z: Any, mu: Any, side: int) -> Any:
    """The logarithm of ``cdf``, or of ``sf`` for a ``side`` of -1: that of a normal tail, and of a share more, or less.

    In the tail the share is one of numbers that do not vanish.
    """
    root = np.sqrt(z)
    x, v = side * (z / mu - 1) / root, (z / mu + 1) / root
    tail, normal = x < 0, sp.log_ndtr(x)
    share = sp.erfcx(v / ROOT_2) / sp.erfcx(-np.where(tail, x, 0) / ROOT_2)
    share = np.where(tail, share, _exp(np.where(tail, 0, 2 / mu + sp.log_ndtr(-v) - normal)))
    return normal + np.log1p(side * np.minimum(share, 1 - 2.0**-53))


def _loggamma_tail(z: Any, c: Any) -> Any:
    """The logarithm of the first term of the distribution function's power series in ``exp(z)``."""
    return c * z - sp.gammaln(c + 1)


def _loggamma_cdf(z: Any, c: Any) -> Any:
    return np.where(z < -40, _exp(_loggamma_tail(z, c)), sp.gammainc(c, _large_exp(z)))


def _loggamma_sf(z: Any, c: Any) -> Any:
    return np.where(z < -40, _without_exp(_loggamma_tail(z, c)), sp.gammaincc(c, _large_exp(z)))


def _loggamma_logcdf(z: Any, c: Any) -> Any:
    tail, rate = z < -40, _large_exp(z)
    inner = np.log(np.where(tail, 1, sp.gammainc(c, rate)))
    return LOG_DIGITS(np.where(tail, _loggamma_tail(z, c), inner), _loggamma_sf(z, c))


def _cauchy_tail(z: Any) -> Any:
    return np.arctan2(1, z) / math.pi


def _cauchy_ppf(q: Any) -> Any:
    side = np.minimum(q, 1 - q)
    tail = side < 0.25
    far = np.where(q < 0.5, -1.0, 1.0) / np.tan(math.pi * np.where(tail, side, 0.25))
    return np.where(tail, far, np.tan(math.pi * (np.where(tail, 0.5, q) - 0.5)))


def _gennorm_cdf(z: Any, beta: Any) -> Any:
    left = z < 0
    tail = 0.5 * GAMMAINCC_POWER(beta, np.where(left, -z, z))  # which has a slope at 0
    return np.where(left, tail, 1 - tail)


def _gennorm_ppf(q: Any, beta: Any) -> Any:
    left = q < 0.5
    return np.where(left, -1.0, 1.0) * GAMMAINCCINV_POWER(beta, 2 * np.where(left, q, 1 - q))


def _wrapped(z: Any, c: Any, side: float) -> Any:
    """The angle that is ``z / 2`` on a circle which is drawn out by ``c``, from one side or the other."""
    return np.arctan2(c * np.sin(z), side * np.cos(z))


def _mirrored(low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Two ends of which the first is not above 0, mirrored if need be, and whether neither is."""
    turn = low > 0
    low, high = np.where(turn, -high, low), np.where(turn, -low, high)
    return np.clip(low, -FAR, FAR), np.clip(high, -FAR, FAR), high <= 0  # at infinity, slopes are 0 times something finite


def _normal_share(low: Any, high: Any, log_mass: Any) -> Any:
    """The probability between the ends under the normal density, by one that has that logarithm."""
    low, high, tail = _mirrored(low, high)
    edge = sp.log_ndtr(np.where(tail, high, 0))
    far = np.exp(edge - log_mass) * (0 - sp.expm1(np.where(tail, sp.log_ndtr(low) - edge, 0)))
    return np.where(tail, far, 0.5 * (sp.erf(high / ROOT_2) - sp.erf(low / ROOT_2)) * np.exp(-log_mass))


def _log_normal_mass(low: Any, high: Any) -> Any:
    """The logarithm of the probability between the ends under the normal density."""
    low, high, tail = _mirrored(low, high)
    edge = sp.log_ndtr(np.where(tail, high, 0))
    far = edge + np.log(0 - sp.expm1(np.where(tail, sp.log_ndtr(low) - edge, -1)))
    near = 0.5 * (sp.erf(np.where(tail, 1, high) / ROOT_2) - sp.erf(np.where(tail, -1, low) / ROOT_2))
    return np.where(tail, far, np.log(near))


def _truncnorm_ppf(q: Any, a: Any, b: Any) -> Any:
    left, inside = a < 0, (q > 0) & (q < 1)
    p = np.where(inside, q, 0.5)
    log = np.logaddexp(sp.log_ndtr(np.maximum(np.where(left, a, -b), -FAR)), np.where(left, np.log(p), np.log1p(-p))
                       + _log_normal_mass(a, b))  # fmt: skip
    return np.where(inside, np.where(left, 1, -1) * sp.ndtri_exp(log), np.where(q == 0, a, np.where(q == 1, b, q)))


def _truncnorm_inner(a: Any, b: Any) -> Any:
    """A number between the ends, which may be infinite."""
    a, b = np.maximum(STOP(a), -FAR), np.minimum(STOP(b), FAR)
    return np.where(a > -FAR, np.minimum(a + 1, 0.5 * (a + b)), np.minimum(b - 1, 0))


def _t_logpdf(z: Any, df: Any) -> Any:
    df = np.minimum(df, FAR)  # to have the normal density at infinity
    return -sp.betaln(0.5 * df, 0.5) - 0.5 * np.log(df) - 0.5 * (df + 1) * np.log1p(z * z / df)


def _few(p: Any) -> Any:
    return np.where(p > 0.5, 0.25, p)


def _none_of(p: Any, k: Any) -> Any:
    """``(1 - p)**k`` of large ``p``, with its derivatives where that is 1."""
    return POWER_EXP(np.where(p > 0.5, 1 - p, 0.25), k, 0.0)


# fmt: off
norm = Continuous("", lambda z: -0.5 * z * z - 0.5 * LOG_2PI, lambda z: sp.ndtr(z), lambda q: sp.ndtri(q),
                  isf=lambda q: -sp.ndtri(q),
                  sf=lambda z: sp.ndtr(-z), logcdf=lambda z: sp.log_ndtr(z), logsf=lambda z: sp.log_ndtr(-z))
uniform = Continuous("", lambda z: 0 * z, lambda z: z, lambda q: q, isf=lambda q: 1 - q,
                     sf=lambda z: 1 - z, support=(0.0, 1.0), inner=0.5)
expon = Continuous("", lambda z: -z, lambda z: -sp.expm1(-z), lambda q: -np.log1p(-q), isf=lambda q: -np.log(q),
                   sf=lambda z: np.exp(-z),
                   logsf=lambda z: -z, support=(0.0, INF), inner=1.0)
laplace = Continuous("", lambda z: -np.abs(z) - LOG_2, _laplace_cdf, _laplace_ppf, isf=lambda q: -_laplace_ppf(q),
                     sf=lambda z: _laplace_cdf(-z),
                     logcdf=_laplace_logcdf, logsf=lambda z: _laplace_logcdf(-z))
logistic = Continuous("", lambda z: sp.log_expit(z) + sp.log_expit(-z), lambda z: sp.expit(z), lambda q: sp.logit(q),
                      isf=lambda q: -sp.logit(q),
                      sf=lambda z: sp.expit(-z), logcdf=lambda z: sp.log_expit(z), logsf=lambda z: sp.log_expit(-z))
cauchy = Continuous("", lambda z: -math.log(math.pi) - np.log1p(z * z), lambda z: _cauchy_tail(-z), _cauchy_ppf,
                    isf=lambda q: -_cauchy_ppf(q),
                    sf=_cauchy_tail)
gumbel_r = Continuous("", lambda z: -z - np.exp(-z), lambda z: _exp(-np.exp(-z)), lambda q: -np.log(-np.log(q)),
                      isf=lambda q: -np.log(-np.log1p(-q)),
                      sf=lambda z: _without_exp(-np.exp(-z)), logcdf=lambda z: -np.exp(-z),
                      logsf=lambda z: _log_without_gumbel(-z), steep=True)
halfnorm = Continuous("", lambda z: 0.5 * math.log(2 / math.pi) - 0.5 * z * z, lambda z: sp.erf(z / ROOT_2),
                      lambda q: sp.ndtri(0.5 * (1 + q)), isf=lambda q: -sp.ndtri(0.5 * q),
                      sf=lambda z: sp.erfc(z / ROOT_2),
                      logsf=lambda z: _log_erfc(z / ROOT_2), support=(0.0, INF), inner=1.0)
gumbel_l = Continuous("", lambda z: z - np.exp(z), lambda z: _without_exp(-np.exp(z)), lambda q: np.log(-np.log1p(-q)),
                      isf=lambda q: np.log(-np.log(q)),
                      sf=lambda z: _exp(-np.exp(z)), logcdf=lambda z: _log_without_gumbel(z), logsf=lambda z: -np.exp(z),
                      steep=True)
halfcauchy = Continuous("", lambda z: math.log(2 / math.pi) - np.log1p(z * z), lambda z: 2 / math.pi * np.arctan(z),
                        lambda q: _halfcauchy_ppf(q), isf=lambda q: 1 / _halfcauchy_ppf(q),
                        sf=lambda z: 2 * _cauchy_tail(z), support=(0.0, INF), inner=1.0)
maxwell = Continuous("", lambda z: 0.5 * math.log(2 / math.pi) - 0.5 * z * z, lambda z: GAMMAINC_SQUARE(1.5, z / ROOT_2),
                     lambda q: ROOT_2 * GAMMAINCINV_ROOT(1.5, q), isf=lambda q: ROOT_2 * GAMMAINCCINV_ROOT(1.5, q),
                     sf=lambda z: GAMMAINCC_SQUARE(1.5, z / ROOT_2),
                     powers=lambda z: (z, 2.0), support=(0.0, INF), inner=1.0)
rayleigh = Continuous("", lambda z: -0.5 * z * z, lambda z: -sp.expm1(-0.5 * z * z),
                      lambda q: np.sqrt(-2 * np.log1p(-q)), isf=lambda q: np.sqrt(-2 * np.log(q)),
                      sf=lambda z: np.exp(-0.5 * z * z), logsf=lambda z: -0.5 * z * z,
                      powers=lambda z: (z, 1.0), support=(0.0, INF), inner=1.0, open="high")
t = Continuous("df", _t_logpdf, lambda z, df: sp.stdtr(df, z), lambda q, df: _t_ppf(q, df), isf=lambda q, df: -_t_ppf(q, df),
               sf=lambda z, df: sp.stdtr(df, -z), steep=True)
gamma = Continuous("a", lambda z, a: -z - sp.gammaln(a), lambda z, a: sp.gammainc(a, z), lambda q, a: sp.gammaincinv(a, q),
                   isf=lambda q, a: sp.gammainccinv(a, q),
                   sf=lambda z, a: sp.gammaincc(a, z), powers=lambda z, a: (z, a - 1), support=(0.0, INF), inner=1.0)
invgamma = Continuous("a", lambda z, a: -(a + 1) * np.log(z) - sp.gammaln(a) - 1 / z,
                      lambda z, a: sp.gammaincc(a, 1 / np.maximum(z, TINY)), lambda q, a: 1 / sp.gammainccinv(a, q),
                      isf=lambda q, a: 1 / sp.gammaincinv(a, q),
                      sf=lambda z, a: sp.gammainc(a, 1 / np.maximum(z, TINY)), support=(0.0, INF), inner=1.0, open="low",
                      steep=True)
chi2 = Continuous("df", lambda z, df: -0.5 * z - sp.gammaln(0.5 * df) - 0.5 * df * LOG_2, lambda z, df: sp.chdtr(df, z),
                  lambda q, df: 2 * sp.gammaincinv(0.5 * df, q), isf=lambda q, df: 2 * sp.gammainccinv(0.5 * df, q),
                  sf=lambda z, df: sp.chdtrc(df, z),
                  powers=lambda z, df: (z, 0.5 * df - 1), support=(0.0, INF), inner=1.0)
chi = Continuous("df", lambda z, df: (1 - 0.5 * df) * LOG_2 - sp.gammaln(0.5 * df) - 0.5 * z * z,
                 lambda z, df: GAMMAINC_SQUARE(0.5 * df, z / ROOT_2), lambda q, df: ROOT_2 * GAMMAINCINV_ROOT(0.5 * df, q),
                 isf=lambda q, df: ROOT_2 * GAMMAINCCINV_ROOT(0.5 * df, q),
                 sf=lambda z, df: GAMMAINCC_SQUARE(0.5 * df, z / ROOT_2), powers=lambda z, df: (z, df - 1),
                 support=(0.0, INF), inner=1.0)
f = Continuous("dfn dfd", lambda z, n, d: 0.5 * n * np.log(n) + 0.5 * d * np.log(d) - 0.5 * (n + d) * np.log(d + n * z)
               - sp.betaln(0.5 * n, 0.5 * d), lambda z, n, d: sp.fdtr(n, d, z),
               lambda q, n, d: d / n * _odds_at(0.5 * n, 0.5 * d, q),
               isf=lambda q, n, d: d / n / _odds_at(0.5 * d, 0.5 * n, q),
               sf=lambda z, n, d: sp.fdtrc(n, d, z), powers=lambda z, n, d: (z, 0.5 * n - 1), support=(0.0, INF), inner=1.0,
               open="high")
beta = Continuous("a b", lambda z, a, b: -sp.betaln(a, b), lambda z, a, b: sp.betainc(a, b, z),
                  lambda q, a, b: sp.betaincinv(a, b, q), isf=lambda q, a, b: sp.betainccinv(a, b, q),
                  sf=lambda z, a, b: sp.betaincc(a, b, z),
                  powers=lambda z, a, b: (z, a - 1, b - 1), support=(0.0, 1.0), inner=0.5)
lognorm = Continuous("s", lambda z, s: -0.5 * (np.log(z) / s) ** 2 - np.log(s * z) - 0.5 * LOG_2PI,
                     lambda z, s: sp.ndtr(_large_log(z) / s), lambda q, s: np.exp(s * sp.ndtri(q)),
                     isf=lambda q, s: np.exp(-s * sp.ndtri(q)),
                     sf=lambda z, s: sp.ndtr(-_large_log(z) / s), logcdf=lambda z, s: sp.log_ndtr(_large_log(z) / s),
                     logsf=lambda z, s: sp.log_ndtr(-np.log(z) / s), support=(0.0, INF), inner=1.0, open="low", steep=True)
weibull_min = Continuous("c", lambda z, c: np.log(c) - z ** c, lambda z, c: _without_exp(-(z ** c)),
                         lambda q, c: (-np.log1p(-q)) ** (1 / c), isf=lambda q, c: (0 - np.log(q)) ** (1 / c),
                         sf=lambda z, c: _exp(-(z ** c)),
                         logsf=lambda z, c: -(z ** c), powers=lambda z, c: (z, c - 1), support=(0.0, INF), inner=1.0)
weibull_max = Continuous("c", lambda z, c: np.log(c) - (-z) ** c, lambda z, c: _exp(-((-z) ** c)),
                         lambda q, c: -((-np.log(q)) ** (1 / c)), isf=lambda q, c: -((-np.log1p(-q)) ** (1 / c)),
                         sf=lambda z, c: _without_exp(-((-z) ** c)),
                         logcdf=lambda z, c: -((-z) ** c), powers=lambda z, c: (-z, c - 1), support=(-INF, 0.0), inner=-1.0)
powerlaw = Continuous("a", lambda z, a: np.log(a), lambda z, a: z ** a, lambda q, a: q ** (1 / a),
                      isf=lambda q, a: np.exp(np.log1p(-q) / a),
                      sf=lambda z, a: 0 - sp.powm1(z, a), logcdf=lambda z, a: sp.xlogy(a, z),
                      powers=lambda z, a: (z, np.where((z == 0) & (a < 1), 2, a - 1)),  # where it has a pole, SciPy has 0
                      support=(0.0, 1.0), inner=0.5)
fisk = Continuous("c", lambda z, c: np.log(c) - 2 * np.log1p(z ** c), lambda z, c: _without_exp(-np.log1p(z ** c)),
                  lambda q, c: q ** (1 / c) * (1 - q) ** (-1 / c), isf=lambda q, c: (1 - q) ** (1 / c) * q ** (-1 / c),
                  sf=lambda z, c: _exp(-np.log1p(z ** c)),
                  logsf=lambda z, c: -np.log1p(z ** c), powers=lambda z, c: (z, c - 1), support=(0.0, INF), inner=1.0,
                  open="high")
pareto = Continuous("b", lambda z, b: np.log(b) - (b + 1) * np.log(z), lambda z, b: 0 - sp.powm1(z, -b),
                    lambda q, b: (1 - q) ** (-1 / b), isf=lambda q, b: q ** (-1 / b),
                    sf=lambda z, b: (1 / z) ** b,
                    logsf=lambda z, b: -b * np.log(z), support=(1.0, INF), inner=2.0)
lomax = Continuous("c", lambda z, c: np.log(c) - (c + 1) * np.log1p(z), lambda z, c: _without_exp(-c * np.log1p(z)),
                   lambda q, c: np.expm1(-np.log1p(-q) / c), isf=lambda q, c: np.expm1(-np.log(q) / c),
                   sf=lambda z, c: _exp(-c * np.log1p(z)),
                   logsf=lambda z, c: -c * np.log1p(z), support=(0.0, INF), inner=1.0)
gompertz = Continuous("c", lambda z, c: np.log(c) + z - c * np.expm1(z), lambda z, c: _without_exp(-c * np.expm1(z)),
                      lambda q, c: np.log1p(-np.log1p(-q) / c), isf=lambda q, c: np.log1p(-np.log(q) / c),
                      sf=lambda z, c: _exp(-c * np.expm1(z)),
                      logsf=lambda z, c: -c * np.expm1(z), support=(0.0, INF), inner=1.0, steep=True)
invgauss = Continuous("mu", lambda z, mu: -0.5 * LOG_2PI - 1.5 * np.log(z) - (z - mu) ** 2 / (2 * mu * mu * z),
                      lambda z, mu: _exp(_invgauss_log(z, mu, 1)), sf=lambda z, mu: _exp(_invgauss_log(z, mu, -1)),
                      logcdf=lambda z, mu: LOG_DIGITS(_invgauss_log(z, mu, 1), np.exp(_invgauss_log(z, mu, -1))),
                      logsf=lambda z, mu: LOG_DIGITS(_invgauss_log(z, mu, -1), np.exp(_invgauss_log(z, mu, 1))),
                      support=(0.0, INF), inner=1.0, open="low high", steep=True)
loggamma = Continuous("c", lambda z, c: c * z - np.exp(z) - sp.gammaln(c), _loggamma_cdf,
                      lambda q, c: np.log(sp.gammaincinv(c, q)), isf=lambda q, c: np.log(sp.gammainccinv(c, q)),
                      sf=_loggamma_sf, logcdf=_loggamma_logcdf, steep=True)
nakagami = Continuous("nu", lambda z, nu: LOG_2 + nu * np.log(nu) - sp.gammaln(nu) - nu * z * z,
                      lambda z, nu: GAMMAINC_SQUARE(nu, np.sqrt(nu) * np.minimum(z, FAR)),
                      lambda q, nu: GAMMAINCINV_ROOT(nu, q) / np.sqrt(nu),
                      isf=lambda q, nu: GAMMAINCCINV_ROOT(nu, q) / np.sqrt(nu),
                      sf=lambda z, nu: GAMMAINCC_SQUARE(nu, np.sqrt(nu) * np.minimum(z, FAR)),
                      powers=lambda z, nu: (z, 2 * nu - 1), support=(0.0, INF), inner=1.0)
burr12 = Continuous("c d", lambda z, c, d: np.log(c * d) - (d + 1) * np.log1p(z ** c),
                    lambda z, c, d: _without_exp(-d * np.log1p(z ** c)),
                    lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (1 / c),
                    isf=lambda q, c, d: np.expm1(-np.log(q) / d) ** (1 / c),
                    sf=lambda z, c, d: _exp(-d * np.log1p(z ** c)),
                    logsf=lambda z, c, d: -d * np.log1p(z ** c), powers=lambda z, c, d: (z, c - 1), support=(0.0, INF),
                    inner=1.0)
invweibull = Continuous("c", lambda z, c: np.log(c) - (c + 1) * np.log(z) - z ** -c, lambda z, c: _exp(-((1 / z) ** c)),
                        lambda q, c: (0 - np.log(q)) ** (-1 / c), isf=lambda q, c: (-np.log1p(-q)) ** (-1 / c),
                        sf=lambda z, c: _without_exp(-((1 / z) ** c)),
                        logcdf=lambda z, c: -((1 / z) ** c), support=(0.0, INF), inner=1.0, open="low", steep=True)
levy = Continuous("", lambda z: -0.5 * LOG_2PI - 1.5 * np.log(z) - 0.5 / z, lambda z: sp.erfc(_levy_root(z)),
                  lambda q: sp.ndtri(0.5 * q) ** -2, isf=lambda q: 0.5 * sp.erfinv(q) ** -2,
                  sf=lambda z: sp.erf(_levy_root(z)),
                  logcdf=lambda z: _log_erfc(np.sqrt(0.5 / z)), support=(0.0, INF), inner=1.0, open="low", steep=True)
moyal = Continuous("", lambda z: -0.5 * (z + np.exp(-z) + LOG_2PI), lambda z: sp.erfc(_large_exp(-0.5 * z) / ROOT_2),
                   lambda q: -np.log(2 * sp.erfcinv(q) ** 2), isf=lambda q: -np.log(2 * sp.erfinv(q) ** 2),
                   sf=lambda z: sp.erf(_large_exp(-0.5 * z) / ROOT_2),
                   logcdf=lambda z: _log_erfc(np.exp(-0.5 * z) / ROOT_2), steep=True)
johnsonsu = Continuous("a b", lambda z, a, b: np.log(b) - 0.5 * np.log1p(z * z) - 0.5 * LOG_2PI
                       - 0.5 * (a + b * np.arcsinh(z)) ** 2, lambda z, a, b: sp.ndtr(a + b * _large_arcsinh(z)),
                       lambda q, a, b: np.sinh((sp.ndtri(q) - a) / b), isf=lambda q, a, b: -np.sinh((sp.ndtri(q) + a) / b),
                       sf=lambda z, a, b: sp.ndtr(-(a + b * _large_arcsinh(z))),
                       logcdf=lambda z, a, b: sp.log_ndtr(a + b * np.arcsinh(z)),
                       logsf=lambda z, a, b: sp.log_ndtr(-(a + b * np.arcsinh(z))), valid=lambda a, b: [a == a, b > 0])
betaprime = Continuous("a b", lambda z, a, b: -(a + b) * np.log1p(z) - sp.betaln(a, b),
                       lambda z, a, b: BETAINC_ODDS(a, b, z), lambda q, a, b: _odds_at(a, b, q),
                       isf=lambda q, a, b: 1 / _odds_at(b, a, q),
                       sf=lambda z, a, b: BETAINCC_ODDS(a, b, z),
                       powers=lambda z, a, b: (z, np.where((z == 0) & (a <= 1), 2, a - 1)),  # where it is not 0, SciPy has 0
                       support=(0.0, INF), inner=1.0, open="high")
gennorm = Continuous("beta", lambda z, beta: np.log(0.5 * beta) - sp.gammaln(1 / beta) - np.abs(z) ** beta, _gennorm_cdf,
                     _gennorm_ppf, lambda q, beta: -_gennorm_ppf(q, beta), sf=lambda z, beta: _gennorm_cdf(-z, beta),
                     steep=True)
wrapcauchy = Continuous("c", lambda z, c: np.log((1 - c) * (1 + c) / (2 * math.pi)) - np.log((1 - c) ** 2
                        + 4 * c * np.sin(0.5 * z) ** 2), lambda z, c: _wrapped(0.5 * z, (1 + c) / (1 - c), 1) / math.pi,
                        lambda q, c: 2 * _wrapped(math.pi * q, (1 - c) / (1 + c), 1),
                        lambda q, c: 2 * _wrapped(math.pi * q, (1 - c) / (1 + c), -1),
                        sf=lambda z, c: _wrapped(0.5 * z, (1 + c) / (1 - c), -1) / math.pi, support=(0.0, 2 * math.pi),
                        inner=1.0, valid=lambda c: [c > 0, c < 1])
truncnorm = Continuous("a b", lambda z, a, b: -0.5 * z * z - 0.5 * LOG_2PI - _log_normal_mass(a, b),
                       lambda z, a, b: _normal_share(a, z, _log_normal_mass(a, b)), _truncnorm_ppf,
                       lambda q, a, b: -_truncnorm_ppf(q, -b, -a),
                       sf=lambda z, a, b: _normal_share(z, b, _log_normal_mass(a, b)),
                       logcdf=lambda z, a, b: LOG_DIGITS(_log_normal_mass(a, z) - _log_normal_mass(a, b),
                                                         _normal_share(z, b, _log_normal_mass(a, b))),
                       logsf=lambda z, a, b: LOG_DIGITS(_log_normal_mass(z, b) - _log_normal_mass(a, b),
                                                        _normal_share(a, z, _log_normal_mass(a, b))),
                       support=lambda a, b: (a, b), inner=_truncnorm_inner, valid=lambda a, b: [a < b])
# its distribution function has no closed form
vonmises = Density("kappa", lambda z, kappa: kappa * sp.cosm1(z) - LOG_2PI - np.log(sp.i0e(kappa)),
                   valid=lambda kappa: [kappa >= 0])
# fmt: on


def _halfcauchy_ppf(q: Any) -> Any:
    tail = q > 0.5
    return np.where(tail, 1 / np.tan(math.pi / 2 * np.where(tail, 1 - q, 0.5)), np.tan(math.pi / 2 * np.where(tail, 0.5, q)))


def _t_ppf(q: Any, df: Any) -> Any:
    mirrored = q == 0  # where the ufunc has inf
    return np.where(mirrored, -1, 1) * sp.stdtrit(df, np.where(mirrored, 1 - q, q))


class Probabilities(Distribution):
    """A distribution of whole numbers; each function takes the number ``k`` and the shape parameters.

    ``powers`` are factors of the probability that ``logpmf`` then leaves out, as ``_log_powers`` takes them.
    """

    def __init__(
        self, shapes: str, logpmf: Fun, *, powers: Fun | None = None, valid: Fun, low: int = 0, high: Fun | None = None
    ) -> None:
        self.names = [*shapes.split(), "loc"]
        self._logpmf, self._powers = logpmf, powers
        self.valid, self.low, self.high = valid, low, high

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

    def _at(self, k: Any, args: tuple[Any, ...], kwds: dict[str, Any], product: Fun, alone: Fun, nowhere: float) -> Any:
        """``product`` of the powers and what else there is, or that ``alone``; ``nowhere`` without a probability."""
        k, shapes, valid = self._given(k, args, kwds)
        inside = (k >= self.low) & (k == np.floor(k))
        inside = inside if self.high is None else inside & (k <= self.high(*shapes))
        values = (np.where(inside, k, self.low), *shapes)
        log = self._logpmf(*values)
        value = alone(log) if self._powers is None else product(self._powers(*values), log)
        return _checked(np.where(inside, value, nowhere), valid)

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the probability."""
        return self._at(k, args, kwds, _log_powers, np.positive, -INF)

    def pmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability."""
        return self._at(k, args, kwds, _powers, np.exp, 0.0)


class Discrete(Probabilities):
    """One with a distribution function."""

    def __init__(self, shapes: str, logpmf: Fun, cdf: Fun, sf: Fun, *, logsf: Fun | None = None, **options: Any) -> None:
        super().__init__(shapes, logpmf, **options)
        self._cdf, self._sf = cdf, sf
        self._logsf: Fun = logsf or (lambda *values: _log_of(sf(*values), cdf(*values)))

    def _until(self, k: Any, args: tuple[Any, ...], kwds: dict[str, Any], fun: Fun, first: float, last: float) -> Any:
        """``fun``, and ``first`` below all numbers, ``last`` from the highest on."""
        k, shapes, valid = self._given(k, args, kwds)
        k = np.floor(k)
        top = None if self.high is None else self.high(*shapes)
        inside = k >= self.low if top is None else (k >= self.low) & (k < top)
        value = np.where(inside, fun(np.where(inside, k, self.low), *shapes), first)
        return _checked(value if top is None else np.where(k >= top, last, value), valid)

    def cdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of ``k`` or less."""
        return self._until(k, args, kwds, self._cdf, 0.0, 1.0)

    def sf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of more than ``k``."""
        return self._until(k, args, kwds, self._sf, 1.0, 0.0)

    def logcdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of ``cdf``."""
        return self._until(k, args, kwds, lambda *values: _log_of(self._cdf(*values), self._sf(*values)), -INF, 0.0)

    def logsf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of ``sf``."""
        return self._until(k, args, kwds, self._logsf, 0.0, -INF)


def _log_choose(n: Any, k: Any) -> Any:
    return sp.gammaln(n + 1) - sp.gammaln(k + 1) - sp.gammaln(n - k + 1)


# fmt: off
poisson = Discrete("mu", lambda k, mu: -sp.gammaln(k + 1) - mu, lambda k, mu: sp.gammaincc(k + 1, mu),
                   lambda k, mu: sp.gammainc(k + 1, mu), powers=lambda k, mu: (mu, k), valid=lambda mu: [mu >= 0])
binom = Discrete("n p", lambda k, n, p: _log_choose(n, k), lambda k, n, p: sp.betaincc(k + 1, n - k, p),
                 lambda k, n, p: sp.betainc(k + 1, n - k, p), powers=lambda k, n, p: (p, k, n - k), high=lambda n, p: n,
                 valid=lambda n, p: [n >= 0, n == np.floor(n), p >= 0, p <= 1])
bernoulli = Discrete("p", lambda k, p: 0.0, lambda k, p: 1 - p, lambda k, p: p, powers=lambda k, p: (p, k, 1 - k),
                     high=lambda p: 1, valid=lambda p: [p >= 0, p <= 1])
geom = Discrete("p", lambda k, p: 0.0, lambda k, p: np.where(p > 0.5, 1 - _none_of(p, k), -sp.expm1(np.log1p(-_few(p)) * k)),
                lambda k, p: np.where(p > 0.5, _none_of(p, k), np.exp(np.log1p(-_few(p)) * k)),
                logsf=lambda k, p: np.log1p(-p) * k, powers=lambda k, p: (p, 1.0, k - 1), low=1,
                valid=lambda p: [p > 0, p <= 1])
nbinom = Discrete("n p", lambda k, n, p: _log_choose(n + k - 1, k), lambda k, n, p: sp.betainc(n, k + 1, p),
                  lambda k, n, p: sp.betaincc(n, k + 1, p), powers=lambda k, n, p: (p, n, k),
                  valid=lambda n, p: [n > 0, p > 0, p <= 1])
# its distribution function is a sum
betabinom = Probabilities("n a b", lambda k, n, a, b: sp.betaln(k + a, n - k + b) - sp.betaln(a, b) + _log_choose(n, k),
                          high=lambda n, a, b: n, valid=lambda n, a, b: [n >= 0, n == np.floor(n), a > 0, b > 0])
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
        away, cov, size = _deviations(x, mean, cov)
        if np.ndim(cov) == 2 and allow_singular:
            return _squeezed(_singular_logpdf(away, cov))
        squares, logdet = _whitened(away, cov, size)
        return _squeezed(-0.5 * (size * LOG_2PI + logdet + squares))

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: Any = None, cov: Any = 1, allow_singular: bool = True) -> Any:
        """The differential entropy."""
        cov = _number(cov)
        size = _size(mean, cov)
        rank, logdet, _ = _spectrum(cov if np.ndim(cov) == 2 else np.eye(size) * cov)
        return 0.5 * (rank * (1 + LOG_2PI) + logdet)


def _squeezed(value: Any) -> Any:
    """Without axes of one element, as SciPy gives it."""
    return np.squeeze(value)[()] if 1 in np.shape(value) else value


def _size(mean: Any, cov: Any) -> int:
    return int(np.shape(cov)[-1] if np.ndim(cov) else np.size(mean) if mean is not None else 1)


def _deviations(x: Any, mean: Any, cov: Any) -> tuple[Any, Any, int]:
    """The points, counted from the mean, the covariance matrix, and how many dimensions there are."""
    x, cov = _number(x), _number(cov)
    mean = None if mean is None else _number(mean)
    size = _size(mean, cov)
    x = x[..., None] if size == 1 and (np.ndim(x) == 0 or np.shape(x)[-1] != 1) else x
    return (x if mean is None else x - mean), cov, size


def _whitened(away: Any, cov: Any, size: int) -> tuple[Any, Any]:
    """The squares of the points' distances by the inverse of a covariance matrix, and the logarithm of its determinant."""
    if np.ndim(cov) < 2:
        variance = np.broadcast_to(cov, (size,))
        parts = away / np.sqrt(variance)
        return np.sum(parts * parts, axis=-1), np.sum(np.log(variance))
    factor = np.linalg.cholesky(cov)
    several = np.ndim(away) > 2  # of one point, or rows of them, derivatives take less time as they are
    columns = np.transpose(np.reshape(away, (-1, size)) if several else away)
    parts = np.transpose(solve_triangular(factor, columns, lower=True))
    parts = np.reshape(parts, np.shape(away)) if several else parts
    return np.sum(parts * parts, axis=-1), 2 * np.sum(np.log(np.diagonal(factor)))


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


class _MultivariateT(Distribution):
    """``multivariate_t``: ``x`` has its components along the last axis."""

    def __call__(self, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False) -> Frozen:
        """The distribution with these parameters: ``multivariate_t(loc, shape, df).logpdf(x)``."""
        return Frozen(self, (loc, shape, df), {"allow_singular": allow_singular} if allow_singular else {})

    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density; ``shape`` is a matrix, its diagonal, or one number."""
        if allow_singular:
            raise NotDifferentiable("scipy.stats.multivariate_t has no derivative rule for allow_singular=")
        if not isinstance(df, Traced) and df == INF:
            return multivariate_normal.logpdf(x, loc, shape)
        away, shape, size = _deviations(x, loc, shape)
        (squares, logdet), df = _whitened(away, shape, size), _number(df)
        scale = sp.gammaln(0.5 * df) - sp.gammaln(0.5 * (df + size)) + 0.5 * (size * np.log(df * math.pi) + logdet)
        return _squeezed(-0.5 * (df + size) * np.log1p(squares / df) - scale)

    def pdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, loc, shape, df, allow_singular))


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
        return _squeezed(np.sum(sp.xlogy(column - 1, x), axis=0) - scale)

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, alpha))

    def entropy(self, alpha: Any) -> Any:
        """The differential entropy."""
        alpha = _number(alpha)
        whole = np.sum(alpha)
        scale = np.sum(sp.gammaln(alpha)) - sp.gammaln(whole)
        return scale + (whole - np.size(alpha)) * sp.digamma(whole) - np.sum((alpha - 1) * sp.digamma(alpha))


class _Multinomial(Distribution):
    """``multinomial``: ``x`` and ``p`` have their components along the last axis."""

    def __call__(self, n: Any, p: Any) -> Frozen:
        """The distribution with these parameters: ``multinomial(n, p).logpmf(x)``."""
        return Frozen(self, (n, p), {})

    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """The logarithm of the probability of so many of each kind."""
        x, n, p = _number(x), _number(n), _number(p)
        if np.ndim(x) == 0:
            raise ValueError("x must be an array.")
        if np.size(x) and np.shape(x)[-1] != np.shape(p)[-1]:
            raise ValueError(f"Size of each quantile should be size of p: received {np.shape(x)[-1]}, but expected "
                             f"{np.shape(p)[-1]}.")  # fmt: skip
        first = p[..., :-1]
        rest = 1 - np.sum(first, axis=-1, keepdims=True)
        last = np.where(np.abs(rest - p[..., -1:]) > 10 * np.finfo(float).eps, rest, p[..., -1:])  # of what is no sum of 1
        p = np.concatenate((first, last), axis=-1)
        possible = np.all((x >= 0) & (x == np.floor(x)), axis=-1) & (np.sum(x, axis=-1) == n)
        counts = np.where(possible[..., None], x, 0)
        value = sp.gammaln(n + 1) + np.sum(sp.xlogy(counts, p) - sp.gammaln(counts + 1), axis=-1)
        return np.where((n >= 0) & np.all((p >= 0) & (p <= 1), axis=-1), np.where(possible, value, -INF), np.nan)

    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """The probability."""
        return np.exp(self.logpmf(x, n, p))


multivariate_normal, multivariate_t = _MultivariateNormal(), _MultivariateT()
dirichlet, multinomial = _Dirichlet(), _Multinomial()
