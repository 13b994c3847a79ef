"""What a traced function reads from outside its arguments: lifted to inputs, or guarded.

``State`` holds the hooks of an instrumented function. A float or array that is read through a path (a global, a closure
cell, an attribute chain, an item of a list or dict) becomes an *input* of the trace, read again by generated code at every
call. What shapes the trace without entering the graph (flags, strings, functions, lengths, keys, types, ints) becomes a
*guard*: the path and what was found there. What can be neither (random numbers, clocks, files, writes to outer objects, code
that is not followed) is noted as the reason why the call cannot be compiled.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import datetime
import decimal
import dis
import enum
import fractions
import functools
import itertools
import operator
import os
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from symgrad.errors import LeavesNumPy
from symgrad.instrument import HOOKS, instrumented
from symgrad.ir import INPUT, Node
from symgrad.ops.core import Traced
from symgrad.ops.engine import BOOL, IDENTITY
from symgrad.rolling import SHORTEST, Over, Roller, over, paired
from symgrad.trace import Trace, Tracer, where

MAX_ITEMS = 1000  # of a container that is read as a whole
MAX_BYTES = 1 << 16  # of an array whose content is compared at every call


class Argument(NamedTuple):
    """The root of a path that starts at an argument: the ``position``-th leaf of the call."""

    position: int


class Path:
    """Where a value was found: steps from an object, or from an argument.

    Steps are ``("item", key)``, ``("attr", name)``, ``("cell", name)``, ``("call", args)``; and the questions
    ``("has", name)`` (an attribute), ``("in", key)`` and ``("true", None)``, which find a bool.
    """

    __slots__ = ("_hash", "root", "steps")

    def __init__(self, root: Any, steps: tuple[tuple[str, Any], ...]) -> None:
        self.root, self.steps = root, steps
        self._hash = hash((root if isinstance(root, Argument) else id(root), steps))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path) or self.steps != other.steps:
            return False
        return self.root is other.root or (isinstance(self.root, Argument) and self.root == other.root)

    def then(self, kind: str, key: Any) -> Path:
        """One step further."""
        return Path(self.root, (*self.steps, (kind, key)))

    def upto(self, end: int) -> Path:
        """The path to where it leads on the way."""
        return Path(self.root, self.steps[:end])

    def find(self, leaves: Sequence[Any]) -> Any:
        """What is there now, in a call with these arguments; raises where there is nothing."""
        value = leaves[self.root.position] if isinstance(self.root, Argument) else self.root
        for kind, key in self.steps:
            if kind == "attr":
                value = getattr(value, key)
            elif kind == "cell":
                value = value.cell_contents
            elif kind == "item":
                value = value[key]
            elif kind == "call":
                value = value(*key)
            elif kind == "has":
                value = hasattr(value, key)
            else:
                value = bool(value) if kind == "true" else key in value
        return value

    def prefixes(self) -> list[Path]:
        """The paths that lead here, from the root's to this one."""
        return [Path(self.root, self.steps[:i]) for i in range(len(self.steps) + 1)]

    def text(self, shown: Callable[[Path], str], leaves: Sequence[str], bind: Callable[[Any], str]) -> str:
        """The same as an expression; ``shown`` gives that of a shorter path, ``bind`` gives an object a name."""
        if not self.steps:
            return leaves[self.root.position] if isinstance(self.root, Argument) else bind(self.root)
        text = shown(Path(self.root, self.steps[:-1]))
        kind, key = self.steps[-1]
        name = repr(key) if type(key) in (int, str) else bind(key)
        if kind == "has":
            return f"hasattr({text}, {name})"
        if kind == "true":
            return f"(not not {text})"
        if kind == "in":
            return f"({name} in {text})"
        return text + {"attr": f".{key}", "cell": ".cell_contents", "item": f"[{name}]", "call": f"(*{name})"}[kind]

    def __repr__(self) -> str:
        root = self.root
        shown = f"{root.__name__}" if isinstance(root, (FunctionType, type, ModuleType)) else ""
        for kind, key in self.steps:
            if kind == "attr":
                shown += f".{key}"
            elif kind == "cell":
                shown = key
            elif kind == "item":
                shown += f"[{key!r}]" if shown or not isinstance(key, str) else key
            elif kind == "call":
                shown += f"({', '.join(map(repr, key))})"
            elif kind == "has":
                shown = f"hasattr({shown}, {key!r})"
            else:
                shown = f"bool({shown})" if kind == "true" else f"{key!r} in {shown}"
        return shown.lstrip(".") or "self"


class Check(NamedTuple):
    """A guard: what was found at a path. ``kind`` says how that is compared.

    ``is``; ``eq`` (and of the same type); ``type``; ``len``; ``keys`` in order; ``set``; ``array`` (content); ``same``: it is
    the very object that another path leads to.
    """

    kind: str
    expected: Any
    line: str

    def holds(self, value: Any, leaves: Sequence[Any]) -> bool:
        """Whether it holds of what is at the path now."""
        kind, expected = self.kind, self.expected
        if kind == "is":
            return value is expected
        if kind == "same":
            return value is expected.find(leaves)
        if kind == "type":
            return type(value) is expected
        if kind == "len":
            return bool(len(value) == expected)
        if kind == "keys":
            return bool(tuple(value) == expected)
        if kind == "array":
            return _same_value(value, expected)
        if kind == "set":
            return bool(value == expected)
        return type(value) is type(expected) and bool(value == expected) and _same_zero(value, expected)

    def text(self, found: str, shown: Callable[[Path], str], bind: Callable[[Any], str]) -> str:
        """The same as a condition on the expression ``found``."""
        kind, expected = self.kind, self.expected
        if kind == "is":
            return f"{found} is {repr(expected) if type(expected) in (bool, type(None)) else bind(expected)}"
        if kind == "same":
            return f"{found} is {shown(expected)}"
        if kind == "type":
            return f"type({found}) is {bind(expected)}"
        if kind == "len":
            return f"len({found}) == {expected}"
        if kind == "keys":
            return f"tuple({found}) == {bind(expected)}"
        if kind == "array":
            return f"{bind(_same_value)}({found}, {bind(expected)})"
        if kind == "set":
            return f"{found} == {bind(expected)}"
        text = f"type(t := {found}) is {bind(type(expected))} and t == {bind(expected)}"
        zero = isinstance(expected, (float, complex, np.inexact)) and expected == 0
        return f"{text} and {bind(_same_zero)}(t, {bind(expected)})" if zero else text

    def agrees(self, other: Check) -> bool:
        """Whether another trace found the same."""
        a, b = self.expected, other.expected
        if self.kind in ("is", "type"):
            return a is b
        if self.kind == "array":
            return _same_value(a, b)
        return type(a) is type(b) and bool(a == b) and (self.kind != "eq" or _same_zero(a, b))


def describe(path: Path, check: Check) -> str | None:
    """A guard in words, with the line that looked; ``None`` for what nobody asks: code objects, libraries, builtins."""
    kind, expected = check.kind, check.expected
    step = path.steps[-1] if path.steps else ("", "")
    if isinstance(expected, CodeType) or (isinstance(expected, ModuleType) and _library_module(expected)):
        return None
    if step[0] == "attr" and isinstance(path.root, ModuleType) and _library_module(path.root):
        return None
    if step[0] == "in" and (step[1] == "__dict__" or path.steps[-2:-1] == (("attr", "__dict__"),) or len(path.steps) == 1):
        return None  # no name in a module or an object hides what is read
    if step[0] in ("in", "has", "true"):
        text = f"{path!r} is {expected}"
    elif kind == "same":
        text = f"{path!r} is {expected!r}"
    elif kind == "array":
        text = f"{path!r} has the same content"
    else:
        signs = {"is": "is", "eq": "==", "len": "has length", "type": "is a", "keys": "has keys", "set": "=="}
        shown = getattr(expected, "__qualname__", None) if kind in ("is", "type") else None
        text = f"{path!r} {signs[kind]} {shown or repr(expected):.60}"
    return f"{text} ({os.path.basename(check.line)})"


_STDLIB = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
_OWN = os.path.dirname(__file__) + os.sep
_LIBRARIES = (_OWN, os.path.dirname(np.__file__) + os.sep)
_PACKAGES = ("scipy", "matplotlib", "pandas", "sklearn", "torch", "jax", "hypothesis", "pytest", "_pytest", "numba")
# packages whose functions depend on their arguments alone, and change none of them
_PURE = frozenset(
    "builtins math cmath numpy scipy itertools functools _functools operator _operator statistics fractions decimal numbers "
    "collections copy dataclasses typing types abc enum re string textwrap json contextlib inspect".split()
)
# NumPy's functions that read or write files or NumPy's own settings
_STATEFUL = frozenset(
    "geterr seterr geterrcall seterrcall getbufsize setbufsize get_printoptions set_printoptions array2string array_repr "
    "array_str format_float_positional load loadtxt genfromtxt fromfile fromregex save savez savez_compressed savetxt tofile "
    "open_memmap show_config show_runtime info get_include setdiagnostics".split()
)
_IMPURE_BUILTINS = (print, input, open, setattr, delattr, breakpoint, exec, eval, compile, globals, locals, id)
_IMPURE_NAMES = frozenset({fun.__name__ for fun in _IMPURE_BUILTINS} | {"random", "vars", "dir", "next"})
_PURE_RECEIVERS = (str, bytes, int, float, complex, bool, range, slice, tuple, list, dict, set, frozenset, bytearray, type,
                   type(None), np.ndarray, np.generic, np.dtype, collections.deque)  # fmt: skip
_MUTATORS = frozenset(
    "append extend insert pop popitem remove clear sort reverse update setdefault add discard appendleft extendleft popleft "
    "rotate difference_update intersection_update symmetric_difference_update move_to_end subtract __setitem__ "
    "__delitem__ __iadd__".split()
)
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_LOCAL = (list, tuple, dict, set, frozenset)  # containers of a function's own that may hold such from outside
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, enum.Enum, slice, range,
          type(Ellipsis), type(NotImplemented))  # fmt: skip
_VALUES = frozenset({fractions.Fraction, decimal.Decimal, datetime.date, datetime.datetime, datetime.timedelta})
_KEYS = (bool, int, float, complex, str, bytes, type(None), np.generic, enum.Enum)
_QUICK = frozenset({Tracer, float, int, bool, str, type(None), np.ndarray, complex, np.float64, slice, range, bytes})
_CALLED_BACK = (map, filter, sorted, min, max, functools.reduce, itertools.accumulate, itertools.groupby,
                itertools.starmap, itertools.takewhile, itertools.dropwhile, itertools.filterfalse)  # fmt: skip
_FUNCTIONS = (FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum), types.MethodWrapperType, types.WrapperDescriptorType,
              types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType)  # fmt: skip
_PARTIAL: Any = functools.partial
_CACHED = type(functools.lru_cache(maxsize=1)(abs))
# special methods that Python calls of its own accord, where no hook follows them
_IMPLICIT = frozenset(
    f"__{name}__"
    for name in "len getitem iter next contains bool call eq ne lt le gt ge hash index int float complex round trunc floor "
    "ceil abs neg pos invert add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor radd rsub rmul "
    "rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor iadd isub imul imatmul itruediv ifloordiv imod "
    "ipow str repr format bytes array array_ufunc array_function reversed missing length_hint".split()
)


@functools.lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether code belongs to Python, NumPy, symgrad or another library that is taken to be constant."""
    if filename.startswith("<"):
        return filename.startswith(("<frozen", "<symgrad", "<__array_function__", "<attrs"))
    if filename.startswith(_LIBRARIES):
        return True
    path = os.path.realpath(filename)
    parts = path.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        place = max(i for i, part in enumerate(parts) if part in ("site-packages", "dist-packages"))
        return parts[place + 1].split(".")[0] in _PACKAGES
    return path.startswith(_STDLIB)


def _users(fun: Any) -> bool:
    """Whether something is a Python function of the user's."""
    return isinstance(fun, FunctionType) and not is_library(fun.__code__.co_filename)


def _library_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is not None:
        return is_library(file)
    spec = getattr(module, "__spec__", None)  # a package in pieces, or a module made by hand, is the user's
    return spec is not None and spec.origin in ("built-in", "frozen")


def _find_own_ways(kind: type) -> frozenset[str]:
    """The special methods of a class, written in Python by a user, that Python calls of its own accord."""
    found = set()
    for base in kind.__mro__:
        if base.__module__ in ("builtins", "enum"):
            continue
        found |= {name for name, item in base.__dict__.items() if name in _IMPLICIT and _users(item)}
    return frozenset(found)


def _find_ways(kind: type) -> frozenset[str]:
    """The special methods of a class, of whoever's making, that Python calls of its own accord."""
    return frozenset(name for base in kind.__mro__ if base is not object for name in base.__dict__ if name in _IMPLICIT)


_CACHES = [functools.lru_cache(maxsize=4096)(find) for find in (_find_own_ways, _find_ways)]
_own_ways: Callable[[type], frozenset[str]] = _CACHES[0]
_ways: Callable[[type], frozenset[str]] = _CACHES[1]


class State:
    """The hooks of one traced call, and what they found. ``leaves`` are the arguments."""

    def __init__(self, trace: Trace, lifted: set[Path], accept_effects: bool = False, leaves: Sequence[Any] = ()) -> None:
        self.trace, self.lifted, self.accept_effects, self.leaves = trace, lifted, accept_effects, leaves
        self.lifts: dict[Path, Tracer] = {}
        self._arrays: list[tuple[Any, Tracer]] = []  # that were lifted, and their Tracers
        self.checks: dict[tuple[Path, str], Check] = {}
        self.impure: str | None = None
        self.effects: list[str] = []
        self._paths: dict[int, Path] = {}
        self._keep: list[Any] = []
        self._harmless_kinds: dict[Any, bool] = {}
        for cache in _CACHES:  # classes may have changed since the last trace
            cache.cache_clear()

    # ---- bookkeeping ----

    def root(self, value: Any, path: Path) -> None:
        """Say where an object is from: what is read from it later has a path."""
        known = self._paths.get(id(value))
        if known is None:
            self._paths[id(value)] = path
            self._keep.append(value)
        elif known != path:  # what is read from it has the first path: the two must go on leading to one object
            self.check(path, "same", known)

    def path_of(self, value: Any) -> Path | None:
        """Where an object is from, if it was there before the call."""
        path = self._paths.get(id(value))
        if path is None and (isinstance(value, type) or (isinstance(value, ModuleType) and not _library_module(value))):
            return Path(value, ()) if _users_class(value) else None
        return path

    def stop(self, reason: str) -> None:
        """This call cannot be compiled."""
        if self.impure is None:
            self.impure = f"{where()}: {reason}"

    def effect(self, what: str) -> None:
        """The function changes something outside; compiled code would not."""
        self.effects.append(f"{where()}: {what}")
        if not self.accept_effects:
            self.stop(what)

    def check(self, path: Path, kind: str, expected: Any) -> None:
        """Guard what was found at a path."""
        key = (path, kind)
        if key not in self.checks:
            self.checks[key] = Check(kind, expected, where())

    def read(self, path: Path, value: Any) -> Any:
        """A value found at a path, as the function should see it: lifted, or guarded."""
        kind = type(value)
        if kind is Tracer:
            return value
        if isinstance(value, Traced):  # an eager tensor: what lies in it is read
            self.check(path, "type", kind)
            return value.adopt(self.read(path.then("attr", "value"), value.value))
        if kind in (float, complex) or (isinstance(value, np.inexact) and kind.__module__ == "numpy"):
            return self._lift(path, value)
        if kind is np.ndarray and value.dtype.kind in "fciub":
            return self._lift(path, value)
        if (kind is int or isinstance(value, np.integer)) and path in self.lifted:
            return self._lift(path, value)
        if isinstance(value, np.ndarray):
            self._content(path, value)
        elif isinstance(value, _PLAIN) or kind in _VALUES:
            self._plain(path, value)
        elif isinstance(value, MethodType):
            self.check(path, "type", kind)
            self.read(path.then("attr", "__func__"), value.__func__)
            self.read(path.then("attr", "__self__"), value.__self__)
        elif isinstance(value, (*_FUNCTIONS, type, ModuleType)):
            self.check(path, "is", value)
            if isinstance(value, ModuleType) and _library_module(value):
                return value
            owner = getattr(value, "__self__", None)
            if isinstance(value, BuiltinMethodType) and owner is not None and not isinstance(owner, ModuleType):
                self.read(path.then("attr", "__self__"), owner)
            self.root(value, path)
        elif kind in (tuple, frozenset) and not value:  # there is but one of each, which has no place of its own
            self.check(path, "eq", value)
        else:
            self.check(path, "type", kind)
            self.root(value, path)
        return value

    def _plain(self, path: Path, value: Any) -> None:
        kind = type(value)
        if value is None or kind is bool or value is Ellipsis or isinstance(value, enum.Enum):
            self.check(path, "is", value)
            return
        self.check(path, "eq", value)
        if _users_class(kind):
            self.check(Path(_find_own_ways, (("call", (kind,)),)), "eq", _find_own_ways(kind))
        if _own_ways(kind):
            self.stop(f"{path!r} is a {kind.__name__} with operators of its own, which are not followed")

    def _content(self, path: Path, value: np.ndarray[Any, Any]) -> None:
        """An array that cannot be an input: guarded by what is in it."""
        if type(value) is not np.ndarray or value.dtype.hasobject:
            self.stop(f"{path!r} is a {type(value).__name__} of dtype {value.dtype}, which cannot be an input")
        elif value.nbytes > MAX_BYTES:
            self.stop(f"{path!r} is an array of dtype {value.dtype}, too large to be compared at every call")
        else:
            self.check(path, "array", value.copy())
        self.root(value, path)

    def _lift(self, path: Path, value: Any) -> Any:
        tracer = self.lifts.get(path)
        if tracer is None:
            array = type(value) is np.ndarray and value.flags.writeable
            tracer = self.trace.input(path, value.copy() if array else value)
            last = path.steps[-1][1] if path.steps else "state"
            tracer.node.name = str(last) if str(last).isidentifier() else _named(path)
            self.lifts[path] = tracer
            if type(value) is np.ndarray:
                self._arrays.append((value, tracer))
            self.trace.watch(value, tracer)
        elif not _same_value(tracer.value, value):
            self.stop(f"{path!r} changes while the function runs")
            return value
        if type(value) is np.ndarray:
            return self.trace.another(tracer)
        return Tracer(self.trace, tracer.node, tracer.value, frozen=True)

    def writes_to(self, tracer: Tracer) -> bool:
        """A Tracer that is not the function's own is written to: the array that it stands for is, too."""
        if id(tracer) in self.trace.outside:
            return True
        for array, known in self._arrays:
            if known is tracer:
                path = dict(tracer.node.params)["position"]
                self.effect(f"{path!r} is changed, which is outside the function")
                if not array.flags.writeable:
                    raise ValueError("assignment destination is read-only")
                self.trace.outside[id(tracer)] = (tracer, array)
                tracer.frozen = False
                return True
        return False

    def place(self, owner: Any) -> Any:
        """What an item is assigned in: an array that the trace has read stays what it is a copy of."""
        flat = type(owner) is np.flatiter
        for array, known in self._arrays:
            if array is (owner.base if flat else owner):
                return self.trace.another(known).flat if flat else self.trace.another(known)
        return owner

    def wrote_array(self, array: Any, tracer: Tracer) -> None:
        """What shares memory with an array that was written to has changed, too."""
        for other, known in self._arrays:
            if known is not tracer and np.may_share_memory(other, array):
                known.node, known.value = self.trace.constant(other.copy())
                known.version += 1

    def deep(self, value: Any, depth: int = 0) -> Any:
        """A container from outside as a copy of what is read from it; other values as they are."""
        path = self.path_of(value)
        if not isinstance(value, _CONTAINERS):
            return value
        if path is None:
            return self._local(value, depth) if type(value) in _LOCAL else value
        if depth > 20:
            self.stop(f"{path!r} is nested too deep")
            return value
        if _own_ways(type(value)):
            self.stop(f"{path!r} is a {type(value).__name__} with methods of its own, which are not followed")
            return value
        if len(value) > MAX_ITEMS:
            self.stop(f"{path!r} has {len(value)} items, too many to be compared at every call; make it an array")
            return value
        self.check(path, "type", type(value))
        self._guard_ways(type(value), "__iter__", "__getitem__", "__len__", "__contains__")
        if isinstance(value, (set, frozenset)):
            self.check(path, "set", frozenset(value))
            return value
        if isinstance(value, dict):
            if not all(map(_plain_key, value)):
                self.stop(f"{path!r} has keys that are no strings or numbers, which are not followed")
                return value
            self.check(path, "keys", tuple(value))
            made = {key: self.deep(self.read(path.then("item", key), item), depth + 1) for key, item in value.items()}
            return made if type(value) is dict else _rebuilt(value, made)
        self.check(path, "len", len(value))
        items = [self.deep(self.read(path.then("item", i), item), depth + 1) for i, item in enumerate(value)]
        if type(value) is list:
            return items
        return tuple(items) if type(value) is tuple else _rebuilt(value, items)

    def _local(self, value: Any, depth: int) -> Any:
        """A container of the function's own, with those from outside in it read; itself where there are none."""
        if depth > 20:
            return value
        old = list(value.values()) if isinstance(value, dict) else list(value)
        new = [item if type(item) in _QUICK else self.deep(item, depth + 1) for item in old]
        for item in new:
            if type(item) not in _QUICK:
                self._operand(item)
        if all(map(_is, old, new)):
            return value
        return dict(zip(value, new, strict=True)) if isinstance(value, dict) else type(value)(new)

    def _operand(self, value: Any) -> None:
        """An object that C code may look into: its class may have ways of its own, which are not followed."""
        kind = type(value)
        if isinstance(value, (type, *_FUNCTIONS, ModuleType, *_PLAIN, Traced, np.ndarray)) or kind in _LOCAL:
            return
        if kind is decimal.Decimal:
            self.stop("decimal numbers hang on the context")
        path = self.path_of(value)
        self._guard_ways(kind, "__eq__", "__hash__")
        ways = _own_ways(kind) if path is None else _ways(kind)
        if path is not None and (ways or isinstance(value, Iterator)):
            what = f"{kind.__name__}.{min(ways)}" if ways else "its consumption"
            self.stop(f"{path!r} is used, and {what} is not followed")
        elif ways and not all([self._harmless(_of_class(kind, name)) for name in ways]):
            self.stop(f"the special methods of {kind.__name__} read from outside, and are not followed")

    def _guard_ways(self, kind: type, *names: str) -> None:
        """Guard special methods that C code calls: the user may put others into the class."""
        if _users_class(kind):
            for name in names:
                self.check(Path(kind, (("attr", name),)), "is", getattr(kind, name, None))

    # ---- hooks: reads ----

    def attribute(self, owner: Any, name: str) -> Any:
        """``owner.name``."""
        if isinstance(owner, Traced):
            if name in ("flags", "strides", "base"):  # of the array itself, not of the trace's copy
                return self._memory(owner, name)
            return getattr(owner, name)
        if isinstance(owner, ModuleType):
            value = getattr(owner, name)
            if not _library_module(owner):
                return self.read((self.path_of(owner) or Path(owner, ())).then("attr", name), value)
            if isinstance(value, (ModuleType, type, *_FUNCTIONS, *_PLAIN, tuple)) or _numpys(type(value)):
                self.check(Path(owner, (("attr", name),)), "is", value)  # somebody may put another in its place
                return value
            return self.read(Path(owner, (("attr", name),)), value)
        if type(owner) is super:
            return self._super(owner, name)
        kind, path = type(owner), self.path_of(owner)
        fixed = _of_class(kind, name)
        if isinstance(fixed, property) and _users(fixed.fget):
            self.check(Path(kind, (("attr", name),)), "is", fixed)
            return self.call(fixed.fget, owner)
        getter = None if fixed is None else _of_class(type(fixed), "__get__")
        own = name in getattr(owner, "__dict__", ())
        if _users(getter) and (not own or hasattr(type(fixed), "__set__")):
            return self.call(getter, fixed, owner, kind)
        if isinstance(fixed, functools.cached_property) and path is None and not own:
            owner.__dict__[name] = value = self.call(fixed.func, owner)
            return value
        if _users(_of_class(kind, "__getattribute__")):
            self.stop(f"{kind.__name__}.__getattribute__ is not followed")
        value = getattr(owner, name)
        if isinstance(value, MethodType) and value.__self__ is owner and fixed is value.__func__:
            if _users(fixed):
                self.check(Path(kind, (("attr", name),)), "is", fixed)
                if path is not None and hasattr(owner, "__dict__"):
                    self.check(path.then("attr", "__dict__").then("in", name), "is", False)
            return value
        if isinstance(value, (BuiltinMethodType, types.MethodWrapperType)) and getattr(value, "__self__", None) is owner:
            return value
        if path is not None:
            return value if isinstance(owner, (np.ndarray, *_PLAIN)) else self.read(path.then("attr", name), value)
        if fixed is not None and _users_class(kind) and name not in getattr(owner, "__dict__", ()):
            if isinstance(fixed, types.MemberDescriptorType) or hasattr(type(fixed), "__set__"):
                return value  # a slot: what the function put there itself
            if isinstance(fixed, (staticmethod, classmethod)) or not hasattr(type(fixed), "__get__"):
                return self.read(Path(kind, (("attr", name),)), value)
        return value

    def _memory(self, owner: Any, name: str) -> Any:
        position = dict(owner.node.params).get("position")
        if type(owner.value) is np.ndarray:
            self.stop(f".{name} looks at the memory of an array")
            if isinstance(position, Path):
                return getattr(position.find(self.leaves), name)
            return getattr(owner.value, name)
        return getattr(owner, name)

    def _super(self, owner: Any, name: str) -> Any:
        """``super().name``: found in a class further up."""
        kind = owner.__self_class__
        for base in kind.__mro__[kind.__mro__.index(owner.__thisclass__) + 1 :]:
            if name in base.__dict__:
                found, value = base.__dict__[name], getattr(owner, name)
                if not _users_class(base):
                    return value
                path = Path(base, (("attr", name),))
                if isinstance(found, property) and _users(found.fget):
                    self.check(path, "is", found)
                    return self.call(found.fget, owner.__self__)
                if isinstance(value, MethodType):
                    self.check(path.then("attr", "__func__") if isinstance(found, classmethod) else path, "is", value.__func__)
                    return value
                return self.read(path, value)
        return getattr(owner, name)

    def item(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""
        key = self.whole(key)
        if type(owner) is Tracer:
            return owner[key]
        kind, path = type(owner), self.path_of(owner)
        if "__getitem__" in _own_ways(kind):
            handler = _of_class(kind, "__getitem__")
            self.check(Path(kind, (("attr", "__getitem__"),)), "is", handler)
            return self.call(handler, owner, key)
        if path is None or isinstance(owner, (np.ndarray, type)) or _numpys(kind):
            return owner[key]
        if isinstance(key, slice):
            return self.deep(owner)[key]
        value, key = owner[key], _key(key)
        if not _plain_key(key):
            self.stop(f"the key {key!r:.40} is no string or number, and is not followed")
            return value
        if isinstance(owner, (list, tuple, collections.deque)):
            key = int(key)
            if key < 0:
                self.check(path, "len", len(owner))
                key += len(owner)
        return self.read(path.then("item", key), value)

    def iterate(self, value: Any) -> Any:
        """Something that is iterated over, or unpacked."""
        if type(value) in _QUICK:
            return value
        path = self.path_of(value)
        if "__iter__" in _own_ways(type(value)):
            handler = _of_class(type(value), "__iter__")
            self.check(Path(type(value), (("attr", "__iter__"),)), "is", handler)
            return self.call(handler, value)
        if path is None:
            if isinstance(value, Iterator):
                self.trace.writes.append(value)
            return value
        if isinstance(value, _CONTAINERS):
            return self.deep_once(value)
        if not isinstance(value, (np.ndarray, type)):
            self.stop(f"{path!r} is iterated over, which is not followed")
        return value

    def unpacked(self, values: Any, nested: bool) -> Iterator[Any]:
        """The items of what a ``for`` runs over, each of which is unpacked."""
        for value in self.iterate(values):
            yield self.unpack(value, nested)

    def unpack(self, value: Any, nested: bool, names: tuple[str | None, ...] = ()) -> Any:
        """Something that is unpacked into several names."""
        value = self.deep(value) if nested else self.iterate(value)
        if type(value) in (tuple, list) and len(value) == len(names):
            for item, name in zip(value, names, strict=True):
                if name is not None and isinstance(item, Tracer):
                    _name(item.node, name)
        return value

    def mapping(self, value: Any) -> Any:
        """``**value``."""
        path = self.path_of(value)
        if path is None:
            return value
        if isinstance(value, dict) and not _own_ways(type(value)):
            self.check(path, "keys", tuple(value))
            return {key: self.read(path.then("item", key), item) for key, item in value.items()}
        self.stop(f"{path!r} is unpacked, which is not followed")
        return value

    # ---- hooks: loops ----

    Unbound = NameError  # what a local raises that has no value yet

    def loop(self, value: Any, private: tuple[str, ...], tested: bool, nested: bool | None) -> Any:
        """What a ``for`` statement runs over; by index where that can be rolled up, with the index traced.

        ``private``: the names that it assigns and nothing else reads; ``tested``: one ``if`` leaves it; ``nested`` is
        about its targets, as in ``unpack``.
        """
        if type(value) is not Over:
            given, value = value, self.iterate(value) if nested is None or type(value) is Tracer else value
            found = over(value) if type(value) in (Tracer, range) else None
            if found is None:
                return value if nested is None else self.unpacked(given, nested)
            value = found
        if value.length < SHORTEST or not self.trace.symbolic:
            return value.items()
        return Roller(self.trace, value, private, tested)

    def over(self, fun: Any, *args: Any, **options: Any) -> Any:
        """``zip``, ``enumerate`` or ``reversed`` as what a ``for`` statement runs over."""
        if fun in (zip, enumerate, reversed) and self.trace.symbolic:
            found = paired(fun, [arg if type(arg) is Over else self.iterate(arg) for arg in args], options)
            if found is not None:
                return found
        return self.call(fun, *[arg.items() if type(arg) is Over else arg for arg in args], **options)

    def start(self, private: tuple[str, ...]) -> Roller | None:
        """A ``while`` statement begins."""
        return Roller(self.trace, None, private) if self.trace.symbolic else None

    def number(self, loop: Any, name: str, value: Any, counts: bool) -> Any:
        """A local that a loop reads and assigns, as it begins: a plain number is traced from here on.

        An int only where the loop ``counts`` with it; others are likely to be looked at.
        """
        kinds = (float, complex, np.float64, np.float32, *([int] if counts else []))
        return loop.number(name, value) if type(loop) is Roller and type(value) in kinds else value

    def again(self, roller: Roller | None, test: Any) -> bool:
        """The test of a ``while`` statement."""
        test = self.test(test)
        if roller is None:
            return bool(test)
        return roller.again(sys._getframe(1), BOOL(test) if type(test) is Tracer and test.node.aval.dtype.kind != "b" else test)

    def ends(self, roller: Any, condition: Any) -> bool:
        """The condition of the ``if`` that leaves a loop."""
        condition = self.test(condition)
        if type(roller) is not Roller:
            return bool(condition)
        if type(condition) is Tracer and condition.node.aval.dtype.kind != "b":
            condition = BOOL(condition)
        return roller.leaves(sys._getframe(1), condition)

    def deep_once(self, value: Any) -> Any:
        """The items of a container from outside, each read; containers among them keep their paths."""
        path = self.path_of(value)
        assert path is not None
        self._guard_ways(type(value), "__iter__")
        if isinstance(value, (set, frozenset)):
            return self.deep(value)
        if len(value) > MAX_ITEMS:
            self.stop(f"{path!r} has {len(value)} items, too many to be compared at every call; make it an array")
            return value
        if isinstance(value, dict):
            self.check(path, "keys", tuple(value))
            return list(value)
        self.check(path, "len", len(value))
        return [self.read(path.then("item", i), item) for i, item in enumerate(value)]

    def test(self, value: Any) -> Any:
        """Something whose truth is asked for."""
        kind = type(value)
        if kind in _QUICK:
            return value
        path, ways = self.path_of(value), _own_ways(kind)
        for name in ("__bool__", "__len__"):
            if name in ways:
                self.check(Path(kind, (("attr", name),)), "is", _of_class(kind, name))
                return self.call(_of_class(kind, name), value)
        if path is not None and not isinstance(value, (type, *_FUNCTIONS)):
            self.check(path.then("true", None), "is", bool(value))
        return value

    def whole(self, value: Any) -> Any:
        """Something that is compared, searched, matched, added, shown."""
        if type(value) in _QUICK:
            return value
        if isinstance(value, _CONTAINERS):
            return self.deep(value)
        self._operand(value)
        return value

    def matched(self, value: Any) -> Any:
        """The subject of a ``match`` statement that looks into objects."""
        if self.path_of(value) is not None and not isinstance(value, Traced):
            self.stop("a class pattern looks into an object from outside, which is not followed")
        return value

    def fixed(self, value: Any) -> None:
        """A name in a pattern of a ``match`` statement, which compares the value itself."""
        if isinstance(value, Traced):
            self.stop("a pattern compares with a number from outside")

    def identity(self, value: Any, single: bool) -> Any:
        """One side of ``is``; ``single``: the other side is ``None`` or the like, so that the type tells."""
        path = self.path_of(value)
        if path is not None and not single:
            self.check(path, "is", value)
        return value

    def within(self, item: Any, owner: Any) -> Any:
        """``item in owner``."""
        kind, path = type(owner), self.path_of(owner)
        if "__contains__" in _own_ways(kind):
            handler = _of_class(kind, "__contains__")
            self.check(Path(kind, (("attr", "__contains__"),)), "is", handler)
            return bool(self.test(self.call(handler, owner, item)))
        if path is not None and isinstance(owner, (dict, set, frozenset)) and not _own_ways(kind):
            found, item = item in owner, _key(item)
            if _plain_key(item):
                self.check(path.then("in", item), "is", found)
                return found
        return self.whole(item) in self.whole(owner)

    def imported(self, module: str, name: str, value: Any) -> Any:
        """``from module import name`` in a function."""
        home = sys.modules.get(module)
        if home is None or _library_module(home) or not hasattr(home, name):
            return value
        return self.read(Path(home, (("attr", name),)), value)

    @staticmethod
    def slice(start: Any, stop: Any, step: Any) -> slice:
        """``start:stop:step``."""
        return slice(start, stop, step)

    # ---- hooks: writes, and statements that cannot be followed ----

    def wrote_name(self, name: str) -> None:
        """A global or closure variable is assigned."""
        self.effect(f"{name} is assigned, which is outside the function")

    def wrote(self, name: str, value: Any) -> Any:
        """The same in an expression: ``(name := value)``."""
        self.wrote_name(name)
        return self.kept(value)

    def wrote_around(self) -> None:
        """A variable of an enclosing function is assigned, which is part of the trace too."""
        self.trace.writes.append(None)

    def wrote_into(self, owner: Any) -> None:
        """An attribute or an item of ``owner`` is assigned."""
        path = self.path_of(owner)
        if path is not None and not isinstance(owner, (*_PLAIN, tuple, frozenset)):
            self.effect(f"{path!r} is changed, which is outside the function")
        elif not isinstance(owner, (Traced, float, *_PLAIN, tuple)):
            self.trace.writes.append(owner)
        elif type(owner) is Tracer:
            base = owner if owner.base is None else owner.base
            source = dict(base.node.params).get("position")
            if base.frozen and isinstance(source, Path):
                self.effect(f"{source!r} is changed, which is outside the function")

    def stored(self, value: Any, owner: Any) -> Any:
        """What is assigned to an attribute or an item of ``owner``: plain, if that outlives the call."""
        return value if self.path_of(owner) is None else self.kept(value)

    def kept(self, value: Any, depth: int = 0) -> Any:
        """A value that something outside the function will hold: no Tracer of numbers from outside is left in it."""
        kind = type(value)
        if kind is Tracer:
            if value.node.differentiated:
                return value
            if value.base is not None:
                value.refresh()
            return value.value.copy() if isinstance(value.value, np.ndarray) else value.value
        if kind in _QUICK or depth > 8 or isinstance(value, (type, ModuleType, *_FUNCTIONS)):
            return value
        if kind is list:
            value[:] = [self.kept(item, depth + 1) for item in value]
        elif kind is tuple:
            return tuple([self.kept(item, depth + 1) for item in value])
        elif kind is dict:
            value.update({key: self.kept(item, depth + 1) for key, item in value.items()})
        elif self.path_of(value) is None and hasattr(value, "__dict__"):
            vars(value).update({key: self.kept(item, depth + 1) for key, item in vars(value).items()})
        return value

    def frame_reader(self, name: str, value: Any) -> Any:
        """``locals()`` and its kin."""
        self.stop(f"{name}() looks at the frame")
        if isinstance(value, dict) and name != "globals":
            return {key: item for key, item in value.items() if not str(key).startswith(HOOKS[:-2])}
        return [item for item in value if not str(item).startswith(HOOKS[:-2])] if name == "dir" else value

    def class_made(self, name: str) -> None:
        """A class statement."""
        self.stop(f"class {name} is made inside the function, and is not followed")

    def trying(self, start: bool) -> None:
        """A ``try`` with handlers begins or ends."""
        self.trace.trying += 1 if start else -1

    def caught(self) -> None:
        """An exception was caught."""
        self.stop("an exception is caught, and compiled code would not raise it")

    def swallowed(self) -> None:
        """A ``finally`` that leaves the function or the loop begins: an exception on its way would be lost."""
        if sys.exc_info()[1] is not None:
            self.caught()

    def manager(self, value: Any) -> Any:
        """What a ``with`` statement is about."""
        return _Manager(self, value)

    # ---- hooks: calls ----

    def run(self, fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The user's function, from symgrad itself: containers from outside that it returns are read."""
        result = self.call(fun, *args, **kwargs)
        result = self.deep(result)
        path = self.path_of(result)
        if path is not None and not isinstance(result, _CONTAINERS):
            self.check(path, "is", result)
            if hasattr(type(result), "__dataclass_fields__"):
                self.stop(f"{path!r} is returned, and it may change")
        return result

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``fun(*args, **kwargs)``: the user's functions instrumented, everything else with what it may see."""
        if type(fun) is FunctionType:
            return self._call_function(fun, args, kwargs)
        if type(fun) is MethodType:
            if type(fun.__func__) is FunctionType:
                return self._call_function(fun.__func__, (fun.__self__, *args), kwargs)
            return self.call(fun.__func__, fun.__self__, *args, **kwargs)
        if isinstance(fun, functools.partial):
            return self._call_partial(fun, args, kwargs)
        if isinstance(fun, (np.ufunc, type(np.sum))):
            if fun.__name__ in _STATEFUL:
                self.stop(f"{fun.__name__}() is called, which reads or changes a file or a setting of NumPy's")
            if "out" in kwargs:
                self.trace.writes.append(kwargs["out"])
            return fun(*self._seen(args), **self._seen(kwargs))
        if isinstance(fun, type):
            return self._construct(fun, args, kwargs)
        if isinstance(fun, (BuiltinFunctionType, BuiltinMethodType, types.MethodWrapperType)):
            return self._call_builtin(fun, args, kwargs)
        if isinstance(fun, _CACHED):
            return self._call_cached(fun, args, kwargs)
        handler = _of_class(type(fun), "__call__")
        if _users(handler):
            self.check(Path(type(fun), (("attr", "__call__"),)), "is", handler)
            return self._call_function(handler, (fun, *args), kwargs)
        if type(fun).__module__.split(".")[0] == "symgrad":
            if self.path_of(fun) is not None:
                self.check(self._paths[id(fun)], "is", fun)
            return fun(*map(self._given, args), **{name: self._given(value) for name, value in kwargs.items()})
        if self.path_of(fun) is None and type(fun).__module__.split(".")[0] in ("numpy", "functools"):
            return fun(*self._seen(args), **self._seen(kwargs))
        if self.path_of(fun) is not None and not isinstance(fun, _FUNCTIONS):
            self.stop(f"{self.path_of(fun)!r} is called, and what it holds is not followed")
        return self._call_opaque(fun, args, kwargs)

    def caller(self, fun: Any) -> Any:
        """The same for a call with ``*`` or ``**`` in it."""

        def follow(*args: Any, **kwargs: Any) -> Any:
            return self.call(fun, *args, **kwargs)

        for name in ("__module__", "__qualname__"):
            if isinstance(getattr(fun, name, None), str):
                setattr(follow, name, getattr(fun, name))
        return follow

    def _call_partial(self, fun: functools.partial[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        path, inner, given, named = self.path_of(fun), fun.func, fun.args, fun.keywords
        if path is not None:
            first, names = path.then("attr", "args"), path.then("attr", "keywords")
            self.check(first, "len", len(given))
            self.check(names, "keys", tuple(named))
            inner = self.read(path.then("attr", "func"), inner)
            given = tuple(self.read(first.then("item", i), a) for i, a in enumerate(given))
            named = {k: self.read(names.then("item", k), v) for k, v in named.items()}
        return self.call(inner, *given, *args, **{**named, **kwargs})

    def default(self, fun: Any, name: str, value: Any) -> Any:
        """A default argument by which a derivative is taken."""
        while isinstance(fun, MethodType):
            fun = fun.__func__
        if isinstance(fun, FunctionType):
            names = fun.__code__.co_varnames[: fun.__code__.co_argcount]
            if name in (fun.__kwdefaults__ or {}):
                return self.read(Path(fun, (("attr", "__kwdefaults__"), ("item", name))), value)
            if name in names:
                place = names.index(name) - len(names) + len(fun.__defaults__ or ())
                return self.read(Path(fun, (("attr", "__defaults__"), ("item", place))), value)
        self.stop(f"the default of {name} is not followed")
        return value

    def _call_cached(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function with a cache: on plain arguments it is asked again at each call, as the plain function would."""
        path = self.path_of(fun)
        if path is None or kwargs or not all(type(arg) in (int, float, str, bool, type(None)) for arg in args):
            self.stop(f"{getattr(fun, '__name__', fun)} has a cache, whose content is not followed")
            return fun(*args, **kwargs)
        return self.read(path.then("call", args), fun(*args))

    def _call_function(self, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        code = fun.__code__
        if is_library(code.co_filename):
            return self._call_library(fun, args, kwargs)
        if HOOKS in code.co_freevars:  # made by an instrumented function, and so instrumented itself
            return fun(*args, **kwargs)
        self.check(Path(fun, (("attr", "__code__"),)), "is", code)
        inside = instrumented(fun, Frame(self, fun))
        args, kwargs = self._with_defaults(fun, args, kwargs)
        if inside is None:
            if not self._harmless(fun):
                self.stop(f"the source of {fun.__qualname__} is not at hand, so what it reads is not known")
            refuse_type(fun)
            self._handed(fun, (*args, *kwargs.values()))
            return fun(*self._seen(args), **self._seen(kwargs))
        return inside(*args, **kwargs)

    def _call_library(self, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        code = fun.__code__
        if code.co_filename.startswith(_OWN):  # it calls functions back through the trace
            return fun(*map(self._given, args), **{name: self._given(value) for name, value in kwargs.items()})
        module = fun.__globals__.get("__name__") or ""
        package = module.split(".")[0]
        if package in ("logging", "warnings"):
            self.effect(f"{module}.{fun.__name__}() is called")
        if not _pure(module) or (package == "numpy" and fun.__name__ in _STATEFUL):
            self.stop(f"{module}.{fun.__name__}() is called, which may change or depend on anything")
            return fun(*args, **kwargs)
        if package in ("numpy", "functools") and not _hides(fun):
            return fun(*self._seen(args), **self._seen(kwargs))
        return self._call_opaque(fun, args, kwargs)

    def _with_defaults(
        self, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with the defaults that it leaves out, as what they are: values from outside."""
        code, defaults = fun.__code__, fun.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        start = len(names) - len(defaults)
        given, found = list(args), {}
        if len(args) < len(names) and defaults:
            path = Path(fun, (("attr", "__defaults__"),))
            self.check(path, "len", len(defaults))
            for i, value in enumerate(defaults):
                place, name = start + i, names[start + i]
                if place < len(args) or (name in kwargs and place >= code.co_posonlyargcount):
                    continue
                if place >= code.co_posonlyargcount:
                    found[name] = self.read(path.then("item", i), value)
                elif place == len(given):
                    given.append(self.read(path.then("item", i), value))
        for name, value in (fun.__kwdefaults__ or {}).items():
            if name not in kwargs:
                found[name] = self.read(Path(fun, (("attr", "__kwdefaults__"), ("item", name))), value)
        return tuple(given), {**found, **kwargs}

    def _given(self, value: Any, depth: int = 0) -> Any:
        """A tree of arguments for symgrad itself: what is from outside is read."""
        if isinstance(value, _CONTAINERS):
            value = self.deep(value)
            if type(value) in (list, tuple):
                return type(value)([self._given(item, depth + 1) for item in value])
            return {key: self._given(item, depth + 1) for key, item in value.items()} if type(value) is dict else value
        path = self.path_of(value)
        if path is None or depth > 20 or isinstance(value, type) or not dataclasses.is_dataclass(value):
            return value
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            item = self.read(path.then("attr", field.name), getattr(value, field.name))
            object.__setattr__(made, field.name, self._given(item, depth + 1))
        return made

    # ---- functions that are not followed ----

    def _harmless(self, fun: Any) -> bool:
        """Whether a function without source reads nothing but its arguments, constants, builtins and libraries.

        What it reads is guarded.
        """
        if not isinstance(fun, FunctionType):
            return True
        known = self._harmless_kinds.get(fun)
        if known is None:
            self._harmless_kinds[fun] = True  # it may call itself
            self.check(Path(fun, (("attr", "__code__"),)), "is", fun.__code__)
            cells = list(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
            names = _names(fun.__code__)
            known = all([self._steady(cell.cell_contents, Path(cell, (("cell", name),)), names) for name, cell in cells])
            known = known and all([self._constant(fun, name, names) for name in names])
            self._harmless_kinds[fun] = known
        return known

    def _constant(self, fun: FunctionType, name: str, names: set[str]) -> bool:
        path = Path(fun.__globals__, (("item", name),))
        if name not in fun.__globals__:
            if name in _IMPURE_NAMES:
                return False
            self.check(Path(fun.__globals__, (("in", name),)), "is", False)
            return True
        return self._steady(fun.__globals__[name], path, names)

    def _steady(self, value: Any, path: Path, names: set[str]) -> bool:
        """Whether a value, of which at most these attributes are read, stays what it is while it is the same.

        That it is the same is guarded.
        """
        if isinstance(value, ModuleType):
            self.check(path, "is", value)
            return _library_module(value) and _pure(value.__name__)
        if isinstance(value, _PLAIN) and not _own_ways(type(value)):
            self.read(path, value) if value is None or isinstance(value, (bool, enum.Enum)) else self.check(path, "eq", value)
            return True
        if isinstance(value, (np.ufunc, BuiltinFunctionType)):
            self.check(path, "is", value)
            return getattr(value, "__name__", "") not in _IMPURE_NAMES
        if isinstance(value, FunctionType):
            self.check(path, "is", value)
            if names & value.__dict__.keys():
                return False
            return not _hides(value) if is_library(value.__code__.co_filename) else self._harmless(value)
        if isinstance(value, type):
            self.check(path, "is", value)
            return all([self._steady_class(base, names) for base in value.__mro__ if _users_class(base)])
        return False

    def _steady_class(self, kind: type, names: set[str]) -> bool:
        """Whether the methods of a class are harmless, and nothing else of it is read."""
        for name, item in kind.__dict__.items():
            if isinstance(item, FunctionType):
                self.check(Path(kind, (("attr", name),)), "is", item)
                if not self._harmless(item):
                    return False
            elif name in names and not isinstance(item, types.MemberDescriptorType):
                return False
        return True

    def _call_opaque(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function whose inside is not followed: it must not see objects from outside that can change."""
        self._handed(fun, (*args, *kwargs.values()))
        if isinstance(fun, FunctionType) and is_library(fun.__code__.co_filename) and _hides(fun):
            self.stop(f"{fun.__name__} calls functions of yours that are not followed")
        return self._hand(fun, self._out(self._seen(args)), self._out(self._seen(kwargs)))

    def _hand(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that sees arrays from outside themselves, and may write to them."""
        given = [self._out(arg) if type(arg) is Tracer else arg for arg in args]
        result = fun(*given, **{name: self._out(arg) if type(arg) is Tracer else arg for name, arg in kwargs.items()})
        for array, tracer in list(self._arrays):
            if not _same_value(array, tracer.value) and self.writes_to(tracer):
                tracer.node, tracer.value = self.trace.constant(array.copy())
                tracer.version += 1
        return result

    def _real(self, tracer: Tracer) -> Any:
        """The array from outside that a Tracer stands for, or a view of it; None if there is none."""
        if tracer.base is None:
            return next((array for array, known in self._arrays if known is tracer), None)
        array = self._real(tracer.base)
        op, rest, params = tracer.how
        found = None if array is None else op.fun(array, *[r.value if type(r) is Tracer else r for r in rest], **params)
        return found if found is not None and np.may_share_memory(found, array) else None

    def _handed(self, fun: Any, values: tuple[Any, ...]) -> None:
        for value in values:
            path = self.path_of(value)
            if path is not None and not isinstance(value, (*_CONTAINERS, *_FUNCTIONS, type, ModuleType, np.ndarray)):
                self.stop(f"{path!r} is handed to {getattr(fun, '__name__', fun)}, which is not followed")

    def _construct(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new object: the user's ``__init__`` is followed too."""
        if kind is _PARTIAL:
            return _PARTIAL(*args, **kwargs)
        if kind is type and len(args) == 1:
            return type(args[0].value if type(args[0]) is Tracer else args[0])
        setup, maker = _of_class(kind, "__init__"), _of_class(kind, "__new__")
        if _users_class(kind):
            if not self._harmless(getattr(maker, "__func__", maker)) or _users(_of_class(type(kind), "__call__")):
                self.stop(f"the making of a {kind.__name__} is not followed")
            elif type(kind) is type and maker is object.__dict__["__new__"] and _users(setup):
                self.check(Path(kind, (("attr", "__init__"),)), "is", setup)
                made: Any = object.__new__(kind)
                self.call(setup, made, *args, **kwargs)
                return made
            elif _users(setup) and not self._harmless(setup):
                self.stop(f"{kind.__name__}.__init__ is not followed")
        elif issubclass(kind, np.errstate) and not {*args, *kwargs.values()} <= {"ignore", "warn"}:
            self.stop("np.errstate makes NumPy do something about errors, and compiled code would not")
        elif kind is np.datetime64 and args and args[0] in ("now", "today"):
            self.stop("the time is asked for")
        elif not _pure(kind.__module__) and kind.__module__ not in ("datetime", "pathlib", "symgrad"):
            self.stop(f"{kind.__module__}.{kind.__name__} is made, which may depend on anything")
        args, kwargs = self._seen(args), self._seen(kwargs)
        if kind.__module__ not in _TRANSPARENT and not issubclass(kind, (np.generic, tuple)):
            return kind(*self._out(args), **self._out(kwargs))
        return kind(*args, **kwargs)

    def _out(self, value: Any) -> Any:
        """Numbers and arrays from outside as they are, for code that takes no others; their content is guarded."""
        if type(value) in (list, tuple):
            return type(value)([self._out(item) for item in value])
        if type(value) is dict:
            return {key: self._out(item) for key, item in value.items()}
        if type(value) is not Tracer or value.node.differentiated:
            return value
        path = dict(value.node.params).get("position")
        real = self._real(value)
        if value.node.op is not INPUT or not isinstance(path, Path) or np.ndim(value.value) == 0:
            plain = value.leave()
            return plain if real is None else real
        if value.value.nbytes > MAX_BYTES:
            self.stop(f"{path!r} is handed to code that is not followed, and too large to be compared at every call")
        else:
            self.check(path, "array", value.value)
        return value.value if real is None else real

    def _call_builtin(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner, name = getattr(fun, "__self__", None), fun.__name__
        if owner is not None and not isinstance(owner, ModuleType):
            return self._call_method(fun, owner, name, args, kwargs)
        if fun is getattr and len(args) > 1 and isinstance(args[1], str):
            return self._getattr(*args)
        if fun is hasattr:
            return self._hasattr(*args)
        if fun is len and len(args) == 1:
            return self._len(args[0])
        if fun is vars and args:
            return self.attribute(args[0], "__dict__")
        if fun in (isinstance, issubclass, callable):
            return fun(*args)
        if fun is iter and len(args) == 1:
            return iter(self.iterate(args[0]))
        module = fun.__module__ or _home(fun)
        if fun is next:
            if self.path_of(args[0]) is not None:
                self.stop(f"the iterator {self.path_of(args[0])!r} is consumed")
            return fun(*args)
        if fun in _IMPURE_BUILTINS:
            outside = fun not in (setattr, delattr) or self.path_of(args[0]) is not None
            if fun is id:
                self.stop("id() is called")
            elif outside:
                self.effect(f"{name}() is called")
                args = tuple(map(self.kept, args))
            return fun(*args, **kwargs)
        if not _pure(module):
            self.stop(f"{module}.{name}() is called, which may change or depend on anything")
            return self._hand(fun, args, kwargs)
        if module == "_operator" and (name in ("setitem", "delitem") or (name[0] == "i" and hasattr(operator, name[1:]))):
            self.wrote_into(args[0])
            return fun(*[self.stored(arg, args[0]) for arg in args], **kwargs)
        return fun(*self._seen(args), **self._seen(kwargs))

    def _call_method(self, fun: Any, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A method written in C."""
        path = self.path_of(owner)
        if isinstance(owner, Traced):
            return fun(*self._seen(args), **self._seen(kwargs))
        drawn = isinstance(owner, np.random.Generator | np.random.RandomState | np.random.BitGenerator)
        if drawn or type(owner).__module__ == "random":
            self.stop(f"random numbers are drawn ({name})")
            return self._hand(fun, args, kwargs)
        elif isinstance(owner, type):
            if name in ("now", "today", "utcnow"):
                self.stop(f"{owner.__name__}.{name}() is called")
        elif isinstance(owner, Iterator) and path is not None:
            self.stop(f"the iterator {path!r} is consumed")
        elif isinstance(owner, (np.ndarray, Iterator)) and name in ("fill", "sort", "put", "partition", "__next__", "send"):
            self.trace.writes.append(owner)
            return fun(*self._seen(args), **self._seen(kwargs))
        elif not isinstance(owner, _PURE_RECEIVERS) and type(owner).__module__ not in ("re", "builtins", "functools"):
            self.stop(f"{type(owner).__name__}.{name} is called, which may change or depend on anything")
        elif isinstance(owner, _CONTAINERS):
            if path is None:  # what it keeps are the very objects
                if name in _MUTATORS:
                    self.trace.writes.append(owner)
                keys = {key: self._called_back(value) for key, value in kwargs.items()}
                return fun(*[a if isinstance(a, FunctionType) else self.deep(a) for a in args], **keys)
            if name in _MUTATORS:
                self.effect(f"{path!r}.{name} changes something outside the function")
                return fun(*map(self.kept, args), **{key: self.kept(value) for key, value in kwargs.items()})
            elif name == "get" and isinstance(owner, dict) and args and not _own_ways(type(owner)):
                return self.item(owner, args[0]) if self.within(args[0], owner) else fun(*args)
            elif isinstance(owner, (dict, set, frozenset)) and name == "__contains__":
                return self.within(args[0], owner)
            else:
                return getattr(self.deep(owner), name)(*self._seen(args), **self._seen(kwargs))
        return fun(*self._seen(args), **self._seen(kwargs))

    def _getattr(self, owner: Any, name: str, *default: Any) -> Any:
        if default and not self._hasattr(owner, name):
            return default[0]
        return self.attribute(owner, name)

    def _hasattr(self, owner: Any, name: str) -> bool:
        found = hasattr(owner, name)
        path = self.path_of(owner)
        if path is not None and not isinstance(owner, Traced):
            self.check(path.then("has", name), "is", found)
        return found

    def _len(self, value: Any) -> int:
        kind = type(value)
        if "__len__" in _own_ways(kind):
            handler = _of_class(kind, "__len__")
            self.check(Path(kind, (("attr", "__len__"),)), "is", handler)
            return len(range(self.call(handler, value)))
        path = self.path_of(value)
        if path is not None:
            self.check(path, "len", len(value))
        return len(value)

    def _seen(self, given: Any) -> Any:
        """Arguments for a function that is not followed: outer containers read, the user's functions followed."""
        if isinstance(given, dict):
            return {name: value if type(value) in _QUICK else self._one_seen(value) for name, value in given.items()}
        return tuple([value if type(value) in _QUICK else self._one_seen(value) for value in given])

    def _one_seen(self, value: Any) -> Any:
        if isinstance(value, _CONTAINERS):
            return self.deep(value)
        back = self._called_back(value)
        if back is value:
            self._operand(value)
        return back

    def _called_back(self, value: Any) -> Any:
        """A function that other code will call: followed, if it is the user's."""
        if isinstance(value, (FunctionType, MethodType)) and _users(getattr(value, "__func__", value)):
            return functools.wraps(value)(lambda *args, **kwargs: self.call(value, *args, **kwargs))
        if isinstance(value, functools.partial):
            return lambda *args, **kwargs: self.call(value, *args, **kwargs)
        if isinstance(value, BuiltinMethodType) and isinstance(value.__self__, _CONTAINERS):
            if self.path_of(value.__self__) is not None:
                return lambda *args, **kwargs: self.call(value, *args, **kwargs)
        elif isinstance(value, type) and _users_class(value):
            setup = _of_class(value, "__init__")
            if not self._harmless(setup):
                self.stop(f"{value.__name__} is handed on, and what makes it is not followed")
        return value


class Finished(State):
    """The hooks after the traced call has ended, for functions made in it that live on: they do what Python does."""

    def root(self, value: Any, path: Path) -> None:
        """Nothing is noted any more."""

    def path_of(self, value: Any) -> Path | None:
        """Nothing is followed any more."""
        return None

    def stop(self, reason: str) -> None:
        """It has been compiled, or not."""

    def effect(self, what: str) -> None:
        """Nobody asks any more."""

    def check(self, path: Path, kind: str, expected: Any) -> None:
        """Nothing is guarded any more."""

    def read(self, path: Path, value: Any) -> Any:
        """The value itself."""
        return value

    def loop(self, value: Any, *facts: Any) -> Any:
        """What it runs over."""
        return value

    def over(self, fun: Any, *args: Any, **options: Any) -> Any:
        """A call, like any."""
        return fun(*args, **options)

    def start(self, outside: tuple[str, ...]) -> Roller | None:
        """Nothing is rolled up any more."""
        return None

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call."""
        return fun(*args, **kwargs)


class Kinds(Finished):
    """The hooks of a run that is not compiled, of a function that asks for ``type(x)``: it is told the value's, not Tracer."""

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call: the user's functions see ``type`` as it should be, those handed on too."""
        if fun is type and len(args) == 1 and not kwargs:
            return type(args[0].value if type(args[0]) is Tracer else args[0])
        if type(fun) is MethodType:
            return self.call(fun.__func__, fun.__self__, *args, **kwargs)
        handler = _of_class(type(fun), "__call__")
        if _users(handler):
            return self.call(handler, fun, *args, **kwargs)
        if not _users(fun) or HOOKS in fun.__code__.co_freevars:
            return fun(*map(self._back, args), **{name: self._back(value) for name, value in kwargs.items()})
        inside = instrumented(fun, Frame(self, fun))
        if inside is None:
            refuse_type(fun)
        return fun(*args, **kwargs) if inside is None else inside(*args, **kwargs)

    def _back(self, value: Any) -> Any:
        """A function that other code will call."""
        followed = _users(getattr(value, "__func__", value)) and isinstance(value, (FunctionType, MethodType))
        return functools.wraps(value)(lambda *args, **kwargs: self.call(value, *args, **kwargs)) if followed else value


def watching(trace: Trace, fun: Any) -> Kinds | None:
    """The hooks that a run of ``fun`` needs that is not compiled, if it needs any."""
    return Kinds(trace, set(), True) if asks_for_type(fun) else None


def refuse_type(fun: FunctionType) -> None:
    """Raise where a function whose source is not at hand asks for ``type(x)``."""
    if asks_for_type(fun):
        raise LeavesNumPy(
            f"{where()}: {fun.__qualname__} asks for type(...), which of a traced value is not the value's, and the source of "
            "it is not at hand to put that right; write isinstance(x, float), x.__class__, or keep the function in a file"
        )


def _mentions_type(fun: FunctionType) -> bool:
    return "type" in _names(fun.__code__) and fun.__globals__.get("type", type) is type and _loads_type(fun.__code__)


def _loads_type(code: CodeType) -> bool:
    loads = any(step.argval == "type" and step.opname in ("LOAD_GLOBAL", "LOAD_NAME") for step in dis.get_instructions(code))
    return loads or any(_loads_type(item) for item in code.co_consts if isinstance(item, CodeType))


_asking: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def asks_for_type(fun: Any) -> bool:
    """Whether a function, or one that it can get at by name, calls ``type``."""
    if isinstance(fun, MethodType):
        return asks_for_type(fun.__func__) or asks_for_type(type(fun.__self__))
    try:
        known = _asking.get(fun)
    except TypeError:  # it has no hash, or no weak references
        return _find_type(fun)
    if known is None:
        known = _asking[fun] = _find_type(fun)
    return known


def _find_type(fun: Any) -> bool:
    seen: set[int] = set()
    stack = [fun]
    while stack:
        one = stack.pop()
        if id(one) in seen or len(seen) > 10_000:
            continue
        seen.add(id(one))
        if isinstance(one, MethodType):
            stack += [one.__func__, one.__self__]
        elif _users(one):
            if _mentions_type(one):
                return True
            names = _names(one.__code__)
            stack += [one.__globals__[name] for name in names if name in one.__globals__]
            modules = [one.__globals__[name] for name in names if isinstance(one.__globals__.get(name), ModuleType)]
            stack += [vars(m)[name] for m in modules if not _library_module(m) for name in names if name in vars(m)]
            for cell in one.__closure__ or ():
                with contextlib.suppress(ValueError):
                    stack.append(cell.cell_contents)
        elif isinstance(one, type):
            stack += [item for item in vars(one).values() if isinstance(item, FunctionType)] if _users_class(one) else []
        elif type(one) in (list, tuple):
            stack += one[:100]
        elif type(one) is dict:
            stack += list(one.values())[:100]
        elif isinstance(one, functools.partial):
            stack += [one.func, *one.args]
        elif not isinstance(one, (ModuleType, *_PLAIN)) and _users_class(type(one)):
            stack.append(type(one))
    return False


class _Manager:
    """What a ``with`` statement enters and leaves, with its methods followed."""

    def __init__(self, state: State, value: Any) -> None:
        self.state, self.value = state, value
        for name in ("__enter__", "__exit__"):  # as Python asks, and with its words
            if not hasattr(type(value), name):
                with value:
                    pass

    def __enter__(self) -> Any:
        self.state.trace.trying += 1
        return self._call("__enter__")

    def __exit__(self, *error: Any) -> Any:
        self.state.trace.trying -= 1
        swallowed = self._call("__exit__", *error)
        if swallowed and error[0] is not None:
            self.state.caught()
        return swallowed

    def _call(self, name: str, *args: Any) -> Any:
        kind = type(self.value)
        method = _of_class(kind, name)
        if _users(method):
            self.state.check(Path(kind, (("attr", name),)), "is", method)
            return self.state.call(method, self.value, *args)
        if self.state.path_of(self.value) is not None:
            self.state.stop(f"{self.state.path_of(self.value)!r} is entered, which is not followed")
        return getattr(self.value, name)(*args)


class Frame:
    """The hooks as one function sees them: with its own globals and closure cells."""

    def __init__(self, state: State, fun: FunctionType) -> None:
        self._state = state
        self._space = fun.__globals__
        self._closure = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))

    def glob(self, name: str, value: Any) -> Any:
        """A global or builtin name."""
        if name not in self._space:
            self._state.check(Path(self._space, (("in", name),)), "is", False)
            return value
        return self._state.read(Path(self._space, (("item", name),)), value)

    def cell(self, name: str, value: Any) -> Any:
        """A variable of an enclosing function."""
        return self._state.read(Path(self._closure[name], (("cell", name),)), value)

    def imported(self, module: str, level: int, name: str, value: Any) -> Any:
        """``from module import name``, in the function's own package."""
        if level:
            package = str(self._space.get("__package__") or self._space.get("__name__", "")).split(".")
            module = ".".join([*package[: len(package) - level + 1], *([module] if module else [])])
        return self._state.imported(module, name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


# modules whose classes take Tracers as they are: they only hold or pass on what they are given
_TRANSPARENT = ("builtins", "collections", "itertools", "functools", "types", "dataclasses", "operator")


def _home(fun: Any) -> str:
    """The module of a function in C that does not say it: the one that it is a method of."""
    return getattr(getattr(fun, "__self__", None), "__name__", "builtins")


def _pure(module: str) -> bool:
    """Whether the functions of a library's module depend on their arguments alone."""
    return module.split(".")[0] in _PURE and not module.startswith("numpy.random")


def _users_class(value: Any) -> bool:
    """Whether a class (or a module) is the user's."""
    if not isinstance(value, type):
        return True
    if not value.__flags__ & (1 << 9):  # of C, not of the heap
        return False
    home = sys.modules.get(value.__module__)
    return home is None or not _library_module(home)


def _numpys(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "numpy" and not issubclass(kind, (np.random.Generator, np.random.RandomState))


def _hides(fun: Any, depth: int = 0) -> bool:
    """Whether a library's function holds functions of the user's: it decorates one, or registers some."""
    if depth > 4:
        return False
    if isinstance(fun, (MethodType, functools.partial)):
        fun = fun.func if isinstance(fun, functools.partial) else fun.__func__
    if _users(fun):
        return True
    held: list[Any] = []
    if isinstance(fun, FunctionType):
        for cell in fun.__closure__ or ():
            try:
                held.append(cell.cell_contents)
            except ValueError:
                continue
        held += [fun.__dict__["__wrapped__"]] if "__wrapped__" in fun.__dict__ else []
    elif isinstance(fun, dict):
        held += list(fun.values())[:100]
    return any(_hides(item, depth + 1) for item in held)


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for item in code.co_consts:
        if isinstance(item, CodeType):
            names |= _names(item)
    return names


def _of_class(kind: type, name: str) -> Any:
    """What a class, not an instance, has under this name."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def _key(key: Any) -> Any:
    """A key without Tracers in it: hashing them has made guards of their values."""
    if type(key) is Tracer:
        return key.value
    return tuple(map(_key, key)) if type(key) is tuple else key


def _plain_key(key: Any) -> bool:
    """Whether a key can stand in a path: no method of the user's compares it."""
    if type(key) is tuple:
        return all(map(_plain_key, key))
    return isinstance(key, _KEYS) and not _own_ways(type(key))


def _is(a: Any, b: Any) -> bool:
    return a is b


def _same_value(a: Any, b: Any) -> bool:
    """Whether a value read again is the one that was read before."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())
    return bool(a == b) or bool(a != a and b != b)


def _same_zero(a: Any, b: Any) -> bool:
    """Whether two equal numbers are the same zero, if they are zeros."""
    return not isinstance(a, (float, complex, np.inexact)) or a != 0 or str(a) == str(b)


def _name(node: Node, name: str) -> None:
    """The user's name for a value that has none yet; behind an identity it is the same value."""
    if not (node.name or "").isidentifier():
        node.name = name
    if node.op is IDENTITY:
        _name(node.args[0], name)


def _named(path: Path) -> str:
    return "".join(c if c.isalnum() else "_" for c in repr(path)).strip("_") or "state"


def _rebuilt(like: Any, made: Any) -> Any:
    """A container of a subclass (namedtuple, OrderedDict, deque) with other items."""
    if hasattr(like, "_fields"):
        return type(like)(*made)
    if isinstance(like, collections.defaultdict):
        return collections.defaultdict(like.default_factory, made)
    return type(like)(made)
