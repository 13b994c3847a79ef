"""The tracer: records the NumPy calls of a real call into a graph, beside their real values.

A ``Trace`` is one run of a user's function. A ``Tracer`` stands for one of its values: it carries the concrete value and
the node that computes it, answers NumPy's protocols and Python's operators by recording, and hands shapes and dtypes over
from the value itself. Where Python looks at a value (``if``, ``int``, ``range``) the trace notes a *guard*: the node and
what was seen.

In-place writes become new nodes: a Tracer is a name that can be bound to a later node. A Tracer that NumPy would have
made a view remembers its base, writes through to it, and looks again when the base has changed.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from threading import get_ident
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from symgrad import pytree
from symgrad.errors import EscapedTracer, LeavesNumPy, MutatedInput, NotDifferentiable, SymgradError
from symgrad.frames import leaving, raised_at, target, through_scipy, unpacked, user_frame, user_line, where
from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Graph, Node, aval_of, is_inexact
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY, Composite, Op, Refused, Static, Traced
from symgrad.ops.engine import ASTYPE, BOOL, IDENTITY, INT, ITEM, ROUND, SIZE, STOP, TO_ARRAY, TO_NUMPY, TO_PYTHON

__all__ = ["Guard", "Tape", "Trace", "Tracer", "active_trace", "tracing", "user_frame", "user_line", "where"]


class Guard(NamedTuple):
    """Python looked at ``node``, saw ``value``, and went on accordingly; ``line`` is where. ``loop``: as the test of a loop.

    In a ``vmap`` the shapes of a result may have been looked at: then ``value`` is None.
    """

    node: Node
    value: Any
    line: tuple[str, int] | None
    loop: bool = False


class Trace:
    """One run of a function being traced, for code to be made of it: derivative passes record nodes, too.

    ``values`` holds the concrete value of each node of this run.
    """

    symbolic = True

    def __init__(self) -> None:
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.guards: list[Guard] = []
        self.open = True
        self.thread = get_ident()
        self.depth = 0
        self.line: tuple[str, int] | None = None
        self.impure: str | None = None
        self.hooks: Any = None  # what sees the user's function read from outside: a State
        self.trying = 0  # how many ``try`` statements with handlers it is in
        self.required: list[Node] = []
        self.phase: str | None = None
        self.double_where = True  # whether what was not selected stays out of derivatives (see transform.lanes)
        self.user = False  # whether the user's function runs now, rather than a pass of symgrad's own
        self._tokens = 0
        self._loops = 0
        self._copies: dict[int, tuple[Any, Any, Node]] = {}
        self.outside: dict[int, tuple[Tracer, Any]] = {}  # Tracers of arrays from outside that the function writes to, by id
        self.quiet = False  # nobody will read the names of what is recorded: it goes round in a loop
        self.peeks: list[Node] = []  # what Python looked at that hangs on no argument: it may change in the course of a loop
        self.watched = False  # whether in-place writes matter: there is a loop that another call may run more often
        self.writes: list[Any] = []  # objects of the function's own that it changed
        self.lent = False  # whether NumPy has asked a Tracer for a plain array
        self.refusal: SymgradError | None = None  # of what the plain function may do
        self.lanes = 0  # how many vmaps it is in: in them a value stands for many, and what Python sees of it is noted
        self.one_by_one = False  # whether a vmap runs its function for each element
        self.remarks: dict[str, None] = {}  # what is slower than one might think, in order

    def input(self, position: Any, value: Any) -> Tracer:
        """A traced argument."""
        node = self.graph.input(position, aval_of(value))
        self.values[node] = value
        return Tracer(self, node, value, frozen=True)

    def lookup(self, node: Node) -> Tracer:
        """The Tracer of a node of this run."""
        return Tracer(self, node, self.values[node])

    def fresh(self, x: Tracer) -> Tracer:
        """``x`` behind an identity node of its own: what a (nested) derivative is taken with respect to."""
        self._tokens += 1
        result: Tracer = self.record(IDENTITY, (x,), {"token": self._tokens})
        result.node.active = result.node.differentiated = True
        result.frozen = True
        return result

    def lane(self, x: Tracer) -> Tracer:
        """``x``, one element of a batch, behind an identity node of its own: what stands for all elements of the batch."""
        self._tokens += 1
        result: Tracer = self.record(IDENTITY, (x,), {"token": self._tokens})
        result.node.active = result.frozen = True
        return result

    def remark(self, text: str) -> None:
        """For ``explain``: what is slower than one might think."""
        self.remarks[text] = None

    aval = staticmethod(aval_of)

    def recorded(self, wrt: Sequence[Node]) -> list[Node]:
        """The nodes between ``wrt`` and what came after, where that is known without a search."""
        return []

    def forget(self, start: int) -> None:
        """Drop the nodes from position ``start`` of the graph on that nothing can reach any more."""
        self.graph.sweep(start, self.values)

    def next_loop(self) -> int:
        """A number for a loop statement that starts to run."""
        self._loops += 1
        self.quiet = False
        return self._loops

    def constant_like(self, number: float, aval: Aval) -> Tracer:
        """A traced constant of this kind, every element ``number``."""
        if aval.shape:
            return create.full(self, aval.shape, number, aval.dtype)  # type: ignore[no-any-return]
        value = aval.dtype.type(number)
        return self.lookup(self.constant(value.item() if aval.kind == "python" else value)[0])

    def constant(self, value: Any) -> tuple[Node, Any]:
        """The node of a plain value that met a traced one, and the value as it is now."""
        if isinstance(value, np.ndarray):
            return self._capture(value)
        if isinstance(value, (bool, int, float, complex, np.generic)):
            if isinstance(value, np.generic) and value.dtype.kind not in "fciubmM":
                raise NotDifferentiable(f"{where()}: a traced value met {value!r:.60}, which is no number")
            if type(value) not in _NUMBERS and not isinstance(value, np.generic):
                value = _base_number(value)
            node = self.graph.const(value)
            self.values[node] = value
            return node, value
        if isinstance(value, (list, tuple)) and create.contains_traced(value):
            traced = self.gather(value)
            return traced.node, traced.value
        if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
            return self._capture(np.asarray(value))
        raise NotDifferentiable(f"{where()}: a traced value met {type(value).__name__} {value!r:.60}, which is no number")

    def _capture(self, array: np.ndarray[Any, Any]) -> tuple[Node, Any]:
        if array.dtype == object:
            traced = self.stack(array)
            return traced.node, traced.value
        if array.dtype.kind not in "fciubmM":
            raise NotDifferentiable(f"{where()}: a traced value met an array of dtype {array.dtype}")
        if isinstance(array, (np.matrix, np.ma.MaskedArray)):  # their operators mean other things than an array's
            raise NotDifferentiable(
                f"{where()}: a traced value met a {type(array).__name__}; take a plain array: np.asarray(m)"
            )
        known = self._copies.get(id(array))
        if known is not None:
            _, copy, node = known
            if _identical(copy, array):
                return node, copy
            self.note("a plain array is changed in place while the function runs")
        copy = array.copy() if array.flags.writeable else array
        node = self.hold(array if known is None else copy)
        self._copies[id(array)] = (array, copy, node)
        self.values[node] = copy
        return node, copy

    def hold(self, array: np.ndarray[Any, Any]) -> Node:
        """The node of a plain array."""
        return self.graph.captured(array)

    def note(self, reason: str) -> None:
        """What cannot be seen again by generated code happened: every call must be traced anew."""
        self.impure = self.impure or f"{where()}: {reason}"

    def refuse(self, error: SymgradError) -> SymgradError:
        """Remember an error that the plain function would not meet: code that catches it must not go another way."""
        self.refusal = self.refusal or error
        return error

    def another(self, x: Tracer) -> Tracer:
        """A second name of an array: a view of all of it."""
        result = Tracer(self, x.node, x.value)
        result.base, result.how, result.seen = x, (index.GETITEM, (), {"spec": (Ellipsis,)}), x.version
        return result

    def watch(self, value: Any, tracer: Tracer) -> None:
        """Remember an array from outside, as it was when it was read: it must not change while the function runs."""
        if isinstance(value, np.ndarray):
            self._copies[id(value)] = (value, tracer.value, tracer.node)

    def check_captured(self) -> None:
        """Note, at the end of the run, whether a captured array was changed while it ran."""
        for array, copy, _ in self._copies.values():
            if copy is not array and not _identical(copy, array):
                self.impure = "a plain array that the function reads is changed in place while it runs"

    def stack(self, array: np.ndarray[Any, Any]) -> Tracer:
        """The traced array that an object array of Tracers stands for."""
        items = list(array.ravel())
        for item in items:
            if type(item) is Tracer and item.base is not None:
                item.refresh()
        whole = _enumerates(items, array.shape)
        if whole is not None:
            return self.lookup(whole)
        if not any(type(item) is Tracer for item in items):
            raise NotDifferentiable(
                f"{where()}: a traced value met an array of dtype object, {_short(array)}; make it one of numbers"
            )
        if any(np.ndim(item) for item in items):
            raise NotDifferentiable(
                f"{where()}: a traced value met an object array that holds arrays; use a list of them, or np.stack"
            )
        if array.ndim == 0:
            return self.record(TO_ARRAY, items, {})  # type: ignore[no-any-return]
        return np.stack(items).reshape(array.shape)  # type: ignore[return-value]

    def gather(self, value: Any) -> Tracer:
        """The traced array that ``np.array`` would make of nested lists with Tracers in them."""
        if type(value) is Tracer:
            return value
        if isinstance(value, (list, tuple)) and create.contains_traced(value):
            return np.stack([self.gather(item) for item in value])  # type: ignore[return-value]
        return self.lookup(self.constant(value)[0])

    def adopt(self, value: Any) -> Tracer:
        """A plain or traced value, or nested lists of them, as a traced array."""
        traced = self.gather(value)
        return traced if isinstance(traced.value, np.ndarray) else self.record(TO_ARRAY, (traced,), {})

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run ``op`` on traced and plain values; its result, traced. A tuple result gives a tuple of Tracers."""
        count = len(self.graph.nodes)
        node = self.run(op, args, params)
        value = self.values[node]
        if type(node.aval) is tuple:
            parts = [self.record(ITEM, (Tracer(self, node, value),), {"item": i}) for i in range(len(value))]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        arrays = type(value) is np.ndarray and args and type(args[0]) is Tracer
        if arrays and node.index < count and (op.alias or op is _EINSUM):
            value = self.seen_from(value, args[0], op, args[1:], params)
        return self.wrap(op, args, params, node, value)

    def wrap(self, op: Op, args: Sequence[Any], params: dict[str, Any], node: Node, value: Any) -> Tracer:
        """The Tracer of a result, which knows what it is a view of."""
        result = Tracer(self, node, value)
        if type(value) is np.ndarray and args and type(args[0]) is Tracer:
            if (op.alias or op is _EINSUM) and _is_view(value, args[0].value):
                result.base, result.how, result.seen = args[0], (op, tuple(args[1:]), params), args[0].version
            elif op is STOP:  # the same array in the eyes of the user
                result.frozen = True
        return result

    def seen_from(self, value: Any, base: Tracer, op: Op, rest: Sequence[Any], params: dict[str, Any]) -> Any:
        """The value of a node that was known: as a view of ``base`` if it is one, not of a copy with the same node."""
        if _is_view(value, base.value):
            return value
        again = op.fun(base.value, *_plain(list(rest)), **params)
        return again if _is_view(again, base.value) else value

    def run(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Node:
        """The node of ``op`` on these arguments, its value among ``self.values``."""
        nodes, values = [], []
        for arg in args:
            if type(arg) is Tracer:
                if arg.tape is not self or not self.open or self.thread != get_ident():
                    raise _escaped(arg)
                if arg.base is not None:
                    arg.refresh()
                nodes.append(arg.node)
                values.append(arg.value)
            else:
                node, value = self.constant(arg)
                nodes.append(node)
                values.append(value)
        key, packed = tuple(nodes), tuple(params.items()) if len(params) < 2 else tuple(sorted(params.items()))
        try:
            known = self.graph.find(op, key, packed)
        except TypeError:  # a list among the parameters
            packed = tuple((name, _hashable(value)) for name, value in packed)
            known = self.graph.find(op, key, packed)
        if known is not None and known in self.values:
            return known
        value = _compute(op, values, params)
        node = self.graph.add(op, key, packed, aval_of(value))
        self.values[node] = value
        if op.sized and self.lanes:
            self.guards.append(Guard(node, None, user_line()))
        if self.trying and self.user and op.name.startswith("np.linalg"):
            self.required.append(node)
        if node.line is None and not self.quiet:
            self._annotate(node)
        return node

    def _annotate(self, node: Node) -> None:
        node.phase = self.phase
        if self.line is not None:  # a derivative pass: as the primal it belongs to
            node.line = self.line
            return
        frame = user_frame() if self.user else None
        if frame is not None:
            node.line = (frame.f_code.co_filename, frame.f_lineno)
            node.name = target(frame)

    def guard(self, node: Node, value: Any) -> None:
        """Note that Python saw ``value`` at ``node``."""
        if node.active:
            self.guards.append(Guard(node, value, user_line()))
        else:
            self.peeks.append(node)


class Tape(Trace):
    """One run that no code is made of: a plain list of the operations that derivatives flow through.

    Nothing is shared, named or guarded, what no derivative flows into is a constant, and derivative passes may work on plain
    values.
    """

    symbolic = False

    def input(self, position: Any, value: Any) -> Tracer:
        return Tracer(self, self._append(INPUT, (), (("position", position),), value, True), value, frozen=True)

    def _append(self, op: Any, args: tuple[Node, ...], params: Any, value: Any, active: bool) -> Node:
        nodes = self.graph.nodes
        node = Node(op, args, params, aval_of(value), len(nodes), active)
        nodes.append(node)
        self.values[node] = value
        return node

    def fresh(self, x: Tracer) -> Tracer:
        self._tokens += 1
        node = self._append(IDENTITY, (x.node,), (("token", self._tokens),), x.value, True)
        node.differentiated = True
        return Tracer(self, node, x.value, frozen=True)

    def constant(self, value: Any) -> tuple[Node, Any]:
        if type(value) in _NUMBERS:
            return self._append(CONST, (), (("value", value),), value, False), value
        if type(value) is np.ndarray and value.nbytes <= _SMALL and value.dtype.kind in "fciub":
            value = value.copy() if value.flags.writeable else value  # cheaper than to ask whether it has changed
            return self.hold(value), value
        return super().constant(value)

    def hold(self, array: np.ndarray[Any, Any]) -> Node:
        return self._append(CAPTURED, (), (), array, False)

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        nodes, values, flows = self._operands(args)
        value = _compute(op, values, params)
        kind = type(value)
        if (kind is np.bool_ or kind is bool) and not self.lanes:
            return value  # no guard is needed, and ``is True`` gets its answer
        node = self._write(op, args, nodes, flows, params, value)
        if isinstance(value, tuple):
            parts = [self.record(ITEM, (Tracer(self, node, value),), {"item": i}) for i in range(len(value))]
            return kind(*parts) if hasattr(value, "_fields") else tuple(parts)
        special = op.alias or op is STOP or op is _EINSUM
        return self.wrap(op, args, params, node, value) if special else Tracer(self, node, value)

    def run(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Node:
        nodes, values, flows = self._operands(args)
        return self._write(op, args, nodes, flows, params, _compute(op, values, params))

    def recorded(self, wrt: Sequence[Node]) -> list[Node]:
        one = len(wrt) == self._tokens  # no other derivative is taken in this run
        return [node for node in self.graph.nodes if node.differentiated] if one else []

    def _operands(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], bool]:
        """The nodes and values of arguments, and whether a derivative flows into one; plain ones get no node yet."""
        nodes: list[Any] = []
        values = []
        flows = False
        alive = self.open and self.thread == get_ident()
        for arg in args:
            kind = type(arg)
            if kind is Tracer:
                if not alive or arg.tape is not self:
                    raise _escaped(arg)
                if arg.base is not None:
                    arg.refresh()
                node = arg.node
                flows = flows or node.differentiated
                nodes.append(node)
                values.append(arg.value)
            elif kind in _NUMBERS or (kind is np.ndarray and arg.dtype.kind in "fciub"):
                nodes.append(None)
                values.append(arg)
            else:
                node, value = self.constant(arg)
                flows = flows or node.differentiated
                nodes.append(node)
                values.append(value)
        return nodes, values, flows

    def _write(self, op: Op, args: Sequence[Any], nodes: list[Any], flows: bool, params: dict[str, Any], value: Any) -> Node:
        """Write an operation down, with its arguments if a derivative flows through it."""
        every = self.graph.nodes
        aval = aval_of(value)
        active = flows or any([node is not None and node.active for node in nodes])
        if flows or is_inexact(aval) or self.lanes or op.sized:  # what masks picked is known by its operation
            if None in nodes:
                nodes = [self.constant(arg)[0] if node is None else node for arg, node in zip(args, nodes, strict=True)]
            new = Node(op, tuple(nodes), tuple(params.items()) if params else (), aval, len(every), active)
        else:
            new = Node(CAPTURED, (), (), aval, len(every), active)
        every.append(new)
        self.values[new] = value
        if op.sized and self.lanes:
            self.guards.append(Guard(new, None, user_line()))
        return new

    def guard(self, node: Node, value: Any) -> None:
        if self.lanes:  # else nobody asks later
            super().guard(node, value)

    def note(self, reason: str) -> None:
        if self.lanes:  # else every call is traced anew as it is
            super().note(reason)

    def lane(self, x: Tracer) -> Tracer:
        self._tokens += 1
        node = self._append(IDENTITY, (x.node,), (("token", self._tokens),), x.value, True)
        return Tracer(self, node, x.value, frozen=True)


_SMALL = 4096  # bytes
_NUMBERS: frozenset[Any] = frozenset({float, int, complex, bool, *(np.dtype(kind).type for kind in "?bhilqBHILQefdgFDG")})


def _base_number(value: Any) -> Any:
    """The number that one of a subclass (an enum's, say) is."""
    base: Any = next(kind for kind in (int, float, complex) if isinstance(value, kind))
    return base.__pos__(value)


def _compute(op: Op, values: list[Any], params: dict[str, Any]) -> Any:
    try:
        return op.fun(*values, **params)
    except SymgradError:
        raise
    except TypeError as error:
        if any(isinstance(v, np.ndarray) and v.dtype == object for v in values):
            raise NotDifferentiable(f"{where()}: {op.name} of an object array") from error
        raise


_active: ContextVar[Trace | None] = ContextVar("symgrad_trace", default=None)


# the trace that runs in this thread (or context) now, if any; not a function of Python's, for it is asked at every call
active_trace = _active.get
running: list[Trace] = []  # those that run in any thread: while there are none, no caller need ask for its own


class tracing:
    """``with tracing(trace):`` makes it the active one; afterwards it is closed, and its Tracers are of no use."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> Trace:
        self._token = _active.set(self.trace)
        running.append(self.trace)
        return self.trace

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.trace.open = False
        running.remove(self.trace)
        _active.reset(self._token)
        if isinstance(error, Exception) and not isinstance(error, SymgradError) and self.trace.lent:
            _explain(error, traceback)
        if error is None and self.trace.refusal is not None:  # the function has caught it, and went another way
            raise self.trace.refusal


def _explain(error: Exception, traceback: TracebackType | None) -> None:
    """Raise what NumPy's words about an object array mean here, where one was made of traced values."""
    text = str(error)
    advice = through_scipy(traceback)
    if advice is not None:
        raise NotDifferentiable(f"{raised_at(traceback)}: {advice} ({type(error).__name__}: {text})") from error
    if not isinstance(error, (TypeError, ValueError)):
        return
    if text.startswith("setting an array element") and isinstance(error.__cause__, SymgradError):
        raise error.__cause__
    if "read-only" in text and isinstance(error, ValueError):
        raise MutatedInput(
            f"{raised_at(traceback)}: {text}: np.asarray(x) of a traced array gives an array that must not be changed; "
            "write np.array(x), which copies, or symgrad.numpy.asarray(x)"
        ) from error
    if any(words in text for words in _OF_OBJECTS):
        raise NotDifferentiable(
            f"{raised_at(traceback)}: np.array([...]) of traced values makes an array of dtype object, which this "
            f"function does not take ({text}); make it with np.stack, np.array(..., like=x) or symgrad.numpy.array"
        ) from error


_OF_OBJECTS = (
    "dtype('O')", "bject array", "'Tracer'", "holds references", "loop of ufunc does not", "not supported for the input",
)  # fmt: skip


def _hashable(value: Any) -> Any:
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value


def _is_view(value: np.ndarray[Any, Any], base: Any) -> bool:
    owner = value.base
    if owner is None or type(base) is not np.ndarray:
        return value is base
    return owner is base or owner is base.base or np.may_share_memory(value, base)


def _identical(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays hold the same values, NaN like NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fcmM"))


def _enumerates(items: list[Any], shape: tuple[int, ...]) -> Node | None:
    """The node whose elements, all and in order, ``items`` are: an array that ``np.asarray`` took apart."""
    if not items or type(items[0]) is not Tracer or items[0].node.op is not index.GETITEM:
        return None
    whole: Node = items[0].node.args[0]
    if whole.aval.shape != shape:
        return None
    for place, item in zip(np.ndindex(shape), items, strict=True):
        if type(item) is not Tracer or item.node.op is not index.GETITEM:
            return None
        if item.node.args[0] is not whole or item.node.params != (("spec", place),):
            return None
    return whole


# -- Tracer --------------------------------------------------------------------------------------------------------


def _escaped(tracer: Tracer) -> EscapedTracer:
    line = tracer.node.line
    born = f" (it was made at {line[0]}:{line[1]})" if line else ""
    if tracer.tape.open and tracer.tape.thread != get_ident():
        return EscapedTracer(
            f"{where()}: a traced value{born} is used in another thread than the function that is differentiated; "
            "compute in one thread, or differentiate what each thread does"
        )
    return EscapedTracer(
        f"{where()}: a traced value{born} is used after the call that made it has ended; return it from the function "
        "(has_aux=True returns more than the output) instead of keeping it"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


class _Missing(AttributeError, TypeError):
    """What a value of this kind has not: ``hasattr`` says no, and ``len(x)`` or ``iter(x)`` raise a TypeError."""


class _Only:
    """A method that a Tracer has only if its value has it: duck typing (``hasattr(x, "__len__")``) tells kinds apart."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self.__doc__ = function.__doc__

    def __get__(self, tracer: Tracer | None, owner: Any = None) -> Any:
        if tracer is None:
            return self
        kind = type(tracer.value)
        if not hasattr(kind, self.name):
            raise _Missing(f"{kind.__name__!r} object has no {self.name}")
        return self.function.__get__(tracer)


class _Text(str):
    """Text of a value that a derivative follows: to be shown. What asks how it reads would find other text than usual."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


def _refuse_text(name: str) -> Callable[..., Any]:
    def refuse(*args: Any) -> Any:
        trace = active_trace()
        if trace is None:
            return getattr(str, name)(*args)
        why = f"the text of a traced value is for people, and {name} of it another than of the plain value's"
        raise trace.refuse(LeavesNumPy(f"{where()}: {why}; compare values, or take the text of symgrad.stop_gradient(x)"))

    return refuse


for _name in (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __len__ __getitem__ __iter__ __contains__ startswith endswith find "
    "rfind index rindex count split rsplit partition rpartition strip lstrip rstrip replace removeprefix removesuffix "
    "isdigit isnumeric isdecimal isalnum isalpha translate encode zfill"
).split():
    setattr(_Text, _name, _refuse_text(_name))


class Tracer(Traced):
    """A value of a traced run: ``value`` as NumPy or Python has it, ``node`` that computes it.

    Behaves as its value does: operators, methods, attributes, NumPy's functions; ``isinstance`` sees the value's type.
    ``base``, ``how`` and ``seen`` make it a view: of which Tracer, by which operation, and of which ``version`` of it.
    ``lent`` are the arrays that ``np.asarray`` made of it.
    """

    __slots__ = ("base", "frozen", "how", "lent", "node", "seen", "tape", "value", "version")
    __array_priority__ = 1000.0

    def __init__(self, trace: Trace, node: Node, value: Any, frozen: bool = False) -> None:
        self.tape, self.node, self.value, self.frozen = trace, node, value, frozen
        self.base: Tracer | None = None
        self.how: Any = None
        self.lent: list[weakref.ref[Any]] | None = None
        self.version = self.seen = 0

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(x, np.ndarray) in the user's code asks for this
        return type(self.value)

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return self.tape.record(op, args, params)

    def adopt(self, value: Any) -> Any:
        return self.tape.adopt(value)

    # ---- in place ----

    def refresh(self) -> None:
        """Look again at the base of a view, when the base has changed."""
        base = self.base
        assert base is not None
        if base.base is not None:
            base.refresh()
        if base.version != self.seen:
            op, rest, params = self.how
            node = self.tape.run(op, (base, *rest), params)
            value = self.tape.seen_from(self.tape.values[node], base, op, rest, params)
            self.node, self.value, self.seen = node, value, base.version
            self.version += 1  # views of this one must look again, too

    def _check_writable(self, verb: str) -> None:
        if not isinstance(self.value, np.ndarray):
            raise TypeError(f"{where()}: {type(self.value).__name__} does not support {verb}")
        if not self.tape.open or self.tape.thread != get_ident():
            raise _escaped(self)
        one: Tracer | None = self
        while one is not None:
            if one.frozen and not (self.tape.hooks is not None and self.tape.hooks.writes_to(one)):
                why = (
                    f"{where()}: {verb} would change in place what the function did not make itself (an argument, or an array "
                    "from outside); copy it first: x = x.copy()"
                )
                raise self.tape.refuse(MutatedInput(why))
            if one.lent is not None and any(ref() is not None for ref in one.lent):
                why = (
                    f"{where()}: {verb} would change an array in place of which np.asarray made a second name, which cannot "
                    "follow; write np.array(x), which copies, symgrad.numpy.asarray(x), or x = x + y for x += y"
                )
                raise self.tape.refuse(MutatedInput(why))
            if one.base is not None and not one.value.flags.writeable and one.base.value.flags.writeable:
                raise ValueError(f"{where()}: assignment destination is read-only")
            one = one.base

    def assign(self, new: Tracer, verb: str, casting: Any = "same_kind") -> None:
        """Bind this name to a new value: what an in-place write means here. Views write through to their base."""
        self._check_writable(verb)
        if self.tape.watched:
            self.tape.writes.append(self)
        value = self.value
        if new.value.dtype != value.dtype:
            if not np.can_cast(new.value.dtype, value.dtype, casting):
                raise TypeError(f"{where()}: {verb} cannot cast {new.value.dtype} to {value.dtype} in place")
            new = new.astype(value.dtype)
        if new.value.shape != value.shape:
            new = np.broadcast_to(new, value.shape)  # type: ignore[assignment]
        if type(new.value) is not np.ndarray:
            new = TO_ARRAY(new)
        if self.tape.outside and id(self) in self.tape.outside:
            if new.node.differentiated:
                raise self.tape.refuse(MutatedInput(_into_plain(verb)))
            array = self.tape.outside[id(self)][1]
            array[...] = new.value
            self.tape.hooks.wrote_array(array, self)
        if self.base is not None:
            self.refresh()
            self._write_through(new, verb)
            if new.value.strides != self.value.strides:  # stay a view as NumPy has it: whether ravel() copies hangs on it
                self.refresh()
                return
            self.seen = self.base.version
        self.node, self.value = new.node, new.value
        self.version += 1

    def _write_through(self, new: Tracer, verb: str) -> None:
        """Change the base of this view so that the view is ``new``."""
        base = self.base
        assert base is not None
        op, rest, params = self.how
        if op is index.GETITEM:
            base.write(params["spec"], rest, new, verb)
        elif op in (_REAL, _IMAG) and np.iscomplexobj(base.value):
            parts = (new, np.imag(base)) if op is _REAL else (np.real(base), new)
            base.assign(self.tape.record(index.COMPLEX, parts, {}), verb)
        elif op is not _EINSUM and self.value.size == base.value.size:  # its transpose is its inverse
            base.assign(op.vjp(0, new, self, (base, *rest), params), verb)
        else:  # where did each element come from?
            places = op.fun(np.arange(base.value.size).reshape(base.value.shape), *rest, **params)
            arrays = np.unravel_index(places, base.value.shape)
            base.write(tuple(index.Hole(i) for i in range(len(arrays))), arrays, new, verb)

    def write(self, spec: index.Spec, arrays: Sequence[Any], new: Any, verb: str) -> None:
        """``self[index] = new``."""
        self._check_writable(verb)
        if self.base is not None:
            self.refresh()
        if not self.value.shape and (not arrays or len(spec) == 1 == len(arrays)):  # of a 0-d array, all of it or nothing
            whole = np.reshape(self.tape.gather(new), ())
            self.assign(np.where(arrays[0], whole, self) if arrays else whole, verb, "unsafe")  # type: ignore[arg-type]
            return
        self.assign(self.tape.record(index.SETITEM, (self, new, *arrays), {"spec": spec}), verb)

    def __setitem__(self, key: Any, value: Any) -> None:
        spec, arrays = _split_index(key, self, sized=np.ndim(value) > 0)
        if type(value) is Tracer and value.base is self and value.how[0] is index.GETITEM:
            _, same_arrays, params = value.how
            if params["spec"] == spec and all(map(operator.is_, same_arrays, arrays)):
                return  # the end of x[i] += v, which has written through already
        self.write(spec, arrays, value, "x[i] = v")

    def __delitem__(self, key: Any) -> None:
        raise ValueError(f"{where()}: cannot delete array elements")

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        self.assign(np.sort(self, axis, kind, order, stable=stable), "x.sort()")  # type: ignore[arg-type]

    def partition(self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
        self.assign(np.partition(self, kth, axis, kind, order), "x.partition()")  # type: ignore[arg-type]

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        np.put(self, indices, values, mode)  # type: ignore[arg-type]

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        raise MutatedInput(f"{where()}: x.resize() changes a traced array in place; write x = np.resize(x, shape)")

    def setflags(self, **flags: Any) -> None:
        raise MutatedInput(f"{where()}: x.setflags() of a traced array; leave it out")

    # ---- Python's looks at a value ----

    def look(self, kind: type) -> Any:
        """The plain bool or int of this value; the trace notes that Python has seen it."""
        trace = self.tape
        if not trace.open or trace.thread != get_ident():
            raise _escaped(self)
        if self.base is not None:
            self.refresh()
        seen = kind(self.value)
        if not trace.symbolic and not trace.lanes:
            return seen
        node = self.node
        if kind is int and node.aval.dtype.kind not in "iu":
            node = trace.run(INT, (self,), {})
        elif kind is bool and node.aval.dtype.kind != "b":
            node = trace.run(BOOL, (self,), {})
        trace.guard(node, seen)
        return seen

    def leave(self, refusal: Callable[[], str] | None = None) -> Any:
        """The plain value, where no derivative can be lost; generated code compares a number, or is not made at all."""
        trace = self.tape
        if not trace.open or trace.thread != get_ident():
            raise _escaped(self)
        if self.base is not None:
            self.refresh()
        node, value = self.node, self.value
        if node.differentiated:
            raise trace.refuse(LeavesNumPy(f"{where()}: {refusal() if refusal else _refusal('number')}"))
        if not node.active:
            trace.peeks.append(node)
            return value
        if not trace.symbolic and not trace.lanes:
            return value
        wide = isinstance(value, (np.ndarray, np.longdouble, np.clongdouble))
        if np.ndim(value) or wide or value != value or (value == 0 and isinstance(value, (complex, np.complexfloating))):
            trace.note("plain numbers are made of values that were given as arguments")  # NaN equals nothing
        elif value == 0 and isinstance(value, (float, np.floating)):
            trace.guard(node, float(value))
            sign = trace.run(REGISTRY[np.signbit], (self,), {})  # type: ignore[arg-type]
            trace.guard(sign, bool(trace.values[sign]))  # -0.0 equals 0.0
        else:
            trace.guard(node, value.item() if isinstance(value, np.generic) else value)
        return value

    def __bool__(self) -> bool:
        return bool(self.look(bool))

    def __int__(self) -> int:
        return int(self.look(int))

    __trunc__ = __int__

    def __index__(self) -> int:
        operator.index(self.value)
        return int(self.look(int))

    def __floor__(self) -> int:
        return int(np.floor(self))

    def __ceil__(self) -> int:
        return int(np.ceil(self))

    def __round__(self, ndigits: int | None = None) -> Any:
        if isinstance(self.value, np.ndarray):
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        return int(np.rint(self)) if ndigits is None else self.record(ROUND, (self,), {"ndigits": ndigits})

    def is_integer(self) -> bool:
        return bool(_binary(np.remainder, self, 1) == 0)

    def __float__(self) -> float:
        self.tape.lent = True
        return float(self.leave())

    def __complex__(self) -> complex:
        return complex(self.leave())

    def __hash__(self) -> int:
        if isinstance(self.value, np.ndarray):
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(
            self.leave(
                lambda: (
                    "a traced value cannot be a dict key, a member of a set or an argument of a cached function, "
                    "where its derivative would be lost; use a list, or a plain number as key"
                )
            )
        )

    def _text(self, show: Callable[[Any], str]) -> str:
        """Text of a value. What a derivative follows is marked, so that no float() of it loses the derivative."""
        if self.base is not None and self.tape.open:
            self.refresh()
        if not self.tape.open or self.tape.thread != get_ident():
            return f"Traced({show(self.value)})"
        if not self.node.differentiated:
            return show(self.leave())
        self.tape.note("a traced value becomes text")
        return _Text(f"Traced({show(self.value)})")

    def __repr__(self) -> str:
        return self._text(repr)

    def __str__(self) -> str:
        return self._text(str)

    def __format__(self, spec: str) -> str:
        return self._text(lambda value: format(value, spec))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if not self.tape.open or self.tape.thread != get_ident():
            raise _escaped(self)
        value, self.tape.lent = self.value, True
        whole = np.asarray(value).dtype.kind in "iub" if np.ndim(value) else not self.node.active
        if whole or not np.size(value) or (dtype is not None and np.dtype(dtype) != object):
            return np.array(self.leave(lambda: _refusal("array")), dtype)
        if user_frame_is_strided():
            raise NotDifferentiable(
                f"{where()}: as_strided reads memory, which a traced array has not; use sliding_window_view or indexing"
            )
        if np.size(value) > 4096:
            raise LeavesNumPy(
                f"{where()}: np.asarray or np.array takes a traced array of {np.size(value)} elements apart; leave it out, "
                "or use symgrad.numpy.asarray"
            )
        out = np.empty(np.shape(value), dtype=object)
        for place in np.ndindex(out.shape):
            out[place] = self[place] if place else self[()] if isinstance(value, np.ndarray) else self
        if not copy:
            out.flags.writeable = False
            one: Tracer | None = self if isinstance(value, np.ndarray) else None
            while one is not None:
                one.lent = [*(one.lent or ()), weakref.ref(out)]
                one = one.base
        return out

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        if np.ndim(self.value) == 0:
            raise TypeError(f"{where()}: iteration over a 0-d value")
        names = unpacked(user_frame()) if self.tape.symbolic and self.tape.user else []
        return (self._part(i, names) for i in range(len(self.value)))

    def _part(self, i: int, names: list[str]) -> Any:
        """An element, under the name that an unpacking gives it."""
        part = self[i]
        if i < len(names):
            part.node.name = names[i]
        return part

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self == item))

    def __getitem__(self, key: Any) -> Any:
        spec, arrays = _split_index(key, self)
        return self.tape.record(index.GETITEM, (self, *arrays), {"spec": spec})

    def item(self, *place: Any) -> Any:
        """The element as a Python number; it stays traced."""
        if len(place) == 1 and isinstance(place[0], tuple):
            (place,) = place
        one = self if not place else np.reshape(self, -1)[place[0]] if len(place) == 1 else self[place]
        if np.size(one.value) != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return one.tape.record(TO_PYTHON, (one,), {})

    def tolist(self) -> Any:
        return self.item() if np.ndim(self.value) == 0 else [row.tolist() for row in self]

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            raise TypeError("pow() with three arguments is for integers")
        return _binary(np.power, self, other)

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        return _binary(np.power, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __copy__(self) -> Any:
        return self.copy() if isinstance(self.value, np.ndarray) else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise LeavesNumPy(
            f"{where()}: a traced value cannot be pickled, saved or sent to another process; return it from the function"
        )

    def __bytes__(self) -> bytes:
        return bytes(self.leave())

    # ---- NumPy's protocols ----

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            op = REGISTRY.get(ufunc)
            if isinstance(op, Op):
                return _apply(self.tape, ufunc, op, args)
        return call_ufunc(self.tape, ufunc, method, args, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not kwargs:
            op = REGISTRY.get(func)
            if isinstance(op, Op) and len(args) == op.arity():
                return self.tape.record(op, args, {})
        if func in create.LIKE or "like" in kwargs:
            return create.like(func, self, args, {k: v for k, v in kwargs.items() if k != "like"})
        if func in index.WRITES:
            return index.WRITES[func](*args, **kwargs)
        if len(args) > (place := _place_of_out(func)):
            args, kwargs = (*args[:place], *args[place + 1 :]), {**kwargs, "out": args[place]}  # what follows has names
        if "out" not in kwargs:
            return call(self.tape, func, args, kwargs)
        if isinstance(kwargs["out"], np.ndarray) and not any([t.node.differentiated for t in _tracers((args, kwargs))]):
            self.tape.note("values that were given as arguments are written into a plain array")
            return func(*_plain(args), **_plain(kwargs))
        outs = _outs(kwargs["out"])
        result = call(self.tape, func, args, {name: value for name, value in kwargs.items() if name != "out"})
        return _written(self.tape, outs, result) if outs else result

    # ---- attributes ----

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape  # type: ignore[no-any-return]

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise MutatedInput(f"{where()}: x.shape = ... changes a traced array in place; write x = x.reshape(shape)")

    @property
    def dtype(self) -> np.dtype[Any]:
        if type(self.value) is not np.ndarray and sys._getframe(1).f_code.co_filename == _METHODS_OF_NUMPY:
            raise AttributeError  # np.mean of a list of Tracers would make the sum a plain np.float64
        return self.value.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return self.value.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        return self.value.size  # type: ignore[no-any-return]

    @property
    def T(self) -> Any:
        return self._has("T", np.transpose)

    @property
    def mT(self) -> Any:
        return self._has("mT", lambda x: np.swapaxes(x, -1, -2))

    @property
    def real(self) -> Any:
        return np.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        self._has("real", np.real)[...] = value

    @property
    def imag(self) -> Any:
        return np.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if not np.iscomplexobj(self.value):
            raise TypeError("array does not have imaginary part to set")
        np.imag(self)[...] = value

    @property
    def flat(self) -> Any:
        return self._has("flat", Flat)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[:] = value

    def _has(self, name: str, function: Callable[[Any], Any]) -> Any:
        """An attribute that is made by a function, if values of this kind have it."""
        getattr(self.value, name)
        return function(self)

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        shape = shape[0] if len(shape) == 1 else shape
        result = np.reshape(self, shape) if order == "C" else np.reshape(self, shape, order=order)
        return result.copy() if copy else result

    def transpose(self, *axes: Any) -> Any:
        axes = axes[0] if len(axes) == 1 else axes
        return np.transpose(self, axes if axes else None)

    def astype(self, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True) -> Any:
        dtype = np.dtype(dtype)
        if dtype == object:
            return self.__array__(object, copy=True)
        if not np.can_cast(self.dtype, dtype, casting):
            raise TypeError(f"{where()}: Cannot cast array data from {self.dtype} to {dtype} by the rule {casting!r}")
        if not copy and dtype == self.dtype:
            return self
        return self.tape.record(ASTYPE, (self,), {"dtype": dtype})

    def copy(self, order: str = "C") -> Any:
        """A Tracer of its own for the same value: later writes to one do not reach the other."""
        if self.base is not None:
            self.refresh()
        layout: Any = order if order in ("C", "F", "A", "K") else "C"  # whether a later reshape is a view hangs on it
        value = np.array(self.value, order=layout) if isinstance(self.value, np.ndarray) else self.value
        return Tracer(self.tape, self.node, value)

    def flatten(self, order: str = "C") -> Any:
        return np.ravel(self, order=order).copy()  # type: ignore[call-overload]

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        if (dtype is None or dtype is np.ndarray or dtype == self.dtype) and type in (None, np.ndarray):
            return self[...]
        raise NotDifferentiable(f"{where()}: x.view({dtype}) reinterprets memory; use x.astype or x.real and x.imag")

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
        return np.clip(self, min, max, out=out, **options)

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        return np.searchsorted(self, v, side=side, sorter=sorter)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        return np.compress(condition, self, axis=axis, out=out)

    def __getattr__(self, name: str) -> Any:
        if name in _ELEMENTWISE and not isinstance(self.value, np.ndarray):
            # NumPy calls these on each element of an object array, such as np.array([t0, t1]) makes
            return lambda *args: getattr(np, name)(self, *args)
        if hasattr(Tracer, name) or not hasattr(self.value, name) or (name.startswith("__") and name != "__array_namespace__"):
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        if name in ("nbytes", "itemsize", "strides", "flags", "device", "__array_namespace__"):
            return getattr(self.value, name)
        value = self.leave(lambda: f".{name} takes a traced value out of NumPy and loses its derivative; {_ADVICE}")
        return getattr(value.copy() if isinstance(value, np.ndarray) else value, name)


_ELEMENTWISE = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh rint sign floor ceil trunc fabs deg2rad rad2deg degrees radians isnan isfinite isinf "
    "logical_not hypot arctan2 logaddexp".split()
)


class Flat:
    """``x.flat`` of a traced array: reads and writes its elements in C order."""

    def __init__(self, x: Tracer) -> None:
        self.base = x
        self._next = 0

    def __len__(self) -> int:
        return self.base.size

    def __getitem__(self, key: Any) -> Any:
        return np.reshape(self.base, -1)[key].copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        shape = self.base.shape
        places = np.arange(self.base.size)[_plain(key)]
        if np.ndim(value) and np.size(value) != places.size:
            value = np.resize(value, places.shape)
        arrays = np.unravel_index(places, shape)
        self.base[arrays] = np.reshape(value, places.shape) if np.ndim(value) else value

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._next == len(self):
            raise StopIteration
        self._next += 1
        return self[self._next - 1]

    def copy(self) -> Any:
        return self.base.flatten()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.copy().__array__(dtype, copy=True)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*[a.copy() if a is self else a for a in args], **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return func(*[a.copy() if a is self else a for a in args], **kwargs)


def _refusal(what: str) -> str:
    text, instead = leaving()
    return f"{text or 'this line'} would make a plain {what} of a traced value and lose its derivative; {instead}"


def user_frame_is_strided() -> bool:
    """Whether it is ``as_strided`` that asks."""
    frame = sys._getframe(2)
    return frame.f_code.co_name == "as_strided" and "stride_tricks" in frame.f_code.co_filename


_OPERANDS = frozenset({*_NUMBERS, np.ndarray, Tracer})


def _binary(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """An operator: on Python numbers it stays Python's, on arrays it is the ufunc."""
    tracer: Tracer = left if type(left) is Tracer else right
    other = right if tracer is left else left
    if type(other) not in _OPERANDS and not isinstance(other, (int, float, complex, np.ndarray, np.generic)):
        if type(other) is Flat:
            other = other.copy()
            left, right = (tracer, other) if tracer is left else (other, tracer)
        elif not isinstance(other, (list, tuple)) or not isinstance(tracer.value, (np.ndarray, np.generic)):
            return NotImplemented
        elif ufunc is np.multiply and isinstance(tracer.value, np.integer):
            return NotImplemented  # repeats the sequence, as np.int64(2) * [0] does
    return tracer.tape.record(REGISTRY[ufunc], (left, right), {})  # type: ignore[arg-type]


def _operator(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
    op: Any = REGISTRY[ufunc]

    def method(self: Tracer, other: Any) -> Any:
        if type(other) in _OPERANDS:
            return self.tape.record(op, (self, other), {})
        return _binary(ufunc, self, other)

    return method


def _inplace(name: str, ufunc: np.ufunc, tracer: Tracer, other: Any) -> Any:
    if not isinstance(tracer.value, np.ndarray):
        return NotImplemented  # numbers are immutable: Python goes on to the plain operator
    new = _binary(ufunc, tracer, other)
    if new is NotImplemented:
        return new
    if np.shape(new.value) != tracer.value.shape:
        raise ValueError(
            f"{where()}: the result of shape {np.shape(new.value)} does not fit into {tracer.value.shape} in place"
        )
    tracer.assign(new, f"x {_SYMBOLS[name]}= y")
    return tracer


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "matmul": "@", "and": "&", "or": "|",
    "xor": "^", "lshift": "<<", "rshift": ">>", "pow": "**",
}  # fmt: skip


def _install() -> None:
    """The operators, in-place operators and methods that follow one pattern."""
    binary = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
        "mod": np.remainder, "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "lshift": np.left_shift, "rshift": np.right_shift,
    }  # fmt: skip
    compare = {
        "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    }  # fmt: skip
    for name, ufunc in {**binary, **compare}.items():
        setattr(Tracer, f"__{name}__", _operator(ufunc))
    for name, ufunc in binary.items():
        setattr(Tracer, f"__r{name}__", lambda self, other, ufunc=ufunc: _binary(ufunc, other, self))
    for name, ufunc in {**binary, "pow": np.power}.items():
        setattr(Tracer, f"__i{name}__", lambda self, other, n=name, ufunc=ufunc: _inplace(n, ufunc, self, other))
    for name, ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}.items():
        setattr(Tracer, f"__{name}__", lambda self, ufunc=ufunc: self.tape.record(REGISTRY[ufunc], (self,), {}))
    for name in (
        "sum mean prod max min var std cumsum cumprod argmax argmin argsort all any dot ravel swapaxes squeeze repeat "
        "take trace diagonal round conj conjugate nonzero choose argpartition"
    ).split():
        setattr(Tracer, name, lambda self, *args, fun=getattr(np, name), **kwargs: fun(self, *args, **kwargs))
        setattr(Tracer, name, _Only(getattr(Tracer, name), name))
    for name in (
        "reshape transpose astype copy flatten view searchsorted compress item tolist fill sort partition put resize setflags "
        "clip is_integer __len__ __contains__ __getitem__"
    ).split():
        setattr(Tracer, name, _Only(getattr(Tracer, name), name))
    # iter() would count up __getitem__ where it is missing: NumPy's scalars have that and no __iter__
    Tracer.__iter__ = _Only(Tracer.__iter__, "__getitem__")  # type: ignore[method-assign, assignment]


pytree.LEAVES.add(Tracer)


# -- NumPy's functions ---------------------------------------------------------------------------------------------

_ADVICE = (
    "give it a rule with symgrad.primitive or symgrad.custom_vjp, write it with other NumPy functions, "
    "or wrap its argument in symgrad.stop_gradient if it is a constant"
)


def call(trace: Trace, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a NumPy function means on traced arguments: the registry says."""
    if func is np.where and len(args) + len(kwargs) == 1:
        func = np.nonzero
    if func in (np.may_share_memory, np.shares_memory):
        return _share_memory(func, *args)
    handler = REGISTRY.get(func)
    if isinstance(handler, Static):
        return func(*_plain(args), **_plain(kwargs))
    if isinstance(handler, Composite):
        try:
            return handler.fun(*args, **kwargs)
        except NotDifferentiable as error:  # an option, as a rule: right where no derivative flows
            return _plainly(trace, func, args, kwargs, str(error).removeprefix(f"{where()}: "))
    if not isinstance(handler, Op):
        why = handler.why if isinstance(handler, Refused) else f"has no derivative rule; {_ADVICE}"
        return _plainly(trace, func, args, kwargs, f"{_called(func)} {why}")
    if handler.family == "constant" and len(args) > 1:
        args, kwargs = _by_name(func, args, kwargs)
    try:
        arrays, params = handler.bind(args, kwargs)
    except NotDifferentiable as error:
        return _plainly(trace, func, args, kwargs, str(error))
    if params:
        params = {name: _static(value, name) for name, value in params.items()}
    result = trace.record(handler, arrays, params)
    if handler.sized:
        for part in result if isinstance(result, tuple) else (result,):
            _look_at_size(trace, trace.record(SIZE, (part,), {}))
    return result


def _by_name(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """A call with the positional options behind its arrays, such as ``axis=None``, given by name."""
    given = [i for i, arg in enumerate(args) if arg is None or isinstance(arg, (str, tuple))]
    if not given or isinstance(func, np.ufunc):
        return args, kwargs
    try:
        names = list(inspect.signature(func).parameters)
    except (TypeError, ValueError):  # NumPy has no signature for it
        return args, kwargs
    if any(i >= len(names) for i in given) or given[0] == 0:
        return args, kwargs
    return args[: given[0]], {**dict(zip(names[given[0] :], args[given[0] :], strict=False)), **kwargs}


def _share_memory(func: Any, a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether two arrays would overlap: two views of one array, or one and what ``np.asarray`` made of it."""
    if type(a) is Tracer and type(b) is Tracer:
        return _root(a) is _root(b) and func(_plain(a), _plain(b))
    traced, plain = (a, b) if type(a) is Tracer else (b, a)
    return any(ref() is not None and func(ref(), plain) for ref in _root(traced).lent or ())


def _root(tracer: Tracer) -> Tracer:
    while tracer.base is not None:
        tracer = tracer.base
    return tracer


def _plainly(trace: Trace, func: Any, args: Any, kwargs: Any, why: str) -> Any:
    """A call without a rule, on plain values: right where no derivative flows into it."""
    tracers = [*_tracers(args), *_tracers(kwargs)]
    for tracer in tracers:
        if tracer.tape is not trace or not trace.open:
            raise _escaped(tracer)
    if any([tracer.node.differentiated for tracer in tracers]):
        raise trace.refuse(NotDifferentiable(f"{where()}: {why}"))
    if any([tracer.node.active for tracer in tracers]):
        if all([isinstance(arg, (np.ndarray, np.generic, int, float, complex)) for arg in args]):
            try:
                return _opaque(trace, func, args, kwargs)
            except (TypeError, AttributeError):  # its options or its result are no values
                pass
        trace.note(f"{_called(func)} runs on plain values")
    return func(*_plain(args, copy=True), **_plain(kwargs, copy=True))


_opaque_ops: dict[Any, Op] = {}


def _opaque(trace: Trace, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function without a rule, of values that no derivative flows through: called as it is, here and in the code."""
    op = _opaque_ops.setdefault(func, Op(func, "constant", (), sized=True))
    result = trace.record(op, args, {name: _static(value, name) for name, value in kwargs.items()})
    for part in result if isinstance(result, tuple) else (result,):
        _look_at_size(trace, trace.record(SIZE, (part,), {}))
    return result


def _tracers(tree: Any) -> list[Tracer]:
    if type(tree) is Tracer:
        if tree.base is not None:
            tree.refresh()
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [tracer for item in tree for tracer in _tracers(item)] if isinstance(tree, (list, tuple)) else []


def _called(func: Any) -> str:
    module = (getattr(func, "__module__", "") or "").replace("numpy", "np", 1)
    name = getattr(func, "__name__", str(func))
    return f"{module}.{name}" if module else f"{'np.' if hasattr(np, name) else ''}{name}"


def _static(value: Any, name: str) -> Any:
    """A static parameter: a Tracer in it is looked at, which guards the trace."""
    if type(value) is Tracer:
        kind = value.node.aval.dtype.kind
        if np.ndim(value.value) == 0 and kind in "iub":
            return value.look(bool if kind == "b" else int)
        return value.leave(lambda: f"the option {name}= must be a plain number; a traced one would lose its derivative")
    if isinstance(value, (list, tuple)) and any(type(item) is Tracer for item in value):
        return tuple(_static(item, name) for item in value)
    return value


def _plain(tree: Any, copy: bool = False) -> Any:
    """Plain values in place of Tracers, in the arguments of a static function."""
    if type(tree) is Tracer:
        if tree.base is not None:
            tree.refresh()
        return tree.value.copy() if copy and isinstance(tree.value, np.ndarray) else tree.value
    if isinstance(tree, (list, tuple)):
        items = [_plain(item, copy) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, dict):
        return {name: _plain(item, copy) for name, item in tree.items()}
    return tree


def _split_index(key: Any, x: Tracer, sized: bool = True) -> tuple[index.Spec, list[Any]]:
    """The static part of an index and its arrays. Slices' bounds are looked at; so are counts of masks, if ``sized``."""
    parts: list[Any] = []
    arrays: list[Any] = []
    for part in key if type(key) is tuple else (key,):
        if isinstance(part, slice):
            parts.append(index.Slice(*[None if end is None else operator.index(end) for end in _ends(part)]))
        elif part is None or part is Ellipsis or type(part) is int:
            parts.append(part)
        elif type(part) is not Tracer and isinstance(part, np.integer):
            parts.append(int(part))
        else:
            if type(part) is not Tracer and not isinstance(part, np.ndarray):
                traced = create.contains_traced(part)
                part = x.adopt(part) if traced else np.asarray(part)
                if isinstance(part, np.ndarray) and not part.size and part.dtype == float:  # x[[]]
                    part = part.astype(int)
            elif type(part) is np.ndarray and part.dtype == object:
                part = x.adopt(part)
            if type(part) is Tracer and part.node.aval.dtype == bool and sized:
                _look_at_size(x.tape, x.tape.record(REGISTRY[np.count_nonzero], (part,), {}))  # type: ignore[arg-type]
            parts.append(index.Hole(len(arrays)))
            arrays.append(part)
    return tuple(parts), arrays


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def _look_at_size(trace: Trace, count: Tracer) -> None:
    trace.guard(count.node, int(count.value))


# -- out= ----------------------------------------------------------------------------------------------------------


@functools.cache
def _place_of_out(func: Any) -> int:
    """At which position a function takes ``out``; beyond all arguments where it does not."""
    try:
        params = list(inspect.signature(func).parameters.values())
        return [p.name for p in params if p.kind <= p.POSITIONAL_OR_KEYWORD].index("out")
    except (TypeError, ValueError):
        return 2 if func in (np.dot, np.concatenate) else sys.maxsize  # before NumPy 2.4 they have no signature


def _outs(out: Any) -> tuple[Any, ...]:
    """What ``out=`` names; empty when it names nothing. Plain arrays among it are refused."""
    outs = out if isinstance(out, tuple) else (out,)
    if all(item is None for item in outs):
        return ()
    if any(item is not None and type(item) is not Tracer for item in outs):
        raise MutatedInput(_into_plain("out= or an in-place operator"))
    return outs


def _into_plain(verb: str) -> str:
    return (
        f"{where()}: a traced value is written into a plain array here ({verb}), where its derivative would be lost; make "
        "the array with np.zeros_like(x), np.zeros(n, like=x) or symgrad.numpy.zeros(n)"
    )


def _written(trace: Trace, outs: tuple[Any, ...], result: Any, casting: Any = "same_kind") -> Any:
    """Write the results of a call where its ``out=`` said; what the call returns."""
    if not outs:
        return result
    results = result if isinstance(result, tuple) else (result,)
    for item, value in zip(outs, results, strict=True):
        if item is not None:
            item.assign(trace.gather(value), "out=", casting)
    given = tuple(value if item is None else item for item, value in zip(outs, results, strict=True))
    return given if isinstance(result, tuple) else given[0]


# -- ufuncs --------------------------------------------------------------------------------------------------------


def call_ufunc(trace: Trace, ufunc: np.ufunc, method: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A ufunc or one of its methods on traced arguments."""
    if ufunc.__name__ == "clip" and method == "__call__":  # what a.clip(x) of a plain array calls
        return np.clip(*args, **kwargs)
    rest = {name: value for name, value in kwargs.items() if name != "out"}
    out = kwargs.get("out", ())
    followed = any([tracer.node.differentiated for tracer in _tracers((args, kwargs))])
    if not followed and any([item is not None and type(item) is not Tracer for item in out]):
        trace.note("values that were given as arguments are written into a plain array")
        return getattr(ufunc, method)(*_plain(args), **_plain(kwargs))
    outs = _outs(out)
    if method == "__call__" and outs and "where" in rest:
        rest["fallback"] = outs
    result = getattr(_UFuncMethods, method)(trace, ufunc, args, rest)
    return _written(trace, outs, result, kwargs.get("casting", "same_kind"))


def _apply(trace: Trace, ufunc: np.ufunc, op: Op, args: Sequence[Any]) -> Any:
    """A ufunc without options."""
    if op.fun is not ufunc and not any([_is_numpy(arg) for arg in args]):
        args = [trace.record(TO_NUMPY, (args[0],), {}), *args[1:]]  # a ufunc of Python numbers gives a NumPy number
    return trace.record(op, args, {})


class _UFuncMethods:
    """The methods of a ufunc on traced arguments."""

    @staticmethod
    def __call__(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        rest = {name: value for name, value in kwargs.items() if name not in ("order", "subok")}
        mask, fallback = rest.pop("where", True), rest.pop("fallback", None)
        dtype, casting = rest.pop("dtype", None), rest.pop("casting", None)
        signature = rest.pop("signature", rest.pop("sig", None))
        handler = REGISTRY.get(ufunc)
        if not isinstance(handler, Op) or isinstance(signature, str) or (rest and handler.family == "elementwise"):
            option = f" with {', '.join(kwargs)}=" if kwargs and isinstance(handler, Op) else ""
            if option or handler is None:
                return _plainly(trace, ufunc, args, kwargs, f"{_called(ufunc)}{option} has no derivative rule; {_ADVICE}")
            return call(trace, ufunc, args, kwargs)
        if rest:
            return call(trace, ufunc, args, rest)
        if dtype is not None or signature is not None:
            signature = signature or (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
            args = _cast_arguments(trace, ufunc, args, signature, casting)
        elif mask is True:
            return _apply(trace, ufunc, handler, args)
        if mask is True:
            return trace.record(handler, args, {})
        if fallback is None:
            raise NotDifferentiable(f"{where()}: where= without out= leaves values undefined; use np.where or give out=")
        safe = np.atleast_2d(handler.domain).mean(axis=-1)  # so that no NaN arises where nothing is computed
        args = [np.where(mask, arg, safe[i % len(safe)].astype(_dtype(arg))) for i, arg in enumerate(args)]
        result = trace.record(handler, args, {})
        if not isinstance(result, tuple):
            return np.where(mask, result, fallback[0])
        return tuple(value if old is None else np.where(mask, value, old) for value, old in zip(result, fallback, strict=True))

    @staticmethod
    def reduce(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        array, axis = given.pop("array"), given.pop("axis", 0)
        given = {
            name: value
            for name, value in given.items()
            if value is not np._NoValue and not (value is None and name in ("dtype", "out"))
        }
        if ufunc in _REDUCTIONS and given.get("initial", 0) is not None:
            return _REDUCTIONS[ufunc](array, axis=axis, **given)
        plain = ufunc.reduce(_plain(array), axis=axis, **_plain(given))  # NumPy checks the options, and knows the dtype
        axes = range(np.ndim(array)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        kept = [i for i in range(np.ndim(array)) if i not in [a % np.ndim(array) for a in axes]]
        rows = np.moveaxis(array.astype(plain.dtype) if "dtype" in given else array, kept, range(-len(kept), 0))
        mask = np.moveaxis(np.broadcast_to(given.get("where", True), np.shape(array)), kept, range(-len(kept), 0))
        inner = rows.shape[rows.ndim - len(kept) :]
        rows, mask = rows.reshape(-1, *inner), mask.reshape(-1, *inner)
        start = given.get("initial", ufunc.identity)
        total: Any = None if start is None or (start is ufunc.identity and len(rows)) else np.broadcast_to(start, inner)
        for i, row in enumerate(rows):
            new = row if total is None else ufunc(total, row)
            if "where" in given:
                before = np.broadcast_to(start, inner) if total is None else total
                new = np.where(mask[i], row if total is None and start is ufunc.identity else new, before)
            total = new
        if np.shape(total) != np.shape(plain):
            total = np.reshape(total, np.shape(plain))
        return total

    @staticmethod
    def accumulate(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        given = {**dict(zip(("array", "axis", "dtype"), args, strict=False)), **kwargs}
        array, axis, dtype = given["array"], given.get("axis", 0), given.get("dtype")
        if ufunc in _SCANS:
            return _SCANS[ufunc](array, axis=axis, **({} if dtype is None else {"dtype": dtype}))
        rows = list(np.moveaxis(array if dtype is None else array.astype(dtype), axis, 0))
        for i in range(1, len(rows)):
            rows[i] = ufunc(rows[i - 1], rows[i])
        return np.stack(rows, axis=axis) if rows else array

    @staticmethod
    def outer(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        a, b = args
        return ufunc(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b, **kwargs)

    @staticmethod
    def at(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        x, key, *values = args
        if type(x) is not Tracer:
            raise MutatedInput(
                f"{where()}: {_called(ufunc)}.at writes a traced value into a plain array, where its derivative would be "
                "lost; make the array with np.zeros_like(x), np.zeros(n, like=x) or symgrad.numpy.zeros(n)"
            )
        spec, arrays = _split_index(key, x, sized=bool(values) and np.ndim(values[0]) > 0)
        if ufunc in (np.add, np.subtract):
            value = values[0] if ufunc is np.add else np.negative(values[0])
            x.assign(trace.record(index.INDEX_ADD, (x, value, *arrays), {"spec": spec}), f"{_called(ufunc)}.at")
            return
        named = index.fill(spec, [_plain(array) for array in arrays])
        places = np.arange(x.value.size).reshape(x.value.shape)[named]
        if np.unique(places).size != places.size or any(type(a) is Tracer and a.node.active for a in arrays):
            raise NotDifferentiable(
                f"{where()}: {_called(ufunc)}.at has a derivative rule only where no index can repeat; np.add.at has one"
            )
        x[key] = ufunc(x[key], *values)

    @staticmethod
    def reduceat(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        given = {**dict(zip(("array", "indices", "axis", "dtype"), args, strict=False)), **kwargs}
        array, axis, dtype = given["array"], given.get("axis", 0), given.get("dtype")
        rows = np.moveaxis(array if dtype is None else array.astype(dtype), axis, 0)
        starts = [operator.index(i) for i in given["indices"]]
        ends = [*starts[1:], len(rows)]
        parts = [ufunc.reduce(rows[i:j]) if i < j else rows[i] for i, j in zip(starts, ends, strict=True)]
        return np.stack(parts, axis=axis)


def _cast_arguments(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], signature: Any, casting: Any) -> list[Any]:
    """The arguments in the types of the loop that ``dtype=`` or ``signature=`` chooses."""
    kinds = [type(_plain(arg)) if not _is_numpy(arg) else _dtype(arg) for arg in args]
    kinds = [int if kind is bool else kind for kind in kinds]
    loop = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), signature=signature, casting=casting or "same_kind")
    return [
        arg if _is_numpy(arg) and _dtype(arg) == dtype else trace.record(ASTYPE, (arg,), {"dtype": dtype})
        for arg, dtype in zip(args, loop, strict=False)
    ]


_REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min, np.logical_and: np.all,
    np.logical_or: np.any,
}  # fmt: skip
_SCANS: dict[Any, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}
_METHODS_OF_NUMPY = os.path.join(os.path.dirname(np.__file__), "_core", "_methods.py")
_EINSUM, _REAL, _IMAG = REGISTRY[np.einsum], REGISTRY[np.real], REGISTRY[np.imag]


def _dtype(x: Any) -> np.dtype[Any]:
    return x.dtype if hasattr(x, "dtype") else np.result_type(x)


def _is_numpy(x: Any) -> bool:
    value = x.value if type(x) is Tracer else x
    return isinstance(value, (np.ndarray, np.generic, list, tuple))


_install()
