"""``scipy.linalg``: triangular systems, Cholesky solves, matrix functions, structured matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg as sl

from symgrad.errors import NotDifferentiable
from symgrad.ir import Node
from symgrad.ops.contract import conj, transpose
from symgrad.ops.core import REGISTRY, A, Op, Sample, Traced
from symgrad.ops.create import contains_traced
from symgrad.ops.engine import IS_COMPLEX, STOP
from symgrad.ops.index import array_of, floating, take_at
from symgrad.ops.linalg import MIRRORED, hermitian
from symgrad.runtime import native
from symgrad.scipy.plain import rest_of
from symgrad.tracing.frames import where
from symgrad.tracing.tracer import Tracer
from symgrad.transform.batch import Batch, rule
from symgrad.transform.batch_rules import stacks

TRANSPOSED = {"N": 0, "T": 1, "C": 2}


__getattr__ = rest_of(sl)


# -- triangular systems --------------------------------------------------------------------------------------------


def _triangular_b(g: Any, y: Any, a: Any, b: Any, trans: int = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    if trans == 2:
        return solve_triangular(conj(a), g, 0, lower, unit_diagonal)
    return solve_triangular(a, g, 1 - trans, lower, unit_diagonal)


def _triangular_a(g: Any, y: Any, a: Any, b: Any, trans: int = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    g = _triangular_b(g, y, a, b, trans, lower, unit_diagonal)
    whole = -(np.outer(g, y) if np.ndim(y) == 1 else g @ transpose(y))
    whole = transpose(whole) if trans == 1 else hermitian(whole) if trans == 2 else whole
    return np.tril(whole, -int(unit_diagonal)) if lower else np.triu(whole, int(unit_diagonal))


SOLVE_TRIANGULAR = Op(
    sl.solve_triangular,
    "op",
    (_triangular_a, _triangular_b),
    name="solve_triangular",
    samples=[
        Sample(A(3, 3, kind="well"), A(3)),
        Sample(A(3, 3, kind="well"), A(3, 2), lower=True),
        Sample(A(3, 3, kind="well"), A(3, 2), trans=1),
        Sample(A(3, 3, kind="well"), A(3), trans=2, lower=True),
        Sample(A(3, 3, kind="well"), A(3, 2), unit_diagonal=True),
        Sample(A(3, 3, kind="well"), A(3, 1), trans=1, lower=True, unit_diagonal=True),
        Sample(A(1, 1, kind="well"), A(1)),
    ],
)


@rule(SOLVE_TRIANGULAR)
def batched_solve(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """Many right-hand sides of one matrix are one matrix of them."""
    matrix, y = args
    if flags[0]:
        return None
    n = np.shape(matrix)[0]
    columns = np.reshape(np.moveaxis(y, 1, 0), (n, -1 if np.size(y) else 0))
    found = SOLVE_TRIANGULAR(matrix, columns, **dict(node.params))
    return np.moveaxis(np.reshape(found, (n, b.size, *node.aval.shape[1:])), 1, 0)


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The ``x`` of ``a @ x == b``, where only one triangle of ``a`` counts; stacks of matrices, too."""
    a, b, trans = array_of(a), array_of(b), TRANSPOSED.get(trans, trans)
    if np.ndim(a) > 2 or np.ndim(b) > 2:
        a = np.tril(a, -int(unit_diagonal)) if lower else np.triu(a, int(unit_diagonal))
        a = a + np.eye(np.shape(a)[-1], dtype=a.dtype) if unit_diagonal else a
        return np.linalg.solve(transpose(a) if trans == 1 else hermitian(a) if trans == 2 else a, b)
    if not unit_diagonal and _is_factor(a, lower) and np.ndim(b) and b.dtype == a.dtype:
        return np.linalg.solve(transpose(a) if trans else a, b)  # which code solves so; it knows what the derivative is
    options = {"trans": trans, "lower": lower, "unit_diagonal": unit_diagonal}
    return SOLVE_TRIANGULAR(a, b, **{name: value for name, value in options.items() if value})


def _is_factor(a: Any, lower: bool) -> bool:
    """Whether it is the Cholesky factor of a real matrix, ``lower`` or not, and code is to be made."""
    if type(a) is not Tracer or not a.tape.symbolic or a.node.aval.dtype.char not in "df":
        return False
    node = a.node
    if not lower and node.op is REGISTRY[np.transpose] and not node.params:
        node, lower = node.args[0], True
    return lower and node.op is REGISTRY[np.linalg.cholesky] and not node.params


# -- banded systems ------------------------------------------------------------------------------------------------


def _turned(ab: Any, lower: int, upper: int) -> Any:
    """The diagonals of the transposed matrix. What is rolled into the corners is outside of the matrix, and not read."""
    rows = enumerate(range(lower + upper, -1, -1))
    return np.stack([np.roll(ab[..., row, :], lower - i, axis=-1) for i, row in rows], axis=-2)


def _banded_b(g: Any, y: Any, ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    return SOLVE_BANDED(_turned(ab, lower, upper), g, lower=upper, upper=lower)


def _banded_ab(g: Any, y: Any, ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    n = np.shape(ab)[-1]
    g = _banded_b(g, y, ab, b, lower=lower, upper=upper)
    g, y = (x[:, None] if np.ndim(x) == 1 else x for x in (g, y))
    rows = np.pad(g, (*[(0, 0)] * (np.ndim(ab) - 2), (upper, lower), (0, 0)))
    return np.stack([-np.sum(rows[..., i : i + n, :] * y, axis=-1) for i in range(lower + upper + 1)], axis=-2)


def _solve_banded(ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    if np.ndim(ab) == 2:
        return sl.solve_banded((lower, upper), ab, b)
    systems = zip(ab.reshape(-1, *ab.shape[-2:]), b.reshape(-1, *b.shape[-2:]), strict=True)
    found = [sl.solve_banded((lower, upper), *system) for system in systems]  # SciPy before 1.15 takes but one
    return np.reshape(np.array(found), np.shape(b))


SOLVE_BANDED = Op(
    _solve_banded,
    "op",
    (_banded_ab, _banded_b),
    name="solve_banded",
    fun=_solve_banded,
    samples=[
        Sample(A(2, 4, lo=1.0, hi=2.0), A(4), lower=1, upper=0),
        Sample(A(2, 4, lo=1.0, hi=2.0), A(4, 3), lower=0, upper=1),
        Sample(A(3, 5, lo=1.0, hi=2.0), A(5), lower=2, upper=0),
        Sample(A(3, 2, lo=1.0, hi=1.3), A(2, 2), lower=0, upper=2),
        Sample(A(1, 3, lo=1.0, hi=2.0), A(3), lower=0, upper=0),
        Sample(A(2, 2, 3, lo=1.0, hi=2.0), A(2, 3, 2), lower=1, upper=0),
    ],
)


def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The ``x`` of ``a @ x == b``; ``a`` has ``l`` diagonals below its main one and ``u`` above, the rows of ``ab``.

    Stacks of matrices, and of right-hand sides, broadcast.
    """
    lower, upper = map(int, l_and_u)
    ab, b = array_of(ab), array_of(b)
    if np.shape(ab)[-2] != lower + upper + 1:
        raise ValueError(f"ab has {np.shape(ab)[-2]} rows; l + u + 1 = {lower + upper + 1} diagonals are expected")
    if np.ndim(ab) < 3 and np.ndim(b) < 3:
        return SOLVE_BANDED(ab, b, lower=lower, upper=upper)
    columns = b[:, None] if np.ndim(b) == 1 else b
    stack = np.broadcast_shapes(np.shape(ab)[:-2], np.shape(columns)[:-2])
    ab, columns = (np.broadcast_to(x, stack + np.shape(x)[-2:]) for x in (ab, columns))
    found = SOLVE_BANDED(ab, columns, lower=lower, upper=upper)
    return found[..., 0] if np.ndim(b) == 1 else found


def solveh_banded(
    ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False, check_finite: bool = True
) -> Any:
    """The ``x`` of ``a @ x == b``, ``a`` Hermitian: ``ab`` has its main diagonal and those on one side of it as rows."""
    ab = array_of(ab)
    width = np.shape(ab)[-2] - 1
    turned = conj(_turned(ab, width, 0) if lower else _turned(ab, 0, width))
    both = (turned[..., :-1, :], ab) if lower else (ab, turned[..., 1:, :])
    return solve_banded((width, width), np.concatenate(both, axis=-2), b)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The triangular factor of a positive definite matrix: by default, unlike NumPy's, the upper one."""
    a = array_of(a)
    return np.linalg.cholesky(a) if lower else hermitian(np.linalg.cholesky(hermitian(a)))  # the half that SciPy reads


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The factor, and whether it is the lower one, for ``cho_solve``. Its other triangle is zero."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The ``x`` of ``a @ x == b``, given the factor of ``a``."""
    c, lower = c_and_lower
    if np.ndim(c) > 2 and np.ndim(b) == 1:  # for each of the matrices
        return cho_solve(c_and_lower, array_of(b)[:, None])[..., 0]
    first, second = (0, 2) if lower else (2, 0)
    return solve_triangular(c, solve_triangular(c, b, first, lower), second, lower)


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: Any = None,
    transposed: bool = False,
) -> Any:
    """The ``x`` of ``a @ x == b``, where ``a`` is what it is assumed to be: of a symmetric one, a half is read."""
    a = _assumed(array_of(a), assume_a, lower)
    return np.linalg.solve(transpose(a) if transposed else a, array_of(b))


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True, *, assume_a: Any = None, lower: bool = False) -> Any:
    """The inverse of ``a``, which is what it is assumed to be: of a symmetric one, a half is read."""
    return np.linalg.inv(_assumed(array_of(a), assume_a, lower))


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant."""
    return np.linalg.det(array_of(a))


def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """A norm of vectors or matrices."""
    return np.linalg.norm(array_of(a), ord, axis, keepdims)


def _assumed(a: Any, kind: Any, lower: bool) -> Any:
    """The matrix that SciPy reads from ``a``."""
    if kind in ("her", "hermitian", "pos", "positive definite") or (kind in ("sym", "symmetric") and np.isrealobj(a)):
        return MIRRORED(a if lower else hermitian(a))
    if kind in ("sym", "symmetric"):
        return np.tril(a) + transpose(np.tril(a, -1)) if lower else np.triu(a) + transpose(np.triu(a, 1))
    if kind in ("lower triangular", "upper triangular"):
        return np.tril(a) if kind == "lower triangular" else np.triu(a)
    if kind in ("diagonal", "tridiagonal"):
        reach = int(kind == "tridiagonal")
        return np.tril(np.triu(a, -reach), reach)
    if kind not in (None, "gen", "general", "banded"):
        raise ValueError(f"{kind} is not a recognized matrix structure")
    return a


def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **options: Any) -> Any:
    """Eigenvalues and vectors of a symmetric matrix ``a``, or of ``a @ v == w * (b @ v)`` with a positive definite ``b``."""
    if options:
        given = ", ".join(options)
        raise NotDifferentiable(f"scipy.linalg.eigh has no derivative rule for {given}=; take all, and index them")
    a = array_of(a)
    if b is None:
        values, vectors = np.linalg.eigh(a, "L" if lower else "U")
        return values if eigvals_only else (values, vectors)
    factor = cholesky(b if lower else hermitian(array_of(b)), True)
    inner = solve_triangular(
        factor, hermitian(solve_triangular(factor, MIRRORED(a if lower else hermitian(a)), 0, True)), 0, True
    )
    values, vectors = np.linalg.eigh(inner, "L" if lower else "U")
    return values if eigvals_only else (values, solve_triangular(factor, vectors, 2, True))


def _single(name: str, ndim: int, *arrays: Any) -> list[Any]:
    """The arrays, if none is a stack of what the function takes."""
    if any(np.ndim(array) > ndim for array in arrays):
        what = "vector" if ndim == 1 else "matrix"
        raise NotDifferentiable(f"scipy.linalg.{name} takes one {what} at a time here; use symgrad.vmap for more")
    return [array_of(array) for array in arrays]


def eigvalsh_tridiagonal(d: Any, e: Any, select: Any = "a", **options: Any) -> Any:
    """The eigenvalues of a symmetric matrix with the diagonal ``d``, and ``e`` on both sides of it."""
    if select not in ("a", 0, "all"):
        raise NotDifferentiable(
            "scipy.linalg.eigvalsh_tridiagonal has no derivative rule for select=; take all, and index them"
        )
    d, e = _single("eigvalsh_tridiagonal", 1, d, e)
    beside = np.diag(e, -1)
    return np.linalg.eigvalsh(np.diag(d) + beside + transpose(beside))


def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: Any = "a", **options: Any) -> Any:
    """The same; of plain arrays, the vectors too."""
    if eigvals_only:
        return eigvalsh_tridiagonal(d, e, select)
    advice = "write np.linalg.eigh(np.diag(d) + np.diag(e, -1) + np.diag(e, 1))"
    return _of_plain(sl.eigh_tridiagonal, "its vectors have", advice, d, e, select=select, **options)


def eig(a: Any, b: Any = None, left: bool = False, right: bool = True, **options: Any) -> Any:
    """The eigenvalues, always complex, and the right vectors of a matrix."""
    if b is not None or left or options.get("homogeneous_eigvals"):
        given = "left" if left else "homogeneous_eigvals" if b is None else "b"
        raise NotDifferentiable(f"scipy.linalg.eig has no derivative rule for {given}=")
    if not right:
        return eigvals(a)
    values, vectors = np.linalg.eig(array_of(a))
    return values + 0j, vectors


def _of_plain(fun: Any, what: str, advice: str, *args: Any, **options: Any) -> Any:
    """SciPy's function of plain arrays; of traced ones, an error that says what to write."""
    if any(isinstance(arg, Traced) or contains_traced(arg) for arg in args):
        raise NotDifferentiable(f"{where()}: scipy.linalg.{fun.__name__}: {what} no derivative rule; {advice}")
    return fun(*args, **options)


def schur(a: Any, *args: Any, **options: Any) -> Any:
    """SciPy's, of plain arrays."""
    advice = "write sqrtm, logm or expm for functions of matrices, eig, or eigh where the matrix is symmetric"
    return _of_plain(sl.schur, "the triangle and the vectors that it finds have", advice, a, *args, **options)


def null_space(A: Any, *args: Any, **options: Any) -> Any:
    """SciPy's, of plain arrays: any basis of the null space is as good, and which one LAPACK finds is no function of it."""
    advice = "write np.eye(n) - np.linalg.pinv(a) @ a, which projects to the null space"
    return _of_plain(sl.null_space, "the vectors that it chooses have", advice, A, *args, **options)


def orth(A: Any, *args: Any, **options: Any) -> Any:
    """SciPy's, of plain arrays: how many vectors there are is a matter of rounding."""
    advice = "write np.linalg.qr(a)[0], np.linalg.svd(a, full_matrices=False)[0], or a @ np.linalg.pinv(a), which projects"
    return _of_plain(sl.orth, "the vectors that it chooses have", advice, A, *args, **options)


def polar(a: Any, side: str = "right") -> Any:
    """The nearest unitary matrix ``u``, and the positive ``p`` with ``a == u @ p``, or ``a == p @ u`` with ``side="left"``."""
    if side not in ("right", "left"):
        raise ValueError("`side` must be either 'right' or 'left'")
    a = array_of(a)
    u, tall = _nearest_unitary(a), hermitian(a) if side == "left" else a
    if np.shape(tall)[-2] >= np.shape(tall)[-1]:
        return u, POSITIVE(floating(tall))
    p = hermitian(u) @ a if side == "right" else a @ hermitian(u)
    return u, (p + hermitian(p)) / 2


def _nearest_unitary(a: Any) -> Any:
    a = floating(a)
    return UNITARY(a) if np.shape(a)[-2] >= np.shape(a)[-1] else hermitian(UNITARY(hermitian(a)))


def _unitary(a: Any) -> Any:
    w, _, vh = np.linalg.svd(a, full_matrices=False)
    return w @ vh


def _unitary_a(g: Any, u: Any, a: Any) -> Any:
    """From ``a == u @ p``: within the columns' span ``u^H du`` is skew; the rest of ``da`` is ``du @ p``."""
    p, within = hermitian(u) @ a, transpose(u) @ g
    turned = conj(u) @ HALVES(transpose(p), within - hermitian(within))
    if np.shape(a)[-2] == np.shape(a)[-1]:
        return turned
    return turned + transpose(np.linalg.solve(p, transpose(g - conj(u) @ within)))


def _positive(a: Any) -> Any:
    _, s, vh = np.linalg.svd(a, full_matrices=False)
    return hermitian(vh) @ (s[..., None] * vh)


def _halves(p: Any, k: Any) -> Any:
    """The ``x`` of ``p @ x + x @ p == k``, ``p`` Hermitian and positive; where that says nothing of ``x``, it is zero."""
    w, v = np.linalg.eigh(p)
    sums = w[..., None] + w[..., None, :]
    known = sums > 16 * w.shape[-1] * np.finfo(w.dtype).eps * np.max(w, axis=-1, initial=0)[..., None, None]
    return v @ (hermitian(v) @ k @ v * known / np.where(known, sums, 1)) @ hermitian(v)


def _halves_p(g: Any, x: Any, p: Any, k: Any) -> Any:
    g = HALVES(transpose(p), g)
    return -(g @ transpose(x) + transpose(x) @ g)


def _positive_a(g: Any, y: Any, a: Any) -> Any:
    """From ``y @ y == a^H @ a``: not by way of singular vectors, which are arbitrary where singular values repeat."""
    return conj(a) @ HALVES(transpose(y), g + hermitian(g))


HALVES: Op = Op(_halves, "op", (_halves_p, lambda g, x, p, k: HALVES(transpose(p), g)), name="halves")
POSITIVE: Op = Op(
    _positive,
    "op",
    (_positive_a,),
    name="positive",
    samples=[Sample(A(3, 3)), Sample(A(4, 2)), Sample(A(2, 3, 3)), Sample(A(1, 1)), Sample(A(3, 0)), Sample(np.eye(3))],
)
UNITARY: Op = Op(  # not by way of singular vectors, either
    _unitary,
    "op",
    (_unitary_a,),
    name="unitary",
    samples=[Sample(A(3, 3, kind="well")), Sample(A(4, 2)), Sample(A(2, 3, 3, kind="spd")), Sample(A(3, 0)), Sample(np.eye(3))],
)
rule(POSITIVE)(stacks(2))
rule(UNITARY)(stacks(2))
rule(HALVES)(stacks(2, 2))


def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    """The pseudo-inverse, of the singular values that are more than ``rtol`` of the largest one."""
    a = floating(a)
    return np.linalg.pinv(a, rcond=_cutoff("pinv", a, atol, rtol, return_rank))


def _cutoff(name: str, a: Any, atol: Any, rtol: Any, return_rank: bool) -> Any:
    if atol is not None or return_rank:
        raise NotDifferentiable(f"scipy.linalg.{name} has no derivative rule for {'return_rank' if return_rank else 'atol'}=")
    return max(np.shape(a)[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol


def pinvh(
    a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False, check_finite: bool = True
) -> Any:
    """The pseudo-inverse of a Hermitian matrix, of which a half is read."""
    a = floating(a)
    whole = MIRRORED(a if lower else hermitian(a))
    return np.linalg.pinv(whole, rcond=_cutoff("pinvh", a, atol, rtol, return_rank))


def lstsq(a: Any, b: Any, cond: Any = None, *args: Any, **options: Any) -> Any:
    """The ``x`` of the smallest ``a @ x - b``, its square (where that is all), the rank and the singular values of ``a``."""
    a, b = map(floating, _single("lstsq", 2, a, b))
    x, rest, rank, s = np.linalg.lstsq(a, b, rcond=np.finfo(np.result_type(a, b)).eps if cond is None else cond)
    return x, rest[0] if np.ndim(b) == 1 and np.size(rest) else rest, rank, s


def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The singular values."""
    return np.linalg.svdvals(array_of(a))


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, **options: Any) -> Any:
    """The singular value decomposition."""
    decompose: Any = np.linalg.svd
    return decompose(array_of(a), full_matrices, compute_uv)


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """The orthogonal and the triangular factor: by default, unlike NumPy's, the square one and one of the shape of ``a``."""
    if pivoting or mode == "raw":
        given = "pivoting=True" if pivoting else "mode='raw'"
        raise NotDifferentiable(f"scipy.linalg.qr has no derivative rule for {given}")
    found = np.linalg.qr(array_of(a), "reduced" if mode == "economic" else "complete")
    if mode == "r":
        return (found[1],) if np.ndim(a) == 2 else found[1]  # of stacks, SciPy gives it alone
    return tuple(found)


def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **options: Any) -> Any:
    """The eigenvalues of a symmetric matrix."""
    return eigh(a, b, lower=lower, eigvals_only=True, **options)


def eigvals(a: Any, b: Any = None, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The eigenvalues of a matrix: unlike NumPy's, always complex."""
    if b is not None:
        raise NotDifferentiable("scipy.linalg.eigvals has no derivative rule for b=")
    return np.linalg.eigvals(array_of(a)) + 0j


# -- elimination ---------------------------------------------------------------------------------------------------


def _row(a: Any, core: int) -> Any:
    """The elements of a stack, one after the other, of which each has ``core`` axes."""
    return a.reshape(math.prod(a.shape[:-core]), *a.shape[-core:])


def _swaps(a: Any) -> Any:
    found = [sl.lu_factor(one)[1] for one in _row(a, 2)]
    return np.reshape(np.array(found, int), a.shape[:-1])


def _order(swaps: Any) -> Any:
    orders = [_swapped(one) for one in _row(swaps, 1)]
    return np.reshape(np.array(orders, int), swaps.shape)


def _swapped(swaps: Any) -> Any:
    order = np.arange(len(swaps))
    for i, k in enumerate(swaps):
        order[[i, k]] = order[[k, i]]
    return order


def _eliminated(a: Any) -> Any:
    found = [sl.lu_factor(one)[0] for one in _row(a, 2)]
    return np.reshape(np.array(found, a.dtype), a.shape)


def _eliminated_vjp(g: Any, y: Any, a: Any) -> Any:
    """Of ``a == L @ U``: L^-1 da U^-1 is L^-1 dL, strictly lower, and dU U^-1, upper."""
    lower, upper = np.tril(y, -1) + np.eye(np.shape(y)[-1], dtype=y.dtype), np.triu(y)
    inner = np.tril(transpose(lower) @ np.tril(g, -1), -1) + np.triu(np.triu(g) @ transpose(upper))
    inner = solve_triangular(lower, inner, 1, True, True)
    return transpose(solve_triangular(upper, transpose(inner)))


SWAPS = Op(_swaps, "constant", (), name="swaps")
ORDER = Op(_order, "constant", (), name="order")
ELIMINATED = Op(  # of a matrix whose rows are in the order of their pivots
    _eliminated,
    "op",
    (_eliminated_vjp,),
    name="eliminated",
    samples=[Sample(A(3, 3, kind="spd")), Sample(A(2, 3, 3, kind="spd")), Sample(A(1, 1, kind="spd"))],
)
for op, core in ((SWAPS, 2), (ORDER, 1), (ELIMINATED, 2)):
    rule(op)(stacks(core))


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Both factors in one matrix, and the row that each was swapped with, for ``lu_solve``."""
    a = floating(a)
    if np.ndim(a) != 2 or np.shape(a)[0] != np.shape(a)[1]:
        raise NotDifferentiable("scipy.linalg.lu_factor has a derivative rule for one square matrix; use symgrad.vmap for more")
    swaps = SWAPS(a)
    return ELIMINATED(a[ORDER(swaps)]), swaps


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The ``x`` of ``a @ x == b``, given the factors of ``a``."""
    factors, swaps = lu_and_piv
    if trans not in (0, 1, 2):
        raise ValueError(f"{trans=} is not 0, 1 or 2")
    b, order = array_of(b), ORDER(array_of(swaps))
    if trans == 0:
        return solve_triangular(factors, solve_triangular(factors, _rows(b, order), 0, True, True))
    found = solve_triangular(factors, solve_triangular(factors, b, trans), trans, True, True)
    return _rows(found, np.argsort(order))


def _rows(b: Any, order: Any) -> Any:
    """The rows of one matrix or of each of a stack, or the elements of a vector, in an order."""
    return b[order] if np.ndim(b) < 3 else b[..., order, :]


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False) -> Any:
    """The permutation, the lower and the upper factor."""
    factors, swaps = lu_factor(a)
    rows = np.argsort(ORDER(swaps))
    lower, upper = np.tril(factors, -1) + np.eye(len(factors), dtype=factors.dtype), np.triu(factors)
    if permute_l:
        return lower[rows], upper
    return rows if p_indices else take_at(np.eye(len(factors), dtype=factors.dtype), rows), lower, upper


# -- Sylvester's equation ------------------------------------------------------------------------------------------


def _sylvester_q(g: Any, y: Any, a: Any, b: Any, q: Any) -> Any:
    return SYLVESTER(transpose(a), transpose(b), g)


SYLVESTER = Op(
    sl.solve_sylvester,
    "op",
    (
        lambda g, y, a, b, q: -(_sylvester_q(g, y, a, b, q) @ transpose(y)),
        lambda g, y, a, b, q: -(transpose(y) @ _sylvester_q(g, y, a, b, q)),
        _sylvester_q,
    ),
    name="solve_sylvester",
    samples=[
        Sample(A(3, 3, kind="spd"), A(2, 2, kind="spd"), A(3, 2)),
        Sample(A(2, 2, kind="spd"), A(2, 2, kind="spd"), A(2, 2)),
        Sample(A(1, 1, kind="spd"), A(3, 3, kind="spd"), A(1, 3)),
    ],
)


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The ``x`` of ``a @ x + x @ b == q``."""
    return SYLVESTER(array_of(a), array_of(b), array_of(q))


def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The ``x`` of ``a @ x + x @ a^H == q``."""
    a = array_of(a)
    return solve_sylvester(a, hermitian(a), q)


def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """The ``x`` of ``a @ x @ a^H - x + q == 0``, as one linear system (SciPy's ``"direct"``)."""
    if method not in (None, "direct", "bilinear"):
        raise ValueError(f"Unknown solver {method}")
    a, q = _single("solve_discrete_lyapunov", 2, a, q)
    n = np.shape(a)[0]
    return np.reshape(np.linalg.solve(np.eye(n * n) - np.kron(a, conj(a)), np.ravel(q)), (n, n))


# -- functions of matrices -----------------------------------------------------------------------------------------


def _function(fun: Any, moved: Any, samples: list[Sample], **options: Any) -> Op:
    """``moved(a, y, e)`` is the derivative at ``a``, where the function is ``y``, in the direction ``e``."""
    rules = (lambda g, y, A: moved(transpose(A), transpose(y), g),)
    jvp = lambda ts, y, A: moved(A, y, ts[0])
    return Op(fun, "op", rules, jvp=jvp, name=fun.__name__.lstrip("_"), samples=samples, **options)


def _in_blocks(fun: Any, a: Any, e: Any) -> Any:
    """The function of ``[[a, e], [0, a]]`` holds the derivative at ``a`` in the direction ``e``.

    That is linear in ``e``, which is made about as large as ``a``: beside a far larger one, ``a`` would be lost.
    """
    n, size = np.shape(a)[-1], STOP(_largest(e)) / STOP(_largest(a))
    upper = np.concatenate((a, e / size), axis=-1)
    lower = np.concatenate((np.zeros_like(a), a), axis=-1)
    return fun(np.concatenate((upper, lower), axis=-2))[..., :n, n:] * size


def _largest(a: Any) -> Any:
    """The size of the largest element of matrices; 1 where all are zero."""
    size = np.max(np.abs(a), axis=(-2, -1), keepdims=True, initial=0)
    return np.where(size > 0, size, np.ones_like(size))


def _root_moved(a: Any, y: Any, e: Any) -> Any:
    """From ``y @ y == a``: in blocks, double eigenvalues would part at the negative numbers, where the root has a cut."""
    return SYLVESTER(y, y, e)


def _log_moved(a: Any, y: Any, e: Any) -> Any:
    """The logarithm is twice that of the root, whose eigenvalues are far from the cut."""
    root = SQRTM(a)
    return 2 * _in_blocks(LOGM, root, SYLVESTER(root, root, e))


def _native(A: Any) -> Any:
    return np.asarray(A, native(A.dtype))  # SciPy misreads arrays in another order of bytes


def _expm(A: Any) -> Any:
    return sl.expm(_native(A))


def _sqrtm(A: Any) -> Any:
    return sl.sqrtm(_native(A))


def _logm(A: Any) -> Any:
    return sl.logm(_native(A))


_SPD = [Sample(A(3, 3, kind="spd")), Sample(A(2, 2, kind="spd")), Sample(A(1, 1, kind="spd"))]
_ANY = [Sample(A(3, 3)), Sample(A(2, 3, 3)), Sample(A(1, 1)), Sample(A(2, 2, lo=-9, hi=9))]
EXPM: Op = _function(_expm, lambda a, y, e: _in_blocks(EXPM, a, e), _ANY)
rule(EXPM)(stacks(2))
SQRTM = _function(_sqrtm, _root_moved, _SPD, sized=True)
LOGM = _function(_logm, _log_moved, _SPD, sized=True)


def expm(A: Any) -> Any:
    """The exponential of a matrix."""
    return EXPM(array_of(A))


def sqrtm(A: Any) -> Any:
    """The principal square root of a matrix."""
    return _complex_or_not(SQRTM(array_of(A)))


def logm(A: Any) -> Any:
    """The principal logarithm of a matrix."""
    return _complex_or_not(LOGM(array_of(A)))


def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True) -> Any:
    """The exponential of a matrix, and its derivative in the direction ``E``."""
    moved = _in_blocks(expm, array_of(A), array_of(E))
    return (expm(A), moved) if compute_expm else moved


def cosm(A: Any) -> Any:
    """The cosine of a matrix."""
    return _trigonometric(array_of(A), np.real, 1)


def sinm(A: Any) -> Any:
    """The sine of a matrix."""
    return _trigonometric(array_of(A), np.imag, -1)


def _trigonometric(a: Any, part: Any, sign: int) -> Any:
    turned = expm(1j * a)
    if np.isrealobj(a):
        return part(turned)
    return (turned + sign * expm(-1j * a)) / (2 if sign > 0 else 2j)


def tanm(A: Any) -> Any:
    """The tangent of a matrix."""
    return np.linalg.solve(cosm(A), sinm(A))


def coshm(A: Any) -> Any:
    """The hyperbolic cosine of a matrix."""
    return (expm(A) + expm(-array_of(A))) / 2


def sinhm(A: Any) -> Any:
    """The hyperbolic sine of a matrix."""
    return (expm(A) - expm(-array_of(A))) / 2


def tanhm(A: Any) -> Any:
    """The hyperbolic tangent of a matrix."""
    return np.linalg.solve(coshm(A), sinhm(A))


def _complex_or_not(found: Any) -> Any:
    """Whether the result is complex is looked at: it hangs on the values of a real matrix."""
    bool(IS_COMPLEX(found))
    return found


# -- Riccati equations ---------------------------------------------------------------------------------------------
#
# With the gain ``k`` and the closed loop ``c = a - b k``, a change of the solution solves the Lyapunov equation of ``c``: Kao
# and Hennequin, "Automatic differentiation of Sylvester, Lyapunov, and algebraic Riccati equations", 2020.


def _riccati(continuous: bool) -> Op:
    def backwards(g: Any, x: Any, a: Any, b: Any, r: Any) -> tuple[Any, Any, Any]:
        """The cotangent of ``q``, the gain, and what both ``a`` and ``b`` take their cotangents from."""
        if continuous:
            k = np.linalg.solve(r, b.T @ x)
            c = a - b @ k
            s = solve_continuous_lyapunov(c, -g)
            return s, k, x @ (s + s.T)
        k = np.linalg.solve(r + b.T @ x @ b, b.T @ x @ a)
        c = a - b @ k
        s = solve_discrete_lyapunov(c, g)
        return s, k, x @ c @ (s + s.T)

    def by_b(g: Any, x: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
        _, k, both = backwards(g, x, a, b, r)
        return -both @ k.T

    def by_r(g: Any, x: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
        s, k, _ = backwards(g, x, a, b, r)
        return k @ s @ k.T

    scale = 1.0 if continuous else 0.5
    return Op(
        sl.solve_continuous_are if continuous else sl.solve_discrete_are,
        "op",
        (
            lambda g, x, a, b, q, r: backwards(g, x, a, b, r)[2],
            by_b,
            lambda g, x, a, b, q, r: backwards(g, x, a, b, r)[0],
            by_r,
        ),
        name="solve_continuous_are" if continuous else "solve_discrete_are",
        complex=False,
        samples=[
            Sample(A(3, 3, lo=-scale, hi=scale), A(3, 2), A(3, 3, kind="spd"), A(2, 2, kind="spd")),
            Sample(A(2, 2, lo=-scale, hi=scale), A(2, 2), A(2, 2, kind="spd"), A(2, 2, kind="spd")),
            Sample(A(1, 1), A(1, 1, lo=0.5, hi=1.0), A(1, 1, kind="spd"), A(1, 1, kind="spd")),
        ],
    )


CONTINUOUS_ARE, DISCRETE_ARE = _riccati(True), _riccati(False)


def _are(op: Op, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Any:
    matrices = _single(op.name, 2, a, b, q, r)
    if e is not None or s is not None or any(np.iscomplexobj(matrix) for matrix in matrices):
        raise NotDifferentiable(f"{op.name} is here for real matrices, without e and s")
    return op(*matrices)


def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """The ``x`` of ``a^T @ x + x @ a - x @ b @ inv(r) @ b^T @ x + q == 0`` that stabilises; ``q`` and ``r`` are symmetric."""
    return _are(CONTINUOUS_ARE, a, b, q, r, e, s)


def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """The ``x`` of ``a^T @ x @ a - x - a^T @ x @ b @ inv(r + b^T @ x @ b) @ b^T @ x @ a + q == 0`` that stabilises."""
    return _are(DISCRETE_ARE, a, b, q, r, e, s)


# -- structured matrices -------------------------------------------------------------------------------------------


def block_diag(*arrs: Any) -> Any:
    """The arrays along a diagonal, zeros elsewhere."""
    blocks = [np.atleast_2d(a) for a in _single("block_diag", 2, *arrs)]
    width, before, rows = sum(np.shape(a)[-1] for a in blocks), 0, []
    for a in blocks:
        n = np.shape(a)[-1]
        rows.append(np.pad(a, ((0, 0), (before, width - before - n))))
        before += n
    return np.concatenate(rows)


def _vector(x: Any) -> Any:
    if np.ndim(x) > 1:  # of which SciPy 1.17 makes a stack of matrices, and those before it one big matrix
        raise NotDifferentiable("toeplitz, hankel and circulant take one vector at a time; use symgrad.vmap for more")
    return np.ravel(array_of(x))


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with first column ``c`` and first row ``r``, constant along its diagonals."""
    c = _vector(c)
    r = conj(c) if r is None else _vector(r)
    both = np.concatenate((np.flip(c), r[1:]))
    return both[np.size(c) - 1 - np.arange(np.size(c))[:, None] + np.arange(np.size(r))]


def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with first column ``c`` and last row ``r``, constant along its antidiagonals."""
    c = _vector(c)
    r = np.zeros_like(c) if r is None else _vector(r)
    both = np.concatenate((c, r[1:]))
    return both[np.arange(np.size(c))[:, None] + np.arange(np.size(r))]


def circulant(c: Any) -> Any:
    """The matrix whose columns are ``c``, each one turned by one more."""
    c = _vector(c)
    places = np.arange(np.size(c))
    return c[(places[:, None] - places) % max(np.size(c), 1)]


def companion(a: Any) -> Any:
    """The matrix whose characteristic polynomial has these coefficients."""
    a = _vector(a)
    below = np.eye(np.size(a) - 2, np.size(a) - 1, dtype=a.dtype)
    return np.concatenate((-a[None, 1:] / a[0], below))


def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """The ``x`` of ``toeplitz(c, r) @ x == b``."""
    return np.linalg.solve(_toeplitz(c_or_cr), array_of(b))


def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    """``toeplitz(c, r) @ x``."""
    return _toeplitz(c_or_cr) @ array_of(x)


def _toeplitz(c_or_cr: Any) -> Any:
    return toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)


def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> Any:
    """The orthogonal matrix that turns ``A`` nearest to ``B``, and the sum of the singular values of ``A^H @ B``."""
    both = floating(hermitian(array_of(A)) @ array_of(B))
    return UNITARY(both), np.real(np.trace(POSITIVE(both)))
