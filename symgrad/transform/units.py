"""Linear maps at all unit vectors at once: the rows, or columns, of a Jacobian.

Beside its one, a unit vector has zeros that are known: what is multiplied by them is zero, infinite or not. As long as each
element depends on that one alone of the vector, what a map makes of the unit vectors is diagonal, and computed as its diagonal.
From there on masks say, for each vector, which elements depend on it at all, if factors follow that may be infinite.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.ir import Aval, Node, ancestors
from symgrad.ops import create
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.batch import Alike, Batch, line_up, rule_of
from symgrad.transform.lanes import POLES, as_mask, hot_of, moving, nan_where
from symgrad.transform.loop import Loop
from symgrad.transform.reverse import note_unmasked, path


def at_units(trace: Trace, unit: Tracer, linear: Sequence[Any], scale: complex = 1.0) -> list[Any]:
    """What depends linearly on ``unit``, at each unit vector (times ``scale``) in its place: one more axis in front."""
    ends = [x.node for x in linear if isinstance(x, Tracer)]
    order = path(ends, [unit.node])
    if not order:
        return [None for _ in linear]
    outer, trace.phase = trace.phase, order[-1].phase
    aval = unit.node.aval
    units = _eye(trace, aval, aval.dtype)
    known = {unit.node: units if scale == 1.0 else scale * units}
    alone, last = _diagonal(order, unit.node, ends)
    known |= {node: _on_diagonal(trace.lookup(node)) for node in order if node in alone and node in last}
    for node, x in known.items():
        x.node.name = x.node.name or node.name
    order = [node for node in order if node not in alone]
    hot = hot_of(ancestors(ends), trace.lookup) if trace.double_where else set[Node]()
    size, flows = units.shape[0], set(order)
    plain = b = Batch(trace, size, dict(known))
    if any([is_steep(node, [arg for arg in node.args if arg in flows], hot) for node in order]):
        reach, eye = _chosen(trace, alone, unit.node), _eye(trace, aval, np.dtype(bool))
        reach = {node: eye if reach.get(node) is None else np.logical_and(eye, as_mask(reach[node])) for node in known}
        b = Units(trace, size, known, hot, reach)
    trace.phase = outer
    b.run(order)
    found = _results(b, linear)
    if isinstance(b, Units) and b.cleaned and trace.symbolic and not trace.depth:
        with np.errstate(all="ignore"):
            plain.run(order)
        note_unmasked(trace, found, _results(plain, linear))
    return found


def _results(b: Batch, linear: Sequence[Any]) -> list[Any]:
    return [b.value(x.node) if isinstance(x, Tracer) and x.node in b.known else None for x in linear]


class Units(Batch):
    """The batch of a linear map at unit vectors.

    ``reach`` has masks of where a value may depend on each vector; what is not in it may anywhere. Elsewhere, what is
    ``unclean`` may be NaN. ``cleaned`` is whether a mask was needed. Of loops, and lists, ``touched`` has masks of the vectors
    that any of them depends on at all.
    """

    def __init__(self, trace: Trace, size: int, known: dict[Node, Any], hot: set[Node], reach: dict[Node, Any]) -> None:
        super().__init__(trace, size, known)
        self.hot = hot
        self.reach = reach
        self.unclean: set[Node] = set()
        self.cleaned = False
        self.touched: dict[Node, Any] = {}

    def run(self, order: Sequence[Node]) -> None:
        """Batch the nodes in ``order``; what others need afterwards is clean."""
        super().run(order)
        for node in list(self.unclean):
            self.clean(node)

    def apply(self, node: Node, flags: list[bool]) -> Any:
        """What the node's rule makes of it; notes how far it reaches."""
        moving = [arg for arg, flag in zip(node.args, flags, strict=True) if flag]
        factor = len(moving) == 1 and all([node.op.stays(i) for i, flag in enumerate(flags) if flag])
        if not factor:
            for arg in moving:
                self.clean(arg)
        result = super().apply(node, flags)
        if isinstance(node.op, Loop) or not isinstance(node.aval, Aval):
            self.touch(node, moving)
        elif not isinstance(result, Alike):
            mask = self.reached(node, flags)
            if mask is not None and (mask.node.active or not mask.value.all()):
                self.reach[node] = mask
                if is_steep(node, moving, self.hot) or moving[0] in self.unclean or moving[0] in self.touched:
                    self.unclean.add(node)
        return result

    def touch(self, node: Node, moving: Sequence[Node]) -> None:
        """Note which vectors a loop, or a list, may depend on, if not on all."""
        known: list[Any] = [self.touched.get(arg, self.reach.get(arg)) for arg in moving]
        if moving and not any([mask is None for mask in known]):
            found = [np.any(mask, axis=tuple(range(1, np.ndim(mask)))) for mask in known]
            self.touched[node] = functools.reduce(np.logical_or, found)

    def clean(self, node: Node) -> None:
        """Make what a vector's zeros have become zero."""
        if node in self.unclean:
            mask = self.reach[node]
            if not mask.node.active:
                mask = self.trace.lookup(self.trace.constant(mask.value)[0])
                mask.node.name = "depends"
            self.known[node] = np.where(mask, self.known[node], 0)
            self.unclean.discard(node)
            self.cleaned = True

    def reached(self, node: Node, flags: list[bool]) -> Any:
        """The mask of a node: its rule, run on those of its arguments; None if nothing is known of them."""
        op = node.op
        if node.args and node.args[0] in self.touched:  # a result of a loop, or a list that is an array again
            rows = np.reshape(self.touched[node.args[0]], (self.size, *(1 for _ in node.aval.shape)))
            return np.broadcast_to(rows, (self.size, *node.aval.shape))
        known = op.chooses or any([arg in self.reach for arg in node.args])
        if not known or op.family not in ("elementwise", "linear", "multilinear"):
            return None
        avals = [arg.aval for arg in node.args]
        masks = [self.mask_of(arg) if flag else None for arg, flag in zip(node.args, flags, strict=True)]
        if all([op.stays(i) for i, flag in enumerate(flags) if flag]):
            active = [i for i, flag in enumerate(flags) if flag]
            lined = [line_up(masks[i], len(avals[i].shape), len(node.aval.shape)) for i in active]
            found = moving(node, active, lined, None, [self.value(arg) for arg in node.args])
            return np.broadcast_to(found, (self.size, *node.aval.shape))
        mixed = [op.differentiable(i) and op.lanes_of(i) == "mixed" for i in range(len(flags))]
        args = []
        for i, (arg, mask) in enumerate(zip(node.args, masks, strict=True)):
            if mask is not None:
                args.append(nan_where(mask, arg.aval) if mixed[i] else mask)
            elif op.differentiable(i):
                fill, dtype = (1.0, float) if op.family == "multilinear" else (0.0, float if mixed[i] else bool)
                args.append(create.full(self.trace, arg.aval.shape, fill, dtype))
            else:
                args.append(self.value(arg))
        back = rule_of(op)(self, node, args, flags)
        return None if back is None else np.isnan(back) if any(mixed) else as_mask(back)

    def mask_of(self, node: Node) -> Any:
        """Where a value may depend on each vector."""
        found = self.reach.get(node)
        return create.full(self.trace, (self.size, *node.aval.shape), True, bool) if found is None else found


def is_steep(node: Node, moving: Sequence[Node], hot: set[Node]) -> bool:
    """Whether a value that moves is multiplied by what may be infinite."""
    if isinstance(node.op, Loop):
        return node.op.inside == POLES
    if node.op.family == "elementwise" and node.op.partial_of(node.args) == "poles":
        return True
    return node.op.family in ("elementwise", "multilinear") and any([arg in hot for arg in node.args if arg not in moving])


def _eye(trace: Trace, aval: Aval, dtype: Any) -> Any:
    """The unit vectors of a value's space, along a new first axis."""
    size = int(np.prod(aval.shape))
    flat: Any = trace.record(create.EYE, (), {"n": size, "dtype": dtype})
    return flat.reshape((size, *aval.shape))


def _diagonal(order: Sequence[Node], unit: Node, ends: Sequence[Node]) -> tuple[set[Node], set[Node]]:
    """The nodes each of whose elements depends on that one alone of ``unit``; and those that others need.

    At unit vectors, the first are diagonal, and so is what is computed of them until others need it.
    """
    alone: set[Node] = {unit}
    last: set[Node] = set(ends)
    moving = set(order)
    for node in order[1:]:
        same = all([arg in alone and node.op.stays(i) for i, arg in enumerate(node.args) if arg in moving])
        if same and isinstance(node.aval, Aval) and node.aval.shape == unit.aval.shape:
            alone.add(node)
        else:
            last.update(node.args)
    alone.discard(unit)
    return alone, last


def _chosen(trace: Trace, alone: set[Node], unit: Node) -> dict[Node, Any]:
    """Masks of the elements that masks have not made zero, of nodes each of whose elements is on its own; None for all."""
    found: dict[Node, Any] = {unit: None}
    for node in sorted(alone, key=lambda node: node.index):
        active = [i for i, arg in enumerate(node.args) if arg in found]
        masks = [found[node.args[i]] for i in active]
        found[node] = moving(node, active, masks, None, [trace.lookup(arg) for arg in node.args])
    return found


def _on_diagonal(x: Any) -> Any:
    """The elements of an array each alone among zeros, one after the other: 0 times infinity is 0 there."""
    flat: Any = create.DIAGONAL(np.ravel(x) if np.ndim(x) > 1 else x)
    return flat if np.ndim(x) == 1 else np.reshape(flat, (np.size(x), *np.shape(x)))
