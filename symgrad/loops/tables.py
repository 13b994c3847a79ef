"""Lists of numbers as arrays, in the run of a function that loops over them (see ``symgrad.source.tables``).

A run begins with lists as they are. Where a loop that decides, or a long one, puts a traced number into one of them, or
anything at a traced place, ``Otherwise`` ends the run, and in the next one that list is an array, of floats or of flags. What
is in it is Python's and NumPy's, ``mixed``; where that matters, where the list turns out to be none of numbers alone, or of
flags alone, or where anything is raised, the run ends once more, and the list stays one.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import Aval, Node
from symgrad.loops.patterns import EXACT, INT
from symgrad.ops.core import REGISTRY, ops_of
from symgrad.ops.engine import INDEX, NAMED
from symgrad.tracing.mixed import Mixed, Otherwise
from symgrad.tracing.trace import Trace, is_held_so_often
from symgrad.tracing.tracer import Tracer, plain

MOST = 1 << 16  # items of such a list
_GROWING = ops_of(np.add, np.multiply, np.power, np.left_shift)
_FLOAT, _FLAG = np.dtype(float), np.dtype(bool)


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
    loop = trace.innermost_loop() if type(value) is Tracer and value.node.active and is_number(value) else None
    return _asked(trace, value, site, loop is not None and loop.is_long() and not _may_grow(value.node))


def _may_grow(node: Node) -> bool:
    """Whether it is an int that others may be multiples of, or sums: one beyond those that a float is as well."""
    while node.op is NAMED:
        node = node.args[0]
    if node.aval != INT or node.op not in _GROWING:
        return False
    return node.op is not REGISTRY[np.add] or all([arg.active and arg.op is not INDEX for arg in node.args])


def ask_place(trace: Trace, index: Any, site: Site) -> Any:
    """Where a function puts something into a list, which is better an array in a loop where that is known to code alone."""
    chosen = _is_place(index) and (index.node.active or index.node.op is NAMED)
    return _asked(trace, index, site, chosen and trace.innermost_loop() is not None)


def may_end(trace: Trace) -> bool:
    """Whether a run may end, for another one in which a list is an array."""
    done = trace.impure or trace.trying or trace.hooks.impure or trace.hooks.effects  # what would be done again
    return trace.symbolic and trace.tables and not trace.lanes and not done


def _asked(trace: Trace, value: Any, site: Site, better: bool) -> Any:
    if better and may_end(trace):
        asked = Lists(site.code, site.group, False)
        if asked not in trace.apart:
            raise trace.refuse(Otherwise(frozenset([asked])))
    return value


def made(trace: Trace, value: Any, site: Site) -> Tracer:
    """A list that nobody else has as an array."""
    rows = value if site.depth == 2 else [value]
    lists = type(value) is list and all([type(row) is list for row in rows]) and not trace.trying
    if not lists or (site.depth == 2 and not all([is_held_so_often(row, 1, 0) for row in rows])):  # others may change a row
        raise site.refused(trace)
    size = len(rows) * len(rows[0]) if rows and len({len(row) for row in rows}) == 1 else 0
    items = [item for row in rows for item in row]
    dtype = _FLOAT if all(map(is_number, items)) else _FLAG if all(map(is_flag, items)) else None
    if not 0 < size <= MOST or dtype is None:
        raise site.refused(trace)
    array = trace.gather([[*row] for row in rows] if site.depth == 2 else [*value])
    array = array if array.dtype == dtype else array.astype(dtype)
    filled = None if array.node.args else trace.filled(array.value)
    return site.mixed(array if filled is None else filled)


def copied(array: Tracer, site: Site) -> Tracer:
    """A copy of such a list."""
    return site.mixed(array.copy())


def entry(trace: Trace, value: Any, site: Site, dtype: Any) -> Any:
    """A number, or a flag, that is put into such a list, of this ``dtype``."""
    if not (is_flag if dtype == _FLAG else is_number)(value):
        raise site.refused(trace)
    return value


def place(trace: Trace, index: Any, length: int, site: Site) -> Any:
    """An index of such a list, of so many items."""
    if not (_is_place(index) or type(index) is int or isinstance(index, np.integer)):
        raise site.refused(trace)
    if not trace.lanes and not -length <= int(plain(index)) < length:
        raise site.refused(trace)  # what is raised says that it is a list
    return operator.index(index) if isinstance(index, np.integer) else index


def listed(array: Tracer) -> list[Any]:
    """The list itself, for whom it is none of numbers in a row."""
    return [listed(item) if item.ndim else item for item in array]


def _is_place(index: Any) -> bool:
    """Whether it is a traced int."""
    known = index.node.aval if type(index) is Tracer else None
    return isinstance(known, Aval) and not known.shape and known.dtype.kind in "iu"


def is_flag(value: Any) -> bool:
    """Whether it is True or False, Python's or NumPy's, traced or not."""
    if type(value) is not Tracer:
        return type(value) in (bool, np.bool_)
    return isinstance(value.node.aval, Aval) and value.node.aval.kind != "array" and value.node.aval.dtype == _FLAG


def is_whole(value: Any) -> bool:
    """Whether it is an int that no arithmetic makes larger than an array's, traced or not."""
    if type(value) is not Tracer:
        return type(value) is int and abs(value) <= EXACT
    known = value.node.aval
    return isinstance(known, Aval) and known.kind != "array" and known.dtype == INT.dtype and not _may_grow(value.node)


def is_number(value: Any) -> bool:
    """Whether it is a float, or an int that is one as well, traced or not."""
    if type(value) is not Tracer:
        return type(value) in (float, np.float64) or (type(value) is int and abs(value) <= EXACT)
    known = value.node.aval
    if not isinstance(known, Aval) or known.kind == "array":
        return False
    return known.dtype == _FLOAT or (known.dtype.kind == "i" and known.kind == "python")
