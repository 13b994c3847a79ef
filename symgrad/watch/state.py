"""The hooks of an instrumented function: ``State`` sees all that happens at its border while it is traced.

What it reads and writes is in ``symgrad.watch.reads``, what it calls in ``symgrad.watch.calls``; loops and statements are here.
"""

from __future__ import annotations

import abc
import builtins
import collections
import contextlib
import functools
import itertools
import operator
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Protocol

import numpy as np

from symgrad.loops import iterables
from symgrad.loops.appended import KEPT, Chosen, is_index
from symgrad.loops.ends import Ends
from symgrad.loops.iterables import SECTION, Over, Turns, columns, how_often, over, paired, picked, ragged, room, table
from symgrad.loops.logs import Later, Row
from symgrad.loops.patterns import Own
from symgrad.loops.rolling import SHORT, SHORTEST, Roller
from symgrad.loops.segments import together
from symgrad.loops.survey import is_one, keys_beside, may_be_held
from symgrad.ops import create
from symgrad.ops.core import REGISTRY, Op, Traced
from symgrad.ops.engine import BOOL, NAMED, NOT, TO_PYTHON
from symgrad.source.decisions import changing
from symgrad.source.instrument import HOOKS, instrumented
from symgrad.source.origins import (
    CONTAINERS,
    FUNCTIONS,
    PLAIN,
    is_installed,
    is_of_others,
    is_users,
    is_users_class,
    module_of,
    needs_drafts,
    of_class,
)
from symgrad.tracing.drafts import Drafts
from symgrad.tracing.frames import user_line
from symgrad.tracing.kept import Holders, assigned_outside
from symgrad.tracing.kinds import CACHED, UNBOUND, Cells, Within, attributes, fields_of, refuse_unfollowed
from symgrad.tracing.mixed import Otherwise
from symgrad.tracing.opaque import of_values
from symgrad.tracing.trace import NAMES, Named, Trace
from symgrad.tracing.tracer import AS_ARRAYS, NUMBERS, OWN, Tracer, plain, tracers
from symgrad.watch import standard
from symgrad.watch.calls import (
    COMPARING,
    OF_FUNCTIONS,
    Calls,
    Holder,
    handed,
    is_foreign,
    is_number,
    is_partial,
    is_product,
    method_of,
    of_sparse,
    reads_memory,
    sparse_product,
)
from symgrad.watch.codes import Other, Same, Tupled, is_in_object, is_plain_function, is_text
from symgrad.watch.guards import Path
from symgrad.watch.puts import NOTHING
from symgrad.watch.reads import ENDS, HOLDING, MAX_ITEMS, QUICK, TABLED, held_in, rebuilt, source

_OF_ITEMS = (zip, enumerate, reversed, itertools.pairwise, itertools.islice)
# what they give was settled when they were made
_SNAPSHOTS = (itertools.combinations, itertools.permutations, itertools.product, itertools.combinations_with_replacement)
_LISTS = (list, collections.deque)
_OF_CHOSEN = (len, sum, min, max, np.array, np.asarray)  # what may be given all items of a list as an array
_NO_FIELDS = (FunctionType, staticmethod, classmethod, type)  # of what is in classes
_MAKERS = (type, abc.ABCMeta, type(Protocol))  # of classes, that do nothing else


class State(Calls):
    """The hooks of one traced call, and what they found."""

    # ---- loops ----

    Unbound = NameError  # what a local raises that has no value yet
    _aside: list[Any]

    def loop(
        self,
        value: Any,
        private: tuple[str, ...] | None,
        stored: tuple[str, ...],
        tested: bool,
        nested: bool | None,
        targets: tuple[str, ...],
        decides: int,
        lists: tuple[tuple[str, int, bool, str], ...],
        apart: tuple[str, ...],
    ) -> Any:
        """What a ``for`` statement runs over; by index where that can be rolled up, with the index traced.

        ``private``: the names that it assigns and nothing else reads, None where it pauses, and others go on meanwhile;
        ``stored``: all that its body assigns; ``tested``: one ``if`` leaves it; ``nested`` is about its ``targets``, as in
        ``unpack``; ``decides``: it has ``if``s in it, so that few items are worth a table, 2 if none leaves it; ``lists`` and
        ``apart``: as in ``Roller``.
        """
        if type(value) is Tracer and nested is None and private is not None and not lists:
            value = self._as_many((value,), value.__getitem__) or value
        if type(value) is Ends:
            if private is not None and not lists:
                own = tested or value.at is not None  # then a target may be read when it has ended
                names = private if own else (*private, value.target)
                return Roller(self.trace, None, names, stored, tested, targets, ends=value, apart=apart)
            value = value.items()
        often, shortest = how_often(value), self._shortest(decides)
        value = value.items if type(value) is Turns else value
        if type(value) is not Over:
            given, value = value, self.iterate(value) if nested is None or type(value) is Tracer else value
            # its holders: the caller's stack, this name, getrefcount's own; others may go on with what is left
            if type(value) in _SNAPSHOTS and sys.getrefcount(value) <= 3:
                given = value = [*value]
            fewest = shortest if decides else None
            if private is not None and self.trace.symbolic:
                self.read_by_place(value, fewest)
            found = over(value) if type(value) in (Tracer, range) else None
            if found is None and private is not None and self.trace.symbolic:
                found = self._table(value, nested, fewest)
            if found is None:
                made = self.coming(given)
                value = value if made is given else made
                return self._turns(value if nested is None else self.unpacked(value, nested), often)
            outside = [given] if type(given) in _LISTS and value is not given else []
            value = self._as_it_is(found, outside, functools.partial(self._now, given, value))
        if private is None or value.length < shortest or not self.trace.symbolic:
            return self._turns(value.items(), how_often(value))
        return Roller(self.trace, value, private, stored, tested, targets, lists, bool(decides), apart=apart)

    def _as_many(self, arrays: Sequence[Any], at: Callable[[Any], Any]) -> Ends | None:
        """The places of arrays, of which a mask selects as many as code is to find out, and what is ``at`` each; else None."""
        known = self.trace.selections
        if known is None or not self.trace.symbolic or not all([type(one) is Tracer and np.ndim(one.like) for one in arrays]):
            return None
        counts = [known.asked(one, "len") for one in arrays]
        if not all([type(one) is Tracer and one.node is counts[0].node for one in counts]):
            return None
        return Ends(0, counts[0], 1, "i", at) if self.trace.varies(user_line(), counts[0]) else None

    def _as_many_of_all(self, fun: Any, args: Sequence[Any], options: dict[str, Any]) -> Ends | None:
        """The same of what ``enumerate``, or ``zip``, is given."""
        if fun is zip and args and not options.keys() - {"strict"}:
            return self._as_many(args, lambda place: tuple([one[place] for one in args]))
        if fun is not enumerate or len(args) != 1 or options:
            return None
        return self._as_many(args, lambda place: (place, args[0][place]))

    def _shortest(self, decides: int) -> int:
        """Of how few iterations a loop is watched; a user's that ``decides``: each would learn its ways alone."""
        short = (
            decides > 1 and self.trace.innermost_loop() is not None and not is_installed(sys._getframe(2).f_code.co_filename)
        )
        return SHORT if short else SHORTEST

    def section(self, private: tuple[str, ...] | None, stored: tuple[str, ...], targets: tuple[str, ...]) -> Any:
        """Statements that are run once, as a loop's iteration; but not in one of a loop, where ways meet as it is."""
        around = self.trace.innermost_loop()
        if private is None or not self.trace.symbolic or not (around is None or around.section):
            return (0,)
        return Roller(self.trace, SECTION, private, stored, targets=targets)

    def room(
        self,
        site: Any,
        private: tuple[str, ...] | None,
        stored: tuple[str, ...],
        targets: tuple[str, ...],
        decides: bool,
        lists: tuple[tuple[str, int, bool, str], ...],
        apart: tuple[str, ...],
    ) -> Any:
        """What a ``while`` loop at this ``site`` runs over, which appends to ``lists``; see ``loop``."""
        found = room(self.trace, (sys._getframe(1).f_code, site)) if self.trace.symbolic else None
        if private is None or found is None:
            return self._turns(itertools.repeat(None), object())
        return Roller(self.trace, found, private, stored, True, targets, lists, decides, apart=apart)

    def _turns(self, items: Any, often: Any) -> Any:
        """What a ``for`` statement runs over; in a loop that is watched, with what tells how ``often``."""
        return items if self.trace.innermost_loop() is None else Turns(items, often)

    def _table(self, value: Any, nested: bool | None, fewest: int | None) -> Over | None:
        """Plain numbers, or tuples of them that are unpacked, as a table."""
        if nested is None or type(value) is np.ndarray:
            return table(value, fewest, self.trace.once)
        if type(value) not in (list, tuple):
            return None
        return columns([*self.unpacked(value, nested)], value, fewest, self.trace.once)

    def over(self, fun: Any, decides: int, *args: Any, **options: Any) -> Any:
        """``zip``, ``combinations`` or their kin as what a ``for`` statement runs over; ``decides`` as in ``loop``."""
        if fun is enumerate and len(args) == 1 and not options and type(args[0]) is Ends:
            every = args[0]
            return every._replace(at=lambda place: (place, every.item(place)))
        args = tuple([arg.items() if type(arg) is Ends else arg for arg in args])
        if (places := self._as_many_of_all(fun, args, options)) is not None:
            return places
        made = paired if fun in _OF_ITEMS else picked if fun in _SNAPSHOTS else None
        if made is not None and self.trace.symbolic:
            fewest = self._shortest(decides) if decides else None
            given = [arg if type(arg) in (Over, Turns) else self.iterate(arg) for arg in args]
            for arg in given:
                self.read_by_place(arg, fewest)
            found = made(fun, given, options, fewest, self.trace.once)
            if found is not None and fun in _OF_ITEMS:
                pairs = list(zip(args, given, strict=True))
                lists = [arg for arg, copy in pairs if type(arg) in _LISTS and copy is not arg]
                passed = args[1] or 0 if fun is itertools.islice and len(args) > 2 else 0
                ahead = 2 if fun is itertools.pairwise else 1 + passed

                def again(read: int) -> Iterator[Any]:
                    return fun(*[self._now(arg, copy, read) for arg, copy in pairs], **options)  # type: ignore[no-any-return]

                return self._as_it_is(found, lists, again, ahead)
            if found is not None:
                return found
        given = [arg.items() if type(arg) is Over else arg.items if type(arg) is Turns else arg for arg in args]
        coming = given if fun in _SNAPSHOTS else [self.coming(arg, fun is reversed) for arg in given]
        often = (fun, *map(how_often, args))
        is_reversed = fun is reversed and coming[0] is not given[0]
        return self._turns(coming[0] if is_reversed else self.call(fun, *coming, **options), often)

    def _as_it_is(self, found: Over, lists: Sequence[Any], again: Callable[[int], Iterable[Any]], ahead: int = 1) -> Over:
        """What runs over copies of ``lists`` from outside, until other items are there: then it goes on as ``again`` does, of
        which so many items have been read. As it begins, it reads so many ``ahead``."""
        if not lists:
            return found
        held, made, read = [(one, [*one]) for one in lists], found.by_place(), ahead - 1

        def at(i: Any) -> Any:
            nonlocal read
            read = ahead + (i.value if type(i) is Tracer else i)
            return made.at(i)

        def stays() -> bool:
            same = [len(one) == len(items) and (read >= len(one) or one[read] is items[read]) for one, items in held]
            return made.stays() and all(same)

        def holds() -> bool:
            return made.holds() and all([len(one) == len(items) and all(map(operator.is_, one, items)) for one, items in held])

        def rest(place: int) -> Iterator[Any]:
            return itertools.islice(again(read), place, None)

        return made._replace(at=at, stays=stays, holds=holds, rest=rest)

    def _now(self, value: Any, copy: Any, read: int) -> Any:
        """What is iterated over: after so many items, that were ``read`` from a ``copy``, those of what is from outside as they
        are when their turn comes."""
        if type(value) in (Over, Turns):
            return value.items() if type(value) is Over else value.items
        made = self.coming(value)
        return copy if made is value else itertools.chain(itertools.islice(copy, read), itertools.islice(made, read, None))

    def span(self, fun: Any, target: str | None, *args: Any) -> Any:
        """``range(...)`` as what a ``for`` statement runs over, whose ends may hang on the index of a loop around, or on
        arguments. It has no ``target`` where that is read later."""
        if fun is range and 1 <= len(args) <= 3 and self.trace.symbolic:
            start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
            if type(step) is int and step:
                start, stop = [self._as_index(end) for end in (start, stop)]
                first, last = (end.value if type(end) is Tracer else end for end in (start, stop))
                are_ints = type(first) is int and type(last) is int
                if are_ints and target is not None and self.trace.turns(start, stop, count=len(range(first, last, step))):
                    return Ends(start, stop, step, target)
                if are_ints and self.trace.varies(user_line(), start, stop) and target is not None:
                    return Ends(start, stop, step, target)
        return self.call(fun, *args)

    def stretch(self, owner: Any, start: Any, stop: Any) -> Any:
        """``owner[start:stop]`` as what a ``for`` statement runs over; its ends may hang on the index of a loop around."""
        array = type(owner) in (Tracer, np.ndarray) and np.ndim(owner) > 0
        if self.trace.symbolic and (array or type(owner) in (list, tuple)) and Tracer in (type(start), type(stop)):
            first = 0 if start is None else self._as_index(start)
            last = len(owner) if stop is None else self._as_index(stop)
            ends = [end.value if type(end) is Tracer else end for end in (first, last)]
            known = all([type(end) is int and 0 <= end <= len(owner) for end in ends])
            turns = known and self.trace.turns(first, last, count=max(ends[1] - ends[0], 0))
            if turns and all([bool(end >= 0) and bool(end <= len(owner)) for end in (first, last)]):
                return Ends(first, last, 1, "i", self._at_places(owner, array))
        return self.item(owner, slice(start, stop))

    def _at_places(self, owner: Any, array: bool) -> Callable[[Any], Any]:
        """What reads the items of an array as they are, and of a list as they are now."""
        if array:
            return lambda place: self.item(owner, place)
        self.make_table(owner, MAX_ITEMS, 1)
        before = [*owner]

        def at(place: Tracer) -> Any:
            now = plain(place)
            same = len(owner) == len(before) and owner[now] is before[now]
            return self.item(owner, place) if same else before[now]

        return at

    def whole_number(self, end: Any) -> Any:
        """An end of a range that a loop counts up to."""
        end = self._as_index(end)
        return end if type(end) is Tracer and type(end.value) is int else operator.index(end)

    def code_of(self, value: Any, name: str, others: Mapping[tuple[Any, ...], Any] | None = None) -> Any:
        """What goes round a loop in the place of what a local of this ``name`` holds: the number of a text, a member of an
        ``Enum``, None, an int, a function of a module, or one of ``others``, which are there by places; of a tuple with such,
        those; anything else stands for itself."""
        if others and may_be_held(value):
            places = [place for place, held in others.items() if is_one(held, value)]
            value = Same(places[0]) if self._is_told(value, places) else value
        if type(value) is Same:
            pass
        elif type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "_make")):
            parts = [self.code_of(item, f"{name}[{i}]") if is_text(item) else item for i, item in enumerate(value)]
            return (Tupled(type(value), tuple([is_text(item) for item in value])), *parts)
        elif not (is_text(value) or type(value) is int or is_plain_function(value)):
            return Other(value)
        if self.codes.is_full(name):
            return Other(value)
        loop, number = self.trace.innermost_loop(), self.codes.number(name, value)
        return number if loop is None else loop.number("code", number)

    def text_of(self, code: Any, name: str, others: Mapping[tuple[Any, ...], Any] | None = None) -> Any:
        """What that stands for."""
        if type(code) is Other:
            return code.value
        if type(code) is tuple:
            (kind, texts), *parts = code
            parts = [
                self.text_of(part, f"{name}[{i}]") if is_one else part
                for i, (part, is_one) in enumerate(zip(parts, texts, strict=True))
            ]
            return tuple(parts) if kind is tuple else kind._make(parts)
        text = self.codes.text(name, code)
        return text if others is None or type(text) is not Same else others[text.place]

    def held_at(self, owner: Any, key: Any) -> Any:
        """What an object has in this attribute, or a container at this key; None where there is none."""
        with contextlib.suppress(AttributeError, LookupError, TypeError):
            return self.item(owner, key) if type(owner) in (list, tuple, dict) else self.attribute(owner, key)
        return None

    def is_text(self, code: Any, text: Any, name: str) -> Any:
        """Whether it stands for this one."""
        if type(code) in (Other, tuple):
            return self.text_of(code, name) == text
        return code == self.codes.number(name, text)

    def texts(self, owner: Any, path: Sequence[Any]) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
        """Where there are texts at a place in ``owner``: what holds each, its items or attributes, and the keys there; an
        ellipsis stands for all."""
        first, *rest = path
        places: Any = owner if rest and type(owner) is tuple else self._places(owner)
        for key in [] if places is None else [key for key in _keys(places) if first is ... or key == first]:
            if rest:
                yield from [(*held, (key, *keys)) for *held, keys in self.texts(places[key], rest)]
            elif self.codes.is_full(f".{key}"):
                continue
            elif is_in_object(places[key], owner) or self._is_told(places[key], keys_beside(places, key)):
                yield owner, places, (key,)

    def _is_told(self, value: Any, places: Sequence[Any]) -> bool:
        """Whether the first of the places that something is at tells what it is: in other calls, something from outside may be
        there, and what is at the next one something else."""
        return len(places) == 1 or (len(places) > 1 and self.path_of(getattr(value, "__self__", value)) is None)

    def _as_index(self, end: Any) -> Any:
        """An end of a range as Python's int, of which the numbers are made that it gives."""
        return TO_PYTHON(end) if type(end) is Tracer and isinstance(end.value, np.integer) else end

    def rows(self, value: Any, nested: bool, decides: int) -> Any:
        """What ``zip`` or ``enumerate`` is given, the items of which are unpacked: tuples of plain numbers as a table."""
        found = None
        if type(value) in (list, tuple) and self.trace.symbolic:
            found = self._table(value, nested, self._shortest(decides) if decides else None)
        return value if found is None else found

    def records(self, value: Any, decides: int) -> Any:
        """What runs over a list of records, in which the loop changes nothing; anything else is itself. Where the loop does not
        decide, that is worth it for many that the function has made of what is traced."""
        if type(value) not in (list, tuple) or not self.trace.symbolic:
            return value
        if not decides and not (len(value) >= _MANY and type(value[0]) is dict and self.path_of(value) is None):
            return value
        if not decides and not any([type(part) is Tracer for part in value[0].values()]):
            return value
        copy = self.iterate(value)
        found = self.run_records(copy, self._shortest(decides))
        if found is None:
            return value
        outside = [value] if type(value) is list and copy is not value else []
        return self._as_it_is(found, outside, functools.partial(self._now, value, copy))

    def row(self, row: Any) -> Any:
        """A list that an array is made of later, with others: one by itself, if there are but numbers in it."""
        return self.call(np.array, row) if row and all([_is_number(item) for item in row]) else row

    def ragged(self, fun: Any, outer: Any, ends: Callable[[Any], tuple[Any, Any]], *tables: Any) -> Any:
        """The pairs of ``for i in outer: for j in fun(*ends(i))``: told by arrays, where the ends are looked up in such
        ``tables``, and ``fun`` is Python's ``range``."""
        known = fun is range and type(outer) is range and self.trace.symbolic
        found = ragged(self.trace, outer, ends, tables) if known else None
        return found if found is not None else [(i, j) for i in outer for j in self.call(fun, *ends(i))]

    def summed(
        self, names: Sequence[tuple[str, Any]], computed: Callable[[Any, Any], tuple[Any, ...]], *args: Any
    ) -> list[Any] | None:
        """What iterations over a range, or items of arrays, compute of slices, for all of them: see
        ``symgrad.source.segments``; the ``names`` are to be Python's own."""
        if not self.trace.symbolic or any([getattr(builtins, name) is not value for name, value in names]):
            return None
        return together(self.trace, args, computed)

    def short(self) -> Any:
        """The item of a list that has none there."""
        raise IndexError("list index out of range")

    def in_turn(self, *lists: list[Any]) -> list[Any]:
        """The items of some lists of one length: the first one of each, then the second ones."""
        return [item for items in zip(*lists, strict=True) for item in items]

    def two(self, one: Any, other: Any, *rows: tuple[Any, int]) -> Any:
        """Whether rows ``one`` and ``other`` of some arrays, along their axes, are to be swapped: if there are such rows."""
        ends = [end.value if type(end) is Tracer else end for end in (one, other)]
        for owner, axis in rows:
            array = owner.value if type(owner) is Tracer and owner.may_be_written() else None
            shape = (len(owner),) if type(owner) is list else array.shape if type(array) is np.ndarray else ()
            known = len(shape) > axis and all([type(end) is int or isinstance(end, np.integer) for end in ends])
            if not known or not all([-shape[axis] <= end < shape[axis] for end in ends]):
                return one != other
        return True

    def knows_draws(self, generator: Any) -> bool:
        """Whether it is known beforehand what a generator gives, which the function has made."""
        return self.draws.own is not None and self.draws.own.is_planned(generator)

    def leapt(self) -> None:
        """A loop has run iterations in the function's place."""
        if self.draws.own is not None:
            self.draws.own.catch_up()

    def appended(self, value: Any, loop: Any, name: str, owner: Any) -> Any:
        """``owner.append(...)`` in a loop, which has given ``value``."""
        if type(loop) is Roller and type(owner) is list:
            loop.appended(name, owner)
        return value

    def grown_item(self, loop: Any, name: str, owner: Any, key: Any) -> Any:
        """``owner[key]`` in a loop that appends to it."""
        if type(loop) is not Roller or type(key) is not Tracer or type(owner) is not list:
            return self.item(owner, key)
        if loop.is_near(name, owner, key):
            return owner[int(key.value)]
        found = loop.appended_at(name, owner, key)
        return self.item(owner, key) if found is None else found

    def chosen(self, value: Any, loop: Any, name: str, kept: bool) -> Any:
        """A list to which some iterations of a loop may have appended an item, after it.

        ``kept``: all that is done with it from here on is ``handed``.
        """
        grown = loop.grown.get(name) if type(loop) is Roller else None
        if grown is None or grown.owner is not value or not grown.some or not grown.rolled:
            return value
        made = grown.chosen()
        return made.listed() if type(made) is Chosen and not (kept and KEPT not in self.trace.apart) else made

    def choose(self, idents: Sequence[int], chosen: Chosen | Later, known: bool) -> None:
        """The same for a list that an object holds, which somebody may ask for, and for dicts that have it (by identity);
        ``known``: which items it has, is."""
        if known or KEPT in self.trace.apart:
            chosen.listed()
            return
        for ident in idents:
            self.chosen_later[ident] = [*self.chosen_later.get(ident, ()), chosen]

    def attribute_for(self, owner: Any, name: str) -> Any:
        """``owner.name``, which a function is given: see ``handed``."""
        found = self.chosen_at(owner, name)
        return self.attribute(owner, name) if found is None else found

    def part_of(self, owner: Any, key: Any) -> tuple[Any, Any]:
        """A list of some items, an item of which is asked for, and its key; or one that has but that item."""
        if type(key) is int and key in ENDS:
            return self.handed(owner, ENDS[key]), key
        known = type(owner) is Chosen and not owner.is_whole and owner.alike
        if known and owner.array.ndim > 1:  # it is a copy
            self.trace.copied.add(owner.place)
        if known and type(key) is int:
            return owner.at_place(key), 0
        return (owner.at_index(key), 0) if known and is_index(key) else (owner.listed(), key)

    def cut(self, owner: Any, key: Any, fun: Any) -> Any:
        """``owner[key]``, where ``fun`` is given what it is, or a word: ``"item"`` of what is no slice in the source."""
        if type(owner) in (Chosen, Later):
            part = type(owner) is Chosen and type(key) is slice and not owner.is_whole and fun != "item"
            made = owner.cut(key) if part else None
            if made is not None:
                return self.handed(made, fun)
            owner, key = (owner.listed(), key) if type(key) is slice else self.part_of(owner, key)
        return self.item(owner, key)

    def item_for(self, owner: Any, key: Any) -> Any:
        """``owner[key]``, which a function is given."""
        if type(key) is slice and (some := self._chosen_in(owner)) is not None and type(some) is Chosen:
            made = some.cut(key)
            if made is not None:
                return made
        held = owner.get(key) if self.chosen_later and type(owner) is dict and type(key) is str else None
        found = self._chosen_in(held)
        return self.item(owner, key) if found is None else found

    def _chosen_in(self, held: Any) -> Chosen | Later | None:
        """What there is in place of a list, if nobody has asked yet which items it has."""
        found = self.chosen_later.get(id(held), (None,))[-1] if type(held) is list else None
        if type(found) is Chosen:
            found.settle()
        return None if found is None or found.is_whole else found

    def chosen_at(self, owner: Any, *path: str) -> Chosen | Later | None:
        """The same of an attribute, or of an item of a dict that is one, which nobody is asked for."""
        if not self.chosen_later or type(owner) is Tracer or of_class(type(owner), path[0]) is not None:
            return None
        held = getattr(owner, "__dict__", {}).get(path[0])
        if len(path) > 1:
            held = held.get(path[1]) if type(held) is dict else None
        return self._chosen_in(held)

    def is_chosen_at(self, owner: Any, *path: str) -> bool:
        """Whether there is something in place of a list there that ``is_chosen``."""
        return self.is_chosen(self.chosen_at(owner, *path))

    def has_rows_at(self, whole: bool, keys: tuple[Any, ...], owner: Any, *path: str) -> bool:
        """The same of one that ``has_rows``."""
        return self.has_rows(whole, keys, self.chosen_at(owner, *path))

    def item_in(self, owner: Any, end: int, key: Any) -> Any:
        """``owner[end][key]``, where ``end`` is 0 or -1."""
        rows = owner if type(owner) in (Later, Chosen) else self._chosen_in(owner)
        if type(rows) is Later and self.has_rows(False, (key,), rows):
            return self.item(self.handed(self.column(rows, key), ENDS[end]), end)
        if rows is not None and rows is owner:
            return self.item(self.item(self.handed(rows, ENDS[end]), end), key)
        return self.item(self.item_unasked(owner, end), key)

    def length(self, fun: Any, owner: Any) -> Any:
        """``fun(owner)``, if that is ``len``, of a list that an object may hold."""
        if type(owner) not in (list, dict):
            return self.call(fun, owner)
        if fun is not len:  # but somebody's own
            self._mention(owner)
            return self.call(fun, owner)
        found = self._chosen_in(owner)
        if found is not None:
            return self.call(len, found)
        self.listed(owner)
        loop = self.trace.innermost_loop() if type(owner) is list else None
        length = None if loop is None else loop.length_of(owner)
        if length is None:
            self._mention(owner)
        return self.call(len, owner) if length is None else length

    def given_back(self, value: Any, place: Any) -> Any:
        """What a function returns, at this place of a tuple, -1 for what is alone, and key of a dict: a list of some items to
        who is ready for it, see ``call_for``."""
        if type(value) not in (Chosen, Later):
            return value
        if place is not None and KEPT not in self.trace.apart and self.is_ready(sys._getframe(1), place):
            return value
        found = value.listed()
        self._mention(found)
        return found

    def handed(self, value: Any, fun: Any) -> Any:
        """What a function is given for such a list; ``fun`` may be a word, ``"index"``, ``"test"``, ``"first"``, ``"last"``,
        ``"cut"``, of which a part is read, or ``"items"``, one by one; or what tells the best row: see ``_best``."""
        if type(fun) is str and fun == "cut":
            return value
        if type(value) is Later:
            return self._rows_for(value, fun)
        if type(value) is not Chosen:
            return value
        if type(fun) is tuple:
            return value.listed()
        known = (
            isinstance(fun, (np.ufunc, type(np.sum)))
            or (type(fun) is str and fun != "items")
            or any([fun is one for one in _OF_CHOSEN])
            or type(getattr(fun, "__self__", None)) is np.ufunc
        )
        if value.is_whole or not known or (fun == "index" and value.array.dtype.kind not in "iu"):
            return value.listed()
        extreme = fun is min or fun is max
        if not value.alike or (extreme and not value.has_order):
            return value.listed()
        if extreme:
            return value.extreme(fun)
        if fun is sum:
            return value.total()
        if fun in ("first", "last"):
            if value.array.ndim > 1:  # it is a copy
                self.trace.copied.add(value.place)
            return value.end(fun == "last")
        array, taken = value.parts()
        like_none = array.ndim == 1 and array.dtype == np.float64  # NumPy's array of an empty list
        if not (like_none or fun is len or type(fun) is str or np.any(taken)):
            return value.listed()
        items = array[taken]
        return self._len(items) if fun == "test" else items

    def _rows_for(self, value: Later, fun: Any) -> Any:
        """The same for a list of rows."""
        columns = value.chosen
        if columns is None:
            return value.listed()
        if type(fun) is tuple:
            return self._best(value, columns, *fun)
        if fun is len or (type(fun) is str and fun == "test"):
            return self.handed(columns[0], fun)
        if type(fun) is str and fun in ("first", "last") and value.row.kind is tuple:
            ends = [self.handed(one, fun) for one in columns]
            return [value.row.make([end[0] for end in ends])] if all(ends) else []
        numbers = value.row.kind is not dict and all([one.array.ndim == 1 for one in columns])
        if (fun is np.array or fun is np.asarray) and numbers:
            taken = columns[0].parts()[1]
            return np.stack([one.parts()[0] for one in columns], axis=1)[taken] if np.any(taken) else value.listed()
        return value.listed()

    def _best(self, value: Later, columns: list[Chosen], name: str, key: Any, unchanged: bool) -> list[Any]:
        """A list with the row that is the least, or the largest, by what all have at a key; with all rows where somebody may
        change it."""
        fun: Any = {"min": min, "max": max}[name]
        if vars(builtins).get(name) is not fun or not (unchanged or value.row.kind is tuple):
            return value.listed()
        if not self.has_rows(False, (key,), value) or not self.column(value, key).has_order:
            return value.listed()
        place = self.column(value, key).place_of(fun)
        if place is None:
            return []
        value.is_looked_into = True
        self.trace.copied.update([one.place for one in columns if one.array.ndim > 1])  # nobody may write into them
        return [value.row.make([one.at(place) for one in columns])]

    def has_rows(self, whole: bool, keys: tuple[Any, ...], value: Any) -> bool:
        """Whether a list has rows that a mask selects from arrays, and how many these are is not known yet; with items at these
        ``keys``, or no others if a row is unpacked as a ``whole``. Arrays may be the rows."""
        if type(value) is Chosen and value.array.ndim > 1 and self.is_chosen(value):
            width = value.array.shape[1]
            known = all([type(key) is int and -width <= key < width for key in keys])
            return known and (not whole or len(keys) == width)
        if type(value) is not Later or value.chosen is None:
            return False
        row = value.row
        if whole:
            return row.kind is not dict and len(keys) == len(row.keys)
        return all([key in row.keys if row.kind is dict else type(key) is int and -1 <= key < len(row.keys) for key in keys])

    def rows_of(self, keys: tuple[Any, ...], *columns: Any) -> Any:
        """The list of tuples, or of dicts where ``keys`` are texts, that has these columns, in the order of the ``keys``."""
        row = Row(dict if type(keys[0]) is str else tuple, keys)
        if all([type(one) is Chosen and not one.is_whole for one in columns]):
            return Later([], 0, row, columns)
        return [row.make(parts) for parts in zip(*[self.handed(one, None) for one in columns], strict=True)]

    def column(self, value: Later | Chosen, key: Any) -> Chosen:
        """The list of what all rows have at a key."""
        if isinstance(value, Chosen):
            return value.column(key)
        columns = value.chosen
        assert columns is not None
        return columns[value.row.keys.index(key) if value.row.kind is dict else key]

    def holder(self) -> Any:
        """What holds locals that functions within fill, as an object of the user's holds its attributes."""
        return Holder()

    def is_still(self, value: Chosen | Later) -> None:
        """A loop over all places of a list that an object holds is over: the run ends if somebody has got the list meanwhile,
        and may have changed it; in the next one, it is known which items such lists have."""
        if value.is_whole or (type(value) is Chosen and value.is_resumed):
            raise self.trace.refuse(Otherwise(frozenset([KEPT])))

    def is_chosen(self, *values: Any) -> bool:
        """Whether lists have what a mask, the same one for all, selects from an array of each, and how many these
        are is not known yet."""
        known = all([type(one) is Chosen and not one.is_whole and one.alike for one in values])
        return known and (len(values) == 1 or len({one.parts()[1].node for one in values}) == 1)

    def every_item(self, value: Chosen) -> Any:
        """What the items of such a list are among, and whatever else there is."""
        return value.parts()[0]

    def started(self, items: Any) -> Any:
        """``iter(items)``, or ``items`` where those are read by place."""
        return items if _has_places(items) else self.call(iter, items)

    def next_of(self, items: Any, place: int) -> Any:
        """The next one, which is at this ``place``."""
        if not _has_places(items):
            return self.call(next, items)
        if place >= len(items):
            raise StopIteration
        return self.item(items, place)

    def rest_of(self, items: Any, place: int) -> Any:
        """The items from a ``place`` on, as what a ``for`` statement runs over."""
        return self.over(itertools.islice, True, items, place, None) if _has_places(items) else items

    def taken(self, value: Chosen) -> Any:
        """Which of these are its items."""
        return value.parts()[1]

    def item_of(self, value: Chosen, item: Any) -> Any:
        """An item of such a list as the number that was appended, or a copy of an array."""
        if value.array.ndim > 1:
            self.trace.copied.add(value.place)
            return value.copies([item])[0]
        return item if item.node in self.trace.mixed else value.numbers([item])[0]

    def behind(self, value: Chosen, item: Any) -> None:
        """``value.append(item)``."""
        value.append(item)

    def private(self, names: tuple[str, ...], doubtful: tuple[str, ...]) -> tuple[str, ...]:
        """The ``names`` that a loop has for itself, and those of the ``doubtful`` ones that stand for no array now."""
        now = sys._getframe(1).f_locals
        return Own((*names, *[name for name in doubtful if name not in now or _is_no_array(now[name])]), doubtful)

    def start(
        self,
        private: tuple[str, ...] | None,
        stored: tuple[str, ...],
        targets: tuple[str, ...],
        apart: tuple[str, ...],
        line: int,
    ) -> Roller | None:
        """A ``while`` statement begins, in this ``line``."""
        if private is None or not self.trace.symbolic:
            return None
        return Roller(self.trace, None, private, stored, targets=targets, apart=apart, line=line)

    def number(self, loop: Any, name: str, value: Any, counts: bool, chooses: bool = False, *owner: Any) -> Any:
        """A local that a loop reads and assigns, as it begins: a plain number is traced from here on, and so are those in a
        tuple; and an array of plain numbers, where the loop ``chooses``.

        An int only where the loop ``counts`` with it; others are likely to be looked at. Where the loop ``chooses`` what it
        assigns, traced numbers are under names of their own, too. ``owner``: the number goes into this one instead.
        """
        if chooses and type(value) is Tracer and type(loop) is Roller:
            return self.renamed(self._traced(value), name)
        if chooses and type(value) is np.ndarray and type(loop) is Roller:
            return self._traced(value)
        if type(value) is Tracer:  # which the call of this hook has kept from getting it
            value.node.name = value.node.name or (name if name.isidentifier() else None)
        if type(loop) is not Roller and type(value) in _NUMBERS:
            loop = self._deciding()
        if type(loop) is not Roller or (owner and self._places(*owner) is None):
            return value
        return self._number(loop, name, value, counts, 0 if chooses else DEEPEST)

    def parts(self, loop: Any, name: str, value: Any, counts: tuple[bool, ...]) -> Any:
        """What a call gives in a loop that decides: plain numbers in a tuple are traced from here on, ints where they count; a
        number alone, where other ways give a traced one."""
        if type(loop) is not Roller or NAMES in self.trace.apart:
            return value
        if type(value) in (bool, np.bool_, int, float, np.float64):
            return loop.flag(name, value)
        if not isinstance(value, tuple):
            return value
        known = counts if len(counts) == len(value) else [False] * len(value)
        return self._numbers_in(loop, name, value, [*enumerate(known)], 1)

    def _deciding(self) -> Roller | None:
        """The loop whose iteration runs, if it is known that these decide; that somebody asked may be worth knowing it."""
        loop: Roller | None = self.trace.innermost_loop()
        if loop is None:
            return None
        loop.asked = True
        return None if loop.moving is None else loop

    def stored(self, value: Any, owner: Any, kind: str = "", key: Any = None, how: str | None = None) -> Any:
        """What is assigned to an attribute or an item of ``owner``: plain, if that outlives the call; a number in one of the
        function's own is traced where iterations of a loop decide on it."""
        value = super().stored(value, owner, kind, key, how)
        if type(value) is Tracer:
            return self._stored_number(value, owner, key)
        loop = self._deciding() if type(value) in _NUMBERS and self._places(owner) is not None else None
        return value if loop is None else loop.number("put", value)

    def _stored_number(self, value: Tracer, owner: Any, key: Any) -> Tracer:
        """A number that is put into one of the function's own objects, where iterations decide on those: under one more name,
        as two objects may get the same one. Those that the iteration makes are counted anew in each."""
        loop = self.trace.innermost_loop()
        if loop is None or not (loop.hangs or loop.moving is not None) or not loop.boundaries or self._places(owner) is None:
            return value
        begun, node = loop.boundaries[-1], value.node
        if loop.moving is None and node.args and node.index > self.trace.index_before(begun.length):
            return value  # this iteration has computed it
        turn = loop.serial, begun.length
        if self._turn != turn:
            self._turn, self._made = turn, {}
        known, kind = (self._deciders, "") if id(owner) in begun.containers else (self._made, "made ")
        number = known.setdefault(id(owner), len(known))
        return self.renamed(value, f"{kind}{number}.{key}")  # type: ignore[no-any-return]

    def _traced(self, value: Any) -> Any:
        """An array that the function has made of plain numbers, traced, if it is known who writes into it; else the value."""
        if type(value) is Tracer and value.tape.draft and value.like.dtype.kind in "fc":
            self.trace.admit(value)
        if type(value) is not np.ndarray:
            return value
        if self.trace.drafts is not None or value.dtype.kind not in "fc" or self.path_of(value) is not None:
            return value
        filled = self.trace.filled(value)
        return self.trace.lookup(self.trace.constant(value)[0]) if filled is None else filled

    def _number(self, loop: Roller, name: str, value: Any, counts: bool, depth: int) -> Any:
        """A plain number traced, or a container with those in it."""
        if NAMES in self.trace.apart:
            return value
        if type(value) in _NUMBERS and (counts or type(value) is not int) and (counts or depth or type(value) is not bool):
            return loop.number(name, value)
        if depth < DEEPEST and (type(value) in (list, dict, collections.deque) or isinstance(value, tuple)):
            return self._numbers_in(loop, name, value, [(key, counts) for key in _keys(value)], depth + 1)
        return value

    def numbers(
        self, loop: Any, name: str, owner: Any, places: Sequence[tuple[str, Any, bool]], fills: bool, attributes: Sequence[str]
    ) -> None:
        """An object whose items, or attributes, some iterations of a loop assign, as it begins: plain numbers there are traced
        from here on. They do at these ``places``, some of which are within items; and what they call ``fills`` containers, and
        puts something into these ``attributes``."""
        within = self._places(owner) if type(loop) is Roller else None
        if within is None:
            return
        deep = [counts for kind, _, counts in places if kind == "within"]
        if within is owner:
            known = [(key, counts) for kind, key, counts in places if kind == "item"]
            known += [(key, any(deep)) for key in _keys(owner)] if fills or deep else []
        else:
            known = [(key, counts) for kind, key, counts in places if kind == "attr"]
            known += [(key, True) for key in (*attributes, *changing(type(owner)))]
            known += [(key, any(deep)) for key in within] if deep else []
        self._numbers_in(loop, name, within, known, 1 if fills or deep else DEEPEST)
        if loop.decides:  # what goes round has a node of its own: others may stand for the same number as the loop begins
            for key in _keys(within):
                if type(within[key]) is Tracer:
                    within[key] = self.renamed(within[key], f"{name}[{key!r}]")

    def lift(self, loop: Roller, name: str, owner: Any, path: Sequence[Any]) -> None:
        """Plain numbers and arrays at a place in ``owner`` are traced from here on; an ellipsis stands for all keys."""
        first, *rest = path
        places: Any = owner if rest and type(owner) is tuple else self._places(owner)
        if places is None:
            return
        keys = [key for key in _keys(places) if first is ... or key == first]
        if not rest:
            self._numbers_in(loop, name, places, [(key, True) for key in keys], DEEPEST)
            for key in keys:
                places[key] = self._traced(places[key])
        for key in keys if rest else ():
            self.lift(loop, f"{name}[{key!r}]", places[key], rest)

    def _numbers_in(self, loop: Roller, name: str, owner: Any, places: Iterable[tuple[Any, bool]], depth: int) -> Any:
        """A container whose plain numbers at these ``places``, if there are any, are traced; a tuple is another one."""
        if self.path_of(owner) is not None:
            return owner
        fixed = isinstance(owner, tuple)
        made = [*owner] if fixed else owner
        for key, counts in places:
            if key in (made if isinstance(made, MutableMapping) else range(len(made))):
                made[key] = self._number(loop, f"{name}[{key!r}]", made[key], counts, depth)
        if not fixed or all(map(operator.is_, made, owner)):
            return owner
        return tuple(made) if type(owner) is tuple else type(owner)._make(made) if hasattr(owner, "_make") else owner

    def _places(self, owner: Any) -> Any:
        """A list, deque or dictionary of the function's own, or the attributes of an object it has made; None for others."""
        if type(owner) is Tracer or self.path_of(owner) is not None:
            return None
        if type(owner) in (list, dict, collections.deque):
            return owner
        if type(owner) is FunctionType:
            return Cells(owner) if HOOKS in owner.__code__.co_freevars else None
        own = is_users_class(type(owner)) or type(owner) is types.SimpleNamespace
        return fields_of(owner) if own else None

    def renamed(self, value: Any, place: str, lasts: bool = False) -> Any:
        """A number under one more name, in a loop: the names go round on their own. Where both may be there when the loop is
        over (``lasts``), so do those of an array, as long as nobody can tell that it is one."""
        if type(value) is not Tracer or value.base is not None or NAMES in self.trace.apart:
            return value
        if type(value.like) is np.ndarray:
            named, trace = Named(place), self.trace
            if not lasts or not trace.symbolic or value.tape is not trace or named in trace.apart:
                return value
            value.parted |= {named}
            return trace.stand_in(value, named)
        return self.trace.record(NAMED, (value,), {"place": place})

    def filled(self, array: Any, *values: Any) -> None:
        """A loop that writes items made of ``values`` into an array begins: where they are traced, so is the array."""
        if type(array) is Tracer and array.tape.draft and any([type(v) is Tracer and v.node.differentiated for v in values]):
            self.trace.admit(array)

    def looked_up(self, loop: Any, owner: Any, decides: bool) -> None:
        """A loop begins that reads items of ``owner`` at places that hang on its index: they are read from a table; from a
        short one too if the loop ``decides``, and so may be rolled up however short it is, or if it is long."""
        if type(loop) is not Roller:
            return
        long = loop.what is None or loop.what.length >= iterables.FEWEST
        fewest = 1 if long else SHORT if decides else iterables.FEWEST
        if type(owner) in TABLED:
            self.make_table(owner, MAX_ITEMS if loop.what is None else 2 * loop.what.length, fewest)
        self.read_by_place(owner, fewest)

    def read_by_place(self, array: Any, fewest: int | None) -> None:
        """A loop begins that reads items of ``array``, by an index that is traced: so is the array, if it is of so many."""
        fewest = iterables.FEWEST if fewest is None else fewest
        if type(array) is Tracer and array.tape.draft and np.ndim(array.value) and len(array.value) >= fewest:
            self.trace.admit(array)

    def again(self, roller: Roller | None, test: Any) -> bool:
        """The test of a ``while`` statement."""
        test = self.test(test)
        return bool(test) if roller is None else roller.again(sys._getframe(1), _truth(test))

    def negated(self, value: Any) -> Any:
        """``not value``, in the test of a loop: how often that runs may hang on it."""
        value = self.test(value)
        return NOT(_truth(value)) if type(value) is Tracer else not value

    def part(self, roller: Roller | None, value: Any, names: tuple[str, ...]) -> Any:
        """A part of such a test, ``value and ...``, with the names in the parts that follow: what Python goes on from."""
        if roller is None or type(value) is not Tracer:
            return value
        return roller.part(sys._getframe(1), _truth(value), names)

    def aside(self, value: Any, every: bool, first: bool, names: tuple[str, ...]) -> Any:
        """A part of a test ``a and b`` (``every``) or ``a or b`` in a loop: set aside, if the parts that follow can be computed
        anyway, as their names stand for numbers. What Python goes on from."""
        if first:
            self._aside = []
        if type(value) is not Tracer or np.ndim(value.like) or not self.trace.symbolic:
            return value
        frame = sys._getframe(1)
        known = [frame.f_locals.get(name, frame.f_globals.get(name, abs if name == "abs" else None)) for name in names]
        numbers = [item.like if type(item) is Tracer else item for item in known]
        if not all([item is abs or isinstance(item, (int, float, complex, np.number, np.bool_)) for item in numbers]):
            return value
        self._aside.append(value)
        return every

    def together(self, value: Any, every: bool) -> Any:
        """Such a test, of its parts that were set aside and the ``value`` that Python has found."""
        parts, self._aside = self._aside, []
        if type(value) is not Tracer and parts:
            if bool(value) is not every:
                return value
            value = parts.pop()
        return functools.reduce(np.logical_and if every else np.logical_or, [*parts, value])

    def ends(self, roller: Any, condition: Any) -> bool:
        """The condition of the ``if`` that leaves a loop."""
        condition = self.test(condition)
        return roller.leaves(sys._getframe(1), _truth(condition)) if type(roller) is Roller else bool(condition)

    def inner(self, loop: Any, site: Any, dead: tuple[str, ...]) -> None:
        """An iteration of a ``loop`` begins: if it is within others, in this function or one that called it, all ways through
        the iteration before meet there."""
        outer = loop.around if type(loop) is Roller else self.trace.innermost_loop()
        if type(loop) is Roller:
            loop.dead = dead
        if outer is not None and outer.marks() and (type(loop) is not Roller or loop.marks()):
            outer.within(sys._getframe(1), loop, site, dead)

    def met(self, roller: Any, number: int, dead: tuple[str, ...], unused: tuple[str, ...]) -> None:
        """All ways through statement ``number`` of a loop meet again behind it. Nobody reads what the names in ``dead`` stand
        for any more, and not this iteration what those in ``unused`` do."""
        if type(roller) is Roller:
            roller.met(sys._getframe(1), number, dead, unused)

    def left(self, value: Any, *rollers: Any) -> Any:
        """A ``break`` leaves a loop, or a ``return`` of ``value`` some."""
        for roller in rollers:
            if type(roller) is Roller:
                roller.left()
        return value

    # ---- statements ----

    def matched(self, value: Any) -> Any:
        """The subject of a ``match`` statement that looks into objects."""
        self._shown_all()
        waiting, seen = [value], set[int]()
        while waiting:
            one = waiting.pop()
            if type(one) in QUICK or isinstance(one, (Traced, *PLAIN, *FUNCTIONS, type)) or id(one) in seen:
                continue
            seen.add(id(one))
            self.beside(one, "__dict__")
            if self.path_of(one) is not None:
                self.stop("a class pattern looks into an object from outside, which is not followed")
            elif isinstance(one, HOLDING):
                waiting += held_in(one)
            else:
                waiting += attributes(one).values()
                if not self._is_steady_subject(one):
                    self.stop(f"a class pattern looks into a {type(one).__name__}, whose class is not followed")
        return value

    def _is_steady_subject(self, value: Any) -> bool:
        """Whether what patterns find of an object in its class reads nothing from outside; it is guarded."""
        kind, own = type(value), attributes(value)
        found = [(name, item, base) for base in filter(is_users_class, kind.__mro__) for name, item in vars(base).items()]
        return all(
            [
                self._steady_item(kind, name, base)
                for name, item, base in found
                if not (name in own or name.startswith(("__", "_abc_")) or isinstance(item, _NO_FIELDS))
            ]
        )

    def flagged(self, value: Any, depth: int) -> Any:
        """What patterns that look so deep into it ask to be ``True`` or ``False``: its traced flags as one of these."""
        if type(value) is Tracer:
            return self.identity(value, single=True)
        if not depth or isinstance(value, type):
            return value
        inner: Any = value if isinstance(value, CONTAINERS) else getattr(value, "__dict__", ())
        items = inner.items() if isinstance(inner, dict) else enumerate(inner)
        plain = {key: new for key, item in items if (new := self.flagged(item, depth - 1)) is not item}
        if plain and isinstance(inner, tuple):
            return rebuilt(inner, [plain.get(i, item) for i, item in enumerate(inner)])
        for key, item in plain.items():
            inner[key] = item
        return value

    def fixed(self, value: Any) -> None:
        """A name in a pattern of a ``match`` statement, which compares the value itself."""
        if isinstance(value, Traced):
            self.stop("a pattern compares with a number from outside")

    def frame_reader(self, name: str, value: Any) -> Any:
        """``locals()`` and its kin."""
        self.stop(f"{name}() looks at the frame")
        if isinstance(value, dict) and name != "globals":
            return {key: item for key, item in value.items() if not str(key).startswith(HOOKS[:-2])}
        return [item for item in value if not str(item).startswith(HOOKS[:-2])] if name == "dir" else value

    def class_decorator(self, decorator: Any) -> Any:
        """What decorates a class, when the statement has made that."""
        return lambda kind: self.class_made(kind, decorator)

    def class_made(self, kind: Any, *decorator: Any) -> Any:
        """A class statement has made ``kind``, to be decorated."""
        if decorator:
            kind = self.call(*decorator, kind) if is_users(*decorator) else decorator[0](kind)
        if not isinstance(kind, type):
            return kind
        self.own_classes[id(kind)] = kind
        asked = [of_class(kind, "__init_subclass__"), *[of_class(type(item), "__set_name__") for item in vars(kind).values()]]
        if type(kind) not in _MAKERS or any([is_users(getattr(hook, "__func__", hook)) for hook in asked]):
            self.stop(f"the making of class {kind.__name__} inside the function is not followed")
        return kind

    def trying(self, start: bool, floats: int = 0) -> None:
        """A ``try`` with handlers begins or ends; of ``floats``, if they catch what NumPy may raise: 2 for warnings."""
        self.trace.trying += 1 if start else -1
        if start and floats and not needs_drafts(sys._getframe(1).f_code):  # of NumPy's own
            raises = standard.numpy_raises(floats)
            self.check(Path(standard.numpy_raises, (("call", (floats,)),)), "is", raises)
            if raises:
                self.stop("an exception of NumPy's may be caught (see np.seterr), and compiled code does not raise all of them")

    def caught(self) -> None:
        """An exception was caught."""
        error = sys.exc_info()[1]
        if not (any([error is one for one in self.foreseen]) or _lacks_attribute(error)):
            self.stop("an exception is caught, and compiled code would not raise it")

    def swallowed(self) -> None:
        """A ``finally`` that leaves the function or the loop begins: an exception on its way would be lost."""
        if sys.exc_info()[1] is not None:
            self.caught()

    def manager(self, value: Any) -> Any:
        """What a ``with`` statement is about."""
        return _Manager(self, value)


class Finished(State):
    """The hooks after the traced call has ended, for functions made in it that live on: they do what Python does."""

    def root(self, value: Any, path: Path) -> None:
        """Nothing is noted any more."""

    def path_of(self, value: Any) -> Path | None:
        """Nothing is followed any more."""
        return None

    def stop(self, reason: str) -> None:
        """It has been compiled, or not."""

    def effect(self, what: str, line: str = "") -> None:
        """Nobody asks any more."""

    def check(self, path: Path, kind: str, expected: Any) -> None:
        """Nothing is guarded any more."""

    def read(self, path: Path, value: Any) -> Any:
        """The value itself."""
        return value

    def loop(self, value: Any, *facts: Any) -> Any:
        """What it runs over."""
        return value

    def section(self, *facts: Any) -> Any:
        """Statements, as they are."""
        return (0,)

    def room(self, *facts: Any) -> Any:
        """As many iterations as the loop has."""
        return itertools.repeat(None)

    def records(self, value: Any, decides: int) -> Any:
        """What it runs over."""
        return value

    def over(self, fun: Any, decides: int, *args: Any, **options: Any) -> Any:
        """A call, like any."""
        return fun(*args, **options)

    def span(self, fun: Any, target: str | None, *args: Any) -> Any:
        """A call, like any."""
        return fun(*args)

    def stretch(self, owner: Any, start: Any, stop: Any) -> Any:
        """A part, as it is."""
        return owner[start:stop]

    def two(self, one: Any, other: Any, *rows: Any) -> Any:
        """Whether they are two."""
        return one != other

    def ragged(self, fun: Any, outer: Any, ends: Callable[[Any], tuple[Any, Any]], *tables: Any) -> Any:
        """They are listed."""
        return [(i, j) for i in outer for j in fun(*ends(i))]

    def summed(self, *_: Any) -> None:
        """Nothing: each iteration computes it."""

    def row(self, row: Any) -> Any:
        """The list itself."""
        return row

    def rows(self, value: Any, *facts: Any) -> Any:
        """What it is given."""
        return value

    def is_one(self, a: Any, b: Any) -> bool:
        """``a is b``."""
        return a is b

    def class_made(self, kind: Any, *decorator: Any) -> Any:
        """A class statement, like any."""
        return decorator[0](kind) if decorator else kind

    def filled(self, array: Any, *values: Any) -> None:
        """Nothing is traced any more."""

    def start(self, *facts: Any) -> Roller | None:
        """Nothing is rolled up any more."""
        return None

    def private(self, names: tuple[str, ...], doubtful: tuple[str, ...]) -> tuple[str, ...]:
        """None is asked for."""
        return names

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call."""
        return fun(*args, **kwargs)


def _is_number(value: Any) -> bool:
    """Whether it is a number, traced or not, which nothing changes in place."""
    return not isinstance(value.like if type(value) is Tracer else value, np.ndarray) and isinstance(value, (Tracer, *_NUMBERS))


def _is_no_array(value: Any) -> bool:
    """Whether it is a number, a text, or a function, or a tuple of such."""
    if isinstance(value, tuple):
        return all(map(_is_no_array, value))
    return is_text(value) or is_plain_function(value) or _is_number(value)


def _has_places(items: Any) -> bool:
    """Whether its items are at places, so that those from one on are known without an iterator."""
    return type(items) in (list, tuple, range) or (type(items) in (Tracer, np.ndarray) and np.ndim(items) > 0)


def _lacks_attribute(error: BaseException | None) -> bool:
    """Whether it was raised for want of an attribute that no value of a traced value's type has."""
    if not isinstance(error, AttributeError):
        return False
    return type(error.obj) is Tracer or str(error).startswith(f"{Tracer.__name__!r} object has no attribute")


def _truth(value: Any) -> Any:
    """A traced value as one that is true or false."""
    return BOOL(value) if type(value) is Tracer and value.node.aval.dtype.kind != "b" else value


_NUMBERS = (float, complex, np.float64, np.float32, int, bool)
_PLAIN_KINDS = (BuiltinFunctionType, FunctionType)
_OF_NUMPY = type(np.sum)


class Plain(Finished):
    """The hooks of a run that is not compiled: calls alone are followed, for what the function would see of Tracers.

    ``type(x)`` is told the value's, not Tracer; and NumPy makes no arrays of objects of traced numbers. What is written into
    is noted: see ``symgrad.tracing.kept``.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.holders = Holders()

    def held(self, owner: Any) -> Any:
        """What has an attribute, or an item, that is assigned to."""
        if type(owner) is not Tracer and type(owner) is not np.ndarray:
            self.holders.note(owner)
        return owner

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call: the user's functions are followed, those handed on too."""
        if type(fun) is np.ufunc and args and (type(args[0]) is Tracer or (len(args) == 1 and type(args[0]) in NUMBERS)):
            return fun(*args, **kwargs)  # as nearly always
        if type(fun) is _OF_NUMPY and args and type(args[0]) is Tracer and isinstance(REGISTRY.get(fun), Op):
            return self.own(fun, fun(*args, **kwargs), args)
        if type(fun) is FunctionType and HOOKS not in fun.__code__.co_freevars and is_users(fun):
            return self._follow(fun, args, kwargs)
        if fun is type and len(args) == 1 and not kwargs:
            return type(args[0].value if type(args[0]) is Tracer else args[0])
        if fun is isinstance and len(args) == 2 and type(args[0]) is Tracer:
            return isinstance(args[0].value, args[1])
        if fun is hasattr and len(args) == 2 and type(args[0]) is Tracer:
            return args[0].has(args[1])
        if fun is getattr and len(args) > 1 and type(args[0]) is Tracer:
            return args[2] if len(args) > 2 and not args[0].has(args[1]) else self.attribute(*args[:2])
        if fun is operator.is_ or fun is operator.is_not:
            return self.is_one(*args) is (fun is operator.is_)
        if fun is id and len(args) == 1:
            return id(args[0].value if source(*args) is not None else self.original(args[0]))
        if type(fun) is MethodType:
            if is_product(fun, args):
                return self.matmul(fun.__self__, *args)
            return self.call(fun.__func__, fun.__self__, *args, **kwargs)
        if isinstance(fun, np.vectorize):
            return self.vectorized(fun, fun.pyfunc, args, kwargs)
        if is_partial(fun):
            return self.call(fun.func, *fun.args, *args, **{**fun.keywords, **kwargs})
        setup = of_class(fun, "__init__") if type(fun) in (type, abc.ABCMeta) else None
        if is_users(setup) and of_class(fun, "__new__") is object.__dict__["__new__"]:
            made = object.__new__(fun)
            self.call(setup, made, *args, **kwargs)
            return made
        if is_number(fun, args):
            return create.scalar(args[0], fun)
        if (told := standard.asked(fun, args, kwargs)) is not None:
            return told
        args = self.trace.as_written(getattr(fun, "__name__", ""), args)
        if (method := method_of(fun, args)) is not None:
            return self.call(method, *args[1:], **kwargs)
        if isinstance(fun, (np.ufunc, type(np.sum))) or (type(fun) in _PLAIN_KINDS and self._of_numpy(fun)):
            if fun in OF_FUNCTIONS:
                args = tuple([handed(value, self._back) for value in args])
                kwargs = {name: handed(value, self._back) for name, value in kwargs.items()}
            return self.own(fun, create.call(self.trace, fun, args, kwargs), args)
        handler = of_class(type(fun), "__call__")
        if is_users(handler):
            return self.call(handler, fun, *args, **kwargs)
        home = getattr(fun, "__module__", None) or module_of(type(getattr(fun, "__self__", None)))
        if reads_memory(fun):
            return fun(*map(self._out, args), **{name: self._out(value) for name, value in kwargs.items()})
        if isinstance(fun, CACHED) or home.startswith("numpy.random") or is_foreign(fun):  # it keeps Tracers, or takes none
            return self.own(fun, self._on_copies(fun, args, kwargs), args)
        if home.split(".")[0] == "scipy" and (made := of_values(self.trace, fun, args, kwargs)) is not NotImplemented:
            return made
        if is_of_others(fun, home) and not any([tracer.node.differentiated for tracer in tracers((args, kwargs))]):
            return self.own(fun, self._on_copies(fun, tuple(map(self._back, args)), kwargs), args)
        if fun is map and args:
            args = (functools.partial(self.call, args[0]), *args[1:])
        owner = getattr(fun, "__self__", None)
        if type(owner) is np.ndarray and fun.__name__ == "astype" and (joined := self._joined(owner)) is not owner:
            return self.call(joined.astype, *args, **kwargs)  # what np.frompyfunc makes, as numbers
        if isinstance(owner, CONTAINERS) or (fun is setattr and args):
            self.held(args[0] if fun is setattr else owner)
        very = isinstance(owner, CONTAINERS) or any([fun is one for one in COMPARING])
        very = very or home == "inspect" or any([fun is one for one in (getattr, hasattr, setattr, delattr)])
        given = args if very else tuple(map(self._back, args))  # what is kept or found is the very object
        return self.own(fun, fun(*given, **{name: self._back(v) for name, v in kwargs.items()}), args)

    def _follow(self, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function of the user's."""
        names, free = assigned_outside(fun.__code__)
        if names:
            self.holders.names.setdefault(id(fun.__globals__), (fun.__globals__, set()))[1].update(names)
        for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True) if free else ():
            if name in free:
                self.holders.note(cell)
        inside = instrumented(fun, self, calls_only=True)
        if inside is None:
            refuse_unfollowed(fun)
            return self._joined(fun(*args, **kwargs))
        return inside(*args, **kwargs)

    def is_one(self, a: Any, b: Any) -> bool:
        """``a is b``, of arguments that may be one object."""
        a, b = [self.original(x) if source(x) is None else x.value for x in (a, b)]
        return a is b

    def attribute(self, owner: Any, name: str) -> Any:
        """``owner.name``, of which properties of the user's are followed."""
        if type(owner) is Tracer and name in AS_ARRAYS:
            return owner.memory(name)
        if type(owner) is Tracer and name in OWN:
            owner.lacks(name)
            return owner.like.base if owner.base is None else owner.owner()  # of views of views, too
        if (found := self.beside(owner, name)) is not NOTHING:
            return found
        fixed = None if type(owner) is Tracer else of_class(type(owner), name)
        if type(fixed) is property and is_users(fixed.fget):
            return self.call(fixed.fget, owner)
        if type(fixed) is functools.cached_property and is_users(fixed.func) and name not in vars(owner):
            vars(self.held(owner))[name] = self.call(fixed.func, owner)
        return getattr(owner, name)

    @staticmethod
    def _of_numpy(fun: BuiltinFunctionType | FunctionType) -> bool:
        return isinstance(getattr(fun, "__self__", None), np.ufunc) or fun in create.ARRAYS or fun in create.UNASKED

    def matmul(self, left: Any, right: Any) -> Any:
        """``left @ right``."""
        return sparse_product(left, right) if of_sparse(left, right) else left @ right

    def _back(self, value: Any) -> Any:
        """A function that other code will call."""
        followed = isinstance(value, (FunctionType, MethodType)) and is_users(getattr(value, "__func__", value))
        followed = followed or isinstance(value, UNBOUND) or standard.asks(value)
        return functools.wraps(value)(lambda *args, **kwargs: self.call(value, *args, **kwargs)) if followed else value


def watch(trace: Trace, state: State | None, fills: bool) -> None:
    """Give a run its hooks: a ``State``, or where it is not compiled what it needs of them; ``fills``: arrays may be filled."""
    trace.drafts = Drafts(trace) if fills else None
    trace.hooks = Plain(trace, set(), True) if state is None else state


def may_fill(fun: Any, given: Sequence[Any]) -> bool:
    """Whether a function, or one of those that it is ``given``, is seen to fill arrays."""
    functions = [value for value in given if isinstance(value, (FunctionType, MethodType, functools.partial))]
    return Within((fun, *functions) if functions else fun).fill()


_MANY = 32  # records
DEEPEST = 3  # containers in containers whose numbers are looked at as a loop begins
FEW = 24  # items of one that are
_LETTING = (np.errstate, warnings.catch_warnings, contextlib.nullcontext)  # managers that let each exception through


def _keys(value: Any) -> Sequence[Any]:
    """Where there may be numbers in a small container."""
    return [] if len(value) > FEW else [*value] if isinstance(value, MutableMapping) else range(len(value))


class _Manager:
    """What a ``with`` statement enters and leaves, with its methods followed."""

    def __init__(self, state: State, value: Any) -> None:
        self.state, self.value, self.catches = state, value, type(value) not in _LETTING
        for name in ("__enter__", "__exit__"):  # as Python asks, and with its words
            if not hasattr(type(value), name):
                with value:
                    pass

    def __enter__(self) -> Any:
        if self.catches:
            self.state.trying(True, int(isinstance(self.value, contextlib.suppress)))
        self.state.catching += isinstance(self.value, warnings.catch_warnings)
        return self._call("__enter__")

    def __exit__(self, *error: Any) -> Any:
        self.state.trace.trying -= self.catches
        self.state.catching -= isinstance(self.value, warnings.catch_warnings)
        swallowed = self._call("__exit__", *error)
        if swallowed and error[0] is not None:
            self.state.caught()
        return swallowed

    def _call(self, name: str, *args: Any) -> Any:
        kind = type(self.value)
        if is_users(of_class(kind, name)):
            return self.state.call(self.state.special(kind, name), self.value, *args)
        if self.state.path_of(self.value) is not None:
            self.state.stop(f"{self.state.path_of(self.value)!r} is entered, which is not followed")
        return getattr(self.value, name)(*args)
