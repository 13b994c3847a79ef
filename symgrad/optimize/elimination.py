"""Linear algebra of small matrices on numbers: elimination with row exchanges, operation by operation as LAPACK does it.

A matrix is a grid, as in ``scalarizer``: an object array of nodes, one for each element. Where LAPACK finds a
matrix singular, or not positive definite, these numbers make Python raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir import Node
from symgrad.ops.engine import AND
from symgrad.optimize.scalarizer import Grid, Scalarizer


class Factors:
    """A matrix, its rows exchanged, as a lower triangle (ones on its diagonal) times an upper one; ``rows`` holds both.

    Of the ``exchanges``, in order, each is of two rows where a number is true.
    """

    def __init__(self, s: Scalarizer, matrix: Grid) -> None:
        self.s, self.rows, self.exchanges = s, matrix.copy(), list[tuple[Node, int, int]]()
        n = len(matrix)
        for k in range(n):
            for i in range(k + 1, n):
                larger = s.number(np.greater, *(s.number(np.abs, self.rows[row, k]) for row in (i, k)))
                self.exchanges.append((larger, k, i))
                self._exchange(self.rows, larger, k, i)
            for i in range(k + 1, n):
                self.rows[i, k] = s.number(np.true_divide, self.rows[i, k], self.rows[k, k])
                for j in range(k + 1, n):
                    self.rows[i, j] = self._less(self.rows[i, j], self.rows[i, k], self.rows[k, j])

    def _exchange(self, rows: Grid, test: Node, k: int, i: int) -> None:
        for j, (upper, lower) in enumerate(zip(rows[k], rows[i], strict=True)):
            if upper is not lower:
                rows[k, j], rows[i, j] = self.s.choice(test, lower, upper), self.s.choice(test, upper, lower)

    def _less(self, x: Node | None, a: Node, b: Node | None) -> Node | None:
        """``x - a * b``, where None is a zero that is always one."""
        if b is None:
            return x
        product = self.s.number(np.multiply, a, b)
        rest: Node = self.s.number(np.negative, product) if x is None else self.s.number(np.subtract, x, product)
        return rest

    def solve(self, right: Grid) -> Grid:
        """What the matrix times it is ``right``, a matrix."""
        right = right.copy()
        for test, k, i in self.exchanges:
            self._exchange(right, test, k, i)
        return self._solve(right)

    def _solve(self, right: Grid) -> Grid:
        n = len(right)
        for column in right.T:
            for i in range(n):
                for k in range(i):
                    column[i] = self._less(column[i], self.rows[i, k], column[k])
            for i in reversed(range(n)):
                for k in range(i + 1, n):
                    column[i] = self._less(column[i], self.rows[i, k], column[k])
                column[i] = self.s.number(np.true_divide, column[i], self.rows[i, i])
        return right

    def inverse(self) -> Grid:
        """The inverse: that of the matrix with its rows exchanged, then its columns exchanged in turn."""
        one: Any = self.s.graph.const(1.0)
        identity = np.where(np.eye(len(self.rows), dtype=bool), one, None)
        inverse = self._solve(identity)
        for test, k, i in reversed(self.exchanges):
            self._exchange(inverse.T, test, k, i)
        return inverse

    def determinant(self) -> Node:
        """The product of the pivots, with the sign of the exchanges."""
        return self._signed([self.rows[i, i] for i in range(len(self.rows))])

    def sign_and_logarithm(self) -> tuple[Node, Node]:
        """Of the determinant."""
        s = self.s
        pivots = [self.rows[i, i] for i in range(len(self.rows))]
        signs = [s.choice(s.number(np.less, pivot, 0.0), s.graph.const(-1.0), s.graph.const(1.0)) for pivot in pivots]
        total = s.graph.const(0.0)
        for pivot in pivots:
            total = s.number(np.add, total, s.number(np.log, s.number(np.abs, pivot)))
        return self._signed(signs), total

    def _signed(self, factors: list[Node]) -> Node:
        product, *rest = factors
        for factor in rest:
            product = self.s.number(np.multiply, product, factor)
        for test, _, _ in self.exchanges:
            product = self.s.choice(test, self.s.number(np.negative, product), product)
        return product


def cholesky(s: Scalarizer, a: Grid) -> Grid:
    """The lower factor."""
    n = len(a)
    factor = np.full((n, n), s.graph.const(0.0), object)
    for j in range(n):
        for i in range(j, n):
            value = a[i, j]
            for k in range(j):
                value = s.number(np.subtract, value, s.number(np.multiply, factor[i, k], factor[j, k]))
            if i == j:  # a root that raises where LAPACK gives up, at what is no number, and at infinity
                fits = s.number(AND, s.number(np.greater, value, 0.0), s.number(np.less, value, np.inf))
                value = s.choice(fits, value, s.graph.const(-1.0))
            factor[i, j] = s.number(np.sqrt, value) if i == j else s.number(np.true_divide, value, factor[j, j])
    return factor
