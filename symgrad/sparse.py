"""Sparse Jacobians and Hessians: which derivatives can be other than zero is read off the graph, and only those are computed.

The graph of a traced call says which variables each value may depend on: its *pattern*, a sparse matrix of truth values that
is propagated from operation to operation. Variables that no output shares are moved together, so that a few pushforwards (or
pullbacks) hold all derivatives. Needs ``pip install "symgrad[scipy]"``.

>>> from symgrad.sparse import sparse_jacobian
>>> print(sparse_jacobian(lambda x: x[1:] * x[:-1] ** 2, np.array([1.0, 2.0, 3.0])).toarray())
[[ 4.  1.  0.]
 [ 0. 12.  4.]]
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.errors import NotDifferentiable, SymgradError, not_installed

try:
    import scipy.sparse as sp
    from scipy.optimize._numdiff import group_columns  # what least_squares(jac_sparsity=...) colours with
except ModuleNotFoundError as error:
    raise not_installed("symgrad.sparse", "scipy") from error

from symgrad.api import Derivative, grad
from symgrad.ir import Aval, Node
from symgrad.ops import engine
from symgrad.ops.contract import cut
from symgrad.ops.core import ASTYPE, REGISTRY, Op
from symgrad.ops.reduction import OTHERS, logaddexp2_reduce, logaddexp_reduce
from symgrad.ops.scan import FROM_RUNNING, RECURRENCE, Running
from symgrad.ops.signal import INTERP
from symgrad.ops.sort import FROM_PARTS
from symgrad.scipy.sparse import TIMES
from symgrad.signature import Static, layout
from symgrad.tracing.trace import Tape, Trace, tracing
from symgrad.transform import calculus
from symgrad.transform.reverse import path
from symgrad.watch.state import watch

__all__ = ["sparse_hessian", "sparse_jacobian"]

Matrix = Any  # a scipy.sparse.csr_array
LARGEST = 30_000_000  # entries of a pattern, or of one step; what is larger is not sparse
PUSH, PULL = "pushforwards", "pullbacks"


def sparse_jacobian(fun: Callable[..., Any], *args: Any, argnums: int | str = 0, **kwargs: Any) -> Any:
    """The Jacobian of a function between arrays, as a ``scipy.sparse.csr_array`` of shape ``(output.size, x.size)``.

    Args:
        fun: a function of an array of real numbers, with an array of real numbers as output.
        *args, **kwargs: its arguments. Without any, a function of them is returned, to be called many times: it finds the
            pattern once for each signature.
        argnums: which argument to differentiate.

    Raises:
        ValueError: the Jacobian is not sparse: its pattern has too many entries to be held.
        NotDifferentiable: complex numbers, or no array.

    The pattern holds for the branches and indices that its call had. Each result is checked against a derivative in a
    random direction, and the pattern found anew where it does not hold.

    >>> jacobian = sparse_jacobian(lambda x: x[1:] - x[:-1] ** 2)
    >>> jacobian(np.array([1.0, 2.0, 3.0])).toarray()
    array([[-2.,  1.,  0.],
           [ 0., -4.,  1.]])
    """
    made = _Sparse(fun, argnums)
    return made(*args, **kwargs) if args or kwargs else made


def sparse_hessian(fun: Callable[..., Any], *args: Any, argnums: int | str = 0, **kwargs: Any) -> Any:
    """The Hessian of a scalar function of an array, as a ``scipy.sparse.csr_array``.

    Arguments and errors as for ``sparse_jacobian``; its pattern is that of the gradient's graph.

    >>> sparse_hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2), np.array([1.0, 2.0, 3.0])).toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]])
    """
    return sparse_jacobian(grad(fun, argnums), *args, argnums=argnums, **kwargs)


class _Pass(NamedTuple):
    """One call of compiled products, and which entries of the Jacobian are taken from it."""

    kind: str
    seeds: np.ndarray[Any, Any]  # for each group of columns or rows, the sum of their unit vectors
    entries: np.ndarray[Any, Any]  # places in the pattern's data
    at: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]  # where in the products they are


class _Plan(NamedTuple):
    """How the Jacobians of one signature are computed: where they may be other than zero, and what is computed together."""

    pattern: Matrix
    passes: list[_Pass]  # the last seed of the first is a random vector: it checks the result


class _Sparse:
    """A function that gives sparse Jacobians. Made by ``sparse_jacobian``."""

    def __init__(self, fun: Callable[..., Any], argnums: int | str) -> None:
        self.__wrapped__ = fun
        self.argnums = argnums
        self._products: dict[str, Derivative[..., Any]] = {
            kind: Derivative(kind, fun, {"argnums": argnums}) for kind in (PUSH, PULL)
        }
        self._plans: dict[Any, _Plan] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key, _ = layout(args, kwargs)
        plan = self._plans.get(key)
        found = None if plan is None else self._computed(plan, args, kwargs)
        if found is None:
            plan = self._plans[key] = _plan(self.pattern(*args, **kwargs))
            found = self._computed(plan, args, kwargs, rounding=16.0)
        if found is None:
            raise SymgradError("the Jacobian is not what its pattern allows: does the function do the same at every call?")
        return found

    def pattern(self, *args: Any, **kwargs: Any) -> Any:
        """Where the Jacobian may be other than zero, as a ``csr_array`` of truth values."""
        trace = Tape()
        watch(trace, None, fills=True)
        call, leaves = layout(args, kwargs)
        given = [
            trace.input(position, leaf) if isinstance(leaf, np.ndarray) and not isinstance(kind, Static) else leaf
            for position, (leaf, kind) in enumerate(zip(leaves, call.kinds, strict=True))
        ]
        args, values = call.tree.unflatten(given)
        with tracing(trace):
            run = calculus.evaluate(trace, self.__wrapped__, self.argnums, args, dict(zip(call.keywords, values, strict=True)))
            outs = [calculus.traced(trace, out).node for out in run.outputs]
        if len(outs) != 1 or len(run.wrt) != 1:
            raise NotDifferentiable("a sparse Jacobian is of one array, by one array: symgrad.flatten makes one of several")
        (out,), (x,) = outs, run.wrt
        if any(node.aval.dtype.kind == "c" for node in (out, x)):
            raise NotDifferentiable("a sparse Jacobian is of real numbers: take real and imaginary parts")
        rows, columns = (math.prod(node.aval.shape) for node in (out, x))
        found = Patterns(trace, x).run(path([out], [x])).get(out)
        return sp.csr_array((rows, columns), dtype=bool) if found is None else found.astype(bool)

    def _computed(self, plan: _Plan, args: tuple[Any, ...], kwargs: dict[str, Any], rounding: float = 0.0) -> Any:
        """The Jacobian; None where it contradicts its pattern.

        With a pattern of these very arguments, what is ``rounding`` beside the largest derivatives is no contradiction: rows of
        a Fourier transform may be zero, and their products with a vector nearly so. Nor is what rounding alone makes of terms
        that cancel: by as much are products with sums of vectors no sums of products.
        """
        pattern, first = plan.pattern, plan.passes[0]
        products = [np.reshape(self._products[p.kind](p.seeds, *args, **kwargs), (len(p.seeds), -1)) for p in plan.passes]
        data = np.empty(pattern.nnz, products[0].dtype)
        for one, found in zip(plan.passes, products, strict=True):
            data[one.entries] = found[one.at]
        jacobian = sp.csr_array((data, pattern.indices, pattern.indptr), pattern.shape)
        matrix, direction, expected = jacobian if first.kind == PUSH else jacobian.T, first.seeds[-1], products[0][-1]
        actual, scale = matrix @ direction, abs(matrix) @ np.abs(direction) + np.abs(expected)
        known = np.isfinite(actual) & np.isfinite(expected)
        eps, scale, off = np.finfo(data.dtype).eps, scale[known], np.abs(actual - expected)[known]
        same = np.all(off <= eps**0.5 * scale + rounding * eps * np.max(scale, initial=0.0))
        if rounding and not same:
            parts = np.random.default_rng(len(direction)).uniform(0.5, 1.5, (2, 8, len(direction)))
            one, other, both = [self._products[first.kind](seeds, *args, **kwargs) for seeds in (*parts, sum(parts))]
            noise = np.abs(both - one - other)
            same = np.all(off <= rounding * np.max(noise, initial=0.0, where=np.isfinite(noise)))
        return jacobian.copy() if same else None


# -- what is computed together -------------------------------------------------------------------------------------


def _plan(pattern: Matrix) -> _Plan:
    """Columns that meet in no row make a group, and one pushforward gives it; rows that are too full for that take pullbacks.

    Or rows and columns the other way round, where that takes fewer products.
    """
    rows, columns = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr)), pattern.indices
    sides = [_Side(pattern, (PUSH, PULL), (rows, columns)), _Side(pattern.T.tocsr(), (PULL, PUSH), (columns, rows))]
    most = LARGEST // max(*pattern.shape, 1)
    best = None
    for side in sorted(sides, key=lambda side: side.least):
        if side.least <= most and side.count <= most:
            most, best = side.count - 1, side
    if best is None:
        raise ValueError(f"the Jacobian of shape {pattern.shape} is not sparse: each row or column meets too many others")
    return _Plan(pattern, best.passes())


class _Side:
    """A pattern whose columns are grouped, but for the rows that are full; or, transposed, whose rows are."""

    def __init__(self, pattern: Matrix, kinds: tuple[str, str], entries: tuple[np.ndarray[Any, Any], ...]) -> None:
        self.pattern, self.kinds, self.entries = pattern, kinds, entries
        counts = np.diff(pattern.indptr)
        fullest = np.append(np.sort(counts)[::-1], 0)  # the columns of one row are in as many groups
        out = int(np.argmin(np.arange(fullest.size) + fullest))
        self.full = counts > fullest[out]
        self.least = int(fullest[out]) + (out > 0)

    @functools.cached_property
    def groups(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The group of each column, and of each row that is full, -1 of the others."""
        rows = np.full(self.full.size, -1)
        rows[self.full] = _groups(self.pattern[self.full].T)
        return _groups(self.pattern[~self.full]), rows

    @functools.cached_property
    def count(self) -> int:
        """How many products there are; calls of both kinds count for one more."""
        columns, rows = map(_count, self.groups)
        return columns + rows + (rows > 0 and not np.all(self.full))

    def passes(self) -> list[_Pass]:
        """The products that give all entries."""
        rows, columns = self.entries
        full = self.full[rows]
        made = []
        for kind, group, own, across, mine in zip(
            self.kinds, self.groups, (columns, rows), (rows, columns), (~full, full), strict=True
        ):
            seeds = np.zeros((_count(group), group.size))
            members = np.flatnonzero(group >= 0)
            seeds[group[members], members] = 1.0
            made.append(_Pass(kind, seeds, np.flatnonzero(mine), (group[own[mine]], across[mine])))
        first, *more = [one for one in made if one.entries.size] or made[:1]
        size = first.seeds.shape[1]
        check = np.random.default_rng(size).uniform(0.5, 1.5, (1, size))
        return [first._replace(seeds=np.concatenate([first.seeds, check])), *more]


def _count(group: np.ndarray[Any, Any]) -> int:
    return int(group.max(initial=-1)) + 1


def _groups(pattern: Matrix) -> np.ndarray[Any, Any]:
    """A number for each column, different for any two that share a row."""
    found: np.ndarray[Any, Any] = group_columns(pattern, np.arange(pattern.shape[1]))
    return found


# -- patterns ------------------------------------------------------------------------------------------------------

Rule = Callable[["Patterns", Node, int], Matrix]
RULES: dict[Op, Rule] = {}


class Patterns:
    """The patterns of the values of one trace, one row an element, one column an element of ``x``."""

    def __init__(self, trace: Trace, x: Node) -> None:
        size = math.prod(x.aval.shape)
        self.values = trace.values
        self.known: dict[Node, Matrix] = {x: sp.csr_array(sp.eye_array(size, dtype=np.int8))}

    def run(self, nodes: Sequence[Node]) -> dict[Node, Matrix]:
        """The patterns of nodes, arguments before users; what depends on nothing is left out."""
        for node in nodes:
            places = [i for i, arg in enumerate(node.args) if arg in self.known and node.op.differentiable(i)]
            if node in self.known or not places or node.op.family == "constant":
                continue
            total = _followed(self.step(node, places[0]), self.known[node.args[places[0]]])
            for i in places[1:]:
                total = total + _followed(self.step(node, i), self.known[node.args[i]])
            total.data = np.ones(total.nnz, np.int8)
            self.known[node] = total
        return self.known

    def step(self, node: Node, i: int) -> Matrix:
        """Which elements of argument ``i`` each element of the result may depend on."""
        rule = RULES.get(node.op)
        if rule is None and node.op.family == "elementwise":
            rule = elementwise
        if rule is None and node.op.family == "linear" and isinstance(node.aval, Aval):
            rule = moved
        return (rule or anything)(self, node, i)


def sizes(node: Node, i: int) -> tuple[int, int]:
    """How many elements a result has (several results count as one after the other), and argument ``i``."""
    return _size(node.aval), _size(node.args[i].aval)


def _size(aval: Any) -> int:
    return math.prod(aval.shape) if isinstance(aval, Aval) else sum(map(_size, aval))


def _followed(step: Matrix, before: Matrix) -> Matrix:
    """The pattern after a step."""
    _check_size((step @ np.diff(before.indptr).astype(float)).sum())
    return step @ before


def _check_size(entries: float) -> None:
    if entries > LARGEST:
        raise ValueError(f"the Jacobian is not sparse: a step of the function relates {entries:.0f} pairs of elements")


def pairs(outs: Any, ins: Any, shape: tuple[int, int]) -> Matrix:
    """The step in which element ``outs[k]`` depends on element ``ins[k]``."""
    _check_size(float(math.prod(np.broadcast_shapes(np.shape(outs), np.shape(ins)))))
    outs, ins = (np.ravel(numbers) for numbers in np.broadcast_arrays(outs, ins))
    return sp.csr_array((np.ones(outs.size, np.int8), (outs, ins)), shape)


def anything(p: Patterns, node: Node, i: int) -> Matrix:
    """Where nothing is known, each element may depend on all."""
    rows, columns = sizes(node, i)
    return pairs(np.arange(rows)[:, None], np.arange(columns), (rows, columns))


def places(aval: Aval) -> np.ndarray[Any, Any]:
    """The number of each element, in the shape of a value."""
    return np.arange(math.prod(aval.shape)).reshape(aval.shape)


def elementwise(p: Patterns, node: Node, i: int) -> Matrix:
    """Each element on its own, after broadcasting."""
    if not isinstance(node.aval, Aval):
        return anything(p, node, i)
    return pairs(places(node.aval), np.broadcast_to(places(node.args[i].aval), node.aval.shape), sizes(node, i))


def moved(p: Patterns, node: Node, i: int) -> Matrix:
    """A linear operation that moves elements, or adds up what is moved: found by moving numbers.

    Two random vectors show where each element of the result is from, or where each element of the argument goes to.
    """
    rows, columns = sizes(node, i)
    args = [_zero(p.values[arg]) if node.op.differentiable(j) else p.values[arg] for j, arg in enumerate(node.args)]
    params = dict(node.params)

    def there(x: Any) -> Any:
        return node.op.fun(*args[:i], np.reshape(x, node.args[i].aval.shape), *args[i + 1 :], **params)

    def back(g: Any) -> Any:
        given = [p.values[arg] for arg in node.args]
        return node.op.vjp(i, np.reshape(g, node.aval.shape), p.values[node], given, params)

    sources = _origins(there, columns, rows)
    if sources is not None:
        outs = np.flatnonzero(sources >= 0)
        return pairs(outs, sources[outs], (rows, columns))
    targets = _origins(back, rows, columns)
    if targets is not None:
        ins = np.flatnonzero(targets >= 0)
        return pairs(targets[ins], ins, (rows, columns))
    return anything(p, node, i)


def _zero(value: Any) -> Any:
    return np.zeros(np.shape(value))


def _origins(move: Callable[[Any], Any], size: int, expected: int) -> np.ndarray[Any, Any] | None:
    """Which element each element of ``move(x)`` is (-1: zero), if that is all it does."""
    try:
        number, y = (np.ravel(move(x)) for x in _probes(size))
    except (TypeError, ValueError, AttributeError, IndexError):
        return None
    if y.size != expected or y.dtype != np.float64 or not size:
        return None
    at = number.astype(int) - 1
    if np.any((at < -1) | (at >= size)) or np.any(np.where(at < 0, 0.0, _probes(size)[1][at]) != y):
        return None
    return at


@functools.lru_cache(maxsize=8)
def _probes(size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The numbers of elements, from 1, and random numbers: what gives both their own only moves them."""
    return np.arange(1.0, size + 1.0), np.random.default_rng(size).uniform(1.0, 2.0, size)


def rule(*keys: Any) -> Callable[[Rule], Rule]:
    """Put a rule into the table."""

    def register(made: Rule) -> Rule:
        for key in keys:
            op = key if isinstance(key, Op) else REGISTRY[key]
            assert isinstance(op, Op), key
            RULES[op] = made
        return made

    return register


@rule(INTERP)
def interpolation(p: Patterns, node: Node, i: int) -> Matrix:
    """Element by element of what is looked up; anything of the table."""
    return (elementwise if i == 0 else anything)(p, node, i)


@rule(ASTYPE, engine.IDENTITY, engine.NAMED, engine.TO_PYTHON, engine.TO_NUMPY, engine.TO_ARRAY, engine.TO_FLOAT)
def same(p: Patterns, node: Node, i: int) -> Matrix:
    """Element by element."""
    size, _ = sizes(node, i)
    return pairs(np.arange(size), np.arange(size), (size, size))


@rule(engine.ITEM)
def item(p: Patterns, node: Node, i: int) -> Matrix:
    """One of several results, which stand one after the other."""
    which = dict(node.params)["item"]
    start, size = sum(map(_size, node.args[0].aval[:which])), _size(node.aval)
    return pairs(np.arange(size), start + np.arange(size), sizes(node, i))


@rule(np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std, np.linalg.norm)
@rule(np.median, np.nanmedian, np.quantile, np.nanquantile, logaddexp_reduce, logaddexp2_reduce)
def reduction(p: Patterns, node: Node, i: int) -> Matrix:
    """What is reduced to one element, or to several along a first axis."""
    shape, axis = node.args[i].aval.shape, dict(node.params).get("axis")
    if not shape or i:
        return anything(p, node, i)
    axes = tuple(range(len(shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(k % len(shape) for k in axes)
    kept = tuple(1 if k in axes else n for k, n in enumerate(shape))
    outs = np.arange(sizes(node, i)[0]).reshape(-1, *kept)
    return pairs(np.broadcast_to(outs, (len(outs), *shape)), places(node.args[i].aval), sizes(node, i))


@rule(np.cumsum, np.cumprod, RECURRENCE, FROM_RUNNING, *[key for key in REGISTRY if isinstance(key, Running)])
@rule(np.sort, np.partition, FROM_PARTS, np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
def along_axis(p: Patterns, node: Node, i: int) -> Matrix:
    """Anything along one axis."""
    axis = dict(node.params).get("axis", None if node.op in (REGISTRY[np.cumsum], REGISTRY[np.cumprod]) else -1)
    if axis is None or not node.aval.shape:
        return anything(p, node, i)
    outs, ins = (np.moveaxis(places(aval), axis, -1) for aval in (node.aval, node.args[i].aval))
    return pairs(outs[..., :, None], ins[..., None, :], sizes(node, i))


@rule(OTHERS)
def of_others(p: Patterns, node: Node, i: int) -> Matrix:
    """All others along an axis."""
    axis = dict(node.params)["axis"]
    size = node.aval.shape[axis]
    outs, ins = (np.moveaxis(places(aval), axis, -1) for aval in (node.aval, node.args[i].aval))
    apart = ~np.eye(size, dtype=bool)
    outs, ins = np.broadcast_arrays(outs[..., :, None], ins[..., None, :])
    return pairs(outs[..., apart], ins[..., apart], sizes(node, i))


@rule(np.convolve, np.correlate)
def convolution(p: Patterns, node: Node, i: int) -> Matrix:
    """A band, as wide as the other array; the zeros of a constant one count."""
    mine, other = node.args[i].aval, np.ravel(p.values[node.args[1 - i]])
    used = np.arange(other.size) if node.args[1 - i] in p.known else np.flatnonzero(other)
    ins, outs = np.ix_(np.arange(_size(mine)), used)
    a, v, at_v = (_size(mine), other.size, outs) if i == 0 else (other.size, _size(mine), ins)
    mode = dict(node.params).get("mode")
    if node.op is REGISTRY[np.convolve]:
        outs = ins + outs - cut(min(a, v), mode or "full")[0]
    else:  # a convolution with the second array reversed
        outs = ins + outs + v - 1 - 2 * at_v - cut(min(a, v), mode or "valid")[v > a]
    there = (outs >= 0) & (outs < node.aval.shape[0])
    return pairs(outs[there], np.broadcast_to(ins, outs.shape)[there], sizes(node, i))


@rule(np.diff)
def difference(p: Patterns, node: Node, i: int) -> Matrix:
    """Neighbours along one axis."""
    axis = dict(node.params).get("axis", -1)
    ins, outs = np.moveaxis(places(node.args[i].aval), axis, -1), np.moveaxis(places(node.aval), axis, -1)
    windows = np.lib.stride_tricks.sliding_window_view(ins, 2, -1) if outs.size else outs[..., None]
    return pairs(outs[..., None], windows, sizes(node, i))


def blocks(node: Node, i: int, inner_out: int, inner: int) -> Matrix:
    """Anything within the last axes, element by element (after broadcasting) along those before."""
    shape, own = node.aval.shape, node.args[i].aval.shape
    outer = shape[: len(shape) - inner_out]
    ins = np.broadcast_to(places(node.args[i].aval), (*outer, *own[len(own) - inner :])).reshape(*outer, 1, -1)
    return pairs(places(node.aval).reshape(*outer, -1, 1), ins, sizes(node, i))


@rule(np.linalg.inv, np.linalg.cholesky, np.linalg.solve, np.cross, np.linalg.det)
def stacked(p: Patterns, node: Node, i: int) -> Matrix:
    """Matrices, or vectors, of which there are many."""
    inner = 1 if node.op is REGISTRY[np.cross] else 2
    if (
        node.params
        or any(len(arg.aval.shape) < inner for arg in node.args)
        or 0 in (*node.aval.shape, *node.args[i].aval.shape)
    ):
        return anything(p, node, i)
    if inner == 1 and any(arg.aval.shape[-1] != 3 for arg in node.args):  # of two dimensions: a number
        return anything(p, node, i)
    return blocks(node, i, 0 if node.op is REGISTRY[np.linalg.det] else inner, inner)


@rule(np.matmul, np.dot)
def product(p: Patterns, node: Node, i: int) -> Matrix:
    """A product of vectors and matrices; the zeros of a constant factor count."""
    shapes = [arg.aval.shape for arg in node.args]
    if node.op is REGISTRY[np.matmul] and all(len(shape) >= 2 for shape in shapes) and len(node.aval.shape) > 2:
        return blocks(node, i, 2, 2)
    if not all(len(shape) in (1, 2) for shape in shapes):
        return anything(p, node, i)
    m, k = (1, *shapes[0])[-2:]
    n = 1 if len(shapes[1]) == 1 else shapes[1][1]
    other = node.args[1 - i]
    there = np.ones(shapes[1 - i]) if other in p.known else p.values[other]
    factor = sp.csr_array((np.asarray(there) != 0).reshape((m, k) if i == 1 else (k, n)).astype(np.int8))
    _check_size(float(factor.nnz) * (n if i == 1 else m))
    if i == 1:
        return sp.csr_array(sp.kron(factor, sp.eye_array(n, dtype=np.int8)))
    return sp.csr_array(sp.kron(sp.eye_array(m, dtype=np.int8), factor.T))


@rule(TIMES)
def sparse_product(p: Patterns, node: Node, i: int) -> Matrix:
    """A product with a sparse array, of the elements that it holds."""
    indices, indptr = (p.values[arg] for arg in node.args[1:3])
    params, held = dict(node.params), np.arange(np.size(indices))
    outer = np.repeat(np.arange(np.size(indptr) - 1), np.diff(indptr))
    rows, columns = (outer, indices) if params["format"] == "csr" else (indices, outer)
    outs, ins = (np.arange(size).reshape(n, -1) for size, n in zip(sizes(node, 3), params["shape"], strict=True))
    return pairs(outs[rows], ins[columns] if i == 3 else held[:, None], sizes(node, i))


@rule(np.einsum, np.tensordot)
def labelled(p: Patterns, node: Node, i: int) -> Matrix:
    """Elements whose labels agree."""
    assert node.op.labels is not None
    inputs, out = node.op.labels(*[p.values[arg] for arg in node.args], **dict(node.params))
    return _agreeing(node, i, inputs[i], out)


def _agreeing(node: Node, i: int, mine: str, out: str) -> Matrix:
    """Elements of argument ``i``, with these labels for its axes, and of the result."""
    shapes = [*zip(out, node.aval.shape, strict=True)], [*zip(mine, node.args[i].aval.shape, strict=True)]
    length: dict[str, int] = {}
    for letter, size in (*shapes[0], *shapes[1]):
        length[letter] = size if length.get(letter, 1) == 1 else length[letter]
    grid = dict(zip(length, np.ix_(*map(np.arange, length.values())), strict=True))
    outs, ins = (_number([(grid[letter], size) for letter, size in shape]) for shape in shapes)
    return pairs(outs, ins, sizes(node, i))


def _number(axes: Sequence[tuple[Any, int]]) -> Any:
    """The number of the element at these places on axes of these sizes; one of size 1 is broadcast."""
    number: Any = 0
    for place, size in axes:
        number = number * size + (place if size != 1 else 0)
    return number
