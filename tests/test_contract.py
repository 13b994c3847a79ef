"""Contractions lowered: the same results as without, no less accurate, in the operations that were meant."""

import re
import warnings

import numpy as np
import pytest
from agreement import agrees_without

from symgrad import grad, hessian, hvp, jacfwd, jacrev, runtime, value_and_grad, vmap, without

RNG = np.random.default_rng(0)
windows = np.lib.stride_tricks.sliding_window_view


def array(*shape, dtype=float):
    return RNG.standard_normal(shape).astype(dtype)


CASES = {
    "matrices": (lambda a, b: np.sum(np.sin(a @ b)), (array(3, 4), array(4, 5))),
    "stack times matrix": (lambda a, b: np.sum(np.sin(a @ b)), (array(2, 3, 4), array(4, 5))),
    "stacks": (lambda a, b: np.sum(np.sin(a @ np.swapaxes(b, 1, 2))), (array(2, 3, 4), array(2, 5, 4))),
    "stacks that broadcast": (lambda a, b: np.sum(np.sin(a @ b)), (array(2, 1, 3, 4), array(5, 4, 2))),
    "turned": (lambda a, b: np.sum(np.sin(np.einsum("kij,nj->nki", a, b))), (array(5, 2, 3), array(70, 3))),
    "apart": (lambda a, b: np.sum(np.sin(np.einsum("aibj,bc->aicj", a, b))), (array(2, 3, 4, 5), array(4, 6))),
    "stack of vectors": (lambda a, b: np.sum(np.sin(np.einsum("kij,kj->ki", a, b))), (array(5, 2, 3), array(5, 3))),
    "stack last": (lambda a, b: np.sum(np.sin(np.einsum("ijk,jk->ik", a, b))), (array(2, 3, 4), array(3, 4))),
    "three": (lambda a, b, c: np.sum(np.sin(np.einsum("ij,jk,kl->il", a, b, c))), (array(2, 3), array(3, 4), array(4, 5))),
    "summed alone": (lambda a, b: np.sum(np.sin(np.einsum("ijm,jk->ik", a, b))), (array(2, 3, 5), array(3, 4))),
    "numbers": (
        lambda s, a, b: np.sum(np.sin(np.einsum(",ij,jk,->ik", s, a, b, 3.0))) + np.einsum(",ij->", s, a),
        (array(), array(3, 4), array(4, 5)),
    ),
    "numbers of another dtype": (lambda s, a: np.sum(np.einsum(",ij->ij", s, a) ** 2), (array(dtype="f"), array(3, 4))),
    "outer": (lambda a, b: np.sum(np.sin(np.einsum("i,j->ji", a, b))), (array(3), array(4))),
    "vectors": (lambda a, b: np.sin(np.einsum("i,i->", a, b)), (array(3), array(3))),
    "trace": (lambda a, b: np.sum(np.sin(np.einsum("ij,ij->i", a, b))), (array(3, 4), array(3, 4))),
    "diagonal": (lambda a, b: np.sum(np.sin(np.einsum("ii,i->i", a, b))), (array(3, 3), array(3))),
    "axes of length one": (lambda a, b: np.sum(np.sin(np.einsum("ij,jk->ik", a, b))), (array(1, 3), array(3, 1))),
    "broadcast labels": (lambda a, b: np.sum(np.sin(np.einsum("ij,ij->i", a, b))), (array(3, 1), array(3, 4))),
    "tensordot": (lambda a, b: np.sum(np.sin(np.tensordot(a, b, ((0, 2), (1, 0))))), (array(2, 3, 4), array(4, 2, 5))),
    "factors": (lambda a, b: np.sum(np.sin((2.0 * a) @ (-b / 3.0))), (array(3, 4), array(4, 5))),
    "difference": (lambda a, b, c: np.sum(np.sin((a[:, None] - b) @ c)), (array(90, 3), array(80, 3), array(3, 4))),
    "sum of two": (lambda a, b, c: np.sum(np.sin((a[:, None] + b) @ c)), (array(90, 3), array(80, 3), array(3, 4))),
    "difference, by rows": (
        lambda a, b, c: np.sum(np.cos(np.einsum("kij,nkj->nki", c, a[:, None] - b))),
        (array(90, 3), array(30, 3), array(30, 3, 3)),
    ),
    "sum of products": (lambda a, b: np.sin(np.sum(a @ b * (b.T @ a.T).T)), (array(3, 4), array(4, 5))),
    "sum of squares": (lambda a, b: np.sum(np.sin(np.sum((a @ b) ** 2, axis=1))), (array(3, 4), array(4, 5))),
    "sum of a product": (
        lambda a, b: np.sum(np.sin(np.sum(np.einsum("ij,jk->ijk", a, b), axis=(0, 2)))),
        (array(3, 4), array(4, 5)),
    ),
    "scales": (lambda a, b: np.sum(np.sin(a * b * np.cos(b) / (2 + b**2) - a * b)), (array(90, 60), array(60))),
    "scales of rows": (
        lambda a, b: np.sum(np.sin(a * b[:, None] / np.exp(b)[:, None] + a * b[:, None])),
        (array(90, 60), array(90)),
    ),
    "thin": (lambda a, b: np.sum(log_sum_exp(a @ b)), (array(900, 4), array(4, 5))),
    "turned stack": (
        lambda a, b, c: np.sum(np.sin(np.transpose(np.swapaxes(a, 1, 2) @ b, (2, 0, 1)) * c)),
        (array(2, 3, 4), array(2, 3, 5), array(5, 2, 4)),
    ),
    "log-sum-exp": (lambda a, b: np.sum(log_sum_exp(a @ b)), (array(30, 4), array(4, 5))),
    "standard deviations": (
        lambda a: np.sum(np.sin((a - np.mean(a, axis=0)) / np.std(a, axis=0))) * np.var(a, axis=(0, 1), ddof=2),
        (array(90, 60),),
    ),
    "windows of images": (
        lambda a, b: np.sum(np.maximum(np.einsum("bchwij,ocij->bohw", windows(a, (3, 2), (2, 3)), b), 0) ** 2),
        (array(2, 3, 9, 40), array(4, 3, 3, 2)),
    ),
    "windows of images, channels last": (
        lambda a, b: np.sum(np.sin(np.tensordot(windows(a, (3, 2), (1, 2)), b, ((4, 5, 3), (0, 1, 2))))),
        (array(2, 9, 40, 3), array(3, 2, 3, 4)),
    ),
    "windows of a signal": (lambda a, b: np.sum(np.sin(windows(a, 3) @ b)), (array(90), array(3))),
    "single precision": (lambda a, b: np.sum(np.sin(a @ b)), (array(3, 4, dtype="f"), array(4, 5, dtype="f"))),
    "mixed": (lambda a, b: np.sum(np.sin(a @ b)), (array(3, 4), array(4, 5, dtype="f"))),
    "empty": (lambda a, b: np.sum(np.sin(a @ b)), (array(3, 0), array(0, 5))),
    "sums over no axis": (
        lambda a: np.sum(vmap(lambda x: np.sum(np.cos(x)) * np.sum(np.cos(x), axis=-1, keepdims=True))(a)),
        (array(3),),
    ),
}  # fmt: skip


def log_sum_exp(x):
    top = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=-1)) + top[..., 0]


@pytest.mark.parametrize("case", CASES)
def test_as_without(case):
    agrees_without("contract", *CASES[case], slack=10)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_difference_pushed_through_a_product_loses_no_digits(offset):
    x, m = array(200, 3) + offset, array(40, 3) + offset
    q = array(40, 3, 3)

    def loss(x, m, q):
        return np.sum(np.einsum("kij,nkj->nki", q, x[:, None] - m) ** 2)

    derivative = grad(loss, (0, 1, 2))
    for _ in range(3):
        got = derivative(x, m, q)
    assert "runtime.center" in derivative.source(x, m, q, fast=True)
    exact = [a.astype(np.longdouble) for a in (x, m, q)]
    gap = exact[0][:, None] - exact[1]
    inner = 2 * np.einsum("kij,nkj->nki", exact[2], gap)
    by_gap = np.einsum("kij,nki->nkj", exact[2], inner)
    expected = by_gap.sum(1), -by_gap.sum(0), np.einsum("nki,nkj->kij", inner, gap)
    with without("contract"):
        plain = grad(loss, (0, 1, 2))
    for mine, theirs, want in zip(got, plain(x, m, q), expected, strict=True):
        worst = np.max(np.abs(mine - want)) / np.max(np.abs(want))
        assert worst < 2 * np.max(np.abs(theirs - want)) / np.max(np.abs(want)) + 1e-15


def test_coordinates_that_are_broadcast_lie_in_a_row():
    def loss(x):
        return np.sum(np.exp(-np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2)))

    x, derivative = array(80, 3), grad(loss)
    for _ in range(3):
        derivative(x)
    assert "runtime.columns(" in derivative.source(x, fast=True)


def test_an_infinite_point_spoils_only_itself():
    def loss(x, m, q):
        return np.sum(np.tanh(np.einsum("kij,nkj->nki", q, x[:, None] - m)))

    x, m, q = array(90, 3), array(30, 3), np.abs(array(30, 3, 3))
    m[4] = np.inf
    derivative = grad(loss, 0)
    for _ in range(3):
        got = derivative(x, m, q)
    with without("contract"):
        np.testing.assert_allclose(got, grad(loss, 0)(x, m, q), rtol=1e-12)


def test_one_product_for_all_components():
    def loss(x, m, q):
        return np.sum(np.einsum("kij,nkj->nki", q, x[:, None] - m) ** 2)

    args = array(900, 3), array(30, 3), array(30, 3, 3)
    derivative = grad(loss, 2)
    derivative(*args)
    code = [line for line in derivative.source(*args, fast=True).splitlines() if "#" not in line]
    assert not any("einsum" in line or "None] - m" in line for line in code)
    assert sum(".dot(" in line for line in code) == 2


def test_rows_are_scaled_once():
    def loss(w, x):
        z = x @ w
        return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0))

    w, x = array(30), array(900, 30)
    derivative = hessian(loss)
    for _ in range(3):
        got = derivative(w, x)
    p = 1 / (1 + np.exp(-x @ w))
    np.testing.assert_allclose(got, x.T @ (x * (p * (1 - p) / len(x))[:, None]), rtol=1e-10, atol=1e-12)
    code = [line for line in derivative.source(w, x, fast=True).splitlines() if "#" not in line]
    assert sum("x.T" in line and "multiply" in line for line in code) == 1
    assert sum(".dot(" in line for line in code) == 2


def test_results_are_in_order_whatever_the_buffers_were():
    def loss(a, b, c):
        return np.sum(np.tanh(np.einsum("kij,nj->nki", a, b)) * np.tanh(c) * np.exp(c))

    args = array(4, 5, 3), array(70, 3), array(70, 4, 5)
    derivative = grad(loss, (0, 1, 2))
    for _ in range(3):
        assert all(g.flags.c_contiguous for g in derivative(*args))


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("written", [lambda x, v: (x.T * v) @ x, lambda x, v: x.T @ (x * v[:, None])])
def test_symmetric_products(written, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2000, 7)).astype(dtype)
    value = value_and_grad(lambda x, v, c: np.sum(c * written(x, v)), argnums=2)
    positive = rng.random(2000).astype(dtype)
    positive[3] = 0.0
    for _ in range(2):
        value(x, positive, np.ones((7, 7), dtype))
    for v in (positive, -positive, positive - dtype(0.5), np.zeros(2000, dtype)):
        found, plain = value(x, v, np.ones((7, 7), dtype))[1], written(x, v)
        np.testing.assert_allclose(found, plain, rtol=0, atol=50 * np.finfo(dtype).eps * np.abs(plain).max())
        if v.min() >= 0 or v.max() <= 0:
            np.testing.assert_array_equal(found, found.T)
    assert "runtime.gram" in value.source(x, positive, np.ones((7, 7), dtype), fast=True)
    for odd in (np.nan, np.inf):
        positive[5] = odd
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(value(x, positive, np.ones((7, 7), dtype))[1], written(x, positive))


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize(("n", "d"), [(20_001, 7), (5_000, 40), (400, 100), (9_000, 9)])
@pytest.mark.parametrize("turned", [True, False])
def test_symmetric_products_of_many_rows(n, d, dtype, turned):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d)).astype(dtype)
    x = np.asfortranarray(x) if turned else x
    for weights in (rng.random(n), -rng.random(n), np.zeros(n), rng.random(n) - 0.5):
        weights = weights.astype(dtype)
        found, plain = runtime.gram(x, weights), (x.T.astype(float) * weights) @ x
        assert found.dtype == dtype
        np.testing.assert_allclose(found, plain, rtol=0, atol=200 * np.finfo(dtype).eps * (1 + np.abs(plain).max()))


def test_stacks_of_products_that_would_have_to_be_moved_stay_stacks():
    rng = np.random.default_rng(0)
    x, b, w = rng.standard_normal((20, 4)), rng.standard_normal(30), rng.standard_normal((30, 2))
    jacobian = jacfwd(lambda v: np.tanh(x @ v + b) @ w)
    at = rng.standard_normal((4, 30))
    expected = jacrev(jacobian.__wrapped__, mode="dynamic")(at)
    for _ in range(3):
        np.testing.assert_allclose(jacobian(at), expected, rtol=1e-10, atol=1e-13)
    assert re.search(r"matmul\(x, np\.eye", jacobian.source(at, fast=True))


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_sums_of_small_products_are_products(dtype):
    """Of what a line before has computed, too, whatever axes are kept: rotations by many angles, shares of a softmax."""
    angles, points, K = array(10, dtype=dtype), array(10, 3, 3, dtype=dtype), array(3, 3, dtype=dtype)
    cases = [
        lambda q, m, k: np.sum(np.sin(q[:, None, None] * k + m)),
        lambda q, m, k: np.sum(np.tanh(m * np.sum(np.exp(m) * m, axis=(1, 2), keepdims=True))),
        lambda q, m, k: np.sum(np.sin(m / np.sum(np.sin(m) * m, axis=2, keepdims=True))),
    ]
    for place, fun in enumerate(cases):
        agrees_without("contract", fun, (angles, points, K), slack=100.0)
        derivative = grad(fun, min(place, 1))
        for _ in range(2):
            derivative(angles, points, K)
        assert derivative.source(angles, points, K, fast=True).count("add_reduce") <= (dtype is np.float32)


def test_sums_of_empty_products():
    fun = lambda x, y: np.sum(np.sin(np.sum(np.sin(x) * y, axis=(1, 2), keepdims=True) * x))
    for shape in ((0, 3, 3), (4, 0, 3), (4, 3, 0)):
        agrees_without("contract", fun, (np.zeros(shape), np.zeros(shape)))


def test_sums_of_products_of_what_was_just_computed_are_products():
    """Below the sizes at which chains run block by block: what comes back to a point that many were measured from."""
    points, center = array(700, 3), array(3)

    def fun(c, x):
        return np.sum(np.log(1.0 + np.linalg.norm(x - c, axis=1)))

    agrees_without("contract", fun, (center, points), slack=100.0)
    derivative = grad(fun)
    for _ in range(2):
        derivative(center, points)
    assert "add_reduce" not in derivative.source(center, points, fast=True)


def test_distances_of_points_that_are_close_do_not_cancel():
    """``|x|^2 - 2 x y + |y|^2`` would, though it is made of products."""
    x = 1e-6 * array(70, 2) + 1e3 * (np.arange(70) % 2)[:, None]

    def fun(x, y):
        return np.sum(np.exp(-1e12 * np.sum((x[:, None] - y) ** 2, axis=-1)))

    args = x, x + 1e-9
    expected, derivative = value_and_grad(fun, mode="dynamic")(*args), value_and_grad(fun)
    for _ in range(3):
        value, slope = derivative(*args)
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-9)


def test_sums_of_numbers_along_an_axis():
    """NumPy has one axis for a number, too."""
    for fun in (lambda x: np.sin((x @ x).sum(axis=0)), lambda x: np.sin(np.sum((x @ x) * x[0], axis=-1))):
        derivative, x = grad(fun), np.array([0.1, 0.2, 0.3])
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x))


@pytest.mark.parametrize("size", [2, 400])
def test_sums_over_what_is_only_broadcast(size):
    def repeated(x, y):
        many = np.broadcast_to(y, (size, *y.shape))
        return np.sum(np.sin(np.tensordot(many, np.sin(x), 1)))

    def spread(x, y):
        return np.sum(np.einsum("ik,i->i", y - x[:, None], np.cos(x)))

    def apart(x, y):
        return np.sum(np.einsum("ik,j->ij", x[:, None] - y, y * 2.0) ** 2)

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(size), rng.standard_normal((3, size))
    for fun, args in ((repeated, (x, y)), (spread, (x, rng.standard_normal(300))), (apart, (x, y[0]))):
        compiled, dynamic = grad(fun), grad(fun, mode="dynamic")
        want = dynamic(*args)
        for _ in range(3):
            np.testing.assert_allclose(compiled(*args), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 4, 3), (1, 3), (80, 70)])
@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: np.var(x, axis=0),
        lambda x: np.std(x, axis=-1, keepdims=True),
        lambda x: np.var(x, ddof=1),
        lambda x: np.std(x, 0, ddof=1),
        lambda x: np.var(x, axis=(0, -1)) if x.ndim > 2 else np.var(x),
        lambda x: np.linalg.norm(x, axis=-1),
        lambda x: np.linalg.norm(x, axis=0, keepdims=True),
        lambda x: np.linalg.norm(x),
        lambda x: np.linalg.norm(x.ravel()),
    ],
)
def test_small_variances_and_norms(reduce, shape, dtype):
    x = np.cos(np.arange(np.prod(shape))).reshape(shape).astype(dtype)
    derivative, dynamic = (value_and_grad(lambda x: np.sum(np.sqrt(reduce(x) + 1)), mode=mode) for mode in ("auto", "dynamic"))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one row, minus one, nothing is left to divide by
        for values in (x, 0 * x, np.full_like(x, np.inf)):
            for _ in range(3):
                for found, expected in zip(derivative(values), dynamic(values), strict=True):
                    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-8)


def test_windows_are_copied_in_long_rows():
    x, w = array(8, 3, 28, 28), array(8, 3, 3, 3)
    loss = lambda w, x: np.sum((np.maximum(np.einsum("bchwij,ocij->bohw", windows(x, (3, 3), (2, 3)), w), 0) - 0.5) ** 2)
    source = grad(loss, (0, 1)).source(w, x, fast=True)
    assert source.count("sliding_window_view") == 1
    assert "transpose((1, 4, 5, 0, 2, 3))" in source
    assert "multiply(c2," not in source  # the square's 2 and the step's half are one


@pytest.mark.parametrize("apart", [0.0, 1e2, 1e6])
def test_gradients_of_kernels_between_points_far_apart(apart):
    """Differences are taken before they are weighted: a kernel leaves those of neighbours, few of all digits of the points."""
    fun = lambda x, c: np.sum(np.exp(-np.sum((x[:, None] - c) ** 2, axis=-1)))
    places = apart * np.where(np.arange(90) % 2, 1.0, -1.0)[:, None]
    x, c = array(90, 3) + places, array(90, 3) + places
    gaps = x.astype(np.longdouble)[:, None] - c
    exact = -2 * np.sum(np.exp(-np.sum(gaps**2, axis=-1, keepdims=True)) * gaps, axis=1)
    derivative = grad(fun)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x, c), exact.astype(float), rtol=0, atol=5e-15 * np.max(np.abs(exact)))


PRODUCTS_OF_SEVERAL = {
    "bilinear": (lambda a, b, w: np.einsum("ni,nj,ijk->nk", a, b, w), (array(900, 4), array(900, 4), array(4, 4, 3))),
    "quadratic": (lambda a, b, w: np.einsum("ni,ij,nj->n", a, w, b), (array(300, 5), array(300, 6), array(5, 6))),
    "factors": (lambda a, b, c: np.einsum("ir,jr,kr->ijk", a, b, c), (array(40, 7), array(24, 7), array(9, 7))),
    "chain of four": (
        lambda a, b, c, d: np.einsum("ij,jk,kl,l->i", a, b, c, d),
        (array(60, 50), array(50, 40), array(40, 30), array(30)),
    ),
    "to a number": (
        lambda a, b, c, d: np.einsum("ij,jk,kl,li->", a, b, c, d),
        (array(60, 50), array(50, 40), array(40, 30), array(30, 60)),
    ),
    "summed away": (lambda a, b, c: np.einsum("ia,ib,jc->abc", a, b, c), (array(500, 3), array(500, 4), array(500, 5))),
    "many": (
        lambda *xs: np.einsum("na,nb,nc,abcd,de,n->ne", *xs),
        (array(200, 2), array(200, 3), array(200, 2), array(2, 3, 2, 3), array(3, 4), array(200)),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS_OF_SEVERAL)
@pytest.mark.parametrize("dtype", [float, np.float32, complex])
def test_products_of_several_are_made_two_by_two(name, dtype):
    fun, args = PRODUCTS_OF_SEVERAL[name]
    args = tuple([x.astype(dtype) for x in args])
    loss = lambda *xs: np.sum(np.abs(fun(*xs)) ** 2)
    wrt = tuple(range(len(args)))
    derivative, plain = grad(loss, wrt), grad(loss, wrt, mode="dynamic")
    for _ in range(3):
        found = derivative(*args)
    # as far from what more digits give as the einsum itself may be
    wide = plain(*[x.astype(np.clongdouble if dtype is complex else np.longdouble) for x in args])
    for one, other in zip(found, wide, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other.astype(dtype), rtol=0, atol=50 * np.finfo(dtype).eps * np.max(np.abs(other)))
    text = derivative.source(*args, fast=True)
    calls = re.findall(r"einsum\('(.*?)->", text)  # comments have other quotes
    assert all(terms.count(",") < 2 for terms in calls)


def test_products_beside_data_lie_as_the_data_do():
    x, w, y = array(3000, 20), array(20, 4), array(3000, 4)
    text = grad(lambda w, x, y: np.mean((x @ w - y) ** 2)).source(w, x, y, fast=True)
    assert "x.dot(w" in text
    a, b, c, t = array(64, 32), array(48, 32), array(24, 32), array(64, 48, 24)
    text = grad(lambda a, b, c, t: np.sum((np.einsum("ir,jr,kr->ijk", a, b, c) - t) ** 2)).source(a, b, c, t, fast=True)
    assert "= a.dot(" in text


def convolved(x, k):
    out = 0.0
    for i in range(3):
        for j in range(3):
            out = out + x[i : i + 26, j : j + 26, None] * k[i, j]
    return np.sum(np.maximum(out, 0.0) ** 2)


def test_parts_with_new_axes_are_multiplied_as_without():
    """Sums over what such a part is multiplied by, too, are products."""
    x, k = array(28, 28), array(3, 3, 8)
    derivative = grad(convolved, (0, 1))
    for _ in range(3):
        for one, other in zip(derivative(x, k), grad(convolved, (0, 1), mode="dynamic")(x, k), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-10)
    assert "add_reduce(" not in derivative.source(x, k, fast=True)


def test_new_axes_of_what_has_none():
    x, v = np.array(0.3), np.array(1.5)
    product = hvp(lambda x: np.sum(np.sin(np.tanh(x)[None])))
    for _ in range(3):
        np.testing.assert_allclose(product(x, v), hvp(lambda x: np.sin(np.tanh(x)))(x, v))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_derivatives_of_products_of_many_arrays(mode):
    """... have an order of their own, however the function multiplies them."""
    rng = np.random.default_rng(0)
    a, b, c, x = rng.normal(size=(12, 9)), rng.normal(size=(9, 9)), rng.normal(size=(9, 12)), rng.normal(size=(40, 12))
    derivative = grad(
        lambda a, b, c, x: np.sum(np.tanh(np.einsum("ij,jk,kl,nl->ni", a, b, c, x)) ** 2), (0, 1, 2, 3), mode=mode
    )
    by_hand = grad(lambda a, b, c, x: np.sum(np.tanh(x @ (a @ b @ c).T) ** 2), (0, 1, 2, 3), mode="dynamic")(a, b, c, x)
    for _ in range(3):
        for found, expected in zip(derivative(a, b, c, x), by_hand, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_differences_of_points_far_apart_keep_their_digits():
    """In single precision, which has none to spare."""
    rng = np.random.default_rng(0)
    centers = 1e4 * rng.normal(size=(40, 5))
    x = np.repeat(centers, 12, axis=0) + rng.normal(size=(480, 5))
    r = np.repeat(np.eye(40), 12, axis=0) * rng.random(480)[:, None]
    x, m, r = (array.astype("f4") for array in (x, centers + 0.1, r))
    fun = lambda x, m, r: np.sum(np.sin(np.einsum("ik,ikd->kd", r, x[:, None] - m)))
    expected = fun(*[array.astype(np.longdouble) for array in (x, m, r)])
    derivative = value_and_grad(fun)
    for _ in range(3):
        assert derivative(x, m, r)[0] == pytest.approx(float(expected), rel=1e-5)


def test_long_rows_are_summed_in_pairs():
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 2, 400_000)).astype("f4")
    fun = lambda x, y: np.sum(np.sum(x * y, axis=1) ** 2) + np.sum(np.sum(x * x, axis=-1))
    exact = float(fun(x.astype("f8"), y.astype("f8")))
    derivative = value_and_grad(fun)
    for _ in range(3):
        assert derivative(x, y)[0] == pytest.approx(exact, rel=1e-6)


APART = {
    "square": lambda x, m, r, c: np.sum(np.einsum("nkd,nk->kd", x[:, None] - m, r) ** 2),
    "negative": lambda x, m, r, c: np.sum(np.einsum("nkd,kd->nk", x[:, None] - m, -c)),
    "thrice": lambda x, m, r, c: np.sum(np.sin(np.einsum("nkd,kd->nk", x[:, None] + m, 3.0 * c))),
    "quotient": lambda x, m, r, c: np.sum(np.cos(np.einsum("nkd,nk->nd", x[:, None] - m, r / 7.0))),
    "nothing": lambda x, m, r, c: np.sum(np.sin(np.einsum("j,ij->ij", r[0], x[:, :1] - m[:, 0]))),
    "alone": lambda x, m, r, c: np.sum(np.einsum("ij,ij->j", r, x[:, :1] - m[None, :, 0]) ** 2),
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("d", [2, 3, 12])
def test_products_with_differences_of_points_keep_their_factors(name, d):
    fun, rng = APART[name], np.random.default_rng(d)
    args = rng.normal(size=(60, d)), rng.normal(size=(50, d)), rng.normal(size=(60, 50)), rng.normal(size=(50, d))
    derivative, dynamic = value_and_grad(fun, (0, 1, 2, 3)), value_and_grad(fun, (0, 1, 2, 3), mode="dynamic")
    expected = dynamic(*args)
    for _ in range(3):
        value, slopes = derivative(*args)
        assert value == pytest.approx(fun(*args), rel=1e-11)
        for mine, theirs in zip(slopes, expected[1], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)
    assert derivative.cache_info().hits >= 1
