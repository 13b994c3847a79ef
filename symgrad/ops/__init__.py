"""The operations: one statement a NumPy function, one file a part of NumPy. ``core`` says what a statement means."""

from symgrad.ops import contract, create, elementwise, engine, functional, index, linalg, reduction, scan, shape, sort

__all__ = ["contract", "create", "elementwise", "engine", "functional", "index", "linalg", "reduction", "scan", "shape", "sort"]
