"""Random numbers: those from generators outside code gets as arguments.

They are drawn before it runs, in the order in which the function draws them, and seeds the generators of the modules, so that
whatever runs twice in one call (code that meets a new branch, and the trace that follows) sees the same ones. Those that loops
draw are the rows of one array, read at the loop's index: where each one stands is known from the trace before, the ``Plan``.

A generator that the function makes gives the same ones at each call: they are constants, and those that loops draw, rows of
constant arrays.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from symgrad.equal import told
from symgrad.errors import SymgradError
from symgrad.ir import INPUT, Aval, Node, aval_of
from symgrad.ops.engine import TO_PYTHON
from symgrad.tracing.mixed import Otherwise
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer
from symgrad.watch.guards import Argument, Path

MOST = 100_000  # numbers or arrays that one call draws
FEWEST = 4  # draws in loops that are worth a table
LARGEST = 1 << 16  # bytes of an array among the arguments of a draw
LONG = 64  # draws that loops make of constants, which are better one loop though it decides on nothing
PLAIN = ("draws",)  # among what is ``apart``: what own generators give is as it comes
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_GLOBAL = (np.random.normal.__self__, random.random.__self__)  # type: ignore[attr-defined]  # what the modules' functions are of
_SEEDING = (np.random.seed, random.seed)
# how many parameters of a distribution come before the size, in methods that draw the same numbers whether they are asked for
# many or, as often, for one
_MANY = {
    "random": 0, "random_sample": 0, "standard_normal": 0, "standard_exponential": 0, "exponential": 1, "rayleigh": 1,
    "poisson": 1, "geometric": 1, "standard_gamma": 1, "chisquare": 1, "standard_t": 1, "weibull": 1, "normal": 2,
    "uniform": 2, "laplace": 2, "logistic": 2, "lognormal": 2, "gumbel": 2, "gamma": 2, "beta": 2, "binomial": 2,
}  # fmt: skip
_SIZES = ("randn", "rand")  # whose arguments are the size
_OTHERS = (
    "integers randint choice permutation permuted multivariate_normal dirichlet multinomial hypergeometric triangular pareto "
    "power vonmises wald f noncentral_chisquare noncentral_f negative_binomial logseries zipf standard_cauchy "
    "gauss normalvariate expovariate randrange lognormvariate vonmisesvariate gammavariate betavariate paretovariate "
    "weibullvariate"
).split()
_PICKING = ("choice", "choices", "sample", "shuffle")
_DRAWING = frozenset([*_MANY, *_SIZES, *_OTHERS])
_PARAMETERS = frozenset("size loc scale low high lam mean sigma shape df a b n p".split())


class Redrawn(SymgradError):
    """Ended a run that draws other numbers than the one before did."""

    def __init__(self) -> None:
        super().__init__("the random numbers that it draws differ from call to call")


class Drawn(NamedTuple):
    """The position of an input that is drawn: its number among those of a call."""

    slot: int


class At(NamedTuple):
    """An argument of a draw that is read at each call."""

    path: Path
    aval: Aval


def is_generator(value: Any) -> bool:
    """Whether it is a generator, and of no class of the user's."""
    return type(value) in _GENERATORS


def is_drawing(name: str) -> bool:
    """Whether a method of this name draws numbers, and does nothing else."""
    return name in _DRAWING


def is_drawn_by(fun: Any) -> bool:
    """Whether a function draws random numbers, as a method of a generator does."""
    return is_generator(getattr(fun, "__self__", None)) and is_drawing(getattr(fun, "__name__", ""))


def is_picking(owner: Any, name: str) -> bool:
    """Whether a method takes items out of a sequence, by their places alone."""
    return type(owner) is random.Random and name in _PICKING


def picks(fun: Any) -> bool:
    return is_picking(getattr(fun, "__self__", None), getattr(fun, "__name__", ""))


def picked_by(
    fun: Any, ints: list[int] | None, count: int, rest: Sequence[Any], kwargs: dict[str, Any]
) -> np.ndarray[Any, Any]:
    """What such a function takes of some ints, or the places of what it takes of other items: it draws the same for all."""
    places: Any = [*range(count)] if fun.__name__ == "shuffle" else range(count)
    found = fun(places, *rest, **kwargs)
    taken = np.array(places if found is None else found if type(found) is list else [found], np.int64)
    return taken if ints is None else np.array(ints, np.int64)[taken]


def seeded_by(fun: Any) -> Any:
    """The generator of a module's own functions that one of these begins anew; None for other functions."""
    return next((owner for seed, owner in zip(_SEEDING, _GLOBAL, strict=True) if fun is seed), None)


def home_of(owner: Any) -> Path | None:
    """Where the generator of a module's own functions is."""
    return Path(owner, ()) if any([owner is one for one in _GLOBAL]) else None


class Made(NamedTuple):
    """Where a generator is that the function makes: its number among those, and the state that it began in."""

    number: int
    state: str


@dataclass(frozen=True, eq=False)
class Draw:
    """A call of a generator's method; with ``At`` in place of arguments that are read at each call."""

    path: Any  # a ``Path``, or ``Made``
    kind: type  # of the generator
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    key: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Draw) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def seeds(self) -> bool:
        """Whether it draws nothing, and the generator begins anew."""
        return self.name == "seed"

    def __repr__(self) -> str:
        module = {id(_GLOBAL[0]): "np.random", id(_GLOBAL[1]): "random"}.get(id(self.path.root))
        given = [*map(_shown, self.args), *[f"{name}={_shown(value)}" for name, value in self.kwargs.items()]]
        return f"{module or repr(self.path)}.{self.name}({', '.join(given)})"

    def many(self, count: int, aval: Aval) -> Draw | None:
        """The call that draws the numbers of ``count`` such calls at once; None where there is none."""
        if self.kind is random.Random:
            return None
        if self.name in _SIZES:
            return None if self.kwargs else replace(self, args=(count, *aval.shape))
        before = _MANY.get(self.name)
        if before is None or not self.kwargs.keys() <= _PARAMETERS or len(self.args) > before + 1:
            return None
        rest = {name: value for name, value in self.kwargs.items() if name != "size"}
        if not all(map(_is_number, [*self.args[:before], *rest.values()])):
            return None
        return replace(self, args=self.args[:before], kwargs={**rest, "size": (count, *aval.shape)})

    def reads(self) -> Iterator[Path]:
        """Where the generator is, and what is read at each call."""
        yield self.path
        yield from (item.path for item in _items((self.args, self.kwargs)) if type(item) is At)

    def bound(self, sources: dict[Path, int]) -> Callable[[Sequence[Any]], Any]:
        """The call, given what ``sources`` are of, by their numbers."""
        name, args, kwargs, owner = self.name, self.args, self.kwargs, sources[self.path]
        if any([type(item) is At for item in _items((args, kwargs))]):
            return lambda found: getattr(found[owner], name)(*_filled(args, sources, found), **_filled(kwargs, sources, found))
        return lambda found: getattr(found[owner], name)(*args, **kwargs)


_PLACES_OF_OUT = {"random": 2, "standard_normal": 2, "standard_exponential": 3, "standard_gamma": 3}


def draw_of(path: Path | Made, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Draw | None:
    """A call of a method of the generator at a path; None where it hangs on what is not known before the function runs, or
    writes into an array."""
    if "out" in kwargs or len(args) > _PLACES_OF_OUT.get(fun.__name__, len(args)):
        return None
    try:
        kept, key = _kept((args, kwargs))
        hash(key)
    except (_Unknown, TypeError):
        return None
    kind, name = type(fun.__self__), fun.__name__
    given, named = kept
    return Draw(path, kind, name, given, named, (path, kind, name, key))


class _Unknown(Exception):
    """An argument that is known to the traced function alone."""


def _kept(value: Any) -> tuple[Any, Any]:
    """An argument as it is handed over at each call, and what tells it from others."""
    kind = type(value)
    if kind is Tracer:
        node = value.node
        if not node.active:
            return _kept(value.value)
        position = dict(node.params).get("position") if node.op is INPUT else None
        if node.differentiated or type(position) not in (int, Path):
            raise _Unknown
        at = At(position if type(position) is Path else Path(Argument(position), ()), node.aval)  # type: ignore[arg-type]
        return at, at
    if kind in (tuple, list):
        items = [*map(_kept, value)]
        return kind([item for item, _ in items]), (kind, tuple([key for _, key in items]))
    if kind is dict:
        kept = {name: _kept(item) for name, item in value.items()}
        return {name: item for name, (item, _) in kept.items()}, tuple([(name, key) for name, (_, key) in kept.items()])
    if kind is np.ndarray:
        if value.nbytes > LARGEST or value.dtype.hasobject:
            raise _Unknown
        return value.copy(), (value.shape, value.dtype, value.tobytes())
    if value is None or isinstance(value, (bool, int, float, str, range, np.generic, np.dtype, type)):
        return value, (told(value), value)
    raise _Unknown


def _items(value: Any) -> Iterator[Any]:
    if type(value) in (tuple, list, dict):
        for item in value.values() if type(value) is dict else value:
            yield from _items(item)
    else:
        yield value


def _filled(value: Any, sources: dict[Path, int], found: Sequence[Any]) -> Any:
    """An argument with what was found in place of what is read at each call."""
    if type(value) is At:
        return found[sources[value.path]]
    if type(value) in (tuple, list):
        return type(value)([_filled(item, sources, found) for item in value])
    return {name: _filled(item, sources, found) for name, item in value.items()} if type(value) is dict else value


def _is_number(value: Any) -> bool:
    return value.aval.shape == () if type(value) is At else isinstance(value, (int, float, np.generic))


def _shown(value: Any) -> str:
    return repr(value.path) if type(value) is At else f"{value!r:.40}"


@dataclass(slots=True)
class _Drawn:
    """How often an iteration of a loop has drawn a number ``itself``, and the loops ``within`` it that have."""

    itself: int
    within: dict[Any, None]


class Met(NamedTuple):
    """A draw, where the loops around it were, as which one of its kind there, and what it has given."""

    draw: Draw
    turns: tuple[tuple[Any, Any], ...]
    number: int
    aval: Aval | None  # None of one that ``seeds``

    @property
    def place(self) -> Any:
        return self.draw, self.turns, self.number

    @property
    def group(self) -> Any:
        """What those have in common that differ in where the loops are."""
        return self.draw, tuple([loop for loop, _ in self.turns]), self.number


class Plan:
    """All draws of a call, in order, and where each one is found: in which ``slot``, and in which row of it, if it has rows:
    where ``tabled``, those that loops draw."""

    def __init__(self, met: Sequence[Met], tabled: bool = True) -> None:
        self.met = tuple(met)
        kinds: dict[Draw, set[Aval]] = defaultdict(set)
        for one in met:
            if one.aval is not None:
                kinds[one.draw].add(one.aval)
        often = Counter([one.draw for one in met])
        looped = Counter([one.draw for one in met if one.turns])
        self.slots: list[tuple[Draw, Aval, int | None]] = []  # with the number of rows
        self.where: list[tuple[int, int | None]] = []
        tables: dict[Draw, tuple[int, Iterator[int]]] = {}
        for draw, _, _, aval in met:
            if aval is None:
                self.where.append((-1, None))
                continue
            rows = often[draw] if tabled and looped[draw] >= FEWEST and len(kinds[draw]) == 1 else None
            if rows is None or draw not in tables:
                self.slots.append((draw, aval, rows))
            if rows is None:
                self.where.append((len(self.slots) - 1, None))
            else:
                slot, row = tables.setdefault(draw, (len(self.slots) - 1, iter(range(rows))))
                self.where.append((slot, next(row)))
        self.has_tables = bool(tables)
        self.at = {one.place: i for i, one in enumerate(met)}
        self.sources: dict[Path, int] = {}
        for draw in often:
            for path in draw.reads():
                self.sources.setdefault(path, len(self.sources))
        self.generators = [self.sources[path] for path in dict.fromkeys([draw.path for draw in often])]
        self.may_raise = len(self.sources) > len(self.generators)  # for some arguments that it reads at each call
        self.rewinds_slowly = any([draw.kind is not np.random.Generator for draw in often])
        self._steps = [*self._stretches()]
        self._lines: dict[Any, Any] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and [one.draw for one in self.met] == [one.draw for one in other.met]

    __hash__ = None  # type: ignore[assignment]

    def _stretches(self) -> Iterator[Callable[[Sequence[Any], list[Any]], None]]:
        """What draws those of one kind that follow each other."""
        start = 0
        while start < len(self.met):
            draw, (slot, row) = self.met[start].draw, self.where[start]
            end = start + 1
            while row is not None and end < len(self.met) and self.met[end].draw == draw:
                end += 1
            yield self._stretch(draw, slot, row, end - start)
            start = end

    def _stretch(self, draw: Draw, slot: int, row: int | None, count: int) -> Callable[[Sequence[Any], list[Any]], None]:
        one = draw.bound(self.sources)
        if draw.seeds:
            return lambda found, out: one(found)
        _, aval, rows = self.slots[slot]

        def single(found: Sequence[Any], out: list[Any]) -> None:
            out[slot] = one(found)

        if row is None or rows is None:
            return single
        first, once = row, draw.many(count, aval)
        every = None if once is None or count == 1 else once.bound(self.sources)
        if every is not None and count == rows:

            def whole(found: Sequence[Any], out: list[Any]) -> None:
                out[slot] = every(found)

            return whole

        def part(found: Sequence[Any], out: list[Any]) -> None:
            if out[slot] is None:
                out[slot] = np.empty((rows, *aval.shape), aval.dtype)
            if every is not None:
                out[slot][first : first + count] = every(found)
            else:
                for i in range(first, first + count):
                    out[slot][i] = one(found)

        return part

    def draw(self, *found: Any) -> list[Any]:
        """What there is in each slot in a new call; ``found`` is what the ``sources`` are."""
        out: list[Any] = [None] * len(self.slots)
        for step in self._steps:
            step(found, out)
        return out

    def states(self, *found: Any) -> list[tuple[Any, Any]]:
        """The generators, and what to ``rewind`` them to."""
        return [(found[i], _state(found[i])) for i in self.generators]

    def line(self, group: Any) -> tuple[int, tuple[int, ...]] | None:
        """The row of the first of a group, if the loops' indices are zero, and how many rows further one turn of each is; None
        where these differ."""
        if group not in self._lines:
            self._lines[group] = self._line([i for i, one in enumerate(self.met) if one.group == group])
        found: tuple[int, tuple[int, ...]] | None = self._lines[group]
        return found

    def _line(self, places: Sequence[int]) -> tuple[int, tuple[int, ...]] | None:
        turns = [[value for _, value in self.met[i].turns] for i in places]
        rows = [self.where[i][1] for i in places]
        if None in rows or any([type(value) is not int for each in turns for value in each]):
            return None
        matrix = np.array([[1, *each] for each in turns], float)
        found = np.linalg.lstsq(matrix, np.array(rows, float))[0].round()
        start, *steps = map(int, found)
        return (start, tuple(steps)) if np.array_equal(matrix @ found, np.array(rows, float)) else None


def _state(generator: Any) -> Any:
    if type(generator) is np.random.Generator:
        return generator.bit_generator.state
    return generator.get_state(legacy=False) if type(generator) is np.random.RandomState else generator.getstate()


def rewind(states: Sequence[tuple[Any, Any]]) -> None:
    """Let generators draw again what they have drawn since."""
    for generator, state in states:
        if type(generator) is np.random.Generator:
            generator.bit_generator.state = state
        elif type(generator) is np.random.RandomState:
            generator.set_state(state)
        else:
            generator.setstate(state)


class Draws:
    """What one traced run draws: as the function asks for it, or, by a ``plan``, all before it begins."""

    trace: Trace

    def __init__(self, plan: Plan | None, own: OwnDraws | None = None) -> None:
        self.plan, self.own = plan, own
        self.met: list[Met] = []
        self.tables: list[Any] = []
        self.taken: set[int] = set()
        self._last = -1  # of these
        self._found: list[Any] = []
        self._states: dict[int, tuple[Any, Any]] = {}
        self._numbers = Counter[Any]()
        self._turned: dict[Any, dict[Any, dict[Any, _Drawn]]] = {}  # how often loops draw each number, by where they are
        self._loops: dict[Any, Any] = {}  # that draw, by what they draw, where those around them are, and their own place

    def begin(self, trace: Trace, leaves: Sequence[Any]) -> None:
        """Draw what the plan tells, in a call with these ``leaves``."""
        self.trace = trace
        if self.own is not None:
            self.own.begin(trace, leaves)
        if self.plan is None:
            return
        try:
            self._found = [path.find(leaves) for path in self.plan.sources]
        except Exception:  # it is not even there
            raise Redrawn from None
        if not all([type(self._found[i]) in _GENERATORS for i in self.plan.generators]):
            raise Redrawn
        self._states = {id(owner): (owner, state) for owner, state in self.plan.states(*self._found)}
        try:
            values = self.plan.draw(*self._found)
        except Exception:  # the function may catch that, or not get there
            raise Redrawn from None
        for i, value in enumerate(values):
            self._input(i, value, self.plan.slots[i][0].name)

    def _input(self, slot: int, value: Any, name: str) -> Tracer:
        tracer = self.trace.input(Drawn(slot), value)
        tracer.node.name = name
        self.tables.append(tracer)
        return tracer

    def take(self, draw: Draw, owner: Any, call: Callable[[], Any]) -> Any:
        """What the function gets, traced; ``call`` draws it from its ``owner``. None where it is no number, or there are too
        many: then it is as if nothing had been drawn."""
        turns, loops, number = self._place_of(draw)
        if self.plan is not None:
            return self._planned(self.plan, (draw, turns, number), loops)
        before = _state(owner)
        value = call()
        if not _is_numeric(value) or len(self.met) == MOST:
            rewind([(owner, before)])
            return None
        self._states.setdefault(id(owner), (owner, before))
        self.trace.writes.append(owner)
        self.met.append(Met(draw, turns, number, aval_of(value)))
        return self._own(self._input(len(self.tables), value, draw.name))

    def seed(self, draw: Draw, owner: Any, call: Callable[[], Any]) -> None:
        """A generator begins anew."""
        turns, loops, number = self._place_of(draw)
        if self.plan is not None:
            self._planned(self.plan, (draw, turns, number), loops)
            return
        before = _state(owner)
        call()
        self._states.setdefault(id(owner), (owner, before))
        self.trace.writes.append(owner)
        self.met.append(Met(draw, turns, number, None))

    def _place_of(self, draw: Draw) -> tuple[tuple[tuple[Any, Any], ...], list[Any], int]:
        """Where the loops around a draw are, these, and as which one of its kind it comes there."""
        turns, loops = self._turns()
        number = self._numbers[draw, turns]
        self._numbers[draw, turns] += 1
        for i, (loop, (_, turn)) in enumerate(zip(loops, turns, strict=True)):
            drawn = self._turned.setdefault(loop, {}).setdefault((draw, number), {}).setdefault(turn, _Drawn(0, {}))
            if i + 1 < len(loops):
                drawn.within[loops[i + 1]] = None
            else:
                drawn.itself += 1
        return turns, loops, number

    def _often(self, loop: Any, what: Any) -> list[int]:
        """How often each iteration of a loop has drawn something, in the loops in it, too, and in what those passed over."""
        every = self._turned[loop][what].values()
        return [drawn.itself + sum([self._in_all(one, what) for one in drawn.within]) for drawn in every]

    def _in_all(self, loop: Any, what: Any) -> int:
        often = self._often(loop, what)
        return sum(often) + often[-1] * sum(map(len, loop.passed_over))

    def _turns(self) -> tuple[tuple[tuple[Any, Any], ...], list[Any]]:
        """Where the loops are that run, and these, the outermost first."""
        loops: list[Any] = []
        loop = self.trace.innermost_loop()
        while loop is not None:
            if loop.boundaries and not loop.section:
                loops.insert(0, loop)
            loop = loop.around
        return tuple([(loop.place, loop.turn()) for loop in loops]), loops

    def _planned(self, plan: Plan, place: Any, loops: Sequence[Any]) -> Any:
        k = plan.at.get(place)
        if k is None or k <= self._last:
            raise self.trace.refuse(self.otherwise())
        self._last = k
        self.taken.add(k)
        one, (slot, row) = plan.met[k], plan.where[k]
        for depth, loop in enumerate(loops):
            self._loops[one.draw, one.number, one.turns[:depth], one.turns[depth][0]] = loop
        if row is None:
            return None if one.aval is None else self._own(self.tables[slot])
        found: Any = row
        line = plan.line(one.group)
        if line is not None:
            found, steps = line
            for loop, step in zip(loops, steps, strict=True):
                if step:
                    index: Any = self.trace.lookup(loop.boundaries[-1].at)
                    further = index if step == 1 else index * step
                    found = further if type(found) is int and found == 0 else found + further
        item = self.tables[slot][found]
        return TO_PYTHON(item) if one.aval is not None and one.aval.kind == "python" else self._own(item)

    def _own(self, tracer: Any) -> Any:
        """An array that nobody else has, as each draw is one."""
        if type(tracer) is Tracer and type(tracer.like) is np.ndarray:
            return self.trace.alone(tracer)
        return tracer

    def finish(self) -> None:
        """The run is over: all that was planned was drawn, but for what loops draw in iterations that were not traced."""
        if self.plan is not None and not self.is_as_planned(len(self.plan.met)):
            raise self.otherwise()
        if self.own is not None:
            self.own.finish()

    def otherwise(self) -> SymgradError:
        """What ends a run that draws otherwise than was planned."""
        return Redrawn()

    def is_as_planned(self, end: int | None = None) -> bool:
        """Whether all was drawn that was planned to be, up to the last one that was, or to an ``end``: by the function, or in
        iterations that a leap ran in its place, each of which draws as those before."""
        if self.plan is None:
            return True
        planned = self.plan.met[: self._last + 1 if end is None else end]
        if not all([k in self.taken or self._is_passed_over(one) for k, one in enumerate(planned)]):
            return False
        known = {(one.draw, one.number, one.turns[: depth + 1]) for one in planned for depth in range(len(one.turns))}
        return end is None or all(
            [
                (draw, number, (*around, (place, turn))) in known
                for (draw, number, around, place), loop in self._loops.items()
                for turn in itertools.chain(*loop.passed_over)
            ]
        )

    def _is_passed_over(self, one: Met) -> bool:
        for depth, (place, turn) in enumerate(one.turns):
            loop = self._loops.get((one.draw, one.number, one.turns[:depth], place))
            if loop is not None and any([turn in some for some in loop.passed_over]):
                return True
        return False

    def is_steady(self) -> bool:
        """Whether loops that decide on values draw the same in each iteration.

        Code of a loop has one text for all iterations that go one way; where another way draws otherwise, what it would draw
        is known only once the values are.
        """
        for loop, every in self._turned.items():
            passed = sum(map(len, loop.passed_over))
            whole = loop.counts and loop.what is not None
            for what in every if loop.hangs else ():
                often = self._often(loop, what)
                if not whole or len(often) + passed != loop.what.length or len({*often}) > 1:
                    return False
        return True

    def outcome(self) -> Plan | None:
        """The plan of the next such run; None where it draws nothing."""
        return self.plan or (Plan(self.met) if self.met else None)

    def as_run(self) -> Plan | None:
        """What this run has drawn, as its graph names it."""
        return self.plan or (Plan(self.met, tabled=False) if self.met else None)

    def rewind(self) -> None:
        """As if nothing had been drawn."""
        rewind([*self._states.values()])

    def give_back(self) -> None:
        """The function has raised an error: what it would have drawn later is not drawn."""
        if self.plan is not None:
            self.rewind()
            for k in range(self._last + 1):
                self.plan.met[k].draw.bound(self.plan.sources)(self._found)


class OwnPlan(Plan):
    """All that a call draws from generators that it makes itself, and the arrays of those."""

    def __init__(self, met: Sequence[Met], values: Sequence[Any]) -> None:
        super().__init__(met)
        self.values = values
        self.made = {one.draw.path for one in met}
        rows = [list[Any]() for _ in self.slots]
        for value, (slot, _) in zip(values, self.where, strict=True):
            rows[slot].append(value)
        self.singles = [row[0] for row in rows]
        self.tables = [np.array(row) if count is not None else None for row, (*_, count) in zip(rows, self.slots, strict=True)]


class OwnDraws(Draws):
    """The same for generators that the function makes: numbers as they come or, by a plan, read from constant arrays.

    They are drawn all the same, as whoever looks at the generator may see, and must be as planned.
    """

    plan: OwnPlan | None

    def __init__(self, plans: Sequence[OwnPlan]) -> None:
        super().__init__(None)
        self._plans = plans  # of which the first generator tells whose turn it is: calls may hand seeds
        self._arrays: list[list[Any]] = []
        self._owners: dict[int, tuple[Any, Made]] = {}
        self._values: list[Any] = []
        self._unknown = False  # whether something was drawn that no plan has
        self._ints: dict[Node, int] = {}  # those of a plan that the function got, traced

    def begin(self, trace: Trace, leaves: Sequence[Any]) -> None:
        """The arrays are there before the function runs: no iteration makes them."""
        self.trace = trace
        for plan in self._plans:
            arrays = zip(plan.tables, plan.singles, strict=True)
            self._arrays.append([one if array is None else trace.lookup(trace.constant(array)[0]) for array, one in arrays])

    def made(self, owner: Any) -> Made:
        """Where a generator is, of which something is drawn."""
        made = self._made(owner)
        if not self._owners:
            known = [(plan, arrays) for plan, arrays in zip(self._plans, self._arrays, strict=True) if made in plan.made]
            self.plan, self.tables = known[0] if known else (None, [])
        return self._owners.setdefault(id(owner), (owner, made))[1]

    def _made(self, owner: Any) -> Made:
        known = self._owners.get(id(owner))
        return Made(len(self._owners), repr(_state(owner))) if known is None else known[1]

    def told(self, ints: list[Any]) -> list[Any]:
        """Traced ints, of which the plan tells what was drawn last."""
        assert self.plan is not None
        self._ints.update(zip([one.node for one in ints], self.plan.values[self._last].tolist(), strict=True))
        return ints

    def ints_of(self, items: Sequence[Any]) -> list[int] | None:
        """Items of which each is an int of Python's that is the same at each call; None for others."""
        found: list[Any] = [self._ints.get(item.node, item) if type(item) is Tracer else item for item in items]
        return found if all([type(item) is int and abs(item) < 1 << 62 for item in found]) else None

    def passes(self) -> None:
        """Something is drawn that is not known before the call."""
        self._unknown = True
        if self.plan is not None:
            raise self.trace.refuse(self.otherwise())

    def take(self, draw: Draw, owner: Any, call: Callable[[], Any]) -> Any:
        """What the function gets, if it is a number or an array; ``call`` draws it from its ``owner``."""
        turns, loops, number = self._place_of(draw)
        if self.plan is None:
            value = call()
            self._unknown |= not _is_numeric(value) or len(self.met) >= MOST
            if not self._unknown:
                self.met.append(Met(draw, turns, number, aval_of(value)))
                self._values.append(value.copy() if type(value) is np.ndarray else value)  # somebody may write into it
            return value
        found = self._planned(self.plan, (draw, turns, number), loops)
        value, planned = call(), self.plan.values[self._last]
        if type(value) is not type(planned) or not np.array_equal(value, planned, equal_nan=True):
            raise self.trace.refuse(self.otherwise())
        return value if type(found) is not Tracer else found

    def catch_up(self) -> None:
        """A leap has run iterations in the function's place: what those would have drawn is drawn."""
        owners = {made: owner for owner, made in self._owners.values()}
        while self.plan is not None and self._last + 1 < len(self.plan.met):
            one = self.plan.met[self._last + 1]
            if not self._is_passed_over(one):
                return
            getattr(owners[one.draw.path], one.draw.name)(*one.draw.args, **one.draw.kwargs)
            self._last += 1

    def is_planned(self, generator: Any) -> bool:
        """Whether what a generator gives is known, so that iterations that draw from it are alike."""
        plans = self._plans if not self._owners else () if self.plan is None else (self.plan,)
        return bool(plans) and self._made(generator) in set().union(*[plan.made for plan in plans])

    def otherwise(self) -> SymgradError:
        """What ends a run that draws otherwise than was planned: in the next one, what is drawn is as it comes."""
        return Otherwise(frozenset([PLAIN]))

    def finish(self) -> None:
        """The run is over: all that was planned was drawn, as often in each iteration of loops that decide."""
        super().finish()
        if self.plan is not None and not self.is_steady():
            raise self.otherwise()

    def outcome(self) -> OwnPlan | None:
        """The plan of the next run; None where there is none, or none is needed."""
        if self.plan is not None or self._unknown or PLAIN in self.trace.apart:
            return self.plan
        decide = any([loop.hangs for loop in self._turned])
        plan = OwnPlan(self.met, self._values) if decide or len(self.met) >= LONG else None
        return plan if plan is not None and plan.has_tables and self.is_steady() else None


def _is_numeric(value: Any) -> bool:
    if type(value) is np.ndarray:
        return value.dtype.kind in "biuf"
    return type(value) in (float, bool) or (type(value) is int and abs(value) < 1 << 62) or isinstance(value, np.number)
