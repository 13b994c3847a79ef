"""Whose code something is: the user's, which is followed, or a library's, which is taken to be constant."""

from __future__ import annotations

import builtins
import collections
import collections.abc
import datetime
import decimal
import dis
import enum
import fractions
import functools
import os
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_STDLIB = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARIES = (OWN, os.path.dirname(np.__file__) + os.sep)
_POLYNOMIAL = os.path.dirname(np.polynomial.__file__) + os.sep  # code in Python that fills arrays, followed as the user's
_FOLLOWED = (_POLYNOMIAL, os.path.join(OWN, "scipy", "steps.py"))  # as are loops of this package that decide by values
_PACKAGES = ("scipy", "matplotlib", "pandas", "sklearn", "torch", "jax", "hypothesis", "pytest", "_pytest", "numba")
# packages whose functions depend on their arguments alone, and change none of them
_PURE = frozenset(
    "builtins math cmath numpy scipy itertools functools _functools operator _operator statistics fractions decimal numbers "
    "collections heapq copy dataclasses typing types abc enum re string textwrap json contextlib inspect".split()
)
_KNOWN = frozenset({*sys.stdlib_module_names, "numpy", "symgrad"})
# NumPy's functions that read or write files or NumPy's own settings
STATEFUL = frozenset(
    "geterr seterr geterrcall seterrcall getbufsize setbufsize get_printoptions set_printoptions array2string array_repr "
    "array_str format_float_positional load loadtxt genfromtxt fromfile fromregex save savez savez_compressed savetxt tofile "
    "open_memmap show_config show_runtime info get_include setdiagnostics".split()
)
IMPURE_BUILTINS = (print, input, open, setattr, delattr, breakpoint, exec, eval, compile, globals, locals, id)
RANDOM = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)
# of functions that are not followed: to assign an attribute by its name is no other than to do so in a statement
IMPURE_NAMES = frozenset({fun.__name__ for fun in IMPURE_BUILTINS} | {"random", "vars", "dir", "next"}) - {"setattr", "delattr"}
BY_NAME = frozenset({"getattr", "attrgetter", "methodcaller", "__getattribute__"})  # what finds attributes by their names
PURE_RECEIVERS = (str, bytes, int, float, complex, bool, range, slice, tuple, list, dict, set, frozenset, type,
                   type(None), np.ndarray, np.generic, np.dtype, collections.deque)  # fmt: skip
MUTATORS = frozenset(
    "append extend insert pop popitem remove clear sort reverse update setdefault add discard appendleft extendleft popleft "
    "rotate difference_update intersection_update symmetric_difference_update move_to_end subtract __setitem__ "
    "__delitem__ __iadd__ __imul__ __isub__ __ior__ __iand__ __ixor__".split()
)
CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
LOCAL = (list, tuple, dict, set, frozenset)  # containers of a function's own that may hold such from outside
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, enum.Enum, slice, range, types.UnionType,
          type(Ellipsis), type(NotImplemented))  # fmt: skip
VALUES = frozenset(
    {fractions.Fraction, decimal.Decimal, datetime.date, datetime.datetime, datetime.timedelta, datetime.time, re.Pattern}
)
KEYS = (bool, int, float, complex, str, bytes, type(None), np.generic, enum.Enum, type, np.dtype, FunctionType,
        BuiltinFunctionType, np.ufunc, type(np.sum))  # fmt: skip
FUNCTIONS = (FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum), types.MethodWrapperType, types.WrapperDescriptorType,
              types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType)  # fmt: skip
METHODS = (MethodType, BuiltinFunctionType, types.MethodWrapperType)  # bound to an object; the second also without
# special methods that Python calls of its own accord, where no hook follows them
_IMPLICIT = frozenset(
    f"__{name}__"
    for name in "len getitem iter next contains bool call eq ne lt le gt ge hash index int float complex round trunc floor "
    "ceil abs neg pos invert add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor radd rsub rmul "
    "rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor iadd isub imul imatmul itruediv ifloordiv imod "
    "ipow str repr format bytes array array_ufunc array_function array_interface array_struct buffer dlpack reversed missing "
    "length_hint".split()
)


@functools.lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether code belongs to Python, NumPy, symgrad or another library that is taken to be constant."""
    if filename.startswith("<"):
        return filename.startswith(("<frozen", "<symgrad", "<__array_function__", "<attrs"))
    if filename.startswith(_LIBRARIES):
        return not filename.startswith(_FOLLOWED)
    path = os.path.realpath(filename)
    parts = path.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        place = max(i for i, part in enumerate(parts) if part in ("site-packages", "dist-packages"))
        return parts[place + 1].split(".")[0] in _PACKAGES
    return path.startswith(_STDLIB)


@functools.lru_cache(maxsize=4096)
def is_installed(filename: str) -> bool:
    """Whether code belongs to a library, also to one that is followed."""
    return filename.startswith(_LIBRARIES) or "site-packages" in filename or "dist-packages" in filename


def is_users(fun: Any) -> bool:
    """Whether something is a Python function of the user's."""
    return isinstance(fun, FunctionType) and not is_library(fun.__code__.co_filename)


def needs_drafts(code: CodeType) -> bool:
    """Whether code that is followed fills arrays of NumPy's, in which only drafts keep traced values."""
    return code.co_filename.startswith(_POLYNOMIAL)


def is_made_anew(fun: Any) -> bool:
    """Whether something is a function of the user's that a function of theirs has made, and may make again."""
    return type(fun) is FunctionType and "<locals>" in fun.__qualname__ and not is_library(fun.__code__.co_filename)


def is_object(value: Any) -> bool:
    """Whether something is an object of a class of the user's, which is what is in it."""
    kind = type(value)
    other = (*PLAIN, *CONTAINERS, type, ModuleType, np.ndarray, Iterator, BaseException)
    return kind is types.SimpleNamespace or (is_users_class(kind) and not issubclass(kind, other))


def is_library_module(module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    if file is not None:
        return is_library(file)
    spec = vars(module).get("__spec__")  # a package in pieces, or a module made by hand, is the user's
    return spec is not None and spec.origin in ("built-in", "frozen")


def module_of(kind: type) -> str:
    """The name of the module that a class is made in; those made in a namespace without a name have none, or "builtins"."""
    return getattr(kind, "__module__", None) or "builtins"


def is_users_class(value: Any) -> bool:
    """Whether a class (or a module) is the user's."""
    if not isinstance(value, type):
        return True
    if not value.__flags__ & (1 << 9):  # of C, not of the heap
        return False
    if module_of(value) == "builtins":
        return vars(builtins).get(value.__name__) is not value
    home = sys.modules.get(module_of(value))
    return home is None or not is_library_module(home)


def is_numpys(kind: type) -> bool:
    return module_of(kind).split(".")[0] == "numpy" and not issubclass(kind, RANDOM)


def is_pure(module: str) -> bool:
    """Whether the functions of a library's module depend on their arguments alone."""
    return module.split(".")[0] in _PURE and not module.startswith("numpy.random")


def is_of_others(fun: Any, module: str) -> bool:
    """Whether a function, or a class, of a module is of a library that is neither Python's, NumPy's nor this one."""
    own = is_users_class(fun) if isinstance(fun, type) else is_users(fun)
    return module.split(".")[0] not in _KNOWN and not own


def home_of(fun: Any) -> str:
    """The module of a function; of one in C that does not say it, the one that it is a method of."""
    return str(getattr(fun, "__module__", None) or getattr(getattr(fun, "__self__", None), "__name__", "builtins"))


def hides(fun: Any, depth: int = 0) -> bool:
    """Whether a library's function holds functions of the user's: it decorates one, or registers some."""
    if depth > 4:
        return False
    if isinstance(fun, (MethodType, functools.partial)):
        fun = fun.func if isinstance(fun, functools.partial) else fun.__func__
    if is_users(fun):
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
    return any(hides(item, depth + 1) for item in held)


def names_in(code: CodeType) -> set[str]:
    """The names that code mentions, also as text where it asks for attributes by their names."""
    names = set(code.co_names)
    if not BY_NAME.isdisjoint(names):
        names.update(*[item.split(".") for item in code.co_consts if isinstance(item, str)])
    for item in code.co_consts:
        if isinstance(item, CodeType):
            names |= names_in(item)
    return names


@functools.lru_cache(maxsize=4096)
def variables_in(code: CodeType) -> frozenset[str]:
    """Those of them that are variables, of the module or the builtins, and not attributes."""
    steps = [step for step in dis.get_instructions(code) if step.opcode in dis.hasname]
    inner = [variables_in(item) for item in code.co_consts if isinstance(item, CodeType)]
    return frozenset({step.argval for step in steps if not step.opname.endswith(("ATTR", "METHOD"))}.union(*inner))


def modules_in(code: CodeType) -> set[str]:
    """The names of the modules that code imports."""
    inner = [modules_in(item) for item in code.co_consts if isinstance(item, CodeType)]
    return {step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"}.union(*inner)


def functions_of(item: Any) -> list[FunctionType]:
    """The functions that something in the body of a class is, or is made of."""
    parts = (item.fget, item.fset) if isinstance(item, property) else (getattr(item, "__func__", item),)
    return [part for part in parts if isinstance(part, FunctionType)]


def names_of(item: Any) -> set[str]:
    """The names that those look up."""
    return set().union(*[names_in(fun.__code__) for fun in functions_of(item)])


def of_class(kind: type, name: str, otherwise: Any = None) -> Any:
    """What a class, not an instance, has under this name, which may be None; ``otherwise`` where it has nothing."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return otherwise


def is_plain_key(key: Any) -> bool:
    """Whether a key can stand in a path: no method of the user's compares it."""
    if type(key) is tuple:
        return all(map(is_plain_key, key))
    return isinstance(key, KEYS) and not own_ways(type(key))


def is_by_identity(key: Any) -> bool:
    """Whether an object, which is none of the plain ``KEYS``, is a key by its identity alone."""
    kind = type(key)
    own = of_class(kind, "__hash__") is object.__hash__ and of_class(kind, "__eq__") is object.__eq__
    return own and not isinstance(key, KEYS)


# -- special methods -----------------------------------------------------------------------------------------------


def find_own_ways(kind: type) -> frozenset[str]:
    """The special methods of a class, written in Python by a user, that Python calls of its own accord."""
    found = set()
    for base in kind.__mro__:
        found |= {name for name, item in base.__dict__.items() if name in _IMPLICIT and is_users(item)}
    return frozenset(found)


def runs_by_place(kind: type) -> bool:
    """Whether ``for`` asks objects of a class of the user's for the items at 0, 1, and so on, until there is none."""
    return "__getitem__" in own_ways(kind) and of_class(kind, "__iter__", _BY_PLACE) is _BY_PLACE


_BY_PLACE = collections.abc.Sequence.__iter__


def is_plain_class(kind: type) -> bool:
    """Whether Python calls no special method of a class that a user has written, but for making and calling its objects, and
    managing contexts by them."""
    return all([name in _PLAINLY or _is_generated(of_class(kind, name)) for name in own_ways(kind)])


def _is_generated(method: Any) -> bool:
    """Whether ``dataclasses`` has written it."""
    return isinstance(method, FunctionType) and method.__code__.co_filename == "<string>"


def is_made(method: Any) -> bool:
    """Whether a method is one that ``@dataclass`` wrote."""
    return isinstance(method, FunctionType) and method.__code__.co_qualname.startswith("__create_fn__.<locals>.")


_PLAINLY = frozenset(["__call__", "__init__", "__enter__", "__exit__"])


def _find_ways(kind: type) -> frozenset[str]:
    """The special methods of a class, of whoever's making, that Python calls of its own accord."""
    return frozenset(name for base in kind.__mro__ if base is not object for name in base.__dict__ if name in _IMPLICIT)


def _find_setters(kind: type) -> tuple[Any, ...]:
    """The functions of a user's that Python calls where attributes or items of such an object are assigned or deleted."""
    found = [of_class(kind, f"__{name}__") for name in ("setitem", "delitem", "setattr", "delattr")]
    for item in [item for base in kind.__mro__ if is_users_class(base) for item in base.__dict__.values()]:
        if isinstance(item, property):
            found += [item.fset, item.fdel]
        else:
            found += [of_class(type(item), "__set__"), of_class(type(item), "__delete__")]
    return tuple([fun for fun in found if is_users(fun)])


CACHES: list[Any] = [functools.lru_cache(maxsize=4096)(find) for find in (find_own_ways, _find_ways, _find_setters)]
own_ways: Callable[[type], frozenset[str]] = CACHES[0]
ways_of: Callable[[type], frozenset[str]] = CACHES[1]
setters: Callable[[type], tuple[Any, ...]] = CACHES[2]
