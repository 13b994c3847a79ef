"""One place where optimisations are switched off: to compare, to look for a fault, to read plainer code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Every optimisation by the name that switches it off, and what it does.
OPTIMISATIONS = {
    "loops": "what a loop does not need does not go round in it",
    "share": "what is dear in a loop is saved for the loop backwards, not computed again",
    "simplify": "the table of rewrites",
    "split": "what loops in loops compute alike each time computed once before, in the code that runs",
    "keep": "what loops in loops save, for those on the way back, kept, so that they need not run again, in the code that runs",
    "undo": "tables that loops write into taken back on the way back, not copied, in the code that runs",
    "structure": "what is known of Cholesky factors, diagonal matrices and outer products, in the code that runs",
    "chains": "products of several matrices in the order that costs least, in the code that runs",
    "taps": "convolutions written as sums of products with shifted slices as one product over windows, in the code that runs",
    "contract": "products that sum over axes as few large matrix products, in the code that runs",
    "factors": "numbers that big arrays are multiplied by put where they cost less, in the code that runs",
    "products": "what products of big arrays have in common multiplied once, in the code that runs",
    "layout": "big arrays with a short last axis turned, so that loops are long, in the code that runs",
    "lower": "cheaper operations, in the code that runs",
    "scalarize": "programs of small arrays taken apart into Python's floats, in the code that runs",
    "windows": "places in a row that move with the index of a loop as slices",
    "uncut": "values cut to a slice, of which nothing else is read, left as they are, in the code that runs",
    "elements": "elements of tables at an index of several arrays by their places in memory, in the code that runs",
    "hoist": "what loops over numbers multiply by put together before or after them, in the code that runs",
    "distribute": "totals of loops taken out of them, as one product over all iterations, in the code that runs",
    "masks": "derivatives without the masks that keep infinities out, as long as none is met, in the code that runs",
    "buffers": "results written into buffers that are dead, in the code that runs",
    "blocks": "chains of operations on big arrays block by block, in the code that runs",
    "threads": "those loops over blocks shared by threads, in the code that runs",
    "rows": "numbers that repeat in rows, or for rows, read where they are, not copied first, in the code that runs",
    "pool": "big arrays in memory that is used again once nobody holds it, in the code that runs",
    "lists": "arrays of which loops read and write one number at a time as nested lists meanwhile, in the code that runs",
    "math": "programs of Python's floats in Python's own arithmetic, in the code that runs",
    "select": "what masks select computed for all that they select from, so that code does not hang on how many there are",
    "spans": "slices and loops as long as the index of a loop around says kept in loops, where written out they are much",
    "tables": "lists of numbers that long loops fill, or such as decide, as arrays",
    "vectorize": "loops whose iterations need nothing of one another done for all iterations at once",
}

_off: ContextVar[frozenset[str]] = ContextVar("symgrad_off", default=frozenset())


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Switch optimisations off for the derivatives that are made within the block, for good.

    Args:
        names: which, as listed in ``symgrad.optimize.switches.OPTIMISATIONS``; none stands for all.

    Raises:
        ValueError: for a name that is not there.

    >>> import symgrad
    >>> with symgrad.without("simplify"):
    ...     plain = symgrad.grad(lambda x: x * x)
    >>> plain(3.0)
    6.0
    """
    unknown = sorted(set(names) - set(OPTIMISATIONS))
    if unknown:
        raise ValueError(f"there is no optimisation {unknown[0]!r}; there are {', '.join(OPTIMISATIONS)}")
    token = _off.set(_off.get() | frozenset(names or OPTIMISATIONS))
    try:
        yield
    finally:
        _off.reset(token)


def switched_off() -> frozenset[str]:
    """What is switched off here and now."""
    return _off.get()
