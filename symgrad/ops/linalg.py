"""``np.linalg``: inverses, determinants and decompositions, for stacks of matrices throughout.

Formulas: M. Giles, "Collected matrix derivative results for forward and reverse mode AD" (2008), or as said there.
Where an original is not holomorphic (it has a conjugate transpose), its cotangent is conjugated on the way in and out,
so that ours, which is free of conjugates, fits it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.errors import NotDifferentiable
from symgrad.ops.contract import conj, transpose
from symgrad.ops.core import REGISTRY, A, Op, Rule, Sample, composite, constant, op
from symgrad.ops.engine import IS_COMPLEX
from symgrad.ops.symmetry import MADE_SO, is_symmetric


def hermitian(x: Any) -> Any:
    """The conjugate transpose."""
    return transpose(conj(x))


SQUARE = [
    Sample(A(3, 3, kind="well")),
    Sample(A(4, 4, kind="well")),
    Sample(A(2, 3, 3, kind="well")),
    Sample(A(2, 1, 2, 2, kind="well")),
    Sample(A(1, 1, kind="well")),
    Sample(A(0, 0)),
    Sample(A(0, 2, 2)),
]


def _own(fun: Callable[..., Any], *rules: Rule | None, **options: Any) -> Op:
    """An operation of ours, for which NumPy has no function; rules call the ``Op``."""
    REGISTRY[fun] = made = Op(fun, "op", rules, **options)
    return made


# -- inverse and linear systems ------------------------------------------------------------------------------------


@op(np.linalg.inv, lanes="stack", samples=SQUARE)
def inv(g: Any, y: Any, a: Any) -> Any:
    return -(transpose(y) @ g @ transpose(y))


def solve_b(g: Any, y: Any, a: Any, b: Any) -> Any:
    if np.ndim(b) == 1 and np.ndim(a) > 2:  # g is a stack of vectors, which solve would take for a matrix
        return np.linalg.solve(transpose(a), g[..., None])[..., 0]
    return np.linalg.solve(transpose(a), g)


def solve_a(g: Any, y: Any, a: Any, b: Any) -> Any:
    g = solve_b(g, y, a, b)
    if np.ndim(b) == 1:
        return -np.outer(g, y) if np.ndim(a) == 2 else -(g[..., None] * y[..., None, :])
    return -(g @ transpose(y))


op(
    np.linalg.solve,
    solve_a,
    solve_b,
    lanes="stack",
    samples=[
        Sample(A(3, 3, kind="well"), A(3)),
        Sample(A(3, 3, kind="well"), A(3, 2)),
        Sample(A(2, 3, 3, kind="well"), A(3)),
        Sample(A(3, 3, 3, kind="well"), A(3)),
        Sample(A(2, 3, 3, kind="well"), A(2, 3, 1)),
        Sample(A(2, 3, 3, kind="well"), A(3, 2)),
        Sample(A(3, 3, kind="well"), A(2, 3, 2)),
        Sample(A(2, 1, 3, 3, kind="well"), A(4, 3, 2)),
        Sample(A(1, 1, kind="well"), A(1)),
        Sample(A(0, 0), A(0)),
        Sample(A(2, 2, kind="well"), A(2, 0)),
        Sample(A(0, 2, 2), A(2)),
    ],
)


# -- determinants --------------------------------------------------------------------------------------------------


def _inverse(a: Any) -> Any:
    """The inverse if all matrices of the stack are well-conditioned, else None."""
    try:
        with np.errstate(all="ignore"):
            inverse = np.linalg.inv(a)
            condition = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
    except np.linalg.LinAlgError:
        return None
    return inverse if np.all(condition < np.finfo(a.dtype).eps ** -0.4) else None


def _svd(a: Any) -> Any:
    """``np.linalg.svd``, and NaN where a matrix has entries that are not finite, which raises an error there."""
    finite = np.isfinite(a).all(axis=(-2, -1), keepdims=True)
    u, s, v = np.linalg.svd(np.where(finite, a, 0))
    return np.where(finite, u, np.nan), s, v


_MANY = 1024  # matrices of three rows
_AROUND = np.tile(np.arange(9).reshape(3, 3), (2, 2))[:5, :5]  # a 3 by 3 matrix and its first rows and columns again


def cofactor(a: Any) -> Any:
    """``det(a) * inv(a).T``, for singular matrices too: the gradient of ``det``.

    From ``a = u s v``: cofactors are multiplicative, and those of a unitary matrix ``u`` are ``det(u) conj(u)``.
    Those of small matrices are polynomials.
    """
    if a.shape[-1] == 1:
        return np.ones_like(a)
    if a.shape[-1] == 2:
        turned = a[..., ::-1, ::-1]
        return np.where(np.eye(2, dtype=bool), turned, -turned)
    if a.shape[-1] == 3:
        matrices = np.reshape(a, (-1, 9))
        minors = np.empty((len(matrices), 3, 3), a.dtype)
        for start in range(0, len(matrices), _MANY):  # so that they stay in the caches
            entries = matrices[start : start + _MANY].T.copy()  # so that all matrices' go through each operation in a row
            c = entries.take(_AROUND, 0)
            some = c[1:4, 1:4] * c[2:5, 2:5]
            some -= c[1:4, 2:5] * c[2:5, 1:4]
            minors[start : start + _MANY] = some.transpose((2, 0, 1))
        return minors.reshape(a.shape)
    inverse = _inverse(a)
    if inverse is not None:
        return np.linalg.det(a)[..., None, None] * np.swapaxes(inverse, -1, -2)
    u, s, v = _svd(a)
    unit = np.linalg.det(u) * np.linalg.det(v)
    return unit[..., None, None] * np.conj((u * runtime.others(s, axis=-1)[..., None, :]) @ v)


def cofactor_vjp(g: Any, a: Any) -> Any:
    """The derivative of ``cofactor(a)`` in direction ``g``, which is its transpose too; for singular matrices too."""
    inverse = _inverse(a)
    if inverse is not None:
        w = np.swapaxes(inverse, -1, -2)
        along = np.sum(w * g, axis=(-2, -1), keepdims=True)
        return np.linalg.det(a)[..., None, None] * (along * w - w @ np.swapaxes(g, -1, -2) @ w)
    u, s, v = _svd(a)
    unit = (np.linalg.det(u) * np.linalg.det(v))[..., None, None]
    eye = np.eye(s.shape[-1], dtype=bool)
    others = runtime.others(np.where(eye, s.dtype.type(1), s[..., None, :]), axis=-1)
    others = np.where(eye, s.dtype.type(0), others)  # [i, j]: the product of s without i and j
    g = unit * hermitian(u) @ g @ hermitian(v)
    diagonal = others @ np.diagonal(g, axis1=-2, axis2=-1)[..., None]
    return np.conj(u) @ (np.where(eye, diagonal, 0) - others * np.swapaxes(g, -1, -2)) @ np.conj(v)


def cofactor_vjp_a(h: Any, y: Any, g: Any, a: Any) -> Any:
    """The third derivative of ``det``, of regular matrices."""
    w, det = transpose(np.linalg.inv(a)), np.linalg.det(a)[..., None, None]
    wg, wh = w @ transpose(g) @ w, w @ transpose(h) @ w
    along_g, along_h = (np.sum(w * x, axis=(-2, -1), keepdims=True) for x in (g, h))
    both = np.sum(wg * h, axis=(-2, -1), keepdims=True)
    twice = wg @ transpose(h) @ w + wh @ transpose(g) @ w
    return det * ((along_g * along_h - both) * w - along_h * wg - along_g * wh + twice)


COFACTOR: Op = _own(cofactor, lambda g, y, a: COFACTOR_VJP(g, a), lanes="stack", samples=SQUARE)
COFACTOR_VJP: Op = _own(
    cofactor_vjp,
    lambda h, y, g, a: COFACTOR_VJP(h, a),
    cofactor_vjp_a,
    lanes="stack",
    samples=[
        Sample(A(3, 3), A(3, 3, kind="well")),
        Sample(A(4, 4), A(4, 4)),
        Sample(A(2, 3, 3), A(2, 3, 3, kind="well")),
        Sample(A(2, 2), A(2, 2, kind="well")),
        Sample(A(1, 1), A(1, 1, kind="well")),
        Sample(A(0, 0), A(0, 0)),
    ],
)


@op(np.linalg.det, lanes="stack", samples=SQUARE)
def det(g: Any, y: Any, a: Any) -> Any:
    return (g[..., None, None] if np.ndim(a) > 2 else g) * COFACTOR(a)


@op(np.linalg.slogdet, lanes="stack", samples=SQUARE)
def slogdet(g: Any, y: Any, a: Any) -> Any:
    """``d log(det) = tr(inv(a) da)``: its real part moves the logarithm, its imaginary part the sign's phase."""
    g_sign, g_log = g
    if np.iscomplexobj(a) and g_sign is not None:
        turn = 1j * np.imag(g_sign * y[0])
        g_log = turn if g_log is None else g_log + turn
    if g_log is None:
        return None
    if np.ndim(a) == 2:
        return g_log * transpose(np.linalg.inv(a))
    regular = np.where(y[0][..., None, None] == 0, np.nan, a)  # one singular matrix must not raise an error for all
    return g_log[..., None, None] * transpose(np.linalg.inv(regular))


# -- Cholesky, eigenvalues, singular values, QR --------------------------------------------------------------------


def of_triangle(g: Any, a: Any, lower: bool = True) -> Any:
    """The cotangent of a matrix ``a`` of which LAPACK reads a triangle, from the Hermitian one ``g`` of a Hermitian matrix.

    It is the same where ``a`` is Hermitian, up to rounding; else that of the triangle, whose elements count for two.
    """
    turned = np.swapaxes(a, -1, -2)
    turned = turned.conj() if a.dtype.kind == "c" else turned
    whole: Any = g if g.shape == a.shape else np.broadcast_to(g, np.broadcast_shapes(g.shape, a.shape))
    result = np.array(whole, order="C")
    if (a == turned).all():
        return result
    most = np.maximum.reduce(np.abs(a), axis=(-2, -1), initial=0)
    gap = np.maximum.reduce(np.abs(a - turned), axis=(-2, -1), initial=0)
    whole = gap <= 64 * a.shape[-1] * np.finfo(a.dtype).eps * most
    if whole.all():
        return result
    read = _counts(a.shape[-1], result.real.dtype, lower)
    return result * np.where(np.asarray(whole)[..., None, None], 1, read).astype(read.dtype)


def _counts(n: int, dtype: Any, lower: bool) -> Any:
    """How often the elements of a matrix count of which a triangle is read: for two, but for the diagonal."""
    read = np.tri(n, dtype=dtype) + np.tri(n, k=-1, dtype=dtype)
    return read if lower else read.T


OF_TRIANGLE: Op = _own(
    of_triangle,
    lambda c, y, g, a, lower=True: OF_TRIANGLE(c, a, lower=lower),
    None,
    lanes="stack",
    samples=[
        Sample(A(3, 3), A(3, 3), lower=True),
        Sample(A(3, 3), A(3, 3), lower=False),
        Sample(A(3, 3), A(3, 3, kind="spd"), lower=True),
        Sample(A(2, 3, 3), A(2, 3, 3), lower=True),
    ],
)


def as_it_is_read(g: Any, a: Any, lower: bool) -> Any:
    """The cotangent of a matrix ``a`` of which LAPACK reads a triangle, from the Hermitian one ``g`` of a Hermitian matrix.

    It is the same where ``a`` is symmetric by the way it is made, or would be if the arguments were, and is; else that of the
    triangle.
    """
    traced = hasattr(a, "tape")  # symgrad.eager has none
    matrix = a.value if traced and not a.tape.symbolic and not hasattr(g, "tape") else a  # of a pass over plain values
    if not traced or np.ndim(a) != 2 or a.dtype.kind != "f":
        return OF_TRIANGLE(g, matrix, lower=lower)
    node = a.node
    content = lambda node: a.tape.lookup(node).value
    if is_symmetric(node, a.tape.graph, content=content):
        return g
    if is_symmetric(node, a.tape.graph, inputs=True, content=content):
        return OF_TRIANGLE(g, matrix, lower=lower)
    return g * _counts(len(a), a.dtype, lower)


@op(
    np.linalg.cholesky,
    lanes="stack",
    looks_back=True,
    samples=[
        Sample(A(3, 3, kind="spd")),
        Sample(A(4, 4, kind="spd"), upper=True),
        Sample(A(2, 3, 3, kind="spd")),
        Sample(A(2, 3, 3, kind="spd"), upper=True),
        Sample(A(2, 1, 2, 2, kind="spd")),
        Sample(A(1, 1, kind="spd")),
        Sample(A(0, 0)),
    ],
)
def cholesky(g: Any, y: Any, a: Any, *, upper: bool = False, read: Any = as_it_is_read) -> Any:
    """I. Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 10, symmetrised; ``read`` as in ``eigh_a``."""
    if upper:
        g, y = hermitian(g), hermitian(y)
    inner = np.tril(transpose(y) @ g)
    inner = 0.5 * (inner + hermitian(np.tril(inner, -1)))
    if np.iscomplexobj(y):
        inner = 0.5 * (inner + hermitian(inner))
    y = np.linalg.inv(y)
    return read(transpose(y) @ inner @ conj(y), a, not upper)


def over_gaps(m: Any, w: Any, skew: bool = False, hollow: bool = False) -> Any:
    """``m[i, j] / (w[j] - w[i])``, and the diagonal as it is; ``w`` is a row of eigenvalues, ``m`` a cotangent in their basis.

    ``skew``: of ``m`` off the diagonal, only what is minus its own conjugate transpose. ``hollow``: as if its diagonal were
    zero.

    Where eigenvalues coincide, their vectors are arbitrary within a subspace. If what is left of ``m`` on it is a
    multiple of the identity, it does not depend on the choice, and 0 is exact off the diagonal; else the derivative is
    lost: NaN, and a warning.
    """
    n = w.shape[-1]
    rounding = 16 * n * np.finfo(w.dtype).eps
    gap = np.subtract(w, np.swapaxes(w, -1, -2), order="C")
    near = np.abs(gap) <= rounding * np.maximum.reduce(np.abs(w), axis=-1, keepdims=True, initial=0)
    if n and w.dtype.kind == "f" and np.count_nonzero(near) * n == near.size and not _diagonal(gap).any():
        return _over_distinct(m, gap, skew, hollow)
    eye = np.eye(n, dtype=bool)
    tiny = 64 * rounding * np.max(np.abs(m), axis=(-2, -1), keepdims=True, initial=0)
    if skew:
        m = np.where(eye, m, 0.5 * (m - np.conj(np.swapaxes(m, -1, -2))))
    if hollow:
        m = np.where(eye, 0, m)
    diagonal = np.diagonal(m, axis1=-2, axis2=-1)
    lost = near & ~eye & (np.abs(m) + np.abs(diagonal[..., None, :] - diagonal[..., None]) > tiny)
    if lost.any():
        warnings.warn(
            "repeated eigenvalues or singular values: the derivative depends on the choice of their vectors (NaN)",
            RuntimeWarning,
            stacklevel=3,
        )
    result = np.where(near, 0, m / np.where(near, w.dtype.type(1), gap))
    return np.where(lost, w.dtype.type(np.nan), np.where(eye, m, result))


def _over_distinct(m: Any, gap: Any, skew: bool, hollow: bool) -> Any:
    """The same where no eigenvalues coincide, as is usual: few calls, as most matrices are small."""
    _diagonal(gap)[...] = 1
    result = np.divide(0.5 * (m - np.conj(np.swapaxes(m, -1, -2))) if skew else m, gap, order="C")
    if hollow or skew:
        _diagonal(result)[...] = 0 if hollow else np.diagonal(m, axis1=-2, axis2=-1)
    return result


def _diagonal(a: Any) -> Any:
    """The diagonals of matrices that lie in memory row by row, to be written to."""
    return a.reshape(*a.shape[:-2], -1)[..., :: a.shape[-1] + 1]


def over_gaps_m(g: Any, y: Any, m: Any, w: Any, skew: bool = False, hollow: bool = False) -> Any:
    if not skew:
        return OVER_GAPS(g, w, hollow=hollow)
    if np.iscomplexobj(w):
        found = 0.5 * (OVER_GAPS(g, w) + OVER_GAPS(hermitian(g), conj(w)))
    else:
        found = OVER_GAPS(0.5 * (g + hermitian(g)), w)
    return np.where(np.eye(np.shape(g)[-1], dtype=bool), 0 if hollow else g, found)


def over_gaps_w(g: Any, y: Any, m: Any, w: Any, skew: bool = False, hollow: bool = False) -> Any:
    g = OVER_GAPS(g * y, w, hollow=True)
    return np.sum(g - transpose(g), axis=-1)[..., None, :]


OVER_GAPS: Op = _own(
    over_gaps,
    over_gaps_m,
    over_gaps_w,
    lanes="stack",
    samples=[
        Sample(A(3, 3), A(1, 3, kind="distinct")),
        Sample(A(4, 4), A(1, 4, kind="distinct"), skew=True),
        Sample(A(2, 3, 3), A(2, 1, 3, kind="distinct")),
        Sample(A(2, 2), A(1, 2, kind="distinct")),
        Sample(A(1, 1), A(1, 1)),
        Sample(A(0, 0), A(1, 0)),
    ],
)


def settled(x: Any, m: Any, scale: Any, space: bool = False) -> Any:
    """``x``, a cotangent that was made from ``m``, the cotangent of vectors in their own basis; ``scale`` is the size of it.

    The phase of a complex vector is arbitrary, and vectors that only complete others (``space``) may be turned among
    themselves: where that makes a difference, the derivative is lost: NaN, and a warning.
    """
    turned = m - np.conj(np.swapaxes(m, -1, -2))
    turned = turned if space else np.diagonal(turned, axis1=-2, axis2=-1)[..., None]
    lost = np.max(np.abs(turned), axis=(-2, -1), initial=0) > np.sqrt(np.finfo(m.dtype).eps) * scale
    if lost.any():
        why = "the derivative depends on an arbitrary phase or choice of vectors (NaN)"
        warnings.warn(why, RuntimeWarning, stacklevel=3)
    return np.where(lost[..., None, None], x.dtype.type(np.nan), x)


SETTLED: Op = _own(
    settled,
    lambda g, y, x, m, scale, space=False: g,
    None,
    None,
    lanes=("stack", None, None),
    samples=[Sample(A(3, 3), np.eye(3), 1.0), Sample(A(2, 2), np.eye(2), 1.0, space=True)],
)


def _turn(m: Any, pivots: Any) -> tuple[Any, Any]:
    """What the phases of complex vectors take from ``m``, their cotangent in their own basis; and ``m`` where that is unknown.

    LAPACK turns each vector so that one element of it, its pivot, is real, which says nothing where that is zero.
    """
    real, tiny = np.real(pivots), np.sqrt(np.finfo(pivots.dtype).eps)
    known = (np.abs(real) > tiny) & (np.abs(np.imag(pivots)) <= tiny * np.abs(real))
    along = np.where(known, np.imag(np.diagonal(m, axis1=-2, axis2=-1)), 0) / np.where(known, real, 1)
    return 1j * real[..., None] * along[..., None, :], np.where(known[..., None, :], 0, m)


def _size(*gs: Any) -> Any:
    return sum(np.sum(np.abs(g)) for g in gs if g is not None)


def _spectral(m: Any, d: Any, w: Any, skew: bool = False) -> Any:
    """The cotangent in the basis of eigenvectors: ``m`` from the vectors, ``d`` from the eigenvalues, if any."""
    if d is None:
        return OVER_GAPS(m, w[..., None, :], skew=skew, hollow=True)
    return OVER_GAPS(np.where(np.eye(np.shape(m)[-1], dtype=bool), d[..., None, :], m), w[..., None, :], skew=skew)


SYMMETRIC = [
    Sample(A(3, 3, kind="spd")),
    Sample(A(2, 2, kind="spd")),
    Sample(A(3, 3, kind="spd"), UPLO="U"),
    Sample(A(2, 3, 3, kind="spd")),
    Sample(A(2, 1, 2, 2, kind="spd")),
    Sample(A(1, 1, kind="spd")),
    Sample(A(0, 0)),
]


def eigh_a(g: Any, y: Any, a: Any, UPLO: str = "L", read: Any = as_it_is_read) -> Any:
    """``read`` makes the cotangent of the matrix from the Hermitian one that the rule comes to."""
    (g_w, g_v), (w, v) = g, y
    lower = UPLO in "Ll"
    if g_v is None:
        return read((conj(v) * g_w[..., None, :]) @ transpose(v), a, lower)
    inner, unsettled = transpose(v) @ g_v, None
    if np.iscomplexobj(v) and np.size(v):
        turn, unsettled = _turn(inner, _pivots(v, UPLO))
        inner = inner - turn
    result = read(conj(v) @ _spectral(inner, g_w, w, skew=True) @ transpose(v), a, lower)
    return result if unsettled is None else SETTLED(result, unsettled, _size(g_v))


def _pivots(v: Any, UPLO: str) -> Any:
    """The elements that ``heevd`` leaves real."""
    return v[..., 0 if UPLO in "Ll" else -1, :]


def eigh_jvp(ts: Any, y: Any, a: Any, UPLO: str = "L") -> Any:
    w, v = y
    inner = hermitian(v) @ as_it_is_read(ts[0], a, UPLO in "Ll") @ v
    inner = 0.5 * (inner + hermitian(inner))

    def t_v() -> Any:
        moved = v @ OVER_GAPS(inner, w[..., None, :], hollow=True)
        if not np.iscomplexobj(v) or not np.size(v):
            return moved
        real = np.real(_pivots(v, UPLO))
        known = np.abs(real) > np.sqrt(np.finfo(w.dtype).eps)
        turned = np.where(known, np.imag(_pivots(moved, UPLO)), 0) / np.where(known, real, 1)
        return moved - 1j * v * turned[..., None, :]

    return np.real(np.diagonal(inner, axis1=-2, axis2=-1)), t_v


def pivots(v: Any) -> Any:
    """Where LAPACK's ``geev`` makes its eigenvectors, the columns, real: their largest elements."""
    if not v.size:
        return np.zeros(v.shape, dtype=bool)
    row = np.argmax(np.where(np.imag(v) == 0, np.abs(v), -1), axis=-2)
    return np.arange(v.shape[-1])[:, None] == row[..., None, :]


PIVOTS: Op = _own(pivots, None, samples=[Sample(A(3, 3)), Sample(A(2, 3, 3))])


def eig_a(g: Any, y: Any, a: Any) -> Any:
    """C. Boeddeker et al., "On the computation of complex-valued gradients" (2017), eq. 4.77, for vectors as LAPACK has
    them: of norm 1, their largest element real."""
    (g_w, g_v), (w, v) = g, y
    left = transpose(np.linalg.inv(v))
    if g_v is None:
        return (left * g_w[..., None, :]) @ transpose(v)
    along = np.sum(v * g_v, axis=-2)[..., None, :]
    g_v = g_v - np.real(along) * conj(v)
    if np.iscomplexobj(v):
        pivot = PIVOTS(v)
        g_v = g_v - 1j * np.imag(along) * pivot / _pivot_of(v, pivot)
    return left @ _spectral(transpose(v) @ g_v, g_w, w) @ transpose(v)


def _pivot_of(x: Any, pivot: Any) -> Any:
    return np.sum(np.where(pivot, np.real(x), 0), axis=-2)[..., None, :]


def eig_jvp(ts: Any, y: Any, a: Any) -> Any:
    w, v = y
    inner = np.linalg.inv(v) @ ts[0] @ v

    def t_v() -> Any:
        moved = v @ OVER_GAPS(inner, w[..., None, :], hollow=True)
        moved = moved - v * np.real(np.sum(conj(v) * moved, axis=-2))[..., None, :]
        if not np.iscomplexobj(v):
            return moved
        pivot = PIVOTS(v)
        return moved - 1j * v * _pivot_of(-1j * moved, pivot) / _pivot_of(v, pivot)

    return np.diagonal(inner, axis1=-2, axis2=-1), t_v


op(np.linalg.eigh, eigh_a, jvp=eigh_jvp, lanes="stack", looks_back=True, samples=SYMMETRIC)


def real_eig(a: Any) -> Any:
    """``np.linalg.eig`` with real results where they are: NumPy 2.5 gives complex ones always."""
    found = np.linalg.eig(a)
    if np.isrealobj(a) and np.iscomplexobj(found[0]) and not np.any(np.imag(found[0])):
        return type(found)(*(np.real(part) for part in found))
    return found


_ALWAYS_COMPLEX = np.iscomplexobj(np.linalg.eig(np.eye(1))[0])
EIG = Op(real_eig if _ALWAYS_COMPLEX else np.linalg.eig, "op", (eig_a,), jvp=eig_jvp, lanes="stack", sized=True)
_EIG = [x for x in SYMMETRIC if not x.kwargs]


@composite(np.linalg.eig, samples=_EIG)
def eig(a: Any) -> Any:
    """Whether its results are complex is looked at: it hangs on the values of a real matrix."""
    found = EIG(a)
    if not bool(IS_COMPLEX(found[0])) and _ALWAYS_COMPLEX:
        dtype = np.result_type(found[0].dtype, np.complex64)
        return type(found)(*(part.astype(dtype) for part in found))
    return found


@composite(np.linalg.eigvalsh, samples=SYMMETRIC)
def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    return np.linalg.eigh(a, UPLO)[0]


@composite(np.linalg.eigvals, samples=_EIG)
def eigvals(a: Any) -> Any:
    return np.linalg.eig(a)[0]


def _thin(g: Any, u: Any, k: int) -> tuple[Any, Any]:
    """The first ``k`` columns of an orthogonal matrix and their cotangent. The others complete them, up to a rotation
    ``u2 -> u2 r``; ``du2 = -u1 du1.T u2`` in the frame that does not turn."""
    u1, u2 = u[..., :k], u[..., k:]
    if g is None:
        return None, u1
    g1, g2 = g[..., :k], g[..., k:]
    return SETTLED(g1 - conj(u2) @ hermitian(g2) @ conj(u1), transpose(u2) @ g2, _size(g2), space=True), u1


SVD = [
    Sample(A(3, 3), full_matrices=False),
    Sample(A(4, 4)),
    Sample(A(4, 2), full_matrices=False),
    Sample(A(2, 4), full_matrices=False),
    Sample(A(3, 2)),
    Sample(A(2, 3)),
    Sample(A(2, 3, 2)),
    Sample(A(4, 2), compute_uv=False),
    Sample(A(2, 4), compute_uv=False),
    Sample(A(2, 5, 3), full_matrices=False),
    Sample(A(2, 2, 3), full_matrices=False),
    Sample(A(2, 2, 3), compute_uv=False),
    Sample(A(3, 3, kind="spd"), compute_uv=False, hermitian=True),
    Sample(A(3, 3, kind="spd"), hermitian=True),
    Sample(A(1, 1)),
    Sample(A(3, 1), full_matrices=False),
    Sample(A(0, 0)),
    Sample(A(0, 2), full_matrices=False),
]


_SVDResult: Any = type(np.linalg.svd(np.eye(1)))


def _of_hermitian(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = True) -> Any:
    """The singular values of a Hermitian matrix are its eigenvalues without their signs, which the right vectors have."""
    w, u = np.linalg.eigh(a)
    order = np.flip(np.argsort(np.abs(w), axis=-1), axis=-1)
    w = np.take_along_axis(w, order, axis=-1)
    if not compute_uv:
        return np.abs(w)
    u = np.take_along_axis(u, order[..., None, :], axis=-1)
    return _SVDResult(u, np.abs(w), transpose(conj(u * np.sign(w)[..., None, :])))


@op(np.linalg.svd, instead={"hermitian": _of_hermitian}, lanes="stack", samples=SVD, complex=False)
def svd(g: Any, y: Any, a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """J. Townsend, "Differentiating the singular value decomposition" (2016).

    His ``(U' gU s_j + s_i V' gV) / (s_j^2 - s_i^2)`` is here the sum of a part over the differences of singular values
    and one over their sums, which leaves as much as can be for coinciding ones.
    """
    if not compute_uv:
        g, y, full_matrices = (None, g, None), np.linalg.svd(a, full_matrices=False), False
    (g_u, g_s, g_v), (u, s, v) = g, y
    (m, n), k = np.shape(a)[-2:], min(np.shape(a)[-2:])
    if g_u is None and g_v is None:
        u, v = (u[..., :k], v[..., :k, :]) if full_matrices and m != n else (u, v)
        return (conj(u) * g_s[..., None, :]) @ conj(v)
    if full_matrices and m > n:
        g_u, u = _thin(g_u, u, k)
    if full_matrices and m < n:
        g_v, v = map(transpose, _thin(transpose(g_v), transpose(v), k)) if g_v is not None else (None, v[..., :k, :])
    left = transpose(u) @ g_u if g_u is not None else 0
    right = conj(v @ transpose(g_v)) if g_v is not None else 0
    unsettled = None
    if np.iscomplexobj(u) and np.size(s):  # gesdd leaves the first elements of the shorter vectors real
        turn, unsettled = _turn(left + right, v[..., 0] if m >= n else u[..., 0, :])
        left, right = (left, right - turn) if m >= n else (left - turn, right)
    sums = s[..., None, :] + s[..., None]
    sums = np.where(np.eye(k, dtype=bool) & (sums == 0), 1, sums)
    apart = 0.5 * (left - right)
    inner = _spectral(left + right, g_s, s, skew=True) + (apart - hermitian(apart)) / sums
    result = conj(u) @ inner @ conj(v)
    if g_u is not None and m > k:
        g_u = g_u / s[..., None, :]
        result = result + (g_u - conj(u) @ (transpose(u) @ g_u)) @ conj(v)
    if g_v is not None and n > k:
        g_v = g_v / s[..., None]
        result = result + conj(u) @ (g_v - (g_v @ transpose(v)) @ conj(v))
    return result if unsettled is None else SETTLED(result, unsettled, _size(g_u, g_v))


@composite(np.linalg.svdvals, samples=[Sample(A(3, 3)), Sample(A(2, 4, 3)), Sample(A(1, 1)), Sample(A(0, 2))])
def svdvals(x: Any, /) -> Any:
    return np.linalg.svd(x, compute_uv=False)


def regular(r: Any, g: Any) -> Any:
    """A triangular matrix to divide by. Where it is singular, the derivative of what led to it is lost: NaN, and a warning;
    unless it does not matter, as the size ``g`` of its cotangent is 0: then any regular matrix will do."""
    singular = (np.diagonal(r, axis1=-2, axis2=-1) == 0).any(axis=-1)[..., None, None]
    lost = singular & (g != 0)
    if lost.any():
        warnings.warn("a matrix of linearly dependent columns has no derivative of its qr (NaN)", RuntimeWarning, stacklevel=3)
    r = np.where(singular, np.eye(r.shape[-1], dtype=r.dtype), r)
    return np.where(lost, r.dtype.type(np.nan), r)


REGULAR: Op = _own(
    regular,
    lambda h, y, r, g: h,
    None,
    lanes="stack",
    samples=[Sample(A(3, 3, kind="well"), np.ones((1, 1))), Sample(A(2, 3, 3, kind="well"), np.ones((2, 1, 1)))],
)


@op(
    np.linalg.qr,
    lanes="stack",
    samples=[
        Sample(A(3, 3)),
        Sample(A(5, 3)),
        Sample(A(3, 5)),
        Sample(A(3, 3), mode="complete"),
        Sample(A(2, 4), mode="complete"),
        Sample(A(4, 3), mode="complete"),
        Sample(A(5, 3), mode="r"),
        Sample(A(2, 4), mode="r"),
        Sample(A(2, 4, 3)),
        Sample(A(2, 2, 3)),
        Sample(A(1, 1)),
        Sample(A(0, 0)),
    ],
    complex=False,
)
def qr(g: Any, y: Any, a: Any, mode: str = "reduced") -> Any:
    """S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010).

    LAPACK makes the diagonal of a complex ``r`` real.
    """
    m, n = np.shape(a)[-2:]
    if mode not in ("reduced", "complete", "r"):
        raise NotDifferentiable(f"np.linalg.qr(..., mode={mode!r}) has no derivative rule; use mode='reduced'")
    if mode == "r":
        g, y = (None, g), np.linalg.qr(a)
    (g_q, g_r), (q, r) = g, y
    size = sum(np.sum(np.abs(part), axis=(-2, -1), keepdims=True) for part in g if part is not None)
    if mode == "complete" and m > n:
        g_q, q = _thin(g_q, q, n)
        g_r, r = g_r if g_r is None else g_r[..., :n, :], r[..., :n, :]
    if n > m:  # r[:, m:] is q.T @ a[:, m:]
        rest = np.zeros_like(a[..., m:]) if g_r is None else conj(q) @ g_r[..., m:]
        if g_r is not None:
            tail = conj(a[..., m:]) @ hermitian(g_r[..., m:])
            g_q, g_r = tail if g_q is None else g_q + tail, g_r[..., :m]
        r = r[..., :m]
    inner = conj(r) @ hermitian(g_r) if g_r is not None else 0
    inner = inner - hermitian(g_q) @ conj(q) if g_q is not None else inner
    lower = np.tril(inner, -1)
    result = conj(q) @ (lower + np.real(np.tril(np.triu(inner))) + hermitian(lower))
    result = result + g_q if g_q is not None else result
    result = transpose(np.linalg.solve(REGULAR(r, size), transpose(result)))
    return np.concatenate((result, rest), axis=-1) if n > m else result


# -- least squares -------------------------------------------------------------------------------------------------


def pinv_vjp(g: Any, y: Any, a: Any) -> Any:
    """G. Golub and V. Pereyra, "The differentiation of pseudo-inverses" (1973), eq. 4.12."""
    yh, gt = hermitian(y), transpose(g)
    left, right = gt @ y @ yh, yh @ y @ gt
    tall = left - a @ (y @ left)
    wide = right - (right @ y) @ a
    return conj(tall + wide) - transpose(y) @ g @ transpose(y)


def truncated_vjp(g: Any, a: Any, cutoff: Any) -> Any:
    """The same where singular values up to ``cutoff`` times the largest one count as zero, and are none: what is kept
    turns with what is not (V. Noferini, "A formula for the Frechet derivative of a generalized matrix function" (2017))."""
    u, s, v = np.linalg.svd(a, full_matrices=False)
    kept = s > np.asarray(cutoff)[..., None] * np.max(s, axis=-1, keepdims=True, initial=0)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0)
    rows, columns = inverse[..., None], inverse[..., None, :]
    apart = kept[..., None] != kept[..., None, :]
    gap, total = (np.where(apart, s[..., None] + sign * s[..., None, :], 1) for sign in (-1, 1))
    left, right = transpose(conj(u)) @ transpose(g), transpose(g) @ hermitian(v)
    inner = left @ hermitian(v)
    turned = np.where(apart, (rows - columns) / gap, -rows * columns) * (inner + hermitian(inner))
    turned = turned + np.where(apart, (rows + columns) / total, rows * columns) * (inner - hermitian(inner))
    result = 0.5 * u @ turned @ v + ((right - u @ inner) * columns**2) @ v + (u * columns**2) @ (left - inner @ v)
    return conj(result)


TALL_AND_WIDE = [
    Sample(A(3, 3, kind="well")),
    Sample(A(4, 2)),
    Sample(A(2, 4)),
    Sample(A(2, 4, 3)),
    Sample(A(2, 3, 4)),
    Sample(A(1, 1)),
    Sample(A(0, 2)),
]


def mirrored(a: Any) -> Any:
    """The Hermitian matrix whose lower triangle ``a`` has, which is all that LAPACK reads."""
    lower = np.tril(a, -1)
    return lower + np.conj(np.swapaxes(lower, -1, -2)) + np.real(np.tril(np.triu(a)))


MIRRORED: Op = _own(
    mirrored,
    lambda g, y, a: as_it_is_read(0.5 * (g + hermitian(g)), a, True),
    lanes="stack",
    looks_back=True,
    samples=[x for x in SYMMETRIC if not x.kwargs],
)
MADE_SO.add(MIRRORED)


def _pinv_of_hermitian(a: Any, hermitian: bool = True, **rest: Any) -> Any:
    return np.linalg.pinv(MIRRORED(a) if np.size(a) else a, **rest)


@op(
    np.linalg.pinv,
    instead={"hermitian": _pinv_of_hermitian},
    lanes="stack",
    samples=[
        *TALL_AND_WIDE,
        Sample(A(3, 3, kind="spd"), hermitian=True),
        Sample(A(3, 3, kind="well"), rcond=0.5),
        Sample(A(2, 4, 3), 0.6),
        Sample(A(2, 3), rtol=0.6),
    ],
)
def pinv(g: Any, y: Any, a: Any, rcond: Any = None, *, rtol: Any = None) -> Any:
    cutoff = rtol if rcond is None else rcond
    return pinv_vjp(g, y, a) if cutoff is None else truncated_vjp(g, a, cutoff)


def lstsq_a(g: Any, y: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    (g_x, g_rest, _, g_s), x = g, y[0]
    result: Any = 0
    if g_x is not None and not _is_usual(rcond):
        result = truncated_vjp(np.outer(g_x, b) if np.ndim(b) == 1 else g_x @ transpose(b), a, rcond)
    elif g_x is not None:  # as of the pseudo-inverse times ``b``, without what cancels in it
        inverse, solution, rest, gt = _lstsq_inverse(a, rcond), _columns(x), _columns(b - a @ x), transpose(_columns(g_x))
        turned, by_b = hermitian(inverse), gt @ inverse
        result = conj(rest @ (by_b @ turned) + (turned @ solution) @ (gt - by_b @ a)) - transpose(by_b) @ transpose(solution)
    if g_rest is not None and np.size(g_rest):
        r = 2 * g_rest * _apart(y, a, b)
        result = result - (np.outer(r, x) if np.ndim(b) == 1 else r @ transpose(x))
    if g_s is not None:
        u, _, v = np.linalg.svd(a, full_matrices=False)
        result = result + (conj(u) * g_s) @ conj(v)
    return result


def lstsq_b(g: Any, y: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    g_x, g_rest, _, _ = g
    result = 0 if g_x is None else transpose(_lstsq_inverse(a, rcond)) @ g_x
    return result if g_rest is None or not np.size(g_rest) else result + 2 * g_rest * _apart(y, a, b)


def _apart(y: Any, a: Any, b: Any) -> Any:
    """What the solution leaves, conjugated; nothing where columns are dependent: there are no residuals then."""
    return np.where(y[2] == np.shape(a)[1], conj(b - a @ y[0]), 0)


def _lstsq_inverse(a: Any, rcond: Any) -> Any:
    eps = np.finfo(a.dtype if a.dtype.kind in "fc" else float).eps
    return np.linalg.pinv(a, max(np.shape(a)) * float(eps) if _is_usual(rcond) else rcond)


def _is_usual(rcond: Any) -> bool:
    """Whether singular values count as zero that are so to rounding."""
    return rcond is None or rcond < 0


def _columns(x: Any) -> Any:
    return x if np.ndim(x) == 2 else np.expand_dims(x, 1)


op(
    np.linalg.lstsq,
    lstsq_a,
    lstsq_b,
    samples=[
        Sample(A(3, 3, kind="well"), A(3)),
        Sample(A(5, 3), A(5)),
        Sample(A(5, 3), A(5, 2)),
        Sample(A(2, 4), A(2)),
        Sample(A(2, 4), A(2, 3)),
        Sample(A(5, 3), A(5), rcond=1e-10),
        Sample(A(5, 3), A(5, 2), rcond=0.6),
        Sample(A(1, 1, kind="well"), A(1)),
    ],
)


# -- made of others ------------------------------------------------------------------------------------------------

constant(np.linalg.matrix_rank, samples=[Sample(A(3, 3)), Sample(A(2, 4, 3)), Sample(A(1, 1))])


@composite(
    np.linalg.cond,
    samples=[
        *(Sample(A(3, 3, kind="well"), p) for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc")),
        Sample(A(4, 2)),
        Sample(A(2, 3, 3, kind="well")),
        Sample(A(2, 3, 3, kind="well"), "fro"),
        Sample(A(1, 1, kind="well")),
    ],
    complex=False,  # NumPy before 2.3 returns it as complex for some norms
)
def cond(x: Any, p: Any = None) -> Any:
    if p is None or p in (2, -2):
        s = np.linalg.svd(x, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))


@composite(
    np.linalg.tensorsolve,
    samples=[
        Sample(A(2, 2, 4), A(2, 2)),
        Sample(A(3, 3, kind="well"), A(3)),
        Sample(A(1, 3, 3, kind="well"), A(1, 3)),
        Sample(A(1, 3, 3, kind="well"), A(1, 3), axes=(1,)),
        Sample(A(3, 3, kind="well"), A(3), axes=(0,)),
        Sample(A(1, 1, kind="well"), A(1)),
    ],
)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    n = np.ndim(a)
    if axes is not None:
        a = np.transpose(a, [*(k for k in range(n) if k not in axes), *axes])
    shape = np.shape(a)[np.ndim(b) - n :]
    size = math.prod(shape)
    return np.reshape(np.linalg.solve(np.reshape(a, (size, size)), np.ravel(b)), shape)


@composite(
    np.linalg.tensorinv,
    samples=[
        Sample(A(2, 2, 4)),
        Sample(A(4, 2, 2), ind=1),
        Sample(A(3, 3, kind="well"), 1),
        Sample(A(1, 3, 3, kind="well")),
        Sample(A(1, 1, 2, 2, kind="well"), 3),
        Sample(A(1, 1, kind="well"), 1),
    ],
)
def tensorinv(a: Any, ind: int = 2) -> Any:
    rows, columns = np.shape(a)[:ind], np.shape(a)[ind:]
    return np.reshape(np.linalg.inv(np.reshape(a, (math.prod(columns), -1))), (*columns, *rows))
