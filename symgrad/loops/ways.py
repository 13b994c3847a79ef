"""Ways through an iteration of a loop: what iterations that decided alike tell of it, and how far that is sure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.ir import CONST, Aval, Node
from symgrad.loops.patterns import COUNTER, INT, WHOLE, Boundary, Key, Note, Part
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.engine import TO_NUMPY, TO_PYTHON
from symgrad.tracing.mixed import DIVISIONS, EXACT, MIXING, POWER, is_narrow, keeps_floats

_OPERATORS = {  # that give a Python number of Python numbers
    *MIXING,
    EXTREME,
    TO_NUMPY,  # it may stand for both, see ``_one_op``
}

# that give floats of floats, as large as the ints that they give of ints
_OF_FLOATS_TOO = {*MIXING} - {POWER, *DIVISIONS, REGISTRY[np.invert]} | {EXTREME, TO_NUMPY, TO_PYTHON}

_KEEPING = {*EXACT, EXTREME, TO_NUMPY, TO_PYTHON}  # operators that round nothing

Parts = dict[Any, Part]  # where a value may come from, by what tells these places apart
Step = tuple[Any, Any, Any, list[Parts]]


class Unclear(Exception):
    """The iterations have no pattern that is sure."""


@dataclass
class Way:
    """Iterations that decided alike: their operations, what they decided on and how, and what they left in the locals."""

    steps: list[Step]
    tests: list[tuple[Parts, bool]]
    after: dict[Key, tuple[Parts, Any]]
    nodes: Sequence[Any]  # of one of them, for their names


Taken = dict[tuple[bool, ...], Way]  # by what was decided


@dataclass
class Stretch:
    """Where iterations go from one place at which all their ways meet to the next one.

    ``there`` are the locals that change, of those that are there where it begins; ``read`` of these, what it may read before
    it assigns them; ``keys`` what it leaves behind.
    """

    pairs: list[tuple[Boundary, Boundary]]
    there: set[Key]
    read: set[Key]
    keys: set[Key]
    kinds: dict[Key, Any]  # of what it leaves behind


def unite(one: Way, other: Way) -> None:
    """Take in an iteration that went the same way."""
    if len(one.steps) != len(other.steps):
        raise Unclear
    for i, (mine, theirs) in enumerate(zip(one.steps, other.steps, strict=True)):
        kind = same_step(mine, theirs)
        if kind is None and mine[0] is theirs[0] in _OF_FLOATS_TOO and mine[1] == theirs[1]:
            kind = next(filter(is_float, (mine[2], theirs[2])), None)  # of an int that a float stands for elsewhere
        if kind is None:
            raise Unclear
        one.steps[i] = (_one_op(mine, theirs), mine[1], kind, mine[3])
        for parts, others in zip(mine[3], theirs[3], strict=True):
            narrow(parts, others)
    for (parts, _), (others, _) in zip(one.tests, other.tests, strict=True):
        narrow(parts, others)
    for key, (parts, aval) in one.after.items():
        others, theirs = other.after[key]
        narrow(parts, others)
        kind = joined_kind(aval, theirs)
        if kind is not None:
            one.after[key] = parts, kind


def bare(way: Way) -> Way:
    """A way without the values of this call."""
    steps = [(op, params, aval, [dict(parts) for parts in args]) for op, params, aval, args in way.steps]
    tests = [(dict(parts), value) for parts, value in way.tests]
    after = {key: (dict(parts), aval) for key, (parts, aval) in way.after.items()}
    return Way(steps, tests, after, [Note(node) for node in way.nodes])


def parts_of(ways: Iterable[Way]) -> list[Parts]:
    """Where all comes from that ways read, test, and leave behind."""
    every: list[Parts] = []
    for way in ways:
        every += [parts for step in way.steps for parts in step[3]]
        every += [parts for parts, _ in (*way.tests, *way.after.values())]
    return every


def read_by(ways: Iterable[Way]) -> list[Node]:
    """What there is outside of a loop that its ways read."""
    return [part[1] for parts in parts_of(ways) for part in parts.values() if part[0] == "same"]


def plain_after(
    way: Way, plain: set[Key], kinds: dict[Key, Any], mixed: Container[Node], divides: Callable[[Node], bool]
) -> set[Key]:
    """Which locals hold Python's numbers after a stretch, where NumPy's go on, if these do at its beginning; where that
    matters, nothing is sure. ``mixed`` are numbers that may be Python's; ``divides`` takes a number from outside of the loop to
    be no zero, if that is so."""
    made: list[bool] = []  # whether a step gives a Python number then
    others: list[bool] = []  # and whether NumPy's stand for what it is made of

    def is_other(part: Part) -> bool:
        kind, what = part
        return others[what] if kind == "step" else what in plain if kind == "carry" else kind != "index" and what in mixed

    def is_plain(part: Part) -> bool:
        kind, what = part
        if kind == "step":
            return made[what]
        if kind == "carry":
            return what in plain
        return kind == "index" or (isinstance(what.aval, Aval) and what.aval.kind == "python") or what in mixed

    for op, _, aval, args in way.steps:
        found = [any(map(is_plain, parts.values())) for parts in args]
        appends = op is index.SETITEM and any([kind == "carry" and what[-1] == WHOLE for kind, what in args[0].values()])
        made.append(any(found[:2]) if appends else op in _OPERATORS and all(found))  # or items of which some are Python's
        others.append(any([is_other(part) for parts in args for part in parts.values()]))
        if op not in _KEEPING and found and all(found) and isinstance(aval, Aval) and is_narrow(aval):
            raise Unclear  # Python's numbers would be computed with in double precision
        risky = made[-1] and op in _RISKY and (aval.kind != "python" or others[-1])
        if risky and not all(map(_RISKY[op], args[1].values())):
            outside = op in DIVISIONS and all([kind == "same" and what.aval.shape == () for kind, what in args[1].values()])
            if not outside or not all([divides(what) for _, what in args[1].values()]):
                raise Unclear
    ends = [(key, parts, aval) for key, (parts, aval) in way.after.items() if kinds[key].kind != "python"]
    return {key for key, parts, aval in ends if aval.kind == "python" or any(map(is_plain, parts.values()))}


def with_floats(way: Way, kinds: dict[Key, Any]) -> None:
    """Let what a way made of ints be floats, where locals of these ``kinds`` hold floats for them; where it is something else
    then, nothing is sure."""
    made: list[Any] = []  # the kinds of the steps

    def kind_of(part: Part) -> Any:
        kind, what = part
        if kind in ("step", "carry"):
            return made[what] if kind == "step" else kinds.get(what)
        return INT if kind == "index" else what.aval

    for i, (op, params, aval, args) in enumerate(way.steps):
        given = [[kind_of(part) for part in parts.values()] for parts in args]
        floats = [any(map(is_float, kinds)) for kinds in given]
        if any(floats):
            if op is index.GETITEM or (op in index.WRITING and any(floats[2:])):
                raise Unclear  # a place
            if isinstance(aval, Aval) and aval.dtype.kind in "iu" and keeps_floats(op):
                if op not in _OF_FLOATS_TOO:
                    raise Unclear
                every = [kind for kinds in given for kind in kinds if is_float(kind)]
                plain = all([getattr(kind, "kind", None) == "python" for kinds in given for kind in kinds])
                aval = every[0]._replace(kind="python" if plain else "scalar")
                way.steps[i] = op, params, aval, args
        made.append(aval)
    for key, (parts, aval) in way.after.items():
        found = [made[what] for kind, what in parts.values() if kind == "step"]
        if found and is_float(found[0]) and isinstance(aval, Aval) and aval.dtype.kind in "iu":
            way.after[key] = parts, found[0]


def appended_kinds(way: Way, key: Key, kinds: dict[Key, Any]) -> set[Any]:
    """What kinds of numbers a way appends to a list, ``key`` is that of the array beside it; None is one that is not known."""

    def kind_of(part: Part) -> Any:
        kind, what = part
        if kind == "index":
            return INT
        return way.steps[what][2] if kind == "step" else kinds.get(what) if kind == "carry" else what.aval

    every = [args[1] for op, _, _, args in way.steps if op is index.SETITEM and ("carry", key) in args[0].values()]
    return {kind_of(part) for parts in every for part in parts.values()}


def _is_count(exponent: Part) -> bool:
    """Whether it is an int of which all powers are finite, but for what is too large anyway."""
    kind, what = exponent
    return kind == "same" and what.op is CONST and what.aval == INT and dict(what.params)["value"] >= 0


def _is_divisor(divisor: Part) -> bool:
    """Whether it is a number by which Python and NumPy divide alike."""
    kind, what = divisor
    return kind == "same" and what.op is CONST and what.aval.shape == () and dict(what.params)["value"] != 0


# operators that may raise, or give another kind, of Python's numbers, unless the second argument is such
_RISKY: dict[Any, Callable[[Part], bool]] = {POWER: _is_count, **dict.fromkeys(DIVISIONS, _is_divisor)}


def same_locals(begin: Mapping[Key, Node], stretches: Sequence[Stretch], every: Sequence[Taken]) -> list[dict[Key, Key]]:
    """Of the locals at the beginning of each stretch, those that are always one value with another, and which.

    They are so in these iterations, and all ways leave them so, if they find them so; and where the run begins, of which there
    may be no iteration, they hold one of the nodes ``begin``. What is how often the loop has gone round is called that.
    """
    groups: list[list[list[Key]]] = []
    for i, stretch in enumerate(stretches):
        found: dict[Any, list[Key]] = {}
        for key in sorted(stretch.there, key=lambda key: (key != COUNTER, repr(key))):
            first = [begin[key]] if i == 0 else []
            found.setdefault((*first, *[b.nodes[key] for b, _ in stretch.pairs]), []).append(key)
        groups.append([keys for keys in found.values() if len(keys) > 1])
    while True:
        same = [{key: keys[0] for keys in parts for key in keys} for parts in groups]
        split = []
        for i, parts in enumerate(groups):
            left: dict[Any, list[Key]] = {}
            for number, keys in enumerate(parts):
                for key in keys:
                    ends = [_what(way, key, same[i - 1]) for way in every[i - 1].values()]
                    left.setdefault((number, *ends), []).append(key)
            split.append([keys for keys in left.values() if len(keys) > 1])
        if split == groups:
            return same
        groups = split


def _what(way: Way, key: Key, same: dict[Key, Key]) -> Any:
    """What a way leaves in a local, if that is sure; else what is another thing for each."""
    parts = dict(way.after[key][0]) if key in way.after else {}
    called(parts, same)
    return next(iter(parts)) if len(parts) == 1 else key


def called(parts: Parts, same: dict[Key, Key]) -> None:
    """Call locals that are one value by one name."""
    for kind, key in [part for part in parts.values() if part[0] == "carry" and part[1] in same]:
        del parts[kind, key]
        parts["carry", same[key]] = ("carry", same[key])


def every_way(taken: Iterable[Taken]) -> list[Way]:
    return [way for ways in taken for way in ways.values()]


def is_whole(ways: Iterable[tuple[bool, ...]]) -> bool:
    """Whether each decision went both ways."""
    begun = {way[:i] for way in ways for i in range(len(way) + 1)}
    return all([(*way[:-1], not way[-1]) in begun for way in begun if way])


def same_step(one: Step, other: Step) -> Any:
    """What is known of the result of a step that is the same; None where it is another one."""
    same = _one_op(one, other) is not None and one[1] == other[1] and len(one[3]) == len(other[3])
    return joined_kind(one[2], other[2]) if same else None


def united(one: Step, other: Step) -> Step:
    """A step that is the same, but for whose number its result is."""
    return _one_op(one, other), one[1], joined_kind(one[2], other[2]), one[3]


def _one_op(one: Step, other: Step) -> Any:
    """The operation of both: of a number that was Python's first, and then NumPy's, the latter; None where there is none."""
    if one[0] is other[0]:
        return one[0]
    return TO_NUMPY if {one[0], other[0]} == {TO_NUMPY, TO_PYTHON} else None


def joined_kind(one: Any, other: Any) -> Any:
    """The kind of both; of a number that was Python's first, and then NumPy's, the latter."""
    if one == other:
        return one
    numbers = isinstance(one, Aval) and isinstance(other, Aval) and one.shape == other.shape == () and one.dtype == other.dtype
    return None if not numbers else one if one.kind == "scalar" else other


def is_float(aval: Any) -> bool:
    """Whether it is a float, or a complex number."""
    return isinstance(aval, Aval) and aval.shape == () and aval.dtype.kind in "fc"


def one_kind(one: Aval, other: Aval) -> Any:
    kind = joined_kind(one, other)
    if kind is None:
        raise Unclear
    return kind


def narrow(parts: Parts, others: Parts) -> None:
    for name in parts.keys() - others.keys():
        del parts[name]
    if not parts:
        raise Unclear


def sure(parts: Parts) -> Part:
    """The one place that a value comes from."""
    part, *others = parts.values()
    if others or part[0] == "again":  # computed once more, which no step does
        raise Unclear
    return part
