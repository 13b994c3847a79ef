"""Variables die where they are last used, so that long programs and big arrays hold no more memory than is needed."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from symgrad.emit.printer import Comment, If, Line, Origin
from symgrad.source.syntax import SIGNS


def tidy(block: Sequence[Any], keep: set[str]) -> list[Any]:
    """A block of statements with ``del`` after the last use of each variable that it assigns itself, but for ``keep``.

    A side of a branch that returns is a block of its own. What a loop assigns, the next iteration overwrites.
    """
    assigned = {name for item in block if isinstance(item, Line) for name in _targets(item.node)} - keep
    later: set[str] = set()
    result: list[Any] = []
    for item in reversed(block):
        used = {*_words(item.text())} if isinstance(item, Line) else names_in(item)  # other words are no variables
        dead = sorted((used & assigned) - later)
        if dead and not _leaves(item):
            result.append(Line(ast.Delete([ast.Name(name, ast.Del()) for name in dead])))
        later |= used
        if isinstance(item, If) and item.body and _leaves(item.body[-1]):
            item.body = tidy(item.body, keep)
        result.append(item)
    return result[::-1]


def _leaves(item: Any) -> bool:
    """Whether the function is left here."""
    return isinstance(item, Line) and isinstance(item.node, (ast.Return, ast.Raise))


def _targets(statement: ast.stmt) -> list[str]:
    """The variables that a simple statement assigns."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def names_in(item: Any, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """All names in a statement, those of a compound one included; those that it stores into, say, alone."""
    found: set[str] = set()
    stack = [item]
    while stack:
        part = stack.pop()
        kind = type(part)
        if kind is ast.Name:
            if isinstance(part.ctx, context):
                found.add(part.id)
        elif kind is list:
            stack += part
        elif kind not in _NAMELESS:
            stack += vars(part).values()
    return found


_words = re.compile(r"\w+").findall
_NAMELESS = {str, int, type(None), ast.Constant, Comment, Origin, *(kind for sign in SIGNS for kind in sign.__subclasses__())}
