"""The command line: what symgrad makes of a function in a file, at example arguments.

python -m symgrad source model.py:loss --args 3 100x3 100
python -m symgrad check model.py:loss --args "[0.1, 0.2]" 2.0
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from symgrad import api
from symgrad.errors import CheckFailed, SymgradError
from symgrad.pytree import map_tree
from symgrad.testing import check_grads

KINDS = ("grad", "value_and_grad", "elementwise_grad", "jacobian", "jacrev", "jacfwd", "hessian", "function")
SHAPE = re.compile(r"\d+(x\d+)*x?")
EXAMPLES = """\
an argument is
  3, 100x3         an array of random numbers of that shape; 0x of no axes
  2.0, -1          a number (an integer alone is a shape: write 3. for a number, int:3 for a Python int)
  "[1.0, 2.0]"     an array
  "{'w': [1.0]}"   a dict, tuple or list of arrays
  "'tanh'"         a text
  x.npy            an array from a file
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code, which is 1 where there is no derivative, or ``check`` found a wrong one."""
    parser = argparse.ArgumentParser(
        prog="python -m symgrad",
        description="What symgrad makes of a function in a file, at example arguments.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, help="what to show: " + ", ".join(COMMANDS))
    parser.add_argument("function", help="file.py:function")
    parser.add_argument("--args", nargs="*", default=[], metavar="ARG", help="example arguments, see below")
    parser.add_argument("--kind", choices=KINDS, default="grad", help="which derivative (grad)")
    parser.add_argument("--argnums", default="0", help="by which arguments: positions or names, with commas (0)")
    parser.add_argument("--fast", action="store_true", help="source: the code that runs, not the one for readers")
    parser.add_argument("--dot", action="store_true", help="graph: in graphviz's language")
    parser.add_argument("--order", type=int, default=2, help="check: how many times to differentiate (2)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (0)")
    options = parser.parse_args(argv)
    try:
        fun = load(options.function)
        rng = np.random.default_rng(options.seed)
        args = tuple(argument(text, rng) for text in options.args)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    try:
        inspect.signature(fun).bind(*args)
    except TypeError as error:
        parser.error(f"--args is no call of {options.function}: {error}")
    except ValueError:
        pass  # a function of C's, which does not say what it takes
    try:
        return COMMANDS[options.command](fun, args, options)
    except SymgradError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def load(place: str) -> Callable[..., Any]:
    """The function that ``file.py:function`` names. Raises ``ValueError`` where there is none."""
    file, _, name = place.rpartition(":")
    path = Path(file)
    if not file or path.suffix != ".py":
        raise ValueError(f"{place!r} names no function: write file.py:function")
    if not path.exists():
        raise ValueError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ValueError(f"{file} has no function {name}")
    return found.__wrapped__ if isinstance(found, api.Derivative) else found


def argument(text: str, rng: np.random.Generator) -> Any:
    """An example argument from its text. Raises ``ValueError`` for one that is none."""
    if SHAPE.fullmatch(text):
        return rng.normal(size=tuple(int(size) for size in text.split("x") if size and text != "0x"))
    if text.endswith(".npy"):
        return np.load(text)
    if text.startswith("int:"):
        return int(text.removeprefix("int:"))
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise ValueError(
            f"the argument {text!r} is none: it is a shape (3x4), a number, a list, a dict, 'a text' or x.npy"
        ) from None
    return _arrays(value)


def _arrays(value: Any) -> Any:
    """Lists of numbers as arrays, at any depth of a structure."""
    if isinstance(value, list) and value and not any(isinstance(item, (dict, tuple, str)) for item in value):
        return np.array(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_arrays, value))
    return {key: _arrays(item) for key, item in value.items()} if isinstance(value, dict) else value


def _derivative(fun: Callable[..., Any], options: argparse.Namespace) -> Any:
    if options.kind == "function":
        return api.as_derivative(fun)
    argnums = tuple(int(n) if n.lstrip("-").isdigit() else n for n in options.argnums.split(","))
    return getattr(api, options.kind)(fun, argnums[0] if len(argnums) == 1 else argnums)


def source(fun: Callable[..., Any], args: tuple[Any, ...], options: argparse.Namespace) -> int:
    """Print the generated code."""
    print(_derivative(fun, options).source(*args, fast=options.fast))
    return 0


def graph(fun: Callable[..., Any], args: tuple[Any, ...], options: argparse.Namespace) -> int:
    """Print the graph."""
    view = _derivative(fun, options).graph(*args)
    print(view.to_dot() if options.dot else view)
    return 0


def check(fun: Callable[..., Any], args: tuple[Any, ...], options: argparse.Namespace) -> int:
    """Compare the derivatives with finite differences."""
    try:
        check_grads(fun, args, order=options.order)
    except CheckFailed as error:
        print(error)
        return 1
    print(f"the derivatives of {getattr(fun, '__name__', fun)} agree with finite differences, up to order {options.order}")
    return 0


def bench(fun: Callable[..., Any], args: tuple[Any, ...], options: argparse.Namespace) -> int:
    """Time the function, its derivative, and the calls that trace it."""
    derivative = _derivative(fun, options)
    start = time.perf_counter()
    derivative(*args)
    first = time.perf_counter() - start
    start = time.perf_counter()
    derivative(*args)
    second = time.perf_counter() - start
    value, slope = _best(fun, args), _best(derivative, args)
    for name, seconds in (("first call, traced", first), ("second call, compiled", second), ("function", value)):
        print(f"{name:22}{1e6 * seconds:12.1f} us")
    print(f"{options.kind:22}{1e6 * slope:12.1f} us, {slope / value:.2f} times the function")
    print(derivative.explain())
    return 0


def _best(fun: Callable[..., Any], args: tuple[Any, ...], seconds: float = 0.3) -> float:
    """The time of a call: the least of many, each on arrays of its own."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        given = map_tree(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, args)
        start = time.perf_counter()
        fun(*given)
        best = min(best, time.perf_counter() - start)
    return best


COMMANDS = {"source": source, "graph": graph, "check": check, "bench": bench}

if __name__ == "__main__":
    sys.exit(main())
