"""Lists of numbers as arrays, in the run of a function that loops over them (see ``symgrad.source.tables``).

A run begins with lists as they are. Where a loop that decides, or a long one, puts a traced number into one of them,
``Otherwise`` ends the run, and in the next one that list is an array. Its numbers are Python's and NumPy's, ``mixed``; where
that matters, where the list turns out to be none of numbers alone, or where anything is raised, the run ends once more, and the
list stays one.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import Aval
from symgrad.ops.engine import NAMED
from symgrad.tracing.mixed import Mixed, Otherwise
from symgrad.tracing.trace import Trace, is_held_so_often
from symgrad.tracing.tracer import Tracer, plain

MOST = 1 << 16  # items of such a list
EXACT = 2**53  # up to which whole numbers are floats
_FLOAT = np.dtype(float)


class Lists(NamedTuple):
    """Among what is ``apart``: the lists of these names, in a function's code, are arrays, or stay lists after all."""

    code: CodeType
    group: tuple[str, ...]
    stay: bool


class Site(NamedTuple):
    """The lists of these names, of so many axes as arrays, in a function's ``code``."""

    code: CodeType
    group: tuple[str, ...]
    depth: int

    def refused(self, trace: Trace) -> Exception:
        """What ends a run in which such a list cannot be an array."""
        return trace.refuse(Otherwise(frozenset([Lists(self.code, self.group, True)])))

    def mixed(self, array: Tracer) -> Tracer:
        """An array of Python's numbers, and of NumPy's, which others that it is made of are not."""
        result: Tracer = array.tape.record(NAMED, (array,), {"place": self.group})
        result.tape.mixed[result.node] = Mixed(None, frozenset([Lists(self.code, self.group, True)]))
        return result


def groups(apart: Collection[Any], code: CodeType) -> frozenset[tuple[str, ...]]:
    """The names of the lists of a function that are arrays."""
    found = [one for one in apart if type(one) is Lists and one.code is code]
    return frozenset([one.group for one in found if not one.stay]) - {one.group for one in found if one.stay}


def as_lists(apart: Collection[Any]) -> set[Lists]:
    """What says that those which are arrays stay lists after all: what raised then may be a matter of that."""
    return {one._replace(stay=True) for one in apart if type(one) is Lists and not one.stay}


def ask(trace: Trace, value: Any, site: Site) -> Any:
    """A number that a function puts into a list, which is better an array in a loop."""
    done = trace.impure or trace.trying or trace.hooks.impure or trace.hooks.effects  # what would be done again
    if type(value) is Tracer and value.node.active and trace.symbolic and trace.tables and not trace.lanes and not done:
        asked, loop = Lists(site.code, site.group, False), trace.innermost_loop()
        if loop is not None and loop.is_long() and asked not in trace.apart and _is_number(value):
            raise trace.refuse(Otherwise(frozenset([asked])))
    return value


def made(trace: Trace, value: Any, site: Site) -> Tracer:
    """A list that nobody else has as an array."""
    rows = value if site.depth == 2 else [value]
    lists = type(value) is list and all([type(row) is list for row in rows]) and not trace.trying
    if not lists or (site.depth == 2 and not all([is_held_so_often(row, 1, 0) for row in rows])):  # others may change a row
        raise site.refused(trace)
    size = len(rows) * len(rows[0]) if rows and len({len(row) for row in rows}) == 1 else 0
    if not 0 < size <= MOST or not all([_is_number(item) for row in rows for item in row]):
        raise site.refused(trace)
    array = trace.gather([[*row] for row in rows] if site.depth == 2 else [*value])
    array = array if array.dtype == _FLOAT else array.astype(float)
    filled = None if array.node.args else trace.filled(array.value)
    return site.mixed(array if filled is None else filled)


def copied(array: Tracer, site: Site) -> Tracer:
    """A copy of such a list."""
    return site.mixed(array.copy())


def entry(trace: Trace, value: Any, site: Site) -> Any:
    """A number that is put into such a list."""
    if not _is_number(value):
        raise site.refused(trace)
    return value


def place(trace: Trace, index: Any, length: int, site: Site) -> Any:
    """An index of such a list, of so many items."""
    known = index.node.aval if type(index) is Tracer else None
    whole = isinstance(known, Aval) and not known.shape and known.dtype.kind in "iu"
    if not (whole or type(index) is int or isinstance(index, np.integer)):
        raise site.refused(trace)
    if not trace.lanes and not -length <= int(plain(index)) < length:
        raise site.refused(trace)  # what is raised says that it is a list
    return operator.index(index) if isinstance(index, np.integer) else index


def listed(array: Tracer) -> list[Any]:
    """The list itself, for whom it is none of numbers in a row."""
    return [listed(item) if item.ndim else item for item in array]


def _is_number(value: Any) -> bool:
    """Whether it is a float, or an int that is one as well, traced or not."""
    if type(value) is not Tracer:
        return type(value) in (float, np.float64) or (type(value) is int and abs(value) <= EXACT)
    known = value.node.aval
    if not isinstance(known, Aval) or known.kind == "array":
        return False
    return known.dtype == _FLOAT or (known.dtype.kind == "i" and known.kind == "python")
