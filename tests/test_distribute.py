"""Loops distributed: totals and what can be known before, taken out of loops."""

import random
import re
import textwrap

import numpy as np
import pytest
from agreement import agrees_with_dynamic, program_of
from hypothesis import given
from hypothesis import strategies as st

import symgrad
from symgrad.ir import Aval, Graph
from symgrad.ops.core import REGISTRY
from symgrad.optimize.distribute import ALL, regrouped
from symgrad.pytree import flatten
from symgrad.testing import check_grads
from symgrad.transform.loop import Body, Course, loop_of


def rnn(w, u, b, xs, h):
    for x in xs:
        h = np.tanh(x @ w + h @ u + b)
    return np.sum(h**2)


def gated(w, u, b, xs, h):
    for x in xs:
        z = x @ w + h @ u + b
        gate = 1 / (1 + np.exp(-z[:, :40]))
        h = gate * h + (1 - gate) * np.tanh(z[:, 40:])
    return np.sum(h**2)


def lstm(w, u, b, xs, h):
    c = h
    for x in xs:
        z = x @ w + h @ u + b
        i, f, o = (1 / (1 + np.exp(-z[:, 40 * k : 40 * k + 40])) for k in range(3))
        c = f * c + i * np.tanh(z[:, 120:])
        h = o * np.tanh(c)
    return np.sum(h**2)


def backwards(w, u, b, xs, h):
    for t in range(len(xs) - 1, -1, -1):
        h = np.tanh(xs[t] @ w + h @ u + b)
    return np.sum(h)


def shifted(w, u, b, xs, h):
    for t in range(1, len(xs)):
        h = np.tanh(xs[t - 1] @ w - xs[t] @ w + h @ u - b)
    return np.sum(np.sin(h))


def every_state(w, u, b, xs, h):
    total = 0.0
    for t in range(len(xs)):
        h = np.tanh(xs[t] @ w + h @ u + b)
        total = total + np.sum((h - xs[t, :, :1]) ** 2)
    return total / len(xs) + h[0, 0]


def columns(w, u, b, xs, h):
    for t in range(len(xs)):
        h = np.tanh(xs[t, 0] @ w + h @ u + b)
    return np.sum(h)


def summed(w, u, b, xs, h):
    total = np.zeros((xs.shape[2], h.shape[1]))
    for x in xs:
        total = total + x.T @ np.sin(x @ w) - w
    return np.sum(np.cos(total)) + h[0, 0] * np.sum(u) * b[0]


def descent(w, u, b, xs, h):
    x = xs[0]
    v = np.zeros_like(b)
    for _ in range(12):
        v = 0.9 * v - 0.1 * w.T @ (w @ b) / len(x)
        b = b + v
    return np.sum(np.sin(b)) + np.sum(u) + h[0, 0] + x[0, 0]


def nested(w, u, b, xs, h):
    for x in xs:
        for _ in range(5):
            h = np.tanh(x @ w + h @ u)
    return np.sum(h * b)


def in_parts(w, u, b, xs, h):
    for x in xs:
        z = x @ w + h @ u + b
        h = np.concatenate([np.tanh(z[:, :15]), np.sin(z[:, 15:30]), np.cos(z[:, 30:])], axis=1)
    return np.sum(h)


def nothing_to_save(w, u, b, xs, h):
    for _ in range(30):
        h = h @ u
    return np.sum(h) + np.sum(w) + b[0] + xs[0, 0, 0]


def runge_kutta(w, u, b, xs, h):
    x = b
    for t in range(len(xs)):
        k1 = np.tanh(u @ x)
        k2 = np.tanh(u @ (x + 0.05 * k1)) - w.T @ xs[t, 0]
        k3 = np.tanh(u @ (x - 0.1 * k2))
        x = x + 0.03 * (k1 + 4 * k2 - k3)
    return x @ x + h[0, 0]


def soft(np_max):
    """What of a step is a maximum, kept as an axis, hangs on what the step saves alone."""

    def fun(w, u, b, xs, h):
        costs, f, g = xs[:, :, 0], np.zeros(xs.shape[1]), np.zeros(xs.shape[0])
        for _ in range(12):
            a = g[:, None] - costs
            m = np_max(a, axis=0, keepdims=True)
            f = -(np.squeeze(m, 0) + 0.9 * np.log(np.sum(np.exp(a - m), axis=0)))  # 1 would leave the maximum nothing
            a = f - costs
            m = np_max(a, axis=1, keepdims=True)
            g = -(np.squeeze(m, 1) + 0.9 * np.log(np.sum(np.exp(a - m), axis=1)))
        return np.sum(np.exp(f + g[:, None] - costs) * costs) + h[0, 0] + np.sum(w) + b[0] + u[0, 0]

    fun.__name__ = f"soft_{np_max.__name__}"
    return fun


def kept(w, u, b, xs, h):
    total = 0.0
    for x in xs:
        total = total + np.sum(np.sin(x @ w), axis=1, keepdims=True)
        h = np.tanh(h @ u) / (1.0 + np.sum(x * x > 1.0, axis=1, keepdims=True, dtype=float))
    return np.sum(total * h) + b[0]


def by_columns(w, u, b, xs, h):
    for x in xs:
        h = np.tanh(np.reshape(x @ w, h.shape, order="F") + h @ u) + b
    return np.sum(h)


def edges(w, u, b, xs, h):
    for i, j in np.argsort(xs[:17, 0], axis=1)[:, :2]:
        step = w[i] - w[j]
        h = np.tanh(h @ np.outer(step, step) + b)
    return np.sum(h)


def in_front(w, u, b, xs, h):
    places, x = np.arange(16)[::-1], xs[:, :8, :, None] * np.ones(16)
    for slab in x:
        h = np.tanh(slab[places % 8, :, 0] @ w @ u)[:8] + h
    return np.sum(h)


def outer_of_matrices(w, u, b, xs, h):
    for x in xs[:, :2, :4]:
        h = np.tanh(h @ u + np.outer(x, b.reshape(4, 10)))
    return np.sum(h)


def hidden_chain(w, u, b, xs, h):
    moves = w[:, :8] - np.logaddexp.reduce(w[:, :8], axis=1, keepdims=True)
    a = h[0, :16]
    for x in xs[:, 0]:
        a = x[:8] @ u[:8, :16] + np.logaddexp.reduce(a[:, None] + moves, axis=0) @ u[8:16, :16]
    return np.logaddexp.reduce(a) + np.sum(b)


def readout(w, u, b, xs, h):
    h, total = h[0], 0.0
    for t in range(len(xs)):
        h = np.tanh(xs[t, 0] @ w + h @ u + b)
        total = total + (h @ u[0] - xs[t, 0, 0]) ** 2
    return total


LABELS = np.array([3, 0, 0, -1, 7, 2, 3, 15, 1, 4] * 3)


def labelled(w, u, b, xs, h):
    a, moves = h[0, :16], u[:16, :16]
    for label in LABELS:
        s = a[:, None] + moves
        m = np.max(s, axis=0)
        a = m + np.log(np.sum(np.exp(s - m), axis=0)) + w[:, label] - b[label]
    return np.sum(a * b[:16]) + xs[0, 0, 0]


def best_path(w, u, b, xs, h):
    a = h[0, :16]
    for t in range(30):
        a = np.max(a[:, None] + w[:, :16], axis=0) + u[LABELS[t], :16] - w[LABELS[t], 20:36]
    return np.max(a) + b[0] + xs[0, 0, 0]


def looked_up(w, u, b, xs, h):
    h = h[0]
    for t in range(30):
        rows = xs[t] @ w
        h = np.tanh(rows[LABELS[t] % 8] + rows[LABELS[3]] + h @ u + (xs[t] @ u[:16])[:, LABELS[t]][0] * b)
    return np.sum(h)


SEEN = np.random.default_rng(1).integers(-8, 8, (8, 30))  # what eight sequences show, at each step


def observed(w, u, b, xs, h):
    """Many hidden Markov models with one table of what each state shows, read by columns."""
    moves, shown = np.exp(u[:16, :16]), np.exp(w)
    a, total = shown[:, SEEN[:, 0]].T, 0.0
    for t in range(1, 30):
        a = (a @ moves) * shown[:, SEEN[:, t]].T
        s = np.sum(a, axis=1, keepdims=True)
        a = a / s
        total = total + np.sum(np.log(s))
    return total + np.sum(a * h[:, :16]) + b[0] * xs[0, 0, 0]


def observed_rows(w, u, b, xs, h):
    """The same of rows; a block of a table at places of its second axis, and rows that change as the loop runs."""
    for t in range(30):
        block = w.reshape(2, 8, -1)[:, SEEN[:3, t]]
        h = np.tanh(h @ u + w[SEEN[:, t]] * b + np.sum(block, axis=(0, 1)) + h[SEEN[:, t] % 8])
    return np.sum(h) + xs[0, 0, 0]


def filtered(w, u, b, xs, h):
    """A Kalman filter, its likelihood in the words that filters use."""
    a, c, noise = u[:4, :4], w[:3, :4], np.diag(np.exp(b[:3]))
    mean, spread, loss = h[0, :4], np.eye(4), 0.0
    for t in range(30):
        mean, spread = a @ mean, a @ spread @ a.T + np.eye(4)
        s = c @ spread @ c.T + noise
        low, e = np.linalg.cholesky(s), xs[t, 0, :3] - c @ mean
        k = spread @ c.T @ np.linalg.inv(s)
        loss = loss + e @ np.linalg.solve(s, e) + np.log(np.linalg.det(s)) + np.sum(np.log(np.diag(low)))
        loss = loss + np.sum(np.linalg.solve(s, c) ** 2) + np.sum(np.linalg.solve(noise, e))
        mean, spread = mean + k @ e, spread - k @ c @ spread
    return loss + np.linalg.slogdet(s)[1] + np.sum(np.triu(s))


PROGRAMS = [rnn, gated, lstm, backwards, shifted, every_state, columns, summed, descent, nested, in_parts]
PROGRAMS += [runge_kutta, nothing_to_save, soft(np.max), soft(np.min), kept, by_columns, edges, in_front, outer_of_matrices]
PROGRAMS += [hidden_chain, readout, labelled, best_path, looked_up, filtered, observed, observed_rows]


def arguments(fun, dtype=float, rows=8, size=40):
    rng = np.random.default_rng(0)
    width = {gated: 2, lstm: 4}.get(fun, 1) * size
    shapes = (16, width), (size, width), (width,), (30, rows, 16), (rows, size)
    return [(rng.standard_normal(shape) / 6).astype(dtype) for shape in shapes]


def compiled(fun, *args):
    derivative = symgrad.grad(fun, argnums=(0, 1, 2, 3, 4))
    for _ in range(3):
        derivative(*args)
    assert derivative.cache_info().hits, "its code raises an error"
    return derivative


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("fun", PROGRAMS)
def test_results_stay(fun, dtype):
    args = arguments(fun, dtype)
    with symgrad.without("distribute"):
        plain = compiled(fun, *args)
    fast = compiled(fun, *args)
    for a, b in zip(fast(*args), plain(*args), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=(1e-14 if dtype is float else 2e-6) * (1 + np.abs(b).max()))


@pytest.mark.parametrize("fun", [rnn, gated, lstm])
def test_more_rows_than_fit_in_small_memory(fun):
    args = arguments(fun, rows=64)
    with symgrad.without("distribute"):
        plain = compiled(fun, *args)
    fast = compiled(fun, *args)
    first = fast(*args)
    kept = [part.copy() for part in first]
    second = fast(*[2 * arg for arg in args])  # does not write where the first call's results are
    for a, b, c, d in zip(first, kept, second, plain(*args), strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.shares_memory(a, c)
        np.testing.assert_allclose(a, d, rtol=0, atol=1e-14 * np.abs(d).max())


def unwrapped(source):
    """Code as it is without the ``try`` around it, in which NumPy raises what it warns of."""
    inner = re.search(r"raising\(\)\n    try:\n((?: {8}.*\n)+)    finally:", str(source))
    return str(source) if inner is None else textwrap.indent(textwrap.dedent(inner[1]), "    ")


def bodies(source):
    """The lines within loops, and the others."""
    lines = unwrapped(source).splitlines()
    return [line for line in lines if line.startswith("        ")], [line for line in lines if re.match(r" {4}\S", line)]


@pytest.mark.parametrize("fun", [rnn, gated, lstm, backwards, shifted, columns, descent, runge_kutta])
def test_totals_are_one_product(fun):
    args = arguments(fun)
    derivative = symgrad.grad(fun, argnums=(0, 1, 2))
    for _ in range(3):
        derivative(*args)
    inside, outside = bodies(derivative.source(*args, fast=True))
    assert not any(".T.dot(" in line and "g_" in line.split("=")[0] for line in inside)
    assert any(".dot(" in line for line in outside)


@pytest.mark.parametrize("fun", [rnn, gated, lstm, backwards, columns])
def test_products_of_what_is_given_are_made_before(fun):
    inside, outside = bodies(compiled(fun, *arguments(fun)).source(*arguments(fun), fast=True))
    assert any(".dot(w" in line for line in outside)
    assert not any(re.search(r"\.dot\(w\b(?!\.T)", line) for line in inside)


def test_few_numbers_are_computed_for_all_iterations_at_once():
    args = arguments(hidden_chain)
    inside, outside = bodies(compiled(hidden_chain, *args).source(*args, fast=True))
    assert not any("np.where(" in line or "exp(" in line for line in inside)
    assert any("exp(" in line for line in outside)


def test_systems_are_solved_for_all_iterations_at_once():
    args = arguments(filtered)
    with symgrad.without("scalarize"):
        way_back = compiled(filtered, *args).source(*args, fast=True).split("reversed(", 1)[1].split("    del ")[0]
    assert not re.search(r"runtime|np\.(?!zeros)|det\(|\.T\.T", way_back)


def test_a_singular_system_of_one_iteration_is_refused():
    def fun(x, y):
        total, state = 0.0, y[0]
        for t in range(20):
            state = np.tanh(x[t] @ state)
            total = total + state @ np.linalg.solve(x[t], y[t])
        return total

    x, y = np.eye(4) + np.arange(320.0).reshape(20, 4, 4) % 7 / 9, np.ones((20, 4))
    derivative = symgrad.grad(fun, argnums=(0, 1))
    for _ in range(3):
        derivative(x, y)
    assert derivative.cache_info().hits
    x[5] = 0.0
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        derivative(x, y)


def test_what_an_iteration_ended_with_is_read_for_all_iterations_at_once():
    """As the next one began with it, the loop back need not carry it."""
    args, derivative = arguments(readout), symgrad.grad(readout, argnums=(0, 1, 2))
    for _ in range(3):
        derivative(*args)
    way_back = str(derivative.source(*args, fast=True)).split("reversed(", 1)[1].split("    del ")[0]
    assert len(way_back.strip().splitlines()) == 4


@pytest.mark.parametrize("fun", [readout, labelled, best_path])
def test_what_iterations_end_with_is_computed_where_it_is_kept(fun):
    """And what they begin with is that of the one before: it need not be copied there."""
    args, derivative = arguments(fun), symgrad.grad(fun, argnums=(0, 1, 2))
    for _ in range(3):
        derivative(*args)
    text = str(derivative.source(*args, fast=True))
    way_back = text.split("reversed(", 1)[1].split("    del ")[0]
    assert "_row[...] =" not in text
    assert "np.where(" not in way_back
    first = derivative(*args)
    kept = [part.copy() for part in first]
    for a, b, c in zip(first, kept, derivative(*[2 * arg for arg in args]), strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.shares_memory(a, c)


@pytest.mark.parametrize("fun", [labelled, best_path])
def test_what_is_at_labels_is_read_before_and_added_after(fun):
    args = arguments(fun)
    inside, outside = bodies(compiled(fun, *args).source(*args, fast=True))
    assert not any("+=" in line or "[:, LABELS" in line or "LABELS[i], " in line for line in inside if "#" not in line)
    assert any("add_each(" in line for line in outside)


@pytest.mark.parametrize("seed", range(3))
def test_what_extremes_are_told_by_is_the_same_to_the_bit(seed):
    """In the loop back as in the loop before, which has saved them."""

    labels = LABELS[:12] % 8

    def loss(moves, w, a, b):
        for t in range(11, -1, -1):
            best = np.max(b[:, None] + moves, axis=1) * 0.5
            v = np.minimum(np.max((w[:, labels[t]] * 0.3)[:, None] + moves, axis=0) * 0.5, w[:, labels[11 - t]] * 0.3 * best)
            a, b = np.max(np.maximum(np.minimum(a, v), b)[:, None] + moves, axis=0) * 0.5, (moves @ a * 0.3 + v) * 0.5
        return np.sum(np.sin(a)) + np.sum(a * b)

    rng = np.random.default_rng(seed)
    args = [rng.standard_normal(shape) for shape in ((20, 20), (20, 8), 20, 20)]
    derivative, expected = (symgrad.grad(loss, argnums=(0, 1, 2, 3), mode=mode) for mode in ("auto", "dynamic"))
    for _ in range(3):
        found = derivative(*args)
    for one, other in zip(found, expected(*args), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_infinities_stay_hidden_where_all_iterations_are_computed_at_once():
    def loss(moves, heard):
        a = heard[0]
        for t in range(1, len(heard)):
            a = heard[t] + np.logaddexp.reduce(a[:, None] + moves, axis=0)
        return np.logaddexp.reduce(a)

    rng = np.random.default_rng(0)
    moves, heard = np.triu(rng.standard_normal((12, 12))), rng.standard_normal((20, 12))
    moves[np.tril_indices(12, -1)] = -np.inf  # and so from left to right alone
    heard[0, 1:] = -np.inf
    fast = symgrad.grad(loss, argnums=(0, 1))
    with symgrad.without():
        plain = symgrad.grad(loss, argnums=(0, 1))
    for _ in range(4):
        found, expected = fast(moves, heard), plain(moves, heard)
    for a, b in zip(found, expected, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_what_is_saved_for_the_way_back_is_made_less():
    args = arguments(lstm, rows=64)
    inside, outside = bodies(compiled(lstm, *args).source(*args, fast=True))
    kept = [line for line in outside if "empty((30, 64, 40)" in line]
    assert not any(".append(" in line for line in inside)
    assert kept
    way_back = next(line for line in outside if line.lstrip().startswith("for") and "reversed" in line)
    assert way_back.count("reversed") - 1 < len(kept)  # one of them is written


def test_big_steps_stay_in_the_loop():
    def loss(w, x):
        for _ in range(10):
            x = np.tanh(x @ w)
        return np.sum(x)

    rng = np.random.default_rng(0)
    args = rng.standard_normal((40, 40)), rng.standard_normal((2000, 40))
    derivative = symgrad.grad(loss)
    for _ in range(3):
        derivative(*args)
    inside, _ = bodies(derivative.source(*args, fast=True))
    assert any(".T.dot(" in line for line in inside)


def test_decisions_are_as_written():
    def loss(w, x):
        total = np.zeros((30, 30))
        for i in range(10):
            total = total + np.outer(x, w[i])
        if total[0, 0] > 0.3:
            return np.sum(np.sin(total))
        return np.sum(total)

    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((10, 30)), rng.standard_normal(30)
    derivative = symgrad.grad(loss)
    with symgrad.without():
        plain = symgrad.grad(loss)
    for sign in (1, 1, -1, -1, 1, -1):
        np.testing.assert_allclose(derivative(w, sign * x), plain(w, sign * x), rtol=1e-12)


def a_state(x, rows, w):
    h = x
    for t in range(12):
        h = np.tanh(h @ w + rows[t] @ w)
    return h


def a_total(x, rows, w):
    h, m = x, x * 0.5
    for t in range(12):
        h = np.tanh(h @ w + rows[t])
        m = m + h * rows[t]
    return m


def added_to_a_part(x, rows, w):
    h, m = x, np.zeros((2, x.size))
    for t in range(12):
        h = np.tanh(h @ w + rows[t])
        m[1] += h * rows[t]
    return m[1]


def saved_states(x, rows, w):
    h, states = x, []
    for t in range(12):
        h = np.tanh(h @ w + rows[t] @ w)
        states.append(h * x)
    return np.array(states)[7]


def of_two_loops(x, rows, w):
    h = x
    for t in range(12):
        inner = rows[t] * 1.0
        for k in range(4):
            inner = np.tanh(inner @ w + rows[k] @ w)
        h = np.tanh(h @ w + inner)
    return h


@pytest.mark.parametrize("looked_at", [a_state, a_total, added_to_a_part, saved_states, of_two_loops])
def test_what_a_branch_looks_at_is_computed_in_the_loop_as_written(looked_at):
    def fun(x, rows, w, c):
        v = looked_at(x, rows, w)
        return np.sum(v * v) if v[0] >= c else np.sum(v)

    rng, derivative = np.random.default_rng(1), symgrad.value_and_grad(fun)
    w = rng.normal(size=(64, 64)) * 0.1
    for _ in range(12):
        x, rows = rng.normal(size=64), rng.normal(size=(12, 64))
        v = float(looked_at(x, rows, w)[0])
        for c in (v, float(np.nextafter(v, np.inf)), v - 0.1, v + 0.1):
            np.testing.assert_allclose(derivative(x, rows, w, c)[0], fun(x, rows, w, c), rtol=1e-9)


def test_bodies_are_made_cheaper_but_not_decisions():
    def loss(w, x):
        steps = 0
        while np.sum(x**4) > 1e-3:
            x = np.tanh(w @ x) ** 3
            steps += 1
        return np.sum(x), steps

    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((40, 40)) / 7, rng.standard_normal((40, 30))
    derivative = symgrad.value_and_grad(lambda w, x: loss(w, x)[0])
    counted = symgrad.value_and_grad(loss, has_aux=True)
    for scale in (1.0, 1.0, 2.0, 0.5, 3.0):
        (value, steps), _ = counted(w, scale * x)
        assert steps == loss(w, scale * x)[1]
        np.testing.assert_allclose(value, loss(w, scale * x)[0], rtol=1e-9)
        derivative(w, scale * x)
    source = str(derivative.source(w, x, fast=True))
    assert "square(" in source
    assert source.count("power(") == 3  # what the test hangs on, and what it is first asked of


def test_code_that_does_nothing_but_raise(monkeypatch):
    """Were a rule wrong, so that code raises an error: numbers stay right, and one is told, after some calls."""
    monkeypatch.setitem(ALL, REGISTRY[np.sum], lambda s, node, args, flags, aval: s.make(node.op, tuple(args), (), aval))
    fun = soft(np.max)
    derivative = symgrad.grad(fun, argnums=(0, 1, 2, 3, 4))
    args = arguments(fun)
    with symgrad.without("distribute"):
        expected = symgrad.grad(fun, argnums=(0, 1, 2, 3, 4))(*args)
    with pytest.warns(RuntimeWarning, match="traced at every call.*raises an error.*report"):
        found = [derivative(*args) for _ in range(6)]
    for a, b in zip(flatten(found)[0], 6 * expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert "dynamic mode" in derivative.explain()


def test_loop_that_reads_no_element_runs_as_often():
    """Where the total of one loop is computed at once, another one, whose sequence tells but how often it ran, still does."""

    def f(x, y):
        v = np.log(np.sum(np.exp(y), axis=-1))
        while np.sum(np.abs(v)) > 0.071:
            v = 0.6 * v
        u = v + (-0.071)
        z = u[None]
        w = v.copy()
        for i in range(4):
            z = np.tanh(z * w + i * 0.304)
        return np.sum(np.sin(w)) + np.sum(np.sin(z))

    check_grads(f, (np.array(0.5, np.float32), np.array([-1.45, 1.0, 1.25])), order=1)


def test_single_precision_beside_states_in_double():
    """The matrix is converted before the loop, once, and its cotangent is one product after it."""

    def balanced(k):
        v = np.ones(k.shape[1])
        for _ in range(20):
            u = 1 / (k @ v)
            v = 1 / (k.T @ u)
        return np.sum(u) + np.sum(v)

    k = np.random.default_rng(0).uniform(1, 2, (30, 40)).astype(np.float32)
    derivative = symgrad.grad(balanced)
    for _ in range(3):
        found = derivative(k)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, symgrad.grad(balanced)(k.astype(float)), rtol=1e-5, atol=5e-5)
    code = derivative.source(k, fast=True)
    assert code.count(".astype(np.float64)") == 1
    assert ".astype(np.float64)" in code.partition("\n    for ")[0]


@pytest.mark.parametrize(
    "step",
    [
        lambda u, h: (0.3 * u / h / h * 1e-22 + 0.5 * u / h) * h,
        lambda u, h: u / h * 1e-22 / h * 1e-22 + 0.1 * np.sin(u),
        lambda u, h: 0.9 * (u / h * (1.5 * h) / h * (0.6 * h)),
    ],
)
@pytest.mark.parametrize("argnums", [0, (0, 1)])
def test_factors_of_single_precision_meet_as_written(step, argnums):
    """``1e-22 * h`` cannot be held; ``g * 1e-22`` can, and is multiplied by ``h`` then."""

    def fun(x, y):
        h = 1e-22 * (1.5 + np.sin(y))
        u = x * h
        for _ in range(10):
            u = step(u, h)
        return np.sum(u / h)

    rng = np.random.default_rng(1)
    derivative, wanted = symgrad.grad(fun, argnums), symgrad.grad(fun, argnums, mode="dynamic")
    for _ in range(4):
        x, y = rng.normal(size=60), rng.normal(size=60)
        found = derivative(x.astype(np.float32), y.astype(np.float32))
        found, expected = (found, wanted(x, y)) if argnums else ((found,), (wanted(x, y),))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("h", [0.0, 1e-320])
def test_products_meet_as_written(h):
    """In double precision, too, a product of the factors that are known before may be out of range."""

    def fun(a, b, xs, w, h):
        for t in range(12):
            h = np.tanh(h * a[t] * b[t] + xs[t] @ w)
        return np.sum(h)

    rng = np.random.default_rng(0)
    a, b, xs = rng.normal(size=(3, 12, 64))
    a[0] = b[0] = 1e160
    args = a, b, xs, rng.normal(size=(64, 64)) * 0.1, np.full(64, h)
    derivative, dynamic = symgrad.value_and_grad(fun), symgrad.value_and_grad(fun, mode="dynamic")
    for _ in range(4):
        for found, expected in zip(derivative(*args), dynamic(*args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("opposites", ["", "a", "ab"])
def test_terms_alone_keep_their_sign_where_others_meet(opposites):
    """A minus is taken off of what is added up as multiples of one array, and off of nothing else."""
    graph, row = Graph(), Aval((3,), np.dtype(float), "array")
    g, a, b = [graph.input(name, row) for name in "gab"]
    number = graph.input("i", Aval((), np.dtype(int), "python"))

    def made(key, *args):
        node = graph.add(REGISTRY[key], args, (), row)
        node.phase = "backward"
        return node

    end = made(np.negative, made(np.cumsum, g))
    for name, one in (("a", a), ("b", b)):
        product = made(np.multiply, g, one)
        end = made(np.add, end, made(np.negative, product) if name in opposites else product)
    op = loop_of(Body(graph, [g], number, [a, b], [], [end], []), Course(count=1))
    again = loop_of(regrouped(op.body), op.course)
    assert [node.op.key for node in again.body.nodes()].count(np.multiply) == 1
    args = np.arange(3.0), [np.full(3, 2.0)], [np.full(3, 5.0)]
    np.testing.assert_array_equal(again.run(*args)[0], op.run(*args)[0])


def test_many_numbers_over_one_of_each_iteration():
    """What lowers a quotient takes one number; all iterations have several."""
    rays = np.random.default_rng(0).normal(size=(576, 3))

    def nearest(centres, radii, eye):
        best, colour = np.full(len(rays), 1e9), np.zeros(len(rays))
        for k in range(8):
            towards = rays @ (eye - centres[k])
            t = -towards - np.sqrt(np.where(towards**2 > 1, towards**2 - 1, 1.0))
            normal = (eye + t[:, None] * rays) / radii[k]
            colour = np.where((towards**2 > 1) & (t < best), normal[:, 0], colour)
        return np.mean(colour**2)

    derivative, plain = (symgrad.value_and_grad(nearest, (0, 1, 2), mode=mode) for mode in ("auto", "dynamic"))
    rng = np.random.default_rng(1)
    for _ in range(4):
        args = rng.uniform(-1, 1, (8, 3)), rng.uniform(0.2, 0.7, 8), np.array([0.0, 0.0, -4.0])
        for found, expected in zip(flatten(derivative(*args))[0], flatten(plain(*args))[0], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    assert derivative.cache_info().hits == 2


def chain(e, a, y):
    """The score of labels beside that of all labels, as for conditional random fields."""
    score, alpha = e[0, y[0]], e[0]
    for t in range(1, len(y)):
        score = score + a[y[t - 1], y[t]] + e[t, y[t]]
        s = alpha[:, None] + a
        alpha = np.log(np.sum(np.exp(s), axis=0)) + e[t]
    return np.log(np.sum(np.exp(alpha))) - score


def test_what_is_at_several_labels_is_added_after():
    rng = np.random.default_rng(0)
    derivative, dynamic = symgrad.grad(chain, (0, 1)), symgrad.grad(chain, (0, 1), mode="dynamic")
    for _ in range(4):
        e, a, y = rng.normal(size=(25, 9)), rng.normal(size=(9, 9)), rng.integers(0, 9, 25)
        for found, expected in zip(derivative(e, a, y), dynamic(e, a, y), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    inside, outside = bodies(derivative.source(e, a, y, fast=True))
    assert not any("+=" in line or "add_each" in line for line in inside)
    assert any("add_each" in line for line in outside)


def test_steps_may_lie_along_the_second_axis():
    """Of a batch of sequences, as of sequences of batches, one product is taken of all that iterations multiply."""

    def fun(w, u, xs):
        h = np.zeros((3, 20))
        for t in range(xs.shape[1]):
            h = np.tanh(xs[:, t] @ w + h @ u)
        return np.sum(h**2)

    rng = np.random.default_rng(0)
    derivative, dynamic = symgrad.grad(fun, (0, 1, 2)), symgrad.grad(fun, (0, 1, 2), mode="dynamic")
    for _ in range(4):
        args = rng.normal(size=(20, 20)) / 4, rng.normal(size=(20, 20)) / 4, rng.normal(size=(3, 12, 20))
        for found, expected in zip(derivative(*args), dynamic(*args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    inside, _ = bodies(derivative.source(*args, fast=True))
    assert sum(line.count(".dot(") for line in inside) == 2  # h @ u, and what comes back through it


PLACES = ["t", "t - 1", "11 - t", "t // 2"]
AT = [
    "E[{}, y[{}]]",
    "A[y[{}], y[{}]]",
    "A[-1, y[{}]] * h[0, y[{}]]",
    "np.sum(E[{}, Y[:, {}]])",
    "np.sum(X[np.arange(3), {}, Y[:, {}]])",
    "np.sum(A[Y[:, {}], Y[:, {}]] * h[:, 1])",
    "np.sum(E[Y[:, {}], 1:3] * h[:, 1:3]) * A[1, y[{}]]",
    "np.sum(X[:, {}] * h) - A[y[{}], 2]",
    "np.sum(A[y[{}]] * h[1]) * E[{}, 0]",
]
STEPS = ["X[:, {}] @ W", "h @ W + X[:, {}]", "h + A[Y[:, {}]]", "h + A[Y[:, {}], y[{}]][:, None]", "h @ A + E[{}]"]


def label_lines(rng):
    """The lines of a loop over time, of what is at labels in it."""
    at = lambda text: text.format(*[rng.choice(PLACES) for _ in range(text.count("{}"))])
    yield "def program(E, A, X, W, h):"
    yield "    s = 0.0"
    yield f"    for t in {rng.choice(['range(1, 12)', 'range(12)', 'range(11, 0, -1)', 'range(0, 12, 2)'])}:"
    for _ in range(rng.randint(1, 3)):
        yield f"        s {rng.choice(['+=', '-='])} {at(rng.choice(AT))}"
        yield f"        h = np.tanh({at(rng.choice(STEPS))})" if rng.random() < 0.6 else "        s = s + np.sum(h)"
    yield "    return s + np.sum(h * h)"


@given(st.integers(0, 2**40))
def test_random_labels(seed):
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    shapes = {"E": (12, 5), "A": (5, 5), "X": (3, 12, 5), "W": (5, 5), "h": (3, 5)}
    program = program_of(label_lines(rng), shapes, seed)
    program.fun.__globals__.update(y=draw.integers(0, 5, 12), Y=draw.integers(0, 5, (3, 12)))
    agrees_with_dynamic(program, scaled=True)


def test_what_is_read_at_several_places_is_read_and_added_for_all_iterations():
    source = unwrapped(compiled(observed, *(args := arguments(observed))).source(*args, fast=True))
    loops = re.findall(r"(?:^    for .*:\n(?: {8}.*\n)+)", source, re.MULTILINE)
    assert len(loops) == 2
    assert not re.search(r"take|add_each", "".join(loops))
    assert source.count("add_each(") == 2
