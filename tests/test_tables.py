"""Lists and plain arrays that loops read at places which are traced: they are tables, and loops stay loops."""

import random
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from agreement import agrees_with_dynamic, program_of, right_at
from hypothesis import given
from hypothesis import strategies as st

from symgrad import grad, value_and_grad
from symgrad.loops import iterables, rolling
from symgrad.transform import vectorize

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
CLASSES = RNG.integers(0, 3, N)
LABELS = CLASSES.tolist()
ORDER = tuple(RNG.permutation(N).tolist())
SHOWN = [bool(k % 4 < 2) for k in range(N)]
FORCES = np.cos(np.arange(N)).tolist()
EDGES = [(int(a), int(b)) for a, b in RNG.integers(0, 4, (N, 2))]
POINTS = [(0.1 * k, np.sin(k)) for k in range(N)]


def classes(w):
    total = 0.0
    for i in range(N):
        z = w * X[i]
        total += np.log(np.sum(np.exp(z))) - z[LABELS[i]]
    return total


def labels_decide(w):
    total = 0.0
    for i in range(N):
        z = X[i] @ w
        if LABELS[i] == 1:
            total += np.log1p(np.exp(-z))
        else:
            total += np.log1p(np.exp(z))
    return total


def hidden_at_times(w):
    total = 0.0
    for i in range(N):
        if SHOWN[i]:
            total += np.sin(w[0] * i)
    return total


def in_order(w):
    state, total = 0.0, 0.0
    for k in range(N):
        state = np.tanh(state + X[ORDER[k]] @ w)
        total += state
    return total


def forced(w):
    state = w[1]
    for i in range(N - 1):
        state = state + 0.1 * (w[0] * FORCES[i + 1] - state)
    return state


def over_edges(w):
    total = 0.0
    for k in range(len(EDGES)):
        i, j = EDGES[k]
        total += np.sin(w[i] - w[j])
    return total


def through_points(w):
    total = 0.0
    for k in range(len(POINTS)):
        total += (w[0] * POINTS[k][0] + w[1] - POINTS[k][1]) ** 2
    return total


def own_grid(w):
    t = np.linspace(0.0, 1.0, N)
    u = w[1]
    for i in range(N - 1):
        u = u + (t[i + 1] - t[i]) * (np.sin(w[0] * t[i]) - u)
    return u


def own_grid_and_path(w):
    t, u = np.linspace(0.0, 1.0, N), np.zeros(N)
    u[0] = w[1]
    for i in range(N - 1):
        u[i + 1] = u[i] + (t[i + 1] - t[i]) * (np.sin(w[0] * t[i]) - u[i])
    return u[-1]


def own_list(w):
    steps = [0.5 / (k + 1) for k in range(N)]
    u = w[0]
    for i in range(N):
        u = u - steps[i] * np.sin(u + w[1])
    return u


def own_list_of_slopes(w):
    rates = [w[0] * k for k in range(N)]
    total = 0.0
    for i in range(1, N):
        total += np.sin(rates[i] - rates[i - 1]) * i
    return total


def own_mask(w):
    shown, total = np.arange(N) % 7 == 0, 0.0
    for i in range(N):
        if shown[i]:
            total += np.exp(w[0] * i / N)
        else:
            total -= w[1]
    return total


def by_a_counter(w):
    i, total = 0, 0.0
    while i < N:
        total += w[0] * FORCES[i] ** 2
        i += 1
    return total


def of_an_object(w):
    class Data:
        pass

    data, total = Data(), 0.0
    data.t = [0.1 * k for k in range(N)]
    for i in range(N):
        total += np.sin(w[0] * data.t[i])
    return total


def by_index(w):
    total = 0.0
    for i in range(N):
        if i % 3 == 1:
            total += np.sin(w[0] * i)
        elif i % 3 == 2:
            total -= np.sin(w[1] * i)
    return total


ALL = [
    classes, labels_decide, hidden_at_times, in_order, forced, over_edges, own_grid, own_grid_and_path, own_list, own_mask,
    by_a_counter, by_index,
]  # fmt: skip


@pytest.mark.parametrize("fun", [*ALL, through_points, own_list_of_slopes, of_an_object])
def test_gives_what_the_function_gives(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for _ in range(5):
        right_at(derivative, fun, rng.normal(size=4), (1e-12, 0.0), (1e-10, 1e-12))
    assert derivative.cache_info().misses == 2


@pytest.mark.parametrize("fun", ALL)
def test_stays_a_loop_or_is_done_at_once(fun):
    text = grad(fun).source(np.ones(4))
    assert len([line for line in str(text).splitlines() if "=" in line]) < 30


def test_lists_that_are_arguments():
    """No call is traced for other labels: as an array of them."""

    def loss(w, labels):
        total = 0.0
        for i in range(N):
            z = X[i] @ w
            if labels[i] == 1:
                total += np.log1p(np.exp(-z))
            else:
                total += np.log1p(np.exp(z)) * labels[i]
        return total

    derivative, rng = grad(loss), np.random.default_rng(2)
    for _ in range(8):
        w, labels = rng.normal(size=4), rng.integers(0, 3, N).tolist()
        np.testing.assert_allclose(derivative(w, labels), grad(loss, mode="dynamic")(w, labels), rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().misses == 2


def test_other_items_are_seen():
    forces = [0.1 * k for k in range(N)]
    kinds = [k % 3 for k in range(N)]

    def total(w):
        result = 0.0
        for i in range(N):
            result = np.sin(result) + w * forces[i] * kinds[i]
        return result

    derivative = value_and_grad(total)
    for change in (lambda: None, lambda: None, lambda: forces.__setitem__(58, 7.0), lambda: kinds.__setitem__(59, 5),
                   lambda: None, lambda: forces.__setitem__(3, True), lambda: kinds.__setitem__(1, 2.5)):  # fmt: skip
        change()
        value, slope = derivative(0.3)
        np.testing.assert_allclose(value, total(0.3), rtol=1e-12)
        np.testing.assert_allclose(slope, grad(total, mode="dynamic")(0.3), rtol=1e-10)


def written_first(w):
    t, once, s = [0.1 * k for k in range(N)], [False], 0.0
    for i in range(N):
        if not once[0]:
            once[0] = True
            t[N - 5] = 7.0
        s = np.sin(s) + w * t[i]
    return s


def written_first_under_another_name(w):
    t, once, s = np.arange(N) * 1.0, [False], 0.0
    names = [t]
    for i in range(N):
        if not once[0]:
            once[0] = True
            names[0][N - 5] = 7.0
        s = np.sin(s) + w * t[i]
    return s


def written_first_through_a_view(w):
    t, once, s = np.arange(N) * 1.0, [False], 0.0
    back = t[::-1]
    for value in t:
        if not once[0]:
            once[0] = True
            back[4] = 7.0
        s = np.sin(s) + w * value
    return s


def written_first_by_numpy(w):
    t, once, s = np.arange(N) * 1.0, [False], 0.0
    for value in t:
        if not once[0]:
            once[0] = True
            np.put(t, [N - 5], 7.0)
        s = np.sin(s) + w * value
    return s


def written_while_it_runs(w):
    t, s = [0.1 * k for k in range(N)], 0.0
    for i in range(N - 1):
        s = np.sin(s) + w * t[i]
        if i % 10 == 3:
            t[i + 1] = 0.5
            t.append(t.pop(0))
    return s


def row_written_while_it_runs(w):
    rows, s, i = [[0.1 * k, 1.0] for k in range(N)], 0.0, 0
    for a, b in rows:
        s = np.sin(s) + w * a * b
        if i % 10 == 3:
            rows[i + 1][0] = 0.5
        i = i + 1
    return s


def row_of_a_tuple_written_while_it_runs(w):
    rows, s, i = tuple([0.1 * k, 1.0] for k in range(12)), w * 1.0, 0
    for a, b in rows:
        if s > a:
            rows[(i + 1) % 12][0] += 1.0
        s = np.sin(s) + w * a * b
        i = i + 1
    return s


def a_number_in_place_of_a_traced_one(w):
    t, names, s = [w * k for k in range(N)], [], 0.0
    names.append(t)
    for i in range(N):
        if i == 3:
            names[0][40] = 0.25
        s = np.sin(s) + w * t[i]
    return s


def sign_of_zero(w):
    t, once, s = [0.0] * N, [False], 0.0
    for i in range(N):
        if not once[0]:
            once[0] = True
            t[7] = -0.0
        s = s + np.copysign(1.0, t[i]) * w
    return s


@pytest.mark.parametrize(
    "fun",
    [written_first, written_first_under_another_name, written_first_through_a_view, written_first_by_numpy,
     written_while_it_runs, row_written_while_it_runs, row_of_a_tuple_written_while_it_runs, sign_of_zero,
     a_number_in_place_of_a_traced_one],
)  # fmt: skip
def test_what_is_written_while_the_loop_runs_is_read(fun):
    """Also by the iterations that are run at once: they are not, then."""
    derivative = value_and_grad(fun)
    for w in (0.3, 0.31, 0.32, 0.33):
        np.testing.assert_allclose(derivative(w)[0], fun(w), rtol=1e-12)
    assert derivative.cache_info().hits


def test_an_item_is_the_very_object():
    rows = [(0.1 * k, 1.0) for k in range(N)]

    def total(w):
        result = 0.0
        for i in range(N):
            row = rows[i]
            if row is rows[7]:
                result = result + w * row[0]
            if row is rows[i - 1]:
                result = result + 1000 * w
        return result

    derivative = grad(total)
    for _ in range(3):
        assert derivative(0.3) == pytest.approx(0.7)
    rows[3] = rows[2]
    for _ in range(3):
        assert derivative(0.3) == pytest.approx(1000.7)


@pytest.mark.parametrize("kind", [list, np.array])
def test_long_loops_read_short_lists_at_places(kind):
    """At places that are NumPy's numbers, too; a list that is changed in place is read as it is then."""
    places, x = kind(np.random.default_rng(0).integers(0, 3, 200).tolist()), np.linspace(-1, 1, 200)

    def steps(w, places):
        cuts, total = [w[0], np.exp(w[1]), w[2] * w[0]], 0.0
        for i in range(200):
            total += np.tanh(x[i] - cuts[places[i]])
        return total

    def changed(w, places):
        cuts, total = [w[0], w[1], w[2]], 0.0
        for i in range(200):
            total += cuts[places[i]] * x[i]
            if i == 100:
                cuts[0] = 3.0 * w[2]
        return total

    for fun in (steps, changed):
        derivative, w = grad(fun), np.array([0.1, -0.3, 0.7])
        for _ in range(3):
            found = derivative(w, places)
        np.testing.assert_allclose(found, grad(fun, mode="dynamic")(w, places), rtol=1e-10)
    assert str(grad(steps).source(w, places)).count("tanh(") <= 2


def test_lists_that_grow_are_no_tables():
    """Not one for each length that they have."""

    def total(w):
        steps = [w, 0.5 * w]
        for i in range(2, 300):
            steps.append(np.sin(steps[i - 1]) + steps[i - 2])
        return steps[-1]

    derivative = grad(total)
    for w in (0.3, 0.4, 0.5):
        np.testing.assert_allclose(derivative(w), grad(total, mode="dynamic")(w), rtol=1e-10)
    assert "np.array([" not in derivative.source(0.3)


def test_few_items_of_a_long_list_are_read_alone():
    series = [0.1 * k for k in range(500)]

    def total(w):
        result = 0.0
        for i in range(5):
            result += w * series[i]
        return result

    derivative = grad(total)
    assert derivative(1.0) == pytest.approx(1.0)
    assert "series[7]" not in derivative.explain()


def test_no_item_there_is_the_lists_error():
    short = [0.5] * 40

    def total(w, k):
        return sum(w * short[i + k] for i in range(3))

    derivative = grad(total)
    assert derivative(1.0, 2) == derivative(1.0, -3) == 1.5
    with pytest.raises(IndexError):
        derivative(1.0, 38)


def test_rows_that_are_filled_are_views():
    def total(w):
        table, result = np.zeros((40, 2), int), 0.0
        for i in range(40):
            row = table[i]
            row[1] = 3
            result = result + w * table[i, 1]
        return result

    derivative = grad(total)
    for _ in range(3):
        assert derivative(0.5) == 120.0


NUMBERS = ["w[0] * {f}[{i}]", "x[{i}] * {f}[{i}]", "np.sin(s)", "v * 0.3", "{f}[{i}] * 0.5", "x[{p}[i]]", "{p}[i] * 0.01"]
CONDITIONS = [
    "{p}[i] % 3 == 1", "{b}[i]", "i % 3 == 0", "i > 3", "x[{i}] > 0.0", "{f}[{i}] > 0.2", "not {b}[{i}]", "{p}[i] > {p}[i - 1]",
]  # fmt: skip
PLACES = ["i", "i", "i", "i - 1", "n - 1 - i", "{p}[i]", "2", "i % 5"]
MADE = {
    "f": ["np.linspace(0.0, 1.0, n)", "[0.1 * j for j in range(n)]", "np.ones(n) * 0.5", "np.zeros(n)",
          "[w[0] * 0.1 * j for j in range(n)]", "list(x)", "[float(j) for j in np.sin(np.arange(n))]"],
    "p": ["np.arange(n)[::-1]", "[(3 * j) % n for j in range(n)]", "tuple(range(n))"],
    "b": ["np.arange(n) % 3 == 0", "[j % 5 > 2 for j in range(n)]"],
}  # fmt: skip
NEW = {"f": ["0.5", "w[1]"], "p": ["1", "i"], "b": ["True", "False"]}
LOOPS = ["for i in range(n):", "for i in range(1, n):", "for i in range(n - 1, -1, -1):", "while i < n - 1:"]


def lines(rng: random.Random) -> Iterator[str]:
    """The lines of loops that read tables, write into them at times, and decide on what is in them."""
    yield "def program(x, w):"
    yield "    n, s, v, once = len(x), 0.0, w[1], False"
    names = {"f": ["x", "f0"], "p": ["p0"], "b": ["b0"]}
    for kind in "fpb":
        yield f"    {kind}0 = {rng.choice(MADE[kind])}"
    for kind in rng.sample("fpb", rng.randrange(3)):
        names[kind].append(f"{kind}1")
        yield f"    {kind}1 = {rng.choice(MADE[kind])}"
    if rng.random() < 0.3:
        yield f"    f0[{rng.choice(['0', '3', '-1'])}] = {rng.choice(['0.7', 'w[0]'])}"

    def drawn(texts: list[str]) -> str:
        text = rng.choice(texts)
        for _ in range(2):
            text = text.format(**{kind: rng.choice(known) for kind, known in names.items()}, i=rng.choice(PLACES))
        return text

    def statement(indent: str, depth: int) -> Iterator[str]:
        which = rng.random()
        if which < 0.4 or not depth:
            yield f"{indent}s = s + {drawn(NUMBERS)} * 0.3"
        elif which < 0.5:
            yield f"{indent}v = np.tanh(v + {drawn(NUMBERS)})"
        elif which < 0.55:
            kind = rng.choice("fpb")
            yield f"{indent}{kind}0[i] = {rng.choice(NEW[kind])}" if kind != "p" else f"{indent}s = s * 0.9"
        elif which < 0.6:
            yield f"{indent}if not once:"
            yield f"{indent}    once, f0[{rng.randrange(6)}] = True, 0.25"
        else:
            yield f"{indent}if {drawn(CONDITIONS)}:"
            yield from statement(indent + "    ", depth - 1)
            if rng.random() < 0.6:
                yield f"{indent}else:"
                yield from statement(indent + "    ", depth - 1)

    for _ in range(rng.randint(1, 2)):
        loop = rng.choice(LOOPS)
        if loop.startswith("while"):
            yield "    i = 0"
        yield f"    {loop}"
        for _ in range(rng.randint(1, 3)):
            yield from statement("        ", 2)
        if loop.startswith("while"):
            yield "        i += 1"
    yield "    return s + v"


@given(st.integers(0, 2**40))
def test_random_loops(seed: int) -> None:
    program = program_of(lines(random.Random(seed)), {"x": (9,), "w": (2,)}, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectorize, "WORTH", 0)
        patch.setattr(iterables, "FEWEST", 4)
        patch.setattr(rolling, "FAR", 5)
        agrees_with_dynamic(program)


def written_at_times(x):
    y, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        s = 0.9 * s + x[i]
        if s > 0.5:
            y[i] = s
            s = 0.0
    return np.sum(y**2) + s


def written_from_the_end(x):
    y, s = x * 1.0, 0.0
    for i in range(len(x) - 1):
        s = 0.5 * s - x[i] * y[i]
        if s > 0:
            y[len(x) - 1 - i] = s * x[i]
        elif s > -1:
            y[len(x) - 1 - i] += s
    return np.sum(np.sin(y)) * s


def rows_written_at_times(x):
    y, s = np.ones((len(x), 2)), x[0]
    for i in range(1, len(x)):
        s = s * 0.7 + x[i]
        if s * x[i] > 0:
            y[i - 1] = np.array([s, 1.0])
    return np.sum(y * y * s)


def pairs_written_at_times(x):
    d = np.zeros((len(x), len(x)))
    for i in range(1, len(x)):
        for j in range(1, len(x)):
            if x[i] > x[j]:
                d[i, j] = d[i - 1, j - 1] + x[i] * x[j]
            elif x[i] * x[j] < 0:
                d[i, j] = d[i - 1, j]
    return np.sum(d)


def written_where_there_is_room(x):
    """Iterations that write nothing have no such place."""
    y, s = np.zeros(3), 0.0
    for i in range(len(x)):
        s = 0.8 * s + x[i]
        if i < 3 and s > 0:
            y[i] = s
    return np.sum(y**2) + s


@pytest.mark.parametrize(
    ("fun", "put"),
    [
        (written_at_times, True),
        (written_from_the_end, True),
        (rows_written_at_times, True),
        (pairs_written_at_times, True),
        (written_where_there_is_room, False),
    ],
    ids=lambda what: getattr(what, "__name__", ""),
)
def test_what_some_iterations_write_is_a_number_that_all_write(fun, put):
    """A copy of the array for each iteration would be quadratic."""
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(9).normal(size=(12, 9)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    assert ("put_" in derivative.source(x)) is put


def test_rows_that_become_something_else_are_computed_at_once():
    def fun(x):
        y = x * 1.0
        for i in range(len(x)):
            y[i] = np.sin(y[i]) * x[i] if y[i] > 0.2 else y[i] ** 2
        return np.sum(y)

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(10).normal(size=(8, 9)):
        np.testing.assert_allclose(derivative(x)[1], dynamic(x)[1], rtol=1e-11)
    assert "for " not in derivative.source(x).split("# backward")[1]


EDGES_AND_LENGTHS = [(0, 1, 0.3), (1, 2, 0.5), (0, 3, 0.1), (1, 3, 0.7), (2, 3, 0.2), (3, 0, 0.9)]


def numbered_edges(w, k):
    total = 0.0
    for n, (i, j, length) in enumerate(EDGES_AND_LENGTHS, 1):
        d = abs(w[i] - w[j])
        if d > length:
            total += n * k[n - 1] * (d - length) ** 2
    return total


def edges_beside_an_array(w, k):
    total = 0.0
    for (i, j, length), stiffness in zip(EDGES_AND_LENGTHS, k, strict=True):
        d = abs(w[i] - w[j])
        if d > length:
            total += stiffness * (d - length) ** 2
    return total


@pytest.mark.parametrize("fun", [numbered_edges, edges_beside_an_array])
def test_tuples_that_enumerate_and_zip_give(fun, monkeypatch):
    """What they hold is read anew."""
    derivative, other, rng = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic"), np.random.default_rng(2)
    for number in range(12):
        if number == 8:
            changed = [*EDGES_AND_LENGTHS[:2], (0, 3, 0.6), *EDGES_AND_LENGTHS[3:]]
            monkeypatch.setattr(sys.modules[__name__], "EDGES_AND_LENGTHS", changed)
        w, k = rng.normal(size=4), rng.normal(size=6)
        (value, slopes), (_, expected) = derivative(w, k), other(w, k)
        assert value == pytest.approx(fun(w, k), rel=1e-12)
        for slope, theirs in zip(slopes, expected, strict=True):
            np.testing.assert_allclose(slope, theirs, rtol=1e-11, atol=1e-13)
    assert derivative.cache_info().misses <= 6


def edges(step):
    def fun(x):
        n, m = x.shape
        table = np.zeros((n + 1, m + 1))
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                table[i, j] = step(table[i - 1, j], table[i, j - 1]) + x[i - 1, j - 1]
        return table[n, m]

    return fun


def warping(x):
    n, m = x.shape
    table = np.full((n + 1, m + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = np.minimum(np.minimum(table[i - 1, j], table[i, j - 1]), table[i - 1, j - 1])
            table[i, j] = x[i - 1, j - 1] ** 2 + cost
    return table[n, m]


def shortest_paths(x):
    table = x[:12, :12].copy()
    for k in range(12):
        for i in range(12):
            for j in range(12):
                table[i, j] = min(table[i, j], table[i, k] + table[k, j])
    return np.sum(table)


@pytest.mark.parametrize(
    "fun",
    [edges(np.maximum), edges(np.minimum), edges(np.fmax), edges(np.logaddexp), warping, shortest_paths],
    ids=["maximum", "minimum", "fmax", "logaddexp", "warping", "paths"],
)
def test_tables_of_extremes_are_lists_on_the_way_there_and_back(fun):
    derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    x = rng.uniform(1.0, 9.0, (15, 12))
    for same in (x, x, np.round(x), np.ones_like(x), -x if fun is not warping else x):
        np.testing.assert_allclose(derivative(same), dynamic(same), rtol=1e-12, atol=1e-14)
    assert derivative.cache_info().hits >= 3
    code = derivative.source(x, fast=True)
    inner = "\n".join([line for line in code.splitlines() if line.startswith(" " * 12) and "#" not in line])
    assert ".tolist()" in code
    assert ".copy()" not in inner  # for each number


def rna(x):
    """Decisions on indices, one after the other, some always alike: what was written before them is read behind."""
    n = len(x)
    table = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + x[i] * x[j])
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
    return table[0, n - 1]


def test_what_was_written_before_a_decision_is_read_alike_in_all_iterations():
    derivative, dynamic = grad(rna), grad(rna, mode="dynamic")
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=14)
        np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-12)
    assert len(derivative.source(x)) < 8000


def marked(x):
    """Numbers taken from the least on, which flags say."""
    done, s = [False] * len(x), 0.0
    for t in range(len(x)):
        k, best = -1, np.inf
        for i in range(len(x)):
            if not done[i] and x[i] < best:
                k, best = i, x[i]
        if k < 0:
            break
        done[k] = True
        s += t * best
    return s


def shortest_tree(x):
    """Prim's: the lengths of the shortest edges between points that join them all."""
    n = len(x) // 2
    a, b = x[:n], x[n:]
    done, reach, s = [False for _ in range(n)], [1e9] * n, 0.0
    reach[0] = 0.0
    for _ in range(n):
        k = -1
        for i in range(n):
            if not done[i] and (k < 0 or reach[i] < reach[k]):
                k = i
        done[k] = True
        s += reach[k]
        for i in range(n):
            if not done[i]:
                d = (a[i] - a[k]) ** 2 + (b[i] - b[k]) ** 2
                if d < reach[i]:
                    reach[i] = d
    return s


def met_before(x):
    """Two tables of flags, one of which is copied, and one in rows."""
    seen = [False] * len(x)
    rows, before, s = [[False] * len(x) for _ in range(2)], list(seen), 0.0
    for v in x:
        j, r = int(np.argmin(np.abs(x - 0.5 * v))), 0 if v > 0 else 1
        if not rows[r][j]:
            s += v * x[j]
        if before[j] != seen[j]:
            s += v
        s += 0.0 if seen[j] else v * v
        rows[r][j] = seen[j] = True
        if v > 0.5:
            before = seen[:]
    kept = np.array(seen)
    return s + np.sum(x[kept]) * np.sum(~kept)


FLAGS = [marked, shortest_tree, met_before]


def is_false(done, x):
    return x[0] if done[3] is False else x[1]


def counts(done, x):
    return sum(done) * x[0] + done.count(True) * x[1] + (x[2] if any(done) else 0.0) + (x[3] if all(done) else 0.0)


def as_numbers(done, x):
    return (
        x[0] * (done[1] + done[2])
        + x[1] * (1 - done[3])
        + [x[4], x[5]][done[4]]
        + (x[2] if isinstance(done[0], bool) else x[3])
    )


def as_texts(done, x):
    return x[0] * len(str(done[0])) + (x[1] if done == [False] * len(x) else x[2])


@pytest.mark.parametrize("put", [True, 1, None, "anything"])
@pytest.mark.parametrize("use", [is_false, counts, as_numbers, as_texts])
def test_lists_of_flags_and_others(use, put):
    def fun(x):
        done, s = [False] * len(x), 0.0
        for v in x:
            j = int(np.argmin(np.abs(x - 0.5 * v)))
            if not done[j]:
                s += v * x[j]
            done[j] = put if v > 0 else done[0]
        return s + use([bool(one) for one in done] if put is None or put == "anything" else done, x)

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(12):
        right_at(derivative, fun, rng.normal(size=12), (1e-12, 1e-12), (1e-9, 1e-12))


@pytest.mark.parametrize("fun", FLAGS)
def test_flags_at_places_that_are_found(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(40):
        right_at(derivative, fun, rng.normal(size=24), (1e-12, 0), (1e-9, 1e-12))
    assert derivative.cache_info().misses <= 14


def constant_put_into_it(x):
    items, s = list(x), 0.0
    for v in items:
        if v > 0.3:
            items[1] = 2.0
        s += v
    return s


def constant_put_under_another_name(x):
    items, s = [v * 1.0 for v in x], 0.0
    same = items
    for a, b in zip(items, items[1:]):  # noqa: B905, RUF007
        if a > 0.3:
            same[2] = 2.0
        s += a * b
    return s


def constant_put_into_another_one(x):
    items, others, s = list(x), [0.0, 0.0], 0.0
    for v in items:
        if v > 0.3:
            others[1] = 2.0
        s += v * others[1]
    return s


@pytest.mark.parametrize("fun", [constant_put_into_it, constant_put_under_another_name, constant_put_into_another_one])
def test_lists_that_some_iterations_of_their_loop_change(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(25):
        right_at(derivative, fun, rng.normal(size=14), (1e-12, 1e-12), (1e-9, 1e-12))
    assert derivative.cache_info().misses <= 8 or fun is not constant_put_into_another_one


def changed_by_another_name(w, p):
    items, total = [*w], 0.0
    other = items
    for i in range(len(p)):
        total += items[p[i]] * FACTORS[i]
        if i == 100:
            other[1] = w[0] * w[0]
    return total


def rotated(w, p):
    items, total = [*w], 0.0
    for i in range(len(p)):
        total += items[p[i]] * FACTORS[i]
        if i > 150:
            items.append(items.pop(0))
    return total


def turned_round(w, p):
    items, total = [*w], 0.0
    for i in range(len(p)):
        total += items[p[i]] * FACTORS[i]
        if i == 120:
            items.reverse()
    return total


def changed_by_a_function(w, p):
    items, total = [*w], 0.0

    def change():
        items[0] = w[2] * w[1]

    for i in range(len(p)):
        total += items[p[i]] * FACTORS[i]
        if i == 170:
            change()
    return total


FACTORS = np.linspace(-1.0, 1.0, 200)


@pytest.mark.parametrize("length", [3, 40])
@pytest.mark.parametrize("fun", [changed_by_another_name, rotated, turned_round, changed_by_a_function])
def test_lists_that_change_while_a_loop_reads_them(fun, length):
    """Other calls look elsewhere, where another item is by then."""
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    places = [rng.integers(0, length, 200) for _ in range(3)]
    for p in (places[0], places[0], places[0], places[1], places[2] - length, places[0]):
        w = rng.normal(size=length)
        value, slope = derivative(w, p)
        expected, other = value_and_grad(fun, mode="dynamic")(w, p)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
