"""Outlines: how the body of a loop is made of the pattern that iterations follow.

Not all that a pattern tells of is in the body: it carries the locals that iterations read from the one before, or that are read
when the loop is over, and leaves alone what nobody asks for. In an open loop all that is left behind must be in the pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from symgrad.ir import CONST, Aval, Graph, Node, content_of
from symgrad.loops.patterns import COUNTER, EXIT, INT, TEST, TRACED, UNSEEN, Boundary, Key, Part, Pattern, joined
from symgrad.ops.engine import NAMED, RANGE
from symgrad.transform.loop import Body


class Outline(NamedTuple):
    """Iterations that follow the ``pattern``, from the boundary ``start`` to ``end``.

    ``kinds`` are those of what goes round, where iterations went different ways; ``private`` the names of locals that nothing
    but the loop reads; ``open``: other calls may run more iterations, or none.
    """

    pattern: Pattern
    start: Boundary
    end: Boundary
    kinds: Mapping[Key, Any]
    private: frozenset[str]
    open: bool

    def kind(self, key: Key) -> Any:
        """What is known of a local when the loop is over; where iterations went different ways, of what goes round."""
        return self.kinds[key] if key in self.kinds else self.end.nodes[key].aval

    def reads_outside(self, key: Key) -> bool:
        """Whether something but the loop may read what is there."""
        return is_read_outside(key, self.private)

    def wanted(self, aliases: set[Key]) -> tuple[list[Key], list[Key]] | None:
        """The locals that go round; and those that each iteration makes anew, and that are there when the loop is
        over. ``aliases`` cannot be bound to a result."""
        start, end, steps, after = self.start, self.end, self.pattern.steps, self.pattern.after
        moved = [key for key, what in after.items() if what != ("same", start.nodes.get(key))]  # others are as they were
        read = {key for key in moved if self.reads_outside(key) or start.holds.get(key) is end.holds[key]}
        used = {what[1] for step in steps for what in step[3] if what[0] == "carry"}
        if self.open:
            used |= {key for key in (TEST, EXIT) if key in after}
        waiting = [*used, *read]
        while waiting:  # what is carried on may come from what was carried in
            what = after.get(waiting.pop())
            if what is None:
                return None
            if what[0] == "carry" and what[1] not in used:
                used.add(what[1])
                waiting.append(what[1])
        if any(key not in start.nodes for key in used):
            return None
        keys = used | {key for key in read if key in start.nodes}
        # nobody reads what else there is; but what it was made of would stay in the graph, and a loop around is to be rolled up
        names = [*after, *(key for key in keys | read if key in after)]
        once = {id(end.holds[key]): key for key in names}  # of names of one thing, one that is wanted anyway
        unread = {key for key in once.values() if after[key][0] == "step" and end.holds[key].base is None}
        if self.open:
            unread = {key for key in unread if key in start.nodes or end.rest[str(key[0])] == TRACED}
        late = (read - keys) | {key for key in unread - keys - aliases if isinstance(self.kind(key), Aval)}
        return sorted((key for key in keys if key in after), key=repr), sorted(late, key=repr)

    def idle(self, keys: list[Key]) -> list[Key]:
        """The locals that go round, and that nothing is made of but what nobody reads."""
        steps, after = self.pattern.steps, self.pattern.after
        busy = {key for key in keys if self.reads_outside(key) or key in (TEST, EXIT)}
        waiting = [part for key, part in after.items() if key in busy or self.reads_outside(key)]
        seen: set[Any] = set()
        while waiting:
            kind, what = waiting.pop()
            if kind == "step" and what not in seen:
                seen.add(what)
                waiting += steps[what][3]
            elif kind == "carry" and what not in busy:
                busy.add(what)
                waiting += [after[what]] if what in after else []
        return [key for key in keys if key not in busy and isinstance(self.kind(key), Aval)]

    def closed(self, late: list[Key], views: bool, unread: Collection[str]) -> bool:
        """Whether all that an open loop leaves behind is in the pattern, in which ``views`` may be, but for ``unread`` ones."""
        start, end = self.start, self.end
        if TEST not in self.pattern.after:
            return False
        if any(start.rest[name] != end.rest.get(name) for name in start.rest if name not in self.private or name in end.rest):
            return False
        changed = [key for key in end.nodes if end.nodes[key] is not start.nodes.get(key)]
        changed = [key for key in changed if len(key) > 1 or key[0] not in unread]
        if not views and any(end.holds[key].base is not None for key in changed):
            return False
        if any(key not in self.pattern.after for key in changed if self.reads_outside(key)):
            return False
        return all(key in start.nodes or end.rest[str(key[0])] == TRACED for key in late)

    def unborn(self, late: list[Key]) -> set[str]:
        """The locals that are read later, and are not there where the loop does not run at all."""
        names = {str(key[0]) for key in late} | {name for name in self.end.rest if name not in self.start.rest}
        return names - self.private

    def parted(self, keys: list[Key]) -> bool:
        """Whether locals that are one after an iteration are not where the loop does not run at all."""
        start, end = self.start, self.end
        begun: dict[int, Node] = {}
        return any([begun.setdefault(id(end.holds[key]), start.nodes[key]) is not start.nodes[key] for key in keys])

    def body(self, keys: list[Key], late: list[Key], arrays: Mapping[Node, Any]) -> tuple[Body, list[Node]]:
        """One iteration as the pattern has it, as a graph of its own; and the nodes outside that it reads.

        ``arrays`` are those that were met.
        """
        steps, after, originals, _ = self.pattern
        graph = Graph()
        carry = {key: graph.input(("carry", i), self.kind(key)) for i, key in enumerate(keys)}
        for key, node in carry.items():
            node.name = {TEST: "again", UNSEEN: "unseen", COUNTER: "i", EXIT: "done"}.get(key) or joined(key)
        index = graph.input("index", INT)
        index.name = "i"
        invariants: dict[Node, Node] = {}

        def given(node: Node) -> Node:
            if node.op is CONST:
                return graph.const(dict(node.params)["value"])
            if node not in invariants:
                invariants[node] = graph.input(("invariant", len(invariants)), node.aval)
                invariants[node].name = node.name
            return invariants[node]

        def outer(node: Node) -> Node:
            if node.op is RANGE:  # each iteration makes its own
                return graph.add(RANGE, tuple([given(arg) for arg in node.args]), node.params, node.aval)
            return given(node)

        made: list[Node] = []
        anew: dict[Any, Node] = {}  # of arrays that are alike, the first

        def of(what: Part) -> Node:
            kind = what[0]
            if kind == "step":
                return made[what[1]]
            if kind == "carry":
                return carry[what[1]] if what[1] in carry else outer(self.start.nodes[what[1]])
            if kind == "value":
                return graph.const(dict(what[1].params)["value"])
            if kind == "anew":
                array = arrays[what[1]]
                return outer(anew.setdefault((array.strides, *content_of(array)), what[1]))
            return index if kind == "index" else outer(what[1])

        for (op, params, aval, parts), original in zip(steps, originals, strict=True):
            if op is NAMED:
                made.append(of(parts[0]))
                continue
            node = graph.add(op, tuple([of(what) for what in parts]), params, aval)
            node.name, node.line, node.phase = original.name, original.line, original.phase
            made.append(node)
        every = [*keys, *late]
        finals = [of(after[key]) for key in every]
        for key in late:  # made anew and left behind: carried too, from a stand-in that no iteration reads
            carry[key] = graph.input(("carry", len(carry)), self.kind(key))
            carry[key].name = joined(key)
        body = Body(graph, [carry[key] for key in every], index, [], list(invariants.values()), finals, [])
        return body, list(invariants)


def is_read_outside(key: Key, private: Collection[str]) -> bool:
    """Whether what is there is in no ``private`` local, or in a container."""
    return key[0] not in private or len(key) > 1


def hanging(body: Body, given: Sequence[Node]) -> list[bool]:
    """Whether each carried value hangs on an argument after some number of iterations: what goes from local to local may."""
    hangs = {x for x, node in zip([*body.carry, *body.invariants], given, strict=True) if node.active}
    while True:
        reached = set(hangs)
        for node in body.nodes():
            if node.op.anew or not reached.isdisjoint(node.args):
                reached.add(node)
        more = {x for x, after in zip(body.carry, body.after, strict=True) if after in reached} - hangs
        if not more:
            return [x in hangs for x in body.carry]
        hangs |= more
