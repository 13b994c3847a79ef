"""Derivatives without masks, where none is needed.

Masks keep out what is infinite or NaN where something was not chosen (see ``symgrad.transform.lanes``). Where nothing
is, they change no result and take most of the time. So the code that runs has none, and raises an error where a number is not
finite; then the code that has them runs. It is not there before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from symgrad.ir import Aval, Node, size_of
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import REQUIRE_FINITE
from symgrad.ops.index import INDEX_ADD, SETITEM
from symgrad.optimize.scalarizer import HOPE, MOST, turns_of
from symgrad.optimize.whole import LARGEST, is_long
from symgrad.program import Program
from symgrad.transform.loop import Loop

MORE = 1.25  # times as long, from which on to do without masks pays
CHOICE = 4  # operations on arrays that take as long as one choice by a mask
CALL = 1 << 14  # bytes that are written in the time of a call
OFTEN = 8  # iterations
_NOTHING = Aval((), np.dtype(bool), "python")


def without_masks(program: Program) -> Program | None:
    """A program whose derivatives have no masks, and which raises ``FloatingPointError`` where they had to have some.

    None for a program that has few or none, in whose traces they mattered, or that may be taken apart: there they cost little.
    """
    nodes = program.nodes()
    plain = {node: program.unmasked[node] for node in nodes if node in program.unmasked}
    few = masks_are_few(program)
    if not plain or None in plain.values() or (few and _is_small(nodes)):
        return None
    graph = program.graph
    mapping: dict[Node, Node] = {}
    for node in nodes:
        other, args = plain.get(node), tuple([mapping[arg] for arg in node.args])
        mapping[node] = other or (node if args == node.args else _again(program, node, args))
    result = program.map(graph, mapping)
    if few and MORE * _time(graph.needed(result.roots())) > _time(nodes):
        return None
    result.strict = True
    for leaf, before in zip(result.leaves(), program.leaves(), strict=True):
        changed = [out for out, old in zip(leaf.outputs, before.outputs, strict=True) if out is not old]
        leaf.required += [graph.add(REQUIRE_FINITE, (out,), (), _NOTHING) for out in changed]
    return result


def _again(program: Program, node: Node, args: tuple[Node, ...]) -> Node:
    """The same operation on other arguments."""
    new = program.graph.add(node.op, args, node.params, node.aval)
    new.name, new.line, new.phase = node.name, node.line, node.phase
    return new


def _time(nodes: Sequence[Node], numbers: bool = False) -> float:
    """About how long operations on arrays take, in calls; in loops, those on ``numbers``, too."""
    total = 0.0
    for node in nodes:
        if isinstance(node.op, Loop):
            total += turns_of(node.op.course) * _time(node.op.body.nodes(), True)
        elif node.args and not node.op.alias and isinstance(node.aval, Aval) and (numbers or node.aval.shape):
            made = node.args[1] if node.op in (SETITEM, INDEX_ADD) else node  # as a rule, they write into the array itself
            total += (CHOICE if node.op is REGISTRY[np.where] else 1) * (1 + size_of(made) / CALL)
    return total


def masks_are_few(program: Program) -> bool:
    """Whether masks of Python's numbers take no longer than to ask whether all is finite: those of loops that run often do."""
    return _turns(program.nodes()) < OFTEN


def long_masks(program: Program) -> bool:
    """Whether there are masks of long arrays."""
    return any([is_long(node) for node in program.nodes() if node.op is REGISTRY[np.where] and node.phase is not None])


def _turns(nodes: Sequence[Node]) -> int:
    """About how many iterations run of loops that have masks."""
    loops = [node.op for node in nodes if isinstance(node.op, Loop) and node.op.hides]
    return sum([turns_of(op.course) * max(1, _turns(op.body.nodes())) for op in loops])


def _is_small(nodes: list[Node]) -> bool:
    """Whether a program may be taken apart into Python's floats."""
    sizes = [math.prod(node.aval.shape) for node in nodes if isinstance(node.aval, Aval)]
    return max(sizes, default=0) <= LARGEST and sum(sizes) <= HOPE * MOST
