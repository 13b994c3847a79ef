"""Arrays that a function makes and fills itself: plain until a traced value is written into one.

``b = np.zeros(n)`` in a function that writes into arrays gives a *draft*: a Tracer whose run is ``Drafts``, which computes
as NumPy does, in place and without recording, as long as only plain numbers are in it. Where a draft meets a traced value, or
one is written into it, the trace takes it in (``Trace.admit``), and it is traced from there on, under all its names.
"""

from __future__ import annotations

import functools
import operator
import sys
import weakref
from collections.abc import Mapping, Sequence
from threading import get_ident
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from symgrad.ir import CAPTURED, Node, aval_of
from symgrad.ops import index
from symgrad.ops.core import Op
from symgrad.tracing import protocols
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Peek, Run, Tracer, plain, tracers

__all__ = ["Drafts"]

KINDS = "fciub"  # of dtypes: indices and masks are filled with traced ones, too


class Drafts:
    """The run of the drafts of one ``trace``; what it does not know itself, that does. A draft may outlive the trace."""

    open, symbolic, lanes, watched, selections = True, False, 0, False, None
    mixed: Mapping[Node, Any] = MappingProxyType({})

    def __init__(self, trace: Trace) -> None:
        self.trace, self.draft = trace, self
        self.wrap: Any = functools.partial(Trace.wrap, cast(Any, self))
        self.peeks: list[Peek] = []
        self.outside: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.trace, name)

    @property
    def thread(self) -> int:
        """Plain arrays go from one thread to another."""
        return get_ident()

    def own(self, value: Any, given: Sequence[Any]) -> Any:
        """An array that NumPy has just made of what was ``given``, as a draft; what is no such array as it is."""
        if type(value) is tuple:
            owned = tuple([self.own(item, given) for item in value])
            return value if all(map(operator.is_, owned, value)) else owned
        if type(value) is list:  # which others may hold, too
            value[:] = [self.own(item, given) for item in value]
            return value
        if type(value) is not np.ndarray or value.dtype.kind not in KINDS or not value.flags.writeable:
            return value
        shared = value.base is not None and (type(value.base) is not np.ndarray or sys.getrefcount(value.base) > 2)
        return value if shared or any([value is item for item in given]) else self.made(value)

    def made(self, value: Any) -> Tracer:
        """A plain array as a draft."""
        return Tracer(cast(Run, self), Node(CAPTURED, (), (), aval_of(value), 0), value)

    def lend(self, x: Tracer) -> Any:
        """The plain array, for code that takes no other; traced values cannot be written while that code holds it."""
        loan = _Loan(x.value)
        x.lent = [*(x.lent or ()), weakref.ref(loan)]
        return np.asarray(loan)

    def put(self, x: Tracer, key: Any, new: Any) -> bool:
        """``x[key] = new`` in place. Where something traced is in it, ``x`` is taken in, and nothing else done."""
        if any([tracer.node.active for tracer in _found([key, new])]):
            if not x.value.flags.writeable:
                raise ValueError("assignment destination is read-only")  # as NumPy says
            self.trace.admit(x)
            return False
        self.set(x, _left(key), _left(new))
        return True

    def set(self, x: Tracer, key: Any, new: Any) -> None:
        """``x[key] = new``, both plain."""
        x.value[key] = new
        x.owner().touch()
        if self.trace.watched:
            self.trace.writes.append(x)

    # ---- what a run does ----

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run ``op`` on plain values; in the trace, where one is traced."""
        if op is index.GETITEM and not any([tracer.node.active for tracer in _found(args)]):
            args = [args[0], *_left(args[1:])]  # by the number of an iteration
        real = _real(args)
        if real is not None:
            return real.tape.record(op, args, params)
        value = op.fun(*plain(list(args)), **params)
        if isinstance(value, tuple):
            parts = [self._result(op, args, params, part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return self._result(op, args, params, value)

    def _result(self, op: Op, args: Sequence[Any], params: dict[str, Any], value: Any) -> Any:
        if type(value) is not np.ndarray or value.dtype.kind not in KINDS:
            return value
        return self.wrap(op, args, params, self.made(value))

    def gather(self, value: Any) -> Any:
        """Nested lists as one array: traced, where a traced value is in them."""
        if type(value) is Tracer:
            return value
        real = _real([value])
        return self.made(np.array(plain(value))) if real is None else real.tape.gather(value)

    def adopt(self, value: Any) -> Any:
        """The same; and a number becomes an array."""
        return self.gather(value)

    def note(self, reason: str) -> None:
        """With plain arrays anything may be done."""

    def array_function(self, like: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
        """A NumPy function that met a draft."""
        met = _real([args, kwargs])
        met = like if met is None else met
        return protocols.array_function(met.tape, met, func, args, kwargs)

    def array_ufunc(self, ufunc: np.ufunc, method: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A ufunc, or one of its methods, that met a draft."""
        met = _real([args, kwargs])
        return protocols.array_ufunc(cast(Run, self) if met is None else met.tape, ufunc, method, args, kwargs)


class _Loan:
    """What an array that was lent, and all views of it, keep alive."""

    __slots__ = ("__array_interface__", "__weakref__", "array")

    def __init__(self, array: Any) -> None:
        self.array, self.__array_interface__ = array, array.__array_interface__


def _found(values: Any) -> list[Tracer]:
    """The Tracers in arguments, in arrays of objects too."""
    return tracers([value.ravel().tolist() if _is_of_objects(value) else value for value in values])


def _real(values: Any) -> Tracer | None:
    """A Tracer that is no draft, if there is one."""
    return next((tracer for tracer in _found(values) if not tracer.tape.draft), None)


def _is_of_objects(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype == object


def _left(value: Any) -> Any:
    """Plain values in place of Tracers that hang on no argument; the trace notes that they were seen."""
    if type(value) is Tracer:
        return value.leave()
    return type(value)(map(_left, value)) if type(value) in (tuple, list) else value
