"""Lists that functions within fill belong to an object, as lists that objects hold are known to loops.

``losses = []``, ``def note(x): losses.append(x)`` runs as ``holder = ...``, ``holder.losses = []``,
``def note(x): holder.losses.append(x)``: whoever asks for the list is seen, wherever the loop runs that calls ``note``.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from symgrad.source.constants import bound_anywhere
from symgrad.source.syntax import (
    LOCAL_READERS,
    SCOPES,
    FunctionNode,
    assigned,
    fresh,
    is_append,
    mentioned,
    names_read,
    names_stored,
    paired,
    placed,
    walk,
)

HOLDER = "__symgrad_holder__"  # what makes such an object


def held(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it."""
    for one in [part for part in walk(function) if isinstance(part, ast.FunctionDef)]:
        appended = _appended_within(one)
        known = appended and [name for name in _made(one) if name in appended and _is_alone(name, one)]
        if known and mentioned(one).isdisjoint(LOCAL_READERS):
            holder = fresh("holder", mentioned(one) | bound_anywhere(one))
            one.body = [_Held({*known}, holder).visit(statement) for statement in one.body]
            made = assigned(holder, ast.Call(ast.Name(HOLDER, ast.Load()), [], []), one.body[0])
            one.body.insert(ast.get_docstring(one, clean=False) is not None, made)
    return function


def _appended_within(function: ast.FunctionDef) -> set[str]:
    """The names of the lists, or of dicts with such, to which functions in it append."""
    inner = [part for part in walk(function) if isinstance(part, SCOPES) and part is not function]
    calls: list[Any] = [part for one in inner for part in walk(one) if is_append(part, (ast.Name, ast.Subscript))]
    owners = [call.func.value for call in calls]
    return {getattr(owner.value if isinstance(owner, ast.Subscript) else owner, "id", "") for owner in owners}


def _made(function: ast.FunctionDef) -> list[str]:
    """The names of the lists, and of dicts of lists, that a function makes by statements of its own, before it reads them."""
    found, seen = [], set[str]()
    for statement in function.body:
        alone = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        seen |= names_read(statement).keys()
        for target, value in paired(statement.targets[0], statement.value) if alone else ():  # type: ignore[attr-defined]
            if isinstance(target, ast.Name) and target.id not in seen and _is_list(value):
                found.append(target.id)
        seen |= {part.id for part in walk(statement) if isinstance(part, ast.Name)}
    return found


def _is_list(value: ast.expr) -> bool:
    if isinstance(value, ast.Dict):
        return bool(value.keys) and None not in value.keys and all(map(_is_list, value.values))
    return isinstance(value, ast.List) and not value.elts


def _is_alone(name: str, function: ast.FunctionDef) -> bool:
    """Whether one statement binds a name, in all of a function."""
    every = [*walk(function)]
    if Counter(names_stored(function))[name] > 1 or any([isinstance(part, ast.ClassDef) for part in every]):
        return False
    others = set[str]()
    for part in every:
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            others.update(part.names)
        elif isinstance(part, ast.arg):
            others.add(part.arg)
        elif not isinstance(part, ast.Name):
            others |= {
                getattr(part, "name", None) or "",
                getattr(part, "rest", None) or "",
                getattr(part, "asname", None) or "",
            }
    return name not in others


class _Held(ast.NodeTransformer):
    def __init__(self, names: set[str], holder: str) -> None:
        self.names, self.holder = names, holder

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            return node
        owner = placed(ast.Name(self.holder, ast.Load()), node)
        return placed(ast.Attribute(owner, node.id, node.ctx), node)
