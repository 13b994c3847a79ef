"""NumPy's functions that take functions: each call of theirs is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from symgrad.ops.core import A, Sample, composite
from symgrad.ops.index import array_of

Fun = Callable[..., Any]


@composite(
    np.apply_along_axis,
    samples=[Sample(np.cumsum, 0, A(3, 4)), Sample(np.sum, 1, A(3, 4)), Sample(np.diag, -1, A(2, 3))],
)
def apply_along_axis(func1d: Fun, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """``func1d`` of each line of ``arr`` along an axis; what it returns goes in that axis' place."""
    axis = normalize_axis_index(axis, np.ndim(arr))
    lines = np.moveaxis(arr, axis, -1)
    lead = np.shape(lines)[:-1]
    if 0 in lead:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = np.stack([func1d(lines[place], *args, **kwargs) for place in np.ndindex(lead)])
    inner = np.shape(results)[1:]
    results = np.reshape(results, lead + inner)
    return np.moveaxis(results, range(len(lead), len(lead) + len(inner)), range(axis, axis + len(inner)))


@composite(np.apply_over_axes, samples=[Sample(np.sum, A(2, 3, 4), (0, 2)), Sample(np.cumsum, A(3, 4), 1)])
def apply_over_axes(func: Fun, a: Any, axes: int | Sequence[int]) -> Any:
    """``func(a, axis)`` over each of several axes, one after the other; axes that it drops are kept as ones."""
    for axis in (axes,) if isinstance(axes, int) else axes:
        axis = axis + np.ndim(a) if axis < 0 else axis
        result = func(a, axis)
        a = result if np.ndim(result) == np.ndim(a) else np.expand_dims(result, axis)
    return a


@composite(
    np.piecewise,
    samples=[
        Sample(A(4), [A(4, kind="bool")], [np.sin, np.cos]),
        Sample(A(2, 3), [A(2, 3, kind="bool"), A(2, 3, kind="bool")], [np.exp, 0.5]),
        Sample(A(3), [np.array([True, False, True])], [np.square]),
    ],
)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """From each place, the function there of the last condition that is true; one more function for none."""
    several = isinstance(condlist, (list, tuple)) or np.ndim(condlist) > 0
    if not several or (np.ndim(x) != 0 and np.ndim(condlist[0]) == 0):
        condlist = [condlist]
    condlist = [array_of(condition) for condition in condlist]
    condlist = [condition if condition.dtype == bool else condition.astype(bool) for condition in condlist]  # else, places
    x = array_of(x) if np.ndim(x) else np.reshape(x, ())  # a number cannot be written to
    result = np.zeros_like(x)
    rest: Any = True
    for condition in condlist:
        rest = rest & ~condition
    conditions = [*condlist, rest] if len(funclist) == len(condlist) + 1 else list(condlist)
    if len(conditions) != len(funclist):
        raise ValueError(f"with {len(condlist)} condition(s), either {len(condlist)} or one more functions are expected")
    for condition, fun in zip(conditions, funclist, strict=True):
        if callable(fun):
            if np.any(condition):
                result[condition] = fun(x[condition], *args, **kw)
        else:
            result[condition] = fun
    return result
