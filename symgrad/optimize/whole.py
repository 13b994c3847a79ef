"""Which arrays of a program of numbers stay whole.

*Tables*, which loops read and write number by number, stay arrays, and so do long arrays that NumPy alone has to do with.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, INPUT, Aval, Leaf, Node
from symgrad.ir import Sequence as ListAval
from symgrad.ops import create, engine, index
from symgrad.ops.core import REGISTRY
from symgrad.optimize.loops import STACK
from symgrad.optimize.lower import BITS, INNER, SELECT
from symgrad.optimize.rewriting import ops_of
from symgrad.optimize.scalars import NUMBERS
from symgrad.transform.loop import Body, Loop

LARGEST = 100  # elements of an array that is taken apart
WINDOW = 16  # numbers that are read or written at once of one that is not

_LEFT = ops_of(
    *(STACK, INNER, engine.REQUIRE_FINITE, create.ZEROS, np.broadcast_to),
    *(np.sum, np.mean, np.dot, np.vdot, np.vecdot),
    *(np.concatenate, np.reshape, np.transpose, np.expand_dims, np.max, np.min, np.argmax, np.argmin, np.cumsum),
)


def all_small(nodes: Sequence[Node], ends: Sequence[Node], inside: bool = False, tables: Container[Node] = ()) -> bool:
    """Whether there are no arrays but small ones, those that are only read from at indices, ``tables`` of a loop, and others
    where NumPy does with them what takes no elements apart."""
    for node in (*nodes, *ends):
        known = isinstance(node.op, Loop) or _fits(node.aval) or _is_data(node) or node in tables or _is_filled(node)
        if not known and not is_left(node):
            return False
    for node in nodes:
        if isinstance(node.op, Loop):
            body, own = node.op.body, tables_of(node.op.body)
            carry, sequences, _ = node.op.split(node.args)
            if any(map(is_long, (*(arg for i, arg in enumerate(carry) if i not in own), *sequences))):
                return False
            given = set().union(*own.values(), [body.after[i] for i in own])
            if not all_small([*body.inputs, *body.nodes()], [*body.after, *body.saved], True, given):
                return False
        elif any(map(is_long, node.args)) and not (_is_element(node) or node in tables or is_left(node)):
            return False
    return not inside or not any(is_long(end) for end in ends if end not in tables)


_OF_MASKS = ops_of(
    *(create.ZEROS, create.FULL, np.broadcast_to, np.concatenate, np.reshape, np.transpose, np.expand_dims),
    *(np.where, np.count_nonzero, np.sum, np.any, np.all, np.argmax, np.logical_not, np.logical_and, np.logical_or),
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
)

_tables: weakref.WeakKeyDictionary[Body, dict[int, set[Node]]] = weakref.WeakKeyDictionary()  # they are asked for often


def tables_of(body: Body) -> dict[int, set[Node]]:
    """The carried arrays of a loop that its iterations read and write by numbers or rows, at places known at run time, and long
    ones with which NumPy does more.

    By their numbers, with all that is such an array in an iteration. They stay arrays, however small.
    """
    found = _tables.get(body)
    if found is None:
        found = _tables[body] = _found_tables(body)
    return found


def _found_tables(body: Body) -> dict[int, set[Node]]:
    found: dict[int, set[Node]] = {}
    for i, (item, after) in enumerate(zip(body.carry, body.after, strict=True)):
        if not isinstance(item.aval, Aval) or not item.aval.shape or item.aval.dtype not in NUMBERS:
            continue
        table, places = {item}, is_long(item)
        for node in body.nodes():
            if node.op is engine.ITEM and _is_filled(node) and node.args[0].args[dict(node.params)["item"]] in table:
                table.add(node)
                continue
            if not (used := [k for k, arg in enumerate(node.args) if arg in table]):
                continue
            if (
                isinstance(node.op, Loop)
                and len(used) == 1
                and (used[0] in tables_of(node.op.body) or _is_looked_at(node, used[0]))
            ):
                places = True
            elif used == [0] and (is_cell(node) or is_row(node) or is_window(node)):
                places = places or len(node.args) > len(node.op.rules)
                table |= {node} if node.op is not index.GETITEM else set()
            elif not (is_long(item) and is_left(node)):
                break
        else:
            ends = [one for one in (*body.after, *body.saved) if one in table]
            if places and (ends == [after] or (is_long(item) and not ends and is_left(after))):
                found[i] = table
    return found


def _is_looked_at(loop: Node, place: int) -> bool:
    """Whether a loop only reads numbers or rows of an array that it is given."""
    body, given = loop.op.body, place - len(loop.op.body.carry) - len(loop.op.body.elements)
    if given < 0 or (item := body.invariants[given]) in (*body.after, *body.saved):
        return False
    for node in body.nodes():
        used = [k for k, arg in enumerate(node.args) if arg is item]
        inner = isinstance(node.op, Loop) and len(used) == 1 and _is_looked_at(node, used[0])
        part = node.op is index.GETITEM and used == [0] and (is_cell(node) or is_row(node) or is_window(node))
        if used and not (inner or part):
            return False
    return True


def is_cell(node: Node) -> bool:
    """Whether one number of an array is read, written, or added to."""
    if node.op not in (index.GETITEM, index.SETITEM, index.INDEX_ADD) or not isinstance(node.args[0].aval, Aval):
        return False
    spec = dict(node.params)["spec"]
    whole = len(spec) == len(node.args[0].aval.shape) and all([type(part) in (index.Hole, int) for part in spec])
    places = node.args[len(node.op.rules) :]
    numbers = all([arg.aval.shape == () for arg in node.args[1:]]) and all([place.aval.dtype.kind in "iu" for place in places])
    return whole and numbers


def is_window(node: Node) -> bool:
    """Whether a few numbers of an array are read, written, or added to, at places in each of its axes."""
    if node.op not in (index.GETITEM, index.SETITEM, index.INDEX_ADD) or not isinstance(node.args[0].aval, Aval):
        return False
    spec, places = dict(node.params)["spec"], node.args[len(node.op.rules) :]
    each = len(spec) == len(node.args[0].aval.shape) and all([type(part) in (index.Hole, int) for part in spec])
    few = all([place.aval.dtype.kind in "iu" and math.prod(place.aval.shape) <= WINDOW for place in places])
    return each and few and any([place.aval.shape for place in places])


def is_row(node: Node) -> bool:
    """Whether a short row of an array is read, written, or added to, at places known at run time."""
    if node.op not in (index.GETITEM, index.SETITEM, index.INDEX_ADD) or not isinstance(node.args[0].aval, Aval):
        return False
    spec, shape = dict(node.params)["spec"], node.args[0].aval.shape
    row, places = shape[len(spec) :], node.args[len(node.op.rules) :]
    if not row or not places or math.prod(row) > LARGEST or not all([type(part) in (index.Hole, int) for part in spec]):
        return False
    fits = node.aval.shape == row if node.op is index.GETITEM else node.args[1].aval.shape in (row, ())
    return fits and all([not place.aval.shape and place.aval.dtype.kind in "iu" for place in places])


def _is_filled(node: Node) -> bool:
    """Whether it is what a loop has made of a table."""
    if node.op is not engine.ITEM or not isinstance(node.args[0].op, Loop):
        return False
    return dict(node.params)["item"] in tables_of(node.args[0].op.body)


def is_long(node: Node) -> bool:
    return isinstance(node.aval, Aval) and math.prod(node.aval.shape) > LARGEST


def _is_element(node: Node) -> bool:
    """Whether it is read from an array at indices."""
    return node.op is index.GETITEM and not any(map(is_long, node.args[1:]))


def is_left(node: Node) -> bool:
    """Whether it is of long arrays, and left to NumPy: arithmetic, functions, sums, and what is written at known places."""
    if isinstance(node.op, Leaf) or not any(map(is_long, (node, *node.args))):
        return False
    if is_cell(node):
        return node.op is not index.GETITEM and node.aval.dtype == node.args[1].aval.dtype in (np.float64, bool)
    writes = (index.SCATTER, index.SETITEM, index.INDEX_ADD)
    places = node.args[len(node.op.rules) :] if node.op in (index.GETITEM, *writes) else ()
    known = bool(places) and all([place.op is CAPTURED and place.aval.dtype.kind in "iu" for place in places])
    values = (node, *(node.args[: -len(places)] if known else node.args))
    if any(not isinstance(value.aval, Aval) or not _is_of_numbers(value.aval) for value in values):
        return node.op in (STACK, BITS, SELECT)
    section = node.op is index.GETITEM and len(node.args) == 1 and is_long(node)
    if any(value.aval.shape and value.aval.dtype == bool for value in values):
        return section or node.op in _OF_MASKS
    if known or section:
        return True
    write = node.op in writes and not places
    write |= node.op is index.SCATTER and all([not place.aval.shape and place.aval.dtype.kind in "iu" for place in places])
    inner = node.op is REGISTRY[np.matmul] and not node.aval.shape
    function = node.op.family == "elementwise" and isinstance(node.op.key, np.ufunc)
    return write or inner or function or node.op in _LEFT


def _is_of_numbers(aval: Aval) -> bool:
    """Whether it is of floats, or a mask; or one of Python's numbers."""
    return aval.dtype == np.float64 or aval.dtype == bool or (not aval.shape and aval.dtype in NUMBERS)


def _is_data(node: Node) -> bool:
    """Whether it is an array, however long, that is there before."""
    return node.op in (INPUT, CAPTURED) and isinstance(node.aval, Aval) and node.aval.dtype in NUMBERS


def _fits(aval: Any) -> bool:
    """Whether a value is of numbers that Python has, and of few; or a list of such."""
    if isinstance(aval, ListAval):
        return _fits(aval.element)
    if isinstance(aval, tuple) and not isinstance(aval, Aval):
        return all(map(_fits, aval))
    return isinstance(aval, Aval) and aval.dtype in NUMBERS and math.prod(aval.shape) <= LARGEST
