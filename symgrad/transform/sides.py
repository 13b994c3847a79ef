"""``if``s in the body of a loop, made ready for all iterations at once: what goes round does not go through them any more.

What a side adds to something that goes round, it gives instead, or zero where it is not taken, and that is added for all
iterations: ``if test: total = total + x`` is ``total = total + (x if test else 0)``. What a side puts in the place of something
is chosen by ``np.where``, which shows that nothing is read of what was there. What a side leaves alone goes past it.

Such a body is there to be batched. It does not run by itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, Aval, Graph, Node, ancestors, aval_of
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import ITEM, NOT, TO_NUMPY, TO_PYTHON
from symgrad.transform.lanes import POLES
from symgrad.transform.loop import Body, Course, Loop, copied, loop_of
from symgrad.transform.terms import WHERE, Reading, Term, row_of

_OR, _NOT = REGISTRY[np.logical_or], (NOT, REGISTRY[np.logical_not])
_FLAG = aval_of(np.False_)


def is_steady(loop: Loop) -> bool:
    """Whether a loop runs as often in each case, but for the ``if``s in it."""
    inner = [node.op for node in loop.body.nodes() if isinstance(node.op, Loop)]
    return (loop.course.test is None or loop.course.once) and all(map(is_steady, inner))


def taken_out(body: Body, settled: Collection[Node], ahead: bool) -> Body | None:
    """The same body, where what goes round does not go through ``if``s. ``ahead``: rows of arrays that these read, in all
    iterations, are read outside of them; None if there are none, and no other body.

    ``settled``: invariants that are the same in each call.
    """
    if not any([is_if(node) for node in body.nodes()]):
        return None if ahead else body
    sides = _Sides(body, settled, {}, ahead)
    made = sides.made()
    return None if ahead and not sides.reads else made


def is_if(node: Node) -> bool:
    return isinstance(node.op, Loop) and node.op.course.once


def settle(node: Node) -> None:
    """Have a value, and all that it is made of by the function, computed to the bit: a decision hangs on it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if not one.exact and one.phase is None:
            one.exact = True
            waiting += one.args


class _Put(NamedTuple):
    """A value that took the place of another one, its ``base``, where ``flag`` is true; what was added to, to make it."""

    flag: Node
    value: Node
    base: Node
    of: Node | None


class _Sides:
    """A body as it is written once more."""

    def __init__(self, body: Body, settled: Collection[Node], same: Mapping[Node, Node], ahead: bool) -> None:
        """``settled``: invariants that are the same in each call; ``same``: those that are what is carried; ``ahead``: rows of
        arrays are read before the ``if``s that ask for them."""
        self.body, self.graph, self.same, self.ahead = body, Graph(), same, ahead
        self.reads = False  # whether some are
        self.new = {node: self.graph.stand_in(node) for node in body.inputs if node not in same}
        self.new.update({node: self.new[item] for node, item in same.items()})
        self.settled = {self.new[node] for node in (body.index, *settled)}  # what does not hang on arguments
        self.results: dict[Node, list[Node]] = {}  # of ``if``s
        self.puts: dict[Node, _Put] = {}
        self.bases: dict[Node, tuple[Node, Node]] = {}  # what values were before an ``if``, and its test

    def made(self) -> Body:
        """The new body."""
        body = self.body
        for node in body.nodes():
            if is_if(node):
                self.results[node] = self._if(node)
            elif node.op is ITEM and node.args[0] in self.results:
                self.new[node] = self.results[node.args[0]][dict(node.params)["item"]]
            else:
                self.new[node] = self.copied(node, [self.new[arg] for arg in node.args], body)
        carry, elements, after, saved = [
            [self.new[node] for node in nodes] for nodes in (body.carry, body.elements, body.after, body.saved)
        ]
        invariants = [self.new[node] for node in body.invariants if node not in self.same]
        return Body(self.graph, carry, self.new[body.index], elements, invariants, after, saved)

    def copied(self, node: Node, args: list[Node], body: Body) -> Node:
        """A node of another graph."""
        made = copied(self.graph, node, args, body.graph)
        if self.settled.issuperset(args):
            self.settled.add(made)
        return made

    def chosen(self, flag: Node, value: Node, other: Node) -> Node:
        """One of two values."""
        made = self.graph.add(WHERE, (flag, value, other), (), other.aval)
        made.line = value.line or flag.line
        return made

    def _if(self, node: Node) -> list[Node]:
        """What there is after an ``if``, of each value that it carries."""
        args = [self.new[arg] for arg in node.args]
        loop: Any = node.op
        body, at, n = loop.body, loop.course.test, len(loop.body.carry)
        test = args[at]
        settle(test)
        items = {
            self._before(arg, test): item for arg, item in zip(args[:n], body.carry, strict=True) if item is not body.carry[at]
        }
        known = {item: items[arg] for item, arg in zip(body.invariants, args[n:], strict=True) if arg in items}
        others = {item: arg for item, arg in zip(body.invariants, args[n:], strict=True) if item not in known}
        sides = _Sides(body, [item for item, arg in others.items() if arg in self.settled], known, self.ahead)
        side = _Side(self, sides, at, args[:n], [*others.values()])
        changes = [
            (lambda made, arg=arg: arg) if i == at else self._change(side, sides.puts, test, item, end, arg)
            for i, (item, end, arg) in enumerate(zip(side.body.carry, side.body.after, args, strict=False))
        ]
        made = side.written(loop)
        self.reads |= sides.reads
        results = [change(made) for change in changes]
        self.bases.update({result: (test, arg) for result, arg in zip(results, args, strict=False) if result is not arg})
        return results

    def _before(self, value: Node, test: Node) -> Node:
        """What a value is where ``test`` is true: what it was before the ``if`` of which that is the other side."""
        other, base = self.bases.get(value, (None, value))
        return base if test.op in _NOT and test.args[0] is other else value

    def _change(
        self, side: _Side, puts: dict[Node, _Put], test: Node, item: Node, end: Node, arg: Node
    ) -> Callable[[list[Node]], Node]:
        """What an ``if`` makes of one value that it carries, given what there is of it."""
        if end is item:
            return lambda made: arg
        put = puts.get(end)
        if put is not None and put.base is item:
            flag, value = side.given(put.flag), side.what(put.value)
            return lambda made: self._put(made[flag], arg, None, lambda _: value(made))
        if end in side.fixed:
            return lambda made: self._put(test, arg, side.fixed[end], lambda x: x)
        nodes = ancestors([end])
        if item in nodes:
            done = self._summed(side, item, end, test)
            if done is not None:
                return functools.partial(done, arg)
            place = side.carried(item, end, arg)
            return lambda made: made[place]
        for fixed in [node for node in nodes if node in side.fixed]:
            more = self._summed(side, fixed, end, test)
            if more is not None:
                return self._added(test, arg, side.fixed[fixed], more)
        value = side.what(end)
        return lambda made: self._put(test, arg, None, lambda _: value(made))

    def _summed(self, side: _Side, item: Node, end: Node, test: Node) -> Callable[[Node, list[Node]], Node] | None:
        """What a side does to a value that it only adds to, done outside of it."""
        terms = side.reading.terms(item, end)
        if not terms or any([term.flag is not None or term.reads is not None for term in terms]):
            return None
        given = [(side.given(term.node, term.puts), [side.what(place, False) for place in term.places]) for term in terms]

        def done(base: Node, made: list[Node]) -> Node:
            for term, (value, places) in zip(terms, given, strict=True):
                base = self._done(term, base, made[value], [place(made) for place in places], test)
            return base

        return done

    def _added(self, test: Node, arg: Node, of: Node, more: Callable[[Node, list[Node]], Node]) -> Callable[[list[Node]], Node]:
        """What is there after a side that adds ``more`` to something else than what was there."""
        return lambda made: self._put(test, arg, of, lambda x: more(x, made))

    def _done(self, term: Term, base: Node, value: Node, places: list[Any], test: Node) -> Node:
        """What a side did to a value, done outside of it."""
        if not term.spec:
            (step,) = term.steps
            return self.copied(step, [base, value], self.body)
        *_, writer = term.steps
        if writer.op is index.INDEX_ADD:
            return self.copied(writer, [base, value, *places], self.body)
        aval = row_of(base.aval, term.spec, term.places)
        row = self.graph.add(index.GETITEM, (base, *places), (("spec", term.spec),), aval)
        total = self.chosen(test, value, row) if term.puts else self.copied(term.steps[1], [row, value], self.body)
        return self.copied(writer, [base, total, *places], self.body)

    def _put(self, flag: Node, base: Node, of: Node | None, value: Callable[[Any], Node]) -> Node:
        """A value in the place of ``base`` where ``flag`` is true, which is made ``of`` something by adding to that."""
        before = self.puts.get(base)
        whole = before is not None and flag.op in _NOT and flag.args[0] is before.flag  # this is the other side
        if before is not None and whole and of is not None and of is before.of:  # what the other side adds is zero now
            return value(before.value)
        made = value(of)
        if before is not None and whole:
            return self.chosen(flag, made, before.value)
        if before is not None:
            made, of = self.chosen(flag, made, before.value), None
            flag, base = self.graph.add(_OR, (before.flag, flag), (), _FLAG), before.base
        result = self.chosen(flag, made, base)
        self.puts[result] = _Put(flag, made, base, of)
        return result


def _zeros(graph: Graph, aval: Aval) -> Node:
    if aval.kind == "array":
        made: Node = graph.add(create.ZEROS, (), (("dtype", aval.dtype), ("shape", aval.shape)), aval)
        return made
    zero = aval.dtype.type(0)
    return graph.const(zero.item() if aval.kind == "python" else zero)


class _Side:
    """The body of an ``if``, and what it is to give."""

    def __init__(self, outer: _Sides, own: _Sides, test: int, before: list[Node], fixed: list[Node]) -> None:
        self.outer, self.own, self.settled, self.body = outer, own, own.settled, own.made()
        body, self.reading = self.body, Reading(self.body)
        self.fixed = dict(zip(body.invariants, fixed, strict=True))
        self.before = {item: arg for i, (item, arg) in enumerate(zip(body.carry, before, strict=True)) if i != test}
        left = [item for item, end in zip(body.carry, body.after, strict=True) if item is end and item in self.before]
        self.outside = {**self.fixed, **{item: self.before[item] for item in left}}
        self.slots = [_Slot(body.carry[test], body.after[test], before[test], True)]

    def given(self, node: Node, hidden: bool = False) -> int:
        """The place of what the side gives: zero where it is not taken, or anything where that is ``hidden``."""
        aval: Aval = node.aval
        item = self.body.graph.input(("given", len(self.slots)), aval)
        return self.carried(item, node, _zeros(self.outer.graph, aval), hidden)

    def what(self, node: Node, hidden: bool = True) -> Callable[[list[Node]], Node]:
        """What the side gives, given all of that; ``hidden`` as in ``given``."""
        known = self.outer.graph.const(dict(node.params)["value"]) if node.op is CONST else self.outside.get(node)
        if known is not None:
            return lambda made: known
        place = self.given(node, hidden)
        return lambda made: made[place]

    def carried(self, item: Node, end: Node, start: Node, hidden: bool = False) -> int:
        """The place of what goes through."""
        self.slots.append(_Slot(item, end, start, hidden))
        return len(self.slots) - 1

    def written(self, loop: Loop) -> list[Node]:
        """What the side gives, in the body around it; computed in all cases where that does no harm."""
        nodes = ancestors([slot.end for slot in self.slots])
        known = {**self.before, **self.fixed}
        if loop.inside < POLES and all([node in known or self._is_tame(node) for node in nodes]):
            return self._inlined(nodes, known)
        items, ends, starts, _ = (list(part) for part in zip(*self.slots, strict=True))
        source, index = self.body.graph, self.body.index
        rows = self._read_ahead(nodes, known) if self.own.ahead else {}
        if rows:
            self.own.reads, source, index, items, ends, known = True, *self._given(rows, items, ends, known)
            nodes = ancestors(ends)
        fixed = {item: arg for item, arg in known.items() if item in nodes and item not in items}
        body = Body(source, items, index, [], [*fixed], ends, [])
        graph, avals = self.outer.graph, tuple([item.aval for item in items])
        made = graph.add(loop_of(body, Course(test=0, once=True)), (*starts, *fixed.values()), (), avals)
        made.line = starts[0].line
        return [graph.add(ITEM, (made,), (("item", i),), aval) for i, aval in enumerate(avals)]

    def _read_ahead(self, nodes: list[Node], known: dict[Node, Node]) -> dict[Node, Node]:
        """The rows of what is there outside that the side reads at places that are the same in each call, read outside."""
        new, rows = dict(known), dict[Node, Node]()
        for node in nodes:
            if node not in new and (node.op is CONST or (node.args and self.settled.issuperset(node.args))):
                new[node] = self.outer.copied(node, [new[arg] for arg in node.args], self.body)
            elif node.op is index.GETITEM and node.args[0] in known and self.settled.issuperset(node.args[1:]):
                new[node] = rows[node] = self.outer.copied(node, [new[arg] for arg in node.args], self.body)
        return rows

    def _given(self, rows: dict[Node, Node], items: list[Node], ends: list[Node], known: dict[Node, Node]) -> tuple[Any, ...]:
        """The side with ``rows`` given to it: its graph, the index in it, what it carries, before and after, and what is known
        outside, by its inputs."""
        graph = Graph()
        new = {node: graph.stand_in(node) for node in dict.fromkeys([self.body.index, *items, *known, *rows])}
        for node in ancestors(ends, known=new):
            if node not in new:
                new[node] = copied(graph, node, [new[arg] for arg in node.args], self.body.graph)
        given = {new[node]: arg for node, arg in {**known, **rows}.items()}
        return graph, new[self.body.index], [new[item] for item in items], [new[end] for end in ends], given

    def _is_tame(self, node: Node) -> bool:
        """Whether an operation may be done though the side is not taken: it raises nothing."""
        op = node.op
        if op is index.GETITEM:
            return self.settled.issuperset(node.args[1:])
        if op in (CONST, CAPTURED, WHERE, TO_PYTHON, TO_NUMPY) or op.family in ("elementwise", "multilinear"):
            return True
        return op.key in _TAME or (op.family == "constant" and isinstance(op.key, np.ufunc))

    def _inlined(self, nodes: list[Node], known: dict[Node, Node]) -> list[Node]:
        new = dict(known)
        for node in nodes:
            if node not in new:
                new[node] = self.outer.copied(node, [new[arg] for arg in node.args], self.body)
        test = self.slots[0].start
        return [new[slot.end] if slot.hidden else self.outer.chosen(test, new[slot.end], slot.start) for slot in self.slots]


_TAME = frozenset([np.sum, np.mean, np.reshape, np.ravel, np.transpose, np.squeeze, np.expand_dims, np.stack, np.concatenate])


class _Slot(NamedTuple):
    """What an ``if`` carries: in its body, before and after it; and what there is where it is not taken, ``hidden`` or not."""

    item: Node
    end: Node
    start: Node
    hidden: bool
