"""The tracer: records the NumPy calls of a real call into a graph, beside their real values.

A ``Trace`` is one run of a user's function. A ``Tracer`` stands for one of its values: it carries the concrete value and
the node that computes it, answers NumPy's protocols and Python's operators by recording, and hands shapes and dtypes over
from the value itself. Where Python looks at a value (``if``, ``int``, ``range``) the trace notes a *guard*: the node and
what was seen.

In-place writes become new nodes: a Tracer is a name that can be bound to a later node. A Tracer that NumPy would have
made a view remembers its base, writes through to it, and looks again when the base has changed.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from threading import get_ident
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from symgrad.errors import EscapedTracer, LeavesNumPy, MutatedInput, NotDifferentiable, SymgradError
from symgrad.frames import leaving, raised_at, target, user_frame, user_line, where
from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Graph, Node, aval_of, is_inexact
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY, Composite, Op, Refused, Static, Traced
from symgrad.ops.engine import ASTYPE, BOOL, IDENTITY, INT, ITEM, ROUND, SIZE, STOP, TO_ARRAY, TO_NUMPY, TO_PYTHON

__all__ = ["Guard", "Trace", "Tracer", "active_trace", "tracing", "user_frame", "user_line", "where"]


class Guard(NamedTuple):
    """Python looked at ``node``, saw ``value``, and went on accordingly; ``line`` is where."""

    node: Node
    value: Any
    line: tuple[str, int] | None


class Trace:
    """One run of a function being traced.

    ``symbolic``: derivative passes record nodes too, for code to be made of them; otherwise they may work on plain values.
    ``values`` holds the concrete value of each node of this run.
    """

    def __init__(self, symbolic: bool) -> None:
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.guards: list[Guard] = []
        self.symbolic = symbolic
        self.open = True
        self.depth = 0
        self.line: tuple[str, int] | None = None
        self.impure: str | None = None
        self.hooks: Any = None  # what sees the user's function read from outside: a State
        self.trying = 0  # how many ``try`` statements with handlers it is in
        self.required: list[Node] = []
        self.phase: str | None = None
        self.user = False  # whether the user's function runs now, rather than a pass of symgrad's own
        self._tokens = 0
        self._copies: dict[int, tuple[Any, Any, Node]] = {}

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
            node = self.graph.const(value)
            self.values[node] = value
            return node, value
        if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
            array = np.asarray(value)
            if array.dtype == object:
                traced = self.stack(array)
                return traced.node, traced.value
            return self._capture(array)
        raise NotDifferentiable(
            f"{where()}: a traced value met {type(value).__name__} {value!r:.60}, which is no number"
        )

    def _capture(self, array: np.ndarray[Any, Any]) -> tuple[Node, Any]:
        if array.dtype == object:
            traced = self.stack(array)
            return traced.node, traced.value
        if array.dtype.kind not in "fciubmM":
            raise NotDifferentiable(f"{where()}: a traced value met an array of dtype {array.dtype}")
        known = self._copies.get(id(array))
        if known is not None:
            _, copy, node = known
            if _identical(copy, array):
                return node, copy
            self.impure = f"{where()}: a plain array is changed in place while the function runs"
        copy = array.copy() if array.flags.writeable else array
        node = self.graph.captured(array) if known is None else self.graph.captured(copy)
        self._copies[id(array)] = (array, copy, node)
        self.values[node] = copy
        return node, copy

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
        whole = _enumerates(items, array.shape)
        if whole is not None:
            return self.lookup(whole)
        if not any(isinstance(item, Tracer) for item in items):
            raise NotDifferentiable(f"{where()}: a traced value met an array of dtype object")
        if array.ndim == 0:
            return items[0]  # type: ignore[no-any-return]
        rows: Tracer = np.stack(items)  # type: ignore[assignment]
        return rows.reshape(array.shape + rows.shape[1:])  # type: ignore[no-any-return]

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run ``op`` on traced and plain values; its result, traced. A tuple result gives a tuple of Tracers."""
        node = self.run(op, args, params)
        value = self.values[node]
        if type(node.aval) is tuple:
            parts = [self.record(ITEM, (Tracer(self, node, value),), {"item": i}) for i in range(len(value))]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        result = Tracer(self, node, value)
        if op.alias and type(args[0]) is Tracer and type(value) is np.ndarray and _is_view(value, args[0].value):
            result.base, result.how, result.seen = args[0], (op, tuple(args[1:]), params), args[0].version
        return result

    def run(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Node:
        """The node of ``op`` on these arguments, its value among ``self.values``."""
        nodes, values = [], []
        for arg in args:
            if type(arg) is Tracer:
                if arg.tape is not self or not self.open:
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
        try:
            value = op.fun(*values, **params)
        except (NotDifferentiable, LeavesNumPy):
            raise
        except TypeError as error:
            if any(isinstance(v, np.ndarray) and v.dtype == object for v in values):
                raise NotDifferentiable(f"{where()}: {op.name} of an object array") from error
            raise
        node = self.graph.add(op, key, packed, aval_of(value))
        self.values[node] = value
        if self.trying and self.user and op.name.startswith("np.linalg"):
            self.required.append(node)
        if self.symbolic and node.line is None:
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


_active: ContextVar[Trace | None] = ContextVar("symgrad_trace", default=None)


# the trace that runs in this thread (or context) now, if any; not a function of Python's, for it is asked at every call
active_trace = _active.get


class tracing:
    """``with tracing(trace):`` makes it the active one; afterwards it is closed, and its Tracers are of no use."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> Trace:
        self._token = _active.set(self.trace)
        return self.trace

    def __exit__(self, *exc: object) -> None:
        self.trace.open = False
        _active.reset(self._token)


def _hashable(value: Any) -> Any:
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value


def _is_view(value: np.ndarray[Any, Any], base: Any) -> bool:
    return isinstance(base, np.ndarray) and np.may_share_memory(value, base)


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
    return EscapedTracer(
        f"{where()}: a traced value{born} is used after the call that made it has ended, or in another thread; "
        "return it from the function, or keep a plain number instead of it"
    )


class Tracer(Traced):
    """A value of a traced run: ``value`` as NumPy or Python has it, ``node`` that computes it.

    Behaves as its value does: operators, methods, attributes, NumPy's functions; ``isinstance`` sees the value's type.
    """

    __slots__ = ("base", "frozen", "how", "node", "seen", "tape", "value", "version")
    __array_priority__ = 1000.0
    def __init__(self, trace: Trace, node: Node, value: Any, frozen: bool = False) -> None:
        self.tape, self.node, self.value, self.frozen = trace, node, value, frozen
        self.base: Tracer | None = None
        self.how: Any = None
        self.version = self.seen = 0

    @property
    def __class__(self) -> type:  # isinstance(x, np.ndarray) in the user's code asks for this
        return type(self.value)

    def __repr__(self) -> str:
        return f"Traced({self.value!r})"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        if isinstance(self.value, int) and not self.node.differentiated:
            return format(self.look(int), spec)  # names such as f"w{i}" are made of ints
        return format(self.value, spec)

    def __hash__(self) -> int:
        if self.node.differentiated or not isinstance(self.value, (int, float, np.integer, np.floating)):
            raise TypeError(f"{where()}: a traced value cannot be a key of a dict or a member of a set")
        return hash(self.look(int if isinstance(self.value, (int, np.integer)) else float))

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return self.tape.record(op, args, params)

    def adopt(self, value: Any) -> Any:
        return self.tape.lookup(self.tape.constant(value)[0])

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
            self.node, self.value, self.seen = node, self.tape.values[node], base.version

    def assign(self, new: Tracer, verb: str) -> None:
        """Bind this name to a new value: what an in-place write means here. Views write through to their base."""
        if self.frozen:
            raise MutatedInput(
                f"{where()}: {verb} would change in place what the function did not make itself (an argument, or an array "
                "from outside); copy it first: x = x.copy()"
            )
        if new.value.dtype != self.value.dtype:
            if not np.can_cast(new.value.dtype, self.value.dtype, "same_kind"):
                raise TypeError(f"{where()}: cannot cast {new.value.dtype} to {self.value.dtype} in place")
            new = new.astype(self.value.dtype)
        if new.value.shape != self.value.shape:
            new = np.broadcast_to(new, self.value.shape)  # type: ignore[assignment]
        base = self.base
        if base is not None:
            self.refresh()
            op, rest, params = self.how
            if op is index.GETITEM:
                base.write(params["spec"], rest, new, verb)
            else:  # any other view: where did each element come from?
                places = op.fun(np.arange(base.value.size).reshape(base.value.shape), *rest, **params)
                flat = np.reshape(base, -1)
                flat.base = None  # type: ignore[attr-defined]
                flat[places.ravel()] = np.reshape(new, -1)
                base.assign(np.reshape(flat, base.value.shape), verb)  # type: ignore[arg-type]
            self.seen = base.version
        self.node, self.value = new.node, new.value
        self.version += 1

    def write(self, spec: index.Spec, arrays: Sequence[Any], new: Any, verb: str) -> None:
        """``self[index] = new``."""
        if self.frozen:
            raise MutatedInput(
                f"{where()}: {verb} would change in place what the function did not make itself (an argument, or an array "
                "from outside); copy it first: x = x.copy()"
            )
        if not isinstance(self.value, np.ndarray):
            raise TypeError(f"{where()}: {type(self.value).__name__} does not support item assignment")
        if self.base is not None:
            self.refresh()
        self.assign(self.tape.record(index.SETITEM, (self, new, *arrays), {"spec": spec}), verb)

    def __setitem__(self, key: Any, value: Any) -> None:
        spec, arrays = _split_index(key, self)
        self.write(spec, arrays, value, "x[...] = v")

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        self.assign(np.sort(self, axis=axis), "x.sort()")  # type: ignore[arg-type, call-overload]

    # ---- Python's looks at a value ----

    def look(self, kind: type) -> Any:
        """The plain bool, int or float of this value; the trace notes that Python has seen it."""
        if not self.tape.open or active_trace() is not self.tape:
            raise _escaped(self)
        if self.base is not None:
            self.refresh()
        seen = kind(self.value)
        node = self.node
        if kind is int and node.aval.dtype.kind not in "iu":
            node = self.tape.run(INT, (self,), {})
        elif kind is bool and node.aval.dtype.kind != "b":
            node = self.tape.run(BOOL, (self,), {})
        elif kind is float and node.aval.kind != "python":
            node = self.tape.run(TO_PYTHON, (self,), {})
        self.tape.guard(node, seen)
        return seen

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
        return int(np.rint(self)) if ndigits is None else np.round(self, ndigits)  # type: ignore[call-overload]

    def __float__(self) -> float:
        if not self.node.differentiated:  # no derivative is lost; the trace is good for this value
            return float(self.look(float))
        raise LeavesNumPy(
            f"{where()}: a traced value would become a plain float here (float(), a math.* function, or a write into a "
            "plain array) and lose its derivative; use NumPy's functions (np.sin for math.sin, x * 1.0 for float(x)) and "
            "np.zeros_like(x), np.zeros(n, like=x) or symgrad.numpy.zeros(n) for arrays to be filled"
        )

    def __complex__(self) -> complex:
        raise LeavesNumPy(f"{where()}: a traced value would become a plain complex and lose its derivative; use x + 0j")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if dtype is not None and np.dtype(dtype) != object and not self.node.differentiated:
            if np.ndim(self.value) == 0 and np.result_type(self.value).kind in "fiub":
                return np.asarray(_static(self), dtype)
            self.tape.impure = self.tape.impure or f"{where()}: the content of an array leaves NumPy's protocols here"
            return np.array(self.value, dtype)
        if dtype is not None and np.dtype(dtype) != object:
            raise LeavesNumPy(
                f"{where()}: a traced value would become a plain array here and lose its derivative; "
                "leave np.array(..., dtype=...) out, or use x.astype(dtype)"
            )
        if np.size(self.value) > 4096:
            raise LeavesNumPy(
                f"{where()}: np.asarray or np.array takes a traced array of {np.size(self.value)} elements apart; "
                "leave it out, or use symgrad.numpy.asarray"
            )
        out = np.empty(self.value.shape if isinstance(self.value, np.ndarray) else (), dtype=object)
        for place in np.ndindex(out.shape):
            out[place] = self[place] if place else self
        return out

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        if np.ndim(self.value) == 0:
            raise TypeError(f"{where()}: iteration over a 0-d value")
        return iter([self[i] for i in range(len(self.value))])

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self == item))

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(self.value, (np.ndarray, np.generic)):
            raise TypeError(f"{where()}: {type(self.value).__name__} is not subscriptable")
        spec, arrays = _split_index(key, self)
        return self.tape.record(index.GETITEM, (self, *arrays), {"spec": spec})

    def item(self, *place: Any) -> Any:
        """The element as a Python number; it stays traced."""
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

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy() if isinstance(self.value, np.ndarray) else self

    __copy__ = __deepcopy__  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        raise LeavesNumPy(f"{where()}: a traced value cannot be pickled")

    # ---- NumPy's protocols ----

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        return _with_out(self.tape, kwargs, lambda rest: getattr(_UFuncMethods, method)(self.tape, ufunc, args, rest))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if "like" in kwargs or func in create.LIKE:
            return create.like(func, self, args, {k: v for k, v in kwargs.items() if k != "like"})
        return _with_out(self.tape, kwargs, lambda rest: call(self.tape, func, args, rest))

    # ---- attributes ----

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape  # type: ignore[no-any-return]

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise MutatedInput(f"{where()}: setting .shape of a traced array; use reshape")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return self.value.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        return self.value.size  # type: ignore[no-any-return]

    @property
    def T(self) -> Any:
        return np.transpose(self)

    @property
    def mT(self) -> Any:
        return np.swapaxes(self, -1, -2)

    @property
    def real(self) -> Any:
        return np.real(self)

    @property
    def imag(self) -> Any:
        return np.imag(self)

    @property
    def flat(self) -> Any:
        return np.reshape(self, -1)

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        shape = shape[0] if len(shape) == 1 else shape
        return np.reshape(self, shape) if order == "C" else np.reshape(self, shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        axes = axes[0] if len(axes) == 1 else axes
        return np.transpose(self, axes if axes else None)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        dtype = np.dtype(dtype)
        if dtype == object:
            return self.__array__()
        return self.tape.record(ASTYPE, (self,), {"dtype": dtype})

    def copy(self, order: str = "C") -> Any:
        """A Tracer of its own for the same value: later writes to one do not reach the other."""
        if self.base is not None:
            self.refresh()
        return Tracer(self.tape, self.node, self.value)

    def flatten(self, order: str = "C") -> Any:
        return np.ravel(self, order=order).copy()  # type: ignore[call-overload]

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        return np.searchsorted(self, v, side=side, sorter=sorter)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.value, name):  # NumPy asks for protocols that way
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        if name in ("nbytes", "itemsize", "strides", "flags"):
            return getattr(self.value, name)
        raise NotDifferentiable(f"{where()}: .{name} of a traced value has no derivative rule")


def _binary(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """An operator: on Python numbers it stays Python's, on arrays it is the ufunc."""
    tracer: Tracer = left if type(left) is Tracer else right
    other = right if tracer is left else left
    if type(other) is not Tracer and not isinstance(other, (int, float, complex, np.ndarray, np.generic, list, tuple)):
        return NotImplemented
    if isinstance(other, (list, tuple)) and not isinstance(tracer.value, (np.ndarray, np.generic)):
        return NotImplemented
    return tracer.tape.record(REGISTRY[ufunc], (left, right), {})  # type: ignore[arg-type]


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
        setattr(Tracer, f"__{name}__", lambda self, other, ufunc=ufunc: _binary(ufunc, self, other))
    for name, ufunc in binary.items():
        setattr(Tracer, f"__r{name}__", lambda self, other, ufunc=ufunc: _binary(ufunc, other, self))
    for name, ufunc in {**binary, "pow": np.power}.items():
        setattr(Tracer, f"__i{name}__", lambda self, other, n=name, ufunc=ufunc: _inplace(n, ufunc, self, other))
    for name, ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}.items():
        setattr(Tracer, f"__{name}__", lambda self, ufunc=ufunc: self.tape.record(REGISTRY[ufunc], (self,), {}))
    for name in (
        "sum mean prod max min var std cumsum cumprod argmax argmin argsort all any clip dot ravel swapaxes squeeze repeat "
        "take trace diagonal round conj conjugate nonzero compress choose argpartition"
    ).split():
        setattr(Tracer, name, lambda self, *args, fun=getattr(np, name), **kwargs: fun(self, *args, **kwargs))
    # NumPy calls these on each element of an object array, such as np.array([t0, t1]) makes
    for name in (
        "exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh "
        "arcsinh arccosh arctanh rint sign floor ceil trunc fabs deg2rad rad2deg degrees radians isnan isfinite isinf "
        "logical_not hypot arctan2 logaddexp"
    ).split():
        setattr(Tracer, name, lambda self, *args, fun=getattr(np, name): fun(self, *args))


def _inplace(name: str, ufunc: np.ufunc, tracer: Tracer, other: Any) -> Any:
    if not isinstance(tracer.value, np.ndarray):
        return NotImplemented  # numbers are immutable: Python goes on to the plain operator
    new = _binary(ufunc, tracer, other)
    if new is NotImplemented:
        return new
    if new.value.shape != tracer.value.shape:
        raise ValueError(f"{where()}: the result {new.value.shape} does not fit into {tracer.value.shape} in place")
    tracer.assign(new, f"x {_SYMBOLS[name]}= y")
    return tracer


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "matmul": "@", "and": "&", "or": "|",
    "xor": "^", "lshift": "<<", "rshift": ">>", "pow": "**",
}  # fmt: skip


def _with_out(trace: Trace, kwargs: dict[str, Any], compute: Callable[[dict[str, Any]], Any]) -> Any:
    """Run a call without its ``out=``, then write the result there."""
    out = kwargs.get("out")
    if out is None or (isinstance(out, tuple) and all(item is None for item in out)):
        return compute({name: value for name, value in kwargs.items() if name != "out"})
    outs = out if isinstance(out, tuple) else (out,)
    for item in outs:
        if item is not None and type(item) is not Tracer:
            raise MutatedInput(
                f"{where()}: out= writes a traced value into a plain array, where its derivative would be lost; "
                "make the array with np.empty_like(x), np.zeros(n, like=x) or symgrad.numpy.zeros(n)"
            )
    rest = {name: value for name, value in kwargs.items() if name != "out"}
    mask = rest.pop("where", True)
    result = compute(rest if mask is True else {**rest, "where": mask, "fallback": outs[0]})
    results = result if isinstance(result, tuple) else (result,)
    for item, value in zip(outs, results, strict=True):
        if item is not None:
            new = value if type(value) is Tracer else trace.lookup(trace.constant(value)[0])
            item.assign(new, "out=")
    return out if isinstance(out, tuple) and len(outs) > 1 else outs[0]


def call(trace: Trace, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a NumPy function means on traced arguments: the registry says."""
    handler = REGISTRY.get(func)
    if (handler is None or isinstance(handler, Refused)) and not _differentiated((args, kwargs)):
        return _opaque(trace, func, args, kwargs)
    if handler is None:
        raise NotDifferentiable(f"{where()}: {_called(func)} has no derivative rule; {_ADVICE}")
    if isinstance(handler, Refused):
        raise NotDifferentiable(f"{where()}: {_called(func)} {handler.why}")
    if isinstance(handler, Static):
        return func(*_plain(args), **_plain(kwargs))
    if isinstance(handler, Composite):
        return handler.fun(*args, **kwargs)
    try:
        arrays, params = handler.bind(args, kwargs)
    except NotDifferentiable as error:
        raise NotDifferentiable(f"{where()}: {error}") from None
    result = trace.record(handler, arrays, {name: _static(value) for name, value in params.items()})
    if handler.sized:
        for part in result if isinstance(result, tuple) else (result,):
            _look_at_size(trace, trace.record(SIZE, (part,), {}))
    return result


def _differentiated(tree: Any) -> bool:
    """Whether a derivative flows through any Tracer in the arguments of a call."""
    if type(tree) is Tracer:
        return tree.node.differentiated
    if isinstance(tree, dict):
        return any(_differentiated(item) for item in tree.values())
    return isinstance(tree, (list, tuple)) and any(_differentiated(item) for item in tree)


_opaque_ops: dict[Any, Op] = {}


def _opaque(trace: Trace, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function without a rule, of values that no derivative flows through: called as it is, here and in the code."""
    op = _opaque_ops.setdefault(func, Op(func, "constant", (), sized=True))
    if any(not _is_value(arg) for arg in args):
        raise NotDifferentiable(f"{where()}: {_called(func)} with these arguments cannot be traced; {_ADVICE}")
    result = trace.record(op, args, {name: _static(value) for name, value in kwargs.items()})
    for part in result if isinstance(result, tuple) else (result,):
        _look_at_size(trace, trace.record(SIZE, (part,), {}))
    return result


def _is_value(arg: Any) -> bool:
    return isinstance(arg, (np.ndarray, np.generic, int, float, complex))


_ADVICE = (
    "give it a rule with symgrad.primitive or symgrad.custom_vjp, write it with other NumPy functions, "
    "or wrap its argument in symgrad.stop_gradient if it is a constant"
)


def _called(func: Any) -> str:
    module = (getattr(func, "__module__", "") or "numpy").replace("numpy", "np", 1)
    return f"{module}.{getattr(func, '__name__', func)}"


def _static(value: Any) -> Any:
    """A static parameter: a Tracer in it is looked at, which guards the trace."""
    if type(value) is Tracer:
        if np.ndim(value.value):
            return tuple(_static(item) for item in value)
        kind = np.result_type(value.value).kind
        return float(value) if kind == "f" else value.look(bool if kind == "b" else int)
    if isinstance(value, (list, tuple)) and any(type(item) is Tracer for item in value):
        return tuple(_static(item) for item in value)
    return value


def _plain(tree: Any) -> Any:
    """Plain values in place of Tracers, in the arguments of a static function."""
    if type(tree) is Tracer:
        if tree.base is not None:
            tree.refresh()
        return tree.value
    if isinstance(tree, (list, tuple)):
        return type(tree)([_plain(item) for item in tree])
    if isinstance(tree, dict):
        return {name: _plain(item) for name, item in tree.items()}
    return tree


def _split_index(key: Any, x: Tracer) -> tuple[index.Spec, list[Any]]:
    """The static part of an index and its arrays. Slices' bounds and counts of masks are looked at."""
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
            if isinstance(part, (list, tuple)):
                part = (
                    x.adopt(np.array(part))
                    if create.contains_traced(part)
                    else np.array(part, dtype=None if part else int)
                )
            elif type(part) is not Tracer and not isinstance(part, np.ndarray):
                part = np.asarray(part)
            if type(part) is Tracer and part.node.aval.dtype == bool:
                _look_at_size(x.tape, x.tape.record(REGISTRY[np.count_nonzero], (part,), {}))  # type: ignore[arg-type]
            parts.append(index.Hole(len(arrays)))
            arrays.append(part)
    return tuple(parts), arrays


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def _look_at_size(trace: Trace, count: Tracer) -> None:
    trace.guard(count.node, int(count.value))


class _UFuncMethods:
    """The methods of a ufunc on traced arguments."""

    @staticmethod
    def __call__(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        where_mask, dtype = kwargs.pop("where", True), kwargs.pop("dtype", None)
        fallback = kwargs.pop("fallback", None)
        for harmless in ("casting", "order", "subok"):
            kwargs.pop(harmless, None)
        handler = REGISTRY.get(ufunc)
        if kwargs and isinstance(handler, Op) and handler.family == "multilinear":
            return call(trace, ufunc, args, kwargs)
        if handler is None and not _differentiated(tuple(args)):
            return _opaque(trace, ufunc, args, {})
        if handler is None or kwargs:
            option = f" with {', '.join(kwargs)}=" if kwargs else ""
            raise NotDifferentiable(f"{where()}: {_called(ufunc)}{option} has no derivative rule; {_ADVICE}")
        if not isinstance(handler, Op):
            return call(trace, ufunc, args, kwargs)
        if dtype is not None:
            args = [trace.record(ASTYPE, (arg,), {"dtype": np.dtype(dtype)}) for arg in args]
        elif handler.fun is not ufunc and not any(_is_numpy(arg) for arg in args):
            args = [
                trace.record(TO_NUMPY, (args[0],), {}),
                *args[1:],
            ]  # the ufunc of Python numbers is no Python number
        if where_mask is True:
            return trace.record(handler, args, {})
        if fallback is None:
            raise NotDifferentiable(
                f"{where()}: where= without out= leaves values undefined; use np.where or give out="
            )
        safe = np.atleast_2d(handler.domain).mean(axis=-1)
        args = [np.where(where_mask, arg, safe[i % len(safe)].astype(_dtype(arg))) for i, arg in enumerate(args)]
        return np.where(where_mask, trace.record(handler, args, {}), fallback)

    @staticmethod
    def reduce(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        array, axis = given.pop("array"), given.pop("axis", 0)
        given = {name: value for name, value in given.items() if value is not None and value is not np._NoValue}
        if ufunc in _REDUCTIONS:
            return _REDUCTIONS[ufunc](array, axis=axis, **given)
        keepdims = given.pop("keepdims", False)
        start = [given.pop("initial")] if "initial" in given else []
        if given or not isinstance(axis, int):
            raise NotDifferentiable(f"{where()}: {_called(ufunc)}.reduce with these options has no derivative rule")
        rows = [*start, *np.moveaxis(array, axis, 0)]
        total = rows[0]
        for row in rows[1:]:
            total = ufunc(total, row)
        return np.expand_dims(total, axis) if keepdims else total

    @staticmethod
    def accumulate(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        given = {**dict(zip(("array", "axis", "dtype"), args, strict=False)), **kwargs}
        array, axis = given.pop("array"), given.pop("axis", 0)
        if given.pop("dtype", None) is not None:
            raise NotDifferentiable(f"{where()}: {_called(ufunc)}.accumulate(dtype=) has no derivative rule")
        if ufunc in _SCANS:
            return _SCANS[ufunc](array, axis=axis)
        rows = list(np.moveaxis(array, axis, 0))
        for i in range(1, len(rows)):
            rows[i] = ufunc(rows[i - 1], rows[i])
        return np.stack(rows, axis=axis)

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
        spec, arrays = _split_index(key, x)
        if ufunc in (np.add, np.subtract):
            value = values[0] if ufunc is np.add else -values[0]
            x.assign(trace.record(index.INDEX_ADD, (x, value, *arrays), {"spec": spec}), f"{_called(ufunc)}.at")
            return
        named = index.fill(spec, [_plain(array) for array in arrays])
        places = np.arange(x.value.size).reshape(x.value.shape)[named]
        if np.unique(places).size != places.size or any(type(a) is Tracer and a.node.active for a in arrays):
            raise NotDifferentiable(f"{where()}: {_called(ufunc)}.at has a derivative rule only where no index repeats")
        x[key] = ufunc(x[key], *values)

    @staticmethod
    def reduceat(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        array, starts, *rest = args
        axis = rest[0] if rest else kwargs.get("axis", 0)
        rows = np.moveaxis(array, axis, 0)
        starts = [operator.index(i) for i in starts]
        ends = [*starts[1:], len(rows)]
        parts = [ufunc.reduce(rows[i:j]) if i < j else rows[i] for i, j in zip(starts, ends, strict=True)]
        return np.stack(parts, axis=axis)


_REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min, np.logical_and: np.all,
    np.logical_or: np.any,
}  # fmt: skip
_SCANS: dict[Any, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}


def _dtype(x: Any) -> np.dtype[Any]:
    return x.dtype if hasattr(x, "dtype") else np.result_type(x)  # type: ignore[no-any-return]


def _is_numpy(x: Any) -> bool:
    value = x.value if type(x) is Tracer else x
    return isinstance(value, (np.ndarray, np.generic, list, tuple))


_install()
