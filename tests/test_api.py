"""The public functions as a caller sees them: trees, argnums, kinds of results, caches, threads, pickles."""

import copy
import functools
import heapq
import math
import operator
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections import OrderedDict, defaultdict, deque, namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import symgrad
from symgrad import (
    elementwise_grad,
    export,
    grad,
    graph,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from symgrad.compile import Family
from symgrad.errors import NotDifferentiable, NotExportable
from symgrad.program import Diverged, Program
from symgrad.pytree import flatten

V = np.array([0.31, -1.23, 0.74, 2.17])
M = np.arange(6.0).reshape(2, 3) / 3 - 0.8
KINDS = [grad, value_and_grad, elementwise_grad, jacobian, jacrev, jacfwd, hessian]
CALLS = range(4)  # two are traced, the others run generated code


def same(a: Any, b: Any) -> bool:
    """Whether two trees are alike: structure, kinds, shapes, dtypes and values."""
    (xs, one), (ys, other) = flatten(a), flatten(b)
    return one == other and all(
        type(x) is type(y) and np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-12) for x, y in zip(xs, ys, strict=True)
    )


def always(derivative, expected, *args, **kwargs):
    """Assert that every call, traced and compiled, gives this result."""
    for number in CALLS:
        result = derivative(*args, **kwargs)
        assert same(result, expected), (number, result, expected)


# -- trees ---------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    a: Any
    b: Any


Loose = namedtuple("Loose", "x y")


@dataclass
class Layer:
    w: Any
    b: Any
    name: str = "layer"
    more: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Frozen:
    w: Any


def total(tree):
    """The sum of squares of all numbers in a tree."""
    return sum(np.sum(leaf * leaf) for leaf in flatten(tree)[0] if not isinstance(leaf, str))


def double(tree):
    leaves, treedef = flatten(tree)
    return treedef.unflatten([np.array(2 * leaf) if isinstance(leaf, np.ndarray) else 2 * leaf for leaf in leaves])


TREES = {
    "tuple": (1.0, V),
    "list": [V, 2.0, M],
    "dict": {"w": M, "b": V},
    "other keys": {1: 2.0, ("a", 2): V, None: 3.0},
    "nested": {"layers": [(M, V), (M * 2, V * 2)], "scale": 3.0},
    "namedtuple": Pair(V, 2.0),
    "loose namedtuple": Loose(V, Pair(1.0, M)),
    "frozen dataclass": Frozen(V),
    "None": (V, None, {"a": None}),
    "empty": (V, (), [], {}),
    "only empty": (),
    "ordered dict": OrderedDict(b=V, a=2.0),
    "one leaf": V,
    "number": 3.0,
    "kinds": [1.5, np.float32(2.5), np.float64(0.5), np.array(0.25), np.float32([1.0, 2.0])],
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_trees_in(tree):
    always(grad(total), double(tree), tree)
    always(value_and_grad(total), (total(tree), double(tree)), tree)


def test_dataclass_with_static_fields_in_aux():
    layer = Layer(V, 2.0, more={"k": M})
    derivative = grad(lambda layer: total((layer.w, layer.b, layer.more)) if layer.name else 0.0)
    with pytest.raises(symgrad.errors.NotDifferentiable, match=r"layer\.name is str"):
        derivative(layer)
    always(grad(lambda w, layer: np.sum(w * layer.w) * len(layer.name)), 5 * V, V, layer)
    always(grad(lambda w, layer: np.sum(w * layer.w) * len(layer.name)), 3 * V, V, Layer(V, 0.0, "abc"))


def test_defaultdicts_and_user_dicts_are_trees():
    tree = {"a": V, "b": 2.0}
    always(grad(lambda d: total(dict(d))), double(tree), tree)

    class Own(dict):
        pass

    assert type(grad(total)(Own(a=V))) is Own
    with pytest.raises((TypeError, symgrad.errors.SymgradError)):
        grad(total)(defaultdict(list, a=V))


def test_trees_out():
    """Outputs of vjp, jvp, jacobian and aux keep their trees."""

    def fun(x):
        return {"a": (x * 2, Pair(np.sum(x), None)), "b": [3.0, x]}

    out, pullback = vjp(fun, V)
    assert same(out, fun(V))
    ones = {"a": (np.ones(4), Pair(1.0, None)), "b": [1.0, np.ones(4)]}
    assert same(pullback(ones), (np.full(4, 4.0),))
    out, tangent = jvp(fun, (V,), (np.ones(4),))
    assert same(tangent, {"a": (np.full(4, 2.0), Pair(np.float64(4.0), None)), "b": [0.0, np.ones(4)]})
    eye = np.eye(4)
    always(jacobian(fun), {"a": (2 * eye, Pair(np.ones(4), None)), "b": [np.zeros(4), eye]}, V)


def test_jacobians_of_trees():
    def fun(p):
        return {"y": p["w"] @ p["v"], "s": np.sum(p["v"])}

    p = {"w": M, "v": V[:3]}
    expected = {
        "y": {"w": np.einsum("ik,j->ikj", np.eye(2), V[:3]), "v": M},
        "s": {"w": np.zeros((2, 3)), "v": np.ones(3)},
    }
    for kind in (jacobian, jacrev, jacfwd):
        always(kind(fun), expected, p)


# -- which arguments -----------------------------------------------------------------------------------------------


def product(x, y, z=2.0, *rest, scale=1.0, **more):
    return np.sum(x * y**2 * z**3 * scale**4) + sum(r * r for r in rest) + sum(v * v for v in more.values())


ARGNUMS = [
    (0, (2.0, 3.0), {}, 72.0),
    (1, (2.0, 3.0), {}, 96.0),
    (2, (2.0, 3.0), {}, 216.0),
    (2, (2.0, 3.0, 1.0), {}, 54.0),
    (-1, (2.0, 3.0), {}, 96.0),
    (-2, (2.0, 3.0), {}, 72.0),
    ("x", (2.0, 3.0), {}, 72.0),
    ("y", (2.0,), {"y": 3.0}, 96.0),
    ("z", (2.0, 3.0), {}, 216.0),
    ("z", (2.0, 3.0), {"z": 1.0}, 54.0),
    (2, (2.0, 3.0), {"z": 1.0}, 54.0),
    (1, (2.0,), {"y": 3.0}, 96.0),
    ("scale", (2.0, 3.0), {}, 576.0),
    ("scale", (2.0, 3.0), {"scale": 2.0}, 4608.0),
    ("extra", (2.0, 3.0), {"extra": 5.0}, 10.0),
    (3, (2.0, 3.0, 1.0, 7.0), {}, 14.0),
    (-1, (2.0, 3.0, 1.0, 7.0), {}, 14.0),
    ((0, 1), (2.0, 3.0), {}, (72.0, 96.0)),
    ((1, 0), (2.0, 3.0), {}, (96.0, 72.0)),
    ((0,), (2.0, 3.0), {}, (72.0,)),
    (("x", "scale"), (2.0, 3.0), {}, (72.0, 576.0)),
    ((0, "z", -1), (2.0, 3.0), {}, (72.0, 216.0, 96.0)),
    ([0, 1], (2.0, 3.0), {}, (72.0, 96.0)),
    ((), (2.0, 3.0), {}, ()),
    (np.int64(1), (2.0, 3.0), {}, 96.0),
    ((np.uint8(1), "x"), (2.0, 3.0), {}, (96.0, 72.0)),
]


@pytest.mark.parametrize(("argnums", "args", "kwargs", "expected"), ARGNUMS)
def test_argnums(argnums, args, kwargs, expected):
    always(grad(product, argnums=argnums), expected, *args, **kwargs)
    always(grad(product, argnums=argnums, mode="dynamic"), expected, *args, **kwargs)


def test_calls_of_every_form():
    """Positional, by keyword, in any order: one derivative serves them all."""
    derivative = grad(product, argnums=("x", "y"))
    for _ in range(2):
        always(derivative, (72.0, 96.0), 2.0, 3.0)
        always(derivative, (72.0, 96.0), 2.0, y=3.0)
        always(derivative, (72.0, 96.0), y=3.0, x=2.0)
        always(derivative, (9.0, 12.0), 2.0, 3.0, 1.0)
        always(derivative, (9.0, 12.0), z=1.0, y=3.0, x=2.0)

    def only(a, /, b, *, c=3.0):
        return a * b * c

    always(grad(only, argnums=("b", "c")), (6.0, 4.0), 2.0, 2.0)
    always(grad(only, argnums=(0, "b")), (6.0, 6.0), 2.0, b=2.0)
    with pytest.raises(TypeError):
        grad(only)(a=1.0, b=2.0)


def test_arrays_in_files(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3.0))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    derivative = grad(lambda w, data: np.sum(w * data["x"] ** 2))
    for _ in range(4):
        np.testing.assert_array_equal(derivative(np.ones(3), {"x": x}), [0, 1, 4])
    assert derivative.cache_info()[:2] == (2, 2)
    assert derivative.source(np.ones(3), {"x": x}) == derivative.source(np.ones(3), {"x": np.arange(3.0)})
    for value in (grad(np.sum)(x), jvp(np.sin, (x,), (x,))[1], vjp(np.sin, x)[1](x)[0], vmap(np.sin)(x)):
        assert type(value) is np.ndarray
    np.testing.assert_array_equal(grad(lambda w: np.sum(grad(np.sum)(x) * w))(x), np.ones(3))


def test_static_arguments():
    """Strings, bools, None, functions are part of the signature; numbers are not."""

    def fun(x, power=2, name="a", flag=False, f=None):
        y = x**power * {"a": 1.0, "b": 2.0}[name]
        return f(y) if f is not None else -y if flag else y

    derivative = grad(fun)
    for _ in range(3):
        assert derivative(3.0) == 6.0
        assert derivative(3.0, 3) == 27.0
        assert derivative(3.0, name="b") == 12.0
        assert derivative(3.0, flag=True) == -6.0
        assert derivative(3.0, f=np.sin) == 6.0 * np.cos(9.0)
        assert derivative(3.0, f=lambda y: y * y) == 108.0


# -- has_aux, holomorphic ------------------------------------------------------------------------------------------


def test_has_aux():
    def fun(x):
        return np.sum(x * x), {"max": np.max(x), "n": len(x), "name": "fun", "none": None}

    aux = {"max": np.max(V), "n": 4, "name": "fun", "none": None}
    for number in CALLS:
        g, got = grad(fun, has_aux=True)(V)
        assert np.allclose(g, 2 * V)
        assert got == aux, number
    derivative = grad(fun, has_aux=True)
    for _ in CALLS:
        g, got = derivative(V)
        assert got == aux
    (value, got), g = value_and_grad(fun, has_aux=True)(V)
    assert (value, got) == (np.sum(V * V), aux)
    j, got = jacobian(lambda x: (x * 2, "aux"), has_aux=True)(V)
    assert np.allclose(j, 2 * np.eye(4))
    assert got == "aux"
    _, pullback, got = vjp(lambda x: (x * 2, "aux"), V, has_aux=True)
    assert got == "aux"
    assert np.allclose(pullback(V)[0], 2 * V)
    _, tangent, got = jvp(lambda x: (x * 2, x[0]), (V,), (V,), has_aux=True)
    assert type(got) is np.float64
    assert np.allclose(tangent, 2 * V)


def test_holomorphic():
    z = 0.3 + 0.7j
    always(grad(lambda z: z**3 + np.exp(z), holomorphic=True), 3 * z**2 + complex(np.exp(z)), z)
    array = np.array([z, 2 * z])
    always(jacobian(np.square, holomorphic=True), np.diag(2 * array), array)
    always(grad(lambda z: np.sum(z * z), holomorphic=True), 2 * array, array)


# -- kinds of functions --------------------------------------------------------------------------------------------


class Model:
    scale = 3.0

    def __init__(self, bias):
        self.bias = bias

    def loss(self, x):
        """The loss."""
        return np.sum(x * x) * self.scale + self.bias

    @grad
    def decorated(self, x, y=1.0):
        """Decorated."""
        return np.sum(x * x) * self.scale * y

    @grad(argnums=(0, "y"))
    def by_name(self, x, y):
        return np.sum(x) * y

    @staticmethod
    @grad
    def static(x):
        return x * x

    @classmethod
    def made(cls, x):
        return x * x * cls.scale

    def __call__(self, x):
        return x * x * self.bias


def test_methods():
    model = Model(5.0)
    always(grad(model.loss), 6 * V, V)
    always(model.decorated, 6 * V, V)
    always(model.decorated, 12 * V, V, 2.0)
    always(Model(7.0).decorated, 12 * V, V, y=2.0)
    always(model.by_name, (np.full(4, 2.0), np.float64(np.sum(V))), V, np.float64(2.0))
    always(Model.static, 6.0, 3.0)
    always(model.static, 6.0, 3.0)
    always(grad(Model.made), 18.0, 3.0)
    always(grad(Model(5.0)), 30.0, 3.0)
    always(grad(Model.loss, argnums=1), 6 * V, model, V)
    assert model.decorated.__name__ == "decorated"
    assert model.decorated.__doc__ == "Decorated."
    assert "x" in model.decorated.source(V)
    assert model.decorated.cache_info().currsize >= 1
    assert model.decorated.__self__ is model
    model.decorated.cache_clear()
    assert len(model.decorated.graph(V)) > 1


def test_instances_do_not_mix():
    a, b = Model(1.0), Model(1.0)
    b.scale = 10.0
    for _ in CALLS:
        assert np.allclose(a.decorated(V), 6 * V)
        assert np.allclose(b.decorated(V), 20 * V)
    a.scale = 1.0
    assert np.allclose(a.decorated(V), 2 * V)


def test_callables():
    always(grad(np.sin), math.cos(0.5), 0.5)
    always(grad(np.sum), np.ones(4), V)
    always(grad(np.linalg.norm), V / np.linalg.norm(V), V)
    always(elementwise_grad(np.tanh), 1 - np.tanh(V) ** 2, V)
    always(grad(operator.mul, argnums=(0, 1)), (3.0, 2.0), 2.0, 3.0)
    always(grad(np.add.reduce), np.ones(4), V)
    always(grad(functools.partial(product, y=3.0)), 72.0, 2.0)
    always(grad(functools.partial(product, 2.0)), 96.0, 3.0)
    always(grad(functools.partial(operator.pow, 2.0)), 8 * math.log(2), 3.0)
    always(grad(lambda x: x * x), 6.0, 3.0)
    always(grad(lambda *xs: xs[0] * xs[1], argnums=1), 2.0, 2.0, 3.0)
    always(grad(lambda **kw: kw["a"] * kw["b"], argnums="b"), 2.0, a=2.0, b=3.0)
    always(grad(functools.lru_cache(lambda: None).__wrapped__ and abs), -1.0, -2.0)
    always(grad(grad(grad(lambda x: x**4))), 24.0 * 3, 3.0)
    assert "lambda" in repr(grad(lambda x: x))
    assert repr(grad(np.sin)) == "<grad of sin>"
    assert repr(jacobian(product)) == "<jacobian of product>"


def test_decorators():
    @grad
    def one(x):
        """Doc."""
        return x * x

    @value_and_grad(argnums=1)
    def two(x, y):
        return x * y

    @jacobian
    def three(x):
        return x * x

    always(one, 6.0, 3.0)
    always(two, (6.0, 2.0), 2.0, 3.0)
    always(three, np.diag(2 * V), V)
    assert one.__name__ == "one"
    assert one.__doc__ == "Doc."
    assert one.__qualname__.endswith("one")
    assert one.__module__ == __name__
    assert one.__wrapped__(3.0) == 9.0
    for kind in KINDS:
        made = kind(product)
        assert made.__name__ == "product"
        assert made.__wrapped__ is product


# -- kinds of results ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [3.0, 3, np.float32(3), np.float64(3), np.float16(3), np.longdouble(3), np.array(3.0), np.float32([3.0]), V, 1 + 2j,
     np.complex64(1j), np.array(1 + 2j), np.zeros((0, 3)), np.asfortranarray(M), M[:, ::2], M.T],
    ids=repr,
)  # fmt: skip
def test_kinds_of_results(x):
    """A gradient is of its argument's kind: Python number, NumPy scalar or array, shape, dtype; C-contiguous, writable."""
    derivative = value_and_grad(lambda x: np.sum(np.abs(x * x)))
    for _ in CALLS:
        value, g = derivative(x)
        assert np.allclose(g, np.multiply(2, x), rtol=1e-3)
        if isinstance(x, np.ndarray):
            assert type(g) is np.ndarray
            assert (g.shape, g.dtype) == (x.shape, x.dtype)
            assert g.flags.c_contiguous
            assert g.flags.writeable
            assert g.flags.owndata or g.base is not x
        else:
            assert type(g) is (float if type(x) is int else type(x))
        assert np.ndim(value) == 0
        assert not isinstance(value, np.ndarray) or value.dtype == abs(x).dtype


def fresh(results, args):
    leaves = [leaf for leaf in flatten(results)[0] if isinstance(leaf, np.ndarray)]
    for i, leaf in enumerate(leaves):
        assert leaf.flags.writeable
        assert leaf.flags.c_contiguous
        others = [*leaves[:i], *[a for a in flatten(args)[0] if isinstance(a, np.ndarray)]]
        assert not any(np.may_share_memory(leaf, other) for other in others)


def test_results_are_fresh():
    """No result shares memory with another, with an argument, or with a constant; filling one spoils no later call."""
    captured = np.ones(4)
    funs = [
        lambda x, y: np.sum(x * y),
        lambda x, y: np.sum(x + y),
        lambda x, y: np.sum(x * captured) + np.sum(y.T * captured),
        lambda x, y: 0.0,
        lambda x, y: np.sum(x[::-1]) + np.sum(y),
    ]
    for mode in ("auto", "dynamic"):
        for fun in funs:
            for made in (kind(fun, (0, 1), mode=mode) for kind in (grad, value_and_grad, jacobian)):
                first = copy.deepcopy(made(V, V))
                for _ in CALLS:
                    result = made(V, V)
                    fresh(result, (V, captured))
                    assert same(result, first)
                    for leaf in flatten(result)[0]:
                        if isinstance(leaf, np.ndarray):
                            leaf.fill(np.nan)
    aux = grad(lambda x: (np.sum(x), [x, x.T, x[1:], x * 1, captured]), has_aux=True)
    for _ in CALLS:
        result = aux(V)
        fresh(result, (V, captured))
        result[1][0].fill(np.nan)
    out, pullback = vjp(lambda x: x, V)
    g = pullback(captured)
    fresh((out, g), (V, captured))
    out, tangent = jvp(lambda x: x, (V,), (captured,))
    fresh((out, tangent), (V, captured))


def test_unused_and_independent():
    always(grad(lambda x, y: np.sum(x), argnums=(0, 1)), (np.ones(4), np.zeros((2, 3))), V, M)
    always(grad(lambda x, y: x, argnums=1), 0.0, 1.0, 2.0)
    always(grad(lambda x: 3.0), np.zeros(4), V)
    always(grad(lambda x: np.array(3.0)), 0.0, 1.0)
    always(grad(lambda x: np.argmax(x) * 1.0), np.zeros(4), V)
    always(grad(lambda x: np.sum(np.floor(x))), np.zeros(4), V)
    always(value_and_grad(lambda x: 3), (3, np.float32(0)), np.float32(1))
    always(jacobian(lambda x: np.ones(2)), np.zeros((2, 4)), V)
    always(jacfwd(lambda x: np.ones(2)), np.zeros((2, 4)), V)
    always(hessian(lambda x: np.sum(x)), np.zeros((4, 4)), V)
    always(hvp(lambda x: np.sum(x)), np.zeros(4), V, V)
    for constant in (3.0, 3j, np.float64(3), np.complex64(3), np.float32(3), np.ones(2, np.float32)):
        assert same(jvp(lambda x: constant, (V,), (V,)), (constant, constant * 0))  # noqa: B023 (called at once)
    assert same(vjp(lambda x: 3.0, V)[1](1.0), (np.zeros(4),))
    assert same(vjp(lambda x: np.ones(2), V)[1](np.ones(2)), (np.zeros(4),))


# -- Jacobians and Hessians ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.7, np.float64(0.7), np.array(0.7), V, M, np.zeros((0,))], ids=lambda x: str(np.shape(x)))
def test_shapes_of_jacobians(x):
    """``output.shape + argument.shape``; a number from and to numbers."""
    funs = {(): np.sum, np.shape(x): np.sin, (2, *np.shape(x)): lambda x: np.stack([np.sin(x), x * x])}
    for shape, fun in funs.items():
        for kind in (jacobian, jacrev, jacfwd):
            derivative = kind(fun)
            for _ in CALLS:
                result = derivative(x)
                assert np.shape(result) == shape + np.shape(x)
                assert np.allclose(result, numeric(fun, x))
    derivative = hessian(lambda x: np.sum(np.sin(x) * x))
    for _ in CALLS:
        result = derivative(x)
        assert np.shape(result) == np.shape(x) * 2
        diagonal = np.diag(np.ravel(2 * np.cos(x) - x * np.sin(x))).reshape(np.shape(x) * 2)
        assert np.allclose(result, diagonal)
        v = np.cos(np.arange(np.size(x)).reshape(np.shape(x))) if np.ndim(x) else 0.3
        product = hvp(lambda x: np.sum(np.sin(x) * x))(x, v)
        assert np.allclose(product, np.tensordot(diagonal, v, np.ndim(x)))
        assert np.shape(product) == np.shape(x)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_shapes_of_jacobians_by_nothing_that_is_not_used(shape, mode):
    x = np.zeros(shape)
    for kind in (jacobian, jacrev, jacfwd):
        derivative = kind(lambda x, y: (np.sin(y), np.sum(x) * y), (0, 1), mode=mode)
        for _ in CALLS:
            assert [[np.shape(part) for part in row] for row in derivative(x, V)] == [[V.shape + shape, V.shape * 2]] * 2
    derivative = hessian(lambda x: np.sum(2.0 * x), mode=mode)
    assert [np.shape(derivative(x)) for _ in CALLS] == [shape * 2] * len(CALLS)


def numeric(fun, x, step=1e-6):
    x = np.asarray(x, dtype=float)
    columns = np.zeros((*np.shape(fun(x)), *x.shape))
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        columns[(..., *place)] = (fun(up) - fun(down)) / (2 * step)
    return columns


def test_hessian_of_trees():
    def fun(p):
        return np.sum(p["a"] ** 2 * p["b"]) + p["b"] ** 3

    p = {"a": V, "b": 2.0}
    expected = {"a": {"a": np.diag(np.full(4, 4.0)), "b": 2 * V}, "b": {"a": 2 * V, "b": 12.0}}
    for _ in CALLS:
        result = hessian(fun)(p)
        for i in "ab":
            for j in "ab":
                assert np.allclose(result[i][j], expected[i][j])
    product = hvp(fun)(p, {"a": np.ones(4), "b": 1.0})
    assert np.allclose(product["a"], 4.0 + 2 * V)
    assert np.allclose(product["b"], np.sum(2 * V) + 12)


def test_hvp_of_functions_whose_own_arguments_are_named_v():
    always(hvp(lambda v: np.sum(v**3)), 6 * V * V, V, V)
    always(hvp(lambda x, v: np.sum(x**3) * v), 6 * V * V * 2.0, V, V, 2.0)


def test_hvp_passes_further_arguments():
    always(hvp(lambda x, y, scale=1.0: np.sum(x**3) * y * scale), 6 * V * V * 10.0, V, V, 5.0, scale=2.0)


# -- one pass at a time --------------------------------------------------------------------------------------------


def test_slopes_of_pythons_floats_stay_pythons_beside_numbers_of_numpys():
    derivative = grad(lambda x: np.true_divide(1, x))
    assert [type(derivative(0.5)) for _ in range(3)] == [float] * 3


def test_vjp_jvp_linearize():
    fun = lambda x, y: (x * y, np.sum(x))
    out, pullback = vjp(fun, V, 2.0)
    assert same(out, (V * 2, np.sum(V)))
    for scale in (1.0, 2.0):
        g = pullback((V * scale, np.float64(scale)))
        assert np.allclose(g[0], 2 * V * scale + scale)
        assert np.allclose(g[1], np.sum(V * V) * scale)
        assert type(g[1]) is float
    assert same(jvp(fun, (V, 2.0), (V, 1.0)), ((V * 2, np.sum(V)), (V * 3, np.sum(V))))
    out, push = linearize(fun, V, 2.0)
    assert same(out, (V * 2, np.sum(V)))
    for scale in (1.0, 2.0):
        assert same(push(V * scale, scale), (V * 3 * scale, np.float64(np.sum(V) * scale)))
    assert same(vjp(lambda: 3.0)[0], 3.0)
    assert vjp(lambda: 3.0)[1](1.0) == ()


def test_passes_nest():
    """In a function that is being differentiated, vjp and jvp are part of it."""

    def inner(x):
        _, pullback = vjp(lambda y: y**3, x)
        return np.sum(pullback(np.ones(4))[0])

    always(grad(inner), 6 * V, V)
    always(grad(lambda x: jvp(lambda y: y**3, (x,), (x,))[1]), 9 * 4.0, 2.0)
    always(grad(lambda x: linearize(lambda y: y**3, x)[1](x)), 36.0, 2.0)
    always(grad(lambda x: grad(lambda y: x * y**2)(3.0)), 6.0, 2.0)
    always(grad(lambda x: x * grad(lambda y: x + y)(1.0)), 1.0, 2.0)  # no perturbation confusion
    always(jacobian(grad(lambda x: np.sum(x**3))), np.diag(6 * V), V)
    assert np.allclose(vjp(grad(lambda x: np.sum(x**3)), V)[1](np.ones(4))[0], 6 * V)
    assert np.allclose(jvp(grad(lambda x: np.sum(x**3)), (V,), (np.ones(4),))[1], 6 * V)


@pytest.mark.parametrize("n", [1, 200])
def test_few_numbers_are_moved_one_by_one(n):
    """The zeros of unit vectors are no part of the code, where all that is done with an array is to read its numbers."""
    t = np.linspace(0.0, 3.0, n)

    def decays(p):
        a, k, _, d = p
        return a * np.exp(-k * t) + p[-1] * d

    def misfit(p):
        return np.sum(decays(p) ** 3)

    p = np.array([1.5, 0.7, 2.0, -0.3])
    e = np.exp(-p[1] * t)
    always(jacobian(decays), np.stack([e, -p[0] * t * e, 0 * t, 0 * t + 2 * p[3]], axis=-1), p)
    slope = grad(misfit)
    central = np.stack([(slope(p + h) - slope(p - h)) / 2e-5 for h in 1e-5 * np.eye(4)])
    for _ in range(3):
        np.testing.assert_allclose(hessian(misfit)(p), central, rtol=1e-6, atol=1e-6)
    if n > 1:
        assert "eye" not in jacobian(decays).source(p)
        assert "eye" not in hessian(misfit).source(p)
        np.testing.assert_allclose(vmap(hessian(misfit))(np.stack([p, p + 1.0]))[0], central, rtol=1e-6, atol=1e-6)


def test_stop_gradient():
    always(grad(lambda x: x * stop_gradient(x)), 3.0, 3.0)
    always(grad(lambda x: np.sum(x * stop_gradient({"a": x, "b": (x, 2.0)})["b"][0])), V, V)
    assert stop_gradient(3.0) == 3.0
    numbers = grad(lambda x: x[0] * np.sum(stop_gradient(np.array([*x], dtype=object))))
    np.testing.assert_allclose(numbers(V), [np.sum(V), 0.0, 0.0, 0.0])
    for hidden in (
        lambda x: SimpleNamespace(x=x),
        lambda x: deque([x]),
        lambda x: defaultdict(list, x=x),
        lambda x: {0: x}.values(),
        iter,
    ):
        with pytest.raises(TypeError, match="stop what is in the"):
            grad(lambda x, hidden=hidden: np.sum(x) if stop_gradient(hidden(x)) else 0.0)(V)
    always(grad(grad(lambda x: stop_gradient(x) ** 2 * x)), 0.0, 3.0)


# -- calls, caches -------------------------------------------------------------------------------------------------


def test_how_often_the_function_runs():
    """Once in each traced call, never in a compiled one."""
    runs = 0

    class Counter:
        def __get__(self, instance, owner):
            nonlocal runs
            runs += 1
            return 1.0

    def fun(x):
        counted(x)
        return np.sum(x * x)

    def counted(x):
        nonlocal runs
        runs += 1

    derivative = grad(fun, mode="dynamic")
    for number in range(1, 5):
        derivative(V)
        assert runs == number
    trap = pytest.raises(RuntimeError)
    allowed = [True]

    def guarded(x):
        if not allowed[0]:
            raise RuntimeError("ran")
        return np.sum(x * x)

    derivative = grad(guarded)
    for _ in CALLS:
        assert np.allclose(derivative(V), 2 * V)
    allowed[0] = False
    with trap:  # what it read from outside has changed
        derivative(V)


def test_caches():
    derivative = grad(lambda x: np.sum(x * x))
    assert derivative.cache_info()[:2] == (0, 0)
    assert derivative.cache_info().currsize == 0
    for number in range(1, 6):
        derivative(V)
        info = derivative.cache_info()
        assert info.hits + info.misses == number
        assert info.misses <= 2
        assert info.currsize == 1
    derivative(M)
    derivative(3.0)
    derivative(np.float32(3))
    info = derivative.cache_info()
    assert info.currsize == 4
    assert info.misses <= 5
    assert info.maxsize >= 16
    derivative.cache_clear()
    assert derivative.cache_info()[:2] == (0, 0)
    assert derivative.cache_info().currsize == 0
    assert np.allclose(derivative(V), 2 * V)
    for n in range(1, 200):
        assert np.allclose(derivative(np.ones(n)), 2.0)
    assert derivative.cache_info().currsize <= info.maxsize


def test_shapes_that_never_come_again():
    """Code is made for the first ones alone, and for another one once its calls have taken as long as that does."""
    derivative = grad(lambda x: np.sum(np.sin(x) * np.tanh(x) + np.exp(-(x**2)) * x))
    for n in range(1, 100):
        derivative(np.ones(n))
    assert sum([bool(family.variants) for family in derivative._compiler.known.values()]) < 12
    for _ in range(300):
        derivative(np.ones(99))
    assert derivative.cache_info().hits > 200


def test_looking_inside():
    derivative = grad(lambda x, y: np.sum(np.sin(x) * y))
    text = derivative.source(V, V)
    assert "np.cos(x)" in text
    assert compile(text, "generated", "exec")
    derivative(V, V)
    derivative(V, V)
    derivative(V, V)
    assert "1 signature(s)" in derivative.explain()
    shown = str(derivative.graph(V, V))
    assert "np.cos" in shown
    assert len(shown.splitlines()) == len(derivative.graph(V, V)) + 1
    assert np.allclose(derivative.compiled(V, V)(V, V), np.cos(V) * V)
    assert "np.sin" in str(graph(np.sin, V))
    with pytest.raises(RuntimeError, match="dynamic"):
        grad(lambda x: x, mode="dynamic").compiled(1.0)


def test_explain_tells_ever_new_ways_from_one():
    def fun(x):
        if x[0] > 1:
            return x[0] ** 2
        return x[1] ** 3 if x[1] > 1 else x[0] * x[1]

    derivative = grad(fun)
    derivative(np.array([2.0, 0.0]))
    assert "seen once, compiled at the next such call" in derivative.explain()
    derivative(np.array([0.0, 2.0]))
    assert "traced 2 times, each time another way" in derivative.explain()
    derivative(np.array([0.0, 3.0]))
    assert "  compiled;" in derivative.explain()


def test_explain_tells_that_no_code_answers():
    def fun(x):
        heap = []
        for v in x:
            heapq.heappush(heap, v)
        return sum(heapq.heappop(heap) * (i + 1) for i in range(len(x)))

    derivative, rng = grad(fun), np.random.default_rng(0)
    for _ in range(30):
        derivative(rng.normal(size=8))
    assert "calls in between are run in dynamic mode" in derivative.explain()


# -- pickles -------------------------------------------------------------------------------------------------------


def test_pickles():
    for kind in KINDS:
        made = kind(product)
        again = pickle.loads(pickle.dumps(made))
        assert type(again) is type(made)
        assert again.__name__ == "product"
        if kind is not hessian:
            assert same(again(2.0, 3.0), made(2.0, 3.0))
    made = grad(product, argnums=("x", 1))
    made(2.0, 3.0)
    assert pickle.loads(pickle.dumps(made))(2.0, 3.0) == (72.0, 96.0)
    assert copy.copy(made)(2.0, 3.0) == (72.0, 96.0)
    assert copy.deepcopy(made)(2.0, 3.0) == (72.0, 96.0)
    assert pickle.loads(pickle.dumps(grad(np.sin)))(0.0) == 1.0
    assert pickle.loads(pickle.dumps(grad(Model(5.0).loss)))(3.0) == 18.0
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(grad(lambda x: x))


MODULE = """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context
    import pickle
    from symgrad import grad, value_and_grad

    @grad
    def decorated(x):
        return x ** 3

    def plain(x, y):
        return x * y

    if __name__ == "__main__":
        import module_of_derivatives as m
        assert pickle.loads(pickle.dumps(m.decorated)) is m.decorated
        work = [m.decorated, grad(m.plain), value_and_grad(m.plain, argnums=1)]
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            print(pool.submit(m.decorated, 2.0).result())
            print(pool.submit(grad(m.plain), 2.0, 5.0).result())
            print(pool.submit(value_and_grad(m.plain, argnums=1), 2.0, 5.0).result())
"""


def test_pickles_reach_other_processes(tmp_path):
    path = tmp_path / "module_of_derivatives.py"
    path.write_text(textwrap.dedent(MODULE))
    root = str(Path(symgrad.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])}
    run = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=120)
    assert run.stdout.split("\n")[:4] == ["12.0", "5.0", "(10.0, 2.0)", ""], run.stderr


def test_bound_derivatives_pickle():
    made = Model(5.0).decorated
    assert np.allclose(pickle.loads(pickle.dumps(made))(V), made(V))


# -- threads, recursion --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [jacobian, jacrev, jacfwd])
def test_flat_jacobians(kind):
    """All that is differentiated, along one last axis, in the order of ``flatten``."""
    params = {"w": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": 0.5}

    def fun(p, x, s):
        return {"out": np.tanh(p["w"] @ x) * s + p["b"], "size": np.sum(p["w"] ** 2) * s}

    x, (vector, unflatten) = np.array([0.1, -0.2]), symgrad.flatten((params, 2.0))
    expected = jacobian(lambda v: fun(unflatten(v)[0], x, unflatten(v)[1]))(vector)
    made = kind(fun, argnums=(0, 2), flat=True)
    for _ in range(3):
        found = made(params, x, 2.0)
        assert found["out"].shape == (2, 6)
        assert found["size"].shape == (6,)
        for name in found:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)
    by_numbers = kind(lambda t, a, b: a * t**b, argnums=("a", "b"), flat=True)
    for _ in range(3):
        np.testing.assert_allclose(by_numbers(x**2, 3.0, 2.0), np.stack([x**4, 3.0 * x**4 * np.log(x**2)], axis=-1))
        np.testing.assert_allclose(by_numbers(2.0, 3.0, 2.0), [4.0, 12.0 * np.log(2.0)])


def test_threads():
    """Eight threads call one derivative with shapes of their own, while it traces, compiles and branches."""
    derivative = value_and_grad(lambda x: np.sum(x * x) if x[0] > 0 else np.sum(x))
    start = threading.Barrier(8)

    def work(n):
        start.wait()
        for i in range(30):
            x = np.full(n % 3 + 1, 1.0 + i) * (1 if i % 2 else -1)
            value, g = derivative(x)
            assert np.allclose(g, 2 * x if i % 2 else 1.0)
            assert np.isclose(value, np.sum(x * x) if i % 2 else np.sum(x))
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert derivative.cache_info().currsize == 3


def test_threads_with_shapes_that_are_new():
    """Each looks whether code for the others was of use, while they add more."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            derivative = grad(lambda x: np.sum(np.sin(x) * x))

            def work(i, derivative=derivative):
                for n in range(1, 60):
                    x = np.ones(4 * n + i)
                    np.testing.assert_allclose(derivative(x), np.sin(x) + x * np.cos(x))

            with ThreadPoolExecutor(4) as pool:
                list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)


def test_threads_that_learn_beside_a_trace(monkeypatch):
    """What another thread learns while a call is traced may change how the function is traced; here, it does so at once."""
    draw, beside, trace = np.random.default_rng(1), [], Family.trace

    def interrupted(family, *args):
        traced = trace(family, *args)
        others, beside[:] = beside[:], []
        for x in others:
            derivative(x)
        return traced

    def parted(x):
        s = 0.0
        for v in x:
            s = s + v * v if v > 0 else s + np.sin(v)
        for k in (0, 1, 2):
            if x[k] > 0:
                s = s * x[k + 1]
        return s * 2.0 if s > 1.0 else np.sin(s) if s > 0.0 else s

    monkeypatch.setattr(Family, "trace", interrupted)
    for _ in range(2):
        derivative = value_and_grad(parted)
        derivative.cache_clear()
        for _ in range(25):
            beside[:], x = draw.normal(size=(draw.integers(12), 5)), draw.normal(size=5)
            value, g = derivative(x)
            assert np.isclose(value, parted(x))
            slopes = [(parted(x + h) - parted(x - h)) / 2e-6 for h in 1e-6 * np.eye(5)]
            np.testing.assert_allclose(g, slopes, rtol=1e-4, atol=1e-6)
        assert "dynamic mode" not in derivative.explain()


def test_a_trace_that_contradicts_what_another_thread_has_learnt_since(monkeypatch):
    """It may have known less of the function's loops: that is no reason to trace all calls."""
    others, trace, add = [1], Family.trace, Program.add

    def interrupted(family, *args):
        traced = trace(family, *args)
        while others:
            others.pop()
            assert derivative(5.0) == 10.0
            monkeypatch.setattr(Program, "add", contradicted)
        return traced

    def contradicted(*args):
        monkeypatch.setattr(Program, "add", add)
        raise Diverged("a call took another course than an earlier one with the same decisions")

    monkeypatch.setattr(Family, "trace", interrupted)
    derivative = grad(lambda x: x * x)
    for _ in range(3):
        assert derivative(3.0) == 6.0
    assert derivative.cache_info().hits == 1


def test_derivatives_within_themselves():
    def fun(x, depth):
        if depth == 0:
            return x * x
        return derivative(x, depth - 1) * x

    derivative = grad(fun)
    for _ in CALLS:
        assert derivative(3.0, 0) == 6.0
        assert derivative(3.0, 1) == 12.0  # d/dx 2 x²
        assert derivative(3.0, 2) == 24.0  # d/dx 4 x²


def test_a_derivative_called_by_a_plain_callback():
    """Re-entrance: the function of one derivative calls another, compiled one on plain values."""
    inner = grad(lambda x: x**3)
    for _ in CALLS:
        assert inner(2.0) == 12.0
    always(grad(lambda x: x * inner(2.0)), 12.0, 5.0)
    always(grad(lambda x: x * inner(x)), 9 * 4.0, 2.0)


def test_no_arguments():
    with pytest.raises(TypeError):
        grad(lambda: 3.0)()
    always(grad(lambda: 3.0, argnums=()), ())
    always(value_and_grad(lambda: 3.0, argnums=()), (3.0, ()))


def test_order_of_derivatives():
    f = math.sin
    derivative = np.sin
    expected = [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos]
    for order, truth in enumerate(expected):
        derivative = grad(derivative)
        for _ in CALLS:
            assert np.isclose(derivative(0.7), truth(0.7)), order
    assert f(0.0) == 0.0


# -- how compiled code is reached ----------------------------------------------------------------------------------


def test_an_argument_by_name_is_the_same_argument():
    def scaled(x, y=2.0, *, power=1.0):
        return x * y * power

    slope = grad(scaled, argnums=(0, 1))
    for _ in range(3):
        assert slope(3.0, y=5.0) == (5.0, 3.0)
    traced = slope.cache_info().misses
    assert slope(y=5.0, x=3.0) == slope(3.0, 5.0) == slope(x=3.0, y=5.0) == (5.0, 3.0)
    assert slope.cache_info().misses == traced
    assert slope(3.0, 5.0, power=2.0) == (10.0, 6.0)
    assert slope(3.0) == (2.0, 3.0)


def test_a_wrapper_may_tell_names_from_positions():
    def inner(x, y=2.0):
        return x * y

    @functools.wraps(inner)
    def wrapper(*args, **kwargs):
        return inner(*args, **kwargs) * (1.0 + len(kwargs))

    slope = grad(wrapper)
    for _ in range(3):
        assert slope(3.0, 5.0) == 5.0
        assert slope(3.0, y=5.0) == 10.0


def test_calls_that_do_not_fit_fail_as_the_function_does():
    def function(x, y=2.0):
        return x * y

    slope = grad(function)
    bad = [((), {}), ((1.0, 2.0, 3.0), {}), ((1.0,), {"z": 2.0}), ((), {"y": 1.0})]

    def messages():
        found = []
        for args, kwargs in bad:
            with pytest.raises(TypeError) as error:
                slope(*args, **kwargs)
            found.append(str(error.value))
        return found

    before = messages()
    for _ in range(3):
        assert slope(3.0) == 2.0
        assert slope(3.0, 4.0) == 4.0
    assert messages() == before


def test_names_with_underscores_do_not_meet_those_of_the_entry():
    slope = grad(lambda _hits, _busy, _more=2.0: _hits * _busy * _more, argnums=(0, 1, 2))
    for _ in range(4):
        assert slope(3.0, 5.0, _more=7.0) == (35.0, 21.0, 15.0)


def test_compiled_code_beside_a_trace_of_another_thread():
    square = grad(lambda x: x * x)
    for _ in range(3):
        square(3.0)
    hits = square.cache_info().hits
    started, done = threading.Event(), threading.Event()

    def slow(x):
        started.set()
        assert done.wait(60)
        return x * x

    other = threading.Thread(target=lambda: grad(slow, mode="dynamic")(1.0))
    other.start()
    assert started.wait(60)
    try:
        assert square(4.0) == 8.0
        assert square.cache_info().hits == hits + 1
    finally:
        done.set()
        other.join()


class Stage(Enum):
    FIRST = 1


class Label(StrEnum):
    FIRST = "first"


@pytest.mark.parametrize(
    "key", [Stage.FIRST, Label.FIRST, (Stage.FIRST, 2), date(2020, 1, 1), object(), np.sum, frozenset({1})]
)
def test_keys_that_have_no_literal(key):
    """The code was no Python, or named what it had not."""
    slope, table, batch = (
        grad(lambda p: np.sum(p[key] ** 2)),
        jacobian(lambda x: {key: x**2}),
        vmap(lambda p: {key: p[key] * 2.0}),
    )
    x = np.array([0.5, 2.0])
    for _ in range(4):
        np.testing.assert_array_equal(slope({key: x})[key], 2.0 * x)
        np.testing.assert_array_equal(table(x)[key], np.diag(2.0 * x))
        np.testing.assert_array_equal(batch({key: x})[key], 2.0 * x)
    assert slope.cache_info().hits
    assert batch.cache_info().hits
    with pytest.raises(NotExportable):
        export(slope, {key: x})


# -- results that are no numbers -----------------------------------------------------------------------------------


@dataclass
class Report:
    rate: Any
    seen: Any = 0.0


class Note:
    def __init__(self, rate):
        self.rate = rate


class Rows(list):
    pass


def test_results_from_outside_are_as_they_are_now():
    """Code gave the object that the traced call had found, and the fields that an object in a container had then."""
    outside = SimpleNamespace(note=Note(1.0), report=Report(1.0), named=lambda: 1.0, marks={1}, rate=1.0)
    inside = {"report": outside.report, "all": [outside.report]}
    funs = [
        lambda x: (x * x, outside.note),
        lambda x: (x * x, [outside.note, outside.named, outside.marks]),
        lambda x: (x * x, inside),
        lambda x: (x * x, Report(outside.report, [inside])),
    ]
    derivatives = [grad(fun, has_aux=True) for fun in funs]
    for rate in (1.0, 1.0, 1.0, 2.0, 2.0, 3.0):
        if rate != outside.rate:
            outside.note, outside.named, outside.marks = Note(rate), lambda rate=rate: rate, {rate}
        outside.rate = outside.report.rate = rate
        (_, note), (_, held), (_, read), (_, made) = [derivative(1.5) for derivative in derivatives]
        assert note is outside.note
        assert held == [outside.note, outside.named, outside.marks]
        assert read == {"report": Report(rate), "all": [Report(rate)]}
        assert made == Report(Report(rate), [read])
    assert all([derivative.cache_info().hits for derivative in derivatives[:2]])


@pytest.mark.parametrize(
    "make",
    [
        lambda rate: {1, 2},
        lambda rate: SimpleNamespace(rate=rate),
        lambda rate: Note([rate]),
        lambda rate: deque([rate]),
        lambda rate: Rows([rate]),
        lambda rate: defaultdict(list, rate=rate),
        lambda rate: {"rate": rate}.values(),
        lambda rate: np.array(["a", "b"]),
        lambda rate: np.array([None, "b"]),
        lambda rate: np.ma.array([1.0, 2.0], mask=[False, True]),
        lambda rate: np.zeros(2, [("a", float)]),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_results_that_are_made_anew(make, mode):
    """One object was the result of all compiled calls, or held what belonged to the trace, or was refused as no number."""
    outside = SimpleNamespace(rate=0.5)
    derivative = grad(lambda x: (x * outside.rate, make(outside.rate)), has_aux=True, mode=mode)
    found = []
    for i in range(5):
        outside.rate = 0.5 + i // 3
        slope, made = derivative(1.5)
        expected = make(outside.rate)
        assert slope == outside.rate
        assert type(made) is type(expected)
        assert repr(vars(made) if isinstance(made, Note) else made) == repr(
            vars(expected) if isinstance(made, Note) else expected
        )
        found.append(made)
    assert len({*map(id, found)}) == 5


def test_containers_from_outside_that_are_returned():
    """They held what belonged to the trace."""
    outside = SimpleNamespace(queue=deque([1.0]), rows=Rows([2.0]), counts=defaultdict(float, a=3.0), words=np.str_("a"))
    outside.names = np.array(["a"])
    derivative = grad(lambda x: (x * outside.queue[0], [*vars(outside).values(), Stage.FIRST]), has_aux=True)
    for i in range(5):
        outside.queue[0] = 1.0 + i
        slope, found = derivative(1.5)
        assert slope == 1.0 + i
        assert repr(found) == repr([*vars(outside).values(), Stage.FIRST])


def test_defaults_that_are_trees_by_which_a_derivative_is_taken():
    def fun(x, p={"a": 2.0, "rows": [np.array([1.0, 2.0])]}, *, q=Report(3.0)):  # noqa: B006
        return x * p["a"] ** 2 + np.sum(p["rows"][0] ** 2) * q.rate

    (p,), q = fun.__defaults__, fun.__kwdefaults__["q"]
    derivative = grad(fun, ("p", "q"))
    for i in range(6):
        p["a"], p["rows"][0][1], q.rate = 2.0 + i // 3, i // 2, 3.0 + i // 4
        by_p, by_q = derivative(1.5)
        np.testing.assert_allclose(by_p["a"], 3.0 * p["a"])
        np.testing.assert_allclose(by_p["rows"][0], 2 * p["rows"][0] * q.rate)
        np.testing.assert_allclose(by_q.rate, np.sum(p["rows"][0] ** 2))


class Doubled(namedtuple("Doubled", "a b")):
    def __new__(cls, a, b=0.0):
        return super().__new__(cls, a, 2 * b)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_named_tuples_that_make_their_items(mode):
    """They were made anew with what they hold as the arguments of their class."""
    point, slope = Doubled(1.5, 2.0), value_and_grad(lambda p: p.a * p.b**2, mode=mode)
    for _ in CALLS:
        value, found = slope(point)
        assert (value, type(found), *found) == (24.0, Doubled, 16.0, 12.0)


class Signed(float):
    pass


def test_floats_of_a_class_of_the_users_with_a_sign():
    slope = grad(lambda x, sign: np.copysign(x, sign))
    for sign in (0.0, 0.0, 0.0, -0.0, -0.0, 0.0, -0.0):
        assert slope(2.0, Signed(sign)) == np.copysign(1.0, sign)


def test_spans_of_time_by_numbers_that_change():
    outside = SimpleNamespace(days=1)
    slope = grad(lambda x, n: x * (np.timedelta64(outside.days + n, "D") / np.timedelta64(1, "h")))
    for i in range(6):
        outside.days = 1 + i // 2
        assert slope(2.0, i // 3) == 24.0 * (outside.days + i // 3)


# -- containers with more than fields ------------------------------------------------------------------------------


@dataclass
class Scaled:
    factor: float
    sign = 1.0

    def __post_init__(self):
        self.double, self.kind = 2 * self.factor, "plain"

    @functools.cached_property
    def square(self):
        return self.factor**2

    def of(self, x):
        return x * self.double * self.sign


class Weighted(namedtuple("Weighted", "a b")):
    weight = 1.0


class Table(dict):
    weight = 1.0


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_attributes_that_are_no_fields(mode):
    """They were not there, or those of the class were taken for them."""
    method = grad(lambda x, p: p.of(x) * x + (x if p.kind == "plain" else 3 * x) + x * getattr(p, "more", 0.0), mode=mode)
    nested = grad(lambda x, given: x * given["p"][0].double + x * copy.copy(given["p"][0]).sign, mode=mode)
    weighed = grad(lambda x, pair, table: x * pair.a * pair.weight + x * table["a"] * table.weight, mode=mode)
    for i in range(12):
        p, pair, table = Scaled(1.0 + i // 2), Weighted(1.0, 2.0), Table(a=2.0)
        if i % 3 == 2:
            p.sign = p.more = pair.weight = 3.0
            table.weight = 4.0 + i
        if i % 4 == 3:
            p.double, p.kind = 7.0, "other"
        slope = 2 * 1.5 * p.double * p.sign + (1.0 if p.kind == "plain" else 3.0) + getattr(p, "more", 0.0)
        assert method(1.5, p) == slope
        assert nested(1.5, {"p": (p, 1.0)}) == p.double + p.sign
        assert weighed(1.5, pair, table) == pair.weight + 2.0 * table.weight
    assert mode == "dynamic" or (method.cache_info().hits and weighed.cache_info().hits)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_attributes_of_what_a_derivative_is_taken_by(mode):
    """What is computed of fields, and kept, is no constant."""
    p = Scaled(3.0)
    assert p.square == 9.0
    kinds, squares = grad(lambda p: p.factor**2 * len(p.kind), mode=mode), grad(lambda p: p.square, mode=mode)
    for kind in ("plain", "plain", "plain", "other one"):
        p.kind = kind
        assert kinds(p).factor == 6.0 * len(kind)
        assert squares(p).factor == 6.0
        with pytest.raises(AttributeError, match="double of a Scaled is none of its fields"):
            grad(lambda p: p.double * p.factor, mode=mode)(p)
        assert grad(lambda p: p.factor * getattr(p, "double", 2.0), mode=mode)(p).factor == 2.0
        p.sign = 2.0
        with pytest.raises(NotDifferentiable, match="sign of a Scaled is none of its fields"):
            grad(lambda p: p.factor * p.sign, mode=mode)(p)
        del p.sign


@dataclass
class Fitted:
    weights: Any

    def __post_init__(self):
        self.scale, self.notes = 2.0, {"offset": 1.0}

    @grad
    def slope(self, x):
        return x * x * self.scale * self.weights[0] + self.notes["offset"] * x

    @vmap
    def batch(self, x):
        return x * self.scale * self.weights[0]


def test_methods_of_records_that_have_more_than_fields():
    model = Fitted([3.0])
    each = vmap(lambda model, x: x * len(model.notes) * model.weights[0])
    for i in range(8):
        model.scale, model.notes["offset"] = 2.0 + i // 2, 1.0 + i // 3
        assert model.slope(1.5) == 9.0 * model.scale + model.notes["offset"]
        np.testing.assert_array_equal(model.batch(V), V * model.scale * 3.0)
        with pytest.raises(AttributeError, match="notes of a Fitted is none of its fields"):
            each(Fitted([V]), V)
    assert model.slope.cache_info().hits
    assert model.batch.cache_info().hits


def test_argnums_that_are_nested():
    with pytest.raises(TypeError, match=r"argnums=\(1,\): give the position or the name"):
        grad(lambda x, y: x * y, (0, (1,)))
