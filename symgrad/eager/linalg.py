"""``torch.linalg``, as far as NumPy's counterparts exist."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.eager.core import Tensor, labelled
from symgrad.eager.reductions import amax, amin, named, vector_norm

__all__ = [
    "cholesky", "cond", "cross", "det", "eigh", "eigvalsh", "inv", "lstsq", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "vector_norm",
]  # fmt: skip


def _same(name: str, label: str | None = None, fields: str = "") -> Any:
    """NumPy's function of the name; with torch's name of the operation, and of its results."""
    numpys = getattr(np.linalg, name)
    kind = named(f"linalg_{name}", fields) if fields else None

    def fun(A: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = numpys(A, *args, **kwargs)
        if kind is not None:
            return kind(*found)
        return found if label is None else labelled(found, label)

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"NumPy's ``linalg.{name}``."
    return fun


inv, det, cholesky, matrix_rank = map(_same, "inv det cholesky matrix_rank".split())
pinv, cond = _same("pinv", "LinalgPinvBackward0"), _same("cond", "SqueezeBackward1")
matrix_power, multi_dot = _same("matrix_power", "MmBackward0"), _same("multi_dot", "ViewBackward0")
eigvalsh, svdvals = _same("eigvalsh", "LinalgEighBackward0"), _same("svdvals", "LinalgSvdBackward0")
slogdet, eigh = _same("slogdet", fields="sign logabsdet"), _same("eigh", fields="eigenvalues eigenvectors")
lstsq = _same("lstsq", fields="solution residuals rank singular_values")
_qr, _svd = named("linalg_qr", "Q R"), named("linalg_svd", "U S Vh")


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Any:
    """The ``X`` of ``A @ X == B``."""
    return np.linalg.solve(A, B)


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
