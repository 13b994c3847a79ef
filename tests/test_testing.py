"""check_grads finds what is wrong, says so, and leaves what is right alone; the strategies draw what they promise."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symgrad import custom_vjp, stop_gradient
from symgrad.errors import CheckFailed
from symgrad.ops.core import REGISTRY, Op, elementwise
from symgrad.testing import (
    LAYOUTS,
    Program,
    arguments,
    arrays,
    away_from,
    broadcastable_shapes,
    check_grads,
    laid_out,
    programs,
    shapes,
)


class Point(NamedTuple):
    x: Any
    y: Any


RIGHT = {
    "python floats": (lambda x, y: x**3 * np.sin(y), (0.3, 1.2)),
    "numpy scalars": (lambda x, y: x**3 * np.sin(y), (np.float64(0.3), np.float32(1.2))),
    "0-d": (lambda x: np.exp(x) * x, (np.array(0.4),)),
    "float32": (lambda x: np.tanh(x @ x.T), (np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),)),
    "many variables": (lambda x: np.tanh(x @ x.T), (np.linspace(-1, 1, 60).reshape(6, 10),)),
    "trees": (
        lambda p, scale: {"sum": p.x["a"] * scale, "rest": (p.y[0] ** 2, None)},
        (Point({"a": np.ones(2)}, [0.5, 2]), np.array([1.0, -2.0])),
    ),
    "fixed leaves": (lambda x, n, how, flag: x**n if how == "power" and flag else x, (1.3, 3, "power", True)),
    "integer arrays": (lambda x, i: x[i] * 2.0, (np.array([0.5, 0.7]), np.array([1, 1, 0]))),
    "holomorphic": (lambda z: z * z * np.exp(z), (np.array([1 + 2j, 0.3 - 0.2j]),)),
    "of complex": (lambda z: np.abs(z) ** 2 + np.real(z), (0.3 - 0.2j,)),
    "to complex": (lambda x: np.exp(1j * x), (np.array([0.3, -0.2]),)),
    "of one precision": (lambda x, y: np.abs(y + 1j * (x + 3.0)), (np.array(0.4), np.array(0.5, np.float32))),
    "of Python's complex": (lambda x: np.sin(((x + 1j * x) * (x + 1j * x)).imag), (0.5,)),
    "outputs without derivative": (lambda x: (np.argmax(x), "text", x * 2, 3), (np.array([0.3, -0.2]),)),
    "infinite outputs": (lambda x: np.where(x > 0, x, -np.inf), (np.array([0.3, -0.2]),)),
    "empty": (lambda x: np.sum(x, axis=0), (np.zeros((0, 3)),)),
    "numbers in an array": (lambda x: np.max(np.array([x, 2 * x])), (1.0,)),
    "near a kink": (lambda x: np.abs(x), (np.array([1e-5, -2e-5]),)),
    "branches": (lambda x: np.sin(x) if x > 0 else x * 3.0, (0.2,)),
    "large values": (lambda x: 1e8 * np.sin(x), (np.array([0.3, 0.5]),)),
    "near a minimum": (lambda x: 0.5 * x * x, (np.full(3, 1.3e-232),)),
    "small values": (lambda x: 1e-10 * np.sin(x) + 1e-200 * np.cos(x[::-1]), (np.array([0.3, 0.5]),)),
    "zero but for rounding": (
        lambda x: 1e-10 * x[0] + np.sum(np.exp(x)) / np.sum(np.exp(x)) - np.sum(np.exp(x) / np.sum(np.exp(x))),
        (np.array([0.3, 0.7, -0.2]),),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name: str) -> None:
    fun, args = RIGHT[name]
    check_grads(fun, args)


def test_keyword_arguments_and_argnums() -> None:
    def fun(x: Any, y: Any = 2.0, *, z: Any) -> Any:
        return x * stop_gradient(y) * z

    check_grads(fun, (1.5,), {"y": 2.0, "z": np.ones(2)}, argnums=("x", "z"))
    with pytest.raises(CheckFailed, match="with respect to y is wrong"):
        check_grads(fun, (1.5,), {"y": 2.0, "z": np.ones(2)})


def failure(fun: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(CheckFailed) as caught:
        check_grads(fun, args, **options)
    return str(caught.value)


def test_a_wrong_gradient_is_named_with_both_values() -> None:
    def loss(p: Any) -> Any:
        return 3.0 * p["w"][0, 1] * stop_gradient(p["w"][0, 1]) + p["b"]

    message = failure(loss, {"w": np.full((2, 2), 2.0), "b": 1.0}, modes=("rev",), seed=1)
    first, expected, actual = message.splitlines()
    assert first == "the derivative of loss with respect to p['w'][0, 1] is wrong (order 1, mode rev)"
    assert (expected, actual) == ("  expected 12, by finite differences", "  actual   6")
    message = failure(lambda x: x * stop_gradient(x), np.array([1.0, 2.0]), modes=("fwd",))
    assert message.startswith("the derivative of output[0] of <lambda> with respect to x[0] is wrong (order 1, mode fwd)")
    assert "expected 2," in message
    assert "actual   1" in message


@pytest.mark.parametrize("mode", ["rev", "fwd"])
@pytest.mark.parametrize(("scale", "offset"), [(1e-10, 0.0), (1e-200, 0.0), (1.0, 1e6)])
def test_tolerances_are_by_the_derivatives(scale: float, offset: float, mode: str) -> None:
    for size in (2, 40):
        x = np.linspace(0.5, 1.0, size)
        check_grads(lambda x: scale * np.sum(np.sin(x)) + offset, (x,))
        for off in (1.5, 1.03):
            fun = lambda x, off=off: scale * np.sum(off * np.sin(x) + (1.0 - off) * np.sin(stop_gradient(x))) + offset
            assert "is wrong" in failure(fun, x, modes=(mode,))


def test_complex_parts_are_named() -> None:
    message = failure(lambda z: np.real(z) * stop_gradient(np.real(z)) + np.imag(z), np.array([1.0 + 1j, 2.0]))
    assert "with respect to z[0].real" in message


def test_the_second_order_is_checked() -> None:
    def half(x: Any) -> Any:  # a right gradient, 2 x, whose own derivative is lost
        return np.square(x) - x * x + 2.0 * x * stop_gradient(x) - stop_gradient(x * x)

    check_grads(half, (1.5,), order=1)
    assert "(order 2, mode rev of rev)" in failure(half, 1.5)
    assert "(order 2, mode fwd of fwd)" in failure(half, 1.5, modes=("fwd",))


def test_a_mistake_among_many_variables_is_located() -> None:
    def fun(x: Any) -> Any:
        y = x.copy()
        y[17, 3] = x[17, 3] * stop_gradient(x[17, 3])
        return y

    assert "x[17, 3]" in failure(fun, np.linspace(1, 2, 100).reshape(20, 5), order=1)


@pytest.fixture
def wrong_sin() -> Any:
    kept = REGISTRY[np.sin]
    assert isinstance(kept, Op)
    yield lambda rule: elementwise(np.sin, rule)
    REGISTRY[np.sin] = kept


def test_a_wrong_rule_is_found(wrong_sin: Any) -> None:
    check_grads(np.sin, (0.3,))
    wrong_sin(lambda g, y, x: g * np.cos(x) * 1.001)
    assert "with respect to" in failure(lambda x: np.sin(x), np.array([0.3, 0.4]))


def test_a_rule_that_is_not_linear_is_found_by_reverse_mode_alone(wrong_sin: Any) -> None:
    wrong_sin(lambda g, y, x: g * np.abs(g) * np.cos(x))
    assert "not linear in the cotangent (order 1, mode rev)" in failure(lambda x: np.sin(x), 0.3, modes=("rev",))


def test_a_rule_with_a_value_of_its_own_is_found() -> None:
    cube = custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3 + 1.0, x), lambda x, g: (g * 3 * x**2,))
    assert "gives [8.0] when called, and [9.0] under a derivative" in failure(cube, 2.0, modes=("rev",))


def test_a_nan_is_found(wrong_sin: Any) -> None:
    wrong_sin(lambda g, y, x: g * np.cos(x) * np.nan)
    assert "actual   nan" in failure(lambda x: np.sin(x), 0.3)


def test_a_jump_is_no_place_to_check() -> None:
    assert "jump" in failure(lambda x: np.floor(x), 2.0)


def test_forward_and_reverse_are_compared(wrong_sin: Any) -> None:
    wrong_sin(lambda g, y, x: g * (np.cos(x) + 1e-7))
    check_grads(lambda x: np.sin(x), (0.3,), order=1)  # too small a mistake for finite differences, the same in both
    REGISTRY[np.sin].jvp = lambda ts, y, x: ts[0] * np.cos(x)  # type: ignore[union-attr]
    assert "forward and reverse mode of <lambda> disagree (order 1)" in failure(lambda x: np.sin(x), 0.3)


def test_what_changes_from_call_to_call_is_found() -> None:
    count = iter(range(10_000))
    assert failure(lambda x: x * (1.0 + 1e-3 * next(count)), 0.3)


def test_the_domain_must_hold_the_point() -> None:
    with np.errstate(all="ignore"):
        assert "end of the domain" in failure(lambda x: np.sqrt(x), 0.0, order=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"order": 0}, "order=0"), ({"modes": ()}, "modes"), ({"modes": ("reverse",)}, "modes")],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_grads(np.sin, (1.0,), **options)


def test_nothing_to_differentiate() -> None:
    with pytest.raises(TypeError, match=r"args is float: give a tuple .* check_grads\(fun, \(x,\)\)"):
        check_grads(np.sin, 1.0)
    with pytest.raises(ValueError, match="no floating point or complex argument"):
        check_grads(lambda n: n * 2.0, (3,))


def test_tolerances_and_step() -> None:
    def off(x: Any) -> Any:
        return np.sin(x) + 1e-3 * (stop_gradient(x) - x)

    failure(off, 0.3)
    check_grads(off, (0.3,), rtol=1e-2, atol=1e-2)
    check_grads(np.log, (1e-4,), eps=1e-5)


# -- strategies ----------------------------------------------------------------------------------------------------


@given(st.data())
def test_arrays_have_what_was_asked_for(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.complex128]))
    shape = data.draw(shapes(max_side=3))
    x = data.draw(arrays(shape, dtype, lo=-1.0, hi=3.0))
    assert (x.shape, x.dtype) == (shape, dtype)
    for part in (x.real, x.imag if x.dtype.kind == "c" else x):
        assert np.all((part >= -1) & (part <= 3))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
def test_layouts_keep_values(layout: str, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=float).reshape(shape)
    assert np.array_equal(laid_out(values, layout), values)
    if np.size(values) > 3 and layout != "broadcast":
        assert laid_out(values, layout).flags.c_contiguous == (layout == "C")


@given(broadcastable_shapes(3))
def test_shapes_broadcast(given_shapes: Any) -> None:
    np.broadcast_shapes(*given_shapes)


@given(away_from([0.0, 1.0], lo=-0.5, gap=0.1))
def test_kinks_are_left_alone(x: float) -> None:
    assert -0.5 <= x <= 2
    assert abs(x) >= 0.0999
    assert abs(x - 1.0) >= 0.0999


def test_no_room_between_kinks() -> None:
    with pytest.raises(ValueError, match="no float in"):
        away_from([0.0, 1.0], lo=0.0, hi=1.0, gap=0.6)


@dataclass
class Layer:
    w: Any
    activation: str


@settings(max_examples=10, deadline=None)
@given(arguments(Layer(arrays((2, 3)), "tanh"), [arrays((3,)), None]))
def test_arguments_are_dataclasses(args: Any) -> None:
    layer, (x, none) = args
    assert isinstance(layer, Layer)
    assert layer.w.shape == (2, 3)
    assert layer.activation == "tanh"
    assert none is None
    check_grads(lambda layer, x: np.sum(np.tanh(layer.w @ x)), (layer, x), order=1)


@given(arguments({"w": arrays((2, 3)), "b": [arrays((3,))]}, (arrays(()), 2), "relu"))
def test_arguments_are_trees(args: Any) -> None:
    params, (x, n), how = args
    assert params["w"].shape == (2, 3)
    assert params["b"][0].shape == (3,)
    assert (x.shape, n, how) == ((), 2, "relu")


@given(programs(max_ops=20))
def test_programs_run_and_show_their_source(program: Program) -> None:
    value = program(*program.arguments())
    assert np.ndim(value) == 0
    assert np.isrealobj(value)
    assert np.isfinite(value)
    assert program.source in repr(program)
    assert value == program(*program.arguments())


@settings(max_examples=20)
@given(programs(max_ops=8, forms=("smooth", "reduce"), outputs="tree"))
def test_programs_with_trees_as_outputs(program: Program) -> None:
    assert isinstance(program(*program.arguments()), dict)
    assert "if " not in program.source


def test_kinks_nearer_than_the_steps():
    with pytest.raises(CheckFailed, match="do not settle"):
        check_grads(lambda x: np.max(x) + np.sin(x[0]), (np.array([1.0, 1.000001]),))
    with pytest.raises(CheckFailed, match="do not settle"):
        check_grads(lambda x: np.maximum(x, 0.5), (np.float32([0.5001, 0.1, 0.9]),))


def test_functions_that_change_shape_a_step_away():
    """Finite differences are no witness there, and what the function raises is not the derivative's fault."""
    x = np.array([0.5, 1.0])
    for fun in (lambda x: np.sum(x[x <= 1.0][1]), lambda x: np.sin(x[x <= 1.0])):
        with pytest.raises(CheckFailed, match="do not settle; a step away"):
            check_grads(fun, (x,))


def test_programs_are_of_known_forms_and_outputs() -> None:
    with pytest.raises(ValueError, match=r"outputs='x': choose \"scalar\" or \"tree\""):
        programs(outputs="x")
    with pytest.raises(ValueError, match=r"forms=\('smoth',\): choose from 'smooth', 'reduce'"):
        programs(forms=("smoth",))
