"""``scipy.interpolate``: curves through points, differentiable by the points, their heights, and where they are evaluated."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.interpolate as si
from numpy.lib.array_utils import normalize_axis_index

from symgrad.errors import NotDifferentiable
from symgrad.ops.index import array_of, beside, floating, take_at
from symgrad.ops.reduction import vector_shape
from symgrad.scipy.linalg import solve_banded
from symgrad.scipy.plain import rest_of
from symgrad.watch.likeness import Holding

__getattr__ = rest_of(si)
BANDED = 48  # points of a spline from which on a system of bands takes less time than one of a matrix


def _double(x: Any) -> Any:
    """A copy in double precision, in which SciPy makes splines."""
    x = array_of(x)
    return x.astype(np.result_type(x.dtype, float))


class _Curve(Holding):
    """What of SciPy's curve is not here is an error that says so."""

    def __getattr__(self, name: str) -> Any:
        kind = type(self).__name__.removeprefix("_")
        more = f"; scipy.interpolate.{kind} has it, of plain arrays" if hasattr(getattr(si, kind, None), name) else ""
        raise AttributeError(f"symgrad.scipy.interpolate.{kind} has no {name}{more}")


class _Polynomials(_Curve):
    """Polynomials between points, by their coefficients in the distance from the point before, that of order 0 first."""

    def __init__(self, x: Any, coefficients: list[Any], axis: int, extrapolate: bool) -> None:
        self.x, self._coefficients, self.axis, self.extrapolate = x, coefficients, axis, extrapolate

    def _parts(self, place: Any) -> tuple[Any, list[Any]]:
        """The points before, and the coefficients, of the polynomials with these numbers."""
        return take_at(self.x, place), [take_at(c, place) for c in self._coefficients]

    @property
    def c(self) -> Any:
        """The coefficients, that of the highest order first."""
        return np.stack(self._all()[::-1])

    def _all(self) -> list[Any]:
        return self._parts(np.arange(np.shape(self.x)[0] - 1))[1]

    def __call__(self, x: Any, nu: int = 0) -> Any:
        """The values, or those of the ``nu``-th derivative."""
        at = array_of(x)
        flat, count = np.ravel(at), np.shape(self.x)[0]
        place = np.clip(np.searchsorted(self.x, flat, side="right") - 1, 0, count - 2)
        start, coefficients = self._parts(place)
        low = coefficients[0]
        column = vector_shape(0, np.ndim(low))
        t = np.reshape(flat - start, column)
        for _ in range(nu):
            coefficients = _sloped(coefficients)
        value: Any = 0.0 * (low + t)
        for c in reversed(coefficients):
            value = value * t + c
        if not self.extrapolate:
            inside = np.reshape((flat >= self.x[0]) & (flat <= self.x[-1]), column)
            value = np.where(inside, value, np.nan)
        whole = np.reshape(value, np.shape(at) + np.shape(low)[1:])
        return np.moveaxis(whole, range(np.ndim(at)), range(self.axis, self.axis + np.ndim(at))) if self.axis else whole

    def derivative(self, nu: int = 1) -> _Polynomials:
        """The ``nu``-th derivative."""
        if nu < 0:
            return self.antiderivative(-nu)
        coefficients = self._all()
        zero = 0.0 * coefficients[0]
        for _ in range(nu):
            coefficients = _sloped(coefficients)
        return _Polynomials(self.x, coefficients or [zero], self.axis, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> _Polynomials:
        """That whose ``nu``-th derivative this is, and which is 0 at the first point, as those in between are."""
        if nu < 0:
            return self.derivative(-nu)
        coefficients = self._all()
        h = np.reshape(np.diff(self.x), vector_shape(0, np.ndim(coefficients[0])))
        for _ in range(nu):
            coefficients = [c / (k + 1) for k, c in enumerate(coefficients)]
            gain: Any = 0.0
            for c in reversed(coefficients):
                gain = (gain + c) * h
            start = np.concatenate((0.0 * gain[:1], np.cumsum(gain, axis=0)[:-1]))
            coefficients = [start, *coefficients]
        return _Polynomials(self.x, coefficients, self.axis, self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: bool | None = None) -> Any:
        """The integral from ``a`` to ``b``."""
        if extrapolate not in (True, False, None):
            raise ValueError(f"extrapolate={extrapolate!r} is not here; choose True or False")
        whole = self.antiderivative()
        whole.extrapolate = self.extrapolate if extrapolate is None else extrapolate
        return whole(b) - whole(a)


def _sloped(coefficients: list[Any]) -> list[Any]:
    return [k * c for k, c in enumerate(coefficients)][1:]


class CubicHermiteSpline(_Polynomials):
    """The cubic polynomials between the points ``x`` that have the values ``y`` and the slopes ``dydx`` there.

    Beyond the ends the first and last polynomials go on, or give NaN with ``extrapolate=False``.
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: bool | None = None) -> None:
        self._take(x, y, axis, extrapolate)
        self._slopes = np.moveaxis(_double(dydx), axis, 0)

    def _take(self, x: Any, y: Any, axis: int, extrapolate: bool | None) -> None:
        if extrapolate not in (True, False, None):
            raise ValueError(f"extrapolate={extrapolate!r} is not here; choose True or False")
        self.x, self.extrapolate = _double(x), extrapolate is None or extrapolate
        y = _double(y)
        self.axis = normalize_axis_index(axis, np.ndim(y))
        self.y = np.moveaxis(y, axis, 0)
        if np.ndim(self.x) != 1 or np.shape(self.x)[0] != np.shape(self.y)[0] or np.shape(self.x)[0] < 2:
            raise ValueError("x must have one dimension, at least two elements, and as many as y along its axis")
        if bool(np.any(np.diff(self.x) <= 0)):
            raise ValueError("x must increase")

    def _parts(self, place: Any) -> tuple[Any, list[Any]]:
        start, low, slope = (take_at(a, place) for a in (self.x, self.y, self._slopes))
        end, high, next_slope = (take_at(a, place + 1) for a in (self.x, self.y, self._slopes))
        h = np.reshape(end - start, vector_shape(0, np.ndim(low)))
        rise = (high - low) / h
        bend = (slope + next_slope - 2 * rise) / h
        return start, [low, slope, (rise - slope) / h - bend, bend / h]


class _Lines(CubicHermiteSpline):
    """Lines between points."""

    def __init__(self, x: Any, y: Any, axis: int) -> None:
        self._take(x, y, axis, None)

    def _parts(self, place: Any) -> tuple[Any, list[Any]]:
        start, low = take_at(self.x, place), take_at(self.y, place)
        h = np.reshape(take_at(self.x, place + 1) - start, vector_shape(0, np.ndim(low)))
        return start, [low, (take_at(self.y, place + 1) - low) / h]


class CubicSpline(CubicHermiteSpline):
    """The cubic spline through ``y`` at ``x``, two times continuously differentiable.

    ``bc_type``: ``"not-a-knot"``, ``"natural"`` or ``"clamped"``. Beyond the ends the first and last polynomials go on, or
    give NaN with ``extrapolate=False``.
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: str = "not-a-knot", extrapolate: bool = True) -> None:
        if bc_type not in ("not-a-knot", "natural", "clamped"):
            raise ValueError(f"bc_type={bc_type!r} is not here; choose 'not-a-knot', 'natural' or 'clamped'")
        self._take(x, y, axis, extrapolate)
        self._slopes = self._solve(bc_type)

    def _solve(self, bc_type: str) -> Any:
        """The slopes at the points, by which the second derivatives have no jumps."""
        n, h = np.shape(self.x)[0], np.diff(self.x)
        rise = np.diff(self.y, axis=0) / np.reshape(h, vector_shape(0, np.ndim(self.y)))
        if n == 2 and bc_type != "clamped":
            return np.concatenate((rise, rise))
        if n == 3 and bc_type == "not-a-knot":  # a parabola
            first, second = h[0], h[1]
            middle = (rise[:1] * second + rise[1:] * first) / (first + second)
            return np.concatenate((2 * rise[:1] - middle, middle, 2 * rise[1:] - middle))
        if bc_type == "not-a-knot":  # the two polynomials at either end are one
            ends = [
                (b, a + b, ((3 * a + 2 * b) * b * near + a * a * far) / (a + b))
                for a, b, near, far in ((h[0], h[1], rise[:1], rise[1:2]), (h[-1], h[-2], rise[-1:], rise[-2:-1]))
            ]
        elif bc_type == "natural":
            ends = [(2.0, 1.0, 3 * rise[:1]), (2.0, 1.0, 3 * rise[-1:])]
        else:
            ends = [(1.0, 0.0, 0 * rise[:1]), (1.0, 0.0, 0 * rise[-1:])]
        one, column = np.ones(1), np.reshape(h, vector_shape(0, np.ndim(rise)))
        (d0, u0, r0), (d1, u1, r1) = ends
        diagonal = np.concatenate((d0 * one, 2 * (h[:-1] + h[1:]), d1 * one))
        upper, lower = np.concatenate((u0 * one, h[:-1])), np.concatenate((h[1:], u1 * one))
        right = np.concatenate((r0, 3 * (column[1:] * rise[:-1] + column[:-1] * rise[1:]), r1))
        rows = np.reshape(right, (n, -1))
        if n < BANDED:
            matrix = np.diag(diagonal) + np.diag(upper, 1) + np.diag(lower, -1)
            return np.reshape(np.linalg.solve(matrix, rows), np.shape(right))
        none = np.zeros(1)
        bands = np.stack((np.concatenate((none, upper)), diagonal, np.concatenate((lower, none))))
        return np.reshape(solve_banded((1, 1), bands, rows), np.shape(right))


class PchipInterpolator(CubicHermiteSpline):
    """Cubic polynomials through ``y`` at ``x`` that rise where the points rise, and fall where they fall."""

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: bool | None = None) -> None:
        self._take(x, y, axis, extrapolate)
        if np.iscomplexobj(self.y):
            raise ValueError("complex values neither rise nor fall")
        h = np.reshape(np.diff(self.x), vector_shape(0, np.ndim(self.y)))
        rise = np.diff(self.y, axis=0) / h
        if np.shape(self.x)[0] == 2:
            self._slopes = np.concatenate((rise, rise))
            return
        before, after = rise[:-1], rise[1:]
        turns = (np.sign(before) != np.sign(after)) | (before == 0)  # their product may be too small for a number
        near, far = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
        inner = (near + far) * before / (near + far * (before / np.where(turns, 1, after)))
        ends = [_at_end(h[i], h[j], rise[i], rise[j])[None] for i, j in ((0, 1), (-1, -2))]
        self._slopes = np.concatenate((ends[0], np.where(turns, 0, inner), ends[1]))


def _at_end(h: Any, next_h: Any, rise: Any, next_rise: Any) -> Any:
    """The slope at an end, of a parabola through three points, cut off so that nothing turns."""
    slope = ((2 * h + next_h) * rise - h * next_rise) / (h + next_h)
    steep = (np.sign(rise) != np.sign(next_rise)) & (np.abs(slope) > 3 * np.abs(rise))
    return np.where(np.sign(slope) != np.sign(rise), 0, np.where(steep, 3 * rise, slope))


class Akima1DInterpolator(CubicHermiteSpline):
    """Cubic polynomials through ``y`` at ``x`` whose slopes hang on the points nearby alone.

    ``method``: ``"akima"`` or ``"makima"``. Beyond the ends it is NaN, or with ``extrapolate=True`` the first and last
    polynomials go on.
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: bool | None = None) -> None:
        if method not in ("akima", "makima"):
            raise NotImplementedError(f"`method`={method} is unsupported.")
        self._take(x, y, axis, extrapolate)
        self.extrapolate = bool(extrapolate)
        if np.iscomplexobj(self.y):
            raise ValueError("`Akima1DInterpolator` only works with real values for `y`.")
        rise = np.diff(self.y, axis=0) / np.reshape(np.diff(self.x), vector_shape(0, np.ndim(self.y)))
        if np.shape(self.x)[0] == 2:
            self._slopes = np.concatenate((rise, rise))
            return
        ends = []
        for near, far in ((rise[:1], rise[1:2]), (rise[-1:], rise[-2:-1])):  # those of two more points on either side
            ends.append((2 * near - far, 3 * near - 2 * far))
        m = np.concatenate((ends[0][1], ends[0][0], rise, *ends[1]))
        change = np.abs(np.diff(m, axis=0))
        if method == "makima":
            change = change + 0.5 * np.abs(m[1:] + m[:-1])
        before, after = change[:-2], change[2:]
        total = before + after
        defined = total > 1e-9 * np.max(total, initial=0.0)
        share = before / np.where(defined, total, 1)
        self._slopes = np.where(defined, m[1:-2] + share * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: int = 0, axis: int = 0) -> Any:
    """The values, or ``der``-th derivatives, of a ``PchipInterpolator``."""
    return PchipInterpolator(xi, yi, axis)(x, der)


def make_interp_spline(x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, **rest: Any) -> Any:
    """The spline of degree 3 through ``y`` at ``x``: SciPy's, in the form of a ``CubicSpline``; or that of degree 1."""
    if t is not None or rest or k not in (1, 3) or (k == 1 and bc_type is not None) or (k == 3 and np.size(x) < 4):
        raise NotDifferentiable("make_interp_spline is here for k=1 and for k=3 of four points or more, without t=")
    return _Lines(x, y, axis) if k == 1 else CubicSpline(x, y, axis, bc_type or "not-a-knot")


STEPS = {
    "zero": lambda x, at: np.searchsorted(x, at, side="right") - 1,
    "previous": lambda x, at: np.searchsorted(x, at, side="right") - 1,
    "next": lambda x, at: np.searchsorted(x, at),
    "nearest": lambda x, at: np.searchsorted(x[:-1] / 2 + x[1:] / 2, at),
    "nearest-up": lambda x, at: np.searchsorted(x[:-1] / 2 + x[1:] / 2, at, side="right"),
}


DOUBLE = {np.dtype(float), np.dtype(int)}
ORDERS = {0: "zero", 1: "linear", 3: "cubic", "slinear": "linear"}


class interp1d(_Curve):
    """Lines between the points (``kind="linear"``), the spline of degree 3 through them (``"cubic"``), or the value at one of
    them (``"nearest"``, ``"nearest-up"``, ``"previous"``, ``"next"``).

    Outside, a ``ValueError``; ``fill_value`` with ``bounds_error=False``; what the first and last polynomials give with
    ``fill_value="extrapolate"``.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        kind = ORDERS.get(kind, kind)
        if kind not in (*STEPS, "linear", "cubic"):
            known = ", ".join(map(repr, ("linear", *STEPS, "cubic")))
            raise NotDifferentiable(f"interp1d has no derivative rule for kind={kind!r}; choose of {known}")
        x, y = array_of(x), floating(y)
        if np.ndim(x) != 1:
            raise ValueError("the x array must have exactly one dimension.")
        self._axis = normalize_axis_index(axis, np.ndim(y))
        y = np.moveaxis(y, axis, 0)
        if np.shape(x)[0] != np.shape(y)[0]:
            raise ValueError("x and y arrays must be equal in length along interpolation axis.")
        if not assume_sorted:
            order = np.argsort(x, kind="stable")
            x, y = x[order], y[order]
        elif copy:
            x, y = x.copy(), y.copy()
        y = y.astype(np.result_type(y, float)) if kind == "zero" else y  # to SciPy a spline, of degree 0
        self._spline, self._kind = CubicSpline(x, y) if kind == "cubic" else None, kind
        self.x, self._y, self._fill = x, y, fill_value
        self._extrapolates = isinstance(fill_value, str) and fill_value == "extrapolate"
        if self._extrapolates and bounds_error:
            raise ValueError("Cannot extrapolate and raise at the same time.")
        if self._extrapolates and kind in ("previous", "next"):  # before the first there is none, nor after the last
            self._fill = (np.nan, y[-1]) if kind == "previous" else (y[0], np.nan)
            self._extrapolates, bounds_error = False, False
        self._strict = not self._extrapolates and (bounds_error is None or bounds_error)

    def __call__(self, x: Any) -> Any:
        """The values at ``x``."""
        at = array_of(x)
        flat, last = np.ravel(at), np.shape(self.x)[0] - 1
        column = vector_shape(0, np.ndim(self._y))
        if self._spline is not None:
            value = self._spline(flat)
        elif self._kind in STEPS:
            value = take_at(self._y, np.clip(STEPS[self._kind](self.x, flat), 0, last))
            value = np.where(np.reshape(np.isnan(flat), column), np.nan, value) if self._kind == "zero" else value
        elif np.ndim(self._y) == 1 and not self._extrapolates and {self.x.dtype, self._y.dtype} <= DOUBLE:
            value = np.interp(flat, self.x, self._y)  # as SciPy, of one point and of several at one place, too
        else:
            place = np.clip(np.searchsorted(self.x, flat), 1, last) - 1
            start, low = take_at(self.x, place), take_at(self._y, place)
            t = np.reshape((flat - start) / (take_at(self.x, place + 1) - start), column)
            value = low + t * (take_at(self._y, place + 1) - low)
        if not self._extrapolates:
            below, above = flat < self.x[0], flat > self.x[last]
            if self._strict and bool(np.any(below | above)):
                raise ValueError("a value in x_new is outside of the interpolation range")
            low, high = self._fill if isinstance(self._fill, tuple) else (self._fill, self._fill)
            value = np.where(np.reshape(below, column), low, np.where(np.reshape(above, column), high, value))
        whole = np.reshape(value, np.shape(at) + np.shape(self._y)[1:])
        return np.moveaxis(whole, range(np.ndim(at)), range(self._axis, self._axis + np.ndim(at)))


class RegularGridInterpolator(_Curve):
    """Products of lines between values on a grid, in any dimension; or with ``method="nearest"``, the nearest value."""

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan, **rest: Any
    ) -> None:
        if rest:
            raise NotDifferentiable(f"RegularGridInterpolator has no derivative rule for {next(iter(rest))}=")
        self.grid, self.values = [array_of(axis) for axis in points], floating(values)
        self.method, self.bounds_error, self.fill_value = self._known(method), bounds_error, fill_value
        for i, axis in enumerate(self.grid):
            if np.ndim(axis) != 1 or np.shape(axis)[0] != np.shape(self.values)[i] or np.shape(axis)[0] < 2:
                raise ValueError(
                    f"points[{i}] must have one dimension, two elements or more, and as many as values along axis {i}"
                )
            if bool(axis[0] > axis[-1]):
                self.grid[i], self.values = np.flip(axis), np.flip(self.values, i)
            if bool(np.any(np.diff(self.grid[i]) <= 0)):
                raise ValueError(f"The points in dimension {i} must be strictly ascending or descending")

    @staticmethod
    def _known(method: str) -> str:
        if method not in ("linear", "slinear", "nearest"):
            raise NotDifferentiable(
                f"RegularGridInterpolator has no derivative rule for method={method!r}; choose 'linear' or 'nearest'"
            )
        return method

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """The values at points, of which the last axis of ``xi`` has the coordinates; or it is a tuple of them."""
        at = np.stack(np.broadcast_arrays(*map(array_of, xi)), axis=-1) if isinstance(xi, tuple) else array_of(xi)
        if np.ndim(at) == 1:
            at = np.reshape(at, (-1, len(self.grid)))
        if np.shape(at)[-1:] != (len(self.grid),):
            raise ValueError(f"the points have {np.shape(at)[-1]} coordinates, the grid {len(self.grid)}")
        flat = np.reshape(at, (-1, len(self.grid)))
        outside, nowhere, places, shares = False, np.any(np.isnan(flat), axis=1), [], []
        for i, axis in enumerate(self.grid):
            x, last = flat[:, i], np.shape(axis)[0] - 2
            place = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, last)
            outside = outside | (x < axis[0]) | (x > axis[-1])
            places.append(place)
            start = take_at(axis, place)
            shares.append((x - start) / (take_at(axis, place + 1) - start))
        if self.bounds_error and bool(np.any(outside | nowhere)):
            raise ValueError("One of the requested xi is out of bounds")
        column, values = vector_shape(0, np.ndim(self.values) - len(self.grid) + 1), beside(flat, self.values)
        value: Any = 0.0
        if (self.method if method is None else self._known(method)) == "nearest":
            value = values[tuple([np.where(t <= 0.5, place, place + 1) for place, t in zip(places, shares, strict=True)])]
        else:
            for corner in itertools.product((0, 1), repeat=len(places)):
                weight: Any = 1.0
                for t, up in zip(shares, corner, strict=True):
                    weight = weight * (t if up else 1 - t)
                part = values[tuple([place + up for place, up in zip(places, corner, strict=True)])]
                value = value + np.reshape(weight, column) * part
        if not self.bounds_error and self.fill_value is not None:
            value = np.where(np.reshape(outside, column), self.fill_value, value)
        value = np.where(np.reshape(nowhere, column), np.nan, value)
        return np.reshape(value, np.shape(at)[:-1] + np.shape(self.values)[len(self.grid) :])


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """The values at points between those on a grid, by a ``RegularGridInterpolator``."""
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
