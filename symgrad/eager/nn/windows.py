"""Convolutions, pooling, resizing: what looks at windows of its input.

All come down to one table of places: which elements of the flattened image each element of the result looks at.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.eager import ops
from symgrad.eager.core import Tensor, apply, called, labelled, wrap
from symgrad.eager.dtypes import c_name, title
from symgrad.eager.pointwise import FUNCTIONS
from symgrad.eager.products import matmul
from symgrad.eager.shapes import cat, permute, reshape, squeeze, unsqueeze
from symgrad.ops.reduction import vector_shape

Table = Any  # of places along one dimension: a row for each element of the result; -1 for beyond the edge


def _each(value: Any, d: int) -> tuple[Any, ...]:
    """One number for each of ``d`` dimensions."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return given * d if len(given) == 1 else given


def _windows(n: int, size: int, stride: int, padding: int, dilation: int = 1, ceil: bool = False) -> Table:
    """The places of windows that move along a dimension of ``n`` elements."""
    room = n + 2 * padding - dilation * (size - 1) - 1
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= n + padding:  # a window must begin within the input or its left margin
        count -= 1
    if count < 1:
        raise RuntimeError(
            f"Calculated padded input size per channel: ({n + 2 * padding}). Kernel size: ({size}). "
            "Kernel size can't be greater than actual input size"
        )
    places = np.arange(count)[:, None] * stride - padding + np.arange(size) * dilation
    return np.where((places >= 0) & (places < n), places, -1)


def _parts(n: int, count: int) -> Table:
    """The places of ``count`` windows that share out ``n`` elements about evenly."""
    starts = np.arange(count) * n // count
    ends = -(-(np.arange(count) + 1) * n // count)
    places = starts[:, None] + np.arange((ends - starts).max(initial=1))
    return np.where(places < ends[:, None], places, -1)


def _joined(tables: Sequence[Table], sizes: Sequence[int]) -> Table:
    """The places in the flattened image, -1 for beyond an edge, from those along each dimension."""
    flat = np.zeros((1, 1), np.int64)
    for table, n in zip(tables, sizes, strict=True):
        before, here = flat[:, None, :, None], table[None, :, None, :]
        pairs = np.where((before < 0) | (here < 0), -1, before * n + here)
        flat = pairs.reshape(flat.shape[0] * table.shape[0], flat.shape[1] * table.shape[1])
    return flat


def _taken(x: Tensor, places: Table, d: int, beyond: float = 0.0) -> Any:
    """For each image the elements at these places: (images, elements of the result, elements of a window)."""
    size = math.prod(x.value.shape[-d:])
    rows = reshape(x, (math.prod(x.value.shape[:-d]), size))
    if (places < 0).any():
        edge = np.full((rows.value.shape[0], 1), beyond, x.value.dtype)
        rows, places = cat([rows, wrap(edge)], 1), np.where(places < 0, size, places)
    return apply(ops.TAKE, (rows, places), {"axis": 1})


def _batched(x: Tensor, d: int) -> tuple[Tensor, bool]:
    """The input with a batch dimension, and whether that is new."""
    alone = x.value.ndim == d + 1
    return (unsqueeze(x, 0) if alone else x), alone


def _alike(x: Tensor, weight: Tensor, bias: Any) -> None:
    """Refuse weights of another dtype."""
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.value.dtype != x.value.dtype:
            kinds = f"Input type ({c_name(x.value.dtype)}) and {name} type ({c_name(part.value.dtype)})"
            raise RuntimeError(f"{kinds} should be the same")


def _check_bias(weight: Tensor, bias: Any, made: int, turned: str = "") -> None:
    """Raise where this is not one number for each channel that is made."""
    if bias is not None and bias.value.shape != (made,):
        raise RuntimeError(
            f"Given {turned}weight of size {list(weight.value.shape)}, expected bias to be 1-dimensional with {made} elements, "
            f"but got bias of size {list(bias.value.shape)} instead"
        )


# -- convolutions --------------------------------------------------------------------------------------------------


def _check_steps(steps: Sequence[int], edges: Sequence[int], apart: Sequence[int]) -> None:
    """Refuse windows that stand still, or begin within the input."""
    if min(edges) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(steps) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(apart) <= 0:
        raise RuntimeError("non-positive dilation is not supported")


def _conv(d: int) -> Callable[..., Any]:
    @called(f"conv{d}d", f"Products with a kernel that moves along {'one dimension' if d == 1 else f'{d} dimensions'}.")
    def fun(
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        x, alone = _batched(input, d)
        if x.value.ndim != d + 2:
            raise RuntimeError(
                f"Expected {d + 1}D (unbatched) or {d + 2}D (batched) input to conv{d}d, but got input of size: "
                f"{list(input.value.shape)}"
            )
        _alike(input, weight, bias)
        n, channels, *sizes = x.value.shape
        made, each, *kernel = weight.value.shape
        if each * groups != channels:
            raise RuntimeError(
                f"Given groups={groups}, weight of size {list(weight.value.shape)}, expected input{list(x.value.shape)} to "
                f"have {each * groups} channels, but got {channels} channels instead"
            )
        if made % groups:
            raise RuntimeError(
                f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
                f"[{list(weight.value.shape)}] instead"
            )
        _check_bias(weight, bias, made)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        steps, apart = _each(stride, d), _each(dilation, d)
        if padding == "same":
            if any([step != 1 for step in steps]):
                raise RuntimeError("padding='same' is not supported for strided convolutions")
            margins = [a * (k - 1) for k, a in zip(kernel, apart, strict=True)]
            widths = ((0, 0), (0, 0), *[(total // 2, total - total // 2) for total in margins])
            x = apply(ops.PAD, (x,), {"widths": widths, "value": 0})
            sizes, padding = list(x.value.shape[2:]), 0
        edges = _each(0 if padding == "valid" else padding, d)
        _check_steps(steps, edges, apart)
        room = [n + 2 * edge for n, edge in zip(sizes, edges, strict=True)]
        reach = [a * (k - 1) + 1 for k, a in zip(kernel, apart, strict=True)]
        if any([k > n for k, n in zip(reach, room, strict=True)]):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({' x '.join(map(str, room))}). Kernel size: "
                f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
            )
        tables = [_windows(*args) for args in zip(sizes, kernel, steps, edges, apart, strict=True)]
        cols = _taken(x, _joined(tables, sizes), d)
        count, window = cols.value.shape[1:]
        cols = reshape(permute(reshape(cols, (n, channels, count, window)), (0, 1, 3, 2)), (n, groups, each * window, count))
        y = matmul(reshape(weight, (groups, made // groups, each * window)), cols)
        y = reshape(y, (n, made, *[len(table) for table in tables]))
        y = y if bias is None else y + reshape(bias, vector_shape(1, d + 2))
        return squeeze(y, 0) if alone else labelled(y, "ConvolutionBackward0")

    return fun


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))


def _conv_transpose(d: int) -> Callable[..., Any]:
    @called(f"conv_transpose{d}d", f"The transpose of ``conv{d}d``, by its input.")
    def fun(
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        x, alone = _batched(input, d)
        _alike(input, weight, bias)
        n, channels, *sizes = x.value.shape
        taken, each, *kernel = weight.value.shape
        if taken != channels:
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(weight.value.shape)}, expected input{list(x.value.shape)} to have "
                f"{taken} channels, but got {channels} channels instead"
            )
        _check_bias(weight, bias, each * groups, "transposed=1, ")
        steps, edges, more, apart = (_each(option, d) for option in (stride, padding, output_padding, dilation))
        _check_steps(steps, edges, apart)
        for o, s, a in zip(more, steps, apart, strict=True):
            if o >= max(s, a):
                raise RuntimeError(
                    "output padding must be smaller than either stride or dilation, but got output_padding: "
                    f"{o} stride: {s} dilation: {a}"
                )
        whole = [
            (m - 1) * s - 2 * p + a * (k - 1) + o + 1
            for m, s, p, a, k, o in zip(sizes, steps, edges, apart, kernel, more, strict=True)
        ]
        if min(whole) < 1:
            line = [1] * (d == 1)  # torch's is a matrix of one row
            before, after = (" x ".join(map(str, line + list(lengths))) for lengths in (sizes, whole))
            raise RuntimeError(
                f"Given input size per channel: ({before}). Calculated output size per channel: ({after}). Output size is too "
                "small"
            )
        tables = [_windows(*args)[:m] for m, *args in zip(sizes, whole, kernel, steps, edges, apart, strict=True)]
        places, size = _joined(tables, whole), math.prod(whole)
        count, window = places.shape
        turned = permute(reshape(weight, (groups, channels // groups, each * window)), (0, 2, 1))
        cols = matmul(turned, reshape(x, (n, groups, channels // groups, count)))
        cols = permute(reshape(cols, (n * groups * each, window, count)), (0, 2, 1))
        shape = (n * groups * each, size + 1)
        y = apply(ops.ADD_ROWS, (cols, np.where(places < 0, size, places)), {"axis": 1, "shape": shape})
        y = reshape(y[:, :size], (n, groups * each, *whole))
        y = y if bias is None else y + reshape(bias, vector_shape(1, d + 2))
        return squeeze(y, 0) if alone else labelled(y, "ConvolutionBackward0")

    return fun


conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose, (1, 2, 3))


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """All windows of images, as columns."""
    x, alone = _batched(input, 2)
    n, channels, *sizes = x.value.shape
    options = zip(sizes, *(_each(option, 2) for option in (kernel_size, stride, padding, dilation)), strict=True)
    cols = _taken(x, _joined([_windows(*args) for args in options], sizes), 2)
    count, window = cols.value.shape[1:]
    y = reshape(permute(reshape(cols, (n, channels, count, window)), (0, 1, 3, 2)), (n, channels * window, count))
    return squeeze(y, 0) if alone else labelled(y, "Im2ColBackward0")


def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Images of windows that are added up: the transpose of ``unfold``."""
    x, alone = _batched(input, 1)
    sizes, kernel = _each(output_size, 2), _each(kernel_size, 2)
    options = zip(sizes, kernel, *(_each(option, 2) for option in (stride, padding, dilation)), strict=True)
    places = _joined([_windows(*args) for args in options], sizes)
    (n, rows, columns), (count, window) = x.value.shape, places.shape
    if rows % window:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
            f"{rows} and kernel_size={kernel}."
        )
    if columns != count:
        raise RuntimeError(
            f"Given output_size={sizes} and kernel_size={kernel}, expected size of input's dimension 2 to match the calculated "
            f"number of sliding blocks {count}, but got input.size(2)={columns}."
        )
    size, channels = math.prod(sizes), rows // window
    cols = reshape(permute(reshape(x, (n, channels, window, count)), (0, 1, 3, 2)), (n * channels, count, window))
    shape = (n * channels, size + 1)
    y = apply(ops.ADD_ROWS, (cols, np.where(places < 0, size, places)), {"axis": 1, "shape": shape})
    y = reshape(y[:, :size], (n, channels, *sizes))
    return squeeze(y, 0) if alone else labelled(y, "Col2ImBackward0")


# -- pooling -------------------------------------------------------------------------------------------------------


def _pooled(y: Tensor, alone: bool, name: str, d: int) -> Any:
    """The result, without a batch dimension that was added, by torch's name."""
    indices = "WithIndices" if name == "MaxPool" else ""
    label = f"{name}{d}D{indices}Backward0" if d > 1 else "SqueezeBackward1"
    return labelled(squeeze(y, 0) if alone else y, label)


def _check_moves(name: str, kernel: Any, steps: Any, apart: Any = ()) -> None:
    """Raise for windows of no size, or that stand still."""
    for what, given in (("kernel_size", kernel), ("stride", steps), ("dilation", apart)):
        if min(given, default=1) <= 0:
            shown = given[0] if len(given) == 1 else given
            raise RuntimeError(f"{name}() {what} must be greater than zero, but got {shown}")


def _check_margins(kernel: Any, edges: Any, apart: Any) -> None:
    """No window may lie in the margin alone."""
    for size, edge, step in zip(kernel, edges, apart, strict=True):
        if edge < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {edge}")
        if edge > ((size - 1) * step + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={edge}, kernel_size={size} and "
                f"dilation={step}"
            )


def _rounding(x: Tensor) -> dict[str, str]:
    """Means of integers are integers."""
    return {} if x.value.dtype.kind in "fc" else {"rounding_mode": "trunc"}


def _avg_pool(d: int) -> Callable[..., Any]:
    @called(f"avg_pool{d}d", "The means of windows.")
    def fun(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        x, alone = _batched(input, d)
        sizes, kernel = x.value.shape[2:], _each(kernel_size, d)
        steps, edges = kernel if stride is None or stride == () else _each(stride, d), _each(padding, d)
        _check_moves(f"avg_pool{d}d", kernel, steps)
        if x.value.dtype.kind != "f" and x.value.dtype != np.int64:
            raise NotImplementedError(f"\"avg_pool{max(d, 2)}d\" not implemented for '{title(x.value.dtype)}'")
        _check_margins(kernel, edges, (1,) * d)
        if d == 3 and any([n < k for n, k in zip(sizes, kernel, strict=True)]):
            image = " ".join([f"{name}: {n}" for name, n in zip("THW", sizes, strict=True)])
            window = " ".join([f"k{name}: {k}" for name, k in zip("THW", kernel, strict=True)])
            raise RuntimeError(f"input image ({image}) smaller than kernel size ({window})")
        tables = [_windows(*args, 1, ceil_mode) for args in zip(sizes, kernel, steps, edges, strict=True)]
        counts: Any = np.ones(())
        for table, n, k, step, edge in zip(tables, sizes, kernel, steps, edges, strict=True):
            starts = np.arange(len(table)) * step - edge
            inside = np.minimum(starts + k, n + edge) - starts if count_include_pad else (table >= 0).sum(1)
            counts = np.multiply.outer(counts, inside)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        if divisor_override is not None:
            counts = np.full(counts.shape, divisor_override)
        total = _taken(x, _joined(tables, sizes), d).sum(-1)
        means = FUNCTIONS["div"](total, wrap(counts.reshape(-1).astype(x.value.dtype)), **_rounding(x))
        y = reshape(means, (*x.value.shape[:2], *counts.shape))
        return _pooled(y, alone, "AvgPool", d)

    return fun


avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))


def _largest(x: Tensor, tables: Sequence[Table], d: int, return_indices: bool, alone: bool, label: str) -> Any:
    """The largest element of each window, and its place in the flattened image."""
    places = _joined(tables, x.value.shape[2:])
    inside = np.take_along_axis(places, np.argmax(places >= 0, -1)[:, None], -1)
    places = np.where(places < 0, inside, places)  # in the margin lies what begins the window, so that it changes nothing
    lowest = -np.inf if x.value.dtype.kind == "f" else int(np.iinfo(x.value.dtype).min)
    values, found = FUNCTIONS["max"](_taken(x, places, d, lowest), -1)
    form = (*x.value.shape[:2], *[len(table) for table in tables])
    y = _pooled(reshape(values, form), alone, label, d)
    if not return_indices:
        return y
    where = np.take_along_axis(np.broadcast_to(places, (len(found.value), *places.shape)), found.value[..., None], -1)
    return y, wrap(where.reshape(form[1:] if alone else form))


def _max_pool(d: int) -> Callable[..., Any]:
    @called(f"max_pool{d}d", "The largest elements of windows.")
    def fun(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        x, alone = _batched(input, d)
        kernel = _each(kernel_size, d)
        steps = kernel if stride is None or stride == () else _each(stride, d)
        edges, apart = _each(padding, d), _each(dilation, d)
        _check_moves(f"max_pool{d}d", kernel, steps, apart)
        _check_margins(kernel, edges, apart)
        options = zip(x.value.shape[2:], kernel, steps, edges, apart, strict=True)
        tables = [_windows(*args, ceil_mode) for args in options]
        return _largest(x, tables, d, return_indices, alone, "MaxPool")

    return fun


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))


def _lp_pool(d: int) -> Callable[..., Any]:
    mean, most = ((avg_pool1d, max_pool1d), (avg_pool2d, max_pool2d), (avg_pool3d, max_pool3d))[d - 1]

    @called(f"lp_pool{d}d", "The norm of each window.")
    def fun(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
        if norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
        if math.isinf(norm_type):
            sign = 1 if norm_type > 0 else -1
            return sign * most(sign * FUNCTIONS["abs"](input), kernel_size, stride, 0, 1, ceil_mode)
        total = mean(input**norm_type, kernel_size, stride, 0, ceil_mode)
        total = FUNCTIONS["sign"](total) * FUNCTIONS["relu"](FUNCTIONS["abs"](total))
        return (total * math.prod(_each(kernel_size, d))) ** (1.0 / norm_type)

    return fun


lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))


def _goal(output_size: Any, sizes: Sequence[int], d: int) -> list[int]:
    return [n if m is None else m for m, n in zip(_each(output_size, d), sizes, strict=True)]


def _adaptive_avg(d: int) -> Callable[..., Any]:
    @called(f"adaptive_avg_pool{d}d", "The means of so many windows.")
    def fun(input: Tensor, output_size: Any) -> Any:
        x, alone = _batched(input, d)
        sizes = x.value.shape[2:]
        tables = [_parts(n, m) for n, m in zip(sizes, _goal(output_size, sizes, d), strict=True)]
        places = _joined(tables, sizes)
        counts = (places >= 0).sum(1).astype(x.value.dtype)
        y = reshape(_taken(x, places, d).sum(-1) / wrap(counts), (*x.value.shape[:2], *[len(table) for table in tables]))
        mean = d > 1 and all([len(table) == 1 for table in tables])
        return labelled(squeeze(y, 0) if alone else y, "MeanBackward1") if mean else _pooled(y, alone, "AdaptiveAvgPool", d)

    return fun


def _adaptive_max(d: int) -> Callable[..., Any]:
    @called(f"adaptive_max_pool{d}d", "The largest elements of so many windows.")
    def fun(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        x, alone = _batched(input, d)
        sizes = x.value.shape[2:]
        tables = [_parts(n, m) for n, m in zip(sizes, _goal(output_size, sizes, d), strict=True)]
        return _largest(x, tables, d, return_indices, alone, "AdaptiveMaxPool")

    return fun


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg, (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max, (1, 2, 3))

# -- resizing ------------------------------------------------------------------------------------------------------


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Images in another size: by the nearest elements, linearly or cubically between neighbours, or by all that lies near."""
    d = input.value.ndim - 2
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    sizes = input.value.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{'either' if size is None else 'only one of'} size or scale_factor should be defined")
    shown = ("output size", "output size of ", size), ("scale_factor", "scale_factor of shape ", scale_factor)
    for what, start, given in shown:
        if isinstance(given, (tuple, list)) and len(given) != d:
            letter = "o" if given is size else "s"
            raise ValueError(
                f"Input and {what.split()[0]} must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(sizes)} and {start}{given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
                f"and {what} in ({letter}1, {letter}2, ...,{letter}K) format."
            )
    factors = None if scale_factor is None else _each(scale_factor, d)
    goal = list(_each(size, d)) if factors is None else [math.floor(n * f) for n, f in zip(sizes, factors, strict=True)]
    if min([*sizes, *goal], default=1) <= 0:
        both = [", ".join([f"{name}: {n}" for name, n in zip("DHW"[-d:], shape, strict=True)]) for shape in (sizes, goal)]
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({both[0]}) and output ({both[1]})")
    factors = None if recompute_scale_factor else factors
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[d - 1](input, goal)
    if antialias and not (mode in ("bilinear", "bicubic") and d == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    linear = {"linear": 1, "bilinear": 2, "trilinear": 3}.get(mode)
    if (2 if mode == "bicubic" else linear or d) != d or (not linear and mode not in ("nearest", "nearest-exact", "bicubic")):
        raise NotImplementedError(_no_mode(mode, d + 2))
    x = input
    for axis, (n, m) in enumerate(zip(sizes, goal, strict=True), 2):
        step = n / m if factors is None else 1 / factors[axis - 2]
        if n == m and (linear or antialias):  # as they are
            continue
        if antialias or mode == "bicubic":
            if align_corners:
                step = (n - 1) / (m - 1) if m > 1 else 0
            weights = _broad(n, m, step, mode == "bicubic") if antialias else _cubic(n, m, step, 0.0 if align_corners else 0.5)
            x = matmul(x.transpose(axis, -1), wrap(weights.T.astype(x.value.dtype))).transpose(axis, -1)
            continue
        if not linear:
            shift = 0.5 if mode == "nearest-exact" else 0
            x = x.index_select(axis, wrap(np.minimum(np.floor((np.arange(m) + shift) * step), n - 1).astype(np.int64)))
            continue
        if align_corners:
            places = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0)
        else:
            places = np.maximum((np.arange(m) + 0.5) * step - 0.5, 0)
        low = np.minimum(np.floor(places).astype(np.int64), n - 1)
        weight = wrap((places - low).astype(x.value.dtype).reshape(vector_shape(axis, x.value.ndim)))
        high = x.index_select(axis, wrap(np.minimum(low + 1, n - 1)))
        x = x.index_select(axis, wrap(low)) * (1 - weight) + high * weight
    x = FUNCTIONS["clone"](x) if x is input else x
    name = {"nearest": "Nearest", "nearest-exact": "NearestExact"}.get(mode, mode.title())
    return labelled(x, f"Upsample{name}{d}D{'Aa' * antialias}Backward0")


def _no_mode(mode: str, ndim: int) -> str:
    """Why there is no such interpolation."""
    needed = {"linear": 3, "bilinear": 4, "trilinear": 5}.get(mode)
    if needed and ndim in (3, 4, 5):
        return f"Got {ndim}D input, but {mode} mode needs {needed}D input"
    return (
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: nearest | linear | bilinear | "
        f"bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def _bump(x: Any, cubic: bool, a: float) -> Any:
    """What an element at a distance weighs: a tent, or cubic polynomials."""
    x = np.abs(x)
    if not cubic:
        return np.maximum(1 - x, 0)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _cubic(n: int, m: int, step: float, shift: float) -> Any:
    """The weights of ``n`` elements in each of ``m`` between them; elements beyond the edges are as those at them."""
    places = (np.arange(m) + shift) * step - shift
    weights = np.zeros((m, n))
    for i in (-1, 0, 1, 2):
        near = np.floor(places) + i
        np.add.at(weights, (np.arange(m), np.clip(near, 0, n - 1).astype(np.int64)), _bump(places - near, True, -0.75))
    return weights


def _broad(n: int, m: int, step: float, cubic: bool) -> Any:
    """The same, of all elements that lie within what each of the ``m`` stands for."""
    scale = max(step, 1.0)
    reach = (2.0 if cubic else 1.0) * scale
    centres = (np.arange(m) + 0.5)[:, None] * step
    low = np.maximum(np.trunc(centres - reach + 0.5), 0)
    high = np.minimum(np.trunc(centres + reach + 0.5), n)
    places = np.arange(n)
    weights = np.where((places >= low) & (places < high), _bump((places - centres + 0.5) / scale, cubic, -0.5), 0)
    return weights / weights.sum(1, keepdims=True)


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Any:
    """``interpolate``, by its old name."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """``interpolate`` by the nearest elements."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """``interpolate``, linearly, from corner to corner."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Any:
    """Channels laid out as pixels."""
    r = upscale_factor
    *lead, c, h, w = input.value.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    apart = reshape(input, (*lead, c // (r * r), r, r, h, w))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return labelled(reshape(permute(apart, order), (*lead, c // (r * r), h * r, w * r)), "PixelShuffleBackward0")


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Any:
    """Pixels laid out as channels."""
    r = downscale_factor
    *lead, c, h, w = input.value.shape
    n = len(lead)
    apart = reshape(input, (*lead, c, h // r, r, w // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return labelled(reshape(permute(apart, order), (*lead, c * r * r, h // r, w // r)), "PixelUnshuffleBackward0")


def channel_shuffle(input: Tensor, groups: int) -> Any:
    """Channels of all groups, one of each in turn."""
    n, c, *rest = input.value.shape
    apart = reshape(input, (n, groups, c // groups, *rest))
    return labelled(reshape(apart.transpose(1, 2), (n, c, *rest)), "ChannelShuffleBackward0")
