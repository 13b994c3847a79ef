"""Rolling: iterations of the user's ``for`` and ``while`` loops that were traced alike become one ``Loop``.

A ``Roller`` watches one loop statement while it runs. At each boundary between iterations it notes what the local variables
hold (``survey.py``); the nodes recorded in between are an iteration. Two neighbouring iterations give a *pattern*: their
operations are the same, and each argument is the same value, or in the same place of the iteration, or the same local variable
at its beginning, or the loop's index, or an array that each iteration makes anew with the same content (``matching.py``;
``forks.py``, where iterations decide). Iterations that follow the pattern become a ``Loop`` node, whose body is an iteration as
the pattern has it (``outlines.py``), and the local variables are bound to its results. What does not match stays as it was
recorded: unrolled, and right.

A loop is *open* when its test hangs on the arguments: another call may run it more often. Then everything that an iteration
leaves behind must be in the pattern, plain values included; in other loops, whose trip count is fixed by the guards of the
trace, what is not in the pattern is merely not rolled.

Plain numbers in lists, dictionaries and objects that iterations change, and decide on, go round traced: those that the source
shows from the first call on, all others when a trace has told of them.

A long loop *leaps*: when some iterations in a row were alike in all that an open loop asks for, those that are to come, but
for the last, are run as the ``Loop`` that they would become, without the user's code (``running.py``). One with a test leaps to
the last iteration before the test fails.
"""

from __future__ import annotations

import collections
import copy
import functools
import itertools
import math
import operator
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType, MethodType
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, Aval, Node, ancestors, content_of, is_inexact
from symgrad.loops.appended import Chosen, Grown, counts, lead
from symgrad.loops.branches import may_go_on
from symgrad.loops.ends import Ends, ranged
from symgrad.loops.forks import Ways, fork, meeting
from symgrad.loops.iterables import Over, how_often
from symgrad.loops.logs import Counted, Filled, Holders, Later, Log, Logged, Logs, Measured, Resumed, Row
from symgrad.loops.matching import Matching
from symgrad.loops.outlines import Outline, hanging, is_read_outside
from symgrad.loops.patterns import (
    BOOL,
    COUNTER,
    EXIT,
    INT,
    OF_LOOPS,
    OUTSIDE,
    STOP,
    TAKEN,
    TEST,
    TRACED,
    UNSEEN,
    WHOLE,
    Boundary,
    Join,
    Key,
    Names,
    Note,
    Own,
    Part,
    Pattern,
    iterations,
    joined,
    number_of,
)
from symgrad.loops.recall import Run, read_there
from symgrad.loops.running import at_once, inlined, is_steady, lagged, may_raise, reproduced, run_on, run_out, told
from symgrad.loops.survey import (
    DRAFT,
    SHARED,
    WIDEST,
    Survey,
    holds_arrays,
    holds_plain,
    inner,
    is_state,
    is_text,
    keys_beside,
    may_be_held,
    moved,
    things_in,
    turned,
    without_twins,
)
from symgrad.loops.views import shown
from symgrad.loops.ways import is_float, joined_kind
from symgrad.ops.engine import AND, IDENTITY, INDEX, ITEM, NOT, TO_FLOAT, TO_NUMPY
from symgrad.source.lists import FAR as DEEP
from symgrad.source.states import FIRST
from symgrad.tracing.frames import HIDDEN
from symgrad.tracing.kinds import Cells, fields_of
from symgrad.tracing.mixed import Mixed, Otherwise
from symgrad.tracing.trace import GONE, LAID, TURNING, Guard, Stated, Trace, is_held_so_often, loop_number
from symgrad.tracing.tracer import NUMBERS, Peek, Tracer, plain
from symgrad.transform.loop import Course, Loop, loop_of

SHORTEST = 4  # iterations that are worth a loop
SHORT = 2  # those of a loop that decides, in another one
BRIEF, FEW = 5, 6  # iterations, of so many operations, that are better written out in those of another loop
LEAP = 6  # iterations that are alike, before those to come are not traced
WORTH = 16  # iterations of a loop in another one, which leaps by the ways that those before have gone
FAR = 32  # iterations of a loop that is worth a leap, or a loop though all iterations decide alike
BIG, HUGE = 64, 256  # operations of an iteration, of which it takes fewer to leap
LARGE = 512  # operations of a run of iterations that decide alike, which are a loop however few they are
RANGED = 200  # iterations of loops over ranges that hang on the index of one around, from which on they are loops in that
TOLD = 32  # of loops over ranges that arguments tell
BAND = 4  # of so many numbers, such a range has at least one; fewer are faster one by one
NESTED = 1024  # iterations of loops in a loop, from which on copies of them take longer to compile than they save
OFTEN = 256  # iterations in all, of loops in one another, from which on a short one is worth a leap, and a list an array
TURNS = 3  # between iterations that decide otherwise, on what hangs on no argument, before they are one loop
SEVERAL = 8  # kinds of calls whose ways through a loop are known
WAYS = 256  # iterations before a loop is given up in which ever more ways are gone
NEW = 4  # if that is so of one in so many
CHUNK = 1024  # iterations that are rolled up at a time, so that long loops do not fill the memory; or a few, as the last
# ones will not be alike where loops in them are short
MANY = 512  # and of all containers in containers
EACH = 32  # or for each operation of an iteration, which takes longer
APART = ("apart",)  # what is noted of what a loop has nothing to do with
SEALED = (list, dict, set, collections.deque, collections.defaultdict, collections.OrderedDict, collections.Counter)
_OF_NUMBERS = (), np.dtype(float)  # the items of a list to which no iteration has appended any


class Crossed(NamedTuple):
    """Among what is ``apart``: a loop decides, in code, on where it is and where one around it is."""

    place: Any


class Ended(NamedTuple):
    """Among what is ``apart``: which way an iteration goes tells whether it is the last one, by a plain truth value."""

    place: Any


class Flag(NamedTuple):
    """Among what is ``apart``: calls in a loop leave now a plain truth value or number in the local of this name, now a traced
    one."""

    place: Any
    name: str


class Begun(NamedTuple):
    """Among what is ``apart``: a loop appends to a list of this name, and reads, wherever it is told, what was there before."""

    place: Any
    name: str


class Turned(NamedTuple):
    """Among what is ``apart``: from this iteration on, a long loop decides otherwise, on what hangs on no argument."""

    place: Any
    at: int


class Moved(NamedTuple):
    """Among what is ``apart``: iterations of a loop change numbers in containers, at these places, and no two are alike."""

    place: Any
    keys: frozenset[Key]


class Roller:
    """Watches one loop statement. ``what`` is what a ``for`` statement runs over; ``private`` are the names of the locals
    that the loop assigns and nothing else reads, ``stored`` all that its body assigns; ``tested`` says that the loop ends by
    a test in its body, not by exhaustion; ``targets`` are the locals that each iteration assigns before it reads them, if it
    begins where the body does; ``lists`` are those that it only appends to, and reads so far from the end; ``decides``
    says that it is likely to be rolled up however short it is; ``apart`` are locals that it has nothing to do with, so that
    nobody looks into lists and the like there."""

    def __init__(
        self,
        trace: Trace,
        what: Over | None,
        private: Sequence[str],
        stored: Sequence[str],
        tested: bool = False,
        targets: Sequence[str] = (),
        lists: Sequence[tuple[str, int, bool, str]] = (),
        decides: bool = False,
        ends: Ends | None = None,
        apart: Collection[str] = (),
        line: int = 0,
    ) -> None:
        self.line = line  # of a ``while`` statement, which does not count its iterations
        self.apart = frozenset(apart)
        self.sealed = dict[str, int]()  # of these the lists of numbers, or of rows of such, that nobody else holds (ids)
        self.within_sealed: Survey | None = None  # what those hold, if a loop around may ask
        self.lists = {name: (deepest, some, constants) for name, deepest, some, constants in lists}
        self.grown = dict[str, Grown]()
        self.logs = Logs(trace, self.grown)
        self.fills = False  # whether iterations append to lists that objects hold, and are few
        self.names = Names(frozenset(private), frozenset((*stored, OUTSIDE)), frozenset(targets), self.apart)
        self.trace, self.what, self.private, self.tested = trace, what, self.names.private, tested
        self.unread = self.names.unread
        over = private.over if isinstance(private, Own) else self.private
        self.spent = over & self.names.targets  # what an iteration leaves there nobody reads, though it may be another's, too
        self.boundaries: list[Boundary] = []
        self.start = 0  # the first node that iterations may have recorded
        self.opened = len(trace.graph.nodes)  # when the statement began
        self.pattern: Pattern | None = None
        self.first = 0  # the boundary where the stretch that follows the pattern begins
        self.passed = self.skipped = 0  # iterations before it, and in it, that are not among the boundaries any more
        self.serial = trace.next_loop()
        self.around: Roller | None = trace.innermost_loop()  # whose iteration it runs in
        trace.rollers.add(self)
        self.place: tuple[Any, ...] = ()  # where the statement is, after the numbers of all runs
        self.ends = ends
        self.stop = trace.lookup(ends.stop.node) if ends is not None and type(ends.stop) is Tracer else None
        self.open = ends is not None
        self.put: set[Node] = set()  # numbers that iterations put into locals
        self.section = what is not None and what.section  # whether it is no loop: its one iteration is
        # whether iterations decide on what they compute; or otherwise, ever again, on what is known; or whether they append to
        # lists, and are many, or any may be the last one
        often = what is not None and self._is_often(what.length)
        long = often or (what is not None and what.length > FAR)
        self.forked = self.section or ((tested or long) and bool(lists))
        self.decided = False  # whether those of a loop in it do
        self.ran = 0  # how many iterations of loops in it there were
        # whether a short loop, in a nest of many iterations, or of arrays for a list, is better done all at once
        self.nested = often and bool(lists)
        self.saw: tuple[Any, ...] | None = None  # what the last iteration decided on that hangs on no argument
        self.crosses = False  # whether they decide on where both this loop is and one around it
        self.busy = 0  # and how many then did something
        self.turns = 0  # how often that was something else than in the iteration before
        self.turned = 0  # the iteration that did so last
        self.turns_at: Collection[int] = ()  # those of which earlier runs have told
        self.whole = True  # whether all that locals held was looked at, between all iterations
        self.kinds: dict[Key, Any] = {}
        self.joins: set[Any] = set()  # the statements that were seen to decide on something
        self.met_at: tuple[int, int, int] | None = None  # the lengths of graph and notes behind the last one of these
        self.kept = False  # whether iterations stay in memory, rolled up or not
        self.leaps = trace.leaps and (what is None or tested or what.length >= FAR or self._is_often(what.length))
        self.decides, self.counts = decides, what is not None and not tested  # whether how often it runs is known beforehand
        self.windows = what is not None and self.counts and (decides or what.length >= FAR)  # whether all slices move with it
        self.many = MANY  # items of containers that are looked at between two iterations
        self.ahead = 0  # iterations that the last leap ran
        self.hangs = False  # whether iterations decide on what hangs on arguments
        self.passed_over: list[range] = []  # the indices of those that a leap ran in the function's place
        self.alike = 0  # iterations in a row
        self.wait = 0  # iterations before those to come are run as they were
        self.leapt = False  # whether some were
        self.more = True  # whether there may be other iterations, which read what these leave
        self.like = 0  # from which boundary on those were like the iterations before
        self.look = WAYS  # iterations before it is asked whether all go ways of their own
        self.flags: set[Node] = set()  # that tell whether one of these went another way
        self.counter: Any = None  # the index, in a loop that an ``if`` may leave
        self.last: Any = None  # which one that is of the last item
        self.tests: list[Node] = []
        self.parts: list[Tracer] = []  # of the test that is being computed, but for its last one
        self.anew: set[Node] = set()  # arrays that iterations made for themselves, if nothing else holds them
        self.held: Counter[int] = Counter()  # the values that the locals hold, by identity
        self.left_in: Counter[int] = Counter()  # of these, those in locals that nobody reads
        # the locals that go round in the loop, and those that it leaves behind
        self.wanted: tuple[list[Key], list[Key]] = ([], [])
        # those that NumPy's numbers go on in, and that hold Python's where some ways were taken; what made these one before
        self.plain: dict[Key, frozenset[Any]] = {}
        self.coarse = False  # whether some of these may be ints, or flags
        self.short = False  # whether longer runs told what that is
        self.moving: set[Key] | None = None  # numbers in containers that iterations were seen to change, in earlier calls
        self.firsts: dict[int, str] = {}  # the locals that it assigns, by what they held as it began (ids)
        self.beside: dict[Key, set[Any]] = {}  # at which other key there is what objects have in an attribute
        self.others: dict[str, set[Key | None]] = {}  # where there is what locals were seen to hold, that iterations assign
        self.stated: set[str] = set()  # the locals of which numbers go round: see ``symgrad.source.states``
        self.coded: dict[Key, Any] = {}  # and such texts, as numbers: see ``symgrad.watch.codes``
        self.unflagged: list[Boundary] = []  # of which others have taken the place, with a flag
        # the locals that nobody reads when an iteration has begun, before they are assigned again
        self.dead: Sequence[str] = ()
        self.asked = False  # whether somebody wanted to know that its iterations decide
        self.begun: list[Join] = []  # what there is when an iteration's first statement runs
        self.rebound: set[Key] = set()  # the locals that ways, of other calls, too, let be other arrays
        self.replaced: set[Key] = set()  # places of lists, dicts and objects that these let be others
        self.parted: set[frozenset[Key]] = set()  # pairs of locals that were one array at times

    def _is_often(self, length: int) -> bool:
        """Whether a short loop runs many iterations in all, in those around it."""
        return length >= 2 * LEAP and length * self._around() >= OFTEN

    @property
    def has_decided(self) -> bool:
        """Whether its iterations were seen to decide on something, or those of a loop in it."""
        return self.forked or self.decided

    @property
    def is_far(self) -> bool:
        """Whether it has many iterations, as far as that is known beforehand."""
        return self.what is not None and self.what.length >= FAR

    def is_long(self) -> bool:
        """Whether it has decided on something, or one around it has, or many iterations of it run in all, in those."""
        loop: Roller | None = self
        while loop is not None:
            if loop.has_decided:
                return True
            loop = loop.around
        return self._turns() * self._around() >= OFTEN

    def _turns(self) -> int:
        """How many iterations of it there are, as far as that is known beforehand."""
        if self.ends is not None:
            return len(range(*map(plain, self.ends[:3])))
        return 0 if self.what is None else self.what.length

    def runs_often(self) -> bool:
        """Whether loops in it run so often in all that code is not to have a copy of them for each of its iterations."""
        within = [loop for loop in self.trace.rollers if loop.boundaries and loop.serial > self.serial]
        return 2 * self.ran >= NESTED or any([loop._turns() * loop._around() >= NESTED for loop in within])

    def ranges_often(self, count: int, told: bool) -> bool:
        """Whether loops in it, over ranges that hang on its index, of which the next one runs ``count`` times, run often; where
        arguments have ``told`` how often, another call may run them otherwise, and fewer are enough."""
        ran, turns = self.ran + count, len(self.boundaries) + self.skipped + self.passed
        return ran >= TOLD if told else ran >= RANGED and BAND * ran >= turns * turns

    def _around(self) -> int:
        """How many iterations of the loops around it there are, as far as that is known beforehand."""
        around, often = self.around, 1
        while around is not None:
            often *= around.what.length if around.what is not None else 1
            around = around.around
        return often

    # ---- values that go round ----

    def index(self, value: int) -> Tracer:
        """The loop's index as a traced number."""
        return self.trace.record(INDEX, (), {"loop": self.serial, "value": value})  # type: ignore[no-any-return]

    def turn(self) -> Any:
        """Where the loop is, by its index; None where it has none."""
        at = self.boundaries[-1].at
        return None if at is None else dict(at.params)["value"]

    def number(self, name: str, value: Any) -> Tracer:
        """A plain number that a local holds before the loop, or that an iteration puts into it, traced, so that it can go
        round."""
        known: tuple[Any, ...] = (self.serial, name, type(value), repr(value))
        if self.forked:  # where it comes from must be clear
            known = (*known, len(self.put))
        tracer: Tracer = self.trace.record(INDEX, (), {"loop": known, "value": value})
        if self.boundaries:
            self.put.add(tracer.node)
        return tracer

    def moves(self, width: int, often: int) -> bool:
        """Whether slices so wide move with the index: in a short loop those alone that are short beside it, of a nest of loops
        that run so ``often`` in all. Shifts of whole arrays, of which there are few, stay views."""
        return self.windows or (often >= FAR and self.what is not None and 2 * width <= self.what.length)

    # ---- boundaries ----

    def __iter__(self) -> Iterator[Any]:
        """What the ``for`` statement gets, item by item."""
        return self._by_index() if self.ends is None else self._left_early(self.ends) if self.tested else self._span(self.ends)

    def _span(self, ends: Ends) -> Iterator[Any]:
        """The numbers of a range whose ends are traced."""
        frame = sys._getframe(1)
        start, stop, step, *_ = ends
        at = self._begin_at(start)
        begun, last = start.node if type(start) is Tracer else at.node, None
        while self._tested(frame, at < stop if step > 0 else at > stop, {COUNTER: at}):
            last = at if ends.at is None else None
            yield at if ends.at is None else ends.at(self.trace.lookup(at.node))  # which may go round on its own
            at = at + step
        if last is not None and is_held_so_often(last, 0, 1):  # by the local alone, which is read no more
            last.node, last.value = begun, plain(start)

    def _begin_at(self, start: Any) -> Any:
        """The first number of such a range, of another node than that, and than the counters of others that begin there."""
        if type(start) is Tracer:
            return self.trace.record(IDENTITY, (start,), {"token": self.serial})
        return self.number("i", start)

    def _left_early(self, ends: Ends) -> Iterator[Any]:
        """The same in a loop that an ``if`` may leave, which tells whether there are more where it is met."""
        start, stop, step, *_ = ends
        more = start < stop if step > 0 else start > stop
        self.last = stop - step
        self.counter = self._begin_at(start)
        while more:
            met = len(self.tests)
            yield ends.item(self.trace.lookup(self.counter.node))  # which a local goes round with on its own
            more = self._is_before(plain(self.counter), plain(self.last)) if len(self.tests) > met else self._is_more()
            if more:
                self.counter = self.counter + step

    def _is_more(self) -> Any:
        """Whether there is an item after the one at hand."""
        return self._is_before(self.counter, self.last)

    def _is_before(self, one: Any, other: Any) -> Any:
        step = self.ends.step if self.ends is not None else self.what.step  # type: ignore[union-attr]
        return one < other if step > 0 else one > other

    def _by_index(self) -> Iterator[Any]:
        """What a ``for`` statement gets, item by item, by an index."""
        frame = sys._getframe(1)
        assert self.what is not None
        length, at, start, step, *_ = self.what
        for array in self.what.tables:  # which no iteration makes
            self.trace.constant(array)
        if self.tested:
            self.counter, self.last = self.number("i", start), start + step * (length - 1)
            place = 0
            while place < length and self.what.stays():
                yield at(self.trace.lookup(self.counter.node))  # which a local goes round with on its own
                place = (int(self.counter.value) - start) // step + 1  # a leap goes from test to test, over several items
                if place < length:
                    self.counter = self.counter + step
            yield from self.what.left(place)
            return
        place = 0
        self.trace.watched |= self.leaps
        while place < length and self.what.stays():
            index = self.index(start + step * place)
            self._boundary(frame, index)
            ahead = length - place - 1
            if ahead == 0 and self._looks_at_index():
                self._chunk()
            if (self.leaps and self._leap(ahead)) or (self.forked and self._leap_known(place, ahead)):
                first, place = place, place + self.ahead
                self.passed_over.append(range(start + step * first, start + step * place, step))
                if self.trace.hooks is not None:
                    self.trace.hooks.leapt()
                index = self.index(start + step * place)
                self.boundaries[-1] = self.boundaries[-1]._replace(at=index.node)
            elif place == self.look and self._always_turns():
                self.left()
                break
            self._decode()
            yield at(index)
            place += 1
        else:
            self._boundary(frame, None)
            self._finish()
            self._decode()
        yield from self.what.items(place)

    def part(self, frame: FrameType, value: Tracer, names: tuple[str, ...]) -> bool:
        """A part of the test. Those that follow are computed where it ends the loop, too, if their names stand for numbers."""
        self.parts.append(value)
        if value.value:
            return True
        known = {**frame.f_builtins, **frame.f_globals, **frame.f_locals}
        return all(type(known.get(name)) in (Tracer, *NUMBERS) or known.get(name) is abs for name in names)

    def again(self, frame: FrameType, test: Any) -> bool:
        """A loop with a test comes to it: does it go on?"""
        parts, self.parts = self.parts, []
        if parts and (type(test) is Tracer or not parts[-1].value):
            test = functools.reduce(AND, [*parts, test] if type(test) is Tracer else parts)
        elif not all(parts):
            test = False
        return self._tested(frame, test, {})

    def leaves(self, frame: FrameType, condition: Any) -> bool:
        """A loop comes to the ``if`` by which it is left: is it?"""
        if self.counter is None:
            return not self._tested(frame, NOT(condition) if type(condition) is Tracer else not condition, {})
        more = self._is_more()
        if self._is_told_by_ways(condition) and type(condition) is not Tracer:
            condition = self.number("leaves", np.bool_(bool(condition)))
        if type(condition) is not Tracer:
            self._tested(frame, more if not condition else False, {COUNTER: self.counter})
            return bool(condition)
        if self._tested(frame, AND(NOT(condition), more), {EXIT: condition, COUNTER: self.counter}):
            return False
        return bool(condition)

    def _is_told_by_ways(self, condition: Any) -> bool:
        """Whether the ways that iterations go tell which is the last one, or that something else does; it begins anew where
        this one does for the first time."""
        cause, traced = Ended(self.place), type(condition) is Tracer
        otherwise = bool(self.boundaries) and (EXIT in self.boundaries[-1].nodes) is not traced
        if (otherwise or (not traced and condition)) and cause not in self.trace.apart:
            self._note_decisions()
            if self.forked:
                self._ask_anew(cause)
        return cause in self.trace.apart

    def left(self) -> None:
        """A loop is left in the middle of an iteration: what that decided on is the loop's, which stays unrolled."""
        self._note_decisions()
        self.boundaries, self.pattern = [], None
        self.trace.quiet, self.trace.decides = False, math.inf

    def _tested(self, frame: FrameType, test: Any, more: dict[Key, Tracer]) -> bool:
        """A boundary where the loop may end."""
        trace = self.trace
        counted = self.open and (self.boundaries or self.ends is not None)
        if counted and type(test) is not Tracer:  # as one that hangs on something
            test = self.number("again", np.bool_(bool(test)))
        if type(test) is Tracer:
            self._note_decisions()
            # how often it runs may hang on what was decided
            if not self.open and (test.node.active or self.forked or trace.turns(test, within=self)):
                self.open, self.pattern = True, None
                if len(self.boundaries) > 1:
                    self.boundaries = []
                trace.watched = True
            more = {**more, TEST: test}
            trace.watched |= self.leaps
        self._boundary(frame, None, more)
        if type(test) is Tracer:
            if not (self.leaps and self._leap(None)) and self.forked:
                self._leap_known(len(self.boundaries) - 1, None)
            self.tests.append(test.node)
        before = len(trace.guards)
        goes_on = bool(test)
        if len(trace.guards) > before:
            trace.guards[-1] = trace.guards[-1]._replace(loop=True)
        if not goes_on:
            self._finish()
        self._decode()
        return goes_on

    def _boundary(self, frame: FrameType, index: Tracer | None, more: dict[Key, Tracer] | None = None) -> None:
        """An iteration begins (or, at the last boundary, the loop ends)."""
        trace = self.trace
        self.place = self.place or (math.inf, frame.f_code, frame.f_lineno, frame.f_lasti)  # code may have a test twice
        self._tidy()
        self._note_decisions()
        if not self.boundaries:
            told = [one for one in trace.apart if type(one) in (Moved, Turned) and one.place == self.place]
            self.turns_at = {one.at for one in told if type(one) is Turned}
            numbers = [one.keys for one in told if type(one) is Moved]
            line = frame.f_code.co_filename, frame.f_lineno
            self.stated = {one.name for one in trace.apart if type(one) is Stated and one.line == line}
            self.logs.begin(self.place)
            self.forked |= bool(self.logs.some)
            self.moving = trace.moving.get(self.place)
            if numbers:
                self.moving = (self.moving or set()).union(*numbers)
            self.forked |= Crossed(self.place) in trace.apart
        self.forked |= self.moving is not None
        turning = bool(self.saw) and len(self.boundaries) < FAR
        thorough = self.open or self.leaps or self.forked or turning or not self.boundaries
        self.whole &= thorough
        if self.boundaries:
            self.many = max(self.many, EACH * (len(trace.graph.nodes) - self.boundaries[-1].length))
        if self.anew or self.forked or self.open:
            self.held = Counter(map(id, frame.f_locals.values()))
            self.left_in = Counter([id(value) for name, value in frame.f_locals.items() if name in self.unread])
        if self.forked:
            within = frame.f_code.co_cellvars, frame.f_code.co_freevars  # which functions may assign that it calls
            self.names = self.names._replace(stored=self.names.stored.union(*within))
        if not self.boundaries:
            self.start = trace.graph.next_index
        self._lift(frame)
        self.coded = self._code(frame)
        if self.forked:
            self._note_others(frame.f_locals)
        if trace.selections is not None:
            if self.boundaries:
                trace.weed(self.boundaries[-1].writes, len(trace.writes))
            known = map(frame.f_locals.get, self.unread)
            trace.selections.begin(self.start, {id(x.node) for x in known if type(x) is Tracer and is_held_so_often(x, 0, 1)})
        coded = self.stated & self.names.targets.union(self.dead)  # what is in these is in their numbers' place
        unread = self.unread | coded
        self.boundaries.append(
            self._seen(frame, None if index is None else index.node, thorough, more, unread, coded=self.coded)
        )
        self._take_in()
        self._compare()
        self.met_at = None
        trace.decides = -1 if self.forked else len(trace.guards)

    def _seen(
        self,
        frame: FrameType,
        at: Node | None,
        thorough: bool,
        more: dict[Key, Tracer] | None,
        unread: Collection[str] = (),
        called: Sequence[FrameType] = (),
        coded: dict[Key, Any] | None = None,
    ) -> Boundary:
        """What there is now, but for selections in locals that are ``unread`` until they are assigned again; and in functions
        that are ``called``."""
        trace = self.trace
        if trace.hooks is not None:
            trace.hooks.codes.decode_all(() if coded is None else coded.values())
        names, code = frame.f_locals, frame.f_code
        own = {name: names[name] for name in (*code.co_cellvars, *code.co_freevars) if name in names}
        early = not self.passed and len(self.boundaries) < 2  # the first iteration may make lists
        numbers = {key: one.code for key, one in (coded or {}).items()}
        survey = Survey(trace, thorough, self.many, own, self.logs, self._begin_log if early else None, numbers)
        holds, nodes = survey.holds, {}
        if more and COUNTER in more:  # the local that has the same value got it from there
            holds[COUNTER] = more[COUNTER]
        for name in [*(name for name in names if name not in unread), *(name for name in names if name in unread)]:
            value = names[name]
            if name in unread and not survey.known:
                survey.known = frozenset(survey.shared.values())
            grown = self._growing(code, name, value) if type(value) is list else None
            if grown is not None:
                survey.rest[name], more_holds = grown.seen(name, trace)
                holds.update(more_holds)
                survey.containers |= {id(value), *map(id, more_holds.values())}
            elif type(value) is Tracer and value.node.index < 0 and (name in unread or not trace.is_set_aside(value.node)):
                continue  # or it was so in another loop
            elif type(value) in (Chosen, Later) and (name in unread or name not in self.names.stored):
                survey.containers |= value.idents
            elif type(value) is Tracer and not value.tape.draft and not thorough:
                holds[(name,)] = value
            elif name in unread and (name in self.stated or _is_of_numbers(value)):
                continue
            elif type(value) in SEALED and name in self.apart and self._is_sealed(name, value):
                survey.containers.add(id(value))
                survey.rest[name] = APART
            elif not name.startswith(HIDDEN):
                survey.local(name, value)
        for depth, one in enumerate(called, 1):
            for name, value in one.f_locals.items():
                if not name.startswith(HIDDEN):
                    survey.local(inner(depth, name), value)
        if early:
            self.logs.meet(survey.lists)
        for name, *_ in [key for keys in survey.drafts.values() if len(keys) > 1 for key in keys] if thorough else ():
            survey.rest[name] = (survey.rest[name], SHARED)  # what is written into one is in the others
        if more:
            holds.update(more)
        if self.stop is not None:
            holds[STOP] = self.stop
        elif self.ends is not None:
            survey.rest[STOP[0]] = ("stop", self.ends.stop)
        if trace.hooks is not None and trace.hooks.round:
            holds.update(trace.hooks.going_round())
            survey.containers.update(map(id, trace.hooks.owners()))
        for key, tracer in holds.items():
            if tracer.base is not None:
                tracer.refresh()
            if tracer.node.index < 0:
                trace.selections.look_at(tracer)  # type: ignore[union-attr]
            nodes[key] = tracer.node
        counts = len(trace.graph.nodes), len(trace.guards), len(trace.peeks), len(trace.writes), len(trace.met)
        return Boundary(*counts, holds, nodes, survey.rest, survey.containers, survey.shared, at, {}, [])

    def _is_sealed(self, name: str, value: Any) -> bool:
        """Whether nothing that the loop has to do with can change a list, or the like: that was so when it began."""
        if not self.boundaries:
            self.sealed.pop(name, None)
            if not self.place:  # looked at from a loop in it
                return False
            code, often = self.place[1], self._noted() if holds_arrays(value) else Counter(map(id, self.trace.writes))
            lists = [grown for roller in self.trace.rollers for grown in roller.grown.values()]
            often.update([id(one) for grown in lists for one in (grown.owner, *grown.items)])
            # its holders: the local, and the frame's copy; who calls this, and this name
            alone = is_held_so_often(value, often[id(value)] + 1, 1)
            if alone and name not in code.co_cellvars and name not in code.co_freevars and holds_plain(value, often):
                self.sealed[name] = id(value)
        return self.sealed.get(name) == id(value)

    def _growing(self, code: CodeType, name: str, value: list[Any]) -> Grown | None:
        """What is known of a list that iterations append to: where they decide, and in the first one; or of one to which those
        of a loop around this one do, which only reads it."""
        if name not in self.lists:
            return self.around._is_growing(name, value) if self.around is not None else None
        if name in code.co_cellvars or not (self.forked or len(self.boundaries) < 2):
            return None
        if not self.boundaries:
            grown = self.grown[name] = Grown(value, *self.lists[name])
            if grown.some and self.what is not None:
                self._make(name, grown)
            if self.what is not None and Begun(self.place, name) in self.trace.apart:
                grown.begin_with(self.trace, self.what.length)
        return self.grown[name] if name in self.grown and self.grown[name].owner is value else None

    def _make(self, name: str, grown: Grown) -> None:
        """Make the array, and the mask, of a list to which but some iterations append, so that runs are alike that append
        nothing."""
        assert self.what is not None
        every = [ways.nodes[name, WHOLE].aval for ways in self._known(None)[1] if (name, WHOLE) in ways.nodes]
        kinds = [(aval.shape[1:], aval.dtype) for aval in every]
        grown.shape, dtype = next((kind for kind in kinds if kind != _OF_NUMBERS), _OF_NUMBERS)
        grown.make(self.trace, self.what.length, dtype)

    def _is_growing(self, name: str, value: list[Any]) -> Grown | None:
        """What is known of a list to which the iterations of this loop, which decide, append; or those of one around it."""
        grown = self.grown.get(name)
        if grown is None or grown.owner is not value:
            return self.around._is_growing(name, value) if self.around is not None else None
        return grown if self.forked and grown.whole and not (grown.rolled or grown.shape) else None

    def appended(self, name: str, owner: list[Any]) -> None:
        """An iteration has appended an item to a list."""
        grown = self.grown.get(name)
        if grown is None or grown.owner is not owner:
            return
        if grown.rolled:
            grown.take_last(self._place())
        elif self.forked or len(self.boundaries) == 1:
            self._append(name, grown)

    def _may_log(self) -> bool:
        """Whether it may know lists that objects hold: there are many iterations, or there is room for many."""
        known = self.what is not None and not self.section
        return known and (self._turns() > FAR or self._is_often(self._turns()) or Filled(self.place) in self.trace.apart)

    def _begin_log(self, holders: Holders, owner: list[Any]) -> None:
        """The loop begins, or its second iteration does, and an object has a list by now to which some iterations may
        append."""
        if holders.key in self.logs.some and self._may_log() and id(owner) not in self.logs.lists:
            row, before = self.logs.some[holders.key], self.trace.hooks.pending(owner)
            if row is not None or Resumed(self.place, holders.key) in self.trace.apart:
                self.trace.hooks.listed(owner)
            elif before is not None:
                before.settle()
                before.is_resumed = not before.is_whole
            log = self.logs.add(holders, owner, len(owner), row, True)
            log.before = before if before is not None and before.is_resumed else None
            for name, grown in log.columns.items():
                self._make(name, grown)

    def takes(self, owner: list[Any]) -> None:
        """An iteration has appended an item to a list of which the source may not tell, as an object holds it."""
        if id(owner) not in self.logs.known and not any([grown.owner is owner for grown in self.grown.values()]):
            # of a ``while`` loop without room, nobody knows yet what its test asks that goes round with some
            holders = self.logs.lists.get(id(owner)) if self.line else self.logs.holders_of(owner)
            if holders is not None and not (self.line or self._may_log()):
                self.fills, holders = True, None
            if holders is None:
                if self.around is not None:
                    self.around.takes(owner)
                return
            if self.line:
                if self._count() >= (SHORT if self.open else FAR):
                    self._ask_anew(Counted(self.place[1].co_filename, self.line))
                return
            if len(self.boundaries) > 1 or self.passed or self.tested:
                self.logs.seen_late[id(owner)] += 1
                if self.logs.seen_late[id(owner)] > 1:
                    self._ask_for_log((holders.key, Row.of(owner[-1])))
                return
            self.logs.add(holders, owner, len(owner) - 1, Row.of(owner[-1]), False)
        if id(owner) in self.logs.known and self.marks():
            self._ask_for_log(self.logs.left_out(self._count()))
            log = self.logs.known[id(owner)]
            log.take_apart()
            for name, grown in log.columns.items() if log.whole else ():
                self._append(name, grown)

    def _ask_for_log(self, found: tuple[Key, Row | None] | None) -> None:
        """End the run: in the next one, there is a mask beside a list to which not all iterations append."""
        if found is not None:
            self._ask_anew(Logged(self.place, *found))

    def _ask_anew(self, cause: Any) -> None:
        if cause not in self.trace.apart and self._may_begin_anew():
            raise self.trace.refuse(Otherwise(frozenset([cause])))

    def reads_near(self, owner: list[Any], far: int) -> bool:
        """An iteration, maybe one around it, reads so far from the end of a list that an object holds: does that go round?"""
        loop = self._knows(owner)
        if loop is None:
            every = [one.logs.reads_near(owner, far, len(one.boundaries) == 1) for one in (self, *self._all_around())]
            return all(every)
        log = loop.logs.known[id(owner)]
        loop._reads(log)
        own = int(log.first.latest == loop._now())  # items of this iteration, to which the test of the next one belongs
        for name, grown in log.columns.items() if loop._is_early() else ():
            if grown.places is None:
                loop._deepen(name, grown, far - own, own)
        return far - own <= log.deepest

    def length_of(self, owner: list[Any]) -> Any:
        """How long a list is that an object holds, if that goes round, or first iterations ask; None if not."""
        loop = self._knows(owner)
        if loop is None:
            return len(owner) if all([len(one.boundaries) == 1 for one in (self, *self._all_around())]) else None
        log = loop.logs.known[id(owner)]
        loop._reads(log)
        if log.some and log.first.count is None:
            loop._ask_anew(Measured(loop.place, log.holders.key))
        if log.some or not log.whole:
            return log.first.count if log.whole else None
        place = loop._place()
        return len(owner) if len(loop.boundaries) == 1 else place + (len(owner) - int(plain(place)))

    def _reads(self, log: Log) -> None:
        """An iteration asks what is in a list: if it is one of some items that goes on, the run ends, and all are in it in the
        next one."""
        if log.before is not None:
            self._ask_anew(Resumed(self.place, log.holders.key))
            log.before.listed()

    def _knows(self, owner: list[Any]) -> Roller | None:
        """The loop that knows such a list: this one, or one around it; None where none does."""
        return next((one for one in (self, *self._all_around()) if id(owner) in one.logs.known), None)

    def is_near(self, name: str, owner: list[Any], key: Tracer) -> bool:
        """Whether ``key`` is as far from the end of a list, to which each iteration appends an item, in all of them."""
        grown = self.grown.get(name)
        if grown is None or grown.owner is not owner or grown.some or self.what is None or self.what.step != 1:
            return False
        if not counts(key.node, self.serial) or not 0 <= key.value < len(owner):
            return False
        far = len(owner) - int(key.value)
        if self._is_early() and len(owner) == grown.begin + len(self.boundaries) - 1:
            self._deepen(name, grown, far)
        return far <= grown.deepest

    def _is_early(self) -> bool:
        """Whether it runs one of its first iterations."""
        return not (self.passed or self.skipped or self.leapt) and len(self.boundaries) <= 1 + DEEP

    def _deepen(self, name: str, grown: Grown, far: int, own: int = 0) -> None:
        """An iteration that has appended so many items of its ``own`` reads so far from where the end of a list was before."""
        for place, item in grown.deeper(name, far, self.trace, own).items():
            for bound in self.boundaries[-1].every():
                bound.holds[place], bound.nodes[place] = item, item.node
                bound.containers.add(id(item))

    def appended_at(self, name: str, owner: list[Any], key: Tracer) -> Any:
        """What is at a traced place of such a list, from the array that goes round; None if it is not known to be there."""
        grown, what, kind = self.grown.get(name), self.what, key.node.aval
        if grown is None or grown.owner is not owner or grown.rolled or what is None or not (self.forked and self.boundaries):
            return None
        if not isinstance(kind, Aval) or kind.shape or kind.dtype.kind not in "iu":
            return None
        if grown.shape and self.place in self.trace.apart:  # somebody can tell copies from what was appended
            return None
        run = [(one.serial, one.what) for one in self.trace.rollers if one.what is not None and one.ends is None]
        others = {serial: other.start for serial, other in run if other.step > 0}
        ahead = lead(key.node, self.serial, others) if what.step == 1 else None
        least = what.start - ahead if ahead is not None and counts(key.node, self.serial) else None
        if 0 <= key.value < grown.begin and not grown.front and grown.may_begin():
            self._ask_for_begin(name)
        item = grown.at(key, self._place(), least, None if ahead is None else ahead - what.start)
        if item is None or not grown.shape:
            return item
        grown.part(self.place)
        return self.trace.stand_in(item, self.place)

    def _ask_for_begin(self, name: str) -> None:
        """End the run: in the next one, the array beside a list has the items, too, that were there before the loop."""
        self._ask_anew(Begun(self.place, name))

    def _place(self) -> Any:
        """Which item of what it runs over is at hand, from 0 on."""
        assert self.what is not None
        at = self.boundaries[-1].at if self.boundaries else None
        place: Any = self.counter if at is None else self.trace.lookup(at)
        start, step = self.what.start, self.what.step
        if (start, step) != (0, 1):
            place = place - start if step == 1 else (place - start) // step
        return place

    def _now(self) -> int:
        """Which one was at hand when the iteration began, as a plain number."""
        assert self.what is not None
        at, begun = self.boundaries[-1].at, self.boundaries[-1].holds.get(COUNTER, self.counter)
        now: int = int(begun.value) if at is None else dict(at.params)["value"]
        return (now - self.what.start) // self.what.step

    def _append(self, name: str, grown: Grown) -> None:
        """An iteration that may be rolled up has appended an item."""
        assert self.what is not None
        place = self._place()
        if not grown.items:
            inner = any([one.boundaries for one in self.trace.rollers if one is not self])
            grown.begins(self.trace, self.what.length, place.value, None if inner else self.serial)
            for key, array in grown.arrays(name).items():
                for bound in [one for begin in self.boundaries for one in begin.every()]:
                    bound.holds[key], bound.nodes[key] = array, array.node
                    bound.containers.add(id(array))
        grown.take_in(self.trace, place)
        if grown.shape and self.place in self.trace.copied:
            grown.part(self.place)

    def met_last(self) -> tuple[int, int, int]:
        """The lengths of graph and notes where all ways met last: behind a statement, or as the iteration began."""
        return self.met_at or self.boundaries[-1][:3]

    def marks(self) -> bool:
        """Whether it notes where ways through an iteration meet."""
        return self.forked or len(self.boundaries) == 1

    def _is_in(self, frame: FrameType) -> bool:
        """Whether its statement is there."""
        return frame.f_code is self.place[1] and any([value is self for value in frame.f_locals.values()])

    def within(self, frame: FrameType, loop: Any, site: Any, dead: tuple[str, ...]) -> None:
        """An iteration begins of a ``loop`` within this one, maybe in a function that is called: all ways through the iteration
        before meet there, if they come there at all."""
        called: list[FrameType] = []
        around: FrameType | None = frame
        while around is not None and not self._is_in(around):
            if any([name.startswith(HIDDEN) for name in around.f_code.co_freevars]):  # the user's
                called.append(around)
            around = around.f_back
        if around is None:
            return
        turned = self.boundaries[-1].turned
        often = how_often(loop.what if type(loop) is Roller else loop)
        event = (frame.f_code, site, often, *[one.f_lasti for one in (*called, around)[1:]])
        if type(loop) is Roller:
            if len(loop.boundaries) == 1:
                loop.begun = []
                if loop.what is not None:  # how often others run, locals tell
                    turned.append(event)
            if not called:
                unread = frozenset(dead)
                bound = loop._seen(frame, self.boundaries[-1].at, True, None)
                loop._look_into_sealed(frame)
                loop.begun.append(Join(bound, unread, unread))
            return
        turned.append(event)
        if called:
            dead = (*self._unasked(around), *[inner(len(called), name) for name in dead])
        if len(turned) <= WIDEST:
            self.met(around, tuple(turned), dead, dead, called[::-1])

    def _unasked(self, frame: FrameType) -> list[str]:
        """The locals that nobody reads before they are assigned again: that was so where ways met last, or the iteration began,
        and they are as they were there; or each iteration does that, and none has."""
        joins = [*self.boundaries[-1].joins.values()]
        dead, held = (joins[-1].dead, joins[-1].bound.holds) if joins else (self.dead, self.boundaries[-1].holds)
        now = frame.f_locals
        same = [name for name in dead if ((name,) in held and held[name,] is now.get(name)) or name not in now]
        return [*same, *[name for name in self.unread if name not in now]]

    def met(
        self,
        frame: FrameType,
        number: Any,
        dead: tuple[str, ...],
        unused: tuple[str, ...],
        called: Sequence[FrameType] = (),
    ) -> None:
        """All ways through the statement before meet again here, maybe in the last of some functions that are ``called``."""
        trace = self.trace
        if not self.boundaries:
            return
        counts = len(trace.graph.nodes), len(trace.guards), len(trace.peeks)
        decided = number in self.joins or counts[1:] != self.met_last()[1:]
        if decided:
            self.met_at = counts
        if not self.marks():
            return
        self._tidy()
        self._lift(frame)
        last = self.boundaries[-1]
        if decided:
            self.joins.add(number)
            more = None if self.counter is None else {COUNTER: self.counter}
            bound = self._seen(frame, last.at, True, more, (), called, self._code(frame, False))
            last.joins[number] = Join(bound, frozenset(dead), frozenset(unused))

    def _lift(self, frame: FrameType) -> None:
        """Numbers in containers that iterations were seen to change are traced, wherever ways meet."""
        for name, *path in self.moving or ():
            if name in frame.f_locals:
                self.trace.hooks.lift(self, name, frame.f_locals[name], path)

    def _code(self, frame: FrameType, begins: bool = True) -> dict[Key, Any]:
        """Texts in containers that iterations were seen to change go on as numbers, where an iteration begins, or ways meet;
        those that are read unseen where an iteration ``begins`` alone."""
        found: dict[Key, Any] = {}
        for name, *path in self.moving or ():
            for owner, places, at in self.trace.hooks.texts(frame.f_locals.get(name), path):
                if begins or not _is_read_unseen(owner, places):
                    number = functools.partial(self.number, joined((name, *at)))
                    found[name, *at] = self.trace.hooks.codes.begin(owner, places, at[-1], number)
        return found

    def _decode(self) -> None:
        """What texts are is decided on at once where they are read unseen; in objects, where somebody asks for it."""
        for one in self.coded.values():
            if _is_read_unseen(one.owner, one.places):
                self.trace.hooks.codes.decode(one)

    def _tidy(self) -> None:
        """Forget what the statement of a loop within this one still held of its last iteration when that was rolled up."""
        if self.trace.untidy and self.boundaries:
            last = self.boundaries[-1]
            self.trace.forget([*last.joins.values()][-1].bound.length if last.joins else last.length)
            self.trace.untidy = False

    def _take_in(self) -> None:
        """Drafts that the iteration has made traced ones, and those that it has but read, are as if they had been
        traced all the time."""
        *before, last = self.boundaries
        for key in last.nodes.keys() - before[-1].nodes.keys() if before else ():
            first, *others = [bound.rest.get(key[0]) if len(key) == 1 else None for bound in before]
            if type(first) is not tuple or first[0] is not DRAFT or any([other != first for other in others]):
                continue
            owner = last.holds[key].owner()
            if sum([tracer.owner() is owner for tracer in last.holds.values()]) > 1:
                continue
            node = self._taken_in(last.nodes[key], first[1:])
            if node is not None:
                for one in [one for bound in before for one in bound.every()]:
                    if one.rest.get(key[0]) == first:
                        one.holds[key], one.nodes[key], one.rest[key[0]] = last.holds[key], node, TRACED

    def _taken_in(self, now: Node, before: tuple[Any, ...]) -> Node | None:
        """What a plain array of that content, of which the iteration has made ``now``, would have been; None if not known."""
        if now.op is CAPTURED:
            return now if content_of(self.trace.graph.arrays[now]) == before else None
        taken = self.trace.taken_as(before)
        return None if taken is None else taken.node

    def _note_decisions(self) -> None:
        """Of the iteration that has just ended: as long as these are not rolled up, they are those of a loop."""
        if not self.boundaries:
            return
        trace, last = self.trace, self.boundaries[-1]
        if len(self.boundaries) == 1 and self.logs.known:
            self.logs.settle(last, self.number)
            if self.logs.known and not self.forked:
                self.forked, self.nested = True, self._is_often(self._turns())
        if len(self.boundaries) == 2 and not (self.passed or self.skipped):
            self.logs.drop_single(self.boundaries)
        if len(self.boundaries) == 1 and not self.forked and self.counts and any([one.items for one in self.grown.values()]):
            assert self.what is not None
            arrays = any([one.items and one.shape for one in self.grown.values()]) and self.what.length >= SHORTEST
            self.nested = self.forked = arrays or self.ran * self.what.length >= OFTEN
        floor = trace.index_before(last.length)
        begun = self.boundaries[0].nodes  # what an iteration has left in a local, the next one may decide on
        left = {node for key, node in last.nodes.items() if key not in (TEST, EXIT) and begun.get(key) is not node}
        guards = range(last.guards, len(trace.guards))
        decided = [i for i in guards if trace.guards[i].node.index > floor or trace.guards[i].node in left]
        for i in decided:
            trace.guards[i] = trace.guards[i]._replace(loop=True)
        stuck = False
        if not self.forked and self.counts and self.around is not None:
            self.crosses = self.crosses or self._compares_indices(trace.peeks[last.peeks :])
            self.busy += any([node.active for node in trace.graph.nodes[last.length :]])
        if not self.forked and (self.open or self.what is None or self.what.length >= FAR):
            peeks = [peek for peek in trace.peeks[last.peeks :] if type(peek.value) is bool and peek.node.index > floor]
            saw = tuple([peek.value for peek in peeks])
            if self.saw is not None and saw != self.saw:
                self._turn()
            self.saw = saw
            stuck = self.open and len(self.boundaries) > 2 and self.pattern is None and bool(saw)
        if (decided or self.turns >= TURNS or stuck) and not self.forked:  # from here on, all that locals hold is looked at
            self.forked = True
            if decided and self.around is not None:
                self.around.decided = True
            if len(self.boundaries) == 1 or (self.whole and not decided):
                self.pattern = None
                return
            self.passed += self.skipped + len(self.boundaries)
            self.boundaries, self.pattern, self.skipped = [], None, 0

    def _count(self) -> int:
        """How many iterations came before the one that began last."""
        return len(self.boundaries) - 1 + self.skipped + self.passed

    def _turn(self) -> None:
        """The iteration that has just ended decided otherwise than the one before. After many that are alike, the run ends: in
        the next one, those are a loop by then, and what is to come is another."""
        count, before = self._count(), self.turned
        self.turns, self.turned = self.turns + (self.open or self.what is not None), count
        steady = self.pattern is not None and not (self.open or self.tested) and count - before >= FAR
        if steady and count not in self.turns_at and self._may_begin_anew() and not self._is_kept():
            raise self.trace.refuse(Otherwise(frozenset([Turned(self.place, count)])))

    def _may_begin_anew(self) -> bool:
        """Whether the run may end, and another one begin that knows more."""
        trace, hooks = self.trace, self.trace.hooks
        return not (trace.impure or trace.lanes or trace.exemplary or hooks is None or hooks.impure or hooks.effects)

    def _compares_indices(self, looks: Sequence[Peek]) -> bool:
        """Whether an iteration decided on where both this loop and one around it are, as on ``i != j``: each run of this one
        goes its ways at other iterations, then."""
        tests = [look.node for look in looks if type(look.value) is bool]
        around = {loop.serial for loop in self._all_around()} if tests else set()
        loops = [{loop_number(node) for node in ancestors([test]) if node.op is INDEX} for test in tests]
        return any([self.serial in some and not around.isdisjoint(some) for some in loops])

    def _ask_for_ways(self) -> None:
        """End the run where many iterations do something as both indices tell: in the next one, these decide in code."""
        count = self._count()
        if self.crosses and not self.forked and BAND * self.busy >= count and count * self._around() >= OFTEN:
            self._ask_anew(Crossed(self.place))

    # ---- matching ----

    def _compare(self) -> None:
        """Does the iteration that has just ended follow the pattern, or does it make one with the iteration before?"""
        bounds = self.boundaries
        count = len(bounds) - 1
        if count < 2 or self.leapt:
            return
        self.trace.quiet = False
        if self.pattern is not None and self._matching().follows(self.pattern, bounds[-2], bounds[-1]):
            self.trace.quiet = True
            chunk = 2 * LEAP if TURNING in self.trace.apart else CHUNK
            turns = self._count() in self.turns_at
            if not (self.open or self.kept or self.forked) and (turns or (count - self.first) % chunk == 0):
                self._chunk()
            elif count > self.first + 3 and not self.forked and not (self.saw and count < FAR):
                early = slice(-3 if bounds[self.first + 2].length < 0 else self.first + 2, -2)
                bounds[early], self.whole = [bound.bare() for bound in bounds[early]], False
            return
        if self.pattern is not None:
            self._give_up()
        if count == FAR and self.first == count - 3 and not (self.forked or self.open):
            self._ask_for_numbers()
        if bounds[-3].length >= 0:
            before, matching = bounds[-4].length if len(bounds) > 3 else -1, self._matching()
            # what the first iteration asks for may have been there, since one of the loops around began its own
            outer = self._all_around() if before < 0 and self.ends is not None else ()
            began = [loop.boundaries[-1].length for loop in outer if loop.boundaries]
            if before < 0 and self.tested:  # or since this one did, whose first test comes before its first iteration
                began.insert(0, self.opened)
            for start in [*began[:1], before, *began[1:]]:
                self.pattern = self.pattern or matching.infer(start, *bounds[-3:])
            self.first = count - 2

    def _all_around(self) -> Iterator[Roller]:
        """The loops in whose iterations it runs, from the inner ones on."""
        loop = self.around
        while loop is not None:
            yield loop
            loop = loop.around

    def _matching(self) -> Matching:
        return Matching(self.trace, self.serial, self.open, self.anew, self.unread if TURNING in self.trace.apart else ())

    def _give_up(self) -> None:
        """The stretch ends here."""
        self.pattern, self.passed, self.skipped = None, self.passed + self.skipped, 0

    # ---- rolling ----

    def _finish(self) -> None:
        """The loop has ended as it should: put a ``Loop`` in place of the iterations that follow the pattern."""
        self._ask_for_ways()
        self.more = False
        self.trace.quiet, self.trace.decides = False, math.inf
        if self.around is not None:
            self.around.ran += len(self.boundaries) - 1 + self.skipped + self.ran
        self.forked |= self.open and self.whole and self.pattern is None and bool(self.saw)
        grows = any([grown.items for grown in self.grown.values()])
        late = self.first > 1 and not self.skipped
        crossed = not self.trace.apart.isdisjoint([Crossed(self.place), Ended(self.place)])
        if self._lie_otherwise():
            self.pattern = None
        elif self.forked and (self.pattern is None or crossed or self.leapt or grows or late):
            self._fork()
            if self.leapt and self.boundaries:  # what was run at once is a loop of its own
                self.trace.leaping.add(self.serial)
        elif self.pattern is not None and not self.kept:
            self._forget_joins()
            if self.forked:  # nobody asks again, as it turns out
                self.boundaries[self.first + 2 : -2] = [bound.bare() for bound in self.boundaries[self.first + 2 : -2]]
            if not self._is_kept() and self._roll(2 if self.open else SHORTEST) == 0 and self.open:
                self._tell()
        elif self.open and not self.forked and len(self.boundaries) <= 2:
            self._recall()
        if self.forked and self.boundaries:
            if len(self.boundaries) > SHORTEST or self.section:
                self._note_numbers(self.boundaries)
            if not self.passed:
                self._stay()
        self.boundaries, self.pattern, self.begun = [], None, []

    def _lie_otherwise(self) -> bool:
        """Whether arrays that iterations bind to names lie in memory by columns, say, and what is a view of them hangs on that:
        others may leave them by rows, and code has one way for all."""
        if not self.boundaries or (self.trace.laid and LAID not in self.trace.apart):
            return False
        first, *later = self.boundaries
        bound = [(key, x) for one in later for key, x in one.holds.items() if x is not first.holds.get(key)]
        found = [x.like for _, x in bound] + [first.holds[key].like for key in {key for key, _ in bound} & first.holds.keys()]
        laid = any([type(array) is np.ndarray and array.ndim > 1 and not array.flags.c_contiguous for array in found])
        self.trace.laid |= laid
        return laid and LAID in self.trace.apart

    def _stay(self) -> None:
        """Iterations that decide stay as they were recorded: the loop around may be rolled up with them in it."""
        bounds = self.boundaries
        if self.around is not None and self.around.boundaries and self.whole and len(self.begun) == len(bounds) - 1:
            around = self.around.boundaries[-1]
            for i, (bound, begun) in enumerate(zip(bounds, self.begun, strict=False)):
                for site, join in [(0, begun), *bound.joins.items()]:
                    moved = self._with_sealed(join.bound)._replace(at=around.at)
                    around.joins[*around.turned, i, site] = Join(moved, join.dead, join.dead)
            around.turned.append(tuple([tuple(bound.turned) for bound in bounds]))

    def _look_into_sealed(self, frame: FrameType) -> None:
        """Note what lists hold that it has nothing to do with: a loop around may."""
        if self.within_sealed is None and self.around is not None:
            self.within_sealed = survey = Survey(self.trace, False, self.around.many, {})
            for name in self.sealed.keys() - self.around.sealed.keys():
                survey.local(name, frame.f_locals[name])

    def _with_sealed(self, bound: Boundary) -> Boundary:
        """What was there, for the loop around: nothing has changed what lists hold that this one has nothing to do with."""
        survey = self.within_sealed
        if survey is None or not survey.holds:
            return bound
        return bound._replace(
            holds=bound.holds | survey.holds,
            nodes=bound.nodes | {key: tracer.node for key, tracer in survey.holds.items()},
            containers=bound.containers | survey.containers,
            shared=bound.shared | survey.shared,
        )

    def _note_numbers(self, bounds: Sequence[Boundary]) -> None:
        """Later calls trace the numbers in containers that these iterations change, if they change nothing else."""
        trace = self.trace
        if trace.impure or trace.lanes or len(bounds) <= 1:
            return
        changed = self._changed(bounds)
        if changed or (changed is not None and self.asked):  # and those in the other items of the same lists
            every = {wide(key) for key in changed}
            trace.moving[self.place] = every | trace.moving.get(self.place, set())

    def _changed(self, bounds: Sequence[Boundary]) -> set[Key] | None:
        """Where iterations changed numbers in containers; None if they changed something else that is not traced."""
        changed: set[Key] = set()
        for b, c in itertools.pairwise(bounds):
            for name in (b.rest.keys() & c.rest.keys()) - self.unread:
                found = moved(b.rest[name], c.rest[name], (name,))
                if found is None and not self.asked:
                    return None
                changed |= found or set()
        return changed

    def _ask_for_numbers(self) -> None:
        """End the run where no two of many iterations are alike, and they change plain numbers in containers: in the next one,
        these are traced."""
        changed = self._changed(self.boundaries) if self.whole and self._may_begin_anew() else None
        if changed:
            raise self.trace.refuse(Otherwise(frozenset([Moved(self.place, frozenset(changed))])))

    def _tell(self) -> None:
        """Let runs of the statement that are too short to tell know what this one became."""
        trace, (start, *_, end) = self.trace, self.boundaries
        keys, late = self.wanted
        looks = trace.guards[start.guards :] + trace.peeks[start.peeks :]
        owners = [owner for owner in trace.writes[start.writes : end.writes] if owner is not GONE]
        written = [key for key in keys if any([owner is start.holds[key] for owner in owners])]
        names = Counter([id(tracer.owner()) for tracer in start.holds.values()])
        if any([names[id(start.holds[key])] > 1 for key in written]):
            return  # what is written into one of them is in both, here
        changes = any([type(owner) is not Tracer for owner in owners])
        if changes and len({*start.shared.values()}) < len(start.shared):
            return
        seen = start.containers | {id(start.holds[key]) for key in written}
        unseen = trace.unseen_writes(start.writes, end.writes, seen)
        if self.passed or unseen or any([look.node is not start.nodes[TEST] for look in looks]):
            return
        assert self.pattern is not None
        outline = self._outline(start, end)
        kinds = {key: outline.kind(key) for key in (*keys, *late)}
        again = frozenset(trace.met[start.met : end.met])
        place = (*self.place, Run)
        trace.ways.pop(place, None)  # so that it comes last
        put = [key for key in start.nodes if key[0] in self.names.stored or (changes and len(key) > 1)]
        put = [
            key
            for key in put
            if key not in self.pattern.after and (is_read_outside(key, self.private) or key[0] not in self.unread)
        ]
        arrays = {}
        if trace.graph.arrays:
            met = read_there(self.pattern, start.nodes, put)
            arrays = {node: trace.graph.arrays[node] for node in met if node.op is CAPTURED}
        more = kinds, not looks, arrays, again, put, written, changes
        trace.ways[place] = [Run(self.pattern, start.nodes, start.rest, keys, late, *more)]

    def _recall(self) -> None:
        """Put a ``Loop`` in place of no iteration, or one, if longer runs of the statement became one."""
        trace, hooks, place = self.trace, self.trace.hooks, (*self.place, Run)
        if trace.impure or trace.lanes or trace.trying or hooks is None or hooks.impure or hooks.effects:
            return
        if self.place in trace.apart:
            return
        idle = len(self.boundaries) == 1
        known = self._known_run(place, idle)
        if known is not None:
            run, self.pattern = known
            written, changes = (run.written, run.changes) if idle else ([], False)
            if idle:
                self._idles({key: run.kinds[key] for key in run.late})
            self.first, self.wanted, self.kinds, self.short = 0, (run.keys, run.late), run.kinds, True
            del run, known
            if self._roll(0) is not None:
                trace.recalled |= place not in trace.ways
                for key in written:  # in other calls
                    array = self.boundaries[-1].holds[key]
                    array.touch()
                    trace.writes.append(array)
                trace.writes += [GONE] * changes
        elif idle:
            self.forked = self.short = True
            self._fork()

    def _known_run(self, place: Any, idle: bool) -> tuple[Run, Pattern] | None:
        """A run of the statement that this one, if it is not ``idle``, did as; and its pattern here."""
        start, end = self.boundaries[0], self.boundaries[-1]
        for run in self.trace.ways.get(place) or self.trace.known_ways.get(place, ()):
            pattern = run.here(self.trace, start, self.apart) if run.always or not idle else None
            if pattern is None:
                continue
            if idle or self._matching().follows(pattern, start._replace(rest={**end.rest, **start.rest}), end, alone=True):
                return run, pattern
        return None

    def _idles(self, late: dict[Key, Any]) -> None:
        """A loop runs no iteration: what each would leave behind, and nobody reads, is as if it was there."""
        (start,) = self.boundaries
        holds = {key: self.trace.constant_like(0.0, kind) for key, kind in late.items()} | start.holds
        rest = {str(key[0]): TRACED for key in late} | start.rest
        end = start._replace(holds=holds, nodes={key: tracer.node for key, tracer in holds.items()}, rest=rest)
        self.boundaries, self.skipped = [start, end], -1

    def _changes_its_list(self, pattern: Pattern) -> bool:
        """Whether iterations put something into a list that the loop runs over, of which code has what was there before."""
        lists = {id(one) for one in self.what.lists} if self.what is not None else set()
        shared = self.boundaries[-1].shared
        return not lists.isdisjoint([shared.get(key[:-1]) for key in pattern.after if len(key) > 1])

    def _forget_joins(self) -> None:
        """Nobody asks where ways meet any more."""
        for bound in self.boundaries:
            bound.joins.clear()

    def _ask_for_flags(self) -> None:
        """End the run where ways leave now a plain truth value in a local, now a traced one, or so a number where they meet:
        all are traced in the next one."""
        joins = [join for bound in self.boundaries for join in bound.joins.values()]
        every: dict[str, set[bool]] = {}  # whether it is a traced one
        met: dict[str, set[bool]] = {}
        for join in joins:
            for name, what in join.bound.rest.items():
                node = join.bound.nodes.get((name,))
                if name not in join.dead and (what[0] in (int, float, np.float64) if node is None else is_float(node.aval)):
                    met.setdefault(name, set()).add(node is not None)
        for bound, dead in [*[(join.bound, join.dead) for join in joins], *[(b, self.names.targets) for b in self.boundaries]]:
            for (name, *path), node in bound.nodes.items():
                if not path and name not in dead and isinstance(node.aval, Aval) and node.aval[:2] == BOOL[:2]:
                    every.setdefault(name, set()).add(True)
            for name, what in bound.rest.items():
                if what[0] in (bool, np.bool_) and name not in dead:
                    every.setdefault(name, set()).add(False)
        for name in sorted([name for kinds in (every, met) for name in kinds if len(kinds[name]) > 1]):
            self._ask_anew(Flag(self.place, name))

    def _ask_for_states(self) -> None:
        """End the run where iterations leave now this text in a local, or in an object, now that one, or other plain numbers or
        arrays in an object: in the next one, numbers go round, and what is in objects is traced."""
        left: dict[str, list[Any]] = {}
        for name, what in [pair for bound in self.boundaries for pair in bound.rest.items()]:
            if name not in self.unread and is_state(what) and what not in left.setdefault(name, []):
                left[name].append(what)
        causes: set[Any] = set()
        few = max(2, len(self.boundaries) // 3)
        near = [one for one in self._all_around() if one.place and one.place[1] is self.place[1]]
        for name, found in left.items():
            if len(found) > few and all([what[0] is int for what in found]):  # which counts
                causes.add(Flag(self.place, name))
            if len(found) == 1 or (len(found) > few and not any(map(is_text, found))):
                continue
            around = [one for one in near if name in one.boundaries[-1].rest and name not in one.unread]
            causes |= {Stated((one.place[1].co_filename, one.place[2]), name) for one in (self, *around)}
        for name, others in self.others.items():
            if len(others) > 1 and None not in others:
                known = frozenset([other for other in others if other is not None])
                loops = [one for one in (self, *near) if name in one.names.stored]
                causes |= {Stated((one.place[1].co_filename, one.place[2]), name, known) for one in loops}
        beside = {key for key, others in self.beside.items() if len(others) > 1 and None not in others}
        keys = {*beside}
        for b, c in itertools.pairwise(self.boundaries):
            for name in (b.rest.keys() & c.rest.keys()) - self.unread:
                keys |= turned(b.rest[name], c.rest[name], (name,))
        same = beside | {(one.name,) for one in causes if type(one) is Stated}  # what is in these is elsewhere as well
        keys = {key for key in keys if not any([key[:i] in same for i in range(1, len(key))])}
        if keys:
            causes.add(Moved(self.place, frozenset([wide(key) for key in keys])))
        if not causes <= self.trace.apart and self._may_begin_anew():
            raise self.trace.refuse(Otherwise(frozenset(causes)))

    def _note_others(self, names: Mapping[str, Any]) -> None:
        """Of the locals that iterations assign, and that hold an object or a function, note where there is that as well, or
        was as the loop began."""
        stored = self.names.stored | self.names.targets
        users = [name for name in names if not (name.startswith(HIDDEN) or name.endswith(FIRST))]
        held = {name: names[name] for name in users if may_be_held(names[name])}
        if not self.boundaries:
            self.firsts = {id(value): name for name, value in held.items() if name in stored}
        fixed = {id(value): name for name, value in held.items() if name not in stored}
        parts: dict[int, Key] = {}
        for name in held.keys() & stored - self.unread:
            one, value = id(held[name]), held[name]
            found: Key | None = None
            if type(value) is MethodType:
                owner = fixed.get(id(value.__self__), self.firsts.get(id(value.__self__)))
                found = None if owner is None else (owner, value.__name__)
            elif (other := fixed.get(one, self.firsts.get(one))) is not None:
                found = (other,)
            else:
                owners = [other for other in held if other not in stored]
                parts = parts or {id(part): (other, key) for other in owners for key, part in things_in(held[other])}
                found = parts.get(one)
            self.others.setdefault(name, set()).add(found)
        for name in held.keys() - self.unread:
            owner = held[name]
            fields = owner if type(owner) is dict else fields_of(owner)
            if isinstance(fields, dict) and len(fields) <= WIDEST and self.trace.hooks.path_of(owner) is None:
                for key in [key for key in fields if may_be_held(fields[key])]:
                    self.beside.setdefault((name, key), set()).add(next(iter(keys_beside(fields, key)), None))

    def flag(self, name: str, value: Any) -> Any:
        """What a call has left in a local: see ``Flag``."""
        return self.number(name, value) if Flag(self.place, name) in self.trace.apart else value

    def _fork(self) -> None:
        """Put a ``Loop`` in place of iterations that went different ways, if what they did is understood."""
        trace, hooks = self.trace, self.trace.hooks
        if trace.impure or trace.lanes or hooks is None or hooks.impure or hooks.effects or self.place in trace.apart:
            return
        self._ask_for_states()
        if self.fills and len(self.boundaries) > SHORTEST and len(trace.guards) > self.boundaries[0].guards:
            self._ask_anew(Filled(self.place))
        if (self.what is None or self.tested) and not self.open:
            return
        if len(self.boundaries) == 1 and self.around is None and self.tested and not self.boundaries[0].nodes[TEST].active:
            return  # its first item has settled that it ends there
        self._ask_for_flags()
        self.boundaries = bounds = without_twins(self.boundaries, self.private)
        way, skipped = self._way(), self.skipped
        if trace.trying and (self.what is None or any(map(may_raise, trace.graph.nodes[bounds[0].length : bounds[-1].length]))):
            return  # an exception may be caught that the loop's code would not raise
        if not self._lists_hold():
            return
        items = self._items()
        if items is None:
            return
        if self.open and len(bounds) + skipped <= SHORTEST:  # longer runs tell more
            trace.understood |= {guard.line for guard in trace.guards[bounds[0].guards :]}
        every, others = self._known(way)
        own, shared = [{id(known) for known in ways} for ways in (every, others)]
        shortest = 1 if self.section else SHORT if self.what is not None and self.what.length < SHORTEST else SHORTEST
        least = 0 if self.open else 1  # of a run of which others tell
        firsts = sorted({0, 1, self._settled(), self._grown(), self.like})
        most = functools.partial(sorted, key=Ways.many, reverse=True)  # so that all runs come to have the same
        tries: list[tuple[int, Ways | None, Sequence[Any]]] = []
        for known in [*most(others[::-1]), *most([known for known in every[::-1] if id(known) not in shared])]:
            some = {known.first} if self.open and id(known) not in own else {known.first, *firsts}
            tries += [(first, known, known.sites) for first in sorted(some, key=known.first.__ne__)]
        tries += [(first, None, meeting(trace, bounds[first:])) for first in firsts if len(bounds) - 1 - first >= shortest]
        tries.sort(key=operator.itemgetter(0))  # what is left out at the beginning decides on its own
        tries += [(first, None, ()) for first, ways, sites in tries if ways is None and sites]
        alone: tuple[Ways | None, Ways] | None = None
        apart: set[Any] | None = set() if self.section else None
        for first, known, sites in tries:
            count = len(bounds) - 1 - first
            if count < (shortest if known is None else least) or (alone is not None and known is None):
                continue
            if known is None and apart:
                sites = [site for site in sites if site not in apart]
            run = trace, bounds[first:], first, self.names, self.put, tuple(sites)
            found = fork(*run, known, self.serial, id(known) not in own, apart)
            held = bounds[-1].holds
            if found is None:
                continue
            pattern, together, decided, fixed, self.kinds, self.anew, ways, several, self.plain, *_ = found
            self.coarse = found.coarse
            if self.plain and self.place in trace.asking:
                trace.apart.add(self.place)
                return
            if not several and any([one.constants is not None and one.items for one in self.grown.values()]):
                return  # they stay plain
            if pattern is None:
                alone = alone or (known, ways)
                continue
            if self._changes_its_list(pattern):
                return
            if not self.section:
                trace.understood |= {guard.line for guard in trace.guards[bounds[first].guards :]}
            if known is not None:
                items = items[0] | known.items[0], items[1] | known.items[1]
            if not items[0].isdisjoint(items[1]):
                return
            ways = ways._replace(items=items)
            unread = {key for key in pattern.after if key[0] in self.spent and len(key) == 1}
            operations = (bounds[-1].length - bounds[first].length) * (count + skipped)
            left = shown(trace, bounds[first:], pattern.after.keys() - unread, ways.views, operations > LARGE * count)
            if left is None:
                continue
            ways = ways._replace(views=left.pairs)
            views = {key for key in unread if key in held and held[key].base is not None}
            self.rebound, self.replaced, self.parted = ways.rebound, ways.replaced, ways.parted
            often = self.what is not None and self._is_often(self.what.length)
            # what all calls do is faster without a loop; but in others, each run would have decisions of its own, copies of
            # loops that may run long are no faster, and many operations are not worth the wait
            large = bounds[-1].length - bounds[first].length > LARGE
            free = several or self.open or self.leapt or often or large or any([may_go_on(step[0]) for step in pattern.steps])
            short = not free and len(bounds) + skipped <= FAR
            if short:
                alone, together = alone or (known, ways), together or pattern
                if not self.nested:
                    continue
            start = bounds[first]
            self.short = count == 0
            if self.short:
                self.wanted = (known and known.wanted) or ([], [])
                self.boundaries = [start]
                self._idles({key: kind for key, kind in self.kinds.items() if key not in start.nodes and key != UNSEEN})
                first = 0
            flag = self._flag(first) if UNSEEN in self.kinds else None
            at_once = together is not None and self._replaced(together, views, first, True)
            if at_once or (not short and self._replaced(pattern, views, first, False)):
                trace.coarse |= self.coarse
                for name, grown in self.grown.items():
                    grown.spread(self.place, (name, WHOLE) in found.python, (name, WHOLE) in found.unlike)
                self._appended_alike(start)
                self.logs.rebuild()
                for idents, chosen in self.logs.chosen():
                    trace.hooks.choose(idents, chosen, self.around is not None)
                if items[0]:
                    self._part([*start.holds.values(), *held.values()])
                for array in left.arrays:
                    array.parted |= {self.place}
                trace.recalled |= known is not None and (id(known) in own or self.place not in trace.ways)
                if count:
                    self._keep(way, known, ways._replace(wanted=self.wanted))
                known_by_now = {*decided, *fixed, *self.flags}
                rest = [guard for guard in trace.guards[start.guards :] if guard.node not in known_by_now]
                trace.guards[start.guards :] = [
                    *(Guard(node, *seen, fixed=True) for node, seen in fixed.items()),
                    *rest,
                ]
                decided.update(self.tests)
                trace.peeks[start.peeks :] = [peek for peek in trace.peeks[start.peeks :] if peek.node not in decided]
                if flag is not None and not flag and flag.node.active:
                    trace.guards[-1] = trace.guards[-1]._replace(unseen=True)
                length = start.length
                self._note_numbers(bounds[: first + 1])
                self.boundaries, self.pattern, self.tests = [], None, []
                self.unflagged = []
                del found, pattern, together, decided, start, bounds, held, known, ways, every, others, tries, alone
                trace.forget(length)
                return
            self.boundaries, self.skipped, self.unflagged = bounds, skipped, []
        if alone is not None:
            self._keep(way, *alone)

    def _appended_alike(self, start: Boundary) -> None:
        """Lists to which the same iterations have appended have one mask that says which."""
        masks: dict[Any, Tracer] = {}
        for name, grown in self.grown.items():
            key = name, TAKEN
            if grown.taken is not None and key in start.nodes and self.pattern is not None and key in self.pattern.after:
                grown.taken = masks.setdefault((start.nodes[key], self.pattern.after[key]), grown.taken)

    def _lists_hold(self) -> bool:
        """Whether nothing has happened to the lists that grow but what is known."""
        iterations = len(self.boundaries) - 1 + self.skipped
        self._ask_for_log(self.logs.left_out(iterations))
        named = [one for one in self.grown.values() if one.reads is None]
        lists = [(one, sum([owner is one.owner for owner in self.trace.writes])) for one in named]
        return all([one.is_as_noted(noted, iterations) for one, noted in lists]) and self.logs.hold(iterations)

    def _items(self) -> tuple[frozenset[Any], frozenset[Any]] | None:
        """Where, by site and key, there were arrays that had been appended to lists, and where there were some that have been
        changed in place since; None where something holds an item that is not looked at."""
        nodes = self.trace.graph.nodes
        lists = [grown for grown in self.grown.values() if grown.shape]
        if not lists:
            return frozenset(), frozenset()
        holders = self._noted()
        contained = Counter([id(x) for key, x in self.boundaries[-1].holds.items() if len(key) > 1])
        times, rows = Counter([id(item) for grown in lists for item in grown.items]), self.logs.in_rows()
        for grown in lists:
            for item in grown.items:
                often = 2 * times[id(item)] + rows[id(item)] + holders[id(item)] + contained[id(item)]
                if not is_held_so_often(item, often, self.held[id(item)]):
                    return None
        pairs = [pair for grown in lists for pair in zip(grown.items[::-1], grown.since[::-1], strict=True)]
        since = {id(x.owner()): at for x, at in pairs}
        own = {id(array) for grown in self.grown.values() for array in (grown.array, grown.taken)}
        several = len(since) < sum([len(grown.items) for grown in lists]) or any([grown.deepest for grown in lists])
        shared, written = {None} if several else set[Any](), set[Any]()
        for begin in self.boundaries:
            for site, bound in [(0, begin), *[(site, join.bound) for site, join in begin.joins.items()]]:
                now = nodes[bound.length].index if bound.length < len(nodes) else math.inf
                for key, x in bound.holds.items():
                    owner = x.owner()
                    if id(owner) in since and since[id(owner)] <= now:
                        shared.add((site, key))
                    if type(x.like) is np.ndarray and id(x) not in own and owner.written >= now:
                        written.add((site, key))
        return frozenset(shared), frozenset(written)

    def _part(self, arrays: Iterable[Tracer]) -> None:
        """The loop is rolled up: arrays like the items of lists may be items, or copies of these."""
        items = [item for grown in self.grown.values() if grown.shape for item in grown.items]
        kinds = {x.node.aval for item in items for x in (item, item.owner())}
        every = [item for grown in self.grown.values() for item in (*grown.items, *grown.owner)]
        found = [x.owner() for x in (*arrays, *every) if type(x) is Tracer and x.owner().node.aval in kinds]
        for array in found:
            array.parted |= {self.place}
        for grown in self.grown.values():
            grown.parted |= {self.place}
        if found:
            self.trace.copied.add(self.place)

    def _replaced(self, pattern: Pattern, views: set[Key], first: int, together: bool) -> bool:
        """Whether a loop with this pattern, but for ``views``, is in the graph now; if that is to be ``together``, only all
        iterations at once."""
        self.pattern = pattern._replace(after={key: part for key, part in pattern.after.items() if key not in views})
        return self._replace(first, together=together)

    def _leap_known(self, place: int, ahead: int | None) -> bool:
        """Run those of the next ``ahead`` iterations, the first of which is number ``place``, at once that go ways which others
        have gone; whether there are any. None: of all but the last."""
        trace, hooks, count = self.trace, self.trace.hooks, len(self.boundaries) - 1
        if count < self.wait or not trace.leaps or self.section or not count:
            return False
        others = self._known(None)[1] if self.around is not None and ahead is not None and count + ahead >= WORTH else ()
        if self.around is not None and not others:
            return False
        few = 1 if others else self._few(count)
        if count < 2 * few or (ahead is not None and ahead < few):
            return False
        self.wait = 2 * count
        if not self._lists_hold() or any([one.constants is not None or not one.can_leap() for one in self.grown.values()]):
            return False
        if trace.impure or trace.trying or trace.lanes or hooks is None or hooks.impure or hooks.effects:
            return False
        if self.place in trace.apart or not ((self.what is None or self.what.holds()) and hooks.tables_hold()):
            return False
        if self._lie_otherwise():
            return False
        bounds = without_twins(self.boundaries, self.private)  # those to come have two names again
        last = bounds[-1]
        settled = max(self._settled(), self._grown() - 1)  # at first, some locals may hold nothing
        if count - settled < few:
            return False
        within = self._settled_within()
        starts = [first for first in (settled, settled + 1, *[within] * (settled + 1 < within)) if first <= count - few]
        runs = [(trace, bounds[first:], first, self.names, self.put) for first in starts]
        tries: list[tuple[Any, ...]] = [
            *[(*run, one.sites, one, self.serial, True, None) for run in runs for one in sorted(others, key=Ways.many)[-2:]],
            *[(*run, at, None, self.serial, False, None) for run in runs if not others for at in (meeting(trace, run[1]), ())],
        ]
        length, met = len(trace.graph.nodes), len(trace.met)
        found = next(filter(None, itertools.starmap(fork, tries)), None)
        if found is None or found.pattern is None or (found.plain and self.place in trace.asking):
            found = None
            del trace.met[met:]  # what was made again to see how it goes
            trace.forget(length)
            return False
        pairs = iterations(bounds[found.ways.first :])
        changed = {key for b, c in pairs for key, node in c.nodes.items() if b.nodes.get(key) is not node}
        one = copy.copy(self)  # whose only iteration is the last one; those to come follow
        one.boundaries = bounds
        one.pattern, one.skipped, one.passed, one.tests = found.pattern, 0, place - count, []
        one.kinds, one.anew, one.plain, one.coarse = found.kinds, found.anew, found.plain, found.coarse
        one.rebound, one.replaced, one.parted = found.ways.rebound, found.ways.replaced, found.ways.parted
        flag = one._flag(count - 1) if UNSEEN in one.kinds else None
        wanted = one._wanted(one._outline(*one.boundaries[-2:]))
        bound = {*wanted[0], *wanted[1]} if wanted is not None else set()
        sure = all([key in bound or key[0] in self.names.targets for key in changed])
        carried = [key for key in bound & last.holds.keys() if key[-1] not in (WHOLE, TAKEN)]
        sure = sure and all([_carries(last.holds[key]) for key in carried])
        if not (sure and one._replace(count - 1, ahead)):
            return False
        self.ahead = one.ahead
        if flag is not None and not flag and flag.node.active:
            trace.guards[-1] = trace.guards[-1]._replace(unseen=True)
            self.flags.add(flag.node)
        if any([grown.shape for grown in self.grown.values()]):  # the items are copies from here on
            self._part([*bounds[0].holds.values(), *last.holds.values()])
        for name, grown in self.grown.items():
            ends = [far for far in range(1, grown.deepest + 1) if (name, -far) in last.holds]
            grown.leap(self.ahead, {far: last.holds[name, -far].node for far in ends})
        self.logs.rebuild()
        last = self.boundaries[-1]
        nodes = {key: tracer.node for key, tracer in last.holds.items()}
        counts = len(trace.graph.nodes), len(trace.guards), len(trace.peeks), len(trace.writes), len(trace.met)
        self.boundaries.append(Boundary(*counts, last.holds, nodes, *last[7:11], {}, [], True))
        self.leapt, self.skipped, self.wait = True, self.skipped + self.ahead - 1, count + 1 + LEAP
        self.like = found.ways.first
        return True

    def _few(self, count: int) -> int:
        """How many iterations, twice, are enough to run those to come as they were, if as many are left."""
        each = (len(self.trace.graph.nodes) - self.boundaries[0].length) // count
        if each >= HUGE:
            return LEAP // 2
        alike = self.decided or self._sees_nothing()  # loops that decide take long to trace
        return LEAP if alike or each >= BIG else FAR

    def _sees_nothing(self) -> bool:
        """Whether no iteration has decided on anything, so that all those to come are alike."""
        first, last = self.boundaries[0], self.boundaries[-1]
        return not self.joins and (first.guards, first.peeks) == (last.guards, last.peeks)

    def _always_turns(self) -> bool:
        """Whether iterations look at ever new numbers, as indices of lists are: they stay as they are, and none is watched
        more. (Of truth values there are two; of many, the ways meet.)"""
        self.look *= 2
        if not self.forked or self.leapt or self.around is not None or self.grown or self.section:
            return False
        trace = self.trace
        every = [trace.guards[b.guards : c.guards] + trace.peeks[b.peeks : c.peeks] for b, c in iterations(self.boundaries)]
        ways = {tuple([repr(look.value) for look in looks if type(look.value) is not bool]) for looks in every}
        return len(ways) * NEW > len(every) > FAR

    def _way(self) -> tuple[Any, ...] | None:
        """How this call came to the loop: what it looked at before, and saw; None where that is much, or in a section of a
        loop, to which there are many ways."""
        before = self.trace.guards[: self.boundaries[0].guards]
        if len(before) > MANY or (self.section and self.trace.sections):
            return None
        return self.serial, *[guard[1:3] for guard in before if not guard.unseen]

    def _known(self, way: Any) -> tuple[Sequence[Ways], Sequence[Ways]]:
        """What is known of the loop in calls that came to it this ``way``, and of all runs of the statement."""
        others: Sequence[Ways] = ()
        for place in self._places():
            others = others or self._known_at(place)
        return self.trace.known_ways.get(way, ()), others

    def _known_at(self, place: Any) -> Sequence[Ways]:
        return self.trace.ways.get(place) or self.trace.known_ways.get(place, ())  # type: ignore[no-any-return]

    def _places(self) -> list[tuple[Any, ...]]:
        """Under which runs of the statement are known: all, but first each on its own, where it is a section of a loop."""
        alone = (*self.place, self.serial)
        return [alone, self.place] if self.section and self.trace.sections else [self.place]

    def _keep(self, way: Any, known: Ways | None, ways: Ways) -> None:
        """Let later runs, and calls, know the ``ways`` through this loop, which took the place of those that were ``known``."""
        known_by = [(way, self.trace.known_ways.get(way, ()))] if way is not None else []
        for place, every in [*known_by, *[(place, self._known_at(place)) for place in self._places()]]:
            self.trace.ways.pop(place, None)  # so that it comes last
            left = [one for one in every if one is not known and not (self.section and {*ways.sites} < {*one.sites})]
            self.trace.ways[place] = [*left, ways][-SEVERAL:]

    def _flag(self, first: int) -> Tracer:
        """What tells, after iteration ``first``, whether one went a way that no call has gone."""
        known = self.serial, *UNSEEN  # however many iterations there were
        flag: Tracer = self.trace.record(INDEX, (), {"loop": known, "value": False})
        self.boundaries = [*self.boundaries]
        self.unflagged = [self.boundaries[first], self.boundaries[-1]]
        for i, bound in zip((first, -1), self.unflagged, strict=True):
            self.boundaries[i] = bound._replace(holds={**bound.holds, UNSEEN: flag}, nodes={**bound.nodes, UNSEEN: flag.node})
        return flag

    def _settled(self) -> int:
        """The boundary from which on what goes round is of the kind that it has in the end."""
        last = self.boundaries[-1].nodes
        ends = {(name, -far) for name, grown in self.grown.items() for far in range(1, grown.deepest + 1)} & last.keys()
        for i, bound in enumerate(self.boundaries):
            kept = all([key in last and node.aval == last[key].aval for key, node in bound.nodes.items()])
            if kept and ends <= bound.nodes.keys():  # of a list that began with fewer items than are read
                return i
        return 0

    def _settled_within(self) -> int:
        """The boundary from which on iterations run the same loops as the last one: those before knew fewer of their ways."""
        nodes, pairs = self.trace.graph.nodes, enumerate(itertools.pairwise(self.boundaries), 1)
        ran = [(i, {x.op for x in nodes[b.length : c.length] if isinstance(x.op, Loop)}) for i, (b, c) in pairs if not c.leapt]
        known = next((loops for _, loops in reversed(ran) if loops), set())
        return max([i for i, loops in ran if not loops <= known], default=0)

    def _grown(self) -> int:
        """The boundary from which on what is not traced is as in the end: containers have as many items."""
        last = self.boundaries[-1].rest
        return next((i for i in range(len(self.boundaries) - 1, 0, -1) if self.boundaries[i - 1].rest != last), 0)

    def _leap(self, ahead: int | None) -> bool:
        """Run the next ``ahead`` iterations at once, if all that they do is in the pattern; None: all but the last."""
        bounds = self.boundaries
        if self.pattern is None or len(bounds) - 1 == self.first + 2:  # it has two iterations by now
            self.alike = 0
            return False
        self.alike += 1
        before = bounds[-3] if len(bounds) > 2 else bounds[-2]  # of which nothing is known, where iterations were rolled up
        if not self._alike(self.pattern, before, *bounds[-2:]):
            self.leaps, self.alike = TURNING in self.trace.apart, 0  # those to come may be, where loops in them are longer
            return False
        if self.alike < (FAR if ahead is None and self.ends is None else LEAP):
            return False
        self.leaps = False
        held = (self.what is None or self.what.holds()) and self.trace.hooks.tables_hold()
        return held and not self._lie_otherwise() and self._roll(SHORTEST, ahead) is not None

    def _alike(self, pattern: Pattern, a: Boundary, b: Boundary, c: Boundary) -> bool:
        """Whether nothing but traced values changed in an iteration, in a way that hangs on nothing else."""
        trace, hooks = self.trace, self.trace.hooks
        if trace.impure or trace.trying or trace.lanes or hooks is None or hooks.impure or hooks.effects:
            return False
        if any([grown.items for grown in self.grown.values()]):  # which iterations that are not run would not append to
            return False
        before, test = self._looked_at(a, b), b.nodes.get(TEST)
        looked = [node for node in self._looked_at(b, c) if node is not test]
        stays = all([(node in before and self._stays(node)) or self._is_within(node) for node in looked])
        if not stays or b.rest != c.rest:
            return False
        if trace.unseen_writes(b.writes, c.writes, c.containers):
            return False
        unread = self.names.unread  # each iteration assigns those, and one comes yet
        changed = [key for key, node in c.nodes.items() if b.nodes.get(key) is not node]
        carried = [_carries(c.holds[key]) or (key[0] in unread and len(key) == 1) for key in changed]
        if not (all(carried) and all(key in pattern.after for key in changed)):
            return False
        return all(is_steady(*step) for step in pattern.steps)

    def _looked_at(self, b: Boundary, c: Boundary) -> set[Node]:
        """What Python has looked at in an iteration."""
        guards, peeks = self.trace.guards[b.guards : c.guards], self.trace.peeks[b.peeks : c.peeks]
        return {guard.node for guard in guards} | {peek.node for peek in peeks}

    def _is_within(self, node: Node) -> bool:
        """Whether what was looked at is made of the indices of loops within this one alone, as in all other iterations."""
        leaves = [one for one in ancestors([node]) if not one.args]
        serials = [dict(one.params)["loop"] if one.op is INDEX else None for one in leaves if one.op is not CONST]
        return all([type(serial) is int and serial > self.serial for serial in serials])

    def _stays(self, node: Node) -> bool:
        """Whether what two iterations have looked at does not go round: it is made of arguments, and of indices around."""
        indices = [dict(one.params)["loop"] for one in ancestors([node]) if one.op is INDEX]
        return all([type(serial) is int and serial != self.serial for serial in indices])

    def _chunk(self) -> None:
        """Roll up what there is so far of a long loop, and go on from there."""
        self.kept = self._is_kept()
        first = None if self.kept else self._roll(SHORTEST)
        if first is not None:
            self.first = first
        elif not self.kept:
            self._give_up()

    def _looks_at_index(self) -> bool:
        """Whether the last iteration may do something else: Python has looked at the index, or what was made of it."""
        if self.pattern is None or self.forked or self.kept or len(self.boundaries) - 1 < self.first + FAR:
            return False
        before, last = self.boundaries[-2:]
        return any([not peek.node.active for peek in self.trace.peeks[before.peeks : last.peeks]])

    def _is_kept(self) -> bool:
        """Whether something that is no local, such as a list that grows, holds what an early iteration computed.

        Then the iterations are there anyway; a loop would compute all of them once more.
        """
        assert self.pattern is not None
        trace, early = self.trace, self.pattern.originals
        few = len(self.boundaries) - 1 < self.first + SHORTEST
        if self.open or TURNING in trace.apart or few or (early and isinstance(early[0], Note)):
            return self.kept  # such iterations must be rolled up, are few, or are gone already
        if trace.hooks is not None:
            trace.hooks.weed()
        trace.weed(self.boundaries[0].writes, len(trace.writes))
        later = trace.graph.nodes[self.boundaries[self.first + 1].length :]
        uses = Counter([arg for node in later for arg in node.args])
        within = itertools.takewhile(lambda item: item[0][0] > self.serial, reversed(trace.ways.items()))  # loops in this one
        seen = set[int]()
        uses.update([node for _, every in within for ways in every for node in ways.held(seen)])
        tracers = {id(tracer): tracer for bound in self.boundaries for tracer in bound.holds.values()}
        noted = self._noted()
        for tracer in tracers.values():  # written into, and dropped by an iteration
            uses[tracer.node] += is_held_so_often(tracer, noted[id(tracer)] + 1, 0)
        del tracers
        for node in itertools.islice(early, self.pattern.there, None):
            # its holders: this name, getrefcount's own, the graph's list and table, the pattern, ``later``, and those below
            holders = 6 + uses[node] + sum([node in notes for notes in (uses, trace.values, trace.likes, trace.mixed)])
            if node.active and sys.getrefcount(node) > holders:
                return True
        return False

    def _roll(self, least: int, ahead: int | None = 0) -> int | None:
        """Replace the stretch by a loop, from its first iteration or its second on; the boundary where that begins.

        ``ahead``: iterations that the loop runs beyond the stretch; None for all but the last one.
        """
        self.ahead = 0
        for first in (self.first, self.first + 1):  # the first iteration may begin with numbers of another kind
            start = self.boundaries[first]
            if len(self.boundaries) - 1 - first + self.skipped >= least and start.length >= 0 and self._replace(first, ahead):
                assert self.pattern is not None
                notes = [Note(node) for node in self.pattern.originals]
                self.pattern = self.pattern._replace(originals=notes)
                last, self.tests, self.anew = self.boundaries[-1], [], set()
                nodes = {key: tracer.node for key, tracer in last.holds.items()}
                self.skipped, self.whole = self.skipped + len(self.boundaries) - 2 - first + self.ahead, False
                self.boundaries[first + 1 :] = [last._replace(nodes=nodes)]
                del last
                self.trace.forget(start.length)  # which needs that nothing here holds what is gone
                counts = len(self.trace.graph.nodes), len(self.trace.guards)
                self.boundaries[-1] = self.boundaries[-1]._replace(length=counts[0], guards=counts[1])
                return first
        return None

    def _outline(self, start: Boundary, end: Boundary) -> Outline:
        assert self.pattern is not None
        private = self.unread if self.more else self.private
        return Outline(self.pattern, start, end, self.kinds, private, self.open)

    def _wanted(self, outline: Outline) -> tuple[list[Key], list[Key]] | None:
        return outline.wanted(self._aliases(outline.start, outline.end))

    def _replace(self, first: int, ahead: int | None = 0, together: bool = False) -> bool:
        """Put the loop from iteration ``first`` on into the graph, if it can be."""
        start, end = self.boundaries[first], self.boundaries[-1]
        outline = self._outline(start, end)
        wanted = self.wanted if self.short and any(self.wanted) else self._wanted(outline)
        if wanted is None or not all(self.trace.is_free(node, self.held) for node in self.anew):
            return False
        self.wanted = keys, late = wanted
        if self.open and not outline.closed(late, self.forked, self.spent):
            return False
        unborn = outline.unborn(late)
        if self.forked and not unborn.issubset(self.dead):
            return False  # it may be that no iteration assigns one
        trace = self.trace
        aliases = self._aliases(start, end, {*keys, *late} if self.forked else None)
        if (self.open or self.forked or ahead != 0) and not aliases.isdisjoint([*keys, *late]):
            return False
        if not (self.open or self.forked):  # what hangs on no argument is a number that is known already
            late = [key for key in late if end.nodes[key].active]
        names = self._names_of(start, end) if self.open or self.forked else []
        starts = {key: self._first(start.nodes[key], outline.kind(key)) for key in keys}
        # what nobody reads may begin anyhow: with what this call has left there, code would know others no more
        idle = outline.idle(keys)
        starts |= {key: trace.constant_like(0.0, outline.kind(key)).node for key in idle}
        every = [*keys, *late]
        if None in starts.values() or not all(isinstance(outline.kind(key), Aval) for key in every):
            return False
        body, invariants = outline.body(keys, late, trace.graph.arrays)
        firsts: list[Any] = [starts[key] for key in keys] + [trace.constant_like(0.0, outline.kind(key)).node for key in late]
        later = trace.lazy and ahead is not None and (ahead > 0 or any([tracer.later for tracer in end.holds.values()]))
        later = later and not self.forked and all([end.holds[key].node.active for key in every])
        values = tuple([end.holds[key].like if later else end.holds[key].value for key in every])
        course = self._course(first, every)
        if ahead != 0 and not later:
            given = [*values, *(trace.lookup(node).value for node in invariants)]
            seen = every.index(UNSEEN) if UNSEEN in every else None
            further = (
                run_out(trace, body, every, given) if ahead is None else run_on(trace, body, course, ahead, given, seen, FAR)
            )
            if further is None:
                return False
            ahead, values = further
        assert ahead is not None
        self.ahead = ahead
        course = self._course(first, every, ahead)
        over: list[Node] = []
        if self.ends is not None and not ahead and not self.forked:
            span = ranged(trace, self.ends, body, every, firsts, invariants)
            if span is not None:
                values = tuple([value for key, value in zip(every, values, strict=True) if key in span.keys])
                body, every, firsts, over, invariants = span.body, span.keys, span.firsts, [span.over], span.invariants
                course = Course()
        if self.open:  # what a leap has put there stands for this run alone, until the loop has ended as it should
            (trace.leaping.add if ahead else trace.leaping.discard)(self.serial)
        if self.forked:
            often = course if course.test is None else Course(len(self.boundaries) - 1 - first + self.skipped)
            given = [node for node in (*firsts, *invariants) if node is not None]
            again = reproduced(trace, Loop(body, often), given, values, every, idle, {TEST, EXIT, *self.plain})
            if again is None:
                return False
            values = again
        given = [*firsts, *over, *invariants]
        if self.section:
            made: dict[Key, Tracer] | None = inlined(trace, body, given, every)
        else:
            made = None
            # what later calls may decide on is computed to the last bit as the function does
            kept = any([key[0] == OUTSIDE and is_inexact(outline.kind(key)) for key in every])
            if not (ahead or self.open or kept):
                known = told(trace, body, course, given) if later else values
                made = at_once(trace, body, course, given, every, known, self._around())
                longer = lagged(trace, body, course, given, values) if made is None else None
                if longer is not None:
                    body, given, values = longer
                    made = at_once(trace, body, course, given, every, known, self._around())
        if made is not None:
            for key, result in made.items():
                if key not in aliases:
                    self._rebind(end.holds[key], key, result)
            self._settle(end, every, names)
            return True
        if together or (not ahead and self._is_brief(end.length - start.length)):
            return False
        if self.open and not (self.forked or self.place in trace.apart):  # it may run no iteration
            begun = {key for key in keys if start.nodes[key].aval.kind == "python" != outline.kind(key).kind}
            self.plain = dict.fromkeys(begun, frozenset())
        op, args = loop_of(body, course), tuple(given)
        if self.short:  # of no iteration, numbers are as after any
            left = zip(every, values, strict=False)
            values = (*[_of_kind(value, outline.kind(key)) for key, value in left], *values[len(every) :])
        kinds = [(trace.aval(value), outline.kind(key)) for key, value in zip(every, values[: len(every)], strict=True)]
        if self.short and None in itertools.starmap(joined_kind, kinds):
            return False  # it would be of another dtype here
        more = [end.aval for end in body.after[len(every) :]]
        # of no iteration, a number is Python's here that others make NumPy's
        node = trace.add(op, args, (), (*[joined_kind(*pair) or pair[0] for pair in kinds], *more))
        (trace.likes if later else trace.values)[node] = values
        if self.open:  # a loop with a test needs no guard on it, unless something is so only after an iteration
            tests = set(self.tests)
            apart = bool(unborn) or outline.parted(keys) or self.place in trace.apart
            if apart or any([end.shared.get(key) != ident for key, ident in start.shared.items()]):
                tests.discard(start.nodes[TEST])
            trace.guards[start.guards :] = [guard for guard in trace.guards[start.guards :] if guard.node not in tests]
            trace.peeks[start.peeks :] = [peek for peek in trace.peeks[start.peeks :] if peek.node not in tests]
        hangs = hanging(body, given) if ahead else [end.holds[key].node.active for key in every]
        if self.forked or (TEST in every and hangs[every.index(TEST)]):  # then all does
            hangs = [True] * len(every)
        twins: dict[Any, int] = {}  # locals that are always one value, which later iterations are to know
        for i, key in enumerate(every):
            place = twins.setdefault((None if ahead else firsts[i], body.after[i], outline.kind(key)), i)
            if key not in aliases:
                moved = ahead > 0 or self.short or outline.kind(key) != end.nodes[key].aval
                self._bind(outline, key, node, place, moved, hangs[place])
        self._settle(end, every, names)
        return True

    def _is_brief(self, operations: int) -> bool:
        """Whether it is a few iterations within those of another loop, which does better with them written out."""
        few = len(self.boundaries) - 1 <= BRIEF and operations <= BRIEF * FEW and not self.skipped
        return few and self._is_inner() and not (self.open or self.forked or self.section)

    def _settle(self, end: Boundary, every: Sequence[Key], names: Sequence[Tracer]) -> None:
        """Note which arrays may be one, or two, from here on. What some ways have left in locals, and nobody reads, is that of
        no way."""
        for tracer in names:
            tracer.parted |= {self.place}
        trace = self.trace
        if trace.hooks is not None:
            trace.hooks.put_again()
        left = [(name,) for name in self.unread if (name,) in end.holds and (name,) not in every] if self.forked else []
        for key in left:
            aval, base = end.holds[key].node.aval, end.holds[key].base
            if isinstance(aval, Aval) and aval.dtype.kind in "fc" and base is None and self._is_alone(key, end.holds[key]):
                if aval.shape:
                    nothing = trace.fixed(np.full(aval.shape, math.nan, aval.dtype))
                else:
                    nothing = trace.constant_like(math.nan, aval)
                end.holds[key].bind(nothing)

    def _names_of(self, start: Boundary, end: Boundary) -> list[Tracer]:
        """The arrays that locals held, and hold now, which are two here, or one, but may be one, or two, in other calls.

        What is written into one of them later is in the other one, or not.
        """
        arrays = {key: x for key, x in start.holds.items() if key in end.holds and type(x.like) is np.ndarray}
        found = [bound.holds[key] for pair in self.parted for key in pair & arrays.keys() for bound in (start, end)]
        noted = self._noted() if arrays else {}
        for key, before in arrays.items():
            after = end.holds[key]
            if (len(key) == 1 and key[0] in self.unread) or not (before is not after or key in self.rebound):
                continue
            own = int(before is after)
            locals = own + self._spare(key, before)
            if self.held[id(before)] > locals or not is_held_so_often(before, noted[id(before)] + 1 + own, locals):
                found += [before, after]
        return [array.owner() for array in found]

    def _bind(self, outline: Outline, key: Key, loop: Node, place: int, moved: bool, hangs: bool) -> None:
        """Make a local the result of the loop at ``place``; ``moved``: the loop has run beyond what the local holds;
        ``hangs``: the result may hang on arguments."""
        trace, tracer = self.trace, outline.end.holds[key]
        later = loop in trace.likes
        known = trace.likes if later else trace.values
        value = known[loop][place]
        mixed = self._mixed(key, tracer)
        if moved or later:
            tracer.like, tracer.later = value, later
            tracer.version += 1
        if self.open or self.forked or hangs or self._is_inner():
            tracer.node = trace.add(ITEM, (loop,), (("item", place),), outline.kind(key))
            tracer.node.name = None if key in (TEST, EXIT, COUNTER) else joined(key)
            tracer.node.active &= hangs or key != COUNTER or self.ends is None
            known[tracer.node] = value
            self._mix(tracer.node, mixed)
        elif not isinstance(tracer.value, np.ndarray):
            tracer.node = self.number(joined(key), tracer.value).node
            self._mix(tracer.node, mixed)

    def _rebind(self, tracer: Tracer, key: Key, result: Tracer) -> None:
        """Make a local what all iterations together have given."""
        if tracer.node.active or self.forked or self._is_inner():
            self._mix(result.node, self._mixed(key, tracer))
            tracer.like, tracer.later, tracer.node = result.like, result.later, result.node
            tracer.version += 1
            result.node.name = result.node.name or joined(key)
        elif not isinstance(tracer.value, np.ndarray):
            mixed = self._mixed(key, tracer)
            tracer.node = self.number(joined(key), tracer.value).node
            self._mix(tracer.node, mixed)

    def _mixed(self, key: Key, tracer: Tracer) -> Mixed | None:
        """What is known of a number that a local held when the iterations had run, if it may be Python's or NumPy's."""
        known = self.trace.mixed.get(tracer.node)
        if known is None and key not in self.plain:
            return None
        number = type(tracer.like) is not np.ndarray  # of what is in an array, it may hold for some
        python = known.python if known else type(tracer.like) in (int, float, bool, complex) if number else None
        causes = known.causes if known else frozenset()
        if key in self.plain:
            causes |= {self.place} | self.plain[key]
        return Mixed(None if self.skipped else python, causes, whole=self.coarse or bool(known and known.whole))

    def _mix(self, node: Node, mixed: Mixed | None) -> None:
        if mixed is not None:
            self.trace.mixed[node] = mixed

    def _is_inner(self) -> bool:
        """Whether it runs in a loop's iteration, whose decisions may hang on the arguments: so may a number that is made of
        plain ones."""
        return self.around is not None

    def _aliases(self, start: Boundary, end: Boundary, among: set[Key] | None = None) -> set[Key]:
        """The locals whose Tracer has another name (``among`` those), to which the loop did nothing: it cannot be bound to a
        result."""
        assert self.pattern is not None
        before = self.trace.index_before(start.length)
        found = {key for key, node in end.nodes.items() if node.index <= before}
        found -= {key for key in OF_LOOPS & found if self.short or not self.held[id(end.holds[key])]}
        if self.forked or self.short:  # other calls may do something to it
            found -= {key for key in found if key in self.pattern.after and self._is_alone(key, end.holds[key])}
        parts: dict[int, Part | None] = {}
        for key, tracer in end.holds.items():
            part = self.pattern.after.get(key)
            if among is not None and key not in among:
                continue
            if parts.setdefault(id(tracer), part) != part:
                found |= {other for other, one in end.holds.items() if one is tracer}
        return found

    def _is_alone(self, key: Key, tracer: Tracer) -> bool:
        """Whether one local, or a container in it, holds a value, or it has numbers that are appended, and nothing else does
        but what is noted of the boundaries of this loop and others."""
        if any([tracer is array for grown in self.grown.values() for array in (grown.array, grown.taken, grown.count)]):
            return True
        own = len(key) == 1
        others = self.replaced.union(*self.parted)  # lists, dicts and objects in whose place others may be
        if self.forked and any([key[:n] in others for n in range(1, len(key))]):
            return False
        locals = own + self._spare(key, tracer)
        return self.held[id(tracer)] == locals and is_held_so_often(tracer, self._noted()[id(tracer)] + (not own), locals)

    def _spare(self, key: Key, tracer: Tracer) -> int:
        """How many other locals hold a value that nobody reads there: ``y_new``, behind ``y = y_new``."""
        return self.left_in[id(tracer)] - (len(key) == 1 and key[0] in self.unread)

    def _noted(self) -> Counter[int]:
        """How often each value (its id) is noted, of the boundaries of this loop and others, some of which share what is
        noted of them, and of writes."""
        rollers = {*self.trace.rollers, self}  # with what this one, where it stands in for another, has other notes of
        bounds = [one for roller in rollers for bound in roller.boundaries for one in bound.every()]
        bounds += self.unflagged + [join.bound for roller in rollers for join in roller.begun]
        every = {id(bound.holds): bound.holds for bound in bounds}.values()
        return Counter([id(x) for holds in every for x in holds.values()] + [*map(id, self.trace.writes)])

    def _first(self, node: Node, aval: Any) -> Node | None:
        """What a carried value starts with, of the kind that it goes round with; None where that is another value."""
        if node.aval == aval:
            return node
        number = number_of(node, aval)
        if number is not None:
            return self.trace.constant(number)[0]
        if self.forked and node.aval in (INT, BOOL) and is_float(aval) and aval.dtype == np.float64:  # see ``Fork.coarse``
            node = self.trace.run(TO_FLOAT, (self.trace.lookup(node),), {})
        if self.forked and isinstance(node.aval, Aval) and node.aval == aval._replace(kind="python"):
            return self.trace.run(TO_NUMPY, (self.trace.lookup(node),), {}) if node.aval != aval else node
        return None

    def _course(self, first: int, keys: list[Key], ahead: int = 0) -> Course:
        if self.open and not ahead:
            return Course(test=keys.index(TEST))
        count = len(self.boundaries) - 1 - first + self.skipped + ahead
        if self.what is None or self.tested:
            return Course(count)
        return Course(count, self.what.start + self.what.step * (first + self.passed), self.what.step)


def _is_of_numbers(value: Any) -> bool:
    """Whether it is a tuple of numbers, which are nobody else's."""
    if not isinstance(value, tuple):
        return False
    return all([type(one) in NUMBERS or (type(one) is Tracer and type(one.like) is not np.ndarray) for one in value])


def _is_read_unseen(owner: Any, places: Any) -> bool:
    """Whether it is in a list, a dict or a variable that functions share, which are read in many ways."""
    return owner is places or type(places) is Cells


def wide(key: Key) -> Key:
    """A place in a container, and the same in the other items of its lists."""
    return (key[0], *[... if type(part) is int else part for part in key[1:]])


def _of_kind(value: Any, aval: Any) -> Any:
    """Python's number as NumPy's, if it stands for one of these."""
    return aval.dtype.type(value) if type(value) in NUMBERS and isinstance(aval, Aval) and aval.kind == "scalar" else value


def _carries(tracer: Tracer) -> bool:
    """Whether a local can be bound to what another iteration leaves in it."""
    return tracer.base is None and (tracer.node.active or not isinstance(tracer.value, np.ndarray))
