"""How the iterations of a loop run where no code is printed for it: as a trace meets it, and in dynamic mode.

A body becomes steps on numbered slots. Where there are many iterations, these become a function of their own, which takes half
the time.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Node
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.index import GETITEM, Hole, fill
from symgrad.tracing.trace import IN_PLACE, OF_A_LOCAL, compute_anyway, without_errors

MANY = 150  # iterations, from which on it pays to make a function of them


class Step(NamedTuple):
    """Where the result goes, the function, where its arguments are, and its parameters; whether it takes a list of arguments,
    which nobody needs any more, and the parameters; and the slots that are read for the last time, if anything is written into
    arrays."""

    out: int
    fun: Callable[..., Any]
    places: list[int]
    params: dict[str, Any]
    given_up: bool
    ended: list[int]


class Iterations:
    """Runs a body: its ``inputs`` are what is carried, the index, elements of sequences, and what is the same in all of them.

    What is carried is what is ``after`` an iteration; ``test`` is the place there of what says whether there is another one.
    """

    def __init__(self, body: Any, start: int, step: int, test: int | None) -> None:
        self.start, self.step, self.test = start, step, test
        self.counts = len(body.carry), len(body.elements), len(body.invariants)
        nodes = body.nodes()
        places: dict[Node, int] = {}
        for i, node in enumerate([*body.inputs, *nodes]):
            places.setdefault(node, i)
        self.width = len(body.inputs) + len(nodes)
        self.constants = [(i, dict(node.params)["value"]) for node, i in places.items() if node.op is CONST]
        self.constants += [(i, body.graph.arrays[node]) for node, i in places.items() if node.op is CAPTURED]
        fixed = {*(places[node] for node in (body.index, *body.elements, *body.invariants)), *(i for i, _ in self.constants)}
        self.after, self.saved = [places[node] for node in body.after], [places[node] for node in body.saved]
        self.made = sorted({*self.after} - fixed)  # what an iteration ends with, and did not get from outside
        last = {places[arg]: node for node in nodes for arg in node.args}
        ended: dict[Node, list[int]] = {}
        self.writes = any([node.op.moved or (node.op in IN_PLACE and node.aval.shape) for node in nodes if _computes(node)])
        if self.writes:
            for place, node in last.items():
                if place not in fixed and place not in self.after and place not in self.saved:
                    ended.setdefault(node, []).append(place)
        self.steps = [_step(node, places, ended.get(node, [])) for node in nodes if _computes(node)]
        self._ran = 0

    def run(
        self, turns: Iterable[Any], often: int | None, args: tuple[list[Any], list[Any], list[Any]], anyway: bool = False
    ) -> tuple[list[Any], list[list[Any]]]:
        """What is carried in the end, and what each iteration saves.

        ``turns`` are the iterations' numbers, None for those before which ``test`` is asked, ``often`` how many there are, if
        that is known. ``args`` are what is carried, sequences, and the rest; nobody else needs the first. ``anyway``: Python's
        numbers raise no error.
        """
        carry, sequences, invariants = args
        saved: list[list[Any]] = [[] for _ in self.saved]
        if often is not None:
            self._ran += often
        if self._ran < MANY and often is not None:
            return self._by_steps(turns, carry, sequences, invariants, saved, anyway)[0], saved
        if anyway:
            return self._anyway(turns, carry, sequences, invariants, saved, often)
        turns = iter(turns)
        if self._ran < MANY:
            carry, done = self._by_steps(itertools.islice(turns, MANY), carry, sequences, invariants, saved, False)
            if done < MANY:
                self._ran += done
                return carry, saved
            self._ran = MANY
        return self._function(turns, carry, sequences, invariants, saved), saved

    def _anyway(
        self,
        turns: Iterable[Any],
        carry: list[Any],
        sequences: list[Any],
        invariants: list[Any],
        saved: list[list[Any]],
        often: Any,
    ) -> tuple[list[Any], list[list[Any]]]:
        """A run where Python's numbers may raise, which is begun again, then."""
        if often is not None:
            numbers = [*turns]
            try:
                return self._function(numbers, [*carry], sequences, invariants, saved), saved
            except (ZeroDivisionError, OverflowError):
                turns, saved = numbers, [[] for _ in saved]
        return self._by_steps(turns, carry, sequences, invariants, saved, True)[0], saved

    def _by_steps(
        self,
        turns: Iterable[Any],
        carry: list[Any],
        sequences: list[Any],
        invariants: list[Any],
        saved: list[list[Any]],
        anyway: bool,
    ) -> tuple[list[Any], int]:
        """One operation after the other; how many iterations there were, too."""
        n, done = len(carry), 0
        slots: list[Any] = [None] * self.width
        first = n + 1 + len(sequences)
        slots[first : first + len(invariants)] = invariants
        for i, value in self.constants:
            slots[i] = value
        for i in turns:
            if i is None:
                if not carry[self.test]:  # type: ignore[index]
                    break
                i = 0
            slots[:n] = carry
            carry.clear()
            slots[n] = self.start + self.step * i
            for j, sequence in enumerate(sequences):
                slots[n + 1 + j] = sequence[i]
            for out, fun, places, params, given_up, ended in self.steps:
                values = [slots[p] for p in places]
                for p in ended:
                    slots[p] = None
                try:
                    if given_up and anyway and isinstance(getattr(fun, "__self__", None), Op):
                        slots[out] = fun.__self__.anyway(*values, **params)  # type: ignore[attr-defined]
                    elif given_up:
                        slots[out] = fun(values, params)
                    elif params:
                        slots[out] = fun(*values, **params)
                    else:
                        slots[out] = fun(*values)
                except (ZeroDivisionError, OverflowError):
                    if not anyway:
                        raise
                    slots[out] = without_errors(fun, values, params)
            carry += [slots[p] for p in self.after]
            for some, p in zip(saved, self.saved, strict=True):
                some.append(slots[p])
            for p in self.made:
                slots[p] = None
            done += 1
        return carry, done

    @functools.cached_property
    def _function(self) -> Callable[..., list[Any]]:
        """The same as one function, in which Python's numbers raise what they do."""
        space: dict[str, Any] = {f"v{place}": value for place, value in self.constants}
        n, m, k = self.counts
        lines = ["def run(turns, carry, sequences, invariants, saved):"]
        for items, names in (
            ("carry", [f"v{i}" for i in range(n)]),
            ("sequences", [f"s{j}" for j in range(m)]),
            ("invariants", [f"v{n + 1 + m + i}" for i in range(k)]),
            ("[some.append for some in saved]", [f"a{j}" for j in range(len(self.saved))]),
        ):
            lines += [f"    {_listed(names)} = {items}"] * bool(names)
        lines += ["    carry.clear()", "    for i in turns:"]
        if self.test is not None:
            lines += ["        if i is None:", f"            if not v{self.test}: break", "            i = 0"]
        if any([n in places for places in (*[step.places for step in self.steps], self.after, self.saved)]):
            lines.append(f"        v{n} = {self.start} + {self.step} * i")
        lines += [f"        v{n + 1 + j} = s{j}[i]" for j in range(m)]
        for step in self.steps:
            lines += [f"        {line}" for line in _spelled(step, space)]
        lines += [f"        a{j}(v{place})" for j, place in enumerate(self.saved)]
        carried = [f"v{i}" for i in range(n)]
        if n:
            lines.append(f"        {_listed(carried)} = {_listed([f'v{place}' for place in self.after])}")
        made = [f"v{place}" for place in self.made if place >= n]
        if self.writes and made:  # nobody else holds what is carried
            lines.append(f"        {' = '.join(made)} = None")
        lines.append(f"    return [{', '.join(carried)}]")
        exec(compile("\n".join(lines), "<symgrad iterations>", "exec"), space)
        run: Callable[..., list[Any]] = space["run"]
        return run


def _listed(names: list[str]) -> str:
    return ", ".join(names) + ","


def _spelled(step: Step, space: dict[str, Any]) -> list[str]:
    """The lines of one step; what it calls is put into their ``space``."""
    out, fun, places, params, given_up, ended = step
    args = [f"v{place}" for place in places]
    gone = [f"{' = '.join([f'v{place}' for place in ended])} = None"] if ended else []
    symbol = _SYMBOLS.get(fun) if not params and len(args) == 2 else None
    if symbol is not None:
        return [f"v{out} = {args[0]} {symbol} {args[1]}", *gone]
    space[f"f{out}"], space[f"p{out}"] = fun, params
    if given_up:
        return [f"values = [{', '.join(args)}]", *gone, f"v{out} = f{out}(values, p{out})"]
    return [f"v{out} = f{out}({', '.join([*args, f'**p{out}'] if params else args)})", *gone]


_SYMBOLS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.lt: "<", operator.gt: ">",
}  # fmt: skip


def _computes(node: Node) -> bool:
    return node.op not in (CONST, CAPTURED, INPUT)


def _step(node: Node, places: dict[Node, int], ended: list[int]) -> Step:
    (fun, params), given_up = _bound(node), node.op.moved is not None
    if given_up:
        fun = node.op.moved
    elif node.op in IN_PLACE and node.aval.shape:
        fun, given_up = functools.partial(_write, fun, IN_PLACE[node.op]), True
    elif node.phase is not None and node.op in _RAISING and not node.aval.shape:
        fun = functools.partial(_of_a_derivative, node.op)
    return Step(places[node], fun, [places[arg] for arg in node.args], params, given_up, ended)


def _bound(node: Node) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function of a node, and its parameters: of what takes a part of an array, or makes one of numbers, in less time than
    what does so for all."""
    params = dict(node.params)
    if node.op is GETITEM and node.args[0].aval.kind == "array":
        if len(node.args) == 1:
            return functools.partial(_part, fill(params["spec"], ())), {}
        if params["spec"] == (Hole(0),):
            return _at, {}
    if node.op is _STACK and params == {"axis": 0} and {(*arg.aval[:2],) for arg in node.args} == {((), node.aval.dtype)}:
        return _array, {}
    return node.op.fun, params


def _part(key: Any, x: Any) -> Any:
    return (x if type(x) is np.ndarray else np.asarray(x))[key]


def _at(x: Any, place: Any) -> Any:
    return (x if type(x) is np.ndarray else np.asarray(x))[place]


def _array(*numbers: Any) -> Any:
    return np.array(numbers)


_STACK = REGISTRY[np.stack]
_RAISING = {REGISTRY[fun] for fun in (np.true_divide, np.floor_divide, np.remainder, np.power)}


def _of_a_derivative(op: Op, *values: Any, **params: Any) -> Any:
    """A number of a derivative, which may be at a pole."""
    return compute_anyway(op, [*values], params)


def _write(fun: Callable[..., Any], in_place: Callable[..., Any], values: list[Any], params: Any) -> Any:
    """A write into an array, which is no copy if nobody else holds it, nor a view of it but what is written."""
    base, value, *arrays = values
    values.clear()
    if not isinstance(base, np.ndarray):
        return fun(base, value, *arrays, **params)
    if isinstance(value, np.ndarray) and value.base is base and value.size < base.size:
        value = value.copy()
    alone = type(base) is np.ndarray and base.base is None and sys.getrefcount(base) <= OF_A_LOCAL
    return (in_place if alone else fun)(base, value, *arrays, **params)
