"""Derivatives without masks, where none is needed.

Masks keep out what is infinite or NaN where something was not chosen (see ``symgrad.transform.lanes``). Where nothing
is, they change no result and take most of the time. So the code that runs has none, and raises an error where a number is not
finite; then code that has them runs. It is not there before.

There are two kinds of that. Where a cotangent that may be infinite comes to what chose something else (``np.maximum(v, 0)``
below a root), to leave it there is mostly all that it takes; what comes out is finite then, or else the code with all masks
runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from symgrad.ir import Aval, Node, is_inexact, size_of
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.engine import ITEM, REQUIRE_FINITE
from symgrad.ops.index import INDEX_ADD, SETITEM
from symgrad.optimize.loops import BodyProgram, copied
from symgrad.optimize.rewriting import Simplifier
from symgrad.optimize.scalarizer import HOPE, MOST, turns_of
from symgrad.optimize.whole import LARGEST, is_long
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop, loop_of

MORE = 1.25  # times as long, from which on to do without masks pays
CHOICE = 4  # operations on arrays that take as long as one choice by a mask
CALL = 1 << 14  # bytes that are written in the time of a call
OFTEN = 8  # iterations
MANY = 256  # operations
_NOTHING = Aval((), np.dtype(bool), "python")
NONE, CHOICES, ALL = range(3)  # how many masks derivatives have
# whichever is zero where an argument was not chosen
_EXTREMES = {REGISTRY[key] for key in (np.greater, np.less, np.equal)}
_WITH_TIES = {
    REGISTRY[np.greater]: REGISTRY[np.greater_equal],
    REGISTRY[np.less]: REGISTRY[np.less_equal],
}
# of which a number may come that is one though an argument is not
_HEALING = {REGISTRY[key] for key in (np.fmax, np.fmin, np.nan_to_num, np.power, np.hypot, np.nansum, np.nanmean, np.nanprod)}


def with_fewer(program: Program, masks: int) -> Program | None:
    """A program whose derivatives have no masks, or choices alone, and which raises ``FloatingPointError`` where they had to
    have some.

    None for a program that has few or none, in whose traces they mattered, or that may be taken apart: there they cost little.
    """
    nodes = program.nodes()
    unmasked = {node: program.unmasked[node][0] for node in nodes if node in program.unmasked}
    met = not all([program.unmasked[node][1] for node in unmasked])
    few = masks_are_few(program)
    if not unmasked or (met and masks == NONE) or (few and _is_small(nodes)):
        return None
    graph = program.graph
    mapping: dict[Node, Node] = {}
    for node in nodes:
        other, args = unmasked.get(node), tuple([mapping[arg] for arg in node.args])
        mapping[node] = other or (node if args == node.args else _again(program, node, args))
    plainer = program.map(graph, mapping)
    result = _choosing(plainer) if masks == CHOICES else plainer
    if result is None:
        return None
    if few and MORE * _time(result.graph.needed(result.roots())) > _time(nodes):
        return None
    result.strict = True
    for leaf, plain, before in zip(result.leaves(), plainer.leaves(), program.leaves(), strict=True):
        changes = [out is not old for out, old in zip(plain.outputs, before.outputs, strict=True)]
        changed = itertools.compress(leaf.outputs, changes)
        leaf.required += [result.graph.add(REQUIRE_FINITE, (out,), (), _NOTHING) for out in changed]
    return result


def _again(program: Program, node: Node, args: tuple[Node, ...]) -> Node:
    """The same operation on other arguments."""
    new = program.graph.add(node.op, args, node.params, node.aval)
    new.name, new.line, new.phase = node.name, node.line, node.phase
    return new


def _choosing(program: Program) -> Program | None:
    """The same, where what may be infinite is left where the choice was another one; None where that changes nothing, or a
    number may come of what is none."""
    wild = _Wild()
    wild.spread(program.nodes(), set())
    if wild.heals or not any([_chosen(node) is not None for node in wild.found]):
        return None
    return _Chooser(program, wild.found).run()


class _Wild:
    """Which results may be infinite, or not a number, of derivatives by what they divide by; and whether one ``heals``."""

    def __init__(self) -> None:
        self.found: set[Node] = set()
        self.heals = False

    def spread(self, nodes: Sequence[Node], found: set[Node]) -> None:
        """To all of these, in order, from those that are ``found``."""
        for node in nodes:
            given = [arg in found for arg in node.args]
            if isinstance(node.op, Loop):
                if self._inside(node.op.body, given):
                    found.add(node)
            elif node.args and node.phase is not None and (any(given) or node.op.partial_of(node.args) == "poles"):
                found.add(node)
                decides = node.op is not ITEM and not is_inexact(node.aval)
                self.heals = self.heals or (any(given) and (decides or node.op in _HEALING))
        self.found |= found

    def _inside(self, body: Body, given: Sequence[bool]) -> bool:
        inputs = [*body.carry, *body.elements, *body.invariants]
        for _ in range(2):  # what goes round may be so from the second iteration on
            found = {item for item, is_wild in zip(inputs, given, strict=True) if is_wild}
            self.spread(body.nodes(), found)
            if found.isdisjoint(body.after):
                break
            given = [True] * len(body.carry) + list(given[len(body.carry) :])
        return not found.isdisjoint([*body.after, *body.saved])


def _chosen(node: Node) -> tuple[Op, tuple[Node, ...]] | None:
    """Where an argument was chosen, if this is its cotangent as the rules of ``np.maximum`` and its kin, or ``np.clip``, make
    it: an operation, and its arguments."""
    if node.op is REGISTRY[np.where] and node.args[0].op is REGISTRY[np.equal]:
        ties, halved, product = node.args
        if product.op is REGISTRY[np.multiply] and product.args[1].op in _EXTREMES and halved.op is REGISTRY[np.multiply]:
            test = product.args[1]
            if product.args[0] is halved.args[1] and (test.op not in _WITH_TIES or {*test.args} == {*ties.args}):
                return _WITH_TIES.get(test.op, test.op), test.args
    elif node.op is REGISTRY[np.multiply] and node.args[1].op is REGISTRY[np.equal]:
        test = node.args[1]
        if test.args[0].op is REGISTRY[np.clip] and test.args[0].args[0] is test.args[1]:
            return test.op, test.args
    return None


class _Chooser(Simplifier):
    def __init__(self, program: Program, wild: set[Node]) -> None:
        super().__init__(program, {})
        self.wild = wild

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Loop):
            body, course = node.op.body, node.op.course
            copier = _Chooser(BodyProgram(body), self.wild)
            return self.visit_as(loop_of(copied(body, copier, {}), course), node, args)
        new = super().visit(node, args)
        chosen = _chosen(node) if node in self.wild else None
        if chosen is None:
            return new
        op, compared = chosen
        mask = self.make(op, tuple([self.mapping[arg] for arg in compared]))
        choice = self.make(REGISTRY[np.where], (mask, new, self.graph.const(0)), (), new.aval)
        for made in (mask, choice):
            made.line, made.phase = node.line, node.phase
        return choice


def _time(nodes: Sequence[Node], numbers: bool = False) -> float:
    """About how long operations on arrays take, in calls; in loops, those on ``numbers``, too."""
    total = 0.0
    for node in nodes:
        if isinstance(node.op, Loop):
            total += turns_of(node.op.course) * _time(node.op.body.nodes(), True)
        elif node.args and not node.op.alias and isinstance(node.aval, Aval) and (numbers or node.aval.shape):
            made = node.args[1:] if node.op in (SETITEM, INDEX_ADD) else [node]  # as a rule, they write into the array itself
            total += (CHOICE if node.op is REGISTRY[np.where] else 1) * (1 + max(map(size_of, made)) / CALL)
    return total


def masks_are_few(program: Program, without: Program | None = None) -> bool:
    """Whether masks of Python's numbers take no longer than to ask whether all is finite: those of loops that run often do,
    and so do hundreds more operations than there are in the program ``without`` masks."""
    nodes = program.nodes()
    return _turns(nodes) < OFTEN and (without is None or len(nodes) - len(without.nodes()) < MANY)


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
