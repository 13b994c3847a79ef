"""What operations do to grids: elementwise ones are done element by element, NumPy's own functions move elements about and sum
products of them (they take object arrays), and small systems of equations are solved operation by operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Node
from symgrad.ops import create, engine, index, linalg
from symgrad.ops.core import REGISTRY, Op, ops_of
from symgrad.ops.reduction import OTHERS
from symgrad.ops.scan import FROM_SEGMENTS, SHARES, Running, Segments
from symgrad.optimize.elimination import Factors, cholesky
from symgrad.optimize.rewriting import axes_of, const, is_op
from symgrad.optimize.scalarizer import BLAS, Grid, Rule, Scalarizer, Unsuited, grid_of
from symgrad.optimize.scalars import (
    CALL,
    CHOICE,
    EITHER,
    ELEMENT,
    LARGER,
    OPERATION,
    PACKING,
    POWER,
    SIGN,
    SMALLER,
    STEP,
    UNPACKING,
)

FEW = 4  # elements from which on a call is cheaper than many operations on each
LARGEST_SYSTEM = 3  # rows of a matrix that is eliminated in
GRIDS: dict[Any, Rule] = {}


def grid_rule(*keys: Any) -> Callable[[Rule], Rule]:
    """Put a rule into the table, for operations given by NumPy function or by op. It may return None: a NumPy call."""

    def register(rule: Rule) -> Rule:
        for key in keys:
            GRIDS[key if isinstance(key, Op) else REGISTRY[key]] = rule
        return rule

    return register


@grid_rule(
    engine.IDENTITY, engine.NAMED, engine.STOP, engine.TO_PYTHON, engine.TO_NUMPY, engine.TO_ARRAY, np.positive, np.real,
    np.conjugate, np.copy,
)  # fmt: skip
def same(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """What changes no number."""
    (grid,) = grids
    return grid.reshape(node.aval.shape) if node.args[0].aval.dtype == node.aval.dtype else None


@grid_rule(engine.ASTYPE, engine.TO_FLOAT)
def cast(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if node.args[0].aval.dtype == node.aval.dtype:
        return grids[0]
    return s.each(lambda x: s.number(engine.TO_FLOAT, x), grids[0]) if node.aval.dtype == float else None


@grid_rule(engine.BOOL, engine.NOT, engine.AND)
def truth(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if any(arg.aval.dtype != bool for arg in node.args):
        return None
    return grids[0].reshape(()) if node.op is engine.BOOL else s.each(lambda *x: s.number(node.op, *x), *grids)


#: NumPy's sum, product, and largest and smallest of truth values, which are some again.
_OF_TRUTHS = {np.add: EITHER, np.maximum: EITHER, np.multiply: engine.AND, np.minimum: engine.AND}


def _elementwise(*keys: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what an operation does to each element: ``rule(s, *elements)``, None where only NumPy knows."""

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        def apply(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
            if params or node.aval.dtype not in (float, bool):
                return None
            made = s.each(lambda *elements: rule(s, *elements), *grids)
            if any(element is None for element in made.flat):
                return None
            return made

        grid_rule(*keys)(apply)
        return rule

    return register


def _direct(key: Any) -> None:
    """Elementwise operations that a number has too."""

    @_elementwise(key)
    def rule(s: Scalarizer, *elements: Node) -> Node:
        return s.number(key, *elements)


for _key in (
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh,
    np.exp, np.expm1, np.exp2, np.log, np.log1p, np.log2, np.log10, np.sqrt, np.cbrt, np.hypot, np.arctan2, np.copysign,
):  # fmt: skip
    _direct(_key)


@grid_rule(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
def comparison(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """NumPy compares integers beside floats in double precision, and Python as they are."""
    if params or node.aval.dtype != bool:
        return None
    if node.aval.kind != "python" and {arg.aval.dtype.kind for arg in node.args} == {"i", "f"}:
        grids = [s.each(lambda x: _as_float(s, x), grid) for grid in grids]
    return s.each(lambda x, y: s.number(node.op, x, y), *grids)


def _arithmetic(key: Any) -> None:
    """Arithmetic, of at least one float, for Python's integers have other sums than NumPy's; or of truth values, as NumPy's."""

    @_elementwise(key)
    def rule(s: Scalarizer, *elements: Node) -> Node | None:
        if key in _OF_TRUTHS and all(e.aval.dtype == bool for e in elements):
            return s.number(_OF_TRUTHS[key], *elements)
        return s.number(key, *elements) if any(e.aval.dtype == float for e in elements) else None


for _sum in (np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.abs):
    _arithmetic(_sum)


@_elementwise(np.fabs)
def fabs(s: Scalarizer, x: Node) -> Node:
    return s.number(np.abs, x)


@_elementwise(np.square)
def square(s: Scalarizer, x: Node) -> Node | None:
    return s.number(np.multiply, x, x) if x.aval.dtype == float else None


@_elementwise(np.reciprocal)
def reciprocal(s: Scalarizer, x: Node) -> Node | None:
    return s.number(np.true_divide, 1.0, x) if x.aval.dtype == float else None


@_elementwise(np.power, np.float_power)
def power(s: Scalarizer, x: Node, y: Node) -> Node | None:
    if x.aval.dtype != float:
        return None
    if s.raises:  # products would be infinite
        return s.number(POWER, x, y)
    exponent = const(y)
    if exponent == 2:
        return s.number(np.multiply, x, x)
    if s.exact:
        return None
    if exponent == 1:
        return x
    if exponent == 0.5:
        return s.number(np.sqrt, x)
    if exponent in (3, 4):
        square = s.number(np.multiply, x, x)
        return s.number(np.multiply, square, x if exponent == 3 else square)
    if exponent in (-1, -2):
        return s.number(np.true_divide, 1.0, x if exponent == -1 else s.number(np.multiply, x, x))
    return s.number(POWER, x, y)


def _as_float(s: Scalarizer, x: Node) -> Node:
    if x.aval.dtype == float:
        return x
    value = const(x)
    if value is not None:
        return s.graph.const(float(value))
    return s.number(CHOICE, x, 1.0, 0.0) if x.aval.dtype == bool else s.number(engine.TO_FLOAT, x)


@_elementwise(np.maximum)
def maximum(s: Scalarizer, x: Node, y: Node) -> Node:
    if x.aval.dtype == y.aval.dtype == bool:
        return s.number(_OF_TRUTHS[np.maximum], x, y)
    if is_op(y, np.greater) and _is_decay(x) and s.phase is not None:
        return s.number(CHOICE, y, 1.0, x)
    return s.number(LARGER, _as_float(s, x), _as_float(s, y))


def _is_decay(x: Node) -> bool:
    """Whether it is ``exp(-abs(z))``, which lies between 0 and 1."""
    return is_op(x, np.exp) and is_op(x.args[0], np.negative) and is_op(x.args[0].args[0], np.abs)


@_elementwise(np.minimum)
def minimum(s: Scalarizer, x: Node, y: Node) -> Node:
    if x.aval.dtype == y.aval.dtype == bool:
        return s.number(_OF_TRUTHS[np.minimum], x, y)
    return s.number(SMALLER, _as_float(s, x), _as_float(s, y))


@grid_rule(np.logaddexp)
def logaddexp(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if s.exact or node.aval.dtype != float or math.prod(node.aval.shape) > FEW:
        return None

    def of(x: Node, y: Node) -> Node:
        low, high = s.number(SMALLER, x, y), s.number(LARGER, x, y)
        rest = s.number(np.log1p, s.number(np.exp, s.number(np.subtract, low, high)))
        same = s.number(np.add, x, math.log(2.0))  # infinities have no difference
        return s.choice(s.number(np.equal, x, y), same, s.number(np.add, high, rest))

    return s.each(lambda x, y: of(_as_float(s, x), _as_float(s, y)), *grids)


@_elementwise(np.deg2rad, np.radians)
def radians(s: Scalarizer, x: Node) -> Node | None:
    return s.number(np.multiply, x, math.pi / 180.0) if x.aval.dtype == float else None


@_elementwise(np.rad2deg, np.degrees)
def degrees(s: Scalarizer, x: Node) -> Node | None:
    return s.number(np.multiply, x, 180.0 / math.pi) if x.aval.dtype == float else None


@_elementwise(np.sign)
def sign(s: Scalarizer, x: Node) -> Node | None:
    return s.number(SIGN, x) if x.aval.dtype == float else None


@_elementwise(np.heaviside)
def heaviside(s: Scalarizer, x: Node, at: Node) -> Node:
    return s.number(STEP, _as_float(s, x), _as_float(s, at))


@_elementwise(np.clip)
def clip(s: Scalarizer, x: Node, low: Node, high: Node) -> Node | None:
    if const(low) is None or const(high) is None or not const(low) <= const(high) or x.aval.dtype != float:
        return None
    low, high = _as_float(s, low), _as_float(s, high)
    x = s.number(CHOICE, s.number(np.less, x, low), low, x)
    return s.number(CHOICE, s.number(np.greater, x, high), high, x)


@grid_rule(np.where)
def where(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if node.args[0].aval.dtype != bool or node.aval.dtype != float:
        return None
    return s.each(lambda c, x, y: s.number(CHOICE, c, _as_float(s, x), _as_float(s, y)), *grids)


@grid_rule(np.logical_and, np.bitwise_and)
def both(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    return _of_truths(s, engine.AND, node, grids)


@grid_rule(np.logical_or, np.bitwise_or)
def either(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    return _of_truths(s, EITHER, node, grids)


@grid_rule(np.logical_not, np.invert)
def negated(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    return _of_truths(s, engine.NOT, node, grids)


def _of_truths(s: Scalarizer, op: Op, node: Node, grids: list[Grid]) -> Grid | None:
    if any(part.aval.dtype != bool for part in (node, *node.args)):  # Python's ``~True`` is -2
        return None
    return s.each(lambda *x: s.number(op, *x), *grids)


@_elementwise(np.isnan)
def isnan(s: Scalarizer, x: Node) -> Node:
    return s.number(np.not_equal, x, x)


# ---- what NumPy itself does to object arrays ----


class Element:
    """A number of a program with Python's operators, for NumPy's functions to work on in object arrays."""

    __slots__ = ("node", "s")

    def __init__(self, s: Scalarizer, node: Node) -> None:
        self.s, self.node = s, node

    def _with(self, key: Any, other: Any) -> Any:
        if not isinstance(other, Element):  # where NumPy starts a sum or a product
            assert other == (1 if key is np.multiply else 0)
            return self
        return Element(self.s, self.s.number(key, self.node, other.node))

    def __add__(self, other: Any) -> Any:
        return self._with(np.add, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return self._with(np.multiply, other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return self._with(np.subtract, other)

    def __neg__(self) -> Any:
        return Element(self.s, self.s.number(np.negative, self.node))

    def conjugate(self) -> Any:
        """Itself: it is real."""
        return self


def _run(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid:
    """NumPy's own function, on elements."""
    wrapped = [np.frompyfunc(lambda e: Element(s, e), 1, 1)(grid) for grid in grids]
    wrapped = [w if type(w) is np.ndarray else grid_of(w) for w in wrapped]
    return _unwrapped(s, node, node.op.fun(*wrapped, **params))


def _unwrapped(s: Scalarizer, node: Node, made: Any) -> Grid:
    made = np.asarray(made, object)
    if made.shape != node.aval.shape:
        raise Unsuited
    found = np.empty(made.shape, object)
    for place, element in np.ndenumerate(made):
        number = isinstance(element, Element)
        found[place] = element.node if number else s.graph.const(node.aval.dtype.type(element).item())
    return found


_MOVES = (
    np.reshape, np.ravel, np.squeeze, np.expand_dims, np.broadcast_to, np.transpose, np.matrix_transpose, np.swapaxes,
    np.moveaxis, np.flip, np.rot90, np.roll, np.concatenate, np.stack, np.tile, np.diagonal, np.tril, np.triu,
)  # fmt: skip


FREE = {INPUT, CONST, CAPTURED} | ops_of(*_MOVES, index.GETITEM, engine.ITEM, engine.TO_PYTHON, create.ZEROS, create.EYE)


@grid_rule(*_MOVES, create.DIAGONAL)
def move(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """What only moves elements about, and makes floats of numbers that are known."""
    made = []
    for arg, grid in zip(node.args, grids, strict=True):
        if arg.aval.dtype != node.aval.dtype:
            if node.aval.dtype != np.float64 or not all([type(const(element)) is int for element in grid.flat]):
                return None
            grid = s.each(lambda x: s.graph.const(float(const(x))), grid)
        made.append(grid)
    return _run(s, node, made, params)


@grid_rule(np.diag)
def diagonal(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """In derivatives, zeros that are known would stay zero where those of NumPy's matrix, times infinity, do not."""
    return None if s.phase is not None and grids[0].ndim == 1 else move(s, node, grids, params)


_PRODUCTS = (
    np.matmul, np.dot, np.inner, np.outer, np.vdot, np.vecdot, np.tensordot, np.einsum, np.cross, np.kron,
    *((np.matvec, np.vecmat) if hasattr(np, "matvec") else ()),
)  # fmt: skip


SUMMING = ops_of(*_PRODUCTS)
_FROM_ZERO = ops_of(*_PRODUCTS, np.sum, np.trace) - ops_of(np.outer, np.cross, np.kron)


def _is_dear(s: Scalarizer, node: Node, grids: list[Grid]) -> bool:
    """Whether a product costs more on numbers than as a call, with what that takes to be packed and unpacked."""
    sizes = [math.prod(value.aval.shape) for value in (node, *node.args)]
    if not s.calls or node.op not in BLAS or any(const(element) is not None for grid in grids for element in grid.flat):
        return False
    saved, conversions = 0.0, UNPACKING + ELEMENT * sizes[0]
    for arg, size in zip(node.args, sizes[1:], strict=True):
        if not s.is_whole(arg):
            conversions += PACKING + ELEMENT * size
        elif arg not in s.elements_read:
            saved += UNPACKING + ELEMENT * size
    dear = bool(OPERATION * 2 * math.sqrt(math.prod(sizes)) + saved > CALL + conversions)
    s.left = s.left or dear
    return dear


@grid_rule(*_PRODUCTS, np.sum, np.trace, np.cumsum, np.prod, np.cumprod, np.diff)
def combine(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """Sums and products. A sum's last bit hangs on the order, which is NumPy's own where a decision hangs on the sum."""
    if node.op is REGISTRY[np.sum] and node.args[0].aval.dtype == bool and node.aval.dtype == float:  # how many are true
        numbers = s.each(lambda x: _as_float(s, x), grids[0])
        return _run(s, node, [numbers], {name: value for name, value in params.items() if name != "dtype"})
    if (
        (s.exact and not _in_order(node))
        or any(aval.dtype != float for aval in (node.aval, *[arg.aval for arg in node.args]))
        or 0 in [grid.size for grid in grids]
        or _is_dear(s, node, grids)
    ):
        return None
    found = _run(s, node, grids, {name: value for name, value in params.items() if name not in ("dtype", "optimize")})
    return s.each(lambda x: _from_zero(s, x), found) if node.op in _FROM_ZERO else found


def _from_zero(s: Scalarizer, total: Node) -> Node:
    """A sum as NumPy's, which starts from 0: that of nothing but ``-0.0`` is 0."""
    return total if s.phase is not None or _has_plus(total) else s.number(np.add, total, 0.0)


def _has_plus(x: Node) -> bool:
    """Whether a number, as it was made, cannot be ``-0.0``."""
    seen: set[Node] = set()
    waiting = [x]  # of which one suffices
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.op is CONST:
            plus = math.copysign(1.0, const(one)) > 0
        elif is_op(one, np.multiply):
            plus = one.args[0] is one.args[1]
        else:
            plus = is_op(one, np.square) or is_op(one, np.exp) or is_op(one, np.abs)
        if plus:
            return True
        if is_op(one, np.add) or is_op(one, np.log1p) or is_op(one, np.sqrt):
            waiting += one.args
    return False


def _in_order(node: Node) -> bool:
    """Whether NumPy adds one element after the other: along one axis, fewer than eight."""
    if node.op in ops_of(np.cross, np.outer, np.diff, np.cumsum):
        return True
    if node.op not in ops_of(np.sum, np.mean):
        return False
    shape, axes = node.args[0].aval.shape, axes_of(node)
    return not shape or (len(axes) == 1 and shape[axes[0]] < 8)


@grid_rule(np.mean, np.var, np.std, np.linalg.norm)
def moment(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """Means, and roots of sums of squares."""
    axis, rest = params.get("axis"), set(params) - {"axis", "keepdims", "ddof"}
    if (s.exact and not _in_order(node)) or rest or node.args[0].aval.dtype != float or not grids[0].size:
        return None
    keepdims = bool(params.get("keepdims"))

    def total(grid: Grid, keepdims: bool, over: float) -> Grid:
        elements = np.frompyfunc(lambda e: Element(s, e), 1, 1)(grid)
        sums = np.asarray(np.sum(elements, axis=axis, keepdims=keepdims), object)
        return s.each(lambda e: s.number(np.true_divide, _from_zero(s, e.node), over), sums)

    grid = grids[0]
    count = grid.size // max(math.prod(node.aval.shape), 1)
    if node.op is REGISTRY[np.mean]:
        return total(grid, keepdims, count)
    if node.op is not REGISTRY[np.linalg.norm]:
        grid = s.each(lambda x, m: s.number(np.subtract, x, m), grid, total(grid, True, count))
        count -= params.get("ddof", 0)
        if count <= 0:
            return None
    else:
        count = 1
    squares = total(s.each(lambda x: s.number(np.multiply, x, x), grid), keepdims, count)
    return squares if node.op is REGISTRY[np.var] else s.each(lambda x: s.number(np.sqrt, x), squares)


@grid_rule(np.max, np.min)
def extreme(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    (grid,) = grids
    if node.args[0].aval.dtype != float or not grid.size or set(params) - {"axis", "keepdims"}:
        return None
    if not grid.ndim:
        return grid
    op = LARGER if node.op is REGISTRY[np.max] else SMALLER
    axes = params.get("axis")
    axes = range(grid.ndim) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    axes = [axis % grid.ndim for axis in axes]
    rest = [axis for axis in range(grid.ndim) if axis not in axes]
    rows = grid.transpose(*rest, *axes).reshape(*(grid.shape[axis] for axis in rest), -1)
    found = np.frompyfunc(lambda x, y: s.number(op, x, y), 2, 1).reduce(rows, axis=-1)
    return np.reshape(found, node.aval.shape) if type(found) is np.ndarray else _shaped(found, node.aval.shape)


@grid_rule(Running(np.maximum), Running(np.minimum))
def running(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    (grid,) = grids
    op = LARGER if node.op is REGISTRY[Running(np.maximum)] else SMALLER
    extreme = np.frompyfunc(lambda x, y: s.number(op, x, y), 2, 1)
    return extreme.accumulate(grid, params["axis"], object) if node.aval.dtype == float else None


@grid_rule(SHARES)
def shares(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if node.aval.dtype != float or not node.aval.shape[params["axis"]]:
        return None
    rows = [np.moveaxis(grid, params["axis"], 0) for grid in grids]

    def share(met: Node, many: Node) -> Node:
        return s.choice(met, s.number(np.true_divide, 1.0, s.choice(met, many, s.graph.const(1.0))), s.graph.const(0.0))

    found, many, last = [], s.each(lambda _: s.graph.const(0.0), rows[0][0]), None
    for x, y in zip(*rows, strict=True):
        met = s.each(lambda a, b: s.number(np.equal, a, b), x, y)
        if last is not None:
            many = s.each(lambda a, b, c: s.choice(s.number(np.equal, a, b), c, s.graph.const(0.0)), y, last, many)
        many = s.each(lambda m, c: s.choice(m, s.number(np.add, c, 1.0), c), met, many)
        found.append(s.each(share, met, many))
        last = y
    return np.moveaxis(np.stack(found), 0, params["axis"])


@grid_rule(Segments(np.add), FROM_SEGMENTS)
def segments(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    x, starts = grids
    places = [const(start) for start in starts.flat]
    if node.aval.dtype != float or None in places or s.exact:
        return None
    return _unwrapped(s, node, node.op.fun(np.frompyfunc(lambda e: Element(s, e), 1, 1)(x), np.array(places, int), **params))


def _shaped(node: Node, shape: tuple[int, ...]) -> Grid:
    return grid_of(node).reshape(shape)


# ---- linear algebra ----

SOLVING = ops_of(np.linalg.inv, np.linalg.solve, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, linalg.cofactor)


def _of_matrix(key: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what is done to one small square matrix: ``rule(s, matrix, *others)``."""

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        def apply(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Any:
            plain = all(arg.aval.dtype == float for arg in node.args) and not params and not s.exact
            if not plain or grids[0].ndim > 2 or not 0 < len(grids[0]) <= LARGEST_SYSTEM:
                return None
            return rule(s, *grids)

        grid_rule(key)(apply)
        return rule

    return register


@_of_matrix(np.linalg.inv)
def inverse(s: Scalarizer, matrix: Grid) -> Grid:
    return Factors(s, matrix).inverse()


@_of_matrix(np.linalg.solve)
def solution(s: Scalarizer, matrix: Grid, right: Grid) -> Grid | None:
    if right.ndim > 2:
        return None
    return Factors(s, matrix).solve(right.reshape(len(right), -1)).reshape(right.shape)


@_of_matrix(np.linalg.det)
def determinant(s: Scalarizer, matrix: Grid) -> Grid:
    return grid_of(Factors(s, matrix).determinant())


@_of_matrix(np.linalg.slogdet)
def sign_and_logarithm(s: Scalarizer, matrix: Grid) -> list[Grid]:
    return [grid_of(part) for part in Factors(s, matrix).sign_and_logarithm()]


_of_matrix(np.linalg.cholesky)(cholesky)


@grid_rule(linalg.cofactor)
def cofactor(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    (grid,) = grids
    few = 0 < grid.shape[-1] <= LARGEST_SYSTEM
    return _run(s, node, grids, params) if few and node.aval.dtype == float else None


@grid_rule(OTHERS)
def others(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    plain = len(grids) < 3 and all(arg.aval.dtype == float for arg in node.args) and not s.exact
    return _run(s, node, grids, params) if plain else None


# ---- indices and writes ----


def _place(s: Scalarizer, node: Node, first: int) -> Any:
    """A static index; None where it hangs on values, or lies outside: what reads there runs never, or raises NumPy's error."""
    arrays = []
    for arg in node.args[first:]:
        grid = s.grids[arg]
        if any(const(element) is None for element in grid.flat):
            return None
        arrays.append(np.array([const(e) for e in grid.flat], arg.aval.dtype).reshape(grid.shape)[()])
    place = index.fill(dict(node.params)["spec"], arrays)
    whole = node.args[0] if node.op is index.GETITEM else node
    try:
        np.broadcast_to(0, whole.aval.shape)[place]
    except IndexError:
        return None
    return (place,)


@grid_rule(index.GETITEM)
def getitem(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    place = _place(s, node, 1)
    if place is None:
        return s.picked(node)
    if grids[0] is None:
        return None
    found = grids[0][place[0]]
    return found if type(found) is np.ndarray else grid_of(found)


@grid_rule(index.SETITEM)
def setitem(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    place = _place(s, node, 2)
    if place is None or node.aval.dtype != float:
        return None
    found = grids[0].copy()
    value = s.each(lambda e: _as_float(s, e), grids[1])
    found[place[0]] = value if value.shape else value[()]
    return found


@grid_rule(index.INDEX_ADD, index.SCATTER)
def scatter(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    empty = node.op is index.SCATTER
    place = _place(s, node, 1 if empty else 2)
    if place is None or node.aval.dtype != float:
        return None
    base = np.full(node.aval.shape, s.graph.const(0.0), object) if empty else grids[0].copy()
    numbers = np.arange(base.size).reshape(base.shape)[place[0]]
    values = np.broadcast_to(s.each(lambda e: _as_float(s, e), grids[0 if empty else 1]), np.shape(numbers))
    flat = base.reshape(-1)
    for number, value in zip(np.ravel(numbers).tolist(), values.ravel().tolist(), strict=True):
        flat[number] = s.number(np.add, flat[number], value)
    return flat.reshape(node.aval.shape)


@grid_rule(create.ZEROS, create.EYE)
def constant(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid:
    values = np.array(node.op.fun(**params).tolist(), object)
    return s.each(lambda value: s.graph.const(value), values.reshape(node.aval.shape))


@grid_rule(create.FULL)
def full(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if node.aval.dtype != float or grids[0].shape:
        return None
    return np.full(node.aval.shape, _as_float(s, grids[0][()]), object)
