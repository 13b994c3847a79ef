"""Threads that share the blocks of a loop over big arrays: NumPy lets go of the interpreter while it computes.

The threads are made when they are first needed, and kept. How many take part in a loop changes nothing in its result: each
block is computed as if alone, and what the blocks give is put together in their order.
"""

from __future__ import annotations

import functools
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass

MOST = 8  # threads of one loop: more would wait for one another, and for memory
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # where SYMGRAD_NUM_THREADS is not set

_limit: ContextVar[int | None] = ContextVar("symgrad_threads", default=None)


@contextmanager
def threads(limit: int) -> Iterator[None]:
    """Let compiled derivatives share their loops over big arrays among so many threads, in the calls made within the block.

    Without it they use as many as there are processors for this process (its affinity, its control group's quota), at
    most eight; fewer where the environment variable ``SYMGRAD_NUM_THREADS`` says so, or, where that is not set,
    ``OMP_NUM_THREADS``, ``OPENBLAS_NUM_THREADS`` or ``MKL_NUM_THREADS``. NumPy's own products of matrices heed only the
    variables. Results are the same to the bit, whatever the limit. Where the process has one thread by all that, code is not
    made for more.

    Args:
        limit: 1 for the calling thread alone; at most eight are used.

    Raises:
        ValueError: for a limit below 1.

    >>> import symgrad
    >>> square = symgrad.grad(lambda x: x * x)
    >>> with symgrad.threads(1):
    ...     square(3.0)
    6.0
    """
    if limit < 1:
        raise ValueError(f"at least one thread must run, not {limit}")
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def share(loop: Callable[[Iterable[int]], None], blocks: range) -> None:
    """``loop(blocks)``, by several threads that each take the next block in turn.

    Floating-point errors are handled as in the calling thread; an exception is that of the first block that raises one.
    """
    helpers = min(_threads(), len(blocks)) - 1
    if helpers < 1:
        loop(blocks)
        return
    task = _Task(loop, deque(blocks))
    started: list[Future[tuple[int, BaseException] | None]] = []
    with suppress(RuntimeError):  # no thread can be started, such as at the interpreter's exit
        for _ in range(helpers):
            started.append(_helpers().submit(copy_context().run, _work, task))
    ends = [_work(task), *(future.result() for future in started if not future.cancel())]
    del task.loop  # whoever comes too late finds it cancelled, but would hold its arrays until then
    failed = [end for end in ends if end is not None]
    if failed:
        try:
            raise min(failed, key=lambda end: end[0])[1]
        finally:
            del ends, failed, started  # they would hold the error, and that this frame


@dataclass
class _Task:
    """A loop, and the blocks that no thread has taken yet."""

    loop: Callable[[Iterable[int]], None]
    waiting: deque[int]


class _Turns:
    """The blocks that one thread gets to."""

    def __init__(self, waiting: deque[int]) -> None:
        self.waiting = waiting
        self.block = -1

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        try:
            self.block = self.waiting.popleft()
        except IndexError:
            raise StopIteration from None
        return self.block


def _work(task: _Task) -> tuple[int, BaseException] | None:
    """Take turns in a loop; the block that raised an exception, and that, if one did."""
    turns = _Turns(task.waiting)
    try:
        task.loop(turns)
    except BaseException as error:
        turns.waiting.clear()
        return turns.block, error
    return None


# -- how many ------------------------------------------------------------------------------------------------------


def several() -> bool:
    """Whether this process has more than one thread. Where it has not, code has smaller blocks, which suit one better."""
    return _own() > 1


@functools.cache
def alone() -> bool:
    """Whether BLAS surely has one thread: by the processors, or by all that the environment says when this is first asked."""
    given = [found for variable in VARIABLES if (found := _number(variable))]
    return _processors() == 1 or set(given) == {1}


def _threads() -> int:
    """How many threads a loop may have."""
    limit = _limit.get()
    return _own() if limit is None else min(limit, MOST)


def _own() -> int:
    """How many it may have where nothing else is said."""
    return min(_allowed(), _processors())


def _processors() -> int:
    """The processors that the calling thread may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _allowed() -> int:
    """What the environment allows, as it was at the first call."""
    own = _number("SYMGRAD_NUM_THREADS")
    given = [own] if own else [found for variable in VARIABLES if (found := _number(variable))]
    return min([MOST, *given, *_quotas()])


def _number(variable: str) -> int | None:
    """A number of threads in an environment variable; the first, where it has one for each level."""
    found = re.match(r"\s*(\d+)\s*(,|$)", os.environ.get(variable, ""))
    return (int(found[1]) or None) if found else None


def _quotas(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> list[int]:
    """The processors' time that Linux grants this process's control groups, in processors."""
    found = []
    with suppress(OSError, ValueError):
        with open(own, encoding="ascii") as lines:
            groups = [line.rstrip("\n").split(":", 2) for line in lines]
        for _, controllers, path in groups:
            if controllers and "cpu" not in controllers.split(","):
                continue
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            top = os.path.join(root, controllers)
            parts = path.split("/")
            for end in range(len(parts), 0, -1):
                with suppress(OSError, ValueError):  # such as "max"
                    numbers = []
                    for name in names:
                        with open(os.path.join(top, *parts[1:end], name), encoding="ascii") as file:
                            numbers += file.read().split()
                    quota, period = map(int, numbers)
                    if quota > 0:
                        found.append(max(1, -(-quota // period)))
    return found


# -- the threads themselves ----------------------------------------------------------------------------------------


@functools.cache
def _helpers() -> ThreadPoolExecutor:
    """The threads; none is started before there is work for it."""
    return ThreadPoolExecutor(MOST - 1, "symgrad")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a child has none of its parent's threads
