"""Lists that a function makes, and of which it reads and writes one number at a time, as arrays.

``d = [[0.0] * n for _ in range(n)]`` and ``d[i][j] = min(d[i - 1][j], ...)`` run as ``d = table([...])`` and
``d[i, j] = ...``: a loop over them can be rolled up as one over an array, whatever its ``if``s decide. That is done where the
text shows that nothing else happens to such a list, but that it gets another such name, and that functions which change
nothing read it; and where the loop was seen to need it: see ``symgrad.loops.tables``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from symgrad.source.syntax import (
    COMPREHENSIONS,
    LOCAL_READERS,
    MODULES,
    FunctionNode,
    declared,
    names_read,
    names_stored,
    owner_of,
    paired,
    parts_of,
    placed,
    walk,
)

Group = tuple[str, ...]  # of names, in order, that lists go between

_EAGER = frozenset(["sum", "min", "max", "sorted", "list", "tuple", "any", "all", "len"])  # builtins that look through a list
_LAZY = frozenset(["enumerate", "zip", "reversed"])  # that give its items later
_PAUSES = (ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.Delete)
_NO_INDEX = (ast.Slice, ast.Tuple, ast.Compare, ast.BoolOp, ast.Starred, ast.IfExp, ast.NamedExpr)


class Table(NamedTuple):
    """Names of lists of numbers, or of ``depth`` 2 of such lists."""

    group: Group
    depth: int


def tables(function: FunctionNode, own: Collection[str] = ()) -> list[Table]:
    """The lists of a function that may be arrays, and are written to in a loop. ``own``: the module's names, and those of
    functions around it, no more those of builtins."""
    if isinstance(function, ast.Lambda) or any([isinstance(part, _PAUSES) for part in walk(function)]):
        return []
    uses = _Uses(function)
    read = {part.id for part in walk(function) if isinstance(part, ast.Name)}
    fine = read.isdisjoint(LOCAL_READERS) and read.isdisjoint((_EAGER | _LAZY) & {*own, *names_stored(function)})
    return uses.tables() if uses.written and fine else []


def with_tables(function: FunctionNode, groups: Collection[Group], own: Collection[str]) -> FunctionNode:
    """The function, changed in place: the lists of these ``groups`` are arrays, and their names and items know by which hook
    they are read; where an item is assigned, of other lists that may be arrays, too, the target knows its ``table``."""
    for table in tables(function, own):
        if table.group in groups:
            _Tabler(table).generic_visit(function)
        for part in walk(function):
            stored = isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load)
            if stored and getattr(owner_of(part), "id", "") in table.group:
                part.table = table  # type: ignore[attr-defined]
    return function


class _Uses:
    """What a function does with each of its names."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = {item.arg for item in walk(function.args) if isinstance(item, ast.arg)}
        self.others = {*arguments, *declared(function)}  # that are no such lists, or of which more is done
        self.made: set[str] = set()
        self.depths: dict[str, set[int]] = {}  # at which items are assigned, or read
        self.links: list[tuple[str, str]] = []  # names for one list
        self.copies: list[tuple[str, str, bool]] = []  # names for a copy, and whether of anything that may be looked through
        self.stored: list[tuple[str, tuple[ast.AST, ...]]] = []  # of which an item is assigned, and in which loops
        self.looped: list[tuple[str, ast.AST]] = []  # that loops run over
        for statement in function.body:
            self._look(statement, ())
        self.written = {name for name, around in self.stored if around}

    def tables(self) -> list[Table]:
        """The groups of names that may be arrays."""
        known = self.made - self.others
        for copy, name, listed in self.copies:
            if name in known:
                self.links.append((copy, name))
            else:
                self.others |= {name} if listed else {name, copy}
                self.made.add(copy)
        groups = {name: {name} for name in self.made}
        for one, other in self.links:
            if one in groups or other in groups:
                both = groups.get(one, {one}) | groups.get(other, {other})
                groups.update(dict.fromkeys(both, both))
        found = []
        for names in {id(names): names for names in groups.values()}.values():
            depths = set[int]().union(*[self.depths.get(name, set()) for name in names])
            fine = names <= self.made | {one for link in self.links for one in link} and names.isdisjoint(self.others)
            fine = fine and not names.isdisjoint(self.written) and len(depths) == 1 and not self._change_while_read(names)
            if fine and (depths == {1} or names.isdisjoint([name for name, *_ in self.copies])):  # copies share their rows
                found.append(Table(tuple(sorted(names)), *depths))
        return sorted(found)

    def _change_while_read(self, names: set[str]) -> bool:
        """Whether a loop that runs over a list of these names assigns an item of it."""
        loops = [loop for name, loop in self.looped if name in names]
        return any([loop in around for name, around in self.stored if name in names for loop in loops])

    def _look(self, node: Any, around: tuple[ast.AST, ...]) -> None:
        """Look through a statement or an expression, in the loops ``around``."""
        if isinstance(node, ast.Name):  # what is done with it, no other case has told
            self.others.add(node.id)
        elif isinstance(node, FunctionNode | ast.ClassDef):
            self.others |= {item.id for item in walk(node) if isinstance(item, ast.Name)} | {getattr(node, "name", "")}
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            for target, value in paired(node.targets[0], node.value):
                self._assign(target, value, around)
        elif isinstance(node, ast.Subscript):
            self._item(node, around)
        elif isinstance(node, ast.Compare) and any([isinstance(sign, (ast.Is, ast.IsNot)) for sign in node.ops]):
            self.others |= set(names_read(node))  # which item is which, no array tells
        elif isinstance(node, ast.Return) and node.value is not None:
            for given in node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]:
                self._reader(given, around)
        elif isinstance(node, ast.Call) and _is_eager(node):
            for given in [*node.args, *[keyword.value for keyword in node.keywords]]:
                self._all(given, around) if isinstance(given, ast.GeneratorExp) else self._reader(given, around)
        elif isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.GeneratorExp):
            self._all(node, around)
        elif isinstance(node, ast.For):
            self._run_over(node.iter, node, around)
            for part in (node.target, *node.body, *node.orelse):
                self._look(part, (*around, node))
        else:
            self.others |= {*names_bound(node)}
            inner = (*around, node) if isinstance(node, ast.While) else around
            for part in parts_of(node):
                self._look(part, inner)

    def _all(self, node: Any, around: tuple[ast.AST, ...]) -> None:
        """A comprehension of which all is computed at once."""
        for part in parts_of(node):
            if isinstance(part, ast.comprehension):
                self._run_over(part.iter, node, around)
                for inner in (part.target, *part.ifs):
                    self._look(inner, around)
            else:
                self._look(part, around)

    def _run_over(self, node: Any, loop: ast.AST, around: tuple[ast.AST, ...]) -> None:
        """What a loop runs over: it reads the items one by one."""
        lazy = isinstance(node, ast.Call) and _name_of(node) in _LAZY and not node.keywords
        for part in node.args if lazy else [node]:
            self.looped += [(name, loop) for name in [getattr(owner_of(part), "id", None)] if name]
            self._reader(part, around)

    def _assign(self, target: Any, value: Any, around: tuple[ast.AST, ...]) -> None:
        source = copied_from(value)
        if isinstance(target, ast.Name) and isinstance(value, ast.Name):
            self.links.append((target.id, value.id))
            return
        if isinstance(target, ast.Name) and source is not None:
            self.copies.append((target.id, source, _makes_list(value)))
            return
        if isinstance(target, ast.Name) and _makes_list(value):
            self.made.add(target.id)
        else:
            self._look(target, around)
        self._look(value, around)

    def _item(self, node: ast.Subscript, around: tuple[ast.AST, ...]) -> None:
        owner, indices = _taken(node)
        for index in indices:
            self._look(index, around)
        if not isinstance(owner, ast.Name):
            self._look(owner, around)
            return
        if len(indices) > 2 or any([isinstance(index, _NO_INDEX) for index in indices]):
            self.others.add(owner.id)
        self.depths.setdefault(owner.id, set()).add(len(indices))
        if not isinstance(node.ctx, ast.Load):
            self.stored.append((owner.id, around))

    def _reader(self, node: Any, around: tuple[ast.AST, ...]) -> None:
        """What is given to something that changes nothing: a list, a row of one, or something else."""
        owner, indices = _taken(node)
        if isinstance(owner, ast.Name) and len(indices) < 2 and not any([isinstance(index, _NO_INDEX) for index in indices]):
            for index in indices:  # of a list, or of one in it
                self._look(index, around)
        else:
            self._look(node, around)


class _Tabler(ast.NodeTransformer):
    """Lets the lists of one ``table`` be arrays: marks the names, what is assigned to them, and the items."""

    def __init__(self, table: Table) -> None:
        self.table, self.group = table, table.group
        self.way = "table_items"  # the hook by which what reads a list gets it

    def visit_Assign(self, node: ast.Assign) -> Any:
        for target, value in paired(node.targets[0], node.value) if len(node.targets) == 1 else ():
            source = copied_from(value)
            if isinstance(target, ast.Name) and target.id in self.group:
                if source in self.group:
                    name: Any = placed(ast.Name(source, ast.Load()), value)
                    name.hook = "table_copied", self.table
                    node.value = _replaced(node.value, value, name)
                elif isinstance(value, ast.Name):
                    value.hook = "", self.table  # type: ignore[attr-defined]
                else:
                    target.table = self.table  # type: ignore[attr-defined]
        return self.generic_visit(node)

    def visit_Name(self, node: Any) -> Any:
        if node.id in self.group and isinstance(node.ctx, ast.Load) and not hasattr(node, "hook"):
            node.hook = self.way, self.table
        return node

    def visit_Subscript(self, node: Any) -> Any:
        owner, indices = _taken(node)
        if not isinstance(owner, ast.Name) or owner.id not in self.group:
            return self.generic_visit(node)
        way, self.way = self.way, "table_items"
        places = [self.visit(index) for index in indices]
        self.way = way
        owner.hook = "", self.table  # type: ignore[attr-defined]
        node.value, node.slice = owner, places[0] if len(places) == 1 else placed(ast.Tuple(places, ast.Load()), node.slice)
        if not isinstance(node.ctx, ast.Load):
            node.places = True
        else:
            node.hook = "table_item" if len(places) == self.table.depth else way, self.table
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        before, self.way = self.way, "table_items"
        if isinstance(node.func, ast.Attribute) and _is_eager(node):
            self.way = "table_array"
        elif _name_of(node) == "len":
            self.way = ""
        self.generic_visit(node)
        self.way = before
        return node


def copied_from(value: ast.expr) -> str | None:
    """The name of a list of which an expression is a copy: ``d[:]``, ``list(d)`` or ``d.copy()``."""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and isinstance(value.value, ast.Name):
        ends = value.slice.lower, value.slice.upper, value.slice.step
        return value.value.id if ends == (None, None, None) else None
    if not isinstance(value, ast.Call) or value.keywords:
        return None
    if _name_of(value) == "list" and len(value.args) == 1:
        return getattr(value.args[0], "id", None)
    is_method = isinstance(value.func, ast.Attribute) and value.func.attr == "copy" and not value.args
    return getattr(value.func.value, "id", None) if is_method else None  # type: ignore[attr-defined]


def names_bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds itself, in another way than by a ``Name``."""
    for field in ("name", "rest", "asname"):
        if isinstance(found := getattr(node, field, None), str):
            yield found.split(".")[0]


def _makes_list(value: ast.expr) -> bool:
    """Whether an expression gives a new list for sure, or may if what is multiplied is one."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Mult)):
        return _makes_list(value.left) or _makes_list(value.right)
    return isinstance(value, (ast.List, ast.ListComp)) or (isinstance(value, ast.Call) and _name_of(value) == "list")


def _is_eager(node: ast.Call) -> bool:
    """Whether it is a call of a function that looks through a list, and is done with it."""
    if isinstance(node.func, ast.Attribute):
        return isinstance(node.func.value, ast.Name) and node.func.value.id in MODULES
    return _name_of(node) in _EAGER


def _name_of(node: ast.Call) -> str:
    return getattr(node.func, "id", "")


def _taken(node: Any) -> tuple[Any, list[ast.expr]]:
    """What ``a[i][j]`` is of in the end, ``a``, and the indices."""
    indices: list[ast.expr] = []
    while isinstance(node, ast.Subscript):
        indices.insert(0, node.slice)
        node = node.value
    return node, indices


def _replaced(whole: Any, old: ast.expr, new: ast.expr) -> Any:
    """An expression, or a tuple of those, with another one in the place of one of them."""
    if whole is old:
        return new
    whole.elts = [new if item is old else item for item in whole.elts]
    return whole
