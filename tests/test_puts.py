"""Numbers that a function puts outside: code puts them there, too, and nobody can tell it from the function."""

import collections
import contextlib
import functools
import importlib
import operator
import random
import threading
import types
import weakref

import numpy as np
import pytest
from agreement import counts_in_a_loop, function_of

import symgrad
from symgrad import export, grad, hessian, stop_gradient, value_and_grad, vmap
from symgrad.errors import NotExportable

CALLS = 0
X = np.array([0.5, -1.0, 2.0])


class Model:
    """Things outside: attributes, items, a function's own, and variables around it."""

    def __init__(self):
        self.n, self.rate, self.name, self.flag = 0, 0.5, "a", False
        self.mean, self.other, self.log, self.last = np.zeros(3), np.ones(3), [], collections.deque(maxlen=3)
        self.stats, self.counts, self.inner = {"n": 0, "sum": 0.0}, [0, 3], types.SimpleNamespace(n=0)

    def bump(self, by=1):
        self.n += by
        return self.n

    def state(self):
        arrays = [(type(item), np.round(item, 9).tolist()) for item in (self.mean, self.other, *self.log, *self.last)]
        return repr(
            {
                **vars(self),
                "mean": 0,
                "other": self.other is self.mean,
                "log": len(self.log),
                "last": arrays,
                "inner": vars(self.inner),
            }
        )


def attribute(m, x):
    m.n += 1
    return np.sum(x**2)


def by_assignment(m, x):
    m.n = m.n + 2
    return np.sum(x**2) * m.n


def items(m, x):
    m.stats["n"] += 1
    m.counts[1] = m.counts[0] + m.counts[1]
    m.counts[0] -= 1
    return np.sum(x**2) * m.counts[1] + m.stats["n"]


def floats(m, x):
    m.rate *= 0.75
    m.stats["sum"] += m.rate
    return np.sum(x**2) * m.rate


def words(m, x):
    m.name = m.name[-3:] + "b"
    m.flag = not m.flag
    return np.sum(x**2) * len(m.name)


def always_the_same(m, x):
    m.n = 3
    for _ in range(6):
        x = 1.01 * x
    m.name = "fitted"
    m.stats["n"] += m.n
    m.inner.n = 2
    m.inner.n += 5
    return np.sum(x**2) * m.inner.n


def arrays(m, x):
    m.mean = 0.9 * m.mean + 0.1 * stop_gradient(x)
    m.log.append(stop_gradient(np.sum(x)))
    m.last.append(stop_gradient(np.sin(x)))
    m.last.append(m.n)
    return np.sum((x - m.mean) ** 2)


def arrays_of_two_names(m, x):
    h = stop_gradient(np.sin(x)) + m.mean
    m.mean = h
    h[0] = 5.0
    m.mean[1] = 2.0
    return np.sum(x * m.mean) + h[0] * h[1]


def one_array(m, x):
    m.other = m.mean
    m.other[0] = 2.0 + m.n
    m.n += 1
    return np.sum(x * m.mean) * m.mean[0]


def logs_and_looks(m, x):
    m.log.append(1)
    return np.sum(x**2) * len(m.log)


def in_a_method(m, x):
    return np.sum(x**2) * m.bump() * m.bump(2)


def on_one_side(m, x):
    if x[0] > 0.0:
        m.n += 1
        return np.sum(x**2)
    m.inner.n += 1
    return np.sum(x**3)


def decided_by(m, x):
    m.n += 1
    return np.sum(x**2) if m.n % 3 else np.sum(np.sin(x))


def read_back_otherwise(m, x):
    m.n += 1
    m.stats["n"] += 1
    m.counts[0] += 1
    return np.sum(x) * (vars(m)["n"] + sum(m.counts) + dict(m.stats)["n"] + operator.attrgetter("n")(m) + len(f"{m.n}"))


def read_by_names(m, x):
    m.counts[0] += 1
    m.stats["n"] += 2
    return np.sum(x) * (sum(m.counts) + dict(m.stats)["n"] + max(m.counts) + sorted(m.counts)[0] + {**m.stats}["n"])


def new_object(m, x):
    m.inner = types.SimpleNamespace(n=m.inner.n + 1)
    return np.sum(x) * m.inner.n


def behind_it(m, x):
    m.n += 1
    vars(m)["n"] += 1
    return np.sum(x) * m.n


def of_several_kinds(m, x):
    m.n += 1
    m.n += m.rate
    return np.sum(x) * m.n


CODE = [attribute, by_assignment, items, floats, words, in_a_method, on_one_side, decided_by, read_by_names, of_several_kinds]
CODE += [always_the_same, arrays, arrays_of_two_names, counts_in_a_loop]


@pytest.mark.parametrize("fun", [*CODE, read_back_otherwise, new_object, behind_it, logs_and_looks, one_array])
@pytest.mark.parametrize("pokes", [False, True])
def test_what_is_put_is_what_the_function_puts(fun, pokes):
    rng, models = np.random.default_rng(0), (Model(), Model())
    derivatives = [value_and_grad(functools.partial(fun, model)) for model in models[:1]]
    derivatives.append(value_and_grad(functools.partial(fun, models[1]), mode="dynamic"))
    for i in range(40):
        x = rng.normal(size=3)
        (value, slope), (same, other) = [derivative(x) for derivative in derivatives]
        np.testing.assert_allclose(slope, other, rtol=1e-12)
        assert value == pytest.approx(same, rel=1e-12)
        assert models[0].state() == models[1].state()
        if pokes and i % 4 == 3:  # somebody else puts something there
            for model in models:
                model.n, model.counts[0], model.stats["n"], model.rate = i % 7, -i, i, 0.1 * i
                model.inner, model.mean, model.log = types.SimpleNamespace(n=i), np.full(3, 0.1 * i), []
    hits = derivatives[0].cache_info().hits
    assert (hits > 20) == (fun in CODE), derivatives[0].explain()


def test_variables_around_the_function():
    count = 0

    def fun(x):
        global CALLS
        nonlocal count
        count += 1
        CALLS = CALLS + 2
        fun.calls += 3
        return np.sum(x) * count

    fun.calls = 0
    derivative, before = grad(fun), CALLS
    for i in range(1, 9):
        np.testing.assert_array_equal(derivative(X), np.full(3, i))
        assert (count, CALLS, fun.calls) == (i, before + 2 * i, 3 * i)
    assert derivative.cache_info().misses == 3
    text = derivative.source(X)
    assert "fun.calls = " in text or "owner.calls = " in text
    assert "put outside by each call, or some: " in derivative.explain()


@pytest.mark.parametrize("kind", [hessian, lambda fun: vmap(grad(fun)), lambda fun: grad(lambda x: np.sum(grad(fun)(x)))])
def test_other_derivatives_put_as_often_as_in_dynamic_mode(kind):
    found = []
    for mode in (False, True):
        model = Model()
        fun = functools.partial(attribute, model)
        derivative = kind(fun)
        x = np.ones((4, 3)) if "vmap" in repr(derivative) else X
        counts = []
        for _ in range(6):
            if mode:
                with symgrad.without("share"):
                    derivative(x)
            else:
                derivative(x)
            counts.append(model.n)
        found.append(counts)
    assert found[0] == found[1]
    assert len({b - a for a, b in zip(found[0], found[0][1:], strict=False)}) == 1


def test_errors_come_after_what_the_function_puts_before_them():
    model = Model()

    def fun(x, k):
        model.n += 1
        total = np.sum(x) * (1.0 / k)
        model.stats["n"] += 1
        return total

    derivative = grad(fun)
    for _ in range(5):
        derivative(X, 2.0)
    for i in range(3):
        with pytest.raises(ZeroDivisionError):
            derivative(X, 0.0)
        assert (model.n, model.stats["n"]) == (6 + i, 5)
    derivative(X, 4.0)
    assert (model.n, model.stats["n"]) == (9, 6)


def test_numbers_that_others_change_meanwhile():
    """As another thread may: what it counts is not lost."""
    model, meanwhile = Model(), []

    @symgrad.primitive
    def slow(x):
        while meanwhile:
            model.n += meanwhile.pop()
        return np.sin(x)

    slow.defvjp(lambda g, out, x: g * np.cos(x))
    derivative = grad(lambda x: attribute(model, slow(x)))
    for i in range(1, 9):
        meanwhile[:] = [100] if i > 5 else []
        derivative(X)
        assert model.n == i + 100 * max(i - 5, 0)


def test_threads_count_together():
    model = Model()
    derivative = grad(functools.partial(attribute, model))
    for _ in range(4):
        derivative(X)

    def work():
        for i in range(300):
            np.testing.assert_array_equal(derivative(X + i), 2 * (X + i))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.n == 4 + 6 * 300


def test_modules_put_nothing_outside():
    with pytest.raises(NotExportable, match=r"changes what is outside: .*\.n; return that instead"):
        export(grad(functools.partial(attribute, Model())), X)


def program(seed):
    """A random function of things outside."""
    draw = random.Random(seed)
    places = ["m.n", "m.inner.n", 'm.stats["n"]', "m.counts[0]", "m.counts[1]", "m.rate"]

    def term():
        return draw.choice([*places, "len(x)", "k", str(draw.randint(0, 3)), f"{draw.choice(places)} % 5"])

    lines = []
    for _ in range(draw.randint(2, 7)):
        kind, indent = draw.random(), ""
        if draw.random() < 0.3:
            lines.append(f"if {draw.choice(['x[0] > 0.0', 'k > 1', 'm.n % 2 == 0', 'y > 1.0'])}:")
            indent = "    "
        if kind < 0.5:
            lines.append(f"{indent}{draw.choice(places)} {draw.choice(['+=', '-='])} {term()}")
        elif kind < 0.7:
            lines.append(f"{indent}{draw.choice(places)} = {term()} - {term()}")
        else:
            lines.append(f"{indent}y = y * (1.0 + 0.1 * ({draw.choice([*places, 'sum(m.counts)', 'm.bump()'])} % 7))")
    return "\n".join(
        ["def fun(m, x, k):", "    y = np.sum(np.sin(x)) + 2.0", *[f"    {line}" for line in lines], "    return y"]
    )


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed, tmp_path):
    text = program(seed)
    fun = function_of(text, tmp_path / f"puts_{seed}.py")
    models, draw, rng = (Model(), Model()), random.Random(seed), np.random.default_rng(seed)
    derivatives = [value_and_grad(fun, 1), value_and_grad(fun, 1, mode="dynamic")]
    for _ in range(12):
        x, k = rng.normal(size=3), draw.choice([0, 1, 2])
        (value, slope), (same, other) = [derivative(m, x, k) for derivative, m in zip(derivatives, models, strict=True)]
        np.testing.assert_allclose(slope, other, rtol=1e-10, err_msg=text)
        assert value == pytest.approx(same, rel=1e-10), text
        assert models[0].state() == models[1].state(), text


def same_as_plain(make, calls=10):
    """``make()`` gives a function, what somebody does before call ``i``, and what tells all there is outside."""
    (plain, before, state), (fun, other, others) = make(), make()
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for i in range(calls):
        x = rng.normal(size=3)
        before(i), other(i)
        assert derivative(x)[0] == pytest.approx(plain(x), rel=1e-10), i
        assert repr(others()) == repr(state()), i
    return derivative


def pair():
    return types.SimpleNamespace(p=types.SimpleNamespace(n=0), q=types.SimpleNamespace(n=3))


def owners_become_one():
    m = pair()

    def fun(x):
        m.p.n += 1
        m.q.n += 2
        return np.sum(x) * (m.p.n + m.q.n)

    return fun, lambda i: setattr(m, "q", m.p) if i == 6 else None, lambda: m


def one_is_read_alone():
    m = pair()

    def fun(x):
        m.p.n += 1
        return np.sum(x) * (m.p.n + m.q.n)

    return fun, lambda i: setattr(m, "q", m.p) if i == 6 else None, lambda: m


def lists_become_one():
    m = types.SimpleNamespace(a=[0, 1], b=[5, 6])

    def fun(x):
        m.a[0] += 1
        return np.sum(x) * (sum(m.b) + m.b[0])

    return fun, lambda i: setattr(m, "b", m.a) if i == 6 else None, lambda: m


def by_another_way(read):
    def make():
        counter, table = Counting(), {"n": 0}
        ways = types.SimpleNamespace(
            proxy=weakref.proxy(counter), view=types.MappingProxyType(table), chain=collections.ChainMap(table), own=counter
        )

        def fun(x):
            counter.n += 1
            table["n"] += 1
            return np.sum(x) * read(ways)

        return fun, lambda i: None, lambda: (counter.n, table)

    return make


class Counting:
    twice = property(operator.attrgetter("n"))

    def __init__(self):
        self.n = 0

    def __getattr__(self, name):
        if name != "thrice":
            raise AttributeError(name)
        return 3 * self.n


def too_short_a_list():
    m = types.SimpleNamespace(n=0, log=[], c=[1, 2])

    def fun(x):
        m.n += 1
        m.log.append(1)
        if len(m.log) > 100:
            return np.sum(x)
        with contextlib.suppress(IndexError):
            m.c[1] = stop_gradient(x[0]) * 0.0
        return np.sum(x)

    return fun, lambda i: m.c.pop() if i == 6 else None, lambda: m


def an_empty_variable():
    def make_fun():
        if not make_fun:
            n = 0

        def fun(x):
            nonlocal n
            n = 5
            return np.sum(x) * n

        return fun

    return make_fun(), lambda i: None, lambda: None


class Odd:
    asked = 0

    def __radd__(self, other):
        Odd.asked += 1
        return other + 1


def operators_of_objects():
    m, odd, _start = types.SimpleNamespace(n=0), Odd(), Odd.asked

    def fun(x):
        m.n += odd
        return np.sum(x) * m.n

    return fun, lambda i: None, lambda: m


def a_setter_that_comes_later():
    class Held:
        def __init__(self):
            self.n = 0

    held = Held()

    def fun(x):
        held.n += 1
        return np.sum(x) * held.n

    def before(i):
        if i == 6:
            Held.__setattr__ = lambda self, name, value: object.__setattr__(self, name, 2 * value)

    return fun, before, lambda: held.n


def keys_in_c():
    objects = [types.SimpleNamespace(n=i, w=float(i)) for i in (3, 1, 2)]

    def fun(x):
        objects[1].n += 1
        first = sorted(objects, key=operator.attrgetter("n"))[0]
        return np.sum(x) * first.w * sum(map(operator.attrgetter("n"), objects)) + len(next(map(vars, objects)))

    return fun, lambda i: setattr(objects[0], "n", -i if i % 3 else i), lambda: objects


ODD = [
    owners_become_one, one_is_read_alone, lists_become_one, too_short_a_list, an_empty_variable, operators_of_objects,
    a_setter_that_comes_later, keys_in_c,
    by_another_way(lambda ways: ways.proxy.n), by_another_way(lambda ways: ways.view["n"]),
    by_another_way(lambda ways: ways.chain["n"]), by_another_way(lambda ways: ways.own.twice),
    by_another_way(lambda ways: ways.own.thrice),
]  # fmt: skip


@pytest.mark.parametrize("make", ODD)
def test_nobody_can_tell(make):
    same_as_plain(make)


def test_variables_of_modules(tmp_path, monkeypatch):
    (tmp_path / "puts_counted.py").write_text("N = 0\ndef bump():\n    global N\n    N += 1\n    return N\n")
    monkeypatch.syspath_prepend(tmp_path)
    counted = importlib.import_module("puts_counted")

    def fun(x):
        counted.bump()
        return np.sum(x) * counted.N

    derivative = value_and_grad(fun)
    for i in range(1, 9):
        assert derivative(X)[0] == pytest.approx(np.sum(X) * i)
        assert i == counted.N


def test_code_that_puts_something_is_not_run_by_itself():
    model = Model()
    derivative = grad(functools.partial(attribute, model))
    for call in (derivative.profile, derivative.compiled):
        with pytest.raises(RuntimeError, match=r"changes what is outside \(.*n\)"):
            call(X)
        before = model.n
        with pytest.raises(RuntimeError, match="changes what is outside"):
            call(X)
        assert model.n <= before + 1


def test_logs_of_plain_numbers():
    log = []

    def fun(x):
        loss = np.sum(x**2)
        log.append(float(stop_gradient(loss)))
        log.append(stop_gradient(loss).item())
        log.append(round(float(stop_gradient(loss)), 3))
        return loss

    derivative = grad(fun)
    for i in range(6):
        derivative(X * i)
        loss = float(np.sum((X * i) ** 2))
        assert log[-3:] == [pytest.approx(loss), pytest.approx(loss), round(loss, 3)]
        assert {type(item) for item in log} == {float}
    assert derivative.cache_info().hits == 4
    assert len(log) == 18


def test_what_is_put_back_is_not_taken_out():
    """The derivative by the array of ``y[i] += c`` passes as it is."""

    def fun(x, c):
        y = x * np.sin(x)
        y[3] += c[0]
        for i in range(4):
            y[2] += c[i]
            y = np.tanh(y)
        return np.sum(y)

    rng = np.random.default_rng(0)
    x, c = rng.normal(size=40), rng.normal(size=8)
    derivative = grad(fun, (0, 1))
    for _ in range(3):
        for found, expected in zip(derivative(x, c), grad(fun, (0, 1), mode="dynamic")(x, c), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert "= 0.0" not in str(derivative.source(x, c)).split("# backward")[1]


def test_what_a_function_leaves_outside_may_be_written_into_in_the_next_call():
    held = Model()
    held.mean = np.zeros(3)

    def total(x):
        held.mean += 0.1
        s = np.sum(held.mean * x)
        held.mean = stop_gradient(x * 0.5)
        return s

    derivative = value_and_grad(total)
    for i in range(6):
        x = np.arange(3.0) + i
        before = held.mean + 0.1
        value, slope = derivative(x)
        assert value == pytest.approx(np.sum(before * x))
        np.testing.assert_allclose(slope, before)
        assert held.mean.flags.writeable


def test_tuples_of_numbers_that_calls_choose():
    """Those that are traced in loops, but hang on no argument in this call, are plain in what is appended."""
    seen = []

    def fun(w, x):
        best, bad = None, 0
        for i, v in enumerate(x):
            loss = (w * v - 1) ** 2
            if best is None or loss < best - 0.25:
                best, bad, keep = loss, 0, i
            else:
                bad += 1
                if bad >= 2:
                    break
        seen.append((keep, bad))
        return best + 0.5 * w * keep

    derivative = value_and_grad(fun)
    for k in range(20):
        rng = np.random.default_rng(k)
        w, x = float(rng.integers(-6, 7)) / 4, np.round(rng.normal(size=6) * 4) / 4
        expected = value_and_grad(fun, mode="dynamic")(w, x)
        np.testing.assert_allclose(derivative(w, x), expected, rtol=1e-12)
        assert seen[-1] == seen[-2]
        assert {type(item) for item in seen[-1]} == {int}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_a_property_caches_is_plain(mode):
    class Mesh:
        step = 0.5

        @functools.cached_property
        def nodes(self):
            return np.arange(4) * self.step

    mesh = Mesh()
    derivative = value_and_grad(lambda x: np.sum(mesh.nodes * x**2), mode=mode)
    for _ in range(3):
        assert derivative(np.ones(4))[0] == 3.0
        assert type(mesh.nodes) is np.ndarray


def test_named_tuples_put_outside_are_plain():
    kind = collections.namedtuple("kind", "a b")
    box = {"last": None}

    def fun(x):
        box["last"] = kind(1, x > 1)
        return x * box["last"].a

    derivative = value_and_grad(fun)
    for _ in range(3):
        assert derivative(1.5) == (1.5, 1.0)
        assert box["last"] == (1, True)
        assert {*map(type, box["last"])} <= {int, bool, np.bool_}
        assert type(box["last"]) is kind


def test_what_an_operator_changes_in_place_changes_under_its_other_names():
    held = types.SimpleNamespace(rates=np.array([1.0, 2.0]), rows={"a": [np.array([1.0, 2.0])]})

    def of_attribute(x):
        rates = held.rates
        held.rates *= 0.5
        return np.sum(rates * x)

    def of_item(x):
        part = held.rows["a"][0][1:]
        held.rows["a"][0] += 1
        return np.sum(part * x)

    def twice(x):
        rates = held.rates
        before = rates * x
        for _ in range(3):
            held.rates -= 1
            x = x * rates
        return np.sum(rates * x) + np.sum(before)

    for fun in (of_attribute, of_item, twice):
        seen = []
        for derivative in (lambda x, fun=fun: (fun(x),), value_and_grad(fun), value_and_grad(fun, mode="dynamic")):
            held.rates, held.rows["a"][0] = np.array([1.0, 2.0]), np.array([1.0, 2.0])
            seen.append([float(derivative(np.array([0.5, 1.5]))[0]) for _ in range(5)])
        np.testing.assert_allclose(seen[1:], [seen[0]] * 2, rtol=1e-12)


# -- classes that count their objects ------------------------------------------------------------------------------


class Counted:
    made, total = 0, 0.0

    def __init__(self):
        Counted.made += 1
        self.number = Counted.made


class Derived(Counted):
    pass


def in_a_loop(p, x):
    s = 0.0
    for v in x:
        s = s + np.sin(p * v) * Counted().number
    return s


def noted_total(p, x):
    s = np.sum(np.sin(p * x))
    Counted.total = float(stop_gradient(s))
    return s


def set_and_read(p, x):
    before = Counted.made
    Counted.made = 5
    number = Counted().number
    Counted.made = before + 1
    return np.sum(np.sin(p * x)) * number


COUNTING = {
    "one": (lambda p, x: np.sum(np.sin(p * x)) * Counted().number, 3),
    "several": (lambda p, x: np.sum(np.sin(p * x)) * [Counted() for _ in range(3)][1].number, 3),
    "in a loop": (in_a_loop, 3),
    "a number": (noted_total, 2),
    "set and read": (set_and_read, 3),
    "read by another class": (lambda p, x: np.sum(np.sin(p * x)) * Counted().number * Derived.made, None),
    "read by an object": (lambda p, x: np.sum(np.sin(p * x)) * Derived().made, None),
    "read in its dict": (lambda p, x: np.sum(np.sin(p * x)) * Counted().number + vars(Counted)["made"], None),
    "asked": (lambda p, x: np.sum(np.sin(p * x)) * (2.0 if Counted().number % 2 else 3.0), None),
}


@pytest.mark.parametrize("name", COUNTING)
def test_classes_count_their_objects(name):
    fun, most = COUNTING[name]
    found = []
    for call in (value_and_grad(fun), fun):
        Counted.made, Counted.total = 0, 0.0
        values = [call(1.0 + 0.1 * i, X * i) for i in range(8)]
        values = [value[0] for value in values] if call is not fun else values
        found.append([*map(float, values), Counted.made, Counted.total])
        if call is not fun and most is not None:
            assert call.cache_info().misses <= most
    np.testing.assert_allclose(*found, rtol=1e-12)
