"""Selections by masks that hang on the arguments: what is computed of ``x[m]`` is computed for all of ``x``.

``np.sum(x[x > 0] ** 2)`` has as many summands as numbers are positive, in each call others. So that code does not hang on how
many there are, such sums are recorded as ``np.sum(np.where(m, x, 0) ** 2)``. The selections themselves are recorded, too (but
in loops, whose iterations shall be alike); nobody needs them as a rule. How many there are is looked at where something else
is done with one, or its shape is asked for: then it is a decision.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir import Aval, Node, aval_of
from symgrad.ops.core import REGISTRY, literal
from symgrad.ops.engine import ASTYPE, ITEM, STOP, TO_PYTHON
from symgrad.ops.index import CUT, EVERY, GETITEM, IN_SLICE, INDEX_ADD, LAST_WRITE, SCATTER, SETITEM, SPLICE, Hole, Slice
from symgrad.ops.scan import Running
from symgrad.ops.signal import INTERP
from symgrad.tracing.tracer import WHOLE, Run, Tracer, look_at_size

MANY = 65_536  # elements, of which it is dear to compute all for a few
FEW = 16  # one in so many is selected at least, of those

_ENDS = (0, -1)  # the indices of the first and the last one
_FEW = 3  # rows that a slice leaves out at an end
# what is finite, with its derivatives, where all that was selected is zero
_TOTAL = frozenset([
    np.add, np.subtract, np.multiply, np.negative, np.positive, np.abs, np.fabs, np.square, np.sin, np.cos, np.tanh, np.arctan,
    np.maximum, np.minimum, np.clip, np.where, np.sign, np.less, np.less_equal, np.greater, np.greater_equal, np.equal,
    np.not_equal, np.logical_and, np.logical_or, np.logical_not, np.invert, np.bitwise_and, np.bitwise_or,
])  # fmt: skip


class Selections:
    """The selections of one trace, by their nodes, and the masks that they are made by."""

    def __init__(self, trace: Run) -> None:
        self.trace = trace
        self.masks: dict[Node, Node] = {}  # of each selection: where in its whole it is from
        self.indices: dict[Node, Node] = {}  # of each mask of the user's: that of the wholes that it selects from
        self.counts: dict[Node, Any] = {}  # of each of those masks: how many it selects
        self.sources: dict[Node, Node] = {}  # of selections that are no more than that: what they are from
        self.places: set[Node] = set()  # indices of all places where a mask is true
        self.total: set[Node] = set()  # selections that are finite, with their derivatives, if what was selected is zero
        self.zero: set[Node] = set()  # those that are zero then
        self.numbered: set[Node] = set()  # the numbers from 0 on of what is selected
        self.turned: dict[Node, Node] = {}  # transposed ones, of which the rows are columns, and what they are of
        self.backwards: dict[Node, Node] = {}  # masks that have another one's places from the last to the first, and that one
        self.divided: set[Node] = set()  # those that were divided by what may be zero if nothing was
        self.aside: dict[Node, None] = {}  # selections that an iteration makes, and that are not in the graph
        self._known: dict[Any, Node] = {}  # those, by their operations
        self.looked: set[Node] = set()  # the masks whose counts are known
        # what was made and asked outside of loops; each iteration does so anew, as those around it may not have
        self._wholes: dict[tuple[Node, bool], Tracer] = {}
        self._some: dict[Node, bool] = {}

    def takes(self, mask: Tracer) -> bool:
        """Whether how many a mask selects need not be known here and now."""
        trace = self.trace
        if mask.tape is not trace or not trace.user or self._busy():
            return False
        node = self._node(mask)
        if not node.active or not np.size(mask.like) or not np.ndim(mask.like):
            return False
        if node not in self.indices:
            outer = self.masks.get(node)
            if outer is not None and (outer in self.looked or self._ready(node) is None):
                return False
            whole = mask if outer is None else self._filled(node, False)
            self.indices[node] = whole.node
            # recorded here, so that code which asks for it asks before it selects
            count = self.counts[whole.node] = np.count_nonzero(whole)
            if whole.size >= MANY and not bool(count * FEW >= whole.size):
                self.look(whole.node)
        return self.indices[node] not in self.looked

    def within(self, start: Any, stop: Any, size: int) -> Tracer:
        """The mask of the places that a slice names. Nothing asks for it, nor for how many these are, as a rule."""
        mask: Tracer = self._made(IN_SLICE, (start, stop), {"size": size})
        self.indices[mask.node] = mask.node
        return mask

    def made_like(self, fun: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """``np.ones_like(x[m])`` and its kin, ``np.ones(len(x[m]))``, ``np.arange(1, len(x[m]) + 1)`` or ``np.linspace(a, b,
        len(x[m]))``, as what ``m`` selects; None for other calls."""
        if not any([fun is one for one in _MADE]):
            return None
        start, end = 0, None
        if fun is np.arange and len(args) == 2 and type(args[0]) is int:
            start, args = args[0], (self._less(args[1], args[0]),)
        if fun is np.linspace and len(args) == 3:
            (start, end), args = args[:2], args[2:]
        fill, first = _FILLS.get(fun), (args or (None,))[0]
        if options.keys() - {"dtype"} or self._busy() or self.trace.iterates or not self.trace.user:
            return None
        if fun in _LIKE:
            if type(first) is not Tracer or first.node in self.turned:
                return None
            mask, rest = self.masks.get(first.node), first.node.aval.shape[1:]
            dtype = options.get("dtype") or first.node.aval.dtype
        else:
            length, *rest = first if type(first) is tuple and first else (first,)
            mask, dtype = self._counted(length), options.get("dtype") or (int if fun is np.arange else float)
        if fun is np.linspace and not (mask is not None and options == {} and all([_is_real(one) for one in (start, end)])):
            return None
        if len(args) != 1 or mask is None or mask in self.looked or not all([type(n) is int for n in rest]):
            return None
        self.indices.setdefault(mask, mask)
        taken: Any = self.trace.lookup(mask)
        if fill is None:
            whole: Any = np.reshape(np.cumsum(taken), mask.aval.shape) - 1
            if end is not None:
                whole = _between(start, end, whole, self.count_of(mask))
            elif start:
                whole = whole + start
            if end is None and np.dtype(dtype) != whole.dtype:
                whole = whole.astype(dtype)
        else:
            whole = self.trace.lookup(self.trace.constant(np.full((*mask.aval.shape, *rest), fill, dtype))[0])
        found = self.trace.record(GETITEM, (whole, taken), {"spec": WHOLE})
        if fill is None and end is None and not start and found.dtype == int:
            self.numbered.add(found.node)
        return found

    def _less(self, length: Any, number: int) -> Any:
        """How many there are, where that is known to be so many less than ``length``; else None."""
        if number == 0 or type(length) is not Tracer or length.node.op not in (_ADD, _SUBTRACT):
            return length if number == 0 else None
        more, (one, other) = literal(length.node.args[1]), length.node.args
        if length.node.op is _ADD and type(literal(one)) is int:
            one, more = other, literal(one)
        known = type(more) is int and (more if length.node.op is _ADD else -more) == number
        return self.trace.lookup(one) if known else None

    def _counted(self, length: Any) -> Node | None:
        """The mask that selects so many, where somebody asked how many these are."""
        if type(length) is not Tracer:
            return None
        node = length.node.args[0] if length.node.op is TO_PYTHON else length.node
        if node.op in _COUNTING and not node.params and node.args[0] in self.indices:
            return self.indices[node.args[0]]
        return next((mask for mask, count in self.counts.items() if count.node is node), None)

    def count_of(self, mask: Node) -> Any:
        """How many elements a mask selects."""
        if mask not in self.counts:
            self.counts[mask] = np.count_nonzero(self.trace.lookup(mask))
        return self.counts[mask]

    def places_of(self, op: Any, mask: Tracer) -> Any:
        """``np.nonzero(mask)`` or ``np.flatnonzero(mask)``, where the number of places need not be known; else None."""
        if mask.node in self.masks:
            return None
        result = self._made(op, (mask,), {})
        index = result if type(result) is Tracer else result[0]
        self.masks[index.node], self.sources[index.node] = mask.node, self.trace.constant(np.arange(mask.like.size))[0]
        self.places.add(index.node)
        self._note(index.node)
        return result

    def begin(self, start: int, unread: set[int]) -> None:
        """An iteration begins, of a loop that began with node ``start``: what the last one selected is of no use to it.

        What somebody still holds is as other values are from here on, but for the nodes (ids) of what ``unread`` locals alone
        hold.
        """
        for mask in self._held(unread):
            self.look(mask)
        every: tuple[dict[Node, Any], ...] = self.masks, self.indices, self.counts, self.sources
        self.masks, self.indices, self.counts, self.sources = [
            {node: fact for node, fact in known.items() if 0 <= node.index < start} for known in every
        ]
        sets = self.places, self.total, self.zero, self.divided, self.looked
        self.places, self.total, self.zero, self.divided, self.looked = [
            {node for node in known if 0 <= node.index < start} for known in sets
        ]

    def _held(self, unread: set[int]) -> list[Node]:
        """The masks of selections that were set aside and that somebody else holds; all others are forgotten."""
        slices = {node for node in self.aside if self.indices.pop(node, None) is not None}
        for node in self.aside:
            self.sources.pop(node, None)
            self.counts.pop(node, None)
            for known in (self.places, self.total, self.zero, self.divided):
                known.discard(node)
        waiting = [(node, self.masks.pop(node, None), self.trace.values.pop(node, None)) for node in self.aside]
        self.aside, self._known = {}, {}
        held: list[tuple[Node, Node | None, Any]] = []
        while waiting:  # the last ones first, which hold those before
            node, mask, value = waiting.pop()
            noted = (id(node) in unread) + (node in slices)
            if sys.getrefcount(node) > 2 + noted:  # this name, getrefcount's own, the local's value, ``slices``
                held.append((node, mask, value))
        for node, mask, value in reversed(held):
            self.aside[node], self.trace.values[node] = None, value
            if mask is not None:
                self.masks[node] = mask
            if node in slices:
                self.indices[node] = node
        return [mask for _, mask, _ in held if mask is not None]

    def asked(self, x: Tracer, name: str) -> Any:
        """``x.shape`` or ``x.size`` or, by the name of ``len``, its length: traced, where nobody need know it."""
        mask = self.masks.get(x.node)
        if mask is None or mask in self.looked or self._busy():
            return len(x) if name == "len" else getattr(x, name)
        length, rest = TO_PYTHON(self.count_of(mask)), x.node.aval.shape[1:]
        if x.node in self.turned:  # two axes, of which the second one is of what is selected
            first = x.node.aval.shape[0]
            return (first, length) if name == "shape" else first * length if name == "size" else first
        return (length, *rest) if name == "shape" else length * math.prod(rest) if name == "size" else length

    def _busy(self) -> bool:
        """Whether what runs now is part of a batch, or but an example."""
        return bool(self.trace.lanes or self.trace.exemplary)

    def look(self, mask: Node) -> None:
        """How many elements a mask selects counts from here on."""
        if mask not in self.looked:
            self.looked.add(mask)
            for node in [node for node, one in self.masks.items() if one is mask]:
                for arg in node.args:
                    if arg in self.masks:
                        self.look(self.masks[arg])
                self._place(node)
            look_at_size(self.trace, self.count_of(mask))

    def _place(self, node: Node) -> None:
        """Put a selection that was set aside into the graph."""
        if node in self.aside:
            del self.aside[node]
            for arg in node.args:
                self._place(arg)
            self.trace.graph.place(node)

    def look_at(self, x: Tracer) -> None:
        """Somebody looks at the shape of a value."""
        mask = self.masks.get(x.node)
        if mask is not None:
            self.look(mask)

    def written(self, x: Tracer, new: Tracer) -> None:
        """``x`` becomes ``new``: as many elements in each call only where both are selected alike."""
        masks = [self.masks.get(node) for node in (x.node, new.node)]
        if masks[0] is not masks[1]:
            for mask in masks:
                if mask is not None:
                    self.look(mask)

    def need(self, nodes: Sequence[Node]) -> None:
        """Something that knows of no selections is made of these."""
        for node in [node for node in nodes if node in self.aside]:
            if node in self.masks:
                self.look(self.masks[node])
            else:
                self._place(node)

    def settle(self, nodes: Sequence[Node]) -> None:
        """The trace is over: what its results are made of counts."""
        self.need(nodes)
        guards = self.trace.guards
        for node in self.trace.graph.needed([*nodes, *[guard.node for guard in guards]]):
            for mask in self._of(node.op, node.args):
                if all([guard.node is not self.count_of(mask).node for guard in guards]):  # it may have been taken back
                    self.looked.discard(mask)
                    self.look(mask)

    def _of(self, op: Any, nodes: Sequence[Node]) -> dict[Node, None]:
        """The masks whose selections an operation meets."""
        found = [self.masks[node] for node in nodes if node in self.masks]
        if op in _INDEXING or (op is SETITEM and nodes[1].aval.shape):
            found += [self.indices[node] for node in nodes[len(op.rules) :] if node in self.indices]
        return dict.fromkeys(found)

    def met(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Tracer | None:
        """The result of an operation that meets selections, if that is understood; None for others."""
        nodes = [self._node(arg) for arg in args]
        masks = [mask for mask in self._of(op, nodes) if mask not in self.looked]
        if not masks:
            return None
        if len(masks) == 2 and len(args) == 2 and (found := self._side_by_side(masks, op, args, nodes)) is not None:
            args, nodes, masks = found, [self._node(arg) for arg in found], masks[:1]
        inner = op is GETITEM and nodes[0] in self.masks and nodes[-1] in self.indices
        if (inner or len(masks) == 1) and not self._busy() and self.trace.user:
            mask = self.indices[nodes[-1]] if inner else masks[0]
            found = self._selected(mask, op, args, nodes, params)
            start = len(self.trace.graph.nodes)
            if found is None:
                found = self._used(mask, op, args, nodes, params)
            if found is not None:
                for node in self.trace.graph.nodes[start:] if type(found) is Tracer else ():
                    if node is not found.node and node.name == found.node.name:
                        node.name = None
                return found  # type: ignore[no-any-return]
        for mask in masks:
            self.look(mask)
        return None

    def _side_by_side(self, masks: Sequence[Node], op: Any, args: Sequence[Any], nodes: Sequence[Node]) -> list[Any] | None:
        """Two rows that masks select, as many by one as by the other: both as the first of the ``masks`` does."""
        first, other = masks
        counts = [self.counts.get(mask) for mask in masks]
        alike = all([type(one) is Tracer and one.node is counts[0].node for one in counts])  # type: ignore[union-attr]
        rows = [self.masks.get(node) for node in nodes] in ([first, other], [other, first])
        rows = rows and all([len(one.aval.shape) == 1 for one in (*masks, *nodes)])
        if not (alike and rows and (_is_elementwise(op) or op in _PRODUCTS)) or self._busy():
            return None
        place = [self.masks.get(node) for node in nodes].index(other)
        whole: Any = self._ready(nodes[place]) if nodes[place].aval.dtype.kind != "b" else None
        if whole is None:
            return None
        taken: Any = self.trace.lookup(first)
        order: Any = np.argsort(np.logical_not(self.trace.lookup(other)), kind="stable")
        moved = whole[order[np.maximum(np.cumsum(taken) - 1, 0)]]
        found = self._from(moved, taken, counts[0], _POSITIVE, (args[place],), {})
        return [found if i == place else arg for i, arg in enumerate(args)]

    def _node(self, arg: Any) -> Any:
        if type(arg) is not Tracer:
            return self.trace.constant(arg)[0]
        self.trace.admit(arg)
        if arg.base is not None:
            arg.refresh()
        return arg.node

    # ---- what is selected in the same way ----

    def _selected(self, mask: Node, op: Any, args: Sequence[Any], nodes: Sequence[Any], params: dict[str, Any]) -> Any:
        """A selection, or what is computed of each element of some, which are alike; None for others."""
        source = None
        if op is GETITEM and len(nodes) == 1 and nodes[0] in self.turned:
            return self._of_columns(nodes[0], params["spec"])
        if not self.turned.keys().isdisjoint(nodes):
            return None
        if op in _ARRANGED and (_is_row(mask, nodes, params) or _is_down(mask, op, nodes, params)):
            return self._arranged(mask, op, args, nodes, params)
        if op is _CONCATENATE and params.get("axis", 0) == 0 and len(mask.aval.shape) == 1:
            return self._joined(mask, op, args, nodes, params)
        cut = None if self.trace.iterates or len(mask.aval.shape) > 1 else _ends_cut(op, nodes, params)
        if cut is not None and any([part != EVERY for part in params["spec"][1:]]):
            part, *rest = params["spec"]
            rows = self.trace.record(op, args, {"spec": (part, *[EVERY] * len(rest))})
            return self.trace.record(op, (rows,), {"spec": (EVERY, *rest)})
        if cut is not None:
            return self._cut(mask, *cut, op, args, nodes, params)
        if op is GETITEM and self._is_one_of_each_row(mask, nodes, params):
            pass
        elif op is GETITEM:
            first, *index = nodes
            part, *rest = params["spec"]
            if rest and (part,) == WHOLE and not self.trace.iterates and index[0] in self.indices and first not in self.masks:
                if len(index) > 1 or len(mask.aval.shape) > 1:
                    return None
                columns = self.trace.record(GETITEM, args[:1], {"spec": (EVERY, *rest)})
                return self._selected(mask, op, (columns, args[1]), [columns.node, *index], {"spec": WHOLE})
            if index and (params["spec"] != WHOLE or not self._is_index(mask, first, index[0])):
                return None
            if not index and (params["spec"][0] != EVERY or self.trace.iterates):  # a view
                return None
            if first in self.masks and index and self._ready(first) is None:
                return None
            if index and (index[0] in self.indices or (index[0] in self.places and first.aval.shape[0] == mask.aval.shape[0])):
                source = first
        elif not (_is_elementwise(op) and self._are_alike(mask, nodes)) and not self._is_by_rows(mask, op, nodes, params):
            if op is not _TRANSPOSE or params or len(nodes[0].aval.shape) != 2 or len(mask.aval.shape) > 1:
                return None
            self.turned[(turned := self._made(op, args, params)).node] = nodes[0]
            self.masks[turned.node] = mask
            return turned
        result = self._made(op, args, params)
        self.masks[result.node] = mask
        if source is not None:
            self.sources[result.node] = source
        self._note(result.node)
        return result

    def _of_columns(self, node: Node, spec: Sequence[Any]) -> Any:
        """A number, a row, a column or a part of columns that are selected, which are the rows of something else."""
        first, last, *rest = (*spec, EVERY, EVERY)[: max(len(spec), 2)]
        if rest or not {type(first), type(last)} <= {int, Slice}:
            return None
        part: Any = self.trace.record(GETITEM, (self.trace.lookup(self.turned[node]),), {"spec": (last, first)})
        return np.transpose(part) if type(first) is type(last) is Slice else part

    def _arranged(self, mask: Node, op: Any, args: Sequence[Any], nodes: Sequence[Any], params: dict[str, Any]) -> Any:
        """What is selected put in order, added up one by one, or less what was selected before; None for other numbers."""
        if self._ready(nodes[0]) is None:
            return None
        taken: Any = self.trace.lookup(mask)
        filled: Any = self._filled(nodes[0], 0)
        count = self.count_of(mask)
        if op in _RUNNING:
            if nodes[0].aval.dtype.kind != "f":
                return None
            extreme = self.trace.record(op, (self._filled(nodes[0], _RUNNING[op]),), params)
            return self._from(extreme, taken, count, op, args, params)
        if op is _CUMSUM:
            return self._from(np.cumsum(filled, axis=0), taken, count, op, args, params)
        if op is _SORT:
            found = self._in_order(nodes[0])
            return None if found is None else self._from(found, np.arange(taken.size) < count, count, op, args, params)
        return self._from(filled - filled[self._one_before(mask)], *self._all_but(mask, 1), op, args, params)

    def _from(self, whole: Any, where: Any, count: Any, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The result of an operation, which is what ``where`` selects of a ``whole``, so many elements."""
        result = self._made(op, args, params)
        self.indices[where.node], self.counts[where.node] = where.node, count
        self.masks[result.node], self.sources[result.node] = where.node, whole.node
        self._note(result.node)
        return result

    def _one_before(self, mask: Node) -> Any:
        """For each place that one which is selected before it."""
        taken: Any = self.trace.lookup(mask)
        last = np.maximum.accumulate(np.where(taken, np.arange(taken.size), 0))  # what was selected up to there
        return np.concatenate([last[:1], last[:-1]])

    def _all_but(self, mask: Node, fewer: int) -> tuple[Any, Any]:
        """A mask that leaves out the first places which another one selects, so many; and how many it selects."""
        taken: Any = self.trace.lookup(mask)
        return taken & (np.cumsum(taken) > fewer), np.maximum(self.count_of(mask) - fewer, 0)

    def _cut(self, mask: Node, first: int, last: int, op: Any, args: Any, nodes: Sequence[Any], params: dict[str, Any]) -> Any:
        """What is selected, but for so many at its ends; backwards, where ``last`` is -1.

        Each is put where the one is that comes as many later as are left out at the end: so ``x[1:]`` and ``x[:-1]`` are at
        the same places.
        """
        whole: Any = self._ready(nodes[0])
        if whole is None:
            return None
        if last < 0:
            taken: Any = self.trace.lookup(mask)
            where = self.trace.lookup(self.backwards[mask]) if mask in self.backwards else taken[::-1]
            self.backwards[where.node] = mask
            return self._from(whole[::-1], where, self.count_of(mask), op, args, params)
        if last:
            place = before = self._one_before(mask)
            for _ in range(last - 1):
                place = before[place]
            whole = whole[place]
        return self._from(whole, *self._all_but(mask, first + last), op, args, params)

    def _joined(self, mask: Node, op: Any, args: Any, nodes: Sequence[Any], params: dict[str, Any]) -> Any:
        """What is selected, before or behind other rows."""
        wholes: list[Any] = []
        marks: list[Any] = []
        count: Any = 0
        for node, arg in zip(nodes, args, strict=True):
            selected = self.masks.get(node) is mask
            whole = self._ready(node) if selected else arg
            if whole is None:
                return None
            every = Aval(node.aval.shape[:1], np.dtype(bool), "array")
            wholes.append(whole)
            marks.append(self.trace.lookup(mask) if selected else self.trace.constant_like(True, every))
            count = count + (self.count_of(mask) if selected else every.shape[0])
        return self._from(np.concatenate(wholes), np.concatenate(marks), count, op, args, params)

    def _in_order(self, node: Node) -> Any:
        """What is selected in its order, and NaN behind it; None where it is not real, or NaN is among it."""
        if node.aval.dtype.kind != "f":
            return None
        filled, count = self._filled(node, np.nan), self.count_of(self.masks[node])
        return None if bool(np.count_nonzero(np.isnan(filled)) + count > filled.size) else np.sort(filled)

    def quantile(self, mask: Node, node: Node, q: float | None) -> Any:
        """The ``q`` quantile of what is selected, which is linear between two of the numbers (R. J. Hyndman and Y. Fan, Sample
        quantiles in statistical packages, 1996, definition 7); or the median, which is their mean."""
        numbers, most = self._in_order(node), self.count_of(mask) - 1
        if numbers is None:
            return None
        if q is None:
            return (numbers[most // 2] + numbers[(most + 1) // 2]) / numbers.dtype.type(2)
        place = most * q
        below = np.floor(place).astype(int)
        a, b, part = numbers[below], numbers[np.minimum(below + 1, most)], place - below
        return np.where(part < 0.5, a + (b - a) * part, b - (b - a) * (1 - part))[()]

    def _made(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """A selection, recorded or, in an iteration that is the first to make it, set aside."""
        trace = self.trace
        nodes = [self._node(arg) for arg in args]
        if not trace.iterates:
            for node in nodes:
                self._place(node)
            return trace.written(op, args, params)
        key = op, tuple(nodes), tuple(sorted(params.items()))
        if trace.graph.find(*key) is not None:
            return trace.written(op, args, params)
        node = self._known.get(key)
        if node is None:
            value = op.fun(*[trace.computed(node) for node in nodes], **params)
            node = self._known[key] = self._put_aside(Node(*key, aval_of(value)), value)
            if type(value) is tuple:
                for i, part in enumerate(value):
                    self._put_aside(Node(ITEM, (node,), (("item", i),), aval_of(part)), part)
        if type(node.aval) is tuple:
            return tuple([trace.lookup(part) for part in self.aside if part.op is ITEM and part.args[0] is node])
        return trace.lookup(node)

    def _put_aside(self, node: Node, value: Any) -> Node:
        self.aside[node], self.trace.values[node] = None, value
        return node

    def _note(self, node: Node) -> None:
        """Note what a selection is if all that was selected is zero."""
        key, mask, (*_, last) = node.op.key, self.masks[node], node.args
        own = [arg for arg in node.args if self.masks.get(arg) is mask]
        row = node.op is GETITEM and len(node.args) == 1
        divided = key is np.true_divide and self.masks.get(last) is not mask
        raised = key is np.power and _is_power(literal(last))
        by_rows = node.op in _TOTAL_ALONG
        if node in self.sources:
            self.total.add(node)
            self.zero.add(node)
        elif self.total.issuperset(own) and (key in _TOTAL or node.op in (ASTYPE, STOP) or row or divided or raised or by_rows):
            self.total.add(node)
            if not self.divided.isdisjoint(own) or (divided and not literal(last)):
                self.divided.add(node)
            if key is np.multiply:
                zero = not self.zero.isdisjoint(own) and all([arg in own or _is_finite(literal(arg)) for arg in node.args])
            else:
                alone = raised or len(own) == len(node.args)
                zero = alone and (key in _ODD or row or raised or by_rows) and self.zero.issuperset(own)
            if zero:
                self.zero.add(node)

    def _is_index(self, mask: Node, base: Node, index: Node) -> bool:
        """Whether an index selects from the first axes of an array as a mask does, or has a place for each that it selects."""
        if index not in self.indices:
            flat = len(index.aval.shape) == len(mask.aval.shape) == 1
            return flat and index.aval.dtype.kind in "iu" and base not in self.masks
        alike = base.aval.shape[: len(index.aval.shape)] == index.aval.shape
        return bool(alike and self.masks.get(base) is self.masks.get(index))

    def _is_one_of_each_row(self, mask: Node, nodes: Sequence[Any], params: dict[str, Any]) -> bool:
        """Whether it is ``rows[np.arange(len(rows)), labels]``."""
        if len(nodes) != 3 or nodes[1] not in self.numbered or len(mask.aval.shape) > 1:
            return False
        spec = params["spec"]
        return (
            len(spec) == 2 and (spec[0],) == WHOLE and type(spec[1]) is Hole and all([self.masks.get(x) is mask for x in nodes])
        )

    def _is_by_rows(self, mask: Node, op: Any, nodes: Sequence[Any], params: dict[str, Any]) -> bool:
        """Whether an operation makes of each row, of one or several that are selected, one of its result."""
        own = [self.masks.get(node) is mask for node in nodes]
        ranks = [len(node.aval.shape) for node in nodes]
        if len(mask.aval.shape) > 1:
            return False
        if op in _PRODUCTS:
            return own == [True, False] and ranks[0] > 1 and ranks[1] in ((1,) if op is _PRODUCTS[1] else (1, 2))
        if op is _EINSUM:
            subscripts: str = params["subscripts"]
            return _row_label(subscripts, own) == subscripts.partition("->")[2][:1] != ""
        if op is INTERP:
            return own == [True, False, False]
        if op is _RAVEL:
            return ranks == [1] and not params
        if op is _RESHAPE:
            first, *rest = params["shape"] if type(params["shape"]) is tuple else (params["shape"],)
            plain = first == -1 and not params.keys() - {"shape", "order"} and params.get("order", "C") == "C"
            return plain and math.prod(rest) == math.prod(nodes[0].aval.shape[1:])
        if op in _JOINS:
            return all(own) and params.get("axis", 0) % (ranks[0] + (op is _JOINS[0])) > 0
        axis = params.get("axis")
        axes = axis if type(axis) is tuple else (axis,)
        if op not in _ALONG or None in axes or params.keys() - {"axis", "keepdims", "ddof"}:
            return False
        return all([one % ranks[0] for one in axes])

    def _are_alike(self, mask: Node, nodes: Sequence[Any]) -> bool:
        """Whether all arrays among these are selections by a mask, or rows that each of their rows meets."""
        own = [node.aval for node in nodes if self.masks.get(node) is mask]
        ranks = {len(aval.shape) for aval in own}
        others = [node.aval.shape for node in nodes if self.masks.get(node) is not mask]
        return len(ranks) == 1 and all([len(shape) + (shape[:1] != (1,)) <= max(ranks) for shape in others])

    # ---- what they are selected from ----

    def _whole(self, node: Node, constant: bool) -> Tracer:
        """What a selection is a part of; elsewhere it is as the first element that is selected, or for ``constant`` as zero."""
        mask, wholes = self.masks[node], {} if self.trace.iterates else self._wholes
        waiting = [node]
        while waiting:
            one = waiting[-1]
            missing = [arg for arg in one.args if self.masks.get(arg) is mask and (arg, constant) not in wholes]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if (one, constant) not in wholes:
                whole = wholes[one, constant] = self._computed(one, mask, constant, wholes)
                whole.node.name = one.name
        return wholes[node, constant]

    def _computed(self, node: Node, mask: Node, constant: bool, wholes: dict[tuple[Node, bool], Tracer]) -> Tracer:
        trace, params = self.trace, dict(node.params)
        source = self.sources.get(node)
        if source is not None:
            x = trace.lookup(source) if source not in self.masks else self._filled(source, False)
            rest = x.shape[len(mask.aval.shape) :]
            where = self._wide(mask, len(rest))
            if constant and mask.op is IN_SLICE:
                return CUT(x, *map(self.trace.lookup, mask.args))  # type: ignore[no-any-return]
            if constant:
                return np.where(where, x, np.zeros((), x.dtype)[()])  # type: ignore[return-value]
            rows = np.reshape(x, (-1, *rest))
            return np.where(where, x, STOP(rows[np.argmax(trace.lookup(mask))]))  # type: ignore[return-value]
        if node.op is GETITEM and len(node.args) == 1:
            params["spec"] = (EVERY,) * len(mask.aval.shape) + params["spec"][1:]
        if node.op is GETITEM and len(node.args) == 3:  # one of each row
            every = trace.lookup(trace.constant(np.arange(mask.aval.shape[0]))[0])
            table, labels = (wholes[arg, constant] for arg in (node.args[0], node.args[2]))
            return trace.lookup(trace.run(node.op, [table, every, labels], params))
        args = [wholes[arg, constant] if self.masks.get(arg) is mask else trace.lookup(arg) for arg in node.args]
        return trace.lookup(trace.run(node.op, args, params))

    def _wide(self, mask: Node, axes: int) -> Tracer:
        """A mask with so many more axes."""
        found = self.trace.lookup(mask)
        return np.reshape(found, mask.aval.shape + (1,) * axes) if axes else found  # type: ignore[return-value]

    def _filled(self, node: Node, number: Any) -> Tracer:
        """What a selection is a part of, with a number elsewhere."""
        mask = self.masks[node]
        source = self.sources.get(node)
        if source is not None and source not in self.masks:
            whole = self.trace.lookup(source)
        else:
            whole = self._whole(node, node in self.total)
            if number == 0 and node in self.zero:
                return whole
        if mask.op is IN_SLICE and number == 0:
            return CUT(whole, *map(self.trace.lookup, mask.args))  # type: ignore[no-any-return]
        number = whole.dtype.type(number)
        return np.where(self._wide(mask, whole.ndim - len(mask.aval.shape)), whole, number)  # type: ignore[return-value]

    def has_some(self, mask: Node) -> bool:
        """Whether a mask selects anything, which is a decision."""
        if mask.op is IN_SLICE and self.trace.names_some(mask.args[0], mask.args[1], mask.aval.shape[0]):
            return True
        found = self._some.get(mask)
        if found is None:
            found = bool(np.any(self.trace.lookup(mask)))
            if not self.trace.iterates:
                self._some[mask] = found
        return found

    # ---- where they are used ----

    def _used(self, mask: Node, op: Any, args: Sequence[Any], nodes: Sequence[Any], params: dict[str, Any]) -> Any:
        """What is made of all of a selection, or written back; None where it is not known how."""
        rank = len(mask.aval.shape)
        if op is SETITEM:
            base, value, *index = nodes
            known = params["spec"] == WHOLE and (self.indices.get(index[0]) is mask or index[0] in self.places)
            if not known or base in self.masks or base.aval.shape[:rank] != mask.aval.shape:
                return None
            if not value.aval.shape:
                return self.trace.record(SETITEM, (args[0], args[1], self.trace.lookup(mask)), params)
            if self.masks.get(value) is not mask or base.aval.dtype != value.aval.dtype:
                return None
            new = self._ready(value) if len(base.aval.shape) - rank == len(value.aval.shape) - 1 else None
            if new is not None and mask.op is IN_SLICE:
                return SPLICE(args[0], new, *map(self.trace.lookup, mask.args))
            return None if new is None else np.where(self._wide(mask, new.ndim - rank), new, args[0])
        if op in _PRODUCTS and nodes[0] in self.turned and nodes[1] not in self.turned and nodes[1] in self.masks:
            first, second = self.turned[nodes[0]], nodes[1]  # by the same mask: sums over all rows
            if any([self._ready(node) is None for node in (first, second)]):
                return None
            return np.matmul(np.transpose(self._filled(first, 0)), self._filled(second, 0))
        if not self.turned.keys().isdisjoint(nodes):
            return None
        if op is GETITEM and len(nodes) == rank == 1 and type(params["spec"][0]) is int and params["spec"][0] in _ENDS:
            return self._end(mask, args[0], params)
        if op is GETITEM and rank == 1 and _is_item(nodes, params["spec"]):
            return self._item(mask, args, params)
        if (
            op is _LSTSQ
            and rank == 1
            and all([self.masks.get(node) is mask for node in nodes])
            and len(nodes[0].aval.shape) == 2
        ):
            enough = bool(self.count_of(mask) > nodes[0].aval.shape[1])  # else there are no residuals
            if not enough or any([self._ready(node) is None for node in nodes]):
                return None
            return self.trace.record(op, [self._filled(node, 0) for node in nodes], params)  # rows of zeros change nothing
        if op is _EINSUM and rank == 1:
            own = [self.masks.get(node) is mask for node in nodes]
            if not _is_over_rows(params["subscripts"], own) or any([self._ready(n) is None for n in nodes if n in self.masks]):
                return None
            whole = [self._filled(node, 0) if mine else arg for node, arg, mine in zip(nodes, args, own, strict=True)]
            return self.trace.record(op, whole, params)
        if op in _PRODUCTS and all([self.masks.get(node) is mask and len(node.aval.shape) == 1 for node in nodes]):
            if any([self._ready(node) is None for node in nodes]):
                return None
            a, b = [self._filled(node, 0) for node in nodes]
            return np.dot(a, b) if rank == 1 else np.dot(np.ravel(a), np.ravel(b))
        if op in _QUANTILES:
            q = literal(nodes[1]) if op is _QUANTILES[1] else None
            known = op is _QUANTILES[0] or (type(q) is float and 0 <= q <= 1)
            known = known and nodes[0].aval.dtype == np.float64 and _is_row(mask, nodes[:1], params)
            if not known or not self.has_some(mask) or self._ready(nodes[0]) is None:
                return None
            return self.quantile(mask, nodes[0], q)
        if op is INTERP:
            return self._interpolated(mask, args, nodes)
        use = _USES.get(op)
        if use is None or params.keys() - {"axis", *(["ddof"] if op in _SPREADS else [])}:
            return None
        axis, (node,) = params.get("axis"), nodes
        if len(node.aval.shape) == 1:
            known, axis = axis in (None, 0, -1), None
        else:  # rows
            known, axis = axis in (None, 0), None if axis is None else tuple(range(rank))
        if rank > 2 and axis is not None and op in (REGISTRY[np.std], REGISTRY[np.linalg.norm]):
            return None  # norms are of vectors and matrices
        half = op in _BY_NUMBER and node.aval.dtype == np.float16  # these NumPy adds up in single precision
        if not known or half or (op in _OF_SOME and not self.has_some(mask)) or self._ready(node) is None:
            return None
        return use(self, node, axis, params)

    def _end(self, mask: Node, x: Tracer, params: dict[str, Any]) -> Tracer | None:
        """The first or the last number or row that is selected."""
        whole = self._ready(x.node) if self.has_some(mask) else None
        if whole is None:
            return None
        first, *rest = params["spec"]
        taken = self.trace.lookup(mask)
        place = np.argmax(taken) if first == 0 else taken.shape[0] - 1 - np.argmax(taken[::-1])
        how = {"spec": (Hole(0), *rest)}
        found: Tracer = self.trace.record(GETITEM, (whole, place), how)
        if type(found.like) is np.ndarray:
            found.show(x, GETITEM, (), params)
        return found

    def _item(self, mask: Node, args: Sequence[Any], params: dict[str, Any]) -> Tracer | None:
        """The number or row that is selected at a place, which may be traced, counted from the end if it is negative."""
        x, *index = args
        whole, count = self._ready(x.node), self.count_of(mask)
        place: Any = index[0] if index else params["spec"][0]
        known = (place < count) & (place >= -count) if index else count > place if place >= 0 else count >= -place
        if whole is None or not bool(known):
            return None
        _, *rest = params["spec"]
        where = place_of(place, self.trace.lookup(mask))
        found: Tracer = self.trace.record(GETITEM, (whole, where), {"spec": (Hole(0), *rest)})
        if type(found.like) is np.ndarray:
            found.show(x, GETITEM, tuple(index), params)
        return found

    def _interpolated(self, mask: Node, args: Sequence[Any], nodes: Sequence[Any]) -> Any:
        """A line through points that are selected: it goes on beyond the last one, as there is room for more, but what is asked
        for is up to there."""
        known = len(mask.aval.shape) == 1 and nodes[0] not in self.masks
        if not known or any([self.masks.get(node) is not mask or self._ready(node) is None for node in nodes[1:]]):
            return None
        count = self.count_of(mask)
        if not bool(count > 1):
            return None
        order = np.argsort(np.logical_not(self.trace.lookup(mask)), kind="stable")
        beyond = np.arange(mask.aval.shape[0]) - (count - 1)
        points = []
        for node in nodes[1:]:
            whole: Any = self._ready(node)
            end, one_before = whole[order[count - 1]], whole[order[count - 2]]
            points.append(np.where(beyond > 0, end + beyond * (end - one_before), whole[order]))
        end = points[0][count - 1]
        return INTERP(np.minimum(args[0], end), *points)

    def _ready(self, node: Node) -> Tracer | None:
        """What a selection is a part of; None where nothing is selected, and something would have to be."""
        constant = node in self.total
        if (not constant or node in self.divided) and not self.has_some(self.masks[node]):
            return None
        return self._whole(node, constant)

    def count(self, node: Node, axis: Any) -> Any:
        """How many are selected, or how many numbers there are in all rows that are, as a number of the selection's kind."""
        dtype = np.finfo(node.aval.dtype).dtype if node.aval.dtype.kind in "fc" else np.dtype(float)
        count = ASTYPE(self.count_of(self.masks[node]), dtype=dtype)
        return count if axis is not None or len(node.aval.shape) == 1 else count * dtype.type(math.prod(node.aval.shape[1:]))

    def mean(self, node: Node, axis: Any, params: Any = None) -> Any:
        """The mean of what is selected."""
        return np.sum(self._filled(node, 0), axis) / self.count(node, axis)

    def deviation(self, node: Node, axis: Any, params: dict[str, Any]) -> tuple[Any, Any]:
        """By how much what is selected is off its mean, and by how many that is divided."""
        mask, mean = self.masks[node], self.mean(node, axis)
        whole = self._whole(node, node in self.total)
        off = np.where(self._wide(mask, whole.ndim - len(mask.aval.shape)), whole - mean, whole.dtype.type(0))
        count, ddof = self.count(node, axis), params.get("ddof", 0)
        return off, np.maximum(count - ddof, 0) if ddof else count


def place_of(place: Any, taken: Any) -> Any:
    """Where what a mask selects at a ``place`` is, which may be traced: there are so many, from the end if it is negative."""
    first, last = [np.argsort(one, kind="stable") for one in (np.logical_not(taken), taken)]
    if type(place) is int:
        return (first if place >= 0 else last)[place]
    return np.concatenate([first, last])[place]


def _is_real(value: Any) -> bool:
    """Whether it is a real number of default precision, traced or not."""
    like = value.like if type(value) is Tracer else value
    return type(like) in (int, float, np.int64, np.float64)


def _between(start: Any, end: Any, places: Any, count: Any) -> Any:
    """What ``np.linspace`` has at these ``places``, of so many."""
    evenly = places * ((end - start) / np.maximum(count - 1, 1)) + start
    return np.where((places == count - 1) & (places > 0), end, evenly)


def _row_label(subscripts: str, own: Sequence[bool]) -> str:
    """The label of the first axis of those operands that are one's ``own``, if no other axis has it; else an empty one."""
    labels = subscripts.partition("->")[0].split(",")
    row = labels[own.index(True)][:1]
    first = [
        text.find(row) == 0 == text.count(row) - 1 if mine else row not in text for text, mine in zip(labels, own, strict=True)
    ]
    return row if row.isalpha() and all(first) else ""


def _is_over_rows(subscripts: str, own: Sequence[bool]) -> bool:
    """Whether an ``einsum`` adds up what it computes of each row."""
    row = _row_label(subscripts, own)
    return row != "" and row not in subscripts.partition("->")[2] and "->" in subscripts


def _is_item(nodes: Sequence[Any], spec: Sequence[Any]) -> bool:
    """Whether an item of all is read, at a place, and no others are gathered from it."""
    first, *rest = spec
    one = type(first) is int and len(nodes) == 1
    one |= type(first) is Hole and len(nodes) == 2 and not nodes[1].aval.shape and nodes[1].aval.dtype.kind in "iu"
    return one and all([type(part) in (int, Slice) for part in rest])


def _is_row(mask: Node, nodes: Sequence[Node], params: dict[str, Any]) -> bool:
    """Whether an operation is done on all numbers in a row that are selected, as it is by default."""
    alone = len(nodes) == 1 and len(nodes[0].aval.shape) == len(mask.aval.shape) == 1
    return alone and nodes[0].aval.dtype.kind != "b" and not params.keys() - {"axis"} and params.get("axis") in (None, 0, -1)


def _ends_cut(op: Any, nodes: Sequence[Node], params: dict[str, Any]) -> tuple[int, int] | None:
    """How many rows at the beginning and at the end a slice leaves out, up to three; at the end -1, where it goes backwards."""
    if op is not GETITEM or len(nodes) != 1:
        return None
    part = params["spec"][0]
    if type(part) is not Slice or part == EVERY:
        return None
    if part == Slice(None, None, -1):
        return 0, -1
    first, last = part.start or 0, 0 if part.stop is None else -part.stop
    few = 0 <= first <= _FEW and (part.stop is None or 0 < last <= _FEW)  # none are left of ``[:0]``
    return (first, last) if few and part.step in (None, 1) else None


def _is_down(mask: Node, op: Any, nodes: Sequence[Node], params: dict[str, Any]) -> bool:
    """Whether an operation adds up all rows that are selected, one by one, or takes each from the next one."""
    down = op in (_CUMSUM, _DIFF) and len(nodes) == len(mask.aval.shape) == 1 and params == {"axis": 0}
    return down and nodes[0].aval.dtype.kind != "b"


def _is_finite(number: Any) -> bool:
    return type(number) in (int, float) and math.isfinite(number)


def _is_power(exponent: Any) -> bool:
    return _is_finite(exponent) and exponent >= 1


def _is_elementwise(op: Any) -> bool:
    one = isinstance(op.key, np.ufunc) and op.key.signature is None and op.key.nout == 1 and op.family != "op"
    return one or op.family == "elementwise" or op in (ASTYPE, STOP)


def _filled_with(fun: Any, number: Any) -> Callable[..., Any]:
    def use(selections: Selections, node: Node, axis: Any, params: Any) -> Any:
        if node.aval.dtype.kind != "f" and isinstance(number, float):
            return None
        filled = selections._filled(node, number)
        found = fun(filled) if axis is None else fun(filled, axis=axis)
        tied = math.isinf(number) and bool(np.any(found == number))  # what was selected with what was not
        return None if tied else found

    return use


def _place_with(fun: Any, number: float) -> Callable[..., Any]:
    def use(selections: Selections, node: Node, axis: Any, params: Any) -> Any:
        mask = selections.masks[node]
        if node.aval.dtype.kind != "f" or len(node.aval.shape) > 1 or len(mask.aval.shape) > 1:
            return None
        filled = selections._filled(node, number)
        place = fun(filled)
        return None if bool(filled[place] == number) else np.cumsum(selections.trace.lookup(mask))[place] - 1  # as above

    return use


def _variance(selections: Selections, node: Node, axis: Any, params: Any) -> Any:
    off, count = selections.deviation(node, axis, params)
    squares = np.square(off.real) + np.square(off.imag) if off.dtype.kind == "c" else np.square(off)
    return np.sum(squares, axis) / count


def _standard_deviation(selections: Selections, node: Node, axis: Any, params: Any) -> Any:
    off, count = selections.deviation(node, axis, params)
    return _norm(off, axis) / np.sqrt(count)


def _norm(x: Any, axis: Any) -> Any:
    return np.linalg.norm(np.ravel(x)) if axis is None else np.linalg.norm(x, axis=axis[0] if len(axis) == 1 else axis)


# zero where their arguments are
_ODD = frozenset([np.add, np.subtract, np.negative, np.positive, np.abs, np.fabs, np.square, np.sin, np.tanh, np.arctan])
_INDEXING = (GETITEM, SCATTER, INDEX_ADD, LAST_WRITE)
_PRODUCTS = tuple(REGISTRY[fun] for fun in (np.dot, np.inner, np.matmul))
_EINSUM, _TRANSPOSE, _RESHAPE, _RAVEL = (REGISTRY[fun] for fun in (np.einsum, np.transpose, np.reshape, np.ravel))
_LSTSQ = REGISTRY[np.linalg.lstsq]
_CUMSUM, _SORT, _DIFF = (REGISTRY[fun] for fun in (np.cumsum, np.sort, np.diff))
_RUNNING = {REGISTRY[Running(fun)]: end for fun, end in ((np.maximum, -np.inf), (np.minimum, np.inf))}
_ARRANGED = (_CUMSUM, _SORT, _DIFF, *_RUNNING)
_ADD, _SUBTRACT, _POSITIVE = (REGISTRY[fun] for fun in (np.add, np.subtract, np.positive))
_QUANTILES = tuple(REGISTRY[fun] for fun in (np.median, np.quantile))
_COUNTING = tuple(REGISTRY[fun] for fun in (np.sum, np.count_nonzero))
_FILLS = {np.ones_like: 1, np.zeros_like: 0, np.ones: 1, np.zeros: 0}
_LIKE, _MADE = (np.ones_like, np.zeros_like), (*_FILLS, np.arange, np.linspace)
_JOINS = tuple(REGISTRY[fun] for fun in (np.stack, np.concatenate))
_CONCATENATE = _JOINS[1]
_TOTAL_ALONG = frozenset([
    *[REGISTRY[fun] for fun in (np.sum, np.mean, np.prod, np.max, np.amax, np.min, np.amin, np.any, np.all)],
    *[REGISTRY[fun] for fun in (np.cumsum, np.sort)], *_PRODUCTS, *_JOINS, _EINSUM, _RESHAPE,
])  # fmt: skip
_ALONG = {*[REGISTRY[fun] for fun in (np.var, np.std, np.argmax, np.argmin, np.linalg.norm)], *_TOTAL_ALONG}
_ALONG -= {*_PRODUCTS, *_JOINS, _EINSUM, _RESHAPE}
_SPREADS = tuple(REGISTRY[fun] for fun in (np.var, np.std))
_USES: dict[Any, Callable[..., Any]] = {
    **{REGISTRY[fun]: _filled_with(fun, 0) for fun in (np.sum, np.any, np.count_nonzero)},
    **{REGISTRY[fun]: _filled_with(fun, 1) for fun in (np.prod, np.all)},
    **{REGISTRY[fun]: _filled_with(fun, -np.inf) for fun in (np.max, np.amax)},
    **{REGISTRY[fun]: _filled_with(fun, np.inf) for fun in (np.min, np.amin)},
    REGISTRY[np.argmax]: _place_with(np.argmax, -np.inf),
    REGISTRY[np.argmin]: _place_with(np.argmin, np.inf),
    REGISTRY[np.linalg.norm]: lambda s, node, axis, params: _norm(s._filled(node, 0), axis),
    REGISTRY[np.mean]: Selections.mean,
    REGISTRY[np.var]: _variance,
    REGISTRY[np.std]: _standard_deviation,
}
_BY_NUMBER = (*_SPREADS, REGISTRY[np.mean])  # whose results hang on how many numbers there are
_OF_SOME = tuple(REGISTRY[fun] for fun in (np.max, np.amax, np.min, np.amin, np.argmax, np.argmin, np.mean, np.var, np.std))
