"""What stays as it is while a loop runs, as far as the names and the reads of a function show."""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Collection, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from symgrad.source.liveness import note_live, read_later
from symgrad.source.quiet import CHANGING, LOOKED_UP, OF_ARRAYS, QUIET, WRITERS, is_quiet
from symgrad.source.syntax import (
    LOCAL_READERS,
    MODULES,
    FunctionNode,
    assigned_first,
    blocks_of,
    body_of,
    bound_in,
    copied,
    declared,
    is_append,
    is_range,
    names_read,
    names_read_in,
    names_stored,
    names_within,
    paired,
    parameters,
    parts_of,
    walk,
)

# what leaves the loops, or binds names in ways of its own
ESCAPES = (
    ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
    ast.NamedExpr, ast.Delete, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Try, ast.With, ast.Match,
)  # fmt: skip
SIZES = frozenset(["len", "min", "max", "abs"])  # what the ends of a range are made with
_NUMBERS = frozenset(["len", "float", "int", "bool"])  # what makes a number
# what makes an array, or a number, that has no other name
_FRESH = frozenset(["zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "eye", "copy"])
# which so named functions of NumPy's do
_OF_NUMPYS = frozenset(
    "arange linspace stack hstack vstack column_stack concatenate repeat cumsum searchsorted argsort bincount".split()
)
_RESHAPED = frozenset(["reshape", "transpose", "swapaxes", "clip"])  # methods of several arguments, by place


class Settled(ast.NodeTransformer):
    """Changes the loops of one function, which is ``of`` such; functions in it have their own turn."""

    def __init__(self, function: FunctionNode, of: FunctionType) -> None:
        self.function, self.of = function, of
        self.names = {item.id for item in walk(function) if isinstance(item, ast.Name)}
        own = self.names.intersection([*QUIET, "range", "zip", "enumerate"])  # if nobody has given them other meanings
        self.quiet = self.names.isdisjoint(LOCAL_READERS) and own.isdisjoint([*of.__globals__, *of.__code__.co_freevars])
        self.later = read_later(function)
        definitions = [item for item in walk(function) if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
        self.decorated = {item.name for item in definitions if item.decorator_list}
        self.containers = _containers(function)
        if not isinstance(function, ast.Lambda):
            note_live(function)

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef

    def is_settled(
        self,
        own: list[str],
        made_of: list[ast.expr],
        between: Sequence[ast.stmt],
        body: Sequence[ast.stmt],
        live: Collection[str] | None,
        looked_up: Sequence[ast.expr] = (),
        just_made: Collection[str] = (),
    ) -> bool:
        """Whether what pairs and statements ``between`` are made of stays meanwhile, and nobody asks how far the loops are; of
        what is ``live`` when they are over, somebody may. So does what is in arrays, if ends of ranges are ``looked_up``; what
        was ``just_made`` has no other name."""
        put, values = list[str](), [*looked_up]
        for statement in between:
            if not isinstance(statement, ast.Assign) or len(statement.targets) > 1 or not _is_read(statement.value):
                return False
            if not all([isinstance(item, (ast.Name, ast.Tuple)) for item in walk(statement.targets[0])]):
                return False
            put += names_stored(statement.targets[0])
            values.append(statement.value)
        names = {*own, *put}
        stored = {name for statement in body for name in names_stored(statement)}
        read = {name for part in (*made_of, *values) for name in names_read(part)} - names - MODULES
        if len(names) < len(own) + len(put) or not stored.isdisjoint(names | read):
            return False
        if not {*put}.isdisjoint([name for statement in body for name in written_into(statement)]):
            return False  # it would be made anew each time
        over = set[str]() if live is None else names - self.later - {*live}
        if not all(map(self.is_private, names - over)):
            return False
        if not read.isdisjoint(declared(self.function)):  # what functions may change that the body calls
            return False
        within = {name for part in made_of for name in _looked_into(part)} | (read if values else set())
        if not all([is_only_read(statement, within - names) for statement in body]):
            return False
        local = {name.arg for name in walk(self.function) if isinstance(name, ast.arg)}.union(names_stored(self.function))
        if (values or within - names or not read <= local) and not all([self.is_quiet(item, local) for item in body]):
            return False
        if not self._aliases(within | read).isdisjoint([name for statement in body for name in _grown(statement)]):
            return False  # under another name, too
        if not values:
            return True
        written = {name for statement in body for name in written_into(statement)}.difference(just_made)
        bound = read.intersection(names_stored(self.function))
        apart = all(map(self._is_fresh, bound)) or (written.isdisjoint(self._linked(read)) and self.is_alone(written))
        return not written or (apart and all(map(self._is_fresh, written)))

    def just_made(self, loop: ast.stmt) -> set[str]:
        """The names that got what has no other one just before a loop."""
        made, seen = set[str](), names_within(self.function)
        for block in [block for block in blocks_of(self.function) if loop in block]:
            for statement in reversed(block[: block.index(loop)]):
                if isinstance(statement, ast.Assign):
                    names = {*names_stored(statement)}
                    made |= {name for name in names - seen if _is_made(statement, name)}
                seen |= {item.id for item in walk(statement) if isinstance(item, ast.Name)}
        return made

    def is_alone(self, names: Collection[str]) -> bool:
        """Whether no function, in the function or called, has what names stand for."""
        called = [item for item in walk(self.function) if isinstance(item, ast.Call) and not _is_harmless(item)]
        given = {name for call in called for part in (*call.args, *call.keywords) for name in names_read(part)}
        return (names_within(self.function) | given).isdisjoint(names)

    def bound_before(self, loop: ast.stmt) -> set[str]:
        """The names that have a value for sure when a loop begins."""
        found = parameters(self.function)
        for block in blocks_of(self.function):
            place = next((k for k, one in enumerate(block) if _holds(one, loop)), None)
            if place is None:
                continue
            given = [one for one in block[:place] if isinstance(one, ast.Assign)]
            found.update([name for one in given for name in names_stored(one)])
            around = block[place]
            if isinstance(around, ast.For) and any([_holds(one, loop) for one in around.body]):
                found.update(names_stored(around.target))
        return found

    def _linked(self, names: Collection[str]) -> set[str]:
        """The names, with those of what they may stand for, or hold."""
        links = list[tuple[set[str], set[str]]]()
        for item in walk(self.function):
            if isinstance(item, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
                held = _held(item.value) if item.value is not None else set()
                for target in item.targets if isinstance(item, ast.Assign) else [item.target]:
                    into = _root(target) if isinstance(target, (ast.Subscript, ast.Attribute)) else ""
                    if not (into and self._is_fresh(into)):  # which are arrays, into which it is copied
                        links.append(({*names_stored(target), into}, held))
            elif isinstance(item, (ast.For, ast.AsyncFor, ast.comprehension)):
                links.append(({*names_stored(item.target)}, {*names_read(item.iter)}))
            elif isinstance(item, ast.withitem):
                links.append(({*names_stored(item)}, {*names_read(item)}))
            elif isinstance(item, ast.Call) and not _is_harmless(item):
                links.append(({*names_read(item)}, {*names_read(item)}))  # which it may put into one another
        found, before = set(names), -1
        while len(found) > before:
            before = len(found)
            found = found.union(*[behind for name, behind in links if not name.isdisjoint(found)])
        return found

    def _aliases(self, names: Collection[str]) -> set[str]:
        """The names, with those that stand for the same as statements like ``a = b`` say."""
        given = [item for item in walk(self.function) if isinstance(item, ast.Assign) and isinstance(item.value, ast.Name)]
        same = [{item.value.id, *names_stored(item)} for item in given]  # type: ignore[attr-defined]
        found, before = set(names), -1
        while len(found) > before:
            before = len(found)
            found = found.union(*[one for one in same if not one.isdisjoint(found)])
        return found

    def is_quiet(self, statement: ast.AST, local: Collection[str]) -> bool:
        """Whether the functions that a statement calls are known to change nothing that others see."""
        calls = [part for part in walk(statement) if isinstance(part, ast.Call)]
        return all([_is_harmless(call) or is_append(call) or self._calls_quiet(call, local) for call in calls])

    def _calls_quiet(self, call: ast.Call, local: Collection[str]) -> bool:
        if any([item.arg in CHANGING for item in call.keywords]):
            return False
        if isinstance(call.func, ast.Name):
            return call.func.id not in self.decorated and is_quiet(call.func.id, self.of, {*local, *self.decorated})
        if not isinstance(call.func, ast.Attribute) or getattr(call.func.value, "id", "") in MODULES:
            return False
        owner = _root(call.func)
        if owner not in local and isinstance(self.of.__globals__.get(owner), ModuleType):
            return call.func.attr in LOOKED_UP
        return call.func.attr in OF_ARRAYS and (len(call.args) < 2 or call.func.attr in _RESHAPED)

    def is_private(self, name: str) -> bool:
        """Whether a name is only read in loops that give it a value first."""
        bound = [often for statement in body_of(self.function) for often in _reads_bound(statement, name)]
        return bool(names_read_in(self.function)[name] == sum(bound))

    def _is_fresh(self, name: str) -> bool:
        """Whether a name stands for arrays and numbers alone that the function has made for it."""
        every = [*walk(self.function)]
        made = [item for item in every if isinstance(item, ast.Assign) and name in names_stored(item)]
        bound = sum([isinstance(item, ast.Name) and item.id == name and not isinstance(item.ctx, ast.Load) for item in every])
        changed = sum([isinstance(item, ast.AugAssign) and getattr(item.target, "id", None) == name for item in every])
        otherwise = any([name in (getattr(item, "arg", None), getattr(item, "name", None)) for item in every])
        if any([not self.containers.isdisjoint(_combined(item.value)) for item in made]):
            return False  # a copy of a list, or a sum of lists, which holds the same items
        return bool(made) and not otherwise and bound == len(made) + changed and all([_is_made(item, name) for item in made])


def _is_read(node: ast.AST) -> bool:
    """Whether an expression does no more than read, look up and compute."""
    kinds = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Slice, ast.Tuple, ast.Attribute)
    return all([isinstance(item, kinds) for item in walk(node)])


def _held(value: ast.expr) -> set[str]:
    """The names of what the value of an expression may be, or hold: numbers and arrays are computed anew, lists hold items."""
    if isinstance(value, (ast.Compare, ast.UnaryOp, ast.Constant)):
        return set()
    if isinstance(value, ast.BinOp):
        return _held(value.left) | _held(value.right) if isinstance(value.op, (ast.Add, ast.Mult)) else set()
    if isinstance(value, (ast.Name, ast.Subscript)):
        return {_root(value)} if _root(value) else {*names_read(value)}
    computed = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and _is_new(value)
    return set() if computed else {*names_read(value)}


def _combined(value: ast.expr) -> set[str]:
    """The names of what is copied, or added up, in an expression: of lists and dicts, the items are the same."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Mult, ast.BitOr)):
        return _combined(value.left) | _combined(value.right)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy":
        return _combined(value.func.value)
    return {value.id} if isinstance(value, ast.Name) else set()


def _containers(function: FunctionNode) -> set[str]:
    """The names that a function assigns lists, tuples or dicts, as their displays, comprehensions or builtins make them."""
    given = [item for item in walk(function) if isinstance(item, ast.Assign)]
    pairs = [pair for item in given for target in item.targets for pair in paired(target, item.value)]
    found, before = set[str](), -1
    while len(found) > before:
        before = len(found)
        for target, value in pairs:
            made = isinstance(value, _DISPLAYS) or getattr(getattr(value, "func", None), "id", "") in _CONTAINERS
            if isinstance(target, ast.Name) and (made or not found.isdisjoint(_combined(value))):
                found.add(target.id)
    return found


_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
_CONTAINERS = frozenset(["list", "tuple", "dict", "sorted"])


def _reads_bound(node: ast.AST, name: str) -> Iterator[int]:
    """How often a name is read in loops that give it a value first."""
    if isinstance(node, ast.For) and (name in names_stored(node.target) or name in assigned_first(node.body, [name])):
        yield sum([names_read(statement)[name] for statement in node.body])
        yield from _reads_bound(node.iter, name)
    elif isinstance(node, (ast.comprehension, FunctionNode)) and name in _bound(node):
        return
    elif name in [stored for part in getattr(node, "generators", ()) for stored in names_stored(part.target)]:
        yield names_read(node)[name]
    else:
        for part in parts_of(node):
            yield from _reads_bound(part, name)


def _bound(node: Any) -> Collection[str]:
    """The variables of a function, or a part of a comprehension."""
    return [*names_stored(node.target)] if isinstance(node, ast.comprehension) else bound_in(node)[0]


def _looked_into(node: ast.AST) -> Iterator[str]:
    """The names of what an expression asks for its size."""
    for item in walk(node):
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name):
            yield item.value.id
        elif isinstance(item, ast.Call):
            yield from [arg.id for arg in item.args if isinstance(arg, ast.Name)]


def is_only_read(statement: ast.AST, names: Collection[str], kept: bool = False) -> bool:
    """Whether what these names stand for is computed with and looked up in, and nothing else; or, if it may be ``kept``, copied
    and appended, too."""
    every = [*walk(statement)]
    places = {part for item in every if isinstance(item, ast.Subscript) for part in walk(item.slice)}
    for node in every:
        looks_up = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        if looks_up or node in places or isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)) or _is_harmless(node):
            continue
        if kept and _keeps(node):
            continue
        if any([isinstance(part, ast.Name) and part.id in names for part in parts_of(node) if part not in places]):
            return False
    return True


def _keeps(node: ast.AST) -> bool:
    """Whether it leaves what is right in it as it is: a decision, a copy into an array, an attribute that changes nothing."""
    if isinstance(node, ast.Assign):
        return all([isinstance(target, ast.Subscript) for target in node.targets])
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and node.attr in LOOKED_UP
    return isinstance(node, (ast.BoolOp, ast.If, ast.IfExp, ast.AugAssign)) or is_append(node)


def _holds(node: ast.AST, part: ast.AST) -> bool:
    """Whether a part of a tree is, or is in, a node."""
    return any([item is part for item in walk(node)])


def _is_harmless(node: ast.AST) -> bool:
    """Whether a call changes no argument of its own."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in QUIET and not node.keywords
    own = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id in MODULES
    if not own or any([item.arg in CHANGING for item in node.keywords]):
        return False
    name: str = node.func.attr  # type: ignore[attr-defined]
    ufunc = getattr(np, name, None)
    if isinstance(ufunc, np.ufunc):
        return len(node.args) <= ufunc.nin  # which comes after them is what it writes into
    return name not in WRITERS and CHANGING.isdisjoint(_arguments(name)[: len(node.args)])


@functools.lru_cache(maxsize=256)
def _arguments(name: str) -> list[str | None]:
    """The names of what a function of NumPy's, or of ``math``, is given by place."""
    fun = getattr(np, name, None) or getattr(math, name, None)
    try:
        every = inspect.signature(fun).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):  # nobody says
        return ["", "", None]
    return [one.name for one in every if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def written_into(statement: ast.AST) -> Iterator[str]:
    """The names of what a statement changes in place, but for lists that it appends to; of a call by itself, all that
    it is given."""
    for item in walk(statement):
        if isinstance(item, (ast.Subscript, ast.Attribute)) and not isinstance(item.ctx, ast.Load):
            yield _root(item)
        elif isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name):
            yield item.target.id
        elif isinstance(item, ast.Call) and any([keyword.arg in ("out", None) for keyword in item.keywords]):
            yield ""
        elif isinstance(item, ast.Expr) and not isinstance(item.value, ast.Constant) and not is_append(item.value):
            yield from names_read(item)


def _grown(statement: ast.AST) -> Iterator[str]:
    """The names of lists to which a statement appends, or may."""
    for item in walk(statement):
        if is_append(item):
            yield from names_read(item.func.value)  # type: ignore[attr-defined]
        elif isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name):
            yield item.target.id


def _root(node: ast.AST) -> str:
    """The name that something is looked up from; empty where that is none."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_made(statement: ast.Assign, name: str) -> bool:
    """Whether a name gets what has no other one."""
    (target, *others), value = statement.targets, statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = [pair for pair in zip(target.elts, value.elts, strict=True) if name in names_stored(pair[0])]
        return not others and all([isinstance(part, ast.Name) and _is_new(made) for part, made in pairs])
    if isinstance(target, ast.Tuple) and _is_shape(value):
        return not others and all([isinstance(item, (ast.Name, ast.Tuple, ast.expr_context)) for item in walk(target)])
    return isinstance(target, ast.Name) and (not others or isinstance(value, ast.Constant)) and _is_new(value)


def _is_shape(value: ast.expr) -> bool:
    return isinstance(value, ast.Attribute) and value.attr == "shape"


def _is_new(value: ast.expr) -> bool:
    """Whether an expression makes an array or a number that nothing else holds."""
    if isinstance(value, ast.Call):
        number = isinstance(value.func, ast.Name) and value.func.id in _NUMBERS
        if not isinstance(value.func, ast.Attribute):
            return number
        numpys = isinstance(value.func.value, ast.Name) and value.func.value.id in MODULES
        if numpys and isinstance(getattr(np, value.func.attr, None), np.ufunc):
            return _is_harmless(value)
        copied_whole = value.func.attr == "copy" and not value.args and not value.keywords
        return copied_whole or (numpys and value.func.attr in _FRESH | _OF_NUMPYS)
    if isinstance(value, ast.Subscript):
        return _is_shape(value.value) and isinstance(value.slice, (ast.Constant, ast.UnaryOp))
    listed = any([isinstance(part, _DISPLAYS) for part in walk(value)])  # [x] * 2
    return isinstance(value, (ast.Constant, ast.BinOp, ast.UnaryOp)) and not listed


def is_counted(loop: ast.For) -> bool:
    """Whether a loop runs over a range whose ends are plain."""
    return is_range(loop.iter) and isinstance(loop.target, ast.Name) and not loop.orelse and all(map(is_plain, loop.iter.args))


def is_plain(node: ast.expr) -> bool:
    """Whether an expression is made of names, numbers and sizes alone."""
    if isinstance(node, ast.Call):
        named = isinstance(node.func, ast.Name) and node.func.id in SIZES and not node.keywords
        return named and all(map(is_plain, node.args))
    if isinstance(node, ast.Subscript):
        return _is_shape(node.value) and isinstance(node.value.value, ast.Name) and is_plain(node.slice)  # type: ignore[attr-defined]
    if isinstance(node, ast.Attribute):
        return node.attr == "size" and isinstance(node.value, ast.Name)
    divides = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow))
    if divides and not (isinstance(node.right, ast.Constant) and node.right.value):  # type: ignore[attr-defined]
        return False  # it may raise, and not before its turn
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp)):
        return all([is_plain(part) for part in parts_of(node) if isinstance(part, ast.expr)])
    return isinstance(node, (ast.Name, ast.Constant))


def breaks(statements: Sequence[ast.AST]) -> bool:
    """Whether a ``break`` among statements leaves the loop that they are the body of."""
    for item in statements:
        inner = item.orelse if isinstance(item, (ast.For, ast.While)) else parts_of(item)
        if isinstance(item, ast.Break) or breaks(inner):
            return True
    return False


def are_looked_up(ends: Sequence[ast.expr], name: str) -> bool:
    """Whether the ends of a range are looked up by a ``name``."""
    every = [item for end in ends for item in walk(end)]
    kinds = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Tuple, ast.BinOp, ast.Add, ast.Sub, ast.Load)
    known = all([isinstance(item, kinds) for item in every])
    owners = [item.value for item in every if isinstance(item, (ast.Subscript, ast.Attribute))]
    if not known or not all([isinstance(part, (ast.Name, ast.Attribute, ast.Load)) for one in owners for part in walk(one)]):
        return False  # an item of an item is not what all of them have
    return any([names_read(item.slice)[name] for item in every if isinstance(item, ast.Subscript)])


class Put(ast.NodeTransformer):
    """Expressions in the place of names."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copied(self.values.get(node.id, node))  # type: ignore[no-any-return]
