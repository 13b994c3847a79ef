"""``autograd.Function``: an operation with a backward of the user's own."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from symgrad import pytree
from symgrad.custom import CustomVJP
from symgrad.eager.core import (
    TWICE,
    Node,
    Part,
    Plan,
    Tensor,
    conjugate,
    constant,
    lead,
    linked,
    look,
    modified,
    next_of,
    rebase,
    renew,
    requires,
    straight,
    tick,
    tied,
    whole,
    wrap,
    writable,
)
from symgrad.eager.engine import edge_of, own
from symgrad.eager.modes import following, mode, no_grad
from symgrad.errors import NotDifferentiable
from symgrad.ops.core import Op
from symgrad.tracing.trace import followed
from symgrad.tracing.tracer import Tracer


class Context:
    """What ``forward`` hands to ``backward``: ``save_for_backward``, and any attributes."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self._saved: Any = ()
        self._constant: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._materialize = True
        self._freed = False

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs and outputs for ``backward``."""
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """What ``jvp`` would read: nothing is kept, as forward mode through own functions is refused."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that these outputs have no gradient."""
        self._constant = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that these inputs were changed in place."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros, rather than None, for outputs that nothing depends on."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        if self._freed:
            raise RuntimeError(TWICE)
        return tuple([item.get() if isinstance(item, _Saved) else item for item in self._saved])


class _Saved:
    """A saved tensor: an output is rebuilt, so that no circle arises; a write in between is noticed."""

    def __init__(self, x: Tensor, node: Any, name: str) -> None:
        self.value, self.counter, self.seen, self.name = x.value, x.counter, x.counter[0], name
        self.tensor = None if node is not None else x
        self.edge = node
        self.packed: Any = None
        if mode.packing is not None:
            pack, unpack = mode.packing
            self.packed, self.edge = (pack(wrap(x.value)), unpack), edge_of(x) if x.needs and node is None else node
            self.value = self.tensor = None

    def get(self) -> Tensor:
        if self.packed is not None:
            item, unpack = self.packed
            found: Tensor = unpack(item)
            return found if self.edge is None else linked(found.value, self.edge)
        if self.counter[0] != self.seen:
            node = self.edge if self.tensor is None else self.tensor.node
            made = (node.node if type(node) is Part else node).name() if node else None
            raise RuntimeError(modified(self.value, made, self.counter, self.seen, self.name))
        return self.tensor if self.tensor is not None else linked(self.value, self.edge, self.counter)


class FunctionNode(Node):
    """The node of a ``Function``: its cotangents come from ``backward``."""

    __slots__ = ("context", "function", "inputs")

    def __init__(self, function: Any, context: Context, edges: list[Any], inputs: list[int], outs: list[Any]) -> None:
        self.function, self.context, self.edges, self.inputs = function, context, edges, inputs
        self.label, self.hooks, self.serial, self.counters = f"{function.__name__}Backward", None, tick(), []
        self.op, self.plan, self.params, self.args, self.result = _NO_OP, _NO_PLAN, {}, (), None
        if len(outs) == 1 and outs[0] is not None:
            self.shape, self.dtype = outs[0].shape, outs[0].dtype
        self.outputs = len(outs)

    @property
    def next_functions(self) -> tuple[Any, ...]:
        return tuple(next_of(edge) for edge in self.edges)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.context, name)  # to torch, the node and ``ctx`` are one

    def pull(self, g: Any) -> list[Any]:
        create = mode.grad
        parts = list(g) if type(g) is tuple else [g]
        if self.context._materialize:
            shapes = self.params["shapes"]
            parts = [np.zeros(*shape) if part is None and shape else part for part, shape in zip(parts, shapes, strict=True)]
        given = [conjugate(part if part is None or isinstance(part, Tensor) else own(part)) for part in parts]
        found = _gradients(self.function, self.context, given, self.params["tensors"])
        chosen = [conjugate(found[i]) for i in self.inputs]
        for number, (part, edge) in enumerate(zip(chosen, self.edges, strict=True)):
            _check(self.function, self.inputs[number], part, edge.value if isinstance(edge, Tensor) else edge)
        return [part if part is None or create else part.value for part in chosen]

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(range(len(self.edges)))

    @property
    def saves(self) -> bool:
        return bool(self.context._saved)

    def free(self) -> None:
        if self.context._saved:
            self.context._freed, self.context._saved = True, ()


_NO_OP = Op(abs, "constant", (), name="function")
_NO_PLAN = Plan(_NO_OP, 0, ())


def _forward(cls: Any, context: Context, args: tuple[Any, ...]) -> Any:
    if "setup_context" not in {name for kind in cls.__mro__ for name in vars(kind)}:
        return followed(cls.forward)(context, *args)
    outs = followed(cls.forward)(*args)
    followed(cls.setup_context)(context, args, outs)
    return outs


def _gradients(cls: Any, context: Context, given: Sequence[Any], tensors: Sequence[bool]) -> tuple[Any, ...]:
    """What ``backward`` returns, one for each input; ``tensors``: whether that is one."""
    count = len(tensors)
    found = followed(cls.backward)(context, *given)
    found = found if isinstance(found, tuple) else (found,)
    if len(found) < count or any(x is not None for x in found[count:]):
        raise RuntimeError(
            f"function {cls.__name__}Backward returned an incorrect number of gradients (expected {count}, got {len(found)})"
        )
    for i, (x, tensor) in enumerate(zip(found, tensors, strict=False), 1):
        if x is not None and not tensor:
            raise RuntimeError(
                f"function {cls.__name__}Backward returned a gradient different than None at position {i}, but the "
                "corresponding forward input was not a Variable"
            )
        if x is not None and not isinstance(x, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(x).__name__})")
    return found[:count]


def _check(cls: Any, number: int, part: Any, target: Any) -> None:
    """Whether a gradient has the shape of its input, or one that the input broadcasts to, and is real where that is."""
    shape = target.shape
    if part is not None and part.value.dtype.kind == "c" != target.dtype.kind:
        raise RuntimeError(
            f"Function {cls.__name__}Backward returned a complex gradient at index {number}, whose input is real: Expected "
            "isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false."
        )
    have = shape if part is None else part.value.shape
    if have != shape and (
        len(have) < len(shape) or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(have), strict=False))
    ):
        raise RuntimeError(
            f"Function {cls.__name__}Backward returned an invalid gradient at index {number} - got {list(have)} but "
            f"expected shape compatible with {list(shape)}"
        )


class _Kept:
    """What ``ctx`` keeps beside tensors, on the way to ``backward``; equal where the values are, so that code is shared."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Kept) or type(self.value) is not type(other.value):
            return False
        return self.value is other.value or (isinstance(self.value, Hashable) and bool(self.value == other.value))

    def __hash__(self) -> int:
        return hash(type(self.value))


def _packed(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.value
    return x if type(x) is Tracer else _Kept(x)


class _Rule:
    """A ``Function`` as a function of arrays with a rule: what a derivative of symgrad's takes it for."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.call = CustomVJP(self.forward).defvjp(self.forwards, self.backwards)
        vars(self.call)["__name__"] = cls.__name__

    def apply(self, args: tuple[Any, ...]) -> Any:
        """The call, on tensors."""
        which = tuple([isinstance(x, Tensor) for x in args])
        made = constant if mode.constant else wrap
        outs = self.call(which, *[x.value if isinstance(x, Tensor) else x for x in args])
        return tuple(map(made, outs)) if isinstance(outs, tuple) else made(outs)

    def forward(self, which: Any, *args: Any) -> Any:
        return self.forwards(which, *args)[0]

    def forwards(self, which: Any, *args: Any) -> Any:
        """The results, and what ``backward`` will read."""
        given = tuple([wrap(x) if tensor else x for x, tensor in zip(args, which, strict=True)])
        context = Context(which)
        with following(mode.recording):
            outs = _forward(self.cls, context, given)
        if context._dirty:
            raise NotDifferentiable(f"{self.cls.__name__} writes to its arguments (mark_dirty); return new tensors instead")
        several = isinstance(outs, tuple)
        parts = outs if several else (outs,)
        values, flows = tuple(x.value for x in parts), tuple(all(x is not c for c in context._constant) for x in parts)
        attributes = {name: value for name, value in vars(context).items() if name[0] != "_" and name != "needs_input_grad"}
        kept = pytree.map_tree(_packed, attributes)
        saved = [None if x is None else x.value for x in context._saved]
        return (values if several else values[0]), (_Kept((which, flows)), saved, kept)

    def backwards(self, residuals: Any, g: Any) -> Any:
        """What ``backward`` makes of the cotangents."""
        head, saved, kept = residuals
        which, flows = head.value
        context = Context(which)
        context._saved = tuple([None if x is None else wrap(x) for x in saved])
        vars(context).update(pytree.map_tree(lambda x: x.value if isinstance(x, _Kept) else wrap(x), kept))
        with following(False):
            parts = g if isinstance(g, tuple) else (g,)
            given = [wrap(part if flow else np.zeros_like(part)) for part, flow in zip(parts, flows, strict=True)]
            found = _gradients(self.cls, context, given, which)
        return (None, *[None if x is None else x.value for x in found])


def _rule_of(cls: Any) -> _Rule:
    """The ``_Rule`` of a ``Function``, made once."""
    rule: _Rule | None = vars(cls).get("_rule")
    if rule is None:
        rule = cls._rule = _Rule(cls)
    return rule


def once_differentiable(fun: Any) -> Any:
    """For ``backward``: what it gives cannot be differentiated in turn, and is an error where that is tried."""

    @functools.wraps(fun)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        if mode.tracing:
            outs = fun(ctx, *grads)
        else:
            with no_grad():
                outs = fun(ctx, *grads)
            if not mode.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
                return outs
        several = isinstance(outs, tuple)
        given = outs if several else (outs,)
        ends = [x if mode.tracing else x.detach().requires_grad_() for x in given if x is not None]
        blocked = iter(_Once.apply(*ends))
        parts = tuple(None if x is None else next(blocked) for x in given)
        return parts if several else parts[0]

    return wrapped


class Function:
    """Subclass it with static methods ``forward(ctx, ...)`` and ``backward(ctx, *grads)``; call it by ``apply``.

    ``forward`` works on tensors that record nothing; ``backward`` gets the gradients of the outputs and returns one for each
    input (None where there is none).
    """

    def __init__(self) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them "
            "on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function "
            "to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call it, and record the call."""
        if mode.tracing and any([isinstance(x, Tensor) and type(x.value) is Tracer for x in args]):
            return _rule_of(cls).apply(args)
        wanted = tuple(isinstance(x, Tensor) and requires(x) for x in args)
        context = Context(wanted)
        recording, mode.grad = mode.grad, False
        try:
            outs = _forward(cls, context, args)
        finally:
            mode.grad = recording
        if not (recording and any(wanted)):
            return outs
        several = isinstance(outs, tuple)
        given = outs if several else (outs,)
        dirty = {id(x) for x in context._dirty}
        for x in context._dirty:
            if x.needs and x.node is None:
                raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
            writable(x)
            if x.base is not None and len(given) > 1:
                raise RuntimeError(_ONE_RESULT)
        if not dirty <= set(map(id, given)):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function."
            )
        fixed = set(map(id, context._constant))
        results = [
            x if not isinstance(x, Tensor) or id(x) in dirty or all(x is not a for a in args)
            else tied(whole(x), x) if id(x) in fixed else _alias(x)
            for x in given
        ]  # fmt: skip
        places = [i for i, want in enumerate(wanted) if want]
        sources = [edge_of(straight(args[i]) if id(args[i]) in dirty else args[i]) for i in places]
        for x in context._dirty:
            x.counter[0] += 1  # after which views of it look for their nodes anew
        values = [x.value if isinstance(x, Tensor) else None for x in results]
        node = FunctionNode(cls, context, sources, places, values)
        shapes = [None if v is None else (v.shape, v.dtype) for v in values]
        node.params = {"tensors": [isinstance(x, Tensor) for x in args], "shapes": shapes}
        edges: list[Any] = [
            None if v is None or any(x is c for c in context._constant) else Part(node, i, v) if len(values) > 1 else node
            for i, (v, x) in enumerate(zip(values, given, strict=True))
        ]
        saved = []
        for number, item in enumerate(context._saved):
            if item is not None and not isinstance(item, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {number} is of type {type(item).__name__}"
                )
            place = next((i for i, x in enumerate(given) if x is item), None)
            saved.append(None if item is None else _Saved(item, None if place is None else edges[place], node.name()))
        context._saved = tuple(saved)
        for x, edge in zip(results, edges, strict=True):
            if edge is not None and x.value.dtype.kind in "fc":
                if x.base is not None and id(x) in dirty:
                    rebase(x.base, x.value, linked(x.value, edge), "inplace")
                    renew(x)
                    continue
                lead(x, edge)
                x.seen = x.counter[0]
                if x.base is not None:
                    x.made = "several" if len(results) > 1 else "function"
        return tuple(results) if several else results[0]


_ONE_RESULT = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one "
    "Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using "
    ".clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one "
    "doing the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the forum "
    "https://discuss.pytorch.org/ if you need help to do this change."
)


def _alias(x: Tensor) -> Tensor:
    """An input that ``forward`` returns as it is: a view of it."""
    same = wrap(whole(x))
    look((same,), x)
    return same


class _Once(Function):
    """Passes gradients on, and refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, *grads: Any) -> Any:
        return tuple(g.detach() for g in grads)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
