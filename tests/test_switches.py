"""``without``: optimisations are switched off for what is made within."""

import threading
from contextlib import nullcontext

import numpy as np
import pytest

import symgrad


def f(x):
    return np.sum(x * x + 0.0)


X = np.arange(3.0)


def test_unknown_name():
    with (
        pytest.raises(ValueError, match="there is no optimisation 'speed'; there are loops, share, simplify"),
        symgrad.without("speed"),
    ):
        pass


def test_what_is_made_within_stays_plain():
    with symgrad.without():
        plain = symgrad.grad(f)
    full = symgrad.grad(f)
    assert plain.source(X, fast=True) != full.source(X, fast=True)
    assert [plain(X).tolist() for _ in range(3)] == [full(X).tolist() for _ in range(3)]
    plain.cache_clear()
    assert plain.source(X, fast=True) != full.source(X, fast=True)


def test_blocks_add_up():
    with symgrad.without("simplify"), symgrad.without("buffers"):
        both = symgrad.grad(f)
    with symgrad.without("simplify", "buffers"):
        assert symgrad.grad(f).source(X, fast=True) == both.source(X, fast=True)


def test_other_threads_keep_theirs():
    sources = []
    with symgrad.without("simplify"):
        thread = threading.Thread(target=lambda: sources.append(symgrad.grad(f).source(X)))
        thread.start()
        thread.join()
    assert sources == [symgrad.grad(f).source(X)]


@symgrad.custom_vjp
def passed_on(x):
    return x


passed_on.defvjp(lambda x: (x, None), lambda _, g: (g,))


@pytest.mark.parametrize("off", [(), ("simplify",), ("simplify", "loops"), ("loops",)])
def test_memory_behind_custom_functions(off):
    """A custom function may return its argument: its buffer must not be written while either is alive, decided on or not."""

    def branchy(x):
        s = np.sin(x)
        y = passed_on(s)
        z = np.cos(y * 3.0)
        return np.sum(y * z) if np.sum(z + y * s) > 0 else np.sum(s**3 * y)

    def loopy(x):
        for _ in range(6):
            x = passed_on(np.sin(x)) * 2.0
        return np.sum(x)

    with symgrad.without(*off) if off else nullcontext():
        derivatives = [symgrad.grad(f) for f in (branchy, loopy)]
    for derivative, function in zip(derivatives, (branchy, loopy), strict=True):
        expected = symgrad.grad(function, mode="dynamic")
        for x in (X, X - 2.0, X):
            for _ in range(3):
                np.testing.assert_allclose(derivative(x), expected(x), rtol=1e-13, atol=1e-15)
