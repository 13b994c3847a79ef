"""What SciPy's solvers need: plain numbers out of traced ones, and a word to the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.tracing.trace import active_trace
from symgrad.tracing.tracer import plain


def rest_of(module: Any) -> Callable[[str], Any]:
    """The ``__getattr__`` of a mirror: what it does not have is SciPy's. No path is, by which Python would find SciPy's
    submodules, and load them once more under a name of this package's."""

    def rest(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a mirror of {module.__name__} has no attribute {name!r}")
        return getattr(module, name)

    return rest


def plain_values(tree: Any) -> Any:
    """The values of traced arrays and numbers, in tuples, lists, dicts and object arrays, too."""
    if isinstance(tree, np.ndarray) and tree.dtype == object:
        return np.array(plain(tree.ravel().tolist())).reshape(tree.shape)
    return plain(tree)


def of_kind(found: Any, plain: Any) -> Any:
    """What stands for SciPy's number: Python's own where that is."""
    return found.item() if type(plain) is float and hasattr(found, "item") else found


def as_tuple(args: Any) -> tuple[Any, ...]:
    """The further arguments of a function, of which a single one may stand alone."""
    return args if isinstance(args, tuple) else (args,)


def noted(reason: str) -> bool:
    """Whether a trace runs; it is told why its call cannot be compiled."""
    trace = active_trace()
    if trace is not None:
        trace.note(reason)
    return trace is not None
