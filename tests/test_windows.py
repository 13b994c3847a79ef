"""Slices that move with a loop's index, ``x[i : i + 3]``: views of what they are taken from, at which nobody looks."""

import re

import numpy as np
import pytest

from symgrad import grad, value_and_grad, without
from symgrad.errors import NotDifferentiable


def spread(x):
    s = 0.0
    for i in range(2, len(x)):
        w = x[i - 2 : i + 1]
        s += np.max(w) - np.min(w)
    return s


def written_as_a_whole(x):
    y = x * 1.0
    for i in range(1, len(x) - 1):
        w = y[i - 1 : i + 2]
        w -= np.mean(w)
    return np.sum(y**2)


def relaxed(x):
    y = np.sin(x)
    for i in range(1, len(x) - 1):
        w = y[i - 1 : i + 2]
        y[i] = w[0] * 0.5 + w[2]
    return np.sum(y**2)


def read_after_a_write(x):
    y = np.sin(x)
    s = 0.0
    for i in range(1, len(x) - 1):
        w = y[i - 1 : i + 2]
        y[i] = 2 * y[i]
        s += w[1] * w[0]
    return s


def blocks(x):
    s = 0.0
    for i in range(0, len(x) // 4):
        b = x[i * 4 : (i + 1) * 4]
        if b[0] > 0:
            s += b @ b
        else:
            s += np.sum(b)
    return s


def rows(x):
    X = x.reshape(-1, 2)
    s = 0.0
    for i in range(len(X) - 2):
        W = X[i : i + 3]
        s += np.sum(W.T @ W) ** 0.5
    return s


def columns_of_rows(x):
    X = x.reshape(-1, 2)
    s = 0.0
    for i in range(len(X) - 2):
        W = X[i : i + 3, :1]
        if W[0, 0] > 0:
            s += np.sum(W) ** 2
    return s


def columns(x):
    X = x.reshape(2, -1)
    s = 0.0
    for i in range(X.shape[1] - 2):
        W = X[:, i : i + 3]
        if W[0, 0] > 0:
            s += np.sum(W) ** 2
        else:
            s += np.prod(W[1])
    return s


def beyond_the_ends(x):
    s = 0.0
    for i in range(-2, len(x)):
        w = x[i : i + 3]
        s += np.sum(w**2) if len(w) else 1.0
    return s


def cut_off_at_the_end(x):
    s = 0.0
    for i in range(len(x)):
        w = x[i : i + 3]
        if x[i] > 0:
            s += np.mean(w) ** 2
    return s


def growing(x):
    s = 0.0
    for i in range(len(x)):
        s += np.sum(x[: i + 1]) * np.sum(x[i:]) if x[i] > 0 else 0.0
    return s


def added_into(x):
    y = np.zeros(len(x))
    for i in range(2, len(x) - 2):
        y[i - 1 : i + 2] += x[i - 1 : i + 2] ** 2
    return np.sum(y * np.arange(len(x)))


def kept(x):
    out = []
    for i in range(len(x) - 3):
        out.append(x[i : i + 4])
    return np.sum(np.array(out) @ np.arange(4.0))


def kept_and_read(x):
    out = []
    for i in range(len(x) - 3):
        out.append(x[i : i + 4])
    x2 = out[0]
    return np.sum(np.stack(out) ** 2) * np.sum(x2)


def kept_while_written(x):
    y = x.copy()
    keep = []
    for i in range(len(x) - 3):
        w = y[i : i + 2]
        keep.append(w)
        y[i] = y[i + 1] * y[i + 3]
    return sum(k[0] * k[1] for k in keep)


def diffusion(x):
    k = np.array([1.0, -2.0, 1.0])
    u = x.copy()
    for _ in range(3):
        v = u.copy()
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * np.dot(k, u[i - 1 : i + 2])
        u = v
    return np.sum(u**2)


def pairs(x):
    s = 0.0
    for i in range(len(x) - 3):
        for j in range(i + 1, len(x) - 3):
            d = x[i : i + 3] - x[j : j + 3]
            q = d @ d
            if q < 2:
                s += q
    return s


def until(x):
    s = 0.0
    i = 0
    while i < len(x) - 2 and s < 5:
        w = x[i : i + 3]
        s += w @ w
        i += 1
    return s


def best(x):
    best = x[0:3]
    for i in range(len(x) - 2):
        w = x[i : i + 3]
        if np.sum(w) > np.sum(best):
            best = w
    return best @ best


def last_of_them(x):
    y = x * 1.0
    w = y[0:2]
    for i in range(len(x) - 2):
        w = y[i : i + 2]
    w[0] = 5.0 * x[1]
    return np.sum(y**2)


def written_into(x):
    y = x * 1.0
    w = y[0:2]
    for i in range(len(x) - 2):
        w = y[i : i + 2]
        if w[0] > 0:
            w[0] = w[0] * 2
    w[0] = 5.0 * x[1]
    return np.sum(y**2)


def views_of_views(x):
    s = 0.0
    for i in range(len(x) - 2):
        w = x[i : i + 2]
        v = w[::-1]
        u = w[1:]
        if v[0] > 0:
            s += v @ w + u[0]
    return s


def patches(x):
    X, K = np.outer(x, np.cos(x)), np.array([[0.0, 1.0, 0.5], [1.0, -4.0, 1.0], [0.2, 1.0, 0.0]])
    out = np.zeros((len(x) - 2, len(x) - 2))
    for i in range(len(x) - 2):
        for j in range(len(x) - 2):
            out[i, j] = np.sum(X[i : i + 3, j : j + 3] * K)
    return np.sum(np.tanh(out) ** 2)


def pooled(x):
    X = np.outer(x, np.cos(x))
    s = 0.0
    for i in range(len(x) // 2):
        for j in range(len(x) // 2):
            s += np.max(X[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]) ** 2
    return s


def patches_of_channels(x):
    X = np.stack([np.outer(x, x), np.outer(x, np.sin(x))])
    s = 0.0
    for c in range(2):
        for i in range(len(x) - 1):
            for j in range(1, len(x) - 1):
                s += np.tanh(np.sum(X[c, i : i + 2, j - 1 : j + 2])) * np.sum(X[..., 1:3, j - 1 : j + 2])
    return s


def blocks_of_the_diagonal(x):
    X = np.outer(x, np.cos(x))
    s = 0.0
    for i in range(len(x) - 2):
        s += np.sum(X[i : i + 3, i : i + 3] ** 2) * np.sum(X[1, i : i + 3]) * np.sum(X[..., i : i + 3])
    return s


def patches_that_decide(x):
    X = np.outer(x, np.cos(x))
    s = 0.0
    for i in range(len(x) - 1):
        for j in range(len(x) - 1):
            w = X[i : i + 2, j : j + 2]
            if w[0, 0] > w[1, 1]:
                s += np.sum(w) ** 2
    return s


def assembled(x):
    K = np.zeros((len(x) + 1, len(x) + 1))
    for e in range(len(x)):
        K[e : e + 2, e : e + 2] += x[e] * np.array([[1.0, -1.0], [-1.0, 2.0]])
    return np.sum(K**3)


def put_into_patches(x):
    X = np.outer(x, np.cos(x))
    for i in range(len(x) - 1):
        for j in range(0, len(x) - 1, 3):
            w = X[i : i + 2, j : j + 2]
            w -= 0.5 * np.mean(w)
            X[i : i + 2, j : j + 2] *= x[i]
    return np.sum(X**2)


def kept_patches_while_written(x):
    X = np.outer(x, np.cos(x))
    keep = []
    for i in range(len(x) - 2):
        keep.append(X[i : i + 2, i : i + 2])
        X[i, i] = X[i + 1, i] * X[i + 2, i + 1]
    return sum(np.sum(k) ** 2 for k in keep)


def patches_beyond_the_ends(x):
    X = np.outer(x, np.cos(x))
    s = 0.0
    for i in range(-1, len(x)):
        for j in range(len(x) - 2):
            s += np.sum(X[i : i + 2, j : j + 3]) ** 2 + np.sum(X[: i + 1, j : j + 2])
    return s


def overlapping_sums(x):
    w, out = np.hanning(6), np.zeros(2 * len(x) + 4)
    for i in range(len(x)):
        out[2 * i : 2 * i + 6] += np.tanh(x[i] * w)
    return np.sum(out**2)


def overlapping_writes(x):
    w, out = np.arange(1.0, 4.0), np.zeros(len(x) + 2)
    for i in range(len(x)):
        out[i : i + 3] = x[i] * w + 0.5 * out[i : i + 3]
    return np.sum(np.sin(out))


def backwards(x):
    w, out = np.arange(1.0, 4.0), np.zeros(len(x) + 2)
    for i in range(len(x) - 1, -1, -1):
        out[i : i + 3] = x[i] * w
        out[i + 1 : i + 3] -= np.sin(out[i : i + 2])
    return np.sum(np.sin(out))


def blocks_written(x):
    out = np.ones(3 * len(x))
    for k in range(len(x)):
        out[3 * k : 3 * k + 3] = np.tanh(x[k] * np.arange(3)[::-1]) * out[3 * k : 3 * k + 3]
    return np.sum(out**2)


def blocks_of_their_own(x):
    y, a = np.sin(x[: len(x) // 3 * 3]), np.cos(np.arange(9.0).reshape(3, 3))
    for k in range(len(x) // 3):
        y[3 * k : 3 * k + 3] = a @ y[3 * k : 3 * k + 3]
        y[3 * k : 3 * k + 3] *= x[k]
    return np.sum(y**3)


def blocks_of_the_last_one(x):
    y = np.sin(x[: len(x) // 3 * 3])
    for k in range(1, len(x) // 3):
        y[3 * k : 3 * k + 3] += 0.5 * y[3 * k - 3 : 3 * k]
    return np.sum(y**3)


def enlarged_by_patches(x):
    X, K = np.outer(x, np.cos(x)), np.array([[1.0, 2.0], [3.0, -1.0]])
    out = np.zeros((2 * len(x), 2 * len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            out[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = X[i, j] * K
    return np.sum(np.tanh(out))


def spread_by_patches(x):
    X, K = np.outer(x, np.cos(x)), np.array([[1.0, 2.0, 0.0], [3.0, -1.0, 1.0]])
    out = np.zeros((len(x) + 1, len(x) + 2))
    for i in range(len(x)):
        for j in range(len(x)):
            out[i : i + 2, j : j + 3] += X[i, j] * K
    return np.sum(np.tanh(out))


def bars(x):
    K = np.zeros((2 * len(x), 2 * len(x)))
    for e in range(len(x) - 1):
        c = np.array([np.cos(x[e]), np.sin(x[e])])
        B = np.outer(c, c) * x[e + 1]
        i, j = slice(2 * e, 2 * e + 2), slice(2 * e + 2, 2 * e + 4)
        K[i, i] += B
        K[j, j] += B
        K[i, j] -= B
        K[j, i] -= B
    return np.sum((K + np.eye(len(K))) ** 3)


def rows_of_sums(x):
    X, out = np.outer(x, np.cos(x)), np.zeros((len(x), len(x) + 2))
    for i in range(len(x)):
        for j in range(len(x)):
            out[i, j : j + 3] += X[i, j] * np.arange(3.0)
    return np.sum(np.sin(out))


def in_the_middle(x):
    out = np.zeros((2, len(x) + 2, 3))
    for i in range(len(x)):
        out[:, i : i + 3] += np.sin(x[i])
        out[1, i : i + 2, 1:] -= x[i] ** 2
        out[..., i : i + 2, 0] *= 0.5
    return np.sum(out**2)


def recurrence_over_patches(x):
    X, K, y = np.outer(x, np.cos(x)), np.array([[0.0, 0.2], [0.4, 1.0]]), np.zeros((len(x), len(x)))
    for i in range(len(x) - 1):
        for j in range(len(x) - 1):
            y[i + 1, j + 1] = np.tanh(np.sum(X[i : i + 2, j : j + 2] * K) + 0.5 * y[i, j + 1] + 0.3 * y[i + 1, j])
    return np.sum(y)


def written_if(x):
    out = np.ones(len(x) + 2)
    for i in range(len(x)):
        if x[i] > 0:
            out[i : i + 3] += x[i]
        elif x[i] < -1:
            out[i : i + 2] = x[i] * out[i + 1 : i + 3]
    return np.sum(out**2)


def beyond_the_end(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i : i + 3] += x[i]
    return np.sum(out**2)


CODE = [spread, rows, columns_of_rows, columns, kept, views_of_views, diffusion]
CODE += [patches, pooled, patches_of_channels, blocks_of_the_diagonal]
CODE += [overlapping_sums, overlapping_writes, backwards, blocks_written, blocks_of_their_own, blocks_of_the_last_one]
CODE += [enlarged_by_patches, spread_by_patches, bars, rows_of_sums, in_the_middle, recurrence_over_patches, assembled]
CODE += [beyond_the_end]
OTHERS = [
    *[patches_that_decide, put_into_patches, written_if, kept_patches_while_written, patches_beyond_the_ends],
    *[written_as_a_whole, relaxed, read_after_a_write, blocks, beyond_the_ends, cut_off_at_the_end, growing, added_into],
    *[kept_and_read, kept_while_written, pairs, until, best, last_of_them, written_into],
]


@pytest.mark.parametrize("size", [12, 48])
@pytest.mark.parametrize("fun", [*CODE, *OTHERS])
def test_slices_that_move_are_numpys(fun, size):
    size = min(size, 34) if "patches" in fun.__name__ else size
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for x in np.random.default_rng(1).normal(size=(8 if size < 20 else 4, size)):
        kept = x.copy()
        (value, slope), (_, other) = derivative(x), dynamic(x)
        np.testing.assert_array_equal(x, kept)
        assert value == pytest.approx(fun(x.copy()), rel=1e-10)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-11)
    assert fun in OTHERS or derivative.cache_info().misses <= 4


def test_a_long_loop_over_windows_is_done_at_once():
    def smoothness(x):
        total = 0.0
        for i in range(1, len(x) - 1):
            total += np.dot(x[i - 1 : i + 2], [1.0, -2.0, 1.0]) ** 2
        return total

    derivative = value_and_grad(smoothness)
    for x in np.random.default_rng(1).normal(size=(3, 300)):
        value, slope = derivative(x)
        second = np.convolve(x, [1.0, -2.0, 1.0], "valid")
        assert value == pytest.approx(second @ second)
        np.testing.assert_allclose(slope, np.convolve(2 * second, [1.0, -2.0, 1.0]), rtol=1e-10, atol=1e-12)
    assert len(derivative.source(x).splitlines()) < 40
    with without("vectorize"):
        np.testing.assert_allclose(value_and_grad(smoothness)(x)[1], slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fun", [patches, pooled, patches_of_channels])
def test_nests_over_patches_are_done_at_once(fun):
    """However short each loop is: convolutions and pooling as they are first written."""
    derivative = value_and_grad(fun)
    for x in np.random.default_rng(1).normal(size=(3, 14)):
        derivative(x)
    lines = derivative.source(x).splitlines()
    assert len(lines) < 90
    assert not any(line.strip().startswith("for ") for line in lines)


AT_ONCE = [overlapping_sums, blocks_written, blocks_of_their_own, enlarged_by_patches, spread_by_patches, bars, assembled]


@pytest.mark.parametrize("fun", [*AT_ONCE, rows_of_sums])
def test_windows_are_written_at_once(fun):
    """What iterations add to windows, and what they write into windows that they have to themselves."""
    derivative = value_and_grad(fun)
    for x in np.random.default_rng(1).normal(size=(3, 33 if "patches" in fun.__name__ or fun is rows_of_sums else 120)):
        derivative(x)
    lines = derivative.source(x).splitlines()
    assert len(lines) < 60
    assert not any(line.strip().startswith("for ") for line in lines)


@pytest.mark.parametrize(
    ("fun", "slices", "numbers"),
    [(overlapping_writes, "[i:i + 3]", True), (recurrence_over_patches, "[i:i + 2, i_2:i_2 + 2]", False)],
)
def test_loops_that_stay_have_slices(fun, slices, numbers):
    """As they were written, forward and backward, to read, and to run where that is not done with ``numbers``; no element is
    added to by a function."""
    derivative = value_and_grad(fun)
    for x in np.random.default_rng(1).normal(size=(3, 33)):
        derivative(x)
    for fast in (False, True):
        code = derivative.source(x, fast=fast)
        assert (slices in code) is not (fast and numbers)
        assert not any(call in code for call in ("add.at", "add_each", "take"))
    with without("windows"):
        plain = value_and_grad(fun)
        np.testing.assert_allclose(plain(x)[1], derivative(x)[1], rtol=1e-12)
        assert slices not in plain.source(x)


def test_shifts_of_whole_arrays_stay_slices():
    def filtered(x, k):
        X, out = np.outer(x, np.cos(x)), 0.0
        for i in range(6):
            for j in range(6):
                out = out + k[i, j] * X[i : i + 9, j : j + 9]
        return np.sum(out**2)

    derivative = value_and_grad(filtered, (0, 1))
    x, k = np.random.default_rng(1).normal(size=14), np.random.default_rng(2).normal(size=(6, 6))
    for _ in range(3):
        derivative(x, k)
    assert "[3:12, 2:11]" in derivative.source(x, k)


def test_windows_of_tables_are_numbers():
    """Recurrences over a few earlier values, of the table that they fill and of data, are code of Python's numbers."""

    def moving_averages(c, q, y):
        p, e = len(c), np.zeros(len(y))
        for t in range(p, len(y)):
            e[t] = y[t] - c @ y[t - p : t][::-1] - np.sum(q * np.tanh(e[t - p : t]))
            e[t - 1 : t + 1] += 0.01 * y[t]
        return np.sum(e[p:] ** 2)

    derivative, dynamic = value_and_grad(moving_averages, (0, 1, 2)), value_and_grad(moving_averages, (0, 1, 2), mode="dynamic")
    for y in np.random.default_rng(1).normal(size=(4, 200)):
        (value, slopes), (_, others) = derivative(y[:3], 0.1 * y[3:6], y), dynamic(y[:3], 0.1 * y[3:6], y)
        assert value == pytest.approx(moving_averages(y[:3], 0.1 * y[3:6], y), rel=1e-12)
        for slope, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().hits == 2
    code = derivative.source(y[:3], y[3:6], y, fast=True).splitlines()
    loops = "\n".join([line.partition("#")[0] for line in code if line.startswith(" " * 8)])
    assert re.search(r"\w\[\w+\]", loops)  # of a list
    assert not any(call in loops for call in ("take", ".dot(", "multiply(", "add_each"))


# -- slices that move with whole numbers among the arguments ----------------------------------------------------------

TABLE = np.random.default_rng(5).standard_normal((12, 6))


def of_a_batch(w, x, i):
    """As training loops have it: the batch of a step, in data from outside."""
    k = i % 4
    batch = slice(3 * k, 3 * (k + 1))
    return np.sum(np.tanh(TABLE[batch] @ w) ** 2) * np.sum(x)


def of_an_argument(w, x, i):
    return np.sum(np.sin(x[i : i + 3])) * np.sum(w)


def of_columns(w, x, i):
    return np.sum(np.outer(x, w)[:, i : i + 2] ** 2) + np.sum(np.outer(x, w)[2, i : i + 2])


def with_a_number(w, x, i):
    return np.sum(TABLE[i : i + 2, 1] ** 2) * np.sum(w) + np.sum(TABLE[i, i : i + 3] * x[0]) if 0 <= i < 12 else np.sum(x)


def with_an_ellipsis(w, x, i):
    return np.sum(np.outer(x, w)[..., i : i + 2]) + np.sum(np.outer(x, w)[i : i + 2, None] ** 3)


def through_a_view(w, x, i):
    y = np.sin(x)
    part = y[i : i + 2]
    part *= 3.0
    y[0] = 2.0 * y[0]
    return np.sum(y * x) + np.sum(part) * np.sum(w)


def of_two_numbers(w, x, i):
    return np.sum(x[i : i + i % 3 + 1] ** 2) * np.sum(w)


@pytest.mark.parametrize("argnum", [0, 1])
@pytest.mark.parametrize(
    "fun", [of_a_batch, of_an_argument, of_columns, with_a_number, with_an_ellipsis, through_a_view, of_two_numbers]
)
def test_slices_that_move_with_an_argument(fun, argnum):
    rng = np.random.default_rng(0)
    derivative, plain = value_and_grad(fun, argnum), value_and_grad(fun, argnum, mode="dynamic")
    for i in [*range(12), *range(-13, 30), *range(12)]:
        args = rng.standard_normal(6), rng.standard_normal(7), i
        value, slope = derivative(*args)
        expected, theirs = plain(*args)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, theirs, rtol=1e-12, atol=1e-13)


def test_batches_of_a_step_share_code():
    derivative = grad(of_a_batch)
    for i in range(20):
        derivative(np.ones(6), np.ones(7), i)
    assert derivative.cache_info().misses == 2
    assert "TABLE[3 * k:3 * k + 3]" in derivative.source(np.ones(6), np.ones(7), 0)


def last_one_short(w, x, i):
    start = 5 * (i % 3)
    return np.mean(TABLE[start : start + 5] @ w) * np.sum(x)


def last_one_short_of_an_argument(w, x, i):
    start = 3 * i
    return np.sum(w[start : start + 4] ** 2) * np.sum(x)


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("fun", [last_one_short, last_one_short_of_an_argument])
def test_last_batches_that_are_shorter_are_a_branch(fun, first):
    derivative = value_and_grad(fun)
    derivative.cache_clear()
    rng = np.random.default_rng(0)
    for k in range(20):
        args = rng.standard_normal(6), rng.standard_normal(7), (first + k) % 3
        value, slope = derivative(*args)
        np.testing.assert_allclose(value, fun(*args), rtol=1e-12)
        np.testing.assert_allclose(slope, value_and_grad(fun, mode="dynamic")(*args)[1], rtol=1e-12, atol=1e-13)
    assert derivative.cache_info().misses <= 6
    assert "dynamic" not in derivative.explain()


WINDOWS = np.lib.stride_tricks.sliding_window_view


def strided(x):
    frames = WINDOWS(x[0], 16)[::4] * np.hanning(16)
    return np.sum(np.abs(np.fft.rfft(frames)) ** 2)


def patches(x):
    parts = WINDOWS(x, (4, 3))[::4, ::3]
    return np.sum(np.tanh(parts.reshape(-1, 12)) @ np.cos(np.arange(12.0)))


def pooled(x):
    return np.sum(WINDOWS(x, (2, 2))[::2, ::2].max(axis=(-2, -1)) ** 2)


def overlapping(x):
    return np.sum(WINDOWS(x, (3, 5))[::2] ** 2)


def all_alike(x):
    return np.sum(WINDOWS(x, (3, 2))[::2, ::3]) * x[0, 0]


def of_one_axis(x):
    return np.sum(WINDOWS(x, 4, axis=1)[1:, ::2] ** 3)  # from one on, no step but a slice


def correlated(x):
    kernel = np.sin(np.arange(9.0)).reshape(3, 3) * x[0, 0]
    return np.sum(np.tanh(np.einsum("ijkl,kl->ij", WINDOWS(x, (3, 3)), kernel)))


@pytest.mark.parametrize("fun", [strided, patches, pooled, overlapping, all_alike, of_one_axis, correlated])
@pytest.mark.parametrize("shape", [(24, 60), (64, 66), (9, 100)])
def test_windows_at_steps(fun, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    expected = grad(fun, mode="dynamic")(x)
    derivative = grad(fun)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-11, atol=1e-11)
    with without():
        np.testing.assert_allclose(grad(fun)(x), expected, rtol=1e-11, atol=1e-11)


def test_windows_at_steps_are_no_larger_than_they_are():
    x = np.random.default_rng(0).standard_normal((64, 66))
    text = str(grad(patches).source(x, fast=True))
    assert "steps=(4, 3)" in text
    assert "zeros" not in text
    assert "runtime.spread(" in str(grad(correlated).source(x, fast=True))


# -- as_strided ----------------------------------------------------------------------------------------------------

as_strided = np.lib.stride_tricks.as_strided


def columns(x, k=3):
    n, c, h, w = x.shape
    steps = x.strides
    seen = as_strided(x, (n, c, h - k + 1, w - k + 1, k, k), (*steps, *steps[2:]))
    return seen.transpose(0, 2, 3, 1, 4, 5).reshape(n * (h - k + 1) * (w - k + 1), -1)


def convolved(w, x):
    return np.sum(np.tanh(columns(x) @ w))


def convolved_in_windows(w, x):
    seen = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.sum(np.tanh(np.einsum("nchwij,cijo->nhwo", seen, w.reshape(x.shape[1], 3, 3, -1))))


def frames(x, size=4, hop=2):
    step = x.strides[0]
    return np.sum(as_strided(x, ((len(x) - size) // hop + 1, size), (hop * step, step)) ** 3 * np.arange(1.0, size + 1))


def frames_by_index(x, size=4, hop=2):
    places = hop * np.arange((len(x) - size) // hop + 1)[:, None] + np.arange(size)
    return np.sum(x[places] ** 3 * np.arange(1.0, size + 1))


def blocks(x):
    (a, b), (m, n) = x.strides, x.shape
    return np.sum(np.max(as_strided(x, (m // 2, n // 3, 2, 3), (2 * a, 3 * b, a, b)), axis=(2, 3)) ** 2)


def blocks_by_shape(x):
    return np.sum(np.max(x.reshape(x.shape[0] // 2, 2, x.shape[1] // 3, 3), axis=(1, 3)) ** 2)


def repeated(x):
    return np.sum(as_strided(x, (3, *x.shape), (0, *x.strides)) * np.arange(3.0)[:, None, None] * x**2)


def test_columns_of_pictures():
    """The recipe for convolutions, with derivatives by the weights and by the pictures, in compiled code."""
    rng = np.random.default_rng(0)
    slopes, expected = grad(convolved, argnums=(0, 1)), grad(convolved_in_windows, argnums=(0, 1))
    for _ in range(4):
        w, x = rng.normal(size=(27, 4)), rng.normal(size=(2, 3, 6, 7))
        for a, b in zip(slopes(w, x), expected(w, x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(grad(convolved)(w, x), expected(w, x)[0], rtol=1e-12, atol=1e-12)
    assert "dynamic" not in slopes.explain()


@pytest.mark.parametrize(
    ("fun", "known", "shapes"),
    [
        (frames, frames_by_index, [(11,), (12,)]),
        (blocks, blocks_by_shape, [(4, 6), (2, 9)]),
        (repeated, lambda x: 3 * np.sum(x**3), [(2, 3)]),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_as_strided(fun, known, shapes, mode):
    rng = np.random.default_rng(1)
    slope, expected = grad(fun, mode=mode), grad(known)
    for shape in shapes * 3:
        x = rng.normal(size=shape)
        np.testing.assert_allclose(slope(x), expected(x), rtol=1e-12)
    for layout in (
        lambda x: x[..., ::2],
        lambda x: x[::-1],
        lambda x: np.asfortranarray(x),
        lambda x: x[:, ::-1] if x.ndim > 1 else x,
    ):
        x = layout(rng.normal(size=(*shapes[0][:-1], 2 * shapes[0][-1])))
        if min(x.strides) > 0 and (fun is not blocks or x.shape[1] % 3 == 0):
            np.testing.assert_allclose(slope(x), expected(np.array(x)), rtol=1e-12)


def along_the_diagonal(x):
    return np.sum(as_strided(x, (len(x),), (x.strides[0] + x.strides[1],)))


def past_the_rows(x):
    return np.sum(as_strided(x, (3, 2 * x.shape[1]), x.strides))


def backwards(x):
    return np.sum(as_strided(x[-1:], (3,), (-x.strides[0],)))


@pytest.mark.parametrize("fun", [along_the_diagonal, past_the_rows, backwards])
def test_other_strides_are_refused(fun):
    with pytest.raises(NotDifferentiable, match="windows, steps or repetitions along axes alone"):
        grad(fun)(np.ones((4, 4)))


def written_into(x):
    as_strided(x * 2.0, (2, 2), (8, 8))[0, 0] = 1.0
    return np.sum(x)


def test_what_as_strided_shows_of_traced_values_is_not_written_to():
    with pytest.raises(ValueError, match="read-only"):
        grad(written_into)(np.ones(3))


def read_later(x):
    y = np.sin(x)
    seen = as_strided(y, (4, 2), (8, 8))
    y[1] = x[0] * 3.0
    return np.sum(seen**2)


def read_later_by_index(x):
    y = np.sin(x)
    y[1] = x[0] * 3.0
    return np.sum(y[np.arange(4)[:, None] + np.arange(2)] ** 2)


def test_what_is_written_later_is_seen_through_strides():
    x = np.random.default_rng(2).normal(size=5)
    slope = grad(read_later)
    for _ in range(3):
        np.testing.assert_allclose(slope(x), grad(read_later_by_index)(x), rtol=1e-12)
