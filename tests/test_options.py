"""What functions return with their options is what NumPy returns: values, dtypes, shapes; and errors are of the same type."""

import random

import numpy as np
import pytest
from agreement import agrees

from symgrad import elementwise_grad, grad, hessian, hvp, jacfwd, jacobian, jacrev, jvp, value_and_grad
from symgrad.errors import SymgradError

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
]

MASK = np.array([[True, False, True], [False, False, True]])
COLUMN = np.array([[True], [False]])
ABOUT = np.array([[0.5, -0.25, 1.0]])
AXIS = {"axis": (None, 0, -1, (0, 1), (-1,), (), (1, 0), 2)}
LINE = {"axis": (None, 0, -1, 1, 2)}
KEEP = {"keepdims": (True, False)}
DTYPE = {"dtype": (None, np.float32, float, complex, int, bool)}
INITIAL = {"initial": (2.5, 0, 3, True)}
WHERE = {"where": (MASK, COLUMN, True, False)}
MEAN = {"mean": (ABOUT,)}
FREEDOM = {"ddof": (1, 0.5, 7), "correction": (1, 2)}
MATRIX = {"ord": (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf, 0, 3)}
CASES = {
    np.sum: AXIS | KEEP | DTYPE | INITIAL | WHERE,
    np.prod: AXIS | KEEP | DTYPE | INITIAL | WHERE,
    np.max: AXIS | KEEP | INITIAL | WHERE,
    np.min: AXIS | KEEP | INITIAL | WHERE,
    np.mean: AXIS | KEEP | DTYPE | WHERE,
    np.var: AXIS | KEEP | DTYPE | WHERE | MEAN | FREEDOM,
    np.std: AXIS | KEEP | DTYPE | WHERE | MEAN | FREEDOM,
    np.any: AXIS | KEEP | WHERE,
    np.all: AXIS | KEEP | WHERE,
    np.ptp: AXIS | KEEP,
    np.median: AXIS | KEEP,
    np.nanmedian: AXIS | KEEP,
    np.argmax: LINE | KEEP,
    np.nanargmin: LINE | KEEP,
    np.count_nonzero: AXIS | KEEP,
    np.cumsum: LINE | DTYPE,
    np.cumprod: LINE | DTYPE,
    np.nancumsum: LINE | DTYPE,
    np.average: AXIS | KEEP | {"weights": (np.abs(ABOUT[0]), MASK + 0.5, 0 * MASK), "returned": (True, False)},
    np.diff: LINE | {"n": (0, 1, 2, 4, -1), "prepend": (0, 1.5), "append": (0, 2.5)},
    np.gradient: AXIS | {"edge_order": (1, 2)},
    np.trapezoid: LINE | {"dx": (0.5,), "x": (ABOUT[0],)},
    np.linalg.norm: AXIS | KEEP | MATRIX,
    np.linalg.vector_norm: AXIS | KEEP | {"ord": (1, 2, np.inf, 0, 3)},
    np.linalg.matrix_norm: KEEP | MATRIX,
    np.linalg.pinv: {"rcond": (1e-9, 0.5), "hermitian": (True, False)},
    np.linalg.svd: {"full_matrices": (True, False), "compute_uv": (True, False), "hermitian": (True, False)},
    np.add.reduce: AXIS | KEEP | DTYPE | INITIAL | WHERE,
    np.maximum.reduce: AXIS | KEEP | DTYPE | INITIAL | WHERE,
    np.logaddexp.reduce: AXIS | KEEP | DTYPE | INITIAL | WHERE,
    np.hypot.reduce: AXIS | KEEP | DTYPE | INITIAL | WHERE,
    np.logical_and.reduce: AXIS | KEEP | INITIAL | WHERE,
    np.subtract.accumulate: LINE | DTYPE,
    np.add.reduceat: LINE | DTYPE | {"indices": ([0, 1], [1, 0], [0])},
    np.hypot.reduceat: LINE | DTYPE | {"indices": ([0, 1], [1, 0], [0])},
    np.fft.rfftn: {"axes": ((0, 1), (-1,), (1, 0), (1, 1)), "s": ((2, 4), (3,)), "norm": ("ortho",)},
}
_PASSING_NAN = (np.sum, np.prod, np.max, np.min, np.mean, np.var, np.std)
CASES |= {getattr(np, f"nan{fun.__name__}"): CASES[fun] for fun in _PASSING_NAN}
if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    CASES |= {fun: LINE | DTYPE | {"include_initial": (True,)} for fun in (np.cumulative_sum, np.cumulative_prod)}

_X = np.array([[1.25, -0.5, 2.0], [-3.0, 0.75, 0.5]])
_NAN = np.array([[np.nan, 2.0, np.nan], [np.nan, -0.5, 1.0]])
ARRAYS = [
    *(_X.astype(dtype) for dtype in (float, np.float32, np.float16, complex, np.longdouble, int, bool)),
    np.asfortranarray(_X),
    np.repeat(_X, 2, axis=1)[:, ::2],
    _NAN,
    _NAN * (1 + 2j),
    _X[:, :0],
    _X[0],
    _X[0, :1],
    np.array(1.5),
    np.array([[2.0, 1.0], [-1.0, 3.0]]),
]


def draws(fun, options, count):
    """Calls with a few options each: the array, and the options."""
    rng = random.Random(fun.__name__)
    for _ in range(count):
        names = [name for name in options if name == "indices" or rng.random() < 0.4]
        yield rng.choice(ARRAYS), {name: rng.choice(options[name]) for name in names}


def outcome(fun, *args):
    """What a call returns, or raises."""
    try:
        return fun(*args)
    except Exception as error:
        return error


def compare(found, wanted, x):
    """Values to rounding, of what is given or of the result, all else exactly."""
    if isinstance(wanted, tuple):
        assert type(found) is type(wanted)
        for pair in zip(found, wanted, strict=True):
            compare(*pair, x)
        return
    assert isinstance(found, np.ndarray) == isinstance(wanted, np.ndarray)
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    eps = max([float(np.finfo(dtype).eps) for dtype in (wanted.dtype, x.dtype) if dtype.kind in "fc"], default=0)
    np.testing.assert_allclose(found, wanted, 64 * eps, 64 * eps)


@pytest.mark.parametrize("fun", CASES, ids=lambda fun: getattr(fun, "__qualname__", fun.__name__))
def test_values_are_numpys(fun):
    good = []
    for x, options in draws(fun, CASES[fun], 120):

        def call(x, options=options):
            return fun(x, **options)

        wanted = outcome(call, x)
        found = [outcome(lambda x: jvp(call, (x,), (x,))[0], x)] if x.dtype.kind in "fc" else []
        found.append(outcome(lambda x: grad(lambda p: (p, call(x)), has_aux=True, mode="dynamic")(1.0)[1], x))
        for one in found:
            try:
                if isinstance(one, SymgradError):
                    continue  # refused, which is no wrong value
                if isinstance(wanted, Exception):
                    assert isinstance(one, Exception), f"{one!r}, but NumPy raises {wanted!r}"
                    assert type(one) is type(wanted)
                elif isinstance(one, Exception):
                    raise one
                else:
                    compare(one, wanted, x)
            except BaseException as error:
                error.add_note(f"of {x!r} {x.dtype} with {options}")
                raise
        if not isinstance(wanted, Exception) and not any(isinstance(one, SymgradError) for one in found):
            good.append((x, options, wanted))
    assert len(good) > 20
    check_compiled(fun, good[:12])


def check_compiled(fun, calls):
    arrays = [x for x, _, _ in calls]

    def every(p, *arrays):
        return p, [fun(x, **options) for x, (_, options, _) in zip(arrays, calls, strict=True)]

    derivative = grad(every, has_aux=True)
    for _ in range(3):
        for one, (x, options, wanted) in zip(derivative(1.0, *arrays)[1], calls, strict=True):
            try:
                compare(one, wanted, x)
            except AssertionError as error:
                error.add_note(f"compiled, of {x!r} {x.dtype} with {options}")
                raise


CALLS = {
    "a list, and a dtype": lambda x, n: np.subtract(x, [1, 2, 3.0], dtype=complex),
    "casting without a dtype": lambda x, n: np.add(x, n, casting="no"),
    "a number beside integers under a mask": lambda x, n: np.right_shift(n, 1, out=n * 1, where=n > 0),
    "a number beside single precision under a mask": lambda x, n: np.multiply(
        x.astype("f4"), 0.1, out=x.astype("f4"), where=n > 0
    ),
    "a dtype, and an axis": lambda x, n: np.vecdot(x.astype("F"), x, axis=0, dtype=complex),
    "a complex exponent": lambda x, n: x[0, 0].astype("f2") ** 1j,
    "concatenate to integers": lambda x, n: np.concatenate((x, x), dtype=int),
    "concatenate to integers, unsafely": lambda x, n: np.concatenate((x, x), dtype=int, casting="unsafe"),
    "take nothing": lambda x, n: np.take(x, []),
    "polymul of leading zeros": lambda x, n: np.polymul(x[0] * 0.0, x[1]),
    "poly of unsigned numbers": lambda x, n: np.poly(np.abs(n[0]).astype(np.uint8)),
    "geomspace to a double": lambda x, n: np.geomspace(np.abs(x).astype("f4"), 9.0, 3),
    "two matrices in a stack": lambda x, n: np.linalg.multi_dot([x[None], x.T[None]]),
    "clip of booleans": lambda x, n: np.clip(n > 0, 0, None),
    "clip of a list": lambda x, n: np.clip([1.0, 3.0], 0.0, x[0]) + np.clip((1, True), x[1], None),
    "clip of a list with traced numbers": lambda x, n: np.clip([x[0], 3], 0.0, [x[1], 0.5]),
    "emath of half precision": lambda x, n: np.emath.log(x.astype("f2")),
    "an initial zero of the other sign": lambda x, n: 1 / np.max(0.0 * x - 0.0, initial=0),
    "average of wide numbers": lambda x, n: np.average(x.astype("g"), weights=np.abs(x) + 0.1),
    "two parts of an array in an order": lambda x, n: np.modf(x, order="F")[1],
    "one condition, not in a list": lambda x, n: np.piecewise(x[0], x[0] < 0, [1.0, np.square]),
    "conditions on rows": lambda x, n: np.piecewise(x, [[True, False], [False, True]], [np.square, np.negative]),
    "conditions on rows, as an array": lambda x, n: np.piecewise(x, n[:, :2].T[:2] > 0, [np.square, np.negative]),
    "a padded number": lambda x, n: np.pad(x[0, 0], 2, constant_values=5.0),
    "take from a number": lambda x, n: np.take(x[0, 0], [0, -1], axis=0),
    "norms of one axis too many": lambda x, n: np.linalg.norm(x[0], 1, axis=(0, 1)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls_are_numpys(call):
    x, n = _X, (2 * _X).astype(int)
    wanted = outcome(call, x, n)
    every = grad(lambda x: (np.sum(x), call(x, n)), has_aux=True)
    for _ in range(3):
        found = outcome(lambda: every(x)[1])
        if isinstance(wanted, Exception):
            assert isinstance(found, type(wanted)), found
        else:
            compare(found, wanted, x[:0].astype(np.result_type(wanted)))


@pytest.mark.parametrize("dtype", ["i8", "i1", "u1", "f2", "f4", "c8", "f8"])
@pytest.mark.parametrize("ends", [lambda x: (x, 9.0, 1.5), lambda x: (9 * x, 0, -0.7 * x), lambda x: (0, 9.1 * x, x / 7)])
def test_numbers_in_a_row_of_another_dtype(ends, dtype):
    """NumPy counts on by the first two, as numbers of that dtype."""
    row = lambda x: np.arange(*ends(x), dtype=dtype)
    x = 1.2
    exact = [np.sum(np.arange(*ends(x + h)) * 2.0) for h in (1e-6, -1e-6)]
    expected = (exact[0] - exact[1]) / 2e-6 if np.dtype(dtype).kind in "fc" else 0.0
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(lambda x: (np.real(np.sum(row(x) * 2.0)), row(x)), has_aux=True, mode=mode)
        for _ in range(3):
            (_, found), slope = derivative(x)
            np.testing.assert_array_equal(found, row(x), strict=True)
            np.testing.assert_allclose(slope, expected, rtol=1e-2 if dtype == "f2" else 1e-6)


WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0])
NOT_A_NUMBER = np.array([1.0, np.nan, 1.0, np.inf])


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sum(x.reshape(2, 2, 1), axis=(np.int64(0), np.int32(2))),
        lambda x: x.reshape(2, 2).max(axis=np.argmax([0, 1])),
        lambda x: x.reshape(2, 2).std(axis=np.int64(1)) * np.add.reduce(x.reshape(2, 2), axis=np.int8(0)),
        lambda x: np.roll(x.reshape(2, 2), np.array([1, 1]), axis=np.array([0, 1])),
        lambda x: np.tile(x, np.array([2, 1])),
        lambda x: np.rot90(x.reshape(2, 2), k=np.array(1)),
        lambda x: np.unwrap(9 * x, period=np.array(6.0)),
        lambda x: np.linalg.pinv(np.stack([np.diag(x), np.diag(x * x)]), rcond=np.array([1e-10, 1e-9])),
        lambda x: np.nan_to_num(x * NOT_A_NUMBER, nan=WEIGHTS, posinf=np.array(3.0)),
    ],
)
def test_options_of_numpys_own_kinds(fun):
    """A number of NumPy's, or an array, as an option."""
    agrees(fun, np.array([0.3, 0.7, 1.2, 2.0]))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.cumprod(x, dtype=complex),
        lambda x: np.maximum.reduce(x, dtype=complex),
        lambda x: np.logaddexp.reduce(x, axis=-1, dtype=float),
        lambda x: np.take(x, [0, -1], axis=0),
        lambda x: np.pad(x, 1, constant_values=5.0),
    ],
)
def test_python_numbers_with_options(fun):
    agrees(fun, 0.7)


NARROW = [
    *(np.array([100, -100, 127], dtype) for dtype in (np.int8, np.int16)),
    np.array([-128, 90, 7], np.int8),
    np.array([200, 3, 130], np.uint8),
    np.array([100_000, -100_000, 70_000], np.int32),
    np.array([200.25, 1.75, 300.5], np.float16),
    np.array([True, False, True]),
]
BESIDE = {
    "arctan2": lambda x, n: np.arctan2(x, n) + np.arctan2(n, 2 * x),
    "power of numbers": lambda x, n: x ** (n / 50) + np.power(x, n % 5),
    "power to numbers": lambda x, n: np.maximum(n, 1) ** x + np.float_power(np.maximum(n, 1), x),
    "minimal exponents": lambda x, n: (5.0 * x) ** np.clip(n, 0 if n.dtype.kind == "u" else -128, 20),
    "interp at numbers": lambda x, n: np.interp(90 * x, np.sort(n), [1.0, 5.0, 7.0]),
    "interp of numbers": lambda x, n: np.interp(x, [0.0, 1.0, 2.0], n),
    "gradient": lambda x, n: np.gradient(x, np.sort(n)) if n.dtype != bool else x,
    "lstsq": lambda x, n: (
        np.linalg.lstsq(np.stack([n, np.ones_like(n)], axis=1), x, rcond=None)[0] if n.dtype != np.float16 else x
    ),
}


@pytest.mark.parametrize("fun", BESIDE.values(), ids=BESIDE)
def test_arguments_of_narrow_types_are_computed_with_in_the_results(fun):
    """Rules must not overflow in small integers, nor round to half precision."""
    x = np.array([0.45, 0.73, 1.21])

    def total(x, n):
        found = fun(x, n)
        return np.sum(found * (1.0 + np.arange(np.size(found)))), found

    for n in NARROW:
        _, value = total(x, n)
        expected = [(total(x + e, n)[0] - total(x - e, n)[0]) / 2e-6 for e in 1e-6 * np.eye(3)]
        for mode in ("auto", "dynamic"):
            derivative = grad(total, has_aux=True, mode=mode)
            for _ in range(3):
                slope, found = derivative(x, n)
                np.testing.assert_allclose(found, value, rtol=1e-12)
                np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6 * np.max(np.abs(value)))


@pytest.mark.parametrize("make", [grad, value_and_grad, elementwise_grad, jacobian, jacrev, jacfwd, hessian, hvp])
def test_backend_is_numpy(make):
    fun, args = (lambda x: np.sum(x**3)), (WEIGHTS, WEIGHTS)[: 1 + (make is hvp)]
    assert make(backend="numpy")(fun)(*args) is not None
    np.testing.assert_equal(make(fun, backend="numpy")(*args), make(fun)(*args))
    with pytest.raises(ValueError, match="backend='numba': the only one there is"):
        make(fun, backend="numba")


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("by", [0, 1, (0, 1)])
def test_weights_that_sum_to_zero(mode, by):
    """NumPy raises, however often it was called with others before."""
    x, few = np.array([[0.5, -0.3], [1.2, 2.0]]), np.array([[1.0, 2.0], [1.0, -1.0]])
    derivative = value_and_grad(lambda x, w: np.sum(np.average(x, axis=1, weights=w)), by, mode=mode)
    for weights in (few, np.abs(few), np.abs(few), np.abs(few), few):
        if np.all(np.sum(weights, 1)):
            assert derivative(x, weights)[0] == np.sum(np.average(x, axis=1, weights=weights))
        else:
            with pytest.raises(ZeroDivisionError, match="Weights sum to zero"):
                derivative(x, weights)


BEHIND_OUT = [
    lambda x: np.sum(x, 0, None, None, True),
    lambda x: x.sum(0, None, None, True, 2.0),
    lambda x: np.max(x, 0, None, True),
    lambda x: x.std(0, None, None, 1),
    lambda x: np.var(x, 1, None, None, 1, True),
    lambda x: x.mean(1, None, None, True),
    lambda x: x.take([5, 1], 1, None, "wrap"),
    lambda x: np.median(x, 0, None, False, True),
    lambda x: np.quantile(x, 0.3, 0, None, False, "lower"),
    lambda x: np.percentile(x, 30, 0, None, False, "linear", True),
    lambda x: np.choose((x > 0).astype(int), [x, x * x], None, "clip"),
    lambda x: np.ptp(x, 0, None, True),
    lambda x: np.nanstd(x, 0, None, None, 1, True),
    lambda x: np.sum(x, 0, None, np.zeros_like(x[:1]), True),
]


@pytest.mark.parametrize("fun", BEHIND_OUT)
def test_options_behind_out(fun):
    """By their places, as NumPy takes them."""
    agrees(fun, np.random.default_rng(0).normal(size=(3, 4)))


def test_calls_with_too_much_behind_out():
    x = np.ones((2, 3))
    for fun in (lambda x: np.argmax(x, 0, None, True), lambda x: np.max(x, 0, None, True, keepdims=True)):
        with pytest.raises(TypeError):
            fun(x)
        with pytest.raises(TypeError):
            grad(lambda x, fun=fun: np.sum(fun(x)))(x)


FEW = {  # what is done with small integers; of floats there are the numbers that NumPy counts with
    "places in turn": lambda x, n: np.take(np.arange(300.0) * x[0], n, mode="wrap"),
    "places that are cut": lambda x, n: np.take(np.arange(300.0) * x[0], n, mode="clip"),
    "True and False as places": lambda x, n: np.take(x, n > 2),
    "written in turn": lambda x, n: put(np.zeros(300), n, x, mode="wrap"),
    "written at False and True": lambda x, n: put(np.zeros(3), n > 2, x),
    "written into columns": lambda x, n: along(np.zeros((2, 150)), np.abs(n), x[0], None),
    "equal steps": lambda x, n: np.gradient(x, n[0], edge_order=2),
    "uneven steps": lambda x, n: np.gradient(x, np.sort(n)),
    "numbers in a row": lambda x, n: np.linspace(n, n[::-1], 4),
    "from one number to another": lambda x, n: np.linspace(n[2], n[0], 4, endpoint=False),
    "powers in a row": lambda x, n: np.logspace(n[2] // 9, n[0] // 9, 4),
    "weighed": lambda x, n: np.average(n, weights=np.abs(n)),
    "weighed by bools": lambda x, n: np.average(n, weights=n != 100),
    "a polynomial in two": lambda x, n: np.polynomial.polynomial.polyval2d(n, n, np.outer(n, n)),
    "a polynomial on a grid": lambda x, n: np.polynomial.polynomial.polygrid2d(n, n, np.outer(n, n)),
    "padded by the mean": lambda x, n: np.pad(n, 2, mode="mean"),
    "padded by the median": lambda x, n: np.pad(n[:2], 1, mode="median"),
    "padded by a ramp": lambda x, n: np.pad(n, (5, 4), mode="linear_ramp", end_values=(3, 1)),
    "padded by an odd reflection": lambda x, n: np.pad(n > 2, 2, mode="reflect", reflect_type="odd"),
    "counted": lambda x, n: np.histogramdd(np.ones((3, 2)), 2, weights=n)[0],
    "no number, and a first one": lambda x, n: np.max((n > 2)[:0], initial=0.5),
    "in one of two": lambda x, n: np.setxor1d(n, n[:1], assume_unique=True),
}


def put(a, *args, **options):
    np.put(a, *args, **options) if args else np.put(a=a, **options)
    return a


def along(arr, *args, **options):
    np.put_along_axis(arr, *args, **options)
    return arr


def filled(a, **options):
    np.fill_diagonal(a=a, **options)
    return a


def copied(dst, **options):
    np.copyto(dst=dst, **options)
    return dst


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", FEW.values(), ids=FEW)
def test_small_integers_are_computed_with_as_numpy_does(fun, mode):
    x = np.array([0.45, 0.73, 1.21])
    derivative = grad(lambda x, n: (np.sum(x), fun(x, n)), has_aux=True, mode=mode)
    for n in [np.array([100, 3, 120], dtype) for dtype in (np.int8, np.uint8, np.int64)] * 3:
        found, wanted = derivative(x, n)[1], fun(x, n)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, 1e-13)


@pytest.mark.parametrize("n", [[-7, 2, 0, 5], [1, 2, 4, -5], [4, -3, -3, 1]])
@pytest.mark.parametrize("mode", ["mean", "median", "linear_ramp", "maximum"])
def test_padded_whole_numbers_are_rounded_as_numpy_does(mode, n):
    derivative = grad(lambda x, n: (x, np.pad(n, 3, mode=mode)), has_aux=True)
    for _ in range(3):
        np.testing.assert_array_equal(derivative(1.0, np.array(n))[1], np.pad(n, 3, mode=mode), strict=True)


@pytest.mark.parametrize(
    "fun", [lambda s: np.geomspace(s, np.float32(3), 5), lambda s: np.interp(100 * s, [s, 0.5], [1.0, 2.0], period=s / 9)]
)
def test_single_precision_where_numpy_computes_in_double(fun):
    derivative = grad(lambda s: (s, fun(s)), has_aux=True)
    for s in np.array([0.7, 1.3, 2.1], np.float32):
        found, wanted = derivative(s)[1], fun(s)
        assert found.dtype == wanted.dtype == float
        np.testing.assert_allclose(found, wanted, 1e-14)


X, T = np.array([0.3, -0.7, 1.2, 2.0]), np.arange(4.0)


def weighted(x, w):  # NumPy 2.0 has a result for weights that are zero, or none
    return np.quantile(x, 0.3, weights=w, method="inverted_cdf")


LATER = {  # calls that are none of NumPy's for all values, or numbers: one that is, and some that are not
    "compress": (lambda x, c: np.compress(c, x), [1, 0, 0, 1, 0], [1, 0, 0, 0, 1]),
    "put_along_axis": (lambda x, k: along(x * 1.0, k, x[0], None), [1, -2], [1, 4], [1, -5]),
    "insert": (lambda x, k: np.insert(x, k, 0.5), 2, 5, -5),
    "insert several": (lambda x, k: np.insert(x, k, 0.5), [2, -1], [2, 5]),
    "bins": (lambda x, bins: np.histogram(T, bins, weights=x)[0], [0.0, 2.0, 4.0], [0.0, 5.0, 4.0]),
    "bins of two": (lambda x, bins: np.histogram2d(T, T, [bins, 2], weights=x)[0], [0.0, 2.0], [0.0, -5.0]),
    "range": (lambda x, high: np.histogram(T, 2, (1.0, high), weights=x)[0], 4.0, -3.0, np.inf),
    "range of two": (lambda x, end: np.histogram2d(T, T, 2, [(1.0, end), (0, 3)], weights=x)[0], 4.0, -3.0, np.nan),
    "no range": (lambda x, high: np.histogram(T, 2, (1.0, high), weights=x)[0], 4.0, 1.0, 2.0),
    "no range of two": (lambda x, end: np.histogram2d(T, T, 2, [(1.0, end), (0, 3)], weights=x)[0], 4.0, 1.0),
    "weights": (weighted, T, T - 1, *[w for w in (0 * T, T * np.nan) if isinstance(outcome(weighted, T, w), ValueError)]),
    "a quantile": (lambda x, q: np.quantile(x, q, weights=T, method="inverted_cdf"), 0.3, 1.3, -0.1),
    "frequencies": (lambda x, w: np.cov(x, fweights=w), T, T - 1, T + 0.5, 0 * T),
    "weights of observations": (lambda x, w: np.cov(x, aweights=w), T, T - 1, 0 * T),
    "ratios": (lambda x, s: np.geomspace(s, x[3], 3), 2.0, 0.0),
    "period": (lambda x, p: np.interp(9.0, T, x, period=p), 4.0, 0.0),
    "sections": (lambda x, k: np.array_split(x, k)[0], 2, 0, -1),
    "axis": (lambda x, k: np.gradient(np.outer(x, x), axis=k), 1, 2, -3),
    "axis to split": (lambda x, k: np.array_split(np.outer(x, x), 2, axis=k)[0], 1, 2, -3),
    "axis to roll": (lambda x, k: np.rollaxis(np.outer(x, x), k), 1, 2, -3),
    "axis of lines": (lambda x, k: np.apply_along_axis(np.cumsum, k, np.outer(x, x)), 1, 2, -3),
    "axis to write along": (lambda x, k: along(x * 1.0, np.array([1]), x[0], k), 0, 1, -2),
    "axis to trim": (lambda x, k: np.trim_zeros(x, axis=k), 0, 1, -2),
    "least length": (lambda x, n: np.bincount([0, 1, 1, 2], x, n), 2, -1),
    "degree": (lambda x, n: np.polyfit(T, x, n), 1, -1),
    "columns": (lambda x, n: np.vander(x, n), 2, -1),
    "length": (lambda x, n: np.pad(x, 2, mode="maximum", stat_length=n), 2, 0, -1),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", LATER)
def test_errors_of_numpys_that_hang_on_values(name, mode):
    """However often calls were right before."""
    fun, good, *bad = LATER[name]
    good, *bad = [np.array(value) if np.ndim(value) else value for value in (good, *bad)]
    derivative = grad(lambda x, value: (np.sum(x), fun(x, value)), has_aux=True, mode=mode)
    for value in (good, good, good, *bad, good, *bad):
        found, wanted = outcome(lambda value: derivative(X, value)[1], value), outcome(fun, X, value)
        if isinstance(wanted, Exception):
            assert isinstance(found, type(wanted)), (value, found)
        else:
            compare(found, wanted, X)


NO = [
    lambda x: np.place(x, np.ones(5, bool), [x[0]]),
    lambda x: np.place(x, np.ones(3, bool), [x[0]]),
    lambda x: np.putmask(x, x > 0, 1j * x),
    lambda x: np.put_along_axis(x, np.array([[1]]), 2.0, 0),
    lambda x: np.pad(x, ((1.5, 2.0),)),
    lambda x: np.quantile(x, 0.3, weights=T),
    lambda x: np.dsplit(np.outer(x, x), 2),
    lambda x: np.vsplit(x, 2),
]


@pytest.mark.parametrize("call", NO)
def test_calls_that_are_none_of_numpys(call):
    wanted = outcome(call, X.copy())
    for mode in ("auto", "dynamic"):
        found = outcome(grad(lambda x: (np.sum(x), call(x * 1.0))[0], mode=mode), X)
        assert isinstance(wanted, Exception)
        assert isinstance(found, type(wanted)), found


FORMS = {
    "arrays by name": lambda x: (
        *(np.argmax(a=x), np.argsort(a=x), np.nonzero(a=x), np.count_nonzero(a=x > 0), np.any(a=x > 1), np.round(a=x)),
        *(np.digitize(x=x, bins=T), np.searchsorted(a=T, v=x), np.isin(element=x, test_elements=[1.2]), np.allclose(a=x, b=T)),
        *(np.allclose(x, T, atol=x[3]), np.isclose(T, T + 1, atol=x[2]), np.array_equal(a1=x, a2=x)),
    ),
    "places of options behind out": lambda x: (
        *(
            np.sum(x, 0, None, None, True),
            np.std(x, 0, None, None, 1),
            np.max(x, 0, None, True),
            np.mean(x, 0, None, None, True),
        ),
        *(
            np.take(x, [0, 9], 0, None, "clip"),
            np.choose([0, 5], [x[:2], x[2:]], None, "clip"),
            np.median(x, 0, None, False, True),
        ),
        *(np.nanmean(x, 0, None, None, True), np.ptp(x, 0, None, True), np.percentile(x, 30, 0, None, False, "lower")),
    ),
    "parts by name": lambda x: (
        *np.vsplit(x[:, None], indices_or_sections=2),
        *np.hsplit(x, indices_or_sections=2),
        *np.dsplit(np.outer(x, x)[None], indices_or_sections=2),
    ),
    "written by name": lambda x: (
        *(put(x * 2, ind=[1], v=x[0]), along(x * 2, indices=np.array([2]), values=x[:1], axis=0)),
        *(filled(np.outer(x, x), val=x[0]), copied(x * 2, src=x, where=x > 0)),
    ),
    "masks of plain numbers": lambda x: (np.sum(T, where=x > 0), np.max([1.0, 5.0, 2.0, 3.0], where=x > 0, initial=0)),
    "moments of lists": lambda x: (np.var([1.0, 2.0, 3.0, 5.0], mean=x[:1]), np.std([1.0, 2.0, 3.0, 5.0], where=x > 0)),
    "lists": lambda x: (
        *(np.average([1.0, 2.0, 3.0, 4.0], weights=x + 1), np.insert([[1.0, 2.0]], 1, x[:1], axis=1)),
        *(
            np.linalg.multi_dot([[[1.0, 2.0, 3.0, 4.0]], x[:, None], [[2.0]]]),
            np.piecewise([1.0, 2.0], [x[:2] > 0], [np.square]),
        ),
    ),
    "whole numbers as conditions": lambda x: np.piecewise(x, [np.array([1, 0, 1, 0])], [np.sin, np.cos]),
    "casting": lambda x: (np.vstack([x, x], dtype=int, casting="unsafe"), np.hstack([x, x], dtype=int, casting="unsafe")),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("call", FORMS.values(), ids=FORMS)
def test_forms_of_calls(call, mode):
    derivative = grad(lambda x: (np.sum(x), call(x)), has_aux=True, mode=mode)
    for _ in range(3):
        found, wanted = derivative(X)[1], call(X)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, 1e-14)
