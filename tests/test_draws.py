"""Random numbers from generators outside: code draws what the function would, from the same generators, in the same order."""

import random
import threading

import numpy as np
import pytest

from symgrad import checkpoint, export, grad, hessian, jacobian, jvp, value_and_grad, vmap
from symgrad.errors import NotExportable

W = np.linspace(-1.0, 1.0, 6)
X = np.random.default_rng(9).normal(size=(40, 6))
Y = X @ W
SOME = np.random.default_rng(4).random(60) < 0.3


def steps(r):
    def fun(w):
        z = w
        for _ in range(30):
            z = z + 0.1 * np.tanh(z) + 0.05 * r.normal(size=6)
        return np.sum(z**2)

    return fun


def numbers(r):
    def fun(w):
        z, total = w[0], 0.0
        for _ in range(50):
            z = z + 0.1 * np.sin(z) * w[1] + 0.05 * r.normal()
            total += z * z
        return total

    return fun


def two_kinds(r):
    def fun(w):
        z, total = w, 0.0
        for _ in range(20):
            z = z + 0.1 * r.normal(size=6)
            total += np.sum(z * r.normal(size=6)) * r.uniform()
        return total

    return fun


def nest(r):
    def fun(w):
        total = 0.0
        for _ in range(8):
            z = w * r.uniform()
            for _ in range(12):
                z = z + 0.1 * np.tanh(z) + 0.05 * r.normal(size=6)
            total += np.sum(z**2) + r.normal()
        return total

    return fun


def branch(r):
    def fun(w):
        e = r.normal(size=6)
        return np.sum((w + e) ** 2) if np.sum(e * w) > 0 else np.sum((w - e) ** 3)

    return fun


def decided(r):
    def fun(w):
        z = w
        for _ in range(20):
            e = r.normal()
            z = z + 0.1 * e * np.sin(z) if e > 0 else z * 0.9
        return np.sum(z**2)

    return fun


def every_other(r):
    def fun(w):
        z = w
        for i in range(60):
            if i % 2 == 0:
                z = z + 0.1 * np.tanh(z) * r.normal()
            if SOME[i]:
                z = z * r.uniform()
            if i == 45:
                r.uniform()
        return np.sum(z)

    return fun


def other_steps(r):
    def fun(w):
        z = w
        for _ in range(10, 70, 3):
            z = z + 0.1 * np.tanh(z) * r.normal()
        for x in X[::-2]:
            z = z + 0.01 * x * r.normal()
            r.uniform()
        return np.sum(z)

    return fun


def minibatch(r):
    def fun(w):
        i, order = r.choice(40, 8, replace=False), r.permutation(40)[:8]
        return np.mean((X[i] @ w - Y[i]) ** 2) + np.mean((X[order] @ w - Y[order]) ** 3)

    return fun


def comprehensions(r):
    return lambda w: (
        sum(np.sum(w * r.normal(size=6)) ** 2 for _ in range(12)) + np.max([w @ r.normal(size=6) for _ in range(9)])
    )


def changed(r):
    def fun(w):
        e, noise = r.normal(size=6), np.zeros((9, 6))
        e *= 2
        e[0] = 0
        for i in range(9):
            noise[i] = r.standard_normal(6)
        return np.sum((w + e) ** 2) + np.sum(np.tanh(noise @ w))

    return fun


def by_arguments(r):
    scale, chances = 0.3, np.array([0.1, 0.2, 0.3, 0.4])

    def fun(w):
        total = np.sum((w + r.normal(0, scale, w.shape)) ** 2) + np.sum(w[r.choice(4, size=3, p=chances)])
        for n in range(1, 8):
            total += np.sum(r.normal(n, 1.0, size=n)) * w[n % 6]
        return total

    return fun


def solved(r):
    def fun(w):
        a = r.normal(size=(6, 6))
        return w @ np.linalg.solve(a @ a.T + np.eye(6), w)

    return fun


def once_more(r):
    def walk(z, n):
        return z if n == 0 else walk(z + 0.1 * np.tanh(z) * r.normal(), n - 1)

    return lambda w: np.sum(walk(w, 12))


def one_way_only(r):
    def fun(w):
        e = r.normal(size=6)
        return np.sum((w + e) ** 2) if np.sum(e * w) > 0 else np.sum((w - r.normal(size=6)) ** 3)

    return fun


def refused(r):
    def fun(w):
        total = np.sum(w)
        while True:
            e = r.normal(size=6)
            total += np.sum(e * w)
            if total > 0:
                return total**2

    return fun


def left(r):
    def fun(w):
        total = 0.0
        for x, y in zip(X, Y, strict=True):
            total += (x @ w - y) ** 2 * r.uniform()
            if total > 3.0:
                break
        return total

    return fun


def shuffled(r):
    def fun(w):
        order = np.arange(6)
        r.shuffle(order)
        return np.sum(order * w**2)

    return fun


def in_another_order(r):
    def fun(w):
        total = sum([v * r.normal(0.0, 1.0) for v in w]) * 0.1
        for i in range(3):
            total = total + r.exponential()
            if w[i] > 0:
                total = total * r.uniform()
        return total

    return fun


def as_often_as_it_says(r):
    def fun(w):
        total = np.sum(w)
        for _ in range(LENGTHS["long"]):
            total = total + r.normal() * w[0]
            for _ in range(LENGTHS["short"]):
                r.binomial(4, 0.4)
        return total

    return fun


def now_and_then(r):
    def fun(w):
        z, total = w, 0.0
        for i in range(12):
            total += np.mean(r.uniform(-1.0, 1.0, size=6))
            if np.sum(z) > 0:
                total = 0.9 * total + z[0]
                z = (z - r.normal(0.0, i + 1, size=6)) * np.mean(z) - 0.3 * r.permutation(6)
            z = 0.8 * z + 0.1 * r.uniform(size=6)
        return total + np.sum(z * z)

    return fun


def by_turns(r):
    def fun(w):
        z = w
        for _ in range(12):
            z = z + (r.normal(size=6) if np.sum(z) > 0 else 1.0 + 0.1 * r.uniform(size=6))
        return np.sum(z * z)

    return fun


LENGTHS = {"long": 50, "short": 4}


def looked_at(r):
    def fun(w):
        a = r.normal(size=6)
        if isinstance(r, np.random.Generator):
            a = a * (r.bit_generator.state["state"]["state"] % 7)
        return np.sum(w * a)

    return fun


def into_an_array(r):
    buffer = np.zeros(6)

    def fun(w):
        if isinstance(r, np.random.Generator):
            r.standard_normal(out=buffer)
        return np.sum(w * buffer)

    return fun


COMPILED = [steps, numbers, two_kinds, nest, branch, decided, other_steps, minibatch, comprehensions, changed,
            by_arguments, solved, once_more]  # fmt: skip
OTHERS = [
    every_other,
    now_and_then,
    by_turns,
    one_way_only,
    refused,
    left,
    shuffled,
    in_another_order,
    looked_at,
    into_an_array,
]  # what they draw hangs on what they have drawn


def state(r):
    return repr(r.bit_generator.state) if isinstance(r, np.random.Generator) else [*map(str, r.get_state())]


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize("make", [*COMPILED, *OTHERS])
def test_code_draws_what_the_function_does(make, kind):
    sources = [kind(3) for _ in range(3)]
    plain, derivative, dynamic = (
        make(sources[0]),
        value_and_grad(make(sources[1])),
        value_and_grad(make(sources[2]), mode="dynamic"),
    )
    points = np.random.default_rng(1)
    for i in range(12):
        w = W + 0.3 * points.normal(size=6)
        LENGTHS.update(long=50 - i % 3, short=3 + i // 2 % 3)
        value, slope = derivative(w)
        np.testing.assert_allclose(value, plain(w), rtol=1e-9)
        np.testing.assert_allclose(slope, dynamic(w)[1], rtol=1e-8, atol=1e-11)
        assert state(sources[0]) == state(sources[1])
    if make in COMPILED:
        assert derivative.cache_info().hits > 4


def test_generators_of_modules():
    def fun(w):
        return np.sum((w + np.random.normal(size=6)) ** 2) * random.gauss(0.0, 1.0) * random.random() + w[random.randrange(6)]

    def seeded(derivative):
        np.random.seed(0)
        random.seed(0)
        return [derivative(W) for _ in range(6)]

    derivative = grad(fun)
    np.testing.assert_allclose(seeded(derivative), seeded(grad(fun, mode="dynamic")), rtol=1e-12)
    assert derivative.cache_info().hits == 4


def test_generators_that_are_arguments():
    derivative = grad(lambda w, r: np.sum((w + r.normal(size=6)) ** 2))
    for make in (np.random.default_rng, np.random.RandomState):
        for seed in range(5):
            np.testing.assert_allclose(derivative(W, make(seed)), 2 * (W + make(seed).normal(size=6)), rtol=1e-12)
    assert derivative.cache_info().misses == 4


def test_generators_in_objects():
    class Layer:
        def __init__(self):
            self.rng, self.trains = np.random.default_rng(0), True

        def loss(self, w):
            return np.sum((w * (self.rng.random(6) < 0.8) if self.trains else w) ** 2)

    layer, other = Layer(), Layer()
    derivative = grad(layer.loss)
    for i in range(20):
        layer.trains = other.trains = i % 3 > 0
        np.testing.assert_allclose(derivative(W), grad(other.loss, mode="dynamic")(W))
    assert derivative.cache_info().misses < 8


def test_draws_on_one_side_of_an_if_in_a_loop():
    """Which iterations draw hangs on values: what one run of them drew is not what others will."""

    class Model:
        def __init__(self):
            np.random.seed(5)
            self.r, self.q = np.random.RandomState(3), np.random.RandomState(4)

        def loss(self, w):
            x, total = np.tanh(np.sin(w) * self.q.normal(0.0, 0.7)), 0.0
            if self.flag:
                for _ in range(4):
                    x = np.random.choice(6, size=6) * 0.2 * np.mean(x) - self.r.permutation(6) * 0.3
                self.r.poisson(1.5, size=6)
                for i in range(12):
                    total = total * 0.9 + np.mean(np.random.uniform(-1.0, self.scale, size=6))
                    if np.sum(x) > 0:
                        x = (x - self.q.normal(0.0, i + 1, size=6)) * np.mean(x) - self.r.permutation(6) * 0.3
                    x = x * 0.8 + self.r.uniform(size=6) * 0.1
            return total + np.sum(x * x)

    def losses(model, fun):
        points, found = np.random.default_rng(1), []
        for k in range(9):
            model.flag, model.scale = k % 3 != 2, [1.0, 1.0, 0.5, 1.0, 2.0, 2.0, 1.0, 1.0, 1.0][k]
            model.q = {5: np.random.default_rng(123), 6: model.r}.get(k, model.q)
            found.append(fun(W + 0.3 * points.normal(size=6)))
        return found

    model = Model()
    found = [value for value, _ in losses(model, value_and_grad(model.loss))]
    model = Model()
    np.testing.assert_allclose(found, losses(model, model.loss), rtol=1e-9)


OTHER_DERIVATIVES = {
    "hessian": lambda fun: hessian(fun),
    "jacobian": lambda fun: jacobian(lambda w: w * fun(w)),
    "jvp": lambda fun: lambda w: jvp(fun, (w,), (W[::-1].copy(),))[1],
    "vmap": lambda fun: lambda w: vmap(grad(fun))(np.stack([w, 2 * w, 3 * w])),
    "of a derivative": lambda fun: grad(lambda w: np.sum(grad(fun)(w) ** 2)),
    "checkpoint": lambda fun: grad(checkpoint(fun)),
}


@pytest.mark.parametrize("make", OTHER_DERIVATIVES.values(), ids=OTHER_DERIVATIVES.keys())
def test_other_derivatives(make):
    """Each call draws as many as one of the function, or of the function of each element."""
    source = np.random.default_rng(0)
    fresh = source.bit_generator.state
    derivative = make(lambda w: np.sum((w + source.normal(size=6)) ** 2 * np.exp(w[0])))
    found, states = [], []
    for _ in range(4):
        source.bit_generator.state = fresh
        found.append(derivative(W))
        states.append(state(source))
    for one in found:
        np.testing.assert_allclose(one, found[0], rtol=1e-10)
    assert states == states[:1] * 4


def test_errors_leave_generators_where_the_function_does():
    def make(r):
        def fun(w):
            e = r.normal(size=6)
            total = sum([v * r.normal(0.0, 1.0) for v in e])
            if e[0] > 0.5:
                raise ValueError("too large")
            return np.sum(np.linalg.solve(np.diag((e > -1.5) * 1.0), w)) * r.normal() * total

        return fun

    for kind in (np.random.default_rng, np.random.RandomState):
        sources = kind(0), kind(0)
        functions = grad(make(sources[0])), make(sources[1])
        told = []
        for _ in range(60):
            seen = []
            for fun in functions:
                try:
                    fun(W)
                    seen.append("")
                except (ValueError, np.linalg.LinAlgError) as error:
                    seen.append(str(error))
            assert seen[0] == seen[1]
            assert state(sources[0]) == state(sources[1])
            told.append(seen[0])
        assert len({*told}) == 3


def test_errors_of_draws_are_where_the_function_draws():
    """It may not get there, or catch them."""
    source = np.random.default_rng(0)

    def noisy(w, s):
        return np.sum((w + source.normal(0, s, size=3) if s > 0 else w) ** 2)

    def guarded(w, s):
        if s < 0:
            raise ValueError("no")
        return np.sum(w * source.normal(0, s, size=3))

    def caught(w, s):
        try:
            return np.sum(w * source.normal(0, s, size=3))
        except ValueError:
            return np.sum(w)

    for fun in (noisy, guarded, caught):
        derivative = value_and_grad(fun)
        for s in (0.5, 0.5, 0.5, -1.0, 0.5, 0.5, -1.0):
            before = source.bit_generator.state
            found = []
            for one in (lambda w, s, fun=fun: fun(w, s), lambda w, s, derivative=derivative: derivative(w, s)[0]):
                source.bit_generator.state = before
                try:
                    found.append(one(np.ones(3), s))
                except ValueError as error:
                    found.append(str(error))
                found.append(state(source))
            assert found[1] == found[3]
            assert found[0] == found[2] or found[0] == pytest.approx(found[2])


def test_numbers_of_python_in_loops():
    """Its generators draw but one at a time."""

    def fun(w):
        return sum(v * random.random() for v in w) + sum(v * random.uniform(0.0, 2.0) for v in w)

    derivative, found = grad(fun), []
    for _ in range(5):
        random.seed(0)
        found.append(derivative(np.ones(6)))
    np.testing.assert_allclose(found, [found[0]] * 5)
    assert derivative.cache_info().hits


def test_errors_of_numpy_are_the_functions():
    """Where a generator takes long to tell how to get back, and code raises an error all the same, nothing is drawn anew."""
    source = np.random.RandomState(0)
    derivative = grad(lambda w: np.sum(np.exp(w * 800.0) * source.normal(size=6)))
    for _ in range(4):
        with np.errstate(over="ignore"):
            derivative(W)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        derivative(W)


def test_threads_draw_from_generators_of_their_own():
    derivative = grad(lambda w, r: np.sum((w + r.normal(size=6)) ** 2))
    found = {}

    def work(seed):
        r = np.random.default_rng(seed)
        found[seed] = [derivative(W, r) for _ in range(100)]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, every in found.items():
        r = np.random.default_rng(seed)
        np.testing.assert_allclose(every, [2 * (W + r.normal(size=6)) for _ in range(100)])


def test_readers_see_what_is_drawn():
    source = np.random.default_rng(0)

    def loss(w):
        noise = 0.1 * source.normal(size=6)
        return np.sum((w + noise) ** 2) + sum(source.uniform() * v for v in w)

    derivative = grad(loss)
    for _ in range(3):
        derivative(W)
    text = derivative.source(W)
    assert "def grad_loss(w, normal, uniform)" in text
    assert "source.normal(size=6)" in text
    assert "6 of float (source.uniform())" in text
    assert "drawn anew at each call: source.normal(size=6), source.uniform()" in derivative.explain()
    with pytest.raises(NotExportable, match="draws random numbers"):
        export(derivative, W)


METHODS = {
    "random": (), "standard_normal": (), "normal": (1.0, 2.0), "uniform": (1.0, 2.0), "standard_exponential": (),
    "exponential": (2.0,), "laplace": (), "logistic": (), "lognormal": (), "gumbel": (), "rayleigh": (), "weibull": (1.5,),
    "standard_gamma": (1.3,), "gamma": (1.3,), "beta": (0.5, 2.0), "chisquare": (3,), "standard_t": (4,), "poisson": (3.0,),
    "binomial": (10, 0.3), "geometric": (0.3,),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_many_at_once_are_those_one_after_the_other(kind, name):
    """What a loop draws is drawn at once."""
    for size in (None, 3):

        def fun(w, r, size=size):
            total = 0.0
            for _ in range(30):
                total += np.sum(getattr(r, name)(*METHODS[name], size=size)) * w[0] ** 2
            return total

        derivative = value_and_grad(fun)
        for seed in range(5):
            sources = kind(seed), kind(seed)
            np.testing.assert_allclose(derivative(W, sources[0])[0], fun(W, sources[1]), rtol=1e-12)
            assert state(sources[0]) == state(sources[1])
        assert derivative.cache_info().hits


def relaxing(w, seed):
    r, x = np.random.default_rng(seed), w[0]
    for _ in range(120):
        x = w[1] * x + 0.1 * r.normal()
        if x > 0.2:
            x = x * 0.5
    return x + r.random()


def in_order(w, seed):
    r, x = np.random.default_rng(seed), w[0]
    for _ in range(100):
        x = w[1] * x + 0.1 * r.normal()
    return x * r.random() + r.normal(size=2) @ w[:2]


def noisy_rows(w, seed):
    r, x, other = np.random.RandomState(seed), w[:3], np.random.default_rng(seed)
    for i in range(50):
        noise = r.normal(size=3)
        noise *= 0.1
        x = 0.9 * x + noise
        x = x - w[3] * other.random() if x[0] > 0.1 else x + w[4] * other.random() * (i % 3)
    return np.sum(x)


def walks(w, seed):
    r, total = np.random.default_rng(seed), 0.0
    for _ in range(6):
        x = w[0]
        for _ in range(14):
            x = x * np.exp(0.1 * w[1] * r.normal())
            if x > 1.2:
                x = x - 0.1
        total += max(x - 0.5, 0.0)
    return total / 6


def until(w, seed):
    """How many are drawn hangs on values."""
    r, total = np.random.default_rng(seed), 0.0
    for _ in range(8):
        x = w[0]
        for _ in range(10):
            x = x + 0.3 * r.normal()
            if x > 0.8 + w[1]:
                break
        total += x
    return total


def on_one_side(w, seed):
    r, x = np.random.default_rng(seed), w[0]
    for _ in range(40):
        x = 0.9 * x + 0.1 * r.normal()
        if x > 0.2:
            x = x - 0.2 * r.random()
    return x


def with_a_look(look):
    def fun(w, seed):
        r, x = np.random.default_rng(seed), w[0]
        for i in range(80):
            x = 0.9 * x + 0.1 * r.normal()
            if x > 0.2:
                x = x - 0.1
            if i in (50, 70):
                x = x + look(r)
        return x

    return fun


def of_python(w, seed):
    r, x = random.Random(seed), w[0]
    for _ in range(120):
        x = w[1] * x + 0.1 * r.gauss(0, 1) + 0.01 * r.uniform(-1, 1)
        if x > 0.2:
            x = x * 0.5
    return x + r.random()


def of_python_in_turn(w, seed):
    r, x = random.Random(seed), w[0]
    for i in range(20):
        x = np.tanh(w[1] * x + w[2] * (i if r.random() < 0.5 else r.choice([-1.0, 1.0])))
    return x * r.randint(1, 6)


looked_into = with_a_look(lambda r: r.bytes(1)[0] / 256)
handed_on = with_a_look(lambda r: np.random.Generator(r.bit_generator).random())


def in_batches(w, seed):
    r, p = random.Random(seed), w * 1.0
    for _ in range(60):
        places = [*range(6)]
        r.shuffle(places)
        for i in r.sample(places, 3):
            p = p - 0.1 * (p[i] * w[0] - w[1]) * w[i]
        if p[0] > 0.6:
            p = p * 0.5
    return np.sum(p) + r.random()


def rearranged(w, seed):
    r, kinds, rows = random.Random(seed), ["sin", "cos", "tanh"], [(w[0], 1.0), (w[1], w[2]), (2.0, w[3])]
    alias, x = rows, w[4]
    r.shuffle(rows)
    r.shuffle(kinds)
    alias.append((w[5], r.random()))
    for kind, (a, b) in zip(kinds, rows, strict=False):
        x = getattr(np, kind)(a * x + b)
    some = r.sample(rows, 2) + r.choices(rows, weights=[1, 2, 3, 4], k=3) + [r.choice(rows)]
    for a, b in some + r.sample([], 0):
        x = np.tanh(x + a * b)
    nothing = r.choice([None, 1.0])
    return x + r.random() + (w[0] if nothing is None else nothing)


def folded(w, seed):
    r, x = random.Random(seed), w[0]
    for turn in range(3):
        places = [*range(6)]
        r.shuffle(places)
        mean = sum(w[i] for i in places[:4]) / 4
        x = x * 0.5 + sum((w[i] - mean) ** 2 * turn for i in places[4:])
    return x


OWN = [relaxing, in_order, noisy_rows, walks, until, on_one_side, of_python, of_python_in_turn, looked_into, handed_on]
OWN += [in_batches, rearranged, folded]


@pytest.mark.parametrize("fun", OWN)
def test_what_generators_give_that_the_function_makes(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(9):
        w, seed = np.random.default_rng(k).normal(size=6) * 0.5, 3 if k < 6 else 4
        found, expected = derivative(w, seed), dynamic(w, seed)
        assert found[0] == pytest.approx(fun(w, seed), rel=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9, atol=1e-13)
    if fun not in (until, on_one_side, handed_on):
        assert derivative.cache_info().hits
    if fun in (rearranged, folded):
        assert "dynamic mode" not in derivative.explain()


@pytest.mark.parametrize("fun", [relaxing, of_python])
def test_loops_that_draw_from_their_own_generator_are_loops(fun):
    derivative = value_and_grad(fun)
    for k in range(6):
        derivative(np.random.default_rng(k).normal(size=6) * 0.5, 3)
    assert derivative.cache_info().misses == 3
    assert len(derivative.source(W, 3).splitlines()) < 60
    for k in range(4):  # another seed
        derivative(np.random.default_rng(k).normal(size=6) * 0.5, 5)
    derivative(W, 3)
    assert derivative.cache_info().misses == 6


def test_loops_that_pick_from_sequences_are_loops():
    derivative = value_and_grad(in_batches)
    for k in range(8):
        derivative(np.random.default_rng(k).normal(size=6) * 0.5, 3)
    assert derivative.cache_info().hits
    assert len(derivative.source(W, 3).splitlines()) < 100


def test_readers_see_draws_of_functions_in_dynamic_mode():
    def loss(w):
        np.random.seed()
        total = 0.0
        for i in range(6):
            total = total + np.random.normal() * w[i]
        return total

    derivative = grad(loss)
    derivative(W)
    assert "runs in dynamic mode" in derivative.source(W)


# -- the generators of the modules, which the function seeds ---------------------------------------------------------


def again(p):
    np.random.seed(3)
    z = np.random.randn(5)
    np.random.seed(3)
    return np.sum((z - np.random.randn(5) + p[0]) ** 2) + np.random.rand() * p[1]


def before_and_after(p):
    z = np.random.rand()
    np.random.seed(7)
    return (p[0] * z + p[1] * np.random.normal(1.0, 2.0)) ** 2


def in_loops(p):
    np.random.seed(0)
    random.seed(1)
    y, total = p[0], 0.0
    for _ in range(40):
        y = 0.9 * y + p[1] * np.random.randn()
        total += y * y * random.gauss(0, 1)
    return total


def by_turns(p):
    total = 0.0
    for k in range(40):
        if k % 10 == 0:
            np.random.seed(k)
        total = total + p[0] * np.random.randn() * p[1]
    return total


def other_seeds(p):
    random.seed("abc")
    np.random.seed(seed=[1, 2, 3])
    x = np.arange(6.0)[np.random.permutation(6)]
    return np.sum(x * p[0]) + x[0] * p[1] * random.random()


def for_others(p):
    np.random.seed(0)
    return p[0] * p[1]


def states():
    kind, keys, *rest = np.random.get_state()
    return kind, keys.tobytes(), rest, random.getstate()


@pytest.mark.parametrize("fun", [again, before_and_after, in_loops, by_turns, other_seeds, for_others])
def test_seeds_of_the_modules_generators(fun):
    """What they give, and where they are in the end."""
    derivative = value_and_grad(fun)
    runs = [fun, value_and_grad(fun, mode="dynamic"), derivative]
    for k, p in enumerate(np.array([[0.5, 0.3], [0.6, 0.1], [0.3, 0.9], [0.2, 0.2]])):
        found = []
        for run in runs:
            np.random.seed(100 + k)
            random.seed(k)
            found.append((run(p), states()))
        (value, end), ((_, slope), _), ((mine, gradient), _) = found
        assert [other for _, other in found] == [end] * 3
        np.testing.assert_allclose(mine, value, rtol=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-13)
    assert derivative.cache_info().hits


def test_a_seed_that_is_refused():
    def fun(x, seed):
        np.random.seed(seed)
        return x * np.random.rand()

    derivative = grad(fun)
    for _ in range(3):
        assert derivative(2.0, 5) == pytest.approx(np.random.RandomState(5).rand())
        with pytest.raises(ValueError, match="Seed must be between"):
            derivative(2.0, -1)


def lowest_of_each_path(p):
    total, rng = 0.0, np.random.default_rng(123)
    for _ in range(30):
        s, low = 100.0, 100.0
        for _ in range(20):
            s = s * np.exp(p[0] * rng.standard_normal())
            if s < low:
                low = s
        if low > p[1]:
            total += s
    return total / 30


def numbers_of_the_path_as_well(p):
    total, rng = 0.0, np.random.default_rng(1)
    for _ in range(20):
        s = 1.0 + 0.1 * rng.random()
        for _ in range(30):
            s = s * 0.9 + 0.1 * rng.normal() * p[0]
            if s < 0.3:
                s = s + 0.5
        if s > p[1] / 100:
            total += s
    return total


def left_early(p):
    total, rng = 0.0, np.random.default_rng(1)
    for _ in range(20):
        s = 1.0
        for _ in range(30):
            s = s * 0.9 + rng.normal() * p[0]
            if s < p[1] / 100 - 1:
                break
        total += s
    return total


@pytest.mark.parametrize("fun", [lowest_of_each_path, numbers_of_the_path_as_well, left_early])
def test_paths_in_a_loop_that_decide(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k in range(7):
        p = np.array([0.05 + 0.01 * k, 80.0 + 2 * k])
        (value, slope), (_, other) = derivative(p), dynamic(p)
        assert value == pytest.approx(fun(p), rel=1e-11)
        np.testing.assert_allclose(slope, other, rtol=1e-8, atol=1e-11)
    assert fun is left_early or derivative.cache_info().misses <= 5
