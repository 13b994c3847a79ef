"""Random programs, for hours: every way to a derivative must give the same numbers, and so must other libraries.

    python tests/fuzz.py --minutes 60                # searches; prints a progress bar, then what was found
    python tests/fuzz.py --replay fuzz-1a2b3c4d.json # runs one failure again

A failure is shrunk to the smallest program that shows it, printed, and written to a file that replays it. JAX, PyTorch and
HIPS autograd join in where they are installed. Each program is compared in these ways: compiled (traced twice before),
dynamic, and eager mode; finite differences, forward mode and the other printing, which ``check_grads`` looks after; and the
same source run by the other libraries in NumPy's place.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
from agreement import same, tolerance
from hypothesis import HealthCheck, Phase, given, settings

import symgrad.eager as eager
from symgrad import value_and_grad
from symgrad.errors import CheckFailed, NotDifferentiable
from symgrad.testing import ALL_FORMS, Program, check_grads, programs

CHUNK = 20  # programs between two looks at the clock

# -- other ways to the gradient ------------------------------------------------------------------------------------

Oracle = Callable[[Program, tuple[Any, ...]], list[Any]]


def by_eager(program: Program, args: tuple[Any, ...]) -> list[Any]:
    tensors = [eager.tensor(np.asarray(x), requires_grad=True) for x in args]
    translated(program, np)(*tensors).backward()
    return [np.zeros(np.shape(x)) if t.grad is None else t.grad.numpy() for t, x in zip(tensors, args, strict=True)]


def by_jax(program: Program, args: tuple[Any, ...]) -> list[Any]:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    found = jax.grad(translated(program, importlib.import_module("jax.numpy")), tuple(range(len(args))))(*args)
    jax.clear_caches()  # or it keeps all programs
    return [np.conj(g) for g in found]  # its convention for complex numbers is the other one


def by_torch(program: Program, args: tuple[Any, ...]) -> list[Any]:
    torch, namespace = importlib.import_module("torch"), importlib.import_module("torch._numpy")
    tensors = [torch.tensor(np.asarray(x), requires_grad=True) for x in args]
    translated(program, namespace)(*map(namespace.asarray, tensors)).tensor.backward()
    return [np.zeros(np.shape(x)) if t.grad is None else t.grad.numpy() for t, x in zip(tensors, args, strict=True)]


def by_autograd(program: Program, args: tuple[Any, ...]) -> list[Any]:
    autograd = importlib.import_module("autograd")
    found = autograd.grad(translated(program, importlib.import_module("autograd.numpy")), tuple(range(len(args))))(*args)
    return [np.conj(g) for g in found]


def translated(program: Program, numpy: Any) -> Callable[..., Any]:
    """The program with another library in NumPy's place."""
    namespace: dict[str, Any] = {"np": numpy}
    exec(program.source.replace(".item()", ""), namespace)  # which would make a constant
    return namespace["program"]  # type: ignore[no-any-return]


ORACLES: dict[str, tuple[str, Oracle]] = {
    "eager": ("symgrad", by_eager),
    "jax": ("jax", by_jax),
    "torch": ("torch._numpy", by_torch),
    "autograd": ("autograd", by_autograd),
}


def installed(names: list[str]) -> dict[str, Oracle]:
    """Those of the oracles that can be imported."""
    found = {}
    for name in names:
        package, oracle = ORACLES[name]
        try:
            importlib.import_module(package)
        except ImportError:
            continue
        found[name] = oracle
    return found


# -- one program ---------------------------------------------------------------------------------------------------


class Disagreement(AssertionError):
    """Two ways to a gradient give different numbers."""


def check(program: Program, oracles: dict[str, Oracle], counts: Counter[str]) -> None:
    """Compare all ways to the gradient of a program; counts what each of them did."""
    args, argnums = program.arguments(), tuple(range(len(program.specs)))
    try:
        expected = value_and_grad(program.fun, argnums, mode="dynamic")(*args)
    except NotDifferentiable:
        counts["refused"] += 1
        return
    counts["programs"] += 1
    compiled = value_and_grad(program.fun, argnums)
    for call in range(4):
        with naming(f"compiled, call {call + 1}"):
            same(compiled(*args), expected, args)
    for seed in (program.seed + 1, program.seed + 2):
        others = program.arguments(seed)
        try:
            if not np.isfinite(program(*others)):
                continue
            wanted = value_and_grad(program.fun, argnums, mode="dynamic")(*others)
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError, NotDifferentiable):
            continue  # the source was written for other branches
        with naming(f"compiled, arguments of seed {seed}"):
            for _ in range(3):
                same(compiled(*others), wanted, others)
    try:
        check_grads(program.fun, args, order=1)
    except CheckFailed as error:
        if "settle" not in str(error):
            raise
        counts["at a kink"] += 1  # no finite differences there, and conventions differ
        return
    for name, oracle in oracles.items():
        try:
            found = oracle(program, args)
        except Exception:  # it cannot run the program
            counts[f"{name} cannot"] += 1
            continue
        if not all(np.isfinite(g).all() for g in found):
            counts[f"{name} is not finite"] += 1
            continue
        if name != "eager" and not close(found, expected[1], args, 1e-4):
            counts[f"{name} differs from finite differences, too"] += 1
            continue
        counts[name] += 1
        with naming(name):
            assert close(found, expected[1], args, 10 * tolerance(args)), f"{found} is not {expected[1]}"


class naming:
    """``with naming(what):`` says what it was that disagreed."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, AssertionError):
            raise Disagreement(f"{self.what}: {error}") from error


def close(found: list[Any], expected: Any, args: tuple[Any, ...], precision: float) -> bool:
    """Whether gradients are those of another library, whose kinds of numbers may be others."""
    size = max(1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in expected))
    narrow = any(np.result_type(x).itemsize < 8 for x in args)
    limit = size * (max(precision, 5e-3) if narrow else precision)
    return all(np.allclose(np.asarray(x), y, rtol=0, atol=limit) for x, y in zip(found, expected, strict=True))


# -- many ----------------------------------------------------------------------------------------------------------


class Search:
    """A run over chunks of random programs, each with a seed of its own."""

    def __init__(self, seed: int, oracles: dict[str, Oracle], max_ops: int, forms: tuple[str, ...], folder: Path) -> None:
        self.seed, self.oracles, self.max_ops, self.forms, self.folder = seed, oracles, max_ops, forms, folder
        self.counts: Counter[str] = Counter()
        self.failures: list[Path] = []
        self.last: tuple[Program, BaseException] | None = None

    def chunk(self, number: int, size: int = CHUNK) -> bool:
        """Try the programs of one chunk; whether all went well."""
        self.last = None

        @hypothesis.seed(self.seed * 1_000_003 + number)
        @settings(
            max_examples=size, deadline=None, database=None, derandomize=False, report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck), print_blob=False,
        )  # fmt: skip
        @given(programs(max_ops=self.max_ops, forms=self.forms))
        def run(program: Program) -> None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with np.errstate(all="ignore"):
                        check(program, self.oracles, self.counts)
            except Exception as error:
                self.last = program, error
                raise

        try:
            run()
        except Exception:
            if self.last is None:
                raise
            self.failures.append(self.write(*self.last))
            return False
        return True

    def write(self, program: Program, error: BaseException) -> Path:
        """Keep a failure: its program, and what went wrong."""
        what = f"{type(error).__name__}: {error}"
        kept = {"source": program.source, "specs": program.specs, "seed": program.seed, "error": what}
        path = self.folder / f"fuzz-{abs(hash(program.source)) % 16**8:08x}.json"
        path.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        print(f"\n{program!r}\n{what}\nkept in {path}\n")
        return path

    def run(self, minutes: float) -> None:
        """Search until the time is over."""
        start, end, number = time.monotonic(), 60 * minutes, 0
        while (spent := time.monotonic() - start) < end:
            self.show(spent / end, spent)
            self.chunk(number)
            number += 1
        self.show(1.0, end)
        print()

    def show(self, share: float, spent: float) -> None:
        """The progress bar."""
        bar = "█" * round(30 * share)
        text = f"\r{bar:░<30} {spent / 60:.1f} min, {self.counts['programs']} programs, {len(self.failures)} failures"
        print(text, end="", flush=True, file=sys.stderr)


def replay(path: Path, oracles: dict[str, Oracle]) -> None:
    """Run one failure again; raises what it raised."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    specs = {name: (kind, tuple(shape)) for name, (kind, shape) in kept["specs"].items()}
    program = Program(kept["source"], specs, kept["seed"])
    print(repr(program))
    with np.errstate(all="ignore"):
        check(program, oracles, Counter())


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to search (10)")
    parser.add_argument("--seed", type=int, default=0, help="where to begin: another seed tries other programs (0)")
    parser.add_argument("--max-ops", type=int, default=40, help="the most statements of a program (40)")
    parser.add_argument("--forms", default=",".join(ALL_FORMS), help="kinds of statements (all)")
    parser.add_argument("--oracles", default=",".join(ORACLES), help="whom to compare with, where installed (all)")
    parser.add_argument("--folder", type=Path, default=Path(), help="where failures are written (here)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one failure again")
    options = parser.parse_args()
    oracles = installed(options.oracles.split(","))
    if options.replay:
        replay(options.replay, oracles)
        print("it does not fail any more")
        return 0
    search = Search(options.seed, oracles, options.max_ops, tuple(options.forms.split(",")), options.folder)
    search.run(options.minutes)
    for what, count in sorted(search.counts.items()):
        print(f"{count:8} {what}")
    print(*search.failures, sep="\n")
    return 1 if search.failures else 0


if __name__ == "__main__":
    sys.exit(main())
