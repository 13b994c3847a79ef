"""The passes that a program goes through on its way to code, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad import progress
from symgrad.optimize.chains import chains
from symgrad.optimize.contract import contract
from symgrad.optimize.distribute import distribute
from symgrad.optimize.elements import elements
from symgrad.optimize.factors import factors
from symgrad.optimize.hoist import hoist
from symgrad.optimize.layout import layout
from symgrad.optimize.loops import expand, has_slack, inside, trim_loops
from symgrad.optimize.lower import lower
from symgrad.optimize.products import products
from symgrad.optimize.scalarize import is_worth, scalarize
from symgrad.optimize.share import keep, keeps_lists, merged, share
from symgrad.optimize.simplify import simplify
from symgrad.optimize.split import split
from symgrad.optimize.structure import structure
from symgrad.optimize.taps import taps
from symgrad.optimize.totals import totals
from symgrad.optimize.uncut import uncut
from symgrad.optimize.undo import undo
from symgrad.optimize.windows import windows
from symgrad.program import Program
from symgrad.transform.loop import Loop


def _loops(program: Program) -> Program:
    """Loops that others cover go first: what is not read of those will not be there any more."""
    return totals(trim_loops(merged(program)))


#: What makes code better for readers too, and what only the code that runs goes through.
SHARED: dict[str, Callable[[Program], Program]] = {"loops": _loops, "share": share, "simplify": simplify}
FAST: dict[str, Callable[[Program], Program]] = {
    "undo": undo,
    "structure": structure,
    "chains": chains,
    "taps": taps,
    "contract": contract,
    "lower": lower,
    "factors": factors,
    "products": products,
    "layout": layout,
}
#: Of which it takes one at the end: numbers, or arrays of all iterations of a loop.
ENDS: dict[str, Callable[[Program], Program]] = {"scalarize": scalarize, "distribute": distribute}
#: And what comes last.
LAST: dict[str, Callable[[Program], Program]] = {"windows": windows, "uncut": uncut, "elements": elements, "hoist": hoist}
#: What the bodies of loops go through before.
_INSIDE = ("undo", "structure", "taps", "contract", "layout", "lower", "factors", "distribute")
INSIDE = {name: (FAST | ENDS)[name] for name in _INSIDE}


def improve(program: Program, off: frozenset[str]) -> Program:
    """The program that readers are shown, and that is sped up; ``off`` names the passes that are switched off."""
    if not off.isdisjoint(SHARED):
        program = expand(program)  # which they do by the way
    program = _through(SHARED, program, off)
    again = off.isdisjoint(SHARED) and has_slack(program)  # by what is known of their arguments now
    return _through(SHARED, program, off) if again else program


def for_readers(program: Program, off: frozenset[str]) -> Program:
    """An improved program as readers see it."""
    return _through({"windows": windows}, program, off)


def speed_up(program: Program, off: frozenset[str]) -> Program:
    """An improved program as it runs."""
    if not any(isinstance(node.op, Loop) for node in program.nodes()):
        return _through(LAST, _taken_through(program, off), off)
    program = _through({"split": split}, program, off)
    kept = inside(program, lambda body: _through({"undo": undo, "keep": keep}, body, off))
    kept = _through({"keep": keep}, kept, off)
    faster = _taken_through(program, off)
    if keeps_lists(kept):
        kept = _taken_through(kept, off)  # but as numbers, a program may compute again in less time
        faster = faster if faster.apart and is_worth(faster, kept) else kept
    return _through(LAST, faster, off)


def _taken_through(program: Program, off: frozenset[str]) -> Program:
    program = _through(FAST, inside(program, lambda body: _through(INSIDE, body, off)), off)
    apart, whole = (_through({name: step}, program, off) for name, step in ENDS.items())
    return apart if apart.apart and is_worth(apart, whole) else whole


def _through(passes: dict[str, Any], program: Program, off: frozenset[str]) -> Program:
    for name, step in passes.items():
        if name not in off:
            progress.at(name)
            program = step(program)
    return program
