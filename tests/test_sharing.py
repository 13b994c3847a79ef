"""Derivatives of functions that are made anew share their code: right whatever those hold, and traced but once."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import functools
import gc
import inspect
import operator
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad
from symgrad import custom_vjp, grad, hessian, jacobian, jvp, linearize, value_and_grad, vjp, vmap
from symgrad.watch.likeness import likeness

pytestmark = pytest.mark.usefixtures("sharing")

X = np.array([0.7, -1.3, 2.1])
CALLS = 4

SCALE = 2.0


# -- functions that functions make: of a state, which is another one each time ---------------------------------------


def arrays(n):
    a, b = np.arange(3.0) + n, np.full((2, 3), float(n))
    return lambda x: np.sum((b @ x - 1.0) ** 2) + a @ np.sin(x)


def numbers(n):
    k, whole = 0.5 + n, n
    return lambda x: np.sum(x * k) ** 2 * whole


def flags(n):
    odd, name = bool(n % 2), ("sin", "cos")[n % 2]
    return lambda x: np.sum(getattr(np, name)(x)) * (2.0 if odd else -1.0)


def within_functions(n):
    a = np.arange(3.0) * n

    def model(x):
        return np.tanh(a * x)

    def penalty(x, weight=0.1 * n):
        return weight * np.sum(x**2)

    def loss(x):
        return np.sum(model(x)) + penalty(x)

    return loss


def within_lists(n):
    layers = [lambda x, k=k: np.tanh(x * k) for k in (n + 1.0, 2.0, n - 3.0)]
    parts = {"a": np.ones(3) * n, "b": [n, 2.5]}

    def loss(x):
        for layer in layers:
            x = layer(x)
        return np.sum(x * parts["a"]) + parts["b"][0] * parts["b"][1]

    return loss


def by_choice(n):
    return (lambda inner: lambda x: np.sum(inner(x)))((np.sin, np.cos, lambda x: x**2, lambda x: x**3)[n % 4])


def defaults(n):
    return lambda x, a=np.ones(3) * n, *, power=n: np.sum(a * x**power)


def recursion(n):
    def power(x, k):
        return x if k == 0 else x * power(x, k - 1)

    return lambda x: np.sum(power(x, n % 3))


def itself(n):
    def loss(x, k=2):
        return np.sum(x) * n if k == 0 else np.sum(np.sin(x)) * loss(x, k - 1)

    return loss


def same_or_not(n):
    first, other = (lambda x: np.sin(x)), (lambda x: np.cos(x))
    second = other if n % 2 else first

    def loss(x):
        known = first is second
        return np.sum(first(x) * second(x)) * (3.0 if known else 5.0) * (1.0 if first == second else 7.0)

    return loss


def twins(n):
    def made(k):
        return lambda x: x * k

    one = made(n)
    other = made(n) if n % 2 else one
    return lambda x: np.sum(one(x) * other(x)) * (3.0 if one is other else 5.0) * (2.0 if other in (one,) else 1.0)


def shared_variable(n):
    a = np.ones(3) * n

    def outer(x):
        return a * x

    def inner(x):
        return np.sin(a + x)

    return lambda x: np.sum(outer(x) * inner(x) * a)


def rows(n):
    table = np.arange(12.0).reshape(4, 3) / (n + 1.0)

    def loss(x):
        total = 0.0
        for row in table:
            total = total + np.sin(row @ x) * total
            total = total + row @ x
        return total

    return loss


def branches(n):
    limit = n - 2.0

    def loss(x):
        if np.sum(x) > limit:
            return np.sum(x**2)
        return np.sum(np.exp(x)) * limit

    return loss


def fills(n):
    a = np.arange(3.0) + n

    def loss(x):
        out = np.zeros(3)
        for i in range(3):
            out[i] = a[i] * x[i] ** 2
        return np.sum(out)

    return loss


def sizes(n):
    a = np.arange(3.0 + n % 3)
    return lambda x: np.sum(np.outer(a, x) ** 2)


def partials(n):
    def loss(x, a, *, b):
        return np.sum(a * x**2) + b * np.sum(x)

    return functools.partial(loss, a=np.ones(3) * n, b=n)


def vectorized(n):
    k = 1.0 + n
    return lambda x: np.sum(np.vectorize(lambda v: v**2 * k)(x))


def rules_of_its_own(n):
    k = 1.0 + n

    @custom_vjp
    def scaled(x):
        return x * k

    scaled.defvjp(lambda x: (x * k, None), lambda _, g: (g * k,))
    return lambda x: np.sum(scaled(x) ** 2)


def wrapped(n):
    def doubled(inner):
        @functools.wraps(inner)
        def outer(x):
            return 2.0 * inner(x)

        return outer

    @doubled
    def loss(x):
        return np.sum(x**2) * n

    return loss


def attributes(n):
    def loss(x):
        return np.sum(x) ** 2 * loss.k

    loss.k = n
    return loss


def attributes_within(n):
    def helper(x):
        return np.sum(x) ** 2 * helper.k

    helper.k = n + 0.5
    return lambda x: helper(x)


def classes(n):
    class Model:
        scale = n + 0.5

        def of(self, x):
            return self.scale * x

    model = Model()
    return lambda x: np.sum(model.of(x) ** 2)


def derivatives(n):
    k = n + 0.5
    inner = grad(lambda x: np.sum(x**3) * k)
    return lambda x: np.sum(inner(x))


def maps(n):
    k = np.ones(3) * n
    return lambda x: np.sum(vmap(lambda v, w: v**2 * w)(x, k))


def late(n):
    def loss(x):
        return np.sum(x**2) * k

    k = n + 0.5
    return loss


def caught(n):
    table = {"a": 1.0} if n % 2 else {"b": 2.0}

    def loss(x):
        try:
            return np.sum(x**2) * table["a"]
        except KeyError:
            return np.sum(x**3)

    return loss


def comprehensions(n):
    weights = [0.5 * n, 1.5, 2.5]
    return lambda x: sum([w * v**2 for w, v in zip(weights, x, strict=True)])


def texts(n):
    unit = f"k{n % 2}"
    table = {"k0": 1.0, "k1": 3.0}
    return lambda x: np.sum(x**2) * table[unit]


def of_other_globals(n):
    function = arrays(n)
    space = {**globals(), "np": np, "SCALE": n + 0.5}
    return types.FunctionType((lambda x: np.sum(x**2) * SCALE).__code__, space, "loss", None, function.__closure__ and ())


class Model:
    def __init__(self, n):
        self.a, self.on = np.arange(3.0) * n, bool(n % 2)

    def loss(self, x):
        return np.sum(self.a * x**2) * (1.0 if self.on else self.inner(x))

    def inner(self, x):
        return np.cos(np.sum(x))


class Other(Model):
    def inner(self, x):
        return np.sin(np.sum(x))


def methods(n):
    return (Model if n % 3 else Other)(n).loss


class Kind(enum.Enum):
    SINE = 1
    COSINE = 2

    def loss(self, x):
        return np.sum(x**2) * self.value + (1.0 if self == Kind.SINE else np.sum(x)) + NAMES[self] * np.sum(x)


NAMES = {Kind.SINE: 3.0, Kind.COSINE: 4.0}


class Number(float):
    def loss(self, x):
        return np.sum(x**2) * self


class Record(collections.namedtuple("Record", "a b")):
    def loss(self, x):
        return np.sum(x**2) * self.a + self.b * np.sum(x)


def times(self, x):
    return np.sum(self * x**2)


def methods_of_members(n):
    return Kind(1 + n % 2).loss


def methods_of_numbers(n):
    return Number(n).loss


def methods_of_records(n):
    return Record(n, 2.0 * n).loss


def methods_of_values(n):
    return types.MethodType(times, (n, n + 0.5, np.float64(n), np.ones(3) * n)[n % 4])


def methods_within(n):
    one, other, member = types.MethodType(times, n), types.MethodType(times, n + 0.5), Kind(1 + n % 2).loss
    return lambda x: one(x) + other(x) ** 2 + member(x) + functools.partial(one)(x)


class Scaled:
    """Has what its function has."""

    def __init__(self, fun, k):
        self.fun, self.k = fun, k

    def __getattr__(self, name):
        return getattr(self.fun, name)

    def __call__(self, x):
        return self.k * self.fun(x)


def objects_like_functions(n):
    def made(x, y=0.5):
        return np.sum(x**2 * y)

    functions = [(made, Scaled(made, n), types.MethodType(made, np.ones(3) * 2))[n % 3]]
    return lambda x: functions[0](x)


class Owner:
    k = 10.0

    def __init__(self, n):
        self.k = n

    @classmethod
    def loss(cls, x):
        return np.sum(x**2) * cls.k


def methods_of_classes(n):
    return Owner.loss if n % 2 else types.MethodType(Owner.loss.__func__, Owner(n))


def of_one_or_two(compare):
    def make(n):
        def made(k):
            return lambda x: x * k

        first, owner = made(2.0), Other(1)
        second, another = (made(2.0), Other(1)) if n % 2 else (first, owner)
        pairs = ([first], [second]), ([owner], [another])
        return lambda x: sum(
            [
                np.sum(first(x) * second(x)) * compare(first, second),
                np.sum(owner.a * another.a * x**2) * (compare(owner, another) + compare(owner.loss, another.loss)),
                *[np.sum(x**2) * (2.0 if a == b else 1.0) for a, b in pairs],
            ]
        )

    return make


identities = [
    of_one_or_two(lambda a, b: {a: 2.0}.get(b, 3.0)),
    of_one_or_two(lambda a, b: len({a, b})),
    of_one_or_two(lambda a, b: len({a: 1, b: 2})),
    of_one_or_two(lambda a, b: 2.0 if (a, 1) == (b, 1) else 3.0),
    of_one_or_two(lambda a, b: 2.0 if operator.eq(a, b) else 3.0),
    of_one_or_two(lambda a, b: 2.0 if [a, b].index(b) else 3.0),
    of_one_or_two(lambda a, b: [a].count(b)),
    of_one_or_two(lambda a, b: 2.0 if a in [b] else 3.0),
]


def identities_of_methods(n):
    first, other = Settings(1.0).loss, types.MethodType(times, 2.0)
    second, another = (Settings(1.0).loss, types.MethodType(times, 2.0)) if n % 2 else (first, other)
    return lambda x: first(x) * (2.0 if first is second else 3.0) + other(x) * (5.0 if other is not another else 7.0)


def identities_of_functions(n):
    def made(k):
        return lambda x: x * k

    first = made(2.0)
    second = made(2.0) if n % 2 else first
    functions = [first, second]
    return lambda x: np.sum(second(x)) ** 2 * (2.0 if operator.is_(first, second) else 3.0) * (1 + functions.index(second))


@dataclasses.dataclass(frozen=True)
class Settings:
    k: float

    def loss(self, x):
        return np.sum(x**2) * {Settings(1.0): 2.0}.get(self, 3.0)


def records_as_keys(n):
    return Settings(1.0 + n % 2).loss


def signatures(n):
    def model(x, k=0.5 + n):
        return x * k

    return lambda x: np.sum(model(x)) * inspect.signature(model).parameters["k"].default


def of_one_that_equals(values, use):
    def make(n):
        value = values[n % len(values)]
        return lambda x: np.sum(x**2) * use(value)

    return make


HOUR_LATER = datetime.timezone(datetime.timedelta(hours=1))
equals = [
    of_one_that_equals([range(0, 3, 2), range(0, 4, 2)], lambda v: v.stop),
    of_one_that_equals([slice(0, 1), slice(False, True)], lambda v: 2.0 if v.stop is True else 3.0),
    of_one_that_equals([{1: 0}, {True: 0}, {1.0: 0}], lambda v: sum([len(str(key)) for key in v])),
    of_one_that_equals([{(0.0, 1): 0}, {(-0.0, 1): 0}], lambda v: sum([np.copysign(1.0, key[0]) for key in v])),
    of_one_that_equals([frozenset({1}), {True}, frozenset({1.0})], lambda v: sum([len(str(key)) for key in v])),
    of_one_that_equals([np.int64(2), range(3), slice(2)], lambda v: 3.0 if type(v) is slice else {2: 4.0}.get(v, 5.0)),
    of_one_that_equals([np.timedelta64(60, "s"), np.timedelta64(1, "m")], lambda v: v.astype(float)),
    of_one_that_equals(
        [datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC), datetime.datetime(2026, 1, 1, 13, tzinfo=HOUR_LATER)],
        lambda v: v.hour,
    ),
]


@functools.total_ordering
class Ranked:
    def __init__(self, k):
        self.k = k

    def __lt__(self, other):
        return self.k < other.k

    def __index__(self):
        return self.k


def of_ranked(choose):
    def make(n):
        items = [Ranked(2), Ranked(n), Ranked(3)]
        return lambda x: np.sum(x**2) * choose(items)

    return make


orders = [
    of_ranked(lambda items: sorted(items)[0].k),
    of_ranked(lambda items: min(*items, Ranked(4)).k),
    of_ranked(lambda items: max([[item] for item in items])[0].k),
    of_ranked(lambda items: sorted(range(3), key=lambda i: items[i])[0]),
    of_ranked(lambda items: min(range(3), key=items.__getitem__)),
    of_ranked(lambda items: min(range(3), key=(*items,).__getitem__)),
    of_ranked(lambda items: (ordered := [*items], ordered.sort())[0][0].k),
    of_ranked(lambda items: len("abcde"[: items[1]])),
]


# those that are traced as often as the first alone, or once more where what they hold is of several forms
TRACED_ONCE = (
    arrays,
    numbers,
    within_functions,
    within_lists,
    defaults,
    shared_variable,
    rows,
    fills,
    partials,
    late,
    vectorized,
)
OTHERS = (
    flags, by_choice, recursion, itself, same_or_not, twins, branches, sizes, rules_of_its_own, wrapped, attributes,
    attributes_within, classes, derivatives, maps, caught, comprehensions, texts, of_other_globals, methods,
    methods_of_members, methods_of_numbers, methods_of_records, methods_of_values, methods_within, methods_of_classes,
    objects_like_functions, *equals, *orders, *identities,
    identities_of_functions, identities_of_methods, records_as_keys, signatures,
)  # fmt: skip


@pytest.mark.parametrize("kind", [grad, value_and_grad, jacobian, hessian])
@pytest.mark.parametrize("make", TRACED_ONCE + OTHERS)
def test_functions_made_anew(make: Callable[[int], Any], kind: Any) -> None:
    for n in (1, 2, 3, 4, 5, 4, 3, 2, 1, 2):
        if make is rules_of_its_own and kind is hessian:  # such a rule is for the first order
            return
        fun = make(n)
        expected = symgrad.pytree.flatten(kind(fun, mode="dynamic")(X))[0]
        derivative = kind(fun)
        for _ in range(CALLS):
            for got, wanted in zip(symgrad.pytree.flatten(derivative(X))[0], expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    if make in TRACED_ONCE:
        assert derivative.cache_info().misses <= 6, derivative.explain()


@pytest.mark.parametrize("make", TRACED_ONCE + OTHERS)
def test_functions_made_anew_as_arguments(make: Callable[[int], Any]) -> None:
    derivative = grad(lambda x, fun: fun(x))
    for n in (1, 2, 3, 4, 5, 4, 3, 2, 1, 2):
        expected = grad(make(n), mode="dynamic")(X)
        for _ in range(CALLS):
            np.testing.assert_allclose(derivative(X, make(n)), expected, rtol=1e-12, atol=1e-12)
    if make in TRACED_ONCE:
        assert derivative.cache_info().misses <= 6, derivative.explain()


@pytest.mark.parametrize("make", TRACED_ONCE + OTHERS)
def test_functions_made_anew_from_outside(make: Callable[[int], Any]) -> None:
    box = types.SimpleNamespace()
    derivative = grad(lambda x: box.fun(x))
    for n in (1, 2, 3, 4, 5, 4, 3, 2, 1, 2):
        expected = grad(make(n), mode="dynamic")(X)
        for _ in range(CALLS):
            box.fun = make(n)
            np.testing.assert_allclose(derivative(X), expected, rtol=1e-12, atol=1e-12)
    if make in TRACED_ONCE:
        assert derivative.cache_info().misses <= 6, derivative.explain()


def test_one_derivative_a_step() -> None:
    """As training loops have it: nothing is traced after the second step."""
    seen = []

    def step(w, x, y):
        def loss(w):
            return np.mean((x @ w - y) ** 2)

        derivative = grad(loss)
        seen.append(derivative)
        return w - 0.1 * derivative(w)

    rng, w = np.random.default_rng(0), np.zeros(3)
    for _ in range(20):
        x, y = rng.normal(size=(8, 3)), rng.normal(size=8)
        expected = w - 0.1 * (2 / 8) * x.T @ (x @ w - y)
        w = step(w, x, y)
        np.testing.assert_allclose(w, expected)
    assert seen[-1].cache_info().misses == 2


def test_variables_that_change_later() -> None:
    """Each derivative sees those of its own function, as they are now."""

    def make(k):
        def loss(x):
            return np.sum(x**2) * k

        def change(new):
            nonlocal k
            k = new

        return grad(loss), change

    pairs = [make(k) for k in (1.0, 2.0, 3.0)]
    for _ in range(CALLS):
        for i, (derivative, _) in enumerate(pairs):
            np.testing.assert_allclose(derivative(X), 2 * X * (i + 1.0))
    pairs[1][1](7.0)
    for i, (derivative, _) in enumerate(pairs):
        np.testing.assert_allclose(derivative(X), 2 * X * (7.0 if i == 1 else i + 1.0))


def test_other_defaults_and_other_code() -> None:
    def make():
        return lambda x, k=2.0: np.sum(x**2) * k

    first, second = make(), make()
    one, other = grad(first), grad(second)
    for _ in range(CALLS):
        np.testing.assert_allclose(one(X), 4 * X)
        np.testing.assert_allclose(other(X), 4 * X)
    second.__defaults__ = (3.0,)
    np.testing.assert_allclose(one(X), 4 * X)
    np.testing.assert_allclose(other(X), 6 * X)
    second.__code__ = (lambda x, k: np.sum(x**3) * k).__code__
    np.testing.assert_allclose(one(X), 4 * X)
    np.testing.assert_allclose(other(X), 9 * X**2)
    np.testing.assert_allclose(grad(second)(X), 9 * X**2)


def test_options_and_switches_have_code_of_their_own() -> None:
    def make(k):
        return lambda x, y: np.sum(x * y) * k

    for k in (1.0, 2.0):
        for _ in range(CALLS):
            np.testing.assert_allclose(grad(make(k))(X, 2 * X), 2 * X * k)
            np.testing.assert_allclose(grad(make(k), 1)(X, 2 * X), X * k)
            np.testing.assert_allclose(grad(make(k), (0, 1))(X, 2 * X), (2 * X * k, X * k))
            np.testing.assert_allclose(grad(make(k), [0])(X, 2 * X), [2 * X * k])
            with symgrad.without("blocks"):
                np.testing.assert_allclose(grad(make(k))(X, 2 * X), 2 * X * k)
            np.testing.assert_allclose(vmap(make(k))(X, 2 * X), 2 * X**2 * k)


def test_what_functions_hold_is_let_go_of() -> None:
    def make(big):
        def model(x):
            return big * x

        return lambda x: np.sum(model(x) ** 2) + np.sum(big)

    dead = []
    for n in range(4):
        big = np.full(3, float(n))
        dead.append(weakref.ref(big))
        derivative = grad(make(big))
        for _ in range(CALLS):
            np.testing.assert_allclose(derivative(X), 2 * n * n * X)
    del big, derivative
    gc.collect()
    assert [ref() for ref in dead] == [None] * 4


MADE: list[Callable[[Any], Any]] = [
    lambda fun: grad(fun)(X),
    lambda fun: value_and_grad(fun)(X),
    lambda fun: vmap(grad(fun))(np.stack([X, X])),
    lambda fun: vjp(fun, X)[1](1.0),
    lambda fun: jvp(fun, (X,), (X,)),
    lambda fun: linearize(fun, X)[1](X),
]


@pytest.mark.parametrize("use", MADE)
def test_derivatives_go_at_once(use):
    """What was made for one step, and all that its function holds, is free after it, without the garbage collector."""

    def weighing(held):
        return lambda x: np.sum(np.sin(held @ x))

    gc.collect()
    gc.disable()
    try:
        for i in range(CALLS + 2):
            held = np.full((4, 3), float(i))
            use(weighing(held))
            alive = weakref.ref(held)
            del held
            assert i < 3 or alive() is None  # by then it is compiled
    finally:
        gc.enable()


def test_calls_outlive_their_derivative():
    call = grad(lambda x: np.sum(X * x**2)).__call__
    for _ in range(CALLS):
        np.testing.assert_allclose(call(X), 2 * X * X)


def test_where_one_is_given_up_all_are() -> None:
    """Code that turns out to be no good is in nobody's use."""
    calls = []

    def make(k):
        def loss(x):
            if x[0] > 0.0:
                return np.sum(x) * k
            calls.append(k)
            return np.sum(x) * k * len(calls)

        return loss

    derivatives = [grad(make(float(k))) for k in (1, 2, 3)]
    for at in (X, X, X, -X, X, -X, -X, X):
        for k, derivative in enumerate(derivatives, 1):
            got = derivative(at)
            np.testing.assert_allclose(got, np.ones(3) * k * (1.0 if at[0] > 0.0 else len(calls)))
    assert "dynamic" in derivatives[0].explain()


def test_too_many_forms_of_some_leave_the_others_alone() -> None:
    """Functions of the same code that do other things have variants each; the oldest go."""
    functions = [np.sin, np.cos, np.tan, np.exp, np.sqrt, np.arctan, np.sinh, np.cosh, np.tanh, np.square, np.abs, np.cbrt]

    def make(inner):
        return lambda x, inner=inner: np.sum(inner(x))

    derivatives = [grad(make(inner)) for inner in functions]
    at = np.abs(X)
    for _ in range(CALLS):
        for derivative, inner in zip(derivatives, functions, strict=True):
            np.testing.assert_allclose(derivative(at), grad(make(inner), mode="dynamic")(at))
    assert "dynamic" not in derivatives[0].explain()


def test_threads() -> None:
    """Each makes functions of its own, at once."""
    wrong = []

    def make(k):
        def model(x):
            return k * x

        return lambda x: np.sum(model(x) ** 2)

    def work(seed):
        for i in range(60):
            k = float(seed * 100 + i)
            for _ in range(2):
                if not np.allclose(grad(make(k))(X), 2 * k * k * X):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "make", [lambda n: slice(0, n), lambda n: slice(n, None, -1), lambda n: range(n), lambda n: range(0, 3, n)]
)
def test_slices_and_ranges_as_arguments(make) -> None:
    derivative = grad(lambda x, s: np.sum(x[s] ** 2) if isinstance(s, slice) else sum([x[i] ** 2 for i in s]))
    for _ in range(CALLS):
        for n in (1, 2):
            expected = np.zeros(3)
            chosen = np.arange(3)[make(n)] if isinstance(make(n), slice) else list(make(n))
            expected[chosen] = 2 * X[chosen]
            np.testing.assert_allclose(derivative(X, make(n)), expected)
    assert derivative.cache_info().misses == 4


# -- objects, and derivatives, that are made anew --------------------------------------------------------------------


class Regression:
    def __init__(self, n):
        self.a, self.on, self.parts = np.arange(3.0) * n, bool(n % 2), {"k": 0.5 + n}

    def __call__(self, x):
        return self.loss(x)

    def loss(self, x):
        return np.sum((self.a * x - 1.0) ** 2) * (self.parts["k"] if self.on else 2.0)

    @grad
    def slope(self, x):
        return self.loss(x)


class Slotted:
    __slots__ = ("a", "inner")

    def __init__(self, n):
        self.a, self.inner = np.ones(3) * n, Regression(n)

    def loss(self, x):
        return np.sum(self.a * x**3) + self.inner.loss(x)


class Equal:
    """Equal to all others of its kind, though they are not."""

    def __init__(self, n):
        self.k = n + 0.5

    def __eq__(self, other):
        return isinstance(other, Equal)

    def __hash__(self):
        return 1

    def loss(self, x):
        return np.sum(x**2) * self.k


@pytest.mark.parametrize("kind", [Regression, Slotted, Equal, lambda n: types.SimpleNamespace(loss=Equal(n).loss)])
def test_objects_as_arguments(kind) -> None:
    derivative = grad(lambda x, model: model.loss(x))
    for n in (1, 2, 3, 4, 5, 4, 3, 2, 1, 2):
        expected = grad(kind(n).loss, mode="dynamic")(X)
        for _ in range(CALLS):
            np.testing.assert_allclose(derivative(X, kind(n)), expected)
    assert derivative.cache_info().misses <= 8, derivative.explain()


def test_derivatives_of_objects_and_methods() -> None:
    for n in (1, 2, 3, 4, 5, 4, 3, 2, 1, 2):
        expected = grad(Regression(n).loss, mode="dynamic")(X)
        for _ in range(CALLS):
            np.testing.assert_allclose(grad(Regression(n))(X), expected)
            np.testing.assert_allclose(grad(Regression(n).loss)(X), expected)
            np.testing.assert_allclose(Regression(n).slope(X), expected)
    derivative = grad(Regression(1))
    derivative(X)
    assert derivative.cache_info().misses <= 8, derivative.explain()


def test_derivatives_of_derivatives() -> None:
    def make(k):
        return lambda x: np.sum(x**3) * k

    def doubled(inner):
        @functools.wraps(inner)
        def outer(x):
            return 2.0 * inner(x)

        return outer

    for k in (1.0, 2.0, 3.0):
        for _ in range(CALLS):
            np.testing.assert_allclose(jacobian(grad(make(k)))(X), np.diag(6 * X * k))
            np.testing.assert_allclose(vmap(grad(make(k)))(np.stack([X, X])), np.stack([3 * X**2 * k] * 2))
            np.testing.assert_allclose(vmap(grad(lambda x, y: np.sum(x * y) * k, 1))(X, X), X * k)  # noqa: B023
            np.testing.assert_allclose(grad(doubled(make(k)))(X), 6 * X**2 * k)
    derivative = jacobian(grad(make(4.0)))
    np.testing.assert_allclose(derivative(X), np.diag(6 * X * 4.0))
    assert derivative.cache_info().misses == 2
    inner = [grad(make(1.0)), grad(make(2.0)), value_and_grad(make(2.0)), grad(make(3.0), 0)]
    outer = grad(lambda x, g: np.sum(g(x)[1] if isinstance(g(x), tuple) else g(x)))
    for g in inner:
        expected = grad(lambda x, g=g: np.sum(g(x)[1] if isinstance(g(x), tuple) else g(x)), mode="dynamic")(X)
        for _ in range(CALLS):
            np.testing.assert_allclose(outer(X, g), expected)


def test_objects_of_too_many_forms_are_known_by_themselves() -> None:
    derivative = grad(lambda x, model: np.sum(getattr(np, model.name)(x)))
    names = ["sin", "cos", "tan", "exp", "arctan", "sinh", "cosh", "tanh", "square", "expm1", "exp2", "cbrt"]
    models = [types.SimpleNamespace(name=name) for name in names]
    for _ in range(8 * CALLS):
        for model in models:
            expected = grad(lambda x, name=model.name: np.sum(getattr(np, name)(x)), mode="dynamic")(X)
            np.testing.assert_allclose(derivative(X, model), expected)
    assert "dynamic" not in derivative.explain()
    assert derivative.cache_info().hits > 2 * len(models)


def test_code_that_is_shown_is_of_the_function() -> None:
    """Not that of the function of the same code that was compiled last."""

    def make(inner):
        return lambda x: np.sum(inner(x))

    derivatives = [grad(make(inner)) for inner in (np.sin, np.exp)]
    for derivative in derivatives:
        for _ in range(CALLS):
            derivative(X)
    assert "np.cos" in derivatives[0].source(X)
    assert "np.exp" in derivatives[1].source(X)
    assert "np.tanh" in grad(make(np.tanh)).source(X)
    assert "np.cos" in derivatives[0].source(X)


def test_class_of_an_instance_that_changes() -> None:
    model = Model(3)
    model.on = False
    derivative = grad(model.loss)
    for kind in (Model, Other, Model):
        model.__class__ = kind
        for _ in range(CALLS):
            np.testing.assert_allclose(derivative(X), grad(model.loss, mode="dynamic")(X))


def test_functions_that_hold_one_another() -> None:
    """Each is looked into once: there are more ways through them than anybody can go."""
    count = 12
    lines = [f"    def f{i}(x): return x if x is None else {'+'.join(f'f{j}(x)' for j in range(count))}" for i in range(count)]
    space: dict[str, Any] = {}
    exec("\n".join(["def make():", *lines, "    return f0"]), space)
    held = likeness(space["make"]())
    assert len(repr(held)) < 20_000


def test_whether_arrays_from_outside_are_one() -> None:
    """Each reading of a name gives a traced value of its own; what is asked is of the arrays."""
    a = np.arange(3.0)
    b = a
    derivative = grad(lambda x: np.sum(a * b * x) * (2.0 if a is b else 1.0) * (3.0 if a is not b else 1.0))
    for other in (a, a.copy(), a):
        b = other
        for _ in range(CALLS):
            np.testing.assert_allclose(derivative(X), a * a * (2.0 if b is a else 3.0))


def test_trees_whose_keys_equal() -> None:
    """The gradient has the very keys of its argument, and the function sees them."""
    derivative = grad(lambda params: sum([value**2 * np.copysign(1.0, key) for key, value in params.items()]))
    for key, expected in ((1, 6.0), (True, 6.0), (0.0, 6.0), (-0.0, -6.0), (False, 6.0), (1.0, 6.0), (1, 6.0)):
        for _ in range(CALLS):
            assert repr(derivative({key: 3.0})) == repr({key: expected})


@pytest.mark.parametrize("extreme", [np.max, np.min, np.median, lambda x, axis: np.linalg.norm(x, np.inf, axis)])
def test_extremes_are_told_by_what_they_are_of(extreme):
    """Where an extreme lies is asked of what is computed again in the way back, which may be rounded otherwise: what was saved
    of the way there is not to be found in that."""

    def followed(m, xs, a, b):
        for x in xs:
            a, b = np.sin(extreme((a * (m @ b * 0.3))[:, None] + m, axis=1) * 0.5 + x), a
        return np.sum(np.sin(a)) + np.sum(a * b)

    for seed in range(3):
        rng = np.random.default_rng(seed)
        args = rng.normal(size=(20, 20)), rng.normal(size=(9, 20)), rng.normal(size=20), rng.normal(size=20)
        derivative = grad(followed, (0, 1, 2, 3))
        for _ in range(3):
            slopes = derivative(*args)
        for slope, other in zip(slopes, grad(followed, (0, 1, 2, 3), mode="dynamic")(*args), strict=True):
            np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-12)
