"""What the tests of tracing share: a plain function, its traced and compiled runs must agree, and so must its slope."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import assume, settings
from ops_samples import deep

from symgrad import value_and_grad, without
from symgrad.pytree import flatten
from symgrad.testing import Program

few = settings() if deep() else settings(max_examples=3)  # for properties each of whose examples takes a second or so


def scalar(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun`` with its outputs, weighted unevenly, summed to one real number."""

    def total(*args: Any) -> Any:
        leaves, _ = flatten(fun(*args))
        result = 0.0
        for leaf in leaves:
            weights = np.cos(np.arange(np.size(leaf)) + 1.0).reshape(np.shape(leaf))
            whole = leaf * weights
            result = result + np.sum(np.real(whole) + 0.5 * np.imag(whole))
        return result

    return total


def copied(args: Any) -> list[Any]:
    """Arguments that a call may spoil."""
    return [np.array(arg) if isinstance(arg, np.ndarray) else arg for arg in args]


def slopes(fun: Callable[..., float], args: Any, step: float = 1e-6) -> list[Any]:
    """Central differences by every element of every argument."""
    result = []
    for number, arg in enumerate(args):
        slope = np.zeros(np.shape(arg))
        for place in np.ndindex(np.shape(arg)):
            ends = []
            for sign in (1, -1):
                moved = copied(args)
                if isinstance(arg, np.ndarray):
                    moved[number][place] += sign * step
                else:
                    moved[number] = type(arg)(arg + sign * step)
                ends.append(fun(*moved))
            slope[place] = (ends[0] - ends[1]) / (2 * step)
        result.append(slope)
    return result


def agrees(fun: Callable[..., Any], *args: Any, modes: tuple[str, ...] = ("auto", "dynamic")) -> None:
    """Assert that value and gradient of ``fun`` are right, traced twice, compiled, and in dynamic mode."""
    total = scalar(fun)
    value = total(*copied(args))
    expected = slopes(total, args)
    for mode in modes:
        derivative = value_and_grad(total, argnums=tuple(range(len(args))), mode=mode)
        for _ in range(3):
            got, grads = derivative(*copied(args))
            np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-12)
            for slope, grad in zip(expected, grads, strict=True):
                np.testing.assert_allclose(grad, slope, rtol=2e-6, atol=2e-7)
        assert derivative.cache_info().hits or "\n  compiled" not in derivative.explain(), "its code answers no call"


def function_of(text: str, path: Path) -> Callable[..., Any]:
    """The function ``fun`` of a text, which is in a file, so that its source is found."""
    path.write_text(text)
    space: dict[str, Any] = {"np": np, "__name__": path.stem}
    exec(compile(text, str(path), "exec"), space)
    return space["fun"]  # type: ignore[no-any-return]


def counts_in_a_loop(m: Any, x: Any) -> Any:
    """Counts iterations outside of the function."""
    for _ in range(10):
        m.n += 1
        x = 0.9 * x
    return np.sum(x**2) * m.n


def program_of(lines: Iterable[str], shapes: dict[str, tuple[int, ...]], seed: int) -> Program:
    """The function ``program`` of these lines, of float64 arrays."""
    return Program("\n".join(lines) + "\n", {name: ("float64", shape) for name, shape in shapes.items()}, seed)


def agrees_with_dynamic(program: Program, scaled: bool = False, calls: int = 3) -> None:
    """The value and the gradients of a random program, compiled at the last of a few ``calls``, are those of dynamic mode.

    ``scaled``: what is near zero may be off by the rounding of the largest slope.
    """
    args = program.arguments()
    everything = tuple(range(len(args)))
    with np.errstate(all="ignore"):
        value = program(*args)
        assume(np.isfinite(value) and abs(value) < 1e6)
        _, expected = value_and_grad(program.fun, everything, mode="dynamic")(*args)
        derivative = value_and_grad(program.fun, everything)
        for _ in range(calls):
            found, grads = derivative(*args)
    assert derivative.cache_info().hits, derivative.explain()
    np.testing.assert_allclose(found, value, rtol=1e-10)
    size = max(np.max(np.abs(part)) for part in expected) if scaled else 0.0
    assume(size < 1e6)  # a chaotic one
    for name, mine, theirs in zip(program.specs, grads, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9 * (1 + size), err_msg=name)


def right_in_other_calls(program: Program, seed: int) -> None:
    """The value and the gradients of a random program of two arguments are right in calls that decide otherwise, too."""
    derivative, everything = value_and_grad(program.fun, (0, 1)), (0, 1)
    for number in (None, seed + 1, seed + 2, seed + 2, seed + 3):
        args = program.arguments(number)
        with np.errstate(all="ignore"):
            value = program(*args)
            assume(np.isfinite(value) and abs(value) < 1e4)
            found, slopes = derivative(*args)
            expected = value_and_grad(program.fun, everything, mode="dynamic")(*args)[1]
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12)
        for mine, theirs in zip(slopes, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)


def right_at(
    derivative: Callable[..., Any],
    fun: Callable[..., Any],
    x: Any,
    value: tuple[float, float],
    slope: tuple[float, float],
) -> None:
    """What ``derivative`` gives at ``x`` is the function's value and its gradient in dynamic mode, each to a relative and an
    absolute tolerance."""
    found, mine = derivative(x)
    np.testing.assert_allclose(found, fun(x), rtol=value[0], atol=value[1])
    np.testing.assert_allclose(mine, value_and_grad(fun, mode="dynamic")(x)[1], rtol=slope[0], atol=slope[1])


def hangs_on_no_count(fun: Callable[..., Any], rates: Sequence[float], most: int) -> None:
    """``fun`` of three numbers and a rate is right, and compiled after ``most`` calls, however many steps its loop takes."""
    derivative = value_and_grad(fun)
    for rate in rates:
        right_at(derivative, fun, np.array([0.4, -0.3, 0.8, rate]), value=(1e-11, 1e-13), slope=(1e-9, 1e-11))
    assert derivative.cache_info().misses <= most


def agrees_without(name: str, fun: Callable[..., Any], args: Sequence[Any], slack: float = 0.0) -> None:
    """A function's value and gradients are the same with an optimisation and without, in layout and dtype, too.

    ``slack``: how many times the tolerance the value may be off by where it is near zero.
    """
    everything = tuple(range(len(args)))
    with without(name):
        plain = value_and_grad(fun, everything)
    optimised = value_and_grad(fun, everything)
    for _ in range(3):
        want, got = plain(*args), optimised(*args)
    tight = 1e-5 if any(arg.dtype == np.float32 for arg in args) else 1e-13
    np.testing.assert_allclose(got[0], want[0], rtol=tight, atol=slack * tight)
    for mine, theirs in zip(got[1], want[1], strict=True):
        assert mine.flags.c_contiguous
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=tight, atol=tight * np.max(np.abs(theirs), initial=0))


def alike(found: Any, expected: Any, rtol: float = 1e-12, atol: float = 1e-13) -> None:
    """Two trees are alike in structure, and their leaves in type, shape, dtype and value."""
    (left, tree), (right, other) = flatten(found), flatten(expected)
    assert tree == other
    for x, y in zip(left, right, strict=True):
        assert (type(x), np.shape(x), np.result_type(x)) == (type(y), np.shape(y), np.result_type(y))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


def same(a: Any, b: Any, args: tuple[Any, ...]) -> None:
    """Two trees of derivatives agree, in kind too, up to the rounding of the least precise number around."""
    (left, tree), (right, other) = flatten(a), flatten(b)
    assert tree == other
    for x, y in zip(left, right, strict=True):
        assert (type(x), np.shape(x), np.result_type(x)) == (type(y), np.shape(y), np.result_type(y))
        size = max(1.0, float(np.max(np.abs(x), initial=0.0)))
        np.testing.assert_allclose(x, y, rtol=0, atol=size * tolerance([*left, *args]))


def tolerance(leaves: Sequence[Any]) -> float:
    return 1e-9 if all(np.result_type(leaf).itemsize >= 8 for leaf in leaves) else 1e-3
