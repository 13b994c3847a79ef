"""Functions of the standard library that a trace sees through: single dispatch, records, loggers that are silent, and what
``math`` asks of numbers."""

from __future__ import annotations

import cmath
import collections
import dataclasses
import functools
import inspect
import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from symgrad.ops.core import Op, Traced
from symgrad.ops.engine import BOOL, OF_MATH
from symgrad.source.origins import is_made, is_users, of_class, own_ways
from symgrad.tracing.frames import user_frame
from symgrad.watch.guards import Path

_DISPATCHER = functools.singledispatch(lambda x: x).__code__  # type: ignore[attr-defined]
_LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "warn": logging.WARNING, "error": logging.ERROR,
    "exception": logging.ERROR, "critical": logging.CRITICAL, "fatal": logging.CRITICAL,
}  # fmt: skip

_MADE = dataclasses.make_dataclass("_MADE", [("x", list, dataclasses.field(default_factory=list))])
FACTORY = inspect.signature(_MADE).parameters["x"].default  # what stands for a default that is made anew


def follow(hooks: Any, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function does, by way of the ``hooks`` of a trace; ``NotImplemented`` where it is none of these."""
    if fun.__code__ is _DISPATCHER and args:
        return hooks.call(dispatched(hooks, fun, args[0]), *args, **kwargs)
    if fun is collections.namedtuple:  # which asks its caller for the module, to be the user's
        frame = user_frame()
        module = {} if frame is None else {"module": frame.f_globals.get("__name__")}
        return fun(*args, **{**module, **kwargs})
    if fun.__globals__ is vars(dataclasses) and args and dataclasses.is_dataclass(args[0]):
        return _of_dataclass(hooks, fun, args, kwargs)
    if fun.__globals__ is vars(logging):
        return _log(hooks, fun, args, kwargs)
    return NotImplemented


# -- math ----------------------------------------------------------------------------------------------------------


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Any:
    """As PEP 485 has it: infinities are close to themselves alone."""
    if rel_tol < 0 or abs_tol < 0:
        raise ValueError("tolerances must be non-negative")
    apart = abs(a - b)
    near = (apart <= abs(rel_tol * a)) | (apart <= abs(rel_tol * b)) | (apart <= abs_tol)
    return (a == b) | (near & np.isfinite(a) & np.isfinite(b))


# in NumPy's words: what they tell is a truth value, which no derivative flows through, and an object of Python's
_ASKING: dict[Any, Any] = {
    math.isnan: np.isnan, math.isinf: np.isinf, math.isfinite: np.isfinite, math.isclose: _isclose,
    cmath.isnan: np.isnan, cmath.isinf: np.isinf, cmath.isfinite: np.isfinite, cmath.isclose: _isclose,
}  # fmt: skip


def asks(value: Any) -> bool:
    """Whether it is one of these, which other code may have been given to call."""
    return type(value) is BuiltinFunctionType and value in _ASKING


def asked(fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What ``fun`` tells of traced numbers; None where it takes none, or is not given any."""
    if not asks(fun) or not any([isinstance(value, Traced) for value in (*args, *kwargs.values())]):
        return None
    return BOOL(_ASKING[fun](*args, **kwargs))


def numpy_raises(floats: int) -> bool:
    """Whether numbers that are too large, or none, are an error, by ``np.seterr``; or, for 2, as all warnings are."""
    ways = np.geterr().values()
    if "raise" in ways or floats < 2 or "warn" not in ways:
        return "raise" in ways
    first = next((way for way, text, kind, *_ in warnings.filters if text is None and issubclass(RuntimeWarning, kind)), "")
    return first == "error"


def gives_number(fun: BuiltinFunctionType) -> bool:
    """Whether it gives one number, which is no larger than floats are."""
    return fun.__name__ not in ("comb", "factorial", "frexp", "gcd", "isqrt", "lcm", "modf", "perm")


@functools.cache
def of_number(fun: BuiltinFunctionType) -> Op:
    """A function of ``math``'s of numbers that nothing is differentiated by: it raises what Python does."""
    return Op(fun, "constant", (), name=f"{OF_MATH}{fun.__name__}")


# -- functools.singledispatch --------------------------------------------------------------------------------------


def dispatched(hooks: Any, fun: Any, value: Any) -> Any:
    """The function that one of single dispatch has for a value."""
    kind = value.__class__
    found = fun.dispatch(kind)
    hooks.check(Path(fun, (("attr", "dispatch"), ("call", (kind,)))), "is", found)
    return found


# -- dataclasses ---------------------------------------------------------------------------------------------------


def _of_dataclass(hooks: Any, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    one, *rest = args
    if fun is dataclasses.fields:
        return dataclasses.fields(one if isinstance(one, type) else type(one))
    if fun in (dataclasses.asdict, dataclasses.astuple):
        seen = hooks.given(one)
        if hooks.leads_outside(seen):  # they copy all that is in it
            hooks.stop(f"dataclasses.{fun.__name__}() copies an object from outside, which is not followed")
        return fun(seen, *rest, **kwargs)
    if fun is not dataclasses.replace or rest:
        return NotImplemented
    seen = hooks.given(one)
    kept = {f.name: getattr(seen, f.name) for f in dataclasses.fields(one) if f.init and f.name not in kwargs}
    return hooks.call(type(one), **kept, **kwargs)


def is_generated(kind: type) -> bool:
    """Whether the ``__init__`` of a class is what ``@dataclass`` made, and assigns plainly."""
    owner = next(base for base in kind.__mro__ if "__init__" in base.__dict__)
    params = owner.__dict__.get("__dataclass_params__")
    setup: Any = owner.__dict__["__init__"]
    if params is None or not params.init or not is_made(setup):
        return False
    return bool(params.frozen) or not is_users(of_class(kind, "__setattr__"))


def reads_fields(method: Any) -> bool:
    """Whether a method is one of those that ``@dataclass`` wrote that read nothing but the fields of objects."""
    method = getattr(method, "__wrapped__", method)  # a ``__repr__`` is guarded against calling itself
    return is_made(method) and method.__name__ != "__init__"  # which has defaults


def is_record(value: Any) -> bool:
    """Whether a value is of a dataclass that compares as ``@dataclass`` has it."""
    kind = type(value)
    return dataclasses.is_dataclass(kind) and all([is_made(of_class(kind, name)) for name in own_ways(kind)])


def initialize(hooks: Any, made: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What the generated ``__init__`` of a dataclass does."""
    owner = next(base for base in type(made).__mro__ if "__init__" in base.__dict__)
    given = inspect.signature(owner.__dict__["__init__"]).bind(made, *args, **kwargs).arguments
    more = []
    for name, field in owner.__dict__["__dataclass_fields__"].items():
        path = Path(owner, (("attr", "__dataclass_fields__"), ("item", name)))
        own = field._field_type.name
        if own == "_FIELD_CLASSVAR":
            continue
        if field.init and name in given:
            value = given[name]
        elif field.default_factory is not dataclasses.MISSING:
            value = hooks.call(hooks.read(path.then("attr", "default_factory"), field.default_factory))
        elif field.default is not dataclasses.MISSING and (field.init or "__slots__" in vars(owner)):  # else the class has it
            value = hooks.read(path.then("attr", "default"), field.default)
        else:
            continue
        if own == "_FIELD_INITVAR":
            more.append(value)
        else:
            object.__setattr__(made, name, value)
    if hasattr(made, "__post_init__"):
        hooks.call(hooks.attribute(made, "__post_init__"), *more)


# -- logging -------------------------------------------------------------------------------------------------------


def _log(hooks: Any, fun: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Messages of a level that is not logged are left out, while that is so."""
    if fun is logging.getLogger and all(type(name) is str for name in args) and not kwargs:
        return hooks.read(Path(logging.getLogger, (("call", args),)), fun(*args))
    own = bool(args) and isinstance(args[0], logging.Logger)
    logger = args[0] if own else logging.root
    path = hooks.path_of(logger) or Path(logger, ())
    if own and fun.__name__ in ("isEnabledFor", "getEffectiveLevel"):
        return hooks.read(path.then("attr", fun.__name__).then("call", args[1:]), fun(*args))
    level = args[own] if fun.__name__ == "log" and len(args) > own else _LEVELS.get(fun.__name__)
    if not isinstance(level, int) or logger.isEnabledFor(level):
        return NotImplemented
    if not own:
        fun(*args, **kwargs)  # gives the root logger a handler, if it has none
        hooks.check(path.then("attr", "handlers").then("true", None), "is", True)
    hooks.check(path.then("attr", "isEnabledFor").then("call", (level,)), "is", False)
    return None
