"""Rewrites for the code that runs: cheaper operations that a reader would not want to see."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir import Node
from symgrad.optimize.simplify import Rewrite, Simplifier, const, rewrite
from symgrad.program import Program

LOWER: dict[Any, list[Rewrite]] = {}


def lower(program: Program) -> Program:
    """The same program in cheaper operations."""
    return Simplifier(program, LOWER).run()


@rewrite(np.power, rules=LOWER)
def small_power(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """Powers that a few products give: NumPy's general power costs some 20 times as much."""
    x, exponent = args[0], const(args[1])
    if x.aval.dtype.kind not in "fc" or x.aval.kind != "array" or exponent not in (2, 3, 4, -1, -2):
        return None
    square = s.call(np.square, x)
    if exponent == 2:
        return square
    if exponent == 3:
        return s.call(np.multiply, square, x)
    if exponent == 4:
        return s.call(np.square, square)
    return s.call(np.reciprocal, x if exponent == -1 else square)
