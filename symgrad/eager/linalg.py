"""``torch.linalg``, as far as NumPy's counterparts exist."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.custom import custom_jvp
from symgrad.eager import products
from symgrad.eager.core import (
    NAMES,
    NONE,
    Fused,
    LinAlgError,
    Tensor,
    apply,
    axis_of,
    called,
    known,
    labelled,
    methods,
    numbers,
    plain,
    unlike,
    variant,
    wrap,
)
from symgrad.eager.dtypes import title
from symgrad.eager.pointwise import FUNCTIONS, function, in_place, where
from symgrad.eager.products import dot, matmul, mm
from symgrad.eager.reductions import amax, amin, named, vector_norm, widened
from symgrad.eager.shapes import movedim, reshape, unsqueeze
from symgrad.eager.values import clone
from symgrad.ops.contract import conj, transpose
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.engine import STOP
from symgrad.ops.linalg import EIG, eigh_a, pinv_vjp
from symgrad.ops.linalg import hermitian as adjoint
from symgrad.tracing.tracer import Tracer

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm",
    "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv",
    "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
]  # fmt: skip
NAMES.update({
    np.linalg.inv: "LinalgInvExBackward0", np.linalg.det: "LinalgDetBackward0", np.linalg.solve: "LinalgSolveExBackward0",
    np.linalg.cholesky: "LinalgCholeskyExBackward0", np.linalg.slogdet: "LinalgSlogdetBackward0",
    np.linalg.eigh: "LinalgEighBackward0", np.linalg.svd: "LinalgSvdBackward0", np.linalg.qr: "LinalgQrBackward0",
})  # fmt: skip


_SQUARE = "inv det slogdet cholesky eigh eigvalsh".split()
_REASONS = {
    "inv": "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-definite (the leading minor of "
    "order {} is not positive-definite).",
}


def _check_floats(name: str, A: Tensor) -> None:
    if A.value.dtype.kind not in "fc":
        raise RuntimeError(f"linalg.{name}: Expected a floating point or complex tensor as input. Got {title(A.value.dtype)}")


def _check_shape(name: str, A: Tensor) -> None:
    shape = A.value.shape
    if len(shape) < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if shape[-1] != shape[-2]:
        both = f"{shape[-2]} by {shape[-1]}"
        raise RuntimeError(f"linalg.{name}: A must be batches of square matrices, but they are {both} matrices")


def _check_square(name: str, A: Tensor) -> None:
    _check_shape(name, A)
    _check_floats(name, A)


def _failed(name: str, stack: Any) -> Exception | None:
    """Torch's words for the first matrix of a stack that cannot be inverted or factorised."""
    tried: Any = getattr(np.linalg, name)
    for i, matrix in enumerate(_stack(stack) if name in _REASONS else ()):
        for n in range(1, len(matrix) + 1):
            part = matrix[:n, :n] if name == "cholesky" else matrix[:, :n].T @ matrix[:, :n]
            try:
                found = tried(part)
            except np.linalg.LinAlgError:
                found = None
            if found is None or (name == "cholesky" and np.isnan(found[-1, -1])):
                batch = f"(Batch element {i}): " if stack.ndim > 2 else ""
                return LinAlgError(f"linalg.{name}: {batch}{_REASONS[name].format(n)}")
    return None


@functools.lru_cache(maxsize=16)
def _lower(n: int, kind: Any) -> tuple[Any, Any]:
    """A mask of the lower triangle; a quarter on the diagonal, and a half beside it."""
    return np.tri(n, dtype=bool), np.asarray(0.5 - 0.25 * np.eye(n), kind)


def _as_it_is(g: Any, a: Any, lower: bool) -> Any:
    """The Hermitian cotangent of a matrix, of whatever triangle is read: as torch has it."""
    return g


def _cholesky_rule(g: Any, y: Any, a: Any, *, upper: bool = False) -> Any:
    if g.__class__ is not np.ndarray:
        return FACTOR.rules[0](g, y, a, upper=upper, read=_as_it_is)  # type: ignore[misc]
    if upper:
        g, y = adjoint(g), adjoint(y)
    mask, weights = _lower(y.shape[-1], y.dtype)
    inner = np.where(mask, transpose(y) @ g, 0)
    inner = (inner + adjoint(inner)) * weights
    if y.dtype.kind == "c":
        inner = 0.5 * (inner + adjoint(inner))
    y = np.linalg.inv(y)
    return transpose(y) @ inner @ conj(y)


# a traced matrix of which one triangle is read: its derivatives are those along Hermitian matrices, as in torch
_along_hermitian: Any = custom_jvp(lambda a: a).defjvp(lambda xs, ts: (xs[0], (ts[0] + adjoint(ts[0])) / 2))
FACTOR = known(np.linalg.cholesky)
CHOLESKY = variant(FACTOR, rules=(_cholesky_rule,))  # the same rule, with masks that are kept
EIGH = variant(known(np.linalg.eigh), rules=(lambda g, y, a, UPLO="L": eigh_a(g, y, a, UPLO, _as_it_is),))


def _same(name: str, label: str | None = None, fields: str = "") -> Any:
    """NumPy's function of the name; with torch's name of the operation, and of its results."""
    numpys: Any = getattr(np.linalg, name)
    op = {"cholesky": CHOLESKY, "eigh": EIGH}.get(name) or REGISTRY[numpys]
    kind = named(f"linalg_{name}", fields) if fields else None

    @called(name, f"NumPy's ``linalg.{name}``.")
    def fun(A: Tensor, *args: Any, **kwargs: Any) -> Any:
        if name in _SQUARE:
            _check_square(name, A)
        else:
            _check_floats("svd", A)  # which ``cond`` and ``svdvals`` come from
        if name in ("cholesky", "eigh") and type(A.value) is Tracer:
            A = wrap(_along_hermitian(A.value))
        try:
            found = apply(op, *op.bind((A, *args), kwargs)) if isinstance(op, Op) else numpys(A, *args, **kwargs)
        except np.linalg.LinAlgError as error:
            raise _failed(name, A.value) or LinAlgError(f"linalg.{name}: {error}") from None
        if name == "cholesky" and type(found.value) is np.ndarray:
            diagonal = found.value.diagonal(0, -2, -1)
            if np.isnan(diagonal).any():
                raise _failed(name, A.value) or LinAlgError(f"linalg.{name}: the input is not finite")
        if kind is not None:
            return kind(*found)
        return found if label is None else labelled(found, label)

    return fun


inv, det, cholesky = map(_same, "inv det cholesky".split())
_cond = _same("cond")
svdvals = _same("svdvals", "LinalgSvdBackward0")
slogdet, eigh = _same("slogdet", fields="sign logabsdet"), _same("eigh", fields="eigenvalues eigenvectors")


def eigvalsh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues of a Hermitian matrix."""
    return eigh(A, UPLO).eigenvalues


def cond(A: Tensor, p: Any = None) -> Any:
    """The norm of a matrix times that of its inverse: how much errors may grow."""
    if A.value.ndim > 1 and not A.value.size:
        return abs(reshape(A, (*A.value.shape[:-2], -1))).sum(-1)
    if p not in (None, 2, -2):
        return labelled(_cond(A, p), "SqueezeBackward1")
    strengths = svdvals(A)
    ends = strengths[..., 0], strengths[..., -1]
    return labelled(ends[0] / ends[1] if p != -2 else ends[1] / ends[0], "SqueezeBackward1")


_eig, _lstsq = named("linalg_eig", "eigenvalues eigenvectors"), named("linalg_lstsq", "solution residuals rank singular_values")
_qr, _svd = named("linalg_qr", "Q R"), named("linalg_svd", "U S Vh")


def _strengths(a: Any, hermitian: bool) -> Any:
    """The singular values of plain matrices."""
    try:
        return np.abs(np.linalg.eigvalsh(a)) if hermitian else np.linalg.svd(a, compute_uv=False)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.svd: {error}") from None


def _cut(a: Any, strengths: Any, atol: Any, rtol: Any) -> Any:
    """From where on singular values count as zero."""
    atol, rtol = (None if tol is None else np.expand_dims(plain(tol), -1) for tol in (atol, rtol))
    if rtol is None:
        usual = max(a.shape[-2:]) * np.finfo(a.dtype).eps
        rtol = usual if atol is None else np.where(atol > 0, 0, usual)
    largest = strengths.max(-1, keepdims=True) if strengths.size else np.zeros((*strengths.shape[:-1], 1))
    return np.maximum(0 if atol is None else atol, rtol * largest)


def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """How many singular values are above ``max(atol, rtol * the largest)``."""
    if tol is not None:
        atol, rtol = tol, 0
    _check_floats("matrix_rank", A)
    found = _strengths(A.value, hermitian)
    return wrap(np.asarray((found > _cut(A.value, found, atol, rtol)).sum(-1)))


def _pinv(a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if hermitian:
        w, left = np.linalg.eigh(a)
        right = left
        large = np.abs(w) > _cut(a, np.abs(w), atol, rtol)
    else:
        left, w, right = np.linalg.svd(a, full_matrices=False)
        right = np.conj(right).swapaxes(-1, -2)
        large = w > _cut(a, w, atol, rtol)
    inverse = np.where(large, 1 / np.where(large, w, 1), 0)
    return (right * inverse[..., None, :]) @ np.conj(left).swapaxes(-1, -2)


def _pinv_ruled(a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """``_pinv``, of a traced matrix by a rule of its own, which minds neither what was cut off nor which triangle is read."""
    if type(a) is not Tracer:
        return _pinv(a, atol, rtol, hermitian)
    found: Any = custom_jvp(lambda a: _pinv(STOP(a), atol, rtol, hermitian))

    def pushed(xs: tuple[Any, ...], ts: tuple[Any, ...]) -> Any:
        (a,), (t,) = xs, ts
        y = _pinv_ruled(a, atol, rtol, hermitian)
        left, right = y @ adjoint(y) @ adjoint(t), adjoint(t) @ adjoint(y) @ y
        return y, left - left @ a @ y + right - y @ a @ right - y @ t @ y

    return found.defjvp(pushed)(a)


PINV = Fused(_pinv_ruled, lambda g, y, a, atol, rtol, hermitian: pinv_vjp(g, y, a), name="linalg_pinv")


def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """The pseudo-inverse; singular values up to ``max(atol, rtol * the largest)`` count as zero."""
    if A.value.ndim < 2:
        raise RuntimeError("linalg.pinv: The input tensor A must have at least 2 dimensions.")
    if A.value.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.pinv({title(A.value.dtype)}{{{list(A.value.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    return apply(PINV, (A,), {"atol": atol, "rtol": rtol if rcond is None else rcond, "hermitian": hermitian})


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """The ``X`` for which ``A @ X`` is nearest to ``B``; ``driver`` says, as in torch, what is told about ``A``."""
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    _check_floats("lstsq", A)
    if A.value.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.value.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if not 0 <= A.value.ndim - B.value.ndim <= 1:
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    if A.value.dtype != B.value.dtype:
        raise RuntimeError(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
            f"{title(A.value.dtype)} and other's dtype {title(B.value.dtype)}"
        )
    vector = A.value.ndim > B.value.ndim
    right = unsqueeze(B, -1) if vector else B
    m, n = A.value.shape[-2:]
    if right.value.shape[-2] != m:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({-1 if vector else -2})")
    wrong = unlike(A.value.shape[:-2], right.value.shape[:-2])
    if wrong is not None:
        raise wrong
    strengths = _strengths(numbers(A), False)
    cut = max(m, n) * np.finfo(A.value.dtype).eps if rcond is None else rcond
    ranks = np.asarray((strengths > cut * strengths.max(-1, keepdims=True, initial=0)).sum(-1))
    X = matmul(pinv(A, rtol=0 if driver == "gels" else cut), right)
    residuals = abs(reshape(X, (-1,))[:0])
    if m > n and driver not in (None, "gelsy") and (driver == "gels" or np.all(ranks == n)):
        residuals = (abs(matmul(A, X) - right) ** 2).sum(-2)
    return _lstsq(
        labelled(X.squeeze(-1) if vector else X, "LinalgLstsqBackward0"),
        labelled(residuals, "LinalgLstsqBackward0"),
        wrap(np.empty(0, np.int64) if driver == "gels" else ranks),
        wrap(strengths if driver in ("gelss", "gelsd") else np.empty(0, strengths.dtype)),
    )


def _is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether a right-hand side is a vector, or a stack of them."""
    return bool(B.value.ndim == 1 or A.value.shape[:-1] == B.value.shape)


def matrix_power(A: Tensor, n: int) -> Any:
    """A matrix times itself, ``n`` times in all; its inverse where ``n`` is negative."""
    _check_shape("matrix_power", A)
    if n < 0:
        return inv(A) if n == -1 else matrix_power(inv(A), -n)
    if n == 0:
        return np.linalg.matrix_power(A, 0)
    if n == 1:
        return clone(A)
    if n == 3:
        return matmul(matmul(A, A), A)
    square, result = A, None
    while n:
        if n % 2:
            result = square if result is None else matmul(result, square)
        n //= 2
        square = matmul(square, square) if n else square
    return result


def multi_dot(tensors: Sequence[Tensor]) -> Any:
    """The product of several matrices, in the order that takes the fewest multiplications; the ends may be vectors."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, *inner, last = tensors
    for i, x in enumerate(tensors):
        allowed = "2D" if 0 < i < len(tensors) - 1 else "1D or 2D"
        if str(x.value.ndim) not in allowed:
            raise RuntimeError(f"multi_dot(): tensor {i} must be {allowed} but got {x.value.ndim}D")
        if x.value.dtype == bool:
            raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    rows, columns = first.value.shape[:-1], last.value.shape[1:]
    row, column = (first if rows else unsqueeze(first, 0)), (last if last.value.ndim == 2 else unsqueeze(last, 1))
    matrices = [row, *inner, column]
    return reshape(_chain(matrices, 0, len(matrices), _splits([x.value.shape for x in matrices])), (*rows, *columns))


def _chain_matmul(*matrices: Tensor) -> Any:
    """``multi_dot``, by its old name."""
    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, "
        "which accepts a list of two or more tensors rather than multiple parameters.",
        stacklevel=2,
    )
    for x in matrices:
        if x.value.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {x.value.ndim}, expected 2 instead.")
    return multi_dot(matrices)


FUNCTIONS["chain_matmul"] = _chain_matmul


def _chain(matrices: Sequence[Tensor], start: int, stop: int, splits: dict[tuple[int, int], int]) -> Any:
    if stop - start == 1:
        return matrices[start]
    k = splits[start, stop]
    return mm(_chain(matrices, start, k, splits), _chain(matrices, k, stop, splits))


def _splits(shapes: Sequence[tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """Where to split each range of a product of matrices: of equally cheap places the first, of three matrices the last."""
    cost = {(i, i + 1): 0 for i in range(len(shapes))}
    splits = {}
    for length in range(2, len(shapes) + 1):
        for i in range(len(shapes) - length + 1):
            j = i + length
            ways = [(cost[i, k] + cost[k, j] + shapes[i][0] * shapes[k][0] * shapes[j - 1][1], k) for k in range(i + 1, j)]
            cost[i, j], splits[i, j] = min(ways, key=lambda way: (way[0], -way[1] if len(shapes) == 3 else way[1]))
    return splits


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Any:
    """The ``X`` of ``A @ X == B``, or of ``X @ A == B``."""
    _check_square("solve", A)
    if A.value.dtype != B.value.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {title(A.value.dtype)} and B of type "
            f"{title(B.value.dtype)} instead"
        )
    vector = _is_vector(A, B)
    _check_right("linalg.solve", A, B.value.shape + (1,) * vector, left)
    try:
        if vector and B.value.ndim > 1:
            return labelled(np.linalg.solve(A, unsqueeze(B, -1)).squeeze(-1), "LinalgSolveExBackward0")
        if not left:
            return labelled(np.linalg.solve(A.mT, B.mT).mT, "LinalgSolveExBackward0")
        return np.linalg.solve(A, B)
    except np.linalg.LinAlgError:
        number = next((i for i, matrix in enumerate(_stack(A.value)) if not np.linalg.det(matrix)), 0)
        batch = f"(Batch element {number}): " if A.value.ndim > 2 else ""
        raise LinAlgError(f"torch.linalg.solve: {batch}The solver failed because the input matrix is singular.") from None


def _stack(a: Any) -> Any:
    """Matrices in a row."""
    return a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])


def _check_right(name: str, A: Tensor, shape: tuple[int, ...], left: bool) -> None:
    """Raise where no right-hand side can be of this shape."""
    if len(shape) < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    n = A.value.shape[-1]
    if shape[-2 if left else -1] != n:
        what = "AX" if left else "XA"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {what} = B ({n}x{n} and {shape[-2]}x{shape[-1]})"
        )


def _complex_eig(a: Any) -> Any:
    kind = np.result_type(a.dtype, np.complex64)
    return tuple([part.astype(kind) for part in np.linalg.eig(a)])


COMPLEX_EIG = variant(EIG, fun=_complex_eig)  # also where all eigenvalues are real


def eig(A: Tensor) -> Any:
    """Eigenvalues and eigenvectors, complex ones."""
    _check_square("eig", A)
    return _eig(*apply(COMPLEX_EIG, (A,), NONE, "LinalgEigBackward0"))


def eigvals(A: Tensor) -> Any:
    """The eigenvalues, complex ones."""
    return eig(A).eigenvalues


def tensorinv(A: Tensor, ind: int = 2) -> Any:
    """The inverse for ``tensordot`` over ``ind`` dimensions."""
    shape = A.value.shape
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    sizes = math.prod(shape[ind:]), math.prod(shape[:ind])
    if sizes[0] != sizes[1]:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{sizes[0]} != {sizes[1]}"
        )
    square = reshape(A, (sizes[0], -1))
    return labelled(reshape(inv(square), (*shape[ind:], *shape[:ind])), "ReshapeAliasBackward0")


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Any:
    """The ``X`` of ``tensordot(A, X, X.ndim) == B``."""
    moved = A if dims is None else movedim(A, dims, tuple(range(A.value.ndim - len(dims), A.value.ndim)))
    shape = moved.value.shape[B.value.ndim :]
    return reshape(solve(reshape(moved, (B.value.size, -1)), reshape(B, (-1,))), shape)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices."""
    return FUNCTIONS["diagonal"](A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Any:
    """The powers 0, 1, … of each element, along a new last dimension."""
    if x.value.dtype == bool:
        raise RuntimeError("linalg.vander supports floating point, complex, and integer tensors, but got Bool")
    n = N if N is not None else x.value.shape[-1] if x.value.ndim else 1
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    return _powers(x if x.value.ndim else reshape(x, (1,)), n)


def _powers(x: Tensor, n: int) -> Any:
    """The powers of each element that are less than ``n``."""
    shape = x.value.shape
    powers = unsqueeze(x, -1).expand(*shape, max(n - 1, 0)).cumprod(-1)
    return FUNCTIONS["cat"]((wrap(np.ones((*shape, min(n, 1)), x.value.dtype)), powers), -1)


@function
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Any:
    """Slices along a dimension, scaled down where their ``p``-norm is more than ``maxnorm``."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    ndim = input.value.ndim
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    axis = axis_of(dim, ndim)
    norm = vector_norm(input, p, tuple([i for i in range(ndim) if i != axis]), True)
    scale = where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return labelled(input * scale, "RenormBackward0")


in_place("renorm", lambda self, *args, **options: renorm(clone(self), *args, **options))  # what it saves is not written to


def _vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element of a vector, the highest first."""
    if x.value.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.value.size if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    powers = _powers(x.long() if x.value.dtype == bool else x, n)
    return powers if increasing else powers.flip(1)


FUNCTIONS["vander"] = _vander
methods(adjoint=lambda self: self.mH)


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """The ``X`` of ``A @ X == B`` (or ``X @ A == B``), of which only a triangle of ``A`` counts."""
    _check_square("solve_triangular", A)
    triangle = (FUNCTIONS["triu"] if upper else FUNCTIONS["tril"])(A, (1 if upper else -1) if unitriangular else 0)
    if unitriangular:
        triangle = triangle + wrap(np.eye(A.value.shape[-1], dtype=A.value.dtype))
    _check_right("linalg.solve_triangular", A, B.value.shape, left)
    found = _by_triangle(triangle, B, upper) if left else _by_triangle(triangle.mT, B.mT, not upper).mT
    return labelled(found, "LinalgSolveTriangularBackward0")


def _substituted(a: Any, b: Any, upper: bool) -> Any:
    """The solution for a triangular matrix, row after row: infinite or NaN from a zero on the diagonal on."""
    n = a.shape[-1]
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])))
    for i in range(n - 1, -1, -1) if upper else range(n):
        rest = slice(0, i) if upper else slice(i + 1, n)
        x[..., i, :] /= a[..., i, i, None]
        x[..., rest, :] -= a[..., rest, i, None] * x[..., i, None, :]
    return x


def _substituted_rule(g: Any, y: Any, a: Any, b: Any, upper: bool) -> Any:
    return -SUBSTITUTED(transpose(a), g, upper=not upper) @ transpose(y)


SUBSTITUTED: Fused = Fused(
    _substituted,
    _substituted_rule,
    lambda g, y, a, b, upper: SUBSTITUTED(transpose(a), g, upper=not upper),
    name="linalg_solve_triangular",
)


def _is_singular(triangle: Any) -> bool:
    """Whether triangular matrices, which are no traced ones, have a zero on a diagonal."""
    return type(triangle) is np.ndarray and bool((triangle.diagonal(0, -2, -1) == 0).any())


def _by_triangle(triangle: Any, right: Any, upper: bool) -> Any:
    """The ``X`` of ``triangle @ X == right``, with infinities and NaN where the matrix is singular."""
    return SUBSTITUTED(triangle, right, upper=upper) if _is_singular(plain(triangle)) else np.linalg.solve(triangle, right)


# -- triangular factors --------------------------------------------------------------------------------------------


def _eliminated(a: Any, exchange: bool) -> tuple[Any, Any]:
    """Both factors in one matrix, and the row that each one is exchanged with: that of the largest element below."""
    rest = _stack(a).copy()
    k, each = min(a.shape[-2:]), np.arange(len(rest))
    found = np.empty((len(rest), k), np.int32)
    for j in range(k):
        column = rest[:, j:, j]
        best = j + (np.abs(column.real) + np.abs(column.imag)).argmax(1) if exchange else np.full(len(rest), j)
        found[:, j] = best + 1
        rest[each, j], rest[each, best] = rest[each, best], rest[each, j].copy()
        top = rest[:, j, j][:, None]
        below = np.divide(rest[:, j + 1 :, j], top, out=np.zeros_like(rest[:, j + 1 :, j]), where=top != 0)
        rest[:, j + 1 :, j] = below
        rest[:, j + 1 :, j + 1 :] -= below[:, :, None] * rest[:, j, None, j + 1 :]
    return rest.reshape(a.shape), found.reshape(*a.shape[:-2], k)


def _rows(pivots: Any, m: int) -> Any:
    """The order of the rows after these exchanges."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order, each = np.tile(np.arange(m), (len(flat), 1)), np.arange(len(flat))
    for j, other in enumerate(flat.T - 1):
        order[each, j], order[each, other] = order[each, other], order[each, j].copy()
    return order.reshape(*pivots.shape[:-1], m)


def _packed_rule(g: Any, y: Any, a: Any) -> Any:
    """From both factors of a square matrix, which lie in one."""
    eye = np.eye(np.shape(a)[-1], dtype=a.dtype)
    left, right = np.tril(y, -1) + eye, np.triu(y)
    inner = np.tril(transpose(left) @ np.tril(g, -1), -1) + np.triu(np.triu(g) @ transpose(right))
    return np.linalg.inv(transpose(left)) @ inner @ _by_triangle(transpose(right), eye, False)


PACKED = Fused(lambda a: _eliminated(a, False)[0], _packed_rule, name="linalg_lu_factor_ex")  # of rows that need no exchange


def _factors(A: Tensor) -> tuple[Tensor, Any, Any]:
    """Both factors in one matrix, as LAPACK has them; the exchanges of rows, and their order."""
    _check_floats("lu_factor", A)
    if A.value.ndim < 2:
        raise RuntimeError("torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: " + str(list(A.value.shape)))
    pivots = _eliminated(A.value, True)[1]
    m, n = A.value.shape[-2:]
    k, order = min(m, n), _rows(pivots, m)
    moved = FUNCTIONS["take_along_dim"](A, wrap(order[..., None]), -2)
    square = apply(PACKED, (moved[..., :k, :k],))
    if m > n:  # below, what times the upper factor gives the rest; nothing is where nothing was left to divide
        zero = wrap(np.eye(k, dtype=bool) & (square.value == 0))
        below = solve_triangular(where(zero, 1.0, square), moved[..., k:, :], upper=True, left=False)
        square = FUNCTIONS["cat"]((square, below), -2)
    elif m < n:
        beside = solve_triangular(square, moved[..., k:], upper=False, unitriangular=True)
        square = FUNCTIONS["cat"]((square, beside), -1)
    return labelled(square, "LinalgLuFactorExBackward0"), pivots, order


_lu, _lu_factor = named("linalg_lu", "P L U"), named("linalg_lu_factor", "LU pivots")
_lu_factor_ex, _lu_unpack = named("linalg_lu_factor_ex", "LU pivots info"), named("lu_unpack", "P L U")


def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """The triangular factors of a matrix whose rows are exchanged, in one, and the exchanges."""
    LU, pivots, info = lu_factor_ex(A, pivot=pivot)
    if (info.value > 0).any():
        number = int((info.value > 0).argmax())
        place, batch = info.value.flat[number], f"(Batch element {number}): " if info.value.ndim else ""
        raise RuntimeError(
            f"torch.linalg.lu_factor: {batch}U[{place},{place}] is zero and using it on lu_solve would result in a division by "
            "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )
    return _lu_factor(LU, pivots)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """``lu_factor``, and where a pivot is zero."""
    if not pivot:
        raise NotImplementedError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    LU, pivots, _ = _factors(A)
    zero = np.diagonal(LU.value, axis1=-2, axis2=-1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if zero.shape[-1] else np.zeros(zero.shape[:-1])
    return _lu_factor_ex(LU, wrap(pivots), wrap(np.asarray(info, np.int32)))


def _unpacked(LU: Tensor, order: Any) -> tuple[Any, Any, Any]:
    """The permutation and both factors, of a matrix that holds these and the order of rows."""
    m, n = LU.value.shape[-2:]
    k, kind = min(m, n), LU.value.dtype
    left = FUNCTIONS["tril"](LU[..., :, :k], -1) + wrap(np.eye(m, k, dtype=kind))
    places = np.asarray(order[..., None, :] == np.arange(m)[:, None]).astype(kind)
    return wrap(places), left, FUNCTIONS["triu"](LU[..., :k, :])


def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """``P, L, U``: a permutation of rows and triangular factors, whose product the matrix is."""
    if not pivot:
        raise NotImplementedError("linalg.lu: LU without pivoting is not implemented on the CPU")
    LU, _, order = _factors(A)
    P, L, U = _unpacked(LU, order)
    return _lu(P, labelled(L, "LinalgLuBackward0"), labelled(U, "LinalgLuBackward0"))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Any:
    """The ``X`` of ``A @ X == B`` (or ``X @ A == B``), by the factors of ``A`` (or of its adjoint)."""
    P, L, U = _unpacked(LU, _rows(pivots.value, LU.value.shape[-2]))
    _check_right("linalg.lu_solve", LU, B.value.shape, left)
    right = B if left else B.mH
    if adjoint == left:
        found = matmul(P, _by_triangle(L.mH, _by_triangle(U.mH, right, False), True))
    else:
        found = _by_triangle(U, _by_triangle(L, matmul(P.mT, right), False), True)
    return labelled(found if left else found.mH, "LinalgLuSolveBackward0")


def _lu_unpack_of(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """``P, L, U`` of what ``lu_factor`` gives."""
    P, L, U = _unpacked(LU_data, _rows(LU_pivots.value, LU_data.value.shape[-2]))
    none = wrap(np.zeros(0, LU_data.value.dtype))
    parts = [labelled(x, "LuUnpackBackward0") for x in (L, U)] if unpack_data else [none, none]
    return _lu_unpack(P if unpack_pivots else none, *parts)


def _old_lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """``lu_factor_ex``, by its old name."""
    warnings.warn(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future "
        "PyTorch release.",
        stacklevel=2,
    )
    return tuple(lu_factor_ex(A, pivot=pivot)[: 2 + get_infos])


def _old_lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Any:
    """``lu_solve``, by its old name."""
    warnings.warn(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.",
        stacklevel=2,
    )
    return lu_solve(LU_data, LU_pivots, b)


FUNCTIONS.update(lu=_old_lu, lu_solve=_old_lu_solve, lu_unpack=_lu_unpack_of)
methods(lu=_old_lu, lu_solve=_old_lu_solve)


def _with_info(name: str, fun: Any, fields: str) -> Any:
    """``fun``, which raises where a matrix cannot be taken apart, together with zeros that say that all could be."""
    kind = named(f"linalg_{name}", fields)

    @called(name, f"``{fun.__name__}``, and zeros: what cannot be taken apart is an error here.")
    def made(A: Tensor, *args: Any, check_errors: bool = False, **options: Any) -> Any:
        found = fun(A, *args, **options)
        info = wrap(np.zeros(A.value.shape[:-2], np.int32))
        return kind(*(found if isinstance(found, tuple) else (found,)), info)

    return made


def matrix_exp(A: Tensor) -> Any:
    """The sum of ``A ** n / n!``, by scaling and squaring."""
    _check_square("matrix_exp", A)
    return apply(MATRIX_EXP, (A,))


def _matrix_exp(a: Any) -> Any:
    """A Taylor polynomial of ``a / 2**n``, small enough for that, squared ``n`` times."""
    norm = np.abs(a).sum(-2).max(initial=0)
    n = 0
    while 2.0**n < norm < np.inf:
        n += 1
    x = a / 2.0**n
    one = np.eye(a.shape[-1], dtype=a.dtype)
    y = np.broadcast_to(one, a.shape)
    for k in range(20, 0, -1):
        y = one + x @ y / k
    for _ in range(n):
        y = y @ y
    return y


def _matrix_exp_rule(g: Any, y: Any, a: Any) -> Any:
    """The corner of the exponential of a matrix twice as large (Higham, "Functions of Matrices", 2008, eq. 3.16).

    It is linear in ``g``, which is made about as large as ``a``: beside a far larger one, ``a`` would be lost.
    """
    n, size = np.shape(a)[-1], STOP(_largest(plain(g))) / STOP(_largest(plain(a)))
    turned = transpose(a)
    below = np.concatenate((np.zeros_like(turned), turned), -1)
    whole = MATRIX_EXP(np.concatenate((np.concatenate((turned, g / size), -1), below), -2))
    return whole[..., :n, n:] * size


def _largest(a: Any) -> Any:
    """The size of the largest element of matrices; 1 where all are zero."""
    size = np.max(np.abs(a), axis=(-2, -1), keepdims=True, initial=0)
    return np.where(size > 0, size, np.ones_like(size))


MATRIX_EXP: Fused = Fused(_matrix_exp, _matrix_exp_rule, name="linalg_matrix_exp")


def logdet(A: Tensor) -> Any:
    """The logarithm of the determinant."""
    sign, value = slogdet(A)
    return value + sign.log() if A.is_complex() else where(wrap(sign.value == -1), math.nan, value)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Any:
    """``pinv``."""
    return pinv(input, rcond)


def _squared(L: Tensor, upper: bool) -> Any:
    """The matrix whose Cholesky factor this is. The other triangle does not count, but gets a gradient, as in torch."""
    triangle = (FUNCTIONS["triu"] if upper else FUNCTIONS["tril"])(L.detach())
    factor = L + (triangle - L.detach())
    return factor.mH @ factor if upper else factor @ factor.mH


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Any:
    """The ``X`` of ``A @ X == B``, from the Cholesky factor of ``A``."""
    for name, x in (("b", B), ("u", L)):
        if x.value.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {x.value.ndim} dimensions instead")
    if B.value.shape[-2] != L.value.shape[-2]:
        sizes = [" by ".join(map(str, x.value.shape[-2:])) for x in (L, B)]
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {sizes[0]} but each b matrix is {sizes[1]}"
        )
    return labelled(np.linalg.solve(_squared(L, upper), B), "CholeskySolveBackward0")


def cholesky_inverse(L: Tensor, upper: bool = False) -> Any:
    """The inverse of ``A``, from its Cholesky factor."""
    return labelled(inv(_squared(L, upper)), "CholeskyInverseBackward0")


def thin_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """``torch.svd``: ``U, S, V``, of which the last one is not transposed."""
    if not compute_uv:
        m, n = input.value.shape[-2:]
        empty = [wrap(np.zeros((*input.value.shape[:-2], k, k), input.value.dtype)) for k in (m, n)]
        return _thin_svd(empty[0], svdvals(input), empty[1])
    U, S, Vh = svd(input, full_matrices=not some)
    return _thin_svd(U, S, Vh.mH)


_thin_svd = named("svd", "U S V")


def plain_qr(input: Tensor, some: bool = True) -> Any:
    """``torch.qr``."""
    return _plain_qr(*qr(input, "reduced" if some else "complete"))


_plain_qr = named("qr", "Q R")
inv_ex = _with_info("inv_ex", inv, "inverse info")
cholesky_ex = _with_info("cholesky_ex", cholesky, "L info")
solve_ex = _with_info("solve_ex", solve, "result info")


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    """Inner products along a dimension; the elements of ``x`` are conjugated."""
    if x.value.dtype != y.value.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {title(x.value.dtype)} and y of type "
            f"{title(y.value.dtype)} instead"
        )
    if x.value.ndim == y.value.ndim == 1:
        return labelled(dot(x.conj() if x.is_complex() else x, y), "VdotBackward0")
    return ((x.conj() if x.is_complex() else x) * y).sum(dim)


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """An orthogonal matrix times a triangular one."""
    _check_floats("qr", A)
    if mode == "r":
        return _qr(wrap(np.zeros(0, A.value.dtype)), apply(QR_WITHOUT_Q, (A,), {"mode": "r"}))
    m, n = A.value.shape[-2:]
    op = COMPLETE_QR if mode == "complete" and m > n else known(np.linalg.qr)
    return _qr(*apply(op, (A,), {"mode": mode}))


def _refusing(op: Any, text: str) -> Any:
    """The operation, through which no gradient goes, and why."""

    def rule(g: Any, y: Any, *args: Any, **params: Any) -> Any:
        raise RuntimeError(text)

    return variant(op, rules=(rule,))


QR_WITHOUT_Q = _refusing(
    known(np.linalg.qr),
    "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if "
    "you are going to differentiate through linalg.qr.",
)
COMPLETE_QR = _refusing(
    known(np.linalg.qr), "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
)


def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """The singular value decomposition ``U, S, Vh``."""
    _check_floats("svd", A)
    return _svd(*np.linalg.svd(A, full_matrices=full_matrices))


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """A norm of vectors, or of matrices where ``dim`` has two of them or ``ord`` is one of matrices."""
    ndim = A.value.ndim
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dims is None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if not isinstance(ord, str) and (ndim if dims is None else len(dims)) == 1:
        return vector_norm(A, ord, dims, keepdim, dtype=dtype)
    return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Any:
    """A norm of matrices."""
    ndim = A.value.ndim
    if ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if isinstance(dim, int) or len(dim) != 2:
        given = dim if isinstance(dim, int) else " ".join(map(str, dim))
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {given}")
    _check_floats("matrix_norm", A)
    axes = [axis_of(i, ndim) for i in dim]
    if axes[0] == axes[1]:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord not in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    A = widened("linalg.matrix_norm", A, dtype)
    if ord == "fro":
        return vector_norm(A, 2, dim, keepdim)
    if ord in (1, -1, np.inf, -np.inf):
        inner, outer = axes if abs(ord) == 1 else axes[::-1]
        sums = vector_norm(A, 1, inner, keepdim)
        place = outer - (inner < outer and not keepdim)
        if ord > 0 and not A.value.shape[outer]:
            return sums.sum(place, keepdim)  # of nothing: 0
        return (amax if ord > 0 else amin)(sums, place, keepdim)
    label = "SumBackward1" if ord == "nuc" else "AmaxBackward0" if ord == 2 else "AminBackward0"
    label = "PermuteBackward0" if keepdim else label
    found = _of_strengths(svdvals(movedim(A, tuple(dim), (-2, -1))), ord)
    return labelled(reshape(found, [1 if i in axes else n for i, n in enumerate(A.value.shape)]) if keepdim else found, label)


def _of_strengths(strengths: Any, ord: Any) -> Any:
    """A norm of matrices with these singular values."""
    if ord == "nuc" or (ord == 2 and not strengths.value.shape[-1]):
        return strengths.sum(-1)
    return (amax if ord > 0 else amin)(strengths, -1)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """Cross products."""
    return products.cross(input, other, dim)


for _name, _fun in {
    "det": det, "inverse": inv, "slogdet": slogdet, "logdet": logdet, "pinverse": pinverse, "matrix_exp": matrix_exp,
    "cholesky_solve": cholesky_solve, "cholesky_inverse": cholesky_inverse, "svd": thin_svd, "qr": plain_qr,
    "cholesky": lambda input, upper=False: labelled(cholesky(input, upper=upper), "CholeskyBackward0"),
    "matrix_power": matrix_power,
}.items():  # fmt: skip
    FUNCTIONS[_name] = _fun
    setattr(Tensor, _name, _fun)
