"""Comprehensions that decide: loops like any other, with the names and the order that Python has."""

import ast
import functools
import itertools
from functools import reduce

import numpy as np
import pytest

from symgrad import grad, value_and_grad
from symgrad.loops import survey
from symgrad.source.comprehensions import unrolled
from symgrad.source.syntax import located


def huber(r):
    return 0.5 * r * r if abs(r) < 1.0 else abs(r) - 0.5


def summed(x):
    return sum(huber(v) for v in x)


def in_an_array(x):
    return np.sum(np.array([huber(v) for v in x]) * np.arange(len(x)))


def from_an_iterator(x):
    return np.sum(np.fromiter((huber(v) for v in x), dtype=float))


def hinge(x):
    return 0.5 * np.mean([max(0.0, 1.0 - a * b) if a > 0 else a for a, b in zip(x[:10], x[10:], strict=True)])


def rows(x):
    return np.sum(np.array([[huber(a - b) for b in x[:6]] for a in x[6:10]]))


def two_in_a_statement(x):
    i = 3.0
    low, high = min(huber(v) for v in x[:2]), np.sum([i * v if v > 0 else -v for v in x])
    return low + high * i


def named_as_what_it_reads(x):
    v = [huber(u) for u in x]
    v = [u if u > 0.2 else v[0] for u in v]
    return sum(v) + len(v)


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        total += sum([huber(v - 0.1 * total) for v in x[k:]])
    return total


def called(f, x):
    return np.sum(np.array([f(v) if v > 0 else 0.5 * v for v in x]))


def of_functions(x):
    return called(lambda v: v * v, x) + called(np.sin, x)


def some_added(x):
    total = 3.0
    return total * sum(v**2 for v in x if v > 0) + sum(1 for v in x if v > -9) * x[0] + sum(v for v in x if v > 99)


def some_products_added(x):
    return sum([v * w for v, w in zip(x, x[::-1], strict=True) if v > 0 if w < 1])


def rises(x):
    return sum(x[i] * x[i + 1] for i in range(len(x) - 1) if x[i] < x[i + 1])


def some_arrays_added(x):
    first, second = sum(np.array([v, v**2]) for v in x if v > -9)
    return first * second


class Length:
    def __init__(self, metres):
        self.metres = metres

    def __add__(self, other):
        return Length(self.metres + other.metres)

    def __radd__(self, other):
        return self if other == 0 else NotImplemented


def some_objects_added(x):
    return sum(Length(v) for v in x if v > -9).metres ** 2


@pytest.mark.parametrize(
    ("fun", "misses"),
    [
        (some_added, 4),
        (some_products_added, 6),
        (rises, 4),
        (some_arrays_added, 4),
        (some_objects_added, 4),
        (summed, 4),
        (in_an_array, 4),
        (from_an_iterator, 4),
        (hinge, 4),
        (rows, 8),
        (two_in_a_statement, 10),
        (named_as_what_it_reads, 5),
        (in_a_loop, 6),
        (of_functions, 4),
    ],
)
def test_comprehensions_that_decide_are_loops(fun, misses):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).normal(size=(20, 20)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= misses


def own_sum(items):
    return next(iter(items)) * 10.0


def with_its_own_sum(x):
    sum = own_sum
    return sum(huber(v) for v in x)


def after_a_call(x):
    log = []

    def noted(v):
        log.append(len(log))
        return v * log[-1] if v > 0 else v

    return noted(x[0]) + sum([noted(v) for v in x])


def variable_of_its_own(x):
    v = x[0]
    y = [huber(v) for v in x[1:]]
    return v * sum(y) + sum(v if v > 0 else 1.0 for v in x)


def of_late_functions(x):
    made = [lambda: v if v > 0 else -v for v in x[:4]]  # noqa: B023
    return sum(f() for f in made)


def until_one_fails(x):
    try:
        roots = [np.sqrt(v + 1.0) if v > -0.8 else 1.0 / 0 for v in x**2 - 0.9]
    except ZeroDivisionError:
        roots = [x[0]]
    return sum(roots)


def some_left_out(x):
    return sum(huber(v) for v in x if v > 0) + sum(1.0 for v in x if v > 0)


def written_before(x):
    """The first item is read before it is overwritten, the product computed before the sum."""
    a = x * 1.0

    def spoilt(v):
        a[0] = a[0] + v
        return v if v > 0 else -v

    return a[0] * 2.0 + np.sum(a) * sum(spoilt(v) for v in x) + a[0]


class Counter:
    def __init__(self, x):
        self.total = x[0]

    def add(self, v):
        self.total = self.total + v
        return self.total if v > 0 else v


def counted_before(x):
    counter = Counter(x)
    pair = [counter.total, *[counter.add(v) for v in x], counter.total]
    return counter.total * sum(counter.add(v) for v in x) + max(pair[0], np.sum([counter.add(v) for v in x])) * counter.total


class Model:
    def __init__(self, scale):
        self.scale = scale

    def one(self, v):
        return self.scale * v if v > 0 else v

    def all(self, x):
        return np.array([self.one(v) for v in x])


def by_a_method(x):
    return np.sum(Model(x[0]).all(x))


def added_to_while_it_runs(x):
    total = x[0]

    def added(v):
        nonlocal total
        total += v
        return v * v

    total += sum(added(v) for v in x)
    return total


def read_in_turn(x):
    y = [1.0, 2.0]
    items = (y[0] * v for v in x)
    y = [v + 1.0 for v in items]
    return y[0] * y[1] + y[2]


def bound_in_the_middle(x):
    a = x[0]
    y = a + (a := 3.0) * sum(huber(v) for v in x)
    return y * a


def changed_by_a_keyword(x):
    a = [1.0]

    def changed():
        a[0] = 3.0
        return 0.0

    return max((v * a[0] for v in x), default=changed())


def functions_that_name_others(x):
    def first(v):
        nonlocal f, g
        f, g = abs, min
        return v * 2.0

    f, g = first, lambda a, b: first(a) + b
    return sum(map(f, x)) * functools.reduce(g, x, 0.0)


OTHERS = [added_to_while_it_runs, read_in_turn, bound_in_the_middle, changed_by_a_keyword, functions_that_name_others]
OTHERS += [written_before, counted_before, with_its_own_sum, after_a_call, variable_of_its_own, of_late_functions, by_a_method]


@pytest.mark.parametrize("fun", [*OTHERS, some_left_out, until_one_fails])
def test_comprehensions_are_what_they_are(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(8, 9)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)


ORDERS = [
    "t(1) * G + sum(t(v) for v in [G, t(2)]) - G",
    "max(t(1), sum([t(a) for a in (3, 4)]), key=t) + [t(v) for v in (5, 6)][t(0)] * a",
    "(t(7) if a > 3 else len([t(a) for a in range(2)])) - sum([t(a) + sum([t(a) for _ in range(2)]) for a in range(2)]) + a",
    "sum([t(1), *[t(v) for v in range(2)], sum(t(v) for v in range(3))]) + t(*[t(v) for v in range(1)])",
    "[t(v) for v in range(3)][-1] + (lambda v: v + sum([t(v) for v in range(2)]))(t(3))",
    "t(1) * G + any(t(v) > 1 for v in range(4)) + (t(0) or any(t(v) for v in (0, 6)) or t(7))",
    "(1 if all(t(v) for v in (1, 0, 2)) else t(2)) * (3 if t(a) and not any(t(v) for v in [0, 0]) and t(2) else 4)",
    "sum([t(v) for v in [2, 3] if v and all(t(a) < v for a in range(4))])",
    "len([v for v in (0, 1, 2) if any(t(v) for a in [1])])",
    "(t(0) and any(t(v) for v in (0, 6))) + (t(4) if t(0) or not all(t(v) for v in (6, 0, 5)) else 1)",
    "o.count * 2 + sum(o.next(v) for v in range(3)) * o.count",
]


class Numbered:
    def __init__(self):
        self.count = 1

    def next(self, v):
        self.count += v
        return self.count


@pytest.mark.parametrize("text", ORDERS)
def test_what_comes_first_is_computed_first(text):
    source = f"def fun(t, o, a=5):\n    s = {text}\n    s += {text}\n    return s + {text}, a"
    found = []
    for change in (lambda tree: tree, lambda tree: unrolled(tree, {})):
        module, calls = ast.parse(source), []
        change(module.body[0])

        names = {"G": 2}

        def noted(value, calls=calls, names=names):
            calls.append(value)
            names["G"] += 1
            return value

        exec(compile(located(module), "test", "exec"), names)
        o = Numbered()
        found.append((names["fun"](noted, o), o.count, names["G"], calls))
    assert found[0] == found[1]


@np.vectorize
def in_three_parts(t):
    if t > 1:
        return np.log(t)
    elif t > 0:
        return t * t
    return 0.5 * t


def shown(x):
    return np.sum(in_three_parts(x.reshape(2, -1)) @ np.arange(1.0, 5.0))


def of_a_lambda(x):
    return np.sum(np.vectorize(lambda t: t * t if t > 0 else -t)(x))


def of_two(x):
    return np.sum(np.vectorize(lambda a, b: a * b if a > b else a - b)(x, x[::-1]))


def cut_off(x):
    """NumPy takes the first result for what all are: integers, at times."""
    return np.sum(np.vectorize(lambda t: 0 if t < 0 else t)(x)) + x[0]


def huber_of(t, delta):
    return 0.5 * t * t if abs(t) < delta else delta * (abs(t) - 0.5 * delta)


def beside_a_number(x):
    return np.sum(np.vectorize(huber_of)(x, 0.7) * x)


def beside_an_argument(x):
    return np.sum(np.vectorize(huber_of)(x, x[0] ** 2))


def by_name(x):
    return np.sum(np.vectorize(huber_of)(x, delta=np.float64(0.7)) * x)


def left_out(x):
    return np.sum(np.vectorize(lambda t, w: huber_of(t, w[1]), excluded=[1, "w"])(x, w=[0.1, 0.7]) * x)


def of_three(x):
    return np.sum(np.vectorize(lambda a, b, c: a * b + c if a > c else a - b)(x, x[::-1], np.cos(x)))


def beside_places(x):
    return np.sum(np.vectorize(lambda a, k: a**2 if k % 2 else (a if a > 0 else -a * k))(x, np.arange(len(x))))


def of_a_kind(x):
    return np.sum(np.vectorize(lambda t: 0 if t < 0 else t * 2, otypes=[float])(x))


def in_a_table(x):
    return np.sum(np.vectorize(lambda a, b: a * b if a > b else 0.0)(x[:, None], x))


VECTORIZED = [
    *[(shown, 8), (of_a_lambda, 5), (of_two, 5), (cut_off, 24), (beside_a_number, 6), (beside_an_argument, 8), (by_name, 6)],
    *[(left_out, 6), (of_three, 6), (beside_places, 6), (of_a_kind, 4), (in_a_table, 4)],
]


@pytest.mark.parametrize(("fun", "misses"), VECTORIZED)
def test_functions_that_numpy_vectorizes_are_called_in_a_loop(fun, misses):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(24, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= misses


def counted(x, *others, **options):
    """NumPy asks for the first element twice where it is not told the kinds of the results."""
    seen = []

    def weighted(t, *others):
        seen.append(t)
        return t * len(seen)

    return np.sum(np.vectorize(weighted, **options)(x, *others)) * len(seen)


COUNTED = [
    counted,
    lambda x: counted(x, 2.0),
    lambda x: counted(x, ["a"] * len(x)),
    lambda x: counted(x, np.ones(2), excluded=[1]),
    lambda x: counted(x, otypes=[float]),
    lambda x: counted(x, cache=True),
    lambda x: counted(x[:, None], x),
]


@pytest.mark.parametrize("fun", COUNTED)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_functions_that_numpy_vectorizes_are_called_as_often_as_numpy_calls_them(fun, mode):
    x, derivative = np.array([0.7, -1.3, 0.4]), value_and_grad(fun, mode=mode)
    for _ in range(3):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, [(fun(x + h) - fun(x - h)) / 2 for h in np.eye(3)], rtol=1e-11)  # it is linear


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_numpy_vectorizes_of_no_elements_is_numpys_error(mode):
    with pytest.raises(ValueError, match="size 0 inputs"):
        grad(lambda x: np.sum(x) + np.sum(np.vectorize(np.sin)(x[:0])), mode=mode)(np.ones(3))


WEIGHTS = [0.5, 0.2, 0.7, 1.1, 0.3, 0.9, 0.1, 0.4]


def beside_a_list(x):
    total = 0.0
    for w, t in zip(WEIGHTS, x, strict=True):
        total += w * huber_of(t, 0.7)
    return total


def in_columns(x):
    total, columns = 0.0, [x, x[::-1] ** 2]
    for t, u in zip(*columns, strict=True):
        total += huber_of(t, u)
    return total


def beside_labels(x):
    out = []
    for t, k in zip(x, [0, 1, 0, 1, 1, 0, 0, 1], strict=True):
        if k == 1:
            out.append(t**2)
        else:
            out.append(t if t > 0 else -t * k)
    return np.sum(np.array(out) ** 2)


class Penalty:
    delta = 0.7

    def each(self, t):
        return huber_of(t, self.delta)

    def __call__(self, x):
        return sum([w * self.each(t) for w, t in zip(WEIGHTS, x, strict=True)], x[0])


@pytest.mark.parametrize("fun", [beside_a_list, in_columns, beside_labels, Penalty()])
def test_loops_over_short_lists_that_call_what_decides_are_rolled_up(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(24, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 4


class __Private:
    __weights = WEIGHTS

    def __each(self, t):
        return huber_of(t, 0.7)

    def of_privates(self, x):
        total = 0.0
        for w, t in zip(self.__weights, x, strict=True):
            total += w * self.__each(t)
        return total

    def private_locals(self, x):
        __total, __out = 0.0, []
        for __t in x:
            if __t > 0:
                __total += __t
            else:
                __out.append(__t**2)
        return __total * sum(__out)

    def until(self, x):
        __s, __n = abs(x[0]), 1
        while __s < 10 and __n < 20:
            __s, __n = __s * 1.5 + x[1] ** 2, __n + 1
        return __s * __n

    @staticmethod
    def of_nobody(x):
        total = 0.0
        for t in x:
            total += t * t if t > 0 else -t
        return total

    @classmethod
    def of_the_class(cls, x):
        return sum([w * t if t > 0 else -t for w, t in zip(cls.__weights, x, strict=True)])

    def inner(self, x):
        def __of(v):
            out = []
            for t in v:
                out.append(t * t if t > 0 else -t)
            return out

        return sum(__of(x)) + sum(__of(x**2))


private = __Private()
METHODS = [private.of_privates, private.private_locals, private.until, private.of_nobody, private.of_the_class, private.inner]


@pytest.mark.parametrize("fun", METHODS)
def test_loops_in_methods_are_rolled_up_as_others_are(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(24, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 4


class Listing:
    def known(self, x):
        total = 0.0
        for t in x:
            total += t
        return total + 100 * len(locals()) + 10 * len(vars()) + len(dir())


def test_locals_of_a_method_are_its_own():
    derivative, x = value_and_grad(Listing().known), np.arange(4.0)
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(Listing().known, mode=mode)
        assert [derivative(x)[0] for _ in range(3)] == [Listing().known(x)] * 3


def mapped(x):
    return sum(map(huber, x)) + np.sum(np.array(list(map(abs, x))) ** 3)


def mapped_side_by_side(x):
    return sum(map(lambda a, b, c: a * b if a > c else c, x, x[::-1], np.cos(x))) + max(map(abs, x))


def filtered(x):
    return sum(filter(lambda t: t > 0, x)) + np.sum(np.array(list(filter(None, x))) ** 2)


def reduced(x):
    return functools.reduce(lambda a, t: 0.5 * a + t if t > 0 else a, x, 1.0) * reduce(max, x, -10.0)


def reduced_to_a_pair(x):
    return reduce(lambda a, t: (a[0] + t, a[1]) if t > 0 else (a[0], a[1] - t), x, (0.0, 1.0))[1]


def reduced_without_a_start(x):
    return functools.reduce(lambda a, b: a * b + 1, x)


def added_item_by_item(x):
    out = []
    for t in x:
        if t > 0:
            out += [t * t]
    return np.sum(np.array(out)) * len(out)


def added_to_another_name(x):
    out = []
    other = out
    for t in x:
        out += [t if t > 0 else -t]
    return sum(other)


def added_to_an_array(x):
    out = np.zeros(1)
    for t in x:
        out += [huber(t)]
    return out[0]


FUNCTIONAL = [mapped, mapped_side_by_side, filtered, reduced, reduced_to_a_pair, added_item_by_item, added_to_an_array]


@pytest.mark.parametrize("fun", [*FUNCTIONAL, added_to_another_name, reduced_without_a_start])
def test_map_filter_and_reduce_are_loops(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(24, 8)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= (24 if fun is added_to_another_name else 4)


def some_below(x):
    if any(t < -1.5 for t in x):
        return np.sum(x)
    return np.sum(x * x)


def all_within(x, low=-2.0, high=2.0):
    if not all(low <= t <= high for t in x):
        return -np.inf * 0 + x[0] if low > high else np.prod(x)
    return -0.5 * np.sum(x * x)


def some_in_a_choice(x):
    return np.sum(x) if all(t > -1.5 for t in x) else np.sum(x**3)


def some_after_others(x):
    if len(x) > 2 and any(t > 1.5 for t in x):
        return x[0] * x[1]
    return np.sum(np.sin(x))


def is_far(t):
    return abs(t) > 1.8


def some_mapped(x):
    far = any(map(is_far, x))
    return np.sum(x * x) * (2 if far else 1)


def some_of_some(x):
    return np.sum(x * x) + 3.0 * any(t > 1 for t in x if t < 1.4) * x[1]


def all_required(x):
    if not all(abs(t) < 20.0 for t in x):
        raise ValueError("far out")
    return np.sum(np.cos(x))


@pytest.mark.parametrize(
    "fun", [some_below, all_within, some_in_a_choice, some_after_others, some_mapped, some_of_some, all_required]
)
def test_any_and_all_are_loops_that_end_once_it_is_known(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    points = np.random.default_rng(6).normal(size=(60, 30))
    for x in points[:40]:
        derivative(x)
    learnt = derivative.cache_info().misses
    for x in points:
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= learnt + 2  # what the 20 new points have traced


def some_by_numpy(x):
    from numpy import all, any

    return np.sum(x) * (2 if any(x > 1) else 1) * (3 if all(x > 1) else 1)


def test_any_of_numpy_is_numpys():
    for x in np.array([[0.5, 2.0], [0.1, 0.2], [2.0, 3.0], [0.5, 2.0]]):
        scale = some_by_numpy(x) / np.sum(x)
        np.testing.assert_allclose(value_and_grad(some_by_numpy)(x)[1], np.full(2, scale))


ROWS = {
    "sum": lambda w, x: sum(np.tanh(r @ w) ** 2 for r in x),
    "sum of a list": lambda w, x: sum([np.linalg.norm(r * w) for r in x]),
    "np.sum": lambda w, x: np.sum([np.sqrt(r @ r + w @ w) for r in x]),
    "np.array": lambda w, x: np.sum(np.tanh(np.array([r @ w for r in x])) ** 2),
    "zip": lambda w, x: np.sum(np.array([r @ (w * q) for r, q in zip(x, x[::-1], strict=True)]) ** 2),
    "indices": lambda w, x: sum(np.exp(-np.sum((x[i] - w) ** 2)) for i in range(len(x))),
    "enumerate": lambda w, x: sum(i * np.tanh(r @ w) for i, r in enumerate(x)),
    "two clauses": lambda w, x: sum(np.exp(-np.sum((x[i] - x[j] * w) ** 2)) for i in range(9) for j in range(i)),
}


def chosen_before(w):
    """What ``combinations`` gives is as it was when it was made, but for rows, which are views."""
    x, rows, total = w.copy(), np.outer(w, w[:3]), 0.0
    for a, b in itertools.combinations(x, 2):
        total, x[0] = total + np.sin(a * b), total
    for p, q in itertools.combinations(rows, 2):
        total, rows[1:, 0] = total + p @ q, rows[1:, 0] * 0.9
    numbers = [v * v for v in w]
    for a, (b, c) in itertools.product(numbers, itertools.combinations(numbers, 2)):
        total, numbers[0] = total + np.sin(a * b - c), 3.0
    return total


def near(w):
    """Some are told apart."""
    total = 0.0
    for p, q in itertools.combinations(np.outer(w, w[:3]), r=2):
        apart = np.linalg.norm(p - q)
        if apart < 1.0:
            total += apart**2
    return total


@pytest.mark.parametrize("fun", [chosen_before, near])
def test_combinations_are_pythons(fun):
    rng = np.random.default_rng(0)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for _ in range(4):
        w = rng.normal(size=7)
        value, slope = derivative(w)
        np.testing.assert_allclose(value, fun(w), rtol=1e-10)
        np.testing.assert_allclose(slope, dynamic(w)[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fun", ROWS.values(), ids=ROWS.keys())
def test_comprehensions_over_rows_are_done_at_once(fun):
    """Those that decide on nothing, in lambdas, too: they were written out, item by item."""
    rng = np.random.default_rng(0)
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    for _ in range(4):
        w, x = rng.normal(size=3), rng.normal(size=(60, 3))
        np.testing.assert_allclose(derivative(w, x), dynamic(w, x), rtol=1e-9, atol=1e-12)
    assert len(derivative.source(w, x).splitlines()) < 60


def left_and_gone_on(w):
    """Who leaves a loop over an iterator finds the rest in it."""
    pairs, total = itertools.combinations(w, 2), 0.0
    for a, b in pairs:
        total += a * b
        if total > 0.2:
            break
    for a, b in pairs:
        total = total * 0.9 + a - b
    places = itertools.product(range(3), range(2))
    for i, j in places:
        total += w[i] * w[j]
        if i:
            break
    return total + sum(w[i] - w[j] ** 2 for i, j in places)


def left_early(w):
    """Of many."""
    total = 0.0
    for p in itertools.permutations(np.concatenate((w, w)), 9):
        total = total + p[0] * np.sin(p[1])
        if total > 0.5:
            break
    return total


@pytest.mark.parametrize("fun", [left_and_gone_on, left_early])
def test_what_loops_leave_of_iterators(fun):
    rng = np.random.default_rng(0)
    derivative = value_and_grad(fun)
    for _ in range(4):
        w = rng.uniform(0.2, 1.0, size=5)
        value, slope = derivative(w)
        assert value == pytest.approx(fun(w))
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(w), rtol=1e-9)


# -- rows of rows ----------------------------------------------------------------------------------------------------

POINTS = np.random.default_rng(4).standard_normal((34, 2))


def kernel(x):
    return np.sum(np.array([[np.exp(-np.sum(((a - b) * x) ** 2)) for b in POINTS] for a in POINTS]))


def kernel_over_indices(x):
    n = len(POINTS)
    return np.sum(np.asarray([[np.tanh(POINTS[i] @ POINTS[j] * x[0]) for j in range(n)] for i in range(n)]) ** 2)


def rotations(x):
    return np.sum(np.array([[np.cos(t * x[0]), np.sin(t * x[1])] for t in POINTS[:, 0]]) @ x)


def of_boxes(x):
    return np.sum(np.stack([[[a * b * c for a in x] for b in x] for c in x], axis=1) ** 2)


def of_tuples(x):
    return np.sum(np.vstack([(x[0] * a, a, 1) for a in POINTS[:, 1]]) ** 2)


@pytest.mark.parametrize("fun", [kernel, kernel_over_indices, rotations, of_boxes, of_tuples])
def test_arrays_of_rows(fun):
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for factor in (0.3, 0.5, 0.8, 1.1):
        x = factor * np.array([1.0, 0.7])
        value, slope = derivative(x)
        np.testing.assert_allclose(value, plain(x)[0], rtol=1e-12)
        np.testing.assert_allclose(slope, plain(x)[1], rtol=1e-9)
    assert derivative.cache_info().hits == 2


@pytest.mark.parametrize("widest", [64, 16])
@pytest.mark.parametrize("fun", [kernel, kernel_over_indices])
def test_code_for_rows_of_rows_is_short(fun, widest, monkeypatch):
    monkeypatch.setattr(survey, "WIDEST", widest)
    derivative, x = grad(fun), np.array([0.3, 0.2])
    for _ in range(3):
        derivative(x)
    assert len(derivative.source(x, fast=True).splitlines()) < 60


def ragged(x):
    return np.sum(np.array([[x[0] * a for a in range(n)] for n in (2, 3)]))


def of_what_is_no_number(x):
    names = np.array([["a" * (i + j) for j in range(3)] for i in range(3)])
    whole = np.array([[i * j for j in range(3)] for i in range(3)])
    mixed = np.array([[i, x[0] * i] for i in range(5)])
    return np.sum(mixed) * len(names[2][2]) + np.sum(whole) * (whole.dtype.kind == "i") * x[1]


def test_rows_that_are_no_arrays():
    derivative = value_and_grad(ragged)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"inhomogeneous|same shape"):
            derivative(np.ones(2))
    derivative, x = value_and_grad(of_what_is_no_number), np.array([0.5, 2.0])
    for _ in range(3):
        value, slope = derivative(x)
        assert value == of_what_is_no_number(x)
        np.testing.assert_allclose(slope, [40.0, 9.0])
