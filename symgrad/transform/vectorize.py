"""Loops as arrays: iterations that need nothing of one another are done all at once.

A ``for`` loop over rows, pairs or points computes the same of each of them, and sums that up, writes it to a row, or keeps the
last. Where all that goes round is such a sum or such rows, or what the iteration before has left, the body is batched over the
iterations, as ``vmap`` batches a function; what was summed up going round is summed over the new axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, Aval, Node, ancestors
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import ITEM, TO_NUMPY, TO_PYTHON
from symgrad.trace import Trace
from symgrad.tracer import Tracer
from symgrad.transform.batch import Batch, CannotBatch, line_up
from symgrad.transform.loop import Body, Course, Loop

WORTH = 30  # elements of a value in all iterations, on average, from which on NumPy's calls are the lesser cost
ROW = 16_384  # bytes of a value in one iteration, on average, from which on there is nothing to gain
ALL = 67_108_864  # bytes of all values in all iterations, which are in memory at the same time

_ADD, _SUBTRACT = REGISTRY[np.add], REGISTRY[np.subtract]
_HARMLESS = {_ADD, _SUBTRACT, REGISTRY[np.multiply], REGISTRY[np.negative], TO_PYTHON}  # of Python's floats


def vectorized(trace: Trace, body: Body, course: Course, args: Sequence[Any]) -> list[Tracer] | None:
    """What a loop carries in the end, computed for all iterations at once; None where it has to run."""
    if course.count is None or course.test is not None or body.saved or body.elements or not _pays(body, course.count):
        return None
    guards, remarks, line = len(trace.guards), dict(trace.remarks), trace.line
    try:
        with np.errstate(all="ignore"):  # the iterations have told, or will not
            found = _Together(trace, body, course, args).results()
    except Exception:  # what the user is to see, the loop raises, too
        found = None
    finally:
        trace.line = line
    if found is None or len(trace.guards) > guards:
        del trace.guards[guards:]
        trace.remarks = remarks
        return None
    return found


def _pays(body: Body, count: int) -> bool:
    """Whether calls for all iterations cost less than numbers one by one, and what they give is not too much to keep.

    Iterations that decide on what they compute are left alone.
    """
    nodes = [node for node in body.nodes() if node.op not in (CONST, CAPTURED, ITEM)]
    avals = [aval for node in nodes for aval in (node.aval if type(node.aval) is tuple else (node.aval,))]
    if not avals or not all([isinstance(aval, Aval) for aval in avals]):
        return False
    if any([isinstance(node.op, Loop) and node.op.decides for node in nodes]):
        return False
    size, sizes = sum([aval.nbytes for aval in avals]), sum([math.prod(aval.shape) for aval in avals])
    return bool(count * sizes >= WORTH * len(avals) and size <= ROW * len(avals) and count * size <= ALL)


class Rows(NamedTuple):
    """What all iterations together name of an array, each one another place on ``axis`` of its index, which is ``place``; at
    the ``others`` they are alike."""

    spec: index.Spec
    others: tuple[Node, ...]
    axis: int
    place: Node


class Term(NamedTuple):
    """What an iteration does to a carried value: it adds ``node`` (or subtracts it, if not ``adds``).

    With a ``spec``, it does so at ``places``, which ``rows`` are all together; if it ``puts``, it writes there.
    """

    node: Node
    line: Any
    adds: bool = True
    spec: index.Spec = ()
    places: tuple[Node, ...] = ()
    rows: Rows | None = None
    puts: bool = False


class _Together(Batch):
    """A loop's body, batched over its iterations."""

    def __init__(self, trace: Trace, body: Body, course: Course, args: Sequence[Any]) -> None:
        assert course.count is not None
        super().__init__(trace, course.count, {})
        self.body, self.course, self.nodes = body, course, body.nodes()
        n = len(body.carry)
        self.starts = dict(zip(body.carry, args[:n], strict=True))
        self.ends = dict(zip(body.carry, body.after, strict=True))
        self.readers: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for arg in node.args:
                self.readers.setdefault(arg, []).append(node)
        self.alike.update(zip(body.invariants, args[n:], strict=True))
        self.steady = {item for item, end in self.ends.items() if end is item}
        self.alike.update({item: self.starts[item] for item in self.steady})
        self.numbers = self._numbers()

    def each(self, node: Node, args: list[Any], flags: list[bool]) -> Any:
        """One after the other is what the loop does."""
        raise CannotBatch(f"{node.op.name} runs once for each element")

    def results(self) -> list[Tracer]:
        """The last values of what goes round."""
        terms = {item: self._terms(item, end) for item, end in self.ends.items() if item not in self.steady}
        order = self._in_order([item for item, found in terms.items() if not found])
        self._constants()
        self._rows()
        for item in order:
            values = self._values(self.ends[item], item.aval)
            first = np.reshape(self.starts[item], (1, *item.aval.shape))
            self.known[item] = np.concatenate([first, values[:-1]]) if self.size > 1 else first
        return [self._applied(item, terms[item]) if terms.get(item) else self._last(item) for item in self.body.carry]

    def _in_order(self, items: list[Node]) -> list[Node]:
        """The carried values that an iteration leaves for the next one, those first that others are made of."""
        waiting, order = [item for item in items if item in self.readers or item in self.body.after], list[Node]()
        while waiting:
            ready = [item for item in waiting if set(waiting).isdisjoint(ancestors([self.ends[item]]))]
            if not ready:
                raise CannotBatch("each iteration goes on from what the one before has made")
            order += ready
            waiting = [item for item in waiting if item not in ready]
        return order

    # ---- what goes round ----

    def _terms(self, item: Node, end: Node) -> list[Term]:
        """What is done to a carried value that nothing else reads; nothing where that is something else."""
        terms: list[Term] = []
        node = item
        while node is not end or not terms:
            found = None if node in self.body.after else self._term(node)
            if found is None or found[1].aval != item.aval:
                return []
            terms.append(found[0])
            node = found[1]
        if end in self.readers or self.body.after.count(end) > 1:
            return []
        if not any([term.puts for term in terms]):
            return terms
        own = {term.rows and (term.rows.axis, term.rows.place) for term in terms}
        return terms if len(own) == 1 and None not in own else []  # each iteration has a row to itself

    def _term(self, node: Node) -> tuple[Term, Node] | None:
        """What is done to a value, and the result."""
        readers = self.readers.get(node, [])
        if len(readers) == 1 and readers[0].op in (_ADD, _SUBTRACT) and readers[0].args[0] is not readers[0].args[1]:
            (reader,) = readers
            a, b = reader.args
            adds = reader.op is _ADD
            return None if b is node and not adds else (Term(b if a is node else a, reader.line, adds), reader)
        writer = readers[-1] if readers and readers[-1].op is index.SETITEM else None
        if writer is None or writer.args[0] is not node or node in writer.args[1:]:
            return None
        _, value, *places = writer.args
        spec = dict(writer.params)["spec"]
        rows = self._together(node.aval.shape, spec, places)
        if len(readers) == 1:
            return None if rows is None else (Term(value, writer.line, True, spec, tuple(places), rows, True), writer)
        part = readers[0]
        same = part.op is index.GETITEM and part.args == (node, *places) and dict(part.params)["spec"] == spec
        if len(readers) > 2 or not same or self.readers[part] != [value] or self.readers[value] != [writer]:
            return None
        if value.op not in (_ADD, _SUBTRACT) or value.args[0] is value.args[1] or not {value, part}.isdisjoint(self.body.after):
            return None
        a, b = value.args
        if (value.op is _SUBTRACT and a is not part) or value.aval.dtype != writer.aval.dtype:
            return None
        if rows is None and (type(spec[0]) not in (index.Hole, int) or not all(map(_is_place, places))):
            return None  # the axis of the iterations may be another one than the first
        return Term(b if a is part else a, writer.line, value.op is _ADD, spec, tuple(places), rows), writer

    def _values(self, node: Node, aval: Aval) -> Any:
        """A value in all iterations, with an axis for them, as an array of ``aval``'s kind each."""
        self.run(ancestors([node]))
        value = self.value(node)
        if node in self.known:
            value = line_up(value, len(node.aval.shape), len(aval.shape))
        shape = (self.size, *aval.shape)
        return value if np.shape(value) == shape else np.broadcast_to(value, shape)

    def _last(self, item: Node) -> Any:
        """What the last iteration leaves."""
        node = self.ends[item]
        self.run(ancestors([node]))
        value = self.value(node)
        return _of_kind(value[-1], item.aval) if node in self.known else value

    def _applied(self, item: Node, terms: list[Term]) -> Any:
        """What the iterations do to a carried value, one after the other."""
        total = self.starts[item]
        for term in terms:
            self.trace.line = term.line
            if term.spec:
                total = self._written(total, item.aval, term)
            elif term.adds:
                total = total + self._sum(term.node, item.aval)
            else:
                total = total - self._sum(term.node, item.aval)
        return total

    def _written(self, total: Any, aval: Aval, term: Term) -> Any:
        """What iterations put, or add, to elements or rows."""
        values = self._values(term.node, _row(aval, term.spec))
        values = values if term.adds else -values
        if term.rows is not None:
            others = [self._same(place) for place in term.rows.others]
            return (index.SETITEM if term.puts else index.INDEX_ADD)(total, values, *others, spec=term.rows.spec)
        if all(map(self._is_same, term.places)):
            return index.INDEX_ADD(total, np.sum(values, axis=0), *map(self._same, term.places), spec=term.spec)
        self.run(ancestors(term.places))
        places = [self.full(self.value(place), place in self.known) for place in term.places]
        return index.INDEX_ADD(total, values, *places, spec=term.spec)

    def _sum(self, node: Node, aval: Aval) -> Any:
        """The sum of what all iterations add."""
        self.run(ancestors([node]))
        value = self.value(node)
        if aval.kind == "python" and aval.dtype.kind != "f" and node.op is not CONST:
            raise CannotBatch("Python's ints know no bounds")
        if node not in self.known:
            return self.size * value
        return _of_kind(np.sum(line_up(value, len(node.aval.shape), len(aval.shape)), axis=0), aval)

    # ---- what there is ----

    def _constants(self) -> None:
        """What is known before any iteration runs."""
        trace = self.trace
        for node in self.nodes:
            if node.op is CONST:
                self.alike[node] = trace.lookup(trace.constant(dict(node.params)["value"])[0])
            elif node.op is CAPTURED:
                self.alike[node] = trace.lookup(trace.constant(self.body.graph.arrays[node])[0])
            elif not node.args:
                self.alike[node] = trace.record(node.op, (), dict(node.params))
        for node, numbers in self.numbers.items():
            if node not in self.alike:
                array = np.array(numbers)
                if array.dtype != node.aval.dtype:
                    raise CannotBatch("Python's ints know no bounds")
                self.known[node] = trace.lookup(trace.constant(array)[0])

    def _numbers(self) -> dict[Node, list[Any]]:
        """What hangs on the index alone, in each iteration: it is the same in each call, and as Python has it."""
        course = self.course
        numbers: dict[Node, list[Any]] = {self.body.index: [course.start + course.step * i for i in range(self.size)]}
        for node in [*self.alike, *self.nodes]:
            if node.op is CONST:
                numbers[node] = [dict(node.params)["value"]] * self.size
            elif node in self.alike and self.alike[node].node.op in (CONST, CAPTURED):
                numbers[node] = [self.alike[node].value] * self.size
            elif _is_number(node) and node.args and all([arg in numbers for arg in node.args]):
                params, rows = dict(node.params), zip(*[numbers[arg] for arg in node.args], strict=True)
                numbers[node] = [node.op.fun(*row, **params) for row in rows]
            elif node.args and not _is_harmless(node):
                raise CannotBatch("Python's numbers raise where NumPy's do not, or know no bounds")
        return numbers

    def _rows(self) -> None:
        """Rows of arrays that all iterations together read one after the other."""
        for node in self.nodes:
            if node.op is index.GETITEM and node.args[0] in self.alike and node not in self.known:
                rows = self._together(node.args[0].aval.shape, dict(node.params)["spec"], node.args[1:])
                if rows is not None:
                    x, others = self.alike[node.args[0]], [self._same(place) for place in rows.others]
                    every = range(len(x))
                    whole = len(rows.spec) == 1 and every[slice(*rows.spec[0])] == every
                    self.known[node] = x if whole else index.GETITEM(x, *others, spec=rows.spec)

    def _together(self, shape: tuple[int, ...], spec: index.Spec, places: Sequence[Node]) -> Rows | None:
        """The rows that all iterations name by ``spec`` and ``places``, each another one; None for anything else."""
        if not all([type(part) in (int, index.Hole, index.Slice) for part in spec]) or not all(map(_is_place, places)):
            return None
        moving = [part for part in spec if type(part) is index.Hole and not self._is_same(places[part.number])]
        if len(moving) != 1 or any([type(part) is index.Slice for part in spec[: spec.index(moving[0])]]):
            return None
        axis, place = spec.index(moving[0]), places[moving[0].number]
        found = _progression(self.numbers.get(place, []), shape[axis])
        if found is None:
            return None
        holes = iter(range(len(places)))
        others = tuple([places[part.number] for part in spec if type(part) is index.Hole and part is not moving[0]])
        new = [index.Hole(next(holes)) if type(part) is index.Hole and i != axis else part for i, part in enumerate(spec)]
        return Rows((*new[:axis], found, *new[axis + 1 :]), others, axis, place)

    def _is_same(self, place: Node) -> bool:
        """Whether a place is the same one in all iterations."""
        return (self.ends.keys() - self.steady | {self.body.index}).isdisjoint(ancestors([place]))

    def _same(self, place: Node) -> Any:
        """A place that is the same one in all iterations."""
        self.run(ancestors([place]))
        return self.value(place)


def _progression(places: Sequence[int], size: int) -> index.Slice | None:
    """The slice of an axis of ``size`` that ``places`` are one after the other; None where they are none."""
    if len(places) < 2 or min(places) < 0 or max(places) >= size:
        return None
    start, step = int(places[0]), int(places[1] - places[0])
    stop = start + step * len(places)
    if step == 0 or list(places) != list(range(start, stop, step)):
        return None
    return index.Slice(start, stop if stop >= 0 else None, step)


def _is_number(node: Node) -> bool:
    return isinstance(node.aval, Aval) and not node.aval.shape


def _is_place(node: Node) -> bool:
    return not node.aval.shape and node.aval.dtype.kind in "iu"


def _row(aval: Aval, spec: index.Spec) -> Aval:
    """What ``spec`` names of an array for one place."""
    key = [slice(*part) if type(part) is index.Slice else None if part is None else 0 for part in spec]
    return aval._replace(shape=np.shape(np.broadcast_to(0.0, aval.shape)[tuple(key)]))


def _of_kind(x: Any, aval: Aval) -> Any:
    if aval.kind == "python":
        return TO_PYTHON(x)
    return TO_NUMPY(x) if aval.kind == "scalar" and x.node.aval.kind != "scalar" else x


def _is_harmless(node: Node) -> bool:
    """Whether an operation gives of arrays what it gives of Python's numbers, which raise, or know no bounds."""
    if type(node.aval) is tuple or node.aval.kind != "python" or node.op is CONST:
        return True
    return node.aval.dtype.kind == "f" and node.op in _HARMLESS
