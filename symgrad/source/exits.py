"""Loops that several ``break``s leave, or one that is not their only end, get one end, as loops of the code have.

``while a: b; if c: d; break; e`` runs as ``leaves = False; while not leaves and a: b; if c: d; leaves = True; else: e``. Other
loops begin their iterations with ``leaves = False``, and end them by ``if leaves: break``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from symgrad.source.syntax import LOCAL_READERS, FunctionNode, assigned, fresh, located, parts_of, placed, walk

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OTHERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_ENDS = (ast.Break, ast.Continue, ast.Raise)


def at_the_end(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it: such loops end in one place."""
    if not isinstance(function, ast.Lambda):
        _Exits().visit(function)
    return function


def has_test(loop: ast.For | ast.While) -> bool:
    """Whether a loop ends by a test at its beginning, too."""
    return isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant)


def way_out(loop: ast.For | ast.While) -> ast.If | None:
    """The one ``if`` among the statements of a loop without a test that leaves it."""
    exits = [item for item in loop.body if isinstance(item, ast.If) and isinstance(item.body[-1], (ast.Break, ast.Return))]
    return exits[0] if len(exits) == 1 and not exits[0].orelse and not has_test(loop) else None


class _Exits(ast.NodeTransformer):
    def __init__(self) -> None:
        self.names: set[str] | None = None  # of the function that it is in; None where somebody sees all locals

    def _within(self, node: Any, names: set[str] | None) -> Any:
        before, self.names = self.names, names
        self.generic_visit(node)
        self.names = before
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        names = {item.id for item in walk(node) if isinstance(item, ast.Name)}
        return self._within(node, names if names.isdisjoint(LOCAL_READERS) else None)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._within(node, None)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._within(node, None)

    def visit_For(self, node: ast.For) -> Any:
        leaves = self._visited(node)
        if leaves is None:
            return node
        end = located(placed(ast.If(ast.Name(leaves, ast.Load()), [placed(ast.Break(), node)], []), node))
        node.body = [assigned(leaves, ast.Constant(False), node), *_going_on(node.body, leaves), end]
        return node

    def visit_While(self, node: ast.While) -> Any:
        if not has_test(node):
            return self.visit_For(node)  # type: ignore[arg-type]
        leaves = self._visited(node)
        if leaves is None:
            return node
        stays = placed(ast.UnaryOp(ast.Not(), ast.Name(leaves, ast.Load())), node.test)
        node.test = located(placed(ast.BoolOp(ast.And(), [stays, node.test]), node.test))
        node.body = _going_on(node.body, leaves)
        if node.orelse:
            node.orelse = [_unless(leaves, node.orelse)]
        return [assigned(leaves, ast.Constant(False), node), node]

    def _visited(self, loop: ast.For | ast.While) -> str | None:
        """The name of the local that says whether such a loop has been left; None for others. Those in it come first."""
        self.generic_visit(loop)
        breaks = [*_all(ast.Break, loop.body)]
        if self.names is None or not breaks or len(breaks) < len(_exits(loop.body)):
            return None
        late = len(breaks) == 1 and way_out(loop) is not None and not [*_all(ast.Continue, loop.body)]
        return None if late else fresh("leaves", self.names)


def _going_on(body: Sequence[ast.stmt], leaves: str, last: bool = True) -> list[ast.stmt]:
    """Statements that go on to the end of an iteration, and say by a local where they have left the loop before; they are the
    ``last`` ones in it, or others follow."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Break):
            return [*body[:i], assigned(leaves, ast.Constant(True), statement)]
        if isinstance(statement, ast.Continue) and last:
            return [*body[:i], placed(ast.Pass(), statement)]
        if not isinstance(statement, ast.If) or not [*_all((ast.Break, ast.Continue), [statement])]:
            continue
        sides, rest = [statement.body, statement.orelse], body[i + 1 :]
        on = [_goes_on(side) for side in sides]
        later = [_unless(leaves, _going_on(rest, leaves, last))] if all(on) and rest else []
        follows = [rest if goes and not later else [] for goes in on]
        last = last and not later
        ended = [_going_on([*side, *more], leaves, last) for side, more in zip(sides, follows, strict=True)]
        return [*body[:i], placed(ast.If(statement.test, *ended), statement), *later]
    return [*body]


def _unless(leaves: str, body: list[ast.stmt]) -> ast.stmt:
    """These statements, where the loop has not been left."""
    stays = ast.UnaryOp(ast.Not(), ast.Name(leaves, ast.Load()))
    return located(placed(ast.If(stays, body, []), body[0]))  # type: ignore[no-any-return]


def _goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows these statements may run."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _goes_on(last.body) or _goes_on(last.orelse)
    return not isinstance(last, _ENDS)


def _all(kind: Any, statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a kind among the statements of a loop, and in ``if``s among them."""
    for statement in statements:
        if isinstance(statement, kind):
            yield statement
        elif isinstance(statement, ast.If):
            yield from _all(kind, [*statement.body, *statement.orelse])


def _exits(nodes: Sequence[ast.AST]) -> list[ast.AST]:
    """All in these statements of a loop that leaves it."""
    found: list[ast.AST] = [node for node in nodes if isinstance(node, (ast.Break, ast.Return))]
    for node in nodes:
        if isinstance(node, _LOOPS):
            found += [part for statement in node.body for part in walk(statement) if isinstance(part, ast.Return)]
            found += _exits(node.orelse)
        elif not isinstance(node, _OTHERS):
            found += _exits(parts_of(node))
    return found
