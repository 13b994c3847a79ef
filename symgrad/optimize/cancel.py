"""Whether what a derivative adds up along some axes comes to nothing, as algebra tells.

What is added up is written as a sum of products of powers. A factor that is alike along those axes leaves the sum; of the
rest, one sum stands for each product: ``sum((y / t - sum(y * e) / t**2) * e)``, where ``t = sum(e)``, is
``S(y e) / S(e) - S(y e) / S(e)**2 * S(e)``, whose terms cancel. So it is with whatever reaches the shift of a softmax.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from symgrad.ir import Node
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.optimize.rewriting import Simplifier, axes_of, const, elements_of, is_factor, is_op, split

TERMS = 16  # of a sum of products
NODES = 64  # that are looked at for one sum
Powers = frozenset[tuple[Any, int]]  # factors with their exponents
Product = tuple[Powers, Powers]  # of those that are alike along the axes, and of the others
Terms = Mapping[Product, list[float]]  # products, and the numbers that they are there with
_NONE: Powers = frozenset()


class _TooMany(Exception):
    """There are more terms than it is worth to look at."""


def comes_to_nothing(s: Simplifier, x: Node, axis: tuple[int, ...]) -> bool:
    """Whether the sum of ``x`` along these axes is zero, but for rounding."""
    return _is_zero(_Sums(s, x.aval.shape, axis), x, True)


def is_nothing(s: Simplifier, x: Node, total: Node) -> bool:
    """Whether ``x`` is zero, but for rounding; ``total`` is one of the sums in it."""
    return elements_of(x) == elements_of(total) and _is_zero(_Sums(s, total.args[0].aval.shape, axes_of(total)), x, False)


def _is_zero(sums: _Sums, x: Node, added_up: bool) -> bool:
    try:
        terms = sums.total(sums.of(x, True)) if added_up else sums.of(x, False)
        terms = sums.without_divisors(terms)
    except _TooMany:
        return False
    rounding = 4 * float(np.finfo(x.aval.dtype).eps) if x.aval.dtype.char in "ef" else 1e-15
    alone = [abs(math.fsum(c)) <= rounding * max(map(abs, c)) for c in terms.values()]
    return len(sums.seen) > 1 and bool(terms) and all(alone)


class _Sums:
    """Values of the full ``shape``, or of one number for each sum along ``axis``, as sums of products."""

    def __init__(self, s: Simplifier, shape: tuple[int, ...], axis: tuple[int, ...]) -> None:
        self.s, self.shape, self.axis = s, shape, axis
        self.each = tuple([1 if i in axis else n for i, n in enumerate(shape)])
        self.many = math.prod(self.each)
        self.count = math.prod(shape) // max(self.many, 1)
        self.seen: dict[tuple[Node, bool], Terms] = {}
        self.divisors: dict[Node, Terms] = {}  # alike along the axes, of several terms

    def of(self, x: Node, whole: bool) -> Terms:
        """One value; ``whole``: it goes along the axes, too, if it has them."""
        x, whole = self._bare(x, whole)
        if (x, whole) not in self.seen:
            if len(self.seen) >= NODES:
                raise _TooMany
            self.seen[x, whole] = {}  # counted from now on
            self.seen[x, whole] = self._of(x, whole)
        return self.seen[x, whole]

    def _bare(self, x: Node, whole: bool) -> tuple[Node, bool]:
        """A value, in whatever shape if it is alike along the axes, and whether it is not."""
        each = (1,) * (len(self.each) - len(x.aval.shape)) + x.aval.shape == self.each
        whole = whole and elements_of(x) != 1 and not each
        return x if whole else in_other_shape(x), whole

    def _of(self, x: Node, whole: bool) -> Terms:
        if is_factor(x, x.aval.dtype) or isinstance(const(x), np.floating):
            return _number(float(const(x)))
        c, term = split(x)
        if term is not x:
            return _times(self.of(term, whole), _number(c))
        if is_op(x, np.broadcast_to) and (whole or elements_of(x.args[0]) == 1):
            return self.of(x.args[0], whole)
        if x.aval.dtype.kind != "f" or x.exact or (x.op in _ARITHMETIC and not whole and not _is_even(x)):
            return _atom(x, whole)
        if is_op(x, np.add) or is_op(x, np.subtract):
            sign = 1.0 if is_op(x, np.add) else -1.0
            return _plus(self.of(x.args[0], whole), _times(self.of(x.args[1], whole), _number(sign)))
        if is_op(x, np.multiply):
            return _times(self.of(x.args[0], whole), self.of(x.args[1], whole))
        if is_op(x, np.square):
            return _times(self.of(x.args[0], whole), self.of(x.args[0], whole))
        if is_op(x, np.true_divide):
            return _times(self.of(x.args[0], whole), self._inverse(x.args[1], whole))
        if whole and x.op is index.INDEX_ADD and x.aval.shape == self.shape and writes_one_each(self.s, x, self.axis):
            return _plus(self.of(x.args[0], True), _atom(("put", x), True))
        if is_op(x, np.cumsum) and whole and self._is_scan(x):
            return _atom(("cumsum", x.args[0]), True)
        if is_op(x, np.outer) and whole and len(self.axis) == 1 and x.aval.shape == self.shape:
            alike, other = x.args if self.axis == (1,) else x.args[::-1]
            known = elements_of(alike) == self.many
            return _times(self.of(alike, False), _atom(other, True)) if known else _atom(x, True)
        if is_op(x, np.matmul) and not whole and len(self.axis) == len(x.aval.shape) == 1:
            a, v = x.args if self.axis == (1,) else x.args[::-1]
            known = a.aval.shape == self.shape and len(v.aval.shape) == 1
            return self.total(_times(self.of(a, True), _atom(v, True))) if known else _atom(x, False)
        inner = is_op(x, np.sum) and not whole and x.args[0].aval.shape == self.shape and axes_of(x) == self.axis
        if inner and x.args[0].aval.dtype == x.aval.dtype and "dtype" not in dict(x.params):
            return self.total(self.of(x.args[0], True))
        return _atom(x, whole)

    def _is_scan(self, x: Node) -> bool:
        """Whether it goes along the axis, of which there is but one."""
        return x.aval.shape == self.shape and len(self.shape) == 1 and x.aval.dtype == x.args[0].aval.dtype

    def total(self, terms: Terms) -> Terms:
        """The sum along the axes."""
        found: Terms = {}
        for (alike, others), numbers in terms.items():
            left: Terms = {(alike, _NONE): numbers}
            if (turned := self._turned_round(others)) is not None:
                left = _times(left, self.total(turned))
            elif not others:
                left = _times(left, _number(float(self.count)))
            elif (value := self._put(others)) is not None:
                left = _times(left, self.of(value, False))
            else:
                left = _times(left, _atom(others, False))
            found = _plus(found, left)
        return found

    def _inverse(self, x: Node, whole: bool) -> Terms:
        """``1 / x``: of one product, that of its factors."""
        terms = self.of(x, whole)
        if len(terms) == 1:
            (((alike, others), numbers),) = terms.items()
            if len(numbers) == 1 and numbers[0]:
                return {(_turned(alike), _turned(others)): [1.0 / numbers[0]]}
        x, whole = self._bare(x, whole)
        if not whole:
            self.divisors[x] = terms
        return _atom(x, whole, -1)

    def without_divisors(self, terms: Terms) -> Terms:
        """These times what they are divided by, where that has several terms itself."""
        for x, divisor in self.divisors.items():
            powers = [power for alike, _ in terms for factor, power in alike if factor is x]
            for _ in range(max([-power for power in powers], default=0)):
                found: Terms = {}
                for (alike, others), numbers in terms.items():
                    divided = any([factor is x and power < 0 for factor, power in alike])
                    found = _plus(found, _times({(alike, others): numbers}, _atom(x, False) if divided else divisor))
                terms = found
        return terms

    def _turned_round(self, others: Powers) -> Terms | None:
        """``u * cumsum(v)`` for ``flip(cumsum(flip(u))) * v``, which has the same sum."""
        if len(others) == 2 and {power for _, power in others} == {1}:
            for (scan, _), (v, _) in (others, [*others][::-1]):
                inner = scan.args[0] if type(scan) is Node and is_op(scan, np.flip) else None
                if inner is not None and is_op(inner, np.cumsum) and self._is_scan(inner) and is_op(inner.args[0], np.flip):
                    return _times(self.of(inner.args[0].args[0], True), _atom(("cumsum", v), True))
        return None

    def _put(self, others: Powers) -> Node | None:
        """What is added into each row, if a product is zeros with that in them."""
        ((factor, power), *more) = others
        if more or power != 1:
            return None
        if type(factor) is tuple and factor[0] == "put":
            return factor[1].args[1]  # type: ignore[no-any-return]
        if type(factor) is Node and is_op(factor, np.diag) and factor.aval.shape == self.shape and not factor.params:
            return factor.args[0] if len(self.axis) == len(factor.args[0].aval.shape) == 1 else None
        scattered = type(factor) is Node and factor.op is index.SCATTER and factor.aval.shape == self.shape
        return factor.args[0] if scattered and writes_one_each(self.s, factor, self.axis) else None


_ARITHMETIC = {REGISTRY[key] for key in (np.add, np.subtract, np.multiply, np.square, np.true_divide)}


def _is_even(x: Node) -> bool:
    """Whether all that an operation on elements takes has as many as it, or one."""
    return all([elements_of(arg) == 1 or arg.aval.shape == x.aval.shape for arg in x.args])


def _number(c: float) -> Terms:
    return {(_NONE, _NONE): [c]}


def _atom(x: Any, whole: bool, power: int = 1) -> Terms:
    """A factor alone, of which no more is known."""
    powers: Powers = frozenset({(x, power)})
    return {(_NONE, powers) if whole else (powers, _NONE): [1.0]}


def _plus(one: Terms, other: Terms) -> Terms:
    found = {product: [*numbers] for product, numbers in one.items()}
    for product, numbers in other.items():
        found.setdefault(product, []).extend(numbers)
    return _few(found)


def _times(one: Terms, other: Terms) -> Terms:
    found: dict[Product, list[float]] = {}
    for (alike, others), numbers in one.items():
        for (more, rest), factors in other.items():
            product = _joined(alike, more), _joined(others, rest)
            found.setdefault(product, []).extend([a * b for a in numbers for b in factors])
    return _few(found)


def _few(terms: Terms) -> Terms:
    if sum(map(len, terms.values())) > 2 * TERMS or len(terms) > TERMS:
        raise _TooMany
    return terms


def _joined(one: Powers, other: Powers) -> Powers:
    if not one or not other:
        return one or other
    powers = dict(one)
    for factor, power in other:
        powers[factor] = powers.get(factor, 0) + power
    return frozenset([(factor, power) for factor, power in powers.items() if power])


def _turned(powers: Iterable[tuple[Any, int]]) -> Powers:
    return frozenset([(factor, -power) for factor, power in powers])


def writes_one_each(s: Simplifier, x: Node, axis: tuple[int, ...]) -> bool:
    """Whether it is zeros, or another array, with one value, or one of as many, added into each row along an axis."""
    if x.op not in (index.SCATTER, index.INDEX_ADD) or axis not in ((0,), (1,)):
        return False
    if dict(x.params)["spec"] != (index.Hole(0), index.Hole(1)):
        return False
    value, *places = x.args[1:] if x.op is index.INDEX_ADD else x.args
    rows = s.graph.arrays.get(places[1 - axis[0]])
    if rows is None or not np.array_equal(rows.ravel(), np.arange(x.aval.shape[1 - axis[0]])):
        return False
    if places[axis[0]].aval.shape != rows.shape:
        return False
    return value.aval.shape in ((), rows.shape) and value.aval.dtype == x.aval.dtype


def in_other_shape(x: Node) -> Node:
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
