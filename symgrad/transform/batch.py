"""Batching: the nodes that depend on some inputs, rewritten for inputs with one more axis in front.

Elementwise operations and everything with an ``axis`` batch by NumPy's own broadcasting; a table holds the others. What is
in no table runs once for each element of the batch, which is slower and never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir import Aval, Node
from symgrad.ops import create, engine, index
from symgrad.ops.core import REGISTRY, Op
from symgrad.trace import Trace, Tracer

Rule = Callable[["Batch", Node, "list[Any]", "list[bool]"], Any]
RULES: dict[Any, Rule] = {}


class Batch:
    """One batching: the trace, and how long the new axis is."""

    def __init__(self, trace: Trace, size: int) -> None:
        self.trace, self.size = trace, size

    def run(self, order: Sequence[Node], batched: dict[Node, Any]) -> dict[Node, Any]:
        """Batched values for the nodes in ``order`` that depend on ``batched``; these are taken into ``batched``."""
        for node in order:
            if node in batched or not any(arg in batched for arg in node.args):
                continue
            flags = [arg in batched for arg in node.args]
            args = [batched[arg] if arg in batched else self.trace.lookup(arg) for arg in node.args]
            rule = RULES.get(node.op)
            if rule is None and node.op.family in ("elementwise", "constant") and isinstance(node.aval, Aval):
                rule = elementwise
            result = None if rule is None else rule(self, node, args, flags)
            batched[node] = loop(self, node, args, flags) if result is None else result
        return batched

    def full(self, value: Any, flag: bool) -> Any:
        """``value`` with the batch axis, made by broadcasting where it has none."""
        return value if flag else np.broadcast_to(value, (self.size, *np.shape(value)))


def _rule(*keys: Any) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for key in keys:
            RULES[key if isinstance(key, Op) else REGISTRY[key]] = rule
        return rule

    return register


def loop(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """One element of the batch after the other."""
    params = dict(node.params)
    rows = []
    for i in range(b.size):
        rows.append(b.trace.record(node.op, [a[i] if flag else a for a, flag in zip(args, flags, strict=True)], params))
    if not rows:
        none = [np.zeros((0, *aval.shape), aval.dtype) for aval in _avals(node)]
        return none[0] if isinstance(node.aval, Aval) else tuple(none)
    if isinstance(node.aval, Aval):
        return np.stack(rows)
    return tuple(np.stack([row[j] for row in rows]) for j in range(len(node.aval)))


def _avals(node: Node) -> Sequence[Aval]:
    return [node.aval] if isinstance(node.aval, Aval) else node.aval


def elementwise(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """The operation itself, the batch axis in front of what the others broadcast to."""
    ndim = len(node.aval.shape)
    lined = [_line_up(a, len(n.aval.shape), ndim) if f else a for a, n, f in zip(args, node.args, flags, strict=True)]
    return b.trace.record(node.op, lined, dict(node.params))


def _line_up(a: Any, have: int, want: int) -> Any:
    """A batched array whose elements have ``have`` axes, with ones put in (or left out) so that they have ``want``."""
    if have > want:
        return np.reshape(a, (len(a), *np.shape(a)[1 + have - want :]))
    return a if have == want else np.expand_dims(a, tuple(range(1, 1 + want - have)))


def _shift(axis: Any, ndim: int) -> Any:
    """An axis of an element, as an axis of the batch."""
    if isinstance(axis, (tuple, list, range)):
        return tuple(_shift(i, ndim) for i in axis)
    return axis % ndim + 1 if ndim else 1


@_rule(engine.IDENTITY, engine.STOP, engine.TO_PYTHON, engine.TO_NUMPY, engine.TO_ARRAY)
def same(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    return args[0]


@_rule(engine.ASTYPE)
def astype(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    return args[0].astype(node.aval.dtype)


@_rule(engine.ITEM)
def item(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    return args[0][dict(node.params)["item"]]


@_rule(np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std)
def reduction(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    params = dict(node.params)
    ndim = len(node.args[0].aval.shape)
    axis = params.pop("axis", None)
    axis = tuple(range(1, ndim + 1)) if axis is None or not ndim else _shift(axis, ndim)
    return b.trace.record(node.op, args, {**params, "axis": axis})


@_rule(np.cumsum, np.flip, np.squeeze, np.roll)
def along_axis(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    params = dict(node.params)
    ndim = len(node.args[0].aval.shape)
    axis = params.get("axis")
    if not ndim or (axis is None and node.op is REGISTRY[np.squeeze]):
        return np.reshape(args[0], (b.size, *node.aval.shape))
    if axis is None and ndim == 1:
        axis = 0
    if axis is None:
        return None
    return b.trace.record(node.op, args, {**params, "axis": _shift(axis, ndim)})


@_rule(np.expand_dims, np.reshape, np.ravel)
def reshape(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    if "order" in dict(node.params):
        return None
    return np.reshape(args[0], (b.size, *node.aval.shape))


@_rule(np.broadcast_to)
def broadcast_to(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    lined = _line_up(args[0], len(node.args[0].aval.shape), len(node.aval.shape))
    return np.broadcast_to(lined, (b.size, *node.aval.shape))


@_rule(create.FULL)
def full(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    column = np.reshape(args[0], (b.size,) + (1,) * len(node.aval.shape))
    return np.broadcast_to(column, (b.size, *node.aval.shape)).astype(node.aval.dtype)


@_rule(np.transpose)
def transpose(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    ndim = len(node.aval.shape)
    axes = dict(node.params).get("axes") or tuple(reversed(range(ndim)))
    return np.transpose(args[0], (0, *_shift(axes, ndim)))


@_rule(np.swapaxes)
def swapaxes(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    params, ndim = dict(node.params), len(node.aval.shape)
    return np.swapaxes(args[0], _shift(params["axis1"], ndim), _shift(params["axis2"], ndim))


@_rule(np.moveaxis)
def moveaxis(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    params, ndim = dict(node.params), len(node.aval.shape)
    return np.moveaxis(args[0], _shift(params["source"], ndim), _shift(params["destination"], ndim))


@_rule(np.concatenate, np.stack)
def join(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    params, ndim = dict(node.params), len(node.aval.shape)
    axis = params.get("axis", 0)
    if axis is None:
        return None
    whole = [b.full(a, flag) for a, flag in zip(args, flags, strict=True)]
    return b.trace.record(node.op, whole, {**params, "axis": _shift(axis, ndim)})


@_rule(index.GETITEM, index.SCATTER, index.SETITEM, index.INDEX_ADD)
def indexing(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    params = dict(node.params)
    arrays = {index.GETITEM: 1, index.SCATTER: 1, index.SETITEM: 2, index.INDEX_ADD: 2}[node.op]
    spec = params["spec"]
    if any(flags[arrays:]) or _splits(spec):
        return None
    params["spec"] = (index.Slice(None, None, None), *spec)
    if node.op is index.SCATTER:
        params["shape"] = (b.size, *params["shape"])
    elif node.op is not index.GETITEM:
        picked = np.ndim(np.empty(node.args[0].aval.shape)[index.fill(spec, [b.trace.values[n] for n in node.args[2:]])])
        args = [b.full(args[0], flags[0]), args[1], *args[2:]]
        if flags[1]:
            args[1] = _line_up(args[1], len(node.args[1].aval.shape), picked)
    return b.trace.record(node.op, args, params)


def _splits(spec: index.Spec) -> bool:
    """Whether NumPy would put the axes of index arrays in front: they are apart, or an integer is among them."""
    advanced = [i for i, part in enumerate(spec) if type(part) is index.Hole or type(part) is int]
    holes = any(type(part) is index.Hole for part in spec)
    return holes and advanced != list(range(advanced[0], advanced[-1] + 1))


@_rule(np.matmul)
def matmul(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    (x, y), (fx, fy) = args, flags
    dx, dy = (len(n.aval.shape) for n in node.args)
    if dx == 1 and dy == 1:
        return np.sum(x * y, axis=1) if fx and fy else x @ y if fx else y @ x
    if fx and fy:
        if dx == 1:
            return (x[:, None, :] @ _line_up(y, dy, max(dy, 2)))[..., 0, :] if dy == 2 else None
        if dy == 1:
            return (x @ y[:, :, None])[..., 0] if dx == 2 else None
        ndim = max(dx, dy)
        return _line_up(x, dx, ndim) @ _line_up(y, dy, ndim)
    if fx:
        if dx == 1:
            return x @ y if dy == 2 else None
        return x @ y if dy <= 2 else _line_up(x, dx, max(dx, dy)) @ y
    if dy == 1:
        return y @ np.transpose(x) if dx == 2 else None
    return x @ y if dx <= 2 else x @ _line_up(y, dy, max(dx, dy))


@_rule(np.dot)
def dot(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    if all(len(n.aval.shape) in (1, 2) for n in node.args):
        return matmul(b, node, args, flags)
    return None


@_rule(np.outer)
def outer(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    if any(len(n.aval.shape) != 1 for n in node.args):
        return None
    return np.expand_dims(args[0], -1) * np.expand_dims(args[1], -2)


@_rule(np.einsum)
def einsum(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    subscripts = dict(node.params)["subscripts"]
    if "..." in subscripts or "->" not in subscripts:
        return None
    letter = next(c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in subscripts)
    inputs, output = subscripts.replace(" ", "").split("->")
    parts = [letter + part if flag else part for part, flag in zip(inputs.split(","), flags, strict=True)]
    return np.einsum(f"{','.join(parts)}->{letter}{output}", *args)


@_rule(np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.tril, np.triu)
def stacked(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    if len(node.args[0].aval.shape) < 2:  # np.tril makes a matrix of a vector
        return None
    return b.trace.record(node.op, args, dict(node.params))


@_rule(np.linalg.solve)
def solve(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    (x, y), (fx, fy) = args, flags
    if len(node.args[0].aval.shape) != 2 or len(node.args[1].aval.shape) > 2:
        return None
    if len(node.args[1].aval.shape) == 1:
        if not fx:
            return np.linalg.solve(x, np.transpose(y)).T
        return np.linalg.solve(x, np.expand_dims(b.full(y, fy), -1))[..., 0]
    return np.linalg.solve(x, y)


def batch(trace: Trace, order: Sequence[Node], inputs: dict[Node, Tracer], size: int) -> dict[Node, Any]:
    """Batched values of the nodes in ``order``, given batched ``inputs``; nodes that do not depend on them are left out."""
    return Batch(trace, size).run(order, dict(inputs))
