"""Loops of a batch: one loop whose body is batched.

Where the elements run it a different number of times, it runs as often as the longest does. Those that are done keep what
they carry, and a body that has nothing to do with them is not run on it: they get what one that still runs has. Which ones
took part is saved beside what the iterations save, for a loop that goes through that later.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, Aval, Node, ancestors
from symgrad.ir import Sequence as Sequence_
from symgrad.ops.engine import ADD_LISTS, INDEX, ITEM, STOP
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.batch import GROWING, ROOM, SUMS, Alike, Batch, CannotBatch, is_count, line_up, rule
from symgrad.transform.loop import Body, Course, Loop, loop_of, plain

COUNT = 28  # bits of how often a loop runs, at most


@rule(Loop)
def loop(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """The results, those that are the same for all elements without the batch axis."""
    op: Loop = node.op
    body, course = op.body, op.course
    n, m, _ = op.counts
    masks = [b.masks[arg] for arg in node.args[n : n + m] if arg in b.masks]
    if any(_node(b.trace, mask) is not _node(b.trace, masks[0]) for mask in masks):
        raise CannotBatch("a loop goes through what two loops have saved")
    depends = _dependent(body, course, flags, bool(masks))
    differs = bool(masks) or (course.test is not None and body.carry[course.test] in depends)
    sub = Trace()
    sub.exemplary = True
    sub.masked = b.trace.masked or op.hides
    inner = Batch(sub, b.size, {})
    inner.one_by_one = b.one_by_one
    inner.bits = _bits(b, node)

    def given(place: Any, item: Node, value: Any, flag: bool) -> Tracer:
        """An input of the body: with the batch axis if it depends on what has one."""
        if item in depends and not flag:
            value = np.broadcast_to(plain(value), (b.size, *np.shape(plain(value)))).copy()
        tracer = sub.input(place, plain(value))
        tracer.node.name, tracer.node.differentiated = item.name, True
        return tracer

    carry = [given(("carry", i), item, args[i], flags[i]) for i, item in enumerate(body.carry)]
    index = sub.input("index", course.start)
    elements = [
        given(("element", j), item, _first(plain(args[n + j]), item, b.size if flags[n + j] else None), flags[n + j])
        for j, item in enumerate(body.elements)
    ]
    fixed = [given(("invariant", i), item, args[n + m + i], flags[n + m + i]) for i, item in enumerate(body.invariants)]
    inputs = [*zip(body.inputs, [*carry, index, *elements, *fixed], strict=True)]
    taking_part = None
    again: list[Tracer] = []
    active: list[Tracer] = []
    if masks:
        active = [sub.input(("element", m), np.ones(b.size, bool))]
        active[0].node.name = "active"
        taking_part = active[0]
    elif differs:
        taking_part = carry[course.test]  # type: ignore[index]
        again = [sub.input(("carry", n), np.True_)]
        if course.once:  # which of them take part does not go round
            carry.remove(taking_part)
            fixed.append(taking_part)
        again[0].node.name, taking_part.node.name = "again", "active"
    for item, tracer in inputs:
        if item in depends:
            inner.known[item] = tracer if taking_part is None else filled(taking_part, tracer)
        else:
            inner.alike[item] = tracer
    with np.errstate(all="ignore"):
        _run(inner, body)
    after = []
    going = [i for i in range(n) if not (again and course.once and i == op.course.test)]
    for i, old in zip(going, carry, strict=True):
        item, new = body.carry[i], body.after[i]
        value = inner.value(new)
        if item in depends:
            value = inner.full(value, new in inner.known)
            if old is taking_part:
                value = np.logical_and(old, value)
            elif taking_part is not None:
                value = _kept(taking_part, value, old)
        after.append(value)
    if again:
        after.append(np.False_ if course.once else np.any(after[course.test]))  # type: ignore[index]
    saved = [inner.value(item) for item in body.saved]
    if any(item in inner.masks for item in body.saved):
        raise CannotBatch("a loop in a loop runs for a different number of times")
    if again and body.saved:
        saved.append(taking_part)
    made = Body(
        sub.graph,
        [t.node for t in (*carry, *again)],
        index.node,
        [t.node for t in (*elements, *active)],
        [t.node for t in fixed],
        [_node(sub, t) for t in after],
        [_node(sub, t) for t in saved],
    )
    if again:
        course = replace(course, test=len(carry))
    starts = [b.full(args[i], flags[i]) if item in depends else args[i] for i, item in enumerate(body.carry)]
    first = [np.any(starts[op.course.test])] if again else []  # type: ignore[index]
    more = [masks[0]] if masks else []
    last = [starts[i] for i in range(n) if i not in going]
    given_now = [*[starts[i] for i in going], *first, *args[n : n + m], *more, *args[n + m :], *last]
    found = b.trace.record(loop_of(made, course), given_now, {})
    ended: list[Any] = [np.False_] * n
    for i, x in zip(going, found, strict=False):
        ended[i] = x
    lists = found[len(going) + len(again) :]
    if again and body.saved:
        *lists, took_part = lists
        b.took_part[node] = took_part
    results: list[Any] = [x if item in depends else Alike(x) for x, item in zip(ended, body.carry, strict=True)]
    return results + [x if item in inner.known else Alike(x) for x, item in zip(lists, body.saved, strict=True)]


def _run(inner: Batch, body: Body) -> None:
    """Batch the nodes of a body; what hangs on no input is the same for all."""
    sub = inner.trace
    for item in body.nodes():
        if item.op is CONST:
            inner.alike[item] = sub.lookup(sub.constant(dict(item.params)["value"])[0])
        elif item.op is CAPTURED:
            inner.alike[item] = sub.lookup(sub.constant(body.graph.arrays[item])[0])
        elif not item.args:
            inner.alike[item] = sub.record(item.op, (), dict(item.params))
    inner.run(body.nodes())


def _bits(around: Batch, loop: Node) -> dict[Node, float]:
    """How many bits Python's ints in a loop have at most, where that is known: those that count, and what is made of these."""
    body, once = loop.op.body, loop.op.course.once
    outer = [_size(arg) if arg.op in (CONST, INDEX) else around.bits.get(arg) for arg in loop.args]
    found = dict(zip([*body.carry, *body.elements, *body.invariants], outer, strict=True))
    found[body.index] = COUNT
    for item, end in zip(body.carry, body.after, strict=True):
        start, steps = found[item], _counted(item, end)
        if not once and end is not item:
            found[item] = None if start is None or steps is None else max(start, steps) + 1
    goes_round = set(ancestors([end for end in body.after if end not in body.carry and _is_int(end)]))
    for node in body.nodes():
        if node.op is CONST:
            found[node] = _size(node)
        elif node.op in GROWING and _is_int(node):
            a, b = [found.get(arg) for arg in node.args]
            if a is not None and b is not None:
                found[node] = GROWING[node.op](a, b)
            elif node.op in SUMS and node not in goes_round:  # of two that there is room for
                found[node] = ROOM - 1
    return {node: bits for node, bits in found.items() if bits is not None}


def _is_int(node: Node) -> bool:
    return type(node.aval) is Aval and node.aval.kind == "python" and node.aval.dtype.kind == "i"


def _size(node: Node) -> float | None:
    """How many bits a number in the code has."""
    value = dict(node.params)["value"]
    return math.log2(max(abs(value), 1)) if isinstance(value, int) else None


def _counted(item: Node, end: Node) -> float | None:
    """How many bits all steps of a number have that an iteration counts up or down; None of any other."""
    bits = float(COUNT)
    while is_count(end):
        first, second = end.args
        end, step = (second, first) if first.op is CONST else (first, second)
        bits += _size(step) or 0.0
    return bits if end is item else None


def batch_body(b: Batch, body: Body, args: list[Any], flags: list[bool]) -> tuple[list[Tracer], Batch]:
    """The inputs of a body that runs once, in a trace of its own, and its nodes batched."""
    inner = Batch(Trace(), b.size, {})
    inner.trace.exemplary = True
    inner.one_by_one = b.one_by_one
    inputs = []
    for i, (item, value, flag) in enumerate(zip(body.invariants, args, flags, strict=True)):
        inputs.append(inner.trace.input(("outer", i), plain(value)))
        inputs[-1].node.name, inputs[-1].node.differentiated = item.name, True
        (inner.known if flag else inner.alike)[item] = inputs[-1]
    _run(inner, body)
    return inputs, inner


def _dependent(body: Body, course: Course, flags: list[bool], masked: bool) -> set[Node]:
    """The nodes of a body that have the batch axis: what is carried has it once anything in its course has."""
    n, m = len(body.carry), len(body.elements)
    places = [*body.carry, *body.elements, *body.invariants]
    depends = {item for item, flag in zip(places, flags, strict=True) if flag}
    assert len(places) == n + m + len(body.invariants)
    while True:
        for item in body.nodes():
            if any(arg in depends for arg in item.args):
                depends.add(item)
        more = {old for old, new in zip(body.carry, body.after, strict=True) if new in depends} - depends
        if masked or (course.test is not None and body.carry[course.test] in depends):
            more |= {old for old, new in zip(body.carry, body.after, strict=True) if new is not old} - depends
        if not more:
            return depends
        depends |= more


def _first(sequence: list[Any], item: Node, size: int | None) -> Any:
    """What the first iteration gets of a list; zeros where there is none."""
    if sequence:
        return sequence[0]
    shape = item.aval.shape if size is None else (size, *item.aval.shape)
    return np.zeros(shape, item.aval.dtype)


def filled(mask: Any, x: Any) -> Any:
    """``x`` with one of the elements in ``mask`` in place of those that are not; no derivative flows into that."""
    return np.where(line_up(mask, 0, np.ndim(x) - 1), x, STOP(x[np.argmax(mask)]))


def _kept(taking_part: Tracer, new: Any, old: Any) -> Any:
    """What is carried on: the old value where an element takes no part."""
    return np.where(line_up(taking_part, 0, np.ndim(old) - 1), new, old)


def _node(sub: Trace, value: Any) -> Node:
    return value.node if type(value) is Tracer else sub.constant(value)[0]


@rule(ITEM)
def item(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    whole = node.args[0]
    if isinstance(node.aval, Sequence_) and whole in b.took_part:
        b.masks[node] = b.took_part[whole]
    return args[0][dict(node.params)["item"]]


@rule(ADD_LISTS)
def add_lists(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    for arg in node.args:
        if arg in b.masks:
            b.masks[node] = b.masks[arg]
    return b.trace.record(node.op, args, {})
