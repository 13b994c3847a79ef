"""What masks select: code for it does not hang on how many there are, unless somebody asks."""

import warnings

import numpy as np
import pytest
from agreement import right_at, slopes

from symgrad import grad, hvp, jacobian, value_and_grad, vmap, without

# -- functions of six or more numbers, by whose signs masks are made ------------------------------------------------


def written_back(x):
    y = np.zeros_like(x)
    m = x > 0
    y[m] = np.log1p(x[m])
    y[~m] = x[~m] ** 2
    return np.sum(y)


def changed_in_place(x):
    y = x * 2
    y[y < 0] *= 0.1
    y[x > 1] -= np.sin(y[x > 1])
    return np.sum(y**2)


def both_parts(x):
    e = x - 0.3
    above, below = e[e > 0], e[e <= 0]
    return np.sum(above**3) + np.abs(below).sum() + np.sum(above)


def by_places(x):
    above = np.where(x > 0)[0]
    z = np.sin(x)
    z[above] = z[above] * x[above] + x[above - 1]
    z[np.flatnonzero(x < -1)] = 0.5
    return np.sum(z) + np.sum(above)


def by_places_of_a_row(x):
    table = np.outer(x, np.arange(3.0))
    rows = np.nonzero(x > 0.2)[0]
    return np.sum(table[rows] * np.array([1.0, 2.0, 0.5])) + np.sum(np.sum(table[x > 0.2], axis=0) ** 2)


def first_and_last(x):
    s, rows = np.sin(x[x > 0]), np.outer(x, np.arange(1.0, 3.0))[x > -3]
    return (s[0] * s[-1] if len(s) else 0.0) + np.sum(rows[-1] ** 2) + rows[0, 1] * rows[-1, 0] + rows[0][1]


def of_all_numbers_in_rows(x):
    rows = np.outer(x, np.arange(1.0, 4.0))[x > -0.3]
    return np.mean(rows**2) + np.std(rows) + np.var(rows, ddof=1) + np.sum(np.mean(rows, axis=0)) if len(rows) > 1 else x[0]


def within(x):
    above = x[x > -0.5]
    return np.sum(above[above < 1] ** 2 * 0.5) + np.sum(np.log(above[above > 0.1]))


def in_a_matrix(x):
    a = np.outer(x, np.cos(x))
    b = np.where(a > 0, a, 1.0)
    b[a > 0.5] = np.sqrt(a[a > 0.5])
    return np.sum(a[a > 0.1] * b[a > 0.1])


def in_pieces(x):
    pieces = np.piecewise(x, [x < -1, x > 1], [lambda t: -t, np.square, lambda t: 0.5 * t])
    return np.sum(pieces * np.arange(8.0))


def of_their_number(x):
    m = x > -0.2
    s = x[m]
    return np.sum(s) / len(s) + s.size * x[0] + np.sum(s[:, None] * np.ones((1, 2))) / s.shape[0] + m.sum() * x[1]


def compressed(x):
    return np.sum(np.compress(x > 0, x) ** 2) + np.sum(np.extract(np.outer(x, x) > 1, np.outer(x, x)))


def products(x):
    m = x > 0.2
    w = np.arange(x.size) * 1.0
    return np.dot(x[m], w[m]) + x[m] @ np.exp(x[m]) + np.linalg.norm(x[m]) ** 2 + np.prod(1 + x[m])


STATISTICS = (np.mean, np.max, np.min, np.var, np.std)


def statistics(x):
    s = x[x > -1.5]
    return sum([statistic(s) * (i + 1) for i, statistic in enumerate(STATISTICS)]) + np.std(s, ddof=1)


def decided(x):
    s = x[x > 1]
    if s.size == 0:
        return np.sum(x)
    return np.sum(s**2) if np.sum(s) > 2 else np.sum(np.cos(x))


FUNCTIONS = [
    written_back, changed_in_place, both_parts, by_places, by_places_of_a_row, within, in_a_matrix, in_pieces, of_their_number,
    compressed, products, statistics, decided, first_and_last, of_all_numbers_in_rows,
]  # fmt: skip


def checked(fun, calls=30, size=8, modes=("auto",)):
    """The derivative of a function, once it has given the right values and slopes of that many arguments of other signs."""
    rng = np.random.default_rng(0)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for _ in range(calls):
        x = rng.normal(size=size)
        value, slope = derivative(x.copy())
        np.testing.assert_allclose(value, fun(x.copy()), rtol=1e-12)
        np.testing.assert_allclose(slope, dynamic(x.copy())[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(slope, slopes(fun, [x])[0], rtol=1e-5, atol=1e-7)
    return derivative


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda fun: fun.__name__)
def test_code_does_not_hang_on_how_many_are_selected(fun):
    derivative = checked(fun)
    assert derivative.cache_info().misses <= (10 if fun in (decided, in_pieces) else 4)
    assert "dynamic" not in derivative.explain()


# -- neighbours, more at the ends, and lines through what is selected ------------------------------------------------


def by_pairs(x):
    s = x[x > 0]
    return np.sum(s[1:] * s[:-1]) + np.sum((s[2:] - 2 * s[1:-1] + s[:-2]) ** 2) + np.sum(np.diff(s) * s[1:] ** 2)


def backwards(x):
    s = x[x > 0]
    return np.sum(np.cumsum(np.exp(s)[::-1])[::-1] * s) + np.sum(s[::-1] * np.sin(s)[::-1])


def pairs_of_rows(x):
    rows = np.outer(x, [1.0, 2.0])[x > 0]
    return np.sum((rows[1:] - rows[:-1]) ** 2 + np.diff(rows, axis=0)) + np.sum(np.cumsum(rows, axis=0)[1:, 0] * rows[:-1, 1])


def area(x):
    m, t = x > -0.5, np.linspace(0, 1, len(x))
    return np.trapezoid(x[m] ** 2, t[m]) + np.trapezoid(x[m], dx=0.1)


def with_more_at_the_ends(x):
    s = x[x > 0]
    c = np.concatenate(([0.0], np.cumsum(s)))
    return np.sum(c[1:] * c[:-1]) + c[-1] + np.max(np.append(s, x[0])) + np.sum(np.concatenate((s, s**2, x[:2])) ** 3)


def line_through_some(x):
    m = x > -1.0
    if np.count_nonzero(m) < 2:
        return x[0]
    t = np.linspace(0, 1, len(x))[m]
    return np.sum(np.interp(np.linspace(-0.1, 1.1, 7), t, x[m]) ** 2) + np.interp(t[-1], t, x[m] * x[0], left=0.0)


def line_that_moves(x):
    t = np.sort(x)
    t = t[t > 0]
    return np.interp(0.7, t, t**2 * x[0], right=x[1]) if len(t) > 1 else x[0]


def line_at_some(x):
    return np.sum(np.interp(x[x > 0], [0.0, 0.5, 2.0], [0.0, x[0], 1.0]) ** 2)


def with_slices_of_none(x):
    s, rows = x[x > 0], np.outer(x, [1.0, 2.0])[x > 0]
    k = len(x) - 8
    return (
        np.sum(s[:k]) + np.sum(s[1:0] ** 2) + np.sum(rows[:-0]) + np.sum(np.concatenate((rows, rows * s[0]), axis=None)) + x[0]
    )


LINES = [
    by_pairs, backwards, pairs_of_rows, area, with_more_at_the_ends, line_through_some, line_that_moves, line_at_some
]  # fmt: skip


@pytest.mark.parametrize("fun", LINES, ids=lambda fun: fun.__name__)
def test_neighbours_do_not_hang_on_how_many_are_selected(fun):
    assert checked(fun).cache_info().misses <= 6
    assert checked(fun, calls=12, size=3, modes=("auto",)).cache_info().misses <= 8


def seen_through_a_slice(x):
    s = x[x > 0].copy()
    later = s[1:]
    if len(s):
        s[0] = 3.0
    s *= 2
    return np.sum(later * s[:-1])


def changed_through_a_slice(x):
    s = x[x > 0]
    s[1:] += s[:-1]
    return np.sum(s**2)


@pytest.mark.parametrize(
    "fun", [seen_through_a_slice, changed_through_a_slice, with_slices_of_none], ids=lambda fun: fun.__name__
)
def test_slices_of_what_is_selected_are_views(fun):
    checked(fun)


def test_slices_of_all_kinds():
    """From where, to where and by how much, of numbers and of rows: as NumPy has it, however many are selected."""
    rng = np.random.default_rng(8)
    for _ in range(60):
        start, stop = [None if rng.random() < 0.3 else int(rng.integers(-4, 5)) for _ in range(2)]
        part = slice(start, stop, [None, 1, -1, 2][rng.integers(4)])

        def total(x, part=part):
            s, rows = x[x > 0], np.outer(x, [1.0, 2.0])[x > 0]
            return (
                np.sum(np.cumsum(s[part]) ** 2) + np.sum(rows[part, 1] * 3) + np.sum(np.sin(rows.T[:, part]) * [[2.0], [1.0]])
            )

        derivative = value_and_grad(total)
        for x in rng.normal(size=(3, 7)):
            value, slope = derivative(x)
            assert value == pytest.approx(total(x), rel=1e-12), part
            np.testing.assert_allclose(slope, value_and_grad(total, mode="dynamic")(x)[1], rtol=1e-10, atol=1e-13)


def sorted_ones(x):
    return np.sum(np.sort(x[x > 0])[:2])


def one_by_one(x):
    return sum([v * v for v in x[x > 0]], x[0])


def listed(x):
    return len(list(x[x > 0])) * x[0] + np.zeros(np.shape(x[x < 0])).size * x[1]


def accumulated(x):
    s = x[x > 0]
    t = np.sum(s)
    return np.sum(np.cumsum(s)) + t + np.sum(s[1::2]) + np.zeros_like(s).size * x[0]


def written_to(x):
    s = x[x > 0]
    np.sin(x[:1], out=s)
    return np.sum(s)


@pytest.mark.parametrize("fun", [sorted_ones, one_by_one, listed, accumulated, written_to], ids=lambda fun: fun.__name__)
def test_what_hangs_on_their_number_is_a_branch(fun):
    assert 4 < checked(fun).cache_info().misses < 30


# -- in loops ------------------------------------------------------------------------------------------------------


def relaxed(x):
    y = x * 1.0
    for _ in range(12):
        y = y + 0.1 * np.sin(y)
        y[y < 0] *= 0.5
    return np.sum(y**2)


def spiking(x):
    v, u, total, d = 5 * x, 0.2 * x, 0.0, 0.3 + 0.1 * x
    for _ in range(10):
        fired = np.where(v >= 3)[0]
        v[fired] = -2.0
        u[fired] = u[fired] + d[fired]
        v = v + 0.5 * (1.5 + 0.1 * x - 0.1 * u)
        u = u + 0.02 * (0.2 * v - u)
        total = total + np.sum(u)
    return total


def bouncing(x):
    place, speed = x * 1.0, np.cos(x)
    for _ in range(12):
        speed = speed - 0.9
        place = place + 0.1 * speed
        below = place < 0
        place[below] = -place[below]
        speed[below] = -0.8 * speed[below]
    return np.sum(place**2 + 0.1 * speed**2)


def totals(x):
    y, total = x, 0.0
    for _ in range(9):
        above = y[y > 0]
        total = total + np.sum(above**2)
        y = y * 0.9 - 0.05
    return total


def while_large(x):
    y = x * 1.0
    while np.max(y) > 0.5:
        y[y > 0.5] *= 0.7
    return np.sum(y**2)


def with_ifs(x):
    y, total = x * 1.0, 0.0
    for _ in range(8):
        above = y > 0.3
        if np.any(above):
            total = total + np.sum(np.log(y[above]))
            y[above] -= 0.2
        y = y + 0.05
    return total + np.sum(y)


def escaping(x):
    """Where an array of the function's own, that is not traced yet, is first met."""
    y, steps = x * 1.0, np.zeros(8)
    for _ in range(8):
        inside = np.abs(y) < 2
        y[inside] = y[inside] ** 2 + x[inside]
        steps[inside] += 1
    return np.sum(steps * x) + np.sum(np.tanh(y))


LOOPS = [relaxed, spiking, bouncing, totals, while_large, with_ifs, escaping]


@pytest.mark.parametrize("fun", LOOPS, ids=lambda fun: fun.__name__)
def test_loops_that_select_are_loops(fun):
    derivative = checked(fun)
    assert derivative.cache_info().misses <= 5
    assert len(derivative.source(np.linspace(-1.0, 2.0, 8)).splitlines()) < 70


def selected_before(x):
    s = x[x > 0]
    total = np.sum(s)
    for k in range(6):
        total = total + np.sum(s * total) * 0.01 * k
    return total


def selected_last(x):
    y = x * 1.0
    for _ in range(6):
        y = y * 0.95 + 0.01
        s = y[y > 0]
    return np.sum(s**2) + np.sum(y)


def kept(x):
    y, every = x * 1.0, []
    for _ in range(6):
        y = y * 0.9 - 0.05
        every.append(y[y > 0])
    return sum([np.sum(s**2) for s in every])


@pytest.mark.parametrize("fun", [selected_before, selected_last, kept], ids=lambda fun: fun.__name__)
def test_selections_that_outlive_an_iteration(fun):
    checked(fun, calls=15)


def left_in_the_middle(x):
    y = x * 1.0
    for _ in range(8):
        y = y + 0.3
        s = y[y > 0]
        if np.sum(s) > 3:
            break
    return np.sum(s**2) + len(s) * x[0] + np.sum(y[y > 1])


def test_a_loop_that_is_left_in_the_middle():
    checked(left_in_the_middle, calls=15)


def test_an_array_that_an_iteration_writes_into_and_drops():
    """Only the notes of where iterations begin hold it: the loop was written out."""

    def fun(x):
        v = x * 1.0
        for _ in range(12):
            v += 1.0
            v[0] = 0.5
            v = v + 0.5 * np.sin(v)
        return np.sum(v**2)

    assert len(checked(fun, calls=3).source(np.ones(8)).splitlines()) < 40


# -- what is not selected does not matter --------------------------------------------------------------------------


@pytest.mark.parametrize("fun", [np.log, np.sqrt, np.reciprocal, np.arccos, np.log1p])
def test_nothing_is_computed_that_the_function_does_not(fun):
    """Warnings are errors here."""
    derivative = grad(lambda x: np.sum(fun(x[(x > 0) & (x < 1)]) ** 2))
    x = np.array([-2.0, 0.0, 0.5, 0.25, np.nan, np.inf, 3.0])
    expected = grad(lambda x: np.sum(fun(x) ** 2))(x[2:4])
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), [0, 0, *expected, 0, 0, 0])


def test_missing_data():
    derivative = value_and_grad(lambda x: np.mean(x[~np.isnan(x)] ** 2))
    for x in ([1.0, np.nan, 3.0], [np.nan, np.nan, 2.0], [1.0, 2.0, 3.0], [np.nan, 4.0, np.nan]):
        there = ~np.isnan(x)
        value, slope = derivative(np.array(x))
        assert value == pytest.approx(np.mean(np.array(x)[there] ** 2))
        np.testing.assert_allclose(slope, np.where(there, 2 * np.array(x) / np.sum(there), 0))
    assert derivative.cache_info().misses == 2


@pytest.mark.parametrize("fun", [np.max, np.min])
def test_none_selected_is_numpys_error(fun):
    derivative = grad(lambda x: fun(x[x > 0]))
    for _ in range(3):
        assert derivative(np.array([-1.0, 2.0, 3.0])).sum() == 1
    with pytest.raises(ValueError, match="zero-size array to reduction operation"):
        derivative(-np.ones(3))


@pytest.mark.parametrize("fun", [np.sum, np.prod, np.linalg.norm, lambda s: np.sum(np.log(s)), lambda s: s @ s])
def test_none_all_and_some_selected(fun):
    derivative = value_and_grad(lambda x: fun(x[x > 0]) + np.sum(x))
    for x in ([1.0, 2.0], [-1.0, 2.0], [-1.0, -2.0], [3.0, -1.0], [-2.0, -3.0]):
        value, slope = derivative(np.array(x))
        chosen = np.array(x)[np.array(x) > 0]
        expected = np.ones(2)
        expected[np.array(x) > 0] += grad(lambda s: fun(s) + 0.0)(chosen) if chosen.size else 0
        assert value == pytest.approx(fun(chosen) + np.sum(x))
        np.testing.assert_allclose(slope, expected)


@pytest.mark.parametrize("fun", [lambda s: s / np.sum(s), lambda s: (s / len(s)) ** 2, lambda s: 2 * (s / np.linalg.norm(s))])
def test_what_none_was_selected_for_is_not_divided(fun):
    """Warnings are errors here: zeros had been divided by zero."""
    derivative = value_and_grad(lambda x: np.sum(np.sin(fun(x[x > 0]))) + np.sum(x))
    for x in ([1.0, 2.0, -1.0], [-1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [-1.0, 2.0, -3.0], [-2.0, -2.0, -3.0]):
        x = np.array(x)
        value, slope = derivative(x)
        assert value == pytest.approx(np.sum(np.sin(fun(x[x > 0]))) + np.sum(x))
        np.testing.assert_allclose(
            slope, np.ones(3) + (x > 0) * (slopes(lambda x: np.sum(np.sin(fun(x[x > 0]))), [x])[0]), rtol=1e-6
        )
    assert derivative.cache_info().misses <= 4


def test_ties_share_among_what_is_selected():
    derivative = grad(lambda x: np.max(x[x > 0] ** 0 * x[x > 0]))
    for _ in range(3):
        np.testing.assert_allclose(derivative(np.array([-1.0, 2.0, 2.0, 1.0])), [0, 0.5, 0.5, 0])


# -- kinds of results and of derivatives ---------------------------------------------------------------------------


def test_dtypes_stay():
    rng = np.random.default_rng(1)
    for fun in (np.sum, np.mean, np.std, np.max, np.linalg.norm, lambda s: s @ s, lambda s: np.sum(np.exp(s) / len(s))):
        derivative = value_and_grad(lambda x, fun=fun: fun(x[x > 0] * 2))
        for _ in range(3):
            x = rng.normal(size=20).astype(np.float32)
            value, slope = derivative(x)
            assert (value.dtype, slope.dtype) == (np.float32, np.float32) == (fun(x[x > 0] * 2).dtype, x.dtype)


def test_complex_ones():
    derivative = value_and_grad(lambda z: np.sum(np.abs(z[z.real > 0] ** 2 * 1j) ** 2))
    rng = np.random.default_rng(1)
    for _ in range(4):
        z = rng.normal(size=5) + 1j * rng.normal(size=5)
        value, slope = derivative(z)
        m = z.real > 0
        assert value == pytest.approx(np.sum(np.abs(z[m]) ** 4))
        np.testing.assert_allclose(slope, np.where(m, 4 * np.abs(z) ** 2 * z, 0))
    assert derivative.cache_info().misses == 2


@pytest.mark.parametrize("fun", [np.var, np.std, lambda s: np.abs(np.var(s * 1j) - np.mean(s)) ** 2])
def test_spreads_of_complex_ones(fun):
    """They are real; the squares had been added up, not their sizes."""
    derivative, dynamic = (value_and_grad(lambda z: fun(z[z.real > -1]), mode=mode) for mode in ("auto", "dynamic"))
    rng = np.random.default_rng(1)
    for _ in range(4):
        z = rng.normal(size=6) + 1j * rng.normal(size=6)
        value, slope = derivative(z)
        assert value == pytest.approx(fun(z[z.real > -1]))
        np.testing.assert_allclose(slope, dynamic(z)[1])


def test_spreads_of_fewer_than_they_take():
    """Were divided by negative numbers."""
    derivative = value_and_grad(lambda x: np.var(x[x > 0], ddof=3))
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (
            [1.0, 2.0, -1.0, 4.0, 8.0],
            [1.0, 2.0, -1.0, 4.0, 5.0],
            [1.0, 2.0, -1.0, -4.0, -5.0],
            [1.0, -2.0, 0.0, -1.0, -2.0],
        ):
            x = np.array(x)
            np.testing.assert_allclose(derivative(x)[0], np.var(x[x > 0], ddof=3))


def test_half_precision_adds_up_in_single():
    derivative = value_and_grad(lambda x: np.mean(x[x > 0] * np.float16(8000)) + np.std(x[x > 0]))
    for x in np.random.default_rng(1).uniform(-1, 3, size=(6, 12)).astype(np.float16):
        value, _ = derivative(x)
        chosen = x[x > 0]
        assert value == pytest.approx(np.mean(chosen * np.float16(8000)) + np.std(chosen), rel=2e-3)


def test_selections_as_results():
    slopes_of, product = jacobian(lambda x: x[x > 0] ** 2), hvp(lambda x: np.sum(x[x > 0] ** 3))
    rng = np.random.default_rng(2)
    for _ in range(12):
        x, v = rng.normal(size=(2, 5))
        np.testing.assert_allclose(slopes_of(x), np.diag(2 * x)[x > 0])
        np.testing.assert_allclose(product(x, v), np.where(x > 0, 6 * x * v, 0))
    assert product.cache_info().misses == 2


def test_batches_and_derivatives_within():
    rows = vmap(lambda x: np.sum(x[x > 0] ** 2))
    inner = grad(lambda x: np.sum(grad(lambda y: np.sum(y[y > 0] ** 3))(x)[x > -1] ** 2))
    rng = np.random.default_rng(3)
    for _ in range(6):
        x = rng.normal(size=(3, 4))
        np.testing.assert_allclose(rows(x), np.sum(np.maximum(x, 0) ** 2, axis=1))
        np.testing.assert_allclose(inner(x[0]), np.where(x[0] > 0, 36 * x[0] ** 3, 0), atol=1e-12)


def test_views_of_selections_are_theirs():
    def fun(x):
        s = x[x > 0]
        t = s[:]
        t[0] = 2.0
        s *= 3.0
        return np.sum(s) + np.sum(t)

    derivative = grad(fun)
    for x in ([1.0, -1.0, 2.0], [-1.0, 1.0, 2.0], [3.0, 1.0, 2.0], [1.0, -1.0, 5.0]):
        expected = np.where(np.array(x) > 0, 6.0, 0.0)
        expected[np.argmax(np.array(x) > 0)] = 0.0
        np.testing.assert_allclose(derivative(np.array(x)), expected)


def test_the_first_and_the_last_row_are_views():
    def fun(x):
        rows = x[x[:, 0] > 0] * 2.0
        first, last = rows[0], rows[-1]
        kept = np.sum(first**3)
        first[0] = 5.0
        rows[-1] *= 3.0
        return np.sum(rows**2) + np.sum(last) + kept

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(4).normal(size=(12, 6, 2)):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-11)


def test_a_mask_of_another_shape_is_numpys_error():
    def fun(x):
        s = x[x > 0]
        return np.sum(x[s > 1])

    derivative = grad(fun)
    for _ in range(3):
        np.testing.assert_allclose(derivative(np.array([1.0, 2.0, 3.0])), [0, 1, 1])
    with pytest.raises(IndexError, match="boolean index did not match"):
        derivative(np.array([1.0, -2.0, 3.0]))


def test_few_of_many_are_selected_alone():
    x = np.random.default_rng(4).normal(size=100_000)
    derivative = grad(lambda x, bound: np.sum(np.exp(x[x > bound])))
    for bound in (3.5, 3.5, 3.5, -1.0, -1.0, 0.0):
        np.testing.assert_allclose(derivative(x, bound), np.where(x > bound, np.exp(x), 0))
    assert derivative.cache_info().misses == 4
    assert "x[" in derivative.source(x, 3.5)


def test_the_switch():
    fun = lambda x: np.sum(x[x > 0] ** 2)
    with without("select"):
        plain = grad(fun)
    x = np.array([1.0, -1.0, 2.0])
    for derivative in (plain, grad(fun)):
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), [2, 0, 4])
    assert "count_nonzero" in plain.source(x)
    assert "count_nonzero" not in grad(fun).source(x)


def of_rows(x):
    a = np.outer(x, np.array([1.0, -0.5, 2.0])) + np.cos(x)[:, None]
    rows, cells = a[x > -1.5], a[np.abs(a) < 3]
    total = np.sum(np.mean(rows, axis=0) ** 2) + np.sum(np.std(rows, axis=0)) + np.max(rows) + np.sum(np.max(rows, axis=0))
    total = total + np.linalg.norm(rows) + np.sum(np.linalg.norm(rows, axis=0)) + np.sum(np.var(rows, axis=0, ddof=1))
    return total + np.mean(cells, axis=-1) + np.std(cells, axis=0) + np.sum(cells, axis=-1) + np.linalg.norm(cells)


def of_cubes(x):
    a = x[:, None, None] * np.array([[1.0, 2.0], [-1.0, 0.5]]) + x[0]
    rows = a[a[:, :, 0] > -2]
    return np.sum(np.sum(rows, axis=0) ** 2) + np.sum(np.linalg.norm(rows, axis=0)) + np.mean(a[a > -2]) * np.sum(rows)


@pytest.mark.parametrize("fun", [of_rows, of_cubes], ids=lambda fun: fun.__name__)
def test_rows_and_cells(fun):
    assert checked(fun).cache_info().misses <= 4


def of_a_side(x, p):
    y, z, total = x * 1.0, np.zeros_like(x), 0.0
    k = 0
    while k < 30 and np.max(np.abs(y)) > 0.4:
        above = (y - p) > 0
        total = total * 0.9 - 0.1 * (np.mean(z[above]) if above.any() else 0.0)
        total = total * 0.9 - 0.1 * np.linalg.norm(np.sqrt(1 + z[above] ** 2) + y[above] * x[above] + 0.1)
        y = y * 0.9
        k += 1
    return np.sum(y * y) + total


def test_code_that_divides_by_zero_on_a_way_that_no_call_has_gone():
    """It is left, and the way is learnt; nobody is told of a flaw (warnings are errors here)."""
    rng = np.random.default_rng(6)
    derivative = value_and_grad(of_a_side)
    for k in range(12):
        x, p = rng.normal(size=6) * [1, 1, 0.3, 2, 1][k % 5], float(rng.normal())
        assert derivative(x, p)[0] == pytest.approx(of_a_side(x, p))
    assert "dynamic" not in derivative.explain()


def test_shares_of_nothing_divide_by_no_total():
    """Nothing is divided by a total of zero: code that did so warned (which is an error here), and was left."""

    def fun(x):
        s = x[np.flatnonzero(x > 0)[::-1]]
        return np.sum(s / np.sum(s))

    derivative = grad(fun)
    for _ in range(4):
        np.testing.assert_array_equal(derivative(-np.ones(3)), np.zeros(3))
    assert derivative.cache_info().hits == 2


def of_four_ifs(x, y):
    s, c = y[y > 0.5], 0.0
    if x[0] > 0:
        c += x[0] ** 2
    if x[1] > 0:
        c += np.sum(np.sin(s)) * x[1]
    if x[2] > 0:
        c += np.mean(s)
    if x[3] > 0:
        c += np.exp(x[3])
    if np.any(y > 0.5):
        c += np.max(s)
    return c + np.sum(x)


def of_a_loop(x, y):
    s, c = y[y > 0.5], np.sum(y[y > 0.5] ** 2)
    for v in x:
        c = np.sin(c) + (np.sum(s**2) * v if v > 0 else np.mean(s) - np.max(s))
    return c


@pytest.mark.parametrize(("fun", "traced"), [(of_four_ifs, 20), (of_a_loop, 4)], ids=["ifs", "loop"])
def test_selected_before_and_used_inside(fun, traced):
    """In the ways of ``if``s and in loops: how many there are is no decision there."""
    rng, derivative, dynamic = np.random.default_rng(0), grad(fun, (0, 1)), grad(fun, (0, 1), mode="dynamic")
    for _ in range(100):
        x, y = rng.normal(size=9 if fun is of_a_loop else 4), np.append(rng.random(5), 0.75)
        for found, expected in zip(derivative(x, y), dynamic(x, y), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert derivative.cache_info().misses <= traced


# -- rows ------------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X, Y, BLOCKS, LABELS = RNG.normal(size=(60, 3)), RNG.normal(size=60), RNG.normal(size=(60, 2, 3)), RNG.integers(0, 3, 60)


def least_squares(w, m):
    a, b = X[m] * w, Y[m]
    return np.sum((X[m] @ w - b) ** 2) + np.sum(np.linalg.solve(a.T @ a + np.eye(3), a.T @ b) ** 2)


def by_lstsq(w, m):
    solution, rest, rank, _ = np.linalg.lstsq(X[m] * w, Y[m], rcond=None)
    return np.sum(solution**2) + np.sum(rest) * rank


def with_a_constant(w, m):
    s = X[m, 0] * w[0]
    a, b = np.column_stack([np.ones_like(s), s, s**2]), np.hstack([X[m] * w, np.ones((m.sum(), 1))])
    c = np.c_[s, np.ones(len(s))]
    return np.sum(np.linalg.solve(a.T @ a + np.eye(3), a.T @ Y[m]) * w) + np.sum(b.T @ b) + np.sum(c @ w[:2])


def cross_entropy(w, m):
    z = X[m] * w
    z = z - np.max(z, axis=1, keepdims=True)
    logp = z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True))
    return -np.mean(logp[np.arange(len(z)), LABELS[m]])


def along_rows(w, m):
    z = X[m] * w
    spread = np.std(z, axis=1) ** 2 + np.var(z, axis=-1, ddof=1) + np.linalg.norm(z, axis=1)
    every = np.max(z, 1) * np.min(z, 1) + np.sort(z, axis=1)[:, 1] + np.cumsum(z, axis=1)[:, 2] ** 2 + np.prod(z, axis=1)
    return np.sum(spread) + np.sum(every) + np.sum(np.argmax(z, axis=1) * z[:, 0])


def products_of_rows(w, m):
    a, b = X[m] * w, BLOCKS[m]
    own = np.sum(np.einsum("ni,i->n", a, w) ** 2) + np.sum(np.inner(a, w)) + np.sum(np.dot(a, w) ** 2)
    over = np.sum(np.einsum("ij,ik->jk", a, a) ** 2) + np.einsum("ij,ij->", a, a) + np.sum(np.einsum("ni,n->i", a, Y[m]) ** 2)
    return own + over + np.sum(np.tanh(a @ np.outer(w, w)) @ w) + np.sum((b @ w) ** 2) + np.sum((b * w).sum(axis=(1, 2)))


def columns(w, m):
    s = X[m, 0] * w[0]
    stacked = np.stack([s, s**2, np.sin(s)], axis=1) @ w
    shaped = np.sum(s.reshape(-1, 1) * w) + np.sum((X[m] * w).reshape(-1, 1, 3) ** 2)
    return np.sum(stacked**2) + shaped + np.sum(X[m, 1:] @ w[1:]) + np.sum(X[m, None, 0] * w[1])


def as_many(w, m):
    a = X[m] * w
    return np.sum((a @ w) * np.ones(len(a))) + np.sum(np.zeros(a.shape[0]) + a[:, 1]) + np.sum(a[:, 0] * np.arange(len(a)))


def by_places_and_again(w, m):
    i, a = np.flatnonzero(m), X[m] * w
    b = a[a[:, 0] > 0]
    return np.sum((X[i] @ w - Y[i]) ** 2) + np.sum((b @ w) ** 2) + np.sum(b.T @ b)


BY_ROWS = [
    least_squares,
    by_lstsq,
    with_a_constant,
    cross_entropy,
    along_rows,
    products_of_rows,
    columns,
    as_many,
    by_places_and_again,
]


def reshaped_and_written(w, m):
    s = X[m, 0] * w[0]
    t = s.reshape(-1, 1)
    t[0, 0] = 5.0
    s[1] = 2.0
    return np.sum(s**2) + np.sum(t)


def turned_and_written(w, m):
    a = X[m] * w
    b = a.T
    b[0] = 2.0 * w[1]
    a *= 3.0
    return np.sum(a**2) + np.sum(b)


def made_and_written(w, m):
    a = X[m] * w
    b, c, i = np.ones_like(a[:, 0]), np.zeros(len(a)), np.arange(len(a))
    b *= 2.0
    b[a[:, 0] > 0] = 3.0
    c += a[:, 0]
    c[0] = 7.0
    i = (i[::-1] + 1) % 2
    return np.sum(b * a[:, 1]) + np.sum(c**2) + np.sum(a[np.arange(len(a)), i] ** 2)


@pytest.mark.parametrize("fun", [*BY_ROWS, reshaped_and_written, turned_and_written, made_and_written])
def test_rows_are_selected(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(1)
    for k in range(12):
        w, m = rng.uniform(1, 3, 3), rng.random(60) < (0.1 if k % 4 == 3 else 0.6)
        m[:2] = True
        (value, slope), (expected, slope_of_it) = derivative(w, m), dynamic(w, m)
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        np.testing.assert_allclose(slope, slope_of_it, rtol=1e-8, atol=1e-9)
    assert fun not in BY_ROWS or derivative.cache_info().misses <= 4


@pytest.mark.parametrize("fun", [least_squares, columns, products_of_rows])
def test_no_rows_are_selected(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for taken in (0.5, 0.0, 0.5, 0.0, 1.0):
        m = np.arange(60) < 60 * taken
        for found, expected in zip(derivative(np.ones(3), m), dynamic(np.ones(3), m), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_few_rows_leave_no_residuals():
    derivative, dynamic = value_and_grad(by_lstsq), value_and_grad(by_lstsq, mode="dynamic")
    for count in (9, 3, 20, 2, 4, 9):
        m = np.arange(60) < count
        for found, expected in zip(derivative(np.ones(3), m), dynamic(np.ones(3), m), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_second_derivatives_of_rows():
    product, plain = hvp(least_squares), hvp(least_squares, mode="dynamic")
    rng = np.random.default_rng(1)
    for _ in range(6):
        w, m, v = rng.uniform(1, 3, 3), rng.random(60) < 0.6, rng.normal(size=3)
        np.testing.assert_allclose(product(w, v, m), plain(w, v, m), rtol=1e-8)


TURNED = [
    lambda x, w: np.sum(x[x[:, 0] > 0].T[0]),
    lambda x, w: np.sum(x[x[:, 0] > 0].T[-1] * x[x[:, 0] > 0].T[0]),
    lambda x, w: x[x[:, 0] > 0].T[0, 0] * w[0],
    lambda x, w: len(x[x[:, 0] > 0].T) * w[0],
    lambda x, w: x[x[:, 0] > 0].T.shape[0] * w[0],
    lambda x, w: x[x[:, 0] > 0].T.shape[1] * w[0],
    lambda x, w: x[x[:, 0] > 0].T.size * w[0],
]


@pytest.mark.parametrize("fun", TURNED)
def test_columns_of_rows_are_rows(fun):
    rng, derivative = np.random.default_rng(0), value_and_grad(fun, argnums=(0, 1))
    for _ in range(4):
        x, w = rng.normal(size=(12, 3)), rng.normal(size=3)
        value, slopes_of = derivative(x, w)
        np.testing.assert_allclose(value, fun(x, w), rtol=1e-12)
        expected = value_and_grad(fun, argnums=(0, 1), mode="dynamic")(x, w)[1]
        for found, right in zip(slopes_of, expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12)


def medians_of_some(x):
    some = x[x > 0]
    return np.median(some) + np.median(np.abs(some - np.median(some))) + np.percentile(x[x < 1], 30) + np.quantile(some, 0.75)


def in_order(x):
    return np.sort(x[x > 0])[-1] + np.sort(x[x < 1])[0] + np.mean(np.sort(x[x > 0]) * 2.0)


def added_up(x):
    some = x[x > 0]
    return np.sum(np.cumsum(some) * some) + np.cumsum(some)[-1] + np.max(np.cumsum(x[x < 0])) + some.cumsum().sum()


def steps_of_some(x):
    steps = np.diff(x[x > 0])
    return np.mean(steps[steps > 0]) + len(steps) + np.sum(np.diff(np.where(x > 0.5)[0])) * x[0]


def between_crossings(x):
    """Where a signal crosses zero, between two samples: how much the time between two such places varies."""
    at = np.where(np.diff(np.sign(x)) != 0)[0]
    return np.std(np.diff(at + x[at] / (x[at] - x[at + 1])))


def without_outliers(x):
    off = np.abs(x - np.median(x))
    some = off < 1.5 * np.median(off)
    return np.mean(x[some]) + np.median(x[some])


def in_a_loop_by_order(x):
    s = 0.0
    for k in range(4):
        some = x[x > 0.2 * k]
        s += np.median(some) + np.sum(np.diff(some) ** 2) + np.sum(np.cumsum(some))
    return s


ARRANGED = [medians_of_some, in_order, added_up, steps_of_some, between_crossings, without_outliers, in_a_loop_by_order]


@pytest.mark.parametrize("fun", ARRANGED)
def test_what_is_arranged_hangs_on_no_count(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(30):
        right_at(derivative, fun, rng.normal(size=30), (1e-12, 1e-14), (1e-9, 1e-12))
    assert derivative.cache_info().misses <= 3


def ties_and_infinities(x):
    y = np.round(x * 2) / 2
    some, large = y[y > 0], np.where(x > 1.2, np.inf, x)
    return np.median(some) * x[1] + np.sort(large[large > -1])[0] + np.median(large[large > -1]) + np.sum(np.diff(some) ** 2)


def between_infinities(x):
    large = np.where(x > 0.5, np.inf, x)
    return np.nan_to_num(np.quantile(large[x > 0], 0.5), nan=7.0, posinf=8.0) * x[0]


def with_nan(x):
    y = np.where(x > 1.5, np.nan, x)
    return np.median(y[np.isnan(y) | (y > 0)])


def of_ints_and_rows(x):
    k, rows = np.round(x).astype(int), x[:12].reshape(4, 3)
    rows = rows[rows[:, 0] > 0]
    total = np.median(k[x > 0]) * x[0] + np.sum(np.diff(k[x > 0])) * x[1] + np.sum(np.cumsum(k[x > 0])) * x[2]
    return (
        total + np.sum(np.sort(rows, axis=0) ** 2) + np.sum(np.cumsum(rows, axis=0) ** 2) + np.sum(np.diff(rows, axis=0) ** 2)
    )


def by_other_means(x):
    some = x[x > 0]
    twice, first = np.diff(some, n=2), np.diff(some, prepend=0.0)
    return np.sum(twice) + np.sum(first**2) + np.sum(np.sort(some)[:3]) + np.percentile(some, [25, 75]).sum()


def of_few(x):
    steps = np.diff(x[x > 1.5])
    return np.sum(steps * 2.0) + np.sum(np.cumsum(x[x > 2.5])) + (np.max(steps) if steps.size else 0.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fun", [ties_and_infinities, between_infinities, with_nan, of_ints_and_rows, by_other_means, of_few])
def test_what_is_arranged_as_numpy_does(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for _ in range(20):
        right_at(derivative, fun, rng.normal(size=24), (1e-12, 1e-14), (1e-9, 1e-12))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_median_of_nothing():
    derivative = value_and_grad(lambda x: np.median(x[x > 0]))
    for x in (np.ones(4), -np.ones(4), np.ones(4), -np.ones(4)):
        assert np.isnan(derivative(x)[0]) == (x[0] < 0)


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: np.max(x[x < 5]), [9, -np.inf, -np.inf, 7, 8]),
        (lambda x: np.min(x[x > 0]), [-9, np.inf, np.inf, -7, -1]),
        (lambda x: np.sort(x[x > 0])[0] * 2 + np.sort(x[x > 0])[-1], [-2, 0.3, np.inf, 0.7, -1]),
        (lambda x: np.sum(1 / np.sort(x[x > 0])), [-2, np.inf, np.inf, -1, 3]),
        (lambda x: np.median(x[x > 0]), [-2, np.inf, np.inf, 0.7, np.inf]),
    ],
)
def test_infinity_among_what_is_selected_is_not_taken_for_what_is_not(fun, x):
    ours, theirs = grad(fun), grad(fun, mode="dynamic")
    for k in range(3):
        ours(np.array([1.0, -2.0, 3.0, -4.0, 2.0]) + 0.1 * k)
    for _ in range(3):
        np.testing.assert_array_equal(ours(np.array(x, float)), theirs(np.array(x, float)))
