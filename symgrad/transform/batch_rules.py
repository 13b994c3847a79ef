"""How the operations that are not elementwise take a batch: axes shift by one, NumPy's own stacks, lanes of index arrays.

A rule gets the batched arguments; those with ``flags`` have the batch axis in front of their elements' own axes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.ir import Node
from symgrad.ops import create, engine, index, linalg, shape, statistics
from symgrad.ops.core import ASTYPE, REGISTRY, Op
from symgrad.ops.reduction import OTHERS, logaddexp2_reduce, logaddexp_reduce
from symgrad.ops.scan import FROM_RUNNING, FROM_SEGMENTS, RECURRENCE, SHARES, Running, Segments
from symgrad.ops.sort import FROM_PARTS
from symgrad.transform.batch import RULES, Alike, Batch, CannotBatch, elementwise, interned, line_up, require_fit, rows_of, rule
from symgrad.transform.loop import plain

Args = list[Any]
Flags = list[bool]


def _ndim(node: Node) -> int:
    return len(node.aval.shape)


def _again(b: Batch, node: Node, args: Sequence[Any], **params: Any) -> Any:
    """The same operation with other parameters; those given as None are left out."""
    kept = {name: value for name, value in {**dict(node.params), **params}.items() if value is not None}
    return b.trace.record(node.op, args, kept)


def _named(node: Node, args: Args) -> tuple[Args, dict[str, Any]]:
    """The one array of a call and its options, those given by position among them."""
    params = dict(node.params)
    if len(args) > 1:
        names = list(inspect.signature(node.op.key).parameters)
        params |= {name: _static(plain(arg)) for name, arg in zip(names[1:], args[1:], strict=False)}
    return args[:1], params


def _static(value: Any) -> Any:
    """A static option from its value."""
    return tuple(value.tolist()) if isinstance(value, np.ndarray) and value.ndim else value


def shift(axis: Any, ndim: int) -> Any:
    """An axis of an element, as an axis of the batch; what counts from the end stays."""
    if not isinstance(axis, (int, np.integer)):
        return tuple(shift(i, ndim) for i in axis)
    return axis if axis < 0 < ndim else axis + 1


def flat(b: Batch, x: Any) -> Any:
    """Each element ravelled."""
    return x if np.ndim(x) == 2 else np.reshape(x, (b.size, math.prod(np.shape(x)[1:])))


# -- the engine's own ----------------------------------------------------------------------------------------------


@rule(engine.IDENTITY, engine.NAMED, engine.TO_NUMPY, engine.TO_ARRAY)
def same(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return args[0]


@rule(engine.STOP)
def stop(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _again(b, node, args)


@rule(ASTYPE, engine.TO_FLOAT)
def astype(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return ASTYPE(args[0], dtype=node.aval.dtype)


@rule(engine.TO_PYTHON, engine.INT, engine.BOOL)
def to_number(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    column = np.reshape(args[0], (b.size,)) if np.ndim(args[0]) != 1 else args[0]
    return column if column.dtype == node.aval.dtype else ASTYPE(column, dtype=node.aval.dtype)


@rule(engine.ROUND)
def round_number(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    raise CannotBatch("Python rounds to the decimal number that is nearest, as NumPy does not")


@rule(engine.SIZE, engine.IS_COMPLEX)
def of_the_form(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    aval = node.args[0].aval
    value = math.prod(aval.shape) if node.op is engine.SIZE else aval.dtype.kind == "c"
    return Alike(b.trace.lookup(b.trace.constant(value)[0]))


@rule(engine.NOT)
def negation(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return np.logical_not(args[0])


@rule(engine.AND)
def conjunction(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return np.logical_and(*args)


@rule(create.FULL)
def full(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    require_fit(b, args[0], node.args[0], node.aval.dtype)
    column = np.reshape(args[0], (b.size,) + (1,) * _ndim(node))
    return np.broadcast_to(column, (b.size, *node.aval.shape))


@rule(index.COMPLEX)
def compose(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _again(b, node, [b.full(a, flag) for a, flag in zip(args, flags, strict=True)])


# -- elementwise functions of NumPy's that are no ufuncs -----------------------------------------------------------

rule(np.round, np.around, np.fix, np.isposinf, np.isneginf, np.isclose, np.isreal, np.iscomplex)(elementwise)


@rule(np.allclose, np.array_equiv, np.array_equal)
def all_alike(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """Whether two arrays agree in all their elements."""
    shapes = [n.aval.shape for n in node.args[:2]]
    if node.op is not REGISTRY[np.allclose] and (node.params or shapes[0] != shapes[1]):
        return None
    ndim = len(np.broadcast_shapes(*shapes))
    x, y = (line_up(a, len(shape), ndim) if flag else a for a, shape, flag in zip(args, shapes, flags, strict=False))
    compare: Any = REGISTRY[np.isclose if node.op is REGISTRY[np.allclose] else np.equal]
    found = b.trace.record(compare, [x, y, *args[2:]], dict(node.params))
    return np.all(found, axis=tuple(range(1, ndim + 1))) if ndim else found


# -- reductions ----------------------------------------------------------------------------------------------------


@rule(np.sum, np.mean, np.max, np.min, np.amax, np.amin, np.var, np.std, np.any, np.all, np.count_nonzero, np.median,
      np.nanmedian, logaddexp_reduce, logaddexp2_reduce)  # fmt: skip
def reduction(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    ndim = _ndim(node.args[0])
    args, params = _named(node, args)
    axis = params.get("axis")
    every = axis is None or not ndim
    axis = tuple(range(1, ndim + 1)) if every else shift(axis, ndim)
    if every and ndim == 1:
        axis = 1
    if ndim == 0 and node.op in _OF_SOME:
        params.pop("keepdims", None)  # there is no axis to keep
        return b.trace.record(node.op, [args[0][:, None]], {**params, "axis": 1})
    return b.trace.record(node.op, args, {**params, "axis": axis})


_OF_SOME = (REGISTRY[np.median], REGISTRY[np.nanmedian], REGISTRY[np.count_nonzero])  # which need an axis


@rule(np.prod)
def product(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params, ndim = dict(node.params), _ndim(node.args[0])
    if not ndim or params.get("axis") is not None:
        return reduction(b, node, args, flags)
    return np.reshape(_again(b, node, [flat(b, args[0])], axis=1, keepdims=None), (b.size, *node.aval.shape))


@rule(OTHERS)
def others(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """Its arrays broadcast, and its axis counts from the end."""
    lined = [line_up(a, _ndim(x), _ndim(node)) if flag else a for a, x, flag in zip(args, node.args, flags, strict=True)]
    return _again(b, node, lined)


@rule(RECURRENCE, SHARES, FROM_PARTS, FROM_RUNNING)
def recurrence(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """Its axis counts from the end; what is the same for all elements is not, beside what is none."""
    return _again(b, node, [*map(b.full, args, flags)])


@rule(FROM_SEGMENTS, *[key for key in REGISTRY if isinstance(key, Segments)])
def segments(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """Their axis counts from the end."""
    return None if flags[1] else _again(b, node, args)


@rule(np.quantile, np.nanquantile)
def quantile(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    (a, q), (fa, fq) = args, flags
    ndim, axis = _ndim(node.args[0]), dict(node.params).get("axis")
    if fa and fq:
        return None
    if fq:  # the axes of q come first
        return np.reshape(_again(b, node, (a, np.ravel(q))), (b.size, *node.aval.shape))
    a = a if ndim else a[:, None]
    axis = (tuple(range(1, ndim + 1)) if ndim > 1 else 1) if axis is None or not ndim else shift(axis, ndim)
    found = _again(b, node, (a, q), axis=axis, **({} if ndim else {"keepdims": None}))
    return np.moveaxis(found, np.ndim(q), 0) if np.ndim(q) else found


@rule(np.argmax, np.argmin, np.nanargmax, np.nanargmin)
def position(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    ndim = _ndim(node.args[0])
    args, params = _named(node, args)
    axis = params.get("axis")
    if axis is not None and ndim:
        return b.trace.record(node.op, args, {**params, "axis": shift(axis, ndim)})
    return np.reshape(b.trace.record(node.op, [flat(b, args[0])], {"axis": 1}), (b.size, *node.aval.shape))


@rule(np.linalg.norm)
def norm(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params, ndim = dict(node.params), _ndim(node.args[0])
    axis = params.get("axis")
    if axis is not None:
        return _again(b, node, args, axis=shift(axis, ndim))
    if ndim == 2 and params.get("ord") is not None:
        return _again(b, node, args, axis=(1, 2))
    return np.reshape(_again(b, node, [flat(b, args[0])], axis=1, keepdims=None), (b.size, *node.aval.shape))


# -- along an axis -------------------------------------------------------------------------------------------------


def _along(b: Batch, node: Node, args: Args, default: int | None) -> Any:
    """An operation along one axis; along all of the ravelled element where there is none."""
    ndim, params = _ndim(node.args[0]), dict(node.params)
    axis = params.get("axis", default)
    if axis is None or not ndim:
        found = _again(b, node, [flat(b, args[0])], axis=1)
        return found if np.ndim(found) == 1 + _ndim(node) else np.reshape(found, (b.size, *node.aval.shape))
    axis = shift(axis, ndim)
    return b.trace.record(node.op, args, params if axis == params.get("axis", default) else {**params, "axis": axis})


@rule(np.cumsum, np.cumprod, *[key for key in REGISTRY if isinstance(key, Running)], np.roll, np.repeat)
def along_all(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _along(b, node, args, None)


@rule(np.sort, np.argsort, np.partition, np.argpartition)
def ordered(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    args, params = _named(node, args)
    axis = params.get("axis", -1)
    if axis is None or not _ndim(node.args[0]):
        return b.trace.record(node.op, [flat(b, args[0])], {**params, "axis": 1})
    return b.trace.record(node.op, args, {**params, "axis": shift(axis, _ndim(node.args[0]))})


@rule(np.diff, np.unwrap, np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
def along_last(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _along(b, node, args, -1)


@rule(np.flip)
def flip(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    ndim, axis = _ndim(node), dict(node.params).get("axis")
    axis = (tuple(range(1, ndim + 1)) if ndim > 1 else -1) if axis is None else shift(axis, ndim)
    return _again(b, node, args, axis=axis) if ndim else args[0]


@rule(np.fft.fftn, np.fft.ifftn, np.fft.fft2, np.fft.ifft2, np.fft.fftshift, np.fft.ifftshift)
def along_several(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params, ndim = dict(node.params), _ndim(node.args[0])
    axes, s = params.get("axes"), params.get("s")
    if axes is None and node.op in (REGISTRY[np.fft.fft2], REGISTRY[np.fft.ifft2]):
        axes = (-2, -1)
    axes = (tuple(range(1, ndim + 1)) if s is None else tuple(range(-len(s), 0))) if axes is None else shift(axes, ndim)
    return _again(b, node, args, axes=axes)


@rule(np.take_along_axis)
def take_along(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    axis = dict(node.params).get("axis", -1)
    if axis is None:
        return None
    whole = [b.full(a, flag) for a, flag in zip(args, flags, strict=True)]
    return _again(b, node, whole, axis=shift(axis, _ndim(node.args[0])))


# -- shapes --------------------------------------------------------------------------------------------------------


@rule(np.expand_dims, np.reshape, np.ravel, np.squeeze)
def reshape(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    if dict(node.params).get("order", "C") == "C":
        return np.reshape(args[0], (b.size, *node.aval.shape))
    turned = np.transpose(args[0], (0, *reversed(range(1, np.ndim(args[0])))))  # in Fortran's order the first axis runs first
    found = np.reshape(turned, (b.size, *reversed(node.aval.shape)))
    return np.transpose(found, (0, *reversed(range(1, np.ndim(found)))))


@rule(np.broadcast_to)
def broadcast_to(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return np.broadcast_to(line_up(args[0], _ndim(node.args[0]), _ndim(node)), (b.size, *node.aval.shape))


@rule(np.copy)
def copy(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _again(b, node, args)


@rule(np.transpose)
def transpose(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    ndim = _ndim(node)
    axes = dict(node.params).get("axes") or tuple(reversed(range(ndim)))
    return np.transpose(args[0], (0, *[i % ndim + 1 for i in axes])) if ndim > 1 else args[0]


@rule(np.swapaxes)
def swapaxes(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params, ndim = dict(node.params), _ndim(node)
    return np.swapaxes(args[0], shift(params["axis1"], ndim), shift(params["axis2"], ndim))


@rule(np.moveaxis)
def moveaxis(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params, ndim = dict(node.params), _ndim(node)
    return np.moveaxis(args[0], shift(params["source"], ndim), shift(params["destination"], ndim))


@rule(np.rot90)
def rot90(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _again(b, node, args, axes=shift(dict(node.params).get("axes", (0, 1)), _ndim(node)))


@rule(np.concatenate, np.stack)
def join(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    axis = dict(node.params).get("axis", 0)
    whole = [b.full(a, flag) for a, flag in zip(args, flags, strict=True)]
    if axis is None:
        return _again(b, node, [flat(b, a) for a in whole], axis=1)
    return b.trace.record(node.op, whole, {**dict(node.params), "axis": shift(axis, _ndim(node))})


@rule(np.tile)
def tile(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    reps = dict(node.params)["reps"]
    reps = tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    ndim = _ndim(node.args[0])
    reps = (1,) * (ndim - len(reps)) + reps
    return _again(b, node, [line_up(args[0], ndim, len(reps))], reps=(1, *reps))


@rule(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    ndim, axis = _ndim(node.args[0]), dict(node.params).get("axis")
    return _again(b, node, args, axis=tuple(range(1, ndim + 1)) if axis is None else shift(axis, ndim))


@rule(shape.ADD_WINDOWS)
def add_windows(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params = dict(node.params)
    more = {"steps": (1, *params["steps"])} if params.get("steps") else {}
    return _again(b, node, args, shape=(b.size, *params["shape"]), axes=tuple([i + 1 for i in params["axes"]]), **more)


@rule(np.pad)
def pad(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    widths = np.broadcast_to(dict(node.params)["pad_width"], (_ndim(node), 2)).tolist()
    return _again(b, node, args, pad_width=((0, 0), *map(tuple, widths)))


@rule(np.diagonal, np.trace)
def diagonal(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params, ndim = dict(node.params), _ndim(node.args[0])
    return _again(b, node, args, axis1=shift(params.get("axis1", 0), ndim), axis2=shift(params.get("axis2", 1), ndim))


@rule(np.diag, create.DIAGONAL)
def diag(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    k = dict(node.params).get("k", 0)
    if _ndim(node.args[0]) == 2:
        return np.diagonal(args[0], k, 1, 2)
    i = np.arange(node.args[0].aval.shape[0])
    spec = (index.EVERY, index.Hole(0), index.Hole(1))
    return index.SCATTER(args[0], i + max(-k, 0), i + max(k, 0), spec=spec, shape=(b.size, *node.aval.shape))


@rule(np.tril, np.triu)
def triangle(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _again(b, node, [broadcast_to(b, node, args, flags) if _ndim(node.args[0]) == 1 else args[0]])


# -- indexing ------------------------------------------------------------------------------------------------------


@rule(index.GETITEM)
def getitem(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    spec = dict(node.params)["spec"]
    if not any(flags[1:]) and not _splits(spec):
        return index.GETITEM(*args, spec=(index.EVERY, *spec))
    spec, arrays, place, rank = _lanes(b, node.args[0].aval.shape, spec, node.args[1:], args[1:], flags[1:], flags[0])
    return _in_place(index.GETITEM(args[0], *arrays, spec=spec), place, rank, flags[0])


@rule(index.LAST_WRITE)
def last_write(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    base, spec = b.full(args[0], flags[0]), dict(node.params)["spec"]
    spec, arrays, place, rank = _lanes(b, node.args[0].aval.shape, spec, node.args[1:], args[1:], flags[1:], True)
    return _in_place(index.LAST_WRITE(base, *arrays, spec=spec), place, rank, True)


@rule(index.SCATTER)
def scatter(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params = dict(node.params)
    spec, shape = params["spec"], (b.size, *params["shape"])
    value = b.full(args[0], flags[0])
    if not any(flags[1:]) and not _splits(spec):
        return index.SCATTER(value, *args[1:], spec=(index.EVERY, *spec), shape=shape)
    spec, arrays, place, rank = _lanes(b, params["shape"], spec, node.args[1:], args[1:], flags[1:], True)
    return index.SCATTER(_in_front(value, place, rank), *arrays, spec=spec, shape=shape)


@rule(index.SETITEM, index.INDEX_ADD, index.COMBINED_AT)
def write(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    base, value, *arrays = args
    by = {name: what for name, what in node.params if name != "spec"}
    if flags[1]:
        require_fit(b, value, node.args[1], node.aval.dtype)
    if _is_mask(dict(node.params)["spec"], node.args[2:]) and flags[2] and not _ndim(node.args[1]):  # how many is not asked
        ndim = _ndim(node)
        mask = np.reshape(arrays[0], np.shape(arrays[0]) + (1,) * (ndim - _ndim(node.args[2])))
        value = line_up(value, 0, ndim) if flags[1] else value
        return np.where(mask, value if node.op is index.SETITEM else base + value, base)
    base, spec, shape = b.full(base, flags[0]), dict(node.params)["spec"], node.args[0].aval.shape
    firsts = [plain(a)[0] if flag else plain(a) for a, flag in zip(arrays, flags[2:], strict=True)]
    firsts = [a if np.result_type(a) == bool else a * 0 for a in firsts]  # there is something there, as far as its shape goes
    taken = np.shape(np.empty(shape, bool)[index.fill(spec, firsts)])
    if flags[1]:
        value = line_up(value, _ndim(node.args[1]), len(taken))
    if not any(flags[2:]) and not _splits(spec):
        return node.op(base, value, *arrays, spec=(index.EVERY, *spec), **by)
    value = np.broadcast_to(value, (b.size, *taken))
    spec, arrays, place, rank = _lanes(b, shape, spec, node.args[2:], arrays, flags[2:], True)
    return node.op(base, _in_front(value, place, rank), *arrays, spec=spec, **by)


@rule(index.CUT, index.CUT_OUT, index.SPLICE)
def cut(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """Slices of the first axis of each element, which is the second one of the batch."""
    *arrays, start, stop = args
    if any(flags[len(arrays) :]):
        raise CannotBatch("slices of a batch have different lengths")
    turned = [np.swapaxes(b.full(x, flag), 0, 1) for x, flag in zip(arrays, flags, strict=False)]
    return np.swapaxes(node.op(*turned, start, stop), 0, 1)


def _is_mask(spec: index.Spec, nodes: Sequence[Node]) -> bool:
    """Whether an index is a mask over the first axes, and nothing else."""
    return spec == (index.Hole(0),) and nodes[0].aval.dtype == bool


def _splits(spec: index.Spec) -> bool:
    """Whether NumPy would put the axes of index arrays in front: they are apart, or an integer is among them."""
    advanced = [i for i, part in enumerate(spec) if type(part) is index.Hole or type(part) is int]
    holes = any(type(part) is index.Hole for part in spec)
    return holes and advanced != list(range(advanced[0], advanced[-1] + 1))


def _lanes(
    b: Batch, shape: tuple[int, ...], spec: index.Spec, nodes: Sequence[Node], arrays: Args, flags: Flags, whole: bool
) -> tuple[index.Spec, Args, int, int]:
    """The index with the batch's own place among its arrays (if what it indexes is a batch as a ``whole``).

    Also, at which axis of an element the axes of the index arrays stand, and how many they are. In the result they stand
    in front, the batch axis before them, except for index arrays that are neighbours in what is no batch.
    """
    parts: list[Any] = []
    taken: list[tuple[Any, bool, int]] = []  # index arrays: value, whether it has the batch axis, its own rank
    for part in spec:
        if type(part) is not index.Hole:
            parts.append(part)
            continue
        array, node, flag = arrays[part.number], nodes[part.number], flags[part.number]
        if node.aval.dtype != bool:
            parts.append(index.Hole(len(taken)))
            taken.append((array, flag, _ndim(node)))
            continue
        found = REGISTRY[np.nonzero](array)  # type: ignore[operator]
        if flag and not _ndim(node):
            raise CannotBatch("a number is indexed by a condition")
        if flag:
            counts = np.count_nonzero(flat(b, array), axis=1)
            b.require(counts == plain(counts)[0], "masks choose different numbers of elements")
            found = tuple(np.reshape(places, (b.size, len(places) // b.size)) for places in found[1:])
        for places in found:
            parts.append(index.Hole(len(taken)))
            taken.append((places, flag, 1))
    rank = max(own for _, _, own in taken)
    lined = [line_up(array, own, rank) if flag else array for array, flag, own in taken]
    at = next(i for i, part in enumerate(parts) if type(part) in (index.Hole, int))
    consumed = sum(part is not None and part is not Ellipsis for part in parts)
    before = sum(len(shape) - consumed if part is Ellipsis else 1 for part in parts[:at])
    place = 0 if _splits(tuple(parts)) else before
    if not whole:
        return tuple(parts), lined, place, rank
    own = np.reshape(np.arange(b.size), (b.size,) + (1,) * rank)
    parts = [index.Hole(part.number + 1) if type(part) is index.Hole else part for part in parts]
    return (index.Hole(0), *parts), [own, *lined], place, rank


def _in_place(found: Any, place: int, rank: int, whole: bool) -> Any:
    """A result with the axes of the index arrays where an element has them, behind the batch axis."""
    if not place:
        return found
    if not whole:
        return np.moveaxis(found, place, 0)
    return np.moveaxis(found, tuple(range(1, 1 + rank)), tuple(range(1 + place, 1 + place + rank)))


def _in_front(value: Any, place: int, rank: int) -> Any:
    """The opposite: of what is to be written."""
    if not place:
        return value
    return np.moveaxis(value, tuple(range(1 + place, 1 + place + rank)), tuple(range(1, 1 + rank)))


# -- products ------------------------------------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    """``x[:, None]`` of each element."""
    return np.expand_dims(x, -1)


@rule(np.matmul)
def matmul(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    (x, y), (fx, fy), (dx, dy) = args, flags, map(_ndim, node.args)
    if dx == 1 and dy == 1:
        return np.sum(x * y, axis=1) if fx and fy else x @ y if fx else y @ x
    if fx and not fy and dx == 1 and dy == 2:
        return x @ y
    if fx and not fy and dy == 1:
        return x @ y
    if fy and not fx and dx == 2 and dy == 1:
        return y @ x.T
    x, dx, row = (np.expand_dims(x, -2), 2, True) if dx == 1 else (x, dx, False)
    y, dy, column = (_rows(y), 2, True) if dy == 1 else (y, dy, False)
    ndim = max(dx, dy)
    found = (line_up(x, dx, ndim) if fx else x) @ (line_up(y, dy, ndim) if fy else y)
    return found[..., 0, :] if row else found[..., 0] if column else found


def _contract(b: Batch, args: Args, flags: Flags, i: Sequence[int], j: Sequence[int]) -> Any:
    """``np.tensordot`` over the axes ``i`` and ``j`` of the elements."""
    (x, y), (fx, fy) = args, flags
    if not fy:
        return np.tensordot(x, y, ([k + 1 for k in i], list(j)))
    if not fx:
        return np.moveaxis(np.tensordot(x, y, (list(i), [k + 1 for k in j])), np.ndim(x) - len(i), 0)
    kept = [k for k in range(1, np.ndim(x)) if k - 1 not in i]
    free = [k for k in range(1, np.ndim(y)) if k - 1 not in j]
    shape = [np.shape(x)[k] for k in kept], [np.shape(y)[k] for k in free]
    inner = math.prod(np.shape(x)[k + 1] for k in i)
    left = np.reshape(np.transpose(x, (0, *kept, *[k + 1 for k in i])), (b.size, math.prod(shape[0]), inner))
    right = np.reshape(np.transpose(y, (0, *[k + 1 for k in j], *free)), (b.size, inner, math.prod(shape[1])))
    return np.reshape(left @ right, (b.size, *shape[0], *shape[1]))


def _times(node: Node, args: Args, flags: Flags) -> Any:
    """The product where one element is a number."""
    ndim = _ndim(node)
    x, y = (line_up(a, _ndim(n), ndim) if f else a for a, n, f in zip(args, node.args, flags, strict=True))
    return x * y


@rule(np.tensordot)
def tensordot(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    n, m = map(_ndim, node.args)
    axes = dict(node.params).get("axes", 2)
    if isinstance(axes, int):
        i, j = list(range(n - axes, n)), list(range(axes))
    else:
        first, second = ((k,) if isinstance(k, int) else k for k in axes)
        i, j = [k % n for k in first], [k % m for k in second]
    return _contract(b, args, flags, i, j)


@rule(np.dot)
def dot(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    n, m = map(_ndim, node.args)
    if not n or not m:
        return _times(node, args, flags)
    return matmul(b, node, args, flags) if max(n, m) <= 2 else _contract(b, args, flags, [n - 1], [max(m - 2, 0)])


@rule(np.inner)
def inner(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    n, m = map(_ndim, node.args)
    return _contract(b, args, flags, [n - 1], [m - 1]) if n and m else _times(node, args, flags)


@rule(np.outer)
def outer(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    x, y = (flat(b, a) if flag else np.ravel(a) for a, flag in zip(args, flags, strict=True))
    return _rows(x) * np.expand_dims(y, -2)


@rule(np.vdot)
def vdot(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    x, y = (flat(b, a) if flag else np.ravel(a) for a, flag in zip(args, flags, strict=True))
    x = np.conj(x) if np.iscomplexobj(x) else x
    return np.sum(x * y, axis=1) if all(flags) else x @ y if flags[0] else y @ x


@rule(np.kron)
def kron(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    ndim = _ndim(node)
    x, y = (line_up(a, _ndim(n), ndim) if f else a for a, n, f in zip(args, node.args, flags, strict=True))
    shapes = [(1,) * (ndim - _ndim(n)) + n.aval.shape for n in node.args]
    apart = [tuple(n for pair in zip(s, (1,) * ndim, strict=True) for n in pair) for s in shapes]
    x = np.reshape(x, ((b.size,) if flags[0] else ()) + apart[0])
    y = np.reshape(
        y, ((b.size,) if flags[1] else ()) + tuple(n for pair in zip((1,) * ndim, shapes[1], strict=True) for n in pair)
    )
    return np.reshape(x * y, (b.size, *node.aval.shape))


@rule(np.einsum)
def einsum(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params = dict(node.params)
    inputs, output = params["subscripts"].split("->")
    letter = next(c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in params["subscripts"])
    terms = [letter + term if flag else term for term, flag in zip(inputs.split(","), flags, strict=True)]
    return _again(b, node, args, subscripts=f"{','.join(terms)}->{letter}{output}")


@rule(np.cross)
def cross(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    params = dict(node.params)
    axes = [params.get("axisa", -1), params.get("axisb", -1), params.get("axisc", -1)]
    if params.get("axis") is not None:
        axes = [params["axis"]] * 3
    ranks = list(map(_ndim, node.args))
    ndim = max(ranks)
    lined = []
    for a, flag, have, axis in zip(args, flags, ranks, axes[:2], strict=True):
        a = a if axis in (-1, have - 1) else np.moveaxis(a, shift(axis, have) if flag else axis, -1)
        lined.append(line_up(a, have, ndim) if flag else a)
    found = b.trace.record(node.op, lined, {})
    scalar = all(n.aval.shape[axis] == 2 for n, axis in zip(node.args, axes[:2], strict=True))
    return found if scalar or axes[2] in (-1, _ndim(node) - 1) else np.moveaxis(found, -1, shift(axes[2], _ndim(node)))


@rule(np.convolve, np.correlate)
def convolve(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """Windows of the longer one, zeros around it, times the shorter one reversed."""
    correlates = node.op is REGISTRY[np.correlate]
    mode = dict(node.params).get("mode", "valid" if correlates else "full")
    x, y = (flat(b, a) if flag else np.ravel(a) for a, flag in zip(args, flags, strict=True))
    (fx, fy), (n, m) = flags, (math.prod(a.aval.shape) for a in node.args)
    y = np.flip(np.conj(y) if np.iscomplexobj(y) else y, -1) if correlates else y
    swapped = n < m
    if swapped:
        (x, fx, n), (y, fy, m) = (y, fy, m), (x, fx, n)
    before = {"full": 0, "same": (m - 1) // 2, "valid": m - 1}[mode]
    if correlates and swapped and mode == "same":
        before = m - 1 - before  # the shorter one was first, and NumPy turns the result
    count = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    left = m - 1 - before
    right = count + m - 1 - n - left
    around = ((0, 0), (left, right)) if fx else ((left, right),)
    x = np.pad(x, around) if left or right else x
    windows = np.lib.stride_tricks.sliding_window_view(x, m, axis=-1)
    y = np.flip(y, -1)
    return (windows @ _rows(y))[..., 0] if fy else windows @ y


# -- stacks of matrices --------------------------------------------------------------------------------------------

CORES: dict[Any, tuple[int, ...]] = {
    np.linalg.inv: (2,), np.linalg.det: (2,), np.linalg.slogdet: (2,), np.linalg.cholesky: (2,), np.linalg.eigh: (2,),
    np.linalg.svd: (2,), np.linalg.qr: (2,), np.linalg.pinv: (2,), np.linalg.matrix_rank: (2,), np.matrix_transpose: (2,),
    linalg.cofactor: (2,), linalg.cofactor_vjp: (2, 2), linalg.over_gaps: (2, 2), linalg.settled: (2, 2, 0),
    linalg.pivots: (2,), linalg.regular: (2, 2), linalg.EIG: (2,), linalg.mirrored: (2,), linalg.of_triangle: (2, 2),
}  # fmt: skip
if hasattr(np, "matvec"):
    CORES |= {np.matvec: (2, 1), np.vecmat: (1, 2)}


def stacks(*cores: int) -> Any:
    """The rule of an operation on matrices and vectors that NumPy runs on stacks of them, which broadcast."""

    def made(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
        given = [*cores, *[0] * (len(args) - len(cores))]
        ranks = list(map(_ndim, node.args))
        if any(rank < core for rank, core in zip(ranks, given, strict=True)):
            return None
        ndim = max(rank - core for rank, core in zip(ranks, given, strict=True))
        lined = [
            line_up(a, rank, ndim + core) if flag else a for a, flag, rank, core in zip(args, flags, ranks, given, strict=True)
        ]
        return b.trace.record(node.op, lined, dict(node.params))

    return made


for _key, _cores in CORES.items():
    rule(_key)(stacks(*_cores))


@rule(np.vecdot)
def vecdot(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    axis, ranks = dict(node.params).get("axis", -1), list(map(_ndim, node.args))
    ndim = max(ranks)
    lined = []
    for a, flag, have in zip(args, flags, ranks, strict=True):
        a = a if axis in (-1, have - 1) else np.moveaxis(a, shift(axis, have) if flag else axis, -1)
        lined.append(line_up(a, have, ndim) if flag else a)
    return b.trace.record(node.op, lined, {})


@rule(np.linalg.solve)
def solve(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    (x, y), (fx, fy), (dx, dy) = args, flags, map(_ndim, node.args)
    if dy == 1:  # one right-hand side for each matrix
        if not fx and dx == 2:
            return np.linalg.solve(x, y.T).T
        y = line_up(y, 1, dx - 1) if fy else y
        return np.linalg.solve(x, np.broadcast_to(y, (b.size, *node.aval.shape))[..., None])[..., 0]
    ndim = max(dx, dy)
    return b.trace.record(node.op, [line_up(x, dx, ndim) if fx else x, line_up(y, dy, ndim) if fy else y], {})


# -- searching and counting ----------------------------------------------------------------------------------------


@rule(np.searchsorted, np.isin)
def among(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """Each number is looked for alone, in the same array."""
    wanted = 1 if node.op is REGISTRY[np.searchsorted] else 0
    return _again(b, node, args) if flags == [i == wanted for i in range(len(flags))] else None


@rule(np.digitize)
def digitize(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _again(b, node, args) if not any(flags[1:]) else None


@rule(np.unravel_index)
def unravel_index(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _again(b, node, args)


@rule(np.ravel_multi_index)
def ravel_multi_index(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    return _again(b, node, [np.moveaxis(args[0], 1, 0), *args[1:]])


@rule(statistics.BINCOUNT, statistics._COUNTS)
def bincount(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """One row of bins for each element of the batch."""
    (n,) = node.aval.shape
    b.require(np.greater_equal(args[0], 0), "negative places are an error, and here they would be bins of another element")
    places = b.full(args[0], flags[0]) + n * np.arange(b.size)[:, None]
    weights = [np.ravel(b.full(a, flag)) for a, flag in zip(args[1:], flags[1:], strict=True)]
    return np.reshape(b.trace.record(node.op, [np.ravel(places), *weights], {"minlength": n * b.size}), (b.size, n))


# -- results whose form depends on values --------------------------------------------------------------------------


@rule(np.nonzero, np.flatnonzero, np.argwhere)
def nonzero(b: Batch, node: Node, args: Args, flags: Flags) -> Any:
    """The places of all, those of one element after those of another; each has as many, which was looked at."""
    x = flat(b, args[0]) if node.op is REGISTRY[np.flatnonzero] else args[0]
    found = [np.reshape(places, (b.size, len(places) // b.size)) for places in REGISTRY[np.nonzero](x)[1:]]  # type: ignore[operator]
    if node.op is REGISTRY[np.nonzero]:
        return found
    return np.stack(found, axis=-1) if node.op is REGISTRY[np.argwhere] else found[0]


def forms(b: Batch, node: Node) -> Any:
    """A number for each element that stands for the shapes and dtypes of a node's results; None where it is one for all."""
    flags = tuple([arg in b.known for arg in node.args])
    if not any(flags):
        return None
    if RULES.get(node.op) is nonzero:
        return np.count_nonzero(flat(b, b.value(node.args[0])), axis=1)
    return b.trace.record(interned(Forms, node.op, flags), [b.value(arg) for arg in node.args], dict(node.params))


class Forms(Op):
    """What the results of an operation look like, for one element of the batch after the other."""

    def __init__(self, inner: Op, flags: tuple[bool, ...]) -> None:
        super().__init__(self, "constant", (), name=f"forms_of_{inner.name.split('.')[-1]}", fun=self.run)
        self.inner, self.flags = inner, flags

    def run(self, *args: Any, **params: Any) -> Any:
        return np.array([form_of(self.inner.fun(*row, **params)) for row in rows_of(args, self.flags)])


def form_of(found: Any) -> int:
    """A number for the shapes and dtypes of results."""
    number = 0
    for part in found if isinstance(found, tuple) else (found,):
        for size in (np.result_type(part).num, np.ndim(part), *np.shape(part)):
            number = (number * 1_000_003 + size + 1) % (2**61 - 1)
    return number
