"""Loops that share: what a loop computes again, iteration by iteration, as another one did, that one saves for it.

Reverse mode writes a loop that runs backwards and computes anew what an iteration needs from what it began with. What it ended
with is what the next one began with, which has been read just before: it goes round. Anything else that is dear (products of
matrices, exponentials), the loop forwards keeps, if it is an array or what a whole one adds up to; so what takes no more memory
than what it is made of, and the parts of an array that are all that is read of it: the rest need not be kept then. In the
code that runs, what loops in loops save is kept, up to so much memory, so that none of those runs again.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node, ancestors, size_of
from symgrad.ir import Sequence as ListAval
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import ITEM, RANGE
from symgrad.ops.index import GETITEM, SETITEM
from symgrad.ops.reduction import SUMS_OF_EXPONENTIALS
from symgrad.ops.scan import Running
from symgrad.optimize.exact import decisive
from symgrad.optimize.ifs import Apart, Read, apart_of, give_reads, is_if, read_apart, reads_of
from symgrad.optimize.loops import BodyProgram, copied, filled_again, has_nests, inside, is_filled, trim_loops
from symgrad.optimize.rewriting import Simplifier, const, is_op
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop, loop_of

# what costs little more than the memory that its result would take, so that it is done again
CHEAP = {
    REGISTRY[key]
    for key in (np.add, np.subtract, np.multiply, np.negative, np.positive, np.abs, np.square, np.conjugate, np.real, np.imag,
                np.maximum, np.minimum, np.sign, np.where, np.greater, np.less, np.greater_equal, np.less_equal)
}  # fmt: skip
_SLOW = {
    REGISTRY[key]
    for key in (np.exp, np.log, np.sin, np.cos, np.tan, np.tanh, np.expm1, np.log1p, np.sinh, np.cosh, np.arctan, np.arctan2)
}
_VIEWS = {REGISTRY[key] for key in (np.reshape, np.expand_dims, np.squeeze, np.broadcast_to, np.transpose)}
#: What rounds nothing: it is the same when it is computed again.
_SELECTING = _VIEWS | {REGISTRY[key] for key in (np.maximum, np.minimum, np.fmax, np.fmin, np.where, np.negative, np.abs)}
#: What the ends of ranges are computed by.
_OF_PLACES = {RANGE, *(REGISTRY[key] for key in (np.add, np.subtract, np.multiply, np.negative))}
#: What rules compare with what it is of where both are infinite.
_INFINITE = {REGISTRY[key] for key in (np.logaddexp, np.logaddexp2, Running(np.logaddexp), Running(np.logaddexp2))}
_INFINITE |= {*SUMS_OF_EXPONENTIALS.values()}
PART = 8  # times as large as all that is read of it an array is that need not be kept then
NUMBER = 2  # the same, of single numbers that are read: to keep the array costs a copy where it is written into
FEW = 64  # values that one is made of, up to which they are looked at
LOOP = 2  # times more memory that what a loop in a loop saves may take, for it need not run again
KEPT = 1 << 24  # bytes of numbers that it may take in all, for all iterations of the loop around, in the code that runs
CHAINED = 8  # loops in a loop that need one another's results, one after the other, up to which they are followed


class End(NamedTuple):
    """A value that an iteration of a loop, ``source``, ended with as carried value ``place``; ``start`` is what it began with,
    as an element of a sequence."""

    node: Node
    source: Node
    place: int
    start: Node


def share(program: Program) -> Program:
    """The same program; what is dear in its loops, and in the loops in them, is computed once."""
    program = give_reads(program)
    return _shared(inside(program, _shared) if has_nests(program) else program)


def keep(program: Program) -> Program:
    """The same program; what loops in its loops save for others is kept as long as they are not much."""
    return _shared(program, KEPT) if has_nests(program) else program


def keeps_lists(program: Program) -> bool:
    """Whether a loop in it saves what loops in it save."""
    loops = [node.op.body for node in program.nodes() if isinstance(node.op, Loop)]
    return any([isinstance(item.aval, ListAval) for body in loops for item in body.saved])


def _shared(program: Program, kept: int = 0) -> Program:
    program = merged(program)
    parter = _Parter(program)
    program = parter.run() if parter.bodies else program
    planted = False
    for _ in range(CHAINED):
        planter = _Planter(program)
        if not planter.planted:
            break
        program, planted = inside(planter.run(), merged), True
    sharer = _Sharer(program, kept)
    return trim_loops(sharer.run()) if sharer.wanted or sharer.ended or planted else program


def merged(program: Program) -> Program:
    """The same program without the loops that others cover."""
    while covered := _covered(program):
        program = _Merger(program, covered).run()
    return program


# -- loops that another one covers ---------------------------------------------------------------------------------


class Covering(NamedTuple):
    """A loop that computes all that another one does, in the same iterations; ``places`` says where it has its results, and
    ``more`` what it would have to save besides."""

    loop: Node
    places: list[int]
    more: list[Node]


def _covered(program: Program) -> dict[Node, Covering]:
    """Loops that others cover, which stay; each of those saves more for one alone."""
    loops = [node for node in program.nodes() if isinstance(node.op, Loop)]
    exact = decisive(program) if len(loops) > 1 else set[Node]()
    found: dict[Node, Covering] = {}
    kept = set[Node]()
    for node in loops:
        if node in kept:
            continue
        for other in loops:
            fits = node is not other and other not in found and (node not in exact or other in exact)
            covering = _covering(node, other) if fits else None
            if covering is not None and not (covering.more and any([known.loop is other for known in found.values()])):
                found[node] = covering
                kept |= {one for one in ancestors([other]) if isinstance(one.op, Loop)}  # which are made in its place
                break
    return found


def _covering(node: Node, other: Node) -> Covering | None:
    """A loop that computes all that another one does, if it is one."""
    mine, theirs = node.op, other.op
    if (mine.course.count, mine.course.backwards) != (theirs.course.count, theirs.course.backwards):
        return None
    if not {*node.args}.issubset(other.args):
        return None
    carry: list[int] = []
    given = other.args[: len(theirs.body.carry)]
    for arg in node.args[: len(mine.body.carry)]:
        found = [j for j, value in enumerate(given) if value is arg and j > max(carry, default=-1)]
        if not found:
            return None
        carry.append(found[0])
    if mine.course.test is not None and (theirs.course.test is None or carry[mine.course.test] != theirs.course.test):
        return None
    if mine.course.test is None and theirs.course.test is not None:
        return None
    same = alike_in(node, other, carry)
    ends = [theirs.body.after[j] for j in carry]
    if [same.get(after) for after in mine.body.after] != ends or node in ancestors([other]):
        return None
    saved = [same[item] for item in mine.body.saved if item in same]
    if len(saved) < len(mine.body.saved):
        return None
    more = [item for item in dict.fromkeys(saved) if item not in theirs.body.saved]
    every = [*theirs.body.saved, *more]
    return Covering(other, [*carry, *(len(theirs.body.carry) + every.index(item) for item in saved)], more)


class _Merger(Simplifier):
    """Rebuilds a program without the loops that others cover."""

    def __init__(self, program: Program, covered: dict[Node, Covering]) -> None:
        super().__init__(program, {})
        self.covered = covered
        self.more = {covering.loop: covering.more for covering in covered.values() if covering.more}

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node in self.more:
            body = node.op.body
            made = copied(body, Simplifier(BodyProgram(body), {}), {}, saved=self.more[node])
            return _saving(self, node, args, made, len(self.more[node]))
        if node in self.covered:
            for one in ancestors([self.covered[node].loop]):  # which come later in the program, and do not need this one
                if one not in self.mapping:
                    self.mapping[one] = self.again(one)
            return self.mapping[self.covered[node].loop]
        if node.op is ITEM and node.args[0] in self.covered:
            item = self.covered[node.args[0]].places[dict(node.params)["item"]]
            return self.graph.add(ITEM, args, (("item", item),), node.aval)
        return super().visit(node, args)


# -- loops in loops ------------------------------------------------------------------------------------------------


class _Parter(Simplifier):
    """Rebuilds a program: what the ``if``s in a loop read of arrays that are much larger, and come from another one, other
    ``if``s read, which the other loop may run, too."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, {})
        self.bodies: dict[Node, Body] = {}
        for node in program.nodes():
            if isinstance(node.op, Loop) and (plans := _read_apart(node)):
                self.bodies[node] = read_apart(node.op.body, plans)

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node not in self.bodies:
            return super().visit(node, args)
        return self.visit_as(loop_of(self.bodies[node], node.op.course), node, args)


def _read_apart(node: Node) -> dict[Node, Apart]:
    """What the ``if``s in a loop read of its elements, each in one of its own."""
    same = {mine for source in _sources(node) for mine in alike_in(node, source)}
    body, found = node.op.body, dict[Node, list[Read]]()
    ifs = [inner for inner in body.nodes() if is_if(inner) and inner not in same]
    for item in body.elements if ifs else ():
        mine = body.readers.get(item, [])
        reads = {one: reads_of(one, one.args.index(item)) for one in mine if one in ifs}
        others = [one for one in mine if one not in reads]
        whole = item not in same or item in (*body.after, *body.saved) or None in reads.values()
        if whole or not reads or any([one.op is not GETITEM or item in one.args[1:] or one not in same for one in others]):
            continue
        every = [*others, *(read.node for some in reads.values() for read in some or ())]
        if _is_little(every, item):
            for one, some in reads.items():
                found.setdefault(one, []).extend(some or ())
    plans = {one: plan for one, some in found.items() if (plan := apart_of(one, some)) is not None}
    return {one: plan for one, plan in plans.items() if all([one.args[i] in same for i in (plan.test, *plan.invariants)])}


class _Planter(Simplifier):
    """Rebuilds a program: where a loop runs another one in each of its iterations, and one that reads its results runs that
    again, or what is a part of it, and saves more, the first saves it all, for the second to read. So it does with what an
    ``if`` finds that the second loop alone has."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, {})
        self.planted: dict[Node, list[tuple[Node, list[Node], tuple[Node, ...]]]] = {}  # inner loop, what it saves, arguments
        for node in program.nodes():
            if isinstance(node.op, Loop):
                for source in _sources(node):
                    self._look(node, source)

    def _look(self, node: Node, source: Node) -> None:
        loops = [inner for inner in source.op.body.nodes() if isinstance(inner.op, Loop)]
        same = alike_in(node, source) if loops else {}
        body = node.op.body.nodes()
        for inner in body:
            if not isinstance(inner.op, Loop) or inner in same or any([x not in same and not is_filled(x) for x in inner.args]):
                continue
            args = tuple([same.get(arg, arg) for arg in inner.args])
            twin = Node(inner.op, args, inner.params, inner.aval)
            if is_if(inner) or any(_covering(a, b) is not None for other in loops for a, b in ((other, twin), (twin, other))):
                items = [item for item in body if item.op is ITEM and item.args[0] is inner and item not in same]
                items = items if is_if(inner) else [x for x in items if _is_end(x) or _bytes(x, node.op) < math.inf]
                if items:
                    self.planted.setdefault(source, []).append((inner, items, args))

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node not in self.planted:
            return super().visit(node, args)
        body = node.op.body
        copier = _Adder(body, self.planted[node])
        made = copied(body, copier, {})
        more = copier.added()
        return _saving(self, node, args, replace(made, saved=[*made.saved, *more]), len(more))


def _saving(s: Simplifier, node: Node, args: tuple[Node, ...], body: Body, count: int) -> Node:
    """The loop ``node`` with a ``body`` that saves so many values more."""
    more = [ListAval(item.aval) for item in body.saved[len(body.saved) - count :]]
    new = s.graph.add(loop_of(body, node.op.course), args, node.params, (*node.aval, *more))
    new.line, new.phase = node.line, node.phase
    return new


class _Adder(Simplifier):
    """Rebuilds the body of a loop with more loops in it, each before anything is written that it may read."""

    def __init__(self, body: Body, planted: list[tuple[Node, list[Node], tuple[Node, ...]]]) -> None:
        super().__init__(BodyProgram(body), {})
        self.waiting, self.own = planted[::-1], set(body.nodes()) | set(body.inputs)
        self.found: list[Node] = []

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op is SETITEM or isinstance(node.op, Loop):
            self.added()
        return super().visit(node, args)

    def added(self) -> list[Node]:
        """What the loops give, of which those are added that can be."""
        while self.waiting and all([arg not in self.own or self._is_there(arg) for arg in self.waiting[-1][2]]):
            inner, items, given = self.waiting.pop()
            args = [self.mapping[arg] if arg in self.own else filled_again(self.graph, arg) for arg in given]
            loop = self.graph.add(inner.op, tuple(args), inner.params, inner.aval)
            loop.line = inner.line
            self.found += [self.graph.add(ITEM, (loop,), item.params, item.aval) for item in items]
        return self.found

    def _is_there(self, arg: Node) -> bool:
        """Whether a value is there, or numbers are that it is made of."""
        more = [one for one in ancestors([arg]) if one not in self.mapping]
        known = all([isinstance(one.aval, Aval) and not one.aval.shape and one.op is not ITEM for one in more])
        for one in more if known else ():
            self.mapping[one] = super().visit(one, tuple([self.mapping[x] for x in one.args]))
        return known


def _sources(node: Node) -> list[Node]:
    """The loops that a loop reads sequences of."""
    _, sequences, _ = node.op.split(node.args)
    return list({arg.args[0]: None for arg in sequences if arg.op is ITEM and isinstance(arg.args[0].op, Loop)})


# -- loops that save for others ------------------------------------------------------------------------------------


class _Sharer(Simplifier):
    """Rebuilds a program whose loops save more, and read that."""

    def __init__(self, program: Program, most: int) -> None:
        super().__init__(program, {})
        self.most = most  # bytes that what a loop in a loop saves may take in all
        self.saved: dict[Node, list[Node]] = {}  # of a loop, what it saves besides, for others
        self.wanted: dict[Node, list[tuple[Node, Node, int]]] = {}  # of a loop: what not to compute; where it is had instead
        self.ended: dict[Node, list[End]] = {}  # of a loop: what not to compute, for another one's iteration ended with it
        for node in program.nodes():
            if isinstance(node.op, Loop):
                self._look(node)

    def _look(self, node: Node) -> None:
        """Find what a loop computes that one whose results it reads computes too."""
        twins: dict[Node, tuple[Node, Node]] = {}  # of a node of the body, the loop and the node that it equals
        ends: dict[Node, End] = {}
        for source in _sources(node):
            same = alike_in(node, source)
            for mine, other in same.items():
                twins.setdefault(mine, (source, other))
            ends |= _ends(node, source, same)
        body = node.op.body
        given = set(body.inputs)
        needed = {*body.after, *body.saved}
        readers = body.readers
        fixed = {body.index, *body.invariants}  # which no iteration saves
        kept = {item for item in twins if (item in given or _is_dear(item)) and item not in ends}
        items = [item for item in body.elements if item in twins and item not in needed]
        parts = {part for item in items for part in _parts(item, readers, twins, needed)}
        exact = {*kept, *given, *parts}
        for inner in body.nodes():
            if inner.op in _SELECTING and all([arg in exact or not arg.args for arg in inner.args]):
                exact.add(inner)
        again = [(y, x) for y, x in _compared(body) if x.args and x not in exact]
        told = {y for y, x in again if y.op not in _INFINITE and x.op not in _INFINITE}
        for inner in reversed(body.nodes()):
            if inner not in needed:
                continue
            if inner in told:  # by what is computed again, where another order may round otherwise
                needed.update(inner.args)
            elif inner in ends:
                self.ended.setdefault(node, []).append(ends[inner])
            elif (
                inner in twins
                and inner not in given
                and (
                    inner in parts
                    or _is_dear(inner)
                    or _spares(inner, node.op, kept, fixed, readers, needed)
                    or (node.op.course.count or math.inf) * _saved_by(inner, node.op, readers) <= self.most
                )
            ):
                source, other = twins[inner]
                saved = self.saved.setdefault(source, [])
                if other not in saved:
                    saved.append(other)
                self.wanted.setdefault(node, []).append((inner, source, saved.index(other)))
            else:
                needed.update(inner.args)

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op is ITEM and node.args[0] in self.ended:
            item, (loop,) = dict(node.params)["item"], args
            if item >= len(node.args[0].op.body.carry):
                item += len(self.ended[node.args[0]])
            return self.item(loop, item)
        if not isinstance(node.op, Loop) or not (node in self.saved or node in self.wanted or node in self.ended):
            return super().visit(node, args)
        op: Loop = node.op
        carry, sequences, invariants = op.split(args)
        n, wanted, ended, more = len(carry), self.wanted.get(node, []), self.ended.get(node, []), self.saved.get(node, [])
        for _, source, place in wanted:
            loop = self.mapping[source]
            sequences.append(self.item(loop, len(loop.aval) - len(self.saved[source]) + place))
        carry += [self.item(self.mapping[end.source], end.place) for end in ended]
        body = _reading(op.body, [inner for inner, _, _ in wanted], ended, more)
        aval = (*node.aval[:n], *(end.node.aval for end in ended), *node.aval[n:], *(ListAval(item.aval) for item in more))
        new = self.graph.add(loop_of(body, op.course), (*carry, *sequences, *invariants), (), aval)
        new.line, new.phase = node.line, node.phase
        return new


def _ends(node: Node, source: Node, same: dict[Node, Node]) -> dict[Node, End]:
    """What a loop computes that goes the other way round and reads what each iteration of ``source`` began with: of that,
    what the iteration ended with. ``same``: the nodes that equal nodes of ``source``."""
    if node.op.course.backwards == source.op.course.backwards:
        return {}
    elements = {same[item]: item for item in node.op.body.elements if item in same}
    other, found = source.op.body, {}
    places = {after: i for i, after in enumerate(other.after) if other.carry[i] in elements}
    for inner, twin in same.items():
        if twin in places and inner.op not in (INPUT, CONST, CAPTURED):
            found[inner] = End(inner, source, places[twin], elements[other.carry[places[twin]]])
    return found


def alike_in(node: Node, source: Node, carry: Sequence[int] = ()) -> dict[Node, Node]:
    """Nodes of a loop's body that equal nodes of another's in each iteration of the same number.

    ``carry``: which of the other's carried values equal those of the loop.
    """
    mine, other = node.op.body, source.op.body
    if (node.op.course.start, node.op.course.step) != (source.op.course.start, source.op.course.step):
        return {}
    count = len(other.carry)
    _, theirs, fixed = source.op.split(source.args)
    same: dict[Node, Node] = {mine.index: other.index}
    same |= {item: other.carry[j] for item, j in zip(mine.carry, carry, strict=False)}
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
    loops = [inner for inner in other.nodes() if isinstance(inner.op, Loop)]
    covered: dict[Node, Covering] = {}
    for inner in mine.nodes():
        if inner.op is ITEM and inner.args[0] in covered:
            loop, places, _ = covered[inner.args[0]]
            found = table.get((ITEM, (loop,), (("item", places[dict(inner.params)["item"]]),)))
        else:
            args = [same.get(arg) for arg in inner.args]
            found = None if None in args else table.get(_key(inner, tuple(args), mine))
            if found is None and isinstance(inner.op, Loop) and None not in args and loops:
                twin = Node(inner.op, tuple(args), inner.params, inner.aval)  # type: ignore[arg-type]
                more = [covering for one in loops if (covering := _covering(twin, one)) and not covering.more]
                covered |= {inner: more[0]} if more else {}
            if found is None and inner.op is ITEM and args[0] is not None and not isinstance(args[0].op, Loop):
                found = other.graph.add(ITEM, (args[0],), inner.params, inner.aval)  # of which the other needs other results
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
    array = _is_made(node) and node.op not in CHEAP and not is_filled(node)
    return array or _is_total(node) or _is_end(node) or _is_slow(node)


def _is_slow(node: Node) -> bool:
    """Whether it is a number that a function takes longer for than to put it into a list, and to read it there."""
    if not isinstance(node.aval, Aval) or node.aval.shape:
        return False
    return node.op in _SLOW or (is_op(node, np.power) and const(node.args[1]) not in (*range(-4, 5), 0.5))


def _is_end(node: Node) -> bool:
    """Whether it is a number that a whole loop ends with."""
    of_loop = node.op is ITEM and isinstance(node.args[0].op, Loop) and not is_if(node.args[0])
    return of_loop and isinstance(node.aval, Aval) and node.aval.shape == ()


def _is_total(node: Node) -> bool:
    """Whether it is a number that a whole array gives, and takes next to no memory in place of that."""
    arrays = any(isinstance(arg.aval, Aval) and arg.aval.shape for arg in node.args)
    number = isinstance(node.aval, Aval) and node.aval.shape == ()
    return arrays and number and not node.op.alias and node.op is not GETITEM


def _is_made(node: Node) -> bool:
    """Whether it is an array that is computed."""
    array = isinstance(node.aval, Aval) and node.aval.shape != ()
    return array and node.op not in (CONST, CAPTURED, INPUT) and not node.op.alias


def _compared(body: Body) -> Iterator[tuple[Node, Node]]:
    """Values, and what they are compared with for equality: extremes, of which what they are of tells where they are."""
    for node in body.nodes():
        if is_op(node, np.equal) or is_op(node, np.not_equal):
            a, b = map(_viewed, node.args)
            yield from ((a, b), (b, a))


def _viewed(node: Node) -> Node:
    """What has the elements of a value."""
    while node.op in _VIEWS:
        node = node.args[0]
    return node


def _parts(item: Node, readers: dict[Node, list[Node]], twins: Container[Node], needed: Container[Node]) -> list[Node]:
    """The parts of an array, also of what it is once more is written into it, that are all that is read of it, if to keep them
    takes far less memory."""
    parts: list[Node] = []
    waiting = [item]
    while waiting:
        array = waiting.pop()
        for reader in readers.get(array, []):
            first = reader.args[0] is array and array not in reader.args[1:]
            reads = reads_of(reader, reader.args.index(array)) if is_if(reader) else None
            if reads is not None and (not reads or reader in twins):
                parts += readers[reader] if reads else []
            elif first and reader.op is GETITEM and reader in twins:
                parts.append(reader)
            elif first and reader.op is SETITEM and reader not in needed:
                waiting.append(reader)
            else:
                return []
    return parts if _is_little(parts, item) else []


def _is_little(parts: Sequence[Node], item: Node) -> bool:
    """Whether parts of an array take far less memory than it does; single numbers, which cost next to nothing, just less."""
    return sum([(PART if part.aval.shape else NUMBER) * size_of(part) for part in parts]) <= size_of(item)


def _spares(
    node: Node, around: Loop, kept: set[Node], fixed: set[Node], readers: dict[Node, list[Node]], needed: set[Node]
) -> bool:
    """Whether to keep a value takes no more memory than what is ``kept`` for it alone to be computed again.

    Of that, what is ``fixed`` takes none. ``needed`` says of what comes after the node whether it is computed.
    """
    size = size_of(node) if _is_made(node) else _saved_by(node, around, readers) / LOOP
    if size == math.inf:
        return False
    below, found, waiting = {node}, list[Node](), [node]
    while waiting and len(below) <= FEW:
        for arg in waiting.pop().args:
            if arg not in below:
                below.add(arg)
                (found if arg in kept else waiting).append(arg)
    alone = [
        item
        for item in found
        if item not in fixed
        and all(reader in below or (reader.index > node.index and reader not in needed) for reader in readers[item])
    ]
    return not waiting and size <= sum(map(size_of, alone))


def _saved_by(node: Node, around: Loop, readers: dict[Node, list[Node]]) -> float:
    """How much memory all lists take that a loop saves in one iteration of that around it, of which this is one; infinity for
    anything else."""
    if node.op is not ITEM or not isinstance(node.aval, ListAval):
        return math.inf
    return sum([_bytes(item, around) for item in readers[node.args[0]] if isinstance(item.aval, ListAval)])


def _bytes(item: Node, around: Loop) -> float:
    """How much memory a list takes that a loop saves; infinity where that is not known."""
    (loop,) = item.args
    if not isinstance(item.aval, ListAval) or not isinstance(item.aval.element, Aval) or not isinstance(loop.op, Loop):
        return math.inf
    return _often(loop, around) * item.aval.element.nbytes


def _often(loop: Node, around: Loop) -> float:
    """About how often at most a loop runs in an iteration of that around it; infinity where that is not known."""
    body, course = loop.op.body, around.course
    if loop.op.course.count is not None:
        return loop.op.course.count  # type: ignore[no-any-return]
    over = loop.args[len(body.carry)] if body.elements else None
    if loop.op.course.test is not None or over is None or over.op is not RANGE or course.count is None:
        return math.inf
    longest = 0
    for turn in (0, course.count - 1):
        known: dict[Node, Any] = {around.body.index: course.start + course.step * turn}
        for node in ancestors([over]):
            if node.op is CONST:
                known[node] = dict(node.params)["value"]
            elif node.op in _OF_PLACES and all([arg in known for arg in node.args]):
                known[node] = node.op.fun(*[known[arg] for arg in node.args])
            elif node not in known:
                return math.inf
        longest = max(longest, len(known[over]))
    return longest


def _reading(body: Body, known: list[Node], ended: list[End], saved: list[Node]) -> Body:
    """The body with what is known as elements of sequences, the last ones, what others ended with carried, and more saved."""
    copier = Simplifier(BodyProgram(body), {})

    def given(node: Node) -> Node:
        copier.mapping[node] = new = copier.graph.stand_in(node)
        return new

    more = [given(node) for node in known]
    ends = [given(end.node) for end in ended]
    made = copied(body, copier, {}, elements=more, saved=saved)
    return replace(made, carry=[*made.carry, *ends], after=[*made.after, *[copier.mapping[end.start] for end in ended]])
