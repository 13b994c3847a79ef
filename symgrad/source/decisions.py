"""Which loops may decide on something in an iteration, and what else may change there, as far as the code of what they call
tells.

Loops decide that have ``if``s or tests in them, or call a function of the user's that has. It is a guess, from what the names
stand for when the function is first traced, and only about what is faster: short lists of numbers are worth a table in such
loops, whose iterations then are one code, and numbers in objects that change there are traced from the beginning.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
from collections.abc import Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from symgrad.source.constants import bound_anywhere, constant, space_of
from symgrad.source.origins import is_users, is_users_class, names_in
from symgrad.source.syntax import FunctionNode, in_class, walk

DEEPEST = 3  # calls within calls that are looked at
_LOOPS = (ast.For, ast.While)
_IFS = (ast.If, ast.IfExp)


def decided(node: FunctionNode, fun: FunctionType, owner: str | None) -> FunctionNode:
    """The node of ``fun``, a method of the class ``owner``, whose loops know whether they decide (``decides``), and whether
    what they call puts something into containers (``fills``), or into which attributes (``attributes``); names outside of it
    that stand for an int are marked as ``whole``."""
    space = space_of(fun)
    inner = {part.name: part for part in walk(node) if isinstance(part, ast.FunctionDef)}
    kind = space.get(owner) if owner else None

    def called(call: ast.Call) -> list[Any]:
        name = call.func
        if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "self":
            method = getattr(kind, in_class(name.attr, owner), None)
            return [method] if method is not None else own_calls
        if isinstance(name, ast.Name) and name.id in bound:
            return [inner[name.id]] if name.id in inner else own_calls
        known = found(name)
        if known is None and isinstance(name, ast.Attribute):  # of an object that is not there yet
            return [inspect.getattr_static(item, name.attr, None) for item in kinds]
        return [known]

    def found(name: ast.expr) -> Any:
        """What an expression stands for that calls nothing: ``f``, ``module.f``, ``Class.f`` or ``TABLE["f"]``."""
        if isinstance(name, ast.Name):
            return None if name.id in bound else space.get(name.id)
        if isinstance(name, ast.Attribute):
            whole = found(name.value)
            return None if whole is None else inspect.getattr_static(whole, name.attr, None)
        if isinstance(name, ast.Subscript) and isinstance(name.slice, ast.Constant):
            whole, key = found(name.value), name.slice.value
            if type(whole) is dict:
                return whole.get(key)
            return whole[key] if type(whole) in (list, tuple) and type(key) is int and key < len(whole) else None
        return None

    bound = bound_anywhere(node)
    kinds = [item for item in space.values() if isinstance(item, type) and is_users_class(item)]
    own_calls = [inspect.getattr_static(item, "__call__", None) for item in kinds]  # of objects that are not there yet
    for name in walk(node):
        if isinstance(name, (ast.Name, ast.Attribute)):
            name.whole = type(constant(name, space, bound)) in (int, bool)  # type: ignore[union-attr]
    for loop in walk(node):
        if isinstance(loop, _LOOPS):
            every = [item for part in walk(loop) if isinstance(part, ast.Call) for item in called(part)]
            nodes = [loop, *[item for item in every if isinstance(item, ast.FunctionDef)]]
            done = _all([_done_by(item) for item in every])
            ifs = any([_is_decision(part) for item in nodes for part in walk(item)])
            loop.decides = ifs or done.decides  # type: ignore[union-attr]
            loop.fills = done.fills  # type: ignore[union-attr]
            loop.attributes = tuple(sorted(done.attributes))  # type: ignore[union-attr]
    return node


def _is_decision(node: ast.AST) -> bool:
    return isinstance(node, _IFS) or (isinstance(node, ast.While) and not isinstance(node.test, ast.Constant))


def changing(kind: type) -> tuple[str, ...]:
    """The attributes that methods of a class of the user's put something into, if they decide on anything."""
    methods = [item for base in kind.__mro__ for name, item in vars(base).items() if name != "__init__" and is_users(item)]
    done = _all([_done_by(method) for method in methods])
    return tuple(sorted(done.attributes)) if done.decides else ()


class Done(NamedTuple):
    """Of some code: whether it decides on anything, whether it puts something into containers, and into which attributes."""

    decides: bool = False
    fills: bool = False
    attributes: frozenset[str] = frozenset()


def _all(parts: Sequence[Done]) -> Done:
    attributes = frozenset().union(*[part.attributes for part in parts])
    return Done(any([part.decides for part in parts]), any([part.fills for part in parts]), attributes)


def _done_by(fun: Any, depth: int = 0) -> Done:
    """What a function of the user's does, with those that it calls by name."""
    fun = fun.__func__ if isinstance(fun, (staticmethod, classmethod, MethodType)) else fun
    if not isinstance(fun, FunctionType) or not is_users(fun) or depth > DEEPEST:
        return Done()
    space = space_of(fun)
    return _all([_done_in(fun.__code__), *[_done_by(space.get(name), depth + 1) for name in names_in(fun.__code__)]])


@functools.lru_cache(maxsize=4096)  # decoding takes longer than tracing
def _done_in(code: CodeType) -> Done:
    steps = [*dis.get_instructions(code)]
    own = Done(
        any(["IF_TRUE" in step.opname or "IF_FALSE" in step.opname for step in steps]),
        any([step.opname == "STORE_SUBSCR" for step in steps]),
        frozenset([step.argval for step in steps if step.opname == "STORE_ATTR"]),
    )
    return _all([own, *[_done_in(item) for item in code.co_consts if isinstance(item, CodeType)]])
