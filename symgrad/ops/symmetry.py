"""Matrices that are symmetric by the way they are made, as matrices of kernels, of distances and ``x @ x.T`` are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Node
from symgrad.ops import create, index
from symgrad.ops.core import ASTYPE, Op
from symgrad.ops.engine import IDENTITY

_COMMUTING = (np.add, np.multiply, np.maximum, np.minimum, np.hypot)
_EVEN = (np.square, np.abs, np.cos, np.cosh)
MADE_SO: set[Op] = set()  # operations whose results are symmetric, whatever they are made of
_MOST = 200  # pairs of values that are looked at
Axes = tuple[int, int]  # two, counted from the end


def is_symmetric(a: Node, content: Callable[[Node], Any], inputs: bool = False) -> bool:
    """Whether a real matrix is its transpose, whatever it is made of; if those that are ``inputs`` are, where that is asked.

    ``content`` gives captured arrays.
    """
    square = len(a.aval.shape) == 2 and a.aval.shape[0] == a.aval.shape[1] and a.aval.dtype.kind == "f"
    return square and _Symmetry(content, inputs).turned(a, a, (-1, -2))


class _Symmetry:
    """What is looked at for one matrix."""

    def __init__(self, content: Callable[[Node], Any], inputs: bool) -> None:
        self.content, self.inputs = content, inputs
        self.known: dict[Any, bool] = {}

    def turned(self, a: Node, b: Node, axes: Axes) -> bool:
        """Whether ``b`` is ``a`` with two axes in each other's place."""
        key = a, b, axes
        if key not in self.known:
            self.known[key] = False  # where it comes to be asked for itself
            self.known[key] = len(self.known) < _MOST and self._turned(a, b, axes)
        return self.known[key]

    def _turned(self, a: Node, b: Node, axes: Axes) -> bool:
        if a.op is IDENTITY or b.op is IDENTITY:
            return self.turned(a.args[0] if a.op is IDENTITY else a, b.args[0] if b.op is IDENTITY else b, axes)
        if a is b and (min(axes) < -len(a.aval.shape) or a.op is CONST):
            return not any([axis >= -len(a.aval.shape) and a.aval.shape[axis] > 1 for axis in axes])
        matrices = axes == (-1, -2) and len(a.aval.shape) == len(b.aval.shape) == 2
        if matrices and (_transpose_of(a) is b or _transpose_of(b) is a):
            return True
        if a is b and matrices and a.op in MADE_SO:
            return True
        if a is b and matrices and (a.op in (INPUT, CAPTURED, create.EYE) or _is_part_of_input(a)):
            return self._is_symmetric(a)
        if _source(a) is _source(b) and a is not b:
            one, other = (a, b) if len(a.aval.shape) >= len(b.aval.shape) else (b, a)
            return _turned_shape(one.aval.shape, axes) == _padded(other.aval.shape, one.aval.shape)
        if a.op is not b.op or a.params != b.params or not isinstance(a.op, Op):
            return False
        key = a.op.key
        if matrices and key is np.transpose and not a.params:
            return self.turned(a.args[0], b.args[0], axes)
        if matrices and key is np.diag:
            return a is b and not a.params
        if matrices and key is np.outer:
            return a.args == b.args[::-1]
        if matrices and key in (np.matmul, np.dot) and all([len(arg.aval.shape) == 2 for arg in (*a.args, *b.args)]):
            if a is b:
                return self.turned(_unscaled(a.args[0]), _unscaled(a.args[1]), axes)
            return self.turned(a.args[0], b.args[1], axes) and self.turned(a.args[1], b.args[0], axes)
        if key in (np.sum, np.mean) and dict(a.params) in ({"axis": -1}, {"axis": len(a.args[0].aval.shape) - 1}):
            return self.turned(a.args[0], b.args[0], (axes[0] - 1, axes[1] - 1))
        if a.op is not ASTYPE and not (a.op.family == "elementwise" and isinstance(key, np.ufunc)):
            return False
        alike = _is_even(a) and _is_even(b) and (key is not np.power or a.args[1] is b.args[1])
        if alike and self._against(a.args[0], b.args[0], axes):
            return True
        if all([self.turned(x, y, axes) for x, y in zip(a.args, b.args, strict=True)]):
            return True
        return key in _COMMUTING and all([self.turned(x, y, axes) for x, y in zip(a.args, b.args[::-1], strict=True)])

    def _is_symmetric(self, a: Node) -> bool:
        """Whether a matrix is symmetric that is made of nothing."""
        if a.op is CAPTURED:
            value = self.content(a)
            return value.shape[0] == value.shape[1] and bool(np.array_equal(value, value.T))
        return a.op is create.EYE or (self.inputs and a.aval.shape[0] == a.aval.shape[1])

    def _against(self, a: Node, b: Node, axes: Axes) -> bool:
        """Whether ``b`` is that with another sign."""
        key = _key(a)
        if a.op is not b.op or key not in (np.subtract, np.multiply, np.true_divide):
            return False
        (x, y), (v, w) = a.args, b.args
        if key is np.subtract:
            return self.turned(x, w, axes) and self.turned(y, v, axes)
        if self.turned(y, w, axes) and self._against(x, v, axes):
            return True
        return key is np.multiply and self.turned(x, v, axes) and self._against(y, w, axes)


def _is_part_of_input(node: Node) -> bool:
    """Whether it is one of several matrices that are given."""
    while node.op in (index.GETITEM, IDENTITY) or _key(node) in (np.transpose, np.moveaxis, np.swapaxes):
        node = node.args[0]
    return node.op is INPUT and len(node.aval.shape) > 2


def _key(node: Node) -> Any:
    """The function of NumPy's that an operation is."""
    return node.op.key if isinstance(node.op, Op) else None


def _transpose_of(node: Node) -> Node | None:
    return node.args[0] if _key(node) is np.transpose and not node.params else None


def _source(node: Node) -> Node:
    """What a value is, but for axes of one element."""
    while _key(node) is np.expand_dims or (
        node.op is index.GETITEM and all([part is None or part == index.EVERY for part in dict(node.params)["spec"]])
    ):
        node = node.args[0]
    return node


def _turned_shape(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...] | None:
    """The shape with two axes in each other's place, if one of those is of one element, so that none changes its place."""
    if min(axes) < -len(shape) or 1 not in [shape[axis] for axis in axes]:
        return None
    turned = list(shape)
    turned[axes[0]], turned[axes[1]] = shape[axes[1]], shape[axes[0]]
    return tuple(turned)


def _unscaled(node: Node) -> Node:
    """What a number is multiplied by."""
    while _key(node) is np.multiply and (numbers := [arg for arg in node.args if not arg.aval.shape]):
        node = node.args[0] if numbers[0] is node.args[1] else node.args[1]
    return node


def _padded(shape: tuple[int, ...], like: tuple[int, ...]) -> tuple[int, ...]:
    return (*[1] * (len(like) - len(shape)), *shape)


def _is_even(node: Node) -> bool:
    """Whether it is the same of its first argument and of that with another sign."""
    key = _key(node)
    if key is np.power and node.args[1].op is CONST:
        return bool(dict(node.args[1].params)["value"] % 2 == 0)
    return key in _EVEN or (key is np.multiply and node.args[0] is node.args[1])
