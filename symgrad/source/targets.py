"""What is assigned to several names at once is assigned to one after the other.

``a = b = f(x)`` is ``a = f(x)``, ``b = a``: so what follows only meets statements that assign to one target, and in a loop each
name goes round on its own. What is unpacked into items and attributes, or bound to them by a loop or ``with``, has names
first: ``a[0], b = f(x)`` is ``c, d = f(x)``, ``a[0] = c``, ``b = d``. ``best, s = None, 0.0`` is two statements, too, where one
of the constants is None or a tuple: others ask what a name only ever stands for; and so is ``w, losses = fit(x), []``. A target
that nobody reads is another one in each loop: ``for _ in range(3)`` in one like it.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from symgrad.source.syntax import (
    LOCAL_READERS,
    SCOPES,
    FunctionNode,
    assigned,
    copied,
    declared,
    fresh,
    is_none,
    located,
    mentioned,
    names_read,
    names_read_in,
    names_stored,
    own_parts,
    paired,
    parts_of,
    placed,
    walk,
)


def one_by_one(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as is what is in it."""
    waiting: list[Any] = [function]
    while waiting:
        node = waiting.pop()
        for _, field in ast.iter_fields(node):
            if isinstance(field, list) and any([isinstance(part, ast.Assign) for part in field]):
                field[:] = [statement for part in field for statement in _split(part)]
        waiting += parts_of(node)
    return function


def taken_apart(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as is what is in it, but for the bodies of classes: items and attributes are assigned
    alone, or such displays that none is of what another name gets."""
    taken = mentioned(function)
    name = "item" if taken.isdisjoint(LOCAL_READERS) else "__symgrad_item__"  # which they do not show
    waiting: list[Any] = [function]
    while waiting:
        node = waiting.pop()
        for _, field in ast.iter_fields(node) if not isinstance(node, ast.ClassDef) else ():
            if isinstance(field, list) and any([isinstance(part, ast.stmt) for part in field]):
                field[:] = [statement for part in field for statement in _with_names(part, name, taken)]
        waiting += parts_of(node)
    return function


def in_turn(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it: what calls give, with other values, gets one name after the other,
    where nobody can tell: each name is a local, and what comes later does not read it. So nobody can which name the target of
    a loop has that is not read at all."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef) and mentioned(node).isdisjoint(LOCAL_READERS):
            within = [part for part in walk(node) if isinstance(part, SCOPES) and part is not node]
            others = declared(node).union(*map(mentioned, within))
            _in_blocks(node.body, others)
            _with_targets_of_their_own(node, others)
    return function


def _with_targets_of_their_own(function: ast.FunctionDef, others: set[str]) -> None:
    every = [part for part in own_parts(function) if isinstance(part, ast.For) and isinstance(part.target, ast.Name)]
    often = Counter([loop.target.id for loop in every])  # type: ignore[attr-defined]
    gone = [part.id for part in walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del)]
    known = others.union(names_read_in(function), gone)
    taken = mentioned(function)
    for loop in every:
        name: str = loop.target.id  # type: ignore[attr-defined]
        if often[name] > 1 and name not in known:
            loop.target = placed(ast.Name(fresh(name, taken), ast.Store()), loop.target)


def _in_blocks(block: list[ast.stmt], others: set[str]) -> None:
    statements: list[ast.stmt] = []
    for statement in block:
        if isinstance(statement, (ast.If, ast.For, ast.While)):  # what raises in a ``try`` would leave other names
            _in_blocks(statement.body, others)
            _in_blocks(statement.orelse, others)
        statements += _calls_apart(statement, others) if isinstance(statement, ast.Assign) else [statement]
    block[:] = statements


def _calls_apart(statement: ast.Assign, others: set[str]) -> list[ast.stmt]:
    (target, *more), value = statement.targets, statement.value
    pairs = paired(target, value) if not more else []
    names = [one.id for one, _ in pairs if isinstance(one, ast.Name)]
    alone = len(pairs) == len({*names}) > 1 and others.isdisjoint(names)
    if not alone or not any([isinstance(one, ast.Call) for _, one in pairs]):
        return [statement]
    for i, (_, one) in enumerate(pairs):
        if isinstance(one, ast.Starred) or not names_read(one).keys().isdisjoint(names[:i]):
            return [statement]
    return [assigned(name, one, statement) for name, (_, one) in zip(names, pairs, strict=True)]


def _with_names(node: Any, name: str, taken: set[str]) -> list[Any]:
    later: list[Any] = []
    if isinstance(node, ast.Assign) and any(map(_is_unpacked, node.targets)):
        if len(node.targets) > 1:
            whole = fresh(name, taken)
            parts = [located(placed(ast.Assign([one], ast.Name(whole, ast.Load())), node)) for one in node.targets]
            return [assigned(whole, node.value, node), *[one for part in parts for one in _with_names(part, name, taken)]]
        if not _is_apart(node.targets[0], node.value):
            node.targets = [_named(node.targets[0], name, taken, later)]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        node.target = _named(node.target, name, taken, later)
        node.body[:0], later = later, []
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        first, *others = node.items
        if others and not all([isinstance(one.optional_vars, (ast.Name, type(None))) for one in node.items]):
            node.items, node.body = [first], [located(placed(type(node)(others, node.body), node))]
        first.optional_vars = first.optional_vars and _named(first.optional_vars, name, taken, later)
        node.body[:0], later = later, []
    return [node, *later]


def _is_unpacked(target: ast.expr) -> bool:
    """Whether it has items or attributes among several."""
    parts = [part for part in walk(target) if isinstance(part, (ast.Attribute, ast.Subscript))]
    return isinstance(target, (ast.Tuple, ast.List)) and any([isinstance(part.ctx, ast.Store) for part in parts])


def _is_apart(target: ast.expr, value: ast.expr) -> bool:
    """Whether what each target gets is in the text, and none is an item or an attribute of what another one names."""
    pairs = paired(target, value)
    names = {one.id for one, _ in pairs if isinstance(one, ast.Name)}
    known = [not isinstance(part, ast.Starred) and not _is_unpacked(one) for one, part in pairs]
    return all(known) and all([names.isdisjoint(names_read(one)) for one, _ in pairs])


def _named(target: Any, name: str, taken: set[str], later: list[Any]) -> Any:
    """A target with names in the place of items and attributes, and of what comes after such, which get those ``later``."""
    if isinstance(target, (ast.Tuple, ast.List)):
        target.elts = [_named(item, name, taken, later) for item in target.elts]
    elif isinstance(target, ast.Starred):
        target.value = _named(target.value, name, taken, later)
    elif later or not isinstance(target, ast.Name):
        own = fresh(name, taken)
        later.append(located(placed(ast.Assign([target], ast.Name(own, ast.Load())), target)))
        return placed(ast.Name(own, ast.Store()), target)
    return target


def _split(node: Any) -> list[Any]:
    if not isinstance(node, ast.Assign):
        return [node]
    if len(node.targets) == 1:
        return _item_by_item(node) if isinstance(node.targets[0], ast.Tuple) else [node]
    again = _again(node)
    if again is None:
        return [node]
    pairs = zip(node.targets, [node.value, *[copied(again) for _ in node.targets[1:]]], strict=True)
    return [located(placed(ast.Assign([target], value), node)) for target, value in pairs]


def _item_by_item(node: ast.Assign) -> list[Any]:
    """Several constants that several names get."""
    target: Any = node.targets[0]
    value = node.value
    if not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
        return [node]
    named = all([isinstance(item, ast.Name) for item in target.elts])
    some = any([is_none(item) or isinstance(item, ast.Tuple) for item in value.elts])
    if not (named and some) or not all([isinstance(part, _CONSTANT) for item in value.elts for part in walk(item)]):
        return [node]
    return [located(placed(ast.Assign([one], item), node)) for one, item in paired(target, value)]


_CONSTANT = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)


def _again(node: ast.Assign) -> ast.expr | None:
    """What is the same value once more, for all targets but the first; None if there is no such thing for sure: what is put
    into an object may change names."""
    first, *others = node.targets
    if isinstance(node.value, ast.Constant):
        return node.value
    if any([isinstance(part, (ast.Attribute, ast.Subscript)) for target in node.targets[:-1] for part in walk(target)]):
        return None
    bound = {name for target in others for name in names_stored(target)}
    if isinstance(node.value, ast.Name) and node.value.id not in {*bound, *names_stored(first)}:
        return node.value
    if isinstance(first, ast.Name) and first.id not in bound:
        return ast.Name(first.id, ast.Load())
    return None
