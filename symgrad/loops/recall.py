"""Recall: what an earlier call had when it came to a loop, or another run of the same statement, in terms of this run.

What a local held there is what the same local holds here, and what was made of such values is made here again. Where it is not
clear which of both another run read (``x[0]``, which a local held there, too), both are kept.

A run of no iteration, or one, tells little of what its loop does: it becomes the ``Loop`` that a longer run became. So
iterations of a loop around that come to the statement are alike, however often each of them runs it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, COMPARED, CONST, INPUT, Aval, Node, ancestors, content_of
from symgrad.loops.patterns import Boundary, Key, Part, Pattern, noted, same_number
from symgrad.loops.ways import Unclear, joined_kind
from symgrad.ops.engine import IDENTITY, INDEX
from symgrad.tracing.trace import Trace


class Recall:
    """Finds here what there was when locals held the nodes ``before``, which hold ``now`` those; ``arrays`` were met there.

    ``most``: how many operations an iteration of another run took, or of one that began behind other decisions; None for the
    same run of an earlier call. ``again``: the indices of all that iterations there asked for once more, if that is known.
    ``apart`` are locals that the statement has nothing to do with: what one of these held there, too, is another local's.
    ``moving`` are those that go round: two that held one value there may hold two here, as nobody asks what that value is.
    """

    def __init__(
        self,
        trace: Trace,
        before: Mapping[Key, Node],
        now: Mapping[Key, Node],
        arrays: Mapping[Node, Any],
        most: int | None,
        again: Collection[int] | None = None,
        apart: Collection[str] = (),
        moving: Collection[Key] = (),
    ) -> None:
        self.trace, self.arrays, self.other = trace, arrays, most is not None
        same: dict[Node, Node] = {}
        for key in sorted(before, key=lambda key: key[0] in apart):
            node, here = before[key], now[key]
            if same.setdefault(node, here) is not here and key[0] in apart:
                continue
            if self.other and joined_kind(node.aval, here.aval) is None:
                raise Unclear
        asked = {key for key in before if key[0] not in apart}
        self.parted = {before[key] for key in asked if same[before[key]] is not now[key]}
        if any([before[key] in self.parted and key not in moving for key in asked]):
            raise Unclear
        self.held = same = {node: here for node, here in same.items() if node not in self.parted}
        self.readings = [{**same}]
        if most is not None:  # what a local held there, an iteration may have computed too, or have been given by its code
            computed = _computed_from([*same], most)
            computed = {node for node in computed if again is None or node.index in again or not node.args}
            computed = {node for node in computed if not self._is_alike(node, same[node])}
            self.readings.append({node: here for node, here in same.items() if node not in computed})

    def _is_alike(self, node: Node, here: Node) -> bool:
        """Whether both are arrays of plain numbers that hold the same: what was made of the one is made of the other."""
        array, other = self.arrays.get(node), self.trace.graph.arrays.get(here)
        return array is not None and other is not None and content_of(array) == content_of(other)

    def every(self, node: Node) -> set[Node]:
        """What it may be here."""
        return {self._here(node, reading) for reading in self.readings}

    def only(self, node: Node) -> Node:
        """What it is here, however that is read."""
        found, *others = self.every(node)
        if others:
            raise Unclear
        return found

    def may_be(self, node: Node, here: Node) -> bool:
        """Whether what was made of a node in the other run is of the same kind here: what another mask selects need not be."""
        mask = isinstance(here.aval, Aval) and here.aval.dtype == bool and here.aval.shape != ()
        return node.aval == here.aval and not (self.other and mask and here is not node)

    def without(self, node: Node) -> Node:
        """What it is here, made of other values than itself."""
        return self._here(node, {held: here for held, here in self.held.items() if held is not node})

    def is_number_of_its_own(self, number: Node) -> bool:
        """Whether a number that a local held there, or got there, is another one in this run."""
        return self.other and number in self.held and not same_number(self.held[number], number)

    def _here(self, node: Node, same: dict[Node, Node]) -> Node:
        """What it is here: computed, if need be."""
        trace = self.trace
        for x in ancestors([node], known=same):
            found: Node | None
            if x in self.parted:
                raise Unclear
            if x.op is INPUT:
                found = trace.graph.find(INPUT, (), x.params) or trace.hooks.read_again(x)
            elif x.op is CAPTURED:
                array = self.arrays.get(x)
                if array is None:  # which no way reads
                    raise Unclear
                table = not array.flags.writeable and array.base is None
                if self.other and not table and array.size > COMPARED:
                    raise Unclear  # it may hold something else now
                found = trace.constant(trace.once(array) if table else array)[0]
            elif x.op is CONST:
                found = trace.constant(dict(x.params)["value"])[0]
            elif x.op is IDENTITY or (x.op is INDEX and self.other):  # which has a name, or a value, of its own each time
                found = None
            else:
                found = self._computed(x, [trace.lookup(same[arg]) for arg in x.args])
            if found is None or found.aval != x.aval:
                raise Unclear
            same[x] = found
        return same[node]

    def _computed(self, node: Node, args: list[Any]) -> Node | None:
        begun = self.trace.graph.next_index
        try:
            with np.errstate(all="ignore"):
                made: Node = self.trace.run(node.op, args, dict(node.params))
        except Exception:
            return None
        if made.index >= begun:  # it belongs where the function asks for it, not where that is foreseen
            made.name, made.line = node.name, node.line
        return made


def _computed_from(held: Sequence[Node], most: int) -> set[Node]:
    """Which of these nodes so few operations make of others of them, and of constants, which may be so themselves."""
    found: set[Node] = set()
    known = {*held}
    for node in held:
        made: set[Node] = set()
        waiting = [node]
        while waiting and len(made) <= most:
            x = waiting.pop()
            if x in made or (x in known and x is not node):
                continue
            if x.op in (INDEX, IDENTITY):
                break
            made.add(x)
            waiting += x.args
        else:
            if len(made) <= most:
                found.add(node)
    return found


def read_there(pattern: Pattern, held: Mapping[Key, Node], put: Collection[Key]) -> list[Node]:
    """What other runs of a statement may make again of what one of that ``pattern`` met, whose locals ``held`` these nodes."""
    same = [part[1] for part in pattern.parts() if part[0] == "same"]
    own = [held[key] for key in put]
    computed = _computed_from([*held.values()], len(pattern.steps))
    return ancestors([*same, *own], known={*held.values()} - computed - {*own})


class Run(NamedTuple):
    """What a run of an open loop told, whose iterations went no different ways.

    ``nodes`` and ``rest`` are what the locals held when it began, ``keys`` what goes round and ``late`` what is but left
    behind, of these ``kinds``. ``always``: it is the same loop for a run of no iteration. ``arrays`` are what it met, and
    ``again`` the indices of what it computed once more; ``put`` are the locals that may have got what they held, ``written``
    those whose arrays it changed in place, and ``changes`` says that it changed containers.
    """

    pattern: Pattern
    nodes: dict[Key, Node]
    rest: dict[str, Any]
    keys: list[Key]
    late: list[Key]
    kinds: dict[Key, Any]
    always: bool
    arrays: dict[Node, Any]
    again: frozenset[int]
    put: list[Key]
    written: list[Key]
    changes: bool

    def held(self, seen: set[int]) -> Iterator[Node]:
        """The nodes that it holds, each as often as what is not ``seen`` yet (ids), and is then, does."""
        parts = [part for part in self.pattern.parts() if part[0] in ("same", "value")]
        yield from noted(self.nodes, [self.arrays], parts, seen)

    def here(self, trace: Trace, begin: Boundary, apart: Collection[str]) -> Pattern | None:
        """Its pattern, in a run that begins so; None where that is not clear. ``apart``: as for ``Recall``."""
        if any([self.rest[name] != begin.rest[name] for name in self.rest.keys() & begin.rest.keys()]):
            return None
        before = {key: node for key, node in self.nodes.items() if key in begin.nodes}
        if any([key not in before or not self._may_begin(key, before[key].aval, begin.nodes[key].aval) for key in self.keys]):
            return None
        steps, after, *_ = self.pattern
        try:
            recall = Recall(trace, before, begin.nodes, self.arrays, len(steps), self.again, apart)
            put = [(before[key], begin.nodes[key]) for key in self.put if key in before]
            if any([not same_number(one, here) and recall.without(one) is not here for one, here in put]):
                return None
            here = functools.partial(_part, recall)
            made = [(op, params, aval, tuple(map(here, parts))) for op, params, aval, parts in steps]
            return self.pattern._replace(steps=made, after={key: here(part) for key, part in after.items()})
        except Unclear:
            return None

    def _may_begin(self, key: Key, before: Any, here: Any) -> bool:
        """Whether what goes round may begin with this: as it did there, or as a number of Python's that becomes NumPy's."""
        return bool(here == before or joined_kind(here, self.kinds[key]) == self.kinds[key])


def _part(recall: Recall, part: Part) -> Part:
    """Where an argument comes from in this run."""
    kind, what = part
    if kind == "anew" or (kind == "value" and recall.is_number_of_its_own(what)):
        raise Unclear
    if kind != "same":
        return part
    node = recall.only(what)
    if not recall.may_be(what, node):
        raise Unclear
    return "same", node
