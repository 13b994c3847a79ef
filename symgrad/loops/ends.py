"""Ends that move: ``for j in range(i):`` in a loop over ``i`` runs now more often, now less.

Where code is to be a loop in a loop (see ``Trace.turns``), the inner one is watched as if it was ``while j < i:``, open to run
however often; what it becomes runs over the range, which its code makes in each iteration of the outer one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CONST, Node, ancestors
from symgrad.loops.patterns import COUNTER, TEST, Key
from symgrad.ops.engine import RANGE
from symgrad.tracing.trace import Trace
from symgrad.transform.loop import Body


class Ends(NamedTuple):
    """A range whose ends hang on the index of a loop around, for a ``for`` statement with this ``target``."""

    start: Any
    stop: Any
    step: int
    target: str


class Ranged(NamedTuple):
    """A loop over a range: its body, what it carries, with what that begins, the range, and the nodes outside that it reads."""

    body: Body
    keys: list[Key]
    firsts: list[Node]
    over: Node
    invariants: list[Node]


def ranged(
    trace: Trace, ends: Ends, body: Body, keys: Sequence[Key], firsts: Sequence[Node], invariants: Sequence[Node]
) -> Ranged | None:
    """The loop that counts up to a number, and does so alone by that, as one over a range; None for others."""
    count, test = keys.index(COUNTER), keys.index(TEST)
    counter, more, less = body.carry[count], body.after[count], body.after[test]
    outside = dict(zip(body.invariants, invariants, strict=True))
    if more.op.key is not np.add or more.args[0] is not counter or less.op.key not in (np.less, np.greater):
        return None
    stop = less.args[1]
    if less.args[0] is not more or not (stop in outside or stop.op is CONST):
        return None
    last = outside[stop] if stop in outside else trace.constant(dict(stop.params)["value"])[0]
    parts = [trace.lookup(node) for node in (firsts[count], last, trace.constant(ends.step)[0])]
    over = trace.run(RANGE, parts[: 2 if ends.step == 1 else 3], {})
    over.name, counter.name = None, ends.target
    left = [i for i in range(len(keys)) if i not in (count, test)]
    after = [body.after[i] for i in left]
    needed = {*ancestors([*after, *body.saved])}
    fixed = [x for x in body.invariants if x in needed]
    carry = [body.carry[i] for i in left]
    new = dataclasses.replace(body, carry=carry, elements=[counter], invariants=fixed, after=after)
    return Ranged(new, [keys[i] for i in left], [firsts[i] for i in left], over, [outside[x] for x in fixed])
