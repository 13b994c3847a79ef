"""NumPy's namespace, whose creation functions give traced arrays while a function is differentiated.

An array that a function makes with ``np.zeros(3)`` takes traced values in where the function's source is at hand. Code
without source (made by ``exec``, compiled by Cython) makes plain arrays, which cannot; those made here can, anywhere::

    import symgrad.numpy as snp

    def cumulative(x):
        out = snp.zeros(3)
        for i in range(3):
            out[i] = np.sum(x[: i + 1])
        return out

Outside a derivative the functions are NumPy's own, and all other names are NumPy's at any time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ops import create
from symgrad.tracing.trace import active_trace

CREATION = (
    "zeros ones empty full zeros_like ones_like empty_like full_like array asarray asanyarray ascontiguousarray "
    "asfortranarray arange linspace logspace geomspace eye identity tri fromfunction"
).split()


def __getattr__(name: str) -> Any:
    return getattr(np, name)


def __dir__() -> list[str]:
    return dir(np)


def _creation(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        trace = active_trace()
        if trace is None:
            return function(*args, **kwargs)
        kwargs.pop("like", None)
        if function is not np.fromfunction and not create.contains_traced([*args, *kwargs.values()]):
            made = function(*args, **kwargs)
            if type(made) is np.ndarray and made.dtype not in _NUMBERS:  # of texts, say, which nothing traced is put into
                return made
        return create.like(function, trace, args, kwargs)

    return make


_NUMBERS = frozenset(map(np.dtype, "?bBhHiIlLqQefdgFDG"))

globals().update({name: _creation(getattr(np, name)) for name in CREATION})
