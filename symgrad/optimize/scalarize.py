"""Small arrays taken apart: a program of them becomes one of Python floats, element by element.

A NumPy call costs more than a dozen operations on Python's floats, however small its arrays. How a program is taken apart,
``scalarizer`` says; what its operations do to elements, ``grids``; which arrays stay, ``whole``. A program is left as it is
where it has anything else but small arrays of double precision, or would not be faster: that is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node
from symgrad.ops import engine, index
from symgrad.ops.core import ops_of
from symgrad.ops.reduction import OTHERS
from symgrad.optimize.exact import decisive
from symgrad.optimize.grids import FREE, GRIDS, SOLVING, SUMMING
from symgrad.optimize.loops import SCALAR, STACK, rows_apart, trim_loops
from symgrad.optimize.rewriting import Simplifier, const, is_number, rewrite
from symgrad.optimize.scalarizer import BLAS, HOPE, MORE, MOST, Scalarizer, Unsuited, turns_of
from symgrad.optimize.scalars import (
    CALL,
    CELL,
    CHOICE,
    ELEMENT,
    FUNCTION,
    ITEM,
    LAPACK,
    LIST,
    LISTED,
    NUMBER,
    OPERATION,
    PACK,
    PACKING,
    PICK,
    PLAIN,
    ROW,
    STREAM,
    UNPACK,
    UNPACKING,
    VIEW,
)
from symgrad.optimize.unroll import unrolled
from symgrad.optimize.whole import all_small, is_cell, is_left, is_long, is_row, is_window, tables_of
from symgrad.optimize.widen import widen
from symgrad.program import Program
from symgrad.tracing.trace import IN_PLACE
from symgrad.transform.loop import Loop

WRITTEN = 1500  # operations on numbers, up to which it is looked whether loops are better written out
LESS = 0.75  # of the time is what it is worth where long arrays go from one operation, or iteration, to the next, too


def scalarize(program: Program) -> Program:
    """The same program on numbers, where it is one of small arrays and that is faster."""
    whole, program = program, rows_apart(widen(program))
    nodes = program.nodes()
    straight = not any(isinstance(node.op, Loop) for node in nodes)
    if straight and sum(_cost(node) for node in nodes if is_long(node)) >= _share(nodes) * cost(whole):
        return whole  # what NumPy does anyway takes as long
    if not all_small(nodes, program.roots()) or not any(_takes_apart(node) for node in nodes):
        return whole
    hope = 1 if straight and any(map(is_long, nodes)) else HOPE
    most = max(hope * MOST, MORE * len(nodes))
    if _operations(nodes, False) > most or OPERATION * _operations(nodes, True) > hope * cost(whole):
        return whole  # before it takes long to find out
    found = _taken_apart(program)
    flat = None if straight else unrolled(program)
    if flat is not None and _operations(flat.nodes(), False) <= WRITTEN:
        found += _taken_apart(flat)
    return next((one for one in sorted(found, key=cost) if is_worth(one, whole)), whole)


def _taken_apart(program: Program) -> list[Program]:
    """A program taken apart, with and without NumPy's products; none where it cannot be."""
    found: list[Program] = []
    for calls in (True, False):
        scalarizer = Scalarizer(program, GRIDS, calls)
        try:
            taken = trim_loops(scalarizer.run())
        except Unsuited:
            break
        taken = Simplifier(taken, SCALAR).run(decisive(taken))
        taken.apart = True
        found.append(taken)
        if not scalarizer.left:
            break
    return found


def is_worth(apart: Program, whole: Program) -> bool:
    """Whether a program should be taken apart."""
    return cost(apart) < _share(whole.nodes()) * cost(whole)


def _share(nodes: Sequence[Node]) -> float:
    """Of the time that nodes take, below which it must come to be worth it."""
    loops = [node for node in nodes if isinstance(node.op, Loop)]
    mixed = any(map(is_long, nodes)) if not loops else any(map(_hands_on, loops))
    return LESS if mixed else 1


def _hands_on(loop: Node) -> bool:
    """Whether iterations of a loop save long arrays, but for the tables that they begin with."""
    body = loop.op.body
    inner = [node for node in body.nodes() if isinstance(node.op, Loop)]
    return any([is_long(item) and item not in body.carry for item in body.saved]) or any(map(_hands_on, inner))


@rewrite(CHOICE, np.where, rules=SCALAR)
def choice_of_one(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What both sides are."""
    _, x, y = args
    same = x is y or (const(x) is not None and repr(const(x)) == repr(const(y)))
    return x if same and x.aval == node.aval else None


@rewrite(np.multiply, rules=SCALAR, derived=True)
def nothing_of_a_flag(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Zero, as a flag is finite."""
    for zero, flag in (args, args[::-1]):
        if is_number(zero, 0.0) and zero.aval == node.aval and flag.aval.dtype == bool:
            return zero
    return None


@rewrite(PACK, of=(engine.ITEM,), exact=True, rules=SCALAR)
def packed_again(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The array whose elements these are, one after the other; one that is made here, as results must be nobody else's."""
    if args[0].op is not engine.ITEM:
        return None
    (whole,) = args[0].args
    if whole.op is not UNPACK or len(whole.aval) != len(args):
        return None
    (array,) = whole.args
    if array.op is not STACK or array.aval != node.aval or s.used.get(whole, 0) > len(args):
        return None
    every = [arg.op is engine.ITEM and arg.args[0] is whole and dict(arg.params)["item"] == i for i, arg in enumerate(args)]
    return array if all(every) else None


def _takes_apart(node: Node) -> bool:
    if isinstance(node.op, Loop):
        return any(_takes_apart(inner) for inner in (*node.op.body.inputs, *node.op.body.nodes()))
    return isinstance(node.aval, Aval) and node.aval.kind == "array"


def _operations(nodes: Sequence[Node], running: bool) -> float:
    """About how many operations on numbers there are, in the code or while it is ``running``."""
    total = 0.0
    for node in nodes:
        if isinstance(node.op, Loop):
            turns, body = turns_of(node.op.course) if running else 1, node.op.body
            own = tables_of(body)
            apart = [item for i, item in enumerate(body.carry) if i not in own and isinstance(item.aval, Aval)]
            carried = [math.prod(item.aval.shape) for item in apart if not is_long(item)]
            total += turns * (_operations(body.nodes(), running) + sum(carried))
        elif isinstance(node.aval, Aval) and node.op not in FREE and not (is_long(node) or is_cell(node) or is_left(node)):
            within = is_row(node) or is_window(node) or (node.op in IN_PLACE and len(node.args) == 2)
            values = node.args[1:] if within else (node, *node.args)
            sizes = [math.prod(value.aval.shape) for value in values if isinstance(value.aval, Aval)]
            total += 2 * math.sqrt(math.prod(sizes)) if node.op in SUMMING else max(sizes)
    return total


_EXTREMES = ops_of(np.max, np.min)


# -- what it costs -------------------------------------------------------------------------------------------------


def cost(program: Program) -> float:
    """About how many microseconds a program takes, beside what any way to compute it does."""
    return sum(map(_cost, program.nodes()))


def _cost(node: Node) -> float:
    op, aval = node.op, node.aval
    if op in (INPUT, CONST, CAPTURED, engine.ITEM):
        return 0.0
    if isinstance(op, Loop):
        _, sequences, _ = op.split(node.args)
        rows = sum(isinstance(sequence.aval, Aval) for sequence in sequences) + len(dict(node.params).get("arrays", ()))
        items = len(sequences + op.body.saved) - rows
        return turns_of(op.course) * (sum(map(_cost, op.body.nodes())) + ROW * rows + ITEM * items)
    if op is UNPACK:
        return UNPACKING + ELEMENT * len(aval) if isinstance(node.args[0].aval, Aval) else ELEMENT * len(aval)
    if op is LIST:
        return UNPACKING + ELEMENT * float(math.prod(node.args[0].aval.shape))
    if op is LISTED:
        return ELEMENT * len(node.args)
    if op is PICK:
        return OPERATION * len(node.args)
    if op is CHOICE:  # one of two names
        return OPERATION
    if op is CELL or (is_cell(node) and op is not index.GETITEM):
        return NUMBER
    if op in IN_PLACE and len(node.args) > 1 and isinstance(node.args[1].aval, Aval):
        return CALL + STREAM * math.prod(node.args[1].aval.shape)
    if op is STACK:
        return CALL + ELEMENT * float(math.prod(aval.shape))
    if op is PACK:
        return PACKING + ELEMENT * len(node.args) if dict(node.params)["dtype"] == float else 3 * CALL
    if op in SOLVING:
        return LAPACK
    if op is OTHERS:
        return 12 * LAPACK
    if not isinstance(aval, Aval):
        return 2 * CALL
    if aval.kind == "python" and op in PLAIN and all(arg.aval.kind == "python" for arg in node.args):
        return OPERATION
    if aval.kind == "python" and op not in (index.GETITEM, engine.TO_PYTHON):
        return FUNCTION
    if op.alias or op in (engine.TO_PYTHON, engine.TO_FLOAT):
        return VIEW
    if aval.kind != "array" and all(arg.aval.kind != "array" for arg in node.args):
        return NUMBER if op in PLAIN else CALL
    calls = 1.0 if isinstance(op.key, np.ufunc) or op in BLAS else 3.0 if op in _EXTREMES else 2.0
    return calls * CALL + STREAM * math.prod(aval.shape)
