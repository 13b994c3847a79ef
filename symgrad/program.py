"""A program: what the traces of one signature have in common, as a tree of branches over one graph."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Graph, Node, ancestors, frozen
from symgrad.ops.core import REGISTRY
from symgrad.ops.engine import INDEX, ITEM
from symgrad.ops.index import INDEX_ADD, SCATTER
from symgrad.pytree import TreeDef
from symgrad.transform.loop import Loop, arguments_of

ADD = REGISTRY[np.add]
SAMPLED = 64  # numbers of an array, about, by which those that may be equal are found


class Diverged(Exception):
    """Two traces of one signature took the same decisions and yet differ: something outside the arguments changed."""


@dataclass(eq=False)
class Leaf:
    """An end of the tree: the outputs. An output that is no number (a string, an object) is kept as it is.

    The last of them are no part of the result: they are put somewhere outside.
    """

    outputs: list[Any]
    tree: TreeDef
    kinds: list[str]  # of each output, as ``Aval.kind`` has it: rewriting may turn a 0-d array into a scalar
    puts: Sequence[Any] = ()  # where these go: what leads there, as of inputs
    required: list[Node] = field(default_factory=list)  # computed for the exceptions that they may raise
    seen: int = 0
    linked: bool = False  # whether there is code that gets here

    def nodes(self) -> list[Node]:
        """What must be computed for this end."""
        return [*self.required, *(out for out in self.outputs if isinstance(out, Node))]

    def kept(self) -> list[tuple[Any, Any]]:
        """Where something is put, and what."""
        return [*zip(self.puts, self.outputs[len(self.outputs) - len(self.puts) :], strict=True)]


@dataclass(eq=False)
class Branch:
    """Python looked at ``node``; ``cases`` says what happened for each value that was seen.

    ``number`` stays the same in all copies: where code that was made of some of the cases leaves off, other code goes on.
    """

    node: Node
    line: tuple[str, int] | None
    cases: dict[Any, Branch | Leaf] = field(default_factory=dict)
    loop: bool = False  # the test of a loop that was not rolled up, for it ran too short
    yields: bool = False  # to what another call knows of the ways through the same loop
    number: int = 0


Tree = Branch | Leaf


@dataclass(eq=False)
class Run:
    """One finished trace: its graph, the guards in order, and the outputs."""

    graph: Graph
    guards: Sequence[tuple[Node, Any, tuple[str, int] | None, bool, bool, bool]]
    leaf: Leaf
    unmasked: dict[Node, tuple[Node, bool]] = field(default_factory=dict)


class Program:
    """The traces of one signature, merged.

    ``unmasked`` has, of results of derivatives with masks, what is computed without any, which is the same where it is finite;
    and whether it was in all traces.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.root: Tree | None = None
        self.unmasked: dict[Node, tuple[Node, bool]] = {}
        self.rounds: dict[Node, Node] = {}  # of a loop's body, which of its inputs is what the next time
        self.apart = False  # whether its arrays are taken apart, and its numbers Python's own
        self.strict = False  # whether it raises an error where a number is not finite, and other code answers then
        self._nodes: list[Node] | None = None
        self._numbers = itertools.count()

    def add(self, run: Run, left: tuple[int, Any] | None = None) -> Leaf | None:
        """Merge a trace; its end of the tree, or None where a loop that is rolled up answers for it already.

        ``left`` is where code left that call off: the number of a branch, and the value that was seen there. Raises
        ``Diverged`` when the trace contradicts an earlier one.
        """
        self._nodes = None
        fresh = run.graph.arrays or any([node.op is INDEX for node in run.graph.nodes])
        if self.root is None and not fresh:  # arrays are known again by their content, each is there but once
            self.graph, self.unmasked = run.graph, dict(run.unmasked)
            self.root = _chain(run.guards, run.leaf, self._numbers)
            return run.leaf
        mapping: dict[Node, Node] = {}
        plain = [node for node, _ in run.unmasked.values()]
        for node in run.graph.needed([guard[0] for guard in run.guards] + run.leaf.nodes() + plain):
            mapping[node] = self._adopt(run.graph, node, mapping)
        for masked in run.unmasked.keys() & mapping.keys():
            new, (other, finite) = mapping[masked], run.unmasked[masked]
            self.unmasked[new] = mapping[other], finite and self.unmasked.get(new, (other, True))[1]
        outputs = [mapping[out] if isinstance(out, Node) else out for out in run.leaf.outputs]
        leaf = replace(run.leaf, outputs=outputs, required=[mapping[node] for node in run.leaf.required])
        tree = _chain([(mapping[node], *rest) for node, *rest in run.guards], leaf, self._numbers)
        if self.root is None:
            self.root = tree
            return leaf
        trunk: dict[Any, Tree] = {None: self.root}
        found = _merge(trunk, tree, leaf, left)
        self.root = trunk[None]
        if found is None and left is None and all([one.seen < 2 for one in self.leaves()]):
            self.root, found = tree, leaf  # the loop may be another one: what a single call did answers for nothing yet
        return found

    def _adopt(self, source: Graph, node: Node, mapping: dict[Node, Node]) -> Node:
        """The same node in this program's graph."""
        if node.op is INPUT:
            new = self.graph.input(dict(node.params)["position"], node.aval)
        elif node.op is CONST or node.op is INDEX:  # outside of its loop, a number is one, whichever iteration it is of
            new = self.graph.const(dict(node.params)["value"])
        elif node.op is CAPTURED:
            new = self._adopt_array(source.arrays[node])
        else:
            op = self._adopt_loop(node.op) if isinstance(node.op, Loop) else node.op
            new = self.graph.add(op, tuple([mapping[arg] for arg in node.args]), node.params, node.aval)
        new.name, new.line = new.name or node.name, new.line or node.line
        new.active, new.phase, new.exact = new.active or node.active, new.phase or node.phase, new.exact or node.exact
        new.differentiated = new.differentiated or node.differentiated
        return new

    @functools.cached_property
    def _loops(self) -> dict[Any, Loop]:
        """The loops that are there, by what those share that are alike."""
        return {node.op.alike: node.op for node in self.graph.nodes if isinstance(node.op, Loop)}

    def _adopt_loop(self, op: Loop) -> Loop:
        """The same loop, else one that an earlier trace made alike, with arrays of equal content."""
        known = self._loops.setdefault(op.alike, op)
        if known is not op:
            known.freeze()
        return known

    def _adopt_array(self, array: np.ndarray[Any, Any]) -> Node:
        """The same captured array, else one that an earlier trace made anew with equal content."""
        node = self.graph.holder(array)
        if node is not None:
            return node
        sample = array.flat[:: array.size // SAMPLED + 1].tobytes()
        alike = self.graph.alike.setdefault((array.dtype, array.shape, sample), [])
        for node in alike:
            known = self.graph.arrays[node]
            if known.tobytes() == array.tobytes():
                self.graph.recapture(node, frozen(known))
                return node
        alike.append(self.graph.captured(array))
        return alike[-1]

    def leaves(self) -> Iterator[Leaf]:
        """The ends of the tree."""
        if self.root is not None:
            yield from leaves_of(self.root)

    def roots(self) -> list[Node]:
        """All nodes that the program must compute: what guards look at, and outputs."""
        if self.root is None:
            return []
        return [
            *(branch.node for branch in branches_of(self.root)),
            *(n for leaf in self.leaves() for n in leaf.nodes()),
        ]

    def nodes(self) -> list[Node]:
        """All nodes that the program needs, in order."""
        if self._nodes is None:
            self._nodes = self.graph.needed(self.roots())
        return self._nodes

    def busiest(self) -> tuple[str, int] | None:
        """The line whose branches have the most ends."""
        lines = Counter(branch.line for branch in branches_of(self.root) if branch.line) if self.root else Counter()
        return lines.most_common(1)[0][0] if lines else None

    def confirmed(self) -> Program:
        """The same program, with only those ends of the tree that two traces agreed on."""
        assert self.root is not None
        return self._below(_confirmed(self.root))

    def _below(self, tree: Tree | None) -> Program:
        result = Program()
        result.graph, result.root, result.unmasked = self.graph, tree, self.unmasked
        return result

    def only(self, leaf: Leaf) -> Program:
        """The program that gets to one of its ends, and to no other."""
        assert self.root is not None
        return self._below(_along(_way_to(self.root, leaf), leaf))

    def missing(self, leaf: Leaf) -> tuple[tuple[int, Any], Program]:
        """What the code that there is needs to get to ``leaf``: where it leaves off, and the program from there on.

        That place is the number of a branch, and the value that was seen there.
        """
        assert self.root is not None
        way, at = _way_to(self.root, leaf), 0
        linked = _linked(self.root)
        while id(way[at][0].cases[way[at][1]]) in linked:
            at += 1
        return (way[at][0].number, way[at][1]), self._below(_along(way[at + 1 :], leaf))

    def decisions(self) -> list[Node]:
        """What the branches look at, and those of later calls may: numbers that are put somewhere, and read from there."""
        looked = [] if self.root is None else [branch.node for branch in branches_of(self.root)]
        kept = [pair for leaf in self.leaves() for pair in leaf.kept()]
        read = {dict(node.params)["position"] for node in self.graph.nodes if node.op is INPUT} if kept else set()
        return looked + [x for place, x in kept if place in read and isinstance(x, Node) and x.aval.kind != "array"]

    def settled(self) -> set[Node]:
        """What these hang on; loops, but where nothing is computed of what is looked at that rounding might change."""
        found, waiting = set[Node](), self.decisions()
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found.add(node)
            loop = node.args[0] if node.op is ITEM and isinstance(node.args[0].op, Loop) else None
            if loop is None or loop.op.rounds(dict(node.params)["item"]):
                waiting += node.args
            else:
                waiting += [loop.args[i] for i in arguments_of(loop.op, dict(node.params)["item"])]
        return found

    def map(self, graph: Graph, mapping: dict[Node, Node]) -> Program:
        """The same program over another graph."""
        result = Program()
        result.graph, result.apart, result.strict = graph, self.apart, self.strict
        result.rounds = {mapping[x]: mapping[y] for x, y in self.rounds.items() if x in mapping and y in mapping}
        result.root = None if self.root is None else _map(self.root, mapping)
        return result


def _chain(guards: Iterable[tuple[Any, ...]], leaf: Leaf, numbers: Iterator[int]) -> Tree:
    """The tree of one trace, its branches numbered. What was looked at once need not be looked at again."""
    tree: Tree = leaf
    first = {guard[0]: guard for guard in reversed([*guards])}
    for guard in reversed([*guards]):
        node, value, line, loop, unseen, fixed = guard
        if first[node] is guard:
            tree = Branch(node, line, {value: tree}, loop, unseen or fixed, next(numbers))
    return tree


def _merge(above: dict[Any, Tree], b: Tree, leaf: Leaf, left: tuple[int, Any] | None) -> Leaf | None:
    """Add the path ``b``, which ends in ``leaf``, to the tree in ``above[None]``; its end there. Without recursion.

    A loop that is rolled up has no branch on its test and is right however often it runs: it takes the place of what is
    known of the same loop unrolled, where it ran too short, and what comes later of that kind is left out, but where the
    code ``left`` that call off: from there the path goes on as it is. One with more of the ways through an iteration takes
    the place of one with fewer.
    """
    key = None
    while True:
        a = above[key]
        if a is not b and (isinstance(a, Leaf) or isinstance(b, Leaf) or a.node is not b.node):
            if isinstance(b, Branch) and b.loop and b.yields and all([one.seen < 2 for one in leaves_of(a)]):
                above[key] = b  # the same loop with more ways, as it is from now on
                return leaf
            if isinstance(b, Branch) and b.loop:
                place, left = _place(above[key], b, left), None
                if place is None:
                    return None
                above, key, b = place
                if key in above:
                    continue
                above[key] = b
                return leaf
            if isinstance(a, Branch) and (a.loop or a.yields):
                above[key] = b
                return leaf
            if isinstance(a, Leaf) and isinstance(b, Branch) and b.yields:  # what is there knows more ways
                return None
        if isinstance(a, Leaf) or isinstance(b, Leaf):
            if isinstance(b, Branch) and isinstance(a, Leaf) and a.seen < 2 and _loops(a.nodes()) and _loops([b.node]):
                above[key] = b  # which knows of a loop that what it leaves may be Python's number, or NumPy's
                return leaf
            if isinstance(a, Branch) or isinstance(b, Branch):
                raise Diverged("a call took another course than an earlier one with the same decisions")
            same = a.tree == b.tree and a.puts == b.puts and len(a.outputs) == len(b.outputs)
            if not same or not _agree(a.outputs, b.outputs):
                if a.seen < 2 and _loops(a.nodes()) and _loops(b.nodes()):  # both are right, of other ways through a loop
                    above[key] = b
                    return leaf
                raise Diverged("a call gave another result than an earlier one with the same decisions")
            return a
        if a.node is not b.node and not _differ_in_size(a.node, b.node):
            if all([one.seen < 2 for one in leaves_of(a)]) and _loops([a.node]) and _loops([b.node]):  # so are both here
                above[key] = b
                return leaf
            raise Diverged("a call looked at other values than an earlier one with the same decisions")
        ((value, rest),) = b.cases.items()
        if value not in a.cases:
            a.cases[value] = rest
            return leaf
        above, key, b = a.cases, value, rest


def _place(tree: Tree, path: Branch, left: tuple[int, Any] | None) -> tuple[dict[Any, Tree], Any, Tree] | None:
    """Where code left a call off below ``tree``: the cases of a branch, the one that it lacks, and what is left of ``path``
    there; None where that is not known, or the path has seen something else than the code."""
    if left is None:
        return None
    branch = next((branch for branch in branches_of(tree) if branch.number == left[0]), None)
    if branch is None:
        return None
    seen = {other.node: value for other, value in [*_way_to(tree, branch), (branch, left[1])]}
    way: list[Branch] = []
    rest: Tree = path
    while isinstance(rest, Branch):
        ((value, below),) = rest.cases.items()
        if seen.get(rest.node, value) != value:
            return None
        if rest.node not in seen:
            way.append(rest)
        rest = below
    for one in reversed(way):
        rest = replace(one, cases=dict.fromkeys(one.cases, rest))
    return branch.cases, left[1], rest


def _agree(outputs: list[Any], others: list[Any]) -> bool:
    """Whether two traces gave the same, but for the order in which their derivatives add up, which is that of what was met."""
    differ = [pair for pair in zip(outputs, others, strict=True) if not _same(*pair)]
    if not all([isinstance(output, Node) for pair in differ for output in pair]):
        return False
    return not differ or all(map(operator.eq, *_numbered(*zip(*differ, strict=True))))


def _numbered(*groups: Sequence[Node]) -> list[list[int]]:
    """Numbers for nodes, which are the same where the nodes differ in the order of sums alone."""
    nodes = ancestors([node for group in groups for node in group])
    users = Counter(arg for node in nodes for arg in node.args)
    users.update([node for group in groups for node in group])
    within = {arg for node in nodes for arg in _summed(node) if users[arg] == 1 and _is_sum(arg)}  # of another sum
    known: dict[Any, int] = {}
    numbers: dict[Node, int] = {}
    for node in nodes:
        if node not in within:
            what: Any = node
            if _is_sum(node):
                what = frozenset(Counter(_terms(node, within, numbers)).items())
            elif node.args:
                what = (node.op, node.params, *_of(node.args, numbers))
            numbers[node] = known.setdefault((node.aval, what), len(known))
    return [[numbers[node] for node in group] for group in groups]


def _terms(node: Node, within: set[Node], numbers: dict[Node, int]) -> Iterator[Any]:
    """What a sum is made of: numbers of nodes, and what is put where."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.op in (INDEX_ADD, SCATTER):
            yield tuple([pair for pair in one.params if pair[0] != "shape"]), *_of(one.args[one.op is INDEX_ADD :], numbers)
        for arg in _summed(one):
            if arg in within:
                waiting.append(arg)
            else:
                yield numbers[arg]


def _is_sum(node: Node) -> bool:
    return node.op is SCATTER or bool(_summed(node))


def _summed(node: Node) -> tuple[Node, ...]:
    """What a sum adds up as it is."""
    if node.op is ADD and all([arg.aval == node.aval for arg in node.args]):
        return node.args
    return node.args[:1] if node.op is INDEX_ADD else ()


def _of(nodes: Iterable[Node], numbers: dict[Node, int]) -> tuple[int, ...]:
    return tuple([numbers[node] for node in nodes])


def _loops(nodes: list[Node]) -> bool:
    """Whether results are given by loops, which hold for other iterations than those that were seen."""
    return any([hasattr(node.op, "forks") for node in ancestors(nodes)])


def _differ_in_size(a: Node, b: Node) -> bool:
    """Whether two nodes look at the same result, such as ``np.flatnonzero(x)``, which has another shape in each call."""
    while a.op is b.op and a.params == b.params and len(a.args) == len(b.args):
        if all([x is y for x, y in zip(a.args, b.args, strict=True)]):
            return bool(a.args)
        if len(a.args) > 1:
            return False
        a, b = a.args[0], b.args[0]
    return False


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, Node) or isinstance(b, Node):
        return False
    try:
        return type(a) is type(b) and bool(a == b)
    except (TypeError, ValueError):
        return False


def preorder(root: Tree) -> Iterator[Tree]:
    """All of a tree, parents before their cases, without recursion."""
    stack = [root]
    while stack:
        top = stack.pop()
        yield top
        if isinstance(top, Branch):
            stack.extend(reversed(list(top.cases.values())))


def leaves_of(tree: Tree) -> Iterator[Leaf]:
    """The ends of a tree, in order."""
    return (part for part in preorder(tree) if isinstance(part, Leaf))


def branches_of(tree: Tree) -> Iterator[Branch]:
    """The branches of a tree, parents first."""
    return (part for part in preorder(tree) if isinstance(part, Branch))


def _way_to(root: Tree, leaf: Tree) -> list[tuple[Branch, Any]]:
    """The branches on the way to a part of a tree, each with the value that was seen there."""
    above: dict[int, tuple[Branch, Any]] = {}
    for branch in branches_of(root):
        above |= {id(child): (branch, value) for value, child in branch.cases.items()}
    way: list[tuple[Branch, Any]] = []
    tree: Tree = leaf
    while tree is not root:
        way.append(above[id(tree)])
        tree = way[-1][0]
    return way[::-1]


def _along(way: Sequence[tuple[Branch, Any]], leaf: Leaf) -> Tree:
    """The tree of one way alone."""
    tree: Tree = leaf
    for branch, value in reversed(way):
        tree = Branch(branch.node, branch.line, {value: tree}, branch.loop, branch.yields, branch.number)
    return tree


def _linked(root: Tree) -> set[int]:
    """The parts of a tree from which there is code that gets to an end, by identity."""
    found: set[int] = set()
    for tree in reversed([*preorder(root)]):
        if tree.linked if isinstance(tree, Leaf) else any(id(child) in found for child in tree.cases.values()):
            found.add(id(tree))
    return found


def _map(root: Tree, mapping: dict[Node, Node]) -> Tree:
    """A copy of a tree over mapped nodes, without recursion."""
    done: dict[int, Tree] = {}
    for tree in reversed([*preorder(root)]):
        if isinstance(tree, Leaf):
            outputs = [mapping[o] if isinstance(o, Node) else o for o in tree.outputs]
            done[id(tree)] = Leaf(outputs, tree.tree, tree.kinds, tree.puts, [mapping[node] for node in tree.required])
        else:
            cases = {value: done[id(child)] for value, child in tree.cases.items()}
            done[id(tree)] = Branch(mapping[tree.node], tree.line, cases, tree.loop, tree.yields, tree.number)
    return done[id(root)]


def _confirmed(root: Tree) -> Tree | None:
    """The tree without ends that were seen once only."""
    done: dict[int, Tree | None] = {}
    for tree in reversed([*preorder(root)]):
        if isinstance(tree, Leaf):
            done[id(tree)] = tree if tree.seen > 1 else None
        else:
            kept = {value: done[id(child)] for value, child in tree.cases.items()}
            cases = {value: child for value, child in kept.items() if child is not None}
            done[id(tree)] = Branch(tree.node, tree.line, cases, tree.loop, tree.yields, tree.number) if cases else None
    return done[id(root)]
