"""NumPy's functions on tensors: the registry says what each one means, and the result is a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.eager.bridge import through
from symgrad.eager.core import NONE, Tensor, apply, assign, known, methods, straight, variant
from symgrad.errors import NotDifferentiable
from symgrad.ops import create
from symgrad.ops.core import REGISTRY, Composite, Op, Refused, Static, Traced
from symgrad.ops.engine import ASTYPE
from symgrad.tracing.protocols import UFuncMethods
from symgrad.tracing.tracer import Tracer


class _Recorder:
    """What takes the place of a trace: every operation is run, and recorded by its tensors."""

    @staticmethod
    def record(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return apply(op, args, params)


EAGER: Any = _Recorder()
_OWN: dict[Any, Op] = {np.einsum: variant(known(np.einsum), alias=True)}  # of one operand, its result may be a view


def plain_tree(tree: Any) -> Any:
    """Arrays in place of tensors, in the arguments of a function of shapes or in an option."""
    if isinstance(tree, Tensor):
        return tree.value
    if isinstance(tree, (list, tuple)):
        return type(tree)([plain_tree(item) for item in tree])
    return {name: plain_tree(item) for name, item in tree.items()} if isinstance(tree, dict) else tree


def call(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A NumPy function on tensors."""
    handler = _OWN.get(func) or REGISTRY.get(func)
    home = getattr(func, "__module__", "numpy")  # which ufuncs have had since NumPy 2.2
    name = f"{home}.{func.__name__}".replace("numpy", "np", 1)
    if handler is None:
        raise NotDifferentiable(f"{name} has no derivative rule; call it on x.detach().numpy()")
    if isinstance(handler, Refused):
        raise NotDifferentiable(f"{name} {handler.why}")
    if isinstance(handler, Static):
        return func(*plain_tree(args), **plain_tree(kwargs))
    if isinstance(handler, Composite):
        return through(func, tuple(args), kwargs)
    if handler.definition(args, kwargs) is not None:
        return through(func, tuple(args), kwargs)
    arrays, params = handler.bind(args, kwargs)
    result = apply(handler, arrays, {key: plain_tree(value) for key, value in params.items()})
    if isinstance(result, Tensor) and type(getattr(result.value, "like", result.value)) is bool:  # as of np.allclose
        return result.value
    return result


def _written(result: Any, out: Any, mask: Any, verb: str) -> Any:
    outs = out if isinstance(out, tuple) else (out,)
    for target, value in zip(outs, result if isinstance(result, tuple) else (result,), strict=True):
        if isinstance(target, Tensor):
            assign(target, value if mask is True else np.where(mask, value, target), verb)  # type: ignore[arg-type]
        else:
            np.copyto(target, value.numpy(), where=plain_tree(mask))  # which refuses what requires grad
    return out if isinstance(out, tuple) and len(out) > 1 else outs[0]


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
    """A ufunc, or one of its methods."""
    if any(type(x) is Tracer for x in args):
        return NotImplemented
    out = kwargs.pop("out", None)
    if out is not None and all(item is None for item in out):
        out = None
    if out is not None:
        args = tuple([straight(x) if isinstance(x, Tensor) and any(x is item for item in out) else x for x in args])
    mask = kwargs.pop("where", True) if method == "__call__" else True
    if method == "at":
        return _at(ufunc, *args)
    if method != "__call__":
        result = getattr(UFuncMethods, method)(EAGER, ufunc, args, kwargs)
    else:
        dtype = kwargs.pop("dtype", None)
        for harmless in ("casting", "order", "subok"):
            kwargs.pop(harmless, None)
        if dtype is not None:
            args = tuple(apply(ASTYPE, (x,), {"dtype": np.dtype(dtype)}) for x in args)
        handler = REGISTRY.get(ufunc)
        args = tuple(x.item() if isinstance(x, np.generic) else x for x in args)  # to torch, NumPy's numbers are Python's
        result = apply(handler, args, NONE) if isinstance(handler, Op) and not kwargs else call(ufunc, args, kwargs)
        if mask is not True and out is None:
            raise NotDifferentiable("where= without out= leaves values undefined; use np.where or give out=")
    return result if out is None else _written(result, out, mask, f"np.{ufunc.__name__}")


def _at(ufunc: np.ufunc, x: Any, key: Any, *values: Any) -> None:
    if not isinstance(x, Tensor):
        ufunc.at(x, key, *[value.numpy() if isinstance(value, Tensor) else value for value in values])
    elif ufunc is np.add or ufunc is np.subtract:
        value = values[0] if ufunc is np.add else -values[0]
        places = tuple(np.broadcast_arrays(*plain_tree(key if isinstance(key, tuple) else (key,))))
        spread = np.broadcast_to(value, places[0].shape + x.value.shape[len(places) :])
        x.index_put_(places, spread, accumulate=True)
    else:
        x[key] = ufunc(x[key], *values)


def array_function(self: Tensor, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """A function of NumPy's."""
    if "like" in kwargs or func in create.LIKE:
        return create.like(func, self, args, {k: v for k, v in kwargs.items() if k != "like"})
    out = kwargs.pop("out", None)
    result = call(func, args, kwargs)
    return result if out is None else _written(result, out, True, func.__name__)


def array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """The plain array; of a tensor that requires grad only where it was detached."""
    if isinstance(self.value, Traced):
        return self.value.__array__(dtype)  # type: ignore[attr-defined]
    return np.array(self.numpy(), dtype=dtype, copy=copy)


methods(__array_ufunc__=array_ufunc)
methods(__array_function__=array_function)
methods(__array__=array)
