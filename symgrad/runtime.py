"""What generated code may call besides NumPy: the few operations for which NumPy has no expression.

Each function is pure: it returns a new array and leaves its arguments alone.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import threading
from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any

import numpy as np

from symgrad.buffers import empty

Array = Any


def product(a: float, b: float) -> float:
    """``a * b`` of Python's numbers; raises ``ArithmeticError`` where it is so large or small that digits may be lost.

    >>> product(2.0, 3.0)
    6.0
    """
    result = a * b
    if 1e-200 < abs(result) < 1e200 or (result == 0.0 and 0.0 in (a, b)):
        return result
    raise ArithmeticError(f"{a} times {b}")


def layout(x: Array) -> int:
    """How an array lies in memory, as far as NumPy's views and copies hang on it: 0 as C has it, 1 as Fortran has it.

    2 where rows come first with gaps, or backwards, and 3 otherwise.
    """
    if x.flags.forc:
        return int(x.flags.fnc)
    strides = [abs(step) for step, n in zip(x.strides, x.shape, strict=True) if n > 1]
    return 2 if strides == sorted(strides, reverse=True) else 3


def owners(counts: Array, total: int) -> Array:
    """Whose each of ``total`` items is, where the first one has so many, and the next one those that follow."""
    return np.repeat(np.arange(len(counts)), counts)


def setitem(base: Array, value: Array, index: Any) -> Array:
    """A copy of ``base`` with ``base[index] = value``."""
    out = np.array(base)
    out[index] = value
    return out


def scatter(value: Array, index: Any, shape: tuple[int, ...]) -> Array:
    """Zeros of ``shape`` with ``value`` added at ``index``: the transpose of ``x[index]``.

    >>> scatter(np.array([1.0, 2.0]), slice(1, 3), (4,))
    array([0., 1., 2., 0.])
    """
    out = np.zeros(shape, value.dtype if hasattr(value, "dtype") else np.result_type(value))
    if repeats(index):
        add_each(out, index, value)
    else:
        out[index] = value
    return out


def index_add(base: Array, value: Array, index: Any) -> Array:
    """A copy of ``base`` with ``value`` added at ``index``; repeated indices add up.

    >>> index_add(np.zeros(3), 1.0, [0, 0, 2])
    array([2., 0., 1.])
    """
    out = np.array(base)
    add_at(out, index, value)
    return out


def combined_at(base: Array, value: Array, index: Any, by: str) -> Array:
    """A copy of ``base`` after ``ufunc.at``: ``value`` taken in at ``index``, one after the other where an index repeats.

    >>> combined_at(np.zeros(3), np.array([1.0, 4.0, 2.0]), [0, 2, 2], "maximum")
    array([1., 0., 4.])
    """
    out = np.array(base)
    if 0 < np.ndim(value) < np.ndim(places := out[index]):  # NumPy may read beyond the memory of a row, for each of many
        value = np.broadcast_to(value, places.shape)
    getattr(np, by).at(out, index, value)
    return out


def add_at(out: Array, index: Any, value: Array) -> None:
    """``np.add.at``, by plain indexing where no index can repeat."""
    if repeats(index):
        add_each(out, index, value)
    else:
        out[index] += value


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in the machine's byte order; the same one, where it is in that: beside an equal one ``np.add.at`` is slow."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def within(places: Array, n: int) -> Array:
    """Places along an axis of ``n`` elements, those from its end counted from its start.

    Raises:
        IndexError: where one is not there.

    >>> within(np.array([0, -1]), 3)
    array([0, 2])
    """
    if not places.size or np.maximum.reduce(places.view(np.uint64), None) < n:  # negative ones are large
        return places
    outside = places[(places < -n) | (places >= n)]
    if outside.size:
        raise IndexError(f"index {outside.flat[0]} is out of bounds for axis with size {n}")
    return np.where(places < 0, places + n, places)


def elements(x: Array, places: Array, out: Array | None = None) -> Array:
    """The elements of an array at places in memory, all of which are there.

    >>> elements(np.arange(6.0).reshape(2, 3), np.array([5, 0]))
    array([5., 0.])
    """
    if x.flags.c_contiguous:
        found = x.take(places, None, None if out is x else out, "clip")  # which, as it checks nothing, copies nothing
    else:
        found = x[np.unravel_index(places, x.shape)]
    return found if out is None else _copied(found, out)


def add_elements(x: Array, places: Array, value: Array, out: Array | None = None) -> Array:
    """``x`` with numbers added at places in memory, all of which are there, and may be there more than once.

    >>> add_elements(np.ones((2, 2)), np.array([3, 0, 3]), np.ones(3))
    array([[2., 1.],
           [1., 3.]])
    """
    if out is not None:  # it may be what another argument lies in
        places, value = (array.copy() if np.may_share_memory(array, out) else array for array in (places, value))
    result = _copied(x, out)
    if result.flags.c_contiguous:
        np.add.at(result.reshape(-1), places.reshape(-1), value.reshape(-1))
    else:
        np.add.at(result, np.unravel_index(places, x.shape), value)
    return result


def sum_elements(places: Array, value: Array, shape: tuple[int, ...]) -> Array:
    """Zeros with numbers in double precision added at places in memory, which may be there more than once.

    Raises:
        IndexError: where a place is not there.

    >>> sum_elements(np.array([3, 0, 3]), np.ones(3), (2, 2))
    array([[1., 0.],
           [0., 2.]])
    """
    size = math.prod(shape)
    if not places.size:  # of which np.bincount makes whole numbers
        return np.zeros(shape)
    try:
        total = np.bincount(places.reshape(-1), value.reshape(-1), size)
    except (ValueError, MemoryError):  # some count from the end, or are far beyond it
        return sum_elements(within(places, size), value, shape)
    if len(total) != size:
        within(places, size)
    return total.reshape(shape)


def pick(x: Array, *places: Array) -> Array:
    """``x[places]`` by the places in memory, in less than half of the time.

    >>> pick(np.arange(6.0).reshape(2, 3), np.array([0, 1, 1]), np.array([2, 0, -1]))
    array([2., 3., 5.])
    """
    if not x.flags.c_contiguous:
        return x[places]
    flat, *more = [within(array, n) for array, n in zip(places, x.shape, strict=False)]
    for array, n in zip(more, x.shape[1:], strict=False):
        flat = flat * n + array
    return x.reshape(-1, *x.shape[len(places) :]).take(flat, 0)


def add_each(out: Array, index: Any, value: Array) -> None:
    """``np.add.at``; rows of many numbers by the places of the numbers in memory, which NumPy takes several times as fast.

    >>> x = np.zeros((3, 2))
    >>> add_each(x, np.array([0, 0, 2]), np.ones((3, 2)))
    >>> x
    array([[2., 2.],
           [0., 0.],
           [1., 1.]])
    """
    arrays = index if isinstance(index, tuple) else (index,)
    while len(arrays) > 1 and type(arrays[0]) is int and isinstance(arrays[1], (int, np.ndarray)):
        out, arrays = out[arrays[0]], arrays[1:]
    if len(arrays) > 1 and not any([part is Ellipsis for part in arrays]):
        while _is_whole(arrays[-1]):
            arrays = arrays[:-1]
    if out.ndim == 1 and (len(arrays) > 1 or np.ndim(arrays[0]) > 1):
        if len(arrays) == 1 and _is_places(arrays[0]):
            np.add.at(out, arrays[0].reshape(-1), _of_shape(value, arrays[0].shape).reshape(-1))  # of one axis, NumPy is fast
        else:  # and reads beyond the memory of a row, for each of many
            np.add.at(out, arrays, _of_shape(value, out[arrays].shape))
        return
    few = _FEW if len(arrays) == 1 else 4 * _FEW
    plain = np.size(value) < few or out.ndim < 2 or not out.size or not out.flags.c_contiguous
    if not plain and np.may_share_memory(value, out):  # as NumPy does it, for all of it at once
        value = value.copy()
    if not plain and _is_whole(arrays[0]):
        if len(arrays) == 2 == out.ndim and _is_places(arrays[1]) and np.size(value) <= _SLAB:
            places, n = arrays[1].reshape(-1).astype(np.intp, copy=False), out.shape[1]
            if places.view(np.uintp).max() < n:  # none from the end
                each = np.arange(0, out.size, n)[:, None] + places
                np.add.at(out.reshape(-1), each.reshape(-1), _of_shape(value, (len(out), *arrays[1].shape)).reshape(-1))
                return
        out, arrays, value = _by_rows(out, arrays, value)
    if plain or not all(map(_is_places, arrays)):
        np.add.at(out, arrays, value)
        return
    rest = out.shape[len(arrays) :]
    count = math.prod(rest)
    narrow = 1 < count <= _NARROW
    checked = len(arrays) == 1 and (narrow or len(out) <= arrays[0].size)  # by NumPy
    places = arrays[0] if checked else _combined(arrays, out.shape)
    if places is None:
        np.add.at(out, arrays, value)
        return
    places = np.atleast_1d(places)
    rows, shape = out.reshape(-1, count), places.shape + rest
    values = _of_shape(value, shape)
    if narrow:
        places, values = places.reshape(-1).astype(np.intp, copy=False), values.reshape(-1, count)
        for k in range(count):
            np.add.at(rows[:, k], places, values[:, k])
        return
    table = np.arange(out.size).reshape(rows.shape) if len(rows) <= places.size else None
    step = max(_SLAB // 2 * len(places) // (places.size * count), 1)
    for lo in range(0, len(places), step):
        each = places[lo : lo + step]
        if table is not None:  # which is read faster than the places are computed
            each = table.take(each, 0)
        elif count > 1:
            each = each[..., None] * count + np.arange(count)
        np.add.at(out.reshape(-1), each.reshape(-1), values[lo : lo + step].reshape(-1))


def _by_rows(out: Array, index: tuple[Any, ...], value: Array) -> tuple[Array, tuple[Any, ...], Array]:
    """Whole axes before index arrays as one axis whose rows an index array names, too."""
    axes = next(k for k, part in enumerate(index) if not _is_whole(part))
    arrays = index[axes:]
    if not all(map(_is_places, arrays)):
        return out, index, value
    named = np.broadcast_shapes(*[array.shape for array in arrays]) if len(arrays) > 1 else arrays[0].shape
    shape = named + out.shape[len(index) :]
    values = _of_shape(value, out.shape[:axes] + shape)
    out = out.reshape(-1, *out.shape[axes:])
    first = np.arange(len(out)).reshape(-1, *[1] * len(named))
    return out, (first, *arrays), values.reshape(-1, *shape)


def _of_shape(value: Array, shape: tuple[int, ...]) -> Array:
    """An array that may have to be broadcast."""
    return value if np.shape(value) == shape else np.broadcast_to(value, shape)


def _combined(arrays: tuple[Any, ...], shape: tuple[int, ...]) -> Array | None:
    """The numbers of the rows that index arrays name, None where one is not there."""
    places, *more = [array.astype(np.intp, copy=False) for array in arrays]
    if not more:  # rows counted from the end stay there
        return places if -shape[0] <= places.min() <= places.max() < shape[0] else None
    if not all([array.view(np.uintp).max() < n for array, n in zip((places, *more), shape, strict=False)]):
        return None  # nor do places wrap round
    for array, n in zip(more, shape[1:], strict=False):
        places = places * n + array
    return places


_FEW = 512
_NARROW = 4
_SLAB = 32_768  # numbers of an array that stays in a cache


def add_windows(windows: Array, shape: tuple[int, ...], axes: tuple[int, ...], steps: tuple[int, ...] | None = None) -> Array:
    """What ``sliding_window_view`` shows of an array of this shape along these axes, added up where it is from.

    ``steps``: how far a window is from the one before, along each axis of the array.

    >>> add_windows(np.array([[1.0, 2.0], [10.0, 20.0]]), (3,), (0,))
    array([ 1., 12., 20.])
    >>> add_windows(np.array([[1.0, 2.0], [10.0, 20.0]]), (5,), (0,), (3,))
    array([ 1.,  2.,  0., 10., 20.])
    """
    total = np.zeros(shape, windows.dtype)
    ndim = len(shape)
    steps = (1,) * ndim if steps is None else steps
    places = [stride * step for stride, step in zip(total.strides, steps, strict=True)]
    view = np.ndarray(windows.shape, total.dtype, total, 0, (*places, *[total.strides[i] for i in axes]))
    if len(set(axes)) == len(axes) and all([n <= steps[i] for n, i in zip(windows.shape[ndim:], axes, strict=True)]):
        view[...] = windows  # they are apart
        return total
    if len(set(axes)) == len(axes) and math.prod([windows.shape[i] for i in axes]) < math.prod(windows.shape[ndim:]):
        for k, i in enumerate(axes):  # few windows, but long
            view, windows = view.swapaxes(i, ndim + k), windows.swapaxes(i, ndim + k)
    rows = max(_SLAB * len(windows) // max(math.prod(windows.shape[:ndim]), 1), 1)
    for first in range(0, len(windows), rows):
        for place in itertools.product(*map(range, windows.shape[ndim:])):
            where: Any = (slice(first, first + rows), ..., *place)
            part = view[where]
            np.add(part, windows[where], part)
    return total


def spread(x: Array, kernel: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """``x`` times each number of a kernel, added up in an array of this shape, each as much further as its number in the kernel
    is: the transpose of a correlation along these axes.

    >>> spread(np.array([1.0, 2.0]), np.array([1.0, 10.0]), (3,), (0,))
    array([ 1., 12., 20.])
    """
    total, part = np.zeros(shape, x.dtype), np.empty(x.shape, x.dtype)
    for place in np.ndindex(kernel.shape):
        where = [slice(None)] * len(shape)
        for axis, at in zip(axes, place, strict=True):
            where[axis] = slice(at, at + x.shape[axis])
        view = total[tuple(where)]
        np.add(view, np.multiply(x, kernel[place], part), view)
    return total


def _is_whole(part: Any) -> bool:
    """Whether a part of an index leaves an axis as it is."""
    return isinstance(part, slice) and part == slice(None)


def _is_places(part: Any) -> bool:
    """Whether a part of an index is an array of signed integers."""
    return isinstance(part, np.ndarray) and part.dtype.kind == "i" and part.size > 0


def correlate(x: Array, g: Array) -> Array:
    """``np.correlate(x, g, "valid")`` of two long arrays, in pieces that stay in the cache, so that no digits are lost.

    >>> correlate(np.arange(4.0), np.ones(3))
    array([3., 6.])
    """
    more = len(x) - len(g)
    parts = [np.correlate(x[lo : lo + _SLAB + more], g[lo : lo + _SLAB], "valid") for lo in range(0, len(g), _SLAB)]
    return np.add.reduce(parts, 0)


def interpolate(x: Array, xp: Array, fp: Array, places: Array) -> Array:
    """``np.interp(x, xp, fp)`` where ``places``, those of ``np.searchsorted(xp, x, side="right")``, are known.

    >>> xp = np.array([0.0, 1.0, 3.0])
    >>> interpolate(np.array([-1.0, 2.0, 9.0]), xp, np.array([5.0, 6.0, 8.0]), np.array([0, 2, 3]))
    array([5., 7., 8.])
    """
    if not ascends(xp):
        return np.interp(x, xp, fp)
    first, slope = np.concatenate((xp[:1], xp)), np.zeros(len(xp) + 1)
    with np.errstate(all="ignore"):
        slope[1:-1] = np.diff(fp) / np.diff(xp)
        y = x - first.take(places)
        y *= slope.take(places)
        y += np.concatenate((fp[:1], fp)).take(places)
    odd = np.isnan(y)
    if odd.any():  # beside what is not finite
        y[odd] = np.interp(x[odd], xp, fp)
    return y


def ascends(x: Array) -> bool:
    """Whether each number is at least the one before; none is NaN.

    >>> ascends(np.array([0.0, 1.0, 1.0])), ascends(np.array([np.nan]))
    (True, False)
    """
    return not np.isnan(x[:1]).any() and bool(np.all(x[1:] >= x[:-1]))


def search(knots: Array, x: Array, side: Any = "left") -> Array:
    """``np.searchsorted`` of many numbers in no order: all take each step at once, where processors guess each one's wrong.

    Where knots are spread evenly enough, few steps are left once a number's cell is known.

    >>> search(np.array([0.0, 1.0, 3.0]), np.array([2.0, -1.0, 1.0, np.nan]), side="right")
    array([2, 0, 2, 3])
    """
    n, flat = len(knots), x.ravel()
    if not n or not ascends(knots) or ascends(flat):
        return np.searchsorted(knots, x, side=side)
    starts, widest, cell = _cells(knots, x.size)
    padded = np.concatenate((knots, np.full(2 * widest, np.inf)))
    is_before = np.less if side == "right" else np.less_equal  # NaNs, which come last, are before nothing
    result = np.zeros(x.size, np.intp)
    for start in range(0, x.size, 8192):  # so that they stay in the caches
        part, found, step = flat[start : start + 8192], result[start : start + 8192], widest
        if starts is not None:
            starts.take(cell(part), out=found, mode="clip")
        while step:
            before = is_before(part, padded[step - 1 :].take(found))
            found += np.logical_not(before, before).view(np.int8) * np.int64(step)
            step >>= 1
    return np.minimum(result, n, out=result).reshape(x.shape)


def _cells(knots: Array, many: int) -> tuple[Array | None, int, Any]:
    """How many knots are before each of some cells of one width, the widest step of a search in one, and whose cell is which.

    Rounding keeps the order: knots in cells before that of a number are less than it, and those in cells behind it greater.
    """
    n = len(knots)
    everywhere, last = 1 << (n.bit_length() - 1), 4 * n
    with np.errstate(all="ignore"):
        first, scale = knots[0], (last - 1) / (knots[-1] - knots[0])
    if last > many or not 0 < scale < np.inf:
        return None, everywhere, None

    def cell(x: Array) -> Array:
        with np.errstate(all="ignore"):
            place = (x - first) * scale
        np.fmin(place, last, out=place)  # NaNs, too, come last
        return np.fmax(place, 0, out=place).astype(np.intp)

    each = np.bincount(cell(knots) + 1, minlength=last + 1)
    widest = 1 << (int(each.max()).bit_length() - 1)
    return (np.cumsum(each), widest, cell) if 4 * widest <= everywhere else (None, everywhere, None)


def columns(x: Array, out: Array | None = None) -> Array:
    """An array with its last axis first, in memory, too.

    >>> columns(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([[1., 3., 5.],
           [2., 4., 6.]])
    """
    turned = x.transpose((x.ndim - 1, *range(x.ndim - 1)))
    if out is None:
        return turned.copy()
    np.copyto(out, turned)
    return out


def cross(x: Array, y: Array, out: Array | None = None) -> Array:
    """``np.cross`` along the first axis: each operation on long rows.

    >>> cross(np.array([[1.0], [0.0], [0.0]]), np.array([[0.0], [1.0], [0.0]]))
    array([[0.],
           [0.],
           [1.]])
    """
    if out is None:
        out = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    second = np.empty_like(out[0])
    for i in range(3):
        np.multiply(x[i - 2], y[i - 1], out[i])
        np.subtract(out[i], np.multiply(x[i - 1], y[i - 2], second), out[i])
    return out


def cross_rows(x: Array, y: Array, shape: tuple[int, ...], out: Array | None = None) -> Array:
    """``np.cross`` of what is known to be vectors of three numbers, in the same operations.

    >>> cross_rows(np.array([[1.0, 0.0, 0.0]]), np.array([0.0, 1.0, 0.0]), (1, 3))
    array([[0., 0., 1.]])
    """
    if math.prod(shape) <= SHORT:  # fewer calls, which look for the numbers one by one
        first = np.multiply(x.take(_NEXT, -1), y.take(_LAST, -1))
        return np.subtract(first, np.multiply(x.take(_LAST, -1), y.take(_NEXT, -1)), first if out is None else out)
    if out is None:
        out = np.empty(shape, x.dtype)
    a, b = ([z[..., 0], z[..., 1], z[..., 2]] for z in (x, y))
    for i in range(3):
        part = out[..., i]
        np.multiply(a[i - 2], b[i - 1], part)
        np.subtract(part, a[i - 1] * b[i - 2], part)
    return out


SHORT = 2000  # numbers of vectors of three, up to which calls take longer than to put them together anew
_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])


def matrices(a: Array, b: Array) -> Array:
    """``a @ b`` of many matrices of a few numbers: NumPy takes longer to get to the next one than for one.

    >>> matrices(np.ones((1, 2, 2)), np.array([[[1.0, 2.0], [3.0, 4.0]]]))
    array([[[4., 6.],
            [4., 6.]]])
    """
    (many, rows, inner), columns = a.shape, b.shape[2]
    out = np.empty((many, rows, columns), a.dtype)
    if rows * inner * columns <= 12:
        product = np.empty(many, a.dtype)
        for i, k in np.ndindex(rows, columns):
            total = np.multiply(a[:, i, 0], b[:, 0, k], out[:, i, k])
            for j in range(1, inner):
                np.add(total, np.multiply(a[:, i, j], b[:, j, k], product), total)
        return out
    for start in range(0, many, 1024):  # so that they stay in the caches
        x, y = (part[start : start + 1024].transpose((1, 2, 0)).copy() for part in (a, b))
        out[start : start + 1024] = np.einsum("ijn,jkn->ikn", x, y).transpose((2, 0, 1))
    return out


def determinants(a: Array) -> Array:
    """``np.linalg.det`` of many matrices of two or three rows, from their elements.

    Where products of those may leave the range of numbers, or the result is next to nothing, NumPy's own.

    >>> determinants(np.array([[[1.0, 2.0], [3.0, 4.0]], [[2.0, 0.0], [0.0, 3.0]]]))
    array([-2.,  6.])
    """
    largest = np.finfo(a.dtype).max ** 0.3
    if not -largest < a.min() <= a.max() < largest:  # or NaN
        return np.linalg.det(a)
    if a.shape[-1] == 2:
        p, q, r, s = a.reshape(-1, 4).T
        result = p * s - q * r
    else:
        p, q, r, s, t, u, v, w, x = a.reshape(-1, 9).T.copy()
        result = p * (t * x - u * w) - q * (s * x - u * v) + r * (s * w - t * v)
    small = np.abs(result) < 1.0 / largest**1.8
    if small.any():
        result[small] = np.linalg.det(a.reshape(-1, *a.shape[-2:])[small])
    return result.reshape(a.shape[:-2])


def by_columns(ufunc: Any, *args: Array) -> Array:
    """``ufunc(*args)``, the last of which is ``out``, column by column, for many rows of a few numbers.

    >>> by_columns(np.multiply, np.ones((2, 1)), np.array([3.0, 4.0]), np.empty((2, 2)))
    array([[3., 4.],
           [3., 4.]])
    """
    *given, out = args  # which np.maximum and np.minimum want by its name
    if any([_touches(arg, out) for arg in given]):
        return ufunc(*given, out=out)
    if ufunc is np.negative and out.dtype.kind in "fi":  # NumPy 2.4 misreads numbers of some strides
        ufunc, given = np.multiply, [*given, -1]
    for k in range(out.shape[-1]):
        ufunc(*[arg[..., min(k, arg.shape[-1] - 1)] if np.ndim(arg) else arg for arg in given], out=out[..., k])
    return out


def by_rows(ufunc: Any, *args: Array) -> Array:
    """``ufunc(*args)``, the last of which is ``out``, row by row as it lies in memory, where numbers repeat in long rows.

    >>> by_rows(np.multiply, np.ones((2, 1)), np.array([3.0, 4.0]), np.empty((2, 2)))
    array([[3., 4.],
           [3., 4.]])
    """
    *given, out = args
    order = sorted(range(out.ndim), key=lambda i: -abs(out.strides[i]))
    shapes = [(*(1,) * (out.ndim - np.ndim(x)), *np.shape(x)) for x in given if np.ndim(x)]
    turned = [[shape[i] for i in order] for shape in (out.shape, *shapes)]
    call = row_by_row() if repeats_in_rows(turned[0], turned[1:], FEW_ROWS) else _plainly
    return call(ufunc, *given, out=out)


def _plainly(function: Any, *args: Any, **keywords: Any) -> Any:
    return function(*args, **keywords)


def repeats_in_rows(shape: Sequence[int], shapes: Sequence[Sequence[int]], few: int) -> bool:
    """Whether an operation on arrays of ``shapes`` meets long rows in which, or for which, numbers repeat: ``few`` at least.

    NumPy 2 copies such numbers into buffers, 8,192 at a time, which takes one to four times as long as what it does with
    them; row by row it does not.
    """
    if math.prod(shape) < few:
        return False
    there = [(*(1,) * (len(shape) - len(other)), *other) for other in shapes if other]
    run, before = 1, None
    for i in reversed(range(len(shape))):
        repeated = [other[i] == 1 for other in there]
        if shape[i] > 1 and repeated != (before or repeated):
            return _LONG_ROW <= run <= _BUFFERED and math.prod(shape) >= (few if any(before or ()) else 4 * few)
        if shape[i] > 1:
            run, before = run * shape[i], repeated
    return False


_LONG_ROW = 128  # numbers in a row, from which on it is worth to begin anew at each, where some repeat
_BUFFERED = 8192  # numbers that NumPy would copy at a time
FEW_ROWS = 16_384  # numbers in all, from which on that is worth what NumPy has to be told for it


def row_by_row() -> Callable[..., Any]:
    """What calls a ufunc so that it begins anew at each row, where NumPy would else copy what repeats into long buffers first.

    >>> row_by_row()(np.multiply, np.ones((2, 1)), np.array([3.0, 4.0]))
    array([[3., 4.],
           [3., 4.]])
    """
    context = copy_context()  # which the size of buffers belongs to
    context.run(np.setbufsize, 16)
    return context.run


def _touches(x: Array, out: Array) -> bool:
    """Whether elements of an array lie where others of the result are written."""
    if x is out or not np.may_share_memory(x, out):
        return False
    return bool(x.shape != out.shape or x.strides != out.strides or x.ctypes.data != out.ctypes.data)


def order(x: Array, axis: int = -1) -> Array:
    """``np.argsort(x, axis, kind="stable")``, in a fraction of the time where no two elements are equal.

    >>> order(np.array([0.5, 0.25, 0.5]))
    array([1, 0, 2])
    """
    found = np.argsort(x, axis)
    values = np.take_along_axis(x, found, axis).swapaxes(axis, -1)
    alone = (values[..., 1:] > values[..., :-1]).all()  # and no NaNs
    return found if alone else np.argsort(x, axis, kind="stable")


def ranks(permutation: Array, axis: int = -1) -> Array:
    """``np.argsort`` of places that are each there once.

    >>> ranks(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    result = np.empty_like(permutation)
    shape = [1] * permutation.ndim
    shape[axis] = -1
    np.put_along_axis(result, permutation, np.arange(permutation.shape[axis]).reshape(shape), axis)
    return result


def hat(x: Array, place: float, axis: int = -1) -> Array:
    """How much of each element there is at a ``place`` in sorted order, between two ranks: ``1 - abs(rank - place)``, or none.

    The others need not be sorted where no element equals those two.

    >>> hat(np.array([5.0, 1.0, 3.0, 2.0]), 1.25)
    array([0.  , 0.  , 0.25, 0.75])
    """
    low = math.floor(place)
    near = [(rank, share) for rank, share in ((low, 1.0 - place + low), (low + 1, place - low)) if share]
    parts = np.partition(x, [rank for rank, _ in near], axis)
    result: Array = 0.0
    for rank, share in near:
        there = x == np.take(parts, [rank], axis)
        if not (np.count_nonzero(there, axis) == 1).all():  # equal ones, or NaNs
            return np.maximum(0.0, 1.0 - np.abs(ranks(order(x, axis), axis) - place))
        result = result + share * there
    return result


def from_parts(g: Array, parts: Array, x: Array, *, kth: tuple[int, ...], axis: int) -> Array:
    """The elements of ``g`` where those of ``parts``, which are ``np.partition(x, kth, axis)``, were; equal ones stay in order.

    ``axis`` counts from the end. Which element of a part was where is not asked for where ``g`` is the same for all of it.

    >>> x = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    >>> from_parts(np.array([7.0, 8.0, 0.0, 0.0, 0.0]), np.partition(x, 1), x, kth=(1,), axis=-1)
    array([0., 7., 8., 0., 0.])
    """
    g, parts, x = (np.ascontiguousarray(one.swapaxes(axis, -1)) for one in (g, parts, x))
    result, n = np.empty_like(g), x.shape[-1]
    ends = sorted({k % n for k in kth})
    spans = [(k, k + 1) for k in ends] + [(lo + 1, hi) for lo, hi in zip([-1, *ends], [*ends, n], strict=True) if lo + 1 < hi]
    same = {span: bool((g[..., slice(*span)] == g[..., span[0], None]).all()) for span in spans}
    lo, hi = max(spans, key=lambda span: (same[span], span[1] - span[0]))
    result[...] = g[..., lo, None]  # of the others, the places are known if no two elements are equal
    for span in spans:
        if span == (lo, hi) and same[span]:
            continue
        places = _of_part(parts, x, *span)
        if places is None:
            result[...] = back_in_place(np.take_along_axis(g, np.argsort(parts, kind="stable"), -1), order(x))
            break
        values = g[..., slice(*span)]
        if not same[span]:
            places = np.take_along_axis(places, order(x.reshape(-1)[places]), -1)
            values = np.take_along_axis(values, order(parts[..., slice(*span)]), -1)
        result.reshape(-1)[places] = values
    return result.swapaxes(axis, -1)


def _of_part(parts: Array, x: Array, lo: int, hi: int) -> Array | None:
    """The places in memory of the elements of each row that are at these places of its ``parts``; None where values do not
    tell: equal ones are on both sides, or NaNs."""
    n = x.shape[-1]
    if hi - lo == 1:
        inside = x == parts[..., lo, None]
    else:
        above, below = lo > 0 and x > parts[..., lo - 1, None], hi < n and x < parts[..., hi % n, None]
        inside = below if lo == 0 else above if hi == n else above & below
    places = np.flatnonzero(inside)
    alone = places.size == x.size // n * (hi - lo) and (np.count_nonzero(inside, -1) == hi - lo).all()
    return places.reshape(*x.shape[:-1], hi - lo) if alone else None


def back_in_place(values: Array, permutation: Array, axis: int = -1) -> Array:
    """What ``np.take_along_axis`` with ``permutation`` has taken, where it was.

    >>> back_in_place(np.array([5.0, 7.0, 9.0]), np.array([2, 0, 1]))
    array([7., 9., 5.])
    """
    result = np.empty_like(values)
    np.put_along_axis(result, permutation, values, axis)
    return result


def repeats(index: Any) -> bool:
    """Whether an index can name an element twice: it holds an integer array or list."""
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, list) or (isinstance(part, np.ndarray) and part.dtype != bool):
            return True
    return False


def powers(x: Array, *, exponents: tuple[int, ...], axis: int) -> Array:
    """``x ** exponents``, of ints that are not negative, along an axis on which ``x`` has length one, counted from the end.

    Each power is a product of two lower ones, where NumPy's general power costs some 20 times as much.

    >>> powers(np.array([[2.0], [-3.0]]), exponents=(0, 1, 2, 5), axis=-1)
    array([[   1.,    2.,    4.,   32.],
           [   1.,   -3.,    9., -243.]])
    """
    place = max(x.ndim + axis, 0)
    one = x[(*[slice(None)] * place, 0)] if x.ndim >= -axis else x.reshape((1,) * (-axis - 1 - x.ndim) + x.shape)
    rows = np.empty((len(exponents), *one.shape), x.dtype)
    known: dict[int, Array] = {1: one}

    def power(k: int) -> Array:
        if k not in known:
            low = k - 1 if k - 1 in known else k // 2
            known[k] = np.multiply(power(low), power(k - low), rows[exponents.index(k)] if k in exponents else None)
        return known[k]

    for row, k in zip(rows, exponents, strict=True):
        if k < 2 or k in known:
            row[...] = power(k) if k else 1
        else:
            power(k)
    return rows.transpose(*range(1, place + 1), 0, *range(place + 1, rows.ndim))


def inner(a: Array, b: Array) -> Array:
    """``np.sum(a * b)`` of two arrays, without the products in memory, and as precise: in rows that are summed in pairs.

    >>> float(inner(np.arange(300.0), np.ones(300)))
    44850.0
    """
    return np.add.reduce(inner_rows(a, b))


def either(fast: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """``fast``, of Python's numbers; where those raise, ``plain``, which is the same with NumPy's."""

    def function(*args: Any) -> Any:
        try:
            return fast(*args)
        except (ArithmeticError, ValueError):
            return plain(*args)

    return function


def inner_rows(a: Array, b: Array) -> Array:
    """The sums of products that ``inner`` adds up.

    >>> inner_rows(np.ones(300), np.ones(300))
    array([256.,  44.])
    """
    if a.ndim > 1:
        if a.flags.f_contiguous and b.flags.f_contiguous:
            a, b = a.T, b.T
        if not (a.flags.c_contiguous and b.flags.c_contiguous):
            if 16 <= a.shape[-1] <= 512 and a.shape == b.shape:
                return np.vecdot(a, b).ravel()
            return np.add.reduce(a * b, None, keepdims=True).ravel()
        a, b = a.ravel(), b.ravel()
    whole = len(a) - len(a) % 256
    if whole < len(a):
        return np.concatenate((inner_rows(a[:whole], b[:whole]), [np.vecdot(a[whole:], b[whole:])]))
    return np.vecdot(a.reshape(-1, 256), b.reshape(-1, 256))


def reduce_rows(ufunc: np.ufunc, x: Array, keepdims: bool = False) -> Array:
    """``ufunc.reduce(x, 0, keepdims=keepdims)`` of many short rows, some of them at a time as a long one.

    >>> reduce_rows(np.add, np.ones((1000, 3)))
    array([1000., 1000., 1000.])
    """
    many = _LONG // max(math.prod(x.shape[1:]), 1)
    whole = len(x) - len(x) % many if many > 1 and x.flags.c_contiguous else 0
    if not whole:
        return ufunc.reduce(x, 0, keepdims=keepdims)
    folded = ufunc.reduce(x[:whole].reshape(whole // many, many, *x.shape[1:]), 0)
    rest = [ufunc.reduce(x[whole:], 0, keepdims=keepdims)] if whole < len(x) else []
    return functools.reduce(ufunc, rest, ufunc.reduce(folded, 0, keepdims=keepdims))


_LONG = 256


def add_rows(x: Array, ones: Array) -> Array:
    """``np.sum(x, axis=0)``, as a product with ones where that reads the rows as they lie in memory.

    >>> add_rows(np.ones((2, 2, 3)), np.ones(2))
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """
    steps, shape = x.strides, x.shape
    if any([steps[i] != steps[i + 1] * shape[i + 1] for i in range(1, x.ndim - 1)]):
        return np.add.reduce(x, 0)
    return ones.dot(x.reshape(len(x), -1)).reshape(shape[1:])


def running(ufunc: np.ufunc, x: Array, axis: int, out: Array | None = None) -> Array:
    """``ufunc.accumulate(x, axis)``, which NumPy computes number by number, a row at a time.

    >>> running(np.add, np.array([[1.0, 2.0], [10.0, 20.0]]), 0)
    array([[ 1.,  2.],
           [11., 22.]])
    """
    out = np.empty_like(x) if out is None else out
    if abs(x.strides[axis]) == x.itemsize or not x.size:
        return ufunc.accumulate(x, axis, None, out)
    rows, totals = x.swapaxes(0, axis), out.swapaxes(0, axis)
    totals[0] = rows[0]
    for total, row, following in zip(totals, rows[1:], totals[1:], strict=False):
        ufunc(total, row, following)
    return out


def recurrence(x: Array, ratio: Array, *, axis: int, back: bool, summed: bool = False) -> Array:
    """``s`` with ``s[0] = x[0]`` and ``s[i + 1] = x[i + 1] + ratio[i] * s[i]`` along an axis, which counts from the end; if it
    goes ``back``, with ``s[-1] = x[-1]`` and ``s[i] = x[i] + ratio[i] * s[i + 1]``.

    No element is divided by that might be zero. ``summed``: no iterations are to be met to the last digit.

    >>> recurrence(np.array([1.0, 1.0, 1.0]), np.array([0.5, 2.0]), axis=-1, back=True)
    array([2.5, 3. , 1. ])
    """
    kind = np.result_type(x, ratio)
    order = slice(None, None, -1 if back else 1)
    x, ratio = (part.swapaxes(0, axis)[order] for part in (x, ratio))
    alike = len(ratio) > 1 and not ratio.strides[0]  # broadcast: the same slopes at each step
    s, slopes = (np.array(part, kind, order="C") for part in (x, ratio[:1] if alike else ratio))
    rows, ratios = (part.reshape(len(part), s.size // len(s)) for part in (s, slopes))
    many = _are_many(rows) and _grows_little(ratios, len(rows))
    doubled = many and alike
    if alike and not doubled:
        ratios = np.broadcast_to(ratios, (len(rows) - 1, rows.shape[1]))
    known = many or rows.shape[1] == 1
    if known:
        with np.errstate(all="ignore"):
            if doubled:
                _double(rows, ratios[0])
            elif not (summed and _sum_up(rows, ratios)):
                _recur(rows, ratios, many)
        known = bool(np.isfinite(rows).all()) or _is_nan_as_given(s, x, ratios)
    if not known:  # as the iterations have it, with their warnings
        s[...] = x
        _row_by_row(rows, np.broadcast_to(ratios, (len(rows) - 1, rows.shape[1])))
    return np.ascontiguousarray(s[order]).swapaxes(0, axis)


def _is_nan_as_given(s: Array, x: Array, slopes: Array) -> bool:
    """Whether all that is not finite in ``s`` is NaN, and comes from NaNs in ``x``: of those nobody warns."""
    wrong = np.isnan(s)
    return bool(np.isfinite(slopes).all() and not np.isinf(s).any() and (wrong == np.logical_or.accumulate(np.isnan(x))).all())


def _row_by_row(s: Array, slopes: Array) -> None:
    part = np.empty_like(s[0])
    for before, own, slope in zip(s[:-1], s[1:], slopes, strict=True):
        np.add(own, np.multiply(slope, before, part), own)


def _are_many(rows: Array) -> bool:
    """Whether there are many rows, which are short, so that calls take most of the time."""
    n, width = rows.shape
    return bool(width < _SHORT and n > (_FEW if width == 1 else _SHORT))


def _grows_little(slopes: Array, n: int) -> bool:
    """Whether what there is at first, or somewhere on the way, grows little by these slopes, in ``n`` rows."""
    sizes = np.abs(slopes)
    largest = np.max(sizes)
    if largest <= 1 or n * math.log(largest) <= _GROWTH:
        return True
    if len(slopes) == 1 < n - 1:
        return False
    return bool(np.isfinite(largest) and np.max(np.sum(np.log(np.maximum(sizes, 1)), 0)) <= _GROWTH)


def _sum_up(s: Array, slopes: Array) -> bool:
    """The recurrence along the first axis, in place, as sums of what has the products of all slopes so far taken out of it;
    False where those are few, zero, or too large or small for that to lose nothing."""
    if len(s) <= _FEW or s.dtype != np.float64:
        return False
    scale = np.multiply.accumulate(slopes, 0)
    sizes = np.abs(scale)
    if not (np.min(sizes) >= 1 / _SCALE and np.max(sizes) <= _SCALE):
        return False
    s[1:] /= scale
    np.add.accumulate(s, 0, None, s)
    s[1:] *= scale
    return True


def _recur(s: Array, slopes: Array, parted: bool) -> None:
    """The recurrence along the first axis, in place. Many short rows may be ``parted``: all parts at once as if nothing came
    before them; then what does is added, of which their ends tell by a recurrence of their own. Where the slopes make much of
    little, that would be rounding, which the iterations may have none of."""
    n, width = s.shape
    if width == 1 and not parted:
        s[:, 0] = _recurred(s[:, 0].tolist(), slopes[:, 0].tolist())
        return
    if not parted:
        _row_by_row(s, slopes)
        return
    parts = -(-n // _PART)
    both = np.zeros((2, parts * _PART, width), s.dtype)
    both[0, :n], both[1, 1:n] = s, slopes
    whole, ratios = (x.reshape(parts, _PART, width).swapaxes(0, 1).reshape(_PART, -1) for x in both)
    part = np.empty_like(whole[0])
    for i in range(1, _PART):
        np.add(whole[i], np.multiply(ratios[i], whole[i - 1], part), whole[i])
        np.multiply(ratios[i], ratios[i - 1], ratios[i])  # by how much the beginning of a part counts
    ends, before = whole[-1].reshape(parts, width).copy(), np.zeros((parts, width), s.dtype)
    _recur(ends, ratios[-1].reshape(parts, width)[1:], _are_many(ends))
    before[1:] = ends[:-1]
    whole += np.multiply(ratios, before.reshape(-1), ratios)
    s[...] = whole.reshape(_PART, parts, width).swapaxes(0, 1).reshape(-1, width)[:n]


def _double(s: Array, slope: Array) -> None:
    """The recurrence along the first axis, in place, of the same slopes at each step: the last row counts, the last two, ..."""
    part, step = np.empty_like(s), 1
    while step < len(s):
        np.add(s[step:], np.multiply(slope, s[:-step], part[step:]), s[step:])
        step, slope = 2 * step, slope * slope


def _recurred(s: list[Any], slopes: list[Any]) -> list[Any]:
    """The same of Python's numbers, in a new list."""
    found, value = s[:1], s[0]
    for own, slope in zip(s[1:], slopes, strict=True):
        value = own + slope * value
        found.append(value)
    return found


_FEW = 256  # numbers, up to which they are taken one after the other
_SHORT = 32  # numbers in a row, and rows, up to which calls take most of the time
_GROWTH = 7.0  # of logarithms of slopes, up to which rounding hardly counts
_SCALE = 1e75  # what sums are multiplied by, and divided by, at most
_PART = 8  # rows that are taken one after the other, of all parts at once


def shares(x: Array, y: Array, *, axis: int) -> Array:
    """By how much each element takes part in its running extreme ``y``, equal ones alike; the axis counts from the end.

    >>> shares(np.array([1.0, 3.0, 2.0, 3.0]), np.array([1.0, 3.0, 3.0, 3.0]), axis=-1)
    array([1. , 1. , 0. , 0.5])
    """
    met = (x == y).swapaxes(0, axis)
    first = np.ones_like(met)
    first[1:] = y.swapaxes(0, axis)[1:] != y.swapaxes(0, axis)[:-1]
    found = met.astype(y.dtype)
    if np.any(met > first):
        many = np.cumsum(met, 0)
        found /= np.maximum(many - np.maximum.accumulate(np.where(first, many - met, 0), 0), 1)
    return found.swapaxes(0, axis)


def from_running(g: Array, x: Array, y: Array, *, axis: int) -> Array:
    """What goes back to the elements of ``x`` from their running extremes ``y``: the sum over all that each is the extreme of;
    equal ones share alike. The axis counts from the end.

    >>> from_running(np.array([1.0, 1.0, 1.0, 1.0]), np.array([1.0, 3.0, 2.0, 3.0]), np.array([1.0, 3.0, 3.0, 3.0]), axis=-1)
    array([1. , 2.5, 0. , 0.5])
    """
    g, x, y = (np.ascontiguousarray(part.swapaxes(axis, -1)) for part in (g, x, y))
    out, first, met = np.zeros_like(g), np.ones(y.shape, bool), np.equal(x, y)
    np.not_equal(y[..., 1:], y[..., :-1], first[..., 1:])
    met[..., 0] = True  # NaN, too
    places = np.flatnonzero(first | met)  # from each to the next, the same elements share
    if places.size:
        first, number = first.reshape(-1)[places], np.arange(places.size)
        many = number - np.maximum.accumulate(np.where(first, number, 0)) + 1
        sums = np.add.reduceat(g.reshape(-1), places) / many.astype(g.dtype)
        if not first.all():
            sums = recurrence(sums, np.logical_not(first[1:]).astype(g.dtype), axis=-1, back=True)
        out.reshape(-1)[places] = np.where(met.reshape(-1)[places], sums, 0)
    return out.swapaxes(axis, -1)


def from_segments(g: Array, starts: Array, *, size: int, axis: int) -> Array:
    """What goes back to so many elements from ``np.add.reduceat`` at ``starts``, along an axis, which counts from the end.

    >>> from_segments(np.array([1.0, 2.0]), np.array([1, 3]), size=5, axis=-1)
    array([0., 1., 1., 2., 2.])
    """
    many = np.append(starts[1:], size) - starts
    apart = bool((many > 0).all())
    many = many if apart else np.maximum(many, 1)  # of what is not before the next start, it is the first alone
    values = np.repeat(g, many, axis)
    if values.shape[axis] == size and apart:
        return values
    count = values.shape[axis]
    place: Any = slice(size - count, None) if apart else np.repeat(starts - (np.cumsum(many) - many), many) + np.arange(count)
    return scatter(values, (..., place, *[slice(None)] * (-1 - axis)), (*g.shape[:axis], size, *g.shape[axis:][1:]))


def others(*arrays: Array, axis: int) -> Array:
    """For each element along an axis the product of all others; with directions, how it changes in all of those at once.

    It is the coefficient of ``s * t * ...`` in the product of all other ``a + s * v + t * w + ...``. No element is divided by
    that might be zero. ``axis`` counts from the end.

    >>> others(np.array([2.0, 0.0, 5.0]), axis=-1)
    array([ 0., 10.,  0.])
    >>> others(np.array([2.0, 0.0, 5.0]), np.array([1.0, 1.0, 1.0]), axis=-1)
    array([5., 7., 2.])
    """
    ndim = max([x.ndim for x in arrays])
    a, *directions = [x.reshape((1,) * (ndim - x.ndim) + x.shape).swapaxes(0, axis) for x in arrays]
    if not directions:
        return _from_both_sides(np.multiply, a).swapaxes(0, axis)
    if len(directions) == 1 and len(a) > 8 and a.dtype != object:
        rest = _from_both_sides(np.multiply, a)
        size = np.abs(rest)
        limits = np.finfo(size.dtype)
        if size.size and limits.tiny / limits.eps < size.min() and size.max() < limits.max**0.5:  # so that no digits are lost
            try:
                with np.errstate(over="raise"):
                    return np.multiply(rest, _from_both_sides(np.add, directions[0] / a)).swapaxes(0, axis)
            except FloatingPointError:
                pass
    alike = [a, *directions] if len({x.shape for x in (a, *directions)}) == 1 else np.broadcast_arrays(a, *directions)
    factors = {(1 << k) >> 1: x for k, x in enumerate(alike)}
    every = (1 << len(directions)) - 1
    found = _others(factors, every).get(every)
    return (np.zeros_like(factors[every and 1]) if found is None else found).swapaxes(0, axis)


def product_of_others(x: Array, out: Array | None = None, *, axis: int) -> Array:
    """``others(x, axis=axis)`` of many numbers, in another order: more products, in fewer calls, take less time.

    >>> product_of_others(np.array([2.0, 0.0, 5.0]), axis=-1)
    array([ 0., 10.,  0.])
    """
    out = np.empty_like(x) if out is None else out
    _others_of_halves(x.swapaxes(0, axis), out.swapaxes(0, axis))
    return out


def _others_of_halves(x: Array, out: Array) -> None:
    """Of each element along the first axis the product of all others: from those of the products of both halves."""
    n, half = len(x), len(x) // 2
    if n < 3:
        out[...] = x[::-1] if n == 2 else 1
        return
    first, second = x[:half], x[half : 2 * half]
    pairs, rest = _scratch(x[half:], n), _scratch(x[half:], n)
    np.multiply(first, second, pairs[:half])
    if n % 2:
        pairs[-1] = x[-1]
    _others_of_halves(pairs, rest)
    np.multiply(rest[:half], second, out[:half])
    np.multiply(rest[:half], first, out[half : 2 * half])
    if n % 2:
        out[-1] = rest[-1]


def _scratch(x: Array, before: int) -> Array:
    """Memory for an array like ``x``, in the order that its own has; where ``before`` was not short, but the first axis is now,
    as C has it, so that rows are long."""
    if len(x) <= _TURN < before:
        return np.empty(x.shape, x.dtype)
    if x.nbytes < _OFTEN:
        return np.empty_like(x)
    return empty(x.shape, x.dtype) if x.strides[0] >= x.strides[-1] else empty(x.shape[::-1], x.dtype).T


_TURN = 16  # rows, up to which it is worth to have long ones
_OFTEN = 131_072  # bytes, from which on fresh memory costs more than what fills it


def _from_both_sides(ufunc: np.ufunc, x: Array) -> Array:
    """Of each element along the first axis, all others put together."""
    before, after = np.empty_like(x), np.empty_like(x)
    if not x.size:
        return before
    before[0] = after[-1] = ufunc.identity
    for rows, out in ((x[:-1], before[1:]), (x[:0:-1], after[-2::-1])):
        if rows[:1].size < 32:
            ufunc.accumulate(rows, 0, None, out)
        elif len(rows):
            running(ufunc, rows, 0, out)
    return ufunc(before, after, before)


def _others(x: dict[int, Array], wanted: int | None = None) -> dict[int, Array]:
    """The products of all others of so many polynomials, given by their coefficients: in pairs, which have others.

    The bits of a number say by which variables, none more than once, its coefficient is multiplied. ``wanted`` is one of them.
    """
    n = len(x[0])
    if n < 2:
        return {0: np.ones_like(x[0])}
    if n == 2:
        return {which: part[::-1].copy() for which, part in x.items()}
    even, odd = [{which: part[k : n - n % 2 : 2] for which, part in x.items()} for k in (0, 1)]
    pairs = _products(even, odd)
    if n % 2:
        nothing = np.zeros_like(x[0][:1])
        pairs = {which: np.concatenate((part, x[which][-1:] if which in x else nothing)) for which, part in pairs.items()}
    up = _others(pairs)
    both = {which: part[: n // 2] for which, part in up.items()}
    found = [_products(both, half, wanted) for half in (odd, even)]
    result = {}
    for which, part in found[0].items():
        result[which] = whole = np.empty_like(part, shape=(n, *part.shape[1:]))
        whole[0 : n - n % 2 : 2], whole[1::2] = part, found[1][which]
        if n % 2:
            whole[-1] = up[which][-1] if which in up else 0
    return result


def _products(x: dict[int, Array], y: dict[int, Array], wanted: int | None = None) -> dict[int, Array]:
    """Products of polynomials of which no variable's square matters."""
    found: dict[int, Array] = {}
    for one, a in x.items():
        for other, b in y.items():
            if not one & other and wanted in (None, one | other):
                found[one | other] = found[one | other] + a * b if one | other in found else a * b
    return found


def gram(x: Array, weights: Array) -> Array:
    """``x.T @ (weights[:, None] * x)``: half of the products will do where no two weights differ in sign.

    >>> gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.5]))
    array([[ 5.5,  8. ],
           [ 8. , 12. ]])
    """
    lowest, highest = weights.min(), weights.max()
    if not (0 <= lowest <= highest < np.inf or -np.inf < lowest <= highest <= 0):  # nan, too
        return (x.T * weights).dot(x)
    product = _gram(x, np.sqrt(np.abs(weights)))
    return product if lowest >= 0 else np.negative(product, product)


def _gram(x: Array, scales: Array) -> Array:
    """The products of the columns of ``x``, once its rows are scaled; rows are scaled while they are in the cache, if few
    enough make a product worth the call."""
    n, d = x.shape
    rows = max(2 * _SLAB // max(d, 1), 8 * d)
    if n <= 2 * rows or x.strides[1] != x.itemsize:
        scaled = scales[:, None] * x
        return scaled.T.dot(scaled)  # NumPy knows that this is symmetric
    scaled, total, product = np.empty((rows, d), x.dtype), np.zeros((d, d), x.dtype), np.empty((d, d), x.dtype)
    for start in range(0, n, rows):
        some = x[start : start + rows]
        part = np.einsum("i,ij->ij", scales[start : start + rows], some, out=scaled[: len(some)])
        np.add(total, part.T.dot(part, product), total)
    return total


def bits(mask: Array, out: Array | None = None) -> Array:
    """A mask as 64 bits a number, all ones or none, for ``select``.

    >>> bits(np.array([True, False]))
    array([-1,  0])
    """
    return np.negative(mask.view(np.int8), out, dtype=np.int64, casting="unsafe")


def steps(first: Array, second: Array, out: Array | None = None) -> Array:
    """How many of two masks are set.

    >>> steps(np.array([False, False, True]), np.array([False, True, True]))
    array([0, 1, 2], dtype=int8)
    """
    return np.add(first.view(np.int8), second.view(np.int8), out)


def select(mask: Array, a: Array, b: Array, out: Array | None = None) -> Array:
    """``np.where(mask, a, b)`` of floats by their bits: ``where`` branches at each number, which processors guess wrong.

    The mask may be that of ``bits``, which is quicker where several choices need it.

    >>> select(np.array([True, False]), np.array([1.0, np.nan]), 0.0)
    array([1., 0.])
    """
    dtype = np.result_type(a, b)
    integers = np.dtype(f"i{dtype.itemsize}")
    if out is None:
        out = np.empty_like(mask, dtype)
    a, b, result = np.asarray(a, dtype).view(integers), np.asarray(b, dtype).view(integers), out.view(integers)
    chosen = np.negative(mask.view(np.int8)) if mask.dtype == bool else mask  # all ones, or none
    if not a.ndim:
        a, b, chosen = b, a, np.invert(chosen)
    if not b.ndim and not b:
        np.bitwise_and(a, chosen, result)
        return out
    if np.may_share_memory(b, result):
        b = b.copy()
    np.bitwise_xor(a, b, result)
    np.bitwise_and(result, chosen, result)
    np.bitwise_xor(result, b, result)
    return out


def to_extremes(x: Array, extremes: Array, g: Array, out: Array | None = None) -> Array:
    """``g``, or each of it, where elements are the extremes of ``x`` along some axes, which both keep, or all; else zero. Equal
    ones share it.

    >>> x = np.array([[1.0, 3.0, 2.0], [5.0, 0.0, 5.0]])
    >>> to_extremes(x, np.array([[3.0], [5.0]]), np.array([[4.0], [6.0]]))
    array([[0., 4., 0.],
           [3., 0., 3.]])
    """
    out = np.empty(x.shape, x.dtype) if out is None else out
    met = by_rows(np.equal, x, extremes, np.empty(x.shape, bool)) if np.ndim(extremes) else np.equal(x, extremes)
    places = np.flatnonzero(met)
    if places.size > 2 * np.size(extremes):  # so many that sums and choices take less time
        axes = tuple([i for i, n in enumerate(np.shape(extremes)) if n == 1]) or None
        shares = g / np.add.reduce(met, axes, x.dtype, keepdims=True)
        return select(met, np.broadcast_to(shares, x.shape), 0, out)
    index = np.unravel_index(places, x.shape)
    if not np.ndim(extremes):
        values = g / max(places.size, 1)
    else:
        row = np.ravel_multi_index([i * (n > 1) for i, n in zip(index, extremes.shape, strict=True)], extremes.shape)
        values = (g.reshape(-1)[row] if np.ndim(g) else g) / np.bincount(row).astype(x.dtype)[row]
    out[...] = 0  # which ``g`` may be a view of
    out[index] = values
    return out


def logistic(minus: Array, out: Array | None = None) -> Array:
    """``1 / (1 + exp(-x))``, given ``-x``; where that overflows, the result is 0.

    >>> logistic(np.array([800.0, 0.0, -800.0]))
    array([0. , 0.5, 1. ])
    """
    before = _at_large()
    try:
        out = np.exp(minus, out)
    finally:
        end(before)
    np.add(out, 1.0, out)
    return np.divide(1.0, out, out)


def expit(x: Array, out: Array | None = None) -> Array:
    """``scipy.special.expit`` in half of its time: by the vectorised exponential.

    >>> expit(np.array([0.0, 800.0]))
    array([0.5, 1. ])
    """
    found = np.negative(x)
    logistic(found, found)
    if not np.minimum.reduce(found, None) > 0:  # or NaN: what overflows is not zero yet
        importlib.import_module("scipy.special").expit(x, found)
    return found if out is None else _copied(found, out)


def logaddexp(x: Array, other: Array, out: Array | None = None) -> Array:
    """``np.logaddexp`` in a fifth of its time: by the vectorised exponential and logarithm.

    >>> logaddexp(np.array([0.0, -np.inf]), np.array([0.0, -np.inf]))
    array([0.69314718,       -inf])
    """
    largest = np.maximum(x, other)
    before = silent()
    try:
        gap = np.subtract(x, other)
        np.log1p(np.exp(np.negative(np.abs(gap, gap), gap), gap), gap)
        if math.isnan(np.add.reduce(gap, None)):  # of infinities, or what is no number
            return np.logaddexp(x, other, out)
    finally:
        end(before)
    return np.add(largest, gap, out)


def weight(x: Array, other: Array, out: Array | None = None) -> Array:
    """``exp(x - np.logaddexp(x, other))``; a half where both are infinite alike.

    >>> weight(np.array([0.0, -np.inf, 800.0]), np.array([0.0, -np.inf, 0.0]))
    array([0.5, 0.5, 1. ])
    """
    before = _at_large()
    try:
        gap = np.subtract(other, x)
        np.add(np.exp(gap, gap), 1.0, gap)
        if math.isnan(np.add.reduce(gap, None)):
            gap[x == other] = 2.0
    finally:
        end(before)
    return np.divide(1.0, gap, gap if out is None else out)


def over(x: Array, times: float, v: Any, out: Array | None = None) -> Array:
    """``times * x / v`` of an array and a number, by ``times / v`` where that is far from what cannot be held: a quotient takes
    three products' time.

    >>> over(np.array([1.0, 3.0]), 1, 2.0)
    array([0.5, 1.5])
    """
    largest = _FAR[x.dtype.char]
    if 1 / largest < abs(v) < largest:
        return np.multiply(x, times / v, out)
    return np.divide(x if times == 1 else np.multiply(x, times), v, out)  # in ``out`` may lie ``v``


_FAR = {"d": 1e150, "f": 1e15}


def int64(x: Any) -> Any:
    """A whole number that is one of NumPy's; raises ``OverflowError`` where NumPy's would begin anew.

    >>> int64(3)
    3
    """
    if -0x8000000000000000 <= x <= 0x7FFFFFFFFFFFFFFF:
        return x
    raise OverflowError("a whole number is too large")


def total(x: Array) -> int:
    """The sum of whole numbers that are Python's, which may be larger than NumPy's.

    >>> total(np.array([2**62, 2**62]))
    9223372036854775808
    """
    return sum(x.tolist())


def rounded(x: float, digits: int) -> float:
    """A number as ``np.round`` has it, which Python's ``round`` does not: what is rounded is a multiple of it.

    >>> rounded(1.515, 2), round(1.515, 2)
    (1.52, 1.51)
    """
    scale = 10.0 ** abs(digits)
    y = x * scale if digits >= 0 else x / scale
    whole = math.copysign(float(round(y)), y)
    return whole / scale if digits >= 0 else whole * scale


def rows_product(x: Array) -> Callable[..., Any]:
    """What multiplies some rows of a matrix: ``dot``, or ``matmul`` where they do not lie in one piece, which that copies.

    >>> rows_product(np.ones((2, 3), order="F")) is np.matmul
    True
    """
    return np.ndarray.dot if x.flags.c_contiguous else np.matmul


def _handling() -> ContextVar[Any] | None:
    """Where NumPy keeps how it handles errors."""
    with np.errstate(divide="raise"):
        return next((each for each in copy_context() if each.name == "numpy.ufunc.extobj"), None)


_HANDLING = _handling()


def handler(**how: Any) -> Callable[[], Any]:
    """What begins to handle NumPy's errors as ``np.errstate(**how)`` does, in less time; gives what ``end`` takes.

    >>> before = handler(divide="ignore")()
    >>> np.float64(1.0) / 0
    np.float64(inf)
    >>> end(before)
    """
    if _HANDLING is None:
        return functools.partial(np.seterr, **how)
    known: dict[Any, Any] = {}  # by what there was before, which says what stays
    get, begin = _HANDLING.get, _HANDLING.set

    def handle() -> Any:
        before = get()
        wanted = known.get(before)
        if wanted is None:
            with np.errstate(**how):
                wanted = get()
            if len(known) >= FEW_HANDLERS:  # each ``with`` of a user's has its own
                known.clear()
            known[before] = wanted
        return begin(wanted)

    return handle


def end(before: Any) -> None:
    """Handle NumPy's errors as before again."""
    if isinstance(before, dict):
        np.seterr(**before)
    else:
        before.var.reset(before)


FEW_HANDLERS = 8
raising = handler(divide="raise", over="raise", invalid="raise")
silent = handler(divide="ignore", invalid="ignore")
_at_large = handler(over="ignore", invalid="ignore")


def calm() -> Callable[..., Any]:
    """What calls a function where results may overflow unheard, as often as need be; ``np.errstate`` costs more each time.

    >>> calm()(np.exp, np.array([800.0]))
    array([inf])
    """
    context = copy_context()  # which the handling of errors belongs to
    context.run(np.seterr, over="ignore")
    return context.run


def require_finite(x: Any) -> None:
    """Nothing, or an error where a number is not finite.

    >>> require_finite(np.array([1.0, np.inf]))
    Traceback (most recent call last):
    FloatingPointError: a result is not finite
    """
    if not np.isfinite(np.add.reduce(x, None)):  # nor is a sum of such numbers
        raise FloatingPointError("a result is not finite")


def widened(x: Array, room: int) -> Array:
    """Integers as 64-bit ones, to or from which up to ``room`` may be added with the same results; an error where it may not.

    >>> widened(np.array([-100, 100], np.int8), 1)
    array([-100,  100])
    >>> widened(np.array([-100, 100], np.int8), 100)
    Traceback (most recent call last):
    OverflowError: numbers of int8 are near its end
    """
    ends = np.iinfo(x.dtype)
    if x.size and not ends.min + room <= x.min() <= x.max() <= ends.max - room:
        raise OverflowError(f"numbers of {x.dtype} are near its end")
    return x.astype(int)


def last_write(base: Array, index: Any) -> Array:
    """Which elements of ``value`` survive ``base[index] = value``: False where a later one overwrote it."""
    last = np.zeros(np.shape(base), dtype=int)
    order = np.arange(last[index].size).reshape(last[index].shape)
    last[index] = order
    return last[index] == order


def in_slice(start: int | None, stop: int | None, size: int) -> Array:
    """Which of so many places a slice names.

    >>> in_slice(1, 3, 4)
    array([False,  True,  True, False])
    """
    places = np.zeros(size, bool)
    places[start:stop] = True
    return places


def cut(x: Array, start: int, stop: int) -> Array:
    """``x`` with zeros where a slice of its first axis does not name.

    >>> cut(np.array([1.0, 2.0, 3.0, 4.0]), 1, 3)
    array([0., 2., 3., 0.])
    """
    out = np.zeros(x.shape, x.dtype)
    out[start:stop] = x[start:stop]
    return out


def cut_out(x: Array, start: int, stop: int) -> Array:
    """``x`` with zeros where a slice of its first axis names.

    >>> cut_out(np.array([1.0, 2.0, 3.0, 4.0]), 1, 3)
    array([1., 0., 0., 4.])
    """
    out = x.copy()
    out[start:stop] = 0
    return out


def splice(base: Array, value: Array, start: int, stop: int) -> Array:
    """``base`` with what a slice names of ``value``, which is of the same shape, in its place.

    >>> splice(np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 6.0, 7.0, 8.0]), 1, 3)
    array([1., 6., 7., 4.])
    """
    out = base.copy()
    out[start:stop] = value[start:stop]
    return out


def center(x: Array, axis: tuple[int, ...]) -> Array:
    """A point amid ``x`` along some axes: their mean, 0 where that is not finite.

    >>> center(np.array([[1.0, 2.0], [3.0, np.inf]]), (0,))
    array([2., 0.])
    """
    mean = np.add.reduce(x, axis)
    mean = mean / (x.size // mean.size)
    return np.where(np.isfinite(mean), mean, 0)


#: What ``np.linalg`` calls once it has looked at its arguments; None where a NumPy has it no more.
KERNELS: Any = getattr(np.linalg, "_umath_linalg", None)
if not all([hasattr(KERNELS, name) for name in ("inv", "solve", "solve1", "cholesky_lo", "det", "slogdet")]):
    KERNELS = None


def _raising(message: str) -> Callable[..., Any]:
    """What calls a kernel so that it raises ``LinAlgError`` where a matrix is unfit, as ``np.linalg`` does: entering
    ``np.errstate`` each time takes longer than a small matrix does."""

    def fail(*_: Any) -> None:
        raise np.linalg.LinAlgError(message)

    def prepare() -> None:
        np.seterr(over="ignore", divide="ignore", under="ignore", invalid="call")
        np.seterrcall(fail)

    context = Context()
    context.run(prepare)
    return context.run


class _Strict(threading.local):
    """Each thread's own, for none may enter a context that another one is in."""

    def __init__(self) -> None:
        self.regular = _raising("Singular matrix")
        self.definite = _raising("Matrix is not positive definite")


_strict = _Strict()


def inv(a: Array, out: Array | None = None) -> Array:
    """``np.linalg.inv(a)`` of what is known to be matrices in double precision.

    >>> inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return _strict.regular(KERNELS.inv, a, out)


def solve(a: Array, b: Array, out: Array | None = None) -> Array:
    """``np.linalg.solve(a, b)`` of what is known to be in double precision.

    >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 1.0]))
    array([0.5 , 0.25])
    """
    if b.ndim == 1:
        return _strict.regular(KERNELS.solve1, a, b, out)
    alike = a.shape[:-2] == b.shape[:-2] and (out is None or not np.may_share_memory(b, out))
    x = _solved_by_inverse(a, b, out) if alike else None
    return _strict.regular(KERNELS.solve, a, b, out) if x is None else x


_SOLVED = {"d": 1e8, "f": 1e4}  # condition numbers, up to which a step of refinement makes up for an inverse


def _solved_by_inverse(a: Array, b: Array, out: Array | None = None) -> Array | None:
    """The solution for many right-hand sides of a small matrix by its inverse, in a quarter of LAPACK's time or less.

    Its error may be the condition number's times that of LAPACK's: one step of refinement takes that back (N. J. Higham,
    Accuracy and Stability of Numerical Algorithms, 2002, chapters 12 and 14). None where it is not worth it, or not enough.
    """
    n, m = b.shape[-2:]
    worst = _SOLVED.get(a.dtype.char, 0.0)
    if n > 16 or n * m < 1500 or m < 24 * n or not worst or a.dtype != b.dtype:
        return None
    inverse = inv(a) if KERNELS is not None and a.dtype.char == "d" else np.linalg.inv(a)
    with np.errstate(all="ignore"):
        condition = math.sqrt(_largest_square(a) * _largest_square(inverse))
        if not condition < worst:
            return None
        x = np.matmul(inverse, b, out)
        if condition > 50:
            rest = np.matmul(a, x)
            np.subtract(b, rest, rest)
            x += np.matmul(inverse, rest)
        return x if math.isfinite(np.add.reduce(x, None)) else None  # what is not would spread


def _largest_square(a: Array) -> float:
    """The square of a matrix's norm, the largest one of a stack."""
    flat = a.reshape(-1)
    return float(flat.dot(flat) if a.ndim == 2 else np.max(np.einsum("...ij,...ij->...", a, a), initial=0.0))


def lower_cholesky(a: Array, out: Array | None = None) -> Array:
    """``np.linalg.cholesky(a)`` of what is known to be matrices in double precision.

    >>> lower_cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    return _strict.definite(KERNELS.cholesky_lo, a, out)


def cholesky(a: Array, out: Array | None = None) -> Array:
    """``np.linalg.cholesky(a)`` of a real matrix; LAPACK's own where SciPy is there, in place.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    if len(a) < _BLOCK and a.dtype.char == "d" and KERNELS is not None:
        return lower_cholesky(a, out)
    potrf = _lapack("potrf", a.dtype.char)
    if potrf is None:
        factor = np.linalg.cholesky(a)
        return factor if out is None else _copied(factor, out)
    out = _copied(a, out)
    factor, info = potrf(out.T, overwrite_a=1)  # as LAPACK has it, in Fortran order
    if info > 0:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return _overwritten(out, factor.T)


def product_of(*arrays: Array) -> Callable[..., Any]:
    """What multiplies matrices and vectors as ``matmul`` does, to the bit, where some of them are these."""
    return np.dot if all([array.flags.forc for array in arrays]) else np.matmul


def add_to_diagonal(a: Array, number: Any, out: Array | None = None) -> Array:
    """``a + number * np.eye(len(a))``.

    >>> add_to_diagonal(np.ones((2, 2)), 0.5)
    array([[1.5, 1. ],
           [1. , 1.5]])
    """
    if not np.isfinite(number):  # times zero that is not zero
        return np.add(a, number * np.eye(len(a), dtype=a.dtype), out)
    number = number.copy() if isinstance(number, np.ndarray) else number  # which may lie in ``out``
    result = _copied(a, out)
    diagonal = np.einsum("ii->i", result)
    np.add(diagonal, number, diagonal)
    return result


def _copied(x: Array, out: Array | None) -> Array:
    """A copy in C order and in the machine's byte order, in ``out`` if given, which may be the array itself."""
    out = np.empty(x.shape, native(x.dtype)) if out is None else out
    if out is not x:
        np.copyto(out, x)
    return out


def _overwritten(x: Array, result: Array) -> Array:
    """A matrix that LAPACK has written its result over, unless it does not lie in memory as LAPACK has it."""
    if not np.may_share_memory(x, result):
        np.copyto(x, result)
    return x


def inverse(factor: Array, out: Array | None = None) -> Array:
    """The inverse of the positive definite matrix whose lower Cholesky factor this is; LAPACK's own where SciPy is there.

    >>> inverse(np.array([[2.0, 0.0], [1.0, 1.0]]))  # of [[4, 2], [2, 2]]
    array([[ 0.5, -0.5],
           [-0.5,  1. ]])
    """
    if len(factor) <= _SMALL and factor.dtype.char == "d" and KERNELS is not None:
        half = inv(factor)
        return np.matmul(half.T, half, out)
    lauum = _lapack("lauum", factor.dtype.char)
    if lauum is None:
        inverted, out = factor.copy(), np.empty_like(factor) if out is None else out
        _invert_triangle(inverted)
        _square_triangle(inverted, out)
        return out
    out = inverse_triangle(factor, out)
    half, _ = lauum(out.T, overwrite_c=1)
    _overwritten(out, half.T)
    for start in range(0, len(out), _BLOCK):
        stop = start + _BLOCK
        out[start:stop, stop:] = out[stop:, start:stop].T
        corner = out[start:stop, start:stop]
        np.copyto(corner, corner.T, where=_ABOVE[: len(corner), : len(corner)])
    return out


def inverse_triangle(factor: Array, out: Array | None = None) -> Array:
    """``np.linalg.inv`` of a lower Cholesky factor.

    >>> inverse_triangle(np.array([[2.0, 0.0], [1.0, 1.0]]))
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    out = _copied(factor, out)
    _invert_triangle(out)
    return out


_SMALL = 16  # rows and columns of matrices, up to which calls take most of the time
_BLOCK = 64  # rows and columns of a matrix that are in the caches both
_ABOVE = ~np.tri(_BLOCK, dtype=bool)


def _invert_triangle(lower: Array) -> None:
    """Put the inverse of a lower triangular matrix in its place, from those of its halves: products, for the most part;
    LAPACK's own solves systems instead, and takes up to twice as long."""
    n = len(lower)
    trtri, trmm = (_lapack(name, lower.dtype.char) for name in ("trtri", "trmm"))
    if n <= (_LEAF if trtri is None else _BLOCK):
        lower[...] = np.linalg.inv(lower) if trtri is None else trtri(lower.T)[0].T
        return
    first, below, second = lower[: n // 2, : n // 2], lower[n // 2 :, : n // 2], lower[n // 2 :, n // 2 :]
    _invert_triangle(first)
    _invert_triangle(second)
    if trmm is None:
        np.matmul(second, below.dot(-first), out=below)
    else:
        below[...] = trmm(1.0, second.T, trmm(-1.0, first.T, below.T), side=1, overwrite_b=1).T


def _square_triangle(lower: Array, out: Array) -> None:
    """``lower.T @ lower``, from the halves of a lower triangular matrix: a third of the work."""
    n = len(lower)
    if n <= 2 * _LEAF:
        whole = lower.copy()  # of which NumPy knows that the product is symmetric
        out[...] = whole.T.dot(whole)
        return
    k = n // 2
    below = lower[k:, :k].copy()
    _square_triangle(lower[:k, :k], out[:k, :k])
    _square_triangle(lower[k:, k:], out[k:, k:])
    out[:k, :k] += below.T.dot(below)
    np.matmul(lower[k:, k:].T, below, out=out[k:, :k])
    out[:k, k:] = out[k:, :k].T


_LEAF = 40


def solve_triangle(factor: Array, b: Array, turned: bool = False) -> Array:
    """``np.linalg.solve(factor, b)`` of a lower Cholesky factor, or of its transpose; LAPACK's own where SciPy is there.

    >>> solve_triangle(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]))
    array([1., 2.])
    """
    if b.ndim == 2 and (found := _solved_by_inverse(factor.T if turned else factor, b)) is not None:
        return found
    trtrs = _lapack("trtrs", factor.dtype.char)
    if trtrs is not None:
        x, _ = trtrs(factor.T, b, lower=0, trans=0 if turned else 1)  # as LAPACK has it, in Fortran order
        return x
    out = np.array(b)
    _solve_triangle(factor, out, turned)
    return out


def _solve_triangle(lower: Array, out: Array, turned: bool) -> None:
    n = len(lower)
    if n <= _LEAF:
        out[...] = np.linalg.solve(lower.T if turned else lower, out)
        return
    k = n // 2
    first, second = slice(None, k), slice(k, None)
    if turned:
        first, second = second, first
    _solve_triangle(lower[first, first], out[first], turned)
    between = lower[k:, :k]
    out[second] -= (between.T if turned else between).dot(out[first])
    _solve_triangle(lower[second, second], out[second], turned)


def lu(a: Array) -> Any:
    """What several systems of one matrix share: LAPACK's decomposition where SciPy is there, else the matrix itself.

    Raises ``LinAlgError`` where the matrix is singular.
    """
    getrf = _lapack("getrf", a.dtype.char)
    if getrf is None:
        return a.copy(), None  # the matrix itself may be overwritten
    factors, pivots, info = getrf(a.T)  # as LAPACK has it, in Fortran order
    if info > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return factors, pivots


def lu_solve(factors: Any, b: Array, turned: bool = False) -> Array:
    """``np.linalg.solve(a, b)``, or that of ``a.T``, given ``lu(a)``.

    >>> lu_solve(lu(np.array([[2.0, 0.0], [1.0, 1.0]])), np.array([2.0, 3.0]))
    array([1., 2.])
    """
    a, pivots = factors
    if pivots is None:
        return np.linalg.solve(a.T if turned else a, b)
    return _lapack("getrs", a.dtype.char)(a, pivots, b, trans=0 if turned else 1)[0]


def lu_inverse(factors: Any) -> Array:
    """``np.linalg.inv(a)``, given ``lu(a)``.

    >>> a = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> np.allclose(lu_inverse(lu(a)) @ a, np.eye(2))
    True
    """
    a, pivots = factors
    if pivots is None:
        return np.linalg.inv(a)
    return _lapack("getri", a.dtype.char)(a, pivots, lwork=64 * len(a))[0].T  # so much that it goes by blocks


def lu_slogdet(factors: Any) -> Any:
    """``np.linalg.slogdet(a)``, given ``lu(a)``.

    >>> sign, log = lu_slogdet(lu(np.array([[0.0, 1.0], [1.0, 0.0]])))
    >>> float(sign), float(log)
    (-1.0, 0.0)
    """
    a, pivots = factors
    if pivots is None:
        return np.linalg.slogdet(a)
    diagonal = a.diagonal()
    swaps = np.count_nonzero(pivots != np.arange(len(pivots)))
    return np.multiply.reduce(np.sign(diagonal)) * a.dtype.type((-1) ** swaps), np.add.reduce(np.log(np.abs(diagonal)))


@functools.cache
def _lapack(name: str, char: str) -> Any:
    """A routine of LAPACK's, or of BLAS's, for this dtype; None where SciPy is not there, or has none."""
    if char not in "df":
        return None
    try:
        blas, lapack = (importlib.import_module(f"scipy.linalg.{library}") for library in ("blas", "lapack"))
    except ImportError:
        return None
    name = {"d": "d", "f": "s"}[char] + name
    return getattr(blas, name, None) or getattr(lapack, name)


def compose(real: Array, imag: Array) -> Array:
    """``real + 1j * imag``, right for infinities, too.

    >>> compose(np.array([1.0, np.inf]), np.array([0.0, 2.0]))
    array([ 1.+0.j, inf+2.j])
    """
    out = np.empty(np.shape(real), np.result_type(real, imag, 1j))
    out.real, out.imag = real, imag
    return out


def unstacked(rows: Array, kind: str) -> list[Any]:
    """The rows of an array as a list: of arrays, NumPy's ``scalar`` numbers or ``python``'s, as ``kind`` says.

    >>> unstacked(np.array([1.0, 2.0]), "python")
    [1.0, 2.0]
    """
    if kind == "python":
        return rows.tolist()  # type: ignore[no-any-return]
    return [*rows] if kind == "scalar" or rows.ndim > 1 else [row[...] for row in rows[:, None]]
