"""Which of the functions that a function calls can be seen to change nothing but their own locals."""

from __future__ import annotations

import dis
import itertools
import math
import sys
from collections.abc import Collection
from opcode import _nb_ops  # type: ignore[attr-defined]
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from symgrad.source.origins import MUTATORS, PLAIN, is_users, variables_in

# Python's own; the others may go through an iterator
QUIET = frozenset("len min max abs float int bool sum round pow".split())
_OTHERS = frozenset("range enumerate zip sorted isinstance divmod complex slice tuple list str".split())
_OWN = QUIET | _OTHERS
# which write into what they are given, or call it
WRITERS = frozenset(
    "at copyto fill fill_diagonal itemset partition place put put_along_axis putmask random resize setfield setflags"
    " apply_along_axis apply_over_axes piecewise vectorize frompyfunc fromfunction".split()
)
# the names of arguments that are written into, or called; None for what is not known
CHANGING = frozenset(["out", "copy", "overwrite_input", "key", "func", None])
# what is looked up of arrays, and of modules, and changes none
OF_ARRAYS = frozenset(dir(np.ndarray)) - MUTATORS - WRITERS
LOOKED_UP = OF_ARRAYS.union(dir(np), dir(np.linalg), dir(math)) - MUTATORS - WRITERS
_WORDS = [word for word in CHANGING if word is not None]
_IN_PLACE = {number for number, (_, sign) in enumerate(_nb_ops) if sign.endswith("=")}
_STORES = ("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")
_NULL_IS_LAST = sys.version_info >= (3, 13)  # it follows what is called
_LOCAL = ("LOAD_FAST", "LOAD_DEREF")
_DEEP = 4  # calls of calls that are looked into


def is_quiet(name: str, fun: FunctionType, local: Collection[str]) -> bool:
    """Whether what ``fun`` calls by a name that is none of its ``local`` variables changes nothing but its own locals."""
    within = [item for item in fun.__code__.co_consts if isinstance(item, CodeType)]
    if name in local:
        return False
    if name in [item.co_name for item in within]:
        known = {item.co_name for item in within}.difference(local)
        return all([_leaves_all(item, fun.__globals__, 0, known) for item in within])
    if name in fun.__code__.co_freevars:
        cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
        try:
            return _is_quiet(cells[name].cell_contents, 0)
        except ValueError:  # nothing yet
            return False
    return name in _OWN if name not in fun.__globals__ else _is_quiet(fun.__globals__[name], 0)


def _is_quiet(value: Any, depth: int) -> bool:
    if isinstance(value, (ModuleType, np.ufunc, np.ndarray, type(np.sum), *PLAIN)):
        return True
    if not isinstance(value, FunctionType) or not is_users(value) or depth > _DEEP:
        return False
    try:
        held = [cell.cell_contents for cell in value.__closure__ or ()]
    except ValueError:
        return False
    code = value.__code__
    return all([_is_quiet(item, depth + 1) for item in held]) and _leaves_all(code, value.__globals__, depth, code.co_freevars)


def _leaves_all(code: CodeType, scope: dict[str, Any], depth: int, known: Collection[str]) -> bool:
    """Whether code changes nothing, and mentions nothing that may. The variables from around it that are ``known`` do not."""
    steps = [*dis.get_instructions(code)]
    for step in steps:
        if step.opname in _STORES or step.opname.startswith("DELETE_"):
            return False
        if step.opname == "BINARY_OP" and step.arg in _IN_PLACE:
            return False
    for before, step in itertools.pairwise(steps):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and before.opname.startswith(_LOCAL) and step.argval not in OF_ARRAYS:
            return False  # it may be a method of the user's, of that name
        null, called = (step, before) if _NULL_IS_LAST else (before, step)
        plain = called.opname == "LOAD_ATTR" or (called.opname == "LOAD_DEREF" and called.argval in known)
        if null.opname == "PUSH_NULL" and not plain:
            return False  # it calls what it is given, or has made
    variables = variables_in(code)
    takes_out = any([type(item) is tuple and any([word in item for word in _WORDS]) for item in code.co_consts])
    if takes_out or ({*code.co_names} - variables) - LOOKED_UP:
        return False
    quiet = [_is_quiet(scope[name], depth + 1) if name in scope else name in _OWN for name in variables]
    return all(quiet) and all([_leaves_all(item, scope, depth, known) for item in code.co_consts if isinstance(item, CodeType)])
