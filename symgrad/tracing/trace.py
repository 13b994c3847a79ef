"""The trace: records the NumPy calls of a real call into a graph, beside their real values.

A ``Trace`` is one run of a user's function, in which a ``Tracer`` stands for each of its values. Where Python looks at a value
(``if``, ``int``, ``range``) the trace notes a *guard*: the node and what was seen. A ``Tape`` is a run that no code is made
of. ``tracing`` makes either the one that runs now.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import operator
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from traceback import walk_tb
from types import FrameType, SimpleNamespace, TracebackType
from typing import Any, NamedTuple
from weakref import ReferenceType, WeakSet, WeakValueDictionary, ref

import numpy as np

from symgrad.errors import LeavesNumPy, MutatedInput, NotDifferentiable, SymgradError
from symgrad.ir import CAPTURED, COMPARED, CONST, INPUT, Aval, Graph, Node, ancestors, aval_of, by_index, content_of, is_inexact
from symgrad.ops import create, index
from symgrad.ops.abstract import like_result, stand_in
from symgrad.ops.core import REGISTRY, Op, as_numpy, dtype_of
from symgrad.ops.engine import IDENTITY, INDEX, ITEM, LAYOUT, TO_ARRAY, TO_PYTHON, WITHIN, is_of_math
from symgrad.ops.spans import Span, span_of
from symgrad.runtime import add_at
from symgrad.source.origins import is_users_class
from symgrad.tracing import mixed, protocols
from symgrad.tracing.frames import line_of, raised_at, target, through_scipy, user_frame, user_line, where
from symgrad.tracing.kinds import has_slots_alone
from symgrad.tracing.mixed import Mixed, Otherwise
from symgrad.tracing.selections import MANY, Selections
from symgrad.tracing.tracer import (
    ACTIVE,
    EINSUM,
    NUMBERS,
    WHOLE,
    Peek,
    Run,
    Tracer,
    active_trace,
    escaped,
    look_at_size,
    places_in,
    plain,
    slides,
)

__all__ = ["Guard", "Tape", "Trace", "activated", "active_trace", "followed", "running", "tracing"]


_INT = aval_of(0)
_EMPTY = aval_of([])  # what a loop that runs no iteration saves
NAMES = "names"  # among what is ``apart``: numbers have no other names in loops, for the function asks which are one
# among what is ``apart``: how often a loop runs hangs on the index of one around it, and the sizes of slices do, in code, too
TURNING, SLIDING = "turning", "sliding"
LAID = "laid"  # loops in which arrays lie by columns stay as they are, for what is a view of these hangs on that
TURN = 16  # arrays whose rows may come in turn
LONG = 4_000  # nodes of a trace from which on code that has loops in loops is worth that it is slower: see ``turns``

_BOOL = aval_of(False)
GONE = object()  # in place of what a trace noted a write to, and nobody can see any more


class Varied(NamedTuple):
    """Among what is ``apart``: how often the loop over a range in this line runs hangs on arguments, in code, too."""

    line: Any


class Stated(NamedTuple):
    """Among what is ``apart``: iterations of the loop in this line leave now this text in the local of this name, now that, or
    now what is at one of these ``places`` when it begins, now what is at another."""

    line: tuple[str, int]
    name: str
    places: frozenset[tuple[Any, ...]] = frozenset()


class Named(NamedTuple):
    """Among what is ``apart``: somebody can tell whether a name that is given at this ``place``, in a loop, is of an array of
    its own."""

    place: str


class Guard(NamedTuple):
    """Python looked at ``node``, saw ``value``, and went on accordingly; ``line`` is where. ``loop``: as the test of a loop.

    ``unseen``: whether a loop went a way that no call has gone; ``fixed``: in a loop that has such ways, where no iteration
    changes it. In a ``vmap`` the shapes of a result may have been looked at: then ``value`` is None.
    """

    node: Node
    value: Any
    line: tuple[str, int] | None
    loop: bool = False
    unseen: bool = False
    fixed: bool = False


class Carried(NamedTuple):
    """A ``copy`` of a container, which has the attributes that ``original`` has ``beside`` its items; where that is found in
    other calls, None if that is not known; and whether its items are ``other`` ones, by which a derivative is taken, or those
    of one element of a batch."""

    copy: Any
    original: Any
    beside: dict[str, Any]
    place: Any
    other: bool


class Trace:
    """One run of a function being traced, for code to be made of it: derivative passes record nodes, too.

    ``values`` holds the concrete values of the nodes of this run. Large ones are computed when somebody looks at them, if
    it is ``lazy``: nobody does as a rule, and code that is made of all of them computes them faster, in far less memory. What a
    large array was before a write is let go of.
    """

    symbolic = True
    draft: Any = None  # the run itself, where it is one of plain arrays: see symgrad.tracing.drafts

    def __init__(self) -> None:
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.likes: dict[Node, Any] = {}  # of what is computed later: see ``Tracer``
        self.ends: dict[Node, Node] = {}  # of what loops carry in the end: what takes the same from an array that they filled
        self.mixed: dict[
            Node, Mixed
        ] = {}  # numbers that Python has as its own where some way was taken: see symgrad.tracing.mixed
        self.coarse = False  # whether some of these may be ints, or flags
        self.asking: set[Any] = set()  # loops in whose iterations it was asked whether a number is Python's or NumPy's
        self.passing = False  # whether what this call did tells nothing of others that decide alike
        self.lazy = False
        self.errors: Any = None  # what NumPy did about infinities and the like when it began
        self.guards: list[Guard] = []
        self.open = True
        self.thread = get_ident()
        self.depth = 0  # how many functions are being differentiated
        self.left = False  # whether the user's function has returned
        self.lean = False  # whether values are let go of that the last derivative pass needs no more
        self.line: tuple[str, int] | None = None
        self.impure: str | None = None
        self.given: dict[int, tuple[Any, Any]] = {}  # containers that were made of those among the arguments, and these
        self.originals: set[int] = set()  # the latter
        self.carried: dict[int, Carried] = {}  # those of them that may have attributes beside their items
        self.singly = False  # whether a vmap had to run its function for each element of the batch
        self.hooks: Any = None  # what sees the user's function read from outside: a State
        self.drafts: Any = None  # the run of the arrays that the function makes and fills itself
        self.taken: list[tuple[ReferenceType[Tracer], Run]] = []  # drafts that were taken in, and the run that each came from
        self.trying = 0  # how many ``try`` statements with handlers it is in
        self.required: list[Node] = []
        self.phase: str | None = None
        self.double_where = True  # whether what was not selected stays out of derivatives (see transform.lanes)
        self.leaves_out = False  # whether masks stand for ``if``s of loops, and may leave out what is infinite or NaN
        self.masked = False  # whether derivatives have masks in them: of what these hide, no warning is raised
        self.unmasked: dict[Node, tuple[Node, bool]] = {}  # of masked results, what is the same where it is finite: see Program
        self.user = False  # whether the user's function runs now, rather than a pass of symgrad's own
        self.tokens = 0
        self._loops = 0
        self._copies: dict[Any, tuple[Any, Any, Node]] = {}  # of plain arrays, by where they lie
        self._tables: dict[Any, Any] = {}  # that loops run over, by content
        self._contents: dict[Any, Node] = {}  # what the first draft of each content became
        self.ints: dict[Node, int] = {}  # that Python has seen before any loop that runs
        self.settled: dict[Node, Node] = {}  # the numbers that those are from then on
        self.outside: dict[int, tuple[Tracer, Any]] = {}  # Tracers of arrays from outside that the function writes to, by id
        self.quiet = False  # nobody will read the names of what is recorded: it goes round in a loop
        self.peeks: list[Peek] = []  # what Python looked at that hangs on no argument: it may change in the course of a loop
        self.known_ways: Mapping[Any, Any] = {}  # through loops, of earlier calls
        self.ways: dict[Any, Any] = {}  # and of this one
        self.plainly = 0  # how many solvers evaluate functions of plain numbers, one in another
        self.written_out = 0  # how many functions are being written out, one in another: see symgrad.transform.solver
        self.patterns: dict[Any, Any] = {}  # what ways through loops became: see symgrad.loops.again
        self.told: dict[int, Any] = {}  # those of which it is known what they hold, by identity
        self.held_apart = Counter[Node]()  # how often they hold each node
        self.counted: set[int] = set()  # the notes of theirs (ids) that are counted
        self.recalled = False  # whether it took in what earlier calls did
        self.understood: set[Any] = set()  # lines in which loops decide that are rolled up, or come to be so
        self.laid = False  # whether arrays lay by columns in loops with one way for all, of this call or an earlier one
        # whether ways meet outside of loops, too, and in loops that decide in these lines: see symgrad.source.sections
        self.sections: frozenset[tuple[str, int]] | None = None
        self.owners: list[tuple[Any, Any]] = []  # objects that have lists with two ends: see symgrad.loops.stacks
        self.tables = True  # whether lists that loops fill may be arrays: see symgrad.loops.tables
        self.vectorizes = True  # whether loops are done for all iterations at once, where they can be
        self.looks = 0  # at items of lists, between iterations
        self.untidy = False  # whether loops have been rolled up since an iteration around them began
        self.apart: set[Any] = set()  # loops whose ways must not be one (see ``Tracer.parted``), or with more ``Room``
        self.copied: set[Any] = set()  # those that left copies where there was one array
        self.moving: dict[Any, set[Any]] = {}  # numbers in containers that iterations of a loop change, by loop
        # the ends of ranges that hang on arguments, by the loops' lines: of this call, and of earlier ones
        self.ranges: dict[Any, set[tuple[int, ...]]] = {}
        self.known_ranges: Mapping[Any, set[tuple[int, ...]]] = {}
        # texts that go round loops as numbers, in this order, by place
        self.states: dict[str, tuple[dict[Any, int], Iterator[int]]] = {}
        self.leaps = True  # whether long loops may leap
        self.leaping: set[int] = set()  # loops that other calls may run more often, of which iterations were not traced
        self.watched = False  # whether in-place writes matter: there is a loop that another call may run more often
        self.met: list[int] = []  # indices of nodes, of operations that were there when they were asked for again
        self.writes: list[Any] = []  # objects of the function's own that it changed
        self.decides = math.inf  # how many guards there may be before the iteration that runs now has decided on something
        self.loans: list[tuple[str, Any, Any]] = []  # of drafts taken in whose memory others hold: the line, it, a copy
        self.unfit = "float"  # the class of Python's that the last operand is like that no operator takes
        self.lent = False  # whether NumPy has asked a Tracer for a plain array
        self.refusal: SymgradError | None = None  # of what the plain function may do
        self.lanes = 0  # how many vmaps it is in: in them a value stands for many, and what Python sees of it is noted
        self.directions = 1  # in how many the function that runs is differentiated
        self.one_by_one = False  # whether a vmap runs its function for each element
        self.shaped = False  # whether NumPy made views or copies, as arrays lie in memory
        self.matrices: list[Node] = []  # arguments whose layout no other call need have yet
        self.rows: list[Node] = []  # and those of one axis, for what asks for strides
        self.gaps = False  # whether an argument has gaps in memory
        self.remarks: dict[str, None] = {}  # what is slower than one might think, in order
        self.exemplary = False  # whether its values are but some of their kinds, as in the body of an ``if`` that need not run
        self.ruled = False  # whether rules of the user's took part in it, which may read what changes
        self.around: dict[Node, tuple[Tracer, Tracer]] = {}  # what those read in the trace around it, and the inputs here
        self.texts: set[str] = set()  # of values that a derivative follows
        self.spans = False  # whether slices, and loops, may be as long as the index of a loop says: see ``turns``
        self.selects = False  # whether what masks select is computed for all that they select from
        self.selections: Selections | None = None
        self.whole: Trace | None = None  # itself for pullbacks, which goes on when this one lets go of what it recorded

    @functools.cached_property
    def rollers(self) -> WeakSet[Any]:
        """Of the loops that run, and of such as were left."""
        return WeakSet()

    @functools.cached_property
    def of_floats(self) -> WeakValueDictionary[int, Tracer]:
        """Arrays, by identity, that are made of floats for sure."""
        return WeakValueDictionary()

    @functools.cached_property
    def _counts(self) -> WeakValueDictionary[Any, Any]:
        """How many places windows have, of an iteration."""
        return WeakValueDictionary()

    def input(self, position: Any, value: Any) -> Tracer:
        """A traced argument."""
        node = self.graph.input(position, aval_of(value))
        self.values[node] = value
        tracer = Tracer(self, node, value, frozen=True)
        if type(value) is np.ndarray and value.ndim:
            (self.matrices if value.ndim > 1 else self.rows).append(node)
            self.gaps |= not value.flags.forc
        return tracer

    def around_it(self, x: Tracer) -> Tracer:
        """A value of the trace around this one, which is of a loop's body: an input, the same in all iterations."""
        if x.tape is self:
            return x
        if x.node not in self.around:
            self.around[x.node] = x, self.input(("around", len(self.around)), x.value)
        return self.around[x.node][1]

    def lookup(self, node: Node) -> Tracer:
        """The Tracer of a node of this run."""
        if node in self.values:
            return Tracer(self, node, self.values[node])
        if node not in self.likes and (type(node.aval) is not Aval or self._is_cheap(node)):
            return Tracer(self, node, self.computed(node))
        return Tracer(self, node, self.likes[node] if node in self.likes else stand_in(node.aval), later=True)

    def _is_cheap(self, node: Node) -> bool:
        """Whether a value that was let go of takes little time to be computed again."""
        return node.aval.nbytes < _BIG and all([arg in self.values for arg in node.args])

    def computed(self, node: Node) -> Any:
        """The value of a node: one that was let go of is computed again."""
        if node not in self.values:
            self.compute(self.missing([node]), [node], {})
        return self.values[node]

    def outlined(self, node: Node) -> Any:
        """The value of a node, or where it was let go of a stand-in, for who asks for its shape and dtype alone."""
        return self.values[node] if node in self.values else stand_in(node.aval)

    def finish(self, nodes: Sequence[Node]) -> None:
        """Compute what is left of these at the end of the run, and let go of all that they need no more."""
        missing = self.missing(nodes)
        if not missing:
            return
        last = {arg: node for node in missing for arg in node.args}  # who reads a value last
        self.compute(missing, nodes, {arg: node for arg, node in last.items() if arg not in nodes})

    def compute(self, nodes: Sequence[Node], ends: Sequence[Node], last: Mapping[Node, Node]) -> None:
        """Compute nodes in order, for ``ends``; each of ``last`` is let go of after the node that reads it last."""
        silent = {*(("divide", "invalid") if self.masked else ()), *(self.hooks.silenced if self.hooks else ())}
        over = _written_over(nodes, ends)
        readers = {arg: i for i, node in enumerate(nodes) for arg in node.args}  # the last of each
        places = {node: i for i, node in enumerate(nodes)}
        with np.errstate(**dict.fromkeys(silent, "ignore")):  # type: ignore[arg-type]
            for i, node in enumerate(nodes):
                values, params = [self.values[arg] for arg in node.args], dict(node.params)
                made = None
                if node in over:
                    made = IN_PLACE[node.op](*values, **params)
                    del self.values[node.args[0]]
                elif node.op in IN_PLACE and readers[node.args[0]] == i and node.args[0] not in ends:
                    between = nodes[places.get(node.args[0], -1) + 1 : i]
                    made = self._written_over(node.op, node.args, values, params, between, 1)  # ``self.values``
                self.values[node] = _compute(node.op, values, params) if made is None else made
                for arg in node.args:
                    if last.get(arg) is node:
                        self.values.pop(arg, None)

    def missing(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes that must be computed for these, in order."""
        found: set[Node] = set()
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node not in self.values and node not in found:
                found.add(node)
                stack += node.args
        return sorted(found, key=by_index)

    def _wrote(self, write: Node) -> None:
        """Let go of what a large array was before it was written into, if that may be."""
        if self._may_go(write.args[0], self._since(write.args[0])):
            del self.values[write.args[0]]

    def _since(self, node: Node) -> Sequence[Node]:
        """What was recorded after a node."""
        return self.graph.nodes[bisect.bisect(self.graph.nodes, node.index, key=by_index) :]

    def _written_by_user(self, op: Op, nodes: Sequence[Any], values: list[Any], params: dict[str, Any]) -> Any:
        """What a write of the user's function makes of a large array, written over if that may be; else None."""
        if op not in IN_PLACE or not self.user or nodes[0] is None or not _is_big(values[0]):
            return None
        since = self._since(nodes[0])
        return self._written_over(op, nodes, values, params, since, 2)  # ``self.values`` and the Tracer

    def _written_over(
        self, op: Op, nodes: Sequence[Any], values: list[Any], params: dict[str, Any], since: Sequence[Node], holders: int
    ) -> Any:
        """The same, where nodes ``since`` the array was made may have read it, and it has so many holders."""
        if not self._may_go(nodes[0], since):
            return None
        array, values[0] = values[0], None
        alone = array.base is None and sys.getrefcount(array) <= OF_A_LOCAL + holders
        values[0] = array
        if not alone:
            return None
        made = IN_PLACE[op](*values, **params)
        del self.values[nodes[0]]
        return made

    def _may_go(self, array: Node, since: Sequence[Node]) -> bool:
        """Whether what a large array was before a write may go: unless more than small parts were read of it ``since``.

        It is computed again, from what was written, for who asks for it. Parts are copied, as a view holds all of its array.
        """
        if array.op not in IN_PLACE or not _is_big(self.values.get(array)):
            return False
        parts: dict[Node, Any] = {array: None}
        for node in since:
            if isinstance(node.op, Op) and node.op.alias and node.args[0] in parts:
                parts[node] = self.values.get(node)
            elif array in node.args and node.op not in IN_PLACE:
                return False
        del parts[array]
        if 4 * sum([node.aval.nbytes for node in parts]) > array.aval.nbytes:
            return False
        self.values.update({node: part.copy("K") for node, part in parts.items() if type(part) is np.ndarray})
        return True

    def let_go(self) -> None:
        """Hold nothing any more of what was recorded: a run and its hooks, which refer to each other, are not freed at once."""
        self.graph, self.guards, self.peeks, self.required, self.writes = Graph(), [], [], [], []
        self.values, self.likes, self._copies, self._tables, self._contents, self.unmasked = {}, {}, {}, {}, {}, {}
        self.hooks = None

    def release(self, node: Node) -> None:
        """Let a value go that what is to come needs no more, unless what was left for later may need it."""
        if not self.likes:
            self.values.pop(node, None)

    def fresh(self, x: Tracer) -> Tracer:
        """``x`` behind an identity node of its own: what a (nested) derivative is taken with respect to."""
        result = self.lane(x)
        result.node.differentiated = True
        return result

    def lane(self, x: Tracer) -> Tracer:
        """``x``, one element of a batch, behind an identity node of its own: what stands for all elements of the batch."""
        self.tokens += 1
        result: Tracer = self.record(IDENTITY, (x,), {"token": self.tokens})
        result.node.active = result.frozen = True
        return result

    def remark(self, text: str) -> None:
        """For ``explain``: what is slower than one might think."""
        self.remarks[text] = None

    aval = staticmethod(aval_of)
    array_function = protocols.array_function
    array_ufunc = protocols.array_ufunc

    def recorded(self, wrt: Sequence[Node]) -> list[Node]:
        """The nodes between ``wrt`` and what came after, where that is known without a search."""
        return []

    def forget(self, start: int) -> None:
        """Drop the nodes from position ``start`` of the graph on that nothing can reach any more."""
        apart = self.ways.values() if TURNING in self.apart else ()  # what runs of loops told stands apart from this one
        for ways in itertools.chain.from_iterable(apart):
            if id(ways) not in self.told:
                self.told[id(ways)] = ways  # which is there for as long as what it holds is counted
                self.held_apart.update(ways.held(self.counted))
        self.graph.sweep(start, self.values, self.likes, self.mixed, self.ends, held=self.held_apart)
        self.untidy = True

    def add(self, op: Any, args: tuple[Node, ...], params: Any, aval: Any) -> Node:
        """The node of a loop or a part of its results, which somebody else computes."""
        if self.selections is not None:
            self.selections.need(args)
        before = self.graph.next_index
        node = self.graph.add(op, args, params, aval)
        if node.index < before:
            self.met.append(node.index)
        return node

    def unseen_writes(self, start: int, end: int, seen: set[int]) -> bool:
        """Whether one of these notes of writes is of an object that is not among ``seen`` (ids), and is still there."""
        self.weed(start, end)
        return any([owner is not GONE and id(owner) not in seen for owner in self.writes[start:end]])

    def weed(self, start: int, end: int) -> None:
        """Forget, of the notes of writes from ``start`` to ``end``, what only they hold: nobody will see that it changed."""
        notes = Counter(map(id, self.writes[start:end]))
        for i in range(start, end):
            # its holders: notes, this call's argument
            if _owns_all(self.writes[i]) and sys.getrefcount(self.writes[i]) <= notes[id(self.writes[i])] + 1:
                notes[id(self.writes[i])] -= 1
                self.writes[i] = GONE

    def index_before(self, length: int) -> int:
        """The index of the last node of a graph that was so long; -1 where it was empty."""
        return self.graph.nodes[length - 1].index if length > 0 else -1

    def next_loop(self) -> int:
        """A number for a loop statement that starts to run."""
        self._loops += 1
        self.quiet = False
        return self._loops

    def once(self, table: Any) -> Any:
        """A table that loops run over, which nobody changes: of those that are alike, the first."""
        table.flags.writeable = False
        return self._tables.setdefault((table.dtype.str, table.shape, table.strides, table.tobytes()), table)

    def fixed(self, table: Any) -> Tracer:
        """A table that nobody changes, as a value of this run."""
        return self.lookup(self.constant(self.once(table))[0])

    def constant_like(self, number: complex, aval: Aval) -> Tracer:
        """A traced constant of this kind, every element ``number``."""
        if aval.shape:
            return create.full(self, aval.shape, number, aval.dtype)  # type: ignore[no-any-return]
        value = aval.dtype.type(number)
        found = self.lookup(self.constant(value.item() if aval.kind == "python" else value)[0])
        return self.record(TO_ARRAY, (found,), {}) if aval.kind == "array" else found

    def constant(self, value: Any) -> tuple[Node, Any]:
        """The node of a plain value that met a traced one, and the value as it is now."""
        if isinstance(value, np.ndarray):
            return self._capture(value)
        if isinstance(value, (bool, int, float, complex, np.generic)):
            if isinstance(value, np.generic) and value.dtype.kind not in "fciubmM":
                raise NotDifferentiable(f"{where()}: a traced value met {value!r:.60}, which is no number")
            if type(value) not in NUMBERS and not isinstance(value, np.generic):
                value = _base_number(value)
            node = self.graph.const(value)
            self.values[node] = value
            return node, value
        if isinstance(value, (list, tuple)) and create.contains_traced(value):
            traced = self.gather(value)
            return traced.node, traced.value
        if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
            return self._capture(np.asarray(value))
        if hasattr(value, "__len__") and (array := np.asarray(value)).dtype.kind in "fciub":  # a range, a memoryview, ...
            return self._capture(array)
        raise NotDifferentiable(f"{where()}: a traced value met {type(value).__name__} {value!r:.60}, which is no number")

    def _capture(self, array: np.ndarray[Any, Any]) -> tuple[Node, Any]:
        if array.dtype == object:
            if all([type(item) in NUMBERS for item in array.flat]):  # as np.arange(n) makes them of a traced n
                return self._capture(np.array(array.tolist()))
            traced = self.stack(array)
            return traced.node, traced.value
        if array.dtype.kind not in "fciubmM":
            raise NotDifferentiable(f"{where()}: a traced value met an array of dtype {array.dtype}; make it one of numbers")
        if isinstance(array, (np.matrix, np.ma.MaskedArray)):  # their operators mean other things than an array's
            plain = _OF_MASKED if isinstance(array, np.ma.MaskedArray) else "np.asarray(m)"
            raise NotDifferentiable(f"{where()}: a traced value met a {type(array).__name__}; take a plain array: {plain}")
        place = _place(array)
        known = self._copies.get(place)
        if known is not None:
            _, copy, node = known
            if _identical(copy, array):
                return node, copy
            self.note("a plain array is changed in place while the function runs")
        copy = array.copy("K") if array.flags.writeable else array
        node = self.hold(array if known is None else copy)
        self._copies[place] = (array, copy, node)
        self.values[node] = copy
        return node, copy

    def hold(self, array: np.ndarray[Any, Any]) -> Node:
        """The node of a plain array."""
        return self.graph.captured(array)

    def note(self, reason: str) -> None:
        """What cannot be seen again by generated code happened: every call must be traced anew."""
        self.impure = self.impure or f"{where()}: {reason}"

    def text(self, words: str) -> str:
        """Text of a value that a derivative follows."""
        self.texts.add(words)
        return self.text_with(words)

    def plain_text(self, text: str) -> str:
        """A text in which those of such values are like those of plain ones."""
        for words in self.texts:
            text = str.replace(text, words, words.removeprefix("Traced(").removesuffix(")"))
        return text

    def as_written(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a method of this name is given: a file gets texts of plain values."""
        texts = self.texts and name == "write"
        return tuple([self.plain_text(arg) if isinstance(arg, str) else arg for arg in args]) if texts else args

    def text_with(self, words: str) -> str:
        """Text with that of such a value in it."""
        self.note("a traced value becomes text")
        return _Text(words)

    def refuse(self, error: SymgradError) -> SymgradError:
        """Remember an error that the plain function would not meet: code that catches it must not go another way."""
        self.refusal = self.refusal or error
        return error

    def told_apart(self, place: Any) -> None:
        """The function does what hangs on the names of the arrays that a loop at this ``place`` left; see ``Tracer.parted``."""
        self.apart.add(place)
        if place in self.copied:
            raise self.refuse(Otherwise(frozenset([place])))

    def names_matter(self) -> None:
        """The function asks which object an array is: loops that run stay as they are."""
        for roller in self.rollers:
            if roller.boundaries:
                self.told_apart(roller.place)

    def another(self, x: Tracer) -> Tracer:
        """A second name of an array: a view of all of it."""
        result = Tracer(self, x.node, x.like, later=x.later)
        result.show(x, index.GETITEM, (), {"spec": (Ellipsis,)})
        return result

    def alone(self, x: Tracer) -> Tracer:
        """An array of its own with what a view shows."""
        return Tracer(self, x.node, x.like if x.later else x.like.copy(), later=x.later)

    def stand_in(self, x: Tracer, place: Any) -> Tracer:
        """Such an array in place of another one: nobody may tell them apart, as the loop at this ``place`` hangs on that."""
        self.copied.add(place)
        result = self.alone(x)
        result.parted |= {place}
        return result

    def watch(self, value: Any, tracer: Tracer) -> None:
        """Remember an array from outside, as it was when it was read: it must not change while the function runs."""
        if isinstance(value, np.ndarray):
            self._copies[_place(value)] = (value, tracer.value, tracer.node)

    def look_again(self, x: Tracer) -> None:
        """An array from outside that the function writes to may have been changed by another name of its memory."""
        _, array = self.outside.get(id(x), (None, x.value))
        if not _identical(array, x.value):
            x.node, x.value = self.constant(array.copy("K"))
            x.version += 1

    def check_captured(self) -> None:
        """Note, at the end of the run, whether a captured array was changed while it ran."""
        for array, copy, _ in self._copies.values():
            if copy is not array and not _identical(copy, array):
                self.impure = "a plain array that the function reads is changed in place while it runs"

    def is_free(self, node: Node, held: Mapping[int, int]) -> bool:
        """Whether nobody but this trace holds a captured array, and those locals of a frame that ``held`` counts, by identity.

        It was made while the function ran, then, and nothing will change it that a trace would not see.
        """
        array, base = self.graph.arrays[node], self.graph.arrays[node].base
        if _place(array) not in self._copies:
            return False
        if base is not None and (type(base) is not np.ndarray or not is_held_so_often(base, 1, held.get(id(base), 0))):
            return False  # others have what it is a view of
        own = 2 if array.flags.writeable else 4  # of which there is no copy
        known = {id(one.arrays): one.arrays for every in self.ways.values() for one in every}  # what loops have read
        own += sum([met is array for arrays in known.values() for met in arrays.values()])
        return is_held_so_often(array, own, held.get(id(array), 0))

    def stack(self, array: np.ndarray[Any, Any]) -> Tracer:
        """The traced array that an object array of Tracers stands for."""
        items = list(array.ravel())
        for item in items:
            if type(item) is Tracer and item.base is not None:
                item.refresh()
        whole = _enumerates(items, array.shape)
        if whole is not None:
            return self.lookup(whole)
        if not any(type(item) is Tracer for item in items):
            raise NotDifferentiable(
                f"{where()}: a traced value met an array of dtype object, {_short(array)}; make it one of numbers"
            )
        if any(np.ndim(item) for item in items):
            raise NotDifferentiable(
                f"{where()}: a traced value met an object array that holds arrays; use a list of them, or np.stack"
            )
        if array.ndim == 0:
            return self.record(TO_ARRAY, items, {})  # type: ignore[no-any-return]
        if any([type(item) is int for item in items]):  # as np.zeros(n, object) has them, and its arithmetic lets them give way
            dtype = np.result_type(*{dtype_of(plain(item, like=True)) for item in items if type(item) is not int})
            items = [dtype.type(item) if type(item) is int and dtype.char in "efF" else item for item in items]
        return np.stack(items).reshape(array.shape)  # type: ignore[return-value]

    def gather(self, value: Any) -> Tracer:
        """The traced array that ``np.array`` would make of nested lists with Tracers in them."""
        if type(value) is Tracer:
            return self.admit(value)
        if isinstance(value, (list, tuple)) and create.contains_traced(value):
            whole = _enumerates(value, (len(value),))
            if whole is None or self._was_left(whole):
                beside = self._columns_of(value)
                return np.stack([self.gather(item) for item in beside or value], axis=int(beside is not None))  # type: ignore[return-value]
            return self.lookup(whole)
        if isinstance(value, (list, tuple)):
            value = np.array(value)
            value.flags.writeable = False  # nobody else has it
        return self.lookup(self.constant(value)[0])

    def _columns_of(self, rows: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """The columns of rows of numbers, of which one is an array; None if they are none."""
        if len(rows) < _FEW_ROWS or not all([type(row) in (list, tuple) for row in rows]) or len({*map(len, rows)}) > 1:
            return None
        columns = [*zip(*rows, strict=True)]
        arrays = [_enumerates(column, (len(rows),)) for column in columns]
        plain = [not any([type(item) is Tracer for item in column]) for column in columns]
        known = any([array is not None for array in arrays]) and all(
            [a is not None or b for a, b in zip(arrays, plain, strict=True)]
        )
        return columns if known and all([np.ndim(item) == 0 for column in columns for item in column]) else None

    def _was_left(self, array: Node) -> bool:
        """Whether an earlier iteration of a loop that runs has made an array, of which locals hold but the items: those go
        round, and it does not."""
        for roller in self.rollers:
            if roller.boundaries and array.index >= roller.start:
                last, nodes = roller.boundaries[-1], self.graph.nodes
                begin = nodes[last.length].index if last.length < len(nodes) else math.inf
                if array.index < begin and array not in last.nodes.values():
                    return True
        return False

    def admit(self, x: Tracer) -> Tracer:
        """Take in a draft, and what it is a view of: from here on it is a traced array. So is what a call in dynamic mode left
        behind, in a cache, and had no derivative."""
        if x.tape is self:
            return x
        left = not x.tape.draft
        if left:
            if x.tape.open or x.tape.symbolic or x.tape.lanes or x.node.differentiated:
                raise escaped(x)
            self.note("a traced value of another call is read")
        if x.base is not None:
            self.admit(x.base)
            x.refresh()
            return x
        value = x.value
        if left:
            self.taken.append((ref(x), x.tape))
            x.tape = self
            x.bind(self.lookup(self.constant(value)[0]))
            x.version += 1
            return x
        if any(loan() is not None for loan in x.lent or ()):
            value = value.copy("K")
            self.loans.append((where(), x.value, value))
        filled = self.filled(value)
        taken = self.lookup(self.constant(value)[0]) if filled is None else filled
        if filled is None and value.size <= COMPARED:
            self._contents.setdefault(content_of(value), taken.node)
        self.taken.append((ref(x), x.tape))
        x.tape = self
        x.bind(self.adopt(taken).laid_as(value))  # a 0-d array is no number
        x.version += 1  # views of it look again
        return x

    def filled(self, value: np.ndarray[Any, Any]) -> Tracer | None:
        """The traced array of one number that a plain array is; None where it is none."""
        first = value.flat[0] if value.size else 0.0
        same = np.array_equal(value, np.broadcast_to(first, value.shape)) and (first != 0 or not np.signbit(value.real).any())
        return self.constant_like(first, aval_of(value)) if same else None

    def taken_as(self, content: tuple[Any, ...]) -> Tracer | None:
        """The traced array that a draft of this content is if it is taken in; None where none has been that is not filled."""
        node = self._contents.get(content)
        if node is not None:
            return self.lookup(node)
        shape, dtype, data = content
        return self.filled(np.frombuffer(data, dtype).reshape(shape))

    def close(self) -> None:
        """The run is over. Drafts that it has only read are plain arrays again: the function may have kept them."""
        self.open = False
        for place, array, copy in self.loans:
            if not _identical(copy, array):
                self.refuse(
                    MutatedInput(
                        f"{place}: an array that meets a traced value here is changed later through its memory, by a "
                        "memoryview or what np.asarray made of it; change the array itself, or take those of a copy of it"
                    )
                )
        for reference, drafts in self.taken:
            x = reference()
            if x is not None and not x.node.active:
                x.tape = drafts
                if x.base is None:
                    x.value = x.value.copy("K") if type(x.value) is np.ndarray else x.value
                else:
                    op, rest, params = x.how
                    x.value = op.fun(x.base.value, *plain(list(rest)), **params)
        self.taken = []

    def adopt(self, value: Any) -> Tracer:
        """A plain or traced value, or nested lists of them, as a traced array."""
        traced = self.gather(value)
        return traced if isinstance(traced.like, np.ndarray) else self.record(TO_ARRAY, (traced,), {})

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run ``op`` on traced and plain values; its result, traced. A tuple result gives a tuple of Tracers."""
        if self.selections is not None:
            found = self.selections.met(op, args, params)
            if found is not None:
                return found
        if op in (_STACK, _CONCATENATE) and not params and len(args) > 7 and not self.lanes:
            parts, behind = _parts(args), op is _CONCATENATE
            turned = [node for part in parts if type(part) is _Turns for node in part.arrays]
            few = len(parts) <= len(args) // 8 and not any(map(self._was_left, turned))
            if few and not (behind and np.ndim(args[0]) > 1):
                rows = self.together(parts)
                return np.ravel(rows) if behind else rows
        return self.written(op, args, params)

    def together(self, parts: Sequence[Any]) -> Tracer:
        """The array whose rows all these are: arrays, and rows of arrays in turn."""
        arrays: list[Any] = []
        for part in parts:
            if type(part) is not _Turns:
                arrays.append(np.expand_dims(part, 0))
                continue
            slices: list[Any] = []
            for node, start in zip(part.arrays, part.starts, strict=True):
                whole, stop = self.lookup(node), start + part.often
                full = (start, stop) == (0, len(whole))
                slices.append(whole if full else index.GETITEM(whole, spec=(index.Slice(start, stop, None),)))
            if len(slices) > 1:
                shape = len(slices) * part.often, *slices[0].shape[1:]
                slices = [np.reshape(np.stack(slices, axis=1), shape)]
            arrays += slices
        return self.alone(arrays[0]) if len(arrays) == 1 else np.concatenate(arrays)  # type: ignore[return-value]

    @property
    def iterates(self) -> bool:
        """Whether what runs now is part of an iteration of a loop."""
        return any([roller.boundaries for roller in self.rollers])

    def innermost_loop(self) -> Any:
        """The watched loop whose iteration runs now; None if there is none."""
        running = [roller for roller in self.rollers if roller.boundaries]
        return max(running, key=lambda roller: roller.serial, default=None)

    def turns(self, *numbers: Any, within: Any = None, count: int | None = None) -> bool:
        """Whether what these ints tell, how long a slice is or how often a loop runs, is to hang on the index of a loop that
        runs (around the one ``within``), as code does that is a loop. ``count``: of a loop over a range, how often it runs now.

        As long as the trace is short, it is not: with such as they are, each iteration on its own, code is faster. Where it
        turns out to be long, or where iterations decide, ``Otherwise`` ends the run; so does a range of many in all.
        """
        nodes = [number.node for number in numbers if type(number) is Tracer]
        if not nodes or any([type(number) not in (Tracer, int) for number in numbers]):
            return False
        if any([node.aval not in (_INT, _BOOL) or (node.active and count is None) for node in nodes]):
            return False
        return self.turn(nodes, within, count)

    def turn(self, nodes: Sequence[Node], within: Any = None, count: int | None = None) -> bool:
        """The same of what hangs on no argument, be it an int or not."""
        asked = {TURNING} if count is not None else {TURNING, SLIDING}
        known = asked <= self.apart
        long = known or len(self.graph.nodes) > LONG or self.graph.next_index > 2 * LONG  # as short loops are rolled up
        if not self.spans or self.lanes or self.exemplary:
            return False
        running = [loop for loop in self._running(nodes) if loop is not within]
        told = any([node.active for node in nodes])
        often = any([loop.runs_often() if count is None else loop.ranges_often(count, told) for loop in running])
        if not running or not (long or often or any([loop.has_decided for loop in running])):
            return False
        if not known:
            if self.impure or self.hooks is None or self.hooks.impure or self.hooks.effects:
                return False  # what the function has done outside, it would do again
            raise self.refuse(Otherwise(frozenset(asked)))
        return True

    def varies(self, line: Any, *ends: Any) -> bool:
        """Whether code is to run the loop in a line over a range as often as arguments tell: other calls had other ``ends``."""
        nodes = [end.node for end in ends if type(end) is Tracer]
        if not any(map(self.is_open, nodes)) or not self.spans or self.lanes or self.exemplary:
            return False
        if Varied(line) in self.apart:
            return True
        numbers = tuple(map(plain, ends))
        self.ranges.setdefault(line, set()).add(numbers)
        again = not (self.impure or self.hooks is None or self.hooks.impure or self.hooks.effects)
        if again and numbers not in self.known_ranges.get(line, (numbers,)):
            raise self.refuse(Otherwise(frozenset([Varied(line)])))
        return False

    def goes_far(self, node: Node) -> bool:
        """Whether a number hangs on the index of a loop that runs and has many iterations."""
        return any([loop.is_far for loop in self._running([node])])

    def _running(self, nodes: Sequence[Node]) -> list[Any]:
        """The loops that run and on whose indices these hang."""
        indices = {loop_number(node) for node in ancestors(nodes) if node.op is INDEX}
        return [loop for loop in self.rollers if loop.boundaries and loop.serial in indices]

    def is_just_made(self, node: Node) -> bool:
        """Whether a node is of the iteration that runs, if one does, and nothing was decided there."""
        loop = self.innermost_loop()
        if loop is None:
            return True
        length, guards, _ = loop.met_last()
        return self._is_since(node, length) and bool(len(self.guards) == guards)

    def _is_since(self, node: Node, length: int) -> bool:
        """Whether a node was recorded since the graph had this length, as when an iteration began."""
        nodes = self.graph.nodes
        return length < len(nodes) and bool(node.index >= nodes[length].index)

    def window(self, x: Tracer, key: Any) -> Any:
        """``x[i - 2 : i + 1]`` in a loop that is likely to be rolled up: a view still, by places that hang on the index, which
        nobody looks at; ``x[k, i : i + 3, j : j + 3]`` is one of a row, and of that. None for other indices."""
        if type(key) is tuple and any([part is None for part in key]):
            found = self.window(x, tuple([part for part in key if part is not None]))
            left = [part for part in key if part is None or part is Ellipsis or type(part) is slice]
            return None if found is None else found[tuple([slice(None) if type(part) is slice else part for part in left])]
        parts, moving = self._moving(x, key)
        kept = [axis for axis, part in enumerate(parts) if type(part) is slice]
        if (len(moving) > 1 or len(kept) < len(parts)) and moving and not self._is_filled(x):
            if self._has_decided():
                return None
            x = x[tuple([slice(None) if axis in moving else part for axis, part in enumerate(parts)])]
            for axis in moving:
                x = x[(*[slice(None)] * kept.index(axis), parts[axis])]
            return x
        if (found := self._region(parts, moving)) is None:
            return None
        return self._view_at(x, *found)

    def _view_at(self, x: Tracer, spec: index.Spec, places: Sequence[Any]) -> Tracer:
        """What lies at places of an array, as a view, which NumPy has of slices alone."""
        params = {"spec": spec}
        view: Tracer = self.record(index.GETITEM, (x, *places), params)
        view.show(x, index.GETITEM, places, params)
        return view

    def growing(self, x: Tracer, key: Any) -> Any:
        """``x[k, :i]`` in a loop over ``i`` that is to be rolled up: a view still, of so many elements, which nobody counts.
        None for other indices."""
        grown = self.written_growing(x, key)
        if grown is None:
            return None
        row, mask = grown
        return self._view_at(row, WHOLE, (mask,))

    def slid(self, x: Tracer, key: Any) -> Any:
        """``x[i : i + 32]`` of numbers that other calls may have others of: a view still, by places that hang on them. How many
        there are, and that no end of the array is passed, are decisions where calls may differ. None for other indices."""
        parts = key if type(key) is tuple else (key,)
        moving = [axis for axis, part in enumerate(parts) if not _stays(part)]
        if len(moving) != 1 or len(parts) > np.ndim(x.like) or self.iterates or self.lanes or not self.symbolic:
            return None
        (axis,) = moving
        (start, stop, step), size = (parts[axis].start, parts[axis].stop, parts[axis].step), np.shape(x.like)[axis]
        if step not in (None, 1) or any([end.node.aval != _INT or not end.node.active for end in (start, stop)]):
            return None
        if self._linear(start.node)[:2] != self._linear(stop.node)[:2]:
            if (found := self.ended(x, key)) is not None:
                return found
            look_at_size(self, stop - start)
        if start.value >= stop.value:
            return None
        last = self._span(stop.node)
        if not self.at_least_zero(start):
            return None
        if (last is None or last[1] > size) and not self._decided(_AT_LEAST, size - stop):
            return None
        start = self.record(WITHIN, (start, 0, size - (stop.value - start.value)), {})
        start.node.name = None  # the line names what is read there
        found = self._region((*parts[:axis], slice(start, stop), *parts[axis + 1 :]), moving)
        return None if found is None else self._view_at(x, *found)

    def ended(self, x: Tracer, key: Any) -> Any:
        """``x[:n]`` outside of loops, of numbers that other calls may have others of: a view still, of what a mask selects. How
        many these are is looked at where that matters. None for other indices."""
        parts = key if type(key) is tuple else (key,)
        moving = [axis for axis, part in enumerate(parts) if not _stays(part)]
        if len(moving) != 1 or len(parts) > np.ndim(x.like) or self.iterates or self.lanes or not (self.symbolic and self.user):
            return None
        (axis,) = moving
        part, size = parts[axis], np.shape(x.like)[axis]
        ends = [end for end in (part.start, part.stop) if type(end) is Tracer]
        simple = part.step in (None, 1) and all([type(one) is slice for one in parts[:axis]]) and self.innermost_loop() is None
        if not simple or size > MANY or not all([end.node.aval == _INT and end.node.active for end in ends]):
            return None
        if not all(map(self.at_least_zero, ends)):
            return None
        start, stop = 0 if part.start is None else part.start, size if part.stop is None else part.stop
        if any([type(end) is int and end < 0 for end in (start, stop)]):
            return None
        if len(parts) > 1:
            x = x[tuple([slice(None) if at == axis else one for at, one in enumerate(parts)])]
        if self.selections is None:
            self.selections = Selections(self)
        rows: Any = np.moveaxis(x, axis, 0) if axis else x  # type: ignore[type-var]
        view: Any = self._view_at(rows, WHOLE, (self.selections.within(start, stop, size),))
        return np.moveaxis(view, 0, axis) if axis else view

    def _span(self, node: Node, deep: int = 0, known: dict[Node, Span | None] | None = None) -> Span | None:
        """How far an integer goes, whatever the arguments are; None where that is not known."""
        if (number := self._plain_int(node)) is not None:
            return number, number
        known = {} if known is None else known  # what is the argument of several is looked through once
        if node not in known:
            known[node] = None
            if deep < _FEW:
                known[node] = span_of(node.op, [self._span(arg, deep + 1, known) for arg in node.args])
        return known[node]

    def written_growing(self, x: Tracer, key: Any) -> tuple[Tracer, Tracer] | None:
        """The same where it is written: the row, and the mask of the places that the slice names."""
        parts = key if type(key) is tuple else (key,)
        grows = [axis for axis, part in enumerate(parts) if not _stays(part)]
        if len(grows) != 1 or len(parts) > np.ndim(x.like) or type(parts[grows[0]]) is not slice:
            return None
        (axis,) = grows
        part = parts[axis]
        shape = np.shape(x.like)
        if part.step not in (None, 1) or any([type(part) is slice for part in parts[:axis]]) or math.prod(shape[axis:]) > MANY:
            return None
        ends = 0 if part.start is None else part.start, shape[axis] if part.stop is None else part.stop
        if not self.turns(*ends):
            return None
        if len(parts) > 1:
            x = x[tuple([slice(None) if at == axis else part for at, part in enumerate(parts)])]
        if self.selections is None:
            self.selections = Selections(self)
        return x, self.selections.within(*ends, len(x))

    def written_window(self, x: Tracer, key: Any) -> tuple[index.Spec, list[Any]] | None:
        """The same where it is written: the index, and its arrays."""
        return self._region(*self._moving(x, key))

    def _moving(self, x: Tracer, key: Any) -> tuple[tuple[Any, ...], list[int]]:
        """The parts of an index, an axis each, and which of them are slices that move with the index of a loop; none are where
        there is more in it than numbers and plain slices."""
        parts = key if type(key) is tuple else (key,)
        if self.lanes or not slides(parts):
            return parts, []
        hidden = [axis for axis, part in enumerate(parts) if part is Ellipsis]
        for axis in hidden[:1]:
            parts = (*parts[:axis], *[slice(None)] * (1 + np.ndim(x.like) - len(parts)), *parts[axis + 1 :])
        if len(parts) > np.ndim(x.like):
            return parts, []
        moving = [axis for axis, part in enumerate(parts) if self._moves(part, x.like.shape[axis])]
        return parts, moving if all([axis in moving or _stays(part) for axis, part in enumerate(parts)]) else []

    def _region(self, parts: tuple[Any, ...], moving: list[int]) -> tuple[index.Spec, list[Any]] | None:
        """The index by places of what slices that move name; None where NumPy would put the axes in another order, or where
        iterations decide on something, as those that do not get there have no such places."""
        picked = [axis for axis, part in enumerate(parts) if type(part) is not slice or axis in moving]
        if not moving or picked[-1] - picked[0] >= len(picked) or (len(picked) > 1 and self._has_decided()):
            return None
        spec: list[Any] = []
        places: list[Any] = []
        for axis, part in enumerate(parts):
            if axis in moving:
                across = sum([other > axis for other in moving])  # the axes of those to come
                spec.append(index.Hole(len(places), once=True))
                places.append(self._row(part.start, part.stop.value - part.start.value, across))
            elif type(part) is Tracer:
                spec.append(index.Hole(len(places)))
                places.append(part)
            else:
                spec.append(index.Slice(part.start, part.stop, part.step) if type(part) is slice else part)
        return tuple(spec), places

    def _row(self, start: Any, width: int, across: int) -> Any:
        """Whole numbers in a row; the same ones where a line reads and where it writes, as in ``x[i : i + 3] += v``."""
        key = user_line(), width, across
        count: Any = self._counts.get(key)
        node = None if count is None else self.graph.holder(count)
        loop = self.innermost_loop()
        if node is None or not (loop is None or self._is_since(node, loop.boundaries[-1].length)):
            self._counts[key] = count = np.arange(width).reshape(-1, *[1] * across).copy()
            count.flags.writeable = False
        return start + count

    def _is_filled(self, x: Tracer) -> bool:
        """Whether the loops that run write into an array, or are likely to, as it is zeros, or have in iterations that were run
        at once: of what is written into, windows of windows are many copies."""
        while x.base is not None:
            x = x.base
        start = min([roller.start for roller in self.rollers if roller.boundaries], default=0)
        written = x.node.op in (index.SETITEM, index.INDEX_ADD, ITEM) and x.node.index >= start
        return written or x.node.op in (create.ZEROS, create.FULL)

    def _has_decided(self) -> bool:
        """Whether iterations of the loops that run have decided on something, here or in other calls."""
        running = [roller for roller in self.rollers if roller.boundaries]
        return any([roller.decides or len(self.guards) > roller.boundaries[0].guards for roller in running])

    def _moves(self, part: Any, size: int) -> bool:
        """Whether a part of an index is a slice that moves with the index of a loop that is likely to be rolled up.

        There must be such places in the iterations to come, but for the last one, which are not traced where many are alike.
        Where iterations decide, some do not get here in this call: that there are is a decision, if not in all of them.
        """
        if type(part) is not slice or not type(part.start) is type(part.stop) is Tracer or part.step not in (None, 1):
            return False
        (root, often, _), (other, as_often, _) = self._linear(part.start.node), self._linear(part.stop.node)
        start, stop = part.start.value, part.stop.value
        if root is not other or often != as_often or root.op is not INDEX or not 0 <= start < stop <= size:
            return False
        known = [roller for roller in self.rollers if roller.counts and roller.boundaries]
        decided = self._has_decided()
        course = self._course(part.start.node, part.stop.node)
        begins = course is not None and all([first >= 0 for first, _ in course])
        times = 0 if decided else math.prod([roller.what.length for roller in known])
        if not any([roller.moves(stop - start, times) for roller in known if roller.serial == loop_number(root)]):
            return False
        if course is None or not decided:
            return begins
        ends = all([last <= size for _, last in course])
        return (begins or bool(operator.ge(part.start, 0))) and (ends or bool(operator.le(part.stop, size)))

    def names_some(self, start: Node, stop: Node, size: int) -> bool:
        """Whether a slice surely has elements, of so many, where iterations that may not be traced get here."""
        course = self._course(start, stop)
        return course is not None and all([0 <= first < min(last, size) for first, last in course])

    def _course(self, *ints: Node) -> list[tuple[int, ...]] | None:
        """What these are now, and in the last iteration but one, beyond which each is traced; where iterations decide, and some
        do not get here in this call, in the first one and the last. None for what is not made of the index of one loop."""
        lines: list[tuple[int, int]] = []
        roots = set[Node]()
        for node in ints:
            number = self._plain_int(node)
            root, often, more = self._linear(node) if number is None else (node, 0, number)
            roots |= {root} if often else set()
            lines.append((often, more))
        loops = [loop for loop in self.rollers if loop.counts and loop.boundaries]
        if len(roots) != 1 or (root := roots.pop()).op is not INDEX:
            return None
        for loop in loops:
            if loop.serial == dict(root.params)["loop"]:
                begin, turns, step = loop.what.start, loop.what.length, loop.what.step
                now, late = dict(root.params)["value"], begin + step * max(turns - 2, 0)
                places = (begin, begin + step * (turns - 1)) if self._has_decided() else (now, late)
                return [tuple([often * i + more for often, more in lines]) for i in places]
        return None

    def _linear(self, node: Node) -> tuple[Node, int, int]:
        """Of what an int is so many times, and so much more than that: ``3 * i - 2`` is of ``i``. Ints that Python has seen are
        what they were."""
        often, more = 1, 0
        for _ in range(_FEW):
            if not _is_linear(node):
                break
            a, b = node.args
            left, right = self._plain_int(a), self._plain_int(b)
            if (left is None) == (right is None):
                break
            number = left if left is not None else right
            assert number is not None
            if node.op.key is np.multiply:
                often *= number
            else:
                more += often * (-number if node.op.key is np.subtract and left is None else number)
                often = -often if node.op.key is np.subtract and right is None else often
            node = b if right is None else a
        return node, often, more

    def is_open(self, node: Node) -> bool:
        """Whether calls may have several ints there: it hangs on arguments, and nobody has looked at it."""
        return node.active and self._plain_int(node) is None

    def _plain_int(self, node: Node) -> int | None:
        """An int that is there in the code, or that calls of this code have in common; None for others."""
        number = dict(node.params)["value"] if node.op is CONST else self.ints.get(node)
        if number is None and _is_linear(node) and all([arg.op is CONST or arg in self.ints for arg in node.args]):
            number = self.computed(node)
        return number if type(number) is int else None

    def is_set_aside(self, node: Node) -> bool:
        """Whether it is a selection that an iteration has made, and that is not in the graph."""
        return self.selections is not None and node in self.selections.aside

    def takes(self, mask: Tracer) -> bool:
        """Whether how many elements a mask selects need not be known here and now."""
        if self.selects and self.selections is None:
            self.selections = Selections(self)
        return self.selections is not None and self.selections.takes(mask)

    def is_selected(self, x: Any, rows: bool) -> bool:
        """Whether it is some elements that a mask selects from an array, or some ``rows``, of which there must be one."""
        mask = self.selections.masks.get(x.node) if self.selections is not None and type(x) is Tracer else None
        if mask is None or np.ndim(x.like) < 1 + rows or (rows and np.ndim(x.like) > 2):
            return False
        assert self.selections is not None
        return self.selections.has_some(mask)

    def written(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run ``op`` and write it down as it is."""
        start = self.graph.next_index
        result = self.lookup(self.run(op, args, params))
        node, like = result.node, result.like
        if self.lean and node.index >= start and _is_big(like) and not result.later:
            self.release(node)
        if type(node.aval) is tuple:
            parts = [self.record(ITEM, (result,), {"item": i}) for i in range(len(like))]
            return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
        if not (op.alias or op is EINSUM):
            return self.lay(result, op, args, params) if node.index < start and np.ndim(like) > 1 else result
        arrays = type(like) is np.ndarray and args and type(args[0]) is Tracer
        if arrays and node.index < start:  # a node that was there
            self.see_from(result, args[0], op, args[1:], params)
        return self.wrap(op, args, params, result)

    def lay(self, result: Tracer, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Tracer:
        """A result whose node was known, lying in memory as it does of these arguments."""
        likes = [_in_its_place(arg) if type(arg) is Tracer else arg for arg in args]
        if all([like.flags.c_contiguous for like in (result.like, *likes) if isinstance(like, np.ndarray)]):
            return result
        with np.errstate(all="ignore"):  # what is like an array may hold anything
            laid: Tracer = result.laid_as(compute_anyway(op, likes, params))
        return laid

    def wrap(self, op: Op, args: Sequence[Any], params: dict[str, Any], result: Tracer) -> Tracer:
        """A result, told what it is a view of."""
        if type(result.like) is np.ndarray and args and type(args[0]) is Tracer:
            self.shaped = self.shaped or (op in _BY_LAYOUT and np.ndim(args[0].like) > 1)
            if (op.alias or op is EINSUM) and _is_view(result.like, args[0].like):
                result.show(args[0], op, tuple(args[1:]), params)
        return result

    def see_from(self, result: Tracer, base: Tracer, op: Op, rest: Sequence[Any], params: dict[str, Any]) -> None:
        """Make a result whose node was known a view of ``base`` if it is one, not of a copy with the same node."""
        if result.later != base.later:
            result.like, base.like = result.value, base.value
        if not _is_view(result.like, base.like):
            again = op.fun(base.like, *plain(list(rest)), **params)
            result.like = again if _is_view(again, base.like) else result.like

    def run(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Node:
        """The node of ``op`` on these arguments, its value among ``self.values`` unless it is left for later."""
        nodes, values = [], []
        waits = large = False
        alive = self.open and self.thread == get_ident()
        for arg in args:
            if type(arg) is Tracer:
                if arg.tape is not self:
                    self.admit(arg)
                if not alive:
                    raise escaped(arg)
                if arg.base is not None:
                    arg.refresh()
                node, value = arg.node, arg.like
                node = self.settled.get(node, node) if self.settled else node
                waits = waits or arg.later
            else:
                node, value = self.constant(arg)
            nodes.append(node)
            values.append(value)
            large = large or (type(value) is np.ndarray and value.nbytes >= _BIG)
        key = tuple(nodes)
        packed = () if not params else tuple(params.items()) if len(params) == 1 else tuple(sorted(params.items()))
        try:
            known = self.graph.find(op, key, packed)
        except TypeError:  # a list among the parameters
            packed = tuple((name, _hashable(value)) for name, value in packed)
            known = self.graph.find(op, key, packed)
        if known is not None:
            self.met.append(known.index)
            if op in IN_PLACE and self.user and known not in self.likes:
                self.computed(known)  # it may have been let go of
            return known
        if self.selections is not None:
            self.selections.need(nodes)
        costly = self.lazy and (large or op.like is not None) and not op.alias and op is not IDENTITY
        like = self._like_result(op, values, params) if waits or costly else None
        if like is not None:
            node = self.graph.place(Node(op, key, packed, aval_of(like)))
            self.likes[node] = like
            self._annotate(node)
            return node
        if waits:
            values = [arg.value if type(arg) is Tracer else value for arg, value in zip(args, values, strict=True)]
        mixes = None
        if self.mixed and not self.mixed.keys().isdisjoint(nodes) and self.user:
            mixes = self._mixes(op, args, nodes, values)
        if op is mixed.POWER and self.user and nodes[1].op is not CONST and {*[node.aval for node in nodes]} == {_INT}:
            self._decided(mixed.LESS, args[1])  # of ints, Python makes a float then
        if self.coarse and op is mixed.POWER and type(args[0]) is Tracer and np.any(values[1] < 0):
            self.asks_dtype(args[0])
        if self.coarse and op in mixed.SIGNED:
            for arg in args:
                if type(arg) is Tracer:
                    self.asks_dtype(arg)
        divides = self.trying and op in mixed.DIVISIONS
        value = self._written_by_user(op, nodes, values, params)
        if value is None:
            value = self._divide(op, args, values) if divides else self._value(op, values, params)
        aval = aval_of(value)
        if op.saves or (op is ITEM and aval == _EMPTY):
            aval = _filled(op, key, params, aval)
        node = self.graph.place(Node(op, key, packed, aval))
        self.values[node] = value
        if op in IN_PLACE and self.user:
            self._wrote(node)
        if mixes is not None and isinstance(aval, Aval) and (aval.kind != "array" or op in IN_PLACE):
            self.mixed[node] = mixes
        if op.sized and self.lanes:
            self.guards.append(Guard(node, None, user_line()))
        if self.user and (self._is_at_a_place(op, nodes) or (self.trying and op.name.startswith("np.linalg"))):
            self.required.append(node)
        self._annotate(node)
        return node

    def _is_at_a_place(self, op: Op, nodes: Sequence[Node]) -> bool:
        """Whether it reads or writes where a number says, which there may be no element at."""
        if self.lanes or (op is not index.GETITEM and op is not index.SETITEM):
            return False
        return any([node.active and not node.aval.shape for node in nodes[len(op.rules) :]]) and not self.iterates

    def _value(self, op: Op, values: list[Any], params: dict[str, Any]) -> Any:
        """The result of ``op``; where values are but examples, and there is nothing at an index, that with another one."""
        try:
            return _compute(op, values, params) if self.phase is None else compute_anyway(op, values, params)
        except IndexError:
            if not self.exemplary:
                raise
            return compute_anyway(op, [_example(value) for value in values], params)
        except (ValueError, ArithmeticError):
            if not (self.exemplary and is_of_math(op)):  # of a body that is not run for it
                raise
            return 1.0

    def _like_result(self, op: Op, likes: Sequence[Any], params: dict[str, Any]) -> Any:
        """What is like a result that is to be computed later; None for one that is to be computed now."""
        if self.lanes or self.trying or (self.user and np.geterr() != self.errors):
            return None
        return like_result(op, likes, params)

    def _mixes(self, op: Op, args: Sequence[Any], nodes: Sequence[Node], values: list[Any]) -> Mixed | None:
        """What is known of the result of mixed numbers; None where it is NumPy's for sure.

        Where Python's numbers raise, or give another kind, and NumPy's do not, is a decision; such calls are traced.
        """
        try:
            result = mixed.result(op, nodes, self.mixed)
        except Otherwise as end:
            raise self.refuse(end) from None
        python = [isinstance(node.aval, Aval) and node.aval.kind == "python" for node in nodes]  # which raise for themselves
        native = all(python)
        decides = None if result is None or native else mixed.bad(op, nodes, self.mixed)
        if result is None or decides is None or np.ndim(values[decides[0]]):  # beside an array, it is NumPy that computes
            return result
        if not self._decided(decides[1], args[decides[0]]):
            return result
        if result.python is None:
            raise self.refuse(Otherwise(result.causes))
        self.passing = True
        if result.python:
            values[:] = [value.item() if isinstance(value, np.generic) else value for value in values]
        return result

    def asks_kind(self, x: Any) -> None:
        """The function asks whether a number is Python's or NumPy's: ways that leave now one, now the other stay apart."""
        self.asking.update([roller.place for roller in self.rollers if roller.boundaries])
        if type(x) is Tracer and x.node in self.mixed:
            raise self.refuse(Otherwise(self.mixed[x.node].causes))
        if type(x) is Tracer:
            self.asks_dtype(x)

    def asks_dtype(self, x: Tracer) -> None:
        """The function does what hangs on the dtype of an array, which may be of ints, or flags, in other calls: if it is made
        of those alone, and of floats in place of such."""
        owner = x.owner()
        if not self.coarse or x.node.aval.dtype.kind not in "fc" or id(owner) in self.of_floats:
            return
        waiting, seen, causes = [x.node], set[Node](), frozenset[Any]()
        while waiting:
            node = waiting.pop()
            if node in self.mixed:
                causes |= self.mixed[node].causes
            elif not isinstance(node.aval, Aval) or (node.aval.dtype.kind not in "biu" and not node.args):
                self.of_floats[id(owner)] = owner
                return
            elif node.aval.dtype.kind not in "biu" and node not in seen:
                waiting += node.args[:1] if node.op in IN_PLACE else node.args
            seen.add(node)
        if causes:
            raise self.refuse(Otherwise(causes))

    def shows_kind(self, x: Any) -> None:
        """A number becomes text, or is kept outside: it is Python's number, or NumPy's, as the function has it; the run begins
        anew, where it has done nothing that would be done again."""
        hooks = self.hooks
        if type(x) is Tracer and x.node in self.mixed and not (self.impure or (hooks and (hooks.impure or hooks.effects))):
            self.asks_kind(x)

    def _decided(self, comparison: Any, number: Any) -> bool:
        """How a number compares with zero, as a decision."""
        node = self.run(comparison, (number, 0), {})
        seen = bool(self.computed(node))
        self.guard(node, seen)
        return seen

    def at_least_zero(self, number: Tracer) -> bool:
        """Whether an int is not negative, whatever the arguments are, or as a decision."""
        known = self._span(number.node)
        return (known is not None and known[0] >= 0) or self._decided(_AT_LEAST, number)

    def _divide(self, op: Op, args: Sequence[Any], values: list[Any]) -> Any:
        """A division where an exception may be caught: that of Python's numbers raises one, which is a decision then."""
        python = all([type(value) in (int, float, complex) for value in values])
        if python and type(args[1]) is Tracer and self.user:
            self._decided(mixed.EQUAL, args[1])
        try:
            return _compute(op, values, {})
        except ZeroDivisionError as error:
            if python:
                self.hooks.foreseen.append(error)
            raise

    def finds(self, x: Tracer, key: Any) -> None:
        """Where an exception may be caught: whether there is an element at a traced place is a decision."""
        for axis, place in places_in(key, x) if self.trying and self.user and not self.lanes else ():
            if place.node.aval.dtype.kind in "iu":
                size = x.shape[axis]
                inside = (place >= -size) & (place < size)
                if not (np.all(inside) if np.shape(place.like) else inside):
                    error = IndexError(f"index {place.value} is out of bounds for axis {axis} with size {size}")
                    self.hooks.foreseen.append(error)
                    raise error

    def _annotate(self, node: Node) -> None:
        if node.line is not None or self.quiet:
            return
        node.phase = self.phase
        if self.line is not None:  # a derivative pass: as the primal it belongs to
            node.line = self.line
            return
        frame = user_frame() if self.user else None
        if frame is not None:
            node.line = line_of(frame)
            node.name = target(frame)

    def guard(self, node: Node, value: Any) -> None:
        """Note that Python saw ``value`` at ``node``. Outside of loops, where each iteration may see something else, an int is
        that number from then on, and one that an argument alone tells is told by that."""
        alone = self.innermost_loop() is None and not self.lanes
        if alone and type(value) is int and node.active and node.aval.kind == "python":
            if self._plain_int(node) is not None:
                return
            root, often, more = self._linear(node)
            if root.op is INPUT and often and root.aval == node.aval:
                node, value = root, (value - more) // often
            self.ints[node] = value
            self.settled[node] = self.constant(value)[0]
        if node.active:
            self.guards.append(Guard(node, value, user_line()))
            loop = self.innermost_loop()
            while loop is not None and not loop.hangs:
                loop.hangs = True
                loop = loop.around
        else:
            self.peeks.append(Peek(node, len(self.guards), value))

    def guard_layouts(self) -> None:
        """Note that what is a view, and what a copy, hangs on how the arguments lie in memory; and so may loops."""
        if self.laid and LAID not in self.apart:
            raise self.refuse(Otherwise(frozenset([LAID])))
        for matrix in self.matrices:
            node = self.run(LAYOUT, (Tracer(self, matrix, self.values[matrix]),), {})
            kind = self.computed(node)
            if kind == 3:  # there are many such
                self.note("an argument lies in memory by columns, and hence what is a view")
            self.guard(node, kind)
        self.matrices.clear()

    def lies_densely(self) -> bool:
        """Guard that no argument has gaps in memory; False if one has. Else it is known of each array how it lies there."""
        if self.lanes or self.gaps:
            return False
        self.matrices += self.rows
        self.rows.clear()
        self.guard_layouts()
        return True


def loop_number(index: Node) -> Any:
    """Which loop an index is of, or a number that a local held before it, or got in it."""
    loop = dict(index.params)["loop"]
    return loop[0] if type(loop) is tuple else loop


def is_plain_number(node: Node) -> bool:
    """Whether it is a plain number that a local held before a loop, the same one in each call."""
    return node.op is INDEX and type(dict(node.params)["loop"]) is tuple


class Tape(Trace):
    """One run that no code is made of: a plain list of the operations that derivatives flow through.

    Nothing is shared, named or guarded, what no derivative flows into is a constant, and derivative passes may work on plain
    values.
    """

    symbolic = False

    def takes(self, mask: Tracer) -> bool:
        return False

    def lookup(self, node: Node) -> Tracer:
        return Tracer(self, node, self.computed(node))

    def input(self, position: Any, value: Any) -> Tracer:
        return Tracer(self, self._append(INPUT, (), (("position", position),), value, True), value, frozen=True)

    def _append(self, op: Any, args: tuple[Node, ...], params: Any, value: Any, active: bool) -> Node:
        nodes = self.graph.nodes
        node = Node(op, args, params, aval_of(value), len(nodes), active)
        nodes.append(node)
        self.values[node] = value
        return node

    def fresh(self, x: Tracer) -> Tracer:
        self.tokens += 1
        node = self._append(IDENTITY, (x.node,), (("token", self.tokens),), x.value, True)
        node.differentiated = True
        return Tracer(self, node, x.value, frozen=True)

    def constant(self, value: Any) -> tuple[Node, Any]:
        kind = type(value)
        if kind is np.bool_ or kind is bool:  # of a comparison, as a rule: no literal, which would be known to be zero
            return self._append(CAPTURED, (), (), value, False), value
        if kind in NUMBERS:
            return self._append(CONST, (), (("value", value),), value, False), value
        if type(value) is np.ndarray and value.nbytes <= _SMALL and value.dtype.kind in "fciub":
            value = value.copy("K") if value.flags.writeable else value  # cheaper than to ask whether it has changed
            return self.hold(value), value
        return super().constant(value)

    def hold(self, array: np.ndarray[Any, Any]) -> Node:
        return self._append(CAPTURED, (), (), array, False)

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if not self.open and (trace := active_trace()) is not None:  # it is an earlier call's
            return trace.record(op, args, params)
        nodes, values, flows = self._operands(args)
        value = self._written_by_user(op, nodes, values, params)
        if value is None:
            value = _compute(op, values, params)
        kind = type(value)
        if (kind is np.bool_ or kind is bool) and not self.lanes:
            return value  # no guard is needed, and ``is True`` gets its answer
        node = self._write(op, args, nodes, flows, params, value)
        if isinstance(value, tuple):
            parts = [self.record(ITEM, (Tracer(self, node, value),), {"item": i}) for i in range(len(value))]
            return kind(*parts) if hasattr(value, "_fields") else tuple(parts)
        special = op.alias or op is EINSUM
        result = Tracer(self, node, value)
        return self.wrap(op, args, params, result) if special else result

    def run(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Node:
        nodes, values, flows = self._operands(args)
        return self._write(op, args, nodes, flows, params, _compute(op, values, params))

    def recorded(self, wrt: Sequence[Node]) -> list[Node]:
        one = len(wrt) == self.tokens  # no other derivative is taken in this run
        return [node for node in self.graph.nodes if node.differentiated] if one else []

    def _operands(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], bool]:
        """The nodes and values of arguments, and whether a derivative flows into one; plain ones get no node yet."""
        nodes: list[Any] = []
        values = []
        flows = False
        alive = self.open and self.thread == get_ident()
        for arg in args:
            kind = type(arg)
            if kind is Tracer:
                if arg.tape is not self:
                    self.admit(arg)
                if not alive:
                    raise escaped(arg)
                if arg.base is not None:
                    arg.refresh()
                node = arg.node
                flows = flows or node.differentiated
                nodes.append(node)
                values.append(arg.like)
            elif kind in NUMBERS or (kind is np.ndarray and arg.dtype.kind in "fciub"):
                nodes.append(None)
                values.append(arg)
            else:
                node, value = self.constant(arg)
                flows = flows or node.differentiated
                nodes.append(node)
                values.append(value)
        return nodes, values, flows

    def _write(self, op: Op, args: Sequence[Any], nodes: list[Any], flows: bool, params: dict[str, Any], value: Any) -> Node:
        """Write an operation down, with its arguments if a derivative flows through it."""
        every = self.graph.nodes
        aval = aval_of(value)
        active = flows or any([node is not None and node.active for node in nodes])
        if flows or is_inexact(aval) or self.lanes or op.sized:  # what masks picked is known by its operation
            if None in nodes:
                nodes = [self.constant(arg)[0] if node is None else node for arg, node in zip(args, nodes, strict=True)]
            new = Node(op, tuple(nodes), tuple(params.items()) if params else (), aval, len(every), active)
        else:
            new = Node(CAPTURED, (), (), aval, len(every), active)
        new.phase = self.phase
        every.append(new)
        self.values[new] = value
        if new.op in IN_PLACE and self.user:
            self._wrote(new)
        if op.sized and self.lanes:
            self.guards.append(Guard(new, None, user_line()))
        return new

    def guard(self, node: Node, value: Any) -> None:
        if self.lanes:  # else nobody asks later
            super().guard(node, value)

    def note(self, reason: str) -> None:
        if self.lanes:  # else every call is traced anew as it is
            super().note(reason)

    def lane(self, x: Tracer) -> Tracer:
        self.tokens += 1
        node = self._append(IDENTITY, (x.node,), (("token", self.tokens),), x.value, True)
        return Tracer(self, node, x.value, frozen=True)


_AT_LEAST = REGISTRY[np.greater_equal]
_STACK, _CONCATENATE = REGISTRY[np.stack], REGISTRY[np.concatenate]
_BY_LAYOUT = (REGISTRY[np.reshape], REGISTRY[np.ravel])


def _stays(part: Any) -> bool:
    """Whether a part of an index is a number, or a slice whose bounds are plain."""
    if type(part) is slice:
        return Tracer not in (type(part.start), type(part.stop), type(part.step))
    return type(part) is int or (type(part) is Tracer and part.node.aval.kind != "array" and part.node.aval.dtype.kind in "iu")


def _is_linear(node: Node) -> bool:
    return isinstance(node.op, Op) and node.op.key in (np.add, np.subtract, np.multiply)


_FEW = 100  # ints that one is made of, up to which they are looked at
_SMALL = 4096  # bytes
_BIG = 131_072
_FEW_ROWS = 8  # of which it is not worth to look whether their columns are arrays


def _is_big(value: Any) -> bool:
    return type(value) is np.ndarray and value.nbytes >= _BIG


def _put(array: Any, value: Any, *arrays: Any, spec: index.Spec) -> Any:
    array[index.fill(spec, arrays)] = value
    return array


def _add(array: Any, value: Any, *arrays: Any, spec: index.Spec) -> Any:
    add_at(array, index.fill(spec, arrays), value)
    return array


IN_PLACE: dict[Any, Callable[..., Any]] = {index.SETITEM: _put, index.INDEX_ADD: _add}  # what writes, done in place


def _written_over(nodes: Sequence[Node], ends: Sequence[Node]) -> set[Node]:
    """The writes among nodes to compute that may be made in place: into what another one of them made for it alone."""
    readers = Counter([*ends, *[arg for node in nodes for arg in node.args]])
    writes = {node for node in nodes if node.op in IN_PLACE}
    return {node for node in writes if node.args[0] in writes and readers[node.args[0]] == 1}


class _Bare:
    """An object whose ``__dict__`` is all that it has."""


def is_bare(kind: type) -> bool:
    """Whether all that an object holds is in its ``__dict__``: it has no slots, and is no iterator, dict, set or deque."""
    if kind is SimpleNamespace:  # whose dict is beside it in some releases
        return True
    small = not hasattr(kind, "__next__") and kind.__basicsize__ <= _Bare.__basicsize__ and kind.__itemsize__ == 0
    return small and not any([vars(one).get("__slots__") for one in kind.__mro__])


def _owns_all(owner: Any) -> bool:
    """Whether nothing else can hold what is changed in ``owner``, as it is no view."""
    if type(owner) is Tracer:
        return owner.base is None and (owner.tape.draft is None or owner.value.base is None)
    if type(owner) in (list, dict, set):
        return True
    if type(owner) is np.ndarray:
        return owner.base is None
    kind: Any = type(owner)
    return has_slots_alone(kind) or (is_users_class(kind) and is_bare(kind) and sys.getrefcount(vars(owner)) == 2)


def _base_number(value: Any) -> Any:
    """The number that one of a subclass (an enum's, say) is."""
    base: Any = next(kind for kind in (int, float, complex) if isinstance(value, kind))
    return base.__pos__(value)


def _compute(op: Op, values: list[Any], params: dict[str, Any]) -> Any:
    try:
        found = op.fun(*values, **params)
        if type(found) is np.ndarray and found.dtype.char == "O":  # no derivative would flow through it, in silence
            raise NotDifferentiable(f"{where()}: {op.name} makes an array of objects of a traced one; leave dtype=object out")
        return found
    except SymgradError:
        raise
    except TypeError as error:
        if any(isinstance(v, np.ndarray) and v.dtype == object for v in values):
            raise NotDifferentiable(f"{where()}: {op.name} of an object array") from error
        raise


def compute_anyway(op: Op, values: list[Any], params: dict[str, Any]) -> Any:
    """The same in a derivative: where Python's numbers raise an error, the infinity that NumPy's give is a number, too.

    So a call at a pole is of the same operations as others, and they share code.
    """
    try:
        return _compute(op, values, params)
    except (ZeroDivisionError, OverflowError):
        anyway = getattr(op, "anyway", None)  # of a loop
        if anyway is not None:
            return anyway(*values, **params)
        return without_errors(op.fun, values, params)


def without_errors(fun: Callable[..., Any], values: Sequence[Any], params: dict[str, Any]) -> Any:
    """What NumPy's numbers give where Python's have raised."""
    if any([type(value) not in (int, float, complex) for value in values]):
        raise
    power = fun is mixed.POWER.fun  # ``0 ** -1``, too
    numbers = [float(value) if power and type(value) is int else value for value in values]
    return fun(*map(as_numpy, numbers), **params).item()


def _filled(op: Op, args: Sequence[Node], params: Any, aval: Any) -> Any:
    """What is known of results of a loop, where a list is empty: what iterations would put there."""
    if op is ITEM:
        return args[0].aval[dict(params)["item"]]
    first = len(aval) - len(op.saves)
    lists = zip(aval[first:], op.saves, strict=True)
    return (*aval[:first], *[_EMPTY._replace(element=saved) if known == _EMPTY else known for known, saved in lists])


def _example(value: Any) -> Any:
    """Another number, or range, of the kind, that says where there is something."""
    return value * 0 if _is_index(value) else range(1) if type(value) is range else value


def _is_index(value: Any) -> bool:
    """Whether it is an integer, or an array of integers."""
    return type(value) is int or getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u")


running: list[Trace] = []  # those that run in any thread: while there are none, no caller need ask for its own


class tracing:
    """``with tracing(trace):`` makes it the active one; afterwards it is closed, and its Tracers are of no use."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> Trace:
        self._token = ACTIVE.set(self.trace)
        running.append(self.trace)
        return self.trace

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.trace.close()
        running.remove(self.trace)
        ACTIVE.reset(self._token)
        if isinstance(error, Exception) and not isinstance(error, SymgradError) and self.trace.lent:
            _explain(error, traceback)
        if type(error) is TypeError and len(error.args) == 1:
            error.args = (_NAMED.sub(self.trace.unfit, str(error)),)
        swallowed = error is None or (isinstance(error, Exception) and not isinstance(error, SymgradError))
        if swallowed and self.trace.refusal is not None:  # the function has caught it, and went another way
            raise self.trace.refusal from None


@contextmanager
def activated(trace: Trace) -> Iterator[None]:
    """The trace as the active one, which goes on afterwards."""
    token = ACTIVE.set(trace)
    try:
        yield
    finally:
        ACTIVE.reset(token)


@contextmanager
def suspended(trace: Trace) -> Iterator[None]:
    """No trace is active; the one that is goes on afterwards."""
    token = ACTIVE.set(None)
    running.remove(trace)
    try:
        yield
    finally:
        running.append(trace)
        ACTIVE.reset(token)


def followed(fun: Any) -> Any:
    """A function of the user's that symgrad's own code calls: instrumented in a trace, so that what it reads is seen."""
    if fun is None:
        return None

    @functools.wraps(fun)
    def follow(*args: Any, **kwargs: Any) -> Any:
        trace = active_trace()
        if trace is None or trace.hooks is None:
            return fun(*args, **kwargs)
        return trace.hooks.call(fun, *args, **kwargs)

    return follow


_NAMED = re.compile(r"(?<=['\" ])Tracer(?=['\" ])")  # in Python's words


def _explain(error: Exception, traceback: TracebackType | None) -> None:
    """Raise what NumPy's words about an object array mean here, where one was made of traced values."""
    text = str(error)
    advice = through_scipy(traceback)
    if advice is not None:
        raise NotDifferentiable(f"{raised_at(traceback)}: {advice} ({type(error).__name__}: {text})") from error
    if not isinstance(error, (TypeError, ValueError)):
        return
    if text.startswith("setting an array element") and isinstance(error.__cause__, SymgradError):
        raise error.__cause__
    if "iterator" in text.lower() and "operand" in text:
        raise NotDifferentiable(
            f"{raised_at(traceback)}: np.nditer goes through arrays in C, and no traced value comes through it ({text}); "
            "write a loop over indices, or over np.ndenumerate(x)"
        ) from error
    if "read-only" in text and isinstance(error, ValueError):
        raise MutatedInput(
            f"{raised_at(traceback)}: {text}: np.asarray(x) of a traced array gives an array that must not be changed; "
            "write np.array(x), which copies, or symgrad.numpy.asarray(x)"
        ) from error
    if any(words in text for words in _OF_OBJECTS) and any([_is_masked(frame) for frame, _ in walk_tb(traceback)]):
        raise NotDifferentiable(
            f"{raised_at(traceback)}: a traced value met a MaskedArray, whose functions take numbers alone ({text}); take a "
            f"plain array: {_OF_MASKED}"
        ) from error
    if any(words in text for words in _OF_OBJECTS):
        raise NotDifferentiable(
            f"{raised_at(traceback)}: np.array([...]) of traced values makes an array of dtype object, which this "
            f"function does not take ({text}); make it with np.stack, np.array(..., like=x) or symgrad.numpy.array"
        ) from error


_OF_MASKED = "m.filled(0.0), and where ~m.mask is"  # the advice; of ``np.asarray`` the mask would be lost


def _is_masked(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == np.ma.core.__name__


_OF_OBJECTS = (
    "dtype('O')", "bject array", "'Tracer'", "holds references", "loop of ufunc does not", "not supported for the input",
)  # fmt: skip


def _hashable(value: Any) -> Any:
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value


def _in_its_place(x: Tracer) -> Any:
    """What is like a traced value; where it is not computed yet, its numbers may be any: those that may be places are zero."""
    known = not x.later or not isinstance(x.like, np.ndarray) or x.like.dtype.kind not in "iu"
    return x.like if known else np.zeros_like(x.like)


def _is_view(value: np.ndarray[Any, Any], base: Any) -> bool:
    owner = value.base
    if owner is None or type(base) is not np.ndarray:
        return value is base
    return owner is base or owner is base.base or np.may_share_memory(value, base)


def _identical(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays hold the same values, NaN like NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fcmM"))


def _enumerates(items: Sequence[Any], shape: tuple[int, ...]) -> Node | None:
    """The node whose elements, all and in order, ``items`` are: an array that ``np.asarray`` took apart."""
    taken = _taken(items[0]) if items else None
    whole: Node | None = None if taken is None else taken.args[0]
    if whole is None or whole.aval.shape != shape:
        return None
    for place, item in zip(np.ndindex(shape), items, strict=True):
        taken = _taken(item)
        if taken is None or taken.args[0] is not whole or taken.params != (("spec", place),):
            return None
    return whole


class _Turns(NamedTuple):
    """So many rows of each of some arrays, from these on, in turn: the first one of each, then the second ones."""

    arrays: tuple[Node, ...]
    starts: tuple[int, ...]
    often: int


def _parts(rows: Sequence[Any]) -> list[Any]:
    """What rows are, in their order: rows of arrays in turn, and others."""
    if len({np.shape(row) for row in rows}) > 1:
        return list(rows)
    places = [_place_in(row) for row in rows]
    parts: list[Any] = []
    at = 0
    while at < len(rows):
        here = places[at]
        turn = 1 if here is None else next((k for k in range(1, TURN + 1) if _follows(places, at + k, k)), 1)
        end = at + turn
        while _follows(places, end, turn):
            end += 1
        first = places[at : at + turn]
        if None in first:
            parts.append(rows[at])
            at += 1
            continue
        arrays, starts = zip(*first, strict=True)
        parts.append(_Turns(arrays, starts, (end - at) // turn))
        at += turn * parts[-1].often
    return parts


def _follows(places: Sequence[Any], at: int, turn: int) -> bool:
    """Whether a row is the next one in an array after the row before it by so many."""
    if at >= len(places) or places[at] is None or places[at - turn] is None:
        return False
    (array, place), (other, before) = places[at], places[at - turn]
    return array is other and bool(place == before + 1)


def _place_in(row: Any) -> tuple[Node, int] | None:
    """The array of which this is a row, and which one; None for any other."""
    taken = _taken(row)
    spec: Any = dict(taken.params)["spec"] if taken is not None and len(taken.args) == 1 else ()
    known = taken is not None and len(spec) == 1 and type(spec[0]) is int and spec[0] >= 0
    return (taken.args[0], spec[0]) if known else None  # type: ignore[union-attr]


def _taken(item: Any) -> Node | None:
    """The node that takes an item from an array; None for anything else."""
    if type(item) is not Tracer or item.base is not None:
        return None
    node: Node = item.tape.ends.get(item.node, item.node)
    if node.op is TO_PYTHON and node.args[0].aval.dtype == node.aval.dtype:
        node = node.args[0]
    return node if node.op is index.GETITEM else None


def _place(array: np.ndarray[Any, Any]) -> Any:
    """The same for arrays that are one, and for views of one that show the same of it."""
    if array.base is None:
        return id(array)
    return id(array.base), array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _count() -> int:
    new = object()
    return sys.getrefcount(new)


OF_A_LOCAL = _count()  # what sys.getrefcount says of an object that one variable holds
_HELD_BY_A_LOCAL = 1 if sys.version_info >= (3, 13) else 2  # ``f_locals`` was a copy, which the frame keeps


def is_held_so_often(value: Any, often: int, locals: int) -> bool:
    """Whether what the caller's variable stands for is held by so many others, so many locals of a frame, and nobody else."""
    return sys.getrefcount(value) - OF_A_LOCAL - 1 <= often + locals * _HELD_BY_A_LOCAL


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


class _Text(str):
    """Text of a value that a derivative follows: to be shown. What asks how it reads would find other text than usual."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True

    def __radd__(self, other: str) -> str:
        return _Text(str.__add__(other, self))


def _more_text(name: str) -> Callable[..., Any]:
    def more(self: _Text, *args: Any) -> Any:
        made = getattr(str, name)(self, *args)
        return made if made is NotImplemented else _Text(made)

    return more


for _name in "__add__ __mul__ __rmul__ __mod__ upper lower title capitalize swapcase center ljust rjust join".split():
    setattr(_Text, _name, _more_text(_name))


def _refuse_text(name: str) -> Callable[..., Any]:
    def refuse(*args: Any) -> Any:
        trace = active_trace()
        if trace is None:
            return getattr(str, name)(*args)
        why = f"the text of a traced value is for people, and {name} of it another than of the plain value's"
        raise trace.refuse(LeavesNumPy(f"{where()}: {why}; compare values, or take the text of symgrad.stop_gradient(x)"))

    return refuse


for _name in (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __len__ __getitem__ __iter__ __contains__ startswith endswith find "
    "rfind index rindex count split rsplit partition rpartition strip lstrip rstrip replace removeprefix removesuffix "
    "isdigit isnumeric isdecimal isalnum isalpha translate encode zfill"
).split():
    setattr(_Text, _name, _refuse_text(_name))
