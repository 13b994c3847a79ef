"""Lists that loops with ``if``s append to: one loop, whichever ways its iterations go."""

import numpy as np
import pytest
from agreement import right_at

from symgrad import grad, value_and_grad
from symgrad.loops import iterables


def on_both_sides(x):
    out = []
    for i in range(20):
        if x[i] > 0:
            out.append(x[i] ** 2)
        else:
            out.append(-x[i])
    return np.sum(np.array(out) * x)


def after_an_if(x):
    h, states = 0.0, []
    for xi in x:
        h = 0.5 * h + xi if xi > 0 else 0.9 * h
        states.append(h)
    return np.sum(np.array(states) ** 2) + states[-1]


def read_from_the_end(x):
    hist = [x[0], x[1]]
    for i in range(2, 20):
        y = 0.5 * hist[-1] - 0.3 * hist[-2] + x[i]
        if y < 0:
            y = 0.0
        hist.append(y)
    return sum(h * h for h in hist)


def backwards_and_two_lists(x):
    total, value, values = 0.0, [1.0], []
    for i in range(19, 0, -2):
        if x[i] * total > 0.1:
            value.append(x[i])
            total = total * 0.5
        elif x[i] > 0:
            total = total + x[i]
            value.append(0.0)
        else:
            value.append(total)
        values.append(total + value[-1])
    return sum(value) * values[3] + len(values)


def in_a_loop(x):
    v = [max(y, 0.0) for y in x[:8]]
    for k in range(7, 0, -1):
        new = []
        for i in range(k):
            held = 0.5 * (v[i] + v[i + 1])
            if held < x[8 + i]:
                new.append(x[8 + i])
            else:
                new.append(held)
        v = new
    return v[0]


def argument_itself(x):
    first, out = x[0], []
    for i in range(1, 20):
        if x[i] > first:
            out.append(first)
        else:
            out.append(x[i])
    return first * out[3] + sum(out)


def changed_afterwards(x):
    out = []
    for y in x:
        out.append(y if y > 0 else 0.1 * y)
    out[3] = 2.0 * x[0]
    out.append(x[1])
    return np.array(out) @ np.arange(len(out)) + max(out)


@pytest.mark.parametrize(
    ("fun", "misses"),
    [
        (on_both_sides, 3),
        (after_an_if, 3),
        (read_from_the_end, 3),
        (backwards_and_two_lists, 5),
        (argument_itself, 3),
        (changed_afterwards, 40),  # but for its maximum, which is looked for item by item
        (in_a_loop, 40),  # but for its first line
    ],
)
def test_a_list_to_which_all_ways_append_is_rolled_up(fun, misses):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(5).normal(size=(12, 20)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= misses


def test_items_are_of_the_kind_that_they_were():
    def listed(x, y):
        out, known = [], []
        for i in range(6):
            out.append(x * i if x * i > 1.0 else x - y)
            known.append(1.0 if y > i else -1.0)
        return sum(out) * sum(known)

    derivative = grad(listed, (0, 1))
    for args in [(0.5, 2.5), (-1.0, 0.5), (1.5, 7.5), (0.3, -2.0)]:
        assert derivative(*args) == pytest.approx(grad(listed, (0, 1), mode="dynamic")(*args))


def at_times(x):
    out = [0.0]
    for i in range(12):
        if x[i] > 0:
            out.append(x[i])
    return sum(out) * len(out)


def while_positive(x):
    """In some calls the first iteration alone."""
    out, u = [1.0], x[0] - 0.5
    for i in range(12):
        if u < 0:
            continue
        out.append(u * x[i])
        if x[i] > 0.5:
            u = x[i + 1] * u
        elif x[i] < 0.2:
            u = u - x[i + 1]
    return sum(out) * len(out)


def twice_at_times(x):
    out = []
    for i in range(12):
        out.append(x[i])
        if x[i] > 0.5:
            out.append(x[i] ** 2)
    return sum(out) * len(out)


def under_another_name(x):
    out = []
    same = out
    for i in range(12):
        out.append(x[i] if x[i] > 0 else same[0] if same else 0.1)
    same[0] = 3.0
    return sum(out) + len(same)


def counted(x):
    out = []
    for i in range(12):
        if x[i] > 0:
            out.append(x[i] * len(out))
        else:
            out.append(x[i])
    return sum(out)


def changed_by_a_function(x):
    out = []

    def shrink():
        if len(out) > 3:
            out[-1] = 0.5 * out[-1]

    for i in range(12):
        out.append(x[i] if x[i] > 0 else 0.2 * x[i])
        shrink()
    return sum(out)


def added_by_a_method(x):
    out = []
    add = out.append
    for i in range(12):
        out.append(x[i] if x[i] > 0 else 0.2 * x[i])
    add(x[0])
    return sum(out) * len(out)


def of_several_kinds(x):
    out = []
    for i in range(12):
        if x[i] > 0:
            out.append(x[i : i + 2])
        else:
            out.append(np.float32(0.1) * np.ones(2))
    return np.sum(np.array(out) ** 2)


OTHERS = [at_times, while_positive, twice_at_times, under_another_name, counted, changed_by_a_function, added_by_a_method]


@pytest.mark.parametrize("fun", [*OTHERS, of_several_kinds])
def test_other_lists_are_what_they_are(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(6).normal(size=(40, 14)):
        (value, slope), (expected, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)


def some(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v**2)
    return np.sum(out) * np.sum(x)


def some_with_a_state(x):
    s, out = 0.0, []
    for i in range(len(x)):
        s = 0.9 * s + x[i]
        if s > 0.5:
            out.append(s)
            s = 0.0
        elif s < -1.0:
            out.append(s * s)
    return np.sum(np.array(out) ** 2) + s + len(out)


def some_after_others(x):
    out = [x[0], 1.0]
    for v in x:
        if v > 1.0:
            continue
        out.append(v**2)
    return sum(out) * len(out) + max(out) - min(out)


def mean_of_some(x):
    positive = [v for v in x if v > 0]
    negative = [np.sin(v) for v in x if v <= 0.0]
    if len(negative) == 0:
        return 0.0 * x[0]
    return np.std(positive) * sum(negative) if positive else np.mean(negative)


def largest_of_some(x):
    return max([v * v for v in x if v > 0], default=0.5) * len([v for v in x if v < 0.2])


def found_places(x):
    places = [i for i in range(len(x)) if x[i] > 0]
    return np.sum(x[places] ** 2) * len(places)


def neighbours(x):
    total = 0.0
    for i in range(len(x)):
        near = [x[j] for j in range(len(x)) if abs(x[i] - x[j]) < 0.7 and i != j]
        if near:
            total = total + np.mean(near) * x[i]
    return total


def larger_ones(x):
    total = 0.0
    for v in x:
        larger = [w * w for w in x if w > v]
        total = total + np.sum(larger) * v
    return total


def again_and_again(x):
    total = 0.0
    for _ in range(6):
        kept = []
        for v in x:
            if v > 0.1:
                kept.append(v * v)
        total = total + (np.mean(kept) if len(kept) > 1 else 0.0)
        x = 0.8 * x + 0.05
    return total


def done_otherwise(x):
    """What is done with them hangs on how many there are."""
    out = [v for v in x if v > 0]
    out.append(3.0)
    rest = [v for v in x if v < 0]
    return out[0] * out[-1] + sum(out) + sum(v * k for k, v in enumerate(rest)) + np.median([v for v in x if v > -2] + [1.0])


SOME = [
    (some, 3),
    (some_with_a_state, 4),
    (some_after_others, 3),
    (mean_of_some, 7),
    (largest_of_some, 4),
    (found_places, 4),
    (neighbours, 8),
    (larger_ones, 4),
    (again_and_again, 6),
    (done_otherwise, 40),
]


@pytest.mark.parametrize(("fun", "misses"), SOME, ids=[fun.__name__ for fun, _ in SOME])
def test_lists_of_some_items_are_what_a_mask_selects(fun, misses):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k, x in enumerate(np.random.default_rng(6).normal(size=(30, 8))):
        x = -np.abs(x) if k == 20 else np.abs(x) if k == 21 else x
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= misses


def test_largest_of_some_where_some_are_none():
    derivative = value_and_grad(largest_of_some)
    for x in np.random.default_rng(7).normal(size=(8, 6)):
        derivative(x)
        x[:2] = np.nan
        np.testing.assert_equal(derivative(x)[0], largest_of_some(x))


def changed_by_a_function(x):
    out = [v for v in x if v > 0]
    before = np.sum(out)
    clear_first(out)
    return before * np.sum(out) + len(out)


def clear_first(values):
    if values:
        values[0] = 0.0
    values.append(1.0)


def test_a_list_of_some_items_that_a_function_changes():
    derivative = value_and_grad(changed_by_a_function)
    for x in np.random.default_rng(8).normal(size=(12, 6)):
        assert derivative(x)[0] == pytest.approx(changed_by_a_function(x), rel=1e-12)


def of_two_lists(x, p):
    a, s = [], p
    for i in range(len(x)):
        s = s * 0.8 + x[i]
        if 0 < s < 1.5:
            a.append(-s)
            s = 0.0
    total = np.median(a) if a else x[2]
    b = []
    for v in x:
        if v < -1 or v > 0.1:
            continue
        b.append(p)
    return total + sum(v * v for v in b)


@pytest.mark.parametrize("seed", range(12))
def test_what_hangs_on_how_many_there_are_is_computed_after_that_is_known(seed):
    """Code reads no item that may not be there."""
    rng = np.random.default_rng(seed)
    derivative = value_and_grad(of_two_lists, (0, 1))
    for k in range(16):
        x, p = rng.normal(size=5), float(rng.normal())
        x = np.abs(x) if k == 7 else -np.abs(x) if k == 8 else 0.01 * x if k == 9 else x
        assert derivative(x, p)[0] == pytest.approx(of_two_lists(x, p), rel=1e-12)
    assert "raises an error" not in derivative.explain()


def trajectory(x):
    y, v, path = x[:2] * 1.0, x[2:4] * 1.0, []
    for _ in range(24):
        if y[1] < 0:
            v = v * np.array([1.0, -0.9])
        v = v - np.array([0.0, 0.1])
        y = y + 0.1 * v
        path.append(y)
    return np.sum(np.array(path) ** 2)


def stays_or_goes(x):
    y, chain = x[:2] * 1.0, []
    for i in range(24):
        new = y * 0.9 + x[2:4] * np.sin(i)
        if new[0] > y[1]:
            y = new
        chain.append(y)
    return np.mean(np.stack(chain), axis=0) @ x[:2]


def goes_on_from_the_last(x):
    ys = [x[:2] * 1.0]
    for _ in range(24):
        y = ys[-1]
        y = y * 0.8 if y[0] > 0.3 else y + x[2:4] * 0.2
        ys.append(y)
    return sum(y[0] * y[1] for y in ys)


def copies(x):
    y, ys = x[:2] * 1.0, []
    for _ in range(24):
        if y[0] > 0.3:
            y *= 0.8
        else:
            y += x[2:4] * 0.2
        ys.append(y.copy())
    ys[3][0] = 2.0
    y[:] = ys[-2]
    return np.sum(np.array(ys) ** 2) + y[0]


def filled(x):
    y, ys = x[:2] * 1.0, []
    for _ in range(24):
        new = np.zeros(2)
        new[0] = y[1] * 0.9 if y[0] > 0.3 else y[1] + 0.3
        new[1] = y[0] + x[2] * 0.1
        ys.append(new)
        y = new
    return np.sum(np.concatenate(ys) ** 2)


def matrices(x):
    m, every = np.eye(2), []
    for i in range(24):
        m = m @ np.array([[0.9, x[i % 4]], [-0.1, 0.8]])
        if np.trace(m) > 1:
            m = m / np.trace(m)
        every.append(m)
    return sum(np.sum(m * m) for m in every)


def in_two_lists(x):
    """On one way an array is in both, as where a filter misses an observation."""
    m, predicted, updated = x[:2] * 1.0, [], []
    for i in range(24):
        p = m * 0.9 + x[2]
        predicted.append(p)
        m = p + 0.5 * (x[i % 4] - p) if x[i % 4] > 0 else p
        updated.append(m)
    return sum(p @ m for p, m in zip(predicted, reversed(updated), strict=True))


@pytest.mark.parametrize("fun", [trajectory, stays_or_goes, goes_on_from_the_last, copies, filled, matrices, in_two_lists])
def test_the_items_may_be_arrays(fun):
    derivative, anew = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(3).normal(size=(12, 4)):
        value, gradient = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(gradient, anew(x)[1], rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses < 6


def is_written_on_one_way(x):
    y, z, ys = x[:2] * 1.0, x[2:4] * 1.0, []
    for i in range(24):
        y = y * 0.9 + z if x[i % 4] > 0 else y
        if y[0] > 1:
            y *= 0.5
        ys.append(y)
    return np.sum(np.array(ys) ** 2)


def is_written_afterwards(x):
    y, z, ys = x[:2] * 1.0, x[2:4] * 1.0, []
    for i in range(24):
        y, z = (z, y * 0.9) if x[i % 4] > 0 else (y, z)
        ys.append(y)
    y += x[1]
    ys[5][0] = x[2] * 2
    return np.sum(np.array(ys) ** 2) + z @ y


def is_compared(x):
    y, z, ys = x[:2] * 1.0, x[2:4] * 1.0, []
    for i in range(24):
        y = z if x[i % 4] > 0 else y * 0.9
        ys.append(y)
    known = sum([one is z for one in ys]) + 2 * (ys[-1] is y) + 4 * (ys[2] is ys[3]) + 8 * np.shares_memory(ys[0], z)
    return np.sum(np.array(ys) ** 2) * (1.0 + known)


def is_kept(x):
    y, kept, ys = x[:2] * 1.0, [x[2:4] * 1.0], []
    for i in range(24):
        if y[0] < x[i % 4]:
            y = kept[0]
        else:
            y = y * 0.9
            kept[0] = y + x[2]
        ys.append(y)
    kept[0] *= 2.0
    return np.sum(np.array(ys) ** 2)


def is_in_both(x):
    m, predicted, updated = x[:2] * 1.0, [], []
    for i in range(24):
        p = m * 0.9 + x[2]
        predicted.append(p)
        m = p * 0.5 if x[i % 4] > 0 else p
        updated.append(m)
    updated[3][0] = 2.0
    predicted[5] *= 3.0
    known = sum([one is other for one, other in zip(predicted, updated, strict=True)])
    return np.sum(np.array(predicted) ** 2) + np.sum(np.array(updated) ** 3) * known + m[0]


def is_written_in_both(x):
    m, predicted, updated = x[:2] * 1.0, [], []
    for i in range(24):
        p = m * 0.9 + x[2]
        predicted.append(p)
        m = p * 0.5 if x[i % 4] > 0 else p
        updated.append(m)
        if x[(i + 1) % 4] > 1.0:
            m[0] = x[3]
    return np.sum(np.array(predicted) ** 2) + np.sum(np.array(updated) ** 3)


@pytest.mark.parametrize(
    "fun", [is_written_on_one_way, is_written_afterwards, is_compared, is_kept, is_in_both, is_written_in_both]
)
def test_arrays_that_are_items_stay_one_array(fun):
    """What is written into an array shows in the lists that hold it, whichever way it came there in other calls."""
    derivative, anew = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(24, 4)):
        value, gradient = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(gradient, anew(x)[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fun", [trajectory, stays_or_goes, filled])
def test_items_put_together_again_are_the_array(fun):
    derivative = value_and_grad(fun)
    for x in np.random.default_rng(5).normal(size=(8, 4)):
        derivative(x)
    assert "= np.stack" not in derivative.source(x)
    assert len(derivative.source(x).splitlines()) < 90
    assert ".copy()" not in derivative.source(x).split("# backward")[1]  # of the cotangent of the array, in each iteration


def until_large(x):
    history, total = [], 0.0
    for v in x:
        total = total + v if v > 0 else total * 0.9
        history.append(total)
        if total > 2.0:
            break
    return sum(history) / len(history) + history[-1]


def before_the_break(x):
    """What is left of the last iteration appends an item, too, if no ``break`` ends it."""
    taken, total = [x[0]], 1.0
    for i in range(1, len(x)):
        if total * x[i] > 1.5:
            break
        total = total * (1.0 + 0.3 * x[i])
        if x[i] > -0.5:
            taken.append(total)
    return max(taken) + taken[-1] * taken[0] + len(taken)


def on_the_way_out(x):
    out, total = [], 0.0
    for v in x:
        if v > 1.0:
            out.append(v**3)
            break
        total = total + v
        if total < -2.0:
            return total
        if v > 0:
            out.append(v + total)
    return np.sum(np.array(out)) if out else total


def with_no_choice(x):
    errors, y = [], x[0]
    for _ in range(40):
        new = 0.5 * np.cos(y) + 0.1 * x[1]
        errors.append(abs(new - y))
        y = new
        if abs(new - 0.45) < 0.01 * abs(x[2]):
            break
    return y + min(errors) * sum(errors)


def backwards(x):
    places = []
    for i in range(len(x) - 1, -1, -2):
        if x[i] > 1.2:
            break
        if x[i] > 0:
            places.append(i)
    return np.sum(x[np.array(places)]) if places else x[0] * 2


UNTIL = [until_large, before_the_break, with_no_choice]


@pytest.mark.parametrize("fun", UNTIL)
def test_lists_of_loops_that_a_break_ends(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng, misses = np.random.default_rng(12), 0
    for k in range(80):
        x = rng.normal(size=12)
        x = np.abs(x) if k in (7, 50) else -np.abs(x) if k in (8, 60) else x
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-10, atol=1e-12)
        misses = derivative.cache_info().misses if k < 50 else misses
    assert derivative.cache_info().misses <= misses + 2


def the_last_if_any(x):
    out = []
    for v in x:
        if v > 0.5:
            break
        out.append(v * x[0])
    return out[-1]


def under_two_names(x):
    out = same = []
    for v in x:
        out.append(v * x[0])
        if v > 0.7:
            break
    same.append(x[1])
    return sum(out) * len(same)


def read_while_it_grows(x):
    out = [1.0]
    for v in x:
        if v * out[-1] > 1.0:
            break
        out.append(out[-1] * (1.0 + 0.3 * v))
    return sum(out)


def with_an_else(x):
    out = []
    for v in x:
        out.append(v * x[0])
        if v > 0.7:
            break
    else:
        out.append(5.0)
    return out[-1] + sum(out)


def changed_afterwards(x):
    out = []
    for v in x:
        out.append(v * x[0])
        if v > 0.7:
            break
    out.reverse()
    out[0] = out[0] * 2
    return sum([(i + 1) * v for i, v in enumerate(out)])


def two_in_a_row(x):
    out = []
    for v in x:
        out.append(v * x[0])
        if v > 0.7:
            break
    for v in x:
        if v < -0.7:
            break
        out.append(v)
    return out[-1] * sum(out)


OTHERS_UNTIL = [
    on_the_way_out,
    backwards,
    the_last_if_any,
    under_two_names,
    read_while_it_grows,
    with_an_else,
    changed_afterwards,
    two_in_a_row,
]


@pytest.mark.parametrize("fun", OTHERS_UNTIL)
def test_other_lists_of_loops_that_a_break_ends(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(13).normal(size=(30, 8)):
        try:
            expected = fun(x)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                derivative(x)
            continue
        value, slope = derivative(x)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-10, atol=1e-12)


def one_by_the_sum(x):
    out = [v for v in x if v > 0.3]
    return x[0] + 1.0 / sum(out)


def one_by_the_largest(x):
    out = [0.0]
    for v in x:
        if v > 0.3:
            out.append(v)
    return x[0] + 1.0 / max(out)


def one_by_the_last(x):
    out = [0.0]
    for v in x:
        if v > 9.0:
            break
        if v > 0.3:
            out.append(v * 0.0 + 1.0)
    return x[0] + 1.0 / out[-1]


@pytest.mark.parametrize("fun", [one_by_the_sum, one_by_the_largest, one_by_the_last])
def test_python_numbers_of_lists_that_nothing_is_appended_to(fun):
    """They raise an error, as Python's do."""
    derivative = value_and_grad(fun)
    for k, x in enumerate(np.random.default_rng(14).normal(size=(20, 5))):
        if k % 4 < 3:
            assert derivative(np.append(x, 1.0))[0] == pytest.approx(fun(np.append(x, 1.0)), rel=1e-12)
        else:
            with pytest.raises(ZeroDivisionError):
                derivative(-np.abs(x))


def path_of_newton(x):
    y, path = x[0] ** 2 + 1.0, []
    while abs(y * y - 2.0) > 1e-6:
        y = y - (y * y - 2.0) / (2.0 * y)
        path.append(y)
    return sum(path) + len(path) * x[1]


def adaptive_steps(x):
    y, t, h, tolerance = x[0], 0.0, 0.1, 1e-4 * (1.0 + x[1] ** 2)
    ys = [y]
    while t < 1.0:
        k1 = np.sin(t) - y
        k2 = np.sin(t + h) - (y + h * k1)
        error = abs(k2 - k1) * h / 2.0
        if error < tolerance:
            y, t = y + h * (k1 + k2) / 2.0, t + h
            ys.append(y)
        h = h * min(2.0, max(0.3, 0.9 * (tolerance / (error + 1e-12)) ** 0.5))
    return np.sum(np.array(ys) ** 2) + ys[-1]


def steps_with_an_end(x):
    """The size of a step is Python's number, and then NumPy's; two lists have one item of each step that is taken."""
    t, y, h = 0.0, x[:2] * 1.0, 0.1
    ts, ys = [t], [y]
    while t < 2.0:
        h = min(h, 2.0 - t)
        k1 = np.array([y[1], -np.sin(y[0]) - 0.1 * x[2] * y[1]])
        k2 = np.array([y[1] + h * k1[1], -np.sin(y[0] + h * k1[0])])
        error = np.max(np.abs(k2 - k1)) * h / 2
        if error < 1e-2:
            t, y = t + h, y + h * (k1 + k2) / 2
            ts.append(t)
            ys.append(y)
            h = h * min(2.0, 0.9 * np.sqrt(1e-2 / max(error, 1e-12)))
        else:
            h = h * 0.5
    return np.array(ts), np.array(ys)


def sums_between_steps(x):
    ts, ys = steps_with_an_end(x)
    return np.sum(np.diff(ts) * ys[1:, 0] ** 2) + np.trapezoid(ys[:, 1], ts) + ys[-1, 0] * ts[-1]


def line_between_steps(x):
    ts, ys = steps_with_an_end(x)
    return np.interp(1.3, ts, ys[:, 0]) + np.sum(np.interp([0.2, 0.5, 2.0], ts, ys[:, 1] ** 2))


def descent(x):
    path, sums = [x], []
    while True:
        slope = 2.0 * x * np.arange(1.0, len(x) + 1.0) / len(x) + 0.1 * np.cos(x)
        if np.sqrt(np.sum(slope**2)) < 0.1:
            break
        x = x - 0.3 * slope
        path.append(x)
        sums.append(np.sum(x**2))
    rows = np.array(path)
    return np.mean(rows**2) + np.sum(rows[-1]) + sum(sums) + np.sum(path[-1] * path[0]) + np.sum(sum(path))


def steps_of_a_system(x):
    y, t, ts, ys = x[:2], 0.0, [], []
    while t < 1.0:
        h = 0.02 + 0.01 * y[0] ** 2
        y, t = y + h * np.array([y[1], -np.sin(y[0])]), t + h
        if y[0] > 0.0:
            ys.append(y)
            ts.append(t)
    return np.sum(np.array(ys)[:, 1]) + np.sum(np.array(ts)) + len(ys) if ys else x[2]


def on_two_sides(x):
    y, some, others = 4.0 * abs(x[0]), [], [0.5]
    while y > 0.01:
        if y > 0.5:
            some.append(y)
        else:
            others.append(y * x[1])
        y = y * (0.8 + 0.01 * np.cos(x[2]))
    return sum(some) + np.sum(np.array(others)) + max(others)


def all_of_one_array(x):
    y, every = x * 1.0, []
    while np.sum(np.abs(y)) > 0.5:
        every.append(y)
        y *= 0.8
    return np.sum(np.array(every)) + np.sum(x)


def none_at_times(x):
    y, every = x[0], []
    while y > 0.2:
        y = 0.7 * y
        every.append(y * x[1:])
    return np.sum(np.stack(every)) if every else x[1] ** 2


@pytest.mark.parametrize(
    ("fun", "misses"),
    [
        (path_of_newton, 4),
        (adaptive_steps, 2),
        (sums_between_steps, 2),
        (line_between_steps, 2),
        (descent, 2),
        (steps_of_a_system, 5),
        (on_two_sides, 6),
        (all_of_one_array, 60),  # which it is in every item, so that there is one for each number of steps
        (none_at_times, 8),
    ],
)
def test_while_loops_that_append_are_one_loop(fun, misses):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(21).normal(size=(40, 4)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-8, atol=1e-11)
    assert derivative.cache_info().misses <= misses


@pytest.mark.long
def test_there_is_room_for_as_many_items_as_there_are():
    def halved(x):
        y, every = x, [0.0]
        while y > 1.0:
            y = y * 0.99
            every.append(y)
        return sum(every)

    def by_hand(x):
        return halved(x) / x  # a sum of powers of 0.99

    derivative = grad(halved)
    assert by_hand(10.0) == pytest.approx(grad(halved, mode="dynamic")(10.0), rel=1e-11)
    for x in (10.0, 20.0, 300.0, 1e4, 1e4, 1e3, 30.0, 0.5):
        assert derivative(x) == pytest.approx(by_hand(x), rel=1e-11)
    misses = derivative.cache_info().misses
    for x in (15.0, 2e4, 5.0):
        assert derivative(x) == pytest.approx(by_hand(x), rel=1e-11)
    assert derivative.cache_info().misses == misses


def test_lists_that_there_is_no_room_for(monkeypatch):
    monkeypatch.setattr(iterables, "MOST_ROOM", iterables.ROOM)

    def halved(x):
        y, every = x, []
        while y > 1.0:
            y = y * 0.99
            every.append(y)
        return sum(every)

    derivative = grad(halved)
    for x in (10.0, 1e6, 1e6, 1e6, 20.0):
        assert derivative(x) == pytest.approx(grad(halved, mode="dynamic")(x), rel=1e-11)


def test_other_while_loops_that_append():
    def with_an_else(x):
        y, every = x, []
        while y > 1.0:
            y = y * 0.5
            every.append(y)
        else:
            y = y + 1.0
        return sum(every) * y

    def two_at_once(x):
        y, every = x, []
        while y > 1.0:
            every.append(y)
            y = y * 0.5
            every.append(y * x)
        return sum(every)

    def left_early(x):
        y, every = x, []
        while y > 1.0:
            y = y * 0.5
            every.append(y)
            if len(every) > 4:
                return every[-1] * x
        return sum(every)

    def that_never_runs(x):
        every = [x]
        while False:
            every.append(x)
            if x > 0:
                break
        return sum(every)

    for fun in (with_an_else, two_at_once, left_early, that_never_runs):
        derivative = value_and_grad(fun)
        for x in (3.0, 0.5, 7.0, 100.0, 3.5, 7.0, 0.1, 1000.0):
            assert derivative(x) == pytest.approx(value_and_grad(fun, mode="dynamic")(x), rel=1e-12)


def test_lists_grow_beside_a_filled_array_that_has_two_names():
    def fun(x):
        a = np.zeros(len(x))
        v, path, kept = a[1:], [0.4], [0.2, x[0]]
        for i in range(1, len(x)):
            path.append(x[i])
            kept[-1] += 1.0
        return np.sum(np.sin(a)) + np.sum(v) + sum(path) + sum(q * q for q in kept)

    derivative = value_and_grad(fun)
    for n in (3, 3, 3, 4, 6, 6, 6):
        x = np.arange(1.0, n + 1)
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x))
        np.testing.assert_allclose(slope, [2 * (x[0] + n - 1), *np.ones(n - 1)])


def test_a_list_that_begins_with_a_constant_array():
    """Trajectories: each state is an array that is filled."""

    def swung(p, n):
        states = [np.array([-1.0, 1.0])]
        for _ in range(n):
            y = np.empty(2)
            y[0] = p[0] * states[-1][1]
            y[1] = states[-1][0]
            states.append(y)
        return np.sum(states[-1] ** 2)

    for n, slope in [(2, 2.0), (3, 1.5), (4, 1.0), (8, 0.125)]:
        for _ in range(3):
            assert grad(swung)(np.array([0.5]), n) == pytest.approx([slope])


def test_cotangents_of_sums_are_numbers_in_loops():
    """Each item of the sum of a list that a loop appends to has the same cotangent: no array was looked into for it."""

    def overflow(share, rain):
        store, out = 10.0, []
        for amount in rain:
            store = store + amount
            drained = share * store
            store = max(store - drained, 0.0)
            out.append(drained)
        return np.array(out).sum()

    rain = np.random.default_rng(0).gamma(0.5, 8.0, 120)
    derivative = grad(overflow)
    np.testing.assert_allclose(derivative(0.2, rain), grad(overflow, mode="dynamic")(0.2, rain), rtol=1e-12)
    assert "broadcast_to" not in derivative.source(0.2, rain, fast=True)


def to_one_of_two(x):
    above, below = [], []
    for v in x:
        (above if v > 0 else below).append(v * v)
    return sum(above) - 2.0 * np.sum(below)


def longer_by_one(x):
    states = [x[0]]
    for v in x:
        states = states + [np.tanh(states[-1] + v)]  # noqa: RUF005
    return np.sum(np.array(states) ** 2) + len(states)


def longer_by_one_more(x):
    states = [x[0], 1.0]
    for v in x:
        states = [*states, states[-1] * np.cos(v)]
    return np.sum(np.array(states) ** 2)


@pytest.mark.parametrize("fun", [to_one_of_two, longer_by_one, longer_by_one_more])
def test_other_ways_to_append(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(6):
        right_at(derivative, fun, rng.normal(size=50), (1e-12, 0), (1e-9, 1e-12))
    assert derivative.cache_info().misses == 2


def with_another_name(x):
    states = [x[0]]
    old, s = states, 0.0
    for v in x:
        states = [*states, v]
        s += len(old)
    return np.sum(np.array(states)) * s


def kept_as_it_was(x):
    states, every = [x[0]], []
    for v in x[:6]:
        states = [*states, v * states[-1]]
        every.append(states)
    return sum(sum(each) for each in every)


def while_it_is_gone_through(x):
    states = [x[0]]
    for v in x[:6]:
        for h in states:
            states = [*states, h * v]
    return np.sum(np.array(states))


def kept_by_a_function(x):
    states, asked = [x[0]], []
    for v in x[:6]:
        asked.append(lambda s=states: len(s))
        states = [*states, v]
    return sum(ask() for ask in asked) * x[1]


@pytest.mark.parametrize("fun", [with_another_name, kept_as_it_was, while_it_is_gone_through, kept_by_a_function])
def test_lists_that_somebody_else_has_grow_no_longer(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(4):
        right_at(derivative, fun, rng.normal(size=40), (1e-12, 0), (1e-9, 1e-12))


def joined_by_iadd(x):
    some = []
    for v in x:
        if v > 0:
            some.append(v)
    some += [x[0], 1.0]
    return sum(some)


def multiplied(x):
    some, i = [], 0
    while i < len(x):
        if x[i] > 0:
            some.append(x[i])
        i += 1
    some *= 2
    return sum(some)


@pytest.mark.parametrize("fun", [joined_by_iadd, multiplied])
def test_lists_that_grow_in_place_later(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(4):
        right_at(derivative, fun, rng.normal(size=40), (1e-12, 0), (1e-9, 1e-12))


def ints_of_names(x):
    """What is appended is an int of the source, by a name that only ever stands for such."""
    kinds, state, up = [], 0, -1
    for v in x:
        if v > 1:
            state = 2
        elif v < -1:
            state = up
        kinds.append(state)
    s, n = 0.0, 0
    for kind, v in zip(kinds, x, strict=True):
        if kind == 2:
            s += v * kind
        elif kind < 0:
            s -= v
            n += kind
    return s + n * kinds[3]


def ints_of_names_or_more(x):
    kinds, state = [], 0
    for k, v in enumerate(x):
        if v > 1:
            state = k
        elif v < -1:
            state = 0.5
        kinds.append(state)
    return sum(kind * v for kind, v in zip(kinds, x, strict=True))


def large_ints_of_names(x):
    big, one, kinds = 9223372036854775807, 1, []
    for v in x:
        kinds.append(big if v > 0 else one)
    s = 0.0
    for kind, v in zip(kinds, x, strict=True):
        if kind + 1 > 5:
            s += v
    return s


def large_ints(x):
    kinds = []
    for v in x:
        kinds.append(100000000000000000000 if v > 0 else 1)
    return sum(kind * v for kind, v in zip(kinds, x, strict=True))


@pytest.mark.parametrize("fun", [ints_of_names, ints_of_names_or_more, large_ints_of_names, large_ints])
def test_ints_that_names_stand_for(fun):
    derivative = value_and_grad(fun)
    for k in range(20):
        right_at(derivative, fun, np.random.default_rng(k).normal(size=20), (1e-12, 1e-12), (1e-8, 1e-11))
    if fun is ints_of_names:
        assert derivative.cache_info().misses <= 6


def int_of_some_iterations(x):
    kinds = []
    for v in x:
        if v > 0:
            n = 1
        kinds.append(n)
    return x[0] * sum(kinds)


def test_an_int_that_is_appended_before_it_is_bound():
    derivative = value_and_grad(int_of_some_iterations)
    for k in range(20):
        x = np.random.default_rng(k).normal(size=9)
        if x[0] > 0:
            right_at(derivative, int_of_some_iterations, x, (1e-12, 1e-12), (1e-8, 1e-11))
        else:
            with pytest.raises(UnboundLocalError, match="'n'"):
                derivative(x)


def components(mu, x):
    found = []
    for m in mu:
        found.append(np.exp(-0.5 * np.sum((x - m) ** 2, axis=1)))
    return np.sum(np.log(np.sum(np.stack(found), axis=0)))


def listed_components(mu, x):
    return np.sum(np.log(sum([np.exp(-np.sum((x - mu[k]) ** 2, axis=1)) * (k + 1) for k in range(len(mu))])))


def columns(mu, x):
    found = [x[:, k] for k in range(3)]
    for k in range(len(mu)):
        found.append(np.tanh(x @ mu[k]))
    return np.sum(np.stack(found, axis=1) ** 2) + np.sum(found[-2] * found[1])


def states(mu, x):
    h, found = x[0], []
    for m in mu:
        h = np.tanh(h * m + x[1])
        found.append(h)
    return np.sum(np.array(found) ** 2) + np.sum(found[2])


def changed_later(mu, x):
    found = []
    for m in mu:
        found.append(x @ m)
        if len(found) > 2:
            found[1] = found[1] * 0.5
    return np.sum(np.array(found) ** 3)


@pytest.mark.parametrize("count", [3, 4, 6, 20])
@pytest.mark.parametrize("fun", [components, listed_components, columns, states, changed_later])
def test_arrays_in_short_lists(fun, count):
    """All at once, where no iteration needs another one."""
    rng = np.random.default_rng(count)
    derivative = value_and_grad(fun, (0, 1))
    for n in (7, 7, 7, 5, 7):
        args = rng.normal(size=(count, 3)), rng.normal(size=(n, 3))
        value, slopes = derivative(*args)
        expected, others = value_and_grad(fun, (0, 1), mode="dynamic")(*args)
        assert value == pytest.approx(expected, rel=1e-12)
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)
    lines = len(str(derivative.source(*args)).splitlines())
    assert lines < 30 or fun not in (components, listed_components) or count < 4


def two_residuals(p, x):
    found = []
    for i in range(len(x)):
        z = x[i, 2] + p[2] + 5.0
        found.append(p[0] * x[i, 0] / z)
        found.append(p[1] * x[i, 1] / z)
    return np.sum(np.sin(np.array(found) * np.arange(2 * len(x))))


def extended(p, x):
    found = [p[1]]
    found.append(p[0])
    for row in x:
        a = p[0] * row[0]
        found += [a, a * a, p[1] * row[1]]
    found.append(p[2])
    for i in range(len(x)):
        found.extend((p[2] * x[i, 1], x[i, 0]))
    return np.sum(np.sin(np.stack(found) * np.arange(5 * len(x) + 3)))


def added_one_by_one(p, x):
    found = []
    for row in x:
        found += [p[0] * row[0] + p[1]]
    return np.sum(np.sin(np.array(found) * np.arange(len(x))))


def pairs_of_arrays(p, x):
    found = []
    for i in range(len(x)):
        found.append(p * x[i])
        found.append(p + x[i])
    return np.sum(np.sin(np.reshape(np.array(found), (-1, 3)) * np.arange(6 * len(x)).reshape(-1, 3)))


def positions_and_speeds(p, x):
    found, place, speed = [], p[0], p[1]
    for row in x:
        place = place + 0.1 * speed
        speed = speed - 0.1 * np.sin(place) * row[0]
        if place > 1.0:
            speed = speed * p[2]
        found.append(place)
        found.append(speed)
    return np.sum(np.array(found).reshape(-1, 2) ** 2 * [1.0, 2.0])


def two_in_a_nest(p, x):
    found = []
    for i in range(len(x)):
        for j in range(len(x)):
            found.append(p[0] * x[i, 0] * x[j, 1])
            found.append(p[1] * x[j, 1] * p[2])
    return np.sum(np.sin(np.array(found) * np.arange(2 * len(x) ** 2)))


def summed_and_read(p, x):
    found = []
    for row in x:
        found.append(p[0] * row[0])
        found.append(p[1] + row[0] * p[2])
    return sum(found) + np.prod(found[1::5]) + max(found) + found[3] * len(found) + found[-1] ** 2


def one_way_or_the_other(p, x):
    """Nobody can tell how many, so that the list is made as it says."""
    found = []
    for row in x:
        if row[0] > 0:
            found.append(p[0] * row[0])
        found.append(p[1] * row[1])
        found.append(p[2])
    return np.sum(np.sin(np.array(found) * np.arange(len(found))))


def seen_by_another_name(p, x):
    found = []
    other, total = found, 0.0
    for row in x:
        found.append(p[0] * row[0])
        found.append(p[1] * row[1])
        total = total + len(other) * p[2] * row[2]
    return total + sum(found)


def left_early(p, x):
    found = []
    for row in x:
        found.append(p[0] * row[0])
        if row[1] > 1.0:
            break
        found.append(p[1] * row[1] * p[2])
    return np.sum(np.sin(np.array(found) * np.arange(len(found))))


def stopped(p, x):
    found = []
    try:
        for i in range(len(x)):
            found.append(p[0] * x[i, 0])
            found.append(p[1] * x[i + 1, 1] * p[2])
    except IndexError:
        pass
    return np.sum(np.sin(np.array(found) * np.arange(len(found))))


@pytest.mark.parametrize(
    ("fun", "longest"),
    [
        (two_residuals, 60),
        (extended, 60),
        (added_one_by_one, 60),
        (pairs_of_arrays, 60),
        (positions_and_speeds, 100),
        (two_in_a_nest, 60),
        (summed_and_read, None),
        (one_way_or_the_other, None),
        (seen_by_another_name, None),
        (left_early, None),
        (stopped, None),
    ],
)
def test_several_in_an_iteration(fun, longest):
    """Their items come in turn, and the loop is one still."""
    rng = np.random.default_rng(7)
    derivative = value_and_grad(fun, (0, 1))
    for n in (40, 40, 40, 3, 0, 40) if fun is not summed_and_read else (40, 40, 40, 9):
        args = rng.normal(size=3), rng.normal(size=(n, 3))
        value, slopes = derivative(*args)
        expected, others = value_and_grad(fun, (0, 1), mode="dynamic")(*args)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    if longest is not None:
        assert len(str(derivative.source(*args)).splitlines()) < longest


# ---- views of the state: in code they are arrays of their own, unless one can tell ---------------------------------


def the_state_is_written_into(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        out.append(c[-1])
    c[-1] *= 2.0
    return np.sum(np.array(out) ** 2) + np.sum(c)


def an_item_is_written_into(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        out.append(c[-1])
    out[-1][:] = 1.0 * p[0]
    return np.sum(np.array(out) ** 2) + np.sum(c**2)


def a_state_that_is_written_into(p):
    c = np.outer(np.linspace(0.5, 1, 4), p) * 1.0
    out = []
    for _k in range(12):
        c[:] = np.sin(c + 0.1)
        out.append(c[-1])
    return np.sum(np.array(out) ** 2)


def an_old_state_is_written_into(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    for _k in range(12):
        old = c
        c = np.sin(c + 0.1)
        out.append(c[-1])
        old[-1] *= 1.1
    return np.sum(np.array(out) ** 2)


def at_times_in_place(p):
    c = np.outer(np.linspace(0.5, 1, 4), p) * 1.0
    out = []
    for k in range(12):
        if k % 3 == 2:
            c *= 0.9
        else:
            c = np.sin(c + 0.1)
        out.append(c[1])
    return np.sum(np.array(out) ** 2)


def two_views_of_one_state(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    o2 = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        out.append(c[0])
        o2.append(c[1:3])
    o2[3][0] += 1.0
    return np.sum(np.array(out) ** 2) + np.sum(np.array(o2) ** 3)


def two_views_that_overlap(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    o2 = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        out.append(c[1])
        o2.append(c[1:3])
    o2[3][0] += 1.0
    return np.sum(np.array(out) ** 2) + np.sum(np.array(o2) ** 3)


def some_rows(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        if np.sum(c[0]) > p[1]:
            out.append(c[-1])
    if out:
        out[0] *= 2.0
    return sum([np.sum(o**2) for o in out]) + np.sum(c)


def rows_of_one_array(p):
    c = np.sin(np.outer(np.linspace(0.5, 1, 4), p))
    out = []
    for i in range(4):
        out.append(c[i])
    c[2] *= 3.0
    return np.sum(np.array(out) ** 2)


def parts_of_an_argument(p):
    out = []
    s = 0.0
    for i in range(len(p) - 1):
        s = s + p[i]
        out.append(p[i : i + 2])
    return np.sum(np.array(out) ** 2) * s


def until_a_test_fails(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    t = 0.0
    while t < 1.0:
        c = np.sin(c + 0.1)
        out.append(c[-1])
        t += 0.1 + 0.05 * np.max(c)
    return np.sum(np.stack(out) ** 2)


def the_last_item_is_written_into(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = [np.ones(3) * p[0]]
    for _k in range(12):
        out[-1] *= 1.1
        c = np.sin(c + 0.1)
        out.append(c[-1])
    return np.sum(np.array(out) ** 2) + np.sum(c)


def columns_of_the_state(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        out.append(c[:, 1])
    return np.sum(np.array(out) ** 2)


def the_last_item_is_read(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = [np.zeros(3)]
    for _k in range(12):
        c = np.sin(c + 0.1 * out[-1])
        out.append(c[-1])
    return np.sum(np.array(out) ** 2)


def states_and_rows_of_them(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    cs = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        out.append(c[-1])
        cs.append(c)
    cs[4][-1] = p
    return np.sum(np.array(out) ** 2) + np.sum(np.array(cs))


def a_row_with_a_name(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        v = c[-1]
        out.append(v)
    v += 1.0
    return np.sum(np.array(out) ** 2) + np.sum(c)


def transposed(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        out.append(c.T)
    return np.sum(np.array(out) ** 2)


def reshaped(p):
    c = np.outer(np.linspace(0.5, 1, 4), p)
    out = []
    for _k in range(12):
        c = np.sin(c + 0.1)
        out.append(c.reshape(2, 6))
    c[0] = 0
    return np.sum(np.array(out) ** 2)


ROWS = [
    the_state_is_written_into,
    an_item_is_written_into,
    a_state_that_is_written_into,
    an_old_state_is_written_into,
    at_times_in_place,
    two_views_of_one_state,
    two_views_that_overlap,
    some_rows,
    rows_of_one_array,
    parts_of_an_argument,
    until_a_test_fails,
    the_last_item_is_written_into,
    columns_of_the_state,
    the_last_item_is_read,
    states_and_rows_of_them,
    a_row_with_a_name,
    transposed,
    reshaped,
]


@pytest.mark.parametrize("fun", ROWS)
def test_views_that_are_items(fun):
    derivative, oracle = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(6):
        p = np.array([0.5, 0.7, 0.6]) * (1 + 0.2 * (k % 4))
        given = p.copy()
        (value, slope), (other, expected) = derivative(given), oracle(p.copy())
        np.testing.assert_allclose([value, other], fun(p.copy()), rtol=1e-11)
        np.testing.assert_allclose(slope, expected, rtol=1e-9)
        np.testing.assert_array_equal(given, p)
    assert derivative.cache_info().hits >= 3


def test_rows_of_the_state_are_a_loop():
    def column(p, inflow):
        c, out = np.ones((30, 2)), []
        for k in range(200):
            c = np.tanh(c + 0.01 * (inflow[:, k] - c) * p)
            out.append(c[-1])
        return np.sum(np.array(out) ** 2)

    inflow = np.random.default_rng(0).normal(size=(2, 200))
    assert len(grad(column).source(0.5, inflow).splitlines()) < 60


def a_view_of_what_stays(p, steps):
    s, w, out = np.outer(np.linspace(0.5, 1.0, 4), p), np.outer(np.ones(2), p), []
    for _ in range(steps):
        out.append(w[0])
        s = np.tanh(s + 0.1 * p)
    w[0] = 2.0
    return np.sum(np.stack(out) * p) + np.sum(s)


def what_stays(p, steps):
    s, b, out = np.outer(np.linspace(0.5, 1.0, 4), p), p * 2, []
    for _ in range(steps):
        out.append(b)
        s = np.tanh(s + 0.1 * p)
    b[0] = 2.0
    return np.sum(np.stack(out) * p) + np.sum(s)


def an_item_of_the_middle(p, steps):
    s, b, out = np.outer(np.linspace(0.5, 1.0, 4), p), p * 2, []
    for _ in range(steps):
        out.append(b)
        s = np.tanh(s + 0.1 * p)
    out[steps // 2][0] = 2.0
    return np.sum(np.stack(out) * p) + np.sum(s) + np.sum(b)


def where_the_loop_decides(p, steps):
    s, out, total = np.outer(np.linspace(0.5, 1.0, 4), p), [], 0.0
    for k in range(steps):
        out.append(s[3])
        if p[k % 3] > 0.6:
            total += p[0]
    out[-1] *= 2.0
    return total + sum([np.sum(o**2) for o in out])


def overlapping_where_the_loop_decides(p, steps):
    s, out, o2 = np.outer(np.linspace(0.5, 1.0, 4), p), [], []
    for _ in range(steps):
        s = np.sin(s + 0.1)
        if np.sum(s) > 4:
            s = s * 0.9
        out.append(s[2:])
        o2.append(s[3])
    o2[steps * 3 // 4] *= 2.0
    return sum([np.sum(o**2) for o in out])


@pytest.mark.whole
@pytest.mark.parametrize("steps", [20, 30, 60])
@pytest.mark.parametrize(
    "fun", [a_view_of_what_stays, what_stays, an_item_of_the_middle, where_the_loop_decides, overlapping_where_the_loop_decides]
)
def test_items_that_were_passed_over_are_one_array(fun, steps):
    derivative, oracle = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(4):
        p = np.array([0.5, 0.7, 0.6]) * (1 + 0.1 * k)
        value, slope = derivative(p, steps)
        np.testing.assert_allclose(value, fun(p, steps), rtol=1e-12)
        np.testing.assert_allclose(slope, oracle(p, steps)[1], rtol=1e-12)


def both_or_neither(x):
    out = []
    for v in x:
        if v > 0:
            out.append(x[1])
        if v <= 0.25:
            out.append(1.0)
    return sum(out[1:])


def twice_at_times(x):
    out = [x[0]]
    for i in range(1, len(x)):
        if x[i] > x[i - 1]:
            out.append(x[i] * out[-1])
        if x[i] <= 0.5:
            out.append(x[i] + out[-1])
    return sum(out) * len(out)


def once_and_again(x):
    rows = []
    for v in x:
        rows.append(v * x)
        if v > 0.5:
            rows.append(v + x)
    return np.sum(np.stack(rows) ** 2) if rows else 0.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fun", [both_or_neither, twice_at_times, once_and_again])
def test_iterations_that_append_twice_or_not_at_all(fun, seed):
    """Each may have appended once, as it happens, in all calls so far."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(seed)
    for call in range(12):
        x = np.round(4 * rng.uniform(-1.2, 1.2, 5)) / 4
        x = np.where((x > 0) & (x <= 0.25), 0.5, x) if call < 5 else x
        right_at(derivative, fun, x, value=(1e-12, 1e-14), slope=(1e-10, 1e-12))


def largest_of_ints(x, n):
    found, k = [], n
    for i in range(40):
        k = k * 3 + 1
        found.append(k)
        if x[0] * i > 8:
            break
    return x[0] * (max(found) % 11) + x[1] * (min(found) % 7)


def sum_of_ints(x, n):
    found, k = [], n
    for i in range(39):
        k = k * 3 + 1
        found.append(k)
        if x[0] * i > 8:
            break
    return x[0] * (sum(found) % 11)


def last_of_ints(x, n):
    found = [n]
    for i in range(50):
        found.append(found[-1] * 3)
        if x[0] * i > 8:
            break
    return np.sum(x**2) * (found[-1] % 7)


@pytest.mark.parametrize("fun", [largest_of_ints, sum_of_ints, last_of_ints])
def test_ints_of_lists_are_pythons(fun):
    """However large they get; no float is near enough to some."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    calls = [(1.0, 1), (1.0, 1), (2.0, 1), (2.0, 1), (1.0, 10**17), (2.0, 10**15), (1.0, 10**18), (1.0, 10**19), (0.125, 1)]
    for a, n in [*calls, *calls]:
        x = np.array([a, 1.0])
        found, expected = derivative(x, n), dynamic(x, n)
        assert found[0] == expected[0] == fun(x, n)
        np.testing.assert_array_equal(found[1], expected[1])


def by_lags(a, r, parents):
    items = []
    for t in range(100):
        total = 0.0
        if t - 1 >= 0:
            total += a[0] * items[t - 1]
        if t - 2 >= 0:
            total += a[1] * items[t - 2]
        items.append(r[t] - total)
    return np.sum(np.array(items) ** 2)


def by_lags_of_a_loop(a, r, parents):
    items = []
    for t in range(100):
        total = 0.0
        for k in range(2):
            if t - k - 1 >= 0:
                total += a[k] * items[t - k - 1]
        items.append(r[t] - total)
    return np.sum(np.array(items) ** 2)


def by_lags_while(a, r, parents):
    items = []
    for t in range(100):
        total, k = 0.0, 0
        while k < 3 and t - k - 1 >= 0:
            total += a[k] * items[t - k - 1]
            k += 1
        items.append(total + r[t])
    return np.sum(np.array(items))


def by_windows(a, r, parents):
    items, total = [], 0.0
    for t in range(40):
        items.append(np.tanh(r[t] + a[0]))
        for k in range(max(0, t - 3), t + 1):
            total += items[k] * a[1]
    return total


def by_data(a, r, parents):
    items = []
    for t in range(100):
        i = parents[t]
        items.append(a[0] * r[t] if i < 0 or i >= t else items[i] * a[1])
    return np.sum(np.array(items))


def two_by_lags(a, r, parents):
    x, y = [a[0]], [a[1]]
    for t in range(1, 100):
        x.append(np.sin(y[t - 1]) + r[t] * (x[t - 3] if t > 3 else 1.0))
        y.append(np.cos(x[t]) * (y[t - 2] if t > 2 else a[2]))
    return np.sum(np.array(x)) + np.sum(np.array(y))


def kinds_by_lags(a, r, parents):
    items = []
    for t in range(100):
        items.append(float(t) if t < 2 else items[t - 1] * 0.5 + items[t - 2] * a[0])
    return np.sum(np.array(items))


def by_twos(a, r, parents):
    items = [a[0]]
    for t in range(2, 120, 2):
        items.append(a[1] * items[t // 2 - 1] + r[t])
    return np.sum(np.array(items))


def far_back(a, r, parents):
    items = []
    for t in range(300):
        items.append(np.sin(items[t - 7] if t >= 7 else a[1]) * a[0] + 0.1)
    return np.sum(np.array(items))


BY_PLACE = [
    by_lags, by_lags_of_a_loop, by_lags_while, by_windows, by_data, two_by_lags, kinds_by_lags, by_twos, far_back,
]  # fmt: skip


@pytest.mark.parametrize("fun", BY_PLACE)
def test_items_are_read_by_places_that_other_iterations_have_appended(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for seed in range(10):
        rng = np.random.default_rng(seed)
        parents = np.array([-1, *[rng.integers(0, t) for t in range(1, 100)]])
        parents[5 + seed] = (-1, 90, 5)[seed % 3]
        args = rng.standard_normal(3) * 0.5, rng.standard_normal(120), parents
        found, expected = derivative(*args), dynamic(*args)
        assert type(found[0]) is type(expected[0])
        np.testing.assert_allclose(found[0], fun(*args), rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses <= 4
    assert len(derivative.source(*args).splitlines()) < 300


def test_places_of_a_list_beyond_its_end_are_an_error():
    def heirs(a, parents):
        values = [a[0]]
        for t in range(1, 50):
            values.append(values[parents[t]] * a[1] if parents[t] != 7 else a[1])
        return values[-1]

    derivative, dynamic = grad(heirs), grad(heirs, mode="dynamic")
    x, parents = np.array([1.0, 0.5]), np.arange(-1, 49)
    for at in (0, 1, 2, 3, 4, 5, 30, 49, 20, -25, -1, -20, 7, 19):
        parents[20] = at
        if -20 <= at < 20:
            np.testing.assert_allclose(derivative(x, parents), dynamic(x, parents), rtol=1e-12)
        else:
            with pytest.raises(IndexError, match="list index out of range"):
                derivative(x, parents)


def one_back_if(a, r):
    items = []
    for t in range(40):
        items.append((items[t - 1] * a[0] if r[t] > 0 else 0.0) + r[t])
    return np.sum(np.array(items))


def far_back_if(a, r):
    items = [a[1]]
    for t in range(1, 40):
        items.append((items[t - 3] * a[0] if r[t] > 0.8 else 0.0) + r[t])
    return np.sum(np.array(items))


def two_back_if(a, r):
    items = []
    for t in range(40):
        items.append((items[t - 2] * a[0] + items[t - 1] if r[t] > 0.8 else 0.0) + r[t])
    return np.sum(np.array(items))


def either_way_back(a, r):
    items = [1.0]
    for t in range(40):
        back = 0.0
        if r[t] > 0.8:
            back = items[t] * a[0]
        elif r[t] < -0.8:
            back = items[t - 2] * a[1]
        items.append(back + r[t])
    return np.sum(np.array(items))


@pytest.mark.parametrize("fun", [one_back_if, far_back_if, two_back_if, either_way_back])
def test_iterations_that_never_read_there_may_do_so_in_other_calls(fun):
    """From the end of the list, or beyond its beginning, where the first ones do."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for seed in range(16):
        rng = np.random.default_rng(seed)
        a, r = rng.standard_normal(2) * 0.5, rng.standard_normal(40)
        r[:8] = -0.1 * np.arange(1, 9)
        if seed >= 8:
            r[seed % 8] = (1.0, -1.0)[seed % 3 == 0]
        try:
            expected = dynamic(a, r)
        except IndexError:
            with pytest.raises(IndexError, match="list index out of range"):
                derivative(a, r)
            continue
        found = derivative(a, r)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9, atol=1e-12)


def conditional_variances(p, r):
    variances, total = [], 0.0
    for t in range(100):
        v = p[0]
        for k in range(1, 4):
            if t - k >= 0:
                v += p[1] / k * r[t - k] ** 2 + p[2] / k * variances[t - k]
                if r[t - k] < 0:
                    v += p[3] * r[t - k] ** 2
        variances.append(v)
        total += 0.5 * (np.log(v) + r[t] ** 2 / v)
    return total


def test_a_loop_goes_on_as_it_leapt():
    """From the iteration on from which all read as far back as the others."""
    derivative, dynamic = value_and_grad(conditional_variances), value_and_grad(conditional_variances, mode="dynamic")
    r = np.random.default_rng(0).standard_normal(100)
    for seed in range(4):
        args = np.random.default_rng(seed).uniform(0.05, 0.3, 4), r
        found, expected = derivative(*args), dynamic(*args)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    assert derivative.cache_info().misses == 2
    assert len(derivative.source(*args).splitlines()) < 150
