"""Forks: iterations of a loop that went different ways at its ``if``s become one pattern, with the ``if``s in it.

Iterations that decided alike took the same *way*: their operations are the same, and so is where each argument comes from. Ways
that part at a decision have in common what comes before it; what comes after is the body of a loop that runs once, if the test
is true, and of another one, if it is false. Where an argument may come from several places, as far as the iterations tell,
nothing is rolled up.

Behind an ``if`` among the statements of the loop its ways meet again, and an iteration is cut there: each *stretch* has ways of
its own, whichever were taken before it, and what the locals hold goes from one to the next. So five ``if``s one after the other
have ten ways, not 32. They also meet where an iteration begins of a loop within this one that is not rolled up, over a few
objects, say, in this function or one that it calls; the locals of that one are looked at, too. Where it is not clear that a
stretch finds all that it needs in the locals, iterations are left whole.

Ways that earlier calls took through the same loop are there, too, and so are those of other runs of the statement: a loop in a
loop runs often, and only runs that have all ways are alike, so that the loop around can be rolled up. What another run read is
what the same local holds here; where an iteration of that run may have computed it all the same (``x[0]``, which a local held
there, too), both are kept, until an iteration of this run tells which it is. Where a decision still went one way only, a flag
goes round that tells whether an iteration went the other one; such a call is traced.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node, ancestors, by_index, content_of
from symgrad.loops.again import restored, stored, told
from symgrad.loops.branches import Builder, Spans, Steps, may_go_on, outside
from symgrad.loops.patterns import (
    BOOL,
    COUNTER,
    EXIT,
    INT,
    LEAVES,
    OF_LOOPS,
    TAKEN,
    TEST,
    TRACED,
    UNSEEN,
    WHOLE,
    Boundary,
    Key,
    Names,
    Part,
    Pattern,
    iterations,
    noted,
    number_name,
    same_number,
)
from symgrad.loops.recall import Recall
from symgrad.loops.ways import (
    Parts,
    Step,
    Stretch,
    Taken,
    Unclear,
    Way,
    appended_kinds,
    bare,
    called,
    every_way,
    is_float,
    is_whole,
    joined_kind,
    one_kind,
    parts_of,
    plain_after,
    read_by,
    same_locals,
    unite,
    with_floats,
)
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import AND, IDENTITY, INDEX, ITEM, NAMED, NOT
from symgrad.ops.spans import Span
from symgrad.tracing.frames import user_line
from symgrad.tracing.trace import Guard, Named, Trace, loop_number
from symgrad.tracing.tracer import Tracer
from symgrad.transform.loop import Loop

MOST = 16  # ways through a stretch
_EQUAL: Any = REGISTRY[np.equal]
DEEPEST = 24  # decisions of a stretch: each is one more ``if`` within another


class Ways(NamedTuple):
    """The ways that calls have taken through a loop from iteration ``first`` on, and what the locals held there.

    ``sites`` are the statements behind which all ways meet, and ``moving`` the locals that change, by stretch of an iteration
    up to one of these, as are the ways ``taken``; ``fixed`` is what they looked at that no iteration changes, and saw,
    ``plain`` of that what hangs on no argument, and its value; ``left`` are the locals that no iteration assigned; ``alike``
    are pairs of them that were one array, by place, ``parted`` those that were so at times, and ``written`` those whose arrays
    were changed in place; ``rebound`` are those that an iteration let be another one, ``replaced`` places of lists, dicts and
    objects of which it did; ``turned`` are the iterations of loops within it that each began, if that is always the same;
    ``items`` says at which places, by site and key, there were arrays that had been appended to lists, and at which ones some
    that were changed in place later; ``views`` are the locals that iterations left as views, and those that they showed;
    ``rests`` what those locals hold that are not traced, behind each of the ``sites`` and in the end; ``mixed`` are those that
    iterations left mixed, and what had mixed them; ``again`` are the indices of those of ``nodes`` that they made once more.
    """

    first: int
    fixed: dict[Node, tuple[Any, Any]]
    plain: dict[Node, Any]
    nodes: dict[Key, Node]
    rest: dict[str, Any]
    sites: tuple[Any, ...]
    moving: list[set[Key]]
    left: set[Key]
    taken: list[Taken]
    arrays: dict[Node, Any]  # that they read
    alike: set[tuple[Any, frozenset[Key]]]
    parted: set[frozenset[Key]]
    written: set[Key]
    rebound: set[Key]
    replaced: set[Key]
    turned: Any
    items: tuple[frozenset[Any], frozenset[Any]]
    views: frozenset[tuple[Key, Key]]
    rests: list[dict[str, Any]]
    mixed: dict[Key, frozenset[Any]]
    most: int  # operations that an iteration asked for
    again: frozenset[int]
    wanted: tuple[list[Key], list[Key]] | None  # the locals that went round in the loop, and those that it left behind

    def begins_as(self, bound: Boundary) -> bool:
        """Whether a loop that begins here finds locals of the same names, and the same in those that are not traced."""
        return self.nodes.keys() == bound.nodes.keys() and self.rest == bound.rest

    def many(self) -> int:
        """How many ways there are."""
        return len(every_way(self.taken))

    def held(self, seen: set[int]) -> Iterator[Node]:
        """The nodes that it holds, each as often as what is not ``seen`` yet (ids), and is then, does."""
        pairs = [pair for parts in parts_of(every_way(self.taken)) for pair in parts.items()]
        parts = [part for pair in pairs for part in pair if part[0] == "same"]
        yield from noted(self.nodes, [self.fixed, self.plain, self.arrays], parts, seen)


def how_many(loops: Mapping[Any, Sequence[Any]]) -> int:
    """How many ways are known through all these loops, by their statements."""
    every = [known for place, known in loops.items() if place[0] == math.inf]
    return sum([max([ways.many() for ways in known if isinstance(ways, Ways)], default=0) for known in every])


class Fork(NamedTuple):
    """A pattern with decisions in it, what was decided on, and what is known of the locals that go round."""

    pattern: Pattern | None  # None where, in a section, it is not clear yet
    together: Pattern | None  # for all iterations at once: only those write into arrays that do; None if that is the pattern
    decided: set[Node]
    fixed: dict[Node, tuple[Any, Any]]  # what was looked at that no iteration changes: what was seen, and where
    kinds: dict[Key, Any]
    anew: set[Node]  # arrays that iterations made for themselves
    ways: Ways  # for later calls
    several: bool  # whether there is more than one
    plain: dict[
        Key, frozenset[Any]
    ]  # locals that NumPy's numbers go on in, and Python's may be left in; what mixed them before
    python: set[Key]  # of the arrays beside lists, those that have Python's numbers alone
    unlike: set[Key]  # and those that may have ints or flags
    coarse: bool  # whether there are floats in place of such


def fork(
    trace: Trace,
    bounds: Sequence[Boundary],
    first: int,
    names: Names,
    put: set[Node],
    sites: Sequence[Any],
    known: Ways | None,
    serial: int,
    other: bool,
    apart: set[Any] | None,
) -> Fork | None:
    """The pattern of the iterations between ``bounds``, of which the first is number ``first``; None where there is none.

    ``put`` are numbers that iterations put into locals; ``sites`` are statements behind which all ways meet again; ``known`` is
    what earlier calls did that came to the loop with this ``serial`` number by the same decisions, or, if it is an ``other``
    run's of the same statement, in this call or an earlier one. In a section, ``apart`` gets the statements behind which both
    have found something else that is not traced.
    """
    bounds = [bounds[0].without(names.unread), *bounds[1:]]
    if known is not None and not known.begins_as(bounds[0]):
        return None
    try:
        return _Reader(trace, bounds, names, put, sites, serial, apart).pattern(first, known, other)
    except Unclear:
        return None


def meeting(trace: Trace, bounds: Sequence[Boundary]) -> tuple[Any, ...]:
    """The statements behind which all ways through the iterations between ``bounds`` meet again, where some part; but for those
    behind which locals that are not traced tell which way was taken (``row = table[state]``)."""
    found: list[Any] = []
    before = [b for b, _ in iterations(bounds)]
    every = [bound.joins for bound in before]
    alike = _turned(bounds) is not None
    for site in every[0]:
        if all([site in joins for joins in every]) and (alike or not _is_inner(site)):
            here, dead = [joins[site].bound for joins in every], every[0][site].dead
            some = any([_decides(trace, b, c) for b, c in zip(before, here, strict=True)])
            if some and _untold(here, dead) is not None:
                found.append(site)
                before = here
    return tuple(found)


def _untold(ends: Sequence[Boundary], dead: Collection[str]) -> dict[str, Any] | None:
    """What is not traced where ways meet, but for what is in ``dead`` locals; None if it tells them apart."""
    first, *others = [{name: what for name, what in end.rest.items() if name not in dead} for end in ends]
    return first if all([other == first for other in others]) else None


def _is_inner(site: Any) -> bool:
    """Whether ways meet there in a loop within the loop."""
    return type(site) is tuple


def _turned(bounds: Sequence[Boundary]) -> Any:
    """The iterations of loops within each of these iterations that began, and how often such a loop would run; None where they
    differ, or that is not known: what is left to do, where one begins, hangs on more than the locals hold."""
    every = [tuple(b.turned) for b, _ in iterations(bounds)]
    first, *others = every or [()]
    return first if all([other == first for other in others]) else None


def _decides(trace: Trace, b: Boundary, c: Boundary) -> bool:
    looks: list[Any] = [*trace.guards[b.guards : c.guards], *trace.peeks[b.peeks : c.peeks]]
    return any([look.value is True or look.value is False for look in looks if look.node is not b.nodes.get(TEST)])


class _Reader:
    def __init__(
        self,
        trace: Trace,
        bounds: Sequence[Boundary],
        names: Names,
        put: set[Node],
        sites: Sequence[Any],
        serial: int,
        apart: set[Any] | None,
    ) -> None:
        self.trace, self.bounds, self.names, self.apart = trace, bounds, names, apart
        self.pairs = iterations(bounds)
        self.begins = [b for b, _ in self.pairs]
        self.section = apart is not None
        self.put, self.sites, self.serial = put, tuple(sites), serial
        keys = set(bounds[0].nodes).intersection(*(bound.nodes for bound in bounds[1:]))
        late = set(bounds[-1].nodes).intersection(*(bound.nodes for bound in bounds[1:])) - keys
        if any([type(key[-1]) is int and key[-1] < 0 for key in late]):
            raise Unclear  # an iteration may read more of a list than there is in the first one
        pairs = iterations(bounds[1:])  # some iterations assign it, and nobody reads it
        late -= {key for key in late if self._is_unread(key) and self._may_be_left(key, pairs)}
        views = {key for key in keys if any([bound.holds[key].base is not None for bound in bounds])}
        keys -= {key for key in views if key[0] in self.names.targets and self._is_unread(key)}
        self.moving = self._moving(keys)
        if self.section:  # there is no other iteration that might tell
            self.moving |= {key for key in keys if key[0] in names.stored and isinstance(bounds[0].nodes[key].aval, Aval)}
        self.keys = self.moving | late
        if not {name for bound in bounds[1:] for name in bound.rest} <= bounds[0].rest.keys() | names.targets:
            raise Unclear  # an iteration may read what none has left there
        self.unread: set[Any] = set()
        for key in {key for bound in bounds for key in bound.nodes} - keys - late:
            self._leave(key)
        self.anew: set[Node] = set()
        self.first: dict[Any, Node] = {}  # of arrays that iterations make, the first of each content
        self.fresh: set[Node] = set()  # what moves in this call, and did not in earlier ones
        self.made: set[Node] = set()  # by iterations, of what moves
        self.again: set[int] = set()  # what the iteration that is read has computed once more, by index
        self.again_before: set[int] = set()  # and what those did, of what locals held, whose ways are known
        self.decided: set[Node] = set()
        self.blanks: dict[Node, Aval] = {}  # arrays that no iteration reads
        self.named: dict[int, tuple[Boundary, dict[int, list[Key]]]] = {}  # see ``_names_of``
        self.rests: list[dict[str, Any]] = []
        self.fixed: dict[Node, tuple[Any, Any]] = {}
        self.plain: dict[Node, Any] = {}
        nodes = trace.graph.nodes
        self.before = trace.index_before(bounds[0].length)
        self.floor = nodes[bounds[0].length].index if bounds[0].length < len(nodes) else math.inf
        self.met = set(trace.met[bounds[0].met : bounds[-1].met])  # what iterations have computed once more, by index
        self.alike: set[tuple[Any, frozenset[Key]]] = set()  # pairs of locals that were one array, by place
        self.parted: set[frozenset[Key]] = set()
        self.written: set[Key] = set()
        self.rebound = {key for b, c in self.pairs for key in b.holds if c.holds.get(key) is not b.holds[key]}
        every = [one for bound in bounds for one in bound.every()]
        changed = [{key for key, ident in b.shared.items() if c.shared.get(key) != ident} for b, c in itertools.pairwise(every)]
        self.replaced = set[Key]().union(*changed)
        self.changes = any(
            [type(owner) not in (Tracer, np.ndarray) for owner in trace.writes[bounds[0].writes : bounds[-1].writes]]
        )
        self._look_for_names(None, bounds, self.names.unread)
        self.turned = _turned(bounds)
        if self.turned is None and len(bounds) > 1 and any(map(_is_inner, self.sites)):
            raise Unclear
        for site in self.sites:
            if any([site not in bound.joins for bound in self.begins]):
                raise Unclear
            joins = [bound.joins[site] for bound in self.begins]
            if joins:
                self._look_for_names(site, [join.bound for join in joins], joins[0].dead)

    def _may_be_left(self, key: Key, pairs: Sequence[tuple[Boundary, Boundary]]) -> bool:
        """Whether some iterations leave a local as it is, here or in other runs."""
        aval = self.bounds[-1].nodes[key].aval
        return any([c.nodes[key] is b.nodes[key] for b, c in pairs]) or (isinstance(aval, Aval) and aval.dtype.kind in "fc")

    def _moving(self, keys: set[Key]) -> set[Key]:
        """The locals that change; and those that get a value which other calls may find changed."""
        begin, later = self.bounds[0], self.bounds[1:]
        found = {key for key in keys if any([bound.nodes[key] is not begin.nodes[key] for bound in later])}
        values = {id(bound.holds[key]) for bound in self.bounds for key in found}
        given = {key for key in keys - found if any([bound.holds[key] is not begin.holds[key] for bound in later])}
        same = {key for key in keys - found if id(begin.holds[key]) in values}
        given |= {key for key in same if key[0] in self.names.stored or len(key) > 1}
        change = {bound.nodes[key] for bound in self.bounds for key in found}
        floor = min([node.index for node in (*change, *self.put)], default=0)
        hangs = change | self.put
        for node in ancestors([begin.nodes[key] for key in given], floor):
            if any([arg in hangs for arg in node.args]):
                hangs.add(node)
        return found | {key for key in given if begin.nodes[key] in hangs}

    def _look_for_names(self, place: Any, bounds: Sequence[Boundary], dead: Collection[str]) -> None:
        """Note which locals, but for those that nobody reads any more, are one array, or list, at a place between iterations,
        or in them, and whether they always are; and which have been changed in place."""
        together: Counter[frozenset[Key]] = Counter()
        for bound in bounds:
            owners: dict[int, list[Key]] = {}
            named: dict[Named, list[Key]] = {}  # of what is one array for the function, and two here
            for key, ident in bound.shared.items():
                if key[0] not in dead:
                    owners.setdefault(ident, []).append(key)
                    if self.changes:
                        self.written.add(key)
            for key, tracer in bound.holds.items():
                if type(tracer.like) is np.ndarray and key[0] not in dead:
                    owner = tracer.owner()
                    owners.setdefault(id(owner), []).append(key)
                    for mark in owner.parted:
                        if type(mark) is Named:
                            named.setdefault(mark, []).append(key)
                    if owner.written > self.before:
                        self.written.add(key)
            self.parted |= {frozenset(pair) for keys in named.values() for pair in itertools.combinations(keys, 2)}
            together.update([frozenset(pair) for keys in owners.values() for pair in itertools.combinations(keys, 2)])
        self.alike |= {(place, pair) for pair in together}
        there = [bound.holds.keys() | bound.shared.keys() for bound in bounds]
        self.parted |= {pair for pair, often in together.items() if often < sum([pair <= keys for keys in there])}

    def pattern(self, first: int, known: Ways | None, other: bool) -> Fork:
        """The pattern of these iterations, from number ``first`` on, and of the ``known`` ways, which an ``other`` run took."""
        self.other = other
        if known is not None:
            self._begin_as(known, first)
        if any([not pair.isdisjoint(self.written) for pair in self.parted]):
            raise Unclear  # what is written into one of them is in both, or not
        begun = {bound.nodes[key] for bound in self.bounds for key in self.moving}
        nodes, start = self.trace.graph.nodes, self.bounds[0].length
        places = [bisect.bisect_left(nodes, number, hi=start, key=by_index) for number in sorted(self.met)]
        again = [nodes[place] for place in places if place < start and nodes[place].index in self.met]
        self._make([*again, *nodes[start : self.bounds[-1].length]], begun)
        stretches = self._cut(begun, known)
        every: list[Taken] = [{} for _ in stretches] if known is None else self._recall(known, stretches)
        for b, c in self.pairs:
            self._check(b, c)
            self._make(self.trace.graph.nodes[b.length : c.length], begun | ({b.at} if b.at is not None else set()))
        for stretch, ways in zip(stretches, every, strict=True):
            self._learn(stretch, ways)
        if any([node in self.made or node in begun for node in self.fixed]):
            raise Unclear
        for stretch, ways in zip(stretches, every, strict=True):
            for key, (_, aval) in [pair for way in ways.values() for pair in way.after.items()]:
                stretch.kinds[key] = joined_kind(stretch.kinds[key], aval) or stretch.kinds[key]
        kinds = stretches[-1].kinds
        mixed, begin = self.trace.mixed, self.bounds[0].nodes
        plain = {key for key in self.moving if begin[key].aval.kind == "python" != kinds[key].kind or begin[key] in mixed}
        before = None
        while plain != before:
            before = plain
            for stretch, ways in zip(stretches, every, strict=True):
                plain = set().union(*[plain_after(way, plain, stretch.kinds, mixed, self._divides) for way in ways.values()])
            if self.section:  # it runs once
                break
            plain |= before
        lists = {key for key in self.keys if key[-1] == WHOLE}
        taken = [way for ways in every for way in ways.values()]
        put = {key: set[Any]().union(*[appended_kinds(way, key, kinds) for way in taken]) for key in lists}
        python = {key for key in lists if None not in put[key] and all([aval.kind == "python" for aval in put[key]])}
        unlike = {key for key in lists if not put[key].isdisjoint((INT, BOOL))}
        plain -= python
        coarse = self._are_ints_floats(stretches, every)
        if coarse:
            plain |= {key for key in self.moving if is_float(kinds[key]) and kinds[key].kind == "python"}
            unlike |= {key for key in lists if any(map(is_float, put[key]))}
        kept = self._kept(first, stretches, every, known)
        causes = {key: mixed[begin[key]].causes if begin.get(key) in mixed else frozenset() for key in plain} | kept.mixed
        several = any([len(ways) > 1 for ways in every])
        if self.section:
            self._settle_first(every[0])
        if coarse:
            self._let_floats_be(stretches, every)
        try:
            written = self._written(stretches, every)
        except Unclear:
            if not self.section:
                raise
            written = None, None, kinds  # other calls may tell more
        return Fork(
            *written[:2],
            self.decided,
            self.fixed,
            written[2],
            self.anew,
            kept,
            several,
            causes,
            python,
            unlike,
            coarse or bool(unlike),
        )

    def _divides(self, divisor: Node) -> bool:
        """Whether a number is no zero, by which Python and NumPy divide alike; other calls look at that."""
        if divisor.aval.dtype.kind not in "iuf" or not self.trace.computed(divisor):
            return False
        is_zero = self.trace.run(_EQUAL, (self.trace.lookup(divisor), 0.0), {})
        if is_zero.active:
            self.fixed[is_zero] = False, user_line()
        return True

    def _are_ints_floats(self, stretches: list[Stretch], every: list[Taken]) -> bool:
        """Whether floats go round in place of ints, or flags, that a local holds at first, or after some ways."""
        begin = self.bounds[0].nodes
        pairs = [(begin[key].aval, stretches[-1].kinds[key]) for key in self.moving]
        for stretch, ways in zip(stretches, every, strict=True):
            pairs += [(aval, stretch.kinds[key]) for way in ways.values() for key, (_, aval) in way.after.items()]
        return any([is_float(kind) and aval in (INT, BOOL) for aval, kind in pairs])

    def _let_floats_be(self, stretches: list[Stretch], every: list[Taken]) -> None:
        """What ways made of ints is made of the floats that go round for them."""
        kinds = stretches[-1].kinds
        for stretch, ways in zip(stretches, every, strict=True):
            for way in ways.values():
                with_floats(way, kinds)
            kinds = stretch.kinds

    def _settle_first(self, ways: Taken) -> None:
        """In the first stretch of a section it is all one whether a value is read from a local or from elsewhere: whatever is
        decided in it, that is the same before it."""
        for parts in parts_of(ways.values()):
            found = [self.bounds[0].nodes[what] if kind == "carry" else what for kind, what in parts.values()]
            if len(parts) > 1 and len({*found}) == 1 and all([kind in ("carry", "same") for kind, _ in parts.values()]):
                for name in [*parts][1:]:
                    del parts[name]

    def _written(self, stretches: list[Stretch], every: list[Taken]) -> tuple[Pattern | None, Pattern | None, dict[Key, Any]]:
        """These ways as one pattern, stretch by stretch, and as ``Fork.together``; what is known of the locals it carries."""
        for names, ways in zip(same_locals(self.bounds[0].nodes, stretches, every), every, strict=True):
            for parts in parts_of(ways.values()):
                called(parts, names)
        kinds, whole = stretches[-1].kinds, [is_whole(ways) for ways in every]
        if not all(whole):
            kinds = {**kinds, UNSEEN: BOOL}
        what, outside = told(stretches, every)
        known = what, frozenset(self.moving), self._span(None)
        if known not in self.trace.patterns:
            spans, patterns = Spans(self._span), list[Pattern]()
            patterns.append(self._built(stretches, every, kinds, whole, spans))
            if spans.used:
                patterns.append(self._built(stretches, every, kinds, whole, Spans(lambda index: None)))
            self.trace.patterns[known] = [stored(pattern, outside, self.blanks) for pattern in patterns]
        else:
            patterns = [restored(pattern, outside, self.trace, self._blank) for pattern in self.trace.patterns[known]]
        return patterns[0], patterns[1] if len(patterns) > 1 else None, kinds

    def _built(
        self, stretches: list[Stretch], every: list[Taken], kinds: dict[Key, Any], whole: list[bool], spans: Spans
    ) -> Pattern:
        """The pattern; all ways of which stretches are ``whole`` are known."""
        steps = Steps(self.trace, kinds)
        there: dict[Key, Part] = {key: ("carry", key) for key in kinds}
        begin = {key: kinds[key] for key in self.moving | ({UNSEEN} & kinds.keys())}
        for i, (stretch, ways) in enumerate(zip(stretches, every, strict=True)):
            if not all(whole[:i]) and any([may_go_on(step[0]) for way in ways.values() for step in way.steps]):
                raise Unclear  # for ever, in an iteration that has gone no way
            end = stretch.kinds
            if not whole[i]:
                end = {**end, UNSEEN: BOOL}
                for way in ways.values():
                    way.after[UNSEEN] = {UNSEEN: ("carry", UNSEEN)}, BOOL
            outer = functools.partial(outside, there)
            left = Builder(end, begin, self._blank, spans).grow(steps, [ways[key] for key in sorted(ways)], 0, {}, outer)
            unseen = {UNSEEN: there[UNSEEN]} if UNSEEN in there else {}
            there, begin = {**unseen, **left}, {**end, **dict.fromkeys(unseen, BOOL)}
        if TEST in there and not all(whole[:-1]):  # it ends there
            seen = steps.add(NOT, [there[UNSEEN]], (), BOOL, None)
            both = AND if kinds[TEST].kind == "python" else REGISTRY[np.logical_and]
            there[TEST] = steps.add(both, [there[TEST], seen], (), kinds[TEST], None)
        return Pattern(steps.steps, there, steps.notes)

    def _cut(self, begun: set[Node], known: Ways | None) -> list[Stretch]:
        """The stretches between the places where all ways meet."""
        begins, found = self.begins, []
        there = self.moving - {TEST, EXIT}
        read = {key for key in there if key[0] not in self.names.targets}
        if not begins:  # in a run of no iteration, as many as others had
            assert known is not None
            for keys, ways in zip(known.moving[: len(self.sites)], known.taken, strict=False):
                found.append(Stretch([], there, read, keys, {key: _left_in(ways, key) for key in keys}))
                there = read = keys
            self.rests = known.rests
            return [*found, Stretch([], there, read, self.keys, self._kinds(known))]
        for i, site in enumerate(self.sites):
            joins = [bound.joins[site] for bound in self.begins]
            ends, dead = [join.bound for join in joins], joins[0].dead
            common = set(ends[0].nodes).intersection(*(end.nodes for end in ends))
            if any([key not in common and key[0] not in dead for end in ends for key in end.nodes]):
                raise Unclear  # it is there at times, and may be read
            untold = _untold(ends, dead)
            if untold is None:
                raise Unclear
            self.rests.append(untold)
            for end in ends:
                self._check_views(end, dead)
            live = {key for key in common if key[0] not in dead}
            live |= {key for key in common - live if all(map(functools.partial(_is_put, key), self.begins, ends))}
            keys = {key for key in live if self._moves([end.nodes[key] for end in ends], begun)}
            if self.section:
                keys |= {key for key in live if key in self.moving or _is_put(key, self.bounds[0], ends[0])}
            keys -= {key for key in keys if self._tells_place([end.nodes[key] for end in ends], begun)}
            if known is not None:
                if not known.moving[i] <= live:
                    raise Unclear
                keys |= known.moving[i]
            runs = [*zip(begins, ends, strict=True)]
            read |= self._handed_on(runs, there - read, keys)
            found.append(Stretch(runs, there, read, keys, self._kinds_at(ends, keys)))
            begins, there, read = ends, keys, {key for key in keys if key[0] not in joins[0].unused}
        runs = [*zip(begins, [c for _, c in self.pairs], strict=True)]
        read |= self._handed_on(runs, there - read, self.keys)
        found.append(Stretch(runs, there, read, self.keys, self._kinds(known)))
        dead = self.names.unread
        self.rests.append({name: what for name, what in self.bounds[-1].rest.items() if name not in dead})
        if known is not None and known.rests != self.rests:  # which tells which way was taken
            pairs = zip(self.sites, known.rests, self.rests, strict=False)
            if self.apart is not None:
                self.apart.update([site for site, theirs, mine in pairs if theirs != mine])
            raise Unclear
        return found

    def _handed_on(self, pairs: Sequence[tuple[Boundary, Boundary]], there: set[Key], keys: set[Key]) -> set[Key]:
        """Which locals that no statement reads go into a loop within this one, which may leave them as they are."""
        trace, found = self.trace, set[Key]()
        for b, c in pairs if there else ():
            made = {*trace.graph.nodes[b.length : c.length]}
            again = {*trace.met[b.met : c.met]}
            waiting = [c.nodes[key] for key in keys & c.nodes.keys()]
            seen: set[Node] = set()
            while waiting:
                node = waiting.pop()
                if node not in seen and (node in made or node.index in again):
                    seen.add(node)
                    waiting += node.args
            begun = {arg for node in seen if isinstance(node.op, Loop) or node.op is NAMED for arg in node.args}
            found |= {key for key in there if b.nodes[key] in begun}
        return found

    def _moves(self, nodes: Sequence[Node], begun: set[Node]) -> bool:
        """Whether a local that holds these where iterations meet hangs on what goes round."""
        return any([node is not nodes[0] or node in self.made or node in begun for node in nodes])

    def _tells_place(self, nodes: Sequence[Node], begun: set[Node]) -> bool:
        """Whether it is a number that the index of a loop within this one tells, and the same in all iterations."""
        if not all([self._is_of_places(node, begun) for node in nodes]):
            return False
        return all([same_number(node, nodes[0]) or self._is_one_number(node, nodes[0]) for node in nodes])

    def _is_one_number(self, a: Node, b: Node) -> bool:
        return a.aval == b.aval and a.aval in (INT, BOOL) and self.trace.computed(a) == self.trace.computed(b)

    def _check_views(self, end: Boundary, dead: Collection[str]) -> None:
        """What a local shows of an array that is written into, other ways may have made a view of another one."""
        owners: dict[int, set[Key]] = {}
        for key, tracer in end.holds.items():
            if tracer.base is not None or type(tracer.like) is np.ndarray:
                owners.setdefault(id(tracer.owner()), set()).add(key)
        for key, tracer in end.holds.items():
            if tracer.base is not None and key[0] not in dead:
                owner = tracer.owner()
                if owner.written > self.before or not owners[id(owner)].isdisjoint(self.written):
                    raise Unclear

    def _kinds_at(self, ends: Sequence[Boundary], keys: set[Key]) -> dict[Key, Any]:
        """What is known of each local where ways meet."""
        kinds: dict[Key, Any] = {}
        for key in keys:
            nodes = [end.nodes[key] for end in ends]
            made = [node.aval for node in nodes if node.op not in (INDEX, CONST)] or [nodes[0].aval]
            if not all([isinstance(node.aval, Aval) for node in nodes]):
                raise Unclear
            kinds[key] = functools.reduce(one_kind, made)
        return kinds

    def _learn(self, stretch: Stretch, ways: Taken) -> None:
        """Take in what these iterations did in a stretch."""
        twins: dict[tuple[bool, ...], list[tuple[Way, Boundary, Boundary]]] = {}  # iterations that tell less than others
        doubtful: list[tuple[Way, tuple[bool, ...], Boundary, Boundary]] = []  # those that may have asked less often
        for b, c in stretch.pairs:
            way = self._read(stretch, b, c)
            taken = tuple([value for _, value in way.tests])
            if self._has_twins(stretch, b) or _is_vague(way):
                twins.setdefault(taken, []).append((way, b, c))
            elif taken not in ways and self._has_one_number_twice(stretch, b):
                doubtful.append((way, taken, b, c))
            else:
                _take_in(ways, taken, way)
            if len(ways.keys() | twins.keys()) > MOST:
                raise Unclear
        for way, taken, b, c in doubtful:
            if taken in ways or not any([self._is_told_by(other, way, b, c) for other in ways.values()]):
                _take_in(ways, taken, way)
        if len(ways.keys() | twins.keys()) > MOST:
            raise Unclear
        for taken, alike in twins.items():
            if taken in ways:
                if not all([self._is_told_by(ways[taken], way, b, c) for way, b, c in alike]):
                    raise Unclear
            else:
                ways[taken] = alike[0][0]
                for way, _, _ in alike[1:]:
                    unite(ways[taken], way)

    def _blank(self, kind: Aval) -> Node:
        """An array that no iteration reads."""
        if not kind.shape:
            raise Unclear
        node: Node = self.trace.constant_like(0.0, kind).node
        self.blanks[node] = kind
        return node

    def _span(self, index: Node | None) -> Span | None:
        """How far the index of a loop goes: of this one (or how often it has gone round, where it may end early), or one around
        it."""
        if index is None and COUNTER not in self.moving:
            values = [dict(bound.at.params)["value"] for bound in self.begins if bound.at is not None]
            return (min(values), max(values)) if values and len(values) == len(self.begins) else None
        if index is not None and index.op is not INDEX:
            return None
        number = self.serial if index is None else dict(index.params)["loop"]
        what = next((roller.what for roller in self.trace.rollers if roller.serial == number), None)
        if what is None:
            return None
        ends = what.start, what.start + what.step * (what.length - 1)
        return min(ends), max(ends)

    def _kept(self, first: int, stretches: list[Stretch], ways: list[Taken], before: Ways | None) -> Ways:
        """What later calls may know of these ways, and of those ``before``."""
        begin, taken = self.bounds[0], [{key: bare(way) for key, way in one.items() if self._tells(way)} for one in ways]
        outside = ancestors([*read_by(every_way(taken)), *self.fixed, *self.plain])
        anew = [part[1] for parts in parts_of(every_way(taken)) for part in parts.values() if part[0] == "anew"]
        every = self.trace.graph.arrays
        arrays = {node: every[node] for node in outside if node.op is CAPTURED} | {node: every[node].copy("K") for node in anew}
        later = [one for bound in self.bounds for one in bound.every()]
        left = {key for key in begin.nodes if all([self._is_left(key, begin, bound) for bound in later])}
        moving = [*[stretch.keys for stretch in stretches[:-1]], self.moving]
        known = self.fixed, self.plain, begin.nodes, begin.rest, self.sites, moving, left, taken, arrays
        left &= left if before is None else before.left
        most = max([c.length - b.length + c.met - b.met for b, c in self.pairs], default=0)
        most = max(most, 0 if before is None else before.most)
        others = self.alike, self.parted, self.written, self.rebound, self.replaced, self.turned
        mixed = {} if before is None else {**before.mixed}
        for key in self.moving if self.trace.mixed else ():
            found = [self.trace.mixed.get(bound.nodes.get(key)) for bound in later]  # type: ignore[arg-type]
            for one in [one for one in found if one is not None]:
                mixed[key] = mixed.get(key, frozenset()) | one.causes
        items = (frozenset[Any](), frozenset[Any]()) if before is None else before.items
        views = frozenset[tuple[Key, Key]]() if before is None else before.views
        again = {node.index for node in begin.nodes.values() if node.index in self.met} | self.again_before
        return Ways(first, *known, *others, items, views, self.rests, mixed, most, frozenset(again), None)

    def _tells(self, way: Way) -> bool:
        """Whether later calls may know of it; in a section, some are to tell what this one does not."""
        return not (self.section and _is_vague(way))

    def _begin_as(self, known: Ways, first: int) -> None:
        """Begin, at iteration ``first``, as earlier calls did, or other runs, if this one does."""
        begin, moving = self.bounds[0], known.moving[-1]
        elsewhere = self.other or (first, known.first) != (0, 0)
        most = known.most if elsewhere else None
        self.recall = recall = Recall(
            self.trace, known.nodes, begin.nodes, known.arrays, most, known.again, self.names.apart, moving
        )
        self.again_before = {begin.nodes[key].index for key, node in known.nodes.items() if node.index in known.again}
        if any([key not in bound.nodes for bound in self.bounds for key in moving]):
            raise Unclear
        for node, seen in known.fixed.items():
            here = recall.only(node)
            if self.trace.computed(here) != seen[0]:
                raise Unclear
            self.fixed[here] = seen
        for node, value in known.plain.items():
            here = recall.only(node)
            if elsewhere and not np.array_equal(self.trace.computed(here), value):
                raise Unclear
            self.plain[here] = value
        if not self.moving - moving <= known.left:
            raise Unclear
        if elsewhere:  # what was put in place of the same may be something else here
            for key in known.nodes.keys() - known.left - moving:
                put = key[0] in self.names.stored or any([key[:i] in known.written for i in range(1, len(key))])
                if put and not self._is_unread(key) and recall.without(known.nodes[key]) is not begin.nodes[key]:
                    raise Unclear
        self.parted |= known.parted | {pair for _, pair in self.alike ^ known.alike}
        self.written |= known.written
        self.rebound |= known.rebound
        self.replaced |= known.replaced
        self.turned = self.turned if len(self.bounds) > 1 else known.turned
        if any(map(_is_inner, self.sites)) and (known.turned is None or self.turned != known.turned):
            raise Unclear
        self.alike |= known.alike
        self.fresh = {begin.nodes[key] for key in self.moving - moving}
        self.moving |= moving
        self.keys |= moving
        after = [way.after.keys() for way in known.taken[-1].values()]
        if len(self.bounds) == 1:  # what each iteration leaves behind, and nobody reads
            self.keys |= {key for key in set[Key]().union(*after) - begin.nodes.keys() if self._is_unread(key)}
        for key in self.keys.union(*after) - begin.nodes.keys():
            if key not in self.keys or any([key not in left for left in after]):
                self._leave(key)
                self.keys.discard(key)

    def _recall(self, known: Ways, stretches: list[Stretch]) -> list[Taken]:
        """What earlier calls did, of what there is in this one."""
        begin = self.bounds[0]
        for stretch, moving in zip(stretches[:-1], known.moving, strict=False):
            if not stretch.keys - moving <= known.left:
                raise Unclear
            self.fresh |= {begin.nodes[key] for key in stretch.keys - moving}
        found = [
            {key: self._recalled(way, stretch, known.arrays) for key, way in ways.items()}
            for stretch, ways in zip(stretches, known.taken, strict=True)
        ]
        self._check_fresh(self.fresh, every_way(found))
        return found

    def _check_fresh(self, fresh: set[Node], ways: list[Way]) -> None:
        """What did not move in earlier calls was taken for one and the same there: nothing may have been made of it."""
        hang = set(fresh)
        for node in self.trace.graph.nodes if fresh else ():
            if any([arg in hang for arg in node.args]):
                hang.add(node)
        numbers = {number_name(node) for node in fresh if node.op in (INDEX, CONST)}
        names = {name for parts in parts_of(ways) for name in parts}
        if not hang.isdisjoint([*read_by(ways), *self.fixed, *self.plain]) or not numbers.isdisjoint(names):
            raise Unclear

    def _leave(self, key: Key) -> None:
        """Nobody reads what only some iterations leave behind: nobody may."""
        if not self._is_unread(key):
            raise Unclear
        self.unread.add(key[0])

    def _is_unread(self, key: Key) -> bool:
        plain = any([bound.rest.get(key[0], TRACED) != TRACED for bound in self.bounds])
        plain = plain and key[0] not in self.names.targets  # it may be read yet
        return key[0] in self.names.private and len(key) == 1 and not plain

    def _recalled(self, way: Way, stretch: Stretch, arrays: dict[Node, Any]) -> Way:
        """A way that an earlier call took, or another run."""
        recall = self.recall

        def here(parts: Parts) -> Parts:
            found: Parts = {}
            for name, part in parts.items():
                if part[0] == "same":
                    for node in recall.every(part[1]):
                        if self.other and not recall.may_be(part[1], node):
                            raise Unclear
                        found[name if node.op is CONST else ("same", node)] = ("same", node)
                elif part[0] == "anew":  # there is none of this call's own
                    if name not in self.first:
                        self.first[name] = self.trace.constant(self.trace.once(arrays[part[1]].copy("K")))[0]
                    found[name] = "anew", self.first[name]
                elif part[0] == "value" and recall.is_number_of_its_own(part[1]):
                    raise Unclear  # that run's own
                else:
                    found[name] = part
            return found

        steps = [(op, params, aval, [here(parts) for parts in args]) for op, params, aval, args in way.steps]
        tests = [(here(parts), value) for parts, value in way.tests]
        after: dict[Key, tuple[Parts, Any]] = {}
        for key in stretch.keys:
            begin = self.bounds[0].nodes.get(key)
            if key in way.after:
                parts, aval = way.after[key]
                after[key] = here(parts), aval
            elif begin is None:
                raise Unclear
            else:  # it stayed as it was
                part: Part = ("carry", key) if key in stretch.there else ("same", begin)
                after[key] = {part: part}, begin.aval
        return Way(steps, tests, after, way.nodes)

    def _kinds(self, known: Ways | None) -> dict[Key, Any]:
        """What is known of each local that goes round, or is left behind: of the last that was computed."""
        found = {}
        for key in self.keys:
            nodes = [bound.nodes[key] for bound in reversed(self.bounds) if key in bound.nodes]
            if not nodes and known is not None:
                found[key] = _left_in(known.taken[-1], key)
                continue
            found[key] = next((node.aval for node in nodes if node.op not in (INDEX, CONST)), nodes[0].aval)
            if not isinstance(found[key], Aval) or (nodes[0].aval != found[key] and nodes[0].op is not INDEX):
                raise Unclear
        return found

    def _read(self, stretch: Stretch, b: Boundary, c: Boundary) -> Way:
        """What one iteration did in a stretch, as a way that it alone took."""
        trace = self.trace
        if trace.unseen_writes(b.writes, c.writes, c.containers):
            raise Unclear
        self.again = set(trace.met[b.met : c.met])
        moves = {b.nodes[key] for key in stretch.read} | ({b.at} if b.at is not None else set())
        places: dict[Node, int] = {}
        steps: list[Step] = []
        begun = set(moves)
        moves |= self._make(trace.graph.nodes[b.length : c.length], moves)
        tests: dict[Node, bool] = {}
        for look in self._looks(b, c):
            if look.node is b.nodes.get(TEST):  # that it goes on at all
                continue
            if self._is_of_places(look.node, begun):  # which place it is at tells that
                continue
            moved = look.node in moves or look.node in self.made or (self.section and look.value in (True, False))
            if not moved and isinstance(look, Guard):
                self.fixed.setdefault(look.node, (look.value, look.line))
            elif not moved:
                self.plain[look.node] = trace.computed(look.node)
            if moved and look.node not in tests:
                if look.node.aval.dtype != bool or look.node.aval.shape or look.value is None:
                    raise Unclear
                tests[look.node] = bool(look.value)
        if len(tests) > DEEPEST:
            raise Unclear
        stayed = {key for key in stretch.keys & stretch.there if _is_same(key, b, c)}
        left = {key for key in stayed if self._is_left(key, b, c)}
        known = {key for key in stayed if c.nodes[key].index not in self.again} | left
        waiting = [*tests, *(c.nodes[key] for key in sorted(stretch.keys - known, key=repr))][::-1]
        while waiting:  # in the order in which they are needed, which does not hang on what was computed before
            node = waiting[-1]
            if node in places or node in begun or node not in self.made:
                waiting.pop()
            elif more := [arg for arg in node.args if arg in self.made and arg not in places and arg not in begun]:
                waiting += more[::-1]
            else:
                for one in [node, *self._results(node)]:  # which no side of a decision takes apart
                    params = () if one.op is IDENTITY else one.params
                    steps.append((one.op, params, one.aval, [self._parts(arg, stretch, b, places) for arg in one.args]))
                    places[one] = len(places)
                waiting.pop()
        self.decided.update(tests)
        after = {}
        for key in stretch.keys:
            node = c.nodes[key]
            again = b.nodes.get(key) is node  # it may have stayed, or been computed once more
            itself: Parts = {("carry", key): ("carry", key)} if again and key in stretch.there else {}
            stayed_there = again and not itself and node.index < b.length and node.index not in self.again
            if stayed_there and node in self.made and not self._is_unread(key):
                raise Unclear  # an iteration before has left it there, and it does not go round
            parts = itself if key in left else {**self._found(node, stretch, b, places), **itself}
            if not parts:
                raise Unclear
            after[key] = parts, node.aval
        decided = [(self._parts(node, stretch, b, places), value) for node, value in tests.items()]
        return Way(steps, decided, after, list(places))

    def _results(self, node: Node) -> list[Node]:
        """All results of a loop and its kin, also those that this iteration does not read."""
        kinds = node.aval if type(node.aval) is tuple else ()
        places = [(kind, (("item", i),)) for i, kind in enumerate(kinds)]
        return [self.trace.graph.find(ITEM, (node,), place) or Node(ITEM, (node,), place, kind) for kind, place in places]

    def _has_twins(self, stretch: Stretch, b: Boundary) -> bool:
        """Whether two locals that go round begin a stretch with one value, so that what is made of both is made once. Masks of
        lists that get their items together always do."""
        begun = [b.nodes[key] for key in stretch.read if getattr(b.nodes[key].aval, "shape", ()) and key[-1] != TAKEN]
        return len(set(begun)) < len(begun)

    def _has_one_number_twice(self, stretch: Stretch, b: Boundary) -> bool:
        """The same of numbers: what is asked of both is asked once."""
        begun = [b.nodes[key] for key in stretch.read if key not in (TEST, EXIT, UNSEEN, COUNTER)]
        return len(set(begun)) < len(begun)

    def _is_told_by(self, way: Way, own: Way, b: Boundary, c: Boundary) -> bool:
        """Whether an iteration, whose ``own`` reading tells less, did what other iterations tell of their ``way``."""

        def found(parts: Parts, made: Sequence[Node]) -> Node | None:
            if any([kind == "again" for kind, _ in parts.values()]):
                return None
            node, *others = {b.part(part, made) for part in parts.values()}
            return None if others else node

        made: list[Node] = []
        for op, params, aval, args in way.steps:
            given = [found(parts, made) for parts in args]
            node = None if None in given else self.trace.graph.find(op, tuple(given), params)  # type: ignore[arg-type]
            if node is None and (op is not ITEM or None in given):
                return False
            made.append(node or Node(op, tuple(given), params, aval))  # type: ignore[arg-type]
        asked = {found(parts, own.nodes): value for parts, value in own.tests}
        tests = [(found(parts, made), value) for parts, value in way.tests]
        same = asked.keys() == {node for node, _ in tests} and all([asked[node] is value for node, value in tests])

        def leaves(parts: Parts, left: Node) -> bool:
            there = found(parts, made)
            put = there is not None and all([kind == "value" for kind, _ in parts.values()])
            return there is left or (put and same_number(there, left))  # type: ignore[arg-type]

        return same and all([leaves(parts, c.nodes[key]) for key, (parts, _) in way.after.items()])

    def _make(self, nodes: Sequence[Node], moves: set[Node]) -> set[Node]:
        """Note which of these nodes hang on what ``moves``: those are made anew in each iteration, if only to be the same. In a
        section, so is all else."""
        found: set[Node] = set()
        made, put, floor, met = self.made, self.put, self.floor, self.met
        for node in nodes:
            if node.op in LEAVES or (node.index < floor and node.index not in met):  # may be made of what goes round now
                continue
            anew = self.section  # also what was there, as in other calls it may not have been
            for arg in () if anew else node.args:  # one by one: an iteration has many
                if (
                    arg in moves
                    or arg in made
                    or arg in put
                    or self._is_anew(arg)
                    or (arg.op is INDEX and self._is_within(arg))
                ):
                    anew = True
                    break
            if anew:
                found.add(node)
                made.add(node)
        return found

    def _is_anew(self, x: Node) -> bool:
        """Whether it is an array that an iteration was the first to meet: the next one may have another like it."""
        return x.op is CAPTURED and x.index >= self.floor

    def _is_left(self, key: Key, b: Boundary, c: Boundary) -> bool:
        """Whether an iteration has put nothing into a local: it holds the object that it held, and no other one did."""
        if not _is_same(key, b, c):
            return False
        owner = b.shared.get(key[:-1])
        others = [other for other in self._names_of(b)[id(b.holds[key])] if other != key]
        return all([owner is not None and (b.shared.get(other[:-1]), other[-1]) == (owner, key[-1]) for other in others])

    def _names_of(self, b: Boundary) -> dict[int, list[Key]]:
        """Where each traced value is between two iterations."""
        if id(b) not in self.named:
            found: dict[int, list[Key]] = {}
            for key, tracer in b.holds.items():
                found.setdefault(id(tracer), []).append(key)
            self.named[id(b)] = b, found  # which keeps it, so that no other one gets its id
        return self.named[id(b)][1]

    def _looks(self, b: Boundary, c: Boundary) -> list[Any]:
        """What an iteration looked at, in order."""
        guards, peeks = self.trace.guards[b.guards : c.guards], self.trace.peeks[b.peeks : c.peeks]
        placed = [((peek.guards, 0), peek) for peek in peeks] + [((i, 1), guard) for i, guard in enumerate(guards, b.guards)]
        return [look for _, look in sorted(placed, key=lambda pair: pair[0])]

    def _check(self, b: Boundary, c: Boundary) -> None:
        """Nothing else may have changed."""
        first = b is self.bounds[0]  # which may lack what iterations leave behind
        names = {*b.rest} if first else {*b.rest, *c.rest}
        if any([b.rest.get(name) != c.rest.get(name) for name in names - self.unread - self.names.unread]):
            raise Unclear
        known = self.keys | {key for key in b.nodes if key[0] in self.unread}
        if any([c.nodes.get(key) is not node and key not in known for key, node in b.nodes.items()]):
            raise Unclear

    def _parts(self, x: Node, stretch: Stretch, b: Boundary, places: dict[Node, int]) -> Parts:
        """Where a value comes from, as far as one iteration tells."""
        found = self._found(x, stretch, b, places)
        if not found:
            raise Unclear
        return found

    def _found(self, x: Node, stretch: Stretch, b: Boundary, places: dict[Node, int]) -> Parts:
        """The same; nothing where nothing is found."""
        if x in places:
            step: Parts = {("step", places[x]): ("step", places[x])}
            held = {key for key, node in b.nodes.items() if node is x} - stretch.there - OF_LOOPS
            if held and x.index <= self.before:
                step["same", x] = ("same", x)  # it was there before the loop, and a local has it still
            return step
        if x is b.at:
            return {("index",): ("index", None)}
        found: Parts = {("carry", key): ("carry", key) for key in stretch.read if b.nodes[key] is x}
        if found and x in self.made and x.index in self.again:
            found["again",] = ("again", x)
        alone = bool(found) and self._is_only_there(x, stretch, b)
        if x.op is INDEX and self._is_own(x):
            if not alone and dict(x.params)["loop"] != self.serial:  # the index of another iteration is no number of the code
                found[number_name(x)] = ("value", x)
        elif x.op is CONST:
            found[number_name(x)] = ("same", x)
        elif x.op is CAPTURED and x.index >= self.floor and (not found or x.index in self.again):
            array = self.trace.graph.arrays[x]
            key = "anew", array.strides, *content_of(array)
            found[key] = "anew", self.first.setdefault(key, x)
            self.anew.add(x)
        elif x not in self.made and not alone:
            found["same", x] = ("same", x)
        return found

    def _is_own(self, number: Node) -> bool:
        """Whether a number is this loop's, or of one in it, not the index of a loop around it."""
        return number.index > self.before or loop_number(number) == self.serial

    def _is_within(self, x: Node) -> bool:
        """Whether it is a number of a loop within this one, which other iterations have one of their own for."""
        return x.op is INDEX and x.index > self.before and loop_number(x) != self.serial

    def _is_of_places(self, x: Node, begun: set[Node]) -> bool:
        """Whether it is made of numbers of loops within this one, and of what no iteration makes, alone."""
        waiting, seen = [x], set[Node]()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            there = node.op is CONST or (node.op is CAPTURED and node.index <= self.before)
            if node in begun or not (node.args or there or self._is_within(node)):
                return False
            waiting += node.args
        return True

    def _is_only_there(self, x: Node, stretch: Stretch, b: Boundary) -> bool:
        """Whether a value that was computed, or put there, comes from a local that goes round: nothing else holds it, and it
        was not computed again."""
        if x.op in (INPUT, CONST, CAPTURED) or x.index in self.again:
            return False
        return not any([node is x for key, node in b.nodes.items() if key not in stretch.read])


def _take_in(ways: Taken, taken: tuple[bool, ...], way: Way) -> None:
    """An iteration, which has ``taken`` these decisions, is one more of its way, or the first."""
    if (known := ways.setdefault(taken, way)) is not way:
        unite(known, way)


def _is_vague(way: Way) -> bool:
    """Whether it read what a local held, or computed that once more."""
    return any([("again",) in parts for parts in parts_of([way])])


def _left_in(ways: Taken, key: Key) -> Any:
    """What is known of what ways leave in a local."""
    if any([key not in way.after for way in ways.values()]):
        raise Unclear
    return functools.reduce(one_kind, [way.after[key][1] for way in ways.values()])


def _is_same(key: Key, b: Boundary, c: Boundary) -> bool:
    """Whether a local holds the same object at two boundaries, and nothing has been written into it."""
    return key in c.nodes and c.nodes[key] is b.nodes[key] and c.holds[key] is b.holds[key]


def _is_put(key: Key, begin: Boundary, end: Boundary) -> bool:
    """Whether a local has been assigned, or changed, since the iteration began."""
    return end.holds[key] is not begin.holds.get(key) or end.nodes[key] is not begin.nodes.get(key)
