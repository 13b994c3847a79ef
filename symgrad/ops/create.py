"""Arrays made like a traced one: ``np.zeros_like(t)``, ``np.full(shape, t, like=t)``, ``np.array([...], like=t)``."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ops.core import A, Op, Sample, Traced, composite
from symgrad.ops.index import array_of, dtype_of, listed

ZEROS = Op(np.zeros, "constant", (), name="zeros", fun=lambda shape, dtype: np.zeros(shape, dtype))
FULL = Op(
    np.full,
    "linear",
    (lambda g, y, fill_value, shape, dtype: np.sum(g),),
    name="full",
    lanes="moved",
    fun=lambda fill_value, shape, dtype: np.full(shape, fill_value, dtype),
)

EYE = Op(np.eye, "constant", (), name="np.eye", fun=lambda n, dtype: np.eye(n, dtype=dtype))
DIAGONAL = Op(np.diag, "linear", (lambda g, y, v: np.diagonal(g),), name="np.diag", lanes="some")  # the zeros are known


def full(like: Any, shape: Any, value: Any, dtype: Any) -> Any:
    """A traced array filled with a plain or traced number."""
    shape = tuple(map(operator.index, shape)) if isinstance(shape, (tuple, list)) else (operator.index(shape),)
    if np.dtype(dtype) == object:  # a plain array, in which traced numbers are objects as others
        made = np.empty(shape, object)
        made[...] = value
        return made
    if np.ndim(value):
        return np.broadcast_to(like.adopt(value), shape).astype(dtype)
    params = {"shape": shape, "dtype": np.dtype(dtype)}
    if not isinstance(value, Traced) and value == 0 and not np.signbit(np.real(value)):
        return like.record(ZEROS, (), params)
    return like.record(FULL, (value,), params)


def array(like: Any, value: Any, dtype: Any = None, copy: Any = True, order: Any = "K", ndmin: int = 0, **rest: Any) -> Any:
    """``np.array`` and ``np.asarray`` of plain and traced numbers, in lists too, as a traced array."""
    _take_complex(value, dtype)
    if isinstance(value, Traced):
        result = like.adopt(value)
        result = result.copy(order or "K") if copy else result
    else:
        result = like.adopt(value if contains_traced(value) else np.array(value, dtype))
        if type(value) is np.ndarray and value.dtype == object and not copy:
            result.second_name_of(value)
    if dtype is not None and result.dtype != np.dtype(dtype):
        result = result.astype(dtype)
    if order in ("C", "F") and np.ndim(result) and not result.flags[order]:
        result = result.copy(order)
    return np.reshape(result, (1,) * (ndmin - result.ndim) + result.shape) if result.ndim < ndmin else result


def _take_complex(value: Any, dtype: Any) -> None:
    """Raise what NumPy does of complex numbers of Python's, in lists too, that are to be real; its own lose a part."""
    if isinstance(value, (list, tuple)):
        for item in value:
            _take_complex(item, dtype)
    elif value.__class__ is complex:
        np.array(1j, dtype)


def from_items(like: Any, items: Any, dtype: Any, count: Any = -1, **rest: Any) -> Any:
    """``np.fromiter`` of plain and traced numbers."""
    items, count = come(items, dtype, count), operator.index(count)
    rows = not isinstance(items, Traced) or len(items.shape) != 1  # type: ignore[attr-defined]
    if np.dtype(dtype).kind not in "biufc" or not contains_traced(items):
        return array(like, np.fromiter(items, dtype, count), copy=False)
    items = items if count == -1 else items[: max(count, 0)]
    if len(items) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)} items.")
    if rows and any(map(np.ndim, items)):
        raise ValueError("setting an array element with a sequence.")
    return array(like, items, dtype)


def come(items: Any, dtype: Any = None, count: Any = -1, *, call: Any = operator.call, **rest: Any) -> Any:
    """What ``np.fromiter`` takes of an iterator, as a list; lists and arrays as they are."""
    if isinstance(items, (list, tuple, np.ndarray, Traced)):
        return items
    count = operator.index(count)
    return call(list, items if count == -1 else call(itertools.islice, items, max(count, 0)))


def scalar(value: Any, kind: type[np.generic]) -> Any:
    """``np.float64(value)`` and its kin: an array stays one, but of no dimensions is a number."""
    _take_complex(value, kind)
    made = value.astype(kind, copy=False) if isinstance(value, np.ndarray) else np.multiply(value, kind(1)).astype(kind)
    return made[()] if np.ndim(made) == 0 else made


def contains_traced(value: Any) -> bool:
    """Whether there is a traced value in nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        return any(contains_traced(item) for item in value)
    if type(value) is np.ndarray and value.dtype == object:
        return any(isinstance(item, Traced) for item in value.flat)
    return isinstance(value, Traced)


def is_of_numbers(value: Any) -> bool:
    """Whether nested lists and tuples, or an array of objects, hold numbers and arrays of them alone, some of them traced."""
    leaves: list[Any] = []
    waiting = [value] if isinstance(value, (list, tuple, np.ndarray)) else []
    while waiting:
        item = waiting.pop()
        if isinstance(item, (list, tuple)):
            waiting += item
        elif type(item) is np.ndarray and item.dtype == object:
            waiting += item.flat
        else:
            leaves.append(item)
    if not any(isinstance(leaf, Traced) for leaf in leaves):
        return False
    return all(isinstance(leaf, (Traced, int, float, complex, np.generic, np.ndarray)) for leaf in leaves)


# functions that ask each item of a list for what NumPy's protocol makes of it
_OF_SEQUENCES = frozenset(
    {
        np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.block, np.select, np.choose,
        np.lexsort, np.linalg.multi_dot, np.histogramdd, np.trim_zeros,
        getattr(np, "row_stack", np.vstack),  # until NumPy drops it
    }
)  # fmt: skip


def call(like: Any, fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A call of one of NumPy's functions: traced numbers in lists, which NumPy does not look for, are made arrays first."""
    if fun in ARRAYS and "like" not in kwargs:
        if fun in (np.arange, np.full, np.full_like):
            traced = contains_traced([*args, *kwargs.values()])
            if fun is np.full_like and args and isinstance(args[0], Traced):
                args[0].tape.asks_dtype(args[0])  # type: ignore[attr-defined]
        else:
            if fun is np.fromiter and args:
                args = (come(*args, **kwargs), *args[1:])
            traced = bool(args) and (isinstance(args[0], Traced) or is_of_numbers(args[0])) and not _wants_objects(args, kwargs)
        return LIKE[fun](like, *args, **kwargs) if traced else fun(*args, **kwargs)
    if fun in UNASKED and args and isinstance(args[0], Traced):
        return UNASKED[fun](*args, **kwargs)
    if fun is np.block or "like" in kwargs:
        return fun(*args, **kwargs)
    if fun in _OF_SEQUENCES:
        args = [_within(like, arg) for arg in args]
        kwargs = {name: _within(like, arg) for name, arg in kwargs.items()}
    elif not any([isinstance(arg, Traced) for arg in (*args, *kwargs.values())]):
        args = [_gathered(like, arg) for arg in args]
        kwargs = {name: _gathered(like, arg) for name, arg in kwargs.items()}
    else:  # NumPy may ask the list alone, not what it is read by: np.take, np.roll
        args = [_listed(like, arg) if i == 0 else arg for i, arg in enumerate(args)]
        kwargs = {name: _listed(like, arg) if name in _FIRST else arg for name, arg in kwargs.items()}
    return fun(*args, **kwargs)


_FIRST = ("a", "arr", "array", "m")  # names of that list


def _listed(like: Any, value: Any) -> Any:
    """A list of numbers as an array; arrays may be written into."""
    return value if isinstance(value, np.ndarray) else _gathered(like, value)


def _within(like: Any, value: Any) -> Any:
    """What is to be joined, with lists of numbers in it as arrays."""
    return [_gathered(like, item) for item in value] if isinstance(value, (list, tuple)) else value


def _gathered(like: Any, value: Any) -> Any:
    return array(like, value, copy=False) if isinstance(value, (list, tuple, np.ndarray)) and is_of_numbers(value) else value


def _wants_objects(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
    return dtype is not None and np.dtype(dtype) == object


def join(like: Any, maker: Any, key: Any) -> Any:
    """``np.r_[key]`` and ``np.c_[key]``, with traced values as arrays, not taken apart."""
    parts = [np.r_[part] if isinstance(part, slice) else part for part in (key if isinstance(key, tuple) else (key,))]
    if not contains_traced(parts) or isinstance(parts[0], str):  # a directive
        made = maker[key]
        return array(like, made) if is_of_numbers(made) else made
    plain = [part.value if isinstance(part, Traced) else part for part in parts]
    made = [array(like, part, copy=False) for part in parts]
    dtype = np.result_type(
        *[v if type(v) in (bool, int, float, complex) else x.dtype for v, x in zip(plain, made, strict=True)]
    )
    made = [x.astype(dtype, copy=False) for x in made]
    if maker is np.r_:
        return np.concatenate([np.atleast_1d(x) for x in made])
    return np.concatenate([np.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in made], axis=-1)


def _like_one(fill: int) -> Callable[..., Any]:
    def make(like: Any, a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, **more: Any) -> Any:
        return _like_full(like, a, fill, dtype, order, **more)

    return make


def _like_full(
    like: Any, a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **more: Any
) -> Any:
    result = full(like, np.shape(a) if shape is None else shape, fill_value, dtype or _dtype(a))
    if result.dtype == object:
        return result
    return result.laid_as(np.empty_like(a.like if isinstance(a, Traced) else a, result.dtype, order, shape=shape, **more))


def _full(like: Any, shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **rest: Any) -> Any:
    result = full(like, shape, fill_value, dtype or _dtype(fill_value))
    laid = order == "F" and result.dtype != object
    return result.laid_as(np.empty(result.shape, result.dtype, order)) if laid else result


def _dtype(a: Any) -> Any:
    if isinstance(a, (list, tuple)):
        return np.result_type(*[_dtype(item) for item in a]) if a else float
    return a.dtype if hasattr(a, "dtype") else np.result_type(a)


def _as(like: Any, a: Any, dtype: Any = None, order: Any = None, copy: Any = False, **rest: Any) -> Any:
    return array(like, a, dtype, copy, order)


def _in_order(order: str) -> Callable[..., Any]:
    return lambda like, a, dtype=None, **rest: array(like, a, dtype, False, order, ndmin=1)


def _as_finite(like: Any, a: Any, dtype: Any = None, order: Any = None) -> Any:
    result = array(like, a, dtype, False, order)
    if not np.all(np.isfinite(result)):
        raise ValueError("array must not contain infs or NaNs")
    return result


def _require(like: Any, a: Any, dtype: Any = None, requirements: Any = None, **rest: Any) -> Any:
    wanted = {need[0].upper() for need in ([requirements] if isinstance(requirements, str) else requirements or ())}
    if wanted >= {"C", "F"}:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = "C" if "C" in wanted else "F" if "F" in wanted else "K"
    result = array(like, a, dtype, False, order)
    short = any(not result.flags[need] for need in wanted & {"O", "W"})
    return result.copy(order) if short else result


LIKE: dict[Any, Callable[..., Any]] = {
    np.zeros_like: _like_one(0),
    np.empty_like: _like_one(0),
    np.ones_like: _like_one(1),
    np.full_like: _like_full,
    np.zeros: lambda like, shape, dtype=float, order="C", **rest: _full(like, shape, 0, dtype or float, order),
    np.empty: lambda like, shape, dtype=float, order="C", **rest: _full(like, shape, 0, dtype or float, order),
    np.ones: lambda like, shape, dtype=float, order="C", **rest: _full(like, shape, 1, dtype or float, order),
    np.full: _full,
    np.array: array,
    np.asarray: _as,
    np.asanyarray: _as,
    np.ascontiguousarray: _in_order("C"),
    np.asfortranarray: _in_order("F"),
    np.require: _require,
    np.asarray_chkfinite: _as_finite,
    np.fromiter: from_items,
    np.arange: lambda like, *args, **rest: _arange(like, *args, **rest),
}
ARRAYS = frozenset(
    {
        np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require, np.asarray_chkfinite,
        np.fromiter, np.full, np.full_like, np.arange,
    }
)  # fmt: skip

UNASKED: dict[Any, Callable[..., Any]] = {}  # functions with a definition for which NumPy does not ask


def _arange(like: Any, *args: Any, dtype: Any = None, device: Any = None, **ends: Any) -> Any:
    """``np.arange``; its length is looked at, its ends may be traced."""
    if len(args) == 1 and "stop" not in ends:
        ends = {"stop": args[0], **ends}
    else:
        ends = {**dict(zip(("start", "stop", "step"), args, strict=False)), **ends}
    start, stop, step = ends.get("start", 0), ends["stop"], ends.get("step", 1)
    if not contains_traced([start, stop, step]):
        return like.adopt(np.arange(start, stop, step, dtype=dtype))
    count = max(int(np.ceil((stop - start) / step)), 0)
    if dtype is None:  # which the stop tells, too
        kinds: list[Any] = [np.ones((), np.result_type(x)) for x in (start, stop, step)]
        dtype = np.arange(*kinds).dtype
    # as NumPy has it, to the last bit: by the first two numbers, as such of the dtype
    first, second = [x if np.can_cast(_dtype(x), dtype) else array(like, x, dtype, copy=False) for x in (start, start + step)]
    places = np.arange(count, dtype=None if np.dtype(dtype).itemsize == 2 else dtype)  # few of which are halves
    return array(like, first + places * (second - first), dtype, copy=False)


def like(func: Any, traced: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A creation function called with ``like=traced``, or on it."""
    make = LIKE.get(func)
    if make is not None:
        return make(traced, *args, **kwargs)
    result = func(*args, **kwargs)
    return array(traced, result, copy=False) if isinstance(result, np.ndarray) else result


# -- numbers in a row ----------------------------------------------------------------------------------------------


@composite(
    np.linspace,
    samples=[
        Sample(A(), A()),
        Sample(A(), 1.0, 5),
        Sample(A(2), A(2), num=3, axis=-1),
        Sample(A(2, 1), A(3), 4, endpoint=False),
        Sample(A(), A(), 1),
        Sample(A(), A(), 3, True, True),
    ],
)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """``num`` numbers at equal distances; from ``start`` to ``stop``, or up to one step before it."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    parts = num - 1 if endpoint else num
    start, stop = [end * 1.0 if dtype_of(end).kind in "biu" else end for end in (listed(start), listed(stop))]
    shape = np.broadcast_shapes(np.shape(start), np.shape(stop))
    real = np.finfo(np.result_type(start, stop, 1.0)).dtype
    places, delta = np.reshape(np.arange(num, dtype=real), (num,) + (1,) * len(shape)), np.subtract(stop, start) * 1.0
    step = delta / parts if parts > 0 else delta  # as NumPy has it, to the last bit
    row = places * step
    if shape and parts > 0:  # where one is tiny, for all
        row = np.where(np.any(step == 0), places / parts * delta, row)
    row = row + start
    if endpoint and num > 1:
        row = np.concatenate((row[:-1], np.broadcast_to(stop, (1, *shape)).astype(row.dtype)))
    row = row if axis == 0 else np.moveaxis(row, 0, axis)
    if dtype is not None:
        row = (np.floor(row) if np.dtype(dtype).kind in "iu" else row).astype(dtype)
    return (row, step if parts > 0 else np.nan) if retstep else row


@composite(
    np.logspace,
    samples=[
        Sample(A(), A(), 4),
        Sample(A(2), 1.0, 3, base=2.0),
        Sample(A(), A(), 3, False),
        Sample(A(), A(2), 2, base=A(2, lo=1), axis=-1),
    ],
)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """``base`` to the power of numbers at equal distances."""
    if np.ndim(base):
        start, stop, base = np.broadcast_arrays(start, stop, base)
        base = np.expand_dims(base, axis)
    row = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return row if dtype is None else row.astype(dtype)


@composite(
    np.geomspace,
    samples=[
        Sample(A(lo=0.5), A(lo=0.5), 4),
        Sample(A(2, lo=0.5), 3.0, 3, False),
        Sample(A(2, lo=0.5), A(3, 1, lo=0.5), 4, axis=-1),
    ],
    complex=False,
)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers at equal ratios from ``start`` to ``stop``."""
    start, stop = array_of(start), array_of(stop)
    if np.any(start == 0) or np.any(stop == 0):
        raise ValueError("Geometric sequence cannot include zero")
    double = np.result_type(start.dtype, stop.dtype, float)
    start, stop = [end if end.dtype == double else end.astype(double) for end in (start, stop)]
    ratio = stop / start
    row = start * np.power(ratio, np.linspace(np.zeros(np.shape(ratio)), 1.0, num, endpoint))
    row = row if axis == 0 else np.moveaxis(row, 0, axis)
    return row if dtype is None else row.astype(dtype)
