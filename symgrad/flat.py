"""Structured parameters as one vector, and back: for optimisers, samplers and linear algebra, which know vectors alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import numpy as np

from symgrad import pytree
from symgrad.equal import told
from symgrad.ir import Aval, aval_of, is_inexact_leaf
from symgrad.ops.core import ASTYPE
from symgrad.ops.engine import TO_PYTHON
from symgrad.pytree import TreeDef
from symgrad.tracing.tracer import Tracer
from symgrad.watch.likeness import Alike


class Unflatten(Alike):
    """Puts a vector back into the structure that ``flatten`` took it from. It pickles."""

    def __init__(self, tree: TreeDef, leaves: Sequence[Any]) -> None:
        self.tree = tree
        self.kept = [not is_inexact_leaf(leaf) for leaf in leaves]
        self.leaves = [leaf if kept else _aval(leaf) for leaf, kept in zip(leaves, self.kept, strict=True)]
        plain = all([isinstance(leaf, (str, bytes, bool, int, NoneType)) for leaf in leaves if not is_inexact_leaf(leaf)])
        known = tuple(self.leaves)
        self.key = (tree, known, told(known)) if plain else None  # what others are the same with; None where that is no other
        self.size = sum(math.prod(leaf.shape) for leaf, kept in zip(self.leaves, self.kept, strict=True) if not kept)

    def reading(self, read: Callable[[str, int, Any], Any]) -> Unflatten:
        """The same with what is kept as it is read."""
        made = copy.copy(self)
        made.leaves = [
            read("leaves", i, leaf) if kept else leaf for i, (leaf, kept) in enumerate(zip(self.leaves, self.kept, strict=True))
        ]
        return made

    def __call__(self, vector: Any) -> Any:
        """The structure with the numbers of ``vector``, in arrays of its own.

        Raises ``ValueError`` for a vector of another length.
        """
        if np.shape(vector) != (self.size,):
            raise ValueError(f"the parameters are a vector of {self.size} numbers, not of shape {np.shape(vector)}")
        leaves, start = [], 0
        for leaf, kept in zip(self.leaves, self.kept, strict=True):
            if kept:
                leaves.append(leaf)
                continue
            end = start + math.prod(leaf.shape)
            part = vector[start:end].reshape(leaf.shape).copy() if leaf.kind == "array" else vector[start]
            start = end
            if leaf.dtype.kind == "f":
                part = np.real(part)  # of a vector that is complex for another leaf's sake
            if leaf.kind == "python":
                part = TO_PYTHON(part if part.dtype.kind == leaf.dtype.kind else ASTYPE(part, dtype=leaf.dtype))
            leaves.append(part if leaf.kind == "python" or part.dtype == leaf.dtype else ASTYPE(part, dtype=leaf.dtype))
        return self.tree.unflatten(leaves)


def flatten(params: Any) -> tuple[Any, Unflatten]:
    """One vector of all floating point numbers in a structure, and the function that puts a vector back into it.

    Args:
        params: numbers and arrays in tuples, lists, dicts, namedtuples and dataclasses, nested. Integers, strings and other
            leaves are no parameters: they are kept, and put back as they are.

    Returns:
        ``(vector, unflatten)``. The dtype is the widest of all; ``unflatten`` restores each one's. Both ways can be
        differentiated.

    >>> vector, unflatten = flatten({"w": np.ones((2, 2)), "b": 0.5, "name": "dense"})
    >>> vector
    array([1. , 1. , 1. , 1. , 0.5])
    >>> unflatten(vector * 2)
    {'w': array([[2., 2.],
           [2., 2.]]), 'b': 1.0, 'name': 'dense'}
    """
    leaves, tree = pytree.flatten(params)
    parts = [np.ravel(leaf) for leaf in leaves if is_inexact_leaf(leaf)]
    return np.concatenate(parts) if parts else np.zeros(0), Unflatten(tree, leaves)


def _aval(leaf: Any) -> Aval:
    aval: Aval = leaf.node.aval if type(leaf) is Tracer else aval_of(leaf)
    return aval
