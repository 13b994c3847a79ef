"""Sampled functions: interpolation, numerical gradients, phases, zeros at the ends. Convolution is in ``contract``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from symgrad.ops.core import A, Op, Sample, composite, op
from symgrad.ops.index import array_of, floating
from symgrad.ops.reduction import along, vector_shape

# -- interpolation -------------------------------------------------------------------------------------------------


def _slope(x: Any, xp: Any, fp: Any) -> Any:
    """The slope at ``x``: 0 outside, at a knot the one nearest to 0 of those that lie between its two sides."""
    xp, fp = _double(xp), _double(fp)
    steps = np.diff(fp) / np.diff(xp)
    sides = np.concatenate((steps[:1], steps, steps[-1:]))
    if np.size(x) < 4 * np.size(xp) + 1000:
        slope = _flatter(sides[np.searchsorted(xp, x)], sides[np.searchsorted(xp, x, side="right")])
        return np.where((x >= xp[0]) & (x <= xp[-1]), slope, 0)
    at_knots = _flatter(sides[np.searchsorted(xp, xp)], sides[np.searchsorted(xp, xp, side="right")])
    i = np.searchsorted(xp, x, side="right")  # the search is most of the time: one is enough for many
    outside = np.zeros_like(steps[:1])
    return np.concatenate((outside, steps, outside, at_knots))[i + np.where(x == xp[i - 1], np.size(xp), 0)]


def _flatter(left: Any, right: Any) -> Any:
    """The slope nearest to 0 of those that lie between two."""
    turn = np.real(np.conj(left) * right if np.iscomplexobj(left) else left * right) <= 0
    return np.where((left != right) & turn, 0, np.where(np.abs(left) < np.abs(right), left, right))


def _double(points: Any) -> Any:
    """In double precision, as NumPy takes them: differences of small integers overflow."""
    dtype = np.result_type(points.dtype, np.float64)
    return points if points.dtype == dtype else points.astype(dtype)


def _place(x: Any, xp: Any) -> tuple[Any, Any]:
    """Which segment ``x`` is in, and how far, from 0 to 1."""
    i, xp = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, np.size(xp) - 2), _double(xp)
    return i, np.clip((x - xp[i]) / np.diff(xp)[i], 0, 1)


def interp_x(g: Any, y: Any, x: Any, xp: Any, fp: Any) -> Any:
    return np.zeros_like(x) if np.size(xp) < 2 else g * _slope(x, xp, fp)


def interp_xp(g: Any, y: Any, x: Any, xp: Any, fp: Any) -> Any:
    """Moving a knot shifts the line by minus its slope there."""
    if np.size(xp) < 2:
        return np.zeros_like(xp)
    (i, t), xp, fp = _place(x, xp), _double(xp), _double(fp)
    shift = -g * (np.diff(fp) / np.diff(xp))[i]
    shift = np.where((x >= xp[0]) & (x <= xp[-1]), shift, 0)
    return _spread(shift * (1 - t), i, xp) + _spread(shift * t, i + 1, xp)


def interp_fp(g: Any, y: Any, x: Any, xp: Any, fp: Any) -> Any:
    if np.size(xp) < 2:
        return np.reshape(np.sum(g), (1,))
    i, t = _place(x, xp)
    return _spread(g * (1 - t), i, fp) + _spread(g * t, i + 1, fp)


def _spread(values: Any, places: Any, like: Any) -> Any:
    """Zeros as many as in ``like``, with ``values`` added at ``places``."""
    total = np.zeros_like(like, dtype=np.result_type(values))
    np.add.at(total, places, values)
    return total


INTERP = Op(
    np.interp,
    "op",
    (interp_x, interp_xp, interp_fp),
    lanes=("same", None, None),
    samples=[
        Sample(A(4), np.linspace(-3, 3, 5), A(5)),
        Sample(A(2, 3), np.linspace(-1.5, 1.1, 4), A(4)),
        Sample(A(), np.array([-2.5, 0.1, 2.5]), A(3)),
        Sample(A(3), np.array([0.5]), A(1)),
    ],
    complex=False,
)


@composite(
    np.interp,
    samples=[
        Sample(A(4), np.linspace(-3, 3, 5), A(5)),
        Sample(A(2, 3), np.linspace(-1.5, 1.1, 4), A(4), left=A(), right=0.5),
        Sample(A(5), [A(lo=-2.9, hi=-2.1), A(lo=-0.5, hi=0.5), A(lo=2.1, hi=2.9)], A(3)),
        Sample(A(4), np.array([2.0, 0.5, -1.2]), A(3), period=3.0),
        Sample(A(3), np.array([0.5]), A(1)),
        Sample(np.linspace(-3, 3, 7), np.linspace(-2, 2, 4), A(4)),
    ],
    complex=False,  # x must be real, fp may be complex
)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = array_of(x), array_of(xp), array_of(fp)
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period, left, right = abs(period), None, None
        x, xp = [_double(places) % period for places in (x, xp)]
        order = np.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp, fp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period)), np.concatenate((fp[-1:], fp, fp[:1]))
    y = INTERP(x, xp, fp)
    if left is not None:
        y = np.where(x < xp[0], left, y)
    return y if right is None else np.where(x > xp[-1], right, y)


# -- numerical gradients -------------------------------------------------------------------------------------------


@composite(
    np.gradient,
    samples=[
        Sample(A(5)),
        Sample(A(3, 4)),
        Sample(A(5), 0.5),
        Sample(A(3, 4), 2.0, A(lo=1), axis=(1, 0)),
        Sample(A(5), [0.0, 1.0, 1.5, 3.5, A(lo=4, hi=5)]),
        Sample(A(3, 4), axis=0, edge_order=2),
        Sample(A(4, 2), [0.0, 1.0, 2.0, A(lo=4, hi=5)], axis=0, edge_order=2),
        Sample(A(2), A(lo=0.5)),
        Sample(A(2, 4), 2.0, [0.0, 1.0, 2.0, A(lo=4, hi=5)], edge_order=1),
    ],
)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences inside, one-sided ones at the ends."""
    f = floating(f)
    ndim = np.ndim(f)
    axes = range(ndim) if axis is None else normalize_axis_tuple(axis, ndim)
    varargs = tuple(map(array_of, varargs))
    if len(varargs) < 2 and not any(np.ndim(step) for step in varargs):
        varargs = (varargs[0] if varargs else 1.0,) * len(axes)
    if len(varargs) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    found = []
    for i, step in zip(axes, varargs, strict=True):
        if np.shape(f)[i] < edge_order + 1:
            raise ValueError("Shape of array too small to calculate a numerical gradient")
        uneven = np.ndim(step) > 0
        step = step.astype(float) if hasattr(step, "dtype") and step.dtype.kind in "iu" else step
        slopes = np.concatenate(_differences(f, i, np.diff(step) if uneven else step, uneven, edge_order), i)
        found.append(slopes if slopes.dtype == f.dtype else slopes.astype(f.dtype))
    return found[0] if len(axes) == 1 else tuple(found)


def _differences(f: Any, axis: int, h: Any, uneven: bool, edge_order: int) -> tuple[Any, Any, Any]:
    """The first, the inner and the last slopes along an axis; ``h`` are the distances between samples, or the one."""

    def part(*ends: Any) -> Any:
        return f[along(axis, slice(*ends))]

    def step(*ends: Any) -> Any:
        return np.reshape(h[slice(*ends)], vector_shape(axis, np.ndim(f))) if uneven else h

    before, after = step(None, -1), step(1, None)
    if uneven:
        whole = before + after
        inner = (
            part(None, -2) * (-after / (before * whole))
            + part(1, -1) * ((after - before) / (before * after))
            + part(2, None) * (before / (after * whole))
        )
    else:
        inner = (part(2, None) - part(None, -2)) / (2.0 * h)
    first, last = step(0, 1), step(-1, None)
    if edge_order == 1:
        return (part(1, 2) - part(0, 1)) / first, inner, (part(-1, None) - part(-2, -1)) / last
    next_, previous = step(1, 2), step(-2, -1)
    ends = []
    for near, far, (a, b, c) in (
        (first, next_, (part(0, 1), part(1, 2), part(2, 3))),
        (-last, -previous, (part(-1, None), part(-2, -1), part(-3, -2))),
    ):
        whole = near + far
        slope = b * (whole / (near * far)) - a * ((near + whole) / (near * whole)) - c * (near / (far * whole))
        ends.append(slope)
    return ends[0], inner, ends[1]


# -- phases --------------------------------------------------------------------------------------------------------

op(
    np.unwrap,
    lambda g, y, p, discont=None, axis=-1, *, period=2 * np.pi: g,
    jvp=lambda ts, y, p, **options: ts[0],
    lanes="same",
    samples=[
        Sample(A(6, lo=-9, hi=9)),
        Sample(A(3, 4, lo=-9, hi=9)),
        Sample(A(4, 3, lo=-9, hi=9), axis=0),
        Sample(A(5, lo=-9, hi=9), 4.0),
        Sample(A(5), period=1.5),
        Sample(A(1)),
    ],
    complex=False,
)

# -- zeros at the ends ---------------------------------------------------------------------------------------------


@composite(
    np.trim_zeros,
    samples=[
        Sample(A(2), "f"),
        Sample(A(3), trim="b"),
        Sample(A(3)),
        Sample(A(4), "fb"),
    ],
)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """The part that is not zero; how far the zeros reach is looked at."""
    filt, trim = array_of(filt), trim.lower()
    ndim = np.ndim(filt)
    axes = range(ndim) if axis is None else normalize_axis_tuple(axis, ndim)
    parts = []
    for i in range(ndim):
        places = np.flatnonzero(np.any(filt != 0, axis=tuple(k for k in range(ndim) if k != i)))
        some = np.size(places) and i in axes
        first = int(places[0]) if some and "f" in trim else None
        last = int(places[-1]) + 1 if some and "b" in trim else None
        parts.append(slice(first, last if np.size(places) or i not in axes else 0))
    return filt[tuple(parts)]
