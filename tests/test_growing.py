"""How code grows branch by branch: pieces that go on where other code leaves off, and when they are worth their cost."""

import itertools

import numpy as np
import pytest

from symgrad import compile as compiling
from symgrad import grad, value_and_grad
from symgrad.compile import Account


def cascade(x, w):
    for k in range(4):
        x = np.tanh(w @ x)
        if np.sum(x) > 0.3 * k:
            return np.sum(x * x)
        if x[0] > x[1]:
            x = x * 1.1
    return np.sum(x)


def ranked(x):
    def swapped(v, places):  # by recursion: in a loop, ways would meet behind each turn
        if not places:
            return v
        j, *rest = places
        if v[j] > v[j + 1]:
            v[j], v[j + 1] = v[j + 1], v[j]
        return swapped(v, rest)

    return sum(w * w * (k + 1) for k, w in enumerate(swapped([x[0], x[1], x[2], x[3]], [0, 1, 2, 0, 1, 0])))


def switch(x, k):
    power = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}[k]  # Python looks
    if x > 0:
        return x**power if power != 3 else 1 / (x - 2.0)
    return np.exp(x) * power


def halves(a):
    """By recursion, not in a loop, which would be one piece."""

    def between(lo, hi):
        mid = 0.5 * (lo + hi)
        if hi - lo <= 0.2:
            return mid
        return between(lo, mid) if mid * mid * mid > a else between(mid, hi)

    return between(a * 0.0, a + 1.0)


RNG = np.random.default_rng(0)
W = RNG.standard_normal((3, 3))
INPUTS = {
    cascade: [(x, W) for x in RNG.standard_normal((40, 3))],
    ranked: [(np.array(x, float),) for x in itertools.permutations([0.5, 1.0, -2.0, 3.0])],
    switch: [(float(x), k) for x in (-1.0, 1.5, 2.5) for k in (1, 2, 3, 4, 5)],
    halves: [(float(a),) for a in np.linspace(0.3, 9.0, 40)],
}


def family_of(derivative):
    (family,) = derivative._compiler.known.values()
    return family


@pytest.mark.parametrize("fun", INPUTS, ids=lambda fun: fun.__name__)
def test_pieces_go_on_where_code_leaves_off(fun, monkeypatch):
    monkeypatch.setattr(compiling, "AT_ONCE", 1000)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    pieces = 0
    expected = [dynamic(*args) for args in INPUTS[fun]]
    for _ in range(3):
        for args, (value, slope) in zip(INPUTS[fun], expected, strict=True):
            for _ in range(2):
                got = derivative(*args)
                np.testing.assert_allclose(got[0], value, rtol=1e-12)
                np.testing.assert_allclose(got[1], slope, rtol=1e-9, atol=1e-12)
            pieces = max(pieces, len(family_of(derivative).variants[0].pieces))
    misses = derivative.cache_info().misses
    for args in INPUTS[fun]:
        derivative(*args)
    assert derivative.cache_info().misses == misses  # all ends have code
    assert pieces > 2
    account = family_of(derivative).account
    (variant,) = family_of(derivative).variants
    assert account.ends <= 4 * len(list(variant.program.leaves()))  # each was compiled a few times, however many there are
    lines = derivative.source(*INPUTS[fun][0]).splitlines()
    assert sum(line.strip().startswith("return ") for line in lines) == len(list(variant.program.leaves()))


def test_all_code_in_one():
    derivative = grad(ranked)
    for args in INPUTS[ranked][:3] * 2:
        derivative(*args)
    (variant,) = family_of(derivative).variants
    assert variant.pieces
    function = derivative.compiled(*INPUTS[ranked][0])
    assert not variant.pieces
    for args in INPUTS[ranked][:3]:
        np.testing.assert_allclose(function(*args), grad(ranked, mode="dynamic")(*args))


def test_sides_put_the_same_array_together_each_for_itself():
    def fun(x):
        scale = 2.0
        if x[0] > 0:
            scale = 1.0
        elif x[1] > 0:
            return np.sum(x)
        put = np.zeros_like(x)
        put[:100], put[100:] = np.sin(x[100:]), np.cos(x[:100])
        return scale * np.sum(np.exp(put))

    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    inputs = [np.array([a, b, *np.linspace(-1, 1, 198)]) for a in (1.0, -1.0) for b in (1.0, -1.0)]
    for x in inputs * 3:
        derivative(x)
    function = derivative.compiled(inputs[0])  # all sides in one
    for x in inputs:
        np.testing.assert_allclose(function(x), dynamic(x), rtol=1e-12)


def test_what_python_raises_in_a_piece_is_numpys_to_answer():
    def fun(x, y):
        if y > 0:
            return x * y
        if y < -1:
            return np.exp(x) * y
        return np.log(x) / y

    derivative = value_and_grad(fun)
    for y in (1.0, -0.5, -2.0):
        for _ in range(3):
            derivative(1.0, y)
    (variant,) = family_of(derivative).variants
    assert variant.pieces
    misses = derivative.cache_info().misses
    with np.errstate(over="ignore"):
        assert derivative(1000.0, -2.0) == (-np.inf, -np.inf)
    assert derivative.cache_info().misses == misses


def test_functions_that_go_new_ways_are_left_alone(monkeypatch):
    monkeypatch.setattr(compiling, "LOOKING", (0.0, 0.0))
    monkeypatch.setattr(compiling, "QUICK", 0.0)
    derivative, dynamic = grad(ranked), grad(ranked, mode="dynamic")
    for args in INPUTS[ranked]:
        np.testing.assert_allclose(derivative(*args), dynamic(*args))
    (variant,) = family_of(derivative).variants
    assert variant.traces == compiling.TRIES_FREE
    assert derivative.cache_info() == (0, len(INPUTS[ranked]), 64, 1)


def test_code_is_kept_where_there_are_too_many_ends(monkeypatch):
    monkeypatch.setattr(compiling, "MAX_LEAVES", 4)
    derivative, dynamic = grad(ranked), grad(ranked, mode="dynamic")
    often = INPUTS[ranked][0]
    for args in INPUTS[ranked]:
        for point in (often, args):
            np.testing.assert_allclose(derivative(*point), dynamic(*point))
    assert derivative.cache_info().hits == len(INPUTS[ranked]) - 1
    assert (
        "dynamic mode where no code answers, traced at every call: its branches have more than 4 ends" in derivative.explain()
    )


def test_an_account(monkeypatch):
    monkeypatch.setattr(compiling, "QUICK", 2.0)
    account = Account()
    account.compiled(8, lambda: None)
    assert account.allows(0)
    account.each = account.last = 1.0
    assert not account.affords(2)
    account.wanted = 2
    assert not account.allows(0)  # until code can be made of it
    account.called(False, 2.5)
    assert account.allows(0)
    for new in range(1, 1 + compiling.TRIES_FREE):
        account.called(True, 1.0)
        account.traced(new, True)
    assert not account.wanted
    assert account.looked == 0.0
    account.waited = 0.0
    assert not account.allows(0)
    account.called(False, 1.5)
    assert account.allows(0)
    account.called(True, 1.0)
    assert account.looked == 1.0
    assert not account.allows(0)
    assert account.allows(1)  # a call that code has answered is one more without


def sorted_by_swaps(x):
    v, swapped = [x[i] for i in range(12)], True
    held = [v]  # no array is in the place of a list that others hold
    while swapped:
        swapped = False
        for j in range(11):
            if v[j] > v[j + 1]:
                v[j], v[j + 1] = v[j + 1], v[j]
                swapped = True
    return sum(w * w * (k + 1) for k, w in enumerate(held[0]))


def test_traces_that_take_the_place_of_others_are_counted_as_those_of_new_ends():
    """So that calls run in dynamic mode meanwhile, where each finds loops of other ways."""
    derivative = grad(sorted_by_swaps)
    for x in np.random.default_rng(3).normal(size=(24, 12)):
        derivative(x)
    family = family_of(derivative)
    (variant,) = family.variants
    assert family.account.calls == 24
    assert variant.traces < 16


def test_signatures_that_never_come_again():
    """A signature is learnt when its calls have taken as long as it took to learn others."""
    derivative = grad(lambda x, word: x * len(word))
    for number in range(12):
        assert derivative(2.0, "a" * number) == number
    families = [*derivative._compiler.known.values()]
    assert [bool(family.variants) for family in families] == [True] * compiling.AT_ONCE + [False] * (12 - compiling.AT_ONCE)
    for _ in range(300):
        assert derivative(2.0, "a" * 11) == 11
    assert families[-1].hits()


def rolled_from_a_place_on(a, b):
    b, n, s = b.copy(), len(b), 0.0
    for i in range(1, n):
        if abs(a[i, i]) < 0.2:
            continue
        s += np.sum(np.sort(b[i:]) * a[i, i:])
        for j in range(n - 1, i, -1):
            b[i:] = np.roll(b[i:], 1) + 0.1 * a[j, i]
    return s + np.sum(np.sin(b))


def test_runs_of_no_iteration_tell_nothing_of_slices_of_other_lengths():
    """The last inner loop runs none; what longer runs were, of slices of three elements, it is not, of a slice of one."""
    derivative, dynamic = (value_and_grad(rolled_from_a_place_on, (0, 1), mode=mode) for mode in ("auto", "dynamic"))
    rng = np.random.default_rng(9086)
    for _ in range(16):
        a, b = rng.normal(size=(6, 6)), rng.normal(size=6)
        (value, slopes), (expected, theirs) = derivative(a, b), dynamic(a, b)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for slope, other in zip(slopes, theirs, strict=True):
            np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-12)
