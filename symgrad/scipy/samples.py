"""Statistics of samples, for ``symgrad.scipy.stats``: moments, tests, transforms, and densities estimated from points.

Of plain arrays they are SciPy's, with all of its options. Of traced ones, what SciPy raises or warns of is NaN.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.special as sp
import scipy.stats

from symgrad.errors import NotDifferentiable
from symgrad.ops.core import count, same
from symgrad.ops.engine import STOP
from symgrad.ops.index import array_of, floating, traced_in
from symgrad.ops.reduction import ROOT
from symgrad.scipy.linalg import solve_triangular
from symgrad.scipy.special import logsumexp
from symgrad.watch.likeness import Holding

Fun = Callable[..., Any]
REFUSED = ("nan_policy", "method", "permutations", "random_state", "trim")  # but for their defaults


def _of_traced(fun: Fun) -> Fun:
    """Make a definition SciPy's function of that name, which it is of plain arrays."""
    name, theirs, signature = fun.__name__, getattr(scipy.stats, fun.__name__), inspect.signature(fun)

    @functools.wraps(fun)
    def either(*args: Any, **options: Any) -> Any:
        if traced_in([*args, *options.values()]) is None:
            return theirs(*args, **options)
        given = signature.bind(*args, **options).arguments
        for option in REFUSED:
            if option in given and not same(given[option], signature.parameters[option].default):
                raise NotDifferentiable(f"scipy.stats.{name} has no derivative rule for {option}=")
        if any(np.iscomplexobj(value) for value in given.values()):
            raise NotDifferentiable(f"scipy.stats.{name} has no derivative rule for complex numbers")
        return fun(*args, **options)

    return either


def _sample(a: Any) -> Any:
    return np.atleast_1d(floating(a))


def _shown(x: Any, axis: Any, keepdims: bool) -> Any:
    """A statistic that has kept its axes."""
    return x if keepdims else np.reshape(x, ()) if axis is None else np.squeeze(x, axis)


# -- scores and moments --------------------------------------------------------------------------------------------


@_of_traced
def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """How many standard deviations from the mean."""
    a = floating(a)
    mean, spread = np.mean(a, axis=axis, keepdims=True), np.std(a, axis=axis, ddof=ddof, keepdims=True)
    none = spread <= np.abs(np.finfo(a.dtype).eps * mean)
    return (a - mean) / np.where(none, np.nan, spread)


@_of_traced
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """How many standard deviations from the mean of others."""
    compare = floating(compare)
    spread = np.std(compare, axis=axis, ddof=ddof, keepdims=True)
    return (floating(scores) - np.mean(compare, axis=axis, keepdims=True)) / spread


@_of_traced
def gzscore(a: Any, *, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """``zscore`` of the logarithms."""
    return zscore(np.log(floating(a)), axis, ddof)


@_of_traced
def gstd(a: Any, axis: Any = 0, ddof: int = 1, *, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """The exponential of the logarithms' standard deviation."""
    return np.exp(np.std(np.log(floating(a)), axis=axis, ddof=ddof, keepdims=keepdims))


@_of_traced
def moment(
    a: Any, order: Any = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None, keepdims: bool = False
) -> Any:
    """The mean of a power of the distances from the mean, or from a center; one for each of several orders."""
    a = _sample(a)
    if np.ndim(order):
        return np.stack([moment(a, one, axis, center=center, keepdims=keepdims) for one in order])
    if order != round(order):
        raise ValueError("All elements of `order` must be integral.")
    return _shown(_moment(a, int(order), axis, center), axis, keepdims)


def _moment(a: Any, order: int, axis: Any, center: Any = None) -> Any:
    center = np.mean(a, axis=axis, keepdims=True) if center is None and order > 1 else center
    powers = a * 0 if center is None and order == 1 else (a - (0 if center is None else center)) ** order
    return np.mean(powers, axis=axis, keepdims=True)


def _second_moment(a: Any, axis: Any) -> Any:
    """NaN where it is zero, up to rounding."""
    second, mean = _moment(a, 2, axis), np.mean(a, axis=axis, keepdims=True)
    return np.where(second <= (np.finfo(a.dtype).eps * mean) ** 2, np.nan, second)


@_of_traced
def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The third moment of what ``zscore`` makes."""
    a = _sample(a)
    n, value = count(a, axis), _moment(a, 3, axis) / _second_moment(a, axis) ** 1.5
    return _shown(value if bias or n < 3 else math.sqrt((n - 1) * n) / (n - 2) * value, axis, keepdims)


@_of_traced
def kurtosis(
    a: Any,
    axis: Any = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The fourth moment of what ``zscore`` makes, less the normal distribution's 3, if ``fisher``."""
    a = _sample(a)
    n, value = count(a, axis), _moment(a, 4, axis) / _second_moment(a, axis) ** 2
    if not bias and n > 3:
        value = ((n * n - 1) * value - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return _shown(value - 3 if fisher else value, axis, keepdims)


@_of_traced
def variation(a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False) -> Any:
    """The standard deviation by the mean."""
    a = _sample(a)
    n, mean = count(a, axis), np.mean(a, axis=axis, keepdims=keepdims)
    spread = np.std(a, axis=axis, keepdims=keepdims)
    if ddof == n:
        return np.where(spread > 0, np.copysign(np.inf, mean), np.nan)
    return spread * (math.sqrt(n / (n - ddof)) if ddof < n else np.nan) / mean


@_of_traced
def sem(a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The standard error of the mean."""
    a = _sample(a)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / math.sqrt(count(a, axis))


@_of_traced
def iqr(
    x: Any,
    axis: Any = None,
    rng: Any = (25, 75),
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    interpolation: Any = "linear",
    keepdims: bool = False,
) -> Any:
    """The difference of two quantiles, given in per cent."""
    if isinstance(scale, str) and scale.lower() != "normal":
        raise ValueError(f"{scale} not a valid scale for `iqr`")
    x = _sample(x)
    if not np.size(x):
        return np.mean(x, axis=axis, keepdims=keepdims)
    shares = (np.sort(rng) / 100).astype(x.dtype)
    low, high = np.quantile(x, shares, axis=axis, method=interpolation, keepdims=keepdims)
    return (high - low) / (2 * math.sqrt(2) * float(sp.erfinv(0.5)) if isinstance(scale, str) else scale)


@_of_traced
def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """The entropy of a distribution, or its divergence from another; both are scaled to sum to one."""
    if base is not None and base <= 0:
        raise ValueError("`base` must be a positive number or `None`.")
    pk = _sample(pk)
    if qk is not None:
        pk, qk = np.broadcast_arrays(pk, _sample(qk))
        qk = qk / np.sum(qk, axis=axis, keepdims=True)
    pk = pk / np.sum(pk, axis=axis, keepdims=True)
    total = np.sum(sp.entr(pk) if qk is None else sp.rel_entr(pk, qk), axis=axis, keepdims=keepdims)
    return total if base is None else total / (math.log(base) if traced_in(base) is None else np.log(base))


# -- within limits -------------------------------------------------------------------------------------------------


def _inside(a: Any, limits: Any, inclusive: Any) -> Any:
    low, high = (None, None) if limits is None else limits
    outside = np.zeros(np.shape(a), bool)
    if low is not None:
        outside = outside | ((a < low) if inclusive[0] else (a <= low))
    if high is not None:
        outside = outside | ((a > high) if inclusive[1] else (a >= high))
    return ~outside


def _mean_inside(a: Any, inside: Any, axis: Any) -> tuple[Any, Any]:
    """The mean, NaN of nothing, and of how many."""
    n = np.sum(inside, axis=axis, keepdims=True).astype(a.dtype)
    return np.sum(np.where(inside, a, 0), axis=axis, keepdims=True) / np.where(n == 0, np.nan, n), n


def _variance_inside(a: Any, limits: Any, inclusive: Any, axis: Any, ddof: int) -> tuple[Any, Any]:
    inside = _inside(a, limits, inclusive)
    mean, n = _mean_inside(a, inside, axis)
    squares = np.sum(np.where(inside, a - mean, 0) ** 2, axis=axis, keepdims=True)
    return squares / np.where(n > ddof, n - ddof, np.nan), n


@_of_traced
def tmean(
    a: Any,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The mean of what is within limits."""
    a = _sample(a)
    return _shown(_mean_inside(a, _inside(a, limits, inclusive), axis)[0], axis, keepdims)


@_of_traced
def tvar(
    a: Any,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The variance of what is within limits."""
    return _shown(_variance_inside(_sample(a), limits, inclusive, axis, ddof)[0], axis, keepdims)


@_of_traced
def tstd(
    a: Any,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The standard deviation of what is within limits."""
    return ROOT(tvar(a, limits, inclusive, axis, ddof, keepdims=keepdims))


@_of_traced
def tsem(
    a: Any,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The standard error of the mean of what is within limits."""
    variance, n = _variance_inside(_sample(a), limits, inclusive, axis, ddof)
    return _shown(ROOT(variance) / np.sqrt(n), axis, keepdims)


# -- of angles -----------------------------------------------------------------------------------------------------


def _circle(samples: Any, high: Any, low: Any, axis: Any, keepdims: bool) -> tuple[Any, Any, Any, Any]:
    """The means of sine and cosine, the length of that vector, and what its square lacks to one, but for rounding."""
    angles = _sample(samples) * (2 * math.pi / (high - low))
    sin, cos = np.sin(angles), np.cos(angles)
    lacks = np.var(sin, axis=axis, keepdims=keepdims) + np.var(cos, axis=axis, keepdims=keepdims)
    lacks = np.where(lacks <= (4 * np.finfo(lacks.dtype).eps) ** 2, 0, lacks)
    x, y = np.mean(cos, axis=axis, keepdims=keepdims), np.mean(sin, axis=axis, keepdims=keepdims)
    return y, x, np.hypot(x, y), lacks


@_of_traced
def circmean(
    samples: Any,
    high: Any = 2 * math.pi,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The mean of angles, which ``high`` and ``low`` are one of."""
    y, x, _, _ = _circle(samples, high, low, axis, keepdims)
    return (np.arctan2(y, x) * ((high - low) / (2 * math.pi)) - low) % (high - low) + low


@_of_traced
def circvar(
    samples: Any,
    high: Any = 2 * math.pi,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The variance of angles."""
    _, _, length, lacks = _circle(samples, high, low, axis, keepdims)
    return lacks / (1 + length)


@_of_traced
def circstd(
    samples: Any,
    high: Any = 2 * math.pi,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    normalize: bool = False,
    keepdims: bool = False,
) -> Any:
    """The standard deviation of angles."""
    _, _, length, lacks = _circle(samples, high, low, axis, keepdims)
    near = lacks < 0.5
    spread = ROOT(np.where(near, -np.log1p(-np.where(near, lacks, 0)), -2 * np.log(np.where(near, 1, length))))
    return spread if normalize else spread * ((high - low) / (2 * math.pi))


# -- tests and lines -----------------------------------------------------------------------------------------------


class Result:
    """A result with names, of which the first ``unpacked`` are those of a tuple."""

    unpacked: ClassVar[int] = 2

    def __iter__(self) -> Iterator[Any]:
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        return iter([getattr(self, name) for name in names[: self.unpacked]])

    def __len__(self) -> int:
        return self.unpacked

    def __getitem__(self, place: Any) -> Any:
        return tuple(self)[place]


@dataclasses.dataclass
class Correlation(Result):
    """What ``pearsonr`` finds."""

    statistic: Any
    pvalue: Any

    @property
    def correlation(self) -> Any:
        """The statistic."""
        return self.statistic


@dataclasses.dataclass
class TTest(Result):
    """What a t-test finds."""

    statistic: Any
    pvalue: Any
    df: Any


@dataclasses.dataclass
class Line(Result):
    """What ``linregress`` finds."""

    unpacked: ClassVar[int] = 5
    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any
    intercept_stderr: Any


def _tail(below: Fun, value: Any, alternative: str) -> Any:
    """How probable a value as extreme is, of a distribution that is symmetric around 0."""
    if alternative not in ("less", "greater", "two-sided"):
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    return 2 * below(-np.abs(value)) if alternative == "two-sided" else below(value if alternative == "less" else -value)


def _of_correlation(r: Any, n: int, alternative: str) -> Any:
    return _tail(lambda r: sp.betainc(n / 2 - 1, n / 2 - 1, (1 + r) / 2), r, alternative)


def _t_test(value: Any, error: Any, df: Any, alternative: str, axis: Any, keepdims: bool) -> TTest:
    t, df = (_shown(x, axis, keepdims) for x in np.broadcast_arrays(value / error, df))
    return TTest(t, _tail(lambda t: sp.stdtr(df, t), t, alternative), df)


@_of_traced
def ttest_1samp(
    a: Any,
    popmean: Any,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> Any:
    """Whether a mean is what it should be."""
    a = _sample(a)
    n, away = count(a, axis), np.mean(a, axis=axis, keepdims=True) - floating(popmean)
    return _t_test(away, np.std(a, axis=axis, ddof=1, keepdims=True) / math.sqrt(n), n - 1, alternative, axis, keepdims)


@_of_traced
def ttest_rel(
    a: Any,
    b: Any,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> Any:
    """Whether the means of pairs are the same."""
    return ttest_1samp(_sample(a) - _sample(b), 0, axis, alternative=alternative, keepdims=keepdims)


@_of_traced
def ttest_ind(
    a: Any,
    b: Any,
    axis: Any = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    permutations: Any = None,
    random_state: Any = None,
    alternative: str = "two-sided",
    trim: Any = 0,
    *,
    method: Any = None,
    keepdims: bool = False,
) -> Any:
    """Whether the means of two samples are the same: by Student, or by Welch, without ``equal_var``."""
    a, b = _sample(a), _sample(b)
    n, m = count(a, axis), count(b, axis)
    squares = [np.var(x, axis=axis, keepdims=True) * k for x, k in ((a, n), (b, m))]
    if equal_var:
        df: Any = n + m - 2
        error = ROOT((squares[0] + squares[1]) / df * (1 / n + 1 / m))
    else:
        first, second = squares[0] / (n * (n - 1)), squares[1] / (m * (m - 1))
        df = (first + second) ** 2 / (first**2 / (n - 1) + second**2 / (m - 1))
        error = ROOT(first + second)
    away = np.mean(a, axis=axis, keepdims=True) - np.mean(b, axis=axis, keepdims=True)
    return _t_test(away, error, df, alternative, axis, keepdims)


@_of_traced
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Any = 0) -> Any:
    """The correlation coefficient, and how probable one as large is."""
    x, y = np.broadcast_arrays(*map(_sample, (x, y)))
    n = count(x, axis)
    if n < 2:
        raise ValueError("`x` and `y` must have length at least 2.")
    x, y = (_directions(one, axis) for one in (x, y))
    r = _bounded(np.sum(x * y, axis=axis))
    if n == 2:
        return Correlation(np.round(r), np.where(np.isnan(r), np.nan, 1.0))
    return Correlation(r, _of_correlation(r, n, alternative))


def _directions(x: Any, axis: Any) -> Any:
    """The distances from the mean, scaled to a length of one; NaN where all are equal."""
    same = np.all(x == np.min(x, axis=axis, keepdims=True), axis=axis, keepdims=True)
    away = x - np.mean(x, axis=axis, keepdims=True)
    return away / np.where(same, np.nan, ROOT(np.sum(away * away, axis=axis, keepdims=True)))


def _bounded(r: Any) -> Any:
    """A correlation of one at most; its derivatives go on as they are there."""
    return r + STOP(np.clip(r, -1, 1) - r)


@_of_traced
def linregress(
    x: Any,
    y: Any = None,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The line of least squares: slope, intercept, their standard errors, the correlation, and how probable one as large is."""
    if y is None:
        x = array_of(x)
        x, y = x if len(x) == 2 else np.transpose(x)
    x, y = np.broadcast_arrays(*map(_sample, (x, y)))
    n, mean = count(x, axis), np.mean(x, axis=axis, keepdims=True)
    across, up = x - mean, y - np.mean(y, axis=axis, keepdims=True)
    squares = np.sum(across * across, axis=axis, keepdims=True)
    slope = np.sum(across * up, axis=axis, keepdims=True) / squares
    r = _bounded(np.sum(_directions(x, axis) * _directions(y, axis), axis=axis, keepdims=True))
    if n == 2:
        pvalue, error = np.where(STOP(up) == 0, 1.0, 0.0).max(axis=axis, keepdims=True), np.zeros_like(squares)
    else:
        rest = np.sum((up - slope * across) ** 2, axis=axis, keepdims=True)  # (1 - r^2) of the squares, with more digits
        pvalue, error = _of_correlation(r, n, alternative), ROOT(rest / squares / (n - 2))
    intercept = np.mean(y, axis=axis, keepdims=True) - slope * mean
    found = (slope, intercept, r, pvalue, error, error * np.sqrt(squares / n + mean * mean))
    return Line(*[_shown(value, axis, keepdims) for value in found])


# -- transforms ----------------------------------------------------------------------------------------------------


@_of_traced
def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None) -> Any:
    """``(x**lmbda - 1) / lmbda``, the logarithm for 0."""
    if lmbda is None:
        raise NotDifferentiable("scipy.stats.boxcox has no derivative rule for lmbda=None, which it looks for; give it lmbda=")
    return sp.boxcox(floating(x), lmbda)


@_of_traced
def boxcox_llf(lmb: Any, data: Any, *, axis: Any = 0, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """The logarithm of the likelihood of a parameter of ``boxcox``."""
    logs = np.log(_sample(data))
    ends = (find(STOP(logs), axis=axis, keepdims=True) for find in (np.max, np.min))
    end = np.where(lmb > 0, *ends)  # of which no exponential overflows
    spread = np.var((logs - end) * sp.exprel(lmb * (logs - end)), axis=axis, keepdims=True)
    n = count(logs, axis)
    value = (lmb - 1) * np.sum(logs, axis=axis, keepdims=True) - n * (lmb * end + 0.5 * np.log(spread))
    return _shown(value, axis, keepdims)


@_of_traced
def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    """``boxcox`` of ``1 + x``, which goes on below 0 with the parameter ``2 - lmbda``."""
    if lmbda is None:
        raise NotDifferentiable(
            "scipy.stats.yeojohnson has no derivative rule for lmbda=None, which it looks for; give it lmbda="
        )
    x = floating(x)
    positive = x >= 0
    below = sp.boxcox1p(np.where(positive, 0, -x), 2 - lmbda)
    return np.where(positive, sp.boxcox1p(np.where(positive, x, 0), lmbda), -below)[()]


@_of_traced
def yeojohnson_llf(lmb: Any, data: Any, *, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """The logarithm of the likelihood of a parameter of ``yeojohnson``."""
    x = _sample(data)
    spread = np.var(yeojohnson(x, lmb), axis=axis, keepdims=keepdims)
    none = spread < np.finfo(x.dtype).tiny
    slopes = (lmb - 1) * np.sum(np.sign(x) * np.log1p(np.abs(x)), axis=axis, keepdims=keepdims)
    return np.where(none, np.inf, slopes - count(x, axis) / 2 * np.log(np.where(none, 1, spread)))[()]


# -- densities -----------------------------------------------------------------------------------------------------


class gaussian_kde(Holding):
    """A density estimated from points, the columns of ``dataset``: a mean of normal ones. What is not here is SciPy's."""

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self._given = (dataset, bw_method, weights)
        self.dataset = np.atleast_2d(floating(dataset))
        self.d, self.n = np.shape(self.dataset)
        if np.size(self.dataset) < 2:
            raise ValueError("`dataset` input should have multiple elements.")
        if self.d > self.n:
            raise ValueError("Number of dimensions is greater than number of samples.")
        shares = np.ones(self.n) if weights is None else floating(weights)
        if np.shape(shares) != (self.n,):
            raise ValueError("`weights` input should be one-dimensional, and of length n")
        self.weights = shares / np.sum(shares)
        self.neff = 1 / np.sum(self.weights**2)
        away = self.dataset - (self.dataset @ self.weights)[:, None]
        self._spread = (away * self.weights) @ np.transpose(away) / (1 - 1 / self.neff)
        self._root = np.linalg.cholesky(self._spread)
        self.set_bandwidth(bw_method)

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Take another width of the normal densities; the one that there is, if None."""
        dataset, before, weights = self._given
        self._given = (dataset, before if bw_method is None else bw_method, weights)
        self.factor = self.covariance_factor() if self._given[1] is None else self._factor(self._given[1])
        self.covariance = self._spread * self.factor**2
        self._cholesky = self._root * self.factor

    def covariance_factor(self) -> Any:
        """The width of the normal densities, which a class of the user's may have a rule of its own for."""
        return self._factor(self._given[1])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(scipy.stats.gaussian_kde(*self._given), name)

    def _factor(self, method: Any) -> Any:
        if callable(method):
            return method(self)
        if method is None or (isinstance(method, str) and method in ("scott", "silverman")):
            return self.silverman_factor() if method == "silverman" else self.scotts_factor()
        if isinstance(method, str) or np.ndim(method):
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
        return method

    def scotts_factor(self) -> Any:
        """The width of the normal densities, by the number of points."""
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """The same, by Silverman."""
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points, the columns of ``x``."""
        x = np.atleast_2d(floating(x))
        if np.shape(x) == (1, self.d):
            x = np.transpose(x)
        if np.shape(x)[0] != self.d:
            raise ValueError(f"points have dimension {np.shape(x)[0]}, dataset has dimension {self.d}")
        x, points = (solve_triangular(self._cholesky, one, lower=True) for one in (x, self.dataset))
        squares = np.sum((x[:, :, None] - points[:, None]) ** 2, axis=0)
        scale = 0.5 * self.d * math.log(2 * math.pi) + np.sum(np.log(np.diagonal(self._cholesky)))
        return logsumexp(-0.5 * squares, axis=1, b=self.weights) - scale

    def evaluate(self, points: Any) -> Any:
        """The density at points, the columns of ``points``."""
        return np.exp(self.logpdf(points))

    __call__ = pdf = evaluate
