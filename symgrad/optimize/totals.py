"""Loops in loops that add up from zero what is then added to a total: they begin with that total.

The derivative of a loop in a loop by what both read is a sum for each iteration of the outer one, which is added to those
before: ``g = zeros(n)``, ``for ...: g[i] += v``, ``total = total + g``. The inner loop adds to the total itself, which takes no
array of its own, nor a pass through it, in each iteration.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from symgrad.ir import Aval, Node
from symgrad.ops import index
from symgrad.ops.engine import ITEM
from symgrad.optimize.loops import inside
from symgrad.optimize.rewriting import Simplifier, is_op, is_zero
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop


def totals(program: Program) -> Program:
    """The same program, its loops in loops beginning with the totals that they are for."""
    nested = any([isinstance(node.op, Loop) and _has_loop(node.op.body) for node in program.nodes()])
    return inside(program, _begun) if nested else program


def _has_loop(body: Body) -> bool:
    return any([isinstance(node.op, Loop) for node in body.nodes()])


def _begun(program: Program) -> Program:
    nodes = program.nodes()
    if not any([isinstance(node.op, Loop) for node in nodes]):
        return program
    plans = _plans(nodes, Counter([*[arg for node in nodes for arg in node.args], *program.roots()]))
    return _Beginner(program, plans).run() if plans else program


def _plans(nodes: list[Node], used: Counter[Node]) -> dict[Node, dict[int, tuple[Node, Node]]]:
    """By loop and number of a carried value: the sum of its result and a total, and that total."""
    place = {node: i for i, node in enumerate(nodes)}
    plans: dict[Node, dict[int, tuple[Node, Node]]] = {}
    for node in nodes:
        if not is_op(node, np.add) or node.phase is None or not isinstance(node.aval, Aval) or not node.aval.shape:
            continue
        for total, part in (node.args, node.args[::-1]):
            loop = part.args[0] if part.op is ITEM and used[part] == 1 else part
            if not isinstance(loop.op, Loop) or place.get(total, -1) > place[loop]:
                continue
            i = dict(part.params)["item"]
            same = total.aval == node.aval == part.aval and i not in plans.get(loop, ())
            if same and i < len(loop.op.body.carry) and is_zero(loop.args[i]) and _is_added_to(loop.op.body, i):
                plans.setdefault(loop, {})[i] = node, total
                break
    return plans


def _is_added_to(body: Body, i: int) -> bool:
    """Whether all that iterations do with a carried value is to add to it."""
    (last, aval), nodes = (body.carry[i], body.carry[i].aval), body.nodes()
    used = Counter([*[arg for node in nodes for arg in node.args], *body.after, *body.saved])
    for node in nodes:
        if last not in node.args:
            continue
        adds = (is_op(node, np.add) or node.op is index.INDEX_ADD) and node.args[0] is last
        adds = adds or (is_op(node, np.add) and node.args[1] is last)
        if not adds or used[last] != 1 or node.aval != aval:
            return False
        last = node
    return last is body.after[i] and used[last] == 1 and last is not body.carry[i]


class _Beginner(Simplifier):
    def __init__(self, program: Program, plans: dict[Node, dict[int, tuple[Node, Node]]]) -> None:
        super().__init__(program, {})
        self.plans = plans
        every = [pair for found in plans.values() for pair in found.values()]
        self.sums = {node: node.args[node.args[0] is total] for node, total in every}

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node in self.sums:
            return next(arg for arg, old in zip(args, node.args, strict=True) if old is self.sums[node])
        begins = {i: self.mapping[total] for i, (_, total) in self.plans.get(node, {}).items()}
        return super().visit(node, tuple([begins.get(i, arg) for i, arg in enumerate(args)]))
