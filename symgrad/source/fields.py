"""A dictionary of which a function names nothing but items, by constant keys, is as many locals in the traced function.

``log = {"x": []}``, ``log["x"].append(x)``, ``np.mean(log["x"])`` is ``log_x = []``, ``log_x.append(x)``, ``np.mean(log_x)``:
what is known of loops over locals holds for it, too. Where it is returned, it is made.

So is one that begins empty, with a flag beside each local that says whether it is there: ``total["up"] = total.get("up", 0.0) +
v`` is ``total_up = (total_up if has_total_up else 0.0) + v``, ``has_total_up = True``; ``defaultdict(float)`` needs no flags. A
key may be a local that only ever stands for some texts: there is an ``if`` for each.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from symgrad.source.constants import bound_anywhere, constant
from symgrad.source.displays import TAKES_ALL, written_out
from symgrad.source.syntax import (
    LOCAL_READERS,
    TRIES,
    FunctionNode,
    assigned,
    copied,
    fresh,
    located,
    names_stored,
    placed,
    walk,
)
from symgrad.source.texts import bound_beside, texts_of

MOST = 8  # keys of a dictionary that begins empty
_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)


@dataclass
class _Dictionary:
    """``fields`` are the locals, by key; ``flags``, of one that begins empty, those that say whether a key is there; ``begin``
    is what a ``defaultdict`` begins with."""

    fields: dict[str, str]
    flags: dict[str, str] = field(default_factory=dict)
    begin: ast.expr | None = None


def as_locals(function: FunctionNode, space: Mapping[str, Any]) -> FunctionNode:
    """The function, changed in place, as are those in it. ``space``: what is outside of it."""
    bound = bound_anywhere(function)
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            taken = {part.id for part in _names(node)}
            _write_out(node, TAKES_ALL - {*space, *bound})
            found = _fields(node, taken) | _begun_otherwise(node, space, bound, taken)
            if found:
                uses = [use for use in map(_use, walk(node)) if use is not None and use.name.id in found]
                keys = {use.key.id for use in uses if isinstance(use.key, ast.Name)}
                texts = {key: texts_of(node, key) or [] for key in keys}
                _Fields(found, texts, {part.id for part in _names(node)}).generic_visit(node)
    return function


def _write_out(function: ast.FunctionDef, builtins: Collection[str]) -> None:
    """What runs over all items of such dictionaries, of which nothing else is done, is written out."""
    made: list[Any] = [node for node in walk(function) if isinstance(node, ast.Assign) and _is_made(node)]
    keys = {node.targets[0].id: [key.value for key in node.value.keys] for node in made if len(node.value.keys) <= MOST}
    while keys:
        other = copied(function)
        changed = {name for name, own in keys.items() if written_out(other, name, own, builtins)}
        found = _fields(other, {part.id for part in _names(other)}) if changed else {}
        if changed and changed <= found.keys():
            function.body = other.body
            return
        keys = {name: keys[name] for name in changed if name in found}


def _begun_otherwise(
    function: ast.FunctionDef, space: Mapping[str, Any], bound: Any, names: set[str]
) -> dict[str, _Dictionary]:
    """The dictionaries that begin without some keys, or with a default, and get but items by known ones."""
    every = [*walk(function)]
    if not names.isdisjoint(LOCAL_READERS):
        return {}
    begins = {node.targets[0].id: node for node in every if isinstance(node, ast.Assign) and _is_begun(node, space, bound)}  # type: ignore[attr-defined]
    found = {}
    targets = [part for node in every if isinstance(node, ast.Assign) for part in node.targets]
    targets += [node.target for node in every if isinstance(node, ast.AugAssign)]
    put = {id(part) for target in targets for part in walk(target)}
    others = bound_beside(function, every) if begins else set()
    for name, node in begins.items():
        stored = [part for part in _names(function) if part.id == name and not isinstance(part.ctx, ast.Load)]
        uses = [use for use in map(_use, every) if use is not None and use.name.id == name]
        loads = [part for part in _names(function) if part.id == name and isinstance(part.ctx, ast.Load)]
        begin = _default(node.value, space, bound) if isinstance(node.value, ast.Call) else None
        if len(stored) != 1 or len(uses) != len(loads) or name in others or not _begins_at_once(every, node, name):
            continue
        if begin is not None and any([use.how != "item" for use in uses]):
            continue
        if not all([_is_put_plainly(use, put) and _has_plain_default(use) for use in uses]):
            continue
        keys = _keys(function, every, uses, node.value)
        if keys is None or not 0 < len(keys) <= MOST:
            continue
        local = {key: fresh(f"{name}_{key}" if key.isidentifier() else f"{name}_item", names) for key in keys}
        made: Any = node.value
        there = [*keys] if begin is not None else [key.value for key in made.keys]
        flags = {key: fresh(f"has_{local[key]}", names) for key in keys if key not in there}
        found[name] = _Dictionary(local, flags, begin)
    return found


@dataclass
class _Use:
    """``name[key]`` (``how`` is ``"item"``), ``name.get(key)``, ``name.get(key, default)`` or ``key in name``."""

    name: ast.Name
    how: str
    key: ast.expr
    node: Any


def _use(node: Any) -> _Use | None:
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and not isinstance(node.ctx, ast.Del):
        return _Use(node.value, "item", node.slice, node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        (side,) = node.comparators
        return _Use(side, "in", node.left, node) if isinstance(side, ast.Name) else None
    fun = node.func if isinstance(node, ast.Call) and not node.keywords and 1 <= len(node.args) <= 2 else None
    if isinstance(fun, ast.Attribute) and fun.attr == "get" and isinstance(fun.value, ast.Name):
        return _Use(fun.value, "get", node.args[0], node)
    return None


def _is_put_plainly(use: _Use, put: Collection[int]) -> bool:
    """Whether an item gets something by an assignment, if it does; ``put`` are the nodes there (ids)."""
    return not isinstance(getattr(use.node, "ctx", None), ast.Store) or id(use.node) in put


def _has_plain_default(use: _Use) -> bool:
    """Whether it makes no difference if the default of ``name.get(key, default)`` is computed."""
    if use.how != "get" or len(use.node.args) < 2:
        return True
    return all([isinstance(part, _HARMLESS) for part in walk(use.node.args[1])])


_HARMLESS = (ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.USub)


def _always(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are computed whenever it runs."""
    yield node
    parts = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.IfExp):
        parts = [node.test]
    elif isinstance(node, ast.BoolOp):
        parts = node.values[:1]  # type: ignore[assignment]
    elif isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators[:1]]
    for part in parts:
        yield from _always(part)


def _keys(function: ast.FunctionDef, every: list[ast.AST], uses: list[_Use], made: Any) -> list[str] | None:
    """The keys of a dictionary that is ``made`` so, in the order in which they are named; None where they are not all known."""
    found = dict.fromkeys([key.value for key in getattr(made, "keys", [])])
    by_name = {id(use.node): use.key.id for use in uses if isinstance(use.key, ast.Name)}
    computed = [node for node in every if isinstance(node, _STATEMENTS)] + [
        node.test for node in every if isinstance(node, ast.If)
    ]
    for node in computed if by_name else ():
        own = {by_name[id(part)] for part in walk(node) if id(part) in by_name}
        sure = {by_name[id(part)] for part in _always(node) if id(part) in by_name}
        if own - sure or not own.isdisjoint(names_stored(node)):
            return None
    simple = {id(part) for node in computed for part in walk(node)}
    later = {id(part) for node in every if isinstance(node, _LATER) for part in walk(node)}
    for use in uses:
        if isinstance(use.key, ast.Constant) and type(use.key.value) is str:
            found[use.key.value] = None
            continue
        known = texts_of(function, use.key.id) if isinstance(use.key, ast.Name) else None
        if known is None or id(use.node) not in simple or id(use.node) in later:
            return None
        found.update(dict.fromkeys(known))
    return [*found]


_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _is_begun(node: ast.Assign, space: Mapping[str, Any], bound: Any) -> bool:
    """Whether it is ``name = {"key": value}``, ``name = {}``, ``name = defaultdict(float)`` or ``name = Counter()``."""
    if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Name):
        return False
    if isinstance(node.value, ast.Dict):
        return not node.value.keys or _is_made(node)
    return isinstance(node.value, ast.Call) and _default(node.value, space, bound) is not None


def _default(call: ast.Call, space: Mapping[str, Any], bound: Any) -> ast.expr | None:
    """What items of a dictionary that is made so begin with."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or call.keywords:
        return None
    kind = constant(call.func, space, bound)
    if kind is collections.Counter and not call.args:
        return placed(ast.Constant(0), call)  # type: ignore[no-any-return]
    if kind is not collections.defaultdict or len(call.args) != 1 or not isinstance(call.args[0], ast.Name):
        return None
    made = call.args[0].id
    if made in bound or made in space or made not in _BEGINNINGS:
        return None
    return placed(copied(_BEGINNINGS[made]), call)  # type: ignore[no-any-return]


_BEGINNINGS = {"float": ast.Constant(0.0), "int": ast.Constant(0), "list": ast.List([], ast.Load())}


def _begins_at_once(every: list[ast.AST], begun: ast.Assign, name: str) -> bool:
    """Whether what it begins with hangs on nothing that it has already, and nobody can see that it has some of it."""
    tried = any([part is begun for one in every if isinstance(one, TRIES) for part in walk(one)])
    return not tried and not any([part.id == name for part in _names(begun.value)])


def _fields(function: ast.FunctionDef, names: set[str]) -> dict[str, _Dictionary]:
    """The dictionaries, by name, and the name of the local for each key."""
    every = [*walk(function)]
    if not names.isdisjoint(LOCAL_READERS):
        return {}
    made = [node for node in every if isinstance(node, ast.Assign) and _is_made(node)]
    others = bound_beside(function, every)
    found = {}
    for node in made:
        name, keys = node.targets[0].id, [key.value for key in node.value.keys]  # type: ignore[attr-defined]
        if name not in others and _begins_at_once(every, node, name) and _is_taken_apart(function, name, {*keys}):
            local = {key: fresh(f"{name}_{key}" if key.isidentifier() else f"{name}_item", names) for key in keys}
            found[name] = _Dictionary(local)
    return found


def _names(node: ast.AST) -> list[ast.Name]:
    return [part for part in walk(node) if isinstance(part, ast.Name)]


def _is_made(node: ast.Assign) -> bool:
    """Whether it is ``name = {"key": value, ...}``."""
    if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Name) or not isinstance(node.value, ast.Dict):
        return False
    keys = [key.value if isinstance(key, ast.Constant) else None for key in node.value.keys]
    return bool(keys) and all([type(key) is str for key in keys]) and len({*keys}) == len(keys)


def _is_taken_apart(function: ast.FunctionDef, name: str, keys: set[str]) -> bool:
    """Whether one statement makes what there is under a name, and others name its items alone, or return it."""
    stored = [part for part in _names(function) if part.id == name and not isinstance(part.ctx, ast.Load)]
    if len(stored) != 1:
        return False
    items: list[Any] = [part for part in walk(function) if _is_item(part, name)]
    if any([part.slice.value not in keys or isinstance(part.ctx, ast.Del) for part in items]):
        return False
    every = [*walk(function)]
    targets = [part for node in every if isinstance(node, ast.comprehension) for part in walk(node.target)]
    if any([item is part for item in items for part in targets]):
        return False  # which is no variable of the comprehension's
    returned = [part for node in every if isinstance(node, ast.Return) for part in _given_back(node.value) if part.id == name]
    last = [part for node in every for one in getattr(node, "finalbody", ()) for part in _names(one)]
    if returned and any([part.id == name for part in last]):
        return False  # it is not what it was when it was returned
    known = {id(part.value) for part in items} | {id(part) for part in returned}
    return all([id(part) in known for part in _names(function) if part.id == name and isinstance(part.ctx, ast.Load)])


def _given_back(value: Any) -> Iterator[ast.Name]:
    """The names of what a function gives back as it is, alone or in a tuple, a list or a dict."""
    if isinstance(value, ast.Name):
        yield value
    for part in value.elts if isinstance(value, (ast.Tuple, ast.List)) else value.values if isinstance(value, ast.Dict) else ():
        yield from _given_back(part)


def _is_item(node: Any, name: str) -> bool:
    """Whether it is ``name["key"]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name) or node.value.id != name:
        return False
    return isinstance(node.slice, ast.Constant) and type(node.slice.value) is str


class _Fields(ast.NodeTransformer):
    """Puts locals in the place of items, of these dictionaries, by name. ``texts``: what each local that is a key may stand
    for; ``names`` are taken."""

    def __init__(self, dictionaries: dict[str, _Dictionary], texts: dict[str, list[str]], names: set[str]) -> None:
        self.dictionaries, self.texts, self.names = dictionaries, texts, names

    def visit(self, node: Any) -> Any:
        """A statement with such items; one by a local key is an ``if`` for each text that this may stand for."""
        if isinstance(node, ast.If) and self._local_key(node.test) is not None:
            asked = fresh("asked", self.names)
            first = self._listed(assigned(asked, node.test, node))
            node.test = placed(ast.Name(asked, ast.Load()), node.test)
            return [*first, super().visit(node)]
        local = self._local_key(node) if isinstance(node, _STATEMENTS) else None
        if local is None:
            return super().visit(node)
        name, keys = local
        *others, last = keys
        made = self._listed(_with_key(node, name, last))
        for key in reversed(others):
            test = placed(ast.Compare(ast.Name(name, ast.Load()), [ast.Eq()], [ast.Constant(key)]), node)
            made = [located(placed(ast.If(test, self._listed(_with_key(node, name, key)), made), node))]
        return made

    def _listed(self, statement: Any) -> list[Any]:
        made = self.visit(statement)
        return made if isinstance(made, list) else [made]

    def _local_key(self, node: ast.AST) -> tuple[str, list[str]] | None:
        """The first local that is a key of such a dictionary in a statement, and what it may stand for."""
        for use in map(_use, walk(node)):
            named = use is not None and use.name.id in self.dictionaries and isinstance(use.key, ast.Name)
            if named and self.texts[use.key.id]:  # type: ignore[union-attr]
                return use.key.id, [*dict.fromkeys(self.texts[use.key.id])]  # type: ignore[union-attr]
        return None

    def visit_Assign(self, node: ast.Assign) -> Any:
        name = getattr(node.targets[0], "id", "")
        known = self.dictionaries.get(name)
        if known is None:
            put = [use for target in node.targets for use in self._uses(target)]
            self.generic_visit(node)
            return [node, *self._flagged(put, node)]
        given = zip(node.value.keys, node.value.values, strict=True) if isinstance(node.value, ast.Dict) else ()
        values = {key.value: self.visit(value) for key, value in given}  # type: ignore[union-attr]
        missing = known.begin or ast.Constant(0.0)
        begun = [assigned(one, values.get(key, copied(missing)), node) for key, one in known.fields.items()]
        return begun + [assigned(flag, ast.Constant(False), node) for flag in known.flags.values()]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        added = self._uses(node.target)
        self.generic_visit(node)
        missing = [placed(ast.If(self._absent(use, node), [placed(ast.Expr(_missing(use)), node)], []), node) for use in added]
        return [*map(located, missing), node]

    def _item(self, node: Any) -> tuple[_Use, _Dictionary] | None:
        """The use of an item by a known key, and of which dictionary; None for other nodes."""
        use = _use(node)
        known = self.dictionaries.get(use.name.id) if use is not None else None
        if use is None or known is None or not isinstance(use.key, ast.Constant) or use.key.value not in known.fields:
            return None
        return use, known

    def _uses(self, node: ast.AST) -> list[_Use]:
        """The items of dictionaries that began empty into which a target puts something."""
        found = [use for use in map(_use, walk(node)) if use is not None and use.name.id in self.dictionaries]
        stored = [use for use in found if isinstance(getattr(use.node, "ctx", None), ast.Store)]
        return [use for use in stored if self._flag(use)]

    def _flag(self, use: _Use) -> str | None:
        return self.dictionaries[use.name.id].flags.get(getattr(use.key, "value", ""))

    def _flagged(self, uses: list[_Use], node: ast.stmt) -> Iterator[ast.stmt]:
        for use in uses:
            yield assigned(self._flag(use) or "", ast.Constant(True), node)

    def _there(self, use: _Use) -> ast.expr:
        """Whether a key is there."""
        flag = self._flag(use)
        return ast.Constant(True) if flag is None else ast.Name(flag, ast.Load())

    def _absent(self, use: _Use, node: ast.AST) -> ast.expr:
        return placed(ast.UnaryOp(ast.Not(), self._there(use)), node)  # type: ignore[no-any-return]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        found = self._item(node)
        if found is None:
            self.generic_visit(node)
            return node
        use, known = found
        item = placed(ast.Name(known.fields[use.key.value], copied(node.ctx)), node)  # type: ignore[attr-defined]
        if self._flag(use) is None or not isinstance(node.ctx, ast.Load):
            return item
        return located(placed(ast.IfExp(self._there(use), item, _missing(use)), node))

    def visit_Call(self, node: ast.Call) -> Any:
        found = self._item(node)
        self.generic_visit(node)
        if found is None:
            return node
        use, known = found
        item = ast.Name(known.fields[use.key.value], ast.Load())  # type: ignore[attr-defined]
        default = node.args[1] if len(node.args) > 1 else ast.Constant(None)
        made = item if self._flag(use) is None else ast.IfExp(self._there(use), item, default)
        return located(placed(made, node))

    def visit_Compare(self, node: ast.Compare) -> Any:
        found = self._item(node)
        if found is None:
            got = self._is_got(node)
            self.generic_visit(node)
            asked: Any = node.left
            if got and isinstance(asked, ast.IfExp):  # whether it is None, or is none
                there, item = asked.test, placed(ast.Compare(asked.body, node.ops, node.comparators), node)
                absent = isinstance(node.ops[0], ast.Is)
                first = placed(ast.UnaryOp(ast.Not(), there), node) if absent else there
                return located(placed(ast.BoolOp(ast.Or() if absent else ast.And(), [first, item]), node))
            return node
        flag = self._there(found[0])
        if isinstance(node.ops[0], ast.NotIn):
            flag = ast.UnaryOp(ast.Not(), flag)
        return located(placed(flag, node))

    def _is_got(self, node: ast.Compare) -> bool:
        """Whether it asks if ``name.get(key)`` is None."""
        use = _use(node.left)
        known = use is not None and use.how == "get" and len(use.node.args) == 1 and use.name.id in self.dictionaries
        none = [isinstance(side, ast.Constant) and side.value is None for side in node.comparators]
        return known and none == [True] and isinstance(node.ops[0], (ast.Is, ast.IsNot))

    def visit_Name(self, node: ast.Name) -> Any:
        known = self.dictionaries.get(node.id)
        if known is None or not isinstance(node.ctx, ast.Load):
            return node
        fields = known.fields
        made = ast.Dict([ast.Constant(key) for key in fields], [ast.Name(name, ast.Load()) for name in fields.values()])
        return located(placed(made, node))


def _missing(use: _Use) -> ast.expr:
    """What raises the error of a key that is not there."""
    return placed(ast.Subscript(ast.Dict([], []), copied(use.key), ast.Load()), use.node)  # type: ignore[no-any-return]


def _with_key(statement: ast.stmt, name: str, key: str) -> ast.stmt:
    """The same statement, where a local that is a key stands for this text."""
    made = copied(statement)
    for use in map(_use, walk(made)):
        if use is not None and isinstance(use.key, ast.Name) and use.key.id == name:
            text = placed(ast.Constant(key), use.key)
            if use.how == "item":
                use.node.slice = text
            elif use.how == "in":
                use.node.left = text
            else:
                use.node.args[0] = text
    return made  # type: ignore[no-any-return]
