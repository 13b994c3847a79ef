"""What a traced function reads from outside its arguments: lifted to inputs, or guarded.

A float or array that is read through a path (a global, a closure cell, an attribute chain, an item of a list or dict)
becomes an *input* of the trace, read again by generated code at every call. What shapes the trace without entering the graph
(flags, strings, functions, lengths, keys, types, ints) becomes a *guard*: the path and what was found there. What can be
neither is noted as the reason why the call cannot be compiled.
"""

from __future__ import annotations

import collections
import decimal
import enum
import functools
import gc
import itertools
import operator
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any, NamedTuple

import numpy as np

from symgrad.errors import MutatedInput, NotDifferentiable
from symgrad.ir import INPUT, Node, ancestors, aval_of
from symgrad.loops import iterables, members
from symgrad.loops.appended import Chosen
from symgrad.loops.iterables import Over, columns, table
from symgrad.loops.patterns import BOOL, OUTSIDE, Key
from symgrad.loops.records import Records, records
from symgrad.ops import create
from symgrad.ops.core import Traced
from symgrad.ops.engine import IDENTITY, NOT
from symgrad.source.origins import (
    CACHES,
    CONTAINERS,
    FUNCTIONS,
    LOCAL,
    METHODS,
    PLAIN,
    RANDOM,
    VALUES,
    find_own_ways,
    is_by_identity,
    is_library_module,
    is_made_anew,
    is_numpys,
    is_plain_key,
    is_users,
    is_users_class,
    module_of,
    of_class,
    own_ways,
    runs_by_place,
    setters,
    ways_of,
)
from symgrad.tracing.frames import where
from symgrad.tracing.kinds import Slots, Within, attributes, fields_of
from symgrad.tracing.mixed import Otherwise
from symgrad.tracing.trace import NAMES, OF_A_LOCAL, Named, Trace
from symgrad.tracing.tracer import AS_ARRAYS, OWN, Tracer, slides, tracers
from symgrad.watch import standard
from symgrad.watch.codes import Codes
from symgrad.watch.draws import Drawn, Draws, home_of, is_drawing, is_generator, is_picking
from symgrad.watch.guards import CLOSURE, Argument, Check, Path, same_value
from symgrad.watch.puts import (
    INDIRECT,
    NOTHING,
    NUMBERS,
    OPERATIONS,
    Repeated,
    Setting,
    is_fixed,
    is_number,
    is_numeric,
    is_plainly_set,
    is_settled,
    key_in,
    leads_into,
    other_than,
    put_at,
    put_back,
    restoring,
    sees,
    settled,
    take_back,
    there,
)

TABLED = (list, tuple, np.ndarray)
_SEARCHED = (set, frozenset, dict, list, tuple)
ROWS = {tuple, int, float, bool, np.float64, np.int64, np.bool_}  # what is read as a whole where one is read at a traced place
UNASKED = frozenset[str]()  # what only holds items, or hands them on, calls no special method of theirs
_UNPACKING = frozenset({"__iter__", "__getitem__", "__len__"})
MAX_ITEMS = 20_000  # of a container that is read as a whole, each of which calls are checked for
MAX_HELD = 4_096  # objects that one leads to
FEW_COPIES = 64  # of containers outside, before those are forgotten that nobody holds
MAX_PAIRS = 256  # of things that what is put into must not be
_OF_DTYPE = frozenset(["dtype", "item", "tolist", "view", "itemsize", "nbytes", "real", "imag"])  # what tells it
MAX_BYTES = 1 << 18  # of an array whose content is compared at every call, in less time than tracing a few operations takes
_ASKED = ("is", "eq", "type", "array")  # kinds of checks of what is read
_GETTING = (functools.partial, operator.attrgetter, operator.itemgetter, operator.methodcaller)  # what is followed in C
_SEEN = (staticmethod, classmethod, property)  # of what is in classes, that which is guarded where it is read
_BY_IDENTITY = object.__dict__["__eq__"]
_ORDERING = ("__lt__", "__le__", "__gt__", "__ge__")
_TRUTH = aval_of(np.True_)
MOST_TURNS = 8  # objects, one of which is read in turn
QUICK = frozenset({Tracer, float, int, bool, str, type(None), np.ndarray, complex, np.float64, slice, range, bytes})
_OF_SHAPE = (int, slice, type(None), type(Ellipsis))  # keys that fit or do not by the shape alone
ENDS = {0: "first", -1: "last"}  # see ``State.handed``


HOLDING: tuple[type, ...] = (
    *CONTAINERS,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)  # containers, and what dicts show of themselves


_KEYS: type = type({}.keys())
_ENTRIES: type = type({}.items())
VIEWS: tuple[type, ...] = (_KEYS, type({}.values()), _ENTRIES)


class _Table(NamedTuple):
    """What is ``found`` in a list, whose items were these ``before``, or an array, as a table, which holds it so ``often``."""

    owner: Any
    before: list[Any]
    found: Over | None
    often: int

    def holds(self) -> bool:
        """Whether the owner has the same items, still: the table of one from outside has copies."""
        if self.found is None:
            return True
        if type(self.owner) is list and len(self.owner) != len(self.before):
            return False
        return all(map(operator.is_, self.owner, self.before)) and self.found.holds()


class _Asked:
    """An object whose truth its class's own method has told."""

    def __init__(self, value: Any, truth: bool) -> None:
        self.value, self.truth = value, truth

    def __bool__(self) -> bool:
        return self.truth


class _Spliced:
    """A list of the function's own as the target of ``owner[a:b] = value``."""

    def __init__(self, state: Reads, owner: list[Any]) -> None:
        self.state, self.owner = state, owner

    def __getitem__(self, key: slice) -> Any:
        return self.owner[key]

    def __setitem__(self, key: slice, value: Any) -> None:
        self.owner[key] = self.state.iterate(value)


def _has(holder: Any, value: Any) -> bool:
    return any([held is value for held in vars(holder).values()])


class Reads:
    """The hooks for what is read, and written, outside; and what they found. ``leaves`` are the arguments of the call."""

    def __init__(
        self,
        trace: Trace,
        lifted: set[Path],
        accept_effects: bool = False,
        leaves: Sequence[Any] = (),
        draws: Draws | None = None,
        undo: list[Callable[[], None]] | None = None,
    ) -> None:
        self.trace, self.lifted, self.accept_effects, self.leaves = trace, lifted, accept_effects, leaves
        self.codes = Codes(trace)
        self.draws = draws or Draws(None)
        self.lifts: dict[Path, Tracer] = {}
        self.silenced: set[str] = set()  # NumPy's warnings that the function does not want to see, as errstate names them
        self.catching = 0  # how many ``warnings.catch_warnings()`` it is in
        self.foreseen: list[BaseException] = []  # raised for reasons that are guarded
        self._arrays: list[tuple[Any, Tracer]] = []  # that were lifted, and their Tracers
        self.checks: dict[tuple[Path, str], Check] = {}
        self.impure: str | None = None
        self.effects: list[str] = []
        self._paths: dict[int, Path] = {}
        self.own_classes: dict[int, Any] = {}  # that the function has made
        self._methods: dict[int, Path] = {}  # those that outer names stand for, or what takes their place
        self._keep: list[Any] = []
        # of traced arrays that something outside holds; and what was in them
        self.copies: list[tuple[Tracer, Node, Any, Any]] = []
        self.told_apart = False  # whether somebody could tell one of them from what it is a copy of: see ``_copied``
        self.caches: dict[str, Within] = {}  # what fills those that were asked, by what is said of one that changes things
        self.settings: dict[Path, Setting] = {}  # numbers and their kin that were put somewhere outside
        self.being_set: set[Path] = set()
        self._written_through: list[Any] = []  # things outside into which something was put that nobody has looked at
        self._changed: set[int] = set()  # containers among the arguments whose copies were changed
        self.asks_which_is_one = False  # whether it matters which containers among the arguments are one
        self.undo = [] if undo is None else undo  # what puts back what was there, the first last
        self.asks = 0  # how often objects were asked for lists, in loops
        self.mentioned: dict[int, int] = {}  # when they were asked for which one last, by identity: see ``last_asked``
        self.shown_at = 0  # when somebody who is not followed may have read all of them last
        # of lists, and dicts that have such (by identity), those of which nobody has asked yet which items they have
        self.chosen_later: dict[int, list[Any]] = {}
        self.lendings: dict[int, list[Any]] = {}  # what else holds lists (their identities) that functions are lent
        self.appends: list[tuple[Path, Any, str, Any]] = []  # what was appended to lists outside
        self.puts: list[tuple[Path, Any]] = []  # what code is to put outside as it ends
        self.counted: set[Path] = set()  # ints that were read, and put there anew: they are another in each call
        self.looped: set[Path] = set()  # where iterations of a loop put numbers: later runs ``carry`` these
        self.round: set[Path] = set()  # where they may do so in this run
        self._used: dict[int, Callable[[], Any]] = {}
        self._rows: dict[int, tuple[Any, Any]] = {}
        self._saved: dict[int, Any] = {}  # what was changed outside, as ``undo`` knows
        self._copied_of: dict[int, tuple[Any, Path]] = {}  # copies of containers that are outside
        self._most_copies = FEW_COPIES
        self._views: dict[int, tuple[Any, Any, Any]] = {}  # of dicts outside: these, and what was in them
        self._members: dict[Any, tuple[Any, int, Any]] = {}  # containers, and which of all that indices may be are in them
        self._tables: dict[int, _Table] = {}  # of lists and plain arrays that are read at traced places
        self._turned: list[Records] = []  # that loops run over
        self._deciders: dict[int, int] = {}  # the function's objects that loops which decide change, counted
        self._made: dict[int, int] = {}  # of these, those that the last iteration, ``_turn``, makes
        self._turn: tuple[int, int] | None = None
        self._harmless_kinds: dict[Any, bool] = {}
        for cache in CACHES:  # classes may have changed since the last trace
            cache.cache_clear()

    def original(self, value: Any) -> Any:
        """The container among the arguments that ``value`` stands for; other things themselves."""
        return self.trace.given.get(id(value), (None, value))[1]

    def changes_container(self, value: Any) -> None:
        """A container is changed, which matters to all who have it."""
        if (known := self._copied_of.get(id(value))) is not None:
            what = f"{where()}: {known[1]!r} is changed by way of something that holds it, and what is changed is a copy"
            raise self.trace.refuse(MutatedInput(f"{what}; change it by its own name, or put copies into what holds it"))
        one = self.original(value)
        if one is not value:
            self.asks_which_is_one = True
            self._changed.add(id(one))
            if sum([given is one for _, given in self.trace.given.values()]) > 1:
                raise self.trace.refuse(Repeated())
        if (one is not value or id(value) in self.trace.originals) and (path := self._paths.get(id(one))) is not None:
            self._refuse_alias(one, path)

    def _refuse_alias(self, value: Any, path: Path) -> None:
        """An argument is changed that is found outside, too, where nobody would see it."""
        raise self.trace.refuse(
            MutatedInput(
                f"{where()}: a {type(value).__name__} among the arguments is changed, which is {path!r}, too; "
                "pass a copy of it, or do not pass it"
            )
        )

    def root(self, value: Any, path: Path) -> None:
        """Say where an object is from: what is read from it later has a path."""
        known = self._paths.get(id(value))
        if id(value) in self._changed:
            self._refuse_alias(value, path)
        if known is None:
            self._paths[id(value)] = path
            self._keep.append(value)
        elif known != path:  # what is read from it has the first path: the two must go on leading to one object
            self.check(path, "same", known)

    def home(self, fun: Any) -> Path:
        """Where the paths to what a function holds begin: one that is made anew is to be found again, others are there."""
        path = self._paths.get(id(fun))
        return path if path is not None and (not path.steps or is_made_anew(fun)) else Path(fun, ())

    def variable(self, fun: FunctionType, name: str) -> Path:
        """The path to what a function reads as a variable of a function around it."""
        home, number = self.home(fun), fun.__code__.co_freevars.index(name)
        assert fun.__closure__ is not None
        cell = fun.__closure__[number]
        if home.root is fun:
            return Path(cell, (("cell", name),))
        path = Path(home.root, (*home.steps, CLOSURE, ("item", number)))
        self.root(cell, path)  # others may read the same variable
        return self._paths.get(id(cell), path).then("cell", name)

    def path_of(self, value: Any) -> Path | None:
        """Where an object is from, if it was there before the call."""
        path = self._paths.get(id(value))
        if id(value) in self.own_classes:
            return None
        if path is None and (isinstance(value, type) or (isinstance(value, ModuleType) and not is_library_module(value))):
            return Path(value, ()) if is_users_class(value) else None
        if path is None and isinstance(value, enum.Enum) and value.name in type(value).__members__:
            home = self.path_of(type(value))  # however it was found, there is one of it
            return home and home.then("attr", value.name)
        return path

    def stop(self, reason: str) -> None:
        """This call cannot be compiled."""
        if self.impure is None:
            self.impure = f"{where()}: {reason}"

    def effect(self, what: str, line: str = "") -> None:
        """The function changes something outside, now or in this ``line``; compiled code would not."""
        self.effects.append(f"{line or where()}: {what}")
        if not self.accept_effects and self.impure is None:
            self.impure = self.effects[-1]

    def saves(self, owner: Any) -> None:
        """Something outside is about to be changed as no code does it: another run is to find it as it was."""
        if id(owner) in self._saved or owner is None or self.accept_effects:
            return
        self._saved[id(owner)] = owner
        if (restore := restoring(owner)) is not None:
            self.undo.append(restore)

    def changes_outside(self, path: Path, line: str = "", owner: Any = None) -> None:
        """The function changes what is at a path: ``owner``, which is as it was, yet."""
        self.saves(owner)
        self.effect(f"{path!r} is changed, which is outside the function", line)

    def check(self, path: Path, kind: str, expected: Any) -> None:
        """Guard what was found at a path."""
        found = self._outside(path)
        if found is None:
            return
        key = (found, kind)
        if key not in self.checks:
            self.checks[key] = Check(kind, expected, where())

    def _outside(self, path: Path) -> Path | None:
        """A path that begins at a class of the function's own as it goes on from outside: from a base; None if it does not."""
        if not self.own_classes:
            return path
        if any([id(item) in self.own_classes for step, key in path.steps if step == "call" for item in key]):
            return None
        if id(path.root) not in self.own_classes:
            return path
        step, name = path.steps[0] if path.steps else ("", "")
        for base in path.root.__mro__ if step == "attr" else ():
            if id(base) not in self.own_classes:
                return Path(base, path.steps) if hasattr(base, name) else None
            if name in base.__dict__:
                return None
        return None

    def _guard_ways(self, kind: type, *names: str) -> None:
        """Guard special methods that C code calls: the user may put others into the class."""
        for name in names if is_users_class(kind) else ():
            if of_class(kind, name) is not None:
                self.check(Path(kind, (("attr", name),)), "is", getattr(kind, name))
            elif not hasattr(kind, name):  # nor has its own class
                self.check(Path(kind, (("has", name),)), "is", False)

    def special(self, kind: type, name: str) -> Any:
        """A special method that a class has, guarded."""
        found = of_class(kind, name)
        self.check(Path(kind, (("attr", name),)), "is", found)
        return found

    # ---- followed calls ----

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call, followed: see ``symgrad.watch.calls``."""
        raise NotImplementedError

    def given(self, value: Any, depth: int = 0) -> Any:
        """A value with what is read from it: see ``symgrad.watch.calls``."""
        raise NotImplementedError

    def handed(self, value: Any, fun: Any) -> Any:
        """What a function is given for a list of some items: see ``symgrad.watch.state``."""
        raise NotImplementedError

    def attribute_for(self, owner: Any, name: str) -> Any:
        """``owner.name``, which a function is given: see ``symgrad.watch.state``."""
        raise NotImplementedError

    def part_of(self, owner: Any, key: Any) -> tuple[Any, Any]:
        """Such a list with an item, and the key of that: see ``symgrad.watch.state``."""
        raise NotImplementedError

    def harmless(self, fun: Any) -> bool:
        """Whether a function reads nothing from outside: see ``symgrad.watch.calls``."""
        raise NotImplementedError

    def is_harmless_way(self, kind: type, *names: str) -> bool:
        """The same of special methods of a class: see ``symgrad.watch.calls``."""
        raise NotImplementedError

    def has_steady_setters(self, kind: type) -> bool:
        """The same of what sets attributes and items of a class: see ``symgrad.watch.calls``."""
        raise NotImplementedError

    # ---- values from outside ----

    def read(self, path: Path, value: Any) -> Any:
        """A value found at a path, as the function should see it: lifted, or guarded."""
        if type(value) is Tracer:
            if not value.tape.draft:
                return value
            value = value.value  # a plain array that an earlier run has left there
        if self.settings and (known := self.settings.get(path)) is not None:
            if known.is_still(value):
                return self.trace.lookup(known.value.node) if path in self.round else known.value
            self.changes_outside(path)  # by another way
            del self.settings[path]
        if type(value) is np.ndarray and (found := self._kept_copy(value)) is not None:
            return found
        outside = self._outside(path)
        if outside is None:
            return value
        path, kind = outside, type(value)
        if isinstance(value, Traced):  # an eager tensor: what lies in it is read
            self.check(path, "type", kind)
            for name in value.outside():
                self.read(path.then("attr", name), getattr(value, name))
            return value.adopt(self.read(path.then("attr", "value"), value.value))
        if kind in (float, complex) or (isinstance(value, np.inexact) and kind.__module__ == "numpy"):
            return self._lift(path, value)
        if kind is np.ndarray and value.dtype.kind in "fciub":
            return self._lift(path, value)
        if (kind is int or isinstance(value, np.integer)) and path in self.lifted:
            return self._lift(path, value)
        if isinstance(value, (np.ndarray, np.void)):  # the latter are views of their arrays
            self._content(path, value)
        elif isinstance(value, PLAIN) or kind in VALUES:
            self._plain(path, value)
        elif isinstance(value, MethodType):
            self.check(path, "type", kind)
            self.read(path.then("attr", "__func__"), value.__func__)
            owner = self.read(path.then("attr", "__self__"), value.__self__)
            method = value if owner is value.__self__ else MethodType(value.__func__, owner)
            self._methods[id(method)] = path
            self._keep.append(method)
            return method
        elif isinstance(value, METHODS) and not isinstance(value.__self__, (ModuleType, NoneType)):
            self.check(path, "type", kind)
            self.check(path.then("attr", "__qualname__"), "eq", value.__qualname__)
            owner = self.read(path.then("attr", "__self__"), value.__self__)
            if type(owner) is not Tracer:
                self.root(value, path)
            elif hasattr(owner, value.__name__):
                return getattr(owner, value.__name__)
            else:
                self.stop(f"{path!r} is bound to an array, and is not followed")
        elif is_made_anew(value):  # the next one does the same, and what it reads is found there
            self.root(value, path)
            if self._paths[id(value)] == path:
                self.check(path, "type", kind)  # methods, and some objects, have the code of a function that they hold
                self.check(path.then("attr", "__code__"), "is", value.__code__)
                self.check(path.then("attr", "__globals__"), "is", value.__globals__)
        elif isinstance(value, (*FUNCTIONS, type, ModuleType)):
            self.check(path, "is", value)
            if isinstance(value, ModuleType) and is_library_module(value):
                return value
            self.root(value, path)
        elif kind in (tuple, frozenset) and not value:  # there is but one of each, which has no place of its own
            self.check(path, "eq", value)
        else:
            self.check(path, "type", kind)
            self.root(value, path)
        return value

    def _plain(self, path: Path, value: Any) -> None:
        kind = type(value)
        if is_users_class(kind):  # its attributes may change
            self.root(value, path)
        if value is None or kind is bool or value is Ellipsis or isinstance(value, enum.Enum):
            self.check(path, "is", value)
            return
        if kind is slice:  # which equals one of the same objects, whatever they are by now
            for name in ("start", "stop", "step"):
                part = getattr(value, name)
                if isinstance(part, np.ndarray):
                    self._content(path.then("attr", name), part)
                elif not isinstance(part, PLAIN):
                    self.stop(f"{path!r} is a slice of a {type(part).__name__}, which may be another number later")
        self.check(path, "eq", value)
        if is_users_class(kind):
            self.check(Path(find_own_ways, (("call", (kind,)),)), "eq", find_own_ways(kind))
        if own_ways(kind):
            self.stop(f"{path!r} is a {kind.__name__} with operators of its own, which are not followed")

    def _content(self, path: Path, value: np.ndarray[Any, Any] | np.void) -> None:
        """An array, or a row of one, that cannot be an input: guarded by what is in it."""
        if type(value) not in (np.ndarray, np.void, np.record) or value.dtype.hasobject:
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
            tracer = self.trace.input(path, value.copy("K") if array else value)
            last = path.steps[-1][1] if path.steps else "state"
            tracer.node.name = str(last) if str(last).isidentifier() else _named(path)
            self.lifts[path] = tracer
            if type(value) is np.ndarray:
                self._arrays.append((value, tracer))
            self.trace.watch(value, tracer)
        elif not same_value(tracer.value, value):
            self.stop(f"{path!r} changes while the function runs")
            return value
        if type(value) is np.ndarray:
            return self.trace.another(tracer)
        return Tracer(self.trace, tracer.node, tracer.value, frozen=True)

    def read_again(self, node: Node) -> Node | None:
        """The input that an earlier call made of what it read outside, which this one might have read; None for others."""
        path = dict(node.params)["position"]
        if not isinstance(path, Path):
            return None
        try:
            found = self.read(path, path.find(self.leaves))
        except (LookupError, AttributeError, TypeError):
            return None
        return found.node if type(found) is Tracer and found.node.params == node.params else None

    def deep(self, value: Any, depth: int = 0, asked: Set[str] | None = None) -> Any:
        """A container from outside as a copy of what is read from it; other values as they are. ``asked``: the special methods
        of items that what gets it may call; None: any."""
        path = self.path_of(value)
        if not isinstance(value, CONTAINERS):
            return value
        if path is None:
            if own_ways(type(value)):
                self._operand(value)
            return self._local(value, depth, asked) if type(value) in LOCAL else value
        if depth > 20:
            self.stop(f"{path!r} is nested too deep")
            return value
        if own_ways(type(value)):
            self.stop(f"{path!r} is a {type(value).__name__} with methods of its own, which are not followed")
            return value
        if len(value) > MAX_ITEMS:
            self.stop(f"{path!r} has {len(value)} items, too many to be compared at every call; make it an array")
            return value
        self.check(path, "type", type(value))
        self._guard_ways(type(value), "__iter__", "__getitem__", "__len__", "__contains__")
        if isinstance(value, (set, frozenset)):
            self._check_keys(path, value)
            return value
        if isinstance(value, dict):
            if not self._check_keys(path, value):
                return value
            made = {key: self.deep(self.read(path.then("item", key), item), depth + 1) for key, item in value.items()}
            return self._noted(made if type(value) is dict else self._rebuilt(value, made, path), path)
        self.check(path, "len", len(value))
        items = [self.deep(self.read(path.then("item", i), item), depth + 1) for i, item in enumerate(value)]
        if type(value) is tuple:
            return tuple(items)
        return self._noted(items if type(value) is list else self._rebuilt(value, items, path), path)

    def _rebuilt(self, like: Any, made: Any, path: Path) -> Any:
        """The same with the attributes that it has, read."""
        found = rebuilt(like, made)
        for name, item in getattr(like, "__dict__", {}).items():
            vars(found)[name] = self.read(path.then("attr", name), item)
        return found

    def _noted(self, copy: Any, path: Path) -> Any:
        """A copy of what is at a path, which nobody is to take for that when it is changed."""
        if len(self._copied_of) >= self._most_copies:  # those that nobody else holds are gone; its holders: the pair, the call
            self._copied_of = {key: pair for key, pair in self._copied_of.items() if sys.getrefcount(pair[0]) > 2}
            self._most_copies = 2 * len(self._copied_of) + FEW_COPIES
        self._copied_of[id(copy)] = copy, path
        return copy

    def _local(self, value: Any, depth: int, asked: Set[str] | None) -> Any:
        """A container of the function's own, with those from outside in it read; itself where there are none."""
        if depth > 20:
            return value
        old = list(value.values()) if isinstance(value, dict) else list(value)
        new = [item if type(item) in QUICK else self.deep(item, depth + 1, asked) for item in old]
        for item in new:
            if type(item) not in QUICK and (asked is None or not asked.isdisjoint(ways_of(type(item)))):
                self._operand(item)
        if all(map(operator.is_, old, new)):
            return value
        return dict(zip(value, new, strict=True)) if isinstance(value, dict) else type(value)(new)

    def _operands(self, value: Any, depth: int = 0) -> None:
        """What C code may look into: the same of all that is in containers."""
        if type(value) in QUICK or depth > 20:
            return
        if isinstance(value, HOLDING):
            if own_ways(type(value)):
                self._operand(value)
            for item in held_in(value):
                self._operands(item, depth + 1)
        else:
            self._operand(value)

    def _operand(self, value: Any) -> None:
        """An object that C code may look into: its class may have ways of its own, which are not followed."""
        kind = type(value)
        plain = isinstance(value, PLAIN)
        if isinstance(value, (*FUNCTIONS, ModuleType, Traced, np.ndarray)) or kind in LOCAL or kind is functools.partial:
            return
        if isinstance(value, type) and own_ways(kind) <= {"__call__"}:
            return
        if plain and (isinstance(value, enum.Enum) or not own_ways(kind)):
            return
        self.uses(value)
        if own_ways(kind):
            self._shown_all()
        if kind is decimal.Decimal:
            self.stop("decimal numbers hang on the context")
        path = None if plain else self.path_of(value)
        self._guard_ways(kind, "__eq__", "__hash__")
        ways = own_ways(kind) if path is None else ways_of(kind) | (AS_ARRAYS & getattr(value, "__dict__", {}).keys())
        if path is not None and (ways or isinstance(value, Iterator)):
            what = f"{kind.__name__}.{min(ways)}" if ways else "its consumption"
            self.stop(f"{path!r} is used, and {what} is not followed")
        elif ways and (self.leads_outside(value, called=True) or not self.is_harmless_way(kind, *ways)):
            self.stop(f"the special methods of {kind.__name__} read from outside, and are not followed")

    def leads_outside(self, value: Any, called: bool = False) -> bool:
        """Whether an object of the function's own holds something from outside that changes, or too much to be sure; or, where
        what it holds may be ``called``, functions that read from outside."""
        waiting, seen = [value], {id(value)}
        while waiting and len(seen) < MAX_HELD:
            for item in _all_held_in(waiting.pop()):
                if type(item) in QUICK or isinstance(item, (*PLAIN, type, ModuleType)) or id(item) in seen:
                    continue
                if isinstance(item, FUNCTIONS) and isinstance(getattr(item, "__self__", None), (ModuleType, NoneType)):
                    if called and not self.harmless(item):
                        return True
                    continue
                if self.path_of(item) is not None:
                    return True
                seen.add(id(item))
                waiting.append(item)
        return bool(waiting)

    def _sets_outside(self, owner: Any) -> bool:
        """Whether methods of its class are called where something is assigned to it, and may put that outside."""
        return type(owner) not in QUICK and bool(setters(type(owner))) and self.leads_outside(owner)

    # ---- hooks: reads ----

    def asks_kind(self, value: Any, answer: Callable[[type], Any]) -> None:
        """Note that the function asks what is not alike of Python's numbers and NumPy's."""
        like = value.like if type(value) is Tracer else value
        if isinstance(like, (int, float, complex, np.generic)):
            dtype, others = np.result_type(like), (bool, np.int64, np.bool_) if self.trace.coarse else ()
            kinds = dtype.type, type(np.zeros((), dtype).item()), int, *others
            if len({answer(kind) for kind in kinds}) > 1:
                self.trace.asks_kind(value)

    def last_asked(self, idents: Sequence[int]) -> int:
        """When objects were asked last for a list that they hold, or for dicts that have it (their identities), as a loop ran,
        other than to append an item to it."""
        return max(self.shown_at, *[self.mentioned.get(ident, 0) for ident in idents])

    def _mention(self, value: list[Any] | dict[Any, Any]) -> None:
        """Somebody gets a list that an object holds, or a dict."""
        self.listed(value)
        if self.trace.rollers:
            self.asks += 1
            self.mentioned[id(value)] = self.asks

    def listed(self, value: list[Any] | dict[Any, Any]) -> None:
        """Somebody may look at a list: all its items are in it from here on; or at those in a dict."""
        for chosen in self.chosen_later.get(id(value), ()):
            chosen.listed()

    def pending(self, value: list[Any]) -> Any:
        """What there is in place of a list of which nobody has asked yet which items it has; not for rows."""
        found: Any = self.chosen_later.get(id(value), (None,))[-1]
        return found if type(found) is Chosen and not found.is_whole else None

    def told_of(self, value: list[Any]) -> int:
        """How many such there are, or were, that hold a list; and how many functions are lent it."""
        lent = [one for known in self.lendings.get(id(value), ()) if (one := known()) is not None]
        holding = [one.__self__ is value if isinstance(one, BuiltinMethodType) else _has(one, value) for one in lent]
        return sum([one.owner is value for one in self.chosen_later.get(id(value), ())]) + sum(holding)

    def lend(self, value: Any, holder: Any) -> None:
        """Something holds a list, or a dict, for as long as a function is lent it."""
        known = [one for one in self.lendings.get(id(value), ()) if one() is not None]
        self.lendings[id(value)] = [*known, weakref.ref(holder)]

    def _shown_all(self) -> None:
        """Somebody who is not followed may read all lists that objects hold."""
        self.codes.decode_all()
        self.asks += 1
        self.shown_at = self.asks
        for every in self.chosen_later.values():
            for chosen in every:
                chosen.listed()

    def attribute(self, owner: Any, name: str) -> Any:
        """``owner.name``."""
        value = self.attribute_unasked(owner, name)
        if type(value) in (list, dict):
            self._mention(value)
        return value

    def attribute_unasked(self, owner: Any, name: str) -> Any:
        """``owner.name``; if that is a list, or a dict, the hooks are told what is done with it."""
        if name == "__dict__":
            self._shown_all()
        if self.codes.known:
            self.codes.asked(owner, name)
        if isinstance(owner, Traced):
            if type(owner) is Tracer and name in OWN:
                owner.lacks(name)
            if type(owner) is Tracer and name in AS_ARRAYS and owner.node.differentiated:
                return owner.memory(name)  # which is refused
            made = type(owner) is Tracer and name == "strides" and type(dict(owner.node.params).get("position")) is not Path
            if (name in ("flags", "strides", "base") or name in AS_ARRAYS) and not made:
                return self._memory(owner, name)  # of the array itself, not of the trace's copy
            if name in ("size", "shape") and type(owner) is Tracer and self.trace.selections is not None:
                return self.trace.selections.asked(owner, name)
            if type(owner.like) is not np.ndarray:
                self.asks_kind(owner, lambda kind: hasattr(kind, name))
            if type(owner) is Tracer and self.trace.coarse and (name in _OF_DTYPE or owner.node in self.trace.mixed):
                self.trace.asks_dtype(owner)
            return getattr(owner, name)
        if (found := self.beside(owner, name)) is not NOTHING:
            return found
        if is_generator(owner) and not is_drawing(name):
            if (self.path_of(owner) or home_of(owner)) is not None:
                self.stop(f"{name} of a generator of random numbers is read")
            elif self.draws.own is not None and not is_picking(owner, name):
                self.draws.own.passes()
        if isinstance(owner, ModuleType):
            value = getattr(owner, name)
            if not is_library_module(owner):
                return self.read((self.path_of(owner) or Path(owner, ())).then("attr", name), value)
            if isinstance(value, (ModuleType, type, *FUNCTIONS, *PLAIN, tuple)) or is_numpys(type(value)):
                self.check(Path(owner, (("attr", name),)), "is", value)  # somebody may put another in its place
                return value
            return self.read(Path(owner, (("attr", name),)), value)
        if type(owner) is super:
            return self._super(owner, name)
        kind, path = type(owner), self.path_of(owner)
        fixed = of_class(kind, name, NOTHING)
        if isinstance(fixed, property) and (is_users(fixed.fget) or isinstance(fixed.fget, _GETTING)):
            self.check(Path(kind, (("attr", name),)), "is", fixed)
            return self.call(fixed.fget, owner)
        own = name in getattr(owner, "__dict__", ())
        if not own and (path is None or isinstance(fixed, functools.singledispatchmethod)):
            self._guard_descriptor(kind, name, fixed)
        if isinstance(fixed, functools.singledispatchmethod):
            return lambda x, *args, **kwargs: self.call(
                standard.dispatched(self, fixed.dispatcher, x).__get__(owner, kind), x, *args, **kwargs
            )
        getter = of_class(type(fixed), "__get__")
        if is_users(getter) and (not own or hasattr(type(fixed), "__set__")):
            place = _place_in(kind, name)
            self.check(place, "is", fixed)
            self.root(fixed, place)
            self.check(Path(type(fixed), (("attr", "__get__"),)), "is", getter)
            return self.call(getter, fixed, owner, kind)
        if isinstance(fixed, functools.cached_property) and path is None and not own:
            owner.__dict__[name] = value = self.call(fixed.func, owner)
            return value
        if isinstance(fixed, functools.cached_property) and path is not None:
            self.filled_by(fixed.func, f"{path.then('attr', name)!r} is cached")
        if is_users(of_class(kind, "__getattribute__")):
            self.stop(f"{kind.__name__}.__getattribute__ is not followed")
        if path is None and fixed is NOTHING and not own and is_users_class(kind) and not hasattr(kind, name):
            self.check(Path(kind, (("has", name),)), "is", False)
        if path is None and fixed is NOTHING and not own and is_users(of_class(kind, "__getattr__")):
            return self.call(self.special(kind, "__getattr__"), owner, name)
        try:
            value = getattr(owner, name)
        except AttributeError as error:
            if path is not None and not is_users(of_class(kind, "__getattr__")):
                self.check(path.then("has", name), "is", False)
                self.foreseen.append(error)
            raise
        if isinstance(value, MethodType) and value.__self__ is owner and fixed is value.__func__:
            if is_users(fixed):
                self.check(Path(kind, (("attr", name),)), "is", fixed)
                if path is not None and hasattr(owner, "__dict__"):
                    self.check(path.then("attr", "__dict__").then("in", name), "is", False)
            return value
        if isinstance(value, (BuiltinMethodType, types.MethodWrapperType)) and getattr(value, "__self__", None) is owner:
            return value
        made = self._in_turn_of(owner, ("attr", name), value)
        if made is not value:
            return made
        if path is not None:
            plain = isinstance(owner, (np.ndarray, *PLAIN)) and not is_users_class(kind)
            return value if plain else self.read(path.then("attr", name), value)
        if fixed is not NOTHING and is_users_class(kind) and name not in getattr(owner, "__dict__", ()):
            if isinstance(fixed, types.MemberDescriptorType) or hasattr(type(fixed), "__set__"):
                return value  # a slot: what the function put there itself
            if isinstance(fixed, (staticmethod, classmethod)) or not hasattr(type(fixed), "__get__"):
                return self.read(Path(kind, (("attr", name),)), value)
        return value

    def beside(self, owner: Any, name: str) -> Any:
        """What a container among the arguments has as an attribute that is none of its fields; ``NOTHING`` where there is none,
        or the function has put another one there."""
        known = self.trace.carried.get(id(owner)) if self.trace.carried else None
        if known is None:
            return NOTHING
        own, value = vars(owner), known.beside.get(name, NOTHING)
        if known.other and value is not NOTHING and name not in own:
            what = f"{name} of a {type(owner).__name__} is none of its fields, so no derivative is taken by it, and no batch"
            kind: Any = NotDifferentiable if hasattr(type(owner), name) else AttributeError  # as if it were not there
            raise kind(f"{where()}: {what}; make it a field, or a property that computes it")
        if value is not NOTHING and own.get(name, NOTHING) is value:
            return value if known.place is None else self.read(known.place.then("attr", name), value)
        if known.place is not None and name == "__dict__":
            self.check(known.place.then("attr", name), "keys", tuple(vars(known.original)))
            if known.beside:
                self.stop(f"__dict__ of a {type(owner).__name__} is read, which has more than fields")
        elif known.place is not None and name not in own and not _is_above(of_class(type(owner), name)):
            self.check(known.place.then("attr", "__dict__").then("in", name), "is", False)
        return NOTHING

    def _guard_descriptor(self, kind: type, name: str, fixed: Any) -> None:
        """Guard what a class of the user's has under a name, where Python makes something of it that no other check sees."""
        if hasattr(type(fixed), "__get__") and not isinstance(fixed, (*_SEEN, *FUNCTIONS)):
            place = _place_in(kind, name)
            if is_users_class(place.root) and id(place.root) not in self.own_classes:
                self.check(place, "is", fixed)

    def filled_by(self, fun: Any, what: str) -> None:
        """A cache from outside is asked, which ``fun`` fills: see ``check_caches``."""
        reason = f"{where()}: {what}, and what fills it changes what is read beside it"
        if reason not in self.caches:
            self.caches[reason] = Within(fun)

    def _memory(self, owner: Any, name: str) -> Any:
        position = dict(owner.node.params).get("position")
        if type(owner.value) is np.ndarray:
            self.stop(f".{name} looks at the memory of an array")
            if isinstance(position, Path):
                return getattr(position.find(self.leaves), name)
            if name == "base" and owner.base is not None:  # which the function may have, too
                return owner.owner()
            return owner.flags_of(owner.value) if name == "flags" and type(owner) is Tracer else getattr(owner.value, name)
        return getattr(owner, name)

    def _super(self, owner: Any, name: str) -> Any:
        """``super().name``: found in a class further up."""
        base = self.further_up(owner, name)
        value = getattr(owner, name)
        if base is None or not is_users_class(base):
            return value
        path, found = Path(base, (("attr", name),)), base.__dict__[name]
        if isinstance(found, property) and is_users(found.fget):
            self.check(path, "is", found)
            return self.call(found.fget, owner.__self__)
        if isinstance(value, MethodType):
            self.check(path.then("attr", "__func__") if isinstance(found, classmethod) else path, "is", value.__func__)
            return value
        return self.read(path, value)

    def further_up(self, owner: Any, name: str) -> Any:
        """The class in which ``super()`` finds a name, if there is one; that none before it has it is guarded."""
        kind = owner.__self_class__
        if id(kind) not in self.own_classes:
            self.check(Path(kind, (("attr", "__mro__"),)), "is", kind.__mro__)
        for base in kind.__mro__[kind.__mro__.index(owner.__thisclass__) + 1 :]:
            if name in base.__dict__:
                return base
            if is_users_class(base):
                self.check(Path(base, (("attr", "__dict__"), ("in", name))), "is", False)
        return None

    def item(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""
        value = self.item_unasked(owner, key)
        if type(value) in (list, dict):
            self._mention(value)
        if type(owner) is list and type(value) in (list, dict, tuple):  # a row, which is another object later
            self._mention(owner)
        return value

    def item_unasked(self, owner: Any, key: Any) -> Any:
        """``owner[key]``; if that is a list, or a dict, the hooks are told what is done with it."""
        if type(owner) in (list, dict):
            owner, key = self._looked_into(owner, key)
        key = key if isinstance(owner, dict) and self.is_key(key) else self.whole(key)
        if type(owner) is Tracer:
            try:
                return owner[key]
            except IndexError as error:
                self.trace.shows_kind(key)
                if all([type(k) in _OF_SHAPE for k in (key if type(key) is tuple else (key,))]):
                    self.foreseen.append(error)
                raise
        kind, path = type(owner), self.path_of(owner)
        if kind is np.ndarray and type(key) is Tracer and not np.shape(key.like) and key.node.aval.dtype == bool:
            key = bool(key)  # which is no place
        if "__getitem__" in own_ways(kind):
            return self.call(self.special(kind, "__getitem__"), owner, key)
        if owner is np.r_ or owner is np.c_:
            return create.join(self.trace, owner, key)
        if type(key) is Tracer and kind in TABLED and (read := self._looked_up(owner, key)) is not None:
            return read
        if isinstance(owner, type) and is_users(getattr(getattr(owner, "__class_getitem__", None), "__func__", None)):
            return self.call(owner.__class_getitem__, key)  # type: ignore[attr-defined]
        if path is None or isinstance(owner, (np.ndarray, np.generic, np.dtype, type)):
            return self._own_item(owner, key)
        if isinstance(key, slice):
            if not isinstance(owner, (*CONTAINERS, *PLAIN)):
                self.stop(f"a part of {path!r}, a {kind.__name__}, is read, which is not followed")
            return self.deep(owner)[key]
        value, key = self._fetched(path, owner, key), _key(key)
        if not self.is_key(key):
            self.stop(f"the key {key!r:.40} is no string or number, and is not followed")
            return value
        if isinstance(owner, (list, tuple, collections.deque)):
            key = int(key)
            if key < 0:
                self.check(path, "len", len(owner))
                key += len(owner)
        made = self._in_turn_of(owner, ("item", key), value)
        return self.read(path.then("item", key), value) if made is value else made

    def _looked_into(self, owner: Any, key: Any) -> tuple[Any, Any]:
        """A list, or a dict, an item of which is asked for, and its key: maybe one that has but that item."""
        if type(owner) is list and id(owner) in self.chosen_later:
            return self.part_of(self.chosen_later[id(owner)][-1], key)
        loop = self.trace.innermost_loop() if type(owner) is list and type(key) is int and key < 0 else None
        near = loop is not None and loop.reads_near(owner, -key)
        if not near and (type(owner) is list or type(key) is not str):
            self._mention(owner)
        return owner, key

    def is_key(self, key: Any) -> bool:
        """Whether a key can stand in a path: a plain one, or an object from outside that is told by its identity, which is
        guarded."""
        if type(key) is tuple:
            return all(map(self.is_key, key))
        path = self.path_of(key) if is_by_identity(key) else None
        if path is not None and (path.steps or path.root is not key):  # an argument is another one in other calls
            self.check(path, "is", key)
        return path is not None or is_plain_key(key)

    def _check_keys(self, path: Path, owner: dict[Any, Any] | Set[Any]) -> bool:
        """Guard the keys of a dict, or the members of a set, in their order: objects among them, also in tuples, are known by
        themselves. Whether they can be."""
        self.check(path, "keys", tuple(owner))
        waiting, plain = [*owner], True
        while waiting:
            key = waiting.pop()
            if isinstance(key, (tuple, frozenset)) and not own_ways(type(key)):
                waiting += key
            elif is_by_identity(key) and self.path_of(key) is None:
                self.root(key, Path(key, ()))
            elif type(key) not in VALUES and not self.is_key(key):
                plain = False
        if not plain:
            what = "keys" if isinstance(owner, dict) else "members"
            self.stop(f"{path!r} has {what} that are no strings or numbers, which are not followed")
        return plain

    def _own_item(self, owner: Any, key: Any) -> Any:
        """``owner[key]`` of what the function made itself."""
        if type(owner) is np.ndarray and owner.dtype.kind in "biufc" and self._is_traced_place(key):
            return self.trace.adopt(owner)[key]
        if type(key) is Tracer and type(owner) in (list, tuple) and self._is_turn(owner, key):
            place: Any = key
            key = next((i for i in range(len(owner)) if place == i), key)
        if isinstance(owner, dict) and type(key) not in QUICK:
            self.itself([key, *owner])
        if isinstance(owner, dict) and "__missing__" in own_ways(type(owner)) and not dict.__contains__(owner, key):
            return self.call(self.special(type(owner), "__missing__"), owner, key)
        try:
            value = owner[key]
        except (KeyError, IndexError) as error:
            if type(owner) in (dict, list, tuple, str):  # what it holds is guarded
                self.foreseen.append(error)
            raise
        return self._in_turn_of(owner, ("item", key), value) if type(key) in (str, int) else value

    def _is_turn(self, owner: Sequence[Any], key: Tracer) -> bool:
        """Whether a loop that decides reads one of a few objects, in turn: which it is, is decided on. Not by its index."""
        loop = self.trace.innermost_loop()
        if loop is None or not (loop.has_decided and loop.boundaries) or len(owner) > MOST_TURNS or type(key.value) is not int:
            return False
        last = loop.boundaries[-1]
        apart = last.at is None or last.at not in ancestors([key.node], last.at.index - 1)
        return apart and not any([isinstance(item, (Tracer, *PLAIN)) for item in owner])

    def run_records(self, value: Any, fewest: int) -> Over | None:
        """A list of records as what a loop runs over; None for others: see ``symgrad.loops.records``.

        Objects of the function's own in a loop within another one are left: they may be the state that goes round.
        """
        first = value[0] if type(value) in (list, tuple) and value else None
        if self.trace.innermost_loop() is not None and self.path_of(first) is None and not isinstance(first, tuple):
            return None
        made = records(self.trace, value, fewest, self._read_field)
        if made is None:
            return None
        self._turned = [*filter(Records.is_turned, self._turned), made[1]]
        return made[0]

    def _read_field(self, record: Any, step: tuple[str, Any], value: Any) -> Any:
        path = self.path_of(record)
        return value if path is None else self.read(path.then(*step), value)

    def _in_turn_of(self, owner: Any, step: tuple[str, Any], value: Any) -> Any:
        """What is read of a record whose turn it is in a loop; of others the value."""
        for found in reversed(self._turned):
            if found.current is owner:
                return found.field(step, value)
        return value

    def turn_of(self, value: Any) -> Any:
        """In which of the loops over records that run it is the turn of this one; None of other values."""
        return next((one for one in reversed(self._turned) if one.current is value and one.is_turned()), None)

    def make_table(self, owner: Any, most: float = MAX_ITEMS, fewest: int = iterables.FEWEST) -> None:
        """A list, or a plain array that is not filled, of so many items at ``fewest``, becomes a table, which is read at traced
        places: see ``iterables``.

        From outside, one of so many items at ``most``, which are all read.
        """
        known = self._tables.get(id(owner))
        if known is None or known.found is None or not known.holds():
            self._tables.pop(id(owner), None)
            before, held = [*owner] if type(owner) is list else [], sys.getrefcount(owner)
            found = self._table_of(owner, min(most, MAX_ITEMS), fewest)
            self._tables[id(owner)] = _Table(owner, before, found, sys.getrefcount(owner) - held + 1)

    def _table_of(self, owner: Any, most: float, fewest: int) -> Over | None:
        path = self.path_of(owner)
        if type(owner) is np.ndarray:
            rows = owner.ndim > 1 and self.trace.drafts is not None  # that may be filled: they are views
            return None if rows or not owner.ndim else self._known_table(table(owner, fewest, self.trace.once))
        kinds = {*map(type, owner)}
        if len(owner) < fewest or (path is not None and (len(owner) > most or not kinds <= ROWS)):
            return None
        items = owner if path is None else self.deep(owner)
        once = self.trace.once
        made = columns(items, owner, fewest, once) if kinds == {tuple} else table(items, fewest, once)
        return self._known_table(made)

    def _known_table(self, made: Over | None) -> Over | None:
        """A table, whose arrays no iteration makes."""
        for array in () if made is None else made.tables:
            self.trace.constant(array)
        return made

    def weed(self) -> None:
        """Forget the tables of lists, and the iterators, that nobody has any more: they hold what is in them."""
        noted = collections.Counter(map(id, self.trace.writes))
        for ident, known in [*self._tables.items()]:
            owner, often = known.owner, known.often + noted[ident]
            if type(owner) is list and sys.getrefcount(owner) <= OF_A_LOCAL + often:
                del self._tables[ident]
        for ident, used in [*self._used.items()]:
            if type(used) is _Itself and sys.getrefcount(used.value) <= 2:
                del self._used[ident]

    def tables_hold(self) -> bool:
        """Whether what was made a table has the same items, still."""
        return all([known.holds() for known in self._tables.values()])

    def _looked_up(self, owner: Any, key: Tracer) -> Any:
        """The item at a traced place, if it is found in a table: lists of the function's own may grow yet."""
        place = key.value
        if not (type(place) is int or isinstance(place, np.integer)) or not -len(owner) <= place < len(owner):
            return None
        told = key.node.active and self.trace.is_open(key.node)  # each way through a function has a place of its own
        loop = self.trace.innermost_loop()
        short = told or (loop is not None and (loop.forked or loop.decides))  # an item may be read that others do not
        if told or (id(owner) not in self._tables and (type(owner) is not list or self.path_of(owner) is not None)):
            self.make_table(owner, fewest=2 if short else iterables.FEWEST)
        known = self._tables.get(id(owner))
        if known is None or known.found is None or not known.holds():  # other calls may look where it has changed
            return None
        made = known.found.at(key)
        if type(made) is tuple:  # made of the items of one that others hold, too
            self._rows[id(made)] = made, owner[place]
        return made

    def _is_traced_place(self, key: Any) -> bool:
        """Whether an index is traced: by arrays, which make a copy; by numbers, where no view of it will be written into."""
        if _makes_a_copy(key):
            return True
        return self.trace.drafts is None and (slides(key) or any([tracer.node.active for tracer in tracers([key])]))

    def _fetched(self, path: Path, owner: Any, key: Any) -> Any:
        if isinstance(owner, collections.defaultdict) and not own_ways(type(owner)):
            if not self.within(key, owner):  # it makes the item, and so would reading it anew
                self.effect(f"{path!r} makes an item, and is outside the function")
            return owner[_key(key)]
        try:
            return owner[key]
        except (KeyError, IndexError) as error:
            if type(owner) is dict and self.is_key(_key(key)):
                self.check(path.then("in", _key(key)), "is", False)
                self.foreseen.append(error)
            elif type(owner) in (list, tuple):
                self.check(path, "len", len(owner))
                self.foreseen.append(error)
            raise

    def raised(self, error: Any) -> Any:
        """What a ``raise`` statement raises: all that led there is guarded."""
        if isinstance(error, type) and issubclass(error, BaseException):
            error = self.call(error)
        if isinstance(error, BaseException):
            self.foreseen.append(error)
        return error

    def failed(self, *message: Any) -> Any:
        """What an ``assert`` statement raises."""
        return self.raised(AssertionError(*message))

    def iterate(self, value: Any) -> Any:
        """Something that is iterated over, or unpacked."""
        if type(value) in QUICK:
            return value
        if id(value) in self._views:
            return self.viewed(value)
        path = self.path_of(value)
        if "__iter__" in own_ways(type(value)):
            made = self.call(self.special(type(value), "__iter__"), value)
            self._operand(made)
            return made
        if runs_by_place(type(value)):
            self._guard_ways(type(value), "__iter__")
            return self._by_place(value)
        if path is None and not isinstance(value, CONTAINERS):
            self._operand(value)
        if path is None:
            return value
        if isinstance(value, CONTAINERS):
            return self.deep_once(value)
        if not isinstance(value, (np.ndarray, type)):
            self.stop(f"{path!r} is iterated over, which is not followed")
        return value

    def _by_place(self, value: Any) -> Iterator[Any]:
        """The items of what has but ``__getitem__`` to be run over by."""
        for place in itertools.count():
            try:
                item = self.item(value, place)
            except (IndexError, StopIteration):
                return
            yield item

    def runs_through(self, value: Any) -> Any:
        """What a function in C runs over: what an object gives that has a way of its own for that."""
        if type(value) in QUICK or isinstance(value, CONTAINERS):
            return value
        kind = type(value)
        return self.iterate(value) if "__iter__" in own_ways(kind) or runs_by_place(kind) else value

    def coming(self, value: Any, backwards: bool = False, deep: bool = False) -> Any:
        """What iterates over a list, dict or deque from outside, or over what such a dict shows of itself: items as they are
        when their turn comes, with all that is in them if ``deep``. Anything else is itself."""
        view, owner, before = self._views.get(id(value), (None, value, None))
        if view is not None:
            return self._in_turn(owner, view.mapping, before, reversed(owner) if backwards else iter(owner), deep, type(view))
        if not isinstance(owner, (list, dict, collections.deque)) or own_ways(type(owner)) or self.path_of(owner) is None:
            return owner
        if isinstance(owner, dict):
            self.deep_once(owner)
            return reversed(owner) if backwards else iter(owner)
        copy = self.deep(owner) if deep else self.iterate(owner)
        if copy is owner:
            return owner
        places = range(len(owner) - 1, -1, -1) if backwards else itertools.count()
        there = zip(places, reversed(owner) if backwards else owner, strict=False)
        return self._in_turn(owner, copy, dict(enumerate(owner)), there, deep)

    def _in_turn(
        self, owner: Any, copy: Any, before: Any, there: Iterator[Any], deep: bool, shown: type = object
    ) -> Iterator[Any]:
        """The items that come of ``there``, or what is ``shown`` of them: from a ``copy`` if they are as ``before``."""
        for key in there:
            key, item = key if shown is object else (key, owner[key])
            found = copy[key] if before.get(key, NOTHING) is item else self.item(owner, key)
            found = self.deep(found) if deep else found
            yield key if issubclass(shown, _KEYS) else (key, found) if issubclass(shown, _ENTRIES) else found

    def run_over(self, value: Any) -> Any:
        """Something whose items are asked for one after the other, with what is done in between."""
        made = self.coming(value)
        return self.iterate(value) if made is value else made

    def view_of(self, owner: Any, view: Any) -> Any:
        """What a dict from outside shows of itself."""
        self._views[id(view)] = view, owner, {**owner}
        return view

    def viewed(self, value: Any) -> Any:
        """What a dict from outside has shown of itself, as that is by now; other things themselves."""
        view, owner, before = self._views.get(id(value), (None, None, {}))
        if view is None or (len(owner) == len(before) and all([owner.get(key, NOTHING) is before[key] for key in before])):
            return value
        copy = self.deep(owner)
        return copy.keys() if isinstance(view, _KEYS) else copy.items() if isinstance(view, _ENTRIES) else copy.values()

    def unpacked(self, values: Any, nested: bool) -> Iterator[Any]:
        """The items of what a ``for`` runs over, each of which is unpacked."""
        for value in self.run_over(values):
            yield self.unpack(value, nested)

    def unpack(self, value: Any, nested: bool, names: tuple[str | None, ...] = ()) -> Any:
        """Something that is unpacked into several names."""
        value = self.deep(value, asked=UNASKED) if nested else self.iterate(value)
        if nested:
            self._unpacks(value)
        if type(value) in (tuple, list) and len(value) == len(names):
            for item, name in zip(value, names, strict=True):
                if name is not None and isinstance(item, Tracer):
                    _name(item.node, name)
        return value

    def _unpacks(self, value: Any, depth: int = 0) -> None:
        """What is in a container may be unpacked as well: objects whose class has a way of its own for that are asked."""
        for item in value if type(value) in (tuple, list) and depth < 20 else ():
            if type(item) not in QUICK and not isinstance(item, Traced):
                self._unpacks(item, depth + 1)
                if not _UNPACKING.isdisjoint(own_ways(type(item))):
                    self._operand(item)

    def mapping(self, value: Any) -> Any:
        """``**value``."""
        path = self.path_of(value)
        if path is None:
            return value
        if isinstance(value, dict) and not own_ways(type(value)):
            self._check_keys(path, value)
            return {key: self.read(path.then("item", key), item) for key, item in value.items()}
        self.stop(f"{path!r} is unpacked, which is not followed")
        return value

    def deep_once(self, value: Any) -> Any:
        """The items of a container from outside, each read; containers among them keep their paths."""
        path = self.path_of(value)
        assert path is not None
        self._guard_ways(type(value), "__iter__", "__getitem__", "__len__")
        if not {"__getitem__", "__len__"}.isdisjoint(own_ways(type(value))):
            self.stop(f"{path!r} is a {type(value).__name__} with methods of its own, which are not followed")
            return value
        if isinstance(value, (set, frozenset)):
            return self.deep(value)
        if len(value) > MAX_ITEMS:
            self.stop(f"{path!r} has {len(value)} items, too many to be compared at every call; make it an array")
            return value
        if isinstance(value, dict):
            self._check_keys(path, value)
            return list(value)
        self.check(path, "len", len(value))
        return [self.read(path.then("item", i), item) for i, item in enumerate(value)]

    def imported(self, module: str, name: str, value: Any) -> Any:
        """``from module import name`` in a function."""
        home = self.module(module) or sys.modules.get(module)
        return value if home is None or not hasattr(home, name) else self.attribute(home, name)

    def module(self, name: str) -> ModuleType | None:
        """A module of the user's that is imported in a function; another one may come in its place."""
        home = sys.modules.get(name)
        if home is None or is_library_module(home):
            return None
        self.check(Path(sys, (("attr", "modules"), ("item", name))), "is", home)
        return home

    def slice(self, start: Any, stop: Any, step: Any) -> slice:
        """``start:stop:step``."""
        self._operands((start, stop, step))
        return slice(start, stop, step)

    # ---- hooks: questions ----

    def test(self, value: Any) -> Any:
        """Something whose truth is asked for."""
        kind = type(value)
        if kind in QUICK:
            return value
        path, ways = self.path_of(value), own_ways(kind)
        for name in ("__bool__", "__len__"):
            if name in ways:
                found = self.call(self.special(kind, name), value)
                truth = found.like if type(found) is Tracer else found
                if name == "__bool__" and type(truth) is not bool:  # as Python
                    raise TypeError(f"__bool__ should return bool, returned {module_of(type(truth))}.{type(truth).__name__}")
                return found
        if path is not None and not isinstance(value, (type, *FUNCTIONS)):
            self.check(path.then("true", None), "is", bool(value))
        elif path is None:
            self._guard_ways(kind, "__bool__", "__len__")
        return value

    def asked(self, value: Any) -> Any:
        """A value that ``and`` or ``or`` asks for its truth, and may have as its result; see ``answer``."""
        truth = self.test(value)
        return value if truth is value else _Asked(value, bool(truth))

    def answer(self, found: Any) -> Any:
        """The result of ``and`` or ``or``."""
        return found.value if type(found) is _Asked else found

    def whole(self, value: Any) -> Any:
        """Something that is searched, matched, added."""
        if type(value) in QUICK:
            return value
        if isinstance(value, CONTAINERS):
            return self.deep(value)
        if id(value) in self._views:
            return self.viewed(value)
        self._operand(value)
        return value

    def changed(self, value: Any) -> Any:
        """What an augmented assignment begins with."""
        if type(value) not in QUICK and not isinstance(value, CONTAINERS):
            self._operand(value)
        return value

    def changed_in(self, owner: Any, key: Any, named: bool) -> None:
        """The same for an item, or an attribute if it is ``named``, of what the function has made: nothing is recorded."""
        kind = type(owner)
        if kind in QUICK or type(key) not in (int, str):
            return
        within: Any = fields_of(owner) if named else owner if kind in (list, dict) else None
        if type(within) not in (list, dict, Slots):
            return
        if key in (range(-len(within), len(within)) if type(within) is list else within):
            if type(within[key]) in (list, dict):
                self._mention(within[key])
            self.changed(within[key])

    def asked_of(self, owner: Any, name: str) -> None:
        """An attribute is changed, or assigned with others: what is there may be read meanwhile."""
        self.codes.asked(owner, name)

    def is_state(self, owner: Any, name: str, text: str, equal: bool) -> Any:
        """``owner.name == text``, or ``!=``."""
        known = self.codes.is_text(owner, name, text)
        if known is not None:
            return known if equal else NOT(known)
        value = self.compared(self.attribute_unasked(owner, name))
        return value == text if equal else value != text

    def compared(self, value: Any) -> Any:
        """One side of ``==``, ``<`` and their kin."""
        if type(value) in QUICK:
            return value
        if self.path_of(value) is not None and standard.is_record(value):
            made = self.given(value)
            self.itself(self.whole([*attributes(made).values()]))  # which compares these
            return made
        return self.itself(self.whole(value))

    def itself(self, value: Any, depth: int = 0) -> Any:
        """Something that is found or compared, with all in it: what equals itself alone must be that very object."""
        kind = type(value)
        if kind in QUICK or depth > 20:
            return value
        if isinstance(value, HOLDING) and not own_ways(kind):
            for item in held_in(value):
                self.itself(item, depth + 1)
        elif kind is MethodType:
            self.itself(value.__self__, depth + 1)
            self.itself(value.__func__, depth + 1)
        elif (path := self.path_of(value)) is not None and not isinstance(value, type):
            if of_class(kind, "__eq__") is _BY_IDENTITY and own_ways(kind).isdisjoint(_ORDERING):
                self.check(path, "is", value)
            else:
                self._operand(value)
        return value

    def hashed(self, value: Any) -> Any:
        """A key of a dict, or a member of a set, which Python asks for its hash, and compares."""
        self._operands(value)
        self._guard_key(value)
        return self.itself(value)

    def _guard_key(self, value: Any) -> None:
        """Note what a key is that is read from outside: it stays in what the function makes."""
        if type(value) not in (tuple, frozenset):
            return
        path = self.path_of(value)
        if path is not None:
            self.check(path, "keys", tuple(value))
        else:
            for item in value:
                self._guard_key(item)

    def shown(self, value: Any) -> Any:
        """Something that becomes text: how NumPy's numbers read hangs on its print options."""
        if _holds_numpys(value):
            self.check(Path(np.get_printoptions, (("call", ()),)), "eq", np.get_printoptions())
        value = self.whole(value)
        self._operands(value)
        return value

    def identity(self, value: Any, single: bool) -> Any:
        """One side of ``is``; ``single``: the other side is ``None`` or the like, so that the type tells."""
        _, value = self._rows.get(id(value), (None, value))
        path = self.path_of(value)
        if type(value) is Tracer and not single:
            value.tell_apart()
            if value.base is not None:  # which view it is, no code knows that has arrays in the place of views
                self.trace.names_matter()
        if type(value) is Tracer and value.node.op is INPUT:  # each reading has made a Tracer of its own
            path = dict(value.node.params)["position"]
            path = path if isinstance(path, Path) else None
            value = value if path is None else path.find(self.leaves)
        elif type(value) is MethodType and (path := self._methods.get(id(value))) is not None:
            value = path.find(self.leaves)
        if path is not None and not single:
            self.check(path, "is", value)
        if type(value) is Tracer and value.node.aval == BOOL:  # a flag that goes round a loop: there are two such objects
            return bool(value)
        if type(value) is Tracer and not single and value.node.aval == _TRUTH:  # and two of NumPy's
            return np.bool_(bool(value))
        return value

    def _ask_names(self) -> None:
        """Whether two numbers are one object matters: another run gives them no other names, where this one has done nothing
        that would be done again."""
        done = self.trace.impure or self.trace.trying or self.impure or self.effects
        if NAMES not in self.trace.apart and self.trace.iterates and not done:
            raise self.trace.refuse(Otherwise(frozenset([NAMES])))
        self.trace.names_matter()

    def are_one(self, wanted: tuple[bool, ...], *values: Any) -> bool:
        """``a is b is not c``."""
        return all([self.is_one(a, b) is same for same, a, b in zip(wanted, values, values[1:])])  # noqa: B905

    def is_one(self, a: Any, b: Any) -> bool:
        """``a is b``. Arguments may be one object, or one from outside."""
        if self.trace.given and not {id(a), id(b)}.isdisjoint(self.trace.given):
            self.asks_which_is_one = True
            if self._paths.get(id(self.original(a))) or self._paths.get(id(self.original(b))):
                self.stop("a container among the arguments is compared with something outside")
            return self.original(a) is self.original(b)
        if all([type(x) is Tracer and type(x.like) is not np.ndarray and x.node.aval.dtype != bool for x in (a, b)]):
            self._ask_names()
        if isinstance(a, tuple) and isinstance(b, tuple) and self.trace.rollers:  # loops tell them by what is in them
            self.stop("two tuples are compared by which they are, in a function with loops")
        one, other = map(self._place, (a, b))
        if a is b or one is None or other is None or not (_is_argument(one) or _is_argument(other)):
            return self.identity(a, single=False) is self.identity(b, single=False)
        found = one.find(self.leaves) is other.find(self.leaves)
        self.check(one.then("one", other), "is", found)
        return found

    def _place(self, x: Any) -> Path | None:
        """Where an object is at a later call."""
        node = source(x)
        if node is None:
            return self.path_of(x)
        position = dict(node.params)["position"]
        return position if isinstance(position, Path) else Path(Argument(position, node.name or ""), ())

    def within(self, item: Any, owner: Any) -> Any:
        """``item in owner``."""
        kind, path = type(owner), self.path_of(owner)
        if kind is list:
            self._mention(owner)
        if type(item) is Tracer:
            item.tell_apart()
        if "__contains__" in own_ways(kind):
            return bool(self.test(self.call(self.special(kind, "__contains__"), owner, item)))
        if self.trace.rollers and kind in _SEARCHED and (found := self._among(item, owner, path)) is not None:
            return found
        if path is not None and isinstance(owner, (dict, set, frozenset)) and not own_ways(kind):
            found, item = item in owner, _key(item)
            if self.is_key(item):
                self.check(path.then("in", item), "is", found)
                return found
        if isinstance(owner, Iterator) and path is None:
            return self.itself(self.whole(item)) in self.searched(owner)
        return self.itself(self.whole(item)) in self.itself(self.whole(owner))

    def _among(self, item: Any, owner: Any, path: Path | None) -> Any:
        """Whether indices of loops are in a container that no iteration changes, looked up in a table, or None."""
        parts = members.indices(item)
        spans = members.spans_of(self.trace, parts) if parts and (path or type(owner) in (tuple, frozenset)) else None
        if spans is None:
            return None
        key = id(owner), spans, type(item)
        _, size, found = self._members.get(key, (None, -1, None))
        if size != len(owner):
            self.whole(owner)
            found = members.table(spans, owner, type(item) is not tuple)
            self._members[key] = owner, len(owner), found
        return None if found is None else members.looked_up(self.trace, parts, found, spans)

    def searched(self, items: Iterator[Any]) -> Iterator[Any]:
        """An iterator that is searched."""
        self.uses(items)
        return self.watched(items, self.itself)

    def watched(self, items: Iterator[Any], look: Callable[[Any], Any]) -> Iterator[Any]:
        """What an iterator gives to C code, looked at before that has it."""
        for item in items:
            look(item)
            yield item

    # ---- hooks: writes ----

    def wrote_name(self, name: str) -> None:
        """A global or closure variable is assigned."""
        self.effect(f"{name} is assigned, which is outside the function")

    def wrote(self, name: str, value: Any) -> Any:
        """The same in an expression: ``(name := value)``."""
        self.wrote_name(name)
        return self.kept(value)

    def wrote_around(self, reading: FunctionType) -> None:
        """A variable of an enclosing function, which a function is ``reading``, is assigned: that is part of the trace too."""
        self.trace.writes.append(reading.__closure__[0])  # type: ignore[index]

    def uses(self, value: Any) -> None:
        """An object of the function's own is used; an iterator or a random generator is then another than before."""
        if issubclass(type(value), (Iterator, *RANDOM)):
            known = self._used.get(id(value))
            if known is not None and known() is not None:
                self.trace.writes.append(known)
            else:
                self._used[id(value)] = _referring(value)

    def wrote_into(self, owner: Any, *met: Any) -> None:
        """An attribute or an item of ``owner`` is assigned; locals that are read for it hold what is ``met``."""
        if type(owner) is Tracer and owner.tape.draft:
            decided = len(self.trace.guards) > self.trace.decides  # other iterations may not write into it
            if decided or any([type(x) is Tracer and x.node.active for x in met]):
                self.trace.admit(owner)  # now, so that what it holds is not read as a plain number before
        kind = type(owner)
        if isinstance(owner, CONTAINERS) or id(owner) in self.trace.given:
            self.changes_container(owner)
        if not self.has_steady_setters(kind) or self._sets_outside(owner):
            self.stop(f"what is called as a {kind.__name__} is assigned to reads from outside, and is not followed")
        path = self.path_of(owner)
        if path is not None and not isinstance(owner, (*PLAIN, tuple, frozenset)):
            self.changes_outside(path, owner=owner)
        elif not isinstance(owner, (Traced, float, *PLAIN, tuple)):
            self.trace.writes.append(owner)
        elif type(owner) is Tracer:
            self.writes_to(owner if owner.base is None else owner.base)
        self.wrote_memory(owner)

    def sets(self, owner: Any, kind: str, name: str | None, *met: Any) -> None:
        """``owner.name = value`` or ``owner[...] = value``, which ``stored`` is told of next: it may be a number that code can
        put there as well."""
        path = self.path_of(owner)
        if path is None or not is_plainly_set(owner, kind, name):
            self.wrote_into(owner, *met)
        else:
            self.changes_container(owner)
            if kind == "attr" and is_users_class(type(owner)):  # to set it goes on doing nothing else
                self._guard_ways(type(owner), "__setattr__")
                self.check(Path(type(owner), (("has", name),)), "is", hasattr(type(owner), str(name)))
            self.trace.writes.append(owner)
            self.being_set.add(path.then(kind, name))

    def put(self, place: Path, owner: Any, value: Any, how: str | None) -> Any:
        """What is assigned at a place outside, or combined with what is there, as Python is to do it.

        A number that nothing is differentiated by, a string or the like is put there by code, too, as it ends; where a loop may
        go on without the function, a number in the place of one, if it goes round there: else later runs see to that.
        """
        kind, key = place.steps[-1]
        known, old = self.settings.get(place), there(owner, kind, key)
        plain = type(old) in (str, *NUMBERS) and type(value) in (Tracer, str, *NUMBERS)
        operation = OPERATIONS.get(how or "") if plain else None
        new = value if operation is None else operation(self.read(place, old), value)
        new = settled(new)
        read = (
            place in self.lifts
            or any([(place, asked) in self.checks for asked in _ASKED])
            or (known is not None and known.read)
        )
        turning = self.trace.innermost_loop() is not None
        steady = not read and is_settled(new) and (known is None or not turning)
        if place in self.round and is_number(new):
            new = self.trace.lookup(new.node if type(new) is Tracer else self.trace.constant(new)[0])
        self.trace.shows_kind(new)
        if how is not None and type(old) is np.ndarray:
            self._let_go(old)
            self.wrote_memory(old)
        made = self.kept(value)
        if (operation or how is None) and (steady or (old is not NOTHING and self._can_be_put(new, place))):
            self.undo.append(functools.partial(put_at, owner, kind, key, old))
            self.settings[place] = Setting(owner, new, read, made if how is None else new, where())
        else:
            if turning and is_number(old) and is_number(new):
                self.looped.add(place)
            self.settings.pop(place, None)
            self.changes_outside(place, owner=owner)
        return made

    def carry(self, places: Iterable[Path]) -> None:
        """What iterations of loops put at these places, in other calls, goes round in them: it is traced from the beginning."""
        for place in places:
            *before, _ = place.prefixes()
            try:
                owner = before[-1].find(self.leaves)
                number = there(owner, *place.steps[-1])
            except Exception:  # there is nothing like it in this call
                continue
            if is_number(number):
                for path in before[1:]:
                    self.read(path, path.find(self.leaves))
                number = self.read(place, number)
                if type(number) is Tracer:
                    self.settings[place] = Setting(owner, self.trace.lookup(number.node), True, number.value, "")
                    self.round.add(place)

    def going_round(self) -> dict[Key, Tracer]:
        """The numbers that iterations may put outside, as they are now, by what loops know them as."""
        return {(OUTSIDE, place): self.settings[place].value for place in self.round if place in self.settings}

    def owners(self) -> list[Any]:
        """What these are put into."""
        return [self.settings[place].owner for place in self.round if place in self.settings]

    def put_again(self) -> None:
        """Iterations were run without the function: what they put outside is there."""
        for place in self.round:
            one = self.settings.get(place)
            if one is not None and not one.is_still(there(one.owner, *place.steps[-1])):
                made = one.value.value
                put_at(one.owner, *place.steps[-1], made)
                self.settings[place] = one._replace(there=made)

    def _can_be_put(self, value: Any, place: Path | None = None) -> bool:
        """Whether code can put it outside as well: a value that nothing is differentiated by, or a plain one, but no array that
        somebody else may have; and not where a loop may go on without the function, but for numbers that go round in it."""
        turns = self.trace.innermost_loop() is not None
        if self.trace.lanes or (turns and not (type(value) is Tracer and place in self.round)):
            return False
        if type(value) is not Tracer or value.node.differentiated or value.node in self.trace.mixed:
            return is_settled(value)
        return value.node.aval.kind != "array" or (value.base is None and value.node.op is not INPUT)

    def append(self, path: Path, owner: Any, value: Any) -> None:
        """``owner.append(value)``, of a list or deque outside."""
        self.trace.shows_kind(value)
        made = self.kept(value)
        if self._can_be_put(value):
            full = type(owner) is collections.deque and owner.maxlen == len(owner)
            self.undo.append(functools.partial(take_back, owner, [*owner][:full]))
            self.appends.append((path, settled(value), where(), made))
        else:
            self.changes_outside(path, owner=owner)
        owner.append(made)

    def done(self) -> list[Any]:
        """All that was done outside so far."""
        return [*self.effects, *self.appends, *self.settings.values()]

    def check_settings(self) -> None:
        """Note, at the end of the run, what code puts outside; or guard that calls find what they would leave."""
        if self.being_set:
            self.changes_outside(next(iter(self.being_set)))
        asked = {path for path, _ in self.checks} | self.lifts.keys() if self.settings or self.appends else ()
        others = [path for path in asked if type(path.root) is ModuleType or not INDIRECT.isdisjoint(path.steps)]
        others += [path for path in asked if path.steps and path.steps[-1][0] == "has"]
        for place, (owner, value, read, _, line) in self.settings.items():
            if any([sees(path, place) for path in others]):
                self.changes_outside(place, line)
            elif type(value) is Tracer and place in self.lifts and value.node is self.lifts[place].node:
                pass  # it is what it was
            elif type(value) is not Tracer and not read:
                self.check(place, "eq", there(owner, *place.steps[-1]))
            else:
                check = self.checks.get((place, "eq"))
                if check is not None and type(check.expected) in (int, np.int64):
                    self.counted.add(place)
                self.puts.append((place, value))
        for path, value, line, _ in self.appends:
            measured = any([(path, kind) in self.checks for kind in ("len", "same")])
            if measured or any([leads_into(one, path) for one in asked]):
                self.changes_outside(path, line)
            else:
                self.puts.append((path.then("append", None), value))
        if self.told_apart and any([type(value) is Tracer and value.node.aval.kind == "array" for _, value in self.puts]):
            self._puts_nothing(self.puts[0][0])
        if self.puts and self.impure is None:
            self._guard_owners()
            self._look_back()

    def _guard_owners(self) -> None:
        """What is put into is no other thing that is read, in later calls, too."""
        owners = {place.upto(-1) for place, _ in self.puts}
        kinds: dict[type, dict[Path, None]] = {}
        for value in self._keep:
            path = self._paths.get(id(value))
            if path is not None:
                kinds.setdefault(type(value), {})[path] = None
        pairs = [(one, other) for every in kinds.values() for one in owners & every.keys() for other in every if other != one]
        if len(pairs) > MAX_PAIRS:
            self._puts_nothing(pairs[0][0])
            return
        for one, other in pairs:
            self.check(one.then("one", other), "is", False)

    def _look_back(self) -> None:
        """Put back what was there for a moment, or something else where that is the same: what was read is then there by its
        path, as code finds it; else it was what was put, read in another way."""
        places = {place: (one.owner, *place.steps[-1]) for place, one in self.settings.items()}
        new = {place: there(*at) for place, at in places.items()}
        grown = [(path.find(self.leaves), made) for path, *_, made in self.appends]
        put_back([*self.undo])
        for place, at in places.items():
            if same_value(there(*at), new[place]):
                put_at(*at, other_than(new[place]))
        asked = [(path, check) for (path, _), check in self.checks.items() if path not in places]
        others = [path for path, check in asked if not _still(check, path, self.leaves)]
        others += [path for path, x in self.lifts.items() if path not in places and not _finds(path, self.leaves, x.value)]
        for place, at in places.items():
            put_at(*at, new[place])
        for owner, item in grown:
            owner.append(item)
        if others:
            self._puts_nothing(others[0])

    def _puts_nothing(self, path: Path) -> None:
        """What was put is left to the function itself, for what is at a path."""
        self.changes_outside(path)
        self.puts.clear()

    def wrote_arrays(self, arrays: Sequence[Any], out: Any = None) -> None:
        """NumPy writes into these, and into ``out``: an array, or a tuple of some."""
        for array in (*arrays, *(out if type(out) is tuple else (out,))):
            if array is not None:
                self.trace.writes.append(array)
                self.wrote_memory(array)

    def spliced(self, owner: Any) -> Any:
        """A list a part of which is assigned, as what reads the items that are put there."""
        own = isinstance(owner, list) and self.path_of(owner) is None and not is_users(of_class(type(owner), "__setitem__"))
        return _Spliced(self, owner) if own else owner

    def wrote_through(self, owner: Any, key: Any = None, named: bool = False) -> Any:
        """What an expression gives, an item or an attribute of which is assigned; that at ``key`` in place."""
        self.codes.asked_all(owner)
        self.wrote_into(owner)
        if self.path_of(owner) is not None:
            self._written_through.append(owner)
        if key is not None:
            self.changed_in(owner, key, named)
        return owner

    def wrote_memory(self, owner: Any) -> None:
        """What is written into may lie in the memory of arrays from outside: these are looked at again when they are read."""
        memory = _memory_of(owner) if self._arrays else None
        for array, tracer in self._arrays if memory is not None else ():
            if id(tracer) not in self.trace.outside and np.may_share_memory(array, memory):
                self._changes(tracer, array)

    def key(self, key: Any, owner: Any) -> Any:
        """The place in ``owner`` that is assigned to: a dict that outlives the call keeps the key."""
        if isinstance(owner, dict):
            return self.hashed(key) if self.path_of(owner) is None else self.kept(key)
        if type(key) is slice and isinstance(owner, list):
            self.stop("a part of a list is assigned by a slice object, and what is put there is not followed")
        return self.whole(key)

    def stored(self, value: Any, owner: Any, kind: str = "", key: Any = None, how: str | None = None) -> Any:
        """What is assigned to an attribute or an item of ``owner``, at this ``key`` if it is one that is said: plain, if that
        outlives the call. ``how`` says what an augmented assignment does."""
        if kind == "attr":
            self.codes.put(owner, key)
        path = self.path_of(owner)
        if path is None:
            return self.kept(value) if self._sets_outside(owner) else value
        asked = path.then(kind, key if kind == "attr" else None)
        if kind and asked in self.being_set:
            self.being_set.discard(asked)
            key = key_in(owner, key) if kind == "item" else key
            if key is not None:
                return self.put(path.then(kind, key), owner, value, how)
            self.changes_outside(path, owner=owner)
        elif known := [place for place, one in self.settings.items() if one.owner is owner]:
            if not is_settled(value) or not self.round.isdisjoint(known):
                self.changes_outside(path, owner=owner)
            for place in self.round.intersection(known):  # it may be there that this is put
                self.round.discard(place)
                del self.settings[place]
        return self.kept(value)

    def _copied(self, x: Tracer) -> Any:
        """The plain array that something outside holds in place of a traced one.

        Where what is written into one of them could tell them apart, this is the last trace.
        """
        for place in x.owner().parted:
            if type(place) is Named:  # another one of its names may be put there, too
                self.trace.told_apart(place)
        known = next((made for other, _, made, _ in self.copies if other is x), None)
        self.told_apart = self.told_apart or x.base is not None or x.node.op is INPUT or known is not None
        if known is None and (real := self._real(x)) is not None:
            return real
        if known is None:
            known = x.value.copy("K")
            self.copies.append((x, x.node, known, known.copy("K")))
        return known

    def settle_copies(self) -> None:
        """What was written, by the end of the run, into arrays that something outside holds."""
        for x, node, made, _ in self.copies:
            if x.node is not node:
                self.told_apart = True
                if not x.node.differentiated:
                    made[...] = x.value
        for owner in self._written_through:
            self.kept(owner if type(owner) in (list, dict) else fields_of(owner))

    def kept(self, value: Any, depth: int = 0) -> Any:
        """A value that something outside the function will hold: no Tracer of numbers from outside is left in it."""
        kind = type(value)
        if kind is Tracer:
            if value.node.differentiated:
                return value
            if value.base is not None:
                value.refresh()
            return self._copied(value) if isinstance(value.value, np.ndarray) else value.value
        if kind in QUICK or depth > 8 or isinstance(value, (type, ModuleType, *FUNCTIONS)):
            return value
        if isinstance(value, str):
            return self.trace.plain_text(value)
        if kind is list:
            value[:] = [self.kept(item, depth + 1) for item in value]
        elif kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            return tuple.__new__(kind, [self.kept(item, depth + 1) for item in value])
        elif kind is frozenset:
            return frozenset([self.kept(item, depth + 1) for item in value])
        elif kind in (dict, set):
            items = [self.kept(item, depth + 1) for item in (value.items() if kind is dict else value)]
            value.clear()
            value.update(items)
        elif kind is Slots:
            value.update({key: self.kept(item, depth + 1) for key, item in value.items()})
        elif kind is collections.deque or (isinstance(value, (list, dict)) and self.path_of(value) is None):
            self._keep_items(value, depth + 1)
        elif self.path_of(value) is None and (fields := fields_of(value)) is not None:
            fields.update({key: self.kept(item, depth + 1) for key, item in fields.items()})
        return value

    def _keep_items(self, value: Any, depth: int) -> None:
        """The same of all that is in a container, by no method of its class's, and of the attributes that it has."""
        items: Any = dict.items(value) if isinstance(value, dict) else enumerate(value)
        for key, item in [*items]:
            if (made := self.kept(item, depth)) is not item:
                (dict if isinstance(value, dict) else list if isinstance(value, list) else type(value)).__setitem__(
                    value, key, made
                )
        for key, item in [*getattr(value, "__dict__", {}).items()]:
            vars(value)[key] = self.kept(item, depth)

    def result(self, leaf: Any) -> Any:
        """What the call returns that is no tree of numbers: code hands on what is outside, and what cannot change; with another
        object, which the function makes anew at each call, that cannot be compiled."""
        kind = type(leaf)
        if kind is Tracer or is_numeric(leaf) or issubclass(kind, (type, ModuleType)) or module_of(kind).startswith("symgrad."):
            return leaf
        if (known := self._copied_of.get(id(leaf))) is not None:
            leaf = known[1].find(self.leaves)
        path = self.path_of(leaf)
        if path is not None and not isinstance(leaf, (np.ndarray, np.void, Iterator)):
            self.check(path, "is", leaf)
            return leaf
        if is_fixed(leaf):
            return leaf
        self.stop(f"a {kind.__name__} is returned, which is another one at each call")
        if isinstance(leaf, VIEWS):
            for shown in gc.get_referents(leaf):
                self.kept(shown)
        return self.kept(leaf)

    def place(self, owner: Any) -> Any:
        """What an item is assigned in: an array that the trace has read stays what it is a copy of."""
        flat = type(owner) is np.flatiter
        array = owner.base if flat else owner
        known = next((self.trace.another(known) for one, known in self._arrays if one is array), None)
        known = self._kept_copy(array) if known is None else known
        return owner if known is None else known.flat if flat else known

    def _let_go(self, array: np.ndarray[Any, Any]) -> None:
        """Python writes into an array itself: if it is a copy that something outside holds, it is by itself from here on."""
        for x, node, _, _ in [copy for copy in self.copies if copy[2] is array]:
            self.told_apart = True
            if x.node is not node and not x.node.differentiated:
                array[...] = x.value
        self.copies = [copy for copy in self.copies if copy[2] is not array]

    def _kept_copy(self, array: Any) -> Tracer | None:
        """What an array stands for that something outside holds as a copy, as it was then; None for others."""
        return next((x for x, _, made, before in self.copies if made is array and same_value(made, before)), None)

    def writes_to(self, tracer: Tracer) -> bool:
        """A Tracer that is not the function's own is written to: the array that it stands for is, too."""
        if id(tracer) in self.trace.outside:
            return True
        for array, known in self._arrays:
            if known is tracer:
                self._changes(tracer, array)
                if not array.flags.writeable:
                    raise ValueError("assignment destination is read-only")
                tracer.frozen = False
                return True
        return False

    def _changes(self, tracer: Tracer, array: np.ndarray[Any, Any]) -> None:
        path = dict(tracer.node.params)["position"]
        self.changes_outside(path)
        self.trace.outside[id(tracer)] = (tracer, array)

    def wrote_array(self, array: Any, tracer: Tracer) -> None:
        """What shares memory with an array that was written to has changed, too."""
        for other, known in self._arrays:
            if known is not tracer and np.may_share_memory(other, array):
                known.node, known.value = self.trace.constant(other.copy("K"))
                known.version += 1

    def _real(self, tracer: Tracer) -> Any:
        """The array from outside that a Tracer stands for, or a view of it; None if there is none."""
        if tracer.base is None:
            return next((array for array, known in self._arrays if known is tracer), None)
        array = self._real(tracer.base)
        op, rest, params = tracer.how
        if params.get("spec") == (Ellipsis,):  # another name of it
            return array
        found = None if array is None else op.fun(array, *[r.value if type(r) is Tracer else r for r in rest], **params)
        return found if found is not None and np.may_share_memory(found, array) else None


def held_in(value: Any) -> Iterable[Any]:
    """All that is in a container."""
    return (*value, *value.values()) if isinstance(value, dict) else value


def _all_held_in(value: Any) -> Iterable[Any]:
    """All that is in a container or an object, or that a method or a partial is made of."""
    if isinstance(value, METHODS):
        return value.__self__, getattr(value, "__func__", None)
    if isinstance(value, functools.partial):
        return value.func, *value.args, *value.keywords.values(), *vars(value).values()
    fields = attributes(value).values()
    return (*held_in(value), *fields) if isinstance(value, HOLDING) else fields


def _is_above(fixed: Any) -> bool:
    """Whether what a class has comes before what objects have themselves, or is a method."""
    return hasattr(type(fixed), "__set__") or isinstance(fixed, (FunctionType, staticmethod, classmethod))


def _place_in(kind: type, name: str) -> Path:
    """Where a class, or the base that has it, has a name."""
    home = next(base for base in kind.__mro__ if name in base.__dict__)
    return Path(home, (("attr", "__dict__"), ("item", name)))


def _still(check: Check, path: Path, leaves: Sequence[Any]) -> bool:
    """Whether a check holds now."""
    try:
        now = path.find(leaves)
        return now is check.expected.find(leaves) if check.kind == "same" else check.holds(now)
    except Exception:
        return False


def _finds(path: Path, leaves: Sequence[Any], value: Any) -> bool:
    """Whether a value is what a path leads to now."""
    try:
        return same_value(path.find(leaves), value)
    except Exception:
        return False


def _memory_of(owner: Any) -> Any:
    """The array that what is written into is, or has its memory in; None if there is none."""
    if type(owner) is Tracer:
        return owner.value if owner.tape.draft else None
    if isinstance(owner, np.flatiter):
        return owner.base
    if isinstance(owner, np.ndarray):
        return owner
    try:
        return np.asarray(memoryview(owner))
    except (TypeError, ValueError):  # it has no memory to share, or of kinds that NumPy has not
        return None


def _makes_a_copy(key: Any) -> bool:
    """Whether there are traced arrays in an index, so that what it finds is no view."""
    parts = key if type(key) is tuple else (key,)
    return any([type(part) is Tracer and np.ndim(part.value) > 0 for part in parts])


def _key(key: Any) -> Any:
    """A key without Tracers in it: hashing them has made guards of their values."""
    if type(key) is Tracer:
        return key.value
    return tuple(map(_key, key)) if type(key) is tuple else key


def _holds_numpys(value: Any, depth: int = 0) -> bool:
    """Whether a value is one of NumPy's, or a container of such."""
    if isinstance(value, CONTAINERS) and depth < 20:
        return any([_holds_numpys(item, depth + 1) for item in (value.values() if isinstance(value, dict) else value)])
    return isinstance(value, (np.ndarray, np.generic))


def _is_argument(path: Path) -> bool:
    return type(path.root) is Argument and not path.steps


def source(x: Any) -> Node | None:
    """The input that a traced value is; behind an identity it is the same value."""
    node = x.node if type(x) is Tracer else None
    while node is not None and node.op is IDENTITY:
        node = node.args[0]
    found = node is not None and node.op is INPUT and type(dict(node.params)["position"]) is not Drawn
    return node if found else None


def _name(node: Node, name: str) -> None:
    """The user's name for a value that has none yet; behind an identity it is the same value."""
    if not (node.name or "").isidentifier():
        node.name = name
    if node.op is IDENTITY:
        _name(node.args[0], name)


def _named(path: Path) -> str:
    return "".join(c if c.isalnum() else "_" for c in repr(path)).strip("_") or "state"


class _Itself:
    """A reference to what can have no weak one, as ``zip`` of two lists."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


def _referring(value: Any) -> Callable[[], Any]:
    """What gives ``None`` when ``value`` is gone, which is not kept if that can be: as a generator goes, what is in its
    ``finally`` runs."""
    return next(_references(value), _Itself(value))


def _references(value: Any) -> Iterator[Callable[[], Any]]:
    """Weak references to an iterator, or to those that it runs over, as ``enumerate`` and its kin do."""
    try:
        yield weakref.ref(value)
    except TypeError:
        for part in gc.get_referents(value):
            if isinstance(part, Iterator) or (isinstance(part, (tuple, list)) and isinstance(value, Iterator)):
                yield from _references(part)


def rebuilt(like: Any, made: Any) -> Any:
    """A container of a subclass (namedtuple, OrderedDict, deque) with other items, without a call of the user's methods."""
    kind: Any = type(like)
    if isinstance(like, tuple):
        return tuple.__new__(kind, made)
    base: Any = next(one for one in kind.__mro__ if issubclass(one, CONTAINERS) and not is_users_class(one))
    found = base.__new__(kind)
    if base is collections.deque:
        base.__init__(found, made, like.maxlen)
    elif base is collections.defaultdict:
        base.__init__(found, like.default_factory, made)
    else:
        base.__init__(found, made)
    return found
