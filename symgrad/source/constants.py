"""What names outside of a function stand for when it is first traced: states of a program often are members of an ``Enum``, or
ints of a module or a class."""

from __future__ import annotations

import ast
import contextlib
from collections import ChainMap
from collections.abc import Collection, Mapping
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any

from symgrad.source.syntax import FunctionNode, walk


def space_of(fun: FunctionType) -> Mapping[str, Any]:
    """What is there under a name outside of a function."""
    found = {}
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it may be empty
            found[name] = cell.cell_contents
    return ChainMap(found, fun.__globals__)


def bound_anywhere(function: FunctionNode) -> set[str]:
    """The names that a function, or one in it, binds."""
    every = [*walk(function)]
    names = {part.id for part in every if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    others = [getattr(part, field, None) for part in every for field in ("arg", "name", "asname", "rest")]
    return names | {name for name in others if isinstance(name, str)}


def constant(node: ast.AST, space: Mapping[str, Any], bound: Collection[str]) -> Any:
    """What ``name``, ``module.name`` or ``Class.name`` stands for, in a ``space`` outside of a function in which the names that
    are ``bound`` are other ones; None where that is not known."""
    if isinstance(node, ast.Name):
        return None if node.id in bound else space.get(node.id)
    owner = constant(node.value, space, bound) if isinstance(node, ast.Attribute) else None
    if isinstance(owner, type) and issubclass(owner, Enum):
        return owner.__members__.get(node.attr)  # type: ignore[attr-defined]
    return vars(owner).get(node.attr) if isinstance(owner, (type, ModuleType)) else None  # type: ignore[attr-defined]
