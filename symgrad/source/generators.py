"""Loops over what generators of the user's yield: the generator's statements stand in their place.

With ``def pairs(x): for i in range(len(x) - 1): yield x[i], x[i + 1]``, the loop ``for a, b in pairs(x): s += a * b`` becomes
``x_ = x``, ``for i_ in range(len(x_) - 1): a, b = x_[i_], x_[i_ + 1]; s += a * b``. Python would run the two loops in turns, of
which no code can be made where either decides on anything. That is done where the generator does the same there: where it is a
function of the same module, or one that the function has made, it only yields, and a ``break`` or ``continue`` of the loop's is
one of the generator's loop as well.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from symgrad.source.constants import bound_anywhere
from symgrad.source.liveness import Ends, live
from symgrad.source.syntax import (
    LOCAL_READERS,
    SCOPES,
    FunctionNode,
    blocks_of,
    bound_in,
    copied,
    declared,
    fresh,
    located,
    own_parts,
    placed,
    walk,
)

INLINED = "__symgrad_inlined__"
_SEEN = LOCAL_READERS | {"next", "StopIteration"}  # by which a generator shows that it is one
_ALL = frozenset(["sum", "min", "max", "sorted", "tuple", "any", "all", "list"])  # builtins that may be given a generator
_DEEPEST = 3  # generators that run over generators
_MOST = 3  # statements that yield something, of one generator
_COPY = 1000  # columns between two copies of a generator's statements, so that no two are at one place
_LOOPS = (ast.For, ast.While)
_NEVER = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try, ast.With, ast.AsyncWith, ast.AsyncFor, ast.Global,
    ast.Nonlocal, ast.Import, ast.ImportFrom, ast.YieldFrom, ast.Await, ast.Return, ast.Delete, ast.Match, ast.Lambda,
    *([ast.TryStar] if hasattr(ast, "TryStar") else []),
)  # fmt: skip


def inlined(function: FunctionNode, outside: Mapping[str, ast.FunctionDef], around: Collection[str]) -> FunctionNode:
    """The function, changed in place: loops over generators are those of the generators. ``outside``: those of its module;
    ``around``: the names of the module and of functions around it, no more those of builtins."""
    names = {part.id for part in walk(function) if isinstance(part, ast.Name)}
    if isinstance(function, ast.Lambda) or not names.isdisjoint(LOCAL_READERS) or any(map(_pauses, own_parts(function))):
        return function
    bound = bound_anywhere(function)
    free = {name: node for name, node in outside.items() if name not in bound and _own_names(node).isdisjoint(bound)}
    generators = _Generators(_nested(function), free, names | bound, "enumerate" not in {*bound, *around})
    generators.tries = any([isinstance(part, ast.Try) for part in walk(function)])
    if generators.known:
        builtins = _ALL - bound - {*around}
        for part in walk(function):
            if isinstance(part, ast.Call) and getattr(part.func, "id", "") in builtins and len(part.args) == 1:
                part.args = [generators.one_by_one(part.args[0])]
        for block in [*blocks_of(function)]:
            block[:] = [made for statement in block for made in generators.statements(statement, 0)]
    return function


def called(function: FunctionNode) -> set[str]:
    """The names of functions whose results loops may run over, and so may what is given all that is in them."""
    loops = [part.iter for part in walk(function) if isinstance(part, (ast.For, ast.comprehension))]
    given = [part.args[0] for part in walk(function) if isinstance(part, ast.Call) and len(part.args) == 1]
    return {part.func.id for part in (*loops, *given) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}


class _Generators:
    """Those that a function may run over: ``own`` ones, which it has made, and others, by their names. ``counts``: whether
    ``enumerate`` is the builtin; ``taken`` are names that stand for something else."""

    def __init__(
        self, own: Mapping[str, ast.FunctionDef], outside: Mapping[str, ast.FunctionDef], taken: set[str], counts: bool
    ) -> None:
        self.own, self.taken, self.counts, self.copies = own, taken, counts, Counter[str]()
        self.tries = False  # whether somebody may see how far a loop got when something was raised
        every = {**outside, **own}.items()
        self.known = {name: node for name, node in every if _only_yields(node) and not (name in own and node.args.defaults)}

    def one_by_one(self, items: ast.expr) -> ast.expr:
        """``g(x)`` as ``(item for item in g(x))``, of a generator; anything else as it is."""
        if not isinstance(items, ast.Call) or getattr(items.func, "id", "") not in self.known:
            return items
        item = fresh("item", self.taken)
        clause = ast.comprehension(ast.Name(item, ast.Store()), items, [], 0)
        return located(placed(ast.GeneratorExp(ast.Name(item, ast.Load()), [clause]), items))  # type: ignore[no-any-return]

    def statements(self, statement: Any, depth: int) -> list[ast.stmt]:
        """What stands for a statement."""
        call: Any = statement.iter if isinstance(statement, ast.For) and isinstance(statement.iter, ast.Call) else None
        counted = self.counts and getattr(getattr(call, "func", None), "id", "") == "enumerate"
        if counted:
            starts = [*call.args[1:], *[one.value for one in call.keywords if one.arg == "start"]]
            start = starts[0] if starts else ast.Constant(0)
            call = call.args[0] if call.args and len(call.args) + len(call.keywords) == 1 + len(starts) < 3 else None
        name = getattr(getattr(call, "func", None), "id", "")
        node = self.known.get(name) if depth < _DEEPEST else None
        given = _given(node, call) if node is not None else None
        if node is None or given is None or not _goes_on_alike(node, statement):
            return [statement]
        if name in self.own and statement.lineno < node.lineno:
            return [statement]  # it is not made yet
        renamed = _Renamed({name: fresh(name, self.taken) for name in sorted(_bound(node))}, _COPY * self.copies[name])
        self.copies[name] += 1
        read = ast.Call(ast.Name(INLINED, ast.Load()), [copied(call.func)], [])  # so that it is guarded
        first: list[Any] = [] if name in self.own else [ast.Expr(read)]
        first += [ast.Assign([ast.Name(renamed.names[name], ast.Store())], value) for name, value in given]
        count = fresh("count", self.taken) if counted else None
        first += [ast.Assign([ast.Name(count, ast.Store())], start)] if count is not None else []
        alone = name not in self.own and not self.tries
        made = ast.Module([*[placed(item, statement) for item in first], *map(renamed.visit, map(copied, _body(node)))], [])
        for block in [*blocks_of(made)]:
            block[:] = [item for one in block for item in _yielded(one, statement, count, alone)]
        for block in [*blocks_of(located(placed(made, statement)))]:
            block[:] = [item for one in block for item in self.statements(one, depth + 1)]
        return made.body


def _yielded(statement: Any, loop: Any, count: str | None, alone: bool) -> list[ast.stmt]:
    """``yield v`` as what the loop does with it, which may ``count`` how often that was; ``alone``: what is yielded hangs on
    none of the loop's own names, and nobody sees how far these got."""
    if not _is_yield(statement):
        return [statement]
    target, value, first = copied(loop.target), statement.value.value, list[ast.stmt]()
    if count is not None:
        number = ast.Name(count, ast.Load())
        more = ast.Assign([ast.Name(count, ast.Store())], ast.BinOp(number, ast.Add(), ast.Constant(1)))
        parts = target.elts if alone and isinstance(target, ast.Tuple) and len(target.elts) == 2 else []
        if parts and isinstance(parts[0], ast.Name) and not isinstance(parts[1], ast.Starred):
            first = [ast.Assign([parts[0]], number), ast.Assign([parts[1]], value), more]
        else:
            first = [ast.Assign([target], ast.Tuple([number, value], ast.Load())), more]
    made = first or [ast.Assign([target], value)]
    return [*[placed(item, statement) for item in made], *map(copied, loop.body)]


class _Renamed(ast.NodeTransformer):
    """Gives names others, and moves what has a place by so many columns."""

    def __init__(self, names: Mapping[str, str], columns: int) -> None:
        self.names, self.columns = names, columns

    def visit(self, node: Any) -> Any:
        if isinstance(node, ast.Name):
            node.id = self.names.get(node.id, node.id)
        if self.columns and hasattr(node, "lineno"):
            node.col_offset, node.end_col_offset = node.col_offset + self.columns, (node.end_col_offset or 0) + self.columns
        return self.generic_visit(node)


def _nested(function: FunctionNode) -> dict[str, ast.FunctionDef]:
    """The generators that a function makes, once each, before anything else can have their names."""
    if isinstance(function, ast.Lambda):
        return {}
    often = Counter([part.id for part in walk(function) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)])
    others = [getattr(part, field, None) for part in walk(function) for field in ("arg", "name", "asname", "rest")]
    often.update([name for name in others if isinstance(name, str)])
    made = [item for item in function.body if isinstance(item, ast.FunctionDef) and not item.decorator_list]
    return {item.name: item for item in made if often[item.name] == 1 and item.name not in declared(function)}


def _body(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[ast.get_docstring(node, clean=False) is not None :]


def _bound(node: ast.FunctionDef) -> set[str]:
    """The names that are a generator's own."""
    return bound_anywhere(node) - {node.name} | bound_in(node)[0]


def _own_names(node: ast.FunctionDef) -> set[str]:
    """The names that a generator reads from around it."""
    return {part.id for part in walk(node) if isinstance(part, ast.Name)} - _bound(node)


def _pauses(part: ast.AST) -> bool:
    return isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await))


def _is_yield(statement: Any) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)


def _only_yields(node: ast.FunctionDef) -> bool:
    """Whether all that a function does with its caller is to yield something to it, and none of its names may be unbound."""
    body, args = _body(node), node.args
    parts = [part for item in body for part in walk(item)]
    plain = not (node.decorator_list or args.vararg or args.kwarg or args.kw_defaults)
    plain = plain and not any([isinstance(part, _NEVER) for part in parts])
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    statements = [part for part in parts if _is_yield(part)]
    given = [part.value for part in statements if part.value.value is not None]  # type: ignore[attr-defined]
    every = [part for part in parts if isinstance(part, ast.Yield)]
    known = not any([name.startswith("__") for name in names]) and names.isdisjoint(_SEEN)
    unbound = live(body, frozenset(), Ends()) & (_bound(node) - {arg.arg for arg in walk(args) if isinstance(arg, ast.arg)})
    return plain and known and not unbound and 0 < len(given) == len(every) <= _MOST


def _given(node: ast.FunctionDef, call: ast.Call) -> list[tuple[str, ast.expr]] | None:
    """The parameters of a generator, each with what a call gives it, or with its default, in this order; None where that is not
    clear."""
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    named = [*names[len(node.args.posonlyargs) :], *[arg.arg for arg in node.args.kwonlyargs]]
    if any([isinstance(arg, ast.Starred) for arg in call.args]) or any([one.arg not in named for one in call.keywords]):
        return None
    given = [*zip(names, call.args, strict=False), *[(one.arg or "", one.value) for one in call.keywords]]
    every = {*names, *[arg.arg for arg in node.args.kwonlyargs]}
    left = {name for name, _ in given}
    defaults = ast.Attribute(call.func, "__defaults__", ast.Load())
    for i, name in enumerate(names[len(names) - len(node.args.defaults) :]):
        if name not in left and len(call.args) <= names.index(name):
            given.append((name, copied(ast.Subscript(defaults, ast.Constant(i), ast.Load()))))
    return given if len(call.args) <= len(names) and len(given) == len(every) == len({name for name, _ in given}) else None


def _goes_on_alike(node: ast.FunctionDef, loop: ast.For) -> bool:
    """Whether what ends an iteration of a loop, or the loop, is the same in the generator's own."""
    body, leaves = _body(node), {*_leaving(loop.body)}
    places = [*_yields(body, (), True)]
    if loop.orelse or (ast.Continue in leaves and not all([around and last for around, last in places])):
        return False
    ends = isinstance(body[-1], _LOOPS) and not body[-1].orelse and all([around == (body[-1],) for around, _ in places])
    return ast.Break not in leaves or ends


def _leaving(statements: list[Any]) -> Iterator[type[ast.stmt]]:
    """What ends an iteration of the loop, or the loop, that these statements are the body of."""
    for statement in statements:
        if isinstance(statement, (ast.Break, ast.Continue)):
            yield type(statement)
        for field in ("orelse",) if isinstance(statement, _LOOPS) else ("body", "orelse", "finalbody", "handlers", "cases"):
            if not isinstance(statement, SCOPES):
                yield from _leaving(getattr(statement, field, []))


def _yields(
    statements: list[ast.stmt], around: tuple[ast.stmt, ...], last: bool
) -> Iterator[tuple[tuple[ast.stmt, ...], bool]]:
    """In which loops each statement stands that yields something, and whether an iteration ends with it."""
    for i, statement in enumerate(statements):
        final = last and i == len(statements) - 1
        if _is_yield(statement):
            yield around, final
        elif isinstance(statement, _LOOPS):
            yield from _yields(statement.body, (*around, statement), True)
            yield from _yields(statement.orelse, around, final)
        elif isinstance(statement, ast.If):
            yield from _yields(statement.body, around, final)
            yield from _yields(statement.orelse, around, final)
