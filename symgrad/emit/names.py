"""Variable names for generated code: the user's own, ``g_`` and ``t_`` names, short ones for the rest."""

from __future__ import annotations

import builtins
import functools
import keyword
import re

from symgrad.ir import Node

# what an unnamed value is called, by the operation that made it
_SHORT = {
    "exp": "e", "getitem": "part", "matmul": "prod", "multiply": "prod", "divide": "ratio", "true_divide": "ratio",
    "add": "total", "sum": "total", "subtract": "diff", "sqrt": "root", "negative": "neg", "power": "pow", "where": "chosen",
    "scatter": "g", "index_add": "g", "setitem": "new", "zeros": "buf", "full": "buf", "maximum": "top", "reshape": "r",
    "transpose": "t", "astype": "cast", "captured": "const", "to_python": "number", "input": "value", "range": "span",
}  # fmt: skip

_KINDS = ("to_python", "to_array")


_OWN = frozenset({"np", "runtime", "Unexplored", "_"})


def is_used(name: str) -> bool:
    """Whether generated code itself may refer to something by this name."""
    return name in _OWN or hasattr(builtins, name)


@functools.cache
def _allowed(wish: str) -> str:
    """A name like the one that is wished for, which Python allows and does not use itself."""
    wish = re.sub(r"\W+", "_", wish).strip("_" if not wish.isidentifier() else "") or "v"
    if wish[0].isdigit():
        wish = f"v{wish}"
    return f"{wish}_" if keyword.iskeyword(wish) or hasattr(builtins, wish) else wish


class Names:
    """Hands out names that are unique, no keyword, no builtin, and none of ``taken``."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken) | _OWN
        self._count: dict[str, int] = {}

    def of(self, node: Node) -> str:
        """A name for a node: its own, else one after its operation."""
        while not node.name and node.op.name in _KINDS and node.args[0].op.name != "input":
            node = node.args[0]  # the same number in another kind
        return self.unique(self.stem(node))

    @staticmethod
    def stem(node: Node) -> str:
        """What a name for a node begins with."""
        if node.name:
            return node.name
        of = dict(node.params).get("of")  # of slices
        stem: str = node.op.name.rsplit(".", 1)[-1].strip("_") if of is None else of.__name__
        return _SHORT.get(stem, stem)

    def unique(self, wish: str) -> str:
        """``wish``, or ``wish_2``, ``wish_3`` …"""
        name = wish = _allowed(wish)
        while name in self.taken:
            self._count[wish] = self._count.get(wish, 1) + 1
            name = f"{wish}_{self._count[wish]}"
        self.taken.add(name)
        return name
