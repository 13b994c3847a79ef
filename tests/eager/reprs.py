"""Random tensors whose text is compared with torch's, letter by letter."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RECORDED = HERE / "recorded_reprs.json"
SHAPES = [
    (),
    (1,),
    (3,),
    (7,),
    (40,),
    (0,),
    (2, 0),
    (2, 3),
    (5, 3),
    (1, 1),
    (12, 12),
    (2, 3, 4),
    (2, 1, 2, 3),
    (1001,),
    (40, 40),
    (8, 2, 80),
]
KINDS = ["float32", "float64", "float16", "int64", "int32", "uint8", "bool", "complex64", "complex128"]


def arrays(count: int = 600) -> Iterator[np.ndarray[Any, Any]]:
    """Arrays of all kinds: integral, tiny, huge, mixed, with NaN, infinities and signed zeros."""
    for seed in range(count):
        source = np.random.RandomState(seed)
        shape = SHAPES[source.randint(len(SHAPES))]
        kind = KINDS[source.randint(len(KINDS))]
        x = source.standard_normal(shape) * 10.0 ** source.randint(-3, 4)
        if seed % 5 == 1:
            x = np.rint(x)
        if seed % 7 == 2:
            x = x * 10.0 ** source.randint(-8, 9, shape)
        if seed % 11 == 3:
            x = np.where(source.random_sample(shape) < 0.2, source.choice([np.nan, np.inf, -np.inf]), x)
        if seed % 6 == 4:
            x = np.where(source.random_sample(shape) < 0.5, source.choice([0.0, -0.0]), x)
        if kind[0] == "c":
            x = x + 1j * source.standard_normal(shape)
        elif kind[0] in "iu":
            x = np.nan_to_num(x, nan=0, posinf=1, neginf=-1) % 250
        with np.errstate(all="ignore"):
            yield np.asarray(x).astype(kind)


def text(torch: Any, x: np.ndarray[Any, Any], seed: int) -> str:
    """The tensor as it prints: as a leaf, one that requires grad, or a result."""
    tensor = torch.from_numpy(np.ascontiguousarray(x).reshape(x.shape).copy())
    if x.dtype.kind in "fc" and seed % 3:
        tensor.requires_grad_()
        if seed % 3 == 2:
            tensor = tensor * 1
    return repr(tensor)


def record() -> None:
    """Write down what torch prints."""
    import torch

    RECORDED.write_text(json.dumps([text(torch, x, i) for i, x in enumerate(arrays())], indent=0) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    record()
