"""What an iteration makes of a value that goes round where that is a multiple of it, and something added.

Exponential averages, discounted sums and conditional variances are of this kind: ``s = a * x[t] + (1 - a) * s``. All iterations
together then are a linear recurrence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import Aval, Node, ancestors
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import TO_NUMPY, TO_PYTHON
from symgrad.transform.terms import ADD, SUBTRACT

_MULTIPLY, _DIVIDE, _NEGATIVE = REGISTRY[np.multiply], REGISTRY[np.divide], REGISTRY[np.negative]


class Affine(NamedTuple):
    """``slope`` times a value, plus the ``rest``; Python's 0 and 1 are where nothing is computed."""

    slope: Any
    rest: Any


def affine(item: Node, end: Node, value: Callable[[Node], Any]) -> Affine | None:
    """What ``end`` is of ``item``, of the values that other nodes have; None where it is something else."""
    if item.aval.dtype.kind not in "fc":
        return None
    found = {item: Affine(1, 0)}
    for node in ancestors([end], known=[item]):
        if not any([arg in found for arg in node.args]):
            continue
        if type(node.aval) is not Aval or (node.aval.shape, node.aval.dtype) != (item.aval.shape, item.aval.dtype):
            return None
        made = _made(node, [found.get(arg) for arg in node.args], value)
        if made is None:
            return None
        found[node] = made
    return found.get(end)


def _made(node: Node, parts: list[Any], value: Callable[[Node], Any]) -> Affine | None:
    """What an operation makes of what its arguments are, of which some have no part in the item."""
    if node.op in (TO_PYTHON, TO_NUMPY):
        same: Affine = parts[0]
        return same
    if node.op is _NEGATIVE:
        return _scaled(parts[0], -1)
    if node.op in (ADD, SUBTRACT):
        a, b = (Affine(0, value(arg)) if part is None else part for arg, part in zip(node.args, parts, strict=True))
        b = b if node.op is ADD else _scaled(b, -1)
        return Affine(_plus(a.slope, b.slope), _plus(a.rest, b.rest))
    if node.op is _MULTIPLY and None in parts:
        own, other = (0, 1) if parts[1] is None else (1, 0)
        return _scaled(parts[own], value(node.args[other]))
    if node.op is _DIVIDE and parts[1] is None:
        of = value(node.args[1])
        return Affine(*[part if is_number(part, 0) else np.true_divide(part, of) for part in parts[0]])  # as NumPy divides
    return None


def _scaled(x: Affine, by: Any) -> Affine:
    return Affine(_times(x.slope, by), _times(x.rest, by))


def _plus(a: Any, b: Any) -> Any:
    if is_number(a, 0) or is_number(b, 0):
        return b if is_number(a, 0) else a
    return a + b


def _times(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is not int:
        a, b = b, a
    if is_number(b, 0) or is_number(b, 1):
        return a if b else 0
    return -a if is_number(b, -1) else a * b


def is_number(x: Any, number: int) -> bool:
    return type(x) is int and x == number
