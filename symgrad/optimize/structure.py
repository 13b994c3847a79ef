"""Matrices known to be diagonal, triangular, symmetric or of rank one are never multiplied in full.

What a Cholesky decomposition's derivative needs of ``sum(log(diagonal(L)))`` and ``solve(L, y)`` comes down to the inverse of
the decomposed matrix and a product of vectors; these rules find that, one step at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.ir import CAPTURED, Aval, Graph, Node
from symgrad.ops import create
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.linalg import MIRRORED
from symgrad.ops.symmetry import is_symmetric
from symgrad.optimize.rewriting import SCALING, Rewrite, Simplifier, axes_of, const, is_factor, is_op, join, rewrite, split
from symgrad.optimize.scales import combined
from symgrad.program import Program

STRUCTURE: dict[Any, list[Rewrite]] = {}
CHOLESKY = Op(runtime.cholesky, "op", ())  # made here only, after all derivatives are taken
INVERSE = Op(runtime.inverse, "op", ())
TRIANGLE = Op(runtime.solve_triangle, "op", ())
HALF = Op(runtime.inverse_triangle, "op", ())
LU = Op(runtime.lu, "op", (), name="runtime.lu")
OF_LU = {  # what is made of a matrix by its decomposition, and how from that
    REGISTRY[np.linalg.solve]: Op(runtime.lu_solve, "op", (), name="runtime.lu_solve"),
    REGISTRY[np.linalg.inv]: Op(runtime.lu_inverse, "op", (), name="runtime.lu_inverse"),
    REGISTRY[np.linalg.slogdet]: Op(runtime.lu_slogdet, "op", (), name="runtime.lu_slogdet"),
}
MANY = 4  # times as many columns as rows
WIDE = 1000  # numbers of right-hand sides, from which on LAPACK's own triangular systems take less time than to call for them
LEAST = 32  # rows of a matrix, from which on a product with it takes longer than a call
FEW = 8  # rows of a matrix up to which it is decomposed in less time than it takes to call for it


def structure(program: Program) -> Program:
    """The same program with what is known of its matrices put to use."""
    if any(is_op(node, np.linalg.cholesky) or is_eye(program.graph, node) for node in program.nodes()):
        program = _Solver(Simplifier(program, STRUCTURE).run()).run()
    elif any(_diagonal_of(node) or _is_wide(node) or _has_slim(node) or _turns(node) for node in program.nodes()):
        program = Simplifier(program, STRUCTURE).run()
    shared = _decomposed_often(program)
    return _Sharer(program, shared).run() if shared else program


# -- what a matrix is ----------------------------------------------------------------------------------------------


def _is_real_matrix(node: Node) -> bool:
    return type(node.aval) is Aval and len(node.aval.shape) == 2 and node.aval.dtype.kind == "f" and 0 not in node.aval.shape


def _is_small(matrix: Node) -> bool:
    """Whether the kernels of ``np.linalg`` solve a system of it sooner than two calls could."""
    return runtime.KERNELS is not None and matrix.aval.dtype.char == "d" and matrix.aval.shape[0] <= FEW


def _diagonal(node: Node) -> Node | None:
    """``v`` of ``diag(v)``."""
    return node.args[0] if is_op(node, np.diag) and not node.params and len(node.aval.shape) == 2 else None


def _outer(node: Node) -> tuple[Node, Node] | None:
    """``(u, w)`` of ``outer(u, w)``."""
    if is_op(node, np.outer) and all(len(arg.aval.shape) == 1 for arg in node.args):
        return node.args[0], node.args[1]
    return None


def _diagonal_of(node: Node) -> tuple[Node, ...]:
    """``(a, b)`` of ``diag(a @ b)``."""
    matrix = is_op(node, np.diag) and not node.params and len(node.aval.shape) == 1
    return node.args[0].args if matrix and is_op(node.args[0], np.matmul) and _is_real_matrix(node.args[0]) else ()


def _has_slim(node: Node) -> bool:
    return is_op(node, np.matmul) and any(map(_is_slim, node.args))


def _is_slim(node: Node) -> bool:
    """Whether it is a diagonal matrix or an outer product, or the transpose of one."""
    inner = node.args[0] if is_op(node, np.transpose) and not node.params else node
    return _outer(inner) is not None or _diagonal(inner) is not None


def is_eye(graph: Graph, node: Node) -> bool:
    """Whether it is an identity matrix, made by a derivative or by the function."""
    if node.op is not CAPTURED:
        return node.op is create.EYE
    array = graph.arrays[node]
    return array.ndim == 2 and array.shape[0] == array.shape[1] and np.array_equal(array, np.eye(len(array)))


def _is_thin(node: Node) -> bool:
    """Whether a product with it is cheap."""
    _, x = split(node)
    return x.op is create.EYE or _diagonal(x) is not None or _outer(x) is not None


def _factored(node: Node) -> Node | None:
    """The matrix whose lower Cholesky factor this is."""
    return node.args[0] if is_op(node, np.linalg.cholesky) and not node.params else None


def _whole(s: Simplifier, matrix: Node) -> Node | None:
    """The matrix that ``L @ L.T`` is, with the factor of this one: one that may not be symmetric has lent it a triangle."""
    return matrix if is_symmetric(matrix, s.graph) else s.graph.find(MIRRORED, (matrix,), ())


def _lent(matrix: Node) -> Node:
    """The matrix that has the factor of this one."""
    return matrix.args[0] if matrix.op is MIRRORED else matrix


def _is_turned(node: Node, of: Node) -> bool:
    return is_op(node, np.transpose) and not node.params and node.args[0] is of


def _halved(a: Node, b: Node) -> Node | None:
    """``L`` of ``inv(L).T @ inv(L)``, which is the inverse of what it is the factor of."""
    return b.args[0] if is_op(b, np.linalg.inv) and _factored(b.args[0]) is not None and _is_turned(a, b) else None


@rewrite(np.diag, of=(np.matmul,), rules=STRUCTURE)
def diagonal_of_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The diagonal of a product of matrices, of which nobody needs the rest."""
    if not _diagonal_of(node) or s.used.get(args[0], 0) > 1 or not all(map(_is_real_matrix, args[0].args)):
        return None
    a, b = args[0].args
    if a.aval.shape[0] != b.aval.shape[1]:
        return None
    return s.call(np.sum, s.call(np.multiply, a, s.call(np.transpose, b)), axis=1)


@rewrite(np.diag, rules=STRUCTURE, exact=True)
def diagonal(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Of a matrix, ``diag`` is another word for ``diagonal``."""
    offset = {"offset": k} if (k := dict(node.params).get("k", 0)) else {}
    return s.call(np.diagonal, *args, **offset) if len(args[0].aval.shape) == 2 else None


@rewrite(np.diagonal, of=(np.transpose,), rules=STRUCTURE, exact=True)
def diagonal_of_turned(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The transpose of a matrix has its diagonal."""
    (x,) = args
    turned = is_op(x, np.transpose) and not x.params and not node.params and len(x.aval.shape) == 2
    return s.call(np.diagonal, *x.args) if turned else None


# -- products ------------------------------------------------------------------------------------------------------


@rewrite(np.matmul, rules=STRUCTURE)
def product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A product with a diagonal matrix, or one of rank one, or a sum of such."""
    a, b = args
    if not _is_real_matrix(node) or not _is_real_matrix(a) or not _is_real_matrix(b):
        return None
    (c, x), (d, y) = split(a), split(b)
    if (c, d) != (1.0, 1.0) and (abs(c * d) == 1.0 or _is_thin(x) or _is_thin(y) or _halved(x, y) is not None):
        return join(s, c * d, s.make(node.op, (x, y), (), node.aval))
    for x, y, left in ((b, a, False), (a, b, True)):
        if x.op is create.EYE:
            return y
        v = _diagonal(x)
        if v is not None:
            return s.call(np.multiply, s.call(np.expand_dims, v, axis=1) if left else y, y if left else v)
        if s.phase is None:  # the user's own are multiplied in their order: others overflow in between
            continue
        pair = _outer(x)
        if pair is not None and len({one.aval.dtype for one in (*pair, y)}) == 1:
            u, w = pair
            return s.call(np.outer, u, s.call(np.matmul, w, y)) if left else s.call(np.outer, s.call(np.matmul, y, u), w)
        parts = x.args if is_op(x, np.subtract) or is_op(x, np.add) else ()
        pairs = [(part, y) if left else (y, part) for part in parts]
        # all of them: one that is multiplied in full is one more product, and one more for each matrix in a chain of them
        if pairs and all(
            part.aval == x.aval and (_is_thin(part) or _halved(*[split(one)[1] for one in pair]) is not None)
            for part, pair in zip(parts, pairs, strict=True)
        ):
            return s.call(x.op.key, *(s.make(node.op, pair, (), node.aval) for pair in pairs))
    factor = _halved(a, b)
    return None if factor is None else s.graph.add(INVERSE, (factor,), (), node.aval)


@rewrite(np.transpose, of=(np.diag,), rules=STRUCTURE, exact=True)
def turned_diagonal(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0] if _diagonal(args[0]) is not None and not node.params else None


@rewrite(np.transpose, of=(np.outer,), rules=STRUCTURE, exact=True)
def turned_outer(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``outer(u, w).T`` is ``outer(w, u)``."""
    pair = None if node.params else _outer(args[0])
    return None if pair is None else s.call(np.outer, *pair[::-1])


@rewrite(np.transpose, of=(np.add, np.subtract), rules=STRUCTURE, exact=True)
def turned_sum(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The transpose of a sum of such matrices is a sum of such."""
    (x,) = args
    slim = (is_op(x, np.add) or is_op(x, np.subtract)) and all([_is_slim(part) and part.aval == x.aval for part in x.args])
    return s.call(x.op.key, *[s.call(np.transpose, part) for part in x.args]) if slim and not node.params else None


@rewrite(np.outer, of=SCALING, rules=STRUCTURE, derived=True)
def factor_in_front(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``outer(u, c * w)`` as ``outer(c * u, w)``, so that equal ones meet."""
    (d, u), (c, w) = map(split, args)
    return None if c == 1.0 or _outer(node) is None else s.call(np.outer, join(s, c * d, u), w)


@rewrite(np.subtract, of=(np.outer,), rules=STRUCTURE, derived=True)
def outer_twice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``m - outer(u, w) - outer(v, w)`` as ``m - outer(u + v, w)``."""
    total, last = args
    pair = _outer(last)
    if pair is None or not is_op(total, np.subtract) or total.exact or s.used.get(total, 0) > 1:
        return None
    first = _outer(total.args[1])
    if first is None or first[1] is not pair[1]:
        return None
    both = combined(s, first[0], pair[0], 1.0) or s.call(np.add, first[0], pair[0])
    return s.call(np.subtract, total.args[0], s.call(np.outer, both, pair[1]))


@rewrite(np.matmul, rules=STRUCTURE)
def product_with_vector(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """With ``k = L @ L.T``: ``L.T @ solve(k, b)`` is ``solve(L, b)``, and ``inv(L).T @ solve(L, b)`` is ``solve(k, b)``."""
    if len(node.aval.shape) != 1 or node.aval.dtype.kind != "f":
        return None
    a, v = args if len(args[0].aval.shape) == 2 else (args[1], args[0])
    if a is args[0]:  # a vector from the left sees the transpose
        if not is_op(a, np.transpose) or a.params:
            return None
        (a,) = a.args
    c, v = split(v)
    if not is_op(v, np.linalg.solve):
        return None
    factor = a.args[0] if is_op(a, np.linalg.inv) else a
    matrix, (of, b) = _factored(factor), v.args
    whole = None if matrix is None else _whole(s, matrix)
    if whole is None:
        return None
    known, other = (whole, factor) if a is factor else (factor, whole)
    found = s.graph.find(v.op, (other, b), ()) if of is known else None
    return None if found is None else join(s, c, found)


@rewrite(np.sum, rules=STRUCTURE, derived=True)
def sum_of_diagonal(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``sum(x * eye(n))`` is the trace."""
    (product,) = args
    plain = set(dict(node.params)) <= {"axis"} and not node.aval.shape and node.aval.dtype == product.aval.dtype
    if not plain or not is_op(product, np.multiply) or not _is_real_matrix(product):
        return None
    for x, eye in (product.args, product.args[::-1]):
        if x.aval == product.aval and eye.aval.shape == x.aval.shape and is_eye(s.graph, eye):
            return s.call(np.trace, x)
    return None


# -- symmetric matrices --------------------------------------------------------------------------------------------


def _turns(node: Node) -> bool:
    """Whether it is the transpose of a square matrix of many numbers, in a derivative."""
    return is_op(node, np.transpose) and not node.params and not node.exact and node.phase is not None and _is_square(node)


def _is_square(node: Node) -> bool:
    return _is_real_matrix(node) and LEAST <= node.aval.shape[0] == node.aval.shape[1]


def _is_mirrored(s: Simplifier, x: Node) -> bool:
    """Whether a large matrix is symmetric by the way it is made."""
    return not s.exact and _is_square(x) and is_symmetric(x, s.graph)


@rewrite(np.transpose, rules=STRUCTURE, derived=True)
def turned_symmetric(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The transpose of a matrix of kernels, of distances, or ``x @ x.T``, is that matrix: so products with both are one."""
    return args[0] if not node.params and _is_mirrored(s, args[0]) else None


@rewrite(np.sum, rules=STRUCTURE, derived=True)
def sum_of_symmetric(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The sums of its columns are those of its rows."""
    (x,) = args
    return s.call(np.sum, x, axis=1) if dict(node.params) == {"axis": 0} and _is_mirrored(s, x) else None


@rewrite(np.add, rules=STRUCTURE, derived=True)
def twice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x + x``, which that may give."""
    same = args[0] is args[1] and node.aval.dtype.kind == "f" and bool(node.aval.shape)
    return join(s, 2.0, args[0]) if same and args[0].aval == node.aval else None


# -- the derivative of a Cholesky decomposition --------------------------------------------------------------------


@rewrite(np.add, rules=STRUCTURE)
def mirrored(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``tril(m) + tril(tril(m), -1).T``: a symmetric matrix from the lower triangle of ``m``."""
    for lower, upper in (args, args[::-1]):
        if is_op(lower, np.tril) and not lower.params and is_op(upper, np.transpose) and not upper.params:
            below = upper.args[0]
            if is_op(below, np.tril) and dict(below.params) == {"k": -1} and below.args[0] in (lower, lower.args[0]):
                return _mirrored(s, lower.args[0]) if _is_real_matrix(node) else None
    return None


def _mirrored(s: Simplifier, m: Node) -> Node | None:
    """The lower triangle of ``m``, and its mirror image above, where that is simple."""
    if is_op(m, np.subtract) or is_op(m, np.add):
        parts = [_mirrored(s, arg) if arg.aval == m.aval else None for arg in m.args]
        return None if None in parts else s.call(m.op.key, *parts)
    c, x = split(m)
    if c != 1.0 and x.aval == m.aval:
        inner = _mirrored(s, x)
        return None if inner is None else join(s, c, inner)
    pair = _outer(m)
    if pair is not None:
        return m if split(pair[0])[1] is split(pair[1])[1] else None
    if is_op(m, np.multiply):
        for turned, v in (m.args, m.args[::-1]):
            plain = is_op(turned, np.transpose) and not turned.params and len(v.aval.shape) == 1
            if plain and _factored(turned.args[0]) is not None:  # an upper triangle: only its diagonal is left
                return _scaled_diagonal(s, turned.args[0], v)
    return None


def _scaled_diagonal(s: Simplifier, factor: Node, v: Node) -> Node:
    """``diag(diagonal(factor) * v)``, a multiple of the identity where ``v`` is one of one over that diagonal."""
    over = v.args[1] if is_op(v, np.true_divide) and is_factor(v.args[0], v.aval.dtype) else None
    if over is not None and is_op(over, np.diagonal) and not over.params and over.args[0] is factor:  # which is never zero
        params = (("dtype", factor.aval.dtype), ("n", factor.aval.shape[0]))
        return join(s, float(const(v.args[0])), s.graph.add(create.EYE, (), params, factor.aval))
    return s.call(np.diag, s.call(np.multiply, s.call(np.diagonal, factor), v))


@rewrite(np.linalg.solve, rules=STRUCTURE)
def solve_both(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``solve(L.T, solve(L, b))`` is ``inv(L @ L.T) @ b``: the factor is there, and one system takes the place of two.

    Small systems, for which no factor is used, are left, unless the matrix is symmetric: a triangle alone has been decomposed.
    """
    turned, inner = args
    if not is_op(inner, np.linalg.solve) or node.aval.dtype.kind != "f" or not _is_turned(turned, inner.args[0]):
        return None
    matrix = _factored(inner.args[0])
    if matrix is None:
        return None
    if not is_symmetric(matrix, s.graph):
        if _is_small(matrix):
            return None
        matrix = s.graph.add(MIRRORED, (matrix,), (), matrix.aval)
    return s.graph.add(node.op, (matrix, inner.args[1]), (), node.aval)


@rewrite(np.matmul, rules=STRUCTURE, derived=True)
def product_of_wide(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``solve(a, b) @ m`` is ``solve(a, b @ m)``, of fewer columns."""
    c, x = split(args[0])
    if not _is_wide(x) or MANY * math.prod(node.aval.shape) > math.prod(x.aval.shape) or node.aval.dtype != x.aval.dtype:
        return None
    return join(s, c, s.make(x.op, (x.args[0], s.call(np.matmul, x.args[1], args[1])), (), node.aval))


@rewrite(np.sum, rules=STRUCTURE, derived=True)
def sum_of_wide(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The sum of the columns of ``solve(a, b)`` is one system's solution."""
    c, x = split(args[0])
    turned = is_op(x, np.transpose) and not x.params
    x = x.args[0] if turned else x
    if not _is_wide(x) or axes_of(node) != (0 if turned else 1,) or node.aval != Aval(x.aval.shape[:1], x.aval.dtype, "array"):
        return None
    return join(s, c, s.make(x.op, (x.args[0], s.call(np.sum, x.args[1], axis=1)), (), node.aval))


def _is_wide(node: Node) -> bool:
    """Whether it is the solution of a system with many right-hand sides."""
    if not is_op(node, np.linalg.solve) or not all(map(_is_real_matrix, node.args)):
        return False
    rows, columns = node.aval.shape
    return bool(node.args[0].aval.dtype == node.aval.dtype == node.args[1].aval.dtype and columns >= MANY * rows)


class _Solver(Simplifier):
    """Solves systems by what is there anyway: an inverse, or a Cholesky factor, which is computed in place."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, {})
        nodes = program.nodes()
        self.factors = {node.args[0]: node for node in nodes if _factored(node) is not None}
        self.inverses = {node.args[0].args[0]: node for node in nodes if node.op is INVERSE}

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if _factored(node) is not None and _is_real_matrix(node):
            return self.visit_as(self._decomposition(node.args[0]), node, args)
        if node.exact:  # other ways to solve a system round otherwise
            return super().visit(node, args)
        triangle = is_op(node, np.linalg.inv) and _is_real_matrix(node) and _factored(node.args[0]) is not None
        if triangle and node.aval.shape[0] >= LEAST:
            return self.visit_as(HALF, node, args)
        if not is_op(node, np.linalg.solve) or not _is_real_matrix(node.args[0]) or len({x.aval.dtype for x in node.args}) > 1:
            return super().visit(node, args)
        matrix = node.args[0]
        if len(node.aval.shape) > 2 or node.aval.dtype.char not in "df" or 0 in node.aval.shape:
            return super().visit(node, args)
        lender = _lent(matrix)
        known = lender in self.inverses or lender in self.factors
        if known and not is_symmetric(matrix, self.program.graph):
            return super().visit(node, args)  # of others, a factor knows one triangle
        given = (self.mapping[lender],)
        if lender in self.inverses and len(node.aval.shape) == 1:
            factor = self.graph.add(self._decomposition(lender), given, (), args[0].aval)
            inverse = self.graph.add(INVERSE, (factor,), (), args[0].aval)
            return self.visit_as(REGISTRY[np.matmul], node, (inverse, args[1]))
        if _is_small(matrix) and not (_is_wide(node) and math.prod(node.aval.shape) >= WIDE):
            return super().visit(node, args)
        if lender in self.factors:
            factor = self.graph.add(self._decomposition(lender), given, (), args[0].aval)
            half = self.graph.add(TRIANGLE, (factor, args[1]), (), node.aval)
            return self.graph.add(TRIANGLE, (factor, half), (("turned", True),), node.aval)
        if _factored(matrix) is not None:
            return self.visit_as(TRIANGLE, node, args)
        if is_op(matrix, np.transpose) and not matrix.params and _factored(matrix.args[0]) is not None:
            return self.graph.add(TRIANGLE, (self.mapping[matrix.args[0]], args[1]), (("turned", True),), node.aval)
        return super().visit(node, args)

    def _decomposition(self, matrix: Node) -> Op:
        """The operation that gives a matrix's Cholesky factor: NumPy's own, to the bit, where a decision hangs on it."""
        return self.factors[matrix].op if self.factors[matrix].exact else CHOLESKY


# -- systems of the same matrix ------------------------------------------------------------------------------------


def _system(node: Node) -> tuple[Node, bool] | None:
    """The matrix that an operation decomposes, and whether it is the transpose that is meant."""
    if node.op not in OF_LU or node.params or node.exact or not _is_real_matrix(node.args[0]) or _is_small(node.args[0]):
        return None
    matrix = node.args[0]
    if is_op(node, np.linalg.solve):
        b = node.args[1].aval
        if b.dtype != matrix.aval.dtype or not 1 <= len(b.shape) <= 2 or 0 in b.shape:
            return None
        if is_op(matrix, np.transpose) and not matrix.params:
            return matrix.args[0], True
    return (matrix, False) if matrix.aval.dtype.char in "df" else None


def _decomposed_often(program: Program) -> set[Node]:
    """The matrices that several operations decompose, one at least of which has no use for a singular one."""
    found: dict[Node, list[Node]] = {}
    for node in program.nodes():
        system = _system(node)
        if system is not None:
            found.setdefault(system[0], []).append(node)
    return {m for m, nodes in found.items() if len(nodes) > 1 and not all(is_op(node, np.linalg.slogdet) for node in nodes)}


class _Sharer(Simplifier):
    """Decomposes once the matrices that several operations need decomposed."""

    def __init__(self, program: Program, shared: set[Node]) -> None:
        super().__init__(program, {})
        self.shared = shared

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        system = _system(node)
        if system is None or system[0] not in self.shared:
            return super().visit(node, args)
        matrix, turned = system
        factors = self.graph.add(LU, (self.mapping[matrix],), (), matrix.aval)
        new = self.graph.add(OF_LU[node.op], (factors, *args[1:]), (("turned", True),) if turned else (), node.aval)
        factors.line, factors.phase = factors.line or node.line, factors.phase or node.phase
        new.name, new.line, new.phase = node.name, node.line, node.phase
        return new
