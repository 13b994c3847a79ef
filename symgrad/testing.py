"""Check derivatives, and draw inputs and programs for property tests.

``check_grads`` needs nothing but NumPy. The strategies need hypothesis (``pip install "symgrad[test]"``), which is
imported when the first one is made.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import linecache
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from symgrad import pytree
from symgrad.api import Derivative, jvp, vjp
from symgrad.errors import CheckFailed, not_installed
from symgrad.ir import is_inexact_leaf
from symgrad.ops.core import REGISTRY, A, Composite, Op, Sample
from symgrad.tracing.trace import followed
from symgrad.transform.calculus import Argnums, select

Vector = np.ndarray[Any, np.dtype[Any]]

SMALL = 24  # real variables, up to which each derivative is compared by itself
LOCATED = 512  # real variables, up to which a mistake that a random direction has shown is located
MIN_STEPS, MAX_STEPS = 3, 8  # of finite differences, each half the one before, more where they do not settle


# -- derivatives against finite differences ------------------------------------------------------------------------


def check_grads(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    argnums: Argnums | None = None,
    order: int = 2,
    modes: Sequence[str] = ("rev", "fwd"),
    rtol: float | None = None,
    atol: float | None = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Compare the derivatives of a function at a point to finite differences, and to each other.

    Up to some 24 variables each derivative is compared by itself; beyond, derivatives in random directions. Forward
    and reverse mode must agree (``<u, J v> == <J' u, v>``), and so must traced and compiled runs. The point must be
    away from kinks, jumps and poles: finite differences lie there. Rules of your own must give the function's values, and
    be linear in cotangents.

    Args:
        fun: any function that symgrad can differentiate; its output may be any tree, real or complex.
        args: its positional arguments. Integers, bools, strings and other leaves are held fixed.
        kwargs: its keyword arguments.
        argnums: which arguments to differentiate: a position, a name, or a tuple of them; all by default.
        order: how many times to differentiate. Each mode is applied to each derivative of the order before.
        modes: ``"rev"`` (vjp), ``"fwd"`` (jvp), or both.
        rtol, atol: tolerances against finite differences, ``eps ** 0.4`` of the least precise argument or output by
            default. ``atol`` counts in units of the output's magnitude, where that is above 1. By default, it is less where
            the finite differences are good for more, as with derivatives of 1e-10.
        eps: the step of the finite differences, ``eps ** 0.25`` of the least precise argument or output by default.
            Smaller ones follow, from which the limit is extrapolated.
        seed: of the random directions.

    Raises:
        CheckFailed: a derivative is wrong: the message says which, with the expected and the actual value.
        ValueError: there is nothing to differentiate, or a mode that is none.
        TypeError: ``args`` is neither a tuple nor a list.

    >>> check_grads(lambda x, y: np.sin(x) * y["scale"], (np.array([0.1, 0.2]), {"scale": 3.0}))
    >>> from symgrad import stop_gradient
    >>> check_grads(lambda x: x * stop_gradient(x), (3.0,))
    Traceback (most recent call last):
        ...
    symgrad.errors.CheckFailed: the derivative of <lambda> with respect to x is wrong (order 1, mode rev)
      expected 6, by finite differences
      actual   3
    """
    if not modes or not set(modes) <= {"rev", "fwd"}:
        raise ValueError(f'modes={modes!r}: choose from "rev" and "fwd"')
    if order < 1:
        raise ValueError(f"order={order!r}: must be at least 1")
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"args is {type(args).__name__}: give a tuple of the arguments, check_grads(fun, (x,))")
    call = select(fun, (*range(len(args)), *(kwargs or {})) if argnums is None else argnums, args, dict(kwargs or {}))
    leaves, tree = pytree.flatten(call.selected)
    paths = [call.names[int(path[0][1])] + _spelled(path[1:]) for path in tree.paths()]
    free = [i for i, leaf in enumerate(leaves) if _inexact(leaf)]
    if not free:
        raise ValueError("check_grads was given no floating point or complex argument to differentiate")

    inner = followed(fun)

    @functools.wraps(fun)
    def flat(*point: Any) -> list[Any]:
        """The function of its free leaves alone, with a list of floating point leaves as output."""
        filled = list(leaves)
        for i, x in zip(free, point, strict=True):
            filled[i] = x
        replaced = dict(zip(call.places, tree.unflatten(filled), strict=True))
        given = [replaced.get(i, arg) for i, arg in enumerate(call.args)]
        named = {name: replaced.get(name, arg) for name, arg in call.kwargs.items()}
        return [leaf for leaf in pytree.flatten(inner(*given, **named))[0] if _inexact(leaf)]

    title = getattr(fun, "__name__", type(fun).__name__)
    check = _Check(flat, [leaves[i] for i in free], [paths[i] for i in free], title, tuple(modes), rtol, atol, eps, seed)
    check.run(order)


class Slope(NamedTuple):
    """The derivative of each output in a direction; the central differences of each step; what the derivative adds up."""

    value: Any
    steps: Vector
    size: Any

    def along(self, u: Any) -> Slope:
        """The derivative of one output, or of outputs with these weights."""
        if isinstance(u, int):
            return Slope(self.value[u], self.steps[:, u], self.size[u])
        return Slope(u @ self.value, self.steps @ u, np.abs(u) @ self.size)


class _Check:
    """The check of one function of leaves, at one point. Leaves are also seen as one vector of real numbers."""

    def __init__(
        self,
        fun: Callable[..., Sequence[Any]],
        point: Sequence[Any],
        names: Sequence[str],
        title: str,
        modes: tuple[str, ...],
        rtol: float | None,
        atol: float | None,
        eps: float | None,
        seed: int,
        passes: tuple[str, ...] = (),
    ) -> None:
        self.fun, self.point, self.names, self.title, self.modes = fun, list(point), names, title, modes
        self.given, self.seed, self.passes = (rtol, atol, eps), seed, passes
        with np.errstate(all="ignore"):
            self.out = list(fun(*self.point))
        precision = float(max(np.finfo(_dtype(leaf)).eps for leaf in [*self.point, *self.out]))
        self.rtol, self.atol = (precision**0.4 if tol is None else tol for tol in (rtol, atol))
        self.same = max(precision**0.6, 0.0 if rtol is None else rtol)  # between two derivatives, free of truncation
        self.step = precision**0.25 if eps is None else eps
        self.x, self.y = _vector(self.point), _vector(self.out)
        self.precision, self.grain = precision, 0.0  # how well outputs are known
        self.scale = max(1.0, self.known(self.y))
        rng = np.random.default_rng(seed)
        self.u, self.v = rng.uniform(-1, 1, self.y.size), rng.uniform(-1, 1, self.x.size)
        if self.y.size == 1 and not passes:
            self.u[:] = 1.0  # a gradient, in the user's own terms
        self.settled = True  # the finite differences so far
        self.slopes: dict[int, Slope] = {}

    def run(self, order: int) -> None:
        """Check all modes, then the derivatives that they give, as functions."""
        if not self.out:
            return
        small = self.x.size <= (SMALL if not self.passes else 4)  # beyond the first order, calls take longer
        runs = {mode: self.shown(run) for mode, run in {"rev": self.pulled, "fwd": self.pushed}.items()}
        for mode in self.modes:
            (self.check_rev if mode == "rev" else self.check_fwd)(small)
            self.check_compiled(runs[mode], mode)
        if len(set(self.modes)) == 2:
            self.check_dot()
        if order > 1:
            for mode in self.modes:
                _Check(
                    runs[mode], self.point, self.names, self.title, self.modes, *self.given, self.seed + 1,
                    (*self.passes, mode),
                ).run(order - 1)  # fmt: skip

    # ---- derivatives ----

    def shown(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A derivative that says which function it is of, as traces ask what they will have to see."""
        return functools.wraps(self.fun)(lambda *point: run(*point))

    def pulled(self, *point: Any) -> list[Any]:
        """The pullback of the fixed cotangent."""
        return list(vjp(self.fun, *point)[1](_like(self.u, self.out)))

    def pushed(self, *point: Any) -> list[Any]:
        """The pushforward of the fixed tangent."""
        return [t for t in jvp(self.fun, point, _like(self.v, self.point))[1] if _inexact(t)]

    def slope(self, v: Vector) -> Slope:
        """The derivative in a direction by central differences, extrapolated to step 0 (Ridders' table)."""
        before: list[Vector] = []
        steps: list[Vector] = []
        best, doubt = np.full(self.y.size, np.nan), np.full(self.y.size, np.inf)
        for k in range(MAX_STEPS):
            h = self.step / 2**k
            with np.errstate(all="ignore"):
                above, below = (self.near(self.x + s * h * v) for s in (1, -1))
                now = [np.where(above == below, 0.0, above - below) / (2 * h)]  # equal infinities do not move
                steps.append(now[0])
                for i, old in enumerate(before):
                    now.append((4 ** (i + 1) * now[i] - old) / (4 ** (i + 1) - 1))
                    error = np.maximum(np.abs(now[-1] - now[-2]), np.abs(now[-1] - old))
                    better = error < doubt
                    best[better], doubt[better] = now[-1][better], error[better]
            before = now
            settled = doubt <= 0.1 * (self.atol * self.scale + self.rtol * np.abs(best))
            if k + 1 >= MIN_STEPS and np.all(settled):
                break
        self.settled &= bool(np.all(settled))
        return Slope(best, np.array(steps), np.abs(best))

    def bends(self, v: Vector) -> bool:
        """Whether a kink is nearer than the steps: slopes to both sides differ, and by no less where steps are shorter."""
        with np.errstate(all="ignore"):
            long, short = (
                np.abs(self.near(self.x + h * v) - 2 * self.y + self.near(self.x - h * v)) / h
                for h in (self.step, self.step / 4)
            )
        doubt = self.atol * self.scale + self.rtol * np.max(self.slope(v).size, initial=0.0)
        return bool(np.any((short > doubt) & (short > 0.6 * long)))

    def known(self, y: Vector) -> float:
        """The size of outputs, by which rounding moves them."""
        size = float(np.max(np.abs(y[np.isfinite(y)]), initial=0.0))
        self.grain = max(self.grain, self.precision * size)
        return size

    def near(self, x: Vector) -> Vector:
        """The function a step away, where it may take another branch."""
        try:
            y = _vector(self.fun(*_like(x, self.point)))
        except (ArithmeticError, LookupError, ValueError) as error:
            raise CheckFailed(f"{self.title}: finite differences do not settle; a step away, it raises {error!r}") from error
        if y.shape != self.y.shape:
            raise CheckFailed(f"{self.title}: finite differences do not settle; a step away, its outputs have other shapes")
        self.known(y)
        return y

    def unit(self, i: int) -> Vector:
        """The direction of the real variable number ``i``."""
        v = np.zeros(self.x.size)
        v[i] = 1.0
        return v

    def slope_at(self, i: int) -> Slope:
        """The derivative by one variable, by finite differences."""
        if i not in self.slopes:
            self.slopes[i] = self.slope(self.unit(i))
        return self.slopes[i]

    # ---- checks ----

    def check_rev(self, small: bool) -> None:
        out, pullback = vjp(self.fun, *self.point)
        got, half = (list(pullback(_like(u, self.out))) for u in (self.u, -0.5 * self.u))
        self.check_kinds(got, self.point, self.names, "rev")
        self.check_value(out)
        g = _vector(got)
        self.check_linear(g, _vector(half))
        if not small:
            slope = self.slope(self.v).along(self.u)
            if self.close(slope, g @ self.v):
                return
        for i in range(self.x.size if small else min(self.x.size, LOCATED)):
            slope = self.slope_at(i).along(self.u)
            if not self.close(slope, g[i]):
                self.fail("rev", self.unit(i), _place(i, self.point, self.names), slope.value, g[i])
        if not small:
            self.fail("rev", self.v, "a random direction", slope.value, g @ self.v)

    def check_fwd(self, small: bool) -> None:
        out, got = jvp(self.fun, self.point, _like(self.v, self.point))
        names = [f"output({i})" if len(self.out) > 1 else "output" for i in range(len(self.out))]
        self.check_kinds(got, self.out, names, "fwd")
        self.check_value(out)
        if not small:
            slope = self.slope(self.v)
            if all([self.close(slope.along(j), t) for j, t in enumerate(_vector(got))]):
                return
        for i in range(self.x.size if small else min(self.x.size, LOCATED)):
            t, slope = _vector(jvp(self.fun, self.point, _like(self.unit(i), self.point))[1]), self.slope_at(i)
            for j in range(self.y.size):
                if not self.close(slope.along(j), t[j]):
                    of = f"{_place(j, self.out, names)} of " if self.y.size > 1 else ""
                    self.fail("fwd", self.unit(i), _place(i, self.point, self.names), slope.value[j], t[j], of)
        if not small:
            self.fail("fwd", self.v, "a random direction", slope.value, _vector(got))

    def check_value(self, out: Sequence[Any]) -> None:
        """The function gives under a derivative what it gives alone (rules of the user's have values of their own)."""
        if not np.allclose(_vector(out), self.y, self.same, self.same * self.scale, equal_nan=True):
            raise CheckFailed(f"{self.title} gives {self.out!r} when called, and {list(out)!r} under a derivative")

    def check_linear(self, g: Vector, half: Vector) -> None:
        """A cotangent times -½ is pulled back to the result times -½."""
        if not np.allclose(half, -0.5 * g, self.same, self.same * self.scale, equal_nan=True):
            raise CheckFailed(
                f"the pullback of {self.title} is not linear in the cotangent ({self.order('rev')})\n"
                f"  cotangent {_shown(self.u)} gives {_shown(g)}\n  times -0.5 it gives {_shown(half)}"
            )

    def check_dot(self) -> None:
        """``<u, J v> == <J' u, v>``: both modes at once, without the error of finite differences."""
        t, g = _vector(self.pushed(*self.point)), _vector(self.pulled(*self.point))
        forward, reverse = self.u @ t, g @ self.v
        size = np.abs(self.u) @ np.abs(t) + np.abs(g) @ np.abs(self.v)
        if not _close(forward, reverse, self.same * max(size, self.scale)):
            raise CheckFailed(
                f"forward and reverse mode of {self.title} disagree (order {len(self.passes) + 1}{self.after()})\n"
                f"  <u, J v>  = {forward:.12g}\n  <J' u, v> = {reverse:.12g}"
            )

    def check_compiled(self, run: Callable[..., Any], mode: str) -> None:
        """The derivative is the same run by run: untraced by another, in dynamic mode, traced, and compiled."""
        expected = _vector(run(*self.point))
        size = float(max(self.scale, np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)))
        for how in ("dynamic", "auto"):
            derivative: Derivative[..., Any] = Derivative("function", run, {"mode": how})
            for count in range(1 if how == "dynamic" else 3):
                leaves = derivative(*self.point)
                self.check_kinds(leaves, run(*self.point), [f"result {i}" for i in range(len(leaves))], mode)
                actual = _vector(leaves)
                if not all(_close(a, b, self.same * size) for a, b in zip(expected, actual, strict=True)):
                    raise CheckFailed(
                        f"call {count + 1} of the derivative of {self.title} in mode={how!r} differs from the first "
                        f"({self.order(mode)})\n"
                        f"  expected {expected}\n  actual   {actual}\n{derivative.source(*self.point)}"
                    )

    def check_kinds(self, derivatives: Sequence[Any], leaves: Sequence[Any], names: Sequence[str], mode: str) -> None:
        """A derivative has the shape, dtype and kind (Python number, NumPy scalar, array) of what it belongs to."""
        for d, x, name in zip(derivatives, leaves, names, strict=True):
            if (got := _kind(d)) != (want := _kind(x)):
                raise CheckFailed(f"the derivative of {self.title} for {name} is {got}, expected {want} ({self.order(mode)})")

    def close(self, slope: Slope, actual: Any) -> bool:
        """Whether a derivative is what finite differences say; both may be NaN, one may not.

        Where those of all steps agree to 1 %, and rounding moves them by less, the tolerance is by them.
        """
        atol = self.atol * self.scale
        with np.errstate(all="ignore"):
            doubt = np.ptp(slope.steps) + self.grain / self.step * 2 ** len(slope.steps)
        if self.given[1] is None and slope.value and doubt <= 0.01 * abs(slope.value):
            atol = min(atol, 10 * doubt + 0.01 * slope.size)
        return _close(slope.value, actual, atol + self.rtol * slope.size)

    def fail(self, mode: str, v: Vector, place: str, expected: Any, actual: Any, of: str = "") -> None:
        unknown = (
            ""
            if self.settled and not self.bends(v)
            else "; they do not settle: is there a kink, a jump or the end of the domain near?"
        )
        raise CheckFailed(
            f"the derivative of {of}{self.title} with respect to {place} is wrong ({self.order(mode)})\n"
            f"  expected {_shown(expected)}, by finite differences{unknown}\n"
            f"  actual   {_shown(actual)}"
        )

    def order(self, mode: str) -> str:
        return f"order {len(self.passes) + 1}, mode {mode}{self.after()}"

    def after(self) -> str:
        return f" of {' of '.join(reversed(self.passes))}" if self.passes else ""


def _close(a: Any, b: Any, tolerance: Any) -> bool:
    return bool(a == b or abs(a - b) <= tolerance or (np.isnan(a) and np.isnan(b)))


def _inexact(leaf: Any) -> bool:
    """Whether derivatives belong to a leaf; an object array is one of traced values."""
    return is_inexact_leaf(leaf) or (isinstance(leaf, np.ndarray) and leaf.dtype == object)


def _dtype(leaf: Any) -> np.dtype[Any]:
    return leaf.dtype if hasattr(leaf, "dtype") else np.result_type(leaf)


def _kind(leaf: Any) -> str:
    shape = f"{list(np.shape(leaf))}" if isinstance(leaf, np.ndarray) else ""
    return f"{'Python ' if not hasattr(leaf, 'dtype') else ''}{_dtype(leaf)}{shape}"


def _vector(leaves: Sequence[Any]) -> Vector:
    """All leaves as one vector of real numbers; a complex number is two."""
    parts = [np.zeros(0)]
    for leaf in leaves:
        wide = np.ravel(np.asarray(leaf, np.result_type(leaf, np.float64)))
        parts.append(wide.view(wide.real.dtype))
    return np.concatenate(parts)


def _like(vector: Vector, leaves: Sequence[Any]) -> list[Any]:
    """The leaves that a vector stands for, of the shapes, dtypes and kinds of ``leaves``."""
    made: list[Any] = []
    start = 0
    for leaf in leaves:
        dtype = _dtype(leaf)
        stop = start + np.size(leaf) * (2 if dtype.kind == "c" else 1)
        part = vector[start:stop]
        if dtype.kind == "c":
            part = part[::2] + 1j * part[1::2]
        array = part.reshape(np.shape(leaf)).astype(dtype)
        made.append(array if isinstance(leaf, np.ndarray) else array[()] if hasattr(leaf, "dtype") else array.item())
        start = stop
    return made


def _place(i: int, leaves: Sequence[Any], names: Sequence[str]) -> str:
    """The name, path and index of the real variable number ``i``."""
    for leaf, name in zip(leaves, names, strict=True):
        parts = 2 if _dtype(leaf).kind == "c" else 1
        if i < np.size(leaf) * parts:
            index = np.unravel_index(i // parts, np.shape(leaf))
            shown = f"[{', '.join(map(str, index))}]" if index else ""
            return f"{name}{shown}{('.real', '.imag')[i % 2] if parts == 2 else ''}"
        i -= np.size(leaf) * parts
    raise IndexError(i)


def _shown(x: Any) -> str:
    return f"{x:.6g}" if np.ndim(x) == 0 else np.array2string(x, precision=6, threshold=20)


def _spelled(path: Sequence[tuple[str, Any]]) -> str:
    return "".join(f".{key}" if step == "attr" else f"[{key!r}]" for step, key in path)


# -- strategies ----------------------------------------------------------------------------------------------------

Strategy = Any  # hypothesis' SearchStrategy, which is there only where hypothesis is
LAYOUTS = ("C", "F", "strided", "reversed", "broadcast")


def _hypothesis(module: str = "strategies") -> Any:
    try:
        return importlib.import_module(f"hypothesis.{module}")
    except ImportError as error:
        raise not_installed("a strategy of symgrad.testing", '"hypothesis[numpy]"') from error


def shapes(min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 4) -> Strategy:
    """Shapes, 0-d and empty ones among them.

    >>> shapes(min_dims=2, min_side=1).example()  # doctest: +SKIP
    (3, 1)
    """
    return _hypothesis("extra.numpy").array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side)


def broadcastable_shapes(n: int, max_dims: int = 3, max_side: int = 4) -> Strategy:
    """Tuples of ``n`` shapes that broadcast together."""
    made = _hypothesis("extra.numpy").mutually_broadcastable_shapes(num_shapes=n, max_dims=max_dims, max_side=max_side)
    return made.map(lambda result: result.input_shapes)


def away_from(kinks: Sequence[float] | float, lo: float = -2.0, hi: float = 2.0, gap: float = 0.05) -> Strategy:
    """Floats in ``[lo, hi]`` that stay at least ``gap`` away from the ``kinks``, where finite differences lie.

    Raises:
        ValueError: no float is left.
    """
    points = sorted([kinks] if isinstance(kinks, (int, float)) else kinks)
    starts, stops = [lo, *(k + gap for k in points)], [*(k - gap for k in points), hi]
    free = [(max(a, lo), min(b, hi)) for a, b in zip(starts, stops, strict=True)]
    st = _hypothesis()
    pieces = [st.floats(a, b, allow_subnormal=False) for a, b in free if a <= b]
    if not pieces:
        raise ValueError(f"no float in [{lo}, {hi}] is {gap} away from {points}")
    return st.one_of(pieces)


def arrays(
    shape: Any = None,
    dtype: Any = np.float64,
    *,
    lo: float = -2.0,
    hi: float = 2.0,
    elements: Strategy | None = None,
    layouts: bool = True,
) -> Strategy:
    """Arrays of floating point or complex numbers, in any memory layout.

    Args:
        shape: a shape, or a strategy of shapes; any small one by default.
        dtype: a dtype, or a strategy of dtypes.
        lo, hi: the bounds of the elements (of their real and imaginary parts).
        elements: a strategy of the elements (their parts), such as ``away_from(0.0)``, instead of the bounds.
        layouts: draw Fortran-ordered, strided, reversed and broadcast (read-only) arrays too.
    """
    st = _hypothesis()
    numbers = st.floats(lo, hi, allow_subnormal=False) if elements is None else elements

    def draw(draw: Any) -> Any:
        size = shapes() if shape is None else shape
        size = draw(size) if hasattr(size, "example") else size
        kind = np.dtype(draw(dtype) if hasattr(dtype, "example") else dtype)
        layout = draw(st.sampled_from(LAYOUTS)) if layouts else "C"
        stored = (1, *size[1:]) if layout == "broadcast" and size else size
        parts = [
            _hypothesis("extra.numpy").arrays(np.float64, stored, elements=numbers) for _ in range(2 if kind.kind == "c" else 1)
        ]
        values = draw(parts[0]) if len(parts) == 1 else draw(parts[0]) + 1j * draw(parts[1])
        return laid_out(np.asarray(values).astype(kind), layout, size)

    return st.composite(draw)()


def laid_out(values: Vector, layout: str, shape: tuple[int, ...] | None = None) -> Vector:
    """An array of these values in another memory layout, one of ``LAYOUTS``.

    >>> laid_out(np.ones((2, 3)), "strided").strides
    (96, 16)
    """
    if layout == "F":
        return np.asfortranarray(values) if values.ndim else values
    if layout == "broadcast":
        return np.broadcast_to(values, values.shape if shape is None else shape)
    if layout in ("strided", "reversed") and values.ndim:
        step = 2 if layout == "strided" else -1
        room = np.zeros([n * abs(step) for n in values.shape], values.dtype)
        view = room[(slice(None, None, step),) * values.ndim]
        view[...] = values
        return view
    return values


def arguments(*specs: Any) -> Strategy:
    """Argument tuples: each of ``specs`` is a strategy, a tree of them (a dict, tuple, list, namedtuple or dataclass), or a
    value held fixed.

    >>> arguments({"w": arrays((2, 3)), "b": arrays((3,))}, arrays((2,)), "relu")  # doctest: +ELLIPSIS
    tuples(...)
    """
    return _hypothesis().tuples(*map(_structured, specs))


def _structured(spec: Any) -> Strategy:
    st = _hypothesis()
    leaves, tree = pytree.flatten(spec)
    return st.tuples(*(leaf if hasattr(leaf, "example") else st.just(leaf) for leaf in leaves)).map(tree.unflatten)


# -- random programs -----------------------------------------------------------------------------------------------


@dataclass
class Program:
    """A random NumPy function: its ``repr`` is its source; call it with ``arguments(seed)``."""

    source: str
    specs: dict[str, tuple[str, tuple[int, ...]]]
    seed: int

    def __post_init__(self) -> None:
        filename = f"<program {zlib.crc32(self.source.encode()):08x}>"
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(True), filename)
        namespace: dict[str, Any] = {"np": np}
        exec(compile(self.source, filename, "exec"), namespace)
        self.fun: Callable[..., Any] = namespace["program"]
        self.__signature__ = inspect.signature(self.fun)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {kind}{list(shape)}" for name, (kind, shape) in self.specs.items())
        return f"# {kinds}; seed {self.seed}\n{self.source}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # how hypothesis shows it
        printer.text(repr(self))

    @property
    def __name__(self) -> str:  # a derivative is called after its function
        return "program"

    def __call__(self, *args: Any) -> Any:
        return self.fun(*args)

    def arguments(self, seed: int | None = None) -> tuple[Any, ...]:
        """Arguments of generic values: another seed gives others, which may take other branches."""
        rng = np.random.default_rng(self.seed if seed is None else seed)
        return tuple(_argument(rng, kind, shape) for kind, shape in self.specs.values())


def _argument(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    values = rng.uniform(-1.5, 1.5, shape)
    if kind == "float":
        return float(values)
    return (values + 1j * rng.uniform(-1.5, 1.5, shape) if kind == "complex128" else values).astype(kind)


# Templates of expressions: {a}, {b} are variables, {c} a number of either sign, {p} a positive one, {i} a small int.
# NumPy says whether an expression fits its variables: the ones that raise or warn are drawn again.
SMOOTH = """
    np.sin({a}) np.cos({a}) np.tanh({a}) np.arctan({a}) np.exp(-{a}*{a}) np.sqrt({a}*{a}+{p}) np.log1p({a}*{a})
    {a}*{a} -{a} {a}**2 {a}**3 {c}*{a} {a}+{c} {c}-{a} {a}/{p} {p}/(1.0+{a}*{a}) np.square({a}) 2.0**np.sin({a})
    np.abs({a}+{c}) {a}+{b} {a}-{b} {a}*{b} {a}/(1.5+{b}*{b}) np.add({a},{b}) np.multiply({a},np.cos({b}))
    np.subtract({b},{a}) np.logaddexp({a},{b}) np.hypot({a},{b}+3.0) np.arctan2({a},3.0+{b}*{b}) np.maximum({a},{b})
    np.minimum({a},{c}) np.where({a}>{c},{a}*{b},np.sin({b})) np.where({a}>{b},{a},{c}) np.clip({a},-{p},{p})
    np.maximum({a},{c})*{b} {a}.astype(np.float64) {a}.copy() np.positive({a}) np.power(1.0+{p}*{a}*{a},{c})
    np.expm1(np.sin({a})) {i}*{a} {a}+np.ones_like({a}) np.nan_to_num({a}) np.sinc({a})
    np.float_power({a}*{a}+{p},{c}) np.real(({a}+{c}*1j)*({b}-1j)) np.imag(np.exp(1j*{a})) np.abs({a}+1j*({b}+3.0))
    np.real(np.conj({a}+1j)*{b}) ({a}>{c})*{b} -1*({a}<{b})*{b} {b}*(0-({a}>{c})) {b}-{b}*({a}<{c})
""".split()
REDUCING = """
    np.sum({a}) {a}.sum(axis=0) {a}.sum(axis=-1,keepdims=True) np.mean({a},axis=0) {a}.mean() np.max({a})
    {a}.min(axis=-1) np.prod(np.cos({a}),axis=0) np.var({a})
    np.std({a}+np.arange(np.size({a})).reshape(np.shape({a}))) np.ptp({a}) np.linalg.norm({a}+{c})
    np.log(np.sum(np.exp({a}),axis=-1)) np.add.reduce({a},axis=0) np.sum({a}[{a}>{c}]) np.sum({a},axis=(0,1))
    {a}.sum().item() np.max({a},axis=0,keepdims=True) np.median({a},axis=0) np.average({a}) np.vdot({a},{b})
    np.dot({a}.ravel(),{a}.ravel()) np.einsum('...i,...i->...',{a},{b}) np.trace({a}@{a}.T)
    np.trace({a}[:1]@{b}.T)
""".split()
SHAPING = """
    {a}.reshape(-1) {a}.T np.ravel({a}) np.expand_dims({a},0) {a}[None] {a}[...,None] np.squeeze({a}) {a}[0] {a}[-1]
    {a}[1:] {a}[:-1] {a}[::-1] {a}[...,0] {a}[...,::2] {a}[[0,-1]] {a}[[0,0]] np.flip({a},-1) np.roll({a},{i},axis=-1)
    np.tile({a},2) np.repeat({a},2,axis=0) np.concatenate([{a},{b}]) np.stack([{a},{b}]) np.vstack([{a},{b}])
    np.hstack([{a},{b}]) np.pad({a},1) np.diag({a}) np.tril({a}) np.triu({a},1) np.swapaxes({a},0,-1)
    np.moveaxis({a},0,-1) np.broadcast_to({a},(2,)+np.shape({a})) np.take({a},[1,0],axis=0) np.split({a},2)[1]
    np.atleast_2d({a}) np.cumsum({a},axis=0) np.cumprod(np.cos({a}),axis=-1) np.sort({a},axis=-1) np.diff({a},axis=-1)
    {a}.flatten()
""".split()
LINEAR = """
    {a}@{b} {a}@{a}.T {a}.T@{b} np.dot({a},{b}) np.outer({a},{b}) np.einsum('ij,jk->ik',{a},{b})
    np.tensordot({a},{b},1) np.inner({a},{b}) np.matmul({a},{b}[...,None])
    np.linalg.inv({a}@{a}.mT+2.0*np.eye({a}.shape[-2])) np.linalg.solve({a}@{a}.mT+2.0*np.eye({a}.shape[-2]),{b})
    np.linalg.det({a}@{a}.mT+np.eye({a}.shape[-2])) np.linalg.cholesky({a}@{a}.mT+np.eye({a}.shape[-2]))
    np.linalg.slogdet({a}@{a}.mT+np.eye({a}.shape[-2]))[1] np.kron({a},{b})
""".split()
# Statements on a new variable {v}. Writes go to copies, and to views of copies.
WRITING = [
    "{v} = {a}.copy()\n{v}[0] = np.sum({b})",
    "{v} = {a}.copy()\n{v}[1:] *= {v}[:-1]",
    "{v} = {a} * 1.0\n{v} += {b}\n{v} *= {v}",
    "{v} = np.zeros_like({a})\n{v}[...] = {b}\n{v}[..., 0] -= {c}",
    "{v} = {a} + 0.0\nview = {v}[::-1]\nview[:1] = {p}\nview *= {c}",
    "{v} = np.copy({a})\nview = {v}.reshape(-1)\nview[::2] = np.sin(view[::2])",
    "{v} = {a}.copy()\n{v}.T[0] += {c}\n{v} = {v} * {b}",
    "{v} = np.sin({a})\nnp.multiply({v}, {b}, out={v})",
    "{v} = {a}.copy()\nnp.add.at({v}, [0, 0, -1], {c} * {v}[0])",
    "{v} = {a}.copy()\n{v}[{v} > {c}] = {p}",
    "{v} = np.empty_like({a})\nfor i in range(len({a})):\n    {v}[i] = np.cos({a}[i] * {c}) + i",
    "{v} = {a}.copy()\n{v} -= {v}.mean()\n{v} /= 1.0 + {v}.max() ** 2",
]
LOOPING = [
    "{v} = {a}\nfor i in range({i}):\n    {v} = np.tanh({v} * {b} + i * {c})",
    "{v} = {a}\nwhile np.sum(np.abs({v})) > {p}:\n    {v} = 0.6 * {v}",
    "{v} = 0.0\nfor row in {a}:\n    {v} = {v} + np.sin(row) * {c}",
    "{v} = [np.cos(x) * {p} for x in {a}]\n{v} = {v}[0] * {v}[-1]",
    "{v} = {a}\nfor i, row in enumerate({b}):\n    {v} = {v} + row * i if np.sum(row) > {c} else {v} * {p}",
    "{v}, steps = {a}, 0\nwhile steps < {i} and np.max({v}) > -9.0:\n    {v}, steps = np.sin({v}) + {b}, steps + 1",
]
BRANCHING = [
    "if np.sum({a}) > {c}:\n    {v} = {a} * {p}\nelse:\n    {v} = np.sin({a})",
    "{v} = {a} * {b} if np.max({a}) > {c} else {a} - {b}",
    "if np.mean({a}) < {c} and np.max({b}) > {p}:\n    {v} = {a} + {b}\n"
    "elif np.min({a}) > {c}:\n    {v} = {b} - {a}\nelse:\n    {v} = np.cos({a}) * {b}",
    "if np.all({a} > {c}):\n    {v} = {a} ** 2\nelse:\n    {v} = {a} * np.sum({b})",
    "k = int(np.sum({a} > {c}))\n{v} = {a} * k if k % 2 else np.sin({a})",
    "k = np.argmax({a})\n{v} = {b} * np.ravel({a})[k] ** 2",
]
# What is not selected is NaN or infinite in places, or its derivative is.
MASKED = [
    "{v} = np.where({a} > {c}, np.sqrt({a} - {c} + 0.2), {b})",
    "{v} = np.where({a} > {c}, ({a} - {c} + 0.3) ** 0.7 * {b}, np.sin({b}))",
    "{v} = np.where(np.abs({a}) > 1.0, {b}, np.arccos({a} * 0.9) * {b})",
    "{v} = np.where(np.rint({a}) == 0, {a}, {b} / np.rint({a}))",
    "{v} = np.select([{a} > {c}, {b} > {c}], [np.sqrt({a} - {c} + 0.2), np.sqrt({b} - {c} + 0.1) * {a}], {a} * {b})",
    "{v} = np.log({a} - {c} + 0.2)[{a} > {c}]",
    "{v} = np.sum(np.log({a} - {c} + 0.2) * {b}, where={a} > {c})",
    "{v} = np.maximum(np.sqrt(np.maximum({a} - {c}, 0.0)), 0.3) * {b}",
    "{v} = np.minimum(np.exp(1000.0 * ({a} + 0.0 * {b})), {b} + 3.0)",
    "{v} = np.log({a} - {c} + 0.2)\n    {v}[{a} < {c}] = {p}",
    "{v} = {b}\n    for i in range({i} + 3):\n        {v} = np.where({a} > {c}, {v} * 0.5 + np.sqrt({a} - {c} + 0.2), {v})",
    "{v} = np.sqrt({a} - {c} + 0.2)\n    {v} = np.where({a} > {c}, {v} * {v} * {b}, {a}) + np.where({a} > {c} + 0.5, {v}, 0.0)",
]
COMPLEX = """
    {a}*{a} np.exp(1j*{a}) np.conj({a}) {a}.sum(axis=0) {a}.T {a}+{c} {a}*(1.0-{p}j) 1.0/({a}*np.conj({a})+{p})
    np.sin({a}) np.real({a}) {a}.imag np.abs({a}+{c}) np.mean({a}) {a}.reshape(-1) {a}@np.conj({a}).T
    np.stack([{a},{a}]) {a}[...,::-1] np.angle({a}*{a}*0.05+3.0) np.tanh({a}*0.2) np.real({a}).astype(complex)
    np.where({a}.real>{c},{a},{a}*{a}) {a}*{b} {b}-{a}
""".split()
FORMS = {
    "smooth": [f"{{v}} = {text}" for text in SMOOTH],
    "reduce": [f"{{v}} = {text}" for text in REDUCING],
    "shape": [f"{{v}} = {text}" for text in SHAPING],
    "linear": [f"{{v}} = {text}" for text in LINEAR],
    "write": WRITING,
    "loop": LOOPING,
    "branch": BRANCHING,
    "complex": [f"{{v}} = {text}" for text in [*COMPLEX, "{b}+1j*{b}"]],
    "masked": [f"with np.errstate(all='ignore'):\n    {text}" for text in MASKED],
}
ALL_FORMS = (*FORMS, "numpy")
QUIET_FORMS = tuple(form for form in ALL_FORMS if form != "masked")  # which warn of nothing


@functools.cache
def templates_of(form: str) -> list[str]:
    """The templates of a form; ``"numpy"`` has one for each sample of each registered function."""
    if form != "numpy":
        return FORMS[form]
    found = []
    for op in REGISTRY.values():
        if isinstance(op, Composite) or (isinstance(op, Op) and op.family != "constant" and _named(op.name) is op.key):
            for sample in op.samples or _samples(op):
                variables = itertools.cycle(("{a}", "{b}"))
                try:
                    args = [_expression(arg, variables) for arg in sample.args]
                    args += [f"{key}={_expression(arg, variables)}" for key, arg in sample.kwargs.items()]
                except TypeError:  # what cannot be written down
                    continue
                found.append(f"{{v}} = {op.name}({', '.join(args)})")
    return found


def _samples(op: Op | Composite) -> list[Sample]:
    """Samples of an elementwise function that has none of its own."""
    if not isinstance(op, Op) or op.family != "elementwise":
        return []
    domain = np.broadcast_to(op.domain, (len(op.rules), 2)).tolist()
    return [Sample(*[A(*shape, lo=lo, hi=hi) for lo, hi in domain]) for shape in ((3,), (2, 3), ())]


def _named(name: str) -> Any:
    """The function that a name of NumPy's stands for."""
    found: Any = np
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _expression(value: Any, variables: Iterator[str]) -> str:
    """A sample's argument as an expression of a program's variables. No two of its elements are alike."""
    if isinstance(value, A):
        size, rng = int(np.prod(value.shape)), np.random.default_rng(value.shape)
        lo, hi = value.lo, value.hi
        if value.kind in ("int", "bool"):
            drawn = (
                rng.integers(0, 2, value.shape) == 1 if value.kind == "bool" else rng.integers(int(lo), int(hi), value.shape)
            )
            return f"np.array({drawn.tolist()})"
        if not size:
            raise TypeError("a program has no empty arrays")
        variable = next(variables)
        spread = f"np.resize({variable}, {value.shape}) + np.arange(1, {size + 1}).reshape({value.shape}) ** 1.3"
        text = f"{(lo + hi) / 2:.4g} + {(hi - lo) / 2.2:.4g} * np.sin({spread if value.shape else f'np.sum({variable})'})"
        if value.kind in ("spd", "well"):
            eye = f"{2.0 + value.shape[-1]} * np.eye({value.shape[-1]})"
            return f"(lambda m: m @ np.swapaxes(m, -1, -2) + {eye})({text})" if value.kind == "spd" else f"({text}) + {eye}"
        return text
    if isinstance(value, (tuple, list)):
        inner = "".join(f"{_expression(item, variables)}, " for item in value)
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()})"
    if isinstance(value, type(np.sum)) and _named(f"np.{value.__name__}") is value:
        return f"np.{value.__name__}"
    if isinstance(value, float) and not np.isfinite(value):
        return f"np.{value}" if value > 0 or value != value else "-np.inf"
    if value is None or isinstance(value, (bool, int, float, complex, str, slice)):
        return repr(value)
    raise TypeError(value)


def programs(min_ops: int = 3, max_ops: int = 40, *, forms: Sequence[str] = QUIET_FORMS, outputs: str = "scalar") -> Strategy:
    """Random programs with their arguments: straight lines, branches on values, loops and in-place writes.

    Values stay moderate, as do derivatives, and away from kinks almost surely. Arguments mix float64, float32, complex,
    Python numbers, 0-d and larger arrays.

    Args:
        min_ops, max_ops: bounds of the number of statements.
        forms: the kinds of statements to draw, of ``ALL_FORMS``: keys of ``FORMS``, and ``"numpy"`` for all that is registered.
            ``"masked"`` ones, which are left out by default, make NumPy warn.
        outputs: ``"scalar"`` for one real number, ``"tree"`` for a dict of all unused variables.

    Raises:
        ValueError: ``forms`` or ``outputs`` is none of these.
    """
    st = _hypothesis()
    if outputs not in ("scalar", "tree"):
        raise ValueError(f'outputs={outputs!r}: choose "scalar" or "tree"')
    if not forms or not set(forms) <= set(ALL_FORMS):
        raise ValueError(f"forms={forms!r}: choose from {', '.join(map(repr, ALL_FORMS))}")

    def draw(draw: Any) -> Program:
        kinds = ["float64", "float64", "float64", "float32", "float", *(["complex128"] if "complex" in forms else [])]
        # several arguments of one shape, for operations that need it
        shape = draw(st.sampled_from([(3,), (2, 3), (3, 3), (1, 3), (), (2, 2, 2)]))
        specs = {}
        for name in ["x", "y", "z"][: draw(st.integers(1, 3))]:
            kind = draw(st.sampled_from(kinds))
            specs[name] = (kind, () if kind == "float" else draw(st.sampled_from([shape, shape, shape[-1:], ()])))
        writer = _Writer(specs, draw(st.integers(0, 999)))
        numbers = st.integers(0, 12)
        for _ in range(draw(st.integers(min_ops, max_ops))):
            form = draw(st.sampled_from([form for form in forms if form != "complex"]))
            for _ in range(3):
                a = draw(st.sampled_from(writer.names()))
                templates = templates_of("complex" if np.iscomplexobj(writer.values[a]) else form)
                if writer.add(
                    draw(st.sampled_from(templates)),
                    a=a,
                    b=draw(st.sampled_from(writer.names())),
                    c=(draw(st.integers(-12, 12)) + 0.43) / 8,
                    p=(draw(numbers) + 0.57) / 8,
                    i=draw(st.integers(2, 4)),
                ):
                    break
        return writer.program(outputs)

    return st.composite(draw)()


class _Writer:
    """A program being written: each statement runs at once, and stays if NumPy likes it."""

    def __init__(self, specs: dict[str, tuple[str, tuple[int, ...]]], seed: int) -> None:
        self.specs, self.seed = specs, seed
        rng = np.random.default_rng(seed)
        self.values = {name: _argument(rng, kind, shape) for name, (kind, shape) in specs.items()}
        self.used: set[str] = set()
        self.lines: list[str] = []
        self.single = any(kind == "float32" for kind, _ in specs.values())

    def names(self) -> list[str]:
        """The variables, the latest first and more often, so that programs become deep and shrink to their ends."""
        names = list(self.values)[::-1]
        return names[:3] + names

    def add(self, template: str, a: str, b: str, c: float, p: float, i: int) -> bool:
        """Try a statement; whether it fits: it runs without a warning and gives a moderate number or small array."""
        if np.iscomplexobj(self.values[b]) and not np.iscomplexobj(self.values[a]):
            b = a
        v = f"v{len(self.values) - len(self.specs)}"
        text = template.format(v=v, a=a, b=b, c=f"({round(c, 3)})" if c < 0 else round(c, 3), p=round(p, 3), i=i)
        space = {"np": np, **self.values}
        try:
            with warnings.catch_warnings(), np.errstate(all="raise"):
                warnings.simplefilter("error")
                exec(text, space)
                value: Any = space[v]
                if isinstance(value, (tuple, list)) and value:
                    text, value = f"{text}[{i % len(value)}]", value[i % len(value)]
                size = float(np.max(np.abs(value)))
        except (TypeError, ValueError, IndexError, ArithmeticError, AttributeError, np.linalg.LinAlgError, Warning):
            return False
        is_number = isinstance(value, (np.ndarray, np.generic, float, complex))
        if not is_number:
            return False
        narrow = np.result_type(value).itemsize < 8 and not self.single  # finite differences would not know
        if not 1 <= np.size(value) <= 64 or np.ndim(value) > 3 or not _inexact(value) or narrow or not size < 1e3:
            return False
        self.lines += text.split("\n")
        if size > 4:
            self.lines.append(f"{v} = {v} * {2 / size:.2g}")
            value = value * float(f"{2 / size:.2g}")
        self.values[v] = value
        self.used.add(a)
        if "{b}" in template:
            self.used.add(b)
        return True

    def program(self, outputs: str) -> Program:
        ends = [name for name in self.values if name not in self.used] or list(self.values)[-1:]
        if outputs == "tree":
            self.lines.append(f"return {{{', '.join(f'{name!r}: {name}' for name in ends)}}}")
        else:
            terms = [f"np.sum(np.{'abs' if np.iscomplexobj(self.values[name]) else 'sin'}({name}))" for name in ends]
            self.lines.append(f"return {' + '.join(terms)}")
        lines = [f"def program({', '.join(self.specs)}):", *(f"    {line}" for line in self.lines)]
        return Program("\n".join(lines) + "\n", self.specs, self.seed)
