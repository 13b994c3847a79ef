"""What masks hide is computed without warnings: of ``np.where(x > 0, g / x, 0)`` NumPy would warn where ``x`` is zero.

That holds for derivatives alone; of what the user's own operations do, NumPy warns as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.emit.printer import Comment, For, Line, While, With
from symgrad.ir import Aval, Node
from symgrad.ops import index
from symgrad.ops.core import REGISTRY, least
from symgrad.optimize.lower import SELECT
from symgrad.transform.loop import Loop

_ONLY_LARGE = {REGISTRY[key] for key in (np.exp, np.exp2, np.expm1, np.sinh, np.cosh)}  # of which it says: overflow


def hidden(nodes: Sequence[Node], outputs: Sequence[Node]) -> set[Node]:
    """What derivatives divide by what may be zero (and compute of that), if nothing but masks reads it.

    ``nodes`` are in order. What an index leaves out, or a write replaces, is hidden as well. So it is in the bodies of loops,
    and before them, where masks in their bodies are all that reads it.
    """
    return _hidden(nodes, outputs, set())[0]


def _hidden(nodes: Sequence[Node], outputs: Sequence[Node], wild: set[Node]) -> tuple[set[Node], set[Node] | None]:
    """What is hidden, and what is read otherwise, if that is known. ``wild``: what comes from outside and may be infinite."""
    found: set[Node] = set()
    masked: dict[Node, Sequence[int]] = {}  # the arguments of loops that are
    for node in nodes:
        given = [arg in wild for arg in node.args] if wild else ()
        if _is_wild(node) or any(given):
            wild.add(node)
        if isinstance(node.op, Loop):
            body, carried = node.op.body, len(node.op.body.carry)
            inputs = [*body.carry, *body.elements, *body.invariants]
            inside = {item for item, is_wild in zip(inputs, given, strict=False) if is_wild}
            more, others = _hidden(body.nodes(), [*body.after, *body.saved], inside)
            found |= more
            if others is not None:  # what is carried is a result if there is no iteration
                masked[node] = [i for i, item in enumerate(inputs) if i >= carried and item not in others]
    if not any([node in wild and node.phase is not None for node in nodes]):
        return found, None
    read = set(outputs)
    for node in reversed(nodes):
        if node.phase is None or node in read:
            hiding = () if node.phase is None else masked.get(node) or _masked(node)
            read.update([arg for i, arg in enumerate(node.args) if i not in hiding])
        elif node in wild:
            found.add(node)
    return found, read


def _is_wild(node: Node) -> bool:
    """Whether a result may be infinite, or NaN, though no number is large."""
    if not node.args or not isinstance(node.aval, Aval) or node.aval.kind == "python":  # which raise
        return False
    if node.op is REGISTRY[np.divide] and least(node.args[1]):
        return False
    return node.op.family == "elementwise" and node.op not in _ONLY_LARGE and node.op.partial_of(node.args) == "poles"


def _masked(node: Node) -> Sequence[int]:
    """The arguments of which others take the place, or nothing does."""
    if node.op in (index.GETITEM, index.SETITEM):
        return (0,)
    return (1, 2) if node.op in (SELECT, REGISTRY[np.where]) else ()


def quietly(block: Sequence[Any], before: str) -> list[Any]:
    """A block of statements, those that compute what masks hide without warnings; ``before`` is a variable for that."""
    result: list[Any] = []
    waiting: list[Any] = []  # from one that is hidden on, of derivatives alone
    for item in block:
        if not _is_derivative(item):
            result += _wrapped(waiting, before)
            waiting = []
            if hasattr(item, "body"):
                item.body = quietly(item.body, before)
            if getattr(item, "orelse", None):
                item.orelse = quietly(item.orelse, before)
        elif waiting or _is_hidden(item):
            waiting.append(item)
            continue
        result.append(item)
    return [*result, *_wrapped(waiting, before)]


def _wrapped(items: list[Any], before: str) -> list[Any]:
    """The items up to the last one that is hidden, without warnings; and the rest."""
    last = max((i for i, item in enumerate(items) if _is_hidden(item)), default=-1) + 1
    return [With("runtime.silent", before, items[:last], items[0].origin), *items[last:]] if last else items


def _is_derivative(item: Any) -> bool:
    """Whether a statement, and all in it, is of a derivative, or of nothing."""
    if isinstance(item, (For, While)):
        return all(map(_is_derivative, item.body))
    return isinstance(item, Comment) or (isinstance(item, Line) and (item.origin is None or item.origin.phase is not None))


def _is_hidden(item: Any) -> bool:
    if isinstance(item, (For, While)):
        return any(map(_is_hidden, item.body))
    return isinstance(item, Line) and item.origin is not None and item.origin.hidden
