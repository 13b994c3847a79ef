"""Gradients of sums over data that lies on many machines: each chunk's where the chunk is, added up in a tree.

    import dask.array as da
    from symgrad.dask import value_and_grad

    both = value_and_grad(loss)               # loss(w, x, y): a sum over the rows of x and y
    value, gradient = both(w, X, Y)           # X and Y: dask arrays in chunks of rows

Runs wherever Dask does: on a cluster if there is a ``distributed.Client``, else in threads. Needs ``pip install
"symgrad[dask]"``.
"""

from __future__ import annotations

import functools
import linecache
import os
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from symgrad import pytree
from symgrad.api import Derivative
from symgrad.errors import not_installed
from symgrad.transform.calculus import Argnums

try:
    import cloudpickle
    import dask.array as da
    from dask.delayed import delayed
except ModuleNotFoundError as error:
    raise not_installed("symgrad.dask", '"dask[array]" distributed') from error

FAN_IN = 8  # partial sums that are added in one task


def value_and_grad(fun: Callable[..., Any], argnums: Argnums = 0, *, mode: str = "auto") -> Callable[..., Any]:
    """Value and gradient of a function that is a sum over rows of data, with the data in Dask arrays.

    Args:
        fun: a function such as ``loss(w, x, y)``, for which the loss of all rows is the sum of the losses of some.
        argnums, mode: as for ``symgrad.value_and_grad``.

    Returns:
        A function with fun's arguments, which gives ``(value, gradient)`` as plain NumPy arrays. The Dask arrays among its
        arguments are cut in chunks along their first axis, all alike; other arguments go to every chunk. Each worker compiles
        ``fun`` once. What a lost worker had is computed again, if Dask knows how it was made.

    Raises:
        ValueError: there is no Dask array, or their chunks do not match.

    >>> import dask.array as da
    >>> both = value_and_grad(lambda w, x: np.sum((x @ w) ** 2))
    >>> value, gradient = both(np.ones(2), da.arange(8.0, chunks=4).reshape(4, 2).rechunk((1, 2)))
    >>> print(value, gradient)
    276.0 [248. 304.]
    """
    payload = _packed(Derivative("value_and_grad", fun, {"argnums": argnums, "mode": mode}), fun)

    @functools.wraps(fun)
    def both(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytree.flatten((args, kwargs))
        blocks = [_rows(leaf) if isinstance(leaf, da.Array) else None for leaf in leaves]
        counts = {len(rows) for rows in blocks if rows is not None}
        if len(counts) != 1:
            raise ValueError(
                f"the Dask arrays have {sorted(counts)} chunks of rows: rechunk them alike"
                if counts
                else "there is no Dask array among the arguments: symgrad.value_and_grad does what is wanted"
            )
        code = delayed(payload, traverse=False)
        whole = [None if isinstance(leaf, da.Array) else delayed(leaf, traverse=False) for leaf in leaves]
        parts: list[Any] = []
        for i in range(counts.pop()):
            given = [other if rows is None else rows[i] for rows, other in zip(blocks, whole, strict=True)]
            parts.append(delayed(_part)(code, delayed(tree, traverse=False), *given))
        while len(parts) > 1:
            parts = [delayed(_add)(*parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return parts[0].compute()

    return both


def _rows(array: Any) -> list[Any]:
    """The chunks of an array, which must be cut along the first axis alone."""
    if any(len(sizes) > 1 for sizes in array.chunks[1:]):
        raise ValueError(f"a Dask array of shape {array.shape} is cut along other axes than the first: rechunk it")
    return list(np.ravel(array.to_delayed()))


def _part(payload: bytes, tree: pytree.TreeDef, *leaves: Any) -> Any:
    """Value and gradient of one chunk."""
    args, kwargs = tree.unflatten(leaves)
    return _unpacked(payload)(*args, **kwargs)


def _add(*parts: Any) -> Any:
    return functools.reduce(lambda a, b: pytree.map_tree(lambda x, y: x + y, a, b), parts)


def _packed(derivative: Derivative[..., Any], fun: Callable[..., Any]) -> bytes:
    """A derivative with its function, and the source of the function, which workers may not have."""
    sources: dict[str, list[str]] = {}
    if isinstance(fun, FunctionType):
        sources[fun.__code__.co_filename] = linecache.getlines(fun.__code__.co_filename, fun.__globals__)
    packed: bytes = cloudpickle.dumps((derivative, sources))
    return packed


@functools.lru_cache(maxsize=64)
def _unpacked(payload: bytes) -> Any:
    """The derivative, one in each process, so that it is compiled once."""
    derivative, sources = cloudpickle.loads(payload)
    for file, lines in sources.items():
        if lines and not os.path.exists(file) and file not in linecache.cache:
            linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    return derivative


__all__: Sequence[str] = ["value_and_grad"]
