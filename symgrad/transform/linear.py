"""Linear maps: what a pullback or a pushforward does to its vectors, apart from all that is computed at the point.

A derivative at a point is linear. Recorded at stand-ins for the vectors that it is for, its graph falls into two parts: what
does not depend on them, of which the other part's arguments are *kept*, and the operations that do. Those are the same at
every point where the function goes the same way, so that they are compiled once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from symgrad import pytree
from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node, ancestors, by_index, size_of
from symgrad.ir import Sequence as ListAval
from symgrad.ops.engine import IDENTITY, ITEM, STACKED, UNSTACKED
from symgrad.tracing.trace import Tape, Trace, active_trace, tracing
from symgrad.tracing.tracer import Tracer, plain
from symgrad.transform import calculus
from symgrad.transform.calculus import Linearized

_GIVEN = (INPUT, CAPTURED)


class Step(NamedTuple):
    """One operation. ``args`` are numbers of values: first those kept, then the vectors, then what earlier steps gave."""

    op: Any
    args: tuple[int, ...]
    params: tuple[tuple[str, Any], ...]


class Space(NamedTuple):
    """Where vectors are from: their tree, for each leaf its shape and, if the map depends on it, its aval.

    ``what`` they are, and ``of`` what, is for errors.
    """

    what: str
    of: str
    tree: pytree.TreeDef
    leaves: tuple[tuple[tuple[int, ...], Aval | None], ...]

    def take(self, trace: Trace, vectors: Any) -> list[Any]:
        """The leaves that the map depends on. Raises ``TypeError`` or ``ValueError`` for those of another space."""
        leaves = calculus.leaves_of(vectors, self.what, self.tree, [shape for shape, _ in self.leaves], self.of)
        pairs = [(leaf, aval) for leaf, (_, aval) in zip(leaves, self.leaves, strict=True) if aval is not None]
        for leaf, aval in pairs:
            calculus.require_direction(leaf, self.what, self.of, aval)
        return [calculus.finish(leaf, trace, aval) for leaf, aval in pairs]


class LinearMap:
    """What is done to vectors of a space, and to the values that were kept at a point. Equal ones do the same.

    ``masked``: whether there are masks in it, of what may be infinite.
    """

    __slots__ = ("_masked", "_results", "_space", "_steps", "_tree", "compiled")

    def __init__(self, space: Space, steps: Sequence[Step], masked: bool, results: Sequence[int], tree: pytree.TreeDef) -> None:
        self._space, self._steps, self._masked, self._results, self._tree = space, steps, masked, results, tree
        self.compiled: Callable[..., Any] | None = None  # the same by code

    def __call__(self, kept: Sequence[Any], vectors: Any) -> Any:
        """The tree of results at these vectors, recorded in the trace that runs."""
        trace = active_trace()
        assert trace is not None
        known = [*kept, *self._space.take(trace, vectors)]
        outer, trace.phase = trace.phase, "backward" if self._space.what == "cotangent" else "tangents"
        trace.masked = trace.masked or self._masked
        try:
            with np.errstate(divide="ignore", invalid="ignore") if self._masked else nullcontext():
                for op, args, params in self._steps:
                    given = dict(params)
                    if op is CONST:
                        known.append(given["value"])
                    elif op is ITEM:
                        known.append(known[args[0]][given["item"]])
                    else:
                        known.append(trace.record(op, [known[arg] for arg in args], given))
        finally:
            trace.phase = outer
        return self._tree.unflatten([known[i] for i in self._results])

    def _key(self) -> Any:
        steps = [(op, args, _spelt(params) if op is CONST else params) for op, args, params in self._steps]
        return self._space, steps, self._masked, self._results, self._tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearMap) and self._key() == other._key()

    def __hash__(self) -> int:
        return len(self._steps)


def _spelt(params: Sequence[tuple[str, Any]]) -> Any:
    """Constants as graphs tell them apart: ``0.0`` and ``-0.0`` are two."""
    return [(type(value), repr(value)) for _, value in params]


class Recorded:
    """The pullback of a run whose values are all kept, at plain cotangents."""

    def __init__(self, trace: Trace, run: Linearized) -> None:
        if trace.whole is None:
            trace.whole = copy.copy(trace)
        self._trace, self._run = trace.whole, run

    def __call__(self, kept: Sequence[Any], cotangent: Any) -> Any:
        return pytree.map_tree(_own, calculus.pull(self._trace, self._run, cotangent, False, False))


class Replayed:
    """A linear map of one run that no code is made for."""

    def __init__(self, linear: LinearMap) -> None:
        self._linear = linear

    def __call__(self, kept: Sequence[Any], vectors: Any) -> Any:
        if active_trace() is not None:
            return self._linear(kept, vectors)
        with tracing(Tape()):
            return pytree.map_tree(lambda leaf: _own(plain(leaf)), self._linear(kept, vectors))


def _own(leaf: Any) -> Any:
    """A result that nobody else holds."""
    return np.array(leaf, order="C") if type(leaf) is np.ndarray else leaf


def pullback_of(trace: Trace, run: Linearized) -> tuple[list[Any], LinearMap | Recorded]:
    """What is kept for the pullback of a run, and what it does then."""
    if not trace.symbolic:
        return [], Recorded(trace, run)
    found = _apart(trace, run.outputs, run.tree, lambda g: calculus.pull(trace, run, g, False, True), ("cotangent", "output"))
    return found or ([], Recorded(trace, run))


def pushforward_of(trace: Trace, run: Linearized) -> tuple[list[Any], LinearMap | Replayed | None]:
    """What is kept for the pushforward of a run, and what it does then; ``None`` where it needs the function again."""
    primals = [x for v in run.vars for x in v.tracers]
    tree = pytree.TreeDef(tuple, (), tuple([v.tree for v in run.vars]))
    found = _apart(trace, primals, tree, lambda ts: calculus.push(trace, run, ts), ("tangent", "primal"))
    if found is None:
        return [], None
    kept, linear = found
    return kept, linear if trace.symbolic else Replayed(linear)


def _apart(
    trace: Trace, values: Sequence[Any], tree: pytree.TreeDef, linear: Callable[[Any], Any], words: tuple[str, str]
) -> tuple[list[Any], LinearMap] | None:
    """Record ``linear`` at stand-ins for vectors that are like ``values``; what it keeps, and the map.

    ``None`` where it looks at the vectors, or keeps what is no number or array.
    """
    avals = [x.node.aval if type(x) is Tracer and x.node.aval.dtype.kind in "fc" else None for x in values]
    stand_ins = [aval and trace.fresh(trace.constant_like(1.0, aval)) for aval in avals]
    guards = len(trace.guards)
    vectors = [x if stand_in is None else stand_in for x, stand_in in zip(values, stand_ins, strict=True)]
    results, results_tree = pytree.flatten(linear(tree.unflatten(vectors)))
    ends = [calculus.traced(trace, result).node for result in results]
    starts = [stand_in.node for stand_in in stand_ins if stand_in is not None]
    moving = _depending(ends, starts)
    kept, inside = _frontier(ends, moving, starts, trace.masked)
    looked = _depending([guard.node for guard in trace.guards[guards:]], starts)
    if looked or not all(map(_can_be_kept, kept)):
        trace.guards[guards:] = [guard for guard in trace.guards[guards:] if guard.node not in looked]
        trace.note("a derivative looks at the vectors that it is taken at" if looked else "a loop that has not run yet")
        return None
    lists = [node for node in kept if type(node.aval) is not Aval]
    numbers = {node: i for i, node in enumerate([*kept, *starts])}
    steps = [Step(UNSTACKED, (numbers[node],), (("kind", node.aval.element.kind),)) for node in lists]
    numbers |= {node: len(numbers) + i for i, node in enumerate([*lists, *inside])}
    steps += [Step(n.op, tuple([numbers[_itself(a, starts)] for a in n.args]), n.params) for n in inside]
    shapes = [np.shape(x.like if type(x) is Tracer else x) for x in values]
    space = Space(*words, tree, tuple(zip(shapes, avals, strict=True)))
    refs = tuple([numbers[_itself(end, starts)] for end in ends])
    values = [STACKED(trace.lookup(node)) if node in lists else trace.lookup(node) for node in kept]
    return values, LinearMap(space, tuple(steps), trace.masked, refs, results_tree)


def _can_be_kept(node: Node) -> bool:
    """Whether it is a number or an array, or a list of such as a loop saves it."""
    return type(node.aval.element if type(node.aval) is ListAval else node.aval) is Aval


def _depending(ends: Sequence[Node], starts: Sequence[Node]) -> set[Node]:
    """The nodes on the way from ``starts`` to ``ends``."""
    found = set(starts)
    for node in ancestors(ends, min([start.index for start in starts], default=0)):
        if not found.isdisjoint(node.args):
            found.add(node)
    return found.difference(starts)


def _frontier(ends: Sequence[Node], moving: set[Node], starts: Sequence[Node], masked: bool) -> tuple[list[Node], list[Node]]:
    """What is kept, and the nodes that are computed of it and of ``starts`` for ``ends``, both in order.

    Views, constants and what is filled with one number are made anew: that costs little, and takes no memory. Where there are
    masks, so is all that the derivative computes: it may be infinite where they hide it.
    """
    kept: set[Node] = set()
    inside: set[Node] = set()
    waiting = [*ends, *moving]
    while waiting:
        node = _itself(waiting.pop(), starts)
        if node in starts or node in kept or node in inside:
            continue
        if node in moving or node.op is CONST or _is_view(node) or (masked and node.phase and node.op not in _GIVEN):
            inside.add(node)
            waiting += node.args
        else:
            kept.add(node)
    return sorted(kept, key=by_index), sorted(inside, key=by_index)


def _is_view(node: Node) -> bool:
    """Whether it is computed of no larger values without arithmetic."""
    plain = node.op.alias if node.args else node.op not in _GIVEN
    return plain and size_of(node) >= sum(map(size_of, node.args))


def _itself(node: Node, starts: Sequence[Node]) -> Node:
    """What a node is another name of."""
    while node.op is IDENTITY and node not in starts:
        (node,) = node.args
    return node
