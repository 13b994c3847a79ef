"""Algebra: a table of rewrites, which code for readers goes through, too. What a rewrite is, and may do, ``rewriting`` says."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node
from symgrad.ops import create, engine, index
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.elementwise import EXTREME
from symgrad.optimize import rewriting
from symgrad.optimize.rewriting import (
    BROADCAST,
    SCALING,
    Rewrite,
    Simplifier,
    Written,
    axes_of,
    const,
    elements_of,
    is_factor,
    is_named,
    is_number,
    is_op,
    is_zero,
    join,
    len_of,
    split,
)
from symgrad.program import Program

RULES: dict[Any, list[Rewrite]] = {}
EXPANSIONS: dict[Any, list[Rewrite]] = {}  # what no code can do without
SEVERAL = 16  # terms of a sum that are looked at together

rewrite = functools.partial(rewriting.rewrite, rules=RULES)


def simplify(program: Program) -> Program:
    """The same program, simplified."""
    return Simplifier(program, RULES).run()


# -- scale factors -------------------------------------------------------------------------------------------------
#
# Constant factors and signs move outward, through everything that is homogeneous, until they meet: -(2 * a) * b / 128
# becomes one factor of one product. A value with a name of the user's keeps its own factor. In the user's own code, only
# what changes no bit is done: ones go, and signs that cancel.


def _opposite(node: Node) -> Node | None:
    """``x`` of ``-x``."""
    return node.args[0] if is_op(node, np.negative) and not is_named(node) else None


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
    a, (x, *rest) = args[0], map(_opposite, args)
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


_ZEROS = (CONST, create.ZEROS, BROADCAST)  # see ``is_zero``


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
    if is_factor(a) or is_factor(b):
        factor, rest = (a, b) if is_factor(a) else (b, a)
        c, x = split(rest)
        return join(s, float(const(factor)) * c, x) if c != 1.0 else None
    (ca, x), (cb, y) = split(a), split(b)
    if (ca, cb) != (1.0, 1.0):
        return join(s, ca * cb, s.call(np.multiply, x, y))
    for x, y in ((a, b), (b, a)):  # (c * mask) * y = c * (y * mask)
        of_mask = is_op(x, np.multiply) and is_factor(x.args[0]) and x.args[1].aval.dtype == bool and s.used.get(x, 0) <= 1
        if of_mask and y.aval.dtype == node.aval.dtype and y.aval.dtype.kind == "f":
            return join(s, float(const(x.args[0])), s.call(np.multiply, y, x.args[1]))
    for x, y in ((a, b), (b, a)):  # (c / x) * y = c * (y / x)
        if is_op(x, np.true_divide) and not x.name and is_factor(x.args[0]) and y.aval.dtype == node.aval.dtype:
            return join(s, float(const(x.args[0])), s.call(np.true_divide, y, x.args[1]))
    return None


@rewrite(np.true_divide, of=(CONST, *SCALING), derived=True)
def divide(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_factor(b):
        c, x = split(a)
        return join(s, c / float(const(b)), x) if c != 1.0 else None
    (ca, x), (cb, y) = split(a), split(b)
    if is_factor(a):
        return s.call(np.true_divide, float(const(a)) / cb, y) if cb != 1.0 else None
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


def _combine(s: Simplifier, a: Node, b: Node, sign: float) -> Node | None:
    """``a + sign * b`` with signs and common factors sorted out."""
    (ca, x), (cb, y) = split(a), split(b)
    cb *= sign
    if x is y:
        return join(s, ca + cb, x) if ca + cb != 0.0 else None
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
        if not is_op(x, np.multiply) and not is_op(x, np.true_divide):
            continue
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
    return _combine(s, a, b, 1.0)


@rewrite(np.subtract, derived=True)
def subtract(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_number(b, 0.0):
        return a
    if is_number(a, 0.0) and b.aval.dtype == node.aval.dtype:
        return s.call(np.negative, b)
    return _combine(s, a, b, -1.0)


@rewrite(
    np.sum, np.reshape, np.transpose, np.expand_dims, np.swapaxes, np.moveaxis, np.broadcast_to, index.GETITEM, of=SCALING,
    derived=True,
)  # fmt: skip
def pull_factor(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    c, x = split(args[0])
    if c == 1.0 or (is_op(node, np.sum) and node.aval.dtype != np.float64) or elements_of(node) > elements_of(x):
        return None
    return join(s, c, s.make(node.op, (x, *args[1:]), node.params))


@rewrite(EXTREME, exact=True)
def choice_between_two(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node:
    """From here on, what Python's ``min`` and ``max`` choose is as good as what masks do."""
    return s.make(REGISTRY[np.where], args, node.params, node.aval)


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


# -- numbers that are known when the code runs -----------------------------------------------------------------------
#
# In derivatives they move outward as constants do: an array times several of them is one product, and its sum none.


class Scaled(NamedTuple):
    """``c * x``, times the numbers ``above``, divided by those ``below``."""

    c: float
    x: Node
    above: tuple[Node, ...] = ()
    below: tuple[Node, ...] = ()


def _scaled(s: Simplifier, node: Node) -> Scaled | None:
    """An array apart from the numbers that a derivative multiplies it by for one use; None where there are none."""
    c, x, above, below = 1.0, node, list[Node](), list[Node]()
    while x.phase is not None and x.aval.dtype.kind == "f" and s.used.get(x, 0) <= 1:
        factor, rest = split(x)
        if rest is x:
            if not is_op(x, np.multiply) and not is_op(x, np.true_divide):
                break
            rest, number = x.args if is_op(x, np.true_divide) or not _is_runtime(x.args[0]) else x.args[::-1]
            if not _is_runtime(number) or rest.aval != x.aval:
                break
            (below if is_op(x, np.true_divide) else above).append(number)
        c, x = c * factor, rest
    return Scaled(c, x, tuple(above), tuple(below)) if above or below else None


def _is_runtime(node: Node) -> bool:
    """Whether it is a number that is not known before the code runs."""
    return isinstance(node.aval, Aval) and not node.aval.shape and node.op is not CONST and node.aval.dtype.kind == "f"


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
    if node.aval.kind != "array" or not node.aval.shape:
        return None
    a, b = (_scaled(s, arg) if arg.aval == node.aval else None for arg in args)
    if a is None and b is None:
        return None
    x, y = (arg if part is None else part.x for arg, part in zip(args, (a, b), strict=True))
    a, b = a or Scaled(1.0, x), b or Scaled(1.0, y)
    if is_op(node, np.true_divide):
        b = Scaled(1.0 / b.c, y, b.below, b.above)
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
    return _times(s, s.make(node.op, (part.x, *args[1:]), node.params), part)


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


# -- what is there for derivatives alone -----------------------------------------------------------------------------


def _expand(*keys: Any) -> Callable[[Rewrite], Rewrite]:
    """Put a rewrite into both tables: it is no optimisation."""

    def register(rule: Rewrite) -> Rewrite:
        return rewrite(*keys, rules=EXPANSIONS, exact=True)(rewrite(*keys, exact=True)(rule))

    return register


@_expand(engine.IDENTITY, engine.STOP)
def identity(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0]


@_expand(engine.ITEM)
def result_itself(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A custom function's result is what its body computed; only derivatives care for the node behind it."""
    behind = args[0].op.behind
    return None if behind is None else args[0].args[behind + dict(node.params)["item"]]


@_expand(engine.INDEX)
def index_is_a_number(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The index of a loop that was not rolled up."""
    return s.graph.const(dict(node.params)["value"])


@rewrite(engine.AGAIN)
def after_what_is_there(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What a value is computed once more after need not be computed for that alone."""
    factor, after = split(args[1])
    return None if factor == 1.0 else s.make(node.op, (args[0], after), node.params, node.aval)


# -- patterns ------------------------------------------------------------------------------------------------------


@rewrite(index.GETITEM, index.SETITEM, index.INDEX_ADD, index.SCATTER, of=(CONST,), exact=True)
def constant_place(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """An index array that is a number is part of the index."""
    params = dict(node.params)
    count = len(node.op.rules)
    numbers = [const(arg) for arg in args[count:]]
    if not any(_is_int(number) for number in numbers):
        return None
    spec, kept = [], []
    for part in params["spec"]:
        if type(part) is index.Hole:
            number = numbers[part.number]
            if _is_int(number):
                part = int(number)
            else:
                kept.append(args[count + part.number])
                part = index.Hole(len(kept) - 1)
        spec.append(part)
    changed = tuple(sorted({**params, "spec": tuple(spec)}.items()))
    return s.make(node.op, (*args[:count], *kept), changed, node.aval)


def _is_int(number: Any) -> bool:
    return type(number) is int or isinstance(number, np.integer)


@rewrite(index.GETITEM, of=(CAPTURED,), exact=True)
def number_in_a_table(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The item of a constant, as loops over lists ask for it that are not rolled up."""
    spec = dict(node.params)["spec"]
    if len(args) > 1 or args[0].op is not CAPTURED or node.aval.kind != "scalar" or any(type(part) is not int for part in spec):
        return None
    return s.graph.const(s.graph.arrays[args[0]][spec])


@rewrite(engine.TO_PYTHON, of=(CONST,), exact=True)
def number_as_pythons(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    value = const(args[0])
    return s.graph.const(value.item()) if isinstance(value, np.generic) else None


@rewrite(engine.AND, exact=True)
def both(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    return a if const(b) is True else b if const(a) is True else None


@rewrite(engine.ASTYPE, exact=True)
def cast_to_same(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0] if args[0].aval.dtype == node.aval.dtype and args[0].aval.kind == node.aval.kind else None


@rewrite(engine.TO_PYTHON, exact=True)
def number_already(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0] if args[0].aval.kind == "python" else None


@rewrite(index.GETITEM, exact=True)
def only_newaxes_of(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[:, None]`` adds an axis, in the one way that other rewrites know."""
    spec = dict(node.params)["spec"]
    if len(args) > 1 or None not in spec or args[0].aval.kind != "array":
        return None
    rest = [part for part in spec if part is not None]
    if any(part is not Ellipsis and part != index.EVERY for part in rest):
        return None
    hidden = len(args[0].aval.shape) - sum(part is not Ellipsis for part in rest)
    axes: list[int] = []
    place = 0
    for part in spec:
        if part is None:
            axes.append(place)
        place += hidden if part is Ellipsis else 1
    return s.make(REGISTRY[np.expand_dims], args, (("axis", tuple(axes) if len(axes) > 1 else axes[0]),), node.aval)


@rewrite(index.SCATTER, index.INDEX_ADD, exact=True)
def written_throughout(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is written over all of zeros, or added to all of an array, through ``x[:, None]``, ``x[..., 0]`` or ``x[::-1]``."""
    spec = dict(node.params)["spec"]
    *base, value = args[: len(node.op.rules)]
    plain = all(part is None or part is Ellipsis or type(part) in (int, index.Slice) for part in spec)
    back = tuple([index.Slice(None, None, -1 if type(part) is index.Slice and (part.step or 1) < 0 else None) for part in spec])
    turned = any(part.step for part in back)
    if not plain or (turned and not all(type(part) is index.Slice for part in spec)):
        return None
    region = index.region(spec, node.aval.shape)
    if math.prod(region) != elements_of(node) or value.aval.dtype != node.aval.dtype or not node.aval.shape:
        return None
    if value.aval.shape != region or value.aval.kind != "array":
        value = s.call(np.broadcast_to, value, shape=region)
    if turned:
        value = s.make(index.GETITEM, (value,), (("spec", back),), node.aval)
    whole = s.make(REGISTRY[np.reshape], (value,), (("shape", node.aval.shape),), node.aval)
    return s.make(REGISTRY[np.add], (*base, whole), (), node.aval) if base else whole


@rewrite(np.add, of=(index.SCATTER, index.INDEX_ADD), derived=True)
def add_to_total(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is written into zeros and added to a loop's total is added in its place."""
    for total, part in (args, args[::-1]):
        base, writes = total, [part]
        while base.op is index.INDEX_ADD:
            base = base.args[0]
        while writes[-1].op is index.INDEX_ADD:
            writes.append(writes[-1].args[0])
        if base.op is not INPUT or writes[-1].op is not index.SCATTER or any(s.used.get(write, 0) > 1 for write in writes):
            continue
        if not node.aval.shape or any(x.aval != node.aval for x in (total, *writes)):
            continue
        for write in reversed(writes):
            values = write.args if write.op is index.SCATTER else write.args[1:]
            total = s.make(index.INDEX_ADD, (total, *values), (("spec", dict(write.params)["spec"]),), node.aval)
        return total
    return None


@rewrite(np.reshape, np.expand_dims, np.squeeze, np.transpose, np.swapaxes, index.GETITEM, exact=True)
def reshape_of_equals(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is the same everywhere has no order, and its parts are as well."""
    x = args[0].args[0] if is_op(args[0], np.broadcast_to) else args[0] if args[0].op is CONST else None
    if x is None or x.aval.shape or len(args) > 1:
        return None
    if not node.aval.shape:
        return x if x.aval == node.aval else None
    return s.make(REGISTRY[np.broadcast_to], (x,), (("shape", node.aval.shape),), node.aval)


@rewrite(np.expand_dims, exact=True)
def expand_quotient(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``(c / x)[:, None]`` as ``c / x[:, None]``, so that it meets what it is multiplied by."""
    (x,) = args
    if not is_op(x, np.true_divide) or x.name or const(x.args[0]) is None or x.args[1].aval.shape != x.aval.shape:
        return None
    below = s.make(node.op, (x.args[1],), node.params)
    return s.make(x.op, (x.args[0], below), (), node.aval) if below.aval.dtype == node.aval.dtype else None


@rewrite(np.power, exact=True)
def power_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    x, y = args
    if is_number(y, 0.0) and x.aval.dtype.kind in "fc":
        one = s.graph.const(x.aval.dtype.type(1) if x.aval.kind != "python" else 1.0)
        return s.call(np.broadcast_to, one, shape=node.aval.shape) if node.aval.shape else one
    return None


@rewrite(np.where, of=(np.equal,), derived=True)
def step(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(x == 0, g / 2, g * (x > 0))``, which maximum's rule gives, as ``g * heaviside(x, 0.5)``; likewise minimum."""
    test, half, rest = args
    if not is_op(test, np.equal):
        return None
    x, zero = test.args if is_number(test.args[1], 0.0) else test.args[::-1]
    if not is_number(zero, 0.0) or x.aval.dtype.kind != "f":
        return None
    for side, sign in ((np.greater, 1.0), (np.less, -1.0)):
        mask = s.graph.find(REGISTRY[side], (x, zero), ())
        g = masked(s, half, rest, mask)
        if g is not None:
            x = x if sign > 0 else s.call(np.negative, x)
            return s.call(np.multiply, g, s.call(np.heaviside, x, 0.5))
    return None


def masked(s: Simplifier, half: Node, product: Node, mask: Node | None) -> Node | None:
    """``g`` where ``half`` is ``g / 2`` and ``product`` is ``g * mask``, as in the derivatives of maxima and minima."""
    c, x = split(product)
    if mask is None or not is_op(x, np.multiply) or mask not in x.args:
        return None
    g = join(s, c, x.args[1] if x.args[0] is mask else x.args[0])
    if const(half) is not None:
        return g if const(g) is not None and const(half) == 0.5 * const(g) else None
    (ch, h), (cg, base) = split(half), split(g)
    return g if (ch, h) in ((0.5, g), (0.5 * cg, base)) else None


@rewrite(np.multiply, of=(np.heaviside,), derived=True)
def step_of_what_is_cut_off(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``g * heaviside(x, 0.5)`` where ``g`` is a multiple of ``maximum(x, 0)`` is ``g``; likewise ``minimum``."""
    for g, step in (args, args[::-1]):
        if not is_op(step, np.heaviside) or g.aval != node.aval or const(step.args[1]) is None:
            continue
        x = _opposite(step.args[0])
        _, product = split(g)
        factors = product.args if is_op(product, np.multiply) else (product,)
        for factor in factors:
            cut = is_op(factor, np.maximum) and step.args[0] in factor.args
            cut = cut or (x is not None and is_op(factor, np.minimum) and x in factor.args)
            if cut and any(const(arg) == 0 for arg in factor.args):
                return g
    return None


@rewrite(np.matmul, derived=True)
def times_diagonal(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """All unit vectors at once, or multiples of them, times a matrix: no sum of zeros, which are known to stay zero."""
    for x, y, left in ((args[0], args[1], True), (args[1], args[0], False)):
        if len(y.aval.shape) > 2:
            continue
        if x.op is create.EYE:
            return y
        if x.op is create.DIAGONAL:
            (v,) = x.args
            return s.call(np.multiply, s.call(np.expand_dims, v, axis=1) if left and len(y.aval.shape) == 2 else v, y)
    return None


@rewrite(np.diag, create.DIAGONAL, exact=True)
def diagonal_of_ones(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``np.diag(np.ones(n))``, which the slope of a trace is."""
    (x,) = args
    if not is_op(x, np.broadcast_to) or const(x.args[0]) != 1 or dict(node.params).get("k", 0) or len(x.aval.shape) != 1:
        return None
    return s.graph.add(create.EYE, (), (("dtype", node.aval.dtype), ("n", len_of(x))), node.aval)


@rewrite(np.sum, derived=True)
def sum_of_diagonal(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``sum(diag(v), axis=1)`` is ``v``."""
    (x,) = args
    axis = dict(node.params).get("axis")
    if x.op not in (create.EYE, create.DIAGONAL) or len(node.params) != 1 or axis not in (0, 1, -1, (0,), (1,)):
        return None
    one = s.graph.const(x.aval.dtype.type(1) if x.aval.dtype != float else 1.0)
    return x.args[0] if x.args else s.call(np.broadcast_to, one, shape=node.aval.shape)


@rewrite(np.moveaxis)
def moveaxis(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Two axes can only change places."""
    (x,) = args
    params = dict(node.params)
    if len(x.aval.shape) != 2 or not all(isinstance(axis, int) for axis in params.values()):
        return None
    return s.call(np.transpose, x) if (params["source"] - params["destination"]) % 2 else x


@rewrite(np.transpose, exact=True)
def transpose(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    (x,) = args
    if is_op(x, np.transpose) and not x.params and not node.params:
        return x.args[0]
    if x.op is create.DIAGONAL and not node.params:
        return x
    return x if len(x.aval.shape) < 2 else None


@rewrite(np.transpose, derived=True)
def turned_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``(x.T @ y).T`` as ``y.T @ x``, and ``(x @ y.T).T`` as ``y @ x.T``."""
    (product,) = args
    if not is_op(product, np.matmul) or node.params or product.params or s.used.get(product, 0) > 1 or is_named(product):
        return None
    if any(len(x.aval.shape) != 2 for x in product.args) or not any(is_op(x, np.transpose) for x in product.args):
        return None
    x, y = product.args
    return s.call(np.matmul, s.call(np.transpose, y), s.call(np.transpose, x))


@rewrite(np.reshape, np.broadcast_to, exact=True)
def same_shape(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    (x,) = args
    if "order" in dict(node.params + x.params):
        return None
    if x.aval.shape == node.aval.shape and x.aval.kind == "array":
        return x
    return s.make(node.op, x.args, node.params, node.aval) if x.op is node.op else None


@rewrite(np.sum, np.mean, np.max, np.min, np.prod)
def allaxes_of(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """An axis that names all axes need not be named."""
    params = dict(node.params)
    if params.get("axis") is None or params.get("keepdims") or node.aval.shape or not args[0].aval.shape:
        return None
    rest = tuple((name, value) for name, value in node.params if name != "axis")
    return s.make(node.op, args, rest, node.aval)


# -- zeros that algebra knows --------------------------------------------------------------------------------------
#
# Code that subtracts a maximum before it exponentiates does not depend on that maximum; what the reverse pass writes for
# it sums up to zero. A cotangent that is known to be zero stays zero, whatever it is multiplied by.


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
    one = s.graph.const(1.0 if node.aval.dtype == float else node.aval.dtype.type(1))
    return s.call(np.broadcast_to, one, shape=node.aval.shape) if node.aval.shape else one


@rewrite(np.sum, derived=True)
def shift_sums_to_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What reaches the shift of a softmax: ``sum(x - sum(x) / sum(e) * e)`` or ``sum((r - sum(r * e / sum(e))) * e)``."""
    (_, x), axis = split(args[0]), axes_of(node)
    if "dtype" in dict(node.params) or not (_cancels(s, x, axis) or _is_shift(x, axis)):
        return None
    zero = s.graph.const(0.0 if node.aval.dtype == float else node.aval.dtype.type(0))
    return s.call(np.broadcast_to, zero, shape=node.aval.shape) if node.aval.shape else zero


def _cancels(s: Simplifier, x: Node, axis: tuple[int, ...]) -> bool:
    """Whether the terms of a sum add up to nothing along some axes."""
    totals: dict[Any, list[float]] = {}  # of numbers (None), values, and sums of arrays: the factors that they are there with
    waiting = [(1.0, x, True)] if is_op(x, np.add) or is_op(x, np.subtract) else []
    while waiting and len(waiting) + len(totals) <= SEVERAL:
        factor, term, summed = waiting.pop()
        c, term = split(term if summed else _in_other_shape(term))
        factor *= c
        if not summed:
            term = _in_other_shape(term)
            if is_op(term, np.sum) and axes_of(term) == axis and "dtype" not in dict(term.params):
                waiting.append((factor, term.args[0], True))
            else:
                number = float(const(term)) if is_factor(term) else None
                totals.setdefault(term if number is None else None, []).append(factor if number is None else factor * number)
        elif (is_op(term, np.add) or is_op(term, np.subtract)) and all(part.aval == term.aval for part in term.args):
            waiting += [(factor, term.args[0], True), (factor if is_op(term, np.add) else -factor, term.args[1], True)]
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
    return (1.0, x.args[0]) if writes_one_each(s, x, axis) else None


def writes_one_each(s: Simplifier, x: Node, axis: tuple[int, ...]) -> bool:
    """Whether it is zeros with one value, or one of as many, written into each row along an axis."""
    if x.op is not index.SCATTER or len(axis) != 1 or dict(x.params)["spec"] != (index.Hole(0), index.Hole(1)):
        return False
    rows = s.graph.arrays.get(x.args[2 - axis[0]])
    if rows is None or not np.array_equal(rows, np.arange(x.aval.shape[1 - axis[0]])):
        return False
    return x.args[0].aval.shape in ((), rows.shape) and x.args[0].aval.dtype == x.aval.dtype


def _is_shift(x: Node, axis: Any) -> bool:
    if not is_op(x, np.multiply):
        return False
    for gap, e in (x.args, x.args[::-1]):
        if is_op(gap, np.subtract):
            r, total = gap.args
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
            zero = s.graph.const(0.0 if node.aval.dtype == float else node.aval.dtype.type(0))
            return s.call(np.broadcast_to, zero, shape=node.aval.shape) if node.aval.shape else zero
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


@rewrite(np.multiply, np.true_divide, np.negative, of=_ZEROS, derived=True)
def zero_stays_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    zeros = args if node.op is not REGISTRY[np.true_divide] else args[:1]
    if not any(is_zero(arg) for arg in zeros):
        return None
    zero = s.graph.const(0.0 if node.aval.dtype == float else node.aval.dtype.type(0))
    return s.call(np.broadcast_to, zero, shape=node.aval.shape) if node.aval.shape else zero


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
    zero = s.graph.const(0.0 if node.aval.dtype == float else node.aval.dtype.type(0))
    return s.call(np.broadcast_to, zero, shape=node.aval.shape) if node.aval.shape else zero


@rewrite(np.add, np.subtract, of=_ZEROS, derived=True)
def add_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_zero(b) and b.aval.shape and a.aval.shape == node.aval.shape:
        return a
    if is_op(node, np.add) and is_zero(a) and a.aval.shape and b.aval.shape == node.aval.shape:
        return b
    return None


@rewrite(np.einsum)
def einsum_is_matmul(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A product of two matrices, or of stacks of them, that einsum spells."""
    subscripts = dict(node.params)["subscripts"]
    if len(args) != 2 or "->" not in subscripts or "." in subscripts:
        return None
    left, out = subscripts.replace(" ", "").split("->")
    a, b = left.split(",")
    if any(len(set(part)) != len(part) for part in (a, b, out)):
        return None
    stack = "".join(c for c in out if c in a and c in b)
    summed = [c for c in a if c in b and c not in out]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    n = len(stack)
    if len(summed) != 1 or len(rows) != 1 or len(columns) != 1 or set(rows + columns) - set(out):
        return None
    if not (a.startswith(stack) and b.startswith(stack) and out.startswith(stack)):
        return None
    (k,), (i,), (j,) = summed, rows, columns
    x, y = args
    sizes = [dict(zip(a, x.aval.shape, strict=True)), dict(zip(b, y.aval.shape, strict=True))]
    if any(sizes[0][c] != sizes[1][c] for c in stack + k):  # einsum broadcasts labels, too
        return None
    if out[n:] == j + i:
        x, y, a, b, i, j = y, x, b, a, j, i
    x = x if a[n:] == i + k else _turned(s, x)
    y = y if b[n:] == k + j else _turned(s, y)
    return s.call(np.matmul, x, y)


def _turned(s: Simplifier, x: Node) -> Node:
    """The last two axes exchanged."""
    return s.call(np.transpose, x) if len(x.aval.shape) == 2 else s.call(np.swapaxes, x, axis1=-1, axis2=-2)


@rewrite(np.stack, np.concatenate, of=(CAPTURED,), exact=True)
def constants_of_one_type(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Rows of whole numbers beside others are cast beforehand."""
    cast = [arg.op is CAPTURED and arg.aval.dtype != node.aval.dtype for arg in args]
    if not any(cast):
        return None
    firm = [s.call(engine.ASTYPE, arg, dtype=node.aval.dtype) if one else arg for arg, one in zip(args, cast, strict=True)]
    return s.make(node.op, tuple(firm), node.params, node.aval)


@rewrite(index.SCATTER, index.SETITEM)
def writes_broadcast(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is written broadcasts anyway."""
    place = 0 if node.op is index.SCATTER else 1
    if not is_op(args[place], np.broadcast_to) or args[place].args[0].aval.dtype != args[place].aval.dtype:
        return None
    slim = (*args[:place], args[place].args[0], *args[place + 1 :])
    return s.graph.add(node.op, slim, node.params, node.aval)


@rewrite(np.sum)
def sum_of_equals(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The sum over axes along which all elements are alike is a product."""
    (x,) = args
    if not is_op(x, np.broadcast_to) or x.args[0].aval.shape or node.aval.dtype != x.args[0].aval.dtype or not elements_of(x):
        return None
    count = elements_of(x) // elements_of(node)
    inner = s.call(np.multiply, float(count), x.args[0])
    return inner if not node.aval.shape else s.call(np.broadcast_to, inner, shape=node.aval.shape)


@rewrite(create.FULL, exact=True)
def full(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    dtype = dict(node.params)["dtype"]
    value = const(args[0])
    if value is not None and args[0].aval.dtype != dtype:
        args = (s.graph.const(dtype.type(value)),)
    if args[0].aval.dtype != dtype:
        return None
    return s.make(REGISTRY[np.broadcast_to], args, (("shape", node.aval.shape),), node.aval)


@rewrite(index.GETITEM, exact=True)
def read_what_was_written(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """An element read after writes: what was written at that very place, or, of constant ones, what was there before."""
    spec, places = dict(node.params)["spec"], args[1:]
    source = _last_write(s, args[0], spec, (index.SETITEM,)) if not places else args[0]
    known = source.op is index.SETITEM and source.args[2:] == places
    if (
        known
        and all([place.aval.shape == () and place.aval.dtype.kind in "iu" for place in places])
        and dict(source.params)["spec"] == spec
    ):
        value = source.args[1]
        return value if value.aval.shape == node.aval.shape and value.aval.dtype == node.aval.dtype else None
    return s.make(node.op, (source,), node.params, node.aval) if source is not args[0] else None


@rewrite(index.INDEX_ADD)
def add_to_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is added where nothing was written yet is written there."""
    spec = dict(node.params)["spec"]
    if len(args) != 2 or args[1].aval.dtype != node.aval.dtype:
        return None
    base = _last_write(s, args[0], spec, (index.INDEX_ADD, index.SETITEM))
    if base.op is not index.SCATTER or len(base.args) != 1:
        return None
    return s.make(index.SETITEM, args, node.params) if _disjoint(spec, dict(base.params)["spec"], node.aval.shape) else None


def _last_write(s: Simplifier, array: Node, spec: index.Spec, ops: tuple[Op, ...]) -> Node:
    """The last of the writes (``ops``, at constant places) that an array is made by which may be where ``spec`` is; where
    none is, what the first of them is into."""
    place = _place(spec, array.aval.shape)
    while array.op in ops and len(array.args) == 2:
        if place is not None and (written := _written(s, array, len(place), ops)) is not None:
            here = (write for write in reversed(written.writes.get(place, ())) if write.index <= array.index)
            found = next(here, None)
            if found is not None:
                return found
            array = written.base
        elif _disjoint(spec, dict(array.params)["spec"], array.aval.shape):
            array = array.args[0]
        else:
            break
    return array


def _written(s: Simplifier, array: Node, width: int, ops: tuple[Op, ...]) -> Written | None:
    """The writes at places that are ``width`` numbers by which an array is made; None if the last one is no such."""
    chain: list[tuple[tuple[int, ...], Node]] = []
    node = array
    while (found := s.written.get((node, width, ops))) is None or (chain and found.last is not node):  # others went on there
        place = _place(dict(node.params)["spec"], node.aval.shape) if node.op in ops and len(node.args) == 2 else None
        if place is None or len(place) != width:
            break
        chain.append((place, node))
        node = node.args[0]
    if not chain:
        return found
    found = found if found is not None and found.last is node else Written({}, node, node)
    for place, write in reversed(chain):
        found.writes.setdefault(place, []).append(write)
        s.written[write, width, ops] = found
    found.last = array
    return found


def _place(spec: index.Spec, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The numbers that an index is, counted from the start of each axis; None where there is more in it."""
    whole = all([type(part) is int and size for part, size in zip(spec, shape, strict=False)])
    return tuple([part % size for part, size in zip(spec, shape, strict=False)]) if whole else None


def _disjoint(a: index.Spec, b: index.Spec, shape: tuple[int, ...]) -> bool:
    """Whether two indices surely name different elements: along one axis, they have no place in common."""
    for one, other, size in zip(a, b, shape, strict=False):
        first, second = _places(one, size), _places(other, size)
        if first is None or second is None:
            return False
        if max(first.start, second.start) >= min(first.stop, second.stop):
            return True
    return False


def _places(part: Any, size: int) -> range | None:
    """The places from the lowest to the highest that a part of an index names on its axis; None where that is not known."""
    if type(part) is int:
        return range(part % size, part % size + 1) if size else None
    if type(part) is not index.Slice:
        return None
    places = range(*slice(*part).indices(size))
    ends = sorted((places[0], places[-1])) if places else (0, -1)
    return range(ends[0], ends[1] + 1)
