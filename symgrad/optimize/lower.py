"""Rewrites for the code that runs: cheaper operations that a reader would not want to see."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.ir import CAPTURED, CONST, Node
from symgrad.ops import index
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.engine import ASTYPE
from symgrad.ops.shape import ADD_WINDOWS
from symgrad.ops.signal import INTERP
from symgrad.optimize import cost
from symgrad.optimize.cancel import writes_one_each
from symgrad.optimize.identities import masked
from symgrad.optimize.places import writes_into_zeros, written_again
from symgrad.optimize.rewriting import (
    Rewrite,
    Simplifier,
    axes_of,
    const,
    elements_of,
    filling,
    is_factor,
    is_op,
    is_zero,
    join,
    len_of,
    rewrite,
    split,
)
from symgrad.optimize.scales import common_number, signs
from symgrad.optimize.structure import CHOLESKY, INVERSE, is_eye
from symgrad.program import Program

MANY = 1024  # numbers in an array, from which on a call costs less than what it computes
DEEP = 8  # operations within operations that are looked at
FEW = 128  # numbers in an array, below which it may be taken apart into them
SOME = 8192  # numbers in a vector, up to which one sum of products is as good as several that are added in pairs
HIGHEST = 16  # power that is made of products: each adds to the rounding error
RARE = 16  # elements of which one is the largest, from which on it is found sooner than all are looked at
LONG = 65_536  # numbers in a vector, from which on the order of a sum matters
INNER = Op(runtime.inner, "constant", (), name="runtime.inner")
POWERS = Op(runtime.powers, "constant", (), name="runtime.powers")
GRAM = Op(runtime.gram, "constant", (), name="runtime.gram")
SPREAD = Op(runtime.spread, "constant", (), name="runtime.spread")
BITS = Op(runtime.bits, "constant", (), name="runtime.bits")
STEPS = Op(runtime.steps, "constant", (), name="runtime.steps")
SELECT = Op(runtime.select, "constant", (), name="runtime.select")
TO_EXTREMES = Op(runtime.to_extremes, "constant", (), name="runtime.to_extremes")
LOGISTIC = Op(runtime.logistic, "constant", (), name="runtime.logistic")
EXPIT = Op(runtime.expit, "constant", (), name="runtime.expit")
LOGADDEXP = Op(runtime.logaddexp, "constant", (), name="runtime.logaddexp")
WEIGHT = Op(runtime.weight, "constant", (), name="runtime.weight")
ORDER = Op(runtime.order, "constant", (), name="runtime.order")
INTERPOLATE = Op(runtime.interpolate, "constant", (), name="runtime.interpolate")
SEARCH = Op(runtime.search, "constant", (), name="runtime.search")
DETERMINANTS = Op(runtime.determinants, "constant", (), name="runtime.determinants")
RANKS = Op(runtime.ranks, "constant", (), name="runtime.ranks")
HAT = Op(runtime.hat, "constant", (), name="runtime.hat")
BACK = Op(runtime.back_in_place, "constant", (), name="runtime.back_in_place")
CLIP = Op(np.ndarray.clip, "constant", (), name="np.ndarray.clip")
PRODUCTS = Op(runtime.product_of_others, "constant", (), name="runtime.product_of_others")
OVER = Op(runtime.over, "constant", (), name="runtime.over")
ELEMENTS = Op(runtime.elements, "constant", (), name="runtime.elements")
ADD_ELEMENTS = Op(runtime.add_elements, "constant", (), name="runtime.add_elements")
ON_DIAGONAL = Op(runtime.add_to_diagonal, "op", (), name="runtime.add_to_diagonal")
LIKE_UFUNCS = (
    BITS,
    CLIP,
    STEPS,
    SELECT,
    LOGISTIC,
    EXPIT,
    LOGADDEXP,
    WEIGHT,
    OVER,
)  # each element of their results needs the same elements of their arguments; they take ``out``
WRITES = 32  # to small parts that come one after the other, which are put off until a sum is known
_WHOLE = TO_EXTREMES, ON_DIAGONAL, ELEMENTS, ADD_ELEMENTS, CHOLESKY, INVERSE
WITH_OUT = (*LIKE_UFUNCS, *_WHOLE)  # which take ``out``, in which an argument may lie that is not needed any more
LOWER: dict[Any, list[Rewrite]] = {}


def lower(program: Program) -> Program:
    """The same program in cheaper operations."""
    return Lowerer(program, LOWER).run()


class Lowerer(Simplifier):
    """Rebuilds a program, and knows what it searches for where, and whose order it asks for."""

    def __init__(self, program: Program, rules: dict[Any, list[Rewrite]]) -> None:
        super().__init__(program, rules)
        right = [node for node in program.nodes() if is_op(node, np.searchsorted) and node.params == (("side", "right"),)]
        self.searches = sorted([node.args for node in right], key=lambda args: -max(arg.index for arg in args))
        self.searched: set[tuple[Node, ...]] = set()  # what such searches are of, as far as that is rebuilt
        stable = [node for node in program.nodes() if is_op(node, np.argsort) and dict(node.params).get("kind") == "stable"]
        self.orders = [(node.args[0], dict(node.params).get("axis", -1) % len(node.aval.shape)) for node in stable]

    def searches_for(self, *args: Node) -> bool:
        """Whether the program has such a search, earlier or later."""
        while self.searches and all([arg in self.mapping for arg in self.searches[-1]]):
            self.searched.add(tuple([self.mapping[arg] for arg in self.searches.pop()]))
        return args in self.searched

    def orders_by(self, x: Node, axis: int) -> bool:
        """Whether the program asks for the order of the elements of ``x``, earlier or later."""
        return any([self.mapping.get(arg) is x and along == axis for arg, along in self.orders])


rewrite(np.add, np.subtract, of=(np.multiply,), rules=LOWER, derived=True)(common_number)


@rewrite(np.power, of=(CONST,), rules=LOWER)
def small_power(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Powers that a few products give: NumPy's general power costs some 20 times as much."""
    x, exponent = args[0], const(args[1])
    if x.aval.dtype.kind not in "fc" or x.aval.kind != "array" or exponent not in (-4, -3, -2, -1, 2, 3, 4, 5, 6, 7, 8):
        return None
    if exponent < 0:  # of numbers that are so large the power would be infinite
        over = s.call(np.true_divide, 1.0, x)
        return over if exponent == -1 else s.call(np.power, over, -exponent)
    if exponent % 2:
        return s.call(np.multiply, s.call(np.power, x, exponent - 1), x)
    return s.call(np.square, x if exponent == 2 else s.call(np.power, x, exponent // 2))


@rewrite(np.power, of=(CONST,), rules=LOWER)
def half_power(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x**1.5`` as ``x * sqrt(x)``, and so on: as far off as other products are, by a rounding or two. (Of ``-inf``, roots are
    other numbers than powers, and of ``-0.0``: what users write is done so where neither can be.)"""
    x, exponent = args[0], const(args[1])
    double = x.aval.dtype.char in "fd" and x.aval.kind == "array" and node.aval == x.aval
    if not double or not isinstance(exponent, float) or abs(exponent) not in (0.5, 1.5, 2.5, 3.5):
        return None
    natural = _is_natural(x)
    if not natural and (s.phase is None or math.prod(node.aval.shape) < FEW):
        return None
    root = s.call(np.sqrt, x)
    if exponent == -0.5:  # which is finite where ``1 / x`` is not
        return s.call(np.true_divide, 1.0, root if natural else s.call(np.add, root, 0.0))
    if exponent < 0 and natural:
        x = s.call(np.true_divide, 1.0, x)
        root = s.call(np.sqrt, x)
    for _ in range(int(abs(exponent))):
        root = s.call(np.multiply, root, x)
    return root if natural or exponent > 0 else s.call(np.true_divide, 1.0, root)


@rewrite(np.square, np.abs, np.multiply, np.matmul, np.dot, np.vecdot, of=(np.subtract,), rules=LOWER)
def of_either_sign(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The square, or size, of ``b - a`` is that of ``a - b``, where that is there: so distances of pairs, both ways."""
    d = args[0]
    if s.exact or any([arg is not d for arg in args]) or not is_op(d, np.subtract) or d.aval.dtype.kind not in "fc":
        return None
    other = s.graph.find(d.op, d.args[::-1], ())
    if other is None or other.index >= d.index or other.aval != d.aval:
        return None
    return s.make(node.op, (other,) * len(args), node.params, node.aval)


def _is_natural(x: Node, deep: int = 0) -> bool:
    """Whether numbers are at least 0, which has no sign, or NaN."""
    value = const(x)
    if value is not None:
        return isinstance(value, (int, float)) and value > 0
    if deep > DEEP or not x.args:
        return False
    if any([is_op(x, fun) for fun in (np.square, np.exp, np.abs)]):
        return bool(x.aval.dtype.kind == "f")
    if is_op(x, np.multiply) or is_op(x, np.vecdot):
        return x.args[0] is x.args[1] and bool(x.aval.dtype.kind == "f")
    inner = x.args if is_op(x, np.add) else x.args[:1] if is_op(x, np.sum) or x.op.alias else ()
    return bool(inner) and all([_is_natural(arg, deep + 1) for arg in inner])


@rewrite(np.power, rules=LOWER)
def powers(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Several powers of an array, as a polynomial needs them."""
    x, exponents = args[0], _plain(s, args[1])
    if exponents is None or x.aval.kind != "array" or x.aval.dtype.kind not in "fc" or node.aval.dtype != x.aval.dtype:
        return None
    along = [axis for axis in range(-exponents.ndim, 0) if exponents.shape[axis] > 1]
    lengths = (1,) * len(node.aval.shape) + x.aval.shape
    if (
        len(along) != 1
        or lengths[along[0]] != 1
        or not np.all((exponents >= 0) & (exponents <= HIGHEST) & (exponents % 1 == 0))
    ):
        return None
    numbers = tuple(exponents.astype(int).ravel().tolist())
    return s.graph.add(POWERS, (x,), (("axis", along[0]), ("exponents", numbers)), node.aval)


def _plain(s: Simplifier, node: Node) -> Any:
    """A small array that is known, under other axes or of another dtype, too."""
    if node.op is CAPTURED:
        return s.graph.arrays[node] if node.aval.shape and math.prod(node.aval.shape) <= FEW else None
    axes = any([is_op(node, fun) for fun in (np.reshape, np.expand_dims, np.transpose)]) or node.op in (ASTYPE, index.GETITEM)
    if len(node.args) != 1 or not axes:
        return None
    array = _plain(s, node.args[0])
    return None if array is None else node.op.fun(array, **dict(node.params))


@rewrite(np.sum, rules=LOWER)
def sum_of_products(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Sums of products of arrays without the products; sums of squares apart, as their sums cannot cancel."""
    (x,) = args
    if x.aval.dtype.char not in "fd" or node.aval.dtype != x.aval.dtype:
        return None
    few = SOME if x.aval.dtype == np.float64 and len(x.aval.shape) == 1 else MANY
    if math.prod(x.aval.shape) < few:
        return _few_products(s, node, x)
    if node.params:
        return None
    if is_op(x, np.square):
        return s.graph.add(INNER, (x.args[0], x.args[0]), (), node.aval)
    if is_op(x, np.add) and all(_is_squared(term) and term.aval == x.aval for term in x.args):
        return s.call(np.add, *[s.call(np.sum, term) for term in x.args])
    if not is_op(x, np.multiply):
        return None
    a, b = x.args
    if _is_squared(x):
        return s.call(np.multiply, a, s.call(np.sum, b))
    same = all(arg.aval.shape == x.aval.shape and arg.aval.dtype == x.aval.dtype for arg in x.args)
    return s.graph.add(INNER, (a, b), (), node.aval) if same and s.used.get(x, 0) <= 1 else None


def _few_products(s: Simplifier, node: Node, x: Node) -> Node | None:
    """A product and its sum are two calls; along the last axis, or all axes, one will do."""
    factors = (x.args[0], x.args[0]) if is_op(x, np.square) else x.args if is_op(x, np.multiply) else ()
    if not factors or any(arg.aval != x.aval for arg in factors) or not x.aval.shape:
        return None
    params, axes = dict(node.params), axes_of(node)
    if params.get("keepdims") or not set(params) <= {"axis", "keepdims"}:
        return None
    if len(axes) == len(x.aval.shape):
        return s.call(np.dot if len(axes) == 1 else np.vdot, *factors)
    return s.call(np.vecdot, *factors) if axes == (len(x.aval.shape) - 1,) else None


@rewrite(np.mean, rules=LOWER)
def mean_of_products(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Where the sum is one call, so is the mean, but for a division."""
    (x,) = args
    total = None if node.params else sum_of_products(s, node, args)
    return None if total is None else s.call(np.true_divide, total, math.prod(x.aval.shape))


@rewrite(np.trace, rules=LOWER)
def trace_of_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``trace(x @ y)`` as ``sum(x * y.T)``: of a square product, the diagonal alone."""
    (product,) = args
    matrices = is_op(product, np.matmul) and all(len(x.aval.shape) == 2 and x.aval.dtype.kind in "fc" for x in product.args)
    if node.params or not matrices or s.used.get(product, 0) > 1 or product.params or len(set(product.aval.shape)) > 1:
        return None
    x, y = product.args
    return s.call(np.sum, s.call(np.multiply, x, s.call(np.transpose, y)))


@rewrite(np.dot, np.matmul, rules=LOWER)
def long_product(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """BLAS adds long vectors up one by one, and loses digits."""
    x, y = args
    if len(x.aval.shape) != 1 or x.aval.shape != y.aval.shape or x.aval.shape[0] < LONG or node.params:
        return None
    return s.call(INNER, x, y) if x.aval.dtype == y.aval.dtype == node.aval.dtype and x.aval.dtype.char in "fd" else None


@rewrite(np.dot, np.matmul, rules=LOWER)
def correlation(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Products of all windows on a row, which lie over one another: BLAS would copy them first."""
    for windows, y in (args, args[::-1]):
        windows = windows.args[0] if is_op(windows, np.transpose) and not windows.params else windows
        if is_op(windows, np.lib.stride_tricks.sliding_window_view) and len(windows.aval.shape) == 2:
            (x,) = windows.args
            rows = len(x.aval.shape) == len(y.aval.shape) == len(node.aval.shape) == 1
            if rows and node.aval.dtype.char in "fd" and x.aval.dtype == y.aval.dtype == node.aval.dtype and not node.params:
                return s.call(np.correlate, x, y, mode="valid")
    return None


@rewrite(ADD_WINDOWS, rules=LOWER)
def convolution(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What the products of each number of a row with all of another one add up to, each row one place further."""
    times, products = split(args[0])
    products = products.args[0] if is_op(products, np.transpose) and not products.params else products
    if (
        len(node.aval.shape) != 1
        or len(products.aval.shape) != 2
        or node.aval.dtype.char not in "fd"
        or "steps" in dict(node.params)
    ):
        return None
    if not any([is_op(products, fun) for fun in (np.outer, np.multiply, np.matmul)]):
        return None
    (n, m), shapes = products.aval.shape, {part.aval.shape for part in products.args}
    outer = is_op(products, np.outer) or shapes in ({(n, 1), (m,)}, {(n, 1), (1, m)})
    if not outer or any([part.aval.dtype != node.aval.dtype for part in products.args]):
        return None
    rows = [s.call(np.reshape, part, shape=(math.prod(part.aval.shape),)) for part in products.args]
    return join(s, times, s.call(np.convolve, *rows))


@rewrite(ADD_WINDOWS, of=(index.SCATTER,), rules=LOWER)
def windows_apart(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What some windows show, the second or third ones (``sliding_window_view(x, 9)[::3]``), without the others' zeros."""
    (scatter,), params = args, dict(node.params)
    spec, axes = dict(scatter.params)["spec"], range(len(node.aval.shape))
    if not all([type(part) is index.Slice and part.start in (None, 0) and (part.step or 1) > 0 for part in spec]):
        return None
    if len(spec) > len(axes) or len(scatter.args) > 1 or "steps" in params:
        return None
    params["steps"] = tuple([(spec[i].step or 1) if i < len(spec) else 1 for i in axes])
    region = index.region(spec, scatter.aval.shape)
    (value,) = scatter.args
    if value.aval.shape != region or value.aval.kind != "array" or value.aval.dtype != scatter.aval.dtype:
        value = s.call(np.broadcast_to, value, shape=region)
    return s.call(ADD_WINDOWS, value, **params) if value.aval.dtype == node.aval.dtype else None


@rewrite(ADD_WINDOWS, of=(np.multiply,), rules=LOWER)
def spread(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Windows that are each a number times one kernel, which are many times the array, are not made."""
    (product,), params, ndim = args, dict(node.params), len(node.aval.shape)
    axes, shape = params["axes"], product.aval.shape
    windows = shape[ndim:]
    if "steps" in params or len({*axes}) < len(axes) or math.prod(windows) > FEW or node.aval.dtype.char not in "fd":
        return None
    for x, kernel in (product.args, product.args[::-1]):
        alike = x.aval.dtype == kernel.aval.dtype == node.aval.dtype
        whole = kernel.aval.shape[-len(windows) :] == windows and elements_of(kernel) == math.prod(windows)
        if alike and whole and x.aval.shape == (*shape[:ndim], *[1 for _ in windows]) and elements_of(x) >= MANY:
            parts = s.call(np.reshape, x, shape=shape[:ndim]), s.call(np.reshape, kernel, shape=windows)
            return s.graph.add(SPREAD, parts, tuple(sorted({"shape": node.aval.shape, "axes": axes}.items())), node.aval)
    return None


@rewrite(np.dot, np.matmul, rules=LOWER)
def gram(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``(x.T * v) @ x`` and ``x.T @ (v[:, None] * x)``, of a tall matrix, which are symmetric."""
    if len(node.aval.shape) != 2 or node.params or node.aval.dtype.char not in "fd":
        return None
    for found, x in ((_scaled(args[0], True), args[1]), (_scaled(args[1], False), _turned(args[0]))):
        if found is None or found[0] is not x or any(part.aval.dtype != node.aval.dtype for part in found):
            continue
        if len_of(found[0]) >= max(MANY, len_of(node)):
            return s.graph.add(GRAM, found, (), node.aval)
    return None


@rewrite(np.true_divide, rules=LOWER)
def over(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Many numbers, or a multiple of them, over one that is not known yet."""
    x, v = args
    if x.aval != node.aval or node.aval.dtype.char not in "fd" or math.prod(node.aval.shape) < MANY or v.op is CONST:
        return None
    if v.aval.dtype != x.aval.dtype or v.aval.kind == "python" or v.aval.shape:
        return None
    times, inner = split(x) if s.used.get(x, 0) <= 1 else (1.0, x)
    if 1e-5 < abs(times) < 1e5:
        return s.graph.add(OVER, (inner, s.graph.const(times), v), (), node.aval)
    return s.graph.add(OVER, (x, s.graph.const(1), v), (), node.aval)


@rewrite(np.add, rules=LOWER)
def on_diagonal(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x + c * eye(n)``, which goes through the diagonal alone."""
    for x, y in (args, args[::-1]):
        if x.aval != node.aval or y.aval != node.aval or node.aval.dtype.char not in "fd" or s.used.get(y, 0) > 1:
            continue
        for c, eye in ((s.graph.const(1.0), y), *((y.args, y.args[::-1]) if is_op(y, np.multiply) else ())):
            if math.prod(eye.aval.shape) >= MANY and not c.aval.shape and is_eye(s.graph, eye):
                return s.graph.add(ON_DIAGONAL, (x, c), (), node.aval)
    return None


def _scaled(y: Node, turned: bool) -> tuple[Node, Node] | None:
    """``(x, v)`` where a matrix, or its transpose, is ``v[:, None] * x``."""
    whole = _turned(y)
    if whole is not None:
        return _scaled(whole, not turned)
    for x, v in (y.args, y.args[::-1]) if is_op(y, np.multiply) else ():
        if turned and _turned(x) is not None and v.aval.shape == y.aval.shape[1:]:
            return x.args[0], v
        if not turned and is_op(v, np.expand_dims) and v.aval.shape == (len_of(y), 1):
            return x, v.args[0]
    return None


def _turned(x: Node) -> Node | None:
    """What a transposed matrix is made of."""
    return x.args[0] if is_op(x, np.transpose) and len(x.aval.shape) == 2 and not x.params else None


def _is_squared(x: Node) -> bool:
    """Whether it is a square, or a positive number times one."""
    if is_op(x, np.multiply):
        factor = const(x.args[0])
        return isinstance(factor, (int, float)) and factor > 0 and x.args[1].aval == x.aval and _is_squared(x.args[1])
    return is_op(x, np.square)


@rewrite(np.sum, rules=LOWER)
def sum_of_one_each(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The sum along the rows of zeros with one value written into each row is those values."""
    x, axes = args[0], axes_of(node)
    if x.op is not index.SCATTER or not writes_one_each(s, x, axes) or x.aval.dtype != node.aval.dtype:
        return None
    (value, *_) = x.args
    s.used[x] = s.used.get(x, 0) - 1
    if not value.aval.shape:
        return s.call(np.broadcast_to, value, shape=node.aval.shape)
    if len(value.aval.shape) == len(node.aval.shape):
        return value
    return s.call(np.expand_dims if dict(node.params).get("keepdims") else np.squeeze, value, axis=axes[0])


@rewrite(np.reshape, of=(np.sum, np.mean), rules=LOWER, exact=True)
def without_the_axis(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Of sums whose axis was kept, and then dropped, the sums."""
    (x,) = args
    params = dict(x.params)
    if not (is_op(x, np.sum) or is_op(x, np.mean)) or not params.pop("keepdims", False) or s.used.get(x, 0) > 1:
        return None
    rest = [n for i, n in enumerate(x.aval.shape) if i not in axes_of(x)]
    return s.make(x.op, x.args, tuple(sorted(params.items()))) if rest == [*node.aval.shape] else None


@rewrite(np.round, rules=LOWER, exact=True)
def to_whole_numbers(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """By the ufunc, which needs no array of its own."""
    x, *decimals = args
    plain = not node.params and x.aval.kind == "array" and x.aval.dtype.char in "fd" and all(const(n) == 0 for n in decimals)
    return s.call(np.rint, x) if plain else None


@rewrite(np.clip, rules=LOWER, exact=True)
def clip_into(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """By the method, which may write into a buffer, and has less of Python around it."""
    alike = all(arg.aval.kind == "python" or arg.aval.dtype == node.aval.dtype for arg in args)
    many = args[0].aval.shape == node.aval.shape and math.prod(node.aval.shape) >= FEW  # else they may be taken apart
    return s.graph.add(CLIP, args, (), node.aval) if alike and many and args[0].aval.kind == "array" else None


@rewrite(np.diff, rules=LOWER, exact=True)
def difference_of_slices(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """One subtraction, which may go into a buffer, or a block: NumPy's own is written in Python."""
    (x,), params = args, dict(node.params)
    axis = params.pop("axis", -1) % len(x.aval.shape)
    if params or x.aval.dtype.kind == "b" or x.aval.shape[axis] < 2:
        return None
    before = (index.EVERY,) * axis
    slices = (*before, index.Slice(1, None, None)), (*before, index.Slice(None, -1, None))
    inner = _between_zeros(x, axis)
    if inner is not None:  # as of the derivative of a difference
        first = s.call(index.SCATTER, inner, shape=node.aval.shape, spec=slices[1])
        return s.call(index.INDEX_ADD, first, s.call(np.negative, inner), spec=slices[0])
    return s.call(np.subtract, *[s.call(index.GETITEM, x, spec=spec) for spec in slices])


def _between_zeros(x: Node, axis: int) -> Node | None:
    """``y`` of a large ``concatenate((zero, y, zero))``."""
    params = dict(x.params)
    if not is_op(x, np.concatenate) or len(x.args) != 3 or params.get("axis", 0) != axis:
        return None
    first, inner, last = x.args
    ends = all([is_zero(end) and end.aval.shape[axis] == 1 for end in (first, last)])
    return inner if ends and math.prod(x.aval.shape) >= cost.SIZES.big and inner.aval.dtype == x.aval.dtype else None


@rewrite(np.negative, of=(np.subtract,), rules=LOWER, derived=True)
def negative_difference(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``-(x - y)``, which the derivative of ``np.diff`` is, as ``y - x``."""
    (x,) = args
    return s.call(np.subtract, *x.args[::-1]) if is_op(x, np.subtract) and s.used.get(x, 0) <= 1 else None


@rewrite(np.negative, of=(index.SCATTER,), rules=LOWER)
def negative_elements(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The signs of values that are written into zeros change before."""
    (x,) = args
    if x.op is not index.SCATTER or x.args[0].aval.shape == x.aval.shape:
        return None
    s.used[x] = s.used.get(x, 0) - 1
    return s.make(x.op, (s.call(np.negative, x.args[0]), *x.args[1:]), x.params, x.aval)


@rewrite(np.add, np.subtract, of=(index.SCATTER, index.INDEX_ADD), rules=LOWER)
def add_few_elements(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Zeros with values written at index arrays, or into small parts, are not added: the values are."""
    for x, part in (args, args[::-1]):
        writes = writes_into_zeros(s, part)
        if not writes or not all([_is_few(write) and write.aval == x.aval == node.aval for write in writes]):
            continue
        less = is_op(node, np.subtract)
        if less and x is not args[0]:
            x, less = s.call(np.negative, x), False
        return written_again(s, x, writes, less)
    return None


@rewrite(np.add, np.subtract, of=(index.INDEX_ADD,), rules=LOWER, derived=True)
def few_elements_last(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is added to a small part is added last, so that it comes not between operations on the whole."""
    if math.prod(node.aval.shape) < MANY:
        return None
    for x, y in (args, args[::-1]) if is_op(node, np.add) else (args,):
        writes = []
        while x.op is index.INDEX_ADD and _is_few(x) and s.used.get(x, 0) <= 1 and x.aval == y.aval == node.aval:
            writes.append(x)
            x = x.args[0]
        if 0 < len(writes) <= WRITES:  # each is made again
            new = s.call(node.op, x, y)
            for write in reversed(writes):
                new = s.make(write.op, (new, *write.args[1:]), write.params, node.aval)
            return new
    return None


def _is_few(write: Node) -> bool:
    """Whether values are written to single elements, which index arrays name, or to a small part."""
    spec, shape = dict(write.params)["spec"], write.aval.shape
    if index.names_elements(spec, len(shape)):
        return True
    places = write.args[len(write.op.rules) :]
    plain = all(type(part) in (int, index.Slice, index.Hole) for part in spec)
    if not plain or 0 in shape or any(place.aval.shape for place in places):
        return False
    return bool(8 * math.prod(index.region(spec, shape, (0,) * len(places))) <= math.prod(shape))


@rewrite(np.add, np.subtract, np.multiply, np.true_divide, of=(np.expand_dims,), rules=LOWER, exact=True)
def leading_axes(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Axes before all others come by themselves."""
    bare = tuple([arg.args[0] if is_op(arg, np.expand_dims) and _is_leading(arg) else arg for arg in args])
    if bare == args or max(len(arg.aval.shape) for arg in bare) < len(node.aval.shape):
        return None
    return s.make(node.op, bare)


def _is_leading(x: Node) -> bool:
    axis = dict(x.params)["axis"]
    return {axis} <= {0} if isinstance(axis, int) else sorted(axis) == list(range(len(axis)))


@rewrite(index.GETITEM, rules=LOWER, exact=True)
def places_in_order(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[np.arange(n), 0]`` as ``x[:, 0]``, which copies nothing."""
    (x, *places), spec = args, dict(node.params)["spec"]
    if len(places) != 1 or places[0].op is not CAPTURED or places[0].aval.dtype.kind not in "iu":
        return None
    if not all(type(part) in (index.Hole, index.Slice, int) for part in spec):
        return None
    picked = [axis for axis, part in enumerate(spec) if type(part) is not index.Slice]
    (axis,), count = [axis for axis in picked if type(spec[axis]) is index.Hole], s.graph.arrays[places[0]]
    if picked[-1] - picked[0] >= len(picked) or not np.array_equal(count, np.arange(x.aval.shape[axis])):
        return None  # with a slice between them, the axis of an index array comes first
    return s.call(index.GETITEM, x, spec=(*spec[:axis], index.EVERY, *spec[axis + 1 :]))


@rewrite(index.GETITEM, rules=LOWER, exact=True)
def part_of_elementwise(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What is cut away of a large result, or is not among the few elements that are read, is not computed."""
    (x, *places), spec = args, dict(node.params)["spec"]
    plain = bool(x.args) and isinstance(x.op.key, np.ufunc) and x.op.family in ("elementwise", "constant") and not x.params
    if not plain or s.used.get(x, 0) > 1 or math.prod(x.aval.shape) < MANY:
        return None
    few = index.names_elements(spec, len(x.aval.shape)) and not any([place.aval.dtype == bool for place in places])
    if not _are_slices(spec) and not (few and 4 * math.prod(node.aval.shape) <= math.prod(x.aval.shape)):
        return None
    spec = (*spec, *[index.EVERY] * (len(x.aval.shape) - len(spec)))
    return s.make(x.op, tuple([_part(s, arg, spec, places, x.aval.shape) for arg in x.args]))


def _part(s: Simplifier, x: Node, spec: index.Spec, places: list[Node], shape: tuple[int, ...]) -> Node:
    """What a part of a result needs of an argument, which may be broadcast."""
    if x.aval.kind != "array" or not x.aval.shape:
        return x
    missing = len(shape) - len(x.aval.shape)
    own: list[Any] = []
    used: list[Node] = []
    for part, n, whole in zip(spec[missing:], x.aval.shape, shape[missing:], strict=True):
        if type(part) is index.Hole:
            own.append(index.Hole(len(used)) if n == whole else 0)
            used += [places[part.number]] if n == whole else []
        else:
            own.append(part if n == whole else index.EVERY)
    if set(own) == {index.EVERY}:
        return x
    return s.make(index.GETITEM, (x, *used), (("spec", tuple(own)),))


@rewrite(np.pad, rules=LOWER, exact=True)
def pad_with_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Zeros with a slice written: ``np.pad`` looks long at what it is asked for."""
    params, (x,) = dict(node.params), args
    if params.get("mode", "constant") != "constant" or np.any(params.get("constant_values", 0)) or not x.aval.shape:
        return None
    widths = np.broadcast_to(params["pad_width"], (len(x.aval.shape), 2)).tolist()
    spec = tuple([index.Slice(before, before + n, None) for (before, _), n in zip(widths, x.aval.shape, strict=True)])
    return s.graph.add(index.SCATTER, (x,), (("shape", node.aval.shape), ("spec", spec)), node.aval)


@rewrite(index.INDEX_ADD, index.SCATTER, rules=LOWER)
def slice_of_zeros(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Of zeros with a slice written, which are written or added to a slice, the slice of the slice alone."""
    zeros = args[-1]
    outer, inner = dict(node.params)["spec"], dict(zeros.params).get("spec", ())
    alone = zeros.op is index.SCATTER and len(zeros.args) == 1 and s.used.get(zeros, 0) <= 1
    if not alone or not _are_slices(outer) or not _are_slices(inner) or zeros.args[0].aval.dtype != node.aval.dtype:
        return None
    ranges = [range(n)[slice(*part)] for part, n in zip(outer, node.aval.shape, strict=False)]
    ranges += map(range, node.aval.shape[len(outer) :])
    if zeros.aval.shape != tuple(map(len, ranges)):
        return None
    ranges = [places[slice(*part)] for places, part in zip(ranges, inner, strict=False)] + ranges[len(inner) :]
    spec = tuple([index.Slice(places.start, places.stop, None) for places in ranges])
    if any(places.step != 1 or not places for places in ranges):
        return None
    return s.make(node.op, (*args[:-1], zeros.args[0]), tuple(sorted((dict(node.params) | {"spec": spec}).items())), node.aval)


def _are_slices(spec: index.Spec) -> bool:
    return all(type(part) is index.Slice for part in spec)


@rewrite(np.logaddexp, of=(CONST,), rules=LOWER)
def softplus(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``logaddexp(0, x)`` as ``max(x, 0) + log1p(exp(-abs(x)))``, in a third of the time."""
    x = next((x for x, zero in (args, args[::-1]) if const(zero) == 0), None)
    if x is None or s.exact or x.aval != node.aval or node.aval.dtype.char not in "fd" or math.prod(node.aval.shape) < FEW:
        return None
    e = s.call(np.exp, s.call(np.negative, s.call(np.abs, x)))
    return s.call(np.add, s.call(np.maximum, x, 0.0), s.call(np.log1p, e))


@rewrite(np.expm1, of=(np.negative,), rules=LOWER)
def slope_of_softplus_of_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The derivative of that, ``-expm1(-logaddexp(0, x))``: a logistic function, by the same exponentials if they are there."""
    (y,) = args[0].args
    (larger, log) = y.args if is_op(y, np.add) else (y, y)
    if not is_op(larger, np.maximum) or not is_op(log, np.log1p) or const(larger.args[1]) != 0:
        return None
    x, (e,) = larger.args[0], log.args
    if not is_op(e, np.exp) or not is_op(e.args[0], np.negative) or e.args[0].args[0] is not s.graph.find(_ABS, (x,), ()):
        return None
    if s.used.get(y, 0) > 1:
        above = s.call(np.maximum, e, s.call(np.greater, x, 0.0))
        return s.call(np.negative, s.call(np.true_divide, above, s.call(np.add, e, 1.0)))
    return s.call(np.negative, s.graph.add(LOGISTIC, (s.call(np.negative, x),), (), node.aval))


_ABS = REGISTRY[np.abs]
rewrite(np.negative, np.add, np.subtract, np.multiply, of=(np.negative,), rules=LOWER, exact=True)(signs)


@rewrite(np.where, of=(CONST,), rules=LOWER)
def slope_of_logaddexp(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The derivative of ``logaddexp(y, x)`` by ``x``, as its rule has it for infinities too: it is a logistic function."""
    both, half, rest = args
    if const(half) != 0.5 or not is_op(rest, np.exp) or math.prod(node.aval.shape) < FEW or node.aval.dtype.char not in "fd":
        return None
    terms = _terms(rest.args[0])
    choices = [_choice(term) for _, term in terms]
    if None in choices or len(terms) != 2 or terms[1][0] != -1.0:
        return None
    (alone, zero, x), (again, nothing, y) = [choice for choice in choices if choice is not None]
    if (factor := terms[0][0]) != 1.0:  # which has left the choice
        x = next((arg for arg in y.args if _is_multiple(arg, factor, x)), x)
    known = alone is again and alone in both.args and is_op(alone, np.equal) and {*alone.args} == {x, y}
    if not known or const(zero) != 0 or const(nothing) != 0 or y.op not in _SUMS or x not in y.args:
        return None
    other = y.args[1] if y.args[0] is x else y.args[0]
    c = const(other)
    if c is None:
        return s.graph.add(WEIGHT, (x, other), (), node.aval) if _are_many(node, y) else None
    if not isinstance(c, (int, float)) or not abs(c) < 1e6 or x.aval != node.aval:  # so that both cannot be the sum
        return None
    minus = s.call(np.subtract, c, x) if c else s.call(np.negative, x)
    return s.graph.add(LOGISTIC, (minus,), (), node.aval)


@rewrite(np.logaddexp, rules=LOWER)
def logaddexp(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Of two arrays, or numbers and an array, by what NumPy computes several numbers of at a time."""
    if s.exact or CONST in [arg.op for arg in args] or not _are_many(node, node):
        return None
    return s.graph.add(LOGADDEXP, args, (), node.aval)


def _are_many(node: Node, total: Node) -> bool:
    """Whether a sum of two exponentials, or a weight in it, is of many floats."""
    alike = all([arg.aval.dtype == node.aval.dtype and arg.aval.kind == "array" for arg in total.args])
    return alike and total.aval == node.aval and node.aval.dtype.char in "fd" and math.prod(node.aval.shape) >= FEW


_SUMS = (REGISTRY[np.logaddexp], LOGADDEXP)


def _terms(x: Node) -> list[tuple[float, Node]]:
    """The terms of a sum of two, and the factors that they are there with."""
    outer, x = split(x)
    if not is_op(x, np.add) and not is_op(x, np.subtract):
        return []
    (c, a), (d, b) = map(split, x.args)
    return [(outer * c, a), (outer * d if is_op(x, np.add) else -outer * d, b)]


def _is_multiple(x: Node, factor: float, of: Node) -> bool:
    """Whether ``x``, which may have a name, is ``factor * of``."""
    if is_op(x, np.negative):
        return factor == -1.0 and x.args[0] is of
    return is_op(x, np.multiply) and of in x.args and factor in map(const, x.args)


def _choice(x: Node) -> tuple[Node, Node, Node] | None:
    """The mask of a choice, and what is chosen from."""
    if not is_op(x, np.where) and x.op is not SELECT:
        return None
    mask, first, second = x.args
    return mask.args[0] if mask.op is BITS else mask, first, second


@rewrite(np.where, of=(np.equal,), rules=LOWER, derived=True)
def steps(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(x == y, g / 2, g * (x > y))``, which maximum's rule gives, as ``g * ((x > y) + (x >= y)) / 2``; so minimum's."""
    test, half, rest = args
    if not is_op(test, np.equal) or math.prod(node.aval.shape) < MANY or node.aval.dtype.char not in "fd":
        return None
    sides = (np.greater, np.greater_equal), (np.less, np.less_equal)
    for (side, upto), pair in itertools.product(sides, (test.args, test.args[::-1])):
        mask = s.graph.find(REGISTRY[side], pair, ())
        g = masked(s, half, rest, mask)
        if g is not None and mask is not None:
            small = mask.aval._replace(dtype=np.dtype(np.int8))
            count = s.graph.add(STEPS, (mask, s.call(upto, *pair)), (), small)
            number = const(g)
            return s.call(np.multiply, half if number is None else 0.5 * number, count)  # twice ``g`` may be too large
    return None


@rewrite(np.add, rules=LOWER, derived=True)
def one_or_the_other(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``c * g`` where a mask is set and ``d * g`` elsewhere as ``g`` times one array; so of ``maximum(x, x / 10)``."""
    if math.prod(node.aval.shape) < MANY or node.aval.dtype.char not in "fd":
        return None
    if (found := _with_slopes_of(s, node, *args)) is not None:
        return found
    for total, term in (args, args[::-1]):
        if (is_op(total, np.add) or is_op(total, np.subtract)) and s.used.get(total, 0) <= 1 and total.aval == node.aval:
            first, second = total.args
            if (found := _with_slopes_of(s, node, first, term)) is not None:
                return s.call(total.op.key, found, second)
            if is_op(total, np.add) and (found := _with_slopes_of(s, node, second, term)) is not None:
                return s.call(np.add, first, found)
    return None


def _with_slopes_of(s: Simplifier, node: Node, *terms: Node) -> Node | None:
    """The sum of two terms by one array of slopes."""
    (c, x), (d, y) = map(split, terms)
    chosen, other = _choice(x), _choice(y)
    if chosen is not None and other is not None and chosen[0] is other[0]:
        mask, (a, zero), (nothing, b) = chosen[0], chosen[1:], other[1:]
        if is_zero(a) and is_zero(b):
            (c, a, zero), (d, nothing, b) = (d, nothing, b), (c, a, zero)
        if not is_zero(zero) or not is_zero(nothing) or mask.aval.shape != node.aval.shape:
            return None
        if a is b:
            return _with_slopes(s, node, a, mask, c, d)
        return s.call(np.where, mask, join(s, c, a), join(s, d, b)) if a.aval == b.aval else None
    ones, others = _of_mask(x), _of_mask(y)
    if ones is not None and others is not None and _is_not(ones[1], others[1]):
        return _with_slopes(s, node, None, ones[1], c * ones[0], d * others[0])
    steps, rests = _of_steps(x), _of_steps(y)
    if steps is None or rests is None or steps[1] is not rests[1] or not _is_rest(steps[2], rests[2]):
        return None
    return _with_slopes(s, node, steps[1], steps[2], 2 * c * steps[0], 2 * d * rests[0], rests[2])


def _with_slopes(s: Simplifier, node: Node, g: Node | None, count: Node, c: float, d: float, rest: Node | None = None) -> Node:
    """``g`` times what goes from ``d`` to ``c`` as a mask is set, or two are, of which ``rest`` tells how many are not."""
    if abs(c) < abs(d):  # the smaller slope is what is added to: of the larger one, its digits would be lost
        count, c, d = s.call(np.logical_not, count) if rest is None else rest, d, c
    both = 1 if count.aval.dtype == bool else 2
    share = s.call(np.multiply, count, node.aval.dtype.type((c - d) / both))
    slopes = s.call(np.add, share, node.aval.dtype.type(d))
    return slopes if g is None else s.call(np.multiply, g, slopes)


def _of_mask(x: Node) -> tuple[float, Node] | None:
    """``c`` and the mask of ``c * mask``."""
    if is_op(x, np.multiply):
        for mask, c in (x.args, x.args[::-1]):
            if mask.aval.dtype == bool and const(c) is not None and mask.aval.shape == x.aval.shape:
                return float(const(c)), mask
    return None


def _is_not(a: Node, b: Node) -> bool:
    return any(is_op(x, np.logical_not) and x.args[0] is y for x, y in ((a, b), (b, a)))


def _of_steps(x: Node) -> tuple[float, Node | None, Node] | None:
    """``c``, ``g``, if there is one, and how many of two masks are set, of the product of those."""
    if x.op is STEPS:
        return 1.0, None, x
    if is_op(x, np.multiply):
        for g, count in (x.args, x.args[::-1]):
            if count.op is STEPS:
                return (*split(g), count) if const(g) is None else (float(const(g)), None, count)
    return None


def _is_rest(count: Node, rest: Node) -> bool:
    """Whether as many of two other masks are set as are not of these: ``y > x, y >= x`` beside ``x > y, x >= y``."""
    (first, _), (other, _) = count.args, rest.args
    if first.op is other.op:
        return first.args == other.args[::-1]
    return other.op is _TURNED.get(first.op) and first.args == other.args


_SIDES = (np.greater, np.less), (np.greater_equal, np.less_equal)
_TURNED = {REGISTRY[one]: REGISTRY[other] for pair in _SIDES for one, other in (pair, pair[::-1])}


def stepped(x: Node) -> tuple[Node | None, float]:
    """``z`` of a multiple of ``heaviside(z, 0.5)``, however that is computed, and what multiple it is."""
    if is_op(x, np.heaviside) and const(x.args[1]) == 0.5:
        return x.args[0], 1.0
    if is_op(x, np.add) and is_op(x.args[0], np.sign) and const(x.args[1]) == 1.0:
        return x.args[0].args[0], 2.0
    return None, 1.0


@rewrite(np.where, of=(np.greater_equal,), rules=LOWER, derived=True)
def step_where_it_is(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(z >= 0, c * heaviside(z, 0.5), 0)`` as ``((z > 0) + (z >= 0)) * c / 2``: of NaN that is zero, too."""
    mask, value, zero = args
    c, step = split(value)
    z, times = stepped(step)
    known = z is not None and is_op(mask, np.greater_equal) and mask.args[0] is z and const(mask.args[1]) == 0
    if not known or not is_zero(zero) or math.prod(node.aval.shape) < MANY or node.aval.dtype.char not in "fd":
        return None
    small = mask.aval._replace(dtype=np.dtype(np.int8))
    count = s.graph.add(STEPS, (s.call(np.greater, *mask.args), mask), (), small)
    return s.call(np.multiply, count, node.aval.dtype.type(0.5 * c * times))


@rewrite(np.where, of=(np.equal,), rules=LOWER, derived=True)
def to_extremes(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(x == y, g / sum(x == y), 0)``, which the rule of maxima gives, as ``g`` put where they are: there are few."""
    met, g, nothing = args
    if not is_op(met, np.equal) or not is_zero(nothing) or node.aval.dtype.char not in "fd":
        return None
    x, y = met.args
    turned = (is_op(g, np.expand_dims) or is_op(g, np.reshape)) and is_op(g.args[0], np.true_divide)
    shares = g.args[0] if turned else g
    if not is_op(shares, np.true_divide):
        return None
    whole, total = shares.args
    if not turned and (is_op(total, np.expand_dims) or is_op(total, np.reshape)):
        total = total.args[0]
    if not is_op(total, np.sum) or total.args[0] is not met or x.aval != node.aval or y.aval.shape != g.aval.shape:
        return None
    if y.aval.shape and len(y.aval.shape) < len(x.aval.shape):
        return None
    if math.prod(node.aval.shape) < max(RARE * math.prod(y.aval.shape), SOME):
        return None
    if (number := const(whole)) is not None and not whole.aval.shape:
        whole = s.graph.const(node.aval.dtype.type(number))
    elif whole.aval.dtype != node.aval.dtype or whole.aval.kind == "python":
        return None
    whole = s.make(g.op, (whole,), g.params, g.aval) if turned and whole.aval.shape else whole
    return s.graph.add(TO_EXTREMES, (x, y, whole), (), node.aval)


@rewrite(np.multiply, of=(TO_EXTREMES,), rules=LOWER, derived=True)
def factor_of_few(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``c`` times what is put where extremes are, before it is put there."""
    for factor, x in (args, args[::-1]):
        if x.op is TO_EXTREMES and is_factor(factor, node.aval.dtype) and s.used.get(x, 0) <= 1 and node.aval == x.aval:
            return s.graph.add(TO_EXTREMES, (*x.args[:2], s.call(np.multiply, factor, x.args[2])), (), node.aval)
    return None


@rewrite(np.where, of=(CONST,), rules=LOWER, derived=True)
def number_or_zero(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``where(mask, c, 0)`` as a product: what a mask chooses between takes a branch at each, which may be guessed wrong."""
    mask, one, other = args
    known = mask.aval.dtype == bool and mask.aval.shape == node.aval.shape != () and node.aval.dtype.char in "fd"
    if not known or math.prod(node.aval.shape) < FEW:
        return None
    for number, zero in ((one, other), (other, one)):
        c = const(number)
        if type(c) in (int, float) and math.isfinite(c) and c and const(zero) == 0:
            taken = mask if number is one else s.call(np.logical_not, mask)
            return s.call(np.multiply, taken, node.aval.dtype.type(c))
    return None


@rewrite(np.where, rules=LOWER, exact=True)
def select(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A choice between many numbers without a branch at each."""
    mask, *choices = args
    if math.prod(node.aval.shape) < MANY or mask.aval.shape != node.aval.shape or mask.aval.dtype != bool:
        return None
    if node.aval.dtype.char not in "fd" or not any(x.aval.kind == "array" for x in choices):
        return None
    if not all(x.op is CONST or x.aval.dtype == node.aval.dtype for x in choices):
        return None
    if node.aval.dtype == np.float64 and mask.op is CAPTURED:
        mask = s.graph.captured(runtime.bits(s.graph.arrays[mask]))
    elif node.aval.dtype == np.float64:
        mask = s.graph.add(BITS, (mask,), (), mask.aval._replace(dtype=np.dtype(np.int64)))
    return s.graph.add(SELECT, (mask, *choices), (), node.aval)


@rewrite(np.multiply, of=(np.cumprod,), rules=LOWER, derived=True)
def product_of_others(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The products of all that is before, times those of all that is after: without running products, which take longer."""
    if math.prod(node.aval.shape) < SOME // 2 or node.aval.dtype.char not in "fd":
        return None
    for before, turned in (args, args[::-1]):
        if is_op(before, np.cumprod) and turned.op is index.GETITEM and is_op(turned.args[0], np.cumprod):
            axis = dict(before.params).get("axis") or 0
            parts = [_behind_one(s, x, axis) for x in (before, turned.args[0])]
            cuts = [_cut(x, axis) for x in (*parts, turned)]
            if cuts == [(None, -1, None), (None, 0, -1), (None, None, -1)] and parts[0].args == parts[1].args:
                x = parts[0].args[0]
                along = (("axis", axis - len(x.aval.shape)),)
                return s.graph.add(PRODUCTS, (x,), along, node.aval) if x.aval == node.aval else None
    return None


def _behind_one(s: Simplifier, x: Node, axis: int) -> Node:
    """``part`` of ``cumprod(concatenate((one, part), axis), axis)``, or ``x``."""
    (joined,) = x.args
    axes = [dict(node.params).get("axis") or 0 for node in (x, joined)]
    if not is_op(joined, np.concatenate) or len(joined.args) != 2 or axes != [axis, axis]:
        return x
    one, part = joined.args
    ones = np.all(s.graph.arrays[one] == 1) if one.op is CAPTURED else filling(one) == 1
    return part if ones and one.aval.shape[axis] == 1 else x


def _cut(x: Node, axis: int) -> tuple[Any, ...] | None:
    """The slice along one axis, all of the others."""
    spec = dict(x.params).get("spec", ())
    whole = x.op is index.GETITEM and len(spec) == axis + 1 and spec[:axis] == (index.EVERY,) * axis
    return tuple(spec[axis]) if whole and type(spec[axis]) is index.Slice else None


@rewrite(np.argsort, rules=LOWER, exact=True)
def order(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Stable sorting where equal elements are there alone, and what inverts an order without sorting."""
    x, params = args[0], dict(node.params)
    axis = params.pop("axis", -1)
    if len(args) > 1 or math.prod(node.aval.shape) < MANY or type(axis) is not int or x.aval.kind != "array":
        return None
    along = (("axis", axis),) if axis % len(node.aval.shape) != len(node.aval.shape) - 1 else ()
    if x.op is ORDER and x.params == along and set(params) <= {"kind", "stable"}:
        return s.graph.add(RANKS, (x,), along, node.aval)
    return s.graph.add(ORDER, (x,), along, node.aval) if params == {"kind": "stable"} and x.aval.dtype.char in "fd" else None


@rewrite(np.sort, rules=LOWER, exact=True)
def sorted_by_order(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Sorting of what its derivative puts in order anyway."""
    (x,), params = args, dict(node.params)
    ndim = len(node.aval.shape)
    axis = params.pop("axis", -1)
    if params or math.prod(node.aval.shape) < MANY or type(axis) is not int or x.aval.dtype.char not in "fd":
        return None
    if x.aval.kind != "array" or not isinstance(s, Lowerer) or not s.orders_by(x, axis % ndim):
        return None
    along: dict[str, Any] = {} if axis % ndim == ndim - 1 else {"axis": axis}
    return s.call(np.take_along_axis, x, s.call(np.argsort, x, kind="stable", **along), axis=axis)


@rewrite(np.maximum, rules=LOWER, exact=True)
def hat(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The elements of a median, or of one quantile, which need no order of all."""
    zero, rest = args
    if const(zero) != 0 or not is_op(rest, np.subtract) or const(rest.args[0]) != 1 or not is_op(rest.args[1], np.absolute):
        return None
    (difference,) = rest.args[1].args
    if not is_op(difference, np.subtract) or node.aval.dtype.char != "d":
        return None
    ranks, place = difference.args
    ranks = ranks.args[0] if is_op(ranks, np.reshape) else ranks  # of all elements
    axis, shape, rank = dict(ranks.params).get("axis", -1), ranks.aval.shape, const(place)
    if ranks.op is not RANKS or type(rank) not in (int, float) or not 0 <= rank <= shape[axis] - 1:
        return None
    found = s.graph.add(HAT, (ranks.args[0].args[0], place), ranks.params, node.aval._replace(shape=shape))
    return found if shape == node.aval.shape else s.call(np.reshape, found, shape=node.aval.shape)


@rewrite(np.take_along_axis, of=(RANKS,), rules=LOWER, exact=True)
def back_in_place(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What was sorted is put back by the order, which need not be inverted."""
    g, ranks = args
    axes = {dict(one.params).get("axis", -1) % len(node.aval.shape) for one in (node, ranks)}
    if ranks.op is not RANKS or g.aval != node.aval or len(axes) > 1:
        return None
    return s.graph.add(BACK, (g, ranks.args[0]), node.params, node.aval)


@rewrite(INTERP, rules=LOWER, exact=True)
def interpolate(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Interpolation at places that its derivative searches anyway."""
    x, xp, _ = args
    if math.prod(x.aval.shape) < MANY or any(arg.aval.dtype != np.float64 or arg.aval.kind != "array" for arg in args):
        return None
    if not isinstance(s, Lowerer) or not s.searches_for(xp, x):
        return None
    return s.graph.add(INTERPOLATE, (*args, s.call(np.searchsorted, xp, x, side="right")), (), node.aval)


@rewrite(np.linalg.det, rules=LOWER)
def determinants(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Determinants of many matrices of two or three rows: LAPACK takes longer to get to the next one than for one."""
    (a,) = args
    few = a.aval.dtype.char in "fd" and a.aval.kind == "array" and a.aval.shape[-1] in (2, 3)
    return s.graph.add(DETERMINANTS, args, (), node.aval) if few and math.prod(node.aval.shape) >= FEW else None


@rewrite(np.searchsorted, rules=LOWER, exact=True)
def search(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Places of many numbers, which may be in no order."""
    doubles = len(args) == 2 and all(arg.aval.kind == "array" and arg.aval.dtype == np.float64 for arg in args)
    if not doubles or math.prod(node.aval.shape) < 2 * SOME or not set(dict(node.params)) <= {"side"}:
        return None
    return s.graph.add(SEARCH, args, node.params, node.aval)
