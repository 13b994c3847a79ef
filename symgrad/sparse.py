"""Sparse Jacobians and Hessians: which derivatives can be other than zero is read off the graph, and only those are computed.

The graph of a traced call says which variables each value may depend on: its *pattern*, a sparse matrix of truth values that
is propagated from operation to operation. Variables that no output shares are moved together, so that a few pushforwards (or
pullbacks) hold all derivatives. Needs ``pip install "symgrad[scipy]"``: SciPy for the matrices, NetworkX for the colouring.

>>> from symgrad.sparse import sparse_jacobian
>>> print(sparse_jacobian(lambda x: x[1:] * x[:-1] ** 2, np.array([1.0, 2.0, 3.0])).toarray())
[[ 4.  1.  0.]
 [ 0. 12.  4.]]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import scipy.sparse as sp

from symgrad.api import Derivative, grad
from symgrad.compile import layout
from symgrad.errors import NotDifferentiable, SymgradError
from symgrad.ir import Aval, Node
from symgrad.ops import engine
from symgrad.ops.core import ASTYPE, REGISTRY, Op
from symgrad.state import watching
from symgrad.trace import Tape, Trace, tracing
from symgrad.transform import calculus
from symgrad.transform.reverse import path

Matrix = Any  # a scipy.sparse.csr_array
LARGEST = 30_000_000  # entries of a pattern, or of one step; what is larger is not sparse
MOST_EDGES = 30_000_000  # pairs of columns that meet in a row, above which they are not grouped


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


class _Plan(NamedTuple):
    """How the Jacobians of one signature are computed: where they may be other than zero, and what is computed together."""

    pattern: Matrix
    group: np.ndarray[Any, Any]  # of each column, or of each row
    seeds: np.ndarray[Any, Any]  # the sum of the unit vectors of each group; last a random vector
    forward: bool


class _Sparse:
    """A function that gives sparse Jacobians. Made by ``sparse_jacobian``."""

    def __init__(self, fun: Callable[..., Any], argnums: int | str) -> None:
        self.__wrapped__ = fun
        self.argnums = argnums
        self._products: dict[str, Derivative[..., Any]] = {
            kind: Derivative(kind, fun, {"argnums": argnums}) for kind in ("pushforwards", "pullbacks")
        }
        self._plans: dict[Any, _Plan] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key, _ = layout(args, kwargs)
        plan = self._plans.get(key)
        found = None if plan is None else self._computed(plan, args, kwargs)
        if found is None:
            plan = self._plans[key] = _plan(self.pattern(*args, **kwargs))
            found = self._computed(plan, args, kwargs)
        if found is None:
            raise SymgradError("the Jacobian is not what its pattern allows: does the function do the same at every call?")
        return found

    def pattern(self, *args: Any, **kwargs: Any) -> Any:
        """Where the Jacobian may be other than zero, as a ``csr_array`` of truth values."""
        trace = Tape()
        trace.hooks = watching(trace, self.__wrapped__)
        with tracing(trace):
            run = calculus.evaluate(trace, self.__wrapped__, self.argnums, args, kwargs)
        if len(run.outputs) != 1 or len(run.wrt) != 1:
            raise NotDifferentiable("a sparse Jacobian is of one array, by one array: symgrad.flatten makes one of several")
        (out,), (x,) = run.outputs, run.wrt
        avals = [calculus.traced(trace, out).node.aval, x.aval]
        if any(aval.dtype.kind == "c" for aval in avals):
            raise NotDifferentiable("a sparse Jacobian is of real numbers: take real and imaginary parts")
        rows, columns = (math.prod(aval.shape) for aval in avals)
        found = Patterns(trace, x).run(path([out.node], [x])).get(out.node) if hasattr(out, "node") else None
        return sp.csr_array((rows, columns), dtype=bool) if found is None else found.astype(bool)

    def _computed(self, plan: _Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The Jacobian; None where it contradicts its pattern."""
        products = self._products["pushforwards" if plan.forward else "pullbacks"](plan.seeds, *args, **kwargs)
        products = np.reshape(products, (len(plan.seeds), -1))
        pattern = plan.pattern
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        data = products[plan.group[pattern.indices], rows] if plan.forward else products[plan.group[rows], pattern.indices]
        found = sp.csr_array((data, pattern.indices, pattern.indptr), pattern.shape)
        matrix, direction, expected = found if plan.forward else found.T, plan.seeds[-1].ravel(), products[-1]
        actual, scale = matrix @ direction, abs(matrix) @ np.abs(direction) + np.abs(expected)
        known = np.isfinite(actual) & np.isfinite(expected)
        same = np.abs(actual - expected)[known] <= np.finfo(data.dtype).eps ** 0.5 * scale[known]
        return found.copy() if np.all(same) else None


def _plan(pattern: Matrix) -> _Plan:
    """Group the columns, or the rows where fewer groups do, so that no two of a group meet."""
    by_columns, by_rows = _groups(pattern), _groups(pattern.T.tocsr())
    forward = by_rows is None or (by_columns is not None and _count(by_columns) <= _count(by_rows))
    group = by_columns if forward else by_rows
    if group is None:
        raise ValueError(f"the Jacobian of shape {pattern.shape} is not sparse: each row or column meets too many others")
    seeds = np.zeros((_count(group) + 1, group.size))
    seeds[group, np.arange(group.size)] = 1.0
    seeds[-1] = np.random.default_rng(group.size).uniform(0.5, 1.5, group.size)
    return _Plan(pattern, group, seeds, forward)


def _count(group: np.ndarray[Any, Any]) -> int:
    return int(group.max(initial=-1)) + 1


def _groups(pattern: Matrix) -> np.ndarray[Any, Any] | None:
    """A number for each column, different for any two that share a row; None where too many do."""
    size = pattern.shape[1]
    counts = np.diff(pattern.indptr).astype(float)
    if counts @ counts > MOST_EDGES:
        return None
    ones = sp.csr_array((np.ones(pattern.nnz, np.int32), pattern.indices, pattern.indptr), pattern.shape)
    shared = sp.triu(ones.T @ ones, 1).tocoo()
    graph = nx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(zip(*(places.tolist() for places in shared.coords), strict=True))
    colours = nx.greedy_color(graph, lambda graph, colours: range(size))
    return np.fromiter((colours[i] for i in range(size)), int, size)


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
    found = None
    for seed in (1, 2):
        x = np.random.default_rng(seed).uniform(1.0, 2.0, size)
        try:
            y = np.ravel(move(x))
        except (TypeError, ValueError, AttributeError, IndexError):
            return None
        if y.size != expected or y.dtype != x.dtype or not size:
            return None
        order = np.argsort(x)
        at = order[np.minimum(np.searchsorted(x, y, sorter=order), size - 1)]
        at[y == 0] = -1
        if np.any((x[at] != y) & (at >= 0)) or (found is not None and np.any(found != at)):
            return None
        found = at
    return found


def rule(*keys: Any) -> Callable[[Rule], Rule]:
    """Put a rule into the table."""

    def register(made: Rule) -> Rule:
        for key in keys:
            op = key if isinstance(key, Op) else REGISTRY[key]
            assert isinstance(op, Op), key
            RULES[op] = made
        return made

    return register


@rule(ASTYPE, engine.IDENTITY, engine.TO_PYTHON, engine.TO_NUMPY, engine.TO_ARRAY, engine.TO_FLOAT)
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


@rule(np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std)
def reduction(p: Patterns, node: Node, i: int) -> Matrix:
    """What is reduced to one element."""
    shape, axis = node.args[i].aval.shape, dict(node.params).get("axis")
    if not shape:
        return same(p, node, i)
    axes = tuple(range(len(shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(k % len(shape) for k in axes)
    kept = tuple(1 if k in axes else n for k, n in enumerate(shape))
    outs = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape)
    return pairs(outs, places(node.args[i].aval), sizes(node, i))


@rule(np.cumsum, np.cumprod, np.sort)
def along_axis(p: Patterns, node: Node, i: int) -> Matrix:
    """Anything along one axis."""
    aval = node.args[i].aval
    axis = dict(node.params).get("axis", -1 if node.op is REGISTRY[np.sort] else None)
    at = places(aval)
    lines = at.reshape(1, -1) if axis is None or not aval.shape else np.moveaxis(at, axis, -1)
    if lines.size != sizes(node, i)[0]:
        return anything(p, node, i)
    return pairs(lines[..., :, None], lines[..., None, :], sizes(node, i))


@rule(np.diff)
def difference(p: Patterns, node: Node, i: int) -> Matrix:
    """Neighbours along one axis."""
    params = dict(node.params)
    axis, order = params.get("axis", -1), params.get("n", 1)
    ins, outs = np.moveaxis(places(node.args[i].aval), axis, -1), np.moveaxis(places(node.aval), axis, -1)
    windows = np.lib.stride_tricks.sliding_window_view(ins, order + 1, -1) if outs.size else outs[..., None]
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


@rule(np.einsum)
def einsum(p: Patterns, node: Node, i: int) -> Matrix:
    """Elements whose letters agree."""
    subscripts = dict(node.params)["subscripts"].replace(" ", "")
    if "..." in subscripts or "->" not in subscripts:
        return anything(p, node, i)
    inputs, out = subscripts.split("->")
    mine = inputs.split(",")[i]
    letters = sorted({*mine, *out})
    length = dict(zip(mine + out, node.args[i].aval.shape + node.aval.shape, strict=True))
    grid = dict(zip(letters, np.ix_(*(np.arange(length[c]) for c in letters)), strict=True))
    outs, ins = (_number([grid[c] for c in word], [length[c] for c in word]) for word in (out, mine))
    return pairs(outs, ins, sizes(node, i))


def _number(index: Sequence[Any], shape: Sequence[int]) -> Any:
    number: Any = 0
    for k, n in zip(index, shape, strict=True):
        number = number * n + k
    return number
