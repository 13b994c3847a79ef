"""What an iteration of a loop does to a value that goes round: adds to it, writes to rows of it, or puts another there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import Aval, Node
from symgrad.ops import index
from symgrad.ops.core import REGISTRY
from symgrad.transform.loop import Body

ADD, SUBTRACT, WHERE = REGISTRY[np.add], REGISTRY[np.subtract], REGISTRY[np.where]


class Term(NamedTuple):
    """One thing that is done to a value: ``node`` is added to it (or subtracted from it, if not ``adds``), by ``steps``.

    With a ``spec``, that is done at ``places``; if it ``puts``, it is written there, or takes the value's place; with a
    ``flag``, where that is true. It may be made of what it ``reads`` there.
    """

    node: Node
    steps: tuple[Node, ...]
    adds: bool = True
    spec: index.Spec = ()
    places: tuple[Node, ...] = ()
    puts: bool = False
    flag: Node | None = None
    reads: Node | None = None

    @property
    def line(self) -> Any:
        return self.steps[-1].line


class Reading:
    """Who reads what in a body."""

    def __init__(self, body: Body) -> None:
        self.ends = [*body.after, *body.saved]
        self.readers: dict[Node, list[Node]] = {}
        for node in body.nodes():
            for arg in node.args:
                self.readers.setdefault(arg, []).append(node)

    def terms(self, item: Node, end: Node) -> list[Term]:
        """What is done to a carried value that nothing else reads; nothing where that is something else."""
        terms: list[Term] = []
        node = item
        while node is not end or not terms:
            found = None if node in self.ends else self._term(node)
            if found is None or found.steps[-1].aval != item.aval:
                return []
            terms.append(found)
            node = found.steps[-1]
        return [] if end in self.readers or self.ends.count(end) > 1 else terms

    def _term(self, node: Node) -> Term | None:
        """What is done to a value that is read for that alone."""
        readers = self.readers.get(node, [])
        if len(readers) == 1 and readers[0].op in (ADD, SUBTRACT) and readers[0].args[0] is not readers[0].args[1]:
            (reader,) = readers
            a, b = reader.args
            adds = reader.op is ADD
            return None if b is node and not adds else Term(b if a is node else a, (reader,), adds)
        if len(readers) == 1 and readers[0].op is WHERE and readers[0].args.count(node) == 1 and readers[0].args[2] is node:
            flag, value, _ = readers[0].args
            return Term(value, (readers[0],), puts=True, flag=flag)
        if len(readers) == 1 and readers[0].op is index.INDEX_ADD and readers[0].args[0] is node is not readers[0].args[1]:
            _, value, *places = readers[0].args
            return Term(value, (readers[0],), True, dict(readers[0].params)["spec"], tuple(places))
        writer = readers[-1] if readers and readers[-1].op is index.SETITEM else None
        if writer is None or writer.args[0] is not node or node in writer.args[1:]:
            return None
        _, value, *places = writer.args
        spec = dict(writer.params)["spec"]
        if len(readers) == 1:
            return Term(value, (writer,), True, spec, tuple(places), True)
        part = readers[0]
        same = part.op is index.GETITEM and part.args == (node, *places) and dict(part.params)["spec"] == spec
        if len(readers) > 2 or not same:
            return None
        whole = Term(value, (part, writer), True, spec, tuple(places), True, reads=part)
        if self.readers[part] != [value] or self.readers[value] != [writer] or not {value, part}.isdisjoint(self.ends):
            return whole
        if value.op not in (ADD, SUBTRACT) or value.args[0] is value.args[1]:
            return whole
        a, b = value.args
        if (value.op is SUBTRACT and a is not part) or value.aval.dtype != writer.aval.dtype:
            return whole
        return Term(b if a is part else a, (part, value, writer), value.op is ADD, spec, tuple(places))


def row_of(aval: Aval, spec: index.Spec, places: Sequence[Node] = ()) -> Aval:
    """What ``spec`` names of an array at places; without those, at one place."""
    zeros: list[Any] = [np.zeros(place.aval.shape, int) for place in places] or [0] * len(spec)
    return aval._replace(shape=index.region(spec, aval.shape, zeros))


def progression(places: Sequence[int], size: int) -> index.Slice | None:
    """The slice of an axis of ``size`` that ``places`` are one after the other; None where they are none."""
    if len(places) < 2 or min(places) < 0 or max(places) >= size:
        return None
    start, step = int(places[0]), int(places[1] - places[0])
    stop = start + step * len(places)
    if step == 0 or list(places) != list(range(start, stop, step)):
        return None
    return index.Slice(start or None, stop if 0 <= stop < size else None, None if step == 1 else step)


def is_basic(spec: index.Spec, places: Sequence[Node]) -> bool:
    """Whether an index is of numbers and slices alone, one for each axis."""
    return all([type(part) in (int, index.Hole, index.Slice) for part in spec]) and all(map(is_place, places))


def is_place(node: Node) -> bool:
    """Whether an index is one number."""
    return not node.aval.shape and node.aval.dtype.kind in "iu"
