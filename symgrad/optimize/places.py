"""Rewrites of what is read and written at places of arrays."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Node
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY, Op
from symgrad.optimize import rewriting
from symgrad.optimize.rewriting import (
    Rewrite,
    Simplifier,
    Written,
    const,
    elements_of,
    filling,
    is_number,
    is_op,
    is_zero,
    throughout,
)

PLACES: dict[Any, list[Rewrite]] = {}

MANY = 64  # arrays that were joined, among which it is looked for the one that is read
FEW = 16  # writes before a read that it is looked at whether they are elsewhere

rewrite = functools.partial(rewriting.rewrite, rules=PLACES)


@rewrite(index.GETITEM, index.SETITEM, index.INDEX_ADD, index.SCATTER, of=(CONST,), exact=True)
def constant_place(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """An index array that is a number is part of the index."""
    params = dict(node.params)
    count = len(node.op.rules)
    numbers = [const(arg) for arg in args[count:]]
    if not any(_is_int(number) for number in numbers):
        return None
    spec, kept = [], []
    for part in params["spec"]:
        if type(part) is index.Hole:
            number = numbers[part.number]
            if _is_int(number):
                part = int(number)
            else:
                kept.append(args[count + part.number])
                part = index.Hole(len(kept) - 1)
        spec.append(part)
    shape = node.aval.shape if node.op is index.SCATTER else args[0].aval.shape
    nearest = min(shape, default=0)
    try:  # where no number tells at once that it is there
        if not all([-nearest <= part < nearest for part in spec if type(part) is int]):
            index.region(tuple([0 if type(part) is index.Hole else part for part in spec]), shape)
    except IndexError:  # beyond the end, in a loop that never runs
        return None
    changed = tuple(sorted({**params, "spec": tuple(spec)}.items()))
    return s.make(node.op, (*args[:count], *kept), changed, node.aval)


def _is_int(number: Any) -> bool:
    return type(number) is int or isinstance(number, np.integer)


@rewrite(index.GETITEM, of=(CAPTURED,), exact=True)
def number_in_a_table(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The item of a constant, as loops over lists ask for it that are not rolled up."""
    spec = dict(node.params)["spec"]
    if len(args) > 1 or args[0].op is not CAPTURED or node.aval.kind != "scalar" or any(type(part) is not int for part in spec):
        return None
    return s.graph.const(s.graph.arrays[args[0]][spec])


@rewrite(index.GETITEM, of=(np.broadcast_to,), exact=True)
def number_of_many(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The item of an array that is one constant throughout, as the cotangent of a sum is."""
    spec = dict(node.params)["spec"]
    number = const(args[0].args[0]) if is_op(args[0], np.broadcast_to) else None
    if number is None or len(args) > 1 or node.aval.kind != "scalar" or any(type(part) is not int for part in spec):
        return None
    return s.graph.const(node.aval.dtype.type(number))


@rewrite(index.GETITEM, exact=True)
def only_newaxes_of(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[:, None]`` adds an axis, in the one way that other rewrites know."""
    spec = dict(node.params)["spec"]
    if len(args) > 1 or None not in spec or args[0].aval.kind != "array":
        return None
    rest = [part for part in spec if part is not None]
    if any(part is not Ellipsis and part != index.EVERY for part in rest):
        return None
    hidden = len(args[0].aval.shape) - sum(part is not Ellipsis for part in rest)
    axes: list[int] = []
    place = 0
    for part in spec:
        if part is None:
            axes.append(place)
        place += hidden if part is Ellipsis else 1
    return s.make(REGISTRY[np.expand_dims], args, (("axis", tuple(axes) if len(axes) > 1 else axes[0]),), node.aval)


@rewrite(index.GETITEM, exact=True)
def read_throughout(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[:]`` and ``x[...]`` are ``x``."""
    (array, *places), spec = args, dict(node.params)["spec"]
    if places or array.aval != node.aval or not spec:
        return None
    sizes = iter(array.aval.shape)
    for part in spec[: spec.index(Ellipsis)] if Ellipsis in spec else spec:
        if type(part) is not index.Slice or range(*slice(*part).indices(size := next(sizes))) != range(size):
            return None
    return array if Ellipsis not in spec[:-1] else None


@rewrite(index.GETITEM, index.SETITEM, index.INDEX_ADD, index.SCATTER, of=(CAPTURED,), exact=True)
def places_in_a_row(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[np.arange(n)]`` is ``x[:n]``."""
    params, count = dict(node.params), len(node.op.rules)
    spec = params["spec"]
    holes = [i for i, part in enumerate(spec) if type(part) is index.Hole]
    places = s.graph.arrays.get(args[-1])
    if len(holes) != 1 or len(args) != count + 1 or places is None or places.ndim != 1 or len(places) < 2:
        return None
    first, step = int(places[0]), int(places[1]) - int(places[0])
    row = range(first, first + max(step, 0) * len(places), max(step, 1))
    if (
        first < 0
        or places.dtype.kind not in "iu"
        or not np.array_equal(places, row)
        or not all([part == index.EVERY for part in spec if type(part) is not index.Hole])
    ):
        return None
    (axis,) = holes
    shape = node.aval.shape if node.op is index.SCATTER else args[0].aval.shape
    if row[-1] >= shape[axis]:
        return None  # beyond the end
    part = index.Slice(first or None, None if row[-1] + step >= shape[axis] else row[-1] + 1, step if step > 1 else None)
    params["spec"] = (*spec[:axis], part, *spec[axis + 1 :])
    return s.make(node.op, args[:count], tuple(params.items()), node.aval)


@rewrite(np.multiply, of=(index.LAST_WRITE,), exact=True)
def written_once(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What comes back to values that are written to other places each is not written over by other ones."""
    for x, last in (args, args[::-1]):
        if last.op is index.LAST_WRITE and x.aval == node.aval and _are_others(s, last):
            return x
    return None


def _are_others(s: Simplifier, node: Node) -> bool:
    """Whether an index is of numbers that are there in the code, and names no place twice."""
    base, *places = node.args
    spec, shape = dict(node.params)["spec"], base.aval.shape
    known = [s.graph.arrays[place] if place.op is CAPTURED else const(place) for place in places]
    if not all([type(part) in (int, index.Hole) for part in spec]) or not known or any([one is None for one in known]):
        return False
    parts = [known[part.number] if type(part) is index.Hole else part for part in spec]
    if not all([np.result_type(part).kind in "iu" for part in parts]):
        return False
    try:
        flat = np.ravel_multi_index(
            np.broadcast_arrays(*[np.mod(part, n) for part, n in zip(parts, shape, strict=False)]), shape[: len(spec)]
        )
    except ValueError:  # an axis of no places
        return False
    return len(np.unique(flat)) == np.size(flat)


@rewrite(index.GETITEM, of=(np.stack,), exact=True)
def part_of_stacked(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``stack((x, y))[0]`` is ``x``."""
    joined, spec = args[0], _plain_spec(node)
    axis = dict(joined.params).get("axis", 0) % len(joined.aval.shape) if is_op(joined, np.stack) else 0
    if not is_op(joined, np.stack) or spec is None or type(spec[axis]) is not int:
        return None
    return _read(s, node, joined.args[spec[axis]], spec[:axis] + spec[axis + 1 :])


@rewrite(index.GETITEM, of=(np.concatenate,), exact=True)
def part_of_joined(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``concatenate((x, y))[: len(x)]`` is ``x``: what is read of one of them is read there."""
    joined, spec = args[0], _plain_spec(node)
    axis = dict(joined.params).get("axis", 0) if is_op(joined, np.concatenate) else None
    if axis is None or spec is None or len(joined.args) > MANY:
        return None
    axis %= len(joined.aval.shape)
    span = _span(spec[axis], joined.aval.shape[axis])
    if span is None:
        return None
    start, stop = span
    for part in joined.args:
        size = part.aval.shape[axis]
        if start < size:
            return _read(s, node, part, _moved(spec, axis, start, stop, size)) if stop <= size else None
        start, stop = start - size, stop - size
    return None


@rewrite(index.GETITEM, of=(np.roll,), exact=True)
def part_of_rolled(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``roll(x, -1)[:-1]`` is ``x[1:]``."""
    spec, turn = _plain_spec(node), _turn(args[0])
    if spec is None or turn is None:
        return None
    axis, shift = turn
    size = node.args[0].aval.shape[axis]
    span = _span(spec[axis], size)
    if span is None:
        return None
    start = (span[0] - shift) % size
    stop = start + span[1] - span[0]
    return _read(s, node, args[0].args[0], _moved(spec, axis, start, stop, size)) if stop <= size else None


@rewrite(np.roll, of=(index.SCATTER,), exact=True)
def rolled_part(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A slice of zeros that was written to is written elsewhere."""
    (scattered,) = args
    spec, turn = _plain_spec(scattered) if scattered.op is index.SCATTER else None, _turn(node)
    if spec is None or turn is None or len(scattered.args) > 1:
        return None
    axis, shift = turn
    size = node.aval.shape[axis]
    span = _span(spec[axis], size)
    if span is None:
        return None
    start = (span[0] + shift) % size
    stop = start + span[1] - span[0]
    if stop > size:
        return None
    params = tuple(
        [(key, value if key != "spec" else _moved(spec, axis, start, stop, size)) for key, value in scattered.params]
    )
    return s.make(index.SCATTER, scattered.args, params, node.aval)


def _plain_spec(node: Node) -> tuple[Any, ...] | None:
    """An index of slices and numbers alone, with a part for each axis."""
    spec, array = dict(node.params)["spec"], node.args[0].aval if node.op is index.GETITEM else node.aval
    if len(node.args) > 1 or not array.shape or not all([type(part) in (int, index.Slice) for part in spec]):
        return None
    return (*spec, *[index.EVERY] * (len(array.shape) - len(spec)))


def _span(part: Any, size: int) -> tuple[int, int] | None:
    """The places that a part of an index names, from the first to after the last, if they are in a row."""
    if type(part) is int:
        return part % size, part % size + 1
    start, stop, step = slice(*part).indices(size)
    return (start, stop) if step == 1 and start < stop else None


def _moved(spec: tuple[Any, ...], axis: int, start: int, stop: int, size: int) -> tuple[Any, ...]:
    """The index with other places along an axis of this ``size``."""
    part: Any = start
    if type(spec[axis]) is not int:
        part = index.Slice(start or None, None if stop == size else stop, None)
    return (*spec[:axis], part, *spec[axis + 1 :])


def _turn(node: Node) -> tuple[int, int] | None:
    """The axis of a ``roll``, and how far it goes."""
    params, ndim = dict(node.params), len(node.aval.shape)
    shift: Any = params.get("shift")
    axis: Any = params.get("axis")
    if axis is None and ndim == 1:
        axis = 0
    if not is_op(node, np.roll) or len(node.args) > 1 or type(shift) is not int or type(axis) is not int:
        return None
    return (axis % ndim, shift) if node.aval.shape[axis] else None


def _read(s: Simplifier, node: Node, array: Node, spec: tuple[Any, ...]) -> Node | None:
    """``array[spec]`` in the place of a node."""
    if all([part == index.EVERY for part in spec]):
        return array if array.aval == node.aval else None
    same = array.aval.kind == "array" and array.aval.dtype == node.aval.dtype
    return s.make(index.GETITEM, (array,), (("spec", spec),), node.aval) if same else None


@rewrite(index.SCATTER, index.INDEX_ADD, index.SETITEM, exact=True)
def written_throughout(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is written over, or added to, all of an array: through ``x[:]``, ``x[:, None]``, ``x[..., 0]`` or ``x[::-1]``."""
    spec = dict(node.params)["spec"]
    *base, value = args[: len(node.op.rules)]
    plain = all(part is None or part is Ellipsis or type(part) in (int, index.Slice) for part in spec)
    back = tuple([index.Slice(None, None, -1 if type(part) is index.Slice and (part.step or 1) < 0 else None) for part in spec])
    turned = any(part.step for part in back)
    if not plain or (turned and not all(type(part) is index.Slice for part in spec)):
        return None
    if not elements_of(node) and node.op is index.INDEX_ADD:
        return base[0]
    region = index.region(spec, node.aval.shape)
    all_zeros = math.prod(region) == elements_of(node) and node.op is not index.INDEX_ADD and is_number(value, 0.0)
    if all_zeros or not elements_of(node):  # of which any part is as good as all
        return s.make(create.ZEROS, (), (("dtype", node.aval.dtype), ("shape", node.aval.shape)), node.aval)
    if math.prod(region) != elements_of(node) or value.aval.dtype != node.aval.dtype or not node.aval.shape:
        return None
    if value.aval.shape != region or value.aval.kind != "array":
        value = s.call(np.broadcast_to, value, shape=region)
    if turned:
        value = s.make(index.GETITEM, (value,), (("spec", back),), node.aval)
    whole = s.make(REGISTRY[np.reshape], (value,), (("shape", node.aval.shape),), node.aval)
    return s.make(REGISTRY[np.add], (*base, whole), (), node.aval) if node.op is index.INDEX_ADD else whole


@rewrite(index.INDEX_ADD, of=index.WRITING, derived=True)
def put_back(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``y = x``, with zero at one place, to which what was there is added: what ``x[i] += c`` gives to ``x``.

    Meanwhile, more may have been added, at whatever places.
    """
    written, value, *places = args
    spec = dict(node.params)["spec"]
    if value.op is not index.GETITEM or value.params != node.params:
        return None
    meanwhile: list[Node] = []
    while written.op is index.INDEX_ADD and s.used.get(written, 0) <= 1 and len(meanwhile) < FEW:
        meanwhile.append(written)
        written = written.args[0]
    if written.op is not index.SETITEM or written.params != node.params or (meanwhile and s.used.get(written, 0) > 1):
        return None
    x, zero, *before = written.args
    one = not any([place.aval.shape for place in places]) and value.args[0] is x
    alike = [*value.args[1:]] == before == places and written.aval == x.aval == node.aval
    if not (one and alike and is_number(zero, 0.0)) or index.may_repeat(spec, [False for _ in places]):
        return None
    for write in reversed(meanwhile):
        x = s.make(index.INDEX_ADD, (x, *write.args[1:]), write.params, write.aval)
    return x


@rewrite(index.SCATTER, exact=True)
def written_in_order(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is written to each place once, by an order that sorts, need not be added there."""
    value, *places = args
    whole = value.aval.kind == "array" and value.aval[:2] == node.aval[:2]
    if not whole or dict(node.params)["spec"] != (index.Hole(0),) or not _is_order(places[0], node.aval.shape[0]):
        return None
    zeros = s.make(create.ZEROS, (), (("dtype", node.aval.dtype), ("shape", node.aval.shape)), node.aval)
    return s.make(index.SETITEM, (zeros, value, *places), (("spec", (index.Hole(0),)),), node.aval)


def _is_order(node: Node, length: int) -> bool:
    """Whether an index has each of the first ``length`` places once."""
    if node.aval.shape != (length,):
        return False
    if is_op(node, np.subtract):  # it is counted from the other end
        return const(node.args[0]) == length - 1 and _is_order(node.args[1], length)
    if node.op is index.GETITEM:
        return dict(node.params)["spec"] == (index.Slice(None, None, -1),) and _is_order(node.args[0], length)
    return is_op(node, np.argsort)


@rewrite(np.add, of=(index.SCATTER, index.INDEX_ADD), derived=True)
def add_to_total(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is written into zeros and added to a loop's total is added in its place."""
    for total, part in (args, args[::-1]):
        base, writes = total, writes_into_zeros(s, part)
        while base.op is index.INDEX_ADD:
            base = base.args[0]
        if base.op is not INPUT or not writes or not node.aval.shape or any(x.aval != node.aval for x in (total, *writes)):
            continue
        return written_again(s, total, writes)
    return None


def writes_into_zeros(s: Simplifier, node: Node) -> list[Node]:
    """What adds up to a node from zeros, in its order, if nothing else reads of it; empty where that is not all."""
    writes = [node]
    while writes[-1].op is index.INDEX_ADD:
        writes.append(writes[-1].args[0])
    if is_zero(writes[-1]):
        writes.pop()
    elif writes[-1].op is not index.SCATTER:
        return []
    return [] if any(s.used.get(write, 0) > 1 for write in writes) else writes[::-1]


def written_again(s: Simplifier, total: Node, writes: list[Node], less: bool = False) -> Node:
    """The same added to another array, or taken from it."""
    for write in writes:
        value, *places = write.args if write.op is index.SCATTER else write.args[1:]
        value = s.call(np.negative, value) if less else value
        total = s.make(index.INDEX_ADD, (total, value, *places), (("spec", dict(write.params)["spec"]),), total.aval)
    return total


@rewrite(index.SCATTER, index.SETITEM)
def writes_broadcast(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is written broadcasts anyway."""
    place = 0 if node.op is index.SCATTER else 1
    if not is_op(args[place], np.broadcast_to) or args[place].args[0].aval.dtype != args[place].aval.dtype:
        return None
    slim = (*args[:place], args[place].args[0], *args[place + 1 :])
    return s.graph.add(node.op, slim, node.params, node.aval)


@rewrite(np.logical_not, of=(index.SETITEM,), exact=True)
def opposite_at_a_place(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The opposite of a mask that is the same throughout, but where it was written into."""
    (mask,) = args
    truth = _truth(s, mask.args[0]) if mask.op is index.SETITEM else None
    if truth is None or mask.aval != node.aval or mask.args[1].aval.dtype != bool:
        return None
    base, value, *places = mask.args
    known = const(value)
    value = s.call(np.logical_not, value) if known is None else s.graph.const(not known)
    return s.make(mask.op, (throughout(s, base, not truth), value, *places), mask.params, node.aval)


@rewrite(np.logical_and, np.logical_or, of=(index.SCATTER, index.SETITEM), exact=True)
def masked_at_a_place(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A mask that changes another one at places alone is written there, which need not be a copy."""
    neutral = is_op(node, np.logical_and)
    for part, whole in (args, args[::-1]):
        if whole.aval != node.aval or part.aval != node.aval:
            continue
        writes: list[Node] = []
        base = part
        while base.op is index.SETITEM and len(writes) < FEW and place_of(base) is not None:
            writes.append(base)
            base = base.args[0]
        scattered = base.op is index.SCATTER and place_of(base) is not None
        writes += [base] if scattered else []
        known = False if scattered else _truth(s, base)
        if not writes or known is not neutral or any([_value_of(write).aval.dtype != bool for write in writes]):
            continue
        made = whole
        for write in reversed(writes):
            value, places = _value_of(write), write.args[len(write.op.rules) :]
            spec = (("spec", dict(write.params)["spec"]),)
            if bool(const(value)) is neutral or const(value) is None:
                value = s.call(node.op.key, s.make(index.GETITEM, (whole, *places), spec), value)
            made = s.make(index.SETITEM, (made, value, *places), spec, node.aval)
        return made
    return None


def _value_of(write: Node) -> Node:
    return write.args[len(write.op.rules) - 1]


def _truth(s: Simplifier, mask: Node) -> bool | None:
    """What a mask is throughout, if that is known."""
    value = s.graph.arrays.get(mask, filling(mask))
    return bool(np.all(value)) if value is not None and np.size(value) and np.all(value) == np.any(value) else None


@rewrite(index.GETITEM, exact=True)
def read_what_was_written(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """An element read after writes: what was written at that very place, or, of constant ones, what was there before."""
    spec, places = dict(node.params)["spec"], args[1:]
    source = _last_write(s, args[0], spec, (index.SETITEM,)) if not places else args[0]
    known = source.op is index.SETITEM and source.args[2:] == places
    if (
        known
        and all([place.aval.shape == () and place.aval.dtype.kind in "iu" for place in places])
        and dict(source.params)["spec"] == spec
    ):
        value = source.args[1]
        return value if value.aval.shape == node.aval.shape and value.aval.dtype == node.aval.dtype else None
    return s.make(node.op, (source,), node.params, node.aval) if source is not args[0] else None


@rewrite(index.GETITEM, of=(index.SETITEM, index.SCATTER), exact=True)
def read_beside_what_was_written(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[i - 1]`` after writes to ``x[i]``: what was there before."""
    place = place_of(node)
    source = beside(args[0], place, FEW)
    if source.op is index.SCATTER and _apart(place, place_of(source), source.aval.shape):
        return throughout(s, node, 0)
    if source.op is index.SCATTER and place is not None and place_of(source) == place and source.args[0].aval == node.aval:
        return source.args[0]
    return s.make(node.op, (source, *args[1:]), node.params, node.aval) if source is not args[0] else None


@rewrite(index.SETITEM, of=(index.SETITEM,), exact=True)
def written_twice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is written over at once, and read by nobody, is not written."""
    base, value, *places = args
    place = place_of(node)
    if base.op is not index.SETITEM or place is None or place_of(base) != place or s.used.get(base, 0) > 1:
        return None
    return s.make(index.SETITEM, (base.args[0], value, *places), node.params, node.aval)


Place = tuple[Any, ...]  # an index, its numbers as what they are counted from (None: from 0), and how many more


def place_of(node: Node) -> Place | None:
    """Where a part of an array is that is read or written; None where it is not made of numbers and slices alone."""
    places = node.args[len(node.op.rules) :]
    found = [
        (None, part) if type(part) is int else counted(places[part.number]) if type(part) is index.Hole else part
        for part in dict(node.params)["spec"]
    ]
    return tuple(found) if all([type(part) in (tuple, index.Slice) for part in found]) else None


def counted(node: Node) -> tuple[Node | None, int] | None:
    """A number as what it is counted from, and how many more; None for an array, and for what may wrap around."""
    more, aval = 0, node.aval
    if aval.shape or aval.dtype != np.int64:
        return None
    while (is_op(node, np.add) or is_op(node, np.subtract)) and type(number := const(node.args[1])) is int:
        more += number if is_op(node, np.add) else -number
        node = node.args[0]
    return (None, const(node) + more) if _is_int(const(node)) else (node, more)


def beside(array: Node, place: Place | None, most: int) -> Node:
    """What an array was before writes to it, of the last so many, that surely leave alone what is at a place."""
    for _ in range(most if place is not None else 0):
        if array.op is not index.SETITEM or not _apart(place, place_of(array), array.aval.shape):
            break
        array = array.args[0]
    return array


def _apart(one: Place | None, other: Place | None, shape: tuple[int, ...]) -> bool:
    """Whether two places surely have no element in common: along one axis they are so many apart, whatever the number is that
    both are counted from, also if that counts from the end."""
    return any(
        [
            type(a) is type(b) is tuple and a[0] is b[0] and size and (a[1] - b[1]) % size
            for a, b, size in zip(one or (), other or (), shape, strict=False)
        ]
    )


@rewrite(index.INDEX_ADD)
def add_to_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is added where nothing was written yet is written there."""
    spec = dict(node.params)["spec"]
    if len(args) != 2 or args[1].aval.dtype != node.aval.dtype:
        return None
    base = _last_write(s, args[0], spec, (index.INDEX_ADD, index.SETITEM))
    if base.op is not index.SCATTER or len(base.args) != 1:
        return None
    return s.make(index.SETITEM, args, node.params) if _disjoint(spec, dict(base.params)["spec"], node.aval.shape) else None


def _last_write(s: Simplifier, array: Node, spec: index.Spec, ops: tuple[Op, ...]) -> Node:
    """The last of the writes (``ops``, at constant places) that an array is made by which may be where ``spec`` is; where
    none is, what the first of them is into."""
    if (written := _written(s, array, ops)) is None:
        return array
    shape = array.aval.shape
    writes = written.at(_numbers(spec, shape), array)
    return next((write for write in writes if not _disjoint(spec, dict(write.params)["spec"], shape)), written.base)


def _written(s: Simplifier, array: Node, ops: tuple[Op, ...]) -> Written | None:
    """The writes at constant places by which an array is made; None if the last one is no such."""
    chain: list[Node] = []
    node = array
    while (found := s.written.get((node, ops))) is None:
        if node.op not in ops or len(node.args) != 2:
            break
        chain.append(node)
        node = node.args[0]
    if not chain:
        return found
    if found is None or found.last is not node:  # others went on there
        found = Written(node, node, found)
    for write in reversed(chain):
        found.add(write, _numbers(dict(write.params)["spec"], write.aval.shape))
        s.written[write, ops] = found
    found.last = array
    return found


def _numbers(spec: index.Spec, shape: tuple[int, ...]) -> tuple[int | None, ...]:
    """The number that an index is along each axis, counted from its start; None where it is none, or not surely one."""
    known = itertools.takewhile(lambda part: type(part) in (int, index.Slice), spec)
    parts = itertools.zip_longest(known, shape)
    return tuple([part % size if type(part) is int and size else None for part, size in parts])


def _disjoint(a: index.Spec, b: index.Spec, shape: tuple[int, ...]) -> bool:
    """Whether two indices surely name different elements: along one axis, they have no place in common."""
    for one, other, size in zip(a, b, shape, strict=False):
        first, second = _places(one, size), _places(other, size)
        if first is None or second is None:
            return False
        if max(first.start, second.start) >= min(first.stop, second.stop):
            return True
    return False


def _places(part: Any, size: int) -> range | None:
    """The places from the lowest to the highest that a part of an index names on its axis; None where that is not known."""
    if type(part) is int:
        return range(part % size, part % size + 1) if size else None
    if type(part) is not index.Slice:
        return None
    places = range(*slice(*part).indices(size))
    ends = sorted((places[0], places[-1])) if places else (0, -1)
    return range(ends[0], ends[1] + 1)
