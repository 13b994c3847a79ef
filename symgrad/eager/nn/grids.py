"""Images sampled at the points of a grid."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.eager.core import Fused, Tensor, apply, check_scalars, labelled, plain, wrap
from symgrad.eager.dtypes import Size
from symgrad.eager.indexing import gather
from symgrad.eager.products import matmul
from symgrad.eager.shapes import broadcast_to, reshape, unbind

_CORNERS = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)
_FORMS = {4: ("2D", "Nx2x3", (2, 3)), 5: ("3D", "Nx3x4", (3, 4))}


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Any:
    """For each matrix of ``theta`` the points to which it takes those of an image of this size, from -1 to 1."""
    if align_corners is None:
        warnings.warn(_CORNERS, stacklevel=2)
    if theta.value.dtype.kind != "f":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in _FORMS:
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    name, form, shape = _FORMS[len(size)]
    if theta.value.ndim != 3 or theta.value.shape[1:] != shape:
        raise ValueError(
            f"Expected a batch of {name} affine matrices of shape {form} for size {size}. Got {Size(theta.value.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    images, _, *sizes = size
    kind = theta.value.dtype
    ends = [np.linspace(-1, 1, n, dtype=kind) * (1 if align_corners else (n - 1) / n) if n > 1 else np.zeros(1) for n in sizes]
    points = [axis.reshape(-1) for axis in np.meshgrid(*ends, indexing="ij")][::-1]
    base = np.stack([*points, np.ones(math.prod(sizes))], 1).astype(kind)
    return labelled(reshape(matmul(wrap(base), theta.mT), (images, *sizes, len(sizes))), "AffineGridGeneratorBackward0")


def _inside(x: Any, n: int, padding: str, aligned: bool) -> tuple[Any, Any]:
    """Where along ``n`` elements numbers come to by a padding mode, and the slope of that."""
    slope: Any = 1.0
    if padding == "reflection":
        low, span = (0.0, n - 1.0) if aligned else (-0.5, float(n))
        if not span:
            return np.zeros_like(x), 0.0
        gap = np.abs(x - low)
        odd = np.floor(gap / span) % 2 == 1
        rest = np.fmod(gap, span)
        slope = np.where(odd ^ (x < low), -1.0, 1.0)
        x = np.where(odd, span - rest, rest) + low
    return np.clip(x, 0, n - 1), np.where((x > 0) & (x < n - 1), slope, 0)


PLACED = Fused(
    lambda x, n, padding, aligned: _inside(x, n, padding, aligned)[0],
    lambda g, y, x, n, padding, aligned: g * _inside(x, n, padding, aligned)[1],
    family="elementwise",
    name="placed",
)
BESIDE = Fused(  # the first, together with what it does not depend on
    lambda y, x: y, lambda g, _, y, x: g, lambda g, _, y, x: np.zeros_like(x), family="linear", name="beside"
)


def _cubic(t: Any) -> list[Any]:
    """The weights of four neighbours, ``t`` past the second one."""
    a = -0.75
    near = [((a + 2) * s - (a + 3)) * s * s + 1 for s in (t, 1 - t)]
    far = [((a * s - 5 * a) * s + 8 * a) * s - 4 * a for s in (t + 1, 2 - t)]
    return [far[0], *near, far[1]]


def _check(x: Tensor, grid: Tensor, mode: str) -> None:
    shape, points = list(x.value.shape), list(grid.value.shape)
    both = f"but got input with sizes {shape} and grid with sizes {points}"
    if shape[:1] != points[:1]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {both}")
    if points[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got grid with sizes {points}"
        )
    if len(shape) not in (4, 5) or len(points) != len(shape):
        raise RuntimeError(f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, {both}")
    if mode == "bicubic" and len(shape) != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    check_scalars(x, grid)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    """The elements of images at the points of a grid, from -1 to 1; between elements by ``mode``.

    Beyond the edges are ``padding_mode``: "zeros", the "border", or the "reflection" of what lies within.
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(_CORNERS, stacklevel=2)
    _check(input, grid, mode)
    aligned = bool(align_corners)
    images, channels, *sizes = input.value.shape
    count = math.prod(grid.value.shape[1:-1])
    rows = reshape(input, (images, channels, math.prod(sizes)))
    axes: list[list[tuple[Any, Any]]] = []  # of each dimension: the neighbours, and their weights
    for n, point in zip(sizes, unbind(reshape(grid, (images, 1, count, len(sizes))), -1)[::-1], strict=True):
        x = (point + 1) / 2 * (n - 1) if aligned else ((point + 1) * n - 1) / 2
        if mode != "bicubic" and padding_mode != "zeros":
            x = apply(PLACED, (x,), {"n": n, "padding": padding_mode, "aligned": aligned})
        start = np.floor(plain(x))
        if mode == "nearest":
            axes.append([(np.rint(plain(x)), None)])
        elif mode == "bilinear":
            axes.append([(start, start + 1 - x), (start + 1, x - start)])
        else:
            places = [start + i for i in (-1, 0, 1, 2)]
            if padding_mode != "zeros":
                places = [_inside(place, n, padding_mode, aligned)[0] for place in places]
            axes.append(list(zip(places, _cubic(x - start), strict=True)))
    total: Any = 0
    for corner in itertools.product(*axes):
        within, at, weight = np.ones(()), np.zeros((), np.int64), None
        for n, (place, part) in zip(sizes, corner, strict=True):
            within = within * ((place >= 0) & (place < n))
            at = at * n + np.clip(place, 0, n - 1).astype(np.int64)
            weight = part if weight is None else weight * part
        found = gather(rows, 2, broadcast_to(wrap(at), (images, channels, count)))
        scale = wrap(within.astype(rows.value.dtype))
        total = total + found * (scale if weight is None else weight * scale)
    if mode == "nearest":
        total = apply(BESIDE, (total, grid))
    y = reshape(total, (images, channels, *grid.value.shape[1:-1]))
    return labelled(y, f"GridSampler{len(sizes)}DBackward0")
