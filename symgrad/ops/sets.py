"""Arrays as sets: which elements are chosen is constant, the elements themselves are not. Their number is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ops.core import A, Op, Sample, composite, constant, refused
from symgrad.ops.engine import SIZE
from symgrad.ops.index import array_of, take_at

_UNIQUE = Op(np.unique, "constant", (), sized=True)
_COMMON = Op(np.intersect1d, "constant", (), sized=True)
_MEMBERS = [Sample(A(4), A(3)), Sample(A(2, 3), A(3)), Sample(A(3), A(2, 2), invert=True)]

constant(np.isin, samples=_MEMBERS)
if "in1d" in vars(np):  # before NumPy 2.4
    refused("is deprecated; use np.isin", vars(np)["in1d"])


@composite(
    np.unique,
    samples=[
        Sample(A(5)),
        Sample(A(2, 3)),
        Sample(A(4), return_counts=True),
        Sample(A(4), True, True, True),
        Sample(A(3, 2), axis=0),
        Sample(A(0)),
    ],
)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct elements; of equal ones the first carries the derivative."""
    ar = array_of(ar)
    wanted = {"return_inverse": return_inverse, "return_counts": return_counts}
    options: dict[str, Any] = {name: True for name, given in wanted.items() if given}
    options |= {} if axis is None else {"axis": axis}
    options |= {} if equal_nan else {"equal_nan": False}
    _, index, *rest = _UNIQUE(ar, return_index=True, **options)
    int(SIZE(index))
    values = np.take(ar, index, axis)
    return (values, *([index] if return_index else []), *rest) if return_index or rest else values


def _array_api(key: Any, *wanted: str) -> None:
    """``np.unique_all`` and the others that have a name for each combination of results."""
    kind = type(key(np.zeros(1)))

    def fun(x: Any, /) -> Any:
        found = unique(x, **dict.fromkeys(wanted, True), equal_nan=False)
        return kind(*found) if wanted else found

    composite(key, samples=[Sample(A(1)), Sample(A(1, 1))] if not wanted else [Sample(A(4)), Sample(A(2, 3))])(fun)


_array_api(np.unique_all, "return_index", "return_inverse", "return_counts")
_array_api(np.unique_counts, "return_counts")
_array_api(np.unique_inverse, "return_inverse")
_array_api(np.unique_values)


@composite(np.union1d, samples=[Sample(A(3), A(4)), Sample(A(2, 2), A(1)), Sample(A(), 0.5)])
def union1d(ar1: Any, ar2: Any) -> Any:
    return np.unique(np.concatenate((ar1, ar2), axis=None))


@composite(
    np.intersect1d,
    samples=[Sample(A(1), A(3)), Sample(A(3), [1.0, 3.0], return_indices=True), Sample(A(2, 2), A(2))],
)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """What both have; the derivative is that of the first."""
    ar1, ar2 = np.ravel(array_of(ar1)), np.ravel(array_of(ar2))
    _, i, j = _COMMON(ar1, ar2, assume_unique=assume_unique, return_indices=True)
    int(SIZE(i))
    values = take_at(ar1, i)
    dtype = np.result_type(ar1, ar2)
    values = values if values.dtype == dtype else values.astype(dtype)
    return (values, i, j) if return_indices else values


@composite(
    np.setdiff1d,
    samples=[Sample(A(3), [2.0, 1.0]), Sample(A(2, 2), A(3)), Sample(A(4), A(2), assume_unique=True)],
)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    ar1 = np.ravel(ar1) if assume_unique else np.unique(ar1)
    return np.compress(~np.isin(ar1, ar2), ar1)


@composite(np.setxor1d, samples=[Sample(A(3), [2.0, 1.0]), Sample(A(3), A(2)), Sample(A(4), A(2), True)])
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    if assume_unique:  # of what is not so, nothing that comes again
        both = np.sort(np.concatenate((ar1, ar2), axis=None))
        changes = np.concatenate(([True], both[1:] != both[:-1], [True]))[: np.size(both) + 1]
        return both[changes[1:] & changes[:-1]]
    both = np.union1d(ar1, ar2)
    return both[np.isin(both, ar1) ^ np.isin(both, ar2)]
