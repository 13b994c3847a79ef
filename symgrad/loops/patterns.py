"""What iterations of a loop have in common: what is there between them, and the pattern that they follow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node, aval_of
from symgrad.ops.engine import IDENTITY, INDEX
from symgrad.tracing.tracer import Tracer

Key = tuple[Any, ...]
# where an argument comes from: ("step", i), ("carry", key), ("index",), ("same", node), ("value", node), ("anew", node)
Part = tuple[Any, ...]
LEAVES = (INPUT, INDEX, CONST, CAPTURED)  # what is no operation of an iteration
INT = aval_of(0)  # what is known of an index
BOOL = aval_of(False)
OUTSIDE = ""  # the name of no local: the first part of the keys of what iterations put somewhere outside
WHOLE = "[:]"  # the last part of the key of the array beside a list that iterations append to: see symgrad.loops.appended
TAKEN = "[?]"  # of the mask of a list of some items
MANY = "[#]"  # of how many these are, where iterations ask
TEST: Key = ("while",)  # whether a loop goes on
EXIT: Key = ("if",)  # whether the ``if`` that leaves it does so
COUNTER: Key = ("for",)  # how often a loop has gone round
UNSEEN: Key = ("else",)  # whether an iteration went a way that no call has gone
STOP: Key = ("in",)  # where the range ends that a loop runs over, if that is traced
OF_LOOPS = frozenset([TEST, EXIT, COUNTER, UNSEEN, STOP])  # which are no locals
EXACT = 1 << 53  # up to which floats stand for ints
TRACED = ("traced",)  # what is noted of a local that holds a traced value


class Own(tuple[str, ...]):
    """The names that a loop has for itself; ``over`` are those that nobody reads when it is over, which are more."""

    over: frozenset[str]

    def __new__(cls, names: Iterable[str], others: Iterable[str]) -> Own:
        own = super().__new__(cls, names)
        own.over = frozenset((*own, *others))
        return own


class Names(NamedTuple):
    """Locals of the function around a loop: those that the loop assigns and nothing else reads; all that it may assign; those
    that an iteration assigns before it reads them; those that it has nothing to do with."""

    private: frozenset[str]
    stored: frozenset[str]
    targets: frozenset[str]
    apart: frozenset[str]

    @property
    def unread(self) -> frozenset[str]:
        """Those of which nobody reads what an iteration has left there."""
        return self.private & self.targets


class Boundary(NamedTuple):
    """What is there between two iterations: the lengths of graph and notes, what the locals hold, and the loop's index.

    ``holds`` are the traced values in the locals, by where they are; ``rest`` is all else, of each local, comparable;
    ``shared`` tells which list, dict or object is where. ``joins`` are what is there where ways through the iteration that
    begins here meet again, by statement; ``turned`` are the iterations of loops within it that have begun, and the calls that
    led there: which place in the code a join is at. ``leapt``: between the one before and this, iterations were not traced.
    """

    length: int
    guards: int
    peeks: int
    writes: int
    met: int
    holds: dict[Key, Tracer]
    nodes: dict[Key, Node]
    rest: dict[str, Any]
    containers: set[int]
    shared: dict[Key, int]
    at: Node | None
    joins: dict[Any, Join]
    turned: list[Any]
    leapt: bool = False

    def part(self, part: Part, made: Sequence[Node]) -> Node | None:
        """What a part is in the iteration that begins here, whose steps have ``made`` these."""
        kind, what = part
        return (
            made[what] if kind == "step" else self.nodes.get(what) if kind == "carry" else self.at if kind == "index" else what
        )

    def every(self) -> list[Boundary]:
        """This one, and where ways through the iteration meet again."""
        return [self, *[join.bound for join in self.joins.values()]]

    def without(self, names: Collection[str]) -> Boundary:
        """The same, as if nothing was in these locals."""
        return self._replace(
            holds={key: tracer for key, tracer in self.holds.items() if key[0] not in names},
            nodes={key: node for key, node in self.nodes.items() if key[0] not in names},
            rest={name: what for name, what in self.rest.items() if name not in names},
            shared={key: ident for key, ident in self.shared.items() if key[0] not in names},
        )

    def once(self, twins: Mapping[Key, Key], other: Callable[[Key], bool]) -> Boundary:
        """The same, but that what has two names is noted of one: ``twins`` tells which ``other`` one it has."""
        names: dict[str, Any] = {}
        for twin, first in twins.items():
            names.setdefault(twin[0], []).append((twin, first))
        return self._replace(
            holds={key: tracer for key, tracer in self.holds.items() if not other(key)},
            nodes={key: node for key, node in self.nodes.items() if not other(key)},
            rest={name: (what, names[name]) if name in names else what for name, what in self.rest.items()},
            shared={key: ident for key, ident in self.shared.items() if not other(key)},
            joins={site: join._replace(bound=join.bound.once(twins, other)) for site, join in self.joins.items()},
        )

    def bare(self) -> Boundary:
        """Of what lies between iterations that are alike, nothing is asked again."""
        return self._replace(length=-1, holds={}, nodes={}, rest={}, containers=set(), shared={}, at=None, joins={})


def iterations(bounds: Sequence[Boundary]) -> list[tuple[Boundary, Boundary]]:
    """The boundaries of each iteration that was traced."""
    return [(b, c) for b, c in itertools.pairwise(bounds) if not c.leapt]


def noted(
    nodes: Mapping[Key, Node], others: Iterable[Collection[Node]], parts: Iterable[Part], seen: set[int]
) -> Iterator[Node]:
    """The nodes that these notes hold, each as often as they do, but for notes that were ``seen`` (ids), as all are then."""
    for note in (nodes, *others):
        if id(note) not in seen:
            seen.add(id(note))
            yield from nodes.values() if note is nodes else note  # type: ignore[misc]
    for part in parts:
        if id(part) not in seen:
            seen.add(id(part))
            yield part[1]


class Join(NamedTuple):
    """What is there where ways through an iteration meet again, the names that nobody reads any more, and those that this
    iteration does not, before it assigns them."""

    bound: Boundary
    dead: frozenset[str]
    unused: frozenset[str]


class Pattern(NamedTuple):
    """What iterations have in common: ``(op, params, aval, parts)`` of each operation; what each local becomes."""

    steps: list[tuple[Any, Any, Any, tuple[Part, ...]]]
    after: dict[Key, Part]
    originals: list[Any]  # of one iteration, for their names and lines
    there: int = 0  # how many of the first steps the iteration before has done already

    def parts(self) -> list[Part]:
        """Where all comes from that an iteration reads, and leaves behind."""
        return [part for step in self.steps for part in step[3]] + [*self.after.values()]


class Note:
    """What the reader of generated code may know of a node that is gone; nothing where there was none."""

    __slots__ = ("line", "name", "phase")

    def __init__(self, node: Any = None) -> None:
        self.name, self.line, self.phase = [getattr(node, note, None) for note in ("name", "line", "phase")]


def same_params(node: Node, params: Any) -> bool:
    """Whether an operation is the same; what a derivative inside a loop is taken by has a name of its own each time."""
    return node.params == params or node.op is IDENTITY


def same_number(a: Node, b: Node) -> bool:
    return a.op is INDEX and b.op is INDEX and number_name(a) == number_name(b)


def number_name(node: Node) -> Any:
    """What tells a number that is known beforehand from others."""
    value = dict(node.params)["value"]
    return "value", type(value), repr(value)


def joined(key: Key) -> str:
    """``("state", 0)`` as ``state_0``."""
    name = "_".join(map(str, key))
    return name if key[0] != OUTSIDE else re.sub(r"\W+", "_", name).strip("_")


def number_of(node: Node, aval: Any) -> Any:
    """A number that is known beforehand, of the kind ``aval``; None for anything else, and where that is another value."""
    if node.op not in (INDEX, CONST) or not isinstance(aval, Aval) or aval.kind == "array" or aval.dtype.kind not in "bfc":
        return None
    value = dict(node.params)["value"]
    if aval.dtype.kind == "b" and node.aval.dtype != aval.dtype:
        return None
    made = aval.dtype.type(value)
    if made != value:
        return None
    return made.item() if aval.kind == "python" else made
