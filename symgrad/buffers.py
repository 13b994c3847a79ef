"""Memory for big arrays, used again once nobody holds it: fresh memory costs more than the arithmetic that fills it.

An array that ``empty`` returns is a plain ``ndarray`` whose ``base`` is a lease on a block of bytes. Whatever can reach the
memory (the array, views of it, buffers exported from it) keeps the lease alive; when the last of them goes, so does the lease,
and the block is free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

Block = tuple[Array, tuple[int, bool]]  # bytes, and where they are

LIMIT = 256 * 2**20
_PAGE = 4096
_LINE = 64  # bytes of a cache line: where arrays begin with one, what is written into them comes up to twice as fast


class Pool:
    """Free blocks of bytes. When they would be more than ``limit`` bytes, all but the last one are given up.

    With ``limit = 0`` each array has memory of its own. Any thread may take memory and give it back.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.free: dict[int, list[Block]] = {}

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array as ``np.empty`` gives it, except that it does not own its memory (``ndarray.resize`` refuses it)."""
        size = -(-math.prod(shape) * dtype.itemsize // _PAGE) * _PAGE
        if not 0 < size <= self.limit:
            return np.empty(shape, dtype)
        try:
            block = self.free[size].pop()
        except (KeyError, IndexError):  # there is none of this size
            memory = np.empty(size + _LINE, np.uint8)
            place = memory.__array_interface__["data"][0]
            block = memory, (place + -place % _LINE, False)
        return np.asarray(_Lease(self, block, shape, dtype))

    def put(self, block: Block) -> None:
        """Take a block back."""
        size = block[0].size - _LINE
        if size + sum([size * len(blocks) for size, blocks in list(self.free.items())]) > self.limit:
            self.free = {}
        self.free.setdefault(size, []).append(block)


class _Lease:
    """The right to use a block, as an array of a shape and dtype. The block goes back when nobody has it any more."""

    __slots__ = ("__array_interface__", "block", "pool")

    def __init__(self, pool: Pool, block: Block, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.pool, self.block = pool, block
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(shape),
            "typestr": dtype.str,
            "data": block[1],
        }

    def __del__(self) -> None:
        self.pool.put(self.block)


POOL = Pool()
empty = POOL.empty
