"""Lists that objects hold, or dicts, to which the iterations of a loop append, wherever that is done: ``self.log.append(x)``.

No source tells that these are such lists, and that nobody reads them. The first iteration shows it, in which an item is
appended, and the hooks, which see whoever is asked for one of them since. So they are as the lists that the source tells of
(see ``appended``), under names of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from symgrad.loops.appended import GROWN, Grown
from symgrad.loops.patterns import Boundary, Key
from symgrad.source.lists import FAR
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer


class Logged(NamedTuple):
    """Among what is ``apart``: some iterations of a loop append to a list that an object holds at this key, and some do not."""

    place: Any
    key: Key


class Counted(NamedTuple):
    """Among what is ``apart``: the ``while`` loop in a line appends to lists that objects hold, and counts its iterations."""

    file: str
    line: int


class Logs:
    """Those that one loop knows. ``grown`` are all lists to which it appends, by name."""

    def __init__(self, trace: Trace, grown: dict[str, Grown]) -> None:
        self.trace, self.grown = trace, grown
        self.known = dict[int, tuple[str, Grown]]()  # by identity, with their names
        self.some: Collection[Key] = ()  # where there are such to which but some iterations append
        self.shared: Mapping[Key, int] = {}  # which list was where as the loop began
        self.others = set[int]()  # lists of objects that are none of these
        self.near = dict[int, int]()  # how far from their ends its first iteration has read some, by identity
        self.asked_before: Mapping[int, int] = {}  # how often objects had been asked for lists as it began
        self.shown_before = 0  # and for all that they hold

    def begin(self, some: Collection[Key]) -> None:
        """The loop begins; there are ``some`` to which not all iterations append."""
        self.some, hooks = some, self.trace.hooks
        if hooks is not None:
            self.asked_before, self.shown_before = {**hooks.mentioned}, hooks.shown_all

    def key_of(self, owner: list[Any]) -> Key | None:
        """Where an object holds a list, since the loop began; None where one of its locals does, or somebody has asked for it,
        other than to append to it."""
        keys = [key for key, ident in self.shared.items() if ident == id(owner)]
        asked = self.asked_before.get(id(owner), 0) + self.shown_before
        local = any([len(key) == 1 for key in keys])
        if not keys or local or id(owner) in self.others or self.trace.hooks.asked_for(owner) != asked:
            return None
        return min(keys, key=lambda key: len(key))

    def add(self, key: Key, owner: list[Any], begin: int, some: bool) -> Grown:
        """One more, which had so many items as the loop began."""
        made = Grown.of_object(owner, begin, some, self.trace.hooks.asked_for(owner), self.near.get(id(owner), 0))
        name = ".".join(map(str, key))
        self.known[id(owner)], self.grown[name] = (name, made), made
        return made

    def reads_near(self, owner: list[Any], far: int, first: bool) -> bool:
        """Whether what an iteration, maybe the ``first`` one, reads so far from the end of a list that is not known yet will go
        round."""
        self.near[id(owner)] = max(self.near.get(id(owner), 0), far if first and far <= FAR else 0)
        return far <= self.near[id(owner)]

    def settle(self, begin: Boundary, number: Callable[[str, Any], Tracer]) -> None:
        """The first iteration has ended. Lists are known if it has appended an item to each, and nobody else holds them; then
        what is noted of them is as if that had been known. ``number`` traces a plain one."""
        for ident, (name, grown) in [*self.known.items()]:
            grown.look(self.trace)
            if grown.some:
                continue
            if grown.is_as_noted(sum([owner is grown.owner for owner in self.trace.writes]), 1):
                grown.settle(number)
                for bound in begin.every():
                    _note(bound, ident)
            else:
                for bound in begin.every():
                    _forget(bound, [item for item in bound.holds if item[0] == name])
                del self.known[ident], self.grown[name]
                self.others.add(ident)

    def left_out(self, iterations: int) -> Key | None:
        """Where there is a list to which some iterations have appended no item; None if there is none."""
        for ident, (_, grown) in self.known.items():
            if grown.whole and not grown.some and len(grown.items) < iterations:
                return next((key for key, other in self.shared.items() if other == ident), None)
        return None


def _note(bound: Boundary, ident: int) -> None:
    """Of a list, what is noted of one that grows."""
    for key in [key for key, other in bound.shared.items() if other == ident]:
        bound.rest[key[0]] = _instead(bound.rest[key[0]], key[1:])
        _forget(bound, [item for item in bound.holds if item[: len(key)] == key])


def _forget(bound: Boundary, keys: Sequence[Key]) -> None:
    for key in keys:
        del bound.holds[key], bound.nodes[key]


def _instead(what: Any, path: Key) -> Any:
    """A description of what there is (see ``survey``) with that of a list that grows at a place in it."""
    if not path:
        return GROWN
    first, rest = path[0], path[1:]
    before, parts = (what[:3], what[3:]) if what[0] in ("code", "is") else (what[:-1], what[-1])  # of functions, or others
    names = what[1] if len(what) == 3 and len(before) == 2 else range(len(parts))
    made = tuple([_instead(part, rest) if name == first else part for name, part in zip(names, parts, strict=True)])
    return (*before, *made) if len(before) == 3 else (*before, made)
