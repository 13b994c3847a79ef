"""Rewrites of single operations as others that say the same: shapes, products, casts, choices and diagonals."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, Node, size_of
from symgrad.ops import create, engine, index
from symgrad.ops.core import REGISTRY
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.reduction import OTHERS
from symgrad.optimize import rewriting
from symgrad.optimize.rewriting import (
    Rewrite,
    Simplifier,
    const,
    is_factor,
    is_moderate,
    is_named,
    is_number,
    is_op,
    join,
    len_of,
    split,
)
from symgrad.optimize.scales import opposite

IDENTITIES: dict[Any, list[Rewrite]] = {}

rewrite = functools.partial(rewriting.rewrite, rules=IDENTITIES)


@rewrite(EXTREME, exact=True)
def choice_between_two(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node:
    """From here on, what Python's ``min`` and ``max`` choose is as good as what masks do."""
    return s.make(REGISTRY[np.where], args, node.params, node.aval)


@rewrite(engine.AGAIN)
def after_what_is_there(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What a value is computed once more after need not be computed for that alone."""
    factor, after = split(args[1])
    return None if factor == 1.0 else s.make(node.op, (args[0], after), node.params, node.aval)


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


@rewrite(np.add, np.subtract, of=(CONST,), exact=True)
def whole_number_further(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Python's ints, which know no bounds: ``i - 3 + 1`` is ``i - 2``, and ``i + 0`` is ``i``."""
    x, y = args if is_op(node, np.subtract) or args[0].op is not CONST else args[::-1]
    more = const(y)
    if node.aval.kind != "python" or node.aval.dtype.kind != "i" or x.aval != node.aval or type(more) is not int:
        return None
    more = more if is_op(node, np.add) else -more
    if (is_op(x, np.add) or is_op(x, np.subtract)) and type(known := const(x.args[1])) is int and x.args[0].aval == node.aval:
        x, more = x.args[0], more + (known if is_op(x, np.add) else -known)
    elif more and x is args[0]:
        return None
    key = np.add if more > 0 else np.subtract
    return x if more == 0 else s.graph.add(REGISTRY[key], (x, s.graph.const(abs(more))), (), node.aval)


@rewrite(engine.TO_PYTHON, exact=True)
def number_already(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0] if args[0].aval.kind == "python" else None


@rewrite(np.reshape, np.expand_dims, np.squeeze, np.transpose, np.swapaxes, index.GETITEM, exact=True)
def reshape_of_equals(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is the same everywhere has no order, and its parts are as well."""
    x = args[0].args[0] if is_op(args[0], np.broadcast_to) else args[0] if args[0].op is CONST else None
    if x is None or x.aval.shape or len(args) > 1:
        return None
    if not node.aval.shape:
        return x if x.aval == node.aval else None
    return s.make(REGISTRY[np.broadcast_to], (x,), (("shape", node.aval.shape),), node.aval)


@rewrite(np.squeeze, np.reshape, np.expand_dims, of=(np.expand_dims, np.reshape, np.squeeze), exact=True)
def as_it_was(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """An axis that is put in and taken out again, or the other way round."""
    (x,) = args
    if not any([is_op(x, one) for one in (np.expand_dims, np.reshape, np.squeeze)]) or "order" in dict(node.params + x.params):
        return None
    return x.args[0] if x.args[0].aval == node.aval else None


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


@rewrite(np.where, of=(np.less, np.less_equal, np.greater, np.greater_equal))
def clipped(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(abs(x) <= c, x, c * sign(x))``, the derivative of Huber's loss, as ``clip(x, -c, c)``."""
    test, near, far = args
    if is_op(test, np.greater) or is_op(test, np.greater_equal):
        near, far = far, near
    elif not (is_op(test, np.less) or is_op(test, np.less_equal)):
        return None
    size, c = test.args[0], const(test.args[1])
    if not is_op(size, np.absolute) or type(c) not in (int, float) or not 0 < c < math.inf:
        return None
    (x,), (factor, one), (other, sign) = size.args, split(near), split(far)
    known = one is x and is_op(sign, np.sign) and sign.args[0] is x and math.isclose(other, factor * c, rel_tol=1e-15)
    if not known or x.aval != node.aval or x.aval.dtype.kind != "f" or not x.aval.shape:
        return None
    result = s.call(np.clip, x, -c, c)
    return result if factor == 1.0 else s.call(np.multiply, factor, result)


@rewrite(np.multiply, np.true_divide, of=(np.where,))
def factor_of_numbers(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``c * where(mask, a, b)`` of numbers as ``where(mask, c * a, c * b)``."""
    for factor, choice in (args, args[::-1]) if is_op(node, np.multiply) else ((args[1], args[0]),):
        numbers = [const(x) for x in choice.args[1:]] if is_op(choice, np.where) else [None]
        known = s.used.get(choice, 0) <= 1 and is_factor(factor, node.aval.dtype) and choice.aval == node.aval
        if known and all([type(x) in (int, float) for x in numbers]):
            c = const(factor)
            products = [c * x if is_op(node, np.multiply) else x / c for x in numbers]
            return s.call(np.where, choice.args[0], *map(float, products))
    return None


@rewrite(np.where, exact=True)
def one_choice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What both choices are."""
    _, x, y = args
    if x is not y or not node.aval.shape:
        return None
    if x.op is CONST and type(const(x)) is float and node.aval.dtype == float:
        return s.call(np.broadcast_to, x, shape=node.aval.shape)
    return x if x.aval == node.aval else None


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


@rewrite(np.where, of=(np.equal,), derived=True)
def step_between(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(a == b, g / 2, g * (a > b))`` as ``g * heaviside(a - b, 0.5)``, and by ``b`` as what is left of ``g``.

    Infinities may be equal, and their difference is none: only where that raises an error.
    """
    test, half, rest = args
    if not s.program.strict or not is_op(test, np.equal) or test.args[0].aval.dtype.kind != "f":
        return None
    a, b = test.args
    for mask, chosen in (((np.greater, a, b), a), ((np.less, b, a), a), ((np.greater, b, a), b), ((np.less, a, b), b)):
        g = masked(s, half, rest, s.graph.find(REGISTRY[mask[0]], mask[1:], ()))
        if g is not None:
            of_a = s.call(np.multiply, g, s.call(np.heaviside, s.call(np.subtract, a, b), 0.5))
            return of_a if chosen is a else s.call(np.subtract, g, of_a)
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
        x = opposite(step.args[0])
        _, product = split(g)
        factors = product.args if is_op(product, np.multiply) else (product,)
        for factor in factors:
            cut = is_op(factor, np.maximum) and step.args[0] in factor.args
            cut = cut or (x is not None and is_op(factor, np.minimum) and x in factor.args)
            if cut and any(const(arg) == 0 for arg in factor.args):
                return g
    return None


@rewrite(np.true_divide, np.multiply, of=(np.multiply, np.true_divide, np.negative), derived=True)
def quotient_and_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``g * x / x``, ``g / x * x``, and ``g / x / (1 / x)``, as ``g``: what the logarithm of a factor gives."""
    for one, x in (args,) if is_op(node, np.true_divide) else (args, args[::-1]):
        c, product = split(one)
        if product.aval != node.aval or product.exact or is_named(product):
            continue
        if is_op(node, np.true_divide) and is_op(product, np.multiply) and x in product.args:
            g = product.args[1] if product.args[0] is x else product.args[0]
        elif is_op(node, np.multiply) and is_op(product, np.true_divide) and product.args[1] is x:
            g = product.args[0]
        elif is_op(node, np.true_divide) and _have_one_divisor(product, x):
            c, g = c / const(x.args[0]), product.args[0]
            if not is_moderate(c, node.aval.dtype):
                continue
        else:
            continue
        return join(s, c, g) if g.aval == node.aval else None
    return None


def _have_one_divisor(x: Node, inverse: Node) -> bool:
    """Whether one is divided by what a number is divided by in the other."""
    quotients = is_op(x, np.true_divide) and is_op(inverse, np.true_divide)
    return quotients and x.args[1] is inverse.args[1] and is_factor(inverse.args[0], inverse.aval.dtype)


@rewrite(np.multiply, of=(np.sinh,), derived=True)
def slope_of_log_cosh(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``g / cosh(x) * sinh(x)`` is ``g * tanh(x)``, also where both overflow."""
    for sinh, other in (args, args[::-1]):
        c, quotient = split(other)
        slope = is_op(sinh, np.sinh) and is_op(quotient, np.true_divide) and is_op(quotient.args[1], np.cosh)
        if slope and quotient.args[1].args == sinh.args and not quotient.exact:
            return s.call(np.multiply, join(s, c, quotient.args[0]), s.call(np.tanh, sinh.args[0]))
    return None


@rewrite(np.where, of=(np.multiply, np.negative, np.true_divide), derived=True)
def factor_of_choice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(m, g * x, g * y)`` as ``g * where(m, x, y)``."""
    mask, *choices = args
    (c, one), (d, other) = map(split, choices)
    if not (is_op(one, np.multiply) and is_op(other, np.multiply)) or one.aval != other.aval or one.aval != node.aval:
        return None
    if any([s.used.get(choice, 0) > 1 or choice.exact for choice in (*choices, one, other)]):
        return None
    for g, x in (one.args, one.args[::-1]):
        for h, y in (other.args, other.args[::-1]):
            if g is h and x.aval == y.aval == node.aval:
                return s.call(np.multiply, g, s.call(np.where, mask, join(s, c, x), join(s, d, y)))
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


@rewrite(np.transpose, np.moveaxis, exact=True)
def transpose(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Axes change places once, and not for nothing."""
    (x,) = args
    order = _order(node)
    if is_op(x, np.transpose):
        inner, (x,) = _order(x), x.args
        order = tuple([inner[axis] for axis in order])
    same = tuple(range(len(order)))
    if order == same or (x.op is create.DIAGONAL and len(order) == 2):
        return x
    params = {} if order == same[::-1] else {"axes": order}
    return None if x is args[0] and node.params == tuple(params.items()) else s.call(np.transpose, x, **params)


def _order(node: Node) -> tuple[int, ...]:
    """The axes of an array, in the order in which a transposed one has them."""
    axes = np.broadcast_to(False, range(len(node.aval.shape)))
    return tuple(np.shape(node.op.fun(axes, **dict(node.params))))


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
    through = x.op is node.op or (is_op(node, np.reshape) and is_op(x, np.expand_dims))
    return s.make(node.op, x.args, node.params, node.aval) if through else None


@rewrite(np.max, np.min, np.sum, exact=True)
def one_reduction(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A reduction that is there already, with the axis that it is along, or without."""
    params = dict(node.params)
    keeps, axis = params.pop("keepdims", False), params.get("axis")
    rest = tuple(params.items())
    other = s.graph.find(node.op, args, rest if keeps else (*rest, ("keepdims", True)))
    if other is None or type(axis) is not int or len(args) > 1 or other.aval.kind != "array":
        return None
    axis %= len(args[0].aval.shape)
    return s.call(np.expand_dims, other, axis=axis) if keeps else s.call(np.squeeze, other, axis=axis)


@rewrite(np.sum, np.mean, np.max, np.min, np.prod)
def allaxes_of(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """An axis that names all axes need not be named."""
    params = dict(node.params)
    if params.get("axis") is None or params.get("keepdims") or node.aval.shape or not args[0].aval.shape:
        return None
    rest = tuple((name, value) for name, value in node.params if name != "axis")
    return s.make(node.op, args, rest, node.aval)


@rewrite(OTHERS)
def others_are_running_products(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """All others are those before times those after: in NumPy's words, of which the table knows more."""
    x, *directions = args
    shape, axis = list(node.aval.shape), dict(node.params)["axis"] + len(node.aval.shape)
    if directions or not shape[axis]:
        return None
    shape[axis] = 1
    one = s.call(create.FULL, s.graph.const(1.0), shape=tuple(shape), dtype=node.aval.dtype)
    along = {"axis": axis} if axis else {}
    running = []
    for step, stop in ((None, -1), (-1, 0)):
        part = s.call(index.GETITEM, x, spec=(index.EVERY,) * axis + (index.Slice(None, stop, step),))
        running.append(s.call(np.cumprod, s.call(np.concatenate, one, part, **along), axis=axis))
    back = s.call(index.GETITEM, running[1], spec=(index.EVERY,) * axis + (index.Slice(None, None, -1),))
    return s.call(np.multiply, running[0], back)


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


@rewrite(np.einsum)
def einsum_of_numbers(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What has no labels is a factor, of the smallest array; the others may be a product that is known."""
    subscripts = dict(node.params)["subscripts"]
    if "->" not in subscripts or "." in subscripts or any(arg.aval.dtype != node.aval.dtype for arg in args):
        return None
    left, out = subscripts.replace(" ", "").split("->")
    terms = left.split(",")
    if all(terms) or not any(terms):
        return None
    numbers, rest = ([x for x, term in zip(args, terms, strict=True) if bool(term) is labelled] for labelled in (False, True))
    factor = functools.reduce(functools.partial(s.call, np.multiply), numbers)
    spelled = f"{','.join(filter(None, terms))}->{out}"
    smallest = min(rest, key=size_of)
    if size_of(smallest) >= size_of(node):
        return s.call(np.multiply, factor, s.call(np.einsum, *rest, subscripts=spelled))
    rest[rest.index(smallest)] = s.call(np.multiply, factor, smallest)
    return s.call(np.einsum, *rest, subscripts=spelled)


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


@rewrite(create.FULL, exact=True)
def full(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    dtype = dict(node.params)["dtype"]
    value = const(args[0])
    if value is not None and args[0].aval.dtype != dtype:
        args = (s.graph.const(dtype.type(value)),)
    if args[0].aval.dtype != dtype:
        return None
    return s.make(REGISTRY[np.broadcast_to], args, (("shape", node.aval.shape),), node.aval)
