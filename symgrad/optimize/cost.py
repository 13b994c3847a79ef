"""What pays from which size on."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sizes:
    """Sizes that decide how code for big arrays is made.

    ``big``: elements of an array, from which on a loop over blocks pays: eight slabs or so.
    ``saved``: how many times less a loop over blocks goes through an array's memory, from which on it pays.
    ``slab``: bytes of the largest block of a loop. Its calls cost some 0.3 us each, however small the block, and its blocks
    should stay in the caches, some four of them in a core's own; from 64 KB to 512 KB all do nearly as well.
    ``shared``: operations on single numbers in a loop over blocks, from which on threads pay: they are there some 50 us late,
    and wait for the interpreter at each call. ``piece``: bytes of the largest block of such a loop, whose calls last longer.
    ``far``: bytes of a matrix, from which on its way from memory costs one thread more than products with thin matrices: what a
    core may well have of the last cache. (8 MB in blocks: 586 us where 412 do; 20 MB: 1440 and 1543; 40 MB: 3390 and 4930.)
    ``near``: bytes from which on the same holds where the last cache is slow, see ``is_far``: what a core may have of its own.
    (2 MB in blocks: as long as at once; 4 MB: 239 us where 300 do; 8 MB: 480 and 700.)
    ``pooled``: bytes of an array, from which on its memory comes from the pool; below, ``malloc`` is as good: of a few arrays
    of 220 KB it gives the memory back each time, and has it cleared again.
    """

    big: int = 131_072
    saved: int = 4
    slab: int = 131_072
    shared: int = 4_000_000
    piece: int = 524_288
    far: int = 12_582_912
    near: int = 3_145_728
    pooled: int = 212_992


SIZES = Sizes()


def is_far(size: int) -> bool:
    """Whether a matrix of so many bytes is better read once, in blocks, for all of its products with thin matrices."""
    return size >= SIZES.far or (size >= SIZES.near and _own_cache_is_faster())


@functools.cache
def _own_cache_is_faster() -> bool:
    """Whether two products of each block of a matrix are faster than one of all of it after the other, on this machine."""
    rows, columns, block = 10_000, 50, 1_250
    matrix, few, many = np.ones((rows, columns)), np.ones(columns), np.ones(rows)
    blocks = [matrix[lo : lo + block] for lo in range(0, rows, block)]
    whole, apart = [], []
    for _ in range(7):
        start = time.perf_counter()
        many.dot(matrix), matrix.dot(few)
        between = time.perf_counter()
        for some in blocks:
            some.dot(few).dot(some)
        whole.append(between - start)
        apart.append(time.perf_counter() - between)
    return min(apart) < 0.9 * min(whole)


SHORT = 64  # numbers in a row, up to which NumPy takes longer to get to the next row than for the row
DEAR = 8  # times as long as a sum takes a function such as exp
_CHEAP = {
    np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.square, np.sqrt, np.reciprocal,
    np.abs, np.fabs, np.sign, np.maximum, np.minimum, np.fmax, np.fmin, np.floor, np.ceil, np.rint, np.trunc,
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isnan, np.isfinite, np.isinf,
    np.logical_and, np.logical_or, np.logical_not, np.logical_xor, np.conjugate, np.copysign, np.heaviside,
}  # fmt: skip


def weight(function: Any) -> int:
    """How long a function takes for a number, in sums."""
    return DEAR if isinstance(function, np.ufunc) and function not in _CHEAP else 1
