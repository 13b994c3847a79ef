"""The backward pass: cotangents flow from node to node, the latest recorded first, until they reach leaves."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from operator import add
from typing import Any

import numpy as np

from symgrad.eager.core import (
    NONE,
    LinAlgError,
    Node,
    Part,
    RemovableHandle,
    Tensor,
    apply,
    conjugate,
    fitted,
    method,
    methods,
    renew,
    requires,
    whole,
    wrap,
)
from symgrad.eager.dtypes import Size, title
from symgrad.eager.modes import mode
from symgrad.ops.core import REGISTRY

COPIED: Any = REGISTRY[np.copy]


def _direct(fun: Callable[..., Any], *args: Any) -> Any:
    return fun(*args)


class Sweep:
    """One backward pass. ``create``: cotangents are tensors, and what is computed is recorded in turn.

    ``only``: where given, cotangents go to these edges alone, and are collected in ``found`` rather than in ``.grad``.
    """

    def __init__(self, keep: bool, create: bool, only: Sequence[Any] | None = None, collect: bool = False) -> None:
        self.keep, self.create, self.collect = keep, create, collect
        self.calm: Callable[..., Any] = _direct if create else mode.quiet  # tensors see to NumPy's warnings themselves
        self.only = None if only is None else {id(x) for edge in only for x in (edge, _node_of(edge))}
        self.found: dict[int, Any] = {}
        self.pending: dict[Any, Any] = {}
        self.order: list[tuple[int, Node]] = []
        self.leaves: list[Tensor] = []
        self.path: set[int] | None = None

    def run(self, roots: Sequence[tuple[Any, Any]]) -> None:
        """Send the cotangents of ``roots``, (edge, cotangent) each, through the graph."""
        self.roots = [edge for edge, _ in roots]
        if self.only is not None:
            self.path = needed(self.roots, self.only)
        recording, mode.grad = mode.grad, self.create
        mode.sweeps.append(self)
        try:
            for edge, g in roots:
                self.send(edge, g, g)
            self.flow()
            for leaf in self.leaves:
                self.settle(leaf)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(str(error)) from None
        finally:
            mode.grad = recording
            mode.sweeps.pop()

    def reaches(self, edge: Any) -> bool:
        """Whether a cotangent comes to an edge."""
        if self.path is not None:
            return id(edge) in self.path
        known = needed(self.roots, {id(edge)})
        return any([id(root) in known for root in self.roots])

    def found_at(self, edge: Any) -> Any:
        """The cotangent that was collected at an edge, or None."""
        g = self.found.get(id(_node_of(edge)))
        return g[edge.number] if type(edge) is Part and g is not None else g

    def flow(self) -> None:
        pending, order, leaves, anomaly, keep = self.pending, self.order, self.leaves, mode.anomaly, self.keep
        send, only, calm, ndarray = self.send, self.only, self.calm, np.ndarray
        free = self.path is None and not self.create  # the usual pass: arrays, to all that can be reached
        following = None  # the node that comes next, where that is plain: its cotangent then is ``g``
        while following is not None or order:
            if following is None:
                node = heappop(order)[1]
                g = pending.pop(node)
            else:
                node, following = following, None
            if node.hooks:
                g = self.hooked(node, g)
            if only is not None and id(node) in only:
                self.found[id(node)] = g
                assert self.path is not None
                if not any(id(edge) in self.path for edge in _targets(node)):
                    continue
            if node.hooks:
                g = self.hooked_before(node, g)
            parts = checked(node, g) if anomaly else node.pull(g)
            if not keep:
                node.free()
            if node.hooks:
                parts = self.hooked_after(node, parts, g)
            for edge, part in zip(node.edges, parts, strict=True):
                if part is None:
                    continue
                kind = edge.__class__
                if not free or (kind is not Node and kind is not Tensor):
                    send(edge, part, g)
                    continue
                target = edge if kind is Node else edge.value  # from here on what ``send`` does, for the usual cases
                if part.__class__ is not ndarray or part.shape != target.shape or part.dtype is not target.dtype:
                    part = calm(fitted, part, target.shape, target.dtype)
                before = pending.get(edge)
                if before is not None:
                    pending[edge] = calm(add, before, part)
                elif kind is Tensor:
                    leaves.append(edge)
                    if part is g or part.base is not None or not part.flags.c_contiguous:
                        part = np.array(part, order="C")  # the leaf's own
                    pending[edge] = part
                elif len(parts) == 1 and not order:
                    following, g = edge, part
                else:
                    heappush(order, (-edge.serial, edge))
                    pending[edge] = part

    def send(self, edge: Any, part: Any, source: Any) -> None:
        """Add a cotangent to what has come to an edge. ``source``: the one that it was made from."""
        if type(edge) is Node or isinstance(edge, Node):
            shape, kind = edge.shape, edge.dtype
        elif type(edge) is Part:
            return self.send_part(edge, part)
        else:
            shape, kind = edge.value.shape, edge.value.dtype
        if self.path is not None and id(edge) not in self.path:
            return None
        part = self.calm(fitted, part, shape, kind)
        if self.create and not isinstance(part, Tensor):
            part = wrap(part)
        pending = self.pending
        before = pending.get(edge)
        if before is not None:
            pending[edge] = self.calm(add, before, part)
        else:
            if isinstance(edge, Node):
                heappush(self.order, (-edge.serial, edge))
            else:
                self.leaves.append(edge)
                if not self.create and (part is source or part.base is not None or not part.flags.c_contiguous):
                    part = np.array(part, order="C")  # the leaf's own
            pending[edge] = part
        return None

    def send_part(self, edge: Part, part: Any) -> None:
        node = edge.node
        if self.path is not None and id(edge) not in self.path:
            return
        part = self.calm(fitted, part, edge.shape, edge.dtype)
        all_parts = self.pending.get(node)
        if all_parts is None:
            heappush(self.order, (-node.serial, node))
            all_parts = (None,) * node.outputs
        before = all_parts[edge.number]
        new = part if before is None else self.calm(add, before, part)
        self.pending[node] = (*all_parts[: edge.number], new, *all_parts[edge.number + 1 :])

    # ---- ends ----

    def settle(self, leaf: Tensor) -> None:
        """Give a leaf its gradient, through its hooks."""
        g, old = self.pending.pop(leaf), leaf._grad
        if not leaf.needs:  # any more, or a view that was made in ``no_grad`` mode
            return
        if leaf.value.dtype.kind == "c":
            g = conjugate(g)
        if leaf.hooks:
            g = run_hooks(leaf.hooks, "tensor", g if isinstance(g, Tensor) else wrap(g))
        if self.collect:
            g = g if isinstance(g, Tensor) else wrap(g)  # laid out as the leaf is, so that ``g.view(-1)`` works
            self.found[id(leaf)] = g.contiguous() if leaf.is_contiguous() else g
            return
        if old is None:
            g = g if isinstance(g, Tensor) else wrap(g)
            # where it may be the caller's, another leaf's, or a view that repeats an element, a copy
            leaf._grad = apply(COPIED, (g,), NONE, "CopyBackwards") if self.create or leaf.hooks else g
        elif self.create:
            leaf._grad = old + g
        else:
            total = whole(old)
            if total.size and any([n > 1 and not step for n, step in zip(total.shape, total.strides, strict=True)]):
                raise RuntimeError(
                    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                    "Please clone() the tensor before performing the operation."
                )
            self.calm(np.add, total, g.value if isinstance(g, Tensor) else g, total)
            old.counter[0] += 1
        if leaf.hooks:
            for kind, hook in list(_kinds(leaf.hooks)):
                if kind == "accumulated":
                    hook(leaf)

    # ---- hooks ----

    def hooked(self, node: Node, g: Any) -> Any:
        """The cotangent of a node after the hooks of its results."""
        parts = list(g) if type(g) is tuple else [g]
        for i, part in enumerate(parts):
            if part is None:
                continue
            tensor = part if isinstance(part, Tensor) else own(part)
            assert node.hooks is not None
            tensor = conjugate(run_hooks(node.hooks, ("tensor", i), conjugate(tensor)))
            parts[i] = tensor if self.create else tensor.value
        return tuple(parts) if type(g) is tuple else parts[0]

    def hooked_before(self, node: Node, g: Any) -> Any:
        """The cotangent of a node after the hooks that run before its rules."""
        hooks = [hook for kind, hook in _kinds(node.hooks) if kind == "before"]
        if not hooks:
            return g
        given = tuple(x if x is None or isinstance(x, Tensor) else wrap(x) for x in (g if type(g) is tuple else (g,)))
        for hook in hooks:
            given = hook(given) or given
        parts = [x if self.create or x is None else x.value for x in given]
        return tuple(parts) if type(g) is tuple else parts[0]

    def hooked_after(self, node: Node, parts: list[Any], g: Any) -> list[Any]:
        """The cotangents that a node gives after the hooks that run then."""
        for kind, hook in list(_kinds(node.hooks)):
            if kind == "after":
                outs = tuple(x if x is None or isinstance(x, Tensor) else wrap(x) for x in (g if type(g) is tuple else (g,)))
                flows = _flows(node)
                found = dict(zip(flows, parts, strict=True))
                shapes = dict(zip(flows, node.edges, strict=True))
                ins = tuple(None if found.get(i) is None else _shown(found[i], shapes[i]) for i in node.places)
                new = hook(ins, outs)
                if new is not None:
                    given = dict(zip(node.places, new if isinstance(new, tuple) else (new,), strict=True))
                    parts = [x if self.create or x is None else x.value for x in [given[i] for i in flows]]
        return parts


def _flows(node: Node) -> Sequence[int]:
    return node.plan.flows or range(len(node.edges))


def _shown(part: Any, edge: Any) -> Tensor:
    """A cotangent as a hook sees it: a tensor, in the shape of what it belongs to."""
    target = edge.value if isinstance(edge, Tensor) else edge
    part = fitted(part, target.shape, target.dtype) if hasattr(target, "shape") else part
    return part if isinstance(part, Tensor) else wrap(np.asarray(part))


def own(part: Any) -> Tensor:
    """A cotangent as a tensor that the user may write to."""
    return wrap(part if part.__class__ is np.ndarray and part.flags.writeable else np.array(part))


def _kinds(hooks: Any) -> Any:
    return [(key[0], hook) for key, hook in hooks.items()]


def run_hooks(hooks: Any, kind: Any, g: Tensor) -> Tensor:
    """The gradient after the hooks of one kind; those that retain it come last."""
    for key, hook in list(hooks.items()):
        if key[0] == kind:
            new = hook(g)
            if new is not None:
                g = _like_before(g, new, hook)
    for key, hook in list(hooks.items()):
        if key[0] == ("retain", kind):
            hook(g)
    return g


def _like_before(g: Tensor, new: Any, hook: Any) -> Tensor:
    """What a hook has returned, if it may take the place of the gradient."""
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned {type(new).__name__!r}")
    if new.value.dtype != g.value.dtype:
        before, after = (f"torch.{title(x.value.dtype)}Tensor" for x in (g, new))
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {before} got {after})")
    if new.value.shape != g.value.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return new


def _node_of(edge: Any) -> Any:
    """The node that an edge leads to; a leaf is its own."""
    return edge.node if type(edge) is Part else edge


def _targets(node: Node) -> list[Any]:
    return list(map(_node_of, node.edges))


def needed(roots: Sequence[Any], ends: set[int]) -> set[int]:
    """The ids of the nodes and edges from which one of ``ends`` can be reached."""
    seen: dict[int, Node] = {}
    result = set(ends)
    stack = list(map(_node_of, roots))
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and id(node) not in seen:
            seen[id(node)] = node
            stack.extend(_targets(node))
    for node in sorted(seen.values(), key=lambda node: node.serial):
        for edge in node.edges:
            inner = _node_of(edge)
            if id(inner) in result or id(edge) in result:
                result.update((id(node), id(edge), id(inner)))
    for edge in roots:
        if type(edge) is Part and id(edge.node) in result:
            result.add(id(edge))
    return result


def checked(node: Node, g: Any) -> list[Any]:
    """As ``node.pull``, naming the recorded line where it fails or gives NaN."""
    try:
        parts = node.pull(g)
    except Exception:
        warn_of(node)
        raise
    for i, part in enumerate(parts):
        value = part.value if isinstance(part, Tensor) else part
        if mode.check_nan and value is not None and np.any(np.isnan(value)):
            warn_of(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    return parts


def warn_of(node: Node) -> None:
    """Tell where a node was recorded, when anomaly mode knows."""
    trace = getattr(node, "metadata", {}).get("traceback")
    if trace:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(trace)}"
    else:
        text = (
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward "
            "pass for more information."
        )
    warnings.warn(text, stacklevel=2)


# -- torch's entries -----------------------------------------------------------------------------------------------


def edge_of(x: Tensor) -> Any:
    """What leads from a tensor into the graph: its node, or itself where it is a leaf."""
    if x.base is not None:
        renew(x)
    return x.node or x


def _many(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) or x is None else tuple(x)


_ones: dict[Any, Any] = {}


def _one(value: Any) -> Any:
    """The cotangent of a single number: one, never written to."""
    key = value.dtype, value.shape
    found = _ones.get(key)
    if found is None:
        found = _ones[key] = np.ones(value.shape, value.dtype)
        found.flags.writeable = False
    return found


def seeds(outputs: tuple[Any, ...], given: Any, create: bool) -> list[tuple[Any, Any]]:
    """The roots of a backward pass: each output's edge and its cotangent, ones where none is given."""
    grads = _many(given) if given is not None else (None,) * len(outputs)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    roots = []
    for i, (out, g) in enumerate(zip(outputs, grads, strict=True)):
        if g is not None:
            if not isinstance(g, Tensor):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
            if g.value.shape != out.value.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {Size(g.value.shape)} and output[{i}] has a shape of "
                    f"{Size(out.value.shape)}."
                )
            if (g.value.dtype.kind == "c") != (out.value.dtype.kind == "c"):
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                    f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {out.dtype}."
                )
        elif (out.value.size != 1 or out.value.dtype.kind == "c") and requires(out):
            why = f"real scalar outputs but got {out.dtype}" if out.value.size == 1 else "scalar outputs"
            raise RuntimeError(f"grad can be implicitly created only for {why}")
        if not requires(out):
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        seed = _one(out.value) if g is None else g if create else g.value
        if create:
            seed = conjugate(seed if isinstance(seed, Tensor) else wrap(seed))
        elif seed.dtype.kind == "c":
            seed = np.conj(seed)
        roots.append((edge_of(out), seed))
    return roots


_CIRCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
    "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this "
    "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak."
)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of ``tensors`` to the ``.grad`` of the leaves that they come from.

    Args:
        tensors: one or several; those that are not scalars need a cotangent each in ``grad_tensors``.
        grad_tensors: the cotangents, tensors or None.
        retain_graph: keep what the graph has saved, for another backward pass. As ``create_graph`` by default.
        create_graph: record the backward pass itself, so that it can be differentiated.
        inputs: only these get gradients.
    """
    outputs = _many(tensors)
    create = bool(create_graph)
    if create:
        warnings.warn(_CIRCLE, stacklevel=3)
    wanted = None if inputs is None else _many(inputs)
    if wanted == ():
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = seeds(outputs, grad_tensors if grad_tensors is not None else grad_variables, create)
    ends = None
    if wanted is not None:
        for x in wanted:
            retain_grad(x)
        ends = [edge_of(x) for x in wanted]
    Sweep(create if retain_graph is None else bool(retain_graph), create, ends).run(roots)


_ONLY_INPUTS = (
    "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the "
    "graph, please use torch.autograd.backward."
)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of the sum of ``outputs`` with respect to ``inputs``, a tuple; nothing is accumulated.

    Arguments as for ``backward``. An input that the outputs do not depend on is an error, or None with ``allow_unused``, or
    zeros with ``materialize_grads``.
    """
    if not only_inputs:
        warnings.warn(_ONLY_INPUTS, FutureWarning, stacklevel=2)
    outs, wanted = _many(outputs), _many(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if is_grads_batched:
        rows = list(zip(*_many(grad_outputs), strict=True))
        keeps = [True] * (len(rows) - 1) + [retain_graph]
        each = [
            grad(outs, wanted, row, keep, create_graph, allow_unused=allow_unused or materialize_grads)
            for row, keep in zip(rows, keeps, strict=True)
        ]
        unused = [wrap(np.zeros(x.value.shape, x.value.dtype)) if materialize_grads else None for x in wanted]
        found = zip(unused, zip(*each, strict=True), strict=True)
        return tuple([x if parts[0] is None else np.stack(parts) for x, parts in found])  # type: ignore[misc]
    roots = seeds(outs, grad_outputs, bool(create_graph))
    for x in wanted:
        if not requires(x):
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    ends = [edge_of(x) for x in wanted]
    sweep = Sweep(bool(create_graph) if retain_graph is None else bool(retain_graph), bool(create_graph), ends, True)
    sweep.run(roots)
    results: list[Tensor | None] = []
    for x, edge in zip(wanted, ends, strict=True):
        g = sweep.found_at(edge)
        if g is None and materialize_grads:
            g = np.zeros(x.value.shape, x.value.dtype)
        if g is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {len(results)} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        if isinstance(edge, (Node, Part)):
            g = conjugate(g)
        results.append(g if g is None or isinstance(g, Tensor) else wrap(np.array(g)))
    return tuple(results)


# -- methods of tensors --------------------------------------------------------------------------------------------


def _backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Add the gradients of this tensor to the ``.grad`` of the leaves that it comes from. See ``autograd.backward``."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


methods(backward=_backward)


@method
def retain_grad(self: Tensor) -> None:
    """Let ``backward`` leave the gradient in ``.grad`` though this is no leaf."""
    if not requires(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self.node is None or self.kept:
        return
    mine = weakref.ref(self)

    def keep(g: Tensor) -> None:
        tensor = mine()
        if tensor is not None:
            tensor._grad = g.clone() if tensor._grad is None else tensor._grad + g

    self.kept = RemovableHandle(_hooks_of(self), ("retain", _kind(self)), keep)


methods(retains_grad=property(lambda self: self.kept is not None))


@method
def register_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """``hook(grad)`` runs when the gradient of this tensor is known; what it returns replaces it."""
    if not requires(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return RemovableHandle(_hooks_of(self), _kind(self), hook)


@method
def register_post_accumulate_grad_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """``hook(leaf)`` runs when ``.grad`` of this leaf has been added to."""
    if not requires(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.node is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return RemovableHandle(_hooks_of(self), "accumulated", hook)


def _hooks_of(x: Tensor) -> dict[Any, Any]:
    edge = edge_of(x)
    holder: Node | Tensor = _node_of(edge)
    if holder.hooks is None:
        holder.hooks = {}
    return holder.hooks


def _kind(x: Tensor) -> Any:
    edge = edge_of(x)
    return ("tensor", edge.number) if type(edge) is Part else ("tensor", 0) if isinstance(edge, Node) else "tensor"
