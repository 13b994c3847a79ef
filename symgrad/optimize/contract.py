"""Contractions in the code that runs: products that sum over shared axes, lowered to as few and as large BLAS calls as go.

``matmul``, ``einsum``, ``tensordot`` and sums of products are all read as an einsum of labelled operands, which ``contraction``
writes as calls; variances, norms and sums over short axes are written out.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from symgrad.ir import Aval, Node
from symgrad.ops import index
from symgrad.ops.contract import LABELS
from symgrad.ops.engine import ASTYPE
from symgrad.optimize import cost, identities, scales
from symgrad.optimize.contraction import (
    LARGE,
    SHORT,
    Contractor,
    Product,
    bare,
    contracted,
    moved_from,
    outer_difference,
    product_of,
    without_new_axes,
)
from symgrad.optimize.lower import LONG, MANY
from symgrad.optimize.rewriting import Rewrite, Simplifier, axes_of, const, is_op, join, rewrite
from symgrad.program import Program

CONTRACT: dict[Any, list[Rewrite]] = {}
WORTH_A_CALL = 512  # elements of a matrix, from which on a product of its own costs less than moving it
FEW = 4  # elements of an axis that is summed one by one


def contract(program: Program) -> Program:
    """The same program with its contractions lowered."""
    return Contractor(program, CONTRACT).run()


# what is pulled out of a product as its factor meets other factors; the shape of a sum, other shapes
for ufunc, rule in {
    np.negative: scales.negative,
    np.multiply: scales.multiply,
    np.add: scales.add,
    np.subtract: scales.subtract,
    np.reshape: identities.same_shape,
}.items():
    rewrite(ufunc, rules=CONTRACT)(rule)


@rewrite(np.multiply, np.true_divide, rules=CONTRACT, derived=True)
def scale(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``(x * v) * w``, of a large array and two that are broadcast, as ``x * (v * w)``; so quotients."""
    assert isinstance(s, Contractor)
    a, b = args
    if is_op(node, np.multiply) and _is_scale(b, a):
        a, b = b, a
    if not _is_scale(a, b) or node.aval.dtype.kind != "f" or a.aval.dtype != node.aval.dtype:
        return None
    if a in s.scaled:
        x, v = s.scaled[a]
        return _scaled(s, x, s.call(node.op.key, v, b)) if v.aval.shape == b.aval.shape else None
    if is_op(node, np.multiply):
        return _scaled(s, a, b)
    return None


@rewrite(np.add, np.subtract, rules=CONTRACT)
def scales_together(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x * v - x * w`` as ``x * (v - w)``."""
    assert isinstance(s, Contractor)
    if not all(arg in s.scaled for arg in args):
        return None
    (x, v), (y, w) = (s.scaled[arg] for arg in args)
    return _scaled(s, x, s.call(node.op.key, v, w)) if x is y and v.aval.shape == w.aval.shape else None


def _is_scale(x: Node, v: Node) -> bool:
    """Whether ``v`` is an array that is broadcast to a much larger ``x``."""
    if any(type(arg.aval) is not Aval or arg.aval.kind != "array" or not arg.aval.shape for arg in (x, v)):
        return False
    size = math.prod(x.aval.shape)
    return bool(v.aval.dtype == x.aval.dtype) and size >= LARGE and 8 * math.prod(v.aval.shape) <= size


def _scaled(s: Contractor, x: Node, v: Node) -> Node | None:
    shape = np.broadcast_shapes(x.aval.shape, v.aval.shape)
    if shape != x.aval.shape:
        return None
    node = s.plainly(np.multiply, (x, v), shape)
    s.scaled[node] = x, v
    return node


@rewrite(np.heaviside, rules=CONTRACT)
def half_step(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``heaviside(x, 0.5)`` of many numbers by their signs: NumPy's step branches at each number, its sign does not."""
    x, half = args
    if const(half) != 0.5 or math.prod(node.aval.shape) < MANY or x.aval.dtype != node.aval.dtype:
        return None
    return join(s, 0.5, s.call(np.add, s.call(np.sign, x), 1.0))


@rewrite(np.matmul, rules=CONTRACT)
def converted(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Products of single and double precision with the conversion that they begin with: of what stays the same in a loop, it
    is done once."""
    if {arg.aval.dtype.char for arg in args} != {"f", "d"}:
        return None
    return s.make(node.op, tuple([_in_double(s, arg) for arg in args]), node.params, node.aval)


def _in_double(s: Simplifier, x: Node) -> Node:
    return x if x.aval.dtype == np.float64 else s.call(ASTYPE, x, dtype=np.dtype(float))


@rewrite(ASTYPE, of=(np.transpose,), rules=CONTRACT, exact=True)
def conversion_of_transposed(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is converted lies in memory as it did: a matrix and its transpose are one conversion."""
    (x,) = args
    inner = x.args[0].aval._replace(dtype=node.aval.dtype)
    return s.make(x.op, (s.make(node.op, x.args, node.params, inner),), x.params, node.aval)


@rewrite(np.sum, np.add, np.subtract, of=(ASTYPE,), rules=CONTRACT, derived=True)
def sum_before_conversion(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Sums of what is converted to single precision, as sums in double precision, which may be products of matrices."""
    if not all([x.op is ASTYPE and x.aval.dtype.char == "f" and x.args[0].aval.dtype.char == "d" for x in args]):
        return None
    if "dtype" in dict(node.params) or any([s.used.get(x, 0) > 1 for x in args]):
        return None
    total = s.make(node.op, tuple([x.args[0] for x in args]), node.params, node.aval._replace(dtype=np.dtype(float)))
    return s.make(ASTYPE, (total,), args[0].params, node.aval)


@rewrite(np.einsum, np.matmul, np.tensordot, rules=CONTRACT)
def contraction(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    found = product_of(node)
    return None if found is None or _is_stack(node) else contracted(cast(Contractor, s), found)


def _is_stack(node: Node) -> bool:
    """Whether it is a stack of products whose matrices would have to be moved in memory to make one product of them all."""
    if not is_op(node, np.matmul):
        return False
    a, b = node.args
    return len(a.aval.shape) == 2 and len(b.aval.shape) > 2 and math.prod(node.aval.shape[-2:]) >= WORTH_A_CALL


@rewrite(np.sum, rules=CONTRACT)
def sum_of_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A sum over axes of a contraction, or of a product of arrays that are there anyway, is a contraction."""
    assert isinstance(s, Contractor)
    (x,) = args
    if not set(dict(node.params)) <= {"axis", "keepdims"} or node.aval.dtype.kind != "f" or node.aval.dtype != x.aval.dtype:
        return None
    known = s.products.get(x)
    inner = None if s.used.get(x, 0) > 1 else known or _elementwise(s, x)
    if inner is None:
        return None
    axes = axes_of(node)
    product = inner._replace(out="".join(label for i, label in enumerate(inner.out) if i not in axes))
    made = contracted(s, product)
    if made is None or (known is None and (_is_slow(product, made) or _loses_digits(product, made))):
        return None
    return (
        made if made.aval.shape == node.aval.shape else s.plainly(np.reshape, (made,), node.aval.shape, shape=node.aval.shape)
    )


def _loses_digits(p: Product, made: Node) -> bool:
    """Whether many numbers are added one by one, where ``np.sum`` adds them in pairs."""
    summed = math.prod([size for label, size in p.sizes.items() if label not in p.out])
    return summed >= LONG and any([is_op(one, np.einsum) for one in (made, *made.args)])


def _is_slow(p: Product, made: Node) -> bool:
    """Whether arrays that are computed a line before are better multiplied there, and then summed.

    ``einsum`` starts too slowly, and of large arrays with short rows, which may be laid out otherwise, so do stacks.
    """
    if not any([getattr(x.op, "family", "") == "elementwise" for x in p.operands]):
        return False
    short = p.sizes[p.terms[0][-1]] < SHORT and p.size("".join(p.sizes)) >= LARGE
    stacked = set(p.out).intersection(*bare(p).terms)
    return bool(short and stacked) or any([is_op(one, np.einsum) for one in (made, *made.args)])


@rewrite(np.swapaxes, np.transpose, rules=CONTRACT)
def turned_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A stack of products, transposed, is multiplied the other way around."""
    assert isinstance(s, Contractor)
    inner = s.products.get(args[0])
    if inner is None or s.used.get(args[0], 0) > 1 or len(inner.out) < 3:
        return None
    moved = moved_from(node, "".join(LABELS[: len(inner.out)]))
    assert moved is not None
    places = [moved[1].index(label) for label in LABELS[: len(inner.out)]]
    return contracted(s, inner._replace(out="".join([inner.out[i] for i in places])))


@rewrite(np.linalg.norm, rules=CONTRACT)
def norm(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The lengths of vectors by their squares, as NumPy has it, but for what its functions in Python take."""
    (x,) = args
    params = dict(node.params)
    if params.pop("ord", None) is not None or x.aval.dtype.char not in "fd" or not x.aval.shape:
        return None
    if not params and len(x.aval.shape) == 1 and node.aval.dtype == x.aval.dtype:
        return s.call(np.sqrt, s.call(np.dot, x, x))
    return s.call(np.sqrt, s.call(np.sum, s.call(np.multiply, x, x), **params)) if type(params.get("axis")) is int else None


@rewrite(np.var, np.std, rules=CONTRACT)
def variance(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The variance by the squares of the distances from the mean, as NumPy has it, but for what its own functions take."""
    (x,) = args
    params = dict(node.params)
    ddof, count = params.pop("ddof", 0), math.prod(x.aval.shape) // max(math.prod(node.aval.shape), 1)
    if not set(params) <= {"axis", "keepdims"} or x.aval.dtype.char not in "fd" or not x.aval.shape:
        return None
    if ddof >= count:
        return None
    gap = s.call(np.subtract, x, s.call(np.mean, x, axis=params.get("axis"), keepdims=True))
    squares = s.call(np.square, gap)
    found = (
        s.call(np.true_divide, s.call(np.sum, squares, **params), count - ddof) if ddof else s.call(np.mean, squares, **params)
    )
    return s.call(np.sqrt, found) if is_op(node, np.std) else found


@rewrite(np.sum, np.mean, np.max, np.min, rules=CONTRACT)
def known_but_for_axes(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A reduction that is there already, with the axes kept that this one drops, or without."""
    params = dict(node.params)
    keep, axes = params.pop("keepdims", False), axes_of(node)
    if params.get("axis") is None or not axes:
        return None
    other = s.graph.find(node.op, args, tuple(sorted((params if keep else params | {"keepdims": True}).items())))
    if other is None or other.aval.dtype != node.aval.dtype:
        return None
    if keep:
        return s.call(np.expand_dims, other, axis=axes if len(axes) > 1 else axes[0])
    spec = [0 if axis in axes else index.EVERY for axis in range(len(other.aval.shape))]
    return s.call(index.GETITEM, other, spec=tuple(spec))


@rewrite(np.sum, rules=CONTRACT)
def sum_of_few(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A sum over a very short last axis is written out: loops of three are NumPy's slowest."""
    assert isinstance(s, Contractor)
    (x,) = args
    shape, params = x.aval.shape, dict(node.params)
    last = params.get("axis") in (-1, len(shape) - 1) and len(shape) > 1 and set(params) == {"axis"}
    if not last or not 2 <= shape[-1] <= FEW or math.prod(shape) < LARGE or x.aval.dtype != node.aval.dtype:
        return None
    if not _is_chain(s, x):
        return None
    total = _element(s, x, 0, math.prod(shape[:-1]))
    for k in range(1, shape[-1]):
        total = s.call(np.add, total, _element(s, x, k, math.prod(shape[:-1])))
    return total


def _is_chain(s: Contractor, x: Node) -> bool:
    """Whether an array is made by an elementwise operation, for one use."""
    return getattr(x.op, "family", "") == "elementwise" and s.used.get(x, 0) == 1 and type(x.aval) is Aval and not x.exact


def _element(s: Contractor, x: Node, k: int, many: int) -> Node:
    """``x[..., k]``; of a chain of elementwise operations, the chain of that. What is broadcast to ``many`` lies in a row."""
    if not x.aval.shape:
        return x
    if _is_chain(s, x):
        return s.make(x.op, tuple([_element(s, arg, k, many) for arg in x.args]), x.params)
    element = s.call(index.GETITEM, x, spec=(Ellipsis, k if x.aval.shape[-1] > 1 else 0))
    size = math.prod(element.aval.shape)
    return s.call(np.copy, element, order="C") if 1 < 8 * size <= many else element


def _elementwise(s: Contractor, x: Node) -> Product | None:
    """A product of arrays that no long chain of elementwise operations makes, as a contraction that sums nothing yet."""
    if is_op(x, np.multiply):
        operands = x.args
    elif is_op(x, np.power) and const(x.args[1]) == 2:
        operands = (x.args[0], x.args[0])
    else:
        return None
    ndim = len(x.aval.shape)
    for arg in operands:
        if type(arg.aval) is not Aval or arg.aval.dtype != x.aval.dtype or not arg.aval.shape or 0 in arg.aval.shape:
            return None
        if getattr(arg.op, "family", "") == "elementwise" and math.prod(x.aval.shape) >= cost.SIZES.big:
            return None  # a chain ends better in the sum itself, block by block
    out = LABELS[:ndim]
    pairs = [without_new_axes(s, arg, out[ndim - len(arg.aval.shape) :]) for arg in operands]
    operands, terms = [tuple(each) for each in zip(*pairs, strict=True)]
    found = Product(operands, terms, out, dict(zip(out, x.aval.shape, strict=True)))
    slim = bare(found)
    return None if any([outer_difference(slim, i) is not None for i in range(2)]) else found  # distances would cancel
