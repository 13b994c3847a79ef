"""Tables that loops write into, taken back write by write on the way back, so that nobody keeps copies of them.

A loop backwards reads of a table what each iteration began with; what the loop forwards saves for it is a copy of all of the
table for each of them. Where iterations read and write a few of its elements, the loop forwards saves what was there before.
The loop backwards begins with the table as it was in the end, and puts that back, iteration by iteration.
"""

from __future__ import annotations

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
_WRITES = (index.SETITEM, index.INDEX_ADD, index.SCATTER)


class Table(NamedTuple):
    """A carried value of a loop that it saves as an iteration begins: where it has it among those, and among what it saves; the
    writes to it, the last first; and where the loop backwards has it among its sequences."""

    place: int
    saved: int
    writes: list[Node]
    read: int


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
    plans = [plan for node in nodes if isinstance(node.op, Loop) and (plan := _plan(node, users)) is not None]
    return _Undoer(program, plans).run() if plans else program


def _plan(source: Node, users: dict[Node, list[Node]]) -> Plan | None:
    body, course = source.op.body, source.op.course
    kept = {i for i, item in enumerate(body.saved) if item in body.carry} - {*dict(source.params).get("arrays", ())}
    if course.backwards or course.once or not kept:
        return None
    found: dict[Node, list[Table]] = {}
    for item in users[source]:
        saved = dict(item.params)["item"] - len(body.carry)
        (reader, *others) = users[item]
        if saved not in kept or others or not isinstance(reader.op, Loop) or reader.op.course.test is not None:
            continue
        place = body.carry.index(body.saved[saved])
        firsts, sequences, fixed = reader.op.split(reader.args)
        alone = sequences.count(item) == 1 and item not in firsts and item not in fixed
        table = reader.op.body.elements[sequences.index(item)] if alone else None
        if table is None or not reader.op.course.backwards or not _reads_little(reader.op.body, table):
            continue
        if (writes := _writes(body, place)) is not None:
            found.setdefault(reader, []).append(Table(place, saved, writes, sequences.index(item)))
    return next((Plan(source, *pair) for pair in found.items()), None)


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


def _writes(body: Body, place: int) -> list[Node] | None:
    """The writes to a table in an iteration, the last first; None where it becomes more than a few of them make of it."""
    table, node = body.carry[place], body.after[place]
    if not isinstance(table.aval, Aval) or math.prod(table.aval.shape) < FEW:
        return None
    found: list[Node] = []
    ends = Counter([*body.after, *body.saved])
    ends[table] -= 1
    written = 0
    while node is not table:
        spec = dict(node.params).get("spec", ())
        plain = all([type(part) in (int, index.Hole, index.Slice) for part in spec])
        places = node.args[2:]
        if node.op is not index.SETITEM or not plain or any([one.aval.shape or one.aval.dtype.kind != "i" for one in places]):
            return None
        base = node.args[0]
        others = [reader for reader in body.readers[base] if reader.op in _WRITES and reader.args[0] is base]
        if len(others) > 1 or ends[node] != (not found):
            return None
        found.append(node)
        written += math.prod(_region(node))
        node = base
    return found if found and not ends[table] and PART * written <= math.prod(table.aval.shape) else None


def _region(write: Node) -> tuple[int, ...]:
    """The shape of what is written."""
    return index.region(dict(write.params)["spec"], write.aval.shape, [0] * (len(write.args) - 2))


class _Undoer(Simplifier):
    def __init__(self, program: Program, plans: list[Plan]) -> None:
        super().__init__(program, {})
        self.sources = {plan.source: plan for plan in plans}
        self.readers = {plan.reader: plan for plan in plans}
        self.kept: dict[Node, int] = {}  # where the loops save what was where they write, and where that is

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node in self.sources:
            return self._saving(self.sources[node], args)
        if node in self.readers:
            return self._undoing(self.readers[node], args)
        if node.op is ITEM and (node.args[0] in self.sources or node.args[0] in self.readers):
            item, old = dict(node.params)["item"], node.args[0]
            more = len(self.readers[old].tables) if old in self.readers and item >= len(old.op.body.carry) else 0
            return self._item(args[0], item + more)
        return super().visit(node, args)

    def _item(self, loop: Node, item: int) -> Node:
        return self.graph.add(ITEM, (loop,), (("item", item),), loop.aval[item])

    def _saving(self, plan: Plan, args: tuple[Node, ...]) -> Node:
        """The loop forwards, which saves what was there before each write, and where the loop backwards cannot tell, where."""
        node, again = plan.source, _Again(plan)
        body = node.op.body
        saved = [*body.saved]
        for table in plan.tables:
            for write in table.writes:
                base, _, *places = write.args
                shape = _region(write)
                aval = Aval(shape, write.aval.dtype, "array" if shape else "scalar")
                old = body.graph.add(index.GETITEM, (base, *places), write.params, aval)
                old.line = write.line
                self.kept[write] = table.saved if write is table.writes[0] else len(saved)
                saved[self.kept[write] :] = [old, *saved[self.kept[write] + 1 :]]
                for place in places:
                    if not again.is_known(place) and place not in self.kept:
                        self.kept[place] = len(saved)
                        saved.append(place)
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
        tables = {body.elements[table.read]: table for table in plan.tables}
        for item in body.inputs:
            if item not in tables:
                copier.mapping[item] = copier.visit(item, ())
        again = _Again(plan, copier)
        more: dict[int, Node] = {}  # elements of what the loop forwards saves for this

        def element(kept: int, aval: Any) -> Node:
            if kept not in more:
                more[kept] = copier.graph.input(("undone", kept), aval)
            return more[kept]

        carry, after = [], []
        for item, table in tables.items():
            state = copier.graph.input(("table", table.place), item.aval)
            state.name = item.name
            carry.append(state)
            for write in table.writes:
                _, _, *places = write.args
                shape = _region(write)
                old = element(self.kept[write], Aval(shape, item.aval.dtype, "array" if shape else "scalar"))
                where = [again.of(place) or element(self.kept[place], place.aval) for place in places]
                state = copier.graph.add(index.SETITEM, (state, old, *where), write.params, item.aval)
                state.phase, state.line = "backward", write.line
            after.append(state)
            copier.mapping[item] = state
        made = copied(body, copier, {})
        elements = [one for item, one in zip(body.elements, made.elements, strict=True) if item not in tables]
        kept = [one for item, one in zip(body.elements, sequences, strict=True) if item not in tables]
        made = replace(
            made,
            carry=[*made.carry, *carry],
            after=[*made.after, *after],
            elements=[*elements, *more.values(), *again.elements.values()],
            invariants=[*made.invariants, *again.invariants.values()],
        )
        ends = [self._item(source, table.place) for table in tables.values()]
        lists = [self._item(source, n + place) for place in more]
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
        made.line, made.phase = node.line, "backward"
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
