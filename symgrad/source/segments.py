"""Segments: what a loop computes of slices between ends that it looks up is computed for all iterations beforehand.

``for i in range(n): y[i] = v[ends[i]:ends[i + 1]] @ w[ends[i]:ends[i + 1]]`` runs as ``found = summed(range, range(n), lambda
look, i: (...,))``, ``for i in range(n): y[i] = found[0][i]``, if there is such a result, and as it is otherwise. What it may do
with slices, ``symgrad.loops.segments`` knows when it runs; here is what the names and the reads of the function show: that they
are the same beforehand, and that each iteration computes it.
"""

from __future__ import annotations

import ast
from collections import Counter
from types import FunctionType
from typing import Any

import numpy as np

from symgrad.source.settled import ESCAPES, Put, Settled, are_looked_up, breaks, is_counted
from symgrad.source.syntax import (
    COMPREHENSIONS,
    MODULES,
    FunctionNode,
    assigned,
    bound_in,
    copied,
    fresh,
    located,
    names_read,
    names_stored,
    paired,
    placed,
    walk,
)

SUMMED = "__symgrad_summed__"  # what computes it for all iterations
MOST = 1_000  # nodes of an expression with what names in it stand for
_LOOK = "__symgrad_look__"
_FOUND = "__symgrad_found"
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
    if any([isinstance(item, ast.Slice) for item in walk(function)]):
        for node in [*walk(function)]:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                _Summer(node, of).generic_visit(node)
    return function


class _Summer(Settled):
    """Changes the loops of one function."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        return (self.quiet and _has_ends(node) and self._summed(node)) or node

    def _summed(self, node: ast.For) -> list[ast.stmt] | None:
        """The loop in both ways; None where there is but one."""
        live = getattr(node, "live", None)
        if not is_counted(node) or live is None or len(node.iter.args) > 2:  # type: ignore[attr-defined]
            return None
        if any([isinstance(item, ESCAPES) for item in walk(node)]) or breaks(node.body):
            return None
        body = _Body(node, bound_in(self.function)[0])
        if not body.found or not MODULES.isdisjoint(body.local):
            return None
        outer = node.iter.args  # type: ignore[attr-defined]
        kept = body.needed(live)
        if kept is None or not self.is_settled([body.index], outer, (), node.body, live, [*body.found]):
            return None
        look, name = fresh(_LOOK, self.names), fresh(_FOUND, self.names)
        captured = sorted({key for one in body.found for key in names_read(one)} & body.local - {body.index})
        values = [_Looks(look).visit(copied(one)) for one in body.found]
        given = [ast.arg(each) for each in (look, body.index, *captured)]
        defaults: list[ast.expr] = [ast.Name(each, ast.Load()) for each in captured]
        args = ast.arguments([], given, None, [], [], None, defaults)
        computed = placed(ast.Lambda(args, ast.Tuple(values, ast.Load())), node.iter)
        ranged = placed(ast.Name("range", ast.Load()), node.iter)
        call = placed(ast.Call(ast.Name(SUMMED, ast.Load()), [ranged, copied(node.iter), computed], []), node.iter)
        parts = ast.Tuple([ast.Name(f"{_FOUND}_{i}", ast.Store()) for i in range(len(body.found))], ast.Store())
        unpacked = placed(ast.Assign([parts], ast.Name(name, ast.Load())), node.iter)
        test = ast.Compare(ast.Name(name, ast.Load()), [ast.IsNot()], [ast.Constant(None)])
        new = placed(ast.For(node.target, copied(node.iter), kept or [placed(ast.Pass(), node)], []), node)
        either = placed(ast.If(test, [unpacked, new], [node]), node)
        return [assigned(name, call, node.iter), located(either)]


class _Body:
    """What a loop over a range does: the ``statements`` with what was ``found`` for all iterations in the place of what is
    computed of slices."""

    def __init__(self, loop: ast.For, local: set[str]) -> None:
        self.index: str = loop.target.id  # type: ignore[attr-defined]
        self.local = local
        self.stored = Counter(name for statement in loop.body for name in names_stored(statement))
        self.values: dict[str, ast.expr] = {}  # of what the names stand for that each iteration gives one, so far
        self.found: list[ast.expr] = []
        self.statements: list[ast.stmt] = []
        self.put: dict[ast.stmt, dict[str, ast.expr]] = {}  # by statements that give names such values
        self.shared = set[str]()  # names of what has others
        read, always = set[str](), True
        first = next((k for k, statement in enumerate(loop.body) if _continues(statement)), len(loop.body))
        straight = Counter(name for statement in loop.body[:first] for name in _targets(statement))
        for statement in loop.body:
            names = _targets(statement) if always else []
            pairs = self._pairs(statement) if all([straight[name] == self.stored[name] for name in names]) else None
            if pairs is not None and not any([name in read and name not in self.values for name in names]):
                done = copied(statement)
                self.put[done] = {name: self.meant(value) for name, value in pairs}
                self.values.update(self.put[done])
            else:
                done = _Finds(self, always).visit(copied(statement))
                for name in names:
                    self.values.pop(name, None)
            self.statements.append(done)
            read |= {item.id for item in walk(statement) if isinstance(item, ast.Name)}
            always = always and not _continues(statement)

    def _pairs(self, statement: ast.stmt) -> list[tuple[str, ast.expr]] | None:
        """The names that a statement gives a value to which is computed of slices, or what is looked up; None for others."""
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name, known = statement.target.id, self.values.get(statement.target.id)
            if known is None or not _is_new(known) or name in self.shared or not self.is_known(statement.value):
                return None
            return [(name, placed(ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value), statement))]
        if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
            return None
        pairs = paired(statement.targets[0], statement.value)
        named = [(name.id, value) for name, value in pairs if isinstance(name, ast.Name)]
        if not named or len(named) < len(pairs) or not all([self.is_known(value) for _, value in named]):
            return None
        if sum([1 for _, value in named for _ in walk(self.meant(value))]) > MOST:
            return None
        self.shared -= {name for name, _ in named}
        for name, value in named:
            if not _is_new(value):
                self.shared |= {name, *names_read(value)}
        return named

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
        return bool(ends) and are_looked_up(ends, self.index)

    def has_segment(self, node: ast.expr) -> bool:
        """Whether anything in it is."""
        return any(map(self.is_segment, walk(self.meant(node))))

    def instead(self, node: ast.expr) -> ast.expr:
        """What is there in the place of an expression: what it is, of all iterations, for this one."""
        meant = self.meant(node)
        known = [ast.dump(one) for one in self.found]
        place = known.index(ast.dump(meant)) if ast.dump(meant) in known else len(known)
        self.found += [meant] if place == len(known) else []
        made = ast.Subscript(ast.Name(f"{_FOUND}_{place}", ast.Load()), ast.Name(self.index, ast.Load()), ast.Load())
        return located(placed(made, node))  # type: ignore[no-any-return]

    def needed(self, live: Any) -> list[ast.stmt] | None:
        """The statements, but for what nobody reads any more; None where somebody does when the loop is over."""
        kept: list[ast.stmt] = []
        read = set(live)
        for statement in reversed(self.statements):
            put = self.put.get(statement)
            if put is not None and read.isdisjoint(put):
                continue
            if any(map(self.is_segment, walk(statement))) or any(map(self.has_segment, (put or {}).values())):
                return None
            kept.insert(0, statement)
            read = (read - (put or {}).keys()) | names_read(statement).keys()
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


class _Looks(ast.NodeTransformer):
    """Items are looked up by a function, which gives those of all iterations."""

    def __init__(self, look: str) -> None:
        self.look = look

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = [_sliced(part) if isinstance(part, ast.Slice) else part for part in parts]
        key = ast.Tuple(parts, ast.Load()) if isinstance(node.slice, ast.Tuple) else parts[0]
        return placed(ast.Call(ast.Name(self.look, ast.Load()), [node.value, key], []), node)  # type: ignore[no-any-return]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id != "len":
            return node
        shape = ast.Attribute(node.args[0], "shape", ast.Load())
        return placed(ast.Call(ast.Name(self.look, ast.Load()), [shape, ast.Constant(0)], []), node)  # type: ignore[no-any-return]


def _sliced(part: ast.Slice) -> ast.expr:
    """``slice(a, b, c)``."""
    ends = [end or ast.Constant(None) for end in (part.lower, part.upper, part.step)]
    return ast.Call(ast.Name("slice", ast.Load()), ends, [])


def _targets(statement: ast.stmt) -> list[str]:
    """The names that a statement gives values to by itself."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    known = isinstance(statement, (ast.Assign, ast.AugAssign))
    return [name for target in targets for name in names_stored(target)] if known else []  # type: ignore[arg-type]


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


def _has_ends(loop: ast.For) -> bool:
    """Whether it is worth a look: there are slices with ends that are no numbers."""
    slices = [item for item in walk(loop) if isinstance(item, ast.Slice)]
    ends = [end for item in slices for end in (item.lower, item.upper) if end is not None]
    return any([not isinstance(end, (ast.Constant, ast.UnaryOp)) for end in ends])
