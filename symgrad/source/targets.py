"""What is assigned to several names at once is assigned to one after the other.

``a = b = f(x)`` is ``a = f(x)``, ``b = a``: so what follows only meets statements that assign to one target, and in a loop each
name goes round on its own. ``best, s = None, 0.0`` is two statements, too, where one of the constants is None or a tuple:
others ask what a name only ever stands for.
"""

from __future__ import annotations

import ast
from typing import Any

from symgrad.source.syntax import FunctionNode, copied, is_none, located, names_stored, paired, parts_of, placed, walk


def one_by_one(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as is what is in it."""
    waiting: list[Any] = [function]
    while waiting:
        node = waiting.pop()
        for _, field in ast.iter_fields(node):
            if isinstance(field, list) and any([isinstance(part, ast.Assign) for part in field]):
                field[:] = [statement for part in field for statement in _split(part)]
        waiting += parts_of(node)
    return function


def _split(node: Any) -> list[Any]:
    if not isinstance(node, ast.Assign):
        return [node]
    if len(node.targets) == 1:
        return _item_by_item(node) if isinstance(node.targets[0], ast.Tuple) else [node]
    again = _again(node)
    if again is None:
        return [node]
    pairs = zip(node.targets, [node.value, *[copied(again) for _ in node.targets[1:]]], strict=True)
    return [located(placed(ast.Assign([target], value), node)) for target, value in pairs]


def _item_by_item(node: ast.Assign) -> list[Any]:
    """Several constants that several names get."""
    target: Any = node.targets[0]
    value = node.value
    if not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
        return [node]
    named = all([isinstance(item, ast.Name) for item in target.elts])
    some = any([is_none(item) or isinstance(item, ast.Tuple) for item in value.elts])
    if not (named and some) or not all([isinstance(part, _CONSTANT) for item in value.elts for part in walk(item)]):
        return [node]
    return [located(placed(ast.Assign([one], item), node)) for one, item in paired(target, value)]


_CONSTANT = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)


def _again(node: ast.Assign) -> ast.expr | None:
    """What is the same value once more, for all targets but the first; None if there is no such thing for sure: what is put
    into an object may change names."""
    first, *others = node.targets
    if isinstance(node.value, ast.Constant):
        return node.value
    if any([isinstance(part, (ast.Attribute, ast.Subscript)) for target in node.targets[:-1] for part in walk(target)]):
        return None
    bound = {name for target in others for name in names_stored(target)}
    if isinstance(node.value, ast.Name) and node.value.id not in {*bound, *names_stored(first)}:
        return node.value
    if isinstance(first, ast.Name) and first.id not in bound:
        return ast.Name(first.id, ast.Load())
    return None
