"""Loops over blocks and pooled memory: the same results as without, at any size, and no memory that anybody still holds."""

import dataclasses
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from ops_samples import DIFFERENTIABLE, dot, some

from symgrad import elementwise_grad, grad, hvp, value_and_grad, without
from symgrad.buffers import POOL, Pool
from symgrad.emit.fast import FastBuilder
from symgrad.optimize import cost
from symgrad.pytree import flatten
from symgrad.testing import programs

TINY = cost.Sizes(big=1, saved=1, slab=24, piece=24, far=1, pooled=1)  # blocks of three numbers
SHARED = dataclasses.replace(TINY, shared=1)  # among threads
FLOAT, SINGLE = np.dtype(float), np.dtype("f4")


@contextmanager
def sizes(given: cost.Sizes) -> Iterator[None]:
    """What is compiled within takes arrays of these sizes for big, and has one thread for products."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "SIZES", given)
        patch.setattr("symgrad.emit.fast.alone", lambda: True)
        yield


@pytest.fixture(autouse=True)
def arrays_stay_arrays() -> Iterator[None]:
    """Tiny arrays stand for big ones; and no build counts a read twice, which would give memory away too early."""

    class Counting(FastBuilder):
        def build(self) -> Any:
            code = super().build()
            assert min(self.remaining.values(), default=0) >= 0
            return code

    with without("scalarize"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("symgrad.emit.fast.FastBuilder", Counting)
        yield


def compiled(derivative: Any, *args: Any, given: cost.Sizes = TINY) -> Any:
    """What a derivative gives once it is compiled, for tiny blocks unless it is without them."""
    with sizes(given):
        for _ in range(3):
            result = derivative(*args)
    assert derivative.cache_info().hits, "it was not compiled"
    return result


def source(derivative: Any, *args: Any, given: cost.Sizes = TINY) -> str:
    with sizes(given):
        return derivative.source(*args, fast=True)  # type: ignore[no-any-return]


def each_alone(loop: Callable[[Any], None], blocks: range) -> None:
    """Share a loop as threads might: in any order."""
    for block in np.random.default_rng(0).permutation(blocks).tolist():
        loop([block])


def agree(make: Callable[[], Any], *args: Any, exact: bool = False, shared: bool = True) -> None:
    """With blocks and without: the same results, up to the order of sums; in any order of the blocks that threads share."""
    with without("blocks", "pool"):
        plain = make()
    off = flatten(compiled(plain, *args))
    _agree(flatten(compiled(make(), *args)), off, args, exact)
    if shared:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("symgrad.emit.blocks.share", each_alone)
            _agree(flatten(compiled(make(), *args, given=SHARED)), off, args, exact)


def _agree(on: Any, off: Any, args: Any, exact: bool) -> None:
    assert on[1] == off[1]
    single = any(np.result_type(leaf) in (np.float32, np.complex64) for leaf in [*on[0], *flatten(args)[0]])
    tolerance = 1e-4 if single else 1e-11
    for a, b in zip(on[0], off[0], strict=True):
        assert (type(a), np.shape(a), np.result_type(a)) == (type(b), np.shape(b), np.result_type(b))
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            size = max(1.0, float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))))
            np.testing.assert_allclose(a, b, rtol=0, atol=size * tolerance)
        if isinstance(a, np.ndarray):
            assert a.flags.writeable
            assert a.flags.c_contiguous
            assert type(a) is np.ndarray


# -- functions whose derivatives are one loop or several -----------------------------------------------------------


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def three_apart(x):
    return np.sum(np.sin(x[2:]) * x[1:-1] * np.cos(x[:-2]))


def second_differences(x):
    return np.sum((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2)


def logistic(w, x, y):
    z = x @ w
    return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))


def softmax_rows(z, y):
    z = z - np.max(z, axis=1, keepdims=True)
    p = np.exp(z) / np.sum(np.exp(z), axis=1, keepdims=True)
    return np.sum(np.log(p) * y)


def layer_norm(x, gain, bias):
    d = x - np.mean(x, axis=-1, keepdims=True)
    return np.sum(np.tanh(d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + 0.1) * gain + bias))


def columns(x, s):
    return np.sum(np.tanh(x * s) * np.exp(-x), axis=0) @ np.cos(s)


def stencil(u):
    inner = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return np.sum(np.tanh(around - 4 * inner) ** 2)


def corners(u):
    return np.sum(np.sin(u[:-1, 1:] * u[1:, :-1]) * u[:-1, :-1])


def total_variation(u, y):
    down, right = u[1:] - u[:-1], u[:, 1:] - u[:, :-1]
    return np.sum((u - y) ** 2) + np.sum(np.sqrt(down[:, :-1] ** 2 + right[:-1] ** 2 + 0.1))


def where(x, y):
    return np.sum(np.where(x > y, np.sin(x) * y, np.exp(-(x**2)) + y))


def outer(x, y):
    return np.sum(np.tanh(x[:, None] * y + x[:, None]) ** 2)


def turned(x):
    return np.sum(np.exp(np.sin(x).T * x.T) ** 2)


def twice_summed(x):
    y = np.exp(np.sin(x))
    return np.sum(np.tanh(y - np.mean(y)) ** 2) * np.max(y)


def numbers(*shape: int, dtype: Any = float) -> Any:
    return (np.cos(np.arange(np.prod(shape)) * 1.7 + len(shape)) * 1.3).reshape(shape).astype(dtype)


CASES: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "rosenbrock": (rosenbrock, lambda n: (numbers(n),)),
    "three_apart": (three_apart, lambda n: (numbers(n + 2),)),
    "second_differences": (second_differences, lambda n: (numbers(n + 2),)),
    "logistic": (logistic, lambda n: (numbers(3), numbers(n, 3), (numbers(n) > 0) + 0.0)),
    "softmax_rows": (softmax_rows, lambda n: (numbers(n, 3), numbers(n, 3))),
    "layer_norm": (layer_norm, lambda n: (numbers(n, 4), numbers(4), numbers(4))),
    "columns": (columns, lambda n: (numbers(n, 3), numbers(3))),
    "stencil": (stencil, lambda n: (numbers(n + 2, 5),)),
    "corners": (corners, lambda n: (numbers(n + 1, 4),)),
    "total_variation": (total_variation, lambda n: (numbers(n + 1, 5), numbers(n + 1, 5) ** 2)),
    "where": (where, lambda n: (numbers(n), numbers(n)[::-1])),
    "outer": (outer, lambda n: (numbers(n), numbers(3))),
    "turned": (turned, lambda n: (numbers(n, 4),)),
    "twice_summed": (twice_summed, lambda n: (numbers(n),)),
}
SIZES = [1, 2, 3, 4, 6, 7, 20]


@pytest.mark.parametrize("dtype", [FLOAT, SINGLE], ids=["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_gradients(name, dtype):
    fun, make = CASES[name]
    for size in SIZES:
        args = [arg.astype(dtype) for arg in make(size)]
        everything = tuple(range(len(args)))
        agree(lambda everything=everything: value_and_grad(fun, argnums=everything), *args)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name):
    fun, make = CASES[name]
    for size in (4, 7):
        args = make(size)
        agree(lambda: hvp(fun), args[0], numbers(*args[0].shape), *args[1:])


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"turned"}))
def test_these_run_in_blocks(name):
    fun, make = CASES[name]
    shown = source(grad(fun), *make(20))
    assert re.search(r"for lo\w* in range\(0, \d+, \d+\):", shown)


@pytest.mark.parametrize("name", CASES)
def test_odd_memory(name):
    """Arguments that are strided, reversed, Fortran-ordered, read-only, or the same array twice."""
    fun, make = CASES[name]
    args = make(7)
    everything = tuple(range(len(args)))
    for layout in (
        lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
        lambda x: np.flip(np.flip(x).copy()),
        lambda x: np.asfortranarray(x),
        lambda x: np.broadcast_to(x[:1], x.shape),
    ):
        agree(lambda: grad(fun, argnums=everything), *map(layout, args))
    same = args[0]
    if all(arg.shape == same.shape for arg in args):
        agree(lambda: grad(fun, argnums=everything), *([same] * len(args)))


def test_elementwise_results_are_the_same_to_the_bit():
    for fun in (lambda x, y: np.sin(x) * y + np.exp(-x / (1 + y**2)), lambda x, y: np.where(x > y, x**3, np.tanh(x * y))):
        for shape in ((1,), (7,), (5, 3), (2, 3, 4), (1, 6), (6, 1), (0,), (0, 3), (3, 0), ()):
            args = numbers(*shape), numbers(*shape) * 0.7
            agree(lambda fun=fun: elementwise_grad(fun, argnums=(0, 1)), *args, exact=True)


def read_besides(x, y):
    """What the slices' cotangents are added to is read by the same loop, and after it."""
    d = np.sin(x - y)
    return np.sum(np.cos(x[1:] * x[:-1]) * d[1:]) + np.sum(d**2), d


@pytest.mark.parametrize("make", [grad, value_and_grad])
def test_cotangents_that_others_read_are_not_overwritten(make):
    def fun(x, y):
        g = grad(lambda x: read_besides(x, y)[0])(x)
        h = 2 * (x - y)
        h[1:] += np.sin(x[1:] * x[:-1])
        return np.sum(g * h) + np.sum(np.tanh(h[:-1] * g[1:]))

    for size in (2, 3, 7, 20):
        x, y = numbers(size), numbers(size)[::-1] * 0.7
        agree(lambda: make(read_besides, has_aux=True), x, y)
        agree(lambda: make(fun), x, y)
        agree(lambda: make(total_variation), numbers(size, 4), numbers(size, 4) ** 2)


def test_both_results_of_a_loop_are_arrays_of_their_own():
    def fun(x):
        return np.sum(np.sin(x) ** 2), np.exp(np.cos(x))

    (gradient, aux) = compiled(grad(fun, has_aux=True), numbers(20))
    assert not np.shares_memory(gradient, aux)


def test_mixed_dtypes():
    def fun(x, y, k):
        return np.sum(np.tanh(x * y) * k + (x > y) * np.exp(x)) + np.sum(np.round(x) * y)

    x, y, k = numbers(20), numbers(20, dtype="f4"), np.arange(20)
    agree(lambda: grad(fun, argnums=(0, 1)), x, y, k)
    z = numbers(20) + 1j * numbers(20)[::-1]
    agree(lambda: grad(lambda z, x: np.sum(np.abs(np.exp(z) * x) ** 2), argnums=(0, 1)), z, x)


def test_branches_and_loops():
    def fun(x):
        y = np.sin(x) * np.exp(-x)
        if np.sum(y) > 0:
            y = np.tanh(y * y) + y
        for _ in range(3):
            y = np.cos(y * x) * y
        return np.sum(y * y)

    with without("blocks"):
        plain = grad(fun)
    derivative = grad(fun)
    with sizes(TINY):
        for sign in (1, -1) * 3:
            np.testing.assert_allclose(derivative(sign * numbers(20)), plain(sign * numbers(20)), atol=1e-13)
    assert "for lo" in source(derivative, numbers(20))


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_every_operation(op):
    """Values, pullbacks and pushforwards of each registered operation, amid elementwise ones."""
    for case in some(op):
        weights = case.like(case.outputs)

        def total(*xs, case=case, weights=weights):
            return dot(weights, case(*[np.sin(x) * x * 0.5 + x * 0.5 for x in xs]))

        try:
            total(*case.primals)
        except Exception:
            continue
        everything = tuple(range(len(case.primals)))
        with np.errstate(all="ignore"):
            agree(lambda total=total, n=everything: value_and_grad(total, argnums=n), *case.primals, shared=False)


slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


@slow
@given(programs(max_ops=14))
def test_random_programs(program):
    args = program.arguments()
    everything = tuple(range(len(program.specs)))
    with np.errstate(all="ignore"):
        agree(lambda: value_and_grad(program.fun, argnums=everything), *args)


def of_neighbours(rng, arrays, deep=0):
    """A random expression of slices that are as long as one another."""
    if deep > 2 or rng.random() < 0.3:
        x, start = arrays[rng.integers(len(arrays))], int(rng.integers(5))
        return x[start : len(x) - 4 + start]
    a, b = (of_neighbours(rng, arrays, deep + 1) for _ in range(2))
    made = [a + b, a - 2 * b, a * b, np.sin(a), a**2, a + b, np.maximum(a, b), np.where(a > 0.3, a, b)]
    return made[rng.integers(len(made))]


@pytest.mark.parametrize("seed", range(40))
def test_random_stencils(seed):
    """A value may be part of the cotangents of several slices of an array, and be read elsewhere."""

    def total(x, y, c):
        rng = np.random.default_rng(seed)
        z = [x * y, np.tanh(x), y * c][seed % 3]
        return sum([np.sum([np.sin, np.square, np.tanh][k % 3](of_neighbours(rng, [x, y, z, x * c]))) for k in range(3)])

    args = numbers(23), numbers(23)[::-1] * 0.7, 0.3
    agree(lambda: value_and_grad(total, argnums=(0, 1, 2)), *args, shared=seed % 4 == 0)


def test_sums_of_products():
    """Their products are not made; squares are summed apart; differences are not."""

    def fun(x, y):
        return np.sum(3.0 * x**2 + (y - x) ** 2) + np.sum(np.sin(x) * y) - np.sum(x * y - y * y)

    for size in (1024, 1500, 3333):
        for dtype in (FLOAT, SINGLE):
            args = numbers(size).astype(dtype), numbers(size)[::-1].astype(dtype)
            agree(lambda: value_and_grad(fun, argnums=(0, 1)), *args)
    assert source(value_and_grad(fun), *args).count("runtime.inner_rows") == 3  # which are added up once, after the loop


@pytest.mark.parametrize(
    "draw",
    [lambda rng, n: rng.random(n), lambda rng, n: np.exp(3 * rng.normal(size=n)), lambda rng, n: np.full(n, 0.1)],
)
def test_sums_are_as_precise_as_without_blocks(draw):
    """Against long doubles: no worse than twice NumPy's own sum, and a rounding."""

    def fun(x):
        return np.sum(x**2), np.sum(np.sqrt(x) + x)

    x = draw(np.random.default_rng(0), 300_000)
    with sizes(cost.Sizes(big=1000, saved=1)):
        derivative = value_and_grad(fun, has_aux=True)
        for _ in range(3):
            (first, second), _ = derivative(x)
    wide = x.astype(np.longdouble)
    for found, plain, exact in (
        (first, np.sum(x**2), np.sum(wide**2)),
        (second, np.sum(np.sqrt(x) + x), np.sum(np.sqrt(wide) + wide)),
    ):
        assert abs(found - exact) <= 2 * abs(plain - exact) + 4 * np.finfo(float).eps * exact


# -- memory --------------------------------------------------------------------------------------------------------


def address(x: Any) -> int:
    return int(x.__array_interface__["data"][0])


def test_memory_is_used_again_once_nobody_holds_it():
    pool = Pool()
    first = pool.empty((1000,), FLOAT)
    assert (type(first), first.shape, first.dtype) == (np.ndarray, (1000,), FLOAT)
    assert first.flags.writeable
    assert first.flags.c_contiguous
    place = address(first)
    assert place % 64 == 0
    second = pool.empty((1000,), FLOAT)
    assert not np.shares_memory(first, second)
    del first
    assert address(pool.empty((10, 100), FLOAT)) == place


@pytest.mark.parametrize(
    "keep",
    [
        lambda x: x[3:5],
        lambda x: x.reshape(10, 100).T[2],
        lambda x: memoryview(x),
        lambda x: np.frombuffer(x.data, np.uint8),
        lambda x: x.view("u8"),
        lambda x: iter(x),
        lambda x: x.flat,
        lambda x: [x],
        lambda x: np.asarray(memoryview(x)[2:]),
        lambda x: x.__array_interface__ and np.broadcast_to(x, (2, 1000)),
        lambda x: x.base,
        lambda x: x.base[3:],
        lambda x: x.base.view(np.ndarray),
    ],
)
def test_what_reaches_memory_holds_it(keep):
    pool = Pool()
    array = pool.empty((1000,), FLOAT)
    place = address(array)
    held = keep(array)
    del array
    assert address(pool.empty((1000,), FLOAT)) != place
    assert idle(pool) == 8192
    del held
    assert idle(pool) == 2 * 8192


def test_copies_hold_nothing():
    pool = Pool()
    array = pool.empty((1000,), FLOAT)
    array[:] = 1.0
    copies = [array.copy(), pickle.loads(pickle.dumps(array)), np.array(array)]
    place = address(array)
    del array
    again = pool.empty((1000,), FLOAT)
    assert address(again) == place
    again[:] = 2.0
    assert all((copy == 1.0).all() for copy in copies)


def idle(pool: Pool) -> int:
    return sum(size * len(blocks) for size, blocks in pool.free.items())


def test_a_pool_has_a_bound():
    pool = Pool(limit=5 * 8192)
    held = [pool.empty((1024,), FLOAT) for _ in range(12)]
    for number, array in enumerate(held):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(held))
    for _ in range(12):
        held.pop()
        assert idle(pool) <= pool.limit
    assert idle(pool) > 0
    big = pool.empty((10_000,), FLOAT)
    assert big.base is None
    assert Pool(limit=0).empty((1024,), FLOAT).base is None


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "g", "c16", "c8", "i8", "i4", "u1", "?"])
def test_any_kind_of_array(dtype):
    array = Pool().empty((3, 5), np.dtype(dtype))
    assert array.dtype is np.dtype(dtype)
    assert (array.shape, array.strides) == ((3, 5), np.empty((3, 5), dtype).strides)


def test_results_stay_while_they_are_held():
    args = numbers(200)
    with sizes(TINY):
        derivative = grad(rosenbrock)
        kept = [derivative(args * k) for k in range(1, 20)]
        views = [derivative(args * k)[10:12] for k in range(1, 20)]
    for k in range(1, 20):
        expected = grad(rosenbrock, mode="dynamic")(args * k)
        np.testing.assert_allclose(kept[k - 1], expected, rtol=1e-12)
        np.testing.assert_allclose(views[k - 1], expected[10:12], rtol=1e-12)


def test_a_result_may_be_written_into():
    args = numbers(200)
    with sizes(TINY):
        derivative = grad(rosenbrock)
        for _ in range(5):
            result = derivative(args)
            expected = result.copy()
            result *= 0.0
            np.testing.assert_array_equal(derivative(args), expected)


def test_threads():
    """Eight threads call one derivative, and hold their results for a while."""
    with sizes(TINY):
        derivative = grad(rosenbrock)
        for _ in range(3):
            derivative(numbers(500))
    expected = {k: derivative(numbers(500) * k) for k in range(8)}
    wrong = []

    def work(k):
        held = []
        for _ in range(60):
            held.append(derivative(numbers(500) * k))
            if len(held) > 5:
                wrong.extend(h for h in held if not np.array_equal(h, expected[k]))
                held = held[4:]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert idle(POOL) <= POOL.limit


def test_switches():
    x = numbers(20)
    assert "for lo" not in source(grad(rosenbrock), x, given=cost.SIZES)  # too small
    assert "for lo" in source(grad(rosenbrock), x)
    assert compiled(grad(rosenbrock), x).base is not None
    with without("blocks"):
        assert "for lo" not in source(grad(rosenbrock), x)
    with without("pool"):
        derivative = grad(rosenbrock)
    assert compiled(derivative, x).base is None


def test_errors_of_arithmetic():
    """NumPy's error state holds in blocks, too."""

    def fun(x):
        return np.sum(np.log(x) + x * x)

    x = np.arange(20.0)
    with sizes(TINY):
        derivative = grad(fun)
        for _ in range(3):
            with np.errstate(all="ignore"):
                derivative(x + 1)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            derivative(x)
        with np.errstate(divide="warn"), pytest.warns(RuntimeWarning, match="divide by zero"):
            derivative(x)


def test_views_of_results_are_not_taken_for_results():
    """An operation that gives a view of a buffer: the buffer is not overwritten while the view is needed."""

    def fun(x):
        y = np.sin(x) * x
        diagonal = np.einsum("iij->ji", y)
        return np.sum(np.cos(diagonal) * diagonal) + np.sum(y * y)

    agree(lambda: value_and_grad(fun), numbers(3, 3, 2))
    (_, aux) = compiled(grad(lambda x: (np.sum(x), np.einsum("ii->i", x)), has_aux=True), numbers(3, 3))
    assert aux.flags.c_contiguous
    x = numbers(3, 3)
    assert not np.shares_memory(grad(lambda x: (np.sum(x), np.einsum("ij->ji", x)), has_aux=True)(x)[1], x)


def test_products_of_arrays_in_any_order():
    """Products are written into arrays that lie row by row, whatever the arguments look like."""

    def fun(x, w):
        y = np.sin(x * 2.0) @ w
        return np.sum(np.tanh(y @ np.cos(w).T) * x) + np.sum(y)

    x, w = numbers(5, 4), numbers(4, 4)
    for layout in (np.asarray, np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2], lambda a: a[::-1]):
        agree(lambda: grad(fun, argnums=(0, 1)), layout(x), layout(w))
        agree(lambda: grad(lambda x, w: fun(x.T, w.T), argnums=(0, 1)), layout(x).T, layout(w))


@pytest.mark.parametrize(("shift", "axis"), [(1, 0), (-3, 1), (200, -1), (0, 0)])
@pytest.mark.parametrize("shape", [(100, 90), (4, 3), (1, 1), (4, 3, 2)])
def test_rolled_arrays(shift, axis, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    derivative = grad(lambda x: np.sum(np.sin(np.roll(x, shift, axis)) * x))
    expected = grad(derivative.__wrapped__, mode="dynamic")(x)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-14, atol=1e-15)
    assert "concatenate((x[" in derivative.source(x, fast=True)


@pytest.mark.parametrize(
    ("rows", "faster", "blocks"), [(200, True, False), (400, True, True), (400, False, False), (2000, False, True)]
)
def test_matrices_are_read_once_where_a_cores_own_cache_is_faster(rows, faster, blocks):
    rng = np.random.default_rng(0)
    w, x, y = rng.standard_normal(10), rng.standard_normal((rows, 10)), rng.standard_normal(rows)
    derivative = grad(lambda w, x, y: np.sum((x @ w - y) ** 2))
    with sizes(dataclasses.replace(TINY, near=400 * 80, far=2000 * 80)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "_own_cache_is_faster", lambda: faster)
        result = compiled(derivative, w, x, y)
        assert ("for lo" in derivative.source(w, x, y, fast=True)) is blocks
    np.testing.assert_allclose(result, 2 * x.T @ (x @ w - y), rtol=1e-12)


def test_results_lie_where_what_they_are_made_of_dies():
    rng = np.random.default_rng(0)
    x, y, mask = rng.standard_normal((30, 4)), rng.standard_normal((10, 4)), rng.standard_normal((30, 10))
    derivative = grad(lambda x: np.sum((mask * (x @ y.T - mask)) ** 2))
    expected = grad(derivative.__wrapped__, mode="dynamic")(x)
    with sizes(dataclasses.replace(TINY, far=cost.SIZES.far)):
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), expected, rtol=1e-12, atol=1e-12)
        found = derivative.source(x, fast=True)
    assert re.search(r"(prod\w*) = x.dot\(.*\n(?:.*\n)*? +multiply\(.*, \1\[lo\w*:hi\w*\]\)", found)


def test_arrays_that_are_read_whole_are_not_written_block_by_block():
    """In one loop: blocks of ``sin(x)``, and products with all of its transpose."""
    space = {"np": np}
    lines = [
        "def fun(x):",
        " s = np.sin(x)",
        " t = np.sin(s)",
        " y = s.T @ s",
        " while np.sum(np.abs(y)) > 0.071:",
        "  y = 0.6 * y",
    ]
    exec("\n".join([*lines, " return np.sum(np.sin(t)) + np.sum(np.sin(y))"]), space)  # the loop is not rolled up then
    fun: Any = space["fun"]
    x = np.array([[0.41, -0.69, -1.38]])
    expected = grad(fun, mode="dynamic")(x)
    with without("scalarize"):
        np.testing.assert_allclose(compiled(grad(fun), x), expected, rtol=1e-12)
        agree(lambda: value_and_grad(fun), x)


def test_what_is_added_to_zeros_block_by_block():
    """By what the first iteration, which stands alone, adds to as well."""

    def fun(x, w):
        total = 0.0
        for i in range(len(w)):
            total = total + np.tanh(w[i]) * x
        return np.sum(np.tanh(total))

    x, w = np.cos(np.arange(21000.0)).reshape(300, 70), 0.1 * np.sin(np.arange(45.0))
    derivative = grad(fun, (0, 1))
    for _ in range(3):
        found = derivative(x, w)
    for one, other in zip(found, grad(fun, (0, 1), mode="dynamic")(x, w), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


PLACES = np.random.default_rng(0).integers(-40, 40, (40, 50)), np.random.default_rng(1).integers(0, 50, (40, 50))
FUNCTIONS = {
    "sums of exponentials": lambda x, y: np.sum(np.sin(np.logaddexp(x, y)) * x),
    "of rows": lambda x, y: np.sum(np.logaddexp(x, y[0]) ** 2 * np.exp(-y)),
    "of columns": lambda x, y: np.sum(np.logaddexp(x[:, :1], y)),
    "leaky": lambda x, y: np.sum(np.maximum(x, 0.1 * x) * np.cos(y)),
    "chosen": lambda x, y: np.sum(np.where(x > 0, y * x, -y * x * x)),
    "at places": lambda x, y: np.sum(np.sin(x[PLACES]) * y),
    "at places of both": lambda x, y: np.sum(np.sin(x)[PLACES] * y[PLACES] * x),
    "half powers": lambda x, y: np.sum(np.abs(x) ** 1.5 * np.abs(y) ** -0.5),
    "stable softplus": lambda x, y: np.sum(y * (np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))),
    "log cosh": lambda x, y: np.sum(y * np.log(np.cosh(x))),
    "more than": lambda x, y: np.mean(np.maximum(-x - 0.2 * y, 0)) / 0.05,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_block_by_block(name):
    fun = FUNCTIONS[name]
    x, y = np.random.default_rng(2).normal(size=(2, 40, 50))
    expected = value_and_grad(fun, (0, 1), mode="dynamic")(x, y)
    with sizes(dataclasses.replace(TINY, slab=192, piece=192)):
        derivative = value_and_grad(fun, (0, 1))
        for _ in range(3):
            value, slopes = derivative(x, y)
        assert "for lo" in derivative.source(x, y, fast=True)
    np.testing.assert_allclose(value, expected[0], rtol=1e-11)
    for one, other in zip(slopes, expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


def test_short_rows_meet_arrays_of_several_ranks():
    def fun(x, r):
        z = np.exp(np.sin(x) * r)
        w = np.exp(np.cos(z[:, None, :]) * r)
        return np.sum(w * w) + np.sum(z)

    rng = np.random.default_rng(0)
    x, r = rng.normal(size=(300, 3)), rng.normal(size=(1, 3))
    expected = value_and_grad(fun, mode="dynamic")(x, r)
    with sizes(dataclasses.replace(TINY, slab=192, piece=192)):
        derivative = value_and_grad(fun)
        for _ in range(3):
            value, slope = derivative(x, r)
        assert "np.broadcast_to(r, " in derivative.source(x, r, fast=True)
    assert derivative.cache_info().hits, derivative.explain()
    np.testing.assert_allclose(value, expected[0], rtol=1e-11)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-10, atol=1e-13)


def test_cotangents_of_columns_that_are_turned_around():
    def fun(x):
        y = np.sin(x * 1.3) * x
        z = y[1:, ::-1]
        return np.sum(np.sin(z * z) * z) + np.sum(np.cos(y[:-1] * y[:-1]))

    agree(lambda: value_and_grad(fun), np.random.default_rng(0).normal(size=(20, 3)))
