"""What pays from which size on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes that decide how code for big arrays is made.

    ``big``: elements of an array, from which on a loop over blocks pays.
    ``cache``: bytes that all blocks of a loop take together, so that they stay in a core's own cache.
    ``slab``: bytes of one block at most.
    ``pooled``: bytes of an array, from which on its memory comes from the pool.
    """

    big: int = 32_768
    cache: int = 786_432
    slab: int = 131_072
    pooled: int = 131_072


SIZES = Sizes()
