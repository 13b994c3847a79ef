"""Rows of their own: what each iteration of a loop reads and writes of an array alone goes round in the place of the array.

``x[i] += v[i]`` and then ``if x[i] > 1: x[i] = 2 - x[i]`` read and write ``x`` at ``i`` alone, which is another place in each
iteration: it needs nothing of ``x`` but this row, and nothing of what the others make of theirs. Written with the row in the
place of ``x``, in ``if``s and loops within, too, that shows.

Such a body is there to be batched. It does not run by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from symgrad.ir import Aval, Graph, Node
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import ASTYPE, ITEM, TO_NUMPY
from symgrad.transform.loop import Body, Loop, copied, loop_of
from symgrad.transform.terms import ADD, is_basic, row_of

ACCESS = (index.GETITEM, index.SETITEM, index.INDEX_ADD)
Place = tuple[int, Node]  # along an axis


def own_places(body: Body, item: Node) -> set[Place]:
    """The places at which a carried array is read and written wherever it is; none where it is also something else."""
    uses = _Uses()
    own = {item}
    if not uses.all_are_places(body, own, {node: node for node in (*body.inputs, *body.nodes())}):
        return set()
    ends = [end for before, end in zip(body.carry, body.after, strict=True) if before is not item]
    if body.after[body.carry.index(item)] not in own or not own.isdisjoint([*ends, *body.saved]):
        return set()
    return uses.places or set()


class _Uses:
    """Where what is made of an array is read and written."""

    def __init__(self) -> None:
        self.places: set[Place] | None = None  # those of all reads and writes
        self.loops: dict[Node, list[int]] = {}  # which results of loops are made of the array

    def all_are_places(self, body: Body, own: set[Node], outer: Mapping[Node, Node]) -> bool:
        """Whether nothing else is done with ``own``, to which what is made of it is added.

        ``outer`` tells what nodes are in the body around all others.
        """
        for node in body.nodes():
            given = [i for i, arg in enumerate(node.args) if arg in own]
            if node.op is ITEM and dict(node.params)["item"] in self.loops.get(node.args[0], ()):
                own.add(node)
            elif isinstance(node.op, Loop) and given:
                if not self._go_through(node, given, own, outer):
                    return False
            elif node.op in ACCESS and given == [0]:
                places = node.args[len(node.op.rules) :]
                spec = dict(node.params)["spec"]
                if not is_basic(spec, places):
                    return False
                holes = [(axis, places[part.number]) for axis, part in enumerate(spec) if type(part) is index.Hole]
                here = {(axis, outer[place]) for axis, place in holes if place in outer}
                self.places = here if self.places is None else self.places & here
                if node.op is not index.GETITEM:
                    own.add(node)
            elif given:
                return False
        return True

    def _go_through(self, node: Node, given: list[int], own: set[Node], outer: Mapping[Node, Node]) -> bool:
        """The same of a loop within."""
        op: Any = node.op
        body: Body = op.body
        inputs = [*body.carry, *body.elements, *body.invariants]
        ends = dict(zip(body.carry, body.after, strict=True))
        inner = {inputs[i] for i in given}
        same = {
            item: outer[arg]
            for item, arg in zip(inputs, node.args, strict=True)
            if arg in outer and ends.get(item, item) is item
        }
        if not inner.isdisjoint(body.elements) or not self.all_are_places(body, inner, same):
            return False
        self.loops[node] = [i for i in given if i < len(body.carry)]
        return inner.isdisjoint(body.saved) and all([(item in inner) == (end in inner) for item, end in ends.items()])


def with_rows(body: Body, axes: Mapping[Node, Collection[int]]) -> Body:
    """The body with one row, across some axes, in the place of each of some inputs."""
    return _Rows(body, axes).made()


class _Rows:
    """A body as it is written once more."""

    def __init__(self, body: Body, axes: Mapping[Node, Collection[int]]) -> None:
        self.body, self.graph, self.axes = body, Graph(), dict(axes)
        self.new = {node: self._input(node) for node in body.inputs}

    def _input(self, node: Node) -> Node:
        if node not in self.axes:
            return self.graph.stand_in(node)
        new = self.graph.input(("for", node), _row(node.aval, self.axes[node]))
        new.name = node.name
        return new

    def made(self) -> Body:
        body, new = self.body, self.new
        for node in body.nodes():
            args = [new[arg] for arg in node.args]
            if node.op in ACCESS and node.args[0] in self.axes:
                new[node] = self._access(node, args, self.axes[node.args[0]])
            elif isinstance(node.op, Loop):
                new[node] = self._loop(node, args)
            elif node.op is ITEM and isinstance(args[0].op, Loop):
                new[node] = self._item(node, args[0])
            else:
                new[node] = copied(self.graph, node, args, body.graph)
            new[node].name, new[node].line = new[node].name or node.name, new[node].line or node.line
        return body.renamed(self.graph, new)

    def _loop(self, node: Node, args: list[Node]) -> Node:
        """A loop within."""
        op: Any = node.op
        body: Body = op.body
        inputs = [*body.carry, *body.elements, *body.invariants]
        axes = {item: self.axes[arg] for item, arg in zip(inputs, node.args, strict=True) if arg in self.axes}
        if not axes:
            return copied(self.graph, node, args, self.body.graph)
        inner = with_rows(body, axes)
        ends = tuple([end.aval for end in inner.after])
        return self.graph.add(loop_of(inner, op.course), tuple(args), (), (*ends, *node.aval[len(ends) :]))

    def _item(self, node: Node, loop: Node) -> Node:
        """What a loop leaves: a row, where it got one."""
        (before,), item = node.args, dict(node.params)["item"]
        if item < len(loop.op.body.carry) and before.args[item] in self.axes:
            self.axes[node] = self.axes[before.args[item]]
        return self.graph.add(ITEM, (loop,), node.params, loop.aval[item])

    def _access(self, node: Node, args: list[Node], axes: Collection[int]) -> Node:
        """What is read of a row, or written to it, in the place of the array."""
        spec = dict(node.params)["spec"]
        count = len(node.op.rules)
        row, values, places = args[0], args[1:count], args[count:]
        known = [spec[axis].number for axis in axes]
        kept = [i for i in range(len(places)) if i not in known]
        rest = tuple(
            [
                index.Hole(kept.index(part.number)) if type(part) is index.Hole else part
                for axis, part in enumerate(spec)
                if axis not in axes
            ]
        )
        whole = all([part == index.EVERY for part in rest])
        if node.op is not index.GETITEM:
            self.axes[node] = axes
        if not whole:
            aval = node.aval if node.op is index.GETITEM else row.aval
            return self.graph.add(node.op, (row, *values, *[places[i] for i in kept]), (("spec", rest),), aval)
        if node.op is index.GETITEM:
            return row
        value = as_written(self.graph, values[0], row.aval)
        return value if node.op is index.SETITEM else self.graph.add(ADD, (row, value), (), row.aval)


def as_written(graph: Graph, value: Node, aval: Aval) -> Node:
    """A value as an array has it that it is written into."""
    if value.aval == aval:
        return value
    dtype = aval.dtype
    if aval.kind == "scalar":
        if value.aval.shape:
            value = graph.add(REGISTRY[np.reshape], (value,), (("shape", ()),), value.aval._replace(shape=()))
        value = graph.add(TO_NUMPY, (value,), (), value.aval._replace(kind="scalar"))
    if value.aval.dtype != dtype:
        value = graph.add(ASTYPE, (value,), (("dtype", dtype),), value.aval._replace(dtype=dtype))
    if value.aval.shape == aval.shape:
        return value
    return graph.add(REGISTRY[np.broadcast_to], (value,), (("shape", aval.shape),), aval)


def _row(aval: Aval, axes: Collection[int]) -> Aval:
    row = row_of(aval, tuple([0 if axis in axes else index.EVERY for axis in range(len(aval.shape))]))
    return row if row.shape else row._replace(kind="scalar")
