"""Loops that append several items to a list in an iteration append one to each of several lists.

``r = []``, ``for v in y: r.append(f(v)); r.append(g(v))`` becomes ``r = []``, ``r_0 = []``, ``r_1 = []``,
``for v in y: r_0.append(f(v)); r_1.append(g(v))``, ``r += in_turn(r_0, r_1)``: lists to which each iteration appends one item
are what loops know (``lists.py``). ``r.extend([a, b])`` and ``r += [a, b]`` append ``a``, then ``b``.

That is so where nothing else is done with the list before the loop is over, and where nothing but its end ends the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from symgrad.source.lists import IN_TURN
from symgrad.source.syntax import (
    LOCAL_READERS,
    TRIES,
    FunctionNode,
    assigned,
    blocks_of,
    declared,
    fresh,
    is_append,
    located,
    names_within,
    paired,
    placed,
    walk,
)

MOST = 16  # items in an iteration
_ENDS = (
    ast.Continue, ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.TryStar, ast.With,
)  # fmt: skip


def apart(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef) and not any([isinstance(item, TRIES) for item in walk(node)]):
            names = _names(node)
            shared = names_within(node) | declared(node)
            for block in [*blocks_of(node)] if names.isdisjoint(LOCAL_READERS) else ():
                block[:] = _changed(block, shared, names)
    return function


def _names(node: ast.AST) -> set[str]:
    return {item.id for item in walk(node) if isinstance(item, ast.Name)}


def _changed(block: list[ast.stmt], shared: Collection[str], names: set[str]) -> list[ast.stmt]:
    """The statements of a block, with more before and after the loops that append to lists which begin there."""
    begun = set[str]()  # lists with which nothing has been done but that items were appended
    found: list[ast.stmt] = []
    for statement in block:
        seen, after = _names(statement), list[ast.stmt]()
        for name in sorted(begun & seen):
            parts = _parts(statement, name, names) if isinstance(statement, ast.For) else None
            if parts is not None:
                seen.remove(name)
                found += [assigned(part, ast.List([], ast.Load()), statement) for part in parts]
                after += [_together(name, parts, statement)] if parts else []
        grown = _grows(statement)
        if grown is not None and not any([grown[0] in _names(item) for item in grown[1]]):
            seen -= {grown[0]}
        begun -= seen
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            pairs = paired(statement.targets[0], statement.value)
            lists = {getattr(target, "id", "") for target, value in pairs if isinstance(value, ast.List)}
            begun |= lists - {"", *shared, *_names(statement.value)}
        found += [statement, *after]
    return found


def _parts(loop: ast.For, name: str, names: set[str]) -> list[str] | None:
    """The lists to which a loop appends one item in an iteration, from now on, each; none where it does so already, None where
    it does anything else."""
    every = [*walk(loop)]
    if any([isinstance(item, _ENDS) for item in every]):
        return None
    bodies = [item.body for item in every if isinstance(item, ast.For) and any([_grows(one, name) for one in item.body])]
    often = sum([isinstance(item, ast.Name) and item.id == name for item in every])
    if len(bodies) != 1 or often != sum([bool(_grows(one, name)) for one in bodies[0]]):
        return None
    items = [item for one in bodies[0] for _, values in [_grows(one, name) or ("", [])] for item in values]
    if len(items) > MOST:
        return None
    parts = [fresh(f"{name}_{i}", names) for i in range(len(items))] if len(items) > 1 else []
    given = iter(parts or [name])
    bodies[0][:] = [
        new
        for one in bodies[0]
        for grown in [_grows(one, name)]
        for new in ([one] if grown is None else [_append(next(given), item, one) for item in grown[1]])
    ]
    return parts


def _grows(statement: Any, name: str = "") -> tuple[str, list[ast.expr]] | None:
    """The list (of this ``name``) to which a statement appends, and what; None if it does something else."""
    call = getattr(statement, "value", None)
    owner: Any = None
    items: list[Any] = []
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        owner, items = statement.target, getattr(call, "elts", [])
    elif isinstance(statement, ast.Expr) and is_append(call):
        owner, items = call.func.value, call.args  # type: ignore[union-attr]
    elif isinstance(statement, ast.Expr) and isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords:
        extends = isinstance(call.func, ast.Attribute) and call.func.attr == "extend"
        owner, items = (call.func.value, getattr(call.args[0], "elts", [])) if extends else (None, [])  # type: ignore[attr-defined]
    known = isinstance(owner, ast.Name) and owner.id == (name or owner.id) and items
    if not known or any([isinstance(item, ast.Starred) for item in items]):
        return None
    return owner.id, items


def _append(name: str, item: ast.expr, like: ast.stmt) -> ast.stmt:
    append = ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load())
    return located(placed(ast.Expr(placed(ast.Call(append, [item], []), item)), like))  # type: ignore[no-any-return]


def _together(name: str, parts: list[str], like: ast.stmt) -> ast.stmt:
    """``name += in_turn(...)``."""
    items = ast.Call(ast.Name(IN_TURN, ast.Load()), [ast.Name(part, ast.Load()) for part in parts], [])
    return located(placed(ast.AugAssign(ast.Name(name, ast.Store()), ast.Add(), items), like))  # type: ignore[no-any-return]
