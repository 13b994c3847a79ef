"""``scipy.spatial.distance``: distances between vectors, and between the rows of matrices.

Between equal points their derivatives are 0, as those of norms are at 0. Metrics of booleans are SciPy's, of plain arrays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.spatial.distance as sd
import scipy.special as sp

from symgrad.errors import NotDifferentiable
from symgrad.ops.core import Traced
from symgrad.ops.engine import STOP
from symgrad.ops.index import array_of, floating, traced_in
from symgrad.ops.reduction import ROOT
from symgrad.scipy.plain import plain_values, rest_of

Metric = Callable[..., Any]
METRICS: dict[str, Metric] = {}  # along the last axis
ALIASES = {
    "chebyshev": "chebychev cheby cheb ch",
    "cityblock": "cblock cb c",
    "correlation": "co",
    "cosine": "cos",
    "euclidean": "euclid eu e",
    "jensenshannon": "js",
    "mahalanobis": "mahal mah",
    "minkowski": "mi m pnorm",
    "seuclidean": "se s",
    "sqeuclidean": "sqe sqeuclid",
}

FLOATS = ("sqeuclidean", "canberra", "braycurtis")  # metrics of floats, to SciPy: small integers would run over

__getattr__ = rest_of(sd)


def _metric(fun: Metric) -> Metric:
    """Register a metric, and make it one of two vectors."""
    METRICS[fun.__name__] = fun

    @functools.wraps(fun)
    def of_vectors(u: Any, v: Any, *args: Any, **options: Any) -> Any:
        u, v = (floating(x) if fun.__name__ in FLOATS else array_of(x) for x in (u, v))
        if np.ndim(u) != 1 or np.ndim(v) != 1:
            raise ValueError("Input vector should be 1-D.")
        _real(fun.__name__, u, v)
        return fun(u, v, *args, **options)

    return of_vectors


def _real(function: str, *arrays: Any) -> None:
    """Raise for complex numbers."""
    if any(np.iscomplexobj(x) for x in arrays):
        raise NotDifferentiable(f"scipy.spatial.distance.{function} is here for real numbers")


def _weights(w: Any) -> Any:
    w = array_of(w)
    if not isinstance(w, Traced) and np.any(w < 0):
        raise ValueError("Input weights should be all non-negative")
    return w


def _sum(terms: Any, w: Any) -> Any:
    return np.sum(terms if w is None else _weights(w) * terms, axis=-1)


@_metric
def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The root of the sum of squares of the differences."""
    return METRICS["minkowski"](u, v, 2, w)


@_metric
def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of squares of the differences."""
    return _sum((u - v) ** 2, w)


@_metric
def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of the sizes of the differences."""
    return _sum(np.abs(u - v), w)


@_metric
def chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    """The size of the largest difference, of those that have a weight."""
    away = np.abs(u - v)
    return np.max(away if w is None else (_weights(w) > 0) * away, axis=-1, initial=0)


@_metric
def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """The ``p``-norm of the difference, with weights of its powers."""
    if p <= 0:
        raise ValueError("p must be greater than 0")
    if p == math.inf:
        return METRICS["chebyshev"](u, v, w)
    if w is None and not isinstance(p, Traced):
        return np.linalg.norm(u - v, None if p == 2 else p, axis=-1)
    if not isinstance(p, Traced) and p == 2:
        return ROOT(_sum((u - v) ** 2, w))
    total = _sum(np.abs(u - v) ** p, w)
    zero = total == 0
    return np.where(zero, 0, np.where(zero, 1, total) ** (1 / p))[()]


@_metric
def seuclidean(u: Any, v: Any, V: Any) -> Any:
    """The Euclidean distance, of squares divided by variances."""
    return METRICS["euclidean"](u, v, 1 / array_of(V))


@_metric
def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    """The root of the square of the difference by an inverse covariance matrix."""
    away = u - v
    return ROOT(np.sum((away @ np.atleast_2d(array_of(VI))) * away, axis=-1))


@_metric
def cosine(u: Any, v: Any, w: Any = None) -> Any:
    """One minus the cosine of the angle between."""
    return METRICS["correlation"](u, v, w, centered=False)


@_metric
def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """One minus the correlation coefficient."""
    w = None if w is None else _weights(w) / np.sum(w)
    if centered:
        u, v = (x - (_sum(x, w)[..., None] if w is not None else np.mean(x, axis=-1, keepdims=True)) for x in (u, v))
    apart = 1 - _sum(u * v, w) / np.sqrt(_sum(u * u, w) * _sum(v * v, w))
    return apart + STOP(np.clip(apart, 0, 2) - apart)  # at the bounds it goes on as it does


@_metric
def canberra(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of the differences, each by the sum of both sizes."""
    sizes = np.abs(u) + np.abs(v)
    return _sum(np.abs(u - v) / np.where(sizes == 0, 1, sizes), w)


@_metric
def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of the differences' sizes by that of the sums' sizes."""
    return _sum(np.abs(u - v), w) / _sum(np.abs(u + v), w)


def jensenshannon(p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False) -> Any:
    """The root of the mean divergence of two distributions from their mean."""
    p, q = (x / np.sum(x, axis=axis, keepdims=True) for x in (array_of(p), array_of(q)))
    middle = (p + q) / 2
    total = np.sum(sp.rel_entr(p, middle) + sp.rel_entr(q, middle), axis=axis, keepdims=keepdims)
    return ROOT((total if base is None else total / np.log(base)) / 2)


METRICS["jensenshannon"] = functools.partial(jensenshannon, axis=-1)

# -- of rows -------------------------------------------------------------------------------------------------------


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances of each row of ``XA`` from each of ``XB``."""
    if _name(metric) is not None and traced_in([XA, XB, *kwargs.values()]) is None:
        return sd.cdist(XA, XB, _name(metric), out=out, **kwargs)
    a, b = array_of(XA), array_of(XB)
    for x, side in ((a, "XA"), (b, "XB")):
        if np.ndim(x) != 2:
            raise ValueError(f"{side} must be a 2-dimensional array.")
    if np.shape(a)[1] != np.shape(b)[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    return _apart("cdist", metric, out, kwargs, (a, b), a[:, None], b[None])


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances of each row from each later one."""
    if _name(metric) is not None and traced_in([X, *kwargs.values()]) is None:
        return sd.pdist(X, _name(metric), out=out, **kwargs)
    x = array_of(X)
    if np.ndim(x) != 2:
        raise ValueError(f"A 2-dimensional array must be passed. (Shape was {np.shape(x)}).")
    i, j = np.triu_indices(len(x), 1)
    return _apart("pdist", metric, out, kwargs, (x,), x[i], x[j])


def _name(metric: Any) -> str | None:
    """What SciPy calls a metric; None for a function of the user's."""
    if isinstance(metric, str):
        return next((name for name, others in ALIASES.items() if metric.lower() in others.split()), metric.lower())
    name = getattr(metric, "__name__", "")
    return name if metric in (getattr(sd, name, None), globals().get(name)) else None


def _apart(function: str, metric: Any, out: Any, options: dict[str, Any], rows: tuple[Any, ...], u: Any, v: Any) -> Any:
    """The distances between what ``u`` and ``v`` have along their last axis; they are made of ``rows``."""
    name = _name(metric)
    if out is not None or (name is not None and name not in METRICS):
        what = "out=" if out is not None else f"metric={name!r}"
        raise NotDifferentiable(f"scipy.spatial.distance.{function} has no derivative rule for {what}")
    if name is None:
        shape = np.broadcast_shapes(np.shape(u), np.shape(v))
        u, v = np.broadcast_to(u, shape), np.broadcast_to(v, shape)
        found = [metric(u[place], v[place], **options) for place in np.ndindex(*shape[:-1])]
        return np.reshape(np.stack(found) if found else np.zeros(0), shape[:-1])
    _real(function, u, v)
    return METRICS[name](u.astype(float), v.astype(float), **_options(name, options, rows))


def _options(name: str, options: dict[str, Any], rows: tuple[Any, ...]) -> dict[str, Any]:
    """With the defaults that hang on the rows."""
    n = np.shape(rows[0])[1]
    if name == "seuclidean" and options.get("V") is None:
        options = {**options, "V": np.var(np.concatenate(rows).astype(float), axis=0, ddof=1)}
    if name == "mahalanobis" and options.get("VI") is None:
        x = np.concatenate(rows).astype(float)
        if len(x) <= n:
            raise ValueError(f"The number of observations ({len(x)}) is too small; the covariance matrix is singular.")
        options = {**options, "VI": np.transpose(np.linalg.inv(np.reshape(np.cov(np.transpose(x)), (n, n))))}
    for option in ("w", "V"):
        if options.get(option) is not None and np.shape(options[option]) != (n,):
            raise ValueError(f"{option} must have same size as input vector. {np.shape(options[option])} vs. {n}")
    return options


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """The symmetric matrix of the distances that ``pdist`` lists, or such a list of a matrix."""
    x = array_of(X)
    if traced_in(x) is None or np.ndim(x) not in (1, 2) or {"tomatrix": 2, "tovector": 1}.get(force.lower()) == np.ndim(x):
        return sd.squareform(X, force, checks)
    if np.ndim(x) == 2:
        if checks:
            sd.is_valid_dm(plain_values(x), throw=True, name="X")
        return x[np.triu_indices(len(x), 1)]
    n = math.ceil(math.sqrt(2 * len(x)))
    if n * (n - 1) != 2 * len(x):
        raise ValueError("Incompatible vector size. It must be a binomial coefficient n choose 2 for some integer n >= 2.")
    if not n:
        return np.zeros((1, 1), x.dtype)
    i, j = np.triu_indices(n, 1)
    places = np.zeros((n, n), int)
    places[i, j] = places[j, i] = np.arange(len(x))
    return np.where(np.eye(n, dtype=bool), 0, x[places])
