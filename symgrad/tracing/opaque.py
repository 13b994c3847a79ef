"""Functions without a rule, of values that no derivative flows through: they run as they are, here and in the code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from symgrad.ops.core import Op
from symgrad.ops.engine import SIZE
from symgrad.tracing.tracer import Run, Tracer, look_at_size, plain, tracers

__all__ = ["of_values", "opaque", "static"]

_ops: dict[Any, Op] = {}
_NUMBERS = (np.ndarray, np.generic, int, float, complex)
_OPTIONS = (str, bool, int, float, np.integer, type(None))
_DRAWS = {"rng", "seed", "random_state"}  # what functions are given that draw random numbers
_WRITES = {"out", "output", "inplace"}  # and those that write into what they are given


def opaque(trace: Run, func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The call of a function, recorded: ``args`` are arrays and numbers, ``options`` are constants."""
    op = _ops.setdefault(func, Op(func, "constant", (), sized=True))
    result = trace.record(op, args, {name: static(value, name) for name, value in options.items()})
    for part in result if isinstance(result, tuple) else (result,):
        look_at_size(trace, trace.record(SIZE, (part,), {}))
    return result


def of_values(trace: Run, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The call of a pure function of a library's, recorded; ``NotImplemented`` where it is not one of arrays and options
    that makes arrays, or where a derivative may flow through it."""
    found = tracers((args, kwargs))
    if any([tracer.node.differentiated for tracer in found]) or not any([tracer.node.active for tracer in found]):
        return NotImplemented
    if "." in getattr(func, "__qualname__", ".") or not isinstance(getattr(func, "__self__", None), ModuleType | None):
        return NotImplemented  # it belongs to an object, or was made by a function, which its results hang on too
    arrays, options = _parts(func, args, kwargs)
    if not arrays or not all(map(_is_option, options.values())) or not all([isinstance(array, _NUMBERS) for array in arrays]):
        return NotImplemented
    if any([value for name, value in options.items() if name in _WRITES or name.startswith("overwrite")]):
        return NotImplemented
    given = [plain(array, copy=True) for array in arrays]
    made = func(*given, **options)
    if not all(map(_is_result, made if type(made) is tuple else (made,))):
        return NotImplemented
    if not all([np.array_equal(a, plain(array), equal_nan=True) for a, array in zip(given, arrays, strict=True)]):
        return NotImplemented  # it has written into them
    if trace.symbolic or trace.lanes:
        return opaque(trace, func, arrays, options)
    whole = [trace.adopt(part) if isinstance(part, np.ndarray) else part for part in (made if type(made) is tuple else (made,))]
    return tuple(whole) if type(made) is tuple else whole[0]


def _parts(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arrays of a call, by their places, and its options, by their names."""
    parameters = _parameters(func)
    if parameters is None:
        return args, kwargs
    names = [name for name, kind in parameters.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(args) > len(names) or not _DRAWS.isdisjoint(parameters):
        return (), {}
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    many = next((i for i, name in enumerate(names) if not isinstance(given.get(name), np.ndarray | Tracer)), len(names))
    return [given[name] for name in names[:many]], {name: value for name, value in given.items() if name not in names[:many]}


@functools.lru_cache(maxsize=256)
def _parameters(func: Any) -> dict[str, Any] | None:
    try:
        return {name: parameter.kind for name, parameter in inspect.signature(func).parameters.items()}
    except (TypeError, ValueError):  # of code in C
        return None


def _is_option(value: Any) -> bool:
    return isinstance(value, _OPTIONS) or (type(value) is tuple and all(map(_is_option, value)))


def _is_result(value: Any) -> bool:
    return isinstance(value, np.generic | np.ndarray) and type(value).__module__ == "numpy" and value.dtype.kind in "biufc"


def static(value: Any, name: str) -> Any:
    """A static parameter, as Python's numbers and tuples: a Tracer in it is looked at, which guards the trace."""
    if type(value) is Tracer:
        kind = value.node.aval.dtype.kind
        if np.ndim(value.like) == 0 and kind in "iub":
            return value.look(bool if kind == "b" else int)
        value = value.leave(lambda: f"the option {name}= must be a plain number; a traced one would lose its derivative")
    if type(value) is np.ndarray and value.dtype.kind in "biufc":
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(static(item, name) for item in value)
    return int(value) if isinstance(value, np.integer) else value
