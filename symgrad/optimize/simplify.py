"""Algebra: a table of rewrites, each from one node (its arguments simplified already) to a better one or None.

A rewrite may reorder rounding, never change what is computed. New nodes learn their shape and dtype from NumPy, by running
the operation on stand-ins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Graph, Node, ancestors, aval_of
from symgrad.ops import create, engine
from symgrad.ops.core import REGISTRY, Op
from symgrad.program import Program

Rewrite = Callable[["Simplifier", Node, tuple[Node, ...]], "Node | None"]
RULES: dict[Any, list[Rewrite]] = {}


def rewrite(*keys: Any) -> Callable[[Rewrite], Rewrite]:
    """Put a rewrite into the table, for operations given by NumPy function or by op."""

    def register(rule: Rewrite) -> Rewrite:
        for key in keys:
            RULES.setdefault(key if isinstance(key, Op) else REGISTRY[key], []).append(rule)
        return rule

    return register


def simplify(program: Program) -> Program:
    """The same program, simplified."""
    return Simplifier(program).run()


class Simplifier:
    """One pass over a program: rebuilds its graph in order, every node through the table."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.graph = Graph()
        self.uses: dict[Node, int] = {}

    def run(self) -> Program:
        roots = self.program.roots()
        nodes = ancestors(roots)
        for node in nodes:
            for arg in node.args:
                self.uses[arg] = self.uses.get(arg, 0) + 1
        mapping: dict[Node, Node] = {}
        for node in nodes:
            mapping[node] = self.visit(node, tuple([mapping[arg] for arg in node.args]))
        return self.program.map(self.graph, mapping)

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        """The simplified form of ``node`` on simplified arguments."""
        if node.op is INPUT:
            new = self.graph.input(dict(node.params)["position"], node.aval)
        elif node.op is CONST:
            new = self.graph.const(dict(node.params)["value"])
        elif node.op is CAPTURED:
            new = self.graph.captured(self.program.graph.arrays[node])
        else:
            new = self.make(node.op, args, node.params, node.aval)
        new.active = new.active or node.active
        if new.name is None:
            new.name = node.name
        if new.line is None:
            new.line = node.line
        return new

    def make(self, op: Any, args: tuple[Node, ...], params: tuple[tuple[str, Any], ...] = (), aval: Any = None) -> Node:
        """The node of an operation, rewritten until no rule applies. Without ``aval``, NumPy tells it."""
        if aval is None:
            aval = infer(op, args, params)
        if args and all([arg.op is CONST for arg in args]):
            folded = self._fold(op, args, params)
            if folded is not None:
                return folded
        probe = Node(op, args, params, aval, -1, False)
        for rule in RULES.get(op, ()):
            better = rule(self, probe, args)
            if better is not None and compatible(better.aval, aval):
                return better
        if op.family == "elementwise":
            slim = _unbroadcast_arguments(self, probe, args)
            if slim is not None:
                return slim
        return self.graph.add(op, args, params, aval)

    def call(self, key: Any, *args: Any, **params: Any) -> Node:
        """``make`` by NumPy function, with plain numbers as arguments where wanted."""
        op = key if isinstance(key, Op) else REGISTRY[key]
        nodes = tuple([arg if isinstance(arg, Node) else self.graph.const(arg) for arg in args])
        return self.make(op, nodes, tuple(sorted(params.items())))

    def _fold(self, op: Any, args: tuple[Node, ...], params: tuple[tuple[str, Any], ...]) -> Node | None:
        try:
            with np.errstate(all="ignore"):
                value = op.fun(*[const(arg) for arg in args], **dict(params))
        except (ArithmeticError, ValueError, TypeError):
            return None
        return self.graph.const(value) if isinstance(value, (int, float, complex, np.generic)) else None


def compatible(new: Any, old: Any) -> bool:
    """Whether a rewritten node may stand in for another: same shape and dtype, and no array where a number was."""
    if not isinstance(old, Aval) or not isinstance(new, Aval):
        return bool(new == old)
    return new.shape == old.shape and (new.dtype == old.dtype) and (new.kind == old.kind or not old.shape)


def infer(op: Any, args: Sequence[Node], params: tuple[tuple[str, Any], ...]) -> Any:
    """Shape, dtype and kind of an operation's result, from a run on ones."""
    with np.errstate(all="ignore"):
        return aval_of(op.fun(*[_stand_in(arg) for arg in args], **dict(params)))


def _stand_in(node: Node) -> Any:
    if node.op is CONST:
        return const(node)
    aval = node.aval
    one = aval.dtype.type(1)
    if aval.kind == "array":
        return np.broadcast_to(one, aval.shape)
    return one if aval.kind == "scalar" else one.item()


def const(node: Node) -> Any:
    """The number that a constant node is; None for other nodes."""
    return dict(node.params)["value"] if node.op is CONST else None


def is_number(node: Node, value: float) -> bool:
    """Whether a node is this very number (``-0.0`` is not ``0.0``)."""
    number = const(node)
    return number is not None and number == value and (value != 0 or math.copysign(1.0, number.real) > 0)


def is_op(node: Node, key: Any) -> bool:
    """Whether a node is an operation of this NumPy function or op."""
    return node.op is (key if isinstance(key, Op) else REGISTRY[key])


# -- broadcasting --------------------------------------------------------------------------------------------------


def _unbroadcast_arguments(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Elementwise operations broadcast anyway: take explicit broadcasts off their arguments."""
    if len(args) < 2:
        if args and is_op(args[0], np.broadcast_to) and node.aval.kind == "array":
            inner = s.make(node.op, args[0].args, node.params)
            return s.make(REGISTRY[np.broadcast_to], (inner,), args[0].params, node.aval)
        return None
    bare = tuple([arg.args[0] if is_op(arg, np.broadcast_to) else arg for arg in args])
    if bare == args:
        return None
    for i, arg in enumerate(bare):  # an np.float64 beside float32 arrays is not weak, as the broadcast array was not
        if args[i] is not arg and arg.aval.dtype != args[i].aval.dtype:
            return None
    inner = s.make(node.op, bare, node.params)
    if inner.aval.dtype != node.aval.dtype:
        return None
    if inner.aval.shape == node.aval.shape:
        return inner
    return s.make(REGISTRY[np.broadcast_to], (inner,), (("shape", node.aval.shape),), node.aval)


# -- the table -----------------------------------------------------------------------------------------------------


@rewrite(engine.IDENTITY, engine.STOP)
def identity(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0]


@rewrite(engine.ASTYPE)
def cast_to_same(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0] if args[0].aval.dtype == node.aval.dtype and args[0].aval.kind == node.aval.kind else None


@rewrite(np.add)
def add(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_number(a, 0.0):
        return b
    if is_number(b, 0.0):
        return a
    if is_op(b, np.negative):
        return s.call(np.subtract, a, b.args[0])
    if is_op(a, np.negative):
        return s.call(np.subtract, b, a.args[0])
    return None


@rewrite(np.subtract)
def subtract(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_number(b, 0.0):
        return a
    if is_number(a, 0.0):
        return s.call(np.negative, b)
    if is_op(b, np.negative):
        return s.call(np.add, a, b.args[0])
    return None


@rewrite(np.multiply)
def multiply(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    for x, y in ((a, b), (b, a)):
        if is_number(x, 1.0):
            return y
        if is_number(x, -1.0):
            return s.call(np.negative, y)
        if is_op(x, np.negative):
            return s.call(np.negative, s.call(np.multiply, *((x.args[0], y) if x is a else (y, x.args[0]))))
    return None


@rewrite(np.true_divide)
def divide(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_number(b, 1.0):
        return a
    if is_op(a, np.negative):
        return s.call(np.negative, s.call(np.true_divide, a.args[0], b))
    return None


@rewrite(np.negative)
def negative(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    (x,) = args
    if is_op(x, np.negative):
        return x.args[0]
    if is_op(x, np.subtract):
        return s.call(np.subtract, x.args[1], x.args[0])
    return None


@rewrite(np.power)
def power(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    x, y = args
    return x if is_number(y, 1.0) else None


@rewrite(np.transpose)
def transpose(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    (x,) = args
    if is_op(x, np.transpose) and not x.params and not node.params:
        return x.args[0]
    return x if not x.aval.shape or len(x.aval.shape) == 1 else None


@rewrite(np.reshape, np.broadcast_to)
def same_shape(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    (x,) = args
    if x.aval.shape == node.aval.shape and x.aval.kind == "array":
        return x
    if x.op is node.op and node.op is REGISTRY[np.reshape] and "order" not in dict(node.params + x.params):
        return s.make(node.op, x.args, node.params, node.aval)
    if x.op is node.op and node.op is REGISTRY[np.broadcast_to]:
        return s.make(node.op, x.args, node.params, node.aval)
    return None


@rewrite(create.FULL)
def full(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    dtype = dict(node.params)["dtype"]
    number = const(args[0])
    if number is not None and args[0].aval.dtype != dtype:
        args = (s.graph.const(dtype.type(number)),)
    if args[0].aval.dtype != dtype:
        return None
    return s.make(REGISTRY[np.broadcast_to], args, (("shape", node.aval.shape),), node.aval)
