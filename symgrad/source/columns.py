"""A list of tuples that a loop appends to is as many lists, side by side: of numbers each, which is what loops know.

``path.append((x, v))``, ``path[-1][0]``, ``for x, v in path`` and ``np.array(path)`` is ``path_0.append(x)``,
``path_1.append(v)``, ``path_0[-1]``, ``for x, v in zip(path_0, path_1)`` and an array with ``path_0`` and ``path_1`` as its
columns. So it is with lists of lists, and of dicts with the same keys, of which only items are asked for. That is done where
all is known that a function does with such a list.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from symgrad.source.constants import bound_anywhere, constant
from symgrad.source.lists import ROWS_OF, called, key_of, loads, read_by_keys, tells_apart
from symgrad.source.rows import makers_of_arrays
from symgrad.source.syntax import (
    COMPREHENSIONS,
    LOCAL_READERS,
    SCOPES,
    TRIES,
    FunctionNode,
    assigned,
    calls,
    copied,
    fresh,
    int_of,
    is_append,
    is_length,
    local_names,
    located,
    mentioned,
    mentioned_outside,
    names_stored,
    own_parts,
    paired,
    parts_of,
    placed,
    walk,
)
from symgrad.source.texts import bound_beside

LONGEST = 6  # items of such a tuple
_LOOPS = (ast.For, ast.While)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.FloorDiv)
_ORDERED = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
_TAKES = frozenset(["list", "tuple", "sorted", "max", "min", "set", "dict", "zip", "enumerate"])  # any iterable, at once
_DTYPES = frozenset(["float", "np.float64", "np.float32"])
_EACH = frozenset(["list", "tuple", "sum", "max", "min", "len", "sorted"])  # that do the same with a list as with a tuple


def in_columns(function: FunctionNode, space: Mapping[str, Any]) -> FunctionNode:
    """The function, changed in place, as are those in it. ``space``: what there is outside of the function."""
    bound = bound_anywhere(function)

    def is_pairwise(maker: ast.expr) -> bool:
        return constant(maker, space, bound) is itertools.pairwise

    if not {*space, *bound}.isdisjoint(["zip", "len", "map", "reversed", "float", *_TAKES, *_EACH]) or not any(
        map(is_append, walk(function))
    ):
        return function
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef):
            taken = mentioned(node)
            made = makers_of_arrays(space, local_names(node)) if taken.isdisjoint(LOCAL_READERS) else None
            arrays = {name for name in made or () if name.endswith(("array", "asarray"))}
            waiting = sorted(_lists(node).items()) if made is not None else []
            while waiting:
                name, kind = waiting.pop(0)
                columns = _Columns(node, name, kind, taken, arrays, is_pairwise)
                if columns.are_known():
                    columns.put()
                    waiting = sorted(_lists(node).items())  # what is appended to others may be tuples now
    return function


class _Kind(NamedTuple):
    """What such a list has: tuples, lists or dicts, and the places, or keys, of their items."""

    of: type[ast.expr]
    keys: tuple[Any, ...]


def _lists(function: ast.FunctionDef) -> dict[str, _Kind]:
    """The locals that may be such lists, to which a loop appends."""
    every = [*walk(function)]
    appends = [node for node in every if isinstance(node, ast.Expr) and is_append(node.value)]
    looped = {id(node) for loop in every if isinstance(loop, _LOOPS) for node in walk(loop)}
    tried = {id(node) for one in every if isinstance(one, TRIES) for node in walk(one)}
    kinds: dict[str, set[_Kind | None]] = {}
    for node in appends:
        kinds.setdefault(_owner(node), set()).add(_kind_of(node.value.args[0]))  # type: ignore[attr-defined]
    again = {_owner(node) for node in appends if id(node) in looped}
    again -= {node.id for node in every if isinstance(node, ast.Name) and id(node) in tried}
    again &= {part.id for part in own_parts(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    again -= bound_beside(function, every) | mentioned_outside(function)
    return {name: kind for name in again for kind in kinds[name] if len(kinds[name]) == 1 and kind is not None}


def _owner(append: Any) -> str:
    return append.value.func.value.id  # type: ignore[no-any-return]


def _kind_of(item: ast.expr) -> _Kind | None:
    """Of which kind a list is that has such items; None where it has no columns."""
    if isinstance(item, ast.Dict):
        keys = [key.value for key in item.keys if isinstance(key, ast.Constant) and type(key.value) is str]
        known = len(keys) == len({*keys}) == len(item.keys)
        return _Kind(ast.Dict, tuple(sorted(keys))) if known and 0 < len(keys) <= LONGEST else None
    if not isinstance(item, (ast.Tuple, ast.List)) or not 0 < len(item.elts) <= LONGEST:
        return None
    starred = any([isinstance(part, ast.Starred) for part in item.elts])
    return None if starred else _Kind(type(item), tuple(range(len(item.elts))))


def _items(item: Any) -> list[tuple[Any, ast.expr]]:
    """The keys and values of what is appended, in their order."""
    if isinstance(item, ast.Dict):
        return [(key.value, value) for key, value in zip(item.keys, item.values, strict=True)]  # type: ignore[union-attr]
    return [*enumerate(item.elts)]


class _Columns(ast.NodeTransformer):
    """Puts lists side by side in the place of one, where all that is done with that is known."""

    def __init__(
        self,
        function: ast.FunctionDef,
        name: str,
        kind: _Kind,
        taken: set[str],
        arrays: Collection[str],
        is_pairwise: Callable[[ast.expr], bool],
    ) -> None:
        self.function, self.name, self.kind, self.taken, self.arrays = function, name, kind, taken, arrays
        self.is_pairwise = is_pairwise
        self.trying = {name}
        self.like = set[int]()  # statements that append what is of this kind
        self.parts: dict[Any, str] = {}  # the lists
        self.around = {id(part): node for node in walk(function) for part in parts_of(node)}
        self.beside = bound_beside(function, walk(function))
        self.edits: dict[int, Any] = {}  # what there is in the place of nodes
        self.begins: list[tuple[list[ast.stmt], ast.stmt]] = []  # what the bodies of loops begin with
        # whether tuples may be handed out that are equal to those of the list, but others
        self.hands_out = kind.of is ast.Tuple and not any(map(tells_apart, walk(function)))
        # the names that stand for no slices
        self.places = set[str]() if any(map(_makes_slices, walk(function))) else local_names(function)

    def are_known(self) -> bool:
        """Whether all that the function does with the list is known."""
        taken = {*self.taken}
        self.parts = {key: fresh(f"{self.name}_{key}", taken) for key in self.kind.keys}
        every = [node for node in walk(self.function) if isinstance(node, ast.Name) and node.id == self.name]
        known = all([part.isidentifier() for part in self.parts.values()]) and all([self._edited(node) for node in every])
        if known:
            self.taken |= taken
        return known

    def put(self) -> None:
        """Change the function."""
        for body, first in self.begins:
            body.insert(0, first)
        self.generic_visit(self.function)

    def visit(self, node: Any) -> Any:
        made = self.edits.pop(id(node), node)
        if isinstance(made, list):
            return [self.generic_visit(one) for one in made]
        return self.generic_visit(made)

    def _edit(self, node: Any, made: Any) -> bool:
        """Another node, or other statements, take the place of one that is known, and had no other place yet."""
        if made is None or id(node) in self.edits:
            return False
        for one in made if isinstance(made, list) else [made]:
            located(placed(one, node))
        self.edits[id(node)] = made
        return True

    def _edited(self, name: ast.Name) -> bool:
        """Whether what is done with the list where it is named can be done with lists side by side, and is from now on."""
        parent: Any = self.around[id(name)]
        if not isinstance(name.ctx, ast.Load):
            return self._begun(name, parent)
        if isinstance(parent, ast.Attribute):
            statement = self.around.get(id(self.around[id(parent)]))
            appends = isinstance(statement, ast.Expr) and is_append(statement.value) and _owner(statement) == self.name
            return appends and self._edit(statement, self._appends(statement))
        if is_length(parent, self.name) or self._is_test(name):
            return self._edit(name, self._part(self.kind.keys[0]))
        if isinstance(parent, ast.Subscript) and parent.value is name and isinstance(parent.ctx, ast.Load):
            if isinstance(parent.slice, ast.Slice):
                return _is_still(parent.slice, self.name) and self._run(parent, parent.slice)
            return self._item(parent)
        return self._run(name, None)

    def _part(self, key: Any, at: ast.expr | None = None) -> ast.expr:
        """One of the lists, or what is there at a place."""
        part = ast.Name(self.parts[key], ast.Load())
        if at is None:
            return part
        index = copied(at)
        for name in walk(index):
            if isinstance(name, ast.Name) and name.id == self.name:  # of its length
                name.id = self.parts[self.kind.keys[0]]
        return ast.Subscript(part, index, ast.Load())

    def _begun(self, name: ast.Name, parent: Any) -> bool:
        """``path = []``, or with some items, alone or with others."""
        statement = parent if isinstance(parent, ast.Assign) else self.around.get(id(parent))
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        pairs = paired(statement.targets[0], statement.value)
        own = [value for target, value in pairs if target is name]
        items: list[Any] = own[0].elts if own and isinstance(own[0], ast.List) else []
        alike = bool(own) and isinstance(own[0], ast.List) and all([_kind_of(item) == self.kind for item in items])
        if not alike or (len(items) > 1 and not all([_is_still(value) for item in items for _, value in _items(item)])):
            return False
        lists: list[tuple[ast.expr, ast.expr]] = []
        for key in [key for key, _ in _items(items[0])] if items else self.kind.keys:
            column: list[ast.expr] = [dict(_items(item))[key] for item in items]
            lists.append((ast.Name(self.parts[key], ast.Store()), ast.List(column, ast.Load())))
        from_itself = any([isinstance(part, ast.Name) and part.id == self.name for part in walk(own[0])])
        if len(pairs) == 1 and not from_itself:
            return self._edit(statement, [assigned(target.id, value, statement) for target, value in lists])  # type: ignore[attr-defined]
        every = [pair for target, value in pairs for pair in (lists if target is name else [(target, value)])]
        targets, values = [list(side) for side in zip(*every, strict=True)]
        return self._edit(statement, [ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load()))])

    def _appends(self, statement: Any) -> list[ast.stmt] | None:
        """``path.append((x, v))``."""
        if id(statement) in self.like:
            return []
        if _kind_of(statement.value.args[0]) != self.kind:
            return None
        given = _items(statement.value.args[0])
        every = [part for _, value in given for part in walk(value)]
        if any([isinstance(part, _ORDERED) for part in every]):
            return None
        first: list[ast.stmt] = []
        if any([isinstance(part, ast.Name) and part.id == self.name for part in every]):  # which reads it as it was
            names = [(key, fresh(f"{self.parts[key]}_new", self.taken)) for key, _ in given]
            first = [assigned(new, value, statement) for (_, new), (_, value) in zip(names, given, strict=True)]
            given = [(key, ast.Name(new, ast.Load())) for key, new in names]
        calls = [ast.Call(ast.Attribute(self._part(key), "append", ast.Load()), [value], []) for key, value in given]
        return [*first, *[ast.Expr(placed(call, statement)) for call in calls]]

    def _is_test(self, node: Any) -> bool:
        """Whether it is asked whether there are any items, and nothing else."""
        parent: Any = self.around[id(node)]
        if isinstance(parent, ast.BoolOp):
            return self._is_test(parent)
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        return isinstance(parent, (ast.If, ast.While, ast.IfExp)) and parent.test is node

    def _item(self, item: ast.Subscript) -> bool:
        """``path[-1][0]``, or ``path[-1]``."""
        parent: Any = self.around[id(item)]
        if isinstance(item.slice, ast.Name) and item.slice.id not in self.places:
            return False
        if isinstance(parent, ast.Subscript) and parent.value is item and isinstance(parent.ctx, ast.Load):
            key = self._key(parent)
            return key is not None and self._edit(parent, ast.Subscript(self._part(key), item.slice, ast.Load()))
        taken_apart = isinstance(parent, ast.Assign) and all([self._takes_apart(target) for target in parent.targets])
        if not _is_still(item.slice, self.name) or not (self.hands_out or taken_apart):
            return False
        every = [self._part(key, item.slice) for key in self.kind.keys]
        return self.kind.of is not ast.Dict and self._edit(item, ast.Tuple(every, ast.Load()))

    def _key(self, node: ast.Subscript) -> Any:
        """Which item of a tuple, list or dict it is; None for anything else."""
        if self.kind.of is ast.Dict:
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return key if type(key) is str and key in self.kind.keys else None
        place, count = int_of(node.slice), len(self.kind.keys)
        return place % count if place is not None and -count <= place < count else None

    def _takes_apart(self, target: Any) -> bool:
        """Whether a target gets the items of a tuple one by one."""
        alone = isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(self.kind.keys)
        return alone and self.kind.of is not ast.Dict and not any([isinstance(one, ast.Starred) for one in target.elts])

    def _zip(self, part: ast.Slice | None, around: str = "", keys: Sequence[Any] | None = None) -> ast.expr:
        """What gives the tuples, one by one, or what is at some of their ``keys``; of one of these, that alone."""
        every: list[ast.expr] = [self._part(key, part) for key in self.kind.keys if keys is None or key in keys]
        every = [called(around, one) for one in every] if around else every
        return every[0] if keys is not None and len(every) == 1 else called("zip", *every)

    def _run(self, node: Any, part: ast.Slice | None) -> bool:
        """What runs over the list, or over a ``part`` of it, or takes all its items."""
        parent: Any = self.around[id(node)]
        around = ""
        if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "reversed" and parent.args == [node]:
            node, parent, around = parent, self.around[id(parent)], "reversed"
        loop, targets = self._turns(node)
        if loop is not None:
            keys = self._read(loop, targets)
            known = [self._takes_apart(target) or self._by_name(loop, target, keys) for target in targets]
            return all(known) and self._edit(node, self._zip(part, around, keys))
        if isinstance(parent, ast.Starred):
            return part is None and not around and self._turned(parent)
        if isinstance(parent, ast.Call) and node in parent.args:
            return not around and self._given(parent, node, part)
        whole = part is None and not around and self.hands_out
        return whole and self._is_returned(node) and self._edit(node, self._listed())

    def _turns(self, node: Any) -> tuple[Any, list[Any]]:
        """The loop that runs over a node, through ``zip``, ``enumerate`` and ``pairwise``, and what gets the items there; None
        where that is not known."""
        parent: Any = self.around[id(node)]
        if isinstance(parent, (ast.For, ast.comprehension)):
            return (parent, [parent.target]) if parent.iter is node else (None, [])
        name = getattr(getattr(parent, "func", None), "id", "")
        if not isinstance(parent, ast.Call) or node not in parent.args or (parent.keywords and not calls("zip", parent)):
            return None, []
        loop, targets = self._turns(parent)
        if loop is None or not all([isinstance(target, ast.Tuple) for target in targets]):
            return None, []
        if name == "zip" and all([len(target.elts) == len(parent.args) for target in targets]):
            return loop, [target.elts[parent.args.index(node)] for target in targets]
        both = [item for target in targets for item in target.elts]
        if name == "enumerate" and parent.args[0] is node and all([len(target.elts) == 2 for target in targets]):
            return loop, both[1::2]
        return (loop, both) if self.is_pairwise(parent.func) and len(both) == 2 * len(targets) else (None, [])

    def _listed(self) -> ast.expr:
        keys = ast.Tuple([ast.Constant(key) for key in self.kind.keys], ast.Load())
        return called(ROWS_OF, keys, *[self._part(key) for key in self.kind.keys])

    def _is_returned(self, node: Any) -> bool:
        """Whether the function ends with it, in a tuple perhaps."""
        parent: Any = self.around[id(node)]
        return isinstance(parent, ast.Return) or (isinstance(parent, ast.Tuple) and self._is_returned(parent))

    def _read(self, loop: Any, targets: Sequence[Any]) -> list[Any] | None:
        """The items of the tuples that a loop, or a comprehension, reads of its targets, at least one; None where it may read
        any of them."""
        read = set[Any]()
        for target in targets:
            named = self._named(loop, target.id) if isinstance(target, ast.Name) else None
            for name in [None] if named is None else named:
                parent: Any = self.around[id(name)] if name is not None else None
                looks = isinstance(parent, ast.Subscript) and parent.value is name and isinstance(parent.ctx, ast.Load)
                key = self._key(parent) if looks else None
                if key is None:
                    return None
                read.add(key)
        return [key for key in self.kind.keys if key in read] or [self.kind.keys[0]]

    def _by_name(self, loop: Any, target: Any, keys: Sequence[Any] | None) -> bool:
        """``for p in path``: there are locals with the items of ``p``, or those at ``keys``, which get them."""
        if not isinstance(target, ast.Name):
            return self.hands_out
        name = target.id
        if [*names_stored(loop.target)].count(name) > 1:
            return False
        items = {key: fresh(f"{name}_{key}", self.taken) for key in keys or self.kind.keys}
        named = self._named(loop, name)
        edits = None if named is None else [self._of_items(one, items) for one in named]
        if edits is not None and None not in edits:
            known = all([self._edit(*edit) for edit in edits if edit is not None])
        elif self.hands_out and isinstance(loop, ast.For):
            self.begins.append((loop.body, assigned(name, self._whole(items), loop)))
            known = True
        else:
            return self.hands_out
        targets: list[ast.expr] = [ast.Name(item, ast.Store()) for item in items.values()]
        return known and self._edit(
            target, targets[0] if keys is not None and len(keys) == 1 else ast.Tuple(targets, ast.Store())
        )

    def _whole(self, items: Mapping[Any, str]) -> ast.expr:
        """The tuple, list or dict that has these locals as its items."""
        every: list[ast.expr] = [ast.Name(item, ast.Load()) for item in items.values()]
        if self.kind.of is ast.Dict:
            return ast.Dict([ast.Constant(key) for key in items], every)
        return ast.Tuple(every, ast.Load()) if self.kind.of is ast.Tuple else ast.List(every, ast.Load())

    def _of_items(self, name: ast.Name, items: Mapping[Any, str]) -> tuple[Any, ast.expr] | None:
        """What ``p[0]`` is in terms of its items, or ``p``, where that is appended to a list that is taken apart as well."""
        parent: Any = self.around[id(name)]
        if isinstance(parent, ast.Subscript) and parent.value is name and isinstance(parent.ctx, ast.Load):
            key = self._key(parent)
            return None if key is None else (parent, ast.Name(items[key], ast.Load()))
        statement: Any = self.around[id(parent)]
        appended = isinstance(statement, ast.Expr) and is_append(parent) and parent.args == [name]
        if not appended or not (self.hands_out or self._may_get(_owner(statement), statement)):
            return None
        return name, self._whole(items)

    def _may_get(self, owner: str, statement: ast.stmt) -> bool:
        """Whether a list is such a one, too, if a statement appends an item of this one to it."""
        if owner in self.trying:
            return False
        other = copy.copy(self)
        other.name, other.trying, other.like = owner, {*self.trying, owner}, {*self.like, id(statement)}
        other.taken, other.edits, other.begins = {*self.taken}, {}, []
        return owner not in self.beside and other.are_known()

    def _named(self, loop: Any, name: str) -> list[ast.Name] | None:
        """Where a loop names what it has under a name; None if that is named anywhere else."""
        every = [part for part in walk(self.function) if isinstance(part, ast.Name) and part.id == name]
        if isinstance(loop, ast.For):
            loops = [part for part in walk(self.function) if isinstance(part, ast.For) and name in names_stored(part.target)]
            own = _within(loop.body)
            others = [other for other in loops if other is not loop and id(loop) not in _within(other.body)]
            within = own.union(*[_within(other.body) for other in others])
            beside = [part for part in every if id(part) not in within]
            alone = len(beside) == 1 + len(others) and not any([isinstance(part.ctx, ast.Load) for part in beside])
            return [part for part in every if id(part) in own] if alone and name not in self.beside else None
        comprehension: Any = self.around[id(loop)]
        place = comprehension.generators.index(loop)
        later = [part for clause in comprehension.generators[place + 1 :] for part in (clause.iter, *clause.ifs)]
        values = [comprehension.key, comprehension.value] if isinstance(comprehension, ast.DictComp) else [comprehension.elt]
        own, whole = _within([*loop.ifs, *later, *values]), _within([comprehension])
        inside = [part for part in walk(comprehension) if isinstance(part, (*SCOPES, *COMPREHENSIONS))]
        beside = [part for part in every if id(part) in whole - own]
        return [part for part in every if id(part) in own] if len(beside) == len(inside) == 1 else None

    def _turned(self, star: ast.Starred) -> bool:
        """``x, v = zip(*path)``, or ``map(np.array, zip(*path))``."""
        call: Any = self.around[id(star)]
        if self.kind.of is ast.Dict or not calls("zip", call) or call.args != [star]:
            return False
        parent: Any = self.around[id(call)]
        each: Any = ast.Name("tuple", ast.Load())
        if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "map" and parent.args[1:] == [call]:
            each, call = parent.args[0], parent
            if ast.unparse(each) not in {*_EACH, *self.arrays}:
                return False
            parent = self.around[id(call)]
        if not isinstance(parent, ast.Assign) or not all(map(self._takes_apart, parent.targets)):
            return False
        every: list[ast.expr] = [ast.Call(copied(each), [self._part(key)], []) for key in self.kind.keys]
        nothing = ast.Tuple([], ast.Load())  # of which there are too few to unpack
        return self._edit(call, ast.IfExp(self._part(0), ast.Tuple(every, ast.Load()), nothing))

    def _given(self, call: ast.Call, node: ast.expr, part: ast.Slice | None) -> bool:
        """What a function makes of all items."""
        name = getattr(call.func, "id", "")
        if ast.unparse(call.func) in self.arrays and self.kind.of is not ast.Dict:
            options = [(option.arg, ast.unparse(option.value)) for option in call.keywords]
            plain = call.args == [node] and all([arg == "dtype" and dtype in _DTYPES for arg, dtype in options])
            return plain and self._edit(call, self._array(call, part))
        if part is None and key_of(call) is not None:
            return self._is_best(call) and self._edit(node, self._listed())
        alone = call.args == [node] or name == "zip" or (name == "enumerate" and call.args[0] is node)
        if not (self.hands_out and alone and (name in _TAKES or self.is_pairwise(call.func))):
            return False
        return self._edit(node, self._zip(part))

    def _is_best(self, call: ast.Call) -> bool:
        """Whether it finds one of the items by what all have at a key: nobody changes it, nor tells it from a copy."""
        key = key_of(call)
        if self.kind.of is not ast.Dict:
            return self.hands_out and type(key) is int and -len(self.kind.keys) <= key < len(self.kind.keys)
        return key in self.kind.keys and id(call) in read_by_keys([*walk(self.function)], loads(self.function))

    def _array(self, call: Any, part: ast.Slice | None) -> ast.expr:
        """``np.array(path)``: what has the lists as its columns, if there is a row."""
        every = [ast.Call(copied(call.func), [self._part(key, part)], copied(call).keywords) for key in self.kind.keys]
        stack = ast.Attribute(copied(call.func.value), "stack", ast.Load())
        last = [ast.keyword("axis", ast.Constant(1))]
        rows = ast.Call(stack, [ast.List([*every], ast.Load())], last)
        none = ast.Call(copied(call.func), [ast.List([], ast.Load())], copied(call).keywords)
        return ast.IfExp(self._part(0, part), rows, none)


def _within(nodes: Iterable[ast.AST]) -> set[int]:
    return {id(part) for node in nodes for part in walk(node)}


def _makes_slices(node: ast.AST) -> bool:
    """Whether it is ``slice`` or ``np.s_``."""
    return getattr(node, "id", "") == "slice" or getattr(node, "attr", "") == "s_"


def _is_still(index: Any, owner: str = "") -> bool:
    """Whether an expression may be evaluated once more: numbers, names, what is computed of them, the length of the ``owner``;
    slices with such ends."""
    if isinstance(index, ast.Slice):
        return all([_is_still(end, owner) for end in (index.lower, index.upper, index.step) if end is not None])
    if isinstance(index, ast.BinOp):
        return isinstance(index.op, _ARITHMETIC) and _is_still(index.left, owner) and _is_still(index.right, owner)
    if isinstance(index, ast.UnaryOp):
        return _is_still(index.operand, owner)
    named = isinstance(index, ast.Name) and index.id != owner
    return named or isinstance(index, ast.Constant) or (owner != "" and is_length(index, owner))
