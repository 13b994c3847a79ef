"""Which operations on big arrays run together, block by block, so that what lies between them never leaves the cache.

A *group* is a set of operations that one loop runs. Along one axis, the *lane*, all of its values have the same length;
the loop cuts that axis into blocks of rows and runs every operation on one block before it goes to the next. Lanes are
axes counted from the end, as broadcasting lines them up. An operation fits in when a block of its result needs no more than
the same block of its arguments: elementwise ones, reductions over other axes, views that leave the lane whole. It may end
there when blocks of results can be put together: sums over the lane, products with thin matrices, and cotangents added into
slices (``g[1:] += a``).

Here is only what belongs together. ``memory`` says where each value lies, ``emit.blocks`` prints it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.ir import Aval, Node
from symgrad.ops import engine, index
from symgrad.ops.core import REGISTRY
from symgrad.optimize import cost
from symgrad.optimize.lower import INNER, LIKE_UFUNCS

_REDUCTIONS = {REGISTRY[key] for key in (np.sum, np.mean, np.max, np.min)}
_PRODUCTS = {REGISTRY[np.matmul], REGISTRY[np.dot]}
_TURNED = {REGISTRY[key] for key in (np.transpose, np.swapaxes, np.moveaxis)}
_THIN = 4  # columns up to which a matrix product waits for memory, not for arithmetic
_SHORT = 16  # rows that are few pieces
_WIDTH = 8  # bytes that an element is reckoned at, so that arrays of one shape get one lane


Reads = tuple[int | None, ...]  # of each argument: the lane along which a member reads it in blocks; None: all of it


@dataclass(eq=False)
class Group:
    """The operations of one loop over blocks.

    ``length`` is that of the lane. ``lanes`` has the lane of each member, ``reads`` how each member reads its arguments, and
    ``windows`` what is read in blocks from outside, and along which lane. Members that are read after the loop are
    ``results``, which have a lane, or ``ends``, which are put together from blocks: sums over the lane, cotangents of slices.
    ``views`` are members that are views of results, read after the loop.
    """

    length: int
    nodes: list[Node] = field(default_factory=list)
    lanes: dict[Node, int] = field(default_factory=dict)
    reads: dict[Node, Reads] = field(default_factory=dict)
    windows: list[tuple[Node, int]] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    ends: list[Node] = field(default_factory=list)
    views: list[Node] = field(default_factory=list)


def fuse(nodes: Sequence[Node], uses: dict[Node, int], turned: set[Node], products: bool) -> list[Node | Group]:
    """Straight-line code in an order to run it in, with groups in place of the operations that they run.

    ``uses`` says how often each value is read anywhere, ``turned`` which ones do not lie row by row. With ``products``, those
    of large matrices may join, too: BLAS has one thread. Where it has several, each reads its part of all of a matrix best.
    """
    if not any(_size(node) >= cost.SIZES.big for node in nodes):
        return list(nodes)
    return _Fuser(nodes, uses, turned, products).run()


def _size(node: Node) -> int:
    return math.prod(node.aval.shape) if isinstance(node.aval, Aval) else 0


class _Fuser:
    """Assigns stages: an operation that needs all of what a group makes comes after that group's loop.

    ``stage[node]`` of a member is the loop that it could run in at the earliest; of any other node, the loop before which it
    can run.
    """

    def __init__(self, nodes: Sequence[Node], uses: dict[Node, int], turned: set[Node], products: bool) -> None:
        self.nodes, self.uses, self.turned, self.products = nodes, uses, turned, products
        self.stage: dict[Node, int] = {}
        self.lane: dict[Node, int] = {}  # of members that have one after their loop
        self.length: dict[Node, int] = {}  # of members
        self.reads: dict[Node, Reads] = {}  # of members
        self.base: dict[Node, Node] = {}  # of cotangents of slices: those that this one is added to
        added = [node for node in nodes if node.op is index.INDEX_ADD]
        self.bases = {node.args[0] for node in added if _size(node.args[1]) >= cost.SIZES.big}  # what is less joins no loop
        shapes = {value.aval.shape for node in nodes for value in (node, *node.args) if _size(value) >= cost.SIZES.big}
        self.lengths = {shape[lane] for shape in shapes if (lane := self._natural(shape)) is not None}  # of lanes that pay

    def run(self) -> list[Node | Group]:
        for node in self.nodes:
            reads = self._reads(node) if self._may_join(node) else None
            if reads is None:
                self.stage[node] = max((self._after(arg) for arg in node.args), default=0)
            else:
                self.reads[node] = reads
                self.stage[node] = max(self._joined(node, arg, lane) for arg, lane in zip(node.args, reads, strict=True))
        groups = [group for members in self._components() if (group := self._group(members)) is not None]
        return _ordered(self.nodes, groups)

    def _after(self, node: Node) -> int:
        """The first stage at which all of a value is there."""
        return self.stage.get(node, 0) + (node in self.length)

    def _joined(self, node: Node, arg: Node, lane: int | None) -> int:
        """The first stage of a member, as far as one argument is concerned."""
        if self.base.get(node) is arg:
            return self.stage[arg]
        same = lane is not None and self.lane.get(arg) == lane and self.length[arg] == self.length[node]
        return self.stage[arg] if same else self._after(arg)

    # ---- what an operation asks of its arguments ----

    def _may_join(self, node: Node) -> bool:
        return isinstance(node.aval, Aval) and bool(node.args) and all(isinstance(arg.aval, Aval) for arg in node.args)

    def _reads(self, node: Node) -> Reads | None:
        """How a member reads its arguments; None where an operation is none. Sets its lane and length."""
        if is_elementwise(node):
            return self._elementwise(node) if node not in self.bases else None
        if node.op in _REDUCTIONS:
            return self._reduction(node)
        if node.op is INNER:
            return self._inner(node)
        if node.op in _PRODUCTS and self.products:
            return self._product(node)
        if node.op in (index.SCATTER, index.INDEX_ADD):
            return self._assembly(node)
        if node.op in (REGISTRY[np.expand_dims], REGISTRY[np.transpose], index.GETITEM):
            return self._view(node)
        return None

    def _elementwise(self, node: Node) -> Reads | None:
        if node in self.turned:  # NumPy follows its memory best by itself
            return None
        lane = self._natural(node.aval.shape)
        if lane is None or node.aval.shape[lane] not in self.lengths:
            return None
        self.lane[node], self.length[node] = lane, node.aval.shape[lane]
        return tuple([lane if _runs_along(arg, lane, self.length[node]) else None for arg in node.args])

    def _natural(self, shape: tuple[int, ...]) -> int | None:
        """The first axis that cuts an array of this shape into pieces that are small enough."""
        most = 2 * cost.SIZES.slab // _WIDTH
        for axis, length in enumerate(shape):
            piece = math.prod(shape) // max(length, 1)
            if length > 1 and piece <= (most if length <= _SHORT else 4 * most):  # many rows may be somewhat longer
                return axis - len(shape)
        return None

    def _known(self, node: Node) -> int | None:
        """The lane of an argument: that of the member that it is, else its natural one."""
        lane = self.lane.get(node)
        return self._natural(node.aval.shape) if lane is None else lane

    def _reduction(self, node: Node) -> Reads | None:
        (x,) = node.args
        params = dict(node.params)
        lane = self._known(x)
        if lane is None or x.aval.kind != "array" or not set(params) <= {"axis", "keepdims"} or node.exact:
            return None
        if x.aval.dtype.char not in "fdFD" or node.aval.dtype != x.aval.dtype:
            return None
        axes = reduced(node)
        self.length[node] = x.aval.shape[lane]
        if lane not in axes:
            self.lane[node] = lane if params.get("keepdims") else lane + sum(axis > lane for axis in axes)
        return (lane,)

    def _inner(self, node: Node) -> Reads | None:
        """A sum of the products of two arrays."""
        first, second = map(self._known, node.args)
        if node.exact or first is None or first != second:
            return None
        self.length[node] = node.args[0].aval.shape[first]
        return first, second

    def _product(self, node: Node) -> Reads | None:
        """A tall matrix times a thin one, by rows; or a product over a long lane, as a sum of those of the blocks."""
        a, b = node.args
        shapes = a.aval.shape, b.aval.shape
        if node.params or node.exact or any(arg.aval.kind != "array" or not 1 <= len(arg.aval.shape) <= 2 for arg in (a, b)):
            return None
        if a.aval.dtype != b.aval.dtype or a.aval.dtype.char not in "fdFD":
            return None
        rows = 1 if len(shapes[0]) == 1 else shapes[0][0]
        columns = 1 if len(shapes[1]) == 1 else shapes[1][1]
        lanes = self._known(a), self._known(b)
        length = shapes[1][0]
        summed = lanes == (-1, -len(shapes[1])) and min(rows, columns) <= _THIN and _size(node) <= length
        by_rows = len(shapes[0]) == 2 and lanes[0] == -2 and columns <= _THIN and rows >= shapes[0][1]
        if not (summed or by_rows) or not cost.is_far(max(_size(a), _size(b)) * a.aval.dtype.itemsize):
            return None
        if summed:
            self.length[node] = length
            return -1, -len(shapes[1])
        self.length[node], self.lane[node] = rows, -len(node.aval.shape)
        return -2, None

    def _assembly(self, node: Node) -> Reads | None:
        """Cotangents of slices along the lane, added up: a chain of operations on zeros, or on what is there before."""
        first = node.op is index.SCATTER
        value = node.args[0 if first else 1]
        lane = self.lane.get(value)
        if len(node.args) != (1 if first else 2) or lane is None or lane != -len(node.aval.shape):
            return None
        if value.aval.dtype != node.aval.dtype or offset(node) is None:
            return None
        if not first:
            base, place = node.args[0], (self.length[value], self.stage[value])
            if base in self.turned:
                return None
            inside = is_slice(base) and self.uses[base] == 1 and base in self.reads
            if inside and (self.length[base], self.stage[base]) == place:
                self.base[node] = base
            elif self._after(base) > self.stage[value]:
                return None
        self.length[node] = self.length[value]
        return (lane,) if first else (None, lane)

    def _view(self, node: Node) -> Reads | None:
        """A view of a member that leaves the lane whole."""
        x = node.args[0]
        lane = self.lane.get(x)
        if lane is None or len(node.args) != 1:
            return None
        ndim = len(x.aval.shape)
        if node.op is REGISTRY[np.expand_dims]:
            axis = dict(node.params)["axis"]
            added = {i - len(node.aval.shape) if i >= 0 else i for i in (axis if isinstance(axis, tuple) else (axis,))}
            kept = [i for i in range(-len(node.aval.shape), 0) if i not in added]
            new = kept[lane]
        elif node.op is REGISTRY[np.transpose]:
            axes = dict(node.params).get("axes") or tuple(reversed(range(ndim)))
            new = [axis % ndim for axis in axes].index(lane + ndim) - ndim
        else:
            spec, place = dict(node.params)["spec"], lane + ndim
            if not all(type(part) in (int, index.Slice) for part in spec):
                return None
            if spec[place : place + 1] not in ((), (index.EVERY,)):
                return None
            new = lane + sum(type(part) is int for part in spec[place:])
        self.lane[node], self.length[node] = new, self.length[x]
        return (lane,)

    # ---- groups ----

    def _components(self) -> list[list[Node]]:
        """The members of each loop: of one stage and length, and connected by what they read."""
        parent: dict[Any, Any] = {}

        def find(x: Any) -> Any:
            while parent.setdefault(x, x) is not x:
                parent[x] = x = parent[parent[x]]
            return x

        for node, reads in self.reads.items():
            place = self.stage[node], self.length[node]
            if node in self.base:
                parent[find(self.base[node])] = find(node)
            for arg, lane in zip(node.args, reads, strict=True):
                if lane is None:
                    continue
                same = self.stage.get(arg) == place[0] and arg in self.length and self.lane.get(arg, lane) == lane
                parent[find(arg if same else (arg, lane, *place))] = find(node)
        found: dict[Any, list[Node]] = {}
        for node in self.reads:
            found.setdefault(find(node), []).append(node)
        return list(found.values())

    def _group(self, members: list[Node]) -> Group | None:
        """The loop of these members; None where it does not pay."""
        inside = set(members)
        length = self.length[members[0]]
        lanes = {node: self.lane[node] for node in members if node in self.lane}
        reads = {node: self.reads[node] for node in members}
        windows = {
            (arg, lane)
            for node in members
            for arg, lane in zip(node.args, reads[node], strict=True)
            if lane is not None and arg not in inside
        }
        width = max(math.prod(node.aval.shape) // length for node in (*lanes, *(arg for arg, _ in windows)))
        if length * width < cost.SIZES.big:
            return None
        group = Group(length, members, lanes, reads, sorted(windows, key=lambda window: window[0].index))
        outside = {node: self.uses[node] for node in members}
        for node in members:
            for arg in node.args:
                if arg in inside:
                    outside[arg] -= 1
        for node in reversed(members):
            if not outside[node]:
                continue
            if node not in self.lane:
                group.ends.append(node)
            elif is_view(node):
                group.views.insert(0, node)
                outside[node.args[0]] += 1
            else:
                group.results.append(node)
        if any(arg in self.turned for arg, _ in windows):
            return None
        passes = sum(sum(lane is not None for lane in reads[node]) + (node in lanes) for node in members if not is_view(node))
        saved = passes - len(windows) - len(group.results)
        return group if saved >= cost.SIZES.saved or work(members) >= 2 * cost.SIZES.shared else None


def turned(nodes: Iterable[Node]) -> set[Node]:
    """The values that do not lie in memory row by row: transposes, and what NumPy makes of those element by element."""
    found: set[Node] = set()
    for node in nodes:
        if node.op in _TURNED or (node.args and is_elementwise(node) and any(arg in found for arg in node.args)):
            found.add(node)
    return found


def is_elementwise(node: Node) -> bool:
    """Whether an operation on big arrays has a result whose elements need the same elements of its arguments."""
    if not isinstance(node.aval, Aval) or not node.aval.shape:
        return False
    if node.op in (engine.ASTYPE, REGISTRY[np.where], *LIKE_UFUNCS):
        return True
    return isinstance(node.op.key, np.ufunc) and node.op.family in ("elementwise", "constant") and not node.params


def is_slice(node: Node) -> bool:
    """Whether a member is a cotangent of slices."""
    return node.op in (index.SCATTER, index.INDEX_ADD)


def is_view(node: Node) -> bool:
    """Whether an operation of a group computes nothing."""
    return bool(node.op.alias)


def is_product(node: Node) -> bool:
    """Whether an operation of a group is BLAS's, which has threads of its own."""
    return node.op in _PRODUCTS


def work(nodes: Sequence[Node]) -> int:
    """How much the operations of a group compute, in sums of two numbers."""
    return sum(cost.weight(node.op.key) * max(map(_size, (node, *node.args))) for node in nodes if not is_view(node))


def reduced(node: Node) -> set[int]:
    """The axes that a reduction sums over, counted from the end."""
    ndim = len(node.args[0].aval.shape)
    axis = dict(node.params).get("axis")
    if axis is None:
        return set(range(-ndim, 0))
    return {i % ndim - ndim for i in (axis if isinstance(axis, tuple) else (axis,))}


def adds_rows(node: Node) -> bool:
    """Whether a reduction puts together many short rows."""
    shape = node.args[0].aval.shape
    return reduced(node) == {-len(shape)} and len(shape) > 1 and math.prod(shape[1:]) <= cost.SHORT


def adds_columns(node: Node) -> bool:
    """Whether a reduction puts together the numbers of each of many short rows."""
    shape = node.args[0].aval.shape
    return reduced(node) == {-1} and len(shape) > 1 and 1 < shape[-1] <= cost.SHORT


def offset(node: Node) -> int | None:
    """The first of the rows, all in a row, that a value is added to; None where it is added to anything else."""
    spec = dict(node.params)["spec"]
    if not all(type(part) is index.Slice for part in spec):
        return None
    start, _, step = slice(*spec[0]).indices(node.aval.shape[0])
    return start if step == 1 else None


def is_whole(node: Node) -> bool:
    """Whether a value is added to whole rows, as they are, not turned around."""
    ranges = [range(n)[slice(*part)] for n, part in zip(node.aval.shape, dict(node.params)["spec"], strict=False)]
    return all(kept == range(n) for kept, n in zip(ranges[1:], node.aval.shape[1:], strict=False))


def _runs_along(node: Node, lane: int, length: int) -> bool:
    """Whether a value has the length of a group along its lane."""
    shape = node.aval.shape
    return len(shape) >= -lane and shape[lane] == length


def _ordered(nodes: Sequence[Node], groups: Sequence[Group]) -> list[Node | Group]:
    """Everything after what it needs; otherwise in the old order, and groups as late as they may be."""
    home: dict[Node, Group] = {node: group for group in groups for node in group.nodes}
    here = set(nodes)
    result: list[Node | Group] = []
    done: set[Any] = set()

    def needs(unit: Node | Group) -> list[Node | Group]:
        members = unit.nodes if isinstance(unit, Group) else [unit]
        args = sorted({arg for node in members for arg in node.args if arg in here}, key=lambda node: node.index)
        return [found for arg in args if (found := home.get(arg, arg)) is not unit and found not in done]

    units: list[Node | Group] = [*(node for node in nodes if node not in home), *groups]
    for start in units:
        stack = [start]
        while stack:
            unit = stack[-1]
            missing = [] if unit in done else needs(unit)
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if unit not in done:
                done.add(unit)
                result.append(unit)
    return result
