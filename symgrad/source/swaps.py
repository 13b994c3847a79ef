"""Rows that are swapped only if they are two are swapped always: of one and the same, that changes nothing.

``if p != i: a[[i, p]] = a[[p, i]]``, as elimination with pivots has it, is a decision in each iteration; ``a[[i, p]] = a[[p,
i]]`` is none, nor is ``b[i], b[p] = b[p], b[i]``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from symgrad.source.syntax import FunctionNode, names_stored, owner_of, walk

_ENDS = (ast.Name, ast.Constant)


def always(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it: such swaps of arrays that it has made are done always."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            own = {*names_stored(node)}
            for part in [*walk(node)]:
                for field in ("body", "orelse", "finalbody"):
                    block = getattr(part, field, None)
                    if isinstance(block, list):
                        setattr(part, field, [new for item in block for new in (item.body if _is_swap(item, own) else [item])])
    return function


def _is_swap(node: Any, own: Collection[str]) -> bool:
    """Whether it is an ``if`` that two numbers differ, above swaps of rows of these numbers alone."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare) or len(node.test.ops) > 1:
        return False
    pair = [node.test.left, *node.test.comparators]
    if not isinstance(node.test.ops[0], ast.NotEq) or not all([isinstance(end, _ENDS) for end in pair]):
        return False
    one, other = map(ast.unparse, pair)
    return all([_swaps(statement, one, other, own) for statement in node.body])


def _swaps(node: ast.stmt, one: str, other: str, own: Collection[str]) -> bool:
    """Whether it is ``a[[i, p]] = a[[p, i]]``, or the same of other axes, or ``a[i], a[p] = a[p], a[i]``, of an array that is
    the function's ``own``."""
    if not isinstance(node, ast.Assign) or len(node.targets) > 1:
        return False
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts) == 2:
        first, second = map(ast.unparse, target.elts)
        known = isinstance(target.elts[0], ast.Subscript) and _is_own(target.elts[0], own)
        turned = [ast.unparse(end) for end in value.elts] == [second, first]
        rows = {f"{_of(target.elts[0])}[{end}]" for end in (one, other)} if known else set()
        return turned and {first, second} == rows
    if not isinstance(target, ast.Subscript) or not isinstance(value, ast.Subscript):
        return False
    if not _is_own(target, own) or _of(target) != _of(value):
        return False
    places = [part.elts if isinstance(part, ast.Tuple) else [part] for part in (target.slice, value.slice)]
    if len(places[0]) != len(places[1]):
        return False
    swapped = 0
    for first, second in zip(*places, strict=True):
        if isinstance(first, ast.List) and isinstance(second, ast.List):
            ends = [[ast.unparse(end) for end in part.elts] for part in (first, second)]
            swapped += ends in ([[one, other], [other, one]], [[other, one], [one, other]])
        elif not isinstance(first, ast.Slice) or ast.unparse(first) != ast.unparse(second):
            return False
    return swapped == 1 and sum([isinstance(part, ast.List) for part in places[0]]) == 1


def _is_own(node: ast.expr, own: Collection[str]) -> bool:
    array = owner_of(node)
    return isinstance(array, ast.Name) and array.id in own


def _of(node: Any) -> str:
    """What a subscript is of, as a text."""
    return ast.unparse(node.value)
