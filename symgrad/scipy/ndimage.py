"""``scipy.ndimage``: filters, and values between the elements of an image."""

from __future__ import annotations

import functools
import itertools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.ndimage as sn
import scipy.special as sp
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from symgrad.errors import NotDifferentiable
from symgrad.ops.contract import conj
from symgrad.ops.index import array_of, floating, traced_in
from symgrad.ops.reduction import ROOT
from symgrad.scipy import signal
from symgrad.scipy.plain import named, rest_of
from symgrad.scipy.signal import PADDED, extended, window

__getattr__ = rest_of(sn)


def _image(name: str, input: Any) -> Any:
    """An image, of no integers: of those, SciPy's results are integers, too."""
    x = array_of(input)
    if x.dtype.kind in "biu":
        raise NotDifferentiable(f"scipy.ndimage.{name} of integers rounds to integers; give it image.astype(float)")
    return x


def _only(name: str, mode: Any, origin: Any, output: Any) -> None:
    """Raise for what is not here."""
    if output is not None or np.any(np.asarray(origin) != 0):
        raise NotDifferentiable(
            f"scipy.ndimage.{name} has no derivative rule for {'output' if output is not None else 'origin'}="
        )
    if mode not in PADDED:
        raise NotDifferentiable(f"scipy.ndimage.{name} has no derivative rule for mode={mode!r}; choose of {', '.join(PADDED)}")


# -- filters -------------------------------------------------------------------------------------------------------


def convolve1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """The convolution with weights along one axis."""
    _only("convolve1d", mode, origin, output)
    x, weights = _image("convolve1d", input), _one_row(weights)
    return window(x, _like(x, weights), normalize_axis_index(axis, np.ndim(x)), mode, cval)


def _one_row(weights: Any) -> Any:
    weights = array_of(weights)
    if np.ndim(weights) != 1 or not np.size(weights):
        raise RuntimeError("no filter weights given")
    return weights


def _like(x: Any, weights: Any) -> Any:
    """The weights in the precision of an image, which the result has."""
    dtype = x.real.dtype
    return weights.astype(np.result_type(dtype, np.complex64) if np.iscomplexobj(weights) else dtype)


def correlate1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """The correlation with weights along one axis."""
    _only("correlate1d", mode, origin, output)
    return correlate(input, _lying(_one_row(weights), axis, np.ndim(input)), mode=mode, cval=cval)


def _lying(weights: Any, axis: int, ndim: int) -> Any:
    axis = normalize_axis_index(axis, ndim)
    return np.reshape(weights, [-1 if i == axis else 1 for i in range(ndim)])


def convolve(
    input: Any, weights: Any, output: Any = None, mode: str = "reflect", cval: float = 0.0, origin: Any = 0, **rest: Any
) -> Any:
    """The convolution of an image with weights."""
    return _filtered("convolve", input, array_of(weights), output, mode, cval, origin, rest)


def correlate(
    input: Any, weights: Any, output: Any = None, mode: str = "reflect", cval: float = 0.0, origin: Any = 0, **rest: Any
) -> Any:
    """The correlation of an image with weights."""
    return _filtered("correlate", input, np.flip(conj(array_of(weights))), output, mode, cval, origin, rest)


def _filtered(name: str, input: Any, weights: Any, output: Any, mode: str, cval: float, origin: Any, rest: Any) -> Any:
    _only(name, mode, origin, output)
    if rest:
        raise NotDifferentiable(f"scipy.ndimage.{name} has no derivative rule for {next(iter(rest))}=")
    x, first = _image(name, input), int(name == "convolve")
    weights = _like(x, weights)
    if not np.size(x):
        return x.astype(np.result_type(x.dtype, weights.dtype))
    pads = [((n - first) // 2, (n - 1 + first) // 2) for n in np.shape(weights)]
    return signal.convolve(extended(x, pads, mode, cval), weights, "valid", "direct")


def gaussian_filter1d(
    input: Any,
    sigma: float,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Any:
    """A Gaussian filter along one axis, or one by its derivative of some order."""
    reach = int(truncate * float(sigma) + 0.5) if radius is None else radius
    impulse = np.zeros(2 * reach + 1)
    impulse[reach] = 1.0
    x = array_of(input)
    weights = sn.gaussian_filter1d(impulse, float(sigma), order=order, mode="constant", radius=reach)
    return convolve1d(x, weights, axis, output, mode, cval)


def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """A Gaussian filter along all axes, or some."""
    x = array_of(input)
    along = _axes(axes, np.ndim(x))
    lists = [_each(option, len(along)) for option in (sigma, order, mode, radius)]
    for axis, width, how, edge, reach in zip(along, *lists, strict=True):
        if width > 1e-15:
            x = gaussian_filter1d(x, width, axis, how, output, edge, cval, truncate, radius=reach)
    return _another(x, input)


def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """The means of so many elements, along one axis."""
    _only("uniform_filter1d", mode, origin, output)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    x = array_of(input)
    return correlate1d(x, np.full(size, 1 / size), axis, None, mode, cval)


def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The means of so many elements along all axes, or some."""
    x = array_of(input)
    along = _axes(axes, np.ndim(x))
    for axis, width, edge in zip(along, _each(size, len(along)), _each(mode, len(along)), strict=True):
        if width > 1:
            x = uniform_filter1d(x, width, axis, output, edge, cval, origin)
    return _another(x, input)


def sobel(input: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0) -> Any:
    """Differences along one axis, smoothed along the others."""
    return _differences(input, axis, output, mode, cval, [1.0, 2.0, 1.0])


def prewitt(input: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0) -> Any:
    """Differences along one axis, summed along the others."""
    return _differences(input, axis, output, mode, cval, [1.0, 1.0, 1.0])


def _differences(x: Any, axis: int, output: Any, mode: str, cval: float, sums: list[float]) -> Any:
    ndim = np.ndim(x)
    x = correlate1d(x, np.array([-1.0, 0.0, 1.0]), axis, output, mode, cval)
    for other in set(range(ndim)) - {normalize_axis_index(axis, ndim)}:
        x = correlate1d(x, np.array(sums), other, output, mode, cval)
    return x


def laplace(input: Any, output: Any = None, mode: str = "reflect", cval: float = 0.0) -> Any:
    """The sum of the second differences along all axes."""
    second = np.array([1.0, -2.0, 1.0])
    return _total(input, [correlate1d(input, second, axis, output, mode, cval) for axis in range(np.ndim(input))])


def _total(input: Any, parts: list[Any]) -> Any:
    """The sum of one part for each axis; the image itself where it has none, as SciPy has it."""
    return functools.reduce(operator.add, parts) if parts else array_of(input).copy()


def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None, **options: Any
) -> Any:
    """The sum of the Gaussian filters by second derivatives along all axes, or some."""
    return _total(input, _derivatives(input, sigma, 2, output, mode, cval, axes, options))


def gaussian_gradient_magnitude(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None, **options: Any
) -> Any:
    """The length of what Gaussian filters by derivatives along all axes give."""
    if axes is not None:  # along the others, SciPy's smooths, too
        raise NotDifferentiable("scipy.ndimage.gaussian_gradient_magnitude has no derivative rule for axes=")
    parts = _derivatives(input, sigma, 1, output, mode, cval, axes, options)
    return ROOT(_total(input, [part * part for part in parts])) if parts else _total(input, parts)


def _derivatives(
    input: Any, sigma: Any, order: int, output: Any, mode: Any, cval: float, axes: Any, options: dict[str, Any]
) -> list[Any]:
    """A Gaussian filter for each axis, by a derivative along it."""
    along = _axes(axes, np.ndim(input))
    return [
        gaussian_filter(input, sigma, [order * (k == axis) for k in along], output, edge, cval, axes=along, **options)
        for axis, edge in zip(along, _each(mode, len(along)), strict=True)
    ]


def _another(x: Any, input: Any) -> Any:
    """A result that may be written into, though nothing was filtered."""
    return x.copy() if x is input else x


def _axes(axes: Any, ndim: int) -> list[int]:
    return list(range(ndim)) if axes is None else list(normalize_axis_tuple(axes, ndim))


def _each(option: Any, count: int) -> Sequence[Any]:
    several = isinstance(option, (Sequence, np.ndarray)) and not isinstance(option, str) and np.ndim(option) > 0
    return option if several else [option] * count


# -- extremes ------------------------------------------------------------------------------------------------------


def _along_one(name: str, text: str, find: Any) -> Callable[..., Any]:
    """A filter of so many elements along one axis."""

    def fun(
        input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0, origin: int = 0
    ) -> Any:
        if traced_in([input, cval]) is None:
            return getattr(sn, name)(input, size, axis, output, mode, cval, origin)
        return _extremes(name, find, input, (size,), None, output, mode, cval, origin, axis)

    return named(fun, name, text)


def _along_several(name: str, text: str, find: Any) -> Callable[..., Any]:
    """A filter of some size along all axes, or some, or where the footprint is true."""

    def fun(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: float = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        if traced_in([input, cval]) is None:
            return getattr(sn, name)(input, size, footprint, output, mode, cval, origin, axes=axes)
        return _extremes(name, find, input, size, footprint, output, mode, cval, origin, axes)

    return named(fun, name, text)


maximum_filter1d = _along_one("maximum_filter1d", "The largest of so many elements, along one axis.", np.max)
minimum_filter1d = _along_one("minimum_filter1d", "The least of so many elements, along one axis.", np.min)
maximum_filter = _along_several("maximum_filter", "The largest within a window around each element.", np.max)
minimum_filter = _along_several("minimum_filter", "The least within a window around each element.", np.min)


def _extremes(
    name: str,
    find: Any,
    input: Any,
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    turned: bool = False,
) -> Any:
    """What ``find`` finds within windows, which have one element more before the middle than behind if their size is even.

    Those that are ``turned`` have it behind.
    """
    x = array_of(input)
    if np.iscomplexobj(x):
        raise TypeError("Complex type not supported")
    along = _axes(axes, np.ndim(x))
    modes = _each(mode, len(along))
    for edge in modes:
        _only(name, edge, origin, output)
    mask = None
    if footprint is not None:
        if size is not None:
            warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=3)
        mask = array_of(footprint) != 0
        mask = np.flip(mask) if turned else mask
        if np.ndim(mask) != len(along):
            raise RuntimeError(f"footprint.ndim ({np.ndim(mask)}) must match len(axes) ({len(along)})")
        if not bool(np.any(mask)):
            raise ValueError("All-zero footprint is not supported.")
    elif size is None:
        raise RuntimeError("no footprint provided")
    if not np.size(x):
        return x.copy()
    sizes = _each(size, len(along)) if mask is None else np.shape(mask)
    view = np.lib.stride_tricks.sliding_window_view
    for axis, width, edge in zip(along, sizes, modes, strict=True):
        ends = (width // 2, (width - 1) // 2)
        pads = [(0, 0)] * np.ndim(x)
        pads[axis] = ends[::-1] if turned else ends
        x = extended(x, pads, edge, cval) if width > 1 else x
        if mask is None and width > 1:  # the extreme of extremes along one axis after the other
            x = find(view(x, width, axis), axis=-1)
    if mask is None:
        return _another(x, input)
    windows = view(x, np.shape(mask), tuple(along))
    return find(np.where(mask, windows, _last(x.dtype, find is np.max)), axis=tuple(range(-len(along), 0)))


def _last(dtype: Any, largest: bool) -> Any:
    """What is never the largest, or least, but among others like it."""
    if dtype.kind in "bf":
        return dtype.type(not largest) if dtype.kind == "b" else dtype.type(-np.inf if largest else np.inf)
    return np.iinfo(dtype).min if largest else np.iinfo(dtype).max


def _grey(name: str, text: str, find: Any) -> Callable[..., Any]:
    """Erosion or dilation, whose windows are turned."""

    def fun(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        structure: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: float = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        if traced_in([input, cval, structure]) is None:
            options = {} if axes is None else {"axes": axes}  # which older SciPys do not have
            return getattr(sn, name)(input, size, footprint, structure, output, mode, cval, origin, **options)
        if structure is not None:
            raise NotDifferentiable(f"scipy.ndimage.{name} has no derivative rule for structure=")
        if size is None and footprint is None:
            raise ValueError("size, footprint, or structure must be specified")
        return _extremes(name, find, input, size, footprint, output, mode, cval, origin, axes, find is np.max)

    return named(fun, name, text)


def _composed(name: str, text: str, made: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """A function of the image, and of what erodes and what dilates one, with the options of these."""

    def fun(input: Any, *given: Any, **options: Any) -> Any:
        if traced_in([input, *given, *options.values()]) is None:
            return getattr(sn, name)(input, *given, **options)
        erode, dilate = (lambda x, step=step: step(x, *given, **options) for step in (grey_erosion, grey_dilation))
        return made(array_of(input), erode, dilate)

    return named(fun, name, text)


# fmt: off
grey_erosion = _grey("grey_erosion", "The least within a window around each element.", np.min)
grey_dilation = _grey("grey_dilation", "The largest within a window around each element, turned.", np.max)
grey_opening = _composed("grey_opening", "The dilation of the erosion.", lambda x, erode, dilate: dilate(erode(x)))
grey_closing = _composed("grey_closing", "The erosion of the dilation.", lambda x, erode, dilate: erode(dilate(x)))
morphological_gradient = _composed("morphological_gradient", "The dilation without the erosion.",
                                   lambda x, erode, dilate: dilate(x) - erode(x))
morphological_laplace = _composed("morphological_laplace", "The dilation and the erosion, without the image twice.",
                                  lambda x, erode, dilate: dilate(x) + erode(x) - 2 * x)
white_tophat = _composed("white_tophat", "The image without its opening.", lambda x, erode, dilate: x - dilate(erode(x)))
black_tophat = _composed("black_tophat", "The closing without the image.", lambda x, erode, dilate: erode(dilate(x)) - x)
# fmt: on


# -- values between elements ---------------------------------------------------------------------------------------


BEYOND = ("constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "wrap", "grid-wrap")


def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """The values of an image between its elements: by lines (``order=1``), or the nearest (0)."""
    if traced_in([input, coordinates, cval]) is None:
        return sn.map_coordinates(input, coordinates, output, order, mode, cval, prefilter)
    at = array_of(coordinates)
    if np.shape(at)[0] != np.ndim(input):
        raise ValueError(f"there are {np.shape(at)[0]} coordinates of an image of {np.ndim(input)} dimensions")
    return _between("map_coordinates", input, [at[i] for i in range(np.shape(at)[0])], output, order, mode, cval)


def _between(name: str, input: Any, places: list[Any], output: Any, order: int, mode: str, cval: Any) -> Any:
    """The values of an image at places, of which there are some along each axis."""
    if order not in (0, 1) or output is not None:
        given = f"order={order}; write order=1" if output is None else "output="
        raise NotDifferentiable(f"scipy.ndimage.{name} has no derivative rule for {given}")
    if mode not in BEYOND:
        raise NotDifferentiable(f"scipy.ndimage.{name} has no derivative rule for mode={mode!r}; choose of {', '.join(BEYOND)}")
    x = _image(name, input)
    sides, outside = [], np.zeros((), bool)
    for place, n in zip(places, np.shape(x), strict=True):
        outside = outside | (place < 0) | (place > n - 1)
        place = _wrapped(place, n) if mode == "wrap" else place
        place = _turned(place, n, mode) if order == 0 else place
        exact = order == 0 or place.dtype.kind in "iu"
        low = np.floor(place + 0.5 if exact else place).astype(int)
        sides.append([(low, 1.0)] if exact else [(low, 1 - (place - low)), (low + 1, place - low)])
    total: Any = 0.0
    for corner in itertools.product(*sides):
        weight: Any = 1.0
        for _, share in corner:
            weight = weight * share
        part = x[tuple([_folded(k, n, mode) for (k, _), n in zip(corner, np.shape(x), strict=True)])]
        if mode == "grid-constant":
            beyond = [(k < 0) | (k >= n) for (k, _), n in zip(corner, np.shape(x), strict=True)]
            part = np.where(functools.reduce(operator.or_, beyond), cval, part)
        total = total + weight * part
    total = total if total.dtype == x.dtype else total.astype(x.dtype)
    return np.where(outside, cval, total) if mode == "constant" else total


def _wrapped(place: Any, n: int) -> Any:
    """A place beyond an axis of ``n`` elements, of which the first and the last are one."""
    last = max(n - 1, 1)
    moved = np.where(place < 0, place + last * (np.floor(-place / last) + 1), place - last * np.floor(place / last))
    return np.where((place < 0) | (place > n - 1), moved if n > 1 else 0 * moved, place)


def _turned(place: Any, n: int, mode: str) -> Any:
    """A place beyond an axis whose elements come again in reverse, as SciPy moves it before it looks for the nearest one.

    Which of two that are as near it takes hangs on that.
    """
    twice = int(mode in ("reflect", "grid-mirror"))  # whether the last element is there twice in a row
    period = 2 * (n - 1 + twice)
    if not period or not (twice or mode == "mirror"):
        return place
    below, above = -(-place % period), place % period
    below = np.where(below < 1 - n - twice, below + period, -below - twice)
    return np.where(place < 0, below, np.where(above >= n, period - above - twice, above))


def _folded(k: Any, n: int, mode: str) -> Any:
    """An index beyond an axis of ``n`` elements as one of them."""
    if mode == "grid-wrap":
        return k % n
    if mode in ("reflect", "grid-mirror"):
        k = k % (2 * n)
        return np.minimum(k, 2 * n - 1 - k)
    if mode == "mirror" and n > 1:
        k = k % (2 * n - 2)
        return np.minimum(k, 2 * n - 2 - k)
    return np.clip(k, 0, n - 1)


def _shifted(shape: tuple[int, ...], by: Any) -> list[Any]:
    by = _each(by, len(shape))
    return [_lying(np.arange(n) - by[i], i, len(shape)) for i, n in enumerate(shape)]


def _zoomed(shape: tuple[int, ...], by: Any, grid_mode: bool) -> list[Any]:
    lines = []
    for n, factor in zip(shape, _each(by, len(shape)), strict=True):
        places = np.arange(round(n * float(factor)))
        more, half = (0, 0.5) if grid_mode else (1, 0.0)
        scale = (n - more) / (len(places) - more) if len(places) != more else 1.0
        lines.append((places + half) * scale - half)
    return [_lying(line, i, len(shape)) for i, line in enumerate(lines)]


def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image moved by so many elements along each axis, or along all."""
    if traced_in([input, shift, cval]) is None:
        return sn.shift(input, shift, output, order, mode, cval, prefilter)
    return _between("shift", input, _shifted(np.shape(input), shift), output, order, mode, cval)


def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """The image with so many times the elements along each axis, or along all."""
    if traced_in([input, zoom, cval]) is None:
        return sn.zoom(input, zoom, output, order, mode, cval, prefilter, grid_mode=grid_mode)
    return _between("zoom", input, _zoomed(np.shape(input), zoom, grid_mode), output, order, mode, cval)


def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image whose element ``o`` is that at ``matrix @ o + offset``; or the matrix has the offset as its last column."""
    if traced_in([input, matrix, offset, cval]) is None:
        return sn.affine_transform(input, matrix, offset, output_shape, output, order, mode, cval, prefilter)
    matrix, ndim = floating(matrix), np.ndim(input)
    if np.ndim(matrix) == 2 and np.shape(matrix)[1] == ndim + 1:
        matrix, offset = matrix[:ndim, :ndim], matrix[:ndim, ndim]
    shape = np.shape(input) if output_shape is None else tuple(output_shape)
    if np.shape(matrix) not in ((ndim,), (ndim, len(shape))):
        raise RuntimeError(f"the matrix has shape {np.shape(matrix)}, the image {ndim} dimensions")
    offset, lines = _each(offset, ndim), [_lying(np.arange(n), i, len(shape)) for i, n in enumerate(shape)]
    if np.ndim(matrix) == 1:
        places = [(line + offset[i] / matrix[i]) * matrix[i] for i, line in enumerate(lines)]
    else:
        places = [sum([line * matrix[i, j] for j, line in enumerate(lines)], offset[i]) for i in range(ndim)]
    return _between("affine_transform", input, places, output, order, mode, cval)


def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image turned by so many degrees, in the plane of two axes; it is as large as before without ``reshape``."""
    if traced_in([input, angle, cval]) is None:
        return sn.rotate(input, angle, axes, reshape, output, order, mode, cval, prefilter)
    ndim, shape = np.ndim(input), list(np.shape(input))
    first, second = sorted(normalize_axis_tuple(axes, ndim))
    plane = np.array([shape[first], shape[second]])
    c, s = sp.cosdg(angle), sp.sindg(angle)
    matrix = np.stack((np.stack((c, s)), np.stack((-s, c))))
    size = plane
    if reshape:
        size = np.ptp(matrix @ np.array([[0, 0, *plane[[0, 0]]], [0, plane[1], 0, plane[1]]]), axis=1) + 0.5
        size = np.array([int(size[0]), int(size[1])])
    shape[first], shape[second] = size.tolist()
    offset = (plane - 1) / 2 - matrix @ ((size - 1) / 2)
    places = [_lying(np.arange(n), i, ndim) for i, n in enumerate(shape)]
    y, x = places[first], places[second]
    places[first], places[second] = (offset[i] + y * matrix[i, 0] + x * matrix[i, 1] for i in range(2))
    return _between("rotate", input, places, output, order, mode, cval)


# -- measurements --------------------------------------------------------------------------------------------------


def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The mean of the places, weighted by the numbers there: of all, of those that have a label, or for each of several."""
    x = array_of(input)
    if labels is not None and np.ndim(index):
        return [center_of_mass(x, labels, label) for label in np.ravel(index)]
    if labels is not None:
        labels = np.broadcast_to(labels, np.shape(x))
        x = np.where(labels > 0 if index is None else labels == index, x, np.zeros((), x.dtype))
    total, places = np.sum(x), np.ogrid[tuple(map(slice, np.shape(x)))]
    return tuple([np.sum(x * place.astype(float)) / total for place in places])
