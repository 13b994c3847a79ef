"""``checkpoint``: the same derivatives from less memory."""

import tracemalloc

import numpy as np
import pytest

from symgrad import checkpoint, grad, hessian, hvp, jacfwd, jacobian, jvp, linearize, value_and_grad, vjp, vmap, without

X = np.array([0.5, -1.25, 2.0, 0.75])
W = np.random.default_rng(0).normal(size=(4, 4)) / 2


def wave(x):
    for _ in range(3):
        x = np.sin(x) * 1.1 + 0.1 * np.tanh(x)
    return x


def twice(part):
    return lambda x: np.sum(part(part(x)) ** 2)


def close(found, expected):
    np.testing.assert_allclose(found, expected, 1e-11, 1e-13)


@pytest.mark.parametrize("kind", [grad, hessian, jacobian, jacfwd])
def test_derivatives_are_the_same(kind):
    ours, theirs = kind(twice(checkpoint(wave))), kind(twice(wave))
    for _ in range(3):
        close(ours(X), theirs(X))
    close(kind(twice(checkpoint(wave)), mode="dynamic")(X), theirs(X))
    with without():
        ours = kind(twice(checkpoint(wave)))
        for _ in range(3):
            close(ours(X), theirs(X))


def test_values_are_the_same():
    close(checkpoint(wave)(X), wave(X))
    value, slope = value_and_grad(twice(checkpoint(wave)))(X)
    close(value, twice(wave)(X))
    close(slope, grad(twice(wave))(X))


def test_products_with_derivatives():
    ours, theirs = twice(checkpoint(wave)), twice(wave)
    close(jvp(ours, (X,), (X,)), jvp(theirs, (X,), (X,)))
    close(vjp(ours, X)[1](2.0), vjp(theirs, X)[1](2.0))
    close(linearize(ours, X)[1](X), linearize(theirs, X)[1](X))
    for _ in range(3):
        close(hvp(ours)(X, X), hvp(theirs)(X, X))
    third = grad(lambda x: np.sum(grad(lambda x: np.sum(grad(ours)(x) ** 2))(x) ** 2))
    close(third(X), grad(lambda x: np.sum(grad(lambda x: np.sum(grad(theirs)(x) ** 2))(x) ** 2))(X))


def test_squares_of_roots_made_outside():
    squares = lambda r: np.sin(r * r) + r**2
    part = checkpoint(squares)
    for root in (np.abs, lambda x: np.hypot(x, 1.0), lambda x: np.sqrt(1 + x * x)):
        fun, plain = lambda x, root=root: part(root(x)), lambda x, root=root: squares(root(x))
        derivative, slope = jacfwd(fun), jacobian(plain)(X)
        for _ in range(3):
            close(derivative(X), slope)
            close(jvp(fun, (X,), (X,))[1], slope @ X)


def chosen_logarithms(part):
    return lambda x: np.sum(np.where(x > 0, part(x), 0.0) ** 2)


def logarithms_of_chosen(part):
    inner = lambda y: part(np.where(y > 1.0, y, 1.0)) * np.sqrt(np.abs(y))
    return lambda x: np.sum(np.where(x > 0.5, inner(np.sqrt(x)), 1.0))


def picked_logarithms(part):
    return lambda x: np.sum(part(x)[x > 0])


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value):RuntimeWarning")
@pytest.mark.parametrize("make", [chosen_logarithms, logarithms_of_chosen, picked_logarithms])
@pytest.mark.parametrize("kind", [grad, hessian, jacfwd])
def test_poles_that_are_not_chosen(make, kind):
    x = np.array([0.0, 1.0, 2.0, -1.0, 0.0])
    logarithm = lambda y: np.log(y) * np.sqrt(y)
    ours, theirs = make(checkpoint(logarithm)), make(logarithm)
    expected = kind(theirs, mode="dynamic")(x)
    assert np.all(np.isfinite(expected))
    derivative = kind(ours)
    for _ in range(3):
        close(derivative(x), expected)


def test_it_is_computed_once_more():
    ours, plain = (str(grad(twice(part)).source(X)) for part in (checkpoint(wave), wave))
    assert ours.count("# once more") == 2
    assert ours.count("np.tanh(") - plain.count("np.tanh(") == 6


def test_what_is_read_from_outside():
    def loss(gate):
        def fun(w, x):
            layer = gate(lambda z: np.tanh(z @ w) * np.sum(w))
            return np.sum(layer(layer(x)))

        return fun

    ours, theirs = grad(loss(checkpoint), (0, 1)), grad(loss(lambda fun: fun), (0, 1))
    for _ in range(3):
        for found, expected in zip(ours(W, X), theirs(W, X), strict=True):
            close(found, expected)
    scale = 1.0
    scaled = grad(lambda x: np.sum(checkpoint(lambda x: scale * np.sin(x))(x)))
    for _ in range(3):
        close(scaled(X), np.cos(X))
    scale = 2.0
    close(scaled(X), 2 * np.cos(X))


def shifted(x):
    b = np.zeros(4)
    b[1:] = x[:-1]
    return np.sin(b * np.arange(1.0, 5.0)) + np.linspace(0.0, 1.0, 4)


@pytest.mark.parametrize("kind", [grad, hessian, jacfwd])
def test_arrays_made_inside(kind):
    """Plain ones, and those that are written into."""
    ours, theirs = kind(twice(checkpoint(shifted))), kind(twice(shifted))
    for _ in range(4):
        close(ours(X), theirs(X))
    assert ours.cache_info().hits == 2
    close(kind(twice(checkpoint(shifted)), mode="dynamic")(X), theirs(X))
    close(vmap(ours)(np.stack([X, -X])), np.stack([theirs(X), theirs(-X)]))


def test_nested():
    inner = checkpoint(wave)
    ours, theirs = twice(checkpoint(lambda x: inner(inner(x)))), twice(lambda x: wave(wave(x)))
    for _ in range(3):
        close(grad(ours)(X), grad(theirs)(X))
        close(hessian(ours)(X), hessian(theirs)(X))


def test_batched():
    rows = np.stack([X, -X, X * 0.5])
    ours, theirs = twice(checkpoint(wave)), np.stack([grad(twice(wave))(row) for row in rows])
    within = grad(lambda x: np.sum(vmap(ours)(x)))
    for _ in range(3):
        close(vmap(grad(ours))(rows), theirs)
        close(within(rows), theirs)
    assert "# once more" in within.source(rows)


def repeated(part, n=20):
    def fun(x):
        y = x * 0.5
        for _ in range(n):
            y = part(y, x)
        return np.sum(y)

    return fun


def test_in_loops():
    step = lambda y, x: np.tanh(np.sin(y @ W) * x) + 0.1 * y
    ours, theirs = grad(repeated(checkpoint(step))), grad(repeated(step))
    for _ in range(3):
        close(ours(X), theirs(X))
    text = ours.source(X)
    assert "for " in text
    assert text.count(".append(") == 1  # what each iteration begins with, and nothing that it computes


def test_loops_inside():
    def part(x):
        for _ in range(20):
            x = x + 0.1 * np.sin(x @ W)
        return x

    ours, theirs = twice(checkpoint(part)), twice(part)
    for _ in range(3):
        close(grad(ours)(X), grad(theirs)(X))


def test_branches_inside():
    def part(x):
        return np.sin(x) if np.sum(x) > 0 else x * x

    ours = grad(twice(checkpoint(part)))
    for x in (X, -X, X, -X, X - 3.0, X - 3.0, X - 3.0):
        close(ours(x), grad(twice(part))(x))


@pytest.mark.parametrize("derivative", [jacfwd, hessian, lambda fun: jacfwd(grad(fun)), lambda fun: jacfwd(jacfwd(fun))])
def test_branches_inside_loops(derivative):
    """What both sides begin with is computed before the ``if``, out of the checkpoint's sight."""

    def steps(part):
        def fun(x, n):
            for _ in range(n):
                x = part(x)
            return np.sum(x * x)

        return fun

    part = lambda x: np.tanh(x @ mix) if x[0] > 0 else np.sin(x @ mix)
    mix = np.random.default_rng(3).normal(size=(3, 3))
    x = np.array([0.5, -0.3, 0.8])
    ours, theirs = derivative(steps(checkpoint(part))), derivative(steps(part))
    for n in (4, 5, 5, 12, 5):
        close(ours(x, n), theirs(x, n))


class Layer:
    def __init__(self, w):
        self.w = w

    @checkpoint
    def __call__(self, x, *, bias=0.0):
        return {"out": np.tanh(x @ self.w + bias), "name": "layer"}


def test_methods_keywords_and_trees():
    layer = Layer(W)
    fun = lambda x: np.sum(layer(layer(x, bias=x)["out"])["out"])
    plain = lambda x: np.sum(np.tanh(np.tanh(x @ W + x) @ W))
    for _ in range(3):
        close(grad(fun)(X), grad(plain)(X))
    assert layer(X)["name"] == "layer"


def test_what_takes_no_derivative():
    fun = lambda x: np.sum(checkpoint(lambda x, n: (x * n, n + 1, np.argmax(x), None))(x, 2)[0])
    for _ in range(3):
        close(grad(fun)(X), np.full(4, 2.0))
    close(grad(lambda x: np.sum(checkpoint(lambda x: 1.0)(x) * x))(X), np.ones(4))
    close(grad(lambda x: np.sum(checkpoint(lambda x: x)(x) ** 2))(X), 2 * X)
    view = checkpoint(lambda x: x[1:])
    close(grad(lambda x: np.sum(view(x * 1.0) ** 2))(X), [0, *(2 * X[1:])])


def peak(function, x):
    for _ in range(3):
        function(x)
    tracemalloc.start()
    try:
        function(x)
        return tracemalloc.get_traced_memory()[1] / x.nbytes
    finally:
        tracemalloc.stop()


def test_memory():
    """Of 25 values, 5 are kept between the parts, and those of one part."""
    part = lambda x: [x := np.sin(x) + x * x * 0.1 for _ in range(5)][-1]

    def chain(part):
        def fun(x):
            for _ in range(5):
                x = part(x)
            return np.sum(x)

        return fun

    x = np.linspace(-1, 1, 20_000)
    with without("blocks", "pool"):
        plain, ours = grad(chain(part)), grad(chain(checkpoint(part)))
        close(ours(x), plain(x))
        assert peak(ours, x) < 0.6 * peak(plain, x)
