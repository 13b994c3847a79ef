"""Locals that are None at first have flags, where loops ask whether they are, and what the function does stays as it is."""

import ast
import inspect
import re
import textwrap

import numpy as np
import pytest

from symgrad import value_and_grad
from symgrad.source.sentinels import with_flags
from symgrad.source.targets import one_by_one


def rewritten(fun):
    function = ast.parse(textwrap.dedent(inspect.getsource(fun))).body[0]
    return ast.unparse(ast.fix_missing_locations(with_flags(one_by_one(function))))


def incr(x):
    prev = None
    s = 0.0
    for v in x:
        if prev is not None:
            s += (v - prev) ** 2
        prev = v
    return s


def first_pos(x):
    found = None
    for v in x:
        if found is None and v > 0.5:
            found = v
    return 0.0 if found is None else found**2


def unguarded(x):
    last = None
    s = 0.0
    for v in x:
        if v > 0.8:
            if last is None:
                last = v * 2
            s += last * v
    return s


def error(x):
    last = None
    s = 0.0
    for v in x:
        if v > 0 and last is not None:
            s += v
        if v > 2.5:
            last = v
    return s + last


def arr(x):
    best = None
    X = x.reshape(20, 4)
    for i in range(20):
        d = X[i] @ X[i]
        if best is None or d < best @ best:
            best = X[i] * 1.0
    return np.sum(best**3)


def interval(x):
    start = None
    tot = 0.0
    for i in range(80):
        if x[i] > 0.3 and start is None:
            start = x[i]
        elif x[i] < -0.3 and start is not None:
            tot += (start - x[i]) ** 2
            start = None
    return tot


def early(x):
    hit = None
    for i in range(80):
        if x[i] > 1.2:
            hit = x[i] * i
            break
    if hit is None:
        return np.sum(x)
    return hit


def nested(x):
    s = 0.0
    for i in range(8):
        m = None
        for j in range(10):
            v = x[10 * i + j]
            if m is None or v > m:
                m = v
        s += m**2
    return s


def func(x):
    def pick(v):
        return v if v > 0.5 else None

    last = None
    s = 0.0
    for v in x:
        p = pick(v)
        if last is not None:
            s += last * v
        last = p
    return s


def pair(x):
    lo = None
    hi = None
    for v in x:
        if lo is None or v < lo:
            lo = v
        if hi is None or v > hi:
            hi = v
    return hi - lo


def aug(x):
    s = None
    for v in x:
        s = v if s is None else s + v**2
    return s


def tup(x):
    best, bi = None, None
    for i in range(80):
        if best is None or x[i] > best:
            best, bi = x[i], i
    return best * x[bi - 1]


def swap(x):
    a = None
    b = None
    s = 0.0
    for v in x:
        if a is not None and b is not None:
            s += a * b * v
        a, b = v, a
    return s


def best(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best**2


def peaks(x):
    s, last = 0.0, None
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1]:
            if last is not None:
                s += (x[i] - last) ** 2
            last = x[i]
    return s


def in_an_expression(x):
    last, s = None, 0.0
    for v in x:
        s += v if last is None else v * last
        s += (last is not None and last > 0) * v
        last = v + 0.5
    return s


def while_there_is(x):
    y, s, i = None, 0.0, 0
    while i < len(x):
        if y is not None and y < 0.1:
            y = None
        y = x[i] * x[i] if y is None else 0.5 * y
        s, i = s + y, i + 1
    return s


def among_other_things(x):
    found = None
    with np.errstate(all="ignore"):
        for v in x:
            try:
                if found is None and v > 0.5:
                    found = v
            except ValueError:
                found = None
    return found**2 if found is not None else x[0]


def chained(x):
    prev = best = spare = None
    for v in x:
        if prev is not None and (best is None or v - prev > best):
            best = v - prev
        if v > 0:
            prev = spare = v
    return best * spare if spare is None or best is not None else 0.0


def asked_outside(x):
    y = None
    for v in x:
        y = v
    return 0.0 if y is None else y


FLAGGED = [
    incr, first_pos, unguarded, error, arr, interval, nested, func, pair, aug, tup, swap, best, peaks, in_an_expression,
    while_there_is, among_other_things, chained, early, asked_outside,
]  # fmt: skip


def whole_tuples(x):
    best, at = both = None, 0
    for i in range(80):
        if best is None or x[i] > best:
            best, at = both = x[i], i
    return best * both[0] * x[at - 1]


def an_argument(x, last=None):
    for v in x:
        if last is None or v > last:
            last = v
    return last


def added_to(x):
    total = None
    for v in x:
        if total is None:
            total = 0.0
        total += v
    return total


def of_a_closure(x):
    last = None

    def seen():
        return last is not None

    s = 0.0
    for v in x:
        if last is None or seen():
            last = v
            s += v
    return s


PLAIN = [an_argument, added_to, of_a_closure, whole_tuples]


@pytest.mark.parametrize("fun", FLAGGED)
def test_flags(fun):
    text = rewritten(fun)
    assert "_there = False" in text
    assert "_there = True" in text
    assert "is not None" not in text


@pytest.mark.parametrize("fun", PLAIN)
def test_locals_without_flags(fun):
    assert rewritten(fun) == ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(fun))))


@pytest.mark.parametrize("fun", [*FLAGGED, *PLAIN])
def test_they_do_what_they_did(fun):
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    for k in range(12):
        x = rng.normal(size=80) * (0.2 if k % 4 == 3 else 1.0)
        try:
            expected = fun(x)
        except TypeError as error:
            with pytest.raises(TypeError, match=re.escape(str(error))):
                derivative(x)
            continue
        value, slope = derivative(x)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, plain(x)[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fun", [incr, interval, early, aug, swap, best, tup, peaks, unguarded, chained])
def test_code_answers_them(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    derivative.cache_clear()
    for _ in range(16):
        derivative(rng.normal(size=80))
    assert derivative.cache_info().misses <= 6
