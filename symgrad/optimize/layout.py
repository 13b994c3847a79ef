"""Big arrays whose last axis is short, such as ``x[:, None, :] - x[None, :, :]`` of points in space, lie with that axis first.

NumPy runs one inner loop for each row of such an array, and starting a loop costs more than a few numbers. Chains of
elementwise operations are moved as a whole, from small arrays that are broadcast to the sums that end them; what does
anything else with such an array keeps it as it is.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.ir import Aval, Node
from symgrad.ops import index
from symgrad.ops.core import ASTYPE, REGISTRY, Op
from symgrad.optimize import cost
from symgrad.optimize.fuse import is_elementwise, reduced
from symgrad.optimize.lower import BITS
from symgrad.optimize.rewriting import Rewrite, Simplifier, axes_of, const, is_op, rewrite
from symgrad.program import Program

SHORT = 16  # elements of an axis, up to which loops along it are too short
LARGE = 4096  # elements of an array that is worth it
COLUMNS = 4  # numbers of a row, up to which as many products of columns cost less than one of rows
FEW = 7  # slices that NumPy, too, adds one after the other
RUN = 32  # numbers in a row, up to which a slice is made of short pieces as well
MANY = 128  # numbers of a result for each slice, from which on calls are worth it
FRONT = Op(runtime.columns, "constant", (), name="runtime.columns")
MATRICES = Op(runtime.matrices, "constant", (), name="runtime.matrices")
CROSS = Op(runtime.cross, "constant", (), name="runtime.cross")
TINY = 3  # rows and columns of a matrix, up to which products of many go element by element
APART: dict[Any, list[Rewrite]] = {}
_REDUCTIONS = {REGISTRY[key] for key in (np.sum, np.mean, np.max, np.min)}
_PRODUCTS = {REGISTRY[np.matmul], REGISTRY[np.dot]}


def layout(program: Program) -> Program:
    """The same program with short last axes moved to the front, and sums along those that stay taken apart."""
    moved = _worth_moving(program)
    program = _Mover(program, moved).run() if moved else program
    return Simplifier(program, APART).run() if any(map(_may_be_apart, program.nodes())) else program


# -- reductions of what stays where it is ---------------------------------------------------------------------------


def _may_be_apart(node: Node) -> bool:
    apart = node.op in APART and not is_op(node, np.multiply)  # products are of what is apart already
    return apart and type(node.args[0].aval) is Aval and math.prod(node.args[0].aval.shape) >= 4 * MANY


@rewrite(np.sum, np.mean, np.max, np.min, np.prod, rules=APART)
def few_slices(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Reductions along short axes as a few operations on slices: NumPy runs an inner loop for each number of the result.

    They add in the order in which NumPy does.
    """
    (x,) = args
    axes, shape = axes_of(node), x.aval.shape
    params = dict(node.params)
    slices = math.prod([shape[axis] for axis in axes])
    run = math.prod(shape[max(axes, default=-1) + 1 :])
    many = math.prod(node.aval.shape) >= MANY * slices
    if not 1 < slices <= FEW or run > RUN or not many or not set(params) <= {"axis", "keepdims", "dtype"}:
        return None
    counts = x.aval.dtype == bool and node.op.key is np.sum and node.aval.dtype == np.float64
    if not counts and (x.aval.dtype.char not in "fdFD" or node.aval.dtype != x.aval.dtype):
        return None
    if counts:  # as the numbers 0 and -1, which need no casts
        x = s.graph.add(BITS, (x,), (), Aval(shape, np.dtype(np.int64), "array"))
    parts = []
    for places in np.ndindex(*[shape[axis] for axis in axes]):
        place = dict(zip(axes, places, strict=True))
        spec = tuple([place.get(axis, index.EVERY) for axis in range(len(shape))])
        parts.append(s.call(index.GETITEM, x, spec=spec))
    result = _put_together(s, _PAIRWISE[node.op.key], parts)
    if counts:
        result = s.call(ASTYPE, s.call(np.negative, result), dtype=node.aval.dtype)
    if node.op.key is np.mean:
        result = s.call(np.true_divide, result, slices)
    return s.call(np.expand_dims, result, axis=axes if len(axes) > 1 else axes[0]) if params.get("keepdims") else result


@rewrite(np.sum, np.mean, rules=APART)
def middle_axes(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Sums of a few along axes before short ones, ``np.sum(x, axis=1)`` of (500, 20, 3), as products with ones, by BLAS."""
    (x,), params, shape = args, dict(node.params), args[0].aval.shape
    axes, keep = axes_of(node), params.pop("keepdims", False)
    if set(params) != {"axis"} or x.aval.dtype.char not in "fd" or node.aval.dtype != x.aval.dtype or not axes:
        return None
    first, last = min(axes), max(axes)
    many, count, run = math.prod(shape[:first]), math.prod([shape[axis] for axis in axes]), math.prod(shape[last + 1 :])
    longest = 2 * RUN if math.prod(shape) < cost.SIZES.big else FEW  # loops over blocks have the rows at hand
    few = 1 < count <= 2 * RUN and 1 < run <= longest  # of many, NumPy's own functions lose less
    if len(axes) != last + 1 - first or not few or many < 2 or is_op(x, np.transpose):
        return None
    x = s.call(np.reshape, x, shape=(many, count, run)) if shape != (many, count, run) else x
    total = s.call(np.matmul, s.graph.captured(np.ones((1, count), x.aval.dtype)), x)
    if node.op.key is np.mean:
        total = s.call(np.true_divide, total, count)
    return total if keep and len(shape) == 3 else s.call(np.reshape, total, shape=node.aval.shape)


@rewrite(np.vecdot, np.einsum, rules=APART)
def few_products(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Products of short rows, ``np.einsum("ab,ab->a", x, y)``, as those of their columns."""
    if len(args) != 2:
        return None
    x, y = args
    shape = x.aval.shape
    if node.op.key is np.einsum:
        first, _, rest = dict(node.params)["subscripts"].partition(",")
        rows = rest == f"{first}->{first[:-1]}" and len({*first}) == len(shape) and set(dict(node.params)) == {"subscripts"}
    else:
        rows = not node.params
    same = x.aval == y.aval and x.aval.kind == "array" and x.aval.dtype.char in "fd"
    if not rows or not same or not 1 < shape[-1] <= COLUMNS or math.prod(shape[:-1]) < MANY * shape[-1]:
        return None
    terms = []
    for k in range(shape[-1]):
        a, b = [s.call(index.GETITEM, one, spec=(Ellipsis, k)) for one in (x, y)]
        terms.append(s.call(np.square, a) if a is b else s.call(np.multiply, a, b))
    return _put_together(s, np.add, terms)


@rewrite(np.trace, rules=APART)
def few_elements(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Traces of many small matrices as sums of their elements."""
    (x,), params, shape = args, dict(node.params), node.aval.shape
    axes = sorted([params.pop(axis, default) % len(x.aval.shape) for axis, default in (("axis1", 0), ("axis2", 1))])
    sizes = [x.aval.shape[axis] for axis in axes]
    same = x.aval.dtype.char in "fdFD" and x.aval.dtype == node.aval.dtype and x.aval.kind == "array"
    if params or not same or not 1 < min(sizes) <= FEW or math.prod(shape) < MANY * min(sizes):
        return None
    parts = []
    for k in range(min(sizes)):
        spec = tuple([k if axis in axes else index.EVERY for axis in range(len(x.aval.shape))])
        parts.append(s.call(index.GETITEM, x, spec=spec))
    return _put_together(s, np.add, parts)


@rewrite(np.cumprod, rules=APART)
def few_factors(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Running products along short axes, of which the derivative of ``np.prod`` is made, slice by slice."""
    (x,), params, shape = args, dict(node.params), node.aval.shape
    axis = params.pop("axis", None)
    if params or type(axis) is not int or x.aval != node.aval or x.aval.dtype.char not in "fdFD":
        return None
    axis %= len(shape)
    if not 1 < shape[axis] <= FEW + 1 or math.prod(shape) < MANY * shape[axis]:
        return None
    parts = [_slice(s, x, axis, 0)]
    for k in range(1, shape[axis]):
        factor = _slice(s, x, axis, k)
        parts.append(factor if _is_one(parts[-1]) else s.call(np.multiply, parts[-1], factor))
    return s.call(np.stack, *parts, axis=axis)


@rewrite(np.multiply, rules=APART)
def factors_apart(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Products of arrays that were put together of slices, one of which may be turned around, as those of the slices."""
    (axis, a), (other, b) = map(_slices, args)
    if axis is None or axis != other or args[0].aval != args[1].aval:
        return None
    products = [y if _is_one(x) else x if _is_one(y) else s.call(np.multiply, x, y) for x, y in zip(a, b, strict=True)]
    return s.call(np.stack, *products, axis=axis)


def _slices(x: Node) -> tuple[int | None, tuple[Node, ...]]:
    """The slices that an array was put together of, and along which axis."""
    if is_op(x, np.stack):
        return _stacked(x), x.args
    if x.op is index.GETITEM and len(x.args) == 1 and is_op(x.args[0], np.stack):
        axis, spec = _stacked(x.args[0]), dict(x.params)["spec"]
        back = [index.Slice(None, None, -1 if k == axis else None) for k in range(len(x.aval.shape))]
        if [*spec, *back[len(spec) :]] == back:
            return axis, x.args[0].args[::-1]
    return None, ()


def _stacked(x: Node) -> int:
    """The axis along which arrays were stacked."""
    return int(dict(x.params).get("axis", 0)) % len(x.aval.shape)


def _slice(s: Simplifier, x: Node, axis: int, k: int) -> Node:
    """``x[:, k]``, of what was concatenated of ``x[:, :1]`` and others the part itself."""
    if is_op(x, np.concatenate) and dict(x.params).get("axis", 0) == axis:
        for part in x.args:
            if k < part.aval.shape[axis]:
                return _slice(s, part, axis, k)
            k -= part.aval.shape[axis]
    if is_op(x, np.broadcast_to) and not x.args[0].aval.shape:
        shape = (*x.aval.shape[:axis], *x.aval.shape[axis + 1 :])
        return s.call(np.broadcast_to, x.args[0], shape=shape)
    whole = index.EVERY
    return s.call(index.GETITEM, x, spec=tuple([k if i == axis else whole for i in range(len(x.aval.shape))]))


def _is_one(x: Node) -> bool:
    return is_op(x, np.broadcast_to) and const(x.args[0]) == 1


@rewrite(np.matmul, rules=APART)
def few_rows_and_columns(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Products of many tiny matrices, or of such and vectors."""
    (a, *rest), (b, *others) = (arg.aval.shape for arg in args)
    stacks = len(rest) == len(others) == 2 and a == b >= 4 * MANY and max(*rest, *others) <= TINY and not node.params
    same = all(arg.aval.dtype == node.aval.dtype for arg in args) and node.aval.dtype.char in "fd"
    return s.graph.add(MATRICES, args, (), node.aval) if stacks and same and rest[1] > 0 else None


def _put_together(s: Simplifier, ufunc: np.ufunc, parts: list[Node]) -> Node:
    return functools.reduce(functools.partial(s.call, ufunc), parts)


_PAIRWISE = {np.sum: np.add, np.mean: np.add, np.max: np.maximum, np.min: np.minimum, np.prod: np.multiply}


# -- chains of elementwise operations -------------------------------------------------------------------------------


def _worth_moving(program: Program) -> set[Node]:
    """Elementwise results that are made of what can be moved, and only go where their place does not matter."""
    nodes = program.nodes()
    found: set[Node] = set()
    crossed: set[Node] = set()  # what is worth moving whatever it is made of, and wherever it goes
    for node in nodes:
        if not _is_short(node):
            continue
        if _is_cross(node) or (is_elementwise(node) and node.aval.shape[-1] <= COLUMNS and not crossed.isdisjoint(node.args)):
            crossed.add(node)
        if node in crossed or (is_elementwise(node) and all(arg in found or _can_move(arg, node) for arg in node.args)):
            found.add(node)
        if _adds_elements(node) and node.args[0] in found:
            found.add(node)
    if not found:
        return found
    roots = set(program.roots())
    readers: dict[Node, list[Node]] = {node: [] for node in found}
    for node in nodes:
        for arg in node.args:
            if arg in readers:
                readers[arg].append(node)
    waiting = [node for node in found if node in roots or not all(_takes_moved(reader, found) for reader in readers[node])]
    while waiting:  # what is not moved holds back what it is made of, and what is made of it
        node = waiting.pop()
        if node in found and node not in crossed:
            found.remove(node)
            waiting += [arg for arg in node.args if arg in found]
            waiting += [reader for reader in readers[node] if reader in found]
    return found


def _is_short(node: Node) -> bool:
    if not node.args or type(node.aval) is not Aval or len(node.aval.shape) < 2:
        return False
    shape: tuple[int, ...] = node.aval.shape
    return SHORT >= shape[-1] > 1 and math.prod(shape) >= LARGE


def _is_cross(node: Node) -> bool:
    return is_op(node, np.cross) and not node.params and all(arg.aval.dtype == node.aval.dtype for arg in node.args)


def _can_move(arg: Node, node: Node) -> bool:
    """Whether an argument that is not moved itself is a number, the same along the last axis, turned already, or small."""
    if type(arg.aval) is not Aval:
        return False
    shape = arg.aval.shape
    if not shape or shape[-1] == 1 or _is_turned(arg):
        return True
    return bool(4 * math.prod(shape) <= math.prod(node.aval.shape))


def _adds_elements(node: Node) -> bool:
    """Whether it adds to single elements, which index arrays name."""
    return node.op is index.INDEX_ADD and index.names_elements(dict(node.params)["spec"], len(node.aval.shape))


def _is_turned(node: Node) -> bool:
    return is_op(node, np.transpose) and len(node.aval.shape) == 2


def _takes_moved(node: Node, moved: set[Node]) -> bool:
    if node in moved or _element(node) is not None or _takes_elements(node):
        return True
    if node.op in _PRODUCTS and not node.params:  # BLAS takes matrices as they lie
        return all(len(arg.aval.shape) <= 2 for arg in node.args)
    return node.op in _REDUCTIONS and not node.exact and set(dict(node.params)) <= {"axis", "keepdims", "dtype"}


def _takes_elements(node: Node) -> bool:
    """Whether it reads single elements, which index arrays name."""
    return node.op is index.GETITEM and index.names_elements(dict(node.params)["spec"], len(node.args[0].aval.shape))


def _element(node: Node) -> int | None:
    """``k`` of ``x[..., k]``."""
    spec: tuple[Any, ...] = dict(node.params)["spec"] if node.op is index.GETITEM and len(node.args) == 1 else ()
    return spec[1] if len(spec) == 2 and spec[0] is Ellipsis and type(spec[1]) is int else None


class _Mover(Simplifier):
    """``front`` has, for each moved array as its readers had it, the array with the last axis first."""

    def __init__(self, program: Program, moved: set[Node]) -> None:
        super().__init__(program, {})
        self.moved = moved
        self.front: dict[Node, Node] = {}
        self.visited: Node | None = None

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        self.visited = node
        return super().visit(node, args)

    def make(self, op: Any, args: tuple[Node, ...], params: tuple[tuple[str, Any], ...] = (), aval: Any = None) -> Node:
        node = self.visited
        if node in self.moved and op is index.INDEX_ADD:
            spec = dict(params)["spec"]
            inner = (self._moved(args[0], len(aval.shape)), *args[1:])
            return self._back(self.graph.add(op, inner, (("spec", (spec[-1], *spec[:-1])),), _first(aval)), aval)
        if node in self.moved:
            inner = tuple([self._moved(arg, len(aval.shape)) for arg in args])
            op = CROSS if op.key is np.cross else op
            return self._back(self.graph.add(op, inner, params, _first(aval)), aval)
        if node is not None and args and args[0] in self.front:
            x = self.front[args[0]]
            k = _element(node)
            if k is not None:
                return self.graph.add(op, (x,), (("spec", (k % x.aval.shape[0],)),), aval)
            if _takes_elements(node):
                spec = dict(params)["spec"]
                return self.graph.add(op, (x, *args[1:]), (("spec", (spec[-1], *spec[:-1])),), aval)
            if op in _REDUCTIONS and not node.exact:
                return self._reduction(node, x)
        return super().make(op, args, params, aval)

    def _reduction(self, node: Node, x: Node) -> Node:
        ndim = len(x.aval.shape)
        axes = sorted([(axis + 1) % ndim for axis in reduced(node)])  # the last one is the first now
        params = dict(node.params) | {"axis": axes[0] if len(axes) == 1 else tuple(axes)}
        back = params.get("keepdims", False) or 0 not in axes
        aval = _first(node.aval) if back else node.aval
        new = self.graph.add(node.op, (x,), tuple(sorted(params.items())), aval)
        return self._back(new, node.aval) if back else new

    def _back(self, x: Node, aval: Aval) -> Node:
        """A moved array as its readers had it."""
        ndim = len(aval.shape)
        if ndim < 2:
            return x
        axes = () if ndim == 2 else (("axes", (*range(1, ndim), 0)),)
        view = self.graph.add(REGISTRY[np.transpose], (x,), axes, aval)
        self.front[view] = x
        return view

    def _moved(self, x: Node, ndim: int) -> Node:
        """An argument of what is moved: its last axis first, the others lined up at the end."""
        shape = x.aval.shape
        if not shape:
            return x
        if x in self.front:
            front = self.front[x]
        elif shape[-1] == 1:
            if is_op(x, np.expand_dims) and dict(x.params)["axis"] in (-1, len(shape) - 1):
                return x.args[0]
            spec = (("spec", (Ellipsis, 0)),)
            return self.graph.add(index.GETITEM, (x,), spec, Aval(shape[:-1], x.aval.dtype, x.aval.kind))
        elif _is_turned(x):
            front = x.args[0]
        else:
            front = x if len(shape) == 1 else self.graph.add(FRONT, (x,), (), _first(x.aval))
        missing = ndim - len(shape)
        if not missing:
            return front
        first, *rest = front.aval.shape
        place: Any = tuple(range(1, missing + 1)) if missing > 1 else 1
        aval = Aval((first, *[1] * missing, *rest), x.aval.dtype, x.aval.kind)
        return self.graph.add(REGISTRY[np.expand_dims], (front,), (("axis", place),), aval)


def _first(aval: Aval) -> Aval:
    """With the last axis first."""
    return aval._replace(shape=(*aval.shape[-1:], *aval.shape[:-1]))
