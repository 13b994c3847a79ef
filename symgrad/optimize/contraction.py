"""A contraction of arrays with labelled axes, as ``einsum`` does it, and the calls that it is lowered to.

What is known of the operands is put to use while the program is generated:

* axes that are only moved, added or broadcast are taken off: the labels say it all;
* a label that only one operand has is summed before the product, and a sum over the result is part of the product;
* a difference that is broadcast, ``x[:, None] - m``, is pushed through: two small products in place of a large array;
* two operands become one matrix product, or a stack of them, more than two a path of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad import runtime
from symgrad.ir import CAPTURED, INPUT, Aval, Node
from symgrad.ops import index
from symgrad.ops.contract import LABELS, matmul_labels, tensordot_labels
from symgrad.ops.core import REGISTRY, Op
from symgrad.optimize.lower import LONG
from symgrad.optimize.paths import path, product_labels
from symgrad.optimize.rewriting import Rewrite, Simplifier, is_moderate, is_op, join, split
from symgrad.program import Program

WINDOWS = np.lib.stride_tricks.sliding_window_view
LARGE = 4096  # elements from which an array is worth the calls that do without it
START = 16  # elements in a row that are copied in the time that it takes to get to the next row
SHORT = 64  # an axis so short that NumPy's inner loops start more often than they should
CENTER = Op(runtime.center, "constant", ())  # made here only, after all derivatives are taken


class Product(NamedTuple):
    """``factor * einsum(terms -> out)`` of the operands; ``sizes`` of all labels."""

    operands: tuple[Node, ...]
    terms: tuple[str, ...]
    out: str
    sizes: dict[str, int]
    factor: float = 1.0

    def shape(self, labels: Sequence[str]) -> tuple[int, ...]:
        """The sizes of some labels."""
        return tuple([self.sizes[label] for label in labels])

    def size(self, labels: Sequence[str]) -> int:
        """How many elements an array of these labels has."""
        return math.prod(self.shape(labels))

    def put(self, i: int, operand: Node, term: str) -> Product:
        """With another operand in place ``i``."""
        operands = (*self.operands[:i], operand, *self.operands[i + 1 :])
        return self._replace(operands=operands, terms=(*self.terms[:i], term, *self.terms[i + 1 :]))

    def counted(self, before: Product) -> Product:
        """With a factor for what ``before`` sums over, and no operand here has any more: each term is there so many times."""
        gone = set("".join(before.terms)) - set("".join(self.terms)) - set(self.out)
        return self._replace(factor=self.factor * self.size(tuple(gone)))


class Contractor(Simplifier):
    """Rebuilds a program, and remembers of which contraction each node was made."""

    def __init__(self, program: Program, rules: dict[Any, list[Rewrite]]) -> None:
        super().__init__(program, rules)
        self.products: dict[Node, Product] = {}
        self.scaled: dict[Node, tuple[Node, Node]] = {}  # of a large array times one that is broadcast: both
        self.beside = {arg for node in program.nodes() for arg in _beside_given(node)}
        self.in_order = False  # whether the node that is visited goes with an array that lies row by row

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        self.in_order = node in self.beside
        return super().visit(node, args)

    def plainly(self, key: Any, args: tuple[Node, ...], shape: tuple[int, ...], /, **params: Any) -> Node:
        """An operation as it stands, of this shape."""
        aval = Aval(shape, args[0].aval.dtype, "array" if shape else "scalar")
        return self.graph.add(REGISTRY[key], args, tuple(sorted(params.items())), aval)


def _beside_given(node: Node) -> list[Node]:
    """What an elementwise operation takes beside an argument of the function, or a part of one, of the same shape."""
    if getattr(node.op, "family", "") != "elementwise" or len(node.args) != 2:
        return []
    given = [(arg.args[0] if arg.op is index.GETITEM else arg).op in (INPUT, CAPTURED) for arg in node.args]
    return [x for x, y, lies in zip(node.args, node.args[::-1], given[::-1], strict=True) if lies and x.aval == y.aval]


def product_of(node: Node) -> Product | None:
    """A node as a contraction of its arguments; None where it is none, or of mixed dtypes."""
    if not node.args or any(type(one.aval) is not Aval for one in (node, *node.args)) or node.aval.dtype.kind not in "fc":
        return None
    if any(arg.aval.dtype != node.aval.dtype or 0 in arg.aval.shape for arg in node.args):
        return None
    params = dict(node.params)
    shapes = [arg.aval.shape for arg in node.args]
    if is_op(node, np.einsum):
        left, _, out = params["subscripts"].partition("->")
        terms = left.split(",")
    elif is_op(node, np.matmul) and not params:
        terms, out = matmul_labels(*map(len, shapes))
    elif is_op(node, np.tensordot):
        terms, out = tensordot_labels(len(shapes[0]), len(shapes[1]), params.get("axes", 2))
    else:
        return None
    if any(len(set(term)) != len(term) or not term.isalpha() for term in (*terms, out or "a")):
        return None
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    return Product(node.args, tuple(terms), out, sizes)


def contracted(s: Contractor, given: Product) -> Node | None:
    """The node of a contraction; None where an operand itself broadcasts."""
    p = bare(given)
    if any(x.aval.shape != p.shape(term) for x, term in zip(p.operands, p.terms, strict=True)):
        return None
    for i, operand in enumerate(p.operands):
        parts = outer_difference(p, i)
        if parts is not None:
            (a, ta), (b, tb) = parts
            sign = 1.0 if is_op(operand, np.add) else -1.0
            shift, labels = _center(s, b, tb, ta)
            a, b = _moved_by(s, a, ta, shift, labels, sign), _moved_by(s, b, tb, shift, labels, -1.0)
            return _apart(s, p, i, (a, ta), (b, tb), sign)
    p = _summed_first(s, p)
    spread = [label for label in p.out if not any(label in term for term in p.terms)]
    slim = p._replace(out="".join([label for label in p.out if label not in spread]))
    node = join(s, p.factor, _multiplied(s, slim))
    if spread:
        node = _spread(s, node, slim.out, p.out)
        if node.aval.shape != p.shape(p.out):
            node = s.plainly(np.broadcast_to, (node,), p.shape(p.out), shape=p.shape(p.out))
    s.products[node] = given
    return node


def bare(p: Product) -> Product:
    """Without factors, moved axes, and axes that are only broadcast."""
    operands, terms, factor = [], [], p.factor
    for operand, term in zip(p.operands, p.terms, strict=True):
        while True:
            c, inner = split(operand)
            if c == 1.0 or inner.aval.shape != operand.aval.shape or not is_moderate(factor * c, operand.aval.dtype):
                c = 1.0
                moved = moved_from(operand, term)
                if moved is None:
                    break
                inner, term = moved
            operand, factor = inner, factor * c
        operands.append(operand)
        terms.append(term)
    return p._replace(operands=tuple(operands), terms=tuple(terms), factor=factor).counted(p)


def without_new_axes(s: Simplifier, x: Node, term: str) -> tuple[Node, str]:
    """An operand that an index both cuts and gives new axes, without these, and its labels: ``x[1:9]`` of ``x[1:9, None]``."""
    spec = dict(x.params)["spec"] if x.op is index.GETITEM and len(x.args) == 1 else ()
    new = [part is None for part in spec if type(part) is not int]
    labels = "".join([label for i, label in enumerate(term) if i >= len(new) or not new[i]])
    if labels in (term, "") or Ellipsis in spec:
        return x, term
    return s.call(index.GETITEM, x.args[0], spec=tuple([part for part in spec if part is not None])), labels


def moved_from(x: Node, term: str) -> tuple[Node, str] | None:
    """What an operand is made of by moving or adding axes, with its labels."""
    params = dict(x.params)
    if is_op(x, np.transpose):
        axes = params.get("axes") or range(len(term))[::-1]
        return x.args[0], "".join([label for _, label in sorted(zip([i % len(term) for i in axes], term, strict=True))])
    if is_op(x, np.swapaxes):
        labels = list(term)
        i, j = params["axis1"], params["axis2"]
        labels[i], labels[j] = labels[j], labels[i]
        return x.args[0], "".join(labels)
    if is_op(x, np.expand_dims):
        axis = params["axis"]
        axes = {i % len(term) for i in (axis if isinstance(axis, tuple) else (axis,))}
        return x.args[0], "".join([label for i, label in enumerate(term) if i not in axes])
    if is_op(x, np.broadcast_to):
        inner = x.args[0].aval
        if inner.kind == "array" and inner.shape and 1 not in inner.shape and inner.dtype == x.aval.dtype:
            return x.args[0], term[len(term) - len(inner.shape) :]
    return None


def _apart(s: Contractor, p: Product, i: int, first: tuple[Node, str], second: tuple[Node, str], sign: float) -> Node:
    """The product with ``first + sign * second`` in place ``i``, as the product with each of them."""
    a, ta = first
    c, tc = p.operands[1 - i], p.terms[1 - i]
    summed, rows, columns = _shared(p, tc, ta)
    small = 4 * p.size(summed) <= min(p.size(rows), p.size(columns))
    whole = sorted([*summed, *rows]) == sorted(tc) and sorted([*summed, *columns]) == sorted(ta)
    if small and whole and summed and set(second[1]) <= set(tc) and sorted([*rows, *columns]) == sorted(p.out):
        # [c, sign * second] @ [a, 1]: the sum costs nothing beside the product
        rest = contracted(s, p.put(i, *second)._replace(out="".join(rows), factor=1.0))
        assert rest is not None
        shape = (p.size(rows), 1)
        rest = s.plainly(np.reshape, (rest,), shape, shape=shape)
        rest = s.call(np.negative, rest) if sign < 0 else rest
        one = s.graph.const(1.0 if a.aval.dtype == float else a.aval.dtype.type(1))
        ones = s.call(np.broadcast_to, one, shape=(1, p.size(columns)))
        x, y = _grouped(s, c, tc, [rows, summed], p), _grouped(s, a, ta, [summed, columns], p)
        x = s.plainly(np.concatenate, (x, rest), (p.size(rows), p.size(summed) + 1), axis=1)
        y = s.plainly(np.concatenate, (y, ones), (p.size(summed) + 1, p.size(columns)), axis=0)
        return join(s, p.factor, _matrices(s, x, y, rows, columns, p))
    parts = [contracted(s, p.put(i, *part).counted(p)) for part in (first, second)]
    assert parts[0] is not None
    assert parts[1] is not None
    return s.call(np.add if sign > 0 else np.subtract, *parts)


def _shared(p: Product, ta: str, tb: str) -> tuple[list[str], list[str], list[str]]:
    """The labels that two operands sum over, and those that each alone brings into the result."""
    summed = [label for label in ta if label in tb and label not in p.out]
    return summed, [label for label in ta if label not in tb], [label for label in tb if label not in ta]


def outer_difference(p: Product, i: int) -> list[tuple[Node, str]] | None:
    """Both parts of an operand ``a - b`` or ``a + b`` that is larger than each of them, with their labels.

    Of points and clusters far apart, each part is many times as large as what is left of both: in double precision, which has
    digits to spare.
    """
    x, term = p.operands[i], p.terms[i]
    if not (is_op(x, np.subtract) or is_op(x, np.add)) or len(p.operands) != 2 or math.prod(x.aval.shape) < LARGE:
        return None
    if x.aval.dtype.char not in "dD":
        return None
    parts = []
    for arg in x.args:
        if type(arg.aval) is not Aval or arg.aval.dtype != x.aval.dtype or not len(arg.aval.shape) > 0:
            return None
        labels = term[len(term) - len(arg.aval.shape) :]
        slim = bare(Product((arg,), (labels,), labels, p.sizes))
        inner = slim.operands[0].aval.shape
        if slim.factor != 1.0 or inner != p.shape(slim.terms[0]) or 4 * math.prod(inner) > math.prod(x.aval.shape):
            return None
        parts.append((slim.operands[0], slim.terms[0]))
    return parts


def _center(s: Contractor, b: Node, tb: str, ta: str) -> tuple[Node, str]:
    """A point amid ``b`` that both parts of a difference are moved by, so that their products need not cancel."""
    axes = tuple([i for i, label in enumerate(tb) if label not in ta])
    shape = tuple([n for i, n in enumerate(b.aval.shape) if i not in axes])
    node = s.graph.add(CENTER, (b,), (("axis", axes),), Aval(shape, b.aval.dtype, "array" if shape else "scalar"))
    return node, "".join([label for label in tb if label in ta])


def _moved_by(s: Contractor, x: Node, term: str, shift: Node, labels: str, sign: float) -> Node:
    """``x + sign * shift``."""
    return s.call(np.add if sign > 0 else np.subtract, x, _aligned(s, shift, labels, term))


def _summed_first(s: Contractor, p: Product) -> Product:
    """Labels that one operand alone has, and the result has not, are summed before anything is multiplied."""
    if len(p.operands) < 2:
        return p
    for i, term in enumerate(p.terms):
        others = "".join([p.out, *p.terms[:i], *p.terms[i + 1 :]])
        alone = [k for k, label in enumerate(term) if label not in others]
        if alone:
            kept = "".join([label for label in term if label in others])
            axis: Any = tuple(alone) if len(alone) > 1 else alone[0]
            p = p.put(i, s.plainly(np.sum, (p.operands[i],), p.shape(kept), axis=axis), kept)
    return p


def _multiplied(s: Contractor, p: Product) -> Node:
    """A contraction in which every label of the result has an operand."""
    operands, terms = list(p.operands), list(p.terms)
    if len(operands) > 2:
        for places in path(p.terms, p.out, p.sizes)[:-1]:
            pair = p._replace(operands=tuple([operands[i] for i in places]), terms=tuple([terms[i] for i in places]))
            for i in sorted(places, reverse=True):
                del operands[i], terms[i]
            pair = pair._replace(out=product_labels(pair.terms[0], pair.terms[1], "".join([p.out, *terms]), p.sizes))
            operands.append(_multiplied(s, pair))
            terms.append(pair.out)
    if len(operands) == 2:
        (a, b), (ta, tb) = operands, terms
        return _pair(s, a, b, ta, tb, p)
    return _einsum(s, p._replace(operands=tuple(operands), terms=tuple(terms)))


def _einsum(s: Contractor, p: Product) -> Node:
    if len(p.operands) == 1 and set(p.terms[0]) == set(p.out):
        return _transposed(s, p.operands[0], p.terms[0], p)
    inner = _inner(s, p)
    if inner is not None:
        return inner
    labels = "".join([label for label in p.terms[0] if label in p.out])
    if len(p.operands) != 2 or len(labels) != len(p.out):
        return s.plainly(np.einsum, p.operands, p.shape(p.out), subscripts=f"{','.join(p.terms)}->{p.out}")
    node = s.plainly(np.einsum, p.operands, p.shape(labels), subscripts=f"{','.join(p.terms)}->{labels}")
    return _transposed(s, node, labels, p)


def _inner(s: Contractor, p: Product) -> Node | None:
    """Two real arrays of one shape, summed over all axes or the last ones: calls that start faster than ``einsum``."""
    (x, *others), (term, *terms) = p.operands, p.terms
    if terms != [term] or x.aval != others[0].aval or x.aval.dtype.char not in "fd" or math.prod(x.aval.shape) >= LONG:
        return None
    if not p.out:
        return s.plainly(np.vdot, p.operands, ())
    if p.out != term[: len(p.out)] or (p.out != term[:-1] and math.prod(x.aval.shape) >= LARGE):
        return None
    flat = [*[[label] for label in p.out], [*term[len(p.out) :]]]
    return s.plainly(np.vecdot, tuple([_grouped(s, x, term, flat, p) for x in p.operands]), p.shape(p.out))


def _pair(s: Contractor, a: Node, b: Node, ta: str, tb: str, p: Product) -> Node:
    """Two operands: a product of matrices, a stack of them, or a product element by element."""
    stack = [label for label in p.out if label in ta and label in tb]
    summed, rows, columns = _shared(p, ta, tb)
    if p.size(tb) > p.size(ta):
        summed.sort(key=tb.index)  # the smaller one is moved, if one is
    for x, term, own in ((a, ta, rows), (b, tb, columns)):
        if is_op(x, WINDOWS):  # copied anyway: so that its memory is gone through in order
            for labels in (summed, own):
                labels.sort(key=_steps(x, term).__getitem__, reverse=True)
    if not summed:
        return s.call(np.multiply, *[_aligned(s, *_in_rows(s, x, term, p), p.out) for x, term in ((a, ta), (b, tb))])
    if not rows and not columns and (stack or len(summed) > 1):
        return _einsum(s, p._replace(operands=(a, b), terms=(ta, tb)))
    single = [[label] for label in stack]
    x, y = _grouped(s, a, ta, [*single, rows, summed], p), _grouped(s, b, tb, [*single, summed, columns], p)
    if not stack:
        return _matrices(s, x, y, rows, columns, p)
    shape = p.shape(stack)
    if not columns:
        y = s.plainly(np.expand_dims, (y,), (*y.aval.shape, 1), axis=len(stack) + 1)
    if not rows:
        x = s.plainly(np.expand_dims, (x,), (*shape, 1, x.aval.shape[-1]), axis=len(stack))
    if _turns(s, p, rows, columns):
        x, y, rows, columns = _turned(s, y), _turned(s, x), columns, rows
    z = s.plainly(np.matmul, (x, y), (*shape, p.size(rows), p.size(columns)))
    return _unfolded(s, z, [*stack, *rows, *columns], p)


def _in_rows(s: Contractor, x: Node, term: str, p: Product) -> tuple[Node, str]:
    """An operand of a much larger product, element by element, with its axes in the order of the result in memory, too."""
    order = "".join([label for label in p.out if label in term])
    if order == term or 4 * p.size(term) > p.size(p.out) or p.size(p.out) < LARGE:
        return x, term
    x = _transposed(s, x, term, p._replace(out=order))
    return s.plainly(np.copy, (x,), p.shape(order), order="C"), order


def _matrices(s: Contractor, x: Node, y: Node, rows: list[str], columns: list[str], p: Product) -> Node:
    """The product of two matrices, or vectors, whose axes stand for these labels."""
    if _turns(s, p, rows, columns):
        x, y, rows, columns = _turned(s, y), _turned(s, x), columns, rows
    shape = (*([p.size(rows)] if rows else []), *([p.size(columns)] if columns else []))
    return _unfolded(s, s.plainly(np.matmul, (x, y), shape), [*rows, *columns], p)


def _unfolded(s: Contractor, z: Node, labels: list[str], p: Product) -> Node:
    """A product of matrices with an axis for each label, in the order of the result."""
    if z.aval.shape != p.shape(labels):
        z = s.plainly(np.reshape, (z,), p.shape(labels), shape=p.shape(labels))
    return _transposed(s, z, "".join(labels), p)


def _turned(s: Contractor, x: Node) -> Node:
    """The matrix, or stack of them, transposed; a vector as it is."""
    n = len(x.aval.shape)
    names = LABELS[:n]
    return x if n < 2 else _transposed(s, x, names, Product((), (), names[:-2] + names[-1] + names[-2], {}))


def _turns(s: Contractor, p: Product, rows: list[str], columns: list[str]) -> bool:
    """Whether the product is better computed the other way around, so that its memory ends with other axes.

    As the result has it; but what goes over many short rows goes faster over few long ones, if nothing beside has such rows.
    """
    if not rows or not columns:
        return False
    last = p.out[-1]
    if s.in_order:
        return last in rows
    if len(p.out) == 2 and 4 * p.sizes[last] < SHORT and p.size(p.out) >= LARGE:
        return last in columns
    if len(p.out) > 2 and p.sizes[last] < SHORT and p.size(p.out) >= LARGE:
        return p.sizes[rows[-1]] > p.sizes[columns[-1]]
    return last in rows


def _grouped(s: Contractor, x: Node, term: str, groups: list[list[str]], p: Product) -> Node:
    """An operand with its axes in groups, each of which becomes one axis; empty groups are left out, stacks are single."""
    groups = [group for group in groups if group]
    runs = sorted(groups, key=lambda group: term.index(group[0]))
    if "".join(["".join(group) for group in runs]) != term:  # a group is not in one piece: its axes are brought together
        runs = min([groups, [*groups[:-2], *groups[:-3:-1]]], key=lambda runs: _copying(x, term, runs[-1][-1], p))
        order = "".join(["".join(group) for group in runs])
        x, term = _transposed(s, x, term, p._replace(out=order)), order
    merged = tuple([p.size(group) for group in runs])
    if merged != x.aval.shape:
        x = s.plainly(np.reshape, (x,), merged, shape=merged)
    names = [group[0] for group in runs]
    return _transposed(s, x, "".join(names), p._replace(out="".join([group[0] for group in groups])))


def _copying(x: Node, term: str, last: str, p: Product) -> float:
    """How long it takes to copy an element of an operand, so that this axis is the last: in a row, or from here and there."""
    return START / p.sizes[last] + (_steps(x, term)[last] != 1)


def _steps(x: Node, term: str) -> dict[str, int]:
    """How far apart in memory the elements along each axis are, if the array lies row by row, or what it shows windows of."""
    inner = x.args[0] if is_op(x, WINDOWS) else x
    shape = inner.aval.shape
    steps = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    if inner is not x:
        axis = dict(x.params).get("axis")
        steps += [steps[i] for i in (range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,))]
    return dict(zip(term, steps, strict=True))


def _transposed(s: Contractor, x: Node, labels: str, p: Product) -> Node:
    """``x`` with its axes in the order of the result."""
    if labels == p.out:
        return x
    axes = tuple([labels.index(label) for label in p.out])
    shape = tuple([x.aval.shape[i] for i in axes])
    if axes == (1, 0):
        return x.args[0] if is_op(x, np.transpose) and not x.params else s.plainly(np.transpose, (x,), shape)
    return s.plainly(np.transpose, (x,), shape, axes=axes)


def _aligned(s: Contractor, x: Node, term: str, out: str) -> Node:
    """``x`` with its axes in the order of ``out``, ready to be broadcast."""
    order = "".join([label for label in out if label in term])
    if order != term:
        x = _transposed(s, x, term, Product((), (), order, {}))
    return _spread(s, x, order, out)


def _spread(s: Contractor, x: Node, term: str, out: str) -> Node:
    """``x`` with an axis of length one wherever ``out`` has a label that it has not; leading ones broadcast anyway."""
    first = next((i for i, label in enumerate(out) if label in term), len(out))
    axes = tuple([i - first for i, label in enumerate(out) if i > first and label not in term])
    if not axes:
        return x
    sizes = iter(x.aval.shape)
    shape = tuple([next(sizes) if label in term else 1 for label in out[first:]])
    return s.plainly(np.expand_dims, (x,), shape, axis=axes if len(axes) > 1 else axes[0])
