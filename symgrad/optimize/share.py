"""Loops that share: what a loop computes again, iteration by iteration, as another one did, that one saves for it.

Reverse mode writes a loop that runs backwards and computes anew what an iteration needs from what it began with. Where that is
dear (products of matrices, exponentials) and the results are arrays, the loop forwards keeps them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node, Sequence
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import ITEM
from symgrad.optimize.loops import BodyProgram, copied, trim_loops
from symgrad.optimize.simplify import Simplifier
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop, loop_of

# what costs little more than the memory that its result would take, so that it is done again
CHEAP = {
    REGISTRY[key]
    for key in (np.add, np.subtract, np.multiply, np.negative, np.positive, np.abs, np.square, np.conjugate, np.real, np.imag,
                np.maximum, np.minimum, np.sign, np.where, np.greater, np.less, np.greater_equal, np.less_equal)
}  # fmt: skip


def share(program: Program) -> Program:
    """The same program; what is dear in its loops is computed once."""
    sharer = _Sharer(program)
    return trim_loops(sharer.run()) if sharer.wanted else program


class _Sharer(Simplifier):
    """Rebuilds a program whose loops save more, and read that."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, {})
        self.saved: dict[Node, list[Node]] = {}  # of a loop, what it saves besides, for others
        self.wanted: dict[Node, list[tuple[Node, Node, int]]] = {}  # of a loop: what not to compute; where it is had instead
        for node in program.nodes():
            if isinstance(node.op, Loop):
                self._look(node)

    def _look(self, node: Node) -> None:
        """Find what a loop computes that one whose results it reads computes too."""
        op: Loop = node.op
        _, sequences, _ = op.split(node.args)
        sources = {arg.args[0]: None for arg in sequences if arg.op is ITEM and isinstance(arg.args[0].op, Loop)}
        twins: dict[Node, tuple[Node, Node]] = {}  # of a node of the body, the loop and the node that it equals
        for source in sources:
            for mine, other in _twins(node, source).items():
                twins.setdefault(mine, (source, other))
        body = op.body
        given = set(body.inputs)
        needed = {*body.after, *body.saved}
        for inner in reversed(body.nodes()):
            if inner not in needed:
                continue
            if inner in twins and inner not in given and _is_dear(inner):
                source, other = twins[inner]
                saved = self.saved.setdefault(source, [])
                if other not in saved:
                    saved.append(other)
                self.wanted.setdefault(node, []).append((inner, source, saved.index(other)))
            else:
                needed.update(inner.args)

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if not isinstance(node.op, Loop) or not (node in self.saved or node in self.wanted):
            return super().visit(node, args)
        op: Loop = node.op
        carry, sequences, invariants = op.split(args)
        body, aval = op.body, node.aval
        wanted = self.wanted.get(node, [])
        for _, source, place in wanted:
            loop = self.mapping[source]
            item = len(source.op.body.carry) + len(source.op.body.saved) + place
            sequences.append(self.graph.add(ITEM, (loop,), (("item", item),), loop.aval[item]))
        more = self.saved.get(node, [])
        body = _reading(body, [inner for inner, _, _ in wanted], more)
        aval = (*aval, *(Sequence(item.aval) for item in more))
        new = self.graph.add(loop_of(body, op.course), (*carry, *sequences, *invariants), (), aval)
        new.line, new.phase = node.line, node.phase
        return new


def _twins(node: Node, source: Node) -> dict[Node, Node]:
    """Nodes of a loop's body that equal nodes of another's in each iteration of the same number."""
    mine, other = node.op.body, source.op.body
    if (node.op.course.start, node.op.course.step) != (source.op.course.start, source.op.course.step):
        return {}
    count = len(other.carry)
    _, theirs, fixed = source.op.split(source.args)
    same: dict[Node, Node] = {mine.index: other.index}
    _, sequences, invariants = node.op.split(node.args)
    for element, arg in zip(mine.elements, sequences, strict=True):
        if arg.op is ITEM and arg.args[0] is source:
            same[element] = other.saved[dict(arg.params)["item"] - count]
        elif arg in theirs:
            same[element] = other.elements[theirs.index(arg)]
    for element, arg in zip(mine.invariants, invariants, strict=True):
        if arg in fixed:
            same[element] = other.invariants[fixed.index(arg)]
    table = {_key(inner, inner.args, other): inner for inner in other.nodes()}
    for inner in mine.nodes():
        args = [same.get(arg) for arg in inner.args]
        found = None if None in args else table.get(_key(inner, tuple(args), mine))
        if found is not None and found.aval == inner.aval:
            same[inner] = found
    return same


def _key(node: Node, args: tuple[Any, ...], body: Body) -> Any:
    if node.op is CONST:
        value = dict(node.params)["value"]
        return CONST, type(value), repr(value)
    if node.op is CAPTURED:
        return CAPTURED, id(body.graph.arrays[node])
    return node.op, args, node.params


def _is_dear(node: Node) -> bool:
    """Whether a result is better kept than computed again."""
    return (
        isinstance(node.aval, Aval)
        and node.aval.shape != ()
        and node.op not in (CONST, CAPTURED, INPUT)
        and not node.op.alias
        and node.op not in CHEAP
    )


def _reading(body: Body, known: list[Node], saved: list[Node]) -> Body:
    """The body with what is known as elements of sequences, the last ones, and more to be saved."""
    copier = Simplifier(BodyProgram(body), {})
    more: list[Node] = []
    for node in known:
        more.append(copier.graph.input(("known", len(body.elements) + len(more)), node.aval))
        more[-1].name = node.name
        copier.mapping[node] = more[-1]
    return copied(body, copier, {}, elements=more, saved=saved)
