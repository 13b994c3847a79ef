"""Ends that move: ``for j in range(i):`` in a loop over ``i`` runs now more often, now less.

Where code is to be a loop in a loop (see ``Trace.turns``), the inner one is watched as if it was ``while j < i:``, open to run
however often; what it becomes runs over the range, which its code makes in each iteration of the outer one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CONST, INPUT, Graph, Node
from symgrad.loops.patterns import COUNTER, TEST, Key
from symgrad.ops.engine import IDENTITY, RANGE
from symgrad.tracing.trace import Trace
from symgrad.transform.loop import Body, copied


class Ends(NamedTuple):
    """A range whose ends hang on the index of a loop around, or on arguments, for a ``for`` statement with this ``target``;
    or one that runs over what is ``at`` these places."""

    start: Any
    stop: Any
    step: int
    target: str
    at: Callable[[Any], Any] | None = None

    def items(self) -> Iterable[Any]:
        """What it runs over, if that is no loop of the code: its ends are looked at."""
        numbers = range(*map(operator.index, self[:3]))
        return numbers if self.at is None else map(self.at, numbers)

    def item(self, place: Any) -> Any:
        """What the statement gets at a place."""
        return place if self.at is None else self.at(place)


class Ranged(NamedTuple):
    """A loop over a range: its body, what it carries, with what that begins, the range, and the nodes outside that it reads."""

    body: Body
    keys: list[Key]
    firsts: list[Node]
    over: Node
    invariants: list[Node]


def ranged(
    trace: Trace, ends: Ends, body: Body, keys: Sequence[Key], firsts: Sequence[Node], invariants: Sequence[Node]
) -> Ranged | None:
    """The loop that counts up to a number, and does so alone by that, as one over a range; None for others."""
    count, test = keys.index(COUNTER), keys.index(TEST)
    counter, more, less = body.carry[count], body.after[count], body.after[test]
    outside = dict(zip(body.invariants, invariants, strict=True))
    if more.op.key is not np.add or more.args[0] is not counter or less.op.key not in (np.less, np.greater):
        return None
    stop = less.args[1]
    if less.args[0] is not more or not (stop in outside or stop.op is CONST):
        return None
    last = outside[stop] if stop in outside else trace.constant(dict(stop.params)["value"])[0]
    first = firsts[count].args[0] if firsts[count].op is IDENTITY else firsts[count]
    parts = [trace.lookup(node) for node in (first, last, trace.constant(ends.step)[0])]
    over = trace.run(RANGE, parts[: 2 if ends.step == 1 else 3], {})
    over.name, counter.name = None, ends.target
    left = [i for i in range(len(keys)) if i not in (count, test)]
    new, fixed = _in_order([body.carry[i] for i in left], counter, [body.after[i] for i in left], body)
    return Ranged(new, [keys[i] for i in left], [firsts[i] for i in left], over, [outside[x] for x in fixed])


def _in_order(carry: list[Node], counter: Node, after: list[Node], body: Body) -> tuple[Body, list[Node]]:
    """What ``body`` does, in an order that its results alone tell, whatever its first iteration found computed before: so runs
    of one statement are alike; and the inputs of ``body`` that do not change."""
    inputs = {*carry, counter, body.index}
    nodes: dict[Node, None] = {}
    invariants: dict[Node, None] = {}
    waiting = [(node, False) for node in reversed(after)]
    while waiting:
        node, ready = waiting.pop()
        if node in inputs or node in nodes or node in invariants:
            continue
        if node.op is INPUT:
            invariants[node] = None
        elif ready:
            nodes[node] = None
        else:
            waiting += [(node, True), *[(arg, False) for arg in reversed(node.args)]]
    graph = Graph()
    places: dict[Node, Any] = {node: ("carry", i) for i, node in enumerate(carry)}
    places |= {counter: ("element", 0), body.index: "index"}
    places |= {node: ("invariant", i) for i, node in enumerate(invariants)}
    made: dict[Node, Node] = {}
    for node, place in places.items():
        made[node] = graph.input(place, node.aval)
        made[node].name = node.name
    for node in nodes:
        made[node] = copied(graph, node, [made[arg] for arg in node.args], body.graph)
    begin, end = [made[node] for node in carry], [made[node] for node in after]
    new = Body(graph, begin, made[body.index], [made[counter]], [made[node] for node in invariants], end, [])
    return new, [*invariants]
