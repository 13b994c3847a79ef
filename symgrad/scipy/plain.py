"""Plain numbers out of traced ones, for SciPy's solvers to work on."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.tracer import plain


def plain_values(tree: Any) -> Any:
    """The values of traced arrays and numbers, in tuples, lists, dicts and object arrays, too."""
    if isinstance(tree, np.ndarray) and tree.dtype == object:
        return np.array(plain(tree.ravel().tolist())).reshape(tree.shape)
    return plain(tree)
