"""The user's code from inside: which line runs, which variable a result goes to, and what to write in place of a call."""

from __future__ import annotations

import ast
import builtins
import importlib
import linecache
import os
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from itertools import islice
from opcode import opname
from traceback import walk_tb
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from symgrad.source.instrument import parsed
from symgrad.source.origins import OWN

Line = tuple[str, int]
HIDDEN = "__symgrad"  # how the names of locals begin that are not the user's

_NUMPY = os.path.dirname(np.__file__)
_SCIPY = os.path.join(os.path.dirname(_NUMPY), "scipy") + os.sep
_INTERNAL = (OWN, _NUMPY + os.sep, _SCIPY, "<symgrad ", "<__array_function__")
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_SPARSE = (
    "SciPy's sparse arrays take traced arrays as factors in A @ x and A.dot(x) alone, where the source of the function is at "
    "hand; write that, or give it a rule with symgrad.primitive"
)
_foreign: dict[str, bool] = {}


def is_internal(filename: str) -> bool:
    """Whether a file is symgrad's, NumPy's, SciPy's or Python's own, rather than the user's."""
    known = _foreign.get(filename)
    if known is None:
        library = filename.startswith(_LIBRARY) and "site-packages" not in filename
        known = _foreign[filename] = library or filename.startswith(_INTERNAL)
    return known


def is_numpys(filename: str) -> bool:
    """Whether a file is NumPy's."""
    return filename.startswith(_NUMPY + os.sep)


def user_frame() -> FrameType | None:
    """The innermost frame of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def user_line() -> Line | None:
    """File and line of the user's code that runs."""
    frame = user_frame()
    return None if frame is None else line_of(frame)


class _Code(NamedTuple):
    """What is asked of a code object again and again, whose own answers take as long as it is: its instructions, and their
    lines, each from which instruction on. It is held, so that its ``id`` stays its own."""

    code: CodeType
    raw: bytes
    starts: list[int]
    lines: list[int]


_codes: dict[int, _Code] = {}


def _known(code: CodeType) -> _Code:
    found = _codes.get(id(code))
    if found is None:
        if len(_codes) > 10_000:
            _codes.clear()
        spans = [(start, line) for start, _, line in code.co_lines() if line is not None]
        found = _codes[id(code)] = _Code(code, code.co_code, [start for start, _ in spans], [line for _, line in spans])
    return found


def line_of(frame: FrameType) -> Line:
    """File and line where a frame is."""
    code, _, starts, lines = _known(frame.f_code)
    return code.co_filename, lines[bisect_right(starts, frame.f_lasti) - 1]


def where() -> str:
    """``file:line`` of the user's code, for messages."""
    line = user_line()
    return "?" if line is None else f"{line[0]}:{line[1]}"


def shown(line: Line) -> str:
    """A line for people: ``file:line`` without folders."""
    return f"{os.path.basename(line[0])}:{line[1]}"


def raised_at(traceback: TracebackType | None) -> str:
    """``file:line`` of the user's code that an exception came through last."""
    place = "?"
    while traceback is not None:
        if not is_internal(traceback.tb_frame.f_code.co_filename):
            place = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def recursing(traceback: TracebackType | None) -> str | None:
    """The library's module whose code has called itself without end; None where the user's did."""
    frames = [frame for frame, _ in walk_tb(traceback) if not frame.f_code.co_filename.startswith(OWN)]
    calls = Counter(frame.f_code for frame in frames)
    code = max(calls, key=calls.__getitem__, default=None)
    if code is None or not is_internal(code.co_filename):
        return None
    return next(str(frame.f_globals["__name__"]) for frame in frames if frame.f_code is code)


def through_scipy(traceback: TracebackType | None) -> str | None:
    """What to write instead of the call or operator of SciPy's that an exception came from; None: it came from elsewhere."""
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
        if is_internal(frame.f_code.co_filename):
            continue
        text, node = _expression(frame)
        inner = [deeper for deeper, _ in walk_tb(traceback)]
        if isinstance(node, ast.Call) and (advice := _scipys(node, frame, inner)) is not None:
            return advice
        if isinstance(node, ast.BinOp) and traceback and traceback.tb_frame.f_code.co_filename.startswith(_SCIPY):
            return f"{text}: {_SPARSE}"
    return None


# -- where a result goes -------------------------------------------------------------------------------------------

_STORES: dict[str, Callable[[Any, int], str]] = {
    "STORE_FAST": lambda code, arg: code._varname_from_oparg(arg),
    "STORE_DEREF": lambda code, arg: code._varname_from_oparg(arg),
    "STORE_NAME": lambda code, arg: code.co_names[arg],
    "STORE_GLOBAL": lambda code, arg: code.co_names[arg],
    "STORE_FAST_LOAD_FAST": lambda code, arg: code._varname_from_oparg(arg >> 4),
    "STORE_FAST_STORE_FAST": lambda code, arg: code._varname_from_oparg(arg >> 4),
}


def target(frame: FrameType | None) -> str | None:
    """The variable that the running call's result is about to be stored in: what the next instruction says.

    Where it is returned, the caller's instruction says.
    """
    for _ in range(5):
        if frame is None:
            return None
        code, raw, _, _ = _known(frame.f_code)
        at = frame.f_lasti + 2
        while at < len(raw) and raw[at] == 0:  # inline caches
            at += 2
        if at >= len(raw):
            return None
        name = opname[raw[at]]
        if name in _STORES:
            found = str(_STORES[name](code, raw[at + 1]))
            return None if found.startswith(HIDDEN) else found
        if name != "RETURN_VALUE":
            return None
        frame = frame.f_back
    return None


def unpacked(frame: FrameType | None) -> list[str]:
    """The variables of a running ``a, b = x``; none where something else runs."""
    if frame is None:
        return []
    code, raw, _, _ = _known(frame.f_code)
    at = frame.f_lasti
    if not 0 <= at < len(raw) or not opname[raw[at]].startswith("UNPACK_SEQUENCE"):
        return []
    count = raw[at + 1]
    names: list[str] = []
    at += 2
    while at < len(raw) and len(names) < count:
        name, arg = opname[raw[at]], raw[at + 1]
        if name == "STORE_FAST_STORE_FAST":
            names += [code._varname_from_oparg(arg >> 4), code._varname_from_oparg(arg & 15)]  # type: ignore[attr-defined]
        elif name in _STORES:
            names.append(str(_STORES[name](code, arg)))
        elif raw[at] != 0:  # no inline cache: the targets are more than names
            return []
        at += 2
    return names


# -- what to write instead -----------------------------------------------------------------------------------------

INTO_PLAIN = "written into a plain array"  # which every error says that an array of a followed function's would not raise
_ARRAYS = "make the array with np.zeros_like(x), np.zeros(n, like=x) or symgrad.numpy.zeros(n)"
_GENERIC = f"use NumPy's functions on it (np.sin for math.sin, x * 1.0 for float(x)); to fill an array, {_ARRAYS}"
_NUMPY_OF_MATH = {"fabs": "abs", "pow": "power", "gamma": "", "lgamma": "", "erf": "", "erfc": "", "fsum": "sum"}
_OTHERWISE = {  # of so many arguments, where NumPy's take fewer, or mean something else
    ("log", 2): "np.log(x) / np.log(base)",
    ("hypot", 3): "np.sqrt(x * x + y * y + z * z)",
    ("remainder", 2): "x - y * np.round(x / y)",
}


def leaving() -> tuple[str, str]:
    """What the running line of the user's does to a traced value, as source text, and what to write instead."""
    frame = user_frame()
    text, node = _expression(frame) if frame is not None else ("", None)
    if isinstance(node, ast.Subscript):
        return text, f"it is {INTO_PLAIN}, which cannot follow it; {_ARRAYS}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return text, "to print it, write an f-string: f'{x:.3f}'"
    if isinstance(node, ast.BinOp):
        return text, "the other side asks for a plain number; write float(...) around that one"
    if isinstance(node, ast.Call) and frame is not None:
        return text, _scipys(node, frame, _inside(frame)) or _instead_of(node, _called(node.func, frame))
    return text, _GENERIC


def instead_of_scipys() -> str | None:
    """What to write instead, where the running line of the user's calls a function of SciPy's."""
    frame = user_frame()
    _, node = _expression(frame) if frame is not None else ("", None)
    return _scipys(node, frame, _inside(frame)) if isinstance(node, ast.Call) and frame is not None else None


def _inside(frame: FrameType) -> list[FrameType]:
    """The frames that a frame's running call has led to, the first of them first."""
    inner: list[FrameType] = []
    running: FrameType | None = sys._getframe(1)
    while running is not None and running is not frame:
        inner.append(running)
        running = running.f_back
    return inner[::-1]


def _scipys(call: ast.Call, frame: FrameType, inner: list[FrameType]) -> str | None:
    """What to write instead of a call of SciPy's: the same name in ``symgrad.scipy``, if there is one."""
    function = _called(call.func, frame)
    files = [one.f_code.co_filename for one in inner]  # the user's own functions on the way are asked in their turn
    method = next(
        (one for one, file in zip(inner, files, strict=True) if file.startswith(_SCIPY) or not is_internal(file)), None
    )
    if (getattr(function, "__module__", None) or "").startswith("scipy."):
        module, names = function.__module__, [getattr(function, "__name__", type(function).__name__)]  # an object may be called
    elif method is not None and is_internal(method.f_code.co_filename) and "self" in method.f_locals:
        owner = method.f_locals["self"]
        kind = type(getattr(owner, "dist", getattr(owner, "_dist", owner)))  # a frozen distribution has one of them
        module, names = kind.__module__, [kind.__name__.removesuffix("_gen"), method.f_code.co_name]
    else:
        return None
    part, *inner_parts = module.split(".")[1:]
    spelled, mirror = ast.unparse(call.func), getattr(importlib.import_module("symgrad.scipy"), part, None)
    if mirror and names[0] not in vars(mirror) and inner_parts and inner_parts[0] in getattr(mirror, "__all__", ()):
        part, mirror = f"{part}.{inner_parts[0]}", getattr(mirror, inner_parts[0])
    found = vars(mirror).get(names[0]) if mirror else None  # what it has of its own
    if found is None or not all(hasattr(type(found), name) for name in names[1:]):
        return f"{spelled} takes plain arrays only; give it a rule with symgrad.primitive"
    return f"{spelled} takes plain arrays only; write symgrad.scipy.{'.'.join([part, *names])}"


def _instead_of(call: ast.Call, function: Any) -> str:
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or ""
    spelled = ast.unparse(call.func)
    if module in ("math", "cmath"):
        twin = _NUMPY_OF_MATH.get(name, name)
        if (other := _OTHERWISE.get((name, len(call.args)))) is not None:
            return f"{spelled} takes plain numbers only; write {other}"
        if hasattr(np, twin):
            return f"{spelled} takes plain numbers only; write np.{twin}"
        return f"{spelled} takes plain numbers only; give it a rule with symgrad.primitive"
    if function is float:
        return "leave float() out, or write x * 1.0; what is only kept or printed, float(symgrad.stop_gradient(x))"
    if function is complex:
        return "write a + 1j * b"
    if isinstance(function, type) and issubclass(function, np.generic):
        return f"write x.astype({spelled})"
    if function in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray):
        return f"leave dtype= out, write symgrad.numpy.{name}, or x.astype(dtype) afterwards"
    if "random" in spelled or "numpy.random" in (module, type(getattr(function, "__self__", None)).__module__[:12]):
        return (
            "random numbers cannot be drawn from a traced distribution; draw standard ones and transform them: "
            "mean + scale * np.random.standard_normal(n)"
        )
    return _GENERIC


def _expression(frame: FrameType) -> tuple[str, ast.AST | None]:
    """The expression that a frame is at, as text and parsed; the text is empty where Python cannot tell."""
    code, at = frame.f_code, frame.f_lasti // 2
    first, last, start, end = next(islice(code.co_positions(), at, None), (None,) * 4)
    if first is None or first != last or start is None or end is None:
        return "", None
    text = linecache.getline(code.co_filename, first).encode()[start:end].decode(errors="replace")
    try:
        return text, parsed(text.strip(), "eval").body
    except SyntaxError:
        return text, None


def _called(node: ast.expr, frame: FrameType) -> Any:
    """The object that a called name stands for; attributes are looked up in modules only, where that runs no code."""
    if isinstance(node, ast.Name):
        spaces = (frame.f_locals, frame.f_globals, vars(builtins))
        return next((space[node.id] for space in spaces if node.id in space), None)
    if isinstance(node, ast.Attribute):
        owner = _called(node.value, frame)
        if isinstance(owner, (np.random.Generator, np.random.RandomState)):
            return getattr(owner, node.attr, None)
        if not isinstance(owner, ModuleType):
            return None
        if owner.__name__.startswith("symgrad.scipy"):  # what it has not itself is SciPy's
            return getattr(owner, node.attr, None)
        return vars(owner).get(node.attr)
    return None
