"""Triangles: a loop whose range hangs on the index of the loop around it, as one over the same range in each iteration of that.

``for j in range(i):`` runs now more often, now less, so its iterations are no axis of an array. Over all numbers that any
iteration asks for, with what is done below ``if start <= j < stop:``, they are. Such a loop is there to be batched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.ir import Graph, Node, aval_of
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import AND, ITEM, RANGE
from symgrad.transform.loop import Body, Course, Loop, copied, loop_of

SPARSE = 3  # so many times as many iterations are not worth it
_FLAG, _INT = aval_of(True), aval_of(0)


def is_triangle(node: Node) -> bool:
    """Whether it is a loop over a range that saves nothing."""
    op = node.op
    if not isinstance(op, Loop) or op.course != Course() or len(op.body.elements) != 1 or op.body.saved:
        return False
    return node.args[len(op.body.carry)].op is RANGE


def squared(node: Node, numbers: Mapping[Node, Sequence[Any]]) -> tuple[Body, Course, list[Node]] | None:
    """Such a loop over one range, and what it is given. ``numbers``: what there is in each iteration of the loop around; None
    where that does not tell the ends, or the range is far longer than most."""
    op: Any = node.op
    body: Body = op.body
    n = len(body.carry)
    ends = node.args[n].args
    if not all([end in numbers for end in ends]):
        return None
    rows = [range(*row) for row in zip(*[numbers[end] for end in ends], strict=True)]
    steps = {row.step for row in rows}
    every = [row for row in rows if row]
    if len(steps) > 1 or len({row.start % row.step for row in every}) != 1:
        return None
    (step,) = steps
    (first, last) = (min, max) if step > 0 else (max, min)
    whole = range(first([row.start for row in every]), last([row[-1] for row in every]) + step, step)
    if len(whole) * len(rows) > SPARSE * sum(map(len, rows)):
        return None
    graph = Graph()
    new = {item: graph.stand_in(item) for item in (*body.carry, *body.invariants)}
    index, start, stop = [graph.input(place, _INT) for place in ("index", "start", "stop")]
    index.name = body.elements[0].name
    less, least = (np.less, np.greater_equal) if step > 0 else (np.greater, np.less_equal)
    tests = [graph.add(REGISTRY[fun], (index, end), (), _FLAG) for fun, end in ((least, start), (less, stop))]
    test = graph.add(AND, tuple(tests), (), _FLAG)
    once = _once(body)
    given = (test, *[new[item] for item in body.carry], index, *[new[item] for item in body.invariants])
    made = graph.add(loop_of(once, Course(test=0, once=True)), given, (), tuple([end.aval for end in once.after]))
    after = [graph.add(ITEM, (made,), (("item", i + 1),), end.aval) for i, end in enumerate(body.after)]
    for one in (*tests, test, made, *after):
        one.line = node.line
    carry, fixed = [new[item] for item in body.carry], [new[item] for item in body.invariants]
    square = Body(graph, carry, index, [], [*fixed, start, stop], after, [])
    course = Course(count=len(whole), start=whole.start, step=step)
    return square, course, [*node.args[:n], *node.args[n + 1 :], *ends[:2]]


def _once(body: Body) -> Body:
    """The body of an ``if`` that does what the loop's does."""
    graph = Graph()
    new = {item: graph.stand_in(item) for item in body.inputs}
    test = graph.input("test", _FLAG)
    for node in body.nodes():
        new[node] = copied(graph, node, [new[arg] for arg in node.args], body.graph)
    (element,) = body.elements
    carry, after = [new[item] for item in body.carry], [new[end] for end in body.after]
    invariants = [new[element], *[new[item] for item in body.invariants]]
    return Body(graph, [test, *carry], new[body.index], [], invariants, [graph.const(False), *after], [])
