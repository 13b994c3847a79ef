"""Windows of arrays that move with the index of a loop, as slices: ``x[i + np.arange(3)]`` as ``x[i : i + 3]``, a view.

A trace has them as places, which say more to other passes: what all iterations read, together. What is left of them in loops
that stay is what the user wrote again, as far as the code knows that no iteration gets over an end of the array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, Node
from symgrad.ops import index
from symgrad.ops.engine import WITHIN
from symgrad.ops.spans import SPANS, Span, span_of
from symgrad.optimize.cuts import taken
from symgrad.optimize.loops import BodyProgram, copied
from symgrad.optimize.rewriting import Simplifier, const, is_op
from symgrad.program import Program
from symgrad.transform.loop import Loop, loop_of

_SELECTING = (index.GETITEM, index.SETITEM, index.INDEX_ADD, index.SCATTER)


def windows(program: Program) -> Program:
    """The same program, its loops with slices where they have places in a row."""
    if not any([isinstance(node.op, Loop) or node.op is WITHIN for node in program.nodes()]):
        return program
    return _Windower(program, _Known({}, {}, {})).run()


class _Known(NamedTuple):
    """What is known of the inputs of a loop's body: how far integers go, which number arrays of whole numbers in a row begin
    with, and of which integer (and how many more) others are such."""

    spans: dict[Node, Span]
    counts: dict[Node, int]
    rows: dict[Node, tuple[Node, int]]


class _Windower(Simplifier):
    """Rebuilds a program, or the body of a loop."""

    def __init__(self, program: Program, known: _Known) -> None:
        super().__init__(program, {})
        self.known = known

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Loop):
            body, course = node.op.body, node.op.course
            inner = _Windower(BodyProgram(body), self._within(node))
            return self.visit_as(loop_of(copied(body, inner, {}), course), node, args)
        if (new := taken(self, node, args)) is not None:
            return self._noted(new, node)
        if node.op not in _SELECTING or len(args) == len(node.op.rules):
            return super().visit(node, args)
        given, spec = self._as_slices(node) or (args, dict(node.params)["spec"])
        given, spec = self._at_once(node, given, spec)
        if given == args:
            return super().visit(node, args)
        params = tuple(sorted({**dict(node.params), "spec": spec}.items()))
        return self._noted(self.graph.add(node.op, given, params, node.aval), node)

    @staticmethod
    def _noted(new: Node, node: Node) -> Node:
        """What takes the place of a node."""
        new.line, new.phase, new.exact, new.active = node.line, node.phase, node.exact, node.active
        new.name = new.name or node.name
        return new

    def _within(self, node: Node) -> _Known:
        """What is known in the body of a loop."""
        body, course = node.op.body, node.op.course
        _, _, fixed = node.op.split(node.args)
        found = _Known({}, {}, {})
        inside = dict(zip(fixed, body.invariants, strict=True))
        if course.count:
            last = course.start + course.step * (course.count - 1)
            found.spans[body.index] = min(course.start, last), max(course.start, last)
        for value, item in inside.items():
            if (span := self._span(value)) is not None:
                found.spans[item] = span
            if (first := self._count(value)) is not None:
                found.counts[item] = first
            if (row := self._row(value)) is not None and row[0] in inside:
                found.rows[item] = inside[row[0]], row[1]
        return found

    def _span(self, node: Node) -> Span | None:
        """How far an integer goes; None where that is not known, as of all else."""
        number = const(node)
        if type(number) is int:
            return number, number
        if node in self.known.spans or node.op not in SPANS or node.aval.shape or node.aval.dtype.kind != "i":
            return self.known.spans.get(node)
        return span_of(node.op, [self._span(arg) for arg in node.args])

    def _count(self, node: Node) -> int | None:
        """The first one of whole numbers in a row, along the first axis; None for other arrays."""
        if node.op is not CAPTURED:
            return self.known.counts.get(node)
        array = self.program.graph.arrays[node]
        whole = array.ndim and array.dtype.kind == "i" and 0 < array.size == len(array)
        return int(array.flat[0]) if whole and np.array_equal(array.ravel(), array.flat[0] + np.arange(array.size)) else None

    def _row(self, node: Node) -> tuple[Node, int] | None:
        """The integer that, and so many more, is the first one of whole numbers in a row; None for other arrays."""
        if node in self.known.rows or not is_op(node, np.add) or not node.aval.shape:
            return self.known.rows.get(node)
        for root, count in (node.args, node.args[::-1]):
            first = self._count(count)
            if first is None or self._span(root) is None:
                continue
            if (is_op(root, np.add) or is_op(root, np.subtract)) and type(more := const(root.args[1])) is int:
                return root.args[0], first + (more if is_op(root, np.add) else -more)
            return root, first
        return None

    def _as_slices(self, node: Node) -> tuple[tuple[Node, ...], index.Spec] | None:
        """The arguments and the index of what is read or written at places in a row; None for other places."""
        given, places = node.args[: len(node.op.rules)], list(node.args[len(node.op.rules) :])
        shape = node.aval.shape if node.op is index.SCATTER else node.args[0].aval.shape
        spec = list(dict(node.params)["spec"])
        picked = [axis for axis, part in enumerate(spec) if type(part) in (int, index.Hole)]
        plain = all([type(part) in (int, index.Hole, index.Slice) for part in spec])
        if not plain or picked[-1] - picked[0] >= len(picked):  # NumPy puts the axes of index arrays in front
            return None
        rows = [axis for axis in picked if type(spec[axis]) is index.Hole and places[spec[axis].number].aval.shape]
        for across, axis in enumerate(reversed(rows)):
            number = spec[axis].number
            place = places[number]
            row, width = self._row(place), place.aval.shape[0]
            if row is None or place.aval.shape != (width,) + (1,) * across:
                return None
            places[number], first = row
            low, high = self._span(row[0]) or (-1, -1)
            if low + first < 0 or high + first + width > shape[axis]:
                return None
            spec[axis] = index.Window(number, first, width)
        return (tuple([self._new(arg) for arg in (*given, *places)]), tuple(spec)) if rows else None

    def _new(self, node: Node) -> Node:
        """What a node is here; an input that nothing else has read so far may be new."""
        if node not in self.mapping:
            self.mapping[node] = self.visit(node, ())
        return self.mapping[node]

    def _at_once(self, node: Node, args: tuple[Node, ...], spec: index.Spec) -> tuple[tuple[Node, ...], index.Spec]:
        """The same of what is a window of a window: read, or added to zeros that are added there."""
        count = len(node.op.rules)
        inner = args[count - 1]
        within = index.GETITEM if node.op is index.GETITEM else index.SCATTER
        if inner.op is not within or node.op not in (index.GETITEM, index.INDEX_ADD) or self.used.get(inner, 0) > 1:
            return args, spec
        places, more = args[count:], inner.args[1:]
        first, then = (dict(inner.params)["spec"], spec) if within is index.GETITEM else (spec, dict(inner.params)["spec"])
        number = len(more) if within is index.GETITEM else len(places)
        whole = _composed(first, then, number)
        plain = all([not place.aval.shape and place.aval.dtype.kind in "iu" for place in (*places, *more)])
        if whole is None or not plain:
            return args, spec
        ordered = (*more, *places) if within is index.GETITEM else (*places, *more)
        return (*args[: count - 1], inner.args[0], *ordered), whole


def _composed(first: index.Spec, then: index.Spec, number: int) -> index.Spec | None:
    """The index that names of an array what ``then``, whose places are counted from ``number`` on, names of what ``first``
    does; None where both cut one axis, or have more in them than places and slices."""
    parts: list[Any] = []
    rest = [part._replace(number=part.number + number) if type(part) in _AT else part for part in then]
    if not all([type(part) in (int, index.Slice, *_AT) for part in (*first, *then)]):
        return None
    for part in first:
        if type(part) in (index.Slice, index.Window) and rest:
            other = rest.pop(0)
            if index.EVERY not in (part, other):
                return None
            parts.append(other if part == index.EVERY else part)
        else:
            parts.append(part)
    return (*parts, *rest)


_AT = (index.Hole, index.Window)
