"""What functions and objects are alike in, so that code that was made for one serves others that are made anew."""

from __future__ import annotations

import collections
import functools
import sys
from collections.abc import Callable
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from symgrad.source.origins import RANDOM, is_library, is_made_anew, is_object, is_users

_READ = (set, collections.deque, collections.Counter, collections.defaultdict)  # containers that are no trees
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


class Derived:
    """A function that is made of another one: alike where that is, and where the two are made in the same way."""

    __slots__ = ()
    _fun: Any
    _made: Any  # how, hashable; None where it is by itself


class Ruled:
    """A function of the user's with derivative rules of the user's: ``_rules`` is another object where they are given anew."""

    _fun: Any
    _rules: Any

    def __reduce__(self) -> str:
        return str(getattr(self, "__qualname__", type(self).__name__))  # as functions: copied as itself, pickled by its name


class Holding:
    """An object that holds what its functions need: that is read, of one from outside, as what the user's objects hold."""


class Alike:
    """A function of symgrad's own that others with an equal ``key``, if that is not None, may take the place of."""

    key: Any

    def reading(self, read: Callable[[str, int, Any], Any]) -> Alike:
        """The same with what it holds as ``read`` finds it, given the attribute that has it, its place there, and itself."""
        raise NotImplementedError


def name_of(made: Any) -> str | None:
    """The name that its module has for what a decorator has made of a function; None where it has none."""
    path = getattr(made, "__qualname__", "")
    found: Any = sys.modules.get(getattr(made, "__module__", ""))
    for part in path.split("."):
        found = getattr(found, part, None)
    return path if found is made else None


class Likeness(NamedTuple):
    """What functions have in common that one piece of code may serve: their code, and the kinds of what it holds."""

    name: str
    parts: tuple[Any, ...]


def likeness(fun: Any) -> Likeness | None:
    """What a function, or an object of the user's, is alike in with others, hashable; None where it is by itself.

    What a function reads from around it is a matter of guards; that of another kind or shape would make a variant, so it
    makes another likeness at once.
    """
    return _likeness(fun, 0, set())


def _likeness(fun: Any, depth: int, seen: set[int]) -> Likeness | None:
    """The same of a function within others; ``seen`` are those that were looked into, which may hold one another."""
    kind = type(fun)
    if kind is FunctionType:
        seen.add(id(fun))
        wrapped = fun.__dict__.get("__wrapped__")
        inner = None if wrapped is None else _likeness(wrapped, depth, seen)
        plain = not fun.__dict__ or (inner is not None and len(fun.__dict__) == 1)
        if plain and not is_library(fun.__code__.co_filename):
            variables = [_held(cell, depth, seen) for cell in fun.__closure__ or ()]
            return Likeness(fun.__name__, (Same(fun.__code__), Same(fun.__globals__), fun.__qualname__, inner, *variables))
        return None if "<locals>" in fun.__qualname__ else Likeness(fun.__name__, (Same(fun),))
    if kind is MethodType:
        inner, owner = _likeness(fun.__func__, depth, seen), fun.__self__
        if isinstance(owner, type):
            return inner and Likeness(inner.name, (Same(fun.__func__), "of a class", Same(owner)))
        if not is_object(owner):
            return None
        return inner and Likeness(inner.name, (Same(fun.__func__), Same(type(owner))))
    if kind is functools.partial:
        inner = _likeness(fun.func, depth, seen)
        given = [_kept(arg, depth, seen) for arg in fun.args]
        named = [(name, _kept(value, depth, seen)) for name, value in fun.keywords.items()]
        return inner and Likeness(inner.name, (kind, inner, tuple(given), tuple(named)))
    if issubclass(kind, Derived):
        inner = _likeness(fun._fun, depth, seen)
        return inner and fun._made and Likeness(inner.name, (fun._made, inner))
    if kind is np.ndarray:  # of strings, say, which are read as a whole
        return Likeness("array", (kind, fun.dtype, fun.shape))
    alike = is_object(fun) or kind in RANDOM or kind in _READ
    return Likeness(kind.__name__, (Same(kind),)) if alike else None


def _held(cell: CellType, depth: int, seen: set[int]) -> Any:
    try:
        return _kept(cell.cell_contents, depth, seen)
    except ValueError:  # it is empty
        return None


def _kept(value: Any, depth: int, seen: set[int]) -> Any:
    """What a likeness says of a value that a function has from around it."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.shape
    if kind in (str, bool):
        return value
    if issubclass(kind, (type, ModuleType)):
        return Same(value)
    return kind if depth == DEEP or id(value) in seen else _likeness(value, depth + 1, seen) or kind


def is_anew(value: Any) -> bool:
    """Whether another one may take the place of a function or an object, for what is in it is read or guarded."""
    kind = type(value)
    if kind is MethodType:
        return is_users(value.__func__)
    return (
        kind in (functools.partial, np.ndarray, *_READ, *RANDOM[:2])
        or is_made_anew(value)
        or issubclass(kind, Derived)
        or is_object(value)
    )
