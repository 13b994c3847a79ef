"""Algebra: the table of rewrites that code for readers goes through, too. What a rewrite is, and may do, ``rewriting`` says."""

from __future__ import annotations

import functools
from typing import Any

from symgrad.ir import Node
from symgrad.ops import engine
from symgrad.optimize import rewriting
from symgrad.optimize.cuts import CUTS
from symgrad.optimize.identities import IDENTITIES
from symgrad.optimize.places import PLACES
from symgrad.optimize.rewriting import Rewrite, Simplifier
from symgrad.optimize.scales import SCALES
from symgrad.optimize.sums import SUMS
from symgrad.optimize.zeros import ZEROS
from symgrad.program import Program

EXPANSIONS: dict[Any, list[Rewrite]] = {}  # of what is there for derivatives alone, which no code can do without

expand = functools.partial(rewriting.rewrite, rules=EXPANSIONS, exact=True)


@expand(engine.IDENTITY, engine.NAMED, engine.STOP)
def identity(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    return args[0]


@expand(engine.ITEM)
def result_itself(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """A custom function's result is what its body computed; only derivatives care for the node behind it."""
    behind = args[0].op.behind
    return None if behind is None else args[0].args[behind + dict(node.params)["item"]]


@expand(engine.INDEX)
def index_is_a_number(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The index of a loop that was not rolled up."""
    return s.graph.const(dict(node.params)["value"])


RULES = rewriting.merged(EXPANSIONS, SCALES, PLACES, IDENTITIES, SUMS, ZEROS, CUTS)


def simplify(program: Program) -> Program:
    """The same program, simplified."""
    return Simplifier(program, RULES).run()
