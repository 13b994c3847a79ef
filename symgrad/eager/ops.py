"""Operations for which NumPy has no function: activations and losses, each with its rule, stable at both ends.

Rules follow torch at kinks: ``relu`` is flat at 0. Where torch gives zeros of another sign than the rules of NumPy's own
functions do, these stand here, too.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from symgrad.custom import custom_jvp, primitive
from symgrad.eager.core import Fused, known, variant
from symgrad.ops.core import expand
from symgrad.ops.elementwise import power_x1, squares
from symgrad.tracing.tracer import Tracer


def _traced(traced: Any, plain: Any) -> Any:
    """``plain``, but for traced values ``traced``, whose derivative at kinks is torch's."""
    return lambda *args, **params: (traced if any([type(x) is Tracer for x in args]) else plain)(*args, **params)


def _like(*sources: Any) -> dict[str, Any]:
    """The option of NumPy's functions by which they make an array that each of ``sources`` can be written into."""
    traced = [source for source in sources if type(source) is Tracer]
    return {"like": traced[0]} if traced else {}


def _ruled(fun: Any, *rules: Any) -> Any:
    """An elementwise function whose derivative is by these rules, also where values are traced."""

    def pushed(xs: tuple[Any, ...], ts: tuple[Any, ...]) -> Any:
        y = fun(*xs)
        return y, sum([rule(t, y, *xs) for rule, t in zip(rules, ts, strict=True)])

    return _traced(custom_jvp(fun).defjvp(pushed), fun)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _log_sigmoid(x: Any) -> Any:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _sigmoid_rule(g: Any, y: Any, x: Any) -> Any:
    return g * ((1 - y) * y)  # also where the exponential overflows


SIGMOID = Fused(_ruled(_sigmoid, _sigmoid_rule), _sigmoid_rule, family="elementwise", name="sigmoid")
LOG_SIGMOID = Fused(
    _log_sigmoid, lambda g, y, x: g * SIGMOID(-x), family="elementwise", name="log_sigmoid", kernel="log_sigmoid_cpu"
)


def _logit(x: Any, eps: float | None = None) -> Any:
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


def _logit_rule(g: Any, y: Any, x: Any, eps: float | None = None) -> Any:
    inside = (x >= (eps or 0)) & (x <= 1 - (eps or 0))
    return np.where(inside, g / (x * (1 - x)), np.nan if eps is None else 0)


LOGIT = Fused(_logit, _logit_rule, family="elementwise", name="logit")


def _bent(fun: Any, passed: Any, name: str, by_result: bool = False, **options: Any) -> Fused:
    """A function of straight pieces. ``passed(g, x)``: the cotangent, which is recorded as depending on ``x``, with slope zero.

    ``by_result``: it is the result that tells the pieces apart, and is saved.
    """
    gate: Fused = Fused(
        passed,
        lambda h, _, g, x, **params: gate(h, x, **params),
        lambda h, _, g, x, **params: np.zeros_like(h),
        family="elementwise",
        name=f"{name}_backward",
    )
    chosen: Any = lambda g, x, params: (passed if g.__class__ is np.ndarray else gate)(g, x, **params)
    rule: Any = (lambda g, y, x, **p: chosen(g, y, p)) if by_result else (lambda g, y, x, **p: chosen(g, x, p))
    return Fused(fun, rule, family="elementwise", name=name, **options)


RELU = _bent(
    _traced(lambda x: np.where(x <= 0, 0, x), lambda x: np.maximum(0, x)),
    lambda g, y: np.where(y <= 0, 0, g),
    "relu",
    by_result=True,
)
RSQRT = Fused(lambda x: 1 / np.sqrt(x), lambda g, y, x: g * (-0.5 * y**3), family="elementwise", name="rsqrt")


def _copied(x: Any, v: Any) -> Any:
    out = np.empty(x.shape, x.dtype, **_like(x, v))
    out[...] = v
    return out


FILL = Fused(_copied, lambda g, y, x, v: np.zeros_like(g), None, family="elementwise", name="fill")
COPY = Fused(
    _copied,
    lambda g, y, x, v: np.zeros_like(g),
    lambda g, y, x, v: g,
    family="elementwise",
    name="copy",
)

ADD = Fused(
    lambda x, y, alpha: x + y * alpha,
    lambda g, _, x, y, alpha: g,
    lambda g, _, x, y, alpha: g * alpha,
    family="elementwise",
    name="add",
)
SUB = Fused(
    lambda x, y, alpha: x - y * alpha,
    lambda g, _, x, y, alpha: g,
    lambda g, _, x, y, alpha: -g * alpha,
    family="elementwise",
    name="sub",
)


def _xlogy(x: Any, y: Any, zero: Any) -> Any:
    return np.where(zero, 0, x) * np.log(np.where(zero, 1, y))


XLOGY: Fused = Fused(
    _traced(
        lambda x, y: _xlogy(x, y, (x == 0) & ((y <= 0) | np.isinf(y))),
        lambda x, y: np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y)),
    ),
    lambda g, _, x, y: np.where((x == 0) & (y <= 0), 0, XLOGY(g, y)),
    lambda g, _, x, y: g * x / y,
    family="elementwise",
    name="xlogy",
)
LERP = Fused(
    lambda x, end, weight: x + weight * (end - x),
    lambda g, y, x, end, weight: g * (1 - weight),
    lambda g, y, x, end, weight: g * weight,
    lambda g, y, x, end, weight: g * (end - x),
    family="elementwise",
    name="lerp",
)
ADDCMUL = Fused(
    lambda x, a, b, value: x + value * a * b,
    lambda g, y, x, a, b, value: g,
    lambda g, y, x, a, b, value: g * value * b,
    lambda g, y, x, a, b, value: g * value * a,
    family="elementwise",
    name="addcmul",
)
ADDCDIV = Fused(
    lambda x, a, b, value: x + value * a / b,
    lambda g, y, x, a, b, value: g,
    lambda g, y, x, a, b, value: g * value / b,
    lambda g, y, x, a, b, value: -g * value * a / (b * b),
    family="elementwise",
    name="addcdiv",
)


# -- NumPy's functions, with torch's signs of zero -----------------------------------------------------------------


def _clamped(x: Any, low: float, high: float) -> Any:
    return np.where(x <= low, low, np.where(x >= high, high, x))


CLAMP = Fused(  # between numbers, at which it is flat (as of torch 2.14); bounds that are infinite are none
    _traced(_clamped, lambda x, low, high: np.clip(x, low, high)),
    lambda g, y, x, low, high: np.where(((x > low) | (low == -math.inf)) & ((x < high) | (high == math.inf)), g, 0),
    family="elementwise",
    name="clamp",
)


def _met(a: Any, low: Any, high: Any) -> Any:
    """Where an element is at one bound, which takes half of its cotangent (as of torch 2.14), or as much as it is."""
    return ((a == low) | (a == high)) & (low < high) & np.isfinite(a)


_CLIP_RULES = (
    lambda g, y, a, low, high: np.where((a >= low) & (a <= high), np.where(_met(a, low, high), 0.5 * g, g), 0),
    lambda g, y, a, low, high: np.where((a < low) & (low <= high), g, np.where((a == low) & _met(a, low, high), 0.5 * g, 0)),
    lambda g, y, a, low, high: np.where(np.maximum(a, low) > high, g, np.where((a == high) & _met(a, low, high), 0.5 * g, 0)),
)
CLIP = Fused(_ruled(lambda a, low, high: np.clip(a, low, high), *_CLIP_RULES), *_CLIP_RULES, family="elementwise", name="clamp")
MAXIMUM = variant(
    known(np.maximum),
    rules=(
        lambda g, y, a, b: np.where(a < b, 0, np.where(a == b, 0.5 * g, g)),
        lambda g, y, a, b: np.where(b < a, 0, np.where(a == b, 0.5 * g, g)),
    ),
)
MINIMUM = variant(
    known(np.minimum),
    rules=(
        lambda g, y, a, b: np.where(a > b, 0, np.where(a == b, 0.5 * g, g)),
        lambda g, y, a, b: np.where(b > a, 0, np.where(a == b, 0.5 * g, g)),
    ),
)


FMAX = variant(  # as MAXIMUM, but for NaN
    known(np.fmax),
    rules=(
        lambda g, y, a, b: np.where(a == b, 0.5 * g, np.where((a > b) | np.isnan(b), g, 0)),
        lambda g, y, a, b: np.where(a == b, 0.5 * g, np.where((a > b) | np.isnan(b), 0, g)),
    ),
)
FMIN = variant(
    known(np.fmin),
    rules=(
        lambda g, y, a, b: np.where(a == b, 0.5 * g, np.where((a < b) | np.isnan(b), g, 0)),
        lambda g, y, a, b: np.where(a == b, 0.5 * g, np.where((a < b) | np.isnan(b), 0, g)),
    ),
)


def _power_base(g: Any, _: Any, x: Any, n: Any) -> Any:
    if isinstance(n, (int, float)):
        return np.zeros_like(g) if n == 0 else power_x1(g, None, x, n)
    return np.where(n == 0, 0, g * (n * x ** (n - 1)))


def _power(x: Any, n: Any) -> Any:
    return x * x * x if n.__class__ in (int, float) and n == 3 else x**n  # as torch computes cubes


ARCTAN2 = variant(
    known(np.arctan2), rules=(lambda g, _, a, b: g * (b / squares(a, b)), lambda g, _, a, b: -g * (a / squares(a, b)))
)
HYPOT = variant(known(np.hypot), rules=(lambda g, y, a, b: g * (a / y), lambda g, y, a, b: g * (b / y)))
POWER = variant(known(np.power), fun=_power, rules=(_power_base, known(np.power).rules[1]))


def _shared(g: Any, y: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    hit = a == expand(y, a, axis, keepdims)
    return expand(g, a, axis, keepdims) * hit / np.sum(hit, axis=axis, keepdims=True)


AMAX, AMIN = (variant(known(key), rules=(_shared,)) for key in (np.max, np.min))


def _evenly(g: Any, y: Any, a: Any, place: Any = None) -> Any:
    """The cotangent of an element, shared by all that equal it; those that are NaN, where it is."""
    hit = np.where(np.isnan(y), np.isnan(a), a == y)
    return np.where(hit, g / np.sum(hit, dtype=y.dtype), 0)


MAX, MIN = (variant(known(key), rules=(_evenly,)) for key in (np.max, np.min))


def _median_pushed(x: tuple[Any, ...], t: tuple[Any, ...]) -> Any:
    y = x[0].reshape(-1)[x[1]]
    return y, np.sum(_evenly(t[0], y, x[0]))


MEDIAN = Fused(  # the element at a place
    _traced(custom_jvp(lambda a, place: a.reshape(-1)[place]).defjvp(_median_pushed), lambda a, place: a.reshape(-1)[place]),
    _evenly,
    None,
    name="median",
)


def flat(fun: Any, name: str, count: int = 1) -> Fused:
    """A step function of one argument or two: its derivative is zero, and recorded as such."""
    rule: Any = (lambda g, y, x: np.zeros_like(g)) if count == 1 else (lambda g, y, a, b: np.zeros_like(g))
    return Fused(fun, *[rule] * count, family="elementwise", name=name)


def _rounded(fun: Any) -> Any:
    """A way to round numbers, which leaves integers as they are."""
    return lambda x: fun(x) if x.dtype.kind in "fc" else np.array(x)


def _signs(x: Any) -> Any:
    """The signs of real numbers: that of NaN is 0."""
    if x.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return np.array(x) if x.dtype.kind == "b" else np.subtract(x > 0, x < 0, dtype=x.dtype)


FLOOR, CEIL, TRUNC, SIGN, SGN = (
    flat(fun, name)
    for fun, name in (
        (_rounded(np.floor), "floor"),
        (_rounded(np.ceil), "ceil"),
        (_rounded(np.trunc), "trunc"),
        (_signs, "sign"),
        (_signs, "sgn"),
    )
)
_direction: Any = known(np.absolute).rules[0]
ABS = variant(
    known(np.absolute),
    rules=(lambda g, y, x: _direction(g, y, x) if np.iscomplexobj(x) else g * SIGN(x),),
)
ROUND = Fused(
    lambda x, decimals=0: np.rint(x * 10.0**decimals) / 10.0**decimals if decimals else _rounded(np.rint)(x),
    lambda g, y, x, decimals=0: np.zeros_like(g),
    family="elementwise",
    name="round",
)
REAL_ANGLE = flat(lambda x: np.where(x < 0, np.pi, np.where(np.isnan(x), x, 0)).astype(x.dtype), "angle")
COPYSIGN = Fused(
    np.copysign,
    lambda g, y, x, s: g * np.where(x == 0, 0, np.sign(x) * np.sign(y)),
    lambda g, y, x, s: np.zeros_like(g),
    family="elementwise",
    name="copysign",
)
NEXTAFTER = Fused(
    np.nextafter,
    lambda g, y, x, towards: np.where(x == towards, 0, g),
    lambda g, y, x, towards: np.where(x == towards, g, 0),
    family="elementwise",
    name="nextafter",
)
FREXP = Fused(np.frexp, lambda g, y, x: g[0] / 2.0 ** y[1], name="frexp")
FRAC = Fused(lambda x: x - np.trunc(x), lambda g, y, x: g, family="elementwise", name="frac")

# -- the error function, and gelu ----------------------------------------------------------------------------------


def _each(fun: Any, slope: float) -> Any:
    """A function of Python's floats on arrays, and on traced ones, whose derivative is ``slope * exp(-x * x)``."""
    values = np.frompyfunc(fun, 1, 1)

    def run(x: Any) -> Any:
        if type(x) is Tracer:
            return traced(x)
        return fun(x) if x.__class__ is float else np.asarray(values(x), dtype=x.dtype)

    run.__name__ = fun.__name__
    traced = primitive(run).defvjp(lambda g, y, x: g * (slope * np.exp(-x * x)))
    return run


erf_values = _each(math.erf, 2 / math.sqrt(math.pi))
ERF = Fused(
    erf_values,
    lambda g, y, x: g * (2 / math.sqrt(math.pi) * np.exp(-x * x)),
    family="elementwise",
    name="erf",
)
ERFC = Fused(
    _each(math.erfc, -2 / math.sqrt(math.pi)),
    lambda g, y, x: g * (-2 / math.sqrt(math.pi) * np.exp(-x * x)),
    family="elementwise",
    name="erfc",
)
ERFINV_SCALE = math.sqrt(0.5)


def _gelu(x: Any, approximate: str = "none") -> Any:
    """``gelu``, and what its rule needs: the weight of ``x``, and its square where that is there."""
    if approximate == "tanh":
        square = x * x
        weight = np.tanh(x * (square * (_GELU * 0.044715) + _GELU)) * 0.5 + 0.5
        return x * weight, (weight, square)
    weight = 0.5 * (ERF(x * ERFINV_SCALE) + 1)
    return x * weight, weight


def _gelu_rule(g: Any, y: Any, x: Any, approximate: str = "none", *, kept: Any = None) -> Any:
    kept = _gelu(x, approximate)[1] if kept is None else kept
    if approximate == "tanh":
        weight, square = kept
        return g * (weight * (x * (1 - weight) * (square * (6 * 0.044715 * _GELU) + 2 * _GELU) + 1))
    return g * (kept + x * np.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)))


def _silu(x: Any) -> Any:
    weight = SIGMOID(x)
    return x * weight, weight


def _silu_rule(g: Any, y: Any, x: Any, *, kept: Any = None) -> Any:
    s = SIGMOID(x) if kept is None else kept
    return g * (s * (x * (1 - s) + 1))


def _elu(x: Any, alpha: float, scale: float = 1) -> Any:
    y = np.where(x > 0, x, np.expm1(np.where(x > 0, 0, x)) * alpha)
    return y if scale == 1 else y * scale


def _elu_rule(g: Any, y: Any, x: Any, alpha: float, scale: float = 1) -> Any:
    g = g if scale == 1 else g * scale
    return np.where(x <= 0, g * (np.exp(np.minimum(0, x)) * alpha), g)


def _softplus(x: Any, beta: float, threshold: float) -> Any:
    z = x if beta == 1 else x * beta
    linear, e = z > threshold, np.exp(np.minimum(z, threshold))
    soft = np.log1p(e)
    return np.where(linear, x, soft if beta == 1 else soft / beta), (linear, e)


def _softplus_rule(g: Any, y: Any, x: Any, beta: float, threshold: float, *, kept: Any = None) -> Any:
    linear, e = kept or (x * beta > threshold, np.exp(np.minimum(x * beta, threshold)))
    return np.where(linear, g, g * (e / (e + 1)))


def _first(fun: Any) -> Any:
    """The result alone, without what is kept for the rules."""
    return lambda *arrays, **params: fun(*arrays, **params)[0]


_GELU = math.sqrt(2 / math.pi)
GELU = Fused(_first(_gelu), _gelu_rule, family="elementwise", name="gelu", keeps=_gelu, kernel="GeluKernelImpl")
SILU = Fused(_first(_silu), _silu_rule, family="elementwise", name="silu", keeps=_silu, kernel="silu_cpu", kinds="fc")
ELU = Fused(_elu, _elu_rule, family="elementwise", name="elu", kernel="elu_cpu")
_raised = _ruled(np.maximum, lambda g, y, x, eps: g, lambda g, y, x, eps: 0)
RAISED = Fused(  # no less than ``eps``, with the slope of what was there
    lambda x, eps: _raised(x, eps),
    lambda g, y, x, eps: g,
    family="elementwise",
    name="clone",
)


def _padded(x: Any, widths: Any, value: Any) -> Any:
    inner = x[tuple([slice(max(-low, 0), n - max(-high, 0)) for (low, high), n in zip(widths, x.shape, strict=True)])]
    if type(x) is Tracer:
        return np.pad(inner, [(max(low, 0), max(high, 0)) for low, high in widths], constant_values=value)
    out = np.full([n + low + high for (low, high), n in zip(widths, x.shape, strict=True)], value, x.dtype)
    out[tuple([slice(max(low, 0), n - max(high, 0)) for (low, high), n in zip(widths, out.shape, strict=True)])] = inner
    return out


PAD: Fused = Fused(  # a negative width cuts off
    _padded,
    lambda g, y, x, widths, value: PAD(g, widths=tuple([(-low, -high) for low, high in widths]), value=0),
    family="linear",
    name="constant_pad_nd",
)


def _mish(x: Any) -> Any:
    weight = np.tanh(_softplus(x, 1, 20)[0])
    return x * weight, weight


def _mish_rule(g: Any, y: Any, x: Any, *, kept: Any = None) -> Any:
    weight = np.tanh(SOFTPLUS(x, beta=1, threshold=20)) if kept is None else kept
    return g * (weight + x * SIGMOID(x) * (1 - weight * weight))


MISH = Fused(_first(_mish), _mish_rule, family="elementwise", name="mish", keeps=_mish, kernel="mish_cpu")
SOFTPLUS = Fused(
    _first(_softplus), _softplus_rule, family="elementwise", name="softplus", keeps=_softplus, kernel="softplus_cpu"
)
LEAKY_RELU = _bent(
    lambda x, negative_slope: np.where(x > 0, x, x * negative_slope),
    lambda g, x, negative_slope: np.where(x > 0, g, g * negative_slope),
    "leaky_relu",
    kernel="leaky_relu_cpu",
)
HARDTANH = _bent(
    _traced(
        lambda x, low, high: np.where(x <= low, low, np.where(x >= high, high, x)),
        lambda x, low, high: np.minimum(x.dtype.type(high), np.maximum(x.dtype.type(low), x)),  # which keeps zeros' signs
    ),
    lambda g, x, low, high: np.where((x <= low) | (x >= high), 0, g),
    "hardtanh",
)

CELU = Fused(
    lambda x, alpha: np.where(x > 0, x, np.expm1(np.where(x > 0, 0, x) / alpha) * alpha),
    lambda g, y, x, alpha: np.where(x <= 0, g * np.exp(np.minimum(0, x) / alpha), g),
    family="elementwise",
    name="celu",
    kernel="elu_cpu",
)
HARDSIGMOID = _bent(
    _traced(lambda x: np.where(x <= -3, 0, np.where(x < 3, (x + 3) / 6, 1)), lambda x: np.clip(x + 3, 0, 6) / 6),
    lambda g, x: np.where((x > -3) & (x < 3), g / 6, 0),
    "hardsigmoid",
    kernel="hardsigmoid_cpu",
)
HARDSWISH = Fused(
    _traced(lambda x: np.where(x <= -3, 0 * x, np.where(x < 3, x * (x + 3) / 6, x)), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    lambda g, y, x: np.where(x <= -3, 0, np.where(x < 3, g * (x / 3 + 0.5), g)),
    family="elementwise",
    name="hardswish",
    kernel="hardswish_cpu",
)
SOFTSHRINK = _bent(
    lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0)),
    lambda g, x, lambd: np.where((x >= -lambd) & (x <= lambd), 0, g),
    "softshrink",
    kernel="softshrink_check",
)
HARDSHRINK = _bent(
    lambda x, lambd: np.where((x >= -lambd) & (x <= lambd), 0, x),
    lambda g, x, lambd: np.where((x >= -lambd) & (x <= lambd), 0, g),
    "hardshrink",
    kernel="hardshrink_cpu",
)
THRESHOLD = _bent(
    lambda x, threshold, value: np.where(x <= threshold, np.asarray(value, x.dtype), x),
    lambda g, x, threshold, value: np.where(x <= threshold, 0, g),
    "threshold",
    kernel="threshold_cpu",
    kinds="fiu",
)
PRELU_SLOPE: Fused = Fused(
    lambda g, x, weight: np.where(x > 0, g, g * weight),
    lambda h, _, g, x, weight: PRELU_SLOPE(h, x, weight),
    lambda h, _, g, x, weight: np.zeros_like(h),
    lambda h, _, g, x, weight: np.where(x > 0, 0, h * g),
    family="elementwise",
    name="prelu_kernel_backward",
)
PRELU = Fused(
    lambda x, weight: np.where(x > 0, x, x * weight),
    lambda g, y, x, weight: PRELU_SLOPE(g, x, weight),
    lambda g, y, x, weight: np.where(x > 0, 0, g * x),
    family="elementwise",
    name="prelu_kernel",
)

# -- softmax and its relatives -------------------------------------------------------------------------------------


_add: Any = np.add.reduce
_max: Any = np.maximum.reduce


def _total(x: Any, axis: Any) -> Any:
    """The sum over axes, which stay."""
    return _add(x, axis, None, None, True)


def _products(x: Any, y: Any, axis: Any) -> Any:
    """The sum of products over axes, which stay."""
    if axis != -1:
        return _total(x * y, axis)
    return (np.dot(x, y) if y.ndim == 1 else np.vecdot(x, y))[..., None]


@functools.lru_cache(maxsize=64)
def _same(n: int, value: float, kind: Any) -> Any:
    return np.full(n, value, kind)


def _column_sums(x: Any, like: Any) -> Any:
    """The sums of short columns as a product, where it is they that a cotangent of ``like`` comes down to."""
    if x.__class__ is np.ndarray and x.ndim == 2 and like.ndim == 1 and len(x) <= 1024:
        return np.dot(_same(len(x), 1.0, x.dtype), x)
    return x


def _mean(x: Any, axis: Any, n: int) -> Any:
    """The mean over axes, which stay; of short rows as a product, which takes less time and is as exact."""
    if axis == -1 and n <= 1024 and x.__class__ is np.ndarray:
        return np.dot(x, _same(n, 1 / max(n, 1), x.dtype))[..., None]
    return _total(x, axis) / n


def _shifted(x: Any, axis: int) -> Any:
    return x - _max(x, axis, None, None, True) if x.size else x


def _softmax(x: Any, axis: int) -> Any:
    e = np.exp(_shifted(x, axis))
    return e / _total(e, axis)


def _log_softmax(x: Any, axis: int) -> Any:
    z = _shifted(x, axis)
    return z - np.log(_total(np.exp(z), axis))


def _logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    top = np.max(x.real, axis=axis, keepdims=True, initial=-math.inf)
    top = np.where(np.isfinite(top), top, 0)
    y = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=keepdims))
    return y + (top if keepdims else np.reshape(top, np.shape(y)))


def _logsumexp_rule(g: Any, y: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    if not keepdims:
        kept = tuple(1 if i in axis else n for i, n in enumerate(np.shape(x)))
        g, y = np.reshape(g, kept), np.reshape(y, kept)
    return g * np.exp(x - y)


SOFTMAX = Fused(
    _softmax, lambda g, y, x, axis: y * (g - _total(g * y, axis)), name="softmax", kernel="softmax_lastdim_kernel_impl"
)
LOG_SOFTMAX = Fused(
    _log_softmax,
    lambda g, y, x, axis: g - np.exp(y) * _total(g, axis),
    name="log_softmax",
    kernel="log_softmax_lastdim_kernel_impl",
)
LOGSUMEXP = Fused(_logsumexp, _logsumexp_rule, name="logsumexp")

# -- losses --------------------------------------------------------------------------------------------------------


def _reduced(loss: Any, reduction: str, sign: int = 1) -> Any:
    """What ``reduction`` makes of the losses, times 1 or -1."""
    if reduction == "mean":
        return np.add.reduce(loss, None) / (math.prod(np.shape(loss)) * sign)
    total = loss if reduction == "none" else np.add.reduce(loss, None)
    return total if sign == 1 else -total


def _spread(g: Any, x: Any, y: Any, reduction: str) -> Any:
    """The cotangent of each element's loss."""
    if reduction != "mean":
        return g
    shape = np.shape(x)
    return g / math.prod(shape if shape == np.shape(y) else np.broadcast_shapes(shape, np.shape(y)))


def _bce_logits(x: Any, y: Any, weight: Any = None, pos_weight: Any = None, *, reduction: str) -> Any:
    low = _log_sigmoid(x)
    loss = (1 - y) * x - low if pos_weight is None else (1 - y) * x - (1 + (pos_weight - 1) * y) * low
    return _reduced(loss if weight is None else loss * weight, reduction)


def _bce_logits_x(g: Any, _: Any, x: Any, y: Any, weight: Any = None, pos_weight: Any = None, *, reduction: str) -> Any:
    g = _spread(g, x, y, reduction)
    g = g if weight is None else g * weight
    if pos_weight is None:
        return (SIGMOID(x) - y) * g
    t = pos_weight * y
    return ((t + 1 - y) * SIGMOID(x) - t) * g


def _bce_logits_y(g: Any, _: Any, x: Any, y: Any, weight: Any = None, pos_weight: Any = None, *, reduction: str) -> Any:
    g = _spread(g, x, y, reduction)
    g = g if weight is None else g * weight
    if pos_weight is None:
        return -x * g
    return (LOG_SIGMOID(-x) - pos_weight * LOG_SIGMOID(x)) * g


BCE_LOGITS = Fused(
    _bce_logits, _bce_logits_x, _bce_logits_y, None, None, name="binary_cross_entropy_with_logits", kernel="log_sigmoid_cpu"
)


def _by_x(g: Any, _: Any, x: Any, y: Any) -> Any:
    return g * (x - y) / np.maximum((1 - x) * x, 1e-12)


def _by_y(g: Any, _: Any, x: Any, y: Any) -> Any:
    return g * (np.log1p(-x) - np.log(x))


_log_loss = _ruled(
    lambda x, y: (y - 1) * np.maximum(np.log1p(-x), -100) - y * np.maximum(np.log(x), -100),
    _by_x,
    lambda t, _, x, y: np.where(t == 0, 0, _by_y(t, _, x, y)),  # labels that stay as they are
)


def _bce(x: Any, y: Any, weight: Any = None, *, reduction: str) -> Any:
    loss = _log_loss(x, y)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _bce_x(g: Any, _: Any, x: Any, y: Any, weight: Any = None, *, reduction: str) -> Any:
    g = _spread(g, x, y, reduction)
    return _by_x(g if weight is None else g * weight, _, x, y)


def _bce_y(g: Any, _: Any, x: Any, y: Any, weight: Any = None, *, reduction: str) -> Any:
    g = _spread(g, x, y, reduction)
    return _by_y(g if weight is None else g * weight, _, x, y)


BCE = Fused(_bce, _bce_x, _bce_y, None, name="binary_cross_entropy", kernel="binary_cross_entropy")


def _pairwise(name: str, kernel: str | None, loss: Any, slope: Any) -> Fused:
    """A loss of the difference of two arrays, with its slope; neither minds which is which, but for the slope's sign."""

    def rule(g: Any, _: Any, x: Any, y: Any, *, reduction: str, **options: Any) -> Any:
        return _spread(g, x, y, reduction) * slope(x - y, **options)

    return Fused(
        lambda x, y, *, reduction, **options: _reduced(loss(x - y, **options), reduction),
        rule,
        lambda g, _, x, y, *, reduction, **options: rule(g, None, y, x, reduction=reduction, **options),
        name=name,
        kernel=kernel,
    )


MSE = _pairwise("mse_loss", "mse_cpu", lambda d: d * d, lambda d: 2 * d)
L1 = _pairwise("l1_loss", None, np.abs, np.sign)
SMOOTH_L1 = _pairwise(
    "smooth_l1_loss",
    "smooth_l1_cpu",
    lambda d, beta: np.where(np.abs(d) < beta, 0.5 * d * d / (beta or 1), np.abs(d) - 0.5 * beta),
    lambda d, beta: np.where(np.abs(d) < beta, d / (beta or 1), np.sign(d)),
)
HUBER = _pairwise(
    "huber_loss",
    "huber_cpu",
    lambda d, delta: np.where(np.abs(d) <= delta, 0.5 * d * d, delta * (np.abs(d) - 0.5 * delta)),
    lambda d, delta: np.where(np.abs(d) <= delta, d, delta * np.sign(d)),
)


def _nll(x: Any, weights: Any, places: Any, kept: Any, *, reduction: str) -> Any:
    """``places``: where each target's class lies in ``x``, flattened. ``weights``: zero for those not ``kept``, or None."""
    found = x.reshape(-1).take(places)
    if weights is None:
        return _reduced(found, reduction, -1)
    loss = np.where(kept, -found, 0) * weights
    if reduction == "none":
        return loss
    total = np.add.reduce(loss, axis=None)
    return total / np.add.reduce(weights, axis=None) if reduction == "mean" else total


def _nll_rule(g: Any, _: Any, x: Any, weights: Any, places: Any, kept: Any, *, reduction: str) -> Any:
    if weights is None:
        return PUT(_spread(-g, places, places, reduction), places, shape=np.shape(x))
    if reduction == "mean":
        g = g / np.add.reduce(weights, axis=None)  # which is zero where none is kept
    return PUT(np.where(kept, 0 - g * weights, 0), places, shape=np.shape(x))


# each is the transpose of the other; no place is named twice
PICK: Fused = Fused(
    lambda x, places, shape: x.reshape(-1).take(places),
    lambda g, y, x, places, shape: PUT(g, places, shape=shape),
    None,
    family="linear",
    name="pick",
)


def _put(g: Any, places: Any, shape: Any) -> Any:
    flat = np.zeros(math.prod(shape), g.dtype, **_like(g))
    flat[places] = g
    return flat.reshape(shape)


PUT: Fused = Fused(_put, lambda g, y, x, places, shape: PICK(g, places, shape=shape), None, family="linear", name="put")


def _add_up(g: Any, places: Any, shape: Any) -> Any:
    flat = np.zeros(math.prod(shape), g.dtype, **_like(g))
    np.add.at(flat, places.reshape(-1), g.reshape(-1))
    return flat.reshape(shape)


# the same, where places may be named several times
GATHER: Fused = Fused(
    PICK.fun, lambda g, y, x, places, shape: ADD_UP(g, places, shape=shape), None, family="linear", name="gather"
)
ADD_UP: Fused = Fused(
    _add_up, lambda g, y, x, places, shape: GATHER(g, places, shape=shape), None, family="linear", name="add_up"
)


def _writable(x: Any, source: Any) -> Any:
    """A copy of ``x`` that ``source`` can be written into, either of which may be traced."""
    if type(x) is Tracer:
        return x.copy()
    return x + np.zeros(x.shape, x.dtype, like=source) if type(source) is Tracer else np.array(x, order="C")


def _rows_added(out: Any, rows: Any, places: Any, axis: int) -> Any:
    np.add.at(out, (*(slice(None),) * axis, places) if axis else places, rows)
    return out


# the same, along an axis
TAKE: Fused = Fused(
    lambda x, places, axis: x.take(places, axis),
    lambda g, y, x, places, axis: ADD_ROWS(g, places, axis=axis, shape=x.shape),
    None,
    family="linear",
    name="index_select",
)
ADD_ROWS: Fused = Fused(
    lambda g, places, axis, shape: _rows_added(np.zeros(shape, g.dtype, **_like(g)), g, places, axis),
    lambda g, y, x, places, axis, shape: TAKE(g, places, axis=axis),
    None,
    family="linear",
    name="add_rows",
)
EMBEDDING = Fused(  # rows, whose cotangents are scaled
    _traced(
        custom_jvp(lambda weight, places, scale: weight.take(places, 0)).defjvp(
            lambda x, t: (x[0].take(x[1], 0), t[0].take(x[1], 0) * x[2][..., None])
        ),
        lambda weight, places, scale: weight.take(places, 0),
    ),
    lambda g, y, weight, places, scale: ADD_ROWS(g * scale[..., None], places, axis=0, shape=weight.shape),
    None,
    None,
    family="linear",
    name="embedding",
)
INDEX_ADD = Fused(
    lambda x, src, places, axis: _rows_added(_writable(x, src), src, places, axis),
    lambda g, y, x, src, places, axis: g,
    lambda g, y, x, src, places, axis: TAKE(g, places, axis=axis),
    None,
    family="linear",
    name="index_add",
)


def _scattered(x: Any, src: Any, places: Any) -> Any:
    flat = x.flatten()
    flat[places] = src
    return flat.reshape(x.shape)


def _scatter_added(x: Any, src: Any, places: Any) -> Any:
    flat = _writable(x, src).reshape(-1)
    np.add.at(flat, places.ravel(), src.ravel())
    return flat.reshape(x.shape)


SCATTER: Fused = Fused(
    _scattered,
    lambda g, y, x, src, places: SCATTER(g, 0.0, places),
    lambda g, y, x, src, places: GATHER(g, places, shape=x.shape),
    None,
    family="linear",
    name="scatter",
)
SCATTER_ADD = Fused(
    _scatter_added,
    lambda g, y, x, src, places: g,
    lambda g, y, x, src, places: GATHER(g, places, shape=x.shape),
    None,
    family="linear",
    name="scatter_add",
)


NLL = Fused(_nll, _nll_rule, None, None, None, family="linear", name="nll_loss")


def _cross_entropy(x: Any, places: Any, *, reduction: str) -> Any:
    """``NLL`` of ``LOG_SOFTMAX`` of rows, without what neither needs."""
    z = _shifted(x, 1)
    e = np.exp(z)
    total = _total(e, 1)
    loss = np.log(total).reshape(-1) - z.reshape(-1).take(places)
    return _reduced(loss, reduction), (e, total)


def _cross_entropy_rule(g: Any, _: Any, x: Any, places: Any, *, reduction: str, kept: Any = None) -> Any:
    chances = SOFTMAX(x, axis=1) if kept is None else kept[0] / kept[1]
    hit = _put(np.ones((), x.dtype), places, np.shape(x))
    g = _spread(g, places, places, reduction)
    return (chances - hit) * (g if reduction != "none" else g[:, None])


CROSS_ENTROPY = Fused(
    _first(_cross_entropy),
    _cross_entropy_rule,
    None,
    name="cross_entropy",
    keeps=_cross_entropy,
    kernel="log_softmax_lastdim_kernel_impl",
)


def _even(x: Any, weight: Any, kept: Any, total: Any, *, axis: int, reduction: str) -> Any:
    loss = -_add(x if weight is None else x * weight, axis)
    loss = loss if kept is None else np.where(kept, loss, 0)
    if reduction == "none":
        return loss
    return _add(loss, None) if reduction == "sum" else _add(loss, None) / total


def _even_rule(g: Any, _: Any, x: Any, weight: Any, kept: Any, total: Any, *, axis: int, reduction: str) -> Any:
    g = -g if reduction != "mean" else g / -total
    if kept is not None:
        g = np.where(kept, g, 0)
    g = np.expand_dims(g, axis) if kept is not None or reduction == "none" else g
    return g if weight is None else g * weight


# minus the sum over all classes of log probabilities: the loss of targets that are spread evenly, times their number
EVEN = Fused(_even, _even_rule, None, None, None, family="linear", name="even")


def _normed(x: Any, axes: Any, n: int, eps: float) -> Any:
    """``x`` less its mean, over its deviation, and one over that."""
    centred = x - _mean(x, axes, n)
    scale = math.sqrt(n) / np.sqrt(_products(centred, centred, axes) + n * eps)
    return centred * scale, scale


def _layer_norm(x: Any, weight: Any = None, bias: Any = None, *, axes: Any, n: int, eps: float) -> Any:
    """Each row less its mean, over its deviation; scaled and moved where weight and bias are given."""
    kept = _normed(x, axes, n, eps)
    y = kept[0] if weight is None else kept[0] * weight
    y = y if bias is None else y + bias
    return y.copy() if y is kept[0] else y, kept  # as it may be written to


def _layer_norm_x(
    g: Any, _: Any, x: Any, weight: Any = None, bias: Any = None, *, axes: Any, n: int, eps: float, kept: Any = None
) -> Any:
    y, scale = kept or _normed(x, axes, n, eps)
    total = _total(g, axes) if weight is None else _products(g, weight, axes)
    g = g if weight is None else g * weight
    return scale * (g - (y * _products(g, y, axes) + total) / n)


def _layer_norm_weight(
    g: Any, _: Any, x: Any, weight: Any, bias: Any = None, *, axes: Any, n: int, eps: float, kept: Any = None
) -> Any:
    return _column_sums(g * (kept or _normed(x, axes, n, eps))[0], weight)


LAYER_NORM = Fused(
    _first(_layer_norm),
    _layer_norm_x,
    _layer_norm_weight,
    lambda g, _, x, weight, bias, *, axes, n, eps, kept=None: _column_sums(g, bias),
    keeps=_layer_norm,
    name="native_layer_norm",
    kernel="LayerNormKernelImpl",
)
