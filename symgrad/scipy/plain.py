"""What mirrors share, and what SciPy's solvers need: plain numbers out of traced ones, a place in the graph, and a word to the
trace."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.errors import NotDifferentiable
from symgrad.ir import by_index
from symgrad.ops.engine import STOP
from symgrad.tracing.trace import active_trace
from symgrad.tracing.tracer import Tracer, plain
from symgrad.transform.loop import compared
from symgrad.transform.solver import called_by, solver_of


def rest_of(module: Any) -> Callable[[str], Any]:
    """The ``__getattr__`` of a mirror: what it does not have is SciPy's. No path is, by which Python would find SciPy's
    submodules, and load them once more under a name of this package's."""

    def rest(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a mirror of {module.__name__} has no attribute {name!r}")
        return getattr(module, name)

    return rest


def named(fun: Callable[..., Any], name: str, text: str) -> Callable[..., Any]:
    """A function of a mirror that others are made like, with a name and a docstring of its own."""
    fun.__name__, fun.__qualname__, fun.__doc__ = name, name, text
    return fun


def refuse(name: str, given: dict[str, Any]) -> None:
    """Raise for options of SciPy's that a mirror does not have."""
    if given:
        raise NotDifferentiable(f"scipy.{name} has no derivative rule for {next(iter(given))}=")


def plain_values(tree: Any) -> Any:
    """The values of traced arrays and numbers, in tuples, lists, dicts and object arrays, too."""
    if isinstance(tree, np.ndarray) and tree.dtype == object:
        return np.array(plain(tree.ravel().tolist())).reshape(tree.shape)
    return plain(tree)


def of_kind(found: Any, plain: Any) -> Any:
    """What stands for SciPy's number: Python's own where that is."""
    return found.item() if type(plain) is float and hasattr(found, "item") else found


def as_tuple(args: Any) -> tuple[Any, ...]:
    """The further arguments of a function, of which a single one may stand alone."""
    return args if isinstance(args, tuple) else (args,)


def noted(reason: str) -> bool:
    """Whether a trace runs; it is told why its call cannot be compiled."""
    trace = active_trace()
    if trace is not None:
        trace.note(reason)
    return trace is not None


def on_plain(fun: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """``fun`` of plain numbers, as SciPy calls it, which writes into its arrays later."""
    given = plain_values(tuple(args))

    def evaluated(x: Any) -> Any:
        trace = active_trace()
        if trace is None:
            return plain_values(fun(x, *given))
        trace.plainly += 1
        tokens = trace.tokens  # of derivatives that are over by then: what comes later hangs on no count of evaluations
        try:
            return plain_values(fun(x.copy() if isinstance(x, np.ndarray) else x, *given))
        finally:
            trace.plainly -= 1
            if trace.symbolic:
                trace.tokens = tokens

    return evaluated


def is_asked() -> bool:
    """Whether a derivative may be asked for of what is found."""
    trace = active_trace()
    return trace is not None and not trace.plainly


def is_written_out() -> bool:
    """Whether what runs is written out for a solver: what it is there is looked at where that has found its solution."""
    trace = active_trace()
    return trace is not None and bool(trace.written_out)


def found_again(
    run: Callable[..., Any], funs: dict[str, Any], given: Sequence[Any], x: Any, at: Any = None, **options: Any
) -> Any:
    """``x``, which SciPy has found, as what code finds by ``run(*funs, *given, args=..., **options)``; None where none can.

    ``args`` are what the ``funs`` read besides what they are functions of: ``x``, or what is like ``at``. By that they must not
    decide, nor leave anything behind.
    """
    trace = active_trace()
    if trace is None or not trace.symbolic or trace.lanes or trace.impure or not _is_literal(options):
        return None
    called = called_by(trace, [*funs.items()], x if at is None else at)
    if called is None:
        return None
    functions, others = called
    starts = [trace.record(STOP, (one,), {}).node if type(one) is Tracer else trace.constant(one)[0] for one in given]
    args = (*starts, *others)
    if not any([node.active for node in args]):
        return x
    node = trace.add(solver_of(run, functions, len(given), options), args, (), trace.aval(x))
    trace.values[node] = x
    return trace.lookup(node)


def _is_literal(value: Any) -> bool:
    """Whether a value can be written down in code."""
    if isinstance(value, dict):
        return all([type(key) is str and _is_literal(part) for key, part in value.items()])
    if type(value) in (list, tuple):
        return all(map(_is_literal, value))
    return value is None or type(value) in (bool, int, float, str)


def begun_now() -> int:
    """What ``chooses_since`` knows this moment by."""
    trace = active_trace()
    return -1 if trace is None or not trace.graph.nodes else trace.graph.nodes[-1].index


def chooses_since(begun: int, x: Any = None) -> bool:
    """Whether something that is differentiated by was compared, or rounded, since then, and since ``x`` was found."""
    trace = active_trace()
    if trace is None:
        return False
    nodes, begun = trace.graph.nodes, max(begun, x.node.index) if type(x) is Tracer else begun
    first = bisect.bisect_right(nodes, begun, key=by_index)
    return any([arg.differentiated for node in nodes[first:] for arg in compared(node)])
