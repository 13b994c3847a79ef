"""Slices between ends that a loop looks up, of all iterations together: what it computes of each one, beforehand.

``for i in range(n): y[i] = vals[ends[i]:ends[i + 1]] @ x[cols[ends[i]:ends[i + 1]]]`` has slices of other lengths in each
iteration. In ``Each`` the items of all of them are one array, in a row, and so are the numbers that each iteration has one of:
what NumPy computes of items one by one it computes of all; sums, means and extremes over an iteration's items are those over
segments of that array. What is not known to be so has no result here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np

from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import OWNERS
from symgrad.ops.scan import Segments
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer, plain

_T = TypeVar("_T")
_SUM: Any = REGISTRY[Segments(np.add)]
_EXTREMES: dict[str, Any] = {name: REGISTRY[Segments(ufunc)] for name, ufunc in (("max", np.maximum), ("min", np.minimum))}
_EVERY = slice(None)
FEWEST = 8  # iterations that are done together
_PLAIN = (int, float, bool, np.ndarray, np.generic, Tracer)


class NotTogether(TypeError):
    """What iterations have is not computed for all of them here."""


@dataclass(frozen=True)
class Span:
    """The items of all iterations: ``owners`` tells whose each one is, ``counts`` how many each iteration has, which may be
    none if ``gaps``, and ``starts`` where its own begin. ``places`` are where they are in what the slices are of, from its
    beginning on if ``dense``; ``last`` is the one after them."""

    owners: Any
    counts: Any
    starts: Any
    places: Any
    gaps: bool
    dense: bool
    last: Any


class Iterations:
    """So many iterations of a loop, of a ``trace``."""

    def __init__(self, trace: Trace, count: int) -> None:
        self.trace, self.count = trace, count
        self._known = dict[Any, tuple[Any, Any]]()  # with what the keys are the identities of
        self.index = Each(self, self._constant(np.arange(count)))

    def _constant(self, array: Any) -> Tracer:
        return self.trace.lookup(self.trace.constant(self.trace.once(array))[0])

    def look(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""
        parts = key if type(key) is tuple else (key,)
        names = (
            owner,
            *[end for part in parts for end in ((part.start, part.stop, part.step) if type(part) is slice else (part,))],
        )
        return self.once(("look", type(key), *map(type, parts)), names, lambda: self._looked_up(owner, parts))

    def once(self, what: Any, of: Sequence[Any], made: Callable[[], _T]) -> _T:
        """The same of the same."""
        key = (what, *[one if type(one) in (int, float, bool, type(None)) else (id(one),) for one in of])
        kinds = [type(one) for one in of]  # 1 is no 1.0
        if (key, *kinds) not in self._known:
            self._known[key, *kinds] = made(), of
        return self._known[key, *kinds][0]  # type: ignore[no-any-return]

    def _looked_up(self, owner: Any, key: tuple[Any, ...]) -> Any:
        if type(owner) is Each:
            return self._item(owner, key)
        whole = [part for part in key if type(part) is slice and Each in (type(part.start), type(part.stop))]
        key = tuple([self._slice(part, owner, axis) for axis, part in enumerate(key)])
        every = [part for part in key if type(part) is Each]
        if not every:
            return owner[key if len(key) > 1 else key[0]]
        if type(owner) not in (np.ndarray, Tracer) or any([part.ndim != (part.span is not None) for part in every]):
            raise NotTogether
        if any([np.result_type(plain(part.value)).kind not in "iu" for part in every]):
            raise NotTogether
        span = _span(every)
        first = min([k for k, part in enumerate(key) if type(part) is Each])
        if any([part is None or (type(part) is slice and k < first) for k, part in enumerate(key)]):
            raise NotTogether
        if not all([type(part) in (Each, slice, int) for part in key]):
            raise NotTogether
        kinds = [type(part) is slice for part in key]
        if kinds != sorted(kinds):  # a slice between two places: what is named by these comes first
            raise NotTogether
        places = [self._spread(part, span).value if type(part) is Each else part for part in key]
        if len(every) == len(whole) == 1 and span is not None and span.dense:  # no other than all of its items, in turn
            places[first] = slice(0, len(span.places))
        return Each(self, owner[tuple(places) if len(places) > 1 else places[0]], span)

    def _slice(self, part: Any, owner: Any, axis: int) -> Any:
        """The places that a slice between looked up ends is of."""
        if type(part) is not slice or not {type(part.start), type(part.stop)} & {Each}:
            return part
        if part.step is not None or np.ndim(owner) <= axis:
            raise NotTogether
        span = self.once("span", (part.start, part.stop), lambda: self._between(part.start, part.stop))
        if not bool(span.last <= np.shape(owner)[axis]):  # what is beyond the end is cut off
            raise NotTogether
        return Each(self, span.places, span)

    def _between(self, first: Any, last: Any) -> Span:
        """The items of slices with such ends."""
        for end in (first, last):
            if end is not None and type(end) is not int and (type(end) is not Each or end.span is not None or end.ndim):
                raise NotTogether
        first, last = [end.value if type(end) is Each else end or 0 for end in (first, last)]
        if any([np.result_type(plain(end)).kind not in "iu" for end in (first, last)]):
            raise NotTogether
        first, last = [np.broadcast_to(np.multiply(end, 1, dtype=np.int64), (self.count,)) for end in (first, last)]
        counts = last - first
        if not bool(np.all((first >= 0) & (counts >= 0))):  # else ends count from the end, or are crossed
            raise NotTogether
        behind: Any = np.cumsum(counts)
        total = operator.index(behind[-1])
        gaps = not bool(np.all(counts > 0))
        owners = self.trace.record(OWNERS, (counts,), {"total": total})
        starts, every = behind - counts, self._constant(np.arange(total))
        dense = bool(np.all(first == starts))
        places = every if dense else every + (first - starts)[owners]
        return Span(owners, counts, starts, places, gaps, dense, np.max(last))

    def _item(self, owner: Each, key: tuple[Any, ...]) -> Any:
        """``owner[key]`` of what each iteration has."""
        if owner.span is None:
            if any([type(part) is Each for part in key]) or Ellipsis in key:
                raise NotTogether
            return Each(self, owner.value[_EVERY, *key])
        first, *rest = key
        if type(first) is slice and first == _EVERY and all([part is None or type(part) in (int, slice) for part in rest]):
            return Each(self, owner.value[_EVERY, *rest], owner.span)
        if rest or not (type(first) is int or (type(first) is Each and first.span is None and first.ndim == 0)):
            raise NotTogether
        place, span = first.value if type(first) is Each else first, owner.span
        if np.result_type(plain(place)).kind not in "iu" or not bool(np.all((place < span.counts) & (place >= -span.counts))):
            raise NotTogether  # it raises, in its turn
        return Each(self, owner.value[span.starts + np.where(place < 0, place + span.counts, place)])

    def elementwise(self, ufunc: Callable[..., Any], inputs: Sequence[Any]) -> Each:
        """What NumPy computes of items, or of the numbers that iterations have, one by one."""
        return self.once(ufunc, inputs, lambda: self._elementwise(ufunc, inputs))

    def _elementwise(self, ufunc: Callable[..., Any], inputs: Sequence[Any]) -> Each:
        every = [one for one in inputs if type(one) is Each]
        span = _span(every)
        if not all([type(one) in (Each, *_PLAIN) for one in inputs]):
            raise NotTogether
        ndims = {one.ndim for one in every if one.span is not None}
        others = [one.ndim if type(one) is Each else np.ndim(one) for one in inputs if getattr(one, "span", None) is None]
        if span is not None and (len(ndims) > 1 or max(others, default=0) >= min(ndims)):
            raise NotTogether  # items are paired with something else
        rank = min(ndims) if span is not None else max(others)
        return Each(self, ufunc(*[self._lined_up(one, span, rank) for one in inputs]), span)

    def _lined_up(self, one: Any, span: Span | None, rank: int) -> Any:
        """A value with the axis of iterations, or items, in front of so many others, which include that of items."""
        if type(one) is not Each:
            return one
        one = self._spread(one, span)
        inner = one.ndim - (one.span is not None)
        missing = rank - (span is not None) - inner
        return one.value if not missing else np.reshape(one.value, (len(one.value), *[1] * missing, *np.shape(one.value)[1:]))

    def _spread(self, one: Each, span: Span | None) -> Each:
        """What an iteration has, once for each of its items."""
        if span is None or one.span is span:
            return one
        return self.once("spread", (one, span), lambda: Each(self, one.value[span.owners], span))

    # ---- what is made of an iteration's items ----

    def total(self, one: Each) -> Each:
        """The sums over an iteration's items."""
        span, value = one.span, one.value
        assert span is not None
        if np.result_type(plain(value)).kind != "f":
            raise NotTogether
        if not span.gaps:
            return Each(self, _SUM(value, span.starts, axis=-np.ndim(value)))
        zeros = np.zeros((self.count, *np.shape(value)[1:]), np.result_type(plain(value)))
        return Each(self, index.INDEX_ADD(self._constant(zeros), value, span.owners, spec=(index.Hole(0),)))

    def reduced(self, name: str, one: Any, axis: Any = None) -> Each:
        """``np.sum``, ``np.mean``, ``np.max`` or ``np.min`` of what each iteration has."""
        if type(one) is not Each or not (axis is None or type(axis) is int):
            raise NotTogether
        return self.once(name, (one, axis), lambda: self._reduced(name, one, axis))

    def _reduced(self, name: str, one: Each, axis: int | None) -> Each:
        span, value, ndim = one.span, one.value, one.ndim
        if axis is not None and not -ndim <= axis < ndim:
            raise NotTogether
        fun = getattr(np, name)
        if axis is not None and (span is None or axis % ndim):
            return Each(self, fun(value, axis=axis % ndim + (span is None)), span)
        if span is None:
            return one if not ndim else Each(self, fun(value, axis=tuple(range(1, ndim + 1))))
        inner = math.prod(np.shape(value)[1:]) if axis is None else 1
        if axis is None and ndim > 1:
            value = (
                np.sum(value, axis=tuple(range(1, ndim))) if name in ("sum", "mean") else fun(value, axis=tuple(range(1, ndim)))
            )
        one = Each(self, value, span)
        if name in _EXTREMES:
            if span.gaps or np.result_type(plain(value)).kind != "f":
                raise NotTogether
            return Each(self, _EXTREMES[name](value, span.starts, axis=-np.ndim(value)))
        found = self.total(one)
        if name == "sum":
            return found
        if span.gaps:
            raise NotTogether  # it warns of empty ones
        counts = Each(self, (span.counts * inner).astype(np.result_type(plain(value))))
        return self.elementwise(np.true_divide, (found, counts))

    def product(self, a: Any, b: Any) -> Each:
        """``a @ b``."""
        return self.once("product", (a, b), lambda: self._product(a, b))

    def _product(self, a: Any, b: Any) -> Each:
        ndims = [one.ndim if type(one) in (Each, _Turned) else np.ndim(one) for one in (a, b)]
        if type(a) is _Turned or type(b) is _Turned:
            if type(a) is not _Turned or type(b) is not Each or b.span is not a.one.span or ndims[1] != 1:
                raise NotTogether
            return self._product(b, a.one)  # X.T @ r
        ragged = [type(one) is Each and one.span is not None for one in (a, b)]
        if ragged == [True, True] and ndims[0] == 1 and ndims[1] in (1, 2):
            left = a if ndims[1] == 1 else self.look(a, (_EVERY, None))
            return self.total(self.elementwise(np.multiply, (left, b)))
        if ragged == [True, False] and ndims[1] in (1, 2) and ndims[0] == 2:
            if type(b) is not Each:
                return Each(self, a.value @ b, a.span)
            if ndims[1] == 1:
                return self.reduced("sum", self.elementwise(np.multiply, (a, b)), 1)
        if ragged == [False, False] and ndims == [1, 1]:
            return self.reduced("sum", self.elementwise(np.multiply, (a, b)), 0)
        if ragged == [False, False] and ndims == [1, 2] and type(b) is not Each:
            return Each(self, a.value @ b)
        raise NotTogether


def _span(every: Sequence[Each]) -> Span | None:
    """Whose items these are."""
    spans = [one.span for one in every if one.span is not None]
    if any([span is not spans[0] for span in spans]):
        raise NotTogether  # slices of other ends
    return spans[0] if spans else None


class Each(np.lib.mixins.NDArrayOperatorsMixin):
    """What each iteration has: its own row of ``value``, or those items of it that a ``span`` tells."""

    __slots__ = ("iterations", "span", "value")

    def __init__(self, iterations: Iterations, value: Any, span: Span | None = None) -> None:
        self.iterations, self.value, self.span = iterations, value, span

    @property
    def ndim(self) -> int:
        """How many axes it has for an iteration."""
        return np.ndim(self.value) - (self.span is None)

    @property
    def T(self) -> Any:
        """Its transpose."""
        return self if self.ndim < 2 else _Turned(self)

    @property
    def size(self) -> Any:
        """How many items an iteration has."""
        return self.shape[0] if self.ndim == 1 else self._refused()

    @property
    def shape(self) -> Any:
        """The same, beside the lengths of other axes."""
        own = np.shape(self.value)[1:]
        return own if self.span is None else (Each(self.iterations, self.span.counts), *own)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout > 1:
            return NotImplemented
        if ufunc is np.matmul:
            return self.iterations.product(*inputs)
        return self.iterations.elementwise(ufunc, inputs) if ufunc.signature is None else NotImplemented

    def __array_function__(self, fun: Any, kinds: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if fun in _REDUCTIONS:
            return self.iterations.reduced(_REDUCTIONS[fun], *args, **kwargs)
        if fun is np.dot and not kwargs:
            return self.iterations.product(*args)
        if fun in _OF_ITEMS and not kwargs:
            return self.iterations.elementwise(fun, args)
        return NotImplemented

    def sum(self, axis: Any = None) -> Any:
        """The sum, as of an array."""
        return self.iterations.reduced("sum", self, axis)

    def mean(self, axis: Any = None) -> Any:
        """The mean, as of an array."""
        return self.iterations.reduced("mean", self, axis)

    def max(self, axis: Any = None) -> Any:
        """The largest item, as of an array."""
        return self.iterations.reduced("max", self, axis)

    def min(self, axis: Any = None) -> Any:
        """The smallest item, as of an array."""
        return self.iterations.reduced("min", self, axis)

    def dot(self, other: Any) -> Any:
        """The product, as of an array."""
        return self.iterations.product(self, other)

    def _refused(self, *_: Any) -> NoReturn:
        raise NotTogether

    __bool__ = __len__ = __iter__ = __float__ = __int__ = __index__ = __array__ = _refused
    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False)
class _Turned:
    """The transpose of what each iteration has."""

    one: Each
    ndim = 2

    def __matmul__(self, other: Any) -> Any:
        return self.one.iterations.product(self, other)

    dot = __matmul__


_REDUCTIONS = {np.sum: "sum", np.mean: "mean", np.max: "max", np.amax: "max", np.min: "min", np.amin: "min"}
_OF_ITEMS = frozenset([np.where])


def together(trace: Trace, count: int, fun: Callable[[Any, Any], tuple[Any, ...]]) -> list[Any] | None:
    """What ``fun`` computes with ``look``, which gives items and slices, and the index, for all of so many iterations, an array
    each; None where that is not known to be what they would compute."""
    if count < FEWEST:
        return None
    guards = len(trace.guards)
    iterations = Iterations(trace, count)
    try:
        ways: dict[str, Any] = {kind: way if way == "ignore" else "raise" for kind, way in np.geterr().items()}
        with np.errstate(**ways):
            found = fun(iterations.look, iterations.index)
    except Exception:  # what the user is to see, an iteration raises
        found = ()
    if found and all([type(one) is Each and one.span is None for one in found]):
        return [one.value for one in found]
    del trace.guards[guards:]
    return None
