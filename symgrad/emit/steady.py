"""What the iterations of a loop need not make anew, in the printing that runs: buffers, and views of arrays that stay.

``x = multiply(a, b)`` makes an array in each iteration. Where nothing holds that any more when the iteration ends, all of them
write into one: ``multiply(a, b, x)``. And ``x[1:]`` is the same view in each of them, as long as ``x`` is the same array. For
small arrays, a view takes a third of the time of an operation, and an array a fifth.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from symgrad.emit.blocks import KEYWORD_OUT, assign
from symgrad.emit.build import Expr, method, name
from symgrad.emit.printer import Comment, For, Line, Origin, While, text
from symgrad.ir import Aval

SMALL = 1 << 15  # bytes of an array up to which that counts


def settled(
    loop: For | While,
    carried: Collection[str],
    dead: Mapping[str, Expr],
    arrays: Mapping[str, Aval],
    functions: Mapping[str, Any],
    fresh: Callable[[str], str],
) -> list[Line]:
    """What goes before a loop, which is changed in place: the buffers that are ``dead`` in the end of each iteration, by name,
    with what makes them, and views of ``arrays``. ``functions`` are known by these names; ``fresh`` makes new ones. Variables
    that are ``carried`` are something else before."""
    steady = _Steady(loop, carried, arrays, fresh)
    for item in loop.body:
        if isinstance(item, Line):
            steady.keep(item, dead, functions)
    loop.body = [item for item in loop.body if not steady.is_taken_out(item)]
    return steady.before


class _Steady(ast.NodeTransformer):
    def __init__(
        self, loop: For | While, carried: Collection[str], arrays: Mapping[str, Aval], fresh: Callable[[str], str]
    ) -> None:
        self.carried, self.fresh = carried, fresh
        self.small = {variable for variable, aval in arrays.items() if aval.nbytes <= SMALL}
        stored = [node.id for node in _names([loop]) if not isinstance(node.ctx, ast.Load)]
        self.bound = Counter(stored)
        self.before: list[Line] = []
        self.views: dict[str, str] = {}

    def keep(self, item: Line, dead: Mapping[str, Expr], functions: Mapping[str, Any]) -> None:
        """Let a statement that makes an array write into the one of the iteration before, if that is dead by then."""
        variable = _target(item.node)
        if variable is None or variable not in dead or self.bound[variable] != 1:
            return
        assert isinstance(item.node, ast.Assign)
        written = _written(item.node.value, variable, functions)
        if written is not None:
            self.before.append(Line(assign(name(variable), dead[variable]), origin=item.origin))
            item.node, item.shown = written, None
            del self.bound[variable]

    def is_taken_out(self, item: Any) -> bool:
        """Whether a statement is nothing but a view, which goes before the loop; of others, the views in them go there."""
        if isinstance(item, Line):
            variable = _target(item.node)
            local = variable is not None and variable not in self.carried and self.bound[variable] == 1
            if variable is not None and local and self._is_view(item.node.value):  # type: ignore[attr-defined]
                del self.bound[variable]
                self.small.add(variable)
                known = self.views.setdefault(text(item.node.value), variable)  # type: ignore[attr-defined]
                self.before.append(item if known == variable else Line(assign(name(variable), name(known))))
                return True
            item.node, item.shown = self.visit(item.node), None
        elif not isinstance(item, Comment):
            for field, part in vars(item).items():
                if isinstance(part, ast.AST):
                    setattr(item, field, self.visit(part))
                elif isinstance(part, list):
                    part[:] = [one for one in part if not self.is_taken_out(one)]
        return False

    def visit_Subscript(self, node: ast.Subscript) -> Expr:
        if not self._is_view(node):
            return self.generic_visit(node)  # type: ignore[return-value]
        shown = text(node)
        if shown not in self.views:
            assert isinstance(node.value, ast.Name)
            self.views[shown] = self.fresh(f"{node.value.id}_part")
            self.before.append(Line(assign(name(self.views[shown]), node)))
            self.small.add(self.views[shown])
        return name(self.views[shown])

    def _is_view(self, node: Expr) -> bool:
        """Whether it is a view, by slices whose ends are numbers, of an array that stays."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name):
            return False
        stays = node.value.id in self.small and node.value.id not in self.bound
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        several = [isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...) for part in parts]
        return stays and all(map(_is_fixed, parts)) and any(several)


def _is_fixed(part: Expr | None) -> bool:
    """Whether a part of an index, or the end of a slice, is there in the code."""
    if isinstance(part, ast.Slice):
        return all([_is_fixed(end) for end in (part.lower, part.upper, part.step)])
    return part is None or isinstance(part.operand if isinstance(part, ast.UnaryOp) else part, ast.Constant)


def _written(expr: Expr, variable: str, functions: Mapping[str, Any]) -> ast.stmt | None:
    """The statement that writes what an expression makes into an array; None for what is not known to take one."""
    if not isinstance(expr, ast.Call) or expr.keywords:
        return None
    called = text(expr.func)
    function = getattr(np, called[3:], None) if called.startswith("np.") else functions.get(called)
    if isinstance(function, np.ufunc) and len(expr.args) == function.nin and function.nout == 1:
        if function in KEYWORD_OUT:
            return ast.Expr(ast.Call(expr.func, expr.args, [ast.keyword("out", name(variable))]))
        return ast.Expr(ast.Call(expr.func, [*expr.args, name(variable)], []))
    if called == "runtime.cross_rows":
        return ast.Expr(ast.Call(expr.func, [*expr.args, name(variable)], []))
    if function is np.zeros:
        return ast.Expr(method(name(variable), "fill", ast.Constant(0)))
    if getattr(function, "__name__", None) == "reduce" and len(expr.args) == 2:
        return ast.Expr(ast.Call(expr.func, [*expr.args, ast.Constant(None), name(variable)], []))
    if isinstance(expr.func, ast.Attribute) and function is None and expr.func.attr == "dot" and len(expr.args) == 1:
        return ast.Expr(ast.Call(expr.func, [*expr.args, name(variable)], []))
    if isinstance(expr.func, ast.Attribute) and function is None and expr.func.attr == "copy" and not expr.args:
        place = ast.Subscript(name(variable), ast.Constant(...), ast.Store())
        return ast.Assign([place], expr.func.value, lineno=0)
    return None


def _target(statement: ast.stmt) -> str | None:
    """The variable that a statement assigns, if it does no more."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else None


def _names(items: list[Any]) -> Iterator[ast.Name]:
    """All names in some statements, as often as they are there."""
    waiting = [*items]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name):
            yield part
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, ast.AST) or type(part).__module__ == Line.__module__:
            waiting += [one for one in vars(part).values() if not isinstance(one, (str, Origin))]
