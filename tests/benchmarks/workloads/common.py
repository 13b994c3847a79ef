"""What a workload is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Workload:
    """A function to differentiate, and its competition.

    ``make(np)`` gives the function, written against that namespace (numpy, autograd.numpy or jax.numpy), and
    ``inputs(rng, small)`` its arguments; ``hand`` is its gradient with respect to ``argnums``, written by hand to be
    fast; ``make_torch(torch)`` gives the function as one writes it there.
    """

    name: str
    make: Callable[[Any], Callable[..., Any]]
    inputs: Callable[[np.random.Generator, bool], tuple[Any, ...]]
    hand: Callable[..., Any]
    make_torch: Callable[[Any], Callable[..., Any]]
    argnums: int | tuple[int, ...] = 0
    tolerance: float = 1e-8


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
