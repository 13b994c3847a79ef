"""Rows that are swapped only if they are two are swapped always: of one and the same, that changes nothing.

``if p != i: a[[i, p]] = a[[p, i]]``, as elimination with pivots has it, is a decision in each iteration; ``a[[i, p]] = a[[p,
i]]`` is none, nor is ``b[i], b[p] = b[p], b[i]``. Only where there are no such rows, it is done as the ``if`` says.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any

from symgrad.source.syntax import SCOPES, FunctionNode, copied, declared, located, names_stored, parts_of, placed, walk

TWO = "__symgrad_two__"  # tells whether rows are to be swapped
_ENDS = (ast.Name, ast.Constant)


def always(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it: such swaps of arrays that it has made are done always."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            never = {name.id for name in walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Del)}
            made = set[str]()
            for statement in node.body:
                for part in _ifs(statement):
                    _change(part, made - never - declared(node))
                if isinstance(statement, ast.Assign):
                    made |= {*names_stored(statement)}
    return function


def _ifs(node: ast.AST) -> Iterator[ast.If]:
    """The ``if``s in a statement, but for those of functions and classes that it defines."""
    if not isinstance(node, SCOPES):
        if isinstance(node, ast.If):
            yield node
        for part in parts_of(node):
            yield from _ifs(part)


def _change(node: ast.If, own: Collection[str]) -> None:
    """Ask otherwise, if it is an ``if`` that two numbers differ, above swaps of rows of these numbers alone."""
    if node.orelse or not isinstance(node.test, ast.Compare) or len(node.test.ops) > 1:
        return
    pair = [node.test.left, *node.test.comparators]
    if not isinstance(node.test.ops[0], ast.NotEq) or not all([isinstance(end, _ENDS) for end in pair]):
        return
    one, other = map(ast.unparse, pair)
    axes = [_swaps(statement, one, other, own) for statement in node.body]
    if None not in axes:
        rows = [ast.Tuple([copied(owner), ast.Constant(axis)], ast.Load()) for owner, axis in axes]  # type: ignore[misc]
        made = ast.Call(ast.Name(TWO, ast.Load()), [*pair, *rows], [])
        node.test = located(placed(made, node.test))


def _swaps(node: ast.stmt, one: str, other: str, own: Collection[str]) -> tuple[ast.expr, int] | None:
    """The array and the axis of ``a[[i, p]] = a[[p, i]]``, or the same of other axes, or ``a[i], a[p] = a[p], a[i]``, of an
    array that is the function's ``own``; None for other statements."""
    if not isinstance(node, ast.Assign) or len(node.targets) > 1:
        return None
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts) == 2:
        first, second = map(ast.unparse, target.elts)
        known = isinstance(target.elts[0], ast.Subscript) and _is_own(target.elts[0], own)
        turned = [ast.unparse(end) for end in value.elts] == [second, first]
        rows = {f"{_of(target.elts[0])}[{end}]" for end in (one, other)} if known else set()
        return (target.elts[0].value, 0) if turned and {first, second} == rows else None  # type: ignore[attr-defined]
    if not isinstance(target, ast.Subscript) or not isinstance(value, ast.Subscript):
        return None
    if not _is_own(target, own) or _of(target) != _of(value):
        return None
    places = [part.elts if isinstance(part, ast.Tuple) else [part] for part in (target.slice, value.slice)]
    if len(places[0]) != len(places[1]):
        return None
    swapped: list[int] = []
    for axis, (first, second) in enumerate(zip(*places, strict=True)):
        if isinstance(first, ast.List) and isinstance(second, ast.List):
            ends = [[ast.unparse(end) for end in part.elts] for part in (first, second)]
            if ends not in ([[one, other], [other, one]], [[other, one], [one, other]]):
                return None
            swapped.append(axis)
        elif not isinstance(first, ast.Slice) or ast.unparse(first) != ast.unparse(second):
            return None
    return (target.value, swapped[0]) if len(swapped) == 1 else None


def _is_own(node: ast.Subscript, own: Collection[str]) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in own


def _of(node: Any) -> str:
    """What a subscript is of, as a text."""
    return ast.unparse(node.value)
