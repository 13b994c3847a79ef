"""The graph: immutable nodes in SSA form, interned, in an order in which arguments come first.

A ``Node`` is one operation on other nodes. Its ``aval`` says what the value is like (shape, dtype, kind); values
themselves live elsewhere. A ``Graph`` interns: asking twice for the same operation gives the same node, so common
subexpressions are shared by construction, and two traces of one function share what they have in common.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
import textwrap
from collections import Counter
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

import numpy as np


class Aval(NamedTuple):
    """What is known of a value before it is there.

    ``kind`` is ``"array"`` (an ndarray, 0-d too), ``"scalar"`` (a NumPy one), or ``"python"`` (a Python number, whose
    dtype gives way in promotion).
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    kind: str

    @property
    def nbytes(self) -> int:
        """The size of an array, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        name = name_of(self.dtype)
        if self.kind == "python":
            return _PYTHON_NAMES.get(self.dtype.kind, name)
        return f"{name}[{', '.join(map(str, self.shape))}]" if self.kind == "array" else name


@functools.cache
def name_of(dtype: np.dtype[Any]) -> str:
    """``dtype.name``, which takes NumPy a while."""
    return dtype.name


class Sequence(NamedTuple):
    """What is known of a Python list that a loop fills, one ``element`` an iteration, or of a ``range``."""

    element: Any

    def __str__(self) -> str:
        return f"list of {shown(self.element)}"


_PYTHON_NAMES = {"f": "float", "i": "int", "b": "bool", "c": "complex"}
_PYTHON: tuple[type, ...] = (float, int, bool, complex)
_SCALARS: tuple[type, ...] = (np.float64, np.float32, np.int64, np.complex128, np.bool_)
_AVALS = {kind: Aval((), np.dtype(kind), "python") for kind in _PYTHON}
_AVALS |= {kind: Aval((), np.dtype(kind), "scalar") for kind in _SCALARS}


def content_of(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """What arrays have in common that hold the same, of one shape and dtype."""
    return array.shape, array.dtype, array.tobytes()


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array that the function makes anew at every call, as a constant: nobody else holds this copy, nor can write to it."""
    copy = array.copy("K")
    copy.flags.writeable = False
    return copy


def aval_of(value: Any) -> Any:
    """The ``Aval`` of a number or an array; a tuple of them for a tuple of values."""
    kind = type(value)
    if kind is np.ndarray:
        return Aval(value.shape, value.dtype, "array")
    if kind in _AVALS:
        return _AVALS[kind]
    if isinstance(value, tuple):
        return tuple(aval_of(item) for item in value)
    if isinstance(value, list):
        return Sequence(aval_of(value[0]) if value else None)
    if kind is range:
        return Sequence(_AVALS[int])
    return Aval((), value.dtype, "scalar") if isinstance(value, np.generic) else Aval(value.shape, value.dtype, "array")


def is_inexact(aval: Any) -> bool:
    """Whether derivatives can flow through a value of this kind: floating point or complex, or a tuple with one."""
    if isinstance(aval, Aval):
        return aval.dtype.kind in "fc"
    return aval is not None and any(is_inexact(item) for item in aval)


def is_inexact_leaf(leaf: Any) -> bool:
    """Whether a leaf of a tree is a floating point or complex number, or an array of such."""
    return isinstance(leaf, (float, complex)) or (isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "fc")


class Node:
    """One operation: ``op(*args, **dict(params))``, of abstract value ``aval``. Compared by identity.

    ``active`` says whether it depends on an input, ``differentiated`` whether it depends on what a derivative is taken by,
    in a way that derivatives flow through; ``flows`` are the positions of the arguments that they come from.
    ``name``, ``line`` and ``phase`` are notes for the reader of generated code: the user's variable, ``(file, line)``,
    and which pass wrote it; the first trace that knows them sets them.
    """

    __slots__ = (
        "active", "args", "aval", "differentiated", "exact", "flows", "index", "line", "name", "op", "params", "phase",
    )  # fmt: skip

    def __init__(
        self,
        op: Any,
        args: tuple[Node, ...],
        params: tuple[tuple[str, Any], ...],
        aval: Any,
        index: int = -1,
        active: bool = False,
    ) -> None:
        self.op, self.args, self.params, self.aval = op, args, params, aval
        self.index = index
        self.flows: tuple[int, ...] = ()
        for arg in args:
            if arg.active:
                active = True
                if arg.differentiated:
                    self.flows = op.flows(args, params) if is_inexact(aval) else ()
                    break
        self.active: bool = active or op.anew
        self.differentiated: bool = self.flows != ()
        self.name: str | None = None
        self.line: tuple[str, int] | None = None
        self.phase: str | None = None
        self.exact = False  # whether a decision hangs on it, so that it must be computed to the last bit as the user wrote it

    def __repr__(self) -> str:
        args = [f"%{arg.index}" for arg in self.args]
        args += [f"{key}={value!r}" for key, value in self.params]
        return f"%{self.index}: {shown(self.aval)} = {self.op.name}({', '.join(args)})"


def shown(aval: Any) -> str:
    """What is known of a value, for people."""
    return str(aval) if isinstance(aval, (Aval, Sequence)) or aval is None else "(" + ", ".join(map(shown, aval)) + ")"


class Leaf(NamedTuple):
    """The operation of a node without arguments: an input, a constant, or a captured array."""

    name: str
    anew: bool = False

    def contents(self) -> str:
        return ""


INPUT = Leaf("input")
CONST = Leaf("const")
CAPTURED = Leaf("captured")
COMPARED = 100_000  # items of a plain array whose content is compared with that of others


class Graph:
    """Interned nodes in the order in which they were first met, arguments before users."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.ops: set[Any] = set()  # of all of them
        self.single = False  # whether a value is of less than double precision, which a Python number would take on
        self.arrays: dict[Node, np.ndarray[Any, Any]] = {}
        self._table: dict[Any, Node] = {}
        self._captured: dict[int, Node] = {}
        self.former: list[np.ndarray[Any, Any]] = []  # captured once, and still known by their ids
        self.alike: dict[Any, list[Node]] = {}  # captured arrays that programs took from traces, by what equal ones share
        self.next_index = 0  # what the next new node gets
        self.numbers: dict[Any, Any] = {}  # of values by the way they are made, as ``symmetry.py`` has asked for them

    def __len__(self) -> int:
        return len(self.nodes)

    def find(self, op: Any, args: tuple[Node, ...], params: tuple[tuple[str, Any], ...]) -> Node | None:
        """The node that is this operation already, if there is one."""
        return self._table.get((op, args, params))

    def add(
        self, op: Any, args: tuple[Node, ...], params: tuple[tuple[str, Any], ...], aval: Any, new: Node | None = None
    ) -> Node:
        """The node of this operation: the one that exists, else a new one; ``new``, where that was made already."""
        key = (op, args, params)
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = self._append(new or Node(op, args, params, aval))
            return node
        if node.aval is aval or node.aval == aval:
            return node
        node = self._table.get((op, args, params, aval))  # its shape depends on values, and another run had others
        return self.place(new or Node(op, args, params, aval), aval) if node is None else node

    def place(self, node: Node, *more: Any) -> Node:
        """Take in a node that is new: ``find`` has not found its operation. ``more`` tells it apart from others of that."""
        self._append(node)
        self._table[node.op, node.args, node.params, *more] = node
        return node

    def _append(self, node: Node) -> Node:
        node.index = self.next_index
        self.next_index += 1
        self.nodes.append(node)
        self.ops.add(node.op)
        if type(node.aval) is Aval and node.aval.dtype.char in "efF":
            self.single = True
        return node

    def input(self, position: Any, aval: Aval) -> Node:
        """The input that ``position`` names: its number among the arguments, or where it is read from."""
        node = self.add(INPUT, (), (("position", position),), aval)
        node.active = True
        return node

    def stand_in(self, node: Node) -> Node:
        """An input for a node of another graph, and for no other one, whatever inputs are copied from there."""
        new = self.input(("for", node), node.aval)
        new.name = node.name
        return new

    def const(self, value: Any) -> Node:
        """A number known when code is generated. ``1``, ``1.0``, ``True``, ``0.0`` and ``-0.0`` are five constants."""
        key = (CONST, type(value), repr(value))
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = self._append(Node(CONST, (), (("value", value),), aval_of(value)))
        return node

    def captured(self, array: np.ndarray[Any, Any]) -> Node:
        """An array that the function did not get as an argument; passed by reference, never copied."""
        node = self.holder(array)
        if node is None:
            node = Node(CAPTURED, (), (("number", len(self.arrays)),), aval_of(array))
            self._captured[id(array)] = self._append(node)
            self.arrays[node] = array  # keeps it alive, so that its id stays its own
        return node

    def holder(self, array: np.ndarray[Any, Any]) -> Node | None:
        """The node of a captured array, if it is one."""
        return self._captured.get(id(array))

    def recapture(self, node: Node, array: np.ndarray[Any, Any]) -> None:
        """Hold another array of equal content in place of the one that was captured, whose id may become another array's."""
        del self._captured[id(self.arrays[node])]
        self.arrays[node], self._captured[id(array)] = array, node

    def sweep(self, start: int, *notes: dict[Node, Any], held: Iterable[Node] = ()) -> None:
        """Drop the nodes from position ``start`` on that nothing but this graph and ``notes`` holds, and what holds those, each
        as often as there, that are ``held``, and goes on without this graph."""
        tail = self.nodes[start:]
        del self.nodes[start:]
        kept = []
        others = self._holds(held)
        while tail:
            node = tail.pop()
            # its holders: this name, getrefcount's own, the table, and notes
            holders = 3 + sum([node in each for each in notes]) + (others[node] + 1 if node in others else 0)
            if node.op in (INPUT, CONST, CAPTURED) or sys.getrefcount(node) > holders:
                kept.append(node)
            else:
                for each in notes:
                    each.pop(node, None)
                self._discard(node)
                if node in others:
                    others.update(node.args)
        self.nodes += reversed(kept)

    def _holds(self, held: Iterable[Node]) -> Counter[Node]:
        """How often these nodes, and those that are gone and that they need, hold each node."""
        found = Counter(held)
        waiting = [node for node in found if not self._has(node)]
        while waiting:
            for arg in waiting.pop().args:
                if arg not in found and not self._has(arg):
                    waiting.append(arg)
                found[arg] += 1
        return found

    def _has(self, node: Node) -> bool:
        key: tuple[Any, ...] = (node.op, node.args, node.params)
        return self._table.get(key) is node or self._table.get((*key, node.aval)) is node

    def _discard(self, node: Node) -> None:
        key: tuple[Any, ...] = (node.op, node.args, node.params)
        del self._table[key if self._table.get(key) is node else (*key, node.aval)]

    def needed(self, outputs: Iterable[Node]) -> list[Node]:
        """``ancestors`` of most of its nodes, found in one walk from its end."""
        waiting, found = set(outputs), []
        for node in reversed(self.nodes):
            if node in waiting:
                found.append(node)
                waiting.update(node.args)
        return found[::-1]

    def dump(self, outputs: Iterable[Node] | None = None) -> str:
        """One line a node, under loops those of an iteration; with ``outputs``, only the nodes that they need."""
        nodes = self.nodes if outputs is None else ancestors(outputs)
        return "\n".join(repr(node) + textwrap.indent(node.op.contents(), "    ") for node in nodes)

    def verify(self) -> None:
        """Raise ``AssertionError`` unless arguments precede users, nodes are unique, and avals are well formed."""
        seen: set[Node] = set()
        keys = set()
        last = -1
        for node in self.nodes:
            assert node.index > last, f"{node!r} stands after %{last}"
            last = node.index
            assert all(arg in seen for arg in node.args), f"{node!r} comes before an argument"
            assert node.active or not any(arg.active for arg in node.args), f"{node!r} lost its activity"
            key = (node.op, node.args, tuple((k, repr(v), type(v)) for k, v in node.params), node.aval)
            assert key not in keys, f"{node!r} is there twice"
            _verify_aval(node.aval)
            keys.add(key)
            seen.add(node)


def _verify_aval(aval: Any) -> None:
    if not isinstance(aval, Aval):
        for item in aval or ():
            _verify_aval(item)
        return
    assert aval.kind in ("array", "scalar", "python"), aval
    assert aval.kind == "array" or aval.shape == (), aval


def size_of(node: Node) -> int:
    """The bytes of an array; 0 for anything else."""
    return node.aval.nbytes if isinstance(node.aval, Aval) else 0


def ancestors(outputs: Iterable[Node], floor: int = 0, known: Container[Node] = ()) -> list[Node]:
    """The nodes that ``outputs`` need, themselves included, in order.

    None with an index below ``floor``, and none that is ``known``, as all are that such a one needs.
    """
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node not in seen and node.index >= floor and node not in known:
            seen.add(node)
            stack += node.args
    return sorted(seen, key=by_index)


by_index = operator.attrgetter("index")  # the order in which nodes were made
