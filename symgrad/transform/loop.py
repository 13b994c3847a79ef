"""Loops as operations: a body graph that runs many times, with derivatives that are loops again.

A ``Loop`` carries values from one iteration to the next. Its arguments are the initial carry, *sequences* (Python lists,
one element an iteration: what an earlier loop saved) and invariants; its results are the final carry and the sequences
that it saves. It runs ``count`` times, or as often as its sequences are long, or while one of its carried values is true.

Reverse mode runs the loop once more, saving what each iteration began with, and then a second loop backwards, whose body
is the reverse pass of the body.
"""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Graph, Node, ancestors, content_of, frozen, is_inexact
from symgrad.ops.core import REGISTRY, Op, fit
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.engine import ITEM, TO_NUMPY, TO_PYTHON
from symgrad.ops.index import GETITEM
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.forward import forward
from symgrad.transform.iteration import Iterations
from symgrad.transform.lanes import POLES, Around, aval_of_mask, mask_like, reads_poles_when_idle, worst_of
from symgrad.transform.reverse import reverse

_WHERE = REGISTRY[np.where]
_STEPS = frozenset([REGISTRY[fun] for fun in (np.sign, np.floor, np.ceil, np.trunc, np.rint, np.heaviside, np.floor_divide)])


@dataclass(eq=False, frozen=True)
class Body:
    """One iteration: input nodes (carry, index, elements of sequences, invariants) and output nodes (carry, saved)."""

    graph: Graph
    carry: list[Node]
    index: Node
    elements: list[Node]
    invariants: list[Node]
    after: list[Node]
    saved: list[Node]

    @functools.cached_property
    def inputs(self) -> list[Node]:
        return [*self.carry, self.index, *self.elements, *self.invariants]

    @functools.cached_property
    def readers(self) -> dict[Node, list[Node]]:
        """Of what there is in it, the nodes that read it, in order, as often as they do."""
        found: dict[Node, list[Node]] = {}
        for node in self.nodes():
            for arg in node.args:
                found.setdefault(arg, []).append(node)
        return found

    def renamed(self, graph: Graph, new: Mapping[Node, Node]) -> Body:
        """The same body in another graph, which has ``new`` nodes in the place of its own."""
        carry, elements, invariants, after, saved = (
            [new[node] for node in nodes] for nodes in (self.carry, self.elements, self.invariants, self.after, self.saved)
        )
        return Body(graph, carry, new[self.index], elements, invariants, after, saved)

    def nodes(self) -> list[Node]:
        """What an iteration computes, in order; inputs are not among it."""
        return self._nodes

    @functools.cached_property
    def _nodes(self) -> list[Node]:
        given = set(self.inputs)
        return [node for node in ancestors([*self.after, *self.saved]) if node not in given]


@dataclass(frozen=True)
class Course:
    """How a loop runs: ``count`` times with ``index = start + step * i``; or while carried value ``test`` is true; or, with
    neither, once an element. ``backwards``: from the last element to the first. ``once``: after one iteration, ``test`` is
    false: the loop is an ``if``."""

    count: int | None = None
    start: int = 0
    step: int = 1
    test: int | None = None
    backwards: bool = False
    once: bool = False


class Embodied(Op):
    """An operation that runs a ``body``, and what lanes ask of what is in there. ``once``: it is an ``if``."""

    body: Body
    once = False
    stops = False  # whether it may run no iteration, other than as an ``if``

    @functools.cached_property
    def _worst(self) -> tuple[int, bool]:
        return worst_of(self.body.nodes())

    @property
    def inside(self) -> int:
        return self._worst[0]

    @property
    def chooses(self) -> bool:
        return self._worst[1] or self.parts or bool(self.picked) or self.selects

    @functools.cached_property
    def selects(self) -> bool:
        """Whether masks select something in it."""
        return any([node.op is _WHERE or (isinstance(node.op, Loop) and node.op.selects) for node in self.body.nodes()])

    @functools.cached_property
    def picked(self) -> frozenset[int]:
        """The arguments, the same in all iterations, of which it reads elements, or rows: what none reads is left out."""
        body, nodes = self.body, self.body.nodes()
        places = {item: i for i, item in enumerate(body.invariants, len(body.carry) + len(body.elements))}
        read = [node.args[0] for node in nodes if node.op is GETITEM]
        read += [node.args[i] for node in nodes if isinstance(node.op, Loop) for i in node.op.picked]
        return frozenset([places[item] for item in read if item in places])

    @functools.cached_property
    def compares(self) -> list[int]:
        """The arguments that are compared, or rounded, in it."""
        body = self.body
        found = _reached(body, [arg for node in body.nodes() for arg in compared(node)], set())
        return [i for i, item in enumerate([*body.carry, *body.elements, *body.invariants]) if item in found]

    def picks(self, position: int) -> bool:
        """Whether it reads elements of an argument, and chooses nothing else."""
        return position in self.picked and not (self.parts or self._worst[1])

    @functools.cached_property
    def idle(self) -> frozenset[int]:
        body, seen = self.body, set[Node]()
        places = {item: i for i, item in enumerate(body.carry)}
        places |= {item: i for i, item in enumerate(body.invariants, len(body.carry) + len(body.elements))}
        waiting = [node.args[i] for node in body.nodes() if node.args for i in node.op.idle]
        while waiting:
            node = waiting.pop()
            if node not in seen and is_inexact(node.aval):
                seen.add(node)
                waiting += [body.after[places[node]]] if places.get(node, math.inf) < len(body.carry) else reached(node)
        seen.update(body.invariants if self.stops else [])
        return frozenset([i for item, i in places.items() if item in seen and is_inexact(item.aval)])

    @functools.cached_property
    def idling(self) -> bool:
        return reads_poles_when_idle(self.body.nodes(), dict(zip(self.body.carry, self.body.after, strict=False)))

    @functools.cached_property
    def forks(self) -> bool:
        """Whether it is an ``if``, or has one in it."""
        return self.once or any([isinstance(node.op, Loop) and node.op.forks for node in self.body.nodes()])

    @functools.cached_property
    def parts(self) -> bool:
        """Whether Python chooses something in it, by an ``if``, ``min`` or ``max``: masks go round for that at poles alone."""
        nodes = self.body.nodes()
        return self.forks or any([node.op is EXTREME or (isinstance(node.op, Loop) and node.op.parts) for node in nodes])


class Loop(Embodied):
    """The operation of a loop. See the module's docstring."""

    def __init__(self, body: Body, course: Course) -> None:
        super().__init__(self, "loop", (), name="loop", fun=self.run, lanes="loop")
        assert body.elements or course.count is not None or course.test is not None, "nothing tells how often it runs"
        self.body, self.course, self.once = body, course, course.once
        self.stops = course.count is None and not course.once
        self.joint = self._joint
        self.jvp = self._jvp
        self.reach = self._reach
        self.moved = self._moved
        self.like = self._like if course.count is not None else None
        self.saves = [node.aval for node in body.saved]
        self.simplified: dict[bool, Loop] = {}  # as optimize.loops has made it, to the bit or not
        self.needed: dict[int, list[int]] = {}  # which arguments each result needs, as optimize.loops finds
        self._made: dict[Any, Any] = {}

    @functools.cached_property
    def hides(self) -> bool:
        """Whether masks in it may hide infinities of a derivative, of which no warning is raised."""
        return worst_of([node for node in self.body.nodes() if node.phase is not None]) == (POLES, True)

    @functools.cached_property
    def decides(self) -> bool:
        """Whether how it runs, or what in it does, hangs on what it computes, so that rounding may change it."""
        inner = [node.op for node in self.body.nodes() if isinstance(node.op, Loop)]
        free = self.course.test is not None and not self.once
        return free or any([op.decides for op in inner]) or any(map(_rounds, self._tests))

    @functools.cached_property
    def watched(self) -> list[int]:
        """The arguments that it hangs on how it runs, and what in it does: of one that ends by a test, and decides nothing
        else, those of the test."""
        test = self.course.test
        if test is not None and not self.once:
            alone = not any([isinstance(node.op, Loop) for node in self.body.nodes()])
            return arguments_of(self, test) if alone else [*range(len(self.body.inputs) - 1)]
        inputs = [*self.body.carry, *self.body.elements, *self.body.invariants]
        return [i for i, item in enumerate(inputs) if item in self._tests or i == test]

    @functools.cached_property
    def _tests(self) -> set[Node]:
        """What the loops, and the ``if``s, in it hang on in any iteration."""
        inner = [node for node in self.body.nodes() if isinstance(node.op, Loop)]
        return _reached(self.body, [node.args[i] for node in inner for i in node.op.watched], set())

    def rounds(self, place: int) -> bool:
        """Whether one of its results hangs on numbers that it computes, other than whole ones and truth values."""
        return any(map(_rounds, needed(self.body, self.course, [place])[1]))

    @functools.cached_property
    def alike(self) -> Any:
        return fingerprint(self.body, anew=True), self.course

    def freeze(self) -> None:
        """Hold its arrays as they are: what is made anew in each trace is, in this one, nobody else's. Of large ones, the very
        same are alike, which are not made anew."""
        graph = self.body.graph
        arrays = [(node, x) for node, x in graph.arrays.items() if x.flags.writeable and x.nbytes <= LITTLE]
        for node, array in arrays:
            graph.recapture(node, frozen(array))
            graph.former.append(array)  # loops are known by its id, which no other array is to get
            self.__dict__.pop("_iterations", None)  # which has it, too
        for node in self.body.nodes():
            if isinstance(node.op, Loop):
                node.op.freeze()

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many carried values, sequences and invariants it takes."""
        return len(self.body.carry), len(self.body.elements), len(self.body.invariants)

    def differentiable(self, position: int) -> bool:
        return is_inexact(self.body.inputs[position + (position >= len(self.body.carry))].aval)

    def contents(self) -> str:
        """The body, for people: how often it runs, what it computes, what it carries on and what it saves."""
        course, body = self.course, self.body
        if course.test is not None:
            often = f"{'if' if course.once else 'while'} carried value {course.test} is true"
        else:
            often = "once an element" if course.count is None else f"{course.count} times"
        often += ", from the last to the first" if course.backwards else ""
        carried, saved = (", ".join(f"%{node.index}" for node in nodes) for nodes in (body.after, body.saved))
        ends = [f"carry {carried}"] * bool(carried) + [f"save {saved}"] * bool(saved)
        return "\n".join(["", f"{often}:", body.graph.dump([*body.after, *body.saved]), *ends])

    # ---- running ----

    @functools.cached_property
    def _iterations(self) -> Iterations:
        return Iterations(self.body, self.course.start, self.course.step, self.course.test)

    def run(self, *args: Any, arrays: Sequence[int] = ()) -> tuple[Any, ...]:
        """The loop, one operation after the other; what it saves at ``arrays`` as arrays, not as lists."""
        with np.errstate(divide="ignore", invalid="ignore") if self.hides else nullcontext():
            return self._iterated(None, list(args), arrays)

    def anyway(self, *args: Any, arrays: Sequence[int] = ()) -> tuple[Any, ...]:
        """The same in a derivative, which may compute what the function did not: Python's numbers raise no error there."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._iterated(None, list(args), arrays, True)

    def _moved(self, values: list[Any], params: Any) -> tuple[Any, ...]:
        """The same, of arguments that are given up: what nobody else holds of them may be written into."""
        with np.errstate(divide="ignore", invalid="ignore") if self.hides else nullcontext():
            return self._iterated(None, values, **params)

    def counted(self, *args: Any) -> tuple[tuple[Any, ...], int]:
        """The results of a loop, and how often it ran."""
        turns = itertools.count()
        _, sequences, _ = self.split(args)
        results = self._iterated((i for i, _ in zip(self.order(sequences), turns)), list(args))  # noqa: B905
        return results, next(turns) - (self.course.test is not None)  # whose last turn was but the test

    def _iterated(
        self, order: Iterable[Any] | None, args: list[Any], arrays: Sequence[int] = (), anyway: bool = False
    ) -> tuple[Any, ...]:
        """The results; ``args`` is emptied, so that what nobody else holds is let go of, or written into, as soon as may be."""
        roles = self.split(args)
        args.clear()
        turns, often = (self.order(roles[1]), self._often(roles[1])) if order is None else (order, None)
        carry, saved = self._iterations.run(turns, often, roles, anyway)
        if self.course.backwards:
            for some in saved:
                some.reverse()
        return (*carry, *(np.array(some) if j in arrays else some for j, some in enumerate(saved)))

    def _often(self, sequences: Sequence[Any]) -> int | None:
        """How many iterations there are; None if a test tells."""
        if self.course.test is not None:
            return None
        return self.course.count if self.course.count is not None else len(sequences[0])

    def _like(self, *likes: Any, arrays: Sequence[int] = ()) -> tuple[Any, ...] | None:
        """What the results are like, as two iterations tell: of a sequence, a list of two elements will do."""
        carry, sequences, invariants = self.split(likes)
        short = (1, 0) if self.course.backwards else (0, 1)
        found = self._iterated(short, [*carry, *([sequence[0]] * 2 for sequence in sequences), *invariants])
        n, count = len(carry), self.course.count
        return (*found[:n], *(np.stack([s[0]] * count) if j in arrays else s for j, s in enumerate(found[n:])))  # type: ignore[operator]

    def order(self, sequences: Sequence[Any]) -> Any:
        """The iterations' numbers; None without end for a loop with a test."""
        count = self._often(sequences)
        if count is None:
            return iter(lambda: None, 0)
        return reversed(range(count)) if self.course.backwards else range(count)

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The arguments by role: initial carry, sequences, invariants."""
        n, m, _ = self.counts
        return list(args[:n]), list(args[n : n + m]), list(args[n + m :])

    # ---- derivatives ----

    def _reach(self, item: int) -> list[int]:
        """The arguments that the derivative of a result flows to."""
        if ("reach", item) not in self._made:
            body, n = self.body, len(self.body.carry)
            places = {node: i for i, node in enumerate([*body.carry, *body.elements, *body.invariants])}
            seen: set[Node] = set()
            waiting = [(body.after + body.saved)[item], *([body.carry[item]] if item < n else [])]
            while waiting:
                node = waiting.pop()
                if node in seen or not is_inexact(node.aval):
                    continue
                seen.add(node)
                if places.get(node, n) < n:
                    waiting.append(body.after[places[node]])
                elif node not in places:
                    waiting += reached(node)
            self._made["reach", item] = [i for node, i in places.items() if node in seen]
        return self._made["reach", item]  # type: ignore[no-any-return]

    def saving(self) -> Loop:
        """The same loop, which also saves what each iteration begins with."""
        if "saving" not in self._made:
            body = self.body
            copy = Body(
                body.graph, body.carry, body.index, body.elements, body.invariants, body.after, [*body.saved, *body.carry]
            )
            self._made["saving"] = loop_of(copy, self.course)
        return self._made["saving"]  # type: ignore[no-any-return]

    def _starts(self, tape: Any, args: Sequence[Any]) -> Sequence[Any]:
        """What each iteration begins with; in a trace, without the other results, of which integers would be computed now."""
        first = len(self.body.carry) + len(self.body.saved)
        if tape is None:
            return self.saving()(*args)[first:]  # type: ignore[no-any-return]
        whole = tape.lookup(tape.run(self.saving(), args, {}))
        return [tape.record(ITEM, (whole,), {"item": i}) for i in range(first, first + len(self.body.carry))]

    def _joint(self, g: Sequence[Any], y: Any, args: Sequence[Any], params: Any) -> list[Any]:
        return self.joint_in_lanes(g, args, [None] * len(g), [0] * len(args), {})[0]

    def adding(self, args: Sequence[Node]) -> list[int]:
        """The arguments to whose cotangents it adds, in their place: an ``if`` that is not taken leaves them alone, and a loop
        adds to few elements of them as a rule, if that cannot be infinite times zero."""
        n, m, _ = self.counts
        ranged = self.course == Course() and not self.body.saved
        places = {arg: i for i, arg in enumerate(args)} if self.course.once or ranged or self.inside < POLES else {}
        return [
            i
            for arg, i in places.items()
            if i >= n + m and isinstance(arg.aval, Aval) and arg.aval.shape and arg not in args[:i]
        ]

    def joint_in_lanes(
        self,
        g: Sequence[Any],
        args: Sequence[Any],
        live: Sequence[Any],
        levels: Sequence[int],
        before: Mapping[int, tuple[Any, Any]],
    ) -> tuple[list[Any], list[Any]]:
        """The cotangents of all arguments, and masks of where they may be other than zero (None where that is not known).

        ``live``: the masks of the results' cotangents; ``levels``: how bad partial derivatives get below each argument;
        ``before``: cotangents, with their masks, to which those of arguments of ``adding`` are added.
        """
        n, m, _ = self.counts
        carry, sequences, invariants = self.split(args)
        tape = next((arg.tape for arg in args if type(arg) is Tracer), None)
        phase = tape.phase if tape is not None else None
        if tape is not None:
            tape.phase = None  # it is the loop itself, run again
        starts = carry if self.course.once else self._starts(tape, args)
        if tape is not None:
            tape.phase = phase
        given = tuple(part is not None for part in g)
        double = tape is None or tape.double_where
        masked = self._worst[1] or any(mask is not None for mask in live)
        forks = self.forks or (self.selects and tape is not None and tape.leaves_out)
        worst = max([*levels, self.inside if forks or self.inside == POLES else 0])
        steep = (self.parts and worst == POLES) or self.idling or any([levels[i] == POLES for i in self.picked | self.idle])
        followed = double and worst > 0 and (masked or forks or steep)
        sure = [mask is not None and followed for mask in live[n:]]
        key = given, tuple(levels) if followed else None, tuple(sure), double, forks
        with np.errstate(all="ignore"):  # what NumPy warns of, it says where the loop runs
            back, flows, uses, elements, around = self._backward(key, carry, sequences, invariants)
        fixed = [*invariants, *_given(tape, around)]
        first = [zero_of(carry[i]) if g[i] is None else fit(g[i], self.body.carry[i].aval) for i in flows]
        there = [before.get(n + m + i) for i in uses]
        totals = [zero_of(invariants[i]) if known is None else known[0] for i, known in zip(uses, there, strict=True)]
        masks = []
        if followed:
            masks = [mask_like(carry[i], g[i] is not None) if live[i] is None else live[i] for i in flows]
            masks += [
                mask_like(invariants[i], known is not None) if known is None or known[1] is None else known[1]
                for i, known in zip(uses, there, strict=True)
            ]
        cotangents = [part for part in g[n:] if part is not None]
        more = [mask for mask, is_sure in zip(live[n:], sure, strict=True) if is_sure]
        for place, i in enumerate(flows):
            aval = self.body.carry[i].aval
            if self.course.once or aval.kind == "scalar":  # a Python number would stay one where no iteration meets it
                first[place] = of_kind(first[place], aval)
        if self.course.once:
            found = back(*first, *totals, *masks, carry[self.course.test], *starts, *fixed)  # type: ignore[index]
        else:
            found = back(*first, *totals, *masks, *starts, *sequences, *cotangents, *more, *fixed)
        parts: list[Any] = [None] * len(args)
        tests: list[Any] = [None] * len(args)
        for place, i in enumerate([*flows, *(n + m + i for i in uses)]):
            parts[i] = found[place]
            tests[i] = found[place + len(first) + len(totals)] if followed else None
        kept = len(first) + len(totals) + len(masks)
        for place, i in enumerate(elements):
            parts[n + i] = found[kept + place]
            tests[n + i] = found[kept + len(elements) + place] if followed else None
        return parts, tests

    def _backward(
        self,
        key: tuple[tuple[bool, ...], tuple[int, ...] | None, tuple[bool, ...], bool, bool],
        carry: list[Any],
        sequences: list[Any],
        invariants: list[Any],
    ) -> tuple[Loop, list[int], list[int], list[int], list[Tracer] | None]:
        """The loop backwards: cotangents of the carry and totals for invariants go round; elements' cotangents are saved.

        And what it takes besides, which rules of the user's read; None where there are no such rules.

        ``key``: which results have cotangents; the ``levels`` of ``joint_in_lanes``, if masks go round, too; which saved
        results have masks; whether what is not selected stays out; and whether ``if``s, or masks in their place, may
        leave out what is infinite or NaN.
        """
        if ("backward", key) in self._made:
            return self._made["backward", key]  # type: ignore[no-any-return]
        given, levels, sure, double, forks = key
        n, m, invariant = self.counts
        reaching = {i for item in itertools.compress(range(len(given)), given) for i in self._reach(item)}
        flows, elements, uses = [  # the others' cotangents stay zero
            [i for i in range(count) if start + i in reaching] for start, count in ((0, n), (n, m), (n + m, invariant))
        ]
        sub, starts, index, items, fixed, after, saved = self._retrace(carry, sequences, invariants)
        sub.phase, sub.double_where = "backward", double
        sub.leaves_out = forks and not self.forks
        gs = [sub.input(("cotangent", i), one_like(plain(carry[i]))) for i in flows]
        totals = [sub.input(("total", i), zero_like(plain(invariants[i]))) for i in uses]
        for t, node in zip(
            (*gs, *totals), [*(self.body.carry[i] for i in flows), *(self.body.invariants[i] for i in uses)], strict=True
        ):
            t.node.name = f"g_{node.name or 'state'}"
        extra = [sub.input(("saved", j), one_like(sub.values[saved[j].node])) for j in range(len(saved)) if given[n + j]]
        ends = [*(starts[i].node for i in flows), *(fixed[i].node for i in uses)]
        wrt = [*ends, *(items[i].node for i in elements)]
        lives: list[Any] = []
        if levels is not None:
            values = [carry[i] for i in flows] + [invariants[i] for i in uses]
            lives = [sub.input(("live", k), mask_like(plain(value), True)) for k, value in enumerate(values)]
        seeds = [(after[i].node, gs[place]) for place, i in enumerate(flows)]
        seeds += [(s.node, e) for s, e in zip([s for j, s in enumerate(saved) if given[n + j]], extra, strict=True)]
        placed = [self.course.once or self._is_for_loops(i) for i in uses]  # whether what is added to a total is in its place
        seeds += [(fixed[i].node, total) for i, total, place in zip(uses, totals, placed, strict=True) if place]
        around = None
        more = {j: sub.input(("saved live", j), mask_like(plain(saved[j]), True)) for j in range(len(saved)) if sure[j]}
        if levels is not None:
            beyond = [max(levels[i], self.inside) for i in flows]
            beyond += [levels[n + m + i] for i in uses] + [levels[n + i] for i in elements]
            masks = [more.get(j) for j in range(len(saved)) if given[n + j]]
            masks += [mask for mask, place in zip(lives[len(flows) :], placed, strict=True) if place]
            around = Around(dict(zip(wrt, beyond, strict=True)), [*lives[: len(flows)], *masks], forks)
        kept = [is_inexact(node.aval) for node, _ in seeds]
        if around is not None:
            around.live = [mask for mask, keep in zip(around.live, kept, strict=True) if keep]
        found = reverse(sub, [seed for seed, keep in zip(seeds, kept, strict=True) if keep], wrt, around=around)
        shaped = [sub.constant_like(0.0, node.aval) if part is None else part for part, node in zip(found, wrt, strict=True)]
        back = shaped[: len(flows)]
        sums = shaped[len(flows) : len(ends)]
        known_parts = zip(totals, found[len(flows) :], sums, placed, strict=False)
        sums = [more if place else total if part is None else total + more for total, part, more, place in known_parts]
        own = shaped[len(ends) :]
        masks = []
        if around is not None:
            masks = [_live(sub, node, g, around) for node, g in zip(wrt, found, strict=True)]
            own += masks[len(ends) :]
            behind = zip(lives[len(flows) :], list[Any](masks[len(flows) :]), placed, strict=False)
            masks = [*masks[: len(flows)], *[b if place else np.logical_or(a, b) for a, b, place in behind]]
        carried, ended, read = [*gs, *totals, *lives], [*back, *sums, *masks], [*starts, *items, *extra, *more.values()]
        if self.course.once:  # an ``if`` again, which begins with what is there: nothing need be saved
            test = starts[self.course.test]
            ended = [of_kind(x, t.node.aval) for x, t in zip(ended, carried, strict=True)]
            carried = [*carried, sub.input("again", test.value)]
            ended = [*ended, sub.lookup(sub.constant(type(test.value)(False))[0])]
            read, own, fixed = [], [], [*starts, *fixed]
            course = Course(test=len(carried) - 1, once=True)
        else:
            course = Course(self.course.count, self.course.start, self.course.step, None, not self.course.backwards)
        outer, inner = _around(sub)
        nodes = [[t.node for t in part] for part in (carried, read, [*fixed, *inner], ended, own)]
        made = (loop_of(Body(sub.graph, nodes[0], index.node, *nodes[1:]), course), flows, uses, elements, outer)
        if outer is None:
            self._made["backward", key] = made
        return made

    def _is_for_loops(self, i: int) -> bool:
        """Whether loops and ``if``s in it read an invariant: they add to its total in place, or not at all."""
        item = self.body.invariants[i]
        inner = [node for node in self.body.nodes() if isinstance(node.op, Loop)]
        return any([item in node.op.split(node.args)[2] for node in inner])

    def _retrace(self, carry: list[Any], sequences: list[Any], invariants: list[Any]) -> tuple[Any, ...]:
        """The body in a trace of its own, on the values that the first iteration has; on some, where there is none."""
        sub = Trace()
        sub.exemplary = True
        body = self.body
        starts = [sub.input(("carry", i), plain(value)) for i, value in enumerate(carry)]
        index = sub.input("index", self.course.start)
        found = [(plain(sequence), node.aval) for sequence, node in zip(sequences, body.elements, strict=True)]
        firsts = [items[0] if len(items) else one_of(aval) for items, aval in found]
        items = [sub.input(("element", i), value) for i, value in enumerate(firsts)]
        fixed = [sub.input(("invariant", i), plain(value)) for i, value in enumerate(invariants)]
        known = dict(zip(body.inputs, [*starts, index, *items, *fixed], strict=True))
        for node, tracer in known.items():
            tracer.node.name = node.name
            tracer.node.differentiated = True
        replay(sub, body, known, self.course.once)
        return sub, starts, index, items, fixed, [known[n] for n in body.after], [known[n] for n in body.saved]

    def _jvp(self, ts: Sequence[Any], y: Any, *args: Any) -> Any:
        n, m, _ = self.counts
        carry, sequences, invariants = self.split(args)
        moving = tuple(t is not None for t in ts)
        with np.errstate(all="ignore"):
            pushed, flows, around = self._forward(moving, carry, sequences, invariants)
        tape = next((arg.tape for arg in args if type(arg) is Tracer), None)
        first = [zero_of(carry[i]) if ts[i] is None else ts[i] for i in flows]
        more = [t for t in ts[n : n + m] if t is not None]
        rest = [t for t in ts[n + m :] if t is not None]
        found = pushed(*carry, *first, *sequences, *more, *invariants, *rest, *_given(tape, around))
        tangents: list[Any] = [None] * (n + len(self.body.saved))
        for place, i in enumerate(flows):
            tangents[i] = found[n + place]
        kept = n + len(flows) + len(self.body.saved)
        for place, j in enumerate(j for j, node in enumerate(self.body.saved) if is_inexact(node.aval)):
            tangents[n + j] = found[kept + place]
        return tuple(tangents)

    def _forward(
        self, moving: tuple[bool, ...], carry: list[Any], sequences: list[Any], invariants: list[Any]
    ) -> tuple[Loop, list[int], list[Tracer] | None]:
        """The loop with tangents beside its values, and what it takes besides, as in ``_backward``."""
        key = ("forward", moving)
        if key in self._made:
            return self._made[key]  # type: ignore[no-any-return]
        flows = [i for i in range(self.counts[0]) if any([moving[j] for j in self._reach(i)])]  # the others' tangents stay zero
        sub, starts, index, items, fixed, after, saved = self._retrace(carry, sequences, invariants)
        sub.phase = "tangents"
        tangents = {starts[i].node: sub.input(("tangent", i), one_like(plain(carry[i]))) for i in flows}
        first = list(tangents.values())
        for i, t in zip(flows, first, strict=True):
            t.node.name = f"t_{self.body.carry[i].name or 'state'}"
        others = [*items, *fixed]
        more = []
        for j, moves in enumerate(moving[len(starts) :]):
            if moves:
                t = sub.input(("tangent", "element", j), one_like(others[j].value))
                tangents[others[j].node] = t
                more.append((j, t))
        kept = [s.node for s in saved if is_inexact(s.node.aval)]
        outputs = [*(after[i].node for i in flows), *kept]
        found = forward(sub, outputs, list(tangents), list(tangents.values()))
        shaped = [
            sub.constant_like(0.0, node.aval) if t is None else fit(t, node.aval)
            for t, node in zip(found, outputs, strict=True)
        ]
        ended = shaped[: len(flows)]
        outer, inner = _around(sub)
        body = Body(
            sub.graph,
            [t.node for t in (*starts, *first)],
            index.node,
            [*(t.node for t in items), *(t.node for j, t in more if j < len(items))],
            [*(t.node for t in fixed), *(t.node for j, t in more if j >= len(items)), *(t.node for t in inner)],
            [*(t.node for t in after), *(t.node for t in ended)],
            [*(t.node for t in saved), *(t.node for t in shaped[len(flows) :])],
        )
        made = (loop_of(body, self.course), flows, outer)
        if outer is None:
            self._made[key] = made
        return made


def replay(trace: Trace, body: Body, known: dict[Node, Tracer], anyway: bool = False) -> None:
    """Write the nodes of a body into a trace, where its inputs are ``known``; the others become so.

    ``anyway``: as in a derivative, numbers of Python's raise no error.
    """
    for node in body.nodes():
        known[node] = replayed(trace, node, body, known, anyway)


def replayed(trace: Trace, node: Node, body: Body, known: Mapping[Node, Tracer], anyway: bool = False) -> Tracer:
    """One node of a body, written into a trace."""
    if node.op is CONST:
        return trace.lookup(trace.constant(dict(node.params)["value"])[0])
    if node.op is CAPTURED:
        return trace.lookup(trace.constant(body.graph.arrays[node])[0])
    outer, start = trace.phase, len(trace.graph.nodes)
    trace.phase = outer or node.phase or ("backward" if anyway else None)
    made = trace.run(node.op, [known[arg] for arg in node.args], dict(node.params))
    trace.phase = outer
    made.name, made.line = made.name or node.name, made.line or node.line
    for new in trace.graph.nodes[start:]:
        new.phase = outer or node.phase
    return trace.lookup(made)


def _around(sub: Trace) -> tuple[list[Tracer] | None, list[Tracer]]:
    """What rules of the user's read around a body, None if it has no such rules, and the body's inputs for that."""
    pairs = sub.around.values()
    return [outer for outer, _ in pairs] if sub.ruled else None, [inner for _, inner in pairs]


def _given(tape: Any, around: list[Tracer] | None) -> list[Tracer]:
    """The same as arguments of a loop, which may be in the body of another."""
    if around is None or tape is None:
        return around or []
    tape.ruled = True
    return [tape.around_it(x) for x in around]


def reached(node: Node) -> list[Node]:
    """What the derivative of a node flows to; that of one result of a loop, to what the loop is given for it."""
    if node.op is ITEM and (reach := node.args[0].op.reach) is not None:
        (loop,) = node.args
        return [loop.args[i] for i in reach(dict(node.params)["item"])]
    return [arg for i, arg in enumerate(node.args) if node.op.differentiable(i)]


def compared(node: Node) -> list[Node]:
    """What a node compares, or rounds, of its arguments, or a loop in its body."""
    if isinstance(node.op, Embodied):
        return [node.args[i] for i in node.op.compares]
    steps = isinstance(node.aval, Aval) and node.op is not ITEM and (node.aval.dtype.kind in "bi" or node.op in _STEPS)
    return [arg for arg in node.args if is_inexact(arg.aval)] if steps else []


_loops: weakref.WeakValueDictionary[Any, Loop] = weakref.WeakValueDictionary()


def loop_of(body: Body, course: Course) -> Loop:
    """The loop of a body: one and the same operation for bodies that are alike, names, lines and phases too."""
    assert len(set(body.inputs)) == len(body.inputs), "two inputs of a loop are one"
    key = (fingerprint(body), course)
    found = _loops.get(key)
    if found is None:
        found = _loops.setdefault(key, Loop(body, course))
    return found


def needed(body: Body, course: Course, ends: Iterable[int], settled: Container[int] = ()) -> tuple[list[int], set[Node]]:
    """The carried values that results of a loop need, but for those that are ``settled``, and what they need of its body."""
    n = len(body.carry)
    carried = {i for i in ends if i < n} | ({course.test} if course.test is not None else set())
    found = _reached(body, [*(body.after[i] for i in carried), *(body.saved[i - n] for i in ends if i >= n)], carried, settled)
    return sorted(carried), found


def _reached(body: Body, ends: Iterable[Node], carried: set[int], settled: Container[int] = ()) -> set[Node]:
    """What nodes of a body need of it, in any iteration; ``carried`` gets the carried values among that."""
    places = {item: i for i, item in enumerate(body.carry) if i not in settled}
    found, waiting = set[Node](), [*ends]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        if node in places and places[node] not in carried:
            carried.add(places[node])
            waiting.append(body.after[places[node]])
        if node.op is ITEM and isinstance(node.args[0].op, Loop):
            loop = node.args[0]
            waiting += [loop.args[i] for i in arguments_of(loop.op, dict(node.params)["item"])]
        else:
            waiting += node.args
    return found


def _rounds(node: Node) -> bool:
    """Whether it is a number that is computed, or comes from such in a loop."""
    if node.op is ITEM and isinstance(node.args[0].op, Loop):
        return bool(node.args[0].op.rounds(dict(node.params)["item"]))
    return bool(node.args) and is_inexact(node.aval) and not node.op.alias


def arguments_of(loop: Loop, item: int) -> list[int]:
    """The arguments of a loop that one of its results needs."""
    if item not in loop.needed:
        body, course = loop.body, loop.course
        carry, inner = needed(body, course, [item])
        counts = course.test is None and course.count is None  # the elements tell how often it runs
        elements = [counts or part in inner for part in body.elements]
        n = len(body.carry)
        rest = [*elements, *[part in inner for part in body.invariants]]
        loop.needed[item] = [*carry, *[n + i for i, is_needed in enumerate(rest) if is_needed]]
    return loop.needed[item]


def copied(graph: Graph, node: Node, args: Sequence[Node], source: Graph) -> Node:
    """A node of ``source`` in another graph, on other arguments."""
    if node.op is CONST:
        return graph.const(dict(node.params)["value"])
    if node.op is CAPTURED:
        return graph.captured(source.arrays[node])
    made = graph.add(node.op, tuple(args), node.params, node.aval)
    made.name, made.line, made.phase, made.exact = node.name, node.line, node.phase, node.exact
    return made


def fingerprint(body: Body, notes: bool = True, anew: bool = False) -> Any:
    """The same for bodies that are alike, with ``notes`` names, lines and phases too; ``anew``: with other arrays that hold the
    same as well."""
    places = {node: i for i, node in enumerate([*body.inputs, *body.nodes()])}
    carried = set(body.carry)
    rows: list[Any] = []
    for node in places:
        if node.op is CONST:
            value = dict(node.params)["value"]
            rows.append((CONST, type(value), repr(value)))
        elif node.op is CAPTURED:
            rows.append((CAPTURED, _content(body.graph.arrays[node], anew)))
        elif node.op is INPUT or None in (args := [places.get(arg) for arg in node.args]):
            rows.append((INPUT, node.aval, node.name if node in carried else None))
        else:
            seen = (node.name, node.line, node.phase) if notes else ()
            rows.append((node.op.alike if anew else node.op, tuple(args), node.params, node.aval, node.exact, *seen))
    ends = tuple(places[node] for node in body.after), tuple(places[node] for node in body.saved)
    shape = len(body.carry), len(body.elements), len(body.invariants)
    return tuple(rows), ends, shape


def _content(array: Any, anew: bool) -> Any:
    """What tells an array from others: what is in it, if that is little and nobody changes it, or ``anew``."""
    fixed = anew or (not array.flags.writeable and array.base is None)
    return (array.strides, *content_of(array)) if fixed and array.nbytes <= LITTLE else id(array)


LITTLE = 65_536  # bytes


def plain(x: Any) -> Any:
    """The plain value of a Tracer, and of anything else."""
    return x.value if type(x) is Tracer else x


def of_kind(x: Any, aval: Any) -> Any:
    """A number as Python's or as NumPy's, whichever ``aval`` says."""
    if type(x) is not Tracer or not isinstance(aval, Aval) or x.node.aval.kind == aval.kind or aval.kind == "array":
        return x
    return TO_PYTHON(x) if aval.kind == "python" else TO_NUMPY(x)


def _live(sub: Trace, node: Node, g: Any, around: Around) -> Any:
    """The mask of a cotangent at the end of a pass, as an array (a NumPy bool for a number)."""
    aval = aval_of_mask(node.aval)
    mask = around.found.get(node)
    if g is None or mask is None:
        return sub.constant_like(g is not None, aval)
    return np.logical_and(np.broadcast_to(mask, aval.shape) if aval.shape else mask, sub.constant_like(True, aval))


def zero_of(x: Any) -> Any:
    """A zero like ``x``, in its trace if it has one."""
    if type(x) is Tracer:
        return x.tape.constant_like(0.0, x.node.aval)
    return zero_like(x)


def zero_like(value: Any) -> Any:
    """A plain zero of this shape, dtype and kind."""
    if isinstance(value, np.ndarray):
        return np.zeros(value.shape, value.dtype)
    return type(value)(0)


def one_like(value: Any) -> Any:
    """A plain one of this shape, dtype and kind."""
    if isinstance(value, np.ndarray):
        return np.ones(value.shape, value.dtype)
    return type(value)(1)


def one_of(aval: Any) -> Any:
    """A plain one of this kind; of a list that a loop fills, one such element."""
    if not isinstance(aval, Aval):
        return [one_of(aval.element)]
    one = aval.dtype.type(1)
    return np.full(aval.shape, one) if aval.kind == "array" else one.item() if aval.kind == "python" else one
