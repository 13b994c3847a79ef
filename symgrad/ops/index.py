"""Indexing, its transpose, and in-place writes as pure operations.

An index is split into a hashable ``spec`` (integers, slices, None, Ellipsis, and holes) and the arrays for the holes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from symgrad import runtime
from symgrad.ops.core import A, Choice, Op, Sample, Traced, composite, constant


class Slice(NamedTuple):
    """A slice; the built-in one is not hashable before Python 3.12."""

    start: int | None
    stop: int | None
    step: int | None


EVERY = Slice(None, None, None)  # ``:``


class Hole(NamedTuple):
    """The place of an index array: the ``number``-th of those that travel beside the spec. ``once``: it is of whole numbers in
    a row, along an axis of its own, so that no element is named twice."""

    number: int
    once: bool = False


class Window(NamedTuple):
    """A slice of some ``width``, which begins so many places after the ``number``-th number that travels beside the spec.

    Only code that runs has it: to derive, and to batch, it is a row of places.
    """

    number: int
    first: int
    width: int


class Cut(NamedTuple):
    """A slice from the ``start``-th number that travels beside the spec to the ``stop``-th, in what is written or added: the
    value that is put there has all places of that axis, and those alone are taken from it that the slice names.

    Only code that runs has it, and what readers see: elsewhere it is ``CUT`` and ``SPLICE``.
    """

    start: int
    stop: int


Spec = tuple[Any, ...]


def fill(spec: Spec, arrays: Any) -> Any:
    """The index that ``spec`` and its arrays stand for, as ``x[...]`` takes it."""
    parts = [_filled(part, arrays) for part in spec]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _filled(part: Any, arrays: Any) -> Any:
    if type(part) is Hole:
        return arrays[part.number]
    if type(part) is Window:
        start = arrays[part.number] + part.first
        return slice(start, start + part.width)
    if type(part) is Cut:
        return slice(arrays[part.start], arrays[part.stop])
    return slice(*part) if type(part) is Slice else part


def region(spec: Spec, shape: tuple[int, ...], arrays: Any = ()) -> tuple[int, ...]:
    """The shape of the part of an array of some shape that an index names."""
    return tuple(np.broadcast_to(False, shape)[fill(spec, arrays)].shape)


def names_elements(spec: Spec, ndim: int) -> bool:
    """Whether an index names single elements of an array, by index arrays alone."""
    return len(spec) == ndim and all(type(part) is Hole for part in spec)


def may_repeat(spec: Spec, several: Sequence[Any]) -> bool:
    """Whether an index may name an element twice: by places (``several`` tells which arrays are such) not in a row."""
    return any(type(part) is Hole and several[part.number] and not part.once for part in spec)


class Indexing(Op):
    """An op whose trailing arguments are index arrays, which take no derivative."""

    def __init__(self, fun: Any, name: str, rules: tuple[Any, ...], family: str = "linear", **options: Any) -> None:
        super().__init__(fun, family, rules, name=name, **options)

    def differentiable(self, position: int) -> bool:
        return position < len(self.rules)


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of an array or a number."""
    return x.dtype if hasattr(x, "dtype") else np.result_type(x)


def _set_value(g: Any, y: Any, base: Any, value: Any, *arrays: Any, spec: Spec) -> Any:
    if (
        len(spec) == len(arrays) == 1
        and np.ndim(value) == 0
        and dtype_of(arrays[0]) == bool
        and np.shape(arrays[0]) == np.shape(g)
    ):
        return np.where(arrays[0], g, 0)
    taken = GETITEM(g, *arrays, spec=spec)
    several = [np.ndim(array) and dtype_of(array) != bool for array in arrays]
    return taken * LAST_WRITE(base, *arrays, spec=spec) if may_repeat(spec, several) else taken


def _overwritten(y: Any, base: Any, value: Any, *arrays: Any, spec: Spec) -> Any:
    """Where a write hides what was there before."""
    masks = any(dtype_of(array) == bool for array in arrays)
    if masks and len(spec) == 1 and np.ndim(arrays[0]) == np.ndim(base):
        return arrays[0], False, True
    traced = [array for array in arrays if isinstance(array, Traced)]  # in a loop, a mask of this trace is another in the next
    nothing: Any = np.zeros_like(base, bool) if traced and isinstance(base, Traced) else np.zeros(np.shape(base), bool)
    return SETITEM(nothing, True, *arrays, spec=spec), False, masks


GETITEM = Indexing(
    lambda x, *arrays, spec: (x if hasattr(x, "shape") else np.asarray(x))[fill(spec, arrays)],
    "getitem",
    (lambda g, y, x, *arrays, spec: SCATTER(g, *arrays, spec=spec, shape=shape) if (shape := np.shape(x)) else np.sum(g),),
    lanes="some",
    alias=True,
)
SCATTER: Indexing = Indexing(
    lambda g, *arrays, spec, shape: runtime.scatter(g, fill(spec, arrays), shape),
    "scatter",
    (lambda g, y, value, *arrays, spec, shape: GETITEM(g, *arrays, spec=spec),),
    lanes="moved",
)
SETITEM: Indexing = Indexing(
    lambda base, value, *arrays, spec: runtime.setitem(base, value, fill(spec, arrays)),
    "setitem",
    (lambda g, y, base, value, *arrays, spec: SETITEM(g, 0.0, *arrays, spec=spec), _set_value),
    lanes=(Choice(_overwritten), "moved"),
)
INDEX_ADD = Indexing(
    lambda base, value, *arrays, spec: runtime.index_add(base, value, fill(spec, arrays)),
    "index_add",
    (
        lambda g, y, base, value, *arrays, spec: g,
        lambda g, y, base, value, *arrays, spec: GETITEM(g, *arrays, spec=spec),
    ),
    lanes=("same", "moved"),
)


def _ties(y: Any, base: Any, value: Any, arrays: Sequence[Any], spec: Spec) -> tuple[Any, Any, Any]:
    """Where the result is what was there, and what was taken in; and of how many, at each of its places."""
    own, met = base == y, value == GETITEM(y, *arrays, spec=spec)
    many = INDEX_ADD(own.astype(y.dtype), met.astype(y.dtype), *arrays, spec=spec)
    return own, met, np.maximum(many, 1)  # there is none at NaN


def _there_first(g: Any, y: Any, base: Any, value: Any, *arrays: Any, spec: Spec, by: str) -> Any:
    own, _, many = _ties(y, base, value, arrays, spec)
    return np.where(own, g / many, 0)


def _taken_in(g: Any, y: Any, base: Any, value: Any, *arrays: Any, spec: Spec, by: str) -> Any:
    _, met, many = _ties(y, base, value, arrays, spec)
    return np.where(met, GETITEM(g / many, *arrays, spec=spec), 0)


#: What ``ufunc.at`` makes of an array, where an index may repeat: the extremes, of which those that tie share evenly.
COMBINED_AT = Indexing(
    lambda base, value, *arrays, spec, by: runtime.combined_at(base, value, fill(spec, arrays), by),
    "runtime.combined_at",
    (_there_first, _taken_in),
    family="op",
    complex=False,
)
EXTREMES_AT = {np.maximum: "maximum", np.minimum: "minimum", np.fmax: "fmax", np.fmin: "fmin"}
LAST_WRITE = Op(lambda base, *arrays, spec: runtime.last_write(base, fill(spec, arrays)), "constant", (), name="last_write")


# -- slices whose lengths are not known beforehand: what they name, in its place in the whole --------------------------

IN_SLICE = Op(runtime.in_slice, "constant", (), name="runtime.in_slice")


def _named(y: Any, x: Any, start: Any, stop: Any, *, named: bool = True) -> Any:
    """Where a slice names rows of ``x``, for a ``Choice`` of those, or of all others."""
    mask = IN_SLICE(start, stop, size=np.shape(x)[0])
    return np.reshape(mask, (-1,) + (1,) * (np.ndim(x) - 1)), named, False


_ENDS = [(1, 3), (0, 2), (-2, 9), (2, 1)]
_CUT = [Sample(A(*shape), *ends) for shape in ((4,), (3, 2)) for ends in _ENDS]
CUT: Op = Op(
    runtime.cut,
    "linear",
    (lambda g, y, x, start, stop: CUT(g, start, stop), None, None),
    name="runtime.cut",
    lanes=(Choice(_named), None, None),
    samples=_CUT,
)
CUT_OUT: Op = Op(
    runtime.cut_out,
    "linear",
    (lambda g, y, x, start, stop: CUT_OUT(g, start, stop), None, None),
    name="runtime.cut_out",
    lanes=(Choice(functools.partial(_named, named=False)), None, None),
    samples=_CUT,
)
DOT = Op(lambda x, y, start, stop: np.dot(x[start:stop], y[start:stop]), "constant", (), name="dot")  # in code alone
#: An elementwise function of which nothing is read but what a slice names; what it is elsewhere, nobody asks. In code alone.
SLICED = Op(lambda *args, of: of(*args[:-2]), "constant", (), name="sliced")
SPLICE = Op(
    runtime.splice,
    "linear",
    (
        lambda g, y, base, value, start, stop: CUT_OUT(g, start, stop),
        lambda g, y, base, value, start, stop: CUT(g, start, stop),
        None,
        None,
    ),
    name="runtime.splice",
    lanes=(
        Choice(lambda y, base, value, start, stop: _named(y, base, start, stop, named=False)),
        Choice(lambda y, base, value, start, stop: _named(y, value, start, stop)),
        None,
        None,
    ),
    samples=[Sample(A(*shape), A(*shape), *ends) for shape in ((4,), (3, 2)) for ends in _ENDS],
)


COMPLEX = Op(
    runtime.compose,
    "linear",
    (lambda g, y, real, imag: g, lambda g, y, real, imag: 1j * g),
    name="runtime.compose",
    samples=[Sample(A(3), A(3)), Sample(A(2, 3), A(2, 3)), Sample(A(), A())],
    complex=False,
)


@composite(np.take, samples=[Sample(A(4), [0, 2, 2]), Sample(A(3, 4), np.array([[0, 1], [3, 3]]), axis=1)])
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    """``a[indices]`` along an axis; out-of-range indices wrap or clip by ``mode``."""
    if axis is None or (np.ndim(a) == 0 and axis in (0, -1)):
        a, axis = a if np.ndim(a) == 1 else np.reshape(a, -1), 0
    size = np.shape(a)[axis]
    indices = places_in(indices)
    if mode == "wrap":
        indices = indices % size
    elif mode == "clip":
        indices = np.clip(indices, 0, size - 1)
    axis = normalize_axis_index(axis, np.ndim(a))
    taken = array_of(a)[(slice(None),) * axis + (indices,)]
    return taken.copy() if isinstance(taken, np.ndarray) else taken  # indexing may give a view


def array_of(a: Any) -> Any:
    """``a`` with an array's attributes: as it is, or a list made an array, a traced one where it holds what is traced."""
    if hasattr(a, "dtype") and a.dtype != object:
        return a
    traced = traced_in(a)
    return np.asarray(a) if traced is None else traced.adopt(a)


def places_in(indices: Any) -> Any:
    """Places as NumPy's functions take them: small integers hold no sizes, and True and False are 1 and 0, no mask."""
    places = array_of(indices) if np.size(indices) else np.zeros(np.shape(indices), int)
    return places.astype(np.intp) if places.dtype.kind in "biu" and places.dtype.itemsize < 8 else places


def floating(a: Any) -> Any:
    """The same, of floating-point numbers."""
    a = array_of(a)
    return a if a.dtype.kind in "fc" else a.astype(float)


def listed(a: Any) -> Any:
    """Lists as ``array_of`` has them; anything else as it is, Python's numbers among it, whose type gives way to arrays'."""
    return array_of(a) if isinstance(a, (list, tuple)) else a


def traced_in(value: Any) -> Any:
    """A traced value from nested lists, tuples and object arrays; None if there is none."""
    if isinstance(value, Traced):
        return value
    if isinstance(value, np.ndarray):
        value = value.ravel() if value.dtype == object else ()
    items = value if isinstance(value, (list, tuple, np.ndarray)) else ()
    return next((found for found in map(traced_in, items) if found is not None), None)


def take_at(a: Any, places: Any, axis: int | None = 0) -> Any:
    """``np.take`` of an array that may be plain where the places are traced: NumPy asks the array alone what to do."""
    return np.take(beside(places, a), places, axis)


def beside(other: Any, a: Any) -> Any:
    """``a``, traced where ``other`` is: NumPy asks the array alone that is read at traced places."""
    return other.adopt(a) if isinstance(other, Traced) else a


# -- where something is true ---------------------------------------------------------------------------------------

for key in (np.nonzero, np.flatnonzero, np.argwhere):
    constant(key, sized=True, samples=[Sample(A(3)), Sample(A(2, 3))])


_TWICE = [Sample(A(3), A(3)), Sample(A(2, 3), A(2, 3)), Sample(A(), A())]
constant(np.array_equal, np.array_equiv, np.allclose, samples=_TWICE)


constant(np.unravel_index, samples=[Sample(A(3, lo=0, hi=5, kind="int"), (2, 3)), Sample(A(lo=0, hi=3, kind="int"), (4,))])
constant(
    np.ravel_multi_index,
    samples=[Sample(A(2, 3, lo=0, hi=2, kind="int"), (3, 3)), Sample(A(2, 4, lo=0, hi=9, kind="int"), (3, 3), mode="clip")],
)


@composite(np.ix_, samples=[Sample(A(2), A(3)), Sample(A(1)), Sample(A(2), [0, 1], A(2))])
def ix_(*args: Any) -> Any:
    """Index arrays that lie along one axis each."""
    made = []
    for k, new in enumerate(args):
        new = array_of(new)
        new = np.flatnonzero(new) if new.dtype == bool else new
        made.append(np.reshape(new, (1,) * k + (np.size(new),) + (1,) * (len(args) - k - 1)))
    return tuple(made)


@composite(
    np.compress,
    samples=[
        Sample([True, False, True], A(3)),
        Sample([False, True], A(3, 4), axis=1),
        Sample([0, 1, 1, 0, 1], A(2, 3)),
        Sample([True], A(), axis=0),
    ],
)
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """The slices of ``a`` along an axis where ``condition``, which may be shorter, is true."""
    if np.ndim(condition) != 1:
        raise ValueError("condition must be a 1-d array")
    a, axis = (np.ravel(a), 0) if axis is None or np.ndim(a) == 0 else (a, axis)
    return _taken_where(array_of(condition), a, axis)


@composite(np.extract, samples=[Sample(np.array([True, False, True]), A(3)), Sample(A(2, 3, kind="bool"), A(2, 3))])
def extract(condition: Any, arr: Any) -> Any:
    """The elements of ``arr``, ravelled, where ``condition`` is true."""
    return _taken_where(np.ravel(array_of(condition)), np.ravel(arr), 0)


def _taken_where(condition: Any, a: Any, axis: int) -> Any:
    """The slices of ``a`` along an axis where a condition is true, which may have fewer elements, or more that are false."""
    if isinstance(condition, Traced) and condition.like.dtype == bool and condition.like.shape == np.shape(a):
        return condition.adopt(a)[condition]
    return take_at(a, np.flatnonzero(condition), axis)


@composite(
    np.choose,
    samples=[
        Sample([0, 1, 2], [A(3), A(3), 0.5]),
        Sample(np.array([[0], [1]]), (A(2, 3), A(3))),
        Sample(1, [A(3), A(3)]),
        Sample([0, 5, -1], [A(3), A(3)], mode="clip"),
    ],
)
def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    """From each place, the element there of choice number ``a``."""
    n = len(choices)
    a = array_of(a)
    if mode == "raise" and np.any((a < 0) | (a >= n)):
        raise ValueError("invalid entry in choice array")
    a = np.remainder(a, n) if mode == "wrap" else np.clip(a, 0, n - 1)
    result = choices[0]
    for i in range(1, n):
        result = np.where(a == i, choices[i], result)
    return np.broadcast_to(result, np.broadcast_shapes(np.shape(a), *map(np.shape, choices))).copy()


@composite(
    np.select,
    samples=[
        Sample([A(3, kind="bool"), A(3, kind="bool")], [A(3), A(3)], 0.5),
        Sample([A(2, 3, kind="bool")], [A(3)], A(2, 1)),
        Sample([np.array([True, False])], [A(2)]),
    ],
)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """From each place, the element there of the first choice whose condition is true."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = np.where(condition, choice, result)
    return result


# -- writes into an array ------------------------------------------------------------------------------------------


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """``a.flat[ind] = v``, values repeated as needed; out-of-range indices wrap or clip by ``mode``."""
    size, values = np.size(a), np.ravel(v)
    if not np.size(values):  # nothing is written
        return
    places = np.ravel(places_in(ind))
    if mode == "wrap":
        places = places % size
    elif mode == "clip":
        places = np.clip(places, 0, size - 1)
    else:
        _check(places, size)
    if np.size(places):
        _write_flat(a, places, values if np.size(values) in (1, np.size(places)) else np.resize(values, np.size(places)))


def _check(places: Any, size: int) -> None:
    """What is out of bounds is an error: places that are taken apart into those along each axis would be others."""
    if np.any((places < -size) | (places >= size)):
        raise IndexError(f"an index is out of bounds for size {size}")


def _write_flat(a: Any, places: Any, values: Any) -> None:
    """``a.flat[places] = values``."""
    rest, arrays = places, []
    for n in reversed(np.shape(a)):  # np.unravel_index, of traced places, too
        arrays.append(rest % n)
        rest = rest // n
    a[tuple(reversed(arrays))] = values


def place(arr: Any, mask: Any, vals: Any) -> None:
    """The first, second … place where ``mask`` is true becomes the first, second … of ``vals``, repeated as needed."""
    places = np.flatnonzero(mask)
    if np.size(places):
        if not np.size(vals):
            raise ValueError("Cannot insert from an empty array!")
        _write_flat(arr, places, np.resize(np.ravel(vals), np.size(places)))


def putmask(a: Any, mask: Any, values: Any) -> None:
    """``a.flat[i] = values[i]`` where ``mask`` is true, values repeated as needed."""
    if not np.size(values):  # nothing is written
        return
    if np.shape(values) != np.shape(a):
        values = np.reshape(np.resize(np.ravel(values), np.size(a)), np.shape(a))
    a[...] = np.where(np.reshape(mask, np.shape(a)), values, a).astype(a.dtype)


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """``dst[...] = src`` where ``where`` is true."""
    number = isinstance(src, (int, float, complex))
    src = src if number else array_of(src)
    dtype = np.result_type(dst.dtype, src) if number else src.dtype
    if not np.can_cast(dtype, dst.dtype, casting):
        what = f"{'array data' if np.ndim(src) else 'scalar'} from {dtype!r} to {dst.dtype!r}"
        raise TypeError(f"Cannot cast {what} according to the rule {casting!r}")
    dst[...] = src if where is True else np.where(where, src, dst).astype(dst.dtype)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """``a[i, i, …] = val``."""
    shape = np.shape(a)
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    stand_in = np.zeros(shape, int)
    np.fill_diagonal(stand_in, 1, wrap)
    places = np.flatnonzero(stand_in)
    if np.size(places):
        put(a, places, val)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """``arr[..., indices, ...] = values`` along an axis."""
    if axis is None:
        places = places_in(indices)
        _check(places, np.size(arr))
        _write_flat(arr, places, values)
        return
    shape = np.shape(arr)
    axis = normalize_axis_index(axis, len(shape))
    key: list[Any] = [np.arange(n).reshape([-1 if i == j else 1 for j in range(len(shape))]) for i, n in enumerate(shape)]
    key[axis] = array_of(indices)
    arr[tuple(key)] = values


#: Operations that write into an array, and those that may put values into zeros, too.
WRITING = (SETITEM, INDEX_ADD)
SCATTERING = (*WRITING, SCATTER)

#: NumPy's functions that write into an array, as these operations.
WRITERS: dict[Any, Any] = {
    np.put: put, np.place: place, np.putmask: putmask, np.copyto: copyto, np.fill_diagonal: fill_diagonal,
    np.put_along_axis: put_along_axis,
}  # fmt: skip
