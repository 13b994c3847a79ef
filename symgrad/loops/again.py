"""Ways that differ from others in nothing but what lies outside of the loop become the pattern that these became: a loop in a
loop runs often, and to write its ways down takes longer than to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.ir import CONST, Aval, Node
from symgrad.loops.patterns import Part, Pattern
from symgrad.loops.ways import Parts, Stretch, Taken
from symgrad.ops.engine import INDEX
from symgrad.tracing.trace import Trace


def told(stretches: Sequence[Stretch], every: Sequence[Taken]) -> tuple[Any, list[Node]]:
    """All that ways tell, with numbers in the place of what lies outside; and that, by number."""
    numbers: dict[Node, int] = {}

    def named(part: Part) -> Part:
        node = part[-1]
        if type(node) is not Node:
            return part
        known = part[0], numbers.setdefault(node, len(numbers)), node.aval
        if node.op is CONST or (node.op is INDEX and part[0] == "value"):  # which is written out
            value = dict(node.params)["value"]
            return *known, type(value), repr(value)
        return (*known, dict(node.params)["loop"]) if node.op is INDEX else known  # how far it goes

    def all_of(parts: Parts) -> Any:
        return tuple([(named(one), named(part)) for one, part in parts.items()])

    found: list[Any] = []
    for stretch, ways in zip(stretches, every, strict=True):
        found.append(tuple(sorted(stretch.kinds.items(), key=repr)))
        for taken in sorted(ways):
            way = ways[taken]
            steps = [(op, params, aval, *map(all_of, args)) for op, params, aval, args in way.steps]
            tests = [all_of(parts) for parts, _ in way.tests]
            after = [(key, all_of(parts), aval) for key, (parts, aval) in sorted(way.after.items(), key=repr)]
            found.append((taken, *map(tuple, (steps, tests, after))))
    return tuple(found), [*numbers]


def stored(pattern: Pattern, outside: Sequence[Node], blanks: Mapping[Node, Aval]) -> Pattern:
    """A pattern for later runs, of which none holds what lies ``outside`` of this one: numbers stand for that, and what was
    made for it is made anew, arrays of ``blanks`` among that."""
    places = {node: i for i, node in enumerate(outside)}

    def bare(node: Node) -> Any:
        if node in places:
            return "outside", places[node]
        return ("blank", blanks[node]) if node in blanks else ("number", dict(node.params)["value"])

    return _with(pattern, bare)


def restored(pattern: Pattern, outside: Sequence[Node], trace: Trace, blank: Callable[[Aval], Node]) -> Pattern:
    """The pattern that was kept, of a run with this ``outside``."""

    def here(what: Any) -> Node:
        kind, value = what
        return outside[value] if kind == "outside" else blank(value) if kind == "blank" else trace.constant(value)[0]

    return _with(pattern, here)


_OUTSIDE = ("same", "value", "anew")


def _with(pattern: Pattern, other: Callable[[Any], Any]) -> Pattern:
    """A pattern with something else in the place of what lies outside."""

    def changed(part: Part) -> Part:
        return (part[0], other(part[1])) if part[0] in _OUTSIDE else part

    steps = [(op, params, aval, tuple(map(changed, parts))) for op, params, aval, parts in pattern.steps]
    return pattern._replace(steps=steps, after={key: changed(part) for key, part in pattern.after.items()})
