"""What is to be computed to the last bit, as the function has it.

That is all that branches and ends of loops hang on. And the arithmetic that functions look at which jump, as ``floor``, ``%``,
comparisons and ``astype(int)`` do: in ``np.floor(x / 49.0)``, or where a mask is ``x / h >= 1.0``, another last bit makes a
difference of one. IEEE 754 says what each of those bits is. What NumPy itself may round one way or another, as sums, products
of matrices, ``exp`` and its kin, is no part of that arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symgrad.ir import INPUT, Node, ancestors, is_inexact
from symgrad.ops import engine, index
from symgrad.ops.core import ops_of
from symgrad.program import Program
from symgrad.transform.loop import Loop

JUMPS = ops_of(
    np.floor, np.ceil, np.trunc, np.fix, np.rint, np.round, np.sign, np.floor_divide, np.remainder, np.fmod, np.divmod,
    np.heaviside, np.signbit, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isclose,
    np.logical_and, np.logical_or, np.logical_not, np.logical_xor, np.any, np.all, np.nonzero, np.flatnonzero,
    np.count_nonzero, np.searchsorted, np.digitize, np.argmax, np.argmin, np.argsort, np.isin,
)  # fmt: skip
ROUNDED = ops_of(np.add, np.subtract, np.multiply, np.true_divide, np.power, np.square, np.sqrt, np.reciprocal, np.diff)
HANDED_ON = ops_of(
    np.negative, np.positive, np.abs, np.fabs, np.maximum, np.minimum, np.fmax, np.fmin, np.clip, np.where, np.max, np.min,
    np.sort, np.conj, np.real, np.imag, np.broadcast_to, np.concatenate, np.copy, np.diag, np.diagonal, np.expand_dims, np.flip,
    np.moveaxis, np.ravel, np.repeat, np.reshape, np.roll, np.rot90, np.squeeze, np.stack, np.swapaxes, np.take_along_axis,
    np.tile, np.transpose, np.tril, np.triu, index.GETITEM, index.SETITEM, index.CUT, engine.ASTYPE, engine.IDENTITY,
    engine.NAMED, engine.TO_PYTHON, engine.TO_NUMPY, engine.TO_ARRAY, engine.TO_FLOAT,
)  # fmt: skip


def decisive(program: Program) -> set[Node]:
    """What is computed to the bit, with what loops are given that decide."""
    loops = [node for node in program.nodes() if isinstance(node.op, Loop) and node.op.decides]
    return settled(program) | set(ancestors([arg for node in loops for arg in node.args]))


def settled(program: Program) -> set[Node]:
    """What decisions hang on, and the arithmetic that jumps look at."""
    looked_at = _looked_at(program.nodes(), program.rounds)
    return program.settled() | {node for node in looked_at if node.op in ROUNDED}


def _looked_at(nodes: list[Node], rounds: Mapping[Node, Node]) -> set[Node]:
    """The arithmetic that the function's own jumps look at, and the inputs; what ``rounds`` has goes on in the next round."""
    found: set[Node] = set()
    waiting: list[Node] = []
    for node in nodes:
        if node.phase is None and (isinstance(node.op, Loop) or _jumps(node)):
            waiting += _given(node) if isinstance(node.op, Loop) else node.args
    while waiting:
        node = waiting.pop()
        if node in found or node.phase is not None or not is_inexact(node.aval):
            continue
        if node.op in ROUNDED or node.op in HANDED_ON:
            found.add(node)
            waiting += node.args
        elif node.op is INPUT:
            found.add(node)
            waiting += [rounds[node]] if node in rounds else []
    return found


def _given(node: Node) -> list[Node]:
    """What is given to a loop that jumps in it look at."""
    body = node.op.body
    found = _looked_at(body.nodes(), dict(zip(body.carry, body.after, strict=False)))
    given = zip([*body.carry, *body.elements, *body.invariants], node.args, strict=True)
    return [arg for item, arg in given if item in found]


def _jumps(node: Node) -> bool:
    return node.op in JUMPS or (node.op is engine.ASTYPE and node.aval.dtype.kind not in "fc")
