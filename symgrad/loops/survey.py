"""What the locals of a loop hold between two iterations, looked through so that it can be compared.

A ``Survey`` goes through local variables, and the containers, objects and functions in them. Traced values are noted by where
they are; of all else there is a description, which is equal to that of the next boundary if nothing has changed. A list, dict
or object that has two names at all boundaries is noted of one of them.
"""

from __future__ import annotations

import enum
import functools
import pickle
import random
from collections import deque
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import numpy as np

from symgrad.ir import COMPARED, Aval, content_of
from symgrad.loops.logs import Holders, Logs
from symgrad.loops.patterns import TRACED, Boundary, Key, iterations
from symgrad.source.origins import is_plain_class, module_of
from symgrad.tracing.kinds import Cells, Slots, fields_of
from symgrad.tracing.trace import Trace, is_bare, is_held_so_often
from symgrad.tracing.tracer import NUMBERS, Tracer, plain

WIDEST = 64  # items of a container that are looked at
DEEPEST = 6  # containers in one another
ROW = 8  # traced values in a list in a list, above which is noted but which they are
LONGEST = 4096  # of a list of traced values of which is noted which they are
LOOKS = 1 << 21  # at items of such lists, of all loops of a trace together
MORE = 64  # such looks for each operation of it
AGAIN = ("again",)  # what is noted of a list, dict or object that has another name, in a local that nobody reads
DRAFT = ("draft",)  # of an array that the function fills with plain numbers, beside its content
_OF_CLASSES = frozenset(
    "__module__ __qualname__ __doc__ __dict__ __weakref__ __annotations__ __dataclass_fields__ __dataclass_params__".split()
)  # what they have that is no part of what the function does
SHARED = ("shared",)  # of such an array that has several names


class Survey:
    """Looks through local variables, at so ``many`` items of lists in them: tables grow with their loops.

    ``thorough``: all that is not traced is noted too, so that it can be compared. ``own`` are locals that functions share.
    ``logs`` are the lists in objects that iterations append to; ``begins`` tells what it found of one, where but some do;
    ``coded`` are the numbers of texts in containers that go round.
    """

    def __init__(
        self,
        trace: Trace,
        thorough: bool,
        many: int,
        own: Mapping[str, Any],
        logs: Logs | None = None,
        begins: Callable[[Holders, list[Any]], None] | None = None,
        coded: Mapping[Key, Tracer] | None = None,
    ) -> None:
        self.trace, self.thorough, self.many, self.own, self.logs, self.begins = trace, thorough, many, own, logs, begins
        self.coded = coded or {}
        self.holds: dict[Key, Tracer] = {}
        self.rest: dict[str, Any] = {}
        self.containers: set[int] = set()
        self.functions: dict[int, Key] = {}  # where each was met first
        self.open: list[int] = []  # the objects that are looked into
        self.shared: dict[Key, int] = {}  # which list, dict or object is where
        self.known: frozenset[int] = frozenset()  # such as need no other names
        self.lists: dict[int, Holders | None] = {}  # where objects hold lists, by identity; None where two do
        self.drafts: dict[int, list[Key]] = {}  # where each array is that the function fills with plain numbers

    def local(self, name: str, value: Any) -> None:
        """One local variable."""
        if not self.thorough and (value is None or type(value) in (int, float, bool, str, complex, FunctionType, ModuleType)):
            return
        found = self._look(value, (name,), 0)
        if self.thorough:
            self.rest[name] = found

    def _look(self, value: Any, key: Key, depth: int) -> Any:
        """A comparable description of a value; traced values in it go into ``holds``."""
        kind = type(value)
        if kind is Tracer:
            self.containers.add(id(value))
            if value.tape.draft:
                self.drafts.setdefault(id(value.owner()), []).append(key)
                found = self._array(value.value, key, depth)
                return found if found is None or found[0] == "is" else (DRAFT, *found)
            self.holds[key] = value
            return TRACED
        if id(value) in self.known:
            return AGAIN
        turn = None if depth or self.trace.hooks is None else self.trace.hooks.turn_of(value)
        if turn is not None:
            return ("turn", id(turn))
        if key in self.coded:
            self.holds[key] = self.coded[key]
            return TRACED
        if value is None or kind in (int, bool, str, bytes, type(Ellipsis), range) or isinstance(value, enum.Enum):
            return (kind, value)
        if kind is slice:
            ends = value.start, value.stop, value.step
            return (kind, tuple([self._look(end, (*key, i), depth + 1) for i, end in enumerate(ends)]))
        if kind in (float, complex) or isinstance(value, np.generic):
            return (kind, repr(value))
        if kind in (set, frozenset) and len(value) <= WIDEST and all([type(item) in (int, str) for item in value]):
            self._note(key, value)
            return (kind, frozenset(value))
        if isinstance(value, (FunctionType, MethodType, BuiltinFunctionType, functools.partial)):
            if type(value) is BuiltinFunctionType and value.__name__ == "append" and type(value.__self__) is list:
                self._find_list(value.__self__, Holders((*key, 0), ()))
            if (first := self.functions.setdefault(id(value), key)) != key:
                return ("again", first)  # each is asked once
            held = [self._look(part, (*key, i), depth) for i, part in enumerate(self._held(value))]  # wrappers are no depth
            if isinstance(value, FunctionType) and not (vars(value).keys() - {"__wrapped__"}):  # each call may have another one
                return ("code", value.__code__, id(value.__globals__), *held)
            if isinstance(value, MethodType):  # each time that it is asked for, there is another one
                return ("method", id(value.__self__), value.__func__, *held)
            return ("is", id(value), value, *held)
        if isinstance(value, type) and self.trace.hooks is not None and id(value) in self.trace.hooks.own_classes:
            return ("is", id(value), value, *self._members(value, key, depth))
        if isinstance(value, (ModuleType, type, np.ufunc, np.dtype)):
            return ("is", id(value), value)
        if kind in (np.random.RandomState, np.random.Generator, random.Random):  # whatever draws from it changes that
            if self.trace.hooks is not None and self.trace.hooks.knows_draws(value):
                return ("is", id(value))
            if kind is random.Random:
                return ("is", id(value), value.getstate())
            state = value.get_state(legacy=False) if kind is np.random.RandomState else value.bit_generator.state
            return ("is", id(value), pickle.dumps(state))
        if kind is list and self.logs is not None:
            holders = self.lists.get(id(value))
            if self.begins is not None and holders is not None and key == holders.key and id(value) not in self.logs.known:
                self.begins(holders, value)
            if id(value) in self.logs.known:
                self._note(key, value)
                found, more = self.logs.known[id(value)].seen(self.trace)
                self.holds.update(more)
                self.containers.update(map(id, more.values()))
                return found
        fields = fields_of(value)
        long = kind is list and depth > 0 and len(value) > ROW and self._may_look(value) and all(map(_is_own, value))
        if depth < DEEPEST and not long and _is_sequence(kind) and fields is None and len(value) <= min(WIDEST, self.many):
            self.many -= len(value)
            self._note(key, value)
            known = (kind, value.maxlen) if kind is deque else kind
            return (known, tuple([self._look(item, (*key, i), depth + 1) for i, item in enumerate(value)]))
        if depth < DEEPEST and kind is list and len(value) <= LONGEST and self._may_look(value) and all(map(_is_own, value)):
            self._note(key, value)  # as loops around append to: the same items are what they were
            return (kind, id(value), tuple([(id(item), item.node) for item in value]) if self.thorough else ())
        if depth < DEEPEST and kind is dict and len(value) <= WIDEST:
            self._note(key, value)
            names = plain(tuple(value))  # a traced number that is a key has been looked at
            found = [self._look(item, (*key, name), depth + 1) for name, item in zip(names, value.values(), strict=True)]
            return (kind, names, tuple(found))
        if kind is np.ndarray:
            return self._array(value, key, depth)
        if self.trace.hooks is not None and self.trace.hooks.path_of(value) is not None:
            return ("is", id(value), value)  # from outside: changes are effects
        whole = type(fields) is Slots or (type(fields) is dict and is_bare(kind))
        small = depth < DEEPEST and whole and len(fields or ()) <= WIDEST
        home = module_of(kind)
        if small and (home.startswith("symgrad.scipy.") or home.split(".")[0] not in ("symgrad", "numpy", "builtins")):
            assert fields is not None
            if id(value) in self.open:  # it leads back to itself, by a method that it holds
                return ("within", self.open.index(id(value)))
            if self.begins is not None and id(value) not in self.containers:
                self._find_lists(key, kind, fields)
            self._note(key, value)
            self.open.append(id(value))
            found = [self._look(item, (*key, name), depth + 1) for name, item in fields.items()]
            self.open.pop()
            return (kind, tuple(fields), tuple(found))
        return (object(),)  # like nothing else

    def _find_lists(self, key: Key, kind: type, fields: Mapping[str, Any]) -> None:
        """Note which lists an object holds, or a dict in it, to which iterations may append: nobody else can come by one than
        by the names of attributes and items."""
        known: list[tuple[Any, Holders]] = []
        for name, held in fields.items() if is_plain_class(kind) else ():
            known.append((held, Holders((*key, name), ())))
            if type(held) is dict and len(held) <= WIDEST:
                dicts = (held,)  # one for all that are in it, as its holders are counted
                known += [(item, Holders((*key, name, part), dicts)) for part, item in held.items() if type(part) is str]
        for item, holders in known:
            if type(item) is list:
                self._find_list(item, holders)

    def _find_list(self, value: list[Any], holders: Holders) -> None:
        self.lists[id(value)] = None if id(value) in self.lists else holders

    def _may_look(self, items: list[Any]) -> bool:
        """Whether it is worth to look at all of these: loops without a pattern that fill lists would do little else."""
        self.trace.looks += len(items)
        return self.trace.looks < LOOKS + MORE * len(self.trace.graph.nodes)

    def _note(self, key: Key, value: Any) -> None:
        """A list, dict or object, which may be changed, and have other names."""
        self.containers.add(id(value))
        self.shared[key] = id(value)

    def _held(self, fun: Any) -> Sequence[Any]:
        """What a function holds, which may change from one call to the next."""
        if isinstance(fun, functools.partial):
            return (fun.func, fun.args, fun.keywords)
        if not isinstance(fun, FunctionType):
            return (fun.__self__, getattr(fun, "__func__", None))
        self.containers.update(map(id, fun.__closure__ or ()))
        known = [(name, cell.cell_contents) for name, cell in Cells(fun).cells.items()]
        held = [name if name in self.own and self.own[name] is item else item for name, item in known]  # the local itself
        return [*held, fun.__defaults__, fun.__kwdefaults__, *vars(fun).values()]

    def _members(self, made: type, key: Key, depth: int) -> list[Any]:
        """What a class of the function's own holds, which may change; each is asked once."""
        if id(made) in self.functions:
            return []
        self.functions[id(made)] = key
        found: list[Any] = []
        for name, item in vars(made).items():
            inner = getattr(item, "__func__", item)
            held = [item.fget, item.fset, item.fdel] if isinstance(item, property) else [inner]
            fixed = name in _OF_CLASSES or isinstance(item, (MemberDescriptorType, GetSetDescriptorType))
            found += [(name, self._look(one, (*key, name), depth + 1)) for one in ([] if fixed else held)]
        return found

    def _array(self, value: Any, key: Key, depth: int) -> Any:
        if value.dtype == object:
            if value.size > WIDEST:
                return (object(),)
            self._note(key, value)
            return (value.shape, tuple([self._look(item, (*key, i), depth + 1) for i, item in enumerate(value.flat)]))
        if not self.thorough:
            return None
        if value.size > COMPARED:
            return ("is", id(value), value)
        self.containers.add(id(value))
        return content_of(value)


def holds_arrays(value: Any) -> bool:
    """Whether a list, or the like, has traced arrays as items."""
    items = value.values() if isinstance(value, dict) else value
    return any([type(item) is Tracer and type(item.like) is np.ndarray for item in items])


def holds_plain(value: Any, noted: Mapping[int, int]) -> bool:
    """Whether a list, or the like, holds numbers, texts, and arrays and lists of numbers that nobody else holds, but where they
    are ``noted`` (ids) so often."""
    for item in value.values() if isinstance(value, dict) else value:
        if type(item) is list:
            if not (is_held_so_often(item, 1 + noted.get(id(item), 0), 0) and all(map(_is_plain, item))):
                return False
        elif _is_own(item) and type(item.like) is np.ndarray:
            if not is_held_so_often(item, 1 + noted.get(id(item), 0), 0):
                return False
        elif not _is_plain(item):
            return False
    return True


def _is_plain(item: Any) -> bool:
    """Whether it is a number or a text, which nobody writes into."""
    known = _is_own(item) and isinstance(item.node.aval, Aval)
    return type(item) in NUMBERS or type(item) is str or (known and item.node.aval.kind != "array")


def _is_own(item: Any) -> bool:
    """Whether it is a traced value that is no view of another one."""
    return type(item) is Tracer and item.base is None and not item.tape.draft


def _is_sequence(kind: type) -> bool:
    """Whether it is a list, a deque or a tuple, or one with names, and has no slots."""
    return kind is deque or any([issubclass(kind, one) and kind.__basicsize__ == one.__basicsize__ for one in (list, tuple)])


def inner(depth: int, name: str) -> str:
    """What a local of a function that is called in a loop is called there."""
    return f"{depth}:{name}"


def moved(a: Any, b: Any, key: Key) -> set[Key] | None:
    """Where two descriptions have other numbers, or arrays, in containers; None where something else is not the same."""
    if a == b:
        return set()
    if _is_of_value(a) and _is_of_value(b):
        return {key} if len(key) > 1 else None
    names = _names_in(a, b)
    if names is None:
        return None
    found = [moved(x, y, (*key, name)) for name, x, y in zip(names, a[-1], b[-1], strict=True)]
    return None if any([one is None for one in found]) else set().union(*found)  # type: ignore[arg-type]


def is_state(what: Any) -> bool:
    """Whether it describes a text, or another thing of which a loop may have now this one in a local, now that one: a plain
    int, a function that shares no variables, a tuple with a text."""
    if is_text(what) or what[0] is int or (what[0] == "code" and len(what) == 5):
        return True
    found = what[-1] if isinstance(what[0], type) and issubclass(what[0], tuple) else ()
    return any(map(is_text, found))


def may_be_held(value: Any) -> bool:
    """Whether it is a thing that two locals may hold: an object, a container, or a function; no number, array or text."""
    return not isinstance(value, (*_VALUES, enum.Enum))


def is_one(a: Any, b: Any) -> bool:
    """Whether both are one thing, or the same method of one object, which is another thing each time that it is asked for."""
    return a is b or (type(a) is type(b) is MethodType and a.__self__ is b.__self__ and a.__func__ is b.__func__)


def keys_beside(places: Any, key: Any) -> list[Any]:
    """The other keys at which there is the same object, or function; in lists none."""
    value = places[key]
    if not isinstance(places, MutableMapping) or type(value) is MethodType or not may_be_held(value):
        return []
    return [other for other in places if other != key and places[other] is value]


def things_in(owner: Any) -> list[tuple[Any, Any]]:
    """What a short container, or an object, has, and where."""
    fields = owner if type(owner) is dict else fields_of(owner)
    if type(fields) is dict and (fields is owner or is_bare(type(owner))):
        found = [(key, value) for key, value in fields.items() if type(key) in (str, int)]
    else:
        found = [*enumerate(owner)] if type(owner) in (list, tuple) else []
    return found if len(found) <= WIDEST else []


_VALUES = (Tracer, np.ndarray, np.generic, int, float, complex, str, bytes, type, ModuleType, type(None), type(Ellipsis))


def turned(a: Any, b: Any, key: Key) -> set[Key]:
    """Where two descriptions have other texts, methods, numbers or arrays in containers, traced or not."""
    if a == b:
        return set()
    if (is_text(a) and is_text(b)) or _are_methods(a, b) or (_is_of_value(a) and _is_of_value(b)):
        return {key} if len(key) > 1 else set()
    names = _names_in(a, b)
    pairs = [] if names is None else [*zip(names, a[-1], b[-1], strict=True)]
    if type(a) is type(b) is tuple and a[:1] == b[:1] == ("code",) and a[1:3] == b[1:3] and len(a) == len(b):
        pairs = [(i, x, y) for i, (x, y) in enumerate(zip(a[3:], b[3:], strict=True))]
    return {one for name, x, y in pairs for one in turned(x, y, (*key, name))}


def _are_methods(a: Any, b: Any) -> bool:
    """Whether they describe methods of one object."""
    return type(a) is type(b) is tuple and a[:1] == b[:1] == ("method",) and a[1] == b[1]


def _names_in(a: Any, b: Any) -> Sequence[Any] | None:
    """The keys of what two descriptions are of, if these are two containers alike."""
    known = type(a) is type(b) is tuple and len(a) == len(b) and len(a) in (2, 3) and a[:-1] == b[:-1]
    if not known or not (type(a[-1]) is type(b[-1]) is tuple) or len(a[-1]) != len(b[-1]) or type(a[-2]) not in (type, tuple):
        return None
    return a[1] if len(a) == 3 else range(len(a[-1]))


def is_text(what: Any) -> bool:
    """Whether it describes a text, a member of an ``Enum``, or None."""
    kind = what[0] if type(what) is tuple and len(what) == 2 else None
    return isinstance(kind, type) and (kind in (str, NoneType) or issubclass(kind, enum.Enum))


def _is_of_value(what: Any) -> bool:
    """Whether it describes a number or an array, traced or not."""
    if what is TRACED or what[0] is DRAFT or (len(what) == 3 and isinstance(what[1], np.dtype)):
        return True
    return isinstance(what[0], type) and what[0] in NUMBERS  # in its place may be another description, of an array


def without_twins(bounds: list[Boundary], private: Collection[str]) -> list[Boundary]:
    """The same, with one name for each list, dict or object that has two everywhere, or wherever ways meet at a place; those
    come first that are not ``private``."""
    twins = _twins([one for bound in bounds for one in bound.every()], private)
    other = _among(twins)
    once = [bound.once(twins, other) if twins else bound._replace(joins={**bound.joins}) for bound in bounds]
    begun = [bound.joins for bound, _ in iterations(once)]
    for site in [site for site in begun[0] if all([site in joins for joins in begun])] if begun else ():
        here = [joins[site] for joins in begun]
        twins = _twins([join.bound for join in here], {*private, *here[0].dead})
        other = _among(twins)
        for joins, join in zip(begun, here, strict=True) if twins else ():
            joins[site] = join._replace(bound=join.bound.once(twins, other))
    return once


def _among(twins: Mapping[Key, Key]) -> Callable[[Key], bool]:
    """What tells whether a place is in one of these; many ask for the same ones."""
    lengths = {*map(len, twins)}
    return functools.cache(lambda key: any([key[:length] in twins for length in lengths]))


def _twins(bounds: Sequence[Boundary], last: Collection[str]) -> dict[Key, Key]:
    """Names of lists, dicts and objects that have another one in all of these, with that; the ``last`` names last."""
    groups: dict[int, list[Key]] = {}
    for key, ident in bounds[0].shared.items():
        groups.setdefault(ident, []).append(key)
    twins: dict[Key, Key] = {}
    for group in [group for group in groups.values() if len(group) > 1]:
        first, *others = sorted(group, key=lambda key: (":" in key[0], key[0] in last, repr(key)))
        alike = [one.shared for one in bounds]
        twins |= {key: first for key in others if all([key in one and one[key] == one.get(first) for one in alike])}
    return twins
