"""What a traced function reads from outside its arguments: lifted to inputs, or guarded.

``State`` holds the hooks of an instrumented function. A float or array that is read through a path (a global, a closure
cell, an attribute chain, an item of a list or dict) becomes an *input* of the trace, read again by generated code at every
call. What shapes the trace without entering the graph (flags, strings, functions, lengths, keys, ints) becomes a *guard*:
the path and what was found there. What can be neither (random numbers, clocks, files, writes to outer objects) is noted as
the reason why the call cannot be compiled.
"""

from __future__ import annotations

import collections
import enum
import functools
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from symgrad.instrument import instrumented
from symgrad.ops.core import Traced
from symgrad.ops.engine import BOOL
from symgrad.rolling import SHORTEST, Roller
from symgrad.trace import Trace, Tracer, where
from symgrad.transform.loop import Course


class Argument(NamedTuple):
    """The root of a path that starts at an argument: the ``position``-th leaf of the call."""

    position: int


class Path:
    """Where a value was found: steps ``("item", key)`` and ``("attr", name)`` from an object, or from an argument."""

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

    def __repr__(self) -> str:
        shown = ""
        for kind, key in self.steps:
            if kind == "attr":
                shown += "" if key == "cell_contents" else f".{key}"
            else:
                shown += f"[{key!r}]" if shown or not isinstance(key, str) else key
        return shown.lstrip(".") or "self"


class Check(NamedTuple):
    """A guard: ``kind`` of look (``is``, ``eq``, ``type``, ``len``, ``keys``, ``set``) at a path, and what was found."""

    kind: str
    expected: Any
    line: str


_STDLIB = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
_LIBRARIES = (
    os.path.dirname(__file__) + os.sep,
    os.path.dirname(np.__file__) + os.sep,
)
_PACKAGES = ("scipy", "matplotlib", "pandas", "sklearn", "torch", "jax", "hypothesis", "pytest", "_pytest", "numba")
_IMPURE_MODULES = frozenset({"random", "_random", "time", "secrets", "uuid", "datetime", "posix", "nt", "os", "io", "_io",
                             "logging", "warnings", "sys", "threading", "_thread", "socket", "subprocess", "select",
                             "numpy.random", "_heapq", "_bisect"})  # fmt: skip
_IMPURE_BUILTINS = (print, input, open, setattr, delattr, next, breakpoint, exec, eval, compile, globals, locals, vars)
_PURE_RECEIVERS = (str, bytes, int, float, complex, bool, range, slice, tuple, list, dict, set, frozenset, bytearray, type,
                   type(None), np.ndarray, np.generic, np.dtype, collections.deque)  # fmt: skip
_MUTATORS = frozenset(
    "append extend insert pop popitem remove clear sort reverse update setdefault add discard appendleft extendleft popleft "
    "rotate difference_update intersection_update symmetric_difference_update __setitem__ __delitem__".split()
)
_NUMBERS = (float, complex, np.floating, np.complexfloating)
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_PLAIN = (bool, int, str, bytes, type(None), np.bool_, np.integer, np.dtype, enum.Enum, slice, range, type(Ellipsis))


@functools.lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether code belongs to Python, NumPy, symgrad or another library that is taken to be constant."""
    if filename.startswith("<"):
        return not filename.startswith(("<ipython", "<doctest", "<stdin", "<string"))
    if filename.startswith(_LIBRARIES):
        return True
    path = os.path.realpath(filename)
    parts = path.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        place = max(i for i, part in enumerate(parts) if part in ("site-packages", "dist-packages"))
        return parts[place + 1].split(".")[0] in _PACKAGES
    return path.startswith(_STDLIB)


def _library_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is None or is_library(file)


class State:
    """The hooks of one traced call, and what they found."""

    def __init__(self, trace: Trace, lifted: set[Path], accept_effects: bool = False) -> None:
        self.trace, self.lifted, self.accept_effects = trace, lifted, accept_effects
        self.lifts: dict[Path, Tracer] = {}
        self.checks: dict[tuple[Path, str], Check] = {}
        self.impure: str | None = None
        self.effects: list[str] = []
        self._paths: dict[int, Path] = {}
        self._keep: list[Any] = []

    # ---- bookkeeping ----

    def root(self, value: Any, path: Path) -> None:
        """Say where an object is from: what is read from it later has a path."""
        if id(value) not in self._paths:
            self._paths[id(value)] = path
            self._keep.append(value)

    def path_of(self, value: Any) -> Path | None:
        """Where an object is from, if it was there before the call."""
        return self._paths.get(id(value))

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
        if isinstance(value, _NUMBERS) or (kind is np.ndarray and value.dtype.kind in "fciub"):
            return self._lift(path, value)
        if kind is int and path in self.lifted:
            return self._lift(path, value)
        if isinstance(value, _PLAIN):
            if value is None or kind is bool or value is Ellipsis:
                self.check(path, "is", value)
            else:
                self.check(path, "eq", value)
            return value
        if isinstance(value, ModuleType) and _library_module(value):
            return value
        if isinstance(value, (FunctionType, BuiltinFunctionType, np.ufunc, type, ModuleType)):
            self.check(path, "is", value)
        if isinstance(value, FunctionType):
            self.check(path.then("attr", "__code__"), "is", value.__code__)
        self.root(value, path)
        return value

    def _lift(self, path: Path, value: Any) -> Any:
        tracer = self.lifts.get(path)
        if tracer is None:
            array = type(value) is np.ndarray and value.flags.writeable
            tracer = self.trace.input(path, value.copy() if array else value)
            last = next((key for kind, key in reversed(path.steps) if key != "cell_contents"), "state")
            tracer.node.name = str(last) if str(last).isidentifier() else _named(path)
            self.lifts[path] = tracer
            self.trace.watch(value, tracer)
        elif not _same_value(tracer.value, value):
            self.stop(f"{path!r} changes while the function runs")
            return value
        return Tracer(self.trace, tracer.node, tracer.value, frozen=True)

    def deep(self, value: Any, depth: int = 0) -> Any:
        """A container from outside as a copy of what is read from it; other values as they are."""
        path = self.path_of(value)
        if path is None or not isinstance(value, _CONTAINERS):
            return value
        if depth > 20:
            self.stop(f"{path!r} is nested too deep")
            return value
        if isinstance(value, (set, frozenset)):
            self.check(path, "set", frozenset(value))
            return value
        self.check(path, "type", type(value))
        if isinstance(value, dict):
            self.check(path, "keys", tuple(value))
            made = {key: self.deep(self.read(path.then("item", key), item), depth + 1) for key, item in value.items()}
            return made if type(value) is dict else _rebuilt(value, made)
        self.check(path, "len", len(value))
        items = [self.deep(self.read(path.then("item", i), item), depth + 1) for i, item in enumerate(value)]
        if type(value) is list:
            return items
        return tuple(items) if type(value) is tuple else _rebuilt(value, items)

    # ---- hooks: reads ----

    def attribute(self, owner: Any, name: str) -> Any:
        """``owner.name``."""
        if isinstance(owner, Traced):
            return getattr(owner, name)
        path = self.path_of(owner)
        if isinstance(owner, ModuleType):
            value = getattr(owner, name)
            return value if path is None or _library_module(owner) else self.read(path.then("attr", name), value)
        kind = type(owner)
        fixed = _of_class(kind, name)
        if isinstance(fixed, property) and fixed.fget is not None and isinstance(fixed.fget, FunctionType):
            return self.call(fixed.fget, owner)
        value = getattr(owner, name)
        if path is None:
            return value
        if isinstance(value, MethodType) and value.__self__ is owner:
            if isinstance(value.__func__, FunctionType) and not is_library(value.__func__.__code__.co_filename):
                self.check(path, "type", kind)
                self.check(Path(kind, (("attr", name),)), "is", value.__func__)
            return value
        if isinstance(value, (BuiltinMethodType, types.MethodWrapperType)) and getattr(value, "__self__", None) is owner:
            return value
        return self.read(path.then("attr", name), value)

    def item(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""
        path = self.path_of(owner)
        value = owner[key]
        if path is None or isinstance(owner, Traced):
            return value
        if isinstance(key, slice):
            return self.deep(owner)[key]
        if type(key) is Tracer:
            key = key.value
        if isinstance(owner, (list, tuple, collections.deque)):
            key = int(key)
            if key < 0:
                self.check(path, "len", len(owner))
                key += len(owner)
        return self.read(path.then("item", key), value)

    def iterate(self, value: Any) -> Any:
        """Something that is iterated over, or unpacked."""
        path = self.path_of(value)
        if path is None:
            return value
        if isinstance(value, _CONTAINERS):
            return self.deep_once(value)
        if isinstance(value, Iterator):
            self.stop(f"the iterator {path!r} is consumed")
        return value

    def loop(self, value: Any) -> Any:
        """What a ``for`` statement runs over: over a range, the index is traced and like iterations are rolled up."""
        value = self.iterate(value)
        if type(value) is range and len(value) >= SHORTEST and self.trace.symbolic:
            return self._rolling(value)
        return value

    def _rolling(self, indices: range) -> Iterator[Any]:
        roller = Roller(self.trace, Course(len(indices), indices.start, indices.step))
        caller = sys._getframe(1)
        for i in indices:
            index = roller.index(i)
            roller.boundary(caller, index)
            yield index
        roller.boundary(caller)
        roller.finish()

    def start(self) -> Roller:
        """A ``while`` statement begins."""
        return Roller(self.trace, None)

    def again(self, roller: Roller, test: Any) -> bool:
        """The test of a ``while`` statement."""
        if type(test) is not Tracer or not self.trace.symbolic:
            return bool(self.test(test))
        if test.node.aval.dtype.kind != "b":
            test = BOOL(test)
        roller.boundary(sys._getframe(1), test=test)
        if test:
            return True
        roller.finish()
        return False

    def deep_once(self, value: Any) -> Any:
        """The items of a container from outside, each read; containers among them keep their paths."""
        path = self.path_of(value)
        assert path is not None
        if isinstance(value, dict):
            self.check(path, "keys", tuple(value))
            return list(value)
        if isinstance(value, (set, frozenset)):
            self.check(path, "set", frozenset(value))
            return value
        self.check(path, "len", len(value))
        return [self.read(path.then("item", i), item) for i, item in enumerate(value)]

    def test(self, value: Any) -> Any:
        """Something whose truth is asked for."""
        path = self.path_of(value)
        if path is not None and isinstance(value, _CONTAINERS):
            self.check(path, "len", len(value))
        return value

    def whole(self, value: Any) -> Any:
        """Something that is compared, searched or matched."""
        return self.deep(value)

    @staticmethod
    def slice(start: Any, stop: Any, step: Any) -> slice:
        """``start:stop:step``."""
        return slice(start, stop, step)

    # ---- hooks: writes ----

    def wrote_name(self, name: str) -> None:
        """A global or closure variable is assigned."""
        self.effect(f"{name} is assigned, which is outside the function")

    def wrote_into(self, owner: Any) -> None:
        """An attribute or an item of ``owner`` is assigned."""
        path = self.path_of(owner)
        if path is not None and not isinstance(owner, Traced):
            self.effect(f"{path!r} is changed, which is outside the function")

    def frame_reader(self, name: str, value: Any) -> Any:
        """``locals()`` and its kin."""
        self.stop(f"{name}() looks at the frame")
        return value

    def trying(self, start: bool) -> None:
        """A ``try`` with handlers begins or ends."""
        self.trace.trying += 1 if start else -1

    def caught(self) -> None:
        """An exception was caught."""
        self.stop("an exception is caught, and compiled code would not raise it")

    # ---- hooks: calls ----

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``fun(*args, **kwargs)``: the user's functions instrumented, everything else with what it may see."""
        if type(fun) is FunctionType:
            return self._call_function(fun, args, kwargs)
        if type(fun) is MethodType:
            if type(fun.__func__) is FunctionType:
                return self._call_function(fun.__func__, (fun.__self__, *args), kwargs)
            return fun(*args, **kwargs)
        if isinstance(fun, functools.partial):
            path = self.path_of(fun)
            given, named = fun.args, fun.keywords
            if path is not None:
                given = tuple(self.read(path.then("attr", "args").then("item", i), a) for i, a in enumerate(given))
                named = {k: self.read(path.then("attr", "keywords").then("item", k), v) for k, v in named.items()}
            return self.call(fun.func, *given, *args, **{**named, **kwargs})
        if isinstance(fun, np.ufunc):
            return fun(*self._seen(args), **self._seen(kwargs))
        if isinstance(fun, type):
            return self._construct(fun, args, kwargs)
        if isinstance(fun, (BuiltinFunctionType, BuiltinMethodType, types.MethodWrapperType)):
            return self._call_builtin(fun, args, kwargs)
        handler = _of_class(type(fun), "__call__")
        if isinstance(handler, FunctionType) and not is_library(handler.__code__.co_filename):
            path = self.path_of(fun)
            if path is not None:
                self.check(path, "type", type(fun))
            return self._call_function(handler, (fun, *args), kwargs)
        if type(fun).__module__.split(".")[0] == "symgrad":
            return fun(*args, **kwargs)
        if type(fun).__module__.split(".")[0] in ("numpy", "functools"):
            return fun(*self._seen(args), **self._seen(kwargs))
        return self._call_opaque(fun, args, kwargs)

    def _call_function(self, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_library(fun.__code__.co_filename):
            module = fun.__module__ or ""
            if module.split(".")[0] in _IMPURE_MODULES or module in _IMPURE_MODULES:
                self.effect(f"{module}.{fun.__name__} is called")
            if module.split(".")[0] == "symgrad":  # it calls functions back through the trace
                return fun(*args, **kwargs)
            if module.split(".")[0] in ("numpy", "functools", "contextlib"):
                return fun(*self._seen(args), **self._seen(kwargs))
            return self._call_opaque(fun, args, kwargs)
        inside = instrumented(fun, Frame(self, fun))
        if inside is None:
            if not self._harmless(fun):
                self.stop(f"the source of {fun.__qualname__} is not at hand, so what it reads is not known")
            return fun(*args, **kwargs)
        return inside(*args, **{**self._defaults(fun, args, kwargs), **kwargs})

    def _defaults(self, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Default arguments that a call leaves out, as what they are: values from outside."""
        code = fun.__code__
        found = {}
        defaults = fun.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        start = len(names) - len(defaults)
        for i, value in enumerate(defaults):
            place = start + i
            if place >= len(args) and names[place] not in kwargs:
                if place < code.co_posonlyargcount:
                    self.stop("a positional-only argument has a default")
                    continue
                found[names[place]] = self.read(Path(fun, (("attr", "__defaults__"), ("item", i))), value)
        for name, value in (fun.__kwdefaults__ or {}).items():
            if name not in kwargs:
                found[name] = self.read(Path(fun, (("attr", "__kwdefaults__"), ("item", name))), value)
        return found

    def _harmless(self, fun: FunctionType) -> bool:
        """Whether a function without source reads nothing but its arguments, builtins and libraries."""
        return not fun.__closure__ and all(self._constant(fun, name) for name in _names(fun.__code__))

    def _constant(self, fun: FunctionType, name: str) -> bool:
        if name not in fun.__globals__:
            return True
        value = fun.__globals__[name]
        path = Path(fun.__globals__, (("item", name),))
        if isinstance(value, ModuleType):
            return _library_module(value)
        if isinstance(value, (*_PLAIN, float, complex)):
            self.check(path, "eq", value)
            return True
        return isinstance(value, (np.ufunc, BuiltinFunctionType, type)) and not self.check(path, "is", value)

    def _construct(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new object: the user's ``__init__`` is followed too."""
        setup = _of_class(kind, "__init__")
        simple = type(kind) is type and kind.__new__ is object.__new__
        if simple and isinstance(setup, FunctionType) and not is_library(setup.__code__.co_filename):
            made = kind.__new__(kind)
            self.call(setup, made, *args, **kwargs)
            return made
        if kind.__module__ in _IMPURE_MODULES and kind.__module__ not in ("datetime", "io", "_io"):
            self.stop(f"{kind.__module__}.{kind.__name__} is made")
        return kind(*self._seen(args), **self._seen(kwargs))

    def _call_builtin(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner = getattr(fun, "__self__", None)
        name = fun.__name__
        if fun is getattr and isinstance(args[1], str):
            return self._getattr(*args)
        if fun is hasattr:
            return self._hasattr(*args)
        if fun is len:
            self.test(args[0])
            return len(args[0])
        if owner is not None and not isinstance(owner, ModuleType):
            path = self.path_of(owner)
            if isinstance(owner, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
                self.stop(f"random numbers are drawn ({name})")
            elif isinstance(owner, Traced):
                return fun(*self._seen(args), **self._seen(kwargs))
            elif not isinstance(owner, _PURE_RECEIVERS) and type(owner).__module__ not in ("re", "builtins", "functools"):
                self.stop(f"{type(owner).__name__}.{name} is called, which may change or depend on anything")
            elif path is not None and isinstance(owner, _CONTAINERS):
                if name in _MUTATORS:
                    self.effect(f"{path!r}.{name} changes something outside the function")
                elif name == "get" and isinstance(owner, dict) and args and args[0] in owner:
                    return self.item(owner, args[0])
                else:
                    return getattr(self.deep(owner), name)(*self._seen(args), **self._seen(kwargs))
            return fun(*self._seen(args), **self._seen(kwargs))
        module = fun.__module__ or ""
        if fun in _IMPURE_BUILTINS:
            self.effect(f"{name}() is called")
            return fun(*args, **kwargs)
        if module in _IMPURE_MODULES or module.startswith("numpy.random"):
            self.stop(f"{module}.{name}() is called")
            return fun(*args, **kwargs)
        return fun(*self._seen(args), **self._seen(kwargs))

    def _call_opaque(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A library's function, whose inside is not followed: it must not see objects from outside that can change."""
        for value in (*args, *kwargs.values()):
            path = self.path_of(value)
            if path is not None and not isinstance(value, (*_CONTAINERS, FunctionType, type, ModuleType, np.ufunc)):
                self.stop(f"{path!r} is handed to {getattr(fun, '__name__', fun)}, which is not followed")
        return fun(*self._seen(args), **self._seen(kwargs))

    def _getattr(self, owner: Any, name: str, *default: Any) -> Any:
        if default and not hasattr(owner, name):
            self._hasattr(owner, name)
            return default[0]
        return self.attribute(owner, name)

    def _hasattr(self, owner: Any, name: str) -> bool:
        found = hasattr(owner, name)
        path = self.path_of(owner)
        if path is not None and not isinstance(owner, Traced):
            self.check(path.then("has", name), "is", found)
        return found

    def _seen(self, given: Any) -> Any:
        """Arguments for a function that is not followed: outer containers read, the user's functions followed."""
        if isinstance(given, dict):
            return {name: self._one_seen(value) for name, value in given.items()}
        return tuple([self._one_seen(value) for value in given])

    def _one_seen(self, value: Any) -> Any:
        if isinstance(value, _CONTAINERS):
            return self.deep(value)
        if type(value) is FunctionType and not is_library(value.__code__.co_filename):
            return functools.wraps(value)(lambda *args, **kwargs: self.call(value, *args, **kwargs))
        return value


class Frame:
    """The hooks as one function sees them: with its own globals and closure cells."""

    def __init__(self, state: State, fun: FunctionType) -> None:
        self._state = state
        self._space = fun.__globals__
        self._closure = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))

    def glob(self, name: str, value: Any) -> Any:
        """A global or builtin name."""
        if name not in self._space:
            return value
        return self._state.read(Path(self._space, (("item", name),)), value)

    def cell(self, name: str, value: Any) -> Any:
        """A variable of an enclosing function."""
        return self._state.read(Path(self._closure[name], (("attr", "cell_contents"),)), value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            names |= _names(item)
    return names


def _of_class(kind: type, name: str) -> Any:
    """What a class, not an instance, has under this name."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def _same_value(a: Any, b: Any) -> bool:
    """Whether a value read again is the one that was read before."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return bool(a == b) or (a != a and b != b)


def _named(path: Path) -> str:
    return "".join(c if c.isalnum() else "_" for c in repr(path)).strip("_") or "state"


def _rebuilt(like: Any, made: Any) -> Any:
    """A container of a subclass (namedtuple, OrderedDict, deque) with other items."""
    if hasattr(like, "_fields"):
        return type(like)(*made)
    return type(like)(made)

