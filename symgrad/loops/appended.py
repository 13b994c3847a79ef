"""Lists that the iterations of a loop append numbers to, or arrays.

Beside such a list an array goes round, with the same numbers in it. So a loop with ``if``s in it, or a long one, can be rolled
up; when it is, the items of the list are what is in the array. Where only some iterations append a number, a mask that says
which goes round, too: the list is what that selects from the array.

Of items that are arrays, the array has copies. Nobody can tell, as long as nobody writes into an item, or into what may be one
in other calls: there the loop stays as it is.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.ir import CONST, Aval, Node
from symgrad.loops.patterns import BOOL, EXACT, INT, MANY, TAKEN, WHOLE, Key
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import INDEX, ITEM, TO_PYTHON, TOTAL
from symgrad.source.lists import FAR
from symgrad.tracing.mixed import Mixed
from symgrad.tracing.selections import place_of
from symgrad.tracing.trace import Trace, is_held_so_often
from symgrad.tracing.tracer import NUMBERS, Run, Tracer, plain

GROWN = ("grown",)  # what is noted of such a list, but for its items
KEPT = "a list of some items"  # a cause of ``Mixed``
_SHIFTS = (REGISTRY[np.add], REGISTRY[np.subtract])
LONG = 1 << 12  # items that were there before a loop, which are written into its array one by one
MOST = 1 << 26  # numbers of all arrays that a loop makes while it is traced


class Grown:
    """A list to which each iteration, from number ``first`` on, appends a number; ``begin`` items were there before.

    ``deepest``: how far from its end iterations read it; ``some``: not all iterations append one; ``constants``: the source
    says that all that are appended are constants of this kind, ``"int"`` or ``"bool"``; or ``"some"``, ints or such beside
    other numbers.
    """

    def __init__(self, owner: list[Any], deepest: int, some: bool, constants: str) -> None:
        self.constants = None if some else {"int": int, "bool": bool}.get(constants)
        self.unlike = constants == "some"  # whether the array has other numbers in place of ints, and of flags
        self.places: Any = None  # the loop, if it counts its iterations by ints, and all append such
        self.owner, self.deepest, self.some, self.begin = owner, deepest, some, len(owner)
        self.locals = 1  # that hold it, but for whoever else looks at it here
        self.reads: int | None = None  # of one in an object, what ``asks`` of the hooks was when nobody had asked for it yet
        # the identities of what it is asked for: the list, or one of rows, of which this has a part; and dicts that hold it
        self.asked: tuple[int, ...] = ()
        self.latest = -1  # the iteration that has appended an item last
        self.first = 0
        self.front = 0  # how many items that were there before are in the array, too: all, or none
        self.items: list[Any] = []  # that were appended
        self.python: list[bool] = []  # whether these are Python's, rather than NumPy's
        self.all_python = False  # whether all items are that any iteration of the loop, which is rolled up, appends
        self.shape: tuple[int, ...] = ()  # of an item
        self.since: list[int] = []  # which node was the next one when an item was appended
        self.copied = 0  # numbers of all arrays that were made while it was traced
        self.array: Tracer | None = None  # has what iteration ``i`` has appended at ``i``
        self.taken: Tracer | None = None  # has there whether it has appended an item
        self.counts = False  # whether iterations ask how long it is, of one to which only some append
        self.count: Tracer | None = None  # how long it is, if they do
        self.rolled = False  # whether the loop is rolled up
        self.whole = True  # whether nothing else has happened to it, as far as is known
        self.parted: frozenset[Any] = frozenset()  # of items that are copies: see ``Tracer.parted``
        self.place: Any = None  # of the loop, which is rolled up

    @classmethod
    def of_object(cls, owner: list[Any], begin: int, asked: tuple[int, ...], some: bool, reads: int, deepest: int) -> Grown:
        """A list that an object holds, or a dict, and no local (see ``logs``). ``reads``: what ``asks`` of the hooks was when
        it became known."""
        made = cls(owner, deepest, some, "")
        made.begin, made.locals, made.reads, made.asked = begin, 0, reads, asked
        return made

    def settle(self, number: Callable[[str, Any], Tracer]) -> None:
        """What the first iteration has left at the end, and others read, is traced, if it is a plain float."""
        for far in range(1, min(self.deepest, len(self.items)) + 1):
            if type(self.owner[-far]) is float:
                self.items[-far] = self.owner[-far] = number(f"last{far}", self.owner[-far])

    def look(self, trace: Trace) -> None:
        """Has one that an object holds been read since?"""
        if self.reads is not None and trace.hooks.last_asked(self.asked) > self.reads:
            self.whole = False

    def make(self, trace: Trace, count: int, dtype: Any) -> None:
        """Make the array, of ``count`` items, and the mask."""
        self.front = 0
        self.array = trace.constant_like(0.0, Aval((count, *self.shape), np.dtype(dtype), "array"))
        if self.some:
            self.taken = trace.constant_like(False, Aval((count,), np.dtype(bool), "array"))
            self.count = trace.constant_like(self.begin, Aval((), np.dtype(int), "python")) if self.counts else None

    def may_begin(self) -> bool:
        """Whether the items that were there before are numbers, or arrays, of one kind, as those that were appended are."""
        kinds = {_kind_of(item) for item in [*self.owner[: self.begin], *self.items[:1]]}
        return len(kinds) == 1 and None not in kinds and not (self.some or self.constants) and self.begin <= LONG

    def begin_with(self, trace: Trace, count: int) -> None:
        """Make the array, of ``count`` items and those that were there before."""
        if self.begin and self.may_begin():
            first, *others = self.owner
            alike = all([other is first for other in others])
            items = trace.gather([first] if alike else self.owner)
            self.shape = items.shape[1:]
            self.make(trace, self.begin + count, items.dtype)
            assert self.array is not None
            self.array[: self.begin] = items
            self.front = self.begin

    def begins(self, trace: Trace, count: int, number: int, loop: Any) -> None:
        """Iteration ``number`` has appended the first item, of whose kind all are; ``loop``: its number, if it is in no other
        one."""
        item = self.owner[-1]
        known = type(item) is Tracer and isinstance(item.node.aval, Aval)
        dtype = item.node.aval.dtype if known else np.result_type(item) if type(item) in NUMBERS else None
        if not self.some and (type(item) is int or self.constants is not None):
            dtype = np.dtype(float)
        self.first = 0 if self.some else number
        self.shape = item.node.aval.shape if known else ()
        alike = loop is not None and not (self.some or self.deepest) and self.constants is None
        self.places = loop if alike and _is_place(item, loop) else None
        counted = self.some or self.places is not None or (known and item.node.aval == INT)
        self.whole = self.whole and dtype is not None and dtype.kind in ("fci" if counted else "fc")
        late = self.front > 0 and (number > 0 or _kind_of(item) != _kind_of(self.owner[0]))
        if self.whole and (late or self.array is None or (self.array.shape[1:], self.array.dtype) != (self.shape, dtype)):
            self.make(trace, count, dtype)

    def take_in(self, trace: Trace, place: Tracer) -> None:
        """Iteration number ``place`` has appended an item."""
        item = self.owner[-1]
        expected = self.latest < place.value if self.some else place.value == self.first + len(self.items)
        in_turn, self.latest = expected and len(self.owner) == self.end + 1, place.value
        self.whole = self.whole and in_turn and self.array is not None and _fits(item, self.shape, self.array.node.aval.dtype)
        self.whole = self.whole and (self.places is None or _is_place(item, self.places))
        if self.whole and self.array is not None and self.shape:
            self.copied += self.array.value.size
            self.whole = self.copied < MOST
        if self.whole and self.array is not None:
            at: Any = place
            self.array[at + self.front if self.front else at] = item
            if self.taken is not None:
                self.taken[place] = True
            if self.count is not None:
                one_more: Any = self.count
                self.count = one_more + 1
            self.items.append(item)
            self.since.append(trace.graph.next_index)
            self.python.append(_is_python(item))
            self.unlike = self.unlike or (self.constants is None and _is_int(item) and self.places is None)
            rounds = self.unlike and self.array.node.aval.dtype.kind in "fc"
            if rounds or {True, False} <= {*self.python}:
                trace.mixed[self.array.node] = Mixed(None, frozenset())

    def at(self, key: Any, now: Any, least: int | None, lead: int | None) -> Any:
        """What is at a traced place of the list, in iteration number ``now``; None for what no iteration has appended. Of an
        item that is an array, it is a view of the one that goes round.

        ``least``: what the place is at least, in all iterations, and ``lead``: by how much the number of any is more, as far
        as these are known: others ask, as other calls may read there in other iterations.
        """
        array, plainly = self.array, self.constants is None and not self.some
        if array is None or not (self.whole and plainly and array.dtype.kind in "fc"):
            return None
        low, before = (0, 0) if self.front else (self.begin, self.begin - self.first)
        if not low <= key.value < len(self.owner):
            return None
        place: Any = key - before if before else key
        own = self.end - int(plain(now)) - self.begin + self.first  # how many this one has appended
        inside: list[Any] = []
        if least is None or least < low:
            inside.append(key >= low)
        if lead is None or lead + self.begin - self.first + own < 1:
            inside.append(place < now + (own + self.front))
        if inside and not functools.reduce(operator.and_, inside):  # one decision for both
            return None
        item: Any = array[place]
        return TO_PYTHON(item) if not self.shape and all(self.python) and item.node not in item.tape.mixed else item

    def part(self, place: Any) -> None:
        """Items may be copies of each other from here on, as the loop at this ``place`` reads them from the array."""
        for item in [*self.owner[: self.front], *self.items]:
            item.owner().parted |= {place}

    def take_last(self, place: Tracer) -> None:
        """What is left of the iteration in which the loop has ended has appended an item."""
        found, item = self.chosen(), self.owner.pop()
        if not isinstance(found, Chosen) or not _fits(item, self.shape, found.array.dtype):
            self.array = None
            self.owner[:] = [*(found.listed() if isinstance(found, Chosen) else found), item]
            return
        found.array[place], found.taken[place] = item, True
        self.python.append(_is_python(item))
        if self.python[-1] is not found.python:
            found.array.tape.mixed[found.array.node] = Mixed(None, frozenset({KEPT}))

    @property
    def end(self) -> int:
        """How many items there are, as far as is known."""
        return self.begin + len(self.items)

    def is_as_noted(self, often: int, iterations: int) -> bool:
        """Whether all ``iterations`` have appended an item, or none has, and nothing else has happened; and whether only a
        local of the function holds the list, or an object, and others here, so ``often``."""
        owner, own = self.owner, self.owner[self.begin :]
        if not is_held_so_often(owner, often + 2 - self.locals, self.locals) or not self.whole or len(owner) != self.end:
            return False
        if len(own) != (0 if self.array is None else len(self.items) if self.some else iterations):
            return False
        plainly = not self.some and self.places is None and self.constants is None
        if own and plainly and all(map(_is_int, own)) and self.array is not None and self.array.dtype.kind in "fc":
            return False
        if self.shape and any([item.owner().written >= since for item, since in zip(self.items, self.since, strict=True)]):
            return False
        return all([item is one for item, one in zip(self.items, own, strict=True)])

    def seen(self, name: str, trace: Trace) -> tuple[Any, dict[Key, Tracer]]:
        """What is noted of it between iterations, and the traced values that go round for it."""
        if not self.whole or len(self.owner) != self.end:
            self.whole = False
            return (object(),), {}
        return GROWN, {**self.arrays(name), **self._last(name, 0, trace)}

    def deeper(self, name: str, deepest: int, trace: Trace, own: int) -> dict[Key, Tracer]:
        """One of the first iterations reads so far from the end: the values that go round from here on, too. It has appended so
        many items of its ``own``."""
        before, self.deepest = self.deepest, max(self.deepest, deepest if deepest <= FAR else 0)
        return self._last(name, before, trace, own)

    def _last(self, name: str, before: int, trace: Trace, own: int = 0) -> dict[Key, Tracer]:
        """The items at its end as far as iterations read them, but for so many, and those of its ``own``."""
        found: dict[Key, Tracer] = {}
        for i in range(1 + before, 1 + min(self.deepest, len(self.owner) - own)):
            item = self.owner[-i - own]
            if (type(item) is Tracer and not item.tape.draft) or type(item) in NUMBERS:
                found[name, -i] = trace.lookup(item.node if type(item) is Tracer else trace.constant(item)[0])
        return found

    def arrays(self, name: str) -> dict[Key, Tracer]:
        """The arrays that go round for it, if there is one by now."""
        every = {WHOLE: self.array, TAKEN: self.taken, MANY: self.count}
        return {(name, part): array for part, array in every.items() if array is not None}

    def can_leap(self) -> bool:
        """Whether all iterations append to it, or nobody reads its items in the loop; and they are all Python's, or NumPy's."""
        return not ((self.deepest or self.counts) and self.some) and len({*self.python}) < 2

    def leap(self, ahead: int, last: dict[int, Node]) -> None:
        """As many more iterations have run, and have left what they appended in the array; the ``last`` items, by how far they
        are from the end, go round."""
        if self.array is None:
            return
        every = np.arange(self.first, self.first + len(self.items) + ahead)
        places = (every if self.taken is None else np.flatnonzero(self.taken.value)).tolist()
        self.python = (self.python or [False])[:1] * len(places)
        items: list[Any] = [index.GETITEM(self.array, spec=(self.front + place,)) for place in places]
        if self.shape:
            items, self.since = _copies(items, self._marks()), [self.array.tape.graph.next_index] * len(items)
        items = _numbers(self.array, items, self.python)
        for far, node in last.items():
            if far <= len(items):
                items[-far] = self.array.tape.lookup(node)
        self.items = self.owner[self.begin :] = items

    def spread(self, place: Any, python: bool, unlike: bool) -> None:
        """The loop, at this ``place``, is rolled up: the items are what it has left in the array; where not all append,
        ``chosen`` has them. ``python``: iterations append Python's numbers alone; ``unlike``: they may append ints or flags."""
        self.rolled, self.all_python, self.place = True, python, place
        if self.array is None:
            return
        if (unlike or self.unlike) and self.array.dtype.kind in "fc" and self.constants is None:
            self.array.tape.mixed[self.array.node] = Mixed(None, frozenset([place]), whole=True)
        if self.some:
            del self.owner[self.begin :]
            return
        if self.places is not None:  # which are plain ints again
            self.owner[self.begin :] = self.array.value[self.first : self.first + len(self.items)].tolist()
            return
        array = self.array if self.constants is None else self.array.astype(self.constants)
        items = [index.GETITEM(array, spec=(self.front + self.first + i,)) for i in range(len(self.items))]
        items = _numbers(self.array, items, self.python)
        for far, item in self._ends().items():
            self.array.tape.ends[item.node] = items[-far].node
            items[-far] = item
        self.owner[self.begin :] = _copies(items, self._marks()) if self.shape else items

    def _marks(self) -> frozenset[Any]:
        """The loops that hang on what is done to the items, which may have been copies when they were appended."""
        return self.parted.union(*[item.owner().parted for item in self.items]) if self.shape else self.parted

    def _ends(self) -> dict[int, Any]:
        """What the last iterations of the loop, which is rolled up, have appended, as far as it goes round as well: by how far
        that is from the end."""
        array, found = self.array, dict[int, Any]()
        if array is None or self.constants is not None or array.node.op is not ITEM or array.node in array.tape.mixed:
            return found
        (loop,), place = array.node.args, dict(array.node.params)["item"]
        body, last = loop.op.body, loop.op.body.after[place]
        item = last.args[1] if last.op is index.SETITEM and last.args[0] is body.carry[place] else None
        kind = "array" if self.shape else "python" if all(self.python) else "scalar"
        while item in body.after[: len(body.carry)] and len(found) < len(self.items):
            place = body.after.index(item)
            node = array.tape.graph.find(ITEM, (loop,), (("item", place),))
            if node is None or (node.aval.dtype, node.aval.kind) != (array.dtype, kind):
                break
            found[len(found) + 1], item = array.tape.lookup(node), body.carry[place]
        return found

    def chosen(self) -> Chosen | list[Any]:
        """What there is in place of the list, to which not all iterations of a loop that is rolled up have appended."""
        if self.array is None or self.taken is None:
            return self.owner
        python = all(self.python) if self.array.node in self.array.tape.mixed else self.all_python
        return Chosen(self.owner, self.array, self.taken, python, self._marks(), self.place)


def is_index(value: Any) -> bool:
    """Whether it is a traced int, which may be a place."""
    kind = value.node.aval if type(value) is Tracer else None
    return isinstance(kind, Aval) and kind.dtype.kind in "iu" and not kind.shape


def _from_the_end(place: Any, count: Any) -> Any:
    """A place of so many, which counts from the end if it is negative."""
    if type(place) is int:
        return place if place >= 0 else count + place
    return np.where(place < 0, place + count, place)[()]


class Chosen:
    """A list whose items, after those of ``owner``, are what a mask selects from an array: NumPy's numbers, or Python's, or
    arrays (copies, which are marked as ``parted``). ``place`` is that of the loop."""

    def __init__(
        self, owner: list[Any], array: Tracer, taken: Tracer, python: bool, parted: frozenset[Any], place: Any
    ) -> None:
        self.owner, self.array, self.taken, self.python, self.parted = owner, array, taken, python, parted
        self.place = place
        self.begin = len(owner)  # where the items come in
        self.is_whole = False  # whether all items are in ``owner``, in which they may be changed
        self.is_resumed = False  # whether others may have been appended to that since, which come behind these

    @property
    def idents(self) -> set[int]:
        """Of all that it has."""
        return {id(self.owner), id(self.array), id(self.taken)}

    def __array__(self, *options: Any, **more: Any) -> Any:
        """NumPy is given what is in it (``handed``), not this."""
        raise AssertionError("a list of some items is not what NumPy takes")

    def after(self, before: list[Any]) -> Chosen | None:
        """The same after other items, all in one array; None where they cannot be in one."""
        every = Chosen(before, self.array, self.taken, self.python, self.parted, self.place)
        return Chosen([], *every.parts(), self.python, self.parted, self.place) if every.alike else None

    @property
    def alike(self) -> bool:
        """Whether all items may be in one array."""
        self.settle()
        return not self.is_whole and all([np.shape(item) == self.array.shape[1:] for item in self.owner])

    @property
    def has_order(self) -> bool:
        """Whether its items are numbers that Python compares."""
        return self.array.ndim == 1 and self.array.dtype.kind != "c"

    def parts(self) -> tuple[Any, Any]:
        """An array, and which elements of it are the items."""
        self.settle()
        if not self.owner:
            return self.array, self.taken
        every: Any = np.concatenate([self.array.tape.gather(self.owner), self.array])
        array = self._beside(every, self.owner)
        return array, np.concatenate([_all_true(self.array.tape, len(self.owner)), self.taken])

    def column(self, key: int) -> Chosen:
        """The list of what all items, which are arrays, have at a place."""
        array, taken = self.parts()
        return Chosen([], array[:, key], taken, False, self.parted, self.place)

    def append(self, item: Any) -> None:
        """One more item, behind all places."""
        self.settle()
        if self.is_whole or self.array.ndim > 1 or not _fits(item, (), self.array.dtype):
            self.listed().append(item)
            return
        more: Any = np.concatenate([self.array, np.reshape(self.array.tape.gather(item), 1)])
        self.array, self.python = self._beside(more, [item]), self.python and _is_python(item)
        taken: Any = np.concatenate([self.taken, _all_true(self.array.tape, 1)])
        self.taken = taken

    def _beside(self, array: Tracer, others: Sequence[Any]) -> Tracer:
        """An array that has ``others`` in it, too, which may be other numbers in the list: Python's, or ints."""
        trace, known = array.tape, array.tape.mixed.get(self.array.node)
        coarse = array.dtype.kind in "fc" and any(map(_is_int, others))
        if coarse or known is not None or any([_is_python(item) is not self.python for item in others]):
            causes = frozenset({KEPT}) | (known.causes if known else frozenset())
            trace.mixed[array.node] = Mixed(None, causes, whole=bool(coarse or (known and known.whole)))
            trace.coarse |= coarse
        return array

    def extreme(self, fun: Any) -> list[Any]:
        """A list with what ``fun``, ``min`` or ``max``, finds, which passes NaN over where it does not come first."""
        array, taken = self.parts()
        if not np.any(taken):
            return []
        filled, place = self._filled(fun)
        found = filled[place(filled)]
        if array.dtype.kind not in "iu":
            first = array[np.argmax(taken)]
            found = np.where(np.isnan(first), first, found)[()]
        if all([_is_python(item) is self.python for item in self.owner]):
            return self.numbers([found])
        known = self.array.tape.mixed.get(array.node)
        self.array.tape.mixed[found.node] = Mixed(None, frozenset({KEPT}), whole=bool(known and known.whole))
        return [found]

    def _filled(self, fun: Any) -> tuple[Any, Any]:
        """The array, with numbers that are never beyond the items where it has none, nor what is compared, and what finds the
        place of the one that ``fun``, ``min`` or ``max``, finds."""
        array, taken = self.parts()
        place = np.argmin if fun is min else np.argmax
        if array.dtype.kind in "iu":  # of which a float may be another one
            ends = np.iinfo(array.dtype)
            return np.where(taken, array, array.dtype.type(ends.max if fun is min else ends.min)), place
        return np.where(taken & ~np.isnan(array), array, np.inf if fun is min else -np.inf), place

    def place_of(self, fun: Any) -> Any:
        """The place of what ``fun``, ``min`` or ``max``, finds, the first of those alike; None where there is no item."""
        array, taken = self.parts()
        if not np.any(taken):
            return None
        filled, place = self._filled(fun)
        found, first = place(filled), np.argmax(taken)
        stays = ~taken[found] if array.dtype.kind in "iu" else ~taken[found] | np.isnan(array[first])  # nothing is beyond it
        return np.where(stays, first, found)[()]

    def at(self, place: Any) -> Any:
        """The item at a place of ``parts``."""
        array, _ = self.parts()
        return self._alone(array[place])[0]

    def cut(self, part: slice) -> Chosen | None:
        """The items that a slice of the list has; None where it turns some of them round, or hangs on what is traced."""
        start, stop, step = part.start, part.stop, part.step
        known = all([type(end) is int or end is None or is_index(end) for end in (start, stop)])
        if not self.alike or not known or not (type(step) is int or step is None):
            return None
        array, taken = self.parts()
        if (start, stop, step) == (None, None, -1):
            return Chosen([], array[::-1], taken[::-1], self.python, self.parted, self.place)
        if step is not None and step < 1:
            return None
        places = np.cumsum(taken)  # of items, counted from one
        count = places[-1]
        if start is not None:
            taken = taken & (places > _from_the_end(start, count))
        if stop is not None:
            taken = taken & (places <= _from_the_end(stop, count))
        if step is not None and step > 1:
            first = 0 if start is None else np.maximum(_from_the_end(start, count), 0)
            taken = taken & ((places - 1 - first) % step == 0)
        return Chosen([], array, taken, self.python, self.parted, self.place)

    def at_place(self, place: int) -> list[Any]:
        """A list with the item at a place that is no end, counted from the last one if it is negative; an empty one where there
        is none."""
        one = self.cut(slice(place, place + 1))
        assert one is not None
        return one.end(False)

    def at_index(self, key: Tracer) -> list[Any]:
        """The same for a place that is traced."""
        array, taken = self.parts()
        count = np.count_nonzero(taken)
        return self._alone(array[place_of(key, taken)]) if (key < count) & (key >= -count) else []

    def end(self, last: bool) -> list[Any]:
        """A list with the first item, or the ``last`` one."""
        self.settle()
        if (self.owner and not last) or not np.any(self.taken):
            return self.owner[-1:] if last else self.owner[:1]
        place = len(self.array) - 1 - np.argmax(self.taken[::-1]) if last else np.argmax(self.taken)
        return self._alone(self.array[place])

    def _alone(self, item: Any) -> list[Any]:
        """A list with this item."""
        return self.copies([item]) if self.array.ndim > 1 else self.numbers([item])

    def copies(self, items: list[Any]) -> list[Any]:
        """Arrays of their own, into which nobody may write."""
        return _copies(items, self.parted | {self.place})

    def listed(self) -> list[Any]:
        """The list itself; how many items there are is known from here on."""
        if not self.is_whole:
            made = self.array[self.taken]
            items = [index.GETITEM(made, spec=(i,)) for i in range(len(made))]
            self.owner[self.begin : self.begin] = self.numbers(items)
            self.is_whole, self.is_resumed = True, False
        return self.owner

    def settle(self) -> None:
        """If others were appended to the list since, they come behind all places; or all items are known from here on."""
        more = self.owner[self.begin :] if self.is_resumed else []
        self.is_resumed = False
        kinds = [(_fits(item, self.array.shape[1:], self.array.dtype), _is_python(item)) for item in more]
        if {*kinds} - {(True, self.python)} or (more and self.array.node in self.array.tape.mixed):
            self.listed()
        elif more:
            del self.owner[self.begin :]
            array: Any = np.concatenate([self.array, self.array.tape.gather(more)])
            taken: Any = np.concatenate([self.taken, _all_true(self.array.tape, len(more))])
            self.array, self.taken = array, taken

    def followed_by(self, more: Chosen) -> Chosen:
        """The same list after such a loop."""
        mixed, kinds = more.array.tape.mixed, [(one.array.shape[1:], one.array.dtype, one.python) for one in (self, more)]
        if self.is_whole or kinds[0] != kinds[1] or more.array.node in mixed or len(self.owner) != self.begin:
            self.listed()
            return Chosen(self.owner, more.array, more.taken, more.python, more.parted, more.place)
        self.is_whole, self.is_resumed = True, False  # they are in another one now
        array: Any = np.concatenate([self.array, more.array])
        taken: Any = np.concatenate([self.taken, more.taken])
        return Chosen(self.owner, array, taken, self.python, self.parted | more.parted, more.place)

    def total(self) -> list[Any]:
        """A list with the sum of all items; an empty one where there are none, of which Python's sum is an int."""
        array, taken = self.parts()
        if not (self.owner or self.python or np.any(taken)):
            return []
        if self.python and array.dtype.kind in "iu":
            return [TOTAL(np.where(taken, array, 0))]
        total = np.sum(array[taken], axis=0)
        if not all(map(_is_python, self.owner)):
            return [total]
        mixed = total.tape.mixed
        if self.owner and array.node in mixed and not total.node.aval.shape:
            mixed[total.node] = mixed[array.node]._replace(python=True if self.python else None)
            return [total]
        return self.numbers([total])

    def numbers(self, items: list[Any]) -> list[Any]:
        """What is made of items that were appended as such numbers as these are."""
        if self.array.ndim == 1:
            return _numbers(self.array, items, [True if self.python else None] * len(items))
        return _copies(items, self.parted)


def _copies(items: Sequence[Any], marks: frozenset[Any]) -> list[Any]:
    """Arrays of their own with what these show, on which loops hang, as ``marks`` tell."""
    copies = [item.tape.alone(item) for item in items]
    for copy in copies:
        copy.parted |= marks
    return copies


def _kind_of(item: Any) -> tuple[Any, ...] | None:
    """The shape and dtype of a float, or of an array of such, and whether it is Python's; None for anything else."""
    if type(item) in NUMBERS:
        dtype, python = np.result_type(item), type(item) in (float, complex)
        return ((), dtype, python) if dtype.kind in "fc" else None
    if type(item) is not Tracer or item.lent is not None:
        return None
    array = type(item.like) is np.ndarray
    if array and not (item.like.ndim and item.like.flags.c_contiguous):
        return None
    dtype = np.result_type(item.like)
    return (item.shape if array else (), dtype, type(item.like) in (float, complex)) if dtype.kind in "fc" else None


def _all_true(trace: Run, count: int) -> Tracer:
    """Part of a mask; the same one for lists that have as many items."""
    return trace.constant_like(True, Aval((count,), np.dtype(bool), "array"))


def _fits(item: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether an item is a number of this dtype, or one that is known beforehand; or an array of this shape."""
    if type(item) in NUMBERS or (type(item) is Tracer and item.node.op in (INDEX, CONST)):
        number = plain(item)
        return bool(dtype.type(number) == number)
    if type(item) is not Tracer or item.node.aval.dtype != dtype or (_is_int(item) and abs(item.value) > EXACT):
        return False
    if not shape:
        return bool(item.node.aval.kind != "array")
    alike = item.node.aval.shape == shape and item.value.flags.c_contiguous
    return alike and not item.tape.draft and item.lent is None


def _is_int(item: Any) -> bool:
    """Whether an item is an int of Python's, or a flag, traced or not."""
    return type(item) in (int, bool) or (type(item) is Tracer and item.node.aval in (INT, BOOL))


def counts(node: Node, loop: Any) -> bool:
    """Whether a node is what a loop counts its iterations by, or as far from it in all iterations."""
    return lead(node, loop, {}) is not None


def lead(node: Node, loop: Any, others: Mapping[Any, int]) -> int | None:
    """By how much, at least, what a loop counts its iterations by is more than a node, in all of them; None if that is not
    known. ``others`` are further loops, and where the numbers that these count by begin."""
    more = 0
    while node.op in _SHIFTS:
        op, (node, by) = node.op, node.args
        known = others.get(dict(by.params)["loop"]) if by.op is INDEX else None
        if by.op is CONST:
            more += by.params[0][1] if op is _SHIFTS[1] else -by.params[0][1]
        elif known is None or op is _SHIFTS[0]:
            return None
        else:
            more += known
    return more if node.op is INDEX and dict(node.params)["loop"] == loop else None


def _is_place(item: Any, loop: Any) -> bool:
    """Whether an item is an int that a loop counts its iterations by, or as far from it."""
    return type(item) is Tracer and item.node.aval == INT and counts(item.node, loop)


def _is_python(item: Any) -> bool:
    """Whether an item is Python's number, rather than NumPy's."""
    return type(item) in NUMBERS or (type(item) is Tracer and item.node.aval.kind == "python")


def _numbers(array: Tracer, items: list[Any], python: Sequence[bool | None]) -> list[Any]:
    """Elements of an array as the numbers that they were when they were appended, Python's or NumPy's."""
    trace = array.tape
    mixed = trace.mixed.get(array.node)
    if mixed is None:
        return [TO_PYTHON(item) for item in items] if all(python) else items
    for item, own in zip(items, python, strict=True):
        trace.mixed[item.node] = mixed._replace(python=own)
    return items
