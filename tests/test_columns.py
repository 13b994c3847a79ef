"""Lists of tuples, lists or dicts that loops append to: as many lists, side by side."""

import itertools

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad


def alarms(x):
    s, found = 0.0, []
    for i in range(len(x)):
        s = max(0.0, s + x[i] - 0.1)
        if s > 1.5:
            found.append((i, s))
            s = 0.0
    total = s
    for i, a in found:
        total += a * (i + 1)
    return total


def summed(x):
    s, found = 0.0, []
    for i in range(len(x)):
        s = max(0.0, s + x[i] - 0.1)
        if s > 1.5:
            found.append((i, s))
            s = 0.0
    return sum(a for _, a in found) + s * len(found)


def as_an_array(x):
    s, found = 0.0, []
    for i in range(len(x)):
        s = max(0.0, s + x[i] - 0.1)
        if s > 1.5:
            found.append((i, s))
            s = 0.0
    if not found:
        return s
    every = np.array(found)
    return np.sum(every[:, 1] ** 2 * every[:, 0]) + s


def two_lists(x):
    s, places, sizes = 0.0, [], []
    for i, v in enumerate(x):
        s = 0.9 * s + v
        if s > 1.0:
            places.append(i)
            sizes.append(s)
            s = 0.0
    return sum(size * place for place, size in zip(places, sizes, strict=False)) + s


def crossings(x):
    found = []
    for i in range(1, len(x)):
        if x[i - 1] < 0.3 <= x[i]:
            found.append((i - 1 + (0.3 - x[i - 1]) / (x[i] - x[i - 1]), x[i] - x[i - 1]))
    if len(found) < 2:
        return np.sum(x)
    total = 0.0
    for (t0, s0), (t1, _) in zip(found[:-1], found[1:], strict=True):  # noqa: RUF007
        total += (t1 - t0) * s0
    return total


def numbered_pairs(x):
    found = []
    for v in x:
        if v > 0.4:
            found.append((v, v * v))
    total = 0.0
    for k, (p, q) in enumerate(itertools.pairwise(found)):
        total += k * p[0] * q[1] + q[0] * p[1]
    return total


def trades(x):
    held, entry, found = 0, 0.0, []
    for p in x:
        if held == 0 and p > 0.5:
            held, entry = 1, p
        elif held == 1 and p < 0.2:
            found.append({"entry": entry, "exit": p, "gain": p - entry})
            held = 0
    if not found:
        return 0.0 * x[0]
    return sum(one["gain"] for one in found) / len(found) + sum([one["entry"] for one in found])


def winners(x):
    held, entry, found = 0, 0.0, []
    for p in x:
        if held == 0 and p > 0.5:
            held, entry = 1, p
        elif held == 1 and p < 0.4:
            found.append({"entry": entry, "gain": p - entry})
            held = 0
    wins = [one for one in found if one["gain"] > -1.0]
    losses = [one["gain"] for one in found if one["gain"] <= -1.0]
    return sum(one["entry"] for one in wins) * (len(wins) + 1) + sum(losses)


def path_of_points(x):
    angle, path = 0.0, []
    for i in range(len(x)):
        angle += 0.1
        r = 1 + 0.1 * x[i] if x[i] > 0 else 1 - 0.05 * x[i]
        path.append((r * np.cos(angle), r * np.sin(angle)))
    area = 0.0
    for i in range(len(path)):
        x0, y0 = path[i]
        x1, y1 = path[(i + 1) % len(path)]
        area += x0 * y1 - x1 * y0
    return 0.5 * area


def steps_by_ifs(x):
    path = [(0.0, 0.0)]
    for v in x:
        a, b = path[-1]
        if v > 0:
            path.append((a + v, b))
        else:
            path.append((a, b - v))
    length = 0.0
    for p, q in zip(path, path[1:], strict=False):  # noqa: RUF007
        length += np.sqrt((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + 0.01)
    return length


def merged(x):
    groups = []
    for v in x:
        if groups and abs(groups[-1][0] - v) < 0.5:
            groups.append((0.5 * (groups[-1][0] + v), groups[-1][1] + 1.0))
        else:
            groups.append((v, 1.0))
    return sum(a * b for a, b in groups)


def turned(x):
    t, y, out = 0.0, 1.0, [(0.0, 1.0)]
    for v in x:
        y = y + 0.05 * (v - y)
        if y > 1.02:
            y = 1.02
        t += 0.05
        out.append((t, y))
    ts, ys = map(np.array, zip(*out, strict=True))
    return np.sum(ys**2 * ts)


def rows_of_lists(x):
    p, v, rows = 0.0, 1.0, []
    for i in range(len(x)):
        v = v - 0.1 * x[i]
        p = p + 0.1 * v
        if p < 0:
            p, v = -p, -0.9 * v
        rows.append([i, p, v])
    every = np.array(rows)
    return np.sum(every[:, 0] * every[:, 1]) + every[-1, 2] + rows[3][0] * rows[2][1]


def annotated(x: np.ndarray) -> float:
    total: float = 0.0
    kept: list[tuple[float, float]] = []
    for v in x:
        total = 0.9 * total + v
        if total > 1.0:
            kept.append((total, v))
            total = 0.0
    return sum(a * b for a, b in kept) + total


PROGRAMS = [
    alarms, summed, as_an_array, two_lists, crossings, numbered_pairs, trades, winners, path_of_points, steps_by_ifs, merged,
    turned, rows_of_lists, annotated,
]  # fmt: skip


@pytest.mark.parametrize("fun", PROGRAMS)
def test_loops_that_append_tuples(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(3)
    for k in range(25):
        x = np.round(rng.normal(size=40) * 4) / 4 + 0.3 if k < 20 else np.full(40, 0.25 * (k - 22))
        right_at(derivative, fun, x, value=(1e-12, 1e-14), slope=(1e-10, 1e-13))
    assert derivative.cache_info().hits >= 12


def begun_anew_from_itself(x):
    path = [(x[0], 1.0)]
    for i in range(1, len(x)):
        path.append((x[i], x[i] * path[-1][1]))
        if len(path) > 2:
            path = [(path[-1][1], path[-1][0])]
    return path[-1][0] + 3 * path[-1][1]


def begun_anew_by_its_length(x):
    path = [(x[0], 1.0)]
    for i in range(1, len(x)):
        path.append((x[i], x[i] * path[-1][1]))
        if x[i] > 1:
            path = [(x[i], 1.0 * len(path))]
    return path[-1][1] * path[-1][0]


def one_of_the_items(x):
    path = [(x[0], 1.0)]
    for v in x:
        path.append((v, 2.0 * v))
    s = 0.0
    for p in path:
        if p is path[0]:
            continue
        s = s + p[0] * p[1]
    return s


def the_best_item(x):
    path, best = [], None
    for v in x:
        path.append((v, v * v))
        if best is None or path[-1][1] > best[1]:
            best = path[-1]
    return best[0] + sum([100.0 * p[0] for p in path if p is best])


def the_longer_list(x):
    up, down = [(0, x[0])], []
    for i in range(1, len(x)):
        if x[i] > x[i - 1]:
            up.append((i, x[i]))
        else:
            down.append((i, x[i]))
    return sum(i * v for i, v in max(up, down, key=len)) + max(up, down)[0][1]


def one_name_in_two_loops(x):
    path = []
    for v in x:
        path.append((v, v * v))
    s = 0.0
    for p in [(1.0, 2.0), (3.0, 4.0)]:
        s += p[0]
        for p in path:
            s += p[0]
        s += 10 * p[1]
    return s + p[1]


def a_name_of_the_function_in_a_comprehension(x):
    path = []
    for v in x:
        path.append((v, v * v))
    p = (1.0, [1.0, 2.0])
    return sum([p[0] * q for q in p[1] for p in path])


def a_default_of_an_inner_function(x):
    path = [(x[0], 2.0)]

    def last(y, w=path[-1][0]):
        path = []
        for v in y:
            path.append((v, v * v))
        return path[-1][1] * w

    return last(x)


def an_array_of_objects(x):
    path = []
    for i in range(len(x)):
        path.append((np.arange(2.0), 2.0 * i))
    return np.sum(x) * np.array(path, dtype=object)[1, 1]


def one_target_twice(x):
    path = []
    for v in x:
        path.append((v, v * v))
    s = 0.0
    for p, p in zip(path, x, strict=True):
        s += p
    return s


def an_item_in_terms_of_the_last_one(x):
    path = [(x[0], 1.0)]
    for v in x:
        path.append((path[-1][0] * 0.5 + v, path[-1][0] * path[-1][1]))
    return sum(a * b for a, b in path)


def names_that_others_have(x):
    path, path_0, len_path, item, taken, seen = [], 1.0, 2.0, 3.0, 4.0, 5.0
    for v in x:
        if v > 0:
            path.append((v, path_0 * v))
    for a, b in path:
        path_0 += a * b * item * taken
    return path_0 + len_path * seen * x[0]


PART = slice(1, 3)


def a_slice_with_a_name(x):
    path, part, total = [], slice(0, 2), 0.0
    for v in x:
        path.append((v, v * v))
    for a, b in path[part]:
        total += a * 2.0 + b * b
    return total


def a_slice_from_outside(x):
    path, total = [], 0.0
    for v in x:
        path.append((v, v * v))
    for a, b in path[PART]:
        total += a * 2.0 + b * b
    return total + path[PART][0][1]


OTHERS = [
    a_slice_with_a_name, a_slice_from_outside,
    begun_anew_from_itself, begun_anew_by_its_length, one_of_the_items, the_best_item, the_longer_list, one_name_in_two_loops,
    a_name_of_the_function_in_a_comprehension, a_default_of_an_inner_function, an_array_of_objects, one_target_twice,
    an_item_in_terms_of_the_last_one, names_that_others_have,
]  # fmt: skip


@pytest.mark.parametrize("fun", OTHERS)
def test_what_lists_side_by_side_must_not_change(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for n in (4, 4, 4, 5, 6, 40, 40, 40):
        x = np.round(rng.normal(size=n) * 4) / 4
        right_at(derivative, fun, x, value=(1e-12, 1e-14), slope=(1e-10, 1e-12))


def test_ints_in_tuples_are_pythons():
    def fun(x):
        path = []
        for i in range(len(x)):
            if x[i] > 0:
                path.append((i, x[i]))
        return np.sum(x), ([i**20 for i, _ in path], path)

    x = np.where(np.arange(20) % 3 == 2, -1.0, 0.5)
    derivative = value_and_grad(fun, has_aux=True)
    for _ in range(3):
        (_, (powers, path)), _ = derivative(x)
        assert powers == [i**20 for i, _ in fun(x)[1][1]]
        assert {type(i) for i, _ in path} == {int}


LOG: list[object] = []


def test_lists_that_are_not_the_functions_own():
    """A module's, a closure's, an argument, or those of the function around: they are what they are."""
    seen: list[object] = []

    def outside(x, path):
        for i in range(5):
            LOG.append((i, 2 * i))
        return sum(x * i for i in range(5))

    def closure(x, path):
        for i in range(5):
            seen.append({"i": i, "j": 2})
        return x * len(seen)

    def parameter(x, path):
        for i in range(5):
            path.append((i, x * i))
        return sum(a * b for a, b in path)

    def default(x, path=None):
        path = [] if path is None else path
        for i in range(5):
            path.append((i, x * i))
        return sum(a * b for a, b in path)

    def around(x, path):
        path = []

        def add(k):
            for i in range(k):
                path.append((i, x * i))

        add(3)
        add(2)
        return sum(a * b for a, b in path)

    for fun in (outside, closure, parameter, default, around):
        derivative = value_and_grad(fun)
        for _ in range(3):
            LOG.clear()
            seen.clear()
            expected, logged = fun(1.5, []), (LOG[:], seen[:])
            LOG.clear()
            seen.clear()
            assert derivative(1.5, [])[0] == expected
            assert (LOG, seen) == logged


class Pair:
    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)


def test_objects_that_run_over_themselves_beside_lists():
    box = [Pair([2.0, 3.0]), [4.0, 5.0]]
    fun = lambda x: sum(a * b * x for a, b in [*box])
    derivative = value_and_grad(fun)
    for _ in range(3):
        value, slope = derivative(1.5)
        assert (value, slope) == (fun(1.5), 26.0)


def read_alone(x):
    state, found = np.zeros(2), []
    for _ in range(60):
        state = state + x[:2] * x[2]
        size = np.sum(state**2)
        found.append({"state": state, "size": size})
        if size > 9.0:
            break
    return sum(row["size"] for row in found) + 0.1 * sum(1 for row in found)


def test_what_is_not_read_of_rows_does_not_go_round():
    derivative = value_and_grad(read_alone)
    for scale in (0.5, 0.4, 0.6, 0.45, 0.55, 0.7):
        x = scale * np.array([0.9, 1.1, 0.7])
        right_at(derivative, read_alone, x, value=(1e-12, 1e-14), slope=(1e-10, 1e-12))
    assert derivative.cache_info().misses <= 3  # though each ends after another iteration


def test_rows_of_one_item():
    def f(x):
        found = []
        for v in x:
            if v > 0.0:
                found.append((v * v,))
        return sum(row[0] for row in found) + sum(2.0 * one for (one,) in found)

    derivative = value_and_grad(f)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal(40)
        right_at(derivative, f, x, value=(1e-12, 1e-14), slope=(1e-10, 1e-12))


def test_slices_of_rows_have_all_of_them():
    def f(x):
        found = []
        for i, v in enumerate(x):
            if v > 0.0:
                found.append((v, 2.0 * v, i * v))
        total = 0.0
        for row in found:
            total = total + row[0] * len(row[:2]) + row[1:][1]
        return total

    derivative = value_and_grad(f)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal(40)
        right_at(derivative, f, x, value=(1e-12, 1e-14), slope=(1e-10, 1e-12))
