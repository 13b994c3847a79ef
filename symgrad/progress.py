"""Long compilations say how far they are; the garbage collector seldom looks at what long traces keep."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PATIENCE = 5.0  # seconds without a word
SELDOM = 1_000_000  # objects that a traced call makes between two looks of the collector, most of which stay

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
    try:
        with seldom(0):
            yield
        at("done")
    finally:
        _current.reset(token)


@contextmanager
def seldom(objects: int = SELDOM) -> Iterator[None]:
    """The garbage collector looks only when so many objects were made; never, where that is zero."""
    often, *rest = gc.get_threshold()
    if often == 0 or 0 < objects <= often:  # it was told so already
        yield
        return
    gc.set_threshold(objects, *rest)
    try:
        yield
    finally:
        gc.set_threshold(often, *rest)


def at(step: str) -> None:
    """A step begins: said where the compilation takes long."""
    course, now = _current.get(), time.monotonic()
    if course is not None and now - course.last > PATIENCE:
        course.last = now
        logger.warning("compiling %s, %d operations: %s, after %.0f s", course.name, course.size, step, now - course.start)
