"""Polynomials as arrays of coefficients, the highest power first: ``np.polyval``, ``np.polyfit`` and the rest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from symgrad.errors import NotDifferentiable
from symgrad.ops.core import A, Op, Sample, composite
from symgrad.ops.engine import IS_COMPLEX, SIZE
from symgrad.ops.index import array_of, floating


def _coefficients(p: Any) -> Any:
    """``p`` as a vector of at least one coefficient."""
    if isinstance(p, np.poly1d):
        p = p.coeffs
    return np.atleast_1d(array_of(p))


@composite(
    np.vander,
    samples=[
        Sample(A(4)),
        Sample(A(3), 5),
        Sample(A(4), N=2),
        Sample(A(3), increasing=True),
        Sample(A(3), 4, True),
        Sample(A(3), 1),
        Sample(A(1)),
    ],
)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    x = array_of(x)
    n = np.size(x) if N is None else N
    dtype = np.promote_types(x.dtype, int)
    powers = np.power((x if x.dtype == dtype else x.astype(dtype))[:, None], np.arange(n))
    return powers if increasing else np.flip(powers, 1)


@composite(
    np.polyval,
    samples=[
        Sample(A(4), A(3)),
        Sample(A(3), A(2, 2)),
        Sample(A(3), A()),
        Sample(A(1), A(2)),
        Sample([2.0, 0.5, 1.0], A(3)),
        Sample(A(2), 0.5),
        Sample(A(2), A(0)),
    ],
)
def polyval(p: Any, x: Any) -> Any:
    """By Horner's scheme."""
    if isinstance(x, np.poly1d):
        raise NotDifferentiable("np.polyval at a polynomial has no derivative rule; use np.polymul and np.polyadd")
    p, x = _coefficients(p), array_of(x)
    y = np.zeros_like(x)
    for i in range(len(p)):
        y = y * x + p[i]
    return y


def _rising(x: Any, c: Any) -> Any:
    """By Horner's scheme, with the coefficients along the first axis, the lowest first."""
    y = c[-1] + 0 * x
    for i in range(2, len(c) + 1):
        y = y * x + c[-i]
    return y


def polyval2d(x: Any, y: Any, c: Any) -> Any:
    x, y, c = array_of(x), array_of(y), floating(c)
    if np.shape(x) != np.shape(y):
        raise ValueError("x, y are incompatible")
    return _rising(y, _rising(x, _beside(c, x)))


def polygrid2d(x: Any, y: Any, c: Any) -> Any:
    x, y = [array_of(place) if isinstance(place, (list, tuple)) else place for place in (x, y)]  # Python's numbers stay such
    c = floating(c)
    return _rising(y, _beside(_rising(x, _beside(c, x)), y))


def _beside(c: Any, x: Any) -> Any:
    """Coefficients with axes for the elements of ``x`` at the end."""
    return np.reshape(c, np.shape(c) + (1,) * np.ndim(x))


if hasattr(np.polynomial.polynomial.polyval2d, "_implementation"):  # else it is code in Python, followed as the user's
    _PLACES = [
        Sample(A(3), A(3), A(2, 4)),
        Sample(A(2, 2), A(2, 2), A(3, 2, 2)),
        Sample(A(), 0.5, A(2, 2)),
        Sample(A(2), [0.5, 2.0], A(1, 1)),
    ]
    composite(np.polynomial.polynomial.polyval2d, samples=_PLACES)(polyval2d)
    composite(np.polynomial.polynomial.polygrid2d, samples=[*_PLACES, Sample(A(2), A(3), A(2, 3))])(polygrid2d)


def _without_zeros(p: Any) -> Any:
    """Coefficients but for leading zeros; how many there are is looked at."""
    p = np.atleast_1d(_coefficients(p))
    if not len(p):
        return np.zeros(1, p.dtype)
    return p[int(np.argmax(np.concatenate((p[:-1] != 0, [True])))) :]


def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Both with as many coefficients."""
    a1, a2 = _coefficients(a1), _coefficients(a2)
    n = max(len(a1), len(a2))
    return tuple(np.pad(a, (n - len(a), 0)) if len(a) < n else a for a in (a1, a2))  # type: ignore[return-value]


_PAIRS = [
    Sample(A(3), A(3)),
    Sample(A(4), A(2)),
    Sample(A(1), A(3)),
    Sample(A(3), A()),
    Sample([1.0, 2.0], A(3)),
    Sample(A(2), 0.5),
]
composite(np.polyadd, samples=_PAIRS)(lambda a1, a2: np.add(*_aligned(a1, a2)))
composite(np.polysub, samples=_PAIRS)(lambda a1, a2: np.subtract(*_aligned(a1, a2)))
composite(np.polymul, samples=[*_PAIRS, Sample([0.0, 0.0, 2.0], A(3))])(
    lambda a1, a2: np.convolve(_without_zeros(a1), _without_zeros(a2))
)


@composite(
    np.polydiv,
    samples=[
        Sample(A(5), A(3, lo=1, hi=1)),  # in single precision, too, the remainder loses its leading zeros
        Sample(A(3), A(3, lo=2, hi=2)),
        Sample(A(2), A(3, lo=0.5)),
        Sample(A(4), A(1, lo=1, hi=1)),
        Sample([1.0, 5.0, 3.0], A(2, lo=1, hi=1)),
        Sample(A(3), [2.0, 1.0]),
    ],
    complex=False,  # how many leading zeros the remainder has hangs on rounding
)
def polydiv(u: Any, v: Any) -> Any:
    """Long division: the quotient, and the remainder without leading zeros."""
    r, v = _coefficients(u) + 0.0, _coefficients(v) + 0.0
    dtype = np.result_type(r.dtype, v.dtype)
    scale, quotient = 1.0 / v[0], []
    for k in range(max(len(r) - len(v) + 1, 1) if len(r) >= len(v) else 0):
        d = scale * r[k]
        quotient.append(d)
        r = np.concatenate((r[:k], r[k : k + len(v)] - d * v, r[k + len(v) :]))
    q = np.stack(quotient) if quotient else np.zeros_like(r[:1])
    q = q if q.dtype == dtype else q.astype(dtype)
    r = r if r.dtype == dtype else r.astype(dtype)
    first = 0
    while first < len(r) - 1 and np.allclose(r[first], 0, rtol=1e-14):
        first += 1
    return q, r[first:] if first else r


@composite(
    np.polyder,
    samples=[Sample(A(4)), Sample(A(5), 2), Sample(A(3), m=0), Sample(A(2), 1), Sample(A(2), 3)],
)
def polyder(p: Any, m: int = 1) -> Any:
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = _coefficients(p)
    for _ in range(m):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


@composite(
    np.polyint,
    samples=[
        Sample(A(4)),
        Sample(A(3), 2),
        Sample(A(3), 2, A()),
        Sample(A(3), m=2, k=A(2)),
        Sample(A(1), 1, [0.5]),
        Sample(A(3), 0),
    ],
)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    p, k = _coefficients(p), np.atleast_1d(array_of(0.0 if k is None else k))
    if len(k) == 1:
        k = np.repeat(k, m)
    if len(k) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        p = np.concatenate((p / np.arange(len(p), 0, -1), k[i : i + 1]))
    return p


@composite(
    np.polyfit,
    samples=[
        Sample(A(6, kind="distinct"), A(6), 2),
        Sample(A(6, kind="distinct"), A(6, 2), 1),
        Sample(A(5, kind="distinct"), A(5), 1, w=A(5, lo=0.5)),
        Sample(A(6, kind="distinct"), A(6), 2, cov=True),
        Sample(A(6, kind="distinct"), A(6), 1, cov="unscaled"),
        Sample(A(6, kind="distinct"), A(6, 2), 1, None, False, A(6, lo=0.5), True),
        Sample(A(5, kind="distinct"), A(5), 2, full=True),
    ],
    complex=False,
)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    if np.ndim(deg):
        raise NotDifferentiable("np.polyfit of chosen powers has no derivative rule; use np.linalg.lstsq")
    x, y, order = array_of(x) + 0.0, array_of(y) + 0.0, int(deg) + 1
    rcond = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    left, right = np.vander(x, order), y
    if w is not None:
        w = array_of(w) + 0.0
        left, right = left * w[:, None], (right * w[:, None] if np.ndim(right) == 2 else right * w)
    scale = np.sqrt(np.sum(left * left, axis=0))
    left = left / scale
    c, rest, rank, s = np.linalg.lstsq(left, right, rcond)
    c = (c.T / scale).T
    if full:
        return c, rest, rank, s, rcond
    if rank != order:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if not cov:
        return c
    base = np.linalg.inv(left.T @ left) / np.outer(scale, scale)
    factor: Any = 1
    if cov != "unscaled":
        if len(x) <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = rest / (len(x) - order)
    return c, base * factor if np.ndim(y) == 1 else base[:, :, None] * factor


@composite(
    np.poly,
    samples=[
        Sample(A(3)),
        Sample(A(1)),
        Sample(A(4, kind="distinct")),
        Sample(A(3, kind="distinct")),
        Sample(A(2)),
        Sample(A(2, 2, kind="spd")),
    ],
    complex=False,  # whether its result is complex depends on values
)
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with these roots, or the characteristic one of a matrix."""
    zeros = _coefficients(seq_of_zeros)
    if np.ndim(zeros) == 2:
        zeros = np.linalg.eigvals(zeros)
    if not len(zeros):
        return 1.0
    zeros = zeros if zeros.dtype.char in "fdgFDG" else zeros.astype(float)
    a = np.ones_like(zeros[:1])
    for i in range(len(zeros)):
        a = np.convolve(a, np.concatenate((np.ones_like(zeros[:1]), -zeros[i : i + 1])), mode="full")
    conjugate = np.iscomplexobj(a) and np.all(np.sort(zeros) == np.sort(np.conj(zeros)))
    return np.real(a).copy() if conjugate else a


def _roots_p(g: Any, y: Any, p: Any) -> Any:
    """From ``p(r) = 0``: a root moves against the change of the polynomial there, over its slope."""
    return -(g / np.polyval(np.polyder(p), y)) @ np.vander(y, np.size(p))


ROOTS = Op(np.roots, "op", (_roots_p,), sized=True, samples=[Sample(A(4, lo=0.5)), Sample(A(3, kind="distinct"))])


@composite(
    np.roots,
    samples=[
        Sample(A(4, lo=0.5)),
        Sample(A(5, kind="distinct")),
        Sample(A(3, kind="distinct")),
        Sample(A(2, lo=0.5)),
        Sample(A(3, lo=3, hi=4)),
        Sample(A(6, kind="distinct")),
    ],
)
def roots(p: Any) -> Any:
    """How many there are, and whether they are complex, is looked at."""
    found = ROOTS(_coefficients(p))
    int(SIZE(found))
    bool(IS_COMPLEX(found))
    return found
