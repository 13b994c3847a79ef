"""Short loops of few numbers, written out: what is known of each iteration, its index above all, is known beforehand then.

A loop costs Python as much as the arithmetic in it where that is little, and arrays that its iterations write to at their
places would be made of numbers, and taken apart again, in each. Which is quicker, ``scalarize`` finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symgrad.ir import CAPTURED, Aval, Node
from symgrad.ir import Sequence as ListAval
from symgrad.ops import index
from symgrad.ops.engine import ITEM
from symgrad.optimize.exact import settled
from symgrad.optimize.rewriting import Simplifier
from symgrad.optimize.simplify import RULES
from symgrad.program import Program
from symgrad.transform.loop import Loop

MANY = 16  # iterations, at most
ALL = 600  # operations in all iterations


def unrolled(program: Program) -> Program | None:
    """The same program without loops but those that are ``if``s; None where it has none, or one that is long, or that something
    else needs the lists of."""
    nodes = program.nodes()
    if not any(map(_is_loop, nodes)) or not _is_short(nodes, program.roots()) or _often(nodes) > ALL:
        return None
    return _Unroller(program, RULES).run()


def _is_loop(node: Node) -> bool:
    return isinstance(node.op, Loop) and not node.op.course.once


def _is_short(nodes: list[Node], ends: list[Node], given: Iterable[Node] = ()) -> bool:
    """Whether all loops are, and nothing but such loops runs over the lists that they save, or that are ``given``."""
    saved = [node for node in nodes if node.op is ITEM and _is_loop(node.args[0])]
    lists = {node for node in (*given, *saved) if isinstance(node.aval, ListAval)}
    if not lists.isdisjoint(ends):
        return False
    for node in nodes:
        if not _is_loop(node):
            if not lists.isdisjoint(node.args):
                return False
            continue
        body, course = node.op.body, node.op.course
        carry, sequences, steady = node.op.split(node.args)
        if course.test is not None or node.params or not lists.isdisjoint([*carry, *steady]):
            return False
        arrays = [arg for arg in sequences if arg not in lists]
        if not all([isinstance(arg.aval, Aval) for arg in arrays]):
            return False
        if max([course.count or 0, *[arg.aval.shape[0] for arg in arrays]]) > MANY:
            return False
        if not _is_short(body.nodes(), body.after, body.elements):
            return False
    return True


def _often(nodes: list[Node]) -> int:
    """How many operations there are, once all loops are written out."""
    return sum([(node.op.course.count or MANY) * _often(node.op.body.nodes()) if _is_loop(node) else 1 for node in nodes])


class _Unroller(Simplifier):
    """Rebuilds a program; what loops give becomes a list of nodes, or of lists of nodes."""

    def run(self, exact: Any = ()) -> Program:
        nodes, ends = self.program.nodes(), self.program.roots()
        values = self._all(nodes, {}, self.program.graph.arrays, {*settled(self.program), *exact}, ends)
        return self.program.map(self.graph, {node: value for node, value in values.items() if isinstance(value, Node)})

    def _all(
        self, nodes: list[Node], values: dict[Node, Any], arrays: Mapping[Node, Any], exact: set[Node], ends: list[Node]
    ) -> dict[Node, Any]:
        """The values of nodes, those of their inputs known; what decisions hang on to the bit."""
        uses = dict.fromkeys(ends, 1)
        for node in nodes:
            for arg in node.args:
                uses[arg] = uses.get(arg, 0) + 1
        for node in nodes:
            self.exact = node in exact or node.exact
            new = values[node] = self._value(node, values, arrays, exact)
            if isinstance(new, Node):
                self.used[new] = self.used.get(new, 0) + uses.get(node, 0)
        return values

    def _value(self, node: Node, values: Mapping[Node, Any], arrays: Mapping[Node, Any], exact: set[Node]) -> Any:
        if node.op is CAPTURED:
            return self.graph.captured(arrays[node])
        if _is_loop(node):
            return self._iterated(node, [values[arg] for arg in node.args], node in exact or node.op.decides)
        if node.op is ITEM and isinstance(values[node.args[0]], list):
            return values[node.args[0]][dict(node.params)["item"]]
        return self.visit(node, tuple([values[arg] for arg in node.args]))

    def _iterated(self, node: Node, args: list[Any], decides: bool) -> list[Any]:
        body, course = node.op.body, node.op.course
        carry, sequences, steady = node.op.split(args)
        lengths = [len(one) if isinstance(one, list) else one.aval.shape[0] for one in sequences]
        nodes, saved = body.nodes(), list[list[Any]]([] for _ in body.saved)
        exact = set(nodes) if decides else set()
        places = range(min(lengths) if course.count is None else course.count)
        for i in reversed(places) if course.backwards else places:
            items = [one[i] if isinstance(one, list) else self.call(index.GETITEM, one, spec=(i,)) for one in sequences]
            given = [*carry, self.graph.const(course.start + course.step * i), *items, *steady]
            ends = [*body.after, *body.saved]
            values = self._all(nodes, dict(zip(body.inputs, given, strict=True)), body.graph.arrays, exact, ends)
            carry = [values[item] for item in body.after]
            for found, item in zip(saved, body.saved, strict=True):
                found.append(values[item])
        return [*carry, *[found[::-1] if course.backwards else found for found in saved]]  # by the iterations' numbers
