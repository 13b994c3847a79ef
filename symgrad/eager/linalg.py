"""``torch.linalg``, as far as NumPy's counterparts exist."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.eager.core import NONE, Tensor, apply, known, labelled, variant
from symgrad.eager.pointwise import FUNCTIONS
from symgrad.eager.reductions import amax, amin, named, vector_norm
from symgrad.eager.shapes import clone, matmul, mm, movedim, reshape, unsqueeze
from symgrad.ops.contract import conj, transpose
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.linalg import EIG, hermitian

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "svd",
    "svdvals", "tensorinv", "tensorsolve", "vecdot", "vector_norm",
]  # fmt: skip


class _LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """Torch's error, and NumPy's, for a matrix that cannot be factorised."""


LinAlgError = _LinAlgError
_SQUARE = "inv det slogdet cholesky eigh eigvalsh".split()
_REASONS = {
    "inv": "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-definite (the leading minor of "
    "order {} is not positive-definite).",
}


def _check_square(name: str, A: Tensor) -> None:
    shape = A.value.shape
    if len(shape) < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if shape[-1] != shape[-2]:
        both = f"{shape[-2]} by {shape[-1]}"
        raise RuntimeError(f"linalg.{name}: A must be batches of square matrices, but they are {both} matrices")


def _failed(name: str, stack: Any) -> Exception | None:
    """Torch's words for the first matrix of a stack that cannot be inverted or factorised."""
    tried: Any = getattr(np.linalg, name)
    for i, matrix in enumerate(stack.reshape(-1, *stack.shape[-2:]) if name in _REASONS else ()):
        for n in range(1, len(matrix) + 1):
            part = matrix[:n, :n] if name == "cholesky" else matrix[:, :n].T @ matrix[:, :n]
            try:
                tried(part)
            except np.linalg.LinAlgError:
                batch = f"(Batch element {i}): " if stack.ndim > 2 else ""
                return _LinAlgError(f"linalg.{name}: {batch}{_REASONS[name].format(n)}")
    return None


@functools.lru_cache(maxsize=16)
def _lower(n: int, kind: Any) -> tuple[Any, Any]:
    """A mask of the lower triangle; a quarter on the diagonal, and a half beside it."""
    return np.tri(n, dtype=bool), np.asarray(0.5 - 0.25 * np.eye(n), kind)


def _cholesky_rule(g: Any, y: Any, a: Any, *, upper: bool = False) -> Any:
    if g.__class__ is not np.ndarray:
        return FACTOR.rules[0](g, y, a, upper=upper)  # type: ignore[misc]
    if upper:
        g, y = hermitian(g), hermitian(y)
    mask, weights = _lower(y.shape[-1], y.dtype)
    inner = np.where(mask, transpose(y) @ g, 0)
    inner = (inner + hermitian(inner)) * weights
    if y.dtype.kind == "c":
        inner = 0.5 * (inner + hermitian(inner))
    y = np.linalg.inv(y)
    return transpose(y) @ inner @ conj(y)


FACTOR = known(np.linalg.cholesky)
CHOLESKY = variant(FACTOR, rules=(_cholesky_rule,))  # the same rule, with masks that are kept


def _same(name: str, label: str | None = None, fields: str = "") -> Any:
    """NumPy's function of the name; with torch's name of the operation, and of its results."""
    numpys: Any = getattr(np.linalg, name)
    op = CHOLESKY if name == "cholesky" else REGISTRY[numpys]
    kind = named(f"linalg_{name}", fields) if fields else None

    def fun(A: Tensor, *args: Any, **kwargs: Any) -> Any:
        if name in _SQUARE:
            _check_square(name, A)
        try:
            found = apply(op, *op.bind((A, *args), kwargs)) if isinstance(op, Op) else numpys(A, *args, **kwargs)
        except np.linalg.LinAlgError as error:
            raise _failed(name, A.value) or _LinAlgError(f"linalg.{name}: {error}") from None
        if kind is not None:
            return kind(*found)
        return found if label is None else labelled(found, label)

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"NumPy's ``linalg.{name}``."
    return fun


inv, det, cholesky, matrix_rank = map(_same, "inv det cholesky matrix_rank".split())
pinv, cond = _same("pinv", "LinalgPinvBackward0"), _same("cond", "SqueezeBackward1")
eigvalsh, svdvals = _same("eigvalsh", "LinalgEighBackward0"), _same("svdvals", "LinalgSvdBackward0")
slogdet, eigh = _same("slogdet", fields="sign logabsdet"), _same("eigh", fields="eigenvalues eigenvectors")
lstsq = _same("lstsq", fields="solution residuals rank singular_values")
_eig = named("linalg_eig", "eigenvalues eigenvectors")
_qr, _svd = named("linalg_qr", "Q R"), named("linalg_svd", "U S Vh")


def matrix_power(A: Tensor, n: int) -> Any:
    """A matrix times itself, ``n`` times in all; its inverse where ``n`` is negative."""
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
    rows, columns = first.value.shape[:-1], last.value.shape[1:]
    row, column = (first if rows else unsqueeze(first, 0)), (last if last.value.ndim == 2 else unsqueeze(last, 1))
    matrices = [row, *inner, column]
    return reshape(_chain(matrices, 0, len(matrices), _splits([x.value.shape for x in matrices])), (*rows, *columns))


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
    """The ``X`` of ``A @ X == B``."""
    _check_square("solve", A)
    try:
        return np.linalg.solve(A, B)
    except np.linalg.LinAlgError:
        raise _LinAlgError("torch.linalg.solve: The solver failed because the input matrix is singular.") from None


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
    square = reshape(A, (math.prod(shape[:ind]), -1))
    return labelled(reshape(inv(square), (*shape[ind:], *shape[:ind])), "ReshapeAliasBackward0")


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Any:
    """The ``X`` of ``tensordot(A, X, X.ndim) == B``."""
    moved = A if dims is None else movedim(A, dims, tuple(range(A.value.ndim - len(dims), A.value.ndim)))
    shape = moved.value.shape[B.value.ndim :]
    return reshape(solve(reshape(moved, (B.value.size, -1)), reshape(B, (-1,))), shape)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices."""
    return FUNCTIONS["diagonal"](A, offset, dim1, dim2)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    """Inner products along a dimension; the elements of ``x`` are conjugated."""
    return ((x.conj() if x.is_complex() else x) * y).sum(dim)


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """An orthogonal matrix times a triangular one."""
    return _qr(*np.linalg.qr(A, mode=mode))  # type: ignore[call-overload]


def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """The singular value decomposition ``U, S, Vh``."""
    return _svd(*np.linalg.svd(A, full_matrices=full_matrices))


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """A norm of vectors, or of matrices where ``dim`` has two of them or ``ord`` is one of matrices."""
    if ord is None:
        return vector_norm(A, 2, dim, keepdim)
    if (dim is None and A.value.ndim == 1) or isinstance(dim, int):
        return vector_norm(A, ord, dim, keepdim)
    return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """A norm of matrices."""
    if ord == "fro":
        return vector_norm(A, 2, dim, keepdim)
    if ord in (1, -1, np.inf, -np.inf):
        inner, outer = (i % A.value.ndim for i in (dim if abs(ord) == 1 else dim[::-1]))
        sums = vector_norm(A, 1, inner, keepdim)
        return (amax if ord > 0 else amin)(sums, outer - (inner < outer and not keepdim), keepdim)
    label = "SumBackward1" if ord == "nuc" else "AmaxBackward0" if ord == 2 else "AminBackward0"
    return labelled(np.linalg.norm(A, ord, dim, keepdim), label)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """Cross products."""
    return labelled(np.cross(input, other, axis=dim), "LinalgCrossBackward0")
