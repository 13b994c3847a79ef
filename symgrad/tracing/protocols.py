"""NumPy's functions on Tracers: what the registry says that each one means, ``out=``, and ufuncs with their methods.

These are the answers of a run (the ``trace`` that they take first) to ``__array_function__`` and ``__array_ufunc__``.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad import pytree
from symgrad.errors import MutatedInput, NotDifferentiable
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY, Composite, Op, Refused, Static, Traced, dtype_of
from symgrad.ops.engine import ASTYPE, SIZE, TO_NUMPY
from symgrad.ops.reduction import SUMS_OF_EXPONENTIALS, cast
from symgrad.ops.scan import Running, Segments
from symgrad.tracing.frames import instead_of_scipys, where
from symgrad.tracing.kinds import place_of_out, positional_names
from symgrad.tracing.opaque import opaque, static
from symgrad.tracing.tracer import ADVICE, NUMBERS, Run, Tracer, escaped, into_plain, look_at_size, plain, split_index, tracers

__all__ = ["UFuncMethods", "array_function", "array_ufunc", "is_of_objects"]

# -- functions -----------------------------------------------------------------------------------------------------


def array_function(trace: Run, like: Tracer, func: Any, args: Any, kwargs: Any) -> Any:
    """What a NumPy function means that met ``like``, a traced array."""
    asks = getattr(REGISTRY.get(func), "sizes", not isinstance(REGISTRY.get(func), Op))
    if trace.selections is not None and asks and func not in _OF_SELECTIONS:
        for tracer in tracers((args, kwargs)):
            trace.selections.look_at(tracer)
    for tracer in tracers((args, kwargs)) if trace.coarse and (func in create.LIKE or func in _OF_DTYPES) else ():
        trace.asks_dtype(tracer)
    if func in create.LIKE:
        return create.like(func, like, args, kwargs)
    if func in index.WRITERS:
        if func is np.place and type(args[-1]) is Tracer and np.may_share_memory(args[0], args[-1]):
            raise NotDifferentiable(
                f"{where()}: np.place reads values from the array that it writes to, some of them after it has written them; "
                "copy them before"
            )
        _try(func, args, kwargs)
        return index.WRITERS[func](*args, **kwargs)
    if len(args) > (place := place_of_out(func)):
        behind = positional_names(func)[place + 1 : len(args)]
        if len(args) > place + 1 + len(behind) or not kwargs.keys().isdisjoint(["out", *behind]):
            _known(func, args, kwargs)  # which says that the call is none
        args, kwargs = args[:place], {**kwargs, "out": args[place], **dict(zip(behind, args[place + 1 :], strict=True))}
    if "out" not in kwargs:
        return _call(trace, func, args, kwargs)
    if type(kwargs["out"]) is np.ndarray and not any([t.node.differentiated for t in tracers((args, kwargs))]):
        trace.note("values that were given as arguments are written into a plain array")
        return func(*plain(args), **plain(kwargs))
    outs = _outs(kwargs["out"])
    result = _call(trace, func, args, {name: value for name, value in kwargs.items() if name != "out"})
    if not outs:
        return result
    return _written(trace, outs, result, lambda: func(*plain(args, copy=True), **plain(kwargs, copy=True)))


_OF_SELECTIONS = (  # made of what knows of selections
    *(np.column_stack, np.hstack, np.atleast_1d, np.append, np.percentile, np.quantile, np.trapezoid, np.interp),
)


_OF_DTYPES = (
    *(np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.insert, np.copyto, np.put, np.place, np.putmask),
    *(np.result_type, np.can_cast, np.min_scalar_type, np.common_type, np.bincount),
)  # what hangs on dtypes


def _call(trace: Run, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a NumPy function means on traced arguments: the registry says."""
    if func is np.where and len(args) + len(kwargs) == 1:
        func = np.nonzero
    if func in (np.may_share_memory, np.shares_memory):
        return _share_memory(func, *args)
    handler = REGISTRY.get(func)
    if isinstance(handler, Static):
        return func(*plain(args, like=True), **plain(kwargs, like=True))
    if isinstance(handler, Composite):
        try:
            return _as_numpy(func, args, kwargs, lambda: handler.fun(*args, **kwargs))
        except NotDifferentiable as error:  # an option, as a rule: right where no derivative flows
            return _plainly(trace, func, args, kwargs, str(error).removeprefix(f"{where()}: "))
    if not isinstance(handler, Op):
        why = handler.why if isinstance(handler, Refused) else f"has no derivative rule; {ADVICE}"
        return _plainly(trace, func, args, kwargs, f"{_called(func)} {why}")
    if handler.family == "constant":
        if kwargs and tracers(kwargs):
            args, kwargs = _by_place(func, args, kwargs)
        if len(args) > 1:
            args, kwargs = _by_name(func, args, kwargs)
    definition = handler.definition(args, kwargs)
    if definition is not None:
        return _as_numpy(func, args, kwargs, definition)
    try:
        arrays, params = handler.bind(args, kwargs)
    except NotDifferentiable as error:
        return _plainly(trace, func, args, kwargs, str(error))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        _known(func, args, kwargs)  # which says what is wrong with the call
        raise
    if params:
        params = {name: static(value, name) for name, value in params.items()}
    found = _places(trace, handler, arrays) if func in (np.nonzero, np.flatnonzero) else None
    if found is not None:
        return found
    result = trace.record(handler, arrays, params)
    if handler.sized:
        for part in result if isinstance(result, tuple) else (result,):
            look_at_size(trace, trace.record(SIZE, (part,), {}))
    return result


def _places(trace: Run, op: Op, arrays: Sequence[Any]) -> Any:
    """The places where a mask is true, if their number need not be known."""
    (mask,) = arrays
    if type(mask) is not Tracer or mask.node.aval.dtype != bool or np.ndim(mask.like) != 1 or not trace.takes(mask):
        return None
    return trace.selections.places_of(op, mask)


def _as_numpy(func: Any, args: Sequence[Any], kwargs: dict[str, Any], definition: Callable[[], Any]) -> Any:
    """A call that a definition stands for: NumPy's own function says which calls are errors, and of which dtype results are."""
    kind = _kind_of_call(func, args, kwargs)
    if kind in _alike_kinds:
        return definition()
    known = _known(func, args, kwargs)
    found = definition()
    result = _alike(found, known)
    if result is found:
        _remember(kind)
    return result


def _try(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """A call of a function that writes into an array, on copies: NumPy says which calls are errors."""
    kind = _kind_of_call(func, args, kwargs)
    if kind not in _alike_kinds:
        copied = [
            value.copy("K") if type(value) is np.ndarray else value for value in plain([*args, *kwargs.values()], copy=True)
        ]
        _known(func, copied[: len(args)], dict(zip(kwargs, copied[len(args) :], strict=True)))
        _remember(kind)


_alike_kinds: set[Any] = set()  # calls that the definition gives the dtypes of, and that are no errors


def _remember(kind: Any) -> None:
    if len(_alike_kinds) > 10_000:
        _alike_kinds.clear()
    if kind is not None:
        _alike_kinds.add(kind)


def _kind_of_call(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a call has in common with others that are errors where it is one; None where that is not to be kept."""
    try:
        kind: Any = func, _kind(args), *[(name, _kind(value)) for name, value in kwargs.items()]
        hash(kind)
    except TypeError:
        return None
    return kind


def _kind(value: Any) -> Any:
    """What hangs on more than the numbers in arrays: types, shapes, dtypes, options, of which whole numbers may be traced."""
    if type(value) is Tracer:
        value = value.value
        if isinstance(value, (int, np.integer)):
            return type(value), int(value)
        return (value.shape, value.dtype, value.strides) if hasattr(value, "dtype") else type(value)
    if type(value) is np.ndarray:
        return value.shape, value.dtype, value.strides
    if type(value) is slice:
        return slice, _kind(value.start), _kind(value.stop), _kind(value.step)
    if type(value) in (list, tuple):
        return tuple(map(_kind, value))
    if callable(value) and not isinstance(value, (type, np.ufunc)):
        raise TypeError("a function, and what it holds, is not to be kept")
    return type(value), value


def _known(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a NumPy function gives of plain values; None where those hold functions, which run once, or Tracers as objects."""
    given = [plain(args), {name: plain(value) for name, value in kwargs.items() if name != "overwrite_input"}]
    leaves = pytree.flatten(given)[0]
    if any([(callable(leaf) and not isinstance(leaf, type)) or getattr(leaf, "dtype", None) == object for leaf in leaves]):
        return None
    with np.errstate(all="ignore"):  # what the definition computes warns
        return func(*given[0], **given[1])


def _alike(result: Any, known: Any) -> Any:
    """A result with the dtypes that are ``known``, and numbers for numbers."""
    if isinstance(result, (tuple, list)) and isinstance(known, (tuple, list)):
        parts = [_alike(*pair) for pair in zip(result, known, strict=True)]
        if type(result) is type(known) and all(part is old for part, old in zip(parts, result, strict=True)):
            return result
        return type(known)(*parts) if hasattr(known, "_fields") else type(known)(parts)
    if not all([isinstance(plain(x), (np.ndarray, np.generic)) for x in (result, known)]):
        return result
    if result.dtype != known.dtype:
        result = result.astype(known.dtype)
    if known.ndim > 1 and isinstance(result, Traced):
        result = result.laid_as(known)
    return result[()] if isinstance(known, np.generic) and isinstance(plain(result), np.ndarray) else result


def _by_name(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """A call with the positional options behind its arrays, such as ``axis=None``, given by name."""
    given = [i for i, arg in enumerate(args) if arg is None or isinstance(arg, (str, tuple))]
    if not given or isinstance(func, np.ufunc):
        return args, kwargs
    try:
        names = list(inspect.signature(func).parameters)
    except (TypeError, ValueError):  # NumPy has no signature for it
        return args, kwargs
    if any(i >= len(names) for i in given) or given[0] == 0:
        return args, kwargs
    return args[: given[0]], {**dict(zip(names[given[0] :], args[given[0] :], strict=False)), **kwargs}


def _by_place(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """A call with all that is traced given by position: those are its arrays, ``a=`` and ``atol=``, too."""
    args, kwargs = list(args), dict(kwargs)
    try:
        params = list(inspect.signature(func).parameters.values())
    except (TypeError, ValueError):  # NumPy has no signature for it
        return args, kwargs
    for param in params[len(args) :]:
        if not tracers(kwargs) or param.kind is not param.POSITIONAL_OR_KEYWORD:
            break
        args.append(kwargs.pop(param.name, param.default))
    return args, kwargs


def _share_memory(func: Any, a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether two arrays would overlap: two views of one array, or one and what ``np.asarray`` made of it."""
    if type(a) is Tracer and type(b) is Tracer:
        return _root(a) is _root(b) and func(plain(a), plain(b))
    traced, array = (a, b) if type(a) is Tracer else (b, a)
    return any(ref() is not None and func(ref(), array) for ref in _root(traced).lent or ())


def _root(tracer: Tracer) -> Tracer:
    while tracer.base is not None:
        tracer = tracer.base
    return tracer


def _plainly(trace: Run, func: Any, args: Any, kwargs: Any, why: str) -> Any:
    """A call without a rule, on plain values: right where no derivative flows into it."""
    found = [*tracers(args), *tracers(kwargs)]
    if not found:  # called with ``like=``, which NumPy does not hand on
        return create.like(func, trace, args, kwargs)
    found = [tracer for tracer in found if not tracer.tape.draft]
    for tracer in found:
        tracer.come()
        if tracer.tape is not trace or not trace.open:
            raise escaped(tracer)
    if any([tracer.node.differentiated for tracer in found]):
        raise trace.refuse(NotDifferentiable(f"{where()}: {instead_of_scipys() or why}"))
    if any([tracer.node.active for tracer in found]):
        if all([isinstance(arg, (np.ndarray, np.generic, int, float, complex)) for arg in args]):
            try:
                return opaque(trace, func, args, kwargs)
            except (TypeError, AttributeError):  # its options or its result are no values
                pass
        trace.note(f"{_called(func)} runs on plain values")
    return func(*plain(args, copy=True), **plain(kwargs, copy=True))


def _called(func: Any) -> str:
    module = (getattr(func, "__module__", "") or "").replace("numpy", "np", 1)
    name = getattr(func, "__name__", str(func))
    return f"{module}.{name}" if module else f"{'np.' if hasattr(np, name) else ''}{name}"


# -- out= ----------------------------------------------------------------------------------------------------------


def _outs(out: Any, objects: bool = False) -> tuple[Any, ...]:
    """What ``out=`` names; empty when it names nothing. Plain arrays among it are refused, but for those of ``objects``."""
    outs = out if isinstance(out, tuple) else (out,)
    if all(item is None for item in outs):
        return ()
    for item in outs:
        if item is not None and type(item) is not Tracer and not (objects and getattr(item, "dtype", None) == object):
            raise MutatedInput(into_plain("out= or an in-place operator"))
    return outs


def _written(trace: Run, outs: tuple[Any, ...], result: Any, numpys: Callable[[], Any], casting: Any = "same_kind") -> Any:
    """Write the results of a call where its ``out=`` said; what the call returns. ``numpys``: the same call of plain values."""
    results = result if isinstance(result, tuple) else (result,)
    for item, value in zip(outs, results, strict=True):
        if type(item) is Tracer:
            new, shape = trace.gather(value), np.shape(item.like)
            if np.shape(new.like) != shape:  # not every function spreads what it gives: NumPy says which call is an error
                np.broadcast_to(new.like, shape)  # but crashes where running totals are written into fewer axes
                with np.errstate(all="ignore"):
                    numpys()
            item.assign(new, "out=", casting)
        elif item is not None:
            item[...] = value
    given = tuple(value if item is None else item for item, value in zip(outs, results, strict=True))
    return given if isinstance(result, tuple) else given[0]


# -- ufuncs --------------------------------------------------------------------------------------------------------


def array_ufunc(trace: Run, ufunc: np.ufunc, method: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A ufunc or one of its methods on traced arguments."""
    if method == "__call__" and not kwargs:
        op = REGISTRY.get(ufunc)
        if isinstance(op, Op):
            return _apply(trace, ufunc, op, args)
    if ufunc.__name__ == "clip" and method == "__call__":  # what a.clip(x) of a plain array calls
        return np.clip(*args, **kwargs)
    if is_of_objects(ufunc):
        return getattr(ufunc, method)(
            *[arg.__array__(object, copy=True) if type(arg) is Tracer else arg for arg in args], **kwargs
        )
    rest = {name: value for name, value in kwargs.items() if name != "out"}
    out = kwargs.get("out", ())
    followed = any([tracer.node.differentiated for tracer in tracers((args, kwargs))])
    if not followed and any([item is not None and type(item) is not Tracer for item in out]):
        trace.note("values that were given as arguments are written into a plain array")
        return getattr(ufunc, method)(*plain(args), **plain(kwargs))
    outs = _outs(out, objects=method == "__call__" and "where" not in rest)
    if method == "__call__" and outs and "where" in rest:
        rest["fallback"] = outs
    result = getattr(UFuncMethods, method)(trace, ufunc, args, rest)
    if not outs:
        return result
    call = getattr(ufunc, method)
    casting = kwargs.get("casting", "same_kind")
    return _written(trace, outs, result, lambda: call(*plain(args, copy=True), **plain(kwargs, copy=True)), casting)


def is_of_objects(ufunc: np.ufunc) -> bool:
    """Whether a ufunc is of Python objects alone: ``np.frompyfunc`` makes such of Python functions."""
    return all(set(kind) <= set("O->") for kind in ufunc.types)


def _apply(trace: Run, ufunc: np.ufunc, op: Op, args: Sequence[Any]) -> Any:
    """A ufunc without options."""
    if op.fun is not ufunc and not any([_is_numpy(arg) and not _may_be_python(trace, arg) for arg in args]):
        args = [trace.record(TO_NUMPY, (args[0],), {}), *args[1:]]  # a ufunc of Python numbers gives a NumPy number
    return trace.record(op, args, {})


def _may_be_python(trace: Run, arg: Any) -> bool:
    """Whether a number that is NumPy's here may be Python's in other calls, or iterations of a loop."""
    if type(arg) is not Tracer or arg.node.aval.kind != "scalar":
        return False
    return arg.node in trace.mixed or (arg.node.aval.dtype in _PYTHONS and trace.iterates)


_PYTHONS = (np.dtype(float), np.dtype(complex), np.dtype(int), np.dtype(bool))  # what NumPy makes of Python's numbers


class UFuncMethods:
    """The methods of a ufunc on traced arguments."""

    @staticmethod
    def __call__(trace: Run, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        rest = {name: value for name, value in kwargs.items() if name not in ("order", "subok")}
        mask, fallback = rest.pop("where", True), rest.pop("fallback", None)
        args = [np.asarray(arg) if isinstance(arg, (list, tuple)) and not tracers(arg) else arg for arg in args]
        dtype, casting = rest.pop("dtype", None), rest.pop("casting", None)
        signature = rest.pop("signature", rest.pop("sig", None))
        if isinstance(signature, str):  # "dd->d"
            signature = tuple(map(np.dtype, signature.replace("->", "")))
        handler = REGISTRY.get(ufunc)
        if not isinstance(handler, Op) or (rest and handler.family == "elementwise"):
            option = f" with {', '.join(kwargs)}=" if kwargs and isinstance(handler, Op) else ""
            if option or handler is None:
                return _plainly(trace, ufunc, args, kwargs, f"{_called(ufunc)}{option} has no derivative rule; {ADVICE}")
            return _call(trace, ufunc, args, kwargs)
        if "axes" in rest:
            return _along_axes(ufunc, args, **kwargs)
        cast_first = dtype is not None or signature is not None or casting is not None
        if cast_first:
            signature = signature or (None,) * ufunc.nin + (None if dtype is None else np.dtype(dtype),) * ufunc.nout
            args = _cast_arguments(trace, ufunc, args, signature, casting)
        if rest:
            return _call(trace, ufunc, args, rest)
        if mask is True:
            result = trace.record(handler, args, {}) if cast_first else _apply(trace, ufunc, handler, args)
            if kwargs.get("order") not in ("C", "F"):
                return result
            parts = [
                part.copy(kwargs["order"]) if np.ndim(part) > 1 else part
                for part in (result if isinstance(result, tuple) else (result,))
            ]
            return tuple(parts) if isinstance(result, tuple) else parts[0]
        if fallback is None:
            raise NotDifferentiable(f"{where()}: where= without out= leaves values undefined; use np.where or give out=")
        safe = np.atleast_2d(handler.domain).mean(axis=-1)  # so that no NaN arises where nothing is computed
        args = [
            np.where(mask, arg, safe[i % len(safe)].astype(dtype_of(arg))) if _is_numpy(arg) else arg
            for i, arg in enumerate(args)
        ]
        result = trace.record(handler, args, {})
        if not isinstance(result, tuple):
            return np.where(mask, result, fallback[0])
        return tuple(value if old is None else np.where(mask, value, old) for value, old in zip(result, fallback, strict=True))

    @staticmethod
    def reduce(trace: Run, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        array, axis = index.array_of(given.pop("array")), given.pop("axis", 0)
        if isinstance(array, np.ndarray) and tracers(given):  # a mask may be traced alone
            array = trace.adopt(array)
        given = {
            name: value
            for name, value in given.items()
            if value is not np._NoValue
            and not (value is None and name in ("dtype", "out"))
            and not (value is True and name == "where")
        }
        if ufunc in _REDUCTIONS and given.get("initial", 0) is not None and ("dtype" not in given or ufunc in _SCANS):
            return _REDUCTIONS[ufunc](array, axis=axis, **given)
        if ufunc in _TRUTHS and given.keys() <= {"keepdims", "where"}:
            return _TRUTHS[ufunc](array, axis=axis, **given)
        if ufunc in SUMS_OF_EXPONENTIALS and given.keys() <= {"keepdims"}:
            every = tuple(range(np.ndim(array)))  # in the code, no axis is the first
            return SUMS_OF_EXPONENTIALS[ufunc](array, axis=every if axis is None else axis, **given)
        options = {name: _value(option) for name, option in given.items()}
        known = ufunc.reduce(_value(array), axis=axis, **options)  # NumPy checks the options, and knows the dtype
        axes = range(np.ndim(array)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        kept = [i for i in range(np.ndim(array)) if i not in [a % np.ndim(array) for a in axes]]
        rows = np.moveaxis(array.astype(known.dtype) if "dtype" in given else array, kept, range(-len(kept), 0))
        mask = np.moveaxis(np.broadcast_to(given.get("where", True), np.shape(array)), kept, range(-len(kept), 0))
        outer, inner = math.prod(rows.shape[: rows.ndim - len(kept)]), rows.shape[rows.ndim - len(kept) :]
        rows, mask = np.reshape(rows, (outer, *inner)), np.reshape(mask, (outer, *inner))
        start = given.get("initial", ufunc.identity)
        total: Any = None if start is None else np.broadcast_to(cast(start, known.dtype), inner)
        for i, row in enumerate(rows):
            new = row if total is None else ufunc(total, row)
            total = np.where(mask[i], new, total) if "where" in given else new
        return _alike(total if np.shape(total) == np.shape(known) else np.reshape(total, np.shape(known)), known)

    @staticmethod
    def accumulate(trace: Run, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        given = {**dict(zip(("array", "axis", "dtype"), args, strict=False)), **kwargs}
        array, axis, dtype = given["array"], given.get("axis", 0), given.get("dtype")
        known = ufunc.accumulate(_value(array), axis, dtype)
        axis = 0 if axis is None else axis  # of a single one
        if ufunc in _SCANS:
            return _SCANS[ufunc](array, axis=axis, **({} if dtype is None else {"dtype": dtype}))
        array = _in_array(trace, array) if dtype is None else array.astype(dtype)
        if isinstance(op := REGISTRY.get(Running(ufunc)), Op) and known.dtype.kind != "c":
            return op(array, axis=axis)
        rows = list(np.moveaxis(array, axis, 0))
        for i in range(1, len(rows)):
            rows[i] = ufunc(rows[i - 1], rows[i])
        return _alike(np.stack(rows, axis=axis) if rows else array, known)

    @staticmethod
    def outer(trace: Run, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        a, b = (_in_array(trace, x) for x in args)
        return ufunc(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b, **kwargs)

    @staticmethod
    def at(trace: Run, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        x, key, *values = args
        if type(x) is not Tracer:
            if not any([tracer.node.differentiated for tracer in tracers(args)]):
                trace.note("values that were given as arguments are written into a plain array")
                return ufunc.at(x, *plain(args[1:]))
            raise MutatedInput(
                f"{where()}: {_called(ufunc)}.at writes a traced value into a plain array, where its derivative would be "
                "lost; make the array with np.zeros_like(x), np.zeros(n, like=x) or symgrad.numpy.zeros(n)"
            )
        spec, arrays = split_index(key, x, sized=bool(values) and np.ndim(values[0]) > 0)
        if ufunc in (np.add, np.subtract):
            value = values[0] if ufunc is np.add else np.negative(_signed(values[0], x.dtype))
            x.assign(trace.record(index.INDEX_ADD, (x, value, *arrays), {"spec": spec}), f"{_called(ufunc)}.at")
            return
        several = [np.ndim(array) and index.dtype_of(array) != bool for array in arrays]
        if ufunc in index.EXTREMES_AT and values and index.may_repeat(spec, several):
            new = trace.record(index.COMBINED_AT, (x, values[0], *arrays), {"spec": spec, "by": index.EXTREMES_AT[ufunc]})
            x.assign(new, f"{_called(ufunc)}.at")
            return
        numbers = np.arange(x.like.size).reshape(x.like.shape)
        places = np.sort(np.ravel(trace.record(index.GETITEM, (numbers, *arrays), {"spec": spec})))
        if np.any(places[1:] == places[:-1]):
            raise NotDifferentiable(
                f"{where()}: {_called(ufunc)}.at has a derivative rule only where no index repeats; np.add.at and "
                "np.maximum.at have one"
            )
        chosen = x[key]
        new = ufunc(chosen, *values)
        if np.shape(new) != np.shape(chosen):
            raise ValueError("array is not broadcastable to correct shape")
        x[key] = new

    @staticmethod
    def reduceat(trace: Run, ufunc: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        given = {**dict(zip(("array", "indices", "axis", "dtype"), args, strict=False)), **kwargs}
        array, axis, dtype = given["array"], given.get("axis", 0), given.get("dtype")
        known = ufunc.reduceat(_value(array), _value(given["indices"]), axis, dtype)
        axis = 0 if axis is None else axis
        array = array if dtype is None else array.astype(dtype)
        if isinstance(op := REGISTRY.get(Segments(ufunc)), Op) and (ufunc is np.add or _ascends(given["indices"])):
            return _alike(op(array, index.array_of(given["indices"]), axis=axis % known.ndim - known.ndim), known)
        rows = np.moveaxis(array, axis, 0)
        starts = [operator.index(i) for i in given["indices"]]
        ends = [*starts[1:], len(rows)]
        parts = [ufunc.reduce(rows[i:j]) if j - i > 1 else rows[i] for i, j in zip(starts, ends, strict=True)]
        return _alike(np.stack(parts, axis=axis), known)


def _ascends(starts: Any) -> bool:
    """Whether each of some numbers, which are known to be so in each call, is more than the one before."""
    return not tracers(starts) and bool(np.all(np.diff(starts) > 0))


def _in_array(trace: Run, x: Any) -> Any:
    """A Python number as an array; others as they are."""
    return trace.adopt(x) if type(x.like if type(x) is Tracer else x) in NUMBERS else x


def _signed(x: Any, dtype: np.dtype[Any]) -> Any:
    """What is subtracted from an array of a dtype, as it is then: bools and integers as they are do not have all negatives."""
    if type(x.like if type(x) is Tracer else x) in (int, float, complex):
        return x
    x = index.array_of(x)
    return x if x.dtype.kind in "fc" else x.astype(np.result_type(dtype, x.dtype))


def _along_axes(ufunc: np.ufunc, args: Sequence[Any], axes: Any, **options: Any) -> Any:
    """A generalised ufunc along other than the last axes."""
    places = [(place,) if isinstance(place, int) else tuple(place) for place in axes]
    args = [np.moveaxis(arg, place, range(-len(place), 0)) for arg, place in zip(args, places, strict=False)]
    result = ufunc(*args, **options)
    return np.moveaxis(result, range(-len(places[-1]), 0), places[-1]) if len(places) > len(args) else result


def _cast_arguments(trace: Run, ufunc: np.ufunc, args: Sequence[Any], signature: Any, casting: Any) -> list[Any]:
    """The arguments in the types of the loop that ``dtype=`` or ``signature=`` chooses."""
    kinds = [type(plain(arg)) if not _is_numpy(arg) else dtype_of(arg) for arg in args]
    kinds = [int if kind is bool else kind for kind in kinds]
    loop = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), signature=signature, casting=casting or "same_kind")
    return [
        arg if _is_numpy(arg) and dtype_of(arg) == dtype else trace.record(ASTYPE, (arg,), {"dtype": dtype})
        for arg, dtype in zip(args, loop, strict=False)
    ]


_REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
}  # fmt: skip
_TRUTHS: dict[Any, Any] = {np.logical_and: np.all, np.logical_or: np.any}
_SCANS: dict[Any, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}


def _value(x: Any) -> Any:
    """The plain value of a Tracer, of what holds such, or of an eager tensor."""
    return x.value if isinstance(x, Traced) and type(x) is not Tracer else plain(x)


def _is_numpy(x: Any) -> bool:
    value = x.like if type(x) is Tracer else x
    return isinstance(value, (np.ndarray, np.generic, list, tuple))
