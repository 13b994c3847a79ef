"""Forward mode: from the tangents of inputs to the tangents of outputs, by the rules of reverse mode."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from symgrad.ir import CONST, Aval, Node
from symgrad.ops.core import REGISTRY, fit
from symgrad.ops.engine import ITEM
from symgrad.ops.index import GETITEM, SETITEM
from symgrad.ops.reduction import ROOT
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.lanes import mask_like, moving, select, wild
from symgrad.transform.reverse import floor_of, in_numpys, path, reverse, tuple_of


def forward(trace: Trace, outputs: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Any]) -> list[Any | None]:
    """The tangents of ``outputs``, given those of ``wrt``; ``None`` where nothing flows. Writes nodes into the trace."""
    starts = set(wrt)
    known: dict[Node, Any] = {node: t for node, t in zip(wrt, tangents, strict=True) if t is not None}
    order = path(outputs, wrt)
    unsure, steep = wild(outputs, order, floor_of(wrt)) if trace.double_where else (set[Node](), False)
    trace.masked = trace.masked or bool(unsure)
    outer = trace.line, trace.phase
    trace.phase = "tangents"
    live: dict[Node, Any] = {}
    last = {arg: node for node in order for arg in _read_by(node)}  # who reads a tangent last
    last |= dict.fromkeys(outputs)  # type: ignore[arg-type]
    try:
        for node in order:
            if node not in known and any(arg in known for arg in node.args):
                trace.line = node.line
                with np.errstate(divide="ignore", invalid="ignore") if unsure else nullcontext():  # of what masks hide, too
                    t = tangent(trace, node, known, unsure, live if steep else None, starts)
                if t is not None:
                    known[node] = t
                    _name(node, t)
            for arg in _read_by(node):
                if last[arg] is node and known.pop(arg, None) is not None and trace.lean:
                    trace.release(arg)
    finally:
        trace.line, trace.phase = outer
    return [known.get(node) for node in outputs]


def tangent(
    trace: Trace, node: Node, known: dict[Node, Any], unsure: set[Node], live: dict[Node, Any] | None, starts: set[Node]
) -> Any:
    """The tangent of one node, from those of its arguments; those of ``unsure`` nodes may be infinite or NaN, those of
    ``starts`` are not made of others.

    ``live`` are the masks of where tangents may be other than zero, after choices, if they are wanted; the node's own is added.

    Of several results a tuple: None for what has none, a function for what is to be made only where it is needed.
    """
    op, params = node.op, dict(node.params)
    if op is ITEM:
        part = known[node.args[0]][params["item"]]
        return part() if callable(part) else part
    active = [i for i, arg in enumerate(node.args) if arg in known and op.differentiable(i)]
    if not active:
        return None
    root = _root_of(node)
    if root in known and root not in unsure and root not in starts:
        if live is not None and root in live:
            live[node] = live[root]
        return _of_square(trace, node, known)
    args = [trace.lookup(arg) for arg in node.args]
    ts = [known.get(arg) if i in active else None for i, arg in enumerate(node.args)]
    y = tuple_of(node, trace.lookup) if not isinstance(node.aval, Aval) else trace.lookup(node)
    if op.chooses and op.family == "elementwise":
        ts = [select(node, i, t, y, args) if t is not None and node.args[i] in unsure else t for i, t in enumerate(ts)]
    if op.jvp is not None:
        return op.jvp(ts, y, *args, **params)
    if op.family == "linear":
        if live is not None:
            mask = _moved(node, active, args, live)
            if mask is not None:
                live[node] = mask
        moved = [
            (ts[i] if i in active else zeros(trace, arg.aval)) if op.differentiable(i) else args[i]
            for i, arg in enumerate(node.args)
        ]
        return trace.record(op, moved, params)
    if op.family == "multilinear":
        parts = [trace.record(op, [ts[i] if i == j else arg for j, arg in enumerate(args)], params) for i in active]
    elif op.family == "elementwise":
        parts = [_elementwise(op, i, ts[i], y, args, params) for i in active]
        if live is not None:
            masks = [live.get(node.args[i]) for i in active]
            if node in unsure:
                parts = [p if m is None or p is None else np.where(m, p, 0) for m, p in zip(masks, parts, strict=True)]
            mask = moving(node, active, masks, y, args)
            if mask is not None:
                live[node] = mask
    else:
        return _transposed(trace, node, active, ts)
    parts = [part for part in parts if part is not None]
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return fit(total, node.aval)


def _root_of(node: Node) -> Node | None:
    """Of what a node is the square, if that is smooth where its root is not."""
    if node.op not in (_SQUARE, _MULTIPLY, _POWER) or node.args[0].op not in _ROOTS:
        return None
    root, *others = node.args
    two = node.op is _POWER and others[0].op is CONST and dict(others[0].params)["value"] == 2
    squared = node.op is _SQUARE or two or (node.op is _MULTIPLY and others == [root])
    complex = any([arg.aval.dtype.kind == "c" for arg in root.args])  # whose rules are not of a product with the tangent
    return root if squared and not complex and dict(root.params).get("ord") in (None, 2, "fro", "f") else None


def _read_by(node: Node) -> Sequence[Node]:
    """Whose tangents that of a node is made of."""
    root = _root_of(node)
    return node.args if root is None else (*node.args, *root.args)


def _of_square(trace: Trace, node: Node, known: dict[Node, Any]) -> Any:
    """The tangent of a root's square, which the root's own has not at zero: by its rule for a multiple of the root."""
    root = node.args[0]
    active = [i for i, arg in enumerate(root.args) if arg in known and root.op.differentiable(i)]
    y, args, params = trace.lookup(root), [trace.lookup(arg) for arg in root.args], dict(root.params)
    if root.op.family != "elementwise":
        half = _transposed(trace, root, active, [known.get(arg) for arg in root.args], y)
    else:
        half = sum([root.op.vjp(i, known[root.args[i]] * y, y, args, params) for i in active])
    return fit(2 * half, node.aval)


_SQUARE, _MULTIPLY, _POWER = REGISTRY[np.square], REGISTRY[np.multiply], REGISTRY[np.power]
_ROOTS = (ROOT, *[REGISTRY[fun] for fun in (np.absolute, np.hypot, np.linalg.norm, np.std)])


def _moved(node: Node, active: list[int], args: list[Any], live: dict[Node, Any]) -> Any:
    """Where the tangent of what an operation moves, or writes into, may be other than zero; None: anywhere."""
    (base, *_), op, params = node.args, node.op, dict(node.params)
    if op is SETITEM and active == [0]:  # a constant is written
        somewhere = np.broadcast_to(live[base], base.aval.shape) if base in live else mask_like(args[0], True)
        return op(somewhere, False, *args[2:], **params)
    if base not in live or (len(args) > 1 and op is not GETITEM):
        return None
    lane = op.lanes_of(0)
    if lane == "same":
        return live[base]
    if lane != "moved" and op is not GETITEM:
        return None
    return op(np.broadcast_to(live[base], base.aval.shape), *args[1:], **params)


def _elementwise(op: Any, i: int, t: Any, y: Any, args: list[Any], params: dict[str, Any]) -> Any:
    try:
        return op.vjp(i, t, y, args, params)
    except (ZeroDivisionError, OverflowError):
        return op.vjp(i, in_numpys(t), in_numpys(y), [in_numpys(arg) for arg in args], params)


def _transposed(trace: Trace, node: Node, active: list[int], ts: list[Any], factor: Any = None) -> Any:
    """The tangent, times a factor, through an op that has only a reverse rule, which is linear in its cotangent: transpose it.

    The cotangent is a stand-in, of zeros: what is linear does not depend on it, and no rule can find fault with it.
    """
    op, params = node.op, dict(node.params)
    args = [trace.lookup(arg) for arg in node.args]
    avals = [node.aval] if isinstance(node.aval, Aval) else list(node.aval)
    stand_ins = [trace.fresh(zeros(trace, aval)) if aval.dtype.kind in "fc" else None for aval in avals]
    several = not isinstance(node.aval, Aval)
    g = tuple(stand_ins) if several else stand_ins[0] if factor is None else stand_ins[0] * factor
    y = tuple_of(node, trace.lookup) if several else trace.lookup(node)
    outputs = []
    parts = op.joint(g, y, args, params) if op.joint is not None else None
    for i in active:
        part = parts[i] if parts is not None else op.vjp(i, g, y, args, params)
        if isinstance(part, Tracer):
            outputs.append((fit(part, node.args[i].aval).node, ts[i]))
    wrt = [s.node for s in stand_ins if s is not None]
    found = iter(reverse(trace, outputs, wrt))
    results = [next(found) if s is not None else None for s in stand_ins]
    return tuple(results) if several else results[0]


def zeros(trace: Trace, aval: Aval) -> Any:
    """A traced zero of this kind."""
    return trace.constant_like(0.0, aval)


def _name(node: Node, t: Any) -> None:
    """Call the tangent of the user's ``z`` ``t_z``."""
    if node.name and isinstance(t, Tracer) and t.node.name is None and t.node.args:
        t.node.name = f"t_{node.name}"
