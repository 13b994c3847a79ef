"""Where the values of a group lie: in scratch blocks, as few as will do, or at once in the arrays of its results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import Node
from symgrad.ops import create, index
from symgrad.optimize import cost
from symgrad.optimize.fuse import Group, is_elementwise, is_product, is_slice, is_view, is_whole, offset, work

SLOW_IN_PLACE = (np.sign,)  # its loop branches at each number where the result lies on the argument


class Scratch(NamedTuple):
    """A block of its own, which other values have before and after."""

    number: int


class Window(NamedTuple):
    """The rows of an array outside that belong to the block, ``start`` further on."""

    array: Node
    start: int


@dataclass(eq=False)
class Layout:
    """Where each value of a group is written: ``places``, for all members but views and ``ends``; ``rows`` of a block.

    ``scratch`` has shape (without the lane), lane and dtype of each scratch block. ``parts`` of the cotangents of slices: the
    values and the operations that add them, those that start last first, for in that order each element is written before it
    is added to; ``bases`` has what they are added to, where that is not zeros. ``shared``: threads share the blocks, which
    come in any order.
    """

    rows: int = 1
    shared: bool = False
    places: dict[Node, Scratch | Window] = field(default_factory=dict)
    scratch: list[tuple[tuple[int, ...], int, np.dtype[Any]]] = field(default_factory=list)
    parts: dict[Node, list[tuple[Node, Node]]] = field(default_factory=dict)
    bases: dict[Node, Node] = field(default_factory=dict)


def lay_out(group: Group, uses: dict[Node, int], threads: bool) -> Layout:
    """The layout of a group; with ``threads`` one to share where that pays."""
    layout = Layout()
    members = set(group.nodes)
    for end in group.ends:
        if is_slice(end):
            layout.parts[end], base = _parts(end, members)
            if base is not None:
                layout.bases[end] = base
    for end, parts in layout.parts.items():
        value, write = parts[0]
        if end in layout.bases:
            continue
        if value in group.lanes and not is_view(value) and is_whole(write) and _is_read_before(end, layout, group, uses):
            layout.places[value] = Window(end, first_row(write))
    for node in group.results:
        layout.places[node] = Window(node, 0)
    _give_scratch(group, layout)
    layout.rows = _rows(group, cost.SIZES.piece if any(map(is_product, group.nodes)) else cost.SIZES.slab)
    if threads and _pays_threads(group, layout):
        layout.rows, layout.shared = _rows(group, cost.SIZES.piece), True
    return layout


def _pays_threads(group: Group, layout: Layout) -> bool:
    """Whether threads that share a group's blocks are faster; a block needs all rows that it has in common with the next."""
    rows = _rows(group, cost.SIZES.piece)
    fits = all(overlap(parts) <= (group.length % rows or rows) for parts in layout.parts.values())
    enough = group.length > 3 * rows and work(group.nodes) >= cost.SIZES.shared
    return fits and enough and not any(map(is_product, group.nodes))


def overlap(parts: Sequence[tuple[Node, Node]]) -> int:
    """How many rows of slices' cotangents a block has in common with the one before it."""
    return first_row(parts[0][1]) - first_row(parts[-1][1])


def _is_read_before(end: Node, layout: Layout, group: Group, uses: dict[Node, int]) -> bool:
    """Whether only the group reads the value that is written first into an end, and views of it, and only before others are
    added to it: so none of these is that value again."""
    (value, _), *others = layout.parts[end]
    same = {value}
    for node in group.nodes:
        if is_view(node) and node.args[0] in same:
            same.add(node)
    before = [arg for node in group.nodes[: group.nodes.index(end) + 1] for arg in reads_of(node, layout)]
    return not any([other in same for other, _ in others]) and all([uses[one] == before.count(one) for one in same])


def is_read_before(group: Group, window: Node, node: Node) -> bool:
    """Whether the blocks of an array from outside are read for the last time where a member is computed, or before."""
    for member in group.nodes[group.nodes.index(node) :]:
        lanes = [lane for arg, lane in zip(member.args, group.reads[member], strict=True) if arg is window]
        in_place = member is node and is_elementwise(node) and node.op.key not in SLOW_IN_PLACE
        if lanes and not in_place:
            return False
    return all(
        lane == group.lanes[node]
        for member in group.nodes
        for arg, lane in zip(member.args, group.reads[member], strict=True)
        if arg is window
    )


def _rows(group: Group, most: int) -> int:
    """How many rows of the widest block are not more than so many bytes."""
    arrays = [(node.aval, lane) for node, lane in (*group.windows, *group.lanes.items())]
    widest: int = max([math.prod(aval.shape) // aval.shape[lane] * aval.dtype.itemsize for aval, lane in arrays])
    return min(max(most // max(widest, 1), 1), group.length)


def _parts(end: Node, members: set[Node]) -> tuple[list[tuple[Node, Node]], Node | None]:
    """The values that are added into slices, and by which operations, those that start last first; and to what."""
    parts = [(end.args[-1], end)]
    base = end
    while base.op is index.INDEX_ADD and (base := base.args[0]) in members:
        parts.append((base.args[-1], base))
    given = base not in members and base.op is not create.ZEROS
    return sorted(parts, key=lambda part: -first_row(part[1])), base if given else None


def first_row(write: Node) -> int:
    """The first row that a value is added to."""
    start = offset(write)
    assert start is not None
    return start


def reads_of(node: Node, layout: Layout) -> Sequence[Node]:
    """What is read where a member is computed: the slices of a cotangent are written at the end of their chain."""
    if is_slice(node):
        return [value for value, _ in layout.parts.get(node, ())]
    return node.args


def _give_scratch(group: Group, layout: Layout) -> None:
    """Scratch for what has no place yet, in order; a block is free again after the last operation that reads it."""
    members = set(group.nodes)
    roots: dict[Node, Node] = {}
    left: dict[Node, int] = {}
    for node in group.nodes:
        roots[node] = roots[node.args[0]] if is_view(node) else node
        for arg in reads_of(node, layout):
            if arg in members:
                left[roots[arg]] = left.get(roots[arg], 0) + 1
    free: dict[Any, list[Scratch]] = {}
    for node in group.nodes:
        dying = []
        for arg in reads_of(node, layout):
            if arg in members:
                left[roots[arg]] -= 1
                if not left[roots[arg]] and isinstance(layout.places.get(roots[arg]), Scratch):
                    dying.append(roots[arg])
        in_place = is_elementwise(node) and node.op.key not in SLOW_IN_PLACE
        if in_place:  # it may overwrite an argument, element by element
            _release(group, layout, dying, free)
        if node in group.lanes and node not in layout.places and not is_view(node):
            layout.places[node] = _scratch(group, layout, node, free)
        if not in_place:
            _release(group, layout, dying, free)
        if not left.get(node, 0) and isinstance(layout.places.get(node), Scratch):
            _release(group, layout, [node], free)


def _key(group: Group, node: Node) -> tuple[tuple[int, ...], int, np.dtype[Any]]:
    lane = group.lanes[node]
    shape = list(node.aval.shape)
    del shape[lane]
    return tuple(shape), lane, node.aval.dtype


def _release(group: Group, layout: Layout, nodes: Sequence[Node], free: dict[Any, list[Scratch]]) -> None:
    for node in nodes:
        place = layout.places[node]
        assert isinstance(place, Scratch)
        free.setdefault(_key(group, node), []).append(place)


def _scratch(group: Group, layout: Layout, node: Node, free: dict[Any, list[Scratch]]) -> Scratch:
    key = _key(group, node)
    if free.get(key):
        return free[key].pop()
    layout.scratch.append(key)
    return Scratch(len(layout.scratch) - 1)
