"""A ``break`` in one side of an ``if`` at the end of a loop's body becomes one at the very end, by which loops of the code end.

``if c: a`` ``else: b; if d: break`` runs as ``leaves = False`` at the beginning of the body, ``leaves = True if d else False``
in the place of the ``break``, and ``if leaves: break`` at the end.
"""

from __future__ import annotations

import ast
from typing import Any

from symgrad.syntax import LOCAL_READERS, FunctionNode, assigned, fresh, located, parts_of, placed, walk

_LOOPS = (ast.For, ast.While)
_OTHERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def at_the_end(function: FunctionNode) -> FunctionNode:
    """The function, changed in place: such loops are left at the end of their bodies."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            names = {item.id for item in walk(node) if isinstance(item, ast.Name)}
            if names.isdisjoint(LOCAL_READERS):
                for loop in walk(node):
                    if isinstance(loop, _LOOPS):
                        _leave_late(loop, names)
    return function


def _leave_late(loop: Any, names: set[str]) -> None:
    place = _exit(loop.body)
    if place is None or place is loop.body or len(_breaks(loop.body)) != 1:
        return
    test, name = place[-1], fresh("leaves", names)
    chosen = placed(ast.IfExp(test.test, ast.Constant(True), ast.Constant(False)), test)
    place[-1] = assigned(name, chosen, test)
    end = located(placed(ast.If(ast.Name(name, ast.Load()), test.body, []), test))
    loop.body = [assigned(name, ast.Constant(False), test), *loop.body, end]


def _exit(statements: list[Any]) -> list[Any] | None:
    """Where ``if ...: break`` is the last of these statements, or of a side of the last one; None where it is nowhere."""
    last = statements[-1] if statements else None
    if not isinstance(last, ast.If):
        return None
    if [type(item) for item in last.body] == [ast.Break] and not last.orelse:
        return statements
    found = [place for side in (last.body, last.orelse) if (place := _exit(side)) is not None]
    return found[0] if len(found) == 1 else None


def _breaks(nodes: list[Any]) -> list[ast.AST]:
    """The statements among these, and in them, that leave a loop around them."""
    found: list[ast.AST] = [node for node in nodes if isinstance(node, (ast.Break, ast.Return))]
    for node in nodes:
        if isinstance(node, _LOOPS):
            found += [part for part in walk(node) if isinstance(part, ast.Return)]
        elif not isinstance(node, _OTHERS):
            found += _breaks(parts_of(node))
    return found
