"""``scipy.interpolate``: curves through points, differentiable by the points, their heights, and where they are evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate as si

from symgrad.ops.index import array_of
from symgrad.ops.reduction import vector_shape


def __getattr__(name: str) -> Any:
    return getattr(si, name)


class CubicSpline:
    """The cubic spline through ``y`` at ``x``, two times continuously differentiable.

    ``bc_type``: ``"not-a-knot"``, ``"natural"`` or ``"clamped"``. Beyond the ends the first and last polynomials go on, or
    give NaN with ``extrapolate=False``.
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: str = "not-a-knot", extrapolate: bool = True) -> None:
        if bc_type not in ("not-a-knot", "natural", "clamped"):
            raise ValueError(f"bc_type={bc_type!r} is not here; choose 'not-a-knot', 'natural' or 'clamped'")
        self.x, self.axis, self.extrapolate = array_of(x), axis, extrapolate
        self.y = np.moveaxis(array_of(y), axis, 0)
        if np.ndim(self.x) != 1 or np.shape(self.x)[0] != np.shape(self.y)[0] or np.shape(self.x)[0] < 2:
            raise ValueError("x must have one dimension, at least two elements, and as many as y along its axis")
        if bool(np.any(np.diff(self.x) <= 0)):
            raise ValueError("x must increase")
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
        matrix = np.diag(diagonal) + np.diag(upper, 1) + np.diag(lower, -1)
        right = np.concatenate((r0, 3 * (column[1:] * rise[:-1] + column[:-1] * rise[1:]), r1))
        return np.reshape(np.linalg.solve(matrix, np.reshape(right, (n, -1))), np.shape(right))

    def __call__(self, x: Any, nu: int = 0) -> Any:
        """The values of the spline, or of its ``nu``-th derivative."""
        at = array_of(x)
        flat, count = np.ravel(at), np.shape(self.x)[0]
        place = np.clip(np.searchsorted(self.x, flat, side="right") - 1, 0, count - 2)
        column = vector_shape(0, np.ndim(self.y))
        start, h = self.x[place], np.reshape(self.x[place + 1] - self.x[place], column)
        t = np.reshape(flat - start, column)
        low, slope = self.y[place], self._slopes[place]
        rise = (self.y[place + 1] - low) / h
        bend = (self._slopes[place] + self._slopes[place + 1] - 2 * rise) / h
        coefficients = [low, slope, (rise - slope) / h - bend, bend / h]
        for _ in range(nu):
            coefficients = [k * c for k, c in enumerate(coefficients)][1:]
        value: Any = 0.0 * low
        for c in reversed(coefficients):
            value = value * t + c
        if not self.extrapolate:
            inside = np.reshape((flat >= self.x[0]) & (flat <= self.x[-1]), column)
            value = np.where(inside, value, np.nan)
        whole = np.reshape(value, np.shape(at) + np.shape(self.y)[1:])
        return np.moveaxis(whole, range(np.ndim(at)), range(self.axis, self.axis + np.ndim(at))) if self.axis else whole
