"""Which of the functions that a function calls can be seen to change nothing but their own locals."""

from __future__ import annotations

import dis
import math
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
_WRITERS = frozenset(
    "at copyto fill fill_diagonal itemset partition place put put_along_axis putmask random resize setfield setflags".split()
)
# what is looked up of arrays and modules, and changes none
LOOKED_UP = frozenset([*dir(np), *dir(np.ndarray), *dir(np.linalg), *dir(math)]) - MUTATORS - _WRITERS
_IN_PLACE = {number for number, (_, sign) in enumerate(_nb_ops) if sign.endswith("=")}
_STORES = ("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")
_DEEP = 4  # calls of calls that are looked into


def is_quiet(name: str, fun: FunctionType, local: Collection[str]) -> bool:
    """Whether what ``fun`` calls by a name that is none of its ``local`` variables changes nothing but its own locals."""
    within = [item for item in fun.__code__.co_consts if isinstance(item, CodeType)]
    if name in local:
        return False
    if name in [item.co_name for item in within]:
        return all([_leaves_all(item, fun.__globals__, 0) for item in within])
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
    return all([_is_quiet(item, depth + 1) for item in held]) and _leaves_all(value.__code__, value.__globals__, depth)


def _leaves_all(code: CodeType, scope: dict[str, Any], depth: int) -> bool:
    """Whether code changes nothing, and mentions nothing that may."""
    for step in dis.get_instructions(code):
        if step.opname in _STORES or step.opname.startswith("DELETE_"):
            return False
        if step.opname == "BINARY_OP" and step.arg in _IN_PLACE:
            return False
    variables = variables_in(code)
    takes_out = any([type(item) is tuple and "out" in item for item in code.co_consts])
    if takes_out or ({*code.co_names} - variables) - LOOKED_UP:
        return False
    known = [_is_quiet(scope[name], depth + 1) if name in scope else name in _OWN for name in variables]
    return all(known) and all([_leaves_all(item, scope, depth) for item in code.co_consts if isinstance(item, CodeType)])
