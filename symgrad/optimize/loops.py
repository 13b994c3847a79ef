"""Loops made smaller: results that nobody reads, and loops that another one runs as well, are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, Aval, Graph, Node, ancestors
from symgrad.ir import Sequence as ListAval
from symgrad.ops import index
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.engine import ITEM, NOT
from symgrad.optimize import places, scales, sums, zeros
from symgrad.optimize.exact import decisive
from symgrad.optimize.rewriting import (
    Rewrite,
    Simplifier,
    const,
    elements_of,
    filling,
    has_sign,
    is_number,
    is_op,
    is_whole,
    rewrite,
)
from symgrad.optimize.simplify import EXPANSIONS, RULES
from symgrad.program import Leaf, Program
from symgrad.pytree import TreeDef
from symgrad.transform.loop import Body, Course, Loop, loop_of, needed

STACK = Op(np.stack, "constant", (), name="stacked", fun=lambda *rows, shape: np.stack(rows, -1).reshape(shape))

_NOTS = {NOT, REGISTRY[np.logical_not]}
_IN_PLACE = {ITEM, index.SETITEM, index.INDEX_ADD, index.SCATTER}  # what may write into an array that goes round


def trim_loops(program: Program, exact: bool = False) -> Program:
    """The same program, its loops without what is not read, their bodies simplified; ``exact``: to the bit."""
    demand = _Demand(program)
    more = bool(demand.read)
    while more:
        program = _Trimmer(program, demand, exact).run()
        demand = _Demand(program)
        more = demand.slack  # simplified bodies may need less
    return program


def has_slack(program: Program) -> bool:
    """Whether ``trim_loops`` finds more than is needed."""
    return _Demand(program).slack


def expand(program: Program) -> Program:
    """The same program without what is there for derivatives alone; no optimisation."""
    return _Expander(program, EXPANSIONS).run()


def has_nests(program: Program) -> bool:
    """Whether there are loops in its loops."""
    loops = [node.op for node in program.nodes() if isinstance(node.op, Loop)]
    return any([isinstance(node.op, Loop) for loop in loops for node in loop.body.nodes()])


def inside(program: Program, step: Callable[[Program], Program]) -> Program:
    """The same program with the bodies of its loops taken through a step, those in bodies first."""
    if not any(isinstance(node.op, Loop) for node in program.nodes()):
        return program
    return _Inside(program, step).run()


class _Inside(Simplifier):
    def __init__(self, program: Program, step: Callable[[Program], Program]) -> None:
        super().__init__(program, {})
        self.step, self.decisive = step, decisive(program)

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if not isinstance(node.op, Loop) or is_scalar(node.op.body):
            return super().visit(node, args)
        body = node.op.body
        exact = node.op.decides or node in self.decisive
        done = self.step(inside(BodyProgram(body, exact), self.step))
        return self.visit_as(loop_of(body_of(body, done), node.op.course), node, args)


def is_scalar(body: Body) -> bool:
    """Whether there is nothing but numbers in a body."""
    return all(getattr(node.aval, "shape", None) == () for node in body.nodes())


class _Expander(Simplifier):
    """Goes into the bodies of loops too."""

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Loop):
            body = node.op.body
            return self.visit_as(loop_of(body_of(body, expand(BodyProgram(body))), node.op.course), node, args)
        return super().visit(node, args)


class _Demand:
    """What is read of the loops of a program: found from its ends backwards, so that what one loop no longer reads, another
    need not save. ``slack``: whether a loop has more than it needs."""

    def __init__(self, program: Program) -> None:
        nodes = program.nodes()
        loops = {(node.op, node.args): node for node in nodes if isinstance(node.op, Loop)}
        self.read: dict[Node, set[int]] = {}  # of each loop, the results
        self.same: dict[Node, Node] = {}  # a loop that another one runs too, saving more
        self.lists: dict[Node, int] = {}  # of a loop that runs as often as its sequences are long: one that is there anyway
        self.slack = False
        if not loops:
            return
        first: dict[Node, Node] = {}  # of loops that are one
        for node in nodes:  # a loop is there twice where calls differ in the kinds of numbers that it gave
            if not isinstance(node.op, Loop):
                continue
            other = loops.get((node.op.saving(), node.args), node)
            if other is not node:
                self.same[node] = other
            first.setdefault(other, node)
        live = set(program.roots())
        for node in reversed(nodes):
            if isinstance(node.op, Loop):
                loop = self.same.get(node, node)
                if first[loop] is node and loop in self.read:
                    live.update(self._needed(loop, live))
            elif node in live and node.op is ITEM and isinstance(node.args[0].op, Loop):
                loop = self.same.get(node.args[0], node.args[0])
                self.read.setdefault(loop, set()).add(dict(node.params)["item"])
            elif node in live:
                live.update(node.args)

    def _needed(self, loop: Node, live: set[Node]) -> list[Node]:
        """The arguments of a loop that the results need which are read of it."""
        body, course = loop.op.body, loop.op.course
        firsts, lists, fixed = loop.op.split(loop.args)
        carry, inner = needed(body, course, self.read[loop])
        elements = [i for i, item in enumerate(body.elements) if item in inner]
        if course.test is None and course.count is None:
            elements = elements or [max(range(len(lists)), key=lambda i: lists[i] in live)]
            self.lists[loop] = elements[0]
        invariants = [i for i, item in enumerate(body.invariants) if item in inner]
        kept = [firsts[i] for i in carry] + [lists[i] for i in elements] + [fixed[i] for i in invariants]
        saved = {i for i in self.read[loop] if i >= len(firsts)}
        settled = _settled(body, course, firsts)
        number = any([is_filled(fixed[i]) for i in invariants])
        number |= bool(_given(body, course, firsts, self.read[loop])) or not self.read[loop].isdisjoint(_emptied(body, course))
        number |= len({fixed[i] for i in invariants}) < len(invariants)
        number |= any([_as_taken(loop.op, firsts, fixed[i]) is not fixed[i] for i in invariants])
        number |= _known_test(loop.op, firsts, self.read[loop]) is not None
        spare = len(kept) < len(loop.args) or len(saved) < len(body.saved)
        self.slack = self.slack or spare or number or bool(settled)
        return kept


class _Trimmer(Simplifier):
    """Rebuilds a program with trimmed loops."""

    def __init__(self, program: Program, demand: _Demand, exact: bool) -> None:
        super().__init__(program, {})
        self.demand, self.bits, self.decisive = demand, exact, decisive(program)
        self.decisive |= {other for node, other in demand.same.items() if node in self.decisive}
        self.trimmed: dict[Node, dict[int, Node]] = {}

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Loop):
            return super().visit(node, args)  # for its place in the order; what is read comes from ``_trim``
        if node.op is ITEM and isinstance(node.args[0].op, Loop):
            loop, item = self.demand.same.get(node.args[0], node.args[0]), dict(node.params)["item"]
            if item in self.demand.read.get(loop, ()):
                if loop not in self.trimmed:
                    self.trimmed[loop] = self._trim(loop)
                new = self.trimmed[loop][item]
                new.name = new.name or node.name
                return new
        return super().visit(node, args)

    def _trim(self, node: Node) -> dict[int, Node]:
        """Where the results that are read come from: a loop with only what they need."""
        op: Loop = node.op
        n = len(op.body.carry)
        firsts, lists, fixed = ([self.mapping[arg] for arg in part] for part in op.split(node.args))
        read = {i: i for i in self.demand.read[node]}
        body, course = op.body, op.course
        found: dict[int, Node] = {}
        if (test := _known_test(op, firsts, read)) is not None:
            return self._once(body, [*firsts, *fixed], self.demand.read[node]) if test else dict(enumerate(firsts))
        settled = _settled(body, course, firsts)
        for i, twin in settled.items():
            if i in read and twin == i:
                found[i] = firsts[i]
            elif i in read:
                read[i] = twin
        ends = {place for item, place in read.items() if item not in found}
        emptied = {i: rows for i, rows in _emptied(body, course).items() if i in ends and i not in settled}
        ends -= {*emptied}
        given = {i for i in _given(body, course, firsts, ends) if i not in settled}
        held = [i for i in range(n) if settled.get(i) == i or i in given]
        fixed = [_as_taken(op, firsts, value) for value in [*fixed, *(firsts[i] for i in held)]]
        body = _without(body, course, settled, fixed, held, given, self.graph.arrays)
        carry, inner = needed(body, course, ends, settled)
        saved = sorted(i - n for i in ends if i >= n)
        elements = [i for i, item in enumerate(body.elements) if item in inner]
        if not elements and node in self.demand.lists:
            elements = [self.demand.lists[node]]
        kept = [
            i for i, item in enumerate(body.invariants) if item in inner and item.op is not CAPTURED and not is_filled(item)
        ]
        small = Body(
            body.graph,
            [body.carry[i] for i in carry],
            body.index,
            [body.elements[i] for i in elements],
            [body.invariants[i] for i in kept],
            [body.after[i] for i in carry],
            [body.saved[i] for i in saved],
        )
        test = None if course.test is None else carry.index(course.test)
        exact = self.bits or op.decides or node in self.decisive
        made = simplified(small, replace(course, test=test), exact)
        args = [*(firsts[i] for i in carry), *(lists[i] for i in elements), *(fixed[i] for i in kept)]
        before = dict(node.params).get("arrays", ())
        arrays = tuple([place for place, i in enumerate(saved) if i in before])
        params = (("arrays", arrays),) if arrays else ()
        new = self.graph.add(made, tuple(args), params, tuple([node.aval[i] for i in [*carry, *(n + i for i in saved)]]))
        new.line, new.phase = node.line, node.phase
        places = {i: place for place, i in enumerate([*carry, *(n + i for i in saved)])}
        for item, place in read.items():
            if place in emptied:
                params = (("spec", emptied[place]),)
                zero = self.graph.const(const(op.body.after[place].args[1]))
                found[item] = self.graph.add(index.SETITEM, (firsts[place], zero), params, node.aval[place])
            elif item not in found:
                found[item] = self.graph.add(ITEM, (new,), (("item", places[place]),), node.aval[place])
                found[item].line, found[item].phase = node.line, node.phase
        return found

    def _once(self, body: Body, given: list[Node], ends: Iterable[int]) -> dict[int, Node]:
        """What the body makes of what it is ``given``, without a loop."""
        copier = Simplifier(BodyProgram(body), {})
        copier.graph, mapping = self.graph, copier.mapping
        mapping |= {**dict(zip([*body.carry, *body.invariants], given, strict=True)), body.index: self.graph.const(0)}
        results = {i: body.after[i] for i in ends}
        for node in ancestors(results.values()):
            if node not in mapping:
                mapping[node] = copier.again(node)
        return {i: mapping[node] for i, node in results.items()}


def _known_test(loop: Loop, firsts: list[Node], read: Iterable[int]) -> Any:
    """Whether a loop that may run once does, where that is known; False for one that runs not at all. It leaves no lists."""
    test = loop.course.test
    if test is None or any([i >= len(firsts) for i in read]):
        return None
    known = const(firsts[test])
    return known if loop.course.once or not known else None


def _as_taken(loop: Loop, firsts: list[Node], value: Node) -> Node:
    """What a loop is given, where it runs: of what the other side of a decision leaves, what that began with."""
    while value.op is ITEM and loop.course.once and isinstance(value.args[0].op, Loop) and value.args[0].op.course.once:
        other, place = value.args[0], dict(value.params)["item"]
        tests = firsts[loop.course.test], other.args[other.op.course.test]  # type: ignore[index]
        if place >= len(other.op.body.carry) or not _are_opposite(*tests):
            break
        value = other.args[place]
    return value


def _are_opposite(test: Node, other: Node) -> bool:
    return any([a.op in _NOTS and a.args[0] is b for a, b in ((test, other), (other, test))])


def _settled(body: Body, course: Course, firsts: list[Node]) -> dict[int, int]:
    """The carried values that need not go round, but for the test: they stay what they were (their own number), or are always
    equal to another one (its number). What the test of a loop that runs once becomes is written nowhere: nothing equals it."""
    found: dict[int, int] = {}
    seen: dict[Any, int] = {}
    true = _stay_true(body, [i for i, first in enumerate(firsts) if i != course.test and _is_true(first)])
    for i, (item, after, first) in enumerate(zip(body.carry, body.after, firsts, strict=True)):
        if i == course.test:
            if not course.once:
                seen.setdefault((first, after), i)
            continue
        same = after.op is CONST and first.op is CONST and repr(after.params) == repr(first.params)
        if after is item or (same and after.aval == first.aval) or i in true:
            found[i] = i
        elif seen.setdefault((first, after), i) != i:
            found[i] = seen[first, after]
    return found


def _is_true(first: Node) -> bool:
    """Whether it is a mask of all that there is."""
    return isinstance(first.aval, Aval) and first.aval.dtype == bool and bool(filling(first))


def _stay_true(body: Body, masks: Iterable[int], known: Collection[Node] = ()) -> set[int]:
    """Which of these carried masks have all in them after each iteration, if they, and those ``known``, begin so."""
    kept = {*masks}
    while kept:
        true = _true(body, {body.carry[i] for i in kept}.union(known))
        found = {i for i in kept if body.after[i] in true}
        if found == kept:
            break
        kept = found
    return kept


def _true(body: Body, given: Collection[Node]) -> set[Node]:
    """The masks in a body that have all in them if those ``given`` have: they are made of such, or of more."""
    true, loops = {*given}, dict[Node, set[int]]()
    for node in body.nodes():
        if isinstance(node.op, Loop):
            firsts, _, fixed = node.op.split(node.args)
            begin = [i for i, first in enumerate(firsts) if i != node.op.course.test and (first in true or _is_true(first))]
            within = {item for item, value in zip(node.op.body.invariants, fixed, strict=True) if value in true}
            loops[node] = _stay_true(node.op.body, begin, within)
        elif node.op is ITEM and node.args[0] in loops:
            if dict(node.params)["item"] in loops[node.args[0]]:
                true.add(node)
        elif node.op in _OF_MASKS:
            made = node.args[: _OF_MASKS[node.op]]
            known = [arg in true or _is_true(arg) for arg in made]
            if (any(known) if is_op(node, np.logical_or) else all(known)) and elements_of(node.args[0]):
                true.add(node)
    return true


# of how many arguments masks are made
_OF_MASKS = {index.GETITEM: 1, index.SETITEM: 2, REGISTRY[np.logical_or]: 2, REGISTRY[np.logical_and]: 2} | {
    REGISTRY[key]: 1 for key in (np.any, np.all, np.broadcast_to, np.reshape, np.expand_dims, np.squeeze, np.transpose)
}


def is_filled(node: Node) -> bool:
    """Whether it is a number, or an array of one number."""
    return filling(node) is not None


def _given(body: Body, course: Course, firsts: list[Node], ends: Container[int]) -> list[int]:
    """The carried values that a loop reads but leaves to nobody, and numbers that it computes with, where it runs once; else
    arrays of which each iteration reads another row, and only then writes into that one."""
    if not course.once:
        return _read_by_rows(body, course, ends)
    readers: dict[Node, set[Any]] = {}
    for node in body.nodes():
        for arg in node.args:
            readers.setdefault(arg, set()).add(ITEM if isinstance(node.op, Loop) else node.op)
    return [
        i
        for i, (item, first) in enumerate(zip(body.carry, firsts, strict=True))
        if item in readers
        and i != course.test
        and (i not in ends or (is_filled(first) and readers[item].isdisjoint(_IN_PLACE)))
    ]


def _read_by_rows(body: Body, course: Course, ends: Container[int]) -> list[int]:
    """The carried arrays that a loop leaves to nobody, of which each iteration reads and then writes a row of its own: what is
    written there is never read."""
    return [i for i in _rows_of(body, course) if i not in ends]


def _emptied(body: Body, course: Course) -> dict[int, index.Spec]:
    """Those into whose rows it writes a number, and all those rows: as cotangents of what a loop wrote are set to zero."""
    return {i: rows for i, rows in _rows_of(body, course).items() if course.count and body.after[i].args[1].op is CONST}


def _rows_of(body: Body, course: Course) -> dict[int, index.Spec]:
    """The carried arrays of which each iteration reads and then writes a row of its own, and those of all iterations."""
    readers = body.readers
    results, found = Counter([*body.after, *body.saved]), dict[int, index.Spec]()
    for i, (item, node) in enumerate(zip(body.carry, body.after, strict=True)):
        if course.count is None or node.op is not index.SETITEM or node.args[0] is not item or len(node.args) != 3:
            continue
        place, spec = node.args[2], dict(node.params)["spec"]
        alone = node not in readers and results[node] == 1 and results[item] == 0
        if not alone or place.aval.shape or (rows := rows_at(spec, place, body, course)) is None:
            continue
        read = [reader for reader in readers[item] if reader is not node]
        if all([one.op is index.GETITEM and one.args == (item, place) and one.params == (("spec", spec),) for one in read]):
            found[i] = rows
    return found


def _without(
    body: Body,
    course: Course,
    settled: dict[int, int],
    fixed: list[Node],
    held: list[int],
    given: Container[int],
    arrays: Mapping[Node, Any],
) -> Body:
    """The body with the values ``held`` that go round taken for invariants, equal ones for one, and numbers put in, as masks
    and places are that are ``arrays`` in the code; ``fixed`` are all those invariants. What is but ``given`` may
    still be left to others."""
    known = {value: arrays[value] for value in fixed if value in arrays and is_whole(arrays[value])}
    if not settled and not held and not known and len(set(fixed)) == len(fixed) and not any(map(is_filled, fixed)):
        return body
    copier = _Filler(body, course)
    more: list[Node] = []
    first: dict[Node, Node] = {}  # of invariants that are one
    for item, value in zip([*body.invariants, *(body.carry[i] for i in held)], fixed, strict=True):
        if value in known:
            made = copier.graph.captured(known[value])
        else:
            made = filled_again(copier.graph, value) if is_filled(value) else copier.graph.stand_in(item)
        copier.mapping[item] = first.setdefault(value, made)
        more.append(made)
    same = {body.carry[i]: body.carry[twin] for i, twin in settled.items() if twin != i}
    new = copied(body, copier, same)
    carry = [_left(copier.graph, item) if i in given else new.carry[i] for i, item in enumerate(body.carry)]
    return replace(new, carry=carry, invariants=more)


class _Filler(Simplifier):
    """Rebuilds the body of a loop in which arrays turn out to be of one number: their items are it, wherever they are."""

    def __init__(self, body: Body, course: Course) -> None:
        super().__init__(BodyProgram(body), {})
        self.body, self.course = body, course

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op is index.GETITEM and len(args) == 2 and is_filled(args[0]) and (place := self._place(node)) is not None:
            params = (("spec", (place, *dict(node.params)["spec"][1:])),)
            return self.make(node.op, args[:1], params, node.aval)
        return super().visit(node, args)

    def _place(self, node: Node) -> int | None:
        """The first of the rows that the iterations read, if all are there; None where that is not known."""
        (first, *rest), count = dict(node.params)["spec"], self.course.count if self.course.test is None else None
        if type(first) is not index.Hole or any(type(part) is index.Hole for part in rest) or not count:
            return None
        rows = [index_at(node.args[1], self.body, self.course, i) for i in (0, count - 1)]
        size = node.args[0].aval.shape[0]
        return rows[0] if all([row is not None and -size <= row < size for row in rows]) else None


def _left(graph: Graph, item: Node) -> Node:
    """A carried value that no iteration reads."""
    made: Node = graph.input(("left", item), item.aval)
    made.name = item.name
    return made


def filled_again(graph: Graph, value: Node) -> Node:
    """The number, or the array of one number, in another graph."""
    if value.op is CONST:
        return graph.const(const(value))
    made: Node = graph.add(value.op, tuple([filled_again(graph, arg) for arg in value.args]), value.params, value.aval)
    made.phase = value.phase
    return made


def copied(
    body: Body,
    copier: Simplifier,
    same: dict[Node, Node],
    elements: Sequence[Node] = (),
    invariants: Sequence[Node] = (),
    saved: Sequence[Node] = (),
) -> Body:
    """The body in the graph of ``copier``, which may know some of its nodes already.

    ``same`` names inputs that equal other ones; ``elements`` and ``invariants`` are further inputs, of the new graph, and
    ``saved`` what is saved besides, of the old one.
    """
    mapping = copier.mapping
    for node in ancestors([*body.inputs, *body.after, *body.saved, *saved]):
        if node not in mapping:
            twin = same.get(node, node)  # which may be a later one
            if twin not in mapping:
                mapping[twin] = copier.again(twin)
            mapping[node] = mapping[twin]

    made = body.renamed(copier.graph, mapping)
    return replace(
        made,
        elements=[*made.elements, *elements],
        invariants=[*made.invariants, *invariants],
        saved=[*made.saved, *[mapping[node] for node in saved]],
    )


class BodyProgram(Program):
    """A body as a program, whose outputs are all that there is in it; ``exact``: to the bit, for a decision hangs on it."""

    def __init__(self, body: Body, exact: bool = False) -> None:
        super().__init__()
        self.graph = body.graph
        ends = [*body.inputs, *body.after, *body.saved]
        self.root = Leaf(list(ends), TreeDef(tuple), [])
        self.exact, self.rounds = exact, dict(zip(body.carry, body.after, strict=False))

    def settled(self) -> set[Node]:
        return {node for node in self.nodes() if self.exact and node.phase is None}


def simplified(body: Body, course: Course, exact: bool) -> Loop:
    """The loop of a body, simplified, and the loops in it trimmed; ``exact``: to the bit, for a decision hangs on it."""
    raw = loop_of(body, course)
    if exact not in raw.simplified:
        raw.simplified[exact] = made = _simplified(body, course, exact)
        made.simplified[exact] = made
    return raw.simplified[exact]


def _simplified(body: Body, course: Course, exact: bool) -> Loop:
    program = trim_loops(BodyProgram(body), exact)
    # how often a loop runs, and what is decided on its results, must not hang on rounding; derivatives decide nothing
    decided = program.nodes() if exact else decisive(program)
    done = Simplifier(program, SCALAR if is_scalar(body) else RULES).run({node for node in decided if node.phase is None})
    return loop_of(body_of(body, done), course)


def body_of(body: Body, program: Program) -> Body:
    """The body that a rewritten program is."""
    assert isinstance(program.root, Leaf)
    ends = iter(program.root.outputs)

    def of(nodes: list[Node]) -> list[Node]:
        return [next(ends) for _ in nodes]

    carry, (number,) = of(body.carry), of([body.index])
    return Body(program.graph, carry, number, of(body.elements), of(body.invariants), of(body.after), of(body.saved))


# -- rows of arrays ------------------------------------------------------------------------------------------------


def rows_at(spec: index.Spec, place: Node, body: Body, course: Course) -> index.Spec | None:
    """The part of an array that all iterations of a loop name together, each one by ``spec``, whose only array is ``place``:
    a row each, the ``i``-th one of that part the iteration of number ``i``; None for anything else."""
    first, *rest = spec
    if type(first) is not index.Hole or any(type(part) not in (int, index.Slice) for part in rest):
        return None
    start, second, last = [index_at(place, body, course, i) for i in (0, 1, (course.count or 1) - 1)]
    if start is None or min(start, last) < 0 or start == second:
        return None
    stop = last + second - start
    return (index.Slice(start, stop if stop >= 0 else None, second - start), *rest)


def index_at(node: Node, body: Body, course: Course, i: int) -> Any:
    """What the loop's index, or that moved by a number, is in an iteration; None for anything else."""
    if node is body.index:
        return course.start + course.step * i
    if is_op(node, np.add) or is_op(node, np.subtract):
        a, b = [const(arg) if arg.op is CONST else index_at(arg, body, course, i) for arg in node.args]
        if type(a) is int and type(b) is int:
            return a + b if is_op(node, np.add) else a - b
    return None


def rows_apart(program: Program) -> Program:
    """The same program; where its loops add to another row of an array in each iteration, the rows are saved, and added after
    the loop, all together."""
    return _rows_apart(inside(program, _rows_apart) if has_nests(program) else program)


def _rows_apart(program: Program) -> Program:
    plans = {node: plan for node in program.nodes() if isinstance(node.op, Loop) and (plan := _rows_added(node.op))}
    return trim_loops(_RowAdder(program, plans).run()) if plans else program


def _rows_added(op: Loop) -> dict[int, list[tuple[Node, index.Spec]]]:
    """Of carried values that a loop does nothing with but add to their rows: what is added, and where all iterations do."""
    body, course = op.body, op.course
    found: dict[int, list[tuple[Node, index.Spec]]] = {}
    if course.count is None or course.test is not None:
        return found
    reads: dict[Node, int] = {}
    for read in [*(arg for node in body.nodes() for arg in node.args), *body.after, *body.saved]:
        reads[read] = reads.get(read, 0) + 1
    for i, (item, node) in enumerate(zip(body.carry, body.after, strict=True)):
        added = []
        while node.op is index.INDEX_ADD and len(node.args) == 3 and reads[node] == 1:
            base, value, place = node.args
            each = dict(node.params)["spec"]
            spec = rows_at(each, place, body, course) if not place.aval.shape else None
            if (
                spec is None
                or value.aval.dtype != item.aval.dtype
                or value.aval.shape != index.region(each, item.aval.shape, (0,))
            ):
                break
            added.append((value, spec))
            node = base
        if node is item and added and reads[item] == 1:
            found[i] = added[::-1]
    return found


class _RowAdder(Simplifier):
    def __init__(self, program: Program, plans: dict[Node, dict[int, list[tuple[Node, index.Spec]]]]) -> None:
        super().__init__(program, {})
        self.plans = plans

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node in self.plans:
            body, plan = node.op.body, self.plans[node]
            after = [body.carry[i] if i in plan else item for i, item in enumerate(body.after)]
            more = [value for added in plan.values() for value, _ in added]
            made = loop_of(replace(body, after=after, saved=[*body.saved, *more]), node.op.course)
            aval = (*node.aval, *(ListAval(value.aval) for value in more))
            return self.graph.add(made, args, node.params, aval)
        plan = self.plans.get(node.args[0], {}) if node.op is ITEM else {}
        item = dict(node.params).get("item")
        if item not in plan:
            return super().visit(node, args)
        (loop,), total = args, self.mapping[node.args[0].args[item]]
        place = len(node.args[0].aval) + sum(len(added) for i, added in plan.items() if i < item)
        for value, spec in plan[item]:
            rows = self.item(loop, place)
            shape = (node.args[0].op.course.count, *value.aval.shape)
            whole = self.graph.add(STACK, (rows,), (("shape", shape),), Aval(shape, value.aval.dtype, "array"))
            total = self.graph.add(index.INDEX_ADD, (total, whole), (("spec", spec),), node.aval)
            total.phase = total.phase or node.phase or value.phase
            place += 1
        return total


# -- rules for numbers ---------------------------------------------------------------------------------------------
#
# Factors of arrays move outward, to meet in one multiplication. A number that is used several times keeps its factor:
# multiplying it once is the cheapest that there is.

_MOVING = (scales.negative, scales.multiply, scales.divide, scales.add, scales.subtract, scales.pull_factor,
           scales.pull_factors)  # fmt: skip
_OF_ARRAYS = (scales.numbers_of_product, scales.common_numbers, places.add_to_total, sums.shift_of_shares,
              zeros.add_zeros)  # fmt: skip
SCALAR: dict[Any, list[Rewrite]] = {
    op: [rule for rule in rules if rule not in (*_MOVING, *_OF_ARRAYS)] for op, rules in RULES.items()
}


@rewrite(np.multiply, rules=SCALAR)
def product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    for x, y in (args, args[::-1]):
        if is_number(x, -1.0) and y.aval.dtype == node.aval.dtype:
            return s.call(np.negative, y)
        if is_op(x, np.negative) and has_sign(x):
            return s.call(np.negative, s.call(np.multiply, x.args[0], y) if x is args[0] else s.call(np.multiply, y, x.args[0]))
    return None


@rewrite(np.add, rules=SCALAR, derived=True)
def total(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    if args[0] is args[1] and is_op(args[0], np.multiply) and type(half := const(args[0].args[0])) is float:
        return s.call(np.multiply, 2.0 * half, args[0].args[1])
    for x, y in (args, args[::-1]):
        if is_number(x, 0.0):
            return y
    return None


rewrite(np.add, np.subtract, of=(np.multiply,), rules=SCALAR, derived=True)(scales.common_number)


@rewrite(np.subtract, rules=SCALAR, derived=True)
def difference(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_number(b, 0.0):
        return a
    return s.call(np.negative, b) if is_number(a, 0.0) and b.aval.dtype == node.aval.dtype else None
