"""Convolutions that are written as sums over taps, ``x[k : k + n] @ w[k]``, and their gradients, as one product over windows.

A *tap* is a product of two arrays, of which one is a slice, and the other is what an index picks; from one tap to the next the
slice is shifted, and the index goes on. In a derivative by the kernel the index is where the product is written, in one by the
image the slice is. Taps that go through all of a box of indices are

* one contraction with ``sliding_window_view`` of the array that the slices are of;
* where they are written into slices, one contraction, whose windows are added up where they are from;
* in one dimension, and of single numbers, ``np.correlate`` or ``np.convolve``.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from symgrad import runtime
from symgrad.ir import Aval, Node
from symgrad.ops import index
from symgrad.ops.contract import LABELS
from symgrad.ops.core import Op
from symgrad.ops.engine import ASTYPE
from symgrad.ops.shape import ADD_WINDOWS
from symgrad.optimize.contraction import WINDOWS, Product, bare, product_of
from symgrad.optimize.lower import LONG
from symgrad.optimize.rewriting import Rewrite, Simplifier, const, is_op, join, rewrite, split
from symgrad.program import Program

TAPS: dict[Any, list[Rewrite]] = {}
SEVERAL = 3  # taps that are worth it
WORTH = 512  # products of numbers that are
CORRELATE = Op(runtime.correlate, "constant", (), name="runtime.correlate")  # made here only, after all derivatives are taken


def taps(program: Program) -> Program:
    """The same program with sums over taps as single products."""
    nodes = program.nodes()
    read = [node for node in nodes if node.op is index.GETITEM]
    added = [node.args[node.op is not index.SCATTER] for node in nodes if node.op in index.SCATTERING]
    slices = any([isinstance(part.aval, Aval) and part.aval.shape for part in (*read, *added)])  # rather than single numbers
    if len(read) < SEVERAL or not slices:
        return program
    return Tapper(program, TAPS).run()


class Tapper(Simplifier):
    """Knows where sums, and chains of writes, end."""

    def __init__(self, program: Program, rules: dict[Any, list[Rewrite]]) -> None:
        super().__init__(program, rules)
        nodes = program.nodes()
        uses = Counter([*(arg for node in nodes for arg in node.args), *program.roots()])
        self.inner: set[Node] = set()  # the sums and writes that others go on with
        for node in nodes:
            for arg in node.args if _is_sum(node) else node.args[:1] if node.op in index.WRITING else ():
                goes_on = _is_sum(arg) if _is_sum(node) else arg.op in index.SCATTERING
                if goes_on and uses[arg] == 1 and arg.aval == node.aval:
                    self.inner.add(arg)
        self.ends = {node for node in nodes if (_is_sum(node) or node.op in index.WRITING) and node not in self.inner}
        self.links: set[Node] = set()  # the same inner ones, rebuilt
        self.visited: Node | None = None

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        self.visited = node
        new = super().visit(node, args)
        if node in self.inner:
            self.links.add(new)
        return new

    def at_end(self) -> bool:
        """Whether the node that is visited ends a sum or a chain of writes; once for each."""
        here, self.visited = self.visited in self.ends, None
        return here


def _is_sum(node: Node) -> bool:
    return is_op(node, np.add) or is_op(node, np.subtract)


class Shift(NamedTuple):
    """One axis of slices against one of indices, which are from ``low`` on, as many as ``length``.

    The slices of the first start at ``start``, those of each of the others ``step`` further.
    """

    axis: int
    place: int
    low: int
    length: int
    start: int
    step: int


Part = int | range


def _parts(spec: index.Spec, shape: tuple[int, ...]) -> tuple[Part, ...] | None:
    """What an index of numbers and slices names along each axis."""
    if len(spec) > len(shape) or not all(type(part) in (int, index.Slice) for part in spec):
        return None
    spec = (*spec, *[index.EVERY] * (len(shape) - len(spec)))
    found = [part % n if type(part) is int else range(n)[slice(*part)] for part, n in zip(spec, shape, strict=True)]
    return None if any(type(part) is range and (not part or part.step < 0) for part in found) else tuple(found)


def _spec(parts: Sequence[Part]) -> index.Spec:
    return tuple([part if type(part) is int else _slice(cast(range, part)) for part in parts])


def _slice(part: range) -> index.Slice:
    return index.Slice(part.start, part.stop, part.step if part.step > 1 else None)


def _shifts(slices: Sequence[tuple[Part, ...]], indices: Sequence[tuple[Part, ...]]) -> list[Shift] | None:
    """How slices are shifted as indices go on; None where that is not regular, or the indices leave some out."""
    if len(set(indices)) < len(indices) or not all(_alike(slices[0], other) for other in slices):
        return None
    if any(type(part) is range and other[i] != part for other in indices for i, part in enumerate(indices[0])):
        return None
    found: list[Shift] = []
    for place, part in enumerate(indices[0]):
        values = sorted({cast(int, other[place]) for other in indices}) if type(part) is int else []
        if len(values) < 2:
            continue
        for axis, piece in enumerate(slices[0]):
            if type(piece) is range and axis not in [shift.axis for shift in found]:
                starts = {(other[place], cast(range, one[axis]).start) for one, other in zip(slices, indices, strict=True)}
                shift = _regular(sorted(starts), axis, place)
                if shift is not None and len(starts) == len(values):
                    found.append(shift)
                    break
        else:
            return None
    moving = {axis for axis, piece in enumerate(slices[0]) if any(other[axis] != piece for other in slices)}
    whole = math.prod(shift.length for shift in found) == len(indices)
    return sorted(found) if found and whole and moving == {shift.axis for shift in found} else None


def _alike(one: tuple[Part, ...], other: tuple[Part, ...]) -> bool:
    """Whether slices are the same but for where they start."""
    return all(
        (len(a), a.step) == (len(b), b.step) if type(a) is range and type(b) is range else a == b
        for a, b in zip(one, other, strict=True)
    )


def _regular(starts: Sequence[tuple[Any, int]], axis: int, place: int) -> Shift | None:
    """One start for each of indices in a row, at the same distances."""
    (low, start), (_, second), *_ = starts
    step = second - start
    if not step or any(pair != (low + i, start + i * step) for i, pair in enumerate(starts)):
        return None
    return Shift(axis, place, low, len(starts), start, step)


# -- reading -------------------------------------------------------------------------------------------------------


def _read(node: Node) -> Product | None:
    """A multiple of a product of two arrays, or of an array and a number, as a contraction."""
    c, x = split(node)
    p = product_of(x)
    alike = all([type(arg.aval) is Aval and arg.aval.dtype == x.aval.dtype for arg in x.args])
    if p is None and alike and x.aval.dtype.kind == "f":
        labels = LABELS[: len(x.aval.shape)]
        if is_op(x, np.multiply) and sorted([arg.aval.shape for arg in x.args]) == [(), x.aval.shape]:
            terms = tuple(["" if not arg.aval.shape else labels for arg in x.args])
            p = Product(x.args, terms, labels, dict(zip(labels, x.aval.shape, strict=True)))
        elif is_op(x, np.sum) and not x.params and is_op(x.args[0], np.multiply):
            shape, pair = x.args[0].aval.shape, x.args[0].args
            labels = LABELS[: len(shape)]
            if all(arg.aval.shape == shape for arg in pair):
                p = Product(pair, (labels, labels), "", dict(zip(labels, shape, strict=True)))
    if p is None or len(p.operands) != 2:
        return None
    p = _unmerged(bare(p))
    return p._replace(factor=p.factor * c)


def _unmerged(p: Product) -> Product:
    """Without what only puts the first axes of both operands together: ``x.reshape(-1, n).T @ g.reshape(-1, m)``."""
    if not all(is_op(x, np.reshape) and "order" not in dict(x.params) for x in p.operands) or {*map(len, p.terms)} != {2}:
        return p
    (x, y), (a, b) = [x.args[0] for x in p.operands], p.terms
    ndim = len(x.aval.shape) - 1
    if a[0] != b[0] or a[0] in p.out or ndim < 1 or x.aval.shape[:-1] != y.aval.shape[:-1]:
        return p
    if x.aval.shape[-1] != p.sizes[a[1]] or y.aval.shape[-1] != p.sizes[b[1]]:
        return p
    labels = "".join([label for label in LABELS if label not in a + b + p.out][:ndim])
    sizes = p.sizes | dict(zip(labels, x.aval.shape[:-1], strict=True))
    return p._replace(operands=(x, y), terms=(labels + a[1], labels + b[1]), sizes=sizes)


def _pick(x: Node) -> tuple[Node, tuple[Part, ...]] | None:
    """The array that an operand is a part of, and which."""
    if x.op is not index.GETITEM or len(x.args) > 1 or x.args[0].aval.kind != "array":
        return None
    parts = _parts(dict(x.params)["spec"], x.args[0].aval.shape)
    return None if parts is None else (x.args[0], parts)


# -- rewriting -----------------------------------------------------------------------------------------------------


@rewrite(np.add, np.subtract, rules=TAPS)
def sum_of_taps(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """``x[0:n] @ w[0] + x[1 : n + 1] @ w[1] + ...``"""
    assert isinstance(s, Tapper)
    if not s.at_end() or not node.aval.shape:
        return None
    rest: list[tuple[float, Node]] = []
    groups: dict[Any, list[tuple[Product, Any]]] = {}
    single = node.aval._replace(dtype=np.dtype(np.float32)) if node.aval.dtype == np.float64 else None  # as precise, at least
    for sign, term in _terms(s, node):
        p = _read(term) if term.aval in (node.aval, single) else None
        picks = None if p is None else [_pick(x) for x in p.operands]
        if p is None or picks is None or None in picks:
            rest.append((sign, term))
        else:
            key = p.terms, p.out, p.factor * sign, tuple(sorted(p.sizes.items())), *(pick[0] for pick in picks if pick)
            groups.setdefault(key, []).append((p._replace(factor=p.factor * sign), picks))
    made = [found for group in groups.values() if (found := _forward(s, group, node.aval.dtype)) is not None]
    if len(made) < len(groups) or not made:
        return None
    total = functools.reduce(functools.partial(s.add, np.add), made)
    for sign, term in reversed([(sign, term) for sign, term in rest if const(term) != 0]):
        total = s.add(np.add if sign > 0 else np.subtract, *((term, total) if sign > 0 else (total, term)))
    return total


def _terms(s: Tapper, node: Node) -> list[tuple[float, Node]]:
    """The terms of a sum, with their signs."""
    found, waiting = list[tuple[float, Node]](), [(1.0, node)]
    while waiting:
        sign, x = waiting.pop()
        if x is node or (x in s.links and _is_sum(x)):
            waiting += [(-sign if is_op(x, np.subtract) else sign, x.args[1]), (sign, x.args[0])]
        else:
            found.append((sign, x))
    return found


def _forward(s: Tapper, group: list[tuple[Product, Any]], dtype: np.dtype[Any]) -> Node | None:
    """The sum of taps of one kind, in the precision of the sum."""
    p = group[0][0]
    if not _pays(len(group), p):
        return None
    for i, j in ((0, 1), (1, 0)):
        slices, indices = ([picks[k][1] for _, picks in group] for k in (i, j))
        shifts = _shifts(slices, indices)
        if shifts is None:
            continue
        x, w = (group[0][1][k][0] for k in (i, j))
        x, w = (one if one.aval.dtype == dtype else s.call(ASTYPE, one, dtype=dtype) for one in (x, w))
        if not p.terms[j]:
            return _line(s, p, x, w, shifts, slices[0], indices[0])
        new, terms = _labels(p, shifts), list(p.terms)
        view, kernel = _windows(s, x, shifts, slices[0]), _box(s, w, shifts, indices[0])
        terms[i] += "".join(new)
        terms[j] = _spelled(p.terms[j], shifts, new, indices[0])
        return join(s, p.factor, _einsum(s, (view, kernel) if i == 0 else (kernel, view), terms, p.out))
    return None


def _line(
    s: Tapper, p: Product, x: Node, w: Node, shifts: list[Shift], part: tuple[Part, ...], place: tuple[Part, ...]
) -> Node | None:
    """Taps of single numbers along a line."""
    if len(p.out) != 1 or len(part) != 1 or not _is_plain(shifts, part):
        return None
    kernel = _box(s, w, shifts, place)
    key = np.correlate if shifts[0].step > 0 else np.convolve
    return join(s, p.factor, s.call(key, _cut(s, x, shifts, part), kernel, mode="valid"))


@rewrite(*index.WRITING, rules=TAPS)
def written_taps(s: Simplifier, node: Node, args: tuple[Node, ...]) -> Node | None:
    """What taps give back to their kernels, and to what they are slices of."""
    assert isinstance(s, Tapper)
    if not s.at_end():
        return None
    writes = [node]
    while writes[-1].op in index.WRITING:
        if len(writes[-1].args) != 2 or (writes[-1] is not node and writes[-1] not in s.links):
            return None
        writes.append(writes[-1].args[0])
    if writes[-1].op is not index.SCATTER or len(writes[-1].args) != 1 or writes[-1] not in s.links:
        return None
    groups: dict[Any, list[tuple[Node, Any, Product]]] = {}
    for write in writes:
        p, place = _read(write.args[-1]), _parts(dict(write.params)["spec"], node.aval.shape)
        if p is not None and place is not None and write.args[-1].aval.shape == p.shape(p.out):
            key = p.terms, p.out, p.factor, tuple(sorted(p.sizes.items()))
            groups.setdefault(key, []).append((write, place, p))
    group = max(groups.values(), key=len, default=[])
    rest = [write for write in writes if write not in [one for one, _, _ in group]]
    added = all(write.op is not index.SETITEM for write in writes)
    if not group or (rest and not added) or not _pays(len(group), group[0][2]):
        return None
    made = _written(s, node, [place for _, place, _ in group], [p for _, _, p in group], added)
    if made is None:
        return None
    for write in reversed(rest):
        made = s.graph.add(index.INDEX_ADD, (made, write.args[-1]), (("spec", dict(write.params)["spec"]),), node.aval)
    return made


def _written(s: Tapper, node: Node, places: list[tuple[Part, ...]], products: list[Product], added: bool) -> Node | None:
    """Products of one kind that are written, or all ``added``, in their places."""
    p = products[0]
    for i, j in ((0, 1), (1, 0)):
        picks = [pick for q in products if (pick := _pick(q.operands[i])) is not None]
        if len(picks) < len(products) or any(q.operands[j] is not p.operands[j] for q in products):
            continue
        base, parts = picks[0][0], [pick[1] for pick in picks]
        if any(pick[0] is not base for pick in picks):
            continue
        made = _to_kernel(s, node, p, i, base, parts, places)
        if made is None and added:
            made = _to_slices(s, node, p, i, base, parts, places)
        if made is not None:
            return made
    return None


def _to_kernel(
    s: Tapper, node: Node, p: Product, i: int, x: Node, slices: list[tuple[Part, ...]], places: list[tuple[Part, ...]]
) -> Node | None:
    """Products with shifted slices, each written where its index says."""
    shifts = _shifts(slices, places)
    if shifts is None:
        return None
    g = p.operands[1 - i]
    if not p.out:
        if len(slices[0]) != 1 or len(places[0]) != 1 or not _is_plain(shifts, slices[0]):
            return None
        if p.terms[0] != p.terms[1]:  # the sums of both, multiplied
            return None
        if x.aval.dtype.kind == "c":  # which np.correlate conjugates
            return None
        whole = _cut(s, x, shifts, slices[0])
        if p.sizes[p.terms[i]] < LONG:
            value = s.call(np.correlate, whole, g, mode="valid")
        else:
            value = s.graph.add(CORRELATE, (whole, g), (), x.aval._replace(shape=(shifts[0].length,)))
        if shifts[0].step < 0:
            value = s.call(index.GETITEM, value, spec=(index.Slice(None, None, -1),))
    else:
        if not set(p.terms[i]) & set(p.out):
            return None
        new, terms = _labels(p, shifts), list(p.terms)
        terms[i] += "".join(new)
        out = _spelled(p.out, shifts, new, places[0])
        view = _windows(s, x, shifts, slices[0])
        value = _einsum(s, (view, g) if i == 0 else (g, view), terms, out)
    box = _box_of(shifts, places[0])
    return _put(s, node, join(s, p.factor, value), box)


def _to_slices(
    s: Tapper, node: Node, p: Product, i: int, w: Node, indices: list[tuple[Part, ...]], places: list[tuple[Part, ...]]
) -> Node | None:
    """Products with what an index picks, each added to a shifted slice."""
    shifts = _shifts(places, indices)
    if shifts is None or not _is_plain(shifts, places[0]):
        return None
    g = p.operands[1 - i]
    kernel = _box(s, w, shifts, indices[0], forward=True)
    region = _region(shifts, places[0])
    if not p.terms[i]:
        if len(region) != 1 or len(kernel.aval.shape) != 1:
            return None
        value = s.call(np.convolve, g, join(s, p.factor, kernel))
    else:
        new, terms = _labels(p, shifts), list(p.terms)
        terms[i] = _spelled(p.terms[i], shifts, new, indices[0])
        operands = (kernel, g) if i == 0 else (g, kernel)
        shape = tuple([len(part) for part in region if type(part) is range])
        if len(shape) < len(region):
            return None
        windows = join(s, p.factor, _einsum(s, operands, terms, p.out + "".join(new)))
        value = s.call(ADD_WINDOWS, windows, shape=shape, axes=tuple([shift.axis for shift in shifts]))
    return _put(s, node, value, region)


# -- writing -------------------------------------------------------------------------------------------------------


def _pays(count: int, p: Product) -> bool:
    return count >= SEVERAL and count * p.size(tuple(p.sizes)) >= WORTH


def _is_plain(shifts: Sequence[Shift], part: tuple[Part, ...]) -> bool:
    """Whether slices have no gaps, and are shifted by one."""
    return all(abs(shift.step) == 1 for shift in shifts) and all(type(one) is int or cast(range, one).step == 1 for one in part)


def _labels(p: Product, shifts: Sequence[Shift]) -> list[str]:
    return [label for label in LABELS if label not in p.sizes][: len(shifts)]


def _spelled(term: str, shifts: Sequence[Shift], new: Sequence[str], place: tuple[Part, ...]) -> str:
    """The labels of all axes of a box, given those that an index leaves."""
    here, kept = {shift.place: label for shift, label in zip(shifts, new, strict=True)}, iter(term)
    return "".join([here[i] if i in here else next(kept) if type(part) is range else "" for i, part in enumerate(place)])


def _region(shifts: Sequence[Shift], part: tuple[Part, ...]) -> list[Part]:
    """What all slices are within."""
    region = list(part)
    for shift in shifts:
        one = cast(range, part[shift.axis])
        first = shift.start + min(shift.step, 0) * (shift.length - 1)
        reach = (len(one) - 1) * one.step + abs(shift.step) * (shift.length - 1)
        region[shift.axis] = range(first, first + reach + 1)
    return region


def _cut(s: Tapper, x: Node, shifts: Sequence[Shift], part: tuple[Part, ...]) -> Node:
    """What all slices of an array are within."""
    return _part(s, x, _region(shifts, part))


def _part(s: Tapper, x: Node, parts: Sequence[Part]) -> Node:
    if all(part == range(n) for part, n in zip(parts, x.aval.shape, strict=True)):
        return x
    return s.call(index.GETITEM, x, spec=_spec(parts))


def _windows(s: Tapper, x: Node, shifts: Sequence[Shift], part: tuple[Part, ...]) -> Node:
    """All slices of an array as one view, with an axis at the end for each shift."""
    inner = _cut(s, x, shifts, part)
    kept = [axis for axis, one in enumerate(part) if type(one) is range]
    axes = tuple([kept.index(shift.axis) for shift in shifts])
    lengths = tuple([abs(shift.step) * (shift.length - 1) + 1 for shift in shifts])
    view = s.call(WINDOWS, inner, window_shape=lengths, axis=axes)
    spec = [index.EVERY] * len(kept)
    for axis, shift in zip(axes, shifts, strict=True):
        stride = cast(range, part[shift.axis]).step
        spec[axis] = index.Slice(None, None, stride if stride > 1 else None)
    spec += [index.Slice(None, None, shift.step if shift.step != 1 else None) for shift in shifts]
    return view if set(spec) == {index.EVERY} else s.call(index.GETITEM, view, spec=tuple(spec))


def _box_of(shifts: Sequence[Shift], place: tuple[Part, ...]) -> list[Part]:
    """All indices at once."""
    box = list(place)
    for shift in shifts:
        box[shift.place] = range(shift.low, shift.low + shift.length)
    return box


def _box(s: Tapper, w: Node, shifts: Sequence[Shift], place: tuple[Part, ...], forward: bool = False) -> Node:
    """What all indices pick; ``forward``: in the order in which the slices are."""
    kernel = _part(s, w, _box_of(shifts, place))
    back = {shift.place for shift in shifts if shift.step < 0} if forward else set()
    if not back:
        return kernel
    kept = [i for i, part in enumerate(place) if type(part) is range or i in [shift.place for shift in shifts]]
    return s.call(index.GETITEM, kernel, spec=tuple([index.Slice(None, None, -1 if i in back else None) for i in kept]))


def _put(s: Tapper, node: Node, value: Node, region: Sequence[Part]) -> Node:
    """A value in its place among zeros, if there are any."""
    if value.aval.shape == node.aval.shape:
        return value
    return s.make(index.SCATTER, (value,), (("shape", node.aval.shape), ("spec", _spec(region))), node.aval)


def _einsum(s: Tapper, operands: tuple[Node, ...], terms: Sequence[str], out: str) -> Node:
    return s.call(np.einsum, *operands, subscripts=f"{','.join(terms)}->{out}")
