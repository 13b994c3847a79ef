"""What loops compute of slices between ends that they look up: rows of sparse matrices, groups of data, prefixes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad import grad, hessian, value_and_grad

ROWS = 12
BOUNDS = np.array([0, 2, 3, 7, 9, 10, 13, 15, 20, 21, 24, 28, 30])
OTHERS = np.array([0, 1, 5, 6, 9, 13, 14, 16, 18, 22, 23, 29, 30])
GAPS = np.array([0, 2, 2, 7, 9, 10, 13, 15, 20, 21, 24, 30, 30])
rng = np.random.default_rng(0)
VALUES, WEIGHTS, PLACES = rng.normal(size=30), rng.normal(size=ROWS), rng.integers(0, ROWS, 30)


def product(vals, w, ends, cols):
    y = np.empty(ends.size - 1)
    for i in range(ends.size - 1):
        at = cols[ends[i] : ends[i + 1]]
        row = vals[ends[i] : ends[i + 1]]
        y[i] = row @ w[at]
    return np.sum(y**2)


def sums(vals, w, ends, cols):
    y = np.zeros(len(w))
    for i in range(len(w)):
        lo, hi = ends[i], ends[i + 1]
        y[i] = np.sum(vals[lo:hi] * w[cols[lo:hi]]) + vals[lo:hi].dot(w[cols[lo:hi]] ** 2)
    return np.sum(np.sin(y))


def listed(vals, w, ends, cols):
    rows = np.array([np.dot(vals[ends[i] : ends[i + 1]], w[cols[ends[i] : ends[i + 1]]]) for i in range(len(w))])
    return np.sum(rows**3)


def groups(vals, w, ends, cols):
    total = 0.0
    for g in range(len(w)):
        s, e = ends[g], ends[g + 1]
        y = vals[s:e]
        m = np.mean(y)
        total += np.sum((y - m) ** 2) / (e - s) + w[g] * m
    return total


def softmax(vals, w, ends, cols):
    total = 0.0
    for g in range(len(w)):
        s, e = ends[g], ends[g + 1]
        z = vals[s:e] * w[cols[s:e]]
        p = np.exp(z - z.max())
        p /= p.sum()
        total -= np.log(p[g % len(z)]) + np.min(z) / len(z)
    return total


def regression(vals, w, ends, cols):
    rows, beta = np.outer(vals, w[:3]), w[3:6]
    total = 0.0
    for g in range(len(w)):
        u = rows[ends[g] : ends[g + 1]] @ beta
        back = rows[ends[g] : ends[g + 1]].T @ np.tanh(u)
        total += np.log(np.sum(np.exp(u))) + back @ beta
    return total


def means_of_rows(vals, w, ends, cols):
    rows = np.outer(w, w[:4])
    out = np.zeros((len(w), 4))
    for i in range(len(w)):
        out[i] = np.mean(np.tanh(rows[cols[ends[i] : ends[i + 1]]]), axis=0)
    return np.sum(out**2)


def prefixes(vals, w, ends, cols):
    x = np.outer(w, vals[:8])
    length = cols % 5 + 1
    total = 0.0
    for i in range(len(w)):
        total += np.max(x[i, : length[i]]) * np.sum(x[i, : length[i]] ** 2)
    return total


def numbers(vals, w, ends, cols):
    y = np.zeros(len(w))
    for i in range(len(w)):
        s, q = 0.0, 1.0
        for k in range(ends[i], ends[i + 1]):
            a = vals[k] * w[cols[k]]
            s += a
            q -= np.tanh(a) * k
        y[i] = s * q
    return np.sum(y**2)


def pairs(vals, w, ends, cols):
    rows, y = np.outer(vals, w[:3]), np.zeros(len(w))
    for i in range(len(w)):
        s, t, far = 0.0, 0.0, 0.0
        for k in range(ends[i], ends[i + 1]):
            d = rows[k] - w[i] * w[cols[k]]
            s += np.sqrt(np.sum(d**2) + 1) - rows[k, :2].max() + rows[k] @ w[3:6]
            t += vals[k] * (k + 1) / (i + 1) - 0.5 * k * abs(k - 5) * (w[i] + k)
            far += rows[k].sum() * w[i]
        y[i] = s * t + far
    return np.sum(y**2)


def shifted(vals, w, ends, cols):
    total = 0.0
    for i in range(len(w)):
        s = 0.0
        for k in range(ends[i] + 1, ends[i + 1]):
            s += (vals[k] - vals[k - 1]) ** 2 * w[i]
        total += s * w[i - 1]
    return total


def in_turn(vals, w, ends, cols):
    total, out, starts = 0.0, [], ends[:-1]
    for g, (s, e) in enumerate(zip(starts, ends[1:], strict=True)):
        if s == e:
            continue
        total += np.sum(vals[s:e]) ** 2 * w[g]
    stops = ends[1:]
    for s, e in zip(starts, stops):  # noqa: B905
        m = np.sum(vals[s:e])
        out.append(m)
        if m > 0:
            total += m * m
    return total + np.sum(np.array(out) ** 3)


def again(vals, w, ends, cols):
    x = w
    for _ in range(5):
        y = np.zeros(len(w))
        for i in range(len(w)):
            s = 0.0
            for k in range(ends[i], ends[i + 1]):
                s += vals[k] * x[cols[k]]
            y[i] = (w[i] - s) / 10
        x = y
    return np.sum(x**2)


EACH = [product, sums, listed, groups, softmax, regression, means_of_rows, prefixes, numbers, pairs, shifted, in_turn, again]
WITH_GAPS = [
    product,
    sums,
    listed,
    numbers,
    pairs,
    shifted,
    in_turn,
    again,
]  # where Python and NumPy raise, and warn of, nothing


def agree(f, g, *args):
    """With what each operation by itself gives."""
    want, got = value_and_grad(f, argnums=(0, 1), mode="dynamic")(*args), g(*args)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-12, atol=1e-13)
    for a, b in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", EACH)
def test_slices_of_all_iterations(f):
    g = value_and_grad(f, argnums=(0, 1))
    for _ in range(3):
        agree(f, g, VALUES, WEIGHTS, BOUNDS, PLACES)
    before = g.cache_info().misses
    agree(f, g, VALUES[::-1].copy(), np.roll(WEIGHTS, 3), OTHERS, PLACES[::-1].copy())
    if f not in (in_turn, prefixes):  # which decide on what they compute, or where places tell how many
        assert g.cache_info().misses == before


@pytest.mark.parametrize("f", WITH_GAPS)
def test_iterations_without_items(f):
    g = value_and_grad(f, argnums=(0, 1))
    for ends in (GAPS, BOUNDS, GAPS, BOUNDS):
        agree(f, g, VALUES, WEIGHTS, ends, PLACES)


@pytest.mark.parametrize("f", [product, numbers, groups])
def test_code_has_no_loop(f):
    g = grad(f, argnums=(0, 1))
    for _ in range(2):
        g(VALUES, WEIGHTS, BOUNDS, PLACES)
    assert "for " not in str(g.source(VALUES, WEIGHTS, BOUNDS, PLACES)).split('"""', 2)[2].replace("# ", "").split("for ")[0]
    assert "reduceat" in str(g.source(VALUES, WEIGHTS, BOUNDS, PLACES))


@pytest.mark.long
def test_few_long_slices_are_done_one_by_one():
    ends = np.linspace(0, 20_000, ROWS + 1).astype(int)
    x, places = np.random.default_rng(1).normal(size=20_000), np.arange(20_000) % ROWS
    for f, one_by_one in ((groups, True), (product, True), (numbers, False)):
        g = value_and_grad(f, argnums=(0, 1))
        for _ in range(2):
            agree(f, g, x, WEIGHTS / 100, ends, places)
        assert ("reduceat" in str(g.source(x, WEIGHTS, ends, places))) != one_by_one


def test_second_derivatives():
    f = lambda x: groups(x, WEIGHTS, BOUNDS, PLACES) + softmax(x, WEIGHTS, BOUNDS, PLACES)
    for _ in range(2):
        np.testing.assert_allclose(hessian(f)(VALUES), hessian(f, mode="dynamic")(VALUES), rtol=1e-9, atol=1e-11)


# -- what is not the same beforehand -------------------------------------------------------------------------------


def written_into_as_it_goes(x, ends):
    x = x.copy()
    for i in range(ROWS):
        x[i] = 1 + 0.1 * np.sum(x[ends[i] : ends[i + 1]])
    return np.sum(x**2)


def by_another_name(x, ends):
    y = x * 1.0
    z = y[:]
    for i in range(ROWS):
        y[i] = np.sum(z[ends[i] : ends[i + 1]])
    return np.sum(y**2)


def by_a_function(x, ends):
    y = x * 1.0

    def get():
        return y

    z = get()
    for i in range(ROWS):
        y[i] = np.sum(z[ends[i] : ends[i + 1]])
    return np.sum(y**2)


def made_anew_and_had_by_a_function(x, ends):
    def get():
        return y

    y = x
    for _ in range(2):
        y = y * 1.0
        z = get()
        for i in range(ROWS):
            y[i] = np.sum(z[ends[i] : ends[i + 1]])
    return np.sum(y**2)


class Holds:
    """An array by another name, whatever is made of it."""

    def __init__(self, array):
        self.array = array

    def __add__(self, other):
        return self

    def __setitem__(self, key, value):
        self.array[key] = value

    def copy(self):
        return self.array


def written_by_an_object(x, ends):
    s = x * 1.0
    y = Holds(s) + 0
    for i in range(ROWS):
        y[i] = np.sum(s[ends[i] : ends[i + 1]])
    return np.sum(s**2)


def no_copy(x, ends):
    s, total = x * 1.0, 0.0
    held = Holds(s)
    y = held.copy()
    for i in range(ROWS):
        y[i] = 1.0
        total += np.sum(s[ends[i] : ends[i + 1]]) * x[i]
    return total


def slices_are_views(x, ends):
    x = x * 1.0
    for i in range(ROWS):
        part = x[ends[i] : ends[i + 1]]
        part *= 2.0
        part += x[0]
    return np.sum(x**2)


def rows_are_written_into(x, ends):
    rows, total = np.outer(x, x[:3]), 0.0
    for i in range(ROWS):
        z = rows[ends[i] : ends[i + 1]].sum(axis=0)
        z[0] = 0.0
        total += z.sum() * x[i]
    return total


def what_was_kept_changes(x, ends):
    rows, kept, total = np.outer(x, x[:3]), [], 0.0
    for i in range(ROWS):
        z = rows[ends[i] : ends[i + 1]].sum(axis=0) * 2
        kept.append(z)
        z /= np.sqrt(z @ z + 1)
    for z in kept:
        total += z[0] ** 3
    return total


def blocks(x, ends):
    rows, total = np.outer(x, np.cos(x)), 0.0
    for i in range(ROWS):
        lo, hi = ends[i], ends[i + 1]
        total += np.sum(rows[lo:hi, lo:hi]) * x[i]
    return total


def whole_numbers(x, ends):
    total = 0.0
    for i in range(ROWS):
        n = len(x[ends[i] : ends[i + 1]])
        total += np.sum(x[ends[i] : ends[i + 1]]) / 2 ** (9 * i) * ((n > 1) + (i > 4)) + 9 ** (9 * n) / 1e18
    return total


def large_numbers(x, ends):
    total = 0.0
    for i in range(ROWS):
        s, t = 0.0, 0.0
        for k in range(ends[i], ends[i + 1]):
            s += x[k] * (k * 10**18) * ((k > 3) + (k < 9))
            t += x[k] * k**15
        total += s / 1e18 + t / 1e20
    return total


def sums_of_slices_in_sums(x, ends):
    total = 0.0
    for i in range(ROWS):
        s = 0.0
        for k in range(ends[i], ends[i + 1]):
            s += np.sum(x[ends[i] : ends[i + 1]] * x[k])
        total += s * s
    return total


def numbers_where_nothing_is_added(x, ends):
    rows, total = np.outer(x, x[:3]), 0.0
    for i in range(ROWS):
        s = 1.0
        for k in range(ends[i], ends[i + 1]):
            s += rows[k]
        total += np.sum(s) * x[i]
    return total


def counted_from_elsewhere(x, ends):
    total, starts = 0.0, ends[:-1]
    for i, (s, e) in enumerate(zip(starts, ends[1:], strict=True), -3):
        total += np.sum(x[s:e]) ** 2 * i
    return total


def arrays_in_arrays(x, ends):
    v, kept, total = x * 2, np.empty(1, dtype=object), 0.0
    kept[0] = v
    for i in range(ROWS):
        kept[0] += 1.0
        total += np.sum(v[ends[i] : ends[i + 1]]) * x[i]
    return total


def signs_of_zero(x, ends):
    total = 0.0
    for i in range(ROWS):
        s = np.sum(x[ends[i] : ends[i + 1]] * 0.0)
        total += np.copysign(x[i], s) + np.copysign(s, 0.0) + 3 * np.copysign(x[i] ** 2, -0.0)
    return total


def left_by_the_loop(x, ends):
    for i in range(ROWS):
        s = np.sum(x[ends[i] : ends[i + 1]] ** 2)
        t = s * x[i]
    return s + t


def of_the_one_before(x, ends):
    s, total = 0.0, 0.0
    for i in range(ROWS):
        total += s * x[i]
        s = np.sum(x[ends[i] : ends[i + 1]])
    return total


def read_by_a_function(x, ends):
    s = 0.0

    def last():
        return s * 2

    total = 0.0
    for i in range(ROWS):
        s = np.sum(x[ends[i] : ends[i + 1]])
        total += last()
    return total


def to_the_end(x, ends):
    y = np.zeros(ROWS)
    for i in range(ROWS):
        y[i] = np.sum(x[ends[i] :] ** 2) + x[ends[i] :] @ x[ends[i] :]
    return np.sum(np.sin(y))


def beyond_the_end(x, ends):
    total = 0.0
    for i in range(ROWS):
        total += np.sum(x[ends[i] + 3 : ends[i + 1] + 3]) * i + np.sum(x[-ends[i + 1] :])
    return total


def appended_and_read(x, ends):
    out = [1.0]
    prev = out
    for i in range(ROWS):
        out.append(np.sum(x[ends[i] : ends[i + 1]]) * prev[-1] / 10)
    return out[-1] + out[3]


OTHERWISE = [
    written_into_as_it_goes, by_another_name, by_a_function, written_by_an_object, no_copy, made_anew_and_had_by_a_function,
    slices_are_views, rows_are_written_into, what_was_kept_changes, blocks, whole_numbers, large_numbers,
    sums_of_slices_in_sums, numbers_where_nothing_is_added, counted_from_elsewhere, arrays_in_arrays, signs_of_zero,
    left_by_the_loop, of_the_one_before, read_by_a_function, to_the_end, beyond_the_end, appended_and_read,
]  # fmt: skip


@pytest.mark.parametrize("f", OTHERWISE)
def test_what_loops_do_otherwise(f):
    g = value_and_grad(f)
    for x, ends in ((VALUES, BOUNDS), (VALUES + 1, BOUNDS), (VALUES, OTHERS), (-VALUES, GAPS), (VALUES, BOUNDS)):
        want, got = value_and_grad(f, mode="dynamic")(x.copy(), ends), g(x.copy(), ends)
        np.testing.assert_allclose(got[0], f(x.copy(), ends), rtol=1e-12)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-10, atol=1e-12)


def test_names_without_a_value():
    def f(x, ends, rows):
        if rows:
            q = np.sin(x)
        total = x[0]
        for i in range(rows):
            total += np.sum(x[ends[i] : ends[i + 1]]) * q[i]
        return total

    g = grad(f)
    for rows in (0, 0, ROWS, 0, ROWS):
        np.testing.assert_allclose(g(VALUES, BOUNDS, rows), grad(f, mode="dynamic")(VALUES, BOUNDS, rows))


def test_errors_are_the_functions():
    def f(x, ends):
        total = 0.0
        for i in range(ROWS):
            unused = x[ends[i] * 2]  # noqa: F841
            total += np.max(x[ends[i] : ends[i + 1]])
        return total

    g = grad(f)
    with pytest.raises(IndexError):
        g(VALUES, BOUNDS)
    with pytest.raises(ValueError, match="zero-size"):
        g(VALUES, GAPS // 2)


def division(x, ends):
    total = 0.0
    for i in range(ROWS):
        total += np.sum(x[ends[i] : ends[i + 1]]) * (1.0 / (len(x[ends[i] : ends[i + 1]]) - 7))
    return total


def test_pythons_numbers_raise():
    g = grad(division)
    for _ in range(2):
        g(VALUES, BOUNDS)
    with pytest.raises(ZeroDivisionError):
        g(VALUES, np.array([0, 7, 8, 9, 10, 11, 13, 15, 20, 21, 24, 28, 30]))


def test_float32_stays_what_it_is():
    def f(x, ends):
        out = []
        for i in range(ROWS):
            out.append(x[ends[i] : ends[i + 1]].sum() * i / len(x[ends[i] : ends[i + 1]]))
        return np.sum(np.array(out))

    x = VALUES.astype(np.float32)
    for _ in range(3):
        value, slope = value_and_grad(f)(x, BOUNDS)
        assert value.dtype == slope.dtype == np.float32
        np.testing.assert_allclose(value, f(x, BOUNDS), rtol=1e-5)


TERMS = [
    "np.sum(x[lo:hi] * w[i])", "x[lo:hi] @ v[lo:hi]", "np.mean(np.tanh(x[lo:hi]))", "np.max(x[lo:hi] - w[i])", "x[lo] * w[i]",
    "np.sum(rows[lo:hi] @ w[:3])", "rows[lo:hi].sum(axis=0) @ w[1:4]", "np.sum(v[at[lo:hi]] * x[lo:hi])",
    "x[lo:hi].min() * (hi - lo)", "np.sum(np.where(x[lo:hi] > w[i], x[lo:hi], v[lo:hi]))", "np.sum(rows[i, : (hi - lo) % 3])",
    "x[lo:hi][0] / len(x[lo:hi])",
]  # fmt: skip
KEEPS = [
    "total += {}", "y[i] = {}", "out.append({})", "m = {}\n        total += m * m",
    "s = {}\n        y[i] = s / 2\n        total -= s",
]  # fmt: skip


@given(st.data())
def test_random_loops(tmp_path_factory, data):
    body = []
    for keep in data.draw(st.lists(st.sampled_from(KEEPS), min_size=1, max_size=3)):
        terms = data.draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=2))
        body.append("        " + keep.format(" + ".join(terms)))
    lines = "\n".join(body)
    text = f"""
import numpy as np


def f(x, v, w, ends, at):
    total, y, out = 0.0, np.zeros(len(w)), []
    rows = np.outer(v, np.cos(x[:3]))
    for i in range(len(w)):
        lo, hi = ends[i], ends[i + 1]
{lines}
    return total + np.sum(y**2) + sum(out)
"""
    path = tmp_path_factory.mktemp("segments") / "made.py"
    path.write_text(text)
    space: dict[str, object] = {}
    exec(compile(text, str(path), "exec"), space)
    f, g = space["f"], value_and_grad(space["f"], argnums=(0, 1, 2))
    seed = data.draw(st.integers(0, 1000))
    r = np.random.default_rng(seed)
    for _ in range(3):
        ends = np.concatenate([[0], np.sort(r.choice(np.arange(1, 30), ROWS - 1, replace=False)), [30]])
        args = r.normal(size=30), r.normal(size=30), r.normal(size=ROWS), ends, r.integers(0, 30, 30)
        want, got = value_and_grad(f, argnums=(0, 1, 2), mode="dynamic")(*args), g(*args)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-11, atol=1e-12)
        for a, b in zip(got[1], want[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_slices_to_the_end_from_nothing_on():
    """A slice without an end is none that ends at zero, where all of them begin."""
    g, starts = value_and_grad(to_the_end), np.zeros(ROWS, int)
    for x in (VALUES, VALUES + 1, -VALUES):
        want, got = value_and_grad(to_the_end, mode="dynamic")(x, starts), g(x, starts)
        np.testing.assert_allclose(got[0], to_the_end(x, starts), rtol=1e-12)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-10, atol=1e-12)
