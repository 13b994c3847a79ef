"""Rewrites of sums that algebra knows.

Code that subtracts a maximum before it exponentiates does not depend on that maximum; what the reverse pass writes for
it sums up to zero.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from symgrad.ir import Node
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.optimize import cancel, rewriting
from symgrad.optimize.rewriting import Rewrite, Simplifier, axes_of, const, elements_of, is_op, split, throughout

SEVERAL = 16  # terms of a sum that are looked at together
FEW = 4  # factors among which a sum is looked for
NEAR = 8  # products that are looked through for it

SUMS: dict[Any, list[Rewrite]] = {}

rewrite = functools.partial(rewriting.rewrite, rules=SUMS)


def _total(node: Node, of: Node, axis: Any) -> bool:
    """Whether ``node`` is the sum of ``of`` over ``axis``, and lies beside it along the other axes."""
    node = node.args[0] if is_op(node, np.broadcast_to) else node
    shape = of.aval.shape
    kept = tuple([1 if i in axis else n for i, n in enumerate(shape)])
    if (1,) * (len(shape) - len(node.aval.shape)) + node.aval.shape != kept:
        return False
    while is_op(node, np.expand_dims) or is_op(node, np.reshape):
        node = node.args[0]
    return is_op(node, np.sum) and node.args[0] is of and axes_of(node) == axis and "dtype" not in dict(node.params)


def _ratio(node: Node) -> tuple[Node, Node] | None:
    """``(a, b)`` for ``a / b``."""
    return (node.args[0], node.args[1]) if is_op(node, np.true_divide) else None


@rewrite(np.sum, derived=True)
def shares_sum_to_one(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``sum(e / sum(e))`` is 1."""
    ratio = _ratio(args[0])
    if ratio is None or "dtype" in dict(node.params) or ratio[0].aval.shape != args[0].aval.shape:
        return None
    if not _total(ratio[1], ratio[0], axes_of(node)):
        return None
    return throughout(s, node, 1)


@rewrite(np.sum, derived=True)
def shift_sums_to_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What reaches the shift of a softmax: ``sum(x - sum(x) / sum(e) * e)`` or ``sum((r - sum(r * e / sum(e))) * e)``."""
    _, x = split(args[0])
    factors = [split(factor)[1] for factor in x.args] if is_op(x, np.multiply) else [x]
    if "dtype" in dict(node.params) or not any([one.op in _ADDING for one in factors]):
        return None
    return throughout(s, node, 0) if cancel.comes_to_nothing(s, x, axes_of(node)) else None


@rewrite(np.add, np.subtract, derived=True)
def shift_of_shares(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What reaches the shift of a log-sum-exp, ``c - sum(c / sum(e) * e)``, is zero."""
    total = next((total for arg in args for total in _sums_in(arg)), None)
    return throughout(s, node, 0) if total is not None and cancel.is_nothing(s, node, total) else None


def _sums_in(x: Node) -> Iterator[Node]:
    """The sum that a value is, but for factors and its shape; looked for near its end, as long chains of products are not."""
    waiting = [x]
    for _ in range(NEAR):
        if not waiting or len(waiting) >= FEW:
            return
        x = cancel.in_other_shape(split(cancel.in_other_shape(waiting.pop()))[1])
        if is_op(x, np.sum):
            yield x
        elif is_op(x, np.multiply) or is_op(x, np.true_divide):
            waiting += x.args


_ADDING = {REGISTRY[np.add], REGISTRY[np.subtract], index.INDEX_ADD}


@rewrite(np.add, np.subtract, derived=True)
def shift_of_added_shares(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The same where the sum is written out: ``c - e / (e + f) * c - f / (e + f) * c``, or ``c - s * (c / s)``."""
    if REGISTRY[np.true_divide] not in s.graph.ops:
        return None  # there are no shares
    terms = _added(node)
    if not 1 < len(terms) <= SEVERAL:
        return None
    shared: dict[Node, float] = {}
    groups, rest = set[tuple[Node, Node | None]](), list[tuple[float, Node]]()
    for c, term in terms:
        found = _share_of_added(term)
        if found is None:
            rest.append((c, term))
        else:
            factor, e, total, given = found
            shared[e] = shared.get(e, 0.0) + c * factor
            groups.add((total, given))
    if len(groups) != 1 or len(rest) != 1:
        return None
    ((total, given),), ((c, left),) = groups, rest
    number = const(left) if given is None and type(const(left)) in (int, float) else None
    if left is not given and number is None:
        return None
    known: dict[Node, float] = {}
    for factor, e in [(1.0, total)] if total in shared else _added(total):
        known[e] = known.get(e, 0.0) + factor
    each = -c * (1.0 if number is None else number)
    same = shared.keys() == known.keys() and all([shared[e] == each * factor for e, factor in known.items()])
    return throughout(s, node, 0) if same else None


def _added(node: Node) -> list[tuple[float, Node]]:
    """The terms of a sum that is written out, with their factors; where there are too many, some are sums of others."""
    found: list[tuple[float, Node]] = []
    waiting = [(1.0, node)]
    while waiting and len(found) + len(waiting) <= SEVERAL:
        c, term = waiting.pop()
        sums = is_op(term, np.add) or is_op(term, np.subtract)
        if sums and all([part.aval == term.aval or const(part) is not None for part in term.args]):
            waiting += [(c, term.args[0]), (c if is_op(term, np.add) else -c, term.args[1])]
        else:
            factor, term = split(term)
            found.append((c * factor, term))
    return found + waiting


def _share_of_added(x: Node) -> tuple[float, Node, Node, Node | None] | None:
    """``(c, e, total, v)`` of ``c * e / total * v``, where ``e`` is that total or a term of it; without ``v``, that is None."""
    times = [*zip(x.args, x.args[::-1], strict=True)] if is_op(x, np.multiply) else []
    for part, by in [(x, None), *times]:
        c, part = split(part)
        ratio = _ratio(part)
        if ratio is None:
            continue
        factor, above = split(ratio[0])
        terms = {ratio[1], *[e for _, e in _added(ratio[1])]}
        both = [*zip(above.args, above.args[::-1], strict=True)] if by is None and is_op(above, np.multiply) else []
        for e, v in [(above, by), (by, above), *both]:
            if e in terms:
                return c * factor, e, ratio[1], v
    return None


@rewrite(np.sum)
def sum_of_equals(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The sum over axes along which all elements are alike is a product."""
    (x,) = args
    if not is_op(x, np.broadcast_to) or x.args[0].aval.shape or node.aval.dtype != x.args[0].aval.dtype or not elements_of(x):
        return None
    count = elements_of(x) // elements_of(node)
    inner = s.call(np.multiply, float(count), x.args[0])
    return inner if not node.aval.shape else s.call(np.broadcast_to, inner, shape=node.aval.shape)
