"""Arrays of which loops read and write one number at a time are nested lists meanwhile, which takes Python half the time."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from symgrad.emit.blocks import assign
from symgrad.emit.build import call, method, name
from symgrad.emit.printer import Def, For, If, Line, While, With, text
from symgrad.ir import Aval

LISTING, PACKING, GAIN = 1, 2.5, 4  # what it takes to make a list, or an array, of a number, and what is gained by each use
_KINDS = {"float", "bool"}
_NEW = {"np.zeros", "np.ones", "np.full", "np.empty", "empty"}


class Use(NamedTuple):
    """Where a variable stands: the expression of one number of its array, or None; how often that runs, and in a loop."""

    variable: str
    cell: ast.expr | None
    turns: float
    inside: bool


class Cells:
    """The places in code that is being written where one number of an array is read or written."""

    def __init__(self) -> None:
        self.places: dict[int, ast.expr] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}  # of the arrays that loops do it with, by their variables
        self.loops = 0  # that are being written
        self.found: dict[int, dict[str, list[Use]]] = {}  # in statements, of each of these variables

    def note(self, place: ast.expr, array: ast.expr, aval: Aval) -> None:
        """One of them; Python's whole numbers know no overflow, so that arrays of those stay."""
        if isinstance(array, ast.Name) and aval.dtype.kind in "fb":
            self.places[id(place)] = place
            if self.loops:
                self.shapes[array.id] = aval.shape

    def listed(self, block: list[Any]) -> None:
        """Make lists of those arrays in a function's statements that nothing else needs while a loop runs."""
        if not self.shapes:
            return
        known = Counter([use.variable for use in self._uses(block)])
        for variable in self.shapes:
            homes = list(_homes(block, variable))
            if len(homes) == 1:
                self._list(variable, *homes[0], known[variable])

    def _list(self, variable: str, home: list[Any], start: int, known: int) -> None:
        """Do so with one that is made by the statement at ``start``, if that is less work; ``known``: how often it is named."""
        uses = [self._uses_of(variable, item) for item in home[start + 1 :]]
        if known != 1 + sum(map(len, uses)):
            return  # it is read beyond this block
        loops = [i for i, found in enumerate(uses) if any([use.inside for use in found])]
        whole = [i for i, found in enumerate(uses) if any([use.cell is None for use in found])]
        before = [i for i in whole if loops and i < loops[0]]
        if not all([_leaves_no_view(home[start + 1 + i]) for i in before]):
            return
        begin = before[-1] + 1 if before else 0
        end = min([i for i in whole if i >= begin], default=len(uses))
        if not loops or loops[-1] >= end:
            return
        reads, back = sum([use.turns for found in uses[begin:end] for use in found]), end < len(uses)
        if (LISTING + PACKING * back) * math.prod(self.shapes[variable]) > GAIN * reads:
            return
        first = start + 1 + begin
        listing = _Listing(variable, self.places)
        for item in home[first : start + 1 + end]:
            listing.go(item)
        if back:
            home.insert(start + 1 + end, Line(assign(name(variable), call("np.array", name(variable)))))
        if begin:
            home.insert(first, Line(assign(name(variable), method(name(variable), "tolist"))))
        else:
            made = home[start].node.value
            home[start].node = assign(name(variable), method(made.func.value if _is_copy(made) else made, "tolist"))

    def _uses_of(self, variable: str, item: Any) -> list[Use]:
        """Where one of the variables stands in a statement, which is looked through once for all of them."""
        if id(item) not in self.found:
            self.found[id(item)] = {}
            for use in self._uses(item):
                self.found[id(item)].setdefault(use.variable, []).append(use)
        return self.found[id(item)].get(variable, [])

    def _uses(self, part: Any, turns: float = 1.0, inside: bool = False) -> Iterator[Use]:
        """The variables in statements and expressions."""
        if isinstance(part, list):
            for item in part:
                yield from self._uses(item, turns, inside)
        elif isinstance(part, Line):
            yield from self._uses(part.node, turns, inside)
        elif isinstance(part, (For, While)):
            yield from self._uses(list(_expressions(part)), turns, inside)
            yield from self._uses(part.body, turns * part.turns, True)
        elif isinstance(part, (If, With)):
            for inner in (list(_expressions(part)), *_blocks(part)):
                yield from self._uses(inner, turns, inside)
        elif isinstance(part, Def):
            for use in self._uses([*part.body, part.use]):
                yield use._replace(cell=None, inside=True)
        elif isinstance(part, ast.Name):
            yield Use(part.id, None, turns, inside)
        elif isinstance(part, ast.AugAssign):  # which reads a place, and writes there
            yield from self._uses([part.target, part.target, part.value], turns, inside)
        elif isinstance(part, ast.AST):
            self._look_for_kind(part)
            place = self.places.get(id(part))
            array, inner = (None, list(ast.iter_child_nodes(part))) if place is None else _parts(place)
            if array is not None:
                yield Use(array.id, place, turns, inside)
            yield from self._uses(inner, turns, inside)

    def _look_for_kind(self, part: ast.AST) -> None:
        """Note the place in ``float(x[0, 1])``."""
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in _KINDS and len(part.args) == 1:
            (inner,) = part.args
            if isinstance(inner, ast.Subscript) and isinstance(inner.value, ast.Name) and inner.value.id in self.shapes:
                index = _index(inner)
                if len(index) == len(self.shapes[inner.value.id]) and all([isinstance(i, ast.Constant) for i in index]):
                    self.places[id(inner)] = inner


def _parts(place: Any) -> tuple[ast.Name, list[ast.expr]]:
    """The array and the index of ``x[i, j]``, or of ``x.item(i, j)``."""
    array, index = (place.value, _index(place)) if isinstance(place, ast.Subscript) else (place.func.value, place.args)
    assert isinstance(array, ast.Name)
    return array, index


def _index(place: ast.Subscript) -> list[ast.expr]:
    return place.slice.elts if isinstance(place.slice, ast.Tuple) else [place.slice]


def _expressions(item: Any) -> Iterator[ast.expr]:
    """What a compound statement has at its head."""
    for part in ("test", "target", "over", "manager"):
        if hasattr(item, part):
            yield getattr(item, part)


def _blocks(item: Any) -> Iterator[list[Any]]:
    """The blocks of a compound statement."""
    for part in ("body", "orelse"):
        if hasattr(item, part):
            yield getattr(item, part)


def _leaves_no_view(item: Any) -> bool:
    """Whether a statement keeps nothing that might show the array: it writes into it, or is a call that keeps nothing."""
    statement = item.node if isinstance(item, Line) else None
    if isinstance(statement, ast.Assign):
        return all([isinstance(target, ast.Subscript) for target in statement.targets])
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") != "append"


def _homes(block: list[Any], variable: str) -> Iterator[tuple[list[Any], int]]:
    """The blocks, and the places in them, where a variable gets an array of its own."""
    for i, item in enumerate(block):
        if isinstance(item, Line):
            node = item.node
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == variable:
                made = node.value
                if _is_copy(made) or (isinstance(made, ast.Call) and text(made.func) in _NEW):
                    yield block, i
        elif not isinstance(item, Def):
            for inner in _blocks(item):
                yield from _homes(inner, variable)


def _is_copy(made: ast.expr) -> bool:
    return isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "copy" and not made.args


class _Listing(ast.NodeTransformer):
    """``x[i][j]`` in place of ``x[i, j]`` and ``x.item(i, j)``."""

    def __init__(self, variable: str, places: dict[int, ast.expr]) -> None:
        self.variable, self.places = variable, places

    def go(self, item: Any) -> None:
        """Through a statement, and all in it."""
        if isinstance(item, Line):
            item.node, item.shown = self.visit(item.node), None
            return
        for part in ("test", "over"):
            if hasattr(item, part):
                setattr(item, part, self.visit(getattr(item, part)))
        for block in _blocks(item):
            for inner in block:
                self.go(inner)

    def visit(self, node: ast.AST) -> Any:
        if id(node) not in self.places or _parts(node)[0].id != self.variable:
            return super().visit(node)
        found, index = _parts(node)
        store = getattr(node, "ctx", ast.Load())
        for i, place in enumerate(index):
            found = ast.Subscript(found, self.visit(place), store if i == len(index) - 1 else ast.Load())  # type: ignore[assignment]
        return found
