"""Loops as arrays: iterations that need nothing of one another are done all at once.

A ``for`` loop over rows, pairs or points computes the same of each of them, and sums that up, writes it to a row, or keeps the
last. Where all that goes round is such a sum or such rows, or what the iteration before has left, the body is batched over the
iterations, as ``vmap`` batches a function; what was summed up going round is summed over the new axis.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, Aval, Node, ancestors
from symgrad.ops import index
from symgrad.ops.core import REGISTRY, literal
from symgrad.ops.engine import AND, ASTYPE, BOOL, INDEX, INT, ITEM, NOT, RANGE, TO_NUMPY, TO_PYTHON
from symgrad.ops.scan import RECURRENCE
from symgrad.tracing.frames import user_line
from symgrad.tracing.trace import Trace, is_plain_number
from symgrad.tracing.tracer import Tracer
from symgrad.transform.affine import affine, is_number
from symgrad.transform.batch import Batch, CannotBatch, line_up
from symgrad.transform.lags import Lag, reads_what_it_writes, with_lags
from symgrad.transform.lanes import POLES
from symgrad.transform.loop import Body, Course, Loop, one_of, replayed
from symgrad.transform.own import ACCESS, own_places, with_rows
from symgrad.transform.sides import is_if, is_steady, settle, taken_out
from symgrad.transform.terms import ADD, SUBTRACT, WHERE, Reading, Term, is_basic, progression, row_of
from symgrad.transform.triangles import is_triangle, squared

WORTH = 30  # elements of a value in all iterations, on average, from which on NumPy's calls are the lesser cost
WILD = 2  # so much more is that where masks of ``if``s must keep poles out
MANY, HOPE = 8, 2  # iterations of loops around, and how much less it is then
EACH = 4  # how much less it is where derivatives are taken in so many directions, for each number becomes a row
LONG = 256  # elements of a recurrence from which on it takes less time than the iterations
WIDE = 512  # elements in one step of a recurrence from which on its steps are as well taken one by one
CALL = 13  # elements that take as long as calling NumPy for an array
ROW = 16_384  # bytes of a value in one iteration, on average, from which on there is nothing to gain
ALL = 67_108_864  # bytes of all values in all iterations, which are in memory at the same time

_INT = Aval((), np.dtype(int), "python")
_SMALL_OF_SMALL = {ADD, SUBTRACT, REGISTRY[np.negative]}  # of Python's ints, which NumPy has room for if they are
_FAR = 1 << 62  # how far it has
_HARMLESS = {ADD, SUBTRACT, REGISTRY[np.multiply], REGISTRY[np.negative], TO_PYTHON}  # of Python's floats
# of Python's truth values
_LOGIC = {
    NOT,
    AND,
    BOOL,
    *[REGISTRY[f] for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)],
}


def vectorized(trace: Trace, body: Body, course: Course, args: Sequence[Any], around: int) -> list[Tracer] | None:
    """What a loop carries in the end, computed for all iterations at once; None where it has to run. Loops ``around`` it run
    that so often, in all."""
    if course.count is None or course.test is not None or body.saved or body.elements:
        return None
    if any([is_triangle(node) for node in body.nodes()]):
        square = _squared(trace, body, course, args, around)
        if square is None:
            return None
        body = square
    found = _at_once(trace, body, course, args, {}, around)
    if found is not None:
        return found
    try:
        with np.errstate(all="ignore"):
            own = _own_rows(body, course, args)
            if not own:
                return None
            rows = with_rows(body, {item: found.axes for item, found in own.items()})
    except Exception:  # what the user is to see, the loop raises, too
        return None
    return _at_once(trace, rows, course, args, {body.carry.index(item): found for item, found in own.items()}, around)


def going_on(body: Body, course: Course, args: Sequence[Any]) -> tuple[Body, list[Lag]]:
    """The loop with the rows of arrays that it reads some iterations after it has written them going round, if any."""
    if course.count is None or body.saved or body.elements or not reads_what_it_writes(body):
        return body, []
    return with_lags(body, _counted(body, course, _fixed(body, args)))


def _squared(trace: Trace, body: Body, course: Course, args: Sequence[Any], around: int) -> Body | None:
    """The loop with what loops in it do, over ranges that its index tells, done at once; None where one of these has to run."""
    assert course.count is not None
    numbers, sub = _counted(body, course, _fixed(body, args)), Trace()
    sub.exemplary, sub.directions = True, trace.directions
    known: dict[Node, Tracer] = {}
    for i, item in enumerate(body.inputs):
        known[item] = sub.input(i, course.start if item is body.index else one_of(item.aval))
        known[item].node.name, known[item].node.differentiated = item.name, True
    done: dict[Node, list[Tracer]] = {}
    try:
        with np.errstate(all="ignore"):
            for node in body.nodes():
                if node.op is ITEM and node.args[0] in done:
                    known[node] = done[node.args[0]][dict(node.params)["item"]]
                elif is_triangle(node):
                    found = squared(node, numbers)
                    if found is None:
                        return None
                    inner, often, given = found
                    made = vectorized(sub, inner, often, [known[arg] for arg in given], around * course.count)
                    if made is None:
                        return None
                    done[node] = made
                elif node.op is not RANGE:
                    known[node] = replayed(sub, node, body, known)
    except Exception:  # what the user is to see, the loop raises, too
        return None
    if sub.guards:
        return None
    trace.leaves_out |= sub.leaves_out
    return body.renamed(sub.graph, {node: tracer.node for node, tracer in known.items()})


def _fixed(body: Body, args: Sequence[Any]) -> dict[Node, Any]:
    """The numbers that are there in the code, of what is the same in each iteration."""
    given = zip(body.invariants, args[len(body.carry) :], strict=True)
    return {item: arg.value for item, arg in given if arg.node.op is CONST}


def _own_rows(body: Body, course: Course, args: Sequence[Any]) -> dict[Node, Own]:
    """The rows of what goes round that an iteration has to itself."""
    written = [item for item, end in zip(body.carry, body.after, strict=True) if end is not item and item.aval.kind == "array"]
    places = {item: sorted(found, key=lambda place: place[0]) for item in written if (found := own_places(body, item))}
    if not places:
        return {}
    fixed = dict(zip(body.invariants, args[len(body.carry) :], strict=True))
    numbers = _counted(body, course, _fixed(body, args), args)
    own: dict[Node, Own] = {}
    for item, named in places.items():
        for axis, place in named:
            rows = progression(numbers.get(place, []), item.aval.shape[axis])
            if rows is not None:
                same = {other: fixed[place] for other, place in named if other != axis and place in fixed}
                parts = {axis: rows, **{other: index.Hole(i) for i, other in enumerate(same)}}
                spec = tuple([parts.get(other, index.EVERY) for other in range(max(parts) + 1)])
                own[item] = Own(spec, tuple(same.values()), axis, frozenset(parts))
                break
    return own


def _at_once(
    trace: Trace, body: Body, course: Course, args: Sequence[Any], own: dict[int, Own], around: int
) -> list[Tracer] | None:
    """The same of a body which has, in the place of some of the carried arrays, an iteration's ``own`` rows of them."""
    if course.count is None or not _pays(body, course.count, around, trace.directions):
        return None
    guards, remarks, line = len(trace.guards), dict(trace.remarks), trace.line
    fixed = zip(body.invariants, args[len(body.carry) :], strict=True)
    settled = [item for item, arg in fixed if arg.node.op in (CONST, CAPTURED)]
    for ahead in (True, False):
        trace.line = line or user_line()  # and no name: that of the loop's index is none for what is made of all iterations
        try:
            with np.errstate(all="ignore"):  # the iterations have told, or will not
                one = taken_out(body, settled, ahead)
                found = None if one is None else _Together(trace, one, course, args, own, around).results()
        except Exception:  # what the user is to see, the loop raises, too
            found = None
        finally:
            trace.line = line
        if found is not None and len(trace.guards) == guards:
            trace.leaves_out |= any([isinstance(node.op, Loop) and node.op.forks for node in body.nodes()])
            return found
        del trace.guards[guards:]
        trace.remarks = dict(remarks)
    return None


def _pays(body: Body, count: int, around: int, directions: int) -> bool:
    """Whether calls for all iterations cost less than numbers one by one, and what they give is not too much to keep. Where it
    hardly does, it may in the loops ``around``, of which all iterations may be done at once then.

    Iterations that run loops as often as they themselves decide are left alone.
    """
    nodes = [*_computed(body)]
    avals = [aval for node in nodes for aval in (node.aval if type(node.aval) is tuple else (node.aval,))]
    if not avals or not all([isinstance(aval, Aval) for aval in avals]):
        return False
    if not all([is_steady(node.op) for node in body.nodes() if isinstance(node.op, Loop)]):
        return False
    sides = [node for node in body.nodes() if is_if(node)]
    worth = WORTH * (WILD if any([node.op.inside == POLES for node in sides]) else 1)
    sizes = sum([math.prod(aval.shape) for aval in avals])
    if sides:  # what decisions hang on is computed as it is written
        sizes += sum([CALL for node in nodes if type(node.aval) is Aval and _is_call(node)])
    written = [node.aval.nbytes for node in nodes if node.op in (index.SETITEM, index.INDEX_ADD)]  # once, for all iterations
    size = sum([aval.nbytes for aval in avals]) - sum(written)
    worth = worth // EACH if directions >= MANY else worth // HOPE if around >= MANY else worth
    return bool(count * sizes >= worth * len(avals) and size <= ROW * len(avals) and count * size <= ALL)


def _computed(body: Body) -> Iterator[Node]:
    """What an iteration computes, in its ``if``s, too."""
    for node in body.nodes():
        if is_if(node):
            yield from _computed(node.op.body)
        elif node.op not in (CONST, CAPTURED, ITEM):
            yield node


def _is_call(node: Node) -> bool:
    """Whether an operation gives an array, or a number of arrays: a call of NumPy's."""
    return bool(node.aval.shape) or (node.op is not index.GETITEM and any([arg.aval.shape for arg in node.args]))


class Rows(NamedTuple):
    """What all iterations together name of an array, each one another place on ``axis`` of its index, which is ``place``; at
    the ``others`` they are alike."""

    spec: index.Spec
    others: tuple[Node, ...]
    axis: int
    place: Node


class Own(NamedTuple):
    """What all iterations together name of an array whose rows they have to themselves, which have none of the ``axes``."""

    spec: index.Spec
    others: tuple[Tracer, ...]
    axis: int
    axes: Collection[int]


class _Together(Batch):
    """A loop's body, batched over its iterations."""

    one_by_one = False  # which is what the loop does

    def __init__(self, trace: Trace, body: Body, course: Course, args: Sequence[Any], own: dict[int, Own], around: int) -> None:
        assert course.count is not None
        super().__init__(trace, course.count, {})
        self.body, self.course, self.nodes = body, course, body.nodes()
        n = len(body.carry)
        self.starts = dict(zip(body.carry, args[:n], strict=True))
        self.ends = dict(zip(body.carry, body.after, strict=True))
        self.reading, self.rows = Reading(body), dict[Node, Rows | None]()
        self.alike.update(zip(body.invariants, args[n:], strict=True))
        self.own = {body.carry[i]: found for i, found in own.items()}
        self.steady = {item for item, end in self.ends.items() if end is item and item not in self.own}
        self.alike.update({item: self.starts[item] for item in self.steady})
        self.long = LONG // HOPE if around >= MANY else LONG
        self.goes_on = set[Node]()  # what an iteration goes on from: a multiple of that, and something added, is what it leaves
        self.scattered = set[Node]()  # writes at other places in each iteration
        self.numbers = self._numbers()

    def results(self) -> list[Tracer]:
        """The last values of what goes round."""
        apart = self.steady | self.own.keys() | (self.starts.keys() & self.numbers.keys())
        terms = {item: self._terms(item, end) for item, end in self.ends.items() if item not in apart}
        order = self._in_order([item for item, found in terms.items() if not found])
        self._constants()
        self._rows()
        self.known.update({item: _named(self.starts[item], own, own.others) for item, own in self.own.items()})
        for item, (term, *_) in [(item, found) for item, found in terms.items() if found]:
            rows = self.rows.get(term.steps[-1])
            if term.reads is not None and rows is not None:
                self.known[term.reads] = self._row(self.starts[item], rows)
            elif term.reads is not None and self._is_apart(term):
                self.known[term.reads] = index.GETITEM(self.starts[item], *self._places(term), spec=term.spec)
        for found in terms.values():
            for before, term in itertools.pairwise(found):
                if term.reads is not None:
                    self.known[term.reads] = self._values(before.node, row_of(term.steps[-1].aval, term.spec, term.places))
        for item in order:
            if item in self.goes_on:
                self._go_on(item)
                continue
            values = self._values(self.ends[item], item.aval)
            self.known[item] = self._begun(item, values[:-1]) if self.size > 1 else self._begun(item)
        results = [self._end(item, terms.get(item)) for item in self.body.carry]
        self._settle()
        return results

    def _settle(self) -> None:
        """Have what ``if``s look at, which are masks now, computed to the bit, as where they are decisions."""
        settled = [self.value(node) for node in self.nodes if node.exact and (node in self.known or node in self.alike)]
        for value in settled:
            if type(value) is Tracer:
                settle(value.node)

    def _end(self, item: Node, terms: list[Term] | None) -> Any:
        """What there is of a carried value in the end."""
        if item in self.own:
            own, values = self.own[item], self._values(self.ends[item], item.aval)
            end = index.SETITEM(self.starts[item], _moved(values, 0, _before(own)), *own.others, spec=own.spec)
            end.node.name = end.node.name or item.name
            return end
        return self._applied(item, terms) if terms else self._last(item)

    def _in_order(self, items: list[Node]) -> list[Node]:
        """The carried values that an iteration leaves for the next one, those first that others are made of."""
        waiting, order = [item for item in items if item in self.reading.readers or item in self.body.after], list[Node]()
        while waiting:
            needs = {item: set(waiting).intersection(ancestors([self.ends[item]])) for item in waiting}
            ready = [item for item in waiting if not needs[item]]
            if not ready:
                ready = [item for item in waiting if needs[item] == {item}][:1]
                self.goes_on.update(ready)
            if not ready:
                raise CannotBatch("each iteration goes on from what others before have made")
            order += ready
            waiting = [item for item in waiting if item not in ready]
        return order

    def _go_on(self, item: Node) -> None:
        """What each iteration begins with, and leaves, of a value of which it leaves a multiple, and something added."""
        end, aval, n = self.ends[item], item.aval, self.size
        long = n * math.prod(aval.shape) >= self.long
        steps = affine(item, end, lambda node: self._lined(node, len(aval.shape))) if long else None
        if steps is None:
            raise CannotBatch("each iteration goes on from what the one before has made")
        slopes, rests = [step.slope for step in steps], [step.rest for step in steps]
        if all([is_number(slope, 1) for slope in slopes]):
            every = np.cumsum(self._begun(item, self._one_by_one(rests, aval)), axis=0)
        elif all([rest is None for rest in rests]):
            every = np.cumprod(self._begun(item, self._one_by_one(slopes, aval)), axis=0)
        elif math.prod(aval.shape) >= WIDE:
            raise CannotBatch("a step at a time takes as many calls")
        else:
            begun, slope = self._begun(item, self._one_by_one(rests, aval)), self._one_by_one(slopes, aval)
            every = RECURRENCE(begun, slope, axis=-1 - len(aval.shape), back=False)
        if every.dtype != aval.dtype:
            every = every.astype(aval.dtype)
        every = every if len(steps) == 1 else every[:: len(steps)]
        self.known[item], self.known[end] = every[:-1], every[1:]

    def _one_by_one(self, parts: list[Any], aval: Aval) -> Any:
        """What the steps of each iteration multiply by, or add, one after the other; None is a zero that keeps the sign."""
        shape = (self.size, *aval.shape)
        parts = [-0.0 if part is None else part for part in parts]
        parts = [aval.dtype.type(part) if type(part) in (int, float) else part for part in parts]
        rows = [np.broadcast_to(part, shape) for part in parts]
        if len(rows) == 1:
            return rows[0]
        return np.reshape(np.stack([row.astype(aval.dtype, copy=False) for row in rows], axis=1), (-1, *aval.shape))

    def _begun(self, item: Node, rows: Any = None) -> Any:
        """What the first iteration begins with, and further rows."""
        first = np.reshape(self.starts[item], (1, *item.aval.shape))
        return first if rows is None else np.concatenate([first, rows])

    def _lined(self, node: Node, ndim: int) -> Any:
        """A value in all iterations, to be broadcast to elements of so many axes."""
        self._get([node])
        value = self.value(node)
        return line_up(value, len(node.aval.shape), ndim) if node in self.known else value

    # ---- what goes round ----

    def _terms(self, item: Node, end: Node) -> list[Term]:
        """What is done to a carried value that nothing else reads; nothing where that cannot be done at once."""
        terms = self.reading.terms(item, end)
        if any([term.flag is not None and not term.spec for term in terms]):
            return terms if len(terms) == 1 else []
        own = set()
        if any([term.reads is not None for term in terms[1:]]) and not all([_goes_on(term, terms[0]) for term in terms]):
            return []  # what another one has written
        for term in terms:
            rows = self._together(item.aval.shape, term.spec, term.places) if term.spec else None
            self.rows[term.steps[-1]] = rows
            own.add((rows.axis, rows.place) if rows is not None else self._apart(term))
            first = term.places and type(term.spec[0]) not in (index.Hole, int)  # or the iterations' axis may not be in front
            if term.spec and rows is None and (first or not all([place.aval.dtype.kind in "iu" for place in term.places])):
                return []
        if not any([term.puts for term in terms]) or (len(own) == 1 and None not in own):
            return terms
        if not self._are_apart(item.aval.shape, terms):
            return []
        self.scattered |= {term.steps[-1] for term in terms}  # each iteration has places to itself
        return terms

    def _are_apart(self, shape: tuple[int, ...], terms: Sequence[Term]) -> bool:
        """Whether what is done at different places, as at ``i`` and ``i + 1``, meets other rows of an axis each time."""
        found = {(rows.axis, rows.place): rows for term in terms if (rows := self.rows[term.steps[-1]]) is not None}
        if not all([self.rows[term.steps[-1]] for term in terms]) or len({rows.axis for rows in found.values()}) != 1:
            return self._meet_others(shape, terms)
        met = Counter([i for rows in found.values() for i in range(shape[rows.axis])[slice(*rows.spec[rows.axis])]])
        return max(met.values()) == 1

    def _meet_others(self, shape: tuple[int, ...], terms: Sequence[Term]) -> bool:
        """Whether places that are known along some axes, as ``i, j`` and ``j, i`` are for pairs, are an iteration's own."""
        met: dict[Any, int] = {}
        axes = {tuple([axis for axis, part in enumerate(term.spec) if type(part) in (int, index.Hole)]) for term in terms}
        for term in terms:
            columns = [self._along(shape[axis], term, axis) for axis in next(iter(axes))]
            if len(axes) > 1 or not columns or None in columns:
                return False
            if any([met.setdefault(key, i) != i for i, key in enumerate(zip(*columns, strict=True))]):
                return False
        return True

    def _along(self, size: int, term: Term, axis: int) -> list[int] | None:
        """The places that a term names along an axis, one in each iteration; None where that is not known."""
        part: Any = term.spec[axis]
        if type(part) is int:
            return [part % size] * self.size
        place = term.places[part.number]
        numbers = self.numbers.get(place)
        if (
            numbers is None
            or place.aval.shape
            or place.aval.dtype.kind not in "iu"
            or max(numbers) >= size
            or min(numbers) < -size
        ):
            return None
        return [int(number) % size for number in numbers]

    def _get(self, nodes: Sequence[Node]) -> None:
        """Compute some values in all iterations, and what they need that is not there."""
        self.run(ancestors(nodes, known=self.known))

    def _values(self, node: Node, aval: Aval) -> Any:
        """A value in all iterations, with an axis for them, as an array of ``aval``'s kind each."""
        self._get([node])
        value = self.value(node)
        if node in self.known:
            value = line_up(value, len(node.aval.shape), len(aval.shape))
        shape = (self.size, *aval.shape)
        return value if np.shape(value) == shape else np.broadcast_to(value, shape)

    def _last(self, item: Node) -> Any:
        """What the last iteration leaves."""
        node = self.ends[item]
        self._get([node])
        value = self.value(node)
        return _of_kind(value[-1], item.aval) if node in self.known else value

    def _applied(self, item: Node, terms: list[Term]) -> Any:
        """What the iterations do to a carried value, one after the other."""
        total, aval = self.starts[item], item.aval
        rounds = aval.dtype.kind in ("f" if aval.kind == "python" else "fc")
        for term, *others in _added_together(terms) if rounds else [[term] for term in terms]:
            self.trace.line = term.line
            if term.spec:
                total = self._written(total, aval, term, others)
            elif term.flag is not None:
                total = self._replaced(total, aval, term.flag, term.node)
            elif others:
                total = total + _of_kind(np.sum(self._in_each(aval, aval, term, others), axis=0), aval)
            elif term.adds:
                total = total + self._sum(term.node, aval)
            else:
                total = total - self._sum(term.node, aval)
        return total

    def _in_each(self, aval: Aval, row: Aval, term: Term, others: Sequence[Term]) -> Any:
        """What each iteration puts, or adds, to a ``row`` of a value of ``aval``: its terms may cancel one another."""
        values = _as_added(self._values(term.node, row), aval)
        values = values if term.adds else -values
        for other in others:
            more = _as_added(self._values(other.node, row), aval)
            values = values + more if other.adds else values - more
        return values

    def _written(self, total: Any, aval: Aval, term: Term, others: Sequence[Term]) -> Any:
        """What iterations put, or add, to elements or rows."""
        values = self._in_each(aval, row_of(aval, term.spec, term.places), term, others)
        rows = self.rows[term.steps[-1]]
        if rows is not None:
            places = [self._same(place) for place in rows.others]
            values = _moved(values, 0, _before(rows))
            return (index.SETITEM if term.puts else index.INDEX_ADD)(total, values, *places, spec=rows.spec)
        if all(map(self._is_same, term.places)):
            return index.INDEX_ADD(total, np.sum(values, axis=0), *map(self._same, term.places), spec=term.spec)
        spec = term.spec
        if not self._is_apart(term):  # other iterations may have named the same elements
            spec = tuple([part._replace(once=False) if type(part) is index.Hole else part for part in spec])
        return (index.SETITEM if term.puts else index.INDEX_ADD)(total, values, *self._places(term), spec=spec)

    def _places(self, term: Term) -> list[Any]:
        """The index arrays of all iterations."""
        self._get(term.places)
        rank = max([len(place.aval.shape) for place in term.places])
        found = [(self.value(place), place in self.known, len(place.aval.shape)) for place in term.places]
        return [line_up(value, ndim, rank) if moves else value for value, moves, ndim in found]

    def _apart(self, term: Term) -> tuple[int, Node] | None:
        """The axis along which each iteration has places to itself, and its index array there; None where there is none."""
        for axis, part in enumerate(term.spec):
            place = term.places[part.number] if type(part) is index.Hole and part.once else None
            if place is None or place.op is not ADD:
                continue
            for start, count in (place.args, place.args[::-1]):
                array = self._fixed(count)
                if array is None or (starts := self.numbers.get(start)) is None:
                    continue
                starts = sorted(starts)
                gaps = np.diff(starts)
                if starts[0] + array.min() >= 0 and np.all(gaps > np.ptp(array)):
                    return axis, place
        return None

    def _is_apart(self, term: Term) -> bool:
        """Whether each iteration has places to itself."""
        return term.steps[-1] in self.scattered or self._apart(term) is not None

    def _fixed(self, node: Node) -> Any:
        """An array that is there in the code; None for what is another one in each call."""
        if node.op is CAPTURED:
            return self.body.graph.arrays[node]
        given = self.alike.get(node)
        return given.value if given is not None and given.node.op is CAPTURED else None

    def _replaced(self, first: Any, aval: Aval, flag: Node, node: Node) -> Any:
        """What the last iteration has put in a value's place of those that do."""
        flags, values = self._values(flag, aval if flag.aval.shape else flag.aval), self._values(node, aval)
        last = self.size - 1 - np.argmax(flags[::-1], axis=0)
        found = np.take_along_axis(values, last[None], axis=0)[0] if flag.aval.shape else values[last]
        return _of_kind(np.where(np.any(flags, axis=0), found, first), aval)

    def _sum(self, node: Node, aval: Aval) -> Any:
        """The sum of what all iterations add."""
        self._get([node])
        value = self.value(node)
        if aval.kind == "python" and aval.dtype.kind != "f" and not _is_settled(node):
            raise CannotBatch("Python's ints know no bounds")
        value = _as_added(value, aval)
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
                self.known[node] = trace.fixed(array)

    def _numbers(self) -> dict[Node, list[Any]]:
        """What hangs on the index alone, in each iteration: it is the same in each call, and as Python has it."""
        ends = [(item, end) for item, end in self.ends.items() if item not in self.steady]
        sums = {term.steps[-1] for item, end in ends for term in self.reading.terms(item, end)}
        fixed = {item: x.value for item, x in self.alike.items() if x.node.op in (CONST, CAPTURED)}
        numbers = _counted(self.body, self.course, fixed, list(self.starts.values()))
        same, small = set(self.alike), self._indices()
        for node in self.nodes:
            if node.op in _SMALL_OF_SMALL and node.aval == _INT and all([arg in small for arg in node.args]):
                small[node] = sum([small[arg] for arg in node.args])
            if not node.args or all([arg in same for arg in node.args]):  # which stay what they are
                same.add(node)
            elif node in small and small[node] < _FAR:
                pass  # NumPy has room for them
            elif not (node in numbers or node in sums or _is_harmless(node, numbers) or self._is_place(node)):
                raise CannotBatch("Python's numbers raise where NumPy's do not, or know no bounds")
        return numbers

    def _indices(self) -> dict[Node, int]:
        """The indices of this loop, and of those around it, and ints that are there in the code, with how large they are."""
        course, found = self.course, dict[Node, int]()
        found[self.body.index] = max(abs(course.start), abs(course.start + course.step * self.size))
        for item, x in self.alike.items():
            of_loop = x.node.op is INDEX and type(dict(x.node.params)["loop"]) is int
            if (of_loop or x.node.op is CONST) and type(x.value) is int:
                found[item] = abs(x.value)
        found.update({node: abs(value) for node in self.nodes if node.op is CONST and type(value := literal(node)) is int})
        return found

    def _is_place(self, node: Node) -> bool:
        """Whether it is an index, and no more: what is far out of bounds raises as an index of NumPy's, too."""
        numpys = node.op in (INT, TO_PYTHON) and node.args[0].aval.dtype.kind in "iub"  # of this size already
        if not (numpys or (node.op in (ADD, SUBTRACT) and node not in self.reading.ends)):
            return False
        readers = self.reading.readers[node]
        places = [reader.op in ACCESS and node not in reader.args[: len(reader.op.rules)] for reader in readers]
        return all([place or self._is_place(reader) for place, reader in zip(places, readers, strict=True)])

    def _rows(self) -> None:
        """Rows of arrays that all iterations together read one after the other."""
        for node in self.nodes:
            if node.op is index.GETITEM and node.args[0] in self.alike and node not in self.known:
                rows = self._together(node.args[0].aval.shape, dict(node.params)["spec"], node.args[1:])
                if rows is not None:
                    self.known[node] = self._row(self.alike[node.args[0]], rows)

    def _row(self, x: Any, rows: Rows) -> Any:
        """The rows of an array."""
        every = range(len(x))
        if len(rows.spec) == 1 and every[slice(*rows.spec[0])] == every:
            return x
        return _named(x, rows, [self._same(place) for place in rows.others])

    def _together(self, shape: tuple[int, ...], spec: index.Spec, places: Sequence[Node]) -> Rows | None:
        """The rows that all iterations name by ``spec`` and ``places``, each another one; None for anything else."""
        if not is_basic(spec, places):
            return None
        moving = [part for part in spec if type(part) is index.Hole and not self._is_same(places[part.number])]
        if len(moving) != 1:
            return None
        axis, place = spec.index(moving[0]), places[moving[0].number]
        found = progression(self.numbers.get(place, []), shape[axis])
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
        self._get([place])
        return self.value(place)


def _goes_on(term: Term, first: Term) -> bool:
    """Whether what is done is done where the first thing was, and leaves nothing of what was there."""
    same = (term.spec, term.places) == (first.spec, first.places)
    return same and term.puts and term.node.aval.dtype == term.steps[-1].aval.dtype


def _added_together(terms: Sequence[Term]) -> list[list[Term]]:
    """Those that an iteration adds at the same places, if it does nothing but add."""
    found: dict[Any, list[Term]] = {}
    for i, term in enumerate(terms):
        adds = not any([other.puts for other in terms])
        found.setdefault((term.spec, term.places) if adds else i, []).append(term)
    return [*found.values()]


def _counted(body: Body, course: Course, fixed: Mapping[Node, Any], starts: Sequence[Any] = ()) -> dict[Node, list[Any]]:
    """What hangs on the index alone, and what is ``fixed``, in each iteration; and Python's ints that count from ``starts``."""
    size: Any = course.count
    numbers = {node: [value] * size for node, value in fixed.items()}
    for item, end, start in zip(body.carry, body.after, starts, strict=False):
        step, node = 0, end
        while node is not item and node.op is ADD and node.aval == item.aval == _INT and node.args[1].op is CONST:
            step, node = step + dict(node.args[1].params)["value"], node.args[0]
        if node is item is not end and (start.node.op is CONST or is_plain_number(start.node)):
            numbers[item] = [start.value + step * i for i in range(size)]
    numbers[body.index] = [course.start + course.step * i for i in range(size)]
    for node in body.nodes():
        if node.op is CONST:
            numbers[node] = [dict(node.params)["value"]] * size
        elif _is_number(node) and node.args and all([arg in numbers for arg in node.args]):
            params, rows = dict(node.params), zip(*[numbers[arg] for arg in node.args], strict=True)
            numbers[node] = [node.op.fun(*row, **params) for row in rows]
    return numbers


def _named(x: Any, rows: Rows | Own, others: Sequence[Any]) -> Any:
    """The rows of an array, the axis of the iterations in front."""
    return _moved(index.GETITEM(x, *others, spec=rows.spec), _before(rows), 0)


def _before(rows: Rows | Own) -> int:
    """How many axes of what is named come before that of the iterations."""
    return sum([type(part) is index.Slice for part in rows.spec[: rows.axis]])


def _moved(x: Any, source: int, destination: int) -> Any:
    """An array with an axis in another place."""
    axes = [*range(np.ndim(x))]
    axes.insert(destination, axes.pop(source))
    return x if source == destination else np.transpose(x, axes)


def _is_number(node: Node) -> bool:
    return isinstance(node.aval, Aval) and not node.aval.shape


def _as_added(x: Any, aval: Aval) -> Any:
    """What is added to a value of ``aval``, one iteration after the other, for a sum: in its own dtype, that might lose digits,
    or begin anew."""
    if type(x) is not Tracer or aval.kind == "python" or x.node.aval.dtype == aval.dtype:
        return x
    return ASTYPE(TO_NUMPY(x) if x.node.aval.kind == "python" else x, dtype=aval.dtype)


def _of_kind(x: Any, aval: Aval) -> Any:
    if aval.kind == "python":
        return TO_PYTHON(x)
    return TO_NUMPY(x) if aval.kind == "scalar" and x.node.aval.kind != "scalar" else x


def _is_settled(node: Node) -> bool:
    """Whether a value is a number that is there in the code, or one of two."""
    return node.op is CONST or (node.op is WHERE and all(map(_is_settled, node.args[1:])))


def _is_harmless(node: Node, numbers: Container[Node]) -> bool:
    """Whether an operation gives of arrays what it gives of Python's numbers, which raise, or know no bounds.

    ``numbers`` are the same in each call, which has been seen to be right.
    """
    if isinstance(node.op, Loop):
        body = node.op.body
        inputs = zip(body.invariants, node.args[len(body.carry) + len(body.elements) :], strict=True)
        known = {body.index, *(item for item, arg in inputs if arg in numbers)}
        for inner in body.nodes():
            if inner.op is CONST or (_is_number(inner) and inner.args and all([arg in known for arg in inner.args])):
                known.add(inner)
            elif inner.args and not _is_harmless(inner, known):
                return False
        return True
    if type(node.aval) is tuple or node.aval.kind != "python" or node.op in (CONST, ITEM, WHERE):
        return True
    return node.op in (_LOGIC if node.aval.dtype.kind == "b" else _HARMLESS) and node.aval.dtype.kind in "bf"
