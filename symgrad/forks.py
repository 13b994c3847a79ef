"""Forks: iterations of a loop that went different ways at its ``if``s become one pattern, with the ``if``s in it.

Iterations that decided alike took the same *way*: their operations are the same, and so is where each argument comes from. Ways
that part at a decision have in common what comes before it; what comes after is the body of a loop that runs once, if the test
is true, and of another one, if it is false. Where an argument may come from several places, as far as the iterations tell,
nothing is rolled up.

Ways that earlier calls took through the same loop are there, too. Where a decision still went one way only, a flag goes round
that tells whether an iteration went the other one; such a call is traced.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Graph, Node, ancestors
from symgrad.ops.core import REGISTRY
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.engine import IDENTITY, INDEX, ITEM, NOT
from symgrad.patterns import (
    BOOL,
    EXIT,
    INT,
    LEAVES,
    TEST,
    TRACED,
    UNSEEN,
    Boundary,
    Key,
    Names,
    Note,
    Part,
    Pattern,
    joined,
    number_name,
    number_of,
)
from symgrad.trace import Guard, Trace
from symgrad.transform.loop import Body, Course, loop_of

MOST = 16  # ways through an iteration
DEEPEST = 24  # decisions of an iteration: each is one more ``if`` within another
# operators that give a Python number of Python numbers; of these, those that may raise, or give another kind
_RISKY = frozenset([REGISTRY[ufunc] for ufunc in (np.true_divide, np.floor_divide, np.remainder, np.power)])
_OPERATORS = _RISKY | {
    EXTREME,
    *[REGISTRY[ufunc] for ufunc in (np.add, np.subtract, np.multiply, np.negative, np.positive, np.absolute)],
}

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


class Ways(NamedTuple):
    """The ways that calls have taken through a loop from iteration ``first`` on, and what the locals held there.

    ``fixed`` is what they looked at that no iteration changes, and saw, ``plain`` of that what hangs on no argument; ``left``
    are the locals that no iteration assigned; ``parted`` are pairs of them that were one array at times, and ``written`` those
    whose arrays were changed in place.
    """

    first: int
    fixed: dict[Node, tuple[Any, Any]]
    plain: set[Node]
    nodes: dict[Key, Node]
    rest: dict[str, Any]
    moving: set[Key]
    left: set[Key]
    taken: dict[tuple[bool, ...], Way]
    arrays: dict[Node, Any]  # that they read
    parted: set[frozenset[Key]]
    written: set[Key]

    def held(self) -> Iterator[Node]:
        """The nodes that it holds, each as often as it does."""
        yield from itertools.chain(self.nodes.values(), self.fixed, self.plain, self.arrays)
        pairs = [pair for parts in _parts_of(self.taken.values()) for pair in parts.items()]
        parts = {id(part): part for pair in pairs for part in pair}
        yield from [part[1] for part in parts.values() if part[0] == "same"]


class Fork(NamedTuple):
    """A pattern with decisions in it, what was decided on, and what is known of the locals that go round."""

    pattern: Pattern
    decided: set[Node]
    fixed: dict[Node, tuple[Any, Any]]  # what was looked at that no iteration changes: what was seen, and where
    kinds: dict[Key, Any]
    anew: set[Node]  # arrays that iterations made for themselves
    ways: Ways | None  # for later calls
    several: bool  # whether there is more than one


def fork(
    trace: Trace,
    bounds: Sequence[Boundary],
    first: int,
    names: Names,
    put: set[Node],
    known: Ways | None,
) -> Fork | None:
    """The pattern of the iterations between ``bounds``, of which the first is number ``first``; None where there is none.

    ``put`` are numbers that iterations put into locals; ``known`` is what earlier calls did that came to this loop by the same
    decisions.
    """
    try:
        reader = _Reader(trace, bounds, names, put)
        recalled = {} if known is None else reader.recall(known)
        return reader.pattern(first, recalled)
    except Unclear:
        return None


class _Reader:
    def __init__(
        self,
        trace: Trace,
        bounds: Sequence[Boundary],
        names: Names,
        put: set[Node],
    ) -> None:
        self.trace, self.bounds, self.names = trace, bounds, names
        self.put = put
        keys = set(bounds[0].nodes).intersection(*(bound.nodes for bound in bounds[1:]))
        late = set(bounds[-1].nodes).intersection(*(bound.nodes for bound in bounds[1:])) - keys
        pairs = [*itertools.pairwise(bounds[1:])]  # some iterations assign it, and nobody reads it
        late -= {key for key in late if self._is_unread(key) and any([c.nodes[key] is b.nodes[key] for b, c in pairs])}
        self.moving = self._moving(keys)
        self.keys = self.moving | late
        self.read = self._read_next()
        self.unread: set[Any] = set()
        for key in {key for bound in bounds for key in bound.nodes} - keys - late:
            self._leave(key)
        self.anew: set[Node] = set()
        self.made: set[Node] = set()  # by iterations, of what moves
        self.settled: set[Node] = set()  # by none
        self.again: set[int] = set()  # what the iteration that is read has computed once more, by index
        self.decided: set[Node] = set()
        self.fixed: dict[Node, tuple[Any, Any]] = {}
        self.plain: set[Node] = set()
        nodes = trace.graph.nodes
        self.parted, self.written = self._parted(nodes[bounds[0].length - 1].index if bounds[0].length else -1)
        self.floor = nodes[bounds[0].length].index if bounds[0].length < len(nodes) else math.inf

    def _read_next(self) -> set[Key]:
        """The locals that the next iteration may read before it assigns them."""
        return {key for key in self.moving if key[0] not in self.names.targets and key not in (TEST, EXIT)}

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
        return found | {
            key for key in given if any([node in change or node in self.put for node in ancestors([begin.nodes[key]], floor)])
        }

    def _parted(self, before: int) -> tuple[set[frozenset[Key]], set[Key]]:
        """The pairs of locals that are one array between some iterations, and two between others; the locals whose arrays
        were changed in place since the node of index ``before``."""
        together: Counter[frozenset[Key]] = Counter()
        written: set[Key] = set()
        for bound in self.bounds:
            owners: dict[int, list[Key]] = {}
            for key, tracer in bound.holds.items():
                if type(tracer.like) is np.ndarray and key[0] not in self.names.targets:
                    owner = tracer.owner()
                    owners.setdefault(id(owner), []).append(key)
                    if owner.written > before:
                        written.add(key)
            together.update([frozenset(pair) for keys in owners.values() for pair in itertools.combinations(keys, 2)])
        parted = {
            pair for pair, often in together.items() if often < sum([pair <= bound.holds.keys() for bound in self.bounds])
        }
        return parted, written

    def pattern(self, first: int, ways: dict[tuple[bool, ...], Way]) -> Fork:
        """The pattern of these iterations, from number ``first`` on, and of earlier ``ways``."""
        if any([not pair.isdisjoint(self.written) for pair in self.parted]):
            raise Unclear  # what is written into one of them is in both, or not
        begun = {bound.nodes[key] for bound in self.bounds for key in self.moving}
        self.settled = self._settled()
        self._make(self.trace.graph.nodes[: self.bounds[-1].length], begun)
        twins: dict[tuple[bool, ...], list[tuple[Way, Boundary, Boundary]]] = {}  # iterations that tell less than others
        for b, c in itertools.pairwise(self.bounds):
            way = self._read(b, c)
            taken = tuple([value for _, value in way.tests])
            if self._has_twins(b):
                twins.setdefault(taken, []).append((way, b, c))
            elif (known := ways.setdefault(taken, way)) is not way:
                _unite(known, way)
            if len(ways.keys() | twins.keys()) > MOST:
                raise Unclear
        for taken, alike in twins.items():
            if taken in ways:
                for way, b, c in alike:
                    self._retrace(ways[taken], way, b, c)
            else:
                ways[taken] = alike[0][0]
                for way, _, _ in alike[1:]:
                    _unite(ways[taken], way)
        if any([node in self.made or node in begun for node in self.fixed]):
            raise Unclear
        kinds = self._kinds()
        for key, (_, aval) in [pair for way in ways.values() for pair in way.after.items()]:
            kinds[key] = _joined(kinds[key], aval) or kinds[key]
        plain = {key for key in self.moving if self.bounds[0].nodes[key].aval.kind == "python" != kinds[key].kind}
        if any([_hangs_on_kinds(way, plain) for way in ways.values()]):
            raise Unclear
        kept = None if self.anew else self._kept(first, ways)
        if not _is_whole(ways):
            kinds = {**kinds, UNSEEN: BOOL}
            for way in ways.values():
                way.after[UNSEEN] = {UNSEEN: ("carry", UNSEEN)}, BOOL
        steps = _Steps(self.trace, kinds)
        found = _Builder(kinds, self.moving | {UNSEEN}, self._blank).grow(
            steps, [ways[key] for key in sorted(ways)], 0, {}, lambda part: part
        )
        return Fork(Pattern(steps.steps, found, steps.notes), self.decided, self.fixed, kinds, self.anew, kept, len(ways) > 1)

    def _blank(self, kind: Aval) -> Node:
        """An array that no iteration reads."""
        if not kind.shape:
            raise Unclear
        node: Node = self.trace.constant_like(0.0, kind).node
        return node

    def _kept(self, first: int, ways: dict[tuple[bool, ...], Way]) -> Ways:
        """What later calls may know of these ways."""
        begin, taken = self.bounds[0], {key: _bare(way) for key, way in ways.items()}
        outside = ancestors([*_read(taken.values()), *self.fixed, *self.plain])
        arrays = {node: self.trace.graph.arrays[node] for node in outside if node.op is CAPTURED}
        left = {key for key in begin.nodes if all([self._is_left(key, begin, bound) for bound in self.bounds[1:]])}
        known = self.fixed, self.plain, begin.nodes, begin.rest, self.moving, left, taken, arrays
        return Ways(first, *known, self.parted, self.written)

    def recall(self, known: Ways) -> dict[tuple[bool, ...], Way]:
        """What earlier calls did, of what there is in this one."""
        begin = self.bounds[0]
        if known.nodes.keys() != begin.nodes.keys() or known.rest != begin.rest:
            raise Unclear
        same: dict[Node, Node] = {}
        for key, node in known.nodes.items():
            if same.setdefault(node, begin.nodes[key]) is not begin.nodes[key]:
                raise Unclear
        if any([key not in bound.nodes for bound in self.bounds for key in known.moving]):
            raise Unclear
        for node, seen in known.fixed.items():
            here = self._here(node, same, known.arrays)
            if self.trace.computed(here) != seen[0]:
                raise Unclear
            self.fixed[here] = seen
        self.plain |= {self._here(node, same, known.arrays) for node in known.plain}
        if not self.moving - known.moving <= known.left:
            raise Unclear
        self.parted, self.written = self.parted | known.parted, self.written | known.written
        fresh = {begin.nodes[key] for key in self.moving - known.moving}
        self.moving |= known.moving
        self.read = self._read_next()
        self.keys |= known.moving
        after = [way.after.keys() for way in known.taken.values()]
        for key in self.keys.union(*after) - begin.nodes.keys():
            if key not in self.keys or any([key not in left for left in after]):
                self._leave(key)
                self.keys.discard(key)
        found = {key: self._recalled(way, same, known.arrays) for key, way in known.taken.items()}
        self._check_fresh(fresh, list(found.values()))
        return found

    def _check_fresh(self, fresh: set[Node], ways: list[Way]) -> None:
        """What did not move in earlier calls was taken for one and the same there: nothing may have been made of it."""
        hang = set(fresh)
        for node in self.trace.graph.nodes if fresh else ():
            if any([arg in hang for arg in node.args]):
                hang.add(node)
        numbers = {number_name(node) for node in fresh if node.op in (INDEX, CONST)}
        names = {name for parts in _parts_of(ways) for name in parts}
        if not hang.isdisjoint([*_read(ways), *self.fixed, *self.plain]) or not numbers.isdisjoint(names):
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

    def _recalled(self, way: Way, same: dict[Node, Node], arrays: dict[Node, Any]) -> Way:
        """A way that an earlier call took; ``same`` tells what is what."""

        def here(parts: Parts) -> Parts:
            found: Parts = {}
            for name, part in parts.items():
                if part[0] == "same":
                    node = self._here(part[1], same, arrays)
                    found[name if part[1].op is CONST else ("same", node)] = ("same", node)
                else:
                    found[name] = part
            return found

        steps = [(op, params, aval, [here(parts) for parts in args]) for op, params, aval, args in way.steps]
        tests = [(here(parts), value) for parts, value in way.tests]
        after: dict[Key, tuple[Parts, Any]] = {}
        for key in self.keys:
            if key in way.after:
                parts, aval = way.after[key]
                after[key] = here(parts), aval
            else:  # it stayed as it was
                after[key] = {("carry", key): ("carry", key)}, self.bounds[0].nodes[key].aval
        return Way(steps, tests, after, way.nodes)

    def _here(self, node: Node, same: dict[Node, Node], arrays: dict[Node, Any]) -> Node:
        """What an earlier call had, of what there is in this one: computed, if need be."""
        trace = self.trace
        for x in ancestors([node], known=same):
            found: Node | None
            if x.op is INPUT:
                found = trace.graph.find(INPUT, (), x.params)
            elif x.op is CAPTURED:
                array = arrays[x]
                table = not array.flags.writeable and array.base is None
                found = trace.constant(trace.once(array) if table else array)[0]
            elif x.op is CONST:
                found = trace.constant(dict(x.params)["value"])[0]
            elif x.op is IDENTITY:  # which has a name of its own each time
                found = None
            else:
                found = self._computed(x, [trace.lookup(same[arg]) for arg in x.args])
            if found is None or found.aval != x.aval:
                raise Unclear
            same[x] = found
        return same[node]

    def _computed(self, node: Node, args: list[Any]) -> Node | None:
        try:
            with np.errstate(all="ignore"):
                return self.trace.run(node.op, args, dict(node.params))
        except Exception:
            return None

    def _kinds(self) -> dict[Key, Any]:
        """What is known of each local that goes round, or is left behind: of the last that was computed."""
        found = {}
        for key in self.keys:
            nodes = [bound.nodes[key] for bound in reversed(self.bounds) if key in bound.nodes]
            found[key] = next((node.aval for node in nodes if node.op not in (INDEX, CONST)), nodes[0].aval)
            if not isinstance(found[key], Aval) or (nodes[0].aval != found[key] and nodes[0].op is not INDEX):
                raise Unclear
        return found

    def _read(self, b: Boundary, c: Boundary) -> Way:
        """One iteration, as a way that it alone took."""
        trace = self.trace
        self.again = set(trace.met[b.met : c.met])
        moves = {b.nodes[key] for key in self.read} | ({b.at} if b.at is not None else set())
        places: dict[Node, int] = {}
        steps: list[Step] = []
        begun = set(moves)
        moves |= self._make(trace.graph.nodes[b.length : c.length], moves)
        tests: dict[Node, bool] = {}
        for look in self._looks(b, c):
            if look.node is b.nodes.get(TEST):  # that it goes on at all
                continue
            moved = look.node in moves or look.node in self.made
            if not moved and isinstance(look, Guard):
                self.fixed.setdefault(look.node, (look.value, look.line))
            elif not moved:
                self.plain.add(look.node)
            if moved and look.node not in tests:
                if look.node.aval.dtype != bool or look.node.aval.shape or look.value is None:
                    raise Unclear
                tests[look.node] = bool(look.value)
        if len(tests) > DEEPEST:
            raise Unclear
        items: dict[Node, list[Node]] = {}  # of loops, whose results no side of a decision takes apart
        for node in trace.graph.nodes[b.length : c.length]:
            if node.op is ITEM and node in self.made and node not in begun:
                items.setdefault(node.args[0], []).append(node)
        waiting = [*tests, *(c.nodes[key] for key in sorted(self.keys, key=repr))][::-1]
        while waiting:  # in the order in which they are needed, which does not hang on what was computed before
            node = waiting[-1]
            if node in places or node in begun or node not in self.made:
                waiting.pop()
            elif more := [arg for arg in node.args if arg in self.made and arg not in places and arg not in begun]:
                waiting += more[::-1]
            else:
                for one in [node, *items.get(node, ())]:
                    params = () if one.op is IDENTITY else one.params
                    steps.append((one.op, params, one.aval, [self._parts(arg, b, places) for arg in one.args]))
                    places[one] = len(places)
                waiting.pop()
        self._check(b, c)
        self.decided.update(tests)
        after = {}
        for key in self.keys:
            left = key in self.read and self._is_left(key, b, c)
            parts = {("carry", key): ("carry", key)} if left else self._parts(c.nodes[key], b, places)
            after[key] = parts, c.nodes[key].aval
        return Way(steps, [(self._parts(node, b, places), value) for node, value in tests.items()], after, list(places))

    def _has_twins(self, b: Boundary) -> bool:
        """Whether two locals that go round begin an iteration with one value, so that what is made of both is made once."""
        begun = [b.nodes[key] for key in self.read if getattr(b.nodes[key].aval, "shape", ())]
        return len(set(begun)) < len(begun)

    def _retrace(self, way: Way, own: Way, b: Boundary, c: Boundary) -> None:
        """An iteration, whose ``own`` reading has fewer steps, did what other iterations tell of its ``way``."""

        def found(parts: Parts, made: Sequence[Node]) -> Node:
            if any([kind not in ("step", "carry", "index", "same") for kind, _ in parts.values()]):
                raise Unclear
            node, *others = {b.part(part, made) for part in parts.values()}
            if node is None or others:
                raise Unclear
            return node

        made: list[Node] = []
        for op, params, _, args in way.steps:
            node = self.trace.graph.find(op, tuple([found(parts, made) for parts in args]), params)
            if node is None:
                raise Unclear
            made.append(node)
        tests = zip(way.tests, own.tests, strict=True)
        same = all([found(parts, made) is found(others, own.nodes) for (parts, _), (others, _) in tests])
        if not same or any([found(parts, made) is not c.nodes[key] for key, (parts, _) in way.after.items()]):
            raise Unclear

    def _settled(self) -> set[Node]:
        """What locals hold that no iteration assigns, and none has computed: it may have been made of what goes round now."""
        begin, end = self.bounds[0], self.bounds[-1]
        met = set(self.trace.met[begin.met : end.met])
        held = {key: node for key, node in begin.nodes.items() if key not in self.moving and node.index not in met}
        return {node for key, node in held.items() if all([bound.nodes.get(key) is node for bound in self.bounds])}

    def _make(self, nodes: Sequence[Node], moves: set[Node]) -> set[Node]:
        """Note which of these nodes hang on what ``moves``: those are made anew in each iteration, if only to be the same."""
        found: set[Node] = set()
        for node in nodes:
            if (
                node.op not in LEAVES
                and node not in self.settled
                and any([arg in moves or arg in self.made or arg in self.put for arg in node.args])
            ):
                found.add(node)
                self.made.add(node)
        return found

    def _is_left(self, key: Key, b: Boundary, c: Boundary) -> bool:
        """Whether an iteration has put nothing into a local: it holds the object that it held, and no other one did."""
        if key not in c.nodes or c.nodes[key] is not b.nodes[key] or c.holds[key] is not b.holds[key]:
            return False
        return sum([tracer is b.holds[key] for tracer in b.holds.values()]) == 1

    def _looks(self, b: Boundary, c: Boundary) -> list[Any]:
        """What an iteration looked at, in order."""
        guards, peeks = self.trace.guards[b.guards : c.guards], self.trace.peeks[b.peeks : c.peeks]
        placed = [((peek.guards, 0), peek) for peek in peeks] + [((i, 1), guard) for i, guard in enumerate(guards, b.guards)]
        return [look for _, look in sorted(placed, key=lambda pair: pair[0])]

    def _check(self, b: Boundary, c: Boundary) -> None:
        """Nothing else may have changed."""
        trace = self.trace
        if trace.unseen_writes(b.writes, c.writes, c.containers):
            raise Unclear
        first = b is self.bounds[0]  # which may lack what iterations leave behind
        names = [name for name in (b.rest if first else {*b.rest, *c.rest}) if name not in self.unread]
        if any([b.rest.get(name) != c.rest.get(name) for name in names]):
            raise Unclear
        known = self.keys | {key for key in b.nodes if key[0] in self.unread}
        if any([c.nodes.get(key) is not node and key not in known for key, node in b.nodes.items()]):
            raise Unclear

    def _parts(self, x: Node, b: Boundary, places: dict[Node, int]) -> Parts:
        """Where a value comes from, as far as one iteration tells."""
        if x in places:
            return {("step", places[x]): ("step", places[x])}
        if x is b.at:
            return {("index",): ("index", None)}
        found: Parts = {("carry", key): ("carry", key) for key in self.read if b.nodes[key] is x}
        if found and x in self.made and x.index in self.again:
            found["again",] = ("again", x)
        if x.op is INDEX:
            found[number_name(x)] = ("value", x)
        elif x.op is CONST:
            found[number_name(x)] = ("same", x)
        elif x.op is CAPTURED and x.index >= self.floor:
            array = self.trace.graph.arrays[x]
            found["anew", array.shape, array.dtype.str, array.strides, array.tobytes()] = ("anew", x)
            self.anew.add(x)
        elif x not in self.made:
            found["same", x] = ("same", x)
        if not found:
            raise Unclear
        return found


def _unite(one: Way, other: Way) -> None:
    """Take in an iteration that went the same way."""
    if len(one.steps) != len(other.steps):
        raise Unclear
    for i, (mine, theirs) in enumerate(zip(one.steps, other.steps, strict=True)):
        kind = _same_step(mine, theirs)
        if kind is None:
            raise Unclear
        one.steps[i] = (*mine[:2], kind, mine[3])
        for parts, others in zip(mine[3], theirs[3], strict=True):
            _narrow(parts, others)
    for (parts, _), (others, _) in zip(one.tests, other.tests, strict=True):
        _narrow(parts, others)
    for key, (parts, aval) in one.after.items():
        others, theirs = other.after[key]
        _narrow(parts, others)
        kind = _joined(aval, theirs)
        if kind is not None:
            one.after[key] = parts, kind


def _bare(way: Way) -> Way:
    """A way without the values of this call."""
    steps = [(op, params, aval, [dict(parts) for parts in args]) for op, params, aval, args in way.steps]
    tests = [(dict(parts), value) for parts, value in way.tests]
    after = {key: (dict(parts), aval) for key, (parts, aval) in way.after.items()}
    return Way(steps, tests, after, [Note(node) for node in way.nodes])


def _parts_of(ways: Iterable[Way]) -> list[Parts]:
    """Where all comes from that ways read, test, and leave behind."""
    every: list[Parts] = []
    for way in ways:
        every += [parts for step in way.steps for parts in step[3]]
        every += [parts for parts, _ in (*way.tests, *way.after.values())]
    return every


def _read(ways: Iterable[Way]) -> list[Node]:
    """What there is outside of a loop that its ways read."""
    return [part[1] for parts in _parts_of(ways) for part in parts.values() if part[0] == "same"]


def _hangs_on_kinds(way: Way, plain: set[Key]) -> bool:
    """Whether it matters that these locals hold Python's numbers at the beginning, where NumPy's go round."""
    made: list[bool] = []  # whether a step gives a Python number then

    def is_plain(part: Part) -> bool:
        kind, what = part
        if kind == "step":
            return made[what]
        return what in plain if kind == "carry" else kind == "index" or what.aval.kind == "python"

    for op, _, aval, args in way.steps:
        made.append(op in _OPERATORS and all([any(map(is_plain, parts.values())) for parts in args]))
        if made[-1] and op in _RISKY and aval.kind != "python":
            return True
    return False


def _is_whole(ways: Iterable[tuple[bool, ...]]) -> bool:
    """Whether each decision went both ways."""
    begun = {way[:i] for way in ways for i in range(len(way) + 1)}
    return all([(*way[:-1], not way[-1]) in begun for way in begun if way])


def _same_step(one: Step, other: Step) -> Any:
    """What is known of the result of a step that is the same; None where it is another one."""
    same = one[:2] == other[:2] and len(one[3]) == len(other[3])
    return _joined(one[2], other[2]) if same else None


def _joined(one: Any, other: Any) -> Any:
    """The kind of both; of a number that was Python's first, and then NumPy's, the latter."""
    if one == other:
        return one
    numbers = isinstance(one, Aval) and isinstance(other, Aval) and one.shape == other.shape == () and one.dtype == other.dtype
    return None if not numbers else one if one.kind == "scalar" else other


def _narrow(parts: Parts, others: Parts) -> None:
    for name in parts.keys() - others.keys():
        del parts[name]
    if not parts:
        raise Unclear


def _sure(parts: Parts) -> Part:
    """The one place that a value comes from."""
    part, *others = parts.values()
    if others or part[0] == "again":  # computed once more, which no step does
        raise Unclear
    return part


class _Builder:
    """Writes ways down as one: ``kinds`` is what is known of each local; ``blank`` makes arrays that stand in for any."""

    def __init__(self, kinds: dict[Key, Any], moving: set[Key], blank: Callable[[Aval], Node]) -> None:
        self.kinds, self.moving, self.blank = kinds, moving, blank
        self.keys = sorted(kinds, key=repr)

    def grow(self, out: Any, ways: list[Way], depth: int, made: dict[int, Any], outer: Callable[[Part], Any]) -> dict[Key, Any]:
        """Write what ``ways``, which decided alike ``depth`` times, do from step ``len(made)`` on; what they leave behind.

        ``made``: what there is of the steps before, by number; ``outer``: what there is of what comes from elsewhere.
        """

        def of(parts: Parts) -> Any:
            part = _sure(parts)
            return made[part[1]] if part[0] == "step" else outer(part)

        way = ways[0]
        for i in range(len(made), self._shared(ways, len(made), depth)):
            op, params, aval, parts = way.steps[i]
            for other in ways[1:]:
                aval = _joined(aval, other.steps[i][2])
                for mine, theirs in zip(parts, other.steps[i][3], strict=True):
                    _narrow(mine, theirs)
            made[i] = out.add(op, [of(one) for one in parts], params, aval, way.nodes[i])
        if len(ways) == 1 and len(way.tests) == depth:
            return {key: self._left(out, key, way, of) for key in self.keys}
        if any([len(other.tests) <= depth for other in ways]):
            raise Unclear
        test, _ = way.tests[depth]
        for other in ways[1:]:
            _narrow(test, other.tests[depth][0])
        if _sure(test)[0] == "step" and _sure(test)[1] not in made:
            raise Unclear
        return self._parted(out, ways, depth, of(test), made, outer)

    def _shared(self, ways: list[Way], start: int, depth: int) -> int:
        """As far as all ways do the same. Up to where they part, what one way tells of a step holds for all of them."""
        end = start
        parting = [way.tests[depth][0] for way in ways if len(way.tests) > depth]
        last = max([what for parts in parting for kind, what in parts.values() if kind == "step"], default=-1)
        for steps in zip(*[way.steps[start:] for way in ways], strict=False):
            first, *others = steps
            if any([_same_step(first, other) is None for other in others]):
                break
            pairs = [pair for other in others for pair in zip(first[3], other[3], strict=True)]
            if any([one.keys().isdisjoint(theirs) for one, theirs in pairs]):
                break
            if end > last and any([one.keys() != theirs.keys() or len(one) > 1 for one, theirs in pairs]):
                break
            end += 1
        return end

    def _left(self, out: Any, key: Key, way: Way, of: Callable[[Parts], Any]) -> Any:
        """What a way leaves in a local, of the kind that goes round."""
        parts, aval = way.after[key]
        part, kind = _sure(parts), self.kinds[key]
        if aval == kind or (part[0] not in ("value", "same") and _joined(aval, kind) == kind):
            return of(parts)
        number = number_of(part[1], kind) if part[0] in ("value", "same") else None
        if number is None:
            raise Unclear
        return out.const(number)

    def _parted(
        self, out: Any, ways: list[Way], depth: int, test: Any, made: dict[int, Any], outer: Callable[[Part], Any]
    ) -> dict[Key, Any]:
        """The two sides of a decision, one after the other; what there is after them."""
        opposite = NOT if out.aval(test).kind == "python" else REGISTRY[np.logical_not]
        results: dict[Key, Any] = {}
        for key in self.keys:
            kind = self.kinds[key]
            if key in self.moving:
                results[key] = outer(("carry", key))
            else:  # no iteration reads what is there before the first side
                results[key] = outer(("same", self.blank(kind))) if kind.kind == "array" else out.const(_zero(kind))
            if out.aval(results[key]) != kind:
                raise Unclear
        for side in (True, False):
            taken = [way for way in ways if way.tests[depth][1] is side]
            again = test if side else out.add(opposite, [test], (), out.aval(test), None)
            results = self._side(out, taken, depth + 1, again, results, made, outer)
        return results

    def _side(
        self,
        out: Any,
        ways: list[Way],
        depth: int,
        again: Any,
        before: dict[Key, Any],
        made: dict[int, Any],
        outer: Callable[[Part], Any],
    ) -> dict[Key, Any]:
        """One side of a decision: a loop that runs once if ``again`` is true; else what there was ``before`` is left.

        Where no call has taken it, it does nothing but say so.
        """
        inner, test = _Inner(), out.aval(again)
        first = inner.graph.input(("carry", 0), test)
        carry = {key: inner.graph.input(("carry", i + 1), self.kinds[key]) for i, key in enumerate(self.keys)}
        given: dict[Any, tuple[Any, Node]] = {}

        def look(name: Any, value: Callable[[], Any]) -> Node:
            if name not in given:
                there = value()
                given[name] = there, inner.graph.input(("invariant", len(given)), out.aval(there))
            return given[name][1]

        def inside(part: Part) -> Any:
            if part[0] in ("value", "same") and part[1].op in (INDEX, CONST):
                return inner.const(dict(part[1].params)["value"])
            return look(part, lambda: outer(part))

        if ways:
            left: dict[Key, Any] = self.grow(inner, ways, depth, _Known(made, look), inside)
        else:
            left = {**carry, UNSEEN: inner.const(True)}
            if TEST in left:
                left[TEST] = inner.const(_zero(self.kinds[TEST]))  # it ends there
        index = inner.graph.input("index", INT)
        stop = inner.const(False if test.kind == "python" else np.False_)
        ends = [stop, *(left[key] for key in self.keys)]
        body = Body(inner.graph, [first, *carry.values()], index, [], [node for _, node in given.values()], ends, [])
        for key, node in carry.items():
            node.name = joined(key)
        avals = (test, *[self.kinds[key] for key in self.keys])
        args = [again, *(before[key] for key in self.keys), *(there for there, _ in given.values())]
        loop = out.add(loop_of(body, Course(test=0, once=True)), args, (), avals, None)
        return {key: out.add(ITEM, [loop], (("item", i + 1),), self.kinds[key], None) for i, key in enumerate(self.keys)}


class _Known(dict[int, Any]):
    """The steps that are there when the side of a decision begins: given to it when it asks for them."""

    def __init__(self, before: dict[int, Any], look: Callable[[Any, Callable[[], Any]], Any]) -> None:
        super().__init__(dict.fromkeys(before))
        self.before, self.given, self.look = before, frozenset(before), look

    def __getitem__(self, i: int) -> Any:
        return self.look(("step", i), lambda: self.before[i]) if i in self.given else super().__getitem__(i)


class _Steps:
    """The steps of a pattern, as they are written; a value is where it comes from."""

    def __init__(self, trace: Trace, kinds: dict[Key, Any]) -> None:
        self.trace, self.kinds = trace, kinds
        self.steps: list[tuple[Any, Any, Any, tuple[Part, ...]]] = []
        self.notes: list[Any] = []

    def add(self, op: Any, args: list[Part], params: Any, aval: Any, like: Node | None) -> Part:
        self.steps.append((op, params, aval, tuple(args)))
        self.notes.append(Note(like))
        return ("step", len(self.steps) - 1)

    def const(self, value: Any) -> Part:
        return ("same", self.trace.constant(value)[0])

    def aval(self, part: Part) -> Any:
        kind, what = part
        if kind == "step":
            return self.steps[what][2]
        return INT if kind == "index" else self.kinds[what] if kind == "carry" else what.aval


class _Inner:
    """A graph as it is written."""

    def __init__(self) -> None:
        self.graph = Graph()

    def add(self, op: Any, args: list[Node], params: Any, aval: Any, like: Node | None) -> Node:
        node = self.graph.add(op, tuple(args), params, aval)
        if like is not None:
            node.name, node.line, node.phase = like.name, like.line, like.phase
        return node

    def const(self, value: Any) -> Node:
        return self.graph.const(value)

    def aval(self, node: Node) -> Any:
        return node.aval


def _zero(kind: Aval) -> Any:
    """A number for what no iteration reads."""
    zero = kind.dtype.type(0)
    return zero.item() if kind.kind == "python" else zero
