"""Reverse mode: from the cotangents of outputs to the cotangents of inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.errors import NotDifferentiable
from symgrad.ir import Aval, Node, ancestors
from symgrad.ir import Sequence as Sequence_
from symgrad.ops.core import as_numpy, fit
from symgrad.ops.engine import ADD_LISTS, ITEM
from symgrad.ops.index import GETITEM, INDEX_ADD, SETITEM, fill
from symgrad.runtime import add_at
from symgrad.tracing.trace import IN_PLACE, Tape, Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.lanes import NOTHING, Around, Masks, State, apply, asks, fit_to, matters, may_leave_out

Lookup = Callable[[Node], Any]


def path(outputs: Sequence[Node], wrt: Sequence[Node]) -> list[Node]:
    """The nodes between ``wrt`` and ``outputs`` that a derivative flows through, in order, ``wrt`` included."""
    reached = set(wrt)
    order = []
    for node in ancestors(outputs, floor_of(wrt)):
        if node in reached:
            order.append(node)
        elif any([node.args[i] in reached for i in node.flows]):
            reached.add(node)
            order.append(node)
    return order


def floor_of(wrt: Sequence[Node]) -> int:
    """The index of the first of the nodes that a derivative is taken by: what comes before cannot depend on them."""
    return min((node.index for node in wrt), default=0)


def reverse(
    trace: Trace,
    outputs: Sequence[tuple[Node, Any]],
    wrt: Sequence[Node],
    symbolic: bool = True,
    around: Around | None = None,
) -> list[Any | None]:
    """The cotangents of ``wrt``, given ``(node, cotangent)`` of the outputs; ``None`` where nothing flows.

    ``symbolic``: the rules run on Tracers and write new nodes into the trace; otherwise they run on plain values.
    ``around``: for the body of a loop, what is known of zeros around it.
    """
    order = trace.recorded(wrt)
    lookup: Lookup = trace.lookup if symbolic else trace.computed
    whole = bool(order)  # all that derivatives flow into at all is on the way
    order = order or path([node for node, _ in outputs], wrt)
    chooses = trace.double_where and (around is not None or any([node.args and may_leave_out(node.op) for node in order]))
    if chooses and not symbolic and around is None:
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                found = _sweep(trace, outputs, wrt, order, whole, symbolic, None, None)
        except FloatingPointError:
            pass
        else:
            if _is_finite(found):
                return found
    asking = around is None and not symbolic and asks(trace.graph.nodes)  # of what is a constant here, too
    wary = around.forks if around is not None else asking or trace.leaves_out
    if not chooses or (around is None and not matters(order, wrt, floor_of(wrt), lookup, wary)):
        start = len(trace.graph.nodes)
        found = _sweep(trace, outputs, wrt, order, whole, symbolic, None, None)
        last = symbolic and trace.lean and around is None
        if last and any([node.args and node.op.hides for node in trace.graph.nodes[start:]]):  # there are masks in loops
            _sweep_without_masks(trace, outputs, wrt, order, found)
        return found
    if not symbolic and around is None:
        with np.errstate(all="ignore"):
            found = _sweep(trace, outputs, wrt, order, whole, symbolic, None, None)
        if _is_finite(found):
            return found  # there was no infinity to be looked after
    order = path([node for node, _ in outputs], wrt) if whole else order
    flows, levels = set(order), dict.fromkeys(wrt, 0) if around is None else around.levels
    starts = [node for node, _ in outputs if node in flows]
    lanes = Masks(ancestors(starts, floor_of(wrt)), order, levels, lookup, trace.lean, wary)
    trace.masked = True
    found = _sweep(trace, outputs, wrt, order, False, symbolic, lanes, around)
    if symbolic and trace.lean:
        _sweep_without_masks(trace, outputs, wrt, order, found)
    return found


def _is_finite(found: Sequence[Any]) -> bool:
    """Whether there is no infinity in plain cotangents."""
    return all([g is None or bool(np.isfinite(g).all()) for g in found])


def _sweep_without_masks(
    trace: Trace, outputs: Sequence[tuple[Node, Any]], wrt: Sequence[Node], order: Sequence[Node], found: Sequence[Any]
) -> None:
    """Note what the pass gives without masks, which takes less time, and is the same where no infinity is met."""
    trace.lean, double, trace.double_where = False, trace.double_where, False
    try:
        with np.errstate(all="ignore"):
            plain = _sweep(trace, outputs, wrt, order, False, True, None, None)
    finally:
        trace.double_where = double
    note_unmasked(trace, found, plain)


def note_unmasked(trace: Trace, found: Sequence[Any], plain: Sequence[Any]) -> None:
    """Note results without masks beside those with them."""
    for masked, other in zip(found, plain, strict=True):
        if type(masked) is not Tracer or type(other) is not Tracer or masked.node is other.node:
            continue
        if masked.node.aval == (*other.node.aval[:2], "array") != other.node.aval:  # a mask has made an array of a number
            other = np.where(True, other, 0)
        if masked.node.aval == other.node.aval:
            trace.unmasked[masked.node] = other.node, other.later or bool(np.all(np.isfinite(other.value)))


def _sweep(
    trace: Trace,
    outputs: Sequence[tuple[Node, Any]],
    wrt: Sequence[Node],
    order: Sequence[Node],
    whole: bool,
    symbolic: bool,
    lanes: Masks | None,
    around: Around | None,
) -> list[Any | None]:
    """One pass over ``order``; ``whole``: the nodes in it are all that derivatives flow into."""
    flows = set(order)
    ends = set(wrt)
    pending: dict[Node, Any] = {}
    lookup: Lookup = trace.lookup if symbolic else trace.computed
    for i, (node, g) in enumerate(outputs):
        if node in flows:
            known = around is not None and lanes is not None
            _give(pending, node, g, lanes, lanes.start(node, around.live[i]) if known else NOTHING)  # type: ignore[union-attr]
    found: dict[Node, Any] = {}
    owned: set[Node] = set()  # plain cotangents that this pass allocated itself, and may add to in place
    outer = trace.line, trace.phase
    trace.phase = "backward"
    try:
        for node in reversed(order):
            g = pending.pop(node, None)
            if g is None:
                continue
            if symbolic:
                trace.line = node.line
                _name(node, g)
            if node in ends:
                if lanes is not None and around is not None:
                    around.found[node] = lanes.live(node)
                found[node] = g if lanes is None else lanes.settle(node, g)
            elif node.op is ITEM:
                _add_part(pending, node, g if lanes is None else lanes.item(node, g))
            elif lanes is not None and node.op.lanes_of(0) == "some" and (chain := lanes.chain(node)):
                for arg, part, state in _of_picked(trace, node, chain, g, symbolic, lanes):
                    _give(pending, arg, part, lanes, state)
                    owned.discard(arg)
            elif node.op is GETITEM and node.args[0] in flows and node.args[0].aval.shape:
                _add_at(pending, owned, node, g, lookup, lanes)
            elif node.op in IN_PLACE and not symbolic and lanes is None and type(g) is np.ndarray and g.shape:
                _through_write(pending, owned, flows, node, g, _of_write(trace, node))
            elif node.op.lanes == "loop":
                _through_loop(pending, flows, node, g, lookup, lanes)
            else:
                places = node.flows if whole else [i for i in node.flows if node.args[i] in flows]
                look = lookup if symbolic or not (node.op.looks_back or node.op in IN_PLACE) else _plain(trace, node)
                if node.op is SETITEM:  # what is read from the cotangent, before it is written over: no copy is needed
                    places = places[::-1]
                if lanes is not None:
                    for i, (part, state) in zip(places, _in_lanes(node, places, g, look, lanes), strict=True):
                        if part is not None:
                            _give(pending, node.args[i], part, lanes, state)
                            owned.discard(node.args[i])
                    continue
                for i, part in zip(places, cotangents(node, places, g, look), strict=True):
                    if part is not None:
                        arg = node.args[i]
                        part = fit_to(part, arg)
                        before = pending.get(arg)
                        pending[arg] = part if before is None else _add(before, part, arg)
                        owned.discard(arg)
            if trace.lean and lanes is None:
                trace.release(node)
    finally:
        trace.line, trace.phase = outer
    return [found.get(node) for node in wrt]


def _plain(trace: Trace, node: Node) -> Lookup:
    """The plain values that the rules of such an operation ask for; traced ones if they look at how its arguments were made."""
    if node.op.looks_back:
        return lambda one: trace.lookup(one) if one in node.args else trace.computed(one)
    return _of_write(trace, node)


def _of_write(trace: Trace, node: Node) -> Lookup:
    """The values that a write's rules ask for: of what it wrote into, and made, they ask for the shape alone."""
    array, *rest = node.args
    outlined = {node, array}.difference(rest)
    return lambda one: trace.outlined(one) if one in outlined else trace.computed(one)


def _through_write(pending: dict[Node, Any], owned: set[Node], flows: set[Node], node: Node, g: Any, lookup: Lookup) -> None:
    """The plain cotangents of what was written into, and of what was written there; one that the pass owns is passed on."""
    base, value, *arrays = node.args
    if value in flows:
        (part,) = cotangents(node, (1,), g, lookup)
        part = part.copy() if type(part) is np.ndarray else part  # which may be a view
        _give(pending, value, fit_to(part, value), None, NOTHING)
        owned.discard(value)
    if base in flows:
        g = g if node in owned else np.array(g)
        if node.op is SETITEM:
            g[fill(dict(node.params)["spec"], [lookup(array) for array in arrays])] = 0
        (owned.discard if base in pending else owned.add)(base)
        _give(pending, base, fit_to(g, base), None, NOTHING)


def _of_picked(
    trace: Trace, node: Node, chain: Sequence[Node], g: Any, symbolic: bool, lanes: Masks
) -> list[tuple[Node, Any, State]]:
    """The cotangents, with their lanes, of what goes into a chain of elementwise operations that ``node`` picks from.

    The chain is run once more on what is picked: what is not picked takes no part, infinite or not.
    """
    picked, *indices = node.args
    run = trace if symbolic else Tape()  # the trace of a pullback is closed
    wrt: dict[Node, Node] = {}  # what the derivatives are taken by, in that run

    def look(arg: Node) -> Any:
        if symbolic:
            value = trace.lookup(arg)
        else:
            value = run.lookup(run.constant(trace.values[arg])[0])
            value = run.fresh(value) if arg in lanes.flows else value
        if arg in lanes.flows:
            wrt[arg] = value.node
        return value

    at = [look(arg) for arg in indices]
    made: dict[Node, Any] = {}
    for one in chain:
        for arg in one.args:
            if arg not in made:
                value = look(arg)
                whole = value if np.shape(value) == picked.aval.shape else np.broadcast_to(value, picked.aval.shape)
                made[arg] = node.op(whole, *at, **dict(node.params)) if np.ndim(value) else value
        made[one] = run.record(one.op, [made[arg] for arg in one.args], dict(one.params))
    live = lanes.live(node)
    around = Around({new: 0 if live is None else lanes.levels[arg] for arg, new in wrt.items()}, [live])
    g = lanes.settle(node, g)
    parts = reverse(run, [(made[picked].node, g)], list(wrt.values()), symbolic, around)
    return [
        (arg, part, lanes.start(arg, around.found.get(new)))
        for (arg, new), part in zip(wrt.items(), parts, strict=True)
        if part is not None
    ]


def _give(pending: dict[Node, Any], node: Node, part: Any, lanes: Masks | None, state: State) -> None:
    """Add a part to a node's cotangent."""
    before = pending.get(node)
    if lanes is not None:
        pending[node] = lanes.add(node, before, part, state)
    else:
        pending[node] = part if before is None else _add(before, part, node)


def _add(a: Any, b: Any, node: Node) -> Any:
    """The sum of two cotangents of a node; of a Python number, which is double, plain ones add up in double precision."""
    if isinstance(node.aval, Sequence_):
        return ADD_LISTS(a, b)
    if node.aval.kind == "python":
        a, b = _in_double(a), _in_double(b)
    return a + b


_DOUBLE: dict[Any, Callable[[Any], Any]] = {np.float16: np.float64, np.float32: np.float64, np.complex64: np.complex128}


def _in_double(x: Any) -> Any:
    """A plain number in double precision; whatever else as it is."""
    double = _DOUBLE.get(type(x))
    return x if double is None else double(x)


def _in_lanes(node: Node, places: Sequence[int], g: Any, lookup: Lookup, lanes: Masks) -> list[tuple[Any, State]]:
    """The cotangents of the arguments at ``places``, and what is known of their zeros."""
    if node.op.joint is None:
        args = [lookup(arg) for arg in node.args]  # once for all, of which an operation may have thousands
        rule = lambda i, g, args: cotangents(node, (i,), g, lookup, args)[0]
        return [lanes.send(node, i, g, args, rule) for i in places]
    parts = cotangents(node, places, apply(g, lanes.states.get(node, NOTHING)[1]), lookup)
    return [(fit_to(part, node.args[i]), NOTHING) for i, part in zip(places, parts, strict=True)]


def _through_loop(pending: dict[Node, Any], flows: set[Node], node: Node, g: Any, lookup: Lookup, lanes: Masks | None) -> None:
    """The cotangents of what a loop takes; an ``if`` is given what there is of those that it adds to."""
    args = [lookup(arg) for arg in node.args]
    taken = {i: node.args[i] for i in node.op.adding(node.args) if node.args[i] in pending}
    before = {i: (pending[arg], None if lanes is None else lanes.live(arg)) for i, arg in taken.items()}
    if lanes is None:
        parts = node.op.joint_in_lanes(g, args, [None] * len(g), [0] * len(args), before)[0]
        found = [(part, NOTHING) for part in parts]
    else:
        before = {i: (lanes.settle(taken[i], part), live) for i, (part, live) in before.items()}
        found = lanes.loop(node, g, args, before)
    for i, (arg, (part, state)) in enumerate(zip(node.args, found, strict=True)):
        if i in before and part is None:
            part, state = before[i][0], NOTHING if lanes is None else lanes.start(arg, before[i][1])
        if i in before:
            del pending[arg]
        if part is not None and arg in flows:
            _give(pending, arg, fit_to(part, arg), lanes, state)


def cotangents(node: Node, places: Sequence[int], g: Any, lookup: Lookup, args: list[Any] | None = None) -> list[Any]:
    """What ``node``'s rules make of its cotangent ``g`` for the arguments at ``places``; ``args``, if looked up already."""
    op = node.op
    args = [lookup(arg) for arg in node.args] if args is None else args
    y = lookup(node) if type(node.aval) is Aval else tuple_of(node, lookup)
    params = dict(node.params) if node.params else {}
    if op.joint is not None:
        found = op.joint(g, y, args, params)
        return [found[i] for i in places]
    try:
        if op.variadic:
            return [op.vjp(i, g, y, args, params) for i in places]
        rules = op.rules
        return [rules[i](g, y, *args, **params) for i in places]
    except (ZeroDivisionError, OverflowError):  # Python numbers raise where NumPy's give inf
        g, y, args = in_numpys(g), in_numpys(y), [in_numpys(arg) for arg in args]
        return [op.vjp(i, g, y, args, params) for i in places]
    except NotDifferentiable as error:
        place = f"{node.line[0]}:{node.line[1]}: " if node.line else ""
        raise type(error)(f"{place}{error}") from None


def in_numpys(value: Any) -> Any:
    """``as_numpy``, of a traced value, too."""
    return Tracer(value.tape, value.node, as_numpy(value.value)) if isinstance(value, Tracer) else as_numpy(value)


def tuple_of(node: Node, lookup: Lookup) -> Any:
    """The results of an operation that has several, each as its own (traced) value."""
    whole = lookup(node)
    if not isinstance(whole, Tracer):
        return whole
    return tuple(whole.tape.record(ITEM, (whole,), {"item": i}) for i in range(len(node.aval)))


def _add_part(pending: dict[Node, Any], node: Node, g: Any) -> None:
    """The cotangent of one result of several: a tuple with None for the others."""
    (whole,) = node.args
    item = dict(node.params)["item"]
    parts = list(pending.get(whole, (None,) * len(whole.aval)))
    parts[item] = g if parts[item] is None else _add(parts[item], g, node)
    pending[whole] = tuple(parts)


def _add_at(pending: dict[Node, Any], owned: set[Node], node: Node, g: Any, lookup: Lookup, lanes: Masks | None) -> None:
    """The cotangent of ``x[index]``, added where ``x``'s other cotangents already are."""
    x, *arrays = node.args
    before = pending.get(x)
    if lanes is not None:
        g, before = lanes.picked(node, g, before)
    if before is None:
        (pending[x],) = cotangents(node, (0,), fit(g, node.aval), lookup)
        owned.add(x)
    elif isinstance(before, Tracer) or isinstance(g, Tracer):
        args = (before, g, *[lookup(array) for array in arrays])
        pending[x] = INDEX_ADD(*args, **dict(node.params))
    else:
        if x not in owned:
            before = np.array(before)
            owned.add(x)
        add_at(before, fill(dict(node.params)["spec"], [lookup(array) for array in arrays]), g)
        pending[x] = before


def _name(node: Node, g: Any) -> None:
    """Call the cotangent of the user's ``z`` ``g_z``."""
    if node.name and isinstance(g, Tracer) and g.node.name is None and g.node.args:
        g.node.name = f"g_{node.name}"
