"""``Tensor`` and ``Node``: a value, the operation that it came from, and how one more operation is recorded.

An operation evaluates ``op.fun`` on plain NumPy values. Where a tensor that requires grad goes in and recording is on, its
result gets a ``Node`` that holds what the operation's rule will read: nothing more is done until ``backward``.
"""

from __future__ import annotations

import dis
import itertools
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from symgrad.eager.dtypes import CPU, RANK, Size, as_dtype, as_numpy, c_name, default, device, dtype, title, type_name
from symgrad.eager.modes import mode
from symgrad.eager.printing import show
from symgrad.errors import NotDifferentiable
from symgrad.ir import Aval
from symgrad.ops import index
from symgrad.ops.core import REGISTRY, Op, Traced, fit
from symgrad.ops.engine import ASTYPE, STOP
from symgrad.tracing.tracer import Tracer

Array = Any
Label = str | tuple[Any, ...] | None  # torch's name of an operation; see ``Step``
NONE: dict[str, Any] = {}
_array = np.ndarray

# -- what a rule reads ---------------------------------------------------------------------------------------------


class Plan:
    """What to do for an operation when certain of its arguments require grad.

    ``flows``: the positions that a cotangent goes to. ``reads``: the positions whose values the rules read. ``result``:
    whether they read the result; ``echo``: whether they look at it at all, if only at its shape.
    """

    __slots__ = ("anew", "drops", "echo", "flows", "places", "reads", "result", "rules")

    def __init__(self, op: Op, count: int, wanting: Sequence[int]) -> None:
        self.places = tuple(i for i in range(count) if op.differentiable(i))
        self.flows = tuple(i for i in wanting if i in self.places)
        rules: list[Any] = [] if op.variadic else [op.rules[i] for i in self.flows]
        self.rules = rules
        read: set[Any] = set()
        for i in self.flows:
            read |= _reads(op, i, count)
        self.result = "y" in read
        self.echo = self.result or (op.family == "linear" and any(["y" in _mentioned(op, i, count) for i in self.flows]))
        self.reads = tuple(i for i in range(count) if i in read)
        self.drops = op.family == "elementwise" and len(self.reads) < count  # whether some values are let go
        self.anew = op.key in ANEW and any(["y" in _mentioned(op, i, count) for i in self.flows])


def _reads(op: Op, position: int, count: int) -> set[Any]:
    """The arguments (by position) and the result ("y") whose values the rule of one argument looks at."""
    fixed = {i for i in range(count) if not op.differentiable(i)}
    if op.family == "linear":  # whose rules read but shapes
        return fixed & _mentioned(op, position, count)
    if (known := READS.get(op.key)) is not None:
        return set(known[position])
    mentioned = _mentioned(op, position, count)
    return mentioned - {position} if op.family == "multilinear" else mentioned  # whose rules read but the shape of that one


def _mentioned(op: Op, position: int, count: int) -> set[Any]:
    """The arguments and the result ("y") that the bytecode of a rule mentions."""
    rule: Any = op.rules[0 if op.variadic else position]
    code = rule.__code__
    names = code.co_varnames[: code.co_argcount][1 + op.variadic :]
    used: set[Any] = set()
    for step in dis.get_instructions(code):
        if not step.opname.startswith("STORE"):
            used |= set(step.argval) if isinstance(step.argval, tuple) else {step.argval}
    found: set[Any] = {"y"} if names and names[0] in used else set()
    found |= {i for i, name in enumerate(names[1:]) if name in used}
    if code.co_flags & 0x04 and code.co_varnames[code.co_argcount + code.co_kwonlyargcount] in used:  # *args
        found |= set(range(len(names) - 1, count))
    return found


# where bytecode cannot tell: of each argument's rule, what it reads
READS: dict[Any, Sequence[Sequence[Any]]] = {
    np.absolute: [(0,)],
    np.divide: [(1,), (0, 1)],
}
# of several results, those that rules read, where these are not all
PARTS: dict[Any, Sequence[int]] = {np.linalg.slogdet: (0,)}
# whose results are computed anew where a rule wants them, so that they may be written to, as in torch
ANEW = {np.absolute, np.divide}

_plans: dict[Any, Plan] = {}


def plan_of(op: Op, count: int, wanting: tuple[int, ...]) -> Plan:
    """The ``Plan``, made once."""
    key = (op, count, wanting)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = Plan(op, count, wanting)
    return plan


# -- nodes ---------------------------------------------------------------------------------------------------------

_ticks = itertools.count(1)
tick: Callable[[], int] = _ticks.__next__


class Node:
    """A recorded operation, ``grad_fn``. Its edges lead to the nodes and leaves that its cotangents go to."""

    __slots__ = (
        "__weakref__", "args", "counters", "dtype", "edges", "hooks", "label", "metadata", "op", "outputs", "packed", "params",
        "plan", "result", "serial", "shape",
    )  # fmt: skip

    def __init__(
        self,
        op: Op,
        plan: Plan,
        args: Any,
        params: dict[str, Any],
        edges: Any,
        counters: Any,
        y: Any,
        label: Label,
    ) -> None:
        self.op = op
        self.plan = plan
        self.args = args
        self.params = params
        self.edges = edges
        self.counters = counters
        self.result = y if plan.echo else None
        self.label = label
        self.hooks: dict[Any, Any] | None = None
        self.serial = tick()
        if type(y) is not tuple:
            self.shape, self.dtype = y.shape, y.dtype
        else:
            self.outputs = len(y)
        if mode.anomaly:
            self.metadata: dict[str, Any] = {"traceback": traceback.format_stack()[:-3]}

    @property
    def kind(self) -> str:
        """Torch's name of the operation: ``AddBackward0``."""
        label = self.label
        return str(label[0] if type(label) is tuple else label or node_name(self))

    def name(self) -> str:
        """``kind``, with torch's namespace where that is shown."""
        kind = self.kind
        return f"torch::autograd::{kind}" if kind in _NAMESPACED else kind

    def __repr__(self) -> str:
        return f"<{self.kind} object at {hex(id(self))}>"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """Where the cotangents go: a node and the number of its output, for each argument that may take one."""
        edges: dict[int, Any] = dict(zip(self.plan.flows, self.edges, strict=True))
        if type(self.label) is tuple:
            return _inside(self.label, edges)
        return tuple(next_of(edges.get(i)) for i in self.places)

    @property
    def places(self) -> tuple[int, ...]:
        """The arguments that torch counts as such."""
        return self.plan.flows if self.kind in _OF_NUMBERS else self.plan.places

    @property
    def saves(self) -> bool:
        """Whether values were kept for the backward pass."""
        return bool(self.plan.reads or self.plan.result)

    def __getattr__(self, name: str) -> Any:
        """``_saved_result``, ``_saved_self``, ``_saved_other`` …: what the rules will read, None where they do not."""
        if name == "metadata":
            self.metadata = {}
            return self.metadata
        place = _SAVED.get(name)
        if place is None or not self.saves or (place < 0 and not self.plan.result):
            raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")
        if self.args is None:
            raise RuntimeError(TWICE)
        if place < 0:
            return self.revived_result()
        if place not in self.plan.reads:
            return None
        value = self.revive()[place]
        return wrap(value) if isinstance(value, np.ndarray) else value

    def pull(self, g: Any) -> list[Any]:
        """A cotangent for each edge, from the result's: arrays, or tensors if that is one."""
        if self.args is None:
            raise RuntimeError(TWICE)
        for which, counter, seen in self.counters:
            if counter[0] != seen:
                raise RuntimeError(self.changed(which, counter, seen))
        if g.__class__ is not _array and (
            isinstance(g, Tensor) or (type(g) is tuple and any([isinstance(part, Tensor) for part in g]))
        ):
            params = {name: value for name, value in self.params.items() if name != "kept"}
            return self.pulled(g, self.revived_result(), self.revive(), params)
        return mode.quiet(self.pulled, g, self.result, self.args, self.params)  # type: ignore[no-any-return]

    def pulled(self, g: Any, y: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """What the rules give."""
        op, plan = self.op, self.plan
        if plan.anew:
            y = op(*args, **params)
        if op.variadic:
            return [op.vjp(i, g, y, args, params) for i in plan.flows]
        return [rule(g, y, *args, **params) for rule in plan.rules]

    def revive(self) -> list[Any]:
        """The saved arguments as tensors, so that the rules themselves are recorded."""
        args = list(self.args)
        for i, edge in zip(self.plan.flows, self.edges, strict=True):
            if args[i] is not None:
                args[i] = edge if isinstance(edge, Tensor) and edge.value is args[i] else linked(args[i], edge)
        for i, counter, _ in self.counters:  # which the nodes that are to come watch, too
            if i >= 0:
                args[i] = args[i] if isinstance(args[i], Tensor) else wrap(args[i])
                args[i].counter = counter
        return args

    def revived_result(self) -> Any:
        y = self.result
        if y is None:
            return None
        parts = [_part(self, i, part) for i, part in enumerate(y)] if type(y) is tuple else [linked(y, self)]
        for i, counter, _ in self.counters:
            if i < 0:
                parts[-1 - i].counter = counter
        return tuple(parts) if type(y) is tuple else parts[0]

    def saved(self, which: int) -> Any:
        """What was saved: an argument, by its position, or from -1 down a result."""
        if which >= 0:
            return self.args[which]
        return self.result[-1 - which] if type(self.result) is tuple else self.result

    def free(self) -> None:
        """Let go of the saved values; a second backward through them raises."""
        if self.plan.reads or self.plan.result:
            self.args = self.result = None
            self.params.pop("kept", None)

    def changed(self, which: int, counter: list[Any], seen: int) -> str:
        """The message that a saved value was written to."""
        value: Any = self.saved(which)
        edge = next((e for i, e in zip(self.plan.flows, self.edges, strict=True) if i == which), None)
        made = self.name() if which < 0 else edge.name() if isinstance(edge, Node) else None
        if which >= 0 and len(counter) > 3:  # what was saved comes from that write now, unless it was detached
            made = counter[3] if value.base is None else made and "AsStridedBackward0"
        return modified(value, made, counter, seen, self.name(), max(-1 - which, 0))

    def pack(self, pack: Callable[..., Any], unpack: Callable[..., Any]) -> None:
        """Save what ``pack`` makes of the values, until ``unpack`` is asked for them."""
        packed = {i: pack(wrap(self.saved(i))) for i, _, _ in self.counters}
        self.args = [None if i in packed else arg for i, arg in enumerate(self.args)]
        if type(self.result) is tuple:
            self.result = tuple([None if -1 - i in packed else part for i, part in enumerate(self.result)])
        elif -1 in packed:
            self.result = None
        self.counters, self.packed = [], (packed, unpack)
        self.params = {name: value for name, value in self.params.items() if name != "kept"}
        self.__class__ = PackedNode

    # ---- hooks ----

    def register_hook(self, hook: Any) -> RemovableHandle:
        """``hook(grad_inputs, grad_outputs)`` runs after this node's rules; what it returns replaces ``grad_inputs``."""
        return self._hook("after", hook)

    def register_prehook(self, hook: Any) -> RemovableHandle:
        """``hook(grad_outputs)`` runs before this node's rules; what it returns replaces them."""
        return self._hook("before", hook)

    def _hook(self, kind: str, hook: Any) -> RemovableHandle:
        if self.hooks is None:
            self.hooks = {}
        return RemovableHandle(self.hooks, kind, hook)


def modified(value: Any, made: str | None, counter: list[Any], seen: int, saver: str, number: int = 0) -> str:
    """The message that a value, output ``number`` of the node ``made``, was written to after ``saver`` had saved it."""
    source = f", which is output {number} of {re.sub(r'Backward[0-9]*$', '', made)}," if made else ""
    writer = f" It was changed by {counter[1]}() at {counter[2]}, after {saver} had saved it." if counter[1:] else ""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_name(value.dtype)} {list(value.shape)}]{source} is at version {counter[0]}; expected version {seen} "
        f"instead. {_HINT}{writer}"
    )


class CopySlices(Node):
    """A write into a part of a tensor: its cotangents go to what the tensor was, and to what was written.

    ``label`` says whether that was copied there, or an operation done in place.
    """

    __slots__ = ()

    @property
    def kind(self) -> str:
        return "CopySlices"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """What the tensor was, and what was copied, or what else the operation in place has read."""
        edges: dict[int, Any] = dict(zip(self.plan.flows, self.edges, strict=True))
        written = next_of(edges.get(1))
        others = (written,) if self.label == "copied" else written[0].next_functions[1:] if written[0] else ()
        return (next_of(edges.get(0)), *others)


class PackedNode(Node):
    """A node whose saved values are what the pack hook of ``saved_tensors_hooks`` has made of them."""

    __slots__ = ()

    def pull(self, g: Any) -> list[Any]:
        if self.args is None:
            raise RuntimeError(TWICE)
        before = self.args, self.result
        packed, unpack = self.packed
        values = {i: unpack(item).value for i, item in packed.items()}
        self.args = [values.get(i, arg) for i, arg in enumerate(self.args)]
        if type(self.result) is tuple:
            self.result = tuple([values.get(-1 - i, part) for i, part in enumerate(self.result)])
        else:
            self.result = values.get(-1, self.result)
        try:
            return Node.pull(self, g)
        finally:
            self.args, self.result = before

    def free(self) -> None:
        Node.free(self)
        if self.args is None:
            self.packed = {}, self.packed[1]


_NAMESPACED = {"CopyBackwards", "CopySlices", "NotImplemented"}
_SAVED = {"_saved_result": -1, "_saved_self": 0, "_saved_condition": 0} | dict.fromkeys(
    ("_saved_other", "_saved_exponent", "_saved_mat2", "_saved_target"), 1
)
_OF_NUMBERS = {  # operations with a number that does not count as an argument
    "PowBackward0", "PowBackward2", "ClampBackward1", "ClampMinBackward0", "ClampMaxBackward0", "RsubBackward1",
    "XlogyBackward1", "XlogyBackward2", "RemainderBackward0", "FmodBackward0", "MaskedFillBackward0",
    "MulBackward1", "DivBackward1", "ScatterBackward1",
}  # fmt: skip


class Step:
    """What torch records as an operation of its own, and is a part of one here.

    A label ``("SelectBackward0", ("SliceBackward0", 0))`` of a node says that it does, in torch's words, a slice of argument 0
    and then a selection: the node itself goes by the first name, and steps stand for the others in ``next_functions``.
    """

    __slots__ = ("_edges", "_label")

    def __init__(self, label: tuple[Any, ...], edges: dict[int, Any]) -> None:
        self._label, self._edges = label, edges

    def name(self) -> str:
        return str(self._label[0])

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        return _inside(self._label, self._edges)


def _inside(label: tuple[Any, ...], edges: dict[int, Any]) -> tuple[Any, ...]:
    """What comes next to the operation that a label with several steps names."""
    return tuple(
        next_of(edges.get(part)) if type(part) is not tuple else (Step(part, edges) if _leads_on(part, edges) else None, 0)
        for part in label[1:]
    )


def _leads_on(label: tuple[Any, ...], edges: dict[int, Any]) -> bool:
    """Whether a cotangent goes through these steps to an argument."""
    return any([_leads_on(part, edges) if type(part) is tuple else part in edges for part in label[1:]])


TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
    "if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)
_HINT = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)


class Part:
    """One result of a node that has several."""

    __slots__ = ("dtype", "hooks", "node", "number", "shape")

    def __init__(self, node: Node, number: int, y: Any) -> None:
        self.node, self.number, self.shape, self.dtype, self.hooks = node, number, y.shape, y.dtype, None


class AccumulateGrad:
    """What ``next_functions`` shows for a leaf: adds what arrives to ``variable.grad``."""

    __slots__ = ("__weakref__", "variable")

    next_functions: tuple[Any, ...] = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {hex(id(self))}>"


def next_of(edge: Any) -> tuple[Any, int]:
    """A node and the number of its output, as ``next_functions`` shows an edge."""
    if type(edge) is Part:
        return edge.node, edge.number
    if edge is None:
        return None, 0
    if isinstance(edge, Tensor):
        if not edge.needs:  # a view that was made in ``no_grad`` mode
            return None, 0
        known = edge.__dict__.get("_accumulate")
        if known is None:  # kept by the tensor, for identity's sake
            known = edge.__dict__["_accumulate"] = AccumulateGrad(edge)
        return known, 0
    return edge, 0


class RemovableHandle:
    """What registering a hook gives: ``remove()`` takes it away again."""

    serials = itertools.count()

    def __init__(self, hooks: dict[Any, Any], kind: Any, hook: Any) -> None:
        self._hooks, self.id = hooks, (kind, next(RemovableHandle.serials))
        hooks[self.id] = hook

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def move(self, hooks: dict[Any, Any], kind: Any) -> RemovableHandle:
        """Register the hook elsewhere instead."""
        return RemovableHandle(hooks, kind, self._hooks.pop(self.id))

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def node_name(node: Node) -> str:
    """Torch's name, where nothing more special was noted when the node was made."""
    name = NAMES.get(node.op.key)
    if name is None:
        return f"{node.op.name.rsplit('.', 1)[-1].title().replace('_', '')}Backward0"
    return str(name(node) if callable(name) else name)


NAMES: dict[Any, Any] = {}


# -- tensors -------------------------------------------------------------------------------------------------------


class Tensor(Traced):
    """A value that remembers where it came from.

    ``value`` is its array (or NumPy scalar), ``node`` the operation that made it, ``needs`` says whether it requires grad.
    Most methods are the functions of this package, which add themselves (``method``).
    """

    value: Any
    counter: list[Any]  # how often it was written to, shared by all views; then the last writer and its line
    node: Any = None
    needs: bool = False
    base: Tensor | None = None  # of a view: what it looks at in the end, a tensor that is no view
    seen: int = 0  # of a view: how often its memory had been written to when its node was made
    made: str = ""  # of a view that must not be written to: how it was made, see ``look``; and see ``constant``
    hooks: dict[Any, Any] | None = None
    kept: RemovableHandle | None = None
    inference: bool = False
    _grad: Tensor | None = None

    __array_priority__ = 1000.0

    if TYPE_CHECKING:  # the functions of this package add themselves

        def __getattr__(self, name: str) -> Any: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __iter__(self) -> Any: ...

    def __init__(self, *data: Any) -> None:
        if not data:
            self.value = np.empty(0, default.real)
        elif isinstance(data[0], (int, np.integer)):
            self.value = np.zeros([int(n) for n in data], default.real)
        else:
            self.value = plain(data[0]).astype(default.real)
        self.counter = [0]

    # ---- what it is ----

    @property
    def shape(self) -> Size:
        return Size(self.value.shape)

    @property
    def dtype(self) -> dtype:
        return as_dtype(self.value.dtype)

    @property
    def ndim(self) -> int:
        return self.value.ndim  # type: ignore[no-any-return]

    @property
    def device(self) -> device:
        return CPU

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded."""
        return self.needs or (self.base is not None and self.base.needs)

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted and self.needs:
            return
        if not wanted and self.grad_fn is not None:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if wanted and self.value.dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if wanted and self.inference and not mode.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self.needs = bool(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad``, and return this tensor."""
        if requires_grad and self.value.dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user, not by a recorded operation."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        """The recorded operation that it came from, None for leaves."""
        if self.base is not None:
            renew(self)
        node = self.node
        return node.node if type(node) is Part else node

    @property
    def output_nr(self) -> int:
        return self.node.number if type(self.node) is Part else 0

    @property
    def grad(self) -> Tensor | None:
        """What ``backward`` has accumulated here; only in leaves, and where ``retain_grad()`` asked for it."""
        if self.node is not None and not self.kept and self._grad is None:
            warnings.warn(_NOT_A_LEAF, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, new: Any) -> None:
        if new is not None:
            if new is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if not isinstance(new, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(new).__name__}")
            if new.value.shape != self.value.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(new.value.shape)}' to a tensor of size "
                    f"'{list(self.value.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
            if new.value.dtype != self.value.dtype:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{c_name(new.value.dtype)}' to a tensor with grad_dtype "
                    f"'{title(self.value.dtype)}'. {_GRAD_DTYPE}"
                )
        self._grad = new

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def data(self) -> Tensor:
        """Its values, outside the graph; writes to them go unnoticed."""
        return constant(whole(self), True)

    @data.setter
    def data(self, new: Tensor) -> None:
        if not isinstance(new, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
        if self.requires_grad and new.value.dtype.kind not in "fc":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self.value, self.base = new.value, None

    @property
    def _version(self) -> int:
        if self.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return int(self.counter[0])

    @property
    def _base(self) -> Tensor | None:
        return self.base

    def _is_view(self) -> bool:
        return self.base is not None

    def __repr__(self) -> str:
        try:
            fn = self.grad_fn
            suffix = f"grad_fn=<{fn.kind}>" if fn is not None else "requires_grad=True" if self.needs else None
        except RuntimeError:  # of a view whose base must not have been written to
            suffix = "grad_fn=<Invalid>"
        if isinstance(self.value, Traced):
            return f"tensor({self.value!r})"
        return show(np.asarray(self.value), suffix)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.value.ndim == 0 else object.__format__(self, spec)

    def is_inference(self) -> bool:
        """Whether it was made in ``inference_mode``."""
        return self.inference

    def item(self) -> Any:
        """The one number in it, as Python's."""
        if self.value.size != 1:
            raise RuntimeError(f"a Tensor with {self.value.size} elements cannot be converted to Scalar")
        return numbers(self).item()

    __hash__ = object.__hash__

    # ---- Traced ----

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return apply(op, args, params)

    def adopt(self, value: Any) -> Any:
        if isinstance(value, Traced):
            tensor = wrap(value)
            tensor.needs = self.needs  # which ``execute`` then refuses
            return tensor
        if isinstance(value, np.ndarray) and value.dtype == object:
            return np.stack(list(value.ravel())).reshape(value.shape)
        return wrap(np.asarray(value))

    def outside(self) -> Sequence[str]:
        return ("needs",)

    # ---- methods that NumPy's arrays have and rules use ----

    def astype(self, kind: Any, **options: Any) -> Tensor:
        """In another dtype."""
        return apply(ASTYPE, (self,), {"dtype": as_numpy(kind)})  # type: ignore[no-any-return]

    def copy(self, order: str = "C") -> Tensor:
        """In memory of its own."""
        op: Any = REGISTRY[np.copy]
        return apply(op, (self,))  # type: ignore[no-any-return]


OUTSIDE = (
    "a function of tensors under a derivative of symgrad's uses a tensor from outside that requires grad, to which no gradient "
    "would flow. Pass it as an argument, or use its .detach(), or call the derivative under torch.no_grad()."
)
_GRAD_DTYPE = (
    "The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
    "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a "
    "tensor and its gradient may break downstream systems that assume they match."
)
_NOT_A_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
    "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() "
    "on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
    "github.com/pytorch/pytorch/pull/30531 for more information."
)

_new = Tensor.__new__


def wrap(value: Any) -> Tensor:
    """A tensor of these values, which it takes as they are."""
    tensor = _new(Tensor)
    tensor.value, tensor.counter = value, [0]
    if mode.inference:
        tensor.inference = True
    return tensor


def constant(value: Any, shared: bool = False) -> Tensor:
    """A tensor of what is a constant to the derivative of symgrad's that follows it, as under ``no_grad``.

    ``shared``: whether torch has it in the memory of what is none; then it must not be written to.
    """
    if type(value) is not Tracer:
        return wrap(value)
    stopped = STOP(value)
    tensor = wrap(stopped if shared else stopped.copy())
    tensor.made = "shared" if shared else "constant"
    return tensor


def tied(value: Any, x: Tensor) -> Tensor:
    """A constant made of the values of ``x``, whose memory it may share: where it is saved, writes to ``x`` are noticed."""
    tensor = _new(Tensor)
    tensor.value, tensor.counter = value, x.counter
    if x.inference:
        tensor.inference = True
    return tensor


def numbers(x: Tensor) -> Any:
    """The value, from which numbers are taken that no gradient flows through."""
    return STOP(x.value) if type(x.value) is Tracer else x.value


def linked(value: Any, edge: Any, counter: list[Any] | None = None) -> Tensor:
    """A tensor that came from ``edge``; ``counter``: of the writes to what it was saved from."""
    tensor = _new(Tensor)
    tensor.value, tensor.counter, tensor.needs = value, [0] if counter is None else counter, True
    tensor.node = edge if not isinstance(edge, Tensor) else cast_of(edge, value)
    return tensor


def cast_of(leaf: Tensor, value: Any) -> Node:
    """A node that leads to a leaf from a cast of it."""
    return Node(ASTYPE, plan_of(ASTYPE, 1, (0,)), (value,), {"dtype": value.dtype}, (leaf,), (), value, "ToCopyBackward0")


def plain(x: Any) -> Any:
    """The NumPy value of a tensor, an array, a number or nested lists of them."""
    if isinstance(x, Tensor):
        return x.value
    return x if isinstance(x, (np.ndarray, np.generic, Traced)) else np.asarray(x)


def whole(x: Tensor) -> np.ndarray[Any, Any]:
    """The array of a tensor, which a NumPy scalar is turned into, so that others may share it."""
    if type(x.value) is not np.ndarray and not isinstance(x.value, Traced):
        x.value = np.array(x.value)
    return x.value  # type: ignore[return-value]


class Fused(Op):
    """An operation of our own, for which NumPy has no function; on a traced value it is what it is made of.

    ``keeps(*arrays, **params)`` gives the result and what the forward pass has computed on its way there. Where that is
    recorded, the rules get it as ``kept=``, unless they are recorded themselves: then they compute it anew.

    ``kernel``: what torch calls the function when it refuses a dtype that is not of one of ``kinds``.
    """

    def __init__(
        self,
        fun: Any,
        *rules: Any,
        family: str = "op",
        name: str | None = None,
        keeps: Any = None,
        kernel: str | None = None,
        kinds: str = "f",
        **options: Any,
    ) -> None:
        super().__init__(fun, family, rules, name=name, **options)
        self.keeps, self.kernel, self.kinds = keeps, kernel, kinds

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        for array in arrays:
            if array.__class__ is not _array and isinstance(array, Tensor):
                return apply(self, arrays, params)
        return self.fun(*arrays, **params)


def known(key: Any) -> Op:
    """The operation that the registry has for a function of NumPy's."""
    found = REGISTRY[key]
    assert isinstance(found, Op)
    return found


def variant(op: Op, **changes: Any) -> Op:
    """The same operation, with another way to run it."""
    made = op.__class__.__new__(op.__class__)
    made.__dict__.update(op.__dict__, **changes)
    return made


class _LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """Torch's error, and NumPy's, for a matrix that cannot be factorised."""


LinAlgError = _LinAlgError

# -- recording -----------------------------------------------------------------------------------------------------


def apply(op: Op, args: Sequence[Any], params: dict[str, Any] = NONE, label: Label = None) -> Any:
    """Run ``op`` on tensors and plain values; its result as a tensor (a tuple of them), recorded where that is wanted."""
    values: list[Any] = []
    wanting: tuple[int, ...] = ()
    for arg in args:
        if isinstance(arg, Tensor):
            if arg.needs or (arg.base is not None and arg.base.needs):
                wanting += (len(values),)
            values.append(arg.value)
        else:
            values.append(arg)
    return execute(op, args, values, wanting, params, label)


def execute(
    op: Op, args: Sequence[Any], values: list[Any], wanting: tuple[int, ...], params: dict[str, Any], label: Label
) -> Any:
    """``apply``, on values that have been looked up (and perhaps cast) already; ``wanting``: which require grad."""
    if not mode.grad and mode.tracing:
        if wanting and mode.recording and not mode.constant:
            raise NotDifferentiable(OUTSIDE)
        y = _traced(op, values)(*values, **params)
        if mode.constant and not (op.alias and isinstance(args[0], Tensor) and args[0].made == "constant"):
            return tuple([constant(part, op.alias) for part in y]) if isinstance(y, tuple) else constant(y, op.alias)
        parts = [wrap(part) for part in (y if isinstance(y, tuple) else (y,))]
        if op.alias and isinstance(args[0], Tensor):
            for part in parts:
                part.made = args[0].made
        return tuple(parts) if isinstance(y, tuple) else parts[0]
    if op.alias and type(values[0]) is not _array and isinstance(args[0], Tensor):
        values[0] = whole(args[0])  # which a view can share
    if op.__class__ is Fused and op.kernel is not None:
        check_kernel(op.kernel, values[0].dtype, op.kinds)
    try:
        if wanting and op.__class__ is Fused and op.keeps is not None and mode.grad:
            y, kept = mode.quiet(op.keeps, *values, **params)
            params = {**params, "kept": kept}
        else:
            y = mode.quiet(op.fun, *values, **params)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(str(error)) from None
    except ValueError as error:
        if op.family != "elementwise" and not isinstance(op.key, np.ufunc) and not op.name.endswith("_loss"):
            raise
        pairs = itertools.combinations([np.shape(value) for value in values if value is not None], 2)
        raise next(filter(None, itertools.starmap(unlike, pairs)), error) from None
    except TypeError:
        kinds = [value.dtype for value in values if isinstance(value, (np.ndarray, np.generic))]
        if not isinstance(op.key, np.ufunc) or not kinds:
            raise
        raise NotImplementedError(f"\"{op.key.__name__}_cpu\" not implemented for '{title(kinds[0])}'") from None
    except RuntimeError:  # of tensors as options, with which no operation can do anything
        if not any([isinstance(option, Tensor) for option in params.values()]):
            raise
        return execute(op, args, values, wanting, _of_numbers(op, params), label)
    if type(y) is Tracer:
        return y  # a function of tensors met a traced value of ``symgrad.grad``, which goes on as it is
    if wanting and mode.grad:
        plan = _plans.get((op, len(values), wanting)) or plan_of(op, len(values), wanting)
        if plan.flows and (isinstance(y, tuple) or y.dtype.kind in "fc"):
            return attach(op, plan, args, values, params, y, label)
    if op.alias:
        return view(op, args, params, y)
    return tuple([wrap(part) for part in y]) if isinstance(y, tuple) else wrap(y)


def _traced(op: Op, values: Sequence[Any]) -> Any:
    """What runs an operation while a derivative of symgrad's follows: of traced values NumPy's function, where it is a variant.

    Of plain ones its own, whose results may be others.
    """
    known: Any = REGISTRY.get(op.key, op)
    return known if isinstance(known, Op) and any([type(value) is Tracer for value in values]) else op.fun


def check_scalars(x: Tensor, *others: Tensor) -> None:
    """Raise where tensors are of other dtypes than ``x``."""
    for other in others:
        if other.value.dtype != x.value.dtype:
            raise RuntimeError(f"expected scalar type {title(x.value.dtype)} but found {title(other.value.dtype)}")


def check_kernel(kernel: str, given: Any, kinds: str = "f") -> None:
    """Raise where a dtype is none of the kinds that torch has a kernel for."""
    if given.kind not in kinds:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{title(given)}'")


def _of_numbers(op: Op, params: dict[str, Any]) -> dict[str, Any]:
    """Options, with numbers in place of tensors."""
    for name, option in params.items():
        if isinstance(option, Tensor) and (option.value.ndim or requires(option)):
            raise TypeError(f"{op.name}(): argument '{name}' must be Number, not Tensor")
    return {name: option.item() if isinstance(option, Tensor) else option for name, option in params.items()}


def unlike(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError | None:
    """Torch's error for two shapes that do not go together; None where they do."""
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
            return RuntimeError(
                f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton dimension "
                f"{max(len(a), len(b)) - i}"
            )
    return None


def check_within(shape: tuple[int, ...], *others: Any) -> None:
    """Raise where one of ``others``, tensors or None, is not broadcast to ``shape``, as torch does of an output."""
    for x in others:
        if x is None or x.value.shape == shape:
            continue
        if wrong := unlike(shape, x.value.shape):
            raise wrong
        wide = np.broadcast_shapes(shape, x.value.shape)
        if wide != shape:
            raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(wide)}")


def attach(op: Op, plan: Plan, args: Any, values: list[Any], params: dict[str, Any], y: Any, label: Label) -> Any:
    """The result ``y`` of a recorded operation."""
    counters = []
    for i in plan.reads:
        arg = args[i]
        if isinstance(arg, Tensor):
            if arg.inference:
                raise RuntimeError(_INFERENCE)
            counter = arg.counter
            counters.append((i, counter, counter[0]))
    edges = []
    for i in plan.flows:
        arg = args[i]
        if arg.base is not None:
            renew(arg)
        edges.append(arg.node or arg)
    if plan.drops:
        reads = plan.reads
        values = [value if i in reads else None for i, value in enumerate(values)]
    if isinstance(y, tuple):
        node = Node(op, plan, values, params, edges, counters, tuple(y), label)
        parts = tuple([_part(node, i, part) for i, part in enumerate(y)])
        if plan.result:
            counters += [(-1 - i, parts[i].counter, 0) for i in PARTS.get(op.key, range(len(parts)))]
        if mode.packing is not None:
            node.pack(*mode.packing)
        return parts
    node = Node(op, plan, values, params, edges, counters, y, label)
    tensor = view(op, args, params, y) if op.alias else wrap(y)
    tensor.node, tensor.needs = node, True
    if plan.result:
        counters.append((-1, tensor.counter, tensor.counter[0]))
    if mode.packing is not None:
        node.pack(*mode.packing)
    return tensor


_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
    "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
    "`torch.no_grad()` instead of `torch.inference_mode()`."
)


def _part(node: Node, number: int, y: Any) -> Tensor:
    tensor = wrap(y)
    if y.dtype.kind in "fc":
        tensor.node, tensor.needs = Part(node, number, y), True
    return tensor


# -- views and writing in place ------------------------------------------------------------------------------------


def view(op: Op, args: Sequence[Any], params: dict[str, Any], y: Any) -> Tensor:
    """A tensor for ``y``, which remembers that it looks at the first argument's memory, if it does."""
    tensor, source = wrap(y), args[0]
    if type(y) is np.ndarray and isinstance(source, Tensor):
        value, memory = source.value, y.base
        if y is value or (memory is not None and (memory is value or memory is value.base or np.may_share_memory(y, value))):
            look((tensor,), source)
    return tensor


def look(views: Sequence[Tensor], source: Tensor, made: str = "") -> None:
    """Make tensors views of another.

    ``made``: why they must not be written to while that is recorded: "several" (an operation has made several of them),
    "function" (a custom function gave them), or the mode that was on: "no_grad", "inference". Their own views inherit it.
    """
    base = source if source.base is None else source.base
    made = ("inference" if mode.inference else "" if mode.grad else "no_grad") or made or source.made
    counter, inference = source.counter, source.inference
    for tensor in views:
        tensor.base, tensor.counter, tensor.seen = base, counter, counter[0]
        if made:
            tensor.made = made
        if inference or tensor.inference:
            tensor.inference = inference


def requires(x: Tensor) -> bool:
    """Whether operations on it are recorded: as ``requires_grad``, by fewer calls."""
    return x.needs or (x.base is not None and x.base.needs)


def renew(x: Tensor) -> None:
    """Take the node of a view anew when what it looks at has been written to."""
    base, written = x.base, x.counter[0]
    if x.seen == written or base is None or not (x.node or base.needs):
        return
    if x.made:
        raise RuntimeError(_forbidden(x, "its base or another view of its base has been"))
    lead(x, strided(x.value, base.value, base.node or base))
    x.seen = written


def strided(looking: Any, top: Any, edge: Any) -> Node:
    """The node of an array that looks at the memory of another one, ``top``, of the node or leaf ``edge``."""
    pair = looking
    if top.itemsize > looking.itemsize:  # parts of complex numbers
        top, edge = pairs(top), _step(AS_REAL, top, pairs(top), edge)
    elif top.itemsize < looking.itemsize:
        pair = pairs(looking)
    where, params, plan = (top, places(top, pair)), {"shape": top.shape}, plan_of(AS_STRIDED, 2, (0,))
    node = Node(AS_STRIDED, plan, where, params, [edge], (), pair, "AsStridedBackward0")
    return node if pair is looking else _step(AS_COMPLEX, pair, looking, node)


def _step(op: Op, value: Any, y: Any, edge: Any, label: Label = None) -> Node:
    """The node of a linear operation of one argument."""
    return Node(op, plan_of(op, 1, (0,)), (value,), NONE, [edge], (), y, label)


def lead(x: Tensor, edge: Any) -> None:
    """Let a tensor come from another node, or part of one, where what ``retain_grad`` asked for now waits."""
    x.node, x.needs = edge, True
    if x.kept is not None:
        node, number = (edge.node, edge.number) if type(edge) is Part else (edge, 0)
        node.hooks = node.hooks or {}
        x.kept = x.kept.move(node.hooks, ("retain", ("tensor", number)))


def places(top: Any, looking: Any) -> Any:
    """Where the elements of an array lie in another one, flattened, whose memory it looks at; -1 for those beside it."""
    if not looking.size:
        return np.empty(looking.shape, np.int64)
    size = top.itemsize
    (low, high), ends = np.lib.array_utils.byte_bounds(top), np.lib.array_utils.byte_bounds(looking)
    low, high = min(low, ends[0]), max(high, ends[1])
    numbers = np.full((high - low) // size, -1)  # memory laid out alike, which holds numbers in place of elements

    def numbered(x: Any) -> Any:
        return np.ndarray(x.shape, np.int64, numbers, (x.ctypes.data - low) // size * 8, [n // size * 8 for n in x.strides])

    numbered(top)[...] = np.arange(top.size).reshape(top.shape)
    return numbered(looking)


_BEHIND = (
    "a write through detach(), .data or under no_grad() to a value that a derivative of symgrad's follows; write to a .clone()"
)


def writable(x: Tensor, new: Tensor | None = None, place: Any = None) -> bool:
    """Whether a write to ``x`` (of ``new``) is recorded; an error where torch forbids it. ``place``: as for ``assign``."""
    if type(x.value) is Tracer:
        if x.made == "shared" or (mode.constant and x.made != "constant" and x.value.node.active):
            raise NotDifferentiable(_BEHIND)
        x.made = "constant" if mode.constant else ""
    recorded = mode.grad and (requires(x) or (new is not None and requires(new)))
    if recorded:
        if x.made:
            if place is not None:  # torch takes a view of what is written to
                renew(x)
            raise RuntimeError(_forbidden(x, "is being", place))
        top = x if x.base is None else x.base
        if requires(x) and top.node is None:
            of = "a view of " if place is not None or top is not x else ""
            raise RuntimeError(f"{of}a leaf Variable that requires grad is being used in an in-place operation.")
    if x.inference and not mode.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
            "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    return recorded


def straight(x: Tensor) -> Tensor:
    """What an operation that is done in place reads: a view straight from its base, past hooks and narrower views."""
    if x.base is None or x.made or not (mode.grad and requires(x)):
        return x
    renew(x)
    top = x.base.node or x.base
    node = x.node
    while isinstance(node, Node) and node is not top:
        if node.hooks or (node.op is AS_STRIDED and node.edges[0] is not top):
            same = tied(x.value, x)
            same.base, same.seen = x.base, x.seen
            lead(same, strided(x.value, x.base.value, top))
            return same
        node = node.edges[0] if node.edges else None
    return x


def rewrite(x: Tensor, fun: Callable[[Tensor], Tensor], verb: str) -> Tensor:
    """Write what a function makes of a tensor into it."""
    return assign(x, fun(straight(x)), verb)


def assign(x: Tensor, new: Tensor, verb: str, place: Any = None) -> Tensor:
    """Write ``new`` into the memory of ``x``: what every in-place operation does.

    ``place``: where the elements go, if only some are written: an index, as a spec without arrays.
    """
    if mode.grad and requires(new):
        renew(new)  # as in ``x[0] += y``, where it is a view of ``x`` that has been written to
    recorded = writable(x, new, place)
    if recorded and new.base is not None:
        renew(new)  # before its memory is written to
    if recorded and place is not None:
        renew(x)  # of which torch takes a view
    source, target = new.value, x.value
    if place is not None:
        target = target[index.fill(place, ())]
        if new.base is not None or new is x:
            refuse_overlap(x, new, target)
    elif source.shape != target.shape:
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(source.shape)}")
    elif source.dtype is not target.dtype:
        if RANK[source.dtype.kind] > RANK[target.dtype.kind]:
            raise RuntimeError(
                f"result type {title(source.dtype)} can't be cast to the desired output type {title(target.dtype)}"
            )
        new = new.astype(target.dtype)
        source = new.value
    if recorded and place is None and new.node is not None:
        _keep_first(new.node, x)
    if type(target) is np.ndarray and not target.flags.forc and _overlaps(target):
        _write_over(target, source, verb, recorded)
    elif isinstance(target, np.ndarray):  # a traced one, too
        target[...] = source
    else:
        x.value = source
    counter = x.counter
    counter[0] += 1
    counter[1:] = (verb, user_line())
    if not recorded:
        return x
    if place is None and x.base is None:
        if new.node is None:  # nothing of what was there before is left
            plan, label = plan_of(OVERWRITTEN, 1, (0,)), f"{verb.strip('_').title().replace('_', '')}Backward0"
            new.node = Node(OVERWRITTEN, plan, (x.value,), NONE, [x.node], (), x.value, label)
        lead(x, new.node)
        counter.append(x.grad_fn.name())
        _hold(new, x)
    else:
        counter.append("torch::autograd::CopySlices")
        label = "inplace" if place is None else "copied"
        rebase(x if x.base is None else x.base, target, new, label, place if x.base is None else None)
        if place is None or x.kept is None:  # what it was retains its gradient until ``x`` is looked at
            renew(x)  # now, as its base may be detached
    return x


# what may write to elements that lie in one place, and what a warning then names
_REPEATING = dict.fromkeys(("zero_", "fill_", "tril_", "triu_"), "") | {
    "index_put_": "tensor[indices] = tensor",
    "masked_fill_": "tensor[mask] = scalar",
    "index_fill_": "tensor[mask] = scalar",
}


def _forbidden(x: Tensor, what: str, place: Any = None) -> str:
    """Why a view must not be written to."""
    step = x.node and (x.node.node if type(x.node) is Part else x.node).kind.split("Backward")[0]
    if place is not None and requires(x):
        last = [part for part in place if part is not Ellipsis][-1]
        step = "Select" if isinstance(last, int) else "Unsqueeze" if last is None else "Slice"
    name = step and f"Output {x.output_nr if place is None else 0} of {step} is a view"
    if x.made == "inference":
        start = f"{name} of a view which" if name else "A view"
        text = f"{start} was created in inference mode and {what} modified inplace in normal mode."
    elif x.made == "no_grad" or not name:
        start = f"{name} of a view which" if name else "A view"
        text = f"{start} was created in no_grad mode and {what} modified inplace with grad mode enabled."
    else:
        text = f"{name} and {what} modified inplace."
    return f"{text} {_WHY[x.made]}"


_AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view "
    "and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both outside (if you "
    "want the inplace to be tracked)."
)
_WHY = {
    "several": "This view is the output of a function that returns multiple views. Such functions do not allow the output "
    "views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    "no_grad": _AMBIGUOUS.format("no_grad"),
    "inference": _AMBIGUOUS.format("inference_mode"),
    "function": "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
    "logic to handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.",
}


def _write_over(target: Any, source: Any, verb: str, recorded: bool) -> None:
    """Write to an array several of whose elements lie in one place, where torch lets that pass."""
    if _REPEATING.get(verb):
        warnings.warn(
            f"Use of {verb} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
            f"This also applies to advanced indexing e.g. {_REPEATING[verb]}",
            stacklevel=4,
        )
    if verb not in ("zero_", "fill_") if recorded else verb not in _REPEATING:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    np.copyto(target, source, where=source != target)


def _overlaps(array: Any) -> bool:
    """Whether several elements lie in one place."""
    reach = array.itemsize
    for step, n in sorted([(abs(step), n) for step, n in zip(array.strides, array.shape, strict=True) if n > 1]):
        if step < reach:
            return True
        reach += step * (n - 1)
    return False


def refuse_overlap(x: Tensor, other: Tensor, target: Any = None) -> None:
    """Raise where elements of ``other`` lie among those of ``x`` that are written to (in ``target``), but not in one order."""
    if other is x and target is None:
        return
    if (x if x.base is None else x.base) is not (other if other.base is None else other.base):
        return
    a, b = x.value if target is None else target, other.value
    if target is not None and type(b) is np.ndarray and b.shape != a.shape:
        b = np.broadcast_to(b, a.shape)  # what torch has expanded is copied, wherever it lies
    if type(a) is not np.ndarray or type(b) is not np.ndarray or not (a.size and b.size and _dense(a) and _dense(b)):
        return
    (low, high), (start, stop) = np.lib.array_utils.byte_bounds(a), np.lib.array_utils.byte_bounds(b)
    if low < stop and start < high and not (low == start and high == stop and a.strides == b.strides):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )


def _dense(array: Any) -> bool:
    """Whether its elements lie one beside the other, in whatever order."""
    reach = array.itemsize
    for step, n in sorted([(step, n) for step, n in zip(array.strides, array.shape, strict=True) if n > 1]):
        if step != reach:
            return False
        reach *= n
    return True


def _keep_first(node: Any, x: Tensor) -> None:
    """``x.mul_(y)`` reads what ``x`` was: a copy of it is saved, as its memory is about to be written to."""
    if type(node) is Node and any([which == 0 and counter is x.counter for which, counter, _ in node.counters]):
        node.args = [np.array(node.args[0]), *node.args[1:]]
        node.counters = [saved for saved in node.counters if saved[0] != 0]


def _hold(new: Tensor, x: Tensor) -> None:
    """A node that saved its own result now saves ``x``, which is where that result lies."""
    node = new.node
    if type(node) is Node and node.plan.result:
        node.result = x.value
        node.counters = [c if c[0] >= 0 else (-1, x.counter, x.counter[0]) for c in node.counters]


def rebase(top: Tensor, target: Any, new: Tensor, label: str, place: Any = None) -> None:
    """The history of ``top`` after a write into a part of its memory: what it was, with ``new`` copied into that place.

    ``target``: the part; ``place``: the index that leads to it, if that is known. ``label``: "copied" or "inplace".
    """
    if top.value.itemsize > target.itemsize:  # a write to parts of complex numbers
        parts = wrap(pairs(top.value))
        if top.needs:
            lead(parts, _step(AS_REAL, top.value, parts.value, top.node or top))
        rebase(parts, target, new, label)
        lead(top, _step(AS_COMPLEX, parts.value, top.value, parts.node, "CopySlices"))
        return
    if top.value.itemsize < target.itemsize:
        rebase(top, pairs(target), apply(AS_REAL, (new,)), label)
        return
    rest: tuple[Any, ...] = ()
    if place is None:
        shape = top.value.shape
        rest = np.unravel_index(places(top.value, target), shape) if shape else ()
        place = tuple([index.Hole(i) for i in range(len(rest))])
    both = [t for t in (top, new) if t.needs]
    plan = plan_of(COPY_SLICES, 2 + len(rest), tuple(i for i, t in enumerate((top, new)) if t.needs))
    edges = [t.node or t for t in both]
    lead(top, CopySlices(COPY_SLICES, plan, (top.value, new.value, *rest), {"spec": place}, edges, (), top.value, label))


COPY_SLICES = index.Indexing(
    lambda base, value, *arrays, spec: base,
    "copy_slices",
    (
        lambda g, y, base, value, *arrays, spec: index.SETITEM(g, 0.0, *arrays, spec=spec),
        lambda g, y, base, value, *arrays, spec: index.GETITEM(g, *arrays, spec=spec),
    ),
)


OVERWRITTEN = Fused(lambda x: x, lambda g, y, x: np.zeros_like(g), family="linear", name="overwritten")


def pairs(z: Any) -> Any:
    """Complex numbers as pairs of real ones, in the same memory."""
    part = z.real
    return np.lib.stride_tricks.as_strided(part, (*part.shape, 2), (*part.strides, part.itemsize))


AS_REAL = Fused(
    lambda z: np.stack([z.real, z.imag], -1) if type(z) is Tracer else pairs(z),
    lambda g, y, z: g[..., 0] - 1j * g[..., 1],
    family="linear",
    name="view_as_real",
    alias=True,
)
AS_COMPLEX = Fused(
    lambda x: index.COMPLEX(x[..., 0], x[..., 1]) if type(x) is Tracer else x.view(f"c{2 * x.itemsize}")[..., 0],
    lambda g, y, x: np.stack([np.real(g), -np.imag(g)], -1),
    family="linear",
    name="view_as_complex",
    alias=True,
)


def _strided_rule(g: Any, y: Any, x: Any, places: Any, shape: tuple[int, ...]) -> Any:
    count = math.prod(shape)  # one more takes what lies beside it
    flat = index.SCATTER(np.reshape(g, -1), places.reshape(-1), spec=(index.Hole(0),), shape=(count + 1,))
    return np.reshape(flat[:count], shape)


AS_STRIDED = Fused(lambda x, places, shape: x.reshape(-1)[places], _strided_rule, None, family="linear", name="as_strided")

_HERE = (os.path.dirname(os.path.dirname(__file__)) + os.sep, os.path.dirname(np.__file__) + os.sep)


def user_line() -> str:
    """``file:line`` of the innermost frame outside symgrad and NumPy."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


# -- helpers of the functions --------------------------------------------------------------------------------------


def method(fun: Any) -> Any:
    """Make a function of a tensor a method of tensors too."""
    setattr(Tensor, fun.__name__, fun)
    return fun


def methods(**members: Any) -> None:
    """Give tensors these methods and properties."""
    for name, member in members.items():
        setattr(Tensor, name, member)


_F = TypeVar("_F", bound=Callable[..., Any])


def called(name: str, doc: str) -> Callable[[_F], _F]:
    """A decorator for functions that are made by the dozen: gives each its name and docstring."""

    def name_it(fun: _F) -> _F:
        fun.__name__ = fun.__qualname__ = name
        fun.__doc__ = doc
        return fun

    return name_it


def axis_of(dim: Any, ndim: int) -> Any:
    """NumPy's axis of torch's ``dim``: None for all, checked as torch does."""
    if isinstance(dim, (list, tuple)):
        axes = tuple(axis_of(d, ndim) for d in dim)
        if len(set(axes)) < len(axes):
            twice = next(d for d in axes if axes.count(d) > 1)
            raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
        return axes
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim % limit


def labelled(x: Any, label: Label) -> Any:
    """With torch's name of the whole for what was made of several operations."""
    if isinstance(x, Tensor) and x.node is not None:
        node = x.node.node if type(x.node) is Part else x.node
        node.label = label
    return x


def chained(steps: Sequence[str], start: Any = 0) -> Any:
    """The label of operations that follow each other, the first one of argument ``start``."""
    if len(steps) == 1 and start == 0:
        return steps[0]
    label = start
    for step in steps:
        label = (step, label)
    return label


def as_tensor_of(x: Any) -> Tensor:
    """A tensor as it is; anything else as one."""
    return x if isinstance(x, Tensor) else wrap(plain(x))


def conjugate(g: Any) -> Any:
    """Between our convention of cotangents (no conjugates) and torch's gradients; only complex ones differ."""
    value = g.value if isinstance(g, Tensor) else g
    return np.conj(g) if value is not None and value.dtype.kind == "c" else g


def fitted(g: Any, shape: Any, kind: Any) -> Any:
    """A cotangent in the shape and dtype of what it belongs to."""
    if g.__class__ is not _array:
        value = g.value if isinstance(g, Tensor) else g
        if not isinstance(value, (np.ndarray, np.generic, Traced)):
            return np.full(shape, g, kind)
        if value.shape == shape and value.dtype == kind:  # type: ignore[union-attr]
            return g
        if isinstance(g, Traced):
            return fit(g, Aval(shape, kind, "array"))
    elif g.shape == shape and g.dtype is kind:
        return g
    extra = g.ndim - len(shape)
    if extra >= 0 and g.dtype is kind:  # as ``fit`` does, by fewer calls
        if g.shape[extra:] == shape:
            return _add(g, 0 if extra == 1 else tuple(range(extra)))
        axes = tuple([i for i, (have, want) in enumerate(zip(g.shape, shape, strict=False)) if want == 1 != have])
        if not extra and axes:
            g = _add(g, axes, None, None, True)
            return g if g.shape == shape else np.array(np.broadcast_to(g, shape))
    if math.prod(shape) <= _SMALL and (g.ndim == 0 or _broadcasts(g.shape, shape)) and (g.dtype is kind or kind.kind == "c"):
        full = np.empty(shape, kind)
        full[...] = g
        return full
    return fit(g, Aval(shape, kind, "array"))


_add: Any = np.add.reduce
_SMALL = 1 << 12  # elements up to which copying costs less than the making of a view that repeats them


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether broadcasting leads from a shape to the target."""
    lead = len(target) - len(shape)
    return lead >= 0 and all([have in (1, want) for have, want in zip(shape, target[lead:], strict=True)])
