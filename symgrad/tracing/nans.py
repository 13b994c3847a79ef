"""Where a NaN comes from: a trace that looks at each value that is computed, forward and backward."""

from __future__ import annotations

import linecache
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.errors import MadeNaN
from symgrad.ir import CONST, INPUT, Node, ancestors
from symgrad.ops.core import Op
from symgrad.tracing.trace import Trace


class WatchedTrace(Trace):
    """A trace that raises ``MadeNaN`` at the first operation with a NaN in its result and none in its arguments."""

    def run(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Node:
        with np.errstate(invalid="ignore"):  # the error says more than NumPy's warning
            node = super().run(op, args, params)
        if _has(np.isnan, self.computed(node)) and not any(_has(np.isnan, self.computed(arg)) for arg in node.args):
            raise MadeNaN(self._report(node))
        return node

    def _report(self, node: Node) -> str:
        given = ", ".join(_sketch(self.computed(arg), np.asarray(self.computed(node))) for arg in node.args)
        lines = [f"{_place(node)}: {node.op.name}({given}) made a NaN{_PHASES.get(node.phase, '')}"]
        infinite = [n for n in ancestors([node])[:-1] if _has(np.isinf, self.computed(n)) and n.op not in (INPUT, CONST)]
        first = [n for n in infinite if not any(_has(np.isinf, self.computed(arg)) for arg in n.args)]
        lines += [f"  an infinity came from {_place(n)}: {n.op.name}{_PHASES.get(n.phase, '')}" for n in first[:3]]
        return "\n".join(lines)


_PHASES: dict[str | None, str] = {"backward": " in the backward pass", "tangents": " in the tangents"}


def _has(test: Any, value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any([_has(test, item) for item in value])
    kind = getattr(value, "dtype", np.dtype(type(value))).kind
    return kind in "fc" and bool(np.any(test(value)))


def _place(node: Node) -> str:
    if node.line is None:
        return "somewhere"
    text = linecache.getline(*node.line).strip()
    return f"{os.path.basename(node.line[0])}:{node.line[1]}" + (f" ({text})" if text else "")


def _sketch(value: Any, result: np.ndarray[Any, Any]) -> str:
    """A number, or the element of an array that the first NaN was made of."""
    if np.ndim(value) == 0:
        return f"{value!s:.30}" if isinstance(value, (float, int, complex, np.generic, np.ndarray)) else type(value).__name__
    if np.shape(value) == result.shape:
        place = tuple(int(i[0]) for i in np.nonzero(np.isnan(result)))
        return f"{np.asarray(value)[place]} at {list(place)}"
    return f"an array of shape {np.shape(value)}"
