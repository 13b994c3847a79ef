"""SciPy's solvers and quadrature in generated code, which has the functions for them."""

import math
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("scipy")

from symgrad import export, grad, hessian, jacfwd, value_and_grad, vmap, without
from symgrad.scipy import optimize as so
from symgrad.scipy.integrate import quad

P = np.array([1.1, 0.8])
K = 0.7
A = np.array([[2.0, 0.3], [0.1, 1.5]])


def cubic(z, a, b):
    return z**3 + a * z - b


def along(p):
    total = 0.0
    for i in range(8):
        x = so.brentq(cubic, -5.0, 5.0, args=(p[0], p[1] + 0.1 * i))
        total = total + x * x
    return total


def written(p):
    def equations(v):
        r = np.zeros(2)
        r[0] = v[0] * p[0] - 1
        r[1] = v[1] ** 3 + v[0] - p[1]
        return r

    return np.sum(so.fsolve(equations, np.ones(2)) ** 2)


def fitted(p):
    t = np.linspace(0, 1, 20)
    return np.sum(so.least_squares(lambda v: v[0] * np.exp(-v[1] * t) - np.exp(-t * p[0]) - p[1] * t, np.ones(2)).x)


def least(p):
    found = so.minimize(lambda v: np.sum((v - p) ** 2) + 0.1 * np.sum(v**4), 0.5 * p, method="L-BFGS-B")
    if not found.success:
        raise ValueError(found.message)
    return found.fun + found.x[0]


def sum_of_powers(z, p):
    total = 0.0
    for k in range(6):
        total = total + z**k * p[0]
    return total - 5 * p[1]


COMPILED = {
    "args": lambda p: so.brentq(cubic, 0.0, 3.0, args=(p[0], p[1])) ** 2,
    "ends": lambda p: so.ridder(lambda z: np.cos(z) - z * p[0], 0 * p[0], 3 * p[1]),
    "global": lambda p: so.bisect(lambda z: np.exp(z) * K - p[0], -5.0, 5.0) * p[1],
    "in a loop": along,
    "loop": lambda p: so.toms748(lambda z: sum_of_powers(z, p), -1.0, 5.0),
    "newton": lambda p: so.newton(lambda z: cubic(z, p[0], p[1]), 2),
    "newton, array": lambda p: np.sum(so.newton(lambda z: z**3 - p, np.ones(2))),
    "root": lambda p: np.sum(so.root(lambda v: A @ v + 0.1 * v**3 - p, np.zeros(2)).x),
    "root, method": lambda p: np.sum(so.root(lambda v: A @ v + 0.1 * v**3 - p, p, method="krylov").x),
    "fsolve": written,
    "fixed_point": lambda p: np.sum(so.fixed_point(lambda z: np.cos(z * p), np.array([0.5, 0.5]))),
    "fixed_point, number": lambda p: so.fixed_point(lambda z: np.cos(z * p[0]), 0.5) * p[1],
    "least_squares": fitted,
    "minimize": least,
    "minimize_scalar": lambda p: so.minimize_scalar(lambda z: (z - p[0]) ** 2 + p[1] * z**4, bracket=(-1.0, 1.0)).x,
    "root_scalar": lambda p: so.root_scalar(lambda z: cubic(z, -p[0], p[1]), bracket=[0, 5.0]).root,
    "quad": lambda p: quad(lambda x: np.exp(-p[0] * x) * np.sin(p[1] * x), 0, 3)[0],
    "quad, args": lambda p: quad(lambda x, a, b: x**a * np.exp(-b * x), 0, 2.5, args=(p[0], p[1]))[0],
    "quad, ends": lambda p: quad(lambda x: np.cos(x * p[0]), 2 * p[0], p[1])[0],
    "quad, far": lambda p: quad(lambda x: np.exp(-p[0] * x) / (1 + x * p[1]), p[1], np.inf)[0],
    "quad, all": lambda p: quad(lambda x: np.exp(-p[0] * x * x + 0.1 * p[1] * x), -np.inf, np.inf)[0],
    "quad, parts": lambda p: quad(lambda x: np.sin(20 * x * p[0]) ** 2 / (1 + x * p[1]), 0, 5)[0],
    "quad, points": lambda p: quad(lambda x: np.abs(x - 0.3) ** p[0] * p[1], 0, 1, points=[0.3])[0],
    "in another": lambda p: so.brentq(lambda a: so.brentq(cubic, -5.0, 5.0, args=(1.0, a)) * p[0] - p[1], -9.0, 9.0),
    "integral": lambda p: so.brentq(lambda a: quad(lambda x: np.exp(-a * x * x) * p[0], 0, 2)[0] - 0.7 * p[1], 0.01, 9.0),
    "quad, error": lambda p: p[0] * quad(lambda x: np.exp(-p[1] * x), 0, 1)[0] + 0 * quad(np.exp, 0, p[0])[1],
}


def differences(fun, p, h=1e-5):
    return np.array([(fun(p + e) - fun(p - e)) / (2 * h) for e in h * np.eye(len(p))])


@pytest.mark.parametrize("name", COMPILED)
def test_code_calls_scipy(name):
    fun = COMPILED[name]
    ours, theirs = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(4):
        p = P * (1 + 0.03 * k)
        (value, slope), (expected, its_slope) = ours(p), theirs(p)
        assert type(value) is type(expected)
        np.testing.assert_allclose(value, fun(p), 1e-6)  # to SciPy's tolerance
        np.testing.assert_allclose(value, expected, 1e-12)
        np.testing.assert_allclose(slope, its_slope, 1e-10, 1e-12)
    np.testing.assert_allclose(slope, differences(fun, p), 1e-4, 1e-5)
    assert "dynamic" not in str(ours.explain())
    assert "def " in ours.source(P).partition("def value_and_grad")[0] or "loop" in name
    for other in (jacfwd(fun), jacfwd(fun)):
        np.testing.assert_allclose(other(p), slope, 1e-9, 1e-11)


@pytest.mark.parametrize("name", ["args", "root", "minimize", "quad, ends"])
def test_other_ways_to_take_their_derivatives(name):
    fun = COMPILED[name]
    curves, several = hessian(fun), vmap(grad(fun))
    for k in range(3):
        p = P * (1 + 0.03 * k)
        np.testing.assert_allclose(curves(p), hessian(fun, mode="dynamic")(p), 1e-9, 1e-10)
        np.testing.assert_allclose(several(np.stack([p, p + 0.1])), [grad(fun)(p), grad(fun)(p + 0.1)], 1e-10)
    with without():
        np.testing.assert_allclose([grad(fun)(P) for _ in range(3)][-1], grad(fun, mode="dynamic")(P), 1e-10)


def test_what_else_solvers_tell_is_scipys_own():
    def tried(p):
        found = so.root(lambda v: A @ v + 0.1 * v**3 - p, np.zeros(2))
        return np.sum(found.x), found.nfev

    slope = grad(tried, has_aux=True)
    often = [
        (slope(P * k)[1], so.root(lambda v, k=k: A @ v + 0.1 * v**3 - P * k, np.zeros(2)).nfev) for k in (0.0, 1, 2, 30, 50)
    ]
    assert all(ours == theirs for ours, theirs in often)
    assert len({ours for ours, _ in often}) > 1
    assert "nfev" in str(slope.explain())


def test_functions_that_decide():
    def bent(p):
        return so.brentq(lambda z: z * p[0] - 1 if z > 0 else z - p[1], -3.0, 3.0)

    def kinked(p):
        return quad(lambda x: p[0] * x if x < 0.5 else p[1] * (1 - x), 0, 1)[0]

    for fun in (bent, kinked):
        slope = grad(fun)
        for p in (P, 1.1 * P, np.array([0.9, -1.0]), P):
            np.testing.assert_allclose(slope(p), differences(fun, p), 1e-6, 1e-9)


class Counter:
    often = 0


@pytest.mark.parametrize("noted", ["list", "attribute", "own"])
def test_what_functions_leave_behind_is_left_at_each_call(noted):
    seen, counter = [], Counter()

    def solved(p):
        own = []

        def equation(z):
            if noted == "list":
                seen.append(1)
            elif noted == "attribute":
                counter.often += 1
            else:
                own.append(z * 1.0)
            return z**3 - p

        return so.brentq(equation, -3.0, 3.0)

    slope, often = grad(solved), []
    for x in (1.0, 1.7, 2.4, 3.1, 3.8, 4.5, 5.2):
        seen.clear()
        counter.often = 0
        np.testing.assert_allclose(slope(x), x ** (-2 / 3) / 3, 1e-9)
        counted = len(seen) + counter.often
        seen.clear()
        counter.often = 0
        solved(x)
        often.append(counted - len(seen) - counter.often)
    assert {*often} <= ({0} if noted == "own" else {4, 5})  # more, for derivatives, and a look at the function
    assert "dynamic" in str(slope.explain())


def test_errors_are_the_functions():
    fun = lambda p: so.brentq(lambda z: z * p[0] - 1, 2.0, 5.0)
    slope = grad(fun)
    for start in (0.3, 0.31, 0.32, 2.0, 0.33):
        if start > 1:
            with pytest.raises(ValueError, match="must have different signs"):
                slope(np.array([start]))
        else:
            np.testing.assert_allclose(slope(np.array([start])), -1 / start**2)
    caught = grad(lambda p: so.brentq(lambda z: z * p[0] - 1, 2.0, 5.0) if p[0] < 1 else p[0])
    assert [float(caught(np.array([x]))[0]) for x in (0.4, 0.4, 0.4, 2.0, 0.4)] == pytest.approx(
        [-6.25, -6.25, -6.25, 1, -6.25]
    )


def test_code_finds_out_where_a_solver_stopped_short():
    slope = grad(lambda p: so.brentq(lambda z: z**9 + p[0] * z - p[1], -1.0, 1.5, xtol=1e-2))
    for x in (1.0, 1.1, 1.2):
        np.testing.assert_allclose(slope(np.array([x, 0.0])), [0, 1 / x], 1e-6, 1e-6)
    with pytest.raises(RuntimeError, match="stopped where Newton's method does not converge"):
        slope(np.zeros(2))
    np.testing.assert_allclose(slope(np.array([1.3, 0.0])), [0, 1 / 1.3], 1e-6, 1e-6)


def test_between_two_ends_that_are_one():
    slope = grad(lambda p: quad(lambda x: np.exp(x) * p[1], p[0], p[0] + p[2])[0])
    for _ in range(3):
        np.testing.assert_allclose(slope(np.array([1.1, 0.8, 0.0])), [0, 0, 0.8 * math.exp(1.1)], 1e-12)
        np.testing.assert_allclose(slope(np.array([0.0, 1.0, 1.0]))[2], math.e, 1e-12)


def test_it_is_exported(tmp_path):
    path = tmp_path / "module.py"
    export(value_and_grad(COMPILED["root"]), P, path=path)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert "the examples agree" in done.stdout
