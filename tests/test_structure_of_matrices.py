"""What is known of matrices: the derivatives of likelihoods by way of Cholesky, against the same without it."""

import re
import threading

import numpy as np
import pytest

from symgrad import grad, jacobian, runtime, value_and_grad, without

RNG = np.random.default_rng(0)


def kernel(theta, x):
    distance = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2)
    return np.exp(theta[0] - 0.5 * distance / np.exp(theta[1])) + np.exp(theta[2]) * np.eye(len(x))


def likelihood(theta, x, y):
    chol = np.linalg.cholesky(kernel(theta, x))
    alpha = np.linalg.solve(chol, y)
    return 0.5 * np.sum(alpha**2) + np.sum(np.log(np.diagonal(chol)))


def both_ways(theta, x, y):
    chol = np.linalg.cholesky(kernel(theta, x))
    alpha = np.linalg.solve(chol.T, np.linalg.solve(chol, y))
    return y @ alpha + 2 * np.sum(np.log(np.diag(chol)))


def halves(theta, x, y):
    chol = np.linalg.cholesky(kernel(theta, x))
    alpha = np.linalg.solve(chol.T, np.linalg.solve(chol, y))
    return -0.5 * y.T @ alpha - np.sum(np.log(np.diag(chol))) - 0.5 * len(x) * np.log(2 * np.pi)


def sides(theta, x, y):
    chol = np.linalg.cholesky(kernel(theta, x))
    alpha = np.linalg.solve(chol.T, np.linalg.solve(chol, y))
    return 0.5 * np.cos(y) @ alpha - 3.0 * np.sum(alpha * y) + np.sum(np.linalg.solve(chol, -2.0 * y))


def weighted(theta, x, y):
    chol = np.linalg.cholesky(kernel(theta, x))
    return np.sum(np.sin(np.diagonal(chol))) + np.sum(np.log(np.diagonal(chol)) * y)


def whole(theta, x, y):
    chol = np.linalg.cholesky(kernel(theta, x))
    return np.sum(np.sin(chol) @ y)


def whitened(theta, x, y):
    chol = np.linalg.cholesky(kernel(theta, x))
    return np.sum(np.cos(np.linalg.solve(chol, y)))


def several(theta, x, y):
    chol = np.linalg.cholesky(kernel(theta, x))
    alpha = np.linalg.solve(chol, np.outer(y, np.cos(y))[:, :2])
    return np.sum(alpha**2) + np.sum(np.log(np.diagonal(chol)))


def inputs(n, d=3):
    x = RNG.uniform(-2.0, 2.0, (n, d))
    return np.array([0.3, 0.1, -1.0]), x, np.sin(x).sum(axis=1)


@pytest.mark.parametrize("fun", [likelihood, both_ways, halves, sides, weighted, whole, whitened, several])
@pytest.mark.parametrize("n", [2, 7, 50])
@pytest.mark.parametrize("argnums", [0, (0, 1, 2)])
def test_as_without(fun, n, argnums):
    args = inputs(n)
    with without("structure", "contract"):
        plain = value_and_grad(fun, argnums)
    known = value_and_grad(fun, argnums)
    for _ in range(3):
        want, got = plain(*args), known(*args)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
    for mine, theirs in zip(got[1] if argnums else got[1:], want[1] if argnums else want[1:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.max(np.abs(theirs)))


@pytest.mark.parametrize("fun", [likelihood, both_ways, halves])
def test_a_likelihood_needs_one_inverse(fun):
    args = inputs(40)
    derivative = grad(fun)
    derivative(*args)
    code = "\n".join(line.partition("#")[0] for line in derivative.source(*args, fast=True).splitlines())
    assert "runtime.inverse(" in code
    assert code.count(".dot(") == 1 + code.count("[:, None].dot(")
    assert "solve" not in code
    assert "tril" not in code


def chain(n):
    """A point that ``n`` joints move."""

    def fun(angles):
        turned, at = np.eye(3), np.zeros(3)
        for k in range(n):
            c, s = np.cos(angles[k]), np.sin(angles[k])
            joint = [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]] if k % 2 else [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]
            turned = turned @ np.array(joint)
            at = at + turned @ np.array([1.0, 0.5, 0.25])
        return np.sum((at - 1.0) ** 2)

    return fun


def test_chains_of_products_stay_as_long_as_they_are():
    products = {}
    for n in (20, 40):
        angles = np.linspace(-0.5, 0.7, n)
        with without("structure"):
            plain = grad(chain(n))
        with without("scalarize"):
            derivative = grad(chain(n))
        for _ in range(3):
            np.testing.assert_allclose(derivative(angles), plain(angles), rtol=1e-11)
        products[n] = len(re.findall(r"dot\(|multiply\(", derivative.source(angles, fast=True)))
    assert products[40] < 2.1 * products[20]  # what came back from each joint went back through all before it by itself


def test_what_is_not_positive_definite_is_still_refused():
    def fun(k, y):
        chol = np.linalg.cholesky(k)
        return np.sum(np.linalg.solve(chol, y) ** 2) + np.sum(np.log(np.diagonal(chol)))

    derivative, y = grad(fun), np.ones(5)
    for _ in range(3):
        derivative(np.eye(5), y)
    with pytest.raises(np.linalg.LinAlgError):
        derivative(-np.eye(5), y)


def test_only_the_lower_triangle_is_decomposed():
    def fun(k):
        return np.sum(np.sin(np.linalg.cholesky(k)))

    k = kernel(*inputs(20)[:2])
    k[0, -1] = 7.0
    values = value_and_grad(fun)
    for _ in range(3):
        value, _ = values(k)
    assert "runtime.cholesky(" in values.source(k, fast=True)
    np.testing.assert_allclose(value, fun(k), rtol=1e-13)


def test_what_a_decision_hangs_on_is_decomposed_by_numpy():
    def fun(k):
        chol = np.linalg.cholesky(k)
        return np.sum(chol) if chol[0, 0] > 1.0 else np.sum(chol**2)

    derivative, k = grad(fun), kernel(*inputs(20)[:2])
    for _ in range(3):
        derivative(k)
    assert "np.linalg.cholesky(" in derivative.source(k, fast=True)


@pytest.mark.parametrize("eye", [lambda x: np.eye(len(x)), lambda x: np.eye(len(x), like=x)])
def test_a_sum_along_the_diagonal_is_a_trace(eye):
    def fun(s, x):
        return np.sum(np.sin(x + s * eye(x)))

    x, derivative = RNG.standard_normal((40, 40)), grad(fun)
    for _ in range(3):
        got = derivative(0.5, x)
    assert ".trace(" in derivative.source(0.5, x, fast=True)
    np.testing.assert_allclose(got, np.trace(np.cos(x + 0.5 * np.eye(40))), rtol=1e-12)


@pytest.mark.parametrize("eye", [np.eye, np.identity])
@pytest.mark.parametrize("turned", [True, False])
def test_what_is_added_to_the_diagonal(eye, turned):
    def fun(s, x):
        k = np.sin(x.T if turned else x) + s * eye(len(x))
        return np.sum(np.linalg.solve(k, np.cos(x) @ k))

    x, derivative = RNG.standard_normal((40, 40)), value_and_grad(fun, (0, 1))
    for _ in range(3):
        got = derivative(50.0, x)
    assert "runtime.add_to_diagonal(" in derivative.source(50.0, x, fast=True)
    want = value_and_grad(fun, (0, 1), mode="dynamic")(50.0, x)
    for one, other in zip([got[0], *got[1]], [want[0], *want[1]], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("number", [0.5, np.inf, np.nan])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_on_the_diagonal(number, order):
    x = np.asarray(RNG.standard_normal((5, 5)), order=order)
    with np.errstate(invalid="ignore"):
        want = x + number * np.eye(5)
        before = x.copy()
        np.testing.assert_array_equal(runtime.add_to_diagonal(x, number), want)
        np.testing.assert_array_equal(x, before)
        assert runtime.add_to_diagonal(x, number, x) is x
    np.testing.assert_array_equal(x, want)


def test_no_digits_are_lost():
    theta, x, y = inputs(30, 1)
    theta[2] = -9.0  # nearly singular
    derivative = grad(likelihood)
    for _ in range(3):
        got = derivative(theta, x, y)
    with without():
        plain = grad(likelihood)(theta, x, y)
    exact = _exact(theta, x, y)
    assert np.max(np.abs(got - exact)) <= 10 * np.max(np.abs(plain - exact)) + 1e-12 * np.max(np.abs(exact))


def _exact(theta, x, y):
    """The gradient in long doubles."""
    theta, x, y = (a.astype(np.longdouble) for a in (theta, x, y))
    distance = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2)
    smooth = np.exp(theta[0] - 0.5 * distance / np.exp(theta[1]))
    k = smooth + np.exp(theta[2]) * np.eye(len(x), dtype=np.longdouble)
    inverse = np.linalg.inv(k.astype(float)).astype(np.longdouble)
    for _ in range(6):  # Newton's iteration
        inverse = inverse @ (2 * np.eye(len(x), dtype=np.longdouble) - k @ inverse)
    alpha = inverse @ y
    g = 0.5 * (inverse - np.outer(alpha, alpha))
    parts = (g * smooth, g * smooth * 0.5 * distance / np.exp(theta[1]), np.diag(np.diag(g)) * np.exp(theta[2]))
    return np.array([np.sum(part) for part in parts])


@pytest.mark.parametrize("scipy", [True, False])
@pytest.mark.parametrize("into", ["other", "itself", "itself, turned", None])
@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("size", [1, 6, 40, 41, 64, 150])
def test_factor_and_inverse(monkeypatch, size, dtype, into, scipy):
    k = kernel(*inputs(size)[:2]).astype(dtype)
    if not scipy:
        monkeypatch.setattr(runtime, "_lapack", lambda name, char: None)
    itself = k.copy(order="F" if into == "itself, turned" else "C")
    out = [np.full_like(k, np.nan) for _ in range(2)] if into == "other" else [itself, itself] if into else [None, None]
    factor = runtime.cholesky(itself, out[0])
    known = factor.copy()
    np.testing.assert_allclose(factor, np.linalg.cholesky(k), rtol=0, atol=1e3 * np.finfo(dtype).eps)
    inverse = runtime.inverse(factor, out[1])
    assert (factor is itself is inverse) == (into or "").startswith("itself")
    np.testing.assert_array_equal(factor, inverse if factor is inverse else known)
    plain = np.linalg.inv(k.astype(float))
    assert inverse.dtype == dtype
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(inverse, plain, rtol=0, atol=10 * np.linalg.cond(k) * np.finfo(dtype).eps * np.abs(plain).max())


@pytest.mark.parametrize("scipy", [True, False])
@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("size", [1, 40, 41, 64, 150])
def test_inverses_of_factors(monkeypatch, size, dtype, scipy):
    if not scipy:
        monkeypatch.setattr(runtime, "_lapack", lambda name, char: None)
    factor = np.linalg.cholesky(kernel(*inputs(size)[:2])).astype(dtype)
    kept, plain = factor.copy(), np.linalg.inv(factor.astype(float))
    bound = 10 * np.linalg.cond(factor) * np.finfo(dtype).eps * np.abs(plain).max()
    for out in (None, np.full_like(factor, np.nan), factor):
        found = runtime.inverse_triangle(factor, out)
        assert found.dtype == dtype
        assert out is None or found is out
        np.testing.assert_array_equal(factor, found if out is factor else kept)
        np.testing.assert_array_equal(found, np.tril(found))
        np.testing.assert_allclose(found, plain, rtol=0, atol=bound)


def test_derivatives_of_factors_invert_triangles():
    m, w = RNG.normal(size=(48, 48)), RNG.normal(size=(48, 48))
    fun = lambda a: np.sum(np.linalg.cholesky(a) * w)
    a, derivative = m @ m.T + 9 * np.eye(48), grad(fun)
    for _ in range(3):
        found = derivative(a)
    assert "runtime.inverse_triangle(" in derivative.source(a, fast=True)
    np.testing.assert_allclose(found, grad(fun, mode="dynamic")(a), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("scipy", [True, False])
@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("shape", [(6,), (150,), (150, 3), (41, 1)])
def test_triangular_systems(monkeypatch, shape, dtype, scipy):
    if not scipy:
        monkeypatch.setattr(runtime, "_lapack", lambda name, char: None)
    factor = np.linalg.cholesky(kernel(*inputs(shape[0])[:2])).astype(dtype)
    b = RNG.standard_normal(shape).astype(dtype)
    kept = b.copy()
    for turned, matrix in ((False, factor), (True, factor.T)):
        x = runtime.solve_triangle(factor, b, turned)
        assert x.dtype == dtype
        np.testing.assert_array_equal(b, kept)
        bound = 10 * np.linalg.cond(factor) * np.finfo(dtype).eps
        np.testing.assert_allclose(x, np.linalg.solve(matrix.astype(float), b), rtol=0, atol=bound * np.abs(x).max())


def mahalanobis(m, b):
    k = m @ m.T + 9 * np.eye(len(m))
    z = np.linalg.solve(np.linalg.cholesky(k), b)
    return np.sum(z**2) + np.sum(np.sin(z))


def whitened(m, b):
    chol = np.linalg.cholesky(m @ m.T + 9 * np.eye(len(m)))
    return np.sum(np.cos(np.linalg.solve(chol.T, b))) + np.sum(np.log(np.diagonal(chol)))


def solved(m, b):
    k = m @ m.T + 9 * np.eye(len(m))
    return np.sum(np.sin(np.linalg.solve(k, b))) + np.sum(np.cos(np.linalg.cholesky(k)))


@pytest.mark.parametrize("shape", [(50,), (50, 4)])
@pytest.mark.parametrize("fun", [mahalanobis, whitened, solved])
def test_systems_that_a_factor_solves(fun, shape):
    args = RNG.standard_normal((50, 50)) / 5, RNG.standard_normal(shape)
    both = value_and_grad(fun, argnums=(0, 1))
    with without("structure"):
        plain = value_and_grad(fun, argnums=(0, 1))
    for _ in range(3):
        (value, found), (expected, wanted) = both(*args), plain(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(b).max())
    assert "solve_triangle" in both.source(*args, fast=True)


# -- systems of one matrix -----------------------------------------------------------------------------------------


def kriging(theta, x, y):
    k = kernel(theta, x)
    return 0.5 * y @ np.linalg.solve(k, y) + 0.5 * np.linalg.slogdet(k)[1]


def lopsided(theta, x, y):
    """Not symmetric, of negative determinant; with several right-hand sides, and the transpose."""
    a = np.sin(np.outer(y, np.arange(len(x)))) + kernel(theta, x)[::-1] * np.cos(theta[1])
    sign, log = np.linalg.slogdet(a)
    both = np.linalg.solve(a, np.stack([y, y**2], axis=1))
    return sign * log + np.sum(np.sin(both)) + np.sum(np.linalg.solve(a.T, y) ** 2) + np.sum(np.linalg.inv(a) ** 3)


@pytest.mark.parametrize("fun", [kriging, lopsided])
@pytest.mark.parametrize("scipy", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_one_decomposition_for_all_systems_of_a_matrix(fun, scipy, dtype, monkeypatch):
    if not scipy:
        monkeypatch.setattr(runtime, "_lapack", lambda name, char: None)
    for n in (3, 8, 9):
        args = tuple([arg.astype(dtype) for arg in inputs(n)])
        with without("structure", "scalarize"):
            plain = value_and_grad(fun, (0, 1, 2))
        with without("scalarize"):
            derivative = value_and_grad(fun, (0, 1, 2))
        for _ in range(3):
            (value, gradients), (other, others) = derivative(*args), plain(*args)
        tolerance = 1e-9 if dtype == "f8" else 2e-2
        np.testing.assert_allclose(value, other, rtol=tolerance)
        for got, want in zip(gradients, others, strict=True):
            assert got.dtype == want.dtype == dtype
            assert got.flags.c_contiguous
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.max(np.abs(want)))
        source = re.sub("#.*", "", derivative.source(*args, fast=True))
        assert source.count("runtime.lu(") == (n > 8)  # small ones are decomposed as soon as they are called for
        assert "np.linalg" not in source or dtype == "f4"  # the kernel is of double precision


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("u", "w"), [(1e-200, 1e200), (1e200, 1e-200)])
def test_outer_products_are_multiplied_in_the_users_order(u, w):
    """With another vector first, numbers would leave the range, or come back into it."""

    def fun(u, w, m):
        return np.sum(np.outer(u, w) @ m) + np.sum((np.outer(w, u) + np.eye(9)) @ m) + np.sum(m @ np.outer(u, w))

    args = np.full(9, u), np.full(9, w), np.full((9, 9), 1e200)
    derivative = value_and_grad(fun)
    for _ in range(4):
        np.testing.assert_allclose(derivative(*args)[0], fun(*args), rtol=1e-12)


DECIDING = {
    "of a factor": lambda k, low, y: np.linalg.solve(low, y)[20],
    "of a factor, turned": lambda k, low, y: np.linalg.solve(low.T, y)[20],
    "of both": lambda k, low, y: np.linalg.solve(low.T, np.linalg.solve(low, y))[20],
    "of the matrix": lambda k, low, y: np.linalg.solve(k, y)[20] * low[0, 0],
    "an inverse": lambda k, low, y: np.linalg.inv(low)[20, 10],
    "an inverse times": lambda k, low, y: (np.linalg.inv(low) @ y)[20],
}


@pytest.mark.parametrize("name", DECIDING)
def test_systems_that_a_branch_looks_at_are_solved_as_written(name):
    def fun(k, y, c):
        low = np.linalg.cholesky(k)
        v = DECIDING[name](k, low, y)
        return v + np.sum(np.linalg.solve(low, y)) if v >= c else 2.0 * v

    rng, derivative = np.random.default_rng(0), value_and_grad(fun)
    for _ in range(8):
        a, y = rng.normal(size=(40, 40)), rng.normal(size=40)
        k = a @ a.T + 40 * np.eye(40)
        v = float(DECIDING[name](k, np.linalg.cholesky(k), y))
        for c in (v, float(np.nextafter(v, np.inf))):
            np.testing.assert_allclose(derivative(k, y, c)[0], fun(k, y, c), rtol=1e-9)


@pytest.mark.parametrize("scipy", [True, False])
def test_singular_systems_are_refused_as_ever(scipy, monkeypatch):
    if not scipy:
        monkeypatch.setattr(runtime, "_lapack", lambda name, char: None)

    def fun(a, b):
        return np.sum(np.linalg.solve(a, b)) + np.linalg.slogdet(a)[1]

    derivative = grad(fun)
    for _ in range(3):
        derivative(np.eye(20) * 2, np.ones(20))
    assert "runtime.lu(" in derivative.source(np.eye(20), np.ones(20), fast=True)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        derivative(np.ones((20, 20)), np.ones(20))
    spoilt = np.eye(20)
    spoilt[3, 4] = np.nan
    assert np.isnan(derivative(spoilt, np.ones(20))).any()


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (9, 9), (5, 3, 3), (0, 2, 2)])
@pytest.mark.parametrize("dtype", [float, complex])
def test_kernels_are_those_of_numpy(shape, dtype):
    a = RNG.standard_normal(shape).astype(dtype)
    a = (a + 1j * RNG.standard_normal(shape) if dtype is complex else a)[..., ::-1, :]
    k = a @ np.swapaxes(a.conj(), -1, -2) + np.eye(shape[-1])
    for b in (RNG.standard_normal(shape[-1]).astype(dtype), RNG.standard_normal((*shape[:-1], 2)).astype(dtype)):
        np.testing.assert_array_equal(runtime.solve(a, b), np.linalg.solve(a, b))
    for kernel, function, x in ((runtime.inv, np.linalg.inv, a), (runtime.lower_cholesky, np.linalg.cholesky, k)):
        out = np.empty_like(x)
        np.testing.assert_array_equal(kernel(x, out), function(x))
        assert kernel(x, out) is out


def test_kernels_refuse_what_numpy_refuses():
    """In threads that began without them, too, and whatever is done about errors elsewhere."""
    singular, spoilt, results = np.ones((2, 2)), np.array([[np.nan, 1.0], [1.0, 2.0]]), []

    def work():
        with np.errstate(all="raise"):
            for _ in range(50):
                for call, fault in (
                    (lambda: runtime.inv(singular), "Singular matrix"),
                    (lambda: runtime.solve(singular, np.ones(2)), "Singular matrix"),
                    (lambda: runtime.lower_cholesky(-np.eye(3)), "Matrix is not positive definite"),
                ):
                    with pytest.raises(np.linalg.LinAlgError, match=fault):
                        call()
                np.testing.assert_array_equal(runtime.inv(spoilt), np.linalg.inv(spoilt))
                np.testing.assert_array_equal(runtime.inv(np.eye(2) * 1e-320), np.linalg.inv(np.eye(2) * 1e-320))
        results.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    assert len(results) == 5


def test_triangular_systems_of_scipys_are_known_to_be():
    """The derivative of a Gaussian process's likelihood comes down to one inverse, by whatever name its factor is used."""
    linalg = pytest.importorskip("symgrad.scipy.linalg")
    x, y = np.random.default_rng(0).normal(size=(40, 2)), np.random.default_rng(1).normal(size=40)
    squares = np.sum((x[:, None] - x) ** 2, axis=-1)

    def kernel(p):
        return np.exp(p[0] - squares * np.exp(p[1])) + np.exp(p[2]) * np.eye(40)

    def by_numpy(p):
        factor = np.linalg.cholesky(kernel(p))
        return y @ np.linalg.solve(factor.T, np.linalg.solve(factor, y)) / 2 + np.sum(np.log(np.diag(factor)))

    def by_triangles(p):
        factor = np.linalg.cholesky(kernel(p))
        half = linalg.solve_triangular(factor, y, lower=True)
        return y @ linalg.solve_triangular(factor.T, half) / 2 + np.sum(np.log(np.diag(factor)))

    def turned(p):
        factor = linalg.cholesky(kernel(p))
        half = linalg.solve_triangular(factor, y, trans="T")
        return half @ half / 2 + np.sum(np.log(np.diag(factor)))

    def by_cho_solve(p):
        factor = linalg.cho_factor(kernel(p))
        return y @ linalg.cho_solve(factor, y) / 2 + np.sum(np.log(np.diag(factor[0])))

    p = np.array([0.1, 0.2, -1.0])
    wanted = grad(by_numpy, mode="dynamic")(p)
    for fun in (by_numpy, by_triangles, turned, by_cho_solve):
        derivative = grad(fun)
        for _ in range(3):
            np.testing.assert_allclose(derivative(p), wanted, rtol=1e-9)
        assert "runtime.inv(" not in derivative.source(p, fast=True)
        assert derivative.source(p, fast=True).count("tril") == 0


def densities(chol, mean, x):
    """Of points under Gaussian distributions: one system of many right-hand sides each."""
    total = 0.0
    for k in range(len(mean)):
        lower = np.linalg.cholesky(chol[k] @ chol[k].T + np.eye(chol.shape[1]))
        z = np.linalg.solve(lower, (x - mean[k]).T)
        total = total + np.exp(-0.5 * np.sum(z**2, axis=0) - np.sum(np.log(np.diag(lower))))
    return np.sum(np.log(total))


def general(a, mean, x):
    """By matrices that are no triangles."""
    total = 0.0
    for k in range(len(mean)):
        z = np.linalg.solve(a[k] + 3 * np.eye(a.shape[1]), (x - mean[k]).T)
        total = total + np.sum(np.tanh(z), axis=0)
    return np.sum(total**2)


@pytest.mark.parametrize("fun", [densities, general])
@pytest.mark.parametrize("shape", [(3, 4, 500), (2, 12, 300), (2, 3, 8)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_systems_of_many_right_hand_sides(fun, shape, dtype):
    """What comes back is multiplied first, and solved for then: fewer columns."""
    many, d, n = shape
    rng = np.random.default_rng(0)
    derivative, dynamic = grad(fun, (0, 1, 2)), grad(fun, (0, 1, 2), mode="dynamic")
    for _ in range(3):
        args = [rng.normal(size=size) for size in ((many, d, d), (many, d), (n, d))]
        for found, expected in zip(derivative(*[arg.astype(dtype) for arg in args]), dynamic(*args), strict=True):
            assert found.dtype == dtype
            tolerance = 1e-10 if dtype == np.float64 else 2e-3
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    if fun is densities and d == 4:
        before, after = grad(fun, (0, 1)).source(*args, fast=True).split("# backward")
        assert before.count("runtime.solve_triangle(") == many
        assert "runtime.solve_triangle(" not in after


@pytest.mark.parametrize("condition", [1.0, 30.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("triangular", [False, True])
def test_many_systems_of_a_small_matrix(condition, triangular):
    """By the inverse, with a step of refinement: as exact as one by one."""
    rng = np.random.default_rng(0)
    u, _, v = np.linalg.svd(rng.normal(size=(6, 6)))
    a = (u * np.logspace(0, -np.log10(condition), 6)) @ v
    if triangular:
        a = np.linalg.cholesky(a @ a.T + np.eye(6) / condition**2)
    solve = runtime.solve_triangle if triangular else runtime.solve
    for b in (rng.normal(size=(6, 400)), a @ rng.normal(size=(6, 400))):
        found, expected = solve(a, b), np.linalg.solve(a, b)
        scale = np.linalg.norm(expected, axis=0) * np.linalg.cond(a)
        assert np.all(np.linalg.norm(found - expected, axis=0) < 20 * np.finfo(float).eps * scale)
    if not triangular:
        b[2, 5] = np.inf
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(np.isfinite(solve(a, b)), np.isfinite(np.linalg.solve(a, b)))
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            solve(np.zeros((6, 6)), b)


def test_jacobians_of_solutions():
    """Of which a pass over many cotangents has stacks of right-hand sides."""
    fun = lambda a, b: np.linalg.solve(a, b)
    a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.arange(800.0).reshape(2, 400)
    for columns in (2, 400):
        derivative = jacobian(fun)
        for _ in range(3):
            found = derivative(a, b[:, :columns])
        np.testing.assert_allclose(found, jacobian(fun, mode="dynamic")(a, b[:, :columns]), rtol=1e-12)


SYMMETRIC = {  # and how many products of matrices are left
    "squares": (lambda x: np.sum(np.sin(x @ x.T)), 2),
    "kernels": (lambda x: np.sum(np.tanh(np.exp(-np.sum((x[:, None] - x[None]) ** 2, axis=-1)) @ x)), None),
    "columns": (lambda x: np.sum(np.sum(np.sin(x @ x.T), axis=0) * np.sum(np.cos(x @ x.T), axis=1)), None),
    "powers": (lambda x: np.sum(np.sin(x @ ((x[0][:, None] - x[1]) ** 2 + (x[1][:, None] - x[0]) ** 2))), None),
    "no powers": (lambda x: np.sum(np.sin(x @ ((x[0][:, None] - x[1]) ** 2 + (x[1][:, None] - x[0]) ** 4))), None),
    "no largest": (lambda x: np.sum(np.sin(x @ np.maximum((x[0][:, None] - x[1]) ** 2, (x[1][:, None] - x[0]) ** 4))), None),
    "not at all": (lambda x: np.sum(np.sin(x @ x.T * np.arange(40.0))), 3),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_products_with_symmetric_matrices(name):
    fun, count = SYMMETRIC[name]
    x = np.cos(np.arange(1600.0)).reshape(40, 40)
    derivative = grad(fun)
    for _ in range(3):
        found = derivative(x)
    np.testing.assert_allclose(found, grad(fun, mode="dynamic")(x), rtol=1e-10, atol=1e-11)
    assert count in (None, len(re.findall(r"\.dot\(|matmul\(", str(derivative.source(x, fast=True)))))


MIXED = {
    "outer": lambda x, y, v: np.sum(np.outer(v, y) @ x),
    "turned": lambda x, y, v: np.sum(x @ np.outer(y, v)),
    "triangle": lambda x, y, v: np.sum(np.linalg.solve(np.linalg.cholesky(x), v)),
    "factor": lambda x, y, v: np.sum(np.linalg.solve(x, v)) + np.sum(np.linalg.cholesky(x)),
}


@pytest.mark.parametrize("name", MIXED)
def test_matrices_and_vectors_of_several_dtypes(name):
    rng, fun = np.random.default_rng(0), MIXED[name]
    x = (4 * np.eye(50) + 0.1).astype("f4") * (1 if name in ("triangle", "factor") else 1e25)
    args = x, (1e25 * rng.normal(size=50)).astype("f4"), rng.normal(size=50) * (1 if x[0, 0] < 9 else 1e-40)
    derivative, dynamic = (value_and_grad(fun, (0, 1, 2), mode=mode) for mode in ("auto", "dynamic"))
    for _ in range(3):
        (value, slopes), (expected, others) = derivative(*args), dynamic(*args)
        assert value.dtype == fun(*args).dtype == np.float64
        assert value == pytest.approx(expected, rel=1e-6)
        for got, want in zip(slopes, others, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.max(np.abs(want)))


def test_no_system_at_all():
    derivative = value_and_grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), (0, 1))
    for _ in range(3):
        value, slopes = derivative(np.zeros((0, 3, 3)), np.zeros((0, 3, 600)))
    assert value == 0.0
    assert [slope.shape for slope in slopes] == [(0, 3, 3), (0, 3, 600)]


LENT = {
    "likelihood": lambda k, v: v @ np.linalg.solve(k, v) + 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(k)))),
    "both": lambda k, v: np.sum(np.linalg.solve(np.linalg.cholesky(k).T, np.linalg.solve(np.linalg.cholesky(k), v))),
    "turned": lambda k, v: (
        np.sum(np.sin(np.linalg.cholesky(k).T @ np.linalg.solve(k, v))) + np.sum(np.linalg.solve(np.linalg.cholesky(k), v))
    ),
    "inverse": lambda k, v: (
        np.sum(np.sin(np.linalg.inv(np.linalg.cholesky(k)).T @ np.linalg.solve(np.linalg.cholesky(k), v)))
        + np.sum(np.linalg.solve(k, v))
    ),
}


@pytest.mark.parametrize("name", LENT)
@pytest.mark.parametrize("size", [3, 9, 50])
def test_factors_know_one_triangle_of_a_matrix(name, size):
    """Systems of a matrix that may not be symmetric are not solved by it."""
    rng, fun = np.random.default_rng(0), LENT[name]
    args = 4 * np.eye(size) + rng.normal(size=(size, size)) / size, rng.normal(size=size)
    derivative, dynamic = (value_and_grad(fun, (0, 1), mode=mode) for mode in ("auto", "dynamic"))
    for _ in range(3):
        (value, slopes), (_, others) = derivative(*args), dynamic(*args)
        assert value == pytest.approx(fun(*args), rel=1e-10)
        for got, want in zip(slopes, others, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)
