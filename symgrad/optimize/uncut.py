"""Values that are cut to a slice, of which nothing is read but what that slice names, left as they are.

A trace has ``x[:i]`` as all of ``x``, with zeros elsewhere (see ``symgrad.ops.index``). Where all that reads it takes a slice
of it again, in this loop or in the one on the way back that it is kept for, nobody sees the zeros: it is ``x`` itself, and what
is computed of it elementwise is computed of slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CONST, Aval, Node, ancestors
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.index import CUT, DOT, INDEX_ADD, SETITEM, SLICED, Cut
from symgrad.optimize.loops import BodyProgram, copied
from symgrad.optimize.rewriting import Simplifier
from symgrad.optimize.share import alike_in
from symgrad.program import Program
from symgrad.transform.loop import Loop, loop_of

_DOTS = {REGISTRY[np.dot], REGISTRY[np.matmul]}

Ends = tuple[Node, ...]


def uncut(program: Program) -> Program:
    """The same program, its loops without zeros that nobody sees."""
    if not any([isinstance(node.op, Loop) and _has_cuts(node.op) for node in program.nodes()]):
        return program
    whole = _Scope(program.nodes(), program.roots())
    for scope in whole.all():
        scope.look()
    return _Uncutter(program, whole).run()


def _has_cuts(op: Loop) -> bool:
    nodes = op.body.nodes()
    return any([node.op is CUT or (isinstance(node.op, Loop) and _has_cuts(node.op)) for node in nodes])


class Reading(NamedTuple):
    """A loop that goes through a list, as one beside the loop that saves it; its element, and its body. No loop, where the list
    is read in another way."""

    loop: Node | None
    element: Node
    body: _Scope


class _Scope:
    """What is computed at one level: in a program, or in the body of a loop in it."""

    def __init__(self, nodes: list[Node], ends: list[Node], loop: Node | None = None, around: _Scope | None = None) -> None:
        self.nodes, self.ends, self.loop, self.around = nodes, Counter(ends), loop, around
        self.saved = loop.op.body.saved if loop is not None else []
        self.readers: dict[Node, list[Node]] = {}
        for node in nodes:
            for arg in dict.fromkeys(node.args):
                self.readers.setdefault(arg, []).append(node)
        loops = [node for node in nodes if isinstance(node.op, Loop)]
        bodies = {node: node.op.body for node in loops}
        self.inner = {node: _Scope(body.nodes(), [*body.after, *body.saved], node, self) for node, body in bodies.items()}
        self.known: dict[Node, Ends | None] = {}
        self.of_cuts: dict[Node, bool] = {}
        self.bare: set[Node] = set()

    def all(self) -> Iterator[_Scope]:
        yield self
        for inner in self.inner.values():
            yield from inner.all()

    def look(self) -> None:
        """Find the values that need not be cut."""
        for node in self.nodes:
            if node.op is CUT and _are_same(self.read(node), node.args[1:]):
                self.lay_bare(node)
                for reading in self._lists(node):
                    reading.body.lay_bare(reading.element)

    def lay_bare(self, node: Node) -> None:
        """Note that a value has anything in the place of zeros, and what is computed of it, too."""
        if node not in self.bare:
            self.bare.add(node)
            for reader in self.readers.get(node, ()):
                if is_elementwise(reader):
                    self.lay_bare(reader)

    def read(self, node: Node) -> Ends | None:
        """The ends of the slice that is all that is read of a value; None where that is more, or hangs on what reads it."""
        if node not in self.known:
            self.known[node] = None
            every = [self._read_by(reader, node) for reader in self.readers.get(node, ())]
            if self.ends[node]:
                kept = node.op is CUT and not self._is_of_cuts(
                    node.args[0]
                )  # else a list would hold slices, and be read as wholes
                every.append(self._read_of_lists(node) if kept else None)
            same = bool(every) and all([_are_same(every[0], ends) for ends in every])
            self.known[node] = every[0] if same else None
        return self.known[node]

    def _read_by(self, reader: Node, node: Node) -> Ends | None:
        alone = reader.args.count(node) == 1
        if reader.op is CUT:
            same = reader.args[0] is node and alone and _are_same(self.read(reader), reader.args[1:])
            return reader.args[1:] if same else None
        if reader.op is DOT:
            return reader.args[2:] if node not in reader.args[2:] else None
        if reader.op in _DOTS:
            return cut_of(reader)
        if reader.op in (SETITEM, INDEX_ADD):
            parts = [part for part in dict(reader.params)["spec"] if type(part) is Cut]
            places = reader.args[2:]
            return (places[parts[0].start], places[parts[0].stop]) if parts and reader.args[1] is node and alone else None
        return self.read(reader) if is_elementwise(reader) else None

    def _read_of_lists(self, node: Node) -> Ends | None:
        """The same of what a loop saves, in what reads the list, at the same iteration; None if more than that has it."""
        found: list[Ends | None] = []
        for reader, element, inner in self._lists(node):
            ends = inner.read(element) if reader is not None else None
            if ends is not None and reader is not None and self.loop is not None:
                same = alike_in(reader, self.loop)
                ends = tuple([end if end.op is CONST else same.get(end, end) for end in ends])
            found.append(ends)
        return found[0] if found and all([_are_same(found[0], ends) for ends in found]) else None

    def _is_of_cuts(self, node: Node) -> bool:
        """Whether it is computed elementwise of what is cut, and may be of slices then."""
        if node not in self.of_cuts:
            self.of_cuts[node] = is_elementwise(node) and any([arg.op is CUT or self._is_of_cuts(arg) for arg in node.args])
        return self.of_cuts[node]

    def _lists(self, node: Node) -> Iterator[Reading]:
        """What goes through the list of what a loop saves in each iteration."""
        if not self.ends[node]:
            return
        if self.loop is None or self.around is None or self.ends[node] != 1 or node not in self.saved:
            yield Reading(None, node, self)
            return
        place = len(self.loop.op.body.carry) + self.saved.index(node)
        for item in self.around.readers.get(self.loop, ()):
            if dict(item.params)["item"] == place:
                yield from self.around.through(item)

    def through(self, values: Node) -> Iterator[Reading]:
        """The loops that go through a list."""
        for reader in self.readers.get(values, ()):
            if isinstance(reader.op, Loop) and reader.args.count(values) == 1 and values in reader.op.split(reader.args)[1]:
                body = reader.op.body
                yield Reading(reader, body.elements[reader.args.index(values) - len(body.carry)], self.inner[reader])
            else:
                yield Reading(None, values, self)
        for outer, element, scope in self._lists(values):  # a list of lists
            if outer is None or self.loop is None:
                yield Reading(None, values, self)
                continue
            same = alike_in(outer, self.loop)
            for one in scope.through(element):
                inner = one.loop
                if inner is not None:
                    inner = Node(inner.op, tuple([same.get(arg, arg) for arg in inner.args]), inner.params, inner.aval)
                yield one._replace(loop=inner)


def is_elementwise(node: Node) -> bool:
    """Whether it computes each element of arrays of one shape, and of numbers."""
    plain = isinstance(node.op, Op) and isinstance(node.op.key, np.ufunc) and node.op.family in ("elementwise", "constant")
    if not plain or node.params or not isinstance(node.aval, Aval) or not node.aval.shape:
        return False
    return all([isinstance(arg.aval, Aval) and arg.aval.shape in ((), node.aval.shape) for arg in node.args])


def cut_of(dot: Node) -> Ends | None:
    """The ends of what one of two rows is cut to that are multiplied; None where none is, or they are no rows."""
    if any([not isinstance(arg.aval, Aval) or len(arg.aval.shape) != 1 for arg in dot.args]):
        return None
    cuts = [arg.args[1:] for arg in dot.args if arg.op is CUT]
    return cuts[0] if cuts and all([_are_same(cuts[0], ends) for ends in cuts]) else None


def _are_same(a: Ends | None, b: Ends | None) -> bool:
    if a is None or b is None:
        return False
    return all([x is y or (x.op is y.op is CONST and x.params == y.params) for x, y in zip(a, b, strict=True)])


class _Uncutter(Simplifier):
    """Rebuilds a program, or the body of a loop."""

    def __init__(self, program: Program, scope: _Scope) -> None:
        super().__init__(program, {})
        self.scope = scope

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Loop):
            body = node.op.body
            inner = _Uncutter(BodyProgram(body), self.scope.inner[node])
            return self.visit_as(loop_of(copied(body, inner, {}), node.op.course), node, args)
        ends = self.scope.read(node) if node in self.scope.bare else None
        if ends is not None and node.op is CUT:
            return args[0]
        if ends is not None and is_elementwise(node):
            return self._as(SLICED, node, args, ends, (("of", node.op.key),))
        if node.op in _DOTS and (ends := cut_of(node)) is not None:
            parts = [self.mapping[arg.args[0]] if arg.op is CUT else new for arg, new in zip(node.args, args, strict=True)]
            return self._as(DOT, node, parts, ends)
        return super().visit(node, args)

    def _as(self, op: Op, node: Node, args: Sequence[Node], ends: Ends, params: Any = ()) -> Node:
        """The same of slices."""
        for one in ancestors(ends):
            if one not in self.mapping:
                self.mapping[one] = self.again(one)
        new = self.graph.add(op, (*args, *[self.mapping[end] for end in ends]), params, node.aval)
        new.line, new.phase, new.name, new.exact, new.active = node.line, node.phase, node.name, node.exact, node.active
        return new
