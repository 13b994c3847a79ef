"""``torch.linalg``, as far as NumPy's counterparts exist."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.eager.core import Tensor
from symgrad.eager.reductions import vector_norm

__all__ = [
    "cholesky", "cond", "cross", "det", "eigh", "eigvalsh", "inv", "lstsq", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "vector_norm",
]  # fmt: skip


def _same(name: str) -> Any:
    numpys = getattr(np.linalg, name)

    def fun(A: Tensor, *args: Any, **kwargs: Any) -> Any:
        return numpys(A, *args, **kwargs)

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"NumPy's ``linalg.{name}``."
    return fun


inv, det, slogdet, cholesky, pinv, matrix_power, multi_dot, matrix_rank = map(
    _same, "inv det slogdet cholesky pinv matrix_power multi_dot matrix_rank".split()
)
eigh, eigvalsh, svdvals, cond, lstsq = map(_same, "eigh eigvalsh svdvals cond lstsq".split())


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Any:
    """The ``X`` of ``A @ X == B``."""
    return np.linalg.solve(A, B)


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """An orthogonal matrix times a triangular one."""
    return np.linalg.qr(A, mode=mode)  # type: ignore[call-overload]


def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """The singular value decomposition ``U, S, Vh``."""
    return np.linalg.svd(A, full_matrices=full_matrices)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """A norm of vectors, or of matrices where ``dim`` has two of them or ``ord`` is one of matrices."""
    if ord is None:
        return vector_norm(A, 2, dim, keepdim)
    if (dim is None and A.value.ndim == 1) or isinstance(dim, int):
        return vector_norm(A, ord, dim, keepdim)
    return np.linalg.norm(A, ord, dim, keepdim)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """A norm of matrices."""
    return np.linalg.norm(A, ord, dim, keepdim)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """Cross products."""
    return np.cross(input, other, axis=dim)
