"""What functions do that are not followed, and what they may change: of a traced value, some of it goes wrong unseen."""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import sys
from collections.abc import Iterable, Iterator, MutableMapping, Sequence, Set
from itertools import pairwise
from opcode import _nb_ops, opname  # type: ignore[attr-defined]
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from symgrad.errors import LeavesNumPy
from symgrad.source.origins import MUTATORS, PLAIN, is_library_module, is_made, is_users, is_users_class, names_in, needs_drafts
from symgrad.tracing.frames import HIDDEN, where

CODES = 10_000  # code objects of which is remembered what they do
CACHED = type(functools.lru_cache(maxsize=1)(abs))
UNBOUND = (MethodDescriptorType, WrapperDescriptorType)  # methods written in C, without their object


def refuse_unfollowed(fun: FunctionType) -> None:
    """Raise where a function whose source is not at hand asks for what of a traced value is not the value's."""
    for one in Within(fun).functions:
        asked = "type(...)" if _mentions_type(one) else ".dtype of an array that it makes" if _asks_for_dtype(one) else None
        if asked is not None:
            by = fun.__qualname__ if one is fun else f"{one.__qualname__}, which {fun.__qualname__} gets at,"
            raise LeavesNumPy(
                f"{where()}: {by} asks for {asked}, which of a traced value is not the value's, and the source of "
                f"{fun.__qualname__} is not at hand to put that right; keep it in a file, or write isinstance(x, float), "
                "x.__class__"
            )


def _asks_for_dtype(fun: FunctionType) -> bool:
    """Whether it looks at dtypes, and makes arrays, which are of objects where traced numbers are in them."""
    code = fun.__code__
    return not _DTYPES.isdisjoint(code.co_names) and not needs_drafts(code) and _makes_list(code)


def _mentions_type(fun: FunctionType) -> bool:
    if is_made(fun) or needs_drafts(
        fun.__code__
    ):  # it asks for the object's; or NumPy's, which makes arrays of traced values, too
        return False
    return "type" in names_in(fun.__code__) and fun.__globals__.get("type", type) is type and _loads_type(fun.__code__)


def _steps(code: CodeType) -> Iterator[tuple[str, int]]:
    """The instructions of code, and the last byte of each one's argument: ``dis`` takes twenty times as long to tell more."""
    return zip([opname[operation] for operation in code.co_code[::2]], code.co_code[1::2], strict=True)


_IN_PLACE = {number for number, (_, sign) in enumerate(_nb_ops) if sign.endswith("=")}


@functools.lru_cache(CODES)
def _loads_type(code: CodeType) -> bool:
    loads = any(step.argval == "type" and step.opname in ("LOAD_GLOBAL", "LOAD_NAME") for step in dis.get_instructions(code))
    return loads or any(_loads_type(item) for item in code.co_consts if isinstance(item, CodeType))


@functools.lru_cache(CODES)
def _makes_list(code: CodeType) -> bool:
    """Whether code makes lists or tuples, other than as an index or a result."""
    for (name, _), (then, _) in pairwise(_steps(code)):
        if name in ("BUILD_LIST", "LIST_APPEND"):
            return True
        if name == "BUILD_TUPLE" and then not in ("BINARY_SUBSCR", "STORE_SUBSCR", "RETURN_VALUE"):
            return True
    if not _MAKERS.isdisjoint(code.co_names):
        return True
    return any(_makes_list(item) for item in code.co_consts if isinstance(item, CodeType))


def _writes(code: CodeType, scope: dict[str, Any]) -> bool:
    """Whether code writes into what may be an array."""
    if _stores(code) or any(count > _place(names, scope) for names, count in _called(code)):  # the last of them as ``out``
        return True
    return any(_writes(item, scope) for item in code.co_consts if isinstance(item, CodeType))


@functools.lru_cache(CODES)
def _stores(code: CodeType) -> bool:
    """Whether code itself writes into items, or names what writes."""
    for name, arg in _steps(code):
        if name in ("STORE_SUBSCR", "STORE_SLICE") or (name == "BINARY_OP" and arg in _IN_PLACE):
            return True
    return not _WRITERS.isdisjoint(code.co_names) or any(type(names) is tuple and "out" in names for names in code.co_consts)


@functools.lru_cache(CODES)
def _assigned(code: CodeType) -> frozenset[str]:
    """The variables from around it, and the attributes, that code assigns or deletes; not those of a new object."""
    found = set()
    own = code.co_varnames[:1] if code.co_name in ("__init__", "__post_init__") else ()
    for before, step in pairwise(dis.get_instructions(code)):
        if step.opname.startswith(("STORE_", "DELETE_")) and (
            step.opname.endswith("_GLOBAL")
            or (step.opname.endswith("_DEREF") and step.argval in code.co_freevars)
            or (step.opname.endswith("_ATTR") and before.argval not in own)
        ):
            found.add(step.argval)
    return frozenset(found).union(*[_assigned(item) for item in code.co_consts if isinstance(item, CodeType)])


def _puts(code: CodeType) -> bool:
    """Whether code may change containers or arrays, by an instruction or a method."""
    inner = [item for item in code.co_consts if isinstance(item, CodeType)]
    deletes = any(name == "DELETE_SUBSCR" for name, _ in _steps(code))
    return _stores(code) or deletes or not MUTATORS.isdisjoint(code.co_names) or any(map(_puts, inner))


@functools.lru_cache(CODES)
def _called(code: CodeType) -> list[tuple[tuple[Any, ...], int]]:
    """The calls in code without keywords: the names that their expressions have loaded until then, and how many arguments."""
    found = []
    names: dict[Any, list[Any]] = {}  # by where an expression starts
    for before, step in pairwise([step for step in dis.get_instructions(code) if step.opname != "PRECALL"]):
        loaded = names.setdefault(step.positions and step.positions[::2], [])
        if step.opname.startswith("LOAD_"):
            loaded.append(None if step.opname == "LOAD_CONST" else step.argval)
        elif step.opname == "CALL" and before.opname != "KW_NAMES" and loaded:
            found.append((tuple(loaded), step.argval))
    return found


def _place(names: Sequence[Any], scope: dict[str, Any]) -> int:
    """Where ``np.sum`` or, without its array, ``x.sum`` takes ``out``."""
    if None in names:
        return sys.maxsize
    found: Any = scope.get(names[0])
    if isinstance(found, (ModuleType, np.ufunc, type(np.sum))):
        for name in names[1:]:
            found = getattr(found, name, None)
        return place_of_out(found) if callable(found) else sys.maxsize
    method = str(names[-1])
    known = getattr(np, method, None) if hasattr(np.ndarray, method) else None
    return place_of_out(known) - 1 if callable(known) else sys.maxsize


@functools.cache
def place_of_out(fun: Any) -> int:
    """At which position a function of NumPy's takes ``out``; beyond all arguments where it does not."""
    if isinstance(fun, np.ufunc):
        return fun.nin
    if isinstance(getattr(fun, "__self__", None), np.ufunc):
        return _OUT_OF_METHODS.get(fun.__name__, sys.maxsize)
    try:
        return positional_names(fun).index("out")
    except ValueError:
        return 2 if fun in (np.dot, np.concatenate) else sys.maxsize  # before NumPy 2.4 they have no signature


@functools.cache
def positional_names(fun: Any) -> list[str]:
    """The names of the arguments that a function takes by their places; none where it has no signature."""
    try:
        params = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return []
    return [p.name for p in params if p.kind <= p.POSITIONAL_OR_KEYWORD]


_OUT_OF_METHODS = {"reduce": 3, "accumulate": 3, "reduceat": 4}


_DTYPES = frozenset({"dtype", "issubdtype"})
_SETTERS = frozenset("setattr delattr globals vars exec eval".split())  # they change what no name tells
_WRITERS = frozenset("at copyto fill fill_diagonal place put put_along_axis putmask setitem real imag flat".split())
_MAKERS = frozenset(
    """array asarray asanyarray ascontiguousarray asfortranarray require full arange r_ c_ list tuple vectorize default_rng
    half single double longdouble float16 float32 float64 csingle cdouble clongdouble complex64 complex128
    isnan isinf isfinite isclose""".split()  # the last of math
)


_LEAVES = frozenset({np.ndarray, np.ufunc, type(np.sum), BuiltinFunctionType, ModuleType, float, int, bool, str, NoneType})
_names = functools.lru_cache(CODES)(names_in)


def attributes(value: Any) -> dict[str, Any]:
    """What is in an object, by no method of its class's."""
    kind: Any = type(value)
    found = {}
    for name in _slots(kind):
        with contextlib.suppress(AttributeError):
            found[name] = object.__getattribute__(value, name)
    try:
        held: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return found
    return {**held, **found} if found else held


@functools.lru_cache(256)
def _slots(kind: Any) -> list[str]:
    members = [vars(base).items() for base in kind.__mro__ if is_users_class(base)]
    return [name for items in members for name, item in items if isinstance(item, MemberDescriptorType)]


class Slots(MutableMapping[str, Any]):
    """What is in the slots of an object, as its ``__dict__`` would have it."""

    def __init__(self, owner: Any) -> None:
        kind: Any = type(owner)
        self.owner, self.names = owner, _slots(kind)

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        try:
            return object.__getattribute__(self.owner, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        object.__setattr__(self.owner, name, value)

    def __delitem__(self, name: str) -> None:
        object.__delattr__(self.owner, name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Cells(MutableMapping[int, Any]):
    """What the variables hold that a function shares with others, by number; of empty ones there is nothing."""

    def __init__(self, owner: FunctionType) -> None:
        cells = zip(owner.__code__.co_freevars, owner.__closure__ or (), strict=True)
        self.cells = {name: cell for name, cell in cells if cell != CellType() and not name.startswith(HIDDEN)}
        self.every = [*self.cells.values()]

    def __getitem__(self, key: int) -> Any:
        if key not in range(len(self.every)):
            raise KeyError(key)
        return self.every[key].cell_contents

    def __setitem__(self, key: int, value: Any) -> None:
        self.every[key].cell_contents = value

    def __delitem__(self, key: int) -> None:
        del self.every[key].cell_contents

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.every)))

    def __len__(self) -> int:
        return len(self.every)


def fields_of(value: Any) -> MutableMapping[str, Any] | None:
    """What an object holds, to be read and changed: its ``__dict__``, or its slots, if it has nothing else; None of others."""
    kind: Any = type(value)
    held: dict[str, Any] | None = getattr(value, "__dict__", None)
    return Slots(value) if held is None and has_slots_alone(kind) else held


@functools.lru_cache(256)
def has_slots_alone(kind: Any) -> bool:
    """Whether objects of a class of the user's hold what is in their slots, and nothing else."""
    held = len(_slots(kind)) + (kind.__weakrefoffset__ > 0)  # it is less where Python keeps it before the object
    alone = kind.__basicsize__ == object.__basicsize__ + held * np.intp().itemsize and not kind.__itemsize__
    return is_users_class(kind) and bool(_slots(kind)) and alone and not hasattr(kind, "__next__")


@functools.lru_cache(256)
def _wraps(kind: Any) -> bool:
    return hasattr(kind, "__wrapped__")


@functools.lru_cache(256)
def _is_record(kind: Any) -> bool:
    """Whether objects of a class are what is in them."""
    return kind is SimpleNamespace or (not issubclass(kind, (ModuleType, *PLAIN)) and is_users_class(kind))


def _is_method(fun: FunctionType) -> bool:
    """Whether it is one that is called by its name alone."""
    within, _, _ = fun.__qualname__.rpartition(".")
    return within != "" and not within.endswith("<locals>") and not fun.__name__.startswith("__")


class Within:
    """A function, or several, and all that they can get at by name, as that is now."""

    def __init__(self, fun: Any) -> None:
        self.fun = fun
        self.functions: list[FunctionType] = []  # of the user's
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.seen = seen = set[int]()
        stack = [fun]
        while stack:
            one = stack.pop()
            kind: Any = type(one)
            if kind in _LEAVES or id(one) in seen or len(seen) > 10_000:
                self.arrays += [one] if kind is np.ndarray else []
                continue
            seen.add(id(one))
            if kind is FunctionType and is_users(one):
                self.functions.append(one)
                names = _names(one.__code__)
                stack += [one.__globals__[name] for name in names if name in one.__globals__]
                modules = [one.__globals__[name] for name in names if isinstance(one.__globals__.get(name), ModuleType)]
                for m in modules:  # and those in packages, which come after
                    found = [vars(m)[name] for name in names if name in vars(m)]
                    inner = [item for item in found if isinstance(item, ModuleType) and not is_library_module(item)]
                    modules += [item for item in inner if not any([item is known for known in modules])]
                    stack += [] if is_library_module(m) else found
                stack += [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
                for cell in one.__closure__ or ():
                    with contextlib.suppress(ValueError):
                        stack.append(cell.cell_contents)
            elif kind is MethodType:
                stack += [one.__func__, one.__self__]
            elif issubclass(kind, type):
                for base in one.__mro__:
                    stack += vars(base).values() if is_users_class(base) else ()
            elif isinstance(one, (staticmethod, classmethod)):
                stack.append(one.__func__)
            elif isinstance(one, property):
                stack.append(one.fget)
            elif kind in (list, tuple):
                stack += one[:100]
            elif kind is dict:
                stack += list(one.values())[:100]
            elif isinstance(one, functools.partial):
                stack += [one.func, *one.args]
            elif isinstance(one, np.vectorize):
                stack.append(one.pyfunc)
            elif isinstance(one, CACHED) or "__wrapped__" in (held := attributes(one)) or _wraps(kind):
                stack.append(one.__wrapped__)
            elif _is_record(kind):
                stack.append(kind)
                stack += list(held.values())[:100]

    def fill(self) -> bool:
        """Whether one of them writes into what may be an array."""
        return any([_writes(fun.__code__, fun.__globals__) for fun in self.functions])

    def change(self, names: Set[Any], containers: Iterable[Any], arrays: Iterable[Any]) -> bool:
        """Whether one of them may change a variable or an attribute of these names, or one of these containers or arrays."""
        codes = [fun.__code__ for fun in self._mentioned()]
        if any([names & _assigned(code) or _SETTERS & _names(code) for code in codes]):
            return True
        shared = any([id(one) in self.seen for one in containers])
        shared = shared or any([np.may_share_memory(one, other) for one in arrays for other in self.arrays])
        return shared and any(map(_puts, codes))

    def _mentioned(self) -> list[FunctionType]:
        """The functions, but for methods by whose names nobody calls them."""
        names = set[str]()
        while True:
            found = [fun for fun in self.functions if fun is self.fun or not _is_method(fun) or fun.__name__ in names]
            more = names.union(*[_names(fun.__code__) for fun in found])
            if more == names:
                return found
            names = more
