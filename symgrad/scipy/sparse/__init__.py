"""``scipy.sparse``: products and solutions with sparse arrays, differentiable by the other factor and by what the array holds.

A product needs no mirror: where the function's source is at hand, ``a @ x`` and ``a.dot(x)`` of a sparse array ``a`` and a
traced ``x`` are done here. Solutions do, and arrays that are made of traced elements::

    from symgrad.scipy.sparse import csr_array               # instead of scipy.sparse
    from symgrad.scipy.sparse.linalg import spsolve          # instead of scipy.sparse.linalg

An array is its ``data``, ``indices`` and ``indptr``, by rows (``"csr"``) or by columns (``"csc"``); in the other of the two
formats the same three make its transpose.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from symgrad.ir import Node
from symgrad.ops.core import A, Op, Sample, Traced
from symgrad.ops.index import array_of
from symgrad.scipy.plain import rest_of
from symgrad.transform.batch import Batch, rule

OTHER = {"csr": "csc", "csc": "csr"}
_INDICES, _INDPTR = np.array([0, 2, 1, 0, 1, 2]), np.array([0, 2, 3, 6])


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"{__name__}.linalg") if name == "linalg" else _rest(name)


_rest = rest_of(scipy.sparse)


class Sparse:
    """A sparse array of traced elements: a factor of ``@`` and ``dot``, and what ``spsolve`` takes."""

    __array_ufunc__ = None  # x @ a asks here

    def __init__(self, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], format: str) -> None:
        self.data, self.indices, self.indptr, self.shape, self.format = data, indices, indptr, shape, format

    @property
    def T(self) -> Sparse:
        """The transpose, of the same elements."""
        return Sparse(self.data, self.indices, self.indptr, self.shape[::-1], OTHER[self.format])

    def __matmul__(self, x: Any) -> Any:
        x = array_of(x)
        if np.ndim(x) not in (1, 2) or np.shape(x)[0] != self.shape[1]:
            raise ValueError(f"matmul: a sparse array of shape {self.shape} does not fit an array of shape {np.shape(x)}")
        return TIMES(self.data, self.indices, self.indptr, x, shape=self.shape, format=self.format)

    def __rmatmul__(self, x: Any) -> Any:
        return (self.T @ array_of(x).T).T

    dot = __matmul__

    def toarray(self) -> Any:
        """The array with its zeros."""
        return self @ np.eye(self.shape[1], dtype=self.data.dtype)


def _maker(format: str) -> Callable[..., Any]:
    plain = getattr(scipy.sparse, f"{format}_array")

    def make(arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **rest: Any) -> Any:
        if not isinstance(arg, tuple) or not isinstance(arg[0], Traced):
            return plain(arg, shape, dtype, copy, **rest)
        data: Any = arg[0]
        if len(arg) == 3:
            _, indices, indptr = arg
            if shape is None:
                raise ValueError(f"{format}_array of traced elements needs its shape")
        else:
            places = [array_of(place) for place in arg[1]]
            if shape is None:
                shape = tuple(int(np.max(place)) + 1 for place in places)
            _require_inside(data, places, shape)
            outer, indices = places if format == "csr" else places[::-1]
            order = np.argsort(outer, kind="stable")
            indptr = np.searchsorted(outer[order], np.arange(shape[format == "csc"] + 1))
            data, indices = data[order], indices[order]
        return Sparse(data if dtype is None else data.astype(dtype), indices, indptr, tuple(shape), format)

    make.__name__ = make.__qualname__ = plain.__name__
    make.__doc__ = f"""SciPy's ``{format}_array``, of traced elements too: of ``(data, indices, indptr)``, or of
    ``(data, (rows, columns))``, where elements of the same place add up, with ``shape``, a pair of integers.
    """
    return make


csr_array, csc_array = _maker("csr"), _maker("csc")


def _require_inside(data: Any, places: list[Any], shape: tuple[int, ...]) -> None:
    """Raise for places beyond the array, whose products would read and write there, or for elements without a place."""
    if any([np.shape(place) != np.shape(data) for place in places]):
        raise ValueError("all index and data arrays must have the same length")
    for axis, (place, n) in enumerate(zip(places, shape, strict=True)):
        if np.any((place < 0) | (place >= n)):
            raise ValueError(f"an index along axis {axis} is negative, or exceeds the dimension {n}")


def _made(data: Any, indices: Any, indptr: Any, shape: tuple[int, int], format: str) -> Any:
    kind = scipy.sparse.csr_array if format == "csr" else scipy.sparse.csc_array
    return kind((data, indices, indptr), shape=shape)


def _times(data: Any, indices: Any, indptr: Any, x: Any, *, shape: tuple[int, int], format: str) -> Any:
    return _made(data, indices, indptr, shape, format) @ x


def _solve(data: Any, indices: Any, indptr: Any, b: Any, *, shape: tuple[int, int], format: str) -> Any:
    return scipy.sparse.linalg.spsolve(_made(data, indices, indptr, shape, format).copy(), b)  # which it sorts in place


def _back(op: Callable[..., Any]) -> Callable[..., Any]:
    """What the transpose does to a cotangent."""
    return lambda g, y, data, indices, indptr, x, *, shape, format: op(
        data, indices, indptr, g, shape=shape[::-1], format=OTHER[format]
    )


def _outer(g: Any, x: Any, indices: Any, indptr: Any, format: str) -> Any:
    """``g[i] * x[j]`` for each element ``i, j`` that the array holds, summed over columns."""
    outer = np.searchsorted(indptr, np.arange(np.shape(indices)[0]), side="right") - 1
    rows, columns = (outer, indices) if format == "csr" else (indices, outer)
    found = np.take(g, rows, axis=0) * np.take(x, columns, axis=0)
    return found if np.ndim(found) == 1 else np.sum(found, axis=1)


TIMES: Op = Op(
    _times,
    "multilinear",
    (
        lambda g, y, data, indices, indptr, x, *, shape, format: _outer(g, x, indices, indptr, format),
        None,
        None,
        lambda *args, **params: _back(TIMES)(*args, **params),
    ),
    name="sparse_times",
    samples=[
        Sample(A(6), _INDICES, _INDPTR, A(3), shape=(3, 3), format="csr"),
        Sample(A(6), _INDICES, _INDPTR, A(4, 2), shape=(3, 4), format="csr"),
        Sample(A(6), _INDICES, _INDPTR, A(3), shape=(5, 3), format="csc"),
        Sample(A(0), np.zeros(0, int), np.zeros(3, int), A(4), shape=(2, 4), format="csr"),
    ],
)
SOLVE: Op = Op(
    _solve,
    "op",
    (
        lambda g, y, data, indices, indptr, b, *, shape, format: (
            -_outer(_back(SOLVE)(g, y, data, indices, indptr, b, shape=shape, format=format), y, indices, indptr, format)
        ),
        None,
        None,
        lambda *args, **params: _back(SOLVE)(*args, **params),
    ),
    name="spsolve",
    samples=[
        Sample(A(6, lo=1.0, hi=2.0), _INDICES, _INDPTR, A(3), shape=(3, 3), format="csr"),
        Sample(A(6, lo=1.0, hi=2.0), _INDICES, _INDPTR, A(3, 2), shape=(3, 3), format="csc"),
    ],
)


@rule(TIMES)
@rule(SOLVE)
def batched(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """Many right-hand sides of one array are columns of one; many arrays of one pattern are the blocks of one."""
    data, indices, indptr, x = args
    op, (rows, columns), format = node.op, *(dict(node.params)[name] for name in ("shape", "format"))
    if flags[1] or flags[2]:
        return None
    if not flags[0]:
        n = np.shape(x)[1]
        wide = np.reshape(np.moveaxis(x, 1, 0), (n, b.size * math.prod(np.shape(x)[2:])))
        found = op(data, indices, indptr, wide, shape=(rows, columns), format=format)
        return np.moveaxis(np.reshape(found, (np.shape(found)[0], b.size, *node.aval.shape[1:])), 1, 0)
    x = x if flags[3] else np.broadcast_to(x, (b.size, *np.shape(x)))
    blocks = np.reshape(np.arange(b.size), (-1, 1))
    inner = indices + blocks * (columns if format == "csr" else rows)
    ends = indptr[1:] + blocks * np.shape(indices)[0]
    whole = np.ravel(data), np.ravel(inner), np.concatenate((indptr[:1], np.ravel(ends)))
    tall = np.reshape(x, (b.size * np.shape(x)[1], *np.shape(x)[2:]))
    found = op(*whole, tall, shape=(b.size * rows, b.size * columns), format=format)
    return np.reshape(found, (b.size, *node.aval.shape))


def _seen(a: Any) -> Sparse:
    """A sparse array by what stands for it."""
    if len(a.shape) != 2:
        raise ValueError(f"the sparse array has shape {a.shape}; two dimensions are expected")
    a = a if a.format in OTHER else a.tocsr()
    return Sparse(a.data, a.indices, a.indptr, a.shape, a.format)


def product(left: Any, right: Any) -> Any:
    """``left @ right``, one of them a sparse array and the other traced."""
    return _seen(left) @ right if hasattr(left, "format") else left @ _seen(right)


def spsolve(a: Any, b: Any) -> Any:
    """The ``x`` of ``a @ x == b`` for a sparse array ``a``; ``b`` has one dimension, or two.

    >>> import numpy as np, scipy.sparse, symgrad
    >>> a = scipy.sparse.csc_array([[2.0, 0.0], [1.0, 4.0]])
    >>> symgrad.grad(lambda b: np.sum(spsolve(a, b)))(np.ones(2))
    array([0.375, 0.25 ])
    """
    a = _seen(a)
    b = array_of(b)
    b = b[:, 0] if np.ndim(b) == 2 and np.shape(b)[1] == 1 else b  # a column is a vector to SciPy
    return SOLVE(a.data, a.indices, a.indptr, b, shape=a.shape, format=a.format)
