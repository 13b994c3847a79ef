"""Products of matrices and vectors, and sums of products."""

from __future__ import annotations

import math
import string
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.eager.core import (
    NAMES,
    NONE,
    Fused,
    Tensor,
    apply,
    axis_of,
    chained,
    check_scalars,
    known,
    labelled,
    methods,
    requires,
    tied,
    unlike,
    variant,
    wrap,
)
from symgrad.eager.dtypes import c_name, number_in, title
from symgrad.eager.pointwise import FUNCTIONS, function, in_place
from symgrad.eager.shapes import expand, expanded, reshape, several, unsqueeze
from symgrad.ops.contract import matmul_a, matmul_b

MATMUL = known(np.matmul)
_PRODUCTS: dict[Any, str] = {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (2, 2): "MmBackward0", (3, 3): "BmmBackward0"}
NAMES[np.matmul] = lambda node: _PRODUCTS.get(tuple(map(np.ndim, node.args or ())), "MmBackward0")
NAMES[np.outer] = "MulBackward0"


def _same_kind(a: Tensor, b: Tensor) -> None:
    if a.value.dtype is not b.value.dtype and a.value.dtype != b.value.dtype:
        kinds = f"{c_name(a.value.dtype)} != {c_name(b.value.dtype)}"
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {kinds}")


def _check_matrices(x: Any, y: Any, names: tuple[str, str]) -> None:
    if x.ndim != 2 or y.ndim != 2:
        raise RuntimeError(f"{names[x.ndim == 2]} must be a matrix")
    if x.shape[1] != y.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({x.shape[0]}x{x.shape[1]} and {y.shape[0]}x{y.shape[1]})"
        )


@function
def matmul(input: Tensor, other: Tensor) -> Any:
    """The product of matrices, of stacks of them, and of vectors."""
    if not isinstance(other, Tensor):
        raise TypeError(f"matmul(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    x, y = input.value, other.value
    if x.dtype is not y.dtype:
        _same_kind(input, other)
    n, m = x.ndim, y.ndim
    if n == 1 and m == 2:
        if x.shape[0] != y.shape[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied (1x{x.shape[0]} and {y.shape[0]}x{y.shape[1]})")
        return _row_times_matrix(input, other)
    if n == 2 and m == 2:
        return mm(input, other)
    if n == 0 or m == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {n}D and {m}D")
    if n == 2 and m == 1:
        return mv(input, other)
    if n == 1:
        if m == 1:
            return dot(input, other)
        folded = requires(input) or _lies_in_rows(y.swapaxes(-1, -2))
        return apply(MATMUL, (input, other), NONE, _turned_label(y, False) if folded else _bmm_label(x, y))
    if m == 2:
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        _check_matrices(rows, y, ("self", "mat2"))
        folded = requires(other) or _lies_in_rows(x)
        label: Any = ("MmBackward0", _rows_label(x), 1)
        return apply(ROWS_MM, (input, other), NONE, ("UnsafeViewBackward0", label) if folded else _bmm_label(x, y))
    wrong = unlike(x.shape[:-2], y.shape[:-2])
    if wrong is not None:
        raise wrong
    if x.shape[-1] != y.shape[-2 if m > 1 else 0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{math.prod(x.shape[:-2])}, {x.shape[-1]}] but "
            f"got: [{math.prod(y.shape[:-2])}, {y.shape[-2]}]."
        )
    if m == 1:
        if x.shape[-1] != y.shape[0]:
            rows = math.prod(x.shape[:-1])
            raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{x.shape[-1]}), vec ({y.shape[0]})")
        if requires(other) or _lies_in_rows(x):
            label = ("UnsafeViewBackward0", ("MvBackward0", _rows_label(x), 1))
        else:
            label = ("UnsafeViewBackward0", ("SqueezeBackward1", _bmm_label(x, y)[1]))
    elif n == m == 3 and y.shape[0] == 1 != x.shape[0] and requires(other):
        label = ("UnsafeViewBackward0", ("MmBackward0", _rows_label(x), ("SqueezeBackward1", 1)))
    else:
        label = _turned_label(y, True) if n == 2 and requires(input) else _bmm_label(x, y)
    return apply(MATMUL, (input, other), NONE, label)


def _turned_label(y: Any, rows: bool) -> Any:
    """A vector, or the rows of a matrix, times a stack of matrices, which torch turns round."""
    turned = _rows_label(y.swapaxes(-1, -2), ("TransposeBackward0", 1))
    if not rows:
        return ("UnsafeViewBackward0", ("MvBackward0", turned, 0))
    return chained(["UnsafeViewBackward0", "TransposeBackward0", "CloneBackward0"], ("MmBackward0", turned, ("TBackward0", 0)))


def _lies_in_rows(x: Any) -> bool:
    """Whether torch takes a stack of matrices for one, of all their rows."""
    return not x.size or all([x.strides[i] == x.strides[i + 1] * x.shape[i + 1] for i in range(x.ndim - 2)])


def _rows_label(x: Any, start: Any = 0) -> Any:
    """How torch makes a matrix of the rows of a stack."""
    if x.flags.c_contiguous:
        return ("ViewBackward0", start)
    rows = x.reshape(-1, x.shape[-1])
    shared = rows.base is not None and (rows.base is x or rows.base is x.base)
    return ("ReshapeAliasBackward0", start) if shared else ("UnsafeViewBackward0", ("CloneBackward0", start))


def _bmm_label(*values: Any) -> Any:
    names = ["ViewBackward0" if value.flags.c_contiguous else "ReshapeAliasBackward0" for value in values]
    return ("UnsafeViewBackward0", ("BmmBackward0", *[(name, ("ExpandBackward0", i)) for i, name in enumerate(names)]))


def _row_times_matrix(x: Tensor, w: Tensor) -> Any:
    """As torch has it: the vector as a matrix of one row, whose product is squeezed again."""
    row = unsqueeze(x, 0) if requires(x) else tied(x.value.reshape(1, -1), x)
    product = apply(ROW_MM, (row, w), NONE, "MmBackward0")
    if product.node is None:
        return wrap(product.value.reshape(-1))
    return apply(ROW, (product,), NONE, "SqueezeBackward4")


def _rows_times_matrix(x1: Any, x2: Any) -> Any:
    """One product in place of one for each matrix of a stack."""
    return (x1.reshape(math.prod(x1.shape[:-1]), x1.shape[-1]) @ x2).reshape((*x1.shape[:-1], x2.shape[-1]))


ROWS_MM = variant(MATMUL, fun=_rows_times_matrix)
ROW_MM = variant(MATMUL, rules=(MATMUL.rules[0], lambda g, y, x1, x2: x1.reshape(-1, 1) * g))
ROW = Fused(lambda x: x.reshape(-1), lambda g, y, x: g.reshape(1, -1), family="linear", name="squeeze")


def _times(a: Any, b: Any) -> Any:
    both = [x if isinstance(x, Tensor) else wrap(x) if isinstance(x, np.ndarray) else None for x in (a, b)]
    return matmul(*both) if all([x is not None for x in both]) else NotImplemented


methods(__matmul__=_times)
methods(__rmatmul__=lambda self, other: _times(other, self))


@function
def mm(input: Tensor, mat2: Tensor) -> Any:
    """The product of two matrices."""
    _check_matrices(input.value, mat2.value, ("self", "mat2"))
    _same_kind(input, mat2)
    return apply(MATMUL, (input, mat2), NONE, "MmBackward0")


@function
def mv(input: Tensor, vec: Tensor) -> Any:
    """A matrix times a vector."""
    a, b = input.value.shape, vec.value.shape
    if len(a) != 2 or len(b) != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {len(a)}, {len(b)}")
    if a[1] != b[0]:
        raise RuntimeError(f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})")
    if input.value.dtype != vec.value.dtype:
        one, other = title(input.value.dtype), title(vec.value.dtype)
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {other}, {one}, and {other}")
    return apply(MATMUL, (input, vec), NONE, "MvBackward0")


@function
def bmm(input: Tensor, mat2: Tensor) -> Any:
    """Products of two stacks of matrices."""
    a, b = input.value.shape, mat2.value.shape
    for name, shape in (("batch1", a), ("batch2", b)):
        if len(shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}]."
        )
    check_scalars(input, mat2)
    return apply(MATMUL, (input, mat2), NONE, "BmmBackward0")


@function
def dot(input: Tensor, tensor: Tensor) -> Any:
    """The inner product of two vectors."""
    if input.value.ndim != 1 or tensor.value.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.value.ndim}D and {tensor.value.ndim}D tensors")
    if input.value.dtype != tensor.value.dtype:
        kinds = f"{title(input.value.dtype)} and {title(tensor.value.dtype)}"
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {kinds}")
    n, m = input.value.size, tensor.value.size
    if n != m:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} "
            f"and {m} elements respectively"
        )
    return apply(MATMUL, (input, tensor), NONE, "DotBackward0")


@function
def outer(input: Tensor, vec2: Tensor) -> Any:
    """All products of the elements of two vectors."""
    for name, x in (("self", input), ("vec2", vec2)):
        if x.value.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.value.ndim}-D")
    return reshape(input, (-1, 1)) * vec2


def _addmm(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """NaNs of ``c`` do not matter where ``beta`` is 0."""
    product = a @ b if alpha == 1 else (a @ b) * alpha
    return product + c if beta == 1 else product + c * beta if beta else product


ADDMM = Fused(
    _addmm,
    lambda g, y, c, a, b, beta=1, alpha=1: g if beta == 1 else g * beta,
    lambda g, y, c, a, b, beta=1, alpha=1: matmul_a(g if alpha == 1 else g * alpha, None, a, b),
    lambda g, y, c, a, b, beta=1, alpha=1: matmul_b(g if alpha == 1 else g * alpha, None, a, b),
    family="multilinear",
    name="addmm",
)


@function
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * mat1 @ mat2``."""
    _check_matrices(mat1.value, mat2.value, ("mat1", "mat2"))
    if input.value.dtype != mat2.value.dtype:
        kinds = f"{title(input.value.dtype)} and {title(mat2.value.dtype)}"
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {kinds}")
    _same_kind(mat1, mat2)
    rows, columns = len(mat1.value), mat2.value.shape[1]
    if input.value.shape not in ((columns,), (rows, columns)):
        expanded(input, (rows, columns))
    if beta == alpha == 1:
        return apply(ADDMM, (input, mat1, mat2))
    for number in (beta, alpha):
        number_in(number, input.value.dtype)
    return apply(ADDMM, (input, mat1, mat2), {"beta": beta, "alpha": alpha})


def _combined(input: Tensor, product: Any, beta: Any, alpha: Any, label: str) -> Any:
    """``beta * input + alpha * product``; NaNs of ``input`` do not matter where ``beta`` is 0."""
    kind = input.value.dtype
    expanded(input, product.value.shape)
    beta, alpha = number_in(beta, kind).item(), number_in(alpha, kind).item()
    scaled = product if alpha == 1 else (product * alpha).to(kind)
    if product.value.dtype != kind:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_name(kind)} != {c_name(product.value.dtype)}"
        )
    if beta == 0:
        return labelled(expand(scaled, scaled.value.shape), label)
    return labelled((input if beta == 1 else (input * beta).to(kind)) + scaled, label)


@function
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * mat @ vec``."""
    return _combined(input, mv(mat, vec), beta, alpha, "AddmvBackward0")


@function
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * outer(vec1, vec2)``."""
    for name, number in (("beta", beta), ("alpha", alpha)):
        if input.value.dtype.kind in "iu" and isinstance(number, float):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    return _combined(input, outer(vec1, vec2), beta, alpha, "AddrBackward0")


@function
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * bmm(batch1, batch2)``."""
    return _combined(input, bmm(batch1, batch2), beta, alpha, "BaddbmmBackward0")


@function
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * input + alpha * bmm(batch1, batch2).sum(0)``."""
    total = bmm(batch1, batch2).sum(0)
    total = total if total.value.dtype == batch1.value.dtype else total.to(batch1.dtype)  # whole numbers are added up in int64
    return _combined(input, total, beta, alpha, "AddbmmBackward0")


@function
def vdot(input: Tensor, other: Tensor) -> Any:
    """The inner product of two vectors, the first one conjugated."""
    return labelled(dot(input.conj(), other), "VdotBackward0")


def einsum(*args: Any) -> Any:
    """Sums of products, by Einstein's convention: an equation and operands, or operands, each with a list of subscripts."""
    if not isinstance(args[0], str):
        args = _lettered(args)
    equation, *operands = args
    given = several(operands)
    equation = equation.replace(" ", "")
    _check_equation(equation, given)
    terms, output = _terms(equation, given)
    if "." in equation.partition("->")[0] and "." not in equation.partition("->")[2] and "->" in equation:
        equation = f"{','.join(terms)}->{output}"  # which sums what the ellipsis stands for
    if len(given) < 3 or "." in equation:
        return _einsum(equation, given, terms, output, "".join(terms))
    return _pairwise(list(given), terms, output)


def _check_equation(equation: str, operands: Sequence[Tensor]) -> None:
    """Torch's errors for an equation that does not go with the operands."""
    start, _, output = equation.partition("->")
    terms = start.split(",")
    if len(terms) != len(operands):
        many = "fewer" if len(operands) < len(terms) else "more"
        raise RuntimeError(f"einsum(): {many} operands were provided than specified in the equation")
    sizes: dict[str, int] = {}
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        shape = x.value.shape
        if "." in term:
            first, _, last = term.partition("...")
            if len(first + last) > x.value.ndim:
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({len(first + last)}) is more than the number of "
                    f"dimensions ({x.value.ndim}) for operand {i}"
                )
            shape, term = (*shape[: len(first)], *shape[x.value.ndim - len(last) :]), first + last
        elif len(term) != x.value.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the number of dimensions "
                f"({x.value.ndim}) for operand {i} and no ellipsis was given"
            )
        for letter, n in zip(term, shape, strict=True):
            seen = sizes.get(letter, 1)
            if seen != n and 1 not in (seen, n):
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {n} for operand {i} which does not broadcast with previously seen "
                    f"size {seen}"
                )
            sizes[letter] = max(seen, n) if seen * n else 0
    for letter in output:
        if letter != "." and letter not in start:
            raise RuntimeError(f"einsum(): output subscript {letter} does not appear in the equation for any input operand")


def _lettered(args: Sequence[Any]) -> tuple[Any, ...]:
    """An equation and operands of operands that are each followed by a list of subscripts, the result's perhaps last."""
    operands, lists = args[:-1:2] if len(args) % 2 else args[::2], [*args[1::2], *(args[-1:] if len(args) % 2 else ())]
    letters = string.ascii_uppercase + string.ascii_lowercase
    terms = ["".join(["..." if n is Ellipsis else letters[n] for n in subscripts]) for subscripts in lists]
    inputs = ",".join(terms[: len(operands)])
    return (f"{inputs}->{terms[-1]}" if len(args) % 2 else inputs, *operands)


def _pairwise(operands: list[Any], terms: list[str], output: str) -> Any:
    """Several operands, multiplied one after the other."""
    product, *rest = operands
    term, *later = terms
    letters = "".join(terms)
    earlier: tuple[int, ...] = ()
    for x, other in zip(rest, list(later), strict=True):
        later = later[1:]
        wanted = output + "".join(later)
        kept = "".join([c for c in dict.fromkeys(letters) if c in term + other and c in wanted]) if later else output
        product = _einsum(f"{term},{other}->{kept}", (product, x), (term, other), kept, letters, earlier, not later)
        term, earlier = kept, (0,)
    return product


def _terms(equation: str, operands: Sequence[Any]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, also those that an ellipsis and a missing result stand for."""
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    free = [c for c in _LETTERS if c not in equation]
    wide = [x.value.ndim - len(term) + 3 for term, x in zip(terms, operands, strict=True) if "." in term]
    dots = "".join(free[: max(wide, default=0)])
    terms = [
        term.replace("...", dots[len(dots) - (x.value.ndim - len(term) + 3) :]) for term, x in zip(terms, operands, strict=True)
    ]
    letters = "".join(terms)
    if not arrow:
        output = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots))
    return terms, output.replace("...", dots)


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _einsum(
    equation: str,
    operands: Sequence[Any],
    terms: Sequence[str],
    output: str,
    letters: str,
    earlier: Sequence[int] = (),
    last: bool = True,
) -> Any:
    if not set("".join(terms)) <= set(output):  # by products of matrices
        check_scalars(*operands)
    operands = [_counted(x, i, terms, output) for i, x in enumerate(operands)]
    result = np.einsum(equation, *operands)
    if not isinstance(result, Tensor) or result.node is None:
        return result
    return labelled(result, _einsum_label(operands, terms, output, letters, earlier, last))


def _counted(x: Tensor, place: int, terms: Sequence[str], output: str) -> Tensor:
    """An operand, in int64 if it holds whole numbers and is summed over a dimension of its own, as torch does."""
    others = output + "".join([term for i, term in enumerate(terms) if i != place])
    return x if x.value.dtype.kind in "fc" or set(terms[place]) <= set(others) else x.to(np.int64)


def _einsum_label(
    operands: Sequence[Any], terms: Sequence[str], output: str, letters: str, earlier: Sequence[int], last: bool
) -> Any:
    """How torch puts an einsum together: operands lined up by ``permute``, multiplied or summed by ``bmm``.

    ``letters``: of all operands, also of those that come later. ``earlier``: which operands are products of others, lined up
    already. ``last``: whether this is the whole.
    """
    lined: list[Any] = []
    for i, term in enumerate(terms):
        repeated = sum(term.count(c) - 1 for c in set(term))
        missing = len(set(letters)) - len(set(term))
        steps = ["DiagonalBackward0", "PermuteBackward0"] * repeated + ["UnsqueezeBackward0"] * missing + ["PermuteBackward0"]
        lined.append(i if i in earlier else chained(steps, i) if len(steps) > 1 or i else (steps[0], i))
    summed = [c for c in dict.fromkeys(letters) if c not in output]
    if len(terms) == 1:
        return ("SumBackward1", lined[0]) if summed else lined[0]
    if not summed:
        return ("MulBackward0", *lined)
    sides = []
    for i, (side, term) in enumerate(zip(lined, terms, strict=True)):
        alone = [c for c in summed if c in term and c not in terms[1 - i]]
        steps = ["SumBackward1"] * len(alone) + ["PermuteBackward0", _reshape_name(operands[i], term, terms, output, i)]
        sides.append(chained(steps, side))
    steps = ["ViewBackward0", "PermuteBackward0", "ViewBackward0"]
    return chained(steps if last else steps[:-1], ("BmmBackward0", *sides))


def _reshape_name(x: Tensor, term: str, terms: Sequence[str], output: str, place: int) -> str:
    """How an operand of ``bmm`` gets its shape: a view of memory that lies in order, or of one that does not."""
    other = terms[1 - place]
    kinds = [
        [c for c in output if c in term and c in other],
        [c for c in output if c in term and c not in other],
        [c for c in term if c not in output],
    ]
    order = [*kinds[0], *(kinds[1] + kinds[2] if place == 0 else kinds[2] + kinds[1])]
    if sorted(order) != sorted(term):
        return "ViewBackward0"
    return "ViewBackward0" if x.value.transpose([term.index(c) for c in order]).flags.c_contiguous else "ReshapeAliasBackward0"


def _same_dtype(a: Tensor, b: Tensor) -> None:
    if a.value.dtype != b.value.dtype:
        raise RuntimeError("both inputs should have same dtype")


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Any:
    """Products summed over pairs of dimensions."""
    _same_dtype(a, b)
    kind = a.dtype
    if isinstance(dims, int):
        dims = (range(-dims, 0), range(dims))
    axes = tuple(tuple(axis_of(d, x.value.ndim) for d in given) for x, given in zip((a, b), dims, strict=True))
    for i, j, *named in zip(*axes, *dims, strict=True):
        m, n = a.value.shape[i], b.value.shape[j]
        if m != n and 1 in (m, n):  # what is summed is as long as the other
            a, b = (a.sum(i, keepdim=True), b) if n == 1 else (a, b.sum(j, keepdim=True))
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {named[0]} and second has size {n} in "
                f"dim {named[1]}"
            )
    result: Any = np.tensordot(a, b, axes)  # type: ignore[arg-type]
    if result.value.dtype != kind:
        result = result.to(kind)  # whole numbers are added up in int64
    lined = [("ViewBackward0", ("PermuteBackward0", i)) for i in (0, 1)]
    return labelled(result, ("ViewBackward0", ("MmBackward0" if np.ndim(result) else "DotBackward0", *lined)))


@function
def kron(input: Tensor, other: Tensor) -> Any:
    """The Kronecker product."""
    n = max(input.value.ndim, other.value.ndim)
    a, b = ((1,) * (n - x.value.ndim) + x.value.shape for x in (input, other))
    left = labelled(reshape(input, [m for size in a for m in (size, 1)]), "UnsafeViewBackward0")
    right = labelled(reshape(other, [m for size in b for m in (1, size)]), "UnsafeViewBackward0")
    return labelled(reshape(left * right, [i * j for i, j in zip(a, b, strict=True)]), "UnsafeViewBackward0")


@function
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Any:
    """Cross products along a dimension: the first one of size 3, unless told."""
    if input.value.ndim != other.value.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if dim is None:
        warnings.warn("Using torch.cross without specifying the dim arg is deprecated.", UserWarning, stacklevel=2)
        dim = next((i for i, n in enumerate(input.value.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    check_scalars(input, other)
    size = input.value.shape[axis_of(dim, input.value.ndim)]
    if size != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {size} and {size}")
    return labelled(np.cross(input, other, axis=dim), "LinalgCrossBackward0")


@function
def inner(input: Tensor, other: Tensor) -> Any:
    """Products summed over the last dimension."""
    if not input.value.ndim or not other.value.ndim:
        return input * other
    _same_dtype(input, other)
    lined = [("PermuteBackward0", i) for i in (0, 1)]
    if input.value.ndim == other.value.ndim == 1:
        return labelled(np.inner(input, other), ("ViewBackward0", ("DotBackward0", *lined)))
    label = ("MmBackward0", ("ViewBackward0", lined[0]), ("ReshapeAliasBackward0", lined[1]))
    return labelled(np.inner(input, other), ("ViewBackward0", label))


for _fun in (addmm, addmv, addr, baddbmm, addbmm):
    in_place(_fun.__name__, _fun)
FUNCTIONS.update(einsum=einsum, tensordot=tensordot, ger=outer)
methods(ger=outer)
