"""What a derivative is where there is none, or more than one: the design's table, at the point itself.

Finite differences lie there, so the values are written down. Every row holds in reverse and forward mode, compiled and
dynamic, for Python floats and for arrays.
"""

import functools
import itertools

import numpy as np
import pytest

import symgrad.eager as torch
from symgrad import elementwise_grad, grad, hessian, hvp, jacfwd, jacobian, jacrev, jvp, linearize, value_and_grad, vjp, vmap
from symgrad.errors import IntegerArgument

INF, ROWS = np.inf, []


def row(fun, args, expected):
    """The derivative of ``fun``'s sum at ``args`` with respect to each of them."""
    ROWS.append(pytest.param(fun, args, expected, id=f"{len(ROWS)}"))


# -- steps and kinks: the mean of both sides -----------------------------------------------------------------------

for fun in (np.abs, np.fabs, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.round, np.square):
    row(fun, (0.0,), (0.0,))
for fun in (np.floor, np.ceil, np.trunc, np.rint, np.round):
    row(fun, (1.0,), (0.0,))
    row(fun, (0.5,), (0.0,))
row(lambda x: x * (x > 0), (0.0,), (0.0,))
row(lambda x: x * (x >= 0), (0.0,), (1.0,))
row(lambda x, y: x + (x == y) + (x != y) + (x < y) + (x <= y), (2.0, 2.0), (1.0, 0.0))
row(np.heaviside, (0.0, 0.5), (0.0, 1.0))
for fun in (np.maximum, np.minimum, np.fmax, np.fmin):
    row(fun, (1.0, 1.0), (0.5, 0.5))
    row(lambda x, fun=fun: fun(x, 0.0), (0.0,), (0.5,))
    row(lambda x, fun=fun: fun(x, x), (3.0,), (1.0,))
for fun in (np.max, np.amax):
    row(fun, (np.array([1.0, 3.0, 3.0]),), ([0.0, 0.5, 0.5],))
    row(lambda x, fun=fun: fun(x, axis=0), (np.array([[1.0, 3.0], [1.0, 2.0]]),), ([[0.5, 1.0], [0.5, 0.0]],))
for fun in (np.min, np.amin):
    row(fun, (np.array([1.0, 1.0, 3.0, 1.0]),), ([1 / 3, 1 / 3, 0.0, 1 / 3],))
row(np.ptp, (np.ones(4),), (np.zeros(4),))
for bound in (-1.0, 0.5, 1.0):
    row(lambda x: np.clip(x, -1.0, 1.0), (bound,), (1.0,))
row(lambda x: np.clip(x, 1.0, None), (1.0,), (1.0,))
for x in (0.0, 1.2, 3.0, 5.0):  # the upper bound, which is below the lower one, whatever is clipped
    row(np.clip, (x, 3.0, 1.2), (0.0, 0.0, 1.0))
row(lambda x: np.clip(x, 3.0, x), (2.9,), (1.0,))

# -- what is made of kinks is exact --------------------------------------------------------------------------------


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def bce(z, y):
    return np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))


row(softplus, (0.0,), (0.5,))
row(lambda x: np.logaddexp(x, 0.0), (0.0,), (0.5,))
row(bce, (0.0, 1.0), (-0.5, 0.0))
row(bce, (0.0, 0.25), (0.25, 0.0))
for fun in (np.logaddexp, np.logaddexp2):
    row(fun, (-INF, -INF), (0.5, 0.5))
    for other in (-INF, -2000.0, 0.0, 1.0, 2000.0):
        row(fun, (INF, other), (1.0, 0.0))
    for other in (-2000.0, 1.0, INF):
        row(fun, (-INF, other), (0.0, 1.0))
    row(fun, (INF, INF), (0.5, 0.5))
    together = lambda *x, fun=fun: fun.reduce(np.stack(x))
    row(together, (-INF, -INF, -INF, -INF), (0.25, 0.25, 0.25, 0.25))
    row(together, (INF, -INF, INF, 2000.0), (0.5, 0.0, 0.5, 0.0))
    row(together, (-INF, -2000.0, 0.0, -INF), (0.0, 0.0, 1.0, 0.0))

# -- poles, and 0/0 ------------------------------------------------------------------------------------------------

row(np.sqrt, (0.0,), (INF,))
row(np.cbrt, (0.0,), (INF,))
row(lambda x: x**0.5, (0.0,), (INF,))
row(lambda x, y: x**y, (0.0, 0.0), (0.0, 0.0))
row(lambda x, y: x**y, (0.0, 1.0), (1.0, 0.0))
row(lambda x, y: x**y, (0.0, 2.0), (0.0, 0.0))
row(lambda x, y: x**y, (2.0, 0.0), (0.0, np.log(2)))
row(lambda x: x**0.0, (0.0,), (0.0,))
row(lambda x: x**0, (-2.0,), (0.0,))
row(lambda x: x**2, (0.0,), (0.0,))
row(lambda x: x**3, (-1.0,), (3.0,))
row(lambda y: 0.0**y, (2.0,), (0.0,))
for order in (None, 1, 2, 3, INF):
    row(lambda x, order=order: np.linalg.norm(x, order), (np.zeros(3),), (np.zeros(3),))
row(lambda x: np.linalg.norm(x, axis=1), (np.array([[0.0, 0.0], [3.0, 4.0]]),), ([[0.0, 0.0], [0.6, 0.8]],))
row(np.linalg.norm, (np.zeros((2, 2)),), (np.zeros((2, 2)),))
row(np.std, (np.ones(3),), (np.zeros(3),))
row(lambda x: np.std(x, ddof=1), (np.zeros(3),), (np.zeros(3),))
row(np.hypot, (0.0, 0.0), (0.0, 0.0))
row(np.arctan2, (0.0, 0.0), (0.0, 0.0))
row(np.sinc, (0.0,), (0.0,))

# -- products with zeros -------------------------------------------------------------------------------------------

row(np.prod, (np.array([0.0, 2.0, 3.0]),), ([6.0, 0.0, 0.0],))
row(np.prod, (np.array([0.0, 2.0, 0.0]),), ([0.0, 0.0, 0.0],))
row(lambda x: np.prod(x, axis=1), (np.array([[0.0, 2.0], [3.0, 0.0]]),), ([[2.0, 0.0], [0.0, 3.0]],))
row(np.cumprod, (np.array([2.0, 0.0, 3.0]),), ([1.0, 8.0, 0.0],))

# -- ties of order: the stable permutation -------------------------------------------------------------------------

WEIGHTS = np.array([1.0, 2.0, 3.0])
row(lambda x: np.sort(x) * WEIGHTS, (np.array([1.0, 1.0, 0.0]),), ([2.0, 3.0, 1.0],))
row(lambda x: np.partition(x, 1) * WEIGHTS, (np.array([1.0, 1.0, 0.0]),), ([2.0, 3.0, 1.0],))
row(np.median, (np.array([1.0, 1.0, 3.0, 1.0]),), ([0.0, 0.5, 0.0, 0.5],))
row(lambda x: np.quantile(x, 0.25), (np.array([1.0, 1.0, 1.0, 1.0, 0.0]),), ([1.0, 0.0, 0.0, 0.0, 0.0],))

# -- matrices ------------------------------------------------------------------------------------------------------

row(np.linalg.det, (np.diag([0.0, 2.0, 3.0]),), (np.diag([6.0, 0.0, 0.0]),))
row(lambda a: np.linalg.eigvalsh(a) ** 2, (np.eye(3),), (2 * np.eye(3),))
row(lambda a: np.linalg.norm(a, "nuc"), (np.eye(2),), (np.eye(2),))


@pytest.mark.parametrize(("fun", "args", "expected"), ROWS)
@np.errstate(divide="ignore")
def test_row(fun, args, expected):
    check(fun, args, expected)
    if all(type(arg) is float for arg in args):
        check(fun, tuple(np.full(2, arg) for arg in args), tuple(np.full(2, e) for e in expected))
        check(fun, tuple(map(np.array, args)), tuple(map(np.array, expected)))


def check(fun, args, expected):
    argnums = tuple(range(len(args)))
    for mode in ("auto", "dynamic"):
        derivative = elementwise_grad(lambda *xs: fun(*xs) * 1.0, argnums, mode=mode)
        for call in range(3):
            for found, wanted in zip(derivative(*args), expected, strict=True):
                np.testing.assert_allclose(found, wanted, 1e-12, 1e-15, err_msg=f"{mode} mode, call {call}")
    for i, x in enumerate(args):
        for place in np.ndindex(np.shape(x)):
            with np.errstate(invalid="ignore"):  # inf * 0 beside inf * 1
                pushed = jvp(lambda x, i=i: fun(*args[:i], x, *args[i + 1 :]), (x,), (unit(x, place),))[1]
            found = np.nansum(pushed)
            np.testing.assert_allclose(found, np.asarray(expected[i])[place], 1e-12, 1e-15, err_msg="forward")


@pytest.mark.parametrize(("fun", "args", "expected"), ROWS)
@np.errstate(all="ignore")
def test_row_in_eager_mode(fun, args, expected):
    tensors = [torch.tensor(np.asarray(arg, float), requires_grad=True) for arg in args]
    (fun(*tensors) * 1.0 + sum(0.0 * t.sum() for t in tensors)).sum().backward()
    for t, wanted in zip(tensors, expected, strict=True):
        np.testing.assert_allclose(t.grad.numpy(), wanted, 1e-12, 1e-15)


def unit(x, place):
    if type(x) is float:
        return 1.0
    t = np.zeros(x.shape)
    t[place] = 1.0
    return t


SLOPES = {  # elementwise functions and their derivatives, infinite at 0
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / x**2),
    "sum of chains": (lambda x: np.exp(np.sqrt(x)) + np.log(x), lambda x: 0.5 / np.sqrt(x) * np.exp(np.sqrt(x)) + 1 / x),
    "gradient": (grad(lambda x: np.sum(x**1.5)), lambda x: 0.75 / np.sqrt(x)),
    "chosen": (lambda x: np.where(x < 1, np.sqrt(x), x), lambda x: np.where(x < 1, 0.5 / np.sqrt(x), 1)),
}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("x", [np.array([4.0, 0.0, 0.25]), np.array([[4, 0], [0.25, 2]], np.float32), np.zeros(1)])
@np.errstate(all="ignore")
def test_an_element_that_does_not_depend_on_another_has_no_share_in_its_pole(name, x):
    fun, slope = SLOPES[name]
    expected = np.diag(slope(x).ravel()).reshape(x.shape * 2)
    for derivative in (jacfwd, jacrev):
        for mode in ("auto", "dynamic"):
            of_fun = derivative(fun, mode=mode)
            for _ in range(3):
                np.testing.assert_allclose(of_fun(x), expected, 1e-6)
    np.testing.assert_allclose(jacfwd(lambda x: fun(x).ravel()[::-1])(x), expected.reshape(-1, *x.shape)[::-1], 1e-6)
    np.testing.assert_allclose(vmap(jacfwd(fun))(np.stack([x, x]))[1], expected, 1e-6)


SPREAD = {  # elements move, or are added up, in front of a pole or behind it
    "flip": lambda x: np.sqrt(x)[::-1] * x,
    "roll": lambda x: np.log(np.roll(x, 1)) + np.roll(np.sqrt(x), -1),
    "take": lambda x: np.sqrt(x)[ORDER] + np.sqrt(np.take(x, ORDER)),
    "sort": lambda x: np.sqrt(np.sort(x)) + np.sort(np.cbrt(x))[::-1],
    "transpose": lambda x: np.sqrt(np.stack([x, x + 1]).T),
    "concatenate": lambda x: np.sqrt(np.concatenate([2 * x, x[1:]])),
    "pad": lambda x: np.log(np.pad(x, 1, constant_values=1.0)),
    "tile": lambda x: 1 / np.tile(x, 2).reshape(2, 3),
    "one of all": lambda x: np.sqrt(x * x[2]),
    "all pairs": lambda x: np.log(x[:, None] + x),
    "running sum": lambda x: np.sqrt(np.cumsum(x)),
    "differences": lambda x: np.sqrt(np.diff(x, prepend=0.0)),
    "sums": lambda x: np.sqrt(np.stack([x, x + 1])).sum(0) + np.sqrt(np.stack([x, x]).sum(0)),
    "product": lambda x: np.sqrt(x[:, None] @ np.ones((1, 2))),
    "convolution": lambda x: np.sqrt(np.convolve(x, [1.0, 2.0])),
    "chain": lambda x: np.exp(np.sqrt(np.log1p(x))[::-1]) / np.linalg.norm(x),
    "written": lambda x: _written(np.sqrt(x), slice(1, 2), x[2:]) * x[::-1],
    "chosen": lambda x: np.where(x < 1, np.sqrt(x), x)[::-1],
    "gradient": grad(lambda x: np.sum(x[::-1] ** 1.5 * x)),
}
ORDER = np.array([2, 0, 1])


@pytest.mark.parametrize("name", SPREAD)
@np.errstate(all="ignore")
def test_an_element_has_no_share_in_the_pole_of_one_that_has_moved(name):
    fun, x = SPREAD[name], np.array([0.0, 1.0, 4.0])
    rows = [grad(lambda x, i=i: fun(x).ravel()[i])(x) for i in range(fun(x).size)]
    assert np.isinf(rows).any()
    for derivative, mode in itertools.product((jacfwd, jacrev), ("auto", "dynamic")):
        of_fun = derivative(fun, mode=mode)
        for _ in range(3):
            found = of_fun(x)
            np.testing.assert_allclose(found.reshape(-1, 3), rows, 1e-12)
    np.testing.assert_allclose(vmap(derivative(fun))(np.stack([x, x + 1]))[0], found, 1e-12)


EYE, CENTRED = np.eye(3), np.eye(3) - 1 / 3
SMOOTH = {  # powers of what has a kink at the origin, and the second derivatives there
    "norm": (lambda x: np.linalg.norm(x) ** 2, 2 * EYE),
    "norm times norm": (lambda x: np.linalg.norm(x) * np.linalg.norm(x), 2 * EYE),
    "square of norm": (lambda x: 0.5 * np.square(np.linalg.norm(x)), EYE),
    "norms of rows": (
        lambda x: np.sum(np.linalg.norm(x[:, None] * [3.0, 4.0], axis=1) ** 2 * [1, 2, 3]),
        np.diag([50, 100, 150]),
    ),
    "cube of norm": (lambda x: np.linalg.norm(x) ** 3, 0 * EYE),
    "fourth root": (lambda x: np.sqrt(np.linalg.norm(x) ** 2 + 1), EYE),
    "abs": (lambda x: np.sum(np.abs(x) ** 2), 2 * EYE),
    "hypot": (lambda x: -(np.hypot(x[0], x[1]) ** 2), np.diag([-2, -2, 0])),
    "spread": (lambda x: np.std(x) ** 2, 2 / 3 * CENTRED),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", SMOOTH)
def test_what_is_smooth_at_the_origin_has_its_second_derivatives(name, mode):
    fun, expected = SMOOTH[name]
    for derivative in (hessian(fun, mode=mode), jacrev(grad(fun), mode=mode), jacfwd(grad(fun), mode=mode)):
        for _ in range(3):
            np.testing.assert_allclose(derivative(np.zeros(3)), expected, 1e-12, 1e-12)


def test_what_is_smooth_is_written_as_such():
    assert grad(SMOOTH["norm"][0]).source(np.zeros(3)).endswith("return 2.0 * x")


# -- what was not selected: zero, whatever its partial derivative --------------------------------------------------

X = np.array([-1.0, 0.0, 0.5, 2.0, 1000.0])
HIDDEN = {
    "log": lambda x: np.where(x > 0, np.log(x), 0.0),
    "sqrt": lambda x: np.where(x > 0, np.sqrt(x), 0.0),
    "sine over x": lambda x: np.where(x == 0, 1, np.sin(x) / x),
    "either side": lambda x: np.where(x <= 0, np.exp(x), 3.0 * np.sqrt(x)),
    "chain": lambda x: np.where(x > 0, np.exp(np.sqrt(np.log(x) ** 2 + x)) ** 0.1, 3.0 * x),
    "softplus": lambda x: np.where(x > 30, x, np.log1p(np.exp(x))),
    "power": lambda x: np.where(x > 0, x**0.3 + x ** (x / 500), -x),
    "arccos": lambda x: np.where(np.abs(x) < 0.9, np.arccos(x) * np.arcsin(x), x),
    "nested": lambda x: np.where(x > 0, np.where(x > 1, np.log(x), 2 * np.log(x)), x * x),
    "shared": lambda x: (lambda y: np.where(x > 1, y, np.where(x > 0, 3 * y, 0.0)))(np.log(x)),
    "fan-out": lambda x: (lambda y: np.where(x > 0, y * x + y / x, x) + np.where(x > 1, y * y, 0.0))(np.log(x)),
    "select": lambda x: np.select([x > 1, x > 0], [np.log(x), np.sqrt(x)], x**3),
    "choose": lambda x: np.choose((x > 0) * 1, [x, np.log(x)]),
    "piecewise": lambda x: np.piecewise(x, [x > 0, x <= 0], [np.log, np.square]),
    "mask": lambda x: np.log(x)[x > 0] * 2.0,
    "compress": lambda x: np.compress(x > 0, np.log(x)),
    "extract": lambda x: np.extract(x > 0, np.sqrt(x) ** 3),
    "take": lambda x: np.take(np.log(x), [2, 3, 3]),
    "slice": lambda x: np.sqrt(np.abs(x))[2:] * x[:3],
    "places": lambda x: np.sqrt(np.abs(x))[np.array([0, 2, 4])],
    "written by mask": lambda x: _written(np.log(x), x <= 0, x[0]),
    "written by slice": lambda x: _written(np.log(np.abs(x)), slice(1, 2), 2.0 * x[2]),
    "copyto": lambda x: _copied(np.log(x), x <= 0, 2 * x),
    "ufunc where": lambda x: np.log(x, where=x > 0, out=np.zeros_like(x)) * x,
    "sum where": lambda x: np.sum(np.log(x), where=x > 0),
    "mean where": lambda x: np.mean(np.log(x), where=x > 0),
    "nansum": lambda x: np.nansum(np.where(x <= 0, np.nan, np.log(np.abs(x)))),
    "nan_to_num": lambda x: np.nan_to_num(np.log(np.maximum(x, 0)), neginf=0.0),
    "maximum": lambda x: np.maximum(np.sqrt(np.abs(x)), 0.5) + np.minimum(np.exp(x), 100.0),
    "clip": lambda x: np.clip(np.exp(x), 0.2, 5.0) + np.clip(np.sqrt(np.abs(x)), 0.1, None),
    "root of maximum": lambda x: np.sqrt(np.maximum(x, 0.2) - 0.2) + (np.fmax(x, 0.3) - 0.3) ** 0.5,
    "root of minimum": lambda x: 1 / np.log(4.0 - np.minimum(x, 3.0)) ** -0.5 + np.arccos(np.minimum(0.3 * x, 1.0)) * 0.1,
    "root of clip": lambda x: np.sqrt(np.clip(x, 0.2, 3.0) - 0.2) * np.sqrt(3.0 - np.clip(x, 0.2, 3.0)),
    "root of chosen": lambda x: np.sqrt(np.log(np.where(x > 0.6, x, 1.0))),
    "root of larger row": lambda x: np.sqrt(np.maximum(np.stack([x, 0 * x + 0.2]), 0.2).T - 0.2)[:, 0],
    "smaller number": lambda x: np.minimum(np.exp(x[4]), x + 3.0),
    "max": lambda x: np.max(np.sqrt(np.abs(x))),
    "broadcast": lambda x: np.where(x[:, None] > 0, np.log(x)[:, None] * np.arange(3.0), x[0]),
    "broadcast number": lambda x: np.where(x < -9, np.log(x[1]) * x, x),
    "reshaped": lambda x: np.where(np.stack([x, x]) > 0, np.log(np.stack([x, 2 * x])), 0.0).T.reshape(-1)[::-1] ** 2,
    "sums below": lambda x: np.where(np.array([True, False]), np.sqrt(np.stack([x * x + 1, 0 * x])).sum(1), 0.0),
    "triangle": lambda x: np.triu(np.sqrt(np.abs(x[:, None] - x)), 1),
    "distances": lambda x: 1 / np.sqrt((x[:, None] - x) ** 2)[np.triu_indices(5, 1)],
    "product": lambda x: np.where(x > 0, np.stack([np.log(x), x], 1) @ np.array([1.0, 2.0]), x),
    "products": lambda x: np.where((x > 0)[:, None], np.sqrt(x)[:, None] @ np.ones((1, 3)) * 0.5, x[:, None]),
    "stack of products": lambda x: np.where((x > 0)[:, None, None], np.log(x)[:, None, None] @ np.ones((5, 1, 2)), 0),
    "outer product": lambda x: np.where((x > 0)[:, None] & (x > 0), np.outer(np.log(x), np.sqrt(x)), x),
    "product of rows": lambda x: (np.outer(np.log(x), np.ones(3)) @ np.array([1.0, 2.0, 3.0]))[2:],
    "einsum": lambda x: (lambda y: np.where(x > 0, np.einsum("ij,ij,k->i", np.log(y), np.sqrt(y), [1.0, 2.0]), 0))(x[:, None]),
    "diagonal": lambda x: np.where(x > 0, np.einsum("ii->i", np.sqrt(x)[:, None] * np.ones(5)), 0),
    "tensordot": lambda x: np.where(x[:, None] > 0, np.tensordot([[1.0], [2.0]], np.log(x)[None], 1).T, 0),
    "dot": lambda x: np.where(x > 0, np.dot(np.sqrt(x)[:, None], np.ones(1)) + np.inner(np.ones(1), np.log(x)[:, None]), x),
    "vecdot": lambda x: np.where(x > 0, np.vecdot(np.sqrt(x)[:, None], np.ones(1)), x),
    "convolution": lambda x: np.convolve(np.log(x), [1.0, 2.0], "valid")[2:],
    "differences": lambda x: np.diff(np.log(np.abs(x)))[2:] + np.gradient(np.sqrt(x))[3:].sum(),
    "spectrum": lambda x: np.where((x > 0)[:, None], np.real(np.fft.fft(np.stack([np.sqrt(x), x * x], 1))), 0),
    "product of each row": lambda x: np.where(x > 0, np.prod(np.sqrt(np.stack([x, x + 1], 1)), axis=1), x),
    "running product": lambda x: np.where(x[:, None] > 0, np.cumprod(np.sqrt(np.stack([x, x + 1], 1)), axis=1), 0),
    "norm of each row": lambda x: np.where(x > 0, np.linalg.norm(np.sqrt(np.stack([x, x + 1], 1)), axis=1), x),
    "spread of each row": lambda x: np.where(x > 0, np.var(np.sqrt(np.stack([x, x + 1], 1)), axis=1), x),
    "largest of each row": lambda x: np.where(x > 0, np.max(np.sqrt(np.stack([x, x + 1], 1)), axis=1), x),
    "median of each row": lambda x: np.where(x > 0, np.median(np.log(np.stack([x, x + 1, x + 3], 1)), axis=1), x),
    "quantiles of each row": lambda x: np.where(x > 0, np.quantile(np.sqrt(np.stack([x, x + 1], 1)), [0.2, 0.5], axis=1), x),
    "solutions": lambda x: np.where(x > 0, np.linalg.solve(2 + np.sqrt(x)[:, None, None], np.ones((1, 1)))[:, 0, 0], x),
    "inverses": lambda x: np.where(x > 0, np.linalg.inv(2 + np.sqrt(x)[:, None, None])[:, 0, 0], x),
    "determinants": lambda x: np.where(x > 0, np.linalg.det(np.sqrt(np.abs(x))[:, None, None] + np.eye(2)), x),
    "logarithms of determinants": lambda x: np.where(x > 0, np.linalg.slogdet(_matrices(x))[1], x),
    "eigenvalues": lambda x: np.where((x > 0)[:, None], np.linalg.eigvalsh(np.sqrt(x)[:, None, None] * MATRIX), 0),
    "eigenvalues of some": lambda x: np.linalg.eigvalsh(np.log(x)[:, None, None] * MATRIX)[2:],
    "eigenvalues and vectors": lambda x: np.where((x > 0)[:, None, None], _spectra(np.linalg.eigh(_matrices(x))), 0),
    "eigenvalues of any": lambda x: np.where((x > 0)[:, None], np.real(np.linalg.eigvals(_matrices(x))), 0),
    "orthogonal": lambda x: np.where(
        (x > 0)[:, None, None], np.linalg.qr(_matrices(x) + x[:, None, None] * np.diag([0, 1]))[0], 0
    ),
    "triangles": lambda x: np.where((x > 0)[:, None, None], np.linalg.qr(np.sqrt(x)[:, None, None] * MATRIX)[1], 0),
    "singular values": lambda x: np.where((x > 0)[:, None], np.linalg.svdvals(_matrices(x)), 0),
    "singular vectors": lambda x: np.where((x > 0)[:, None, None], np.linalg.svd(_matrices(x))[0], 0),
    "largest singular value": lambda x: np.where(x > 0, np.linalg.norm(_matrices(x), 2, axis=(1, 2)), 0),
    "pseudo-inverses": lambda x: np.where((x > 0)[:, None, None], np.linalg.pinv(_matrices(x)), 0),
    "conditions": lambda x: np.where(x > 0, np.linalg.cond(_matrices(x) + np.diag([0, 1])), 0),
    "unwrapped": lambda x: np.where((x > 0)[:, None], np.unwrap(np.sqrt(np.stack([x, x + 1], 1)), period=3.0), 0),
    "counted": lambda x: np.bincount([0, 0, 1, 1, 2], np.log(x))[1:],
    "interpolated": lambda x: np.where(x > 0, np.interp(np.sqrt(x), [0.0, 2.0, 99.0], [0.0, 1.0, 5.0]), x),
    "literal zero": lambda x: 0 * np.sqrt(x - x) + 0.0 / np.sqrt(x - x + 1) + np.sqrt(x - x) ** 0,
    "loop": lambda x: _repeated(lambda y, i: np.where(x > 0, y + np.log(x) * i, y), 0.0 * x),
    "before the loop": lambda x: (lambda y: _repeated(lambda z, i: np.where(x > 0, z * i + y, 0.0), y))(np.log(x)),
    "after the loop": lambda x: np.where(x > 0, _repeated(lambda y, i: np.sin(y) * 1.1, np.log(x)), 0.0),
    "poles in the loop": lambda x: np.where(x > 0, _repeated(lambda y, i: np.sqrt(y) * (1 + i), x), 0.0),
    "masked later": lambda x: _repeated(lambda y, i: np.where(x > 0, np.sqrt(y), 0.0) if i == 5 else np.cbrt(y), x * x),
    "in some iterations": lambda x: (lambda y: _repeated(lambda z, i: np.where(x > i / 9, z / 2 + y, z), x))(np.log(x)),
    "loop of numbers": lambda x: sum(np.where(v > 0, np.sqrt(v), v) for v in x),
}


MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])


def _matrices(x):
    return np.sqrt(np.abs(x))[:, None, None] * MATRIX


def _spectra(found):
    return found[0][:, None] * found[1]


def _written(y, index, value):
    y[index] = value
    return y


def _copied(y, mask, value):
    np.copyto(y, value, where=mask)
    return y


def _repeated(fun, y):
    for i in range(6):
        y = fun(y, i)
    return y


@pytest.mark.parametrize("name", HIDDEN)
@np.errstate(all="ignore")
def test_what_was_not_selected_stays_out(name):
    """The derivative is that of the branch that was taken: in all modes, and twice."""
    fun = HIDDEN[name]
    total = lambda x: np.sum(fun(x))
    smooth = np.array([_slope(total, i) for i in range(5)])
    assert np.isfinite(smooth).all()
    found = {mode: grad(total, mode=mode) for mode in ("auto", "dynamic")}
    for mode, derivative in found.items():
        for _ in range(3):
            np.testing.assert_allclose(derivative(X), smooth, 1e-5, 1e-5, err_msg=mode)
    np.testing.assert_allclose(jacfwd(total)(X), smooth, 1e-5, 1e-5)
    for i, unit_vector in enumerate(np.eye(5)):
        np.testing.assert_allclose(jvp(total, (X,), (unit_vector,))[1], smooth[i], 1e-5, 1e-5)
    second = hessian(total)
    curved = second(X)
    assert np.isfinite(curved).all()
    np.testing.assert_allclose(curved, curved.T, 1e-9, 1e-9)
    np.testing.assert_allclose(second(X), curved)
    np.testing.assert_allclose(second(X), curved)
    np.testing.assert_allclose(jacrev(grad(total))(X), curved, 1e-9, 1e-9)
    np.testing.assert_allclose(grad(lambda x: grad(total, mode="dynamic")(x) @ X, mode="dynamic")(X), curved @ X, 1e-9, 1e-6)


def _slope(fun, i):
    """The derivative by one element, by differences; at 0 by those to the left, where the same branches are taken."""
    h = 1e-6 * max(abs(X[i]), 1.0)
    step = np.zeros(5)
    step[i] = h
    return (fun(X + step * (X[i] != 0)) - fun(X - step)) / (h if X[i] == 0 else 2 * h)


@np.errstate(all="ignore")
def test_a_running_product_does_not_depend_on_what_comes_later():
    for mode in ("auto", "dynamic"):
        derivative = elementwise_grad(lambda x: np.cumprod(np.sqrt(x))[:2], mode=mode)
        for _ in range(3):
            np.testing.assert_allclose(derivative(np.array([4.0, 1.0, 0.0])), [0.5, 1.0, 0.0])


@np.errstate(all="ignore")
def test_missing_data_stays_out():
    """What the mask hides may be NaN from the start."""
    y, known = np.array([1.0, np.nan, 3.0]), np.array([True, False, True])
    funs = [
        lambda p: np.sum(np.where(known, (p - y) ** 2, 0.0)),
        lambda p: np.sum(((p - y) ** 2)[known]),
        lambda p: np.nansum((p - y) ** 2),
        lambda p: np.sum(_written((p * y - 1) ** 2, ~known, 0.0) / np.array([1, 1, 9.0])) - p[0] ** 2 + p[0] * 2,
    ]
    p = np.array([2.0, 5.0, 1.0])
    for fun, mode in itertools.product(funs[:3], ("auto", "dynamic")):
        derivative = grad(fun, mode=mode)
        for _ in range(3):
            np.testing.assert_array_equal(derivative(p), [2.0, 0.0, -4.0])
        np.testing.assert_array_equal(hessian(fun, mode=mode)(p), np.diag([2.0, 0.0, 2.0]))


@pytest.mark.parametrize("quantile", [np.nanmedian, lambda a: np.nanquantile(a, 0.5), lambda a: np.nanpercentile(a, [50])[0]])
def test_missing_data_stays_out_of_quantiles(quantile):
    y, p = np.array([1.0, np.nan, 3.0]), np.array([2.0, 5.0, 1.0])
    fun = lambda p: quantile((p - y) ** 2)
    for mode in ("auto", "dynamic"):
        first, second = grad(fun, mode=mode), hessian(fun, mode=mode)
        for _ in range(3):
            np.testing.assert_array_equal(first(p), [1.0, 0.0, -2.0])
            np.testing.assert_array_equal(second(p), np.diag([1.0, 0.0, 1.0]))


Z0 = np.array([0.0, 1 + 1j, 2.0])
OF_ALL_KINDS = [
    *((lambda x: np.where(x > 0, np.log(x), 0.0), x) for x in (0.0, np.float64(0), np.array(0.0), np.zeros((0, 3)))),
    *((lambda x: np.where(x > 0, np.log(x), 0), X[1:4].astype(dtype)) for dtype in (np.float16, np.float32, np.longdouble)),
    (lambda z: np.abs(np.where(np.abs(z) > 0, np.log(z), 2 * z)), Z0),
    (lambda z: np.real(np.where(np.abs(z) > 0, 1 / z, 2 * z)), Z0),
    (lambda x: np.where(np.array([0.0, 1.0, 2.0]), np.log(x), 0), X[1:4]),  # what is no bool counts as one
    (lambda x: np.divide(1.0, x, out=np.zeros_like(x), where=x != 0), X[1:4]),
    (lambda x: -np.sum(x[x > 0] * np.log(x[x > 0])), X[1:4]),
]


@pytest.mark.parametrize(("fun", "x"), OF_ALL_KINDS)
@np.errstate(all="ignore")
def test_what_was_not_selected_stays_out_in_all_kinds(fun, x):
    away = np.where(np.abs(x) == 0, np.asarray(0.125, np.result_type(x)), x)  # elementwise, so that the others are right there
    for mode in ("auto", "dynamic"):
        derivative = grad(lambda x: np.sum(fun(x)) * 1.0, mode=mode)
        for _ in range(3):
            g = derivative(x)
            assert (type(g), np.shape(g), np.result_type(g)) == (type(x), np.shape(x), np.result_type(x))
            assert np.isfinite(g).all()
            expected = elementwise_grad(fun, mode="dynamic")(away) if np.size(x) else g
            np.testing.assert_allclose(np.asarray(g)[np.abs(x) > 0], np.asarray(expected)[np.abs(x) > 0], 1e-3)


@np.errstate(all="ignore")
def test_eager_mode_follows_torch():
    """Which leaves it to IEEE arithmetic."""
    x = torch.tensor(X, requires_grad=True)
    HIDDEN["log"](x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, np.nan, 2.0, 0.5, 0.001])


PICKED = {
    "getitem": (lambda x, i: np.sum(np.sqrt(x)[i] ** 2 + np.log(x)[i]), [0, 2]),
    "one": (lambda x, i: np.log(x)[i] * x[0], 2),
    "take": (lambda x, i: np.sum(np.take(1 / x, i) * i), [2, 0, 2]),
    "take_along_axis": (lambda x, i: np.sum(np.take_along_axis(np.sqrt(x), i, 0)), [0, 2]),
    "chain": (lambda x, i: np.sum((np.exp(np.log(x) / x[0]) * np.sqrt(2 * x) - x)[i]), [2]),
    "rows": (lambda x, i: np.sum(np.log(np.outer(x, x))[i, 0] + np.outer(x, x)[0, i] ** -0.5), [0, 2]),
    "row and column": (lambda x, i: np.sum(np.log(x[:, None] * np.ones(2))[i, i // 2]), [0, 2]),
    "two picks": (lambda x, i: (lambda y: np.sum(y[i] * y[i[::-1]]))(np.log(x)), [0, 2]),
    "by a mask of some axes": (lambda x, i: np.sum((np.stack([1 / x, x])[..., None] * np.ones(2))[np.stack([x, x]) > 1]), 0),
    "by a mask of rows": (lambda x, i: np.sum((np.log(x)[:, None] * np.ones(2))[x > 0, i // 2]), [0, 2]),
    "and a mask": (lambda x, i: np.sum(np.where(x[i] > 2, np.sqrt(x - 1)[i], 0.0)), [0, 2]),
    "in a mask": (lambda x, i: np.sum(np.where(x - 1 > 0, np.log(x - 1), x)[i]), [0, 2]),
    "broadcast": (lambda x, i: np.sum((np.log(x * np.ones((2, 1))) / x[0] ** np.array([[1.0], [2.0]]))[1, i]), [0, 2]),
    "greatest": (lambda x, i: np.log(x)[np.argmax(x)] + np.sqrt(x)[np.argsort(x)[i]].sum(), [1, 2]),
    "sorted": (lambda x, i: np.sum(np.sqrt(x)[np.argsort(x)][1:]), 0),
    "from a stack": (lambda x, i: np.sum(np.stack([np.log(x), x / x[0]])[:, i] ** 2), [0, 2]),
    "from rows": (lambda x, i: np.sum((np.ones((3, 2)) / np.sqrt(x)[:, None])[i] ** 3), [0, 2, 2]),
    "from rows of a stack": (lambda x, i: np.sum(np.stack([1 / x, np.log(x)], 1)[i] * np.stack([x, x], 1)[i]), [0, 2]),
    "joined": (lambda x, i: np.sum(np.concatenate([x, np.sqrt(x) / x])[i + 3]), [2, 0]),
    "turned": (lambda x, i: np.sum(np.roll(np.log(x), 1)[i] + (1 / x)[::-1][i - 1]), [0, 1]),
    "rows and columns": (lambda x, i: np.sum(np.stack([np.log(x), x])[np.ix_([0, 1], i)]), [0, 2]),
    "from each row": (lambda x, i: np.sum(np.stack([np.log(x), x], 1)[np.arange(3), i] ** 2), [0, 1, 0]),
    "repeated": (lambda x, i: np.sum(np.repeat(np.log(x), 2).reshape(3, 2)[i, i // 2]), [0, 2]),
    "median": (lambda x, i: np.median(np.log(x)) + np.quantile(1 / x, 0.3) ** 2, 0),
    "quantiles": (lambda x, i: np.sum(np.quantile(np.log(x), [0.6, 0.9]) ** 2), 0),
    "inner ones": (lambda x, i: np.sum(np.sqrt(np.sort(x - 1)[1:]) + np.partition(np.sqrt(x), 1)[1:]), 0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", PICKED)
def test_what_numbers_do_not_pick_takes_no_part(name, mode):
    fun, index = PICKED[name]
    index, x = np.array(index), np.array([1.5, 0.0, 4.0])
    derivative, curvature = grad(fun, mode=mode), hessian(fun, mode=mode)
    steps = 1e-6 * np.eye(3)[[0, 2]]
    expected = [(fun(x + step, index) - fun(x - step, index)) / 2e-6 for step in steps]
    for _ in range(3):
        g = derivative(x, index)
        np.testing.assert_allclose(g[[0, 2]], expected, rtol=1e-6)
        assert g[1] == 0
        assert np.all(np.isfinite(curvature(x, index)))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda a: np.linalg.slogdet(a)[1][0],
        lambda a: np.sum(np.linalg.slogdet(a)[1][:2]),
        lambda a: np.sum(np.linalg.svd(a)[1][:1] ** 3),
        lambda a: np.sum(np.linalg.qr(a)[0][:2] ** 3),
    ],
)
def test_matrices_of_a_stack_that_are_not_read_take_no_part(fun, mode):
    stack = np.stack([[[2.0, 0.5], [1.0, 3.0]], [[1.0, 4.0], [0.5, 1.0]], np.zeros((2, 2))])
    derivative, expected = grad(fun, mode=mode), grad(lambda a: fun(np.concatenate([a, np.eye(2)[None]])))(stack[:2])
    for _ in range(3):
        found = derivative(stack)
        np.testing.assert_allclose(found[:2], expected, rtol=1e-12, atol=1e-12)
        assert not found[2].any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("points", [(0.0, 1.0, 2.0, 0.0, 3.0), (1.0, 2.0, 0.0, 3.0, 0.0), (0.0, 0.0, 1.0, 0.0, 2.0)])
@pytest.mark.parametrize("fun", [lambda x: x**0.5, lambda x: np.log(x) * x, lambda x: np.arctan2(x * 1e-170, x)])
def test_calls_at_poles_share_the_code_of_others(fun, points):
    """Python's numbers raise an error there, and what is computed in its place is of the same operations."""
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    for _ in range(2):
        for x in points:
            np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-15)
    assert "\n  compiled" in derivative.explain()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_angles_near_the_origin_are_not_taken_for_those_at_it(mode):
    derivative = grad(np.arctan2, (0, 1), mode=mode)
    for kind in (float, np.float64, np.float32):
        for _ in range(3):
            assert derivative(kind(0), kind(0)) == (0, 0)
            assert derivative(kind(1e-30), kind(1e-30))[0] > 1e29 or kind is np.float32
            assert derivative(kind(1e-170), kind(1e-30))[0] > 1e29
            assert not np.isfinite(derivative(kind(1e-170), kind(1e-170))[0]) or kind is np.float32


def test_pullbacks_of_elements_that_are_picked_beside_poles():
    x, fun = np.array([0.0, 1.0, 4.0, 0.0, 9.0]), lambda x: np.unique(np.where(x > 0, np.sqrt(x), 7.0) * 2 + 1)
    out, pullback = vjp(fun, x)
    for _ in range(2):
        (g,) = pullback(np.ones_like(out))
        np.testing.assert_allclose(g, grad(lambda x: np.sum(fun(x)))(x))
        np.testing.assert_allclose(g, [0, 1, 0.5, 0, 1 / 3], rtol=1e-15)


def _truncated(x, steps):
    v, s = x - 1.0, 0.0
    for k in range(steps):
        w = np.maximum(v, 0.0)
        s = s + (-1) ** k * np.sqrt(0.5 * w) - 0.5 * w
        v = v + 0.3 * (0.2 - w) - 0.8 * np.sqrt(0.5 * w)
    return s


def _absorbed(x, steps):
    v, s = x - 1.0, 0.0
    for _ in range(steps):
        v = np.maximum(v - 0.4, 0.0)
        s = s + np.where(v > 0, np.sqrt(v * 0.1), 0.0)
    return s


def _reflected(x):
    y = x
    for i in range(40):
        if i % 3 == 0:
            y = np.where(y > 1, np.sqrt(np.maximum(y - 1, 0)), y * 0.9)
        else:
            y = np.minimum(y + 0.1 * np.cbrt(np.maximum(y - 1.1, 0)), 2.0)
    return y


def _drained(x):
    out = []
    for v in x:
        y = v
        while y > 0.5:
            y = y - np.sqrt(max(y - 1.2, 0.0)) * 0.5 - 0.1
        out.append(y)
    return np.array(out)


QUIET = [
    lambda x: np.where(x > 0, np.sqrt(x), 0.0),
    lambda x: np.where(x > 0, np.exp(np.sqrt(x)) * x**0.3, 0.0),
    lambda x: np.where(x < 4, np.arccos(x / 4), x),
    lambda x: np.sqrt(x)[::2],
    lambda x: np.stack([np.sqrt(x), x])[:, np.argsort(x)[1:]],
    lambda x: _written(np.sqrt(x), x <= 0, 0.0),
    lambda x: np.median(np.cbrt(x)),
    lambda x: sum(np.where(x > 0, np.sqrt(x * (i + 1)), 0.0) for i in range(3)),
    lambda x: sum(np.where(x > 0, np.sqrt(x) * i, 0.0) for i in range(12)),
    lambda x: functools.reduce(lambda v, _: np.where(x > 0, v * 0.5 + np.sqrt(x), v * 0.3), range(12), x),
    *(functools.partial(fun, steps=steps) for fun in (_truncated, _absorbed) for steps in (3, 12)),
    *(_reflected, _drained),
]


@pytest.mark.parametrize("fun", QUIET)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_masks_hide_raises_no_warning(fun, mode):
    x, total = np.array([1.5, 0.0, 4.0]), lambda x: np.sum(fun(x) ** 2)
    of_one = [grad(total, mode=mode), jacfwd(fun, mode=mode), jacrev(fun, mode=mode), hessian(total, mode=mode)]
    of_two = [vmap(derivative, mode=mode) for derivative in (grad(total), hessian(total), jacfwd(fun))]
    for _ in range(4):
        assert all(np.all(np.isfinite(derivative(x))) for derivative in of_one)
        assert all(np.all(np.isfinite(derivative(np.stack([x, x])))) for derivative in of_two)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sqrt(max(x - 1.2, 0.0)),
        lambda x: x * max(x - 1.2, 0.0) ** 0.5,
        lambda x: np.sqrt(0.5 * np.where(x > 1.2, x - 1.2, 0.0).astype(float)),
        lambda x: np.cbrt(np.where(x > 1.2, x - 1.2, 0.0).item()),
        lambda x: np.sqrt(np.maximum(x - 1.2, 0).astype(float)) * x,
        lambda x: np.sqrt(np.copy(np.maximum(x - 1.2, 0))),
        lambda x: np.sum(np.sqrt(np.copy(np.clip(x - np.ones(3) * 1.2, 0, None)))),
    ],
)
def test_zeros_stay_zero_under_another_kind_of_number(fun, mode):
    """What was not chosen, of a choice that is Python's number, cast or copied."""
    for x in (1.1, np.float64(1.1), 1.1):
        for _ in range(3):
            slopes = grad(fun, mode=mode)(x), jacfwd(fun, mode=mode)(x), jvp(fun, (x,), (1.0,))[1], hessian(fun, mode=mode)(x)
            assert slopes == (0, 0, 0, 0)
    np.testing.assert_allclose(jacfwd(fun, mode=mode)(2.0), grad(fun, mode=mode)(2.0), rtol=1e-12)


@pytest.mark.parametrize("fun", QUIET[:2])
def test_what_masks_hide_raises_no_warning_in_blocks(fun):
    x = np.tile([1.5, 0.0, 4.0], 30_000)
    derivative = value_and_grad(lambda x: np.sum(fun(x) ** 2))
    for _ in range(4):
        assert np.isfinite(derivative(x)[1]).all()


def test_other_poles_warn():
    x = np.array([0.0, 4.0])
    hidden = lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0))
    for derivative in (
        *(jacfwd(np.sqrt), jacrev(np.sqrt), hessian(lambda x: np.sum(x**1.5)), vmap(grad(np.sqrt))),
        grad(lambda x: hidden(x[1:]) + np.sum(np.sqrt(x))),
    ):
        for _ in range(4):
            with pytest.warns(RuntimeWarning, match="divide by zero"):
                derivative(x)


def test_what_the_function_itself_computes_warns():
    x = np.tile([0.0, 4.0], 100)
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)), mode=mode)
        for _ in range(4):
            with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
                np.testing.assert_array_equal(derivative(x)[1][:2], [0.0, 0.25])


@np.errstate(all="ignore")
def test_double_where_can_be_left_out():
    for mode in ("auto", "dynamic"):
        derivative = elementwise_grad(HIDDEN["log"], mode=mode, double_where=False)
        for _ in range(3):
            np.testing.assert_array_equal(derivative(X), [0.0, np.nan, 2.0, 0.5, 0.001])


@np.errstate(all="ignore")
def test_double_where_is_written_once():
    assert "return np.where(x > 0, 1.0 / x, 0)" in elementwise_grad(HIDDEN["log"]).source(X[2:])
    assert elementwise_grad(HIDDEN["softplus"]).source(X).endswith("return np.where(x > 30, 1.0, e / (e + 1))")
    linear = [
        elementwise_grad(lambda x: np.where(x > 0, 2.0 * x, x), double_where=double).source(X) for double in (True, False)
    ]
    assert "np.where(greater, 2.0, 0.0)" in linear[0]
    assert linear[0].split("# backward")[1] == linear[1].split("# backward")[1]


# -- matrices that are symmetric, eigenvalues that coincide --------------------------------------------------------

SYMMETRIC = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])


@pytest.mark.parametrize("fun", [np.linalg.cholesky, lambda a: np.linalg.eigh(a)[1], np.linalg.eigvalsh])
def test_symmetric_input_has_symmetric_cotangent(fun):
    out, pullback = vjp(fun, SYMMETRIC)
    (g,) = pullback(np.arange(1.0, out.size + 1).reshape(out.shape))
    np.testing.assert_allclose(g, g.T, 1e-12, 1e-14)
    derivative = grad(lambda a: np.sum(fun(a) * np.arange(1.0, out.size + 1).reshape(out.shape)))
    for _ in range(3):
        np.testing.assert_allclose(derivative(SYMMETRIC), g, 1e-12)


def test_vectors_of_repeated_eigenvalues_warn():
    derivative = grad(lambda a: np.linalg.eigh(a)[1][0, 1])
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="repeated eigenvalues"):
            assert np.isnan(derivative(np.eye(3))).any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_determinants_of_infinite_matrices(mode):
    a = np.stack([np.diag([1.0, 2.0, 3.0, 4.0]), np.diag([1.0, 2.0, np.inf, 4.0])])
    derivative = grad(lambda a: np.sum(np.linalg.det(a)), mode=mode)
    for _ in range(3):
        found = derivative(a)
        np.testing.assert_allclose(found[0], np.diag([24.0, 12.0, 8.0, 6.0]))
        assert np.isnan(found[1]).all()


def test_columns_that_depend_on_each_other_warn():
    derivative = grad(lambda a: np.sum(np.linalg.qr(a)[0]))
    for a in (np.zeros((1, 1)), np.zeros((2, 4)), np.stack((np.eye(2), np.zeros((2, 2))))):
        for _ in range(3):
            with pytest.warns(RuntimeWarning, match="linearly dependent columns"):
                found = derivative(a)
            assert np.isnan(found[..., 0]).any()
            if a.ndim == 3:
                assert np.isfinite(found[0]).all()


# -- kinds of numbers ----------------------------------------------------------------------------------------------

KINDS = [
    3.0,
    np.float64(3),
    np.float32(3),
    np.array(3.0),
    np.array(3, np.float32),
    np.full(2, 3.0),
    3j,
    np.complex64(3j),
]


@pytest.mark.parametrize("x", KINDS, ids=lambda x: f"{type(x).__name__}-{np.result_type(x)}")
def test_number_gives_back_its_kind(x):
    funs = (
        lambda x: np.sum(np.abs(np.sin(x) * 2.5 + x / 3)),
        lambda x: np.abs(np.mean(x)) + np.pi * np.real(np.sum(x**2)),
        lambda x: np.sum(np.where(np.real(x) > 0, np.abs(x), 0.0)),
        lambda x: 1.0,
        lambda x: np.sum(np.real(x)),
    )
    for fun, mode in itertools.product(funs, ("auto", "dynamic")):
        derivative = grad(fun, mode=mode)
        for _ in range(3):
            g = derivative(x)
            assert type(g) is type(x)
            assert np.shape(g) == np.shape(x)
            assert np.result_type(g) == np.result_type(x)


SINGLE = [
    lambda x: x * 2.5 + 1,
    lambda x: np.exp(x) / 3.0,
    lambda x: x * np.pi * np.e,
    lambda x: np.mean(x * x),
    lambda x: np.var(x) + np.std(x),
    lambda x: np.linalg.norm(x) * 2,
    lambda x: np.maximum(x, 0.0) + np.clip(x, -0.5, 0.5),
    lambda x: np.where(x > 0, x, 0.0) ** 2,
    lambda x: x**2.5 + 2.0**x,
    lambda x: np.logaddexp(x, 0.0) + np.arctan2(x, 1.0) + np.hypot(x, 1.0),
    lambda x: np.cumprod(x) + np.prod(x),
    lambda x: np.sinc(x) + np.log2(x) + np.log10(x) + np.exp2(x) + np.deg2rad(x),
    lambda x: np.median(x) + np.quantile(x, 0.3),
    lambda x: np.average(x) + np.trapezoid(x),
    lambda x: x * x[0].item() + float(len(x)),
]


MIXED = {
    "element": lambda x, y: x[0] * y[1] * 3.0,
    "sum": lambda x, y: np.sum(x * y) * 0.1,
    "product": lambda x, y: (x @ y) * 0.1,
    "loop": lambda x, y: sum(x[i] * y[i] * 0.1 for i in range(3)),
    "choice": lambda x, y: np.sum(np.where(x > 0.5, x * 0.1, y) * y) / 3,
    "square": lambda x, y: np.sum((x - y) ** 2) * 0.7,
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", MIXED)
def test_doubles_among_singles_stay_doubles(name, mode):
    """A cotangent has the precision of its primal, not that of what it is multiplied by."""
    fun, x, y = MIXED[name], np.array([0.3, 0.7, 1.2]), np.array([0.1, 0.6, 1.1], np.float32)
    for make in (grad, jacfwd, jacrev, hessian):
        derivative, expected = make(fun, mode=mode), make(fun)(x, y.astype(float))
        for _ in range(3):
            found = derivative(x, y)
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert grad(fun, argnums=1, mode=mode)(x, y).dtype == np.float32


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.complex128])
def test_numbers_of_a_kind(kind, mode):
    """``np.float32(x)`` of a traced value is what it is of a plain one."""
    seen = []

    def fun(x):
        made = [kind(part) for part in (x, x[:1], x[0], np.sum(x), x[1].item(), x.astype(np.float32))]
        seen.append([(type(one), one.dtype, one.shape) for one in made])
        return np.real(made[0][0] * made[2] * 2 + made[4] ** 2).astype(float)

    x = np.array([0.5, 0.25, 2.0])
    fun(x)
    derivative = grad(fun, mode=mode)
    for _ in range(3):
        found = derivative(x)
        np.testing.assert_allclose(found, [2.0, 0.5, 0.0])
        assert found.dtype == np.float64
    assert all(kinds == seen[0] for kinds in seen)
    assert [grad(lambda t: np.float64(t) ** 2, mode=mode)(0.5) for _ in range(3)] == 3 * [1.0]


@pytest.mark.parametrize("fun", SINGLE)
def test_single_precision_stays(fun):
    x = np.array([0.3, 0.7, 1.2], np.float32)
    assert fun(x).dtype == np.float32
    for mode in ("auto", "dynamic"):
        derivative = elementwise_grad(fun, mode=mode)
        for _ in range(3):
            g = derivative(x)
            assert g.dtype == np.float32
            np.testing.assert_allclose(g, elementwise_grad(fun)(x.astype(float)), 1e-5)
    out, tangent = jvp(fun, (x,), (x,))
    assert out.dtype == tangent.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble], ids=["half", "long"])
@pytest.mark.parametrize("fun", [*SINGLE, lambda x: np.sort(x) * np.exp(-x) if x[0] > 0 else x])
def test_half_and_long_precision_stay(fun, dtype):
    x = np.array([0.3, 0.75, 1.2], dtype)
    precision = max(30 * float(np.finfo(dtype).eps), 1e-16)  # the logarithms of 2 and 10 are double ones
    assert fun(x).dtype == dtype
    exact = elementwise_grad(fun)(x.astype(np.longdouble))
    for mode in ("auto", "dynamic"):
        derivative = elementwise_grad(fun, mode=mode)
        for _ in range(3):
            g = derivative(x)
            assert g.dtype == dtype
            np.testing.assert_allclose(g.astype(np.longdouble), exact, precision, precision)
        product = hvp(lambda x: np.sum(fun(x)), mode=mode)
        assert [product(x, x).dtype for _ in range(3)] == 3 * [dtype]
    out, tangent = jvp(fun, (x,), (x,))
    assert out.dtype == tangent.dtype == dtype


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_derivatives_by_what_is_not_used_are_native(mode):
    derivative = grad(lambda x, y: np.sum(x), (0, 1), mode=mode)
    for _ in range(3):
        assert [part.dtype for part in derivative(np.ones(3), np.ones(3, ">f8"))] == [np.dtype(float)] * 2


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">c16"])
def test_other_byte_order(dtype):
    x = np.array([[0.3, 0.75, 1.2], [2.0, -1.0, 0.5]]).astype(dtype)
    for fun in (
        lambda x: np.var(x, axis=0).sum(),
        lambda x: np.real(np.mean(np.mean(x, axis=1) * x[0, 0] ** 2)),
        lambda x: 1.0,
    ):
        expected = grad(fun)(x.astype(x.dtype.newbyteorder("=")))
        for mode in ("auto", "dynamic"):
            derivative = grad(fun, mode=mode)
            for _ in range(3):
                np.testing.assert_allclose(derivative(x), expected, 1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_comparison_is_no_literal_zero():
    for mode in ("auto", "dynamic"):
        derivative = grad(lambda x: np.sqrt(x) * (x > 0), mode=mode)
        assert [np.isnan(derivative(x)) for x in (0.0, 0.0, 0.0, 4.0)] == [True, True, True, False]


def test_no_digit_is_lost():
    third = np.longdouble(1) / 3
    for fun, x, expected in [
        (lambda x: x * (np.longdouble(1) / 3), np.longdouble(2), third),
        (lambda x: np.real(x * (np.longdouble(1) / 3 - 1j)), np.clongdouble(2), third + 1j),
        (lambda x: np.sum(x * (np.longdouble(1) / 3)), np.ones(2, np.longdouble), np.full(2, third)),
    ]:
        derivative = grad(fun)
        for _ in range(3):
            np.testing.assert_array_equal(derivative(x), expected)
        assert "np.longdouble('0.3333333333333333333" in derivative.source(x)
        namespace = {"np": np}
        exec(derivative.source(x), namespace)
        np.testing.assert_array_equal(namespace["grad_fun"](x), expected)


def test_python_int_is_taken_as_float():
    for mode in ("auto", "dynamic"):
        derivative = grad(lambda n: n**3, mode=mode)
        for _ in range(3):
            g = derivative(2)
            assert type(g) is float
            assert g == 12.0


def test_integer_array_is_an_error_that_names_the_cast():
    with pytest.raises(IntegerArgument, match=r"x is int64.* x\.astype\(float\)"):
        grad(lambda x: np.sum(x**2))(np.arange(3))


# -- complex numbers -----------------------------------------------------------------------------------------------

Z = np.array([1 + 2j, -0.5 + 0.25j, 3 - 1j])


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (lambda z: np.abs(z) ** 2, 2 * Z),
        (lambda z: np.real(z * z), 2 * np.conj(Z)),
        (lambda z: np.imag(z), 1j * np.ones(3)),
        (lambda z: np.real(np.conj(z) * 1j), 1j * np.ones(3)),
        (np.abs, Z / np.abs(Z)),
        (np.angle, 1j * Z / np.abs(Z) ** 2),
        (lambda z: np.abs(z - Z), np.zeros(3)),
    ],
)
def test_gradient_of_real_function_is_steepest_ascent(fun, expected):
    for mode in ("auto", "dynamic"):
        derivative = grad(lambda z: np.sum(fun(z)), mode=mode)
        for _ in range(3):
            np.testing.assert_allclose(derivative(Z), expected, 1e-12)
    change = jvp(lambda z: np.sum(fun(z)), (Z,), (expected,))[1]
    np.testing.assert_allclose(change, np.sum(np.abs(expected) ** 2), 1e-12)


@pytest.mark.parametrize(("fun", "expected"), [(np.exp, np.exp(Z)), (np.square, 2 * Z), (lambda z: np.sin(z) / z, None)])
def test_holomorphic_gives_the_complex_derivative(fun, expected):
    expected = np.cos(Z) / Z - np.sin(Z) / Z**2 if expected is None else expected
    for mode in ("auto", "dynamic"):
        derivative = grad(lambda z: np.sum(fun(z)), holomorphic=True, mode=mode)
        for _ in range(3):
            np.testing.assert_allclose(derivative(Z), expected, 1e-12)


# -- whose memory it is --------------------------------------------------------------------------------------------

C = np.arange(6.0).reshape(2, 3)
LINEAR = [
    lambda a, b: np.sum(C * a) + np.sum(C * b),
    lambda a, b: np.sum(C * (a + b)),
    lambda a, b: np.sum(a * b),
    lambda a, b: np.sum(C.T * a.T) + np.sum(C[::-1] * b),
    lambda a, b: np.sum(np.stack([a, b]) * np.stack([C, C])),
    lambda a, b: np.sum(a) - np.sum(b),
    lambda a, b: 0.0,
]


@pytest.mark.parametrize("fun", LINEAR)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_results_are_the_callers_own(fun, mode):
    derivative = grad(fun, (0, 1), mode=mode)
    a, b, before = np.ones((2, 3)), np.full((2, 3), 2.0), C.copy()
    wanted = [g.copy() for g in derivative(a, b)]
    for _ in range(4):
        found = derivative(a, b)
        for g, w in zip(found, wanted, strict=True):
            assert g.flags.writeable
            assert g.flags.c_contiguous
            np.testing.assert_array_equal(g, w)
        assert not any(np.shares_memory(x, y) for x, y in itertools.combinations((*found, a, b, C), 2))
        for g in found:
            g.fill(np.nan)
    np.testing.assert_array_equal(C, before)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
@pytest.mark.parametrize(
    "fun",
    [
        np.logaddexp,
        np.logaddexp2,
        lambda x, y: np.where(x < y, x * x, y)[()] * 1.0,
        lambda x, y: np.sum(np.sin(np.linspace(0, x, 200))) + np.sum(np.subtract.outer(np.ravel(y), np.sum(y))),
    ],
)
def test_derivatives_by_numbers_are_numbers(fun, kind):
    x, y = kind(1.0), kind(2.0)
    derivative = value_and_grad(fun, (0, 1))
    for _ in range(3):
        value, slopes = derivative(x, y)
        assert type(value) is type(fun(x, y))
        assert [type(slope) for slope in slopes] == [kind, kind]


def test_sums_of_what_was_one_number_of_pythons_are_numpys():
    def fun(z):
        v = np.broadcast_to(z, (2,))
        w = np.sqrt(np.abs(v) + 1) * -z
        return np.sum(np.real(v) + np.imag(v)) + np.sum(np.real(w) + np.imag(w))

    derivative = value_and_grad(fun)
    for _ in range(3):
        assert [type(x) for x in derivative(0.47 + 0.3j)] == [np.float64, complex]


def test_casts_of_numbers_that_choices_make():
    x, y, derivative = np.float32(1.7), np.array(0.168), grad(np.logaddexp, (0, 1))
    for _ in range(3):
        assert [type(slope) for slope in derivative(x, y)] == [np.float32, np.ndarray]


def two_gradients(A):
    a, b = grad(lambda p, q: np.sum(p + q), (0, 1))(A, A)
    a *= 2
    return np.sum(a * A) + np.sum(b * A)


def a_tree_of_gradients(A):
    g = grad(lambda p: np.sum((p["a"] + p["b"]) ** 2))({"a": A[0] * 1, "b": A[1] * 1})
    g["a"] *= 2
    return np.sum(g["a"]) + np.sum(g["b"] * A[0])


def a_cotangent_given(A):
    B = A * 1.0
    (v,) = vjp(lambda p: p, A)[1](B)
    v *= 2
    return np.sum(v * v) + np.sum(B * B)


def an_output_written_to(A):
    out, pullback = vjp(lambda p: np.exp(p), A)
    out[0] = 0
    return np.sum(pullback(A)[0] * A)


def jacobians_of_two(A):
    a, b = jacobian(lambda p, q: p + q, (0, 1))(A[0], A[1])
    a *= 2
    return np.sum(a @ A[0]) + np.sum(b @ A[0] ** 2)


def products_of_a_tuple(A):
    r = hvp(lambda p: np.sum((p[0] + p[1]) ** 2))((A, A * 2), (A, A))
    r[0][...] = 0
    return np.sum(r[1] * A)


def tangents_of_two(A):
    _, t = jvp(lambda p: (p * 2, p * 2), (A,), (A * 1,))
    t[0][0] = 0
    return np.sum(t[1] * A)


def pushed_forward(A):
    _, push = linearize(lambda p: p, A)
    B = A * 1.0
    t = push(B)
    t *= 3
    return np.sum(t * A) + np.sum(B * B)


def elements_themselves(A):
    B = A * 1.0
    v = vmap(lambda p: p)(B)
    v[0] = 5.0
    return np.sum(v * v) + np.sum(B * B)


def elements_of_the_argument(A):
    v = vmap(lambda p: p[0])(A)
    v[0] = 5.0
    return np.sum(v * v) + np.sum(A)


def elements_twice(A):
    a, b = vmap(lambda p: (p * 2, p * 2))(A)
    a *= 2
    return np.sum(a * a) + np.sum(b * b)


def of_what_hangs_on_nothing(A):
    v = vmap(grad(lambda p, q=0.5: np.cos(q)))(A)
    v[0, 0] += 1
    w = vmap(lambda p: np.ones(2))(A)
    w[1] *= 3
    return np.sum(v * A) + np.sum(w * A)


WITHIN = [
    two_gradients, a_tree_of_gradients, a_cotangent_given, an_output_written_to, jacobians_of_two, products_of_a_tuple,
    tangents_of_two, pushed_forward, elements_themselves, elements_of_the_argument, elements_twice, of_what_hangs_on_nothing,
]  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", WITHIN)
def test_results_within_a_function_are_its_own(fun, mode):
    """... as they are outside: what is written into one is in no other, nor in an argument."""
    A = np.arange(6.0).reshape(3, 2) + 1
    derivative = value_and_grad(fun, mode=mode)
    for turn in range(4):
        x = A + 0.1 * turn
        value, slope = derivative(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        steps = [1e-6 * one.reshape(3, 2) for one in np.eye(6)]
        by_hand = [(fun(x + step) - fun(x - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(slope.ravel(), by_hand, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_singular_matrices_have_no_slope_of_the_logarithm(mode):
    """In every mode, and at each call: one raises as its inverse does, in a stack only it is NaN."""
    regular, singular = np.eye(2), np.ones((2, 2))
    derivative = value_and_grad(lambda a: np.sum(np.linalg.slogdet(a)[1]), mode=mode)
    for a in (singular, regular, regular, regular, singular):
        if a is singular:
            with pytest.raises(np.linalg.LinAlgError):
                derivative(a)
        else:
            np.testing.assert_array_equal(derivative(a)[1], regular)
    for stack in (np.stack([regular, singular]), *[np.stack([regular, regular])] * 3, np.stack([regular, singular])):
        value, slope = derivative(stack)
        assert value == np.sum(np.linalg.slogdet(stack)[1])
        np.testing.assert_array_equal(slope, np.where(np.linalg.det(stack)[:, None, None] == 0, np.nan, regular))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_simplified_formulas_have_values_where_others_are_nan():
    fun = lambda x, y: np.log(y / x)
    code, dynamic = grad(fun, 1), grad(fun, 1, mode="dynamic")
    for x in (np.float64(1.0), np.float64(2.0), np.float64(0.0)):
        assert code(x, np.float64(3.0)) == pytest.approx(1 / 3)
    assert np.isnan(dynamic(np.float64(0.0), np.float64(3.0)))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.linalg.norm(x) ** 2,
        lambda x: np.sum(np.linalg.norm(np.outer(x, [1.0, 2.0]), axis=1) ** 2) / 5,
        lambda x: np.sum(np.abs(x) ** 2),
        lambda x: np.sum(np.square(np.abs(x))),
        lambda x: np.hypot(x[0], x[1]) * np.hypot(x[0], x[1]) + x[2] ** 2,
        lambda x: np.sum(np.std(np.stack((x, -x)), axis=0) ** 2),
    ],
)
def test_squares_of_roots_are_smooth_whichever_way_their_derivatives_are_taken(fun):
    for x in (np.zeros(3), np.array([0.0, 0.3, -1.2])):
        for one in (jacfwd, jacrev):
            for other in (jacfwd, jacrev):
                np.testing.assert_allclose(one(other(fun))(x), 2 * np.eye(3), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", [{"correction": 1}, {"where": np.ones(3, bool)}, {"mean": np.ones(1)}, {"ddof": 1}])
@pytest.mark.parametrize("fun", [np.std, np.nanstd])
def test_squares_of_deviations_are_smooth_with_all_options(fun, options):
    if fun is np.nanstd and "mean" in options:
        options = {"where": np.array([True, True, True])}
    var = {np.std: np.var, np.nanstd: np.nanvar}[fun]
    for x in (np.ones(3), np.array([1.0, 2.0, 4.0])):
        found = hessian(lambda x: fun(x, **options) ** 2)(x)
        np.testing.assert_allclose(found, hessian(lambda x: var(x, **options))(x), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(grad(lambda x: fun(x, **options))(np.ones(3)), np.zeros(3))
