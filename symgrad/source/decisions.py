"""Which loops may decide on something in an iteration, and what else may change there, as far as the code of what they call
tells.

Loops decide that have ``if``s in them, or call a function of the user's that has. It is a guess, from what the names stand for
when the function is first traced, and only about what is faster: short lists of numbers are worth a table in such loops, whose
iterations then are one code, and numbers in objects that change there are traced from the beginning.
"""

from __future__ import annotations

import ast
import contextlib
import dis
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from symgrad.source.origins import is_users, names_in
from symgrad.source.syntax import FunctionNode, in_class, walk

DEEPEST = 3  # calls within calls that are looked at
_LOOPS = (ast.For, ast.While)
_IFS = (ast.If, ast.IfExp)


def decided(node: FunctionNode, fun: FunctionType, owner: str | None) -> FunctionNode:
    """The node of ``fun``, a method of the class ``owner``, whose loops know whether they decide (``decides``), and whether
    what they call puts something into containers (``fills``), or into which attributes (``attributes``)."""
    space = _space(fun)
    inner = {part.name: part for part in walk(node) if isinstance(part, ast.FunctionDef)}
    kind = space.get(owner) if owner else None

    def called(call: ast.Call) -> Any:
        name = call.func
        if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "self":
            return getattr(kind, in_class(name.attr, owner), None)
        return inner.get(name.id, space.get(name.id)) if isinstance(name, ast.Name) else None

    for loop in walk(node):
        if isinstance(loop, _LOOPS):
            every = [called(part) for part in walk(loop) if isinstance(part, ast.Call)]
            nodes = [loop, *[item for item in every if isinstance(item, ast.FunctionDef)]]
            steps = [step for item in every for step in _steps(item)]
            ifs = any([isinstance(part, _IFS) for item in nodes for part in walk(item)])
            loop.decides = ifs or any(map(_is_jump, steps))  # type: ignore[union-attr]
            loop.fills = any([step.opname == "STORE_SUBSCR" for step in steps])  # type: ignore[union-attr]
            loop.attributes = _stored(steps)  # type: ignore[union-attr]
    return node


def changing(kind: type) -> tuple[str, ...]:
    """The attributes that methods of a class of the user's put something into, if they decide on anything."""
    methods = [item for base in kind.__mro__ for name, item in vars(base).items() if name != "__init__" and is_users(item)]
    steps = [step for method in methods for step in _steps(method)]
    return _stored(steps) if any(map(_is_jump, steps)) else ()


def _stored(steps: Sequence[dis.Instruction]) -> tuple[str, ...]:
    return tuple(sorted({step.argval for step in steps if step.opname == "STORE_ATTR"}))


def _is_jump(step: dis.Instruction) -> bool:
    return "IF_TRUE" in step.opname or "IF_FALSE" in step.opname


def _space(fun: FunctionType) -> Mapping[str, Any]:
    """The functions that are there under a name."""
    found = {**fun.__globals__}
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it may be empty
            found[name] = cell.cell_contents
    return found


def _steps(fun: Any, depth: int = 0) -> list[dis.Instruction]:
    """What the code of a function of the user's does, with that of those that it calls by name."""
    if not isinstance(fun, FunctionType) or not is_users(fun) or depth > DEEPEST:
        return []
    space = _space(fun)
    more = [step for name in names_in(fun.__code__) for step in _steps(space.get(name), depth + 1)]
    return [*_instructions(fun.__code__), *more]


def _instructions(code: CodeType) -> list[dis.Instruction]:
    inner = [item for item in code.co_consts if isinstance(item, CodeType)]
    return [*dis.get_instructions(code), *[step for item in inner for step in _instructions(item)]]
