"""``scipy.sparse.linalg``: solutions with sparse arrays, ``spsolve``, are differentiable; all else is SciPy's."""

from __future__ import annotations

import scipy.sparse.linalg

from symgrad.scipy.plain import rest_of
from symgrad.scipy.sparse import spsolve

__all__ = ["spsolve"]

__getattr__ = rest_of(scipy.sparse.linalg)
