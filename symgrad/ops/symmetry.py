"""Matrices that are symmetric by the way they are made, as matrices of kernels, of distances and ``x @ x.T`` are.

Values are numbered by the way they are made, with their axes in some order: what has one number is one value. A matrix is
symmetric if it and its transpose have one number. Numbers are kept in the graph, so that all questions take one walk over it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Graph, Node
from symgrad.ops import create, index
from symgrad.ops.core import ASTYPE, Op
from symgrad.ops.engine import IDENTITY

_COMMUTING = (np.add, np.multiply, np.maximum, np.minimum, np.hypot)
_EVEN = (np.square, np.abs, np.cos, np.cosh)
_SAME = (np.expand_dims, np.squeeze, np.reshape, np.ravel)  # where they but add or drop axes of one element
MADE_SO: set[Op] = set()  # operations whose results are symmetric, whatever they are made of
Layout = tuple[int, ...]  # where the axes are, the last one first, counted from the end; 0 for those of one element


def is_symmetric(a: Node, graph: Graph, inputs: bool = False, content: Callable[[Node], Any] | None = None) -> bool:
    """Whether a real matrix of ``graph`` is its transpose, whatever it is made of; if those that are ``inputs`` are, where that
    is asked.

    ``content`` gives captured arrays, where the graph itself does not.
    """
    if len(a.aval.shape) != 2 or a.aval.shape[0] != a.aval.shape[1] or a.aval.dtype.kind != "f":
        return False
    numbers = _Numbers(graph.numbers, content or graph.arrays.__getitem__, inputs)
    plain = _plain(a)
    return numbers.of(a, plain) == numbers.of(a, plain[::-1])


class Number(NamedTuple):
    """A value: ``sign`` times the factors numbered ``scale`` (0 if there are none) times the one numbered ``of``, the axes of
    which are at ``places``."""

    of: int
    sign: int = 1
    scale: int = 0
    places: tuple[int, ...] = ()


class _Made(NamedTuple):
    """How a value is made: ``head`` of ``parts``; the very one of these where there is no ``head``."""

    head: Any
    parts: list[tuple[Node, Layout]]
    how: str = ""  # what is done with the numbers of the parts


class _Numbers:
    """What is numbered for one question; ``known`` has the numbers that all have in common."""

    def __init__(self, known: dict[Any, Any], content: Callable[[Node], Any], inputs: bool) -> None:
        self.known, self.content, self.inputs = known, content, inputs

    def of(self, node: Node, layout: Layout) -> Number:
        """The number of a value with its axes in that order."""
        pending = [(node, _in_order(layout)[0])]
        making: dict[Any, _Made] = {}
        while pending:
            one, here = pending[-1]
            key = one.index, here, self.inputs
            if key in self.known:
                pending.pop()
                continue
            made = making.get(key)
            if made is None:
                made = making[key] = self._made(one, here)
                waiting = [(part, _in_order(where)[0]) for part, where in made.parts]
                waiting = [(part, where) for part, where in waiting if (part.index, where, self.inputs) not in self.known]
                if waiting:
                    pending += waiting
                    continue
            self.known[key] = self._numbered(one, made)
            pending.pop()
        return self._known(node, layout)

    def _known(self, node: Node, layout: Layout) -> Number:
        here, places = _in_order(layout)
        number: Number = self.known[node.index, here, self.inputs]
        return number._replace(places=places)

    def _new(self, head: Any) -> int:
        number: int = self.known.setdefault((head,), len(self.known) + 1)
        return number

    def _numbered(self, node: Node, made: _Made) -> Number:
        parts = [self._known(*part) for part in made.parts]
        if made.head is None:
            return parts[0]._replace(places=())
        sign, how = 1, made.how
        if how == "difference" and parts[1] < parts[0]:
            sign = -1
            parts.reverse()
        elif how == "even":
            parts[0] = parts[0]._replace(sign=1)
        elif how in ("product", "quotient", "contraction"):
            for part in parts:
                sign *= part.sign
            parts = [part._replace(sign=1) for part in parts]
        scaled = [i for i, part in enumerate(made.parts) if part[0].aval.shape] if how == "product" else []
        if len(scaled) == 1:  # a number times an array
            whole = parts.pop(scaled[0])
            return Number(whole.of, sign, self._new(("scale", whole.scale, parts[0])))
        if how == "contraction":
            scales = tuple(sorted([part.scale for part in parts]))
            return Number(self._new((made.head, scales, *sorted([part._replace(scale=0) for part in parts]))), sign)
        if how in ("product", "commuting"):
            parts.sort()
        return Number(self._new((made.head, *parts)), sign)

    def _made(self, node: Node, layout: Layout) -> _Made:
        """How a value with its axes in that order is made."""
        op, args, dims = node.op, node.args, len(layout)
        if op is IDENTITY:
            return _Made(None, [(args[0], layout)])
        if not isinstance(node.aval, Aval) or not isinstance(op, Op) or op.anew:
            return self._leaf(node, layout)
        key = op.key
        if (key in _SAME or _adds_axes(node)) and _dims(args[0]) == _dims(node):
            moved = iter([place for place in layout if place])
            return _Made(None, [(args[0], tuple([next(moved) if place else 0 for place in _plain(args[0])]))])
        if key is np.transpose and not node.params:
            return _Made(None, [(args[0], layout[::-1])])
        if (key is np.diag and not node.params and dims == 2) or key is np.outer:
            ends = [(arg, _plain(arg)) for arg in args]
            if key is np.diag:
                return _Made((op, _sorted(layout)), ends)
            if all([len(arg.aval.shape) == 1 for arg in args]):
                return _Made((op, node.params), [(args[0], (layout[1],)), (args[1], (layout[0],))], "contraction")
        if key in (np.matmul, np.dot) and [len(arg.aval.shape) for arg in args] == [2, 2]:
            row, column = (place and place - 1 for place in layout[::-1])
            inner = -1 if args[1].aval.shape[0] != 1 else 0
            return _Made((op, node.params), [(args[0], (inner, row)), (args[1], (column, inner))], "contraction")
        if (
            key in (np.sum, np.mean)
            and dict(node.params) in ({"axis": -1}, {"axis": dims})
            and dims + 1 == len(args[0].aval.shape)
        ):
            last = -1 if args[0].aval.shape[-1] != 1 else 0
            return _Made((op, "last"), [(args[0], (last, *[place and place - 1 for place in layout]))], "contraction")
        if op is ASTYPE or (op.family == "elementwise" and isinstance(key, np.ufunc)):
            parts = [(arg, _of_axes(arg, layout)) for arg in args]
            return _Made((op, node.params), parts, _how(node))
        return self._leaf(node, layout)

    def _leaf(self, node: Node, layout: Layout) -> _Made:
        """A value of which nothing is known but what it is made of, and whether it is symmetric."""
        if len(layout) == 2 and self._is_symmetric(node):
            layout = _sorted(layout)
        if node.op is CONST:
            value = dict(node.params)["value"]
            return _Made((CONST, type(value), repr(value)), [])
        shapes = [arg.aval.shape for arg in node.args if isinstance(arg.aval, Aval)]
        if not isinstance(node.op, Op) or node.op.anew or len(shapes) < len(node.args):
            return _Made((node.index, layout), [])
        return _Made((node.op, node.params, tuple(shapes), layout), [(arg, _plain(arg)) for arg in node.args])

    def _is_symmetric(self, node: Node) -> bool:
        """Whether a matrix is symmetric, whatever it is made of."""
        if node.op in MADE_SO or node.op is create.EYE:
            return True
        if node.aval.shape[0] != node.aval.shape[1]:
            return False
        if node.op is CAPTURED:
            value = self.content(node)
            return bool(np.array_equal(value, value.T))
        return self.inputs and (node.op is INPUT or self._is_part_of_input(node))

    def _is_part_of_input(self, node: Node) -> bool:
        """Whether it is one of several matrices that are given."""
        passed = []
        while node.op in (index.GETITEM, IDENTITY) or _key(node) in (np.transpose, np.moveaxis, np.swapaxes):
            if (node.index, "part") in self.known:
                break
            passed.append(node.index)
            node = node.args[0]
        found: bool = self.known.get((node.index, "part"), node.op is INPUT and len(node.aval.shape) > 2)
        self.known |= {(one, "part"): found for one in passed}
        return found


def _how(node: Node) -> str:
    key = _key(node)
    if key is np.power:
        exponent = node.args[1]
        value = dict(exponent.params)["value"] if exponent.op is CONST else 1
        return "even" if not np.iscomplexobj(value) and value % 2 == 0 else ""
    if key is np.subtract and node.aval.dtype.kind in "fic":
        return "difference"
    if key is np.multiply:
        return "product"
    if key is np.true_divide:
        return "quotient"
    return "even" if key in _EVEN else "commuting" if key in _COMMUTING else ""


def _key(node: Node) -> Any:
    """The function of NumPy's that an operation is."""
    return node.op.key if isinstance(node.op, Op) else None


def _plain(node: Node) -> Layout:
    """The axes where they are."""
    shape = node.aval.shape if isinstance(node.aval, Aval) else ()
    return tuple([-1 - i if size != 1 else 0 for i, size in enumerate(reversed(shape))])


def _of_axes(node: Node, layout: Layout) -> Layout:
    """Where the axes are of an operand of what has its own there."""
    return tuple([place if size != 1 else 0 for place, size in zip(layout, reversed(node.aval.shape), strict=False)])


def _in_order(layout: Layout) -> tuple[Layout, tuple[int, ...]]:
    """The same order of axes without gaps, and where the axes are, so that sums in sums have no more orders than others."""
    places = tuple(sorted([place for place in layout if place], reverse=True))
    return tuple([place and -1 - places.index(place) for place in layout]), places


def _sorted(layout: Layout) -> Layout:
    return tuple(sorted(layout))


def _dims(node: Node) -> list[int]:
    return [size for size in node.aval.shape if size != 1]


def _adds_axes(node: Node) -> bool:
    return node.op is index.GETITEM and all([part is None or part == index.EVERY for part in dict(node.params)["spec"]])
