"""The Tracer: a value of a traced run, in place of what NumPy or Python would have.

It carries the concrete value and the node that computes it, answers Python's operators by recording, and hands shapes and
dtypes over from the value itself. Where Python looks at it (``if``, ``int``, ``range``) it has the run note a guard. What it
asks of the run that it belongs to, recording and NumPy's functions, goes by way of ``tape`` (see ``symgrad.tracing.trace``).

In-place writes become new nodes: a Tracer is a name that can be bound to a later node. A Tracer that NumPy would have
made a view remembers its base, writes through to it, and looks again when the base has changed.
"""

from __future__ import annotations

import operator
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from threading import get_ident
from typing import Any, NamedTuple, Protocol

import numpy as np

from symgrad import pytree
from symgrad.errors import EscapedTracer, LeavesNumPy, MutatedInput, NotDifferentiable, SymgradError
from symgrad.ir import Aval, Node
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY, Op, Traced, literal
from symgrad.ops.elementwise import operator_power
from symgrad.ops.engine import ASTYPE, BOOL, INT, ROUND, TO_ARRAY, TO_PYTHON
from symgrad.source.origins import module_of
from symgrad.tracing.frames import INTO_PLAIN, instead_of_scipys, is_numpys, leaving, unpacked, user_frame, where

__all__ = [
    "ACTIVE", "ADVICE", "AS_ARRAYS", "EINSUM", "NUMBERS", "OWN", "Run", "Tracer", "active_trace", "escaped", "into_plain",
    "look_at_size", "plain", "split_index", "tracers",
]  # fmt: skip
NUMBERS: frozenset[Any] = frozenset({float, int, complex, bool, *(np.dtype(kind).type for kind in "?bhilqBHILQefdgFDG")})
EINSUM, _REAL, _IMAG, _TRUNC = (REGISTRY[fun] for fun in (np.einsum, np.real, np.imag, np.trunc))
_TRUTH = np.dtype(bool)
AS_ARRAYS = frozenset({"__array_interface__", "__array_struct__"})  # by which NumPy finds memory, in an object or its class
ACTIVE: ContextVar[Any] = ContextVar("symgrad_trace", default=None)
# the trace that runs in this thread (or context) now, if any; not a function of Python's, for it is asked at every call
active_trace = ACTIVE.get
_METHODS_OF_NUMPY = os.path.join(os.path.dirname(np.__file__), "_core", "_methods.py")
ADVICE = (
    "give it a rule with symgrad.primitive or symgrad.custom_vjp, write it with other NumPy functions, "
    "or wrap its argument in symgrad.stop_gradient if it is a constant"
)


def escaped(tracer: Tracer) -> EscapedTracer:
    line = tracer.node.line
    born = f" (it was made at {line[0]}:{line[1]})" if line else ""
    if tracer.tape.open and tracer.tape.thread != get_ident():
        return EscapedTracer(
            f"{where()}: a traced value{born} is used in another thread than the function that is differentiated; "
            "compute in one thread, or differentiate what each thread does"
        )
    return EscapedTracer(
        f"{where()}: a traced value{born} is used after the call that made it has ended; return it from the function "
        "(has_aux=True returns more than the output), or keep symgrad.stop_gradient(x), instead of keeping it"
    )


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
        kind = type(tracer.like)
        if not hasattr(kind, self.name):
            raise _Missing(f"{kind.__name__!r} object has no {self.name}")
        return self.function.__get__(tracer)


class Peek(NamedTuple):
    """Python looked at ``node``, which hangs on no argument, when there were so many guards, and saw ``value``, if that is not
    None: it took it out as a plain number then."""

    node: Node
    guards: int
    value: Any = None


class Run(Protocol):
    """What Tracers and NumPy's protocols ask of the run that they belong to: see ``symgrad.tracing.trace.Trace``."""

    draft: Any
    symbolic: bool
    open: bool
    thread: int
    user: bool
    watched: bool
    lent: bool
    shaped: bool
    lanes: int
    phase: str | None
    double_where: bool
    leaves_out: bool
    hooks: Any
    graph: Any
    guards: list[Any]
    peeks: list[Peek]
    values: dict[Node, Any]
    ends: dict[Node, Node]
    writes: list[Any]
    outside: dict[int, tuple[Tracer, Any]]
    taken: list[tuple[weakref.ReferenceType[Tracer], Run]]
    selections: Any
    exemplary: bool
    coarse: bool
    unfit: str

    @property
    def rollers(self) -> Any: ...

    @property
    def mixed(self) -> dict[Node, Any]: ...

    @property
    def iterates(self) -> bool: ...

    def takes(self, mask: Tracer) -> bool: ...
    def finds(self, x: Tracer, key: Any) -> None: ...
    def is_just_made(self, node: Node) -> bool: ...
    def names_some(self, start: Node, stop: Node, size: int) -> bool: ...
    def window(self, x: Tracer, key: Any) -> Any: ...
    def growing(self, x: Tracer, key: Any) -> Any: ...
    def slid(self, x: Tracer, key: Any) -> Any: ...
    def ended(self, x: Tracer, key: Any) -> Any: ...
    def written_growing(self, x: Tracer, key: Any) -> tuple[Tracer, Tracer] | None: ...
    def written_window(self, x: Tracer, key: Any) -> tuple[index.Spec, list[Any]] | None: ...
    def written(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any: ...
    def record(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any: ...
    def run(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Node: ...
    def lookup(self, node: Node) -> Tracer: ...
    def computed(self, node: Node) -> Any: ...
    def see_from(self, result: Tracer, base: Tracer, op: Op, rest: Sequence[Any], params: dict[str, Any]) -> None: ...
    def lane(self, x: Tracer) -> Tracer: ...
    def constant_like(self, number: complex, aval: Aval) -> Tracer: ...
    def constant(self, value: Any) -> tuple[Node, Any]: ...
    def gather(self, value: Any) -> Tracer: ...
    def adopt(self, value: Any) -> Tracer: ...
    def admit(self, x: Tracer) -> Tracer: ...
    def array_function(self, like: Tracer, func: Any, args: Any, kwargs: Any) -> Any: ...
    def array_ufunc(self, ufunc: np.ufunc, method: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any: ...
    def guard(self, node: Node, value: Any) -> None: ...
    def guard_layouts(self) -> None: ...
    def lies_densely(self) -> bool: ...
    def note(self, reason: str) -> None: ...
    def text(self, words: str) -> str: ...
    def refuse(self, error: SymgradError) -> SymgradError: ...
    def told_apart(self, place: Any) -> None: ...
    def shows_kind(self, x: Tracer) -> None: ...
    def asks_dtype(self, x: Tracer) -> None: ...
    def alone(self, x: Tracer) -> Tracer: ...
    def look_again(self, x: Tracer) -> None: ...


class Tracer(Traced):
    """A value of a traced run: ``value`` as NumPy or Python has it, ``node`` that computes it.

    ``like`` is of the value's type, shape, dtype and strides: the value itself, unless that is computed ``later``.

    Behaves as its value does: operators, methods, attributes, NumPy's functions; ``isinstance`` sees the value's type.
    ``base``, ``how`` and ``seen`` make it a view: of which Tracer, by which operation, and of which ``version`` of it.
    ``lent`` are the arrays that ``np.asarray`` made of it; ``written``: the index of the node that was to come
    when it was last changed in place; ``parted``: the loops that hang on what they do whether this is another name of an array,
    or another array.
    """

    __slots__ = (
        *("__weakref__", "base", "frozen", "how", "later", "lent", "like"),
        *("node", "parted", "seen", "tape", "version", "written"),
    )
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000  # above its own: pandas leaves operators to us, who say what to do
    like: Any

    def __init__(self, tape: Run, node: Node, like: Any, frozen: bool | str = False, later: bool = False) -> None:
        self.tape, self.node, self.like, self.frozen, self.later = tape, node, like, frozen, later
        self.base: Tracer | None = None
        self.how: Any = None
        self.lent: list[Callable[[], Any]] | None = None
        self.version = self.seen = 0
        self.written = -1
        self.parted: frozenset[Any] = frozenset()

    @property
    def value(self) -> Any:
        """The value; computed now, if it was not yet."""
        if self.later:
            self.like, self.later = self.tape.computed(self.node), False
        return self.like

    @value.setter
    def value(self, value: Any) -> None:
        self.like, self.later = value, False

    def owner(self) -> Tracer:
        """What this is a view of, in the end; itself, if it is none."""
        result = self
        while result.base is not None:
            result = result.base
        return result

    def touch(self) -> None:
        """Note that it is changed in place, and so are its other names."""
        self.written = self.tape.graph.next_index
        self.tell_apart()

    def tell_apart(self) -> None:
        """Somebody can tell from now on whether it is another name of an array, or another array."""
        for place in self.owner().parted:
            self.tape.told_apart(place)

    def bind(self, new: Tracer) -> None:
        """Be another value from here on."""
        self.node, self.like, self.later = new.node, new.like, new.later

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(x, np.ndarray) in the user's code asks for this
        return type(self.like)

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return self.tape.record(op, args, params)

    def adopt(self, value: Any) -> Any:
        return self.tape.adopt(value)

    def come(self) -> None:
        """Be of the trace that runs, if it is an earlier call's, which left it behind."""
        if not self.tape.open and (trace := active_trace()) is not None:
            trace.admit(self)

    # ---- in place ----

    def refresh(self) -> None:
        """Look again at the base of a view, when the base has changed."""
        base = self.base
        assert base is not None
        if base.base is not None:
            base.refresh()
        elif base.tape.outside:
            base.tape.look_again(base)
        if base.version != self.seen:
            op, rest, params = self.how
            tape = base.tape
            if self.tape is not tape:  # which has taken the base in, a draft until then
                tape.taken.append((weakref.ref(self), self.tape))
                self.tape = tape
            found = tape.lookup(tape.run(op, (base, *rest), params))
            tape.see_from(found, base, op, rest, params)
            self.bind(found)
            self.seen = base.version
            self.version += 1  # views of this one must look again, too

    def may_be_written(self) -> bool:
        """Whether the function has made it itself, and NumPy would let it be written."""
        if not self.like.flags.writeable or self.frozen:
            return False
        return self.base is None or self.base.frozen == LOCKED or self.base.may_be_written()

    def _check_writable(self, verb: str) -> None:
        if not isinstance(self.like, np.ndarray):
            raise TypeError(f"{where()}: {type(self.like).__name__} does not support {verb}")
        self.come()
        if not self.tape.open or self.tape.thread != get_ident():
            raise escaped(self)
        if self.tape.shaped:
            self.tape.guard_layouts()
        self.tape.asks_dtype(self)
        if self.frozen == LOCKED:
            raise ValueError(f"{where()}: assignment destination is read-only")
        one: Tracer | None = self
        while one is not None:
            if one.frozen and one.frozen != LOCKED and not (self.tape.hooks is not None and self.tape.hooks.writes_to(one)):
                why = (
                    f"{where()}: {verb} would change in place what the function did not make itself (an argument, or an array "
                    "from outside); copy it first: x = x.copy()"
                )
                raise self.tape.refuse(MutatedInput(why))
            if one.lent is not None and not one.tape.draft and any(ref() is not None for ref in one.lent):
                why = (
                    f"{where()}: {verb} would change an array in place of which np.asarray made a second name, which cannot "
                    "follow; write np.array(x), which copies, symgrad.numpy.asarray(x), or x = x + y for x += y"
                )
                raise self.tape.refuse(MutatedInput(why))
            if one.base is not None and not one.like.flags.writeable and one.base.like.flags.writeable:
                raise ValueError(f"{where()}: assignment destination is read-only")
            one = one.base

    def show(self, x: Tracer, op: Any, rest: Any, params: Any) -> None:
        """Be a view of ``x``, which may not be written to where that is locked now."""
        self.base, self.how, self.seen = x, (op, rest, params), x.version
        if x.frozen == LOCKED:
            self.frozen = LOCKED

    def assign(self, new: Tracer, verb: str, casting: Any = "same_kind") -> None:
        """Bind this name to a new value: what an in-place write means here. Views write through to their base."""
        self._check_writable(verb)
        self.touch()
        if self.tape.watched and self.base is None:  # views write through
            self.tape.writes.append(self)
        if self.tape.selections is not None:
            self.tape.selections.written(self, new)
        like = self.like
        if new.like.dtype != like.dtype:
            if not np.can_cast(new.like.dtype, like.dtype, casting):
                raise TypeError(f"{where()}: {verb} cannot cast {new.like.dtype} to {like.dtype} in place")
            new = new.astype(like.dtype)
        if new.like.shape != like.shape:
            new = np.broadcast_to(new, like.shape)  # type: ignore[assignment]
        if self.tape.draft and self.tape.draft.put(self, ..., new):
            return
        if type(new.like) is not np.ndarray:
            new = TO_ARRAY(new)
        if self.tape.outside and id(self) in self.tape.outside:
            if new.node.differentiated:
                raise self.tape.refuse(MutatedInput(into_plain(verb)))
            array = self.tape.outside[id(self)][1]
            array[...] = new.value
            self.tape.hooks.wrote_array(array, self)
        if self.base is not None:
            self.refresh()
            locked, self.base.frozen = self.base.frozen, self.base.frozen if self.base.frozen != LOCKED else False
            try:  # the lock is the base's own
                self._write_through(new, verb)
            finally:
                self.base.frozen = locked
            if new.like.strides != self.like.strides:  # stay a view as NumPy has it: whether ravel() copies hangs on it
                self.refresh()
                return
            self.seen = self.base.version
        self.bind((new if new.base is None else new.copy("K")).laid_as(like))  # what is written to lies in memory as it did
        self.version += 1

    def _write_through(self, new: Tracer, verb: str) -> None:
        """Change the base of this view so that the view is ``new``."""
        base = self.base
        assert base is not None
        op, rest, params = self.how
        if op is index.GETITEM:
            base.write(params["spec"], rest, new, verb)
        elif op in (_REAL, _IMAG) and np.iscomplexobj(base.like):
            parts = (new, np.imag(base)) if op is _REAL else (np.real(base), new)
            base.assign(self.tape.record(index.COMPLEX, parts, {}), verb)
        elif op is not EINSUM and self.like.size == base.like.size:  # its transpose is its inverse
            base.assign(op.vjp(0, new, self, (base, *rest), params), verb)
        else:  # where did each element come from?
            places = op.fun(np.arange(base.like.size).reshape(base.like.shape), *rest, **params)
            arrays = np.unravel_index(places, base.like.shape)
            base.write(tuple(index.Hole(i) for i in range(len(arrays))), arrays, new, verb)

    def write(self, spec: index.Spec, arrays: Sequence[Any], new: Any, verb: str) -> None:
        """``self[index] = new``."""
        self._check_writable(verb)
        if self.base is not None:
            self.refresh()
        if self.tape.draft and self.tape.draft.put(self, index.fill(spec, arrays), new):
            return
        if not self.like.shape and (not arrays or len(spec) == 1 == len(arrays)):  # of a 0-d array, all of it or nothing
            if not np.size(new.like if type(new) is Tracer else new):
                return
            whole = np.reshape(self.tape.gather(new), ())
            self.assign(self.tape.gather(np.where(arrays[0], whole, self) if arrays else whole), verb, "unsafe")
            return
        shape = np.shape(new.like if type(new) is Tracer else new)
        if shape[:1] == (1,):  # NumPy leaves out axes of one number that come first
            spare = len(shape) - len(index.region(spec, self.like.shape, plain(list(arrays))))
            new = np.reshape(new, shape[spare:]) if spare > 0 else new
        more = self._added(spec, arrays, new)
        op, value = (index.SETITEM, new) if more is None else (index.INDEX_ADD, more)
        self.assign(self.tape.record(op, (self, value, *arrays), {"spec": spec}), verb)

    def _added(self, spec: index.Spec, arrays: Sequence[Any], new: Any) -> Any:
        """What ``self[spec] = new`` adds to slices, as ``x[1:-1] += v`` does: derivatives pass by what was there."""
        slices = all([type(part) is index.Slice or (type(part) is index.Hole and part.once) for part in spec])
        if type(new) is not Tracer or new.node.op not in _SUMS or not slices:
            return None
        place = (self.node, *[array.node for array in arrays])
        first, second = new.node.args
        for old, more in ((first, second), (second, first))[: 1 if new.node.op is _SUBTRACT else 2]:
            same = old.op is index.GETITEM and old.args == place and dict(old.params)["spec"] == spec
            number = more.aval.dtype == old.aval.dtype and not more.aval.shape
            if same and old.aval == new.node.aval and (number or more.aval == old.aval):
                value = self.tape.lookup(more)
                return self.tape.record(_NEGATIVE, (value,), {}) if new.node.op is _SUBTRACT else value
        return None

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tape.finds(self, key)
        if self.tape.draft and self.base is None and type(value) in NUMBERS and _is_place(key):
            self.tape.draft.set(self, key, value)
            return
        if type(key) is tuple and _has_flags(key):
            axes, key = _without_flags(key)
            self[axes][key] = value
            return
        found = self.tape.written_window(self, key) if self.tape.rollers else None
        x, spec, arrays = self, *(found or ((), []))
        if found is None and self.tape.rollers and (grown := self.tape.written_growing(self, key)) is not None:
            x, mask = grown
            spec, arrays = WHOLE, [mask]
        elif found is None:
            spec, arrays = split_index(key, self, sized=np.ndim(value) > 0)
        if type(value) is Tracer and value.base is not None and _is_seen(value, x, (index.GETITEM, arrays, {"spec": spec})):
            return  # the end of x[i] += v, which has written through already
        x.write(spec, arrays, value, "x[i] = v")

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
        if self.tape.draft:
            self.value.setflags(**flags)
            return
        raise MutatedInput(f"{where()}: x.setflags() of a traced array; leave it out")

    # ---- Python's looks at a value ----

    def _asked(self) -> Tracer:
        """The same, which somebody looks at: how many elements it has may be known by now."""
        self.come()
        if self.tape.selections is not None:
            self.tape.selections.look_at(self)
        return self

    def look(self, kind: type) -> Any:
        """The plain bool or int of this value; the trace notes that Python has seen it."""
        trace = self._asked().tape
        if not trace.open or trace.thread != get_ident():
            raise escaped(self)
        if self.base is not None:
            self.refresh()
        seen = kind(self.value)
        if not trace.symbolic and not trace.lanes:
            return seen
        node = self.node
        if kind is int and node.aval.dtype.kind not in "iu":
            many = trace.lanes and node.aval.dtype.kind == "f"  # some of which may not fit into an int64
            node = trace.run(_TRUNC if many else INT, (self,), {})
        elif kind is bool and node.aval.dtype.kind != "b":
            node = trace.run(BOOL, (self,), {})
        trace.guard(node, seen)
        return seen

    def leave(self, refusal: Callable[[], str] | None = None) -> Any:
        """The plain value, where no derivative can be lost; generated code compares a number, or is not made at all."""
        trace = self._asked().tape
        if not trace.open or trace.thread != get_ident():
            raise escaped(self)
        if self.base is not None:
            self.refresh()
        node, value = self.node, unwritable(self.value) if type(self.value) is np.ndarray else self.value
        if node.differentiated:
            raise trace.refuse(LeavesNumPy(f"{where()}: {refusal() if refusal else _refusal('number')}"))
        if not node.active:
            trace.peeks.append(Peek(node, len(trace.guards)))
            return value
        if not trace.symbolic and not trace.lanes:
            return value
        wide = isinstance(value, (np.ndarray, np.longdouble, np.clongdouble))
        if np.ndim(value) or wide or value != value or (value == 0 and isinstance(value, (complex, np.complexfloating))):
            trace.note("plain numbers are made of values that were given as arguments")  # NaN equals nothing
        elif value == 0 and isinstance(value, (float, np.floating)):
            trace.guard(node, float(value))
            sign = trace.run(REGISTRY[np.signbit], (self,), {})
            trace.guard(sign, bool(trace.computed(sign)))  # -0.0 equals 0.0
        else:
            trace.guard(node, value.item() if isinstance(value, np.generic) else value)
        return value

    def __bool__(self) -> bool:
        return bool(self.look(bool))

    def __int__(self) -> int:
        return int(self.look(int))

    __trunc__ = __int__

    def __index__(self) -> int:
        if self.node in self.tape.mixed:
            self.tape.shows_kind(self)
        operator.index(self.value)
        return int(self.look(int))

    def __floor__(self) -> int:
        return int(np.floor(self))

    def __ceil__(self) -> int:
        return int(np.ceil(self))

    def __round__(self, ndigits: int | None = None) -> Any:
        if ndigits is not None and self.node in self.tape.mixed:
            self.tape.shows_kind(self)
        if not hasattr(type(self.like), "__round__"):
            return round(self.like)  # which raises an error
        if ndigits is None:
            return int(self if self.node.aval.dtype.kind in "iu" else np.rint(self))
        if self.node.aval.kind != "python":  # NumPy's own, which rounds another number
            return np.round(self, ndigits)
        return self.record(ROUND, (self,), {"ndigits": ndigits})

    def is_integer(self) -> bool:
        return bool(_binary(np.remainder, self, 1) == 0)

    def __float__(self) -> float:
        self.tape.lent = True
        return float(self.leave())

    def __complex__(self) -> complex:
        return complex(self.leave())

    def __hash__(self) -> int:
        if isinstance(self.like, np.ndarray):
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(
            self.leave(
                lambda: (
                    "a traced value cannot be a dict key, a member of a set or an argument of a cached function, "
                    "where its derivative would be lost; use a list, or a plain number as key"
                )
            )
        )

    @property
    def __symgrad_key__(self) -> Any:
        return self.value

    def _text(self, show: Callable[[Any], str]) -> str:
        """Text of a value. What a derivative follows is marked, so that no float() of it loses the derivative."""
        if self.base is not None and self.tape.open:
            self.refresh()
        if not self.tape.open or self.tape.thread != get_ident():
            return f"Traced({self.node.aval if self.later else show(self.value)})"
        if self.node in self.tape.mixed:
            self.tape.shows_kind(self)
        if not self.node.differentiated:
            return show(self.leave())
        return self.tape.text(f"Traced({show(self.value)})")

    def __repr__(self) -> str:
        return self._text(repr)

    def __str__(self) -> str:
        return self._text(str)

    def __format__(self, spec: str) -> str:
        return self._text(lambda value: format(value, spec))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self.come()
        if not self.tape.open or self.tape.thread != get_ident():
            raise escaped(self)
        if self.base is not None:
            self.refresh()
        if self.tape.draft:
            return np.array(self.tape.draft.lend(self), dtype, copy=copy)
        self._asked()
        value, self.tape.lent = self.value, True
        if not np.size(value):  # which has no derivative to lose
            return np.array(value, None if dtype == object else dtype)
        whole = np.asarray(value).dtype.kind in "iub" if np.ndim(value) else not self.node.active
        if whole or (dtype is not None and np.dtype(dtype) != object):
            return np.array(self.leave(lambda: _refusal("array")), dtype)
        if instead := _of_memory():
            raise NotDifferentiable(f"{where()}: {instead}")
        if np.size(value) > 4096 and (instead := instead_of_scipys()):
            raise LeavesNumPy(f"{where()}: {instead}")
        if np.size(value) > 4096:
            raise LeavesNumPy(
                f"{where()}: np.asarray or np.array takes a traced array of {np.size(value)} elements apart; leave it out, "
                "or use symgrad.numpy.asarray"
            )
        out = np.empty_like(value, dtype=object)  # in the same order: whether NumPy copies it hangs on that
        for place in np.ndindex(out.shape):
            part = self[place] if place else self[()] if isinstance(value, np.ndarray) else self
            out[place] = part if dtype is None else TO_PYTHON(part)  # as objects, numbers are Python's
        if not copy:
            out.flags.writeable = False
            one: Tracer | None = self if isinstance(value, np.ndarray) else None
            while one is not None:
                one.lent = [*(one.lent or ()), weakref.ref(out)]
                one = one.base
        return out

    def __len__(self) -> int:
        return len(self._asked().like)

    def __iter__(self) -> Iterator[Any]:
        if np.ndim(self._asked().like) == 0:
            raise TypeError(f"{where()}: iteration over a 0-d value")
        names = unpacked(user_frame()) if self.tape.symbolic and self.tape.user else []
        return (self._part(i, names) for i in range(len(self.like)))

    def _part(self, i: int, names: list[str]) -> Any:
        """An element, under the name that an unpacking gives it."""
        part = self[i]
        if i < len(names):
            part.node.name = names[i]
        return part

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self == item))

    def __getitem__(self, key: Any) -> Any:
        self.come()
        self.tape.finds(self, key)
        if self.tape.draft and self.base is None and _is_place(key):
            found = self.value[key]
            if type(found) is not np.ndarray:
                return found
        if self.tape.rollers and (found := self.tape.window(self, key)) is not None:
            return found
        if self.tape.rollers and (found := self.tape.growing(self, key)) is not None:
            return found
        if slides(key) and (found := self.tape.slid(self, key)) is not None:
            return found
        if ends(key) and (found := self.tape.ended(self, key)) is not None:
            return found
        if type(key) is tuple and _has_flags(key):
            axes, key = _without_flags(key)
            return self[axes][key]
        spec, arrays = split_index(key, self)
        written = self._written_at(spec, arrays)
        return self.tape.record(index.GETITEM, (self, *arrays), {"spec": spec}) if written is None else written

    def _written_at(self, spec: index.Spec, arrays: Sequence[Any]) -> Tracer | None:
        """The number that was just written where it is read: so iterations that read what they wrote need nothing of others."""
        node, tape = self.node, self.tape
        if node.op is not index.SETITEM or self.base is not None or dict(node.params)["spec"] != spec or tape.selections:
            return None
        value, *places = node.args[1:]
        if len(spec) != len(node.aval.shape) or any(type(part) not in (int, index.Hole) for part in spec):
            return None
        if places != [array.node if type(array) is Tracer else None for array in arrays] or value in tape.mixed:
            return None
        if value.aval != node.aval._replace(shape=(), kind="scalar") or any(place.aval.shape for place in places):
            return None
        return tape.lookup(value) if tape.is_just_made(node) else None

    def item(self, *place: Any) -> Any:
        """The element as a Python number; it stays traced."""
        if len(place) == 1 and isinstance(place[0], tuple):
            (place,) = place
        one: Any = self if not place else np.reshape(self, -1)[place[0]] if len(place) == 1 else self[place]
        if type(one) is not Tracer:  # of an array that is filled with plain numbers
            return one.item()
        if np.size(one._asked().like) != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return one.tape.record(TO_PYTHON, (one,), {})

    def tolist(self) -> Any:
        return self.item() if np.ndim(self.like) == 0 else [row.tolist() for row in self]

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            raise TypeError("pow() with three arguments is for integers")
        ufunc = operator_power(self.like, other)
        return _binary(np.power, self, other) if ufunc is None else ufunc(self)

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        return _binary(np.power, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __copy__(self) -> Any:
        return self.copy("K") if isinstance(self.like, np.ndarray) else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce__(self) -> Any:
        if self.tape.draft:
            return np.array(self.value).__reduce__()
        raise LeavesNumPy(
            f"{where()}: a traced value cannot be pickled, saved or sent to another process; return it from the function"
        )

    def __bytes__(self) -> bytes:
        return bytes(self.leave())

    # ---- NumPy's protocols ----

    def over(self, y: Any) -> Any:
        return _over(self.tape, self.node, y.node, 4) if isinstance(y, Tracer) else None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        if any([type(arg) not in _OPERANDS and _computes(type(arg)) for arg in args]):
            return NotImplemented
        return self.tape.array_ufunc(ufunc, method, args, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if len(types) > 1 and any([kind is not Tracer and _computes(kind, "__array_function__") for kind in types]):
            return NotImplemented
        if not kwargs:
            op = REGISTRY.get(func)
            if isinstance(op, Op) and len(args) == op.arity():
                return self.tape.record(op, args, {})
        return self.tape.array_function(self, func, args, kwargs)

    # ---- attributes ----

    @property
    def shape(self) -> tuple[int, ...]:
        return self._asked().like.shape  # type: ignore[no-any-return]

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise MutatedInput(f"{where()}: x.shape = ... changes a traced array in place; write x = x.reshape(shape)")

    @property
    def dtype(self) -> np.dtype[Any]:
        if type(self.like) is not np.ndarray and sys._getframe(1).f_code.co_filename == _METHODS_OF_NUMPY:
            raise AttributeError  # np.mean of a list of Tracers would make the sum a plain np.float64
        return self.like.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return self.like.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        return self._asked().like.size  # type: ignore[no-any-return]

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
        if not np.iscomplexobj(self.like):
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
        getattr(self.like, name)
        return function(self)

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        shape = shape[0] if len(shape) == 1 else shape
        result = np.reshape(self, shape) if order == "C" else np.reshape(self, shape, order=order)
        if copy is not None and not copy and isinstance(result, Tracer):
            self.tape.guard_layouts()  # on which it hangs whether NumPy copies
            if result.base is None:
                raise ValueError("Unable to avoid creating a copy while creating an array as requested.")
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
        if dtype.kind in "SUV":
            self.leave(lambda: f"x.astype({dtype}) makes text or bytes of a traced value, and its derivative would be lost")
        if not copy and dtype == self.dtype and (order not in ("C", "F") or self.flags[order]):
            return self
        result: Any = self.tape.record(ASTYPE, (self,), {"dtype": dtype})
        return result.copy(order) if order in ("C", "F") and not result.flags[order] else result

    def copy(self, order: str = "C") -> Any:
        """A Tracer of its own for the same value: later writes to one do not reach the other."""
        if self.base is not None:
            self.refresh()
        layout: Any = order if order in ("C", "F", "A", "K") else "C"  # whether a later reshape is a view hangs on it
        if self.later and isinstance(self.like, np.ndarray):
            return Tracer(self.tape, self.node, np.empty_like(self.like, order=layout), later=True)
        value = np.array(self.value, order=layout) if isinstance(self.value, np.ndarray) else self.value
        return Tracer(self.tape, self.node, value)

    def laid_as(self, other: Any) -> Any:
        if not isinstance(other, np.ndarray) or self.base is not None or other.strides == self.like.strides:
            return self
        laid = np.empty_like(other, self.like.dtype)
        if not self.later:
            laid[...] = self.like
        return Tracer(self.tape, self.node, laid, later=self.later)

    def second_name_of(self, array: Any) -> None:
        self.lent = [*(self.lent or ()), _OfObjects(array, self.tape)]

    def flatten(self, order: str = "C") -> Any:
        return np.ravel(self, order=order).copy()  # type: ignore[call-overload]

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        if (dtype is None or dtype is np.ndarray or dtype == self.dtype) and type in (None, np.ndarray):
            return self[...]
        if self.tape.draft:
            return self.tape.draft.lend(self).view(*[given for given in (dtype, type) if given is not None])
        raise NotDifferentiable(f"{where()}: x.view({dtype}) reinterprets memory; use x.astype or x.real and x.imag")

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
        return np.clip(self, min, max, out=out, **options)

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        self.like.to_device(device, stream=stream)  # which knows one device only
        return self

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        return np.searchsorted(self, v, side=side, sorter=sorter)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        return np.compress(condition, self, axis=axis, out=out)

    def has(self, name: str) -> bool:
        """What ``hasattr`` says of the value; but others' operators are told to leave off."""
        return hasattr(self.like, name) or name == "__pandas_priority__"

    def lacks(self, name: str) -> None:
        """Raise where the value has no attribute of the name of one of ``OWN``."""
        if not hasattr(self.like, name):
            raise AttributeError(_without(self.like, name), name=name, obj=self)

    def flags_of(self, array: Any) -> Any:
        """``x.flags``, of what lies in memory as it does."""
        own = isinstance(array, np.ndarray) and not self.tape.draft and self.frozen in (False, LOCKED)
        return Flags(self, array.flags) if own else array.flags

    def memory(self, name: str) -> Any:
        """One of ``AS_ARRAYS``, which no Tracer has for NumPy."""
        value = self.leave(lambda: f".{name} tells where an array lies, and its derivative would be lost; use x.shape, x.dtype")
        return getattr(value, name)

    def __getattr__(self, name: str) -> Any:
        if name in _ELEMENTWISE and not isinstance(self.like, np.ndarray):
            # NumPy calls these on each element of an object array, such as np.array([t0, t1]) makes
            return lambda *args: getattr(np, name)(self, *args)
        if hasattr(Tracer, name) or not hasattr(self.like, name) or (name.startswith("__") and name != "__array_namespace__"):
            raise AttributeError(_without(self.like, name))
        if name == "flags" and np.ndim(self.like) > 1:
            self.tape.guard_layouts()
        if name == "strides" and not self.tape.lies_densely():
            self.tape.note(".strides looks at the memory of an array")
        if name == "flags":
            return self._asked().flags_of(self.like)
        if name in ("nbytes", "itemsize", "strides", "device", "__array_namespace__"):
            return getattr(self._asked().like, name)
        if self.tape.draft:
            return getattr(self.tape.draft.lend(self), name)
        value = self.leave(lambda: f".{name} takes a traced value out of NumPy and loses its derivative; {ADVICE}")
        return self._writing(name, value) if name in ("setfield", "byteswap") else getattr(value, name)

    def _writing(self, name: str, value: Any) -> Any:
        """A method that may write into the array, whose ``value`` the trace has to itself."""

        def method(*args: Any, **kwargs: Any) -> Any:
            written = value.copy("K")
            made = getattr(written, name)(*args, **kwargs)
            if written.tobytes() != value.tobytes():
                self[...] = written
            return self if made is written else made

        return method


class Flags:
    """``x.flags`` of a traced array that the function has made, which it may lock; as they are when they are asked for."""

    __slots__ = ("_flags", "_locked", "_of")

    def __init__(self, x: Tracer, flags: Any) -> None:
        for name, value in (("_of", x), ("_flags", flags), ("_locked", x.frozen == LOCKED)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        return False if name in _LOCKS and self._locked else getattr(self._flags, name)

    def __getitem__(self, name: str) -> Any:
        return False if name.lower() in (*_LOCKS, "w") and self._locked else self._flags[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "writeable":
            setattr(self._flags, name, value)  # NumPy says what is an error
        elif not value:
            self._of.frozen = LOCKED
        elif (owner := self._of.owner()) is not self._of and owner.frozen == LOCKED:
            raise ValueError("cannot set WRITEABLE flag to True of this array")
        elif self._of.frozen != LOCKED:
            self._flags.writeable = True
        else:
            self._of.frozen = False

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, "writeable" if name.lower() in ("w", "writeable") else name.lower(), value)

    def __eq__(self, other: object) -> bool:
        return bool(self._flags == (other._flags if type(other) is Flags else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._flags)


LOCKED = "locked"  # in place of ``frozen``: the function has made it read-only
_LOCKS = ("writeable", "behaved", "carray", "farray")


def _without(value: Any, name: str) -> str:
    """What Python says of an attribute that is not there."""
    kind = type(value)
    own = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"{own!r} object has no attribute {name!r}"


def _over(tape: Run, node: Node, y: Node, depth: int) -> Any:
    """By what a node is a multiple of another, a number or of its shape, seen in the last few steps that made it; or None."""
    if node is y or (node.op is y.op and node.args == y.args and node.params == y.params):
        return 1.0
    if not depth or node.op not in (_ADD, _MULTIPLY, _NEGATIVE, _POWER) or node.aval.shape != y.aval.shape:
        return None
    if node.op is _POWER:
        exponent = None if node.args[1].active or _over(tape, node.args[0], y, 0) is None else _known(tape, node.args[1])
        if not isinstance(exponent, (int, float)) or not (exponent == 1 or exponent >= 2):  # else the factor has no slope at 0
            return None
        return tape.lookup(y) ** (exponent - 1)
    first, *rest = [_over(tape, arg, y, depth - 1) for arg in node.args]
    if node.op is _NEGATIVE:
        return None if first is None else -first
    (second,) = rest
    if node.op is _ADD:
        return None if first is None or second is None else first + second
    part, factor = (second, node.args[0]) if first is None else (first, node.args[1])
    if part is None or factor.aval.shape not in ((), y.aval.shape):
        return None
    number = literal(factor)
    return part * (tape.lookup(factor) if number is None else number)


def _known(tape: Run, node: Node) -> Any:
    """The value of a number that stays as it is: in code, that of literals alone."""
    return literal(node) if tape.symbolic else tape.lookup(node).value


_SUMS = _ADD, _SUBTRACT = REGISTRY[np.add], REGISTRY[np.subtract]
_MULTIPLY, _NEGATIVE, _POWER = (REGISTRY[fun] for fun in (np.multiply, np.negative, np.power))
_ELEMENTWISE = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh rint sign floor ceil trunc fabs deg2rad rad2deg degrees radians isnan isfinite isinf "
    "logical_not hypot arctan2 logaddexp".split()
)


class Flat:
    """``x.flat`` of a traced array: reads and writes its elements in C order."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, x: Tracer) -> None:
        self.base = x
        self.index = 0

    @property
    def coords(self) -> tuple[int, ...]:
        """Where the next element is."""
        return tuple([int(place) for place in np.unravel_index(self.index, self.base.shape)])

    def __len__(self) -> int:
        return self.base.size

    def __getitem__(self, key: Any) -> Any:
        self.index = 0  # it begins anew, as NumPy's does
        return np.reshape(self.base, -1)[key].copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.index = 0
        shape, places = self.base.shape, np.arange(self.base.size)
        if create.contains_traced([key.start, key.stop, key.step] if type(key) is slice else [key]):
            spec, arrays = split_index(key, self.base)
            places = self.base.record(index.GETITEM, (places, *arrays), {"spec": spec})
        else:
            places = places.flat[key]
        if np.ndim(value) and not np.ndim(places):
            raise ValueError("Error setting single item of array.")
        if not np.size(value):  # nothing is written
            return
        if np.ndim(value) and np.size(value) != places.size:
            value = np.resize(value, places.shape)
        self.base[np.unravel_index(places, shape)] = np.reshape(value, places.shape) if np.ndim(value) else value

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.index == len(self):
            raise StopIteration
        self.index += 1
        return np.reshape(self.base, -1)[self.index - 1].copy()

    def copy(self) -> Any:
        return self.base.flatten()

    def __eq__(self, other: object) -> Any:
        return self.copy() == other

    def __ne__(self, other: object) -> Any:
        return self.copy() != other

    def __lt__(self, other: Any) -> Any:
        return self.copy() < other

    def __le__(self, other: Any) -> Any:
        return self.copy() <= other

    def __gt__(self, other: Any) -> Any:
        return self.copy() > other

    def __ge__(self, other: Any) -> Any:
        return self.copy() >= other

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.copy().__array__(dtype, copy=True)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*_unflat(args), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return func(*_unflat(args), **{name: _unflat(value) for name, value in kwargs.items()})


def _unflat(value: Any) -> Any:
    """Arrays in place of what goes through their elements, in lists and tuples, too."""
    if type(value) is Flat:
        return value.copy()
    return type(value)(map(_unflat, value)) if type(value) in (list, tuple) else value


def _refusal(what: str) -> str:
    text, instead = leaving()
    return f"{text or 'this line'} would make a plain {what} of a traced value and lose its derivative; {instead}"


def into_plain(verb: str) -> str:
    return (
        f"{where()}: a traced value is {INTO_PLAIN} here ({verb}), where its derivative would be lost; make "
        "the array with np.zeros_like(x), np.zeros(n, like=x) or symgrad.numpy.zeros(n)"
    )


class _OfObjects:
    """An array of objects that became a traced array where NumPy makes a view: it must not change while that is there."""

    def __init__(self, array: np.ndarray[Any, Any], tape: Run) -> None:
        self.array, self.items, self.tape, self.line = array, list(array.flat), tape, where()

    def __call__(self) -> Any:
        """The array, if somebody else has it, too."""
        return self.array if sys.getrefcount(self.array) > 2 else None

    def __del__(self) -> None:
        if any([item is not old for item, old in zip(self.array.flat, self.items, strict=True)]):
            why = (
                f"{self.line}: an array of dtype object becomes a traced array here, and is changed later, which that cannot "
                "follow; write np.array(x), which copies, or make it without dtype=object"
            )
            self.tape.refuse(MutatedInput(why))


def unwritable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view of an array, which nobody must write to."""
    view = array.view()
    view.flags.writeable = False
    return view


_BY_MEMORY = {
    "as_strided": ("numpy.lib", "use sliding_window_view or indexing, or call it in a function that is followed"),
    "squareform": ("scipy.spatial.distance", "use indexing: v = m[np.triu_indices(n, 1)], or m[np.triu_indices(n, 1)] = v"),
    "distance_transform_cdt": ("scipy.ndimage", "its result is constant: hand it stop_gradient(x)"),
}


def _of_memory() -> str | None:
    """What to write instead of the library's function that asks, where it reads memory and would copy bare pointers."""
    frame = sys._getframe(2)
    name = frame.f_code.co_name
    library, instead = _BY_MEMORY.get(name, ("", ""))
    if not library or not frame.f_globals["__name__"].startswith(library):
        return None
    return f"{name} reads memory, which a traced array has not; {instead}"


# -- trees of Tracers and indices -----------------------------------------------------------------------------------


def tracers(tree: Any) -> list[Tracer]:
    if type(tree) is Tracer:
        if tree.base is not None:
            tree.refresh()
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [tracer for item in tree for tracer in tracers(item)] if isinstance(tree, (list, tuple)) else []


def plain(tree: Any, copy: bool = False, like: bool = False) -> Any:
    """Plain values in place of Tracers; ``like``: what is of their types, shapes and dtypes will do."""
    if type(tree) is Tracer:
        if tree.base is not None:
            tree.refresh()
        if like:
            return tree.like
        return tree.value.copy("K") if copy and isinstance(tree.value, np.ndarray) else tree.value
    if isinstance(tree, (list, tuple)):
        items = [plain(item, copy, like) for item in tree]
        return tuple.__new__(type(tree), items) if isinstance(tree, tuple) else type(tree)(items)
    if isinstance(tree, dict):
        return {name: plain(item, copy, like) for name, item in tree.items()}
    return tree


WHOLE = (index.Hole(0),)  # the spec of one index array


def split_index(key: Any, x: Tracer, sized: bool = True) -> tuple[index.Spec, list[Any]]:
    """The static part of an index and its arrays. Slices' bounds are looked at; so are counts of masks, if ``sized``."""
    parts: list[Any] = []
    arrays: list[Any] = []
    for part in key if type(key) is tuple else (key,):
        if isinstance(part, slice):
            parts.append(index.Slice(*[None if end is None else operator.index(end) for end in _ends(part)]))
        elif part is None or part is Ellipsis or type(part) is int:
            parts.append(part)
        elif type(part) is not Tracer and _counts(part):
            parts.append(operator.index(part))
        else:
            if type(part) is not Tracer and not isinstance(part, np.ndarray):
                traced = create.contains_traced(part)
                part = x.adopt(part) if traced else np.asarray(part)
                if isinstance(part, np.ndarray) and not part.size and part.dtype == float:  # x[[]]
                    part = part.astype(int)
            elif type(part) is np.ndarray and part.dtype == object:
                part = x.adopt(part)
            if type(part) is Tracer and part.node.aval.dtype == bool and sized and not part.tape.takes(part):
                look_at_size(x.tape, x.tape.record(REGISTRY[np.count_nonzero], (part,), {}))
            parts.append(index.Hole(len(arrays)))
            arrays.append(part)
    return tuple(parts), arrays


def _is_one(a: Any, b: Any) -> bool:
    """Whether two index arrays are one."""
    return a is b or (type(a) is type(b) is Tracer and a.node is b.node)


def _is_seen(view: Tracer, base: Tracer, how: Any) -> bool:
    """Whether a view is what an operation shows of ``base``, or of the same part of the same array."""
    if view.base is None or view.how[0] is not how[0] or view.how[2] != how[2] or len(view.how[1]) != len(how[1]):
        return False
    if not all(map(_is_one, view.how[1], how[1])):
        return False
    return view.base is base or (base.base is not None and _is_seen(view.base, base.base, base.how))


def _has_flags(key: tuple[Any, ...]) -> bool:
    return any([type(part) not in _NO_FLAGS and _is_flag(part) for part in key])


_NO_FLAGS = frozenset({int, slice, type(None), type(Ellipsis)})


def _is_flag(part: Any) -> bool:
    """Whether NumPy takes it as True or False in an index."""
    like = part.like if type(part) is Tracer else part
    return type(like) in (bool, np.bool) or (type(like) is np.ndarray and not like.shape and like.dtype == bool)


def _without_flags(key: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """An index with True or False in it as two: one that makes an axis for each, another that takes all of that, or nothing."""
    axes: list[Any] = []
    parts = []
    for part in key:
        flag = _is_flag(part)
        if flag or part is Ellipsis:
            axes.append(None if flag else part)
        elif part is not None:
            axes += [slice(None)] * _axes_of(part)
        parts.append(np.zeros(1 if part else 0, int) if flag else part)
    return tuple(axes), tuple(parts)


def _axes_of(part: Any) -> int:
    """How many axes a part of an index is of."""
    if part is None or part is Ellipsis:
        return 0
    known = np.asarray(plain(part))
    return known.ndim if known.dtype == bool else 1


def places_in(key: Any, x: Tracer) -> Iterator[tuple[int, Any]]:
    """The traced parts of an index, also those in lists, and the axes that they are of."""
    parts = key if type(key) is tuple else (key,)
    axes, axis = [*map(_axes_of, parts)], 0
    for k, part in enumerate(parts):
        if part is Ellipsis:
            axis = x.ndim - sum(axes[k:])
        place = x.adopt(part) if type(part) is list and create.contains_traced(part) else part
        if type(place) is Tracer and axis < x.ndim:
            yield axis, place
        axis += axes[k]


def _counts(part: Any) -> bool:
    """Whether NumPy takes it as a plain number in an index: integers of others' classes, too."""
    own = hasattr(type(part), "__index__") and not hasattr(type(part), "__array__") and not isinstance(part, bool)
    return own or isinstance(part, np.integer)


def _is_place(key: Any) -> bool:
    """Whether an index is of plain numbers alone."""
    return type(key) is int or (type(key) is tuple and all([type(part) is int for part in key]))


def slides(key: Any) -> bool:
    """Whether both ends of a slice in an index are traced."""
    parts = key if type(key) is tuple else (key,)
    return any([type(part) is slice and type(part.start) is type(part.stop) is Tracer for part in parts])


def ends(key: Any) -> bool:
    """Whether an end of a slice in an index is traced."""
    parts = key if type(key) is tuple else (key,)
    return any([type(part) is slice and Tracer in (type(part.start), type(part.stop)) for part in parts])


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def look_at_size(trace: Run, count: Any) -> None:
    if type(count) is Tracer:
        trace.guard(count.node, int(count.value))


# -- operators ------------------------------------------------------------------------------------------------------


_OPERANDS = frozenset({*NUMBERS, np.ndarray, Tracer})
_COMPARISONS: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.less: operator.lt, np.less_equal: operator.le, np.greater: operator.gt, np.greater_equal: operator.ge,
    np.equal: operator.eq, np.not_equal: operator.ne,
}  # fmt: skip
_OPERATIONS: dict[np.ufunc, Callable[[Any, Any], Any]] = _COMPARISONS | {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.power: operator.pow, np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_, np.bitwise_xor: operator.xor, np.left_shift: operator.lshift, np.right_shift: operator.rshift,
}  # fmt: skip
_OF_PYTHON = 1 << 9  # the flag of classes that are made by a ``class`` statement
_OF_SEQUENCES: dict[np.ufunc, Callable[[Any, Any], Any]] = {np.multiply: operator.mul, np.matmul: operator.matmul}


def _computes(kind: type, protocol: str = "__array_ufunc__") -> bool:
    """Whether NumPy leaves to objects of this class what is done with them: other libraries' arrays, with units, say."""
    own = getattr(kind, protocol, None)
    if own is None or own == getattr(np.ndarray, protocol) or hasattr(kind, "__pandas_priority__"):
        return False
    return not module_of(kind).startswith("symgrad")


def _binary(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """An operator: on Python numbers it stays Python's, on arrays it is the ufunc."""
    tracer: Tracer = left if type(left) is Tracer else right
    other = right if tracer is left else left
    if type(other) not in _OPERANDS and _computes(type(other)) and isinstance(tracer.like, (np.ndarray, np.generic)):
        return ufunc(left, right)
    if type(other) not in _OPERANDS and not isinstance(other, (int, float, complex, np.ndarray, np.generic)):
        if type(other) is Flat:
            other = other.copy()
            left, right = (tracer, other) if tracer is left else (other, tracer)
        elif not isinstance(tracer.like, (np.ndarray, np.generic)):
            return _unfit(tracer)
        elif not isinstance(other, (list, tuple)):
            if hasattr(other, "__pandas_priority__"):
                kind = type(other).__name__
                raise LeavesNumPy(f"{where()}: a {kind} cannot hold traced values; compute with its array: .to_numpy()")
            if hasattr(other, "__array_ufunc__") or hasattr(other, "__array_priority__"):
                return NotImplemented
            array = np.asarray(other)  # of a range, a memoryview, ...
            if array.dtype.kind not in "fciub":
                if isinstance(tracer.like, np.generic) and ufunc in _OPERATIONS and type(other).__flags__ & _OF_PYTHON:
                    number = TO_PYTHON(tracer)  # as which NumPy hands its numbers over to objects that compute
                    return _OPERATIONS[ufunc](*((number, other) if tracer is left else (other, number)))
                compares = ufunc in _COMPARISONS and isinstance(tracer.like, np.ndarray)
                return _compared(_COMPARISONS[ufunc], tracer, other, tracer is left) if compares else _unfit(tracer)
            other = array
            left, right = (tracer, other) if tracer is left else (other, tracer)
        elif ufunc is np.multiply and isinstance(tracer.like, np.integer):
            return NotImplemented  # repeats the sequence, as np.int64(2) * [0] does
        elif ufunc in _OF_SEQUENCES and isinstance(tracer.like, np.generic):
            sequence: Any = [] if isinstance(other, list) else ()
            pair = (tracer.like, sequence) if tracer is left else (sequence, tracer.like)
            _OF_SEQUENCES[ufunc](*pair)  # raises an error
    return tracer.tape.record(REGISTRY[ufunc], (left, right), {})


def _compared(compare: Callable[[Any, Any], Any], tracer: Tracer, other: Any, first: bool) -> Any:
    """A comparison of an array with what is no number, which NumPy makes one by one, as Python does."""
    if other is not None and not isinstance(other, (str, bytes)):  # to which no number is equal
        tracer.tape.note(f"an array is compared with a {type(other).__name__}")
    value = plain(tracer)
    return compare(value, other) if first else compare(other, value)


def _unfit(tracer: Tracer) -> Any:
    """Neither operand takes the other: Python raises an error that names a Tracer, where it would name Python's number."""
    tracer.tape.unfit = type(np.zeros((), tracer.node.aval.dtype).item()).__name__
    return NotImplemented


def _operator(name: str, ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
    op: Any = REGISTRY[ufunc]
    apply = getattr(operator, f"__{name}__")

    def method(self: Tracer, other: Any) -> Any:
        if type(other) is np.ndarray and other.dtype == object and not other.ndim:
            return apply(self, other[()])  # what is in it computes, as NumPy has it
        if type(other) in _OPERANDS:
            return self.tape.record(op, (self, other), {})
        return _binary(ufunc, self, other)

    return method


def _counting(method: Callable[[Tracer, Any], Any]) -> Callable[[Tracer, Any], Any]:
    """A sum or product, of numbers where NumPy takes one of objects: ``np.sum([x > 0, y > 0])`` counts, ``(x > 0) + (y > 0)``
    does not."""

    def counting(self: Tracer, other: Any) -> Any:
        if self.node.aval.dtype is _TRUTH and is_numpys(sys._getframe(1).f_code.co_filename):
            self = _binary(np.multiply, self, 1)
        return method(self, other)

    return counting


def _inplace(name: str, ufunc: np.ufunc, tracer: Tracer, other: Any) -> Any:
    if not isinstance(tracer.like, np.ndarray):
        return NotImplemented  # numbers are immutable: Python goes on to the plain operator
    new = _binary(ufunc, tracer, other)
    if new is NotImplemented:
        return new
    if type(new) is not Tracer:  # arithmetic on plain 0-d arrays gives numbers
        new = tracer.tape.adopt(new)
    if np.shape(new.like) != tracer.like.shape:
        raise ValueError(f"{where()}: the result of shape {np.shape(new.like)} does not fit into {tracer.like.shape} in place")
    tracer.assign(new, f"x {_SYMBOLS[name]}= y")
    return tracer


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "matmul": "@", "and": "&", "or": "|",
    "xor": "^", "lshift": "<<", "rshift": ">>", "pow": "**",
}  # fmt: skip


def _without_correction(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The method of ``np.var`` or ``np.std``, which knows ``ddof`` alone."""

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        if "correction" in kwargs:
            raise TypeError(f"{fun.__name__}() got an unexpected keyword argument 'correction'")
        return fun(self, *args, **kwargs)

    return method


def _conjugate(x: Tracer) -> Any:
    """The method, which gives real arrays back as they are, and of Python's numbers such."""
    if not np.iscomplexobj(x.like):
        return x
    return TO_PYTHON(np.conj(x)) if x.node.aval.kind == "python" else np.conj(x)


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
        made = _operator(name, ufunc)
        setattr(Tracer, f"__{name}__", _counting(made) if ufunc in (np.add, np.multiply) else made)
    for name, ufunc in binary.items():
        setattr(Tracer, f"__r{name}__", lambda self, other, ufunc=ufunc: _binary(ufunc, other, self))
    for name, ufunc in {**binary, "pow": np.power}.items():
        setattr(Tracer, f"__i{name}__", lambda self, other, n=name, ufunc=ufunc: _inplace(n, ufunc, self, other))
    for name, ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}.items():
        setattr(Tracer, f"__{name}__", lambda self, ufunc=ufunc: self.tape.record(REGISTRY[ufunc], (self,), {}))
    for name in (
        "sum mean prod max min cumsum cumprod argmax argmin argsort all any dot ravel swapaxes squeeze repeat "
        "take trace diagonal round choose argpartition"
    ).split():
        setattr(Tracer, name, lambda self, *args, fun=getattr(np, name), **kwargs: fun(self, *args, **kwargs))
        setattr(Tracer, name, _Only(getattr(Tracer, name), name))
    for name in ("conj", "conjugate"):
        setattr(Tracer, name, _Only(_conjugate, name))
    Tracer.nonzero = _Only(lambda self: np.nonzero(self), "nonzero")  # type: ignore[attr-defined]
    for name in ("var", "std"):
        setattr(Tracer, name, _Only(_without_correction(getattr(np, name)), name))
    for name in (
        "reshape transpose astype copy flatten view searchsorted compress item tolist fill sort partition put resize setflags "
        "to_device clip is_integer __len__ __contains__ __getitem__"
    ).split():
        setattr(Tracer, name, _Only(getattr(Tracer, name), name))
    # iter() would count up __getitem__ where it is missing: NumPy's scalars have that and no __iter__
    Tracer.__iter__ = _Only(Tracer.__iter__, "__getitem__")  # type: ignore[method-assign, assignment]


_install()
_KINDS = (np.ndarray, np.float64, np.int64, np.complex128, float, int, complex)
# what a Tracer has for symgrad alone, and no value, or no number
OWN = frozenset(
    [
        "base",
        *[name for name in dir(Tracer) if name[:2] != "__" and not any([hasattr(kind, name) for kind in _KINDS])],
    ]
)
pytree.LEAVES.add(Tracer)
