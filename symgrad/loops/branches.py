"""Ways written down as one pattern: where they part, an ``if``, which is a loop that runs once, or not at all."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CONST, Aval, Graph, Node
from symgrad.loops.patterns import BOOL, COUNTER, EXIT, INT, TEST, UNSEEN, Key, Note, Part, joined, number_of
from symgrad.loops.ways import Parts, Unclear, Way, is_float, joined_kind, narrow, same_step, sure, united
from symgrad.ops.core import REGISTRY, ops_of
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.engine import AND, INDEX, ITEM, NAMED, NOT, TO_NUMPY
from symgrad.ops.engine import BOOL as TO_BOOL
from symgrad.ops.index import GETITEM, SETITEM, Hole
from symgrad.ops.spans import SPANS, Span, span_of
from symgrad.tracing.trace import IN_PLACE, Trace
from symgrad.transform.loop import Body, Course, Loop, loop_of

_FLAGS = (TEST, EXIT, UNSEEN)
_PUT = "put"  # how the key of a number begins that ways write to an array


class _Put(NamedTuple):
    """What several ways write to one place of one array: the array, the number of each and what is known of it, the place.

    Those that write nothing (``some``) write what is there.
    """

    base: Parts
    numbers: list[tuple[Parts, Any]]
    place: list[Any]  # as ``_index`` says
    params: Any
    kind: Any  # that all numbers have in the end
    like: Any  # one of the steps, for its name and line
    some: bool


def may_go_on(op: Any) -> bool:
    """Whether an operation is a loop, or has one in it, that may run as often as it likes."""
    if not isinstance(op, Loop):
        return False
    free = op.course.test is not None and not op.course.once
    return free or any([may_go_on(node.op) for node in op.body.nodes()])


def outside(there: dict[Key, Part], part: Part) -> Part:
    """Where a part of a stretch comes from, if its locals come from ``there``."""
    return there[part[1]] if part[0] == "carry" else part


@dataclass
class Spans:
    """How far the index of a loop ``of`` which ways are goes, or, for None, that of this one; whether that was of use."""

    of: Callable[[Node | None], Span | None]
    used: bool = False


class Builder:
    """Writes ways down as one: ``kinds`` is what is known of each local that they leave behind, ``begin`` of what they find;
    ``blank`` makes arrays that stand in for any; ``spans`` tells how far indices go."""

    def __init__(
        self,
        kinds: dict[Key, Any],
        begin: dict[Key, Any],
        blank: Callable[[Aval], Node],
        spans: Spans,
    ) -> None:
        self.kinds, self.begin, self.blank, self.spans = kinds, begin, blank, spans
        self.keys = sorted(kinds, key=repr)

    def grow(self, out: Any, ways: list[Way], depth: int, made: dict[int, Any], outer: Callable[[Part], Any]) -> dict[Key, Any]:
        """Write what ``ways``, which decided alike ``depth`` times, do from step ``len(made)`` on; what they leave behind.

        ``made``: what there is of the steps before, by number; ``outer``: what there is of what comes from elsewhere.
        """
        of = functools.partial(_there, made, outer)
        way = ways[0]
        for i in range(len(made), self._shared(ways, len(made), depth)):
            step = way.steps[i]
            parts = step[3]
            for other in ways[1:]:
                step = united(step, other.steps[i])
                for mine, theirs in zip(parts, other.steps[i][3], strict=True):
                    narrow(mine, theirs)
            op, params, aval, _ = step
            if op is ITEM and sure(parts[0])[0] == "step":
                made[i] = _item(out, made, sure(parts[0])[1], params, aval, way.nodes[i])
            else:
                made[i] = out.add(op, [of(one) for one in parts], params, aval, way.nodes[i])
        if len(ways) == 1 and len(way.tests) == depth:
            return {key: self._left(out, key, way, of) for key in self.keys}
        if any([len(other.tests) <= depth for other in ways]):
            raise Unclear
        test, _ = way.tests[depth]
        for other in ways[1:]:
            narrow(test, other.tests[depth][0])
        if sure(test)[0] == "step" and sure(test)[1] not in made:
            raise Unclear
        return self._parted(out, ways, depth, of(test), made, outer)

    def _shared(self, ways: list[Way], start: int, depth: int) -> int:
        """As far as all ways do the same. Up to where they part, what one way tells of a step holds for all of them.

        What lies behind a decision that went one way only is left there: on the other one, it might raise, or warn.
        """
        end = start
        stop = min([_last_sure(way, ways, depth) for way in ways]) + 1
        parting = [way.tests[depth][0] for way in ways if len(way.tests) > depth]
        last = max([what for parts in parting for kind, what in parts.values() if kind == "step"], default=-1)
        for steps in zip(*[way.steps[start:] for way in ways], strict=False):
            first, *others = steps
            if end >= stop:
                break
            if any([same_step(first, other) is None for other in others]):
                break
            pairs = [pair for other in others for pair in zip(first[3], other[3], strict=True)]
            if any([one.keys().isdisjoint(theirs) for one, theirs in pairs]):
                break
            if end > last and any([one.keys() != theirs.keys() or len(one) > 1 for one, theirs in pairs]):
                break
            end += 1
        return end

    def _left(self, out: Any, key: Key, way: Way, of: Callable[[Parts], Any]) -> Any:
        """What a way leaves in a local, of the kind that goes round."""
        parts, aval = way.after[key]
        part, kind = sure(parts), self.kinds[key]
        if key[0] == _PUT and part[0] == "step" and aval == kind._replace(kind="python"):  # as what the array gives
            return out.add(TO_NUMPY, [of(parts)], (), kind, None)
        if aval == kind or (part[0] not in ("value", "same") and joined_kind(aval, kind) == kind):
            return of(parts)
        if part == ("carry", key) and aval in (INT, BOOL) and is_float(kind):
            return of(parts)  # a float has gone round for it
        number = number_of(part[1], kind) if _is_number(part) else None
        if number is not None:
            return out.const(number)
        if part[0] != "same" or joined_kind(aval, kind) != kind:
            raise Unclear
        return out.add(TO_NUMPY, [of(parts)], (), kind, None)

    def _parted(
        self, out: Any, ways: list[Way], depth: int, test: Any, made: dict[int, Any], outer: Callable[[Part], Any]
    ) -> dict[Key, Any]:
        """What there is after a decision. What all ways leave alike does not go through it; of what they write to one place of
        one array, the number does, and is written there afterwards."""
        of = functools.partial(_there, made, outer)
        alike = [key for key in self.keys if self._is_alike(key, ways, made)]
        same = self._same([key for key in self.keys if key not in alike and key not in _FLAGS], ways)
        left = [key for key in self.keys if key not in alike and key not in same]
        puts = {key: put for key in left if (put := self._put(key, ways, made)) is not None}
        kinds = {key: self.kinds[key] for key in left if key not in puts}
        for key, put in puts.items():
            kinds[_PUT, *key] = put.kind
            after = zip(ways, put.numbers, strict=True)
            ways = [replace(way, after={**way.after, (_PUT, *key): number}) for way, number in after]
        read = {("read", key): self._read(out, put, of) for key, put in puts.items() if put.some}
        found = Builder(kinds, self.begin, self.blank, self.spans)._decided(
            out, ways, depth, test, made, lambda part: read[part] if part in read else outer(part)
        )
        found |= {key: self._left(out, key, ways[0], of) for key in alike}
        for key, put in puts.items():
            args = [of(put.base), found.pop((_PUT, *key)), *[_made(out, one, of) for one in put.place]]
            found[key] = out.add(SETITEM, args, put.params, self.kinds[key], put.like)
        return found | {key: found[other] for key, other in same.items()}

    def _same(self, keys: list[Key], ways: list[Way]) -> dict[Key, Key]:
        """The locals in which all ways leave what they leave in another one, and that one."""
        found: dict[Key, Key] = {}
        first: dict[Any, Key] = {}
        for key in keys:
            if all([key in way.after for way in ways]):
                ends = tuple([(frozenset(way.after[key][0].values()), way.after[key][1]) for way in ways])
                other = first.setdefault((self.kinds[key], self.begin.get(key), ends), key)
                if other is not key:
                    found[key] = other
        return found

    def _is_alike(self, key: Key, ways: list[Way], made: dict[int, Any]) -> bool:
        """Whether all ways leave what is there before they part."""
        after = [way.after[key] for way in ways if key in way.after]
        alike = len(after) == len(ways) and key not in _FLAGS and _is_common([parts for parts, _ in after], made)
        return alike and len({aval for _, aval in after}) == 1

    def _put(self, key: Key, ways: list[Way], made: dict[int, Any]) -> _Put | None:
        """What ways write to one place of one array; None where they do something else, or where those that write nothing
        might have no such place."""
        ends = [[*way.after[key][0].values()] for way in ways]
        writes = [len(parts) == 1 and parts[0][0] == "step" and parts[0][1] not in made for parts in ends]
        if not any(writes):
            return None
        steps = [way.steps[parts[0][1]] for way, parts, one in zip(ways, ends, writes, strict=True) if one]
        if any([op is not SETITEM or (params, aval) != (steps[0][1], self.kinds[key]) for op, params, aval, _ in steps]):
            return None
        base, every, *place = zip(*[args for *_, args in steps], strict=True)
        others = [way.after[key][0] for way, one in zip(ways, writes, strict=True) if not one]
        writers = [way for way, one in zip(ways, writes, strict=True) if one]
        indices = [[_index(way, parts, made) for way, parts in zip(writers, some, strict=True)] for some in place]
        if not _is_common((*base, *others), made) or any([one is None or one != some[0] for some in indices for one in some]):
            return None
        writer = writers[0]
        row = self._row(writer, [parts[0] for parts in place], steps[0]) if others else None
        if others and row is None:
            return None
        self.spans.used |= row is not None
        written, there = iter(every), {("read", key): ("read", key)}
        numbers: list[tuple[Parts, Any]] = []
        for way, one in zip(ways, writes, strict=True):
            numbers.append((parts := next(written), self._aval(way, parts)) if one else (there, row))
        computed = [aval for parts, aval in numbers if not _is_known(parts)] or [numbers[0][1]]
        kind = functools.reduce(lambda one, other: one and joined_kind(one, other), computed)
        like = writer.nodes[ends[writes.index(True)][0][1]]
        return kind and _Put(base[0], numbers, [some[0] for some in indices], steps[0][1], kind, like, bool(others))

    def _read(self, out: Any, put: _Put, of: Callable[[Parts], Any]) -> Any:
        """What is at a place before a decision."""
        row = next(aval for parts, aval in put.numbers if any([part[0] == "read" for part in parts.values()]))
        return out.add(GETITEM, [of(put.base), *[_made(out, one, of) for one in put.place]], put.params, row, None)

    def _row(self, way: Way, place: Sequence[Parts], step: Any) -> Aval | None:
        """What is known of an element, or a row, of an array; None where iterations that do not write it might have none."""
        _, params, aval, _ = step
        spec, spans = dict(params)["spec"], [self._span(way, parts) for parts in place]
        if len(spec) > len(aval.shape) or not any([type(part) is Hole for part in spec]):
            return None
        for part, length in zip(spec, aval.shape, strict=False):
            span = spans[part.number] if type(part) is Hole else (part, part) if type(part) is int else None
            if span is None or not -length <= span[0] <= span[1] < length:
                return None
        rest = aval.shape[len(spec) :]
        return Aval(rest, aval.dtype, "array" if rest else "scalar")

    def _span(self, way: Way, parts: Parts) -> Span | None:
        """The least and the largest value that an integer may have; None where that is not known."""
        spans = [self._span_of(way, part) for part in parts.values()]
        known = [span for span in spans if span is not None]
        return None if len(known) < len(spans) else (min(low for low, _ in known), max(high for _, high in known))

    def _span_of(self, way: Way, part: Part) -> Span | None:
        kind, *rest = part
        if kind == "index" or part == ("carry", COUNTER):
            return self.spans.of(None)
        if kind == "step":
            op, _, _, args = way.steps[rest[0]]
            return span_of(op, [self._span(way, parts) for parts in args])
        if kind not in ("same", "value"):
            return None
        number = dict(rest[0].params)["value"] if rest[0].op is CONST else None
        return (number, number) if type(number) is int else self.spans.of(rest[0])

    def _aval(self, way: Way, parts: Parts) -> Any:
        """What is known of a value that a way reads; None where it may be one of several."""
        (kind, what), *others = parts.values()
        if others or kind in ("again", "anew"):
            return None
        if kind == "step":
            return way.steps[what][2]
        return self.begin.get(what) if kind == "carry" else INT if kind == "index" else what.aval

    def _decided(
        self, out: Any, ways: list[Way], depth: int, test: Any, made: dict[int, Any], outer: Callable[[Part], Any]
    ) -> dict[Key, Any]:
        """The two sides of a decision, one after the other; what there is after them."""
        opposite = NOT if out.aval(test).kind == "python" else REGISTRY[np.logical_not]
        sides = {way.tests[depth][1] for way in ways}
        behind = [step for way in ways for i, step in enumerate(way.steps) if i not in made]
        if len(sides) == 1 and TEST not in self.kinds and EXIT not in self.kinds and all([_is_calm(op) for op, *_ in behind]):
            other = out.add(opposite, [test], (), out.aval(test), None) if True in sides else test
            return self._checked(out, ways, depth + 1, other, made, outer)
        of = functools.partial(_there, made, outer)
        first: dict[Part, Key] = {}  # what locals begin a side with
        results: dict[Key, Any] = {}
        for key in self.keys:
            kind, base = self.kinds[key], self._base(key, ways, made)
            if base is not None and base not in first:
                results[key], first[base] = of({base: base}), key
            elif self.begin.get(key) == kind:
                results[key] = outer(("carry", key))
                first.setdefault(("carry", key), key)
            else:  # no iteration reads what is there before the first side
                results[key] = outer(("same", self.blank(kind))) if kind.kind == "array" else out.const(_zero(kind))
            if out.aval(results[key]) != kind:
                raise Unclear
        for side in (True, False):
            taken = [way for way in ways if way.tests[depth][1] is side]
            again = test if side else out.add(opposite, [test], (), out.aval(test), None)
            results = self._side(out, taken, depth + 1, again, results, first, made, outer)
        return results

    def _checked(
        self, out: Any, ways: list[Way], depth: int, other: Any, made: dict[int, Any], outer: Callable[[Part], Any]
    ) -> dict[Key, Any]:
        """What all ways do after a decision that went one way: nobody uses what there is in the end of the ``other`` one."""
        unseen = ("carry", UNSEEN)
        alone = Builder({UNSEEN: self.kinds[UNSEEN]}, self.begin, self.blank, self.spans)
        flag = alone._side(out, [], depth, other, {UNSEEN: outer(unseen)}, {}, made, outer)[UNSEEN]
        return self.grow(out, ways, depth, made, lambda part: flag if part == unseen else outer(part))

    def _base(self, key: Key, ways: list[Way], made: dict[int, Any]) -> Part | None:
        """The array, there before a decision, into which all ways write, or which they leave: a local that all of them assign
        may as well begin with it; None where there is none."""
        found: set[Part | None] = set()
        for way in ways:
            part = next(iter(way.after[key][0].values())) if key in way.after and len(way.after[key][0]) == 1 else None
            while part is not None and part[0] == "step" and part[1] not in made:
                op, _, _, args = way.steps[part[1]]
                part = next(iter(args[0].values())) if op in IN_PLACE and len(args[0]) == 1 else None
            found.add(part)
        base, *others = found
        if base is None or base[0] != "step" or others or not self.kinds[key].shape:
            return None
        return base if ways[0].steps[base[1]][2] == self.kinds[key] else None

    def _side(
        self,
        out: Any,
        ways: list[Way],
        depth: int,
        again: Any,
        before: dict[Key, Any],
        firsts: dict[Part, Key],
        made: dict[int, Any],
        outer: Callable[[Part], Any],
    ) -> dict[Key, Any]:
        """One side of a decision: a loop that runs once if ``again`` is true; else what there was ``before`` is left.

        Where no call has taken it, it does nothing but say so. ``firsts``: what locals begin with, whichever side this is, for
        the other one has not been taken.
        """
        inner, test = _Inner(), out.aval(again)
        first = inner.graph.input(("carry", 0), test)
        carry = {key: inner.graph.input(("carry", i + 1), self.kinds[key]) for i, key in enumerate(self.keys)}
        given: dict[Any, tuple[Any, Node]] = {}

        def look(name: Any, value: Callable[[], Any]) -> Node:
            if name in firsts:
                return carry[firsts[name]]
            if name not in given:
                there = value()
                given[name] = there, inner.graph.input(("invariant", len(given)), out.aval(there))
            return given[name][1]

        def inside(part: Part) -> Any:
            if _is_number(part):
                return inner.const(dict(part[1].params)["value"])
            return look(part, lambda: outer(part))

        if ways:
            left: dict[Key, Any] = self.grow(inner, ways, depth, _Known(out, made, look), inside)
        else:
            left = {**carry, UNSEEN: inner.const(True)}
            if TEST in left:
                left[TEST] = inner.const(_zero(self.kinds[TEST]))  # it ends there
        index = inner.graph.input("index", INT)
        stop = inner.const(False if test.kind == "python" else np.False_)
        ends = [stop, *(left[key] for key in self.keys)]
        body = Body(inner.graph, [first, *carry.values()], index, [], [node for _, node in given.values()], ends, [])
        for key, node in carry.items():
            node.name = joined(key)
        avals = (test, *[self.kinds[key] for key in self.keys])
        args = [again, *(before[key] for key in self.keys), *(there for there, _ in given.values())]
        loop = out.add(loop_of(body, Course(test=0, once=True)), args, (), avals, None)
        return {key: out.add(ITEM, [loop], (("item", i + 1),), self.kinds[key], None) for i, key in enumerate(self.keys)}


def _is_calm(op: Any) -> bool:
    """Whether an operation, on what it was not meant for, gives no warning to speak of: then it may come before a decision that
    rules that out."""
    if isinstance(op, Loop):
        return not may_go_on(op) and all([_is_calm(node.op) for node in op.body.nodes() if node.args])
    return op in _CALM or op.family in ("linear", "multilinear")


_CALM = {NOT, AND, TO_BOOL, INDEX, EXTREME} | ops_of(
    np.add, np.subtract, np.multiply, np.negative, np.positive, np.absolute, np.fabs, np.square, np.sign, np.conj, np.where,
    np.maximum, np.minimum, np.fmax, np.fmin, np.tanh, np.arctan, np.sin, np.cos, np.isfinite, np.isnan, np.isinf,
    np.greater, np.less, np.greater_equal, np.less_equal, np.equal, np.not_equal,
    np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or,
)  # fmt: skip


def _last_sure(way: Way, ways: list[Way], depth: int) -> float:
    """The last step of a way that is there, whatever is decided where all of these ways went one way."""
    last: float = -1
    taken = tuple([value for _, value in way.tests])
    known = {tuple([value for _, value in other.tests]) for other in ways}
    for i in range(depth, len(taken)):
        last = max([last, *[what for kind, what in way.tests[i][0].values() if kind == "step"]])
        if not any([other[: i + 1] == (*taken[:i], not taken[i]) for other in known]):
            return last
    return math.inf


class _Known(dict[int, Any]):
    """The steps that are there when the side of a decision begins: given to it when it asks for them."""

    def __init__(self, out: Any, before: dict[int, Any], look: Callable[[Any, Callable[[], Any]], Any]) -> None:
        super().__init__(dict.fromkeys(before))
        self.out, self.before, self.given, self.look = out, before, frozenset(before), look

    def __getitem__(self, i: int) -> Any:
        return self.look(("step", i), lambda: self.before[i]) if i in self.given else super().__getitem__(i)


class Steps:
    """The steps of a pattern, as they are written; a value is where it comes from."""

    def __init__(self, trace: Trace, kinds: dict[Key, Any]) -> None:
        self.trace, self.kinds = trace, kinds
        self.steps: list[tuple[Any, Any, Any, tuple[Part, ...]]] = []
        self.notes: list[Any] = []

    def add(self, op: Any, args: list[Part], params: Any, aval: Any, like: Node | None) -> Part:
        self.steps.append((op, params, aval, tuple(args)))
        self.notes.append(Note(like))
        return ("step", len(self.steps) - 1)

    def const(self, value: Any) -> Part:
        return ("same", self.trace.constant(value)[0])

    def aval(self, part: Part) -> Any:
        kind, what = part
        if kind == "step":
            return self.steps[what][2]
        return INT if kind == "index" else self.kinds[what] if kind == "carry" else what.aval


class _Inner:
    """A graph as it is written."""

    def __init__(self) -> None:
        self.graph = Graph()

    def add(self, op: Any, args: list[Node], params: Any, aval: Any, like: Node | None) -> Node:
        if op is NAMED:
            return args[0]
        node = self.graph.add(op, tuple(args), params, aval)
        if like is not None:
            node.name, node.line, node.phase = like.name, like.line, like.phase
        return node

    def const(self, value: Any) -> Node:
        return self.graph.const(value)

    def aval(self, node: Node) -> Any:
        return node.aval


def _there(made: dict[int, Any], outer: Callable[[Part], Any], parts: Parts) -> Any:
    """What there is of a value that comes from one of the steps before, or from elsewhere."""
    part = sure(parts)
    return made[part[1]] if part[0] == "step" else outer(part)


def _item(out: Any, made: dict[int, Any], i: int, params: Any, aval: Any, like: Any) -> Any:
    """One of the results of step ``i``, a loop: where that is outside of a side, taken there, as it alone is given to it."""
    if isinstance(made, _Known) and i in made.given:
        return made.look(("item", i, params), lambda: _item(made.out, made.before, i, params, aval, like))
    return out.add(ITEM, [made[i]], params, aval, like)


def _is_common(every: Sequence[Parts], made: dict[int, Any]) -> bool:
    """Whether all ways have one and the same part, which is there before they part."""
    found = {part for parts in every for part in parts.values()}
    (kind, what), *others = found
    return not others and kind not in ("again", "anew") and (kind != "step" or what in made)


def _index(way: Way, parts: Parts, made: dict[int, Any]) -> Any:
    """An integer that is there before ways part, as a part, or how it is made of such; None where that is not sure."""
    part, *others = parts.values()
    if others or part[0] in ("again", "anew"):
        return None
    if part[0] != "step" or part[1] in made:
        return part
    op, params, aval, args = way.steps[part[1]]
    found = tuple([_index(way, one, made) for one in args])
    return None if op not in SPANS or None in found else ("made", op, params, aval, found)


def _made(out: Any, index: Any, of: Callable[[Parts], Any]) -> Any:
    """Such an integer, written down."""
    if index[0] != "made":
        return of({index: index})
    _, op, params, aval, args = index
    return out.add(op, [_made(out, one, of) for one in args], params, aval, None)


def _is_known(parts: Parts) -> bool:
    """Whether it is a number that is known beforehand, which takes on another kind."""
    return all(map(_is_number, parts.values()))


def _is_number(part: Part) -> bool:
    """Whether it is a number of the user's code; the index of a loop around is none."""
    return part[0] == "value" or (part[0] == "same" and part[1].op is CONST)


def _zero(kind: Aval) -> Any:
    """A number for what no iteration reads."""
    zero = kind.dtype.type(0)
    return zero.item() if kind.kind == "python" else zero
