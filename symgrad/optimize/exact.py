"""What is to be computed to the last bit, as the function has it.

That is all that branches and ends of loops hang on. And the arithmetic that functions look at which jump, as ``floor``, ``%``,
comparisons and ``astype(int)`` do: in ``np.floor(x / 49.0)``, or where a mask is ``x / h >= 1.0``, another last bit makes a
difference of one. IEEE 754 says what each of those bits is. What NumPy itself may round one way or another, as sums, products
of matrices, ``exp`` and its kin, is no part of that arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import numpy as np

from symgrad.ir import INPUT, Node, ancestors, is_inexact
from symgrad.ops.core import ops_of
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.engine import ITEM
from symgrad.ops.scan import Running, Segments
from symgrad.optimize.scalars import CHOICE
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop

_Known = dict[tuple[Body, bool], set[Node]]
JUMPS = ops_of(  # beside all that makes integers or truth values of other numbers
    np.floor, np.ceil, np.trunc, np.fix, np.rint, np.round, np.around, np.sign, np.floor_divide, np.remainder, np.fmod,
    np.divmod, np.modf, np.frexp, np.heaviside, np.spacing,
)  # fmt: skip
STEADY = ops_of(np.isfinite, np.isinf, np.isnan, ITEM)  # whatever the last bit; a loop makes its ints by jumps of its own
ROUNDED = ops_of(np.add, np.subtract, np.multiply, np.true_divide, np.power, np.square, np.sqrt, np.reciprocal, np.diff)
HANDED_ON = ops_of(  # beside what is linear, or has no derivative, as a rule: see ``_hands_on``
    np.negative, np.positive, np.abs, np.fabs, np.maximum, np.minimum, np.fmax, np.fmin, np.clip, np.where, np.max, np.min,
    np.sort, np.partition, np.median, np.nanmedian, np.quantile, np.nanquantile, np.conj, np.real, np.imag, np.nan_to_num,
    np.copysign, np.ldexp, np.nextafter, np.outer, np.kron, np.cross, np.einsum, np.unwrap, Segments(np.maximum),
    Segments(np.minimum), *map(Running, (np.maximum, np.minimum, np.fmax, np.fmin)),
)  # fmt: skip
SUMS = ops_of(
    np.sum, np.mean, np.cumsum, np.trace, np.fft.fft, np.fft.fft2, np.fft.fftn, np.fft.ifft, np.fft.ifft2, np.fft.ifftn,
    np.fft.rfft, np.fft.irfft,
)  # fmt: skip


def decisive(program: Program) -> set[Node]:
    """What is computed to the bit, with all that loops are given that decide."""
    given = [node.args for node in program.nodes() if isinstance(node.op, Loop) and node.op.decides]
    return settled(program) | set(ancestors(itertools.chain.from_iterable(given)))


def settled(program: Program) -> set[Node]:
    """What decisions hang on, in loops, too, and the arithmetic that jumps look at, or did before other operations took the
    place of some; and the loops that it comes from."""
    nodes = program.nodes()
    watched = [node.args[i] for node in nodes if isinstance(node.op, Loop) for i in node.op.watched]
    looked_at = _looked_at(nodes, program.rounds, (), {})
    found = {node for node in looked_at if node.op in ROUNDED or isinstance(node.op, Loop)}
    return program.settled() | found | {node for node in nodes if node.exact} | set(ancestors(watched))


def _looked_at(nodes: list[Node], rounds: Mapping[Node, Node], ends: Iterable[Node], known: _Known) -> set[Node]:
    """The arithmetic that the function's own jumps, and what takes the ``ends``, look at, and the inputs; what ``rounds`` has
    goes on in the next round. ``known`` is that of the bodies of loops."""
    found: set[Node] = set()
    waiting = [*ends]
    extremes = _of_extremes(nodes, ends)
    for node in nodes:
        if node.phase is None and (isinstance(node.op, Loop) or (_jumps(node) and node not in extremes)):
            waiting += _given(node, False, known) if isinstance(node.op, Loop) else node.args
    while waiting:
        node = waiting.pop()
        if node in found or node.phase is not None or not is_inexact(node.aval):
            continue
        if node.op is INPUT:
            found.add(node)
            waiting += [rounds[node]] if node in rounds else []
        elif isinstance(node.op, Loop):
            found.add(node)
            waiting += _given(node, True, known)
        elif node.args and (node.op in ROUNDED or _hands_on(node)):
            found.add(node)
            waiting += node.args
    return found


def _given(node: Node, whole: bool, known: _Known) -> list[Node]:
    """What is given to a loop that jumps in it look at, and, if it is looked at as a ``whole``, what takes its results."""
    body = node.op.body
    found = known.get((body, whole))
    if found is None:
        ends = [*body.after, *body.saved] if whole else []
        rounds = dict(zip(body.carry, body.after, strict=False))
        found = known[body, whole] = _looked_at(body.nodes(), rounds, ends, known)
    given = zip([*body.carry, *body.elements, *body.invariants], node.args, strict=True)
    return [arg for item, arg in given if item in found]


def _of_extremes(nodes: list[Node], ends: Iterable[Node]) -> set[Node]:
    """Comparisons of two numbers by which the larger one, or the smaller one, is chosen, and nothing else, but for derivatives:
    whichever it is, it is the other one but for the last bit."""
    found, others = set[Node](), {*ends}
    compared = {node for node in nodes if node.op in _COMPARISONS}
    for node in nodes if compared else ():
        for place, arg in enumerate(node.args):
            if node.phase is None and arg in compared:
                chosen = place == 0 and node.op in _CHOICES and {*node.args[1:]} == {*arg.args}
                (found if chosen else others).add(arg)
    return found - others


_COMPARISONS = ops_of(np.greater, np.less, np.greater_equal, np.less_equal)
_CHOICES = {EXTREME, CHOICE, *ops_of(np.where)}


def _jumps(node: Node) -> bool:
    whole = not is_inexact(node.aval) and node.op not in STEADY and any([is_inexact(arg.aval) for arg in node.args])
    return node.op in JUMPS or whole


def _hands_on(node: Node) -> bool:
    """Whether the last bits of a result are those of the arguments, or of products and sums of two of these."""
    return node.op in HANDED_ON or (node.op.family in ("linear", "constant") and node.op not in SUMS)
