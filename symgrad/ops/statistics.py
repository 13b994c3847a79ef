"""Covariances, histograms and counts."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from symgrad.ops.core import A, Op, Sample, composite
from symgrad.ops.create import contains_traced
from symgrad.ops.engine import SIZE
from symgrad.ops.index import COMPLEX, array_of
from symgrad.ops.reduction import conj

# -- covariance ----------------------------------------------------------------------------------------------------

_VARIABLES = [
    Sample(A(3, 5)),
    Sample(A(5)),
    Sample(A(5, 3), rowvar=False),
    Sample(A(2, 5), A(5)),
    Sample(A(5, 2), A(5, 1), False),
    Sample(A(5), A(5)),
]


@composite(
    np.cov,
    samples=[
        *_VARIABLES,
        Sample(A(3, 5), bias=True),
        Sample(A(3, 5), ddof=2),
        Sample(A(3, 4), fweights=[1, 2, 0, 3]),
        Sample(A(3, 4), aweights=A(4, lo=0.5)),
        Sample(A(2, 4), fweights=np.array([1, 2, 1, 3]), aweights=A(4, lo=0.5), ddof=0),
    ],
    complex=False,  # the weights must be real
)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    parts = [array_of(part) for part in (m, y) if part is not None]
    dtype = np.result_type(*(part.dtype for part in parts), np.float64) if dtype is None else np.dtype(dtype)
    rows = []
    for number, part in enumerate(parts):
        ndim = np.ndim(part)
        part = np.atleast_2d(part if part.dtype == dtype else part.astype(dtype))
        flips = not rowvar and (ndim != 1 if number == 0 else np.shape(part)[0] != 1)
        rows.append(part.T if flips else part)
    if not len(rows[0]):  # no variable of the first: no matrix, whatever the second has
        return np.zeros((0, 0))
    x = np.concatenate(rows) if len(rows) > 1 else rows[0]
    ddof = int(not bias) if ddof is None else ddof
    given = {"fweights": fweights, "aweights": aweights}
    weights = [_weights_of(name, w) for name, w in given.items() if w is not None]
    w = weights[0] * weights[1] if len(weights) > 1 else weights[0] if weights else None
    total = np.shape(x)[1] if w is None else np.sum(w)
    if w is not None and total == 0:
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    if w is None or ddof == 0 or aweights is None:
        factor = total if w is not None and ddof == 0 else total - ddof
    else:
        factor = total - ddof * np.sum(w * weights[-1]) / total
    if factor <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
        factor = 0.0
    x = x - np.mean(x, axis=1, keepdims=True) if w is None else x - (x @ w / total)[:, None]
    return np.squeeze(x @ conj(x if w is None else x * w).T / factor)


def _weights_of(name: str, w: Any) -> Any:
    w = array_of(w).astype(float)
    if name == "fweights" and np.any(w != np.rint(w)):
        raise TypeError("fweights must be integer")
    if np.any(w < 0):
        raise ValueError(f"{name} cannot be negative")
    return w


@composite(np.corrcoef, samples=_VARIABLES)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, bias: Any = None, ddof: Any = None, *, dtype: Any = None) -> Any:
    c = np.cov(x, y, rowvar, dtype=dtype)
    if np.ndim(c) == 0:
        return c / c
    deviation = np.sqrt(np.real(np.diag(c)))
    c = c / deviation[:, None] / deviation
    if np.iscomplexobj(c):
        return COMPLEX(np.clip(np.real(c), -1, 1), np.clip(np.imag(c), -1, 1))
    return np.clip(c, -1, 1)


# -- counts --------------------------------------------------------------------------------------------------------

_COUNTS = Op(np.bincount, "constant", ())
BINCOUNT = Op(
    np.bincount,
    "linear",
    (None, lambda g, y, x, weights, minlength=0: g[x]),
    samples=[Sample(np.array([0, 3, 0, 1]), A(4)), Sample(np.array([2, 2]), A(2), minlength=5)],
    complex=False,
)


@composite(
    np.bincount,
    samples=[
        Sample(np.array([0, 3, 0, 1]), A(4)),
        Sample([2, 2], A(2), 5),
        Sample(np.array([1]), weights=A(1), minlength=1),
        Sample(A(4, lo=0, hi=3, kind="int"), A(4)),
        Sample(np.array([], int), A(0), 2),
        Sample(np.array([0, 1, 1, 0]), weights=A(4)),
    ],
    complex=False,
)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """The sums of ``weights`` by number; the largest number is looked at, or but whether it is below ``minlength``."""
    x, minlength = array_of(x), operator.index(minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    within = np.size(x) == 0 or (minlength > 0 and bool(np.max(x) < minlength))
    n = minlength if within else int(np.max(x)) + 1
    return _COUNTS(x, minlength=n) if weights is None else BINCOUNT(x, array_of(weights), minlength=n)


# -- histograms ----------------------------------------------------------------------------------------------------

_DATA = A(8, kind="distinct")


def _ends(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> tuple[Any, dict[str, Any]]:
    a, given = np.ravel(array_of(a)), {} if range is None else {"range": tuple(range)}
    return (a,), {"bins": bins if isinstance(bins, str) else operator.index(bins), **given}


def _edges_a(g: Any, y: Any, a: Any, bins: Any = 10, range: Any = None) -> Any:
    """The edges lie evenly between the extremes of the data."""
    if range is not None or not np.size(a):
        return None
    share = np.linspace(0, 1, np.size(y))
    low, high = a == np.min(a), a == np.max(a)
    return np.sum(g * (1 - share)) * (low / np.sum(low)) + np.sum(g * share) * (high / np.sum(high))


EDGES = Op(np.histogram_bin_edges, "op", (_edges_a,), samples=[Sample(_DATA, bins=3)], complex=False, sized=True)


@composite(
    np.histogram_bin_edges,
    samples=[
        Sample(_DATA),
        Sample(_DATA, 3),
        Sample(_DATA, [A(lo=-2, hi=-1), 0.0, 1.5]),
        Sample(_DATA, 4, (A(lo=-3, hi=-2), 2.0)),
        Sample(A(2, 3, kind="distinct"), "sqrt"),
        Sample(A(1), 2),
    ],
    complex=False,
)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    if not isinstance(bins, str) and np.ndim(bins):
        edges = array_of(bins)
        if np.any(edges[:-1] > edges[1:]):
            raise ValueError("`bins` must increase monotonically, when an array")
        return edges
    if range is not None and contains_traced(list(range)):
        low, high = range
        return _between(low, high, operator.index(bins))
    arrays, params = _ends(a, bins, range)
    edges = EDGES(*arrays, **params)
    if isinstance(bins, str):
        int(SIZE(edges))  # how many there are hangs on the data
    return edges


def _between(low: Any, high: Any, n: int) -> Any:
    """The edges of ``n`` bins of a range that is given."""
    if low > high:
        raise ValueError("max must be larger than min in range parameter.")
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError("supplied range is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, n + 1)


def _sum_by(places: Any, weights: Any, n: int) -> Any:
    """The sum of the weights at each of ``n`` places, or their count."""
    if weights is None:
        return _COUNTS(places, minlength=n)
    if np.iscomplexobj(weights):
        return COMPLEX(_sum_by(places, np.real(weights), n), _sum_by(places, np.imag(weights), n))
    total = BINCOUNT(places, weights, minlength=n)
    return total if total.dtype == weights.dtype else total.astype(weights.dtype)


def _bins_of(x: Any, edges: Any) -> Any:
    """Which bin each element falls into, from 1; the last one has its right edge, too."""
    return np.searchsorted(edges, x, side="right") - (x == edges[-1])


@composite(
    np.histogram,
    samples=[
        Sample(_DATA, 3),
        Sample(_DATA, 4, weights=A(8)),
        Sample(_DATA, [-1.5, 0.0, A(lo=1, hi=1.5)], weights=A(8)),
        Sample(_DATA, 3, (-1.0, 1.0), weights=A(8)),
        Sample(_DATA, 2, density=True),
        Sample(A(2, 4, kind="distinct"), 3, None, True, A(2, 4, lo=0.5)),
    ],
    complex=False,
)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    a = np.ravel(array_of(a))
    weights = None if weights is None else np.ravel(array_of(weights))
    edges = np.histogram_bin_edges(a, bins, range)
    n = np.size(edges) - 1
    total = _sum_by(_bins_of(a, edges), weights, n + 2)[1 : n + 1]
    return (total / np.diff(edges).astype(float) / np.sum(total) if density else total), edges


@composite(
    np.histogramdd,
    samples=[
        Sample(A(8, 2, kind="distinct"), 3, weights=A(8)),
        Sample(A(8, 2, kind="distinct"), (2, 3), weights=A(8, lo=0.5), density=True),
        Sample(A(8, 1, kind="distinct"), [[-2.0, 0.0, A(lo=1, hi=1.5)]], weights=A(8)),
        Sample(A(8, 2, kind="distinct"), 2, ((-1.0, 1.0), None)),
        Sample([A(5, kind="distinct"), A(5, kind="distinct")], 2, None, None, A(5)),
        Sample(A(6, 3, kind="distinct"), 2, density=True),
    ],
    complex=False,
)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if not hasattr(sample, "ndim") or sample.ndim != 2:
        sample = np.atleast_2d(sample if hasattr(sample, "ndim") else np.stack(sample)).T
    columns = [sample[:, k] for k in np.arange(np.shape(sample)[1]).tolist()]
    bins = bins if isinstance(bins, (list, tuple)) or hasattr(bins, "ndim") else [bins] * len(columns)
    range = [None] * len(columns) if range is None else range
    edges = [
        np.histogram_bin_edges(x, b) if r is None or np.ndim(b) else _between(r[0], r[1], operator.index(b))
        for x, b, r in zip(columns, bins, range, strict=True)
    ]
    lengths = tuple(np.size(e) + 1 for e in edges)
    flat: Any = 0
    for column, e, n in zip(columns, edges, lengths, strict=True):
        flat = flat * n + _bins_of(column, e)
    weights = None if weights is None else array_of(weights)
    if weights is not None and weights.dtype.kind != "c" and weights.dtype != float:  # which nothing is added up in
        weights = weights.astype(float)
    total = _sum_by(flat, weights, int(np.prod(lengths)))
    total = np.reshape(total, lengths)[(slice(1, -1),) * len(edges)]
    total = total if total.dtype == float else total.astype(float)
    if density:
        volume = np.sum(total)
        for k, e in enumerate(edges):
            total = total / np.reshape(np.diff(e), tuple(-1 if i == k else 1 for i, _ in enumerate(edges)))
        total = total / volume
    return total, edges


@composite(
    np.histogram2d,
    samples=[
        Sample(A(8, kind="distinct"), A(8, kind="distinct"), 3, weights=A(8)),
        Sample(A(8, kind="distinct"), A(8, kind="distinct"), [2, 3], density=True, weights=A(8, lo=0.5)),
        Sample(A(8, kind="distinct"), A(8, kind="distinct"), [-2.0, 0.0, 1.5], weights=A(8)),
        Sample(A(8, kind="distinct"), A(8, kind="distinct"), 2, [[-1.0, 1.0], [-2.0, 2.0]]),
        Sample(A(8, kind="distinct"), A(8, kind="distinct"), [[-2.0, 0.5, 1.5], 2], weights=A(8)),
        Sample(A(8, kind="distinct"), A(8, kind="distinct")),
    ],
    complex=False,
)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if isinstance(bins, (list, tuple, np.ndarray)) and len(bins) > 2:
        bins = [bins, bins]
    total, edges = np.histogramdd([x, y], bins, range, density, weights)
    return total, edges[0], edges[1]
