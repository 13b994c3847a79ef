"""Rules of the user's in the derivatives of loops.

A rule may read what is outside of it, which is seen by the trace that runs, and there alone. The body of a loop is in a trace
of its own while its derivative is made: a rule that is met there runs in the other on stand-ins, and what it did with them is
written into the body.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.errors import NotDifferentiable
from symgrad.ir import CAPTURED, CONST, Node, ancestors
from symgrad.ops.engine import IDENTITY
from symgrad.tracing.frames import shown, where
from symgrad.tracing.trace import Trace, activated, active_trace
from symgrad.tracing.tracer import Tracer, tracers


class RuleDecides(NotDifferentiable):
    """A rule of the user's goes one way or another by what iterations of a loop differ in: the loop is not one operation."""


def hosted(rule: Any) -> Any:
    """A rule of the user's, run where what it reads from outside is seen, and is the same in all iterations of a loop."""

    @functools.wraps(rule)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = tracers(args)
        own, trace = given[0].tape if given else None, active_trace()
        if not isinstance(own, Trace) or own is trace or not own.exemplary:
            return rule(*args, **kwargs)
        own.ruled = True
        if trace is None:
            with activated(own):
                return rule(*args, **kwargs)
        return _Visit(trace, own).run(rule, args, kwargs)

    return run


class _Visit:
    """A rule's run in ``trace``, for ``own``, the trace of a loop's body."""

    def __init__(self, trace: Trace, own: Trace) -> None:
        self.trace, self.own = trace, own
        self.known: dict[Node, Tracer] = {}  # what stand-ins, and what hangs on them, are in the body

    def run(self, rule: Any, args: Any, kwargs: Any) -> Any:
        """The rule's result, in the body."""
        trace, own = self.trace, self.own
        start, seen = trace.graph.next_index, len(trace.guards)
        outer = trace.line, trace.phase, trace.exemplary
        trace.line, trace.phase, trace.exemplary = own.line, own.phase, True
        try:
            result = rule(*_mapped(self._stand_in, args), **kwargs)
        finally:
            trace.line, trace.phase, trace.exemplary = outer
        guards, ends = [guard.node for guard in trace.guards[seen:]], [x.node for x in tracers(result)]
        order = self._hanging(ancestors([*ends, *guards], start))
        if not order.keys().isdisjoint(guards):
            place = f" ({shown(own.line)})" if own.line else ""
            why = "decides by what the iterations of a loop differ in, so that they are not one operation"
            raise trace.refuse(RuleDecides(f"{where()}: a rule{place} {why}"))
        for node in order:
            if node not in self.known:
                self.known[node] = self._written(node)
        return _mapped(lambda x: self._inside(x.node), result)

    def _stand_in(self, x: Tracer) -> Tracer:
        lane = self.trace.lane(self.trace.lookup(self.trace.constant(x.value)[0]))
        self.known[lane.node] = x
        return lane

    def _hanging(self, nodes: Sequence[Node]) -> dict[Node, None]:
        """Those that hang on the stand-ins, in order."""
        found = dict.fromkeys(self.known)
        for node in nodes:
            if any([arg in found for arg in node.args]):
                found[node] = None
        return found

    def _written(self, node: Node) -> Tracer:
        args = [self._inside(arg) for arg in node.args]
        return args[0] if node.op is IDENTITY else self.own.lookup(self.own.run(node.op, args, dict(node.params)))

    def _inside(self, node: Node) -> Tracer:
        """A node of the trace around, in the body."""
        if node in self.known:
            return self.known[node]
        if node.op in (CONST, CAPTURED):
            value = dict(node.params)["value"] if node.op is CONST else self.trace.graph.arrays[node]
            return self.own.lookup(self.own.constant(value)[0])
        return self.own.around_it(self.trace.lookup(node))


def _mapped(fun: Callable[[Tracer], Any], tree: Any) -> Any:
    """A tree with something else in the place of each Tracer."""
    if type(tree) is Tracer:
        if tree.base is not None:
            tree.refresh()
        return fun(tree)
    return type(tree)([_mapped(fun, item) for item in tree]) if type(tree) in (list, tuple) else tree
