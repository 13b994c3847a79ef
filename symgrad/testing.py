"""Check derivatives, and draw inputs and programs for property tests.

``check_grads`` needs nothing but NumPy. The strategies need hypothesis (``pip install "symgrad[test]"``), which is
imported when the first one is made.
"""

from __future__ import annotations

import functools
import importlib
import linecache
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad import pytree
from symgrad.api import Derivative, jvp, vjp
from symgrad.errors import CheckFailed
from symgrad.transform.calculus import Argnums, select

Vector = np.ndarray[Any, np.dtype[Any]]

SMALL = 24  # real variables, up to which each derivative is compared by itself
LOCATED = 512  # real variables, up to which a mistake that a random direction has shown is located
STEPS = 3  # of finite differences, each half the one before


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

    Up to some 24 variables each derivative is compared by itself; beyond, derivatives in random directions. Forward and
    reverse mode must agree (``<u, J v> == <J' u, v>``), and so must traced and compiled runs. The point must be away from
    kinks, jumps and poles: finite differences lie there.

    Args:
        fun: any function that symgrad can differentiate; its output may be any tree, real or complex.
        args: its positional arguments. Integers, bools, strings and other leaves are held fixed.
        kwargs: its keyword arguments.
        argnums: which arguments to differentiate: a position, a name, or a tuple of them; all by default.
        order: how many times to differentiate. Each mode is applied to each derivative of the order before.
        modes: ``"rev"`` (vjp), ``"fwd"`` (jvp), or both.
        rtol, atol: tolerances against finite differences, ``eps ** 0.4`` of the least precise argument or output by
            default. ``atol`` counts in units of the output's magnitude, where that is above 1.
        eps: the step of the finite differences, ``eps ** 0.25`` of the least precise argument or output by default.
            Smaller ones follow, from which the limit is extrapolated.
        seed: of the random directions.

    Raises:
        CheckFailed: a derivative is wrong: the message says which, with the expected and the actual value.
        ValueError: there is nothing to differentiate, or a mode that is none.

    >>> check_grads(lambda x, y: np.sin(x) * y["scale"], (np.array([0.1, 0.2]), {"scale": 3.0}))
    >>> from symgrad import stop_gradient
    >>> check_grads(lambda x: x * stop_gradient(x), (3.0,))
    Traceback (most recent call last):
        ...
    symgrad.errors.CheckFailed: the derivative of <lambda> with respect to x is wrong (order 1, mode rev)
      expected 0.754384, by finite differences
      actual   0.377192
    """
    if not modes or not set(modes) <= {"rev", "fwd"}:
        raise ValueError(f'modes={modes!r}: choose from "rev" and "fwd"')
    if order < 1:
        raise ValueError(f"order={order!r}: must be at least 1")
    call = select(fun, (*range(len(args)), *(kwargs or {})) if argnums is None else argnums, args, kwargs or {})
    leaves, tree = pytree.flatten(call.selected)
    paths = [call.names[int(path[0][1])] + _spelled(path[1:]) for path in tree.paths()]
    free = [i for i, leaf in enumerate(leaves) if _inexact(leaf)]
    if not free:
        raise ValueError("check_grads was given no floating point or complex argument to differentiate")

    @functools.wraps(fun)
    def flat(*point: Any) -> list[Any]:
        """The function of its free leaves alone, with a list of floating point leaves as output."""
        filled = list(leaves)
        for i, x in zip(free, point, strict=True):
            filled[i] = x
        replaced = dict(zip(call.places, tree.unflatten(filled), strict=True))
        given = [replaced.get(i, arg) for i, arg in enumerate(call.args)]
        named = {name: replaced.get(name, arg) for name, arg in call.kwargs.items()}
        return [leaf for leaf in pytree.flatten(fun(*given, **named))[0] if _inexact(leaf)]

    title = getattr(fun, "__name__", type(fun).__name__)
    check = _Check(flat, [leaves[i] for i in free], [paths[i] for i in free], title, tuple(modes), rtol, atol, eps, seed)
    check.run(order)


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
        self.scale = float(max(1.0, np.max(np.abs(self.y[np.isfinite(self.y)]), initial=0.0)))
        rng = np.random.default_rng(seed)
        self.u, self.v = rng.uniform(-1, 1, self.y.size), rng.uniform(-1, 1, self.x.size)
        self.slopes: dict[int, Vector] = {}

    def run(self, order: int) -> None:
        """Check all modes, then the derivatives that they give, as functions."""
        if not self.out:
            return
        small = self.x.size <= (SMALL if not self.passes else 4)  # beyond the first order, calls take longer
        runs = {"rev": self.pulled, "fwd": self.pushed}
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

    def pulled(self, *point: Any) -> list[Any]:
        """The pullback of the fixed cotangent."""
        return list(vjp(self.fun, *point)[1](_like(self.u, self.out)))

    def pushed(self, *point: Any) -> list[Any]:
        """The pushforward of the fixed tangent."""
        return [t for t in jvp(self.fun, point, _like(self.v, self.point))[1] if _inexact(t)]

    def slope(self, v: Vector) -> Vector:
        """The derivative in a direction by central differences, extrapolated to step 0 (Ridders' table)."""
        before: list[Vector] = []
        best, doubt = np.full(self.y.size, np.nan), np.full(self.y.size, np.inf)
        for k in range(STEPS):
            h = self.step / 2**k
            with np.errstate(all="ignore"):
                above, below = (_vector(self.fun(*_like(self.x + s * h * v, self.point))) for s in (1, -1))
                now = [np.where(above == below, 0.0, above - below) / (2 * h)]  # equal infinities do not move
                for i, old in enumerate(before):
                    now.append((4 ** (i + 1) * now[i] - old) / (4 ** (i + 1) - 1))
                    error = np.maximum(np.abs(now[-1] - now[-2]), np.abs(now[-1] - old))
                    better = error < doubt
                    best[better], doubt[better] = now[-1][better], error[better]
            before = now
        return best

    def unit(self, i: int) -> Vector:
        """The direction of the real variable number ``i``."""
        v = np.zeros(self.x.size)
        v[i] = 1.0
        return v

    def slope_at(self, i: int) -> Vector:
        """The derivative by one variable, by finite differences."""
        if i not in self.slopes:
            self.slopes[i] = self.slope(self.unit(i))
        return self.slopes[i]

    # ---- checks ----

    def check_rev(self, small: bool) -> None:
        got = self.pulled(*self.point)
        self.check_kinds(got, self.point, self.names, "rev")
        g = _vector(got)
        if not small:
            slope = self.slope(self.v)
            if self.close(self.u @ slope, g @ self.v, np.abs(self.u) @ np.abs(slope)):
                return
        for i in range(self.x.size if small else min(self.x.size, LOCATED)):
            slope = self.slope_at(i)
            if not self.close(self.u @ slope, g[i], np.abs(self.u) @ np.abs(slope)):
                self.fail("rev", _place(i, self.point, self.names), self.u @ slope, g[i])
        if not small:
            self.fail("rev", "a random direction", self.u @ slope, g @ self.v)

    def check_fwd(self, small: bool) -> None:
        out, got = jvp(self.fun, self.point, _like(self.v, self.point))
        names = [f"output {i}" if len(self.out) > 1 else "the output" for i in range(len(self.out))]
        self.check_kinds(got, self.out, names, "fwd")
        if not np.allclose(_vector(out), self.y, self.same, self.same * self.scale, equal_nan=True):
            raise CheckFailed(f"{self.title} gives {self.out!r} when called, and {out!r} when traced")
        if not small:
            slope = self.slope(self.v)
            if all(map(self.close, slope, _vector(got), np.abs(slope))):
                return
        for i in range(self.x.size if small else min(self.x.size, LOCATED)):
            t, slope = _vector(jvp(self.fun, self.point, _like(self.unit(i), self.point))[1]), self.slope_at(i)
            for j in range(self.y.size):
                if not self.close(slope[j], t[j], abs(slope[j])):
                    of = f", {_place(j, self.out, names)}" if self.y.size > 1 else ""
                    self.fail("fwd", _place(i, self.point, self.names) + of, slope[j], t[j])
        if not small:
            self.fail("fwd", "a random direction", slope, _vector(got))

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
            derivative = Derivative("function", run, {"mode": how})
            for count in range(1 if how == "dynamic" else 3):
                leaves = derivative(*self.point)
                self.check_kinds(leaves, run(*self.point), [f"result {i}" for i in range(len(leaves))], mode)
                actual = _vector(leaves)
                if not all(_close(a, b, self.same * size) for a, b in zip(expected, actual, strict=True)):
                    raise CheckFailed(
                        f"call {count + 1} of the derivative of {self.title} in mode={how!r} gives another result than the "
                        f"function alone ({self.order(mode)})\n"
                        f"  expected {expected}\n  actual   {actual}\n{derivative.source(*self.point)}"
                    )

    def check_kinds(self, derivatives: Sequence[Any], leaves: Sequence[Any], names: Sequence[str], mode: str) -> None:
        """A derivative has the shape, dtype and kind (Python number, NumPy scalar, array) of what it belongs to."""
        for d, x, name in zip(derivatives, leaves, names, strict=True):
            if (got := _kind(d)) != (want := _kind(x)):
                raise CheckFailed(
                    f"the derivative of {self.title} for {name} is {got}, expected {want} ({self.order(mode)})"
                )

    def close(self, expected: float, actual: float, size: float) -> bool:
        """Whether a derivative is what finite differences say; both may be NaN, one may not."""
        return _close(expected, actual, self.atol * self.scale + self.rtol * size)

    def fail(self, mode: str, place: str, expected: Any, actual: Any) -> None:
        unknown = " (fun is not finite near this point, which can be no sample)" if np.any(np.isnan(expected)) else ""
        expected, actual = (np.array2string(np.asarray(x), precision=6, threshold=20) for x in (expected, actual))
        raise CheckFailed(
            f"the derivative of {self.title} with respect to {place} is wrong ({self.order(mode)})\n"
            f"  expected {expected}, by finite differences{unknown}\n"
            f"  actual   {actual}"
        )

    def order(self, mode: str) -> str:
        return f"order {len(self.passes) + 1}, mode {mode}{self.after()}"

    def after(self) -> str:
        return f" of {' of '.join(reversed(self.passes))}" if self.passes else ""


def _close(a: float, b: float, tolerance: float) -> bool:
    return bool(a == b or abs(a - b) <= tolerance or (np.isnan(a) and np.isnan(b)))


def _inexact(leaf: Any) -> bool:
    """Whether derivatives belong to a leaf; an object array is one of traced values."""
    return isinstance(leaf, (np.ndarray, np.generic, float, complex)) and _dtype(leaf).kind in "fcO"


def _dtype(leaf: Any) -> np.dtype[Any]:
    return leaf.dtype if hasattr(leaf, "dtype") else np.result_type(leaf)  # type: ignore[no-any-return]


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


def _spelled(path: Sequence[tuple[str, Any]]) -> str:
    return "".join(f".{key}" if step == "attr" else f"[{key!r}]" for step, key in path)
