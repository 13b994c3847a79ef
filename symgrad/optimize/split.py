"""Loops in loops taken in two: what an inner one computes alike in all iterations of the outer one is computed before.

So are the factors of a tridiagonal matrix that stays, in each step of a simulation. What is then the same in all iterations,
none of them saves.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from symgrad.ir import CAPTURED, CONST, Aval, Node, ancestors
from symgrad.ir import Sequence as ListAval
from symgrad.ops import index
from symgrad.ops.engine import ITEM
from symgrad.optimize.loops import BodyProgram, copied, has_nests, inside, trim_loops
from symgrad.optimize.rewriting import Simplifier
from symgrad.program import Program
from symgrad.transform.loop import Loop, loop_of

ARRAY = 10  # times as long as an operation on numbers, or as to read one from a list, one on arrays takes
MOST = 1 << 20  # bytes of what is kept of all iterations


def split(program: Program) -> Program:
    """The same program; what loops in its loops compute in each iteration of those alike, other ones compute before."""
    return _split(inside(program, _split)) if has_nests(program) else program


def _split(program: Program) -> Program:
    if not has_nests(program):
        return program
    splitter = _Splitter(program)
    found = splitter.run()
    return trim_loops(found) if splitter.found else program


class Part(NamedTuple):
    """What is taken out of a loop in another one: carried values, by their numbers, that need nothing of the rest, and what the
    rest reads of each iteration."""

    carry: list[int]
    read: list[Node]


class _Splitter(Simplifier):
    """Rebuilds a program whose loops have others in them."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, {})
        self.found = False
        self.same: dict[Node, dict[int, Node]] = {}  # of a loop, the lists among its results whose elements are all one value

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if not isinstance(node.op, Loop) or node.op.course.once:
            return super().visit(node, args)
        op, args = self._of_values(node.op, args)
        if op.course.count and any([isinstance(inner.op, Loop) for inner in op.body.nodes()]):
            inner = _Inner(self, op, args)
            body = copied(op.body, inner, {})
            if inner.given:
                self.found = True
                body = replace(body, invariants=[*body.invariants, *inner.given.values()])
                op, args = loop_of(body, op.course), (*args, *inner.given)
        new = self.visit_as(op, node, args)
        given = dict(zip(op.body.invariants, op.split(args)[2], strict=True))
        n = len(op.body.carry)
        self.same[new] = {n + i: given[item] for i, item in enumerate(op.body.saved) if item in given}
        return new

    def _of_values(self, op: Loop, args: tuple[Node, ...]) -> tuple[Loop, tuple[Node, ...]]:
        """A loop that is given a value in place of a list of nothing else."""
        body, (firsts, lists, fixed) = op.body, op.split(args)
        values = [self._only(one) for one in lists]
        if not any(values) or (op.course.count is None and op.course.test is None):
            return op, args
        self.found = True
        elements = [item for item, value in zip(body.elements, values, strict=True) if value is None]
        rest = [one for one, value in zip(lists, values, strict=True) if value is None]
        more = [(item, value) for item, value in zip(body.elements, values, strict=True) if value is not None]
        body = replace(body, elements=elements, invariants=[*body.invariants, *(item for item, _ in more)])
        return loop_of(body, op.course), (*firsts, *rest, *fixed, *(value for _, value in more))

    def _only(self, sequence: Node) -> Node | None:
        """The value that all elements of a list are."""
        return self.same.get(sequence.args[0], {}).get(dict(sequence.params)["item"]) if sequence.op is ITEM else None


class _Inner(Simplifier):
    """Rebuilds the body of a loop; what it takes out of the loops in it is put before it, in the program of ``outer``."""

    def __init__(self, outer: Simplifier, op: Loop, args: tuple[Node, ...]) -> None:
        super().__init__(BodyProgram(op.body), {})
        self.outer, self.readers = outer, op.body.readers
        self.before: dict[Node, Node] = dict(zip(op.body.invariants, op.split(args)[2], strict=True))  # what is fixed, there
        self.fixed = set(op.body.invariants)
        self.given: dict[Node, Node] = {}  # what the body is given besides: from before the loop, as an input

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if _is_of(node, self.fixed):
            self.fixed.add(node)
        if not isinstance(node.op, Loop) or node.params or (part := self._part(node)) is None:
            return super().visit(node, args)
        body, course, n = node.op.body, node.op.course, len(node.op.body.carry)
        results = self._taken(node, part)
        lists = dict(zip(part.read, results[len(part.carry) :], strict=True))
        known = dict(zip(part.carry, results, strict=False)) | {n + i: lists[x] for i, x in enumerate(body.saved) if x in lists}
        copier = Simplifier(BodyProgram(body), {})
        more = [copier.graph.stand_in(item) for item in part.read]
        copier.mapping |= zip(part.read, more, strict=True)
        places = [i for i in range(len(node.aval)) if i not in known]
        carry = [i for i in range(n) if i not in known]
        rest = replace(
            body,
            carry=[body.carry[i] for i in carry],
            after=[body.after[i] for i in carry],
            saved=[body.saved[i - n] for i in places if i >= n],
        )
        firsts, sequences, invariants = node.op.split(args)
        given = (*(firsts[i] for i in carry), *sequences, *(self._give(lists[item]) for item in part.read), *invariants)
        new = self.graph.add(
            loop_of(copied(rest, copier, {}, elements=more), course), given, (), tuple([node.aval[i] for i in places])
        )
        new.line, new.phase = node.line, node.phase
        for item in self.readers.get(node, ()):
            place = dict(item.params)["item"]
            if place in known:
                self.fixed.add(item)
                self.before[item] = known[place]
                self.mapping[item] = self._give(known[place])
            else:
                self.mapping[item] = self.graph.add(ITEM, (new,), (("item", places.index(place)),), item.aval)
        return new

    def _give(self, value: Node) -> Node:
        """In the body, what is there before the loop."""
        if value not in self.given:
            self.given[value] = self.graph.stand_in(value)
        return self.given[value]

    def _taken(self, node: Node, part: Part) -> list[Node]:
        """The results of what is taken out of a loop: its carried values, and lists."""
        op, graph = node.op, self.outer.graph
        firsts, lists, fixed = op.split(node.args)
        after = [op.body.after[i] for i in part.carry]
        needed = set(ancestors([*after, *part.read]))
        elements = [(item, one) for item, one in zip(op.body.elements, lists, strict=True) if item in needed]
        invariants = [(item, one) for item, one in zip(op.body.invariants, fixed, strict=True) if item in needed]
        body = replace(
            op.body,
            carry=[op.body.carry[i] for i in part.carry],
            elements=[item for item, _ in elements],
            invariants=[item for item, _ in invariants],
            after=after,
            saved=part.read,
        )
        args = [*(firsts[i] for i in part.carry), *(one for _, one in (*elements, *invariants))]
        avals = (*(item.aval for item in body.carry), *(ListAval(item.aval) for item in part.read))
        new = graph.add(loop_of(body, op.course), tuple(map(self._outside, args)), (), avals)
        new.line, new.phase = node.line, node.phase
        return [graph.add(ITEM, (new,), (("item", i),), aval) for i, aval in enumerate(avals)]

    def _outside(self, value: Node) -> Node:
        """What is fixed, before the loop."""
        copier = Simplifier(self.program, {})
        copier.graph, copier.mapping = self.outer.graph, self.before
        for node in ancestors([value]):
            if node not in self.before:
                self.before[node] = copier.again(node)
        return self.before[value]

    def _part(self, node: Node) -> Part | None:
        """What to take out of a loop, if that is worth it."""
        body, (firsts, lists, fixed) = node.op.body, node.op.split(node.args)
        if node.op.course.count is None or node.op.course.test is not None:
            return None
        pairs = zip([*body.elements, *body.invariants], [*lists, *fixed], strict=True)
        given = {body.index, *(item for item, one in pairs if one in self.fixed)}
        carry = [i for i, first in enumerate(firsts) if first in self.fixed]
        while True:
            alone = given | {body.carry[i] for i in carry}
            for inner in body.nodes():
                if _is_of(inner, alone):
                    alone.add(inner)
            if all([body.after[i] in alone for i in carry]):
                break
            carry = [i for i in carry if body.after[i] in alone]
        at_hand = set(given)  # what the rest may compute again
        for inner in body.nodes():
            if _is_free(inner) and _is_of(inner, at_hand):
                at_hand.add(inner)
        used = {*body.saved, *(after for i, after in enumerate(body.after) if i not in carry)}
        for inner in body.nodes():
            if inner not in alone or inner in at_hand:
                used.update(inner.args)
        read = [item for item in (*body.carry, *body.nodes()) if item in used and item in alone and item not in at_hand]
        size = sum([item.aval.nbytes if isinstance(item.aval, Aval) else math.inf for item in read])
        gain = sum([_time(inner) for inner in body.nodes() if inner in alone and inner not in at_hand])
        return Part(carry, read) if gain > len(read) and size * node.op.course.count <= MOST else None


def _is_of(node: Node, known: set[Node]) -> bool:
    """Whether a value is computed of what is ``known``, and the same each time."""
    return node.op in (CONST, CAPTURED) or (bool(node.args) and not _is_anew(node) and known.issuperset(node.args))


def _is_anew(node: Node) -> bool:
    return node.op.anew or (isinstance(node.op, Loop) and any(map(_is_anew, node.op.body.nodes())))


def _is_free(node: Node) -> bool:
    """Whether a value is as soon computed as read, or a place that other passes look at."""
    place = isinstance(node.aval, Aval) and node.aval.dtype.kind in "iub" and not isinstance(node.op, Loop)
    return place or node.op in (CONST, CAPTURED, index.GETITEM) or node.op.alias


def _time(node: Node) -> float:
    """About how long an operation takes, in those on numbers."""
    if node.op in (index.SETITEM, index.INDEX_ADD) and not node.args[1].aval.shape:
        return 1.0
    return ARRAY if isinstance(node.op, Loop) or (isinstance(node.aval, Aval) and node.aval.shape) else 1.0
