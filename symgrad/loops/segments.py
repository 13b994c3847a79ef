"""Slices between ends that a loop looks up, of all iterations together: what it computes of each one, beforehand.

``for i in range(n): y[i] = vals[ends[i]:ends[i + 1]] @ x[cols[ends[i]:ends[i + 1]]]`` has slices of other lengths in each
iteration. In ``Each`` the items of all of them are one array, in a row, and so are the numbers that each iteration has one of:
what NumPy computes of items one by one it computes of all; sums, means and extremes over an iteration's items are those over
segments of that array. What is not known to be so has no result here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

import numpy as np

from symgrad.loops.iterables import in_a_row
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.ops.scan import FROM_SEGMENTS, Segments
from symgrad.tracing.trace import Trace
from symgrad.tracing.tracer import Tracer, plain

_T = TypeVar("_T")
_SUM: Any = REGISTRY[Segments(np.add)]
_EXTREMES: dict[str, Any] = {name: REGISTRY[Segments(ufunc)] for name, ufunc in (("max", np.maximum), ("min", np.minimum))}
_EVERY = slice(None)
_LARGEST = 2**31
FEWEST = 8  # iterations that are done together
FEW, LONG = 128, 1000  # of which no more have slices as long as that, on average
_PLAIN = (int, float, bool, np.ndarray, np.generic, Tracer)


class NotTogether(TypeError):
    """What iterations have is not computed for all of them here."""


@dataclass(frozen=True, eq=False)
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
    single: bool = False  # whether there is one at a time: an inner loop runs over them


class Iterations:
    """So many iterations of a loop, of a ``trace``."""

    def __init__(self, trace: Trace, count: int) -> None:
        self.trace, self.count = trace, count
        self._known = dict[Any, tuple[Any, Any]]()  # with what the keys are the identities of
        self.index = Each(self, trace.fixed(np.arange(count)), weak=True)

    def __call__(self, owner: Any, key: Any) -> Any:
        """``owner[key]``; of the iterations themselves, the places that a slice names."""
        parts = key if type(key) is tuple else (key,)
        ends = [(part.start, part.stop, part.step) if type(part) is slice else (part,) for part in parts]
        what = ("look", type(key), *map(type, parts))
        return self.once(what, (owner, *itertools.chain(*ends)), lambda: self._looked_up(owner, parts))

    def once(self, what: Any, of: Sequence[Any], made: Callable[[], _T]) -> _T:
        """The same of the same."""
        key = (what, *[repr(one) if type(one) in (int, float, bool, type(None)) else id(one) for one in of])
        if key not in self._known:
            self._known[key] = made(), of
        return self._known[key][0]  # type: ignore[no-any-return]

    def _looked_up(self, owner: Any, key: tuple[Any, ...]) -> Any:
        if type(owner) is Each:
            return self._item(owner, key)
        if owner is self:
            span = self._span(key[0])
            return Each(self, span.places, self.once("single", (span,), lambda: replace(span, single=True)), weak=True)
        whole = [part for part in key if type(part) is slice and Each in (type(part.start), type(part.stop))]
        key = tuple([self._slice(part, owner, axis) for axis, part in enumerate(key)])
        every = [part for part in key if type(part) is Each]
        if not every and type(owner) in (np.ndarray, Tracer, tuple):
            return owner[key if len(key) > 1 else key[0]]
        if type(owner) not in (np.ndarray, Tracer) or any([part.ndim != (not part.hidden) for part in every]):
            raise NotTogether
        if any([np.result_type(plain(part.value)).kind not in "iu" for part in every]):
            raise NotTogether
        span = _span(every)
        if whole and len([part for part in every if part.span is not None]) > 1:
            raise NotTogether  # a slice is no list of places beside others
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
        if type(part) is not slice or Each not in (type(part.start), type(part.stop)):
            return part
        span = self._span(part)
        if self.count <= FEW and len(span.places) > LONG * self.count:
            raise NotTogether  # few long ones are less work one by one
        if part.step is not None or np.ndim(owner) <= axis or not bool(span.last <= np.shape(owner)[axis]):
            raise NotTogether  # what is beyond the end is cut off
        return Each(self, span.places, span)

    def _span(self, part: slice) -> Span:
        """The items of slices with looked up ends."""
        return self.once("span", (part.start, part.stop), lambda: self._between(part.start, part.stop))

    def _between(self, first: Any, last: Any) -> Span:
        """The items of slices with such ends."""
        if last is None:
            raise NotTogether  # it goes as far as what it is a slice of
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
        owners, starts, every = in_a_row(self.trace, counts)
        gaps = not bool(np.all(counts > 0))
        dense = bool(np.all(first == starts))
        places = every if dense else every + (first - starts)[owners]
        return Span(owners, counts, starts, places, gaps, dense, np.max(last))

    def _item(self, owner: Each, key: tuple[Any, ...]) -> Any:
        """``owner[key]`` of what each iteration has."""
        if owner.hidden:
            if not all(map(_is_basic, key)):
                raise NotTogether
            return Each(self, owner.value[_EVERY, *key], owner.span)
        first, *rest = key
        if type(first) is slice and _is_basic(first) and first == _EVERY and all(map(_is_basic, rest)):
            return Each(self, owner.value[_EVERY, *rest], owner.span)
        if rest or not (type(first) is int or (type(first) is Each and first.span is None and first.ndim == 0)):
            raise NotTogether
        place: Any = first.value if type(first) is Each else first
        span: Any = owner.span
        if np.result_type(plain(place)).kind not in "iu" or not bool(np.all((place < span.counts) & (place >= -span.counts))):
            raise NotTogether  # it raises, in its turn
        return Each(self, owner.value[span.starts + np.where(place < 0, place + span.counts, place)])

    def elementwise(self, ufunc: Callable[..., Any], inputs: Sequence[Any], sign: bool = False) -> Each:
        """What NumPy computes of items, or of the numbers that iterations have, one by one; by a ``sign``, Python may."""
        return self.once((ufunc, sign), inputs, lambda: self._elementwise(ufunc, inputs, sign))

    def _elementwise(self, ufunc: Callable[..., Any], inputs: Sequence[Any], sign: bool) -> Each:
        if not all([type(one) in (Each, *_PLAIN) for one in inputs]):
            raise NotTogether
        weak = any([type(one) is Each and one.weak for one in inputs])
        given = self._as_numpys(ufunc, inputs, sign) if weak else inputs
        every = [one for one in given if type(one) is Each]
        span = _span(every)
        ndims = {one.ndim for one in every if not one.hidden}
        others = [one.ndim if type(one) is Each else np.ndim(one) for one in given if getattr(one, "hidden", True)]
        if ndims and (len(ndims) > 1 or max(others, default=0) >= min(ndims)):
            raise NotTogether  # items are paired with something else
        rank = min(ndims) if ndims else max(others)
        found = ufunc(*[self._lined_up(one, span, rank) for one in given])
        kind = np.result_type(plain(found))
        if kind.kind in "iu" and kind != np.int64:
            raise NotTogether  # of one number, NumPy warns where it is too large
        return Each(self, found, span, weak and all([_is_pythons(one) for one in inputs]) and (sign or kind.kind == "b"))

    def _as_numpys(self, ufunc: Callable[..., Any], inputs: Sequence[Any], sign: bool) -> Sequence[Any]:
        """Numbers of Python's, of which each iteration has one, as NumPy's, which are to give the same."""
        strong = [plain(one.value) if type(one) is Each else plain(one) for one in inputs if not _is_pythons(one)]
        kind = np.result_type(*strong) if strong else np.dtype(bool)
        if any([_kind(one) == "b" for one in inputs]) or ufunc is np.where:
            raise NotTogether
        if kind.kind == "f" or (kind == np.int64 and all([_kind(one) in "iu" for one in inputs])):
            return [Each(self, one.value.astype(kind), one.span) if type(one) is Each and one.weak else one for one in inputs]
        kinds = {_kind(one) for one in inputs}
        if strong or not kinds <= {"i", "f"}:
            raise NotTogether
        if not sign:  # NumPy makes floats of them
            if len(inputs) > 1 or np.result_type(plain(ufunc(*[plain(one.value) for one in inputs]))).kind != "f":
                raise NotTogether
        elif ufunc in (np.true_divide, np.floor_divide, np.remainder):
            by = inputs[1].value if type(inputs[1]) is Each else inputs[1]
            if not bool(np.all(by != 0)):
                raise NotTogether
        elif ufunc not in _SAFE or (ufunc is np.multiply and all([type(one) is Each and _kind(one) == "i" for one in inputs])):
            raise NotTogether
        if not all([_is_small(one) for one in inputs]):
            raise NotTogether
        return inputs

    def _lined_up(self, one: Any, span: Span | None, rank: int) -> Any:
        """A value with the axis of iterations, or items, in front of so many others, which include that of items."""
        if type(one) is not Each:
            return one
        one = self._spread(one, span)
        missing = rank - (span is not None and not span.single) - np.ndim(one.value) + 1
        return one.value if not missing else np.reshape(one.value, (len(one.value), *[1] * missing, *np.shape(one.value)[1:]))

    def _spread(self, one: Each, span: Span | None) -> Each:
        """What an iteration has, once for each of its items."""
        if span is None or one.span is span:
            return one
        return self.once("spread", (one, span), lambda: Each(self, self._repeated(one.value, span), span, one.weak))

    def _repeated(self, value: Any, span: Span) -> Any:
        """What each iteration has, as often as it has items."""
        if span.gaps or np.result_type(plain(value)).kind != "f":
            return value[span.owners]
        return FROM_SEGMENTS(value, span.starts, size=len(span.places), axis=-np.ndim(value))

    # ---- what is made of an iteration's items ----

    def total(self, one: Each) -> Each:
        """The sums over an iteration's items."""
        span, value = one.span, one.value
        assert span is not None
        kind = np.result_type(plain(value))
        if kind.kind != "f":
            raise NotTogether
        if not span.gaps:
            return Each(self, _SUM(value, span.starts, axis=-np.ndim(value)) + 0.0)  # from zero on, which may be negative
        zeros = np.zeros((self.count, *np.shape(value)[1:]))
        value = value if kind == np.float64 else value.astype(np.float64)  # one after the other, that might lose digits
        sums = index.INDEX_ADD(self.trace.fixed(zeros), value, span.owners, spec=(index.Hole(0),))
        return Each(self, sums if kind == np.float64 else sums.astype(kind))

    def over(self, places: Each, one: Any, divides: bool) -> Each:
        """The sums of what there is at the places of an iteration, which go on as NumPy's numbers: Python's zero is none that
        something is divided by."""
        span = places.span
        if type(one) is not Each or one.weak or span is None or (one.span or span) is not span:
            raise NotTogether
        if span.gaps and (divides or one.ndim):  # a number stays one where there is nothing to add
            raise NotTogether
        return self.once("over", (places, one), lambda: self.total(self._spread(one, span)))

    def inplace(self, old: Any, new: Any) -> Any:
        """What ``old`` is when ``new`` was written into it."""
        if type(old) is not Each or type(new) is not Each or (old.span, old.weak, old.ndim) != (new.span, new.weak, new.ndim):
            raise NotTogether
        kinds = [np.result_type(plain(one.value)) for one in (old, new)]
        if old.ndim and (kinds[0] != kinds[1] or np.shape(old.value) != np.shape(new.value)):
            raise NotTogether  # it is cast, or is none of that shape
        return new

    def apart(self, written: Sequence[Any], read: Sequence[Any]) -> None:
        """Nothing, if what iterations write into is no part of what they read, by whatever name."""
        for one in written:
            if type(one) not in (Tracer, np.ndarray) or np.result_type(plain(one)).kind == "O":
                raise NotTogether
            for other in read:
                both = type(one) is type(other) is Tracer and one.owner() is other.owner()
                if both or (type(other) in (Tracer, np.ndarray) and np.may_share_memory(plain(one), plain(other))):
                    raise NotTogether

    def computed(self, one: Any) -> None:
        """Nothing: it raises what computing it does."""

    def never(self, test: Any) -> None:
        """Nothing, if a test of whole numbers holds in no iteration."""
        if type(test) is not Each or test.span is not None or test.ndim:
            raise NotTogether
        inexact = type(test.value) is Tracer and any([arg.aval.dtype.kind not in "iub" for arg in test.value.node.args])
        if inexact or bool(np.any(test.value)):
            raise NotTogether

    def reduced(self, name: str, one: Any, axis: Any = None) -> Each:
        """``np.sum``, ``np.mean``, ``np.max`` or ``np.min`` of what each iteration has."""
        if type(one) is not Each or not (axis is None or type(axis) is int):
            raise NotTogether
        return self.once(name, (one, axis), lambda: self._reduced(name, one, axis))

    def _reduced(self, name: str, one: Each, axis: int | None) -> Each:
        span, value, ndim = one.span, one.value, one.ndim
        if (axis is not None and not -ndim <= axis < ndim) or np.result_type(plain(value)).kind != "f":
            raise NotTogether
        fun = getattr(np, name)
        if axis is not None and (one.hidden or axis % ndim):
            return Each(self, fun(value, axis=axis % ndim + one.hidden), span)
        if span is None or one.hidden:
            return one if not ndim else Each(self, fun(value, axis=tuple(range(1, ndim + 1))), span)
        inner = math.prod(np.shape(value)[1:]) if axis is None else 1
        if axis is None and ndim > 1:
            value = (np.sum if name == "mean" else fun)(value, axis=tuple(range(1, ndim)))
        one = Each(self, value, span)
        if name in _EXTREMES:
            if span.gaps:
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
            if type(a) is not _Turned or type(b) is not Each or b.hidden or b.span is not a.one.span or ndims[1] != 1:
                raise NotTogether
            return self._product(b, a.one)  # X.T @ r
        ragged = [type(one) is Each and not one.hidden for one in (a, b)]
        if ragged == [True, True] and ndims[0] == 1 and ndims[1] in (1, 2):
            left = a if ndims[1] == 1 else self(a, (_EVERY, None))
            return self.total(self.elementwise(np.multiply, (left, b)))
        if ragged == [True, False] and ndims[1] in (1, 2) and ndims[0] == 2:
            if type(b) is not Each:
                return Each(self, a.value @ b, a.span)
            if ndims[1] == 1 and np.shape(a.value)[1] == np.shape(b.value)[1]:
                return self.reduced("sum", self.elementwise(np.multiply, (a, b)), 1)
        lengths = [np.shape(one.value if type(one) is Each else one)[-1:] for one in (a, b)]
        if ragged == [False, False] and ndims == [1, 1] and lengths[0] == lengths[1]:
            return self.reduced("sum", self.elementwise(np.multiply, (a, b)), 0)
        if ragged == [False, False] and ndims == [1, 2] and type(b) is not Each:
            return Each(self, a.value @ b, a.span)
        raise NotTogether


def _span(every: Sequence[Each]) -> Span | None:
    """Whose items these are."""
    spans = [one.span for one in every if one.span is not None]
    if any([span is not spans[0] for span in spans]):
        raise NotTogether  # slices of other ends
    return spans[0] if spans else None


def _is_basic(part: Any) -> bool:
    """Whether it is a plain part of a key that names a view."""
    ends = (part.start, part.stop, part.step) if type(part) is slice else (part,)
    return part is None or all([end is None or type(end) is int for end in ends])


def _is_pythons(one: Any) -> bool:
    """Whether it is a number of Python's, or each iteration has one."""
    if type(one) is Tracer and one.node.aval.kind == "python":
        raise NotTogether  # it is not known whether NumPy's numbers are as large
    return one.weak if type(one) is Each else type(one) in (int, float, bool)


def _kind(one: Any) -> str:
    return np.result_type(plain(one.value) if type(one) is Each else plain(one)).kind


def _is_small(one: Any) -> bool:
    """Whether a number is no int beyond what NumPy's have room for."""
    return _kind(one) != "i" or bool(np.all(np.abs(plain(one.value) if type(one) is Each else one) <= _LARGEST))


class Each:
    """What each iteration has: its own row of ``value``, or those items of it that a ``span`` tells; where it is ``weak``, a
    number of Python's."""

    __slots__ = ("iterations", "span", "value", "weak")

    def __init__(self, iterations: Iterations, value: Any, span: Span | None = None, weak: bool = False) -> None:
        self.iterations, self.value, self.span, self.weak = iterations, value, span, weak

    @property
    def hidden(self) -> bool:
        """Whether an iteration does not see the first axis."""
        return self.span is None or self.span.single

    @property
    def ndim(self) -> int:
        """How many axes it has for an iteration."""
        return np.ndim(self.value) - self.hidden

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
        return own if self.span is None or self.hidden else (Each(self.iterations, self.span.counts, weak=True), *own)

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

    def __matmul__(self, other: Any) -> Any:
        return self.iterations.product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.iterations.product(other, self)

    __bool__ = __len__ = __iter__ = __float__ = __int__ = __index__ = __array__ = _refused
    __hash__ = object.__hash__


def _operators(name: str, ufunc: np.ufunc) -> None:
    """Python's operators of what iterations have."""

    def one(self: Each, *other: Any) -> Each:
        return self.iterations.elementwise(ufunc, (self, *other), True)

    def swapped(self: Each, other: Any) -> Each:
        return self.iterations.elementwise(ufunc, (other, self), True)

    setattr(Each, f"__{name}__", one)
    if ufunc.nin == 2 and name in _SWAPPED:
        setattr(Each, f"__r{name}__", swapped)


_SWAPPED = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_OTHERS = {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
for _name, _ufunc in {**_SWAPPED, **_OTHERS}.items():
    _operators(_name, _ufunc)
_COMPARE = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
_SAFE = frozenset([np.add, np.subtract, np.multiply, np.negative, np.absolute, *_COMPARE])  # of Python's numbers, if small


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


def together(trace: Trace, args: Sequence[Any], fun: Callable[[Any, Any], tuple[Any, ...]]) -> list[Any] | None:
    """What ``fun`` computes with iterations and their index, for all of these, an array each: they are those over a range that
    ``args`` tell, or over arrays, item by item. None where that is not known to be what they would compute."""
    if all([type(arg) in (np.ndarray, Tracer) and np.ndim(arg) for arg in args]):
        lengths = {len(arg) for arg in args}
    else:
        outer = range(*args) if all([isinstance(arg, (int, np.integer)) for arg in args]) else range(0)
        lengths = {len(outer) if outer.start == 0 else 0}
    if len(lengths) > 1 or min(lengths) < FEWEST:
        return None
    guards = len(trace.guards)
    iterations = Iterations(trace, min(lengths))
    ways: dict[str, Any] = {kind: way if way == "ignore" else "raise" for kind, way in np.geterr().items()}
    try:
        with np.errstate(**ways):
            found = fun(iterations, iterations.index)
    except Exception:  # what the user is to see, an iteration raises
        found = ()
    known = [one for one in found if one is not None]
    if known and all([type(one) is Each and one.span is None and not one.weak for one in known]):
        return [one.value.copy() if one.ndim else one.value for one in known]  # iterations may write into rows
    del trace.guards[guards:]
    return None
