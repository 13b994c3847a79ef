"""Refusals: each says what was met, at which line of the user's, why, and what to write instead. No wrong number slips by."""

import array
import cmath
import collections
import contextlib
import copy
import decimal
import fractions
import functools
import inspect
import io
import json
import math
import os
import pickle
import random
import re
import statistics
import struct
import subprocess
import sys
import threading
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from math import sin as bare_sin
from pathlib import Path

import numpy as np
import pytest
from agreement import slopes

from symgrad import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    elementwise_grad,
    errors,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jvp,
    linearize,
    primitive,
    stop_gradient,
    value_and_grad,
    vjp,
)
from symgrad.errors import (
    EscapedTracer,
    IntegerArgument,
    LeavesNumPy,
    MutatedInput,
    NonScalarOutput,
    NotDifferentiable,
    RecursiveDerivative,
    SymgradError,
)
from symgrad.pytree import flatten

V = np.array([0.31, -1.23, 0.74, 2.17])


def line_of(fun):
    """``file:line`` where a one-line function stands."""
    code = fun.__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def refuses(fun, error, *words, at=V, line=True):
    """Assert that the gradient of ``fun`` raises ``error``, whose message names the line and has all ``words`` in it."""
    for mode in ("auto", "dynamic"):
        with pytest.raises(error) as caught:
            grad(fun, mode=mode)(at)
        message = str(caught.value)
        for word in words:
            assert re.search(word, message), message
        if line:
            assert line_of(fun) in message, message


# -- plain numbers -------------------------------------------------------------------------------------------------


class Series:
    """As pandas has it: it gives way to what has a higher priority, and says nothing of its labels."""

    __array_priority__ = 1000
    __pandas_priority__ = 3000

    def __init__(self, values):
        self.values = np.array(values)

    def to_numpy(self):
        return self.values

    def __mul__(self, other):
        if getattr(other, "__pandas_priority__", 0) > self.__pandas_priority__:
            return NotImplemented
        return Series(self.values * np.asarray(other, dtype=float))


def test_labelled_arrays_are_for_their_arrays():
    data = Series(V)
    refuses(lambda x: np.sum(data * x), LeavesNumPy, "a Series cannot hold", r"\.to_numpy\(\)")
    refuses(lambda x: np.sum(x - data), LeavesNumPy, "a Series cannot hold", r"\.to_numpy\(\)")
    np.testing.assert_allclose(grad(lambda x: np.sum(data.to_numpy() * x))(V), V)
    with pytest.raises(NotDifferentiable, match=r"x is Series .* give x\.to_numpy\(\)"):
        grad(lambda x: np.sum(x.values))(data)


PLAIN = {
    "math.sin": (lambda x: math.sin(x[0]), r"math\.sin", r"write np\.sin"),
    "sin": (lambda x: bare_sin(x[0]), r"bare_sin\(x\[0\]\)", r"write np\.sin"),
    "math.fabs": (lambda x: math.fabs(x[0]), r"write np\.abs"),
    "math.hypot": (lambda x: math.hypot(x[0], x[1]), r"write np\.hypot"),
    "math.gamma": (lambda x: math.gamma(x[0]), r"symgrad\.primitive"),
    "math.fsum": (lambda x: math.fsum(x), r"write np\.sum"),
    "cmath.exp": (lambda x: abs(cmath.exp(x[0])), r"write np\.exp"),
    "float": (lambda x: float(x[0]), r"float\(x\[0\]\)", r"leave float\(\) out"),
    "complex": (lambda x: complex(x[0], 1).real, r"1j"),
    "map": (lambda x: sum(map(float, x)), r"would make a plain"),
    "np.random.normal": (lambda x: np.random.normal(x[0]), r"standard_normal"),
    "rng.normal": (lambda x: np.random.default_rng(0).normal(x, 1.0).sum(), r"standard_normal"),
    "random.gauss": (lambda x: random.gauss(0, 1) * 0 + struct.calcsize("d") * math.exp(x[0]), r"write np\.exp"),
    "percent": (lambda x: float("%.3f" % x[0]), r"f-string"),  # noqa: UP031
    "array.array": (lambda x: array.array("d", x)[0], r"plain number"),
    "statistics.mean": (lambda x: statistics.mean(x), r"as_integer_ratio"),
    "statistics.fmean": (lambda x: statistics.fmean(x), r"plain number"),
    "Fraction": (lambda x: float(fractions.Fraction(x[0])), r"as_integer_ratio"),
    "Fraction times": (lambda x: x.tolist()[0] * fractions.Fraction(1, 2), r"plain"),
    "hex": (lambda x: float.fromhex(x.tolist()[0].hex()), r"\.hex"),
    "tobytes": (lambda x: np.frombuffer(x.tobytes())[0], r"\.tobytes"),
    "bytes": (lambda x: np.frombuffer(bytes(x))[0], r"plain"),
    "ctypes": (lambda x: x.ctypes.data * 0.0, r"\.ctypes"),
    "pickle": (lambda x: pickle.loads(pickle.dumps(x))[0], r"cannot be pickled"),
}


@pytest.mark.parametrize(("fun", "words"), [(f, w) for f, *w in PLAIN.values()], ids=list(PLAIN))
def test_becoming_plain(fun, words):
    refuses(fun, LeavesNumPy, *words)


def made_elsewhere():
    """A function whose source is not at hand makes plain arrays, which cannot become traced ones."""
    space = {"np": np}
    exec("def make(): return np.zeros(4)", space)
    return space["make"]


MAKE = made_elsewhere()


def test_writes_into_plain_arrays():
    def item(x):
        b = MAKE()
        b[0] = x[0]
        return b.sum()

    def slices(x):
        b = MAKE()
        b[:] = x
        return b.sum()

    def filled(x):
        b = MAKE()
        b.fill(x[0])
        return b.sum()

    def copied(x):
        b = MAKE()
        np.copyto(b, x)
        return b.sum()

    for fun in (item, slices):
        with pytest.raises(LeavesNumPy) as caught:
            grad(fun)(V)
        message = str(caught.value)
        assert f"test_errors.py:{fun.__code__.co_firstlineno + 2}" in message
        assert "written into a plain array" in message
        for remedy in ("np.zeros_like(x)", "np.zeros(n, like=x)", "symgrad.numpy.zeros(n)"):
            assert remedy in message
    for fun in (filled, copied):
        with pytest.raises(LeavesNumPy, match=rf"test_errors.py:{fun.__code__.co_firstlineno + 2}: .*np\.zeros_like"):
            grad(fun)(V)
    refuses(lambda x: MAKE().__iadd__(x).sum(), MutatedInput, "plain array", r"np\.zeros_like")
    refuses(lambda x: np.add(x, x, out=MAKE()).sum(), MutatedInput, "out=", r"np\.zeros\(n, like=x\)")
    refuses(lambda x: np.add.at(MAKE(), [0], x[0]), MutatedInput, r"np\.add\.at", "symgrad.numpy.zeros")


def test_values_that_are_written_before_they_are_read():
    def fun(x):
        y = 2.0 * x
        np.place(y, [True, False, True, True], y[1:3])
        return np.sum(y * x)

    for mode in ("auto", "dynamic"):
        with pytest.raises(NotDifferentiable, match=rf"test_errors.py:{fun.__code__.co_firstlineno + 2}: np\.place .*copy"):
            grad(fun, mode=mode)(V)


OF_OBJECTS = {
    "asarray": np.asarray,
    "ravel": np.ravel,
    "reshape": lambda c: np.reshape(c, (1, -1)),
    "a view of it": lambda c: np.asarray(c)[::-1],
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", OF_OBJECTS)
def test_arrays_of_objects_that_change_after_they_became_traced(name, mode):
    """The traced array would not see it, where NumPy's view does."""

    def fun(x, late, end):
        c = np.array([x[0], x[1]], dtype=object)
        y = OF_OBJECTS[name](c)
        first = np.sum(y**2)
        if end:
            del y
        if late:
            c[0] = 7.0
        return first + 0.0 * x[2] if end else np.sum(y**2)

    derivative = grad(fun, mode=mode)
    for _ in range(3):
        with pytest.raises(MutatedInput, match=r"dtype object becomes a traced array here, and is changed later"):
            derivative(V, True, False)
        for late, end in ((False, False), (True, True)):
            np.testing.assert_allclose(derivative(V, late, end), [2 * V[0], 2 * V[1], 0.0, 0.0])


def test_mutated_arguments():
    refuses(lambda x: x.__setitem__(0, 1.0), MutatedInput, r"x = x\.copy\(\)")
    refuses(lambda x: x.__iadd__(1.0), MutatedInput, r"x \+= y", r"x\.copy\(\)")
    refuses(lambda x: np.add(x, 1, out=x), MutatedInput, r"out=", r"x\.copy\(\)")
    refuses(lambda x: x.sort(), MutatedInput, r"x\.sort\(\)", r"x\.copy\(\)")
    refuses(lambda x: x[1:].fill(0.0), MutatedInput, r"x\.copy\(\)")
    data = V.copy()

    def other(x, y):
        y[0] = 5.0
        return np.sum(x * y)

    with pytest.raises(MutatedInput):
        grad(other)(V, data)
    assert np.array_equal(data, V)


def test_hashing():
    refuses(lambda x: {x[0]: 1.0}[x[0]], LeavesNumPy, "dict key", "list")
    refuses(lambda x: len({x[0], x[1]}) * x[0], LeavesNumPy, "set")
    refuses(lambda x: x[0] * (x[0] in {0.31: 1}), LeavesNumPy, "dict key")
    cached = functools.lru_cache(lambda v: v * 2)
    refuses(lambda x: cached(x[0]), LeavesNumPy, "cached function", line=False)
    with pytest.raises(TypeError, match="unhashable type"):
        grad(lambda x: {x: 1.0}[x])(V)


def test_other_ways_out():
    """Python's own errors are loud, too."""
    for fun in (
        lambda x: struct.pack("d", x[0]),
        lambda x: memoryview(x),
        lambda x: json.dumps([x[0]]),
        lambda x: decimal.Decimal(x[0]),
        lambda x: float(f"{x[0]}"),
        lambda x: float(f"{x[0]:.17g}"),
        lambda x: float(str(x[0])),
        lambda x: float(repr(x[0])),
        lambda x: float(f"{x[0]!r}"),
        lambda x: np.fromstring(str(x), sep=" "),
        lambda x: np.testing.assert_allclose(x, x + 1),
        lambda x: np.testing.assert_array_equal(x, x + 1),
        lambda x: np.nditer(x),
        lambda x: sys.float_info.max.__mul__(x[0]) + 0,
        lambda x: np.einsum("i->", [[x[0]], [x[1], 2]]),
    ):
        with pytest.raises((TypeError, ValueError, struct.error, AssertionError, DeprecationWarning)):
            grad(fun)(V)


# -- functions without a rule --------------------------------------------------------------------------------------


def test_functions_without_a_rule():
    special = pytest.importorskip("scipy.special")
    remedies = (r"symgrad\.primitive", r"symgrad\.custom_vjp", r"symgrad\.stop_gradient")
    refuses(lambda x: special.mathieu_a(1, x).sum(), NotDifferentiable, "mathieu_a", "no derivative rule", *remedies)
    refuses(lambda x: special.obl_cv(1, 1, x[0]), NotDifferentiable, "obl_cv", *remedies)
    assert np.allclose(grad(lambda x, y: np.sum(x * special.mathieu_a(1, y)))(V, V), special.mathieu_a(1, V))
    assert np.allclose(grad(lambda x: np.sum(x * special.mathieu_a(1, stop_gradient(x))))(V), special.mathieu_a(1, V))


def test_sparse_arrays_in_other_places_than_products():
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.csr_array(np.arange(16.0).reshape(4, 4) % 5)
    refuses(lambda x: sparse.csr_matrix(a) * x, NotDifferentiable, "sparse arrays", r"A @ x", r"symgrad\.primitive")
    refuses(lambda x: (a + x).sum(), LeavesNumPy, r"a \+ x")
    refuses(lambda x: (a * x[0]).sum(), LeavesNumPy, r"a \* x\[0\]")


def test_functions_that_read_memory():
    """SciPy's would copy bare pointers to traced numbers: that ended Python."""
    distance, ndimage = pytest.importorskip("scipy.spatial.distance"), pytest.importorskip("scipy.ndimage")
    refuses(lambda x: distance.squareform(x).sum(), NotDifferentiable, r"m\[np\.triu_indices\(n, 1\)\]", at=np.ones(3))
    refuses(lambda x: distance.squareform(np.outer(x, x), checks=False).sum(), NotDifferentiable, "squareform reads memory")
    refuses(lambda x: ndimage.distance_transform_cdt(x).sum(), NotDifferentiable, "stop_gradient")
    assert np.allclose(grad(lambda x: np.sum(distance.squareform(stop_gradient(x)) @ x))(np.ones(3)), 2.0)


def test_numpy_functions_without_a_rule():
    refuses(lambda x: np.save(io.BytesIO(), x), NotDifferentiable, r"np\.save")
    refuses(lambda x: np.savetxt(io.StringIO(), x), NotDifferentiable, r"np\.savetxt")
    refuses(lambda x: np.packbits(x > 0).sum() * np.busday_count(x, x), NotDifferentiable, r"np\.busday_count", "rule")
    refuses(lambda x: np.insert(x, 1, x[0]).sum() * 0 + np.array2string(x), NotDifferentiable, "array2string|insert")


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.insert(x, 9, 1.0),
        lambda x: np.insert(x, [0, 9], 1.0),
        lambda x: np.insert(x, 0, 1.0, axis=1),
        lambda x: np.insert(x, [0, 1], np.ones((2, 1))),
        lambda x: np.trapezoid(x, axis=1),
    ],
)
def test_what_numpy_refuses(fun):
    with pytest.raises((ValueError, IndexError)):
        fun(np.ones(3))
    with pytest.raises((ValueError, IndexError)):
        grad(lambda x: np.sum(fun(x)))(np.ones(3))


def test_options_without_a_rule_where_no_derivative_flows():
    y = np.array([3.0, 1.0, 2.0, 5.0])
    for fun in (
        lambda x, y: x.sum() * np.average(y, axis=(0,)) * np.pad(y, 1, mode="reflect", reflect_type="odd").sum(),
        lambda x, y: x.sum() * np.nanmedian(y, out=np.zeros(())),
        lambda x, y: x.sum() * np.polyfit(y, y, 1, full=True)[0].sum() * np.interp(1.5, np.sort(y), y, period=9.0),
    ):
        for mode in ("auto", "dynamic"):
            derivative = grad(fun, mode=mode)
            for scale in (1.0, 1.0, 2.0, 2.0):
                assert np.allclose(derivative(V, scale * y), fun(np.array([1.0]), scale * y))


def test_options_without_a_rule():
    wide = lambda x: np.pad(x, 9, mode="reflect", reflect_type="odd").sum()
    refuses(wide, NotDifferentiable, r"np\.pad", "reflect_type")
    refuses(lambda x: np.exp(x, where=x > 0).sum(), NotDifferentiable, "where=", "out")
    refuses(lambda x: np.nan_to_num(x, nan=x[0]).sum(), LeavesNumPy, "nan=", "plain number")
    refuses(lambda x: x.view(np.int64).sum() * 1.0, NotDifferentiable, "astype")


def test_arrays_of_other_kinds():
    matrix = np.eye(4).view(np.matrix)
    masked = np.ma.masked_array(V, V > 1)
    words = np.array(["a", "b", "c", "d"])
    objects = np.array([1, "a", None, 2.0], dtype=object)
    nested = np.array([None, None], dtype=object)
    nested[0], nested[1] = np.ones(2), np.ones(3)
    refuses(lambda x: (x * masked).sum(), NotDifferentiable, "MaskedArray", r"m\.filled\(0\.0\)")
    refuses(lambda x: ((masked - x) ** 2).sum(), NotDifferentiable, "MaskedArray", r"m\.filled\(0\.0\)")
    refuses(lambda x: (x @ matrix).sum(), NotDifferentiable, "matrix", r"np\.asarray")
    refuses(lambda x: np.add(x, words), NotDifferentiable, "dtype <U1; make it one of numbers")
    refuses(lambda x: x * objects, NotDifferentiable, "dtype object")
    refuses(lambda x: x[:2] * nested, NotDifferentiable, "dtype object")
    refuses(lambda x: x * np.array([x[:2], x], dtype=object), NotDifferentiable, "object array that holds arrays")
    refuses(lambda x: x * "a", TypeError, line=False)
    refuses(lambda x: x + None, TypeError, line=False)
    for bad, plain in ((matrix, "np.asarray"), (masked, "x.filled")):  # asarray would drop the mask
        with pytest.raises(NotDifferentiable, match=rf"{type(bad).__name__}; pass a plain array: {plain}"):
            grad(lambda x: np.sum(x))(bad)


def test_object_arrays_where_they_do_not_work():
    """NumPy makes them of traced numbers in functions whose source is not at hand."""
    with pytest.raises(NotDifferentiable, match=r"object(.|\n)*np\.stack"):
        grad(eval("lambda x: np.linalg.inv(np.array([[x[0], 0], [0, x[1]]])).sum()"))(np.ones(2))
    with pytest.raises(NotDifferentiable, match=r"object(.|\n)*symgrad\.numpy\.array"):
        grad(eval("lambda x: np.sin(np.array([x[0], 1.0])).sum()"))(np.ones(2))
    with pytest.raises(SymgradError):
        grad(eval("lambda x: np.fft.fft(np.array([x[0], x[1]])).real.sum()"))(np.ones(2))


@pytest.mark.parametrize("flags", [["readonly"], ["readwrite"]])
def test_iterators_in_c_name_what_goes_instead(flags):
    def total(x):
        s = 0.0
        for v in np.nditer(x, op_flags=flags):
            s = s + v
        return s

    for mode in ("auto", "dynamic"):
        with pytest.raises(NotDifferentiable, match=r"np.nditer goes .* np.ndenumerate\(x\)"):
            grad(total, mode=mode)(np.ones(3))


def test_traced_arrays_never_become_objects():
    """No derivative flows through those."""
    words = "array of objects", "leave dtype=object out"
    refuses(lambda x: np.sum(np.multiply(x, x, dtype=object)), NotDifferentiable, *words)
    refuses(lambda x: np.sum(np.cumsum(x, dtype=object)), NotDifferentiable, *words)


# -- arguments and outputs -----------------------------------------------------------------------------------------


def test_integer_arguments():
    for bad in (np.arange(3), np.array([True, False]), np.array(3)):
        with pytest.raises(IntegerArgument, match=r"x is (int64|bool).*x\.astype\(float\)"):
            grad(lambda x: np.sum(x * x))(bad)
    with pytest.raises(IntegerArgument, match=r"params\['w'\]\[1\] is int64"):
        grad(lambda params: params["w"][0])({"w": [1.0, np.arange(3)]})
    with pytest.raises(NotDifferentiable, match=r"name is str 'a', which cannot be differentiated; .* another argument"):
        grad(lambda name: 1.0)("a")
    with pytest.raises(IntegerArgument, match=r"x is bool.*float\(x\)"):
        grad(lambda x: x * x)(True)
    for exact in (fractions.Fraction(1, 2), decimal.Decimal("0.5")):
        with pytest.raises(NotDifferentiable, match=r"give float\(x\)"):
            grad(lambda x: x * x)(exact)
    assert grad(lambda x: x * x)(3) == 6.0


@pytest.mark.parametrize("module", ["scipy", "scipy.special", "sparse", "dask"])
def test_optional_packages_that_are_missing(module):
    """The module says how to install them."""
    script = f"import sys; sys.modules.update(scipy=None, dask=None, cloudpickle=None); import symgrad.{module}"
    environment = {**os.environ, "PYTHONPATH": str(Path(errors.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    said = run.stderr.strip().splitlines()[-1]
    name = module.split(".")[0]
    assert said.startswith(f"ModuleNotFoundError: symgrad.{name} needs what is not installed: pip install "), run.stderr


def test_outputs_of_grad():
    def fun(x):
        return x * 2

    with pytest.raises(NonScalarOutput, match=r"fun\(\) .*array of shape \(4,\).*sum it.*jacobian.*elementwise_grad"):
        grad(fun)(V)
    for output, words in [
        (None, "returned None; is a return missing?"),
        ((1.0, 2.0), "2 values.*jacobian.*has_aux=True"),
        ("text", "returned str 'text'"),
        ({"a": 1.0, "b": 2.0}, "2 values"),
    ]:
        with pytest.raises(NonScalarOutput, match=words):
            grad(lambda x, output=output: output)(V)
    with pytest.raises(NonScalarOutput, match=r"complex.*np\.real.*holomorphic=True"):
        grad(lambda x: x[0] * 1j)(V)
    with pytest.raises(NonScalarOutput, match="complex"):
        jacobian(lambda x: x * 1j)(V)
    with pytest.raises(NonScalarOutput, match=r"complex output; elementwise_grad needs a real one"):
        elementwise_grad(lambda x: x * 1j)(V)
    for derivative in (grad, value_and_grad, jacobian, jacfwd):
        with pytest.raises(NonScalarOutput, match=r"holomorphic=True needs a complex output, .* real one; leave it out"):
            derivative(np.abs, holomorphic=True)(1.0 + 2.0j)
    with pytest.raises(NotDifferentiable, match=r"holomorphic=True needs complex variables, x is float64; .* x \+ 0j"):
        grad(lambda x: x * x, holomorphic=True)(1.0)
    with pytest.raises(NonScalarOutput, match="has_aux=True"):
        grad(lambda x: x * x, has_aux=True)(1.0)
    for derivative in (hessian(fun), hvp(fun)):
        with pytest.raises(NonScalarOutput):
            derivative(V, V) if derivative.__name__ == "fun" and "hvp" in repr(derivative) else derivative(V)


def test_arguments_of_the_derivatives():
    with pytest.raises(TypeError, match=r"argnums=1: fun\(\) was given \(x\); count positional arguments from 0"):
        grad(fun_of_one, argnums=1)(1.0)
    with pytest.raises(TypeError, match=r"was given \(x, y=\); count .* and name others$"):
        grad(lambda x, *, y: x * y, argnums=1)(1.0, y=2.0)
    method = grad(lambda self, x: x, argnums=1).__get__("an instance")
    with pytest.raises(TypeError, match=r"argnums=1: <lambda>\(\) was given \(x\); count positional"):  # both without self
        method(1.0)
    with pytest.raises(TypeError, match=r"argnums='z': fun\(\) was not given 'z', but \(x\)$"):
        grad(fun_of_one, argnums="z")(1.0)
    for twice in ((0, 0), (0, -2), (0, "x")):
        with pytest.raises(ValueError, match=r"names an argument of <lambda>\(\) twice"):
            grad(lambda x, y: x * y, argnums=twice)(1.0, 2.0)
    for nothing in (1.5, V, (0, None)):
        with pytest.raises(TypeError, match="give the position or the name of an argument"):
            jacobian(fun_of_one, nothing)
    with pytest.raises(TypeError, match="missing"):
        grad(lambda x, y: x * y)(1.0)
    with pytest.raises(TypeError, match="grad needs a function, got float"):
        grad(3.0)
    for make in (checkpoint, custom_jvp, custom_vjp, primitive):
        with pytest.raises(TypeError, match=f"{make.__name__} needs a function, got int"):
            make(3)
    for define in (custom_vjp(fun_of_one).defvjp, primitive(fun_of_one).defvjp, primitive(fun_of_one).defjvp):
        with pytest.raises(TypeError, match="a rule needs a function, got int"):
            define(1, 2)
    with pytest.raises(ValueError, match=r"mode='fast'.*auto.*dynamic"):
        grad(fun_of_one, mode="fast")
    with pytest.raises(TypeError, match="structure"):
        jvp(fun_of_one, (1.0,), ((1.0, 2.0),))
    with pytest.raises(TypeError, match="1 primals and 2 tangents"):
        jvp(fun_of_one, (1.0,), (1.0, 2.0))
    with pytest.raises(ValueError, match="shape"):
        jvp(fun_of_one, (V,), (V[:2],))
    pullback = vjp(lambda x: x * 2, V)[1]
    with pytest.raises(ValueError, match=r"shape \(2,\), its output \(4,\)"):
        pullback(V[:2])
    with pytest.raises(TypeError, match="structure"):
        pullback((V, V))
    with pytest.raises(TypeError, match="point, the vector"):
        hvp(fun_of_one)(1.0)


def fun_of_one(x):
    return x * 2.0


fun_of_one.__name__ = "fun"


# -- lifetimes -----------------------------------------------------------------------------------------------------


class Pair(tuple):
    pass


class Holder:
    def __init__(self, value):
        self.value = value


HIDING = {
    "defaultdict": lambda x: collections.defaultdict(float, a=x[0] ** 2),
    "counter": lambda x: collections.Counter(a=x[0]),
    "deque": lambda x: collections.deque([x[0]]),
    "namespace": lambda x: types.SimpleNamespace(a=x[0]),
    "tuple": lambda x: Pair((x[0], x[1])),
    "object": lambda x: Holder([x[0]]),
    "view": lambda x: {1: x[0]}.values(),
    "generator": lambda x: (one for one in x),
}


@pytest.mark.parametrize("name", HIDING)
def test_traced_values_in_what_is_no_tree_are_not_returned(name):
    """... by any derivative, nor beside its value: the derivative of what is in there would be lost."""
    fun, x, v = HIDING[name], np.array([3.0, 2.0]), np.array([1.0, 0.0])
    calls = [
        lambda: jvp(fun, (x,), (v,)),
        lambda: linearize(fun, x),
        lambda: vjp(fun, x),
        lambda: jacobian(fun)(x),
        lambda: grad(lambda x: (jvp(fun, (x,), (v,)), x[0])[1])(x),
        lambda: value_and_grad(lambda x: (x[0], {"more": fun(x)}), has_aux=True)(x),
    ]
    for call in calls:
        for _ in range(2):
            with pytest.raises(NotDifferentiable, match=r"test_errors.py:\d+: a \w+ that holds traced values is returned"):
                call()


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_is_no_tree_may_hold_what_no_derivative_follows(mode):
    def fun(p, x):
        return p * x[0], [collections.Counter(a=x[0], b=2), types.SimpleNamespace(c=2 * x[1]), collections.deque([x[0]])]

    derivative = value_and_grad(fun, has_aux=True, mode=mode)
    for k in range(4):
        x = np.array([1.0 + k, 3.0])
        assert repr(derivative(1.5, x)[0][1]) == repr(fun(1.5, x)[1])


@pytest.mark.filterwarnings("ignore:.*traced at every call")
def test_texts_that_are_returned_are_those_of_plain_values():
    def told(x):
        return x * x, {"loss": f"{x:.3f}, {2 * x:.1f}", "all": [str(x), ", ".join(["x", repr(x)])]}

    derivative = value_and_grad(told, has_aux=True)
    for x in (1.5, 2.5, 3.5):
        assert derivative(x)[0] == told(x)


def by_index(x):
    found = {-1: x[0]}
    for i, u in enumerate(x):
        found[i] = u * u
    return found


def by_group(x):
    found = {}
    for i, u in enumerate(x):
        found[i % 3] = found.get(i % 3, 0.0) + u * u
    return found


def by_counter(x):
    found, k = {}, 20
    for u in x:
        found[k] = [u * 2.0]
        k += 2
    return {"a": found, "b": ({k: v[0] * 2.0 for k, v in found.items()},)}


@pytest.mark.parametrize("fun", [by_index, by_group, by_counter])
def test_numbers_of_loops_are_keys_of_what_is_returned(fun):
    derivative, both = jacobian(fun), value_and_grad(lambda x: (np.sum(x), fun(x)), has_aux=True)
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal(6)
        expected, known = flatten(fun(x))
        for found in (both(x)[0][1], jvp(fun, (x,), (x,))[0]):
            leaves, tree = flatten(found)
            np.testing.assert_allclose(leaves, expected, rtol=1e-12)
            assert tree == known
        leaves, tree = flatten(derivative(x))
        np.testing.assert_allclose(leaves, flatten(jacobian(fun, mode="dynamic")(x))[0], rtol=1e-12)
        assert tree == known


def test_escaped_tracers():
    kept = []

    def fun(x):
        kept.append(x * 2)
        return np.sum(x)

    grad(fun)(V)
    (old,) = kept
    line = fun.__code__.co_firstlineno + 1
    uses = [
        lambda: old + 1,
        lambda: np.sin(old),
        lambda: old[0],
        lambda: bool(old[0]),
        lambda: float(old),
        lambda: np.asarray(old),
        lambda: old.sum(),
        lambda: old.__setitem__(0, 1.0),
        lambda: old.__iadd__(1.0),
        lambda: list(old),
        lambda: np.zeros(4) + old,
        lambda: old.tobytes(),
    ]
    for use in uses:
        with pytest.raises(EscapedTracer, match=rf"test_errors.py:{line}\).*after the call.*return it"):
            use()
    assert "Traced(" in repr(old)
    assert old.shape == (4,)

    def again(x):
        return np.sum(x * old)

    with pytest.raises(EscapedTracer, match="return it"):
        grad(again)(V)


def test_what_is_stopped_may_be_kept():
    """A running mean in an attribute, and a log of losses: plain numbers in every call."""

    class Normalised:
        def __init__(self):
            self.mean, self.log = np.zeros(3), []

        def __call__(self, x):
            mean = x.mean(axis=0)
            self.mean = 0.9 * self.mean + 0.1 * stop_gradient(mean)
            loss = np.sum((x - mean) ** 2)
            self.log.append(stop_gradient(loss))
            return loss

    layer, mean = Normalised(), np.zeros(3)
    derivative = grad(lambda x: layer(x))
    for turn in range(6):
        x = np.arange(12.0).reshape(4, 3) * turn
        np.testing.assert_allclose(derivative(x), 2 * (x - x.mean(axis=0)))
        mean = 0.9 * mean + 0.1 * x.mean(axis=0)
        assert type(layer.mean) is np.ndarray
        np.testing.assert_allclose(layer.mean, mean)
    assert {type(loss) for loss in layer.log} == {np.float64}


def test_escape_through_a_global():
    cache = {}

    def fun(x):
        if "scale" not in cache:
            cache["scale"] = np.max(x)
        return np.sum(x) / cache["scale"]

    derivative = grad(fun)
    derivative(V)
    with pytest.raises(EscapedTracer):
        derivative(V)


class Model:
    def __init__(self):
        self.kernel = self.memo = None

    def lazy(self, w, data):
        if self.kernel is None:
            self.kernel = data.T @ data
        return w @ self.kernel @ w

    def memory(self, w, k):
        if self.memo is None:
            self.memo = {}
        if k not in self.memo:
            self.memo[k] = np.arange(3.0) * k
        return np.sum(w * self.memo[k])

    def count(self, w, data):
        if self.kernel is None:
            self.kernel = data.copy()
        self.kernel[0] += 1.0
        self.kernel *= 2.0
        return np.sum(w * self.kernel)


@pytest.mark.parametrize("kind", [int, float, np.float64])
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_caches_of_what_nothing_is_differentiated_by(mode, kind):
    """Values that a call left behind, in dynamic mode, are those of the next one."""
    model = Model()
    derivative = grad(model.memory, mode=mode)
    for turn in range(60):
        k = kind([2, 2, 3, 2, 4, 5, 6, 3][turn % 8])
        np.testing.assert_array_equal(derivative(V[:3], k), np.arange(3.0) * k)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_attributes_that_are_set_once_in_a_while(mode):
    model, rng = Model(), np.random.default_rng(0)
    derivative = grad(model.lazy, mode=mode)
    for turn in range(60):
        if turn % 9 == 0:
            model.kernel, data = None, rng.normal(size=(5, 3))
        w = rng.normal(size=3)
        np.testing.assert_allclose(derivative(w, data), 2 * data.T @ data @ w)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_arrays_in_a_cache_are_changed_in_place(mode):
    model, plain = Model(), Model()
    derivative = value_and_grad(model.count, mode=mode)
    for _ in range(8):
        assert derivative(V[:3], np.arange(3.0))[0] == plain.count(V[:3], np.arange(3.0))


def filled_later(model, x, data):
    new = np.zeros(3)
    total = np.sum(x * (new if model.kernel is None else model.kernel))
    model.kernel = new
    new[1] = data[0]
    return total


def under_two_names(model, x, data):
    model.kernel = model.memo = data * 1.0
    model.kernel[0] = 5.0
    return np.sum(x * model.memo)


def an_argument(model, x, data):
    total = np.sum(x * (1.0 if model.kernel is None else model.kernel))
    model.kernel = data
    return total


@pytest.mark.parametrize("fun", [filled_later, under_two_names, an_argument])
def test_arrays_that_are_kept_and_changed(fun):
    """A trace keeps copies outside: who could tell them from the arrays is in dynamic mode from then on."""
    model, plain, data = Model(), Model(), np.ones(3)
    derivative = value_and_grad(lambda x, data: fun(model, x, data))
    for x in np.random.default_rng(0).normal(size=(200, 3)):
        data = data + 1.0
        assert derivative(x, data)[0] == pytest.approx(fun(plain, x, data), rel=1e-12)


def test_what_is_kept_before_an_error_is_plain():
    """Also where nobody has looked at what it was put into; and writes into a copy that was kept count."""
    model = Model()

    def fun(w, k, data):
        vars(model)["k"] = k
        model.kernel = data * 1.0
        model.kernel[0] = 7.0
        raise ValueError("no")

    for mode in ("auto", "dynamic"):
        with pytest.raises(ValueError, match="no"):
            grad(fun, mode=mode)(V[:3], 2.0, np.arange(3.0))
        assert type(model.k) is float
        if mode == "auto":
            np.testing.assert_array_equal(model.kernel, [7.0, 1.0, 2.0])


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_arrays_of_objects_become_numbers(mode):
    derivative = grad(lambda x: np.array([x[0], x[1]], dtype=object).astype(float).sum(), mode=mode)
    for _ in range(3):
        np.testing.assert_array_equal(derivative(V), [1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_keys_that_are_kept_are_plain(mode):
    """No derivative flows into them; who asks for them after the call gets numbers."""
    counts, seen, pairs = {}, set(), {}

    def fun(x):
        at = x[0] // 1
        counts[at] = counts.get(at, 0) + 1
        seen.add(np.argmax(x))
        pairs[at, 0] = {at: 2}
        return x @ x * counts[at]

    derivative = grad(fun, mode=mode)
    for x in ([1.0, 2.0], [2.0, 1.0], [3.0, -1.0], [1.0, 2.0]):
        found = derivative(np.array(x))
    np.testing.assert_allclose(found, [4.0, 8.0])
    assert list(counts.items()) == [(1.0, 2), (2.0, 1), (3.0, 1)]
    assert {*map(type, counts)} == {np.float64}
    assert seen == {0, 1}
    assert pairs == {(1.0, 0): {1.0: 2}, (2.0, 0): {2.0: 2}, (3.0, 0): {3.0: 2}}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_views_in_lists_of_functions_that_are_called_again(mode):
    """When the run is over, nobody looks at the base of a view any more, as that would be recorded."""

    def chain(q):
        turned = np.eye(2)
        places = [turned[:, 0]]
        for angle in q:
            turned = turned * angle
            places.append(turned[:, 0])
        return turned, places

    def fun(q):
        q = q + chain(q)[0][0, 0]
        return np.sum(chain(q)[0])

    derivative = grad(fun, mode=mode)
    for _ in range(3):
        np.testing.assert_allclose(derivative(np.array([0.3, 0.7])), [3.808, 1.872], rtol=1e-12)


def test_effects_that_do_not_come_again():
    """What fills a cache, or has an error caught, is no reason to trace what comes after it."""
    model, data = Model(), np.eye(3)

    def positive(w):
        try:
            root = np.linalg.cholesky(np.diag(w) + 0.1 * np.outer(w, w))
        except np.linalg.LinAlgError:
            return 1e10 + np.sum(w)
        return np.sum(np.log(np.diag(root)))

    lazy, caught = grad(lambda w: model.lazy(w, data)), grad(positive)
    reference = grad(positive, mode="dynamic")
    for turn in range(300):
        w = V[:3] * 0.5 + 1.0 + turn
        np.testing.assert_allclose(lazy(w), 2 * w)
        w = -w if turn in (0, 100, 101) else w
        np.testing.assert_allclose(caught(w), reference(w))
    assert lazy.cache_info().misses < 50
    assert caught.cache_info().misses < 100
    effects = []

    def logged(w):
        effects.insert(0, 1)
        return np.sum(w)

    derivative = grad(logged)
    for _ in range(300):
        derivative(V)
    assert len(effects) == 300
    assert derivative.cache_info().hits == 0


def test_other_threads():
    def fun(x):
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda v: v * v, [x[0], x[1]]))

    with pytest.raises(EscapedTracer, match=r"test_errors.py:\d+.*in another thread.*one thread"):
        grad(fun, mode="dynamic")(V)

    def looking(x):
        caught = []

        def look():
            try:
                bool(x[0] > 0)
            except EscapedTracer as error:
                caught.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        raise caught[0]

    with pytest.raises(EscapedTracer, match="another thread"):
        grad(looking, mode="dynamic")(V)


def test_endless_recursion():
    def fun(x):
        return fun(x * 0.5) + 1.0

    with pytest.raises(RecursiveDerivative, match=r"fun: Python's recursion limit.*end on a value"):
        grad(fun)(1.0)

    def ends(x, depth):
        return x if depth == 0 else x * ends(x, depth - 1)

    assert grad(ends)(1.0, 20) == 21.0


def test_recursion_of_a_library():
    refuses(lambda x: np.sum(np.ma.exp(x)), NotDifferentiable, r"numpy\.ma", "primitive", line=False)


def test_masked_arrays_as_results():
    """They hold traced values as objects, and were taken for constants."""
    for fun in (lambda x: np.ma.dot(x, x), lambda x: np.ma.array([x @ x]), lambda x: np.ma.array(x @ x)):
        refuses(fun, NotDifferentiable, "MaskedArray", r"np\.asarray\(y\)", line=False)
        for derivative in (lambda x, fun=fun: vjp(fun, x), jacobian(fun), jacfwd(fun)):
            with pytest.raises(NotDifferentiable, match="MaskedArray"):
                derivative(V)
    np.testing.assert_allclose(grad(lambda x: np.asarray(np.ma.dot(x, x)))(V), 2 * V)
    np.testing.assert_allclose(grad(lambda x: np.ma.array(x, mask=V > 0.5).sum())(V), V <= 0.5)


def test_caught_refusals():
    """A function that catches a refusal would go another way than the plain function: it is raised all the same."""

    def fun(x):
        try:
            scale = math.exp(x[0])
        except TypeError:
            scale = 1.0
        return np.sum(x) * scale

    for mode in ("auto", "dynamic"):
        with pytest.raises(LeavesNumPy, match=r"np\.exp"):
            grad(fun, mode=mode)(V)
    for caught in (lambda x: x.__setitem__(0, 1.0), lambda x: np.busday_count(x, x), lambda x: {x[0]}):

        def quiet(x, caught=caught):
            with contextlib.suppress(Exception):
                caught(x)
            return np.sum(x)

        def other(x, caught=caught):
            try:
                caught(x)
            except Exception as error:
                raise KeyError("no such thing") from error

        for hiding in (quiet, other):
            with pytest.raises(SymgradError):
                grad(hiding)(V)
    assert np.allclose(grad(lambda x: np.sum(x) if hasattr(x, "nope") else np.sum(x * x))(V), 2 * V)


def test_text_by_a_cast():
    """What is read from it again had a derivative of zero."""
    for cast in (
        lambda x: x.astype(str),
        lambda x: np.array(x, dtype="U9"),
        lambda x: np.asarray(x, "S9"),
        lambda x: x.astype("V8"),
    ):
        refuses(lambda x, cast=cast: np.sum(cast(x).astype(float)), LeavesNumPy, "makes text or bytes", line=False)
    both = grad(lambda x, n: np.sum(x) * float(n.astype(str)[0]))
    for n in (2.0, 2.0, 2.0, 3.0):
        np.testing.assert_allclose(both(V, np.array([n])), np.full(4, n))


def test_text_is_for_people():
    """It reads otherwise than the plain value's: what asks how is refused, what shows it is not."""
    for ask in (
        lambda text: len(text),
        lambda text: text == "0.31",
        lambda text: text.startswith("0"),
        lambda text: "." in text,
        lambda text: text[0],
        lambda text: {text: 1},
        lambda text: text.split("."),
        lambda text: float(text),
        lambda text: decimal.Decimal(text),
        lambda text: np.float64(text),
        lambda text: int(text.strip("0.")),
    ):
        for make in (str, repr, lambda v: f"{v:.2f}"):

            def fun(x, ask=ask, make=make):
                ask(make(x[0]))
                return np.sum(x)

            with pytest.raises((LeavesNumPy, ValueError, decimal.InvalidOperation)):
                grad(fun, mode="dynamic")(V)
    shown = []

    def shows(x):
        print(x, f"{x[0]:.3f}", repr(x[1]), file=(out := io.StringIO()))
        shown.append(out.getvalue() + "loss %s" % x[0] + "; ".join([str(x[1])]))  # noqa: UP031
        return np.sum(x)

    grad(shows, mode="dynamic")(V)
    assert "] 0.310 " in shown[0]  # what is left outside is as it is of plain values
    assert shown[0].endswith("loss 0.31-1.23")


# -- the user's own errors -----------------------------------------------------------------------------------------


def test_errors_of_the_function_pass_through():
    class Own(Exception):
        pass

    def fun(x, fail):
        if fail:
            raise Own("mine")
        return np.sum(x * x)

    derivative = grad(fun)
    for _ in range(2):
        with pytest.raises(Own, match="mine"):
            derivative(V, True)
        assert np.allclose(derivative(V, False), 2 * V)
    for bad in (lambda x: x @ x[:2], lambda x: x.reshape(3), lambda x: np.concatenate([x, x[None]]), lambda x: x.nope):
        with pytest.raises((ValueError, AttributeError)) as plain:
            bad(V)
        with pytest.raises(plain.type):
            grad(lambda x, bad=bad: np.sum(bad(x)))(V)


class Overflowed(Exception):
    def __init__(self, step, y):
        super().__init__(step)
        self.y, self.names = y, ["y"]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_errors_of_the_function_hold_plain_values(mode):
    def fun(x, error):
        y = x * 0.0
        for k in range(100):
            y = y * 0.9 + x * k
            if y > 100.0:
                raise error(k, y)
        return y

    for error in (ValueError, Overflowed):
        derivative = grad(fun, mode=mode)
        for x in (0.01, 0.01, 0.01, 1.0, 1.0):
            if x < 1.0:
                derivative(x, error)
                continue
            with pytest.raises(error) as plain:
                fun(x, error)
            with pytest.raises(error) as found:
                derivative(x, error)
            assert found.value.args == plain.value.args
            assert [*map(type, found.value.args)] == [*map(type, plain.value.args)]
            assert vars(found.value) == vars(plain.value)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_errors_of_the_function_say_plain_values(mode):
    def fun(x):
        for i in range(len(x)):
            if x[i] < 0:
                raise ValueError(f"element {i} is {x[i]:.2f}", i, {"value": x[i]}, f"{x}")
        return np.sum(x)

    derivative = grad(fun, mode=mode)
    for place in (None, None, None, 4, 1):
        x = np.ones(5)
        if place is None:
            derivative(x)
            continue
        x[place] = -2.5
        with pytest.raises(ValueError, match="element") as plain:
            fun(x)
        with pytest.raises(ValueError, match="element") as found:
            derivative(x)
        assert repr(found.value.args) == repr(plain.value.args)


@pytest.mark.parametrize("again", [np.asarray, np.ravel, np.atleast_1d])
def test_second_names_of_arrays_of_objects(again):
    """What NumPy takes for a view of one cannot be written into unseen."""

    def fun(x, copy=False):
        z = np.array([*x], dtype=object)
        y = again(z)
        y = np.array(y) if copy else y
        y[0] = 7.0
        return np.sum(z * z) + np.sum(y)

    refuses(lambda x: fun(x), MutatedInput, "second name", "np.array", line=False)
    np.testing.assert_allclose(grad(lambda x: fun(x, copy=True))(V), slopes(lambda x: fun(x, copy=True), (V,))[0], rtol=1e-6)


def test_all_is_usable_after_an_error():
    derivative = value_and_grad(lambda x: np.sum(x) * math.exp(x[0]) if x[0] > 1 else np.sum(x))
    for _ in range(3):
        assert np.allclose(derivative(V)[1], 1.0)
        with pytest.raises(LeavesNumPy):
            derivative(V + 1)


# -- the classes ---------------------------------------------------------------------------------------------------


def test_every_class_says_what_to_do():
    classes = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, SymgradError)]
    assert len(classes) >= 10
    for c in classes:
        assert len(c.__doc__) > 30, c
        assert c is SymgradError or issubclass(c, (TypeError, ValueError, RuntimeError, AssertionError, FloatingPointError))
        assert copy.copy(c("text")).args == ("text",)
        assert str(pickle.loads(pickle.dumps(c("text")))) == "text"


def test_powers_of_floats_that_turn_complex():
    """``(-1.0) ** 0.5`` is complex in Python, and must not be so in silence where floats were compiled."""
    derivative = grad(lambda x: x**0.5 + 1.0)
    size = grad(lambda x, y: abs((2.0 * x) ** y))
    for _ in range(3):
        assert derivative(4.0) == 0.25
        assert size(0.5, 1.5) == pytest.approx(3.0)
    with pytest.raises(NonScalarOutput, match="complex"):
        derivative(-1.0)
    assert size(-0.5, 1.5) == pytest.approx(-3.0)
    assert derivative(4.0) == 0.25


def test_errors_of_what_no_result_hangs_on():
    """Code leaves it out, unless somebody would catch them; the function itself, and each trace, raises them."""

    def divides(x, y, matrix):
        z = 1.0 / y
        return x * x if x > 0 else z * x + np.sum(np.linalg.inv(matrix))

    def inverts(x, y, matrix):
        return x * x + np.sum(np.linalg.inv(matrix))

    def catches(x, y, matrix):
        try:
            return x * x + 0.0 * (1.0 / y + np.linalg.inv(matrix)[0, 0])
        except (ZeroDivisionError, np.linalg.LinAlgError):
            return 3.0 * x

    for fun, raised in ((divides, ZeroDivisionError), (inverts, np.linalg.LinAlgError)):
        derivative = grad(fun)
        with pytest.raises(raised):
            derivative(2.0, 0.0, np.zeros((2, 2)))
        assert [derivative(2.0, 1.0, np.eye(2)) for _ in range(3)] == [4.0] * 3
        assert derivative(2.0, 0.0, np.zeros((2, 2))) == 4.0
        with pytest.raises(raised):
            grad(fun, mode="dynamic")(2.0, 0.0, np.zeros((2, 2)))
    derivative = grad(catches)
    assert [derivative(2.0, 1.0, np.eye(2)) for _ in range(3)] == [4.0] * 3
    assert derivative(2.0, 0.0, np.eye(2)) == derivative(2.0, 1.0, np.zeros((2, 2))) == 3.0


REAL = {
    "round": lambda x: round(x**0.5) * x,
    "round to digits": lambda x: round(x**0.5, 2) * x,
    "NumPy's round": lambda x: round(np.complex128(x**0.5)) * x,
    "float64": lambda x: np.float64(x**0.5) * x,
    "float32": lambda x: np.float32(x**0.5) * x,
    "array": lambda x: np.sum(np.array(x**0.5, float)) * x,
    "array of a list": lambda x: np.sum(np.asarray([1.0, x**0.5], float)) * x,
    "filled": lambda x: np.sum((z := np.zeros(2) + x, z.fill(x**0.5))[0]),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", REAL.values(), ids=REAL)
def test_complex_numbers_that_are_to_be_real(fun, mode):
    """Python's raise an error, as they do in the function; in code for real ones, too."""
    with pytest.raises((TypeError, DeprecationWarning)) as raised:  # older releases of NumPy but warn of some
        fun(-0.5)
    if raised.type is DeprecationWarning:
        pytest.skip("this NumPy does not raise an error")
    for before in (0, 3):
        derivative = grad(fun, mode=mode)
        with contextlib.suppress(TypeError):  # NumPy's complex numbers are never rounded
            for _ in range(before):
                derivative(0.5)
        with pytest.raises(TypeError) as found:
            derivative(-0.5)
        assert str(found.value) == str(raised.value)


def test_powers_of_numpys_numbers_keep_their_precision():
    """Python's floats give way to float32, NumPy's do not."""
    derivative = grad(lambda z, x: np.sum((z - 0.25) ** 0.7 * x))
    z, x = np.array(0.9), np.array(0.3, np.float32)
    first = derivative(z, x)
    assert first.dtype == np.float64
    for _ in range(3):
        again = derivative(z, x)
        assert again.dtype == np.float64
        assert abs(again - first) < 1e-15


CATCHING = {
    "product": (lambda x: x[0] * x[1], [1e200, 1e200]),
    "sum of squares": (lambda x: np.sum(np.exp(x) ** 2), [400.0, 1.0]),
    "difference": (lambda x: x[0] - x[1], [np.inf, np.inf]),
}


@pytest.mark.filterwarnings("default")  # as errors, they may be caught, too: see below
@pytest.mark.parametrize("kind", [FloatingPointError, ArithmeticError, Exception])
@pytest.mark.parametrize(("compute", "bad"), CATCHING.values(), ids=CATCHING.keys())
def test_errors_of_numpy_that_are_caught(compute, bad, kind):
    """Python's numbers and BLAS raise none: where NumPy is asked to, such a function is not compiled."""

    def fun(x):
        try:
            return compute(x)
        except kind:
            return 7.0

    def bare(x):
        try:
            return compute(x)
        except:  # noqa: E722
            return 7.0

    def suppressing(x):
        result = 7.0
        with contextlib.suppress(FloatingPointError):
            result = compute(x)
        return result

    for one in (fun, bare, suppressing):
        derivative = value_and_grad(one)
        for _ in range(4):
            derivative(np.array([1.0, 2.0]))
        assert derivative.cache_info().hits
        with np.errstate(over="raise", invalid="raise"):
            for _ in range(4):
                assert derivative(np.array(bad))[0] == 7.0
                assert derivative(np.array([1.0, 2.0]))[0] == compute(np.array([1.0, 2.0]))


@pytest.mark.parametrize("kind", [RuntimeWarning, Exception])
def test_warnings_of_numpy_that_are_errors_and_caught(kind):
    def fun(x):
        try:
            return np.sum(x * x * 1e10)
        except kind:
            return np.sum(x) * 7.0

    derivative = value_and_grad(fun)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for x in ([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1e200, 1e200]):
            assert derivative(np.array(x))[0] == fun(np.array(x))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: None * x,
        lambda x: x + None,
        lambda x: "a" < x,  # noqa: SIM300
        lambda x: "a" + x,
        lambda x: "".join([x]),
        lambda x: x(),
        lambda x: (x + 1j) * None,
        lambda x: x * np.zeros(2) + {},
    ],
)
def test_errors_of_pythons_name_its_own_classes(fun, mode):
    with pytest.raises(TypeError) as expected:
        fun(1.5)
    with pytest.raises(TypeError) as found:
        grad(fun, mode=mode)(1.5)
    assert str(found.value) == str(expected.value)


def _fails(*args):
    raise ValueError("wrong in here")


@pytest.mark.parametrize("place", ["symgrad.watch.state.State.check_settings", "symgrad.compile.Family.learn"])
def test_flaws_in_here_cost_no_result(place, monkeypatch):
    """A trace for code that fails once the function has returned, or code that cannot be made."""
    monkeypatch.setattr(place, _fails)
    log = []

    def fun(x):
        log.append(1)
        return np.sum(np.sin(x) ** 2)

    derivative, x = grad(fun), np.array([0.5, 1.0])
    with pytest.warns(RuntimeWarning, match="wrong in here.*report"):
        np.testing.assert_allclose(derivative(x), np.sin(2 * x))
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), np.sin(2 * x))
    assert "dynamic mode" in derivative.explain()
    assert len(log) == 4


def test_errors_of_rules_are_no_flaws():
    @custom_vjp
    def odd(x):
        return np.sin(x)

    odd.defvjp(lambda x: (np.sin(x), x), lambda x, g: (_fails(x, g),))
    derivative = grad(lambda x: odd(x) * 2.0)
    for _ in range(3):
        with pytest.raises(ValueError, match="wrong in here"):
            derivative(1.0)
    assert "dynamic" not in derivative.explain()


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize(
    "fun",
    [lambda x: x[0] * [1.0, 2.0], lambda x: (1.0, 2.0) * np.sin(x[0]), lambda x: x[0] @ [1.0], lambda x: [2.0] @ np.sum(x)],
)
def test_lists_are_no_arrays_to_numbers_of_numpys(fun, mode):
    with pytest.raises(TypeError) as expected:
        fun(np.ones(2))
    with pytest.raises(TypeError) as found:
        grad(lambda x: np.sum(fun(x)), mode=mode)(np.ones(2))
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("number", [2**60 + 1, np.int64(2**60 + 1), np.uint64(2**63 + 12345)])
def test_whole_numbers_are_rounded_to_themselves(number):
    derivative = grad(lambda x, n: x * ((round(n) - 2**60) % 1000))
    for _ in range(3):
        assert derivative(1.5, number) == (round(number) - 2**60) % 1000


OF_TEXTS = {
    "a list": lambda x: len(repr([x[0]])),
    "a dictionary": lambda x: len(str({"a": x[0]})),
    "put together": lambda x: len(f"{x[0]} a"),
    "with a format": lambda x: "-" in f"{x[0]:.3f}" + "b",
    "added": lambda x: len("a" + str(x[0])) + len(str(x[0]) + ""),
    "joined": lambda x: len("-".join([str(v) for v in x])),
    "mapped": lambda x: len("".join(map(str, x))),
    "by percent": lambda x: len("%s" % x[0]),  # noqa: UP031
    "by format": lambda x: len("{}".format(x[0])),  # noqa: UP032
    "in capitals": lambda x: f"{x[0]}".upper().startswith("-"),
}


@pytest.mark.parametrize("text", OF_TEXTS)
def test_text_with_that_of_a_traced_value_in_it_is_for_people(text):
    with pytest.raises(LeavesNumPy, match="the text of a traced value"):
        grad(lambda x: x[0] * OF_TEXTS[text](x))(np.ones(3))


def test_other_texts_are_texts():
    def fun(x):
        width, log = 5, []
        for v in x:
            log.append(f"v={v:.2f}" + "%s" % v)  # noqa: UP031
        shape = f"{len(x):>{width}}" + f"{3.5:.2f}" + str([len(x)]) + "-".join(["a", "b"])
        return np.sum(x**2) * len(shape) * (2.0 if f"{len(x)}" == "3" else 1.0) * len(log)

    for _ in range(3):
        np.testing.assert_allclose(grad(fun)(np.ones(3)), 12.0 * len("    33.50[3]a-b") * np.ones(3))
