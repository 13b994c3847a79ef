"""Texts that go round loops as numbers: see ``symgrad.source.states`` for those in locals.

A text in an attribute of an object of the function's own, at a key of a dict, or in a shared variable, that iterations change
(``self.state = "wet"``, or ``self.act = self.rise``, a method) is there as it is while an iteration runs. Where the next one
begins, its number goes on, and what it stands for is decided on. What a loop has left in an object is decided on when somebody
asks for it.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import operator
from collections.abc import Collection
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from symgrad.loops.survey import keys_beside
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer

MOST = 24  # texts at a place


class Coded(NamedTuple):
    """A ``text`` that goes on as a number: what it belongs to, where that has its items or attributes, the key there, and what
    there was at the other keys."""

    owner: Any
    places: Any
    key: Any
    text: Any
    code: Tracer
    others: dict[Any, Any]


class Same(NamedTuple):
    """What is in a local that holds what was at this ``place`` when the loop began, or in an object that has it at this key."""

    place: tuple[Any, ...]


class Other(NamedTuple):
    """What is in a local that stands for texts, and is none."""

    value: Any


class Tupled(NamedTuple):
    """What comes before the parts of a tuple of this ``kind``, of which these are ``texts``."""

    kind: type
    texts: tuple[bool, ...]


class Codes:
    """The numbers of texts in one trace, and those texts of which only numbers are known by now."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.known: dict[tuple[int, Any], Coded] = {}  # by the owner (its id) and the key

    def number(self, place: str, text: Any) -> int:
        """The number of a text at a place, a local's name or a key, the same in all calls."""
        known, count = self.trace.states.setdefault(place, ({}, itertools.count()))
        return known.setdefault((type(text), text), next(count))  # at once, as other threads may ask

    def is_full(self, place: str) -> bool:
        """Whether there are so many texts at a place that they are no states."""
        return len(self.trace.states.get(place, ((),))[0]) >= MOST

    def text(self, place: str, code: Any) -> Any:
        """What a number stands for: that is decided on."""
        known = sorted(
            [(number, text) for (_, text), number in [*self.trace.states[place][0].items()]], key=operator.itemgetter(0)
        )
        return next(text for number, text in known if code == number)

    def begin(self, owner: Any, places: Any, key: Any, number: Any) -> Coded:
        """A text goes on as what ``number`` makes of its number; or as the one that it is known by."""
        known = self.known.get((id(owner), key))
        if known is None:
            text, beside = places[key], keys_beside(places, key)
            others = {other: places[other] for other in places if other != key} if beside else {}
            what = text.__func__ if type(text) is MethodType else Same((beside[0],)) if beside else text
            known = self.known[id(owner), key] = Coded(owner, places, key, text, number(self.number(f".{key}", what)), others)
        return known

    def decode(self, one: Coded) -> None:
        """Decide what a text is, and put it where it belongs, if nobody has put anything else there."""
        if self.known.pop((id(one.owner), one.key), None) is None:
            return
        with contextlib.suppress(LookupError):
            if one.places[one.key] is one.text:
                text = self.text(f".{one.key}", one.code)
                text = one.others[text.place[0]] if type(text) is Same else text
                one.places[one.key] = MethodType(text, one.owner) if type(one.text) is MethodType else text

    def decode_all(self, but: Collection[Coded] = ()) -> None:
        """The same of all, ``but`` for some."""
        for one in [one for one in self.known.values() if not any([one is other for other in but])]:
            self.decode(one)

    def asked(self, owner: Any, key: Any) -> None:
        """Somebody reads what is at this key."""
        if (one := self.known.get((id(owner), key))) is not None:
            self.decode(one)

    def asked_all(self, owner: Any) -> None:
        """Somebody may read all that is there."""
        for one in [one for one in self.known.values() if one.owner is owner]:
            self.decode(one)

    def put(self, owner: Any, key: Any) -> None:
        """Something else is put there."""
        self.known.pop((id(owner), key), None)

    def is_text(self, owner: Any, key: Any, text: Any) -> Any:
        """Whether this is what is there, traced; None where that is known."""
        one = self.known.get((id(owner), key))
        code: Any = None if one is None or type(one.text) is MethodType else one.code
        return None if code is None else code == self.number(f".{key}", text)


def is_text(value: Any) -> bool:
    """Whether it is a text, a member of an ``Enum``, or None."""
    return value is None or type(value) is str or (isinstance(value, enum.Enum) and type(value).__hash__ is not None)


def is_in_object(value: Any, owner: Any) -> bool:
    """Whether what an object, or a container, has at a key may go on as a number: a text, or a method of the object."""
    return is_text(value) or (type(value) is MethodType and value.__self__ is owner)


def is_plain_function(value: Any) -> bool:
    """Whether it is a function of a module, which is the same in all calls."""
    known = type(value) is FunctionType and value.__closure__ is None
    return known and value.__globals__.get(value.__name__) is value
