"""The laws of nesting: derivatives of derivatives in any order, in and out of compiled code, without confusion."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad import (
    elementwise_grad,
    grad,
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

Fun = Callable[[Any], Any]


# -- one variable: every nesting of operators is a higher derivative -----------------------------------------------


def by_grad(fun: Fun) -> Fun:
    return grad(fun)  # type: ignore[no-any-return]


def by_dynamic_grad(fun: Fun) -> Fun:
    return grad(fun, mode="dynamic")  # type: ignore[no-any-return]


def by_value_and_grad(fun: Fun) -> Fun:
    return lambda x: value_and_grad(fun)(x)[1]


def by_jvp(fun: Fun) -> Fun:
    return lambda x: jvp(fun, (x,), (1.0,))[1]


def by_vjp(fun: Fun) -> Fun:
    return lambda x: vjp(fun, x)[1](1.0)[0]


def by_linearize(fun: Fun) -> Fun:
    return lambda x: linearize(fun, x)[1](1.0)


def by_jacfwd(fun: Fun) -> Fun:
    return jacfwd(fun)  # type: ignore[no-any-return]


def by_jacrev(fun: Fun) -> Fun:
    return jacrev(fun)  # type: ignore[no-any-return]


def by_elementwise(fun: Fun) -> Fun:
    return elementwise_grad(fun)  # type: ignore[no-any-return]


def by_vector(fun: Fun) -> Fun:
    """Through an array and back, so that scalars and arrays mix."""
    return lambda x: jacrev(lambda a: fun(a[0]) + 0.0 * a[1])(np.stack([x, 2.0 * x]))[0]


def by_vmap(fun: Fun) -> Fun:
    """One element of a batch, the other of which may go another way."""
    return lambda x: vmap(grad(fun))(np.stack([x, 2.0 * x]))[0]


OPERATORS = {
    op.__name__: op
    for op in (
        by_grad, by_dynamic_grad, by_value_and_grad, by_jvp, by_vjp, by_linearize, by_jacfwd, by_jacrev, by_elementwise,
        by_vector, by_vmap,
    )
}  # fmt: skip

# a function, and its derivatives
FUNCTIONS: dict[str, tuple[Fun, list[Fun]]] = {
    "cubic": (
        lambda x: x**3 - 2.0 * x,
        [lambda x: 3 * x**2 - 2, lambda x: 6 * x, lambda x: 6.0 + 0 * x, lambda x: 0.0 * x],
    ),
    "sin": (lambda x: np.sin(2.0 * x), [lambda x, n=n: 2**n * np.sin(2 * x + n * np.pi / 2) for n in range(1, 5)]),
    "exp": (
        lambda x: x * np.exp(-x),
        [lambda x, n=n: (-1) ** n * (x - n) * np.exp(-x) for n in range(1, 5)],
    ),
    "branch": (
        lambda x: x * x if x > 0.5 else x**4,
        [
            lambda x: 2 * x if x > 0.5 else 4 * x**3,
            lambda x: 2.0 if x > 0.5 else 12 * x**2,
            lambda x: 0.0 if x > 0.5 else 24 * x,
            lambda x: 0.0 if x > 0.5 else 24.0,
        ],
    ),
    "constant": (lambda x: 3.0, [lambda x: 0.0] * 4),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(ops=st.lists(st.sampled_from(sorted(OPERATORS)), min_size=1, max_size=4), x=st.floats(-1.5, 1.5))
def test_any_nesting_is_the_higher_derivative(name: str, ops: list[str], x: float) -> None:
    fun, derivatives = FUNCTIONS[name]
    nested = fun
    for op in ops:
        nested = OPERATORS[op](nested)
    expected = derivatives[len(ops) - 1](x)
    outer = grad(lambda x: x * nested(x))  # the nest inside compiled code
    for _ in range(3):
        assert nested(x) == pytest.approx(expected, abs=1e-9)
        slope = derivatives[len(ops)](x) if len(ops) < 4 else None
        if slope is not None:
            assert outer(x) == pytest.approx(expected + x * slope, abs=1e-8)


@pytest.mark.parametrize("inner", OPERATORS)
@pytest.mark.parametrize("outer", OPERATORS)
def test_every_pair(inner: str, outer: str) -> None:
    second = OPERATORS[outer](OPERATORS[inner](lambda x: np.sin(x) * x))
    for x in (0.3, np.float64(0.3), np.array(0.3)):
        for _ in range(3):
            assert second(x) == pytest.approx(2 * np.cos(0.3) - 0.3 * np.sin(0.3))


# -- perturbation confusion ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", OPERATORS)
@pytest.mark.parametrize("outer", OPERATORS)
def test_the_classic(inner: str, outer: str) -> None:
    """d/dx (x * d/dy (x + y)) = 1, not 2: the inner perturbation is not the outer one."""
    fun = OPERATORS[outer](lambda x: x * OPERATORS[inner](lambda y: x + y)(1.0))
    for _ in range(3):
        assert fun(1.0) == 1.0


@pytest.mark.parametrize("inner", OPERATORS)
@pytest.mark.parametrize("outer", OPERATORS)
def test_the_inner_point_may_depend_on_the_outer_variable(inner: str, outer: str) -> None:
    fun = OPERATORS[outer](lambda x: OPERATORS[inner](lambda y: x * x * y**3)(x + 1.0))  # x² · 3 (x + 1)²
    for _ in range(3):
        assert fun(2.0) == pytest.approx(12 * 9 + 12 * 2 * 3)


def test_a_variable_differentiated_at_itself() -> None:
    assert grad(lambda x: grad(lambda y: y * x)(x))(3.0) == 1.0
    assert grad(lambda x: grad(lambda x: x * x)(x) * x)(3.0) == 12.0
    assert grad(lambda x: jvp(lambda y: y * x, (x,), (x,))[1])(3.0) == 6.0
    assert jvp(lambda x: vjp(lambda y: y * x, x)[1](x)[0], (3.0,), (1.0,))[1] == 6.0


def test_three_levels_that_see_each_other() -> None:
    def fun(x: Any) -> Any:
        return grad(lambda y: grad(lambda z: x * y * z**2 + x**2 * y**2 * z)(y) * x)(x)

    # inner at z = y: 2xy² + x²y²; times x: 2x²y² + x³y²; by y at y = x: 4x³ + 2x⁴
    for _ in range(3):
        assert fun(1.5) == pytest.approx(4 * 1.5**3 + 2 * 1.5**4)
        assert grad(fun)(1.5) == pytest.approx(12 * 1.5**2 + 8 * 1.5**3)


def test_tangents_that_carry_perturbations() -> None:
    def fun(x: Any) -> Any:
        return jvp(lambda y: y**2, (x,), (x**3,))[1]  # 2 x⁴

    assert grad(fun)(1.5) == pytest.approx(8 * 1.5**3)
    assert jvp(fun, (1.5,), (1.0,))[1] == pytest.approx(8 * 1.5**3)
    assert grad(lambda x: vjp(lambda y: np.sin(y), x)[1](x**2)[0])(0.5) == pytest.approx(
        2 * 0.5 * np.cos(0.5) - 0.25 * np.sin(0.5)
    )


def test_pullbacks_are_linear_and_differentiable_in_the_cotangent() -> None:
    x = np.array([0.3, -0.5])
    pullback = vjp(np.sin, x)[1]
    np.testing.assert_allclose(jacobian(lambda g: pullback(g)[0])(np.ones(2)), np.diag(np.cos(x)))
    push = linearize(np.sin, x)[1]
    np.testing.assert_allclose(jacobian(push)(np.ones(2)), np.diag(np.cos(x)))
    np.testing.assert_allclose(pullback(np.ones(2))[0], push(np.ones(2)))


def test_a_pullback_made_inside_is_used_outside_of_an_inner_derivative() -> None:
    def fun(x: Any) -> Any:
        _, pullback = vjp(lambda y: y * y * x, x)
        return grad(lambda c: pullback(c * c)[0])(x)  # d/dc of c² 2 x², at c = x: 4 x³

    for _ in range(3):
        assert grad(fun)(1.5) == pytest.approx(12 * 1.5**2)


def test_stop_gradient_stops_all_levels() -> None:
    for op in OPERATORS.values():
        assert op(op(lambda x: x * stop_gradient(x) ** 2))(2.0) == 0.0
        assert op(lambda x: x * stop_gradient(grad(lambda y: y**3)(x)))(2.0) == pytest.approx(12.0)


# -- derivatives that use derivatives ------------------------------------------------------------------------------


def test_one_derivative_inside_itself() -> None:
    """A Derivative called while it is being traced: by recursion through its own function."""

    def tower(x: Any, n: int = 2) -> Any:
        return x**3 if n == 0 else x * slope(x, n - 1)

    slope = grad(tower)
    # n = 0: x³ → 3x²; n = 1: 3x³ → 9x²; n = 2: 9x³ → 27x²
    for _ in range(4):
        assert slope(2.0) == pytest.approx(108.0)
        assert slope(2.0, 0) == pytest.approx(12.0)
        assert grad(slope)(2.0) == pytest.approx(108.0)


def test_a_derivative_made_outside_is_used_inside() -> None:
    cos = grad(np.sin)
    for _ in range(3):
        assert cos(0.3) == pytest.approx(np.cos(0.3))  # compiled by now, and traced below all the same
    outer = grad(lambda x: cos(x) * x)
    for _ in range(3):
        assert outer(0.3) == pytest.approx(np.cos(0.3) - 0.3 * np.sin(0.3))
    assert cos(0.3) == pytest.approx(np.cos(0.3))


def test_newton_with_derivatives_in_its_steps() -> None:
    """Loops over derivatives: the root of x³ = a, and its derivative by a."""

    def root(a: Any) -> Any:
        x = 1.0 + 0.0 * a
        for _ in range(30):
            x = x - (x**3 - a) / grad(lambda y: y**3 - a)(x)
        return x

    for _ in range(3):
        assert root(8.0) == pytest.approx(2.0)
        assert grad(root)(8.0) == pytest.approx(8 ** (-2 / 3) / 3)


def test_closures_over_traced_values() -> None:
    def make(scale: Any) -> Fun:
        return lambda x: np.sum(np.sin(scale * x))

    def fun(scale: Any) -> Any:
        return np.sum(grad(make(scale))(np.array([0.1, 0.2])))

    x = np.array([0.1, 0.2])
    for scale in (0.5, 0.7, 0.9):
        expected = np.sum(np.cos(scale * x) - scale * x * np.sin(scale * x))
        assert grad(fun)(scale) == pytest.approx(expected)


def test_a_gradient_step_is_differentiated() -> None:
    """Training inside a loss: the derivative by the rate, and by the start."""

    def trained(w: Any, rate: Any, x: Any) -> Any:
        for _ in range(3):
            w = w - rate * grad(lambda w: np.sum(np.tanh(x @ w) ** 2))(w)
        return np.sum(w**2)

    rng = np.random.default_rng(0)
    args = rng.normal(size=2), 0.1, rng.normal(size=(4, 2))
    derivative = grad(trained, argnums=(0, 1))
    step = 1e-6
    for _ in range(3):
        by_w, by_rate = derivative(*args)
        numeric = (trained(args[0], 0.1 + step, args[2]) - trained(args[0], 0.1 - step, args[2])) / (2 * step)
        assert by_rate == pytest.approx(numeric, rel=1e-6)
        for i, unit in enumerate(np.eye(2)):
            ends = [trained(args[0] + s * step * unit, *args[1:]) for s in (1, -1)]
            assert by_w[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


# -- several variables ---------------------------------------------------------------------------------------------


def quartic(x: Any) -> Any:
    return np.sum(x**4) + np.prod(x) + np.sum(x[:-1] * np.sin(x[1:]))


vectors = st.lists(st.floats(-1.5, 1.5, allow_subnormal=False), min_size=3, max_size=3).map(np.array)


@given(vectors, vectors)
def test_hessian_vector_products(x: Any, v: Any) -> None:
    expected = hessian(quartic)(x) @ v
    gradient = grad(quartic)
    ways: list[Fun] = [
        lambda x: hvp(quartic)(x, v),
        lambda x: jvp(gradient, (x,), (v,))[1],
        lambda x: vjp(gradient, x)[1](v)[0],
        lambda x: grad(lambda x: gradient(x) @ v)(x),
        lambda x: grad(lambda x: jvp(quartic, (x,), (v,))[1])(x),
        lambda x: jacfwd(gradient)(x) @ v,
        lambda x: jacrev(gradient)(x) @ v,
        lambda x: linearize(gradient, x)[1](v),
    ]
    for way in ways:
        np.testing.assert_allclose(way(x), expected, rtol=1e-9, atol=1e-9)


@given(vectors)
def test_jacobians_of_jacobians(x: Any) -> None:
    def fun(x: Any) -> Any:
        return np.stack([x[0] * x[1] ** 2, np.sin(x[2]) * x[0]])

    expected = jacfwd(jacfwd(fun))(x)
    assert expected.shape == (2, 3, 3)
    np.testing.assert_allclose(expected, np.swapaxes(expected, 1, 2), atol=1e-12)
    for outer in (jacfwd, jacrev, jacobian):
        for inner in (jacfwd, jacrev, jacobian):
            np.testing.assert_allclose(outer(inner(fun))(x), expected, atol=1e-12)
    np.testing.assert_allclose(hessian(lambda x: fun(x)[1])(x), expected[1], atol=1e-12)


@given(vectors, vectors, vectors)
def test_third_derivatives_in_directions(x: Any, u: Any, v: Any) -> None:
    def along(fun: Fun, v: Any) -> Fun:
        return lambda x: jvp(fun, (x,), (v,))[1]

    expected = np.einsum("ijk,i,j,k", jacfwd(hessian(quartic))(x), u, v, u)
    assert along(along(along(quartic, u), v), u)(x) == pytest.approx(expected, abs=1e-8)
    assert u @ grad(along(along(quartic, v), u))(x) == pytest.approx(expected, abs=1e-8)
    assert v @ along(along(grad(quartic), u), u)(x) == pytest.approx(expected, abs=1e-8)
    assert u @ grad(lambda x: hvp(quartic)(x, v) @ u)(x) == pytest.approx(expected, abs=1e-8)


def test_trees_through_two_levels() -> None:
    def loss(p: Any) -> Any:
        return np.sum(p["w"] ** 2 * p["b"]) + p["b"] ** 3

    def penalty(p: Any) -> Any:
        g = grad(loss)(p)
        return np.sum(g["w"] ** 2) + g["b"] ** 2

    w, b = np.array([1.0, 2.0]), 0.5
    result = grad(penalty)
    inner = np.sum(w**2) + 3 * b**2
    for _ in range(3):
        found = result({"w": w, "b": b})
        np.testing.assert_allclose(found["w"], 8 * b**2 * w + 2 * inner * 2 * w)
        assert found["b"] == pytest.approx(8 * b * np.sum(w**2) + 2 * inner * 6 * b)
        assert type(found["b"]) is float


def test_complex_inside_real() -> None:
    """A real function through complex numbers, twice."""

    def fun(x: Any) -> Any:
        return np.abs(np.exp(1j * x) + x) ** 2  # 1 + x² + 2x cos x

    for op in (by_grad, by_jvp, by_vjp, by_jacfwd, by_jacrev):
        assert op(fun)(0.7) == pytest.approx(2 * 0.7 + 2 * np.cos(0.7) - 2 * 0.7 * np.sin(0.7))
        for other in (by_grad, by_jvp, by_vjp, by_jacfwd, by_jacrev):
            assert other(op(fun))(0.7) == pytest.approx(2 - 4 * np.sin(0.7) - 2 * 0.7 * np.cos(0.7))


def test_holomorphic_twice() -> None:
    z = 0.3 + 0.4j
    cube = grad(lambda z: z**3, holomorphic=True)
    assert cube(z) == pytest.approx(3 * z**2)
    for _ in range(3):
        assert grad(cube, holomorphic=True)(z) == pytest.approx(6 * z)


def test_results_of_inner_derivatives_can_steer_branches() -> None:
    def fun(x: Any) -> Any:
        return x**2 if grad(lambda y: np.sin(y))(x) > 0 else x**3

    derivative = grad(fun)
    for x in (0.3, 2.0, 0.4, 2.1, 0.5, 2.2):
        assert derivative(x) == pytest.approx(2 * x if np.cos(x) > 0 else 3 * x**2)
