"""What generated code may call besides NumPy: the few operations for which NumPy has no expression.

Each function is pure: it returns a new array and leaves its arguments alone.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

Array = Any


def setitem(base: Array, value: Array, index: Any) -> Array:
    """A copy of ``base`` with ``base[index] = value``."""
    out = np.array(base)
    out[index] = value
    return out


def scatter(value: Array, index: Any, shape: tuple[int, ...]) -> Array:
    """Zeros of ``shape`` with ``value`` added at ``index``: the transpose of ``x[index]``.

    >>> scatter(np.array([1.0, 2.0]), slice(1, 3), (4,))
    array([0., 1., 2., 0.])
    """
    out = np.zeros(shape, value.dtype if hasattr(value, "dtype") else np.result_type(value))
    if repeats(index):
        np.add.at(out, index, value)
    else:
        out[index] = value
    return out


def index_add(base: Array, value: Array, index: Any) -> Array:
    """A copy of ``base`` with ``value`` added at ``index``; repeated indices add up.

    >>> index_add(np.zeros(3), 1.0, [0, 0, 2])
    array([2., 0., 1.])
    """
    out = np.array(base)
    add_at(out, index, value)
    return out


def add_at(out: Array, index: Any, value: Array) -> None:
    """``np.add.at``, by plain indexing where no index can repeat."""
    if repeats(index):
        np.add.at(out, index, value)
    else:
        out[index] += value


def repeats(index: Any) -> bool:
    """Whether an index can name an element twice: it holds an integer array or list."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, list) or (isinstance(part, np.ndarray) and part.dtype != bool):
            return True
    return False


def inner(a: Array, b: Array) -> Array:
    """``np.sum(a * b)`` of vectors, without the products in memory, and as precise: in rows that are summed in pairs.

    >>> float(inner(np.arange(300.0), np.ones(300)))
    44850.0
    """
    whole = len(a) - len(a) % 256
    total = np.add.reduce(np.vecdot(a[:whole].reshape(-1, 256), b[:whole].reshape(-1, 256)))
    return total + np.vecdot(a[whole:], b[whole:]) if whole < len(a) else total


def select(mask: Array, a: Array, b: Array, out: Array | None = None) -> Array:
    """``np.where(mask, a, b)`` of floats by their bits: ``where`` branches at each number, which processors guess wrong.

    >>> select(np.array([True, False]), np.array([1.0, np.nan]), 0.0)
    array([1., 0.])
    """
    dtype = np.result_type(a, b)
    bits = np.dtype(f"i{dtype.itemsize}")
    if out is None:
        out = np.empty_like(mask, dtype)
    a, b, result = np.asarray(a, dtype).view(bits), np.asarray(b, dtype).view(bits), out.view(bits)
    chosen = np.negative(mask.view(np.int8))  # all ones, or none
    if not a.ndim:
        a, b, chosen = b, a, np.invert(chosen)
    if not b.ndim and not b:
        np.bitwise_and(a, chosen, result)
        return out
    if np.may_share_memory(b, result):
        b = b.copy()
    np.bitwise_xor(a, b, result)
    np.bitwise_and(result, chosen, result)
    np.bitwise_xor(result, b, result)
    return out


def last_write(base: Array, index: Any) -> Array:
    """Which elements of ``value`` survive ``base[index] = value``: False where a later one overwrote it."""
    last = np.zeros(np.shape(base), dtype=int)
    order = np.arange(last[index].size).reshape(last[index].shape)
    last[index] = order
    return last[index] == order


def center(x: Array, axis: tuple[int, ...]) -> Array:
    """A point amid ``x`` along some axes: their mean, 0 where that is not finite.

    >>> center(np.array([[1.0, 2.0], [3.0, np.inf]]), (0,))
    array([2., 0.])
    """
    mean = np.add.reduce(x, axis)
    mean = mean / (x.size // mean.size)
    return np.where(np.isfinite(mean), mean, 0)


def inverse(matrix: Array, factor: Array) -> Array:
    """The inverse of a positive definite matrix, whose lower Cholesky factor is known; LAPACK's own where SciPy is there.

    >>> inverse(np.array([[4.0, 2.0], [2.0, 2.0]]), np.array([[2.0, 0.0], [1.0, 1.0]]))
    array([[ 0.5, -0.5],
           [-0.5,  1. ]])
    """
    potri = _potri(factor.dtype.char)
    if potri is None:
        return np.linalg.inv(matrix)
    upper, _ = potri(factor.T)  # as LAPACK has it, in Fortran order
    result = upper.T.copy()
    np.copyto(result, upper, where=~np.tri(len(upper), dtype=bool))
    return result


@functools.cache
def _potri(char: str) -> Any:
    try:
        lapack = importlib.import_module("scipy.linalg.lapack")
    except ImportError:
        return None
    return {"d": lapack.dpotri, "f": lapack.spotri}.get(char)


def compose(real: Array, imag: Array) -> Array:
    """``real + 1j * imag``, right for infinities, too.

    >>> compose(np.array([1.0, np.inf]), np.array([0.0, 2.0]))
    array([ 1.+0.j, inf+2.j])
    """
    out = np.empty(np.shape(real), np.result_type(real, imag, 1j))
    out.real, out.imag = real, imag
    return out
