"""Iterators whose first items are taken before a loop runs over the others are read by place.

``it = iter(x)``, ``last = next(it)``, ``for v in it:`` would be ``it = x``, ``last = it[0]``, ``for v in it[1:]:``, where the
loop can be rolled up. That is done where nothing else sees the iterator: it is one still where ``x`` has no places.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection

from symgrad.source.constants import bound_anywhere
from symgrad.source.syntax import (
    COMPREHENSIONS,
    LOCAL_READERS,
    SCOPES,
    FunctionNode,
    blocks_of,
    located,
    names_stored,
    own_parts,
    placed,
    walk,
)

_MAYBE = (ast.IfExp, ast.BoolOp, ast.Compare)  # parts of which may not be evaluated
_CHANGING = frozenset(["append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"])
STARTED, NEXT, REST = [f"__symgrad_{word}__" for word in ("started", "next", "rest")]


def by_place(function: FunctionNode, around: Collection[str]) -> FunctionNode:
    """The function, changed in place, as are those in it. ``around``: the names of the module and of functions around it, no
    more those of builtins."""
    names = {part.id for part in walk(function) if isinstance(part, ast.Name)}
    for node in [*walk(function)] if "iter" in names and names.isdisjoint(LOCAL_READERS) else ():
        if isinstance(node, ast.FunctionDef) and {"iter", "next"}.isdisjoint({*around, *bound_anywhere(node)}):
            stored = Counter(names_stored(node))
            for block in [*blocks_of(node)]:
                for i, statement in enumerate(block):
                    name = _started(statement)
                    if name and stored[name] == 1:
                        _change(node, block[i:], name)
    return function


def _change(function: ast.FunctionDef, statements: list[ast.stmt], name: str) -> None:
    """Read by place, if all that is done with it is that some of these ``statements`` take an item, and a loop the others."""
    taken: list[ast.Call] = []
    for statement in statements[1:]:
        if isinstance(statement, ast.For) and isinstance(statement.iter, ast.Name) and statement.iter.id == name:
            break
        every = [*own_parts(statement, (*SCOPES, *COMPREHENSIONS))]  # which run when they like, or several times
        calls = [part for part in every if isinstance(part, ast.Call) and _is_next(part, name)]
        if len(calls) != len([part for part in walk(statement) if isinstance(part, ast.Name) and part.id == name]):
            return
        if calls and (len(calls) > 1 or not isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr))):
            return
        if any([call in walk(part) for part in every if isinstance(part, _MAYBE) for call in calls]):
            return
        taken += calls
    else:
        return
    uses = [part for part in walk(function) if isinstance(part, ast.Name) and part.id == name]
    if len(uses) != len(taken) + 2:
        return
    first: ast.Assign = statements[0]  # type: ignore[assignment]
    (items,) = first.value.args  # type: ignore[attr-defined]
    owners = [part.value for part in walk(function) if isinstance(part, ast.Attribute) and part.attr in _CHANGING]
    if isinstance(items, ast.Name) and any([getattr(owner, "id", "") == items.id for owner in owners]):
        return  # it may change meanwhile
    first.value.func = placed(ast.Name(STARTED, ast.Load()), first.value)  # type: ignore[attr-defined]
    for place, call in enumerate(taken):
        call.func = placed(ast.Name(NEXT, ast.Load()), call)
        call.args.append(placed(ast.Constant(place), call))
    rest = ast.Call(ast.Name(REST, ast.Load()), [statement.iter, ast.Constant(len(taken))], [])
    statement.iter = located(placed(rest, statement.iter))


def _started(statement: ast.stmt) -> str:
    """``it`` of ``it = iter(x)``."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1 or not isinstance(statement.targets[0], ast.Name):
        return ""
    made = statement.value
    plain = isinstance(made, ast.Call) and len(made.args) == 1 and not made.keywords
    if not plain or getattr(made.func, "id", "") != "iter" or isinstance(made.args[0], ast.Starred):  # type: ignore[attr-defined]
        return ""
    return statement.targets[0].id


def _is_next(call: ast.Call, name: str) -> bool:
    """``next(it)``."""
    given = len(call.args) == 1 and not call.keywords and getattr(call.args[0], "id", "") == name
    return given and getattr(call.func, "id", "") == "next"
