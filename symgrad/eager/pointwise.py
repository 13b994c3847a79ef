"""Functions of each element, operators, comparisons: torch's names for the elementwise operations."""

from __future__ import annotations

import math
import warnings
from collections import namedtuple
from typing import Any

import numpy as np

from symgrad.eager import ops
from symgrad.eager.core import (
    NAMES,
    NONE,
    PARTS,
    READS,
    Fused,
    Label,
    Tensor,
    apply,
    assign,
    called,
    check_kernel,
    check_within,
    execute,
    known,
    labelled,
    method,
    methods,
    plain,
    refuse_overlap,
    requires,
    rewrite,
    straight,
    variant,
    wrap,
    writable,
)
from symgrad.eager.dtypes import c_name, default, number_in, promoted, title
from symgrad.eager.modes import mode
from symgrad.ops.core import Op, Traced
from symgrad.ops.engine import ASTYPE

__all__: list[str] = []
FUNCTIONS: dict[str, Any] = {}


def function(fun: Any) -> Any:
    """A function of the package, and a method of tensors."""
    FUNCTIONS[fun.__name__] = fun
    return method(fun)


def floating(x: Tensor) -> Any:
    """The values as floating-point ones, which those of integers become in the default dtype."""
    value = x.value
    return value if value.dtype.kind in "fc" else value.astype(default.real)


def as_floats(x: Tensor) -> Tensor:
    """The tensor; one of whole numbers or truth values in the default dtype."""
    return x if x.value.dtype.kind in "fc" else x.to(default.real)


def delivered(result: Any, out: Any, name: str) -> Any:
    """A result, written into ``out`` if that is given."""
    if out is None:
        return result
    if mode.grad and (result.needs or requires(out)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    before, wanted = out.value.shape, result.value.shape
    if before != wanted:
        if out.value.size:
            warnings.warn(_RESIZED.format(list(before), list(wanted)), stacklevel=3)
        resize(out, wanted)
    return assign(out, result, name)


def resize(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give an ``out`` this shape, in new memory; a view in its own, from its first element on."""
    if out.base is None:
        out.data = wrap(np.empty(shape, out.value.dtype))
    else:
        out.value = FUNCTIONS["as_strided"](out, shape, [math.prod(shape[i + 1 :]) for i in range(len(shape))]).value


_RESIZED = (
    "An output with one or more elements was resized since it had shape {0}, which does not match the required output shape "
    "{1}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have zero "
    "elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
)


def apply_floating(op: Op, input: Tensor, params: dict[str, Any] = NONE, label: Label = None) -> Any:
    """``apply`` to one tensor, whose integers become floating-point numbers."""
    return execute(op, (input,), [floating(input)], (0,) if requires(input) else (), params, label)


def require_tensor(name: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")


# -- functions of one argument -------------------------------------------------------------------------------------


def _unary(name: str, op: Op, keeps_integers: bool = False) -> None:
    @function
    @called(name, f"``{name}`` of each element.")
    def fun(input: Any, *, out: Any = None) -> Any:
        if not isinstance(input, Tensor):
            if isinstance(input, Traced):
                return op(input)
            require_tensor(name, input)
        value = input.value
        if not keeps_integers and value.dtype.kind not in "fc":
            value = value.astype(default.real)
        result = execute(
            op, (input,), [value], (0,) if input.needs or (input.base is not None and input.base.needs) else (), NONE, None
        )
        return delivered(result, out, name)

    if op.key not in _NOT_IN_PLACE:
        in_place(name, fun)


_NOT_IN_PLACE = {  # what torch has no such method for
    np.isnan, np.isinf, np.isfinite, np.isposinf, np.isneginf, np.signbit, np.maximum, np.minimum,
    ops.FMAX.key, ops.FMIN.key, np.logaddexp, np.logaddexp2,
}  # fmt: skip


def in_place(name: str, fun: Any, overlaps: bool = False) -> None:
    """The method ``name_``, which writes the result of ``fun`` into the tensor. ``overlaps``: arguments may lie there, too."""

    @called(f"{name}_", f"``{name}``, written into this tensor.")
    def method_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.made or self.inference:
            writable(self)  # which torch looks at first
        for other in () if overlaps else args:
            if isinstance(other, Tensor) and (other.base is not None or self.base is not None):
                refuse_overlap(self, other)
        return rewrite(self, lambda x: fun(x, *args, **kwargs), f"{name}_")

    setattr(Tensor, f"{name}_", method_)


for _name, _key in {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt, "reciprocal": np.reciprocal, "deg2rad": np.deg2rad, "rad2deg": np.rad2deg, "sinc": np.sinc, "i0": np.i0,
    "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "arcsinh": np.arcsinh, "arccosh": np.arccosh,
    "arctanh": np.arctanh,
}.items():  # fmt: skip
    _unary(_name, known(_key))
_op: Op
for _name, _op in {
    "sigmoid": ops.SIGMOID, "erf": ops.ERF, "erfc": ops.ERFC, "rsqrt": ops.RSQRT,
}.items():  # fmt: skip
    _unary(_name, _op)
for _name, _op in {
    "abs": ops.ABS, "absolute": ops.ABS, "neg": known(np.negative), "negative": known(np.negative),
    "frac": ops.FRAC, "relu": ops.RELU, "floor": ops.FLOOR, "ceil": ops.CEIL, "trunc": ops.TRUNC, "fix": ops.TRUNC,
    "sign": ops.SIGN,
}.items():  # fmt: skip
    _unary(_name, _op, keeps_integers=True)
for _name in "isnan isinf isfinite isposinf isneginf signbit logical_not".split():
    _unary(_name, known(getattr(np, _name)), keeps_integers=True)
_unary("bitwise_not", known(np.invert), keeps_integers=True)

NAMES.update({
    np.arcsin: "AsinBackward0", np.arccos: "AcosBackward0", np.arctan: "AtanBackward0", np.arcsinh: "AsinhBackward0",
    np.arccosh: "AcoshBackward0", np.arctanh: "AtanhBackward0", np.absolute: "AbsBackward0", np.negative: "NegBackward0",
    np.add: "AddBackward0", np.subtract: "SubBackward0", np.multiply: "MulBackward0", np.divide: "DivBackward0",
    np.square: "PowBackward0", np.arctan2: "Atan2Backward0", np.deg2rad: "Deg2RadBackward0", np.rad2deg: "Rad2DegBackward0",
    np.power: lambda node: f"PowBackward{int(np.ndim(node.args[1]) > 0 or isinstance(node.args[1], (np.ndarray, np.generic)))}"
    if node.args is not None else "PowBackward0",
    np.where: "WhereBackward0", np.clip: "ClampBackward1",
    np.logaddexp: "LogaddexpBackward0", np.logaddexp2: "Logaddexp2Backward0", np.conjugate: "ConjBackward0",
    ASTYPE.key: "ToCopyBackward0", np.nan_to_num: "NanToNumBackward0", np.real: "RealBackward0", np.imag: "ImagBackward0",
})  # fmt: skip
READS[ops.FILL.key] = [(), ()]
READS[ops.COPY.key] = [(), ()]
PARTS[ops.FREXP.key] = (1,)


@function
def logit(input: Tensor, eps: float | None = None, *, out: Any = None) -> Any:
    """``log(input / (1 - input))``, of numbers that are first kept between ``eps`` and ``1 - eps``, if that is given."""
    require_tensor("logit", input)
    return delivered(apply_floating(ops.LOGIT, input, NONE if eps is None else {"eps": eps}), out, "logit")


in_place("logit", logit)


@function
def round(input: Tensor, *, decimals: int | None = None) -> Any:
    """Each element to the nearest integer, or to ``decimals``; halves go to the even one."""
    if decimals is None:
        return apply(ops.ROUND, (input,))
    check_kernel("round_cpu" if decimals else "round_vml_cpu", input.value.dtype)
    return apply(ops.ROUND, (input,), {"decimals": decimals}, "RoundBackward1")


in_place("round", round)


@function
def positive(input: Tensor) -> Any:
    """The tensor itself."""
    if input.value.dtype == bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@function
def conj(input: Tensor) -> Any:
    """Complex conjugates; of real numbers, the tensor itself."""
    return apply(CONJ, (input,)) if input.value.dtype.kind == "c" else input


@function
def sgn(input: Tensor) -> Any:
    """The signs; of complex numbers, these over their absolute values, and zero of zero."""
    if input.value.dtype.kind != "c":
        return apply(ops.SGN, (input,))
    size = FUNCTIONS["abs"](input)
    zero = size.value == 0
    safe = where(wrap(zero), 1.0, size)
    return labelled(where(wrap(zero), 0.0, input) / safe, "SgnBackward0")


in_place("sgn", sgn)


@function
def square(input: Tensor) -> Any:
    """``x * x``."""
    return power(input, 2)


@function
def real(input: Tensor) -> Any:
    """The real parts."""
    return apply(known(np.real), (input,), NONE, _PART) if input.value.dtype.kind == "c" else input


_PART = ("SelectBackward0", ("ViewAsRealBackward0", 0))
# of complex numbers, which they need not look at
CONJ = variant(known(np.conjugate), rules=(lambda g, y, x: np.conj(g),))
IMAG = variant(known(np.imag), rules=(lambda g, y, x: -1j * g,))


@function
def imag(input: Tensor) -> Any:
    """The imaginary parts."""
    if input.value.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return apply(IMAG, (input,), NONE, _PART)


@function
def angle(input: Tensor) -> Any:
    """The angles of complex numbers."""
    return apply(known(np.angle), (input,)) if input.value.dtype.kind == "c" else apply_floating(ops.REAL_ANGLE, input)


methods(
    real=property(real, lambda self, new: real(self).copy_(new)), imag=property(imag, lambda self, new: imag(self).copy_(new))
)


@function
def conj_physical(input: Tensor) -> Any:
    """Complex conjugates."""
    return conj(input)


@function
def isreal(input: Tensor) -> Any:
    """Where there is no imaginary part."""
    return wrap(np.asarray(input.value.imag == 0 if input.value.dtype.kind == "c" else np.ones(input.value.shape, bool)))


@function
def frexp(input: Tensor) -> Any:
    """Mantissas and exponents, ``input == mantissa * 2 ** exponent``."""
    if input.value.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return _FREXP(*apply(ops.FREXP, (input,)))


_FREXP = namedtuple("frexp", "mantissa exponent")  # type: ignore[name-match]


# -- functions of two arguments ------------------------------------------------------------------------------------

_PYTHON = (int, float, bool, complex)


def binary(op: Op, a: Any, b: Any, label: str | None = None, floats: bool = False) -> Any:
    """``op`` on tensors and numbers, of which one at least is a tensor, by torch's rules of promotion."""
    wanting: tuple[int, ...] = ()
    if isinstance(a, Tensor):
        x = a.value
        if a.needs or (a.base is not None and a.base.needs):
            wanting = (0,)
    else:
        x = a = a.item() if isinstance(a, np.generic) else a  # to torch, NumPy's numbers are Python's
    if isinstance(b, Tensor):
        y = b.value
        if b.needs or (b.base is not None and b.base.needs):
            wanting += (1,)
    else:
        y = b = b.item() if isinstance(b, np.generic) else b
    kind: Any = getattr(x, "dtype", None)
    other: Any = getattr(y, "dtype", None)
    same = kind is other or (_lifts(x, other) if kind is None else other is None and _lifts(y, kind))
    if not same or (floats and (other if kind is None else kind).kind not in "fc"):
        x, y = cast_alike(x, y, floats)
    try:
        return execute(op, (a, b), [x, y], wanting, NONE, label)
    except OverflowError:  # a number that the dtype of whole numbers cannot hold: torch counts on from its other end
        x, y = (np.asarray(v).astype(other if kind is None else kind) if isinstance(v, int) else v for v in (x, y))
        return execute(op, (a, b), [x, y], wanting, NONE, label)


def _lifts(number: Any, kind: Any) -> bool:
    """Whether a number takes the dtype of the array that it meets."""
    group, given = kind.kind, number.__class__
    return (group == "f" and given is not complex) or group == "c" or (given is int and group in "iu")


def cast_alike(x: Any, y: Any, floats: bool = False) -> tuple[Any, Any]:
    """Two values in the dtype that torch's promotion gives them."""
    x, y = (v if isinstance(v, _PYTHON) or hasattr(v, "dtype") else np.asarray(v) for v in (x, y))
    kind = promoted((x, y))
    if floats and kind.kind not in "fc":
        kind = default.real
    return tuple(v.astype(kind) if hasattr(v, "dtype") else v if _fits(v, kind) else kind.type(v) for v in (x, y))


def apply_alike(op: Op, args: tuple[Any, ...], params: dict[str, Any], label: Label = None) -> Any:
    """``apply``, on values in the dtype that torch's promotion gives them."""
    values = [plain(x) if isinstance(x, Tensor) else x for x in args]
    kinds = {x.dtype for x in values if hasattr(x, "dtype")}
    if len(kinds) > 1 or not all([_lifts(x, *kinds) for x in values if isinstance(x, _PYTHON)]):
        kind = promoted([x for x in values if x is not None])
        values = [x.astype(kind) if hasattr(x, "dtype") else x for x in values]
    wanting = tuple([i for i, x in enumerate(args) if isinstance(x, Tensor) and requires(x)])
    return execute(op, args, values, wanting, params, label)


def _fits(number: Any, kind: np.dtype[Any]) -> bool:
    return isinstance(number, bool) is (kind.kind == "b")


def _numbered(op: Op, other: Any) -> str | None:
    """The name of an operation that tells whether its second argument is a number or a tensor."""
    names = _NUMBERED.get(op.key)
    return names and names[isinstance(other, Tensor)]


_NUMBERED = {
    np.remainder: ("RemainderBackward0", "RemainderBackward1"),
    np.fmod: ("FmodBackward0", "FmodBackward1"),
    ops.COPYSIGN.key: ("CopysignBackward1", "CopysignBackward0"),
}
_operand = (Tensor, int, float, complex, np.ndarray, np.generic)


def _binary(name: str, key: Any, floats: bool = False) -> None:
    op = key if isinstance(key, Op) else known(key)

    @function
    @called(name, f"``{name}`` of the elements of two tensors.")
    def fun(input: Any, other: Any, *, out: Any = None) -> Any:
        result = binary(op, input, other, _numbered(op, other), floats)
        return delivered(result, out, name)

    if op.key not in _NOT_IN_PLACE:
        in_place(name, fun)


for _name, _key in {
    "maximum": ops.MAXIMUM, "minimum": ops.MINIMUM, "fmax": ops.FMAX, "fmin": ops.FMIN,
    "hypot": ops.HYPOT, "nextafter": ops.NEXTAFTER, "gcd": np.gcd, "lcm": np.lcm,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "not_equal": np.not_equal,
}.items():  # fmt: skip
    _binary(_name, _key)
for _name, _key in {
    "atan2": ops.ARCTAN2, "arctan2": ops.ARCTAN2, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2,
    "true_divide": np.divide, "copysign": ops.COPYSIGN,
}.items():  # fmt: skip
    _binary(_name, _key, floats=True)


def _whole(fun: Any, kernel: str) -> Any:
    """A division that refuses to divide whole numbers by zero, and truth values at all."""

    def checked(x: Any, y: Any) -> Any:
        _no_truths(kernel, x, y)
        result = fun(x, y)
        if result.dtype.kind in "iu" and not np.all(y):
            raise RuntimeError("ZeroDivisionError")
        return result

    return checked


def _no_truths(kernel: str, x: Any, y: Any) -> None:
    """Raise where two values are truth values, which torch has no such function for."""
    if np.result_type(x, y) == bool:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def _shift(key: Any, kernel: str) -> Op:
    def shifted(x: Any, y: Any) -> Any:
        _no_truths(kernel, x, y)
        return key(x, y)

    return variant(known(key), fun=shifted)


LEFT_SHIFT, RIGHT_SHIFT = _shift(np.left_shift, "lshift_cpu"), _shift(np.right_shift, "rshift_cpu")


def _remainder(x: Any, y: Any) -> Any:
    """NumPy's, whose zeros have the sign of the divisor: torch's have that of the dividend."""
    found = np.remainder(x, y)
    return np.where(found == 0, np.copysign(found, x), found) if found.dtype.kind == "f" else found


def _truncated(x: Any, y: Any) -> Any:
    return np.trunc(x / y) if np.result_type(x, y).kind == "f" else (x - np.fmod(x, y)) // y


ADD, SUB, MUL, DIV = (known(key) for key in (np.add, np.subtract, np.multiply, np.divide))


def _no_derivative(g: Any, y: Any, a: Any, b: Any) -> Any:
    raise RuntimeError("derivative for aten::floor_divide is not implemented")


ROUNDED_DIV = {
    mode: ops.flat(_whole(fun, f"div_{mode}_cpu"), "div", 2)
    for mode, fun in (("floor", np.floor_divide), ("trunc", _truncated))
}


def _rest(key: Any, fun: Any, mode: str) -> Op:
    """What a division leaves over: by the divisor, the slope is the rounded quotient."""
    rules = (lambda g, _, a, b: g, lambda g, _, a, b: -g * ROUNDED_DIV[mode](a, b))
    return variant(known(key), fun=_whole(fun, f"{key.__name__}_cpu"), rules=rules)


REMAINDER, FMOD = _rest(np.remainder, _remainder, "floor"), _rest(np.fmod, np.fmod, "trunc")
FLOOR_DIVIDE = Fused(
    _whole(np.floor_divide, "div_floor_cpu"), _no_derivative, _no_derivative, family="elementwise", name="floor_divide"
)
NAMES[FLOOR_DIVIDE.key] = "NotImplemented"
for _name, _op in {
    "remainder": REMAINDER, "fmod": FMOD, "bitwise_left_shift": LEFT_SHIFT, "bitwise_right_shift": RIGHT_SHIFT,
}.items():  # fmt: skip
    _binary(_name, _op)


def _scaled(op: Op, input: Any, other: Any, alpha: Any, label: str) -> Any:
    """``op`` on ``input`` and ``alpha * other``."""
    x, y = cast_alike(*(v.value if isinstance(v, Tensor) else v for v in (input, other)))
    common = promoted((x, y))
    kind = common.kind
    if isinstance(alpha, float) and kind in "iub":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    alpha = bool(alpha) if kind == "b" else number_in(alpha, common)[()] if kind in "iu" else alpha
    wanting = tuple([i for i, v in enumerate((input, other)) if isinstance(v, Tensor) and requires(v)])
    return execute(op, (input, other), [x, y], wanting, {"alpha": alpha}, label)


@function
def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """``input + alpha * other``."""
    result = binary(ADD, input, other) if alpha == 1 else _scaled(ops.ADD, input, other, alpha, "AddBackward0")
    return delivered(result, out, "add")


@function
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """``input - alpha * other``."""
    _refuse_masks(input, other)
    if alpha == 1:
        result = binary(SUB, input, other, None if isinstance(input, Tensor) else "RsubBackward1")
    else:
        result = _scaled(ops.SUB, input, other, alpha, "SubBackward0")
    return delivered(result, out, "sub")


def _masks(*operands: Any) -> list[Any]:
    """Those that are truth values."""
    return [x for x in operands if isinstance(x, bool) or (isinstance(x, Tensor) and x.value.dtype.kind == "b")]


def _refuse_masks(*operands: Any) -> None:
    """Raise where one of the operands of a subtraction is a truth value."""
    masks = _masks(*operands)
    if masks:
        raise NotImplementedError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
            if len(masks) == 2
            else "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


@function
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Any:
    """``other - alpha * input``."""
    _refuse_masks(input, other)
    label = f"RsubBackward{int(not isinstance(other, Tensor))}"
    return binary(SUB, other, input, label) if alpha == 1 else _scaled(ops.SUB, other, input, alpha, label)


@function
def mul(input: Any, other: Any, *, out: Any = None) -> Any:
    """``input * other``."""
    result = binary(MUL, input, other)
    return delivered(result, out, "mul")


@function
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """``input / other``; ``rounding_mode`` "floor" or "trunc" rounds the quotient."""
    if rounding_mode is None:
        result = binary(DIV, input, other, floats=True)
    elif rounding_mode in ROUNDED_DIV:
        result = binary(ROUNDED_DIV[rounding_mode], input, other, "DivBackward2")
    else:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    return delivered(result, out, "div")


@function
def floor_divide(input: Any, other: Any) -> Any:
    """The quotient rounded down."""
    return binary(FLOOR_DIVIDE, input, other)


def _power_label(base: Any, exponent: Any) -> str:
    if not isinstance(base, Tensor):
        return "PowBackward2"
    return "PowBackward1" if isinstance(exponent, Tensor) else "PowBackward0"


def power(input: Any, exponent: Any) -> Any:
    """``input ** exponent``."""
    if isinstance(exponent, int) and exponent < 0 and isinstance(input, Tensor) and input.value.dtype.kind in "iu":
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if (
        isinstance(exponent, Tensor)
        and exponent.value.dtype.kind == "i"
        and promoted([plain(input), exponent.value]).kind == "i"
    ):
        return wrap(_whole_power(*cast_alike(plain(input), exponent.value)))
    if len(_masks(input, exponent)) == 2:
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    return binary(ops.POWER, input, exponent, _power_label(input, exponent))


def _whole_power(base: Any, exponent: Any) -> Any:
    """Powers of whole numbers; those with negative exponents are 0, but of 1 and -1."""
    below = np.where(np.abs(base) == 1, np.where(exponent % 2 == 0, 1, base), 0)
    return np.where(exponent < 0, below, base ** np.maximum(exponent, 0)).astype(exponent.dtype)


@function
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """``input ** exponent``."""
    result = power(input, exponent)
    return delivered(result, out, "pow")


@function
def ldexp(input: Tensor, other: Any, *, out: Any = None) -> Any:
    """``input * 2 ** other``."""
    return delivered(labelled(mul(input, power(2.0, other)), "LdexpBackward0"), out, "ldexp")


in_place("ldexp", ldexp)


HEAVISIDE = variant(known(np.heaviside), fun=lambda x, values: np.where(x == 0, values, x > 0))  # 0 of NaN


@function
def heaviside(input: Tensor, values: Tensor, *, out: Any = None) -> Any:
    """0 below zero, 1 above, and ``values`` at zero."""
    if input.value.dtype != values.value.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    result = binary(HEAVISIDE, input, values)
    return delivered(result if result.value.dtype == input.value.dtype else result.to(input.dtype), out, "heaviside")


in_place("heaviside", heaviside)


@function
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """``input ** exponent``, in double precision."""
    kinds = [x.value.dtype.kind if isinstance(x, Tensor) else "c" if type(x) is complex else "f" for x in (input, exponent)]
    wide = np.dtype(np.complex128 if "c" in kinds else np.float64)
    both = [x.to(wide) if isinstance(x, Tensor) else wide.type(x).item() for x in (input, exponent)]
    return delivered(power(*both), out, "float_power")


@function
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Each element, no less than ``min`` and no more than ``max``."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    label = "ClampBackward0" if isinstance(min, Tensor) or isinstance(max, Tensor) else "ClampBackward1"
    return delivered(_clipped(input, min, max, label), out, "clamp")


def _clipped(input: Tensor, low: Any, high: Any, label: str) -> Any:
    """``input`` between two bounds, None for neither.

    An element at a bound that is a number gets no gradient; it shares it with a bound that is a tensor. So it is as of torch
    2.14; before, it got all of it.
    """
    if input.value.dtype.kind == "f" and not isinstance(low, Tensor) and not isinstance(high, Tensor):
        least, most = -math.inf if low is None else low, math.inf if high is None else high
        return apply(ops.CLAMP, (input,), {"low": most if least > most else least, "high": most}, label)
    kind = promoted([x.value if isinstance(x, Tensor) else x for x in (input, low, high) if x is not None])
    if kind.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if kind.kind == "b" and label.startswith("ClampBackward"):
        raise RuntimeError("\"clamp_cpu\" not implemented for 'Bool'")
    lowest, highest = -math.inf, math.inf
    if kind.kind in "iub":
        lowest, highest = (False, True) if kind.kind == "b" else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    return apply_alike(ops.CLIP, (input, lowest if low is None else low, highest if high is None else high), NONE, label)


FUNCTIONS["clip"] = clamp
methods(clip=clamp)


@function
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Any:
    """Each element, no less than ``min``."""
    return delivered(_clipped(input, min, None, f"ClampMinBackward{int(isinstance(min, Tensor))}"), out, "clamp_min")


@function
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Any:
    """Each element, no more than ``max``."""
    return delivered(_clipped(input, None, max, f"ClampMaxBackward{int(isinstance(max, Tensor))}"), out, "clamp_max")


@function
def lerp(input: Tensor, end: Any, weight: Any) -> Any:
    """``input + weight * (end - input)``."""
    if isinstance(end, Tensor) and end.value.dtype != input.value.dtype:
        kinds = [{"float32": "float", "float64": "double"}.get(x.value.dtype.name, x.value.dtype.name) for x in (input, end)]
        raise RuntimeError(f"expected dtype {kinds[0]} for `end` but got dtype {kinds[1]}")
    check_kernel("lerp_kernel_tensor" if isinstance(weight, Tensor) else "lerp_kernel_scalar", input.value.dtype, "fc")
    if isinstance(weight, Tensor) and weight.value.dtype != input.value.dtype:
        if weight.value.ndim:
            kinds = [c_name(x.value.dtype) for x in (input, weight)]
            raise RuntimeError(f"expected dtype {kinds[0]} for `weight` but got dtype {kinds[1]}")
        weight = weight.to(input.value.dtype)
    label = "LerpBackward1" if isinstance(weight, Tensor) else ("LerpBackward0", 0, 1)
    return apply(ops.LERP, (input, end, weight), NONE, label)


@function
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """``input + value * tensor1 * tensor2``."""
    return apply_alike(ops.ADDCMUL, (input, tensor1, tensor2), {"value": _in_kind(value, input, tensor1, tensor2)})


def _in_kind(value: Any, *operands: Any) -> Any:
    """A factor, which is a whole number where the operands are."""
    if isinstance(value, float) and promoted([x.value if isinstance(x, Tensor) else x for x in operands]).kind in "iu":
        return int(value)
    return value


_ADDCDIV = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of "
    "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
    "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future "
    "addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
)


@function
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """``input + value * tensor1 / tensor2``."""
    if all([isinstance(x, Tensor) and x.value.dtype.kind in "iub" for x in (tensor1, tensor2)]):
        raise RuntimeError(_ADDCDIV)
    return apply_alike(ops.ADDCDIV, (input, tensor1, tensor2), {"value": value})


@function
def nan_to_num(input: Tensor, nan: float | None = None, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers in place of NaN and infinities."""
    params = {"nan": nan or 0.0, "posinf": posinf, "neginf": neginf}
    return apply(known(np.nan_to_num), (input,), params)


@function
def xlogy(input: Any, other: Any) -> Any:
    """``input * log(other)``, zero where ``input`` is."""
    kind = 1 if not isinstance(input, Tensor) else 2 if not isinstance(other, Tensor) else 0
    if kind == 2:
        other = np.asarray(other, floating(input).dtype)
    return binary(ops.XLOGY, input, other, f"XlogyBackward{kind}", floats=True)


@function
def isclose(input: Tensor, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Where two tensors agree to a tolerance."""
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    _check_match(input, other)
    return wrap(np.isclose(input.value, plain(other), rtol, atol, equal_nan))


def _check_match(input: Tensor, other: Any) -> None:
    if isinstance(other, Tensor) and other.value.dtype != input.value.dtype:
        raise RuntimeError(f"{title(input.value.dtype)} did not match {title(other.value.dtype)}")


@function
def allclose(input: Tensor, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether two tensors agree to a tolerance."""
    _check_match(input, other)
    return bool(np.allclose(input.value, plain(other), rtol, atol, equal_nan))


@function
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and elements are the same."""
    return bool(np.array_equal(input.value, other.value))


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """``input`` where the condition holds, else ``other``; with the condition alone, the places where it does."""
    if input is None and other is None:
        return tuple(wrap(place) for place in np.nonzero(plain(condition)))
    chosen = plain(condition)
    if chosen.dtype.kind not in "bu":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {title(chosen.dtype)}"
        )
    x, y = (v.value if isinstance(v, Tensor) else v for v in (input, other))
    if getattr(x, "dtype", None) is not getattr(y, "dtype", 0):
        x, y = cast_alike(x, y)
        if isinstance(x, _PYTHON) and isinstance(y, _PYTHON):
            x = promoted((x, y)).type(x)
    wanting = tuple([i for i, v in ((1, input), (2, other)) if isinstance(v, Tensor) and requires(v)])
    return execute(known(np.where), (condition, input, other), [chosen, x, y], wanting, NONE, None)


FUNCTIONS["where"] = where
methods(where=lambda self, condition, other: where(condition, self, other))


@function
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Any:
    """``value`` where the mask is set."""
    if mask.value.dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {c_name(mask.value.dtype)}")
    if np.ndim(value):
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {np.ndim(value)} dimension(s)."
        )
    kind = input.value.dtype
    number = plain(value)
    filled = number if isinstance(number, Traced) else number_in(number, kind)
    filled = value.to(kind) if isinstance(value, Tensor) else filled
    label = ("MaskedFillBackward1", 2, 1) if isinstance(value, Tensor) else "MaskedFillBackward0"
    return apply(known(np.where), (mask, filled, input), NONE, label)


for _name, _fun in {
    "add": add, "sub": sub, "mul": mul, "div": div, "pow": pow, "clamp": clamp, "clamp_min": clamp_min, "clip": clamp,
    "clamp_max": clamp_max, "lerp": lerp, "addcmul": addcmul, "addcdiv": addcdiv, "masked_fill": masked_fill,
    "square": square, "nan_to_num": nan_to_num, "floor_divide": floor_divide,
}.items():  # fmt: skip
    in_place(_name, _fun)
for _name, _alias in {"subtract": sub, "multiply": mul, "divide": div}.items():
    FUNCTIONS[_name] = _alias
    setattr(Tensor, _name, _alias)
    in_place(_name, _alias)
trunc = FUNCTIONS["trunc"]


# -- operators -----------------------------------------------------------------------------------------------------


def _operators() -> None:
    for name, op, floats in (
        ("add", ADD, False), ("mul", MUL, False), ("truediv", DIV, True), ("mod", REMAINDER, False),
        ("floordiv", FLOOR_DIVIDE, False), ("and", known(np.bitwise_and), False), ("or", known(np.bitwise_or), False),
        ("xor", known(np.bitwise_xor), False), ("lshift", LEFT_SHIFT, False), ("rshift", RIGHT_SHIFT, False),
        ("lt", known(np.less), False), ("le", known(np.less_equal), False), ("gt", known(np.greater), False),
        ("ge", known(np.greater_equal), False), ("eq", known(np.equal), False), ("ne", known(np.not_equal), False),
    ):  # fmt: skip
        _operator(name, op, floats)

    def left(self: Tensor, other: Any) -> Any:
        return sub(self, other) if isinstance(other, _operand) else NotImplemented

    def right(self: Tensor, other: Any) -> Any:
        return sub(other, self) if isinstance(other, _operand) else NotImplemented

    methods(__sub__=left, __rsub__=right)
    methods(__pow__=lambda self, other: power(self, other) if isinstance(other, _operand) else NotImplemented)
    methods(__rpow__=lambda self, other: power(other, self) if isinstance(other, _operand) else NotImplemented)
    methods(__rtruediv__=lambda self, other: FUNCTIONS["reciprocal"](self) * other)
    for name in ("neg", "abs"):
        setattr(Tensor, f"__{name}__", FUNCTIONS[name])
    methods(__pos__=positive)
    methods(__invert__=FUNCTIONS["bitwise_not"])
    for python, torch in {
        "iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_", "ipow": "pow_", "ifloordiv": "floor_divide_",
        "imod": "remainder_", "iand": "bitwise_and_", "ior": "bitwise_or_", "ixor": "bitwise_xor_",
    }.items():  # fmt: skip
        setattr(Tensor, f"__{python}__", getattr(Tensor, torch))


def _operator(name: str, op: Op, floats: bool) -> None:
    numbered = op.key in _NUMBERED

    def left(self: Tensor, other: Any) -> Any:
        if not isinstance(other, _operand):
            return NotImplemented
        return binary(op, self, other, _numbered(op, other) if numbered else None, floats)

    def right(self: Tensor, other: Any) -> Any:
        return binary(op, other, self, None, floats) if isinstance(other, _operand) else NotImplemented

    setattr(Tensor, f"__{name}__", left)
    if name in ("add", "mul", "and", "or", "xor"):  # they do not mind the order, in which torch puts the tensor first
        setattr(Tensor, f"__r{name}__", left)
    elif name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Tensor, f"__r{name}__", right)


_operators()


# -- writes --------------------------------------------------------------------------------------------------------


@method
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """``float_power``, written into this tensor, which must be able to hold it."""
    result = FUNCTIONS["float_power"](straight(self), exponent)
    if result.value.dtype != self.value.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {title(self.value.dtype)} but the operation's result requires dtype "
            f"{title(result.value.dtype)}"
        )
    return assign(self, result, "float_power_")


def _fill(self: Tensor, value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.value.ndim} dimensions."
            )
        return apply(ops.COPY, (self, value), NONE, "FillBackward3")
    number = value if isinstance(value, Traced) else number_in(value, self.value.dtype)
    return apply(ops.FILL, (self, number), NONE, "FillBackward2")


def _zero(self: Tensor) -> Any:
    return apply(ops.FILL, (self, 0), NONE, "ZeroBackward0")


def _copy(self: Tensor, src: Any, non_blocking: bool = False) -> Any:
    if isinstance(src, (list, tuple)):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    if isinstance(src, Tensor):
        check_within(self.value.shape, src)
    return apply(ops.COPY, (self, src), NONE, "CopyBackwards")


FUNCTIONS["fill"] = _fill
in_place("xlogy", xlogy)
in_place("fill", _fill, overlaps=True)
in_place("zero", _zero)
in_place("copy", _copy)
