"""Code is followed however it is reached, in every mode, and what it asks of a traced value is the value's."""

import collections
import collections.abc
import dataclasses
import functools
import importlib
import json
import math
import operator
import statistics
import sys
import typing
import weakref
from fractions import Fraction

import numpy as np
import pytest

from symgrad import grad, value_and_grad
from symgrad.errors import LeavesNumPy

SOURCE = """
import numpy as np

calls = {"n": 0}


def energy(x):
    return x * x if type(x) is float else 0.0


def counted(x):
    calls["n"] += 1  # dynamic mode
    x = np.asarray(x)
    return np.sum(x * x) if x.dtype.kind == "f" else 0.0


def filled(x):
    calls["n"] += 1
    y = np.empty(3)
    y[0] = x
    for i in range(1, 3):
        y[i] = y[i - 1] * 1.0
    return y[2] * y[0]
"""


@pytest.fixture
def physics(tmp_path, monkeypatch):
    (tmp_path / "physics_of_a_test.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("physics_of_a_test")
    del sys.modules["physics_of_a_test"]


def by_import(x, name):
    import physics_of_a_test

    return getattr(physics_of_a_test, name)(x)


def by_name(x, name):
    return getattr(importlib.import_module("physics_of_a_test"), name)(x)


@pytest.mark.parametrize("name", ["energy", "counted", "filled"])
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("way", ["cell", "ordered", "default", "attribute", "list", "import", "module", "deque"])
def test_ways_to_get_at_a_function(physics, name, mode, way):
    holder, found = type("Holder", (), {})(), getattr(physics, name)
    holder.lib = physics
    registry, queue = collections.OrderedDict(it=found), collections.deque([found])
    fun = {
        "cell": lambda x: getattr(physics, name)(x),
        "ordered": lambda x: registry["it"](x),
        "default": lambda x, lib=physics: getattr(lib, name)(x),
        "attribute": lambda x: getattr(holder.lib, name)(x),
        "list": lambda x: [found][0](x),
        "import": functools.partial(by_import, name=name),
        "module": functools.partial(by_name, name=name),
        "deque": lambda x: queue[0](x),
    }[way]
    derivative = value_and_grad(fun, mode=mode)
    for x in (2.0, 3.0, 4.0):
        assert derivative(x) == (x * x, 2 * x)


def kernel(a, b, scale):
    k = np.exp(-((a[:, None] - b) ** 2) / scale**2)
    if a is b:
        k = k + 0.1 * np.eye(len(a))
    return np.sum(k**2)


GRID = np.linspace(0.0, 1.0, 4)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_arguments_that_are_one_array(mode):
    def fun(scale, a, b):
        return kernel(a, b, scale) + (10.0 if a is not GRID else 0.0) + kernel(GRID, b, scale)

    other = GRID.copy()
    derivative, of_all = value_and_grad(fun, mode=mode), value_and_grad(fun, (0, 1, 2), mode=mode)
    for a, b in [(GRID, GRID), (GRID, other), (other, other), (other, GRID), (GRID, other.copy()), (GRID, GRID)]:
        want = fun(0.5, a, b)
        assert derivative(0.5, a, b)[0] == pytest.approx(want)
        assert of_all(0.5, a, b)[0] == pytest.approx(want)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_other_ways_to_ask_for_an_object(mode):
    funs = [
        lambda a, b, c: np.sum(a * b) if a is b is c else np.sum(a + b * 2),
        lambda a, b, c: np.sum(a * b) if a is b is not c else np.sum(a + b * 2),
        lambda a, b, c: np.sum(a * b) if a is b is not None else np.sum(a + b * 2),
        lambda a, b, c: np.sum(a * b) if operator.is_(a, b) else np.sum(a + b * 2),
        lambda a, b, c: np.sum(a * b) if operator.is_not(a, b) else np.sum(a + b * 2),
        lambda a, b, c: np.sum(a * b) if id(a) == id(b) else np.sum(a + b * 2),
        lambda a, b, c: np.sum(a * b) if isinstance(a, Shaped) else np.sum(a + b * 2),
    ]
    x, y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0])
    for fun in funs:
        derivative = value_and_grad(fun, mode=mode)
        for args in [(x, x, x), (x, x, y), (x, y, y), (x, x, x), (x, y.copy(), x)]:
            assert derivative(*args)[0] == fun(*args)


@typing.runtime_checkable
class Shaped(typing.Protocol):
    shape: tuple[int, ...]


def reads_its_locals(x):
    total = 0.0
    for v in x:
        if v > 0:
            q = v * 2
            total += q
        else:
            total -= v * v
    return total + locals()["q"]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_locals_that_are_read_by_other_ways(mode):
    """What some iterations have left there is not that of no way."""
    derivative = value_and_grad(reads_its_locals, mode=mode)
    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=20)
        x[-1] = abs(x[-1])
        value, slopes = derivative(x)
        assert value == pytest.approx(reads_its_locals(x))
        assert slopes[-1] == pytest.approx(4.0)


ABSTRACT = [collections.abc.Iterable, collections.abc.Sized, collections.abc.Container, collections.abc.Hashable]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("x", [2.5, np.float64(2.5), np.array(2.5), np.ones(2), np.float32(2.5)])
def test_protocols_are_those_of_the_value(mode, x):
    seen = []

    def fun(x):
        seen.append([isinstance(x, kind) for kind in ABSTRACT])
        return np.sum(x) * (2.0 if isinstance(x, collections.abc.Sized) else 3.0)

    derivative = value_and_grad(fun, mode=mode)
    for _ in range(2):
        assert derivative(x)[0] == fun(x)
    assert all(one == seen[-1] for one in seen)


def test_defaults_that_no_argument_has():
    def lib(x, *, k=2.0):
        return x * x * k

    lib.__kwdefaults__ = {"k": 3.0, "other": None}
    assert grad(lambda x: lib(x))(2.0) == 12.0


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_masks_of_numbers_that_select_nothing(mode):
    def fun(x):
        h = np.where(x > 0.5, x * 2, x)
        h[h > 1] += x
        h[np.asarray(h < 0.2)] *= 5
        return h * 3

    derivative = grad(fun, mode=mode)
    assert [derivative(x) for x in (0.3, 0.7, 0.1, 0.3, 0.7)] == [3.0, 9.0, 15.0, 3.0, 9.0]


UNFOLLOWED = """
def dtype_of_array(x):
    made = np.array([x, x * x])
    return np.sum(made) if np.issubdtype(made.dtype, np.floating) else 0.0


def sorted_later(x):
    return np.sort(np.asarray(x))[1:]


def kind_of(x):
    return x * x if type(x) is float else 0.0


calls = lambda x: kind_of(x)
"""


def unfollowed(name):
    space = {"np": np}
    exec(UNFOLLOWED, space)
    return space[name]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_code_without_source(mode):
    with pytest.raises(LeavesNumPy, match=r"dtype_of_array asks for \.dtype of an array that it makes"):
        grad(unfollowed("dtype_of_array"), mode=mode)(3.0)
    with pytest.raises(LeavesNumPy, match=r"kind_of, which <lambda> gets at, asks for type"):
        grad(unfollowed("calls"), mode=mode)(3.0)
    later = unfollowed("sorted_later")

    def fun(x):
        found = later(x)
        return np.sum(found) if found.dtype == float else 0.0

    np.testing.assert_array_equal(grad(fun, mode=mode)(np.array([0.1, 0.4, 0.3])), [0.0, 1.0, 1.0])


@dataclasses.dataclass(frozen=True)
class Rate:
    start: float = 0.5

    def __call__(self, k):
        return self.start / k


@dataclasses.dataclass
class Descent:  # its __init__ has no source, and names a frozen class, in which @dataclass asks for the type of objects
    rate: Rate = dataclasses.field(default_factory=Rate)

    def step(self, x, k):
        return x * self.rate(k)


@pytest.mark.parametrize("mode", ["auto", "dynamic", "debug_nans"])
def test_frozen_classes_as_fields(mode):
    assert grad(lambda x: Descent().step(x, 2.0) + Descent(Rate(x)).step(x, 1.0), mode=mode)(3.0) == 6.25


def scaled(x, k):
    return np.sin(x) * k


class Doubled(functools.partial):
    def __call__(self, *args):
        return 2.0 * super().__call__(*args)


DOUBLED = Doubled(lambda a, b: np.sum(a * b), 3.0)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_a_partial_of_its_own_way(mode):
    derivative = value_and_grad(lambda v: DOUBLED(v), mode=mode)
    for _ in range(3):
        value, slopes = derivative(np.arange(3.0))
        assert value == 18.0
        np.testing.assert_array_equal(slopes, [6.0, 6.0, 6.0])


def test_an_error_is_raised_by_the_first_run():
    runs = []

    def fun(x):
        runs.append(1)
        return math.sin(x[0])

    with pytest.raises(LeavesNumPy):
        grad(fun)(np.ones(2))
    assert len(runs) == 1


PARTIALS = {"a": functools.partial(scaled, k=2.0), "b": functools.partial(scaled, k=3.0)}
OF_KINDS = {np.float64: 2.0, np.dtype("f8"): 3.0, float: 5.0, len: 7.0}


def unpacked_partials(x):
    total = 0.0
    for k, (_, f) in enumerate(PARTIALS.items()):
        total = total + f(x) * (k + 1)
    return total


def by_classes_and_functions(x):
    return x * OF_KINDS[np.float64] * OF_KINDS[type(x)] * OF_KINDS[np.asarray(x).dtype] * OF_KINDS[len]


def attributes_that_no_array_has(x):
    y = x * np.ones(2)
    try:
        y.name = "y"
    except AttributeError:
        y = y * 3.0
    return np.sum(y)


@pytest.mark.parametrize("fun", [unpacked_partials, by_classes_and_functions, attributes_that_no_array_has])
def test_it_is_compiled(fun, monkeypatch):
    derivative = value_and_grad(fun)
    for number in range(5):
        if number == 3:
            monkeypatch.setitem(PARTIALS, "a", functools.partial(scaled, k=9.0))
            monkeypatch.setitem(OF_KINDS, np.float64, 11.0)
        value, slope = derivative(0.3)
        assert value == pytest.approx(fun(0.3))
        assert slope == pytest.approx((fun(0.3 + 1e-6) - fun(0.3 - 1e-6)) / 2e-6)
    assert derivative.cache_info().hits


@pytest.mark.parametrize(
    ("fun", "advice"),
    [
        (lambda x: math.remainder(x, 3.0), r"write x - y \* np\.round\(x / y\)"),
        (lambda x: math.log(x, 2.0), r"write np\.log\(x\) / np\.log\(base\)"),
        (lambda x: math.hypot(x, x, 1.0), r"write np\.sqrt"),
        (lambda x: np.sum(x) * Fraction(1, 2), r"write float\(\.\.\.\) around that one"),
    ],
)
def test_advice(fun, advice):
    with pytest.raises(LeavesNumPy, match=advice):
        grad(fun)(5.0)


class Holder:
    def __init__(self, number):
        self.number = number

    def get(self):
        return self.number


HOLDER, HOLDERS, ROW = Holder(2.0), [Holder(1.0), Holder(2.0)], np.arange(3.0)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: json.loads(json.dumps({"a": HOLDER}, default=lambda v: v.number))["a"] * x,
        lambda x: statistics.mean(map(Holder.get, HOLDERS)) * x,
        lambda x: statistics.fmean(v.get() for v in HOLDERS) * x,
        lambda x: weakref.WeakMethod(HOLDER.get)()() * x,
        lambda x: weakref.ref(HOLDER)().number * x,
        lambda x: ROW.__array_interface__["shape"][0] * x,
    ],
)
def test_libraries_get_plain_numbers_from_what_they_call(fun):
    derivative = value_and_grad(fun)
    try:
        for HOLDER.number in (2.0, 2.0, 2.0, 3.0, 3.0, 3.0):
            HOLDERS[1].number = HOLDER.number
            assert derivative(1.5) == pytest.approx((fun(1.5), fun(1.0)))
    finally:
        HOLDER.number = HOLDERS[1].number = 2.0


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_memory_of_what_is_differentiated_is_refused(mode):
    with pytest.raises(LeavesNumPy, match=r"__array_interface__ tells where an array lies"):
        grad(lambda x: x.__array_interface__["shape"][0] * np.sum(x), mode=mode)(np.ones(3))
