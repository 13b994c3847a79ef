"""What is made of the places that a slice names, whose ends are known at run time alone: of these alone, in code.

A trace has ``x[:i]`` as all of ``x``, with zeros elsewhere, and writes into it as all of ``x``, with other values there (see
``symgrad.ops.index``): their shapes are those of ``x`` in each iteration. Code that runs takes slices again, where it can:
``np.dot(x[:i], y[:i])``, ``x[:i] += v[:i]``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir import Node
from symgrad.ops.core import REGISTRY
from symgrad.ops.index import CUT, CUT_OUT, DOT, EVERY, GETITEM, IN_SLICE, INDEX_ADD, SETITEM, SPLICE, Cut, Hole, Spec
from symgrad.optimize import rewriting
from symgrad.optimize.rewriting import Rewrite, Simplifier, is_number

CUTS: dict[Any, list[Rewrite]] = {}

rewrite = functools.partial(rewriting.rewrite, rules=CUTS)


@rewrite(np.where, of=(IN_SLICE,), exact=True)
def chosen_by_a_slice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What a slice names, and zeros."""
    mask, x, other = args
    if mask.op is not IN_SLICE or not is_number(other, 0.0) or x.aval != node.aval or len(x.aval.shape) != 1:
        return None
    return s.graph.add(CUT, (x, *mask.args), (), node.aval)


@rewrite(CUT, of=(CUT,), exact=True)
def cut_twice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0] if args[0].op is CUT and args[0].args[1:] == args[1:] else None


@rewrite(np.add, of=(CUT_OUT,))
def put_together(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What a slice names of one, and the rest of another, or of the same one."""
    for rest, part in (args, args[::-1]):
        if rest.op is CUT_OUT and part.op is CUT and rest.args[1:] == part.args[1:] and rest.aval == part.aval == node.aval:
            x, y = rest.args[0], part.args[0]
            return x if x is y else s.graph.add(SPLICE, (x, y, *part.args[1:]), (), node.aval)
    return None


def taken(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The same by a slice; None for what is no such thing."""
    rule = RULES.get(node.op)
    return None if rule is None else rule(s, node, args)


def _dot(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    ends = {arg.args[1:] if arg.op is CUT and len(arg.aval.shape) == 1 else None for arg in args}
    if len(ends) > 1 or None in ends or any([s.used.get(arg, 0) > args.count(arg) for arg in args]):
        return None
    return s.graph.add(DOT, (*[arg.args[0] for arg in args], *args[0].args[1:]), (), node.aval)


def _splice(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node:
    """A write."""
    return _written(s, SETITEM, node, args)


def _write(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A row that is written back, with other values in places that a slice names: these alone are."""
    base, value, *places = args
    spec = dict(node.params)["spec"]
    if value.op is not SETITEM or dict(value.params)["spec"] != _ALL or not _has_rows(spec, places):
        return None
    row, new, *ends = value.args
    same = row.op is GETITEM and row.args == (base, *places) and dict(row.params)["spec"] == spec
    return _written(s, SETITEM, node, (base, new, *ends), places, spec) if same else None


def _add_at(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    base, value, *places = args
    spec = dict(node.params)["spec"]
    if value.op is not CUT or not _has_rows(spec, places):
        return None
    return _written(s, INDEX_ADD, node, (base, *value.args), places, spec)


def _add(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    for x, more in (args, args[::-1]):
        if more.op is CUT and x.aval == node.aval == more.aval:
            return _written(s, INDEX_ADD, node, (x, *more.args))
    return None


def _cut_out(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node:
    x, *ends = args
    return _written(s, SETITEM, node, (x, s.graph.const(0.0), *ends))


def _written(
    s: Simplifier, op: object, node: Node, args: Sequence[Node], places: Sequence[Node] = (), spec: Spec = (EVERY,)
) -> Node:
    """The write, or the sum, of ``(base, value, start, stop)``, where an index has its first ``:``."""
    base, value, *ends = args
    axis = spec.index(EVERY)
    part = Cut(len(places), len(places) + 1)
    where = (*spec[:axis], part, *spec[axis + 1 :])
    return s.graph.add(op, (base, value, *places, *ends), (("spec", where),), node.aval)


def _has_rows(spec: Spec, places: Sequence[Node]) -> bool:
    """Whether an index has ``:``, and that is the first axis of what it names of an array."""
    before = spec[: spec.index(EVERY)] if EVERY in spec else spec
    numbers = all([type(part) in (int, Hole) for part in before]) and not any([place.aval.shape for place in places])
    return EVERY in spec and numbers


_ALL = (Cut(0, 1),)
RULES: dict[object, Callable[..., Node | None]] = {
    REGISTRY[np.dot]: _dot,
    SPLICE: _splice,
    SETITEM: _write,
    INDEX_ADD: _add_at,
    REGISTRY[np.add]: _add,
    CUT_OUT: _cut_out,
}
