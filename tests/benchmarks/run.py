"""Time symgrad's gradients against hand-written ones and against other differentiators, side by side in one process.

    python tests/benchmarks/run.py [--only NAME ...] [--rounds N] [--threads N] [--json PATH]

All results are first checked to agree. Then every round times every contender, in random order, and what is reported
are medians over the rounds of ratios within a round, so that a machine that changes its pace changes both sides.
"""

import argparse
import gc
import json
import os
import random
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

FRESH = 5  # how many fresh derivatives the first call is timed on
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def seconds(call: Callable[[], Any], repeat: int) -> float:
    """Seconds that one call takes, as the mean of ``repeat``."""
    calls = range(repeat)
    start = time.perf_counter()
    for _ in calls:
        call()
    return (time.perf_counter() - start) / repeat


def interleaved(calls: dict[str, Callable[[], Any]], rounds: int, batch: float = 0.01) -> dict[str, list[float]]:
    """Seconds a call, one number a round, for each contender; each is called for about ``batch`` seconds a round."""
    repeats = {}
    for name, call in calls.items():
        seconds(call, 3)  # warm-up: the third call is compiled at the latest
        repeats[name] = max(1, round(batch / seconds(call, max(1, round(1e-3 / seconds(call, 1))))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, shuffle = list(calls), random.Random(0).shuffle
    gc.disable()
    for _ in range(rounds):
        shuffle(order)  # so that nobody always follows the same one, with what it leaves in caches and running threads
        for name in order:
            calls[name]()
            times[name].append(seconds(calls[name], repeats[name]))
        gc.collect()
    gc.enable()
    return times


def dispatch(derivative: Any, args: tuple[Any, ...], rounds: int) -> float:
    """Seconds that a call of ``derivative`` takes longer than the generated function, called by hand."""
    generated = derivative.compiled(*args)
    calls = {"derivative": lambda: derivative(*args), "generated": lambda: generated(*args)}
    times = interleaved(calls, 10 * rounds, batch=0.001)
    return median(a - b for a, b in zip(*times.values(), strict=True))


def measure(workload: Any, rounds: int) -> dict[str, float]:
    """The numbers of one workload; raises where two gradients disagree."""
    import numpy as np
    import peers
    from workloads.common import disagreement

    from symgrad import grad

    args = workload.inputs(np.random.default_rng(0), False)
    firsts = []
    for _ in range(FRESH):
        derivative = grad(workload.make(np), workload.argnums)
        start = time.perf_counter()
        derivative(*args)
        firsts.append(time.perf_counter() - start)

    calls = {"hand": lambda: workload.hand(*args), "symgrad": lambda: derivative(*args)}
    calls |= {name: peer(workload, args) for name, peer in peers.available().items()}
    expected = workload.hand(*args)
    for name, call in calls.items():
        for _ in range(3):  # traced, compiled and cached results alike
            error = disagreement(peers.as_numpy(call()), peers.as_numpy(expected))
            if not error <= workload.tolerance:
                raise ArithmeticError(f"{workload.name}: {name} is {error:.1e} off the hand-written gradient")
    times = interleaved(calls, rounds)

    def ratio(over: str, under: str) -> float:
        return median(a / b for a, b in zip(times[over], times[under], strict=True))

    result = {"hand us": 1e6 * median(times["hand"]), "symgrad us": 1e6 * median(times["symgrad"])}
    result["symgrad/hand"] = ratio("symgrad", "hand")
    result |= {f"{name}/symgrad": ratio(name, "symgrad") for name in calls if name in peers.available()}
    result["first ms"] = 1e3 * median(firsts)
    if hasattr(derivative, "compiled") and result["symgrad us"] < 100:  # a difference of longer times would be noise
        result["dispatch us"] = 1e6 * dispatch(derivative, args, rounds)
    return result


def table(results: dict[str, dict[str, float]]) -> str:
    """The results as lines of text."""
    columns = list(dict.fromkeys(column for row in results.values() for column in row))
    lines = ["".join([f"{'':12}", *(f"{column:>17}" for column in columns)])]
    for name, row in results.items():
        cells = [f"{row[column]:>17.2f}" if column in row else f"{'-':>17}" for column in columns]
        lines.append("".join([f"{name:12}", *cells]))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="this workload; may be given several times")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--threads", type=int, help="threads that BLAS may use; unset: as many as it likes")
    parser.add_argument("--json", metavar="PATH", help="write the numbers there too")
    options = parser.parse_args()

    if options.threads and any(os.environ.get(name) != str(options.threads) for name in THREAD_VARIABLES):
        # read when the libraries are loaded, so they are set for a process that has loaded none
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(options.threads))
        os.execve(sys.executable, sys.orig_argv, environment)

    from workloads import WORKLOADS

    names = [workload.name for workload in WORKLOADS]
    if unknown := set(options.only or ()) - set(names):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    results, failed = {}, False
    for workload in WORKLOADS:
        if not options.only or workload.name in options.only:
            try:
                results[workload.name] = measure(workload, options.rounds)
            except Exception as error:  # the others are still worth knowing
                failed = True
                print(f"{workload.name} failed: {type(error).__name__}: {error}", file=sys.stderr)
    print(table(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
