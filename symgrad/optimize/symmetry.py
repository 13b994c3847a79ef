"""Matrices that are symmetric by the way they are made, as matrices of kernels, of distances and ``x @ x.T`` are."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, Graph, Node
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.engine import ASTYPE
from symgrad.ops.linalg import OF_TRIANGLE
from symgrad.optimize.rewriting import Rewrite, Simplifier, is_op, rewrite

SYMMETRY: dict[Any, list[Rewrite]] = {}

_COMMUTING = {REGISTRY[f] for f in (np.add, np.multiply, np.maximum, np.minimum, np.hypot)}
_EVEN = {REGISTRY[f] for f in (np.square, np.abs, np.cos, np.cosh)}
_PRODUCTS = {REGISTRY[np.matmul], REGISTRY[np.dot]}
_SUMS = {REGISTRY[np.sum], REGISTRY[np.mean]}
_MOST = 200  # pairs of values that are looked at


def is_symmetric(graph: Graph, a: Node) -> bool:
    """Whether a real matrix is its transpose, whatever it is made of."""
    square = len(a.aval.shape) == 2 and a.aval.shape[0] == a.aval.shape[1] and a.aval.dtype.kind == "f"
    return square and _Symmetry(graph).turned(a, a, (-1, -2))


@rewrite(OF_TRIANGLE, rules=SYMMETRY)
def of_all(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The cotangent of a symmetric matrix is not one of a triangle."""
    return args[0] if is_symmetric(s.graph, args[1]) else None


class _Symmetry:
    """What is looked at for one matrix."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: dict[Any, bool] = {}

    def turned(self, a: Node, b: Node, axes: tuple[int, int]) -> bool:
        """Whether ``b`` is ``a`` with two of its axes, counted from the end, in each other's place."""
        key = a, b, axes
        if key not in self.known:
            self.known[key] = False  # where it comes to be asked for itself
            self.known[key] = len(self.known) < _MOST and self._turned(a, b, axes)
        return self.known[key]

    def _turned(self, a: Node, b: Node, axes: tuple[int, int]) -> bool:
        if a is b and (min(axes) < -len(a.aval.shape) or a.op is CONST):
            return not any([axis >= -len(a.aval.shape) and a.aval.shape[axis] > 1 for axis in axes])
        matrices = axes == (-1, -2) and len(a.aval.shape) == len(b.aval.shape) == 2
        if matrices and (_transpose_of(a) is b or _transpose_of(b) is a):
            return True
        if a.op is CAPTURED:
            value = self.graph.arrays[a]
            return a is b and value.ndim == 2 and matrices and np.array_equal(value, value.T)
        if a.op is create.EYE:
            return a is b
        if _source(a) is _source(b) and a is not b:
            one, other = (a, b) if len(a.aval.shape) >= len(b.aval.shape) else (b, a)
            return _turned_shape(one.aval.shape, axes) == _padded(other.aval.shape, one.aval.shape)
        if a.op is not b.op or a.params != b.params or not isinstance(a.op, Op):
            return False
        if a.op in _EVEN or (is_op(a, np.power) and a.args[1] is b.args[1] and _is_even(a.args[1])):
            return self.turned(a.args[0], b.args[0], axes) or self._against(a.args[0], b.args[0], axes)
        if is_op(a, np.multiply) and a.args[0] is a.args[1] and b.args[0] is b.args[1]:
            return self.turned(a.args[0], b.args[0], axes) or self._against(a.args[0], b.args[0], axes)
        if is_op(a, np.diag):
            return a is b and matrices and not a.params
        if is_op(a, np.outer):
            return a.args == b.args[::-1]
        if a.op in _PRODUCTS and matrices and all([len(arg.aval.shape) == 2 for arg in (*a.args, *b.args)]):
            if a is b:
                return self.turned(_unscaled(a.args[0]), _unscaled(a.args[1]), axes)
            return self.turned(a.args[0], b.args[1], axes) and self.turned(a.args[1], b.args[0], axes)
        if a.op in _SUMS and dict(a.params) in ({"axis": -1}, {"axis": len(a.args[0].aval.shape) - 1}):
            return self.turned(a.args[0], b.args[0], (axes[0] - 1, axes[1] - 1))
        if a.op is ASTYPE or (a.op.family == "elementwise" and isinstance(a.op.key, np.ufunc)):
            if all([self.turned(x, y, axes) for x, y in zip(a.args, b.args, strict=True)]):
                return True
            return a.op in _COMMUTING and all([self.turned(x, y, axes) for x, y in zip(a.args, b.args[::-1], strict=True)])
        return False

    def _against(self, a: Node, b: Node, axes: tuple[int, int]) -> bool:
        """Whether ``b`` is that with another sign."""
        if a.op is not b.op or len(a.args) != 2:
            return False
        (x, y), (v, w) = a.args, b.args
        if is_op(a, np.subtract):
            return self.turned(x, w, axes) and self.turned(y, v, axes)
        if is_op(a, np.multiply) and self.turned(x, v, axes) and self._against(y, w, axes):
            return True
        scaled = is_op(a, np.multiply) or is_op(a, np.true_divide)
        return scaled and self.turned(y, w, axes) and self._against(x, v, axes)


def _transpose_of(node: Node) -> Node | None:
    return node.args[0] if is_op(node, np.transpose) and not node.params else None


def _source(node: Node) -> Node:
    """What a value is, but for axes of one element."""
    while is_op(node, np.expand_dims) or (
        node.op is index.GETITEM and all([part is None or part == index.EVERY for part in dict(node.params)["spec"]])
    ):
        node = node.args[0]
    return node


def _turned_shape(shape: tuple[int, ...], axes: tuple[int, int]) -> tuple[int, ...] | None:
    """The shape with two axes in each other's place, if one of those is of one element, so that none changes its place."""
    if min(axes) < -len(shape) or 1 not in [shape[axis] for axis in axes]:
        return None
    turned = list(shape)
    turned[axes[0]], turned[axes[1]] = shape[axes[1]], shape[axes[0]]
    return tuple(turned)


def _unscaled(node: Node) -> Node:
    """What a number is multiplied by."""
    while is_op(node, np.multiply) and (numbers := [arg for arg in node.args if not arg.aval.shape]):
        node = node.args[0] if numbers[0] is node.args[1] else node.args[1]
    return node


def _padded(shape: tuple[int, ...], like: tuple[int, ...]) -> tuple[int, ...]:
    return (*[1] * (len(like) - len(shape)), *shape)


def _is_even(exponent: Node) -> bool:
    return exponent.op is CONST and dict(exponent.params)["value"] % 2 == 0
