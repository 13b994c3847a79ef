"""A dictionary of which a function names nothing but items, by constant keys, is as many locals in the traced function.

``log = {"x": []}``, ``log["x"].append(x)``, ``np.mean(log["x"])`` is ``log_x = []``, ``log_x.append(x)``, ``np.mean(log_x)``:
what is known of loops over locals holds for it, too. Where it is returned, it is made.
"""

from __future__ import annotations

import ast
from typing import Any

from symgrad.source.syntax import (
    LOCAL_READERS,
    FunctionNode,
    assigned,
    copied,
    fresh,
    located,
    placed,
    walk,
)
from symgrad.source.texts import bound_beside


def as_locals(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            fields = _fields(node)
            if fields:
                _Fields(fields).generic_visit(node)
    return function


def _fields(function: ast.FunctionDef) -> dict[str, dict[str, str]]:
    """The dictionaries, by name, and the name of the local for each key."""
    every = [*walk(function)]
    names = {node.id for node in every if isinstance(node, ast.Name)}
    if not names.isdisjoint(LOCAL_READERS):
        return {}
    made = [node for node in every if isinstance(node, ast.Assign) and _is_made(node)]
    others = bound_beside(function, every)
    found = {}
    for node in made:
        name, keys = node.targets[0].id, [key.value for key in node.value.keys]  # type: ignore[attr-defined]
        if name not in others and _is_taken_apart(function, name, {*keys}):
            found[name] = {key: fresh(f"{name}_{key}" if key.isidentifier() else f"{name}_item", names) for key in keys}
    return found


def _names(node: ast.AST) -> list[ast.Name]:
    return [part for part in walk(node) if isinstance(part, ast.Name)]


def _is_made(node: ast.Assign) -> bool:
    """Whether it is ``name = {"key": value, ...}``."""
    if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Name) or not isinstance(node.value, ast.Dict):
        return False
    keys = [key.value if isinstance(key, ast.Constant) else None for key in node.value.keys]
    return bool(keys) and all([type(key) is str for key in keys]) and len({*keys}) == len(keys)


def _is_taken_apart(function: ast.FunctionDef, name: str, keys: set[str]) -> bool:
    """Whether one statement makes what there is under a name, and others name its items alone, or return it."""
    stored = [part for part in _names(function) if part.id == name and not isinstance(part.ctx, ast.Load)]
    if len(stored) != 1:
        return False
    items: list[Any] = [part for part in walk(function) if _is_item(part, name)]
    if any([part.slice.value not in keys or isinstance(part.ctx, ast.Del) for part in items]):
        return False
    returned = [part for node in walk(function) if isinstance(node, ast.Return) for part in _names(node) if part.id == name]
    known = {id(part.value) for part in items} | {id(part) for part in returned}
    return all([id(part) in known for part in _names(function) if part.id == name and isinstance(part.ctx, ast.Load)])


def _is_item(node: Any, name: str) -> bool:
    """Whether it is ``name["key"]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name) or node.value.id != name:
        return False
    return isinstance(node.slice, ast.Constant) and type(node.slice.value) is str


class _Fields(ast.NodeTransformer):
    """Puts locals in the place of items. The ``fields`` are their names, by that of a dictionary, and key."""

    def __init__(self, fields: dict[str, dict[str, str]]) -> None:
        self.fields = fields

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        fields = self.fields.get(getattr(node.targets[0], "id", ""))
        if fields is None:
            return node
        return [assigned(name, value, node) for name, value in zip(fields.values(), node.value.values, strict=True)]  # type: ignore[attr-defined]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        for name, fields in self.fields.items():
            if _is_item(node, name):
                return placed(ast.Name(fields[node.slice.value], copied(node.ctx)), node)  # type: ignore[attr-defined]
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        fields = self.fields.get(node.id)
        if fields is None or not isinstance(node.ctx, ast.Load):
            return node
        made = ast.Dict([ast.Constant(key) for key in fields], [ast.Name(name, ast.Load()) for name in fields.values()])
        return located(placed(made, node))
