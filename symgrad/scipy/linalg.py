"""``scipy.linalg``: triangular systems, Cholesky solves, matrix functions, structured matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl

from symgrad.errors import NotDifferentiable
from symgrad.ir import Node
from symgrad.ops.contract import conj, transpose
from symgrad.ops.core import A, Op, Sample
from symgrad.ops.engine import IS_COMPLEX
from symgrad.ops.index import array_of
from symgrad.ops.linalg import MIRRORED, hermitian
from symgrad.transform.batch import Batch, rule
from symgrad.transform.batch_rules import stacks

det, inv, norm, pinv, svdvals = np.linalg.det, np.linalg.inv, np.linalg.norm, np.linalg.pinv, np.linalg.svdvals
TRANSPOSED = {"N": 0, "T": 1, "C": 2}


def __getattr__(name: str) -> Any:
    return getattr(sl, name)


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
    options = {"trans": trans, "lower": lower, "unit_diagonal": unit_diagonal}
    return SOLVE_TRIANGULAR(a, b, **{name: value for name, value in options.items() if value})


# -- banded systems ------------------------------------------------------------------------------------------------


def _turned(ab: Any, lower: int, upper: int) -> Any:
    """The diagonals of the transposed matrix. What is rolled into the corners is outside of the matrix, and not read."""
    return np.stack([np.roll(ab[row], lower - i) for i, row in enumerate(range(lower + upper, -1, -1))])


def _banded_b(g: Any, y: Any, ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    return SOLVE_BANDED(_turned(ab, lower, upper), g, lower=upper, upper=lower)


def _banded_ab(g: Any, y: Any, ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    n = np.shape(ab)[1]
    g, y = (np.reshape(x, (n, -1)) for x in (_banded_b(g, y, ab, b, lower=lower, upper=upper), y))
    rows = np.pad(g, ((upper, lower), (0, 0)))
    return np.stack([-np.sum(rows[i : i + n] * y, axis=1) for i in range(lower + upper + 1)])


def _solve_banded(ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    return sl.solve_banded((lower, upper), ab, b)


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
    ],
)


def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The ``x`` of ``a @ x == b``; ``a`` has ``l`` diagonals below its main one and ``u`` above, the rows of ``ab``."""
    lower, upper = map(int, l_and_u)
    ab = array_of(ab)
    if np.shape(ab)[0] != lower + upper + 1:
        raise ValueError(f"ab has {np.shape(ab)[0]} rows; l + u + 1 = {lower + upper + 1} diagonals are expected")
    return SOLVE_BANDED(ab, array_of(b), lower=lower, upper=upper)


def solveh_banded(
    ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False, check_finite: bool = True
) -> Any:
    """The ``x`` of ``a @ x == b``, ``a`` Hermitian: ``ab`` has its main diagonal and those on one side of it as rows."""
    ab = array_of(ab)
    width = np.shape(ab)[0] - 1
    turned = conj(_turned(ab, width, 0) if lower else _turned(ab, 0, width))
    both = (turned[:-1], ab) if lower else (ab, turned[1:])
    return solve_banded((width, width), np.concatenate(both), b)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The triangular factor of a positive definite matrix: by default, unlike NumPy's, the upper one."""
    factor = np.linalg.cholesky(array_of(a))
    return factor if lower else hermitian(factor)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The factor, and whether it is the lower one, for ``cho_solve``. Its other triangle is zero."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The ``x`` of ``a @ x == b``, given the factor of ``a``."""
    c, lower = c_and_lower
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
    return a


def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **options: Any) -> Any:
    """Eigenvalues and vectors of a symmetric matrix."""
    if b is not None or options:
        given = ", ".join(options) or "b"
        raise NotDifferentiable(f"scipy.linalg.eigh has no derivative rule for {given}=; use np.linalg.eigh")
    values, vectors = np.linalg.eigh(array_of(a), "L" if lower else "U")
    return values if eigvals_only else (values, vectors)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, **options: Any) -> Any:
    """The singular value decomposition."""
    decompose: Any = np.linalg.svd
    return decompose(array_of(a), full_matrices, compute_uv)


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
    a, q = array_of(a), array_of(q)
    n = np.shape(a)[0]
    return np.reshape(np.linalg.solve(np.eye(n * n) - np.kron(a, conj(a)), np.ravel(q)), (n, n))


# -- functions of matrices -----------------------------------------------------------------------------------------


def _function(fun: Any, moved: Any, samples: list[Sample], **options: Any) -> Op:
    """``moved(a, y, e)`` is the derivative at ``a``, where the function is ``y``, in the direction ``e``."""
    rules = (lambda g, y, A: moved(transpose(A), transpose(y), g),)
    jvp = lambda ts, y, A: moved(A, y, ts[0])
    return Op(fun, "op", rules, jvp=jvp, name=fun.__name__.lstrip("_"), samples=samples, **options)


def _in_blocks(fun: Any, a: Any, e: Any) -> Any:
    """The function of ``[[a, e], [0, a]]`` holds the derivative at ``a`` in the direction ``e``."""
    n = np.shape(a)[-1]
    upper = np.concatenate((a, e), axis=-1)
    lower = np.concatenate((np.zeros_like(a), a), axis=-1)
    return fun(np.concatenate((upper, lower), axis=-2))[..., :n, n:]


def _root_moved(a: Any, y: Any, e: Any) -> Any:
    """From ``y @ y == a``: in blocks, double eigenvalues would part at the negative numbers, where the root has a cut."""
    return SYLVESTER(y, y, e)


def _log_moved(a: Any, y: Any, e: Any) -> Any:
    """The logarithm is twice that of the root, whose eigenvalues are far from the cut."""
    root = SQRTM(a)
    return 2 * _in_blocks(LOGM, root, SYLVESTER(root, root, e))


def _sqrtm(A: Any) -> Any:
    return sl.sqrtm(np.asarray(A, A.dtype.newbyteorder("=")))  # others are misread


def _logm(A: Any) -> Any:
    return sl.logm(np.asarray(A, A.dtype.newbyteorder("=")))


_SPD = [Sample(A(3, 3, kind="spd")), Sample(A(2, 2, kind="spd")), Sample(A(1, 1, kind="spd"))]
_ANY = [Sample(A(3, 3)), Sample(A(2, 3, 3)), Sample(A(1, 1)), Sample(A(2, 2, lo=-9, hi=9))]
EXPM: Op = _function(sl.expm, lambda a, y, e: _in_blocks(EXPM, a, e), _ANY)
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
    matrices = [array_of(matrix) for matrix in (a, b, q, r)]
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
    blocks = [np.atleast_2d(array_of(a)) for a in arrs]
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
