"""Operations that the engine itself needs: identities, casts, parts of tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.ir import Node
from symgrad.ops.core import ASTYPE as ASTYPE  # the cast is one of them
from symgrad.ops.core import Op


def _engine(name: str, family: str, fun: Any, *rules: Any) -> Op:
    return Op(fun, family, rules, name=name, lanes="same")


class _Item(Op):
    """One result of an operation that has several."""

    def flows(self, args: Sequence[Node], params: Sequence[tuple[str, Any]]) -> tuple[int, ...]:
        (whole,) = args
        reach = whole.op.reach
        if reach is None or any([whole.args[i].differentiated for i in reach(dict(params)["item"])]):
            return (0,)
        return ()


# what a derivative is taken with respect to: each one is a node of its own, told apart by its token
IDENTITY = _engine("identity", "linear", lambda x, token=0: x, lambda g, y, x, token=0: g)  # in a loop's body without one
# a number under another name, by the place where it gets it: in a loop with ``if``s, names go round on their own
NAMED = _engine("named", "linear", lambda x, place: x, lambda g, y, x, place: g)
# the passes handle it themselves
ITEM = _Item(lambda x, item: x[item], "linear", (lambda g, y, x, item: g,), name="item", lanes="same")
TO_PYTHON = _engine("to_python", "linear", lambda x: x.item() if hasattr(x, "item") else x, lambda g, y, x: g)
TO_NUMPY = _engine("to_numpy", "linear", lambda x: np.asarray(x)[()], lambda g, y, x: g)
TO_ARRAY = _engine("to_array", "linear", np.asarray, lambda g, y, x: g)
TO_FLOAT = _engine("float", "linear", float, lambda g, y, x: g)
BOOL = _engine("bool", "constant", bool)
INT = _engine("int", "constant", int)
ROUND = _engine("round", "constant", round)
LAYOUT = _engine("layout", "constant", runtime.layout)
TOTAL = _engine("runtime.total", "constant", runtime.total)
SIZE = _engine("size", "constant", np.size)
IS_COMPLEX = _engine("iscomplexobj", "constant", np.iscomplexobj)
NOT = _engine("not", "constant", lambda x: not x)
AND = _engine("and", "constant", lambda a, b: bool(a and b))
STOP = _engine("stop_gradient", "constant", lambda x: x)

# nothing, or an error where a result is not finite
REQUIRE_FINITE = _engine("runtime.require_finite", "constant", runtime.require_finite)

# of a number of items for each of some owners, whose each item is; there are ``total``
OWNERS = _engine("runtime.owners", "constant", runtime.owners)

# a value once more, ``after`` another: what is computed from it is not what was computed from it before
AGAIN = Op(lambda x, after: x, "linear", (lambda g, y, x, after: g, None), name="again", alias=True)

# a whole number that is at least ``low`` and at most ``high``, where this is computed
WITHIN = Op(lambda x, low, high: x, "constant", (), name="start")

# where a loop is in its course; each loop of a trace has a number
INDEX = _engine("index", "constant", lambda loop, value: value)
# what a loop runs over that runs now more often, now less
RANGE = Op(range, "constant", (), name="range", fun=range)
# lists of numbers or arrays, as loops save them, element by element
ADD_LISTS = _engine("add_lists", "linear", lambda a, b: [x + y for x, y in zip(a, b, strict=True)],
                    lambda g, y, a, b: g, lambda g, y, a, b: g)  # fmt: skip
# such a list as one array, and as it was
STACKED = Op(np.array, "constant", (), name="np.array", fun=np.array, sized=True)
UNSTACKED = Op(runtime.unstacked, "constant", (), name="runtime.unstacked", fun=runtime.unstacked, alias=True)

OF_MATH = "math."  # how operations are named that are functions of ``math``'s


def is_of_math(op: Op) -> bool:
    """Whether it is a function of ``math``'s, which raises what Python does."""
    return op.name.startswith(OF_MATH)
