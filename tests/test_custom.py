"""Rules of the user's own, written as they are for other libraries."""

import copy
import functools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pytest

from symgrad import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    export,
    grad,
    hessian,
    jacobian,
    jvp,
    primitive,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from symgrad.errors import NotDifferentiable

X = np.array([0.3, -0.7, 1.2])


@custom_vjp
def wave(x, y=2.0):
    return np.sin(x) * y


def _wave_forwards(x, y=2.0):
    return wave(x, y), (np.cos(x), np.sin(x), y)


wave.defvjp(_wave_forwards, lambda kept, g: (kept[0] * kept[2] * g, kept[1] * g))


@custom_vjp
def cents(x):
    return np.round(x * 100.0) / 100.0


cents.defvjp(lambda x: (cents(x), cents(x)), lambda found, g: (found**2 * g,))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_forward_rules_that_call_the_function(mode):
    slope, twice = grad(wave, argnums=(0, 1), mode=mode), grad(grad(wave), mode=mode)
    for _ in range(4):
        np.testing.assert_allclose(slope(0.5, 3.0), (3.0 * np.cos(0.5), np.sin(0.5)))
        np.testing.assert_allclose(twice(0.5, 3.0), -3.0 * np.sin(0.5))
    np.testing.assert_allclose(vmap(grad(wave), (0, None), mode=mode)(X, 3.0), 3.0 * np.cos(X))
    np.testing.assert_allclose(hessian(lambda x: np.sum(wave(x, 3.0)), mode=mode)(X), np.diag(-3.0 * np.sin(X)))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_forward_rules_keep_of_the_function_has_its_rule(mode):
    """Which the function's own steps have not: they are rounded."""
    once, twice, thrice = grad(cents, mode=mode), grad(grad(cents), mode=mode), grad(grad(grad(cents)), mode=mode)
    for _ in range(4):
        np.testing.assert_allclose(value_and_grad(cents, mode=mode)(1.234), (1.23, 1.23**2))
        np.testing.assert_allclose([once(1.234), twice(1.234), thrice(1.234)], [1.23**2, 2 * 1.23**3, 6 * 1.23**4])
    np.testing.assert_allclose(vmap(grad(grad(cents)), mode=mode)(X), 2.0 * X**3)


def test_arguments_by_keyword():
    for _ in range(3):
        np.testing.assert_allclose(grad(lambda x: wave(x, y=3.0))(0.5), 3.0 * np.cos(0.5))
        np.testing.assert_allclose(grad(lambda x: wave(y=3.0, x=x))(0.5), 3.0 * np.cos(0.5))
        np.testing.assert_allclose(grad(lambda x: wave(x=x))(0.5), 2.0 * np.cos(0.5))
    np.testing.assert_allclose(wave(0.5, y=3.0), 3.0 * np.sin(0.5))
    scaled = custom_vjp(lambda x, *, k: x * k).defvjp(lambda x: (x, None), lambda _, g: (g,))
    with pytest.raises(TypeError, match="takes arguments by position; k can be given by keyword only"):
        grad(lambda x: scaled(x, k=2.0))(0.5)


def test_forward_rules_that_return_no_pair():
    half = custom_vjp(lambda x: x * 2.0).defvjp(lambda x: x * 2.0, lambda _, g: (g,))
    with pytest.raises(TypeError, match=r"fwd must return a pair \(result, residuals\), it returned "):
        grad(lambda x: np.sum(half(x)))(X)


def _reverse(made, k):
    return made.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g * k,))


def _forward(made, k):
    return made.defjvp(lambda x, t: (x[0] * 1.0, t[0] * k))


def _opaque(made, k):
    return made.defvjp(lambda g, y, x: g * k)


def _opaque_forward(made, k):
    return made.defjvp(lambda t, y, x: t * k)


MAKERS = [(custom_vjp, _reverse), (custom_jvp, _forward), (primitive, _opaque), (primitive, _opaque_forward)]


@pytest.mark.parametrize(("make", "rule"), MAKERS)
def test_rules_that_are_given_anew_count(make, rule):
    made = make(lambda x: x * 1.0)
    again, many, part = checkpoint(made), vmap(made), functools.partial(made)
    slopes = [grad(made), grad(lambda x: made(x) * 1.0), grad(again), grad(lambda x: again(x) * 1.0), grad(part)]
    slopes += [grad(lambda x: np.sum(many(x * np.ones(2))) / 2.0)]
    for k in (2.0, 3.0):
        rule(made, k)
        for slope in slopes * 3:
            assert slope(1.0) == k


def test_rules_of_methods():
    class Scale:
        def __init__(self, k):
            self.k = k

        @custom_vjp
        def reverse(self, x):
            return self.k * x

        @custom_jvp
        def forward(self, x):
            return self.k * x

        reverse.defvjp(lambda self, x: (self.k * x, self.k), lambda k, g: (None, g * k * 10.0))
        forward.defjvp(lambda x, t: (x[0].k * x[1], x[0].k * t[1] * 10.0))

    assert Scale(2.0).reverse(3.0) == 6.0
    for k in (2.0, 2.0, 2.0, 3.0):
        assert grad(Scale(k).reverse)(1.5) == grad(Scale(k).forward)(1.5) == 10.0 * k


scale = 2.0


def test_primitives_of_plain_numbers_are_called_again(monkeypatch):
    """What they read may be another value by then."""
    look_up = primitive(lambda x: x * scale).defvjp(lambda g, y, x: g * scale)
    slopes = [grad(lambda x: x * look_up(3.0)), grad(lambda x: x if look_up(1.0) < 2.5 else 3.0 * look_up(1.0) * x)]
    for value, expected in ((2.0, (6.0, 1.0)), (4.0, (12.0, 12.0)), (5.0, (15.0, 15.0))):
        monkeypatch.setitem(globals(), "scale", value)
        for _ in range(3):
            assert tuple(slope(1.0) for slope in slopes) == expected


CONSTANTS = np.ones(30_000)
BUFFER = np.ones(30_000)


def _filled(x):
    BUFFER[:] = x
    return BUFFER


@pytest.mark.parametrize(
    "fun", [lambda x: x, lambda x: x[::-1][::-1], lambda x: CONSTANTS, _filled], ids=["itself", "view", "constant", "buffer"]
)
def test_results_of_primitives_have_memory_of_their_own(fun):
    """Compiled code may write into them, and hand them out."""
    opaque = primitive(fun).defvjp(lambda g, y, x: g)
    slope = value_and_grad(lambda x: (np.sum(opaque(2.0 * x) ** 3) + np.sum(np.exp(opaque(x))), opaque(x)), has_aux=True)
    results = []
    for i in range(5):
        x = np.linspace(0.0, 1.0 + i, 30_000)
        (value, kept), found = slope(x)
        np.testing.assert_allclose(value, np.sum(fun(2.0 * x) ** 3) + np.sum(np.exp(fun(x))))
        np.testing.assert_allclose(found, 6.0 * fun(2.0 * x) ** 2 + np.exp(fun(x)))
        assert not any(np.shares_memory(kept, other) for other in (x, found, CONSTANTS, BUFFER))
        results.append((kept, fun(x).copy()))
    np.testing.assert_array_equal(CONSTANTS, 1.0)
    for kept, expected in results:
        np.testing.assert_array_equal(kept, expected)


def test_forward_rules_run_in_many_threads():
    """Each has its own, whatever the others are in: so the function is not taken for the rule."""

    def forwards(x):
        start.wait()
        return half(x) * 2.0, None

    half = custom_vjp(lambda x: x / 2.0).defvjp(forwards, lambda _, g: (g,))
    slope, start = value_and_grad(half, mode="dynamic"), threading.Barrier(2, timeout=20)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            assert list(pool.map(slope, (3.0, 4.0))) == [(3.0, 1.0), (4.0, 1.0)]
    assert not half._running


def _doubled_in_place(kept, g):
    g *= 2.0
    kept[kept < 0.0] = 0.0
    return (g * kept,)


def _doubled_in_place_of_all(g, y, x):
    g *= 2.0
    x[x < 0.0] = 0.0
    return g * x


def _doubled_in_place_forward(x, t):
    y = np.sin(x[0])
    t[0][:] *= 2.0
    x[0][x[0] < 0.0] = 0.0
    return y, t[0] * x[0]


RULES_IN_PLACE = [
    lambda: custom_vjp(np.sin).defvjp(lambda x: (np.sin(x), x), _doubled_in_place),
    lambda: custom_jvp(np.sin).defjvp(_doubled_in_place_forward),
    lambda: primitive(np.sin).defvjp(_doubled_in_place_of_all),
]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("make", RULES_IN_PLACE, ids=["custom_vjp", "custom_jvp", "primitive"])
def test_rules_may_write_into_what_they_are_given(make, mode):
    """Others that have the same cotangent, or the same argument, do not see it."""
    fun = make()
    expected = 2.0 * np.maximum(X, 0.0)
    slope = grad(lambda x: np.sum(fun(x) + x * x), mode=mode)
    for _ in range(4):
        np.testing.assert_allclose(slope(X), expected + 2.0 * X)
        _, pullback = vjp(fun, X)
        g = np.ones(3)
        for _ in range(2):
            np.testing.assert_allclose(pullback(g)[0], expected)
        np.testing.assert_array_equal(g, 1.0)
    np.testing.assert_array_equal(X, [0.3, -0.7, 1.2])


def test_what_rules_return_has_the_structure_of_what_it_belongs_to():
    listed = custom_vjp(lambda x, y: x * y).defvjp(lambda x, y: (x * y, None), lambda _, g: ([1.0, 2.0, 3.0], g))
    with pytest.raises(TypeError, match=r"bwd returned \[1.0, 2.0, 3.0\] as the cotangent of argument 0, which has the struct"):
        grad(lambda x: np.sum(listed(x, x)))(X)
    bare = custom_jvp(lambda x: 2.0 * x).defjvp(lambda x, t: 2.0 * t[0])
    with pytest.raises(TypeError, match="must return a pair"):
        grad(lambda x: np.sum(bare(x)))(X)
    two = custom_jvp(lambda x: 2.0 * x).defjvp(lambda x, t: (2.0 * x[0], (t[0], t[0])))
    with pytest.raises(TypeError, match="its result has the structure"):
        grad(lambda x: np.sum(two(x)))(X)
    spread = custom_jvp(lambda x: 2.0 * x).defjvp(lambda x, t: (2.0 * x[0], np.sum(t[0])))
    for _ in range(3):
        np.testing.assert_allclose(jvp(lambda x: np.sum(spread(x)), (X,), (np.ones(3),))[1], 9.0)
        np.testing.assert_allclose(grad(lambda x: np.sum(spread(x)))(X), 3.0)


def test_cotangents_have_the_shapes_of_arguments():
    def with_rule(fun, rule):
        return custom_vjp(fun).defvjp(lambda *args: (fun(*args), args), rule)

    for wrong in (np.ones((2, 3)), np.ones((1, 3)), np.ones(2)):
        total = with_rule(np.sum, lambda args, g, wrong=wrong: (g * wrong,))
        with pytest.raises(
            ValueError, match=r"bwd of sum returned a cotangent of shape .* for argument 0, which has shape \(3,\)"
        ):
            grad(total)(X)
    tree = with_rule(lambda d: d["a"] * d["b"], lambda args, g: ({"a": g * args[0]["b"], "b": np.ones((4, 3))},))
    with pytest.raises(ValueError, match=r"of shape \(4, 3\) for argument 0\['b'\], which has shape \(\)"):
        grad(lambda d: np.sum(tree(d)))({"a": X, "b": 2.0})
    spread = with_rule(np.sum, lambda args, g: (g,))
    product = with_rule(np.multiply, lambda args, g: (g * args[1], g * args[0]))
    for _ in range(3):
        np.testing.assert_array_equal(grad(spread)(X), 1.0)
        np.testing.assert_allclose(grad(lambda x, y: np.sum(product(x, y)), 1)(X, 2.0), np.sum(X))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize(
    "rule", [lambda x, t: t**2, lambda x, t: t + x, lambda x, t: np.clip(t, -1.0, 1.0), lambda x, t: np.abs(t) * x]
)
def test_forward_rules_that_are_not_linear_are_not_transposed(rule, mode):
    fun = custom_jvp(np.sin).defjvp(lambda x, t: (np.sin(x[0]), rule(x[0], t[0])))
    np.testing.assert_allclose(jvp(fun, (X,), (2.0 * X,))[1], rule(X, 2.0 * X))
    for point in (X, X.astype(np.float32)):
        with pytest.raises(NotDifferentiable, match=r"the rule of sin is not linear in its tangents.*custom_vjp"):
            grad(lambda x: np.sum(fun(x)), mode=mode)(point)
    with pytest.raises(NotDifferentiable, match="not linear"):
        vjp(fun, X)[1](X)


def _running_sum(x, t):
    total, sums = 0.0, np.zeros_like(t[0])
    for i in range(len(t[0])):
        total = total * 0.5 + t[0][i]
        sums[i] = total
    return x[0] * 1.0, sums


def _sine(x, t):
    return np.sin(x[0]), np.cos(x[0]) * t[0] if np.any(t[0] != 0) else 0.0 * t[0]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("rule", [_running_sum, _sine])
def test_forward_rules_that_loop_or_leave_out_what_is_zero_are_transposed(rule, mode):
    fun = custom_jvp(lambda x: rule((x,), (x,))[0]).defjvp(rule)
    slope = grad(lambda x: fun(x) @ weights, mode=mode)
    weights, x = np.cos(np.arange(8.0)), np.arange(8.0)
    expected = np.array([weights @ jvp(fun, (x,), (v,))[1] for v in np.eye(8)])
    for _ in range(3):
        np.testing.assert_allclose(slope(x), expected)


@primitive
def cube(x):
    return x**3


cube.defvjp(lambda g, y, x: 3.0 * g * x**2)


@custom_jvp
def square(x):
    return x**2


square.defjvp(lambda x, t: (x[0] ** 2, 2.0 * x[0] * t[0]))


@checkpoint
def kept(x):
    return np.sin(x)


@pytest.mark.parametrize("fun", [cents, cube, square, kept], ids=lambda fun: fun.__name__)
def test_functions_with_rules_are_copied_and_pickled_as_functions_are(fun):
    assert copy.deepcopy(fun) is pickle.loads(pickle.dumps(fun)) is fun
    assert pickle.loads(pickle.dumps(grad(fun)))(1.5) == copy.deepcopy(grad(fun))(1.5) == grad(fun)(1.5)
    assert pickle.loads(pickle.dumps(checkpoint(abs)))(-2.0) == 2.0


def test_exported_code_has_the_function_of_a_primitive_as_it_is():
    text = export(value_and_grad(cube), 2.0)
    assert "x ** 3" in text
    assert "copy" not in text


bent = True


def _cubed_by_scale(make):
    """``x**3``, whose rule reads a global: a number, and one that it decides by."""
    if make is custom_jvp:
        return custom_jvp(lambda x: x**3).defjvp(lambda x, t: (x[0] ** 3, (scale if bent else 7.0) * x[0] ** 2 * t[0]))
    if make is custom_vjp:
        return custom_vjp(lambda x: x**3).defvjp(lambda x: (x**3, x), lambda x, g: ((scale if bent else 7.0) * x**2 * g,))
    return primitive(lambda x: x**3).defvjp(lambda g, y, x: (scale if bent else 7.0) * x**2 * g)


def _summed(fun):
    def loop(x):
        total = 0.0
        for v in x:
            total = total + fun(v)
        return np.sum(total)

    return loop


def _summed_while(fun):
    def loop(x):
        total, i = 0.0, 0
        while i < len(x):
            total, i = total + fun(x[i]), i + 1
        return np.sum(total)

    return loop


def _summed_by_ifs(fun):
    def loop(x):
        total = 0.0
        for v in x:
            if np.sum(v) > 0.5:
                total = total + fun(v)
            else:
                v = -v
                total = total - fun(v)
        return np.sum(total)

    return loop


def _summed_in_two_loops(fun):
    def loop(x):
        total = 0.0
        for v in x:
            for _ in range(5):
                total = total + fun(v) / 5.0
        return np.sum(total)

    return loop


def _carried(fun):
    """No two iterations can be done at once."""

    def loop(x):
        total = 1.0
        for v in x:
            total = np.sum(fun(v)) + total * fun(1.0) + 0.0 * np.sin(total)
        return total

    return loop


X4 = np.array([0.3, 0.7, 1.2, 1.5])
LOOPS = [_summed, _summed_while, _summed_by_ifs, _summed_in_two_loops, _carried]


@pytest.mark.parametrize("make", [custom_jvp, custom_vjp, primitive], ids=lambda make: make.__name__)
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_rules_in_loops_read_what_is_outside_at_each_call(loop, make, monkeypatch):
    """A loop's derivative is of a trace of its own; what its rules read is of the one around it."""
    fun = loop(_cubed_by_scale(make))
    one, both, many = grad(fun), value_and_grad(fun), vmap(grad(fun))
    slopes = [one, lambda x: both(x)[1], lambda x: many(x[None])[0]]
    twice = jacobian(grad(fun))
    for number, decision in ((2.0, True), (3.0, True), (3.0, False), (2.0, True)):
        monkeypatch.setitem(globals(), "scale", number)
        monkeypatch.setitem(globals(), "bent", decision)
        k = number if decision else 7.0
        for x in (np.linspace(0.1, 1.0, 6), np.linspace(-1.0, 2.0, 6), np.linspace(0.1, 1.0, 12).reshape(6, 2)):
            for slope in slopes:
                np.testing.assert_allclose(slope(x), k * x**2)
            np.testing.assert_allclose(twice(X4), np.diag(2.0 * k * X4))


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_forward_mode_in_loops_reads_what_is_outside_at_each_call(loop, monkeypatch):
    fun, x = loop(_cubed_by_scale(custom_jvp)), np.linspace(0.1, 1.0, 6)
    for number in (2.0, 2.0, 3.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "scale", number)
        np.testing.assert_allclose(jvp(fun, (x,), (np.ones(6),))[1], np.sum(number * x**2))


def test_rules_that_decide_in_loops_decide_for_each_iteration():
    """By what the iterations differ in: the loop is no one operation."""
    leaky = custom_vjp(np.abs).defvjp(lambda x: (np.abs(x), x), lambda x, g: (g if x > 0.0 else 100.0 * g,))
    forked = custom_jvp(np.abs).defjvp(lambda x, t: (np.abs(x[0]), t[0] if x[0] > 0.0 else 100.0 * t[0]))
    x = np.array([1.0, -1.0, 2.0, -3.0, 4.0])
    for fun in (leaky, forked):
        slope = grad(_summed(fun))
        for given in (x, -x, x + 0.5, x):
            np.testing.assert_array_equal(slope(given), np.where(given > 0.0, 1.0, 100.0))


def _leaky():
    return custom_vjp(np.abs).defvjp(lambda x: (np.abs(x), x), lambda x, g: (g if x > 0.0 else 100.0 * g,))


def _silent():
    """Which says that nothing flows, by a value."""
    return custom_vjp(np.abs).defvjp(lambda x: (np.abs(x), x), lambda x, g: (g if x > 0.0 else None,))


def _forked():
    return custom_jvp(np.abs).defjvp(lambda x, t: (np.abs(x[0]), t[0] if x[0] > 0.0 else 100.0 * t[0]))


def _opaque_leaky():
    return primitive(np.abs).defvjp(lambda g, y, x: g if x > 0.0 else 100.0 * g)


def _mapped(fun):
    return lambda x: np.sum(vmap(fun)(x))


@pytest.mark.parametrize(("make", "below"), [(_leaky, 100.0), (_silent, 0.0), (_forked, 100.0), (_opaque_leaky, 100.0)])
@pytest.mark.parametrize("loop", [_summed, _mapped])
def test_rules_that_decide_decide_for_each_element_of_what_is_done_at_once(loop, make, below):
    slope, x = grad(loop(make())), np.tile([1.0, -1.0, 2.0, -3.0], 8)
    for given in (x, x, -x, x):
        np.testing.assert_array_equal(slope(given), np.where(given > 0.0, 1.0, below))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_rules_are_given_what_other_rules_made_with_plain_arrays(mode):
    """Where values are plain, what a loop in a rule makes is an array of the function's own, which nobody has traced yet."""

    def backwards(x, g):
        total = 0.0
        for i in range(5):
            total = total + np.sin(x * i)
        return (total * g,)

    fun = custom_vjp(lambda x: x**2).defvjp(lambda x: (x**2, x), backwards)

    def loop(x):
        total = x[0] * 0.01
        i = 0
        while i < len(x):
            total = total * 0.5 + fun(x[i] * total + 0.3)
            i += 1
        return np.sum(total)

    columns, each = np.ones((3, 2)), grad(loop)
    for _ in range(3):
        found = grad(loop, mode=mode)(columns)
        np.testing.assert_allclose(found, np.stack([each(column) for column in columns.T], axis=1))


SAME = custom_vjp(lambda x: x).defvjp(lambda x: (x, None), lambda _, g: (g,))
VIEW = custom_jvp(lambda x: x[::-1]).defjvp(lambda x, t: (x[0][::-1], t[0][::-1]))


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("made", [stop_gradient, SAME, VIEW])
def test_what_is_written_into_an_argument_is_not_in_the_result(made, mode):
    def into_the_argument(x):
        y = x * 1.0
        z = made(y)
        y[0] = 5.0
        return np.sum(z * y)

    def into_the_result(x):
        y = x * 1.0
        z = made(y)
        z[0] = 5.0
        z += 1.0
        return np.sum(z * y)

    for fun in (into_the_argument, into_the_result):
        derivative = value_and_grad(fun, mode=mode)
        for i in range(3):
            assert derivative(X + i)[0] == pytest.approx(fun(X + i))


class Named:
    """Equal to others of its name, whatever its factor is."""

    def __init__(self, name, factor):
        self.name, self.factor = name, factor

    def __eq__(self, other):
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("how", ["vjp", "jvp"])
def test_objects_that_are_equal_and_hold_something_else(how, mode):
    if how == "vjp":
        scaled = custom_vjp(lambda x, by: x * by.factor)
        scaled.defvjp(lambda x, by: (x * by.factor, by), lambda by, g: (3 * g * by.factor, None))
    else:
        scaled = custom_jvp(lambda x, by: x * by.factor)
        scaled.defjvp(lambda xs, ts: (xs[0] * xs[1].factor, 3 * ts[0] * xs[1].factor))
    x, outside = np.array([1.0, 2.0]), Named("a", 0.5)
    given, read = grad(lambda x, by: np.sum(scaled(x, by)), mode=mode), grad(lambda x: np.sum(scaled(x, outside)), mode=mode)
    for factor in (1.0, 2.0, 3.0, 4.0, 5.0):
        np.testing.assert_allclose(given(x, Named("a", factor)), 3 * factor)
        outside.factor = 2 * factor
        np.testing.assert_allclose(read(x), 6 * factor)
    outside = Named("a", 7.0)
    for _ in range(3):
        np.testing.assert_allclose(read(x), 21.0)


def test_fewer_rules_than_arguments():
    by_pullback = primitive(lambda x, y: x * y).defvjp(lambda g, z, x, y: g * y)
    by_tangent = primitive(lambda x, y: x * y).defjvp(lambda t, z, x, y: t * y)
    for product in (by_pullback, by_tangent):
        for _ in range(3):
            np.testing.assert_allclose(grad(lambda x: np.sum(product(x, 2.0)))(X), 2.0)  # noqa: B023
            for fun in (lambda x: np.sum(product(x, x)), lambda x: np.sum(product(X, x))):  # noqa: B023
                with pytest.raises(NotDifferentiable, match="1 derivative rules, and more arguments"):
                    grad(fun)(X)
    np.testing.assert_allclose(jvp(lambda x: by_tangent(x, 2.0), (X,), (X,))[1], 2.0 * X)
    for product in (by_pullback, by_tangent):
        with pytest.raises(NotDifferentiable, match="1 derivative rules, and more arguments"):
            jvp(lambda x: product(x, x), (X,), (X,))  # noqa: B023


def test_arrays_as_keyword_arguments_of_primitives():
    scaled = primitive(lambda x, by=1.0: x * by).defvjp(lambda g, y, x, by=1.0: g * by)
    outside = np.array([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="by position"):
        grad(lambda x: np.sum(scaled(x, by=outside)))(X)
    for by in (2.0, 3.0):
        np.testing.assert_allclose(grad(lambda x, by: np.sum(scaled(x, by=by)))(X, by), by)


def test_arguments_that_are_equal_and_not_the_same():
    """One rule served both."""
    told = custom_vjp(lambda x, kept: x * 1.0).defvjp(
        lambda x, kept: (x * 1.0, kept), lambda kept, g: (g * len(str(kept)), None)
    )
    for one, other in [(Decimal("1.0"), Decimal("1.00")), (frozenset({1}), frozenset({1.0}))]:
        for _ in range(3):
            assert grad(lambda x: told(x, one) + told(x, other))(1.0) == len(str(one)) + len(str(other))  # noqa: B023


def test_arrays_that_are_no_numbers():
    """They were taken for numbers, and refused."""
    chosen = custom_vjp(lambda x, names: np.sum(x * (names == "a"))).defvjp(
        lambda x, names: (np.sum(x * (names == "a")), names), lambda names, g: (10 * g * (names == "a"), None)
    )
    names = np.array(["a", "b", "a"])
    outside, handed = grad(lambda x: chosen(x, names)), grad(chosen)
    for i in range(6):
        names[1] = "ab"[i // 2 % 2]
        for found in (outside(X), handed(X, names)):
            np.testing.assert_array_equal(found, 10.0 * (names == "a"))
