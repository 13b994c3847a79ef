"""Iterations that are run without the user's code: whether they may be, and what they give.

A body is run further as a ``Loop``, for so many iterations or until its test fails; once more, to see that it gives what the
iterations gave; all iterations at once, as operations on whole arrays; or, in a section, its only one in the graph around.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CONST, Aval, Node, aval_of
from symgrad.loops.patterns import TEST, Key, Part
from symgrad.loops.ways import joined_kind
from symgrad.ops.core import REGISTRY
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.engine import AND, IDENTITY, ITEM, NAMED, NOT, TO_NUMPY, TO_PYTHON, is_of_math
from symgrad.ops.engine import BOOL as BOOL_OF
from symgrad.ops.index import GETITEM, INDEX_ADD, SETITEM
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.loop import Body, Course, Loop
from symgrad.transform.vectorize import going_on, vectorized

MOST = 1 << 24  # numbers that iterations compute, in all, before these are not run to see that they give the same


def may_raise(node: Node) -> bool:
    """Whether an operation in an iteration may raise an exception, of other values; what hangs on none has not."""
    if (not node.active and not is_of_math(node.op)) or not node.args or node.op in _HARMLESS:
        return False
    if node.op in (GETITEM, SETITEM, INDEX_ADD):
        return any([arg.active for arg in node.args[len(node.op.rules) :]])
    known = isinstance(node.op.key, np.ufunc) and node.aval.dtype.kind in "bf"
    return not known or (node.aval.kind == "python" and node.op.key not in _TOTAL)


_HARMLESS = (ITEM, NAMED, TO_NUMPY, TO_PYTHON, EXTREME, AND, NOT, IDENTITY, BOOL_OF)
_TOTAL = frozenset([np.add, np.subtract, np.multiply, np.negative, np.absolute, np.less, np.less_equal, np.greater])
_TOTAL |= {np.greater_equal, np.equal, np.not_equal}


def is_steady(op: Any, params: Any, aval: Any, parts: tuple[Part, ...]) -> bool:
    """Whether an operation on other values gives the same kind, and meets nothing that an iteration made for itself."""
    if op.sized or any(kind == "anew" for kind, _ in parts):
        return False
    if op is not REGISTRY[np.power] or aval.kind != "python":  # of Python numbers, which may become complex
        return True
    kind, exponent = parts[1]
    return kind == "same" and exponent.op is CONST and exponent.aval.dtype.kind == "i"


def run_on(
    trace: Trace, body: Body, course: Course, ahead: int, given: list[Any], unseen: int | None, least: int
) -> tuple[int, tuple[Any, ...]] | None:
    """What the carried values are after ``ahead`` more iterations; None where one of them raises: it is the user's to.

    If one of them is ``unseen``, whether an iteration went another way, after as many as have not; ``least`` are tried first.
    """
    assert course.count is not None
    n, done, size = len(body.carry), 0, ahead if unseen is None else least
    values, known, grows = tuple(given[:n]), given[n:], True
    while size and done < ahead:
        size = min(size, ahead - done)
        more = replace(course, count=size, start=course.start + course.step * (course.count + done))
        found = _run(trace, Loop(body, more), [*values, *known])
        if unseen is None:
            return None if found is None else (ahead, found[0])
        if found is None or found[0][unseen]:
            grows = False
        else:
            done, values = done + size, found[0]
        size = 2 * size if grows else size // 2
    return (done, values) if done else None


def run_out(trace: Trace, body: Body, every: list[Key], given: list[Any]) -> tuple[int, tuple[Any, ...]] | None:
    """How many more iterations there are but for the last one, before the test fails or one goes another way, and what is
    carried after those."""
    if TEST not in every:
        return None
    n = len(every)
    before = [body.graph.input(("before", i), node.aval) for i, node in enumerate(body.carry)]
    twice = replace(body, carry=[*body.carry, *before], after=[*body.after, *body.carry])
    found = _run(trace, Loop(twice, Course(test=every.index(TEST))), [*given[:n], *given])
    if found is None or found[1] < 2:
        return None
    values, often = found
    return often - 1, values[n:]


def reproduced(
    trace: Trace,
    loop: Loop,
    given: list[Node],
    values: tuple[Any, ...],
    every: Sequence[Key],
    idle: Sequence[Key],
    plain: Collection[Key],
) -> tuple[Any, ...] | None:
    """What the iterations give, run once more; None where that is not what they gave, but for what is ``idle``. What is
    ``plain`` may be Python's number, or NumPy's."""
    found = _run(trace, loop, [trace.lookup(node).value for node in given], {i for i, key in enumerate(every) if key in plain})
    if found is None:
        return None
    same = [key in idle or _is_same(a, b) for key, a, b in zip(every, found[0], values, strict=True)]
    return found[0] if all(same) else None


def told(trace: Trace, body: Body, course: Course, given: Sequence[Node]) -> tuple[Any, ...] | None:
    """What the iterations give, which nobody has computed: nothing where one of them raises; None where that takes long."""
    work = sum([math.prod(node.aval.shape) for node in body.nodes() if isinstance(node.aval, Aval)])
    if course.count is None or course.count * work > MOST:
        return None
    found = _run(trace, Loop(body, course), [trace.lookup(node).value for node in given])
    return () if found is None else found[0]


def inlined(trace: Trace, body: Body, given: Sequence[Any], every: list[Key]) -> dict[Key, Tracer]:
    """The results of the one iteration of a section, recorded outside of a loop."""
    there = dict(zip([*body.carry, *body.invariants], given, strict=True))
    there[body.index] = trace.constant(0)[0]
    with np.errstate(**dict.fromkeys(trace.hooks.silenced, "ignore")):  # type: ignore[arg-type]
        for node in body.nodes():
            if node.op is CONST:
                there[node] = trace.constant(dict(node.params)["value"])[0]
                continue
            args = tuple([there[arg] for arg in node.args])
            one = there[node] = trace.add(node.op, args, node.params, node.aval)
            if one not in trace.values:
                trace.values[one] = node.op.fun(*[trace.lookup(arg).value for arg in args], **dict(node.params))
                one.name, one.line, one.phase = one.name or node.name, one.line or node.line, one.phase or node.phase
    return {key: trace.lookup(there[node]) for key, node in zip(every, body.after, strict=True)}


def at_once(
    trace: Trace,
    body: Body,
    course: Course,
    given: Sequence[Any],
    every: list[Key],
    values: Sequence[Any] | None,
    around: int,
) -> dict[Key, Tracer] | None:
    """The results of a loop of which all iterations are done at once; None where it has to run, or has given others. Loops
    ``around`` it run that so often, in all."""
    if trace.lanes or not trace.vectorizes:
        return None
    found = vectorized(trace, body, course, [trace.lookup(node) for node in given], around)
    if found is None or any([x.node.aval != item.aval for x, item in zip(found, body.carry, strict=True)]):
        return None
    found = found[: len(every)]  # of what goes round, more may do so in the place of rows
    if values is not None and not (values and all([_is_close(x.value, value) for x, value in zip(found, values, strict=True)])):
        return None
    return dict(zip(every, found, strict=True))


class Lagged(NamedTuple):
    """A loop that does not read what it has written to arrays: what it is given, and what its carried values are in the end."""

    body: Body
    given: list[Node]
    values: tuple[Any, ...]


def lagged(trace: Trace, body: Body, course: Course, given: Sequence[Any], values: tuple[Any, ...]) -> Lagged | None:
    """The same loop in this way; None where it is so already, or cannot be."""
    args = [trace.lookup(node) for node in given]
    try:
        with np.errstate(all="ignore"):  # the iterations have told, or will not
            longer, lags = going_on(body, course, args)
    except Exception:  # what the user is to see, the loop raises, too
        return None
    if not lags:
        return None
    n = len(body.carry)
    known = dict[Any, Any](zip(body.invariants, args[n:], strict=True))
    starts, ends = list[Any](), list[Any]()
    for lag in lags:
        starts.append(GETITEM(args[lag.array], *[known.get(place, place) for place in lag.first], spec=lag.spec))
        places = [known[place].value if place in known else place for place in lag.last]
        ends.append(GETITEM.fun(values[lag.array], *places, spec=lag.spec).copy())
    return Lagged(longer, [*given[:n], *[x.node for x in starts], *given[n:]], (*values, *ends))


def _run(trace: Trace, loop: Loop, given: list[Any], plain: Container[int] = ()) -> tuple[tuple[Any, ...], int] | None:
    """What a loop carries in the end, and how often it ran; at the places in ``plain``, it may be Python's or NumPy's."""
    try:
        with np.errstate(**dict.fromkeys(trace.hooks.silenced, "ignore")):  # type: ignore[arg-type]
            values, often = loop.counted(*given)
    except Exception:
        return None
    kinds = enumerate([(aval_of(value), node.aval) for value, node in zip(values, loop.body.carry, strict=True)])
    same = all([mine == other or (i in plain and joined_kind(mine, other) is not None) for i, (mine, other) in kinds])
    return (values, often) if same else None


def _is_same(a: Any, b: Any) -> bool:
    """Whether two numbers or arrays are equal, with NaN equal to NaN."""
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc")


def _is_close(a: Any, b: Any) -> bool:
    """Whether two numbers or arrays differ by rounding."""
    largest = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
    return np.allclose(a, b, rtol=1e-6, atol=1e-6 * (1.0 + largest), equal_nan=True)
