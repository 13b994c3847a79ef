"""What functions are alike in, so that code that was made for one serves the others: closures, lambdas, methods made anew."""

from __future__ import annotations

import functools
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from symgrad.origins import is_library

DEEP = 4  # functions within functions that a likeness looks into


class Same:
    """An object as a part of a key: it and no other."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value


class Likeness(NamedTuple):
    """What functions have in common that one piece of code may serve: their code, and the kinds of what it holds."""

    name: str
    parts: tuple[Any, ...]


def likeness(fun: Any, depth: int = 0) -> Likeness | None:
    """What a function is alike in with others, hashable; None where it is by itself.

    What a function reads from around it is a matter of guards; that of another kind or shape would make a variant, so it
    makes another likeness at once.
    """
    kind = type(fun)
    if kind is FunctionType:
        if not fun.__dict__ and not is_library(fun.__code__.co_filename):
            variables = [_held(cell, depth) for cell in fun.__closure__ or ()]
            return Likeness(fun.__name__, (Same(fun.__code__), Same(fun.__globals__), fun.__qualname__, *variables))
        return None if "<locals>" in fun.__qualname__ else Likeness(fun.__name__, (Same(fun),))
    if kind is MethodType:
        inner, owner = likeness(fun.__func__, depth), fun.__self__
        owner = owner if isinstance(owner, type) else type(owner)
        return inner and Likeness(inner.name, (Same(fun.__func__), Same(owner)))
    if kind is functools.partial:
        inner = likeness(fun.func, depth)
        given = [_kept(arg, depth) for arg in fun.args]
        named = [(name, _kept(value, depth)) for name, value in fun.keywords.items()]
        return inner and Likeness(inner.name, (kind, inner, tuple(given), tuple(named)))
    return None


def _held(cell: CellType, depth: int) -> Any:
    try:
        return _kept(cell.cell_contents, depth)
    except ValueError:  # it is empty
        return None


def _kept(value: Any, depth: int) -> Any:
    """What a likeness says of a value that a function has from around it."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.shape
    if kind in (str, bool):
        return value
    if isinstance(value, (type, ModuleType)):
        return Same(value)
    return kind if depth == DEEP else likeness(value, depth + 1) or kind
