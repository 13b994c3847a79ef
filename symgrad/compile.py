"""From calls to compiled code: signatures, the traces of each, when to compile, dispatch, and the cache.

A call whose signature (tree, types, dtypes, shapes, static values) is new is traced; so is the second one. When both
traces agree, constants included, code is generated, and later calls run it without any tracing. Each end of the branch
tree is confirmed by two traces in this way, which is how clocks and counters are found, if nothing else tells. A new end gets a
*piece* of code of its own, which goes on where the code that there is leaves off; all becomes one again when the pieces
have as many ends as the rest, so that growing costs each end the same.

Where traces contradict each other, that signature is traced anew at every call: *dynamic mode*. So are single calls of a
function that goes new ways at nearly every call, for tracing and compiling are to cost no more than they save; past a
number of ends, all calls that no code answers.
"""

from __future__ import annotations

import builtins
import functools
import linecache
import math
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from keyword import iskeyword
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from symgrad import progress, pytree, runtime
from symgrad.emit.build import Code, Signature, build, execute
from symgrad.emit.fast import build_fast
from symgrad.emit.names import Names, is_used
from symgrad.equal import is_same
from symgrad.errors import SymgradError, Unexplored
from symgrad.ir import INPUT, Aval, Node, ancestors, is_inexact
from symgrad.loops import stacks, tables
from symgrad.loops.forks import how_many
from symgrad.loops.logs import Counted, Filled, Logged, Measured, Resumed
from symgrad.loops.rolling import Begun, Crossed, Ended, Flag, Moved, Turned
from symgrad.loops.stacks import Kind, Stacked
from symgrad.loops.tables import Lists
from symgrad.optimize.masks import ALL, NONE, long_masks, masks_are_few, with_fewer
from symgrad.optimize.pipeline import for_readers, improve, speed_up
from symgrad.program import Diverged, Leaf, Program, Run
from symgrad.pytree import TreeDef
from symgrad.signature import ABSENT, Form, Layout, Leaves, Static, check_kind, check_tree, kind_of, layout, shown
from symgrad.source.instrument import in_loops
from symgrad.source.origins import METHODS, OWN, is_object, is_users
from symgrad.tracing.frames import INTO_PLAIN
from symgrad.tracing.mixed import Otherwise, is_narrow
from symgrad.tracing.nans import WatchedTrace
from symgrad.tracing.trace import SLIDING, TURNING, Carried, Stated, Tape, Trace, Varied, running, tracing
from symgrad.tracing.tracer import Tracer, plain, tracers
from symgrad.transform.calculus import traced
from symgrad.transform.hosted import RuleDecides
from symgrad.transform.loop import Loop
from symgrad.watch.draws import PLAIN as PLAIN_DRAWS
from symgrad.watch.draws import Draw, Drawn, Draws, OwnDraws, OwnPlan, Plan, Redrawn, rewind
from symgrad.watch.guards import CLOSURE, Argument, Check, Free, Path
from symgrad.watch.puts import Repeated, is_numeric, put_back
from symgrad.watch.state import Finished, State, may_fill, watch

MAX_SHARED = 64  # compilers that wait for more functions that are alike; the least recently used goes first
MAX_SIGNATURES = 64  # of one derivative, with code; the least recently used goes first
MAX_WAITING = 1024  # without
FEW = 64  # new signatures, or calls, after which it is looked at all signatures again
MAX_LEAVES = 64  # ends of one signature's branch tree, before no more are looked for
USUAL = 2  # ends beyond which statements that decide again and again are looked at on their own
AGAIN, MANY = 4, 64  # times that they do so in one call, and that they do all in all
AT_ONCE = 8  # ends, and signatures, that are traced and compiled at once; others, when calls in dynamic mode have cost as much
GRACE = 2.0  # seconds that the code for these may take in all
FIRST, LONG = 3, 20.0  # of so few, it may take so long; that of the very first takes what it does
TRIES_FREE, QUICK = 4, 2.0  # traces for code, and seconds that they take, before they may take what calls in dynamic mode have
DOUBTS = 3  # errors that code raises, and the function does not, before nobody tries it again
WORTH = 10  # calls that code may try in vain for one that it answers
SLOWER = 32  # times as long as a call in dynamic mode a trace for code takes, as far as is known
LOOKING = 1.0, 0.25  # of the time of calls in dynamic mode may go into other traces: of ends that are few, of more
MAX_VARIANTS = 8  # of what one signature found outside its arguments
MAX_LOOPS = 1024  # of a variant, whose ways are known: as many as there are ways to get to them
SHORT = 40  # lines of code that stand in the function that checks a call, which saves calling another
EARLY = 250_000  # bytes of results an operation, of those left for later, from which code for a single call pays
STEP = 4000  # bytes that are written in the time of one small operation
PATIENCE = 3  # errors one after the other in code without masks, before that is not tried again
HOME = "_home_of_the_user_"  # stands for a name in the namespace of which an entry checks most
SEVERAL = 2  # names of one namespace that are looked up together
OFTEN = 64  # calls that code begins, and a piece answers from the beginning on, before code is made of both
TRIES = 8  # to put something where other threads go on putting something, too, before a call is traced
REDRAWN = 2  # runs that draw other numbers than the one before, before nobody expects those
SEEDS = 8  # of generators that the function makes, whose numbers are kept in memory
DIVERGED = 3  # runs with loops that decide, which contradict earlier ones, before nobody tries to make code of them
_BEGUN = (
    Lists,
    Begun,
    Counted,
    Crossed,
    Ended,
    Filled,
    Flag,
    Kind,
    Logged,
    Measured,
    Moved,
    Resumed,
    Stacked,
    Stated,
    Turned,
    Varied,
)  # what runs begin with that learn of it
MAX_NODES = 400_000  # of one trace, before its signature goes to dynamic mode: some 6 KB each, while code is made of them

_WORD = re.compile(r"[a-zA-Z]\w*")
_BUILTINS = {name: value for name, value in vars(builtins).items() if not iskeyword(name)}


class CacheInfo(NamedTuple):
    """As functools' caches: calls answered by compiled code, calls traced, the bound, and signatures held."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


# -- one signature -------------------------------------------------------------------------------------------------

Body = Callable[[Trace, "tuple[Any, ...]", dict[str, Any], bool], Any]
Use = Callable[["Callable[..., Any] | None"], None]
Make = Callable[[], None]  # makes code, and what entries are made of: see Variant


class Traced(NamedTuple):
    """One traced call: its outputs, and (unless it ran in dynamic mode) what can be made of it."""

    trace: Trace
    outputs: list[Any]
    tree: TreeDef
    run: Run | None = None
    state: State | None = None
    learnt: int = 0  # how often the family had learnt something when the call began
    draws: Draws | None = None

    def result(self) -> Any:
        """Its result, of which all is computed now that was left for later."""
        self.trace.finish([leaf.node for leaf in self.outputs if type(leaf) is Tracer and leaf.later])
        return self.tree.unflatten([_fresh(leaf) for leaf in self.outputs])

    def settle(self) -> None:
        """Let go of all but the result, where that is there and what was recorded is part of a program by now."""
        if not self.trace.likes:
            self.outputs[:] = [leaf.value if type(leaf) is Tracer else leaf for leaf in self.outputs]
            self.trace.let_go()
            if self.run is not None:
                self.run.graph, self.run.guards = self.trace.graph, ()

    def left(self) -> list[Node]:
        """What is still to be computed."""
        return self.trace.missing([leaf.node for leaf in self.outputs if type(leaf) is Tracer and leaf.later])


class Account:
    """What the calls of one signature cost that no code answered, which is what tracing and compiling may cost.

    That is counted in this thread's processor time: what else runs on the machine changes nothing. The first ends of its
    branch tree are free, unless they take long. After that a function which hardly ever goes a way twice costs little more
    than in dynamic mode, however long that takes.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.free = AT_ONCE  # ends that code is made for at once
        self.new = 0  # ends that were seen once
        self.ends = 0  # that code was made for
        self.wanted = 0  # that code waits to be made for
        self.tries = 0  # traces for code
        self.waited = self.looked = self.paid = 0.0  # seconds in dynamic mode, of traces that found new ends, of compiling
        self.found = self.made = 0.0  # the same, of those that are free, too
        self.last = self.each = 0.0  # seconds of the last trace, and of compiling one end

    @property
    def spent(self) -> float:
        return self.found + self.made

    def allows(self, hits: int, in_vain: bool = False) -> bool:
        """Whether a call is traced for code to be made of it, rather than run in dynamic mode. ``hits``: calls that code has
        answered; ``in_vain``: traces of other signatures were."""
        if self.wanted and not self.affords(self.wanted):
            return False
        each = self.waited / (self.calls - self.tries) if self.calls > self.tries else self.last / SLOWER
        worth = self.waited + hits * each  # what calls have taken without code, and would have
        return (self._is_quick() and not in_vain) or self.looked + self.last <= LOOKING[self.new > AT_ONCE] * worth

    def affords(self, ends: int) -> bool:
        """Whether code for so many ends is made now."""
        return self._is_free(self.ends + ends, self.free, self.made) or self.paid + self.each * ends <= self.waited

    def _is_quick(self) -> bool:
        """Whether a trace for code is free."""
        if self.tries < TRIES_FREE:
            return not self.tries or self.found <= LONG
        few = self.tries < AT_ONCE or 2 * self.new <= self.tries < 2 * AT_ONCE  # of which others have become one
        return self.new <= AT_ONCE and self.found <= (QUICK if few else QUICK / AT_ONCE)

    def _is_free(self, ends: int, most: int, seconds: float) -> bool:
        return ends <= 1 or (ends <= FIRST and seconds <= LONG) or (ends <= most and seconds <= GRACE)

    def called(self, traced: bool, seconds: float) -> None:
        """A call took so long."""
        self.calls += 1
        if traced:
            self.last = seconds
            self.looked += 0.0 if self._is_quick() else seconds
            self.tries += 1
        else:
            self.waited += seconds

    def traced(self, new: int, found: bool) -> None:
        """The last call, of which ``found`` says that it went a new way; ``new`` ends were seen once by now."""
        self.new, self.wanted = new, 0
        if found:
            self.found += self.last

    def compiled(self, ends: int, make: Make) -> None:
        """Make code for so many ends."""
        start = time.thread_time()
        make()
        seconds = time.thread_time() - start
        self.ends += ends
        self.each = seconds / max(ends, 1)
        self.made += seconds
        if not self._is_free(self.ends, self.free, self.made):
            self.paid += seconds


class Family:
    """One signature of the arguments: the variants of what lies outside them, or the reason why it is not compiled."""

    def __init__(
        self, signature: Layout, name: str, form: Form, accept_effects: bool, off: frozenset[str], once: bool = False
    ) -> None:
        self.once = once  # whether it is known by which containers among the arguments are one
        self.aliased = False  # whether that matters, as it turns out
        self.layout, self.name, self.form = signature, name, form
        self.itself = Argument(-1, form.title)
        self.names = form.names(self.positional, signature.keywords)
        self.accept_effects = accept_effects
        self.off = off  # the optimisations that are switched off
        self.variants: list[Variant] = []
        self.lifted: set[Path] = set()  # ints that were seen to change
        self.carried: set[Path] = set()  # where iterations of loops put numbers, outside
        self.dynamic: str | None = None  # why a call that no code answers is in dynamic mode
        self.again = math.inf  # seconds that such calls have taken when one is traced again, for the reason may be gone
        self.pauses = 0
        self.crowded = False  # whether what its arguments hold had too many forms, so that each is better known by itself
        self.history: list[str] = []
        self.remarks: dict[str, None] = {}
        self.account = Account()
        self.answered = CellType(0.0)  # how many calls code has answered; counts faster than an int
        self.leaps = True  # whether loops may; no more where the last iteration of one was not like those before
        self.draft: Variant | None = None  # what the last trace tells of the ways through loops, where one had leapt in vain
        self.apart: set[Any] = set()  # loops whose ways must not be one (see ``Tracer.parted``), or with more ``Room``
        self.moving: dict[Any, set[Any]] = {}  # numbers in containers that its loops change, which are traced: see ``Roller``
        self.told = self.moving  # all that are known by now
        self.states: dict[str, Any] = {}  # texts that go round its loops as numbers; see ``symgrad.source.states``
        # whether its ways meet outside of loops, too, for there are many, and in those that decide in these lines
        self.sections: frozenset[tuple[str, int]] | None = None
        self.laid = False  # whether arrays lay by columns in loops with one way for all
        self.ranges: dict[Any, set[tuple[int, ...]]] = {}  # what loops ran over where arguments tell that, by their lines
        self.fills = False  # whether arrays were filled that no function was seen to fill
        self.errors: list[str] = []  # of its code, in calls of which the function raised none
        self.ready = False  # whether there was code for the way that the last trace went
        self.plan: Plan | None = None  # the random numbers of its calls, where loops draw some
        self.own_plans: Sequence[OwnPlan] = ()  # and those of generators that they make, by their seeds
        self.redrawn = self.followed = 0  # how often a run drew others, or those
        self.diverged = 0  # how often a run with loops that decide contradicted others, which knew fewer of their ways
        self.learnt = 0  # how often it has learnt something, or forgotten
        self.since = 0  # how often that was when it forgot something last

    def trace(self, user: User, leaves: Leaves, kind: type[Trace] = Trace) -> Traced:
        """One traced run of the user's function; another one, where it asked what the trace had mixed, or filled arrays that
        were plain."""
        apart = {*self.apart}
        fills = kind is not Trace or self.fills or may_fill(user.fun, leaves)
        while True:
            own = OwnDraws(self.own_plans if kind is Trace and PLAIN_DRAWS not in apart else ())
            draws = Draws(self.plan if kind is Trace else None, own)
            undo: list[Callable[[], None]] = []
            doubts: set[Any] = set()
            try:
                return self._trace(user, leaves, kind, apart, fills, draws, undo, doubts)
            except Redrawn:
                self._forget_plan()
            except Otherwise as end:
                if end.causes <= apart:
                    raise
                apart |= end.causes
            except (RuleDecides, Repeated, _Flawed):
                draws.rewind()
                put_back(undo)
                raise
            except Exception as error:
                lists = (tables.as_lists(apart) | stacks.as_lists(apart) | doubts) - apart
                plain = isinstance(error, SymgradError) and INTO_PLAIN in str(error) and not fills
                if not draws.is_as_planned():
                    self._forget_plan()
                elif not lists and not plain:
                    draws.give_back()
                    raise
                apart |= lists
                self.fills = fills = fills or (plain and not lists)
            draws.rewind()
            put_back(undo)

    def _forget_plan(self) -> None:
        """A run has drawn other random numbers than were planned."""
        self.plan = None
        self.redrawn += 1

    def _trace(
        self,
        user: User,
        leaves: Leaves,
        kind: type[Trace],
        apart: set[Any],
        fills: bool,
        draws: Draws,
        undo: list[Callable[[], None]],
        doubts: set[Any],
    ) -> Traced:
        fun, learnt = user.fun, self.learnt
        trace, found = kind(), self.layout.found(leaves.given, leaves, fun)
        trace.one_by_one = not trace.symbolic
        if kind is Trace:
            trace.lazy, trace.errors, trace.leaps, trace.apart = True, np.geterr(), self.leaps, {*apart}
            trace.moving, trace.sections, trace.laid = {**self.moving}, self.sections, self.laid
            trace.known_ranges, trace.states = self.ranges, self.states
            trace.vectorizes, trace.selects = "vectorize" not in self.off, "select" not in self.off
            trace.spans, trace.tables = "spans" not in self.off, "tables" not in self.off
            drafts = [self.draft] if self.draft is not None else []
            known = (variant.loops for variant in (*drafts, *self.variants) if variant.knows(found))
            trace.known_ways = next(known, {})
        state = State(trace, self.lifted, self.accept_effects, found, draws, undo) if kind is Trace else None
        watch(trace, state, fills)
        draws.begin(trace, found)
        slots: list[Any] = []
        paths = [()] * len(leaves) if state is None else self.layout.tree.paths()
        for position, (leaf, kind, path) in enumerate(zip(leaves, self.layout.kinds, paths, strict=True)):
            if state is None and isinstance(leaf, PLAIN_NUMBERS):  # nobody reads its graph again, and they may outlive the call
                slots.append(leaf)
            elif isinstance(kind, Static):
                place = Path(Argument(position, "" if state is None else self._input_name(path)), ())
                if state is not None and (isinstance(leaf, (np.ndarray, np.void, slice, *METHODS)) or kind.is_like):
                    leaf = state.read(place, leaf)
                elif state is not None and type(leaf) not in (str, bytes, bool) and not isinstance(leaf, type):
                    state.root(leaf, place)
                slots.append(leaf)
            else:
                slots.append(trace.input(position, leaf))
                if state is not None:
                    slots[-1].node.name = self._input_name(path)
        if state is not None:
            owner, place = fun, Path(self.itself, ())
            if isinstance(fun, MethodType):
                owner, place = fun.__self__, place.then("attr", "__self__")
            if owner is not fun or is_object(fun):
                state.check(place, "type", type(owner))
            if not isinstance(owner, (BuiltinFunctionType, type)) and (type(owner) is not FunctionType or is_users(owner)):
                state.root(owner, place)
        rest, made = iter(slots), list[tuple[Any, Any]]()
        ones: dict[int, Any] | None = {} if state is None else None  # of code, other calls may have several there
        args, values = [
            tuple([child.rebuild(rest, arg, made, ones) for child, arg in zip(group.children, given, strict=True)])
            for group, given in zip(self.layout.tree.children, leaves.given, strict=True)
        ]
        if made:
            trace.given, trace.originals = {id(copy): (copy, one) for one, copy in made}, {id(one) for one, _ in made}
        if self.layout.tree.holds:
            holding = [(one, copy) for one, copy in made if pytree.holds_more(type(copy))]
            for i, (one, copy) in enumerate(holding, len(leaves)):
                start = None if state is None else Path(Argument(i, type(one).__name__), ())
                trace.carried[id(copy)] = Carried(copy, one, pytree.beside(one), start, False)
        outputs: list[Any] = []
        try:
            with tracing(trace):
                if state is not None:
                    state.carry(self.carried)
                out = user.body(trace, args, dict(zip(self.layout.keywords, values, strict=True)), trace.symbolic)
                outputs, tree = pytree.flatten(out)
                outputs = [_settled(trace, leaf) for leaf in outputs]
                if state is not None:
                    outputs = [state.result(leaf) for leaf in outputs]
                    state.check_settings()
                else:
                    for leaf in outputs:
                        if not (type(leaf) is Tracer or is_numeric(leaf) or isinstance(leaf, (str, type, ModuleType))):
                            trace.hooks.holders.note(leaf)
                for leaf in outputs if trace.mixed else ():
                    if type(leaf) is Tracer and leaf.node in trace.mixed and is_narrow(leaf.node.aval):
                        trace.asks_kind(leaf)
                puts = [] if state is None else [_settled(trace, value) for _, value in state.puts]
                stacks.settle(trace, outputs)
        except Exception as error:
            if trace.coarse and not (trace.impure or (state is not None and (state.impure or state.effects))):
                doubts.update(*[one.causes for one in trace.mixed.values() if one.whole])  # for which floats may stand
            _tell_plainly(error, trace)
            if state is not None and trace.left and type(error) in _FLAWS:
                raise _Flawed(repr(error)) from error
            raise
        finally:
            if state is not None:
                state.settle_copies()
                state.__class__ = Finished
            elif not any(map(callable, outputs)):  # a pullback needs what it holds
                trace.hooks.holders.leave(trace)
            trace.given, trace.originals, trace.carried = {}, set(), {}  # which hold the arguments
        if self.dynamic is None:
            self.remarks |= trace.remarks
        if state is None:
            return Traced(trace, outputs, tree)
        draws.finish()
        if not draws.is_steady():
            state.impure = state.impure or "random numbers are drawn in some iterations of a loop that decides on values"
        trace.check_captured()
        state.check_caches()
        nodes: list[Any] = []
        for leaf in (*outputs, *puts):
            if type(leaf) is Tracer:
                nodes.append(leaf.node)
            else:
                nodes.append(trace.constant(leaf)[0] if is_numeric(leaf) else leaf)
        kinds = [node.aval.kind if isinstance(node, Node) else "" for node in nodes]
        end = Leaf(nodes, tree, kinds, [place for place, _ in state.puts], list(trace.required))
        if trace.selections is not None:
            trace.selections.settle(end.nodes())
        return Traced(trace, outputs, tree, Run(trace.graph, list(trace.guards), end, trace.unmasked), state, learnt, draws)

    def _input_name(self, path: tuple[tuple[str, Any], ...]) -> str:
        (_, group), (_, which), *rest = path
        argument: str = self.names[which if group == 0 else which + self.positional]
        keys = [str(key) for _, key in rest]
        if not keys:
            return argument
        return str(keys[-1]) if keys[-1].isidentifier() else f"{argument}[{']['.join(keys)}]"  # until it has a name

    @property
    def positional(self) -> int:
        """How many arguments are passed by position."""
        return len(self.layout.tree.children[0].children)

    def learn(self, user: User, traced: Traced, at_once: bool) -> tuple[Variant, Make] | None:
        """Take a trace in. What makes new code of that, when there is some to be made; ``at_once``: whatever it costs."""
        run, state, self.ready = traced.run, traced.state, False
        assert run is not None
        assert state is not None
        impure = state.impure or state.trace.impure
        if not state.looped <= self.carried:
            self.carried |= state.looped
            self.lifted |= state.looped
            self._begin_anew()
            return None
        if impure:
            (self.give_up if state.told_apart or state.trace.singly else self._pause)(impure)
            return None
        self.dynamic, self.again = None, math.inf
        draft, self.draft = self.draft, None
        if state.trace.leaping:
            self.leaps = self._drafted(user, state)
            return None
        if state.trace.passing:
            return None
        if state.counted:
            self.lifted |= state.counted
            self._begin_anew()
            return None
        if state.asks_which_is_one and not self.once:
            self.aliased = True
            return None
        if traced.learnt < self.since:
            return None
        assert traced.draws is not None
        plan = traced.draws.outcome()
        self.followed += traced.draws.plan is not None
        if self.redrawn > REDRAWN + self.followed:
            self.give_up(str(Redrawn()))
            return None
        own = traced.draws.own.outcome() if traced.draws.own is not None else None
        if own is not None and not any([own is one for one in self.own_plans]):
            self.own_plans = [*self.own_plans, own][-SEEDS:]
            return None
        if plan is not None and plan.has_tables and plan is not traced.draws.plan:
            self.plan = plan
            return None
        overtaken = traced.learnt < self.learnt
        self.learnt += 1
        self.told = state.trace.moving
        self.laid |= state.trace.laid
        self.ranges |= {line: self.ranges.get(line, set()) | ends for line, ends in state.trace.ranges.items()}
        if not state.trace.apart <= self.apart:
            new = state.trace.apart - self.apart
            since = (TURNING, SLIDING, PLAIN_DRAWS)  # it has been so since the trace began
            begun = all([one in since or type(one) in _BEGUN for one in new])
            # iterations that end a loop now plainly, now not, are likely to need these numbers, too
            begun &= self.told == self.moving or not any([type(one) in (Ended, Flag) for one in new])
            self.apart |= state.trace.apart
            if not begun:
                self._begin_anew()
                return None
            self._forget_variants()
        if len(run.graph) > MAX_NODES and (size := len(ancestors(run.leaf.nodes()))) > MAX_NODES:
            self.give_up(f"one call takes {size} operations, more than {MAX_NODES}")
            return None
        drafted = draft is not None and state.trace.known_ways is draft.loops
        for variant in self.variants:
            known = drafted or not state.trace.recalled or state.trace.known_ways is variant.loops
            if known and not variant.conflicts(state.leaves, state):
                if variant.plan != plan:
                    self.give_up(str(Redrawn()))
                    return None
                return self._add(variant, run, state, at_once, overtaken)
            variant.left = None  # the call that it left off is another one's
        if self._lift_ints(state):
            return None
        mine = sum([variant.user() is user for variant in self.variants])
        if mine >= MAX_VARIANTS and any([isinstance(kind, Static) and kind.is_like for kind in self.layout.kinds]):
            self.crowded = True
            return None
        if mine >= MAX_VARIANTS:
            last = f": {self.history[-1]}" if self.history else ""
            self.give_up(f"what it reads from outside had more than {MAX_VARIANTS} forms{last}")
            return None
        if len(self.variants) >= MAX_VARIANTS:  # those of others are not to blame
            oldest = next(variant for variant in self.variants if variant.user() is not user)
            self.variants.remove(oldest)
            self._forgets()
        if self.variants and not own:  # another function of the same code, which has done nothing yet
            self.account.free += AT_ONCE
        variant = Variant(self, user)
        variant.plan = plan
        self.variants.append(variant)
        return self._add(variant, run, state, at_once, overtaken)

    def _drafted(self, user: User, state: State) -> bool:
        """Whether a trace in which loops had leapt in vain tells more of their ways, with which the next one begins."""
        before, after = state.trace.known_ways, {**state.trace.known_ways, **state.trace.ways}
        if how_many(after) <= how_many(before):
            return False
        self.draft = Variant(self, user)
        self.draft.take(state)
        self.draft.loops = after
        return True

    def _begin_anew(self) -> None:
        """Forget all that was traced: from now on, it is traced otherwise."""
        self.moving = self.told
        self._forget_variants()

    def _forget_variants(self) -> None:
        for variant in self.variants:
            variant.forget()
        self.variants.clear()
        self._forgets()

    def _forgets(self) -> None:
        """What is traced by now, by other threads, went by what is forgotten."""
        self.learnt += 1
        self.since = self.learnt

    def _lift_ints(self, state: State) -> bool:
        """Ints from outside that turn out to change become inputs, from the next trace on."""
        found = False
        for variant in list(self.variants):
            conflicts = variant.conflicts(state.leaves, state)
            if not conflicts:  # the trace went by what another one knows of loops
                continue
            self.history.append(f"{conflicts[0]}")
            if all(change.integer for change in conflicts):
                self.lifted |= {change.path for change in conflicts}
                self.variants.remove(variant)
                variant.forget()
                self._forgets()
                found = True
        return found

    def _add(self, variant: Variant, run: Run, state: State, at_once: bool, overtaken: bool) -> tuple[Variant, Make] | None:
        variant.traces += 1
        try:
            leaf = run.leaf = variant.add(run)
        except Diverged as difference:
            if overtaken:  # by what another thread has learnt of loops: it knew fewer of their ways
                return None
            self.diverged += 1
            few = self.diverged <= DIVERGED
            if few and state.trace.recalled and self.told == self.moving and variant.is_unused():
                leaf = run.leaf = variant.begin(run)  # which knew more of loops than those before
            elif self.told != self.moving or (few and state.trace.ways):
                self._begin_anew()
                return None
            else:
                self.give_up(str(difference))
                return None
        ends = list(variant.program.leaves())
        if self.told != self.moving and leaf.seen == 0 and len(ends) > 1:  # calls go other ways: they may do so in loops
            self._begin_anew()
            return None
        again = _repeated(state.trace) if len(ends) > USUAL and leaf.seen == 0 else frozenset()
        if (len(ends) > AT_ONCE and self.sections is None) or not again <= (self.sections or frozenset()):
            self.sections = again | (self.sections or frozenset())
            self.account.free += len(ends)
            self._begin_anew()
            return None
        if len(ends) > MAX_LEAVES:
            line = variant.program.busiest()
            place = f" (mostly at {os.path.basename(line[0])}:{line[1]})" if line else ""
            self.dynamic = f"its branches have more than {MAX_LEAVES} ends{place}"
            if self.hits() * WORTH < self.account.calls:
                self.give_up(self.dynamic)
            return None
        grown = variant.take(state)
        for place, every in state.trace.ways.items():
            variant.loops.pop(place, None)  # so that it comes last
            variant.loops[place] = every
        while len(variant.loops) > MAX_LOOPS:
            del variant.loops[next(iter(variant.loops))]
        self.ready = leaf.linked and not grown and not variant.is_begun_often()
        leaf.seen += 1
        self.account.traced(sum(end.seen == 1 for end in ends) + variant.unlearnt, leaf.seen == 1)
        if leaf.seen == 1 or self.ready:
            return None
        for cost, make in variant.ways(leaf):
            if leaf.linked or at_once or self.account.affords(cost):
                return variant, functools.partial(self.account.compiled, cost, make)
            self.account.wanted = cost
        variant.again = 0
        return None

    def is_tried(self) -> bool:
        """Whether a call that no code answers may be one to make code of: always, or after some in dynamic mode."""
        return self.dynamic is None or self.account.waited >= self.again

    def is_given_up(self) -> bool:
        return self.dynamic is not None and self.again == math.inf

    def _pause(self, reason: str) -> None:
        """Go to dynamic mode for a while. A call that fills a cache, or in which an error is caught, has an effect that others
        do not have: the next one is traced again, then one after a while, which is twice as long each time, so that what always
        has one costs little more than in dynamic mode."""
        self.dynamic = reason
        self.again = self.account.waited + (2**self.pauses - 1) * self.account.last
        self.pauses += 1

    def give_up(self, reason: str) -> None:
        """Go to dynamic mode for good."""
        self.dynamic, self.again = reason, math.inf
        for variant in self.variants:
            variant.template = variant.whole = variant.early = None

    def code_for(self, traced: Traced) -> Piece | None:
        """Code that computes what a trace has left for later; None where to compute it step by step costs no more."""
        assert traced.run is not None
        assert traced.state is not None
        if self.dynamic is not None or not traced.trace.likes or traced.state.undo:  # what was put outside is there
            return None
        for variant in self.variants:
            if traced.run.leaf in variant.program.leaves():
                program = variant.program.only(traced.run.leaf)
                nodes = program.nodes()
                left = sum(map(_work, traced.left()))
                if 2 * left < sum(map(_work, nodes)):
                    return None
                known = next((piece for piece in (variant.whole, variant.early) if piece and piece.answers(traced.run)), None)
                if known is None and left >= EARLY * len(nodes):
                    known = variant.early = Piece(variant, program)
                return known
        return None

    def hits(self) -> int:
        """How many calls its code has answered."""
        return int(self.answered.cell_contents)

    def is_worth_it(self) -> bool:
        """Whether calls that its code answered saved the time that it took to make it: one in dynamic mode takes about a
        quarter of a trace."""
        return self.hits() * self.account.found >= 4 * self.account.spent

    def of_call(self, leaves: Sequence[Any]) -> Variant | None:
        """The last variant that has what lies outside as it is now, in a call with these arguments, the function the last."""
        return next((variant for variant in reversed(self.variants) if not variant.conflicts(leaves)), None)

    def forget(self) -> None:
        """Take the generated sources out of linecache."""
        for variant in self.variants:
            variant.forget()


class Change(NamedTuple):
    """Something outside that is not as a variant has it."""

    path: Path
    before: Any
    now: Any
    line: str
    integer: bool

    def __str__(self) -> str:
        return f"{self.path!r} was {self.before!r:.40}, is {self.now!r:.40} ({self.line})"


class Variant:
    """The traces of one signature that found the same outside their arguments, and the code made of them."""

    def __init__(self, family: Family, user: User | None = None) -> None:
        self.family = family
        self.user: Callable[[], User | None] = (lambda: None) if user is None else weakref.ref(user)  # that it was made for
        self.program = Program()
        self.checks: dict[tuple[Path, str], Check] = {}
        self.lifts: dict[Path, Any] = {}
        self.plan: Plan | None = None  # the random numbers that it draws
        self.silenced: set[str] = set()
        self.traces = self.unlearnt = 0
        self.often = OFTEN  # such calls before there is code for all in one
        self.again = 0  # calls that pieces have answered, which other code had begun to
        self.linked = 0  # how much of ``asked`` calls are checked for
        self.left: tuple[int, Any] | None = None  # where code left off the call that is traced now
        self.overtaken = False  # whether it did for another thread has put something where the call was about to
        self.masks = NONE  # how many derivatives have: more where code with fewer has raised errors again and again
        self.loops: dict[Any, Any] = {}  # the ways through them: see symgrad.loops.forks
        self.whole: Piece | None = None
        self.early: Piece | None = None  # of the first trace alone, where its result was computed by code at once
        self.pieces: dict[tuple[int, Any], Piece] = {}  # made since, by where the other code leaves off
        self.template: Template | None = None
        self.filenames: list[str] = []
        weakref.finalize(self, _forget, self.filenames)

    def add(self, run: Run) -> Leaf:
        """Merge a trace into the program; raises ``Diverged`` when it contradicts what is there."""
        left, self.left = self.left, None
        before = len([*self.program.leaves()])
        leaf = self.program.add(run, left)
        if leaf is None:  # nothing to learn from iterations beside a loop that is rolled up
            self.unlearnt += 1
            return Leaf([], run.leaf.tree, [])
        self.unlearnt += leaf.seen == 0 and len([*self.program.leaves()]) <= before  # it takes the place of others
        return leaf

    def is_unused(self) -> bool:
        """Whether no code has been made of the traces."""
        return self.template is None and self.whole is None and self.early is None and not self.pieces

    def begin(self, run: Run) -> Leaf:
        """Merge a trace into a program that has no other."""
        self.program = Program()
        return self.add(run)

    def knows(self, leaves: Sequence[Any]) -> bool:
        """Whether it knows ways through loops of a call with these arguments, the function the last."""
        return bool(self.loops) and not self.conflicts(leaves)

    def conflicts(self, leaves: Sequence[Any], state: State | None = None) -> list[Change]:
        """Where a call, or its trace, finds something else outside than this variant has, or would have, had it looked."""
        found = []
        checks, lifts = ({}, {}) if state is None else (state.checks, state.lifts)
        for key, mine in self.checks.items():
            theirs = checks.get(key)
            if theirs is not None:
                if not mine.agrees(theirs):
                    found.append(Change(key[0], mine.expected, theirs.expected, theirs.line, _both_int(mine, theirs)))
            elif key[0] in lifts:
                found.append(Change(key[0], mine.expected, lifts[key[0]].value, mine.line, False))
            else:
                now = _now(key[0], leaves)
                if mine.kind == "same":
                    holds = now is _now(mine.expected, leaves)
                else:
                    holds = not isinstance(now, Missing) and _holds(mine, now)
                if not holds:
                    found.append(Change(key[0], mine.expected, now, mine.line, False))
        for path, kind in self.lifts.items():
            if kind is OWNER:  # what matters of which is guarded
                continue
            tracer = lifts.get(path)
            now = _now(path, leaves) if tracer is None else tracer.value
            left = isinstance(now, Missing) or type(now) is Tracer  # of a call in dynamic mode, in a cache
            if left or not isinstance(now, LIFTED) or kind_of(now) != kind:
                found.append(Change(path, kind, now, "", False))
        return found

    def take(self, state: State) -> bool:
        """Add what a trace looked at; whether there was anything new."""
        self.silenced |= state.silenced
        before = self.asked
        self.checks.update({key: check for key, check in state.checks.items() if key not in self.checks})
        self.lifts.update({path: kind_of(tracer.value) for path, tracer in state.lifts.items()})
        self.lifts.update({place.upto(-1): OWNER for place, _ in state.puts})
        return self.asked > before

    @property
    def asked(self) -> int:
        """How much the traces have looked at outside; it only grows."""
        return len(self.checks) + len(self.lifts)

    # ---- code ----

    def state_names(self) -> dict[Path, str]:
        """A parameter name for each value from outside."""
        names = Names(set(self.family.names))
        return {path: names.unique(owner_name(path) if kind is OWNER else node_name(path)) for path, kind in self.lifts.items()}

    @property
    def puts(self) -> list[str]:
        """What its code puts something at outside, for people, each once."""
        return [*dict.fromkeys([repr(place) for leaf in self.program.leaves() for place in leaf.puts])]

    @property
    def slots(self) -> Sequence[tuple[Draw, Aval, int | None]]:
        """The random numbers, or arrays of such, that code takes."""
        return () if self.plan is None else self.plan.slots

    def drawn_names(self) -> list[str]:
        """Variables for these."""
        names = Names({*self.family.names, *self.state_names().values()})
        return [names.unique(draw.name) for draw, *_ in self.slots]

    def signature(self) -> Signature:
        """How the generated function is called."""
        family = self.family
        access: dict[Any, tuple[str, tuple[tuple[str, Any], ...]]] = {}
        kinds = []
        for position, (path, kind) in enumerate(zip(family.layout.tree.paths(), family.layout.kinds, strict=True)):
            (_, group), (_, which), *rest = path
            argument = family.names[which if group == 0 else which + family.positional]
            access[position] = (argument, tuple(rest))
            where = argument + "".join(f".{k}" if step == "attr" else f"[{k!r}]" for step, k in rest)
            kinds.append(f"{where}: {shown(kind)}")
        state = self.state_names()
        for place, name in state.items():
            access[place] = (name, ())
            kind = "object" if self.lifts[place] is OWNER else shown(self.lifts[place])
            kinds.append(f"{name}: {kind}" + (f" ({place!r})" if repr(place) != name else ""))
        drawn = self.drawn_names()
        for i, (name, (draw, aval, rows)) in enumerate(zip(drawn, self.slots, strict=True)):
            access[Drawn(i)] = (name, ())
            kinds.append(f"{name}: {'' if rows is None else f'{rows} of '}{aval} ({draw!r})")
        title = family.name.replace("_", " ", 1) if not family.name.startswith(LONG_KINDS) else family.name
        doc = f"{title}   for {', '.join(kinds)}" if kinds else title
        if len(doc) > 110:
            doc = f"{title}\n\n" + "\n".join(kinds)
        names = [*family.names, *state.values(), *drawn]
        return Signature(family.name, ", ".join(names), names, access, doc)

    def readable(self, *, confirmed: bool = False) -> Code:
        """The code for people, of all branches traced so far, or of those alone that two traces agreed on."""
        program = self.program.confirmed() if confirmed else self.program
        return build(for_readers(improve(program, self.family.off), self.family.off), self.signature(), fresh=False)

    def running(self) -> Code:
        """The code that runs, of all branches traced so far."""
        return self.quickest(self.program)[0]

    def quickest(self, program: Program, masks: int = NONE) -> tuple[Code, Program, int]:
        """The code that runs; the program, improved if the code has all of its masks; and how many it has: as few as ``masks``
        says, if they were not missed before, and cost more than little."""
        off = self.family.off
        for least in range(ALL if "masks" in off else max(masks, self.masks), ALL):
            plain = with_fewer(program, least)
            if plain is not None:
                code = self.print(improve(plain, off))
                if not code.python or long_masks(program) or not masks_are_few(program, plain):
                    return code, program, least
        improved = improve(program, off)
        return self.print(improved), improved, ALL

    def print(self, improved: Program) -> Code:
        """The code that runs, of an improved program."""
        faster = speed_up(improved, self.family.off)
        progress.at("print")
        return build_fast(faster, self.signature(), self.family.off)

    def ways(self, leaf: Leaf) -> list[tuple[int, Make]]:
        """How code may be made that gets to a confirmed end: for how many ends, the best way first."""
        ends = [end for end in self.program.leaves() if end.seen > 1]
        linked = sum(end.linked for end in ends)
        everything = len(ends), self.compile
        if self.whole is None or not self.fits() or self.is_begun_often():
            return [everything]
        if linked < len(self.whole.ends) + len(self.pieces):  # a loop has taken the place of its iterations
            return [everything]
        if leaf.linked:
            return [(0, self.link)]
        piece = 1, functools.partial(self.extend, leaf)
        return [everything, piece] if len(self.pieces) + 1 >= len(self.whole.ends) else [piece]

    def is_begun_often(self) -> bool:
        """Whether calls have been begun by one piece of code, and answered by another one, that it is time for one for both."""
        return self.again >= self.often and self.family.dynamic is None

    def fits(self) -> bool:
        """Whether there is code, and it takes all that is read from outside by now."""
        return self.whole is not None and self.whole.signature.names == self.signature().names

    def compile(self) -> None:
        """Make the function of all confirmed branches, and what checks a call and runs it."""
        program = self.program.confirmed()
        known = self.early if self.early is not None and self.early.is_of(program) else None
        self.often *= 2 if self.is_begun_often() else 1
        self.whole, self.early, self.pieces, self.again = known or Piece(self, program), None, {}, 0
        self.whole.link()
        self.link()

    def extend(self, leaf: Leaf) -> None:
        """Make the piece that gets to a new end, and check calls for what its traces have looked at."""
        place, program = self.program.missing(leaf)
        self.pieces[place] = Piece(self, program)
        self.pieces[place].link()
        if self.asked > self.linked:
            self.link()

    def further(self, checked: int, exit: Unexplored, *values: Any) -> Any:
        """What pieces answer to a call that the other code has left; ``_MISSED`` if it goes a new way, or one that more must
        be ``checked`` for than this call was."""
        with np.errstate(**dict.fromkeys(self.silenced, "ignore")):  # type: ignore[arg-type]
            while (piece := self.pieces.get(exit.args[1:])) is not None and piece.asked <= checked:
                try:
                    result = piece.run(*values)
                except Unexplored as other:
                    exit = other
                except Exception as error:
                    self.raised(error)
                    return _MISSED
                else:
                    self.again += 1
                    return _MISSED if self.is_begun_often() else result  # the trace that follows makes code of all
        self.left = exit.args[1:] or None
        self.overtaken = self.left is None
        return _MISSED

    def rescued(self, whole: Piece, checked: int, *values: Any) -> Any:
        """What is answered by NumPy where Python's numbers have raised; ``_MISSED`` if that is another error."""
        try:
            return whole.plain(*values)
        except Unexplored as exit:
            return self.further(checked, exit, *values)
        except Exception as error:
            return self.failed(whole, error)

    def failed(self, whole: Piece, error: Exception) -> Any:
        """``_MISSED``, after an error of the code's own; it is the function's where nobody asks where generators were."""
        self.raised(error)
        if self._is_sure(whole):
            raise error
        return _MISSED

    def raised(self, error: Exception) -> None:
        """Remember an error of the code's own: where the function raises none again and again, the code is no good."""
        if not isinstance(error, (ArithmeticError, np.linalg.LinAlgError)):
            self.family.errors.append(f"{type(error).__name__}: {error}")

    def load(self, source: str, code: Code, **more: Any) -> Callable[..., Any]:
        """The function that a source defines, with what ``code`` refers to, and more."""
        namespace = {**self._namespace(code), **more}
        self._execute(source, self.family.name, namespace)
        function: Callable[..., Any] = namespace[self.family.name]
        return function

    def lifted(self, fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """What the function reads from outside in a call, as it is now."""
        given = tuple(args), tuple(kwargs.values())
        there = self.family.layout.found(given, pytree.flatten(given)[0], fun)
        found = [path.find(there) for path in self.lifts]
        if self.plan is not None:
            found += self.plan.draw(*[path.find(there) for path in self.plan.sources])
        return found

    def _execute(self, text: str, name: str, namespace: dict[str, Any]) -> None:
        self.filenames.append(execute(text, name, namespace))

    def forget(self) -> None:
        """Take the generated sources out of linecache."""
        _forget(self.filenames)

    def link(self) -> None:
        """Make the function that checks whether a call is one of this variant, and runs its code if it is.

        Short code stands in its text itself, else it is called. Names of its own start with an underscore.
        """
        assert self.whole is not None
        family, code, function = self.family, self.whole.code, self.whole.function
        space: dict[str, Any] = {"_ndarray": np.ndarray, "_ABSENT": ABSENT, "_alike": is_same}
        space |= {"_present": _present, "_given": family.form.given}
        used = {*_used(function.__code__)}
        names, state, drawn = family.names, list(self.state_names().values()), self.drawn_names()
        parameters = {*family.form.positional, *(family.form.keywords or ())}
        clear = parameters.difference(names, state, drawn).isdisjoint(used) and not any(map(is_used, parameters))
        clear = clear and not any(name.startswith("_") and name != "_" for name in used | parameters)
        if not clear:
            names, state, drawn = _numbered("_a", names), _numbered("_o", state), _numbered("_d", drawn)
        header, form, given, within = family.form.entry(names, family.layout, clear)
        checks: list[str] = []
        kinds = iter(family.layout.kinds)
        leaves: list[str] = []
        holders: list[str] = []
        containers, given_names = [""], iter(names)  # of which the first are those of all arguments
        for group in family.layout.tree.children:
            containers += [""] * group.is_known_again
            for child in group.children:
                check_tree(child, next(given_names), kinds, checks, space, leaves, containers, holders)
        several = [f"id({name})" for name in containers if name]
        if family.once and len(several) > 1:
            checks.append(f"len({{{', '.join(several)}}}) == {len(several)}")
        cells: dict[str, CellType | Free] = {"_hits": family.answered}
        home: dict[Path, Check] = {}  # what are names in the namespace that the function is to have for its own
        outside, sources = self._outside(state, [*leaves, *holders, "_fun"], space, cells, home)
        names = [*names, *state, *drawn]
        if clear and len(code.body) <= SHORT and not self.whole.hopes:
            space = {**self._namespace(code), **space}
            body = [line[4:] for line in code.body]
        else:
            space["_function"] = function
            body = [f"return _function({', '.join(names)})"]
        if self.silenced:
            space |= {"_errstate": np.errstate, "_silenced": dict.fromkeys(sorted(self.silenced), "ignore")}
            body = ["with _errstate(**_silenced):", *(f"    {line}" for line in body)]
        self.linked = self.asked
        space |= {"_after": functools.partial(self.after, self.whole, self.linked), "_MISSED": _MISSED}
        drawing, drawn_again = self._drawing(drawn, sources, space, within)
        own = ["_busy", "_miss", "_fun", *cells]
        condition = [
            "            try:",
            f"                _same = {' and '.join(outside)}",
            "            except Exception:",
            "                _same = False  # it is not even there",
            "            if not _same:",
            f"                return _miss({within})",
        ]
        lines = [
            f"    def {family.name}({header}):",
            "        nonlocal _hits",
            f"        if {' and '.join([*form, *checks])}:",
            *(condition if outside else []),
            *drawing,
            "            try:",
            "                _hits += 1.0",
            *(f"                {line}" for line in body),
            "            except Exception as _error:",
            f"                if (_result := _after({', '.join(['_error', *names])})) is not _MISSED:",
            "                    return _result",
            *drawn_again,
            "            _hits -= 1.0",
            f"            return _miss({within})",
            f"        return _miss({given})",
            f"    return {family.name}",
        ]
        text = "\n".join(lines) + "\n"
        space = {name: _BUILTINS[name] for name in sorted({*_WORD.findall(text)} & _BUILTINS.keys())} | space
        made: dict[str, Any] = {}
        self._execute(f"def link({', '.join([*own, *space])}):\n{text}", f"{family.name} entry", made)
        entry = made["link"](*[None] * len(own), *space.values())
        entry.__qualname__ = family.form.title
        self.template = Template(entry, cells, home)

    def _drawing(
        self, drawn: Sequence[str], sources: Sequence[str], space: dict[str, Any], within: str
    ) -> tuple[list[str], list[str]]:
        """What draws the random numbers before a call, and what comes after an error, so that the trace draws the same ones.

        Most generators take a while to tell how to get back. Where code goes one way, and raises nothing that hangs on what was
        drawn, they are not asked: such an error (of ``np.errstate(all="raise")``, or for want of memory) is the function's.
        """
        if self.plan is None:
            return [], []
        assert self.whole is not None
        given = _numbered("_g", sources)
        before = [f"            {name} = {source}" for name, source in zip(given, sources, strict=True)]
        space |= {"_draw": self.plan.draw}
        left = f"{', '.join(drawn)}, = " if drawn else ""
        draw = f"            {left}_draw({', '.join(given)})"
        if self._is_sure(self.whole):
            return [*before, draw], []
        space |= {"_states_of": self.plan.states, "_rewind": rewind}
        before.append(f"            _states = _states_of({', '.join(given)})")
        again = ["            _rewind(_states)"]
        if self.plan.may_raise:  # and the function may not get there, or catch that
            return [
                *before,
                "            try:",
                f"    {draw}",
                "            except Exception:",
                f"    {again[0]}",
                f"                return _miss({within})",
            ], again
        return [*before, draw], again

    def _is_sure(self, whole: Piece) -> bool:
        """Whether nobody asks where generators were."""
        return self.plan is not None and self.plan.rewinds_slowly and not self.plan.may_raise and whole.is_sure

    def after(self, whole: Piece, checked: int, error: Exception, *values: Any) -> Any:
        """What answers a call in which the code has raised an error; ``_MISSED`` if it is traced: an error as Python has it."""
        if isinstance(error, Unexplored):
            return self.further(checked, error, *values)
        if whole.code.python:
            return self.rescued(whole, checked, *values)
        return self.failed(whole, error)

    def _namespace(self, code: Code) -> dict[str, Any]:
        return {"np": np, "runtime": runtime, "Unexplored": Unexplored, **code.namespace}

    def _outside(
        self,
        state: list[str],
        leaves: list[str],
        space: dict[str, Any],
        cells: dict[str, CellType | Free],
        home: dict[Path, Check],
    ) -> tuple[list[str], list[str]]:
        """Conditions that what lies outside is as it was, which also fetch what is lifted; and what random numbers are drawn
        from, and by.

        What they refer to goes into ``space``, what are to be variables of the user's own into ``cells``, and names in the
        namespace of which it has most into ``home``.
        """

        bound: dict[Any, str] = {}  # by identity, where two that are equal are not one

        def bind(value: Any) -> str:
            key = value if type(value) is Free else id(value)
            if key not in bound:
                known, letter = (cells, "_c") if isinstance(value, (CellType, Free)) else (space, "_r")
                bound[key] = name = f"{letter}{len(known)}"
                known[name] = value
            return bound[key]

        paths = [path for path, _ in self.checks] + [c.expected for c in self.checks.values() if c.kind == "same"]
        drawing = () if self.plan is None else (*self.plan.sources,)
        uses = Counter(prefix for path in [*paths, *self.lifts, *drawing] for prefix in path.prefixes())
        names: dict[Path, str] = {}

        def shown(path: Path) -> str:
            """A path as an expression; what several have in common is looked up once."""
            if path in names:
                return names[path]
            text = path.text(shown, leaves, bind)
            if uses[path] < 2 or not path.steps:
                return text
            names[path] = f"_p{len(names)}"
            return f"({names[path]} := {text})"

        spaces: dict[int, dict[Path, Check]] = {}  # what are names in one and the same namespace
        for (path, kind), check in self.checks.items():
            if kind == "is" and uses[path] == 1 and (space_of := path.namespace()) is not None:
                spaces.setdefault(id(space_of), {})[path] = check
        others = sorted(spaces.values(), key=len)
        home |= others.pop() if others else {}
        together = [named for named in others if len(named) >= SEVERAL or any(map(_is_name, named))]
        conditions = [f"{HOME}{i} is {bind(check.expected)}" for i, check in enumerate(home.values())]
        conditions += [f"{bind(_stand_for(named))}()" for named in together]
        for (path, _), check in self.checks.items():
            if not any(named.get(path) is check for named in (home, *together)):
                conditions.append(check.text(shown(path), shown, bind))
        for name, (path, kind) in zip(state, self.lifts.items(), strict=True):
            if kind is OWNER and not path.steps and type(path.root) is not Argument:
                space[name] = path.root
                continue
            found: list[str] = []
            if kind is OWNER:
                found.append(f"({name}) is not None")
            else:
                check_kind(kind, name, found, space)
            conditions.append(found[0].replace(f"({name})", f"({name} := {shown(path)})", 1))
        return conditions, [*map(shown, drawing)]


class Piece:
    """Code of a program, or of what is below one of its branches. ``ends`` are those of the tree that it gets to.

    It ``hopes`` where its derivatives have fewer masks than all: where they had to have more, a piece that has them answers.
    """

    def __init__(self, variant: Variant, program: Program, masks: int = NONE) -> None:
        family = variant.family
        self.variant, self.ends, self.signature = variant, list(program.leaves()), variant.signature()
        self.asked = variant.asked
        self.captured = list(program.graph.arrays.values())
        self.is_sure = program.root is self.ends[0] and not any(map(_may_raise, program.nodes()))
        with progress.compiling(family.name, len(program.nodes())):
            self.code, self.simplified, self.masks = variant.quickest(program, masks)
            progress.at("compile")
            self.function: Any = variant.load(self.code.source, self.code)
        if self.hopes:
            self.function = self._hoping(program, self.function)
        self._plain: Callable[..., Any] | None = None

    @property
    def hopes(self) -> bool:
        return self.masks < ALL

    def _hoping(self, program: Program, fewer: Callable[..., Any]) -> Callable[..., Any]:
        """What runs code with fewer masks; where that raises an error, or has again and again, a piece with more."""
        errors, masked = 0, None

        @functools.wraps(fewer)
        def run(*values: Any) -> Any:
            nonlocal errors, masked
            if errors < PATIENCE:
                try:
                    result = fewer(*values)
                except (ArithmeticError, ValueError):  # of LAPACK's, too
                    errors += 1
                    if errors == PATIENCE:
                        self.variant.masks = max(self.variant.masks, self.masks + 1)
                else:
                    errors = 0
                    return result
            masked = masked or Piece(self.variant, program, self.masks + 1)
            return masked.run(*values)

        return run

    def link(self) -> None:
        """Calls get here from now on."""
        for leaf in self.ends:
            leaf.linked = True

    def is_of(self, program: Program) -> bool:
        """Whether another piece for this program would be the same."""
        same = self.ends == list(program.leaves()) and self.signature == self.variant.signature()
        return same and [*map(id, self.captured)] == [*map(id, program.graph.arrays.values())]

    def answers(self, run: Run) -> bool:
        """Whether it computes what a traced call did."""
        return run.leaf in self.ends and self.signature == self.variant.signature()

    def result(self, traced: Traced, leaves: list[Any]) -> Any:
        """The result of a traced call with these arguments."""
        args, values = self.variant.family.layout.tree.unflatten(leaves)
        read = {dict(node.params)["position"]: value for node, value in traced.trace.values.items() if node.op is INPUT}
        assert traced.state is not None
        lifted = [read[path] if path in read else path.find(traced.state.leaves) for path in self.variant.lifts]
        drawn = [read[Drawn(i)] for i in range(len(self.variant.slots))]
        with np.errstate(**dict.fromkeys(self.variant.silenced, "ignore")):  # type: ignore[arg-type]
            return self.run(*args, *values, *lifted, *drawn)

    def run(self, *values: Any) -> Any:
        """Run it; where Python's numbers raise, by NumPy alone."""
        try:
            return self.function(*values)
        except (ArithmeticError, ValueError, IndexError):
            if not self.code.python:
                raise
            return self.plain(*values)

    def plain(self, *values: Any) -> Any:
        """The code run by NumPy alone, which has infinities and warnings where Python's numbers raise."""
        if self._plain is None:
            off = self.variant.family.off | {"scalarize", "math", "hoist"}
            code = build_fast(speed_up(self.simplified, off), self.signature, off)
            self._plain = self.variant.load(code.source, code)
        with np.errstate(**dict.fromkeys(self.variant.silenced, "ignore")):  # type: ignore[arg-type]
            return self._plain(*values)


class Template:
    """What a call of any function of some code is checked and answered by, once it has that function's variables.

    ``cells`` are of variables that it reads as they are now, as fast as its own: ones there are, or the function's; ``home``
    are names that it reads so in a namespace.
    """

    def __init__(self, function: FunctionType, cells: dict[str, CellType | Free], home: dict[Path, Check]) -> None:
        self.function = function
        self.code, self.space = _at_home(function, home)
        names = function.__code__.co_freevars
        self.closure: list[Any] = [cells.get(name, own) for name, own in zip(names, function.__closure__ or (), strict=True)]
        self.free = [(i, cell.place) for i, cell in enumerate(self.closure) if type(cell) is Free]
        self.own = [names.index(name) if name in names else None for name in ("_busy", "_miss", "_fun")]

    def entry(self, user: User) -> Callable[..., Any]:
        """What a derivative is called by."""
        found = user.entries.get(self)
        if found is None:
            found = user.entries[self] = self._of(running, user.missed, user.fun)
        return found

    def probe(self, user: User) -> Callable[..., Any]:
        """The same for calls beside a trace, too; it returns ``_MISSED`` for those that it does not answer."""
        found = user.probes.get(self)
        if found is None:
            found = user.probes[self] = self._of((), _missed, user.fun)
        return found

    def _of(self, *own: Any) -> Callable[..., Any]:
        closure, like = self.closure.copy(), self.function
        for place, value in zip(self.own, own, strict=True):
            if place is not None:
                closure[place] = CellType(value)
        for place, variable in self.free:
            closure[place] = own[-1].__closure__[variable]
        made = FunctionType(self.code, self.space, like.__name__, like.__defaults__, tuple(closure))
        made.__kwdefaults__, made.__qualname__ = like.__kwdefaults__, like.__qualname__
        return made


def _is_name(path: Path) -> bool:
    return path.steps[-1][0] == "name"


def _at_home(entry: FunctionType, home: dict[Path, Check]) -> tuple[CodeType, dict[str, Any]]:
    """The function's code, and for its globals a namespace of the user's, where Python finds names in a fifth of the time that
    a call takes. All that is its own are variables from around it: the names in it are ``HOME`` and their numbers alone."""
    names = {f"{HOME}{i}": str(path.steps[0][1]) for i, path in enumerate(home)}
    code = entry.__code__.replace(co_names=tuple([names.get(name, name) for name in entry.__code__.co_names]))
    space = next((path.namespace() for path in home), None)
    return code, entry.__globals__ if space is None else space


def _stand_for(named: dict[Path, Check]) -> Callable[[], bool]:
    """A function that says whether names in a namespace stand for what they did.

    They are its globals, which Python looks up in a third of the time that items of a dict take.
    """
    conditions = " and ".join([f"{path.steps[0][1]} is _{i}" for i, path in enumerate(named)])
    text = f"make = lambda {', '.join([f'_{i}' for i in range(len(named))])}: lambda: {conditions}"
    made: dict[str, Any] = {}
    exec(text, next(iter(named)).namespace(), made)
    function: Callable[[], bool] = made["make"](*[check.expected for check in named.values()])
    return function


def _work(node: Node) -> int:
    """About how long it takes to compute a node, in bytes of a large array that are written in that time."""
    if isinstance(node.op, Loop):
        return (node.op.course.count or 0) * sum([max(STEP, _work(one)) for one in node.op.body.nodes()])
    if not isinstance(node.aval, Aval) or not node.args or node.op.alias:
        return 0
    return node.aval.nbytes


def _numbered(letter: str, values: Sequence[Any]) -> list[str]:
    """A name for each."""
    return [f"{letter}{i}" for i in range(len(values))]


def _may_raise(node: Node) -> bool:
    """Whether an operation may raise an error that hangs on values, or is a loop, in which some may."""
    if not node.active or not node.args:
        return False
    plain = isinstance(node.aval, Aval) and node.aval.kind != "python" and not node.op.sized
    known = node.op.family in ("elementwise", "linear", "multilinear") or isinstance(node.op.key, np.ufunc)
    places = any([arg.active and not is_inexact(arg.aval) for arg in node.args])
    return not (plain and known) or (places and not isinstance(node.op.key, np.ufunc))


def _used(code: CodeType) -> Iterator[str]:
    """The names in a function, and in those within it."""
    yield from (*code.co_varnames, *code.co_cellvars, *code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _used(inner)


LONG_KINDS = ("value_and_grad_", "elementwise_grad_")


def _loops(outputs: Sequence[Any]) -> set[Any]:
    """The loops that outputs depend on."""
    return {node.op for node in ancestors(outputs) if isinstance(node.op, Loop)}


def node_name(path: Path) -> str:
    """The last name in a path: what the user calls the value."""
    kind, last = path.steps[-1] if path.steps else ("", "state")
    last = last[1] if kind == "default" else last
    return str(last) if str(last).isidentifier() else "".join(c if c.isalnum() else "_" for c in repr(path)).strip("_")


OWNER = object()  # stands for the kind of something outside that code puts something into


def owner_name(path: Path) -> str:
    """A name for something outside that code puts something into."""
    if not path.steps and type(path.root) in (dict, CellType):
        return "space" if type(path.root) is dict else "cell"
    if path.upto(-1).steps[-1:] == (CLOSURE,):
        return "cell"
    return "owner" if path.steps[-1:] == (("attr", "__self__"),) or not path.steps else node_name(path)


class Missing(NamedTuple):
    """Nothing is there: reading it raised this."""

    error: Exception


PLAIN_NUMBERS = (float, int, complex, np.generic)
LIFTED = (*PLAIN_NUMBERS, np.ndarray)


def _repeated(trace: Trace) -> frozenset[tuple[str, int]]:
    """The lines of loops that have decided again and again in a trace, each time on its own; none where they did very often, or
    where it is understood what loops do in them."""
    lines = Counter(guard.line for guard in trace.guards if guard.line and not guard.unseen)
    found = {line: times for line, times in lines.items() if times >= AGAIN}
    few = 0 < sum(found.values()) <= MANY and trace.understood.isdisjoint(found)
    return in_loops(found) if few else frozenset()


def _now(path: Path, leaves: Sequence[Any]) -> Any:
    """What is outside now, where a trace did not look."""
    try:
        return path.find(leaves)
    except Exception as error:
        return Missing(error)


def _holds(check: Check, now: Any) -> bool:
    try:
        return check.holds(now)
    except (LookupError, AttributeError, TypeError, ValueError):  # it is of another kind
        return False


def _both_int(a: Check, b: Check) -> bool:
    """Whether it is an integer that has changed."""
    kind = type(a.expected)
    return a.kind == "eq" and type(b.expected) is kind and (kind is int or issubclass(kind, np.integer))


def _forget(filenames: list[str]) -> None:
    for filename in filenames:
        linecache.cache.pop(filename, None)


def _tell_plainly(error: Exception, trace: Trace) -> None:
    """Put plain values in place of traced ones in an error of the user's, and of their texts, which are marked.

    Who catches it can do nothing with others.
    """
    if isinstance(error, SymgradError):
        return

    def told(value: Any) -> Any:
        if isinstance(value, str):
            return trace.plain_text(value)
        return plain(value, copy=True) if tracers(value) else value

    error.args = tuple(map(told, error.args))
    vars(error).update({name: told(value) for name, value in vars(error).items()})


def _settled(trace: Trace, leaf: Any) -> Any:
    """An output leaf as it is after the last write; object arrays of Tracers stacked; a text without a word of these."""
    if isinstance(leaf, str) and trace.texts:
        return trace.plain_text(leaf)
    if type(leaf) is Tracer:
        return traced(trace, leaf)
    if type(leaf) is np.ndarray and leaf.dtype == object and any(type(item) is Tracer for item in leaf.flat):
        return trace.stack(leaf)
    return leaf


def _fresh(leaf: Any) -> Any:
    """A result of its own: a new, writable, C-contiguous array, or the number itself."""
    value = leaf.value if type(leaf) is Tracer else leaf
    return np.array(value, order="C") if type(value) is np.ndarray else value


# -- all signatures of one derivative ------------------------------------------------------------------------------

_MISSED = object()


class User:
    """One derivative that uses a compiler: its function, what runs that traced, and how its calls get to an entry.

    Entries send calls that they do not answer to ``missed``.
    """

    def __init__(self, fun: Any, body: Body, use: Use, missed: Callable[..., Any]) -> None:
        self.fun, self.body, self.use, self.missed = fun, body, use, missed
        self.entries: dict[Template, Callable[..., Any]] = {}
        self.probes: dict[Template, Callable[..., Any]] = {}


class Compiler:
    """The calls of derivatives whose functions are alike: finds the variant of each, traces, compiles, runs."""

    def __init__(self, name: str, form: Form, mode: str, off: frozenset[str], patience: int = 0) -> None:
        self.name, self.form, self.mode, self.off = name, form, mode, off
        self.patience = patience  # calls of a signature in dynamic mode before one is traced
        self.known: OrderedDict[Layout, Family] = OrderedDict()
        self.lock = threading.RLock()
        self.misses = 0
        self.idle: list[float] = []  # the seconds that code of signatures took which is of little use, as far as is known
        self.in_vain = False  # whether most signatures were traced for code again and again, and there is none
        self.strict = False  # whether objects among the arguments are known by themselves
        self.once = False  # whether it matters which containers among them are one
        self.users: weakref.WeakSet[User] = weakref.WeakSet()
        self.last: Variant | None = None  # that answered, which is the first to be tried by another user
        self._warned = False

    def join(self, user: User) -> None:
        """One more derivative, whose calls get to code that there is."""
        self.users.add(user)
        self._use(user, self.last)

    def _use(self, user: User, variant: Variant | None) -> None:
        template = None if variant is None else variant.template
        if template is not None:
            self.last = variant
        user.use(None if template is None else template.entry(user))

    def _unlink(self) -> None:
        """No user's calls get to an entry any more."""
        self.last = None
        for user in list(self.users):
            user.use(None)
            user.entries.clear()
            user.probes.clear()

    def family(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Family, Leaves]:
        """The family of a call, new if need be, and the leaves of its arguments."""
        key, leaves = layout(*self.form.normal(args, kwargs), self.strict, self.once)
        with self.lock:
            found = self.known.get(key)
            if found is None:
                accepts = self.mode == "compiled"
                found = self.known[key] = Family(key, self.name, self.form, accepts, self.off, self.once)
                if len(self.known) % FEW == 0:
                    self._tidy()
            else:
                self.known.move_to_end(key)
        return found, leaves

    def _tidy(self) -> None:
        """Forget the least recently used signatures. Those that there is no code for take next to no memory."""
        coded = [family for family in self.known.values() if family.variants]
        rest = [family for family in self.known.values() if not family.variants]
        for family in (*coded[:-MAX_SIGNATURES], *rest[:-MAX_WAITING]):
            del self.known[family.layout]
            family.forget()

    def miss(self, user: User, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that the current entry did not answer: another variant may, or it is traced."""
        family, leaves = self.family(args, kwargs)
        for variant in list(family.variants):
            template = variant.template
            if template is not None:
                for _ in range(TRIES):
                    variant.overtaken = False
                    result = template.probe(user)(*args, **kwargs)
                    if not variant.overtaken:
                        break
                if result is not _MISSED:
                    self._use(user, variant)
                    return result
        return self.explore(user, family, leaves)

    def explore(self, user: User, family: Family, leaves: Leaves, at_once: bool = False) -> Any:
        """A call that no code answers. ``at_once``: it is traced, and code made of it, whatever that costs."""
        with progress.seldom():
            return self._explored(user, family, leaves, at_once)

    def _explored(self, user: User, family: Family, leaves: Leaves, at_once: bool) -> Any:
        self.misses += 1
        if self.mode == "debug_nans":
            return family.trace(user, leaves, WatchedTrace).result()
        compiles = self.mode != "dynamic" and (family.is_tried() or (at_once and not family.is_given_up()))
        begun = any([variant.is_begun_often() for variant in family.variants])
        symbolic = compiles and (
            at_once or begun or (not self._waits(family) and family.account.allows(family.hits(), self.in_vain))
        )
        start = time.thread_time()
        errors, family.errors = family.errors, []
        try:
            traced = family.trace(user, leaves, Trace if symbolic else Tape)
        except RuleDecides as error:
            family.give_up(str(error))
            self._unlink()
            traced = family.trace(user, leaves, Tape)
        except _Flawed as error:
            traced = family.trace(user, leaves, Tape)  # which raises what is the function's
            self._tell_flaw(family, f"the trace for its code raises an error: {error}")
        except Repeated:
            self._tell_containers()
            return self._explored(user, *self._again(family, leaves), at_once)
        family.account.called(symbolic, time.thread_time() - start)
        try:
            code = self._learn(user, family, traced, at_once) if traced.run is not None else None
        except _FLAWS as error:
            if type(error) not in _FLAWS:
                raise
            code = None
            self._tell_flaw(family, f"no code can be made of it: {error!r}")
        if errors and compiles:
            self._doubt(family, errors)
        try:
            return traced.result() if code is None else code.result(traced, leaves)
        except Exception:
            if not traced.trace.likes:
                raise
        finally:
            traced.trace.let_go()
        if traced.draws is not None:
            traced.draws.rewind()
        if traced.state is not None:
            put_back(traced.state.undo)
        return family.trace(user, leaves, Tape).result()  # an error as Python has it

    def _tell_containers(self) -> None:
        """From here on, it matters which containers among the arguments are one."""
        with self.lock:
            self.once = True
            self.clear()

    def _again(self, family: Family, leaves: Leaves) -> tuple[Family, Leaves]:
        """The family of the same call, and its leaves, by what is known now."""
        args, values = leaves.given
        return self.family(args, dict(zip(family.layout.keywords, values, strict=True)))

    def _waits(self, family: Family) -> bool:
        """Whether a signature's calls are in dynamic mode yet: where code for others was of little use, until they have taken
        as long as that took."""
        if self.misses % FEW == 1 or len(self.known) < FEW:
            with self.lock:
                others = [*self.known.values()]
            self.idle = [other.account.spent for other in others if other.variants and not other.is_worth_it()]
            in_vain = [other for other in others if other.account.tries >= TRIES_FREE and not other.hits()]
            self.in_vain = len(in_vain) > 1 and 2 * len(in_vain) > sum([other.account.tries > 1 for other in others])
        if family.variants:
            return False
        idle, few = self.idle, 1 if self.in_vain else AT_ONCE
        waits = len(idle) >= few and family.account.waited < sum(idle) / len(idle)
        return waits or family.account.calls < self.patience

    def _doubt(self, family: Family, errors: list[str]) -> None:
        """Go to dynamic mode, and say so, where code has done nothing but raise errors that the function does not.

        On a way that there is no code for, the code of others may well raise one before it sees that.
        """
        if not family.ready:
            errors = errors[:-1]
        family.errors = errors
        if len(errors) >= DOUBTS and not family.hits():
            self._tell_flaw(family, f"its code raises an error, and the function does not: {errors[-1]}")

    def _tell_flaw(self, family: Family, why: str) -> None:
        """Go to dynamic mode, whose results are right, and say why."""
        with self.lock:
            family.give_up(why)
            self._unlink()
        warnings.warn(
            f"{self.name} is traced at every call: {why}. This is a flaw of symgrad's: please report it",
            RuntimeWarning,
            stacklevel=_outside_symgrad(),
        )

    def _learn(self, user: User, family: Family, traced: Traced, at_once: bool) -> Piece | None:
        assert traced.run is not None
        assert traced.state is not None
        if traced.state.effects and self.mode == "compiled" and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.name}: compiled calls leave out a side effect: {traced.state.effects[0]}", stacklevel=_outside_symgrad()
            )
        with self.lock:
            if not family.is_given_up():
                made = family.learn(user, traced, at_once)
                if made is not None:
                    variant, make = made
                    traced.settle()
                    make()
                    self._use(user, variant)
                elif family.crowded:
                    self.strict = True
                    self.known.pop(family.layout, None)
                elif family.aliased:
                    self._tell_containers()
                elif family.is_given_up():  # the entries in use may be of its code
                    self._unlink()
            return family.code_for(traced)

    def traced(self, user: User, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant:
        """A variant for a call, with at least one trace."""
        family, leaves = self.family(args, kwargs)
        found = family.of_call(family.layout.found(leaves.given, leaves, user.fun))
        if found is None:
            try:
                traced = family.trace(user, leaves)
            except Repeated:
                self._tell_containers()
                return self.traced(user, args, kwargs)
            except _Flawed as error:
                raise (error.__cause__ or error) from None
            assert traced.run is not None
            assert traced.state is not None
            if not family.is_given_up():
                self._learn(user, family, traced, True)
            found = family.of_call(family.layout.found(leaves.given, leaves, user.fun))
            if found is None:  # dynamic mode: for the reader alone
                assert traced.draws is not None
                found = Variant(family)
                found.plan = traced.draws.as_run()
                found.program.add(traced.run)
                found.take(traced.state)
        return found

    def ready(self, user: User, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant:
        """The variant whose code answers a call, all in one; it is traced until there is one.

        Raises ``RuntimeError`` where it runs in dynamic mode.
        """
        for _ in range(5):  # traced, confirmed, and both again where an int from outside turned out to change
            family, leaves = self.family(args, kwargs)
            for variant in family.variants:
                template = variant.template
                confirmed = variant.program.root is not None and variant.program.confirmed().root is not None
                if template is not None and confirmed and template.probe(user)(*args, **kwargs) is not _MISSED:
                    if variant.pieces or not variant.fits():
                        variant.compile()
                    return variant
            self.explore(user, family, leaves, at_once=True)
        raise RuntimeError(f"{self.name} is not compiled: {family.dynamic or 'mode=' + repr(self.mode)}")

    def answers(self, user: User, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether there is code for a call, which is run."""
        templates = [variant.template for variant in self.family(args, kwargs)[0].variants]
        return any([one is not None and one.probe(user)(*args, **kwargs) is not _MISSED for one in templates])

    def info(self) -> CacheInfo:
        """Counts, as ``functools.lru_cache`` gives them."""
        with self.lock:
            hits = sum([family.hits() for family in self.known.values()])
            return CacheInfo(hits, self.misses, MAX_SIGNATURES, min(len(self.known), MAX_SIGNATURES))

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            for family in self.known.values():
                family.forget()
            self.known.clear()
            self._unlink()
            self.misses = 0


class _Flawed(Exception):
    """A derivative could not be traced for code, though the function itself could."""


_FLAWS = (AssertionError, AttributeError, IndexError, KeyError, NotImplementedError, TypeError, UnboundLocalError, ValueError)

_shared: OrderedDict[Any, Compiler] = OrderedDict()
_sharing = threading.RLock()


def compiler_of(key: Any, make: Callable[[], Compiler]) -> Compiler:
    """The compiler of all derivatives with this key, made if need be; None is the key of one by itself."""
    if key is None:
        return make()
    with _sharing:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = make()
            while len(_shared) > MAX_SHARED:
                _shared.popitem(last=False)
        else:
            _shared.move_to_end(key)
    return found


def _outside_symgrad() -> int:
    """The ``stacklevel`` of a warning's caller that names the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((OWN, "<symgrad ")):
        level, frame = level + 1, frame.f_back
    return level


def _present(*args: Any) -> tuple[Any, ...]:
    """The arguments that were given."""
    return tuple([arg for arg in args if arg is not ABSENT])


def _missed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _MISSED
