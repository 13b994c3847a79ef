"""Products that sum over shared axes: ``matmul``, ``einsum``, ``tensordot``, ``convolve`` and their relatives.

A cotangent is spelled as by hand: ``g @ b.T``, ``a.T @ g``, ``np.outer``, and one GEMM where a batch is summed.
"""

from __future__ import annotations

import functools
import math
import operator
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.errors import NotDifferentiable
from symgrad.ops.core import A, Sample, composite, multilinear, unbroadcast
from symgrad.ops.index import array_of


def transpose(x: Any) -> Any:
    """The matrix transpose, of a stack too."""
    return x.T if np.ndim(x) == 2 else np.swapaxes(x, -1, -2)


def conj(x: Any) -> Any:
    """The complex conjugate; real arrays as they are."""
    return np.conj(x) if np.iscomplexobj(x) else x


def flat(x: Any) -> Any:
    return x if np.ndim(x) == 1 else np.ravel(x)


def shaped(x: Any, shape: tuple[int, ...]) -> Any:
    return x if np.shape(x) == shape else np.reshape(x, shape)


def rows(x: Any) -> Any:
    """A stack of matrices as one tall matrix."""
    *rest, last = np.shape(x)
    return np.reshape(x, (-1 if last else int(np.prod(rest)), last))


# -- matmul and its gufunc relatives -------------------------------------------------------------------------------


LABELS = string.ascii_letters


def matmul_labels(n: int, m: int) -> tuple[list[str], str]:
    """The labels of the axes of ``a @ b``, which have so many: of both, and of the result."""
    stack = LABELS[3 : 3 + max(n, m, 2) - 2]
    a = (stack[len(stack) - (n - 2) :] if n > 2 else "") + ("ab" if n > 1 else "b")
    b = (stack[len(stack) - (m - 2) :] if m > 2 else "") + ("bc" if m > 1 else "b")
    return [a, b], stack + ("a" if n > 1 else "") + ("c" if m > 1 else "")


def axis_pairs(n: int, m: int, axes: Any) -> tuple[list[int], list[int]]:
    """The axes of ``a`` and of ``b``, which have so many, that ``np.tensordot`` sums over."""
    if isinstance(axes, int):
        return list(range(n - axes, n)), list(range(axes))
    i, j = ((k,) if isinstance(k, int) else k for k in axes)
    return [k % n for k in i], [k % m for k in j]


def tensordot_labels(n: int, m: int, axes: Any) -> tuple[list[str], str]:
    """The same of ``np.tensordot``."""
    a, b = list(LABELS[:n]), list(LABELS[n : n + m])
    for left, right in zip(*axis_pairs(n, m, axes), strict=True):
        b[right] = a[left]
    shared = set(a) & set(b)
    return ["".join(a), "".join(b)], "".join(label for label in a + b if label not in shared)


def matmul_a(g: Any, y: Any, x1: Any, x2: Any) -> Any:
    n, m = np.ndim(x1), np.ndim(x2)
    if m == 1:
        return g * x2 if n == 1 else np.outer(g, x2) if n == 2 else g[..., None] * x2
    if n == 1:
        return x2 @ g if m == 2 else (x2 @ g[..., None])[..., 0]
    if n == 2 < m:
        axes = (*range(m - 2), m - 1)
        return np.tensordot(g, x2, (axes, axes))
    return g @ transpose(x2)


def matmul_b(g: Any, y: Any, x1: Any, x2: Any) -> Any:
    n, m = np.ndim(x1), np.ndim(x2)
    if n == 1:
        return g * x1 if m == 1 else np.outer(x1, g) if m == 2 else x1[:, None] * g[..., None, :]
    if m == 1:
        return g @ x1 if n == 2 else flat(g) @ rows(x1)
    if m == 2 < n:
        return rows(x1).T @ rows(g)
    return transpose(x1) @ g


MATMUL = [
    Sample(A(3), A(3)),
    Sample(A(3), A(3, 2)),
    Sample(A(3), A(4, 3, 2)),
    Sample(A(2, 3), A(3)),
    Sample(A(4, 2, 3), A(3)),
    Sample(A(2, 3), A(3, 4)),
    Sample(A(5, 2, 3), A(3, 4)),
    Sample(A(2, 5, 2, 3), A(3, 4)),
    Sample(A(2, 3), A(5, 3, 4)),
    Sample(A(5, 2, 3), A(5, 3, 4)),
    Sample(A(2, 1, 2, 3), A(5, 3, 4)),
    Sample(A(1, 2, 3), A(4, 3, 1)),
    Sample(A(1, 1), A(1, 1)),
    Sample(A(0, 3), A(3, 2)),
    Sample(A(2, 0), A(0, 3)),
    Sample(A(4, 2, 0), A(0, 3)),
    Sample(A(0, 2, 3), A(3)),
]
multilinear(
    np.matmul,
    matmul_a,
    matmul_b,
    fun=operator.matmul,
    labels=lambda x1, x2: matmul_labels(np.ndim(x1), np.ndim(x2)),
    samples=MATMUL,
)


def _beside(g: Any, x: Any, other: Any, axis: int) -> Any:
    """``g`` times the other factor of a dot product over ``axis``, which counts in each array on its own."""
    if axis < 0 or np.ndim(x) == np.ndim(other):
        return np.expand_dims(g, axis) * other
    moved = np.expand_dims(g, -1) * np.moveaxis(other, axis, -1)
    shape = (*np.delete(np.shape(x), axis).tolist(), np.shape(x)[axis])
    return np.moveaxis(unbroadcast(moved, np.shape(moved), shape), -1, axis)


def _kept(x1: Any, x2: Any, keepdims: bool, axis: int = -1) -> Any:
    vecdot: Any = np.vecdot
    product = vecdot(x1, x2, axis=axis)
    return np.expand_dims(product, axis) if keepdims else product


# vecdot, vecmat and vdot conjugate their first argument; so does its cotangent
multilinear(
    np.vecdot,
    lambda g, y, x1, x2, *, axis=-1: conj(_beside(g, x1, x2, axis)),
    lambda g, y, x1, x2, *, axis=-1: _beside(g, x2, conj(x1), axis),
    instead={"keepdims": _kept},
    samples=[
        Sample(A(3), A(3)),
        Sample(A(2, 3), A(2, 3)),
        Sample(A(2, 3), A(2, 3), axis=0, keepdims=True),
        Sample(A(4, 2, 3), A(2, 3)),
        Sample(A(1, 3), A(2, 3)),
        Sample(A(3, 2), A(3, 1), axis=0),
        Sample(A(3, 2), A(3, 4, 2), axis=0),
        Sample(A(3, 2), A(4, 3, 2), axis=-2),
        Sample(A(2, 0), A(2, 0)),
        Sample(A(1), A(1)),
    ],
)

if hasattr(np, "matvec"):
    multilinear(
        np.matvec,
        lambda g, y, x1, x2: g[..., None] * x2[..., None, :],
        lambda g, y, x1, x2: np.matvec(transpose(x1), g),
        samples=[
            Sample(A(2, 3), A(3)),
            Sample(A(4, 2, 3), A(3)),
            Sample(A(2, 3), A(4, 3)),
            Sample(A(4, 2, 3), A(4, 3)),
            Sample(A(1, 2, 3), A(4, 3)),
            Sample(A(0, 3), A(3)),
            Sample(A(1, 1), A(1)),
        ],
    )
    multilinear(
        np.vecmat,
        lambda g, y, x1, x2: conj(np.matvec(x2, g)),
        lambda g, y, x1, x2: conj(x1)[..., None] * g[..., None, :],
        samples=[
            Sample(A(2), A(2, 3)),
            Sample(A(2), A(4, 2, 3)),
            Sample(A(4, 2), A(2, 3)),
            Sample(A(4, 2), A(4, 2, 3)),
            Sample(A(4, 2), A(1, 2, 3)),
            Sample(A(0), A(0, 3)),
            Sample(A(1), A(1, 1)),
        ],
    )


# -- tensordot, dot, inner, outer, kron ----------------------------------------------------------------------------


def contract(a: Any, b: Any, i: Sequence[int], j: Sequence[int]) -> Any:
    """``np.tensordot(a, b, (i, j))`` in the fewest words, for axes that are not negative."""
    n, m = np.ndim(a), np.ndim(b)
    if not i:
        return a * b if not n or not m else np.outer(a, b) if n == m == 1 else np.tensordot(a, b, 0)
    if max(n, m) > 2 or len(i) > 1:
        return np.tensordot(a, b, (tuple(i), tuple(j)))
    if m == 1:
        return a @ b if i[0] == n - 1 else b @ a
    if n == 1:
        return a @ b if j[0] == 0 else b @ a
    return (a if i[0] else a.T) @ (b.T if j[0] else b)


def _other_axes(x: Any, axes: Sequence[int]) -> list[int]:
    return [k for k in range(np.ndim(x)) if k not in axes]


def _placed(g: Any, b: Any, i: Sequence[int], j: Sequence[int], kept: list[int], summed: list[int]) -> Any:
    """``contract(g, b, i, j)``, whose axes are the result's axes ``kept`` (from g), then ``summed`` (from b)."""
    order = kept + summed
    if order == sorted(order):
        return contract(g, b, i, j)
    if summed + kept == sorted(order):
        return contract(b, g, j, i)
    return np.transpose(contract(g, b, i, j), np.argsort(order).tolist())


def tensordot_a(g: Any, y: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    i, j = axis_pairs(np.ndim(a), np.ndim(b), axes)
    kept, free = _other_axes(a, i), _other_axes(b, j)
    return _placed(g, b, range(len(kept), np.ndim(g)), free, kept, [k for _, k in sorted(zip(j, i, strict=True))])


def tensordot_b(g: Any, y: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    i, j = axis_pairs(np.ndim(a), np.ndim(b), axes)
    free, kept = _other_axes(a, i), _other_axes(b, j)
    return _placed(g, a, range(len(free)), free, kept, [k for _, k in sorted(zip(i, j, strict=True))])


def _hashable(axes: Any) -> Any:
    return operator.index(axes) if np.ndim(axes) == 0 else tuple(_hashable(k) for k in axes)


def _hashable_axes(a: Any, b: Any, axes: Any = 2) -> dict[str, Any]:
    if not isinstance(axes, int):
        axes = tuple(_hashable(k) for k in axes) if np.iterable(axes) else operator.index(axes)
    return {"a": a, "b": b, "axes": axes}


multilinear(
    np.tensordot,
    tensordot_a,
    tensordot_b,
    prepare=_hashable_axes,
    labels=lambda a, b, axes=2: tensordot_labels(np.ndim(a), np.ndim(b), axes),
    samples=[
        Sample(A(2, 3), A(2, 3)),
        Sample(A(2, 3), A(3, 4), axes=1),
        Sample(A(2), A(3), axes=0),
        Sample(A(2, 3), A(4, 2), axes=0),
        Sample(A(2, 3, 4), A(4, 3, 5), axes=([1, 2], [1, 0])),
        Sample(A(2, 3, 4), A(4, 3, 5), axes=[[2, 1], [0, 1]]),
        Sample(A(2, 3, 4), A(5, 2, 4), axes=([0, -1], [1, 2])),
        Sample(A(2, 3), A(4, 2), axes=(0, 1)),
        Sample(A(2, 3), A(2, 4), axes=(0, 0)),
        Sample(A(2, 3), A(4, 3), axes=(1, -1)),
        Sample(A(3), A(2, 3), axes=(0, 1)),
        Sample(A(3), A(3), axes=1),
        Sample(A(2, 3, 4), A(3), axes=(1, 0)),
        Sample(A(0, 3), A(3, 2), axes=1),
        Sample(A(2, 0), A(0, 3), axes=1),
        Sample(A(1, 1), A(1, 1)),
        Sample(A(), A(), axes=0),
    ],
)


def _dot_axes(a: Any, b: Any) -> Any:
    n, m = np.ndim(a), np.ndim(b)
    return ((n - 1,), (max(m - 2, 0),)) if n and m else 0


def _inner_axes(a: Any, b: Any) -> Any:
    n, m = np.ndim(a), np.ndim(b)
    return ((n - 1,), (m - 1,)) if n and m else 0


multilinear(
    np.dot,
    lambda g, y, a, b: tensordot_a(g, y, a, b, _dot_axes(a, b)),
    lambda g, y, a, b: tensordot_b(g, y, a, b, _dot_axes(a, b)),
    labels=lambda a, b: tensordot_labels(np.ndim(a), np.ndim(b), _dot_axes(a, b)),
    samples=[
        Sample(A(), A()),
        Sample(A(), A(3)),
        Sample(A(2, 3), A()),
        Sample(A(3), A(3)),
        Sample(A(3), A(3, 2)),
        Sample(A(2, 3), A(3)),
        Sample(A(2, 3), A(3, 4)),
        Sample(A(3), A(4, 3, 2)),
        Sample(A(4, 2, 3), A(3)),
        Sample(A(5, 2, 3), A(3, 4)),
        Sample(A(2, 3), A(5, 3, 4)),
        Sample(A(2, 5, 3), A(4, 3, 2)),
        Sample(A(2, 0), A(0, 3)),
        Sample(A(0, 2), A(2, 3)),
        Sample(A(1, 1), A(1, 1)),
    ],
)
multilinear(
    np.inner,
    lambda g, y, a, b: tensordot_a(g, y, a, b, _inner_axes(a, b)),
    lambda g, y, a, b: tensordot_b(g, y, a, b, _inner_axes(a, b)),
    labels=lambda a, b: tensordot_labels(np.ndim(a), np.ndim(b), _inner_axes(a, b)),
    samples=[
        Sample(A(), A()),
        Sample(A(), A(3)),
        Sample(A(2, 3), A()),
        Sample(A(3), A(3)),
        Sample(A(2, 3), A(3)),
        Sample(A(3), A(2, 3)),
        Sample(A(2, 3), A(4, 3)),
        Sample(A(5, 2, 3), A(4, 3)),
        Sample(A(2, 3), A(2, 4, 3)),
        Sample(A(2, 0), A(3, 0)),
        Sample(A(1), A(1)),
    ],
)
multilinear(
    np.outer,
    lambda g, y, a, b: shaped(g @ flat(b), np.shape(a)),
    lambda g, y, a, b: shaped(flat(a) @ g, np.shape(b)),
    labels=lambda a, b: tensordot_labels(1, 1, 0) if np.ndim(a) == np.ndim(b) == 1 else ([], ""),
    samples=[
        Sample(A(2), A(3)),
        Sample(A(2, 3), A(4)),
        Sample(A(2), A(3, 2)),
        Sample(A(), A(3)),
        Sample(A(2), A()),
        Sample(A(0), A(3)),
        Sample(A(1), A(1)),
    ],
)
multilinear(
    np.vdot,
    lambda g, y, a, b: shaped(conj(g * b), np.shape(a)),
    lambda g, y, a, b: shaped(g * conj(a), np.shape(b)),
    samples=[
        Sample(A(3), A(3)),
        Sample(A(2, 3), A(2, 3)),
        Sample(A(2, 3), A(3, 2)),
        Sample(A(6), A(2, 3)),
        Sample(A(), A()),
        Sample(A(1), A()),
        Sample(A(0), A(0)),
    ],
)


def _blocks(g: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """A Kronecker product with its axes taken apart, and both factors with the same number of axes."""
    n = max(np.ndim(a), np.ndim(b))
    left, right = ((1,) * (n - np.ndim(x)) + np.shape(x) for x in (a, b))
    apart = tuple(size for pair in zip(left, right, strict=True) for size in pair)
    return np.reshape(g, apart), shaped(a, left), shaped(b, right)


def kron_a(g: Any, y: Any, a: Any, b: Any) -> Any:
    g, _, b = _blocks(g, a, b)
    return shaped(contract(g, b, range(1, np.ndim(g), 2), range(np.ndim(b))), np.shape(a))


def kron_b(g: Any, y: Any, a: Any, b: Any) -> Any:
    shape = np.shape(b)
    g, a, _ = _blocks(g, a, b)
    return shaped(contract(a, g, range(np.ndim(a)), range(0, np.ndim(g), 2)), shape)


multilinear(
    np.kron,
    kron_a,
    kron_b,
    samples=[
        Sample(A(2), A(3)),
        Sample(A(2, 3), A(4, 2)),
        Sample(A(2, 3), A(4)),
        Sample(A(3), A(2, 4)),
        Sample(A(2, 1, 3), A(2, 2)),
        Sample(A(), A(2, 3)),
        Sample(A(2), A()),
        Sample(A(), A()),
        Sample(A(1, 1), A(1, 1)),
        Sample(A(0), A(2)),
    ],
)


# -- einsum --------------------------------------------------------------------------------------------------------


def _run_einsum(*arrays: Any, subscripts: str, optimize: Any = False) -> Any:
    return np.einsum(subscripts, *arrays, optimize=optimize)


def _bind_einsum(*operands: Any, optimize: Any = False, **options: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Subscripts as an explicit string ``"ij,jk->ik"`` without spaces, whichever form they came in."""
    dtype = options.pop("dtype", None)
    defaults = {"out": None, "order": "K", "casting": "safe"}
    for name, value in options.items():
        if name not in defaults or value != defaults[name]:
            raise NotDifferentiable(f"np.einsum(..., {name}={value!r}) has no derivative rule for this option")
    if not operands:
        raise TypeError("np.einsum() needs subscripts and at least one array")
    if not isinstance(operands[0], str):
        operands = tuple(_letters(operands))
    subscripts, *arrays = operands
    if dtype is not None:
        arrays = [array_of(array).astype(dtype) for array in arrays]
    subscripts = subscripts.replace(" ", "")
    if "->" not in subscripts:
        labels = subscripts.replace("...", "").replace(",", "")
        dots = "..." if "..." in subscripts else ""
        subscripts += "->" + dots + "".join(sorted(label for label in labels if labels.count(label) == 1))
    params: dict[str, Any] = {"subscripts": subscripts}
    if optimize is not False and optimize is not None:
        params["optimize"] = tuple(optimize) if isinstance(optimize, list) else optimize
    return arrays, params


def _letters(operands: Sequence[Any]) -> Sequence[Any]:
    """``einsum(a, [0, 1], b, [1, 2], [0, 2])`` as ``einsum("ab,bc->ac", a, b)``; letters keep the numbers' order."""
    pairs, output = (operands[:-1], operands[-1:]) if len(operands) % 2 else (operands, ())
    lists = [*pairs[1::2], *output]
    labels = sorted({label for labels in lists for label in labels if label is not Ellipsis})
    letters = string.ascii_lowercase if len(labels) <= 26 else string.ascii_uppercase + string.ascii_lowercase
    names: dict[Any, str] = {Ellipsis: "...", **dict(zip(labels, letters, strict=False))}
    terms = ["".join(names[label] for label in labels) for labels in lists]
    subscripts = ",".join(terms[:-1]) + "->" + terms[-1] if output else ",".join(terms)
    return subscripts, *pairs[::2]


def terms(subscripts: str, arrays: Sequence[Any]) -> tuple[list[str], str]:
    """The labels of each array and of the result, with letters for the ellipses."""
    inputs, output = subscripts.split("->")
    words = inputs.split(",")
    if "..." not in subscripts:
        return words, output
    widths = [np.ndim(x) - len(word) + 3 if "..." in word else 0 for word, x in zip(words, arrays, strict=True)]
    free = "".join(c for c in string.ascii_uppercase + string.ascii_lowercase if c not in subscripts)[: max(widths)]
    words = [word.replace("...", free[len(free) - w :]) for word, w in zip(words, widths, strict=True)]
    return words, output.replace("...", free)


def einsum_vjp(position: int, g: Any, y: Any, *arrays: Any, subscripts: str, optimize: Any = False) -> Any:
    """The einsum with the cotangent in place of its argument; a label that only it had was summed alone: broadcast."""
    words, output = terms(subscripts, arrays)
    term, others = words[position], [output, *words[:position], *words[position + 1 :]]
    operands = [g, *arrays[:position], *arrays[position + 1 :]]
    first = [label in "".join(others) and term.index(label) == k for k, label in enumerate(term)]
    kept = "".join(label for label, is_first in zip(term, first, strict=True) if is_first)
    scale = None
    if not output and len(operands) > 1:  # a factor, not one more array to contract
        (scale, *operands), (_, *others) = operands, others
        g = operands[0]
    if others != [kept]:
        path: dict[str, Any] = {} if optimize is False else {"optimize": optimize if isinstance(optimize, str) else True}
        if len(operands) > 2 and _steps(others, operands) > LONG:
            path = path or {"optimize": True}
        g = np.einsum(f"{','.join(others)}->{kept}", *operands, **path)
    g = g if scale is None else scale * g
    if not all(first):
        g = np.expand_dims(g, tuple(k for k, is_first in enumerate(first) if not is_first))
    for k, label in enumerate(term):  # a repeated label took a diagonal
        if (start := term.index(label)) < k:
            size = np.shape(arrays[position])[k]
            shape = [size if axis in (start, k) else 1 for axis in range(len(term))]
            g = np.where(np.reshape(np.eye(size, dtype=bool), shape), g, 0)
    return g


LONG = 30_000  # products, from which on NumPy is to find an order for three arrays and more; that takes it some 50 us


def _steps(words: Sequence[str], arrays: Sequence[Any]) -> int:
    """How many products there are to be added up where all arrays are multiplied together."""
    sizes: dict[str, int] = {}
    for word, x in zip(words, arrays, strict=True):
        sizes.update(zip(word, np.shape(x), strict=True))
    return math.prod(sizes.values())


multilinear(
    np.einsum,
    einsum_vjp,
    bind=_bind_einsum,
    labels=lambda *arrays, subscripts, optimize=False: terms(subscripts, arrays),
    fun=_run_einsum,
    variadic=True,
    samples=[
        Sample("ij,jk->ik", A(2, 3), A(3, 4)),
        Sample("ij,jk", A(2, 3), A(3, 4)),
        Sample("ba", A(2, 3)),
        Sample("i j , j -> i", A(2, 3), A(3)),
        Sample("i,i->", A(3), A(3)),
        Sample("i,j->ij", A(3), A(2)),
        Sample("ij->ji", A(2, 3)),
        Sample("ij->j", A(2, 3)),
        Sample("ij->", A(2, 3)),
        Sample("ii->i", A(3, 3)),
        Sample("ii", A(3, 3)),
        Sample("iij->ji", A(3, 3, 2)),
        Sample("iii->i", A(2, 2, 2)),
        Sample("ij,ij->", A(2, 3), A(2, 3)),
        Sample("ij,ik->i", A(2, 3), A(2, 4)),
        Sample("ii,ij->j", A(3, 3), A(3, 2)),
        Sample("...ij,...jk->...ik", A(5, 2, 3), A(5, 3, 4)),
        Sample("...ij,jk->...ik", A(5, 2, 3), A(3, 4)),
        Sample("...ij,...jk", A(2, 1, 2, 3), A(5, 3, 4)),
        Sample("i...,i...->...", A(3, 2), A(3, 4, 2)),
        Sample("...i->...", A(2, 3)),
        Sample("ij,jk->ik", A(2, 1), A(3, 4)),
        Sample("ij,jk,kl->il", A(2, 3), A(3, 4), A(4, 2)),
        Sample("ij,jk,kl->il", A(2, 3), A(3, 4), A(4, 2), optimize=True),
        Sample("ij,jk,kl->il", A(2, 3), A(3, 4), A(4, 2), optimize="optimal"),
        Sample("ij,jk,kl->il", A(2, 3), A(3, 4), A(4, 2), optimize=["einsum_path", (0, 1), (0, 1)]),
        Sample("ij,j", A(2, 3), A(3), dtype=complex),
        Sample("bhid,bhjd->bhij", A(2, 2, 3, 2), A(2, 2, 3, 2)),
        Sample(",i->i", A(), A(3)),
        Sample(A(2, 3), [0, 1], A(3, 4), [1, 2]),
        Sample(A(2, 3), [0, 1], A(3, 4), [1, 2], [2, 0]),
        Sample(A(5, 2, 3), [..., 0, 1], A(3), [1], [..., 0]),
        Sample("ij,jk->ik", A(0, 3), A(3, 2)),
        Sample("ij,jk->ik", A(2, 0), A(0, 2)),
        Sample("ij,jk->ik", A(1, 1), A(1, 1)),
    ],
)


# -- cross product and convolution ---------------------------------------------------------------------------------


def _three_dimensional(a: Any, b: Any, **options: Any) -> dict[str, Any]:
    axis = options.get("axis")
    ends = (options.get("axisa", -1), options.get("axisb", -1)) if axis is None else (axis, axis)
    if any(np.shape(x)[end] != 3 for x, end in zip((a, b), ends, strict=True)):
        raise NotDifferentiable(
            "np.cross of 2-dimensional vectors (deprecated by NumPy) has no derivative rule; "
            "write a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]"
        )
    return {"a": a, "b": b, **options}


def _cross(a: Any, b: Any, axisa: int, axisb: int, axisc: int) -> Any:
    ends = {"axisa": axisa, "axisb": axisb, "axisc": axisc}
    return np.cross(a, b, **{name: axis for name, axis in ends.items() if axis != -1})


def cross_a(g: Any, y: Any, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    return _cross(b, g, axisb, axisc, axisa - np.ndim(a) if axisa >= 0 else axisa)


def cross_b(g: Any, y: Any, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    return _cross(g, a, axisc, axisa, axisb - np.ndim(b) if axisb >= 0 else axisb)


multilinear(
    np.cross,
    cross_a,
    cross_b,
    prepare=_three_dimensional,
    samples=[
        Sample(A(3), A(3)),
        Sample(A(2, 3), A(2, 3)),
        Sample(A(4, 2, 3), A(2, 3)),
        Sample(A(3), A(2, 3)),
        Sample(A(1, 3), A(2, 3)),
        Sample(A(3, 2), A(3, 2), axis=0),
        Sample(A(3, 2), A(2, 3), axisa=0, axisb=1),
        Sample(A(3, 2), A(4, 2, 3), axisa=0, axisc=1),
        Sample(A(3, 4, 2), A(3, 2), axis=0),
        Sample(A(0, 3), A(0, 3)),
    ],
)


def cut(short: int, mode: Any) -> tuple[int, int]:
    """What ``mode`` leaves out of a full convolution, before and after; ``short`` is the shorter array's length."""
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    return {"f": (0, 0), "s": ((short - 1) // 2, short // 2), "v": (short - 1, short - 1)}[mode[0]]


def _whole(g: Any, a: Any, v: Any, mode: Any, late: bool = False) -> Any:
    """The cotangent of a convolution in ``full`` mode, of which ``mode`` kept the middle."""
    ends = cut(min(np.size(a), np.size(v)), mode)
    return np.pad(g, ends[::-1] if late else ends) if any(ends) else g


# np.correlate conjugates its second argument
multilinear(
    np.convolve,
    lambda g, y, a, v, mode="full": np.correlate(_whole(g, a, v, mode), flat(conj(v)), "valid"),
    lambda g, y, a, v, mode="full": np.correlate(_whole(g, a, v, mode), flat(conj(a)), "valid"),
    samples=[
        *(Sample(A(5), A(3), mode=mode) for mode in ("full", "same", "valid")),
        *(Sample(A(2), A(5), mode=mode) for mode in ("full", "same", "valid")),
        *(Sample(A(4), A(4), mode=mode) for mode in ("full", "same", "valid")),
        Sample(A(6), A(4), mode="same"),
        Sample(A(4), A(1)),
        Sample(A(1), A(1)),
        Sample(A(), A(3)),
    ],
)


def correlate_a(g: Any, y: Any, a: Any, v: Any, mode: Any = "valid") -> Any:
    return np.convolve(_whole(g, a, v, mode, np.size(v) > np.size(a)), flat(conj(v)), "valid")


def correlate_v(g: Any, y: Any, a: Any, v: Any, mode: Any = "valid") -> Any:
    return np.correlate(flat(conj(a)), _whole(g, a, v, mode, np.size(v) > np.size(a)), "valid")


multilinear(
    np.correlate,
    correlate_a,
    correlate_v,
    samples=[
        *(Sample(A(5), A(3), mode=mode) for mode in ("full", "same", "valid")),
        *(Sample(A(2), A(5), mode=mode) for mode in ("full", "same", "valid")),
        *(Sample(A(4), A(4), mode=mode) for mode in ("full", "same", "valid")),
        Sample(A(6), A(4), mode="same"),
        Sample(A(3), A(6), mode="same"),
        Sample(A(4), A(1)),
        Sample(A(1), A(1)),
    ],
)


# -- made of others ------------------------------------------------------------------------------------------------


@composite(np.linalg.matmul, samples=MATMUL[5:])
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    return np.matmul(x1, x2)


@composite(np.linalg.outer, samples=[Sample(A(2), A(3)), Sample(A(1), A(1)), Sample(A(0), A(3))])
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    return np.outer(x1, x2)


@composite(np.linalg.tensordot, samples=[Sample(A(2, 3), A(2, 3)), Sample(A(2, 3, 4), A(4, 3, 5), axes=([1, 2], [1, 0]))])
def linalg_tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return np.tensordot(x1, x2, axes=axes)


@composite(np.linalg.vecdot, samples=[Sample(A(3), A(3)), Sample(A(2, 3), A(3)), Sample(A(3, 2), A(3, 1), axis=0)])
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    return np.vecdot(x1, x2)


@composite(np.linalg.cross, samples=[Sample(A(3), A(3)), Sample(A(2, 3), A(3)), Sample(A(3, 2), A(3, 2), axis=0)])
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return np.cross(x1, x2, axis=axis)


@composite(
    np.linalg.multi_dot,
    samples=[
        Sample([A(2, 3), A(3, 4)]),
        Sample([A(2, 3), A(3, 4), A(4, 2)]),
        Sample([A(3), A(3, 4), A(4, 2)]),
        Sample([A(2, 3), A(3, 4), A(4)]),
        Sample([A(3), A(3, 4), A(4)]),
        Sample([A(2, 5), A(5, 1), A(1, 4), A(4, 3), A(3, 2)]),
        Sample([A(0, 3), A(3, 4), A(4, 1)]),
    ],
)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of a chain in its cheapest order (Cormen et al., Introduction to Algorithms, 15.2)."""
    if out is not None:
        raise NotDifferentiable("np.linalg.multi_dot(..., out=...) has no derivative rule for this option")
    arrays = [array_of(array) for array in arrays]
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(arrays) == 2:
        return np.dot(*arrays)
    sizes = [1 if np.ndim(arrays[0]) == 1 else np.shape(arrays[0])[0], *(np.shape(x)[0] for x in arrays[1:])]

    sizes.append(1 if np.ndim(arrays[-1]) == 1 else np.shape(arrays[-1])[1])

    @functools.cache
    def plan(i: int, j: int) -> tuple[int, int]:
        """The cost of the product of arrays i to j, and after which of them to split it."""
        if i == j:
            return 0, i
        ways = ((plan(i, k)[0] + plan(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
        return min(ways)

    def product(i: int, j: int) -> Any:
        if i == j:
            return arrays[i]
        k = plan(i, j)[1]
        return product(i, k) @ product(k + 1, j)

    return product(0, len(arrays) - 1)


@composite(
    np.linalg.matrix_power,
    samples=[
        *(Sample(A(3, 3, kind="well"), n) for n in (-3, -1, 0, 1, 2, 3, 4, 7)),
        Sample(A(2, 3, 3), 3),
        Sample(A(2, 3, 3, kind="well"), -2),
        Sample(A(1, 1), 5),
        Sample(A(0, 0), 2),
    ],
)
def matrix_power(a: Any, n: int) -> Any:
    """By repeated squaring."""
    n = operator.index(n)
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 0:
        return np.zeros_like(a) + np.eye(np.shape(a)[-1], dtype=a.dtype)
    result = None
    while True:
        if n % 2:
            result = a if result is None else result @ a
        n //= 2
        if not n:
            return result
        a = a @ a
