"""Where values outside a function are found again at a later call (``Path``), and what must be found there (``Check``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from symgrad.equal import is_exact, is_same
from symgrad.source.origins import is_library_module


class Argument(NamedTuple):
    """The root of a path that starts at the ``position``-th leaf of a call: an argument, or the function itself.

    The latter is the last leaf, and has its ``name``: another function of the same code may take its place.
    """

    position: int
    name: str = ""


CLOSURE = ("attr", "__closure__")


def named(space: dict[str, Any], name: str) -> Any:
    """What a name stands for in a module with these globals."""
    if name in space:
        return space[name]
    own = space["__builtins__"]
    return (vars(own) if isinstance(own, ModuleType) else own)[name]


@dataclass(frozen=True)
class Free:
    """A variable from around the function itself, by its place."""

    place: int


class Path:
    """Where a value was found: steps from an object, or from an argument.

    Steps are ``("item", key)``, ``("attr", name)``, ``("cell", name)``, ``("default", (place, name))``, ``("call", args)``,
    ``("name", name)`` (what a name stands for in a module of these globals, also one of Python's own); and the questions
    ``("has", name)`` (an attribute), ``("in", key)``, ``("one", path)`` (the object at another path) and ``("true", None)``,
    which find a bool. What is put at a place may go to ``("append", None)``.
    """

    __slots__ = ("_hash", "root", "steps")

    def __init__(self, root: Any, steps: tuple[tuple[str, Any], ...]) -> None:
        self.root, self.steps = root, steps
        self._hash = hash((root if isinstance(root, Argument) else id(root), steps))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path) or self.steps != other.steps:
            return False
        return self.root is other.root or (isinstance(self.root, Argument) and self.root == other.root)

    def then(self, kind: str, key: Any) -> Path:
        """One step further."""
        return Path(self.root, (*self.steps, (kind, key)))

    def upto(self, end: int) -> Path:
        """The path to where it leads on the way."""
        return Path(self.root, self.steps[:end])

    def find(self, leaves: Sequence[Any]) -> Any:
        """What is there now, in a call with these arguments; raises where there is nothing."""
        value = leaves[self.root.position] if isinstance(self.root, Argument) else self.root
        for kind, key in self.steps:
            if kind == "attr":
                value = getattr(value, key)
            elif kind == "cell":
                value = value.cell_contents
            elif kind == "item":
                if isinstance(value, dict) and key not in value:  # of those with defaults, to look is to put
                    raise KeyError(key)
                value = value[key]
            elif kind == "default":
                value = value[key[0]]
            elif kind == "call":
                value = value(*key)
            elif kind == "name":
                value = named(value, key)
            elif kind == "has":
                value = hasattr(value, key)
            elif kind == "one":
                value = value is key.find(leaves)
            else:
                value = bool(value) if kind == "true" else key in value
        return value

    def prefixes(self) -> list[Path]:
        """The paths that lead here, from the root's to this one."""
        return [Path(self.root, self.steps[:i]) for i in range(len(self.steps) + 1)]

    def namespace(self) -> dict[str, Any] | None:
        """The globals of a module, if the path leads to one of them."""
        if len(self.steps) != 1:
            return None
        ((kind, key),) = self.steps
        space: Any = vars(self.root) if kind == "attr" and type(self.root) is ModuleType else self.root
        if kind not in ("attr", "item", "name") or type(key) is not str:
            return None
        if type(space) is not dict or "__builtins__" not in space:
            return None
        plain = key.isascii() and key.isidentifier() and not iskeyword(key) and key[0] != "_"
        return space if plain and (key in space or kind == "name") else None

    def text(self, shown: Callable[[Path], str], leaves: Sequence[str], bind: Callable[[Any], str]) -> str:
        """The same as an expression; ``shown`` gives that of a shorter path, ``bind`` gives an object a name.

        The name of a cell is that of the variable in it.
        """
        if not self.steps:
            return leaves[self.root.position] if isinstance(self.root, Argument) else bind(self.root)
        kind, key = self.steps[-1]
        if kind == "cell" and (variable := self.variable()) is not None:
            return bind(variable)
        if kind == "one":
            return f"({shown(self.upto(-1))} is {shown(key)})"
        name = repr(key) if type(key) in (int, str) else bind(key)
        if kind == "attr" and len(self.steps) == 1 and type(self.root) is ModuleType and key in vars(self.root):
            return f"{bind(vars(self.root))}[{name}]"  # in half the time: NumPy's module has a ``__getattr__``
        text = shown(Path(self.root, self.steps[:-1]))
        if kind == "name":
            return f"{bind(named)}({text}, {name})"
        if kind == "has":
            return f"hasattr({text}, {name})"
        if kind == "true":
            return f"(not not {text})"
        if kind == "in":
            return f"({name} in {text})"
        if kind == "default":
            return f"{text}[{key[0]}]"
        return text + {"attr": f".{key}", "cell": ".cell_contents", "item": f"[{name}]", "call": f"(*{name})"}[kind]

    def variable(self) -> Any:
        """The cell that the path leads into, where code can have it as a variable of its own; else None.

        That of the function itself is said by its place among the function's.
        """
        where = self.steps[:-1]
        if not where:
            return self.root
        own = type(self.root) is Argument and self.root.position < 0 and len(where) == 2 and where[0] == CLOSURE
        return Free(where[1][1]) if own else None

    def __repr__(self) -> str:
        root = self.root
        shown = f"{root.__name__}" if isinstance(root, (FunctionType, type, ModuleType)) else ""
        if isinstance(root, Argument):
            shown = root.name
        for kind, key in self.steps:
            if kind == "attr":
                shown += f".{key}"
            elif kind == "cell":
                shown = key
            elif kind == "item":
                shown += f"[{key!r}]" if shown or not isinstance(key, str) else key
            elif kind == "default":
                shown += f"[{key[0]}]"
            elif kind == "call":
                shown += f"({', '.join(map(repr, key))})"
            elif kind == "name":
                shown = key
            elif kind == "has":
                shown = f"hasattr({shown}, {key!r})"
            elif kind == "append":
                shown += ".append"
            elif kind == "one":
                shown = f"({shown} is {key!r})"
            else:
                shown = f"bool({shown})" if kind == "true" else f"{key!r} in {shown}"
        return shown.lstrip(".") or "self"


class Check(NamedTuple):
    """A guard: what was found at a path. ``kind`` says how that is compared.

    ``is``; ``eq`` (and of the same type); ``type``; ``len``; ``keys``, or members, in order; ``array`` (content); ``same``: it
    is the very object that another path leads to.
    """

    kind: str
    expected: Any
    line: str

    def holds(self, value: Any) -> bool:
        """Whether it holds of what is at the path now; not for ``same``, which takes another path."""
        kind, expected = self.kind, self.expected
        if kind == "is":
            return value is expected
        if kind == "type":
            return type(value) is expected
        if kind == "len":
            return bool(len(value) == expected)
        if kind == "keys":
            return is_same(tuple(value), expected)
        if kind == "array":
            return same_value(value, expected)
        return is_same(value, expected)

    def text(self, found: str, shown: Callable[[Path], str], bind: Callable[[Any], str]) -> str:
        """The same as a condition on the expression ``found``."""
        kind, expected = self.kind, self.expected
        if kind == "is":
            return f"{found} is {repr(expected) if type(expected) in (bool, type(None)) else bind(expected)}"
        if kind == "same":
            return f"{found} is {shown(expected)}"
        if kind == "type":
            return f"type({found}) is {bind(expected)}"
        if kind == "len":
            return f"len({found}) == {expected}"
        if kind == "keys":
            text = all([type(item) is str for item in expected])
            return f"tuple({found}) == {bind(expected)}" if text else f"{bind(is_same)}(tuple({found}), {bind(expected)})"
        if kind == "array":
            return f"{bind(same_value)}({found}, {bind(expected)})"
        if not is_exact(expected) and type(expected) is not tuple:  # in which == tells how a derivative was made
            return f"{bind(is_same)}({found}, {bind(expected)})"
        return f"type(_found := {found}) is {bind(type(expected))} and _found == {bind(expected)}"

    def agrees(self, other: Check) -> bool:
        """Whether another trace found the same."""
        a, b = self.expected, other.expected
        if self.kind in ("is", "type"):
            return a is b
        if self.kind == "array":
            return same_value(a, b)
        return is_same(a, b)


def describe(path: Path, check: Check) -> str | None:
    """A guard in words, with the line that looked; ``None`` for what nobody asks: code objects, libraries, builtins."""
    kind, expected = check.kind, check.expected
    step = path.steps[-1] if path.steps else ("", "")
    if isinstance(expected, CodeType) or step == ("attr", "__globals__") or path.steps[-2:-1] == (CLOSURE,):
        return None  # of functions that are made anew
    if (isinstance(expected, ModuleType) and is_library_module(expected)) or step[0] == "name":
        return None
    if step[0] == "attr" and isinstance(path.root, ModuleType) and is_library_module(path.root):
        return None
    if step[0] == "in" and (step[1] == "__dict__" or path.steps[-2:-1] == (("attr", "__dict__"),) or len(path.steps) == 1):
        return None  # no name in a module or an object hides what is read
    if step[0] in ("in", "has", "one", "true"):
        text = f"{path!r} is {expected}"
    elif kind == "same":
        text = f"{path!r} is {expected!r}"
    elif kind == "array":
        text = f"{path!r} has the same content"
    else:
        signs = {"is": "is", "eq": "==", "len": "has length", "type": "is a", "keys": "has keys"}
        shown = getattr(expected, "__qualname__", None) if kind in ("is", "type") else None
        text = f"{path!r} {signs[kind]} {shown or repr(expected):.60}"
    return f"{text} ({os.path.basename(check.line)})"


def same_value(a: Any, b: Any) -> bool:
    """Whether a value read again is the one that was read before."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (np.ndarray, np.void)):
        return bool(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())
    return bool(a == b) or bool(a != a and b != b)
