"""How operations on Python's numbers print: as operators, calls of ``math``, and conditional expressions."""

from __future__ import annotations

import ast
import functools
import math
import struct
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from symgrad.emit.build import Builder, Expr, Spelling, call, method
from symgrad.ir import Aval, Node
from symgrad.ops.core import REGISTRY
from symgrad.optimize.scalars import CHOICE, EITHER, LARGER, POWER, SIGN, SMALLER, STEP

MATH: dict[Any, Callable[..., float]] = {
    REGISTRY[key]: cast(Callable[..., float], function)
    for key, function in {
        np.sin: math.sin, np.cos: math.cos, np.tan: math.tan, np.arcsin: math.asin, np.arccos: math.acos,
        np.arctan: math.atan, np.sinh: math.sinh, np.cosh: math.cosh, np.tanh: math.tanh, np.arcsinh: math.asinh,
        np.arccosh: math.acosh, np.arctanh: math.atanh, np.exp: math.exp, np.expm1: math.expm1, np.log: math.log,
        np.log1p: math.log1p, np.log2: math.log2, np.log10: math.log10, np.sqrt: math.sqrt, np.hypot: math.hypot,
        np.arctan2: math.atan2, np.cbrt: math.cbrt, np.exp2: math.exp2, np.copysign: math.copysign,
    }.items()
} | {POWER: math.pow}  # fmt: skip
#: Those of them that are the same to the last bit as NumPy's.
ROUNDED = {REGISTRY[np.sqrt], REGISTRY[np.copysign]}
ABS = {REGISTRY[np.abs]}
EXP = REGISTRY[np.exp]
OPERATORS = {REGISTRY[key] for key in (np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive)}
#: Where Python takes whole numbers beside floats, and how large those may be that floats hold.
MIXING = OPERATORS | {REGISTRY[key] for key in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)}
EXACT = 2**53

CONDITIONAL: dict[Any, Spelling] = {}


def _conditional(op: Any) -> Callable[[Spelling], Spelling]:
    def register(rule: Spelling) -> Spelling:
        CONDITIONAL[op] = rule
        return rule

    return register


def _if(test: Expr, yes: Expr, no: Expr) -> Expr:
    return ast.IfExp(test, yes, no)


def _compare(a: Expr, operation: ast.cmpop, b: Expr) -> Expr:
    return ast.Compare(a, [operation], [b])


def _zero() -> Expr:
    return ast.Constant(0.0)


@_conditional(CHOICE)
def choice(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return _if(*args)


@_conditional(EITHER)
def either(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return ast.BoolOp(ast.Or(), args)


def _extreme(operation: ast.cmpop) -> Spelling:
    """As NumPy: not a number if one is none; the second of two that are equal."""

    def spell(b: Builder, node: Node, args: list[Expr]) -> Expr:
        x, y = args
        test = _compare(x, operation, y)
        if not isinstance(y, ast.Constant):
            test = ast.BoolOp(ast.Or(), [test, _compare(y, ast.NotEq(), y)])
        return _if(test, y, x)

    return spell


CONDITIONAL[LARGER] = _extreme(ast.LtE())
CONDITIONAL[SMALLER] = _extreme(ast.GtE())


@_conditional(SIGN)
def sign(b: Builder, node: Node, args: list[Expr]) -> Expr:
    (x,) = args
    rest = _if(_compare(x, ast.Lt(), _zero()), ast.UnaryOp(ast.USub(), ast.Constant(1.0)), _nought(x, _zero()))
    return _if(_compare(x, ast.Gt(), _zero()), ast.Constant(1.0), rest)


@_conditional(STEP)
def step(b: Builder, node: Node, args: list[Expr]) -> Expr:
    x, at = args
    rest = _if(_compare(x, ast.Lt(), _zero()), _zero(), _nought(x, at))
    return _if(_compare(x, ast.Gt(), _zero()), ast.Constant(1.0), rest)


def _nought(x: Expr, value: Expr) -> Expr:
    """``value`` for zero, and itself for what is no number."""
    return _if(_compare(x, ast.Eq(), _zero()), value, x)


def decaying(x: Expr) -> Expr:
    """What ``exp`` is called with: ``-abs(x)`` without that call, whose zero may have another sign then."""
    match x:
        case ast.UnaryOp(ast.USub(), ast.Call(ast.Name("abs"), [ast.Name() as inner])):
            return _if(_compare(inner, ast.Gt(), _zero()), ast.UnaryOp(ast.USub(), inner), inner)
    return x


#: Operations that print their arguments more than once, which must be names then.
REPEATING = {LARGER, SMALLER, SIGN, STEP}


@functools.cache
def unpacker(count: int) -> Callable[..., Any]:
    """Reads that many doubles."""
    return struct.Struct(f"{count}d").unpack


@functools.cache
def packer(count: int) -> Callable[..., None]:
    """Writes that many doubles."""
    return struct.Struct(f"{count}d").pack_into


def elements(b: Builder, array: Expr, aval: Aval) -> Expr:
    """The numbers of an array, in a list or a tuple."""
    count = math.prod(aval.shape)
    if len(aval.shape) > 1 and aval.dtype == np.float64:
        return call(b.bind(f"unpack_{count}", unpacker(count)), method(array, "tobytes"))
    return method(array if len(aval.shape) == 1 else method(array, "ravel"), "tolist")
