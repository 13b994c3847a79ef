"""Plain arrays that a function makes and fills: right with traced values in them, plain and fast with numbers."""

import contextlib
import copy
import functools
import math
import operator
import pickle
import struct
from collections import OrderedDict, deque

import numpy as np
import pytest
from agreement import agrees, scalar
from numpy import zeros

from symgrad import checkpoint, grad, hessian, jacobian, jvp, stop_gradient, value_and_grad, vmap
from symgrad.errors import MutatedInput
from symgrad.tracing.tracer import Tracer

X = np.array([0.3, 0.7, 1.1])
PROGRAMS = {}


def program(fun):
    PROGRAMS[fun.__name__] = fun
    return fun


# -- ways to make an array, and to fill it -------------------------------------------------------------------------


@program
def one_by_one(x):
    b = np.zeros(3)
    for i in range(3):
        b[i] = np.sin(x[i])
    return b * b


@program
def long_loop(x):
    b = np.empty(30)
    for i in range(30):
        b[i] = np.sin(x[i % 3]) * i
    return b


@program
def by_their_class(x):
    b, c = np.ndarray(3), np.ndarray((2, 3), dtype=np.float64)
    b[:2], c[0], c[1] = x[:2], x * x, 1.0
    b[2] = c[0, 1]
    return b, c


@program
def imported_by_name(x):
    b = zeros(3)
    b[:] = x
    return b


@program
def makers(x):
    made = [
        np.full(3, 2.0),
        np.ones(3),
        np.zeros_like(np.arange(3.0)),
        np.arange(3.0),
        np.linspace(0, 1, 3),
        np.array([1.0, 2.0, 3.0]),
        np.eye(3)[0],
        np.identity(3)[1],
        np.diag([1.0, 2.0, 3.0])[2],
        np.tile(np.array([1.0]), 3),
        np.sqrt(np.arange(3.0)),
        np.zeros(3) + 1.0,
        X.copy(),
        np.meshgrid(np.arange(3.0), np.arange(2.0))[0][1],
        np.random.default_rng(0).normal(size=3),
        np.atleast_2d(np.ones(3))[0],
        getattr(np, "zeros")(3),  # noqa: B009
        functools.partial(np.zeros, dtype=float)(3),
        (lambda n: np.zeros(n))(3),
    ]
    for i, b in enumerate(made):
        b[i % 3] = x[0] * i
    return made


@program
def in_place(x):
    b, c = np.ones(3), np.zeros(3)
    for i in range(3):
        b[i] *= x[i]
    c += x
    c[0] += x[1]
    c -= 2 * b
    return b, c


@program
def by_functions(x):
    made = [np.zeros((3, 3)) for _ in range(6)]
    np.fill_diagonal(made[0], x)
    np.copyto(made[1], x)
    np.add.at(made[2], [0, 1, 0], x[:, None])
    np.put(made[3], [0, 4], x[:2])
    np.place(made[4], made[4] == 0, x[1:])
    made[5].fill(x[0])
    return made


@program
def out(x):
    a, b, c, d, s = np.empty(3), np.empty((3, 3)), np.zeros(3), np.ones(3), np.zeros(())
    np.multiply(x, x, out=a)
    np.matmul(x[:, None], x[None], out=b)
    np.cumsum(x, out=c)
    np.exp(x, where=X > 0.5, out=d)
    np.sum(x, out=s)
    return a, b, c, d, s


@program
def out_by_position(x):
    a, b, c, d = np.zeros((3, 3)), np.zeros(3), np.zeros(3), np.zeros(3)
    np.dot(x[:, None], x[None], a)
    np.exp(x, b)
    np.cumsum(x, 0, None, c)
    a.sum(0, None, d)
    return a, b, c, d


@program
def out_by_position_of_a_method(x):
    b = np.zeros(2)
    x.clip(-0.5, 0.5, b) if x.shape == b.shape else x.reshape(3, 1).dot(x[:1], c := np.zeros(3))
    return b, x if x.shape == b.shape else c


@program
def indices(x):
    a, b, c, d = np.zeros((2, 3)), np.zeros(6), np.zeros((3, 3)), np.zeros((2, 2, 3))
    for i in range(2):
        a[i, :] = x ** (i + 1)
        for j in range(3):
            a[i][j] += x[j]
    b[::2] = x
    b[1::2] += x
    b[-1] *= x[0]
    b.flat[1] = x[0]
    c[np.tril_indices(3)] = np.concatenate([x, x])
    c[[0, 1]] = c[[1, 0]]
    d[..., 0] = x[0]
    d[0, ...] += x
    d[None, 0, :, 1] = 5.0
    return a, b, c, d


@program
def complex_numbers(x):
    a, b = np.zeros(3, complex), np.zeros(3, complex)
    a[0] = x[0] + 1j * x[1]
    b.real = x
    b.imag[1] = x[0]
    return np.abs(a) ** 2, np.abs(b) ** 2


@program
def views(x):
    b = np.zeros((3, 4))
    row, turned, flat, strided = b[1], b.T, b.reshape(-1), b[:, ::2]
    row[0] = 1.0
    seen = b[1, 0] + 2 * turned[0, 1] + 3 * flat[4] + 4 * strided[1, 0]
    turned[2, 1] = x[0]
    row[3] = x[1]
    strided[0] = x[:2]
    flat[-1] = x[2]
    b *= 2.0
    return row, turned, flat, strided, seen * x


@program
def names_and_copies(x):
    a = b = np.zeros(3)
    c, d, e = b.copy(), np.asarray(b), copy.deepcopy(b)
    e[0] = x[2]
    a[0] = x[0]
    c[0] = 2 * x[1]
    d[1] = x[2]
    a, c = c, a
    c[2] = x[0] * x[1]
    return a, b, c, d, e


# -- where it is made and filled -----------------------------------------------------------------------------------


def filled(b, x):
    for i in range(3):
        b[i] = x[i] ** 3


class Table:
    def __init__(self, n):
        self.b = np.zeros(n)

    def fill(self, x):
        for i in range(len(x)):
            self.b[i] = x[i] ** 2
        return self.b


@program
def elsewhere(x):
    b, c = np.zeros(3), {"a": np.zeros(2)}
    filled(b, x)
    c["a"][0] = x[0]

    def put(i):
        b[i] += x[i] ** 2

    for i in range(3):
        put(i)
    rows = [np.zeros(2) for _ in range(3)]
    for i, row in enumerate(rows):
        row[0], row[1] = x[i], x[i] ** 2
    return b, c, rows, Table(3).fill(x)


# -- programs ------------------------------------------------------------------------------------------------------


@program
def kernel_matrix(x):
    a = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            a[i, j] = x[i] * x[j] + np.exp(-((x[i] - x[j]) ** 2))
    return np.linalg.det(a + np.eye(3))


@program
def shortest_path(x):
    d = np.full((4, 4), np.inf)
    d[0, 0] = 0.0
    for i in range(1, 4):
        for j in range(1, 4):
            d[i, j] = (x[i - 1] - 2 * x[j - 1] + 1) ** 2 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[3, 3]


@program
def euler(x):
    y = np.zeros((50, 2))
    y[0] = x[:2]
    for k in range(49):
        y[k + 1, 0] = y[k, 0] + 0.01 * y[k, 1]
        y[k + 1, 1] = y[k, 1] - 0.01 * x[2] * y[k, 0]
    return y[-1]


@program
def tridiagonal(x):
    a, b, c, d = np.full(6, -1.0), np.full(6, 2.0), np.full(6, -1.0), np.ones(6) * x[0]
    b = b + x[1]
    for i in range(1, 6):
        m = a[i] / b[i - 1]
        b[i] = b[i] - m * c[i - 1]
        d[i] = d[i] - m * d[i - 1]
    u = np.zeros(6)
    u[-1] = d[-1] / b[-1]
    for i in range(4, -1, -1):
        u[i] = (d[i] - c[i] * u[i + 1]) / b[i]
    return u


@program
def elimination(x):
    a = np.eye(3)
    a[0] = x
    a[2, 1] = 2.0
    for k in range(2):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        a[[k, pivot]] = a[[pivot, k]]
        for i in range(k + 1, 3):
            a[i] = a[i] - a[i, k] / a[k, k] * a[k]
    return np.prod(np.diag(a))


@program
def two_buffers(x):
    u = np.zeros(20)
    v = np.empty_like(u)
    u[8:12] = x[0]
    for _ in range(15):
        v[:] = u
        v[1:-1] += 0.2 * x[1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        u, v = v, u
    return u * x[2]


@program
def open_loop(x):
    b = np.zeros(2)
    b[0] = x[0]
    while b[0] < 5.0:
        b[0] = b[0] * 1.5 + x[1]
        b[1] += x[2]
    return b[0] * b[1]


@program
def branches(x):
    b = np.zeros(3)
    for i in range(3):
        b[i] = x[i] ** 2 if x[i] > 0.5 else 1.0
    return b


@program
def random_walk(x):
    rng, w = np.random.default_rng(3), np.zeros(10)
    for i in range(1, 10):
        w[i] = w[i - 1] + x[0] * rng.normal()
    return w


@program
def derivatives_inside(x):
    def inner(y):
        b = np.zeros(3)
        for i in range(3):
            b[i] = y[i] ** 3
        return b.sum()

    c = np.ones(3)
    c[0] = 2.0
    return grad(inner)(x), checkpoint(inner)(x), grad(lambda y: np.sum(y**2 * x))(c)


# -- with numbers only, an array stays plain -----------------------------------------------------------------------


@program
def looked_at(x):
    b = np.array([1.0, 2.0, 3.0])
    b[0] = 5.0
    seen = isinstance(b, np.ndarray) and type(b) is np.ndarray and b.shape == (3,) and len(b) == 3 and b.dtype == float
    if not (seen and b.tolist() == [5.0, 2.0, 3.0] and str(b) == "[5. 2. 3.]" and b.any() and 3.0 in b):
        raise AssertionError
    n = float(b[0]) + math.sqrt(b[1]) + max(b) + sum(b) + min(b, key=lambda v: -v) + sorted(b)[1]
    return n * x[0] + sum(v * w for v, w in zip(b, x, strict=True)) + x[b > 2.5].sum()


@program
def joined(x):
    b = np.zeros(3)
    b[0] = 2.0
    a, c = np.array([b, b * 2]), np.vstack((b, b))
    a[1] = x
    c[0, 1] = x[1]
    return a, c, np.stack([b, x]), np.vectorize(lambda v: v * 2)(b) * x


@program
def constant_tables(x):
    n = 20
    a, c, s = np.zeros((n, n)), np.zeros(n), np.ones(n)
    c[0] = 1.0
    for i in range(n):
        a[i, i] = 2.0
        if i:
            a[i, i - 1] = a[i - 1, i] = -1.0
            c[i] = c[i - 1] * 0.5
    for i in range(2, 5):
        for j in range(i * i, n, i):
            s[j] = 0
    return np.linalg.solve(a, c * x[0]), s * x[1]


@program
def integers(x):
    k, m, order = np.zeros(3, int), np.zeros(3, bool), np.arange(3)
    k[1], m[1] = 2, True
    order[0], order[2] = order[2], order[0]
    return x[order] * k, x[m]


@program
def several_uses(x):
    b = np.zeros(3)
    s = 0.0
    for i in range(3):
        b[i] = i + 1.0
        s = s + np.sum(b * x)
    return s


@pytest.mark.parametrize("fun", PROGRAMS.values(), ids=PROGRAMS)
def test_program(fun):
    agrees(fun, X)


@pytest.mark.parametrize("fun", PROGRAMS.values(), ids=PROGRAMS)
def test_compiled(fun):
    derivative = grad(scalar(fun))
    for _ in range(3):
        derivative(X)
    assert "  compiled;" in derivative.explain()
    assert derivative.cache_info().hits == 1


def test_other_derivatives():
    def cubes(x):
        b = np.zeros(3)
        for i in range(3):
            b[i] = x[i] ** 3
        return b

    for mode in ("auto", "dynamic"):
        np.testing.assert_allclose(jacobian(cubes, mode=mode)(X), np.diag(3 * X**2))
        np.testing.assert_allclose(hessian(lambda x: cubes(x).sum(), mode=mode)(X), np.diag(6 * X))
    np.testing.assert_allclose(jvp(cubes, (X,), (np.ones(3),))[1], 3 * X**2)
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(vmap(grad(lambda x: cubes(x).sum()))(batch), 3 * batch**2)


def test_float32():
    def kept(x):
        b = np.zeros(3, np.float32)
        b[0] = x[0] * x[1]
        return b

    assert jacobian(kept)(X).dtype == np.float64  # as the argument
    np.testing.assert_allclose(jacobian(kept)(X)[0], [0.7, 0.3, 0.0], rtol=1e-6)


def test_what_is_returned_is_plain():
    def made(x):
        b = np.zeros(3)
        b[1] = 2.0
        return np.sum(x * b), b

    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(made, has_aux=True, mode=mode)
        for _ in range(3):
            (_, aux), _ = derivative(X)
            assert type(aux) is np.ndarray
            assert aux.tolist() == [0.0, 2.0, 0.0]
            assert aux.flags.owndata


class Memo:
    """Makes a table once and keeps it."""

    def __init__(self):
        self.table = None

    def loss(self, x):
        if self.table is None:
            self.table = np.zeros(6).reshape(3, 2)
            for i in range(3):
                self.table[i, 0] = i + 1.0
        return np.sum(self.table[:, 0] * x**2)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_the_function_keeps(mode):
    memo = Memo()
    derivative = grad(memo.loss, mode=mode)
    for scale in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(derivative(scale * X), 2 * scale * X * [1, 2, 3])
    assert isinstance(memo.table, np.ndarray)
    assert np.asarray(memo.table)[2, 0] == 3.0
    assert pickle.loads(pickle.dumps(memo)).table[1, 0] == 2.0
    memo.table[0, 0] = 5.0
    np.testing.assert_allclose(derivative(X), 2 * X * [5, 2, 3])


def test_numbers_are_written_in_place():
    """No operation is recorded, and no copy made, while a table is filled with numbers."""

    def loss(x):
        table = np.zeros(1000)
        for i in range(1000):
            table[i] = i * 0.5
        return np.sum(table[:3] * x)

    derivative = grad(loss)
    for _ in range(3):
        np.testing.assert_allclose(derivative(X), [0, 0.5, 1])
    assert len(derivative.graph(X).nodes) < 20


def lent(x, use):
    b = np.zeros(3)
    held = use(b)
    b[0] = x[0]
    return b.sum() + 0.0 * held.sum()


@pytest.mark.parametrize(
    "use", [lambda b: np.frombuffer(b.data), lambda b: np.ctypeslib.as_array(b.ctypes)], ids=["data", "ctypes"]
)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_memory_that_other_code_holds(use, mode):
    """It could not follow what is written into the array."""
    with pytest.raises(MutatedInput, match=r"test_drafts\.py:\d+: .*second name"):
        grad(lent, mode=mode)(X, use)


def test_functions_that_fill_nothing():
    """Their arrays are NumPy's own."""
    kinds = []

    def loss(x):
        kinds.append(np.zeros(3).__class__ is np.ndarray and not isinstance(np.zeros(3), Tracer))
        return np.sum(x * np.arange(3.0))

    grad(loss, mode="dynamic")(X)
    assert kinds == [True]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_plain_arrays_by_their_memory(mode):
    """What a plain array can, one that the function makes can, too, as long as only numbers are in it."""

    def fun(x):
        b = np.array([1.0, 2.0, 3.0])
        memoryview(b)[0] = len(bytes(b)) + len(bytearray(b))
        b.view(np.int64)[1] = 0
        b.data[2] = 5.0
        return np.sum((b * x) ** 2)

    def fill(x, writable):
        b = np.zeros(3)
        b.setflags(write=writable)
        b[1] = x
        return np.sum(b**2)

    derivative, filled = value_and_grad(fun, mode=mode), value_and_grad(fill, mode=mode)
    for x in (1.5, 2.0, 2.5):
        assert derivative(x) == (x**2 * (48.0**2 + 25.0), 2 * x * (48.0**2 + 25.0))
        assert filled(x, True) == (x**2, 2 * x)
    with pytest.raises(ValueError, match="read-only"):
        filled(1.5, False)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_memory_of_outer_arrays(mode):
    held = np.arange(3.0)
    derivative = grad(lambda x: np.sum(np.frombuffer(held) * x), mode=mode)
    for number in range(4):
        held[0] = number
        assert np.array_equal(derivative(np.ones(3)), held)


# -- what code in C writes -----------------------------------------------------------------------------------------


def drawn_into(x):
    rng, a = np.random.default_rng(3), np.zeros(4)
    y = x * a
    rng.standard_normal(out=a)
    z = x * a
    rng.random(out=a)
    return np.sum(y) + 10 * np.sum(z) + 100 * np.sum(x * a)


def shuffled(x):
    rng, a = np.random.default_rng(3), np.arange(4.0)
    y = x * a
    rng.shuffle(a)
    a += 1
    z = x * a[::-1]
    rng.shuffle(a)
    return np.sum(y) + 10 * np.sum(z) + 100 * np.sum(x * a)


def old_style(x):
    rng, a = np.random.RandomState(3), np.arange(4.0)
    view = a[1:]
    y = x * a
    rng.shuffle(a)
    return np.sum(y) + 10 * np.sum(x[1:] * view)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", [drawn_into, shuffled, old_style])
def test_random_numbers_into_arrays_that_have_met_traced_ones(fun, mode):
    """The derivative by each element is what it is multiplied by: its factor at the time."""
    x = np.array([0.5, 1.0, 2.0, 3.0])
    derivative = value_and_grad(fun, mode=mode)
    for _ in range(3):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-14)
        np.testing.assert_allclose(slope, [fun(e) for e in np.eye(4)], rtol=1e-14)


OUTSIDE = np.array([3.0, 1.0, 4.0, 1.5])
COPIES = {
    "copy": lambda y: OUTSIDE.copy(),
    "array": lambda y: np.array(OUTSIDE),
    "row": lambda y: np.stack([OUTSIDE, OUTSIDE])[1],
    "argument's copy": lambda y: y.copy(),
    "argument's sum": lambda y: y + 0,
    "argument's view": lambda y: np.append(y, 1.0)[:-1],
}
WRITERS = {
    "shuffle": lambda a: np.random.default_rng(3).shuffle(a),
    "old shuffle": lambda a: np.random.RandomState(3).shuffle(a),
    "part shuffled": lambda a: np.random.default_rng(3).shuffle(a[1:]),
    "drawn": lambda a: np.random.default_rng(3).standard_normal(out=a),
    "packed": lambda a: struct.pack_into("d", a, 8, 4.0),
    "BLAS": lambda a: pytest.importorskip("scipy.linalg.blas").dscal(2.0, a),
}


def written_to(copied, write):
    def fun(x, y):
        a = copied(y)
        write(a)
        return np.sum(a * x)

    return fun


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_code_in_c_writes_into_copies(copied, write, mode):
    """The derivative by each element is what it is multiplied by, which is what was written there; what was copied stays."""

    fun = written_to(copied, write)
    derivative, given = value_and_grad(fun, mode=mode), OUTSIDE.copy()
    for x in (np.ones(4), np.arange(4.0), np.arange(4.0), np.ones(4)):
        value, slope = derivative(x, given)
        assert value == fun(x, given)
        np.testing.assert_array_equal(slope, [fun(e, given) for e in np.eye(4)])
    np.testing.assert_array_equal([given, OUTSIDE], [[3.0, 1.0, 4.0, 1.5]] * 2)
    assert "return" in derivative.source(x, given)


def doubled(a):
    for item in np.nditer(a, op_flags=["readwrite"]):
        item[...] = 2.0 * item


MEMORY = {
    "memoryview": lambda a: operator.setitem(memoryview(a), 0, 5.0),
    "data": lambda a: operator.setitem(a.data, 0, 5.0),
    "frombuffer": lambda a: operator.setitem(np.frombuffer(a), 0, 5.0),
    "nditer": doubled,
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("write", MEMORY.values(), ids=MEMORY)
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_memory_of_copies_is_written_or_not_at_all(copied, write, mode):
    fun = written_to(copied, write)
    derivative = grad(fun, mode=mode)
    for _ in range(3):
        with contextlib.suppress(MutatedInput, TypeError, ValueError):  # it is read-only
            np.testing.assert_array_equal(derivative(np.ones(4), OUTSIDE), [fun(e, OUTSIDE) for e in np.eye(4)])


def through_a_view(x):
    a = np.arange(4.0)
    memory = memoryview(a)
    y = x * a
    memory[1] = 5.0
    return np.sum(y) + np.sum(x * a)


def through_an_array(x):
    a = np.arange(4.0)
    second = np.asarray(memoryview(a))
    y = x * a
    second += 5.0
    return np.sum(y) + np.sum(x * a)


def through_data(x):
    a = np.arange(4.0)
    y = x * a
    a.data[1] = 5.0
    return np.sum(y) + np.sum(x * a)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", [through_a_view, through_an_array, through_data])
def test_memory_of_arrays_that_have_met_traced_ones_is_not_written(fun, mode):
    with pytest.raises((MutatedInput, TypeError), match=r"changed later through its memory|read-only memory"):
        grad(fun, mode=mode)(np.ones(4))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_calls_beside_assertions(mode):
    """What a call is of is looked for in the bytecode, where more than names is loaded; pytest writes assertions anew."""
    space = {"np": np}
    exec("def fun(x):\n assert np.ndim(x) == 1, f'x has {np.ndim(x)} dimensions'\n return np.sum(x, None, None) * 3.0", space)
    for _ in range(3):
        np.testing.assert_allclose(grad(space["fun"], mode=mode)(np.ones(3)), [3.0, 3.0, 3.0])


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_plain_0d_arrays_are_written_in_place(mode):
    def fun(x):
        total, view = np.zeros(()), np.where(x.size > 1, 2.0, 1.0)
        same = view[...]
        total += 0.5 * total + 1.0  # of plain numbers
        view += 0.1 * x[0]
        total[()] += x[1]
        total *= x[0]
        return total * same

    derivative = grad(fun, mode=mode)
    for _ in range(3):
        np.testing.assert_allclose(derivative(np.array([3.0, 2.0])), [6.9 + 0.9, 6.9], rtol=1e-14)


def counted(x):
    """How often and how much: one is a plain number until the other is written."""
    much, often = np.zeros(3), np.zeros(3)
    for i in range(len(x)):
        if x[i] > 0.0:
            much[i % 3] += x[i]
            often[i % 3] += 1
    return np.sum(much**2 / (1.0 + often))


def added_now_and_then(x):
    sums = np.zeros(len(x) + 1)
    for i in range(len(x)):
        if x[i] > 0.0:
            sums[i + 1] = sums[i] + x[i]
        else:
            sums[i + 1] = 0.5 * sums[i]
    return np.sum(sums**2)


def plain_before(x):
    w = np.zeros(len(x))
    for i in range(len(x)):
        w[i] = 0.5 * i
        if x[i] > 0.0:
            w[i] += x[i]
    return np.sum(w**2)


@pytest.mark.parametrize("fun", [counted, added_now_and_then, plain_before])
def test_arrays_that_iterations_fill_if_they_decide_so(fun):
    """They are as if they had been traced all the time: which iteration is the first to write is no part of the code."""
    g = value_and_grad(fun)
    rng = np.random.default_rng(3)
    for k in range(14):
        x = rng.normal(size=40)
        value, slope = g(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x), rtol=1e-12, atol=1e-12)
        if k == 9:
            known = g.cache_info().misses
    assert g.cache_info().misses == known
    assert len(g.source(x).splitlines()) < 60


def written_if_so(x):
    """What is read before is read as it is then, though no iteration writes."""
    w = np.zeros(len(x))
    s = 0.0
    for i in range(len(x)):
        s = s + (w[i - 1] + 1.0) * x[i]
        if x[i] > 5.0:
            w[i] += x[i]
    return s + np.sum(w)


def two_names(x):
    f = np.zeros(len(x))
    g = f
    for i in range(len(x)):
        if x[i] > 0.0:
            f[i] += 2.0 * x[i]
        g[i] += 1.0
    return np.sum(g**2) + np.sum(f)


def made_anew(x):
    f, s = np.zeros(3), 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            f[0] += x[i]
        if x[i] < -1.0:
            f = np.zeros(3)
        s = s + np.sum(f**2)
    return s + f[0]


def views_of_rows(x):
    f = np.zeros((len(x), 2))
    for i in range(len(x)):
        row = f[i]
        row[0] += x[i]
        row[1] = row[0] * x[i]
    return np.sum(f**2)


def kept_whole(x):
    w, every = np.zeros(len(x)), []
    for i in range(len(x)):
        if x[i] > 0.0:
            w[i] += x[i]
        every.append(w)
    return np.sum(every[0] ** 2) + np.sum(every[-1])


def assigned_by_a_call(x):
    f = np.zeros(4)

    def twice(v):
        nonlocal w
        w = 2.0 * v
        return v

    for i in range(4):
        f[i] += twice(x[i]) + w  # noqa: F821
    w = 0.0
    return np.sum(f**2)


def large(x):
    f = np.zeros(120_000)
    for i in range(len(x)):
        if x[i] > 0.0:
            f[i] += x[i]
    return np.sum(f**2)


@pytest.mark.parametrize("fun", [written_if_so, two_names, made_anew, views_of_rows, kept_whole, assigned_by_a_call, large])
@pytest.mark.parametrize("size", [5, 34])
def test_arrays_of_several_names_and_lives(fun, size):
    g = value_and_grad(fun)
    rng = np.random.default_rng(4)
    for k in range(7):
        x = rng.normal(size=size) * (-1 if k == 3 else 1 + 3 * (k == 5))
        value, slope = g(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(x), rtol=1e-12, atol=1e-12)


def test_copies_hold_the_lists_that_were_copied():
    def fun(x):
        table = np.zeros(2)
        table[0] = x
        rows = [table, [x * x, table]]
        same, other = copy.copy(rows), copy.deepcopy(rows)
        same[1].append(3.0 * x)
        other[1].append(x)
        same[1][1][1] = x * x
        return (rows[1][0] + rows[1][2]) * np.sum(rows[0]) + other[1][2] * other[1][1][0]

    for mode in ("auto", "dynamic"):
        value, slope = value_and_grad(fun, mode=mode)(0.5)
        assert value == fun(0.5) == 1.5625
        assert slope == 7.5


def with_blanks(x, labels):
    extended = np.zeros(2 * len(labels) + 1, int)
    extended[1::2] = labels
    skipping = np.zeros(len(extended), bool)
    skipping[2:] = (extended[2:] != 0) & (extended[2:] != extended[:-2])
    return np.sum(x[extended] ** 2) + np.sum(np.where(skipping, x[extended], 1.0))


def by_counts(x, labels):
    counts = np.zeros(4, int)
    np.add.at(counts, labels, 1)
    return np.sum(x[labels] ** 2 / counts[labels])


def in_new_order(x, labels):
    order = np.empty(len(labels), int)
    order[:] = np.argsort(labels, kind="stable")
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return np.sum(np.cumsum(x[labels][order]) ** 2 * inverse)


def places_so_far(x, labels):
    seen, total = np.zeros(4, int), 0.0
    for label in labels:
        seen[label] += 1
        total = total + x[label] ** seen[label]
    return total


@pytest.mark.parametrize("fun", [with_blanks, by_counts, in_new_order, places_so_far])
def test_indices_and_masks_that_are_filled_with_arguments(fun):
    derivative = value_and_grad(fun)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, labels = rng.uniform(0.5, 1.5, 4), rng.integers(0, 4, 9)
        value, slope = derivative(x, labels)
        np.testing.assert_allclose(value, fun(x, labels), rtol=1e-12)
        near = [(fun(x + d, labels) - fun(x - d, labels)) / 2e-6 for d in 1e-6 * np.eye(4)]
        np.testing.assert_allclose(slope, near, rtol=1e-6)
    assert derivative.cache_info().misses == 2
    assert "dynamic" not in derivative.explain()


class Slotted:
    __slots__ = ("array",)


class Outside:
    pass


HELD = Outside()
HELD.slotted, HELD.last, HELD.log, HELD.table = Slotted(), deque(maxlen=2), [], {}
GLOBAL = np.zeros(2)


class Tally(OrderedDict):
    last = None

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.move_to_end(key, last=False)


def kept_outside(x):
    global GLOBAL
    HELD.tally["b"] = np.zeros(2)
    HELD.tally["a"] = np.ones(2)
    Tally.last = np.sort([2.0, 1.0])
    GLOBAL = np.zeros(2)
    GLOBAL[0] = 1.0
    HELD.array = np.concatenate([GLOBAL, [stop_gradient(np.sum(x))]])
    HELD.slotted.array = np.sort(HELD.array)
    HELD.last.append(np.ones(3))
    HELD.log.append(np.maximum(HELD.array, [1.0, 0.0, 0.5]))
    HELD.table["deep"] = {"within": [np.zeros(1)]}
    return np.sum(HELD.array * HELD.last[-1]) * np.sum(x * x)


HELD.tally = Tally()


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_arrays_that_something_outside_holds_are_plain(mode):
    derivative = value_and_grad(kept_outside, mode=mode)
    for i in range(4):
        value, slope = derivative(X + i)
        total, squares = np.sum(X + i), np.sum((X + i) ** 2)
        assert value == pytest.approx((1.0 + total) * squares)
        np.testing.assert_allclose(slope, (1.0 + total) * 2 * (X + i))
        held = [HELD.array, HELD.slotted.array, *HELD.last, *HELD.log, *HELD.table["deep"]["within"], GLOBAL]
        assert all([type(array) is np.ndarray for array in (*held, *HELD.tally.values(), Tally.last)])
        assert [*HELD.tally] == ["a", "b"]
        assert HELD.array.tolist() == [1.0, 0.0, total]


def constants_kept_outside(x, y):
    HELD.given, HELD.made, HELD.view = y, [y * 2], {"view": np.sin(y)[1:]}
    return np.sum(x * HELD.made[0]), HELD.view["view"]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_constants_that_something_outside_holds_are_plain(mode):
    derivative = value_and_grad(constants_kept_outside, mode=mode, has_aux=True)
    for i in range(4):
        y = np.arange(3.0) + i
        (_, view), slope = derivative(X, y)
        np.testing.assert_allclose(slope, 2 * y)
        np.testing.assert_array_equal(HELD.given, y)
        np.testing.assert_allclose(HELD.made[0], 2 * y)
        np.testing.assert_allclose(HELD.view["view"], np.sin(y)[1:])
        np.testing.assert_allclose(view, np.sin(y)[1:])
        assert all([type(array) is np.ndarray for array in (HELD.given, HELD.made[0], HELD.view["view"], view)])


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_variables_around_that_nobody_has_assigned_yet(mode):
    def made(late):
        def fun(x):
            nonlocal last
            HELD.log.append(1.0)
            if x[0] > 1:
                last = x * 1.0
            return np.sum(x * x)

        if late:
            last = None
        return fun

    np.testing.assert_allclose(grad(made(False), mode=mode)(X), 2 * X)


def test_what_is_held_when_a_function_raises_is_plain():
    def fails(x):
        HELD.array = np.zeros(3)
        HELD.array[0] = 2.0
        raise RuntimeError(str(np.sum(x)))

    with pytest.raises(RuntimeError):
        grad(fails, mode="dynamic")(X)
    assert type(HELD.array) is np.ndarray


def test_large_arrays_of_numbers_that_have_two_names_in_loops_that_decide():
    def fun(x):
        d, s = np.zeros(100_001), 0.0
        held = {"a": d}
        for i in range(len(x)):
            held["a"][i + 1 :] = i * 2
            if x[i] > 0.5:
                s = s * 0.9 + x[i] * held["a"][i]
            else:
                held["a"][i : i + 3] = -1
        return s + d[5]

    agrees(fun, np.abs(np.sin(np.arange(1.0, 13.0))))
