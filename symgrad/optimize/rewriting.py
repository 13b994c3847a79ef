"""The engine of rewrites: a pass over a program that takes every node through a table of them.

A *rewrite* goes from one node (its arguments rewritten already) to a better one or None. It may reorder rounding, never change
what is computed. What moves factors and signs about, or drops what is known to be zero, changes it where numbers overflow, and
of zeros the sign: it is for derivatives alone, not for what the user wrote. New nodes learn their shape and dtype from NumPy,
by running the operation on stand-ins.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Graph, Node, aval_of, by_index, content_of
from symgrad.ops import create, engine
from symgrad.ops.abstract import like_result
from symgrad.ops.core import REGISTRY, Op, as_numpy, ops_of
from symgrad.optimize.exact import settled
from symgrad.program import Program

BROADCAST = REGISTRY[np.broadcast_to]
_op_of = functools.partial(dict.get, REGISTRY)  # the op of a NumPy function; an op is its own: asked for most of all
Rewrite = Callable[["Simplifier", Node, tuple[Node, ...]], "Node | None"]
EXACT: set[Rewrite] = set()
DERIVED: set[Rewrite] = set()
OF: dict[Rewrite, frozenset[Any]] = {}  # the operations of which one must be among the arguments


def rewrite(
    *keys: Any,
    of: Iterable[Any] = (),
    rules: dict[Any, list[Rewrite]],
    exact: bool = False,
    derived: bool = False,
) -> Callable[[Rewrite], Rewrite]:
    """Put a rewrite into a table, for operations given by NumPy function or by op.

    ``of``: it applies only where an argument is one of these operations. ``exact``: it changes no bit. ``derived``: it is
    for what derivatives are computed by alone.
    """

    def register(rule: Rewrite) -> Rewrite:
        if exact:
            EXACT.add(rule)
        if derived:
            DERIVED.add(rule)
        if of:
            OF[rule] = frozenset([_op_of(key, key) for key in of])
        for key in keys:
            rules.setdefault(key if isinstance(key, Op) else REGISTRY[key], []).append(rule)
        return rule

    return register


def merged(*tables: dict[Any, list[Rewrite]]) -> dict[Any, list[Rewrite]]:
    """A table of the rewrites of several, in their order."""
    found: dict[Any, list[Rewrite]] = {}
    for op, rules in itertools.chain(*(table.items() for table in tables)):
        found.setdefault(op, []).extend(rules)
    return found


def _weak_alike(ufunc: np.ufunc, args: tuple[Node, ...], numbers: list[bool]) -> bool:
    """Whether Python numbers, in place of some arguments, leave a ufunc in the same loop: not those of ``xlogy``, ``ldexp``."""
    kinds: list[Any] = [_PYTHON[arg.aval.dtype.kind] if arg.aval.kind == "python" else arg.aval.dtype for arg in args]
    weak = [_PYTHON[arg.aval.dtype.kind] if number else kind for arg, kind, number in zip(args, kinds, numbers, strict=True)]
    rest = (None,) * ufunc.nout
    return bool(ufunc.resolve_dtypes((*kinds, *rest)) == ufunc.resolve_dtypes((*weak, *rest)))


PLACES = 65_536  # elements of masks, and of indices, that are there in the code
_PYTHON = {"f": float, "c": complex, "i": int, "u": int, "b": int}


_DIVISIONS = ops_of(np.true_divide, np.floor_divide, np.remainder)
_OF_MASKS = {REGISTRY[ufunc] for ufunc in (np.logical_and, np.logical_or, np.logical_not)}


class Simplifier:
    """One pass over a program: rebuilds its graph in order, every node through a table of rewrites."""

    def __init__(self, program: Program, rules: dict[Any, list[Rewrite]]) -> None:
        self.program, self.rules = program, rules
        self.graph = Graph()
        self.graph.single = program.graph.single  # whatever comes later
        self.phase: str | None = None  # of the node that is visited
        self.exact = False  # whether a decision hangs on it: then only rewrites that change no bit
        self.uses: Counter[Node] = Counter()
        self.used: dict[Node, int] = {}  # the same of what is rebuilt
        self.written: dict[tuple[Node, tuple[Op, ...]], Written] = {}
        self.mapping: dict[Node, Node] = {}
        self.folded: dict[Any, Node] = {}  # operations on constants that made arrays
        self.whole: dict[Any, Any] = {}  # of masks and places, the first of each content
        self._applicable: dict[Any, list[Rewrite]] = {}

    def run(self, exact: Iterable[Node] = ()) -> Program:
        """The program rebuilt; what decisions hang on, and what ``exact`` does, to the bit."""
        nodes = self.program.nodes()
        exact = {*settled(self.program), *exact}
        self.uses.update([arg for node in nodes for arg in node.args])
        ends = set(self.program.roots())
        mapping, uses, used = self.mapping, self.uses, self.used
        for node in nodes:
            self.exact = node in exact
            new = mapping[node] = self.visit(node, tuple([mapping[arg] for arg in node.args]))
            used[new] = used.get(new, 0) + uses.get(node, 0) + (node in ends)
        return self.program.map(self.graph, self.mapping)

    def visit_as(self, op: Any, node: Node, args: tuple[Node, ...], aval: Any = None) -> Node:
        """``node`` with another operation in its place, or of another ``aval``."""
        new = self.graph.add(op, args, node.params, node.aval if aval is None else aval)
        new.name, new.line, new.phase = node.name, node.line, node.phase
        new.exact = new.exact or self.exact
        return new

    def again(self, node: Node) -> Node:
        """A node rebuilt apart from a run, to the bit where it was so; its arguments are there."""
        self.exact = node.exact
        return self.visit(node, tuple([self.mapping[arg] for arg in node.args]))

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        """The simplified form of ``node`` on simplified arguments."""
        nodes = self.graph.nodes
        start = len(nodes)
        self.phase = node.phase
        if node.op is INPUT:
            new = self.graph.input(dict(node.params)["position"], node.aval)
        elif node.op is CONST:
            new = self.graph.const(dict(node.params)["value"])
        elif node.op is CAPTURED:
            new = self.graph.captured(self._first(self.program.graph.arrays[node]))
        else:
            changes = _may_change(node, args)
            if changes and node.op is REGISTRY[np.power]:  # NumPy has infinity or NaN where Python raises or goes complex
                args = (self.graph.add(engine.TO_NUMPY, args[:1], (), node.aval), args[1])
            elif changes and node.op in _DIVISIONS and args[1].op is not CONST and args[1].aval.kind == "python":
                divisor = self.graph.add(engine.TO_NUMPY, args[1:], (), args[1].aval._replace(kind="scalar"))
                args = (args[0], divisor)
            new = self.make(node.op, args, node.params, None if changes else node.aval)
        for made in nodes[start:]:  # what a rewrite added belongs to the same line
            made.line, made.phase = made.line or node.line, made.phase or node.phase
            made.exact = self.exact
        new.exact = new.exact or self.exact
        new.active = new.active or node.active
        if new.name is None:
            new.name = node.name
        return new

    def make(self, op: Any, args: tuple[Node, ...], params: tuple[tuple[str, Any], ...] = (), aval: Any = None) -> Node:
        """The node of an operation, rewritten until no rule applies. Without ``aval``, NumPy tells it."""
        if aval is None:
            aval = infer(op, args, params)
        ops = [arg.op for arg in args]
        if CONST in ops or CAPTURED in ops:
            if ops.count(CONST) + ops.count(CAPTURED) == len(ops) and not op.anew:
                folded = self._fold(op, args, params)
                if folded is not None:
                    return folded
            if CONST in ops and len(ops) > 1 and op.family in ("elementwise", "constant"):
                args = self._weaken(op, args)
        key = (self.exact, self.phase is None, op, *ops)
        rules = self._applicable.get(key)
        if rules is None:
            rules = self._applicable[key] = self._rules_for(op, ops)
        broadcast = BROADCAST in ops and (op.family == "elementwise" or op in _OF_MASKS)
        probe = None
        if rules or broadcast:
            probe = Node(op, args, params, aval)
            for rule in rules:
                better = rule(self, probe, args)
                if better is not None and compatible(better.aval, aval, self.graph.single):
                    return better
            slim = _unbroadcast_arguments(self, probe, args) if broadcast else None
            if slim is not None:
                return slim
        return self.graph.add(op, args, params, aval, probe)

    def _rules_for(self, op: Op, ops: Sequence[Any]) -> list[Rewrite]:
        """The rules that may apply to an operation of such operations, here and now."""
        return [
            rule
            for rule in self.rules.get(op, ())
            if not (self.exact and rule not in EXACT)
            and not (self.phase is None and rule in DERIVED)
            and (rule not in OF or not OF[rule].isdisjoint(ops))
        ]

    def _weaken(self, op: Op, args: tuple[Node, ...]) -> tuple[Node, ...]:
        """NumPy constants as Python numbers, beside a value whose dtype decides anyway."""
        deciding = args[1:] if op is REGISTRY[np.where] else args  # what chooses has no part in the dtype
        firm = {arg.aval.dtype for arg in deciding if arg.op is not CONST and getattr(arg.aval, "kind", "python") != "python"}
        numbers = [arg.op is CONST and isinstance(const(arg), np.number) and arg.aval.dtype in firm for arg in args]
        if not any(numbers) or (isinstance(op.key, np.ufunc) and not _weak_alike(op.key, args, numbers)):
            return args
        return tuple([self.graph.const(const(arg).item()) if weak else arg for arg, weak in zip(args, numbers, strict=True)])

    def call(self, key: Any, *args: Any, **params: Any) -> Node:
        """``make`` by NumPy function, with plain numbers as arguments where wanted."""
        op = key if isinstance(key, Op) else REGISTRY[key]
        nodes = tuple([arg if isinstance(arg, Node) else self.graph.const(arg) for arg in args])
        return self.make(op, nodes, tuple(sorted(params.items())))

    def item(self, loop: Node, place: int) -> Node:
        """One of the results of a loop."""
        return self.graph.add(engine.ITEM, (loop,), (("item", place),), loop.aval[place])

    def add(self, key: Any, *args: Node) -> Node:
        """The node of an operation as it stands, without rewriting; numbers fold."""
        op = REGISTRY[key]
        if all([arg.op is CONST for arg in args]):
            folded = self._fold(op, args, ())
            if folded is not None:
                return folded
        return self.graph.add(op, args, (), infer(op, args, ()))

    def _fold(self, op: Any, args: tuple[Node, ...], params: tuple[tuple[str, Any], ...]) -> Node | None:
        """What an operation makes of numbers, and of arrays that the function made of nothing else, if it is no larger, or a
        mask, or places."""
        if (op, args, params) in self.folded:
            return self.folded[op, args, params]
        whole = all([isinstance(arg.aval, Aval) and arg.aval.dtype.kind in _WHOLE for arg in args])
        pure = op.family in _PURE and (whole or not op.alias)
        if not pure and any([arg.op is CAPTURED for arg in args]):
            return None
        values = [self.graph.arrays[arg] if arg.op is CAPTURED else const(arg) for arg in args]
        try:
            with np.errstate(all="ignore"):
                value = _ran(op, values, params)
        except (ArithmeticError, ValueError, TypeError):
            return None
        if isinstance(value, (int, float, complex, np.generic)):
            return self.graph.const(value)
        plain = isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biufc"
        held = any([arg.op is CAPTURED for arg in args])  # what is a number throughout, and no array, is known by what makes it
        few = PLACES if held and whole and plain and value.dtype.kind in _WHOLE else 0
        if not (pure and plain and value.size <= max(few, sum(map(np.size, values)))):
            return None
        if held and value.dtype.kind == "b" and value.size and np.all(value) == np.any(value):
            shape = (("shape", value.shape),)
            return self.graph.add(BROADCAST, (self.graph.const(np.bool_(value.flat[0])),), shape, aval_of(value))
        if op.alias:
            value = value.copy()
        if value.base is None and not any([value is given for given in values]):
            value.flags.writeable = False  # nobody else has it
        value = self._first(value)
        self.folded[op, args, params] = node = self.graph.captured(value)
        return node

    def _first(self, array: Any) -> Any:
        """Of masks and places that nobody changes, the first one of this content."""
        return self.whole.setdefault(content_of(array), array) if is_whole(array) else array


def is_whole(array: Any) -> bool:
    """Whether an array is a mask, or of places, which nobody changes, and is not large."""
    return array.dtype.kind in _WHOLE and not array.flags.writeable and array.base is None and array.size <= PLACES


def compatible(new: Any, old: Any, single: bool) -> bool:
    """Whether a rewritten node may stand in for another: same shape and dtype, and no array where a number was.

    Beside ``single`` precision, Python's numbers take its type, and NumPy's keep their own. Python's flags are numbers, which
    NumPy's are not, and its ints know no overflow.
    """
    if not isinstance(old, Aval) or not isinstance(new, Aval):
        return bool(new == old)
    if (single or old.dtype.kind in "bi") and (new.kind == "python") != (old.kind == "python"):
        return False
    return new.shape == old.shape and (new.dtype == old.dtype) and (new.kind == old.kind or not old.shape)


def _may_change(node: Node, args: tuple[Node, ...]) -> bool:
    """Whether a number of NumPy's may be of another kind by now, as what it is made of is: views and casts of 0-d arrays, and
    of Python's numbers, are arrays, and arithmetic on Python's numbers gives such."""
    if not isinstance(node.aval, Aval) or node.aval.kind != "scalar" or not args:
        return False
    if node.op.alias or node.op is engine.ASTYPE:
        return args[0].aval.kind != "scalar" and not args[0].aval.shape
    return all(map(_is_python, args)) and not all(map(_is_python, node.args))


def _is_python(node: Node) -> bool:
    return isinstance(node.aval, Aval) and node.aval.kind == "python"


def infer(op: Any, args: Sequence[Node], params: tuple[tuple[str, Any], ...]) -> Any:
    """Shape, dtype and kind of an operation's result, from a run on ones where there is no other way."""
    if op in _ARITHMETIC and type(aval := _common(args)) is Aval:
        return aval
    ones = [_ones(arg) for arg in args]
    like = like_result(op, ones, dict(params))
    if like is None:
        with np.errstate(all="ignore"):
            like = _ran(op, ones, params)
    return aval_of(like)


def _ran(op: Any, args: Sequence[Any], params: tuple[tuple[str, Any], ...]) -> Any:
    """What an operation makes of values; NumPy's infinity of a literal divided by 0, where Python's numbers raise."""
    try:
        return op.fun(*args, **dict(params))
    except (ZeroDivisionError, OverflowError):
        return op.fun(*map(as_numpy, args), **dict(params))


_WHOLE = "bi"
_PURE = ("elementwise", "linear", "multilinear", "constant")  # families of which one result depends on the arguments alone
_ARITHMETIC = {REGISTRY[key] for key in (np.add, np.subtract, np.multiply, np.true_divide, np.negative)}


def _common(args: Sequence[Node]) -> Aval | None:
    """What arithmetic gives of arguments of one dtype, and real numbers of Python's; None where that is not known at once."""
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    for arg in args:
        aval = arg.aval
        if type(aval) is not Aval:
            return None
        if aval.kind == "python":
            if aval.dtype.kind == "c":
                return None
            continue
        if dtype is not None and aval.dtype != dtype:
            return None
        dtype = aval.dtype
        if aval.shape != shape:
            shape = np.broadcast_shapes(shape, aval.shape) if shape and aval.shape else shape or aval.shape
    if dtype is None or dtype.char not in "fdFD" or not dtype.isnative:
        return None
    return Aval(shape, dtype, "array" if shape else "scalar")  # of 0-d arrays it gives numbers


def _ones(node: Node) -> Any:
    return const(node) if node.op is CONST else _ones_like(node.aval)


@functools.lru_cache(maxsize=1000)
def _ones_like(aval: Aval) -> Any:
    one = aval.dtype.type(0 if aval.dtype.kind in "iu" else 1)  # an integer may be an index, and 0 always is one
    if aval.kind == "array":
        return np.broadcast_to(one, aval.shape)
    return one if aval.kind == "scalar" else one.item()


def const(node: Node) -> Any:
    """The number that a constant node is; None for other nodes."""
    return node.params[0][1] if node.op is CONST else None


def is_number(node: Node, value: float) -> bool:
    """Whether a node is this very number (``-0.0`` is not ``0.0``)."""
    number = const(node)
    return number is not None and number == value and (value != 0 or math.copysign(1.0, number.real) > 0)


def is_zero(node: Node) -> bool:
    """Whether a node is known to be zero throughout: a literal, or an array that a derivative made."""
    if is_op(node, np.broadcast_to) and node.phase is not None:
        return is_zero(node.args[0])
    return const(node) == 0 if node.op is CONST else node.op is create.ZEROS and node.phase is not None


def filling(node: Node) -> Any:
    """The number that a value is throughout; None where it is none."""
    if is_op(node, np.broadcast_to) or node.op is create.FULL:
        return filling(node.args[0])
    return 0 if node.op is create.ZEROS else const(node)


def is_op(node: Node, key: Any) -> bool:
    """Whether a node is an operation of this NumPy function or op."""
    return node.op is _op_of(key, key)


def _unbroadcast_arguments(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Elementwise operations broadcast anyway: take explicit broadcasts off their arguments."""
    if 0 in node.aval.shape:  # the numbers that are broadcast to nothing may be poles
        return throughout(s, node, 0)
    if len(args) < 2:
        if args and is_op(args[0], np.broadcast_to) and node.aval.kind == "array":
            inner = s.make(node.op, args[0].args, node.params)
            return s.make(REGISTRY[np.broadcast_to], (inner,), args[0].params, node.aval)
        return None
    bare = tuple([arg.args[0] if is_op(arg, np.broadcast_to) else arg for arg in args])
    if bare == args:
        return None
    for i, arg in enumerate(bare):  # an np.float64 beside float32 arrays is not weak, as the broadcast array was not
        if args[i] is not arg and arg.aval.dtype != args[i].aval.dtype:
            return None
    inner = s.make(node.op, bare, node.params)
    if inner.aval.dtype != node.aval.dtype:
        return None
    if inner.aval.shape == node.aval.shape:
        return inner
    return s.make(REGISTRY[np.broadcast_to], (inner,), (("shape", node.aval.shape),), node.aval)


# -- what rewrites ask of nodes, and make of them --------------------------------------------------------------------


_NEGATIVE, _DIVIDE = REGISTRY[np.negative], REGISTRY[np.true_divide]
SCALING = {_NEGATIVE, _DIVIDE, REGISTRY[np.multiply]}


def is_named(node: Node) -> bool:
    """Whether a value has a name of the user's, so that readers look for it."""
    return node.name is not None and not node.name.startswith(("g_", "t_"))


def has_sign(node: Node) -> bool:
    """Whether what a minus gives is the opposite: of NumPy's integers, some have none, such as all but zero without a sign."""
    return node.aval.dtype.kind in "fc" or node.aval.kind == "python"


def split(node: Node) -> tuple[float, Node]:
    """``(c, x)`` with ``node == c * x``; ``c`` is 1.0 where there is no factor to take off."""
    op, args = node.op, node.args
    if op not in SCALING or node.exact or is_named(node):
        return 1.0, node
    if op is _NEGATIVE:
        return (-1.0, args[0]) if has_sign(node) else (1.0, node)
    dtype = node.aval.dtype
    for factor, rest in ((args[1], args[0]),) if op is _DIVIDE else ((args[0], args[1]), (args[1], args[0])):
        if factor.op is CONST and is_factor(factor, dtype) and rest.aval.dtype == dtype:
            if op is _DIVIDE:
                return 1.0 / float(const(factor)), rest
            if dtype.kind in "fc":
                return float(const(factor)), rest
    return 1.0, node


def is_factor(node: Node, dtype: np.dtype[Any]) -> bool:
    """Whether it is a number that may be moved from where it is in a product of this dtype."""
    value = const(node)
    return type(value) in (int, float) and is_moderate(value, dtype)


def is_moderate(c: float, dtype: np.dtype[Any]) -> bool:
    """Whether numbers times ``c``, or its square, overflow or become subnormal where they did not before only if they are
    next to that anyway: in single precision, ``x / 1e-21`` squared is no multiple of ``x**2``."""
    return bool(c) and math.isfinite(c) and abs(math.log2(abs(c))) <= REACH.get(dtype.char, DOUBLE)


DOUBLE = 128.0  # the binary exponent of factors that are moved in double precision, at most
REACH = {"e": 3.0, "f": 24.0, "F": 24.0}  # and in others


def join(s: Simplifier, c: float, x: Node) -> Node:
    """``c * x``."""
    inner, rest = split(x)
    if is_moderate(c * inner, x.aval.dtype):
        c, x = c * inner, rest
    if c == 1.0 or is_zero(x):
        return x
    if is_op(x, np.broadcast_to) and const(x.args[0]) is not None:
        return s.call(np.broadcast_to, join(s, c, x.args[0]), shape=x.aval.shape)
    if c == -1.0:
        return s.add(np.negative, x)
    count = round(1.0 / c) if 1e-7 < abs(c) < 1 else 0
    if count and 1.0 / count == c and abs(count) != 2:  # the n of a mean
        return s.add(np.true_divide, x, s.graph.const(count))
    return s.add(np.multiply, s.graph.const(c), x)


def throughout(s: Simplifier, node: Node, number: int) -> Node:
    """What has a node's shape and dtype, and is one number throughout."""
    one = s.graph.const(float(number) if node.aval.dtype == float else node.aval.dtype.type(number))
    return s.call(np.broadcast_to, one, shape=node.aval.shape) if node.aval.shape else one


def elements_of(node: Node) -> int:
    return math.prod(node.aval.shape)


def axes_of(node: Node) -> tuple[int, ...]:
    """The axes that a reduction goes over, counted from the start."""
    axis, ndim = dict(node.params).get("axis"), len(node.args[0].aval.shape)
    if axis is None or not ndim:
        return tuple(range(ndim))
    return tuple(sorted(i % ndim for i in (axis if isinstance(axis, tuple) else (axis,))))


def len_of(node: Node) -> int:
    """The length of a node's first axis."""
    return int(node.aval.shape[0])


@dataclass
class Written:
    """Parts of an array written one after the other: into what, the last of the writes, and each of them, in their order.

    What they are written into may be written itself, as is told ``before``. An index is told by its numbers along the axes,
    with None for what is none; all of them together stand at -1.
    """

    into: Node
    last: Node
    before: Written | None = None
    every: list[Node] = field(default_factory=list)
    by_number: dict[tuple[int, Any], list[Node]] = field(default_factory=dict)

    @property
    def base(self) -> Node:
        """What the first of all writes is into."""
        one = self
        while one.before is not None:
            one = one.before
        return one.into

    def add(self, write: Node, numbers: tuple[int | None, ...]) -> None:
        self.every.append(write)
        for place in _by_axis(numbers):
            self.by_number.setdefault(place, []).append(write)

    def at(self, numbers: tuple[int | None, ...], array: Node) -> Iterator[Node]:
        """The writes up to ``array``, the last one first, among which all are that may be at these numbers; few others."""
        one = self
        while one.before is not None:
            yield from one._own(numbers, array)
            one, array = one.before, one.into
        yield from one._own(numbers, array)

    def _own(self, numbers: tuple[int | None, ...], array: Node) -> Iterator[Node]:
        """Those of them that are no earlier ones."""
        asked = [(axis, number) for axis, number in _by_axis(numbers) if number is not None]
        ways = [[self.by_number.get((axis, here), []) for here in (number, None)] for axis, number in asked]
        lists = min([*ways, [self.every]], key=lambda way: sum(map(len, way)))
        ends = [bisect.bisect_right(writes, array.index, key=by_index) for writes in lists]  # others went on after the array
        back = [map(writes.__getitem__, reversed(range(end))) for writes, end in zip(lists, ends, strict=True) if end]
        return back[0] if len(back) == 1 else heapq.merge(*back, key=by_index, reverse=True)


def _by_axis(numbers: tuple[int | None, ...]) -> Iterator[tuple[int, Any]]:
    yield -1, (numbers if None not in numbers else None)
    yield from enumerate(numbers)
