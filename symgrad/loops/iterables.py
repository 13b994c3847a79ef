"""What a ``for`` statement runs over: things whose items are found by index, so that the index can be traced.

Arrays and ranges are; and lists of plain numbers, or pairs of them, which become tables that are read at the index. A list that
changes while the loop runs goes on as Python has it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from symgrad.equal import is_same
from symgrad.loops.patterns import EXACT
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import OWNERS, TO_PYTHON
from symgrad.tracing.mixed import Mixed, Otherwise
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer, plain

MOST = 65536  # combinations that are listed beforehand, and numbers of a list of arrays that are copied into one
VARIED = 8  # texts of a column, of which each is a way through the loop
OFTEN = 512  # rows of such: fewer are faster one after the other, and do not take long to compile
FEWEST = 32  # items of a list that are worth a table: code for fewer, one after the other, is faster
ROWS = "a list of arrays"  # what loops that read one like an array leave as ``parted``
EITHER = "a list of either's numbers"  # a cause of ``Mixed``
_ENDS = frozenset([np.dtype(np.int32), np.dtype(np.int64)])  # of arrays of ends: sums of others may be too large for them
_NUMBERS = frozenset([int, float, bool, np.bool_, np.int64, np.float64])
_WORDS = frozenset([str, type(None)])
_KINDS = frozenset([Tracer, float, int, bool, str, np.float64])
Items = list[Any] | tuple[Any, ...] | np.ndarray[Any, Any]


class Over(NamedTuple):
    """What a ``for`` statement runs over by index: how often, its item at a traced or plain index, and how that runs.

    Of a list, which may change while the loop runs, ``stays`` tells whether it is as long as it was, and ``rest`` gives what
    there is from a place on. ``tables`` are the arrays that items are read from; ``holds`` tells whether all items are what is
    in them, still; ``lists`` are what these stand for. ``section``: it is no loop (see ``symgrad.source.sections``).
    """

    length: int
    at: Callable[[Any], Any]
    start: int = 0
    step: int = 1
    stays: Callable[[], bool] = lambda: True
    rest: Callable[[int], Iterator[Any]] = lambda place: iter(())
    tables: tuple[Any, ...] = ()
    holds: Callable[[], bool] = lambda: True
    section: bool = False
    lists: tuple[Any, ...] = ()

    def items(self, place: int = 0) -> Iterator[Any]:
        """The items from ``place`` on, as Python has them."""
        while place < self.length and self.stays():
            yield self.at(self.start + self.step * place)
            place += 1
        yield from self.left(place)

    def left(self, place: int) -> Iterator[Any]:
        """The items from ``place`` on of what has changed meanwhile."""
        return iter(()) if self.stays() else self.rest(place)

    def by_place(self) -> Over:
        """The same, by an index that counts from zero."""
        if (self.start, self.step) == (0, 1):
            return self
        return self._replace(at=lambda i: self.at(i * self.step + self.start), start=0, step=1)


SECTION = Over(1, lambda i: i, section=True)
ROOM = 512  # iterations of a ``while`` loop that there is room for at first, in the arrays beside its lists
MORE_ROOM = 8  # times as many, where they were more
MOST_ROOM = ROOM * MORE_ROOM**4


def room(trace: Trace, place: Any) -> Over | None:
    """What a ``while`` loop at a ``place`` in the code runs over, which appends to lists: as many items as there is room for.

    Where there is not enough, ``Otherwise`` ends the run, for another one with more; None where that would be too much.
    """
    size = max([one.size for one in trace.apart if type(one) is Room and one.place == place], default=ROOM)
    if size > MOST_ROOM:
        return None

    def at(turn: Any) -> Any:
        if turn.value == size - 1:
            raise trace.refuse(Otherwise(frozenset([Room(place, size * MORE_ROOM)])))
        return turn

    return Over(size, at)


class Room(NamedTuple):
    """How many iterations of the loop at a ``place`` there is to be room for."""

    place: Any
    size: int


@dataclass(slots=True)
class Turns:
    """Something else that a ``for`` statement runs over, with what tells how often, as far as no local does: comparable."""

    items: Any
    often: Any

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


def how_often(value: Any) -> Any:
    """How often a ``for`` statement over it runs, if it is not left; something like nothing else where that is not known."""
    if isinstance(value, Over):
        return value.start, value.length, value.step
    if isinstance(value, Turns):
        return value.often
    return len(value) if type(value) in _SIZED else object()


_SIZED: tuple[type, ...] = (list, tuple, range, dict, type({}.keys()), type({}.values()), type({}.items()))


def over(value: Any, fewest: int | None = None, once: Callable[[Any], Any] = lambda array: array) -> Over | None:
    """A traced array, a range, a ``table``, or what was made of them; None for anything else."""
    if isinstance(value, Over):
        return value
    if type(value) is Tracer and np.ndim(value.value) > 0:
        return Over(len(value), lambda i: value[i])
    if type(value) is range:
        return Over(len(value), lambda i: i, value.start, value.step)
    return table(value, fewest, once)


def ragged(trace: Trace, outer: range, ends: Callable[[Any], tuple[Any, Any]], tables: Sequence[Any]) -> Over | None:
    """The pairs of ``for i in outer: for j in range(*ends(i))``, of which how many there are is known from here on; None where
    the ends are not looked up in arrays, which are the ``tables``."""
    whole = [type(one) in (Tracer, np.ndarray) and np.result_type(plain(one)) in _ENDS for one in tables]
    if not len(outer) or not all(whole):
        return None
    every = trace.fixed(np.arange(outer.start, outer.stop, outer.step))
    before = [None if type(one) is Tracer else one.copy() for one in tables]
    try:
        first, last = ends(every)
    except (TypeError, ValueError, IndexError):  # what is beyond an end raises in its turn
        return None
    kinds = [np.result_type(plain(end)).kind for end in (first, last)]
    if kinds != ["i", "i"] or not {np.shape(first), np.shape(last)} <= {(), every.shape}:
        return None
    first, last = [np.broadcast_to(np.multiply(end, 1, dtype=np.int64), every.shape) for end in (first, last)]
    counts = np.maximum(last - first, 0)
    rows, starts, items = in_a_row(trace, counts)
    others, total = (first - starts)[rows] + items, len(items)
    owners = rows if every.value[0] == 0 and outer.step == 1 else every[rows]
    begun = trace.graph.next_index

    def stays() -> bool:
        pairs = zip(tables, before, strict=True)
        return all([one.owner().written < begun if copy is None else np.array_equal(one, copy) for one, copy in pairs])

    def rest(place: int) -> Iterator[Any]:
        """What comes after so many pairs, with ends that have changed."""
        row = int(rows.value[place - 1]) if place else -1
        for k in range(place, total):
            if rows.value[k] == row:
                yield int(owners.value[k]), int(others.value[k])
        for i in outer[row + 1 :]:
            for j in range(*map(operator.index, ends(i))):
                yield i, j

    return Over(total, lambda k: (TO_PYTHON(owners[k]), TO_PYTHON(others[k])), stays=stays, rest=rest, holds=stays)


def in_a_row(trace: Trace, counts: Any) -> tuple[Any, Any, Any]:
    """Of items in a row, so many for each of some owners: whose each one is, where the first one of each is, and their places.
    How many there are in all is known from here on."""
    behind: Any = np.cumsum(counts)
    total = operator.index(behind[-1])
    return trace.record(OWNERS, (counts,), {"total": total}), behind - counts, trace.fixed(np.arange(total))


def table(value: Any, fewest: int | None = None, once: Callable[[Any], Any] = lambda array: array) -> Over | None:
    """An array of plain numbers, or a list of numbers of one kind, which is read like one, or of a few texts, or a text; of so
    many at least.

    ``once`` gives of tables that are alike the first.
    """
    fewest = FEWEST if fewest is None else fewest
    if type(value) is np.ndarray and value.ndim and len(value) >= fewest and value.dtype.kind in "biuf":
        copy = once(value.copy())
        return Over(len(value), _read(value, copy, copy), tables=(copy,), holds=lambda: value.tobytes() == copy.tobytes())
    if type(value) not in (list, tuple, str) or len(value) < fewest:
        return None
    kinds = {type(item) for item in value}
    if kinds <= _WORDS:
        return _table_of_words(value, once)
    traced: list[Any] = [item for item in value if type(item) is Tracer] if Tracer in kinds else []
    if kinds == {Tracer} and len({item.node.aval for item in traced}) == 1:
        if traced[0].node.aval.shape:
            return _table_of_rows(value, traced)
        before = [*value]
        return listed(value, before, _read(value, before, traced[0].tape.gather(value)))
    if kinds == {Tracer, np.ndarray}:
        return _table_of_rows(value, traced)
    if (Tracer in kinds or kinds == {int, float}) and all([_is_double(item) or _is_small(item) for item in value]):
        return _table_of_either(value, once)
    column = np.array(value) if len(kinds) == 1 and kinds <= _NUMBERS else None
    if column is None or column.dtype.kind not in "biuf" or (kinds == {int} and column.dtype.kind == "f"):
        return None  # of ints on both sides of what NumPy has room for, it makes floats
    column, before = once(column), [*value]
    return listed(value, before, _read(value, before, column), (column,))


def _is_row(item: Any, like: Any) -> bool:
    """Whether an array, ``like`` another one, may be read from one that has both: nobody has looked into its memory."""
    if type(item) is Tracer and not (isinstance(item.tape, Trace) and item.tape.draft is None and item.lent is None):
        return False
    array = plain(item, like=True)
    alike = type(array) is np.ndarray and (array.shape, array.dtype) == (like.shape, like.dtype)
    return alike and array.ndim > 0 and array.flags.c_contiguous


def _table_of_rows(value: Items, traced: list[Any]) -> Over | None:
    """A list of arrays of one kind, some of them ``traced``, which are read as copies of those in one array that is there, or
    is small. Nobody can tell, as long as nobody writes into one."""
    trace: Any = traced[0].tape
    if ROWS in trace.apart or not all([_is_row(item, traced[0].like) for item in value]):
        return None
    before, unmarked = [*value], [*traced]
    column: Any = trace.gather(before) if len(traced) == len(value) else np.stack(before)
    if column.node.op is REGISTRY[np.stack] and column.size > MOST:
        return None

    def at(i: Any) -> Any:
        place = i.value if type(i) is Tracer else i
        if type(i) is not Tracer or value[place] is not before[place]:
            return value[place]
        for item in unmarked:
            item.owner().parted |= {ROWS}
        unmarked.clear()
        return trace.stand_in(column[i], ROWS)

    return listed(value, before, at)


def _table_of_either(value: Items, once: Callable[[Any], Any]) -> Over | None:
    """A list with numbers of Python's beside NumPy's, or ints beside floats, read as one of NumPy's floats: see ``Mixed``."""
    before, floats = [*value], [float(item) if type(item) is int else item for item in value]
    trace = next((item.tape for item in value if type(item) is Tracer), None)
    if trace is None:
        column = once(np.array(floats))
        return listed(value, before, _read(value, before, column, frozenset({EITHER}), int in map(type, value)), (column,))
    if not isinstance(trace, Trace) or EITHER in trace.apart:
        return None
    column = trace.gather(floats)
    return listed(value, before, _read(value, before, column, frozenset({EITHER}), int in map(type, value)))


def _is_small(item: Any) -> bool:
    """Whether it is an int for which a float may stand."""
    return type(item) is int and abs(item) <= EXACT


def _is_double(item: Any) -> bool:
    """Whether it is a number of double precision, Python's or NumPy's."""
    if type(item) is Tracer:
        return bool(item.node.aval.shape == () and item.node.aval.dtype == np.float64)
    return type(item) in (float, np.float64)


def columns(
    items: Sequence[Any], value: Any, fewest: int | None = None, once: Callable[[Any], Any] = lambda array: array
) -> Over | None:
    """Pairs, triples, … of numbers, one an iteration; ``value`` is what they are from, which may change, as may lists in it."""
    if any([type(item) not in (tuple, list) for item in items]) or len({*map(len, items)}) > 1:
        return None
    parts = [column_of([*column], fewest, once) for column in zip(*items, strict=True)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not any([part.lists for part in known]):
        return None
    tables = _tables(known)
    before, rows = [*value], [[*row] if type(row) is list else row for row in value]

    def is_still(place: int) -> bool:
        row, known = value[place], rows[place]
        if type(row) is not list:
            return row is before[place]
        return row is before[place] and len(row) == len(known) and all(map(operator.is_, row, known))

    def at(i: Any) -> Any:
        place = i.value if type(i) is Tracer else i
        return tuple([part.at(i) for part in known]) if is_still(place) else value[place]

    found = listed(value, before, at, tables)
    return found._replace(holds=lambda: found.stays() and all(map(is_still, range(len(before)))))


def may_be_column(values: Sequence[Any]) -> bool:
    """Whether there may be a column of these: texts, and None in some places, are worth one in many rows."""
    kinds = {*map(type, values)}
    alike = len(kinds - {type(None)}) == 1 and kinds.isdisjoint([list, tuple])
    return alike and (len(values) >= OFTEN or kinds.isdisjoint(_WORDS))


def column_of(items: list[Any], fewest: int | None, once: Callable[[Any], Any]) -> Over | None:
    """What is at one place in each of many rows, or records: numbers of one kind, a few texts, or such and None."""
    return table(items, fewest, once) or _words(items, once) or _some(items, once)


def _table_of_words(value: Items | str, once: Callable[[Any], Any]) -> Over | None:
    """A list of a few texts, or the characters of one."""
    before = [*value]
    found = _words(before, once)
    if found is None:
        return None

    def at(i: Any) -> Any:
        place = i.value if type(i) is Tracer else i
        return found.at(i) if type(value[place]) in _WORDS and value[place] == before[place] else value[place]

    return listed(value, before, at, found.tables)


def _words(column: Sequence[Any], once: Callable[[Any], Any]) -> Over | None:
    """A few texts, or None, of which one is in each row: Python looks at which."""
    if not {*map(type, column)} <= _WORDS or len(words := [*dict.fromkeys(column)]) > VARIED:
        return None
    if len(words) == 1:
        return Over(len(column), lambda i: words[0])
    if len(column) < OFTEN:
        return None
    which = once(np.array([words.index(one) for one in column]))

    def at(i: Any) -> Any:
        if type(i) is not Tracer:
            return column[i]
        places: Any = i.tape.lookup(i.tape.constant(which)[0])
        return next((word for n, word in enumerate(words[:-1]) if places[i] == n), words[-1])

    return Over(len(column), at, tables=(which,))


def _some(column: Sequence[Any], once: Callable[[Any], Any]) -> Over | None:
    """Numbers, or None in some rows: Python looks at where."""
    number = next((one for one in column if one is not None), None)
    if number is None or not any([one is None for one in column]) or len(column) < OFTEN:
        return None
    numbers = table([number if one is None else one for one in column], 0, once)
    if numbers is None:
        return None
    none = once(np.array([one is None for one in column]))

    def at(i: Any) -> Any:
        if type(i) is not Tracer:
            return column[i]
        flags: Any = i.tape.lookup(i.tape.constant(none)[0])
        return None if flags[i] else numbers.at(i)

    return Over(len(column), at, tables=(*numbers.tables, none))


def paired(
    fun: Any, args: Sequence[Any], options: dict[str, Any], fewest: int | None, once: Callable[[Any], Any]
) -> Over | None:
    """``zip``, ``enumerate``, ``reversed``, ``pairwise`` or ``islice`` of something that is run over by index; None where that
    is not possible."""
    found = [over(arg, fewest, once) for arg in args]
    if not any([part is not None or type(arg) is Tracer for part, arg in zip(found, args, strict=True)]):
        return None
    parts = []
    for part, arg in zip(found, args[: 1 if fun in (enumerate, itertools.islice) else None], strict=False):
        part = _looked_up(arg) if part is None else part
        if part is None:
            return None
        parts.append(part)
    length = min(part.length for part in parts)
    if fun is zip:
        if options.get("strict") and any(part.length != length for part in parts):
            return None
        placed = [part.by_place() for part in parts]
        return Over(
            length,
            lambda i: tuple([part.at(i) for part in placed]),
            stays=lambda: all([part.stays() for part in parts]),
            rest=lambda place: zip(*[part.rest(place) for part in parts], strict=False),
            tables=_tables(parts),
            holds=lambda: all([part.holds() for part in parts]),
            lists=tuple([one for part in parts for one in part.lists]),
        )
    (part,) = parts
    if fun is reversed:  # a list goes on as it is; what ``zip`` and its kin give cannot be reversed
        as_it_is = type(args[0]) in (list, tuple, Over)
        return None if as_it_is else part._replace(start=part.start + part.step * (length - 1), step=-part.step)
    if fun is itertools.pairwise:
        one = part.by_place()
        return one._replace(
            length=max(one.length - 1, 0),
            at=lambda i: (one.at(i), one.at(i + 1)),
            rest=lambda place: itertools.pairwise(one.rest(place)),
        )
    if fun is itertools.islice:
        return _sliced(part.by_place(), args[1:])
    part, start = part.by_place(), options.get("start", args[1] if len(args) > 1 else 0)

    def counted(i: Any) -> Any:
        return i if type(start) is int and start == 0 else i + start, part.at(i)

    return part._replace(at=counted, rest=lambda place: enumerate(part.rest(place), start + place))


def _sliced(one: Over, ends: Sequence[Any]) -> Over | None:
    """What ``islice`` takes, up to an end, or from a start on."""
    part = slice(*ends)
    if part.step not in (None, 1) or not all(
        [end is None or (type(end) is int and end >= 0) for end in (part.start, part.stop)]
    ):
        return None
    start, stop, _ = part.indices(one.length)

    def rest(place: int) -> Iterator[Any]:
        return itertools.islice(one.rest(place + start), None if part.stop is None else max(part.stop - start - place, 0))

    return one._replace(length=max(stop - start, 0), at=lambda i: one.at(i + start if start else i), rest=rest)


def picked(
    fun: Any, args: Sequence[Any], options: dict[str, Any], fewest: int | None, once: Callable[[Any], Any]
) -> Over | None:
    """``itertools.combinations`` or its kin of the rows of traced arrays, as they are now: those at places that it gives."""
    parts = [over(_now(arg), 0) for arg in (args if fun is itertools.product else args[:1])]
    known, rest = [part.by_place() for part in parts if part is not None], args[len(parts) :]
    plain = not any([type(arg) is Tracer for arg in (*rest, *options.values())])
    if len(known) < len(parts) or not plain or not any([type(arg) is Tracer for arg in args]):
        return None
    places = [*itertools.islice(fun(*[range(part.length) for part in known], *rest, **options), MOST)]
    chosen = columns(places, places, fewest, once) if 0 < len(places) < MOST else None
    if chosen is None:
        return None

    def at(i: Any) -> Any:
        found = chosen.at(i)
        return tuple([part.at(place) for part, place in zip(known * len(found), found, strict=False)])

    return Over(len(places), at, tables=chosen.tables)


def _now(value: Any) -> Any:
    """What does not change with ``value``, but for its rows."""
    if type(value) is list:
        return [*value]
    return value.copy() if type(value) in (Tracer, np.ndarray) and np.ndim(value) == 1 else value


def _looked_up(value: Any) -> Over | None:
    """Numbers beside what is traced: Python looks at the index."""
    array = type(value) is np.ndarray and value.ndim and value.dtype.kind in "biufc"
    if not array and (type(value) not in (list, tuple) or not {type(item) for item in value} <= _KINDS):
        return None
    return listed(value, [], lambda i: value[i.look(int) if type(i) is Tracer else i])


def listed(value: Any, before: list[Any], at: Callable[[Any], Any], tables: tuple[Any, ...] = ()) -> Over:
    """A list or tuple; ``before`` is what was in it when it was put into ``tables``."""
    length = len(value)

    def rest(place: int) -> Iterator[Any]:
        return itertools.islice(value, place, None)

    def holds() -> bool:
        return len(value) == length and all(map(operator.is_, value, before))

    return Over(length, at, stays=lambda: len(value) == length, rest=rest, tables=tables, holds=holds, lists=(value,))


def _tables(parts: Sequence[Over]) -> tuple[Any, ...]:
    return tuple([table for part in parts for table in part.tables])


def _read(
    value: Items,
    before: Sequence[Any] | np.ndarray[Any, Any],
    column: Any,
    causes: frozenset[Any] | None = None,
    whole: bool = False,
) -> Callable[[Any], Any]:
    """The items of ``value``, by an index that may be traced: those of ``column``, if they are what they were ``before``.
    ``causes``: what made Python's numbers NumPy's, where it did, or ints floats (``whole``); see ``Mixed``."""
    mixed = column.tape.mixed if type(column) is Tracer else {}
    known = [mixed[item.node] for item in before if type(item) is Tracer and item.node in mixed] if mixed else []
    whole = whole or any([one.whole for one in known])
    python = all([(item.node.aval.kind if type(item) is Tracer else type(item)) in ("python", int, float) for item in before])
    if known:
        causes = (causes or frozenset()).union(*[one.causes for one in known])

    def at(i: Any) -> Any:
        place = i.value if type(i) is Tracer else i
        item = value[place]
        if type(i) is not Tracer or not _is_still(item, before[place]):
            return item
        if causes is not None and (not isinstance(i.tape, Trace) or EITHER in i.tape.apart):
            return value[operator.index(i)]
        traced: Any = column if type(column) is Tracer else i.tape.lookup(i.tape.constant(column)[0])
        kind = item.node.aval.kind if type(item) is Tracer else "python" if type(item) in (int, float, bool) else ""
        if causes is None:
            return TO_PYTHON(traced[i]) if kind == "python" else traced[i]
        made = TO_PYTHON(traced[i]) if python else traced[i]
        own = mixed.get(item.node) if type(item) is Tracer else None
        i.tape.coarse |= whole
        i.tape.mixed[made.node] = Mixed(own.python if own else kind == "python", causes, whole=whole)
        return made

    return at


def _is_still(item: Any, before: Any) -> bool:
    """Whether an item is what it was."""
    if item is before or type(item) is not type(before) or type(item) is Tracer:
        return item is before
    return item.tobytes() == before.tobytes() if type(item) is np.ndarray else is_same(item, before)
