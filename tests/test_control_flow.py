"""Control flow: every shape is called on a sequence of inputs and held against dynamic mode and finite differences.

Each shape is a plain function, with the inputs that it is called on in turn, round after round, so that branches are met
in different orders with compiled calls in between. What it gives must be what plain Python gives, in every call.
"""
# ruff: noqa: B023 -- the shapes are meant as they are

import bisect
import cmath
import copy
import functools
import heapq
import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections import deque, namedtuple
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from math import isclose, isinf

import numpy as np
import pytest

from symgrad import grad, hessian, jacfwd, jacrev, value_and_grad, vmap, without
from symgrad import numpy as snp

SHAPES = []
V3 = np.array([0.5, -1.25, 2.0])
V4 = np.array([1.5, 0.25, -0.75, 0.6])
M2 = np.array([[2.0, 0.5], [0.5, 1.5]])


def shape(*inputs):
    """Put a function into the table, with what it is called on: values, or tuples of several arguments."""

    def register(function):
        calls = [call if isinstance(call, tuple) else (call,) for call in inputs]
        SHAPES.append(pytest.param(function, calls, id=function.__name__))
        return function

    return register


def slopes(fun, args):
    """Central differences with respect to the first argument."""
    x, *rest = args
    slope = np.zeros(np.shape(x))
    for place in np.ndindex(np.shape(x)):
        ends = []
        for sign in (1, -1):
            step = np.zeros(np.shape(x))
            step[place] = sign * 1e-6
            ends.append(fun(x + step if isinstance(x, np.ndarray) else x + float(step), *rest))
        slope[place] = (ends[0] - ends[1]) / 2e-6
    return slope


def copied(args):
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


# -- branches ------------------------------------------------------------------------------------------------------

SIGNS = (1.4, -0.6, 0.25, -2.2, 3.1)
NO_SLOPE = 1.0
DECAYS = (8.3, 2.4, 30.0, 100.0, 2.0)  # zero to seven halvings


@shape(*SIGNS)
def if_else(x):
    if x > 0:
        return x * x
    else:
        return -3.0 * x


@shape(*SIGNS, 5.0, 11.0)
def if_elif_else(x):
    if x < 0:
        y = np.sin(x)
    elif x < 1:
        y = x**2
    elif x < 4:
        y = np.exp(-x)
    else:
        y = 1 / x
    return y * x


@shape(*SIGNS)
def if_without_else(x):
    y = x
    if x > 1:
        y = y * y
    return y + x


@shape((1.0, 2.0), (1.0, -2.0), (-1.0, 2.0), (-1.0, -2.0), (2.0, 1.0))
def nested_ifs(x, y):
    if x > 0:
        if y > 0:
            r = x * y
        else:
            r = x - y
    else:
        if y > 0:
            r = x**2 + y
        else:
            r = np.cos(x * y)
    return r


@shape(*SIGNS)
def chained_comparison(x):
    return x**3 if -1 < x < 1 else x if 1 <= x <= 2 else -x


@shape((1.0, 2.0), (1.0, -2.0), (-1.0, 2.0), (-1.0, -2.0))
def and_or_not(x, y):
    if (x > 0 and y > 0) or not (x > -2 or y > 0):
        return x * y
    return x + 2 * y * x


@shape(*SIGNS)
def conditional_expression(x):
    return (x if x > 0 else 2 * x) * (1 if x < 1 else 3)


@shape(*SIGNS)
def or_default(x):
    return (x or 1.0) * x + 2 * x


@shape(*SIGNS)
def truth_of_number(x):
    y = int(x)
    return x * x if y else 3 * x


@shape(*SIGNS)
def walrus(x):
    if (y := x * x - 1) > 0:
        return y * x
    return x - y


@shape(*SIGNS)
def early_return(x):
    y = x * x
    if y < 0.1:
        return x
    z = np.sin(y)
    if z < 0:
        return z * x
    return z


@shape((1.0, 2.0), (3.0, 2.0), (-1.0, 5.0), (5.0, -1.0))
def builtin_min_max(x, y):
    return max(x, y) * 2 + min(x * x, y)


@shape(V3, V3[::-1].copy(), -V3, V3**2)
def max_of_list(x):
    return max([x[0], x[1] * 2, x[2] ** 2]) + min(list(x))


@shape(V3, V3[::-1].copy(), -V3)
def max_with_key(x):
    a = max([x[0], x[1], x[2]], key=lambda v: -v * v)
    return a * a + x[0]


@shape(V3, V3[::-1].copy(), -V3, V3 * 3)
def sorted_values(x):
    a, b, c = sorted([x[0], x[1], x[2]])
    return a * b - c * c


@shape(V3, V3[::-1].copy(), -V3)
def sorted_by_key(x):
    pairs = sorted([(x[0], 1.0), (x[1], 2.0), (x[2], 3.0)], key=lambda p: abs(p[0]), reverse=True)
    return sum(v * v * k for v, k in pairs)


@shape(V3, V3[::-1].copy(), -V3, V3**2)
def list_sort_in_place(x):
    items = [x[0], x[1], x[2]]
    items.sort()
    return items[0] * items[2] + items[1] ** 2


@shape(V3, V3**2, -(V3**2), -V3)
def any_and_all(x):
    if any(v > 1.5 for v in x):
        return np.sum(x**2)
    if all(v < 0 for v in x):
        return np.sum(np.exp(x))
    return np.prod(x)


@shape(V3, V3**2, -(V3**2))
def array_any_all(x):
    if (x > 1.5).any():
        return np.sum(x**2)
    return np.sum(x) if np.all(x < 0) else np.prod(x)


@shape(*SIGNS)
def builtin_abs(x):
    return abs(x) * x + abs(x - 1)


@shape(0.4, 1.6, 2.7, -1.2, 0.4)
def builtin_round(x):
    return round(x) * x + round(x, 1) * x


@shape(0.4, 1.6, 2.7, 3.2, 1.1)
def int_of_value(x):
    n = int(x)
    return x**n + n * x


@shape(0.4, 1.6, 2.7, 3.2, 5.5, 0.2)
def range_of_value(x):
    y = x
    for _ in range(int(x)):
        y = y * x + 1
    return y


@shape((V4, 0), (V4, 2), (V4, -1), (V4, 3), (V4, 0))
def index_by_argument(x, k):
    return x[k] ** 2 + x[0]


@shape((V4, 0.3), (V4, 2.6), (V4, 3.1), (V4, 1.2))
def index_by_value(x, t):
    return x[int(t)] * t + np.sum(x)


@shape(V4, V4[::-1].copy(), -V4, V4 * 2)
def index_by_argmax(x):
    return x[np.argmax(x)] ** 2 + x[np.argmin(x)]


@shape((V4, 1), (V4, 3), (V4, 2), (V4, 1))
def slice_by_argument(x, k):
    return np.sum(x[:k] ** 2) + np.prod(x[k:])


@shape(V4, -V4, np.abs(V4), V4 * 2, V4 - 1)
def mask_changes_shape(x):
    return np.sum(x[x > 0] ** 2) + x[x < 1].size * np.sum(x)


@shape(V4, -V4, V4 - 1)
def mask_then_loop(x):
    total = 0.0
    for v in x[x > 0]:
        total = total + v * v
    return total + np.sum(x)


@shape(V4, -V4, V4 * 3)
def nonzero_positions(x):
    (where,) = np.nonzero(x > 0.5)
    return np.sum(x[where] ** 3) + len(where) * x[0]


@shape(*SIGNS)
def match_number(x):
    match int(x):
        case 0:
            return x * x
        case 1 | 2:
            return np.exp(x)
        case n if n < 0:
            return -x
        case _:
            return x * 4


@shape((1.0, "square"), (2.0, "sin"), (3.0, "other"), (1.0, "sin"))
def match_string(x, what):
    match what:
        case "square":
            return x * x
        case "sin":
            return np.sin(x)
        case _:
            return x


@shape(V3, V4, V3)
def match_sequence(x):
    match list(x):
        case [a, b, c]:
            return a * b * c
        case [a, *rest]:
            return a * sum(rest)


@shape(1.5, -0.5, 2.5)
def match_mapping(x):
    point = {"kind": "a" if x > 0 else "b", "value": x * 2}
    match point:
        case {"kind": "a", "value": v}:
            return v * v
        case {"kind": "b", **rest}:
            return rest["value"]


@dataclass
class Point:
    x: object
    y: object


@shape(1.5, -0.5, 2.5)
def match_class(x):
    p = Point(x, x * 2) if x > 0 else Point(x, 0)
    match p:
        case Point(x=a, y=0):
            return a * 3
        case Point(x=a, y=b):
            return a * b


@shape(*SIGNS)
def generators_that_are_left(x):
    log = []

    def powers():
        try:
            yield x
            yield x * x
            yield x**3
        finally:
            log.append(x)

    for last in powers():
        if last > 1:
            break
    total = last * len(log) + next(iter(powers()))
    if any(v > 0.5 for v in powers()):
        total = total * len(log)
    return total + sum(log)


@shape(*SIGNS)
def generators_in_iterators_that_are_left(x):
    log = []

    def powers():
        try:
            yield x
            yield x * x
            yield x**3
        finally:
            log.append(x)

    total = x
    for made in (
        lambda: enumerate(powers()),
        lambda: zip(range(3), powers(), strict=False),
        lambda: enumerate(itertools.islice(powers(), 3)),
        lambda: zip(range(3), map(abs, itertools.chain(powers(), [x])), strict=False),
    ):
        for _, value in made():
            if value > 0.5:
                break
        total = total * (1 + len(log))
    return total + sum(log)


@dataclass(slots=True)
class Scaled:
    value: object
    scale: float = field(init=False, default=3.0)


@shape(*SIGNS)
def slots_with_defaults(x):
    return Scaled(x).scale * x + Scaled(x * x).value


@shape(*SIGNS)
def match_flag(x):
    match x > 0:
        case True:
            return x**3
        case _:
            return x * 0.5


@shape(*SIGNS)
def match_flags_within(x):
    match [Point(x, x > 0), {"large": x > 1}, (None, 2 < x)]:
        case [Point(y=True), {"large": True}, (None, False)] | [Point(y=True), {"large": False}, _]:
            return x**3
        case [Point(y=True), *_]:
            return x * x
        case _:
            return x * 0.5


@shape(*SIGNS)
def match_what_a_guard_binds(x):
    kind = 1 if x > 0 else 2
    match kind:
        case 1 if (kind := 2) and x > 1:
            return x**3
        case 2:
            return 3.0 * x
        case _:
            return x * x


@shape(*SIGNS)
def match_what_a_guard_changes(x):
    def turned():
        nonlocal kind
        kind = 2
        return x > 1

    kind = 1 if x > 0 else 2
    match kind:
        case 1 if turned():
            return x**3
        case 2:
            return 3.0 * x
        case _:
            return x * x


@shape(*SIGNS)
def class_decorated_in_turn(x):
    log = [x]

    def decorator(k):
        log.append(k * x)
        return lambda kind: log.append(k * log[-1]) or kind

    @decorator(2.0)
    @decorator(3.0)
    class Kind:
        size = len(log)

    return (log[0] + 2.0 * log[1] + 3.0 * log[2] + 4.0 * log[3] + 5.0 * log[4]) * Kind.size


@shape(V3, V4)
def appended_until_an_error(x):
    with suppress(IndexError):
        items = []
        for i in range(10):
            items.append(x[i] * 2.0)
            items.append(x[i] * x[i])
    return sum(items)


@shape(*SIGNS)
def boolean_arithmetic(x):
    return x * (x > 0) + x * x * (x < 1)


@shape(*SIGNS)
def dict_of_cases(x):
    return {True: lambda v: v * v, False: lambda v: 3 * v}[bool(x > 0)](x)


class Mode(Enum):
    LOW = 1
    HIGH = 2


@shape(*SIGNS)
def enum_state(x):
    mode = Mode.HIGH if x > 1 else Mode.LOW
    return x**3 if mode is Mode.HIGH else x


@shape(*SIGNS)
def ternary_chain_of_lists(x):
    items = [x, x * x] if x > 0 else [x]
    return sum(items) * len(items)


@shape((2.0, None), (2.0, 3.0), (1.0, None), (1.5, 4.0))
def optional_argument(x, scale):
    return x * x if scale is None else x * scale


@shape((2.0, True), (2.0, False), (1.0, True))
def flag_argument(x, flag):
    return np.sin(x) if flag else np.cos(x)


@shape(1.5, -0.5, 0.25, -2.0)
def comparison_of_two_values(x):
    a, b = x * x, 1 - x
    return a if a > b else b


@shape(*SIGNS)
def equality_of_rounded(x):
    return x * 2 if round(x) == 2 else x * x


@shape(*SIGNS)
def floor_and_ceil(x):
    return x * math.floor(x) + math.ceil(x)


@shape(0.5, 1.0, 2.0)
def isinstance_checks(x):
    return x * 2 if isinstance(x, float) else x * 3


@shape(1.5, -0.5, 2.5)
def assert_statement(x):
    assert x > -1
    return x * x if x > 0 else x


# -- exceptions ----------------------------------------------------------------------------------------------------


@shape(M2, M2 - 2 * np.eye(2), M2 * 2, M2 - 2.1 * np.eye(2))
def cholesky_with_jitter(a):
    a = (a + a.T) / 2
    try:
        chol = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        chol = np.linalg.cholesky(a + 3.0 * np.eye(2))
    return np.sum(np.log(np.diagonal(chol)))


@shape(M2, M2 - 2 * np.eye(2), M2 * 2)
def jitter_in_a_loop(a):
    a = (a + a.T) / 2
    jitter = 1e-3
    while True:
        try:
            chol = np.linalg.cholesky(a + jitter * np.eye(2))
            break
        except np.linalg.LinAlgError:
            jitter *= 10
    return np.sum(chol**2)


@shape((1.5, "a"), (1.5, "b"), (2.5, "c"), (2.0, "a"))
def key_error(x, key):
    table = {"a": 2.0, "b": 3.0}
    try:
        return x * table[key]
    except KeyError:
        return x * x


@shape((2.0, 1.0), (2.0, 0.0), (3.0, 2.0), (1.0, 0.0), (4.0, 5.0))
def zero_division(x, y):
    try:
        return x / y
    except ZeroDivisionError:
        return x * 7


@shape(1.5, -0.5, 2.5, -3.0)
def raised_by_hand(x):
    try:
        if x < 0:
            raise ValueError("negative")
        return np.sqrt(x)
    except ValueError:
        return x * x
    finally:
        x = None


@shape(1.5, -0.5, 2.5)
def try_else_finally(x):
    y = x
    try:
        y = y * 2
    except TypeError:
        y = y * 100
    else:
        y = y * x
    finally:
        y = y + x
    return y


@shape(1.5, -0.5, 2.5)
def suppressed(x):
    y = x
    with suppress(IndexError):
        y = y * 2
        if x > 0:
            y = [y][3]
    return y * x


@shape(V3, V4, V3)
def index_error(x):
    try:
        return x[3] * 2
    except IndexError:
        return np.sum(x**2)


# -- calls, generators, comprehensions -----------------------------------------------------------------------------


def fold(x, n):
    return x if n == 0 else np.sin(fold(x * 1.1, n - 1))


@shape((0.5, 0), (0.5, 3), (1.0, 6), (0.2, 3))
def recursion_on_a_count(x, n):
    return fold(x, n)


def halve(x):
    return x * x if abs(x) < 1 else halve(x / 2) + x


@shape(0.5, 3.0, -7.0, 20.0, 3.5)
def recursion_on_a_value(x):
    return halve(x)


def even(x, n):
    return x if n == 0 else odd(x * x, n - 1)


def odd(x, n):
    return np.cos(x) if n == 0 else even(x + 1, n - 1)


@shape((0.5, 0), (0.5, 1), (0.3, 4), (0.7, 3))
def mutual_recursion(x, n):
    return even(x, n)


def tree_sum(items):
    return items[0] if len(items) == 1 else tree_sum(items[: len(items) // 2]) * 2 + tree_sum(items[len(items) // 2 :])


@shape(V4, V3, V4 * 2)
def recursion_on_lists(x):
    return tree_sum([v * v for v in x])


def powers(x, n):
    y = 1.0
    for _ in range(n):
        yield y
        y = y * x


@shape((0.5, 3), (0.9, 5), (1.1, 8), (0.5, 0))
def generator(x, n):
    return sum(powers(x, n)) + x


def until(x):
    while x < 10:
        yield x
        x = x * x + 1


@shape(0.5, 2.0, 9.0, 11.0, 0.6)
def generator_on_values(x):
    return sum(until(x)) + x * x


@shape(0.5, 0.55, 0.6, 2.0, 9.0, 11.0, 0.2, 0.1)
def generator_that_is_counted(x):
    n = 0
    for last in until(x / 4):
        n += 1
    return n * x * last


@shape(V4, -V4, V4 * 2)
def methods_without_their_object(x):
    items, table, both = [x[0]], {"a": x[1]}, [[x[2]], [x[3]]]
    for v in x:
        list.append(items, v * v)
        dict.update(table, a=table["a"] + v)
    functools.partial(list.append, items)(x[2])
    list(map(list.append, both, x))
    return sum(items) * len(items) * table["a"] + sum(map(sum, both))


@shape(V4, -V4, V4 * 2)
def shallow_copies(x):
    table = {"a": [x[0]], "b": (x[1], [1.0])}
    again = copy.copy(table)
    again["a"].append(x[2])
    again["b"][1][0] = 3.0
    return sum(table["a"]) * table["b"][1][0]


@shape(V4, -V4, V4 * 2)
def generator_expression(x):
    return sum(v * v for v in x if v > 0) + x[0]


@shape(V4, -V4, V4 * 2)
def list_comprehension(x):
    return sum([v * i for i, v in enumerate(x)]) + np.sum(np.stack([v**2 for v in x]))


@shape(V4, V4[::-1].copy())
def nested_comprehension(x):
    return sum([a * b for i, a in enumerate(x) for b in x[i:]])


@shape(V4, -V4)
def dict_comprehension(x):
    table = {i: v * v for i, v in enumerate(x) if i % 2}
    return sum(table.values()) + table[1]


@shape(V3, -V3)
def unpacking(x):
    a, *rest = x
    (b, c), d = (rest[0], rest[1]), a
    return a * b + c * d


@shape(V3, -V3)
def star_arguments(x):
    def helper(a, b, *more, scale=1.0):
        return a * b * scale + sum(more)

    return helper(*x, scale=x[0])


@shape(V3, -V3)
def map_filter_reduce(x):
    squares = map(lambda v: v * v, x)
    return functools.reduce(operator.add, squares) + sum(filter(lambda v: v > 0, [x[0], x[1], x[2]]))


@shape(V3, -V3)
def zip_and_accumulate(x):
    return sum(itertools.accumulate([a * b for a, b in zip(x, x[1:], strict=False)]))


@shape(1.5, -0.5)
def closures(x):
    fs = [lambda v, k=k: v * k * x for k in range(3)]
    return sum(f(x + i) for i, f in enumerate(fs))


Pair = namedtuple("Pair", "a b")


@shape(1.5, -0.5)
def namedtuples(x):
    p = Pair(x, x * x)
    p = p._replace(a=p.b) if x > 0 else p
    return p.a * p.b


@dataclass(frozen=True)
class State:
    x: object
    v: object


@shape(1.5, -0.5)
def dataclass_state(x):
    s = State(x, 1.0)
    for _ in range(5):
        s = replace(s, x=s.x + 0.1 * s.v, v=s.v - 0.1 * s.x)
    return s.x * s.v


class Counter:
    def __init__(self, x):
        self.x, self.steps = x, 0

    def step(self):
        self.x = self.x * 0.5 + 1
        self.steps += 1


@shape(*DECAYS)
def object_with_counter(x):
    c = Counter(x)
    while c.x > 2.5:
        c.step()
    return c.x * c.steps + x


@shape(*DECAYS)
def counter_in_an_object(x):
    c = Counter(0)
    y = x
    while y > 2.5:
        y = y * 0.5 + 1
        c.steps += 1
    return y * c.steps + x


def driver(step, y):
    while y > 2.5:
        y = step(y)
    return y


@shape(*DECAYS)
def counter_behind_a_call(x):
    count = [0]

    def step(y):
        count[0] += 1
        return y * 0.5 + 1

    return driver(step, x) * count[0]


@shape(*DECAYS)
def counter_by_nonlocal(x):
    count = 0

    def step(y):
        nonlocal count
        count += 1
        return y * 0.5 + 1

    return driver(step, x) * count


@shape(*DECAYS)
def counter_in_a_plain_array(x):
    counts = np.zeros(3)
    y = x
    while y > 2.5:
        y = y * 0.5 + 1
        counts[1] += 1
    return y * counts[1] + x


@shape(*DECAYS)
def counter_array_rebound(x):
    counts = np.ones(3)
    y = x
    while y > 2.5:
        y = y * 0.5 + 1
        counts = counts + 1
    return y * counts[1] + x


@shape(*DECAYS)
def counter_in_a_tuple(x):
    state = (x, 0)
    while state[0] > 2.5:
        state = (state[0] * 0.5 + 1, state[1] + 1)
    return state[0] * state[1]


@shape(*DECAYS)
def counter_in_a_dict(x):
    state = {"x": x, "k": 0}
    while state["x"] > 2.5:
        state = {"x": state["x"] * 0.5 + 1, "k": state["k"] + 1}
    return state["x"] * state["k"]


@shape(*DECAYS)
def counter_in_a_dict_in_place(x):
    state = {"x": x, "k": 0}
    while state["x"] > 2.5:
        state["x"] = state["x"] * 0.5 + 1
        state["k"] += 1
    return state["x"] * state["k"]


@shape(*DECAYS)
def history_in_a_list(x):
    history = [x]
    while history[-1] > 2.5:
        history.append(history[-1] * 0.5 + 1)
    return sum(history) * len(history)


@shape(*DECAYS)
def history_in_a_tuple(x):
    history = (x,)
    y = x
    while y > 2.5:
        y = y * 0.5 + 1
        history = (*history, y)
    return sum(history) + y


@shape(*DECAYS)
def history_in_an_object(x):
    c = Counter([])
    y = x
    while y > 2.5:
        y = y * 0.5 + 1
        c.x.append(y)
    return sum(c.x) + y


@shape(*DECAYS)
def text_grows(x):
    marks = ""
    y = x
    while y > 2.5:
        y = y * 0.5 + 1
        marks += "x"
    return y * len(marks) + x


@shape(*DECAYS)
def set_grows(x):
    seen = set()
    y = x
    while y > 2.5:
        y = y * 0.5 + 1
        seen.add(len(seen))
    return y * len(seen) + x


@shape(*DECAYS)
def flag_flips(x):
    up, y = True, x
    while y > 2.5:
        y = y * 0.5 + (1 if up else 0.5)
        up = not up
    return y if up else -y


@shape(*DECAYS)
def iterator_advances(x):
    steps = iter([0.5, 0.6, 0.7, 0.5, 0.4, 0.5, 0.5, 0.5, 0.5])
    y = x
    while y > 2.5:
        y = y * next(steps) + 1
    return y * x


@shape(*DECAYS)
def stack_is_popped(x):
    factors = [0.5] * 20
    y = x
    while y > 2.5:
        y = y * factors.pop() + 1
    return y * len(factors)


# -- while ---------------------------------------------------------------------------------------------------------

ROOTS = (2.1, 9.2, 0.55, NO_SLOPE, 100.3, 3.7)  # 1.0 is its own root: no iteration, and no slope that differences could see


@shape(*ROOTS)
def newton(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


@shape(*ROOTS)
def newton_from_one(a):
    x = 1.0
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


@shape(*ROOTS)
def newton_with_a_step(a):
    x, step = a, 1.0
    while abs(step) > 1e-9:
        step = (x * x - a) / (2 * x)
        x = x - step
    return x + step


@shape(2.0, 9.0, 0.5, 100.0, 3.0)
def step_is_born_inside(a):
    x = a
    while abs(x * x - a) > 1e-10:
        step = (x * x - a) / (2 * x)
        x = x - step
    return x + step


@shape(*ROOTS, 2.6)
def newton_counting(a):
    x, k = a, 0
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
        k += 1
    return x * k + a


@shape(*ROOTS, 2.6)
def newton_counting_down(a):
    x, left = a, 20
    while abs(x * x - a) > 1e-10 and left > 0:
        x = 0.5 * (x + a / x)
        left -= 1
    return x * left


@shape(*ROOTS, 2.6)
def newton_with_limit(a):
    x, k = a, 0
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
        k += 1
        if k > 4:
            x = x * 3
            break
    return x


@shape(*ROOTS, 2.6)
def newton_while_else(a):
    x, k = a, 0
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
        k += 1
        if k == 5:
            break
    else:
        x = x + 100 * a
    return x


@shape(*ROOTS)
def true_break(a):
    x = a
    while True:
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-9:
            break
        x = new
    return x


@shape(*ROOTS)
def true_break_counting(a):
    x, k = a, 0
    while True:
        new = 0.5 * (x + a / x)
        k += 1
        if abs(new - x) < 1e-9:
            break
        x = new
    return x * k


@shape(*ROOTS)
def true_return(a):
    x = a
    while True:
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-9:
            return new
        x = new


@shape(*ROOTS)
def break_then_work(a):
    x = a
    while True:
        err = x * x - a
        if abs(err) < 1e-9:
            break
        x = x - err / (2 * x)
    return x + err


@shape(*ROOTS)
def two_breaks(a):
    x = a
    while True:
        x = 0.5 * (x + a / x)
        if x > 20:
            break
        if abs(x * x - a) < 1e-9:
            x = x * 2
            break
    return x


@shape(*ROOTS)
def while_continue(a):
    x, k = a, 0.0
    while x > 1.1:
        x = 0.7 * x
        if x > 3:
            continue
        k = k + x
    return x + k


@shape(*ROOTS)
def while_with_branch(a):
    x = a
    while x > 1.1:
        x = 0.5 * x if x > 2 else x - 0.3
    return x * a


@shape(*ROOTS)
def while_on_integer(a):
    n, y = int(a), a
    while n > 0:
        y = y * 1.1
        n = n // 2
    return y


@shape((1.5, 0), (1.5, 1), (1.2, 2), (1.3, 7), (0.5, 3), (1.5, 100))
def while_on_a_count(x, n):
    y = x
    while n > 0:
        y = np.sin(y) + x
        n -= 1
    return y


@shape((1.5, 0), (1.5, 1), (1.2, 2), (1.3, 7), (0.5, 3))
def while_truth_of_count(x, n):
    y = x
    while n:
        y = y * x
        n = n - 1
    return y


@shape((1.5, 12), (1.5, 7), (1.2, 1), (1.3, 27))
def collatz(x, n):
    y = x
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        y = y * 0.9 + x
    return y


@shape((1.5, 10), (1.5, 13), (1.2, 1), (1.3, 0))
def binary_power(x, n):
    result, base = 1.0, x
    while n > 0:
        if n & 1:
            result = result * base
        base = base * base
        n >>= 1
    return result


@shape(*ROOTS)
def while_plain_clock(a):
    t, y = 0.0, a
    while t < 1.0:
        y = y - 0.1 * y * t
        t += 0.1
    return y


@shape(*ROOTS)
def while_until_time(a):
    t, y = 0.0, 1.0
    while t < a / 10:
        y = y + 0.1 * a * math.cos(t)
        t = t + 0.125
    return y


@shape(*ROOTS)
def bisection(a):
    lo, hi = 0.0 * a, a + 1
    while hi - lo > 1e-2:
        mid = 0.5 * (lo + hi)
        if mid * mid > a:
            hi = mid
        else:
            lo = mid
    return (hi - lo) * a


@shape(*ROOTS)
def fixed_point_swapping(a):
    x, y = a, 1.0
    while abs(x - y) > 1e-9:
        x, y = 0.5 * (x + y), 2 * x * y / (x + y)
    return x + 2 * y


@shape(*ROOTS)
def agm(a):
    x, y = a, 1.0
    while abs(x - y) > 1e-9:
        x, y = (x + y) / 2, np.sqrt(x * y)
    return x


@shape(*ROOTS)
def euclid(a):
    x, y = a * 10, 7.37
    while y > 0.5:
        x, y = y, x - y * np.floor(x / y)
    return x + a


@shape(V3, -V3, V3 * 4, V3 * 0.1)
def while_on_norm(x):
    y = x
    while np.sum(y * y) > 0.5:
        y = y * 0.6
    return np.sum(y * x)


@shape(V3, -V3, V3 * 4, V3 * 0.1)
def while_array_in_place(x):
    y = x.copy()
    while np.sum(y * y) > 0.5:
        y[0] = y[0] * 0.5
        y[1:] *= 0.6
    return np.sum(y * x)


@shape(V3, -V3, V3 * 4, V3 * 0.1)
def while_view_in_place(x):
    y = x.copy()
    head = y[:2]
    while np.sum(y * y) > 0.5:
        head *= 0.5
        y *= 0.9
    head += 1
    return np.sum(y * x)


@shape(V3, -V3, V3 * 4, V3 * 0.1)
def while_filling(x):
    out = np.zeros_like(x)
    k = 0
    while k < len(x):
        out[k] = x[k] ** 2 * k
        k += 1
    return np.sum(out)


@shape(M2, M2 * 3, M2 / 4, M2 + M2[::-1])
def power_iteration(a):
    v = np.array([1.0, 0.5])
    old = v * 0
    while np.max(np.abs(v - old)) > 1e-9:
        old = v
        v = a @ v
        v = v / np.sqrt(v @ v)
    return v @ a @ v


@shape(*ROOTS)
def while_with_tuple(a):
    s = (a, 1.0, 0)
    while s[0] > 1.5:
        s = (s[0] * 0.5, s[1] + s[0], s[2])
    return s[0] * s[1]


@shape(*ROOTS)
def while_with_list(a):
    s = [a, 1.0]
    while s[0] > 1.5:
        s[0], s[1] = s[0] * 0.5, s[1] + s[0]
    return s[0] * s[1]


@shape(*ROOTS)
def nested_while(a):
    x, y = a, 1.0
    while x > 1.2:
        x = x * 0.7
        z = x
        while z > 0.5:
            z = z * 0.6
        y = y + z
    return y * x


@shape(*ROOTS)
def for_in_while(a):
    x, y = a, 1.0
    while x > 1.2:
        for _ in range(5):
            x = x * 0.95
        y = y + x
    return y * x


@shape(*ROOTS)
def while_in_for(a):
    y = a
    for i in range(6):
        z = a + i
        while z > 1.0:
            z = z * 0.5
        y = y * z
    return y


@shape(*ROOTS)
def while_in_for_carry(a):
    y = a
    for _ in range(5):
        y = y * 3
        while y > 1.0:
            y = y * 0.45
    return y * a


@shape(*ROOTS)
def two_whiles(a):
    x, y = a, a
    while x > 1.5:
        x = x * 0.5
    while y < 4.0:
        y = y * 1.5
    return x * y


@shape(*ROOTS)
def while_then_branch(a):
    x = a
    while x > 1.5:
        x = x * 0.5
    if x > 1:
        return x * x
    return -x


@shape(*ROOTS)
def branch_then_while(a):
    x = a * 2 if a > 2 else a
    while x > 1.5:
        x = x * 0.5
    return x * x


@shape(*ROOTS)
def while_aliases(a):
    x = y = a
    while x > 1.5:
        x = x * 0.5
    return x * y


@shape(*ROOTS)
def while_keeps_the_last(a):
    x, last = a, a
    while x > 1.5:
        last = x
        x = x * 0.5
    return x * last


@shape(*ROOTS)
def while_keeps_two(a):
    x, p, q = a, 0.0, 0.0
    while x > 1.5:
        p, q = q, x
        x = x * 0.5
    return x + p * 2 + q * 3


@shape(*ROOTS)
def while_first_differs(a):
    x, first = a, True
    while x > 1.5:
        x = x * 0.25 if first else x * 0.5
        first = False
    return x * a


@shape(*ROOTS)
def while_none_at_first(a):
    x, best = a, None
    while x > 1.5:
        best = x if best is None else best + x
        x = x * 0.5
    return x if best is None else best * x


@shape(*ROOTS)
def while_inner_counter_of_outer(a):
    y = a
    for i in range(5):
        j = i
        while y > 1.0:
            y = y * 0.5
            j = j + 1
            if j > 6:
                y = y + 0.3
        y = y + j
    return y


@shape(*ROOTS)
def while_counter_indexes(a):
    weights = [0.5, 0.6, 0.7, 0.4, 0.5, 0.3, 0.5, 0.2, 0.2]
    x, k = a, 0
    while x > 1.5:
        x = x * weights[k]
        k += 1
    return x


@shape((np.abs(V4) + 2, 30.0), (np.abs(V4) + 1, 100.0), (V4, 1.0), (np.abs(V4) + 1.5, 3.0))
def while_counter_indexes_array(x, limit):
    y, k = 1.01, 0
    while y < limit and k < 4:
        y = y * x[k]
        k += 1
    return y + np.sum(x)


@shape(*ROOTS)
def while_text_of_counter(a):
    x, k, names = a, 0, {"w0": 0.5, "w1": 0.4, "w2": 0.6}
    while x > 1.5:
        x = x * names[f"w{k % 3}"]
        k += 1
    return x


@shape(*ROOTS)
def while_float_counter(a):
    x, k = a, 1.0
    while x > 1.5:
        x = x * 0.5
        k = k * 2.0
    return x * k


@shape(*ROOTS)
def while_assert(a):
    x, k = a, 0
    while x > 1.5:
        x = x * 0.5
        k += 1
        assert k < 50
    return x


@shape(*ROOTS)
def while_try(a):
    x, k = a, 0
    while x > 1.5:
        try:
            x = x * [0.5, 0.4][k]
        except IndexError:
            x = x * 0.1
        k += 1
    return x


# -- for -----------------------------------------------------------------------------------------------------------

COUNTS = tuple((0.9, n) for n in (0, 1, 2, 3, 4, 5, 100, 5))


@shape(*COUNTS)
def repeat(x, n):
    y = x
    for _ in range(n):
        y = np.sin(y) * x
    return y


@shape(*COUNTS)
def sum_of_powers(x, n):
    y, p = 0.0, 1.0
    for i in range(n):
        y = y + p * (i + 1)
        p = p * x
    return y + x


@shape(*COUNTS)
def sum_from_int_zero(x, n):
    y = 0
    for i in range(n):
        y = y + x**2 / (i + 1)
    return y * x + x


@shape(*COUNTS)
def fibonacci(x, n):
    a, b = 0.0, x
    for _ in range(n):
        a, b = b, 0.5 * (a + b)
    return a + b


@shape(*COUNTS)
def fibonacci_ints(x, n):
    a, b = 0, 1
    for _ in range(min(n, 10)):
        a, b = b, a + b
    return a * x


@shape(*COUNTS)
def rotate_three(x, n):
    a, b, c = x, x * 2, x * 3
    for _ in range(n):
        a, b, c = b, c, a
    return a + 10 * b + 100 * c


@shape(*COUNTS)
def clock(x, n):
    t, y, dt = 0.0, x, 0.01
    for _ in range(n):
        y = y + dt * np.cos(t) * y
        t = t + dt
    return y * t + x


@shape(*COUNTS)
def clock_in_math(x, n):
    t, y = 0.0, x
    for _ in range(n):
        y = y + 0.01 * math.cos(t) * y
        t += 0.01
    return y


@shape(*COUNTS)
def counter(x, n):
    k, y = 0, x
    for _ in range(n):
        k += 1
        y = y + x / k
    return y * k


@shape(*COUNTS)
def index_in_arithmetic(x, n):
    y = x
    for i in range(1, n + 1):
        y = y * (1 + x / i**2) - 0.1 / (i + 1)
    return y


@shape(*COUNTS)
def index_backwards(x, n):
    y = x
    for i in range(n, 0, -1):
        y = 1 / (i + y)
    return y


@shape(*COUNTS)
def index_with_step(x, n):
    y = x
    for i in range(3, 3 + 7 * n, 7):
        y = y * 0.9 + x / i
    return y


@shape(*COUNTS)
def index_after_the_loop(x, n):
    i = -1
    y = x
    for i in range(n):
        y = y * 0.5
    return y + i * x


@shape(*COUNTS)
def index_decides(x, n):
    y = x
    for i in range(n):
        if i % 2 == 0:
            y = np.sin(y)
        else:
            y = y * x
    return y


@shape(*COUNTS)
def index_first_decides(x, n):
    y = x
    for i in range(n):
        y = y * 0.9 if i else y + 2
    return y


@shape(*COUNTS)
def index_last_decides(x, n):
    y = x
    for i in range(n):
        y = np.cos(y)
        if i == n - 1:
            y = y * 7
    return y


@shape(V4, -V4, V4 * 2)
def index_of_array(x):
    y = 0.0
    for i in range(len(x)):
        y = y * 0.5 + x[i] ** 2
    return y


@shape(V4, -V4, V4 * 2)
def neighbours(x):
    y = 0.0
    for i in range(1, len(x)):
        y = y + x[i] * x[i - 1] + x[-i]
    return y


@shape(*(np.linspace(0.1, 1, n) for n in (2, 3, 6, 9, 40, 6)))
def neighbours_of_many(x):
    y = 0.0
    for i in range(1, len(x)):
        y = y + x[i] * x[i - 1] + x[-i]
    return y


@shape(V4, -V4)
def slices_by_index(x):
    y = 0.0
    for i in range(len(x)):
        y = y + np.sum(x[: i + 1]) * x[i]
    return y


@shape(*((0.5 + np.zeros(n),) for n in (3, 5, 8)))
def matrix_by_indices(x):
    m = np.outer(x, x)
    y = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            y = y + m[i, j] * (i - j)
    return y + np.sum(x)


@shape((V4, 4), (V4, 5), (-V4, 7))
def index_of_a_list(x, n):
    weights = [0.1 * k for k in range(10)]
    y = x[0]
    for i in range(n):
        y = y * 0.5 + weights[i] * x[1]
    return y


@shape(({"w0": 1.5, "w1": 2.5, "w2": 0.5, "w3": -1.0, "w4": 2.0},))
def index_in_names(params):
    y = 1.0
    for i in range(5):
        y = np.tanh(params[f"w{i}"] * y + 0.1)
    return y


@shape(*COUNTS)
def index_in_a_list_of_lists(x, n):
    table = [[x * (i + j) for j in range(3)] for i in range(max(n, 1))]
    y = 0.0
    for i in range(n):
        for j in range(3):
            y = y + table[i][j] * (i + 1)
    return y


@shape(*COUNTS)
def list_times_index(x, n):
    y = x
    for i in range(min(n, 6)):
        y = y + x * len([0.0] * i)
    return y


@shape(*COUNTS)
def collected_and_summed(x, n):
    items = []
    for i in range(n):
        items.append(np.sin(x * i))
    return sum(items) + x


@shape(*COUNTS)
def collected_and_stacked(x, n):
    items, y = [x], x
    for _ in range(n):
        y = y * 0.9 + 0.1
        items.append(y)
    return np.sum(np.stack(items) ** 2)


@shape(*COUNTS)
def collected_in_an_array(x, n):
    items, y = [], x
    for _ in range(n + 1):
        y = y * 0.9 + 0.1
        items.append(y)
    return np.sum(snp.array(items) * x)


@shape(*COUNTS)
def trajectory(x, n):
    path = snp.zeros(n + 1)
    path[0] = x
    for i in range(n):
        path[i + 1] = path[i] + 0.1 * np.sin(path[i])
    return np.sum(path)


@shape(*COUNTS)
def trajectory_like(x, n):
    path = np.zeros(n + 1, like=x) if isinstance(x, np.ndarray) else snp.zeros(n + 1)
    y = x
    for i in range(n + 1):
        path[i] = y
        y = y * 0.9
    return path @ path


@shape(V4, -V4, np.linspace(0, 1, 12))
def in_place_scan(x):
    y = x.copy()
    for i in range(1, len(y)):
        y[i] += 0.5 * y[i - 1]
    return np.sum(y**2)


@shape(V4, -V4, np.linspace(0, 1, 12))
def in_place_view(x):
    y = x.copy()
    half = y[::2]
    for i in range(5):
        half *= 0.9
        y += 0.1 * i
    half += 2.0
    return np.sum(y * x)


@shape(V4, -V4)
def rows_written(x):
    m = snp.zeros((5, 4))
    for i in range(5):
        m[i] = x * (i + 1)
        m[i, 0] += 1.0
    return np.sum(m**2)


@shape(V4, -V4)
def columns_read(x):
    m = np.outer(x, x + 1)
    y = 0.0
    for j in range(4):
        y = y + np.sum(m[:, j]) * j
    return y


@shape(*COUNTS)
def tuple_state(x, n):
    s = (x, 1.0)
    for _ in range(n):
        s = (s[0] + 0.1 * s[1], s[1] - 0.1 * s[0])
    return s[0] * s[1]


@shape(*COUNTS)
def list_state(x, n):
    s = [x, 1.0]
    for _ in range(n):
        s = [s[0] + 0.1 * s[1], s[1] - 0.1 * s[0]]
    return s[0] * s[1]


@shape(*COUNTS)
def list_state_in_place(x, n):
    s = [x, 1.0]
    for _ in range(n):
        s[0] = s[0] + 0.1 * s[1]
        s[1] = s[1] - 0.1 * s[0]
    return s[0] * s[1]


@shape(*COUNTS)
def dict_state(x, n):
    s = {"x": x, "v": 1.0}
    for _ in range(n):
        s = {"x": s["x"] + 0.1 * s["v"], "v": s["v"] - 0.1 * s["x"]}
    return s["x"] * s["v"]


@shape(*COUNTS)
def object_array_state(x, n):
    s = np.array([x, x * x, 1.0])
    for _ in range(n):
        s = 0.5 * s + np.array([s[1], s[2], s[0] * x])
    return s[0] + s[1] * s[2]


@shape(*COUNTS)
def attribute_state(x, n):
    c = Counter(x)
    for _ in range(n):
        c.step()
    return c.x * c.steps + x


def rk4(f, y, h):
    k1 = f(y)
    k2 = f([a + h / 2 * b for a, b in zip(y, k1, strict=True)])
    k3 = f([a + h / 2 * b for a, b in zip(y, k2, strict=True)])
    k4 = f([a + h * b for a, b in zip(y, k3, strict=True)])
    return [a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4, strict=True)]


@shape(*COUNTS)
def runge_kutta(x, n):
    y = [x, 0.0]
    for _ in range(n):
        y = rk4(lambda s: [s[1], -np.sin(s[0])], y, 0.1)
    return y[0] + y[1]


@shape((V4, 0), (V4, 3), (V4, 8), (V4, 5))
def array_carry(x, n):
    y = x
    for i in range(n):
        y = np.tanh(y) + 0.1 * x * i
    return np.sum(y)


@shape((V4, 0), (V4, 3), (V4, 8))
def shape_changes(x, n):
    y = x
    for _ in range(n):
        y = np.concatenate([y[:2] * 0.5, y])
    return np.sum(y**2)


@shape((V4, 4), (V4, 6))
def shape_changes_once(x, n):
    y = 1.0
    for _ in range(n):
        y = 0.5 * y + x
    return np.sum(y**2)


@shape((V4, 4), (V4, 6))
def broadcasts_slowly(x, n):
    y = np.ones((1, 1))
    for i in range(n):
        y = y * 0.5 + (x if i == 2 else 1.0)
    return np.sum(y * x)


@shape(*COUNTS)
def invariant_code(x, n):
    y = x
    for _ in range(n):
        scale = np.exp(-x) * 0.5
        y = y * scale + 1
    return y


@shape(*COUNTS)
def overwritten_every_time(x, n):
    y, step = x, 0.0
    for i in range(n):
        step = np.cos(y / (i + 1))
        y = y + 0.1 * step
    return y * step


@shape(*COUNTS)
def unused_inside(x, n):
    y = x
    for i in range(n):
        _ = np.exp(y) * i
        y = y * 0.9
    return y


@shape(*COUNTS)
def pass_only(x, n):
    for _ in range(n):
        pass
    return x * x


@shape(*COUNTS)
def for_else(x, n):
    y = x
    for i in range(n):
        if i > 50:
            break
        y = y * 0.9
    else:
        y = y + 3
    return y


@shape(*ROOTS)
def for_break_on_value(a):
    x = a
    for _ in range(30):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-9:
            break
        x = new
    return x


@shape(*ROOTS)
def for_break_else(a):
    x = a
    for _ in range(5):
        x = 0.5 * (x + a / x)
        if abs(x * x - a) < 1e-9:
            break
    else:
        x = x * 2
    return x


@shape(*ROOTS)
def for_break_counting(a):
    x = a
    for i in range(30):
        x = 0.5 * (x + a / x)
        if abs(x * x - a) < 1e-9:
            break
    return x * i


@shape(*ROOTS)
def for_return(a):
    x = a
    for _ in range(30):
        x = 0.5 * (x + a / x)
        if abs(x * x - a) < 1e-9:
            return x * x * x
    return x


@shape(*((x, n) for x in (0.9, 1.5, -0.4) for n in (3, 6)))
def for_continue(x, n):
    y = x
    for i in range(n):
        if y > 2:
            continue
        y = y * 1.5 + i
    return y * x


@shape((0.9, 5), (1.5, 5), (-0.4, 5))
def for_branch_on_carry(x, n):
    y = x
    for _ in range(n):
        y = y * 2 if y < 1 else y - 0.75
    return y * x


@shape(*COUNTS)
def for_in_for(x, n):
    y = x
    for i in range(n if n < 50 else 6):
        for j in range(i):
            y = y * 0.99 + 0.01 * i * j
    return y


@shape(*COUNTS)
def for_in_for_fixed(x, n):
    y = x
    for i in range(n if n < 50 else 6):
        z = x
        for j in range(5):
            z = np.sin(z + j * 0.1) + i
        y = y * 0.5 + z
    return y


@shape(*COUNTS)
def for_in_for_short(x, n):
    y = x
    for i in range(n if n < 50 else 6):
        for j in range(2):
            y = y * 0.9 + j * i
    return y


@shape(*COUNTS)
def three_deep(x, n):
    y = x
    for i in range(min(n, 4)):
        for j in range(4):
            for k in range(4):
                y = y * 0.99 + 0.01 * np.sin(y * (i + j + k))
    return y


@shape(V4, -V4, V4 * 2)
def over_the_elements(x):
    y = 0.5
    for v in x:
        y = np.sin(y + v)
    return y


@shape(np.outer(V4, V4), np.outer(V3, V4), np.ones((9, 4)))
def over_the_rows(x):
    y = np.zeros(4)
    for row in x:
        y = np.tanh(y + row)
    return np.sum(y)


@shape((V4, V4 * 2), (-V4, V4), (np.ones(7), np.arange(7.0)))
def over_zip(x, w):
    y = 0.0
    for a, b in zip(x, w, strict=True):
        y = y * 0.5 + a * b
    return y


@shape(V4, -V4, np.linspace(0, 1, 9))
def over_enumerate(x):
    y = 0.0
    for i, v in enumerate(x):
        y = y * 0.5 + v * (i + 1)
    return y


@shape(V4, -V4, np.linspace(0, 1, 9))
def over_enumerate_from_one(x):
    y = 0.0
    for i, v in enumerate(x, start=1):
        y = y * 0.5 + v / i
    return y


@shape(V4, -V4, np.linspace(0, 1, 9))
def over_reversed(x):
    y = 0.0
    for v in reversed(x):
        y = y * x[0] + v
    return y


@shape(V4, -V4, np.linspace(0, 1, 9))
def over_reversed_range(x):
    y = 0.0
    for i in reversed(range(len(x))):
        y = y * 0.5 + x[i]
    return y


@shape(V4, -V4, np.linspace(0, 1, 9))
def over_slices(x):
    y = 0.0
    for a, b in zip(x[:-1], x[1:], strict=True):
        y = y + (b - a) ** 2 * a
    return y


@shape(V4, -V4)
def over_the_transpose(x):
    y = 0.0
    for column in np.outer(x, x[:3]).T:
        y = y + np.sum(column) ** 2
    return y


@shape(V4, -V4)
def over_nested_zip(x):
    y = 0.0
    for i, (a, b) in enumerate(zip(x, np.cos(x), strict=True)):
        y = y + i * a * b
    return y


@shape(V4, -V4)
def over_a_plain_list(x):
    y = x[0]
    for w in [0.5, 0.25, 2.0, 1.0, 0.5]:
        y = np.sin(w * y) + x[1]
    return y


@shape(V4, -V4)
def over_a_plain_array(x):
    y = x[0]
    for w in np.linspace(0, 1, 6):
        y = np.sin(w * y) + x[1]
    return y


@shape(V4, -V4)
def over_a_tuple_of_functions(x):
    y = x[0]
    for f in (np.sin, np.cos, np.tanh, np.exp, np.sin):
        y = f(y)
    return y


@shape(V4, -V4)
def over_items(x):
    table = {"a": x[0], "b": x[1], "c": x[2]}
    y = 0.0
    for key, v in table.items():
        y = y + v * (2 if key == "b" else 1) * v
    return y


@shape(V4, -V4)
def loop_variable_shadows(x):
    y = x[0]
    for x_i in range(5):
        x_i = x_i * y
        y = y + 0.1 * x_i
    return y


@shape(V4, -V4)
def view_of_the_state(x):
    y = x.copy()
    for _ in range(5):
        head = y[:2]
        head += 0.1
        y[2:] = y[:2] * 2
    return np.sum(y * y)


@shape(V4, -V4)
def state_kept_in_a_list(x):
    y, kept = x[0], []
    for i in range(6):
        y = np.sin(y + i)
        if i % 2:
            kept.append(y)
    return sum(kept) * len(kept) + y


@shape(V4, -V4)
def deleted_inside(x):
    y = x[0]
    for i in range(6):
        t = y * i
        y = y * 0.5 + t * 0.01
        del t
    return y


@shape(V4, -V4)
def born_in_the_third(x):
    y = x[0]
    for i in range(8):
        if i == 2:
            z = y
        y = y * 0.9
    return y * z


@shape(*COUNTS)
def alternating_sign(x, n):
    y, sign = 0.0, 1
    for i in range(n):
        y = y + sign * x ** (i % 3) / (i + 1)
        sign = -sign
    return y + x


@shape(*COUNTS)
def running_max(x, n):
    y, best = x, x
    for _ in range(n):
        y = np.sin(y) * 1.1
        best = np.maximum(best, y)
    return best


@shape(*COUNTS)
def running_builtin_max(x, n):
    y, best = x, x
    for _ in range(min(n, 5)):
        y = np.sin(3 * y)
        best = max(best, y)
    return best * x


@shape(*COUNTS)
def helper_in_a_loop(x, n):
    def step(y, i):
        t = y * i
        return y + 0.01 * np.sin(t)

    y = x
    for i in range(n):
        y = step(y, i)
    return y


@shape(*COUNTS)
def loop_in_a_helper(x, n):
    return fibonacci(x, n) * repeat(x, n)


@shape(*COUNTS)
def gradient_inside(x, n):
    y = x
    for _ in range(min(n, 8)):
        y = y - 0.1 * grad(lambda v: np.sin(v) * v**2)(y)
    return y


@shape(*COUNTS)
def loop_inside_a_gradient(x, n):
    return grad(lambda v: repeat(v, min(n, 8)) * v)(x) * x


@shape(*ROOTS)
def while_inside_a_gradient(a):
    return grad(newton)(a) * a


@shape(*ROOTS)
def newton_by_grad(a):
    def f(x):
        return x**3 - a

    x = a
    while abs(f(x)) > 1e-9:
        x = x - f(x) / grad(f)(x)
    return x


@shape((0.5, 4), (0.7, 6))
def unrolled_optimizer(rate, n):
    def loss(w):
        return np.sum((w**2 - V4) ** 2)

    w, m = np.ones(4), np.zeros(4)
    for _ in range(n):
        m = 0.5 * m + grad(loss)(w)
        w = w - 0.02 * rate * m
    return loss(w)


@shape((0.9, np.float32(2.0)), (1.5, np.float32(3.0)))
def float32_mixed(x, f):
    y = x
    for _ in range(5):
        y = y * 0.5 + f * np.float64(0.1)
    return y * y


@shape(*COUNTS)
def complex_carry(x, n):
    z = x * (1 + 0.5j)
    for _ in range(n):
        z = z * z * 0.3 + 0.1j
    return np.real(z) + np.abs(z)


@shape(*COUNTS)
def turns_complex(x, n):
    z = x
    for _ in range(n):
        z = z * (0.5 + 0.5j) + 1
    return np.real(z * np.conj(z))


@shape(*COUNTS)
def python_float_becomes_numpy(x, n):
    y = 1.0
    for _ in range(n):
        y = y * y * 0.5 + 0.1 * np.sin(x)
    return y


@shape(*COUNTS)
def divides_python_floats(x, n):
    y = 1.0
    for i in range(n):
        y = x / (y + i)
    return y


@shape(V4, -V4)
def clipped_steps(x):
    y = x
    for _ in range(6):
        y = np.clip(y * 1.7, -2.0, 2.0) + 0.01 * x
    return np.sum(y)


@shape(np.eye(3), np.eye(3) + 0.1)
def matrix_products(a):
    m = np.eye(3)
    for _ in range(6):
        m = m @ a * 0.9
    return np.trace(m) + m[0, 1]


@shape(np.abs(M2) + np.eye(2), M2 * 2)
def newton_schulz(a):
    x = np.eye(2) * 0.2
    for _ in range(8):
        x = 2 * x - x @ a @ x
    return np.sum(x)


@shape(np.linspace(0, 1, 8), np.linspace(1, 2, 8))
def heat_equation(u):
    for _ in range(10):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return np.sum(u**2)


@shape(np.linspace(0, 1, 8), np.linspace(1, 2, 8))
def heat_equation_in_place(u):
    u = u.copy()
    for _ in range(10):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


# -- plain numbers that go round -----------------------------------------------------------------------------------

POINTS = (1.3, 0.7, 0.05, 5.1, 40.3)


@shape(*POINTS)
def types_of_plain_numbers(x):
    t, y = 0.0, x
    for i in range(5):
        if type(t) is float:
            y = y * 0.5
        if type(i) is int:
            y = y * 0.9
        t = t + 0.1
    return y


@shape(*POINTS)
def matrices_of_plain_numbers(x):
    t, y = 0.5, x
    for i in range(5):
        m = np.array([[1.0, t], [t, 2.0]])
        y = y * np.linalg.inv(m)[0, 1] + np.linalg.det(np.array([[t, 1.0], [0.0, 2.0]]))
        t = t + 0.1
    return y


@shape(*POINTS)
def plain_numbers_into_a_plain_array(x):
    b = np.zeros(6)
    t, y = 0.5, x
    for i in range(5):
        b[i] = t
        b[i + 1] = np.sin(t)
        t = t * 0.9
        y = y * b[i]
    return y + b.sum()


@shape(*POINTS)
def plain_numbers_as_keys(x):
    d = {0.0: 2.0, 0.5: 3.0, 1.0: 4.0, 1.5: 0.2, 2.0: 0.7}
    t, y = 0.0, x
    for i in range(5):
        y = y * d[t]
        t += 0.5
    return y


@shape(*POINTS)
def plain_numbers_as_text(x):
    t, y = 0.0, x
    names = {"0.00": 2.0, "0.50": 3.0, "1.00": 4.0, "1.50": 0.2, "2.00": 0.7}
    for i in range(5):
        y = y * names[f"{t:.2f}"]
        t += 0.5
    return y


@shape(*POINTS)
def counters_repeat_lists(x):
    k, y = 0, x
    for i in range(5):
        k += 1
        y = y + len([0] * k) + len("a" * k) + sum([1.0] * k) * x
    return y


@shape(*POINTS)
def swapped_alias(x):
    a = b = x
    c = [a]
    for i in range(6):
        a, b = b * 0.5, a
    return a + 2 * b + 3 * c[0]


@shape(*POINTS)
def plain_numbers_as_defaults(x):
    t, y = 1.0, x
    for i in range(5):
        f = lambda v, t=t: v * t
        y = f(y)
        t = t * 0.9
    return y


@shape(*POINTS)
def plain_numbers_kept(x):
    t, ts, y = 1.0, [], x
    for i in range(5):
        ts.append(t)
        t = t * 0.9
    w = np.array(ts)
    return np.sum(w * x) + np.max(w) * y


@shape(*POINTS)
def math_of_plain_numbers(x):
    t, y = 1.0, x
    for i in range(5):
        y = y * math.exp(-t) + math.floor(t * 3) + round(t)
        t = t * 0.9
    return y


@shape(*POINTS)
def plain_numbers_compared(x):
    last, t, y = None, 1.0, x
    for i in range(6):
        if last is not None and t < last:
            y = y * 0.5
        last = t
        t = t * 0.9
    return y


@shape(*POINTS)
def break_on_a_plain_number(x):
    t, y = 0.0, x
    for i in range(100):
        t += 0.1
        y = y * 0.99
        if t > 1:
            break
    return y + i + t


@shape(*POINTS)
def true_break_on_a_plain_number(x):
    t, y = 0.0, x
    while True:
        t += 0.1
        y = y * 0.99
        if t > 1:
            break
    return y * t


@shape(*POINTS)
def over_two_ranges(x):
    y = x
    for i, j in zip(range(5), range(10, 0, -2), strict=True):
        y = y + i * j * x / (j + 1)
    return y


@shape(*POINTS)
def numpy_number_local(x):
    t, y = np.float64(1.0), x
    for i in range(5):
        y = y * np.exp(-t)
        t = t * 0.5
    return y * t.item()


@shape(*POINTS)
def complex_local(x):
    z, y = 1j, x
    for i in range(5):
        z = z * (0.5 + 0.1j)
        y = y + (z * x).real + abs(z)
    return y


@shape(*POINTS)
def function_made_inside(x):
    t, y = 0.5, x
    for i in range(5):

        def g(v):
            return v * t + i

        y = g(y)
        t = t + 0.1
    return y + t


@shape(*POINTS)
def loops_in_comprehensions(x):
    return sum(sum(x * i * j for j in range(5)) for i in range(6))


@shape(*POINTS)
def list_changed_by_a_helper(x):
    s = [x, 0]

    def go(o):
        while o[0] > 0.1:
            o[0] = o[0] * 0.5
            o[1] = o[1] + 1

    go(s)
    return s[0] * s[1]


@shape(*POINTS)
def helper_returns_a_counter(x):
    def go(v):
        n = 0
        while v > 0.1:
            v, n = v * 0.5, n + 1
        return v, n

    v, n = go(x)
    return v * n + go(x * 3)[1]


@shape(*POINTS)
def array_changed_by_a_helper(x):
    s = np.stack([x, x * 2])
    t = s[:1]

    def go(o):
        while o[0] > 0.1:
            o *= 0.5

    go(s)
    t += 1
    return np.sum(s)


@shape(*POINTS)
def table_filled_by_rows(x):
    table = [[0.0] * 4 for _ in range(3)]
    for i in range(1, 3):
        for j in range(1, 4):
            table[i][j] = x * j + min(table[i - 1][j], table[i][j - 1], table[i - 1][j - 1])
            table[i - 1][j] += 0.5 * x
            table[i][0], table[0][0] = table[i][j], x
    return sum(sum(row) for row in table)


TABLE = [[0.0] * 3 for _ in range(3)]


@shape(*POINTS)
def table_outside_filled_by_rows(x):
    for i in range(3):
        TABLE[i][i - 1] = i * 2.0
    return x * TABLE[1][0] + TABLE[2][1]


@shape(*POINTS)
def list_made_anew(x):
    y, acc = x, []
    while y > 0.1:
        y = y * 0.5
        acc = acc + [y]
    return sum(acc)


@shape(*POINTS)
def text_flips(x):
    y, mode = x, "a"
    while y > 0.1:
        mode = "b" if mode == "a" else "a"
        y = y * 0.5
    return y if mode == "a" else 2 * y


@shape(*POINTS)
def view_of_what_an_open_loop_writes(x):
    p = x
    w = np.stack([x, x, x * 0.5])
    head = w[:2]
    for _ in range(12):
        if p < 0.3:
            break
        p = p * 0.5
        w[0] = w[0] * 0.5
    for _ in range(5):
        head *= 0.9
    return np.sum(w) + p


@shape(*POINTS)
def view_handed_to_a_helper(x):
    w = np.stack([x, x * 1.9, x * 3])

    def halve(v):
        while v[0] > 0.1:
            v *= 0.5

    halve(w[1:])
    return np.sum(w * w)


@shape(*POINTS)
def array_written_behind_a_call(x):
    w = np.stack([x, x * 2])

    def step(v):
        w[0] = w[0] * 0.7
        return v * 0.5

    y = x
    while y > 0.1:
        y = step(y)
    return np.sum(w) * y


def run_until(step, y):
    while y > 0.1:
        y = step(y)
    return y


@shape(*POINTS)
def array_written_behind_two_calls(x):
    w = np.stack([x, x * 2])

    def step(v):
        w[0] = w[0] * 0.7
        return v * 0.5

    return run_until(step, x) * np.sum(w)


@shape(*POINTS)
def settles_in_the_second(x):
    p, q, r = x * 1.0, x * 0.5, 1.0
    for _ in range(5):
        q = r
        r = p
        r = 0.6 * r + 0.1
    return p + 2 * q + 3 * r


# -- loops around what changes out of their sight -------------------------------------------------------------------


def shrunk_by(step, x):
    while x > 1e-3:
        x = step(x)
    return x


def plain_array():
    """Seven ones, then zeros; not made of anything from outside."""
    array = np.zeros(40)
    array[:7] = 1.0
    return array


def moved(array):
    return np.roll(array, -1)


def after(change, array):
    first = array[0]
    change(array)
    return first


def bits():
    return [1] * 7 + [0] * 40


def sent():
    yield from bits()


def using(use, state):
    return lambda: use(state)


# how a function that gives seven ones, and then zeros, is made
HIDDEN_STATE = {
    "seeded": lambda: using(lambda rng: rng.integers(0, 2), np.random.default_rng(4)),
    "next": lambda: using(next, iter(bits())),
    "__next__": lambda: iter(bits()).__next__,
    "send": lambda: functools.partial(sent().send, None),
    "count": lambda: using(lambda count: next(count) < 7, itertools.count()),
    "sum": lambda: using(lambda bits: sum(itertools.islice(bits, 1)), iter(bits())),
    "zip": lambda: using(lambda bits: next(zip([1], bits, strict=False))[1], iter(bits())),
    "pop": lambda: using(lambda bits: bits.pop(0), bits()),
    "popleft": lambda: deque(bits()).popleft,
    "bytearray": lambda: using(lambda bits: bits.pop(0), bytearray(bits())),
}
WRITES = {
    "item": lambda a: a.__setitem__(slice(None), moved(a)),
    "view": lambda a: np.copyto(a[None, :], moved(a)[None, :]),
    "flat": lambda a: a.flat.__setitem__(slice(None), moved(a)),
    "put": lambda a: np.put(a, np.arange(len(a)), moved(a)),
    "place": lambda a: np.place(a, np.ones(len(a), bool), moved(a)),
    "put_along_axis": lambda a: np.put_along_axis(a, np.arange(len(a)), moved(a), 0),
    "at": lambda a: np.add.at(a, np.arange(len(a)), moved(a) - a),
    "out": lambda a: np.add(moved(a), 0, out=a),
    "third": lambda a: np.add(moved(a), 0, a),
    "method": lambda a: moved(a).clip(-1, 2, out=a),
    "round": lambda a: np.round(moved(a), 3, a),
    "in place": lambda a: a.__iadd__(moved(a) - a),
    "buffer": lambda a: np.copyto(np.frombuffer(a.data), moved(a)),
}
for name, write in WRITES.items():
    HIDDEN_STATE[name] = lambda write=write: using(lambda array: after(write, array), plain_array())


@pytest.mark.parametrize("make", HIDDEN_STATE.values(), ids=HIDDEN_STATE)
def test_loops_around_hidden_state(make):
    """What is the same in the iterations that were seen is not so later: the loop must not be taken for a uniform one."""

    def fun(x):
        draw = make()
        return shrunk_by(lambda x: x * (0.1 + 0.1 * draw()), x)

    derivative = value_and_grad(fun)
    for x in (10.0, 10.0, 10.0, 1e9, 1e9, 0.002):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert slope == pytest.approx(value / x, rel=1e-12)


def halved(a):
    for _ in range(1):
        a[0] *= 0.5
    return a[0]


@shape(V3, V3 + 1, -V3)
def number_of_its_own_returned(x):
    s, a = 0.5, np.ones(3)

    def own():
        "What the function around has, by now."
        return s

    s += own()
    other = lambda: a
    a = a + other()
    for v in x:
        s += 0.5 * v
        s *= own()
    return s * x[0] + np.sum(a * x)


@shape(V3, V3 + 1, -V3)
def summed_in_loops_with_helpers(x):
    t = 0.0
    for k in range(3):
        for _ in range(k, 3):
            t = t + sum(map(abs, [1.0]))
            v = x[0]
            with suppress(KeyError):
                v = halved([v])
            t = t + v
    return t


STEP = 0.25


def stepped(t):
    return 1 if t > 1.0 else 0.5 * STEP


@shape(V3, V3 + 0.65, -V3, 1.05 * V3[::-1], 2.1 * V3, V3 + 0.85)
def raised_at_a_place(x):
    v = x[-1]
    for _ in range(int(abs(x[0]) * 5) % 4):
        v = 0.6 * v + 0.3 * x[0]
        try:
            "pqr"[np.argsort(x)[0]]
            raise KeyError(v < x[2])
        except KeyError:
            pass
        finally:
            v -= 0.2 * stepped(0.5)
    return v


class Doubtful:
    def __init__(self, a):
        self.a = a

    def __bool__(self):
        return self.a > 0


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_truth_is_pythons(mode):
    with pytest.raises(TypeError, match="__bool__ should return bool, returned numpy"):
        grad(lambda x: x[0] if Doubtful(x[1]) else -x[0], mode=mode)(V3 + 2)


@pytest.mark.parametrize(("function", "calls"), SHAPES)
def test_shape(function, calls):
    derivative = value_and_grad(function)
    expected = {}
    for _ in range(3):
        for number, args in enumerate(calls):
            value, slope = derivative(*copied(args))
            if number not in expected:
                dynamic = value_and_grad(function, mode="dynamic")(*copied(args))
                assert dynamic[0] == pytest.approx(function(*copied(args)), rel=1e-12)
                if not isinstance(args[0], dict) and args[0] is not NO_SLOPE:
                    np.testing.assert_allclose(dynamic[1], slopes(function, args), rtol=2e-5, atol=1e-6)
                expected[number] = dynamic
            assert value == pytest.approx(expected[number][0], rel=1e-10)
            if isinstance(slope, dict):
                assert slope == pytest.approx(expected[number][1], rel=1e-9)
            else:
                np.testing.assert_allclose(slope, expected[number][1], rtol=1e-7, atol=1e-11)


def quotient(t):
    try:
        return t / (t - 0.5)
    except ZeroDivisionError:
        return 7.0 * t


def quotients(t):
    total = 0.0
    for k in range(4):
        try:
            total += t * t * t / (t * k)
        except (ZeroDivisionError, ValueError) as error:
            total += 10 * t * len(str(error))
        finally:
            total = total + t * t
    return total


def inverse(t):
    return 1 / t


def called(t):
    try:
        return inverse(t) % 3.0
    except ZeroDivisionError:
        return 3 * t


CAUGHT = [(quotient, {0.5: 7.0}), (quotients, {}), (called, {0.0: 3.0})]  # with the slopes where nothing is divided


@pytest.mark.parametrize(("fun", "slopes_there"), CAUGHT)
def test_caught_divisions_by_zero_are_compiled(fun, slopes_there):
    """Whether Python's division raises is a branch like any other."""
    derivative = value_and_grad(fun)
    for t in (0.7, 0.7, 0.7, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.9, 0.5, 0.0):
        value, slope = derivative(t)
        assert value == pytest.approx(fun(t), rel=1e-12)
        if t:
            assert slope == pytest.approx(slopes_there.get(t, (fun(t + 1e-7) - fun(t - 1e-7)) / 2e-7), rel=1e-5)
        else:
            assert slope == slopes_there.get(t, slope)
    assert "  compiled;" in derivative.explain()


def records(t):
    Pair = namedtuple("Pair", "first second")
    pair = Pair(t, t**2)._replace(first=2 * t)
    return pair.first * pair.second


def memoized(t):
    @functools.cache
    def fibonacci(n):
        return t**n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    return fibonacci(9)


def own_class(t):
    class Vector:
        scale = 2.0

        def __init__(self, x, y):
            self.x, self.y = x, y

        @property
        def square(self):
            return self.scale * (self.x**2 + self.y**2)

    class Shifted(Vector):
        def __init__(self, x, y):
            super().__init__(x + 1, y)

    return Vector(t, 1.0).square * Shifted(t, t * t).square


def own_dataclass(t):
    @dataclass
    class Point:
        x: float
        y: float = 2.0

        def product(self):
            return self.x * self.y

    return Point(t).product() * replace(Point(t), y=t).product()


def own_abstract_class(t):
    class Shape(ABC):
        @abstractmethod
        def side(self, x): ...

        def area(self, x):
            return self.side(x) ** 2

    class Square(Shape):
        def side(self, x):
            return 3 * x

    return Square().area(t)


class Abstract(ABC):
    def __init__(self, value):
        self.value = value

    @abstractmethod
    def grown(self): ...


class Grown(Abstract):
    def grown(self):
        return self.value**3


def abstract_base(t):
    return Grown(2 * t).grown()


def own_sequence(t):
    class Chain:
        def __init__(self, value, rest=None):
            self.value, self.rest = value, rest

        def __iter__(self):
            here = self
            while here is not None:
                yield here.value
                here = here.rest

    return sum(Chain(t, Chain(t**2, Chain(3.0)))) * t


@pytest.mark.parametrize("fun", [records, memoized, own_class, own_dataclass, own_abstract_class, abstract_base, own_sequence])
def test_records_and_caches_made_inside_are_compiled(fun):
    derivative = value_and_grad(fun)
    for t in (0.7, 0.7, 0.7, 1.3):
        value, slope = derivative(t)
        assert value == pytest.approx(fun(t), rel=1e-12)
        assert slope == pytest.approx((fun(t + 1e-6) - fun(t - 1e-6)) / 2e-6, rel=1e-6)
    assert "  compiled;" in derivative.explain()


def own_dispatch(t):
    @functools.singledispatch
    def twice(x):
        return 0.0

    @twice.register
    def _(x: float):
        return 2 * x

    @twice.register(list)
    def _(x):
        return sum(twice(item) for item in x)

    return twice([t, t**2, "a"])


def test_annotations_of_functions_made_inside():
    """They are there for whom they tell something."""
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(own_dispatch, mode=mode)
        assert [derivative(0.7) for _ in range(3)] == [pytest.approx((2 * 0.7 + 2 * 0.49, 2 + 4 * 0.7))] * 3


# -- Python's min and max ------------------------------------------------------------------------------------------


def of_floats(a, b):
    return max(a * b, a + b) * min(a, b, 2.0)


def of_a_list(a, b):
    return max([a, b, a * b]) - min((b, a - 1.0))


def of_numpys(a, b):
    x = np.array([a, b, 0.5])
    return max(x[0], x[1], np.float64(0.25)) * min(x[2] * x[0], x[1])


def of_other_kinds(a, b):
    return max(0, a) + min(1, b, a) + max(np.float64(a), b)


def of_plain_ones(a, b):
    x = np.array([a, b, 0.5])
    return max(0, x[0], x[1]) * 2.0 + min(1, x[0] * x[1], 0.5) + max(0.0, a) + min(b, 3)


def with_a_key(a, b):
    return max(a, b, key=abs) * min([a, b], default=1.0)


@pytest.mark.parametrize("fun", [of_floats, of_a_list, of_numpys, of_other_kinds, of_plain_ones, with_a_key])
def test_min_and_max_are_pythons(fun):
    """At ties the first, whole; NaN where it comes first, or is all there is; the kind of number that Python gives."""
    derivative = value_and_grad(fun, (0, 1))
    for a, b in [
        (1.0, 2.0),
        (2.0, 1.0),
        (-1.0, 0.5),
        (1.5, 1.5),
        (np.nan, 1.0),
        (1.0, np.nan),
        (0.0, -0.0),
        (-0.0, 0.0),
        (3.0, 0.2),
    ]:
        value, slopes = derivative(a, b)
        expected, theirs = value_and_grad(fun, (0, 1), mode="dynamic")(a, b)
        np.testing.assert_array_equal(value, fun(a, b))
        assert type(value) is type(fun(a, b))
        assert str(value) == str(expected)
        np.testing.assert_array_equal(slopes, theirs)


def test_min_and_max_of_one_kind_are_no_branches():
    for fun in (of_floats, of_a_list, of_numpys, of_plain_ones):
        derivative = grad(fun, (0, 1))
        for a, b in [(1.0, 2.0), (2.0, 1.0), (-1.0, 0.5), (0.3, 7.0)]:
            derivative(a, b)
        assert derivative.cache_info().misses == 2


def the_longest(x):
    """By a key, of tuples, lists and texts."""
    first = max([(x[0], x[1]), [x[2], x[3]]], key=lambda pair: pair[0])
    rows = sorted([(x[3], "a"), "zz", (x[1], "b"), "c"], key=lambda row: x[2] * len(row))
    pairs = sorted([(), (x[0], x[1]), (x[2], x[3]), (x[1],)], key=lambda pair: sum(pair) + x[3])
    return isinstance(first, list) * x[0] + x[1] * len(rows[0]) + sum([i * len(pair) * x[2] for i, pair in enumerate(pairs)])


def test_tuples_beside_other_things_are_no_rows():
    """One with an empty tuple or a text among them was an error; a list that is chosen was a tuple."""
    derivative = value_and_grad(the_longest)
    for x in np.random.default_rng(5).normal(size=(12, 4)):
        value, slope = derivative(x)
        assert value == pytest.approx(the_longest(x), rel=1e-12)
        np.testing.assert_allclose(slope, grad(the_longest, mode="dynamic")(x), rtol=1e-12)


def the_same_truth(x):
    """There are two truths of NumPy's, and two of Python's."""
    total = ((x[0] > 0) is (x[1] > 0)) * x[2] + operator.is_(x[0] > 0, x[3] > 0) * x[1] + ((x[0] > 0) is True)
    for t in x:
        if (t > 0) is (total > 0) is not (x[2] > 0):
            total = total + t
    return total


def test_truths_of_comparisons_are_the_same_or_not():
    derivative = value_and_grad(the_same_truth)
    for x in np.random.default_rng(9).normal(size=(30, 4)):
        value, slope = derivative(x)
        assert value == pytest.approx(the_same_truth(x), rel=1e-12)
        np.testing.assert_allclose(slope, grad(the_same_truth, mode="dynamic")(x), rtol=1e-12)


class Sized:
    """What counts how often it is asked."""

    def __init__(self, value, size):
        self.value, self.size, self.often = value, size, 0

    def __len__(self):
        self.often += 1
        return self.size

    def __mul__(self, other):
        return self.value * other


class Positive:
    def __init__(self, value):
        self.value = value

    def __bool__(self):
        return bool(self.value > 0)

    def __add__(self, other):
        return self.value + other

    __radd__ = __add__


GIVEN, EMPTY = Sized(3.0, 2), Sized(4.0, 0)


def the_first_that_has_any(x):
    own = Sized(x[0], 2)
    chosen, other = own or 0.3, Sized(x[1], 0) or own
    return chosen * 2.0 + other * x[2] + own.often + (GIVEN or EMPTY) * x[0] + (EMPTY or 0.25) * x[1]


def the_first_that_is_positive(x):
    return x[2] + ((Positive(x[0]) and Positive(x[1])) or (Positive(x[2]) and 0.3))


def asked_in_a_loop(x):
    total, own = 0.0, Sized(x[3], 1)
    for t in x:
        found = Positive(t) or Positive(0.3)
        total = total + (found + 0.1) * t
        if Positive(t) or Positive(total - 1.0):
            total = total * 0.5
    while (own and x[1] < 5.0) and total < 3.0:
        total = total + 1.0
    return total + own.often


def asked_of_each(x):
    every = [Positive(t) for t in x]
    return sum([(a or b).value for a, b in itertools.pairwise(every)]) + sum([t.value for t in every if t and t.value < 1.0])


def with_a_default(x, scale=None):
    scale = scale or Sized(x[1], 2)
    return scale * x[0]


class Counted:
    def __init__(self):
        self.often = 0

    def __bool__(self):
        return self.often > 2


def asked_by_its_class(x):
    own, total = Counted(), x[0]
    for t in x:
        if t > 0:
            own.often += 1
        else:
            total = total * 0.9
    return total + bool(own) * x[1]


@pytest.mark.parametrize(
    "fun",
    [the_first_that_has_any, the_first_that_is_positive, asked_in_a_loop, asked_of_each, with_a_default, asked_by_its_class],
)
def test_and_and_or_give_the_object_that_was_asked(fun):
    """What its class says of its truth, or its length, was their result."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(6).normal(size=(12, 4)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-12, atol=1e-14)


@dataclass
class Noted:
    x: object
    v: object
    notes: list = field(default_factory=list)

    def __post_init__(self):
        self.notes.append(self.v)


def dataclasses_in_lists(x):
    states = [State(x, 2.0), Noted(x * x, x)]
    states.append(State(1.0, x))
    total = x * len({State(1.0, 2.0), State(1.0, 2.0)}) + sum(states[1].notes)
    for i, s in enumerate(states):
        match s:
            case State(x=place, v=speed) | Noted(place, speed):
                total = total + i * place * speed
    return total * max(states, key=lambda s: s.x).x


def test_dataclasses_are_objects_as_others():
    """Frozen ones, and those with defaults that are made, too: their methods are known to read nothing but their fields."""
    derivative = grad(dataclasses_in_lists)
    for x in (1.5, -0.5, 1.2, -0.7, 1.1, -0.2):
        assert derivative(x) == pytest.approx(slopes(dataclasses_in_lists, (x,)), rel=1e-5)
    assert derivative.cache_info()[:2] == (2, 4)


height = np.array([1.0, 2.0])  # and an attribute


class Tall:
    def __init__(self, height):
        self.height = height

    def __add__(self, other):
        return Tall(self.height + other.height)


def test_attributes_are_no_variables_of_the_same_name():
    """Of methods that C code calls, what they read from outside must not change; an attribute is not from outside."""
    derivative = grad(lambda x: sum([Tall(x), Tall(x * x)], Tall(0.0)).height)
    for x in (1.5, -0.5, 0.25, -2.0):
        assert derivative(x) == 1 + 2 * x
    assert derivative.cache_info().hits == 2


def of_what_is_iterated(x):
    squares = {i: v * v for i, v in enumerate(x)}
    return max(x) * min(np.sin(v) for v in x) + max(squares.values()) + min(map(abs, x), default=0.0) * max(x[1], *x[2:])


def of_rows(x):
    return sum(max(x[i] * v for v in x) for i in range(3)) + max([np.log(v * v) for v in x]) - min([0.5, *x.tolist(), 3])


@pytest.mark.parametrize("fun", [of_what_is_iterated, of_rows])
@pytest.mark.parametrize("count", [5, 60])
def test_min_and_max_of_many(fun, count):
    """Whether one comparison after the other finds it, or one call; what is not chosen takes no part, NaN or not."""
    derivative, points = value_and_grad(fun), [np.sin(np.arange(count) * turn) for turn in (1.0, 2.0, 0.5, 7.0)]
    with np.errstate(all="ignore"):
        for x in points:
            value, slope = derivative(x)
            expected = value_and_grad(fun, mode="dynamic")(x)[1]
            assert value == pytest.approx(fun(x), rel=1e-14)
            assert type(value) is type(fun(x))
            np.testing.assert_allclose(slope, expected, rtol=1e-12)
        assert derivative.cache_info().misses == 2
        for place, odd in [(4, np.nan), (0, np.nan), (3, -np.inf), (2, np.inf)]:
            x = points[0].copy()
            x[place] = odd
            value, slope = derivative(x)
            np.testing.assert_array_equal(value, fun(x))
            np.testing.assert_allclose(slope, value_and_grad(fun, mode="dynamic")(x)[1], rtol=1e-12)
        np.testing.assert_allclose(vmap(grad(fun))(np.stack(points)), [grad(fun)(x) for x in points], rtol=1e-12)


def test_what_may_be_the_largest_of_many_is_recorded_once():
    """The masks of choices that lie in one another are made of one another: there were as many as pairs of numbers."""
    derivative = grad(lambda x: max([v * v for v in x]))
    assert len(str(derivative.graph(np.linspace(0.1, 1.0, 30))).splitlines()) < 600
    assert len(str(derivative.graph(np.linspace(0.1, 1.0, 300))).splitlines()) < 3000


def warped(x, y):
    D = np.full((len(x) + 1, len(y) + 1), np.inf)
    D[0, 0] = 0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            D[i, j] = (x[i - 1] - y[j - 1]) ** 2 + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[-1, -1]


def test_time_warping_is_compiled_once():
    derivative = grad(warped, (0, 1))
    for turn in range(5):
        x, y = np.sin(np.arange(7.0) * (turn + 1)), np.cos(np.arange(6.0) - turn)
        for mine, theirs in zip(derivative(x, y), grad(warped, (0, 1), mode="dynamic")(x, y), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert derivative.cache_info().misses == 2
    assert derivative.source(x, y).count("    for ") == 4


def aligned(s, t, gap):
    """With affine gaps; a choice comes after the tables, and what goes into them has a slope that infinity has not."""
    M, X, Y = (np.full((len(s) + 1, len(t) + 1), -1e9) for _ in range(3))
    M[0, 0] = 0
    best = 0
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            M[i, j] = max(M[i - 1, j - 1], X[i - 1, j - 1], Y[i - 1, j - 1]) + np.cos(s[i - 1] - t[j - 1])
            X[i, j] = max(M[i - 1, j] - gap, X[i - 1, j] - 0.1)
            Y[i, j] = max(M[i, j - 1] - gap, Y[i, j - 1] - 0.1)
            best = max(0, best, M[i, j])
    return best + max(M[-1, -1], X[-1, -1], Y[-1, -1])


def test_tables_below_choices_take_no_masks_and_no_copies():
    derivative = grad(aligned, (0, 1, 2))
    for turn in range(5):
        args = np.sin(np.arange(9.0) * (turn + 1)), np.cos(np.arange(8.0) - turn), 0.2 + 0.2 * turn
        for mine, theirs in zip(derivative(*args), grad(aligned, (0, 1, 2), mode="dynamic")(*args), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert derivative.cache_info().misses == 2
    source = derivative.source(*args)
    assert "logical_" not in source
    inner = [line for line in source.splitlines() if line.startswith(" " * 12)]
    assert inner
    assert not any(".append(M_" in line or ".append(X_" in line or ".append(Y_" in line for line in inner)


def softly_warped(x, y):
    """Soft dynamic time warping, as it is usually written."""
    D, R = (x[:, None] - y) ** 2, np.full((len(x) + 1, len(y) + 1), 1e10)
    R[0, 0] = 0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            a, b, c = -R[i - 1, j - 1], -R[i - 1, j], -R[i, j - 1]
            most = max(a, b, c)
            R[i, j] = D[i - 1, j - 1] - most - np.log(np.exp(a - most) + np.exp(b - most) + np.exp(c - most))
    return R[-1, -1]


def test_masks_that_go_round_with_tables_are_written_into():
    """By the number, as the tables are; where there are masks: the pass that does without them is switched off."""
    with without("masks"):
        derivative = grad(softly_warped, (0, 1))
    for turn in range(4):
        args = np.sin(np.arange(12.0) * (turn + 1)), np.cos(np.arange(15.0) - turn)
        for mine, theirs in zip(derivative(*args), grad(softly_warped, (0, 1), mode="dynamic")(*args), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert derivative.cache_info().misses == 2
    lines = derivative.source(*args, fast=True).splitlines()
    inner = [line for line in lines if line.startswith(" " * 12) and "#" not in line]
    assert len(inner) > 40
    assert not any("np." in line or "logical_" in line for line in inner)


def beside_infinite_slopes(x):
    """What ``max`` does not choose in the end has slopes that are infinite: of logarithms of sums that are zero."""
    R, s, q, S = np.zeros((7, 5)), 0.1, np.ones(3), np.full((7, 5), -0.2)
    for i in range(1, 7):
        for j in range(4, 0, -1):
            R[i, j] += S[i, j] - 0.5 * x[i - 1]
            R[i, j - 1] = max(R[i - 1, j - 1], q[2], s) * 0.9
            q[1] = np.exp(-(q[2] ** 2))
            s = 0.5 * s - 0.1 * np.log(np.sum(np.exp(-np.array([R[i, j - 1], R[i - 1, j - 1], s]) / 0.1)))
        R[i] = R[i] * 0.9
    return max(R[6, 4], S[6, 4], s)


def test_what_max_leaves_out_in_tables_takes_no_part():
    derivative, other = grad(beside_infinite_slopes), grad(beside_infinite_slopes, mode="dynamic")
    with np.errstate(all="ignore"):
        for turn in range(4):
            x = np.linspace(1.0, 2.0, 6) + turn
            expected = other(x)
            assert np.isfinite(expected).all()
            np.testing.assert_allclose(derivative(x), expected, rtol=1e-12)


ORDERED = {
    "shortest path": lambda w: _shortest(w),
    "sorted": lambda w: sum(i * v for i, v in enumerate(_sorted_by_heap(list(w)))),
    "inserted": lambda w: _medians(w),
    "largest": lambda w: sum(v * v for v in heapq.nlargest(3, w)) + heapq.nsmallest(2, list(w), key=lambda v: (v - 1) ** 2)[1],
}


def _shortest(w):
    queue, done = [(0.0, 0)], {}
    while queue:
        length, here = heapq.heappop(queue)
        if here not in done:
            done[here] = length
            for k, (a, b) in enumerate([(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)]):
                if a == here:
                    heapq.heappush(queue, (length + w[k], b))
    return done[3] * done[2]


def _sorted_by_heap(values):
    heapq.heapify(values)
    return [heapq.heappop(values) for _ in range(len(values))]


def _medians(w):
    met, total = [], 0.0
    for x in w:
        total += x * bisect.bisect(met, 1.2)
        bisect.insort(met, x)
        total += met[len(met) // 2] ** 2
    return total


@pytest.mark.parametrize("name", ORDERED)
def test_lists_kept_in_order_are_compiled(name):
    fun = ORDERED[name]
    derivative, plain = grad(fun), grad(fun, mode="dynamic")
    w = np.array([1.3, 0.4, 0.9, 1.7, 0.2])
    for _ in range(3):
        np.testing.assert_allclose(derivative(w), plain(w))
    assert derivative.cache_info().hits == 1
    for other in np.random.default_rng(1).permuted(np.tile(w, (6, 1)), axis=1):
        for scale in (1.0, 1.1):
            np.testing.assert_allclose(derivative(scale * other), plain(scale * other))


def _beyond(key):
    def fun(x):
        try:
            beyond = x[key(x)]
        except IndexError:
            beyond = x[0] ** 2
        return beyond * x[1]

    return fun


@pytest.mark.parametrize("key", [lambda x: 7, lambda x: (6, None), lambda x: (..., -9)])
def test_an_index_that_the_shape_has_no_place_for_is_compiled(key):
    derivative, plain = grad(_beyond(key)), grad(_beyond(key), mode="dynamic")
    for size in (5, 5, 5, 9, 9, 9, 5):
        x = np.random.default_rng(size).standard_normal(size)
        np.testing.assert_allclose(derivative(x), plain(x))
    assert derivative.cache_info().hits == 3


def test_an_index_that_values_have_no_place_for_is_none_to_compile():
    fun = _beyond(lambda x: np.argmax(x) + 3)
    derivative = value_and_grad(fun)
    for seed in range(12):
        x = np.random.default_rng(seed).standard_normal(5)
        assert derivative(x)[0] == fun(x)


def two_sides(x):
    y = x[:2] * 1.0
    for _ in range(30):
        if y[0] > 0.3:
            y = y * 0.8
        else:
            y = y + x[2:4] * 0.2
    return np.sum(y**2)


def test_the_way_back_through_both_sides_is_one_if():
    derivative = value_and_grad(two_sides)
    for x in np.random.default_rng(1).normal(size=(6, 4)):
        gradient = derivative(x)[1]
        np.testing.assert_allclose(gradient, value_and_grad(two_sides, mode="dynamic")(x)[1], rtol=1e-12)
    back = derivative.source(x).split("# backward")[1]
    assert back.count("if ") == 1
    assert "else:" in back
    assert "not" not in back


def asked_of(x, y):
    s = x * 0
    if math.isclose(x, y):
        s += x * y
    if math.isclose(x, y, abs_tol=0.5) and not isinf(y):
        s += x * x
    if math.isclose(x, y, rel_tol=0.1):
        s += y**3
    if math.isnan(x - y):
        s = 3 * x
    return s if not math.isfinite(x) or cmath.isfinite(s) else x


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_math_asks_of_numbers(mode):
    derivative, numpys = value_and_grad(asked_of, (0, 1), mode=mode), value_and_grad(asked_of, (0, 1), mode=mode)
    points = [
        (1, 1),
        (1, 1.2),
        (1, 1.05),
        (math.inf, math.inf),
        (-math.inf, math.inf),
        (math.inf, 1),
        (math.nan, 1),
        (1e300, 1e200),
    ]
    points += [(0, 0), (-0.0, 1e-12), (1, 1 + 1e-10), (3, 3.4), (3.4, 3)]
    with np.errstate(all="ignore"):
        for x, y in [(float(x), float(y)) for x, y in points] * 2:
            value, slopes = derivative(x, y)
            np.testing.assert_equal(value, asked_of(x, y))
            np.testing.assert_equal(numpys(np.float64(x), np.float64(y)), (value, slopes))
    with pytest.raises(ValueError, match="tolerances must be non-negative"):
        grad(lambda x: x if math.isclose(x, 1.0, rel_tol=-1) else x * x, mode=mode)(2.0)


def told_of(x, y):
    """What it tells is Python's, by whatever name, and whoever asks."""
    near = functools.partial(isclose, abs_tol=0.5)
    s = x * (math.isfinite(x) + near(x, y)) - y * -near(y, x) + (math.isnan(y) is False) * y
    s += sum(filter(math.isfinite, [x, y, x * y])) * sum(map(math.isfinite, (x, y)))
    s += [x, y * y][isclose(a=x, b=y, rel_tol=0.1)] + sorted([x, y], key=math.isfinite)[0]
    return s * 2 if isclose(1.0, 1.5, rel_tol=abs(x) / 4) else s


def test_what_math_tells_is_pythons():
    x, y = np.array([0.5, 1.0, 3.0, 2.5]), np.array([2.0, 1.05, 2.75, -1.0])
    derivatives = [value_and_grad(told_of, (0, 1)), value_and_grad(told_of, (0, 1), mode="dynamic")]
    for pair in [*zip(x, y, strict=True), *zip(x.tolist(), y.tolist(), strict=True)] * 2:
        around = [[told_of(pair[0] + d, pair[1] + e) for d, e in ((s, 0), (0, s))] for s in (1e-6, -1e-6)]
        for derivative in derivatives:
            value, slopes = derivative(*pair)
            assert value == told_of(*pair)
            np.testing.assert_allclose(slopes, np.subtract(*around) / 2e-6, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(vmap(told_of)(x, y), [told_of(*pair) for pair in zip(x, y, strict=True)])


def root(a):
    x = a
    while not math.isclose(x * x, a, rel_tol=1e-14):
        x = 0.5 * (x + a / x)
        if not math.isfinite(x):
            raise ValueError(f"diverged at {x}")
    return x


def test_loops_until_numbers_are_close_are_code():
    derivative = grad(root)
    for a in (2.0, 3.0, 5.0, 90.0):
        assert derivative(a) == pytest.approx(0.5 / math.sqrt(a), rel=1e-12)
    assert derivative.cache_info().misses == 2
    assert "    while " in derivative.source(2.0)


def falls(h0):
    """Sand falls to neighbours, of which there are none beyond the ends."""
    h = h0.copy()
    while h.max() > 1.0:
        i = np.argmax(h)
        extra = 0.5 * (h[i] - 1.0) + 0.1
        h[i] -= 2 * extra
        if i > 0:
            h[i - 1] += extra
        if i < len(h) - 1:
            h[i + 1] += extra
    return np.sum(h**2)


@pytest.mark.parametrize("kind", [jacfwd, hessian, jacrev])
def test_rows_of_loops_whose_other_sides_read_beyond_an_end(kind):
    compiled, dynamic, rng = kind(falls), kind(falls, mode="dynamic"), np.random.default_rng(0)
    for x in [np.array([1.02, 0.43, 0.07, 0.03, 1.3, 1.46]), *rng.uniform(0.0, 1.5, (8, 6))]:
        np.testing.assert_allclose(compiled(x), dynamic(x), atol=1e-12)


def test_ways_that_are_gone_often_are_of_one_piece():
    """Code that begins calls, and leaves them to other code which begins anew, is made again, all in one."""

    def fun(x, way):
        z = np.tanh(x)
        if way == 0:
            return np.sum(z)
        if way == 1:
            return np.sum(z * x)
        if way == 2:
            return np.sum(np.sin(z))
        if way == 3:
            return np.sum(z**3)
        if way == 4:
            return np.sum(np.exp(z))
        return np.sum(np.cos(z)) if way == 5 else np.sum(np.sqrt(2 + z)) if way == 6 else np.sum(1 / (2 + z))

    derivative = grad(fun)
    x = np.random.default_rng(0).normal(size=200)
    wanted = [grad(fun, mode="dynamic")(x, way) for way in range(8)]
    for _ in range(60):
        for way in range(8):
            np.testing.assert_allclose(derivative(x, way), wanted[way], rtol=1e-9, atol=1e-12)
    ((variant,),) = [family.variants for family in derivative._compiler.known.values()]
    assert len(variant.whole.ends) == 8
    assert not variant.pieces


def trend(x):
    up, total = None, 0.0
    for v in x:
        if up is None:
            if abs(v) > 1:
                up = v > 0
        elif up:
            total += v
            if v < -1:
                up = False
        else:
            total -= v
            if v > 1:
                up = True
    return total


def turns(x):
    up, total = False, 0.0
    for v in x:
        if up:
            total += v
        else:
            total -= v * v
        if abs(v) > 1:
            up = v > 0
    return total


def quiet(x):
    calm, total = None, 0.0
    for v in x:
        if calm is None or not calm:
            total += v * v
        calm = not v > 0.5
    return total if calm else 2 * total


@pytest.mark.parametrize("fun", [trend, turns, quiet])
def test_flags_that_are_none_or_false_at_first_go_round(fun):
    derivative, dynamic, rng = value_and_grad(fun), value_and_grad(fun, mode="dynamic"), np.random.default_rng(0)
    for _ in range(16):
        x = rng.normal(size=12)
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-12, atol=1e-14)
    assert derivative.cache_info().misses <= 7
