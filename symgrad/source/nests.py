"""Nests: loops over pairs become one loop, so that all pairs are alike, and can be done at once.

``for i in range(n): for j in range(i + 1, n): ...`` runs as ``for i, j in [...]: ...``, the pairs being listed beforehand; so
does a nest whose body is below ``if i != j``. Statements between the two, such as ``p = x[i]``, move into the body. Where ends
are looked up, ``for j in range(first[i], first[i + 1])``, arrays may tell the pairs, which are counted when it runs. All this
is done where the names and the reads of the function show that it makes no difference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any

from symgrad.source.lists import IN_TURN, RAGGED
from symgrad.source.settled import ESCAPES, SIZES, Put, Settled, are_looked_up, breaks, is_counted, is_plain
from symgrad.source.syntax import (
    MODULES,
    FunctionNode,
    copied,
    fresh,
    is_append,
    is_range,
    located,
    names_read,
    names_stored,
    names_within,
    owner_of,
    paired,
    placed,
    walk,
)


def joined(function: FunctionNode, of: FunctionType) -> FunctionNode:
    """The function, changed in place: its nests are loops over pairs. ``of``: the function itself, which calls others."""
    for node in [*walk(function)]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _Joiner(node, of).generic_visit(node)
    return function


class _Joiner(Settled):
    """Joins the loops of one function; those of functions in it have their own turn."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        return (self.quiet and self._joined(node)) or node

    def _joined(self, node: ast.For) -> ast.For | None:
        """Both loops of a nest as one; None where they stay two."""
        *between, inner = node.body
        if not isinstance(inner, ast.For) or not is_counted(node):
            return None
        ends = _ends(inner, between)
        ragged = are_looked_up(ends, node.target.id)  # type: ignore[attr-defined]
        if not (ragged or is_counted(inner) or hasattr(inner, "pairs")):
            return None
        if any([isinstance(item, ESCAPES) for item in walk(node)]) or breaks(node.body) or breaks(inner.body):
            return None
        if ragged:
            return self._with_ends(node, between, inner, ends)
        first, rest = _clause(node), getattr(inner, "pairs", None) or [_clause(inner)]
        own = [name for part in (first, *rest) for name in names_stored(part.target)]
        test, body = _filtered(inner.body)
        if test is None or not is_plain(test) or len(names_read(test).keys() & set(own)) < 2:
            test, body = None, inner.body
            alike = all([names_read(part.iter)[node.target.id] == 0 for part in rest])  # type: ignore[attr-defined]
            if alike and not (self._is_listing(body) and (not between or ast.unparse(inner.iter) == ast.unparse(node.iter))):
                return None  # each iteration of the outer loop is like any other
        else:
            rest = [*rest[:-1], ast.comprehension(rest[-1].target, rest[-1].iter, [*rest[-1].ifs, test], 0)]
        made_of = [part for clause in (first, *rest) for part in (clause.iter, *clause.ifs)]
        read_on = getattr(node, "live", None)  # None where that is not known
        if not self.is_settled(own, made_of, between, body, read_on):
            return None
        return self._written(node, [first, *rest], own, [*between, *body])

    def _with_ends(
        self, node: ast.For, between: Sequence[ast.stmt], inner: ast.For, ends: Sequence[ast.expr]
    ) -> ast.For | None:
        """The loop over pairs that are told by a range, and the ``ends`` of others that are looked up."""
        own = [*names_stored(node.target), *names_stored(inner.target)]
        outer = node.iter.args  # type: ignore[attr-defined]
        put = {name for statement in between for name in names_stored(statement)}
        if not put.union(own[1:]).isdisjoint([name for end in ends for name in names_read(end)]):
            return None
        if not self.is_settled(own, outer, between, inner.body, getattr(node, "live", None), ends):
            return None
        name = fresh(f"{own[0]}_", self.names)
        first, last = map(copied, ends if len(ends) > 1 else [placed(ast.Constant(0), inner.iter), *ends])
        for item in [*walk(first), *walk(last)]:
            if isinstance(item, ast.Name) and item.id == own[0]:
                item.id = name
        empty = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
        looked_up = placed(ast.Lambda(empty, ast.Tuple([first, last], ast.Load())), inner.iter)
        tables = [copied(item.value) for end in ends for item in walk(end) if isinstance(item, ast.Subscript)]
        ranged = placed(ast.Name("range", ast.Load()), inner.iter)
        pairs = placed(ast.Call(ast.Name(RAGGED, ast.Load()), [ranged, node.iter, looked_up, *tables], []), node.iter)
        return located(placed(ast.For(_tuple(own, ast.Store()), pairs, [*between, *inner.body], []), node))  # type: ignore[no-any-return]

    def _is_listing(self, body: Sequence[ast.stmt]) -> bool:
        """Whether all that a body does is to append to lists what it has computed."""
        appends = [item.value for item in body if isinstance(item, ast.Expr) and is_append(item.value)]
        before = [item for item in body if isinstance(item, ast.Assign)]
        if not appends or len(appends) + len(before) < len(body):
            return False
        known = all([self._is_own_list(append.func.value.id) for append in appends])  # type: ignore[attr-defined]
        return known and all([self.is_private(name) for item in before for name in names_stored(item)])

    def _is_own_list(self, name: str) -> bool:
        """Whether a name stands for lists alone that the function has made, and that have no other name."""
        made = seen = 0
        every = [*walk(self.function)]
        for node in every:
            if isinstance(node, ast.Assign):
                pairs = [pair for target in node.targets for pair in paired(target, node.value)]
                made += sum([getattr(end, "id", "") == name and _is_empty(value) for end, value in pairs])
            inside: list[Any] = []
            if isinstance(node, (ast.Attribute, ast.Subscript, ast.Return)):
                inside = [node.value]
            elif isinstance(node, ast.Call) and _keeps_nothing(node.func):
                inside = node.args
            seen += sum([isinstance(part, ast.Name) and part.id == name for part in inside])
        counted = sum([isinstance(node, ast.Name) and node.id == name for node in every])
        return made > 0 and made + seen == counted and name not in names_within(self.function)

    def _written(self, node: ast.For, clauses: list[ast.comprehension], own: list[str], body: list[ast.stmt]) -> ast.For:
        """The loop over pairs, which are listed by other names."""
        new = {name: fresh(f"{name}_", self.names) for name in own}
        listed = [copied(clause) for clause in clauses]
        for clause in listed:
            for item in walk(clause):
                if isinstance(item, ast.Name):
                    item.id = new.get(item.id, item.id)
        pairs = placed(ast.ListComp(_tuple(new.values(), ast.Load()), listed), node.iter)
        made: ast.For = placed(ast.For(_tuple(own, ast.Store()), pairs, body, []), node)
        made.pairs = clauses  # type: ignore[attr-defined]
        return made


def _tuple(names: Iterable[str], context: ast.expr_context) -> ast.Tuple:
    return ast.Tuple([ast.Name(name, context) for name in names], context)


def _clause(loop: ast.For) -> ast.comprehension:
    return ast.comprehension(loop.target, loop.iter, [], 0)


# -- what statements and expressions do ----------------------------------------------------------------------------


def _ends(loop: ast.For, between: Sequence[ast.stmt]) -> list[ast.expr]:
    """The ends of the range that a loop runs over, with what names stand for that get it just before; none of others."""
    if not is_range(loop.iter) or not isinstance(loop.target, ast.Name) or loop.orelse or len(loop.iter.args) > 2:
        return []
    ends = [copied(arg) for arg in loop.iter.args]
    for statement in reversed(between):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            pairs = paired(statement.targets[0], statement.value)
            put = Put({target.id: value for target, value in pairs if isinstance(target, ast.Name)})
            ends = [put.visit(end) for end in ends]
    return ends


def _filtered(body: list[ast.stmt]) -> tuple[ast.expr | None, list[ast.stmt]]:
    """The test below which a whole body is, and what is below it."""
    first, *rest = body
    if not isinstance(first, ast.If) or first.orelse:
        return None, body
    if not rest:
        return first.test, first.body
    if len(first.body) == 1 and isinstance(first.body[0], ast.Continue):
        return placed(ast.UnaryOp(ast.Not(), first.test), first.test), rest
    return None, body


def _keeps_nothing(fun: ast.expr) -> bool:
    """Whether a function is known to keep none of its arguments."""
    owner = owner_of(fun)
    return isinstance(owner, ast.Name) and (
        owner.id in SIZES | {"sum", "sorted", IN_TURN} if owner is fun else owner.id in MODULES
    )


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.List) and not value.elts
