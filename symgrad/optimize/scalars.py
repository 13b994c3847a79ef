"""Operations that programs of numbers are made of: on Python's numbers, and between these and arrays and lists."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.ir import Aval
from symgrad.ops import engine
from symgrad.ops.core import Op, ops_of

FLOAT, INT, BOOL = (Aval((), np.dtype(kind), "python") for kind in (float, int, bool))
NUMBERS = {aval.dtype: aval for aval in (FLOAT, INT, BOOL)}
WIDE = {np.dtype(kind): aval.dtype for aval, kinds in ((INT, "bhiBHI"), (FLOAT, "ef")) for kind in kinds}


def _larger(a: float, b: float) -> float:
    return b if a <= b or b != b else a


def _smaller(a: float, b: float) -> float:
    return b if a >= b or b != b else a


def _sign(x: float) -> float:
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0 if x == 0.0 else x


def _step(x: float, at: float) -> float:
    return 1.0 if x > 0.0 else at if x == 0.0 else 0.0 if x < 0.0 else x


def _nested(x: Any, axes: tuple[int, ...]) -> Any:
    first = np.moveaxis(x, axes, range(len(axes)))
    return (first.reshape(*first.shape[: len(axes)], -1) if len(axes) < x.ndim else first).tolist()


UNPACK = Op(np.ravel, "constant", (), name="unpack", fun=lambda x: tuple(np.ravel(x).tolist()))
LIST = Op(np.ndarray.tolist, "constant", (), name="list", fun=_nested)
LISTED = Op(list, "constant", (), name="listed", fun=lambda *x: [*x])
PICK = Op(list.__getitem__, "constant", (), name="pick", fun=lambda x, *places: functools.reduce(operator.getitem, places, x))
CELL = Op(np.ndarray.item, "constant", (), name="cell", fun=lambda x, *places: x.item(*places))
PACK = Op(np.array, "constant", (), name="pack", fun=lambda *x, shape, dtype: np.array(x, dtype).reshape(shape))
POWER = Op(math.pow, "constant", (), name="pow")
CHOICE = Op(_larger, "constant", (), name="choice", fun=lambda c, x, y: x if c else y)
EITHER = Op(_smaller, "constant", (), name="either", fun=lambda a, b: a or b)
LARGER = Op(_larger, "constant", (), name="larger")
SMALLER = Op(_smaller, "constant", (), name="smaller")
SIGN = Op(_sign, "constant", (), name="sign")
STEP = Op(_step, "constant", (), name="step")

WIDENED = Op(runtime.widened, "constant", (), name="runtime.widened")
WIDENING = {engine.ASTYPE, WIDENED}

PLAIN = ops_of(np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.abs)
TESTS = ops_of(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
               engine.NOT, engine.AND, EITHER)  # fmt: skip
COMMUTING = ops_of(np.add, np.multiply)

# microseconds, as measured: of NumPy's calls on arrays of a few elements, views and scalars; of Python's numbers
CALL, VIEW, NUMBER, LAPACK = 0.27, 0.1, 0.06, 1.0
STREAM = 0.001  # of each number of an array
ROW, ITEM = 0.04, 0.02  # of what a loop goes through, an array or a list
OPERATION, FUNCTION, ELEMENT, PACKING, UNPACKING = 0.008, 0.028, 0.009, 0.12, 0.03
