"""Rolling: iterations of the user's ``for`` and ``while`` loops that were traced alike become one ``Loop``.

A ``Roller`` watches one loop statement while it runs. At each boundary between iterations it notes what the local variables
hold; the nodes recorded in between are an iteration. Two neighbouring iterations match when their operations are the same
and each argument is the same value, or in the same place of the iteration, or the same local variable at its beginning, or
the loop's index. When the loop ends, the last stretch of matching iterations becomes a ``Loop`` node, and the local
variables are bound to its results. What does not match stays as it was recorded: unrolled, and right.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CONST, Aval, Graph, Node
from symgrad.ops.engine import INDEX, ITEM
from symgrad.trace import Trace, Tracer
from symgrad.transform.loop import Body, Course, loop_of

SHORTEST = 4  # iterations that are worth a loop
TEST = ("while",)

Key = tuple[Any, ...]


class Boundary(NamedTuple):
    """What is there between two iterations: how long the graph is, what the locals hold, and the loop's index."""

    length: int
    guards: int
    holds: dict[Key, Tracer]
    nodes: dict[Key, Node]
    plain: dict[str, Any]
    index: Node | None


class Roller:
    """Watches one ``for`` (``course`` says how its index runs) or ``while`` (``course`` is None) statement."""

    def __init__(self, trace: Trace, course: Course | None) -> None:
        self.trace, self.course = trace, course
        self.boundaries: list[Boundary] = []
        self.roles: list[Any] | None = None  # of the arguments of an iteration's operations, and of what is carried on
        self.first = 0  # the first iteration of the stretch that matches
        self.serial = trace.next_loop()
        self.broken = False

    def index(self, value: int) -> Tracer:
        """The loop's index as a traced number."""
        return self.trace.record(INDEX, (), {"loop": self.serial, "value": value})  # type: ignore[no-any-return]

    def boundary(self, frame: FrameType, index: Tracer | None = None, test: Tracer | None = None) -> None:
        """An iteration begins (or, at the last boundary, the loop ends)."""
        trace = self.trace
        holds: dict[Key, Tracer] = {}
        plain: dict[str, Any] = {}
        for name, value in list(frame.f_locals.items()):
            found = list(_tracers(value, (name,)))
            holds.update(found)
            if not found:
                plain[name] = value
        if test is not None:
            holds[TEST] = test
        for tracer in holds.values():
            if tracer.base is not None:
                tracer.refresh()
        nodes = {key: tracer.node for key, tracer in holds.items()}
        at = None if index is None else index.node
        self.boundaries.append(Boundary(len(trace.graph), len(trace.guards), holds, nodes, plain, at))
        self._compare()

    # ---- matching ----

    def _compare(self) -> None:
        """Does the iteration that has just ended match the one before?"""
        count = len(self.boundaries) - 1
        if count < 2:
            return
        roles = self._roles(self.boundaries[-3], self.boundaries[-2], self.boundaries[-1])
        if roles is None or (self.roles is not None and roles != self.roles):
            self.roles, self.first = None, count - 1
        elif self.roles is None:
            self.roles, self.first = roles, count - 2
        if count - 2 not in (self.first, self.first + 1):  # of what lies between, nothing is asked again
            self.boundaries[-3] = self.boundaries[-3]._replace(holds={}, plain={}, nodes={})

    def _roles(self, a: Boundary, b: Boundary, c: Boundary) -> list[Any] | None:
        """How iteration ``a..b`` corresponds to ``b..c``: the role of each argument, then of each local afterwards."""
        nodes = self.trace.graph.nodes
        old, new = nodes[a.length : b.length], nodes[b.length : c.length]
        old = [node for node in old if node.op is not INDEX and node.op is not CONST]
        new = [node for node in new if node.op is not INDEX and node.op is not CONST]
        guards = 1 if self.course is None else 0
        if len(old) != len(new) or b.guards - a.guards != guards or c.guards - b.guards != guards:
            return None
        place_old = {node: i for i, node in enumerate(old)}
        place_new = {node: i for i, node in enumerate(new)}

        def role(x: Node, y: Node) -> Any:
            at = place_old.get(x)
            if at is not None:
                return ("step", at) if place_new.get(y) == at else None
            for key in carried.get(x, ()):
                if b.nodes.get(key) is y:
                    return ("carry", key)
            if x is a.index and y is b.index:
                return ("index",)
            return ("same", x) if x is y else None

        carried: dict[Node, list[Key]] = {}
        for key, node in a.nodes.items():
            if key in b.nodes and (node is not b.nodes[key]):
                carried.setdefault(node, []).append(key)
        roles: list[Any] = []
        for x, y in zip(old, new, strict=True):
            if x.op is not y.op or x.params != y.params or x.aval != y.aval or len(x.args) != len(y.args):
                return None
            parts = [role(p, q) for p, q in zip(x.args, y.args, strict=True)]
            if None in parts:
                return None
            roles.append((x.op, x.params, tuple(parts)))
        for key in sorted(b.nodes.keys() & c.nodes.keys(), key=repr):
            x, y = b.nodes[key], c.nodes[key]
            if x is y:
                continue
            if x.aval != y.aval:
                return None
            part = role(x, y)
            if part is None:
                return None
            roles.append((key, part))
        if self.course is None and not _same_plain(b.plain, c.plain):
            return None
        return roles

    # ---- rolling ----

    def finish(self) -> None:
        """The loop has ended as it should: put a ``Loop`` in place of the iterations that match."""
        count = len(self.boundaries) - 1
        if self.roles is None or count - self.first < (SHORTEST if self.course else 2):
            return
        after = {entry[0]: entry[1] for entry in self.roles if len(entry) == 2}
        steps = [entry for entry in self.roles if len(entry) == 3]
        if self.course is None and TEST not in after:
            return
        for first in (self.first, self.first + 1):  # the first iteration may begin with numbers of another kind
            if count - first >= (SHORTEST if self.course else 2) and self._replace(first, steps, after):
                return

    def _carried(self, start: Boundary, steps: list[Any], after: dict[Key, Any]) -> list[Key] | None:
        """The locals that an iteration takes from the one before; None where the first has not got them all."""
        used = {part[1] for entry in steps for part in entry[2] if part[0] == "carry"}
        if self.course is None:
            used.add(TEST)
        waiting = list(used)
        while waiting:  # what is carried on may come from what was carried in
            part = after.get(waiting.pop())
            if part is None:
                return None
            if part[0] == "carry" and part[1] not in used:
                used.add(part[1])
                waiting.append(part[1])
        used |= {key for key in after if key in start.nodes}
        return sorted(used, key=repr) if all(key in start.nodes for key in used) else None

    def _replace(self, first: int, steps: list[Any], after: dict[Key, Any]) -> bool:
        """Put the loop from iteration ``first`` on into the graph, if it can be."""
        start, end = self.boundaries[first], self.boundaries[-1]
        keys = self._carried(start, steps, after)
        if keys is None or any(start.nodes[key].aval != end.nodes[key].aval for key in keys):
            return False
        late = [key for key in sorted(after, key=repr) if key not in keys]  # made anew by each iteration
        if any(part[0] == "carry" and part[1] not in keys for part in (after[key] for key in late)):
            return False
        if not all(isinstance(end.nodes[key].aval, Aval) for key in (*keys, *late)):
            return False
        trace, graph = self.trace, Graph()
        carry = {key: graph.input(("carry", i), start.nodes[key].aval) for i, key in enumerate(keys)}
        for key, node in carry.items():
            node.name = "again" if key is TEST else _joined(key)
        index = graph.input("index", _INT)
        index.name = "i"
        invariants: dict[Node, Node] = {}

        def outer(node: Node) -> Node:
            if node.op is CONST:
                return graph.const(dict(node.params)["value"])
            if node not in invariants:
                invariants[node] = graph.input(("invariant", len(invariants)), node.aval)
                invariants[node].name = node.name
            return invariants[node]

        made: list[Node] = []

        def of(part: Any) -> Node:
            kind = part[0]
            if kind == "step":
                return made[part[1]]
            if kind == "carry":
                return carry[part[1]] if part[1] in carry else outer(start.nodes[part[1]])
            return index if kind == "index" else outer(part[1])

        originals = self._iteration()
        for (op, params, parts), original in zip(steps, originals, strict=True):
            node = graph.add(op, tuple(of(part) for part in parts), params, original.aval)
            node.name, node.line, node.phase = original.name, original.line, original.phase
            made.append(node)
        finals = [of(after[key]) for key in keys]
        saved = [of(after[key]) for key in late]
        course = self._course(first, keys)
        firsts = [start.nodes[key] for key in keys]
        # what an iteration makes anew and leaves behind is carried too, from a stand-in that no iteration reads
        for key, node in zip(late, saved, strict=True):
            firsts.append(trace.constant_like(0.0, node.aval).node)
            carry[key] = graph.input(("carry", len(firsts) - 1), node.aval)
        body = Body(
            graph, [carry[key] for key in [*keys, *late]], index, [], list(invariants.values()), [*finals, *saved], []
        )
        op = loop_of(body, course)
        values = tuple(end.holds[key].value for key in [*keys, *late])
        node = graph_node(trace, op, (*firsts, *invariants), values)
        self._forget_guards(start)
        for i, key in enumerate([*keys, *late]):
            part = trace.graph.add(ITEM, (node,), (("item", i),), end.nodes[key].aval)
            part.name = None if key is TEST else _joined(key)
            trace.values[part] = values[i]
            end.holds[key].node = part
            end.holds[key].base = None
        return True

    def _iteration(self) -> list[Node]:
        """The operations of the last iteration but one."""
        a, b = self.boundaries[-3], self.boundaries[-2]
        nodes = self.trace.graph.nodes[a.length : b.length]
        return [node for node in nodes if node.op is not INDEX and node.op is not CONST]

    def _course(self, first: int, keys: list[Key]) -> Course:
        if self.course is None:
            return Course(test=keys.index(TEST))
        count = len(self.boundaries) - 1 - first
        return Course(count, self.course.start + self.course.step * first, self.course.step)

    def _forget_guards(self, start: Boundary) -> None:
        """A loop with a test needs no guard on it."""
        if self.course is None:
            del self.trace.guards[start.guards :]


def graph_node(trace: Trace, op: Any, args: tuple[Node, ...], values: tuple[Any, ...]) -> Node:
    """The node of a loop whose results are known already."""
    node = trace.graph.add(op, args, (), tuple(trace.aval(value) for value in values))
    trace.values[node] = values
    return node


_INT = Trace.aval(0)


def _tracers(value: Any, key: Key, depth: int = 0) -> Iterator[tuple[Key, Tracer]]:
    """The Tracers in a local variable: itself, or in lists, tuples, dicts and object arrays."""
    if type(value) is Tracer:
        yield key, value
    elif depth < 4 and type(value) in (list, tuple) and len(value) <= 64:
        for i, item in enumerate(value):
            yield from _tracers(item, (*key, i), depth + 1)
    elif depth < 4 and type(value) is dict and len(value) <= 64:
        for name, item in value.items():
            yield from _tracers(item, (*key, name), depth + 1)
    elif type(value) is np.ndarray and value.dtype == object and value.size <= 64:
        for i, item in enumerate(value.flat):
            yield from _tracers(item, (*key, i), depth + 1)


def _joined(key: Key) -> str:
    """``("state", 0)`` as ``state_0``."""
    return "_".join(map(str, key))


def _same_plain(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether plain locals are what they were: a loop with a test may run more often than it was traced."""
    for name in b.keys() | a.keys():
        if name not in a or name not in b:
            return False
        x, y = a[name], b[name]
        if x is not y and not (type(x) is type(y) and isinstance(x, (int, float, str, complex)) and x == y):
            return False
        if isinstance(x, (list, dict, set)):
            return False  # it may have grown
    return True
