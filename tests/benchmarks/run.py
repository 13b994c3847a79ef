"""Time symgrad's derivatives against hand-written ones and against other differentiators, side by side.

    python tests/benchmarks/run.py [--only A,B] [--peers jax,torch] [--rounds N] [--threads N] [--growth]
                                   [--json PATH] [--picture PATH]

All results are first checked to agree with the hand-written derivative. Then every round times every contender, in random
order, and what is reported are medians over the rounds of ratios within a round, so that a machine that changes its pace
changes both sides; with one thread, of processor time. All ratios are to the hand-written derivative of the same process:
below 1 is faster than the expert. "floor" is the time of the NumPy calls that no NumPy program can do without, as far as we
know. Each workload has a process of its own, and a second one for the peers: once JAX or PyTorch are loaded, memory that is let
go of stays with the process, and big arrays cost less. What is not theirs, "beside them", is measured there too.
"""

import argparse
import gc
import importlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

FRESH = 3  # how many fresh derivatives the first call is timed on
SLOW = 0.5  # seconds; who takes longer is timed in a few rounds only
FEW = 3
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ONE_THREAD = os.environ.get(THREAD_VARIABLES[0]) == "1"
clock = time.process_time if ONE_THREAD else time.perf_counter  # processor time: what else runs does not count


# -- timing --------------------------------------------------------------------------------------------------------


def seconds(call: Callable[[], Any], repeat: int = 1) -> float:
    """Seconds that one call takes, as the mean of ``repeat``."""
    calls = itertools.repeat(None, repeat)
    start = clock()
    for _ in calls:
        call()
    return (clock() - start) / repeat


def interleaved(calls: dict[str, Callable[[], Any]], rounds: int, batch: float = 0.01) -> dict[str, list[float]]:
    """Seconds a call, one number a round, for each contender; each is called for about ``batch`` seconds a round."""
    repeats, slow = {}, set()
    for name, call in calls.items():
        once = seconds(call)
        if once > SLOW:
            slow.add(name)
        repeats[name] = max(1, round(batch / seconds(call, max(1, round(1e-3 / once)))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, shuffle = list(calls), random.Random(0).shuffle
    gc.disable()
    for i in range(rounds):
        shuffle(order)  # so that nobody always follows the same one, with what it leaves in caches and running threads
        for name in order:
            if i < FEW or name not in slow:
                if name not in slow:
                    calls[name]()
                times[name].append(seconds(calls[name], repeats[name]))
        gc.collect()
    gc.enable()
    return times


def ratio(over: list[float], under: list[float]) -> float:
    """The median of ratios within a round."""
    return median(a / b for a, b in zip(over, under, strict=False))


def peak(call: Callable[[], Any]) -> float:
    """Megabytes that a call holds at most at one time, its result included, as far as NumPy and Python tell."""
    from symgrad.buffers import POOL

    gc.collect()
    limit, POOL.limit = POOL.limit, 0  # what would come from the pool counts, too
    tracemalloc.start()
    call()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    POOL.limit = limit
    return size / 1e6


# -- one workload --------------------------------------------------------------------------------------------------


def drawn(workload: Any, n: int) -> list[tuple[Any, ...]]:
    """The inputs that calls go round."""
    import numpy as np

    rng = np.random.default_rng(0)
    return [workload.inputs(rng, n) for _ in range(workload.draws)]


def check(workload: Any, name: str, call: Callable[[], Any], expected: list[Any]) -> None:
    """Raise where a contender's results, traced, compiled and cached alike, differ from the expected ones."""
    import peers
    from workloads.common import disagreement

    for _ in range(3 if name == "symgrad" else 1):
        for want in expected:
            error = disagreement(peers.as_numpy(call()), peers.as_numpy(want))
            if not error <= workload.tolerance:
                raise ArithmeticError(f"{workload.name}: {name} is {error:.1e} off the hand-written derivative")


def contenders(workload: Any, inputs: list[tuple[Any, ...]], names: list[str]) -> tuple[dict[str, Any], dict[str, float]]:
    """The contenders that agree with the hand-written derivative, by name, and the seconds of their first calls."""
    import peers

    calls: dict[str, Any] = {"hand": peers.hand(workload, inputs)}
    expected = [workload.hand(*args) for args in inputs]
    makers = {"symgrad": peers.symgrad} | {name: peers.PEERS[name][1] for name in names if peers.takes_part(name, workload)}
    firsts: dict[str, float] = {}
    for name, make in makers.items():
        found = []
        try:
            for _ in range(FRESH if name == "symgrad" else 1):
                start = clock()
                call = make(workload, inputs)
                call()
                found.append(clock() - start)
            for _ in inputs[1:]:
                call()  # the first call had the first input: go round to it again
            check(workload, name, call, expected)
        except Exception as error:
            if name == "symgrad":
                raise
            print(f"{workload.name}: {name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        calls[name], firsts[name] = call, median(found)
    return calls, firsts


def measure(workload: Any, rounds: int, names: list[str]) -> dict[str, float]:
    """The numbers of one workload; raises where symgrad's derivative is not the hand-written one."""
    import numpy as np
    import peers

    from symgrad import value_and_grad

    inputs = drawn(workload, workload.n)
    calls, firsts = contenders(workload, inputs, names)
    if workload.kind == "grad":
        both = value_and_grad(workload.function("symgrad", np), workload.argnums)
        calls["value too"] = peers.contender(both, inputs)
        for _ in range(3):
            calls["value too"]()
    if workload.floor is not None:
        calls["floor"] = workload.floor(*inputs[0])
    times = interleaved(calls, rounds)
    result = {"hand us": 1e6 * median(times["hand"])}
    result |= {name: ratio(times[name], times["hand"]) for name in (*firsts, "floor") if name in times}
    if "value too" in times:
        result["value_and_grad/grad"] = ratio(times["value too"], times["symgrad"])
    result["first ms"] = 1e3 * firsts["symgrad"]
    result |= {f"first {name} ms": 1e3 * first for name, first in firsts.items() if name != "symgrad"}
    result["peak MB"] = peak(calls["symgrad"])
    result["hand peak MB"] = peak(calls["hand"])
    return result


def growth(workload: Any, rounds: int) -> dict[str, float]:
    """The time of symgrad's derivative, and its ratio to the hand-written one, at sizes up to the workload's."""
    result = {}
    for part in (16, 4, 1):
        n = max(workload.n // part, 1)
        calls, _ = contenders(workload, drawn(workload, n), [])
        times = interleaved(calls, rounds)
        result[f"n/{part} us"] = 1e6 * median(times["symgrad"])
        result[f"n/{part}"] = ratio(times["symgrad"], times["hand"])
    return result


# -- what is shown -------------------------------------------------------------------------------------------------


def tables(results: dict[str, dict[str, float]], titles: dict[str, str]) -> str:
    """The results as Markdown tables: steady times as ratios, first calls, memory."""
    rows = sorted(results.values(), key=len, reverse=True)  # the longest has all in their order
    columns = list(dict.fromkeys(column for row in rows for column in row))
    parts = [[c for c in columns if c.startswith("first")], [c for c in columns if c.endswith("MB")]]
    steady = [c for c in columns if c not in parts[0] and c not in parts[1]]
    return "\n\n".join(table(results, titles, part) for part in (steady, *parts) if part)


def table(results: dict[str, dict[str, float]], titles: dict[str, str], columns: list[str]) -> str:
    """Some columns of the results as a Markdown table."""
    lines = ["| | workload | " + " | ".join(columns) + " |", "| --- | --- |" + " ---: |" * len(columns)]
    for name, row in results.items():
        cells = [f"{row[column]:.3g}" if column in row else "" for column in columns]
        lines.append(f"| {name} | {titles[name]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(results: dict[str, dict[str, float]], names: list[str], path: str) -> None:
    """A bar chart of times as ratios to the hand-written derivative."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 0.7 * len(results), 4.5), layout="constrained")
    axes = figure.subplots()
    shown = [name for name in ["symgrad", "symgrad, beside them", *names] if any(name in row for row in results.values())]
    width = 0.85 / len(shown)
    for i, name in enumerate(shown):
        places = [j + (i - (len(shown) - 1) / 2) * width for j, row in enumerate(results.values()) if name in row]
        heights = [row[name] - 1.0 for row in results.values() if name in row]
        axes.bar(places, heights, width, bottom=1.0, label=name)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(results)), list(results))
    axes.margins(x=0.01)
    axes.set_ylabel("time / hand-written NumPy")
    axes.legend(ncols=min(len(shown), 5), frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def with_threads(count: int) -> None:
    """Start again with so many threads, and as many processors: libraries look only when they are loaded."""
    if any(os.environ.get(name) != str(count) for name in THREAD_VARIABLES):
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(count))
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])
        os.execve(sys.executable, sys.orig_argv, environment)


def both(name: str, options: argparse.Namespace, names: list[str]) -> tuple[dict[str, float], bool]:
    """The numbers of a workload, measured without peers in the process and then with them; and whether all went well."""
    own, code = apart(name, options, [])
    if not names or not own:
        return own, code == 0
    more, other = apart(name, options, names)
    beside = ("hand us", "symgrad", "floor")
    found = own | {f"{column}, beside them": more[column] for column in beside if column in more}
    return found | {column: number for column, number in more.items() if column not in own}, code == other == 0


def apart(name: str, options: argparse.Namespace, names: list[str]) -> tuple[dict[str, float], int]:
    """The numbers of a workload that is measured in a process of its own, and that one's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        command = [sys.executable, __file__, "--apart", "--only", name, "--rounds", str(options.rounds), "--json", path]
        command += ["--growth"] * options.growth + ["--peers", ",".join(names)]
        code = subprocess.run(command, check=False).returncode
        if not os.path.exists(path):
            return {}, code or 1
        with open(path, encoding="utf-8") as file:
            return json.load(file).get(name, {}), code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAMES", help="these workloads, by letter, with commas between")
    parser.add_argument("--peers", metavar="NAMES", help="these peers, with commas between; none: ''; unset: all installed")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, help="threads that all may use; unset: as many as they like")
    parser.add_argument("--growth", action="store_true", help="how time grows with size, instead of all else")
    parser.add_argument("--json", metavar="PATH", help="write the numbers there too")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)  # a process for one workload
    parser.add_argument("--picture", metavar="PATH", help="draw the ratios there, with matplotlib")
    options = parser.parse_args()
    if options.threads:
        with_threads(options.threads)

    import peers
    from workloads import WORKLOADS

    def chosen(wish: str | None, known: list[str], what: str) -> list[str]:
        names = known if wish is None else [name for name in wish.split(",") if name]
        if unknown := set(names) - set(known):
            parser.error(f"no {what} {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
        return names

    only = chosen(options.only, [workload.name for workload in WORKLOADS], "workload")
    names = [] if options.growth else chosen(options.peers, peers.installed(), "peer")
    results: dict[str, dict[str, float]] = {}
    failed = False
    if not options.apart:
        for name in only:
            found, well = both(name, options, names)
            results |= {name: found} if found else {}
            failed = failed or not well
    else:
        for name in names:
            importlib.import_module(peers.PEERS[name][0])  # not part of anybody's first call
        (workload,) = [workload for workload in WORKLOADS if workload.name in only]
        if not (options.growth and workload.n == 1):
            try:
                results[workload.name] = (
                    growth(workload, options.rounds) if options.growth else measure(workload, options.rounds, names)
                )
            except Exception as error:  # the others are still worth knowing
                failed = True
                print(f"{workload.name} failed: {type(error).__name__}: {error}", file=sys.stderr)
    if options.apart:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file)
        return int(failed)
    print(tables(results, {workload.name: workload.title for workload in WORKLOADS}))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
    if options.picture:
        picture(results, names, options.picture)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
