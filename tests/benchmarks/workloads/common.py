"""What a workload is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Make = Callable[[Any], Callable[..., Any]]


@dataclass(frozen=True)
class Workload:
    """A function to differentiate, and its competition.

    ``make(np)`` gives the function, written against that namespace (numpy, autograd.numpy, jax.numpy ...), and ``words``
    the same in a peer's own words, by the peer's name, where it cannot take the function as it is written.
    ``inputs(rng, n)`` gives arguments of size ``n``: ``n`` in earnest, ``tiny`` in the tests, fractions of it to see how
    time grows. ``hand`` is the derivative as an expert writes it in NumPy to be fast. ``kind`` says which derivative:
    ``"grad"`` with respect to ``argnums``, ``"hessian"``, or ``"hvp"``, whose arguments are a point and a direction.
    Calls go round ``draws`` different inputs. The peers in ``skips`` cannot do it.

    ``floor(*args)`` prepares what may be prepared, and gives a function without arguments that does the NumPy calls without
    which no NumPy program that we know of has this derivative: into buffers that are there, with nothing checked. It returns
    the derivative, where it makes all of it. Its time says how far NumPy calls can go, where that is above what one would
    wish for.
    """

    name: str
    title: str
    make: Make
    inputs: Callable[[np.random.Generator, int], tuple[Any, ...]]
    hand: Callable[..., Any]
    n: int = 1
    tiny: int = 1
    argnums: int | tuple[int, ...] = 0
    kind: str = "grad"
    tolerance: float = 1e-8
    draws: int = 1
    words: dict[str, Make] = field(default_factory=dict)
    skips: tuple[str, ...] = ()
    floor: Callable[..., Callable[[], Any]] | None = None

    def function(self, peer: str, namespace: Any) -> Callable[..., Any]:
        """The function to differentiate, as ``peer`` can take it."""
        return self.words.get(peer, self.make)(namespace)


def empty(shape: int | tuple[int, ...], dtype: Any = float) -> Any:
    """An array of any content that begins with a cache line: NumPy is up to three times as fast to write into those."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def leaves(tree: Any) -> list[Any]:
    """The arrays and numbers in nested tuples and lists, in order."""
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def disagreement(actual: Any, expected: Any) -> float:
    """The largest difference in any leaf, relative to that leaf's largest entry; inf where the structure differs."""
    actual, expected = leaves(actual), leaves(expected)
    if [np.shape(leaf) for leaf in actual] != [np.shape(leaf) for leaf in expected]:
        return float("inf")
    return max(
        float(np.max(np.abs(a - e)) / max(np.max(np.abs(e)), np.finfo(float).tiny))
        for a, e in zip(map(np.asarray, actual), map(np.asarray, expected), strict=True)
    )
