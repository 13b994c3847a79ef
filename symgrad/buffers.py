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

Block = tuple[int, "_Memory", int]  # how many bytes, of which memory, and where they begin in it

LIMIT = 256 * 2**20
_PAGE = 4096
_LINE = 64  # bytes of a cache line: what is written into arrays that begin with one comes up to three times as fast
_BYTE = np.dtype(np.uint8)


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
            memory = _Memory(size + _LINE, _BYTE)
            block = size, memory, -memory.ctypes.data % _LINE
        lease = _Lease(size, _BYTE, block[1], block[2])
        lease.pool, lease.block = self, block
        return np.ndarray(shape, dtype, lease)

    def put(self, block: Block) -> None:
        """Take a block back."""
        size = block[0]
        if size + sum([size * len(blocks) for size, blocks in list(self.free.items())]) > self.limit:
            self.free = {}
        self.free.setdefault(size, []).append(block)


class _Memory(np.ndarray[Any, Any]):
    """Bytes of another class than those of any view of them, so that NumPy keeps what is between as the base of views."""


class _Lease(np.ndarray[Any, Any]):
    """The right to use a block, as an array of its bytes. The block goes back when nobody has it any more."""

    pool: Pool
    block: Block | None = None  # in views of it

    def __del__(self) -> None:
        if self.block is not None:
            self.pool.put(self.block)


POOL = Pool()
empty = POOL.empty
