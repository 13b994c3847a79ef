"""Loops distributed: what the iterations do not need of one another is done for all of them at once.

Reverse mode makes loops that sum up the cotangent of what every iteration reads, one small product an iteration. Nobody reads
such a total before the loop is over: the loop saves what the terms are made of, as one array with a row an iteration, and after
it one large product of these arrays gives the total. So do one sum of few numbers, and one addition to the rows or columns
that the iterations add to.

Whatever else a loop saves lies in such arrays, too, where it is much: rows of one array need no fresh memory each.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir import CAPTURED, CONST, Aval, Node, Sequence, ancestors
from symgrad.ops import index
from symgrad.ops.contract import LABELS
from symgrad.ops.core import REGISTRY, Op, ops_of
from symgrad.ops.engine import ASTYPE, ITEM, STACKED
from symgrad.ops.linalg import COFACTOR
from symgrad.optimize.contract import CONTRACT
from symgrad.optimize.contraction import Contractor, product_of
from symgrad.optimize.fuse import is_elementwise
from symgrad.optimize.loops import BodyProgram, copied, index_at, rows_at
from symgrad.optimize.lower import LIKE_UFUNCS, OVER, SELECT
from symgrad.optimize.rewriting import REACH, Simplifier, const, filling, is_op, is_zero, join, split
from symgrad.optimize.structure import CHOLESKY, INVERSE
from symgrad.program import Program
from symgrad.transform.loop import Body, Course, Loop, loop_of

ROW = 65_536  # bytes that an iteration saves of one value at most: larger products are as fast one by one
ROWS = 33_554_432  # and all iterations together
MUCH = 262_144  # bytes of a value that all iterations save, and of one of them, from which on they lie in an array
EARLY = 2_097_152  # bytes of products that are made before the loop: more is memory that the loop has no need of
SOME = 2048
FEW = 4  # iterations for which it is not worth it
CALL = 4096  # bytes of a value, up to which computing it takes hardly longer than calling what computes it
OFTEN = 8  # iterations from which on these calls count


def distribute(program: Program) -> Program:
    """The same program with the totals of its loops taken out of them, and what they save in arrays."""
    if program.apart:
        return program
    nodes = program.nodes()
    plans = {node: plan_of(node) for node in nodes if isinstance(node.op, Loop)}
    arrays = {sequence for plan in plans.values() for sequence in plan.arrays}
    arrays |= {node for node in nodes if isinstance(node.aval, Sequence) and is_counted(node) and _is_much(node)}
    if not arrays and not any(plan.totals or plan.before or plan.steady for plan in plans.values()):
        return program
    return _Distributor(program, plans, arrays).run()


# -- what to do ----------------------------------------------------------------------------------------------------


class Term(NamedTuple):
    """What an iteration adds to a total, and a factor of it; ``add`` is what adds it, if only to a part of the total."""

    node: Node
    factor: float = 1.0
    add: Node | None = None


@dataclass(eq=False)
class Plan:
    """What becomes of one loop.

    ``before`` are the nodes of its body that are computed before it, and ``steady`` those that are the same in all iterations;
    ``totals`` the carried values that are computed after it, with the terms of each and their factors. ``saved`` is saved for
    them, and ``arrays`` are the sequences of the loop's that must be arrays. ``late`` are the carried values among ``before``,
    with the sequences that they are read from.
    """

    body: Body
    count: int = 0
    before: list[Node] = field(default_factory=list)
    steady: list[Node] = field(default_factory=list)
    late: dict[int, Node] = field(default_factory=dict)
    totals: dict[int, list[Term]] = field(default_factory=dict)
    saved: list[Node] = field(default_factory=list)
    arrays: set[Node] = field(default_factory=set)

    def carried(self) -> list[int]:
        """The numbers of the values that are still carried."""
        return [i for i in range(len(self.body.carry)) if i not in self.totals and i not in self.late]

    def begun(self, saved: Several[Node], arrays: Iterable[int]) -> dict[int, int]:
        """The carried values, of few numbers, that are saved in arrays as iterations begin with them, by their places there,
        and that are computed where they lie if they are saved as iterations end with them: without a copy each."""
        found, computed = {}, {node for node in self.body.nodes() if node.args} - {*saved, *self.before}
        for i in self.carried() if self.count >= OFTEN else ():
            item, after = self.body.carry[i], self.body.after[i]
            places = [j for j in arrays if saved[j] is item]
            into = after in computed and (isinstance(after.op.key, np.ufunc) or is_op(after, np.sum) or _is_product(after))
            few = item.aval.nbytes <= min(CALL, EARLY // self.count) and after.aval == item.aval
            if into and few and len(places) == 1:
                found[places[0]] = i
        return found


def plan_of(node: Node) -> Plan:
    """What is best done with a loop."""
    op: Loop = node.op
    if op.course.count is None or op.course.count < FEW or op.course.test is not None:
        return Plan(op.body)
    apart = _Planner(node, regrouped(op.body))
    planner = apart if apart.before() else _Planner(node, op.body)
    return planner.plan()


class _Planner:
    """Looks at one loop that runs a known number of times."""

    def __init__(self, node: Node, body: Body) -> None:
        self.body, self.course = body, node.op.course
        self.count = self.course.count
        _, sequences, _ = node.op.split(node.args)
        self.sequences = dict(zip(body.elements, sequences, strict=True))
        self.reads: dict[Node, list[Node]] = {}
        for reader in body.nodes():
            for arg in reader.args:
                self.reads.setdefault(arg, []).append(reader)
        self.uses = Counter({arg: len(readers) for arg, readers in self.reads.items()})
        self.uses.update([*body.after, *body.saved])
        self.given = set(body.inputs)
        self.early: list[Node] = []
        self.late: dict[Node, Node] = {}
        self.kept: set[Node] = set()  # what is computed in the loop anyway
        self.same = set(body.invariants)  # and what is the same in all iterations
        self.numbers = _steady_numbers(body)  # which are the same, too, and Python's
        self.compared = set(ancestors([node for node in body.nodes() if node.op in _COMPARING]))  # to the bit

    def before(self) -> list[Node]:
        """What to compute before the loop, and what it reads then."""
        late = {item: after for item, after in zip(self.body.carry, self.body.after, strict=True) if self._is_late(item, after)}
        return (late and self._before(late)) or self._before({})

    def _is_late(self, item: Node, after: Node) -> bool:
        """Whether a carried value is what the iteration before has read as an element."""
        few = (self.count or 0) >= OFTEN and after in self.body.elements and after.aval == item.aval
        return few and self._is_row(after) and item.aval.nbytes <= CALL and item not in self.compared

    def _before(self, late: dict[Node, Node]) -> list[Node]:
        """What to compute before the loop, from rows of arrays and what earlier loops have saved: where it is less to keep
        than what it is of, or has a product in it or saves many calls, and is not much. ``late``, if it is for that, is read
        from what earlier loops have saved, too."""
        body = self.body
        rows = {node for node in body.nodes() if line(node, body, self.course) is not None} | late.keys()
        ready = {item for item in body.elements if self._is_row(item)} | set(body.invariants) | rows
        moving = {item for item in body.elements if item in ready} | rows  # other in each iteration
        for node in body.nodes():
            if node in rows:
                continue
            if node.op in (CONST, CAPTURED) or node in self.numbers:
                ready.add(node)
            elif all(arg in ready for arg in node.args) and node.args and self._is_movable(node):
                ready.add(node)
                moving |= {node} if any(arg in moving for arg in node.args) else set()
        computed = moving - self.given - rows
        ends = {*body.after, *body.saved}
        found = [n for n in computed if n in ends or any(user not in computed for user in self.reads[n])]
        found = [n for n in dict.fromkeys(map(_made, found)) if n in computed and self._is_row(n)]
        below = set(ancestors(found))
        if not late.keys() <= below:
            return self._before({item: after for item, after in late.items() if item in below})
        found += late
        gone = [e for e in body.elements if e in below and e not in ends and below.issuperset(self.reads.get(e, ()))]
        size, less = (sum(n.aval.nbytes for n in nodes) for nodes in (found, gone))
        pays = any(map(_is_product, computed)) or self._is_called_often(found, below & computed)
        if found and (size < less or (pays and (size - less) * (self.count or 0) <= EARLY)):
            self.early, self.late = self._in_order(found, set(gone)), late
        return self.early

    def _is_called_often(self, found: list[Node], computed: set[Node]) -> bool:
        """Whether in what is ``computed`` for ``found``, on few numbers, most of the time is that of the calls."""
        if (self.count or 0) < OFTEN or any(node.aval.nbytes > CALL for node in computed):
            return False
        return sum(2 if _is_gather(node) else not node.op.alias for node in computed) > len(found)

    def _in_order(self, found: list[Node], gone: set[Node]) -> list[Node]:
        """Those first that need most of what nothing needs after them, for the memory."""
        left = {node: gone & set(ancestors([node])) for node in sorted(found, key=lambda node: node.index)}
        needs = Counter(item for items in left.values() for item in items)
        order = []
        while left:
            order.append(max(left, key=lambda node: sum(needs[item] == 1 for item in left[node])))
            needs.subtract(left.pop(order[-1]))
        return order

    def plan(self) -> Plan:
        """The totals that are worth it, and the rest."""
        body = self.body
        plan = Plan(body, self.count or 0, self.early, self._steady())
        plan.late = {i: self.sequences[self.late[item]] for i, item in enumerate(body.carry) if item in self.late}
        sums = {i: terms for i in range(len(body.carry)) if (terms := self._terms(i))}
        self.kept = _needed([*(after for i, after in enumerate(body.after) if i not in sums), *body.saved], self.early)
        parts = {i: self._parts([term.node for term in terms]) for i, terms in sums.items()}
        dear = [i for i, part in parts.items() if part is not None and self._pays(sums[i], part)]
        saved = {part: None for i in dear for part in parts[i] or ()}
        for i, part in parts.items():
            if part is not None and dear and saved.keys() >= set(part):
                plan.totals[i] = sums[i]
        plan.saved = [part for part in saved if part not in self.given or part in body.carry]
        plan.arrays = {self.sequences[part] for part in [*saved, *ancestors(self.early)] if part in self.sequences}
        plan.arrays.update(plan.late.values())
        return plan

    def _steady(self) -> list[Node]:
        """What every iteration would make of the same arrays, and others read."""
        found = []
        for node in self.body.nodes():
            plain = isinstance(node.aval, Aval) and not node.exact and (node.aval.kind != "python" or node in self.numbers)
            plain = plain and node.aval.dtype.kind in "fc"  # places may be spelled as slices, which take them apart
            if node.op in (CONST, CAPTURED):
                self.same.add(node)
            elif plain and node.args and self.same.issuperset(node.args) and node not in self.given:
                self.same.add(node)
                found.append(node)
        ends = {*self.body.after, *self.body.saved}
        return [node for node in found if node not in ends and not self.same.issuperset(self.reads[node])]

    def _terms(self, i: int) -> list[Term]:
        """What is added to a carried value that nothing else reads; nothing for any other."""
        total, end = self.body.carry[i], self.body.after[i]
        terms: list[Term] = []
        if total.aval.dtype.kind not in "fc" or total.aval.kind == "python" or self.uses[end] != 1:
            return []
        node = total
        while node is not end:  # on the way there, one value after another is added
            reader = self.reads[node][0] if self.uses[node] == 1 and node in self.reads else None
            if reader is None or reader.exact or reader.aval != total.aval or len(reader.args) < 2:
                return []
            a, b = reader.args[:2]
            if reader.op is index.INDEX_ADD and node is a and together(reader, self.body, self.course) is not None:
                terms.append(Term(b, add=reader))
            elif reader.op is _ADD or (reader.op is _SUBTRACT and node is a):
                terms.append(Term(b if node is a else a, 1.0 if reader.op is _ADD else -1.0))
            else:
                return []
            if terms[-1].add is None and terms[-1].node.aval != total.aval:
                return []
            node = reader
        return self._apart(terms)

    def _apart(self, terms: list[Term]) -> list[Term]:
        """The terms that terms are the sums of, the first ones last."""
        found: list[Term] = []
        while terms:
            term, factor, add = terms.pop()
            apart = term.op is index.INDEX_ADD and add is None and self.uses[term] == 1 and not term.exact
            if apart and together(term, self.body, self.course) is not None:
                terms += [Term(term.args[0], factor), Term(term.args[1], factor, term)]
                continue
            c, x = split(term)
            parts = [(x, c)] if c != 1.0 else list(zip(term.args, (1.0, -1.0 if term.op is _SUBTRACT else 1.0), strict=False))
            sums = c != 1.0 or term.op in (_ADD, _SUBTRACT)
            if self.uses[term] > 1 or not sums or term.exact or any(part.aval != term.aval for part, _ in parts):
                found.append(Term(term, factor, add))
            else:
                terms += [Term(part, factor * c, add) for part, c in reversed(parts)]
        return found

    def _parts(self, terms: Several[Node]) -> list[Node] | None:
        """What an iteration must save for these terms to be computed later; None where that is not possible, or too much."""
        parts: dict[Node, None] = {}
        seen: set[Node] = {*self.early, *self.same}
        stack = list(terms)
        while stack:
            node = stack.pop()
            if node in seen or node.op in (CONST, CAPTURED):
                continue
            seen.add(node)
            if line(node, self.body, self.course) is not None:
                continue
            free = node not in self.given and (node not in self.kept or _is_turned(node))
            if free and self._is_movable(node, node in terms):
                stack += node.args
            elif self._is_row(node):
                parts[node] = None
            else:
                return None
        return list(parts)

    def _is_movable(self, node: Node, last: bool = False) -> bool:
        """Whether an operation can be done for all iterations at once; what is summed at once need not lie in memory."""
        if not isinstance(node.aval, Aval) or node.aval.kind == "python" or how(node) is None or node.exact:
            return False
        if _is_gather(node) and (node in self.compared or (node.args[1].aval.shape and node.args[0] not in self.same)):
            return False
        return self.count * node.aval.nbytes <= ROWS or (last and _is_product(node))

    def _is_row(self, node: Node) -> bool:
        """Whether a value can be saved, or is, in an array of all iterations."""
        source = self.sequences.get(node)
        if source is not None and not is_counted(source):
            return False
        plain = isinstance(node.aval, Aval) and node.aval.kind == "array" and node.aval.shape != ()
        return plain and node.aval.dtype.kind in "fcb" and node.aval.nbytes <= min(ROW, ROWS // self.count)

    def _pays(self, terms: list[Term], parts: list[Node]) -> bool:
        """Whether there is a product among what is taken out of the loop, or most of the time that it takes there is that of
        calls."""
        nodes = [term.node for term in terms]
        if any(_is_product(node) for node in ancestors(nodes) if node not in self.kept and node not in self.given):
            return True
        few = all((term.add or node).aval.shape and node.aval.nbytes <= CALL for term, node in zip(terms, nodes, strict=True))
        return few and (self.count or 0) >= OFTEN and sum(part.aval.nbytes for part in parts) * (self.count or 0) <= EARLY


def _steady_numbers(body: Body) -> set[Node]:
    """Python's floats that a derivative makes of what is the same in all iterations."""
    same, found = set(body.invariants), set[Node]()
    for node in body.nodes():
        arithmetic = node.op in _ARITHMETIC and node.phase is not None and not node.exact
        if node.op is CONST or (arithmetic and node.aval.kind == "python" and same.issuperset(node.args)):
            same.add(node)
            found |= {node} if node.args and node.aval.dtype.kind == "f" else set()
    return found


def _needed(outputs: Several[Node], given: Several[Node]) -> set[Node]:
    """What ``outputs`` need to be computed, where some nodes are there."""
    seen, stack = set(given), [node for node in outputs if node not in given]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(node.args)
    return seen


# -- regrouping ----------------------------------------------------------------------------------------------------


def regrouped(body: Body) -> Body:
    """The body, in derivatives its products of arrays multiplied in another order, what hangs on no carried value first, and
    multiples of one array added up to one: ``g * a + g * b`` to ``g * (a + b)``."""
    return copied(body, _Regrouper(BodyProgram(body), set(body.carry), {body.index, *body.elements}), {})


class _Multiple(NamedTuple):
    """A term ``of`` an array times all that is ``up``, by all that it is ``over``, ``added`` or subtracted: a ``node``, or the
    opposite of one that is ``turned``."""

    added: bool
    turned: bool
    of: Node
    up: list[Node]
    over: list[Node]
    node: Node

    def whole(self) -> _Multiple:
        """The same as the very node."""
        return self._replace(added=self.added is not self.turned, turned=False)


def _is_sum(node: Node) -> bool:
    """Whether it is a sum, or difference, of arrays in a derivative."""
    return node.op in (_ADD, _SUBTRACT) and node.phase is not None and not node.exact and bool(node.aval.shape)


def _may_meet(dtype: np.dtype[Any]) -> bool:
    """Whether factors of which nothing is known may be multiplied with each other before they are with the rest: in single
    precision, physical constants (``1e-22 * h``) would leave its range, where what they are factors of does not."""
    return dtype.char not in REACH


class _Regrouper(Simplifier):
    def __init__(self, program: Program, carried: set[Node], moving: set[Node]) -> None:
        super().__init__(program, {})
        self.carried, self.moving = carried, moving  # and what hangs on these
        for node in program.nodes():
            for known in (carried, moving):
                known |= {node} if any(arg in known for arg in node.args) else set()
            for arg in node.args:
                self.uses[arg] = self.uses.get(arg, 0) + 1

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if _is_sum(node) and node in self.carried and (collected := self._collected(node)) is not None:
            return collected
        factors = self._factors(node) if node in self.carried else []
        steady, over = ([f for f, up in factors if f not in self.carried and up is way] for way in (True, False))
        few = len(steady + over) < 2 or not _may_meet(node.aval.dtype)
        if not steady or few or self.moving.isdisjoint(steady + over):
            return super().visit(node, args)
        rest = self._multiplied(node, [factor for factor, _ in factors if factor in self.carried])
        known = self._multiplied(node, steady)
        known = self._made(np.true_divide, node, known, self._multiplied(node, over)) if over else known
        return self._made(np.multiply, node, rest, known)

    def _factors(self, node: Node, up: bool = True) -> list[tuple[Node, bool]]:
        """The factors of a product of arrays in a derivative, those of its factors that nothing else needs in their place, and
        also what it is divided by, which is not ``up``. The user's own are made as written: in between, others overflow."""
        quotient, as_written = is_op(node, np.true_divide), node.exact or node.phase is None
        if as_written or not (is_op(node, np.multiply) or (quotient and node.args[1] not in self.carried)):
            return []
        if any(arg.aval.dtype != node.aval.dtype for arg in node.args):
            return []
        ways = up, up != quotient
        apart = [arg in self.carried and self.uses[arg] == 1 for arg in node.args]
        parts = zip(node.args, ways, apart, strict=True)
        return [f for arg, way, more in parts for f in (more and self._factors(arg, way)) or [(arg, way)]]

    def _collected(self, node: Node) -> Node | None:
        """A sum in which multiples of one array are one; None where there are no such."""
        found: dict[Node, list[_Multiple]] = {}
        for one in self._multiples(node, True, True):
            found.setdefault(one.of, []).append(one)
        if not any([len(several) > 1 for several in found.values()]):
            return None
        total: Node | None = None
        groups = [several if len(several) > 1 else [several[0].whole()] for several in found.values()]
        for several in sorted(groups, key=lambda several: not several[0].added):  # what is subtracted last
            added, term = several[0].added, self.mapping[several[0].node]
            if len(several) > 1:
                times = [(one.added is added, self._times(node, one)) for one in several]
                factor = times[0][1]
                for same, other in times[1:]:
                    factor = self._made(np.add if same else np.subtract, node, factor, other)
                term = self._made(np.multiply, node, self.mapping[several[0].of], factor)
            if total is None:
                total = term if added else self._made(np.negative, node, term)
            else:
                total = self._made(np.add if added else np.subtract, node, total, term)
        return total

    def _multiples(self, node: Node, added: bool, first: bool = False) -> list[_Multiple]:
        """The terms of a sum, as multiples of what is carried by what is not."""
        alike = all([arg.aval == node.aval for arg in node.args])
        if _is_sum(node) and alike and (first or self.uses[node] == 1):
            a, b = node.args
            return [*self._multiples(a, added), *self._multiples(b, added is (node.op is _ADD))]
        turned, of, up, over = False, node, list[Node](), list[Node]()
        while of.phase is not None and not of.exact and (not up + over or _may_meet(node.aval.dtype)):
            if is_op(of, np.negative):
                turned, of = not turned, of.args[0]
                continue
            x, y = of.args if is_op(of, np.multiply) or is_op(of, np.true_divide) else (of, of)
            if is_op(of, np.multiply) and x not in self.carried:
                x, y = y, x
            if y in self.carried or x.aval != node.aval or x not in self.carried:
                break
            (over if is_op(of, np.true_divide) else up).append(y)
            of = x
        return [_Multiple(added is not turned, turned, of, up, over, node)]

    def _times(self, node: Node, one: _Multiple) -> Node:
        """What a term is a multiple by."""
        product = self._multiplied(node, one.up) if one.up else self.graph.const(1.0)
        return self._made(np.true_divide, node, product, self._multiplied(node, one.over)) if one.over else product

    def _multiplied(self, node: Node, factors: list[Node]) -> Node:
        product, *others = [self.mapping[factor] for factor in factors]
        for factor in others:
            product = self._made(np.multiply, node, product, factor)
        return product

    def _made(self, key: Any, node: Node, *args: Node) -> Node:
        made = self.call(key, *args)
        made.name, made.line, made.phase = node.name, node.line, node.phase
        return made


# -- what iterations are -------------------------------------------------------------------------------------------

_ADD, _SUBTRACT = REGISTRY[np.add], REGISTRY[np.subtract]
_ARITHMETIC = ops_of(np.add, np.subtract, np.multiply, np.true_divide, np.negative)
_COMPARING = ops_of(
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.sign, np.heaviside),
    *(np.max, np.min, np.maximum, np.minimum, np.fmax, np.fmin),
)


def is_counted(sequence: Node) -> bool:
    """Whether a sequence is what one loop saves that runs a known number of times, so that it can be an array."""
    loop = sequence.args[0] if sequence.op is ITEM else None
    return loop is not None and isinstance(loop.op, Loop) and loop.op.course.count is not None and loop.op.course.test is None


def _is_much(sequence: Node) -> bool:
    """Whether the elements of a sequence should lie in one array."""
    element = sequence.aval.element
    if not isinstance(element, Aval) or element.kind != "array":
        return False
    size = math.prod(element.shape) * element.dtype.itemsize
    return size >= SOME and size * int(sequence.args[0].op.course.count) >= MUCH


def _is_product(node: Node) -> bool:
    return (is_op(node, np.outer) and all(len(arg.aval.shape) == 1 for arg in node.args)) or product_of(node) is not None


def _made(node: Node) -> Node:
    """What a value is a view of."""
    while node.args and node.op.alias and not _is_gather(node):
        node = node.args[0]
    return node


def _is_turned(node: Node) -> bool:
    """Whether it is all of its argument, seen otherwise, so that this may as well be saved."""
    return bool(node.op.alias) and len(node.args) == 1 and node.aval.nbytes == node.args[0].aval.nbytes


def line(node: Node, body: Body, course: Course) -> tuple[Node, index.Spec, int] | None:
    """``(x, spec, axis)`` where an iteration reads ``x[:, i]`` of an invariant, and all of them together ``x[spec]``, each of
    them at another place along the axis."""
    if node.op is not index.GETITEM or len(node.args) != 2 or node.args[0] not in body.invariants or node.args[1].aval.shape:
        return None
    spec = dict(node.params)["spec"]
    axis = next((i for i, part in enumerate(spec) if type(part) is not index.Slice), 0)
    rows = rows_at(spec[axis:], node.args[1], body, course)
    return None if rows is None else (node.args[0], (*spec[:axis], *rows), axis)


def together(add: Node, body: Body, course: Course) -> tuple[index.Spec, tuple[Node, ...]] | None:
    """The index of all that iterations add to an array together, and the arrays in it, as the iterations have those, if any:
    where each one adds to a part of its own number, or of those that it reads from an array."""
    spec, (base, value, *places) = dict(add.params)["spec"], add.args
    if not places or any([type(part) not in (index.Hole, index.Slice, int) for part in spec]):
        return None
    shapes = [place.aval.shape for place in places]
    region = index.region(spec, base.aval.shape, [np.zeros(shape, int) for shape in shapes])
    if value.aval.dtype != base.aval.dtype or value.aval.shape != region:
        return None
    if len(places) == 1 and not shapes[0]:
        (place,), at = places, _place(spec)
        rows = rows_at(spec[at : at + 1], place, body, course)
        if rows is not None:
            return (*spec[:at], *rows, *spec[at + 1 :]), ()
        return (spec, (place,)) if int not in map(type, spec) and line(place, body, course) is not None else None
    first, last = _place(spec), max(i for i, part in enumerate(spec) if type(part) is index.Hole)
    moving = [line(place, body, course) is not None or index_at(place, body, course, 0) is not None for place in places]
    known = [other or place.op is CAPTURED or place in body.invariants for other, place in zip(moving, places, strict=True)]
    whole = index.Slice not in map(type, spec[first:last]) and all([place.aval.dtype.kind in "iu" for place in places])
    whole = whole and not (index.Slice in map(type, spec[:first]) and int in map(type, spec))
    # other iterations may name the same elements
    again = tuple([index.Hole(part.number) if type(part) is index.Hole else part for part in spec])
    return (again, tuple(places)) if whole and any(moving) and all(known) else None


def _place(spec: index.Spec) -> int:
    """Where an index has its array."""
    return next(i for i, part in enumerate(spec) if type(part) is index.Hole)


# -- all iterations at once ----------------------------------------------------------------------------------------

How = Callable[[Contractor, Node, "list[Node]", "list[bool]", Aval], Node]
ALL: dict[Any, How] = {}


def how(node: Node) -> How | None:
    """How an operation is done for all iterations: ``how(s, node, args, flags, aval)`` gives the node of the result, of
    ``aval``; arguments with ``flags`` have a first axis more, for the iterations."""
    if node.op in ALL and node.op in LIKE_UFUNCS:
        return ALL[node.op]
    if is_elementwise(node) or (isinstance(node.op.key, np.ufunc) and node.op.family == "elementwise" and not node.params):
        return _elementwise
    if is_op(node, np.reshape) and "order" in dict(node.params):
        return None
    if is_op(node, np.diag) and node.params and len(node.aval.shape) == 2:  # beside the diagonal
        return None
    if node.op is index.GETITEM and len(node.args) > 1:  # index arrays decide where the axes of a result stand
        return _gather if _is_gather(node) else None
    if node.op in ALL:
        return ALL[node.op]
    return _product if _is_product(node) else None


def _for_all(key: Any) -> Callable[[How], How]:
    def register(rule: How) -> How:
        ALL[key if isinstance(key, Op) else REGISTRY[key]] = rule
        return rule

    return register


def _elementwise(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    lined = [_lined_up(s, arg, len(aval.shape)) if flag else arg for arg, flag in zip(args, flags, strict=True)]
    return s.make(node.op, tuple(lined), node.params, aval)


@_for_all(OVER)
def _over(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    """By a number for each iteration, it is a quotient like any other."""
    if not flags[2]:
        return _elementwise(s, node, args, flags, aval)
    x, times, v = args
    product = join(s, const(times), _lined_up(s, x, len(aval.shape)) if flags[0] else x)
    return s.call(np.true_divide, product, _lined_up(s, v, len(aval.shape)))


@_for_all(SELECT)
def _select(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    """The mask has all elements of the result."""
    mask, *rest = args
    if not flags[0]:
        mask = s.call(np.broadcast_to, mask, shape=aval.shape)
    return _elementwise(s, node, [mask, *rest], flags, aval)


def _lined_up(s: Contractor, x: Node, ndim: int) -> Node:
    """``x``, with axes put in after the first one so that it has ``ndim``."""
    more = tuple(range(1, 1 + ndim - len(x.aval.shape)))
    return s.call(np.expand_dims, x, axis=more if len(more) > 1 else more[0]) if more else x


def _product(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    found = product_of(node)
    terms, out, sizes = (("a", "b"), "ab", {}) if found is None else (found.terms, found.out, found.sizes)
    new = next(label for label in LABELS if label not in sizes and label not in out)
    terms = tuple([f"{new}{term}" if flag else term for term, flag in zip(terms, flags, strict=True)])
    return s.make(REGISTRY[np.einsum], tuple(args), (("subscripts", f"{','.join(terms)}->{new}{out}"),), aval)


@_for_all(np.transpose)
def _transpose(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    ndim = len(node.aval.shape)
    axes = dict(node.params).get("axes") or range(ndim)[::-1]
    return s.make(node.op, tuple(args), (("axes", (0, *(1 + i % ndim for i in axes))),), aval)


@_for_all(np.expand_dims)
@_for_all(np.reshape)
def _reshape(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    return s.make(REGISTRY[np.reshape], tuple(args), (("shape", aval.shape),), aval)


@_for_all(index.GETITEM)
def _getitem(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    spec = (index.EVERY, *dict(node.params)["spec"])
    return s.make(node.op, tuple(args), (("spec", spec),), aval)


@_for_all(np.linalg.inv)
@_for_all(np.linalg.det)
@_for_all(np.linalg.cholesky)
@_for_all(np.tril)
@_for_all(np.triu)
@_for_all(COFACTOR)
def _of_stack(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    return s.make(node.op, tuple(args), node.params, aval)


@_for_all(CHOLESKY)
def _cholesky(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    return s.make(REGISTRY[np.linalg.cholesky], tuple(args), (), aval)


@_for_all(INVERSE)
def _inverse(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    half = s.make(REGISTRY[np.linalg.inv], tuple(args), (), aval)
    return s.make(REGISTRY[np.einsum], (half, half), (("subscripts", "abc,abd->acd"),), aval)


@_for_all(np.linalg.solve)
def _solve(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    a, b = args
    if not flags[1] or len(aval.shape) > 2:
        return s.make(node.op, (a, b), (), aval)
    if flags[0]:  # a row of vectors would be taken for one matrix
        columns = s.call(np.expand_dims, b, axis=2)
        return s.call(np.reshape, s.make(node.op, (a, columns), (), columns.aval), shape=aval.shape)
    columns = s.call(np.transpose, b)
    return s.call(np.transpose, s.make(node.op, (a, columns), (), columns.aval))


@_for_all(np.diagonal)
def _diagonal(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    params = {"axis1": 0, "axis2": 1, **dict(node.params)}
    ndim = len(node.args[0].aval.shape)
    return s.call(node.op.key, *args, **{k: v if k == "offset" else 1 + v % ndim for k, v in params.items()})


@_for_all(np.diag)
def _diag(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    if len(node.args[0].aval.shape) == 2:
        return s.call(np.diagonal, *args, offset=dict(node.params).get("k", 0), axis1=1, axis2=2)
    mask = s.graph.captured(_diagonal_mask(node.aval.shape[0]))
    return s.make(REGISTRY[np.where], (mask, s.call(np.expand_dims, *args, axis=2), s.graph.const(0.0)), (), aval)


@functools.lru_cache(16)
def _diagonal_mask(n: int) -> np.ndarray[Any, Any]:
    """The mask of a diagonal: the same one each time, by which what is chosen is known to be the same."""
    mask = np.eye(n, dtype=bool)
    mask.flags.writeable = False
    return mask


def _is_gather(node: Node) -> bool:
    """Whether it is a row or column of an array, or the like, at a number, or those at several."""
    if node.op is not index.GETITEM or len(node.args) != 2:
        return False
    whole = all([type(part) in (index.Hole, index.Slice) for part in dict(node.params)["spec"]])
    return whole and node.args[1].aval.dtype.kind in "iu"


def _gather(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    (x, places), spec = args, dict(node.params)["spec"]
    if not flags[1]:
        return s.call(node.op, x, places, spec=(index.EVERY, *spec))
    if flags[0]:  # arrays in front and in the place of another axis have theirs in front
        return s.call(node.op, x, s.graph.captured(np.arange(aval.shape[0])), places, spec=(index.Hole(0), *_next(spec)))
    return _axis_moved(s, s.call(node.op, x, places, spec=spec), _place(spec), 0)


def _next(spec: index.Spec) -> index.Spec:
    """An index whose array is the second one."""
    return tuple([index.Hole(1) if type(part) is index.Hole else part for part in spec])


def _axis_moved(s: Simplifier, x: Node, source: int, to: int) -> Node:
    axes = list(range(len(x.aval.shape)))
    axes.insert(to, axes.pop(source))
    return x if source == to else s.call(np.transpose, x, axes=tuple(axes))


@_for_all(np.sum)
@_for_all(np.max)
@_for_all(np.min)
def _reduction(s: Contractor, node: Node, args: list[Node], flags: list[bool], aval: Aval) -> Node:
    return s.make(node.op, tuple(args), tuple(sorted({**dict(node.params), "axis": summed(node)}.items())), aval)


def summed(node: Node) -> tuple[int, ...]:
    """The axes that a sum is over, as they are for all iterations."""
    axis, ndim = dict(node.params).get("axis"), len(node.args[0].aval.shape)
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted([1 + i % ndim for i in axes]))


# -- doing it ------------------------------------------------------------------------------------------------------


class _Distributor(Contractor):
    """Rebuilds a program, its loops as planned."""

    def __init__(self, program: Program, plans: dict[Node, Plan], arrays: set[Node]) -> None:
        super().__init__(program, CONTRACT)
        self.plans, self.arrays = plans, arrays
        self.results: dict[Node, dict[int, Node]] = {}  # of loops, by the number that they had
        self.ends: dict[tuple[Node, Node, bool], Node] = {}  # what iterations ended with, by what they began with, and the last

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Loop):
            start = len(self.graph.nodes)
            loop = self._loop(node, args)
            _noted(self.graph.nodes[start:], node)
            return loop
        if node.op is ITEM and node.args[0] in self.results:
            new = self.results[node.args[0]][dict(node.params)["item"]]
            new.name = new.name or node.name
            return new
        if node.op is STACKED and isinstance(args[0].aval, Aval):  # it is an array already
            return args[0]
        return super().visit(node, args)

    def _loop(self, node: Node, args: tuple[Node, ...]) -> Node:
        """The loop as planned, and its results by the numbers that they had."""
        op: Loop = node.op
        plan, n, count = self.plans[node], len(op.body.carry), op.course.count or 0
        self.phase = node.phase
        firsts, sequences, fixed = op.split(args)
        known = dict(zip(plan.body.invariants, [(x, False) for x in fixed], strict=True))
        known |= dict(zip(plan.body.elements, [(x, True) for x in sequences], strict=True))
        late = {i: self.mapping[sequence] for i, sequence in plan.late.items()}
        for i, x in late.items():
            whole = self.ends.get((x, firsts[i], not op.course.backwards)) or self._late(firsts[i], x, op.course)
            known[plan.body.carry[i]] = whole, True
        sequences += [self._all(item, plan, op.course, known)[0] for item in plan.before]
        fixed += [self._all(item, plan, op.course, known)[0] for item in plan.steady]
        body, carry = self._smaller(plan), plan.carried()
        needed = set(ancestors([*body.after, *body.saved]))
        elements = [i for i, item in enumerate(body.elements) if item in needed]
        if not elements and op.course.count is op.course.test is None:  # it runs as often as its sequences are long
            elements = [0]
        kept = [i for i, item in enumerate(body.invariants) if item in needed]
        body = replace(body, elements=[body.elements[i] for i in elements], invariants=[body.invariants[i] for i in kept])
        saved = [*plan.body.saved, *(item for item in plan.saved if item not in plan.body.saved)]
        arrays = {dict(item.params)["item"] - n for item in self.arrays if item.args[0] is node}
        arrays |= {saved.index(item) for item in plan.saved}
        begun = plan.begun(saved, arrays)
        ends = [body.after[carry.index(begun[j])] if j in begun else item for j, item in enumerate(body.saved)]
        body = replace(body, saved=ends)
        avals = [item.aval for item in body.carry]
        avals += [_stacked(item.aval, count) if j in arrays else Sequence(item.aval) for j, item in enumerate(body.saved)]
        params = (("arrays", tuple(sorted(arrays))),) if arrays else ()
        given = (*(firsts[i] for i in carry), *(sequences[i] for i in elements), *(fixed[i] for i in kept))
        loop = self.graph.add(loop_of(body, op.course), given, params, tuple(avals))
        loop.line, loop.phase = node.line, node.phase
        made = [self.graph.add(ITEM, (loop,), (("item", i),), aval) for i, aval in enumerate(avals)]
        found = dict(zip([*carry, *range(n, n + len(saved))], made, strict=True))
        for j, i in begun.items():
            end, found[n + j] = found[n + j], self._late(firsts[i], found[n + j], op.course)
            self.ends[found[n + j], found[i], op.course.backwards] = end
        known |= {item: (found[n + saved.index(item)], True) for item in plan.saved}
        found |= {i: self.call(index.GETITEM, x, spec=(0 if op.course.backwards else count - 1,)) for i, x in late.items()}
        for i, terms in plan.totals.items():
            found[i] = firsts[i]
            for term in terms:
                found[i] = self._added(found[i], term, plan, op.course, known)
        self.results[node] = found
        return loop

    def _smaller(self, plan: Plan) -> Body:
        """The body without totals, what is computed before for elements and invariants, and with what is to be saved."""
        body = plan.body
        copier = Simplifier(BodyProgram(body), {})
        for item in (*plan.before, *plan.steady):
            copier.mapping[item] = copier.graph.stand_in(item)
        moving, same = ([copier.mapping[item] for item in items] for items in (plan.before, plan.steady))
        saved = [item for item in plan.saved if item not in body.saved]
        whole = copied(body, copier, {}, elements=moving, invariants=same, saved=saved)
        carry = plan.carried()
        return replace(whole, carry=[whole.carry[i] for i in carry], after=[whole.after[i] for i in carry])

    def _late(self, first: Node, x: Node, course: Course) -> Node:
        """What the iterations have that read, after ``first``, each what the one before has of ``x``."""
        first = self.call(np.reshape, first, shape=(1, *first.aval.shape))
        rest = index.Slice(1, None, None) if course.backwards else index.Slice(None, -1, None)
        parts = (first, self.call(index.GETITEM, x, spec=(rest,)))
        return self.call(np.concatenate, *(parts[::-1] if course.backwards else parts), axis=0)

    def _total(self, term: Node, dtype: Any, plan: Plan, course: Course, known: dict[Node, tuple[Node, bool]]) -> Node:
        """The sum of a term over all iterations, of the ``dtype`` in which they add it up."""
        axes: tuple[int, ...] = (0,)
        if is_op(term, np.sum) and term not in known and not dict(term.params).keys() - {"axis"}:
            axes, (term,) = (0, *summed(term)), term.args
        x, flag = self._all(term, plan, course, known)
        if x.aval.dtype != dtype and x.aval.kind != "python":
            x = self.call(ASTYPE, x, dtype=dtype)
        if not flag:
            inner = x if len(axes) == 1 else self.call(np.sum, x, axis=tuple([i - 1 for i in axes[1:]]))
            return self.call(np.multiply, float(course.count or 0), inner)
        return self.call(np.sum, x, axis=axes if len(axes) > 1 else 0)

    def _added(self, total: Node, term: Term, plan: Plan, course: Course, known: dict[Node, tuple[Node, bool]]) -> Node:
        """The total with what all iterations add to it."""
        if term.add is None:
            value = join(self, term.factor, self._total(term.node, total.aval.dtype, plan, course, known))
            nothing = is_zero(total) or (self.phase is not None and filling(total) == 0)
            return value if nothing else self.call(np.add, total, value)
        parts = together(term.add, plan.body, course)
        assert parts is not None
        value, many = self._all(term.node, plan, course, known)
        value = value if many else self.call(np.broadcast_to, value, shape=(course.count, *value.aval.shape))
        before = dict(term.add.params)["spec"]
        slices = [part for part in before[: _place(before)] if type(part) is index.Slice]
        places = [self._place_in_all(place, term.add, plan, course, known) for place in parts[1]]
        value = _axis_moved(self, join(self, term.factor, value), 0, len(slices))
        return self.call(index.INDEX_ADD, total, value, *places, spec=parts[0])

    def _place_in_all(self, place: Node, add: Node, plan: Plan, course: Course, known: dict[Node, tuple[Node, bool]]) -> Node:
        """An array of an index in all iterations, with an axis for them before those of all its arrays."""
        count, numbers = course.count or 0, [index_at(place, plan.body, course, i) for i in (0, 1)]
        if numbers[0] is None:
            x, many = self._all(place, plan, course, known)
        else:
            x, many = self.graph.captured(numbers[0] + (numbers[1] - numbers[0]) * np.arange(count)), True
        axes = max([len(one.aval.shape) for one in add.args[2:]])
        missing = axes - len(place.aval.shape)
        return self.call(np.reshape, x, shape=(count, *(1,) * missing, *place.aval.shape)) if many and missing else x

    def _all(self, term: Node, plan: Plan, course: Course, known: dict[Node, tuple[Node, bool]]) -> tuple[Node, bool]:
        """The values of a node of the body in all iterations, as one array; or the one value, and False."""
        missing: set[Node] = set()
        stack = [term]
        while stack:
            node = stack.pop()
            if node in known or node in missing:
                continue
            row = line(node, plan.body, course)
            if row is not None:
                known[node] = self._rows(known[row[0]][0], *row[1:]), True
            elif node.op is CONST:
                known[node] = self.graph.const(const(node)), False
            elif node.op is CAPTURED:
                known[node] = self.graph.captured(plan.body.graph.arrays[node]), False
            else:
                missing.add(node)
                stack += node.args
        for node in sorted(missing, key=lambda node: node.index):
            args, flags = [known[arg][0] for arg in node.args], [known[arg][1] for arg in node.args]
            known[node] = self._one(node, args, flags, course.count or 0)
        return known[term]

    def _one(self, node: Node, args: list[Node], flags: list[bool], count: int) -> tuple[Node, bool]:
        start = len(self.graph.nodes)
        if any(flags):
            rule = how(node)
            assert rule is not None
            made = rule(self, node, args, flags, _stacked(node.aval, count))
        else:
            made = self.make(node.op, tuple(args), node.params, node.aval)
        _noted(self.graph.nodes[start:], node)
        return made, any(flags)

    def _rows(self, x: Node, spec: index.Spec, axis: int) -> Node:
        """The rows of an array that the iterations read, or what they read along another axis."""
        if axis:
            return _axis_moved(self, self.call(index.GETITEM, x, spec=spec), axis, 0)
        first = spec[0]
        if len(spec) == 1 and range(*slice(*first).indices(x.aval.shape[0])) == range(x.aval.shape[0]):
            return x
        return self.call(index.GETITEM, x, spec=spec)


def _noted(made: Several[Node], node: Node) -> None:
    """What took the place of a node belongs to its line, and to its phase."""
    for new in made:
        new.line, new.phase = new.line or node.line, new.phase or node.phase


def _stacked(aval: Aval, count: int) -> Aval:
    return Aval((count, *aval.shape), aval.dtype, "array")
