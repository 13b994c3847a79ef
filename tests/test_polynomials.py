"""NumPy's polynomials, which are Python code: followed as the user's is, so that arrays stay arrays."""

import numpy as np
import pytest
from agreement import agrees
from numpy import polynomial
from numpy.polynomial import Polynomial, chebyshev, hermite, legendre

from symgrad import grad, vmap

A = np.array([0.3, 0.7, 1.2, 2.0])
T = np.linspace(-1.0, 1.0, 7)
Y = np.cos(T)
KINDS = [
    polynomial.Polynomial,
    polynomial.Chebyshev,
    polynomial.Legendre,
    polynomial.Hermite,
    polynomial.HermiteE,
    polynomial.Laguerre,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "use",
    [
        lambda kind, a: kind(a)(T),
        lambda kind, a: kind([1.0, 2.0, 0.5])(a),
        lambda kind, a: kind([1.0, 2.0, 3.0], domain=a[1:3])(T),
        lambda kind, a: (kind(a) * kind([1.0, 2.0]) * 2.0 + 1.0 - kind(a))(T),
        lambda kind, a: kind.fit(T, Y * a[0] + np.sin(T * a[1]), 2)(T * a[2]),
        lambda kind, a: kind.fit(T * a[0], Y, 2, domain=[-2, 2], w=1.0 + T * T * a[1], full=True)[0](T),
        lambda kind, a: (kind(a) // kind([1.0, 2.0]))(T),
        lambda kind, a: divmod(kind(a), kind([1.0, 2.0]))[1](T),
        lambda kind, a: kind(a).deriv(2)(T) + kind(a).integ(1, k=a[0], lbnd=a[1])(T),
        lambda kind, a: np.real(kind(a).roots()) ** 2,
        lambda kind, a: kind(a).convert(kind=Polynomial).coef,
        lambda kind, a: kind(a)(kind([1.0, 2.0]))(0.5) + kind([1.0, 2.0])(kind(a))(0.5),
    ],
)
def test_classes(kind, use):
    agrees(lambda a: use(kind, a), A)


@pytest.mark.parametrize(
    "fun",
    [
        lambda a: polynomial.polynomial.polyfit(T, Y * a[0], 2, full=True)[0],
        lambda a: polynomial.chebyshev.chebfit(T, np.stack([Y, Y * a[1]], 1) * a[0], 2, w=1.0 + T * T * a[1]),
        lambda a: np.polynomial.hermite.hermder(a) * np.polynomial.legendre.legint(a)[1:4],
        lambda a: np.polynomial.laguerre.lagcompanion(a),
        lambda a: polynomial.polynomial.polyval2d(T * a[0], Y, np.outer(a, a)),
        lambda a: polynomial.polynomial.polygrid2d(T[:3] * a[0], [0.5, 2.0], np.outer(a, a)),
    ],
)
def test_functions(fun):
    agrees(fun, A)


def test_arrays_stay_arrays():
    """They were taken apart into traced numbers, with one line of code for each."""
    t = np.linspace(0.0, 1.0, 1000)
    gradient = grad(lambda a: np.sum((Polynomial(a)(t) + chebyshev.chebvander(t, 3) @ a) ** 2))
    assert len(gradient.source(A).splitlines()) < 60
    assert "dynamic" not in gradient.explain()


def test_functions_that_are_looked_up_by_name():
    """Which functions a program may reach is not known then."""

    def fun(a):
        return getattr(chebyshev, "cheb" + "der")(a) * getattr(chebyshev, "cheb" + "div")(a, [1.0, 2.0])[0]

    agrees(fun, A)


def test_no_coefficients_are_one_that_is_zero():
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.polymul(x[:0], x)) + np.sum(x**2))(np.ones(2)), [2.0, 2.0])


def test_functions_without_source():
    agrees(eval("lambda a: Polynomial(a)(T) * chebyshev.chebval(T, a)"), A)


def test_batches():
    batch = np.stack([A, 2 * A])
    np.testing.assert_allclose(vmap(lambda a: Polynomial(a)(T))(batch), [Polynomial(a)(T) for a in batch], rtol=1e-14)


def test_second_names_of_coefficients():
    def fun(a):
        coefficients = Polynomial(a).coef
        name = np.asarray(coefficients)
        coefficients[0] = 7.0
        return name * name

    agrees(fun, A)


def test_arrays_of_objects_as_out():
    def fun(a):
        c = np.array([a[0], a[1], 3.0, 4.0], dtype=object)
        view = c[1:]
        view *= a[1:]
        c -= a
        return np.sum(c**2) + np.sum(np.add(a, 1.0, out=c))

    agrees(fun, A)


def test_rules_of_quadrature_are_numbers():
    """Nodes and weights are made once, as they hang on no argument: a symmetric eigenproblem at each call, before."""

    def expected(x, spread):
        nodes, weights = polynomial.hermite.hermgauss(5)
        more = polynomial.legendre.leggauss(3)[0]
        return sum(w * np.sum(np.tanh(x + spread * t)) for t, w in zip(nodes, weights, strict=True)) + np.sum(more * x[:3])

    x = np.linspace(-1.0, 1.5, 4)
    agrees(expected, x, 0.3)
    derivative = grad(expected)
    for _ in range(3):
        derivative(x, 0.3)
    assert "linalg" not in derivative.source(x, 0.3)


def test_operators_of_polynomials_are_compiled():
    """They ran at each call, as methods that are not followed."""
    derivative = grad(lambda c: (Polynomial(c) * Polynomial(c) + 1.0 - Polynomial(c) ** 2 // Polynomial([1.0, 2.0]))(0.5))
    for scale in (1.0, 2.0, 3.0, 4.0):
        derivative(A * scale)
    assert derivative.cache_info().misses == 2


@pytest.mark.parametrize("fun", [polynomial.polynomial.polyval, chebyshev.chebval, legendre.legval, hermite.hermval])
def test_places_and_coefficients_that_are_arguments(fun):
    rng = np.random.default_rng(0)
    for argnums in (0, 1, (0, 1)):
        slope = grad(lambda x, c: np.sum(fun(x, c) ** 2), argnums)
        theirs = grad(lambda x, c: np.sum(fun(x, c) ** 2), argnums, mode="dynamic")
        for _ in range(3):
            x, c = rng.normal(size=6), rng.normal(size=5)
            np.testing.assert_allclose(np.hstack(slope(x, c)), np.hstack(theirs(x, c)), 1e-11)
        assert "dynamic" not in str(slope.explain())
