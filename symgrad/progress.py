"""Long compilations say how far they are, and do not stop for the garbage collector."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PATIENCE = 5.0  # seconds without a word
LARGE = 2000  # operations from which the collector waits: it would look through all of them again and again

logger = logging.getLogger("symgrad")


class _Course:
    """One compilation: what it is of, when it began, and when something was last said of it."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self.start = self.last = time.monotonic()


_current: ContextVar[_Course | None] = ContextVar("symgrad_compiling", default=None)


@contextmanager
def compiling(name: str, size: int) -> Iterator[None]:
    """Around the compilation of a program of ``size`` operations: after some seconds, its steps are logged."""
    token = _current.set(_Course(name, size))
    paused = size >= LARGE and gc.isenabled()
    if paused:
        gc.disable()
    try:
        yield
        at("done")
    finally:
        if paused:
            gc.enable()
        _current.reset(token)


def at(step: str) -> None:
    """A step begins: said where the compilation takes long."""
    course, now = _current.get(), time.monotonic()
    if course is not None and now - course.last > PATIENCE:
        course.last = now
        logger.warning("compiling %s, %d operations: %s, after %.0f s", course.name, course.size, step, now - course.start)
