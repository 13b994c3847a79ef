"""Python's ``min``, ``max`` and ``sorted`` of traced numbers, without a branch: each order of them would be one.

They are chosen by what Python compares, numbers of one kind: the items themselves, or what ``key`` says of them. Items are
numbers, or tuples of such: a column of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir import Aval
from symgrad.loops.patterns import EXACT
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.engine import TO_NUMPY, TO_PYTHON
from symgrad.tracing.mixed import Bounds, Mixed, bounds_of
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer, plain

MANY = 32  # numbers, the largest of which one call finds, not one comparison after the other
SOME = 4  # that have more orders than code should have branches
CHOICE = "min or max"  # of Python's number and NumPy's: see ``Mixed``

_Kind = Callable[[Any], Any]  # what makes a number of Python's or of NumPy's


def extreme(trace: Trace, fun: Any, items: Sequence[Any], keys: Sequence[Any]) -> Any:
    """``fun``, ``min`` or ``max``, of items by their keys; None where these are no numbers.

    Which one it is is a decision if the items are no numbers.

    It is the first one that none is beyond, so that NaN is passed over where it does not come first. NumPy's numbers stand for
    a plain one beside them (``max(0, x)``), which is noted: see ``Mixed``.
    """
    columns = _columns(trace, items)
    if columns is not None and len(keys) >= SOME and type(keys[0]) is tuple:
        order = _order(trace, keys, fun is max)
        return None if order is None else _at(trace, items, columns, order[0])
    if len(keys) < 2 or not _are_numbers(keys):
        return None
    if len(keys) >= MANY or columns is None:
        place = _place(trace, fun, keys)
        if columns is None:
            return items[int(place)]
        return _at(trace, items, columns, place)
    rows = zip(keys, *[column for column, _ in columns], strict=True)
    best, *chosen = next(rows)
    place = 0
    for i, (key, *row) in enumerate(rows, 1):
        beyond = key < best if fun is min else key > best
        place = i if (beyond.value if type(beyond) is Tracer else beyond) else place
        if type(beyond) is not Tracer:  # of two plain numbers
            best, chosen = (key, row) if beyond else (best, chosen)
            continue
        best, chosen = EXTREME(beyond, key, best), [EXTREME(beyond, x, y) for x, y in zip(row, chosen, strict=True)]
    numbers = [same(x) if type(x) is Tracer else x for x, (_, same) in zip(chosen, columns, strict=True)]
    own = fun if keys is items else None
    return _row(items, [_mixed(trace, x, column, place, own) for x, (column, _) in zip(numbers, columns, strict=True)])


def _at(trace: Trace, items: Sequence[Any], columns: list[tuple[Sequence[Any], _Kind]], place: Any) -> Any:
    """The item at a traced place."""
    numbers = [same(_picked(trace, column, place)) for column, same in columns]
    return _row(items, [_mixed(trace, x, column, plain(place)) for x, (column, _) in zip(numbers, columns, strict=True)])


def _mixed(trace: Trace, x: Any, column: Sequence[Any], place: Any, fun: Any = None) -> Any:
    """What was chosen from a column, noted as Python's number or NumPy's, if it may be either, or as an int or a float; as its
    ``min`` or ``max``, if it is that."""
    if type(x) is not Tracer:
        return x
    whole = [type(value) is int for value in column]
    if all(whole):
        return x
    trace.coarse |= any(whole)
    known = [trace.mixed.get(value.node) if type(value) is Tracer else None for value in column]
    python = [one.python if one else _is_python(value) for one, value in zip(known, column, strict=True)]
    if any(known) or any(python if x.node.aval.kind == "scalar" else whole):
        causes = frozenset({CHOICE}).union(*[one.causes for one in known if one])
        lows, highs = zip(*[bounds_of(trace.gather(value).node, trace.mixed) for value in column], strict=True)
        bounds = Bounds((fun or min)(lows), (fun or max)(highs))
        own = any(whole) or any([one.whole for one in known if one])
        trace.mixed[x.node] = Mixed(None if trace.lanes else python[int(place)], causes, bounds, own)
    return x


def ordered(trace: Trace, items: Sequence[Any], keys: Sequence[Any], reverse: bool) -> list[Any] | None:
    """``items`` in the order of their keys, those alike in theirs; None where these are no numbers, or tuples of such, or where
    one is NaN."""
    columns = _columns(trace, items)
    order = None if columns is None or len(keys) < SOME else _order(trace, keys, reverse)
    if columns is None or order is None:
        return None
    every = [(_picked(trace, column, order), same) for column, same in columns]
    at = plain(order)
    rows = [[same(column[i]) for column, same in every] for i in range(len(items))]
    return [
        _row(items, [_mixed(trace, x, column, i) for x, (column, _) in zip(row, columns, strict=True)])
        for i, row in zip(at, rows, strict=True)
    ]


def _order(trace: Trace, keys: Sequence[Any], reverse: bool) -> Any:
    """Where the keys are, in their order; None where they are no numbers, or tuples of such, or one is NaN."""
    tuples = {len(key) if type(key) is tuple else 0 for key in keys}
    columns = [keys] if tuples == {0} else [*zip(*keys, strict=True)] if len(tuples) == 1 else []
    every = [x for column in columns for x in column]
    known = all([_is_literal(x) or _kind_of_number(x) is not None or _kind_of_int(x) is not None for x in every])
    if not known or not any([type(x) is Tracer for x in every]):
        return None
    arrays = [trace.gather(list(column)) for column in columns]
    if any([np.any(np.isnan(array)) for array in arrays]):
        return None
    arrays = [array[::-1] for array in arrays] if reverse else arrays
    places: Any = np.argsort(arrays[0], kind="stable") if len(arrays) == 1 else np.lexsort(tuple(arrays[::-1]))
    return len(keys) - 1 - places[::-1] if reverse else places


def _place(trace: Trace, fun: Any, keys: Sequence[Any]) -> Any:
    """Where the first extreme key is, found by one call of NumPy's."""
    array = trace.gather(list(keys))
    beyond = np.full(len(keys), np.inf if fun is min else -np.inf)
    beyond[0] = -beyond[0]
    return (np.argmin if fun is min else np.argmax)(np.where(np.isnan(array), beyond, array))


def _picked(trace: Trace, column: Sequence[Any], place: Any) -> Any:
    """The numbers of a column at a traced place, or at several."""
    if {*map(type, column)} == {int} and list(column) == [*range(len(column))]:
        return place
    array = trace.gather(list(column))
    if place.ndim or not array.node.differentiated:
        return array[place]
    return array[np.arange(len(column)) == place][0]  # by a mask, so that NaN elsewhere takes no part


def _row(items: Sequence[Any], numbers: list[Any]) -> Any:
    return tuple(numbers) if type(items[0]) is tuple else numbers[0]


def _columns(trace: Trace, items: Sequence[Any]) -> list[tuple[Sequence[Any], _Kind]] | None:
    """The numbers of which items are made, and whose these are; None for other items."""
    columns: list[Sequence[Any]] = [items]
    if type(items[0]) is tuple:
        if not items[0] or {len(item) if type(item) is tuple else 0 for item in items} != {len(items[0])}:
            return None
        columns = [*zip(*items, strict=True)]
    kinds = [_kind_of(trace, column) for column in columns]
    return None if None in kinds else [*zip(columns, kinds, strict=True)]  # type: ignore[list-item]


def _kind_of(trace: Trace, column: Sequence[Any]) -> _Kind | None:
    """Whose numbers these are; None for other things, and those of several kinds, but in loops, where Python's numbers become
    NumPy's in the course of it."""
    if {*map(type, column)} in ({int}, {float}):
        return TO_PYTHON
    kinds = {_kind_of_int(x) for x in column}
    if len(kinds) == 1 and None not in kinds:
        return TO_PYTHON if kinds == {"python"} else TO_NUMPY
    kinds = {_kind_of_number(x) for x in column if not _is_literal(x)}
    mixed = trace.iterates and kinds == {"python", "scalar"} and CHOICE not in trace.apart
    if CHOICE in trace.apart and any([_is_literal(x) and (kinds == {"scalar"} or type(x) is int) for x in column]):
        return None
    return TO_PYTHON if kinds == {"python"} else TO_NUMPY if kinds == {"scalar"} or mixed else None


def _are_numbers(keys: Sequence[Any]) -> bool:
    """Whether all of these are numbers, of which some are traced."""
    traced = any([type(key) is Tracer for key in keys])
    return traced and all([_is_literal(key) or _kind_of_number(key) is not None for key in keys])


def _kind_of_number(value: Any) -> str | None:
    """Whose number of double precision it is, Python's or NumPy's; None for anything else."""
    if type(value) is Tracer:
        aval = value.node.aval
        return aval.kind if isinstance(aval, Aval) and aval.kind != "array" and aval.dtype == np.float64 else None
    return "scalar" if type(value) is np.float64 else None


def _kind_of_int(value: Any) -> str | None:
    """Whose int it is, which is traced, Python's or NumPy's; None for anything else."""
    aval = value.node.aval if type(value) is Tracer else None
    return aval.kind if isinstance(aval, Aval) and aval.kind != "array" and aval.dtype == np.int64 else None


def _is_python(value: Any) -> bool:
    """Whether it is one of Python's own numbers, traced or not."""
    return value.node.aval.kind == "python" if type(value) is Tracer else _is_literal(value)


def _is_literal(value: Any) -> bool:
    """Whether it is one of Python's own numbers, that double precision has."""
    return type(value) is float or (type(value) is int and abs(value) <= EXACT)
