"""Checkpoints: what a function computes on the way is not kept for the backward pass, but computed there once more."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.ir import CAPTURED, CONST, INPUT, Graph, Node, ancestors, is_inexact
from symgrad.ops.engine import AGAIN
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.batch import Batch, rule
from symgrad.transform.batch_loops import batch_body
from symgrad.transform.forward import forward
from symgrad.transform.lanes import Around, may_leave_out
from symgrad.transform.loop import Body, Embodied, fingerprint, replay
from symgrad.transform.reverse import reverse


class Checkpoint(Embodied):
    """Stands behind the results of a checkpointed function: takes (what it reads, results), gives the results.

    Its ``body`` is the function's graph, with what it reads as invariants, and the results as what is saved. Reverse mode
    runs it again, on what was read, behind ``AGAIN``: so that it is not taken for what was computed forwards.
    """

    def __init__(self, body: Body) -> None:
        count = len(body.invariants)
        super().__init__(self, "op", (), name="checkpoint", fun=lambda *leaves: tuple(leaves[count:]), lanes="loop")
        self.body, self.behind = body, count
        self.joint = self._joint
        self.jvp = self._jvp

    def differentiable(self, position: int) -> bool:
        return position < len(self.body.invariants) and is_inexact(self.body.invariants[position].aval)

    def adding(self, args: Sequence[Node]) -> list[int]:
        """The arguments to whose cotangents it adds in their place: none."""
        return []

    def _joint(self, g: Sequence[Any], y: Any, args: Sequence[Any], params: Any) -> list[Any]:
        return self.joint_in_lanes(g, args, [None] * len(g), [0] * len(args), {})[0]

    def joint_in_lanes(
        self,
        g: Sequence[Any],
        args: Sequence[Any],
        live: Sequence[Any],
        levels: Sequence[int],
        before: Mapping[int, tuple[Any, Any]],
    ) -> tuple[list[Any], list[Any]]:
        """The cotangents of all arguments, and masks of where they may be other than zero, as those of a loop are made."""
        given = args[: len(self.body.invariants)]
        after = next(part for part in g if part is not None)
        trace: Trace = given[0].tape
        outer = trace.line, trace.phase
        trace.line, trace.phase = None, "once more"
        try:
            inputs = [trace.record(AGAIN, (x, after), {}) for x in given]
            known = dict(zip(self.body.invariants, inputs, strict=True))
            replay(trace, self.body, known)
        finally:
            trace.line, trace.phase = outer
        seeds = [(known[out].node, part) for out, part in zip(self.body.saved, g, strict=True) if part is not None]
        around, ends = None, [x.node for x in inputs]
        if max([*levels, self.inside]) > 0 and (may_leave_out(self) or any([mask is not None for mask in live])):
            masks = [mask for part, mask in zip(g, live, strict=True) if part is not None]
            around = Around(dict(zip(ends, levels, strict=False)), masks, self.forks)
        found, rest = reverse(trace, seeds, ends, around=around), [None] * (len(args) - len(given))
        tests = [None if around is None else around.found.get(end) for end in ends]
        return found + rest, tests + rest

    def _jvp(self, ts: Sequence[Any], y: Any, *args: Any) -> Any:
        """By the body, not by what the results were made of: that may be elsewhere, where a loop has taken it."""
        given = args[: len(self.body.invariants)]
        trace: Trace = args[-1].tape
        known = dict(zip(self.body.invariants, given, strict=True))
        replay(trace, self.body, known)
        moving = [(known[x].node, t) for x, t in zip(self.body.invariants, ts, strict=False) if t is not None]
        return tuple(forward(trace, [known[out].node for out in self.body.saved], *zip(*moving, strict=True)))


_checkpoints: weakref.WeakValueDictionary[Any, Checkpoint] = weakref.WeakValueDictionary()


def checkpoint_of(body: Body) -> Checkpoint:
    """The checkpoint of a body: one and the same operation for bodies that are alike."""
    key = fingerprint(body, notes=False)
    found = _checkpoints.get(key)
    return found if found is not None else _checkpoints.setdefault(key, Checkpoint(body))


def checkpointed(trace: Trace, start: int, results: Sequence[Tracer]) -> list[Tracer]:
    """``results``, whatever was recorded for them since node number ``start`` behind a checkpoint."""
    ends = [x.node for x in results]
    inside = [node for node in ancestors(ends, start) if node.op is not INPUT]
    own = {node for node in inside if node.op not in (CONST, CAPTURED)}
    graph = Graph()
    made: dict[Node, Node] = {}
    outside: list[Node] = []
    for node in [*inside, *ends]:
        for arg in (*node.args, node):
            if arg in made or (arg is node and arg in own):
                continue
            if arg.op is CONST:
                made[arg] = graph.const(dict(arg.params)["value"])
            elif arg not in own:
                made[arg] = graph.input(("outer", len(outside)), arg.aval)
                made[arg].name = arg.name
                outside.append(arg)
        if node in own and node not in made:
            made[node] = graph.add(node.op, tuple([made[arg] for arg in node.args]), node.params, node.aval)
            made[node].name, made[node].line = node.name, node.line
    index = graph.input("index", trace.aval(0))
    body = Body(graph, [], index, [], [made[node] for node in outside], [], [made[node] for node in ends])
    return list(trace.record(checkpoint_of(body), [*map(trace.lookup, outside), *results], {}))


@rule(Checkpoint)
def batched(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """The checkpoint of the batched body."""
    op: Checkpoint = node.op
    count = len(op.body.invariants)
    inputs, inner = batch_body(b, op.body, args[:count], flags[:count])
    ends = [inner.full(inner.value(out), out in inner.known) for out in op.body.saved]
    index = inner.trace.input("index", 0)
    body = Body(inner.trace.graph, [], index.node, [], [t.node for t in inputs], [], [t.node for t in ends])
    results = [b.full(x, flag) for x, flag in zip(args[count:], flags[count:], strict=True)]
    return b.trace.record(checkpoint_of(body), [*args[:count], *results], {})


@rule(AGAIN)
def again(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    return b.trace.record(AGAIN, [b.full(args[0], flags[0]), args[1]], {})
