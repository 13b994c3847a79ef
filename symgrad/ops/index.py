"""Indexing, its transpose, and in-place writes as pure operations.

An index is split into a hashable ``spec`` (integers, slices, None, Ellipsis, and holes) and the arrays for the holes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symgrad import runtime
from symgrad.ops.core import A, Op, Sample, composite


class Slice(NamedTuple):
    """A slice; the built-in one is not hashable before Python 3.12."""

    start: int | None
    stop: int | None
    step: int | None


class Hole(NamedTuple):
    """The place of an index array: the ``number``-th of those that travel beside the spec."""

    number: int


Spec = tuple[Any, ...]


def fill(spec: Spec, arrays: Any) -> Any:
    """The index that ``spec`` and its arrays stand for, as ``x[...]`` takes it."""
    parts = [
        arrays[part.number] if type(part) is Hole else slice(*part) if type(part) is Slice else part for part in spec
    ]
    return parts[0] if len(parts) == 1 else tuple(parts)


class Indexing(Op):
    """An op whose trailing arguments are index arrays, which take no derivative."""

    def __init__(self, fun: Any, name: str, rules: tuple[Any, ...], **options: Any) -> None:
        super().__init__(fun, "linear", rules, name=name, **options)

    def differentiable(self, position: int) -> bool:
        return position < len(self.rules)


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of an array or a number."""
    return x.dtype if hasattr(x, "dtype") else np.result_type(x)  # type: ignore[no-any-return]


def _set_value(g: Any, y: Any, base: Any, value: Any, *arrays: Any, spec: Spec) -> Any:
    taken = GETITEM(g, *arrays, spec=spec)
    if any(np.ndim(array) and dtype_of(array) != bool for array in arrays):  # an element may be written twice
        return taken * LAST_WRITE(base, *arrays, spec=spec)
    return taken


GETITEM = Indexing(
    lambda x, *arrays, spec: x[fill(spec, arrays)],
    "getitem",
    (lambda g, y, x, *arrays, spec: SCATTER(g, *arrays, spec=spec, shape=np.shape(x)),),
    alias=True,
)
SCATTER = Indexing(
    lambda g, *arrays, spec, shape: runtime.scatter(g, fill(spec, arrays), shape),
    "scatter",
    (lambda g, y, value, *arrays, spec, shape: GETITEM(g, *arrays, spec=spec),),
)
SETITEM = Indexing(
    lambda base, value, *arrays, spec: runtime.setitem(base, value, fill(spec, arrays)),
    "setitem",
    (lambda g, y, base, value, *arrays, spec: SETITEM(g, 0.0, *arrays, spec=spec), _set_value),
)
INDEX_ADD = Indexing(
    lambda base, value, *arrays, spec: runtime.index_add(base, value, fill(spec, arrays)),
    "index_add",
    (
        lambda g, y, base, value, *arrays, spec: g,
        lambda g, y, base, value, *arrays, spec: GETITEM(g, *arrays, spec=spec),
    ),
)
LAST_WRITE = Op(
    lambda base, *arrays, spec: runtime.last_write(base, fill(spec, arrays)), "constant", (), name="last_write"
)


@composite(np.take, samples=[Sample(A(4), [0, 2, 2]), Sample(A(3, 4), np.array([[0, 1], [3, 3]]), axis=1)])
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    """``a[indices]`` along an axis; out-of-range indices wrap or clip by ``mode``."""
    if axis is None:
        a, axis = np.reshape(a, -1), 0
    size = np.shape(a)[axis]
    if not hasattr(indices, "dtype"):
        indices = np.asarray(indices)
    if mode == "wrap":
        indices = indices % size
    elif mode == "clip":
        indices = np.clip(indices, 0, size - 1)
    axis %= np.ndim(a)
    return a[(slice(None),) * axis + (indices,)]
