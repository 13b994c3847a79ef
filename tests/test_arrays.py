"""Other libraries' arrays go through generated code: it calls NumPy's functions by their protocols."""

import golden_functions as fun
import numpy as np
import pytest
from test_golden import CASES

from symgrad import export, pytree, value_and_grad

rng = np.random.default_rng(0)
X, W, Y = rng.normal(size=(40, 3)), rng.normal(size=3), (rng.normal(size=40) > 0) + 0.0


class Logged(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is none: what it does goes by the protocols, and is written down."""

    def __init__(self, value, log):
        self.value, self.log = value, log
        self.shape, self.dtype, self.ndim, self.size = value.shape, value.dtype, value.ndim, value.size

    T = property(lambda self: Logged(self.value.T, self.log))

    def _wrap(self, result):
        return Logged(result, self.log) if isinstance(result, np.ndarray) else result

    def _plain(self, tree):
        return pytree.map_tree(lambda leaf: leaf.value if isinstance(leaf, Logged) else leaf, tree)

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        assert method == "__call__"
        self.log.append(ufunc.__name__)
        return self._wrap(ufunc(*self._plain(args), **self._plain(kwargs)))

    def __array_function__(self, function, types, args, kwargs):
        self.log.append(function.__name__)
        return self._wrap(function(*self._plain(list(args)), **self._plain(kwargs)))

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("it became a plain array")

    def __getitem__(self, index):
        return self._wrap(self.value[self._plain(index)])

    def reshape(self, *shape):
        return self._wrap(self.value.reshape(*shape))

    def astype(self, dtype):
        return self._wrap(self.value.astype(dtype))

    def copy(self):
        return self._wrap(self.value.copy())


class Measured(np.lib.mixins.NDArrayOperatorsMixin):
    """Numbers with a unit, which is lost where they become a plain array."""

    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    def _plain(self, args):
        return [arg.value * arg.unit if isinstance(arg, Measured) else arg for arg in args]

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        return Measured(getattr(ufunc, method)(*self._plain(args), **kwargs), 1.0)

    def __array_function__(self, function, types, args, kwargs):
        return Measured(function(*self._plain(args), **kwargs), 1.0)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value)


class Thousands(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        args = [np.asarray(arg) * 1000.0 if isinstance(arg, Thousands) else arg for arg in args]
        return getattr(ufunc, method)(*args, **kwargs)


LENGTH, AMOUNT = Measured(np.array([3.0, 4.0, 5.0]), 1000.0), np.array([3.0, 4.0, 5.0]).view(Thousands)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda w: (w * LENGTH).value,
        lambda w: (w[0] * LENGTH).value,
        lambda w: np.multiply(w, LENGTH).value,
        lambda w: np.multiply(LENGTH, w).value,
        lambda w: np.dot(w, LENGTH).value,
        lambda w: w * AMOUNT,
        lambda w: np.multiply(w, AMOUNT),
    ],
)
def test_arrays_that_compute_themselves(fun, mode):
    """NumPy leaves it to them, and so do traced arrays."""
    derivative = value_and_grad(lambda w: np.sum(fun(w)), mode=mode)
    factors = np.array([np.sum(fun(unit)) for unit in np.eye(3)])
    assert factors.max() >= 3000.0
    for _ in range(3):
        value, gradient = derivative(W)
        np.testing.assert_allclose(value, factors @ W)
        np.testing.assert_allclose(gradient, factors)


WRITERS = {
    "rosenbrock",
    "rosenbrock_hvp",
    "rosenbrock_hessian",
    "upwind",
    "embedding",
    "softmax_classifier",
    "per_example_gradients",
}  # into np.zeros
NUMBERS = {"black_scholes", "projectile", "newton_root", "huber", "huber_one_side"}  # of Python's alone
PARTS = {
    "recurrent",
    "perceptron",
    "ridge",
    "polar",
    "marginal_likelihood",
}  # whose arrays meet captured ones, or are taken apart
THROUGH = [p for p in CASES if p.id not in WRITERS | NUMBERS | PARTS]


@pytest.mark.parametrize("case", THROUGH)
def test_by_protocol(case):
    derivative = case.make()
    *before, args = case.calls
    for call in before:
        derivative(*call)
    expected = derivative(*args)
    log = []
    given = [Logged(arg, log) if isinstance(arg, np.ndarray) else arg for arg in args]
    run = derivative.compiled(*args, fast=False)
    found = pytree.map_tree(lambda leaf: leaf.value if isinstance(leaf, Logged) else leaf, run(*given))
    for a, b in zip(pytree.flatten(found)[0], pytree.flatten(expected)[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)
    assert log


def test_dask(tmp_path):
    """Lazy, chunk by chunk; by the readable code and by an exported module."""
    da = pytest.importorskip("dask.array")
    derivative = value_and_grad(fun.logistic)
    value, gradient = derivative(W, X, Y)
    x, y = da.from_array(X, chunks=(10, 3)), da.from_array(Y, chunks=10)
    space = {}
    exec(export(derivative, W, X, Y), space)
    for run in (derivative.compiled(W, X, Y, fast=False), space["value_and_grad_logistic"]):
        lazy = run(W, x, y)
        assert all(isinstance(part, da.Array) for part in lazy)
        np.testing.assert_allclose(lazy[0].compute(), value)
        np.testing.assert_allclose(lazy[1].compute(), gradient)


def test_cupy():
    cupy = pytest.importorskip("cupy")
    try:
        cupy.zeros(1)
    except cupy.cuda.runtime.CUDARuntimeError:
        pytest.skip("there is no GPU")
    derivative = value_and_grad(fun.logistic)
    found = derivative.compiled(W, X, Y, fast=False)(*map(cupy.asarray, (W, X, Y)))
    assert all(isinstance(part, cupy.ndarray) for part in found)
    for a, b in zip(found, derivative(W, X, Y), strict=True):
        np.testing.assert_allclose(cupy.asnumpy(a), b)
