"""Batching: the nodes that depend on some inputs, rewritten for inputs with one more axis in front.

``Batch`` goes through a graph and asks for each operation's rule. Elementwise operations batch by NumPy's own broadcasting;
``batch_rules`` holds the others. What has no rule runs once for each element of the batch, in one node (``Each``), which is
slower and never wrong; the trace remarks on it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from symgrad.ir import CONST, Aval, Node, ancestors, aval_of
from symgrad.ops.core import REGISTRY, Op, fit, ops_of
from symgrad.ops.engine import ASTYPE
from symgrad.tracing.frames import shown
from symgrad.tracing.trace import Guard, Trace, active_trace
from symgrad.tracing.tracer import Tracer

Rule = Callable[["Batch", Node, "list[Any]", "list[bool]"], Any]
RULES: dict[Any, Rule] = {}


class CannotBatch(Exception):
    """A graph that only holds for the element it was recorded with."""


class Alike:
    """A rule's result that is the same for every element of the batch, and has no batch axis."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Batch:
    """One batching: the trace, how long the new axis is, and what is known so far.

    ``known`` holds values with the batch axis in front; ``alike`` those that have taken another's place without one. ``masks``
    says of a list that a loop has saved which elements of the batch took part in which iteration; ``took_part`` of the loop.
    ``bits`` are how many Python's ints of a loop's body have at most, where that is known.
    """

    one_by_one = True  # whether elements may run one after the other

    def __init__(self, trace: Trace, size: int, known: dict[Node, Any]) -> None:
        self.trace, self.size, self.known = trace, size, known
        self.alike: dict[Node, Any] = {}
        self.parts: dict[Node, list[Any]] = {}
        self.masks: dict[Node, Any] = {}
        self.took_part: dict[Node, Any] = {}
        self.bits: dict[Node, float] = {}

    def run(self, order: Sequence[Node]) -> None:
        """Batch the nodes in ``order``, those that depend on what is known."""
        trace = self.trace
        outer = trace.line, trace.phase
        try:
            for node in order:
                if node in self.known or node in self.alike:
                    continue
                flags = [arg in self.known or arg in self.parts for arg in node.args]
                if not any(flags) and not any([arg in self.alike for arg in node.args]):
                    continue
                trace.line, trace.phase = node.line, node.phase
                hidden = trace.masked and node.phase is not None
                with np.errstate(divide="ignore", invalid="ignore") if hidden else nullcontext():
                    self.put(node, self.apply(node, flags))
        finally:
            trace.line, trace.phase = outer

    def apply(self, node: Node, flags: list[bool]) -> Any:
        """What the node's rule makes of it."""
        args = [self.parts[arg] if arg in self.parts else self.value(arg) for arg in node.args]
        if not any(flags):
            return Alike(self.trace.record(node.op, args, dict(node.params)))
        result = rule_of(node.op)(self, node, args, flags)
        return self.each(node, args, flags) if result is None else result

    def put(self, node: Node, result: Any) -> None:
        """Take a result in; one of several parts for ``ITEM`` to choose from."""
        if isinstance(result, Alike) and type(node.aval) is not tuple:
            self.alike[node] = result.value
        elif type(node.aval) is tuple:
            same = isinstance(result, Alike)
            self.parts[node] = [Alike(part) if same else part for part in (result.value if same else result)]
        else:
            self.known[node] = result = _checked(result, node, self.size)
            if isinstance(result, Tracer) and result.node.name is None and result.node.args:
                result.node.name = node.name

    def value(self, node: Node) -> Any:
        """The value of a node now, with the batch axis where it has one."""
        if node in self.known:
            return self.known[node]
        return self.alike[node] if node in self.alike else self.trace.lookup(node)

    def require(self, same: Any, why: str) -> None:
        """Guard that all elements have something in common that the batched code relies on."""
        every: Any = np.all(same)
        value = every.value if type(every) is Tracer else every
        if not value or (type(every) is Tracer and active_trace() is not self.trace):
            raise CannotBatch(why)
        if type(every) is Tracer and every.node.active:
            self.trace.guards.append(Guard(every.node, True, self.trace.line))

    def full(self, value: Any, flag: bool) -> Any:
        """``value`` with the batch axis, made by broadcasting where it has none."""
        return value if flag else np.broadcast_to(value, (self.size, *np.shape(value)))

    def each(self, node: Node, args: list[Any], flags: list[bool]) -> Any:
        """One element of the batch after the other, in one node; none of none."""
        if not self.size:
            several = type(node.aval) is tuple
            empty = [np.zeros((0, *aval.shape), aval.dtype) for aval in (node.aval if several else [node.aval])]
            return empty if several else empty[0]
        if not self.one_by_one:
            raise CannotBatch(f"{node.op.name} runs once for each element")
        place = f" ({shown(node.line)})" if node.line else ""
        self.trace.remark(f"{node.op.name} runs once for each element of the batch{place}")
        return self.trace.record(interned(Each, node.op, tuple(flags)), args, dict(node.params))


def rule_of(op: Op) -> Rule:
    """How an operation is batched."""
    rule = RULES.get(op) or next((RULES[kind] for kind in type(op).__mro__ if kind in RULES), None)
    if rule is not None:
        return rule
    ufunc = isinstance(op.key, np.ufunc) and op.key.signature is None and REGISTRY.get(op.key) is op  # and no primitive
    return elementwise if op.family == "elementwise" or ufunc else no_rule


def no_rule(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """Of operations that run on one element at a time."""
    return None


def _checked(result: Any, node: Node, size: int) -> Any:
    """A batched value in the dtype that each element has alone."""
    if not isinstance(node.aval, Aval):
        return result
    assert np.shape(result) == (size, *node.aval.shape), f"{node!r} was batched to {np.shape(result)}"
    return result if result.dtype == node.aval.dtype else ASTYPE(result, dtype=node.aval.dtype)


def rule(*keys: Any) -> Callable[[Rule], Rule]:
    """Put a batching rule into the table, for operations given by NumPy function, by op, or by the class of op.

    A rule gets the batch, the node, its arguments (those with ``flags`` have the batch axis in front), and returns the
    batched result; ``None`` to have each element run alone.
    """

    def register(made: Rule) -> Rule:
        for key in keys:
            RULES[key if isinstance(key, Op) or (isinstance(key, type) and issubclass(key, Op)) else REGISTRY[key]] = made
        return made

    return register


def elementwise(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """The operation itself, the batch axis in front of what the others broadcast to."""
    aval = node.aval if isinstance(node.aval, Aval) else node.aval[0]
    ndim = len(aval.shape)
    lined = [line_up(a, len(n.aval.shape), ndim) if f else a for a, n, f in zip(args, node.args, flags, strict=True)]
    return b.trace.record(node.op, _strong(b, lined, node, flags), dict(node.params))


def _strong(b: Batch, args: list[Any], node: Node, flags: list[bool]) -> list[Any]:
    """Python numbers give way to the dtype of arrays; in a batch they are arrays themselves, and are made to; and Python
    counts with truth values."""
    strong = [n.aval.dtype for n in node.args if n.aval.kind != "python"]
    if not strong:
        counts = isinstance(node.aval, Aval) and node.aval.dtype.kind == "i"
        truths = [counts and flag and n.aval.dtype.kind == "b" for n, flag in zip(node.args, flags, strict=True)]
        args = [ASTYPE(a, dtype=int) if truth else a for a, truth in zip(args, truths, strict=True)]
        if counts and node.op in GROWING:
            _require_room(b, node, args)
        elif b.one_by_one and node.phase is None:
            _require_real(b, node, args)
        return args
    dtype = np.result_type(*strong)
    weak = [flag and n.aval.kind == "python" for n, flag in zip(node.args, flags, strict=True)]
    kinds = [n.aval.dtype.kind for n, moves in zip(node.args, weak, strict=True) if moves]
    if isinstance(node.aval, Aval) and node.aval.dtype.kind == "b" and dtype.kind in "iu" and "i" in kinds:
        return args  # NumPy compares any two whole numbers
    for a, n, moves in zip(args, node.args, weak, strict=True):
        if moves:
            require_fit(b, a, n, dtype)
    return [
        ASTYPE(a, dtype=np.result_type(_NUMBERS[n.aval.dtype.kind], dtype)) if moves else a
        for a, n, moves in zip(args, node.args, weak, strict=True)
    ]


def require_fit(b: Batch, a: Any, node: Node, dtype: Any) -> None:
    """See to it that what is an int of Python's in each element has room in an array's dtype; if not, NumPy raises an error."""
    if node.aval.kind == "python" and node.aval.dtype.kind == "i" and dtype.kind in "iu" and dtype != int:
        least, most = np.iinfo(dtype).min, min(np.iinfo(dtype).max, np.iinfo(int).max)
        b.require((a >= least) & (a <= most), "a number does not fit into an array's dtype")


def _require_room(b: Batch, node: Node, args: list[Any]) -> None:
    """See to it that NumPy's ints have room for what Python makes of two, which knows no bounds; what is done of all iterations
    of a loop at once, ``vectorize`` has looked at."""
    if b.one_by_one and b.bits.get(node, ROOM) >= ROOM and not is_count(node):
        bits = [np.log2(np.maximum(np.abs(a), 1)) for a in args]
        b.require(GROWING[node.op](*bits) < ROOM, "Python's ints know no bounds")


def _require_real(b: Batch, node: Node, args: list[Any]) -> None:
    """See to it that Python's floats raise no error, and give no complex number, where NumPy's give infinity, or NaN."""
    known = dict(node.args[1].params)["value"] if len(args) > 1 and node.args[1].op is CONST else None
    if node.op is REGISTRY[np.power] and "c" not in [arg.aval.dtype.kind for arg in node.args]:
        base, exponent = args
        if known is None or known < 0 or known % 1:
            whole = exponent == np.floor(exponent)
            b.require((base > 0) | (whole & ((base < 0) | (exponent >= 0))), "a power of Python's numbers may be no float")
    elif node.op in _DIVISIONS and known is None and active_trace() is b.trace:  # of what loops divide, NumPy warns
        b.require(args[1] != 0, "Python raises an error where something is divided by zero")


def is_count(node: Node) -> bool:
    """Whether it is a number, and one that is there in the code added to it, or taken away."""
    return node.op in SUMS and any([arg.op is CONST for arg in node.args])


ROOM = 63  # bits of a whole number of NumPy's, beside its sign
SUMS = REGISTRY[np.add], REGISTRY[np.subtract]
GROWING: dict[Any, Callable[[Any, Any], Any]] = {  # how many bits there are at most, given those of two numbers
    **dict.fromkeys(SUMS, lambda a, b: np.maximum(a, b) + 1),
    REGISTRY[np.multiply]: lambda a, b: a + b,
    REGISTRY[np.power]: lambda a, b: a * 2.0 ** np.minimum(b, ROOM),
    REGISTRY[np.left_shift]: lambda a, b: a + 2.0 ** np.minimum(b, ROOM),
}
_DIVISIONS = ops_of(np.true_divide, np.floor_divide, np.remainder)
_NUMBERS = {"b": True, "i": 1, "f": 1.0, "c": 1j}


def line_up(a: Any, have: int, want: int) -> Any:
    """A batched array whose elements have ``have`` axes, with ones put in (or left out) so that they have ``want``."""
    if have > want:
        return np.reshape(a, (len(a), *np.shape(a)[1 + have - want :]))
    return a if have == want else np.expand_dims(a, tuple(range(1, 1 + want - have)) if want - have > 1 else 1)


# -- one after the other -------------------------------------------------------------------------------------------


class Each(Op):
    """An operation, run on one element of the batch after the other; its derivative is that of the operation, batched."""

    def __init__(self, inner: Any, flags: tuple[bool, ...]) -> None:
        super().__init__(self, "op", inner.rules, name=f"each_{inner.name.split('.')[-1]}", fun=self.run)
        self.inner, self.flags = inner, flags
        self.joint = self._joint
        self.jvp = self._jvp if inner.jvp is not None else None

    def differentiable(self, position: int) -> bool:
        return bool(self.inner.differentiable(position))

    def run(self, *args: Any, **params: Any) -> Any:
        """All results, stacked."""
        rows = [self.inner.fun(*row, **params) for row in rows_of(args, self.flags)]
        if not isinstance(rows[0], tuple):
            return np.stack(rows)
        columns = [np.stack(column) for column in zip(*rows, strict=True)]
        return type(rows[0])(*columns) if hasattr(rows[0], "_fields") else tuple(columns)

    def _joint(self, g: Any, y: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        inner, n = self.inner, len(args)
        several = isinstance(y, tuple)
        gs, ys = (list(g), list(y)) if several else ([g], [y])

        def rule(row: list[Any]) -> list[Any]:
            one, rest = row[:n], row[n:]
            own_g, own_y = rest[: len(gs)], rest[len(gs) :]
            given = (tuple(own_g), tuple(own_y)) if several else (own_g[0], own_y[0])
            if inner.joint is not None:
                found = inner.joint(*given, one, params)
                found += [None] * (n - len(found))
            else:
                found = [inner.vjp(i, *given, one, params) if inner.differentiable(i) else None for i in range(n)]
            return [None if part is None else fit(part, _aval(x)) for part, x in zip(found, one, strict=True)]

        flags = [*self.flags, *(part is not None for part in gs), *[True] * len(ys)]
        found = each_row(rule, [*args, *gs, *ys], flags)
        return [
            None if part is None else part if flag else np.sum(part, axis=0)
            for part, flag in zip(found, self.flags, strict=True)
        ]

    def _jvp(self, ts: Sequence[Any], y: Any, *args: Any, **params: Any) -> Any:
        inner, n = self.inner, len(args)
        several = isinstance(y, tuple)
        ys = list(y) if several else [y]
        moving = [t is not None and flag for t, flag in zip(ts, self.flags, strict=True)]
        flags = [*self.flags, *moving, *[True] * len(ys)]

        def rule(row: list[Any]) -> list[Any]:
            own_y = row[2 * n :]
            found = inner.jvp(row[n : 2 * n], tuple(own_y) if several else own_y[0], *row[:n], **params)
            return [part() if callable(part) else part for part in found] if several else [found]

        found = each_row(rule, [*args, *ts, *ys], flags)
        return tuple(found) if several else found[0]


def rows_of(columns: Sequence[Any], flags: Sequence[bool]) -> list[list[Any]]:
    """What each element has of the columns; those without the batch axis are for all."""
    size = next(len(column) for column, flag in zip(columns, flags, strict=True) if flag)
    return [[c[i] if flag else c for c, flag in zip(columns, flags, strict=True)] for i in range(size)]


def _aval(x: Any) -> Any:
    return x.node.aval if isinstance(x, Tracer) else aval_of(x)


_made: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


def interned(kind: Any, inner: Any, flags: tuple[bool, ...]) -> Any:
    """``kind(inner, flags)``: one and the same operation for the same arguments."""
    found = _made.get((kind, inner, flags))
    if found is None:
        found = _made.setdefault((kind, inner, flags), kind(inner, flags))
    return found


def each_row(fun: Callable[[list[Any]], list[Any]], columns: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """``fun``, of a list, for each row: batched where values are traced, one row after the other where they are plain, or where
    Python looks at what the rows differ in."""
    tracer = next((column for column in columns if isinstance(column, Tracer)), None)
    if tracer is None:
        return _stacked([fun(row) for row in rows_of(columns, flags)])
    size = next(len(column) for column, flag in zip(columns, flags, strict=True) if flag)
    trace = tracer.tape
    assert isinstance(trace, Trace)
    known: dict[Node, Any] = {}
    row: list[Any] = []
    for column, flag in zip(columns, flags, strict=True):
        if flag:
            lane = trace.lane(column[0] if isinstance(column, Tracer) else trace.adopt(column)[0])
            known[lane.node] = column
            row.append(lane)
        else:
            row.append(column)
    guards = len(trace.guards)
    found = fun(row)
    floor, looked_at = min(node.index for node in known), [guard.node for guard in trace.guards[guards:]]
    if not known.keys().isdisjoint(ancestors(looked_at, floor)):
        return _stacked([found, *[fun(row) for row in rows_of(columns, flags)[1:]]])
    nodes = [part.node for part in found if isinstance(part, Tracer)]
    b = Batch(trace, size, known)
    b.run(ancestors(nodes, floor))
    return [None if part is None else _column(b, part) for part in found]


def _stacked(rows: Sequence[list[Any]]) -> list[Any]:
    """The rows' results, one column after the other; what some rows have nothing of is zero there."""
    found = []
    for column in zip(*rows, strict=True):
        one = next((part for part in column if part is not None), None)
        found.append(None if one is None else np.stack([np.zeros_like(one) if part is None else part for part in column]))
    return found


def _column(b: Batch, part: Any) -> Any:
    return b.full(b.value(part.node), part.node in b.known) if isinstance(part, Tracer) else b.full(part, False)


def batch(trace: Trace, order: Sequence[Node], inputs: dict[Node, Tracer], size: int) -> dict[Node, Any]:
    """Batched values of the nodes in ``order``, given batched ``inputs``; nodes that do not depend on them are left out."""
    b = Batch(trace, size, dict(inputs))
    b.run(order)
    return b.known
