"""Loops made smaller: results that nobody reads, and loops that another one runs as well, are left out."""

from __future__ import annotations

from symgrad.ir import Node, ancestors
from symgrad.ops.engine import ITEM
from symgrad.optimize.simplify import RULES, Simplifier
from symgrad.program import Program
from symgrad.transform.loop import Body, Course, Loop, loop_of


def trim_loops(program: Program) -> Program:
    """The same program, its loops without what is not read, their bodies simplified."""
    size = None
    while size != (size := _load(program)) and size:  # what one loop no longer reads, another need not save
        program = _Trimmer(program).run()
    return program


def _load(program: Program) -> int:
    """How much the loops of a program carry and save."""
    loops = [node.op for node in ancestors(program.roots()) if isinstance(node.op, Loop)]
    return sum(sum(op.counts) + len(op.body.saved) for op in loops)


class _Trimmer(Simplifier):
    """Rebuilds a program with trimmed loops."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, {})
        nodes = ancestors(program.roots())
        here = {(node.op, node.args): node for node in nodes if isinstance(node.op, Loop)}
        self.same: dict[Node, Node] = {}  # a loop that another one runs too, saving more
        for node in nodes:
            if isinstance(node.op, Loop):
                other = here.get((node.op.saving(), node.args))
                if other is not None and other is not node:
                    self.same[node] = other
        self.read: dict[Node, set[int]] = {}
        for node in nodes:
            if node.op is ITEM and isinstance(node.args[0].op, Loop):
                loop = self.same.get(node.args[0], node.args[0])
                self.read.setdefault(loop, set()).add(dict(node.params)["item"])
        self.trimmed: dict[Node, tuple[Node, list[int]]] = {}

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Loop):
            return super().visit(node, args)  # for its place in the order; what is read comes from ``_trim``
        if node.op is ITEM and isinstance(node.args[0].op, Loop):
            loop = self.same.get(node.args[0], node.args[0])
            if loop not in self.trimmed:
                self.trimmed[loop] = self._trim(loop)
            made, places = self.trimmed[loop]
            item = places.index(dict(node.params)["item"])
            new = self.graph.add(ITEM, (made,), (("item", item),), node.aval)
            new.name, new.line, new.phase = node.name, node.line, node.phase
            return new
        return super().visit(node, args)

    def _trim(self, node: Node) -> tuple[Node, list[int]]:
        """The loop with only what is read, and which of its results those are."""
        op: Loop = node.op
        body, course = op.body, op.course
        n, m, _ = op.counts
        wanted = {i for i in self.read[node] if i < n} | ({course.test} if course.test is not None else set())
        saved = sorted(i - n for i in self.read[node] if i >= n)
        while True:
            needed = set(ancestors([*(body.after[i] for i in wanted), *(body.saved[i] for i in saved)]))
            more = {i for i, item in enumerate(body.carry) if item in needed} - wanted
            if not more:
                break
            wanted |= more
        carry = sorted(wanted)
        elements = [i for i, item in enumerate(body.elements) if item in needed]
        if course.test is None and course.count is None and not elements:
            elements = [0]
        fixed = [i for i, item in enumerate(body.invariants) if item in needed]
        small = Body(
            body.graph,
            [body.carry[i] for i in carry],
            body.index,
            [body.elements[i] for i in elements],
            [body.invariants[i] for i in fixed],
            [body.after[i] for i in carry],
            [body.saved[i] for i in saved],
        )
        test = None if course.test is None else carry.index(course.test)
        made = simplified(small, Course(course.count, course.start, course.step, test, course.backwards))
        args = [node.args[i] for i in carry] + [node.args[n + i] for i in elements] + [node.args[n + m + i] for i in fixed]
        avals = tuple([node.aval[i] for i in carry] + [node.aval[n + i] for i in saved])
        new = self.graph.add(made, tuple(self.mapping[arg] for arg in args), (), avals)
        new.line, new.phase = node.line, node.phase
        return new, [*carry, *(n + i for i in saved)]


def simplified(body: Body, course: Course) -> Loop:
    """The loop of a body, simplified."""
    program = Program()
    program.graph = body.graph
    simplifier = Simplifier(program, RULES)
    mapping: dict[Node, Node] = {}
    inputs = {node: i for i, node in enumerate(body.inputs)}
    # how often a loop runs, and what is decided on its results, must not hang on rounding; derivatives decide nothing
    exact = {node for node in body.nodes() if node.phase is None}
    for node in ancestors([*body.inputs, *body.after, *body.saved]):
        simplifier.exact = node in exact
        if node in inputs:
            mapping[node] = simplifier.graph.input(("body", inputs[node]), node.aval)
            mapping[node].name = node.name
        elif isinstance(node.op, Loop):
            inner = simplified(node.op.body, node.op.course)
            mapping[node] = simplifier.visit_as(inner, node, tuple(mapping[arg] for arg in node.args))
        else:
            mapping[node] = simplifier.visit(node, tuple(mapping[arg] for arg in node.args))

    def of(nodes: list[Node]) -> list[Node]:
        return [mapping[node] for node in nodes]

    new = Body(
        simplifier.graph,
        of(body.carry),
        mapping[body.index],
        of(body.elements),
        of(body.invariants),
        of(body.after),
        of(body.saved),
    )
    return loop_of(new, course)
