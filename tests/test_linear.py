"""``vjp``, ``jvp`` and ``linearize``: compiled as ``grad`` is, and what they return stays what it was at the point."""

import functools
import gc
import threading

import numpy as np
import pytest
from ops_samples import DIFFERENTIABLE, close, dot, some

import symgrad
from symgrad import compile, custom_jvp, custom_vjp, grad, hessian, jvp, linearize, vjp, vmap
from symgrad.errors import EscapedTracer
from symgrad.ops import create
from symgrad.transform.linear import LinearMap

pytestmark = [
    pytest.mark.usefixtures("sharing"),
    pytest.mark.filterwarnings("ignore:.*fix:DeprecationWarning"),  # NumPy 2.5 deprecates np.fix
]

X = np.array([0.3, -1.2, 2.0, 0.7])
V = np.array([1.0, -0.5, 0.25, 2.0])
W = np.cos(np.arange(16.0)).reshape(4, 4)


def traced():
    """How many calls were traced so far, of those that share their code."""
    return sum(compiler.misses for compiler in compile._shared.values())


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op is not create.FULL], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_of_all_operations(op, dtype):
    """In dynamic mode, traced twice, then compiled: pullbacks and pushforwards are those of dynamic mode at each call."""
    for case in some(op, dtype) if dtype == np.float64 or op.complex else ():
        compile._shared.clear()
        fun = lambda *xs, case=case: case(*xs)
        weights, tangents = case.like(case.outputs), case.tangents()
        everything = tuple(range(len(case.primals)))
        expected = grad(lambda *xs: dot(weights, case(*xs)), everything, mode="dynamic")(*case.primals)  # noqa: B023
        for turn in range(5):
            before = traced()
            out, pullback = vjp(fun, *case.primals)
            same, pushforward = linearize(fun, *case.primals)
            value, pushed = jvp(fun, case.primals, tangents)
            assert turn < 3 or traced() == before
            for one in (out, same, value):
                close(one, case.outputs, 1e-11, f"value, call {turn}")
            close(case.symmetric(pullback(weights)), case.symmetric(expected), 1e-11, f"pullback, call {turn}")
            close(pushforward(*tangents), pushed, 1e-11, f"pushforward, call {turn}")
            close([dot(weights, pushed)], [dot(expected, tangents)], 1e-9, "both")


def branches(x):
    if x[0] > 0:
        return np.sin(x) * x.sum()
    return np.exp(-x) @ W


def several(x):
    h = np.tanh(W @ x)
    return {"h": h, "loss": np.sum(h**2), "count": 3, "sign": h > 0}


def rolled(x):
    h = x
    for _ in range(40):
        h = np.tanh(W @ h) + h * x * 0.1
    return h


def scalars(x):
    a, b = x[0], x[1]
    for i in range(60):
        a, b = a + 0.01 * b * np.sin(i * 0.1), b - 0.01 * a
    return a * b


def until(x):
    """A loop that runs as often as its values say."""
    h, n = x, 0
    while np.sum(h * h) > 1e-3 and n < 60:
        h, n = h * 0.8 + 0.05 * np.sin(h), n + 1
    return h * n


def newton(x):
    a, target = x[2] ** 2 + 1.0, x[3] ** 2 + 1.0
    while abs(a * a - target) > 1e-5:
        a = (a + target / a) / 2.0
    return a


def filled(x):
    table = np.zeros((5, 4))
    for i in range(5):
        table[i] = x * i + table[i - 1] ** 2
    return table


def nested(x):
    return grad(lambda t: np.sum(np.sin(t) * x[0] * t**2))(x)


FUNCTIONS = [
    branches, several, rolled, scalars, until, newton, filled, nested,
    lambda x: x,
    lambda x: 3.0,
    lambda x: (x[0], x[1:], x[::-1].T),
    lambda x: np.sort(x) * np.where(x > 0, np.sqrt(np.abs(x)), 0.0),
    lambda x: np.unique(np.round(x, 3)) * x,
    lambda x: np.outer(x, x)[np.outer(x, x) > 0],
    lambda x: np.linalg.solve(W @ W.T + np.eye(4), x),
    lambda x: x.reshape(2, 2) @ np.broadcast_to(x[:2], (3, 2)).T,
    lambda x: np.fft.rfft(x),
]  # fmt: skip


def leaves(tree):
    if isinstance(tree, (dict, tuple, list)):
        return [leaf for item in (tree.values() if isinstance(tree, dict) else tree) for leaf in leaves(item)]
    return [tree]


@pytest.mark.parametrize("fun", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_at_many_points(fun, dtype):
    """At points that take turns: as a run by itself gives it, ``<w, J v> = <J' w, v>``, and as differences have it."""
    rng = np.random.default_rng(0)
    points = [(rng.normal(size=4) + X).astype(dtype) for _ in range(3)]
    tight, loose = (1e-5, 1e-3) if dtype == np.float32 else (1e-12, 1e-9)
    for turn in range(15):
        x = points[turn % 3 if turn < 9 else 0]
        v = rng.normal(size=4).astype(dtype)
        out, pullback = vjp(fun, x)
        value, pushforward = linearize(fun, x)
        w = {k: _like(o, rng) for k, o in out.items()} if type(out) is dict else _like(out, rng)
        (g,), t = pullback(w), pushforward(v)
        for one, other in zip(leaves([out, jvp(fun, (x,), (v,))]), leaves([value, value, t]), strict=True):
            np.testing.assert_allclose(one, other, rtol=tight, atol=tight)
        assert type(g) is np.ndarray
        assert (g.shape, g.dtype) == (x.shape, x.dtype)
        left = sum(np.sum(np.real(np.conj(a) * b)) for a, b in zip(leaves(w), leaves(t), strict=True) if np.ndim(b) or b)
        np.testing.assert_allclose(left, np.sum(g * v), rtol=loose, atol=loose)
        np.testing.assert_allclose(pullback(w)[0], g, rtol=tight, atol=tight)
        if dtype == np.float64 and turn in (0, 8):
            step = [np.asarray(o, complex if np.iscomplexobj(o) else float) for o in leaves(fun(x + 1e-6 * v))]
            back = [np.asarray(o, complex if np.iscomplexobj(o) else float) for o in leaves(fun(x - 1e-6 * v))]
            for a, b, c in zip(step, back, leaves(t), strict=True):
                np.testing.assert_allclose((a - b) / 2e-6, c, atol=1e-5)


def _like(out, rng):
    if type(out) is tuple:
        return tuple(_like(part, rng) for part in out)
    made = rng.normal(size=np.shape(out))
    if isinstance(out, (bool, int)) or np.result_type(out).kind in "bi":
        return np.zeros(np.shape(out))[()]
    return made.astype(np.result_type(out)) if np.ndim(out) else type(out)(made)


def test_is_compiled_at_the_third_call():
    """The function runs in three calls; those of functions of the same code made anew run what is compiled."""
    loss = lambda batch: lambda w: np.tanh(batch @ w)

    for i in range(5):
        before = traced()
        out, pullback = vjp(loss(W + i), X)
        np.testing.assert_allclose(out, np.tanh((W + i) @ X), rtol=1e-14)
        np.testing.assert_allclose(pullback(V)[0], (W + i).T @ (V * (1 - out**2)), rtol=1e-10)
        _, pushforward = linearize(loss(W + i), X)
        np.testing.assert_allclose(pushforward(V), ((W + i) @ V) * (1 - out**2), rtol=1e-10)
        np.testing.assert_allclose(jvp(loss(W + i), (X,), (V,))[1], ((W + i) @ V) * (1 - out**2), rtol=1e-10)
        assert (traced() > before) == (i < 3)


@pytest.mark.parametrize("fun", [rolled, until, newton, filled])
def test_loops_run_once(fun):
    """The value of ``jvp`` is what the loop with tangents computes beside them; so it is where other operations read it."""
    for outer in (fun, lambda x: np.sum(fun(x)) * 2.0):
        pushed = symgrad.api._make("jvp", outer, has_aux=False)
        lines = [line.split()[0] for line in str(pushed.source((X,), (V,))).splitlines() if line.strip()]
        assert len([word for word in lines if word in ("for", "while")]) == 1
        for _ in range(4):
            out, t = pushed((X,), (V,))
            np.testing.assert_allclose(out, outer(X), rtol=1e-13)
            np.testing.assert_allclose(np.sum(V * grad(lambda x: np.sum(outer(x)))(X)), np.sum(t), rtol=1e-9)  # noqa: B023


def test_rows_are_saved_in_their_place():
    """What a loop saves for the pullback is written into one array, which is not copied."""
    w = np.cos(np.arange(1600.0)).reshape(40, 40) * 0.1
    pulled = symgrad.api._make("vjp", lambda x: functools.reduce(lambda h, _: np.tanh(h @ w) + h, range(30), x), has_aux=False)
    for _ in range(5):
        pulled(w)
    code = str(pulled.source(w, fast=True))
    assert "np.array(" not in code
    assert "for " in code


@pytest.mark.parametrize("turns", [1, 2, 5])
@pytest.mark.parametrize("fun", [np.exp, lambda x: x * x, rolled, lambda x: np.sum(x**3), lambda x: W.T @ x])
def test_is_of_the_point_for_good(fun, turns):
    """What happens later to argument, output, cotangent or result changes no pullback."""
    for _ in range(turns):
        x = X.copy()
        out, pullback = vjp(fun, x)
        value, pushforward = linearize(fun, x)
    w = np.ones_like(out)
    (expected,), tangent = pullback(w), pushforward(V)
    for spoilt in (x, out, value):
        if isinstance(spoilt, np.ndarray):
            spoilt[...] = np.nan
    for _ in range(6):
        (g,), t = pullback(w), pushforward(V)
        np.testing.assert_allclose(g, expected, rtol=1e-12)
        np.testing.assert_allclose(t, tangent, rtol=1e-12)
        for mine in (g, t):
            if isinstance(mine, np.ndarray):
                assert mine.flags.writeable
                mine[...] = np.nan


def test_is_of_the_point_where_nothing_is_compiled():
    """In dynamic mode, and where the function is run again for each tangent."""

    def rule(xs, ts):
        return xs[0] * xs[0], xs[0] * ts[0] * (2.0 if np.sum(ts[0]) > 0 else 2)

    scaled, noted = custom_jvp(lambda x: x * x).defjvp(rule), []

    def fun(x):
        noted.append(float(len(noted)))
        return scaled(x[::-1]) + x * x * noted[-1]

    for turn in range(5):
        x = X.copy()
        out, pullback = vjp(fun, x)
        _, pushforward = linearize(scaled, x)
        x[...] = out[...] = np.nan
        np.testing.assert_allclose(pullback(V)[0], 2 * X * V[::-1] + 2 * turn * X * V)
        np.testing.assert_allclose(pushforward(V), 2 * X * V)


def test_pushforwards_of_runs_by_themselves():
    """They are of their own run, are differentiated too, and go, with all they keep, when nobody holds them."""
    noted = []

    def fun(x):
        noted.append(float(len(noted)))
        return np.sin(W @ x) * noted[-1]

    for turn in range(5):
        _, pushforward = linearize(fun, X)
        matrix = turn * np.cos(W @ X)[:, None] * W
        for _ in range(2):
            np.testing.assert_allclose(pushforward(V), matrix @ V, rtol=1e-12)
            np.testing.assert_allclose(grad(lambda v: np.sum(pushforward(v)))(V), matrix.sum(0), rtol=1e-12)  # noqa: B023
            np.testing.assert_allclose(vmap(pushforward)(np.eye(4)), matrix.T, rtol=1e-12)
    gc.collect()
    gc.disable()
    try:
        maps = lambda: sum([type(one) is LinearMap for one in gc.get_objects()])
        before = maps()
        for _ in range(20):
            linearize(fun, X)[1](V)
        gc.collect()  # those of a trace, which looks again now and then whether there is anything to compile, go in circles
        assert maps() == before
    finally:
        gc.enable()


def test_state_is_read_at_the_point():
    scale = {"by": 2.0}

    def fun(x):
        return x * scale["by"] ** 2

    for _ in range(6):
        for by in (2.0, 3.0):
            scale["by"] = by
            _, pullback = vjp(fun, X)
            _, pushforward = linearize(fun, X)
            scale["by"] = 100.0
            np.testing.assert_allclose(pullback(V)[0], V * by**2)
            np.testing.assert_allclose(pushforward(V), V * by**2)


@pytest.mark.parametrize("given", [1, True, 2.0, np.float32(2.0), np.float64(2.0), np.array(2.0)])
def test_cotangents_of_any_kind(given):
    """They become of their output's kind and dtype, as those of a fresh run."""
    for _ in range(6):
        out, pullback = vjp(lambda x, s: np.sum(x * s), X, 3.0)
        assert type(out) is np.float64
        g, s = pullback(given)
        np.testing.assert_allclose(g, 3.0 * given * np.ones(4))
        assert type(s) is float
        out, pullback = vjp(lambda a, b: a * b, 3.0, 5.0)
        assert type(out) is float
        found = pullback(given)
        assert found == (5.0 * given, 3.0 * given)
        assert [type(g) for g in found] == [float, float]


def test_errors():
    for _ in range(6):
        out, pullback = vjp(several, X)
        with pytest.raises(TypeError, match=r"the cotangent has the structure .*, its output"):
            pullback(out["h"])
        with pytest.raises(ValueError, match=r"a cotangent has shape \(3,\), its output \(4,\)"):
            pullback({**out, "h": np.ones(3)})
        _, pushforward = linearize(several, X)
        with pytest.raises(ValueError, match=r"a tangent has shape \(3,\), its primal \(4,\)"):
            pushforward(np.ones(3))
        with pytest.raises(TypeError, match="the tangent has the structure"):
            pushforward(X, X)
        with pytest.raises(ValueError, match=r"a tangent has shape \(3,\), its primal \(4,\)"):
            jvp(several, (X,), (np.ones(3),))
        with pytest.raises(TypeError, match="the tangent has the structure"):
            jvp(several, (X,), ([X],))
        with pytest.raises(TypeError, match=r"jvp takes a tuple of primals and one of tangents, not float 3\.0"):
            jvp(np.sin, 3.0, 1.0)


@pytest.mark.parametrize("kind", ["object", "U1", "M8[D]", "m8[s]", [("re", float)], complex])
def test_what_is_no_direction(kind):
    """NumPy would make numbers of it, NaN of None too; and what is real does not move along the imaginary axis."""
    given = np.zeros(4, complex) + 1j if kind is complex else np.full(4, None) if kind == "object" else np.zeros(4).astype(kind)
    for _ in range(6):
        pushforward, pullback = linearize(np.sin, X)[1], vjp(np.sin, X)[1]
        for call in (lambda: jvp(np.sin, (X,), (given,)), lambda: pushforward(given), lambda: pullback(given)):  # noqa: B023
            with pytest.raises(TypeError, match=r"a (co)?tangent has dtype"):
                call()


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_those_of_a_call_that_has_ended(mode):
    """Nothing is left of what was recorded within it, which is said."""
    kept = []

    def fun(x):
        kept[:] = [vjp(branches, x)[1], linearize(branches, x)[1]]
        return np.sum(kept[0](V)[0] * kept[1](V))

    for _ in range(5):
        grad(fun, mode=mode)(X)
        for one in kept:
            with pytest.raises(EscapedTracer, match="after the call that made it has ended"):
                one(V)


def test_aux_and_more_arguments():
    def fun(params, x, *rest):
        return np.sum(params["w"] * x) + rest[0], {"x": x, "n": len(rest), "name": "aux"}

    for _ in range(6):
        out, pullback, aux = vjp(fun, {"w": V}, X, 2.0, has_aux=True)
        np.testing.assert_equal((out, aux), (V @ X + 2.0, {"x": X, "n": 1, "name": "aux"}))
        np.testing.assert_equal(pullback(1.0), ({"w": X}, V, 1.0))
        np.testing.assert_equal(jvp(fun, ({"w": V}, X, 2.0), ({"w": X}, V, 0.5), has_aux=True)[1:], (V @ V + X @ X + 0.5, aux))


@pytest.mark.parametrize("turns", [1, 2, 3, 4])
def test_pullbacks_are_differentiated(turns):
    """A pullback, made outside, is a linear function that may be traced itself."""
    for _ in range(turns):
        _, pullback = vjp(branches, X)
        _, pushforward = linearize(branches, X)
    for _ in range(5):
        matrix = np.array([pullback(row)[0] for row in np.eye(4)])
        np.testing.assert_allclose(grad(lambda w: np.sum(pullback(w)[0] ** 2))(V), 2 * matrix @ (matrix.T @ V), rtol=1e-12)
        np.testing.assert_allclose(vmap(lambda w: pullback(w)[0])(np.eye(4)), matrix, rtol=1e-14)
        np.testing.assert_allclose(vmap(pushforward)(np.eye(4)).T, matrix, rtol=1e-12)
        np.testing.assert_allclose(hessian(lambda w: np.sum(pushforward(w) ** 2))(V), 2 * matrix.T @ matrix, rtol=1e-12)
        np.testing.assert_allclose(vjp(lambda x: vjp(np.sin, x)[1](V)[0], X)[1](V)[0], -np.sin(X) * V * V, rtol=1e-12)


def test_rules_of_ones_own():
    clipped = custom_vjp(lambda x: x * 3.0).defvjp(lambda x: (x * 3.0, x), lambda x, g: (np.clip(g, -1.0, 1.0) * x,))
    for _ in range(6):
        _, pullback = vjp(lambda x: clipped(np.sin(x)), X)
        for w in (V, 0.1 * V):
            np.testing.assert_allclose(pullback(w)[0], np.clip(w, -1, 1) * np.sin(X) * np.cos(X), rtol=1e-13)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_rules_that_keep_a_pullback(mode):
    """What they keep goes with the call."""
    part = lambda x: np.sum(np.sin(x) * x)
    fun = custom_vjp(part).defvjp(lambda x: vjp(part, x), lambda pullback, g: pullback(g))
    for scale in (1.0, 2.0, 0.5, 1.0, 3.0, 0.1):
        x = scale * X
        _, pullback = vjp(lambda x: 2.0 * fun(x), x)
        for w in (1.0, -3.0):
            np.testing.assert_allclose(pullback(w)[0], 2.0 * w * (np.cos(x) * x + np.sin(x)), rtol=1e-13)
        np.testing.assert_allclose(grad(fun, mode=mode)(x), np.cos(x) * x + np.sin(x), rtol=1e-13)
    del pullback
    gc.collect()
    assert len(fun._ops) <= 2


def test_rules_that_look_at_the_cotangent():
    def backward(x, g):
        return (g * (2.0 if np.sum(g) > 0 else 5.0),)

    fun = custom_vjp(lambda x: x * 3.0).defvjp(lambda x: (x * 3.0, x), backward)
    for _ in range(6):
        _, pullback = vjp(lambda x: fun(np.sin(x)), X)
        for w, factor in ((V, 2.0), (-V, 5.0), (V, 2.0)):
            np.testing.assert_allclose(pullback(w)[0], factor * w * np.cos(X), rtol=1e-13)


def test_what_masks_hide_raises_no_warning():
    x = np.array([0.0, 1.0, 4.0, 0.0])
    for _ in range(6):
        for fun in (lambda x: np.where(x > 0, np.sqrt(x), 7.0), lambda x: np.where(x > 0, np.exp(np.sqrt(x)) * x**0.3, 0.0)):
            _, pullback = vjp(fun, x)
            _, pushforward = linearize(fun, x)
            for w in (V, 0 * V, V * [0, 1, 0, 1]):
                assert np.all(np.isfinite(pullback(w)[0]))
                assert np.all(np.isfinite(pushforward(w)))
                assert np.all(np.isfinite(jvp(fun, (x,), (w,))[1]))


def test_in_threads():
    found = [None] * 8

    def work(k):
        for i in range(40):
            w = W * (k + 1) + i
            out, pullback = vjp(lambda x: np.tanh(w @ x * 0.01), X)  # noqa: B023
            expected = 0.01 * w.T @ (V * (1 - out**2))
            if not np.allclose(pullback(V)[0], expected, rtol=1e-12):
                found[k] = (k, i)
                return
        found[k] = "right"

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["right"] * 8
