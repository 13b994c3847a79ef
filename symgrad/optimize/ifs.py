"""What an ``if`` reads of arrays, given to it in their place.

An ``if`` is a loop that runs once, or not at all, and what it takes its derivative takes, too. In a loop, an array of which it
reads a row would be kept whole for each iteration. So it is given the row, where that is known or read outside of it anyway;
else an ``if`` of the same test reads it, and nothing else: of that, a loop may keep the results. To read it without asking
would not do, for where the test is false there may be no such row.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from symgrad.ir import INPUT, Aval, Graph, Node, ancestors, size_of
from symgrad.ops import create
from symgrad.ops.engine import ITEM
from symgrad.ops.index import GETITEM, INDEX_ADD, SETITEM
from symgrad.optimize.loops import BodyProgram, copied, inside, trim_loops
from symgrad.optimize.places import FEW, Place, beside, counted, place_of
from symgrad.optimize.rewriting import Simplifier
from symgrad.program import Program
from symgrad.transform.loop import Body, Course, Loop, loop_of

T = TypeVar("T")


class Read(NamedTuple):
    """``x[index]`` in an ``if``, the last of ``path``, which lies in the one before it."""

    path: tuple[Node, ...]
    node: Node

    def within(self) -> Read:
        """The same, as seen from the body of the first one."""
        return Read(self.path[1:], self.node)


class Given(NamedTuple):
    """What is given for a read: its value, or an array to read it from."""

    read: Read
    source: Node
    whole: bool


class Apart(NamedTuple):
    """The reads of an ``if`` in one of its own: ``test`` and ``invariants`` are places of what it takes among its arguments."""

    op: Loop
    reads: list[Read]
    test: int
    invariants: list[int]

    def place(self, graph: Graph, args: Sequence[Node], line: Any) -> list[Node]:
        """What is read, on the arguments of the ``if``; zeros where that does not run."""
        avals = [read.node.aval for read in self.reads]
        given = [args[self.test], *(_zeros(graph, aval) for aval in avals), *(args[i] for i in self.invariants)]
        loop = graph.add(self.op, tuple(given), (), (args[self.test].aval, *avals))
        loop.line = line
        return [graph.add(ITEM, (loop,), (("item", i),), aval) for i, aval in enumerate(avals, 1)]


def is_if(node: Node) -> bool:
    return isinstance(node.op, Loop) and node.op.course.once


def reads_of(node: Node, place: int) -> list[Read] | None:
    """What an ``if``, and those in it, read of the array that it takes as argument ``place``; None where they do anything else
    with it than to read parts of it."""
    body: Body = node.op.body
    if place < len(body.carry) or (item := body.invariants[place - len(body.carry)]) in (*body.after, *body.saved):
        return None
    found: list[Read] = []
    for inner in body.nodes():
        if item not in inner.args:
            continue
        alone = inner.args.count(item) == 1
        if alone and inner.op is GETITEM and inner.args[0] is item:
            found.append(Read((node,), inner))
        elif alone and is_if(inner) and (more := reads_of(inner, inner.args.index(item))) is not None:
            found += [Read((node, *read.path), read.node) for read in more]
        else:
            return None
    return found


# -- what is known, or read anyway -----------------------------------------------------------------------------------


def give_reads(program: Program) -> Program:
    """The same program, whose ``if``s are given what they read of arrays where that was written or read before them."""
    if not any([isinstance(node.op, Loop) and node.op.forks for node in program.nodes()]):
        return program
    return trim_loops(_given(inside(program, _given)))


def _given(program: Program) -> Program:
    nodes = program.nodes()
    before: dict[Node, list[Node]] = {}  # what is read of each array
    for node in nodes:
        if node.op is GETITEM:
            before.setdefault(node.args[0], []).append(node)
    kept = {*program.roots(), *(node.args[0] for node in nodes if node.op in (SETITEM, INDEX_ADD))}  # to be written into
    kept |= {arg for node in nodes if isinstance(node.op, Loop) for arg in node.op.split(node.args)[0]}
    given = {node: some for node in nodes if is_if(node) and (some := [*_known(node, before, kept)])}
    return _Giver(program, given, {}).run() if given else program


def _known(node: Node, before: dict[Node, list[Node]], kept: Container[Node]) -> Iterator[Given]:
    """What an ``if`` reads that is there before it, or is there in an array to which fewer writes have been made: then nobody
    need make them, unless the last version is ``kept``."""
    for i, array in enumerate(node.args):
        for read in (size_of(array) and reads_of(node, i)) or ():
            if (place := _outside(read)) is None:
                continue
            source = beside(array, place, FEW)
            there = [one for one in before.get(source, ()) if one.index < node.index and place_of(one) == place]
            if source.op is SETITEM and place_of(source) == place and source.args[1].aval == read.node.aval:
                yield Given(read, source.args[1], whole=True)
            elif there and there[0].aval == read.node.aval:
                yield Given(read, there[0], whole=True)
            elif source is not array and array not in kept:
                yield Given(read, source, whole=False)


def _outside(read: Read) -> Place | None:
    """Where a read is, by what is there outside of the outermost ``if``; None where that is not known."""
    found = place_of(read.node)
    for outer in reversed(read.path):
        body: Body = outer.op.body
        given = dict(zip(body.invariants, outer.args[len(body.carry) :], strict=True))
        parts = [_counted_outside(part, given) if type(part) is tuple else part for part in found or (None,)]
        found = None if None in parts else tuple(parts)
    return found


def _counted_outside(number: tuple[Node | None, int], given: dict[Node, Node]) -> tuple[Node | None, int] | None:
    root, more = number
    outer = (None, 0) if root is None else counted(given[root]) if root in given else None
    return None if outer is None else (outer[0], outer[1] + more)


class _Giver(Simplifier):
    """Rebuilds a program, or the body of a loop: the ``if``s in it take what they are ``given``, or read it ``apart``."""

    def __init__(self, program: Program, given: dict[Node, list[Given]], apart: dict[Node, Apart]) -> None:
        super().__init__(program, {})
        self.given, self.apart = given, apart
        self.here: dict[Node, Given] = {}  # the reads in this very body

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        given = self.given.get(node, [])
        if (apart := self.apart.get(node)) is not None:
            for read, item in zip(apart.reads, apart.place(self.graph, args, node.line), strict=True):
                given = [*given, Given(read, item, whole=True)]
                self.mapping[item] = item
        if given:
            op, more = _taking(node.op, given)
            return self.visit_as(op, node, (*args, *[self.mapping[source] for source in more]))
        if (one := self.here.get(node)) is not None:
            source = self.mapping[one.source]
            return source if one.whole else self.graph.add(GETITEM, (source, *args[1:]), node.params, node.aval)
        return super().visit(node, args)


def _taking(op: Loop, given: list[Given]) -> tuple[Loop, list[Node]]:
    """An ``if`` that takes more for what it reads, and what it takes."""
    sources = list(dict.fromkeys([one.source for one in given]))
    inner = _by_if(given, lambda one: one.read)
    within = {node: [one._replace(read=one.read.within()) for one in some] for node, some in inner.items() if node is not None}
    copier = _Giver(BodyProgram(op.body), within, {})
    copier.here = {one.read.node: one for one in inner.get(None, [])}
    more = [copier.graph.stand_in(source) for source in sources]
    copier.mapping.update(zip(sources, more, strict=True))
    return loop_of(copied(op.body, copier, {}, invariants=more), op.course), sources


def _by_if(things: Sequence[T], read_of: Callable[[T], Read]) -> dict[Node | None, list[T]]:
    """What is of reads in the body of an ``if``, by the ``if`` within it in which they are; None for those in none."""
    found: dict[Node | None, list[T]] = {}
    for thing in things:
        found.setdefault(next(iter(read_of(thing).path[1:]), None), []).append(thing)
    return found


# -- what is read if ... -------------------------------------------------------------------------------------------


def read_apart(body: Body, plans: dict[Node, Apart]) -> Body:
    """The body of a loop, of which the ``if``s are given what other ones read for them."""
    return copied(body, _Giver(BodyProgram(body), {}, plans), {})


def apart_of(node: Node, reads: Sequence[Read]) -> Apart | None:
    """What an ``if`` reads, in one of its own; None where that takes more than numbers which the ``if`` is given."""
    body: Body = node.op.body
    inner = _by_if(reads, lambda read: read)
    parts: dict[Node, Apart] = {}
    for one, some in inner.items():
        if one is not None:
            if (part := apart_of(one, [read.within() for read in some])) is None:
                return None
            parts[one] = part
    here = [read.node for read in inner.get(None, [])]
    ends = [arg for one in here for arg in one.args]
    ends += [one.args[i] for one, part in parts.items() for i in (part.test, *part.invariants)]
    needed, given = ancestors(ends), set(body.invariants)
    if any([one not in given and (one.op is INPUT or not _is_number(one)) for one in needed]):
        return None
    copier = Simplifier(BodyProgram(body), {})
    graph, mapping = copier.graph, copier.mapping
    taken = [one for one in needed if one in given]
    invariants = [graph.stand_in(one) for one in taken]
    mapping.update(zip(taken, invariants, strict=True))
    for one in [*needed, *here]:
        if one not in mapping:
            mapping[one] = copier.visit(one, tuple([mapping[arg] for arg in one.args]))
    values, found = [mapping[one] for one in here], [*inner.get(None, [])]
    for one, part in parts.items():
        values += part.place(graph, [mapping.get(arg, arg) for arg in one.args], one.line)
        found += [Read((node, *read.path), read.node) for read in part.reads]
    test = body.carry[node.op.course.test]
    carry = [graph.stand_in(test), *(graph.input(("read", i), read.node.aval) for i, read in enumerate(found))]
    stop = graph.const(False if test.aval.kind == "python" else np.False_)
    made = Body(graph, carry, graph.stand_in(body.index), [], invariants, [stop, *values], [])
    places = [len(body.carry) + body.invariants.index(one) for one in taken]
    return Apart(loop_of(made, Course(test=0, once=True)), found, node.op.course.test, places)


def _is_number(node: Node) -> bool:
    return isinstance(node.aval, Aval) and not node.aval.shape


def _zeros(graph: Graph, aval: Aval) -> Node:
    """What is there where nothing is read."""
    if aval.shape:
        return graph.add(create.ZEROS, (), (("dtype", aval.dtype), ("shape", aval.shape)), aval)
    zero = aval.dtype.type(0)
    return graph.const(zero.item() if aval.kind == "python" else zero)
