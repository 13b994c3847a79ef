"""From calls to compiled code: signatures, the traces of each, when to compile, dispatch, and the cache.

A call whose signature (tree, types, dtypes, shapes, static values) is new is traced; so is the second one. When both
traces agree, constants included, code is generated, and later calls run it without any tracing. Each end of the branch
tree is confirmed by two traces in this way, which is how random draws, clocks and counters are found. Where traces
contradict each other, or the tree grows past its cap, that signature is traced anew at every call: *dynamic mode*.
"""

from __future__ import annotations

import itertools
import linecache
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad import pytree, runtime
from symgrad.emit.build import Code, Signature, build
from symgrad.emit.fast import build_fast
from symgrad.errors import NotDifferentiable, Unexplored
from symgrad.ir import aval_of
from symgrad.optimize.lower import lower
from symgrad.optimize.simplify import simplify
from symgrad.program import Diverged, Leaf, Program, Run
from symgrad.pytree import LEAF, TreeDef
from symgrad.trace import Trace, Tracer, tracing

MAX_SIGNATURES = 64  # of one derivative; the least recently used goes first
MAX_LEAVES = 64  # ends of one signature's branch tree, before it goes to dynamic mode
MAX_NODES = 200_000  # of one trace, before its signature goes to dynamic mode

_serial = itertools.count(1)


class CacheInfo(NamedTuple):
    """As functools' caches: calls answered by compiled code, calls traced, the bound, and signatures held."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


# -- signatures ----------------------------------------------------------------------------------------------------


class Static:
    """A leaf of the arguments that is no number: part of the signature, by value where it has one, else by identity."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            hash(value)
            self.key = (type(value), value)
        except TypeError:
            self.key = (type(value), id(value))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key


def kind_of(leaf: Any) -> Any:
    """What a signature holds of a leaf: its ``Aval`` and Python type when it is a number, else the ``Static`` itself."""
    kind = type(leaf)
    if kind is np.ndarray and leaf.dtype.kind in "fciub":
        return aval_of(leaf)
    if kind in (float, int, complex) or (isinstance(leaf, np.generic) and leaf.dtype.kind in "fciub"):
        return (kind, aval_of(leaf))
    if isinstance(leaf, np.ndarray):
        if leaf.dtype.kind not in "fciub":
            return Static(leaf)
        name = f"{type(leaf).__module__}.{type(leaf).__qualname__}"
        raise NotDifferentiable(f"an argument is a {name}; pass a plain array: np.asarray(x)")
    return Static(leaf)


class Layout(NamedTuple):
    """A call's arguments as a tree: positional ones, names and values of keyword ones; the kinds of all leaves."""

    tree: TreeDef
    keywords: tuple[str, ...]
    kinds: tuple[Any, ...]


def layout(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Layout, list[Any]]:
    """The signature of a call and the leaves of its arguments."""
    leaves, tree = pytree.flatten((tuple(args), tuple(kwargs.values())))
    return Layout(tree, tuple(kwargs), tuple([kind_of(leaf) for leaf in leaves])), leaves


# -- one signature -------------------------------------------------------------------------------------------------

Body = Callable[[Trace, "tuple[Any, ...]", dict[str, Any], bool], Any]


class Specialization:
    """What is known of one signature: the traces so far, and the code made of them."""

    def __init__(self, signature: Layout, name: str, names: list[str]) -> None:
        self.layout, self.name, self.names = signature, name, names
        self.program = Program()
        self.traces = 0
        self.dynamic: str | None = None
        self.notes: list[str] = []
        self.code: Code | None = None
        self.simplified = self.program
        self.function: Callable[..., Any] | None = None
        self.entry: Callable[..., Any] | None = None
        self.filenames: list[str] = []
        self.counters: list[dict[str, Any]] = []

    # ---- running ----

    def trace(self, body: Body, leaves: list[Any], symbolic: bool) -> tuple[Any, Run | None, str | None]:
        """One traced run: the result, and the run for the program (None in dynamic mode) with what made it impure."""
        trace = Trace(symbolic)
        slots: list[Any] = []
        paths = self.layout.tree.paths()
        for position, (leaf, kind) in enumerate(zip(leaves, self.layout.kinds, strict=True)):
            if isinstance(kind, Static):
                slots.append(leaf)
            else:
                tracer = trace.input(position, leaf)
                tracer.node.name = self._input_name(paths[position])
                slots.append(tracer)
        args, values = self.layout.tree.unflatten(slots)
        with tracing(trace):
            out = body(trace, args, dict(zip(self.layout.keywords, values, strict=True)), symbolic)
            outputs, tree = pytree.flatten(out)
            outputs = [_settled(trace, leaf) for leaf in outputs]
        trace.check_captured()
        result = tree.unflatten([_fresh(leaf) for leaf in outputs])
        if not symbolic:
            return result, None, None
        nodes: list[Any] = []
        for leaf in outputs:
            if type(leaf) is Tracer:
                nodes.append(leaf.node)
            elif isinstance(leaf, (np.ndarray, np.generic, int, float, complex)) and not isinstance(leaf, bool):
                nodes.append(trace.constant(leaf)[0])
            else:
                nodes.append(leaf)
        return result, Run(trace.graph, [tuple(guard) for guard in trace.guards], Leaf(nodes, tree, [getattr(getattr(n, "aval", None), "kind", "") for n in nodes])), trace.impure  # type: ignore[misc]

    def _input_name(self, path: tuple[tuple[str, Any], ...]) -> str:
        (_, group), (_, which), *rest = path
        argument = self.names[which if group == 0 else which + len(self.layout.tree.children[0].children)]
        keys = [str(key) for _, key in rest]
        if not keys:
            return argument
        return keys[-1] if keys[-1].isidentifier() else "_".join([argument, *keys])

    def learn(self, run: Run, impure: str | None) -> bool:
        """Take a trace into the program. True when there is new code to be made."""
        self.traces += 1
        if impure:
            return self.give_up(impure)
        if len(run.graph) > MAX_NODES:
            return self.give_up(f"one call takes {len(run.graph)} operations, more than {MAX_NODES}")
        try:
            leaf = self.program.add(run)
        except Diverged as difference:
            return self.give_up(str(difference))
        if sum(1 for _ in self.program.leaves()) > MAX_LEAVES:
            return self.give_up(f"its branches have more than {MAX_LEAVES} ends")
        leaf.seen += 1
        return leaf.seen == 2

    def give_up(self, reason: str) -> bool:
        """Go to dynamic mode for good."""
        self.dynamic, self.entry, self.function = reason, None, None
        return False

    # ---- code ----

    def signature(self) -> Signature:
        """How the generated function is called."""
        count = len(self.layout.tree.children[0].children)
        access = []
        for path in self.layout.tree.paths():
            (_, group), (_, which), *rest = path
            access.append((self.names[which if group == 0 else which + count], tuple(rest)))
        kinds = []
        for (argument, rest), kind in zip(access, self.layout.kinds, strict=True):
            where = argument + "".join(f".{k}" if step == "attr" else f"[{k!r}]" for step, k in rest)
            shown = repr(kind.value)[:40] if isinstance(kind, Static) else str(kind[1] if type(kind) is tuple else kind)
            kinds.append(f"{where}: {shown}")
        doc = f"{self.name.replace('_', ' ', 1)}   for {', '.join(kinds)}" if kinds else self.name
        if len(doc) > 110:
            doc = f"{self.name.replace('_', ' ', 1)}\n\n" + "\n".join(kinds)
        return Signature(self.name, ", ".join(self.names), self.names, access, doc)

    def readable(self) -> str:
        """The source for people, of all branches traced so far."""
        code = build(simplify(self.program), self.signature(), fresh=False).source
        return f"# runs in dynamic mode: {self.dynamic}\n{code}" if self.dynamic else code

    def running(self) -> str:
        """The source that runs, of all branches traced so far."""
        return build_fast(lower(simplify(self.program)), self.signature()).source

    def compile(self, miss: Callable[..., Any]) -> None:
        """Make the function of all confirmed branches, and the entry that checks a call and runs it."""
        program = self.program.confirmed()
        self.simplified = simplify(program)
        code = build_fast(lower(self.simplified), self.signature())
        self.code = code
        namespace: dict[str, Any] = {"np": np, "runtime": runtime, "Unexplored": Unexplored, **code.namespace}
        self._execute(code.source, self.name, namespace)
        self.function = namespace[self.name]
        self.entry = self._entry(miss)

    def _execute(self, text: str, name: str, namespace: dict[str, Any]) -> None:
        filename = f"<symgrad {name} {next(_serial)}>"
        exec(compile(text, filename, "exec"), namespace)
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        self.filenames.append(filename)

    def forget(self) -> None:
        """Take the generated sources out of linecache."""
        for filename in self.filenames:
            linecache.cache.pop(filename, None)

    def _entry(self, miss: Callable[..., Any]) -> Callable[..., Any]:
        """A function ``entry(args, kwargs)``: checks that a call has this signature, then runs the code."""
        checks: list[str] = []
        count = len(self.layout.tree.children[0].children)
        space: dict[str, Any] = {"hits": 0, "miss": miss, "ndarray": np.ndarray, "function": self.function, "Unexplored": Unexplored}
        kinds = iter(self.layout.kinds)
        for i, child in enumerate(self.layout.tree.children[0].children):
            _check(child, f"a{i}", kinds, checks, space)
        for j, child in enumerate(self.layout.tree.children[1].children):
            _check(child, f"a{count + j}", kinds, checks, space)
        names = [f"a{i}" for i in range(len(self.names))]
        lines = ["def entry(args, kwargs):", "    global hits"]
        form = [f"len(args) == {count}"]
        if self.layout.keywords:
            form += [f"len(kwargs) == {len(self.layout.keywords)}"]
            form += [f"{keyword!r} in kwargs" for keyword in self.layout.keywords]
        else:
            form += ["not kwargs"]
        lines.append(f"    if {' and '.join(form)}:")
        if count:
            lines.append(f"        {', '.join(names[:count])}, = args")
        for keyword, name in zip(self.layout.keywords, names[count:], strict=True):
            lines.append(f"        {name} = kwargs[{keyword!r}]")
        lines.append(f"        if {' and '.join(checks) or 'True'}:")
        lines.append("            hits += 1")
        run = f"return function({', '.join(names)})"
        caught = self._caught()
        if caught:
            lines += [
                "            try:",
                f"                {run}",
                f"            except {caught}:",
                "                pass",
            ]
        else:
            lines.append(f"            {run}")
        lines.append("    return miss(args, kwargs)")
        self._execute("\n".join(lines) + "\n", f"{self.name} entry", space)
        self.counters.append(space)
        return space["entry"]  # type: ignore[no-any-return]

    def _caught(self) -> str:
        """The exceptions after which a call is traced: an unseen branch; Python arithmetic that NumPy would not raise."""
        caught = ["Unexplored"] if self.program.root is not None and not isinstance(self.program.root, Leaf) else []
        if any(getattr(n.aval, "kind", "") == "python" and n.args for n in self.simplified.graph.nodes):
            caught += ["ArithmeticError", "ValueError"]
        return f"({', '.join(caught)})" if len(caught) > 1 else "".join(caught)


def _check(tree: TreeDef, name: str, kinds: Any, checks: list[str], space: dict[str, Any]) -> None:
    """Conditions that an argument has the tree and the kinds of a signature, as source."""
    if tree.kind is LEAF:
        kind = next(kinds)
        if isinstance(kind, Static):
            slot = f"s{len(space)}"
            space[slot] = kind.value
            same = f"type({name}) is type({slot}) and {name} == {slot}" if _comparable(kind) else f"{name} is {slot}"
            checks.append(same)
        elif isinstance(kind, tuple) and not hasattr(kind, "_fields"):
            slot = f"t_{kind[0].__name__}"
            space[slot] = kind[0]
            checks.append(f"type({name}) is {slot}")
        else:
            slot = f"d{kind.dtype.str[1:]}_{len(space)}"
            known = [key for key, value in space.items() if isinstance(value, np.dtype) and value is kind.dtype]
            slot = known[0] if known else slot
            space[slot] = kind.dtype
            checks.append(f"type({name}) is ndarray and {name}.dtype is {slot} and {name}.shape == {kind.shape!r}")
        return
    if tree.kind is None:
        checks.append(f"{name} is None")
        return
    slot = f"k{len(space)}"
    space[slot] = tree.kind
    checks.append(f"type({name}) is {slot}")
    if issubclass(tree.kind, dict):
        keys = f"keys{len(space)}"
        space[keys] = tree.keys
        checks.append(f"tuple({name}) == {keys}")
        reads = []
        for i in range(len(tree.keys)):
            space[f"{keys}_{i}"] = tree.keys[i]
            reads.append(f"{name}[{keys}_{i}]")
    elif issubclass(tree.kind, (tuple, list)):
        checks.append(f"len({name}) == {len(tree.children)}")
        reads = [f"{name}[{i}]" for i in range(len(tree.children))]
    else:
        reads = [f"{name}.{key}" for key in tree.keys]
    for i, (read, child) in enumerate(zip(reads, tree.children, strict=True)):
        part = f"{name}_{i}"
        checks.append(f"(({part} := {read}) is {part})")
        _check(child, part, kinds, checks, space)


def _comparable(kind: Static) -> bool:
    return isinstance(kind.value, (str, bytes, bool, int, float))


def _settled(trace: Trace, leaf: Any) -> Any:
    """An output leaf as it is after the last write; object arrays of Tracers stacked."""
    if type(leaf) is Tracer and leaf.base is not None:
        leaf.refresh()
    if type(leaf) is np.ndarray and leaf.dtype == object and any(type(item) is Tracer for item in leaf.flat):
        return trace.stack(leaf)
    return leaf


def _fresh(leaf: Any) -> Any:
    """A result of its own: a new, writable, C-contiguous array, or the number itself."""
    value = leaf.value if type(leaf) is Tracer else leaf
    return np.array(value, order="C") if type(value) is np.ndarray else value


# -- all signatures of one derivative ------------------------------------------------------------------------------


class Compiler:
    """The calls of one derivative: finds the specialization of each, traces, compiles, runs."""

    def __init__(self, body: Body, name: str, names: Callable[[int, Sequence[str]], list[str]], mode: str) -> None:
        self.body, self.name, self.names, self.mode = body, name, names, mode
        self.known: OrderedDict[Layout, Specialization] = OrderedDict()
        self.lock = threading.RLock()
        self.misses = 0
        self.entry: Callable[..., Any] = self.miss

    def specialization(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Specialization, list[Any]]:
        """The specialization of a call, new if need be, and the leaves of its arguments."""
        key, leaves = layout(args, kwargs)
        with self.lock:
            found = self.known.get(key)
            if found is None:
                names = self.names(len(args), tuple(kwargs))
                found = self.known[key] = Specialization(key, self.name, names)
                while len(self.known) > MAX_SIGNATURES:
                    self.known.popitem(last=False)[1].forget()
            else:
                self.known.move_to_end(key)
        return found, leaves

    def miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that the current entry did not answer."""
        spec, leaves = self.specialization(args, kwargs)
        entry = spec.entry
        if entry is not None and entry is not self.entry:
            self.entry = entry
            return entry(args, kwargs)  # it misses again, to be traced, when it meets an unseen branch
        return self.explore(args, kwargs)

    def explore(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that must be traced."""
        spec, leaves = self.specialization(args, kwargs)
        self.misses += 1
        symbolic = self.mode != "dynamic" and spec.dynamic is None
        result, run, impure = spec.trace(self.body, leaves, symbolic)
        if run is not None:
            with self.lock:
                if spec.dynamic is None and spec.learn(run, impure):
                    spec.compile(self.miss)
                    assert spec.entry is not None
                    self.entry = spec.entry
        return result

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Specialization:
        """The specialization of a call with at least one trace."""
        spec, leaves = self.specialization(args, kwargs)
        if spec.program.root is None:
            _, run, impure = spec.trace(self.body, leaves, True)
            assert run is not None
            with self.lock:
                spec.learn(run, impure)
        return spec

    def info(self) -> CacheInfo:
        """Counts, as ``functools.lru_cache`` gives them."""
        with self.lock:
            hits = sum(space["hits"] for spec in self.known.values() for space in spec.counters)
            return CacheInfo(hits, self.misses, MAX_SIGNATURES, len(self.known))

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            for spec in self.known.values():
                spec.forget()
            self.known.clear()
            self.entry = self.miss
            self.misses = 0
