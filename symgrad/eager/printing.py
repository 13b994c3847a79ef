"""How tensors look: to the letter as torch prints them."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.eager.dtypes import default


class _Options:
    precision, threshold, edgeitems, linewidth = 4, 1000.0, 3, 80
    sci_mode: bool | None = None


OPTIONS = _Options()
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000.0, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000.0, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Digits, from how many elements on to summarise, elements at the edges, line width, a profile of these."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in {
        **_PROFILES.get(profile or "", {}),
        **{k: v for k, v in given.items() if v is not None},
    }.items():
        setattr(OPTIONS, name, value)
    OPTIONS.sci_mode = sci_mode


class Formatter:
    """One way to print all numbers of a tensor: integral or not, scientific or not, and how wide."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.floating, self.integral, self.scientific, self.width = values.dtype.kind == "f", True, False, 1
        if not self.floating:
            self.width = max([1, *(len(str(value)) for value in values.ravel().tolist())])
            return
        kept = values[np.isfinite(values) & (values != 0)].astype(np.float64)
        if not kept.size:
            return
        size = np.abs(kept)
        low, high = float(size.min()), float(size.max())
        self.integral = bool(np.all(kept == np.ceil(kept)))
        unlike = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        self.scientific = unlike if OPTIONS.sci_mode is None else OPTIONS.sci_mode
        self.width = max(len(self._text(value)) for value in kept.tolist())

    def _text(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{OPTIONS.precision}e}"
        if self.integral:
            return f"{value:.0f}" + ("." if np.isfinite(value) else "")
        return f"{value:.{OPTIONS.precision}f}"

    def __call__(self, value: Any) -> str:
        return (self._text(value) if self.floating else str(value)).rjust(self.width)


class _Complex:
    """Two formatters: of real parts and of imaginary ones."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.real, self.imag = Formatter(values.real), Formatter(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        return self.real(value.real) + (imag if imag[0] in "+-" else "+" + imag)


def _edges(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a summary shows: the first and last items along each axis."""
    for axis, n in enumerate(values.shape):
        if n > 2 * OPTIONS.edgeitems:
            kept = np.r_[: OPTIONS.edgeitems, n - OPTIONS.edgeitems : n]
            values = np.take(values, kept, axis)
    return values


def _rows(values: np.ndarray[Any, Any], indent: int, summary: bool, show: Any) -> str:
    if values.ndim == 0:
        return str(show(values.item()))
    edge = OPTIONS.edgeitems
    shorten = summary and len(values) > 2 * edge
    if values.ndim == 1:
        parts = [values[:edge], values[-edge:]] if shorten and edge else [values[:0]] * 2 if shorten else [values]
        texts = [[show(value) for value in part.tolist()] for part in parts]
        items = [*texts[0], " ..." if edge else "...", *texts[1]] if shorten else texts[0]
        per_line = max(1, (OPTIONS.linewidth - indent) // (show.width + 2))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    places = [*range(edge), *range(len(values) - edge, len(values))] if shorten else list(range(len(values)))
    rows = [_rows(values[i], indent + 1, summary, show) for i in places]
    if shorten:
        rows.insert(edge, "...")
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def numbers(values: np.ndarray[Any, Any], indent: int) -> str:
    """The numbers of an array, nested in brackets, ``indent`` columns from the left."""
    if values.size == 0:
        return "[]"
    summary = values.size > OPTIONS.threshold
    shown = _edges(values) if summary else values
    show = _Complex(shown) if values.dtype.kind == "c" else Formatter(shown)
    return _rows(values, indent, summary, show)


def show(values: np.ndarray[Any, Any], suffix: str | None, prefix: str = "tensor(") -> str:
    """A tensor of these values. ``suffix``: ``requires_grad=True``, ``grad_fn=<...>``, or nothing."""
    suffixes = []
    usual = values.dtype in (default.real, default.complex, np.int64, np.bool_)
    if values.size == 0:
        if values.ndim != 1:
            suffixes.append(f"size={values.shape}")
        usual = values.dtype == default.real
    if not usual:
        suffixes.append(f"dtype=torch.{values.dtype.name}")
    if suffix:
        suffixes.append(suffix)
    text = prefix + numbers(values, len(prefix))
    last = len(text) - text.rfind("\n") + 1
    for part in suffixes:
        if last + len(part) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * len(prefix) + part
            last = len(prefix) + len(part)
        else:
            text += ", " + part
            last += len(part) + 2
    return text + ")"
