"""``vmap``: a function of one element, run on a whole batch.

The function runs on one element, and ``Batch`` writes what was recorded once more, for all. Where Python looked at a value
(``if``, ``while``, ``int(x)``) the elements need not agree: those that do go on together, and those that do not go their own
way, for which the function runs again on one of them. On a way, the elements of the others are replaced by one that goes it,
so that nothing is computed that would not be computed alone; a mask chooses each element's result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad import pytree
from symgrad.ir import CONST, Node, ancestors
from symgrad.ops.engine import IDENTITY, INDEX
from symgrad.pytree import LEAF, TreeDef
from symgrad.tracing.trace import Guard, Tape, Trace, suspended
from symgrad.tracing.tracer import Tracer, unwritable
from symgrad.transform.batch import Batch, CannotBatch, line_up
from symgrad.transform.batch_loops import filled
from symgrad.transform.batch_rules import forms
from symgrad.transform.calculus import outputs_of, parameters, run, traced, with_leaves
from symgrad.transform.loop import plain

Fun = Callable[..., Any]
Outputs = tuple[list[Any], TreeDef]  # of one element
Axes = Any  # an int, None, or a tree of them that is a prefix of the arguments'

MAX_WAYS = 8  # through the function that the elements of a batch may go, before each one runs alone


class AfterSelf(NamedTuple):
    """The ``in_axes`` of a method: what is said of its arguments; ``self`` is not mapped."""

    axes: Axes

    def of(self, count: int) -> Axes:
        """The axes of a call with so many arguments, ``self`` among them."""
        one = self.axes is None or _is_axis(self.axes)
        return (None, *([self.axes] * (count - 1) if one else self.axes))


class Columns(NamedTuple):
    """The leaves of the arguments; those with ``flags`` have the batch axis in front."""

    leaves: list[Any]
    flags: list[bool]
    tree: TreeDef
    keywords: list[str]
    size: int
    given: tuple[tuple[Any, ...], tuple[Any, ...]]
    trace: Trace

    def row(self, pick: Callable[[Any], Any]) -> tuple[Any, dict[str, Any]]:
        """The arguments of one element."""
        leaves = [pick(leaf) if flag else leaf for leaf, flag in zip(self.leaves, self.flags, strict=True)]
        if not self.tree.holds:
            args, values = self.tree.unflatten(leaves)
            return args, dict(zip(self.keywords, values, strict=True))
        made, start = [], 0
        trees = [child for group in self.tree.children for child in group.children]
        for tree, value in zip(trees, (*self.given[0], *self.given[1]), strict=True):
            end = start + tree.size
            made.append(with_leaves(self.trace, tree, leaves[start:end], value, any(self.flags[start:end])))
            start = end
        count = len(self.given[0])
        return tuple(made[:count]), dict(zip(self.keywords, made[count:], strict=True))


class Way(NamedTuple):
    """What the elements in ``mask`` (all if None) have in common: the outputs' leaves, and which have the batch axis."""

    mask: Any
    leaves: list[Any]
    flags: list[bool]
    tree: TreeDef


def vmap(trace: Trace, fun: Fun, args: Sequence[Any], kwargs: dict[str, Any], *, in_axes: Axes = 0, out_axes: Axes = 0) -> Any:
    """``fun`` of each element of the batch; the results along ``out_axes``."""
    columns = _columns(trace, fun, args, kwargs, in_axes)
    way, done = None, dict[int, Outputs]()
    if trace.one_by_one:
        trace.remark(f"{_title(fun)} runs once for each element of the batch: dynamic mode")
    else:
        try:
            way = _all_ways(trace, fun, columns) if columns.size else _of_none(trace, fun, columns)
        except _Alone as alone:
            trace.remark(f"{_title(fun)} runs once for each element of the batch: {alone}")
            trace.impure, trace.singly = trace.impure or f"vmap of {_title(fun)}: {alone}", True
            done = alone.done
    if way is None:
        way = _one_by_one(trace, fun, columns, done) if columns.size else _of_none(trace, fun, columns)
    return _results(trace, fun, way, columns.size, out_axes)


# -- arguments -----------------------------------------------------------------------------------------------------


def _columns(trace: Trace, fun: Fun, args: Sequence[Any], kwargs: dict[str, Any], in_axes: Axes) -> Columns:
    """The arguments, their mapped axes in front."""
    if isinstance(in_axes, AfterSelf):
        in_axes = in_axes.of(len(args))
    elif isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or _is_axis(in_axes) or (isinstance(in_axes, tuple) and len(in_axes) == len(args))):
        count = f"{len(args)} positional argument(s)"
        raise ValueError(
            f"in_axes must be an int, None, or a tuple of as many as there are arguments; it is {in_axes!r} for {count}"
        )
    given = tuple(args), tuple(kwargs.values())
    leaves, tree = pytree.flatten(given)
    axes = spread(in_axes, tree.children[0], "in_axes") + [0] * tree.children[1].size
    columns: list[Any] = []
    flags: list[bool] = []
    lengths: dict[str, int] = {}
    for leaf, axis, name in zip(leaves, axes, _names(fun, len(args), list(kwargs), tree), strict=True):
        flags.append(axis is not None and not isinstance(leaf, (str, bytes)) and not callable(leaf))
        if axis is None or not flags[-1]:
            columns.append(leaf)
            continue
        if not isinstance(leaf, (Tracer, np.ndarray, np.generic, int, float, complex)):
            raise TypeError(f"vmap: {name} is a {type(leaf).__name__} and has no axis to map; in_axes=None keeps it whole")
        column: Any = traced(trace, leaf)
        shape = np.shape(column.value)
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"vmap: {name} has shape {shape} and no axis {axis} to map; in_axes=None keeps it whole")
        lengths[f"{name} has {shape[axis]} (axis {axis} of {shape})"] = shape[axis]
        columns.append(column if axis % len(shape) == 0 else np.moveaxis(column, axis, 0))
    if not lengths:
        raise ValueError(f"vmap of {_title(fun)}: in_axes={in_axes!r} leaves no argument to map over")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"vmap of {_title(fun)}: the mapped axes differ in length: {', '.join(lengths)}")
    return Columns(columns, flags, tree, list(kwargs), next(iter(lengths.values())), given, trace)


def _is_axis(axis: Any) -> bool:
    return isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)


def spread(axes: Axes, tree: TreeDef, what: str) -> list[int | None]:
    """One axis for each leaf of ``tree``, of which ``axes`` is a prefix."""
    if axes is None or _is_axis(axes):
        return [None if axes is None else int(axes)] * tree.size
    found, children = pytree.flatten(axes)[1], tree.children
    same = found.kind in (tuple, list) and tree.kind in (tuple, list) and len(found.children) == len(children)
    if tree.kind is LEAF or tree.kind is None or not (same or (found.kind is tree.kind and set(found.keys) == set(tree.keys))):
        raise ValueError(f"{what}={axes!r} is no int, None or tree that begins as {tree!r} does")
    if isinstance(axes, dict):
        parts = [axes[key] for key in tree.keys]
    else:
        parts = [getattr(axes, key) for key in tree.keys] if tree.keys else list(axes)
    return [axis for part, child in zip(parts, children, strict=True) for axis in spread(part, child, what)]


def _names(fun: Fun, count: int, keywords: list[str], tree: TreeDef) -> list[str]:
    """What the user calls each leaf of the arguments."""
    positional = [p.name for p in parameters(fun) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [positional[i] if i < len(positional) else f"argument {i}" for i in range(count)]
    found = []
    for (_, group), (_, which), *rest in tree.paths():
        steps = "".join(f".{key}" if step == "attr" else f"[{key!r}]" for step, key in rest)
        found.append((keywords[which] if group else names[which]) + steps)
    return found


# -- all elements at once ------------------------------------------------------------------------------------------


class _Alone(Exception):
    """The elements must run one by one, but for what is ``done``: what an element does outside, it does once."""

    def __init__(self, why: str, done: dict[int, Outputs]) -> None:
        super().__init__(why)
        self.done = done


def _all_ways(trace: Trace, fun: Fun, columns: Columns) -> Way:
    """Run the function on an element for each way that there is, and all elements of that way with it."""
    ways: list[Way] = []
    waiting: list[tuple[Any, frozenset[int]]] = [(None, frozenset())]
    names: dict[Any, int] = {}
    while waiting:
        mask, agreed = waiting.pop()
        if len(ways) == MAX_WAYS:
            raise _Alone(f"they go more than {MAX_WAYS} ways through it", {})
        lanes: dict[Node, Any] = {}
        one, tokens = 0 if mask is None else np.argmax(mask), trace.tokens
        args, kwargs = columns.row(lambda column, one=one, lanes=lanes: _lane(trace, column, one, lanes))  # type: ignore[misc]
        leaves, tree, looks = _watched(trace, fun, args, kwargs, one)
        try:
            way, others = _together(trace, columns.size, lanes, Way(mask, leaves, [], tree), looks, agreed, names)
        except CannotBatch as error:
            raise _Alone(str(error), {}) from None
        if way is None:  # what comes is traced as if that had not been
            trace.tokens = tokens
        ways += [way] if way else []
        waiting += others
    if len(ways) > 1:
        trace.remark(f"the elements of the batch go {len(ways)} ways through {_title(fun)}; each way runs on the whole batch")
    return _chosen(ways, fun)


def _lane(trace: Trace, column: Any, one: Any, lanes: dict[Node, Any]) -> Tracer:
    """One element, which stands for the column that it is from."""
    lane = trace.lane(column[one])
    lanes[lane.node] = column
    return lane


def _watched(trace: Trace, fun: Fun, args: Any, kwargs: Any, one: Any) -> tuple[list[Any], TreeDef, list[Guard]]:
    """Run the function on element number ``one``; its outputs, and what Python looked at on the way."""
    hooks = trace.hooks
    before = trace.impure, None if hooks is None else hooks.impure
    guards, required = len(trace.guards), len(trace.required)
    trace.impure = None
    if hooks is not None:
        hooks.impure = None
    trace.lanes += 1
    try:
        apart: set[Any] | None = None
        # again, where a loop was taken for one of all elements, and is not
        while apart != trace.apart and _unseen(trace) is None:
            apart = set(trace.apart)
            del trace.guards[guards:], trace.required[required:]
            leaves, tree = outputs_of(trace, run(trace, fun, args, kwargs))
    finally:
        trace.lanes -= 1
        unseen = _unseen(trace)
        trace.impure = before[0] or trace.impure
        if hooks is not None:
            hooks.impure = before[1] or hooks.impure
    looked = trace.guards[guards:]
    tried = len(trace.required) > required
    del trace.guards[guards:], trace.required[required:]
    if unseen is not None:
        raise _Alone(unseen, {int(plain(one)): (leaves, tree)})
    if tried:
        raise _Alone("a try statement may catch what one of them raises", {})
    return leaves, tree, looked


def _unseen(trace: Trace) -> str | None:
    """What has happened that cannot be seen again."""
    return trace.impure or (None if trace.hooks is None else trace.hooks.impure)


def _together(
    trace: Trace,
    size: int,
    lanes: dict[Node, Any],
    way: Way,
    guards: list[Guard],
    agreed: frozenset[int],
    names: dict[Any, int],
) -> tuple[Way | None, list[tuple[Any, frozenset[int]]]]:
    """The batched outputs of the elements that go the way of the one that ran; and those that do not, as masks.

    Of what Python looked at, what is ``agreed`` is known to be the same for them all; so it is for the masks returned.
    Where some see True and some False, those that see True come first, whatever the one that ran saw: if False, there is
    no ``Way`` yet. So the trace depends on the guards that are noted here, and not on which element is the first.
    """
    floor = min(node.index for node in lanes)
    ends = [leaf.node for leaf in way.leaves if isinstance(leaf, Tracer)]
    looks = _looks(trace, lanes, guards, floor)
    named = _named(looks, lanes, names)
    mask = way.mask
    others: list[tuple[Any, frozenset[int]]] = []
    while True:  # anew with fewer elements, when some go another way
        b = Batch(trace, size, {node: column if mask is None else filled(mask, column) for node, column in lanes.items()})
        for look, name in zip(looks, named, strict=True):
            seen = _seen_by_all(b, look, floor)
            if seen is None or name in agreed:
                continue
            before, agreed = agreed, agreed | {name}
            if isinstance(look.value, bool):
                if _guard(trace, look, np.all(seen)) or not _guard(trace, look, np.any(seen)):
                    continue
                if not look.value:
                    return None, [*others, (_both(mask, np.logical_not(seen)), agreed), (_both(mask, seen), agreed)]
                same = seen
            else:
                value = _guard(trace, look, seen[0 if mask is None else np.argmax(mask)])
                same = seen == value
                if _guard(trace, look, np.all(same)):
                    continue
            both = isinstance(look.value, bool)  # there are only two sides
            others.append((_both(mask, np.logical_not(same)), agreed if both else before))
            mask = _both(mask, same)
            break
        else:
            b.run(ancestors(ends, floor))
            values = [b.value(leaf.node) if isinstance(leaf, Tracer) else leaf for leaf in way.leaves]
            flags = [isinstance(leaf, Tracer) and leaf.node in b.known for leaf in way.leaves]
            return Way(mask, values, flags, way.tree), others


def _both(mask: Any, more: Any) -> Any:
    return more if mask is None else mask & more


def _looks(trace: Trace, lanes: dict[Node, Any], guards: list[Guard], floor: int) -> list[Guard]:
    """What elements may see differently, of what Python looked at."""
    depends = set(lanes)
    looks = []
    for node in ancestors([guard.node for guard in guards], floor):
        if any(arg in depends for arg in node.args):
            depends.add(node)
    for guard in guards:
        if guard.node in depends:
            looks.append(guard)
        elif guard.value is not None:
            trace.guards.append(guard)
    return looks


def _named(looks: list[Guard], lanes: dict[Node, Any], names: dict[Any, int]) -> list[int]:
    """A number for each look: the same as on another way, if there the same was computed of the columns."""
    numbers: dict[Node, Any] = {lane: ("lane", i) for i, lane in enumerate(lanes)}
    for node in ancestors([look.node for look in looks]):  # also what another way has left there
        if node in numbers:
            continue
        if node.op in (CONST, INDEX):
            value = dict(node.params)["value"]
            key: Any = (type(value), repr(value))
        elif node.args:
            params = () if node.op is IDENTITY else node.params  # which tells derivatives apart
            key = (node.op, params, node.aval, *[numbers[arg] for arg in node.args])
        else:
            key = node
        numbers[node] = names.setdefault(key, len(names))
    return [numbers[look.node] for look in looks]


def _guard(trace: Trace, look: Guard, seen: Any) -> Any:
    """Note what is seen of all elements; its plain value."""
    value = plain(seen)
    value = value.item() if isinstance(value, np.generic) else value
    if type(seen) is Tracer and seen.node.active:
        trace.guards.append(look._replace(node=seen.node, value=value))
    return value


def _seen_by_all(b: Batch, look: Guard, floor: int) -> Any:
    """What each element would show to Python; None where it is one value for all of them."""
    needed = ancestors([look.node], floor)
    if look.value is None:
        b.run(needed[:-1])
        return forms(b, look.node)
    b.run(needed)
    if look.node in b.alike:
        if plain(b.alike[look.node]) != look.value:
            raise CannotBatch("what Python looked at belongs to one of them")
        return None
    return b.known[look.node]


def _chosen(ways: list[Way], fun: Fun) -> Way:
    """From each way the results of those that go it."""
    last = ways[-1]
    if len(ways) == 1:
        return last
    if any(way.tree != last.tree for way in ways):
        raise TypeError(f"vmap of {_title(fun)}: it returns trees of different structure for different elements")
    values = list(last.leaves)
    flags = list(last.flags)
    for way in ways[-2::-1]:
        for i, (leaf, flag) in enumerate(zip(way.leaves, way.flags, strict=True)):
            if leaf is values[i]:
                continue
            have, want = (np.shape(plain(x))[1:] if f else np.shape(plain(x)) for x, f in ((leaf, flag), (values[i], flags[i])))
            if have != want:
                raise ValueError(f"vmap of {_title(fun)}: results of different shapes for different elements: {have}, {want}")
            mask = line_up(way.mask, 0, len(have))
            values[i], flags[i] = np.where(mask, leaf, values[i]), True
    return Way(None, values, flags, last.tree)


# -- otherwise -----------------------------------------------------------------------------------------------------


def _one_by_one(trace: Trace, fun: Fun, columns: Columns, done: dict[int, Outputs]) -> Way:
    """One element after the other, as Python would, but for those that are ``done``; where no derivative is taken around, by
    the code that there is of it."""
    alone = trace.depth == 0 and type(trace) in (Trace, Tape) and not hasattr(fun, "in_trace")
    if alone:
        values = [plain(leaf) for leaf in columns.leaves]
        columns = columns._replace(leaves=[unwritable(value) if type(value) is np.ndarray else value for value in values])
        done = {i: ([plain(leaf) for leaf in leaves], tree) for i, (leaves, tree) in done.items()}

    def outputs(i: int) -> Outputs:
        args, kwargs = columns.row(lambda column: _element(column, i))
        if not alone:
            return outputs_of(trace, run(trace, fun, args, kwargs))
        with suspended(trace):
            found = fun(*args, **kwargs)
        return outputs_of(trace, found)

    rows, trees = zip(*[done[i] if i in done else outputs(i) for i in range(columns.size)], strict=True)
    if any(tree != trees[0] for tree in trees):
        raise TypeError(f"vmap of {_title(fun)}: it returns trees of different structure for different elements")
    values = []
    for column in zip(*rows, strict=True):
        shapes = {np.shape(plain(leaf)) for leaf in column if _is_number(leaf)}
        if len(shapes) > 1:
            raise ValueError(f"vmap of {_title(fun)}: results of different shapes for different elements: {sorted(shapes)}")
        values.append(np.stack(column) if shapes else column[0])
    return Way(None, values, [_is_number(value) for value in values], trees[0])


def _element(column: Any, i: int) -> Any:
    """One of the elements, which nobody may write into."""
    element = column[i]
    if type(element) is Tracer:
        element.frozen = True
    return element


def _of_none(trace: Trace, fun: Fun, columns: Columns) -> Way:
    """Of an empty batch: the shapes come from an element that most functions take."""
    args, kwargs = columns.row(lambda column: _any_one(np.shape(column.value)[1:], column.dtype)[()])
    with np.errstate(all="ignore"):
        leaves, tree = outputs_of(trace, run(trace, fun, args, kwargs))
    values = [_nothing(plain(leaf)) if _is_number(leaf) else leaf for leaf in leaves]
    return Way(None, values, [_is_number(leaf) for leaf in leaves], tree)


def _any_one(shape: tuple[int, ...], dtype: Any) -> Any:
    """An element of a batch that has none: places that are there, ones to divide by, and matrices with inverses."""
    if dtype.kind not in "fc":
        return np.zeros(shape, dtype)
    return np.zeros(shape, dtype) + (np.eye(*shape[-2:], dtype=dtype) if len(shape) > 1 else dtype.type(1))


def _nothing(value: Any) -> Any:
    return np.zeros((0, *np.shape(value)), np.result_type(value))


# -- results -------------------------------------------------------------------------------------------------------


def _results(trace: Trace, fun: Fun, way: Way, size: int, out_axes: Axes) -> Any:
    """The outputs, their batch axis where ``out_axes`` has it."""
    axes = spread(out_axes, way.tree, "out_axes")
    leaves = [_placed(trace, fun, leaf, flag, size, axis) for leaf, flag, axis in zip(way.leaves, way.flags, axes, strict=True)]
    return way.tree.unflatten(leaves)


def _placed(trace: Trace, fun: Fun, leaf: Any, flag: bool, size: int, axis: int | None) -> Any:
    if axis is None:
        if flag:
            raise ValueError(f"vmap of {_title(fun)}: out_axes=None for a result that differs from element to element")
        return leaf
    if not _is_number(leaf):
        raise TypeError(
            f"vmap of {_title(fun)}: a result is a {type(leaf).__name__}, which cannot be stacked; use out_axes=None"
        )
    if not flag:
        leaf = np.broadcast_to(traced(trace, leaf), (size, *np.shape(plain(leaf))))
    ndim = np.ndim(plain(leaf))
    if not -ndim <= axis < ndim:
        raise ValueError(f"vmap of {_title(fun)}: out_axes={axis} for a result with {ndim} axes, the batch's own among them")
    return leaf if axis % ndim == 0 else np.moveaxis(leaf, 0, axis)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, (Tracer, np.ndarray, np.generic, bool, int, float, complex))


def _title(fun: Fun) -> str:
    return f"{getattr(fun, '__name__', type(fun).__name__)}()"
