"""What an iteration makes of a value that goes round where that is a multiple of it, and something added.

Exponential averages, discounted sums and conditional variances are of this kind: ``s = a * x[t] + (1 - a) * s``. All iterations
together then are a linear recurrence. What is multiplied and added one after the other is several steps of it, in that order:
in another one, products may overflow that do not in the function, and sums cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import Aval, Node, ancestors
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import TO_NUMPY, TO_PYTHON
from symgrad.transform.terms import ADD, SUBTRACT

_MULTIPLY, _DIVIDE, _NEGATIVE = REGISTRY[np.multiply], REGISTRY[np.divide], REGISTRY[np.negative]


class Step(NamedTuple):
    """``slope`` times a value, plus the ``rest``; Python's 1 and -1, and None, are where nothing is multiplied, or added.

    ``divides``: the slope is the reciprocal of what the function divides by, so that last digits are others.
    """

    slope: Any
    rest: Any = None
    divides: bool = False


Steps = list[Step]


def affine(item: Node, end: Node, value: Callable[[Node], Any]) -> Steps | None:
    """The steps from ``item`` to ``end``, of the values that other nodes have; None where it is something else."""
    if item.aval.dtype.kind not in "fc":
        return None
    found = {item: [Step(1)]}
    for node in ancestors([end], known=[item]):
        if not any([arg in found for arg in node.args]):
            continue
        if type(node.aval) is not Aval or (node.aval.shape, node.aval.dtype) != (item.aval.shape, item.aval.dtype):
            return None
        made = _made(node, [found.get(arg) for arg in node.args], value)
        if made is None:
            return None
        found[node] = made
    steps = found.get(end)
    return None if steps is None or not _is_regular(steps, item.aval.dtype.kind == "c") else steps


def _is_regular(steps: Steps, is_complex: bool) -> bool:
    """Whether the steps of all iterations are one running sum, product or recurrence that is as good as the function."""
    factors = [step for step in steps if not _is_sign(step.slope)]
    if all([step.rest is None for step in steps]):
        return not any([step.divides for step in factors])  # products are those of the function to the last digit
    return len(factors) <= 1 and not (is_complex and len(steps) > 1)  # where to multiply by one is not nothing


def _made(node: Node, parts: list[Steps | None], value: Callable[[Node], Any]) -> Steps | None:
    """What an operation makes of what its arguments are, of which some have no part in the item."""
    if node.op in (TO_PYTHON, TO_NUMPY):
        return parts[0]
    if node.op is _NEGATIVE and parts[0] is not None:
        return _negative(parts[0])
    if node.op not in (ADD, SUBTRACT, _MULTIPLY, _DIVIDE):
        return None
    first, second = parts
    if second is not None and node.op is SUBTRACT:
        second = _negative(second)
    if first is not None and second is not None:
        return _joined(first, second) or _joined(second, first) if node.op in (ADD, SUBTRACT) else None
    if first is None:
        assert second is not None
        other = value(node.args[0])
        return None if node.op is _DIVIDE else _times(second, other) if node.op is _MULTIPLY else _plus(second, other)
    other = value(node.args[1])
    if node.op is _DIVIDE:
        return _times(first, np.true_divide(1, other), True)  # as NumPy divides
    return _times(first, other) if node.op is _MULTIPLY else _plus(first, other if node.op is ADD else -other)


def _negative(steps: Steps) -> Steps:
    *before, last = steps
    return [*before, last._replace(slope=-last.slope, rest=None if last.rest is None else -last.rest)]


def _plus(steps: Steps, rest: Any) -> Steps:
    *before, last = steps
    return [*before, last._replace(rest=rest)] if last.rest is None else [*steps, Step(1, rest)]


def _times(steps: Steps, slope: Any, divides: bool = False) -> Steps:
    *before, last = steps
    if last.rest is None and _is_sign(last.slope):
        return [*before, Step(_signed(slope, last.slope), None, divides)]
    return [*steps, Step(slope, None, divides)]


def _joined(own: Steps, other: Steps) -> Steps | None:
    """The sum of the item itself and what is made of it by ``other`` steps: a multiple of the item.

    Its rounding is within that of the function, as long as the share of a mean, ``c`` in ``s + c * (x - s)``, is one.
    """
    one = _as_one(other)
    if one is None or len(own) > 1 or own[0].rest is not None or not _is_sign(own[0].slope):
        return None
    return [one._replace(slope=own[0].slope + one.slope)]


def _as_one(steps: Steps) -> Step | None:
    """Steps as one, if the product of their factors cannot overflow, and one thing is added."""
    first, last = steps[0], steps[-1]
    if len(steps) == 1:
        return first
    if len(steps) > 2 or last.rest is not None or not (_is_sign(first.slope) or _is_small(last.slope)):
        return None
    slope = _signed(last.slope, first.slope) if _is_sign(first.slope) else first.slope * last.slope
    return Step(slope, None if first.rest is None else first.rest * last.slope, first.divides or last.divides)


def _signed(x: Any, sign: int) -> Any:
    return x if sign == 1 else -x


def _is_sign(x: Any) -> bool:
    return is_number(x, 1) or is_number(x, -1)


def _is_small(x: Any) -> bool:
    return isinstance(x, (int, float)) and abs(x) <= 1


def is_number(x: Any, number: int) -> bool:
    return type(x) is int and x == number
