"""Which loops may decide on something in an iteration: they have ``if``s in them, or call a function of the user's that has.

It is a guess, from the names that are called as they are when the function is first traced: short lists of numbers are worth
a table in such loops, whose iterations then are one code, and are read one after the other in others, which is faster.
"""

from __future__ import annotations

import ast
import contextlib
import dis
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

from symgrad.origins import is_users, names_in
from symgrad.syntax import FunctionNode, in_class, walk

DEEPEST = 3  # calls within calls that are looked at
_LOOPS = (ast.For, ast.While)
_IFS = (ast.If, ast.IfExp)


def decided(node: FunctionNode, fun: FunctionType, owner: str | None) -> FunctionNode:
    """The node of ``fun``, a method of the class ``owner``, whose loops know whether they decide."""
    space = _space(fun)
    inner = {part.name: part for part in walk(node) if isinstance(part, ast.FunctionDef)}
    kind = space.get(owner) if owner else None

    def branches(call: ast.Call) -> bool:
        called = call.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
            return _branches(getattr(kind, in_class(called.attr, owner), None))
        if not isinstance(called, ast.Name):
            return False
        within = inner.get(called.id)
        return _has_ifs(within, lambda call: False) if within is not None else _branches(space.get(called.id))

    for loop in walk(node):
        if isinstance(loop, _LOOPS):
            loop.decides = _has_ifs(loop, branches)  # type: ignore[union-attr]
    return node


def _has_ifs(node: ast.AST, branches: Callable[[ast.Call], bool]) -> bool:
    return any([isinstance(part, _IFS) or (isinstance(part, ast.Call) and branches(part)) for part in walk(node)])


def _space(fun: FunctionType) -> Mapping[str, Any]:
    """The functions that are there under a name."""
    found = {**fun.__globals__}
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it may be empty
            found[name] = cell.cell_contents
    return found


def _branches(fun: Any, depth: int = 0) -> bool:
    """Whether the code of a function of the user's, or of one that it calls, has a branch in it."""
    if not isinstance(fun, FunctionType) or not is_users(fun) or depth > DEEPEST:
        return False
    space = _space(fun)
    return _jumps(fun.__code__) or any([_branches(space.get(name), depth + 1) for name in names_in(fun.__code__)])


def _jumps(code: CodeType) -> bool:
    inner = [item for item in code.co_consts if isinstance(item, CodeType)]
    return any(["IF_TRUE" in step.opname or "IF_FALSE" in step.opname for step in dis.get_instructions(code)]) or any(
        map(_jumps, inner)
    )
