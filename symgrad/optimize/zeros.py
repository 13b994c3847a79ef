"""Rewrites of what is known throughout: a cotangent that is known to be zero stays zero, whatever it is multiplied by, and
masks that are all true or false choose nothing.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, Node
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY
from symgrad.optimize import rewriting
from symgrad.optimize.rewriting import BROADCAST, Rewrite, Simplifier, axes_of, const, filling, is_op, is_zero, throughout
from symgrad.optimize.scalars import CHOICE

ZEROS: dict[Any, list[Rewrite]] = {}

rewrite = functools.partial(rewriting.rewrite, rules=ZEROS)


_ZEROS = (CONST, create.ZEROS, BROADCAST)  # see ``is_zero``
_FILLED = (*_ZEROS, create.FULL)


@rewrite(np.multiply, np.true_divide, np.negative, of=_ZEROS, derived=True)
def zero_stays_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    zeros = args if node.op is not REGISTRY[np.true_divide] else args[:1]
    if not any(is_zero(arg) for arg in zeros):
        return None
    return throughout(s, node, 0)


@rewrite(np.logical_and, np.logical_or, of=_FILLED, exact=True)
def known_truth(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is true, or false, everywhere, beside a mask."""
    neutral = is_op(node, np.logical_and)
    for known, other in (args, args[::-1]):
        value = filling(known)
        if value is not None and bool(value) is neutral and other.aval.dtype == node.aval.dtype:
            same = other.aval.shape == node.aval.shape
            return other if same else s.call(np.broadcast_to, other, shape=node.aval.shape)
        if value is not None and bool(value) is not neutral:
            return throughout(s, node, value)
    return None


@rewrite(np.logical_and, np.logical_or, exact=True)
def one_mask(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A mask and itself."""
    return args[0] if args[0] is args[1] and args[0].aval == node.aval else None


@rewrite(index.GETITEM, of=_FILLED, derived=True)
def known_part(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A part of what is one number throughout."""
    value = filling(args[0])
    return None if value is None else throughout(s, node, value)


@rewrite(np.any, np.all, of=(BROADCAST,), exact=True)
def known_of_all(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Whether a mask that is the same everywhere is true, or the same along the axes in question."""
    if not is_op(args[0], np.broadcast_to) or not math.prod(args[0].aval.shape) or len(args) > 1:
        return None
    (x,), shape, axes = args[0].args, args[0].aval.shape, axes_of(node)
    value = const(x)
    if value is None:
        kept = [n for i, n in enumerate(shape) if i not in axes]
        one = (1,) * (len(shape) - len(x.aval.shape)) + x.aval.shape
        same = x.aval.dtype == bool and all([n == 1 if i in axes else n == shape[i] for i, n in enumerate(one)])
        return s.call(np.reshape, x, shape=node.aval.shape) if same and kept else None
    known = s.graph.const(node.aval.dtype.type(value))
    return s.call(np.broadcast_to, known, shape=node.aval.shape) if node.aval.shape else known


@rewrite(np.where, CHOICE, of=(CONST, CAPTURED, BROADCAST), exact=True)
def known_choice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A choice that a constant makes, the same everywhere."""
    mask, x, y = args
    mask = mask.args[0] if is_op(mask, np.broadcast_to) else mask
    known = const(mask) if mask.op is CONST else s.graph.arrays.get(mask)
    if known is None or not np.size(known) or np.any(known) != np.all(known):
        return None
    chosen = x if np.all(known) else y
    if node.op is CHOICE:
        return chosen if chosen.aval == node.aval else None
    same = chosen.aval.shape == node.aval.shape
    return chosen if same else s.call(np.broadcast_to, chosen, shape=node.aval.shape)


@rewrite(np.broadcast_to, of=(create.ZEROS,), exact=True)
def more_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    if args[0].op is not create.ZEROS:
        return None
    return s.make(create.ZEROS, (), (("dtype", node.aval.dtype), ("shape", node.aval.shape)), node.aval)


@rewrite(np.where, of=(create.ZEROS,), exact=True)
def choice_or_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A choice between a value and an array of zeros."""
    mask, *both = args
    numbers = [s.graph.const(x.aval.dtype.type(0)) if x.op is create.ZEROS else x for x in both]
    if numbers == both or all([x.op is create.ZEROS for x in both]):
        return None
    made = s.call(np.where, mask, *numbers)
    return made if made.aval == node.aval else None


@rewrite(np.where, of=(np.where,), exact=True)
def same_choice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A choice among what the same mask has chosen already."""
    mask, *both = args
    chosen = [x.args[i] if is_op(x, np.where) and x.args[0] is mask else x for i, x in enumerate(both, 1)]
    if chosen == both:
        return None
    made = s.call(np.where, mask, *chosen)
    return made if made.aval == node.aval else None


@rewrite(np.where, of=_ZEROS, derived=True)
def choice_of_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    if not is_zero(args[1]) or not is_zero(args[2]):
        return None
    return throughout(s, node, 0)


@rewrite(np.add, np.subtract, of=(np.true_divide,), derived=True)
def opposite_quotients(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``1 / n - 1 / n``, of numbers."""
    if not all([is_op(x, np.true_divide) and x.aval == node.aval for x in args]) or args[0].args[1] is not args[1].args[1]:
        return None
    a, b = (const(x.args[0]) for x in args)
    known = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return throughout(s, node, 0) if known and a == (b if is_op(node, np.subtract) else -b) else None


def _is_part(x: Node, like: Node) -> bool:
    """Whether it is something where a mask is true, and zero elsewhere, of a kind."""
    return is_op(x, np.where) and is_zero(x.args[2]) and x.aval == like.aval


@rewrite(np.add, np.subtract, of=(np.where,), derived=True)
def parts_together(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is added twice where the same mask is true, as by two names of one maximum, is added once."""
    a, b = args
    if not _is_part(b, node):
        return None
    for first, rest in [(a, None), *(zip(a.args, a.args[::-1], strict=True) if is_op(a, np.add) else ())]:
        if _is_part(first, node) and first.args[0] is b.args[0]:
            both = s.call(np.where, b.args[0], s.call(node.op, first.args[1], b.args[1]), b.args[2])
            return both if rest is None else s.call(np.add, rest, both)
    return None


@rewrite(np.add, np.subtract, of=_ZEROS, derived=True)
def add_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_zero(b) and b.aval.shape and a.aval.shape == node.aval.shape:
        return a
    if is_op(node, np.add) and is_zero(a) and a.aval.shape and b.aval.shape == node.aval.shape:
        return b
    return None
