"""Texts that only stand for states (``state = "idle"``, ``if state == "run":``) are numbers in the function that is traced.

Numbers that an ``if`` assigns can go round a loop, and be decided on in code; texts cannot. A local is numbered if all that it
is ever assigned is texts, None, and other such locals, and all that is done with it is to compare it with such, or to read what
a dict has for it: ``rates[state]`` is ``rates["idle"] if state == 0 else rates["run"]``. So is what a list holds, if it is only
read, run over, and appended to (``kinds = ["up" if v > 0 else "down" for v in x]``). Members of an ``Enum`` outside of the
function are as good as texts.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any

from symgrad.source.constants import bound_anywhere, constant
from symgrad.source.syntax import (
    LOCAL_READERS,
    SCOPES,
    FunctionNode,
    copied,
    ends_of,
    is_none,
    located,
    paired,
    parts_of,
    placed,
    walk,
)

_LISTS = (ast.Tuple, ast.List, ast.Set)
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Dict, ast.Load)
_RUNNING = frozenset(["enumerate", "len", "zip"])  # builtins that lists are given to
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
            lists = _lists(node) if _RUNNING.isdisjoint({*bound, *space}) else set()
            while not lists <= (names := _states(node, lists)):  # what is in some is used for something else
                lists &= names
            if names:
                numbers = _Numbers(names - lists, lists)
                numbers.generic_visit(node)
                _Keys(names - lists, numbers.texts).generic_visit(node)
    return function


def _states(function: ast.FunctionDef, lists: set[str]) -> set[str]:
    """The locals that only ever stand for texts, some of them, and those of the ``lists`` that there are only such in."""
    every = [*walk(function)]
    statements = [node for node in every if isinstance(node, ast.Assign)]
    values = [(target.id, value) for node in statements for target, value in _pairs(node)]
    values = [(name, end) for name, value in values for end in (_put(value) if name in lists else [value])]
    texts = {name for name, value in values if any(map(_is_text, ends_of(value)))}
    used = [node for node in every if isinstance(node, ast.Name)]
    if not (texts or lists) or not {node.id for node in used}.isdisjoint(LOCAL_READERS):
        return set()
    items = [(item.id, owner) for item, owner in _items(every, lists)]
    names = {*texts, *lists, *[name for name, _ in items]} | {
        name for name, value in values if any([isinstance(end, ast.Name) or is_none(end) for end in ends_of(value)])
    }
    names -= bound_beside(function, every)
    left = None
    while names != left:
        left = {*names}
        known = {id(part) for part in _known(every, names, lists & names)}
        names -= {node.id for node in used if id(node) not in known}
        names -= {name for name, value in values if not _stands_for_text(value, names - lists)}
        names -= {name for name, owner in items if owner not in names}
        for node in statements:
            several = {getattr(target, "id", "") for target in node.targets}
            if len(node.targets) > 1 and not several <= names:
                names -= several
    return names if names & (texts | lists) else set()


def _lists(function: ast.FunctionDef) -> set[str]:
    """The locals that stand for lists with texts in them, or such locals, as far as assignments, and what is appended, tell."""
    every = [*walk(function)]
    pairs = [pair for node in every if isinstance(node, ast.Assign) and len(node.targets) == 1 for pair in _pairs(node)]
    made: dict[str, list[ast.expr]] = {}
    for target, value in pairs:
        made.setdefault(target.id, []).append(value)
    found = {name for name, values in made.items() if all([isinstance(value, (ast.List, ast.ListComp)) for value in values])}
    more = [(owner, value) for node in every for owner, value in _appended(node)]
    put = [(name, end) for name in found for value in made[name] for end in _put(value)]
    put += [(owner.id, value) for owner, value in more]
    return found & {name for name, value in put if any([_is_text(end) or isinstance(end, ast.Name) for end in ends_of(value)])}


def _put(value: ast.expr) -> list[ast.expr]:
    """What is in a list that is made."""
    return [value.elt] if isinstance(value, ast.ListComp) else value.elts if isinstance(value, ast.List) else [value]


def _appended(node: ast.AST) -> list[tuple[ast.Name, ast.expr]]:
    """``y`` and ``v`` of ``y.append(v)``, or of ``y.count(v)``."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords or not isinstance(node.func, ast.Attribute):
        return []
    owner = node.func.value
    return [(owner, node.args[0])] if node.func.attr in ("append", "count") and isinstance(owner, ast.Name) else []


def _items(every: list[ast.AST], lists: set[str]) -> list[tuple[ast.Name, str]]:
    """The names that items of ``lists`` get where loops run over these, and of which each is one."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for node in every:
        if isinstance(node, (ast.For, ast.comprehension)):
            found += _turns(node.target, node.iter)
    return [(target, owner) for target, given in found if isinstance(target, ast.Name) and (owner := _of_list(given, lists))]


def _turns(target: ast.expr, given: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What gets the items of what in a loop, through ``zip`` and ``enumerate``."""
    name = getattr(given.func, "id", "") if isinstance(given, ast.Call) else ""
    args = given.args if isinstance(given, ast.Call) else []
    if name == "enumerate" and args and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return _turns(target.elts[1], args[0])
    if name == "zip" and isinstance(target, ast.Tuple) and len(target.elts) == len(args):
        return [pair for one, arg in zip(target.elts, args, strict=True) for pair in _turns(one, arg)]
    return [(target, given)]


def _of_list(given: ast.expr, lists: set[str]) -> str:
    """The list that these are items of: ``y``, or ``y[1:]``."""
    owner = given.value if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice) else given
    return owner.id if isinstance(owner, ast.Name) and owner.id in lists else ""


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
    return {name for node in every if node is not function for name in bound_otherwise(node)}


def bound_otherwise(node: ast.AST) -> list[str]:
    """The names that a node binds which is no assignment, or that functions and classes in the function use."""
    if isinstance(node, SCOPES):
        return [part.id for part in walk(node) if isinstance(part, ast.Name)] + [getattr(node, "name", "")]
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).split(".")[0]]
    names = [getattr(node, field, None) for field in ("arg", "name", "rest")]  # of parameters, handlers, patterns
    return [name for name in names if isinstance(name, str)]


def _known(every: list[ast.AST], names: set[str], lists: set[str]) -> list[ast.AST]:
    """The places where these names are assigned texts, or compared with them, and those where ``lists`` of such are used."""
    found: list[ast.AST] = []
    states = names - lists
    for node in every:
        if (key := _read_at(node, states)) is not None:
            found.append(key)
        elif isinstance(node, ast.Assign):
            for target, value in _pairs(node):
                put = _put(value) if target.id in lists else [value]
                if all([_stands_for_text(part, states) for part in put]):
                    found += [target, *[end for part in put for end in ends_of(part) if target.id in names]]
        elif isinstance(node, (ast.For, ast.comprehension)):
            for item, given in _turns(node.target, node.iter):
                if _of_list(given, lists) and isinstance(item, ast.Name) and item.id in states:
                    found += [item, given, given.value if isinstance(given, ast.Subscript) else given]
        elif isinstance(node, ast.Call):
            if getattr(node.func, "id", "") == "len" and len(node.args) == 1:
                found += [arg for arg in node.args if isinstance(arg, ast.Name) and arg.id in lists]
            for owner, value in _appended(node):
                if owner.id in lists and _stands_for_text(value, states):
                    found += [owner, *ends_of(value)]
        elif isinstance(node, ast.Compare) and _is_of_texts(node, states, lists):
            for one in (node.left, *node.comparators):
                found += [one, *([one.value] if isinstance(one, ast.Subscript) else parts_of(one))]
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


def _is_code(node: ast.AST, names: set[str], lists: Collection[str] = ()) -> bool:
    """Whether it is a text, None, or such a name, or an item of such a list."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        return isinstance(node.value, ast.Name) and node.value.id in lists
    return is_none(node) or _is_text(node) or (isinstance(node, ast.Name) and node.id in names)


def _read_at(node: ast.AST, names: set[str]) -> ast.expr | None:
    """Such a name at which something is read, ``rates[state]`` or ``rates.get(state, 0.0)``, where all else may be repeated."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        key, *others = node.slice, node.value
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get" and node.args and not node.keywords:
        key, *others = *node.args, node.func
    else:
        return None
    return key if isinstance(key, ast.Name) and key.id in names and all(map(_is_plain, others)) else None


def _is_plain(node: ast.AST) -> bool:
    """Whether it only names something, or is a display of such."""
    return isinstance(node, _PLAIN) and all(map(_is_plain, parts_of(node)))


def _stands_for_text(value: ast.expr, names: set[str]) -> bool:
    return all([_is_code(end, names) for end in ends_of(value)])


def _is_of_texts(node: ast.Compare, names: set[str], lists: set[str]) -> bool:
    """Whether it compares such a name, or an item of such a list, with texts, or looks whether it is among some."""
    sides = [node.left, *node.comparators]
    ours = [isinstance(side, ast.Name) and side.id in (names | lists) for side in sides]
    ours += [isinstance(side, ast.Subscript) and _is_code(side, names, lists) for side in sides]
    if not any(ours) or not _is_code(node.left, names, lists):
        return False
    for op, side in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, (ast.In, ast.NotIn)):
            among = isinstance(side, _LISTS) and all([_is_code(item, names, lists) for item in side.elts])
            if len(sides) > 2 or not (among or (isinstance(side, ast.Name) and side.id in lists)):
                return False
        elif not _is_code(side, names, lists):
            return False
        elif isinstance(op, (ast.Is, ast.IsNot)):
            if len(sides) > 2 or not any(map(_is_one_of_a_kind, sides)):
                return False
        elif not isinstance(op, (ast.Eq, ast.NotEq)):
            return False
    return True


class _Numbers(ast.NodeTransformer):
    """Puts numbers in the place of the texts that are assigned to these names, and compared with them."""

    def __init__(self, names: set[str], lists: set[str]) -> None:
        self.names, self.lists = names, lists
        self.codes: dict[Any, int] = {}
        self.texts: list[ast.expr] = []  # what these stand for

    def _code(self, node: Any) -> Any:
        if isinstance(node, ast.IfExp):
            test, body, orelse = self.visit(node.test), self._code(node.body), self._code(node.orelse)
            return placed(ast.IfExp(test, body, orelse), node)
        if not isinstance(node, ast.Constant) and not hasattr(node, "member"):
            return self.visit(node)
        value = node.member if hasattr(node, "member") else node.value
        if value not in self.codes:
            self.codes[value] = len(self.texts)
            self.texts.append(node)
        return placed(ast.Constant(self.codes[value]), node)

    def _given(self, target: ast.expr, value: Any) -> Any:
        """What a target is assigned."""
        name = target.id if isinstance(target, ast.Name) else ""
        if name in self.names:
            return self._code(value)
        if name in self.lists and isinstance(value, ast.ListComp):
            value.elt, value.generators = self._code(value.elt), [*map(self.visit, value.generators)]
            return value
        if name in self.lists:
            value.elts = [*map(self._code, value.elts)]
            return value
        return self.visit(value)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            targets, values = node.targets[0].elts, node.value.elts
            if len(targets) == len(values) and not any([isinstance(one, ast.Starred) for one in (*targets, *values)]):
                node.value.elts = [self._given(target, value) for target, value in zip(targets, values, strict=True)]
                node.targets = [*map(self.visit, node.targets)]
                return node
        node.value, node.targets = self._given(node.targets[0], node.value), [*map(self.visit, node.targets)]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        for owner, value in _appended(node):
            if owner.id in self.lists:
                node.args = [self._code(value)]
                return node
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if not _is_of_texts(node, self.names, self.lists):
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


class _Keys(ast.NodeTransformer):
    """Reads what a dict has at these names, which are numbers by now, at each of the ``texts`` that they stand for."""

    def __init__(self, names: set[str], texts: list[ast.expr]) -> None:
        self.names, self.texts = names, texts

    def _chosen(self, node: Any) -> Any:
        key = _read_at(node, self.names)
        self.generic_visit(node)
        if key is None:
            return node
        *others, chosen = [self._at(node, text) for text in self.texts]
        for number, other in reversed([*enumerate(others)]):
            chosen = ast.IfExp(ast.Compare(copied(key), [ast.Eq()], [ast.Constant(number)]), other, chosen)
        return located(placed(chosen, node))

    def _at(self, node: Any, text: ast.expr) -> ast.expr:
        """The same at a text."""
        if isinstance(node, ast.Call):
            return ast.Call(copied(node.func), [copied(text), *map(copied, node.args[1:])], [])
        return ast.Subscript(copied(node.value), copied(text), ast.Load())

    visit_Subscript = visit_Call = _chosen
