"""Lists that objects hold, or dicts, to which the iterations of a loop append, wherever that is done: ``self.log.append(x)``.

No source tells that these are such lists, and that nobody reads them. The first iteration shows it, in which an item is
appended, and the hooks, which see whoever is asked for one of them since. So they are as the lists that the source tells of
(see ``appended``), under names of their own. Where items are tuples, lists or dicts of numbers and arrays, each of their parts
is such a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from symgrad.loops.appended import GROWN, KEPT, Chosen, Grown
from symgrad.loops.patterns import Boundary, Key
from symgrad.source.lists import FAR
from symgrad.tracing.mixed import Otherwise
from symgrad.tracing.trace import Trace, is_held_so_often
from symgrad.tracing.tracer import Tracer

_WIDEST = 16  # parts of a row


class Logged(NamedTuple):
    """Among what is ``apart``: some iterations of a loop append to a list that an object holds at this key, and some do not."""

    place: Any
    key: Key
    row: Row | None


class Resumed(NamedTuple):
    """Among what is ``apart``: a loop appends to a list of some items, and reads it, too."""

    place: Any
    key: Key


class Measured(NamedTuple):
    """Among what is ``apart``: iterations of a loop ask how long such a list is."""

    place: Any
    key: Key


class Counted(NamedTuple):
    """Among what is ``apart``: the ``while`` loop in a line appends to lists that objects hold, and counts its iterations."""

    file: str
    line: int


class Filled(NamedTuple):
    """Among what is ``apart``: the iterations of a short loop decide, and append to lists that objects hold."""

    place: Any


class Row(NamedTuple):
    """What rows have in common: they are tuples, lists or dicts with these keys."""

    kind: type
    keys: tuple[Any, ...]

    @classmethod
    def of(cls, item: Any) -> Row | None:
        """That of an item; None where it is no row."""
        if type(item) not in (tuple, list, dict) or not 0 < len(item) <= _WIDEST:
            return None
        keys = tuple(item) if type(item) is dict else tuple(range(len(item)))
        return cls(type(item), keys) if all([type(key) in (int, str) for key in keys]) else None

    def make(self, parts: Sequence[Any]) -> Any:
        """A row with these parts."""
        return dict(zip(self.keys, parts, strict=True)) if self.kind is dict else self.kind(parts)


class Holders(NamedTuple):
    """Where an object holds a list: at this key of a loop's locals; if it is in a dict of the object's, this one."""

    key: Key
    dicts: tuple[dict[str, Any], ...]

    @property
    def idents(self) -> tuple[int, ...]:
        """Of the dicts."""
        return tuple(map(id, self.dicts))


class Log:
    """One of them, which had ``begin`` items before the loop; ``columns`` are what grows, with their names: the list itself, or
    lists of the parts of its items, if these are rows."""

    def __init__(self, owner: list[Any], begin: int, row: Row | None, columns: dict[str, Grown], holders: Holders) -> None:
        self.owner, self.begin, self.row, self.columns, self.holders = owner, begin, row, columns, holders
        self.before: Chosen | None = None  # what it was, of which nobody has asked yet which items it has

    @property
    def first(self) -> Grown:
        """A column, as all are."""
        return next(iter(self.columns.values()))

    @property
    def some(self) -> bool:
        """Whether not all iterations append an item."""
        return self.first.some

    @property
    def whole(self) -> bool:
        """Whether nothing else has happened to it, as far as is known."""
        return all([grown.whole for grown in self.columns.values()])

    @property
    def deepest(self) -> int:
        """How far from its end iterations read it."""
        return min([grown.deepest for grown in self.columns.values()])

    def take_apart(self) -> None:
        """An iteration has appended an item: its parts go into the columns."""
        item = self.owner[-1]
        if self.row is not None:
            fits = Row.of(item) == self.row and not any([item is other for other in self.owner[self.begin : -1][-2:]])
            for key, grown in zip(self.row.keys, self.columns.values(), strict=True):
                grown.whole &= fits
                if fits:
                    grown.owner.append(item[key])

    def look(self, trace: Trace) -> None:
        """Has it been read since?"""
        for grown in self.columns.values():
            grown.look(trace)

    def is_as_noted(self, trace: Trace, iterations: int) -> bool:
        """Whether all ``iterations`` have appended an item, or none has, and nothing else has happened; and nobody else holds
        it, nor a row of it."""
        self.look(trace)
        written = Counter(map(id, trace.writes))
        # by what is around it, and the tuple of them
        if not all([is_held_so_often(one, 2 + written[id(one)], 0) for one in self.holders.dicts]):
            return False
        if self.row is None:
            often = written[id(self.owner)] + trace.hooks.told_of(self.owner) + (self.before is not None)
            return self.first.is_as_noted(often + 1, iterations)
        owner = self.owner
        if not is_held_so_often(owner, written[id(owner)] + trace.hooks.told_of(owner) + 2, 0):  # by the object, and here
            return False
        if not all([grown.is_as_noted(0, iterations) for grown in self.columns.values()]):
            return False
        own = owner[self.begin :]
        if len(own) != len(self.first.items) or not all([Row.of(item) == self.row for item in own]):
            return False
        parts = zip(*[grown.items for grown in self.columns.values()], strict=True)
        alike = [all([item[key] is part for key, part in zip(self.row.keys, every, strict=True)])
                 for item, every in zip(own, parts, strict=True)]  # fmt: skip
        return all(alike) and (self.row.kind is tuple or all([is_held_so_often(row, 2, 0) for row in own]))

    def seen(self, trace: Trace) -> tuple[Any, dict[Key, Tracer]]:
        """What is noted of it between iterations, and the traced values that go round for it."""
        self.look(trace)
        found, holds = True, dict[Key, Tracer]()
        for name, grown in self.columns.items():
            what, more = grown.seen(name, trace)
            found = found and what == GROWN
            holds.update(more)
        known = found and len(self.owner) == self.begin + len(self.first.items)
        return GROWN if known else (object(),), holds

    def rebuild(self) -> None:
        """The columns have other items: so do the rows."""
        if self.row is not None:
            parts = zip(*[grown.owner for grown in self.columns.values()], strict=True)
            self.owner[self.begin :] = map(self.row.make, parts)

    def chosen(self) -> Chosen | Later | None:
        """What there is in place of the list, to which not all iterations of a loop that is rolled up have appended."""
        if self.row is None:
            chosen = self.first.chosen()
            if type(chosen) is not Chosen:
                return None
            return chosen if self.before is None else self.before.followed_by(chosen)
        columns = [grown.chosen() for grown in self.columns.values()]
        return Later(self.owner, self.begin, self.row, columns) if self.some else None


class Later:
    """A list of rows of which nobody has asked yet which it has, after so many that were there to ``begin`` with; ``columns``
    are the lists of their parts."""

    def __init__(self, owner: list[Any], begin: int, row: Row, columns: Sequence[Chosen | list[Any]]) -> None:
        self.owner, self.begin, self.row, self.columns = owner, begin, row, columns
        self.is_whole = False  # whether they are in the list
        self.is_looked_into = False  # whether one of them was found, by what they have at a key
        self._chosen: list[Chosen] | None = None

    def listed(self) -> list[Any]:
        """The list itself; how many rows there are is known from here on. Where somebody has a row of it by now, the run ends,
        and the next one has all lists: that row is to be one of these."""
        if not self.is_whole:
            if self.is_looked_into:
                raise self.columns[0].array.tape.refuse(Otherwise(frozenset([KEPT])))  # type: ignore[union-attr]
            self.is_whole = True
            parts = [one.listed() if type(one) is Chosen else one for one in self.columns]
            self.owner[self.begin :] = map(self.row.make, zip(*parts, strict=True))
        return self.owner

    @property
    def idents(self) -> set[int]:
        """Of all that it has."""
        every = [one for one in (*self.columns, *(self._chosen or ())) if type(one) is Chosen]
        return {id(self.owner), *map(id, every)}.union(*[one.idents for one in every])

    @property
    def chosen(self) -> list[Chosen] | None:
        """The columns, with what they begin with, if all rows are chosen by a mask, which is the same for all of them."""
        before = self.owner[: self.begin]
        if self.is_whole or not all([Row.of(item) == self.row for item in before]):
            return None
        if self._chosen is None:
            known = [one for one in self.columns if type(one) is Chosen and not one.is_whole]
            pairs = zip(known, self.row.keys, strict=False)
            every = [one.after([*[item[key] for item in before], *one.owner]) for one, key in pairs]
            self._chosen = [one for one in every if one is not None and len(known) == len(self.columns)]
        return self._chosen if len(self._chosen) == len(self.columns) else None


class Logs:
    """Those that one loop knows. ``grown`` are all lists to which it appends, by name."""

    def __init__(self, trace: Trace, grown: dict[str, Grown]) -> None:
        self.trace, self.grown = trace, grown
        self.known = dict[int, Log]()  # by identity
        self.some: Mapping[Key, Row | None] = {}  # where there are such to which but some iterations append
        self.measured = set[Key]()  # where those are of which iterations ask how long they are
        self.lists = dict[int, Holders | None]()  # where lists were as the loop began, or its second iteration
        self.since = dict[int, int]()  # what ``asks`` of the hooks was then
        self.others = set[int]()  # lists of objects that are none of these
        self.seen_late = Counter[int]()  # how often iterations have appended to such as are not known
        self.near = dict[int, int]()  # how far from their ends its first iteration has read some, by identity

    def begin(self, place: Any) -> None:
        """The loop at a place in the code begins."""
        self.some = {one.key: one.row for one in self.trace.apart if type(one) is Logged and one.place == place}
        self.measured = {one.key for one in self.trace.apart if type(one) is Measured and one.place == place}

    def meet(self, lists: Mapping[int, Holders | None]) -> None:
        """Where lists are as the loop begins; or its second iteration, before which they may have been made."""
        for ident in lists.keys() - self.lists.keys():
            self.lists[ident], self.since[ident] = lists[ident], 0 if self.trace.hooks is None else self.trace.hooks.asks

    def holders_of(self, owner: list[Any]) -> Holders | None:
        """Where an object holds a list, since the loop began, or its second iteration; None where somebody has asked for it
        since, other than to append to it."""
        holders = self.lists.get(id(owner))
        if holders is None or id(owner) in self.others:
            return None
        return holders if self.trace.hooks.last_asked((id(owner), *holders.idents)) <= self.since[id(owner)] else None

    def add(self, holders: Holders, owner: list[Any], begin: int, row: Row | None, some: bool) -> Log:
        """One more, which had so many items as the loop began."""
        facts = (id(owner), *holders.idents), some, self.trace.hooks.asks, self.near.get(id(owner), 0)
        name = ".".join(map(str, holders.key))
        if row is None:
            columns = {name: Grown.of_object(owner, begin, *facts)}
        else:
            columns = {f"{name}.{part}": Grown.of_object([], 0, *facts) for part in row.keys}
        made = self.known[id(owner)] = Log(owner, begin, row, columns, holders)
        made.first.counts = some and holders.key in self.measured
        self.grown.update(columns)
        return made

    def reads_near(self, owner: list[Any], far: int, first: bool) -> bool:
        """Whether what an iteration, maybe the ``first`` one, reads so far from the end of a list that is not known yet will go
        round."""
        self.near[id(owner)] = max(self.near.get(id(owner), 0), far if first and far <= FAR else 0)
        return far <= self.near[id(owner)]

    def settle(self, begin: Boundary, number: Callable[[str, Any], Tracer]) -> None:
        """The first iteration has ended. Lists are known if it has appended an item to each, and nobody else holds them; then
        what is noted of them is as if that had been known. ``number`` traces a plain one."""
        for ident, log in [*self.known.items()]:
            if log.some:
                continue
            if log.is_as_noted(self.trace, 1):
                for grown in log.columns.values():
                    grown.settle(number)
                log.rebuild()
                for bound in begin.every():
                    _note(bound, ident)
            else:
                self._drop(ident, begin.every())
                self.others.add(ident)

    def drop_single(self, bounds: Sequence[Boundary]) -> None:
        """Two iterations have ended: forget lists to which but the first one has appended, as where each has an object of its
        own."""
        for ident, log in [*self.known.items()]:
            if not log.some and len(log.first.items) == 1:
                self._drop(ident, [one for bound in bounds for one in bound.every()])
                self.seen_late[ident] += 1

    def _drop(self, ident: int, bounds: Sequence[Boundary]) -> None:
        log = self.known.pop(ident)
        for bound in bounds:
            _forget(bound, [item for item in bound.holds if item[0] in log.columns])
        for name, grown in log.columns.items():
            if self.grown.get(name) is grown:  # else another list is there by now
                del self.grown[name]

    def left_out(self, iterations: int) -> tuple[Key, Row | None] | None:
        """Where there is a list to which some iterations have appended no item, and what its rows are; None if there is
        none."""
        for log in self.known.values():
            log.look(self.trace)
            if log.whole and not log.some and len(log.first.items) < iterations:
                return log.holders.key, log.row
        return None

    def hold(self, iterations: int) -> bool:
        """Whether nothing has happened to them but what is known."""
        return all([log.is_as_noted(self.trace, iterations) for log in self.known.values()])

    def rebuild(self) -> None:
        """The columns of rows have other items."""
        for log in self.known.values():
            log.rebuild()

    def chosen(self) -> Iterator[tuple[tuple[int, ...], Chosen | Later]]:
        """Of lists to which not all iterations have appended, and of dicts that have them, the identities, and what there is in
        their place."""
        for log in self.known.values():
            chosen = log.chosen()
            if chosen is not None:
                yield (id(log.owner), *log.holders.idents), chosen

    def in_rows(self) -> Counter[int]:
        """How often values (ids) are in rows."""
        rows = [item for log in self.known.values() if log.row is not None for item in log.owner[log.begin :]]
        return Counter([id(part) for row in rows for part in (row.values() if type(row) is dict else row)])


def _note(bound: Boundary, ident: int) -> None:
    """Of a list, what is noted of one that grows."""
    for key in [key for key, other in bound.shared.items() if other == ident]:
        bound.rest[key[0]] = _instead(bound.rest[key[0]], key[1:])
        _forget(bound, [item for item in bound.holds if item[: len(key)] == key])
        for inner in [one for one in bound.shared if len(one) > len(key) and one[: len(key)] == key]:  # rows
            del bound.shared[inner]


def _forget(bound: Boundary, keys: Sequence[Key]) -> None:
    for key in keys:
        del bound.holds[key], bound.nodes[key]


def _instead(what: Any, path: Key) -> Any:
    """A description of what there is (see ``survey``) with that of a list that grows at a place in it."""
    if not path:
        return GROWN
    first, rest = path[0], path[1:]
    before, parts = (
        (what[:3], what[3:]) if what[0] in ("code", "is", "method") else (what[:-1], what[-1])
    )  # of functions, or others
    names = what[1] if len(what) == 3 and len(before) == 2 else range(len(parts))
    made = tuple([_instead(part, rest) if name == first else part for name, part in zip(names, parts, strict=True)])
    return (*before, *made) if len(before) == 3 else (*before, made)
