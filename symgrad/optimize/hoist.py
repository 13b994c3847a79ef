"""What a loop over numbers does again in each iteration, done once: before it, or after it.

In derivatives, products by what stays the same in all iterations are put together before the loop, ``a * (b * x)`` as
``(a * b) * x``, and a factor of all that is added up to a total is the total's, after the loop. Where such a product is too
large or small, the code raises an error, and NumPy's code, which has the loop as it was, takes over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symgrad import runtime
from symgrad.ir import CONST, Aval, Node, ancestors
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.engine import ITEM
from symgrad.optimize.exact import decisive
from symgrad.optimize.loops import BodyProgram, copied
from symgrad.optimize.rewriting import Simplifier, is_number, is_op
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop, loop_of

# what never raises an error, whether or not an iteration would have got there
MOVED = {REGISTRY[key] for key in (np.add, np.subtract, np.multiply, np.negative)}
PRODUCT = Op(runtime.product, "constant", (), name="runtime.product")
FLOAT = Aval((), np.dtype(float), "python")
FEW = 10  # iterations for which it is not worth it


def hoist(program: Program) -> Program:
    """The same program, its loops over numbers with less to do."""
    nodes, exact = program.nodes(), decisive(program)
    if not program.apart and not all(getattr(node.aval, "shape", ()) == () for node in nodes):
        return program
    loops = {node for node in nodes if isinstance(node.op, Loop) and node not in exact and _suits(node.op)}
    return _Hoister(program, loops).run() if loops else program


def _suits(op: Loop) -> bool:
    if op.course.test is not None or (op.course.count or 0) < FEW:
        return False
    return all(getattr(node.aval, "kind", None) == "python" and not node.exact for node in op.body.nodes())


class _Hoister(Simplifier):
    """Rebuilds a program with other loops."""

    def __init__(self, program: Program, loops: set[Node]) -> None:
        super().__init__(program, {})
        self.loops = loops
        self.scales: dict[Node, dict[int, Node]] = {}  # of a loop, factors of what it ends with

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node in self.loops:
            return self._loop(node, args)
        new = super().visit(node, args)
        scale = self.scales.get(args[0], {}).get(dict(node.params)["item"]) if node.op is ITEM else None
        return new if scale is None else self.graph.add(PRODUCT, (scale, new), (), FLOAT)

    def _loop(self, node: Node, args: tuple[Node, ...]) -> Node:
        op: Loop = node.op
        carry, sequences, fixed = op.split(args)
        inner = _Inner(self, op.body, fixed)
        body = copied(op.body, inner, {}, invariants=inner.more)
        body, scales = inner.totals(body, carry)
        read = set(ancestors([*body.after, *body.saved]))
        body = replace(body, invariants=[item for item in body.invariants if item in read])
        given = [inner.outside[item] for item in body.invariants]
        new = self.graph.add(loop_of(body, op.course), (*carry, *sequences, *given), node.params, node.aval)
        new.line, new.phase = node.line, node.phase
        self.scales[new] = scales
        return new


class _Inner(Simplifier):
    """Rebuilds the body of a loop."""

    def __init__(self, outer: Simplifier, body: Body, fixed: Sequence[Node]) -> None:
        super().__init__(BodyProgram(body), {})
        self.outer, self.given = outer, dict(zip(body.invariants, fixed, strict=True))
        self.outside: dict[Node, Node] = {}  # of what stays the same: what it is outside of the loop
        self.within: dict[Node, Node] = {}  # and the other way round
        self.more: list[Node] = []  # further inputs

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op in MOVED and node.aval.dtype == np.float64:
            if all(arg in self.outside for arg in args):
                return self._same(node.op, args)
            for a, b in (args, args[::-1]) if is_op(node, np.multiply) and node.phase is not None else ():
                c, x = self._split(b)
                if a in self.outside and c is not None:
                    return super().visit(node, (self._same(PRODUCT, (a, c)), x))
        new = super().visit(node, args)
        if node in self.given:
            self._note(new, self.given[node])
        elif node.op is CONST:
            self._note(new, self.outer.graph.const(dict(node.params)["value"]))
        return new

    def _note(self, new: Node, value: Node) -> None:
        self.outside[new] = value
        self.within.setdefault(value, new)

    def _same(self, op: Op, args: tuple[Node, ...]) -> Node:
        """What is computed of numbers that stay the same, as an input."""
        outside = [self.outside[arg] for arg in args]
        outside = sorted(outside, key=lambda node: node.index) if op is PRODUCT else outside
        value = self.outer.make(op, tuple(outside), (), FLOAT)
        if value not in self.within:
            new = self.graph.input(("moved", len(self.more)), value.aval)
            new.name = "_".join([str(arg.name) for arg in args]) if all([arg.name for arg in args]) else "fixed"
            self._note(new, value)
            self.more.append(new)
        return self.within[value]

    def _split(self, x: Node) -> tuple[Node | None, Node]:
        """A product as what stays the same and the rest."""
        if is_op(x, np.multiply):
            for c, rest in (x.args, x.args[::-1]):
                if c in self.outside:
                    return c, rest
        return None, x

    def totals(self, body: Body, carry: Sequence[Node]) -> tuple[Body, dict[int, Node]]:
        """The body without the factors of totals; by the place of each such total, its factor, outside of the loop."""
        uses = Counter([*(arg for node in body.nodes() for arg in node.args), *body.after, *body.saved])
        after, scales = list(body.after), dict[int, Node]()
        for i, (item, last, first) in enumerate(zip(body.carry, body.after, carry, strict=True)):
            adds = item in last.args and (is_op(last, np.add) or (is_op(last, np.subtract) and last.args[0] is item))
            read = uses[item] != 1 or uses[last] != 1  # by others
            if last.phase is None or not adds or read or not is_number(first, 0.0):
                continue
            (term,) = [arg for arg in last.args if arg is not item]
            factor, rest = self._factor(term, uses)
            if factor is not None:
                after[i] = self._like(last, tuple([item if arg is item else rest for arg in last.args]))
                scales[i] = self.outside[factor]
        return replace(body, after=after), scales

    def _factor(self, term: Node, uses: Counter[Node]) -> tuple[Node | None, Node]:
        """A factor of a term that nobody else reads, and the rest."""
        factor, rest = self._split(term) if uses[term] == 1 else (None, term)
        if factor is not None or uses[term] != 1 or not is_op(term, np.multiply):
            return factor, rest
        for x, y in (term.args, term.args[::-1]):
            factor, rest = self._factor(x, uses)
            if factor is not None:
                return factor, self._like(term, (rest, y))
        return None, term

    def _like(self, node: Node, args: tuple[Node, ...]) -> Node:
        new = self.graph.add(node.op, args, node.params, node.aval)
        new.name, new.line, new.phase = new.name or node.name, new.line or node.line, new.phase or node.phase
        return new
