"""Memory for big arrays, used again once nobody holds it: fresh memory costs more than the arithmetic that fills it.

An array that ``empty`` returns is a plain ``ndarray`` over a block of bytes, its ``base``. The pool keeps a reference to
the block, and so does everything that can reach the memory: the array, views of it, buffers exported from it. When the
pool's reference is the only one left, the block is free.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LIMIT = 256 * 2**20
_PAGE = 4096
_TRIES = 8  # blocks looked at for one array


class Pool:
    """Blocks of bytes, at most ``limit`` of them in all; when they would be more, the pool forgets them and starts anew.

    A block that is forgotten lives on as long as somebody holds it. With ``limit = 0`` each array has memory of its own.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit if _counts_references() else 0
        self._blocks: dict[int, deque[Array]] = {}
        self._total = 0
        self._lock = threading.Lock()

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array as ``np.empty`` gives it, except that it does not own its memory (``ndarray.resize`` refuses it)."""
        size = -(-math.prod(shape) * dtype.itemsize // _PAGE) * _PAGE
        blocks = self._blocks.get(size)
        if blocks is not None:
            for _ in range(min(len(blocks), _TRIES)):
                block = blocks[0]
                blocks.rotate(-1)
                if sys.getrefcount(block) == _FREE:  # another thread that looks at it now counts, too
                    return np.ndarray(shape, dtype, block)
        if not 0 < size <= self.limit:
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, self._new(size))

    def _new(self, size: int) -> Array:
        block = np.empty(size, np.uint8)
        with self._lock:
            self._total += size
            if self._total > self.limit:
                self._blocks, self._total = {}, size
            self._blocks.setdefault(size, deque()).append(block)
        return block


def _free_count() -> int:
    """What ``sys.getrefcount`` says in ``Pool.empty`` of a block that only the pool holds."""
    blocks = deque([np.empty(1, np.uint8)])
    block = blocks[0]
    return sys.getrefcount(block)


def _counts_references() -> bool:
    """Whether reference counts tell who holds an object: they do not in Python without its global lock."""
    return sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


_FREE = _free_count()
POOL = Pool()
empty = POOL.empty
