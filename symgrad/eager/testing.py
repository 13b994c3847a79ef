"""``torch.testing``: comparing what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.eager.core import Tensor, wrap
from symgrad.eager.dtypes import promoted

__all__ = ["assert_close"]

_TOLERANCES = {  # relative and absolute
    "float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS = (int, float, complex)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raise unless tensors, numbers, arrays, or sequences and mappings of these, are equal to tolerances of their dtypes."""
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}."
        )
    tolerances = None if rtol is None else (rtol, atol)
    options = {"tolerances": tolerances, "equal_nan": equal_nan, "check_dtype": check_dtype, "check_stride": check_stride}
    try:
        _compare(actual, expected, (), options)
    except AssertionError as error:
        raise AssertionError(str(error) if msg is None else msg(str(error)) if callable(msg) else msg) from None


def _compare(a: Any, b: Any, path: tuple[Any, ...], options: dict[str, Any]) -> None:
    """The comparison of what lies at a path of indices and keys."""
    place = f"\n\nThe failure occurred for item {''.join([f'[{key!r}]' for key in path])}" if path else ""
    if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str) and not isinstance(b, str):
        if len(a) != len(b):
            raise AssertionError(f"The length of the sequences mismatch: {len(a)} != {len(b)}{place}")
        for i, pair in enumerate(zip(a, b, strict=True)):
            _compare(*pair, (*path, i), options)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            missing, more = [key for key in b if key not in a], [key for key in a if key not in b]
            lines = ["The keys of the mappings do not match:"]
            lines += [f"Missing keys in the actual mapping: {sorted(missing)}"] if missing else []
            lines += [f"Additional keys in the actual mapping: {sorted(more)}"] if more else []
            raise AssertionError("\n".join(lines) + place)
        for key in sorted(a):
            _compare(a[key], b[key], (*path, key), options)
    elif a is None or b is None:
        if a is not b:
            raise AssertionError(f"None mismatch: {a} is not {b}{place}")
    elif isinstance(a, bool) and isinstance(b, bool):
        if a is not b:
            raise AssertionError(f"Booleans mismatch: {a} is not {b}{place}")
    elif isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
        kind: Any = {"f": np.float64, "c": np.complex128}.get(promoted([a, b]).kind, np.int64)
        _compare_arrays(np.array(a, kind), np.array(b, kind), place, options)
    elif (isinstance(a, Tensor) and isinstance(b, Tensor)) or (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        one, two = (x if isinstance(x, Tensor) else wrap(x) for x in (a, b))
        for name in ("shape", *["dtype"] * options["check_dtype"], *["stride()"] * options["check_stride"]):
            found = [x.stride() if name == "stride()" else getattr(x, name) for x in (one, two)]
            if found[0] != found[1]:
                raise AssertionError(f"The values for attribute '{name}' do not match: {found[0]} != {found[1]}.{place}")
        _compare_arrays(one.value, two.value, place, options)
    else:
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.")


def _compare_arrays(a: Any, b: Any, place: str, options: dict[str, Any]) -> None:
    kind = promoted([a, b]) if a.dtype != b.dtype else a.dtype
    a, b = (np.asarray(x).astype(kind) for x in (a, b))
    rtol, atol = options["tolerances"] or max(_TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (a, b))
    with np.errstate(all="ignore"):
        alike = np.isclose(a, b, rtol, atol, options["equal_nan"]) if kind.kind in "fc" else a == b
        if kind.kind not in "fc" and (rtol or atol):
            alike = np.abs(a.astype(float) - b) <= atol + rtol * np.abs(b.astype(float))
        if alike.all():
            return
        whole = np.int64 if kind.kind in "iub" else kind
        gap = np.where(alike, 0, np.abs(a.astype(whole) - b.astype(whole)))
        ratio = np.where(alike, 0, np.divide(gap, np.abs(b), dtype=np.float32 if kind.kind in "iub" else gap.dtype))
    parts = [("absolute", gap, atol), ("relative", ratio, rtol)]
    close = "close" if rtol or atol else "equal"
    if a.ndim:
        raise AssertionError(
            f"Tensor-likes are not {close}!\n\nMismatched elements: {np.count_nonzero(~alike)} / {a.size} "
            f"({np.count_nonzero(~alike) / a.size:.1%})"
            + "".join([f"\nGreatest {name} difference: {_greatest(x)}{_allowed(limit, close)}" for name, x, limit in parts])
            + place
        )
    raise AssertionError(
        f"Scalars are not {close}!\n\nExpected {b.item()} but got {a.item()}."
        + "".join([f"\n{name.title()} difference: {x.item()}{_allowed(limit, close)}" for name, x, limit in parts])
        + place
    )


def _greatest(x: Any) -> str:
    at = np.unravel_index(np.argmax(x), x.shape)
    return f"{x[at].item()} at index {tuple(map(int, at))}"


def _allowed(limit: float, close: str) -> str:
    return f" (up to {limit} allowed)" if close == "close" else ""
