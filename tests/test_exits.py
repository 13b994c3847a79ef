"""Loops that are left in several places, by ``break`` or ``return``: they are code, right whichever way out is taken."""

import ast
import copy
import random
from collections.abc import Iterator

import numpy as np
import pytest
from agreement import program_of, right_at
from hypothesis import assume, given
from hypothesis import strategies as st

from symgrad import value_and_grad
from symgrad.source.exits import at_the_end


def secant(x):
    a, b = 0.5, 3.0 + x[0] ** 2
    before = a**3 - b
    for _ in range(60):
        now = b**3 - 2.0 - x[1] ** 2
        if abs(now) < 1e-10:
            return b
        if abs(now - before) < 1e-14:
            break
        a, b, before = b, b - now * (b - a) / (now - before), now
    return 2.0 * b


def escape(x):
    """What the loop has counted is read behind it, and in one of the ways out."""
    p, q, n = 0.1, 0.0, 0
    while True:
        p, q = p * p - q * q + 0.8 * x[0], 2 * p * q + 0.8 * x[1]
        n += 1
        if p * p + q * q > 4:
            break
        if n >= 20:
            return p * 0.1 + n
    return (p * p + q * q) / (n + 1)


def first_of_its_kind(x):
    """At the first iteration, too, or at none; each way out has locals of its own."""
    total = 0.0
    for i, v in enumerate(x):
        if v > 1.2:
            large = v**2
            scale = 1.0 + i
            return large * scale
        if v < -1.2:
            small = v - total
            break
        total = total + v
    else:
        return total * 3.0
    return small * total


def of_few(x):
    """Of as many iterations as a number says, which may be none."""
    total, i = 1.0, 0
    while i < 4 * x[0]:
        if total > 3:
            return total
        if total < 0.2:
            total = -total
            break
        total = total * (1.0 + 0.6 * x[1])
        i += 1
    return total + x[1]


def with_a_bracket(x):
    low, high, y, steps = 0.0, 8.0, 4.0, 0
    while steps < 80:
        error = y * y * np.exp(0.1 * y) - 1.0 - x[0] ** 2
        if abs(error) < 1e-11:
            return y + 0.01 * x[1]
        if error > 0:
            high = y
        else:
            low = y
        new = y - error / ((2 * y + 0.1 * y * y) * np.exp(0.1 * y))
        if not low < new < high:
            new = 0.5 * (low + high)
        if high - low < 1e-13:
            break
        y = new
        steps += 1
    return -y


def line_search(x):
    """Loops in a loop: the inner one ends the outer one, and the function."""
    y = x[:3]
    for _ in range(12):
        slope = 4 * y**3 + y
        size = slope @ slope
        if size < 1e-5:
            return np.sum(y**4) + size
        step = 1.0
        for _ in range(8):
            new = y - step * slope
            if np.sum(new**4) + 0.5 * (new @ new) < np.sum(y**4) + 0.5 * (y @ y) - 1e-4 * step * size:
                break
            step *= 0.4
        else:
            return size
        y = new
    return y @ y


def in_both(x):
    """A ``return`` of the inner loop, one of the outer one, and a ``continue`` beside them."""
    total = 0.1
    for i in range(6):
        if x[i] < -1.5:
            continue
        for j in range(4):
            total = total + x[i] * x[j] * 0.3
            if total > 2.0:
                return total * x[0]
            if total < -1.0:
                total = -total
                break
        if total > 1.5:
            return total - i
    return total


def restarts(x):
    rate, tries = 1.0 + abs(x[0]), 0
    y = 1.0
    while tries < 3:
        done = False
        for _ in range(15):
            new = np.cos(rate * y)
            if abs(new - y) < 1e-3:
                done = True
                break
            if abs(new) < 1e-3:
                return y * 10.0
            y = new
        if done:
            return y
        rate, tries = rate * 0.8, tries + 1
    return y * rate


def what_is_left(x):
    """A local that one way out assigns, and the other does not."""
    found, y = x[0], 1.0
    for v in x:
        y = y * (1.0 + 0.3 * v)
        if y > 2:
            found = y
            break
        if y < 0.5:
            y = v
            break
    return found * y


def told_apart(x):
    """Which way out it was is told by a text, and by None."""
    why, best, y = "end", None, 0.5
    for v in x:
        y = y + 0.4 * v
        if y > 1.5:
            why = "high"
            best = y * 2
            break
        if y < -0.5:
            why = "low"
            break
    if best is None:
        return y if why == "low" else y * x[0]
    return best + x[1]


def solved(x):
    """Of a function that has such a loop, called several times."""

    def root(c):
        y = 1.0 + c
        for n in range(50):
            error = y * y - c
            if abs(error) < 1e-10:
                return y, n
            if y < 0:
                return -y, -n
            y = 0.5 * (y + c / y)
        return y, 50

    total = 0.0
    for v in x[:4]:
        y, n = root(1.0 + v * v)
        total += y * (n + 1)
    return total


def told_when_left(x, log):
    try:
        yield from x
    finally:
        log.append(1.0)


def read_before_it_is_left(x):
    def told(log):
        try:
            yield from x
        finally:
            log.append(1.0)

    log, total = [], 0.0
    for v in told_when_left(x, log):
        total = total + v
        if v > 0.5:
            total = total + 10.0 * len(log) * v
            break
        if v < -1.0:
            total = total * 3.0
            break
    for i, v in enumerate(told(log)):
        total = total + v * i
        if v > 0.5:
            total = total + 10.0 * len(log) * v
            break
        if v < -1.0:
            total = total * len(log)
            break
    return total


CODE = [secant, escape, with_a_bracket, restarts, what_is_left, told_apart, solved]


@pytest.mark.parametrize("fun", [*CODE, first_of_its_kind, of_few, line_search, in_both, read_before_it_is_left])
def test_loops_that_are_left_in_several_places(fun):
    derivative = value_and_grad(fun)
    rng = np.random.default_rng(3)
    for _ in range(40):
        derivative(rng.normal(size=8))
    hits = derivative.cache_info().hits
    for _ in range(40):
        right_at(derivative, fun, rng.normal(size=8), (1e-12, 1e-12), (1e-9, 1e-11))
    assert fun not in CODE or derivative.cache_info().hits >= hits + 37


CONDITIONS = ["x[k % 7] > 0.3", "y > 2", "k % 3 == 1", "y < -1", "x[(k + 1) % 7] < -0.5", "z > y"]
STATEMENTS = ["y += x[k % 7]", "z = y * 0.5", "y = y - z", "log.append(round(y, 6))", "z += 1", "w = z + y"]
ENDS = ["break", "continue", "return y", "return z, y", "return", "break", "raise ValueError(y)"]


class _Text:
    """Random functions with loops that are left anywhere."""

    def __init__(self, seed: int) -> None:
        self.rng, self.left = random.Random(seed), 14

    def function(self) -> str:
        body = [
            "y, z, k, w = 0.0, 1.0, 0, 0",
            *self.loop(0, False),
            *self.block(0, False),
            *self.loop(0, False),
            "return y, z, w, k",
        ]
        return "\n".join(["def fun(x, log):", *_below(body)])

    def block(self, depth: int, looping: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            self.left -= 1
            kind = self.rng.random() if self.left > 0 and depth < 5 else 0
            if kind < 0.45:
                lines.append(self.rng.choice(STATEMENTS))
            elif kind < 0.75:
                lines += [f"if {self.rng.choice(CONDITIONS)}:", *_below(self.block(depth + 1, looping))]
                lines += ["else:", *_below(self.block(depth + 1, looping))] if self.rng.random() < 0.4 else []
            elif kind < 0.9:
                lines += self.loop(depth, looping)
            else:
                lines += ["try:", *_below(self.block(depth + 1, looping)), "except KeyError: pass"]
        return [*lines, self.rng.choice(ENDS)] if looping and depth and self.rng.random() < 0.6 else lines

    def loop(self, depth: int, looping: bool) -> list[str]:
        test = f"while {self.rng.choice(CONDITIONS)} and k < 40:"
        head = self.rng.choice([f"for i{depth} in range({self.rng.randint(0, 5)}):", test, "while True:"])
        body = ["k += 1", *(["if k > 30: break"] if head == "while True:" else []), *self.block(depth + 1, True)]
        other = self.rng.random() < 0.3 and head != "while True:"
        return [head, *_below(body), *(["else:", *_below(self.block(depth + 1, looping))] if other else [])]


def _below(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _results(tree: ast.Module) -> list[object]:
    names: dict[str, object] = {}
    exec(compile(tree, "<random>", "exec"), names)
    results: list[object] = []
    for seed in range(5):
        rng, log = random.Random(seed), []
        try:
            results.append(names["fun"]([rng.uniform(-1, 1) for _ in range(7)], log))
        except Exception as error:
            results.append((type(error), error.args))
        results.append(log)
    return results


def test_loops_with_one_end_do_what_those_did_that_were_left_anywhere():
    changed = 0
    for seed in range(400):
        tree = ast.parse(_Text(seed).function())
        other = copy.deepcopy(tree)
        at_the_end(other.body[0], {})
        assert _results(other) == _results(tree), ast.unparse(tree)
        changed += ast.dump(other) != ast.dump(tree)
    assert changed > 300


WAYS_OUT = {  # what an iteration computes before the loop may end, and what is made of it then
    "the index": ("for t in range(len(x)):", [], "s = s - x[t]"),
    "the index from the second on": ("for t in range(1, len(x)):", [], "s = s - x[t] * t"),
    "the index backwards": ("for t in range(len(x) - 1, -1, -1):", [], "s = s - x[t] * t"),
    "the item": ("for t, v in enumerate(x):", [], "s = s - v * t"),
    "a number": ("for t in range(len(x)):", ["d = x[t] * 2"], "s = s - d"),
    "of the index": ("for t in range(len(x)):", ["u = t * 0.1"], "s = s - x[t] * u"),
    "a function": ("for t in range(len(x)):", ["w = np.sin(x[t])"], "s = s * w - t * x[t]"),
    "two": ("for t in range(len(x)):", ["w = np.sin(x[t])", "d = w * t"], "s = d - w"),
    "a row": ("for t in range(len(x)):", ["r = np.array([x[t], s])"], "s = r @ r"),
}


@pytest.mark.parametrize("end", ["break", "return 3.0 * s"])
@pytest.mark.parametrize("name", WAYS_OUT)
def test_what_is_computed_before_the_way_out_is_read_there(tmp_path, name, end):
    """Even if no other iteration reads it, and the loop ends in its first iteration, or in its second."""
    over, before, last = WAYS_OUT[name]
    body = [*before, "if x[t] > 0.5:", f"    {last}", f"    {end}", "s = s + x[t]"]
    lines = [
        "import numpy as np",
        "def fun(x):",
        "    s = 0.0",
        f"    {over}",
        *["        " + line for line in body],
        "    return s",
    ]
    path = tmp_path / "ways.py"
    path.write_text("\n".join(lines))
    space: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    fun = space["fun"]
    for first in ((3, 3, 5), (7, 2), (19, 4), (12,)):  # the calls that code is made of
        derivative = value_and_grad(fun)
        for k in (*first, 2, 1, 0, 1, 18, 19, None, 0, 1, 2):
            x = 0.1 + 0.01 * np.arange(20.0)
            if k is not None:
                x[k] = 0.9
            right_at(derivative, fun, x, (1e-12, 1e-12), (1e-12, 1e-12))


OVER = [
    "for t in range(n):",
    "for t in range(1, n):",
    "for t in range(n - 1, -1, -1):",
    "for t, v in enumerate(x):",
    "while t < n - 1:",
]
MADE_OF = ["{a} + {b}", "{a} * {b}", "0.5 * np.sin({a})", "{a} - 0.3 * {b}", "np.tanh({a} + {b})", "0.7 * {a} + 0.1 * t"]


def lines(rng: random.Random) -> Iterator[str]:
    """The lines of a loop that is left where an element is large: what is computed before is read there, or later, or not; or
    in the next iteration of a loop around it."""
    over, names, around = rng.choice(OVER), ["s", "u", "x[t]"], rng.random() < 0.4
    deep = "    " * around

    def made() -> str:
        return rng.choice(MADE_OF).format(a=rng.choice(names), b=rng.choice(names))

    def changed(indent: str, times: int) -> Iterator[str]:
        for _ in range(times):
            yield f"{deep}{indent}{rng.choice('su')} = {made()}"

    yield "def program(x):"
    yield "    n, s, u, t = len(x), 0.3, 0.1, -1"
    if around:
        yield "    for r in range(3):"
        yield "        t = -1"
    yield f"{deep}    {over}"
    if over.startswith("while"):
        yield f"{deep}        t += 1"
    names += ["v"] if "v" in over else []
    for k in range(rng.randint(0, 3)):
        yield f"{deep}        d{k} = {made()}"
        names.append(f"d{k}")
    yield from changed("        ", rng.randint(0, 2))
    yield f"{deep}        if x[t] > 0.5:"
    yield from changed("            ", rng.randint(0, 2))
    yield f"{deep}            {rng.choice(['break', f'return s + {made()}'])}"
    yield from changed("        ", rng.randint(1, 3))
    yield f"    return {rng.choice(['s', 's + 2.0 * u', 's * u', 's + 0.1 * t', 's - x[t]'])}"


@given(st.integers(0, 2**40))
def test_random_loops_that_are_left_early(seed: int) -> None:
    rng = random.Random(seed)
    program = program_of(lines(rng), {"x": (9,)}, seed)
    derivative = value_and_grad(program.fun)
    for k in (*rng.choices(range(9), k=4), *range(9), None, 0, 1):
        x = np.array([rng.uniform(-0.3, 0.3) for _ in range(9)])
        if k is not None:
            x[k] = 0.9
        with np.errstate(over="raise", invalid="raise"):  # what grows without end is infinite in the function, too
            try:
                assume(abs(program.fun(x)) < 1e50)
            except FloatingPointError:
                assume(False)
        right_at(derivative, program.fun, x, (1e-10, 1e-10), (1e-9, 1e-9))


def test_what_an_iteration_has_come_to_is_read_in_the_next_run_of_the_loop():
    """By nothing else: the test of the loop comes between."""

    def fun(x):
        s, u, w = 0.3, 0.1, 0.0
        for _ in range(4):
            for v in x:
                d = 0.7 * u
                u = 0.7 * v
                if v > 0.5:
                    break
                u = s * v
                s = np.sin(d) * 0.5
            w = w + s * 0.3
        return w + s

    derivative = value_and_grad(fun)
    for k in (1, 8, 3, 19, *range(8), None, 0, 1, 2, 18, 19, 1, 0):
        x = 0.1 + 0.01 * np.arange(20.0)
        if k is not None:
            x[k] = 0.9
        right_at(derivative, fun, x, (1e-12, 1e-12), (1e-12, 1e-12))


def test_what_the_rest_of_an_iteration_reads_goes_round():
    """Even if it goes from one rest to the next alone: that of the last iteration is run behind the loop."""

    def fun(x):
        s, u = 0.3, 0.1
        for v in x:
            d = np.sin(v)
            s = 0.7 * d
            if v > 0.5:
                return 2.0 * s
            s = s - 0.9 * u
            u = s - 0.3 * d
        return s

    derivative = value_and_grad(fun)
    for k in (3, None, None, 5, *range(8), None, 0, 1, 7):
        x = 0.1 + 0.04 * np.arange(8.0)
        if k is not None:
            x[k] = 0.9
        right_at(derivative, fun, x, (1e-12, 1e-12), (1e-12, 1e-12))


def of_parts(x):
    s = 0.0
    for i in range(0, 40, 8):
        for j in range(i, i + 8):
            s += x[j] ** 2
            if x[j] > 0.7:
                break
        else:
            s *= 1.5
        s += 0.1 * j
    return s


def of_products(x):
    s = 0.0
    for i in range(5):
        for j in range(8 * i, 8 * i + 8):
            if x[j] > 0.7:
                break
            s += np.sin(x[j]) * j
    return s


def ends_of_other_kinds(x):
    """What is no sum of counters may be no whole number, and what is assigned in between another one."""
    s, k = 0.0, 3
    for i in range(5):
        k = k + i % 2
        for j in range(k, k + 3):
            s += x[j] * i
            if x[j] > 0.7:
                break
    return s


@pytest.mark.parametrize("fun", [of_parts, of_products, ends_of_other_kinds])
def test_ranges_that_move_with_a_loop_are_left(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    derivative.cache_clear()
    for _ in range(24):
        right_at(derivative, fun, rng.uniform(-1, 1, 40), (1e-12, 0), (1e-9, 1e-12))
    assert fun is ends_of_other_kinds or derivative.cache_info().misses <= 8


def test_ends_that_are_no_whole_numbers_raise():
    def fun(x):
        for i in range(3):
            h = 0.5 * i
            for j in range(h, h + 2):
                if x[j] > 0:
                    break
        return x[0]

    with pytest.raises(TypeError, match="float"):
        value_and_grad(fun)(np.ones(5))


def from_an_argument(x, i):
    s = 0.0
    for _ in range(3):
        for j in range(i, i + 3):
            if x[j] > 5.5:
                break
            s = s + x[j] * (float(j) ** -1 if type(j) is int else 0.0)
    for i in range(3):
        s = s + i
    return s


def test_ranges_from_an_argument_are_of_pythons_numbers():
    x, start = np.arange(1.0, 6.0), np.int64(1)
    assert value_and_grad(from_an_argument)(x, start)[0] == from_an_argument(x, start) > 3


def with_another_list(x):
    some, other = [], [1.0]
    for _ in range(40):
        for j in range(4):
            if x[j] > 0.5:
                break
            some.append(x[j])
    return sum(some) + other[0]


def test_lists_that_an_inner_loop_does_not_name():
    derivative, rng = value_and_grad(with_another_list), np.random.default_rng(0)
    for _ in range(5):
        right_at(derivative, with_another_list, rng.uniform(-1, 1, 40), (1e-12, 0), (1e-9, 1e-12))


def first_above(x):
    found, there, s = 0.0, False, 0.0
    for i in range(80):
        s = s + x[i]
        if s > 2 and not there:
            found, there = s * i, True
        if s > 5:
            break
    return found


def test_a_long_run_that_never_decides_otherwise_knows_what_others_did():
    derivative, rng = value_and_grad(first_above), np.random.default_rng(0)
    for _ in range(60):
        right_at(derivative, first_above, rng.normal(size=80), (1e-12, 0), (1e-9, 1e-12))
    assert derivative.cache_info().misses < 20


def pairs_until(x):
    """Both are assigned before they are read, where an iteration begins its turn at its end, by the ``break``."""
    s = 0.0
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        if a < b:
            s += a * b
            if s > 4:
                return s * 2
    return s


def pairs_until_and_the_last(x):
    s = 0.0
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        if a < b:
            s += a * b
        if s > 2:
            s = s + a
            break
    return s + b


def left_in_the_middle(x):
    s, c = 0.0, 0.0
    for i in range(len(x) - 1):
        if x[i] > 0:
            c = x[i]
        w = c * x[i]
        if s * w > 2:
            break
        s += w * x[i + 1] if x[i + 1] > 0 else 0.05
    return s


def gone_on_before(x):
    s, d = 0.0, 0.0
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        if a > b:
            continue
        s += a * b + d
        if s > 3:
            break
        d = b - a
    return s


def read_behind(x):
    s = 0.0
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        if a < b:
            s += a * b
        if s > 2:
            break
    else:
        s -= a if b > 0 else i
    return s


def read_behind_in_any_case(x):
    s = 0.0
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        if a < b:
            s += a * b
    else:
        s -= a if b > 0 else i
    return s


def read_by_a_function(x):
    s = 0.0
    last = lambda: b
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        if a < b:
            s += last()
        if s > 2:
            break
    return s


CODE = [pairs_until, pairs_until_and_the_last, gone_on_before]


@pytest.mark.parametrize("fun", [*CODE, left_in_the_middle, read_behind, read_behind_in_any_case, read_by_a_function])
def test_what_is_read_where_an_iteration_begins_its_turn(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for i in range(30):
        x = rng.normal(size=16)
        right_at(derivative, fun, -np.abs(x) if i % 7 == 6 else x, (1e-12, 1e-12), (1e-9, 1e-12))
    assert derivative.cache_info().misses <= 14 or fun not in CODE


def bound_behind_the_way_out(x):
    i = 0
    while i < len(x):
        v = x[i]
        i += 1
        if v > 1.0:
            break
        last = v
    return last


def test_what_the_iteration_before_the_last_has_left():
    derivative, rng = value_and_grad(bound_behind_the_way_out), np.random.default_rng(2)
    for _ in range(20):
        x = rng.normal(size=8)
        x[0] = -0.5
        right_at(derivative, bound_behind_the_way_out, x, (1e-12, 0), (1e-9, 0))
    with pytest.raises(UnboundLocalError):
        derivative(np.full(8, 2.0))


def bellman(p, grid):
    value = np.zeros_like(grid)
    for _ in range(12):
        new = np.empty_like(value)
        for i, wealth in enumerate(grid**0.3):
            best = -np.inf
            for j, saved in enumerate(grid):
                eaten = wealth - saved
                if eaten <= 0:
                    break
                this = (eaten ** (1 - p[1]) - 1) / (1 - p[1]) + p[0] * value[j]
                if this > best:
                    best = this
            new[i] = best
        gap = np.max(np.abs(new - value))
        value = new
        if gap < 1e-6:
            break
    return value.mean()


@pytest.mark.long
def test_what_the_last_iteration_makes_behind_its_exit_is_no_matter_of_the_next():
    """``this`` is made and read behind the ``break``: nothing that an earlier iteration left in it is read by any other one."""
    derivative, dynamic = value_and_grad(bellman), value_and_grad(bellman, mode="dynamic")
    for k in range(4):
        args = np.array([0.9, 0.5]) * (1 + 0.003 * k), np.linspace(0.1, 0.9, 6)
        (value, slope), (expected, other) = derivative(*args), dynamic(*args)
        assert value == pytest.approx(expected)
        np.testing.assert_allclose(slope, other, rtol=1e-9)
    assert derivative.cache_info().hits >= 1
    assert len(derivative.source(*args).splitlines()) < 400  # loops in loops


def last_of_all(p, x):
    """What is made behind the exit is read after the loop, too, or by the next iteration, where it is not made there."""
    kept, total = p[0], 0.0
    for v in x:
        if v > 1.5:
            break
        if v > 0:
            kept = v * p[1]
        total = total + kept
    for v in x:
        if v < -1.5:
            break
        made = v * total
        total = total + made
    return total * kept + made


@pytest.mark.parametrize("seed", range(3))
def test_what_iterations_make_behind_their_exit_and_others_read(seed):
    rng = np.random.default_rng(seed)
    derivative, dynamic = value_and_grad(last_of_all), value_and_grad(last_of_all, mode="dynamic")
    for _ in range(12):
        args = rng.normal(size=2), np.array([0.3, *rng.normal(size=6)])
        (value, slope), (expected, other) = derivative(*args), dynamic(*args)
        assert value == pytest.approx(expected)
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-12)


class Best:
    """What a loop asks whether it is to end."""

    def __init__(self):
        self.best, self.bad = 1e9, 0

    def is_lower(self, loss):
        """Each iteration but the last one goes the same way."""
        if loss < self.best - 1e-3:
            self.best = loss
            return False
        return True

    def has_waited(self, loss):
        """A plain truth value at times, a decision at others."""
        if loss < self.best - 1e-3:
            self.best, self.bad = loss, 0
            return False
        self.bad += 1
        return self.bad > 3


def is_small(loss, best):
    if loss < best - 1e-3:
        return False
    return loss < 2.0


def step(w, x):
    slope = w - np.array([1.0, -0.5]) * x[0]
    return w - 0.3 * x[1] * slope, np.sum(slope**2) + 0.1 * x[0]


def lowest(x):
    w, known, loss = np.zeros(2), Best(), 0.0
    for _ in range(100):
        w, loss = step(w, x)
        if known.is_lower(loss):
            break
    return loss + 2.0 * known.best + w[0]


def told_by_both(x):
    w, best, loss = np.zeros(2), 1e9, 0.0
    for _ in range(100):
        w, loss = step(w, x)
        if is_small(loss, best):
            break
        best = loss
    return loss + best


def with_a_flag(x):
    w, known, done, k = np.zeros(2), Best(), False, 0
    while not done and k < 100:
        w, loss = step(w, x)
        done = known.has_waited(loss)
        k += 1
    return loss + known.best + k * w[1]


def with_a_flag_of_its_own(x):
    w, known, loss = np.zeros(2), Best(), 0.0
    for _ in range(100):
        w, loss = step(w, x)
        done = known.has_waited(loss)
        w = 0.99 * w
        if done:
            w = w * x[0]
            break
    return loss + np.sum(w)


@pytest.mark.parametrize("fun", [lowest, told_by_both, with_a_flag, with_a_flag_of_its_own])
def test_a_function_that_tells_the_end_now_plainly_and_now_not_is_part_of_the_loop(fun):
    derivative = value_and_grad(fun)
    for rate in (0.8, 1.0, 0.6, 1.3, 0.7, 1.1, 0.5):
        right_at(derivative, fun, np.array([1.3, rate]), value=(1e-12, 1e-14), slope=(1e-10, 1e-12))
    assert derivative.cache_info().misses <= 5
