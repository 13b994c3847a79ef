"""What a loop has written to an array some iterations ago, as values that go round.

``y[t] = a * y[t - 1] + x[t]`` reads what the iteration before has written. With that going round beside ``y``, the loop does
not read ``y`` at all, and what it makes of each value shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from symgrad.ir import Graph, Node
from symgrad.ops import index
from symgrad.transform.loop import Body, copied
from symgrad.transform.own import as_written
from symgrad.transform.terms import is_basic, progression

FAR = 4  # iterations ago, up to which what was written goes round
Numbers = Mapping[Node, Sequence[Any]]  # what there is in each iteration
Places = tuple[int | Node, ...]  # numbers, or invariants of which it is


class Lag(NamedTuple):
    """Where, in an array that goes round, a new carried value begins and ends."""

    array: int
    spec: index.Spec
    first: Places
    last: Places


class _Written(NamedTuple):
    """Where each iteration writes a row of an array, and what reads it, with how many iterations ago that was written.

    ``rows`` are the numbers at one of the places, which is another in each iteration.
    """

    writer: Node
    moving: int
    rows: Sequence[int]
    readers: dict[Node, int]

    def lag(self, array: int, ago: int) -> Lag:
        step = self.rows[1] - self.rows[0]
        first, last = self._places(self.rows[0] - ago * step), self._places(self.rows[-1] - (ago - 1) * step)
        return Lag(array, dict(self.writer.params)["spec"], first, last)

    def _places(self, row: int) -> Places:
        return tuple([row if i == self.moving else place for i, place in enumerate(self.writer.args[2:])])


def reads_what_it_writes(body: Body) -> bool:
    """Whether there may be such rows."""
    ends = [(item, end) for item, end in zip(body.carry, body.after, strict=True) if end.op is index.SETITEM]
    return any([reader.op is index.GETITEM for item, end in ends if end.args[0] is item for reader in body.readers[item]])


def with_lags(body: Body, numbers: Numbers) -> tuple[Body, list[Lag]]:
    """The body with rows that earlier iterations have written going round after what does anyway; and where they begin."""
    written = {}
    for item, end in zip(body.carry, body.after, strict=True):
        found = _written(body, item, end, numbers) if end.op is index.SETITEM and end.args[0] is item else None
        if found is not None and found.readers:
            written[item] = found
    graph, new = Graph(), dict[Node, Node]()
    for node in body.inputs:
        new[node] = graph.stand_in(node)
    lags, before, after = list[Lag](), list[Node](), list[Node]()
    carried = dict[tuple[Node, int], Node]()
    for item, found in written.items():
        row = next(iter(found.readers)).aval
        for ago in range(1, max(found.readers.values()) + 1):
            carried[item, ago] = graph.input(("lag", item, ago), row)
            lags.append(found.lag(body.carry.index(item), ago))
        new.update({reader: carried[item, ago] for reader, ago in found.readers.items()})
    for node in body.nodes():
        if node not in new:
            new[node] = copied(graph, node, [new[arg] for arg in node.args], body.graph)
    for (item, ago), one in carried.items():
        before.append(one)
        after.append(as_written(graph, new[written[item].writer.args[1]], one.aval) if ago == 1 else carried[item, ago - 1])
    made = body.renamed(graph, new)
    return replace(made, carry=[*made.carry, *before], after=[*made.after, *after]), lags


def _written(body: Body, item: Node, writer: Node, numbers: Numbers) -> _Written | None:
    """How each iteration writes a row of an array, if it reads none but those of earlier ones."""
    spec, places = dict(writer.params)["spec"], writer.args[2:]
    moving = [i for i, place in enumerate(places) if place not in body.invariants]
    if not is_basic(spec, places) or len(moving) != 1 or writer in body.readers or body.after.count(writer) > 1:
        return None
    rows = numbers.get(places[moving[0]], ())
    (size,) = [n for n, part in zip(item.aval.shape, spec) if type(part) is index.Hole and part.number == moving[0]]  # noqa: B905
    if progression(rows, size) is None:
        return None
    found, step = _Written(writer, moving[0], rows, {}), rows[1] - rows[0]
    for reader in body.readers[item]:
        if reader is writer and writer.args[1] is not item:
            continue
        ago = _ago(found, reader, numbers) if reader.op is index.GETITEM and reader.args[0] is item else None
        if ago is None or not -size <= rows[0] - ago * step < size:
            return None
        found.readers[reader] = ago
    return found


def _ago(found: _Written, reader: Node, numbers: Numbers) -> int | None:
    """How many iterations ago what is read has been written; None where that is not what is read in each iteration."""
    places, moving, rows = reader.args[1:], found.moving, found.rows
    same = [i for i, (place, own) in enumerate(zip(places, found.writer.args[2:])) if place is own]  # noqa: B905
    if dict(reader.params)["spec"] != dict(found.writer.params)["spec"] or len(same) < len(places) - 1 or moving in same:
        return None
    named, step = numbers.get(places[moving], ()), rows[1] - rows[0]
    ago, rest = divmod(rows[0] - named[0], step) if named else (0, 0)
    return ago if 0 < ago <= FAR and not rest and list(named) == [row - ago * step for row in rows] else None
