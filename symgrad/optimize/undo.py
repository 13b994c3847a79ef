"""Tables that loops write into, taken back write by write on the way back, so that nobody keeps copies of them.

A loop backwards reads of a table what each iteration began with; what the loop forwards saves for it is a copy of all of the
table for each of them. Where iterations read and write a few of its elements, the loop forwards saves what was there before.
The loop backwards begins with the table as it was in the end, and puts that back, iteration by iteration.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

from symgrad.ir import CAPTURED, CONST, Aval, Node
from symgrad.ir import Sequence as ListAval
from symgrad.ops import index
from symgrad.ops.engine import ITEM
from symgrad.optimize.loops import BodyProgram, copied
from symgrad.optimize.rewriting import Simplifier
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop, loop_of

FEW = 16  # elements of a table, of which a copy costs no more than to write to it twice
PART = 4  # times as large as what an iteration writes to it a table is whose writes are undone


class Table(NamedTuple):
    """A carried value of a loop: which one it is, the writes to it, the last first; and of what it is between them, as an
    iteration begins or ends, what is saved: where among that, and among the sequences of the loop backwards."""

    place: int
    writes: list[Node]
    reads: dict[Node, tuple[int, int]]


class Plan(NamedTuple):
    """A loop that saves tables, the one backwards that reads them, and these."""

    source: Node
    reader: Node
    tables: list[Table]


def undo(program: Program) -> Program:
    """The same program, its loops without copies of tables."""
    nodes = program.nodes()
    if not any([isinstance(node.op, Loop) and node.op.course.backwards for node in nodes]):
        return program
    users: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for arg in node.args:
            users[arg].append(node)
    for root in program.roots():
        users[root].append(root)
    plans: dict[Node, Plan] = {}  # by the loop backwards, of which each reads the tables of one
    for node in nodes:
        if isinstance(node.op, Loop) and (plan := _plan(node, users)) is not None:
            plans.setdefault(plan.reader, plan)
    return _Undoer(program, [*plans.values()]).run() if plans else program


def _plan(source: Node, users: dict[Node, list[Node]]) -> Plan | None:
    body, course = source.op.body, source.op.course
    if course.backwards or course.once:
        return None
    arrays = dict(source.params).get("arrays", ())
    found: dict[Node, dict[int, Table]] = {}
    for item in [user for user in users[source] if user.op is ITEM]:
        saved = dict(item.params)["item"] - len(body.carry)
        (reader, *others) = users[item]
        if saved < 0 or saved in arrays or others or not isinstance(reader.op, Loop):
            continue
        chain = _chain(body, body.saved[saved])
        firsts, sequences, fixed = reader.op.split(reader.args)
        alone = sequences.count(item) == 1 and item not in firsts and item not in fixed
        back = reader.op.course.backwards and reader.op.course.test is None
        if chain is None or not alone or not back:
            continue
        read = sequences.index(item)
        if _reads_little(reader.op.body, reader.op.body.elements[read]):
            table = found.setdefault(reader, {}).setdefault(chain[0], Table(*chain, {}))
            table.reads[body.saved[saved]] = saved, read
    for reader, tables in found.items():
        whole = [table for table in tables.values() if _is_whole(body, table)]
        if whole:
            return Plan(source, reader, whole)
    return None


def _chain(body: Body, version: Node) -> tuple[int, list[Node]] | None:
    """Which carried value it is, or becomes, and the writes to that in an iteration, the last first; None for anything else."""
    table = version
    while table.op is index.SETITEM:
        table = table.args[0]
    if table not in body.carry or not isinstance(table.aval, Aval) or math.prod(table.aval.shape) < FEW:
        return None
    place, found, written = body.carry.index(table), list[Node](), 0
    node = body.after[place]
    while node is not table:
        spec = dict(node.params).get("spec", ())
        plain = all([type(part) in (int, index.Hole, index.Slice) for part in spec])
        if (
            node.op is not index.SETITEM
            or not plain
            or any([one.aval.shape or one.aval.dtype.kind != "i" for one in node.args[2:]])
        ):
            return None
        found.append(node)
        written += math.prod(_region(node).shape)
        node = node.args[0]
    among = version is table or version in found
    return (place, found) if found and among and PART * written <= math.prod(table.aval.shape) else None


def _is_whole(body: Body, table: Table) -> bool:
    """Whether what a table is between writes is nothing's but the next one's, and what is saved of it is known here."""
    ends = Counter([*body.after, *body.saved])
    start = body.carry[table.place]
    for node in (start, *table.writes):
        if ends[node] != (node in table.reads) + (node is table.writes[0]):
            return False
        written = [reader for reader in body.readers.get(node, ()) if reader.op in index.SCATTERING and reader.args[0] is node]
        if len(written) != (node is not table.writes[0]):
            return False
    return len(table.reads) <= len(table.writes)


def _reads_little(body: Body, table: Node) -> bool:
    """Whether nothing is read of a table, or computed of it, that takes as long as a copy; loops read parts of it at a time."""
    size, read = math.prod(table.aval.shape) if isinstance(table.aval, Aval) else 0, 0
    if table in body.after or table in body.saved:
        return False
    for reader in set(body.readers.get(table, ())):
        if reader.op is index.GETITEM and reader.args.count(table) == 1:
            read += math.prod(reader.aval.shape)
        elif isinstance(reader.op, Loop):
            firsts, sequences, fixed = reader.op.split(reader.args)
            inner = dict(zip(fixed, reader.op.body.invariants, strict=True))
            if table in firsts or table in sequences or not _reads_little(reader.op.body, inner[table]):
                return False
        else:
            return False
    return PART * read <= size


def _region(write: Node) -> Aval:
    """What is written over."""
    shape = index.region(dict(write.params)["spec"], write.aval.shape, [0] * (len(write.args) - 2))
    return Aval(shape, write.aval.dtype, "array" if shape else "scalar")


class _Undoer(Simplifier):
    def __init__(self, program: Program, plans: list[Plan]) -> None:
        super().__init__(program, {})
        self.sources = {plan.source: plan for plan in plans}
        self.readers = {plan.reader: plan for plan in plans}
        # where each loop saves what was where it writes, and where that is; two loops may have one body
        self.kept: dict[Node, dict[Node, int]] = {plan.source: {} for plan in plans}

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node in self.sources:
            return self._saving(self.sources[node], args)
        if node in self.readers:
            return self._undoing(self.readers[node], args)
        if node.op is ITEM and (node.args[0] in self.sources or node.args[0] in self.readers):
            item, old = dict(node.params)["item"], node.args[0]
            more = len(self.readers[old].tables) if old in self.readers and item >= len(old.op.body.carry) else 0
            return self.item(args[0], item + more)
        return super().visit(node, args)

    def _saving(self, plan: Plan, args: tuple[Node, ...]) -> Node:
        """The loop forwards, which saves what was there before each write, and where the loop backwards cannot tell, where."""
        node, again = plan.source, _Again(plan)
        body, kept = node.op.body, self.kept[node]
        saved = [*body.saved]
        for table in plan.tables:
            free = [place for place, _ in table.reads.values()]
            for write in table.writes:
                base, _, *places = write.args
                old = body.graph.add(index.GETITEM, (base, *places), write.params, _region(write))
                old.line = write.line
                kept[write] = place = free.pop() if free else len(saved)
                saved[place:] = [old, *saved[place + 1 :]]
                for where in places:
                    if not again.is_known(where) and where not in kept:
                        kept[where] = len(saved)
                        saved.append(where)
        made = loop_of(replace(body, saved=saved), node.op.course)
        aval_of_all = (*[item.aval for item in body.carry], *[ListAval(item.aval) for item in saved])
        new = self.visit_as(made, node, args)
        new.aval = aval_of_all
        return new

    def _undoing(self, plan: Plan, args: tuple[Node, ...]) -> Node:
        """The loop backwards, in which the tables go round."""
        source, body = self.mapping[plan.source], plan.reader.op.body
        n = len(plan.source.op.body.carry)
        firsts, sequences, fixed = plan.reader.op.split(args)
        copier = Simplifier(BodyProgram(body), {})
        gone = {body.elements[read] for table in plan.tables for _, read in table.reads.values()}
        for item in body.inputs:
            if item not in gone:
                copier.mapping[item] = copier.visit(item, ())
        again, saved = _Again(plan, copier), self.kept[plan.source]
        more: dict[int, Node] = {}  # elements of what the loop forwards saves for this

        def element(kept: int, aval: Any) -> Node:
            if kept not in more:
                more[kept] = copier.graph.input(("undone", kept), aval)
            return more[kept]

        def undone(state: Node, write: Node) -> Node:
            _, _, *places = write.args
            old = element(saved[write], _region(write))
            where = [again.of(place) or element(saved[place], place.aval) for place in places]
            state = copier.graph.add(index.SETITEM, (state, old, *where), write.params, state.aval)
            state.phase, state.line = "backward", write.line
            return state

        carry, left = [], []
        for table in plan.tables:
            first = plan.source.op.body.carry[table.place]
            state = copier.graph.input(("table", table.place), first.aval)
            state.name = first.name
            carry.append(state)
            writes, reads = [*table.writes], {version: body.elements[read] for version, (_, read) in table.reads.items()}
            for version in (*table.writes, first):
                if version in reads:
                    copier.mapping[reads.pop(version)] = state
                if reads:
                    state = undone(state, writes.pop(0))
            left.append((state, writes))
        made = copied(body, copier, {})
        after = [functools.reduce(undone, writes, state) for state, writes in left]  # when all is read
        elements = [one for item, one in zip(body.elements, made.elements, strict=True) if item not in gone]
        kept = [one for item, one in zip(body.elements, sequences, strict=True) if item not in gone]
        made = replace(
            made,
            carry=[*made.carry, *carry],
            after=[*made.after, *after],
            elements=[*elements, *more.values(), *again.elements.values()],
            invariants=[*made.invariants, *again.invariants.values()],
        )
        ends = [self.item(source, table.place) for table in plan.tables]
        lists = [self.item(source, n + place) for place in more]
        lists += [self.mapping[arg] for arg in again.elements]
        every = (*firsts, *ends, *kept, *lists, *fixed, *[self.mapping[arg] for arg in again.invariants])
        new = self.visit_as(loop_of(made, plan.reader.op.course), plan.reader, every)
        new.aval = (*[item.aval for item in made.carry], *[ListAval(item.aval) for item in made.saved])
        return new


class _Again:
    """What the loop backwards computes again of where the one forwards wrote: of its index and of what both are given."""

    def __init__(self, plan: Plan, copier: Simplifier | None = None) -> None:
        source, reader = plan.source, plan.reader
        self.body, self.copier = source.op.body, copier
        _, sequences, fixed = source.op.split(source.args)
        self.given = dict(zip([*self.body.elements, *self.body.invariants], [*sequences, *fixed], strict=True))
        course, back = source.op.course, reader.op.course
        self.counts = course.test is None and (course.start, course.step) == (back.start, back.step)
        _, sequences, fixed = reader.op.split(reader.args)
        inputs = zip([*sequences, *fixed], [*reader.op.body.elements, *reader.op.body.invariants], strict=True)
        self.there = dict(inputs)
        self.index = reader.op.body.index
        self.elements: dict[Node, Node] = {}  # further ones, by what they are of
        self.invariants: dict[Node, Node] = {}

    def is_known(self, node: Node) -> bool:
        """Whether it can be computed again."""
        if node is self.body.index:
            return self.counts
        if node in self.given or node.op in (CONST, CAPTURED):
            return True
        return (
            bool(node.args)
            and not isinstance(node.op, Loop)
            and node not in self.body.carry
            and all(map(self.is_known, node.args))
        )

    def of(self, node: Node) -> Node | None:
        """The same in the loop backwards; None where it cannot be computed again."""
        assert self.copier is not None
        if not self.is_known(node):
            return None
        graph = self.copier.graph
        if node is self.body.index:
            return self.copier.mapping[self.index]
        if node in self.given:
            return self._input(node, self.given[node])
        if node.op is CONST:
            return graph.const(dict(node.params)["value"])
        if node.op is CAPTURED:
            return graph.captured(self.body.graph.arrays[node])
        args = [self.of(arg) for arg in node.args]
        made: Node = graph.add(node.op, tuple([arg for arg in args if arg is not None]), node.params, node.aval)
        made.line, made.phase, made.exact = node.line, "backward", node.exact
        return made

    def _input(self, node: Node, arg: Node) -> Node:
        assert self.copier is not None
        if arg in self.there:
            return self.copier.mapping[self.there[arg]]
        some = self.elements if node in self.body.elements else self.invariants
        if arg not in some:
            some[arg] = self.copier.graph.input(("again", len(self.elements) + len(self.invariants)), node.aval)
            some[arg].name = node.name
        return some[arg]
