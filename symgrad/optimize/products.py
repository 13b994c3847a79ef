"""Products of big arrays in derivatives: what several have in common is multiplied once."""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from typing import Any

import numpy as np

from symgrad.ir import Node
from symgrad.optimize.factors import SEVERAL, is_large
from symgrad.optimize.rewriting import Simplifier, const, is_op
from symgrad.program import Program

Factor = Any  # a node, a number, or a tuple: the product of two of them
Pair = frozenset[Factor]


def products(program: Program) -> Program:
    """The same program with fewer multiplications of large arrays."""
    nodes = program.nodes()
    found = [node for node in nodes if _is_product(node)]
    if len(found) < 2:
        return program
    common = _Common(nodes, program.roots(), found)
    return _Multiplier(program, common.whole).run() if common.count() < len(common.derived) else program


def _is_product(node: Node) -> bool:
    """Whether a node multiplies large arrays of one shape and dtype, or one by a number."""
    alike = is_op(node, np.multiply) and is_large(node)
    return alike and all(isinstance(const(arg), (int, float)) or arg.aval == node.aval for arg in node.args)


class _Common:
    """Products taken apart; then pairs of their factors are put together, as long as that saves a multiplication.

    ``whole`` has the products as they come out.
    """

    def __init__(self, nodes: list[Node], roots: list[Node], found: list[Node]) -> None:
        users: dict[Node, list[Node | None]] = {node: [None] for node in roots}
        for node in nodes:
            for arg in node.args:
                users.setdefault(arg, []).append(node)
        self.derived = {node for node in found if node.phase is not None and not node.exact}
        self.made: dict[Pair, Factor] = {}  # the products of two that are there
        self.parts: dict[Node, Factor] = {}  # of products that only others need, what they are made of
        self.whole: dict[Node, Factor] = {}  # of all others
        self.factors: dict[Node, list[Factor]] = {}
        for node in found:
            parts = tuple([self.parts.get(arg, _value(arg)) for arg in node.args])
            if node not in self.derived:  # as the user wrote it
                self.made[frozenset(map(_value, node.args))] = node
            elif 2 * len(_factors(parts)) <= SEVERAL and self.derived.issuperset(users[node]) and _are_others(users[node]):
                self.parts[node] = parts
            else:
                self.whole[node], self.factors[node] = parts, _factors(parts)
        self.places: dict[Pair, dict[Node, None]] = {}
        self.queue: list[tuple[int, bool, int, Pair]] = []  # those that save most come first, and what is there
        self.order = itertools.count()
        for node in self.factors:
            self._note(node)
        while self.queue:
            saved, _, _, pair = heapq.heappop(self.queue)
            if saved == -self._saved(pair):
                self._put_together(pair)

    def count(self) -> int:
        """How many multiplications there are."""
        seen, waiting = set[Factor](), list(self.whole.values())
        while waiting:
            factor = waiting.pop()
            if isinstance(factor, tuple) and factor not in seen:
                seen.add(factor)
                waiting += factor
        return len(seen)

    def _saved(self, pair: Pair) -> int:
        """How many multiplications a pair saves."""
        return len(self.places[pair]) - (pair not in self.made)

    def _note(self, node: Node) -> None:
        for pair in _pairs(self.factors[node]):
            self.places.setdefault(pair, {})[node] = None
            self._wait(pair)

    def _wait(self, pair: Pair) -> None:
        if self._saved(pair) > 0:
            heapq.heappush(self.queue, (-self._saved(pair), pair not in self.made, next(self.order), pair))

    def _put_together(self, pair: Pair) -> None:
        """Multiply a pair first, wherever it is found."""
        for node in list(self.places[pair]):
            factors = self.factors[node]
            pairs = _pairs(factors)
            for other in pairs:
                del self.places[other][node]
                self._wait(other)
            i, j = pairs[pair]
            product = self.made.setdefault(pair, (factors[i], factors[j]))
            if isinstance(product, Node) and product.index > node.index:  # it is not there yet
                product = factors[i], factors[j]
            self.factors[node] = [*factors[:i], product, *factors[i + 1 : j], *factors[j + 1 :]]
            self.whole[node] = functools.reduce(lambda a, b: (a, b), self.factors[node])
            self._note(node)


def _value(arg: Node) -> Factor:
    number = const(arg)
    return arg if number is None else number


def _are_others(users: list[Node | None]) -> bool:
    """Whether no product needs it twice."""
    return len(set(users)) == len(users)


def _factors(whole: Factor) -> list[Factor]:
    """What a product is made of, numbers as one."""
    found, waiting = list[Factor](), [whole]
    while waiting:
        factor = waiting.pop()
        if isinstance(factor, tuple):
            waiting += factor[::-1]
        else:
            found.append(factor)
    number = math.prod([factor for factor in found if not isinstance(factor, Node)])
    found = [factor for factor in found if isinstance(factor, Node)]
    return found if number == 1 else [number, *found]


def _pairs(factors: list[Factor]) -> dict[Pair, tuple[int, int]]:
    """The pairs of factors, and where they are."""
    return {frozenset((a, b)): (i, j) for (i, a), (j, b) in itertools.combinations(enumerate(factors), 2)}


class _Multiplier(Simplifier):
    """Rebuilds a program with products multiplied in another way."""

    def __init__(self, program: Program, whole: dict[Node, Factor]) -> None:
        super().__init__(program, {})
        self.whole = whole

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        return self._product(node, self.whole[node]) if node in self.whole else super().visit(node, args)

    def _product(self, node: Node, factor: Factor) -> Node:
        """A factor, or the product of two, for ``node``."""
        if isinstance(factor, tuple):
            return self.visit_as(node.op, node, tuple([self._product(node, part) for part in factor]))
        return self.mapping[factor] if isinstance(factor, Node) else self.graph.const(factor)
