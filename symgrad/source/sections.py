"""Sections: statements outside of loops that decide, one after the other, are watched as the one iteration of a loop is.

So the ways of a function meet again behind each ``if``, and where it returns: five of them have ten ways, not 32. A function
that returns in several places does so in one: ``if c: return a``, ``return b`` runs as ``if c: result = a``,
``else: result = b``, ``return result``.

A loop whose iterations are not alike, as they look up other things in a dict, say, and which decide on values, each on its own,
is not watched as a loop: what it decides is in sections, in each iteration. In these, ``if c: continue`` runs as
``if c: pass``, ``else:`` and what follows.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Sequence
from typing import Any

from symgrad.source.syntax import LOCAL_READERS, FunctionNode, assigned, fresh, located, mentioned, parts_of, placed, walk

_PAUSES = (ast.Yield, ast.YieldFrom, ast.Await)
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.Assert, ast.Pass, ast.Raise)
_OTHERS = (*_PAUSES, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp)
_DECIDING = (ast.If, ast.IfExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
DEEPEST = 4  # decisions of a statement in a section; longer chains have few ways, which are code one by one, and soon


class _Elsewhere(Exception):
    """A function returns in the middle of something else than an ``if``."""


def in_sections(function: FunctionNode, lines: Collection[int] = ()) -> FunctionNode:
    """The function, changed in place, as are those in it: its sections are ``for`` statements, marked ``section``; so are those
    of loops that decide in one of these ``lines``, which are marked ``sections``."""
    if lines:
        _Loops(lines).visit(function)
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef) and not any([isinstance(part, _PAUSES) for part in walk(node)]):
            names = mentioned(node)
            if names.isdisjoint(LOCAL_READERS):
                node.body = _sections(_with_one_exit(node.body, names))
    return function


def _with_one_exit(body: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """A function's body that returns at its end only, if that can be."""
    exits = [part for statement in body for part in _exits(statement, ast.Return)]
    last = body[-1]
    if not exits or (exits == [last] and not _decides(last)):
        return body
    result = fresh("result", names)
    try:
        body = _ended(body, ast.Return, result)
    except _Elsewhere:
        return body
    return [*body, located(placed(ast.Return(ast.Name(result, ast.Load())), last))]


def _ended(body: Sequence[ast.stmt], kind: type[ast.stmt], result: str) -> list[ast.stmt]:
    """Statements without those of a ``kind``, ``return`` or ``continue``, that end them: in every way through them, they put
    what the function returns into a local, the ``result``."""
    for i, statement in enumerate(body):
        if isinstance(statement, kind):
            value = getattr(statement, "value", None) or ast.Constant(None)
            return [*body[:i], assigned(result, value, statement) if result else placed(ast.Pass(), statement)]
        if isinstance(statement, ast.Raise):
            return [*body[: i + 1]]
        if not _exits(statement, kind):
            continue
        if not isinstance(statement, ast.If):
            raise _Elsewhere
        sides, rest = [statement.body, statement.orelse], body[i + 1 :]
        going = [_goes_on(side) for side in sides]
        if all(going) and rest:
            raise _Elsewhere
        ended = [_ended([*side, *(rest if on else ())], kind, result) for side, on in zip(sides, going, strict=True)]
        return [*body[:i], placed(ast.If(statement.test, *ended), statement)]
    if not result:
        return [*body]
    nothing = body[-1] if body else ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
    return [*body, assigned(result, ast.Constant(None), nothing)]


def _goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows these statements may run."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _goes_on(last.body) or _goes_on(last.orelse)
    return not isinstance(last, (ast.Return, ast.Raise, ast.Continue))


def _exits(node: ast.AST, kind: type[ast.stmt]) -> list[ast.AST]:
    """The statements of a ``kind``, ``return`` or ``continue``, in a statement that are the function's own, or the loop's."""
    if isinstance(node, kind):
        return [node]
    if isinstance(node, (*_OTHERS, ast.expr)) or (kind is ast.Continue and isinstance(node, _LOOPS)):
        return []
    return [found for part in parts_of(node) for found in _exits(part, kind)]


def _decides(node: ast.AST) -> bool:
    return any([isinstance(part, _DECIDING) for part in walk(node)])


def _sections(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The same statements, those in a row that decide in a section."""
    result: list[ast.stmt] = []
    row: list[ast.stmt] = []
    for statement in body:
        if _deep(statement) <= DEEPEST and isinstance(statement, _SIMPLE) and all(map(_is_simple, walk(statement))):
            row.append(statement)
            continue
        result += [*_section(row), statement]
        row = []
        if isinstance(statement, ast.If):
            statement.body, statement.orelse = _sections(statement.body), _sections(statement.orelse)
        elif isinstance(statement, ast.For) and hasattr(statement, "sections"):
            statement.body = _sections(statement.body)
    return [*result, *_section(row)]


def _deep(statement: ast.stmt) -> int:
    """How many decisions a way through a statement may take."""
    if not isinstance(statement, ast.If):
        return sum([isinstance(part, ast.IfExp) for part in walk(statement)])
    return 1 + max([sum(map(_deep, side)) for side in (statement.body, statement.orelse)])


def _is_simple(node: ast.AST) -> bool:
    return not isinstance(node, _OTHERS) and (not isinstance(node, ast.stmt) or isinstance(node, _SIMPLE))


def _section(row: list[Any]) -> list[ast.stmt]:
    """These statements, from the first that decides to the last one in a section."""
    places = [i for i, statement in enumerate(row) if _decides(statement)]
    if not places:
        return row
    first, end = places[0], places[-1] + 1
    once = placed(ast.Name("__symgrad_once__", ast.Store()), row[first])
    loop = placed(ast.For(once, ast.Constant(None), row[first:end], [], None), row[first])
    loop.section = True
    return [*row[:first], located(loop), *row[end:]]


class _Loops(ast.NodeTransformer):
    """Marks the loops that decide in some lines, and which nothing but their iterables ends."""

    def __init__(self, lines: Collection[int]) -> None:
        self.lines = lines

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        if not deciding(node).isdisjoint(self.lines):
            node.sections = True  # type: ignore[attr-defined]
            with contextlib.suppress(_Elsewhere):
                node.body = _ended(node.body, ast.Continue, "")
        return node


def deciding(loop: ast.For) -> set[int]:
    """The lines in which a loop decides; none of one that may end otherwise than its iterable does."""
    every = [part for statement in loop.body for part in walk(statement)]
    if loop.orelse or hasattr(loop, "room") or any([isinstance(part, (ast.Break, ast.Return, *_PAUSES)) for part in every]):
        return set()
    tests = [part.test for part in every if isinstance(part, _DECIDING)]
    return {line for test in tests for line in range(test.lineno, (test.end_lineno or test.lineno) + 1)}
