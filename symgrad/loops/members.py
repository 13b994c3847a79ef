"""Whether a container has what indices of loops name, ``if (i, j) in bonds``, looked up in a table of all that they may be.

So iterations are alike, whichever of them are in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.ir import CONST, Node
from symgrad.loops.patterns import INT
from symgrad.ops.engine import INDEX, TO_PYTHON
from symgrad.ops.index import GETITEM
from symgrad.ops.spans import Span, span_of
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer

MOST = 1 << 16  # items of a table
_DEEP = 16  # operations that an index is made by


def indices(item: Any) -> tuple[Any, ...]:
    """The ints that an item is, or is a tuple of, if some are traced and none hangs on the arguments; else none."""
    parts = item if type(item) is tuple else (item,)
    fine = all([type(part) is int or (type(part) is Tracer and part.node.aval == INT) for part in parts])
    moving = [part for part in parts if type(part) is Tracer and part.node.op is not CONST]
    return parts if fine and moving and not any([part.node.active for part in moving]) else ()


def spans_of(trace: Trace, parts: Sequence[Any]) -> tuple[Span, ...] | None:
    """How far some ints go; None where that is not known, or where there are too many that they may be."""
    every = [_span(trace, part.node, _DEEP) if type(part) is Tracer else (part, part) for part in parts]
    known = tuple([span for span in every if span is not None])
    fine = len(known) == len(every) and math.prod([last - first + 1 for first, last in known]) <= MOST
    return known if fine else None


def table(spans: Sequence[Span], owner: Iterable[Any], single: bool) -> Any:
    """Which of all that some ints may be are in a container; None where something in it may be equal to them in a way of its
    own. ``single``: it is one int that is looked for, rather than a tuple."""
    found = np.zeros([last - first + 1 for first, last in spans], bool)
    for one in owner:
        key = (one,) if single else one
        if not all([isinstance(number, (int, float, str)) for number in (key if type(key) is tuple else (key,))]):
            return None
        if type(key) is tuple and len(key) == len(spans) and all(map(_is_between, key, spans)):
            found[tuple([int(number) - first for number, (first, _) in zip(key, spans, strict=True)])] = True
    return found


def looked_up(trace: Trace, parts: Sequence[Any], found: Any, spans: Sequence[Span]) -> Any:
    """What such a table says of some ints."""
    places = [part - first if first else part for part, (first, _) in zip(parts, spans, strict=True)]
    return TO_PYTHON(trace.lookup(trace.constant(found)[0])[tuple(places)])


def _is_between(number: Any, span: Span) -> bool:
    return not isinstance(number, str) and number == number // 1 and span[0] <= number <= span[1]


def _span(trace: Trace, node: Node, deep: int) -> Span | None:
    """How far an int goes."""
    if node.op is CONST:
        number = dict(node.params)["value"]
        return (number, number)
    if node.op is INDEX:
        serial = dict(node.params)["loop"]
        what = next((roller.what for roller in trace.rollers if roller.serial == serial), None)
        if what is None:
            return None
        ends = what.start, what.start + what.step * (what.length - 1)
        return min(ends), max(ends)
    if not deep or node.active:
        return None
    if node.op is TO_PYTHON:
        return _span(trace, node.args[0], deep - 1)
    if node.op is GETITEM and not node.args[0].args:  # of a table
        numbers = trace.computed(node.args[0])
        return (int(np.min(numbers)), int(np.max(numbers))) if np.size(numbers) and numbers.dtype.kind in "iu" else None
    return span_of(node.op, [_span(trace, arg, deep - 1) for arg in node.args])
