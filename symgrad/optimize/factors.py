"""Scale factors in the code that runs: where they cost no pass over a large array.

Algebra has moved them outward, to where they meet. They go back in where they find an array that is smaller, a number that
they can be multiplied with, or a multiple that is there anyway.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Any

import numpy as np

from symgrad.ir import Aval, Node
from symgrad.ops.core import REGISTRY
from symgrad.optimize.lower import LOGISTIC, MANY, OVER, one_or_the_other, stepped
from symgrad.optimize.rewriting import (
    SCALING,
    Rewrite,
    Simplifier,
    axes_of,
    const,
    is_factor,
    is_moderate,
    is_op,
    rewrite,
    split,
)
from symgrad.program import Program

FACTORS: dict[Any, list[Rewrite]] = {}
rewrite(np.add, rules=FACTORS, derived=True)(one_or_the_other)
_MOVES = {REGISTRY[key] for key in (np.reshape, np.transpose, np.swapaxes, np.expand_dims)}
SEVERAL = 8  # terms of a sum, or factors of a product, that are looked at


def factors(program: Program) -> Program:
    """The same program with fewer multiplications of arrays by numbers."""
    nodes = program.nodes()
    if not any([is_large(node) or is_op(node, np.heaviside) or _scales_number(node) for node in nodes]):
        return program
    signed = any(is_op(node, np.sign) for node in nodes)  # as a logistic function's terms are, which all sums are searched for
    found = Simplifier(program, FACTORS if signed else _UNSIGNED).run()
    if signed and any(node.op is LOGISTIC for node in found.nodes()):  # what nobody needs of its argument any more is gone
        found = Simplifier(found, _UNSIGNED).run()
    return found


def is_large(node: Node) -> bool:
    return type(node.aval) is Aval and node.aval.dtype.char in "fd" and math.prod(node.aval.shape) >= MANY


def _scales_number(node: Node) -> bool:
    """Whether it is a multiple of an array times a number that is computed."""
    c, x = split(node) if node.op in SCALING else (1.0, node)
    return c != 1.0 and is_op(x, np.multiply) and bool(x.aval.shape) and any([not arg.aval.shape for arg in x.args])


def _is_small(v: Node, x: Node, times: int = 8) -> bool:
    """Whether a pass over an array is much less than one over another."""
    if type(v.aval) is not Aval or v.aval.kind != "array" or v.aval.dtype != x.aval.dtype:
        return False
    return bool(times * math.prod(v.aval.shape) <= math.prod(x.aval.shape))


@rewrite(np.true_divide, rules=FACTORS)
def divide_once(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x / v`` of a large array and a small one, or a number, as ``x * (1 / v)``: a quotient takes two products' time."""
    x, v = args
    if not is_large(node) or x.aval.shape != node.aval.shape:
        return None
    if not (_is_small(v, x) and _has_inverse(v)) and not _is_plain(const(v)):
        return None
    return s.call(np.multiply, x, s.call(np.true_divide, 1.0, v))


def _has_inverse(v: Node) -> bool:
    """Whether ``1 / v`` overflows for no ``v`` but 0: of a root, or a sum of exponentials of which the largest is 1."""
    while is_op(v, np.expand_dims):
        (v,) = v.args
    if not is_op(v, np.sum) or not is_op(v.args[0], np.exp):
        return is_op(v, np.sqrt)
    gap = v.args[0].args[0]
    if not is_op(gap, np.subtract):
        return False
    x, largest = gap.args
    while is_op(largest, np.expand_dims):
        (largest,) = largest.args
    return is_op(largest, np.max) and largest.args[0] is x and axes_of(largest) == axes_of(v)


@rewrite(np.multiply, np.true_divide, np.negative, rules=FACTORS)
def factor_into_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``c * (x * v)`` of a large array and a small one as ``x * (c * v)``; so into ``x * (d + e * p)``."""
    c, x = split(node)
    if c == 1.0 or x.aval.shape != node.aval.shape:
        return None
    return _absorbed(s, c, x) if is_large(node) else _in_a_number(s, c, x)


def _in_a_number(s: Simplifier, c: float, x: Node) -> Node | None:
    """``c * (x * v)`` of an array and a number as ``x * (c * v)``, however small the array."""
    if not is_op(x, np.multiply) or s.used.get(x, 0) > 1 or x.exact or x.aval.dtype.char != "d":
        return None
    for a, b in (x.args, x.args[::-1]):
        if not b.aval.shape and const(b) is None and a.aval.shape and b.aval.dtype == x.aval.dtype:
            return s.call(np.multiply, a, _multiple(s, c, b))
    return None


def _absorbed(s: Simplifier, c: float, x: Node) -> Node | None:
    """``c * x`` in as many passes as ``x`` alone; None where there is nothing to put the factor into."""
    if s.used.get(x, 0) > 1 or x.exact:
        return None
    if x.op in _MOVES and len(x.args) == 1 and math.prod(x.args[0].aval.shape) == math.prod(x.aval.shape):
        inner = _absorbed(s, c, x.args[0])
        return None if inner is None else s.make(x.op, (inner,), x.params, x.aval)
    own, y = split(x)
    if own != 1.0 and is_moderate(c * own, x.aval.dtype):
        return _multiple(s, c * own, y)
    if is_op(x, np.multiply):
        for a, b in (x.args, x.args[::-1]):
            if const(a) is not None:  # a multiple that has a name
                return None
            multiple = s.graph.find(REGISTRY[np.multiply], (s.graph.const(c), b), ())
            if multiple is not None and multiple.aval.shape == b.aval.shape:
                return s.call(np.multiply, a, multiple)
            if b.aval.dtype == x.aval.dtype and 8 * math.prod(b.aval.shape) <= math.prod(x.aval.shape):
                return s.call(np.multiply, a, s.call(np.multiply, c, b))
        for a, b in (x.args, x.args[::-1]):
            inner = _absorbed(s, c, b)
            if inner is not None:
                return s.call(np.multiply, a, inner)
    if (is_op(x, np.matmul) or is_op(x, np.dot)) and not x.params:
        a, b = x.args
        if _is_small(b, x, 2):
            return s.make(x.op, (a, _absorbed(s, c, b) or _multiple(s, c, b)))
        return s.make(x.op, (_absorbed(s, c, a) or _multiple(s, c, a), b)) if _is_small(a, x, 2) else None
    if is_op(x, np.true_divide) and is_factor(x.args[0], x.aval.dtype) and is_moderate(c * const(x.args[0]), x.aval.dtype):
        return s.call(np.true_divide, c * const(x.args[0]), x.args[1])
    if is_op(x, np.add):
        for d, y in (x.args, x.args[::-1]):
            e, p = split(y)
            factors = e != 1.0 and is_factor(d, x.aval.dtype)
            if factors and all([is_moderate(c * one, x.aval.dtype) for one in (const(d), e)]):
                return s.call(np.add, c * const(d), s.call(np.multiply, c * e, p))
    return None


def _is_plain(value: Any) -> bool:
    """Whether a number is far from what single precision cannot hold."""
    return isinstance(value, (int, float)) and 1e-30 < abs(value) < 1e30


@rewrite(np.add, np.subtract, rules=FACTORS)
def shared_factor(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``c * x + d * (p * q)`` where ``d / c * p`` is there as ``c * (x + (d / c * p) * q)``."""
    if not is_large(node):
        return None
    (c, x), (d, y) = split(args[0]), split(args[1])
    d = -d if is_op(node, np.subtract) else d
    for (one, a), (other, b) in (((c, x), (d, y)), ((d, y), (c, x))):
        if one != 1.0 and abs(one) != abs(other) and is_op(b, np.multiply) and a.aval == b.aval == node.aval:
            for p, q in (b.args, b.args[::-1]):
                for sign in (1.0, -1.0):
                    multiple = s.graph.find(REGISTRY[np.multiply], (s.graph.const(sign * other / one), p), ())
                    if multiple is not None and multiple.aval.shape == p.aval.shape:
                        return _multiple(
                            s, one, s.call(np.add if sign > 0 else np.subtract, a, s.call(np.multiply, multiple, q))
                        )
    return None


@rewrite(np.add, np.subtract, rules=FACTORS)
def common_factor(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``g * a - g * b`` as ``g * (a - b)``: a product less, and what does not need ``g`` is computed before it is there.

    So for two terms of a longer sum. What the user wrote is computed as written, but for ``x + c * (x * y**2)``, where nothing
    cancels.
    """
    if not is_large(node) or any(arg.aval != node.aval for arg in args):
        return None
    left, right = (_summands(s, arg) for arg in args)
    if is_op(node, np.subtract):
        right = [(-sign, term) for sign, term in right]
    for i, (sign, one) in enumerate(left):
        for j, (other_sign, other) in enumerate(right):
            product = _with_common_factor(s, np.add if sign == other_sign else np.subtract, one, other)
            if product is not None:
                return _sum(s, [*left[:i], *left[i + 1 :], *right[:j], *right[j + 1 :], (sign, product)])
    return None


def _with_common_factor(s: Simplifier, key: Any, one: Node, other: Node) -> Node | None:
    """The sum, or difference, of two products of large arrays as one product."""
    (c, a), (d, b) = parts = _factors_of(s, one), _factors_of(s, other)
    shared = [x for x in a if x in b and x.aval == one.aval]
    rests = [[x for x in factors if x not in shared] for factors in (a, b)]
    if not shared or not any(rests) or any(len(factors) != len(set(factors)) for factors in (a, b)):
        return None
    squares = all(is_op(x, np.square) for rest in rests for x in rest)
    if s.phase is None and not (key is np.add and c > 0 and d > 0 and squares):
        return None
    for x in shared:
        s.used[x] = s.used.get(x, 0) - 1
    inner = [_product(s, number, rest) for (number, _), rest in zip(parts, rests, strict=True)]
    return s.call(np.multiply, _product(s, 1.0, shared), s.call(key, *inner))


def _summands(s: Simplifier, node: Node, alike: bool = True) -> list[tuple[float, Node]]:
    """The terms of a derivative's sum for one use, not too many, with their signs; ``alike``: of one shape and dtype."""
    found, waiting = list[tuple[float, Node]](), [(1.0, node)]
    while waiting:
        sign, x = waiting.pop()
        inner = (is_op(x, np.add) or is_op(x, np.subtract)) and s.phase is not None and not x.exact
        fits = not alike or all(arg.aval == x.aval for arg in x.args)
        if inner and fits and s.used.get(x, 0) <= 1 and len(found) + len(waiting) < SEVERAL and stepped(x)[0] is None:
            waiting += [(-sign if is_op(x, np.subtract) else sign, x.args[1]), (sign, x.args[0])]
        else:
            found.append((sign, x))
    return found


def _sum(s: Simplifier, terms: list[tuple[float, Node]]) -> Node:
    """The sum of terms with signs."""
    plus, minus = ([term for sign, term in terms if sign == wanted] for wanted in (1.0, -1.0))
    if not plus:
        return s.call(np.negative, functools.reduce(functools.partial(s.call, np.add), minus))
    return functools.reduce(
        functools.partial(s.call, np.subtract), minus, functools.reduce(functools.partial(s.call, np.add), plus)
    )


def _factors_of(s: Simplifier, node: Node) -> tuple[float, list[Node]]:
    """A number, and the arrays that a product for one use is made of, not too many."""
    number, found, waiting = 1.0, list[Node](), [node]
    while waiting:
        x = waiting.pop()
        c, rest = split(x) if s.used.get(x, 0) <= 1 else (1.0, x)
        if not is_moderate(number * c, x.aval.dtype):
            c, rest = 1.0, x
        number *= c
        inner = is_op(rest, np.multiply) and s.used.get(rest, 0) <= 1 and not rest.exact
        if inner and len(found) + len(waiting) < SEVERAL:
            waiting += rest.args[::-1]
        else:
            found.append(rest)
    return number, found


def _product(s: Simplifier, c: float, factors: list[Node]) -> Node:
    """The product of a number and arrays."""
    if not factors:
        return s.graph.const(c)
    whole = functools.reduce(functools.partial(s.call, np.multiply), factors)
    return whole if c == 1.0 else _absorbed(s, c, whole) or _multiple(s, c, whole)


def _multiple(s: Simplifier, c: float, x: Node) -> Node:
    """``c * x``, a product even where others would read a quotient better, which takes two products' time."""
    return x if c == 1.0 else s.call(np.negative, x) if c == -1.0 else s.call(np.multiply, c, x)


# -- small arrays as factors ---------------------------------------------------------------------------------------


@rewrite(np.sum, rules=FACTORS, derived=True)
def factor_of_sum(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``sum(x * v, axis)``, where ``v`` is a number or of length 1 along the axis, as ``sum(x, axis) * v``; so of ``x / v``."""
    (product,) = args
    if not is_large(product) or not set(dict(node.params)) <= {"axis", "keepdims"} or node.aval.dtype != np.float64:
        return None
    c, x = split(product)
    if c != 1.0:
        return _multiple(s, c, s.make(node.op, (x,), node.params)) if _is_small(node, product) else None
    found = _apart(s, product)
    if found is None:
        return None
    key, x, v = found
    axes, ndim = axes_of(node), len(product.aval.shape)
    aligned = (1,) * (ndim - len(v.aval.shape)) + v.aval.shape
    if any(aligned[axis] != 1 for axis in axes):
        return None
    if not dict(node.params).get("keepdims"):
        v = s.call(np.reshape, v, shape=tuple([n for axis, n in enumerate(aligned) if axis not in axes]))
    return s.call(key, s.make(node.op, (x,), node.params), v)


def _apart(s: Simplifier, product: Node, depth: int = 0) -> tuple[Any, Node, Node] | None:
    """A derivative's product, or quotient, of a large array and a small one, which may be deeper inside."""
    if depth > SEVERAL or product.phase is None or not (is_op(product, np.multiply) or is_op(product, np.true_divide)):
        return None
    both = (product.args, product.args[::-1]) if is_op(product, np.multiply) else (product.args,)
    for x, v in both:
        if x.aval == product.aval and _is_small(v, x):
            return product.op.key, x, v
    for inner, y in both:
        found = _apart(s, inner, depth + 1) if inner.aval == product.aval and s.used.get(product, 0) <= 1 else None
        if found is not None:
            s.used[inner] = s.used.get(inner, 0) - 1
            return found[0], s.call(product.op.key, found[1], y), found[2]
    return None


@rewrite(np.add, np.subtract, rules=FACTORS, derived=True)
def common_small_factor(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x * v - u * v`` of a large array and small ones as ``(x - u) * v``."""
    if not is_large(node) or not all(is_op(arg, np.multiply) for arg in args):
        return None
    for x, v in (args[0].args, args[0].args[::-1]):
        for u, other in (args[1].args, args[1].args[::-1]):
            if v is other and _is_small(v, x) and _is_small(u, x) and x.aval == node.aval:
                return s.call(np.multiply, s.call(node.op.key, x, u), v)
    return None


@rewrite(np.multiply, rules=FACTORS, derived=True)
def known_multiple(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``(x * v) * w`` of large arrays and a small one as ``x * (w * v)`` where that is there anyway."""
    if not is_large(node):
        return None
    for product, w in (args, args[::-1]):
        if is_op(product, np.multiply) and s.used.get(product, 0) <= 1:
            for x, v in (product.args, product.args[::-1]):
                multiple = s.graph.find(node.op, (w, v), ())
                if _is_small(v, x) and multiple is not None and x.aval == multiple.aval == node.aval:
                    return s.add(np.multiply, x, multiple)  # as it stands: either is a multiple of the other
    return None


@rewrite(np.true_divide, OVER, rules=FACTORS, derived=True)
def known_quotient(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x * y / v`` of large arrays as ``x / v * y`` where ``x / v`` is there anyway."""
    product, *below = args
    if is_large(node) and is_op(product, np.multiply) and s.used.get(product, 0) <= 1:
        for x, y in (product.args, product.args[::-1]):
            quotient = s.graph.find(node.op, (x, *below), ())
            if quotient is not None and quotient.aval == node.aval:
                return s.call(np.multiply, quotient, y)
    return None


# -- steps and logistic functions -------------------------------------------------------------------------------------


@rewrite(np.add, np.subtract, rules=FACTORS)
def logistic(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``heaviside(z, 0.5) - e / (e + 1) * sign(z)`` with ``e = exp(-abs(z))``, which stable cross entropy gives.

    It is the logistic function. Where ``e`` is there anyway, or ``z`` is short, ``max(e, z > 0) / (e + 1)``. They may be two
    terms of a longer sum, and both times the same.
    """
    terms = _summands(s, args[0], False)
    terms += [(-c if is_op(node, np.subtract) else c, term) for c, term in _summands(s, args[1], False)]
    parts = [(sign, *_fraction(s, term)) for sign, term in terms]
    for i, (sign, factor, above, below) in enumerate(parts):
        for step in above:
            z, times = stepped(step)
            if z is None:
                continue
            c = sign * factor * times
            minus = z.args[0] if is_op(z, np.negative) else None  # whose sign is the opposite
            for j, (other_sign, other, more, under) in enumerate(parts):
                signed = z if other_sign * other == -c else minus if other_sign * other == c else None
                found = None if signed is None else _stable_share(more, under, signed)
                alike = Counter(above) - Counter([step])
                if found is None or found[1:] != (alike, Counter(below)):
                    continue
                e = found[0]
                if is_large(z) and s.used.get(e, 0) <= 2:
                    share = s.graph.add(LOGISTIC, (s.call(np.negative, z),), (), z.aval)
                else:
                    share = s.call(np.true_divide, s.call(np.maximum, e, s.call(np.greater, z, 0.0)), s.call(np.add, e, 1.0))
                rest = [term for k, term in enumerate(terms) if k not in (i, j)]
                whole = functools.reduce(
                    functools.partial(s.call, np.true_divide), below, _product(s, 1.0, [*alike.elements(), share])
                )
                return _sum(s, [(math.copysign(1.0, c), _multiple(s, abs(c), whole)), *rest])
    return None


def _fraction(s: Simplifier, node: Node) -> tuple[float, list[Node], list[Node]]:
    """A number, and the arrays that a term for one use is the product of, and is divided by, not too many."""
    number, above, below, waiting = 1.0, list[Node](), list[Node](), [node]
    while waiting:
        x = waiting.pop()
        c, rest = split(x) if x is node or s.used.get(x, 0) <= 1 else (1.0, x)
        number *= c
        apart = (rest is node or s.used.get(rest, 0) <= 1) and not rest.exact and len(above) + len(waiting) < SEVERAL
        if apart and is_op(rest, np.multiply):
            waiting += rest.args[::-1]
        elif apart and is_op(rest, np.true_divide):
            waiting.append(rest.args[0])
            below.append(rest.args[1])
        else:
            above.append(rest)
    return number, above, below


_UNSIGNED = {op: [rule for rule in rules if rule is not logistic] for op, rules in FACTORS.items()}


def _stable_share(above: list[Node], below: list[Node], z: Node) -> tuple[Node, Counter[Node], Counter[Node]] | None:
    """``e`` where a term has ``e / (e + 1) * sign(z)`` in it and ``e`` is ``exp(-abs(z))``, and what else it has."""
    signs = [x for x in above if is_op(x, np.sign) and x.args[0] is z]
    for e in above if signs else ():
        inner = e.args[0] if is_op(e, np.exp) else e
        if is_op(inner, np.negative) and is_op(inner.args[0], np.abs) and inner.args[0].args[0] is z:
            for x in below:
                if is_op(x, np.add) and e in x.args and any([const(arg) == 1 for arg in x.args]):
                    return e, Counter(above) - Counter([e, signs[0]]), Counter(below) - Counter([x])
    return None
