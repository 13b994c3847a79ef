"""What pays from which size on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes that decide how code for big arrays is made.

    ``big``: elements of an array, from which on a loop over blocks pays: four slabs or so.
    ``saved``: how many times less a loop over blocks goes through an array's memory, from which on it pays.
    ``slab``: bytes of the largest block of a loop. Its calls cost some 0.3 us each, however small the block, and its blocks
    should stay in the caches; from 64 KB to 512 KB all do nearly as well.
    ``far``: bytes of a matrix, from which on its way from memory costs more than products with thin matrices.
    ``pooled``: bytes of an array, from which on its memory comes from the pool; below, ``malloc`` is as good.
    """

    big: int = 131_072
    saved: int = 4
    slab: int = 262_144
    far: int = 33_554_432
    pooled: int = 262_144


SIZES = Sizes()
