"""What makes a pattern of iterations, and whether a later one follows it.

An iteration is the nodes that were recorded between two boundaries. Of three boundaries in a row, ``Matching.infer`` makes the
pattern that both iterations have in common: their operations are the same, and each argument comes from the same place.
``Matching.follows`` reads one more iteration beside a pattern. In an open loop, an iteration must not have looked at anything
that moves, either, nor changed what is not seen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from symgrad.ir import CAPTURED, Node, ancestors
from symgrad.loops.patterns import LEAVES, TEST, Boundary, Key, Part, Pattern, same_number, same_params
from symgrad.ops.engine import IDENTITY, INDEX
from symgrad.tracing.trace import Trace, loop_number


class Matching(NamedTuple):
    """Compares iterations of the loop number ``serial``; arrays that these made for themselves go into ``anew``. ``unread`` are
    the locals that nobody reads before they are assigned again: loops within may have run, or not."""

    trace: Trace
    serial: int
    open: bool
    anew: set[Node]
    unread: Collection[str] = ()

    def infer(self, start: int, a: Boundary, b: Boundary, c: Boundary) -> Pattern | None:
        """The pattern that the iterations ``a..b`` and ``b..c`` have in common; the one before begins at node number ``start``,
        -1 if that is not known."""
        new = self._operations(b, c)
        carried: dict[Node, list[Key]] = {}
        for key, node in a.nodes.items():
            if key in b.nodes and node is not b.nodes[key] and not self._is_unread(key):
                carried.setdefault(node, []).append(key)
        moving = set(carried) | ({a.at} if a.at is not None else set()) | self._made_again(a, b, c)
        earlier = self._moved_before(start, a, moving)
        moving.update(earlier)
        old = []
        for node in self._operations(a, b):  # what does not move was computed once, and is there already
            if node.op is IDENTITY or any([arg in moving for arg in node.args]):
                moving.add(node)
                old.append(node)
        there = _needed(earlier, old)
        now: dict[Any, Any] = {**{node: b.nodes[keys[0]] for node, keys in carried.items()}, a.at: b.at}
        again = self._there(there, now, moving)
        old, new = there + old, again + [node for node in new if node not in again]
        if len(old) != len(new) or not self._quiet(a, b, moving):
            return None
        place_old = {node: i for i, node in enumerate(old)}
        place_new = {node: i for i, node in enumerate(new)}

        def part(x: Node, y: Node) -> Part | None:
            at = place_old.get(x)
            if at is not None:
                return ("step", at) if place_new.get(y) == at else None
            for key in carried.get(x, ()):
                if b.nodes[key] is y:
                    return ("carry", key)
            if x is a.at and y is b.at:
                return ("index", None)
            if x is y:
                return ("same", x)
            if self._is_like(x, y):
                return ("anew", x)
            return ("value", x) if x.op is INDEX and y.op is INDEX and same_number(x, y) else None

        steps = []
        for x, y in zip(old, new, strict=True):
            if x.op is not y.op or x.aval != y.aval or len(x.args) != len(y.args) or not same_params(x, y.params):
                return None
            parts = [part(p, q) for p, q in zip(x.args, y.args, strict=True)]
            if None in parts:
                return None
            steps.append((y.op, y.params, y.aval, tuple(parts)))
        after: dict[Key, Part] = {}
        for key in b.nodes.keys() & c.nodes.keys():
            x, y = b.nodes[key], c.nodes[key]
            moved = key in a.nodes and a.nodes[key] is not x
            if moved or x is not y:
                found = part(x, y)
                if found is not None and x.aval == y.aval:
                    after[key] = found
                elif (moved or self.open) and not self._is_unread(key):
                    return None
        if not _read(steps, after) <= after.keys():
            return None
        pattern = Pattern(steps, after, new, len(there))  # type: ignore[arg-type]
        return pattern if self.follows(pattern, b, c) else None

    def follows(self, pattern: Pattern, b: Boundary, c: Boundary, alone: bool = False) -> bool:
        """Whether the iteration ``b..c`` is as the pattern has it; if it is ``alone``, part of that may have been there."""
        steps, after, _, there = pattern
        nodes = self.trace.graph.nodes
        before = b.nodes
        made: list[Node] = []
        for step in steps[:there]:
            node = self._found(step, made, b)
            if node is None:
                return False
            made.append(node)
        again = set(made)
        if alone and b.length < len(nodes):  # what moves in no iteration, another run computed before its second one
            fixed = [what for kind, what in pattern.parts() if kind == "same"]
            again.update(ancestors(fixed, nodes[b.length].index))
        count = len(steps)
        for node in nodes[b.length : c.length]:
            op = node.op
            if op in LEAVES or node in again:
                continue
            place = len(made)
            while place < count and not self._is_step(node, steps[place], made, b):
                found = self._found(steps[place], made, b) if alone else None
                if found is None and place not in _unread(pattern):
                    return False
                made.append(found or node)  # in the place of what is gone already, for nobody held it
                place += 1
            if place == count:
                return False
            made.append(node)
        while alone and len(made) < count and (made_before := self._found(steps[len(made)], made, b)) is not None:
            made.append(made_before)
        if len(made) != count and not _unread(pattern).issuperset(range(len(made), count)):
            return False
        end, left = c.nodes, list[Key]()
        for key, (kind, what) in after.items():
            node = end.get(key)
            if kind == "step":
                expected = made[what]
            elif kind == "carry":
                expected = before.get(what)  # type: ignore[assignment]
            elif kind == "index":
                expected = b.at  # type: ignore[assignment]
            else:
                expected = what
            if node is None or (node is not expected and not (kind == "value" and same_number(node, expected))):
                if not self._is_unread(key):
                    return False
                left.append(key)
        if left and not _read(steps, after).isdisjoint(left):
            return False
        for key in left:
            del after[key]
        if self.open and (
            b.rest != c.rest or any(c.nodes[key] is not node and key not in after for key, node in before.items())
        ):
            return False
        noisy = c.guards > b.guards or (self.open and (c.peeks > b.peeks or c.writes > b.writes))
        return not noisy or self._quiet(
            b, c, {*made, *(before[key] for key in after if key in before), *([b.at] if b.at else ())}
        )

    def _is_unread(self, key: Key) -> bool:
        return len(key) == 1 and key[0] in self.unread

    def _is_step(self, node: Node, step: tuple[Any, ...], made: list[Node], b: Boundary) -> bool:
        """Whether a node is a step of the pattern, of what the iteration from ``b`` on has ``made`` so far."""
        op, params, aval, parts = step
        if node.op is not op or node.aval != aval or not same_params(node, params) or len(node.args) != len(parts):
            return False
        for (kind, what), arg in zip(parts, node.args, strict=True):
            if kind == "step":
                if made[what] is not arg:
                    return False
            elif kind == "carry":
                if b.nodes.get(what) is not arg:
                    return False
            elif kind == "same":
                if what is not arg:
                    return False
            elif kind == "index":
                if arg is not b.at:
                    return False
            elif kind == "anew":
                if not self._is_like(what, arg):
                    return False
                self.anew.update((what, arg))
            elif not same_number(arg, what):
                return False
        return True

    def _quiet(self, a: Boundary, b: Boundary, moving: set[Node]) -> bool:
        """Whether Python looked at nothing in this iteration that is another thing in the next, and changed nothing unseen."""
        trace = self.trace
        test = a.nodes.get(TEST)
        looked = [guard.node for guard in trace.guards[a.guards : b.guards]]
        if self.open:
            looked += [peek.node for peek in trace.peeks[a.peeks : b.peeks]]
            if trace.unseen_writes(a.writes, b.writes, b.containers):
                return False
        looked = [node for node in looked if node is not test]
        if not looked:
            return True
        floor = min([node.index for node in moving], default=0)
        return not any(node in moving for node in ancestors(looked, floor))

    def _operations(self, a: Boundary, b: Boundary) -> list[Node]:
        return [n for n in self.trace.graph.nodes[a.length : b.length] if n.op not in LEAVES]

    def _moved_before(self, start: int, a: Boundary, moving: set[Node]) -> list[Node]:
        """What the iteration before ``a`` has computed of what goes round: where an iteration asks for that, it is there."""
        found: list[Node] = []
        seen = set(moving)
        for node in self.trace.graph.nodes[start : a.length] if start >= 0 else ():
            if node not in seen and node.op not in LEAVES and any([arg in seen for arg in node.args]):
                seen.add(node)
                found.append(node)
        return found

    def _there(self, nodes: list[Node], now: dict[Any, Any], moving: set[Node]) -> list[Node]:
        """What ``nodes`` are an iteration later, where what goes round is what ``now`` says; as far as they are there."""
        found: list[Node] = []
        for node in nodes:
            again = self._find(node.op, [now.get(arg) if arg in moving else arg for arg in node.args], node.params)
            if again is None:
                break
            now[node] = again
            found.append(again)
        return found

    def _found(self, step: tuple[Any, ...], made: list[Node], b: Boundary) -> Node | None:
        """What a step is, of what the iteration from ``b`` on has ``made`` so far, if that is there."""
        op, params, aval, parts = step
        node = self._find(op, [b.part(part, made) for part in parts], params)
        return node if node is not None and node.aval == aval else None

    def _find(self, op: Any, args: Sequence[Node | None], params: Any) -> Node | None:
        """The node that is this operation already, if there is one."""
        there = tuple([arg for arg in args if arg is not None])
        return self.trace.graph.find(op, there, params) if len(there) == len(args) else None

    def _made_again(self, a: Boundary, b: Boundary, c: Boundary) -> set[Node]:
        """The arrays that iteration ``a..b`` met first, and the next one has others like them for; indices of loops in it."""
        nodes = self.trace.graph.nodes
        new = [node for node in nodes[b.length : c.length] if node.op is CAPTURED]
        old = nodes[a.length : b.length]
        again = {x for x in old if x.op is CAPTURED and any(self._is_like(x, y) for y in new)}
        return again | {x for x in old if x.op is INDEX and loop_number(x) != self.serial}

    def _is_like(self, x: Node, y: Node) -> bool:
        """Whether two arrays are not one, but have the same content."""
        if x.op is not CAPTURED or y.op is not CAPTURED or x.aval != y.aval or x is y:
            return False
        a, b = (self.trace.graph.arrays[node] for node in (x, y))
        return a.strides == b.strides and a.tobytes() == b.tobytes()


def _needed(nodes: list[Node], users: list[Node]) -> list[Node]:
    """Those of ``nodes``, which are in order, of which ``users`` are made."""
    wanted = {arg for user in users for arg in user.args}
    found = []
    for node in reversed(nodes):
        if node in wanted:
            wanted.update(node.args)
            found.append(node)
    return found[::-1]


def _read(steps: Sequence[Any], after: Mapping[Key, Part]) -> set[Key]:
    """The locals that an iteration reads as it finds them."""
    parts = [*[part for step in steps for part in step[3]], *after.values()]
    return {what for kind, what in parts if kind == "carry"}


def _unread(pattern: Pattern) -> set[int]:
    """The steps that nothing is made of but what nobody reads."""
    unread = set(range(len(pattern.steps)))
    waiting = [*pattern.after.values()]
    while waiting:
        kind, what = waiting.pop()
        if kind == "step" and what in unread:
            unread.remove(what)
            waiting += pattern.steps[what][3]
    return unread
