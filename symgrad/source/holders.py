"""Lists that other functions fill belong to an object, as lists that objects hold are known to loops.

``losses = []``, ``def note(x): losses.append(x)`` runs as ``holder = ...``, ``holder.losses = []``,
``def note(x): holder.losses.append(x)``: whoever asks for the list is seen, wherever the loop runs that calls ``note``.
So it is with ``fit(losses.append)``. And of a list in ``fit(x, losses)``, a function that appends to its parameter gets an
object that has it, to which it is *lent*.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

from symgrad.source.constants import bound_anywhere
from symgrad.source.exits import way_out
from symgrad.source.lists import METHODS, may_be_users
from symgrad.source.syntax import (
    LOCAL_READERS,
    SCOPES,
    FunctionNode,
    assigned,
    blocks_of,
    fresh,
    given,
    is_append,
    is_append_of,
    is_default,
    is_plain_call,
    mentioned,
    names_read,
    names_stored,
    paired,
    parts_of,
    placed,
    walk,
)

HOLDER = "__symgrad_holder__"  # what makes such an object


Taken = Callable[[FunctionType], tuple[Collection[str], Collection[str]]]  # what ``taken_by`` tells of a function


def held(
    function: FunctionNode, space: Mapping[str, Any], taken: Taken, lent: Collection[tuple[str, str]] = ()
) -> FunctionNode:
    """The function, changed in place, as are those in it. ``space``: what there is outside of it; ``lent``: parameters that are
    holders, and the names there."""
    every = [part for part in walk(function) if isinstance(part, ast.FunctionDef)]
    if lent:
        reader = _Held({name: (name, there) for name, there in lent})
        function.body = [reader.visit(statement) for statement in function.body]  # type: ignore[union-attr]
    for one in every:
        if mentioned(one).isdisjoint(LOCAL_READERS):
            _hold(one, space, taken)
    return function


def _hold(function: ast.FunctionDef, space: Mapping[str, Any], taken: Taken) -> None:
    is_alone = _alone(function, False)
    made = dict.fromkeys([name for name in _made(function) if is_alone(name)])
    if not made:
        return
    wanted = _appended_within(function) | _handed_on(function, space, taken) | _by_keys(function)
    known = [name for name in made if name in wanted]
    if known:
        holder = fresh("holder", mentioned(function) | bound_anywhere(function))
        reader = _Held({name: (holder, name) for name in known})
        function.body = [reader.visit(statement) for statement in function.body]
        one = assigned(holder, ast.Call(ast.Name(HOLDER, ast.Load()), [], []), function.body[0])
        function.body.insert(ast.get_docstring(function, clean=False) is not None, one)


def _by_keys(function: ast.FunctionDef) -> set[str]:
    """The names of dicts to whose lists a function appends, where it makes them as it meets the keys."""
    every = [*walk(function)]
    defaults: list[Any] = [part.func.value for part in every if is_append(part, ast.Call)]  # type: ignore[attr-defined]
    found = {getattr(one.func.value, "id", "") for one in defaults if is_default(one)}
    appended: list[Any] = [part.func.value.value for part in every if is_append(part, ast.Subscript)]  # type: ignore[attr-defined]
    tests = [part for part in every if isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.In, ast.NotIn))]
    asked = {getattr(part.comparators[0], "id", "") for part in tests}
    return found | {getattr(one, "id", "") for one in appended} & asked


def _handed_on(function: ast.FunctionDef, space: Mapping[str, Any], taken: Taken) -> set[str]:
    """The lists that a function hands to others which fill them, or may do so, or their ``append``; and those that others read,
    to which some iterations append nothing."""
    every = [*walk(function)]
    own, some = [{part.func.value.id for part in parts if is_append(part)} for parts in (every, _sometimes(function.body))]  # type: ignore[attr-defined]
    inner = bound_anywhere(function)
    found = set[str]()
    for call in every:
        if isinstance(call, ast.Call) and is_plain_call(call):
            found |= {name for name, fills in _handed(call, inner, space, taken) if fills or name not in own or name in some}
            found |= {getattr(value.value, "id", "") for value in given(call) if is_append_of(value)}  # type: ignore[attr-defined]
    return found


def _sometimes(statements: Sequence[ast.stmt], within: bool = False, maybe: bool = False) -> Iterator[ast.AST]:
    """What is in loops that may end early, or in ``if``s in loops."""
    for statement in statements:
        loop = isinstance(statement, (ast.For, ast.While))
        early = isinstance(statement, ast.While) or (isinstance(statement, ast.For) and way_out(statement) is not None)
        if within and (maybe or early or isinstance(statement, ast.If)):
            yield from walk(statement)
            continue
        for block in blocks_of(statement):
            yield from _sometimes(block, within or loop, maybe or early)


def _handed(call: ast.Call, inner: Collection[str], space: Mapping[str, Any], taken: Taken) -> Iterator[tuple[str, bool]]:
    """The names that a call hands to the user's functions, and whether these fill what they stand for."""
    fun: Any = call.func
    known = space.get(fun.id) if isinstance(fun, ast.Name) and fun.id not in inner else None
    if isinstance(known, FunctionType):
        alone, filled = taken(known)
        for value, parameter in _arguments(call, known):
            if isinstance(value, ast.Name) and parameter in alone:
                yield value.id, parameter in filled
    elif isinstance(fun, ast.Attribute) and fun.attr not in METHODS and may_be_users(fun, (), inner, space):
        yield from [(value.id, False) for value in given(call) if isinstance(value, ast.Name)]


def _arguments(call: ast.Call, fun: FunctionType) -> Iterator[tuple[ast.expr, str]]:
    """What a call of a function gives it, and the names of the parameters, but for those that go into ``*args``."""
    code = fun.__code__
    yield from zip(call.args, code.co_varnames[: code.co_argcount], strict=False)
    yield from [(word.value, word.arg) for word in call.keywords if word.arg is not None]


def taken_by(function: FunctionNode, space: Mapping[str, Any], taken: Taken) -> tuple[frozenset[str], frozenset[str]]:
    """The parameters of a function that always stand for the same, which holders may be; and those to which it appends, or
    functions in it, or others that it hands them to."""
    if not isinstance(function, ast.FunctionDef) or not mentioned(function).isdisjoint(LOCAL_READERS):
        return _NONE
    every = [*walk(function)]
    if any([isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await)) for part in every]):
        return _NONE
    group = function.args
    names = [part.arg for part in (*group.posonlyargs, *group.args, *group.kwonlyargs)]
    is_alone = _alone(function, True)
    alone = frozenset([name for name in names if is_alone(name)])
    filled = _appended(every)
    inner = bound_anywhere(function) - {*names}
    for part in every:
        if isinstance(part, ast.Call) and is_plain_call(part):
            filled |= {name for name, fills in _handed(part, inner, space, taken) if fills}
    return alone, alone & filled


_NONE = frozenset[str](), frozenset[str]()


def _appended_within(function: ast.FunctionDef) -> set[str]:
    """The names of the lists, or of dicts with such, to which functions in it append."""
    inner = [part for part in walk(function) if isinstance(part, SCOPES) and part is not function]
    return _appended([part for one in inner for part in walk(one)])


def _appended(parts: Sequence[Any]) -> set[str]:
    """The names of what these append to: lists, or dicts of such."""
    owners = [part.func.value for part in parts if is_append(part, (ast.Name, ast.Subscript, ast.Call))]
    owners = [owner.func if is_default(owner) else owner for owner in owners]
    return {getattr(owner if isinstance(owner, ast.Name) else getattr(owner, "value", None), "id", "") for owner in owners}


def _made(function: ast.FunctionDef) -> list[str]:
    """The names of the lists, and of dicts of lists, that a function makes by statements of its own, before it reads them."""
    found, seen = [], set[str]()
    for statement in function.body:
        alone = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        seen |= names_read(statement).keys()
        for target, value in paired(statement.targets[0], statement.value) if alone else ():  # type: ignore[attr-defined]
            if isinstance(target, ast.Name) and target.id not in seen and _is_list(value):
                found.append(target.id)
        seen |= {part.id for part in walk(statement) if isinstance(part, ast.Name)}
    return found


def _is_list(value: ast.expr) -> bool:
    if isinstance(value, ast.Dict):
        return None not in value.keys and all(map(_is_list, value.values))
    return isinstance(value, ast.List)


def _alone(function: ast.FunctionDef, parameters: bool) -> Callable[[str], bool]:
    """What tells whether one statement binds a name, in all of a function; or none, for ``parameters`` of its own."""
    every = [*walk(function)]
    stored = Counter(names_stored(function))
    most = 0 if parameters else 1
    others = set[str]()
    own = {*map(id, parts_of(function.args))} if parameters else set[int]()
    for part in every:
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            others.update(part.names)
        elif isinstance(part, ast.arg):
            others |= {part.arg} if id(part) not in own else set()
        elif not isinstance(part, ast.Name):
            others |= {
                getattr(part, "name", None) or "",
                getattr(part, "rest", None) or "",
                getattr(part, "asname", None) or "",
            }
    classes = any([isinstance(part, ast.ClassDef) for part in every])
    return lambda name: not classes and stored[name] <= most and name not in others


class _Held(ast.NodeTransformer):
    """Reads lists from where they are held, by their names: the holder's, and theirs there."""

    def __init__(self, names: Mapping[str, tuple[str, str]]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            return node
        holder, name = self.names[node.id]
        return placed(ast.Attribute(placed(ast.Name(holder, ast.Load()), node), name, node.ctx), node)
