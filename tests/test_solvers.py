"""SciPy's solvers take derivatives as they are: no adapter between them, nothing traced anew on the way."""

import numpy as np
import pytest

pytest.importorskip("scipy")
import scipy.integrate as si
import scipy.optimize as so

from symgrad import flatten, grad, hessian, hvp, jacfwd, jacobian, jacrev, value_and_grad
from symgrad.sparse import sparse_hessian, sparse_jacobian

START = np.array([0.8, 0.7, 0.6, 0.5])


def rosenbrock(x, a=1.0):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)


@pytest.mark.parametrize("method", ["CG", "BFGS", "L-BFGS-B", "SLSQP"])
def test_minimize(method):
    both = value_and_grad(rosenbrock)
    found = so.minimize(both, START, args=(1.0,), jac=True, method=method, options={"maxiter": 500})
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)
    assert both.cache_info().misses == 2
    assert both.cache_info().hits > 10


@pytest.mark.parametrize("method", ["Newton-CG", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr"])
def test_minimize_with_hessian(method):
    found = so.minimize(value_and_grad(rosenbrock), np.array([0.99, 0.98]), jac=True, hess=hessian(rosenbrock), method=method)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"])
def test_minimize_with_hessian_products(method):
    product = hvp(rosenbrock)
    found = so.minimize(value_and_grad(rosenbrock), START, args=(1.0,), jac=True, hessp=product, method=method)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)
    assert product.cache_info().misses <= 4  # trust-constr leaves args out at times


def test_minimize_with_sparse_hessian():
    found = so.minimize(
        value_and_grad(rosenbrock), np.full(50, 0.7), jac=True, hess=sparse_hessian(rosenbrock), method="trust-constr"
    )
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)


def test_constraints():
    circle = {"type": "eq", "fun": lambda x: x @ x - 1.0}
    circle["jac"] = grad(circle["fun"])
    found = so.minimize(value_and_grad(lambda x: np.sum(x)), np.array([0.5, -0.9]), jac=True, constraints=circle)
    np.testing.assert_allclose(found.x, -np.sqrt(0.5), atol=1e-6)


TIMES = np.linspace(0.0, 3.0, 20)
MEASURED = 2.0 * np.exp(-1.3 * TIMES) + 0.5


def residuals(p, t, y):
    return p[0] * np.exp(-p[1] * t) + p[2] - y


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method):
    slope = jacobian(residuals)
    found = so.least_squares(residuals, np.ones(3), jac=slope, args=(TIMES, MEASURED), method=method)
    np.testing.assert_allclose(found.x, [2.0, 1.3, 0.5], atol=1e-6)
    assert slope.cache_info().misses == 2


def test_least_squares_with_sparse_jacobian():
    target = np.sin(np.arange(200.0))
    chain = lambda x: np.concatenate([x - target, 0.5 * (x[1:] - x[:-1]) ** 2])
    found = so.least_squares(chain, np.zeros(200), jac=sparse_jacobian(chain))
    np.testing.assert_allclose(jacobian(chain)(found.x).T @ chain(found.x), 0.0, atol=1e-4)


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root(method):
    equations = lambda x: np.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]])
    found = so.root(equations, np.zeros(2), jac=jacobian(equations), method=method)
    np.testing.assert_allclose(found.x, [0.8411639, 0.1588361], atol=1e-6)


def test_newton():
    cubic = lambda x: x**3 - 2.0
    slope = grad(cubic)
    np.testing.assert_allclose(so.newton(cubic, 1.0, fprime=slope, fprime2=grad(slope)), 2.0 ** (1 / 3))


def model(t, height, rate, floor):
    return height * np.exp(-rate * t) + floor


@pytest.mark.parametrize("options", [{}, {"sigma": 0.1 + TIMES}, {"sigma": np.diag(0.1 + TIMES)}, {"bounds": (0.0, 5.0)}],
                         ids=["plain", "errors", "covariance", "bounds"])  # fmt: skip
@pytest.mark.parametrize("kind", [jacobian, jacfwd, jacrev])
def test_curve_fit(kind, options):
    slope = kind(model, argnums=("height", "rate", "floor"), flat=True)
    found, _ = so.curve_fit(model, TIMES, MEASURED, np.ones(3), jac=slope, **options)
    np.testing.assert_allclose(found, [2.0, 1.3, 0.5], atol=1e-6)


def test_curve_fit_of_one_parameter():
    fun = lambda t, rate: np.exp(-rate * t)
    for method in ("lm", "trf"):
        found, _ = so.curve_fit(fun, TIMES, fun(TIMES, 0.7), jac=jacobian(fun, 1, flat=True), method=method)
        np.testing.assert_allclose(found, 0.7)


def robertson(t, y):
    slow, fast = 0.04 * y[0], 1e4 * y[1] * y[2]
    return np.stack([fast - slow, slow - fast - 3e7 * y[1] ** 2, 3e7 * y[1] ** 2])


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_solve_ivp(method):
    slope = jacobian(robertson, argnums=1)
    found = si.solve_ivp(robertson, (0.0, 40.0), np.array([1.0, 0.0, 0.0]), method=method, jac=slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.y[:, -1], [0.71582707, 9.18552e-6, 0.28416374], rtol=1e-4)
    assert slope.cache_info().misses <= 4  # LSODA and Radau hand over times of different types


def test_structured_parameters():
    x = np.linspace(-1.0, 1.0, 30)
    start, unflatten = flatten({"w": np.array([0.3, -0.2]), "b": np.array([0.1, 0.0]), "scale": 1.0})

    def loss(vector):
        p = unflatten(vector)
        return np.mean((p["scale"] * np.tanh(x[:, None] * p["w"] + p["b"]).sum(axis=1) - np.sin(2 * x)) ** 2)

    both = value_and_grad(loss)
    found = so.minimize(both, start, jac=True)
    assert found.fun < 1e-3
    assert both.cache_info().misses == 2
    assert unflatten(found.x)["w"].shape == (2,)
