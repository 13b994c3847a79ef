"""Calls of the registered operations, made from their samples, and numerical derivatives to compare with."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import settings

from symgrad import ops, pytree
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY, A, Composite, Op, Sample

Arrays = Sequence[Any]

# -- which operations, with which samples --------------------------------------------------------------------------

# operations that have no NumPy function of their own
_MATRIX, _LINE = A(3, 4), A(5)
_PART = index.Slice(1, None, 2)
_INDICES = [  # (x, spec, index arrays)
    (_MATRIX, (1,), ()),
    (_MATRIX, (-1, 2), ()),
    (_MATRIX, (index.EVERY, _PART), ()),
    (_MATRIX, (..., None, index.Slice(None, None, -1)), ()),
    (_LINE, (index.Hole(0),), (np.array([0, 3, 3, -1]),)),
    (_MATRIX, (index.Hole(0), index.Hole(1)), (np.array([[0], [2]]), np.array([1, 1, -1]))),
    (_MATRIX, (index.EVERY, index.Hole(0)), (np.array([2, 0]),)),
    (_LINE, (index.Hole(0),), (np.array([True, False, True, True, False]),)),
    (_MATRIX, (index.Hole(0), 1), (np.array([False, True, True]),)),
    (A(0), (index.EVERY,), ()),
]


def _taken(x: A, spec: index.Spec, arrays: Arrays) -> A:
    """An array of the shape of ``x[index]``."""
    return A(*np.empty(x.shape)[index.fill(spec, arrays)].shape)


ENGINE = {
    index.GETITEM: [Sample(x, *arrays, spec=spec) for x, spec, arrays in _INDICES],
    index.SCATTER: [Sample(_taken(x, s, arrays), *arrays, spec=s, shape=x.shape) for x, s, arrays in _INDICES],
    index.SETITEM: [Sample(x, _taken(x, spec, arrays), *arrays, spec=spec) for x, spec, arrays in _INDICES]
    + [Sample(_LINE, A(), spec=(_PART,)), Sample(_MATRIX, A(3, 1), spec=(index.EVERY, _PART))],
    index.INDEX_ADD: [Sample(x, _taken(x, spec, arrays), *arrays, spec=spec) for x, spec, arrays in _INDICES],
    create.FULL: [Sample(A(), shape=shape, dtype=np.dtype(float)) for shape in ((), (3,), (2, 0))],
}
PRIVATE = [op for part in ops.__all__ for op in vars(getattr(ops, part)).values() if isinstance(op, Op) and op.samples]
OPERATIONS: list[Op | Composite] = [op for op in REGISTRY.values() if isinstance(op, (Op, Composite))]
OPERATIONS += [op for op in (*ENGINE, *PRIVATE) if op not in OPERATIONS]
CONSTANT = [op for op in OPERATIONS if isinstance(op, Op) and op.family == "constant"]
DIFFERENTIABLE = [op for op in OPERATIONS if op not in CONSTANT]

_SHAPES: dict[int, Any] = {
    1: [[()], [(3,)], [(2, 3)], [(0,)], [(2, 1, 3)]],
    2: [[(), ()], [(3,), (3,)], [(2, 3), (3,)], [(1, 3), (2, 1)], [(), (2, 3)], [(2, 2), ()], [(1,), (0,)]],
}


def samples_of(op: Op | Composite) -> list[Sample]:
    """The samples of an operation; made from its domain for one that is elementwise and has none of its own."""
    if op.samples or op in ENGINE:
        return list(op.samples or ENGINE[op])
    if isinstance(op, Op) and op.family in ("elementwise", "constant"):
        n = len(op.rules) or _arity(op.key)
        domain = np.broadcast_to(op.domain, (n, 2)).tolist()
        kind = "int" if isinstance(op.key, np.ufunc) and not any("d" in types for types in op.key.types) else "float"
        if kind == "int":
            domain = [(0, 4)] * n
        draws = [
            [A(*shape, lo=lo, hi=hi, kind=kind) for shape, (lo, hi) in zip(shapes, domain, strict=True)]
            for shapes in _SHAPES[n]
        ]
        if n == 2 and kind == "float":  # Python numbers on either side
            (first, second), (a, b) = draws[1], [lo + 0.4 * (hi - lo) for lo, hi in domain]
            draws += [[first, b], [a, second]]
        return [Sample(*arrays) for arrays in draws]
    return []


def _arity(key: Any) -> int:
    if isinstance(key, np.ufunc):
        return key.nin
    return sum(p.default is p.empty for p in inspect.signature(key).parameters.values())


# -- one call ------------------------------------------------------------------------------------------------------


_attempts: dict[tuple[Any, ...], int] = {}  # which draw of a case was smooth: to find out takes longer than to draw


class Place(int):
    """Stands for primal number so-and-so in the arguments of a call."""


class Case:
    """One sample as a function of its floating-point arrays, the ``primals``: returns all results that are inexact.

    ``dtype``: one for all of them, or one each (repeated as needed). ``seed`` gives other values.
    """

    def __init__(self, op: Op | Composite, sample: Sample, dtype: Any = np.float64, seed: int = 0) -> None:
        self.op, self.sample = op, sample
        self.dtypes = [np.dtype(d) for d in (dtype if isinstance(dtype, tuple) else (dtype,))]
        self.run = op.key if REGISTRY.get(op.key) is op and _is_numpys(op.key) else op
        self.__name__ = "case"
        key = f"{op.name} {sample!r} {seed}"
        for attempt in range(_attempts.get((key, *self.dtypes), 0), 20):
            self.rng = np.random.default_rng(zlib.crc32(f"{key} {attempt}".encode()))
            self.primals: list[Any] = []
            self.kinds: list[str] = []
            self.args, self.kwargs = self._fill(sample.args), self._fill(sample.kwargs)
            if (key, *self.dtypes) in _attempts or self._is_smooth():
                _attempts[key, *self.dtypes] = attempt
                break
        self.rng = np.random.default_rng(zlib.crc32(key.encode()))
        self.primals = [x.astype(self._dtype(i)) for i, x in enumerate(self.primals)]
        self.outputs = self(*self.primals)

    def __repr__(self) -> str:
        return f"{self.op.name}{self.sample!r} of {', '.join(map(str, self.dtypes))}"

    def __call__(self, *primals: Any) -> list[Any]:
        return [leaf for leaf in pytree.flatten(self.call(*primals))[0] if np.result_type(leaf).kind in "fc"]

    def call(self, *primals: Any) -> Any:
        """What the function itself returns."""
        return self.run(*self._with(self.args, primals), **self._with(self.kwargs, primals))

    def _fill(self, tree: Any) -> Any:
        """The arguments with places for the primals, which are drawn on the way."""
        if isinstance(tree, A):
            constant = isinstance(self.op, Op) and self.op.family == "constant"
            if tree.kind == "bool" or (tree.kind == "int" and not constant):
                return draw(tree, np.dtype(float), self.rng)
            wide = np.result_type(self._dtype(len(self.primals)), np.float64)
            self.primals.append(np.asarray(draw(tree, wide, self.rng), wide))
            self.kinds.append(tree.kind)
            return Place(len(self.primals) - 1)
        if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
            return type(tree)([self._fill(item) for item in tree])
        return {k: self._fill(v) for k, v in tree.items()} if isinstance(tree, dict) else tree

    def _with(self, tree: Any, primals: Arrays) -> Any:
        if isinstance(tree, Place):
            return primals[tree].astype(int) if self.kinds[tree] == "int" else primals[tree]
        if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
            return type(tree)([self._with(item, primals) for item in tree])
        return {k: self._with(v, primals) for k, v in tree.items()} if isinstance(tree, dict) else tree

    def _dtype(self, i: int) -> np.dtype[Any]:
        return self.dtypes[i % len(self.dtypes)]

    def _is_smooth(self) -> bool:
        """Whether no kink or pole is so near that finite differences would meet it: those of twice the step agree."""
        for direction in (self.tangents(), self.tangents(), self.tangents()):
            steps = [central(self, self.primals, direction, 2e-3 / 2**i) for i in range(4)]
            near, far = extrapolated(*steps[1:]), extrapolated(*steps[:3])
            if not all(np.allclose(x, y, 1e-5, 1e-6, equal_nan=True) for x, y in zip(near, far, strict=True)):
                return False
        return True

    def like(self, arrays: Arrays) -> list[Any]:
        """Random arrays, numbers for numbers, shaped as these and of their dtypes."""
        return [_noise(np.shape(x), np.result_type(x), self.rng)[()] for x in arrays]

    def tangents(self) -> list[Any]:
        """A random direction for the primals, within the symmetric matrices for those that are."""
        return self.symmetric([np.asarray(t) for t in self.like(self.primals)])

    def symmetric(self, arrays: Arrays) -> list[Any]:
        """The symmetric (Hermitian) part of what belongs to symmetric primals: all that differences can see."""
        return [
            ((x + np.conj(np.swapaxes(x, -1, -2))) / 2).astype(x.dtype) if kind == "spd" else x
            for x, kind in zip(arrays, self.kinds, strict=True)
        ]


def _is_numpys(key: Any) -> bool:
    return isinstance(key, np.ufunc) or (getattr(key, "__module__", None) or "").partition(".")[0] == "numpy"


def cases(op: Op | Composite, dtype: Any = np.float64) -> list[Case]:
    """A case for each sample; for several draws of each in a deep run."""
    return [Case(op, sample, dtype, seed) for sample in samples_of(op) for seed in range(10 if deep() else 1)]


def some_of(op: Op | Composite, dtype: Any = np.float64) -> list[Sample]:
    """A third of the samples, another one for each operation and dtype; all of them in a deep run.

    For tests that cross what has tests on all samples.
    """
    start, samples = zlib.crc32(f"{op.name} {np.dtype(dtype)}".encode()) % 3, samples_of(op)
    return samples if deep() else samples[start::3] or samples[:1]


def some(op: Op | Composite, dtype: Any = np.float64) -> list[Case]:
    """A case for some of the samples, in a deep run as ``cases`` are."""
    return cases(op, dtype) if deep() else [Case(op, sample, dtype) for sample in some_of(op, dtype)]


def deep() -> bool:
    """Whether this run takes its time: ``pytest --hypothesis-profile=deep``."""
    return settings().max_examples > 1000


def draw(a: A, dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
    """The random array that a sample asks for."""
    if a.kind == "bool":
        return rng.random(a.shape) < 0.5
    if a.kind == "int":
        return rng.integers(int(a.lo), int(a.hi), a.shape, endpoint=True)
    if a.kind == "distinct":
        n = int(np.prod(a.shape))
        steps = (rng.permutation(n) + rng.uniform(0.3, 0.7, n)) / max(n, 1)
        x = (a.lo + (a.hi - a.lo) * steps).reshape(a.shape)
    else:
        x = rng.uniform(a.lo, a.hi, a.shape)
    if dtype.kind == "c":  # never real ones: complex differences would part what is conjugate, and LAPACK's order with it
        x = x + 1j * rng.uniform(-0.6, 0.6, a.shape)
    if a.kind == "spd":
        return x @ np.conj(np.swapaxes(x, -1, -2)) / 4 + np.diag(np.arange(1.0, a.shape[-1] + 1))
    if a.kind == "well":
        return x / 4 + np.diag(np.arange(1.0, a.shape[-1] + 1))
    return x


def _noise(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
    x = rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
    return np.asarray(x + 1j * rng.uniform(-1, 1, shape) if dtype.kind == "c" else x, dtype)


# -- numerical derivatives -----------------------------------------------------------------------------------------


def dot(a: Arrays, b: Arrays) -> Any:
    """The real inner product of two lists of arrays, plain or traced."""
    total: Any = 0.0
    for x, y in zip(a, b, strict=True):
        complex_ = np.iscomplexobj(x) or np.iscomplexobj(y)
        total = total + np.sum(np.real(np.conj(x) * y) if complex_ else x * y)
    return total


def central(fun: Callable[..., Arrays], primals: Arrays, direction: Arrays, step: float) -> list[Any]:
    """The central difference of all results in a direction."""
    ends = [fun(*[x + s * step * t for x, t in zip(primals, direction, strict=True)]) for s in (1, -1)]
    return [(np.asarray(up) - np.asarray(down)) / (2 * step) for up, down in zip(*ends, strict=True)]


def along(fun: Callable[..., Arrays], primals: Arrays, direction: Arrays, step: float = 1e-3) -> list[Any]:
    """The derivative of all results in a direction: central differences at three steps, extrapolated (Richardson)."""
    return extrapolated(*[central(fun, primals, direction, h) for h in (step, step / 2, step / 4)])


def extrapolated(coarse: Arrays, middle: Arrays, fine: Arrays) -> list[Any]:
    """What central differences at a step, half of it and a quarter of it tend to."""
    return [(x - 20 * y + 64 * z) / 45 for x, y, z in zip(coarse, middle, fine, strict=True)]


def gradient(case: Case, weights: Arrays) -> list[Any]:
    """The gradient of ``dot(weights, case)``, element by element: d/dre + i d/dim."""
    found = []
    for i, x in enumerate(case.primals):
        g = np.zeros_like(x)
        for place in np.ndindex(x.shape):
            for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
                direction = [np.zeros_like(p) for p in case.primals]
                direction[i][place] = unit
                changes = along(case, case.primals, case.symmetric(direction))
                g[place] += unit * dot(weights, changes)
        found.append(g)
    return found


# -- comparing -----------------------------------------------------------------------------------------------------


def close(actual: Arrays, expected: Arrays, rtol: float, what: str) -> None:
    """Assert that two lists of arrays agree, to ``rtol`` of each element or of a tenth of the largest one."""
    assert len(actual) == len(expected), what
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        assert np.shape(a) == np.shape(e), f"{what}, number {i}: shape {np.shape(a)} is not {np.shape(e)}"
        size = np.max(np.abs(e), initial=0.0)
        np.testing.assert_allclose(a, e, rtol, 0.1 * rtol * max(size, 0.1), err_msg=f"{what}, number {i}")
