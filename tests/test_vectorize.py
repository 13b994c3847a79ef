"""Loops whose iterations need nothing of one another are done for all iterations at once, and are right."""

import itertools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from agreement import agrees_with_dynamic, function_of, program_of
from hypothesis import given
from hypothesis import strategies as st

from symgrad import grad, hessian, jacobian, jvp, value_and_grad, vmap, without
from symgrad.loops import iterables
from symgrad.transform import vectorize

RNG = np.random.default_rng(5)
N = 60
X, Y = RNG.normal(size=(N, 3)), RNG.normal(size=N)
PLACES = RNG.integers(0, 7, N)
PAIRS = [(int(a), int(b)) for a, b in RNG.integers(0, N, (90, 2))]
SPRINGS = [(a, b, float(k)) for (a, b), k in zip(PAIRS, RNG.uniform(1, 2, 90), strict=True)]
TABLE = RNG.integers(0, N, (90, 2))
FIRST, SECOND = np.triu_indices(14, 1)
LOOP = r"(?m)^ *for "
W = np.array([0.7, -0.4, 0.9])


def squares(w):
    total = 0.0
    for i in range(N):
        total += (X[i] @ w - Y[i]) ** 2
    return total / N


def rows_and_numbers(w):
    total = 0.0
    for x, y in zip(X, Y, strict=True):
        total = total + np.log1p(np.exp(-y * np.dot(x, w)))
    return total


def enumerated(w):
    total = 0.0
    for i, x in enumerate(X, 1):
        total -= np.tanh(x @ w) / i
    return total


def springs(w):
    p, energy = X * w, 0.0
    for i, j, k in SPRINGS:
        d = p[i] - p[j]
        energy += k * (np.sqrt(np.sum(d**2) + 1e-3) - 1) ** 2
    return energy


def forces(w):
    p = X * w
    f = np.zeros_like(p)
    for i, j in PAIRS:
        d = p[i] - p[j]
        pull = d / (1 + np.dot(d, d))
        f[i] += pull
        f[j] -= pull
    return np.sum(f**2)


def from_table(w):
    p, total = X * w, 0.0
    for i, j in TABLE:
        total += np.sum((p[i] - 2 * p[j]) ** 2)
    return total


def two_tables(w):
    p, total = X[:14] * w, 0.0
    for i, j in zip(FIRST, SECOND, strict=True):
        d = p[i] - p[j]
        total += np.exp(-np.dot(d, d))
    return total


def combined(w):
    p, total = X[:14] * w, 0.0
    for i, j in itertools.combinations(range(14), 2):
        total += np.cos(p[i] @ p[j])
    return total


def pairs(w):
    p, total = X[:14] * w, 0.0
    for a, b in itertools.combinations(p, 2):
        total += np.cos(a @ b)
    return total


def ordered_pairs(w):
    p, total = X[:7] * w, 0.0
    for k, (a, b) in enumerate(itertools.product(p, repeat=2)):
        total += k * np.exp(-np.sum((a - b) ** 2))
    return total + sum(np.sin(a @ b - c[0]) for a, b, c in itertools.permutations(p[:5], 3))


def path(w):
    p = X * w
    before, length = p[0], 0.0
    for q in p[1:]:
        length += np.linalg.norm(q - before)
        before = q
    return length + before[0]


def written(w):
    out = np.empty((N, 2))
    for i in range(N):
        out[i, 0] = X[i] @ w
        out[i, 1] = Y[i] * w[0]
    return np.sum(out[:, 0] * np.sin(out[:, 1]))


def neighbours(w):
    a, b = np.outer(X[:12, 0] * w[0], X[:12, 1] * w[1]), np.zeros((12, 12))
    for i in range(1, 11):
        for j in range(1, 11):
            b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4 * a[i, j]
    return np.sum(b * b)


def kernel(w):
    k = np.zeros((20, 20))
    for i in range(20):
        for j in range(20):
            d = (X[i] - X[j]) * w
            k[i, j] = np.exp(-0.5 * np.dot(d, d))
    return np.sum(k @ k)


def counts(w):
    sums = np.zeros(7)
    for i in range(N):
        sums[PLACES[i]] += np.exp(X[i] @ w)
    return np.sum(np.log(1 + sums))


def several(w):
    a, b, last = 0.0, 1.0, 0.0
    for i in range(N):
        t = X[i] @ w
        a += t
        a -= 0.5 * t * t
        b = b + t**3
        last = t
    return a * b + last


def outer_products(w):
    h = np.zeros((3, 3))
    for x, y in zip(X, Y, strict=True):
        h += np.outer(x * w, x * w) * y
    return np.sum(h * h)


def series(w):
    total = 0.0
    for k in range(1, N):
        total += w[0] ** 2 / (k * k) + np.cos(k * w[1]) / k
    return total


def weighted(w):
    total = 0.0
    for c in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8] * 9:
        total += c * np.sin(c * w[0])
    return total


def solved(w):
    total = 0.0
    for m in X.reshape(20, 3, 3) + 4 * np.eye(3):
        total += np.linalg.solve(m, w) @ w
    return total


def chosen(w):
    total = 0.0
    for i in range(N):
        t = X[i] @ w
        total += np.where(t > 0, t * t, -t) + max(t, 0.5) + abs(t)
    return total


def twice(w):
    mean, spread = 0.0, 0.0
    z = X @ w
    for t in z:
        mean += t
    mean /= len(z)
    for t in z:
        spread += (t - mean) ** 2
    return spread / (len(z) - 1)


def both_ways(w):
    total, z = 0.0, X @ w
    for i in range(N - 1, 0, -1):
        total += z[i] * z[i - 1] ** 2
    for i in reversed(range(N)):
        total += z[i] * i
    for i in range(N - 2):
        total += z[i] * z[i + 1] - z[-1] * z[i - 1]
    return total


def mixture(w):
    total = 0.0
    for i in range(N):
        likelihood = 0.0
        for k in range(5):
            d = X[i] - w * k
            likelihood += np.exp(-0.5 * np.dot(d, d))
        total += np.log(likelihood)
    return total


def columns(w):
    z, total = (X * w).T.copy(), 0.0
    for j in range(1, N):
        z[:, j] -= w * np.tanh(w @ z[:, j])
    for j in range(0, N, 3):
        z[1:, j] *= 2.0
    for j in reversed(range(N)):
        total += np.log1p(np.sum(z[:, j] ** 2))
    return total


def blocks(w):
    z = np.multiply.outer(X, w)
    out = np.zeros((3, 4, N + 1), like=z)
    for i in range(N):
        out[:, 1:, i + 1] += z[i] * Y[i]
    for k in range(3):
        out[k, 0] = np.sum(out[:, 1 + k, :] ** 2, axis=0)
    return np.sum(np.sin(out))


def read_again(w):
    z, norms, total = X * w, np.zeros((2, N), like=w), 0.0
    for i in range(N):
        norms[0, i] = z[i] @ z[i]
        norms[1, i] = np.sqrt(1.0 + norms[0, i])
        total += norms[1, i] * Y[i]
    return total + np.sum(norms**2)


def bounces(w):
    x, v = X @ w, np.multiply(Y, w[0])
    for _ in range(3):
        for i in range(N):
            x[i] += 0.1 * v[i]
            if x[i] > 1:
                x[i] = 2 - x[i]
                v[i] = -0.9 * v[i]
            elif x[i] < 0:
                x[i], v[i] = -x[i], 0
    return np.sum(x * v)


def swept(w):
    z = (X * w).T.copy()
    for j in range(N):
        for i in range(1, 3):
            z[i, j] -= w[i] * z[i - 1, j]
        z[:, j] /= 1.0 + z[:, j] @ z[:, j]
    return np.sum(z**3)


def normalized(w):
    z = X * w
    for row in z:
        row -= np.max(row)
        row[1:] *= row[0]
        row /= np.sum(np.exp(row))
    return np.sum(z**2)


TOGETHER = [squares, rows_and_numbers, enumerated, springs, forces, from_table, two_tables, combined, pairs,
            ordered_pairs, path, written, neighbours, kernel, counts, several, outer_products, series, weighted,
            solved, chosen, twice, both_ways, columns, blocks, read_again, bounces, swept, normalized]  # fmt: skip


@pytest.mark.parametrize("fun", [*TOGETHER, mixture])
def test_value_and_slopes(fun: Callable[..., Any]) -> None:
    derivative = value_and_grad(fun)
    for point in (W, W[::-1].copy(), W * 1.3):
        expected = value_and_grad(fun, mode="dynamic")(point)
        value, slope = derivative(point)
        assert type(value) is type(expected[0])
        np.testing.assert_allclose(value, fun(point), rtol=1e-11)
        np.testing.assert_allclose(slope, expected[1], rtol=1e-9, atol=1e-10)
    assert derivative.cache_info().hits


@pytest.mark.parametrize("fun", [*TOGETHER, mixture])
def test_other_derivatives(fun: Callable[..., Any]) -> None:
    with without("vectorize"):
        curvature, push = hessian(fun)(W), jvp(fun, (W,), (W[::-1].copy(),))
    np.testing.assert_allclose(hessian(fun)(W), curvature, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(jvp(fun, (W,), (W[::-1].copy(),)), push, rtol=1e-9)
    points = np.stack([W, W * 0.5])
    np.testing.assert_allclose(vmap(grad(fun))(points), [grad(fun)(point) for point in points], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("fun", TOGETHER)
def test_no_loop_is_left(fun: Callable[..., Any]) -> None:
    derivative = grad(fun)
    derivative(W)
    assert not re.search(LOOP, derivative.source(W))


def test_the_switch() -> None:
    with without("vectorize"):
        derivative = grad(squares)
    derivative(W)
    assert re.search(LOOP, derivative.source(W))


def test_short_lists_are_written_out() -> None:
    def horner(x):
        total = 0.0
        for c in [0.5, -1.0, 2.0, 0.25, 1.5, 3.0]:
            total = total * x + c
        return total

    derivative = grad(horner)
    assert derivative(0.3) == pytest.approx(grad(horner, mode="dynamic")(0.3))
    assert not re.search(LOOP, derivative.source(0.3))


# -- what has to run -----------------------------------------------------------------------------------------------


def recurrence(w):
    s = w[0]
    for x in X:
        s = np.tanh(s * x[0] + w[1])
    return s


def place_from_before(w):
    out, j = np.zeros(8), 0
    for i in range(N):
        out[j] += X[i] @ w
        j = i % 7
    return np.sum(out**3)


def read_on_the_way(w):
    total, seen = 0.0, 0.0
    for x in X:
        total += x @ w
        seen += total**2
    return seen


def written_twice(w):
    out = np.zeros(N + 1)
    for i in range(N):
        out[i] = X[i] @ w
        out[i + 1] += w[0]
    return np.sum(out**2)


def written_where_it_hangs(w):
    out = np.zeros(7)
    for i in range(N):
        out[PLACES[i]] = X[i] @ w
    return np.sum(out**2)


def grown(w):
    queue, total = list(range(40)), 0.0
    for k in queue:
        total += np.sin(w[0] * k)
        if len(queue) < 60:
            queue.append(len(queue))
    return total


def grown_pairs(w):
    queue, total = [(i, i + 1) for i in range(40)], 0.0
    for a, b in queue:
        total += np.sin(w[0] * a) * b
        if len(queue) < 60:
            queue.append((len(queue), 1))
    return total


def shrunk(w):
    queue, total = list(range(40)), 0.0
    for k in queue:
        total += np.sin(w[0] * k)
        queue.pop()
    return total


def changed(w):
    queue, total = [1.0] * 50, 0.0
    for k, v in enumerate(queue):
        total += np.sin(w[0] * v)
        if k + 1 < 50:
            queue[k + 1] = queue[k] * 0.9
    return total


def changed_array(w):
    steps, total = np.arange(1.0, 51.0), 0.0
    for k, v in enumerate(steps):
        total += np.sin(w[0] * v)
        steps[(k + 1) % 50] = 2.0
    return total


def zipped_and_grown(w):
    a, b, total = [1.0] * 40, [2.0] * 40, 0.0
    for u, v in zip(a, b):  # noqa: B905
        total += np.sin(w[0] * u) * v
        if len(a) < 60:
            a.append(0.5)
            b.append(0.3)
    return total


def big_numbers(w):
    total = 0.0
    for k in range(N):
        total += w[0] * (k**40 % 1000003)
    return total


@pytest.mark.parametrize(
    "fun",
    [recurrence, place_from_before, read_on_the_way, written_twice, written_where_it_hangs, grown, grown_pairs, shrunk, changed,
     changed_array, zipped_and_grown, big_numbers],
)  # fmt: skip
def test_what_has_to_run(fun: Callable[..., Any]) -> None:
    derivative = value_and_grad(fun)
    for point in (W, W * 0.5, W * 1.3):
        value, slope = derivative(point)
        np.testing.assert_allclose(value, fun(point), rtol=1e-11)
        np.testing.assert_allclose(slope, value_and_grad(fun, mode="dynamic")(point)[1], rtol=1e-9, atol=1e-12)


def test_pythons_errors_are_raised() -> None:
    def divided(x, c):
        total = 0.0
        for k in range(40):
            total += x * (c / (k - 50 + c * 0.0))
        return total

    def far(x):
        total = 0.0
        for k in range(40):
            total += x[k + 1]
        return total

    derivative = grad(divided)
    assert derivative(2.0, 1.0) == pytest.approx(grad(divided, mode="dynamic")(2.0, 1.0))

    def far_written(x):
        out = np.zeros(40)
        for k in range(40):
            out[k + 1] = x[k] * x[k]
        return np.sum(out)

    for fun in (far, far_written):
        with pytest.raises(IndexError):
            grad(fun)(np.ones(40))


def test_an_outside_list_that_changes_is_read_again() -> None:
    edges = [(i, i + 1) for i in range(30)]

    def fun(x):
        total = 0.0
        for i, j in edges:
            total += x[i] * x[j] ** 2
        return total

    derivative, x = grad(fun), np.linspace(1, 2, 40)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x))
    edges[3] = (3, 30)
    edges.append((0, 39))
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), grad(fun, mode="dynamic")(x))


def test_poles_that_are_not_chosen() -> None:
    def fun(x):
        total = 0.0
        for v in x:
            total += np.where(v > 0, np.sqrt(np.where(v > 0, v, 0.0)), 0.0)
        return total

    x = np.array([0.0, 1.0, 4.0, -1.0] * 10)
    np.testing.assert_array_equal(grad(fun)(x), grad(fun, mode="dynamic")(x))


# -- random loops --------------------------------------------------------------------------------------------------

HEADS = ["for i in range(7):", "for i in range(8, 1, -1):", "for i in range(0, 8, 2):", "for i in [3, 1, 4, 1, 5, 0, 2]:",
         "for i, j in [(0, 3), (1, 1), (2, 5), (3, 0), (0, 7), (5, 3)]:", "for i, r in enumerate(p[:8]):",
         "for i, (j, c) in enumerate(zip([2, 1, 2, 0, 5], [0.5, -0.1, 0.2, 0.9, 1.5])):",
         "for i, j in zip(range(1, 8), np.array([4, 2, 2, 0, 1, 7, 6])):"]  # fmt: skip
NUMBERS = """p[i]@w z[i]*z[i+1] np.sin(z[i])-{t} {t}*z[j] np.sum({r}*w) np.exp(-np.dot({r},{r})) z[i-1]*{t} m[i,1]+m[1,i]
    {t}/(2+i) np.max({r}) {t}*c np.tanh({t})*i before+z[i] max({t},0.1) np.where({t}>0,{t},z[j]) (i%3)*{t} m[j,i]*{t} abs({t})
    np.linalg.norm({r}+2) np.sum(m[i:i+2,0]) float(i)*{t} {t}**2 np.log(1+{t}**2) m[i]@z np.add.reduce({r}) {t}-2.5*z[-1]
    z[q[i]] m[:,i]@z np.sum(m[1:,i]) e[1,i]*{t} np.max(m[j,2:]*m[2:,i])""".split()
ROWS = """p[i]*{t} p[j]-p[i] {r}*w {r}+p[0] np.sin({r}) {r}-ahead np.cross({r},w) m[i,:3] {r}/(1+np.sum({r}**2)) np.cumsum({r})
    np.array([{t},z[i],1.0]) k@{r} np.outer({r},w)[1] {r}[::-1] np.where({r}>0,{r},w) np.stack([{r},w]).sum(axis=0) m[:3,i]*{t}
    e[:,i]+w m[1:9:3,j]-{r} np.diag(m[2:5,4:7])*m[0,i]""".split()
ENDS = ["s += {t}", "s = s - {t}", "v += {r}", "v = {r} + v", "a[i] = {t}", "a[i] += {t}", "a[j] -= {t}", "f[i] += {r}",
        "f[j] -= {r}", "f[i, 1] = {t}", "h = h + np.outer({r}, {r})", "before = {t}", "ahead = {r}", "last = {t}", "count += 1",
        "f[i, :2] += {r}[:2]", "f[q[i]] += {r}", "a[q[i]] += {t}", "f[i] = {r}", "s += {t}; s -= z[i]", "n += i", "j = q[i]",
        "j = i", "a[j] += z[i]; j = (i * 3) % 7",
        "e[:, i] = {r}", "e[:, i] += {r}", "e[1:, i] -= {r}[:2]", "e[0, i] = {t}; s += e[0, i]", "a[i] = {t}; s += a[i] * z[i]",
        "e[::-1, j] += {r}", "a[i] = {t}; a[i] *= z[i]; a[i] = np.tanh(a[i]) + a[i]",
        "f[i] += {r}; f[i, 0] = 2; f[i] -= np.sum(f[i])", "e[:, i] -= {r}; e[1:, i] *= {t}; s += e[0, i]",
        "for h0 in range(3): e[h0, i] = np.sin(e[h0, i] + {t})",
        "e[2, i] = {t}; e[1, i] = e[2, i] + 1", "f[i, [0, 2]] = {t}; f[i, [2, 0]] *= z[i]"]  # fmt: skip


TESTS = ["{t} > 0", "{t} < z[j]", "i % 2", "np.sum({r}) > 0.3", "abs({t}) < 0.7", "z[i] > -1 and {t} < 1", "i != j", "i > 2",
         "{t}*{t} > 0.5", "not np.dot({r}, w) > 0"]  # fmt: skip
SIDES = ["s += {t}", "v -= {r}", "a[i] = {t}", "a[i] += {t}", "f[j] += {r}", "f[i] = {r}", "before = {t}", "last = {t}",
         "count += 1", "x0 = {t}", "x0 = {t}; s += x0", "a[q[i]] += {t}", "s += np.log(abs({t}))", "s -= 1/{t}",
         "v = v + np.sqrt({r}**2)", "a[j] -= {t}; s += {t}", "y = {t}; s += y*y", "f[i, 1] = {t}",
         "a[i] = 2 * a[i] - {t}", "f[i] = f[i] * {t} + 1", "a[i] += 1; a[i] = a[i] * {t}",
         "f[i, 1:] -= {t}; f[i] *= 0.5", "a[i] = 0"]  # fmt: skip


def sides(rng: random.Random, indent: str, numbers: list[str], rows: list[str]) -> Iterator[str]:
    """The lines of an ``if`` in a loop."""
    yield f"{indent}if {rng.choice(TESTS).format(t=rng.choice(numbers), r=rng.choice(rows))}:"
    for side in range(2):
        for _ in range(rng.randint(1, 2)):
            if rng.random() < 0.15 and len(indent) < 16:
                yield from sides(rng, indent + "    ", numbers, rows)
            else:
                yield f"{indent}    " + rng.choice(SIDES).format(t=rng.choice(numbers), r=rng.choice(rows))
        if rng.random() < 0.15:
            yield f"{indent}    continue"
        if side or rng.random() < 0.4:
            return
        yield f"{indent}else:"


def lines(rng: random.Random, forks: bool = False) -> Iterator[str]:
    """The lines of a loop that may be done all at once, or not; with ``forks``, it has ``if``s."""
    yield "def program(p, z, w, m, k):"
    yield "    s, before, last, count, n, c, j = 0.0, z[0], z[1], 0, 0, 0.7, 2"
    yield "    v, ahead, r, a, f, h = np.zeros(3), p[1], p[2], np.zeros(10), np.zeros((10, 3)), np.eye(3)"
    yield "    e = np.zeros((3, 10), like=p)"
    yield "    q = [3, 0, 3, 1, 2, 2, 7, 5, 6, 4]"
    for _ in range(rng.randint(1, 2)):
        yield f"    {rng.choice(HEADS)}"
        numbers, rows = ["z[i]", "w[0]"], ["p[i]", "p[j]"]
        for at in range(rng.randint(1, 4)):
            of, new = (numbers, NUMBERS) if rng.random() < 0.6 else (rows, ROWS)
            yield f"        x{at} = " + rng.choice(new).format(t=rng.choice(numbers), r=rng.choice(rows))
            of.append(f"x{at}")
        for at in range(rng.randint(1, 3)):
            if forks and (at == 0 or rng.random() < 0.3):
                yield from sides(rng, "        ", numbers, rows)
            else:
                yield "        " + rng.choice(ENDS).format(t=rng.choice(numbers), r=rng.choice(rows))
    yield "    total = s + np.sum(v**2) + np.sum(np.sin(a)) + np.sum(f * np.cos(f)) + h[0, 1] * h[2, 2] + np.sum(e * np.sin(e))"
    yield "    return total + before * last + ahead @ v + count * z[3] + n * w[1]"


SPECS = {"p": (10, 3), "z": (10,), "w": (3,), "m": (10, 10), "k": (3, 3)}


@given(st.integers(0, 2**40))
def test_random_loops(seed: int) -> None:
    program = program_of(lines(random.Random(seed)), SPECS, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectorize, "WORTH", 0)
        patch.setattr(iterables, "FEWEST", 4)
        agrees_with_dynamic(program)


def test_long_arrays_that_iterations_write_to_count_once():
    """Not once for each iteration, which would be more than fits into memory."""

    def deposited(x):
        z = np.zeros(len(x) + 1)
        for i in range(len(x)):
            if x[i] > 0:
                z[i] += x[i] ** 2
        return np.sum(z**2)

    x = np.random.default_rng(0).normal(size=3000)
    derivative = value_and_grad(deposited)
    np.testing.assert_allclose(derivative(x)[1], np.where(x > 0, 4 * x**3, 0), rtol=1e-12)
    assert "for " not in derivative.source(x).split("z = np.zeros")[-1]


@pytest.mark.parametrize("n", [10, 16, 29])
def test_short_loops_are_done_at_once_for_derivatives_in_all_directions(n: int) -> None:
    """Where each of its numbers stands for a row."""

    def valley(x: Any) -> Any:
        total = 0.0
        for i in range(len(x) - 1):
            total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
        return total

    second, first = hessian(valley), value_and_grad(valley)
    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=n)
        middle = np.zeros(n)
        middle[:-1] = 2.0 + 1200.0 * x[:-1] ** 2 - 400.0 * x[1:]
        middle[1:] += 200.0
        beside = -400.0 * x[:-1]
        np.testing.assert_allclose(
            second(x), np.diag(middle) + np.diag(beside, 1) + np.diag(beside, -1), rtol=1e-11, atol=1e-11
        )
        first(x)
    assert re.search(LOOP, second.source(x)) is None
    assert re.search(LOOP, first.source(x)) is not None


SMALL = ["t = t + n", "t = t - n", "t = t + n * x[0]", "t = t + a[0]", "t = t - a[0] + x[i % 2]", "t = t + a[i]", "t += a[i]",
         "t = t + n + a[i]",
         "z[0] += n", "z[1] -= n", "z[i % 2] += a[i]", "z[i % 2] -= a[0]", "z += b[i]", "z = z - b[i]"]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "f2", "f4", "?"])
@pytest.mark.parametrize("line", SMALL)
def test_what_is_added_is_added_in_the_totals_precision(line, dtype, tmp_path):
    """Small numbers of NumPy's, and those of lower precision, to a total that they do not fit into."""
    if dtype == "?" and "-=" in line:
        return  # which NumPy refuses
    text = "def fun(x, a, b, n):\n    t, z = x[1] * 1.0, np.zeros(2)\n    for i in range(40):\n        "
    text += f"{line}\n    return np.sum(t * x) + z @ x\n"
    fun = function_of(text, tmp_path / "added.py")
    rng = np.random.default_rng(0)
    a = rng.uniform(50, 120, 40).astype(dtype)
    args = np.array([1.5, 2.0]), a, np.stack([a, a[::-1]], 1), a[3]
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for _ in range(4):
        value, slope = derivative(*args)
        np.testing.assert_allclose(value, fun(*args), rtol=1e-12)
        np.testing.assert_allclose(slope, plain(*args)[1], rtol=1e-12)


def differences(x, y):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] - y[i]
    return total


def differences_of_rows(x, y):
    total = np.zeros((2, 2))
    for i in range(len(x)):
        total[1] += x[i]
        total[0] += 1.0
        total[1] -= y[i]
    return total[1, 0] + total[0, 0] - len(x)


@pytest.mark.parametrize("fun", [differences, differences_of_rows])
def test_what_one_iteration_adds_may_cancel(fun):
    y = np.floor(np.random.default_rng(0).uniform(1, 2, 100) * 1e15)
    derivative = value_and_grad(fun)
    for scale in (1.0, 1.0, 1e292):  # which is exact, and would overflow
        value, slope = derivative((y + 1.0) * scale, y * scale)
        assert value == fun((y + 1.0) * scale, y * scale)
        np.testing.assert_array_equal(slope, np.ones(100))
    assert not re.search(LOOP, derivative.source(y, y, fast=True))


def pairs_of_places(x):
    f = np.zeros(80)
    for i in range(40):
        f[2 * i] = x[i] - x[i + 1] ** 2
        f[2 * i + 1] = np.sin(x[i])
    return f


def halves(x):
    f = np.zeros((2, 80))
    for i in range(40):
        f[1, i] = x[i] * x[i + 1]
        f[1, 40 + i] += np.cos(x[i])
        f[1, 40 + i] *= x[i]
    return f[1]


def overlapping(x):  # what an iteration has written, the next one writes over
    f = np.zeros(80)
    for i in range(40):
        f[i] = x[i] ** 2
        f[i + 1] = np.sin(x[i])
    return f


def crossing(x):  # from both ends, over the middle
    f = np.zeros(80)
    for i in range(60):
        f[i] = x[i % 40]
        f[79 - i] = x[i % 40] ** 2
    return f


@pytest.mark.parametrize("fun", [pairs_of_places, halves, overlapping, crossing])
def test_writes_at_several_places(fun):
    x = np.random.default_rng(0).normal(size=41)
    derivative, plain = grad(lambda x: np.sum(fun(x) ** 2 * np.arange(80))), jacobian(fun, mode="dynamic")
    slopes = jacobian(fun)
    for _ in range(3):
        found, rows = derivative(x), slopes(x)
    np.testing.assert_allclose(rows, plain(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found, 2 * (fun(x) * np.arange(80)) @ plain(x), rtol=1e-11)
    loops = "for i in" in slopes.source(x)
    assert loops == (fun is not pairs_of_places)


def framed(x):
    """A column and a row at one place, which meet in a corner."""
    t = np.zeros((40, 40))
    for i in range(40):
        t[i, 0] = x[i]
        t[39, i] = x[39 - i] ** 2
    return t


def test_writes_along_several_axes():
    x, weights = np.random.default_rng(1).normal(size=40), np.arange(1600.0).reshape(40, 40)
    fun = lambda x: np.sum(framed(x) ** 2 * weights)
    derivative, plain = value_and_grad(fun), value_and_grad(fun, mode="dynamic")(x)
    for _ in range(3):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        np.testing.assert_allclose(slope, plain[1], rtol=1e-11)


def last_of_each(x):
    best = np.zeros(3)
    for row in x:
        best = np.where(row > 0.5, row * 2, best)
    return best


def last_roots(x):
    best = np.ones((2, 3))
    for row in x:
        best = np.where(row > 0.0, np.sqrt(np.abs(row[1])), best)
    return best


@pytest.mark.parametrize("fun", [last_of_each, last_roots])
def test_each_element_is_put_by_the_last_iteration_that_puts_it(fun):
    rng = np.random.default_rng(2)
    derivative, plain = (value_and_grad(lambda x: np.sum(fun(x) ** 3), mode=mode) for mode in ("auto", "dynamic"))
    for _ in range(3):
        x = np.maximum(rng.normal(size=(40, 3)), 0.0)
        value, slope = derivative(x)
        assert value == pytest.approx(np.sum(fun(x) ** 3), rel=1e-14)
        np.testing.assert_allclose(slope, plain(x)[1], rtol=1e-12)
    assert not re.search(LOOP, derivative.source(x, fast=True))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_labels_that_no_small_int_is(dtype):
    labels, w = np.arange(-6, 134).astype(dtype), np.linspace(1.0, 2.0, 300)

    def counted(w):
        total = 0.0
        for k in range(len(w)):
            total = total + w[k] * np.sum(labels == k) - w[k] ** 2 * np.sum(labels < k - 3)
        return total

    slope = value_and_grad(counted)
    for _ in range(3):
        value, found = slope(w)
        assert value == pytest.approx(counted(w), rel=1e-12)
    np.testing.assert_allclose(found, grad(counted, mode="dynamic")(w), rtol=1e-12)


def covariances(x, scale):
    k = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(i + 1):
            d = x[i] - x[j]
            k[i, j] = k[j, i] = np.exp(-(d @ d) / scale**2)
    return k


def gaussian_process(x, scale):
    k = covariances(x, scale) + 0.1 * np.eye(len(x))
    return np.sum(np.log(np.diag(np.linalg.cholesky(k)))) + np.sum(np.linalg.solve(k, x[:, 0]))


def distances_counted(x, scale):
    d, k = np.zeros(len(x) * (len(x) - 1) // 2), 0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d[k] = np.sqrt(np.sum((x[i] - x[j]) ** 2)) * scale
            k += 1
    return np.sum(np.sin(d) * np.arange(len(d))) + k * scale


def two_at_a_time(x, scale):
    f, k = np.zeros(2 * len(x)), 0
    for i in range(len(x)):
        f[k] = x[i, 0] * scale
        k += 1
        f[k] = x[i, 1] ** 2
        k += 1
    return np.sum(np.sin(f) * np.arange(len(f))) + k


def later_ones_win(x, scale):
    """Places that are met twice."""
    f = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(i, len(x)):
            f[(i + j) % len(x)] = x[i, 0] * x[j, 1] * scale
    return np.sum(np.sin(f) * np.arange(len(f)))


def both_sides(x, scale):
    k = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            k[i, j] = x[i, 0] * scale
            k[j, i] = x[j, 1] + x[i, 2]
    return np.sum(np.sin(k) * np.arange(k.size).reshape(k.shape))


def labelled(x, scale):
    y = np.zeros(5)
    for i in range(len(x)):
        y[int(LABELS[i])] += x[i, 0] * x[int(PLACES_OF_ALL[i]), 1] * scale
    return np.sum(y**3)


LABELS = np.arange(60) ** 2 % 5
PLACES_OF_ALL = np.arange(60)[::-1].copy() // 4 % 5


@pytest.mark.parametrize(
    ("fun", "longest"),
    [
        (gaussian_process, 60),
        (distances_counted, 40),
        (two_at_a_time, None),
        (labelled, 30),
        (later_ones_win, None),
        (both_sides, None),
    ],
)
def test_writes_at_known_places(fun, longest):
    """All at once, where no iteration meets what another one has written."""
    rng, derivative = np.random.default_rng(5), value_and_grad(fun, (0, 1))
    for n in (24, 24, 24, 5):
        args = rng.normal(size=(n, 3)), 0.7
        value, slopes = derivative(*args)
        expected, others = value_and_grad(fun, (0, 1), mode="dynamic")(*args)
        assert value == pytest.approx(expected, rel=1e-11)
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    args = rng.normal(size=(24, 3)), 0.7
    source = str(derivative.source(*args, fast=True))
    assert longest is None or ("\n    for " not in source and source.count("\n") < longest)


def test_ifs_that_are_masks_now_look_at_sums_as_numpy_rounds_them():
    def fun(limits, x, u, w, t):
        t = np.copy(t)
        total = 0.0
        for i in range(1, len(x) - 1):
            total = total + np.sum(u * w.T @ u)
            t[i + 1] *= 0.5
            if np.sum(u) > limits[i]:
                total = total + 10.0 * x[i]
        return total + np.sum(u) + np.sum(t)

    rng, derivative = np.random.default_rng(0), value_and_grad(fun, (1, 2, 3, 4))
    for k in range(30):
        args = [rng.normal(size=shape) for shape in (13, 8, (8, 8), 13)]
        limits = np.full(13, np.sum(args[1]))
        if k % 3 == 1:
            limits = np.nextafter(limits, -np.inf)
            limits[:6] = np.inf
        limits += np.inf if k % 3 == 2 else 0.0
        assert derivative(limits, *args)[0] == pytest.approx(fun(limits, *args), rel=1e-12)


def test_numbers_that_two_indices_tell():
    """The nodes of a tree of 40 steps, each list shorter than the last: one call for all in a step, as far as they are many."""

    def fun(p):
        up, strike = np.exp(0.1 * p[0]), 100.0
        down = 1 / up
        values = [max(strike - p[1] * up**j * down ** (40 - j), 0.0) for j in range(41)]
        for step in range(39, -1, -1):
            new = []
            for j in range(step + 1):
                kept = 0.999 * (0.48 * values[j + 1] + 0.52 * values[j])
                new.append(max(kept, strike - p[1] * up**j * down ** (step - j)))
            values = new
        return values[0]

    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for p in ([0.3, 100.0], [0.25, 98.0], [0.4, 104.0], [0.2, 101.0]):
        (value, slope), (_, other) = derivative(np.array(p)), dynamic(np.array(p))
        assert value == pytest.approx(fun(np.array(p)), rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-9)
    assert "for i in range" not in derivative.source(np.array(p), fast=True)


def test_ints_of_two_indices_are_pythons():
    def fun(x):
        total, far = 0.0, 2**62
        for i in range(far, far + 40):
            row = []
            for j in range(40):
                row.append(x[0] * float((i + i - j) // 2**60) + (i - far - j) * x[1])
            total = total * 0.5 + sum(row)
        return total

    x = np.array([0.3, 0.5])
    derivative = value_and_grad(fun)
    for _ in range(3):
        assert derivative(x)[0] == pytest.approx(fun(x), rel=1e-12)
