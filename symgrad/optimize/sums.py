"""Rewrites of sums that algebra knows.

Code that subtracts a maximum before it exponentiates does not depend on that maximum; what the reverse pass writes for
it sums up to zero.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from symgrad.ir import Node
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.optimize import rewriting
from symgrad.optimize.rewriting import Rewrite, Simplifier, axes_of, const, elements_of, is_factor, is_op, split, throughout

SEVERAL = 16  # terms of a sum that are looked at together

SUMS: dict[Any, list[Rewrite]] = {}

rewrite = functools.partial(rewriting.rewrite, rules=SUMS)


def _total(node: Node, of: Node, axis: Any) -> bool:
    """Whether ``node`` is the sum of ``of`` over ``axis`` (as ``_axes`` gives it), the axis kept or not."""
    if is_op(node, np.broadcast_to) or is_op(node, np.expand_dims) or is_op(node, np.reshape):
        return _total(node.args[0], of, axis)
    return is_op(node, np.sum) and node.args[0] is of and axes_of(node) == axis and "dtype" not in dict(node.params)


def _ratio(node: Node) -> tuple[Node, Node] | None:
    """``(a, b)`` for ``a / b``."""
    return (node.args[0], node.args[1]) if is_op(node, np.true_divide) else None


@rewrite(np.sum, derived=True)
def shares_sum_to_one(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``sum(e / sum(e))`` is 1."""
    ratio = _ratio(args[0])
    if ratio is None or "dtype" in dict(node.params) or not _total(ratio[1], ratio[0], axes_of(node)):
        return None
    return throughout(s, node, 1)


@rewrite(np.sum, derived=True)
def shift_sums_to_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What reaches the shift of a softmax: ``sum(x - sum(x) / sum(e) * e)`` or ``sum((r - sum(r * e / sum(e))) * e)``."""
    (_, x), axis = split(args[0]), axes_of(node)
    if "dtype" in dict(node.params) or not (_cancels(s, x, axis) or _is_shift(x, axis)):
        return None
    return throughout(s, node, 0)


def _cancels(s: Simplifier, x: Node, axis: tuple[int, ...]) -> bool:
    """Whether the terms of a sum add up to nothing along some axes."""
    totals: dict[Any, list[float]] = {}  # of numbers (None), values, and sums of arrays: the factors that they are there with
    waiting = [(1.0, x, True)] if is_op(x, np.add) or is_op(x, np.subtract) or x.op is index.INDEX_ADD else []
    while waiting and len(waiting) + len(totals) <= SEVERAL:
        factor, term, summed = waiting.pop()
        c, term = split(term if summed else _in_other_shape(term))
        factor *= c
        if not summed:
            term = _in_other_shape(term)
            if is_op(term, np.sum) and axes_of(term) == axis and "dtype" not in dict(term.params):
                waiting.append((factor, term.args[0], True))
            else:
                number = float(const(term)) if is_factor(term, x.aval.dtype) else None
                totals.setdefault(term if number is None else None, []).append(factor if number is None else factor * number)
        elif (is_op(term, np.add) or is_op(term, np.subtract)) and all(part.aval == term.aval for part in term.args):
            waiting += [(factor, term.args[0], True), (factor if is_op(term, np.add) else -factor, term.args[1], True)]
        elif term.op is index.INDEX_ADD and writes_one_each(s, term, axis):
            waiting += [(factor, term.args[0], True), (factor, term.args[1], False)]
        elif (known := _known_sum(s, term, axis)) is not None:
            waiting.append((factor * known[0], known[1], False))
        else:
            totals.setdefault((term, "summed"), []).append(factor)
    gone = all(abs(math.fsum(parts)) <= 1e-15 * max(map(abs, parts)) for parts in totals.values())
    return gone and not waiting and bool(totals)


def _known_sum(s: Simplifier, x: Node, axis: tuple[int, ...]) -> tuple[float, Node] | None:
    """``(c, v)`` where ``c * v`` is the sum of ``x`` along some axes: of ``e / sum(e) * v``, or zeros with ``v`` in them."""
    each = tuple([1 if i in axis else n for i, n in enumerate(x.aval.shape)])
    ratio = _ratio(x)
    if ratio and _total(ratio[1], ratio[0], axis):
        return 1.0, s.graph.const(1.0)
    for share, e in (x.args, x.args[::-1]) if is_op(x, np.multiply) else ():
        c, share = split(share)
        ratio = _ratio(_in_other_shape(share))
        along = (1,) * (len(each) - len(share.aval.shape)) + share.aval.shape == each and e.aval.shape == x.aval.shape
        if ratio and along and _total(ratio[1], e, axis) and elements_of(ratio[0]) in (1, math.prod(each)):
            return c, ratio[0]
    return (1.0, x.args[0]) if x.op is index.SCATTER and writes_one_each(s, x, axis) else None


def writes_one_each(s: Simplifier, x: Node, axis: tuple[int, ...]) -> bool:
    """Whether it is zeros, or another array, with one value, or one of as many, added into each row along an axis."""
    if x.op not in (index.SCATTER, index.INDEX_ADD) or len(axis) != 1:
        return False
    if dict(x.params)["spec"] != (index.Hole(0), index.Hole(1)):
        return False
    value, *places = x.args[1:] if x.op is index.INDEX_ADD else x.args
    rows = s.graph.arrays.get(places[1 - axis[0]])
    if rows is None or not np.array_equal(rows, np.arange(x.aval.shape[1 - axis[0]])):
        return False
    return value.aval.shape in ((), rows.shape) and value.aval.dtype == x.aval.dtype


def _is_shift(x: Node, axis: Any) -> bool:
    if not is_op(x, np.multiply):
        return False
    each = tuple([1 if i in axis else n for i, n in enumerate(x.aval.shape)])
    for gap, e in (x.args, x.args[::-1]):
        if is_op(gap, np.subtract):
            r, total = gap.args
            total = _in_other_shape(total) if total.aval.shape == each else total
            if not is_op(total, np.sum) or axes_of(total) != axis or not is_op(total.args[0], np.multiply):
                continue
            for one, other in (total.args[0].args, total.args[0].args[::-1]):
                ratio = _ratio(other)
                if one is r and ratio and ratio[0] is e and _total(ratio[1], e, axis):
                    return True
    return False


@rewrite(np.add, np.subtract, derived=True)
def shift_of_shares(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What reaches the shift of a log-sum-exp, ``c - sum(c / sum(e) * e)``, is zero."""
    signs = 1.0, 1.0 if is_op(node, np.add) else -1.0
    parts = [(sign, *_split_in_other_shape(arg)) for sign, arg in zip(signs, args, strict=True)]
    for (sign, c, given), (other, factor, total) in (parts, parts[::-1]):
        if not elements_of(given) == elements_of(total) == elements_of(node) or given.aval.dtype != node.aval.dtype:
            continue
        if any(sign * c == -other * factor * share for share in _shares(total, given)):
            return throughout(s, node, 0)
    return None


def _shares(total: Node, given: Node) -> Iterator[float]:
    """``c`` where a sum is ``sum(c * given / sum(e) * e)``."""
    if not is_op(total, np.sum) or not is_op(total.args[0], np.multiply):
        return
    axis, product = axes_of(total), total.args[0]
    each = tuple([1 if i in axis else n for i, n in enumerate(product.aval.shape)])
    for share, e in (product.args, product.args[::-1]):
        c, bare = _split_in_other_shape(share)
        ratio = _ratio(bare)
        along = (1,) * (len(each) - len(share.aval.shape)) + share.aval.shape == each and e.aval.shape == product.aval.shape
        if ratio and along and _total(ratio[1], e, axis):
            factor, above = _split_in_other_shape(ratio[0])
            if above is given:
                yield c * factor


@rewrite(np.add, np.subtract, derived=True)
def shift_of_added_shares(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The same where the sum is written out: ``c - e / (e + f) * c - f / (e + f) * c``, or ``c - s * (c / s)``."""
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
    known = {total: 1.0} if total in shared else {e: factor for factor, e in _added(total)}
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


def _split_in_other_shape(x: Node) -> tuple[float, Node]:
    """``(c, x)`` of ``c * x``, whatever the shape."""
    c, x = split(_in_other_shape(x))
    return c, _in_other_shape(x)


def _in_other_shape(x: Node) -> Node:
    """What a value is made of that has the same elements in the same order."""
    while x.op in _SHAPES and elements_of(x) == elements_of(x.args[0]) and not x.exact:
        spec = dict(x.params).get("spec", ())
        if len(x.args) > 1 or not all(type(part) is int or part in (None, Ellipsis, index.EVERY) for part in spec):
            break
        if dict(x.params).get("order", "C") != "C":
            break
        x = x.args[0]
    return x


_SHAPES = (REGISTRY[np.reshape], REGISTRY[np.expand_dims], REGISTRY[np.squeeze], index.GETITEM)


@rewrite(np.sum)
def sum_of_equals(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The sum over axes along which all elements are alike is a product."""
    (x,) = args
    if not is_op(x, np.broadcast_to) or x.args[0].aval.shape or node.aval.dtype != x.args[0].aval.dtype or not elements_of(x):
        return None
    count = elements_of(x) // elements_of(node)
    inner = s.call(np.multiply, float(count), x.args[0])
    return inner if not node.aval.shape else s.call(np.broadcast_to, inner, shape=node.aval.shape)
