"""What results are like before they are computed, for those operations where that can be told: a trace computes them later."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir import Sequence as Several
from symgrad.ops.core import ASTYPE, REGISTRY, Op
from symgrad.ops.engine import IDENTITY, ITEM
from symgrad.ops.index import GETITEM, INDEX_ADD, SCATTER, SETITEM, Spec, fill

SMALL = 64  # elements


def like_result(op: Op, likes: Sequence[Any], params: dict[str, Any]) -> Any:
    """Something of the type, shape, dtype and strides that the result has, given the same of the arguments.

    None where only computing it can tell; and for integers, which pick and count, and whose operations raise errors.
    """
    rule = _loop if op.like else _view if op.alias else _RULES.get(op, _elementwise if _is_elementwise(op) else _small)
    try:
        with np.errstate(all="ignore"):
            made = rule(op, *likes, **params)
    except Exception:  # of numbers that nobody has; if it is a real one, computing raises it
        return None
    return made if _is_inexact(made) else None


def _is_inexact(made: Any) -> bool:
    if isinstance(made, (tuple, list)):
        return True
    return made is not None and (made.dtype if hasattr(made, "dtype") else np.dtype(type(made))).kind in "fcb"


def stand_in(aval: Any) -> Any:
    """Something like the values that ``aval`` says."""
    if isinstance(aval, Several):
        return [stand_in(aval.element)]
    if aval.kind == "array":
        return _blank(aval.shape, aval.dtype)
    one = aval.dtype.type(1)
    return one.item() if aval.kind == "python" else one


def _is_elementwise(op: Op) -> bool:
    ufunc = isinstance(op.key, np.ufunc) and op.key.signature is None and op.key.nout == 1
    return op.family == "elementwise" or ufunc or op is ASTYPE or op is IDENTITY


def _loop(op: Op, *likes: Any, **params: Any) -> Any:
    return None if op.like is None else op.like(*likes, **params)


def _elementwise(op: Op, *likes: Any, **params: Any) -> Any:
    shapes = {like.shape for like in likes if isinstance(like, np.ndarray)}
    if not all([_lies_in_order(like) for like in likes]):
        return None  # nor does the result
    made = op.fun(*[_ones(like.ndim, like.dtype) if isinstance(like, np.ndarray) else like for like in likes], **params)
    if op.key is np.power and type(made) is float and type(likes[1]) is not int:
        return None  # a number of Python's to the power of another may be complex
    if not isinstance(made, np.ndarray):
        return type(made)(1)
    return _blank(shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes), made.dtype)


def _lies_in_order(like: Any, axes: slice = slice(None)) -> bool:
    """Whether the elements of an array, along some axes, lie in memory in their order, as they do in a new one then."""
    if not isinstance(like, np.ndarray) or like.ndim < 2:
        return True
    strides = [stride for stride, n in zip(like.strides[axes], like.shape[axes], strict=True) if stride and n > 1]
    return strides == sorted(strides, reverse=True) and min(strides, default=1) > 0


@functools.cache
def _ones(ndim: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return np.ones((1,) * ndim, dtype)


_blanks: weakref.WeakValueDictionary[Any, np.ndarray[Any, Any]] = weakref.WeakValueDictionary()


def _blank(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of which nobody looks at the elements, unless it is small: then they are ones."""
    if math.prod(shape) <= SMALL:
        return np.ones(shape, dtype)
    found = _blanks.get((shape, dtype))
    if found is None:
        found = _blanks[shape, dtype] = np.empty(shape, dtype)
    return found


def _small(op: Op, *likes: Any, **params: Any) -> Any:
    """Of NumPy's other operations and conversions, what they make of numbers that are like those to come; others may warn."""
    known = (getattr(op.key, "__module__", None) or "numpy").startswith(("numpy", "symgrad.ops.engine"))
    return op.fun(*likes, **params) if known and not op.sized and all([np.size(like) <= SMALL for like in likes]) else None


def _view(op: Op, *likes: Any, **params: Any) -> Any:
    picked = op is GETITEM and all([np.result_type(like).kind in "iu" for like in likes[1:]])
    return op.fun(*likes, **params) if picked or len(likes) == 1 else None


def _reduction(op: Op, a: Any, axis: Any = None, **params: Any) -> Any:
    """One element along the axes that are reduced does as well as many."""
    ndim = np.ndim(a)
    axes = range(ndim) if axis is None else [i % ndim for i in (axis if isinstance(axis, tuple) else (axis,))]
    short = [1 if i in axes else n for i, n in enumerate(np.shape(a))]
    return op.fun(np.ones(short, np.result_type(a)), axis=axis, **params) if math.prod(np.shape(a)) else None


def _product(op: Op, a: Any, b: Any) -> Any:
    stacks = slice(-2)
    if not _lies_in_order(a, stacks) or not _lies_in_order(b, stacks) or a.shape[-1] != b.shape[-min(b.ndim, 2)]:
        return None
    shape = (*np.broadcast_shapes(a.shape[stacks], b.shape[stacks]), *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ()))
    dtype = np.result_type(a, b)
    return _blank(shape, dtype) if shape else dtype.type(1)


def _scattered(op: Op, g: Any, *arrays: Any, spec: Spec, shape: tuple[int, ...]) -> Any:
    return _blank(shape, np.result_type(g))


def _written(op: Op, base: Any, value: Any, *arrays: Any, spec: Spec) -> Any:
    numbers = all([np.ndim(part) == 0 and np.result_type(part).kind in "iu" for part in arrays])  # which are known already
    if not numbers or np.result_type(base, value) != base.dtype or not _lies_in_order(base):
        return None
    np.broadcast_to(value, base[fill(spec, arrays)].shape)  # raises where it does not fit
    return _blank(base.shape, base.dtype)


def _item(op: Op, whole: Any, item: int) -> Any:
    return whole[item]


_REDUCTIONS: Any = (np.sum, np.mean, np.prod, np.max, np.min, np.any, np.all)
_RULES: dict[Any, Callable[..., Any]] = {ITEM: _item, SCATTER: _scattered, SETITEM: _written, INDEX_ADD: _written}
_RULES[REGISTRY[np.matmul]] = _product
_RULES |= {REGISTRY[key]: _reduction for key in _REDUCTIONS if isinstance(REGISTRY.get(key), Op)}
