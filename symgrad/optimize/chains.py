"""Products of several matrices in derivatives, in the code that runs: multiplied in the order that costs least.

``a @ b @ v`` is ``a @ (b @ v)``: a vector in place of a large matrix. Derivatives are full of such chains. Those that could
have a product in common are ordered together, so that what several of them need is computed once.

What the user multiplies is multiplied as written, and stays whole in derivatives: ``d @ x`` may be differences of large
numbers, to the last digit, of which ``d @ (x @ v)`` leaves few. But stacks of rows times weights, which are not like that, may
be taken apart.

Rounding must not grow. A product is wrong by what its last factors are as large as, times what they are multiplied with on the
way out. Of three factors, either order has the worst case in it: all of them as they are. But in ``(a @ b) @ (c @ d)`` the
products may be small where their factors are large, which ``a @ (b @ c) @ d`` would never see.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from symgrad.ir import Aval, Node
from symgrad.optimize.exact import settled
from symgrad.optimize.rewriting import Simplifier, is_op
from symgrad.program import Program

LONGEST = 5  # factors of a chain
MANY = 2048  # ways to order some chains, up to which all of them are looked at
CALL = 25_000  # products of numbers that take as long as a call
MOVED = 8  # products of numbers that take as long as writing one
GAIN = 0.9  # of the cost as written, from which on it stays as written


class Factor(NamedTuple):
    """The node at a place of the program: a matrix, a vector, or a stack of matrices; with ``turned`` transposed."""

    place: int
    turned: bool
    node: Node

    def rows(self) -> int:
        """How many rows each matrix has; of a vector, which may be a row itself, the length."""
        shape = self.node.aval.shape
        return int(shape[-1 if self.turned or len(shape) == 1 else -2])

    def stack(self) -> tuple[int, ...]:
        """The axes before those of the matrices."""
        return tuple(self.node.aval.shape[:-2])

    def transposed(self) -> Factor:
        """The same with its last two axes the other way around."""
        return self._replace(turned=not self.turned) if len(self.node.aval.shape) > 1 else self


class Chain(NamedTuple):
    """The product of factors; with ``summed`` added up over the stack that some of them are."""

    factors: tuple[Factor, ...]
    summed: bool = False

    def transposed(self) -> Chain:
        """The product with its last two axes the other way around."""
        return Chain(tuple([factor.transposed() for factor in reversed(self.factors)]), self.summed)

    def either(self) -> Chain:
        """The same of a chain and its transpose."""
        return min(self, self.transposed(), key=lambda chain: [factor[:2] for factor in chain.factors])

    def part(self, start: int, stop: int) -> Chain:
        """The product of some neighbours, which is summed where all that is stacked is among them."""
        others = self.factors[:start] + self.factors[stop:]
        return Chain(self.factors[start:stop], self.summed and not any(factor.stack() for factor in others))

    def cut(self, i: int) -> tuple[Chain, Chain]:
        """What the product is made of."""
        return self.part(0, i), self.part(i, len(self.factors))

    def stack(self) -> tuple[int, ...]:
        """The axes before those of the matrices."""
        return () if self.summed else next(filter(None, [factor.stack() for factor in self.factors]), ())


Orders = dict[Chain, int]  # where products are cut in two; of those and their transposes, one is there


def chains(program: Program) -> Program:
    """The same program with chains of products in a better order."""
    products = {node for node in program.nodes() if _is_product(node)}
    if not any([_bare(x)[0] in products for node in products for x in _rows_of_stacks(node) or node.args]):
        return program
    places = {node: place for place, node in enumerate(program.nodes())}
    exact = settled(program)
    users = [node for node in places if _turned(node) is None]
    uses = Counter([_bare(x)[0] for x in (*itertools.chain(*[node.args for node in users]), *program.roots())])
    whole = {node for node in places if node.phase is None and not (uses[node] > 1 and _is_layer(node))}
    written: dict[Node, Orders] = {}
    found: dict[Node, Chain] = {}
    for node in places:
        if node not in exact:
            _read(node, places, found, written, whole)
    if not any(len(chain.factors) > 2 for chain in found.values()):
        return program
    best: Orders = {}
    for nodes in _groups(_wanted(program, found), found):
        best |= _ordered([found[node] for node in nodes], [written[node] for node in nodes])
    return _Builder(program, found, best).run() if best else program


# -- reading -------------------------------------------------------------------------------------------------------


def _read(node: Node, places: dict[Node, int], found: dict[Node, Chain], written: dict[Node, Orders], whole: set[Node]) -> None:
    """Note which chain a product is, and the order in which it is written; those that are ``whole`` are only factors."""
    if not _is_product(node):
        return
    pair = _rows_of_stacks(node)
    summed, stack = pair is not None, pair[0].aval.shape[:-2] if pair else node.aval.shape[:-2]
    sides, orders, room = list[Chain](), Orders(), LONGEST - 2
    for first, x in zip((True, False), pair or node.args, strict=True):
        x, turned = _bare(x)
        if x.aval.shape[:-2] not in ((), stack):
            return
        side = Chain((Factor(places[x], False, x),))
        inner = found.get(x, side)
        apart = inner.summed and (stack or any(chain.summed for chain in sides))  # another sum than that of the others
        if x in found and x not in whole and node.phase is not None and len(inner.factors) - 1 <= room and not apart:
            side = inner
            orders |= written[x]
            room -= len(inner.factors) - 1
        if len(x.aval.shape) == 1:
            turned = len(side.factors[-1 if first else 0].node.aval.shape) == 1  # vectors are at the ends of chains
        else:
            turned ^= first and summed
        sides.append(side.transposed() if turned else side)
    left, right = sides
    chain = Chain(left.factors + right.factors, summed or left.summed or right.summed)
    found[node] = chain
    written[node] = orders | {chain.either(): _place(chain, len(left.factors))}


def _is_product(node: Node) -> bool:
    """Whether it is a product of matrices, of a matrix and a vector, or of stacks of matrices."""
    if not (is_op(node, np.matmul) or is_op(node, np.dot)) or node.params or node.exact or type(node.aval) is not Aval:
        return False
    if not node.aval.shape or 0 in node.aval.shape or node.aval.dtype.kind not in "fc":
        return False
    if any(x.aval.dtype != node.aval.dtype or not x.aval.shape or 0 in x.aval.shape for x in node.args):
        return False
    least, most = sorted(len(x.aval.shape) for x in node.args)
    return most < 3 or (least > 1 and is_op(node, np.matmul))


def _is_layer(node: Node) -> bool:
    """Whether it is a stack of rows times weights."""
    return _is_product(node) and [len(x.aval.shape) > 2 for x in node.args] == [True, False]


def _rows_of_stacks(node: Node) -> tuple[Node, Node] | None:
    """``(a, b)`` of ``a.reshape((-1, m)).T @ b.reshape((-1, n))``, the sum of ``a[i].T @ b[i]`` over two stacks."""
    turned, right = node.args
    left = _turned(turned)
    if left is None or not is_op(left, np.reshape) or not is_op(right, np.reshape):
        return None
    (a,), (b,) = left.args, right.args
    if any("order" in dict(x.params) for x in (left, right)):
        return None
    stacks = len(a.aval.shape) > 2 and a.aval.shape[:-1] == b.aval.shape[:-1]
    rows = all(len(x.aval.shape) == 2 and x.aval.shape[1] == x.args[0].aval.shape[-1] for x in (left, right))
    return (a, b) if stacks and rows else None


def _bare(x: Node) -> tuple[Node, bool]:
    """What matrices are made of by transposing them, and whether they are transposed."""
    turned = False
    while (inner := _turned(x)) is not None:
        x, turned = inner, not turned
    return x, turned


def _turned(x: Node) -> Node | None:
    """The matrices of which these are the transposes."""
    params, n = dict(x.params), len(getattr(x.aval, "shape", ()))
    if is_op(x, np.transpose) and not params and n == 2:
        return x.args[0]
    if is_op(x, np.swapaxes) and {params["axis1"] % n, params["axis2"] % n} == {n - 2, n - 1}:
        return x.args[0]
    return None


def _wanted(program: Program, found: dict[Node, Chain]) -> list[Node]:
    """The products that are needed as such, not only as parts of chains."""
    wanted, needed = list[Node](), set(program.roots())
    for node in reversed(program.nodes()):
        if node in needed:
            chain = found.get(node)
            needed.update(node.args if chain is None else [factor.node for factor in chain.factors])
            wanted += [] if chain is None else [node]
    return wanted[::-1]


# -- ordering ------------------------------------------------------------------------------------------------------


def _groups(nodes: Sequence[Node], found: dict[Node, Chain]) -> Iterator[list[Node]]:
    """Products in groups; those of different groups have no chain in common."""
    parts = {node: _parts(found[node]) for node in nodes}
    users: dict[Chain, list[Node]] = {}
    for node in nodes:
        for part in parts[node]:
            users.setdefault(part, []).append(node)
    left = dict.fromkeys(nodes)
    while left:
        group = [left.popitem()[0]]
        for node in group:  # which grows
            for other in itertools.chain(*[users.pop(part, ()) for part in parts[node]]):
                if other in left:
                    del left[other]
                    group.append(other)
        yield group


def _parts(chain: Chain) -> set[Chain]:
    """All products that may be computed on the way to a chain's."""
    ends = itertools.combinations(range(len(chain.factors) + 1), 2)
    return {chain.part(start, stop).either() for start, stop in ends if stop > start + 1}


def _ordered(wanted: Sequence[Chain], written: Sequence[Orders]) -> Orders:
    """The orders that cost least together; none where those as written cost hardly more."""
    counts = [len(chain.factors) - 1 for chain in wanted]
    if not 1 < math.prod(math.comb(2 * n, n) // (n + 1) for n in counts) <= MANY:
        return {}
    costs: dict[tuple[Chain, int], int] = {}

    def total(orders: Sequence[Orders]) -> int:
        """The costs of all products, of those in several orders once."""
        cuts = {cut for order in orders for cut in order.items()}
        for chain, i in cuts - costs.keys():
            costs[chain, i] = _cost(chain, i)
        return sum(map(costs.__getitem__, cuts))

    most = GAIN * total(written)
    if most < CALL * len(costs):  # nothing but calls
        return {}
    ways = [
        [order for order in _orders(chain) if _is_safe(chain, order, own)] for chain, own in zip(wanted, written, strict=True)
    ]
    best = min(itertools.product(*ways), key=total)
    return {chain: i for order in best for chain, i in order.items()} if total(best) < most else {}


def _is_safe(chain: Chain, order: Orders, written: Orders) -> bool:
    """Whether an order rounds nothing that is larger than what the written one rounds."""
    known = _ways_in(chain, written)
    return all(any(way <= other for other in known) for way in _ways_in(chain, order))


def _ways_in(chain: Chain, order: Orders) -> list[frozenset[int]]:
    """Where the chain is cut on each way to a product of two factors: the pieces are what that product's error is made of."""
    found, waiting = list[frozenset[int]](), [(0, len(chain.factors), frozenset[int]())]
    while waiting:
        start, stop, cuts = waiting.pop()
        part = chain.part(start, stop)
        cut = start + _place(part, order[part.either()])
        inner = [(i, j, cuts | {cut}) for i, j in ((start, cut), (cut, stop)) if j > i + 1]
        waiting += inner
        found += [] if inner else [cuts | {cut}]
    return found


def _orders(chain: Chain) -> Iterator[Orders]:
    """All orders of a chain."""
    if len(chain.factors) == 1:
        yield {}
    for i in range(1, len(chain.factors)):
        for left, right in itertools.product(*map(_orders, chain.cut(i))):
            yield {chain.either(): _place(chain, i)} | left | right


def _place(chain: Chain, i: int) -> int:
    """Where the one of a chain and its transpose that stands for both is cut."""
    return i if chain.either() == chain else len(chain.factors) - i


def _cost(chain: Chain, i: int) -> int:
    """About how long a product takes."""
    left, right = chain.cut(i)
    rows, summed, columns = left.factors[0].rows(), right.factors[0].rows(), right.factors[-1].transposed().rows()
    vectors = [len(x.node.aval.shape) == 1 for x in (chain.factors[0], chain.factors[-1])]
    rows, columns = (1 if vector else n for vector, n in zip(vectors, (rows, columns), strict=True))
    return rows * columns * (summed + MOVED) * math.prod(left.stack() or right.stack()) + CALL


# -- building ------------------------------------------------------------------------------------------------------


class _Builder(Simplifier):
    """Rebuilds a program with chains in the order that was found."""

    def __init__(self, program: Program, found: dict[Node, Chain], orders: Orders) -> None:
        super().__init__(program, {})
        self.found, self.orders = found, orders
        self.made: dict[Chain, Node] = {}

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        chain = self.found.get(node)
        if chain is None or chain.either() not in self.orders:
            return super().visit(node, args)
        start = len(self.graph)
        self.phase = node.phase
        new = self._product(chain)
        for made in self.graph.nodes[start:]:
            made.line, made.phase = node.line, node.phase
        new.name, new.active = new.name or node.name, new.active or node.active
        return new

    def _product(self, chain: Chain) -> Node:
        if len(chain.factors) == 1:
            (factor,) = chain.factors
            return self._transposed(self.mapping[factor.node], factor.turned)
        if chain in self.made:
            return self.made[chain]
        if chain.transposed() in self.made:
            return self._transposed(self.made[chain.transposed()])
        left, right = chain.cut(_place(chain, self.orders[chain.either()]))
        if left.stack() and right.stack() and chain.summed:
            rows = [
                self.call(np.reshape, x, shape=(-1, x.aval.shape[-1])) for x in map(self._product, (left.transposed(), right))
            ]
            new = self.call(np.matmul, self._transposed(rows[0]), rows[1])
        else:
            new = self.call(np.matmul, self._product(left), self._product(right))
        self.made[chain] = new
        return new

    def _transposed(self, x: Node, turned: bool = True) -> Node:
        n = len(x.aval.shape)
        if not turned or n == 1:
            return x
        return self.call(np.transpose, x) if n == 2 else self.call(np.swapaxes, x, axis1=n - 2, axis2=n - 1)
