"""Rewrites of what is known throughout: a cotangent that is known to be zero stays zero, whatever it is multiplied by, and
masks that are all true or false choose nothing.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, Node
from symgrad.ops import create
from symgrad.ops.core import REGISTRY
from symgrad.optimize import rewriting
from symgrad.optimize.rewriting import BROADCAST, Rewrite, Simplifier, const, is_op, is_zero, throughout

ZEROS: dict[Any, list[Rewrite]] = {}

rewrite = functools.partial(rewriting.rewrite, rules=ZEROS)


_ZEROS = (CONST, create.ZEROS, BROADCAST)  # see ``is_zero``


@rewrite(np.multiply, np.true_divide, np.negative, of=_ZEROS, derived=True)
def zero_stays_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    zeros = args if node.op is not REGISTRY[np.true_divide] else args[:1]
    if not any(is_zero(arg) for arg in zeros):
        return None
    return throughout(s, node, 0)


@rewrite(np.logical_and, np.logical_or, of=(CONST, BROADCAST), exact=True)
def known_truth(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is true, or false, everywhere, beside a mask."""
    neutral = is_op(node, np.logical_and)
    for known, other in (args, args[::-1]):
        value = const(known.args[0] if is_op(known, np.broadcast_to) else known)
        if value is not None and bool(value) is neutral and other.aval == node.aval:
            return other
        if value is not None and bool(value) is not neutral and not node.aval.shape:
            return s.graph.const(node.aval.dtype.type(value))
    return None


@rewrite(np.any, np.all, of=(BROADCAST,), exact=True)
def known_of_all(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Whether a mask that is the same everywhere is true."""
    value = const(args[0].args[0]) if is_op(args[0], np.broadcast_to) else None
    if value is None or not math.prod(args[0].aval.shape) or len(args) > 1:
        return None
    known = s.graph.const(node.aval.dtype.type(value))
    return s.call(np.broadcast_to, known, shape=node.aval.shape) if node.aval.shape else known


@rewrite(np.where, of=(CONST, CAPTURED, BROADCAST), exact=True)
def known_choice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A choice that a constant makes, the same everywhere."""
    mask, x, y = args
    mask = mask.args[0] if is_op(mask, np.broadcast_to) else mask
    known = const(mask) if mask.op is CONST else s.graph.arrays.get(mask)
    if known is None or not np.size(known) or np.any(known) != np.all(known):
        return None
    chosen = x if np.all(known) else y
    same = chosen.aval.shape == node.aval.shape
    return chosen if same else s.call(np.broadcast_to, chosen, shape=node.aval.shape)


@rewrite(np.where, of=_ZEROS, derived=True)
def choice_of_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    if not is_zero(args[1]) or not is_zero(args[2]):
        return None
    return throughout(s, node, 0)


@rewrite(np.add, np.subtract, of=_ZEROS, derived=True)
def add_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_zero(b) and b.aval.shape and a.aval.shape == node.aval.shape:
        return a
    if is_op(node, np.add) and is_zero(a) and a.aval.shape and b.aval.shape == node.aval.shape:
        return b
    return None
