"""Elements that are read and added to at index arrays, one for each axis, by their places in memory.

NumPy takes several times as long for an index of several arrays as for one. The places are computed once where several arrays
of one shape are read, or added to, at the same index. Only code that runs goes by them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.ir import Node
from symgrad.ops import create, index
from symgrad.ops.core import Op
from symgrad.optimize import rewriting
from symgrad.optimize.loops import inside
from symgrad.optimize.lower import ADD_ELEMENTS, ELEMENTS
from symgrad.optimize.rewriting import Rewrite, Simplifier, elements_of
from symgrad.program import Program

RULES: dict[Any, list[Rewrite]] = {}
MANY = 320  # elements, from which on NumPy takes longer for them than to look at the index
SUM_ELEMENTS = Op(runtime.sum_elements, "constant", (), name="runtime.sum_elements")
WITHIN = Op(runtime.within, "constant", (), name="runtime.within", alias=True)

rewrite = functools.partial(rewriting.rewrite, rules=RULES)


def elements(program: Program) -> Program:
    """The same program, with the elements of tables by their places in memory."""
    return _by_place(inside(program, _by_place))


def _by_place(program: Program) -> Program:
    if not any([node.op in _SELECTING and _at_arrays(node) for node in program.nodes()]):
        return program
    return Simplifier(program, RULES).run()


_SELECTING = (index.GETITEM, index.INDEX_ADD, index.SCATTER)


def _at_arrays(node: Node) -> bool:
    """Whether single elements are selected by an array of places for each axis, many if there are several."""
    table = node if node.op is index.SCATTER else node.args[0]
    arrays = node.args[len(node.op.rules) :]
    if not arrays or arrays[0].aval.dtype != np.int64 or not all(array.aval == arrays[0].aval for array in arrays):
        return False
    spec = dict(node.params)["spec"]
    if not index.names_elements(spec, len(table.aval.shape)) or [part.number for part in spec] != list(range(len(arrays))):
        return False
    return _adds_up(node) if len(arrays) == 1 else elements_of(arrays[0]) >= MANY


def _adds_up(node: Node) -> bool:
    """Whether what a write adds is added to zeros, or to no more numbers than it adds."""
    array = node.args[len(node.op.rules)]
    fits = node.op is not index.GETITEM and node.aval.dtype == np.float64 and bool(array.aval.shape)
    return fits and (_base(node) is None or elements_of(node) <= elements_of(array))


def _base(node: Node) -> Node | None:
    """What a write adds to; None for zeros."""
    return None if node.op is index.SCATTER or node.args[0].op is create.ZEROS else node.args[0]


def _places(s: Simplifier, shape: Sequence[int], arrays: Sequence[Node]) -> Node:
    """The places in memory of the elements of an array of some shape; along one axis, ``sum_elements`` looks at them itself."""
    if len(arrays) == 1:
        return arrays[0]
    places = [s.call(WITHIN, array, n) for array, n in zip(arrays, shape, strict=True)]
    further = zip(shape[1:], places[1:], strict=True)
    return functools.reduce(lambda row, more: s.call(np.add, s.call(np.multiply, row, more[0]), more[1]), further, places[0])


@rewrite(index.GETITEM)
def read(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[i, j]``."""
    x, *arrays = args
    return s.graph.add(ELEMENTS, (x, _places(s, x.aval.shape, arrays)), (), node.aval) if _at_arrays(node) else None


@rewrite(index.INDEX_ADD, index.SCATTER)
def added(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[i, j] += value``, of places that may be there more than once."""
    value, *arrays = args[node.op is index.INDEX_ADD :]
    spec = dict(node.params)["spec"]
    if not _at_arrays(node) or not index.may_repeat(spec, [True] * len(arrays)):
        return None
    if value.aval.dtype != node.aval.dtype or value.aval.shape != arrays[0].aval.shape:
        return None
    places = _places(s, node.aval.shape, arrays)
    base = _base(node)
    if not _adds_up(node):
        base = base or s.call(create.ZEROS, dtype=node.aval.dtype, shape=node.aval.shape)
        return s.graph.add(ADD_ELEMENTS, (base, places, value), (), node.aval)
    total = s.graph.add(SUM_ELEMENTS, (places, value), (("shape", node.aval.shape),), node.aval)
    return total if base is None else s.call(np.add, base, total)
