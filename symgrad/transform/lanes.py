"""Lanes: what a reverse pass knows of zeros, so that ``0 * inf`` does not become NaN.

``np.where(x > 0, np.log(x), 0.0)`` does not depend on ``log(x)`` where ``x <= 0``: what comes back to it there is a zero that
stays zero, whatever the partial derivative. The pass therefore remembers, beside a cotangent, the masks of the choices that
it came through (its *lanes*), carries both through elementwise operations, to where elements were moved from and to what sums
and products were made of, and applies the masks once, at the end of the chain: ``np.where(x > 0, g / x, 0)``.

This happens only where it matters: where an operation below a choice has a partial derivative that may be infinite or NaN.
The operations say which (``partial``) and what becomes of their arguments' elements (``lanes``); see ``symgrad.ops.core``.

Where integers known at run time alone pick elements (``np.log(x)[rows]``), masks would cost as much as all the rest. There the
elementwise operations are run, and differentiated, once more on what is picked.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, Aval, Node, ancestors, is_inexact
from symgrad.ir import Sequence as Several
from symgrad.ops import create
from symgrad.ops.core import REGISTRY, Choice, expand, fit
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.engine import ADD_LISTS, ITEM
from symgrad.ops.index import EVERY, GETITEM, SETITEM, Hole, Slice, dtype_of
from symgrad.tracing.tracer import Tracer

MANY = ("row", "scan", "stack")  # lanes of what depends on many elements, in a way that has poles
FINITE, POLES = 1, 2  # a partial derivative is finite wherever the arguments are; has no bound
FEW = 2  # choices of numbers, one after the other, that take less time than a mask
NEAR, OWN = 1, 2  # explicit masks: Python's choice of the larger, not worth carrying round a loop; the user's own


def _fixed(mask: Any) -> Any:
    """A mask that is made here: a plain one is the same in each trace, as nobody changes it."""
    if type(mask) is np.ndarray:
        mask.flags.writeable = False
    return mask


class Lanes:
    """Where a cotangent may be other than zero: in ``outer``, where ``test`` is ``taken``.

    ``explicit``: an explicit mask is among the tests, the user's ``OWN`` or one that is ``NEAR``; 0 where none is. ``cover``
    is the mask where it is known beforehand. ``parts`` are the lanes whose masks the test is made of, if any.
    """

    __slots__ = ("_make", "_test", "cover", "depth", "explicit", "key", "outer", "parts", "taken", "whole")

    def __init__(
        self,
        outer: Lanes | None,
        key: Any,
        test: Any,
        taken: bool = True,
        explicit: int = 0,
        cover: Any = None,
        parts: Sequence[Lanes] = (),
    ) -> None:
        self.outer, self.key, self.taken, self.cover, self.parts = outer, key, taken, cover, parts
        self.whole: dict[Lanes | None, Any] = {}  # the mask of all from here to one that lies around
        self.explicit: int = explicit if outer is None else max(explicit, outer.explicit)
        self.depth: int = 1 if outer is None else outer.depth + 1
        self._make: Callable[[], Any] | None = test if callable(test) else None
        self._test: Any = None if callable(test) else test

    @property
    def test(self) -> Any:
        """The mask; made when it is asked for."""
        waiting = [self]
        while waiting:  # sums of hundreds lie in one another, deeper than calls may
            one = waiting[-1]
            inner = one._unmade() if one._make is not None else []
            if inner:
                waiting += inner
                continue
            waiting.pop()
            if one._make is not None:
                one._test, one._make = _fixed(one._make()), None
        return self._test

    def _unmade(self) -> list[Lanes]:
        """The lanes, made of others' masks, whose tests must be there before this one."""
        found = []
        for lanes in self.parts:
            part: Lanes | None = lanes
            while part is not None and part is not self.outer:
                found += [part] if part.parts and part._make is not None else []
                part = part.outer
        return found

    def mask(self, until: Lanes | None) -> Any:
        """The mask that these lanes are within others, ``until``; lanes between have theirs made once for all in them."""
        waiting = [self]
        while until not in waiting[-1].whole and waiting[-1].outer not in (None, until):
            waiting.append(waiting[-1].outer)
        for one in reversed(waiting):
            if until not in one.whole:
                test = one.test if one.taken else _fixed(np.logical_not(one.test))
                around = None if one.outer is until else one.outer
                one.whole[until] = test if around is None else _fixed(np.logical_and(around.whole[until], test))
        return self.whole[until]

    @property
    def least(self) -> int:
        """How bad a partial derivative must be for these lanes to be looked after."""
        return FINITE if self.explicit else POLES


State = tuple["Lanes | None", "Lanes | None"]  # a cotangent's lanes, and those of them that are still to be applied
NOTHING: State = (None, None)


@dataclass
class Around:
    """What lies around a pass over the body of a loop: how bad partial derivatives get beyond the ends of the pass, the masks
    that the cotangents given to it come with (None where there is none), whether ``if``s leave out what it is given, which may
    be infinite or NaN then, and, afterwards, the masks of the ends."""

    levels: dict[Node, int]
    live: list[Any]
    forks: bool = False
    found: dict[Node, Any] = field(default_factory=dict)


class Masks:
    """The lanes of all cotangents of one pass, and what is to be done where they meet an operation.

    ``last``: no pass follows; there is code without masks, then, too. ``wary``: whatever products are given may be infinite or
    NaN; so it is where the function asks what is finite.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        order: Sequence[Node],
        ends: dict[Node, int],
        lookup: Callable[[Node], Any],
        last: bool,
        wary: bool,
    ) -> None:
        self.lookup, self.last, self.wary = lookup, last, wary or asks(nodes)
        self.hot = hot_of(nodes, lookup)
        self.flows, self.ends = set(order), ends
        self.levels: dict[Node, int] = {}
        for node in order:
            self.levels[node] = ends[node] if node in ends else self._level(node)
        self.steep = below_poles(order, self.hot)
        self.before: set[Node] = set()  # whose cotangents may be infinite, and are chosen from later in the pass
        for node in order:
            if node in self.steep and node.args and (node.op.chooses or any([arg in self.before for arg in node.args])):
                self.before.add(node)
        self.states: dict[Node, State] = {}
        self.items: dict[tuple[Node, int], Lanes] = {}  # of the results of loops, and of other operations that have several
        self._made: dict[Any, Lanes] = {}
        self._told: dict[Node, bool] = {}
        self._arguments: dict[Node, list[Any]] = {}

    # ---- where it matters ----

    def _level(self, node: Node) -> int:
        """How bad the partial derivatives get from ``node`` on down, as far as lanes are followed."""
        worst = 0
        for i, arg in _flowing(node, self.flows):
            lane = node.op.lanes_of(i)
            if lane is not None:
                level = max(self.steepness(node, i), self.levels[arg])
                worst = max(worst, level if lane != "mixed" or level == POLES else 0)
        return worst

    def steepness(self, node: Node, position: int) -> int:
        """How bad the partial derivatives by one argument get, if lanes are followed there."""
        return _steepness(node, position, self.hot, self.wary)

    # ---- one operation ----

    def send(self, node: Node, position: int, g: Any, args: Sequence[Any], rule: Callable[..., Any]) -> tuple[Any, State]:
        """The cotangent of an argument, and its lanes, given ``node``'s own, its arguments and its rule for these."""
        arg, lane = node.args[position], node.op.lanes_of(position)
        lanes, dirty = self.states.get(node, NOTHING)
        if lane == "stack" and not isinstance(node.aval, Aval):
            lanes = self.stacked(node, g)
        level = self.levels[arg]
        state: State
        if lane in ("moved", "some", "mixed", *MANY):
            part = fit_to(rule(position, apply(g, dirty), self.factors(node, position, lanes, args)), arg)
            lanes = self.moved(node, position, lanes)
            state = lanes, lanes if lane in MANY else None
        elif lane is None:
            part, state = fit_to(rule(position, apply(g, dirty), args), arg), NOTHING
        else:
            if node.op.family == "op" and isinstance(lane, Choice):  # a reduction, of rows that are masked, too
                g, lanes, dirty = apply(g, dirty), self.moved(node, position, lanes), None
            choice = self.chosen(node, position, lanes, level) if isinstance(lane, Choice) else None
            if choice is not None and choice[1]:
                part, lanes = g, choice[0]
                dirty = lanes
            else:
                lanes = lanes if choice is None else choice[0]
                hidden = lanes is not None or arg in self.before
                with np.errstate(divide="ignore", invalid="ignore") if hidden else nullcontext():
                    part = rule(position, self.kept(node, position, g), args)
                if lanes is not None and self.steepness(node, position) >= lanes.least:
                    dirty = lanes
            if part is not None and arg.aval.shape != np.shape(part):
                part, dirty = apply(part, dirty), None
                lanes = self.reduced(lanes, node, arg) if np.shape(part) == node.aval.shape else None
            part, state = fit_to(part, arg), (lanes, dirty)
        if state[0] is not None and state[0].cover is not None and not state[0].cover.any():
            return None, NOTHING
        if state[1] is None and state[0] is not None and level < state[0].least:
            state = NOTHING
        return part, state

    def chosen(self, node: Node, position: int, outer: Lanes | None, level: int) -> tuple[Lanes, bool] | None:
        """The lanes of an argument that was chosen from; and whether the choice is all that its rule does."""
        if level < max([self.levels[arg] for i, arg in _flowing(node, self.flows)]):
            level = FINITE  # it is looked after for the other argument's sake
        if level == 0:
            return None
        args = [self.lookup(arg) for arg in node.args]
        found = node.op.lanes_of(position).test(self.lookup(node), *args, **dict(node.params))
        if found is None:
            return None
        test, taken, explicit = found
        own = explicit and (NEAR if node.op is EXTREME else OWN)
        if not explicit and level < POLES:
            return None
        key = next((node.args[i] for i, arg in enumerate(args) if _same(arg, test)), (node, position))
        return self.within(outer, key, test, taken, own), explicit

    def kept(self, node: Node, position: int, g: Any) -> Any:
        """A cotangent that may be infinite, where the argument was chosen: the rule is a product with zeros elsewhere."""
        if node not in self.steep or node.op.family != "elementwise":
            return g
        return select(node, position, g, self.lookup(node), [self.lookup(arg) for arg in node.args])

    def within(self, outer: Lanes | None, key: Any, test: Any, taken: bool, explicit: int) -> Lanes:
        """Lanes within others, the same object for the same mask."""
        one: Lanes | None = outer
        while one is not None:  # what was chosen by this mask already
            if one.key == key and one.taken == taken:
                return outer  # type: ignore[return-value]
            one = one.outer
        made = self._made.get((outer, key, taken))
        if made is None:
            cover = _known(outer, test, taken)
            made = self._made[outer, key, taken] = Lanes(outer, key, test, taken, explicit, cover)
        return made

    def moved(self, node: Node, position: int, lanes: Lanes | None) -> Lanes | None:
        """The lanes of an argument whose elements are elsewhere in the result, or not there: its rule, run on a mask."""
        arg, lane = node.args[position], node.op.lanes_of(position)
        level = max(self.levels[arg], self.steepness(node, position) if lane in MANY else 0)
        some = lane == "some"
        explicit = 0 if lanes is None else lanes.explicit
        if some and lanes is None:
            explicit = OWN if any([_is_mask(array) for array in node.args[1:]]) else 0
        if (lanes is None and not some) or level < (FINITE if explicit and lane != "mixed" else POLES):
            return None
        if lanes is None and explicit:
            spec = dict(node.params).get("spec", ())
            whole = len(spec) == 1 and len(node.args[1].aval.shape) == len(arg.aval.shape)
            if node.op is GETITEM and whole and node.args[1].aval.dtype == bool:
                return self.within(None, node.args[1], self.lookup(node.args[1]), True, OWN)
        if lanes is None and not explicit and _by_element(arg) and _is_one_of_each(node):
            return None  # the labels of a softmax: masks would cost more than all the rest
        # where the elements go is known beforehand, unless values say so: those of a sort, or index arrays
        fixed = (node.op.family != "op" or lane in ("mixed", *MANY)) and not self.is_told(node)
        if (lanes is None or lanes.cover is not None) and fixed:
            plain = [np.empty(arg.aval.shape, bool) if other is arg else _plain(self.lookup(other)) for other in node.args]
            ones = np.ones(node.aval.shape, bool) if lanes is None else lanes.cover
            shape = node.aval.shape if isinstance(node.aval, Aval) else np.shape(ones)  # masks may be smaller
            cover = _reached(node, position, ones, np.empty(shape, bool), plain)
            return None if cover.all() else Lanes(None, (node, position), cover, True, explicit, cover)
        if lanes is None and node.op is GETITEM:
            arrays = [self.lookup(array) for array in node.args[1:]]
            spec = dict(node.params)["spec"]
            if not explicit and _by_element(arg) and _each_row(spec, node.args[1:], arrays, arg.aval.shape):
                return None  # labels again
            rows = _narrow(spec, node.args[1:], arg.aval.shape)
            return Lanes(None, (node, position), lambda: _true_at(self.lookup(arg), spec, arrays, rows), True, explicit)

        def mask() -> Any:
            args = self.arguments(node)
            ones = true_like(args[position], node.aval) if lanes is None else mask_of(lanes, None, None)
            return _reached(node, position, ones, self.lookup(node), args)

        return Lanes(None, (node, position), mask, True, explicit, None, () if lanes is None else (lanes,))

    def is_told(self, node: Node) -> bool:
        """Whether values say where the elements of its arguments go."""
        if node not in self._told:
            self._told[node] = any([a.active and not node.op.differentiable(i) for i, a in enumerate(node.args)])
        return self._told[node]

    def arguments(self, node: Node) -> list[Any]:
        """The values of a node's arguments, of which it may have thousands."""
        if node not in self._arguments:
            self._arguments[node] = [self.lookup(arg) for arg in node.args]
        return self._arguments[node]

    def factors(self, node: Node, position: int, lanes: Lanes | None, args: Sequence[Any]) -> Sequence[Any]:
        """A product's arguments; of those that may be infinite, zeros where they meet nothing but zeros."""
        if lanes is None or node.op.family != "multilinear":
            return args
        mask, every = mask_of(lanes, None, None), self.wary and node.op.labels is not None
        return [
            np.where(_reached(node, i, mask, self.lookup(node), args), x, 0)
            if i != position and (every or arg in self.hot)
            else x
            for i, (arg, x) in enumerate(zip(node.args, args, strict=True))
        ]

    def chain(self, node: Node) -> list[Node]:
        """The elementwise operations, down to the last that has poles, whose results ``x[index]`` alone uses; in order. Where
        one of them chooses, down to the last that may meet what is not finite.

        If which elements it picks is known at run time only. The derivatives are taken of those elements: that costs less
        than masks, if they are not many.
        """
        x, *arrays = node.args
        if not any([array.active for array in arrays]) or any(map(_is_mask, arrays)):
            return []
        if math.prod(node.aval.shape) > 2 * math.prod(x.aval.shape):
            return []
        order, waiting = [], {x}
        while waiting:
            one = max(waiting, key=lambda one: one.index)  # all that uses it has been seen
            waiting.remove(one)
            within = one in self.flows and one not in self.ends and one.op.family == "elementwise" and one.aval == x.aval
            if within and all([user in order or user.op.lanes_of(0) == "some" for user in self.users[one]]):
                order.append(one)
                waiting.update([arg for _, arg in _flowing(one, self.flows)])
        found: list[Node] = []
        badness = {one: _badness(one, self.hot) for one in order}
        least = FINITE if POLES in badness.values() and any([one.op.chooses for one in order]) else POLES
        for one in reversed(order):
            steep = badness[one] >= least and all([arg.aval.shape in ((), x.aval.shape) for arg in one.args])
            if steep or any([arg in found for arg in one.args]):
                found.append(one)
        return found

    @functools.cached_property
    def users(self) -> dict[Node, list[Node]]:
        """What uses each node, among those that a derivative flows through."""
        found: dict[Node, list[Node]] = {}
        for node in self.levels:
            if node not in self.ends:
                for _, arg in _flowing(node, self.flows):
                    found.setdefault(arg, []).append(node)
        return found

    def reduced(self, lanes: Lanes | None, node: Node, arg: Node) -> Lanes | None:
        """The lanes of an argument that was broadcast: those that are live in any place it went to."""
        if lanes is None or self.levels[arg] < lanes.least:
            return None
        test = lambda: _gathered(mask_of(lanes, None, None), arg.aval.shape)
        return Lanes(None, ("any", lanes, arg.aval.shape), test, True, lanes.explicit, None, (lanes,))

    # ---- several results ----

    def stacked(self, node: Node, g: Sequence[Any]) -> Lanes | None:
        """Of the results of an operation on a stack of matrices, the lanes of those that any of them matters of."""
        found = [self.items.get((node, i)) for i, part in enumerate(g) if part is not None]
        if None in found:
            return None
        axes = len(node.args[0].aval.shape) - 2
        known = [lanes for lanes in found if lanes is not None]

        def any_of(masks: Sequence[Any]) -> Any:
            return functools.reduce(np.logical_or, [_of_stack(mask, axes) for mask in masks])

        covers = [lanes.cover for lanes in known]
        cover = None if any([one is None for one in covers]) else any_of(covers)
        test = cover if cover is not None else lambda: any_of([mask_of(lanes, None, None) for lanes in known])
        explicit = max([lanes.explicit for lanes in known], default=0)
        return Lanes(None, ("stack", *known), test, True, explicit, cover, known)

    def item(self, node: Node, g: Any) -> Any:
        """The cotangent of one result of several, with masks applied."""
        lanes, dirty = self.states.pop(node, NOTHING)
        if lanes is not None:
            self.items[node.args[0], dict(node.params)["item"]] = lanes
        return apply(g, dirty)  # of a list, nothing is left to be applied

    # ---- loops ----

    def loop(self, node: Node, g: Any, args: Sequence[Any], before: Mapping[int, tuple[Any, Any]]) -> list[tuple[Any, State]]:
        """The cotangents of the arguments of a loop, with their lanes; of those ``before``, what they are added to, too."""
        found = [self.items.get((node, i)) for i in range(len(node.aval))]
        wanted = [self.levels.get(arg, 0) for arg in node.args]
        least = OWN
        if node.op.forks or POLES in (node.op.inside, *wanted):  # masks go round in it, whatever they begin with
            least = 0 if node.op.parts or self.last else NEAR
        live = [
            mask_of(one, None, aval) if one is not None and one.explicit >= least else None
            for one, aval in zip(found, node.aval, strict=True)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            parts, tests = node.op.joint_in_lanes(g, args, live, wanted, before)
        states: list[State] = [
            NOTHING if test is None else (Lanes(None, (node, i), test, True, OWN), None) for i, test in enumerate(tests)
        ]
        return list(zip(parts, states, strict=True))

    # ---- sums ----

    def start(self, node: Node, mask: Any) -> State:
        """The state of a cotangent that comes with a mask."""
        return NOTHING if mask is None else (self.within(None, ("live", node, id(mask)), mask, True, OWN), None)

    def live(self, node: Node) -> Any:
        """The mask of a cotangent; None where nothing is known."""
        lanes = self.states.get(node, NOTHING)[0]
        return None if lanes is None else mask_of(lanes, None, node.aval)

    def settle(self, node: Node, g: Any) -> Any:
        """A cotangent with its masks applied, and forgotten."""
        return apply(g, self.states.pop(node, NOTHING)[1])

    def picked(self, node: Node, g: Any, before: Any) -> tuple[Any, Any]:
        """The cotangents of ``x[index]`` and of ``x`` so far, with masks applied, to be added; notes the lanes of the sum."""
        x = node.args[0]
        lanes, dirty = self.states.get(node, NOTHING)
        state = self.moved(node, 0, lanes), None
        if before is not None:
            before = self.add(x, before, None, state)
        elif state[0] is not None:
            self.states[x] = state
        return apply(g, dirty), before

    def add(self, node: Node, before: Any, part: Any, state: State) -> Any:
        """The sum of two cotangents of ``node``, None for none; the second's lanes are ``state``. Notes those of the sum."""
        if before is None:
            if state[0] is not None:
                self.states[node] = state
            return part
        if isinstance(node.aval, Several):
            one, other = self.states.pop(node, NOTHING)[0], state[0]
            if one is not None and other is not None:  # of bools, the sum is "or"
                self.states[node] = Lanes(None, ("or", one, other), ADD_LISTS(one.test, other.test), True, OWN), None
            return ADD_LISTS(before, part)
        (one, todo), (other, left) = self.states.pop(node, NOTHING), state
        common = _common(one, other)
        first, second = _tail(one, common), _tail(other, common)
        before, todo = _apply_to(before, todo, first or common)
        part, left = _apply_to(part, left, second or common)
        sides = first is not None and second is not None and first.key == second.key and first.taken != second.taken
        if first is None or second is None or (sides and one is first and other is second):
            lanes = common
        else:
            lanes = _union(one, other, common)
        if sides and todo is first and left is second:
            total = np.where(first.test, *((before, part) if first.taken else (part, before)))  # type: ignore[union-attr]
            self.states[node] = lanes, common
            return total
        before, todo = _apply_to(before, todo, common)
        part, left = _apply_to(part, left, common)
        deepest = todo if _depth(todo) >= _depth(left) else left
        if deepest is not None and todo is not left:  # one has masks to be applied that the other has not: it is zero there
            shallow = min(_depth(todo), _depth(left))
            while _depth(deepest) > shallow:
                deepest = deepest.outer  # type: ignore[union-attr]
            before, todo = _apply_to(before, todo, deepest)
            part, left = _apply_to(part, left, deepest)
        if lanes is not None:
            self.states[node] = lanes, todo
        if part is None:
            return before
        with np.errstate(invalid="ignore") if todo is not None or node in self.before else nullcontext():
            return before + part


def may_leave_out(op: Any) -> bool:
    """Whether elements of what an operation is given, or all of it, may be left out of its results."""
    return bool(op.chooses or op.idle or op.idling)


def matters(order: Sequence[Node], ends: Sequence[Node], floor: int, lookup: Callable[[Node], Any], wary: bool = False) -> bool:
    """Whether something is chosen in a pass over ``order`` from what may have an infinite derivative; ``wary``: any product."""
    stops = set(ends)
    choosing = [node for node in order if node not in stops and may_leave_out(node.op)]
    if not choosing:
        return False
    if any([node.op.idling for node in choosing]):
        return True
    by_element = [node for node in choosing if node.op.family == "elementwise"]
    if by_element and not below_poles(order, set()).isdisjoint(by_element):
        return True
    nodes = ancestors(choosing, floor)
    flows, hot, wary = set(order), hot_of(nodes, lookup), wary or asks(nodes)
    starts: dict[int, list[Node]] = {FINITE: [], POLES: []}
    for node in choosing:
        for i, arg in _flowing(node, flows):
            if _is_choice(node, i):
                starts[POLES if _picks(node, i) else FINITE].append(arg)
    seen = set(stops)  # below which nothing is as bad; what is finite there is no pole
    for least, stack in starts.items():
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            for i, arg in _flowing(node, flows):
                if _steepness(node, i, hot, wary) >= least:
                    return True
                if node.op.lanes_of(i) is not None:
                    stack.append(arg)
    return False


def asks(nodes: Sequence[Node]) -> bool:
    """Whether the function asks what is a finite number; what it does with maxima, sums of exponentials have done for them."""
    return any([node.op in _ASKING and node.args[0].op is not _MAX for node in nodes])


_ASKING, _MAX = {REGISTRY[key] for key in (np.isfinite, np.isnan, np.isinf)}, REGISTRY[np.max]


def _picks(node: Node, position: int) -> bool:
    """Whether elements are picked by their places, which the user's own mask does not say; or nothing is, by no iteration."""
    lane = node.op.lanes_of(position)
    if lane == "loop":
        return bool(node.op.picks(position)) or not node.op.chooses
    return lane == "some" and not any(map(_is_mask, node.args[1:]))


def below_poles(order: Sequence[Node], hot: set[Node]) -> set[Node]:
    """The nodes of a pass whose cotangent may be infinite, of what operations on elements make of them."""
    flows, found = set(order), set[Node]()
    for node in reversed(order):
        if node.args and (node in found or _badness(node, hot) == POLES or node.op.inside == POLES):
            kept = node.op.family == "elementwise" or node.op.inside == POLES
            found.update([arg for i, arg in _flowing(node, flows) if kept or node.op.lanes_of(i) in ("same", "moved", "some")])
    return found


def _flowing(node: Node, flows: set[Node]) -> list[tuple[int, Node]]:
    return [(i, arg) for i, arg in enumerate(node.args) if arg in flows and node.op.differentiable(i)]


def _is_choice(node: Node, position: int) -> bool:
    lane = node.op.lanes_of(position)
    return isinstance(lane, Choice) or lane == "some" or (lane == "loop" and (node.op.chooses or position in node.op.idle))


def worst_of(nodes: Sequence[Node]) -> tuple[int, bool]:
    """How bad the partial derivatives of a loop's body get, and whether the user's masks choose anything in it.

    Other choices (the larger of two) stay within an iteration: masks that go round cost more than they are worth.
    """
    hot = hot_of(nodes)
    inner = [node for node in nodes if node.args]
    products = [FINITE for node in inner if node.op.family == "multilinear" and node.op.labels is not None]
    return max([*[max(_badness(node, hot), node.op.inside) for node in inner], *products], default=0), any(map(_by_mask, inner))


def _by_element(node: Node) -> bool:
    """Whether an operation on elements gives it; what begins an iteration comes from none."""
    return bool(node.args) and node.op.family == "elementwise"


def reads_poles_when_idle(nodes: Sequence[Node], after: Mapping[Node, Node]) -> bool:
    """Whether loops among the nodes of a body, which may run no iteration, are given what has poles; ``after`` is what the
    values that go round become."""
    loops = [node for node in nodes if node.args and (node.op.idle or node.op.idling)]
    if not loops:
        return False
    hot, before, steep = hot_of(nodes), -1, set[Node]()
    while len(steep) > before:
        before = len(steep)
        steep.update([x for x, end in after.items() if end in steep])
        for node in nodes:
            own = node.args and (_badness(node, hot) == POLES or node.op.inside == POLES)
            if is_inexact(node.aval) and (own or not steep.isdisjoint(node.args)):
                steep.add(node)
    return any([node.op.idling or any([node.args[i] in steep for i in node.op.idle]) for node in loops])


def _by_mask(node: Node) -> bool:
    own = node.op.chooses and node.op is not EXTREME
    return own and any([isinstance(arg.aval, Aval) and arg.aval.dtype == bool for arg in node.args])


def _badness(node: Node, hot: set[Node]) -> int:
    """How bad the partial derivatives of a node get, given the nodes that may not be finite."""
    kind = node.op.partial_of(node.args)
    if kind == "finite":
        operands = [arg for arg in node.args if arg.op is not CONST and is_inexact(arg.aval)]
        return POLES if any([arg in hot for arg in operands]) else FINITE if operands else 0
    return POLES if kind == "poles" else 0


def _steepness(node: Node, position: int, hot: set[Node], wary: bool) -> int:
    """How bad the partial derivatives by one argument get, if lanes are followed there; ``wary``: of products, too."""
    lane = node.op.lanes_of(position)
    if lane is None or lane == "loop":
        return max(node.op.inside, FINITE if node.op.forks or (wary and node.op.selects) else 0) if lane else 0
    if lane in MANY:
        return POLES if node.args[position] in hot or not isinstance(node.aval, Aval) else FINITE
    if node.op.family == "multilinear":  # the numbers that it is given are taken to be finite
        every = wary and node.op.labels is not None
        return POLES if every or any([arg in hot for i, arg in enumerate(node.args) if i != position]) else 0
    return _badness(node, hot)


def wild(outputs: Sequence[Node], order: Sequence[Node], floor: int) -> tuple[set[Node], bool]:
    """The nodes whose tangent may be infinite or NaN at finite inputs; none where nothing is chosen from them.

    And whether one of them makes it so of what has been chosen: there a tangent that is known to be zero stays zero.
    """
    found: set[Node] = set()
    if not any([node.args and node.op.chooses for node in order]):
        return found, False
    hot = hot_of(ancestors(outputs, floor))
    chosen: set[Node] = set()
    matters = False
    for node in order:
        if not node.args:
            continue
        behind = any([arg in chosen for arg in node.args])
        steep = node.op.inside == POLES or (node.op.family == "elementwise" and _badness(node, hot) == POLES)
        matters = matters or (steep and behind)
        if steep or any([arg in found for arg in node.args]):
            found.add(node)
        if behind or node.op.chooses:
            chosen.add(node)
    return found, matters


def moving(node: Node, active: Sequence[int], masks: Sequence[Any], y: Any, args: Sequence[Any]) -> Any:
    """Where the tangent of an elementwise operation may be other than zero, given that of its arguments; None: anywhere."""
    total: Any = None
    for i, mask in zip(active, masks, strict=True):
        lane = node.op.lanes_of(i)
        found = lane.test(y, *args, **dict(node.params)) if isinstance(lane, Choice) else None
        if found is not None:
            own = found[0] if found[1] else np.logical_not(found[0])
            mask = own if mask is None else np.logical_and(mask, own)
        if mask is None:
            return None
        total = mask if total is None else np.logical_or(total, mask)
    return total


def select(node: Node, position: int, t: Any, y: Any, args: Sequence[Any]) -> Any:
    """A tangent of an argument, or a cotangent on its way to it, zero where the argument was not chosen."""
    lane = node.op.lanes_of(position)
    found = lane.test(y, *args, **dict(node.params)) if isinstance(lane, Choice) else None
    if found is None or found[2]:  # an explicit choice is one of tangents, too
        return t
    return np.where(found[0], t, 0) if found[1] else np.where(found[0], 0, t)


def hot_of(nodes: Sequence[Node], lookup: Callable[[Node], Any] | None = None) -> set[Node]:
    """The nodes whose value may be infinite or NaN although the inputs are; of constants, those that are."""
    found: set[Node] = set()
    for node in nodes:
        if lookup is not None and node.op is CAPTURED and is_inexact(node.aval) and not np.isfinite(_plain(lookup(node))).all():
            found.add(node)
        if is_inexact(node.aval) and node.args:
            poles = node.op.family == "elementwise" and node.op.partial_of(node.args) == "poles"
            if poles or any([arg in found for arg in node.args]):
                found.add(node)
    return found


# -- masks ---------------------------------------------------------------------------------------------------------


def apply(g: Any, lanes: Lanes | None, until: Lanes | None = None) -> Any:
    """``g``, and zero where ``lanes`` (up to ``until``) say so."""
    while g is not None and lanes is not None and lanes is not until:
        if lanes.depth - _depth(until) > (1 if np.ndim(g) else FEW):  # a mask of masks takes less time than so many choices
            return np.where(lanes.mask(until), g, 0)
        g = np.where(lanes.test, g, 0) if lanes.taken else np.where(lanes.test, 0, g)
        lanes = lanes.outer
    return g


def _apply_to(g: Any, todo: Lanes | None, until: Lanes | None) -> State:
    """``apply`` as far as ``until``; and what is then still to be applied."""
    return (apply(g, todo, until), until) if _depth(todo) > _depth(until) else (g, todo)


def mask_of(lanes: Lanes, until: Lanes | None, aval: Any) -> Any:
    """The mask that ``lanes`` are within ``until``, in the shape of ``aval`` if there is one."""
    mask = lanes.mask(until)
    if isinstance(aval, Several):
        return mask
    mask = as_mask(mask)
    return mask if aval is None or np.shape(mask) == aval.shape else np.broadcast_to(mask, aval.shape)


def as_mask(x: Any) -> Any:
    """Where an array is not zero."""
    return x if dtype_of(x) == bool else x != 0


def _known(outer: Lanes | None, test: Any, taken: bool) -> Any:
    """The mask of a choice within others, if it is known before the code runs."""
    if (outer is not None and outer.cover is None) or (isinstance(test, Tracer) and test.node.active):
        return None
    mask = as_mask(np.asarray(_plain(test)))
    mask = mask if taken else ~mask
    return mask if outer is None else outer.cover & mask


def _is_mask(node: Node) -> bool:
    """Whether an index is the user's own mask, or where that is true."""
    source = node.args[0] if node.op is ITEM else node
    return node.aval.dtype == bool or getattr(source.op, "key", None) in (np.nonzero, np.flatnonzero)


def _plain(x: Any) -> Any:
    return x.value if isinstance(x, Tracer) else x


def _each_row(spec: Any, nodes: Sequence[Node], arrays: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Whether an index is known beforehand to pick one element from every row: ``p[np.arange(n), labels]``."""
    rows = nodes[0]
    if spec != (Hole(0), Hole(1)) or rows.active or rows.aval.dtype.kind not in "iu" or rows.aval.shape != nodes[1].aval.shape:
        return False
    return np.unique(_plain(arrays[0])).size == shape[0]


def _is_one_of_each(node: Node) -> bool:
    """Whether it takes one element of each row: ``np.take_along_axis(p, labels[:, None], 1)``."""
    if getattr(node.op, "key", None) is not np.take_along_axis:
        return False
    shape, axis = list(node.args[0].aval.shape), dict(node.params).get("axis", -1)
    if axis is None:
        return False
    shape[axis] = 1
    return list(node.args[1].aval.shape) == shape


def _narrow(spec: Any, nodes: Sequence[Node], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which what an index picks is seen: 1 along the axes from which it takes all."""
    masks = any([node.aval.dtype == bool and len(node.aval.shape) != 1 for node in nodes])  # of several axes, or none
    if masks or not all([isinstance(part, (int, Hole, Slice)) for part in spec]):
        return shape
    whole = [part == EVERY for part in spec] + [True] * (len(shape) - len(spec))
    return tuple([1 if every else n for every, n in zip(whole, shape, strict=True)])


def _true_at(x: Any, spec: Any, arrays: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The mask of what an index picks from ``x``."""
    nothing = create.full(x.tape, shape, False, bool) if isinstance(x, Tracer) else np.zeros(shape, bool)
    return SETITEM(nothing, True, *arrays, spec=spec)


def _reached(node: Node, position: int, mask: Any, y: Any, args: Sequence[Any]) -> Any:
    """A mask of a node's elements as one of its argument's: of those that matter to any of them."""
    arg, lane, params = args[position], node.op.lanes_of(position), dict(node.params)
    terms, out = node.op.labels(*args, **params) if node.op.labels is not None else ([], "")
    if terms and len(set(terms[position])) == len(terms[position]):
        return _gathered(_shared(mask, out, terms[position]), np.shape(arg))
    shape = node.aval.shape if isinstance(node.aval, Aval) else np.shape(mask)
    mask = mask if np.shape(mask) == shape else np.broadcast_to(mask, shape)
    if lane == "row" or isinstance(lane, Choice):
        several = len(args) > 1 and np.ndim(args[1])  # quantiles
        mask = np.any(mask, axis=tuple(range(np.ndim(args[1])))) if several else mask
        back = expand(mask, arg, params.get("axis"), params.get("keepdims", False))
    elif lane == "scan":
        back = _scanned(mask, arg, params.get("axis"))
    elif lane == "stack":
        whole = _of_stack(mask, max([np.ndim(x) - 2 for x in args]))
        back = np.reshape(whole, (*np.shape(whole), 1, 1))
    elif lane == "mixed":  # whatever is not a number there comes from what is none here
        factors = [i for i in range(len(args)) if i != position and node.op.differentiable(i)]
        ones = [true_like(mask, Aval(np.shape(x), _FLOAT, "array")) if i in factors else x for i, x in enumerate(args)]
        back = np.isnan(fit_to(node.op.vjp(position, nan_where(mask, node.aval), y, ones, params), node.args[position]))
    else:
        back = as_mask(node.op.vjp(position, mask, y, args, params))
    return _gathered(back, np.shape(arg))


_FLOAT = np.dtype(float)


def nan_where(mask: Any, aval: Any) -> Any:
    """No number where a mask says so; of complex numbers neither part is one, for an operation may read only one of them."""
    found = np.where(mask, np.nan, 0.0)
    return found * (1 + 1j) if isinstance(aval, Aval) and aval.dtype.kind == "c" else found


def _of_stack(mask: Any, axes: int) -> Any:
    """The mask of the matrices of a stack over so many axes, given that of what is made of each."""
    return np.any(mask, axis=tuple(range(axes, np.ndim(mask)))) if np.ndim(mask) > axes else mask


def _scanned(mask: Any, arg: Any, axis: Any) -> Any:
    """The mask of what a scan has gone over."""
    if axis is None:
        return np.reshape(_scanned(np.ravel(mask), mask, 0), np.shape(arg))
    return np.flip(np.cumsum(np.flip(mask, axis), axis), axis) > 0


def _shared(mask: Any, out: str, term: str) -> Any:
    """The mask of a product's factor, whose axes are ``term``, those of the product ``out``: 1 long where only it has one."""
    sizes = dict(zip(out, (1,) * (len(out) - np.ndim(mask)) + np.shape(mask), strict=True))
    kept = [label for label in out if label in term]
    if any([n != 1 for label, n in sizes.items() if label not in term]):
        mask = np.any(np.reshape(mask, list(sizes.values())), axis=tuple([i for i, c in enumerate(out) if c not in term]))
    order = sorted(range(len(kept)), key=lambda i: term.index(kept[i]))
    if order != sorted(order):
        mask = np.transpose(np.reshape(mask, [sizes[label] for label in kept]), order)
    return np.reshape(mask, [sizes.get(label, 1) for label in term])


def _gathered(mask: Any, shape: tuple[int, ...]) -> Any:
    """The mask of what was broadcast from ``shape``: true where it is true in any place that it went to."""
    extra = np.ndim(mask) - len(shape)
    axes = tuple(i for i, n in enumerate(np.shape(mask)) if i < extra or (n != 1 and shape[i - extra] == 1))
    if not axes:
        return mask
    found, kept = np.any(mask, axis=axes), [1 if i in axes else n for i, n in enumerate(np.shape(mask))][max(extra, 0) :]
    return found if np.shape(found) == tuple(kept) else np.reshape(found, kept)


def true_like(x: Any, aval: Aval) -> Any:
    """An array of ones, or of true, in the trace of ``x`` if it has one."""
    if isinstance(x, Tracer):
        return create.full(x.tape, aval.shape, True, aval.dtype)
    return np.ones(aval.shape, aval.dtype)


def _union(one: Lanes | None, other: Lanes | None, common: Lanes | None) -> Lanes | None:
    """The lanes of a sum."""
    assert one is not None
    assert other is not None
    cover = None
    if one.cover is not None and other.cover is not None and common is None:
        cover = one.cover | other.cover
        if cover.all():
            return None
    first, second = _tail(one, common), _tail(other, common)
    opposite = first.key == second.key and first.taken != second.taken  # type: ignore[union-attr]
    ends = second if opposite and one is first else common, first if opposite and other is second else common
    test = lambda: np.logical_or(mask_of(one, ends[1], None), mask_of(other, ends[0], None))
    return Lanes(common, ("or", one, other), test, True, min(one.explicit, other.explicit), cover, (one, other))


def _depth(lanes: Lanes | None) -> int:
    return 0 if lanes is None else lanes.depth


def _common(one: Lanes | None, other: Lanes | None) -> Lanes | None:
    """The innermost lanes that two are within."""
    while one is not other:
        if _depth(one) >= _depth(other):
            one = one.outer  # type: ignore[union-attr]
        else:
            other = other.outer  # type: ignore[union-attr]
    return one


def _tail(lanes: Lanes | None, common: Lanes | None) -> Lanes | None:
    """The outermost of ``lanes`` within ``common``; None where they are the same."""
    found = None
    while lanes is not common:
        assert lanes is not None
        found, lanes = lanes, lanes.outer
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tracer) and isinstance(b, Tracer):
        return a.node is b.node
    return a is b


def fit_to(part: Any, arg: Node) -> Any:
    """A cotangent made to fit a node; None stays None."""
    aval, kind = arg.aval, type(part)
    if kind is Tracer:
        if part.node.aval == aval:
            return part
    elif kind is np.ndarray and part.shape == aval.shape and part.dtype is aval.dtype:
        return part
    return part if part is None or not isinstance(aval, Aval) else fit(part, aval)


def mask_like(x: Any, value: bool) -> Any:
    """A mask for ``x``, in its trace if it has one: the same throughout."""
    if type(x) is Tracer:
        return x.tape.constant_like(value, aval_of_mask(x.node.aval))
    return np.full(np.shape(x), value) if np.ndim(x) else np.bool_(value)


def aval_of_mask(aval: Aval) -> Aval:
    """What is known of a mask for a value of this kind: an array, or a NumPy bool for a number."""
    return aval._replace(dtype=np.dtype(bool), kind="array" if aval.shape else "scalar")
