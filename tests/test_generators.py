"""Loops over generators of the user's: one loop of the generated code, whatever either decides."""

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad

SCALE = 2.0


def above(x):
    """What is above zero."""
    for v in x:
        if v > 0:
            yield v


def squares(x):
    for v in x:
        yield v * v * SCALE


def neighbours(x):
    for i in range(len(x) - 1):
        yield x[i], x[i + 1]


def windows(x, n):
    for i in range(len(x) - n + 1):
        yield x[i : i + n]


def fibonacci(a, b, n):
    for _ in range(n):
        yield a
        a, b = b, a + b


def below_diagonal(n):
    for i in range(n):
        for j in range(i):
            yield i, j


def runs(x):
    s = 0.0
    for v in x:
        if v > 0:
            s += v
        else:
            yield s
            s = 0.0
    yield s


def smoothed(x):
    s = 0.0
    for v in x:
        s = 0.9 * s + v
        if s > 0:
            yield s


def shifted(x):
    for v in above(x):
        if v < 2:
            yield v + 1.0


def by_steps(x):
    i = 0
    while i < len(x):
        yield x[i]
        i += 2


def twice(x):
    for v in x:
        yield v
        yield v * 2


def with_ends(x):
    yield x[0]
    for v in x:
        if v > 0.5:
            yield v
    yield x[-1]


def until(x, most, *, scale):
    for v in x:
        if v > most:
            break
        yield v * scale


def sum_of_squares(x):
    s = 0.0
    for v in above(x):
        s += v * v
    return s


def given_to_builtins(x):
    kept = list(above(x))
    return sum(above(x)) / len(kept) + max(runs(x)) + min(squares(x)) + np.mean(np.array([v * v for v in above(x)]))


def rising(x):
    s = 0.0
    for a, b in neighbours(x):
        if b > a:
            s += (b - a) ** 2
    return s


def sums_of_windows(x):
    s = 0.0
    for w in windows(x, 4):
        if w[0] > 0:
            s += w.sum()
    return s + sum(w.max() for w in windows(x, n=3))


def counted(x):
    s = 0.0
    for k, v in enumerate(fibonacci(x[0], x[1], 12)):
        if v > 0:
            s += v / (k + 1)
    for k, v in enumerate(above(x), start=2):
        if v > 0.5:
            s += k * v
    return s


def pairs(x):
    s = 0.0
    for i, j in below_diagonal(len(x)):
        if x[i] > x[j]:
            s += x[i] * x[j]
    return s


def of_runs(x):
    s = 0.0
    for r in runs(x):
        s += r * r
    for v in smoothed(x):
        if v > 1:
            s += v
    return s


def of_a_generator(x):
    s = 0.0
    for v in shifted(x):
        if v > 1.5:
            s += v * v
    return s


def with_a_break(x):
    s = 0.0
    for v in above(x):
        s += v
        if s > 6:
            break
    return s


def with_a_continue(x):
    s = 0.0
    for v in above(x):
        if v < 0.5:
            continue
        s += v
    for v in by_steps(x):
        if v > 0:
            s -= v
    return s


def of_its_own(x):
    level = 0.5

    def large():
        for v in x:
            if abs(v) > level:
                yield v

    return sum(v**2 for v in large())


CODE = [
    sum_of_squares, given_to_builtins, rising, sums_of_windows, counted, pairs, of_runs, of_a_generator, with_a_break,
    with_a_continue, of_its_own,
]  # fmt: skip


def with_several_yields(x):
    s = 0.0
    for v in twice(x):
        if v > 1:
            continue
        s += v
    for v in with_ends(x):
        if v < 0.7:
            continue
        s += v
    return s


def with_arguments(x):
    s = 0.0
    for v in until(x, 1.5, scale=2.0):
        if s > 4:
            break
        s += abs(v)
    return s + sum(until(scale=0.5, most=1.0, x=x))


def one_within_the_other(x):
    s = 0.0
    for a in above(x):
        for b in above(x):
            if a > b:
                s += a * b
    return s


def names_that_meet(x):
    """The generator's names are not the loop's."""
    v, i, n, s = 10.0, 3, 2, 0.0
    for w in windows(x, n + 1):
        s += w[0] * i + v
    for u in above(x * 0.5):
        x = x * 0.9
        s += u * v + x[0]
    return s + i + n


def rebinds_what_it_reads(x):
    level = 0.5

    def large():
        for v in x:
            if v > level:
                yield v

    s = 0.0
    for v in large():
        level = v
        s += v
    return s


def changed_while_it_runs(x):
    items, s = list(x), 0.0
    for v in by_steps(items):
        if v > 1 and len(items) < 30:
            items.append(v * 0.5)
        s += v
    return s


def begun_and_gone_on(x):
    some, s = above(x), 0.0
    for v in some:
        s += v
        if s > 1:
            break
    for v in some:
        s += 2 * v
    return s + next(above(x), 0.0)


def never_bound(x):
    s = 0.0
    for v in above(x - 100.0):
        s += v
    try:
        return s + v
    except UnboundLocalError:
        return s + x[0]


def shadowed(x):
    def above(y):
        for v in y:
            if v < 0:
                yield -v

    sum = lambda items: 2.0 * next(iter(items), 0.0)
    return sum(above(x)) + max(above(x), default=0.0)


def to_the_end(x):
    s = 0.0
    for v in above(x):
        s += v
    else:
        s *= 2
    for v in above(x):
        for u in x:
            if u > v:
                break
            s += 0.1 * u
        if v > 1.5:
            return s * v
    return s


OTHERS = [
    with_several_yields, with_arguments, one_within_the_other, names_that_meet, rebinds_what_it_reads, changed_while_it_runs,
    begun_and_gone_on, never_bound, shadowed, to_the_end,
]  # fmt: skip


@pytest.mark.parametrize("fun", [*CODE, *OTHERS])
def test_values_and_slopes(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for i in range(16):
        x = rng.normal(size=20)
        x[3] = abs(x[3])
        right_at(derivative, fun, x if i % 5 else 0.3 * x, (1e-12, 1e-12), (1e-9, 1e-12))


@pytest.mark.parametrize("fun", CODE)
def test_code_answers(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for _ in range(50):
        derivative(np.r_[1.0, rng.normal(size=19)])
    assert derivative.cache_info().misses <= 12


def test_another_generator_by_that_name_or_with_other_code(monkeypatch):
    derivative, rng = value_and_grad(sum_of_squares), np.random.default_rng(2)

    def right():
        for _ in range(3):
            right_at(derivative, sum_of_squares, rng.normal(size=12), (1e-12, 0), (1e-9, 1e-12))

    right()
    monkeypatch.setitem(globals(), "above", runs)
    right()
    monkeypatch.setitem(globals(), "above", lambda x: [v * 3.0 for v in x])
    right()
    monkeypatch.undo()
    right()
    monkeypatch.setattr(above, "__code__", squares.__code__)
    right()
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    right()


def test_what_a_generator_reads_from_its_module_is_read_anew(monkeypatch):
    derivative, x = value_and_grad(given_to_builtins), np.random.default_rng(3).normal(size=12)
    for scale in (2.0, 3.0, 2.0, -1.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        right_at(derivative, given_to_builtins, x, (1e-12, 0), (1e-9, 1e-12))


def fails(x):
    for v in x:
        if v > 1.0:
            raise ValueError(f"{len(x)} are too many")
        yield v


def test_errors_are_the_generators():
    def fun(x):
        s = 0.0
        for v in fails(x):
            if v > 0:
                s += v
        return s

    derivative, x = value_and_grad(fun), np.linspace(-1.0, 0.9, 7)
    for _ in range(4):
        right_at(derivative, fun, x, (1e-12, 0), (1e-9, 1e-12))
    with pytest.raises(ValueError, match="7 are too many"):
        derivative(x + 0.5)


def stale(x):
    for v in x:
        if v > 0:
            last = v
        yield last * v


def differences(x):
    items = iter(x)
    before = next(items)
    for v in items:
        yield v - before
        before = v


def quotients(x, n):
    for i in range(n):
        yield 1.0 / (0 if i == 3 else float(i + 1)) * x[i]


def runs_of_a_name(x):
    """Each run of a generator begins with no names bound."""
    s = 0.0
    for k in range(4):
        try:
            for a in stale(x[k:]):
                s += a
        except UnboundLocalError:
            s += 10.0 * (k + 1)
    return s


def at_its_end(x):
    try:
        for d in differences([v for v in x if v > 0.5]):
            if d > 0:
                s = d
        return s * x[0]
    except (RuntimeError, UnboundLocalError) as error:
        return x[0] * (2.0 if isinstance(error, RuntimeError) else 3.0)


def how_far_it_got(x):
    s = 0.0
    try:
        for i, v in enumerate(quotients(x, 7)):  # noqa: B007
            if v > 0:
                s += v
    except ZeroDivisionError:
        s += 100 * i
    return s


@pytest.mark.parametrize("fun", [runs_of_a_name, at_its_end, how_far_it_got])
def test_what_shows_that_it_is_a_generator(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for i in range(20):
        x = rng.normal(size=9)
        right_at(derivative, fun, -np.abs(x) if i % 5 == 4 else x, (1e-12, 1e-12), (1e-9, 1e-12))
