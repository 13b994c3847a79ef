"""Numbers that iterations of a loop put outside: they go round in it, and code leaves there what the function would."""

import functools
import random
import threading
import types

import numpy as np
import pytest
from agreement import counts_in_a_loop, function_of

from symgrad import grad, hessian, stop_gradient, value_and_grad, vmap


class Model:
    """Numbers of several kinds, outside."""

    def __init__(self):
        self.n, self.k, self.rate, self.norm, self.none = 0, 0, 0.5, 0.0, None
        self.total, self.last, self.count, self.single = 0.0, np.float64(1.0), np.int64(3), np.float32(1.5)
        self.stats, self.counts, self.inner = {"n": 0, "t": 0.0}, [0, 3], types.SimpleNamespace(n=0)

    def slope(self, x):
        self.n += 1
        return -np.sin(x)

    def state(self):
        numbers = [*vars(self).values(), *self.stats.values(), *self.counts, self.inner.n]
        return [(type(x), float(f"{x:.9g}")) for x in numbers if isinstance(x, (int, float, np.generic))]


def leaps(m, x):
    for _ in range(500):
        x = x + 0.01 * m.slope(x)
    return np.sum(x**2)


def until(m, x):
    while np.sum(x * x) > 0.3:
        x = x * 0.7
        m.n += 1
    return np.sum(x**2) * m.n


def no_iteration(m, x):
    t = 0.0
    while t < abs(x[0]):
        t += 0.25
        m.n += 1
    return np.sum(x) * (1 + m.n)


def on_sides(m, x):
    for _ in range(8):
        if x[0] > 0.4:
            m.n += 1
            x = x * 0.8
        else:
            m.k += 2
            x = x * 1.3
    return np.sum(x**2) * (m.n + m.k)


def leaps_with_sides(m, x):
    for _ in range(400):
        x = x + 0.01 * np.where(x > 0, -x, x)
        if np.sum(x) > 0.2:
            m.n += 1
        else:
            m.k += 1
    return np.sum(x) * m.n


def nested(m, x):
    for _ in range(5):
        for _ in range(6):
            m.n += 1
            x = np.sin(x) + 0.1
        m.k += m.n
    return np.sum(x) * m.k


def read_in_it(m, x):
    for i in range(6):
        m.stats["n"] += 1
        x = x + 1.0 / m.stats["n"]
        m.counts[0] += i
    return np.sum(x**2)


def floats(m, x):
    for _ in range(7):
        m.rate = m.rate * 0.9 + 0.05
        x = x * m.rate
    return np.sum(x)


def begins_again(m, x):
    m.n = 0
    while np.max(np.abs(x)) > 0.1:
        m.n += 1
        x = x / 2
    return np.sum(x)


def converges(m, x):
    for i in range(50):  # noqa: B007
        m.n += 1
        new = 0.5 * (x + 1 / x)
        if np.max(np.abs(new - x)) < 1e-3:
            break
        x = new
    m.k = i
    return np.sum(x)


def norms(m, x):
    for _ in range(6):
        x = x * 0.8
        m.norm = float(stop_gradient(np.sum(x * x)))
        m.last = stop_gradient(np.sum(x * x))
        m.total += stop_gradient(np.sum(x))
    return np.sum(x) * m.last


def numpys(m, x):
    for _ in range(6):
        m.count += 1
        m.single *= 1.01
        x = x * 0.9
    return np.sum(x) * m.count


def in_some_calls(m, x):
    if x[0] > 0:
        for _ in range(9):
            m.n += 1
            x = np.sin(x)
    return np.sum(x) * (m.n + 1)


def under_two_names(m, x):
    for _ in range(6):
        before = m.n
        m.n = before + 2
        x = x + before
        m.k = m.n
    return np.sum(x * x) * before


def adapts(m, x):
    t, h = 0.0, 0.1
    while t < 1.0:
        if np.max(np.abs(m.slope(x))) * h < 0.05:
            x = x + h * m.slope(x)
            t += h
            m.k += 1
            h *= 1.2
        else:
            h *= 0.5
            m.stats["n"] += 1
    return np.sum(x)


def decides(m, x):
    for _ in range(12):
        if m.n > 40:
            m.n = 0
        m.n += 1
        x = x * 0.5 if m.n % 3 == 0 else np.sin(x)
    return np.sum(x) * m.n


def largest(m, x):
    for v in x:
        m.norm = max(m.norm * 0.5, float(stop_gradient(v)))
    return np.sum(x) * m.norm


def beside_a_list(m, x):
    out = []
    for _ in range(40):
        m.n += 1
        x = np.cos(x)
        out.append(x * m.n)
    return np.sum(np.array(out))


def turns_into_a_float(m, x):
    for _ in range(6):
        x = x * 0.9
        m.n += 1.5
    return np.sum(x)


def from_none(m, x):
    for _ in range(6):
        x = x * 0.9
        m.none = float(stop_gradient(x[0]))
    return np.sum(x)


def clock(m, x):
    """A tenth is no binary number: which way later calls go hangs on the last bit."""
    for _ in range(10):
        m.stats["t"] += 0.1
        x = np.sin(x)
    if m.stats["t"] >= 2.0:
        m.stats["t"] -= 2.0
        m.k += 1
    return np.sum(x)


def raises(m, x):
    for _ in range(5):
        m.n += 1
        if x[2] > 1.5:
            raise ValueError("too large")
        x = x * 1.1
    return np.sum(x)


FUNCTIONS = [counts_in_a_loop, leaps, until, no_iteration, on_sides, leaps_with_sides, nested, read_in_it, floats, begins_again]
FUNCTIONS += [converges, norms, numpys, in_some_calls, under_two_names, adapts, decides, largest, beside_a_list]
FUNCTIONS += [turns_into_a_float, from_none, clock, raises]


def outcome(fun, *args):
    try:
        return fun(*args)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("fun", FUNCTIONS)
@pytest.mark.parametrize("pokes", [False, True])
def test_loops_leave_outside_what_the_function_does(fun, pokes):
    plain, *models = Model(), Model(), Model()
    rng = np.random.default_rng(0)
    code, dynamic = [
        value_and_grad(functools.partial(fun, m), mode=k) for m, k in zip(models, ("auto", "dynamic"), strict=True)
    ]
    for i in range(30):
        x = 1.3 * rng.normal(size=3)
        expected, found, other = outcome(fun, plain, x), outcome(code, x), outcome(dynamic, x)
        if isinstance(expected, str):
            assert found == other == expected
        else:
            assert found[0] == pytest.approx(expected, rel=1e-10)
            np.testing.assert_allclose(found[1], other[1], rtol=1e-9, atol=1e-12)
        assert models[0].state() == models[1].state() == plain.state(), i
        for m in (plain, *models) if pokes and i % 6 == 5 else ():  # somebody else puts something there
            m.n, m.rate, m.counts[0], m.stats["n"], m.stats["t"] = i % 7, 0.1 * i, -i, i, 0.3 * i
    assert code.cache_info().hits >= 15, code.explain()


def test_variables_in_loops():
    count = 0

    def slope(x):
        nonlocal count
        count += 1
        return -x

    def fun(x):
        for _ in range(20):
            x = x + 0.1 * slope(x) + 0.01 * slope(x)
        return np.sum(x)

    derivative = grad(fun)
    for i in range(1, 9):
        derivative(np.ones(3))
        assert count == 40 * i
    assert derivative.cache_info().hits == 5


def test_threads_count_iterations_together():
    model = Model()
    derivative = grad(functools.partial(counts_in_a_loop, model))
    for _ in range(4):
        derivative(np.ones(3))

    def work():
        for _ in range(200):
            derivative(np.ones(3))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.n == 10 * (4 + 4 * 200)


@pytest.mark.parametrize("kind", [hessian, lambda fun: vmap(grad(fun)), lambda fun: grad(lambda x: np.sum(grad(fun)(x)))])
def test_other_derivatives_count_alike_in_each_call(kind):
    model, found = Model(), []
    derivative = kind(functools.partial(leaps, model))
    x = np.ones((4, 3)) if "vmap" in repr(derivative) else np.ones(3)
    for _ in range(6):
        before = model.n
        derivative(x)
        found.append(model.n - before)
    assert len({*found[1:]}) == 1


def test_parts_of_nested_loops_that_hang_on_nothing_stay_numbers():
    """What an inner loop makes of what is stopped is no derivative's way, though others of its results are."""

    def fun(m, x):
        y = np.sum(x)
        for _ in range(6):
            for _ in range(5):
                m.rate += 0.1 * float(stop_gradient(y))
                y = np.tanh(y) + 0.1 * m.rate
            m.norm = m.rate * 2.0
        return y

    model, plain = Model(), Model()
    derivative = value_and_grad(functools.partial(fun, model))
    for i in range(8):
        x = np.array([0.1 * i, 0.2, 0.3])
        assert derivative(x)[0] == pytest.approx(fun(plain, x))
        assert model.state() == plain.state()
    assert derivative.cache_info().hits >= 5


def program(seed):
    """A random function with loops that put numbers outside."""
    draw, lines = random.Random(seed), []
    places = ["m.n", "m.inner.n", 'm.stats["n"]', "m.counts[0]", "m.counts[1]"]

    def term():
        return draw.choice([*places, "len(x)", "k", str(draw.randint(0, 3)), f"{draw.choice(places)} % 5"])

    def statements(indent, depth, count):
        for _ in range(count):
            kind = draw.random()
            if depth < 3 and kind < 0.3:
                often = draw.choice([2, 5, 7, 40]) if depth else draw.choice([5, 40, 300])
                lines.append(
                    f"{indent}for {draw.choice([f'i{depth} in range({often})', f'i{depth} in range(k * 4)', 'v in x'])}:"
                )
                statements(indent + "    ", depth + 1, draw.randint(1, 3))
            elif kind < 0.42:
                lines.append(f"{indent}if {draw.choice(['x[0] > 0.0', 'k > 1', 'm.n % 2 == 0', 'y > 1.0', 'm.n > 60'])}:")
                statements(indent + "    ", 3, 1)
            elif kind < 0.65:
                lines.append(f"{indent}{draw.choice(places)} {draw.choice(['+=', '-='])} {term()} % 9")
            elif kind < 0.8:
                lines.append(f"{indent}{draw.choice(places)} = ({term()} - {term()}) % 11")
            else:
                lines.append(f"{indent}y = np.tanh(y * (1.0 + 0.1 * ({draw.choice([*places, 'sum(m.counts)'])} % 7)))")

    statements("    ", 0, draw.randint(3, 6))
    return "\n".join(["def fun(m, x, k):", "    y = np.sum(np.sin(x)) + 2.0", *lines, "    return y * (1 + m.n % 4)"])


@pytest.mark.parametrize("seed", range(15))
def test_random_loops(seed, tmp_path):
    text = program(seed)
    fun = function_of(text, tmp_path / f"puts_in_loops_{seed}.py")
    models, draw, rng = (Model(), Model(), Model()), random.Random(seed), np.random.default_rng(seed)
    derivatives = [value_and_grad(fun, 1), value_and_grad(fun, 1, mode="dynamic")]
    for _ in range(6):
        x, k = rng.normal(size=3), draw.choice([0, 1, 2])
        value = fun(models[2], x, k)
        found, other = [derivative(m, x, k) for derivative, m in zip(derivatives, models[:2], strict=True)]
        assert found[0] == pytest.approx(value, rel=1e-10), text
        np.testing.assert_allclose(found[1], other[1], rtol=1e-8, atol=1e-12, err_msg=text)
        assert models[0].state() == models[1].state() == models[2].state(), text


class _Shelf:
    pass


SHELF = _Shelf()
NUMBERS_OUTSIDE = [k * 7 % 40 for k in range(40)]
FLOATS_OUTSIDE = [float(k) for k in range(40)]


def _put_back() -> None:
    NUMBERS_OUTSIDE[:] = [k * 7 % 40 for k in range(40)]
    FLOATS_OUTSIDE[:] = [float(k) for k in range(40)]


def read_where_it_was_written(x):
    s = 0.0
    for i in range(35):
        NUMBERS_OUTSIDE[i] = (NUMBERS_OUTSIDE[i] + 1) % 40
        s = s + x[NUMBERS_OUTSIDE[i]] * x[i]
    return s


def read_by_another_name(x):
    SHELF.numbers = [k * 7 % 40 for k in range(40)]
    numbers, s = SHELF.numbers, 0.0
    for i in range(35):
        numbers[39 - i] = (numbers[i] + 1) % 40
        s = s + x[numbers[i]] * x[i] + x[SHELF.numbers[20]]
    return s


def each_of_the_one_before(x):
    s = 0.0
    for i in range(1, 40):
        FLOATS_OUTSIDE[i] = FLOATS_OUTSIDE[i - 1] * 0.5 + 1.0
        s = s + x[i] * FLOATS_OUTSIDE[i]
    return s


def ahead_of_a_loop_over_it(x):
    s = 0.0
    for v in NUMBERS_OUTSIDE:
        NUMBERS_OUTSIDE[39] = 3
        s = s + x[v] * x[2]
    return s


def ahead_of_a_loop_over_it_and_where(x):
    s = 0.0
    for i, v in enumerate(NUMBERS_OUTSIDE):
        NUMBERS_OUTSIDE[(i + 1) % 40] = (v + 1) % 40
        s = s + x[v] * x[i]
    return s


def ahead_of_a_loop_over_it_and_another(x):
    s = 0.0
    for v, w in zip(FLOATS_OUTSIDE, NUMBERS_OUTSIDE, strict=True):
        FLOATS_OUTSIDE[39] = 3.0
        s = s + x[w] * v
    return s


ROWS_OUTSIDE = [(k % 5, np.arange(3.0) + k) for k in range(6)]


def ahead_of_rows_that_are_unpacked(x):
    s, last = 0.0, ROWS_OUTSIDE[5]
    for k, row in ROWS_OUTSIDE:
        ROWS_OUTSIDE[5] = (1, np.ones(3))
        s = s + x[k] * np.sum(row)
    ROWS_OUTSIDE[5] = last
    return s


@pytest.mark.parametrize(
    "fun",
    [
        ahead_of_rows_that_are_unpacked,
        read_where_it_was_written,
        read_by_another_name,
        each_of_the_one_before,
        ahead_of_a_loop_over_it,
        ahead_of_a_loop_over_it_and_where,
        ahead_of_a_loop_over_it_and_another,
    ],
)
def test_lists_outside_that_loops_read_and_write(fun):
    """What is read is what is there by then, from the first call on; and what is left there is what the function leaves."""
    x = np.cos(np.arange(40.0))
    derivative = value_and_grad(fun)
    _put_back()
    expected = fun(x)
    left = [*NUMBERS_OUTSIDE], [*FLOATS_OUTSIDE]
    for _ in range(4):
        _put_back()
        assert derivative(x)[0] == pytest.approx(expected, rel=1e-12)
        assert ([*NUMBERS_OUTSIDE], [*FLOATS_OUTSIDE]) == left
    _put_back()
