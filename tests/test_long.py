"""Long programs: no more memory than the backward pass needs, no recursion, and word of how far compiling is."""

import gc
import linecache
import logging
import tracemalloc

import numpy as np
import pytest
from agreement import slopes

from symgrad import compile as compile_
from symgrad import custom_vjp, grad, hvp, progress, vjp, without
from symgrad import program as program_
from symgrad.emit import printer
from symgrad.ir import Node
from symgrad.loops import survey
from symgrad.optimize import lower
from symgrad.tracing.trace import Trace
from symgrad.transform import reverse

LINES = ("h = np.tanh(w @ h)", "h = h + 0.1 * (h @ h.T)", "h = np.concatenate([h[1:], h[:1]])", "h = h * 0.5 + np.sin(h)")


def program(length):
    """A function of that many lines, which no loop can be made of."""
    chosen = np.random.default_rng(0).integers(0, len(LINES), length)
    text = "\n    ".join(["def long(w, h):", *(LINES[k] for k in chosen), "return np.sum(h * h)"]) + "\n"
    name = f"<long {length}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["long"]


def compiled(derivative, *args):
    for _ in range(3):
        result = derivative(*args)
    assert derivative.cache_info().hits
    return result


def square(n):
    return np.random.default_rng(1).standard_normal((2, n, n)) * 0.1


def peak(derivative, *args):
    tracemalloc.start()
    derivative(*args)
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size


def test_dead_arrays_are_let_go_of():
    w, h = square(60)
    derivative = grad(program(200))
    with without("buffers"):
        plain = grad(program(200))
    np.testing.assert_allclose(compiled(derivative, w, h), compiled(plain, w, h), rtol=1e-10)
    assert peak(derivative, w, h) < 210 * w.nbytes < peak(plain, w, h) / 2


def test_dead_arrays_are_let_go_of_on_both_sides_of_a_branch():
    def fun(w, h):
        t = np.tanh(w @ h)
        if np.sum(t) > 0:
            u = t @ t
            return np.sum(u * u)
        v = np.exp(t @ h)
        return np.sum(v * t)

    w, h = square(100)
    derivative = grad(fun)
    for sign in (1.0, -1.0):
        compiled(derivative, sign * w, h)
    source = derivative.source(w, h, fast=True)
    assert source.count("    del ") > 2
    with without():
        plain = grad(fun)
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(derivative(sign * w, h), plain(sign * w, h), rtol=1e-10)


def test_thousands_of_operations_compile():
    w, h = square(2)
    fun = program(1500)
    derivative = grad(fun)
    got = compiled(derivative, w, h)
    np.testing.assert_allclose(got, grad(fun, mode="dynamic")(w, h), rtol=1e-9)
    assert gc.isenabled()


def test_many_arrays_are_joined_in_steps_as_many_as_they_are(monkeypatch):
    def fun(x, n):
        parts = [x]
        for _ in range(n):
            parts.append(np.sqrt(parts[-1]) + x[:3])
        return np.sum(np.concatenate([np.where(part > 0, part, 0.0) for part in parts]) ** 2)

    counts, lookup = [], Trace.lookup

    def counted(self, node):
        counts[-1] += 1
        return lookup(self, node)

    monkeypatch.setattr(Trace, "lookup", counted)
    for n in (100, 200):
        counts.append(0)
        derivative = grad(fun)
        got = derivative(np.array([0.1, 0.5, 2.0]), n)
        np.testing.assert_allclose(got, grad(fun, mode="dynamic")(np.array([0.1, 0.5, 2.0]), n), rtol=1e-9)
    assert counts[1] < 2.5 * counts[0]


def steps_by_elements(x, n):
    """Each of its steps takes parts of what the last one made, and writes to others."""
    total = []
    for _ in range(n):
        x = x - 0.1 * np.tanh(x[0] * x + x[1]) * x[2]
        total.append(x[0] * x[2])
    return sum(total)


def test_parts_of_what_has_no_poles_take_no_masks(monkeypatch):
    monkeypatch.setattr(reverse, "Masks", None)
    x = np.array([0.1, 0.5, 0.3])
    for derivative in (grad(steps_by_elements), grad(lambda x, n: grad(steps_by_elements)(x, n)[1])):
        compiled(derivative, x, 5)
    with pytest.warns(RuntimeWarning, match="not callable"):  # the user's own mask says what is left out, also of infinities
        grad(lambda x: np.sum(np.tanh(x * x)[x > 0.2]))(x)


def test_what_a_trace_recorded_goes_with_it():
    gc.collect()
    gc.disable()
    try:
        others = [one for one in gc.get_objects() if type(one) is Node]  # of code that may be dropped meanwhile
        known = {*map(id, others)}
        derivative = grad(steps_by_elements)
        derivative(np.array([0.1, 0.5, 0.3]), 30)
        derivative(np.array([0.1, 0.5, 0.3]), 30)
        before = sum([type(one) is Node and id(one) not in known for one in gc.get_objects()])
        gc.collect()
        assert before > 0
        assert sum([type(one) is Node and id(one) not in known for one in gc.get_objects()]) > before - 20
    finally:
        gc.enable()


def test_statements_of_long_programs_are_not_printed_by_astor(monkeypatch):
    monkeypatch.setattr(printer, "_by_astor", None)
    derivative = grad(steps_by_elements)
    compiled(derivative, np.linspace(0.1, 0.5, 50), 60)
    assert "] += " in derivative.source(np.linspace(0.1, 0.5, 50), 60, fast=True)
    w, h = square(3)
    compiled(grad(program(40)), w, h)


def test_many_interpolations_are_found_in_steps_as_many_as_they_are(monkeypatch):
    def fun(x, n):
        xp, total = np.linspace(0.0, 1.0, 20), []
        for k in range(n):
            x = np.interp(x * (1 - 0.001 * (k % 7)), xp, np.sin(xp * (k % 5 + 1))) * 0.9 + 0.05
            total.append(x[k])
        return sum(total)

    counts, is_op = [], lower.is_op

    def counted(node, key):
        counts[-1] += 1
        return is_op(node, key)

    monkeypatch.setattr(lower, "is_op", counted)
    x = np.linspace(0.1, 0.9, 2000)
    for n in (15, 30):
        counts.append(0)
        derivative = grad(fun)
        np.testing.assert_allclose(compiled(derivative, x, n), grad(fun, mode="dynamic")(x, n), rtol=1e-9)
        assert derivative.source(x, n, fast=True).count("runtime.interpolate(") == n - 1
    assert counts[1] < 2.5 * counts[0]


def test_tables_are_looked_through_in_steps_as_many_as_are_filled_in(monkeypatch):
    def fun(x, n):
        table = [[x[0]] * (n + 1) for _ in range(n + 1)]
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                table[i][j] = 0.5 * (table[i - 1][j] + table[i][j - 1]) * x[i * j % 5] + np.sin(table[i - 1][j - 1])
        return table[n][n]

    counts, look = [], survey.Survey._look

    def counted(self, *args):
        counts[-1] += 1
        return look(self, *args)

    monkeypatch.setattr(survey.Survey, "_look", counted)
    x = np.linspace(0.1, 1.0, 5)
    for n in (25, 50):
        counts.append(0)
        grad(fun)(x, n)
    assert counts[1] < 4 * 1.5 * counts[0]


def test_many_branches_compile():
    def go(x, k):
        x = np.sin(x) * 1.1 if np.sum(x) > 0.1 * (k % 7) else x * 0.9 + 0.2
        return go(x, k - 1) if k > 1 else x

    def fun(x):
        return np.sum(go(x, 150) * x)

    x = np.linspace(-1.0, 2.0, 4)
    derivative = grad(fun)
    for start in (x, -x, x):
        np.testing.assert_allclose(compiled(derivative, start), grad(fun, mode="dynamic")(start), rtol=1e-12)


def test_elements_written_one_by_one():
    def fun(x):
        y = np.zeros_like(x)
        before = []
        for k in [(7 * i) % 40 for i in range(40)]:
            y[k] = np.sin(x[k]) * x[(3 * k + 1) % 40]
            if k % 2:
                y[k] += y[(5 * k) % 40] * 0.5 + y[-k]
                y[2:5] *= x[k]
            before.append(y[(k + 7) % 40] * x[0])
            z = y.copy()
            z[k] = x[k]
            before.append(z[(k + 14) % 40] + z[k] * y[k])
        return np.sum(y * y) + sum(before)

    x = np.random.default_rng(0).standard_normal(40)
    np.testing.assert_allclose(compiled(grad(fun), x), grad(fun, mode="dynamic")(x), rtol=1e-9)
    with without():
        np.testing.assert_allclose(grad(fun)(x), compiled(grad(fun), x), rtol=1e-9)


def test_sums_of_sums_in_a_loop():
    """Which two ways lead to each, so that a search of all ways would never end."""

    def fun(w, x):
        total = np.zeros_like(x)
        for _ in range(6):
            y = x = np.tanh(x @ w)
            for _ in range(3):  # which are too short for loops of their own
                for _ in range(3):
                    for _ in range(3):
                        y = y + (y - w)
            total = y + total
        return np.sum(total * total)

    w, x = square(4)
    np.testing.assert_allclose(compiled(grad(fun), w, x), grad(fun, mode="dynamic")(w, x), rtol=1e-9)


@pytest.mark.parametrize("patience", [-1.0, 1e9])
def test_progress(patience, monkeypatch, caplog):
    monkeypatch.setattr(progress, "PATIENCE", patience)
    w, h = square(3)
    with caplog.at_level(logging.INFO, logger="symgrad"):
        compiled(grad(program(5)), w, h)
    said = [record.getMessage() for record in caplog.records]
    assert bool(said) == (patience < 0)
    if said:
        assert all(line.startswith("compiling grad_long, ") for line in said)
        assert [line.split(" operations: ")[1].split(",")[0] for line in said][-3:] == ["print", "compile", "done"]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_traces_let_go_of_what_is_not_needed_any_more(mode, monkeypatch):
    monkeypatch.setattr("symgrad.compile.EARLY", float("inf"))  # no code computes their results, in memory that it keeps

    def fun(x):
        for k in range(20):
            x = np.sin(x) if k % 3 else np.cos(x) * 2.0
        return np.sum(x)

    x = np.linspace(0.0, 1.0, 100_000)
    derivative = grad(fun, mode=mode)
    gc.collect()
    gc.disable()  # nothing waits for it
    try:
        tracemalloc.start()
        derivative(x)
        held, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    finally:
        gc.enable()
    assert held < 3 * x.nbytes
    assert mode == "dynamic" or most < 40 * x.nbytes  # the values of the function, and a few of the way back


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_rules_compute_again_is_not_let_go_of(mode):
    def fun(x):
        y = x**2
        return np.sum(np.sin(x**3) * y + x**2 * np.exp(y)) + np.sum(np.cos(x) * np.sin(x))

    x = np.linspace(0.0, 1.0, 100_000)
    for derivative in (grad(fun, mode=mode), lambda x: hvp(fun, mode=mode)(x, np.ones_like(x))):
        plain = derivative(x[:5])
        np.testing.assert_allclose(derivative(x)[:5], plain)


def test_rules_that_take_derivatives_find_what_was_let_go_of():
    @custom_vjp
    def root(a):
        return np.sqrt(a)

    def backward(saved, g):
        y, a = saved
        slopes = [grad(lambda x: np.sum((x**2 - a) ** 2 * g))(y + k) for k in range(3)]
        _, pull = vjp(lambda x: x**2 * g, y)
        return (g / (2 * y) + 0.0 * (sum(slopes) + pull(g)[0] + pull(2 * g)[0]),)

    root.defvjp(lambda a: ((y := np.sqrt(a)), (y, a)), backward)
    x = np.linspace(1.0, 2.0, 100_000)
    derivative = grad(lambda x: np.sum(np.sin(root(x * x) * np.cos(x))))
    plain = grad(lambda x: np.sum(np.sin(x * np.cos(x))))
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), plain(x), rtol=1e-10, atol=1e-12)


def test_code_is_made_when_the_trace_that_asked_for_it_is_gone(monkeypatch):
    held = []

    def counted():
        return sum(type(item) is Node for item in gc.get_objects())

    def improved(given, off):
        held.append((counted() - before, len(given.graph.nodes)))
        return improve(given, off)

    improve = compile_.improve
    monkeypatch.setattr(compile_, "improve", improved)
    w, h = square(4)
    gc.collect()
    before = counted()
    derivative = grad(program(100))
    np.testing.assert_allclose(compiled(derivative, w, h), grad(program(100), mode="dynamic")(w, h), rtol=1e-9)
    ((nodes, size),) = held
    assert nodes < 1.3 * size


@pytest.mark.long
def test_statements_are_spelled_once(monkeypatch):
    spelled = []
    text = printer.text
    monkeypatch.setattr(printer, "text", lambda node: spelled.append(node) or text(node))
    w, h = square(4)
    derivative = grad(program(600))
    compiled(derivative, w, h)
    assert "    del " in derivative.source(w, h, fast=True)
    assert len(spelled) == len({*map(id, spelled)})


def test_counters_that_counters_are_made_of():
    """Each number of a loop's own is computed twice from the one before: to look through them all would take for ever."""

    def counted(x, left=200):
        while left > 0:
            part = max(min(7, left) - (left % 3 == 0), 1)
            x = x * (1.0 + 0.001 * part) ** 0.5 + np.sin(x) / left
            left -= part
        return x

    derivative = grad(counted)
    expected = grad(counted, mode="dynamic")(0.5)
    for _ in range(3):
        assert derivative(0.5) == pytest.approx(expected, rel=1e-12)


def test_captured_arrays_are_found_by_their_content():
    """Each of very many arrays was compared with all of them."""
    compared = []

    class Counted(np.ndarray):
        def tobytes(self, *args):
            compared.extend([part for part in parts if part is self])
            return super().tobytes(*args)

    parts = [np.array([float(i), 1.0]).view(Counted) for i in range(300)]
    merged = program_.Program()
    nodes = [merged._adopt_array(part) for part in parts]
    assert [merged._adopt_array(part) for part in parts] == nodes
    assert not compared
    assert [merged._adopt_array(np.array(part)) for part in parts] == nodes
    assert len(compared) == len(parts)


def test_looks_at_hundreds_of_whole_numbers():
    """Python takes no more than 100 blocks within one another."""

    def fun(x):
        total = 0.0
        for i in range(110):
            total = total + x[int(3.0 * x[i]) + i % 7] * x[i]
        return total

    x = np.random.default_rng(0).random(120)
    other = np.where(np.arange(120) == 50, 1.0 - x, x)
    derivative = grad(fun)
    for _ in range(3):
        for point in (x, other):
            np.testing.assert_allclose(derivative(point), grad(fun, mode="dynamic")(point), rtol=1e-13)
    assert derivative.cache_info().hits


@pytest.mark.parametrize("what", ["functions", "numbers", "places"])
def test_lists_of_thousands_outside_the_function(what):
    items = {
        "functions": [(np.sin, np.tanh, lambda v: 0.9 * v + 0.1)[k * k % 7 % 3] for k in range(1500)],
        "numbers": [0.001 * k for k in range(3000)],
        "places": [k % 3 for k in range(3000)],
    }[what]

    def fun(x):
        if what == "functions":
            for item in items:
                x = item(x)
            return x[0] * x[1]
        return np.sum(np.array(items)[:3] * x**2 if what == "numbers" else np.sin(x[items]))

    x = np.array([0.1, 0.5, 0.3])
    derivative = grad(fun)
    for _ in range(2):
        np.testing.assert_allclose(compiled(derivative, x), grad(fun, mode="dynamic")(x), rtol=1e-9)
        items[1] = {"functions": np.cos, "numbers": 7.0, "places": 2}[what]


def test_loops_that_fill_lists_without_a_pattern_take_time_that_grows_with_them(monkeypatch):
    """Between iterations it is noted what lists hold; no longer so where that has taken far more than the operations."""
    looked = 0

    def is_own(item):
        nonlocal looked
        looked += 1
        return before(item)

    before = survey._is_own
    monkeypatch.setattr(survey, "_is_own", is_own)
    monkeypatch.setattr(survey, "LOOKS", 1 << 12)
    monkeypatch.setattr(survey, "MORE", 1)
    rng = np.random.default_rng(1)
    kinds, places = rng.integers(0, 3, 400).tolist(), rng.integers(1, 50, 400).tolist()

    def f(x):
        made = [x]
        for kind, place in zip(kinds, places, strict=True):
            z = made[-min(place, len(made))]
            made.append(np.sin(made[-1]) + z if kind == 0 else np.cos(z) * made[-1] if kind == 1 else z / (1 + made[-1] ** 2))
        return np.sum(made[-1])

    x = np.array([0.3, 0.7])
    np.testing.assert_allclose([grad(f)(x)], slopes(f, (x,)), rtol=1e-6)
    assert looked < 20_000


def test_many_small_parts_of_one_array():
    """One is added to after the other: no rewrite goes down such a chain by calling itself."""

    def pairs(p):
        e = 0.0
        for i in range(len(p)):
            d = p[i + 1 :] - p[i]
            e += np.sum(1 / (np.sum(d * d, axis=1) + 0.1))
        return e

    derivative = grad(pairs)
    p = np.random.default_rng(0).normal(size=(350, 3))
    for _ in range(2):
        found = derivative(p)
    d = p[:, None] - p
    np.testing.assert_allclose(
        found, np.sum(-2 * d / (np.sum(d * d, axis=2) + 0.1)[..., None] ** 2, axis=1), rtol=1e-9, atol=1e-9
    )
