"""Arrays made like a traced one: ``np.zeros_like(t)``, ``np.full(shape, t, like=t)``, ``np.array([...], like=t)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ops.core import Op, Traced

ZEROS = Op(np.zeros, "constant", (), name="zeros", fun=lambda shape, dtype: np.zeros(shape, dtype))
FULL = Op(
    np.full,
    "linear",
    (lambda g, y, fill_value, shape, dtype: np.sum(g),),
    name="full",
    fun=lambda fill_value, shape, dtype: np.full(shape, fill_value, dtype),
)

EYE = Op(np.eye, "constant", (), name="np.eye", fun=lambda n, dtype: np.eye(n, dtype=dtype))


def full(like: Traced, shape: Any, value: Any, dtype: Any) -> Any:
    """A traced array filled with a plain or traced number."""
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if isinstance(value, Traced) and np.ndim(value) == 0:
        return like.record(FULL, (value,), {"shape": shape, "dtype": np.dtype(dtype)})
    if np.ndim(value):
        return np.broadcast_to(value, shape).astype(dtype)
    if value == 0:
        return like.record(ZEROS, (), {"shape": shape, "dtype": np.dtype(dtype)})
    return like.record(FULL, (value,), {"shape": shape, "dtype": np.dtype(dtype)})


def array(like: Traced, value: Any, dtype: Any = None, copy: Any = True, ndmin: int = 0, **rest: Any) -> Any:
    """``np.array`` and ``np.asarray`` of plain and traced numbers, in lists too, as a traced array."""
    if isinstance(value, Traced):
        result = value.copy() if copy else value  # type: ignore[attr-defined]
    else:
        result = like.adopt(np.array(value, dtype=object if contains_traced(value) else dtype))
    if dtype is not None and result.dtype != np.dtype(dtype):
        result = result.astype(dtype)
    return np.reshape(result, (1,) * (ndmin - result.ndim) + result.shape) if result.ndim < ndmin else result


def contains_traced(value: Any) -> bool:
    """Whether there is a traced value in nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        return any(contains_traced(item) for item in value)
    if type(value) is np.ndarray and value.dtype == object:
        return any(isinstance(item, Traced) for item in value.flat)
    return isinstance(value, Traced)


def _like_one(fill: float) -> Callable[..., Any]:
    def make(like: Traced, a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Any:
        return full(like, np.shape(a) if shape is None else shape, fill, dtype or _dtype(a))

    return make


def _like_full(
    like: Traced, a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Any:
    return full(like, np.shape(a) if shape is None else shape, fill_value, dtype or _dtype(a))


def _dtype(a: Any) -> Any:
    return a.dtype if hasattr(a, "dtype") else np.result_type(a)


LIKE: dict[Any, Callable[..., Any]] = {
    np.zeros_like: _like_one(0.0),
    np.empty_like: _like_one(0.0),
    np.ones_like: _like_one(1.0),
    np.full_like: _like_full,
    np.zeros: lambda like, shape, dtype=float, order="C": full(like, shape, 0.0, dtype),
    np.empty: lambda like, shape, dtype=float, order="C": full(like, shape, 0.0, dtype),
    np.ones: lambda like, shape, dtype=float, order="C": full(like, shape, 1.0, dtype or float),
    np.full: lambda like, shape, fill_value, dtype=None, order="C": full(
        like, shape, fill_value, dtype or _dtype(fill_value)
    ),
    np.array: array,
    np.asarray: lambda like, a, dtype=None, order=None, **rest: array(like, a, dtype, copy=False),
    np.asanyarray: lambda like, a, dtype=None, order=None, **rest: array(like, a, dtype, copy=False),
}


def like(func: Any, traced: Traced, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A creation function called with ``like=traced``, or on it."""
    make = LIKE.get(func)
    if make is not None:
        return make(traced, *args, **kwargs)
    return array(traced, func(*args, **kwargs))
