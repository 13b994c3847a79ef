"""What the source of a function tells of the lists to which its loops append items one by one."""

from __future__ import annotations

import ast
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from symgrad.source.constants import bound_anywhere, constant
from symgrad.source.exits import has_test, way_out
from symgrad.source.iterators import STARTED
from symgrad.source.liveness import Ends, live
from symgrad.source.origins import is_users
from symgrad.source.syntax import (
    LOCAL_READERS,
    FunctionNode,
    assigned,
    blocks_of,
    calls,
    copied,
    declared,
    ends_of,
    fresh,
    int_of,
    is_append,
    is_none,
    is_range,
    located,
    mentioned,
    names_read,
    names_stored,
    own_parts,
    paired,
    parameters,
    parts_of,
    placed,
    walk,
)
from symgrad.source.texts import bound_beside

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
)  # fmt: skip
_ENDS = {"0": "first", "-1": "last"}
# see ``_run_over``
_WORDS = [
    f"__symgrad_{word}__"
    for word in ("chosen", "items", "taken", "item", "behind", "chosen_at", "at", "rows", "rows_at", "part", "still", "rows_of")
]
CHOSEN, ITEMS, TAKEN, ITEM, BEHIND, CHOSEN_AT, AT, ROWS, ROWS_AT, PART, STILL, ROWS_OF = _WORDS
WHOLE = "__symgrad_whole__"  # what makes an end of a range an int
IN_TURN = "__symgrad_in_turn__"  # what has the items of some lists: see ``several.py``
RAGGED = "__symgrad_ragged__"  # what lists the pairs of ranges with ends that are looked up: see ``nests.py``
ROW = "__symgrad_row__"  # what makes an array of a row, if there are but numbers in it: see ``rows.py``


class Appended(NamedTuple):
    """A list that a loop only appends to, in so many statements, and reads so far from its end, or where it is ``read`` by
    another index, which may be as far from it in all iterations.

    ``some``: an iteration may append nothing, or a ``break`` ends the loop before all have run; and none appends two items.
    ``constants``: ``"int"`` or ``"bool"``, where all that is appended are constants of this kind; ``"some"``, where some of
    it are such.
    """

    name: str
    deepest: int
    some: bool
    statements: list[Any]
    read: list[Any]
    constants: str = ""


def appended(loop: ast.For, own: Collection[str]) -> list[Appended]:
    """The lists among the ``own`` locals of a function that a loop only appends to."""
    below: list[Any] = [item for item in _every(loop.body) if isinstance(item, ast.Expr) and is_append(item.value)]
    found = []
    for name in sorted({item.value.func.value.id for item in below} & {*own}):
        statements = [item for item in below if item.value.func.value.id == name]
        deepest = _deepest(loop, name, len(statements))
        if deepest is not None:
            every, early = set[int]().union(*_counts(loop.body, statements)), way_out(loop) is not None
            items = _items(loop, name)
            read = [item for item in items if from_the_end(item.slice) == 0 and not isinstance(item.slice, ast.Constant)]
            some = (0 in every or early) and 2 not in every and not loop.orelse and not (items if 0 in every else read)
            if some or not (early or 2 in every):  # two at times, and none at others, are one each only as it happens
                kinds = {kind for item in statements for kind in _constants(item.value.args[0])}
                one = next(iter(kinds)) if len(kinds) == 1 else "some" if kinds & {"int", "bool"} else ""
                found.append(Appended(name, deepest, some, statements, read, one))
    return found


def _constants(value: ast.expr) -> Iterator[str]:
    """The kinds of the constants that an expression may be; a word that is none for anything else."""
    for end in ends_of(value):
        if hasattr(end, "counted") or _is_int(end, ()):
            yield "int"
        else:
            yield "bool" if isinstance(end, ast.Constant) and type(end.value) is bool else "other"


def in_room(function: FunctionNode, lines: Collection[int] = ()) -> FunctionNode:
    """The function, changed in place, as are those in it: where a ``while`` loop appends to a list, there is to be room for all
    items, so ``while a: b`` becomes ``for turn in room: if not a: break; b``, marked ``room``. In these ``lines``, loops do so
    of which the source does not tell; and those over ranges, as ``while`` loops that count."""
    if not isinstance(function, ast.Lambda):
        _Rooms(lines).visit(function)
    return function


class _Rooms(ast.NodeTransformer):
    def __init__(self, lines: Collection[int]) -> None:
        self.lines = lines
        self.own: set[str] = set()  # what the function that it is in assigns
        self.names: set[str] = set()  # and what it mentions
        self.read = Counter[str]()  # and reads

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        before = self.own, self.names, self.read
        self.own = {name for item in node.body for name in names_stored(item)} - declared(node)
        self.names, self.read = mentioned(node), loads(node)
        self.generic_visit(node)
        self.own, self.names, self.read = before
        return node

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        target, span = node.target, node.iter
        if node.lineno not in self.lines or not is_range(span) or not isinstance(target, ast.Name) or node.orelse:
            return node
        every = [*walk(node)]
        if any([isinstance(part, (ast.Break, ast.Return)) for part in every]):
            return node
        if any([is_append(part, ast.expr) for part in every]):
            return self._counting(node, target.id, span.args)
        if target.id in self.own and self.read[target.id] > loads(node)[target.id]:  # what an iteration has left there
            place = fresh(f"{target.id}_place", self.names)
            node.target = placed(ast.Name(place, ast.Store()), target)
            node.body.insert(0, assigned(target.id, _at(place), node))
        return node

    def _counting(self, node: ast.For, name: str, args: Sequence[ast.expr]) -> Any:
        """The loop as a ``while`` loop that counts, in room."""
        start, stop, step = (*([ast.Constant(0)] if len(args) == 1 else []), *args, ast.Constant(1))[:3]
        by = int_of(step)
        if not by or any([isinstance(arg, ast.Starred) for arg in args]):
            return node
        coming, end = [fresh(f"{name}_{word}", self.names) for word in ("next", "end")]
        more = ast.Compare(_at(coming), [ast.Lt() if by > 0 else ast.Gt()], [_at(end)])
        taken = [assigned(name, _at(coming), node), assigned(coming, ast.BinOp(_at(coming), ast.Add(), step), node)]
        loop = self._in_room(located(placed(ast.While(more, [*taken, *node.body], []), node)))
        if isinstance(loop, ast.While):
            return node
        return [assigned(coming, called(WHOLE, start), node), assigned(end, called(WHOLE, stop), node), loop]

    def visit_While(self, node: ast.While) -> Any:
        self.generic_visit(node)
        return self._in_room(node)

    def _in_room(self, node: ast.While) -> Any:
        never = isinstance(node.test, ast.Constant) and not node.test.value
        if never or node.orelse or any([isinstance(item, ast.NamedExpr) for item in walk(node.test)]):
            return node
        turn = placed(ast.Name("__symgrad_turn__", ast.Store()), node)
        first = [placed(ast.If(placed(ast.UnaryOp(ast.Not(), node.test), node.test), [ast.Break()], []), node.test)]
        body = [*(first if has_test(node) else []), *node.body]
        loop: Any = located(placed(ast.For(turn, ast.Constant(None), body, [], None), node))
        loop.room = True
        appends = node.lineno in self.lines or any([one.some for one in appended(loop, self.own)])
        return loop if way_out(loop) and appends else node


def marked(function: FunctionNode, space: Mapping[str, Any]) -> FunctionNode:
    """The function, changed in place: loops know (``kept``) the lists of some items that nothing else is done with than to hand
    them to functions, or to ask whether they are empty; where that is done, the names know (``use``) the function's name. Names
    that only ever stand for ints of the source know it (``counted``). ``space``: what there is outside of the function.
    """
    bound = bound_anywhere(function)
    zips = {"zip", "enumerate"}.isdisjoint({*space, *bound})
    for one in [part for part in walk(function) if isinstance(part, ast.FunctionDef)]:
        _name_parts(one, space)
    every, read = [*walk(function)], loads(function)
    if {"min", "max"}.isdisjoint({*space, *bound}):
        _find_best(every, read)
    for node in every:
        if isinstance(node, ast.For):
            within = loads(node)
            alone = all([read[name] == within[name] for name in names_stored(node.target)])
            node.alone, node.runs = alone, _runs_over(node, alone, zips, space, bound)  # type: ignore[attr-defined]
    for node in every:
        if isinstance(node, ast.FunctionDef):
            names = {item.id for item in walk(node) if isinstance(item, ast.Name)}
            if names.isdisjoint(LOCAL_READERS):
                whole = _whole(node)
                for item in walk(node) if whole else ():
                    if isinstance(item, ast.Name) and item.id in whole:
                        item.counted = True  # type: ignore[attr-defined]
                if zips:
                    _run_over(node, declared(node), names, space)
                _mark(node, declared(node), space)
    return function


def _name_parts(function: ast.FunctionDef, space: Mapping[str, Any]) -> None:
    """``for v in y[1:]`` runs over ``y_part``, which is that, where ``y`` may be a list of some items."""
    blocks = [
        block for block in blocks_of(function) if any([isinstance(one, ast.For) and _is_slice(one.iter) for one in block])
    ]
    if not blocks:
        return
    appends: list[Any] = [part for part in walk(function) if is_append(part)]
    lists = {part.func.value.id for part in appends}
    lists.update(*[names_stored(statement.targets[0]) for statement, _ in _given(function, space)])
    taken = mentioned(function)
    moving = {name for part in walk(function) if isinstance(part, ast.For) for name in names_stored(part.target)}
    for block in blocks:
        for i, loop in reversed([*enumerate(block)]):
            over: Any = loop.iter if isinstance(loop, ast.For) else None
            if _is_slice(over) and over.value.id in lists and moving.isdisjoint(names_read(over.slice)):
                name = fresh(f"{over.value.id}_part", taken)
                block.insert(i, assigned(name, over, loop))
                loop.iter = placed(ast.Name(name, ast.Load()), over)  # type: ignore[attr-defined]


def _find_best(every: Sequence[ast.AST], read: Mapping[str, int]) -> None:
    """Note (``best``) what ``min(rows, key=lambda row: row["x"])`` hangs on: the name, the key, and whether it is but read by
    constant keys what the row has."""
    found: list[Any] = [node for node in every if isinstance(node, ast.Call) and key_of(node) is not None]
    if found and any(map(tells_apart, every)):
        return
    alone = read_by_keys(every, read) if found else ()
    for call in found:
        call.best = call.func.id, key_of(call), id(call) in alone
        call.args[0].chosen_from = True


def read_by_keys(every: Sequence[ast.AST], read: Mapping[str, int]) -> set[int]:
    """The values (ids) of which nothing but items at constant keys is read, or whether they are None, in a function with these
    nodes, where names are ``read`` so often."""
    changed = {getattr(node.target, "id", "") for node in every if isinstance(node, ast.AugAssign)}
    items = [node.value for node in every if isinstance(node, ast.Subscript) and _is_at_key(node)]
    asked = [node.left for node in every if isinstance(node, ast.Compare) and _asks_for_none(node)]
    often = Counter([value.id for value in (*items, *asked) if isinstance(value, ast.Name)])
    alone = {id(value) for value in items}
    for node in every:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            alone |= {id(node.value)} if often[name] == read[name] and name not in changed else set()
    return alone


def tells_apart(node: ast.AST) -> bool:
    """Whether it is asked whether two are one object."""
    if isinstance(node, ast.Compare):
        objects = any([isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops])
        return objects and not any([isinstance(side, ast.Constant) for side in (node.left, *node.comparators)])
    return isinstance(node, ast.Name) and node.id == "id"


def _is_at_key(node: ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant) and type(node.slice.value) in (int, str)


def _asks_for_none(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)) and is_none(node.comparators[0])


def key_of(call: ast.Call) -> Any:
    """The key of the items by which the least, or the largest, of some rows is found."""
    named = {one.arg: one.value for one in call.keywords}
    if (
        getattr(call.func, "id", "") not in ("min", "max")
        or len(call.args) != 1
        or not {"key"} <= {*named} <= {"key", "default"}
    ):
        return None
    fun: Any = named["key"]
    body: Any = fun.body if isinstance(fun, ast.Lambda) and len(fun.args.args) == 1 and not fun.args.defaults else None
    plain = isinstance(body, ast.Subscript) and isinstance(body.slice, ast.Constant)
    if not plain or getattr(body.value, "id", "") != fun.args.args[0].arg:
        return None
    return body.slice.value if type(body.slice.value) in (int, str) else None


def _whole(function: ast.FunctionDef) -> set[str]:
    """The locals that are only ever assigned ints of the source, or other such locals, and always before they are read."""
    every = [*walk(function)]
    stored = Counter([part.id for part in every if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)])
    ends: dict[str, list[ast.expr]] = {}
    often = Counter[str]()
    for node in every:
        for target, value in paired(node.targets[0], node.value) if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name):
                often[target.id] += 1
                ends.setdefault(target.id, []).extend(ends_of(value))
    names = {name for name in often if often[name] == stored[name]} - bound_beside(function, every)
    names -= live(function.body, frozenset(), Ends())
    left = None
    while names != left:
        left = names
        names = {name for name in left if all([_is_int(end, left) for end in ends[name]])}
    return names


def _is_int(end: ast.expr, names: Collection[str]) -> bool:
    """Whether it is such a name, or an int of the source with which NumPy's ints are far from their ends."""
    inner = end.operand if isinstance(end, ast.UnaryOp) and isinstance(end.op, ast.USub) else end
    if isinstance(inner, ast.Constant):
        return type(inner.value) is int and inner.value.bit_length() < 32
    return isinstance(end, ast.Name) and end.id in names


def loads(node: ast.AST) -> Counter[str]:
    """How often each name is read, in functions within, too."""
    return Counter([part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)])


class _Runs(NamedTuple):
    """What a loop runs over: lists, side by side if it is given their items as tuples (``zipped``), or pairs of ``neighbours``
    in them; ``counted``: ``enumerate`` of all that; ``held``: where an object holds the one list."""

    owners: list[str]
    zipped: bool
    neighbours: bool
    counted: bool
    held: tuple[ast.expr, ...] = ()

    def names(self, loop: ast.For | ast.AsyncFor) -> list[ast.Name]:
        """Where the loop names the lists."""
        return [part for part in walk(loop.iter) if isinstance(part, ast.Name) and part.id in self.owners]


def _runs_over(loop: ast.For, alone: bool, zips: bool, space: Mapping[str, Any], bound: Collection[str]) -> _Runs | None:
    """What a loop runs over; None where that is no list with a name, nor ``zip(y, z)``, ``zip(y, y[1:])``,
    ``itertools.pairwise(y)`` or ``enumerate`` of such. ``alone``: nothing else reads what it runs with."""
    items: Any = loop.iter
    counted = zips and calls("enumerate", items) and len(items.args) == 1 and _are_two(loop.target)
    target = loop.target.elts[1] if counted else loop.target  # type: ignore[attr-defined]
    items = items.args[0] if counted else items
    owners = _named(items, "") if zips or isinstance(items, ast.Name) else []
    held = _held(items)
    if held:
        return _Runs(["rows"], False, False, counted, held)
    if owners:
        return _Runs(owners, not isinstance(items, ast.Name), False, counted) if len({*owners}) == len(owners) else None
    if not isinstance(items, ast.Call) or not items.args or not _are_two(target) or not alone:
        return None
    first, *others = items.args
    if zips and calls("zip", items) and len(others) == 1:
        as_long = any([one.value.value for one in items.keywords])  # type: ignore[attr-defined]
        owners = _named(first, "[:-1]") or ([] if as_long else _named(first, ""))
        owners = owners if owners == _named(others[0], "[1:]") else []
    elif not others and not items.keywords and constant(items.func, space, bound) is itertools.pairwise:
        owners = _named(first, "") if zips or isinstance(first, ast.Name) else []
    return _Runs(owners, calls("zip", first), True, counted) if owners else None


def _held(items: Any) -> tuple[ast.expr, ...]:
    """The object and the constants in ``x.log``, or ``x.log["k"]``; nothing for others."""
    keys: list[ast.expr] = []
    if isinstance(items, ast.Subscript) and isinstance(items.slice, ast.Constant) and type(items.slice.value) is str:
        items, keys = items.value, [items.slice]
    return (items.value, ast.Constant(items.attr), *keys) if isinstance(items, ast.Attribute) else ()


def _are_two(target: ast.expr) -> bool:
    return isinstance(target, ast.Tuple) and len(target.elts) == 2


def _named(items: ast.expr, part: str) -> list[str]:
    """The names of lists, of which it is this ``part``: of one, or of those that are zipped."""
    every = items.args if isinstance(items, ast.Call) and calls("zip", items) else [items]
    owners = [item.value if part and isinstance(item, ast.Subscript) else item for item in every]
    names = [owner.id for owner in owners if isinstance(owner, ast.Name)]
    return names if [ast.unparse(item) for item in every] == [name + part for name in names] else []


def _run_over(function: ast.FunctionDef, others: set[str], names: set[str], space: Mapping[str, Any]) -> None:
    """A loop over a list of some items, ``for v in y: b``, runs over all places, ``for v_, taken in zip(...): if taken: v = v_;
    b``, where the list is a ``Chosen`` one when it begins; so that code does not hang on how many items there are. So does one
    over several that are side by side, over neighbours, or over the places as well. And one more item, ``y.append(v)`` after
    the loop that has made the list, is put behind all places."""
    lists: dict[int, set[str]] = {}  # by what is done with them
    named = _by_name(_uses(function.body, ()))
    given = _to_others(named, space)
    got = [_got(statement, around, given) for statement, around in _given(function, space)]
    made: list[tuple[str, Any]] = [(name, found) for one in got for name, _, found in one]
    for before, loop, around in _fors(function.body, ()):
        for name, _, some, *_ in appended(loop, before - others):
            made.append((name, _handed(name, named, around, but={loop}) if some else None))
    for name, found in made:
        for use in found or ():
            if isinstance(use.of, (ast.For, ast.Expr)):
                lists.setdefault(id(use.of), set()).add(name)
    for loop in [part for part in walk(function) if isinstance(part, ast.For)]:
        runs: _Runs | None = loop.runs  # type: ignore[attr-defined]
        if runs is not None and runs.held and _run_by(loop) is not None and _may_be_of_some(loop, runs):
            lists[id(loop)] = {*runs.owners}
    for block in [*blocks_of(function)] if lists else ():
        every = [_of_all_places(item, names) if _is_of_all(item, lists.get(id(item))) else [item] for item in block]
        block[:] = [item for items in every for item in items]


def _may_be_of_some(loop: ast.For, runs: _Runs) -> bool:
    """Whether what an object holds may be a list of some numbers, or rows, as what a short loop does with it shows: there will
    be two such loops."""
    every = [part for statement in loop.body for part in walk(statement)]
    if len(every) > _SHORT or any([isinstance(part, (*_LOOPS, *_SCOPES, ast.Raise, ast.Try)) for part in every]):
        return False
    names = {*names_stored(loop.target)}
    others = [part.func for part in every if isinstance(part, ast.Call)]
    others += [part.value for part in every if isinstance(part, ast.Attribute)]
    return names.isdisjoint([getattr(part, "id", "") for part in others])


_SHORT = 200  # nodes of such a loop


def _is_of_all(statement: ast.stmt, lists: set[str] | None) -> bool:
    """Whether a statement runs over all places of such ``lists``, or appends to one."""
    runs: _Runs | None = getattr(statement, "runs", None)
    return lists is not None and (runs is None or len(lists) == len(runs.owners))


def _of_all_places(statement: Any, names: set[str]) -> list[ast.stmt]:
    """A loop over a list, or what appends to it, as ``_run_over`` says; what gives the object that holds it comes first."""
    if isinstance(statement, ast.For):
        runs: _Runs = statement.runs  # type: ignore[attr-defined]
        if not runs.held or isinstance(runs.held[0], ast.Name):
            return [_over_all_places(statement, names)]
        (holder, *path), owner = runs.held, fresh("holder", names)
        for part in walk(statement.iter):
            if isinstance(part, ast.Attribute) and part.value is holder:
                part.value = placed(_at(owner), holder)
        statement.runs = runs._replace(held=(_at(owner), *path))  # type: ignore[attr-defined]
        return [assigned(owner, holder, statement), _over_all_places(statement, names)]
    owner, item = statement.value.func.value, statement.value.args[0]
    behind = placed(ast.Expr(called(BEHIND, owner, item)), statement)
    chosen = placed(called(CHOSEN, owner), owner)
    return [located(placed(ast.If(chosen, [behind], [statement]), statement))]


def called(word: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(word, ast.Load()), [*map(copied, args)], [])


def _over_all_places(loop: ast.For, names: set[str]) -> ast.stmt:
    runs: _Runs = loop.runs  # type: ignore[attr-defined]
    if runs.held:
        runs = runs._replace(owners=[fresh(runs.owners[0], names)])
    count_target, target = loop.target.elts if runs.counted else (None, loop.target)  # type: ignore[attr-defined]
    parts = None if runs.zipped or runs.neighbours else _parts(target, loop, names)
    lists = [placed(_at(owner), loop.iter) for owner in runs.owners]
    columns = {key: fresh(f"{runs.owners[0]}_{name}", names) for key, name in (parts or {}).items()}
    owners = [placed(_at(owner), loop.iter) for owner in columns.values()] or lists
    items, taken = [fresh("item", names) for _ in owners], fresh("taken", names)
    targets: list[ast.expr] = [ast.Name(item, ast.Store()) for item in (*items, taken)]
    numbers = [called(ITEM, owner, _at(item)) for owner, item in zip(owners, items, strict=True)]
    begin: list[ast.stmt] = [_let(runs.owners[0], called(AT, *runs.held))] if runs.held else []
    begin += [_let(column, called(PART, lists[0], ast.Constant(key))) for key, column in columns.items()]
    more: list[ast.stmt] = copied(loop).body
    if parts is not None and isinstance(target, ast.Name):
        more = [_Parts(target.id, parts).visit(statement) for statement in more]
    if count_target is not None:
        count = fresh("count", names)
        begin.append(_let(count, ast.Constant(0)))
        one_more = ast.AugAssign(ast.Name(count, ast.Store()), ast.Add(), ast.Constant(1))
        more = [ast.Assign([copied(count_target)], _at(count)), one_more, *more]
    if runs.neighbours:
        first, body = _with_the_one_before(runs, owners, target, numbers, more, names)
        begin += first
    elif parts is not None:
        body = [*map(_let, parts.values(), numbers), *more]
    else:
        body = [ast.Assign([copied(target)], _together(runs, numbers)), *more]
    whole = placed(ast.If(ast.Name(taken, ast.Load()), [placed(body[0], loop), *body[1:]], []), loop)
    every_item = [*[called(ITEMS, owner) for owner in owners], called(TAKEN, owners[0])]
    zipped = ast.Call(ast.Name("zip", ast.Load()), every_item, [])
    every = placed(ast.For(ast.Tuple(targets, ast.Store()), placed(zipped, loop.iter), [whole], []), loop)
    every.twin, loop.twin, every.runs = loop, every, None  # type: ignore[attr-defined]
    begin = [placed(statement, loop) for statement in begin]
    if parts is None:
        chosen = called(CHOSEN_AT, *runs.held) if runs.held else called(CHOSEN, *lists)
    else:
        facts = [ast.Constant(isinstance(target, ast.Tuple)), ast.Tuple([*map(ast.Constant, parts)], ast.Load())]
        chosen = called(ROWS_AT, *facts, *runs.held) if runs.held else called(ROWS, *facts, *lists)
    after = [placed(ast.Expr(called(STILL, lists[0])), loop)] if runs.held else []
    made = located(placed(ast.If(placed(chosen, loop.iter), [*begin, every, *after], [loop]), loop))
    made.either = True
    return made  # type: ignore[no-any-return]


def _parts(target: ast.expr, loop: ast.For, names: set[str]) -> dict[Any, str] | None:
    """The items of rows that a loop reads, which are no numbers then, by their keys, and the names that get them; None where it
    does something else with what it runs over, or reads it later."""
    if isinstance(target, ast.Tuple):
        given = [one.id for one in target.elts if isinstance(one, ast.Name)]
        return dict(enumerate(given)) if len({*given}) == len(target.elts) else None
    if not isinstance(target, ast.Name) or not loop.alone:  # type: ignore[attr-defined]
        return None
    inside = [part for statement in loop.body for part in walk(statement)]
    if any([isinstance(part, _SCOPES) for part in inside]):  # in which the name may be another one's
        return None
    read = [part for part in inside if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load)]
    items = [part for part in read if isinstance(part.slice, ast.Constant) and getattr(part.value, "id", "") == target.id]
    if not items or len(items) != len([part for part in inside if isinstance(part, ast.Name) and part.id == target.id]):
        return None
    keys = dict.fromkeys([part.slice.value for part in items])  # type: ignore[attr-defined]
    known = all([type(key) in (int, str) for key in keys])
    return (
        {key: fresh(f"{target.id}_{key}" if str(key).isidentifier() else target.id, names) for key in keys} if known else None
    )


class _Parts(ast.NodeTransformer):
    """Reads items of rows from locals."""

    def __init__(self, owner: str, parts: Mapping[Any, str]) -> None:
        self.owner, self.parts = owner, parts

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if getattr(node.value, "id", "") == self.owner and isinstance(node.slice, ast.Constant):
            return placed(_at(self.parts[node.slice.value]), node)
        return self.generic_visit(node)


def _let(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _at(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _together(runs: _Runs, items: list[ast.expr]) -> ast.expr:
    """What a loop is given, of lists side by side."""
    return ast.Tuple(items, ast.Load()) if runs.zipped else items[0]


def _with_the_one_before(
    runs: _Runs,
    owners: list[ast.expr],
    target: ast.expr,
    numbers: list[ast.expr],
    body: list[ast.stmt],
    names: set[str],
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """What is done with an item, ``a = item; b``, as what is done with the one before and it, ``if seen: a = before, item;
    before = item; b`` or ``else: before, seen = item, True``; and what comes before the loop."""
    seen = fresh("seen", names)
    before, now = [[fresh(name, names) for _ in owners] for name in ("before", "now")]
    both = [_together(runs, [*map(_at, side)]) for side in (before, now)]
    moved = [_let(one, _at(other)) for one, other in zip(before, now, strict=True)]
    last = placed(ast.Constant(-1), owners[0])
    anything = [called(ITEM, owner, ast.Subscript(called(ITEMS, owner), last, ast.Load())) for owner in owners]
    begin = [_let(seen, ast.Constant(False)), *map(_let, before, anything)]  # of the same kind
    later = [ast.Assign([copied(target)], ast.Tuple(both, ast.Load())), *moved, *body]
    choice = ast.If(_at(seen), later, [*map(copied, moved), _let(seen, ast.Constant(True))])
    return begin, [*map(_let, now, numbers), choice]


def _given(function: ast.FunctionDef, space: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The statements that give names to what a function of the user's returns, alone or in a tuple, and the loops around each;
    such as may return lists of some items."""
    inner = {part.name for part in walk(function) if isinstance(part, ast.FunctionDef) and part is not function}
    stored = {*names_stored(function)}
    for node, around in _statements(function.body, ()):
        call = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(call, ast.Call) and may_be_users(call.func, inner, stored, space):
            yield node, around


def may_be_users(called: Any, inner: Collection[str], stored: Collection[str], space: Mapping[str, Any]) -> bool:
    """Whether what is called may be a function of the user's, one of the ``inner`` ones, or a method."""
    first = called
    while isinstance(first, ast.Attribute):
        first = first.value
    if not isinstance(first, ast.Name):  # of what a call gives, say
        return first is not called
    known = None if first.id in stored else space.get(first.id)
    if isinstance(known, ModuleType):
        return is_users(constant(called, space, stored))
    return isinstance(known, FunctionType) or first.id in inner or first is not called


def _statements(statements: Sequence[Any], around: tuple[ast.AST, ...]) -> Iterator[tuple[Any, Any]]:
    """These statements, and those in them, with the loops around each."""
    for statement in statements:
        yield statement, around
        if not isinstance(statement, _SCOPES):
            inner = (*around, statement) if isinstance(statement, _LOOPS) else around
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _statements(getattr(statement, field, []), inner)


def _got(statement: ast.Assign, around: Any, handed: Callable[[str, Any], Any]) -> Iterator[tuple[str, int, list[_Use]]]:
    """The names that get something, where in a tuple that is, -1 for what is alone, and what is done with it: of functions, it
    is ``handed`` but to such as somebody else has made."""
    (target,) = statement.targets
    places = enumerate(target.elts) if isinstance(target, ast.Tuple) else [(-1, target)]
    if isinstance(target, ast.Tuple) and any([isinstance(one, ast.Starred) for one in target.elts]):
        return
    for place, one in places:
        found = handed(one.id, around) if isinstance(one, ast.Name) else None
        if found is not None:
            yield one.id, place, found  # type: ignore[attr-defined]


def _to_others(uses: Mapping[str, Sequence[_Use]], space: Mapping[str, Any]) -> Callable[[str, Any], list[_Use] | None]:
    """What finds where functions that somebody else has made are given what a name stands for; None if there are other uses.
    It looks once, as statements may give one name to a thousand things."""

    @functools.cache
    def handed(name: str, around: Any) -> list[_Use] | None:
        found = _handed(name, uses, around)
        return found if found is not None and all([_is_anothers(use.of, space) for use in found]) else None

    return handed


def _items_of(
    statement: ast.Assign,
    items: Mapping[str, Sequence[_Use]],
    names: Mapping[str, Sequence[ast.Name]],
    around: Any,
    space: Mapping[str, Any],
) -> Iterator[tuple[int, Sequence[_Use]]]:
    """Where a tuple may have a dict, -1 for what is alone, of which nothing but ``items`` are read, by texts, and what is done
    with these; ``names`` are all that a function has, but for those that are another one's."""
    (target,) = statement.targets
    for place, one in enumerate(target.elts) if isinstance(target, ast.Tuple) else [(-1, target)]:
        own = items.get(one.id, ()) if isinstance(one, ast.Name) else ()
        every = names.get(one.id, ()) if own else ()  # type: ignore[attr-defined]
        loads = [part for part in every if not isinstance(part.ctx, ast.Store)]
        known = all([use.around == around and use.of is not None and _is_anothers(use.of, space) for use in own])
        loops = any([isinstance(use.of, (ast.For, ast.Assign)) for use in own])
        if own and known and not loops and len(own) == len(loads) and len(every) == len(loads) + 1:
            yield place, own


def _text_items(nodes: Sequence[ast.AST], around: tuple[ast.AST, ...]) -> Iterator[_Use]:
    """What is done with items that are read by a text."""
    for node in nodes:
        inner = (*around, node) if isinstance(node, (*_LOOPS, *_SCOPES)) else around
        for part in parts_of(node):
            read = isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and isinstance(part.value, ast.Name)
            if read and _is_text(part.slice):  # type: ignore[attr-defined]
                yield _Use(part, inner, None if isinstance(node, ast.Return) else _use_of(part, node))  # type: ignore[arg-type]
        yield from _text_items([*parts_of(node)], inner)


def _is_anothers(of: Any, space: Mapping[str, Any]) -> bool:
    """Whether what is done with a list is no call of a function, or one of a module's, or of a builtin."""
    first = of
    while isinstance(first, ast.Attribute):
        first = first.value
    if not isinstance(of, (ast.Name, ast.Attribute)) or first.id in _WORDS:
        return True
    known = space.get(first.id)
    return isinstance(known, ModuleType) if first is not of else known is None and of.id in _BUILTINS


METHODS = frozenset([*dir(list), *dir(dict), *dir(set)])
_BUILTINS = frozenset(["sum", "len", "min", "max", "list", "tuple", "sorted"])


def _mark(function: ast.FunctionDef, others: set[str], space: Mapping[str, Any]) -> None:
    for statement, _ in _statements(function.body, ()):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            called = statement.value.func
            if not (isinstance(called, ast.Attribute) and called.attr in METHODS) and may_be_users(called, (), (), space):
                statement.value.takes = [...]  # type: ignore[attr-defined]  # nobody gets what it returns
    given = [*_given(function, space)]
    named, items = _by_name(_uses(function.body, ())), _by_name(_text_items(function.body, ()) if given else ())
    names: dict[str, list[ast.Name]] = {}
    for part in walk(function) if items else ():
        if isinstance(part, ast.Name) and part.id not in others:
            names.setdefault(part.id, []).append(part)
    handed = _to_others(named, space)
    for statement, around in given:
        known = [(place, found) for name, place, found in _got(statement, around, handed) if name not in others]
        for _, found in known:
            _put(found)
        dicts = [*_items_of(statement, items, names, around, space)]
        for _, read in dicts:
            _put(read)
        statement.value.takes = [*[place for place, _ in known], *[("items", place) for place, _ in dicts]]
    for before, loop, around in _fors(function.body, ()):
        loop.kept = []  # type: ignore[attr-defined]
        same = {loop, getattr(loop, "twin", loop)}  # of which one runs
        for name, _, some, *_ in appended(loop, before - others):
            later = _handed(name, named, around, but=same) if some else None
            if later is not None:
                loop.kept.append(name)  # type: ignore[attr-defined]
                _put(later)


def _put(handed: Sequence[_Use]) -> None:
    """Names know what is done with what they stand for."""
    for use in handed:
        if use.cut is not None:
            use.name.use = placed(ast.Constant("cut"), use.name)
            use.cut.cut = ast.Constant("cut") if isinstance(use.of, ast.Assign) else copied(use.of)
        elif isinstance(use.of, (ast.For, ast.Expr)):
            every = [use.name] if isinstance(use.of, ast.Expr) else use.of.runs.names(use.of)  # type: ignore[attr-defined]
            for one in every:
                one.use = placed(ast.Constant("items"), one)
        elif getattr(use.of, "id", "") == STARTED:  # an iterator of it
            use.name.use = placed(ast.Constant("items"), use.name)
        elif isinstance(use.of, ast.Return):
            use.name.given_back = use.place
        elif not _is_of_own(use):
            use.name.use = copied(use.of)


def _by_name(uses: Iterable[_Use]) -> dict[str, list[_Use]]:
    """Uses of names, or of items of what has a name, by these."""
    found: dict[str, list[_Use]] = {}
    for use in uses:
        name: Any = use.name.value if isinstance(use.name, ast.Subscript) else use.name
        found.setdefault(name.id, []).append(use)
    return found


def _handed(
    name: str,
    uses: Mapping[str, Sequence[_Use]],
    around: Any,
    others: frozenset[str] = frozenset(),
    but: Collection[ast.AST] = (),
) -> list[_Use] | None:
    """Where functions are given what a name stands for, or another name that it gets, ``but`` for what is in these loops; None
    if there are other uses. ``others`` are names that have given it that."""
    own = [use for use in uses.get(name, ()) if not any([one in but for one in use.around])] if name not in others else []
    found = [use for use in own if not isinstance(use.name.ctx, ast.Store)]
    apart = [use for use in own if use.around != around and not (_is_of_own(use) or _is_read_in_loops(use, around))]
    if apart or any([use.of is None for use in found]):
        return None
    for use in [use for use in found if isinstance(use.of, ast.Assign)]:
        more = _handed(use.of.targets[0].id, uses, around, others | {name}, but)
        if more is None:
            return None
        found = [one for one in found if one is not use or use.cut is not None] + more
    return found


class _Use(NamedTuple):
    """Where a name stands, in which loops and functions, and what is done with it, as ``_use_of`` says; where it is returned,
    the place in a tuple, -1 for what is alone, and the key in a dict. ``cut``: it is done with this part of it, or item."""

    name: Any
    around: tuple[ast.AST, ...]
    of: Any
    place: Any = -1
    cut: Any = None


def _is_read_in_loops(use: _Use, around: tuple[ast.AST, ...]) -> bool:
    """Whether loops do no more there than to read an item, or to ask how many there are."""
    within = use.around[: len(around)] == around and all([isinstance(one, _LOOPS) for one in use.around[len(around) :]])
    return within and (
        _is_at_place(use.cut) or getattr(use.of, "id", "") == "len" or getattr(use.of, "value", "") in _ENDS.values()
    )


def _is_of_own(use: _Use) -> bool:
    """Whether it is what ``_run_over`` has written."""
    return getattr(use.of, "id", "") in _WORDS


def _uses(nodes: Sequence[ast.AST], around: tuple[ast.AST, ...]) -> Iterator[_Use]:
    for node in nodes:
        if isinstance(node, ast.Expr) and is_append(node.value):
            yield _Use(node.value.func.value, around, node)  # type: ignore[attr-defined]
            yield from _uses([ast.Expr(node.value.args[0])], around)  # type: ignore[attr-defined]
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            for place, one in enumerate(node.value.elts) if isinstance(node.value, ast.Tuple) else ((-1, node.value),):
                yield from _returned(node, one, place, around)
            continue
        for part in parts_of(node):
            if _is_slice(part) or _is_at_place(part):
                yield _Use(part.value, around, _use_of_part(part, node), cut=part)  # type: ignore[attr-defined]
                at: Any = part.slice  # type: ignore[attr-defined]
                alone = isinstance(at, ast.Name)
                yield from [_Use(at, around, _use_of(at, part))] if alone else _uses([ast.Expr(at)], around)
            elif isinstance(part, ast.Name):
                added_to = isinstance(node, ast.AugAssign) and part is node.target  # which reads it, too
                name = placed(ast.Name(part.id, ast.Load()), part) if added_to else part
                yield _Use(name, around, _use_of(part, node))
        parts = [one for one in parts_of(node) if not (isinstance(one, ast.Name) or _is_slice(one) or _is_at_place(one))]
        if isinstance(node, (ast.For, ast.AsyncFor)):
            runs: _Runs | None = getattr(node, "runs", None)
            named = [] if runs is None else [part for part in runs.names(node) if part is not node.iter]
            first = {name.id: name for name in reversed(named)}
            yield from [_Use(name, around, _run_by(node)) for name in first.values()] or _uses([node.iter], around)
            parts = [part for part in parts if part is not node.iter]
        inner = (*around, node) if isinstance(node, (*_LOOPS, *_SCOPES)) else around
        if isinstance(node, ast.FunctionDef):
            own = _own_names(node)  # which are others
            yield from [use for use in _uses(node.body, inner) if use.name.id not in own]
            parts = [part for part in parts if part not in node.body]
        elif isinstance(node, ast.Lambda):
            yield from [use for use in _uses([ast.Expr(node.body)], inner) if use.name.id not in parameters(node)]
            parts = [part for part in parts if part is not node.body]
        yield from _uses(parts, inner)


def _is_slice(node: Any) -> bool:
    """Whether it is ``name[a:b]``."""
    known = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and isinstance(node.value, ast.Name)
    return known and isinstance(node.ctx, ast.Load)


def _is_at_place(node: Any) -> bool:
    """Whether it is ``name[2]``, or ``name[i]``, but no end."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    other = isinstance(node.slice, (ast.Slice, ast.Tuple, ast.Starred)) or ast.unparse(node.slice) in _ENDS
    return not other and (int_of(node.slice) is not None or not isinstance(node.slice, ast.Constant))


def _use_of_part(part: Any, node: Any) -> Any:
    """The same as ``_use_of`` for a part of a list."""
    if _is_at_place(part):
        return placed(ast.Constant("item"), part)
    use = _use_of(part, node)
    return use if isinstance(use, (ast.Name, ast.Attribute, ast.Assign)) else None


def _returned(node: ast.Return, value: ast.expr, place: Any, around: tuple[ast.AST, ...]) -> Iterator[_Use]:
    """The uses in what is returned at a place, where it may be a dict of lists."""
    if isinstance(value, ast.Name):
        yield _Use(value, around, node, place)
    elif calls(ROWS_OF, value) or isinstance(value, (ast.Attribute, ast.Subscript)):
        value.given_back = place  # type: ignore[attr-defined]
        yield from _uses([ast.Expr(value)], around)
    elif isinstance(value, ast.Dict) and type(place) is int and all(map(_is_text, value.keys)):
        for key, one in zip(value.keys, value.values, strict=True):
            yield from _returned(node, one, (place, key.value), around)  # type: ignore[union-attr]
    else:
        yield from _uses([ast.Expr(value)], around)


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is str


def _own_names(function: ast.FunctionDef) -> set[str]:
    """Its parameters, and the names that it assigns itself, but for those that are another one's."""
    every = [*own_parts(function)]
    stored = {part.id for part in every if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    return (stored | {part.arg for part in own_parts(function.args) if isinstance(part, ast.arg)}) - declared(function)


def _use_of(name: ast.Name, node: Any) -> Any:
    """The function that a name is handed to, or a word for an index, a test, the first or the last item, or the statement that
    gives it another name.

    None where something else is done with it.
    """
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == ROW:
        return None
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _WORDS:
        return node.func
    if isinstance(node, ast.For) and name is node.iter:
        return _run_by(node)
    if isinstance(node, ast.Call) and hasattr(node, "best"):
        return placed(ast.Constant(node.best), name) if name in node.args else None
    if isinstance(node, ast.Call) and name in node.args and _is_name(node.func):
        alone = len(node.args) == 1 and all([keyword.arg == "default" for keyword in node.keywords])
        return node.func if alone or isinstance(node.func, ast.Attribute) else None
    if isinstance(node, ast.Subscript) and name is node.slice:
        return placed(ast.Constant("index"), name)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and ast.unparse(node.slice) in _ENDS:
        return placed(ast.Constant(_ENDS[ast.unparse(node.slice)]), name)
    if isinstance(node, ast.Assign) and name is node.value and [type(target) for target in node.targets] == [ast.Name]:
        return node
    tested = isinstance(node, (ast.If, ast.IfExp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    if tested and name is (node.operand if isinstance(node, ast.UnaryOp) else node.test):
        return placed(ast.Constant("test"), name)
    return None


def _run_by(loop: Any) -> Any:
    """The loop that runs over a list, if it runs to its end, or is what ``_run_over`` has written."""
    leaves = any([isinstance(part, (ast.Break, ast.Return)) for part in walk(loop)])
    return None if (leaves or loop.orelse) and not hasattr(loop, "twin") else loop


def _fors(
    statements: list[ast.stmt], around: tuple[ast.AST, ...], first: Collection[str] = ()
) -> Iterator[tuple[set[str], ast.For, Any]]:
    """The ``for`` statements among these, and in them, each with the names that those assign that it stands among and that come
    before it (and the ``first`` ones), and the loops around it."""
    before = {*first}
    for statement in statements:
        if isinstance(statement, ast.For):
            yield {*before}, statement, around
        if not isinstance(statement, _SCOPES):
            inner = (*around, statement) if isinstance(statement, _LOOPS) else around
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _fors(getattr(statement, field, []), inner, before if hasattr(statement, "either") else ())
        if isinstance(statement, ast.Assign):
            before.update(names_stored(statement))


def _is_name(node: ast.expr) -> bool:
    """Whether it is a name, or ``module.name``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _counts(statements: list[ast.stmt], appends: list[Any]) -> tuple[set[int], set[int]]:
    """How many of the ``appends`` may run before these statements are over, and before a ``continue`` among them."""
    going_on, ended = {0}, set[int]()
    for statement in statements:
        if isinstance(statement, ast.Continue):
            return set(), ended | going_on
        if isinstance(statement, ast.If):
            both = [_counts(side, appends) for side in (statement.body, statement.orelse)]
            ended |= {min(a + b, 2) for a in going_on for _, stops in both for b in stops}
            going_on = {min(a + b, 2) for a in going_on for goes, _ in both for b in goes}
        elif statement in appends:
            going_on = {min(a + 1, 2) for a in going_on}
    return going_on, ended


def _every(statements: list[ast.stmt]) -> Iterator[Any]:
    """These statements, and those in ``if``s among them."""
    for statement in statements:
        yield statement
        if isinstance(statement, ast.If):
            yield from _every([*statement.body, *statement.orelse])


def _deepest(node: ast.For, name: str, appends: int) -> int | None:
    """How far from its end a loop reads a list that is there under a ``name``; None where it does anything else with it but so
    many ``appends``."""
    read = _items(node, name)
    places: list[Any] = [from_the_end(item.slice) for item in read]
    names = [item for item in walk(node) if isinstance(item, ast.Name) and item.id == name]
    loads = all([isinstance(item.ctx, ast.Load) for item in (*read, *names)])
    if None in places or not loads or len(names) != len(read) + appends:
        return None
    return max(places, default=0)


def _items(node: ast.For, name: str) -> list[Any]:
    """Where a loop names an item of what is there under a ``name``."""
    return [item for item in walk(node) if isinstance(item, ast.Subscript) and getattr(item.value, "id", "") == name]


FAR = 6  # from the end of a list, where its items go round


def from_the_end(index: ast.expr) -> int | None:
    """How far from the end of a list a constant index is, 0 for other indices; None for those that no loop reads there."""
    place = int_of(index)
    if place is None:
        return None if isinstance(index, (ast.Slice, ast.Tuple, ast.Constant, ast.Starred)) else 0
    return max(-place, 0) if place >= -FAR else None
