"""The operations: one statement a NumPy function, one file a part of NumPy. ``core`` says what a statement means."""

from symgrad.ops import (
    contract,
    create,
    elementwise,
    engine,
    fft,
    functional,
    index,
    linalg,
    poly,
    reduction,
    scan,
    sets,
    shape,
    signal,
    sort,
    statistics,
)

__all__ = [
    "contract", "create", "elementwise", "engine", "fft", "functional", "index", "linalg", "poly", "reduction", "scan", "sets",
    "shape", "signal", "sort", "statistics",
]  # fmt: skip
