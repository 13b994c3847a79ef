"""Solvers of other packages as operations: what they look for is found anew wherever code runs.

Such a solver calls functions of the user's, which are graphs of their own here. Generated code has them as functions.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from symgrad.ir import CONST, Graph, Node, ancestors, aval_of
from symgrad.ops.core import Op
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.loop import Body, Course, Loop, copied, fingerprint

Fun = Callable[..., Any]


class Called(NamedTuple):
    """A function of what is looked for, and of what else it reads, the invariants of its body; its name."""

    name: str
    body: Body


class Solver(Op):
    """``run(*functions, *given, args=others, **options)``: derivatives do not flow through it.

    Its arguments are what is ``given``, so ``many``, and what the functions read besides, which they are called with, too.
    """

    def __init__(self, run: Fun, called: Sequence[Called], many: int, options: dict[str, Any]) -> None:
        super().__init__(self, "constant", (), name=run.__name__, fun=self._found)
        self.run, self.called, self.many, self.options = run, tuple(called), many, options

    @functools.cached_property
    def _functions(self) -> list[Fun]:
        """Those that it calls, one operation after the other."""
        return [functools.partial(_evaluated, Loop(one.body, Course(count=1))) for one in self.called]

    def _found(self, *args: Any) -> Any:
        return self.run(*self._functions, *args[: self.many], args=args[self.many :], **self.options)

    @functools.cached_property
    def alike(self) -> Any:
        bodies = [fingerprint(one.body, anew=True) for one in self.called]
        return self.run, *bodies, self.many, repr(self.options)

    def contents(self) -> str:
        """The functions, for people."""
        return "".join([f"\n{one.name}:\n{one.body.graph.dump(one.body.after)}" for one in self.called])


def _evaluated(loop: Loop, x: Any, *others: Any) -> Any:
    (y,) = loop.run(x, *others)
    return y


_solvers: WeakValueDictionary[Any, Solver] = WeakValueDictionary()


def solver_of(run: Fun, called: Sequence[Called], many: int, options: dict[str, Any]) -> Solver:
    """The operation of a solver: one and the same for functions that are alike."""
    names = [(one.name, fingerprint(one.body)) for one in called]
    key = run, *names, many, repr(options)
    found = _solvers.get(key)
    return _solvers.setdefault(key, Solver(run, called, many, options)) if found is None else found


def called_by(trace: Trace, funs: Sequence[tuple[str, Fun]], x: Any) -> tuple[list[Called], list[Node]] | None:
    """Functions of ``x`` that a solver calls, and what else they read; None where one goes another way for another ``x``, or
    leaves something behind."""
    begin, guards, peeks, writes = trace.graph.next_index, len(trace.guards), len(trace.peeks), len(trace.writes)
    done = [] if trace.hooks is None else trace.hooks.done()
    start = trace.lane(trace.lookup(trace.constant(x)[0]))
    trace.written_out += 1
    try:
        results = [fun(start) for _, fun in funs]
    finally:
        trace.written_out -= 1
    if any([type(y) is not Tracer or y.tape is not trace for y in results]) or trace.impure:
        return None
    by_now = [] if trace.hooks is None else trace.hooks.done()
    if len(trace.writes) > writes or len(by_now) > len(done) or not all(map(operator.is_, done, by_now)):
        return None
    for y in results:
        if y.base is not None:
            y.refresh()
    ends = [y.node for y in results]
    looks = [*[guard.node for guard in trace.guards[guards:]], *[peek.node for peek in trace.peeks[peeks:]]]
    hanging = {start.node: None}
    for node in ancestors([*ends, *looks], begin):
        if not hanging.keys().isdisjoint(node.args):
            hanging[node] = None
    if not hanging.keys().isdisjoint(looks) or not hanging.keys() >= {*ends}:
        return None
    others, waiting = dict[Node, None](), [arg for node in [*hanging][:0:-1] for arg in reversed(node.args)]
    while waiting:
        node = waiting.pop()
        if _is_fixed(node):
            waiting += reversed(node.args)
        elif node not in hanging:
            others[node] = None
    bodies = [_body(trace, start.node, [*others], end) for end in ends]
    return [Called(name, body) for (name, _), body in zip(funs, bodies, strict=True)], [*others]


def _is_fixed(node: Node) -> bool:
    """Whether it is a number of the code, or made of such."""
    return node.op is CONST or (bool(node.args) and not node.active)


def _body(trace: Trace, start: Node, others: Sequence[Node], end: Node) -> Body:
    """A function as a graph: from ``start``, given ``others``, to its ``end``."""
    graph = Graph()
    x, index = graph.input(("carry", 0), start.aval), graph.input("index", aval_of(0))
    known = {start: x} | {node: graph.input(("invariant", i), node.aval) for i, node in enumerate(others)}
    for node, item in known.items():
        item.name = "x" if node is start else node.name
    for node in ancestors([end], known=known):
        known[node] = copied(graph, node, [known[arg] for arg in node.args], trace.graph)
    return Body(graph, [x], index, [], [known[node] for node in others], [known[end]], [])
