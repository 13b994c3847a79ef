"""Contractions of many operands as products of two at a time: in the order that is estimated to take the least time."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping

FEW = 5  # operands, up to which all orders are looked at
FLOPS = 8  # multiplications that BLAS makes in the time in which an element comes from memory
SLOW = 2  # those of NumPy's loops over stacks of small matrices
CALL = 64  # elements that come in the time in which a matrix of a stack is begun with
ROW = 8  # those in the time in which a row is begun with
SHORT = 16  # elements of a row, up to which most of the time goes to get to the next one

Sizes = Mapping[str, int]
Path = tuple[tuple[int, int], ...]


def path(terms: tuple[str, ...], out: str, sizes: Sizes) -> Path:
    """Places of the two operands to multiply next, as often as there are two; their product comes last.

    >>> path(("ni", "nj", "ijk"), "nk", {"n": 5000, "i": 4, "j": 4, "k": 4})
    ((0, 1), (0, 1))
    >>> path(("ij", "jk", "kl"), "il", {"i": 50, "j": 50, "k": 50, "l": 1})
    ((1, 2), (0, 1))
    """
    return _cheapest(terms, out, tuple(sizes.items()))[1]


def product_labels(a: str, b: str, rest: str, sizes: Sizes) -> str:
    """The labels of the product of two operands, of which others, or the result, need ``rest``.

    What is multiplied element by element lies in long rows.

    >>> product_labels("ni", "nj", "nijk", {"n": 5000, "i": 4, "j": 4})
    'ijn'
    """
    labels = dict.fromkeys(a + b)
    kept = "".join([label for label in labels if label in rest])
    if len(kept) < len(labels) or not kept or sizes[kept[-1]] > SHORT:
        return kept
    longest = max(kept, key=sizes.__getitem__)
    return kept.replace(longest, "") + longest


@functools.lru_cache(maxsize=1024)
def _cheapest(terms: tuple[str, ...], out: str, given: tuple[tuple[str, int], ...]) -> tuple[float, Path]:
    """The time of the best path, and the path; of very many operands, beginning with the pair that costs least."""
    sizes = dict(given)
    if len(terms) == 2:
        return _time(*terms, out, sizes), ((0, 1),)
    first = []
    for i, j in itertools.combinations(range(len(terms)), 2):
        left = (*terms[:i], *terms[i + 1 : j], *terms[j + 1 :])
        both = product_labels(terms[i], terms[j], "".join([out, *left]), sizes)
        first.append((_time(terms[i], terms[j], both, sizes), (i, j), (*left, both)))
    found = []
    for time, pair, left in first if len(terms) <= FEW else [min(first)]:
        rest, pairs = _cheapest(left, out, given)
        found.append((time + rest, (pair, *pairs)))
    return min(found)


def _time(a: str, b: str, out: str, sizes: Sizes) -> float:
    """About how long the product of two operands takes, in the time in which an element comes from memory."""

    def size(labels: str) -> int:
        return math.prod([sizes[label] for label in labels])

    both = "".join(dict.fromkeys(a + b))
    shared = "".join([label for label in a if label in b])
    stack = "".join([label for label in shared if label in out])
    moved = size(a) + size(b) + size(out)
    if stack == shared:  # element by element
        return moved + ROW * size(out[:-1])
    if not stack:
        return moved + size(both) / FLOPS
    return moved + size(both) / SLOW + (CALL if len(out) > len(stack) else ROW) * size(stack)
