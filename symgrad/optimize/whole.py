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
from symgrad.ops import engine, index
from symgrad.optimize.loops import STACK
from symgrad.optimize.lower import BITS, SELECT
from symgrad.optimize.scalars import NUMBERS, WIDE, WIDENING
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop

LARGEST = 100  # elements of an array that is taken apart
WINDOW = 16  # numbers that are read or written at once of one that is not


def all_small(nodes: Sequence[Node], ends: Sequence[Node], inside: bool = False, tables: Container[Node] = ()) -> bool:
    """Whether there are no arrays but small ones, those that are only read from at indices, ``tables`` of a loop, and others
    where NumPy does with them what takes no elements apart."""
    for node in (*nodes, *ends):
        known = isinstance(node.op, Loop) or _fits(node.aval) or _is_data(node) or node in tables or _is_filled(node)
        known = known or is_kept(node)
        if not known and not is_left(node):
            return False
    for node in nodes:
        if isinstance(node.op, Loop):
            body, own = node.op.body, tables_of(node.op.body)
            carry, sequences, _ = node.op.split(node.args)
            rows = [arg for item, arg in zip(body.elements, sequences, strict=True) if not is_long(item)]
            if any(map(is_long, (*(arg for i, arg in enumerate(carry) if i not in own), *rows))):
                return False
            given = set().union(*own.values(), [body.after[i] for i in own])
            if not all_small([*body.inputs, *body.nodes()], [*body.after, *body.saved], True, given):
                return False
        elif any([is_long(arg) or is_narrow(arg) for arg in node.args]) and not (
            _is_element(node) or node in tables or is_left(node) or node.op in WIDENING
        ):
            return False
    return not inside or not any(is_long(end) for end in ends if not (end in tables or is_left(end) or _is_filled(end)))


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
            kept = {item} - {after} if is_long(item) else set()  # as an array, of what it was before
            ends = [one for one in (*body.after, *body.saved) if one in table - kept]
            if places and (ends == [after] or (is_long(item) and not ends and (is_left(after) or _is_filled(after)))):
                found[i] = table
    return found


def filled_tables(program: Program) -> set[Node]:
    """What loops have made of tables, with what single numbers are then written to or read from and nothing else is done: so
    many numbers are not taken apart for one."""
    nodes = program.nodes()
    found: set[Node] = set()
    for node in nodes:
        filled = _is_filled(node) and not is_long(node) and math.prod(node.aval.shape) > WINDOW
        if filled or (is_cell(node) and node.op is not index.GETITEM and node.args[0] in found):
            found.add(node)
    for node in reversed(nodes):
        used = [arg for arg in node.args if arg in found]
        if used and not (is_cell(node) and (node.op is index.GETITEM or node in found) and len(used) == 1):
            found.difference_update(used)
    kept: set[Node] = set()
    for node in nodes:
        if node in found and (node.op is engine.ITEM or node.args[0] in kept):
            kept.add(node)
    return kept


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


def is_kept(node: Node) -> bool:
    """Whether it is the list of what a long array was in each iteration of a loop."""
    if node.op is not engine.ITEM or not isinstance(node.args[0].op, Loop):
        return False
    body = node.args[0].op.body
    place = dict(node.params)["item"] - len(body.carry)
    return place >= 0 and is_long(body.saved[place])


def is_long(node: Node) -> bool:
    return isinstance(node.aval, Aval) and _is_long(node.aval)


def _is_long(aval: Aval) -> bool:
    return math.prod(aval.shape) > LARGEST


def _is_element(node: Node) -> bool:
    """Whether it is read from an array at indices."""
    return node.op is index.GETITEM and not any(map(is_long, node.args[1:]))


def is_left(node: Node) -> bool:
    """Whether it is of long arrays, and left to NumPy: all but what reads numbers at places that are not known before."""
    if isinstance(node.op, (Leaf, Loop)):
        return False
    if node.op is engine.ITEM:
        return is_left(node.args[0])
    avals = [*(node.aval if type(node.aval) is tuple else (node.aval,)), *(arg.aval for arg in node.args)]
    if not all([isinstance(aval, Aval) for aval in avals]):
        return node.op in (STACK, BITS, SELECT) and any(map(is_long, (node, *node.args)))
    if not any(map(_is_long, avals)):
        return False
    if is_cell(node):
        return node.op is not index.GETITEM and node.aval.dtype == node.args[1].aval.dtype in (np.float64, bool)
    places = node.args[len(node.op.rules) :] if node.op is index.GETITEM else ()
    if any([place.op is not CAPTURED for place in places]) and not is_long(node):
        return False
    return all([_is_long(aval) or aval.dtype in NUMBERS for aval in avals])


def _is_data(node: Node) -> bool:
    """Whether it is an array, however long, that is there before."""
    return node.op in (INPUT, CAPTURED) and isinstance(node.aval, Aval) and (node.aval.dtype in NUMBERS or is_narrow(node))


def is_narrow(node: Node) -> bool:
    """Whether it is an array of a type that Python has no numbers of, and that can be made wide: see ``widen``."""
    return isinstance(node.aval, Aval) and node.aval.dtype in WIDE


def _fits(aval: Any) -> bool:
    """Whether a value is of numbers that Python has, and of few; or a list of such."""
    if isinstance(aval, ListAval):
        return _fits(aval.element)
    if isinstance(aval, tuple) and not isinstance(aval, Aval):
        return all(map(_fits, aval))
    return isinstance(aval, Aval) and aval.dtype in NUMBERS and math.prod(aval.shape) <= LARGEST
