"""Small arrays taken apart into Python's numbers: the same results as NumPy's calls give, exceptional ones too."""

import itertools
import re
import warnings
from typing import Any

import numpy as np
import pytest
from agreement import agrees, alike
from hypothesis import given
from hypothesis import strategies as st

from symgrad import grad, hessian, hvp, jacfwd, jacobian, value_and_grad, without
from symgrad.compile import Piece
from symgrad.pytree import flatten
from symgrad.testing import Program, programs

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, 710.0, 0.5]


def both(make: Any, fun: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    """The compiled derivative with its arrays taken apart, and the one in NumPy calls."""
    with without("scalarize"):
        whole = make(fun, **options)
    apart = make(fun, **options)
    for _ in range(3):
        apart(*args)
        whole(*args)
    return apart, whole


def is_apart(derivative: Any, *args: Any) -> bool:
    """Whether the arrays of the code that runs are taken apart."""
    source = derivative.source(*args, fast=True)
    return ".tolist()" in source or ".tobytes()" in source


def agree(a: Any, b: Any, rtol: float = 1e-13) -> None:
    """Two results are alike in structure, kinds, values, and in what they own."""
    alike(a, b, rtol, 1e-15)
    leaves, _ = flatten(a)
    for x in leaves:
        if isinstance(x, np.ndarray):
            assert x.flags.c_contiguous
            assert x.flags.writeable
            assert not any(np.shares_memory(x, z) for z in leaves if z is not x)


def unary(text: str) -> Any:
    return eval(f"lambda x: np.sum({text})", {"np": np})


UNARY = """
    np.sin(x) np.cos(x) np.tan(x) np.arcsin(x) np.arccos(x) np.arctan(x) np.sinh(x) np.cosh(x) np.tanh(x) np.arcsinh(x)
    np.arccosh(x) np.arctanh(x) np.exp(x) np.expm1(x) np.log(x) np.log1p(x) np.log2(x) np.log10(x) np.sqrt(x) np.abs(x)
    np.sign(x)*x np.square(x) np.reciprocal(x) -x np.fabs(x) x**2 x**3 x**4 x**-1 x**-2 x**0.5 x**1.5 1/x np.clip(x,-0.5,0.5)
    np.maximum(x,0.0)*x np.minimum(0.5,x)*x np.where(x>0,x,2*x) np.where(np.isnan(x),0.0,x) np.max(x) np.min(x) np.mean(x)
    np.std(x) np.var(x,ddof=1) np.linalg.norm(x) np.prod(x) np.cumsum(x)*x np.heaviside(x,0.5)*x
    np.where((x>0)&~(x>2)|(x==-1),x,0.0) np.logaddexp(x,0.3) x%0.7 x@x np.dot(x,x[::-1]) np.outer(x,x)*x
    np.cross(x,x[::-1])*x*x*x np.stack([x,x*x],axis=1)*x[:,None] np.concatenate([x,x[1:]])**2 np.einsum('i,j->ij',x,x)*x
    np.diff(x)**2 np.flip(x)*x np.roll(x,1)*x np.tile(x,2)**2 x[[0,2,2]]**2 x[1:]*x[:-1] np.trace(np.outer(x,x)) np.kron(x,x)
    np.exp2(x) np.cbrt(x) np.deg2rad(x)*x np.degrees(x)*x np.logaddexp(x,x[::-1]) np.copysign(x,-1.0)*x np.diag(x)@x
    np.trace(np.diag(x)*x) np.exp(-np.abs(x))*x np.log1p(np.exp(-np.abs(x)))/3 np.sqrt(np.exp(x)+1)-2
    np.tensordot(x,x,0)**2 np.vdot(x,x) np.inner(x,x*x) np.diagonal(np.outer(x,x))*x
""".split()


@pytest.mark.parametrize("text", UNARY)
def test_exceptional_values_are_numpys(text):
    fun = unary(text)
    point = np.array([0.4, 0.3, 0.7])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        apart, whole = both(value_and_grad, fun, point + 1.0 if "arccosh" in text else point)
        traced = apart.cache_info().misses
        for value in SPECIAL:
            agree(apart(np.array([value, 0.3, 0.7])), whole(np.array([value, 0.3, 0.7])))
        assert apart.cache_info().misses == traced


@pytest.mark.parametrize(
    "text", ["x + y", "x - y", "x * y", "x / y", "np.maximum(x, y)", "np.minimum(x, y)", "x**y", "np.hypot(x, y)",
             "np.arctan2(x, y)", "np.where(x < y, x, y)", "np.fmax(x, y)", "np.copysign(x, y)"]
)  # fmt: skip
def test_exceptional_pairs_are_numpys(text):
    fun = eval(f"lambda x, y: np.sum({text})", {"np": np})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        apart, whole = both(value_and_grad, fun, np.array([0.4, 0.3]), np.array([0.5, 0.7]), argnums=(0, 1))
        for a, b in itertools.product(SPECIAL, SPECIAL):
            args = np.array([a, 0.3]), np.array([b, 0.7])
            agree(apart(*args), whole(*args))


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_warnings_are_numpys_where_python_raises(value):
    apart, whole = both(grad, lambda x: np.sum(np.log(x) / x), np.array([0.4, 0.3]))
    assert is_apart(apart, np.array([0.4, 0.3]))
    seen = []
    for derivative in (apart, whole):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            derivative(np.array([value, 0.3]))
        seen.append({str(warning.message) for warning in caught})
    assert seen[0] == seen[1]
    assert seen[0]


def rotate(v, x):
    """Rodrigues' rotation, as one writes it."""
    angle = np.sqrt(np.dot(v, v))
    k = v / angle
    return x * np.cos(angle) + np.cross(k, x) * np.sin(angle) + k * np.dot(k, x) * (1.0 - np.cos(angle))


def layer(w, b, x, y):
    z = x @ w + b
    return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))


def orbit(p, x):
    for _ in range(20):
        d = np.array([p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]])
        x = x + 0.01 * d
    return np.sum(x)


def relax(m, x):
    while np.max(np.abs(x)) > 0.1:
        x = np.tanh(m @ x)
    return x @ x


def path(x, y):
    """Its array is too long to be taken apart, what an iteration writes into it is not."""
    rows = np.zeros((60, 2))
    for i in range(60):
        y = y * 0.9 + x[:2] * 0.1 if y[0] > x[2] else np.array([y[1], y[0] * x[0]])
        rows[i] = y
    whole = np.concatenate([x[None, 1:], rows])
    return np.sum(whole[1:] * whole[:-1]) + np.sum(whole.T.reshape(61, 2)[:, 0])


V, X = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, -0.5])
MATRIX = np.array([[0.4, 0.1, -0.2], [0.0, 0.5, 0.3], [0.2, -0.1, 0.3]])


@pytest.mark.parametrize(
    ("make", "fun", "args", "options"),
    [
        (jacobian, rotate, (V, X), {"argnums": (0, 1)}),
        (grad, layer, (np.sin(np.arange(15.0)).reshape(5, 3), V, np.ones(5), np.zeros(3)), {"argnums": (0, 1)}),
        (value_and_grad, orbit, (np.array([10.0, 28.0, 8 / 3]), X), {"argnums": (0, 1)}),
        (value_and_grad, relax, (MATRIX, X), {"argnums": (0, 1)}),
        (value_and_grad, path, (X, V[:2]), {"argnums": (0, 1)}),
        (hessian, lambda x: np.sum(np.sin(x) * x[::-1]), (X,), {}),
    ],
)
def test_whole_programs(make, fun, args, options):
    apart, whole = both(make, fun, *args, **options)
    assert is_apart(apart, *args)
    for scale in (1.0, 1.1, 0.7):
        scaled = tuple(scale * arg for arg in args)
        agree(apart(*scaled), whole(*scaled), 1e-9)


def test_carried_arrays_go_round_as_numbers():
    derivative = grad(orbit, argnums=1)
    for _ in range(3):
        derivative(V, X)
    assert "np." not in derivative.source(V, X, fast=True).split("for _")[1].split("# backward")[0]


@pytest.mark.parametrize(("states", "apart"), [(2, True), (3, True), (8, False)])
def test_what_loops_over_rows_cost(states, apart):
    """NumPy's calls for few numbers, and what it takes to get to the next row."""

    labels = np.arange(50) ** 2 % 8

    def chain(moves, heard):
        a = heard[:, 0]
        for label in labels:
            a = np.max(a[:, None] + moves, axis=0) + heard[:, label]
        return np.max(a)

    args = np.sin(np.arange(1.0 * states**2)).reshape(states, states), np.cos(np.arange(8.0 * states)).reshape(states, 8)
    derivative, expected = grad(chain, (0, 1)), grad(chain, (0, 1), mode="dynamic")
    for _ in range(3):
        agree(derivative(*args), expected(*args), 1e-11)
    assert is_apart(derivative, *args) is apart


def test_long_arrays_that_change_places_in_a_loop_are_numpys():
    def chebyshev(c, x):
        before, polynomial = np.ones_like(x), x
        total = c[0] * before + c[1] * polynomial
        for n in range(2, len(c)):
            before, polynomial = polynomial, 2 * x * polynomial - before
            total = total + c[n] * polynomial
        return np.sum(total**2)

    derivative, expected = grad(chebyshev, (0, 1)), grad(chebyshev, (0, 1), mode="dynamic")
    args = np.cos(np.arange(12.0)), np.linspace(-1, 1, 200)
    for _ in range(3):
        agree(derivative(*args), expected(*args), 1e-11)


def test_arguments_of_any_layout():
    fun = lambda a, b: np.sum(a * np.sin(b) @ a.T)
    a, b = np.sin(np.arange(6.0)).reshape(2, 3), np.cos(np.arange(3.0))
    apart, whole = both(grad, fun, a, b, argnums=(0, 1))
    assert is_apart(apart, a, b)
    wide = np.zeros((4, 6))
    wide[::2, ::2] = a
    for x, y in [(np.asfortranarray(a), b[::-1]), (wide[::2, ::2], wide[1, :3]), (a[::-1, ::-1], np.broadcast_to(b[0], 3))]:
        agree(apart(x, y), whole(x, y))


def test_what_is_not_small_or_not_double_stays_numpys():
    fun = lambda x: np.sum(np.sin(x) * x)
    for x in (np.ones(101), np.ones(3, np.float32), np.ones(3, complex)):
        derivative = grad(lambda x: np.real(fun(x)))
        for _ in range(3):
            derivative(x)
        assert not is_apart(derivative, x)


def test_numbers_of_numpy_and_arrays_without_axes_keep_their_kind():
    fun = lambda x, y: np.sin(x) * y + np.sum(y * y)
    for x, y in itertools.product((0.3, np.float64(0.3), np.array(0.3)), (0.7, np.float64(0.7), np.array(0.7))):
        apart, whole = both(value_and_grad, fun, x, y, argnums=(0, 1))
        agree(apart(x, y), whole(x, y))


@pytest.mark.parametrize("make", [grad, jacfwd, hessian])
def test_elements_picked_from_numbers(make):
    def fun(x):
        power = 2.0 ** np.sin(x)
        return np.sum(np.sin(np.log(power + 0.2)[power > -0.071]) * power[power > 0])

    for x in (np.array(0.4), np.float64(0.4), 0.4):
        expected = make(fun, mode="dynamic")(x)
        derivative = make(fun)
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), expected, rtol=1e-14)


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
@pytest.mark.parametrize("fun", [lambda x: np.sum(~(x > 0) * x * np.ones(1)[0]), lambda x: np.sum(~np.array([x > 0]) * x)])
def test_inverted_truths_are_pythons_or_numpys(fun):
    """``~True`` is -2 to Python."""
    derivative = value_and_grad(fun)
    for x in (0.4, 0.4, 0.4, -0.4):
        np.testing.assert_allclose(derivative(x), (fun(x), fun(x) / x), rtol=1e-12)


def test_decisions_are_computed_as_written():
    """A sum that decides is NumPy's own, whose order of additions Python's would not have."""

    def fun(x, limit):
        return np.sum(x) if np.dot(x, x) <= limit else np.sum(x * x)

    derivative = grad(fun)
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = rng.normal(size=9) * 10.0 ** rng.integers(-8, 8, 9)
        limit = float(np.dot(x, x))
        assert np.array_equal(derivative(x, limit), np.ones(9))
        assert np.array_equal(derivative(x, np.nextafter(limit, 0)), 2 * x)


@pytest.mark.parametrize(
    "text",
    [
        *("np.sum(x)", "np.sum(x, axis=0)[0]", "np.sum(x, axis=(-2,))[0]", "np.mean(x)", "np.mean(x, (0,))"),
        *("np.cumsum(x)[-1]", "np.cross(x[:3], x[-3:])[0]"),
    ],
)
@pytest.mark.parametrize("n", [3, 5, 7, 8, 11])
def test_short_sums_that_decide_are_in_numpys_order(text, n):
    total = eval(f"lambda x: {text}", {"np": np})
    derivative = grad(lambda x, limit: np.sum(x) if total(x) <= limit else np.sum(x * x))
    rng = np.random.default_rng(n)
    shape = (n, 2) if "axis" in text else n
    for _ in range(50):
        x = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, shape)
        limit = float(total(x))
        assert np.array_equal(derivative(x, limit), np.ones(shape))
        assert np.array_equal(derivative(x, np.nextafter(limit, -np.inf)), 2 * x)


WEIGHTS = np.array([1.0, 2.0, 3.0])


def test_arrays_from_outside_are_read_anew():
    derivative = grad(lambda x: np.sum(np.array([0.0, 0.5, 1.0]) * x * WEIGHTS * np.sin(x)))
    x = np.array([0.1, 0.2, 0.3])
    for _ in range(3):
        before = derivative(x)
    WEIGHTS[:] *= 2.0
    try:
        np.testing.assert_allclose(derivative(x), 2.0 * before)
    finally:
        WEIGHTS[:] /= 2.0


def test_results_are_of_their_own():
    apart, _ = both(grad, lambda x, y: np.sum(x + y), X, V, argnums=(0, 1))
    first = apart(X, V)
    first[0][:] = 7.0
    agree(apart(X, V), (np.ones(3), np.ones(3)))


def test_an_array_that_is_dead_takes_a_result():
    args = np.sin(np.arange(15.0)).reshape(5, 3), V, np.ones(5), np.zeros(3)
    apart, whole = both(grad, layer, *args, argnums=(0, 1))
    assert "empty(3)" not in apart.source(*args, fast=True)
    first = apart(*args)
    apart(args[0], -V, *args[2:])
    agree(first, whole(*args))


@pytest.mark.parametrize("exponent", [2, 3, 4, -1, -2, 2.5])
def test_powers_of_pythons_numbers_raise(exponent):
    """Where they overflow, beside NumPy's as anywhere; NumPy's are infinite."""
    big = 1e200 if exponent > 0 else 1e-200
    for kind in (float, np.float64):
        fun = lambda y, kind=kind: np.hypot(1.0, kind(y) ** exponent if kind is np.float64 else y**exponent)
        derivative = value_and_grad(fun)
        for _ in range(3):
            np.testing.assert_allclose(derivative(1.5)[0], fun(1.5), rtol=1e-15)
        with np.errstate(all="ignore"):
            if exponent == -1 or kind is np.float64:
                assert derivative(big)[0] == fun(big)
            else:
                for raises in (fun, derivative):
                    with pytest.raises(OverflowError):
                        raises(big)


def test_whole_numbers_beside_floats_are_floats():
    derivative = grad(lambda x: (3 * x * x / 7 - 2) if x > 1 else x * 10**400)
    for _ in range(3):
        assert derivative(2.0) == 12.0 / 7.0
        with pytest.raises(OverflowError):
            derivative(0.5)
    assert "x > 1.0" in derivative.source(2.0, fast=True)


@given(programs(max_ops=10, forms=("smooth", "reduce", "shape", "linear", "write", "loop", "branch")), st.integers(0, 99))
def test_random_programs_agree(program: Program, seed: int) -> None:
    args = program.arguments()
    apart, whole = both(value_and_grad, program.fun, *args, argnums=tuple(range(len(args))))
    rng = np.random.default_rng(seed)
    for scale in (1.0, *rng.uniform(0.5, 1.5, 2)):
        scaled = [
            type(arg)(arg * scale) if not isinstance(arg, np.ndarray) else np.asarray(arg * scale, arg.dtype) for arg in args
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            single = any(np.result_type(arg).itemsize < 8 for arg in args)
            agree(apart(*scaled), whole(*scaled), 1e-3 if single else 1e-8)


def rows(x, table):
    total = 0.0
    for i in range(4):
        total = total + np.sin(x * total) @ table[i]
    return total


def test_tables_go_into_loops_whole():
    table = np.cos(np.arange(12.0)).reshape(4, 3)
    apart, whole = both(value_and_grad, rows, X, table)
    source = apart.source(X, table, fast=True)
    assert "table[i]" in source
    assert "np.sin(" not in source.split("@ table[i]")[1]  # no decision hangs on it
    agree(apart(V, table), whole(V, table))


def by_rows(w, x, y):
    total = 0.0
    for i in range(len(y)):
        total = total + np.log(1.0 + (w @ x[i] - y[i] + total) ** 2)
    return total


def by_elements(w, x, y):
    total = 0.0
    for i in range(1, len(y)):
        total = np.sin(total + w[0] * x[i, 0] + w[1] * x[i - 1, 1] - w[2] * x[-i, 2] * y[-1])
    return total


def by_matrices(w, x, y):
    state, many = w[:2], np.reshape(x[:, :2], (-1, 2, 1)) * np.ones((1, 1, 2))
    for i in range(len(y)):
        state = np.tanh(many[i].T @ state + y[i] * state[::-1])
    return state @ state


def by_columns(w, x, y):
    total = 1.0
    for j in range(3):
        for i in range(20):
            total = total + w[j] * np.cos(total * x[i, j])
    return total


def until(w, x, y):
    total, i = w[0], 0
    while total < 5.0:
        total = total + np.abs(x[i, 1]) + y[i] * w[1]
        i += 1
    return total * w[2]


def by_blocks(w, x, y):
    total = w[0]
    for j in range(6):
        waves = np.sin(y[:5] * total)
        for i in range(5):
            total = np.cos(total + waves[i] * waves[-i] * x[5 * j - i, 1] + w[1])
    return total


def by_tables(w, x, y):
    levels, moves = np.array([[0.9, 0.1], [0.2, 0.8]]), np.cos(np.arange(24.0)).reshape(2, 3, 4)
    state = w[:2]
    for v in y.astype(int):
        state = state * levels[:, v] + moves[v, 1:, 2] - moves[1, :2, v] * w[2]
        state = state / np.sum(state**2)
    return state[0]


@pytest.mark.parametrize("kind", [float, int])
@pytest.mark.parametrize("fun", [by_tables, by_blocks, by_rows, by_elements, by_matrices, by_columns, until])
@pytest.mark.parametrize("length", [30, 150])
def test_data_of_any_length_is_read_as_lists(fun, length, kind):
    rng = np.random.default_rng(0)
    w, x, y = rng.uniform(0.5, 1.5, 3), rng.standard_normal((3, length)).T, rng.integers(0, 2, length).astype(kind)
    apart, whole = both(value_and_grad, fun, w, x, y)
    agree(apart(w, x, y), whole(w, x, y), 1e-12)
    x[2:] *= 1.5
    agree(apart(w, x, y), whole(w, x, y), 1e-12)
    assert fun in (by_matrices, by_tables) or is_apart(apart, w, x, y)
    if fun is until:
        x[:] = 0.0
        for derivative in (apart, whole):
            with pytest.raises(IndexError, match=f"index {length} is out of bounds for axis 0 with size {length}"):
                derivative(0 * w, x, y)


def test_much_data_that_is_hardly_read_stays_an_array():
    def fun(w, y):
        total = 0.0
        for i in range(5):
            total = np.sin(total + w[0] * y[i])
        return total

    w, y = np.ones(3), np.arange(10_000.0)
    apart, whole = both(grad, fun, w, y)
    agree(apart(w, y), whole(w, y))
    assert "y.tolist()" not in apart.source(w, y, fast=True)


def test_loops_whose_iterations_are_independent_stay_numpys():
    def fun(w, x):
        total = 0.0
        for i in range(200):
            total = total + (w @ x[i]) ** 2
        return total

    w, x = np.ones(3), np.arange(600.0).reshape(200, 3)
    apart, whole = both(grad, fun, w, x)
    agree(apart(w, x), whole(w, x))
    assert ".dot(x)" in apart.source(w, x, fast=True)


def halved(x, limit):
    for _ in range(6):
        x = np.sin(x) * 0.7
    return np.sum(x) if x[0] <= limit else np.sum(x * x)


def steps(x, limit):
    for _ in range(6):
        x = np.sin(x) * 0.7
    n = 0.0
    while x[0] > limit:
        x, n = x - 1.0, n + 1.0
    return n * np.sum(x)


@pytest.mark.parametrize("fun", [halved, steps])
def test_loops_before_decisions_are_computed_as_written(fun):
    derivative = value_and_grad(fun)
    rng = np.random.default_rng(0)
    for _ in range(100):
        x = rng.normal(size=3) * 3.0
        end = x
        for _ in range(6):
            end = np.sin(end) * 0.7
        for limit in (end[0], np.nextafter(end[0], -9.0)):
            assert derivative(x, limit)[0] == pytest.approx(fun(x, limit), rel=1e-12)


def positive(a):
    return a @ a.T + np.eye(len(a))


MATRICES = {
    "inv": lambda a: np.sum(np.linalg.inv(a) * np.cos(a)),
    "det": lambda a: np.linalg.det(a) + np.sum(a),
    "slogdet": lambda a: np.linalg.slogdet(a)[0] * np.linalg.slogdet(a)[1],
    "solve": lambda a: np.sum(np.linalg.solve(a, a[0] ** 2) ** 2),
    "systems": lambda a: np.sum(np.linalg.solve(a, np.sin(a)) * a),
    "cholesky": lambda a: np.sum(np.linalg.cholesky(positive(a)) * np.cos(a)),
    "density": lambda a: np.log(np.linalg.det(positive(a))) + a[0] @ np.linalg.inv(positive(a)) @ a[0],
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_matrices_are_eliminated_in_as_lapack_does(name, n):
    rng = np.random.default_rng(n)
    apart, whole = both(value_and_grad, MATRICES[name], rng.normal(size=(n, n)))
    assert not any("linalg" in line.split("#")[0] for line in apart.source(np.eye(n), fast=True).splitlines())
    for scale in (1.0, 1e-70, 1e70):
        for _ in range(20):
            a = rng.normal(size=(n, n)) * (scale if name in ("inv", "solve", "systems") else 1.0)
            agree_as_conditioned(apart(a), whole(a), np.linalg.cond(a))
    for order in itertools.permutations(range(n)):  # zeros where there was a pivot
        a = np.diag(np.arange(1.0, n + 1))[list(order)]
        agree_as_conditioned(apart(a), whole(a), n)


def agree_as_conditioned(a: Any, b: Any, condition: float) -> None:
    """Two results agree to the rounding that a matrix amplifies."""
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13 * condition**2, atol=1e-13 * condition**2 * np.max(np.abs(y)))


@pytest.mark.parametrize(
    ("fun", "matrix"),
    [
        (MATRICES["inv"], [[1.0, 2.0], [2.0, 4.0]]),
        (MATRICES["inv"], [[0.0, 0.0], [0.0, 0.0]]),
        (MATRICES["solve"], [[0.0, 2.0], [0.0, 4.0]]),
        (lambda a: np.sum(np.linalg.cholesky(a)), [[1.0, 1.0], [1.0, 1.0]]),
        (lambda a: np.sum(np.linalg.cholesky(a)), [[1.0, 2.0], [2.0, 1.0]]),
    ],
)
def test_matrices_that_lapack_refuses(fun, matrix):
    apart, whole = both(grad, fun, np.array([[2.0, 0.5], [0.5, 1.0]]))
    for derivative in (apart, whole):
        with pytest.raises(np.linalg.LinAlgError):
            derivative(np.array(matrix))


def test_singular_matrices_have_determinants():
    singular = [np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]), np.diag([0.0, 1.0, 2.0])]
    apart, whole = both(value_and_grad, np.linalg.det, MATRIX)
    for matrix in singular:
        agree(apart(matrix), whole(matrix))
    apart, whole = both(value_and_grad, lambda a: np.linalg.slogdet(a)[1] + np.sum(a), MATRIX)
    for derivative in (apart, whole):
        with pytest.raises(np.linalg.LinAlgError):
            derivative(singular[0])


TYPED = [np.sum, np.prod, np.mean, lambda x, **d: np.cumsum(x, **d)[1], lambda x, **d: np.cumprod(x, **d)[1]]


@pytest.mark.parametrize("fun", [*TYPED, lambda x, **d: np.trace(x * x[:, None], **d)])
def test_a_dtype_that_is_the_numbers_own(fun):
    derivative, without, x = grad(lambda x: fun(x * x, dtype=float)), grad(lambda x: fun(x * x)), np.array([0.5, 2.0, 3.0])
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), without(x))


def test_products_that_cost_less_as_calls_are_calls():
    w, x = np.sin(np.arange(64.0)).reshape(8, 8), np.cos(np.arange(8.0))
    apart, whole = both(value_and_grad, lambda w, x: np.sum(np.tanh(w @ x)[:3] ** 2), w, x, argnums=1)
    source = apart.source(w, x, fast=True)
    assert "w.dot(x)" in source
    assert "= tanh(" in source
    agree(apart(2.0 * w, x), whole(2.0 * w, x), 1e-12)


def test_powers_that_branches_depend_on_stay_real():
    def fun(x):
        v = np.power(x - 1.25, 0.7)
        return np.nansum(2 * v if np.sum(v) > 7 else v)

    derivative, x = value_and_grad(fun), np.array(0.4)
    with np.errstate(invalid="ignore"):
        for _ in range(3):
            value, slope = derivative(x)
            assert (value, slope) == (0.0, 0.0)
            assert type(value) is np.float64


def filtered(x, rate):
    level = 0.0
    for i in range(1, len(x)):
        level = rate * level + np.tanh(x[i] - level) * x[i - 1]
    return level**2


def backwards(x, rate):
    state = np.array([1.0, 0.5])
    for i in range(len(x) - 1, 0, -2):
        state = np.array([np.sin(state[1]) + x[i, 0] * rate, state[0] * x[i, 1] - x[i - 1, 0]])
    return state @ state + x[0, 0] * x[-1, 1] ** 2


def row_by_row(x, rate):
    state = np.array([1.0, 0.5])
    for row in x:
        state = np.tanh(rate * state + row * state[::-1])
    return state.sum()


def drawn_twice(x, rate):
    total = 0.0
    for i in range(len(x)):
        total = total * rate + x[i] * x[(len(x) - 1) - i]
    return total


def kept(x, rate):
    total, means = 0.0, np.zeros_like(x)
    for i in range(len(x)):
        total = total * rate + x[i]
        means[i] += total
    return means @ means + np.sum(np.sin(means[3:5]))


@pytest.mark.parametrize("fun", [filtered, backwards, row_by_row, drawn_twice, kept])
@pytest.mark.parametrize("count", [20, 60, 300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loops_over_what_they_are_differentiated_by(fun, count, dtype):
    """The cotangents of rows, one an iteration, are put together after the loop."""
    shape = (count, 2) if fun in (backwards, row_by_row) else (count,)
    x = np.sin(1.0 + np.arange(np.prod(shape))).reshape(shape).astype(dtype)
    for wrapped in (grad, value_and_grad):
        derivative = wrapped(fun, (0, 1))
        dynamic = flatten(wrapped(fun, (0, 1), mode="dynamic")(x, 0.7))[0]
        for _ in range(3):
            for found, expected in zip(flatten(derivative(x, 0.7))[0], dynamic, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == np.float32 else 1e-11, atol=1e-13)
    if fun in (filtered, backwards, row_by_row) and dtype is np.float64:
        loops = grad(fun).source(x, 0.7, fast=True).split("for ")
        assert "] += " not in "".join(loops[2:]).split("reverse()")[0]


def test_loops_that_fill_arrays_are_not_taken_apart():
    """What an inner loop saves may be arrays already, where an outer loop is taken apart: AttributeError."""

    def fun(x):
        total, b = 0.0, x * 2
        for _ in range(6):
            a = b
            for _ in range(6):
                total += b[0] * b[-1]
                a += np.roll(b, 1) * np.roll(a, 1) * 1e-3
        return total + np.sum(np.sin(a)) + np.sum(np.sin(b))

    x = np.linspace(-0.5, 0.7, 6)
    derivative = grad(lambda x: np.sum(np.sin(grad(fun)(x))))
    expected = grad(lambda x: np.sum(np.sin(grad(fun)(x))), mode="dynamic")(x)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-10)


def test_sums_of_many_terms():
    """As many as Python's recursion is deep, of small arrays."""

    def total(a, u):
        return np.einsum("kl,ii,j->", a, a, u) * 1.5

    a, u = np.sin(np.arange(36.0)).reshape(6, 6), np.ones(6)
    derivative = value_and_grad(total)
    for _ in range(4):
        value, slope = derivative(a, u)
        assert value == pytest.approx(9.0 * np.trace(a) * np.sum(a), rel=1e-12)
        np.testing.assert_allclose(slope, 9.0 * (np.trace(a) + np.sum(a) * np.eye(6)), rtol=1e-12)


def test_numbers_that_are_saved_together_are_read_in_their_order():
    """Those that another loop reads in another order than they are saved in."""

    def fun(x, y):
        R, s = np.full((7, 5), 0.3), 0.1
        for i in range(6, 0, -1):
            a = np.stack([y[0], x[i - 1]]).sum() * R[i - 1, 1]
            R[i, 1] = R[i - 1, 2] + a
            a = np.stack([y[1], x[i - 1]]).sum() * R[i - 1, 2]
            R[i, 2] = R[i - 1, 2] + a
            a = x[i - 1] * R[i - 1, 3]
            R[i, 3] = R[i - 1, 2] + a
            s = R[i - 1, 2]
            s = 0.5 * s + R[i - 1, 2]
            s = s * R[i, 4]
        return np.sum(R * np.cos(R)) + s

    x, v, y = np.linspace(0.2, 0.9, 6), np.ones(6), np.array([0.4, 0.7])
    product = hvp(fun)
    for _ in range(4):
        np.testing.assert_allclose(product(x, v, y), hvp(fun, mode="dynamic")(x, v, y), rtol=1e-12)


@pytest.mark.long
def test_tables_stay_whole():
    """What loops in loops fill number by number is one array, or nested list, written in place; all else is numbers."""

    def soft(x, y, g):
        n, m = len(x), len(y)
        R = np.full((n + 1, m + 1), 1e10)
        R[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                z = np.array([R[i - 1, j], R[i, j - 1], R[i - 1, j - 1]])
                low = z.min()
                R[i, j] = (x[i - 1] - y[j - 1]) ** 2 + low - g * np.log(np.sum(np.exp(-(z - low) / g)))
        return R[n, m]

    loops = set()
    for n in (6, 12, 24):
        derivative, dynamic = grad(soft, (0, 1, 2)), grad(soft, (0, 1, 2), mode="dynamic")
        for turn in range(4):
            args = np.sin(np.arange(n) + turn), np.cos(np.arange(n)), 0.3
            for mine, theirs in zip(derivative(*args), dynamic(*args), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
        text = derivative.source(*args, fast=True)
        assert re.search(r"R\[\w+\]\[\w+\] = ", text)
        assert "np.stack" not in text
        assert text.count(".copy()") <= 3, text  # of the table that the function makes, and of results
        loops.add(text.count("    for "))
    assert loops == {4}  # however long they are


def test_powers_of_what_a_table_holds_are_numpys():
    """Of a negative float Python's are complex, and zero has none."""

    def fun(x):
        table = np.zeros(3)
        table[0] = x
        return table[0] ** 0.5

    for _ in range(2):
        derivative = value_and_grad(fun)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for x in (0.3, -0.7, 0.0, -0.0, 2.0, -1.0, np.nan, 0.0):
                np.testing.assert_equal(derivative(x), value_and_grad(fun, mode="dynamic")(x))
            assert derivative.cache_info().misses == 2


def test_code_that_is_given_up_answers_no_call(monkeypatch):
    def refuse(*values):
        raise ValueError

    derivative = value_and_grad(lambda x: np.sum(np.sqrt(x) * x))
    monkeypatch.setattr(Piece, "plain", refuse)
    good, bad = np.array([0.5, 0.25]), np.array([0.0, 0.25])
    derivative(good)
    derivative(good)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (bad, bad, bad, bad, bad, good, bad):
            np.testing.assert_equal(derivative(x), value_and_grad(lambda x: np.sum(np.sqrt(x) * x), mode="dynamic")(x))
    assert "the function does not" in derivative.explain()


def test_rows_of_plain_numbers_in_matrices_of_numbers():
    """The last row of what moves a robot's joints is made of whole numbers; it keeps none of the rest from being numbers."""

    def reach(angles):
        T = np.eye(3)
        for k in range(3):
            c, s = np.cos(angles[k]), np.sin(angles[k])
            T = T @ np.array([[c, -s, 0.5 * c], [s, c, 0.5 * s], [0, 0, 1]])
        return T[0, 2] ** 2 + T[1, 2]

    derivative, angles = grad(reach), np.array([0.3, -0.2, 0.9])
    for turn in range(3):
        slope = derivative(angles + 0.1 * turn)
    np.testing.assert_allclose(slope, grad(reach, mode="dynamic")(angles + 0.2), rtol=1e-13)
    assert "stack" not in derivative.source(angles, fast=True)


def test_long_tables_of_constants_stay_arrays():
    """Noise that is drawn beforehand, say: a loop was given its elements, and took it as an array."""

    def fun(a, y):
        noise = np.random.default_rng(0).standard_normal((100, 3))
        x, weight, total = np.linspace(-1.0, 2.0, 3), np.zeros(3), 0.0
        for t in range(len(y)):
            x = a * x + noise[t]
            weight = weight - 0.5 * (y[t] - x**2) ** 2
            top = weight.max()
            total += top + np.log(np.exp(weight - top).mean())
        return total

    agrees(fun, 0.5, np.linspace(0.1, 0.9, 50))


def test_arrays_that_loops_run_over_are_lists_of_numbers():
    """What an inner loop's iterations have in common is computed for all of them before it, as an array (ValueError)."""

    def warped(a):
        n = 10
        cost = np.full((n + 1, n + 1), np.inf)
        cost[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                before = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
                cost[i, j] = np.sum((a[i] - a[10 + j]) ** 2) + before
        return cost[n, n]

    agrees(warped, np.sin(np.arange(60.0)).reshape(30, 2))


def test_arrays_whose_rows_are_added_to_stay_arrays():
    """At places known at run time: taking ten rows apart in each iteration took most of the time."""
    first, second = np.triu_indices(10, 1)

    def fun(x):
        total = 0.0
        for k in range(len(first)):
            d = x[first[k]] - x[second[k]]
            if np.dot(d, d) < 2.0:
                total += np.dot(d, d) ** 2
        return total

    rng = np.random.default_rng(3)
    with without("vectorize"):
        derivative = grad(fun)
        for _ in range(6):
            x = rng.normal(size=(10, 3))
            np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x), rtol=1e-12)
        assert derivative.cache_info().hits
        assert "pack_30" not in str(derivative.source(x, fast=True))


def test_numbers_read_from_a_long_table_at_labels_are_pythons():
    """What goes back to the table is written into it by NumPy."""

    def aligned(table, labels):
        before = [table[0, labels[0]]] + [-1e9] * (len(labels) - 1)
        for t in range(1, len(table)):
            here = []
            for s in range(len(labels)):
                here.append((before[s] if s == 0 else np.logaddexp(before[s], before[s - 1])) + table[t, labels[s]])
            before = here
        return -before[-1]

    derivative = grad(aligned)
    for turn in range(4):
        args = np.cos(np.arange(300.0) * (turn + 1)).reshape(30, 10), [1, 3, 2 + turn, 5, 4]
        np.testing.assert_allclose(derivative(*args), grad(aligned, mode="dynamic")(*args), rtol=1e-12)
    assert "np.logaddexp(" not in re.sub("#.*", "", derivative.source(*args, fast=True))


Y12 = np.random.default_rng(1).standard_normal((12, 3))
A12 = np.eye(12) + 0.1 * np.random.default_rng(2).standard_normal((12, 12))


def _cheapest(costs):
    """The soft minimum of the costs of all paths through a table."""
    n, m = costs.shape
    r = np.full((n + 1, m + 1), 1e10)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = -r[i - 1, j - 1], -r[i - 1, j], -r[i, j - 1]
            largest = max(a, b, c)
            total = np.exp(a - largest) + np.exp(b - largest) + np.exp(c - largest)
            r[i, j] = costs[i - 1, j - 1] - (np.log(total) + largest)
    return r[n, m]


TABLES_OF_NUMPY = {
    "sum": lambda x: np.sum((x[:, None] - Y12[None]) ** 2, axis=2),
    "matmul": lambda x: np.abs(x @ Y12.T) + 1,
    "stack of products": lambda x: ((x[:, None, :] - Y12) @ np.ones((3, 1)))[..., 0] ** 2,
    "norms": lambda x: 1 - (x @ Y12.T) / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(Y12, axis=1),
    "solve": lambda x: np.abs(np.linalg.solve(A12, x @ Y12.T)),
    "inverse": lambda x: np.abs(np.linalg.inv(A12 + x @ Y12.T / 50)),
    "factor": lambda x: np.linalg.cholesky(A12 @ A12.T + x @ x.T) ** 2,
    "eigenvectors": lambda x: np.linalg.eigh(A12 @ A12.T + x @ x.T)[1] ** 2,
    "both of a decomposition": lambda x: (
        np.multiply.outer(*np.linalg.eigh(A12 @ A12.T + x @ x.T)).reshape(12, -1)[:, 12:24] ** 2
    ),
    "einsum": lambda x: np.einsum("ik,jk->ij", x, Y12) ** 2,
    "sort": lambda x: np.sort((x @ Y12.T) ** 2, axis=1),
    "where": lambda x: np.where(x @ Y12.T > 0, x @ Y12.T, 0.1),
    "rows in another order": lambda x: ((x @ Y12.T) ** 2)[np.arange(12)[::-1]],
    "spectrum": lambda x: np.abs(np.fft.fft(x @ Y12.T, axis=1)) ** 2,
    "ranks": lambda x: x @ Y12.T * np.argsort(np.argsort(x @ Y12.T, axis=1), axis=1),
}


@pytest.mark.parametrize("name", TABLES_OF_NUMPY)
def test_loops_are_of_numbers_whatever_numpy_has_made_of_their_tables(name):
    fun = lambda x: _cheapest(TABLES_OF_NUMPY[name](x))
    derivative = value_and_grad(fun)
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal((12, 3))
        value, slopes = derivative(x)
        expected, wanted = value_and_grad(fun, mode="dynamic")(x)
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        np.testing.assert_allclose(slopes, wanted, rtol=0, atol=1e-9 * np.max(np.abs(wanted)))
    code = derivative.source(x, fast=True)
    assert "np.where(b >" not in code
    assert "np.float64(" not in code
    assert " else " in code


def _aligned(x, y):
    n, m = len(x), len(y)
    r = np.zeros((n + 1, m + 1))
    for i in range(n):
        for j in range(m):
            r[i + 1, j + 1] = np.tanh(r[i, j] + x[i] * y[j]) - 0.5 * min(r[i, j + 1], r[i + 1, j])
    return r


def _read_backwards(x, y):
    r = np.zeros(len(x))
    for i in range(-1, -len(x), -1):
        r[i - 1] = np.sin(r[i] + x[i] * y[0]) * (2.0 if r[i] > 0.1 else 1.0)
    return r[0] + r[-2]


def _of_rows(x, y):
    r = np.zeros((len(x), 3))
    for t in range(1, len(x)):
        for k in range(3):
            r[t, k] = np.sin(r[t - 1, (k + 1) % 3] + x[t]) * (y[0] if x[t] > 0 else y[1])
        r[t] *= 0.5
    return np.sum(r)


def _hardly_read(x, y):
    r = np.zeros((40, 40))
    for i in range(5):
        r[i + 1, 2 * i] = np.sin(r[i, i] + x[i]) * (y[0] if x[i] > 0 else y[1])
    return np.sum(r)


LISTED = {
    "one number in the end": (lambda x, y: _aligned(x, y)[len(x), len(y)], True),
    "all in the end": (lambda x, y: np.sum(_aligned(x, y)[1:] ** 2), True),
    "both": (lambda x, y: np.sum(np.sin(_aligned(x, y))) + _aligned(y, x)[3, 3], True),
    "backwards": (_read_backwards, True),
    "rows, too": (_of_rows, True),
    "hardly read": (_hardly_read, False),
}


@pytest.mark.parametrize("name", LISTED)
def test_arrays_that_loops_go_through_number_by_number_are_lists_meanwhile(name):
    fun, listed = LISTED[name]
    derivative = value_and_grad(fun, (0, 1))
    with without("lists"):
        plain = value_and_grad(fun, (0, 1))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        args = rng.standard_normal(14), rng.standard_normal(11)
        agree(derivative(*args), plain(*args), 0.0)
        agree(derivative(*args), value_and_grad(fun, (0, 1), mode="dynamic")(*args), 1e-11)
    assert (derivative.source(*args, fast=True) != plain.source(*args, fast=True)) is listed


def test_whole_numbers_overflow_in_tables_as_numpys_do():
    def powers(x):
        k, s = np.ones(80, dtype=int), 0.0
        for i in range(79):
            k[i + 1] = k[i] * 3 if x[i % 5] > -9 else 0
            s = s * 0.5 + x[i % 5] * 0.1 if x[i % 5] > 0 else np.sin(s)
        return s * x[0] + np.sum(k % 7) * x[1]

    derivative = value_and_grad(powers)
    with np.errstate(over="ignore"):
        for seed in range(5):
            x = np.random.default_rng(seed).standard_normal(5)
            agree(derivative(x), value_and_grad(powers, mode="dynamic")(x), 1e-13)
            assert derivative(x)[0] == pytest.approx(powers(x), rel=1e-13)


def walk_until(x):
    s = x[0] * 2.0
    for i in range(1, 60):
        if s > 5.0:
            break
        s = s + x[i] * s
    return s


def test_a_table_to_which_a_number_is_added_stays_an_array():
    derivative, x = value_and_grad(walk_until), np.linspace(0.1, 0.2, 60)
    for _ in range(4):
        derivative(x)
    lines = derivative.source(x, fast=True).splitlines()
    assert any(re.search(r"g_x\w*\[0\] \+= ", line) for line in lines)
    assert not any(re.search(r"(\w+, ){20}", line) for line in lines)


def exponentials(x):
    f = np.zeros(10)
    for i in range(1, 11):
        f[i - 1] = 2 + 2 * i - (np.exp(0.1 * i * x[0]) + np.exp(0.1 * i * x[1]))
    return f


def banded(x):
    f = np.zeros(6)
    for i in range(6):
        total = 0.0
        for j in range(max(0, i - 3), min(6, i + 2)):
            if j != i:
                total += x[j] * (1 + x[j])
        f[i] = x[i] * (2 + 5 * x[i] ** 2) + 1 - total
    return f


def from_the_last(x):
    state, kept = x[0], []
    for k in range(7):
        state = np.sin(state + 0.1 * k) * x[1]
        kept.append(state)
    return np.array(kept[::-1])


def by_sign(x):
    total = x[0]
    for i in range(5):
        total = total * np.tanh(x[i % 3]) if x[i % 3] > 0 else total + x[i % 3] * i
    return np.array([total, total**2])


def rows_of_products(x):
    table, out = np.outer(x, x), np.zeros(3)
    for row in table:
        out = out + np.cos(row) * row[0]
    return out


@pytest.mark.parametrize("fun", [exponentials, banded, from_the_last, by_sign, rows_of_products])
def test_short_loops_written_out(fun):
    """In a few directions, where loops would be of rows of numbers."""
    size = {exponentials: 2, banded: 6, from_the_last: 2}.get(fun, 3)
    derivative, plain = jacobian(fun), jacobian(fun, mode="dynamic")
    twice, slow = (hessian(lambda x: np.sum(fun(x) ** 2), mode=mode) for mode in ("compiled", "dynamic"))
    for x in np.random.default_rng(0).normal(size=(4, size)):
        for _ in range(2):
            found, curved = derivative(x), twice(x)
        np.testing.assert_allclose(found, plain(x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(curved, slow(x), rtol=1e-8, atol=1e-9)
    if fun in (exponentials, banded):
        assert "for " not in derivative.source(x, fast=True).split('"""')[-1]


def test_lists_become_arrays_once():
    def angles(x):
        a = total = 0.0
        for t in x:
            a = a + t
            total = total + np.cos(a)
        return total**2

    derivative, x = grad(angles), np.linspace(0.1, 0.9, 20)
    for _ in range(3):
        found = derivative(x)
    assert "pack" not in derivative.source(x, fast=True)
    found[:] = 0.0
    np.testing.assert_allclose(derivative(x), grad(angles, mode="dynamic")(x), rtol=1e-10)


EDGES = [(i, (3 * i + 1) % 7) for i in (0, 4, 1, 5, 2, 6)] * 4


def reached(w, times=1, size=7):
    d = np.full(size, 9.0)
    d[0] = 0.0
    for _ in range(times):
        for e, (a, b) in enumerate(EDGES):
            if d[a] + w[e] < d[b]:
                d[b] = d[a] + w[e]
    return np.sum(d)


def reached_both_ways(w):
    d = np.full(7, 9.0)
    d[0] = 0.0
    for e, (a, b) in enumerate(EDGES):
        for i, j in ((a, b), (b, a)):
            if d[i] + w[e] < d[j]:
                d[j] = d[i] + w[e]
    return np.sum(d)


def code_of(fun):
    """What runs, which is right."""
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for w in np.random.default_rng(0).uniform(0.2, 2.0, (4, len(EDGES))):
        value, slope = derivative(w)
        assert value == fun(w)
        np.testing.assert_allclose(slope, plain(w)[1])
    return derivative.source(w, fast=True)


def test_of_small_tables_that_ifs_write_to_numbers_are_saved():
    """So that they stay tables: to save all of them, they were taken apart and put together in each iteration."""
    assert "pack" not in code_of(reached)


def test_loops_that_decide_alike_run_once():
    """What a loop in a loop saves for the way back is saved where the function runs it."""
    assert code_of(lambda w: reached(w, 5, 40)).count("in range(24):") == 1


def test_few_numbers_to_choose_from_are_a_list():
    assert "np.array([" not in code_of(reached_both_ways)


def extremes(w, least, kind=np.float64):
    numbers = (np.exp(w) * 3).astype(kind)
    best, low = kind(1), kind(0)
    for number in (numbers[0], numbers[1], numbers[3] - numbers[2]):
        best, low = max(best, number), min(low, best - number)
    chosen = np.where(best > 2, best / (low - 1), 0.5) + np.where(low < best, low, best)
    return max(chosen, least) * np.where(chosen > numbers[4], 2, low) * np.sum(numbers)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_choices_between_numbers_of_numpys_are_conditional_expressions(kind):
    """In code that has NumPy's numbers, as it has more operations than Python's floats are worth, or where those raise."""
    fun = lambda w, least: extremes(w, least, kind)
    plain, rng = value_and_grad(fun, mode="dynamic"), np.random.default_rng(0)
    with without("math", "scalarize"):
        derivative = value_and_grad(fun)
        for k in range(10):
            w = rng.normal(size=30) if k < 6 else np.full(30, [0.0, -3.0, 1.0, 0.1][k - 6])
            args = w, kind(rng.normal())
            value, slope = derivative(*args)
            want, wanted = plain(*args)
            assert type(value) is type(want) is type(fun(*args)) is kind
            np.testing.assert_allclose(value, fun(*args), rtol=1e-6)
            np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-12)
        assert "where(" not in re.sub("#.*", "", derivative.source(*args, fast=True))


def test_both_sides_of_a_choice_between_numbers_warn_as_numpys_do():
    fun = lambda w: np.where((v := np.exp(w)[1] - 1) != 0, np.exp(w)[0] / v, 2.0) * np.sum(w)
    with without("math", "scalarize"):
        derivative = value_and_grad(fun)
        for number in (1.0, 0.5, 0.2):
            derivative(np.full(30, number))
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            value, _ = derivative(np.zeros(30))
    assert value == 0.0
