"""Rewrites that move constant factors and signs outward, through everything that is homogeneous, until they meet.

``-(2 * a) * b / 128`` becomes one factor of one product. A value with a name of the user's keeps its own factor. In the user's
own code, only what changes no bit is done: ones go, and signs that cancel.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CONST, Aval, Node
from symgrad.ops import index
from symgrad.ops.engine import ASTYPE
from symgrad.optimize import rewriting
from symgrad.optimize.rewriting import (
    SCALING,
    Rewrite,
    Simplifier,
    const,
    elements_of,
    has_sign,
    is_factor,
    is_named,
    is_number,
    is_op,
    is_zero,
    join,
    split,
)

SCALES: dict[Any, list[Rewrite]] = {}

rewrite = functools.partial(rewriting.rewrite, rules=SCALES)


def opposite(node: Node) -> Node | None:
    """``x`` of ``-x``."""
    return node.args[0] if is_op(node, np.negative) and not is_named(node) and has_sign(node) else None


@rewrite(np.multiply, np.true_divide, np.power, of=(CONST,), exact=True)
def by_one(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if node.aval.dtype.kind == "c" and (s.exact or s.phase is None):
        return None  # infinity times 1 + 0j is NaN
    if is_number(b, 1.0):
        return a
    return b if is_op(node, np.multiply) and is_number(a, 1.0) else None


@rewrite(np.negative, np.add, np.subtract, np.multiply, np.true_divide, of=(np.negative,), exact=True)
def signs(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``a + -b`` is ``a - b``, and so on."""
    a, (x, *rest) = args[0], map(opposite, args)
    if not rest:
        return x
    b, (y,) = args[1], rest
    if is_op(node, np.multiply) or is_op(node, np.true_divide):
        return s.call(node.op, x, y) if x is not None and y is not None else None
    if is_op(node, np.subtract):
        return None if y is None else s.call(np.add, a, y)
    return s.call(np.subtract, a, y) if y is not None else None if x is None else s.call(np.subtract, b, x)


@rewrite(np.add, np.subtract, of=(CONST,), exact=True)
def and_nothing(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x - 0.0`` is ``x``; ``x + 0.0`` is not, of ``-0.0``."""
    nothing = 0.0 if is_op(node, np.subtract) else -0.0
    return args[0] if repr(const(args[1])) == repr(nothing) and node.aval.dtype.kind != "c" else None


@rewrite(np.negative, of=(np.subtract, *SCALING), derived=True)
def negative(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    c, x = split(args[0])
    if c != 1.0:
        return join(s, -c, x)
    if is_op(x, np.subtract) and not x.name:
        return s.call(np.subtract, x.args[1], x.args[0])
    return None


@rewrite(np.multiply, of=(CONST, *SCALING), derived=True)
def multiply(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    for x, y in ((a, b), (b, a)):
        if is_number(x, -1.0) and y.aval.dtype == node.aval.dtype:  # NumPy negates no truth values
            return s.call(np.negative, y)
    if is_factor(a, node.aval.dtype) or is_factor(b, node.aval.dtype):
        factor, rest = (a, b) if is_factor(a, node.aval.dtype) else (b, a)
        c, x = split(rest)
        return join(s, float(const(factor)) * c, x) if c != 1.0 else None
    (ca, x), (cb, y) = split(a), split(b)
    if (ca, cb) != (1.0, 1.0):
        return join(s, ca * cb, s.call(np.multiply, x, y))
    for x, y in ((a, b), (b, a)):  # (c * mask) * y = c * (y * mask)
        of_mask = (
            is_op(x, np.multiply)
            and is_factor(x.args[0], node.aval.dtype)
            and x.args[1].aval.dtype == bool
            and s.used.get(x, 0) <= 1
        )
        if of_mask and y.aval.dtype == node.aval.dtype and y.aval.dtype.kind == "f":
            return join(s, float(const(x.args[0])), s.call(np.multiply, y, x.args[1]))
    for x, y in ((a, b), (b, a)):  # (c / x) * y = c * (y / x)
        if (
            is_op(x, np.true_divide)
            and not x.name
            and is_factor(x.args[0], node.aval.dtype)
            and y.aval.dtype == node.aval.dtype
        ):
            return join(s, float(const(x.args[0])), s.call(np.true_divide, y, x.args[1]))
    return None


@rewrite(np.true_divide, of=(CONST, *SCALING), derived=True)
def divide(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_factor(b, node.aval.dtype):
        c, x = split(a)
        return join(s, c / float(const(b)), x) if c != 1.0 else None
    (ca, x), (cb, y) = split(a), split(b)
    if is_factor(a, node.aval.dtype):
        return s.call(np.true_divide, float(const(a)) / cb, y) if cb != 1.0 else None
    if node.aval.dtype.kind == "c":  # by zero it is infinite, and that times a factor is NaN
        return s.call(np.true_divide, join(s, ca / cb, x), y) if cb != 1.0 else None
    return join(s, ca / cb, s.call(np.true_divide, x, y)) if (ca, cb) != (1.0, 1.0) else None


@rewrite(np.true_divide, np.multiply, of=(np.true_divide,), derived=True)
def by_a_quotient(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``g / (a / b) / b`` as ``g / a``, and ``g / a * (a / b)`` as ``g / b``: what the logarithm of a quotient gives."""
    for x, y in (args,) if is_op(node, np.true_divide) else (args, args[::-1]):
        if not is_op(x, np.true_divide) or s.used.get(x, 0) > 1 or x.aval != node.aval:
            continue
        quotient, other = (x.args[1], y) if is_op(node, np.true_divide) else (y, x.args[1])
        if is_op(quotient, np.true_divide) and quotient.args[0 if is_op(node, np.multiply) else 1] is other:
            return s.call(np.true_divide, x.args[0], quotient.args[1 if is_op(node, np.multiply) else 0])
    return None


@rewrite(np.true_divide, of=(np.add,), derived=True)
def by_what_is_inverted(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``g / (1 + e)`` is ``g * share`` where ``share``, ``1 / (1 + e)``, is there: the slope of a logistic function."""
    a, b = args
    if not is_op(b, np.add) or const(a) is not None or is_op(a, np.broadcast_to):
        return None
    if not any(const(x) == 1 and is_op(y, np.exp) for x, y in (b.args, b.args[::-1])):  # from 1 on, nothing overflows
        return None
    share = s.graph.find(node.op, (s.graph.const(1.0), b), ())
    if share is None or share.phase is not None or share.aval.dtype != node.aval.dtype:
        return None
    return s.add(np.multiply, a, share)


def combined(s: Simplifier, a: Node, b: Node, sign: float) -> Node | None:
    """``a + sign * b`` with signs and common factors sorted out."""
    (ca, x), (cb, y) = split(a), split(b)
    cb *= sign
    if x is y:
        return join(s, ca + cb, x) if ca + cb != 0.0 and x.aval.dtype.kind != "c" else None
    if ca == 1.0 and (cb == sign or cb == 1.0):
        return None if cb == sign else s.add(np.add, x, y)
    if ca == cb:
        return join(s, ca, s.call(np.add, x, y))
    if ca == -cb:
        return join(s, ca, s.call(np.subtract, x, y)) if ca > 0 else join(s, cb, s.call(np.subtract, y, x))
    if cb < 0:
        return s.add(np.subtract, a, join(s, -cb, y)) if sign > 0 else None
    if ca < 0:
        return s.add(np.subtract, join(s, cb, y), join(s, -ca, x))
    return s.add(np.add, a, join(s, cb, y)) if sign < 0 else None


@rewrite(np.add, np.subtract, of=(np.add, np.subtract), derived=True)
def add_again(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``(a + p) + p`` as ``a + 2 * p``: what ``x * x`` gives to ``x`` where something else is there already."""
    sign = 1.0 if is_op(node, np.add) else -1.0
    for total, again in (args, args[::-1]) if sign > 0 else (args,):
        c, x = split(again)
        if x.aval.dtype.kind == "c" or not (is_op(x, np.multiply) or is_op(x, np.true_divide)):
            continue  # twice what is infinite is NaN
        if not (is_op(total, np.add) or is_op(total, np.subtract)) or is_named(total) or s.used.get(total, 0) > 1:
            continue
        second = 1.0 if is_op(total, np.add) else -1.0
        for (one, rest), (part, other) in zip((total.args, total.args[::-1]), ((1.0, second), (second, 1.0)), strict=True):
            factor, y = split(one)
            factor = factor * part + c * sign
            if y is not x or factor == 0.0 or total.exact:
                continue
            if other > 0.0:
                return s.call(np.add if factor > 0.0 else np.subtract, rest, join(s, abs(factor), x))
            return s.call(np.subtract, join(s, factor, x), rest) if factor > 0.0 else None
    return None


@rewrite(np.add, derived=True)
def add(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_number(a, 0.0):
        return b
    if is_number(b, 0.0):
        return a
    return combined(s, a, b, 1.0)


@rewrite(np.subtract, derived=True)
def subtract(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_number(b, 0.0):
        return a
    if is_number(a, 0.0) and b.aval.dtype == node.aval.dtype:
        return s.call(np.negative, b)
    return combined(s, a, b, -1.0)


@rewrite(
    np.sum, np.reshape, np.transpose, np.expand_dims, np.swapaxes, np.moveaxis, np.broadcast_to, index.GETITEM, index.SCATTER,
    of=SCALING, derived=True,
)  # fmt: skip
def pull_factor(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    c, x = split(args[0])
    exact = node.aval.dtype == np.float64 or (node.aval.dtype.kind in "fc" and abs(np.frexp(c)[0]) == 0.5)  # a power of two
    rounds = (is_op(node, np.sum) or node.op is index.SCATTER) and not exact
    if c == 1.0 or rounds or elements_of(node) > elements_of(x):
        return None
    return join(s, c, _moved(s, node, x))


def _moved(s: Simplifier, node: Node, x: Node) -> Node:
    """The same of another array: its shape is known, where it may hang on what is true in a mask."""
    aval = None if is_op(node, np.sum) else node.aval._replace(dtype=x.aval.dtype)
    return s.make(node.op, (x, *node.args[1:]), node.params, aval)


@rewrite(ASTYPE, of=SCALING, derived=True)
def pull_sign_of_conversion(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Of numbers that are converted to another precision, which other factors might not fit into."""
    sign, x = split(args[0])
    if sign != -1.0 or {x.aval.dtype.kind, node.aval.dtype.kind} != {"f"}:
        return None
    return join(s, sign, s.make(node.op, (x,), node.params, node.aval))


@rewrite(np.where, of=SCALING, derived=True)
def pull_factor_of_choices(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(m, c * x, c * y)``, and ``where(m, c * x, 0)``, as ``c`` times the choice."""
    mask, *choices = args
    parts = [split(choice) for choice in choices if not is_zero(choice)]
    factors = {c for c, _ in parts}
    if len(factors) != 1 or factors == {1.0} or any(x.aval.dtype != node.aval.dtype for _, x in parts):
        return None
    rest = [choice if is_zero(choice) else split(choice)[1] for choice in choices]
    return join(s, factors.pop(), s.call(np.where, mask, *rest))


@rewrite(np.matmul, np.outer, np.dot, of=(np.broadcast_to,), derived=True)
def product_with_one_number(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Of products with arrays of one number, which the sum of a product gives, all rows, or all columns, are the same."""
    shape = node.aval.shape
    for place, (x, y) in enumerate((args, args[::-1])):
        alike = is_op(x, np.broadcast_to) and x.aval.dtype == y.aval.dtype == node.aval.dtype
        if not alike or x.args[0].aval.shape or not shape or node.params or len(shape) > 2 or max(map(_ndim, args)) > 2:
            continue
        if is_op(node, np.outer) and _ndim(y) != 1:  # which it makes one of all elements
            continue
        if not is_op(node, np.outer):
            axis = place * (_ndim(y) - 1)
            turned = _ndim(y) == 2 and is_op(y, np.transpose)
            y = s.call(np.sum, y.args[0], axis=1 - axis) if turned else s.call(np.sum, y, axis=axis)
        if place and len(shape) == 2:
            y = s.call(np.expand_dims, y, axis=1)
        return s.call(np.broadcast_to, s.call(np.multiply, x.args[0], y), shape=shape)
    return None


def _ndim(node: Node) -> int:
    return len(node.aval.shape)


@rewrite(np.matmul, np.outer, np.dot, derived=True)
def pull_factors(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    (ca, x), (cb, y) = split(args[0]), split(args[1])
    if (ca, cb) == (1.0, 1.0) or node.aval.dtype != np.float64:
        return None
    if {abs(ca), abs(cb)} != {1.0} and elements_of(node) > (elements_of(x) if abs(ca) != 1.0 else elements_of(y)):
        return None
    return join(s, ca * cb, s.make(node.op, (x, y), node.params))


@rewrite(np.linalg.solve, of=SCALING, derived=True)
def pull_factor_of_solution(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``solve(a, c * b)`` as ``c * solve(a, b)``, which may be there."""
    c, b = split(args[1])
    if c == 1.0 or node.aval.dtype != np.float64:
        return None
    return join(s, c, s.make(node.op, (args[0], b), node.params, node.aval))


class Scaled(NamedTuple):
    """``c * x``, times the numbers ``above``, divided by those ``below``."""

    c: float
    x: Node
    above: tuple[Node, ...] = ()
    below: tuple[Node, ...] = ()


def _scaled(s: Simplifier, node: Node) -> Scaled | None:
    """An array apart from the numbers that a derivative multiplies it by for one use; None where there are none.

    In double precision: in single, products of such numbers may be too large, or too small, where no element of the array is.
    """
    c, x, above, below = 1.0, node, list[Node](), list[Node]()
    while x.phase is not None and x.aval.dtype == np.float64 and s.used.get(x, 0) <= 1:
        factor, rest = split(x)
        if rest is x:
            if not is_op(x, np.multiply) and not is_op(x, np.true_divide):
                break
            rest, number = x.args if is_op(x, np.true_divide) or not _is_runtime(x.args[0]) else x.args[::-1]
            if not _is_runtime(number) or rest.aval != x.aval or _is_coarse(number, x):
                break
            (below if is_op(x, np.true_divide) else above).append(number)
        c, x = c * factor, rest
    return Scaled(c, x, tuple(above), tuple(below)) if above or below else None


def _is_runtime(node: Node) -> bool:
    """Whether it is a number that is not known before the code runs."""
    return isinstance(node.aval, Aval) and not node.aval.shape and node.op is not CONST and node.aval.dtype.kind == "f"


def _is_coarse(number: Node, x: Node) -> bool:
    """Whether it has fewer digits than ``x``: what is made of two such had no more."""
    return number.aval.kind != "python" and bool(np.finfo(number.aval.dtype).eps > np.finfo(x.aval.dtype).eps)


def _times(s: Simplifier, x: Node, *parts: Scaled) -> Node:
    """``x`` times what is there of each part but its array."""
    above, below = [number for part in parts for number in part.above], [number for part in parts for number in part.below]
    over, under = (functools.reduce(functools.partial(s.call, np.multiply), of) if of else None for of in (above, below))
    if over is None:
        x = s.call(np.true_divide, x, under)
    else:
        x = s.call(np.multiply, x, over if under is None else s.call(np.true_divide, over, under))
    return join(s, math.prod(part.c for part in parts), x)


@rewrite(np.multiply, np.true_divide, of=SCALING, derived=True)
def numbers_of_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``(x * s) * y`` as ``(x * y) * s``, so that it meets others: ``(x * s) / t`` as ``x * (s / t)``."""
    if node.aval.kind != "array" or not node.aval.shape or any([_is_runtime(x) and _is_coarse(x, node) for x in args]):
        return None
    a, b = (_scaled(s, arg) if arg.aval == node.aval else None for arg in args)
    if a is None and b is None:
        return None
    x, y = (arg if part is None else part.x for arg, part in zip(args, (a, b), strict=True))
    a, b = a or Scaled(1.0, x), b or Scaled(1.0, y)
    if is_op(node, np.true_divide):
        b = Scaled(1.0 / b.c, y, b.below, b.above)
        if a.below and not _is_runtime(y) and node.aval.dtype.char not in "dD":
            return None  # in single precision, ``x / y`` may be out of range where ``x / norm(x) / y`` is not
        if _is_runtime(x):
            return s.call(np.true_divide, _times(s, x, b), y)
        return _times(s, x, a, Scaled(1.0, y, (), (y,))) if _is_runtime(y) else _times(s, s.call(np.true_divide, x, y), a, b)
    if _is_runtime(x) or _is_runtime(y):
        number, (whole, part) = (x, (y, b)) if _is_runtime(x) else (y, (x, a))
        return _times(s, whole, part, Scaled(1.0, whole, (number,)))
    return None if const(x) is not None or const(y) is not None else _times(s, s.call(np.multiply, x, y), a, b)


@rewrite(np.sum, np.reshape, np.transpose, np.expand_dims, np.swapaxes, np.moveaxis, index.GETITEM, of=SCALING, derived=True)
def pull_numbers(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    part = _scaled(s, args[0])
    if part is None or (is_op(node, np.sum) and node.aval.dtype != np.float64) or elements_of(node) > elements_of(part.x):
        return None
    return _times(s, _moved(s, node, part.x), part)


@rewrite(np.matmul, np.outer, np.dot, derived=True)
def pull_numbers_of_products(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    parts = [_scaled(s, arg) if elements_of(arg) >= elements_of(node) else None for arg in args]
    if parts == [None, None] or node.aval.dtype != np.float64:
        return None
    x, y = (arg if part is None else part.x for arg, part in zip(args, parts, strict=True))
    return _times(s, s.make(node.op, (x, y), node.params), *[part for part in parts if part is not None])


@rewrite(np.add, np.subtract, of=SCALING, derived=True)
def common_numbers(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x * s - y * s`` as ``(x - y) * s``."""
    if not node.aval.shape:
        return None
    a, b = (_scaled(s, arg) if arg.aval == node.aval else None for arg in args)
    if a is None or b is None or a[2:] != b[2:]:
        return None
    return _times(s, s.call(node.op, join(s, a.c, a.x), join(s, b.c, b.x)), Scaled(1.0, *a[1:]))


def common_number(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``g * a - g * b`` of numbers as ``g * (a - b)``, a product less, where nothing else needs those."""
    if not all([is_op(arg, np.multiply) and s.used.get(arg, 0) <= 1 for arg in args]):
        return None
    (a, b), (c, d) = (arg.args for arg in args)
    if any([x.aval.shape != () or x.aval.dtype.char != "d" for x in (a, b, c, d)]):
        return None
    for g, x in ((a, b), (b, a)):
        if g is c or g is d:
            return s.call(np.multiply, g, s.call(node.op, x, d if g is c else c))
    return None
