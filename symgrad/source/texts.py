"""Texts that only stand for states (``state = "idle"``, ``if state == "run":``) are numbers in the function that is traced.

Numbers that an ``if`` assigns can go round a loop, and be decided on in code; texts cannot. A local is numbered if all that it
is ever assigned is texts, None, and other such locals, and all that is done with it is to compare it with such. Members of an
``Enum`` outside of the function are as good as texts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from symgrad.source.constants import bound_anywhere, constant
from symgrad.source.syntax import LOCAL_READERS, SCOPES, FunctionNode, ends_of, is_none, paired, parts_of, placed, walk

_LISTS = (ast.Tuple, ast.List, ast.Set)
_EQUALITIES = (object.__eq__, int.__eq__, str.__eq__)


def numbered(function: FunctionNode, space: Mapping[str, Any]) -> FunctionNode:
    """The function, changed in place, as are those in it: such texts are ints. ``space``: what is outside of it."""
    bound = bound_anywhere(function)
    for node in [*walk(function)]:
        member = constant(node, space, bound) if isinstance(node, ast.Attribute) else None
        if isinstance(member, Enum) and _equality(member) in _EQUALITIES:
            node.member = member  # type: ignore[attr-defined]
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            names = _states(node)
            if names:
                _Numbers(names).generic_visit(node)
    return function


def _states(function: ast.FunctionDef) -> set[str]:
    """The locals that only ever stand for texts, some of them."""
    every = [*walk(function)]
    statements = [node for node in every if isinstance(node, ast.Assign)]
    values = [(target.id, value) for node in statements for target, value in _pairs(node)]
    texts = {name for name, value in values if any(map(_is_text, ends_of(value)))}
    used = [node for node in every if isinstance(node, ast.Name)]
    if not texts or not {node.id for node in used}.isdisjoint(LOCAL_READERS):
        return set()
    names = texts | {
        name for name, value in values if any([isinstance(end, ast.Name) or is_none(end) for end in ends_of(value)])
    }
    names -= bound_beside(function, every)
    left = None
    while names != left:
        left = {*names}
        known = {id(part) for part in _known(every, names)}
        names -= {node.id for node in used if id(node) not in known}
        names -= {name for name, value in values if not _stands_for_text(value, names)}
        for node in statements:
            several = {getattr(target, "id", "") for target in node.targets}
            if len(node.targets) > 1 and not several <= names:
                names -= several
    return names if names & texts else set()


def texts_of(function: ast.FunctionDef, name: str) -> list[str] | None:
    """The texts that a local may stand for; None where it may stand for anything else."""
    every = [*walk(function)]
    stored = [node for node in every if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)]
    statements = [node for node in every if isinstance(node, ast.Assign)]
    values = [(target, value) for node in statements for target, value in _pairs(node) if target.id == name]
    ends = [end for _, value in values for end in ends_of(value)]
    if not stored or len(stored) != len(values) or name in bound_beside(function, every):
        return None
    texts = [end.value for end in ends if isinstance(end, ast.Constant) and isinstance(end.value, str)]
    return texts if len(texts) == len(ends) else None


def bound_beside(function: ast.FunctionDef, every: Iterable[ast.AST]) -> set[str]:
    """The names that are bound in a function, ``every`` part of which is given, by what is no assignment, its parameters among
    them, or that functions and classes in it use."""
    return {name for node in every if node is not function for name in _bound_otherwise(node)}


def _bound_otherwise(node: ast.AST) -> list[str]:
    """The names that a node binds which is no assignment, or that functions and classes in the function use."""
    if isinstance(node, SCOPES):
        return [part.id for part in walk(node) if isinstance(part, ast.Name)] + [getattr(node, "name", "")]
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).split(".")[0]]
    names = [getattr(node, field, None) for field in ("arg", "name", "rest")]  # of parameters, handlers, patterns
    return [name for name in names if isinstance(name, str)]


def _known(every: list[ast.AST], names: set[str]) -> list[ast.AST]:
    """The places where these names are assigned texts, or compared with them."""
    found: list[ast.AST] = []
    for node in every:
        if isinstance(node, ast.Assign):
            pairs = _pairs(node)
            found += [target for target, value in pairs if _stands_for_text(value, names)]
            found += [part for target, value in pairs if target.id in names for part in ends_of(value)]
        elif isinstance(node, ast.Compare) and _is_of_texts(node, names):
            found += [part for side in (node.left, *node.comparators) for part in [side, *parts_of(side)]]
    return found


def _pairs(node: ast.Assign) -> list[tuple[ast.Name, ast.expr]]:
    """The names that a statement assigns one by one, and what."""
    found = [pair for target in node.targets for pair in paired(target, node.value)]
    return [(target, value) for target, value in found if isinstance(target, ast.Name)]


def _is_text(node: ast.AST) -> bool:
    return hasattr(node, "member") or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _equality(value: Any) -> Any:
    return type(value).__eq__


def _is_one_of_a_kind(node: ast.AST) -> bool:
    """Whether nothing else is equal to it."""
    return is_none(node) or (hasattr(node, "member") and _equality(node.member) is object.__eq__)


def _is_code(node: ast.AST, names: set[str]) -> bool:
    """Whether it is a text, None, or such a name."""
    return is_none(node) or _is_text(node) or (isinstance(node, ast.Name) and node.id in names)


def _stands_for_text(value: ast.expr, names: set[str]) -> bool:
    return all([_is_code(end, names) for end in ends_of(value)])


def _is_of_texts(node: ast.Compare, names: set[str]) -> bool:
    """Whether it compares such a name with texts, or looks whether it is among some."""
    sides = [node.left, *node.comparators]
    if not any([isinstance(side, ast.Name) and side.id in names for side in sides]) or not _is_code(node.left, names):
        return False
    for op, side in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, (ast.In, ast.NotIn)):
            if len(sides) > 2 or not isinstance(side, _LISTS) or not all([_is_code(item, names) for item in side.elts]):
                return False
        elif not _is_code(side, names):
            return False
        elif isinstance(op, (ast.Is, ast.IsNot)):
            if len(sides) > 2 or not any(map(_is_one_of_a_kind, sides)):
                return False
        elif not isinstance(op, (ast.Eq, ast.NotEq)):
            return False
    return True


class _Numbers(ast.NodeTransformer):
    """Puts numbers in the place of the texts that are assigned to these names, and compared with them."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.codes: dict[Any, int] = {}

    def _code(self, node: Any) -> Any:
        if isinstance(node, ast.IfExp):
            test, body, orelse = self.visit(node.test), self._code(node.body), self._code(node.orelse)
            return placed(ast.IfExp(test, body, orelse), node)
        if not isinstance(node, ast.Constant) and not hasattr(node, "member"):
            return node
        value = node.member if hasattr(node, "member") else node.value
        return placed(ast.Constant(self.codes.setdefault(value, len(self.codes))), node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        pairs = _pairs(node)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Tuple) and pairs and isinstance(node.value, ast.Tuple):
            states = [isinstance(item, ast.Name) and item.id in self.names for item in node.targets[0].elts]
            parts = zip(node.value.elts, states, strict=True)
            node.value.elts = [self._code(item) if state else self.visit(item) for item, state in parts]
            return node
        if pairs and pairs[0][0].id in self.names:
            node.value = self._code(node.value)
            return node
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if not _is_of_texts(node, self.names):
            return self.generic_visit(node)
        node.left = self._code(node.left)
        for i, side in enumerate(node.comparators):
            if isinstance(side, _LISTS):
                side.elts = [self._code(item) for item in side.elts]
            else:
                node.comparators[i] = self._code(side)
        equal = {ast.Is: ast.Eq, ast.IsNot: ast.NotEq}
        node.ops = [equal.get(type(op), type(op))() for op in node.ops]
        return node
