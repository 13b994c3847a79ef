"""The calls of a traced function: the user's functions are followed, others get what they may see.

A function of the user's runs instrumented, so that what it reads is noticed, too. What is not followed (libraries, C code,
functions without source) gets values from outside that are guarded, or the call cannot be compiled.
"""

from __future__ import annotations

import abc
import bisect
import collections
import contextlib
import copy
import dataclasses
import decimal
import enum
import functools
import heapq
import importlib
import inspect
import itertools
import math
import operator
import os
import random
import re
import string
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence, Set
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from symgrad import pytree
from symgrad.ir import INPUT
from symgrad.loops import ordering, stacks, tables
from symgrad.loops.iterables import table
from symgrad.loops.logs import Counted
from symgrad.ops import create
from symgrad.ops.core import Traced
from symgrad.ops.engine import INT, TO_FLOAT, TO_PYTHON
from symgrad.source.instrument import HOOKS, instrumented, taken
from symgrad.source.origins import (
    BY_NAME,
    CONTAINERS,
    FUNCTIONS,
    IMPURE_BUILTINS,
    IMPURE_NAMES,
    MUTATORS,
    OWN,
    PLAIN,
    PURE_RECEIVERS,
    RANDOM,
    STATEFUL,
    functions_of,
    hides,
    home_of,
    is_library,
    is_library_module,
    is_made_anew,
    is_object,
    is_plain_class,
    is_pure,
    is_users,
    is_users_class,
    module_of,
    modules_in,
    names_in,
    names_of,
    needs_drafts,
    of_class,
    own_ways,
    setters,
    variables_in,
)
from symgrad.tracing.kinds import CACHED, UNBOUND, attributes, place_of_out, refuse_unfollowed
from symgrad.tracing.opaque import of_values
from symgrad.tracing.protocols import is_of_objects
from symgrad.tracing.trace import Stated, Varied
from symgrad.tracing.tracer import AS_ARRAYS, Tracer, plain, unwritable
from symgrad.watch import draws, standard
from symgrad.watch.guards import Path, same_value
from symgrad.watch.likeness import Alike, Derived, Holding, Ruled
from symgrad.watch.reads import HOLDING, MAX_BYTES, QUICK, UNASKED, VIEWS, Reads, held_in, rebuilt

_TO_TEXT = (str, repr, ascii, format)
_SEEDED = (np.random.default_rng, np.random.RandomState, random.Random)
_IN_PLACE = ("at", "copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal")
COMPARING = (operator.is_, operator.is_not, operator.eq, operator.ne, operator.contains, operator.indexOf, operator.countOf)
_HEAPS = (heapq.heapify, heapq.heappush, heapq.heappop, heapq.heapreplace, heapq.heappushpop)
_IN_ORDER = (*_HEAPS, bisect.insort_left, bisect.insort_right)  # they change the list that they are given first
_BISECTING = (bisect.bisect_left, bisect.bisect_right)
_FINDING = ("get", "pop", "setdefault", "count", "index", "remove", "isdisjoint", "issubset", "issuperset", "__contains__",
            "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")  # fmt: skip
_KEEPING = {"append": 0, "appendleft": 0, "insert": 1, "setdefault": 1, "__setitem__": 1}  # after how many arguments
_EXTENDING = ("extend", "extendleft", "__add__", "__iadd__")
_OF_TYPES = ("__subclasses__", "__dir__", "mro")
_WRITING = MUTATORS | {"fill", "put", "partition", "resize", "setfield", "byteswap", "setflags"}
_PARTIAL: Any = functools.partial
# what reads or writes files, or hangs on a setting, of libraries the rest of which does not
_OF_FILES = (np.memmap, np.lib.npyio.NpzFile, np.lib.npyio.DataSource)
_OF_SCIPYS_FILES = ("scipy.io", "scipy.datasets", "scipy.sparse._matrix_io")
_OF_CONTEXTS = (decimal.getcontext, decimal.setcontext, decimal.localcontext)
_MAKERS = (np.ndarray, np.ufunc, *RANDOM)
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
# what functions have that leads to what may change
_OF_FUNCTIONS = {"__globals__", "__builtins__", "__closure__", "__dict__", "__defaults__", "__kwdefaults__", "__annotations__"}
DEEPEST = 20  # containers in containers that are looked into
_IN_C = (functools.partial, BuiltinFunctionType, types.MethodWrapperType, CACHED, *UNBOUND, *_GETTERS)
_MANAGER_CODE = contextlib.contextmanager(lambda: iter(())).__code__
# modules whose classes take Tracers as they are: they only hold or pass on what they are given
_TRANSPARENT = ("builtins", "collections", "itertools", "functools", "types", "dataclasses", "operator")
# iterators that ask their items something themselves, if they are given no function for that; and those that never do
_CURIOUS = (filter, itertools.accumulate, itertools.compress, itertools.dropwhile, itertools.filterfalse, itertools.groupby,
            itertools.takewhile)  # fmt: skip
# iterators that ask for an item of what they are given when it is its turn
_LAZY = (enumerate, filter, map, reversed, zip, itertools.accumulate, itertools.chain, itertools.compress, itertools.cycle,
         itertools.dropwhile, itertools.filterfalse, itertools.groupby, itertools.islice, itertools.pairwise,
         itertools.takewhile, itertools.zip_longest)  # fmt: skip
# where functions in C take what they run over
_RUNNING: dict[Any, slice] = {
    **dict.fromkeys([list, tuple, set, frozenset, collections.deque, sum, any, all, sorted, max, min, enumerate], slice(0, 1)),
    **dict.fromkeys(
        [itertools.accumulate, itertools.cycle, itertools.islice, itertools.pairwise, itertools.groupby], slice(0, 1)
    ),
    **dict.fromkeys([zip, itertools.chain, itertools.product, itertools.zip_longest], slice(0, sys.maxsize)),
    **dict.fromkeys([map, filter, itertools.dropwhile, itertools.filterfalse, itertools.takewhile], slice(1, sys.maxsize)),
}
_SHOWING = (collections.ChainMap, types.MappingProxyType)  # what is in others, as it is by then
_OF_INTS = (
    collections.deque,
    itertools.permutations,
    np.datetime64,
    np.timedelta64,
)  # they take an ``int`` itself, no other number


def _counted(value: Any) -> Any:
    """A number as Python's own int."""
    return operator.index(value) if type(value) is Tracer and np.ndim(value.like) == 0 else value


def _lines_of(code: CodeType, lines: frozenset[tuple[str, int]]) -> frozenset[int]:
    """Those of some lines that a function's code has, and functions within."""
    here = {line for file, line in lines if file == code.co_filename}
    if not here:
        return frozenset()
    every = [code, *[one for one in code.co_consts if isinstance(one, CodeType)]]
    return frozenset(here.intersection([line for one in every for *_, line in one.co_lines()]))


def reads_memory(kind: Any) -> bool:
    """Whether it takes an array by its memory, which no Tracer has."""
    return any([kind is one for one in (memoryview, bytearray, bytes, np.frombuffer)])


def is_foreign(fun: Any) -> bool:
    """Whether it is code in C, of no module that is known to take arrays as they are, which may write into their memory."""
    if isinstance(fun, BuiltinFunctionType):
        return fun.__module__ is not None and not is_pure(fun.__module__)
    in_c = isinstance(of_class(type(fun), "__call__"), types.WrapperDescriptorType)
    return in_c and not isinstance(fun, (type, MethodType, *FUNCTIONS, *_GETTERS))


def of_sparse(left: Any, right: Any) -> bool:
    """Whether one of them is a sparse array of SciPy's, and the other traced."""
    if isinstance(left, Traced) == isinstance(right, Traced):
        return False
    return is_sparse(right if isinstance(left, Traced) else left)


def is_sparse(value: Any) -> bool:
    return any([module_of(kind).startswith("scipy.sparse") for kind in type(value).__mro__])


def is_number(kind: Any, args: Sequence[Any]) -> bool:
    """Whether the call of a class makes an inexact number of NumPy's, or an array of such, of a traced one."""
    return isinstance(kind, type) and issubclass(kind, np.inexact) and len(args) == 1 and isinstance(args[0], Traced)


def method_of(fun: Any, args: Sequence[Any]) -> Any:
    """The method of a traced value that a call without its object, as ``np.ndarray.sum(x)``, means; None for any other call."""
    if not isinstance(fun, UNBOUND) or not args or type(args[0]) is not Tracer:
        return None
    kind, like = fun.__objclass__, args[0].like
    fits = kind is type(like) or (issubclass(kind, (np.ndarray, np.generic)) and isinstance(like, kind))
    return getattr(args[0], fun.__name__, None) if fits else None


def is_product(method: MethodType, args: Sequence[Any]) -> bool:
    """Whether the call of a method is one of ``a.dot(x)`` for a sparse ``a``."""
    return method.__name__ == "dot" and len(args) == 1 and of_sparse(method.__self__, args[0])


def sparse_product(left: Any, right: Any) -> Any:
    """``left @ right`` of a sparse array and a traced one."""
    return importlib.import_module("symgrad.scipy.sparse").product(left, right)


class Calls(Reads):
    """The hooks for calls."""

    def run(self, fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The user's function, from symgrad itself: containers from outside in what it returns are read."""
        result = self.call(fun, *args, **kwargs)
        if not _holds_nothing(result) or self.puts or self.appends or self.effects or self.impure:
            self._shown_all()
        return self._read_tree(result)

    def _shown_to(self, *given: Any) -> None:
        """Somebody who is not followed is given these, and may read all lists that objects hold, if one may lead there."""
        if not all(map(_holds_nothing, given)):
            self._shown_all()

    def _read_tree(self, value: Any, depth: int = 0) -> Any:
        """A tree with all containers from outside in it read, also in others."""
        if type(value) in QUICK or depth > DEEPEST:
            return value
        value = self.deep(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._record(value, lambda item: self._read_tree(item, depth + 1))
        if not pytree.is_container(value):
            return value
        old = [*value.values()] if isinstance(value, dict) else [*value]
        new = [self._read_tree(item, depth + 1) for item in old]
        if all(map(operator.is_, old, new)):
            return value
        return rebuilt(value, dict(zip(value, new, strict=True)) if isinstance(value, dict) else new)

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``fun(*args, **kwargs)``: the user's functions instrumented, everything else with what it may see."""
        if self.chosen_later:
            alone = len(args) == 1 and kwargs.keys() <= {"default"}
            taker = None if (fun is min or fun is max) and not alone else fun
            args = tuple([self.handed(value, taker) for value in args])
            kwargs = {name: self.handed(value, taker) for name, value in kwargs.items()}
        if self.trace.selections is not None and (made := self.trace.selections.made_like(fun, args, kwargs)) is not None:
            return self.own(fun, made, args)
        if type(fun) is FunctionType:
            return self._call_function(fun, args, kwargs)
        if draws.picks(fun) and args and (found := self._picked(fun, *args, **kwargs)) is not NotImplemented:
            return found
        if draws.is_drawn_by(fun) and (found := self._drawn(fun, args, kwargs)) is not None:
            return found
        if (owner := draws.seeded_by(fun)) is not None and self._seeded(owner, args, kwargs):
            return None
        if type(fun) is MethodType:
            if is_product(fun, args):
                return self.matmul(fun.__self__, *args)
            if type(fun.__func__) is FunctionType:
                return self._call_function(fun.__func__, (fun.__self__, *args), kwargs)
            return self.call(fun.__func__, fun.__self__, *args, **kwargs)
        if is_partial(fun):
            return self._call_partial(fun, args, kwargs)
        if isinstance(fun, (np.ufunc, type(np.sum))):
            return self._call_numpy(fun, fun, args, kwargs)
        if isinstance(fun, np.vectorize):
            return self._call_vectorized(fun, args, kwargs)
        if (
            any([fun is seeded for seeded in _SEEDED])
            and len(args) == 1
            and isinstance(args[0], (int, np.integer))
            and not kwargs
        ):
            return fun(*self._out(self._seen(args)))  # what it draws is always the same
        if fun is bool and len(args) == 1 and not own_ways(type(args[0])).isdisjoint(("__bool__", "__len__")):
            return bool(self.test(args[0]))
        if len(args) == 1 and not kwargs and type(args[0]) is Tracer and (found := self._converted(fun, args[0])) is not None:
            return found
        places = _RUNNING.get(fun) if type(fun) is type or type(fun) is BuiltinFunctionType else None
        if places is not None and (len(args) == 1 or fun not in (max, min)):
            args = (*args[: places.start], *map(self.runs_through, args[places]), *args[places.stop :])
        if isinstance(fun, type):
            if issubclass(fun, np.number) and len(args) == 1 and type(args[0]) in (list, tuple) and not kwargs:
                return self._call_numpy(np.array, np.array, (*args, fun), {})  # the same
            return self.worded(self._construct(fun, args, kwargs))
        if isinstance(fun, (BuiltinFunctionType, BuiltinMethodType, types.MethodWrapperType)):
            return self.worded(self._call_builtin(fun, args, kwargs))
        if isinstance(fun, UNBOUND) and args and (isinstance(args[0], CONTAINERS) or fun.__name__ == "__getattribute__"):
            return self.call(fun.__get__(args[0]), *args[1:], **kwargs)
        if (method := method_of(fun, args)) is not None:
            return self.call(method, *args[1:], **kwargs)
        if isinstance(fun, CACHED):
            return self._call_cached(fun, args, kwargs)
        if isinstance(fun, _GETTERS):
            return self._call_getter(fun, *args, **kwargs)
        if is_users(of_class(type(fun), "__call__")):
            return self._call_function(self.special(type(fun), "__call__"), (fun, *args), kwargs)
        if module_of(type(fun)).split(".")[0] == "symgrad":
            path = self.path_of(fun)
            if isinstance(fun, Holding):
                fun, path = self.given(fun), None
            if path is not None and isinstance(fun, Derived) and fun._made is not None:
                self.check(path, "type", type(fun))
                self.check(path.then("attr", "_made"), "eq", fun._made)
                self.read(path.then("attr", "_fun"), fun._fun)
            elif path is not None and isinstance(fun, Alike) and fun.key is not None:
                self.check(path, "type", type(fun))
                self.check(path.then("attr", "key"), "eq", fun.key)
            elif path is not None:
                self.check(path, "is", fun)
                if isinstance(fun, Ruled):
                    self.check(path.then("attr", "_rules"), "is", fun._rules)
                if isinstance(fun, Alike):
                    fun = fun.reading(functools.partial(self._read_in, path))
            return fun(*map(self.given, args), **{name: self.given(value) for name, value in kwargs.items()})
        if self.path_of(fun) is None and module_of(type(fun)).split(".")[0] in ("numpy", "functools"):
            return self.own(fun, fun(*self._seen(args), **self._seen(kwargs)), args)
        if self.path_of(fun) is not None and not isinstance(fun, FUNCTIONS):
            self.stop(f"{self.path_of(fun)!r} is called, and what it holds is not followed")
        return self.own(fun, self._call_opaque(fun, args, kwargs), args)

    def call_for(self, places: tuple[Any, ...], fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``fun(*args, **kwargs)``, which may return lists of some items at these places of a tuple, or alone (-1), or in a
        dict there (``("items", place)``), or, if nobody gets what it returns, anywhere (``...``): of what is done with those,
        the hooks are told (``handed``)."""
        if any([type(value) is Lent for value in (*args, *kwargs.values())]):
            return self._call_lending(fun, args, kwargs)
        if not self.chosen_later and self.trace.selections is None:  # no deeper than ``call`` goes
            if type(fun) is FunctionType:
                return self._call_function(fun, args, kwargs)
            method: Any = fun.__func__ if type(fun) is MethodType else None
            if is_users(method) and not (draws.is_drawn_by(fun) or is_product(fun, args)):
                return self._call_function(method, (fun.__self__, *args), kwargs)
        return self.call(fun, *args, **kwargs)

    def given_default(self, owner: Any, key: Any, value: Any) -> Any:
        """``owner.setdefault(key, value)``, to which something is appended, and nothing else is done with it."""
        if type(owner) is dict and type(key) is str and self.path_of(owner) is None and type(owner.get(key)) is list:
            return owner[key]
        return self.call(self.attribute(owner, "setdefault"), key, value)

    def lent(self, owner: Any, name: str) -> Any:
        """``owner.name``, which a function is given; a list, or a dict, that an object of the call's own has is ``Lent``:
        something else holds it, too, for that object may have another one there soon."""
        plain = is_object(owner) and is_plain_class(type(owner)) and not is_users(of_class(type(owner), "__getattribute__"))
        held = getattr(owner, "__dict__", None) if plain else None
        value = held.get(name) if type(held) is dict else None
        if type(value) not in (list, dict) or self.path_of(owner) is not None or of_class(type(owner), name) is not None:
            return self.attribute_for(owner, name)
        if type(owner) is Holder:
            return Lent(owner, name, owner)
        made = Holder()
        setattr(made, name, value)
        self.lend(value, made)
        return Lent(made, name, owner)

    def append_of(self, owner: Any) -> Any:
        """``owner.append``, which a function is given."""
        made = self.attribute(owner, "append")
        if type(owner) is list and self.path_of(owner) is None:
            self.lend(owner, made)
        return made

    def _call_lending(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with arguments that are ``Lent``: functions of the user's that do no more than to look at such a list, or to
        append to it, get what holds it, all others the list."""
        function: Any = fun.__func__ if type(fun) is MethodType else fun
        own = (fun.__self__,) if type(fun) is MethodType else ()
        follows = type(function) is FunctionType and self.trace.selections is None and not draws.is_drawn_by(fun)
        alone = taken(function)[0] if follows else frozenset[str]()
        names = function.__code__.co_varnames[len(own) : function.__code__.co_argcount] if alone else ()
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        lent = {name: one for name, one in given.items() if name in alone and type(one) is Lent}
        every = [self._unlent(one, fun, name in lent) for name, one in itertools.zip_longest(names, args)]
        named = {name: self._unlent(one, fun, name in lent) for name, one in kwargs.items()}
        if lent:
            there = frozenset([(name, one.name) for name, one in lent.items()])
            return self._call_function(function, (*own, *every[: len(args)]), named, there)
        return self.call(fun, *every[: len(args)], **named)

    def _unlent(self, value: Any, fun: Any, lends: bool) -> Any:
        """What a function is given for an argument: what holds it, if it does with that."""
        if type(value) is not Lent:
            return self.handed(value, fun) if self.chosen_later else value
        holder, name, owner = value
        if lends:
            return holder
        if owner.__dict__.get(name) is holder.__dict__[name]:
            return self.attribute_for(owner, name)
        self._mention(holder.__dict__[name])
        return holder.__dict__[name]

    def is_ready(self, function: FrameType, place: Any) -> bool:
        """Whether who has called a function, which returns, is ready for such a list at a place: its frame is the second or
        the third one back."""
        frame = function.f_back
        if frame is None or frame.f_code is not Calls._call_function.__code__:
            return False
        frame = frame.f_back
        if frame is not None and frame.f_code is Calls.call.__code__:
            frame = frame.f_back
        there = place if type(place) is int else ("items", place[0])
        if frame is not None and frame.f_code is Calls._call_lending.__code__:
            frame = frame.f_back
        if frame is None or frame.f_code is not Calls.call_for.__code__:
            return False
        places = frame.f_locals["places"]
        return there in places or ... in places

    def _read_in(self, path: Path, name: str, place: int, value: Any) -> Any:
        """An item of a list that an object of symgrad's own has as an attribute."""
        return self.read(path.then("attr", name).then("item", place), value)

    def _drawn(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Random numbers of a generator that was there before the call; None where code cannot draw them."""
        owner = fun.__self__
        path = self.path_of(owner) or draws.home_of(owner)
        if self.trace.lanes:
            return None
        if path is None:
            return self._drawn_itself(fun, args, kwargs)
        draw = draws.draw_of(path, fun, args, kwargs)
        if draw is None:
            return None
        given, named = plain([*args]), {name: plain(value) for name, value in kwargs.items()}
        found = self.draws.take(draw, owner, lambda: fun(*given, **named))
        if found is not None and path.steps:
            self.check(path, "type", type(owner))
        return found

    def _seeded(self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the generator of a module's own functions, its ``owner``, has begun anew, by what code knows."""
        path, given = self.path_of(owner) or draws.home_of(owner), [*args, *kwargs.values()]
        if path is None or self.trace.lanes or not given or any([one is None for one in given]):  # by the clock
            return False
        draw = draws.draw_of(path, owner.seed, args, kwargs)
        if draw is None:
            return False
        self.draws.seed(draw, owner, lambda: owner.seed(*plain([*args]), **plain(kwargs)))
        return True

    def _drawn_itself(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Random numbers of a generator that the function has made, which are the same at each call; None where they hang on
        arguments."""
        own = self.draws.own
        if own is None:
            return None
        draw = draws.draw_of(own.made(fun.__self__), fun, args, kwargs)
        if draw is None or any([one is not draw.path for one in draw.reads()]):
            own.passes()
            return None
        found = own.take(draw, fun.__self__, lambda: fun(*plain([*args]), **plain(kwargs)))
        return found if type(found) is Tracer else self.own(fun, found, args)

    def _picked(self, fun: Any, items: Any, *rest: Any, **kwargs: Any) -> Any:
        """What a generator that the function has made takes out of a sequence, whatever is in that; ``NotImplemented`` where
        that hangs on what is not known before the call."""
        owner, own, name = fun.__self__, self.draws.own, fun.__name__
        if own is None or self.trace.lanes or self.path_of(owner) is not None or draws.home_of(owner) is not None:
            return NotImplemented
        if type(items) not in ((list,) if name == "shuffle" else (list, tuple, range, str)) or "counts" in kwargs:
            return NotImplemented
        if name == "shuffle" and self.path_of(items) is not None:
            return NotImplemented
        if name == "choice" and all([type(item) in (int, float) for item in items]):
            return NotImplemented  # the numbers themselves are drawn
        (items,) = self._seen((items,))
        order: Any = [*range(len(items))] if name == "shuffle" else range(len(items))
        draw = draws.draw_of(own.made(owner), fun, (order, *rest), kwargs)
        if draw is None or any([one is not draw.path for one in draw.reads()]):
            return NotImplemented
        ints, looped = own.ints_of(items), self.trace.innermost_loop() is not None
        if looped and ints is None:
            own.passes()
        call = functools.partial(draws.picked_by, fun, ints, len(items), plain([*rest]), plain(kwargs))
        found = own.take(draw, owner, call) if looped else call()
        if type(found) is Tracer:
            picked = own.told([TO_PYTHON(found[i]) for i in range(len(found))])
        else:
            picked = found.tolist() if ints is not None else [items[i] for i in found.tolist()]
        if name == "shuffle":
            self.call(operator.setitem, items, slice(None), picked)
            return None
        return picked[0] if name == "choice" else picked

    def _call_numpy(self, fun: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function of NumPy's, or a method of the ufunc ``owner``."""
        if fun in (np.shares_memory, np.may_share_memory):
            for arg in args:
                if type(arg) is Tracer:
                    arg.tell_apart()
            self.stop(f"{fun.__name__}() looks at the memory of arrays")
            found = [self._real(arg) if type(arg) is Tracer else None for arg in args]
            return fun(*[arg if real is None else real for arg, real in zip(args, found, strict=True)], **kwargs)
        if isinstance(owner, np.ufunc) and is_of_objects(owner):
            self.stop(f"{owner.__name__} is made of a function that is not followed")
        if fun.__name__ in STATEFUL:
            self.stop(f"{fun.__name__}() is called, which reads or changes a file or a setting of NumPy's")
        if fun.__name__ in _IN_PLACE:
            self.wrote_arrays(args[:1])
        place = place_of_out(fun)
        self.wrote_arrays(args[place : None if isinstance(fun, np.ufunc) else place + 1], kwargs.get("out"))
        args, kwargs = self._asked(self._seen(args)), self._asked(self._seen(kwargs))
        if fun in OF_FUNCTIONS:
            args = tuple([handed(value, self._called_back) for value in args])
            kwargs = {name: handed(value, self._called_back) for name, value in kwargs.items()}
        if fun in (np.stack, np.vstack) and len(args) == 1 and not kwargs and self.trace.is_selected(args[0], fun is np.vstack):
            return self.own(fun, args[0].copy(), args)  # NumPy would ask how many rows there are
        return self.own(fun, create.call(self.trace, fun, args, kwargs), args)

    def own(self, fun: Any, made: Any, args: Sequence[Any]) -> Any:
        """What a function in C or of NumPy's has made; an array of NumPy's as a draft, where the user's function fills such."""
        if type(fun) is FunctionType:
            made = self._joined(made)
        if type(made) is Tracer or self.trace.drafts is None:
            return made
        owner = getattr(fun, "__self__", None)
        method = owner is not None and not isinstance(owner, ModuleType)
        if not (isinstance(owner, _MAKERS) if method else home_of(fun).startswith(("numpy", "copy"))):
            return made
        if fun in (np.empty, np.empty_like):  # the next run would find other numbers in it
            made[...] = 0
        return self.trace.drafts.own(made, (owner, *args))

    def _joined(self, made: Any) -> Any:
        """What code in Python that is not followed has put into arrays of objects (as np.polynomial does), as traced arrays."""
        if type(made) is tuple:
            return tuple(map(self._joined, made))
        objects = type(made) is np.ndarray and made.dtype == object and create.is_of_numbers(made)
        return create.array(self.trace, made) if objects else made

    def _call_vectorized(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``np.vectorize`` of a function of the user's, which is followed."""
        path, inner = self.path_of(fun), fun.pyfunc
        if path is not None:
            inner = self.read(path.then("attr", "pyfunc"), inner)
            for name in ("otypes", "excluded", "cache", "signature"):
                value = getattr(fun, name)
                self.read(path.then("attr", name), value)
                self.deep(value)
        return self.vectorized(fun, inner, self._asked(self._seen(args)), self._asked(self._seen(kwargs)))

    def vectorized(self, fun: Any, inner: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The elements' results, traced, as the arrays that NumPy would make of plain ones."""

        def element(*args: Any, **kwargs: Any) -> Any:
            return self.call(inner, *args, **kwargs)

        if fun.signature:
            return np.vectorize(element, fun.otypes, None, fun.excluded, fun.cache, fun.signature)(*args, **kwargs)
        kinds = fun.otypes or ""
        first = None if kinds or fun.cache else self._first(fun, element, args, kwargs)
        if not fun.cache and (found := self._one_by_one(fun, inner, args, kwargs, first)) is not None:
            return found
        made = np.vectorize(element, "O" * max(len(kinds), 1), None, fun.excluded, fun.cache)  # traced values stay objects
        result = made(*args, **kwargs)
        if not kinds and isinstance(result.flat[0], tuple):
            result = tuple(np.frompyfunc(operator.itemgetter(i), 1, 1)(result) for i in range(len(result.flat[0])))
        parts = result if isinstance(result, tuple) else (result,)
        cells = [part.flat[0] for part in parts] if first is None else first if isinstance(first, tuple) else (first,)
        kinds = kinds or [np.asarray(plain(cell)).dtype for cell in cells]
        parts = tuple(
            (create.array(self.trace, part) if create.is_of_numbers(part) else part).astype(kind)
            for part, kind in zip(parts, kinds, strict=True)
        )
        return parts if isinstance(result, tuple) else parts[0]

    def _first(self, fun: Any, element: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """What the function makes of the first cells, which it is asked to tell NumPy the kinds of all results."""

        def cell(place: Any, value: Any) -> Any:
            if place in fun.excluded:
                return value
            if not np.size(value):
                raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
            return np.ravel(value)[0]  # NumPy's, where those of the others are Python's

        return element(*itertools.starmap(cell, enumerate(args)), **{name: cell(name, kwargs[name]) for name in kwargs})

    def _one_by_one(self, fun: Any, inner: Any, args: Sequence[Any], kwargs: dict[str, Any], first: Any) -> Any:
        """The results for the cells of arrays in a loop, which may be rolled up; None where they are not all floats."""
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        asked = [place for place in given if place not in fun.excluded]
        arrays = {place: given[place] for place in asked if np.ndim(given[place])}
        given |= {place: given[place].item() for place in asked if not np.ndim(given[place]) and hasattr(given[place], "item")}
        shape = np.broadcast_shapes(*map(np.shape, arrays.values()))
        kinds = [np.dtype(kind) for kind in fun.otypes or ()]
        if kinds not in ([], [np.dtype(float)]) or not shape or 0 in shape or not self.trace.symbolic:
            return None
        columns = [np.ravel(np.broadcast_to(arg, shape)) for arg in arrays.values()]
        if any([column.dtype == object for column in columns]):
            return None

        def element(*cells: Any) -> Any:
            found = given | {place: cell.item() for place, cell in zip(arrays, cells, strict=True)}
            return self.call(inner, *[found.pop(i) for i in range(len(args))], **found)

        def number(*cells: Any) -> Any:
            found = element(*cells)
            return float(found) if type(found) in (int, bool) else found

        if not kinds and (np.ndim(first) or np.asarray(plain(first)).dtype != np.float64):
            return None
        each: Any = _each
        tables = [table(column, 1, self.trace.once) or column for column in columns]
        results = instrumented(each, Frame(self, each))(number, *tables)  # type: ignore[misc]
        if not create.is_of_numbers(results):
            return None
        return np.reshape(create.array(self.trace, results).astype(float), shape)

    def _call_getter(self, fun: Any, owner: Any) -> Any:
        """``operator.itemgetter``, ``attrgetter`` and ``methodcaller``, which cannot change."""
        path = self.path_of(fun)
        if path is not None:
            self.check(path, "is", fun)
        _, (first, *rest), *_ = fun.__reduce__()
        if isinstance(fun, operator.itemgetter):
            found = [self.item(owner, key) for key in (first, *rest)]
        elif isinstance(fun, operator.attrgetter):
            found = [functools.reduce(self.attribute, name.split("."), owner) for name in (first, *rest)]
        elif isinstance(first, str):
            return self.call(self.attribute(owner, first), *rest)
        else:
            return fun(*self._seen((owner,)))
        return tuple(found) if rest else found[0]

    def caller(self, fun: Any) -> Any:
        """The same for a call with ``*`` or ``**`` in it."""

        def follow(*args: Any, **kwargs: Any) -> Any:
            return self.call(fun, *args, **kwargs)

        for name in ("__module__", "__qualname__"):
            if isinstance(getattr(fun, name, None), str):
                setattr(follow, name, getattr(fun, name))
        return follow

    def decorator(self, fun: Any) -> Any:
        """What a function of the function's own is given to: one of the user's is followed."""
        return self.caller(fun) if isinstance(fun, FunctionType) and is_users(fun) else fun

    def _call_partial(self, fun: functools.partial[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inner, given, named = self._held_by(fun)
        return self.call(inner, *given, *args, **{**named, **kwargs})

    def _held_by(self, fun: functools.partial[Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The function that a partial has, and what it is given."""
        path, inner, given, named = self.path_of(fun), fun.func, fun.args, fun.keywords
        if path is not None:
            first, names = path.then("attr", "args"), path.then("attr", "keywords")
            self.check(first, "len", len(given))
            self.check(names, "keys", tuple(named))
            inner = self.read(path.then("attr", "func"), inner)
            given = tuple(self.read(first.then("item", i), a) for i, a in enumerate(given))
            named = {k: self.read(names.then("item", k), v) for k, v in named.items()}
        return inner, given, named

    def default(self, fun: Any, name: str, value: Any) -> Any:
        """A default argument by which a derivative is taken."""
        while isinstance(fun, MethodType):
            fun = fun.__func__
        if isinstance(fun, FunctionType):
            names = fun.__code__.co_varnames[: fun.__code__.co_argcount]
            if name in (fun.__kwdefaults__ or {}):
                path = self.home(fun).then("attr", "__kwdefaults__").then("item", name)
                return self._read_tree(self.read(path, value))
            if name in names:
                place = names.index(name) - len(names) + len(fun.__defaults__ or ())
                path = self.home(fun).then("attr", "__defaults__").then("default", (place, name))
                return self._read_tree(self.read(path, value))
        self.stop(f"the default of {name} is not followed")
        return value

    def _call_cached(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function with a cache: on plain arguments it is asked again at each call, as the plain function would."""
        path, inner = self.path_of(fun), fun.__wrapped__
        args, kwargs = self._out(args), self._out(kwargs)  # the cache keeps them
        if path is None and isinstance(inner, FunctionType) and HOOKS in inner.__code__.co_freevars:
            self.trace.writes.append(fun)
            return fun(*args, **kwargs)  # made by the traced function, as is what it calls
        if path is None or kwargs or not all(map(_is_plain, args)):
            self.stop(f"{getattr(fun, '__name__', fun)} has a cache, whose content is not followed")
            return fun(*args, **kwargs)
        self.filled_by(inner, f"{path!r} has a cache")
        most = fun.cache_info().maxsize
        self.check(path.then("attr", "cache_info").then("call", ()).then("attr", "maxsize"), "eq", most)
        if most is not None:
            self.check(path, "is", fun)
            self.check(Path(_is_full, (("call", (fun,)),)), "is", False)
            if _is_full(fun):
                self.stop(f"{path!r} has a cache that is full, and forgets one answer for the next")
                return fun(*args, **kwargs)
        return self.read(path.then("call", args), fun(*args))

    def check_caches(self) -> None:
        """Note, at the end of the run, whether what fills a cache may change what has been read, before that or after it."""
        names = {key for path in (*self.lifts, *[path for path, _ in self.checks]) for _, key in path.steps}
        containers = [one for one in self._keep if isinstance(one, CONTAINERS)]
        for reason, within in self.caches.items():
            if within.change(names, containers, [array for array, _ in self._arrays]):
                self.impure = self.impure or reason

    def inlined(self, fun: FunctionType) -> None:
        """A generator of which the statements stand in a loop over what it yields."""
        self.check(self.home(fun).then("attr", "__code__"), "is", fun.__code__)

    def _call_function(
        self,
        fun: FunctionType,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        lent: frozenset[tuple[str, str]] = frozenset(),
    ) -> Any:
        code = fun.__code__
        whole = needs_drafts(code) and (self.trace.drafts is None or all(map(_is_plain, (*args, *kwargs.values()))))
        if whole or is_library(code.co_filename):
            return self._call_library(fun, args, kwargs)
        if HOOKS in code.co_freevars:  # made by an instrumented function, and so instrumented itself
            return fun(*args, **kwargs)
        self.check(self.home(fun).then("attr", "__code__"), "is", code)
        arrays = tables.groups(self.trace.apart, code)
        sections = None if self.trace.sections is None else _lines_of(code, self.trace.sections)
        told = [one.line for one in self.trace.apart if type(one) is Varied]
        rooms = _lines_of(code, frozenset([*told, *[(one.file, one.line) for one in self.trace.apart if type(one) is Counted]]))
        stated = [one for one in self.trace.apart if type(one) is Stated and one.line[0] == code.co_filename]
        lines = _lines_of(code, frozenset([one.line for one in stated]))
        states = frozenset([(one.line[1], one.name, one.places) for one in stated if one.line[1] in lines])
        frame = Frame(self, fun, arrays)
        ended = stacks.stacks(self.trace.apart, code)
        inside = instrumented(fun, frame, False, sections, arrays, rooms, lent, states, ended)
        args, kwargs = self._with_defaults(fun, args, kwargs)
        if inside is None:
            self._shown_all()
            if not self.harmless(fun):
                self.stop(f"the source of {fun.__qualname__} is not at hand, so what it reads is not known")
            refuse_unfollowed(fun)
            self._handed(fun, (*args, *kwargs.values()))
            return self._joined(fun(*self._seen(args), **self._seen(kwargs)))
        return inside(*args, **kwargs)

    def _call_library(self, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        code = fun.__code__
        self._shown_to(*args, *kwargs.values())
        changes = fun.__name__ in MUTATORS and args and isinstance(args[0], CONTAINERS)
        if changes and (path := self.path_of(args[0])) is not None:
            self.saves(args[0])
            self.effect(f"{path!r}.{fun.__name__} changes something outside the function")
            return fun(args[0], *map(self.kept, args[1:]), **{name: self.kept(value) for name, value in kwargs.items()})
        if code.co_filename.startswith(OWN):  # it calls functions back through the trace
            return fun(*map(self.given, args), **{name: self.given(value) for name, value in kwargs.items()})
        if code is _MANAGER_CODE:
            wrapped = fun.__dict__["__wrapped__"]
            self.read(Path(fun, (("attr", "__wrapped__"),)), wrapped)
            started = self.call(wrapped, *args, **kwargs)
            return contextlib.contextmanager(lambda: started)()
        followed = standard.follow(self, fun, args, kwargs)
        if followed is not NotImplemented:
            return followed
        if fun is os.getenv or (getattr(fun, "__name__", "") == "get" and args and args[0] is os.environ):
            names = args if fun is os.getenv else args[1:]
            if not kwargs and all(type(name) in (str, int, float, type(None)) for name in names):
                return self.read(Path(os.getenv, (("call", names),)), os.getenv(*names))
        module = fun.__globals__.get("__name__") or ""
        package = module.split(".")[0]
        if (
            package == "warnings"
            and self.catching
            and fun.__name__ in ("simplefilter", "filterwarnings")
            and args[:1] == ("ignore",)
        ):
            self.silenced.add("all")
            return fun(*args, **kwargs)
        if package == "inspect":  # it looks at the very functions
            self._handed(fun, (*args, *kwargs.values()))
            for value in [getattr(arg, "__func__", arg) for arg in args]:
                for name in ("__defaults__", "__kwdefaults__", "__annotations__") if is_users(value) else ():
                    if getattr(value, name):
                        self.stop(f"inspect.{fun.__name__}() looks at {name} of {value.__name__}, which is not followed")
                    self.check(self.home(value).then("attr", name).then("true", None), "is", bool(getattr(value, name)))
            if any([isinstance(value, type) and is_users_class(value) for value in args]) and not fun.__name__.startswith("is"):
                self.stop(f"inspect.{fun.__name__}() looks into a class, which is not followed")
            if fun is inspect.getclosurevars:
                self.stop("inspect.getclosurevars() reads variables, which is not followed")
            return fun(*args, **kwargs)
        if package in ("logging", "warnings"):
            self.effect(f"{module}.{fun.__name__}() is called")
        if not is_pure(module) or (package == "numpy" and fun.__name__ in STATEFUL):
            self.stop(f"{module}.{fun.__name__}() is called, which may change or depend on anything")
            return fun(*args, **kwargs)
        if package == "scipy" and (module.startswith(_OF_SCIPYS_FILES) or _draws_anew(fun, args, kwargs)):
            self.stop(f"{module}.{fun.__name__}() is called, which asks a file, or draws random numbers")
        python = module.startswith("numpy.polynomial")  # which is followed as the user's is, and so counts as hidden
        if package in ("numpy", "functools") and (python or not hides(fun)):
            return self.own(fun, create.call(self.trace, fun, self._seen(args), self._seen(kwargs)), args)
        return self.own(fun, self._call_opaque(fun, args, kwargs), args)

    def _with_defaults(
        self, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with the defaults that it leaves out, as what they are: values from outside."""
        code, defaults = fun.__code__, fun.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        start = len(names) - len(defaults)
        given, found = list(args), {}
        if len(args) < len(names) and defaults:
            path = self.home(fun).then("attr", "__defaults__")
            self.check(path, "len", len(defaults))
            for i, value in enumerate(defaults):
                place, name = start + i, names[start + i]
                if place < len(args) or (name in kwargs and place >= code.co_posonlyargcount):
                    continue
                if place >= code.co_posonlyargcount:
                    found[name] = self.read(path.then("default", (i, name)), value)
                elif place == len(given):
                    given.append(self.read(path.then("default", (i, name)), value))
        only = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        for name, value in (fun.__kwdefaults__ or {}).items():
            if name in only and name not in kwargs:
                found[name] = self.read(self.home(fun).then("attr", "__kwdefaults__").then("item", name), value)
        return tuple(given), {**found, **kwargs}

    def matmul(self, left: Any, right: Any) -> Any:
        """``left @ right``."""
        if of_sparse(left, right):
            return sparse_product(self.given(left), self.given(right))
        return self.operand(left) @ self.operand(right)

    def operand(self, value: Any) -> Any:
        """One side of an operator: an object with operators of its own as what has them followed."""
        kind = type(value)
        if kind in (list, tuple):
            return self.deep(value, asked=_OF_OPERANDS)
        if kind in QUICK or isinstance(value, (Traced, *PLAIN, *CONTAINERS, np.ndarray)):
            return self.whole(value)
        return Operand(self, value) if own_ways(kind) & OPERATORS.keys() else self.whole(value)

    def operated(self, apply: Any, name: str, operands: tuple[Any, ...]) -> Any:
        """What an operator makes of operands of which one is an object, in the order in which Python asks them."""
        operands = tuple([item.value if type(item) is Operand else item for item in operands])
        kinds = list(map(type, operands))
        sides = [(kinds[0], f"__{name}__", operands)]
        if len(operands) > 1 and kinds[0] is not kinds[1]:
            back = (kinds[1], f"__r{name}__", operands[::-1])
            first = issubclass(kinds[1], kinds[0]) and of_class(kinds[1], back[1]) is not of_class(kinds[0], back[1])
            sides.insert(0 if first else 1, back)
        for kind, way, (owner, *others) in sides:
            fun, follows = of_class(kind, way), is_users_class(kind)
            if fun is None:
                continue
            if follows and not isinstance(fun, FunctionType):
                break
            made = self.call(self.special(kind, way), owner, *others) if follows else fun(owner, *others)
            if made is not NotImplemented and not follows:
                self._operands(others)  # C code has asked them itself
            if made is not NotImplemented:
                return made
        self._operands(operands)
        return apply(*operands)

    def _sparse(self, value: Any) -> Any:
        """A sparse array from outside, as what stands for it is read."""
        if value.format not in ("csr", "csc"):
            self.stop(f"{self.path_of(value)!r} has the format {value.format}; csr and csc are followed")
            return value
        names = ("data", "indices", "indptr", "shape", "format")
        return types.SimpleNamespace(**{name: self.attribute(value, name) for name in names})

    def given(self, value: Any, depth: int = 0) -> Any:
        """A tree of arguments for symgrad itself: what is from outside is read."""
        if isinstance(value, CONTAINERS):
            value = self.deep(value)
            if type(value) in (list, tuple):
                return type(value)([self.given(item, depth + 1) for item in value])
            return {key: self.given(item, depth + 1) for key, item in value.items()} if type(value) is dict else value
        path = self.path_of(value)
        if path is not None and is_sparse(value):
            return self._sparse(value)
        if path is not None and isinstance(value, Holding):
            made: Any = object.__new__(type(value))
            for name, item in vars(value).items():
                vars(made)[name] = self.given(self.read(path.then("attr", name), item))
            return made
        if path is not None and module_of(type(value)).startswith("symgrad."):  # what it holds is not followed
            self.check(path, "is", value)
        if depth > DEEPEST or isinstance(value, type) or not dataclasses.is_dataclass(value):
            return value
        return self._record(value, lambda item: self.given(item, depth + 1))

    def _record(self, value: Any, follow: Callable[[Any], Any]) -> Any:
        """An object of a dataclass with what ``follow`` makes of its fields, which are read if it is from outside."""
        path = self.path_of(value)
        old = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        new = old if path is None else {name: self.read(path.then("attr", name), item) for name, item in old.items()}
        new = {name: follow(item) for name, item in new.items()}
        if path is None and all([new[name] is old[name] for name in old]):
            return value
        made = copy.copy(value)
        for name, item in new.items():
            object.__setattr__(made, name, item)
        return made

    # ---- functions that are not followed ----

    def harmless(self, fun: Any) -> bool:
        """Whether a function without source reads nothing but its arguments, constants, builtins and libraries.

        What it reads is guarded.
        """
        if not isinstance(fun, FunctionType) or HOOKS in fun.__code__.co_freevars:  # that sees what it reads
            return True
        known = self._harmless_kinds.get(fun)
        if known is None:
            self._harmless_kinds[fun] = True  # it may call itself
            self.check(self.home(fun).then("attr", "__code__"), "is", fun.__code__)
            cells = list(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
            names = names_in(fun.__code__)
            known = all([self._steady(cell.cell_contents, self.variable(fun, name), names) for name, cell in cells])
            variables = variables_in(fun.__code__)
            known = known and all([name not in IMPURE_NAMES for name in names - variables])
            known = known and all([self._constant(fun, name, names) for name in variables])
            known = known and self._steady_defaults(fun, names)
            imported = {name: sys.modules.get(name) for name in modules_in(fun.__code__)}
            places = Path(sys, (("attr", "modules"),))
            known = known and all([self._steady(found, places.then("item", name), names) for name, found in imported.items()])
            self._harmless_kinds[fun] = known
        return known

    def _steady_defaults(self, fun: FunctionType, names: set[str]) -> bool:
        """The same of what stands for arguments that calls leave out."""
        home, given, named = self.home(fun), fun.__defaults__ or (), fun.__kwdefaults__ or {}
        places, keys = home.then("attr", "__defaults__"), home.then("attr", "__kwdefaults__")
        if given:
            self.check(places, "len", len(given))
        if named:
            self.check(keys, "keys", tuple(named))
        found = [(value, places.then("item", i)) for i, value in enumerate(given)]
        found += [(value, keys.then("item", name)) for name, value in named.items()]
        return all([self._steady(value, path, names) for value, path in found])

    def _constant(self, fun: FunctionType, name: str, names: set[str]) -> bool:
        path = Path(fun.__globals__, (("item", name),))
        if name not in fun.__globals__:
            if name in IMPURE_NAMES:
                return False
            space = _builtins_of(fun)
            if name in space and _is_pythons(space[name]):
                self.check(Path(fun.__globals__, (("name", name),)), "is", space[name])
                return True
            self.check(Path(fun.__globals__, (("in", name),)), "is", False)
            return name not in space or self._steady(space[name], Path(space, path.steps), names)
        return self._steady(fun.__globals__[name], path, names)

    def _steady(self, value: Any, path: Path, names: set[str]) -> bool:
        """Whether a value, of which at most these attributes are read, stays what it is while it is the same.

        That it is the same is guarded.
        """
        if isinstance(value, ModuleType):
            self.check(path, "is", value)
            for name in names & vars(value).keys():  # somebody may put another in its place
                self.check(Path(value, (("attr", name),)), "is", vars(value)[name])
            return is_library_module(value) and is_pure(value.__name__)
        if isinstance(value, PLAIN) and not own_ways(type(value)):
            self.read(path, value) if value is None or isinstance(value, (bool, enum.Enum)) else self.check(path, "eq", value)
            return True
        if value is standard.FACTORY:
            return True
        if isinstance(value, (np.ufunc, BuiltinFunctionType)):
            self.check(path, "is", value)
            return getattr(value, "__name__", "") not in IMPURE_NAMES
        if isinstance(value, FunctionType):
            self.check(path, "is", value)
            if names & (value.__dict__.keys() | _OF_FUNCTIONS | BY_NAME if is_users(value) else value.__dict__.keys()):
                return False
            return not hides(value) if is_library(value.__code__.co_filename) else self.harmless(value)
        if isinstance(value, type):
            self.check(path, "is", value)
            if not names.isdisjoint({"__dict__", *BY_NAME}) and is_users_class(value):  # it may read any
                return False
            return self._steady_class(value, names) and self._steady_class(type(value), names)
        return False

    def is_harmless_way(self, kind: type, *names: str) -> bool:
        """Whether special methods of a class, and what of the class they reach by name, read nothing else from outside."""
        waiting, known = {"__init__", "__post_init__", *names}, set()
        while waiting:
            name = waiting.pop()
            home = next((base for base in kind.__mro__ if name in base.__dict__), None)
            if name not in known and home is not None and is_users_class(home):
                known.add(name)
                if not self._steady_item(kind, name, home):
                    return False
                waiting |= names_of(home.__dict__[name])
        return True

    def has_steady_setters(self, kind: type) -> bool:
        """Whether what is called where such an object is assigned something, or loses it, reads nothing from outside."""
        found = setters(kind)
        if not found:
            return True
        names = set[str]().union(*map(names_of, found))
        for base in filter(is_users_class, kind.__mro__):
            for name, item in vars(base).items():
                sets = is_users(of_class(type(item), "__set__")) or is_users(of_class(type(item), "__delete__"))
                if sets and not self._steady_descriptor(item, Path(base, (("attr", "__dict__"), ("item", name)))):
                    return False
        return all(map(self.harmless, found)) and self.is_harmless_way(kind, *names)

    def _steady_class(self, kind: type, names: set[str]) -> bool:
        """Whether the methods of a class and of its bases are harmless, and so is what else of them is read."""
        bases = [base for base in kind.__mro__ if is_users_class(base)]
        methods = [(name, item) for base in bases for name, item in vars(base).items() if isinstance(item, FunctionType)]
        names = names.union(*[{name, *names_of(item)} for name, item in methods])
        found = [(name, base) for base in bases for name in vars(base) if name in names]
        homes = [kind if vars(base)[name] is of_class(kind, name) else base for name, base in found]
        return all([self._steady_item(home, name, base) for home, (name, base) in zip(homes, found, strict=True)])

    def _steady_item(self, kind: type, name: str, home: type) -> bool:
        """Whether what a class has under this name, by the class ``home``, reads nothing from outside; it is guarded."""
        item = home.__dict__[name]
        if isinstance(item, (types.MemberDescriptorType, types.GetSetDescriptorType)):  # a slot, or ``__dict__``
            return True
        if isinstance(item, PLAIN) and not own_ways(type(item)):
            self.check(Path(kind, (("attr", name),)), "eq", item)
            return True
        place = Path(home, (("attr", "__dict__"), ("item", name)))
        if is_users(of_class(type(item), "__get__")):
            return self._steady_descriptor(item, place)
        if isinstance(item, (staticmethod, classmethod)):  # a class gives what they make of their functions
            self.check(place, "is", item)
        else:
            self.check(Path(kind, (("attr", name),)), "is", item)
        functions = functions_of(item)
        return standard.reads_fields(item) or (bool(functions) and all(map(self.harmless, functions)))

    def _steady_descriptor(self, item: Any, place: Path) -> bool:
        """Whether a descriptor of the user's, found at ``place``, holds nothing that changes, and its methods are harmless."""
        self.check(place, "is", item)
        kind = type(item)
        ways = [name for name in ("__get__", "__set__", "__delete__") if is_users(of_class(kind, name))]
        names = set[str]().union(*[names_of(of_class(kind, name)) for name in ways])
        held = getattr(item, "__dict__", {})
        return self.is_harmless_way(kind, *ways) and all(
            [self._steady(held[key], place.then("attr", key), names) for key in held]
        )

    def _call_opaque(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function whose inside is not followed: it must not see objects from outside that can change."""
        self._shown_to(*args, *kwargs.values())
        if self.draws.own is not None and any(map(draws.is_generator, (*args, *kwargs.values()))):
            self.draws.own.passes()
        self._handed(fun, (*args, *kwargs.values()))
        if isinstance(fun, FunctionType) and is_library(fun.__code__.co_filename) and hides(fun):
            self.stop(f"{fun.__name__} calls functions of yours that are not followed")
        args, kwargs = self._seen(args), self._seen(self._named(kwargs))
        module = home_of(fun)
        if module != "copy" and not (module == "heapq" and "key" in kwargs):
            args, kwargs = self._asked(args), self._asked(kwargs)
        if module != "heapq":  # which asks for nothing but the order
            for value in (*args, *kwargs.values()):
                self._opened(fun, value, DEEPEST if fun is copy.copy else 0)  # it keeps what is in it
        if module.split(".")[0] == "scipy" and (made := of_values(self.trace, fun, args, kwargs)) is not NotImplemented:
            return made
        return self._hand(fun, args, kwargs, inside=True)

    def _hand(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], inside: bool = False) -> Any:
        """A call that sees arrays from outside themselves, and may write to them."""
        result = self._on_copies(fun, args, kwargs, inside)
        for array, tracer in list(self._arrays):
            if not same_value(array, tracer.value) and self.writes_to(tracer):
                self.trace.look_again(tracer)
        return result

    def _on_copies(self, fun: Any, args: Sequence[Any], kwargs: dict[str, Any], inside: bool = True) -> Any:
        """A call that sees copies of the trace's own arrays; what it writes into them is written.

        ``inside``: it sees containers without Tracers in them, too; else the containers themselves.
        """
        lent: list[tuple[Tracer, Any]] = []

        def out(value: Any) -> Any:
            return self._out(value, lent) if inside or type(value) is Tracer else value

        result = fun(*map(out, args), **{name: out(value) for name, value in kwargs.items()})
        for tracer, array in lent:
            if not same_value(array, tracer.value):
                tracer.assign(self.trace.lookup(self.trace.constant(array)[0]), "this call")
        return result

    def _handed(self, fun: Any, values: tuple[Any, ...]) -> None:
        for value in values:
            self.beside(value, "__dict__")
            path = self.path_of(value)
            if path is not None and is_made_anew(value):
                self.check(path, "is", value)
            elif path is not None and not isinstance(value, (*CONTAINERS, *FUNCTIONS, type, ModuleType, np.ndarray)):
                self.stop(f"{path!r} is handed to {getattr(fun, '__name__', fun)}, which is not followed")

    def _opened(self, fun: Any, value: Any, depth: int = 0) -> None:
        """What code that is not followed may find in what it is given, and in that: objects from outside are no constants."""
        if type(value) in QUICK or depth > DEEPEST:
            return
        self.beside(value, "__dict__")
        if isinstance(value, HOLDING):
            for item in held_in(value):
                self._opened(fun, item, depth + 1)
        elif isinstance(value, PLAIN):
            self._operand(value)
        elif self.path_of(value) is not None:
            self._handed(fun, (value,))
        elif is_object(value):
            kind = type(value)
            ways = [name for base in kind.__mro__ for name, item in vars(base).items() if name[:2] == "__" and is_users(item)]
            if not self.is_harmless_way(kind, *ways):
                self.stop(f"a {kind.__name__} is handed to {getattr(fun, '__name__', fun)}, and its methods read from outside")
            self._opened(fun, attributes(value), depth + 1)

    def _construct(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new object: the user's ``__init__`` is followed too."""
        if kind is _PARTIAL and args and is_partial(args[0]):  # it takes what that holds, and not the very object
            inner, given, named = self._held_by(args[0])
            return _PARTIAL(inner, *given, *args[1:], **{**named, **kwargs})
        if kind is _PARTIAL:
            return _PARTIAL(*args, **kwargs)
        if weakref.ref in kind.__mro__:
            return kind(*args, **kwargs)  # of the very object
        if kind is type and len(args) == 1:
            self.asks_kind(args[0], lambda kind: kind)
            return type(args[0].like if type(args[0]) is Tracer else args[0])
        if kind is str:
            args = tuple(map(self.shown, args))
        elif kind is map and args:
            args = (self.caller(args[0]), *args[1:])
        elif issubclass(kind, Holding) and not is_users_class(kind):
            return kind(*map(self.given, args), **{name: self.given(value) for name, value in kwargs.items()})
        setup, maker = of_class(kind, "__init__"), of_class(kind, "__new__")
        if is_users_class(kind):
            if not is_users(setup):
                self._guard_ways(kind, "__init__", "__new__")
            if not self.harmless(getattr(maker, "__func__", maker)) or is_users(of_class(type(kind), "__call__")):
                self.stop(f"the making of a {kind.__name__} is not followed")
            elif type(kind) in (type, abc.ABCMeta) and maker is object.__dict__["__new__"] and is_users(setup):
                self.check(Path(kind, (("attr", "__init__"),)), "is", setup)
                made: Any = object.__new__(kind)
                if standard.is_generated(kind):
                    standard.initialize(self, made, args, kwargs)
                    stacks.adopt(self.trace, made)
                else:
                    self.call(setup, made, *args, **kwargs)
                return made
            elif is_users(setup) and not self.harmless(setup):
                self.stop(f"{kind.__name__}.__init__ is not followed")
            elif is_users(setup) or is_users(getattr(maker, "__func__", maker)):
                self._handed(kind, (*args, *kwargs.values()))
        elif kind is np.ndarray and len(args) <= 2 and kwargs.keys() <= {"shape", "dtype"}:
            return self.call(np.empty, *args, **kwargs)  # without a buffer, it is the same
        elif kind is warnings.catch_warnings and not args and not kwargs:
            return kind()
        elif issubclass(kind, np.errstate) and set(kwargs.values()) <= {"ignore", "warn"} and not args:
            self.silenced |= {name for name, value in kwargs.items() if value == "ignore"}
        elif issubclass(kind, np.errstate):
            self.stop("np.errstate makes NumPy do something about errors, and compiled code would not")
        elif kind is np.datetime64 and args and type(args[0]) is str and args[0].lower() in ("now", "today"):
            self.stop("the time is asked for")
        elif module_of(kind).startswith("scipy.stats") and _draws_anew(kind, args, kwargs):
            self.stop(f"a {kind.__name__} is made, which draws random numbers")
        elif issubclass(kind, _OF_FILES):
            self.stop(f"a {kind.__name__} is made, which reads or changes a file")
        elif not is_pure(module_of(kind)) and module_of(kind) not in ("datetime", "pathlib", "symgrad"):
            self.stop(f"{module_of(kind)}.{kind.__name__} is made, which may depend on anything")
        elif kind is itertools.starmap and len(args) == 2 and not kwargs:
            fun, items = args
            return (self.call(fun, *self.iterate(given)) for given in self._one_seen(self.coming(items, deep=True)))
        elif kind is contextlib.closing:
            return kind(*args, **kwargs)  # it only holds what it is given
        elif any([kind is one for one in _SHOWING]) and any([self.path_of(arg) is not None for arg in args]):
            self.stop(
                f"a {kind.__name__} shows what is in {next(filter(None, map(self.path_of, args)))!r}, which is not followed"
            )
            return kind(*args, **kwargs)
        if issubclass(kind, Iterator) and kind is not map:
            args = tuple(map(self._follows, args))
        if kind is itertools.chain:
            args = tuple(map(self._later, args))
        elif kind in _LAZY:
            given, args = args, tuple([self.coming(arg, kind is reversed, deep=True) for arg in args])
            if kind is reversed and args and args[0] is not given[0]:
                return args[0]
        holds = _only_holds(kind, (*args, kwargs.get("key"), kwargs.get("func")))
        asked = UNASKED if holds else None
        args, kwargs = self._seen(args, asked), self._seen(self._named(kwargs), asked)
        if issubclass(kind, dict) and not issubclass(kind, collections.Counter):
            args = tuple(map(self._entries, args))
        elif not holds:
            args, kwargs = self._asked(args), self._asked(kwargs)
        if is_number(kind, args):
            return create.scalar(args[0], kind)
        opaque = module_of(kind) not in _TRANSPARENT and not issubclass(kind, (np.generic, tuple))
        if opaque or reads_memory(kind):
            return kind(*self._out(args), **self._out(kwargs))
        if issubclass(kind, _OF_INTS):
            args, kwargs = tuple(map(_counted, args)), {key: _counted(value) for key, value in kwargs.items()}
        return self._plainly(kind, args, kwargs)

    def _later(self, value: Any) -> Any:
        """What is iterated over when others are at their end."""
        yield from (self._one_seen(value) if (made := self.coming(value, deep=True)) is value else made)

    def _plainly(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A pure function in C: of plain values, all of which are guarded, an exception is to be foreseen."""
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            if not create.contains_traced([*args, *kwargs.values()]):
                self.foreseen.append(error)
            raise

    def _out(self, value: Any, lent: list[tuple[Tracer, Any]] | None = None) -> Any:
        """Numbers and arrays from outside as they are, for code that takes no others; their content is guarded.

        The trace's own arrays must not be written to; copies of them may be, if they are ``lent``, which keeps a list of those.
        """
        if type(value) in (list, tuple, dict):
            old = list(value.values()) if type(value) is dict else list(value)
            new = [self._out(item, lent) for item in old]
            if all(map(operator.is_, old, new)):
                return value  # what is written into it is written into the very object
            return dict(zip(value, new, strict=True)) if type(value) is dict else type(value)(new)
        if type(value) is FunctionType and value.__code__ is _ANSWERING:
            return _then(self._out, value)
        if isinstance(value, Iterator) and module_of(type(value)) in ("builtins", "itertools"):
            return map(self._out, value)
        if type(value) is not Tracer or value.node.differentiated:
            return value
        if value.tape.draft:
            return value.tape.draft.lend(value)
        path = dict(value.node.params).get("position")
        if value.node.op is not INPUT or not isinstance(path, Path) or np.ndim(value.value) == 0:
            found = value.leave()
        else:
            found = unwritable(value.value)
            if found.nbytes > MAX_BYTES:
                self.stop(f"{path!r} is handed to code that is not followed, and too large to be compared at every call")
            else:
                self.check(path, "array", value.value)
        real = self._real(value)
        if real is not None:
            return real
        if lent is None or type(found) is not np.ndarray:
            return found
        known = next((array for tracer, array in lent if tracer is value), None)  # it may be read, and written into
        if known is None:
            known = found.copy("K")
            lent.append((value, known))
        return known

    def _converted(self, fun: Any, x: Tracer) -> Any:
        """What makes one of Python's numbers of a traced value; None for other functions."""
        if fun is float:
            return self._float(x)
        if fun is int:
            return None if np.ndim(x.like) else self._int(x)
        whole: Any = _WHOLE.get(fun) if type(fun) is BuiltinFunctionType else None
        return self._int(whole(x)) if whole is not None and isinstance(x.like, (float, np.floating)) else None

    def _int(self, x: Tracer) -> Any:
        """``int(x)``, a number that nobody has looked at yet."""
        if not x.node.active or x.node.aval.dtype.kind not in "fiub" or self.trace.lanes:
            return int(x)
        found = self.trace.record(INT, (x,), {})
        if not self.trace.iterates:
            self.trace.required.append(found.node)  # there is none of NaN
        return found

    def _float(self, x: Tracer) -> Any:
        """``float(x)``, where no derivative can be lost."""
        return self.trace.record(TO_FLOAT, (x,), {}) if self._is_settled(x) else float(x)

    def _of_number(self, fun: Any, args: tuple[Any, ...]) -> Any:
        """What a function of ``math``'s gives for numbers, where no derivative can be lost; None if it has to look at them."""
        traced = [arg for arg in args if type(arg) is Tracer]
        known = traced and all([type(arg) in (Tracer, float, int, bool) for arg in args]) and all(map(self._is_settled, traced))
        if not known or not standard.gives_number(fun):
            return None
        made = self.trace.record(standard.of_number(fun), args, {})
        if not self.trace.iterates:
            self.trace.required.append(made.node)  # there may be none
        return made

    def _is_settled(self, x: Tracer) -> bool:
        """Whether it is a number that nothing is differentiated by, but which may be another one at the next call, or in the
        next iteration of a loop."""
        if x.node.differentiated or np.shape(x.like) or x.node.aval.dtype.kind not in "biuf" or self.trace.lanes:
            return False
        return x.node.active or self.trace.goes_far(x.node) or self.trace.turn([x.node])

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
        if fun in (isinstance, issubclass) and len(args) == 2:
            return self._belongs(fun, *args)
        if fun is callable:
            return fun(*args)
        if fun is operator.call and args:
            return self.call(*args, **kwargs)
        if fun in _TO_TEXT:
            args = tuple(map(self.shown, args))
        if fun is iter and len(args) == 1:
            return iter(self.run_over(args[0]))
        if fun is itertools.tee and args:
            args = (self.coming(args[0], deep=True), *args[1:])
        if fun in _OPERATING:
            sides = [*map(self.operand, args)]
            if any([type(side) is Operand for side in sides]):
                return fun(*sides, **kwargs)
        if fun is pow and len(args) == 3:
            args = tuple(map(_counted, args))
        module = home_of(fun)
        if (told := standard.asked(fun, args, kwargs)) is not None:
            return told
        if module == "math" and not kwargs and (made := self._of_number(fun, args)) is not None:
            return made
        if fun is next:
            if self.path_of(args[0]) is not None:
                self.stop(f"the iterator {self.path_of(args[0])!r} is consumed")
            self._operand(args[0])
            return self._plainly(fun, args, kwargs)
        if fun is __import__ and args and type(args[0]) is str:
            self.module(args[0])
        if fun in IMPURE_BUILTINS:
            outside = fun not in (setattr, delattr) or self.path_of(args[0]) is not None
            if fun is id:
                if type(args[0]) is Tracer:
                    args[0].tell_apart()
                    self.trace.names_matter()
                self.stop("id() is called")
                place = self._place(args[0])
                args = (self.original(args[0]) if place is None else place.find(self.leaves),)
            elif outside:
                self.effect(f"{name}() is called")
                args = tuple(map(self.kept, args))
            else:
                self.wrote_into(args[0])
            return fun(*args, **kwargs)
        if fun in _IN_ORDER and not kwargs and self.path_of(args[0]) is None:
            self.wrote_into(args[0])
            args = (args[0], *map(self.deep, args[1:]))
            self._operands(args)
            return fun(*args)
        if (not is_pure(module) and fun not in _BISECTING) or fun in _OF_CONTEXTS:
            self.stop(f"{module}.{name}() is called, which may change or depend on anything")
            return self._hand(fun, args, kwargs)
        if fun in COMPARING:
            if fun in COMPARING[:2] and len(args) == 2:
                return self.is_one(*args) is (fun is operator.is_)
            args = tuple([self.searched(arg) if isinstance(arg, Iterator) else self.compared(arg) for arg in args])
            return fun(*args, **kwargs)
        if module == "_operator" and (name in ("setitem", "delitem") or (name[0] == "i" and hasattr(operator, name[1:]))):
            owner, *others = args
            self.wrote_into(owner)
            if self.path_of(owner) is not None:
                return fun(*[self.stored(arg, owner) for arg in args])
            if name == "setitem" and type(others[0]) is slice:
                owner = self.spliced(owner)
            elif name not in ("setitem", "delitem"):
                others = list(map(self.whole, others))
            return fun(self.changed(owner), *others)
        if fun is np.fromiter and args:
            args = (create.come(*args, call=self.call, **kwargs), *args[1:])
        args, kwargs = self._seen(args), self._seen(self._named(kwargs))
        if reads_memory(fun):
            return fun(*self._out(args), **self._out(kwargs))
        if "key" not in kwargs:
            args, kwargs = self._asked(args), self._asked(kwargs)
        if fun in (min, max, sorted) and args:
            args, kwargs, found = self._ordered(fun, args, kwargs)
            if found is not None:
                return found
        made = create.call(self.trace, fun, args, kwargs) if fun in create.ARRAYS else self._plainly(fun, args, kwargs)
        return self.own(fun, made, args)

    def _ordered(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        """What ``min``, ``max`` or ``sorted`` finds, where that needs no branch, else None, after the arguments that it has
        then: an iterator is at its end, and ``key`` has been asked."""
        items: Any = args
        if len(args) == 1:
            items = args[0] if type(args[0]) in (list, tuple, np.ndarray) else self._plainly(list, args, {})
            args = (items,)
        key, reverse = kwargs.get("key"), kwargs.get("reverse", False)
        if not len(items) or type(items) is np.ndarray or type(reverse) is not bool:
            return args, kwargs, None
        keys = items
        if key is not None:
            keys = [key(item) for item in items]
            known = iter(keys)
            kwargs = {**kwargs, "key": lambda _: next(known)}
        if fun is sorted:
            return args, kwargs, ordering.ordered(self.trace, items, keys, reverse)
        return args, kwargs, ordering.extreme(self.trace, fun, items, keys)

    def _sort(self, owner: Any, kwargs: dict[str, Any]) -> None:
        """``owner.sort(...)``."""
        if "key" not in kwargs:
            self._operands(owner)
        kwargs = {name: self._called_back(value) for name, value in self._named(kwargs).items()}
        args, kwargs, found = self._ordered(sorted, (owner[:],), kwargs)
        owner[:] = sorted(*args, **kwargs) if found is None else found

    def _call_method(self, fun: Any, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A method written in C."""
        args = self.trace.as_written(name, args)
        if id(owner) in self._views and name in ("__iter__", "__reversed__"):
            return self.coming(owner, name != "__iter__")
        if (now := self.viewed(owner)) is not owner:
            return self._call_method(getattr(now, name), now, name, args, kwargs)
        path = self.path_of(owner)
        if isinstance(owner, Traced):
            return fun(*self._seen(args), **self._seen(kwargs))
        if isinstance(owner, np.ufunc):
            return self._call_numpy(fun, owner, args, kwargs)
        if module_of(type(owner)) == "random":
            self.stop(f"random numbers are drawn ({name})")
            return self._hand(fun, args, kwargs)
        elif isinstance(owner, str) and name in ("format", "format_map"):
            if any([field and not field.isalnum() for _, field, *_ in string.Formatter().parse(owner)]):  # of what it is given
                self._opened(fun, [*args, kwargs])
            args, kwargs = tuple(map(self.shown, args)), {key: self.shown(value) for key, value in kwargs.items()}
        elif isinstance(owner, np.ndarray) and name in ("__str__", "__repr__", "__format__"):
            self.shown(owner)
        elif name == "astype" and (joined := self._joined(owner)) is not owner:  # what np.frompyfunc makes, as numbers
            return joined.astype(*args, **kwargs)
        elif name == "__getattribute__" and len(args) == 1:
            if not is_users(of_class(type(owner), "__getattribute__")) and not is_users(of_class(type(owner), "__getattr__")):
                return self.attribute(owner, *args)
            self.stop(f"__getattribute__ of a {type(owner).__name__} is called, past its own ways")
        elif owner is itertools.chain and len(args) == 1:  # from_iterable
            return fun(map(self.run_over, self.run_over(*args)))
        elif isinstance(owner, type):
            if name in ("now", "today", "utcnow"):
                self.stop(f"{owner.__name__}.{name}() is called")
            if name in _OF_TYPES:
                self.stop(f"{owner.__name__}.{name}() is called, which asks what no call looks at again")
        elif isinstance(owner, CACHED):
            self.stop(f"{name}() of {owner.__name__} is called, whose cache is not followed")
        elif isinstance(owner, Iterator) and path is not None:
            self.stop(f"the iterator {path!r} is consumed")
        elif isinstance(owner, Iterator):
            self.uses(owner)
        elif isinstance(owner, np.ndarray):
            if name in ("tofile", "dump"):
                self.effect(f"{name}() writes an array to a file")
            place = place_of_out(getattr(np, name, None)) - 1  # of a method, which has its array already
            self.wrote_arrays([owner] if name in _WRITING else args[place : place + 1], kwargs.get("out"))
        elif path is None and name in ("__setattr__", "__delattr__"):  # of ``super()``
            self.wrote_into(owner)
            return fun(*args)
        elif path is None and name in MUTATORS and not isinstance(owner, CONTAINERS):
            self.trace.writes.append(owner)
        elif not isinstance(owner, PURE_RECEIVERS) and (
            module_of(type(owner)) not in ("re", "builtins", "functools")
            or (path is not None and type(owner) is not re.Pattern)
        ):
            self.stop(f"{type(owner).__name__}.{name} is called, which may change or depend on anything")
            self.wrote_memory(owner)
        elif isinstance(owner, CONTAINERS):
            if name in MUTATORS:
                self.changes_container(owner)
            if path is None:  # what it keeps are the very objects
                if name in MUTATORS:
                    self.trace.writes.append(owner)
                if name == "__getitem__" and "__missing__" in own_ways(type(owner)):
                    self._operand(owner)
                if name in _FINDING and not (name == "pop" and isinstance(owner, list)):  # of an item at a place
                    self._operands([owner, *args])
                    self.itself([owner, *args])
                if name == "sort" and not args and not own_ways(type(owner)):
                    return self._sort(owner, kwargs)
                if name in _KEEPING and name != "__setitem__" and not kwargs:  # of a slice, that asks for items
                    pending = self.pending(owner) if name == "append" and type(owner) is list else None
                    if pending is not None:
                        pending.is_resumed = True
                    elif type(owner) is list:
                        self.listed(owner)
                    kept, loop = fun(*self._kept_in(owner, name, args)), self.trace.innermost_loop()
                    if name == "append" and type(owner) is list and loop is not None:
                        loop.takes(owner)
                    return kept
                args = self._kept_in(owner, name, args)
                keys = {key: self._called_back(value) for key, value in self._named(kwargs).items()}
                return fun(*[a if isinstance(a, FunctionType) else self.deep(a) for a in args], **keys)
            if name == "append" and type(owner) in (list, collections.deque) and len(args) == 1 and not kwargs:
                return self.append(path, owner, args[0])
            if name in MUTATORS:
                self.saves(owner)
                self.effect(f"{path!r}.{name} changes something outside the function")
                return fun(*map(self.kept, args), **{key: self.kept(value) for key, value in kwargs.items()})
            elif name == "get" and isinstance(owner, dict) and args and not own_ways(type(owner)):
                return self.item(owner, args[0]) if self.within(args[0], owner) else fun(*args)
            elif isinstance(owner, (dict, set, frozenset)) and name == "__contains__" and not own_ways(type(owner)):
                return self.within(args[0], owner)
            elif name in _FINDING:
                return _bound_to(self.itself(self.deep(owner)), fun)(*map(self.compared, args), **kwargs)
            else:
                if name in ("__iter__", "__reversed__") and (made := self.coming(owner, name != "__iter__")) is not owner:
                    return made
                copy = self.deep(owner)
                found = _bound_to(copy, fun)(*self._seen(args), **self._seen(kwargs))
                return self.view_of(owner, found) if isinstance(found, VIEWS) and copy is not owner else found
        args, kwargs = self._asked(self._seen(args)), self._asked(self._seen(self._named(kwargs)))
        return self.own(fun, self._plainly(fun, args, kwargs), args)

    def _kept_in(self, owner: Any, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a method of a container is given, which keeps some of it, and asks the rest for places, items and hashes."""
        if name in _KEEPING:
            self._operands(args[: _KEEPING[name]])
            return args
        if isinstance(owner, dict) and name == "update":
            return tuple(map(self._entries, args))
        if isinstance(owner, (list, collections.deque)) and name in _EXTENDING:
            return tuple([self.changed(self.runs_through(value) if name[:2] != "__" else value) for value in args])
        return tuple(map(self._one_asked, args))

    def _getattr(self, owner: Any, name: str, *default: Any) -> Any:
        if default and not self._hasattr(owner, name):
            return default[0]
        return self.attribute(owner, name)

    def _belongs(self, fun: Any, value: Any, kinds: Any) -> bool:
        """``isinstance(value, kinds)`` or ``issubclass(value, kinds)``, where classes may have their own word in it."""
        if isinstance(kinds, tuple):
            return any([self._belongs(fun, value, kind) for kind in self.deep(kinds)])
        own = of_class(type(kinds), "__instancecheck__" if fun is isinstance else "__subclasscheck__")
        if is_users(own):
            exact = fun is isinstance and type(value) is kinds
            return exact or bool(self.test(self.call(own, kinds, value)))
        found: bool = fun(value.like if type(value) is Tracer and fun is isinstance else value, kinds)
        if fun is isinstance:
            self.asks_kind(value, functools.partial(_is_of, kinds))
        if isinstance(kinds, abc.ABCMeta) and is_users_class(kinds):  # others may be registered
            kind = value if fun is issubclass else type(value.like) if type(value) is Tracer else type(value)
            self.check(Path(_is_of, (("call", (kinds, kind)),)), "is", _is_of(kinds, kind))
            if fun is isinstance and getattr(kinds, "_is_protocol", False):  # which may ask for what the value has itself
                for name in {name for base in kinds.__mro__ for name in vars(base).get("__annotations__", ())}:
                    self._hasattr(value, name)
        return found

    def _hasattr(self, owner: Any, name: str) -> bool:
        if type(owner) is super:
            return self.further_up(owner, name) is not None
        path, kind = self.path_of(owner), type(owner)
        if path is None and is_users_class(kind) and not isinstance(owner, (type, ModuleType)):
            try:
                self.attribute(owner, name)
            except AttributeError:
                self.check(Path(kind, (("has", name),)), "is", hasattr(kind, name))
                return False
            return True
        found = owner.has(name) if type(owner) is Tracer else hasattr(owner, name)
        self.asks_kind(owner, lambda kind: hasattr(kind, name))
        if path is not None and not isinstance(owner, Traced):
            self.check(path.then("has", name), "is", found)
        return found

    def _len(self, value: Any) -> Any:
        kind = type(value)
        if kind is Tracer and self.trace.selections is not None:
            return self.trace.selections.asked(value, "len")
        if "__len__" in own_ways(kind):
            found = self.call(self.special(kind, "__len__"), value)
            whole = type(found) is Tracer and type(found.value) is int and self.trace.at_least_zero(found)
            return found if whole else len(_Long(operator.index(found)))
        path, value = self.path_of(value), self.viewed(value)
        if path is not None:
            self.check(path, "len", len(value))
        elif isinstance(value, (dict, set, frozenset)):
            self.itself(list(value))
        return len(value)

    def _seen(self, given: Any, asked: Set[str] | None = None) -> Any:
        """Arguments for a function that is not followed: outer containers read, the user's functions followed; ``asked``: see
        ``deep``."""
        if isinstance(given, dict):
            return {name: value if type(value) in QUICK else self._one_seen(value, asked) for name, value in given.items()}
        return tuple([value if type(value) in QUICK else self._one_seen(value, asked) for value in given])

    def _asked(self, given: Any) -> Any:
        """The same arguments, where C code may ask them, and what is in them, for their special methods."""
        if isinstance(given, dict):
            return {name: self._one_asked(value) for name, value in given.items()}
        return tuple(map(self._one_asked, given))

    def _one_asked(self, value: Any) -> Any:
        if isinstance(value, Iterator) and not own_ways(type(value)) and not hasattr(value, "__getitem__"):  # as ``x.flat`` has
            return self.watched(value, self._operands)
        self._operands(value)
        return value

    def _entries(self, given: Any) -> Any:
        """What a dict is made of: it asks the keys, and only keeps the values."""

        def look(entry: Any) -> None:
            self._operands(entry[:1] if isinstance(entry, (list, tuple)) else entry)

        if isinstance(given, Iterator):
            return self.watched(given, look)
        for entry in given if isinstance(given, CONTAINERS) else ():
            look(entry)
        return given

    def _one_seen(self, value: Any, asked: Set[str] | None = None) -> Any:
        if isinstance(value, CONTAINERS):
            return self.deep(value, asked=asked)
        if id(value) in self._views:
            return self.viewed(value)
        back = self._called_back(value)
        if back is value:
            self._operand(value)
        return back

    def _answering(self, fun: Any) -> Any:
        """A function that is followed, whose results are used by the code that calls it."""

        return _answering(self, fun)

    def _follows(self, value: Any) -> Any:
        """What C code is given to call, or to iterate over: a function of a library, or a class, is followed, too."""
        if isinstance(value, (FunctionType, MethodType, np.ufunc, type(np.sum))) and self._called_back(value) is value:
            return self._answering(value)
        return self._answering(value) if isinstance(value, type) and not hasattr(type(value), "__iter__") else value

    def _named(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """What C code is given by name: the ``key`` it calls."""
        return {name: self._follows(value) if name == "key" else value for name, value in kwargs.items()}

    def worded(self, value: Any) -> Any:
        """What may be text of values that a derivative follows, or text with such in it."""
        texts = self.trace.texts if type(value) is str else ()
        return self.trace.text_with(value) if texts and any([text in value for text in texts]) else value

    def _called_back(self, value: Any) -> Any:
        """A function that other code will call: followed, if it is the user's."""
        if isinstance(value, (FunctionType, MethodType)) and is_users(getattr(value, "__func__", value)):
            return functools.wraps(value)(self._answering(value))
        if isinstance(value, (*_IN_C, np.ufunc, type(np.sum))):  # they look into what they are given
            return self._answering(value)
        if isinstance(value, type) and is_users_class(value):
            setup = of_class(value, "__init__")
            if not self.harmless(setup):
                self.stop(f"{value.__name__} is handed on, and what makes it is not followed")
        return value


def _answering(hooks: Any, fun: Any) -> Callable[..., Any]:
    def follow(*args: Any, **kwargs: Any) -> Any:
        result = hooks.call(fun, *args, **kwargs)
        hooks._operands(result)
        return result

    return follow


_ANSWERING = _answering(None, None).__code__


def _then(fun: Any, first: Any) -> Callable[..., Any]:
    """What a function makes of the results of the first one."""
    return functools.wraps(first)(lambda *args, **kwargs: fun(first(*args, **kwargs)))


OF_FUNCTIONS = frozenset({np.apply_along_axis, np.apply_over_axes, np.piecewise})  # of NumPy's, those that call others


def handed(value: Any, follow: Callable[[Any], Any]) -> Any:
    """What one of these will call (a function, an object with ``__call__``, a list of such) as ``follow`` has it."""
    if type(value) in (list, tuple):
        return type(value)([handed(item, follow) for item in value])
    handler = of_class(type(value), "__call__")
    return follow(MethodType(handler, value) if is_users(handler) else value)


def _each(__symgrad_fun: Any, *columns: Any) -> Any:
    """The loop of ``np.vectorize``, which runs instrumented; the name of the function is one that it does not look at."""
    results = []
    for cells in zip(*columns, strict=True):
        results.append(__symgrad_fun(*cells))
    return results


def _bound_to(owner: Any, method: Any) -> Any:
    """The same method, written in C, of another object: by its name a class of the user's may have one of its own."""
    kinds = type(method.__self__).__mro__
    found = next(found for kind in kinds if isinstance(found := vars(kind).get(method.__name__), UNBOUND))
    return found.__get__(owner)


def _draws_anew(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call of SciPy's may draw random numbers that nobody gave a seed for."""
    try:
        call = inspect.signature(fun).bind(*args, **kwargs)
    except (TypeError, ValueError):  # as the call will say; or it is in C
        return False
    call.apply_defaults()
    seeds = [call.arguments[name] for name in ("rng", "seed", "random_state") if name in call.arguments]
    return bool(seeds) and all([seed is None for seed in seeds])


def _is_plain(value: Any) -> bool:
    return type(value) in (int, float, str, bool, type(None))


def _holds_nothing(value: Any) -> bool:
    """Whether it is no object, and no container, that may hold others."""
    if type(value) in (tuple, list):
        return len(value) <= _LOOKED_AT and all(map(_holds_nothing, value))
    return _is_plain(value) or type(value) in (Tracer, np.ndarray, slice) or isinstance(value, (np.generic, type))


_LOOKED_AT = 64  # items of a tuple, or a list, that somebody is handed
_builtins_of: Callable[[FunctionType], dict[str, Any]] = operator.attrgetter("__builtins__")


def _is_pythons(value: Any) -> bool:
    """Whether what a builtin name stands for is Python's own, not what somebody has put there."""
    return isinstance(value, (type, BuiltinFunctionType)) and value.__module__ == "builtins"


class Operand:
    """An object of a user's class, within an expression, as one side of an operator: the class's method is followed."""

    __slots__ = ("state", "value")
    __array_ufunc__ = None  # NumPy leaves it to the methods below

    def __init__(self, state: Calls, value: Any) -> None:
        self.state, self.value = state, value


def _operator(apply: Any, name: str, swapped: bool = False) -> Any:
    def method(self: Operand, *others: Any) -> Any:
        return self.state.operated(apply, name, (*others, self) if swapped else (self, *others))

    return method


# what makes Python's whole numbers, and what rounds as that does
_WHOLE: dict[Any, Any] = {math.floor: np.floor, math.ceil: np.ceil, math.trunc: np.trunc, round: np.rint}
_BINARY = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor")
OPERATORS = {f"__{name}__": _operator(getattr(operator, f"__{name}__"), name) for name in ("neg", "pos", "invert", "abs")}
for _name in _BINARY:
    _apply = divmod if _name == "divmod" else getattr(operator, f"__{_name}__")
    OPERATORS |= {f"__{_name}__": _operator(_apply, _name), f"__r{_name}__": _operator(_apply, _name, swapped=True)}
for _name, _method in OPERATORS.items():
    setattr(Operand, _name, _method)
# what operators ask of items: their own operators, and whatever tells of how arrays are made of them
_AS_NUMBERS = ("float", "int", "index", "complex", "bool", "len", "getitem", "iter", "array", "array_ufunc", "array_function")
_OF_OPERANDS = OPERATORS.keys() | AS_ARRAYS | {f"__{name}__" for name in _AS_NUMBERS}
_OPERATING = frozenset({abs, divmod, *[getattr(operator, name) for name in OPERATORS if hasattr(operator, name)]})


class Holder:
    """What holds locals that other functions fill."""

    __module__ = "holders"  # as if it were the user's


class Lent(NamedTuple):
    """A list that a holder has under a name, or a dict, and the object that it is of."""

    holder: Any
    name: str
    owner: Any


class Frame:
    """The hooks as one function sees them: with its own globals and closure cells."""

    def __init__(self, state: Calls, fun: FunctionType, arrays: frozenset[tuple[str, ...]] = frozenset()) -> None:
        self._state, self._fun, self._arrays = state, fun, arrays
        self._dtypes: dict[Any, np.dtype[Any]] = {}  # of these, of which all of a group have the same
        self._space = fun.__globals__

    def glob(self, name: str, value: Any) -> Any:
        """A global or builtin name."""
        if name not in self._space:
            if _is_pythons(value):  # somebody may put another in its place
                self._state.check(Path(self._space, (("name", name),)), "is", value)
                return value
            self._state.check(Path(self._space, (("in", name),)), "is", False)
            return self._state.read(Path(_builtins_of(self._fun), (("item", name),)), value)
        return self._state.read(Path(self._space, (("item", name),)), value)

    def cell(self, name: str, value: Any) -> Any:
        """A variable of an enclosing function."""
        return self._state.read(self._state.variable(self._fun, name), value)

    def assigned(self, value: Any, name: str, how: str | None) -> Any:
        """What a global or closure variable is assigned, or combined with as an operator says (``how``)."""
        if name in self._fun.__code__.co_freevars:
            cell = self._fun.__closure__[self._fun.__code__.co_freevars.index(name)]  # type: ignore[index]
            return self._state.put(self._state.variable(self._fun, name), cell, value, how)
        return self._state.put(Path(self._space, (("item", name),)), self._space, value, how)

    def imported(self, module: str, level: int, name: str, value: Any) -> Any:
        """``from module import name``, in the function's own package."""
        if level:
            package = str(self._space.get("__package__") or self._space.get("__name__", "")).split(".")
            module = ".".join([*package[: len(package) - level + 1], *([module] if module else [])])
        return self._state.imported(module, name, value)

    def table_made(self, value: Any, table: Any) -> Any:
        """A list that is to be an array, see ``symgrad.loops.tables``."""
        site = self._site(table)
        array = tables.made(self._state.trace, value, site)
        if self._dtypes.setdefault(table[0], array.dtype) != array.dtype:
            raise site.refused(self._state.trace)
        return array

    def table_copied(self, array: Any, table: Any) -> Any:
        """A copy of such a list."""
        return tables.copied(array, self._site(table))

    def table_entry(self, value: Any, table: Any) -> Any:
        """A number that is put into a list that may be an array, or is one."""
        if table[0] in self._arrays:
            return tables.entry(self._state.trace, value, self._site(table), self._dtypes.get(table[0]))
        return tables.ask(self._state.trace, value, self._site(table))

    def table_asked(self, index: Any, table: Any) -> Any:
        """Where something is put into a list that may be an array."""
        return tables.ask_place(self._state.trace, index, self._site(table))

    def table_place(self, index: Any, table: Any, array: Any, axis: int) -> Any:
        """Where that is."""
        return tables.place(self._state.trace, index, array.shape[axis], self._site(table))

    def table_item(self, array: Any, table: Any, *indices: Any) -> Any:
        """A number of such a list."""
        return self._state.item(array, tuple([self.table_place(index, table, array, i) for i, index in enumerate(indices)]))

    def table_items(self, array: Any, table: Any, *indices: Any) -> Any:
        """Such a list, or one in it, as a list."""
        return tables.listed(self.table_array(array, table, *indices))

    def table_array(self, array: Any, table: Any, *indices: Any) -> Any:
        """The same for NumPy, which makes an array of its own of it."""
        return (self.table_item(array, table, *indices) if indices else array).copy()

    def shrinks(self, *lists: Any) -> None:
        """A loop takes items from lists, see ``symgrad.loops.stacks``."""
        stacks.shrinks(self._state.trace, self._fun.__code__, lists)

    def made_by(self, name: str, maker: Any) -> None:
        """Such a list is begun by calling something."""
        stacks.made_by(self._state.trace, self._fun.__code__, name, maker)

    def room_for(self, name: str, column: int, owner: Any = None) -> Any:
        """An array for a column of such a list, which an ``owner`` has, or no object."""
        return stacks.room(self._state.trace, self._fun.__code__, name, column, owner)

    def put_in(self, name: str, column: int, value: Any) -> Any:
        """A number that is put there."""
        return stacks.put(self._state.trace, self._fun.__code__, name, column, value)

    def taken_out(self, value: Any) -> Any:
        """An int that was there, as Python's."""
        return value.item()

    def full(self, name: str) -> None:
        """There is no room for another item."""
        raise stacks.full(self._state.trace, self._fun.__code__, name)

    def _site(self, table: Any) -> tables.Site:
        return tables.Site(self._fun.__code__, *table)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


class _Long:
    """Something of a length, which Python does not take to be one if it is negative."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def _is_of(kinds: Any, kind: type) -> Any:
    """Whether a class is one of ``kinds``; of a protocol that asks for data, which no class tells, the class itself."""
    try:
        return issubclass(kind, kinds)
    except TypeError:
        return kind


def _is_full(fun: Any) -> bool:
    """Whether a function's cache is as large as it may be: who asks it makes it forget something."""
    _, _, most, now = fun.cache_info()
    return bool(now == most)


def _only_holds(kind: type, given: Sequence[Any]) -> bool:
    """Whether a class keeps or passes on the items of what it is given, and asks them nothing itself."""
    if issubclass(kind, (set, frozenset)):
        return False
    if issubclass(kind, Iterator):
        return kind not in _CURIOUS or any(map(callable, given))
    return is_users_class(kind) or kind in (list, tuple, collections.deque)


def is_partial(fun: Any) -> bool:
    """Whether calling something calls its function; subclasses may have a way of their own."""
    return isinstance(fun, functools.partial) and not is_users(of_class(type(fun), "__call__"))
