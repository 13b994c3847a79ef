"""Rows of which a function makes an array in the end are arrays as soon as they are whole, which loops know how to keep.

``row = []``, ``for v in y: row.append(f(v))``, ``rows.append(row)`` ends with ``rows.append(np.array(row))`` if there are but
numbers in the row, and so does ``rows.append([f(u), g(u)])``, where nothing else is done with ``rows`` than ``np.array(rows)``.
So it is with comprehensions of lists that an array is made of at once.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from symgrad.source.lists import ROW
from symgrad.source.syntax import (
    LOCAL_READERS,
    FunctionNode,
    blocks_of,
    copied,
    declared,
    is_append,
    is_length,
    local_names,
    located,
    names_within,
    paired,
    parts_of,
    placed,
    walk,
)

_MAKERS = frozenset(["array", "asarray", "asanyarray", "stack", "vstack"])  # of NumPy's, to which lists of lists are arrays


def makers_of_arrays(own: Mapping[str, Any], local: Collection[str]) -> set[str]:
    """What a function may call NumPy's functions that make an array of rows, for which they take lists or arrays alike."""
    return {f"{name}.{maker}" for name, value in own.items() if value is np and name not in local for maker in _MAKERS}


def is_of_rows(call: ast.Call) -> bool:
    """Whether a function is given a comprehension of lists alone, and is not told what to make of them but along which axis."""
    rows = call.args[0] if len(call.args) == 1 and {option.arg for option in call.keywords} <= {"axis"} else None
    return isinstance(rows, ast.ListComp) and _is_row(rows.elt)


def as_array(row: ast.expr, maker: ast.expr) -> ast.expr:
    """What makes an array of one row; ``maker`` is ``np.something``."""
    array = placed(ast.Attribute(copied(maker.value), "array", ast.Load()), row)  # type: ignore[attr-defined]
    return located(placed(ast.Call(array, [row], []), row))  # type: ignore[no-any-return]


def as_arrays(function: FunctionNode, own: Mapping[str, Any]) -> FunctionNode:
    """The function, changed in place: rows that it appends to lists are arrays. ``own``: the module's names."""
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            names = {item.id for item in walk(node) if isinstance(item, ast.Name)}
            makers = makers_of_arrays(own, local_names(node)) if names.isdisjoint(LOCAL_READERS) else None
            if makers:
                _Rows(node, makers, declared(node)).change()
    return function


class _Rows:
    """The lists of one function: ``uses`` of each name are where it stands, and in what."""

    def __init__(self, function: ast.FunctionDef, makers: Collection[str], others: Collection[str]) -> None:
        self.function, self.makers = function, makers
        self.shared = names_within(function).union(others)
        self.uses: dict[str, list[list[Any]]] = {}
        self._note([function])

    def _note(self, around: list[Any]) -> None:
        for part in parts_of(around[-1]):
            if isinstance(part, ast.Name):
                self.uses.setdefault(part.id, []).append([*around[-2:], part])
            else:
                self._note([*around, part])

    def change(self) -> None:
        """Make arrays of the rows that lists have of which nothing but an array is made."""
        for name, uses in self.uses.items():
            appends = [use[-3] for use in self._appends(name)]
            made = [use[-2] for use in uses if self._is_made_an_array(use)]
            begun = sum([_begins(item, name) for block in blocks_of(self.function) for item in block])
            whole = len(uses) == len(appends) + len(made) + begun
            if not (appends and made and begun and whole) or name in self.shared:
                continue
            if all([_is_row(append.args[0]) or self._is_whole_row(append) for append in appends]):
                for append in appends:
                    row = append.args[0]
                    append.args = [located(placed(ast.Call(ast.Name(ROW, ast.Load()), [row], []), row))]

    def _appends(self, name: str) -> Iterator[list[Any]]:
        """Where something is appended to the list, in a statement of its own."""
        for block in blocks_of(self.function):
            for statement in block:
                call = getattr(statement, "value", None)
                if isinstance(statement, ast.Expr) and is_append(call) and call.func.value.id == name:  # type: ignore[union-attr]
                    yield [call, call.func, call.func.value]  # type: ignore[union-attr]

    def _is_made_an_array(self, use: list[Any]) -> bool:
        call = use[-2]
        if not isinstance(call, ast.Call) or len(call.args) != 1 or call.args[0] is not use[-1]:
            return False
        return ast.unparse(call.func) in self.makers and {option.arg for option in call.keywords} <= {"axis"}

    def _is_whole_row(self, append: ast.Call) -> bool:
        """Whether what is appended is a list that was begun before in the same block, and that nobody sees any more."""
        row = append.args[0]
        if not isinstance(row, ast.Name) or row.id in self.shared:
            return False
        for block in blocks_of(self.function):
            last = next((i for i, item in enumerate(block) if getattr(item, "value", None) is append), None)
            if last is not None:
                begins = [i for i, item in enumerate(block[:last]) if _begins(item, row.id)]
                between = [part for item in block[begins[0] : last] for part in walk(item)] if begins else []
                uses = self.uses[row.id]
                grown = sum([isinstance(item, ast.Expr) and _is_append_to(item.value, row.id) for item in between])
                read = sum([_reads(item, row.id) for item in between])
                return len(begins) == 1 and len(uses) == 2 + grown + read
        return False


def _begins(statement: ast.AST, name: str) -> bool:
    """Whether it is ``name = []``, maybe beside others."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return False
    pairs = paired(statement.targets[0], statement.value)
    return any([getattr(one, "id", "") == name and isinstance(new, ast.List) and not new.elts for one, new in pairs])


def _is_append_to(node: Any, name: str) -> bool:
    return is_append(node) and node.func.value.id == name


def _reads(node: ast.AST, name: str) -> bool:
    """Whether it is an item of a list, or its length."""
    if isinstance(node, ast.Subscript):
        return (
            isinstance(node.ctx, ast.Load) and getattr(node.value, "id", "") == name and not isinstance(node.slice, ast.Slice)
        )
    return is_length(node, name)


def _is_row(node: ast.expr) -> bool:
    """Whether an expression makes a list of which an array can be made as well."""
    if isinstance(node, ast.List | ast.Tuple):
        return bool(node.elts) and not any([isinstance(item, ast.Starred) for item in node.elts])
    return isinstance(node, ast.ListComp)
