"""Segments: what a loop computes of slices between ends that it looks up is computed for all iterations beforehand.

``for i in range(n): y[i] = v[ends[i]:ends[i + 1]] @ w[ends[i]:ends[i + 1]]`` runs as ``found = summed(..., lambda look, i:
(look(v, slice(look(ends, i), look(ends, i + 1))) @ ...,), n)``, ``for i in range(n): y[i] = found_0[i]``, if there is such a
result, and as it is otherwise. So do loops over arrays that are zipped, and what an inner loop between such ends adds up.
What it may do with slices, ``symgrad.loops.segments`` knows when it runs; here is what the names and the reads of the function
show: that they are the same beforehand, and that each iteration computes it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Sequence
from types import FunctionType
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from symgrad.source.settled import ESCAPES, Put, Settled, breaks, is_counted, is_only_read, written_into
from symgrad.source.syntax import (
    COMPREHENSIONS,
    MODULES,
    SCOPES,
    FunctionNode,
    assigned,
    bound_in,
    copied,
    declared,
    fresh,
    is_append,
    is_range,
    located,
    names_read,
    names_stored,
    names_within,
    own_parts,
    paired,
    placed,
    walk,
)

SUMMED = "__symgrad_summed__"  # what computes it for all iterations
MOST = 1_000  # nodes of an expression with what names in it stand for
_LOOK = "__symgrad_look__"
_FOUND = "__symgrad_found"
_PLACE = "__symgrad_place"
_BUILTINS = frozenset(["range", "zip", "enumerate", "len", "abs"])
_DIVIDES = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)  # which of Python's numbers raise at times
_READ = (ast.Name, ast.Subscript, ast.Slice, ast.Constant, ast.UnaryOp)
_REDUCTIONS = frozenset(["sum", "mean", "max", "min", "dot"])
_OF_NUMPY = _REDUCTIONS | {"amax", "amin", "where"}
_SIZES = frozenset(["T", "size", "shape"])
_MAYBE = (ast.IfExp, ast.BoolOp, *COMPREHENSIONS)  # not all that is in them is computed
_KNOWN = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Slice, ast.Tuple, ast.Attribute, ast.Call,
    ast.keyword,
)  # fmt: skip


def with_segments(function: FunctionNode, of: FunctionType) -> FunctionNode:
    """The function, changed in place: its loops have what they compute of slices. ``of``: the function itself."""
    for node in [*walk(function)]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any([_has_ends(item) for item in walk(node)]):
            _Summer(node, of).generic_visit(node)
    return function


class _Summer(Settled):
    """Changes the loops of one function."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        return (self.quiet and _has_ends(node) and self._summed(node)) or node

    def _summed(self, node: ast.For) -> list[ast.stmt] | None:
        """The loop in both ways; None where there is but one."""
        live, header = getattr(node, "live", None), _header(node, self.names)
        if header is None or live is None or any([isinstance(item, ESCAPES) for item in walk(node)]) or breaks(node.body):
            return None
        body = _Body(node, header, bound_in(self.function)[0])
        shared = {*MODULES, *_BUILTINS}.intersection(body.local) | (
            (names_within(self.function) | declared(self.function)) & body.stored.keys()
        )
        kept = body.needed(live) if body.found and not shared and self._is_plain(node, body) else None
        made = [*body.found, *body.checked]
        own, just_made = [*names_stored(header.target)], self.just_made(node)
        if kept is None or not self.is_settled(own, header.args, (), node.body, live, made, just_made):
            return None
        written = {name for statement in node.body for name in written_into(statement)}
        if not self.is_alone(written - just_made):
            return None
        name = fresh(_FOUND, self.names)
        read = sorted({key for one in made for key in names_read(one)} & body.local - {header.place})
        bound = self.bound_before(node)
        begun = sorted((written & bound) - body.stored.keys())
        if begun:
            parts: list[ast.expr] = [
                ast.Tuple([ast.Name(key, ast.Load()) for key in keys], ast.Load()) for keys in (begun, read)
            ]
            made.append(_asked("apart", parts, node))
        captured = sorted({key for one in made for key in names_read(one)} & body.local - {header.place})
        if not bound.issuperset(captured):
            return None
        values = [_Looks().visit(copied(one)) for one in made]
        given = [ast.arg(each) for each in (_LOOK, header.place, *captured)]
        defaults: list[ast.expr] = [ast.Name(each, ast.Load()) for each in captured]
        args = ast.arguments([], given, None, [], [], None, defaults)
        computed = placed(ast.Lambda(args, ast.Tuple(values, ast.Load())), node.iter)
        known = [item.id for one in (*made, header.iter) for item in walk(one) if isinstance(item, ast.Name)]
        used = sorted(_BUILTINS.intersection(known))
        names = ast.Tuple([ast.Tuple([ast.Constant(one), ast.Name(one, ast.Load())], ast.Load()) for one in used], ast.Load())
        call = placed(ast.Call(ast.Name(SUMMED, ast.Load()), [names, computed, *map(copied, header.args)], []), node.iter)
        places: list[ast.expr] = [ast.Name(f"{_FOUND}_{i}", ast.Store()) for i in range(len(body.found))]
        unpacked = placed(ast.Assign([ast.Tuple(places, ast.Store())], ast.Name(name, ast.Load())), node.iter)
        test = ast.Compare(ast.Name(name, ast.Load()), [ast.IsNot()], [ast.Constant(None)])
        new = placed(ast.For(header.target, header.iter, kept or [placed(ast.Pass(), node)], []), node)
        either = placed(ast.If(test, [unpacked, new], [node]), node)
        return [assigned(name, call, node.iter), located(either)]

    def _is_plain(self, loop: ast.For, body: _Body) -> bool:
        """Whether nothing is written into items of items, which may be in several places, or appended to other than lists."""
        made = [item for item in walk(self.function) if isinstance(item, ast.Assign) and isinstance(item.value, ast.List)]
        lists = {name for item in made for target in item.targets for name in names_stored(target)}
        every: list[Any] = [item for statement in loop.body for item in walk(statement)]
        for item in every:
            if isinstance(item, ast.Subscript) and isinstance(item.ctx, ast.Store) and not isinstance(item.value, ast.Name):
                return False
            adds = isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Subscript)
            if adds and not self._is_of_numbers(item.target):
                return False
            if is_append(item) and item.func.value.id not in lists:
                return False
        return all([is_only_read(statement, body.names, kept=True) for statement in body.others])

    def _is_of_numbers(self, target: ast.Subscript) -> bool:
        """Whether what an item is added to is made by NumPy, of numbers: those of other things may be changed themselves."""
        name = target.value.id  # type: ignore[attr-defined]
        made = [item for item in walk(self.function) if isinstance(item, ast.Assign) and name in names_stored(item)]
        parts = [part for item in made for part in walk(item.value)]
        copies = any([isinstance(part, ast.Attribute) and part.attr in ("copy", "full", "full_like") for part in parts])
        objects = any([isinstance(part, ast.Name) and part.id == "object" for part in parts])
        return not copies and not objects and not any([isinstance(part, ast.Constant) and part.value == "O" for part in parts])


class _Header(NamedTuple):
    """What a loop runs over, as ``target`` and ``iter``: a range that ``args`` tell, or arrays which these are, item by item.

    ``place`` is the name of where it is, ``items`` what other names stand for there."""

    target: ast.expr
    iter: ast.expr
    args: list[ast.expr]
    place: str
    items: dict[str, ast.expr]


def _header(loop: ast.For, names: set[str]) -> _Header | None:
    """What a loop runs over; None where it is anything else."""
    target: Any = loop.target
    made: Any = loop.iter
    if is_counted(loop):
        args = made.args
        return _Header(target, copied(made), args, target.id, {}) if len(args) < 3 else None
    if loop.orelse:
        return None
    if _is_call(made, "enumerate") and len(made.args) == 1 and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        place, items, made = *target.elts, made.args[0]
    else:
        place, items = ast.Name(fresh(_PLACE, names), ast.Store()), target
    arrays = made.args if _is_call(made, "zip") else []
    if not isinstance(place, ast.Name) or not isinstance(items, ast.Tuple) or len(items.elts) != len(arrays):
        return None
    known = all([isinstance(part, _READ) for array in arrays for part in walk(array)])
    names_only = [name for name in items.elts if isinstance(name, ast.Name)]
    if not known or len(names_only) < len(arrays):
        return None
    index = ast.Name(place.id, ast.Load())
    values: dict[str, ast.expr] = {}
    for name, array in zip(names_only, arrays, strict=True):
        values[name.id] = located(placed(ast.Subscript(array, index, ast.Load()), name))
    numbered = loop.iter if made is not loop.iter else ast.Call(ast.Name("enumerate", ast.Load()), [made], [])
    both = ast.Tuple([place, items], ast.Store())
    return _Header(placed(copied(both), target), placed(copied(numbered), loop.iter), arrays, place.id, values)


def _is_call(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    """Whether it is ``name(...)``, of what is there by place; of ``strict`` lengths or not, for they are to be the same."""
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    if not named or not node.args:  # type: ignore[attr-defined]
        return False
    return all([item.arg == "strict" and isinstance(item.value, ast.Constant) for item in node.keywords])  # type: ignore[attr-defined]


class _Body:
    """What a loop does: the ``statements`` with what was ``found`` for all iterations in the place of what is computed of
    slices."""

    def __init__(self, loop: ast.For, header: _Header, local: set[str]) -> None:
        self.index, self.local = header.place, local
        self.stored = Counter(name for statement in loop.body for name in names_stored(statement))
        self.values = dict(header.items)  # of what the names stand for that each iteration gives one, so far
        self.found: list[ast.expr] = []
        self.checked: list[ast.expr] = []  # what raises where something else is to be done
        self.others: list[ast.stmt] = []  # the statements that do more than to give names values
        self.statements: list[ast.stmt] = []
        self.put: dict[ast.stmt, dict[str, ast.expr]] = {}  # by statements that give names such values
        self.shared = set[str]()  # names of what has others
        own = [item for statement in loop.body for item in own_parts(statement, (*SCOPES, ast.For))]
        self.divides = any([_may_raise(item, self.stored) for item in own])
        always = True
        ends = [k for k, statement in enumerate(loop.body) if _continues(statement) and not _is_left_out(statement)]
        first = min(ends, default=len(loop.body))
        straight = Counter(name for statement in loop.body[:first] for name in _targets(statement))
        for statement in loop.body:
            if always and _is_left_out(statement) and self.is_known(statement.test):  # type: ignore[attr-defined]
                self.checked.append(_asked("never", [self.meant(statement.test)], statement))  # type: ignore[attr-defined]
                continue
            names = _targets(statement) if always else []
            pairs = self._pairs(statement) if all([straight[name] == self.stored[name] for name in names]) else None
            if pairs is not None:
                done = copied(statement)
                self.put[done] = pairs
                self.values.update(pairs)
            else:
                self.others.append(statement)
                done = _Finds(self, always).visit(copied(statement))
            for name in names:
                if name not in (pairs or {}):
                    self.values.pop(name, None)
            self.statements.append(done)
            always = always and not _continues(statement)

    @property
    def names(self) -> set[str]:
        """The names that were found to be known."""
        return {name for put in self.put.values() for name in put}

    def _pairs(self, statement: ast.stmt) -> dict[str, ast.expr] | None:
        """The names that a statement gives a value to which is computed of slices, or what is looked up; None for others."""
        if isinstance(statement, ast.For):
            return self._sums(statement)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name, known = statement.target.id, self.values.get(statement.target.id)
            if known is None or not _is_new(known) or name in self.shared or not self.is_known(statement.value):
                return None
            if any([isinstance(item, ast.Name) and item.id == name for other in self.others for item in walk(other)]):
                return None  # which may have another name for it
            new = placed(ast.BinOp(known, statement.op, self.meant(statement.value)), statement)
            return {name: _asked("inplace", [known, new], statement)}
        if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
            return None
        pairs = paired(statement.targets[0], statement.value)
        named = {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
        if not named or len(named) < len(pairs) or not all(map(self.is_known, named.values())):
            return None
        meant = {name: self.meant(value) for name, value in named.items()}
        if sum([1 for value in meant.values() for _ in walk(value)]) > MOST:
            return None
        self.shared -= named.keys()
        for name, value in named.items():
            if not _is_new(value):
                self.shared |= {name, *names_read(value)}
        return meant

    def _sums(self, loop: ast.For) -> dict[str, ast.expr] | None:
        """The names that a loop over places between looked up ends adds to, with what they get; None for other loops."""
        if not is_range(loop.iter) or not isinstance(loop.target, ast.Name) or loop.orelse or len(loop.iter.args) > 2:
            return None
        ends = [self.meant(end) for end in loop.iter.args]
        if not all(map(self.is_known, loop.iter.args)) or not self._look_up(ends):
            return None
        between = ast.Slice(*(ends if len(ends) > 1 else [ast.Constant(0), *ends]))
        places = located(placed(ast.Subscript(ast.Name(_LOOK, ast.Load()), between, ast.Load()), loop.iter))
        before, sums = self.values, dict[str, ast.expr]()
        self.values = {**before, loop.target.id: places}
        own = {loop.target.id, *[name for statement in loop.body for name in _targets(statement)]}
        for statement in loop.body:
            (name, *more), value = _targets(statement) or [""], getattr(statement, "value", None)
            if value is None or more or not name or not {*names_read(value)}.isdisjoint(sums) or not self.is_known(value):
                break
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and name not in before:
                self.values[name] = self.meant(value)
                continue
            op = getattr(statement, "op", None)
            known = before.get(name)
            starts = isinstance(known, ast.Constant) and type(known.value) is float
            if known is None or name in sums or not isinstance(op, (ast.Add, ast.Sub)) or not starts:
                break
            total = _asked("over", [places, self.meant(value), ast.Constant(self.divides)], statement)
            sums[name] = placed(ast.BinOp(known, op, total), statement)
        else:
            self.values = {name: value for name, value in before.items() if name not in own}
            return sums or None
        self.values = before
        return None

    def is_known(self, node: ast.expr) -> bool:
        """Whether an expression is made of what stays the same while the loop runs, and of its index, as far as names tell."""
        called = [item.func for item in walk(node) if isinstance(item, ast.Call)]
        for item in walk(node):
            if item in called or (isinstance(item, ast.Name) and item.id in MODULES):
                continue
            if isinstance(item, ast.Name):
                if self.stored[item.id] and item.id not in self.values and item.id != self.index:
                    return False
            elif isinstance(item, ast.Call):
                if not _is_call_of_numpy(item):
                    return False
            elif isinstance(item, ast.Attribute):
                if item.attr not in _SIZES:
                    return False
            elif isinstance(item, ast.Compare):
                if any([isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in item.ops]):
                    return False
            elif not isinstance(item, _KNOWN):
                return False
        return True

    def meant(self, node: ast.expr) -> ast.expr:
        """An expression with what names stand for in their places."""
        return Put(self.values).visit(copied(node))  # type: ignore[no-any-return]

    def is_segment(self, node: ast.AST) -> bool:
        """Whether it is a slice whose ends are looked up by the index."""
        if not isinstance(node, ast.Slice):
            return False
        ends = [self.meant(end) for end in (node.lower, node.upper) if end is not None]
        return self._look_up(ends)

    def _look_up(self, ends: Sequence[ast.expr]) -> bool:
        """Whether something is looked up by the index."""
        every = [item.slice for end in ends for item in walk(end) if isinstance(item, ast.Subscript)]
        return any([names_read(place)[self.index] for place in every])

    def has_segment(self, node: ast.expr) -> bool:
        """Whether anything in it is."""
        return any(map(self.is_segment, walk(self.meant(node))))

    def has_places(self, statement: ast.stmt) -> bool:
        """Whether a statement still has slices, or a loop, with such ends."""
        loops = [item.iter.args for item in walk(statement) if isinstance(item, ast.For) and is_range(item.iter)]
        return any(map(self.is_segment, walk(statement))) or any(
            [self._look_up([self.meant(end) for end in ends]) for ends in loops]
        )

    def instead(self, node: ast.expr) -> ast.expr:
        """What is there in the place of an expression: what it is, of all iterations, for this one."""
        place = ast.Name(self.index, ast.Load())
        made = ast.Subscript(ast.Name(f"{_FOUND}_{len(self.found)}", ast.Load()), place, ast.Load())
        self.found.append(self.meant(node))
        return located(placed(made, node))  # type: ignore[no-any-return]

    def needed(self, live: Collection[str]) -> list[ast.stmt] | None:
        """The statements, but for what nobody reads any more, in this iteration, the next one, or when the loop is over; None
        where some of that is to be found yet."""
        kept: list[ast.stmt] = []
        after, before = set(live), set[str]()
        while not before <= after or not kept:
            after |= before
            kept, dropped, before = [], list[ast.expr](), set(after)
            for statement in reversed(self.statements):
                put = self.put.get(statement)
                if put is not None and before.isdisjoint(names_stored(statement)):
                    dropped += [_asked("computed", [one], statement) for one in put.values()]
                    continue
                if self.has_places(statement) or any(map(self.has_segment, (put or {}).values())):
                    return None
                kept.insert(0, statement)
                before = (before - (put or {}).keys()) | names_read(statement).keys()
            if not kept:
                break
        self.checked += dropped
        return kept


class _Finds(ast.NodeTransformer):
    """Puts what was found in the place of expressions; where these are not ``always`` computed, of names alone."""

    def __init__(self, body: _Body, always: bool) -> None:
        self.body, self.always = body, always

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", None), (ast.Load, type(None))):
            known = isinstance(node, ast.Name) if not self.always else not isinstance(node, (ast.Slice, ast.Tuple))
            if known and self.body.is_known(node) and self.body.has_segment(node):
                return self.body.instead(node)
        if not isinstance(node, (*_MAYBE, ast.For, ast.While, ast.If, ast.Match)):
            return self.generic_visit(node)
        before, self.always = self.always, False
        found = self.generic_visit(node)
        self.always = before
        return found


def _asked(what: str, args: list[ast.expr], like: ast.AST) -> ast.expr:
    """A question to all iterations."""
    fun = ast.Attribute(ast.Name(_LOOK, ast.Load()), what, ast.Load())
    return located(placed(ast.Call(fun, args, []), like))  # type: ignore[no-any-return]


class _Looks(ast.NodeTransformer):
    """Items are looked up by a function, which gives those of all iterations."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = [_sliced(part) if isinstance(part, ast.Slice) else part for part in parts]
        key = ast.Tuple(parts, ast.Load()) if isinstance(node.slice, ast.Tuple) else parts[0]
        return placed(ast.Call(ast.Name(_LOOK, ast.Load()), [node.value, key], []), node)  # type: ignore[no-any-return]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id != "len":
            return node
        shape = ast.Attribute(node.args[0], "shape", ast.Load())
        return placed(ast.Call(ast.Name(_LOOK, ast.Load()), [shape, ast.Constant(0)], []), node)  # type: ignore[no-any-return]


def _sliced(part: ast.Slice) -> ast.expr:
    """``slice(a, b, c)``."""
    ends = [end or ast.Constant(None) for end in (part.lower, part.upper, part.step)]
    return ast.Call(ast.Name("slice", ast.Load()), ends, [])


def _targets(statement: ast.stmt) -> list[str]:
    """The names that a statement gives values to by itself."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if isinstance(statement, ast.For):
        return [*names_stored(statement)]
    known = isinstance(statement, (ast.Assign, ast.AugAssign))
    return [name for target in targets for name in names_stored(target)] if known else []  # type: ignore[arg-type]


def _is_left_out(statement: ast.stmt) -> bool:
    """Whether a statement leaves out what comes after it, and does nothing else."""
    left_out = isinstance(statement, ast.If) and not statement.orelse and len(statement.body) == 1
    return left_out and isinstance(statement.body[0], ast.Continue)  # type: ignore[attr-defined]


def _may_raise(node: ast.AST, names: Collection[str]) -> bool:
    """Whether a division, or a power, may be by one of Python's zeros that some ``names`` stand for."""
    if isinstance(node, ast.Call):
        fun = node.func
        return ast.unparse(fun) in ("pow", "divmod") or (isinstance(fun, ast.Attribute) and ast.unparse(fun.value) == "math")
    if not isinstance(node, (ast.BinOp, ast.AugAssign)) or not isinstance(node.op, _DIVIDES):
        return False
    by = node.right if isinstance(node, ast.BinOp) else node.value
    if isinstance(node.op, ast.Pow):
        return not isinstance(by, ast.Constant)
    return not names_read(by).keys().isdisjoint(names)


def _continues(statement: ast.stmt) -> bool:
    """Whether what comes after a statement may be left out."""
    return any([isinstance(item, ast.Continue) for item in walk(statement)])


def _is_new(value: ast.expr) -> bool:
    """Whether an expression makes what nothing else has."""
    return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Constant))


def _is_call_of_numpy(node: ast.Call) -> bool:
    """Whether it is a function of NumPy's of items one by one, or a reduction, or a method that is one; or asks for a size."""
    if isinstance(node.func, ast.Name):
        return node.func.id in ("abs", "len") and len(node.args) == 1 and not node.keywords
    if not isinstance(node.func, ast.Attribute) or not {item.arg for item in node.keywords} <= {"axis"}:
        return False
    name, owner = node.func.attr, node.func.value
    if not (isinstance(owner, ast.Name) and owner.id in MODULES):
        return name in _REDUCTIONS
    return isinstance(getattr(np, name, None), np.ufunc) or name in _OF_NUMPY


def _has_ends(loop: ast.AST) -> bool:
    """Whether it is worth a look: a loop in which there are slices, or ranges of other loops, with ends that are no numbers."""
    if not isinstance(loop, ast.For):
        return False
    inner = [item for statement in loop.body for item in walk(statement)]
    ends = [end for item in inner if isinstance(item, ast.Slice) for end in (item.lower, item.upper) if end is not None]
    ends += [end for item in inner if isinstance(item, ast.For) and is_range(item.iter) for end in item.iter.args]
    return any([not isinstance(end, (ast.Constant, ast.UnaryOp)) for end in ends])
