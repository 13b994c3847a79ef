"""The public functions: ``grad`` and its kin. Each returns a ``Derivative``, which traces, compiles and caches."""

from __future__ import annotations

import functools
import operator
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence, ValuesView
from types import FunctionType
from typing import Any, Concatenate, Generic, ParamSpec, TypedDict, TypeVar, Unpack, overload

import numpy as np

from symgrad import pytree
from symgrad.compile import OWNER, Body, CacheInfo, Compiler, Family, User, Variant, compiler_of
from symgrad.draw import dot, svg
from symgrad.emit.names import Names
from symgrad.ir import INPUT, Graph, Node, ancestors
from symgrad.look import Annotation, Profile, Source, profile
from symgrad.ops.core import Traced
from symgrad.ops.create import contains_traced
from symgrad.ops.engine import STOP
from symgrad.optimize.switches import switched_off
from symgrad.signature import FOREIGN, Bridge, Foreign, Form, Mapped, check_foreign, foreign, unmapped
from symgrad.tracing.trace import Trace, active_trace
from symgrad.tracing.tracer import Tracer, escaped
from symgrad.transform import calculus
from symgrad.transform.calculus import Argnums, Linearized
from symgrad.transform.linear import LinearMap, Recorded, Replayed, pullback_of, pushforward_of
from symgrad.transform.vmap import AfterSelf, Axes
from symgrad.transform.vmap import vmap as run_batched
from symgrad.watch.guards import describe
from symgrad.watch.likeness import Derived, likeness, name_of

Fun = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X")


class Derivative(Derived, Generic[P, R]):
    """A derivative of a function: called as the function is, compiled and cached by the signature of its arguments.

    Made by ``grad``, ``value_and_grad``, ``jacobian`` and the others. The first two calls of a signature trace the function
    (which runs once in each); later ones run generated code. So do those of the same derivative made anew, of this function
    or another one of the same code.

    >>> square = grad(lambda x: x ** 2)
    >>> square(3.0)
    6.0
    """

    # what a call runs is an entry of the instance's own: as a rule one that was generated for its last call's signature
    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[P, R]

    def __init__(self, kind: str, fun: Fun, options: dict[str, Any], off: frozenset[str] | None = None) -> None:
        if not callable(fun):
            raise TypeError(f"{'symgrad' if kind == 'function' else kind} needs a function, got {type(fun).__name__}")
        functools.update_wrapper(self, fun, updated=())
        self.__wrapped__ = fun
        self._kind, self._fun, self._options = kind, fun, options
        self._mode = options.get("mode", "auto")
        title = getattr(fun, "__name__", type(fun).__name__)
        name = f"{kind}_{title if title.isidentifier() else 'fun'}"
        off = switched_off() if off is None else off
        self._made = self._hashable(kind, off)
        this = weakref.ref(self)  # what it is called by does not keep it, so that it goes at once when nobody holds it

        def missed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return (this() or Derivative(kind, fun, options, off))._general(args, kwargs)

        def use(entry: Callable[..., Any] | None) -> None:
            if (derivative := this()) is not None:
                derivative.__call__ = entry or (lambda *args, **kwargs: missed(args, kwargs))

        self._body = _body_of(kind, fun, options)
        self._user = User(fun, self._body, use, missed)
        self._compiler = compiler_of(
            self._key(name), lambda: Compiler(name, self._form(), self._mode, off, kind in OFTEN_ALONE)
        )
        self._compiler.join(self._user)
        self._methods: Derivative[..., Any] | None = None
        self._stand_ins: dict[Any, Derivative[..., Any]] = {}

    # ---- calling ----

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that is not of the last signature, or beside a trace."""
        if active_trace() is None:
            try:
                return self._compiler.miss(self._user, args, kwargs)
            except Foreign as kind:
                return kind.bridge.call(self, args, kwargs)
            except Mapped:
                return self(*unmapped(args), **unmapped(kwargs))
        return self._nested(args, kwargs)

    def _nested(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Within a running trace: the same graph goes on."""
        trace = active_trace()
        assert trace is not None
        if FOREIGN:
            try:
                check_foreign(pytree.flatten((args, kwargs))[0])
            except Foreign as kind:
                return kind.bridge.call(self, args, kwargs)
        outer, user, trace.user = len(trace.graph), trace.user, False
        try:
            result = self._body(trace, args, kwargs, True)
        finally:
            trace.user = user
        return settle(outer, (args, kwargs), result)

    def stand_in(self, key: Any, wrap: Callable[[Fun], Fun]) -> Derivative[..., Any]:
        """The same derivative of ``wrap(fun)``, which is to see arguments of another kind; made once for each ``key``."""
        found = self._stand_ins.get(key)
        if found is None:
            found = self._stand_ins[key] = Derivative(self._kind, wrap(self._fun), self._options, self._compiler.off)
        return found

    def _of_arrays(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Derivative[..., Any], tuple[Any, ...], dict[str, Any]]:
        """The derivative of arrays, and its arguments, that a call comes down to: itself, unless they are of another kind."""
        args, kwargs = unmapped((args, kwargs))
        bridge = _bridge_of((args, kwargs))
        return (self, args, kwargs) if bridge is None else bridge.plain(self, args, kwargs)

    def _hashable(self, *made: Any) -> Any:
        made = (*made, *self._options.items())
        try:
            hash(made)
        except TypeError:
            return None
        return made

    def _key(self, name: str) -> Any:
        """What derivatives of functions that are alike have in common, if they may share their code."""
        like = likeness(self._fun) if active_trace() is None else None  # those within a trace are of that
        return like and self._made and (name, self._made, like)

    def _form(self) -> Form:
        """How the derivative is called."""
        params = calculus.parameters(self._fun)
        positional = [p.name for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        only = sum(p.kind is p.POSITIONAL_ONLY for p in params)
        if self._kind in ("pushforwards", "pullbacks"):
            positional.insert(0, Names({p.name for p in params}).unique("seeds"))
        if self._kind == "hvp" and positional:
            positional.insert(1, Names({p.name for p in params}).unique("v"))
        if self._kind == "jvp":
            positional = ["primals", "tangents"]
        rest = next((p.name for p in params if p.kind is p.VAR_POSITIONAL), "args")
        plain = type(self._fun) is FunctionType and not {"__wrapped__", "__signature__"} & set(self._fun.__dict__)
        plain = plain and self._kind not in ("hvp", "pushforwards", "pullbacks", "jvp")
        keywords = [p.name for p in params if p.kind is p.KEYWORD_ONLY]
        known = plain and not any(p.kind is p.VAR_KEYWORD for p in params)
        title = getattr(self._fun, "__qualname__", type(self._fun).__name__)
        return Form(title, positional, only, rest, keywords if known else None)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        if self._methods is None:
            self._methods = Derivative(self._kind, self._fun, {**self._options, **_after_self(self._options)})
        return Method(self._methods, instance)

    # ---- looking inside ----

    def source(self, *args: Any, fast: bool = False, **kwargs: Any) -> Source:
        """The generated code for arguments like these, with all branches traced so far, written for people.

        ``fast=True`` shows the code that runs: the same program in the NumPy calls that cost least.

        >>> "np.cos(x)" in grad(lambda x: np.sin(x)).source(1.0)
        True
        """
        inner, args, kwargs = self._of_arrays(args, kwargs)
        variant = inner._compiler.traced(inner._user, args, kwargs)
        reason = variant.family.dynamic
        code = variant.running() if fast else variant.readable()
        return Source((f"# runs in dynamic mode: {reason}\n" if reason else "") + (code.before + code.source).rstrip("\n"))

    def annotate(self, *args: Any, fast: bool = False, **kwargs: Any) -> Annotation:
        """Your lines beside those generated for each: printed as text, in notebooks a table.

        Lines of the backward pass are marked ``<``, those of tangents ``>``. ``fast=True`` shows the code that runs.
        """
        inner, args, kwargs = self._of_arrays(args, kwargs)
        variant = inner._compiler.traced(inner._user, args, kwargs)
        return Annotation(self._fun, variant.running() if fast else variant.readable())

    def profile(self, *args: Any, seconds: float = 0.5, **kwargs: Any) -> Profile:
        """The time that each generated line takes, under your line that it is from: printed as a table with bars.

        Runs the compiled code for about so many ``seconds``. Raises ``RuntimeError`` where it runs in dynamic mode, or changes
        what is outside.
        """
        inner, args, kwargs = self._of_arrays(args, kwargs)
        return profile(self._fun, _alone(inner._compiler.ready(inner._user, args, kwargs)), args, kwargs, seconds)

    def graph(self, *args: Any, **kwargs: Any) -> GraphView:
        """The graph of the derivative for arguments like these, one line a node when printed."""
        inner, args, kwargs = self._of_arrays(args, kwargs)
        variant = inner._compiler.traced(inner._user, args, kwargs)
        return GraphView(variant.program.graph, variant.program.roots())

    def compiled(self, *args: Any, fast: bool = True, **kwargs: Any) -> Callable[..., Any]:
        """The generated function itself, for arguments like these; it checks nothing.

        Its parameters are the arguments, then what was read from outside. Calls the derivative until it is compiled.
        ``fast=False`` gives the code that ``source`` shows: it calls NumPy's functions by their protocols, so that Dask's,
        CuPy's and other libraries' arrays of these shapes pass through where those know the functions. Raises
        ``RuntimeError`` where it runs in dynamic mode, or changes what is outside.
        """
        inner, args, kwargs = self._of_arrays(args, kwargs)
        variant = _alone(inner._compiler.ready(inner._user, args, kwargs))
        if not fast:
            code = variant.readable(confirmed=True)
            return variant.load(code.source, code)
        assert variant.whole is not None
        return variant.whole.function  # type: ignore[no-any-return]

    def explain(self) -> str:
        """What was compiled, for which arguments; how often it was traced; what runs in dynamic mode and why."""
        compiler = self._compiler
        inner = [stand_in.explain() for stand_in in self._stand_ins.values()]
        if inner and not compiler.known:
            return "\n".join(inner)
        lines = [f"{compiler.name}: {len(compiler.known)} signature(s), {compiler.misses} traced call(s)"]
        for family in compiler.known.values():
            lines += _explain(family)
        return "\n".join(lines + inner)

    def cache_info(self) -> CacheInfo:
        """Calls answered by compiled code, calls traced, the bound on signatures, and signatures held.

        Derivatives of functions of the same code, with the same options, share that code, and these counts.
        """
        own = self._compiler.info()
        others = [inner.cache_info() for inner in self._stand_ins.values()]
        counts = [sum(column) for column in zip(own, *others, strict=True)]
        return CacheInfo(counts[0], counts[1], own.maxsize, counts[3])

    def cache_clear(self) -> None:
        """Forget all traces and code, also for those derivatives that share them."""
        self._compiler.clear()
        self._stand_ins.clear()

    def __repr__(self) -> str:
        return f"<{self._kind} of {getattr(self._fun, '__qualname__', getattr(self._fun, '__name__', repr(self._fun)))}>"

    def __reduce__(self) -> Any:
        return name_of(self) or (Derivative, (self._kind, self._fun, self._options))


class Method:
    """A ``Derivative`` bound to an instance; positions in ``argnums`` do not count ``self``."""

    def __init__(self, derivative: Derivative[..., Any], instance: Any) -> None:
        self._derivative, self.__self__ = derivative, instance
        self.__name__ = getattr(derivative, "__name__", "")
        self.__doc__ = derivative.__doc__
        self.__func__ = derivative

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._derivative(self.__self__, *args, **kwargs)

    def __reduce__(self) -> Any:
        return (getattr, (self.__self__, self.__name__))

    def source(self, *args: Any, fast: bool = False, **kwargs: Any) -> Source:
        """As ``Derivative.source``."""
        return self._derivative.source(self.__self__, *args, fast=fast, **kwargs)

    def annotate(self, *args: Any, fast: bool = False, **kwargs: Any) -> Annotation:
        """As ``Derivative.annotate``."""
        return self._derivative.annotate(self.__self__, *args, fast=fast, **kwargs)

    def profile(self, *args: Any, seconds: float = 0.5, **kwargs: Any) -> Profile:
        """As ``Derivative.profile``."""
        return self._derivative.profile(self.__self__, *args, seconds=seconds, **kwargs)

    def graph(self, *args: Any, **kwargs: Any) -> GraphView:
        """As ``Derivative.graph``."""
        return self._derivative.graph(self.__self__, *args, **kwargs)

    def compiled(self, *args: Any, fast: bool = True, **kwargs: Any) -> Callable[..., Any]:
        """As ``Derivative.compiled``."""
        return self._derivative.compiled(self.__self__, *args, fast=fast, **kwargs)

    def explain(self) -> str:
        """As ``Derivative.explain``."""
        return self._derivative.explain()

    def cache_info(self) -> CacheInfo:
        """As ``Derivative.cache_info``."""
        return self._derivative.cache_info()

    def cache_clear(self) -> None:
        """As ``Derivative.cache_clear``."""
        self._derivative.cache_clear()


def _after_self(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a method's derivative: what they say of the first argument, they say of the one after ``self``."""
    if "in_axes" in options:
        return {"in_axes": AfterSelf(options["in_axes"])}
    argnums = options.get("argnums", 0)
    if isinstance(argnums, (int, str)):
        return {"argnums": _place_after_self(argnums)}
    return {"argnums": tuple(map(_place_after_self, argnums))}


def _place_after_self(argnum: int | str) -> int | str:
    return calculus.PlaceAfterSelf(argnum + 1) if isinstance(argnum, int) and argnum >= 0 else argnum


def _alone(variant: Variant) -> Variant:
    """A variant whose code may be run by itself."""
    if variant.puts:
        raise RuntimeError(f"its code changes what is outside ({', '.join(variant.puts):.200}), and is not run by itself")
    return variant


def _explain(family: Family) -> list[str]:
    """One signature for ``explain``."""
    kinds = ", ".join(f"{name}" for name in _kinds(family))
    remarks = [f"    {remark}" for remark in family.remarks]
    reason = f"traced at every call: {family.dynamic}"
    if family.dynamic and not any(variant.whole for variant in family.variants):
        return [f"({kinds})", f"  dynamic mode, {reason}", *remarks]
    lines = [f"({kinds})", *([f"  dynamic mode where no code answers, {reason}"] if family.dynamic else [])]
    for variant in family.variants:
        ends = list(variant.program.leaves())
        ready = sum(1 for leaf in ends if leaf.seen > 1)
        state = "compiled" if variant.whole is not None else "seen once, compiled at the next such call"
        if variant.whole is None and not ready and len(ends) > 1:
            state = f"traced {len(ends)} times, each time another way: what goes the same way again is compiled"
        elif variant.whole is None and variant.traces > 2:
            state = f"traced {variant.traces} times, and again for new ways: no code answers yet"
        if variant.whole is None and family.account.waited:
            state += "; calls in between are run in dynamic mode"
        lines.append(f"  {state}; {ready} of {len(ends)} branch end(s) confirmed; {variant.traces} trace(s)")
        read = [repr(path) for path, kind in variant.lifts.items() if kind is not OWNER]
        if read:
            lines.append("    read anew at each call: " + ", ".join(read))
        if variant.puts:
            lines.append("    put outside by each call, or some: " + ", ".join(variant.puts))
        if variant.slots:
            lines.append("    drawn anew at each call: " + ", ".join([repr(draw) for draw, *_ in variant.slots]))
        guards = [describe(path, check) for (path, _), check in variant.checks.items()]
        lines += [f"    guarded: {guard}" for guard in guards if guard]
    lines += remarks
    lines += [f"  traced again: {change}" for change in list(dict.fromkeys(family.history))[-8:]]
    return lines


def _kinds(family: Family) -> list[str]:
    doc = Variant(family).signature().doc.split("\n")
    return doc[0].split("   for ")[-1:] if len(doc) == 1 else doc[2:]


class GraphView:
    """A graph for people: ``print`` gives one line a node, notebooks show a picture."""

    def __init__(self, graph: Graph, outputs: Sequence[Node]) -> None:
        self.graph, self.outputs = graph, list(outputs)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that the outputs need, in order."""
        return ancestors(self.outputs)

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        outputs = ", ".join(f"%{node.index}" for node in self.outputs)
        return f"{self.graph.dump(self.outputs)}\nreturn {outputs}"

    __repr__ = __str__

    def to_dot(self) -> str:
        """The graph in graphviz's language."""
        return dot(self.nodes, self.outputs)

    def _repr_svg_(self) -> str:
        return svg(self.nodes, self.outputs)


def settle(outer: int, given: Any, result: Any) -> Any:
    """What a nested derivative returns: arrays of its own, plain where they depend on nothing that the outer trace follows.

    ``outer``: how many nodes the trace had before it.
    """
    follows = any([isinstance(leaf, Tracer) for leaf in pytree.flatten(given)[0]])
    return pytree.map_tree(lambda leaf: _own(leaf if follows else _settled(outer, leaf)), result)


def _settled(outer: int, leaf: Any) -> Any:
    if not isinstance(leaf, Tracer):
        return leaf
    own = ancestors([leaf.node], outer)
    inside = set(own)
    outside = any(n.op is INPUT for n in own)  # what the function reads from outside is an input, too
    active = any(n.active for n in (leaf.node, *(a for n in own for a in n.args)) if n not in inside)
    return leaf if outside or active else leaf.value


def _own(leaf: Any) -> Any:
    """A result that is no view of another, nor of an argument: as a derivative's are that is called by itself."""
    if type(leaf) is np.ndarray and leaf.dtype != object:
        return np.array(leaf, order="C")
    return leaf.copy() if type(leaf) is Tracer and type(leaf.like) is np.ndarray else leaf


# -- what each kind does -------------------------------------------------------------------------------------------


def _grad(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    _, grads, aux = calculus.value_and_grad(trace, fun, args, kwargs, symbolic=symbolic, **_passed_on(options))
    return (grads, aux) if options.get("has_aux") else grads


def _value_and_grad(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    value, grads, aux = calculus.value_and_grad(trace, fun, args, kwargs, symbolic=symbolic, **_passed_on(options))
    return ((value, aux), grads) if options.get("has_aux") else (value, grads)


def _elementwise_grad(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    _, grads, _ = calculus.value_and_grad(trace, fun, args, kwargs, symbolic=symbolic, elementwise=True, **_passed_on(options))
    return grads


def _jacobian(mode: str) -> Any:
    def body(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
        result, aux = calculus.jacobian(trace, fun, args, kwargs, mode=mode, **_passed_on(options))
        return (result, aux) if options.get("has_aux") else result

    return body


def _hessian(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    options = _passed_on(options)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        return calculus.value_and_grad(trace, fun, args, kwargs, **options)[1]

    functools.update_wrapper(gradient, fun)
    return calculus.jacobian(trace, gradient, args, kwargs, mode="forward", **options)[0]


def _hvp(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    if len(args) < 2:
        raise TypeError("hvp(fun) is called as (x, v, *more): the point, the vector, and fun's further arguments")
    x, v, *rest = args
    return calculus.hessian_product(trace, fun, (x, *rest), kwargs, v, **_passed_on(options))


def _products(mode: str) -> Any:
    def body(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
        seeds, *rest = args
        return calculus.products(trace, fun, rest, kwargs, seeds, mode=mode, **_passed_on(options))

    return body


def _jvp(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    primals, tangents = args
    run = calculus.evaluate(trace, fun, range(len(primals)), primals, kwargs, options["has_aux"])
    out, tangent = run.tree.unflatten(run.outputs), calculus.push(trace, run, tangents)
    return (out, tangent, run.aux) if options["has_aux"] else (out, tangent)


def _vjp(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    if not trace.symbolic:  # what is recorded stays for the pullback, whatever the caller writes to the arguments
        args = _copied(args)
    run = calculus.evaluate(trace, fun, range(len(args)), args, kwargs, options["has_aux"])
    return run.tree.unflatten(run.outputs), run.aux, *pullback_of(trace, run)


def _copied(tree: Any) -> Any:
    """A tree with arrays of its own, laid in memory as they are."""
    array: Any = (np.ndarray, Traced)
    return pytree.map_tree(lambda leaf: leaf.copy("K") if isinstance(leaf, array) and np.ndim(leaf) else leaf, tree)


def _linearize(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    run = calculus.evaluate(trace, fun, range(len(args)), args, kwargs)
    return run.tree.unflatten(run.outputs), *pushforward_of(trace, run)


def _linear(trace: Trace, fun: Any, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    return fun(*args)


def _function(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    return calculus.run(trace, fun, args, kwargs)


def _vmap(trace: Trace, fun: Fun, args: Any, kwargs: Any, symbolic: bool, options: dict[str, Any]) -> Any:
    return run_batched(trace, fun, args, kwargs, **_passed_on(options))


def _passed_on(options: dict[str, Any]) -> dict[str, Any]:
    """The options that say what is computed, not how."""
    return {name: value for name, value in options.items() if name not in ("mode", "double_where")}


BODIES: dict[str, Any] = {
    "grad": _grad,
    "value_and_grad": _value_and_grad,
    "elementwise_grad": _elementwise_grad,
    "jacobian": _jacobian("auto"),
    "jacrev": _jacobian("reverse"),
    "jacfwd": _jacobian("forward"),
    "hessian": _hessian,
    "hvp": _hvp,
    "pushforwards": _products("forward"),
    "pullbacks": _products("reverse"),
    "jvp": _jvp,
    "vjp": _vjp,
    "linearize": _linearize,
    "linear": _linear,
    "vmap": _vmap,
    "function": _function,
}


OFTEN_ALONE = ("vjp", "jvp", "linearize")  # calls that are not made again as a rule, so that the first costs no trace for code


def _body_of(kind: str, fun: Fun, options: dict[str, Any]) -> Body:
    """What a derivative does in a trace."""

    def body(trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any], symbolic: bool) -> Any:
        outer, trace.double_where = trace.double_where, options.get("double_where", True)
        try:
            return BODIES[kind](trace, fun, args, kwargs, symbolic, options)
        finally:
            trace.double_where = outer

    return body


def _make(kind: str, fun: Fun | None, *, backend: str = "numpy", **options: Any) -> Any:
    """A derivative; without ``fun``, a decorator that makes it."""
    if backend != "numpy":
        raise ValueError(f'backend={backend!r}: the only one there is is "numpy"')
    mode = options.get("mode", "auto")
    if mode not in ("auto", "compiled", "dynamic", "debug_nans"):
        raise ValueError(f'mode={mode!r}: choose "auto", "compiled" (side effects may be left out), "dynamic" or "debug_nans"')
    argnums = options.get("argnums", 0)
    if type(argnums) not in (int, str):
        options["argnums"] = _positions(argnums)
    if fun is None:
        return lambda fun: Derivative(kind, fun, options)
    return Derivative(kind, fun, options)


def _positions(argnums: Any) -> Any:
    """``argnums`` with Python's numbers, where it has NumPy's."""
    if isinstance(argnums, (tuple, list)):
        return tuple([_position(argnum) for argnum in argnums])
    return _position(argnums)


def _position(argnum: Any) -> int | str:
    try:
        return argnum if isinstance(argnum, str) else operator.index(argnum)
    except TypeError:
        text = f"argnums={argnum!r}: give the position or the name of an argument, or a tuple of them"
        raise TypeError(text) from None


# -- the public functions ------------------------------------------------------------------------------------------


class Options(TypedDict, total=False):
    """Options that all have; for type checkers."""

    mode: str
    double_where: bool
    backend: str


class MoreOptions(Options, total=False):
    """Options of first derivatives."""

    has_aux: bool
    holomorphic: bool


class JacobianOptions(MoreOptions, total=False):
    """Options of Jacobians."""

    flat: bool


@overload
def grad(fun: Callable[P, Any], argnums: Argnums = 0, **options: Unpack[MoreOptions]) -> Derivative[P, Any]: ...
@overload
def grad(
    fun: None = None, argnums: Argnums = 0, **options: Unpack[MoreOptions]
) -> Callable[[Callable[P, Any]], Derivative[P, Any]]: ...
def grad(
    fun: Fun | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    mode: str = "auto",
    double_where: bool = True,
    backend: str = "numpy",
) -> Any:
    """The gradient of a function with one real number as output.

    Args:
        fun: a function of NumPy arrays, numbers, and trees of them (tuples, lists, dicts, namedtuples, dataclasses).
            Without it, a decorator is returned: ``@grad(argnums=1)``.
        argnums: which arguments to differentiate: a position (a method's counts after ``self``), a name, or a tuple of them.
        has_aux: ``fun`` returns ``(output, aux)``; the derivative returns ``(gradient, aux)``.
        holomorphic: ``fun`` is a holomorphic function of complex numbers; the derivative is ``f'(z)``.
        mode: ``"auto"`` compiles what can be compiled without a change in behaviour; ``"compiled"`` also what has side
            effects, which compiled calls leave out (with one warning); ``"dynamic"`` traces at every call; ``"debug_nans"``,
            too, and raises ``MadeNaN`` at the first line, forward or backward, that makes a NaN.
        double_where: what ``np.where`` and its kin did not select takes no part in the derivative, be it infinite or NaN
            there. ``False`` leaves it to IEEE arithmetic, in which 0 times infinity is NaN.
        backend: what runs the code: ``"numpy"``, the only one there is.

    Returns:
        A ``Derivative`` with fun's arguments. The gradient has the tree, shapes and dtypes of the argument (a tuple of
        them when ``argnums`` is a tuple). For a complex argument of a real function it is the direction of steepest
        ascent, ``d/dRe + i d/dIm``.

    Raises:
        NonScalarOutput: the output is not one real number.
        IntegerArgument: an argument to differentiate is an integer array.
        NotDifferentiable: the function uses something that has no derivative rule.

    >>> grad(lambda x, y: x * y ** 2)(3.0, 2.0)
    4.0
    >>> grad(lambda x, y: x * y ** 2, argnums=("x", "y"))(3.0, 2.0)
    (4.0, 12.0)
    """
    options = {"has_aux": has_aux, "holomorphic": holomorphic, "mode": mode, "double_where": double_where}
    return _make("grad", fun, argnums=argnums, backend=backend, **options)


@overload
def value_and_grad(
    fun: Callable[P, R], argnums: Argnums = 0, **options: Unpack[MoreOptions]
) -> Derivative[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    fun: None = None, argnums: Argnums = 0, **options: Unpack[MoreOptions]
) -> Callable[[Callable[P, R]], Derivative[P, tuple[R, Any]]]: ...
def value_and_grad(
    fun: Fun | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    mode: str = "auto",
    double_where: bool = True,
    backend: str = "numpy",
) -> Any:
    """Value and gradient in one: ``(value, gradient)``, or ``((value, aux), gradient)`` with ``has_aux``.

    Arguments and errors as for ``grad``. Fits ``scipy.optimize.minimize(..., jac=True)`` as it is.

    >>> value_and_grad(lambda x: x ** 2)(3.0)
    (9.0, 6.0)
    """
    options = {"has_aux": has_aux, "holomorphic": holomorphic, "mode": mode, "double_where": double_where}
    return _make("value_and_grad", fun, argnums=argnums, backend=backend, **options)


@overload
def elementwise_grad(fun: Callable[P, Any], argnums: Argnums = 0, **options: Unpack[Options]) -> Derivative[P, Any]: ...
@overload
def elementwise_grad(
    fun: None = None, argnums: Argnums = 0, **options: Unpack[Options]
) -> Callable[[Callable[P, Any]], Derivative[P, Any]]: ...
def elementwise_grad(
    fun: Fun | None = None, argnums: Argnums = 0, *, mode: str = "auto", double_where: bool = True, backend: str = "numpy"
) -> Any:
    """The gradient of the sum of all outputs: for an elementwise function, its derivative at each element.

    Arguments and errors as for ``grad``.

    >>> elementwise_grad(np.sin)(np.array([0.0, np.pi]))
    array([ 1., -1.])
    """
    return _make("elementwise_grad", fun, argnums=argnums, mode=mode, double_where=double_where, backend=backend)


@overload
def jacobian(fun: Callable[P, Any], argnums: Argnums = 0, **options: Unpack[JacobianOptions]) -> Derivative[P, Any]: ...
@overload
def jacobian(
    fun: None = None, argnums: Argnums = 0, **options: Unpack[JacobianOptions]
) -> Callable[[Callable[P, Any]], Derivative[P, Any]]: ...
def jacobian(
    fun: Fun | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    flat: bool = False,
    mode: str = "auto",
    double_where: bool = True,
    backend: str = "numpy",
) -> Any:
    """All derivatives of all outputs: for each output, arrays of shape ``output.shape + argument.shape``.

    Takes reverse or forward mode, whichever needs fewer passes (``jacrev`` and ``jacfwd`` force one). Arguments and errors
    as for ``grad``, but the output may be any array or tree.

    Args:
        flat: ``True`` puts the derivatives by all that is differentiated along one last axis, in the order of ``flatten``,
            instead of in tuples and trees. So ``scipy.optimize.curve_fit`` takes ``jac=jacobian(model, (1, 2), flat=True)``.

    >>> jacobian(lambda x: np.array([1.0, 2.0]) * x[0] * x[1])(np.array([3.0, 5.0]))
    array([[ 5.,  3.],
           [10.,  6.]])
    >>> jacobian(lambda t, a, b: a * t + b, argnums=("a", "b"), flat=True)(np.array([3.0, 5.0]), 1.0, 2.0)
    array([[3., 1.],
           [5., 1.]])
    """
    options = {"has_aux": has_aux, "holomorphic": holomorphic, "flat": flat, "mode": mode, "double_where": double_where}
    return _make("jacobian", fun, argnums=argnums, backend=backend, **options)


@overload
def jacrev(fun: Callable[P, Any], argnums: Argnums = 0, **options: Unpack[JacobianOptions]) -> Derivative[P, Any]: ...
@overload
def jacrev(
    fun: None = None, argnums: Argnums = 0, **options: Unpack[JacobianOptions]
) -> Callable[[Callable[P, Any]], Derivative[P, Any]]: ...
def jacrev(
    fun: Fun | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    flat: bool = False,
    mode: str = "auto",
    double_where: bool = True,
    backend: str = "numpy",
) -> Any:
    """``jacobian`` by reverse mode: for few outputs of many variables. Arguments and errors as there.

    >>> jacrev(lambda x: x[0] * x)(np.array([3.0, 5.0]))
    array([[6., 0.],
           [5., 3.]])
    """
    options = {"has_aux": has_aux, "holomorphic": holomorphic, "flat": flat, "mode": mode, "double_where": double_where}
    return _make("jacrev", fun, argnums=argnums, backend=backend, **options)


@overload
def jacfwd(fun: Callable[P, Any], argnums: Argnums = 0, **options: Unpack[JacobianOptions]) -> Derivative[P, Any]: ...
@overload
def jacfwd(
    fun: None = None, argnums: Argnums = 0, **options: Unpack[JacobianOptions]
) -> Callable[[Callable[P, Any]], Derivative[P, Any]]: ...
def jacfwd(
    fun: Fun | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    flat: bool = False,
    mode: str = "auto",
    double_where: bool = True,
    backend: str = "numpy",
) -> Any:
    """``jacobian`` by forward mode: for many outputs of few variables. Arguments and errors as there.

    >>> jacfwd(lambda t: t * np.array([1.0, 2.0, 3.0]))(5.0)
    array([1., 2., 3.])
    """
    options = {"has_aux": has_aux, "holomorphic": holomorphic, "flat": flat, "mode": mode, "double_where": double_where}
    return _make("jacfwd", fun, argnums=argnums, backend=backend, **options)


@overload
def hessian(fun: Callable[P, Any], argnums: Argnums = 0, **options: Unpack[Options]) -> Derivative[P, Any]: ...
@overload
def hessian(
    fun: None = None, argnums: Argnums = 0, **options: Unpack[Options]
) -> Callable[[Callable[P, Any]], Derivative[P, Any]]: ...
def hessian(
    fun: Fun | None = None, argnums: Argnums = 0, *, mode: str = "auto", double_where: bool = True, backend: str = "numpy"
) -> Any:
    """Second derivatives of a scalar function, of shape ``argument.shape + argument.shape`` (forward over reverse).

    Arguments and errors as for ``grad``.

    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    return _make("hessian", fun, argnums=argnums, mode=mode, double_where=double_where, backend=backend)


@overload
def hvp(fun: Callable[Concatenate[X, P], Any], **options: Unpack[Options]) -> Derivative[Concatenate[X, X, P], X]: ...
@overload
def hvp(
    fun: None = None, **options: Unpack[Options]
) -> Callable[[Callable[Concatenate[X, P], Any]], Derivative[Concatenate[X, X, P], X]]: ...
def hvp(fun: Fun | None = None, *, mode: str = "auto", double_where: bool = True, backend: str = "numpy") -> Any:
    """Hessian-vector products: ``hvp(fun)(x, v, *more)`` is the Hessian at ``x`` times ``v``, without the Hessian.

    ``v`` has the tree and shapes of ``x``, fun's first argument.

    >>> hvp(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]), np.array([1.0, 0.0]))
    array([10.,  6.])
    """
    return _make("hvp", fun, mode=mode, double_where=double_where, backend=backend)


@overload
def vmap(fun: Callable[P, R], in_axes: Axes = 0, out_axes: Axes = 0, *, mode: str = "auto") -> Derivative[P, R]: ...
@overload
def vmap(
    fun: None = None, in_axes: Axes = 0, out_axes: Axes = 0, *, mode: str = "auto"
) -> Callable[[Callable[P, R]], Derivative[P, R]]: ...
def vmap(fun: Fun | None = None, in_axes: Axes = 0, out_axes: Axes = 0, *, mode: str = "auto") -> Any:
    """A function of one element as a function of a batch of them: batched NumPy code, not a Python loop.

    Args:
        fun: a function of arrays, numbers and trees of them. Without it, a decorator is returned.
        in_axes: which axis of the arguments runs over the batch: an int for all positional ones, or a tuple with an entry
            for each: an int, None (the argument is the same for all elements), or a tree of them that begins as the
            argument's does. Keyword arguments are mapped over axis 0. Strings and functions are never mapped.
        out_axes: where the batch axis is in the results: an int, or a tree that begins as the result's does; None for a
            result that is the same for all elements.
        mode: as for ``grad``; ``"dynamic"`` runs ``fun`` once for each element.

    Returns:
        A ``Derivative``, called as ``fun`` is. It composes with ``grad`` and its kin in every order:
        ``vmap(grad(loss), (None, 0, 0))`` gives per-example gradients.

    Raises:
        ValueError: the mapped axes differ in length, there is none, or an argument has no such axis.
        TypeError: what is to be mapped, or to be stacked, is no number or array.

    Where ``fun`` looks at a value (``if x > 0``), the elements go their own ways: each way runs on the whole batch, with one of
    its own elements in place of those that go another, so that nothing is computed that would not be computed alone. Loops
    run as often as the longest of them. Where there are too many ways, and where ``fun`` does what cannot be compiled, each
    element runs alone, in dynamic mode. ``explain()`` says which it is.

    >>> vmap(np.dot)(np.arange(6.0).reshape(3, 2), np.ones((3, 2)))
    array([1., 5., 9.])
    >>> vmap(grad(lambda w, x: np.sum(np.sin(w * x))), in_axes=(None, 0))(0.0, np.eye(2)).shape
    (2,)
    """
    return _make("vmap", fun, in_axes=in_axes, out_axes=out_axes, mode=mode)


def stop_gradient(x: X) -> X:
    """``x``, taken as a constant by every derivative. Trees are taken leaf by leaf; arrays are copied.

    In dynamic mode, which functions run in that keep something outside, it is a plain number or array: a running mean may be
    kept in an attribute.

    Raises:
        TypeError: ``x``, or a leaf of it, is an object that holds what can be differentiated.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    stopped: X = pytree.map_tree(_stopped, x)
    return stopped


def _stopped(leaf: Any) -> Any:
    if isinstance(leaf, Tracer) and not leaf.tape.symbolic and not leaf.tape.lanes:  # each call computes it anew
        return leaf.value.copy("K") if isinstance(leaf.value, np.ndarray) else leaf.value
    if isinstance(leaf, Traced):
        return STOP(leaf)
    if isinstance(leaf, np.ndarray) and leaf.dtype == object:
        stopped = leaf.copy()
        for place in np.ndindex(leaf.shape):
            stopped[place] = stop_gradient(leaf[place])
        return stopped
    if isinstance(leaf, np.ndarray):  # another one than ``x``, as in derivatives: what is written into one is in that alone
        return leaf.copy("K")
    held = leaf if isinstance(leaf, dict) else getattr(leaf, "__dict__", {})
    inside = leaf if isinstance(leaf, (set, frozenset, deque, ValuesView)) else held.values()
    if isinstance(leaf, Iterator) or contains_traced(list(inside)):
        raise TypeError(f"stop_gradient takes numbers, arrays and trees of them: stop what is in the {type(leaf).__name__}")
    return leaf


def graph(fun: Fun, *args: Any, **kwargs: Any) -> GraphView:
    """The graph of a function at these arguments; of a ``Derivative``, the derivative's. ``print`` gives one line a node.

    >>> print(graph(lambda x: np.sin(x) * 2.0, 1.0))
    %0: float = input(position=0)
    %1: float64 = np.sin(%0)
    %2: float = const(value=2.0)
    %3: float64 = np.multiply(%1, %2)
    return %3
    """
    return (fun if isinstance(fun, Method) else as_derivative(fun)).graph(*args, **kwargs)


def as_derivative(fun: Any) -> Derivative[..., Any]:
    """A derivative as it is; a plain function as one that is traced and compiled, but not differentiated."""
    return fun if isinstance(fun, Derivative) else Derivative("function", fun, {})


# -- one pass at a time --------------------------------------------------------------------------------------------


def _bridge_of(tree: Any) -> Bridge | None:
    """The bridge of the leaves of a tree that have one. Without any library that brings one, nothing is looked at."""
    return foreign(pytree.flatten(tree)[0]) if FOREIGN else None


def vjp(fun: Fun, *primals: Any, has_aux: bool = False) -> Any:
    """``(output, pullback)``: the pullback maps a cotangent of the output to cotangents of all ``primals``.

    Args:
        fun: a function of arrays, numbers and trees of them.
        *primals: its arguments.
        has_aux: ``fun`` returns ``(output, aux)``; then ``(output, pullback, aux)`` is returned.

    Returns:
        The output, and ``pullback(cotangent)``: a tuple with one tree a primal. It may be called many times. For complex
        values it is the adjoint (torch's convention): the gradient of ``Re(conj(cotangent) * output)``.

    Raises:
        TypeError, ValueError: the cotangent has not the tree or the shapes of the output.

    >>> out, pullback = vjp(lambda x, y: x * y, 3.0, 5.0)
    >>> out, pullback(1.0)
    (15.0, (5.0, 3.0))
    """
    bridge = _bridge_of(primals)
    if bridge is not None:
        return bridge.vjp(fun, primals, has_aux)
    trace = active_trace()
    if trace is not None:
        return _vjp_within(trace, fun, primals, has_aux)
    out, aux, kept, linear = _make("vjp", fun, has_aux=has_aux)(*primals)
    pullback = functools.partial(_applied(linear), kept)
    return (out, pullback, aux) if has_aux else (out, pullback)


def _vjp_within(trace: Trace, fun: Fun, primals: tuple[Any, ...], has_aux: bool) -> Any:
    """The same within a function that is traced itself."""
    start = len(trace.graph)
    run = calculus.evaluate(trace, fun, range(len(primals)), primals, {}, has_aux)
    out, aux = settle(start, primals, (run.tree.unflatten(run.outputs), run.aux))

    def pullback(cotangent: Any) -> Any:
        if trace.whole is None:
            _require_open(trace, run)
        if active_trace() is not trace:
            return Recorded(trace, run)((), cotangent)
        return settle(start, (primals, cotangent), calculus.pull(trace, run, cotangent, False, True))

    return (out, pullback, aux) if has_aux else (out, pullback)


def _require_open(trace: Trace, run: Linearized) -> None:
    """Raise ``EscapedTracer`` where the call has ended in which a run was recorded: nothing of it is left."""
    tracers = [x for v in run.vars for x in v.tracers]
    if tracers and not trace.open:
        raise escaped(tracers[0])


def _applied(linear: LinearMap | Recorded | Replayed) -> Callable[..., Any]:
    """What applies a linear map, given what was kept at the point and a vector."""
    if not isinstance(linear, LinearMap):
        return linear
    if linear.compiled is None:
        linear.compiled = _make("linear", linear)
    return linear.compiled


def jvp(fun: Fun, primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """``(output, tangent)``: the function and its derivative in the direction of ``tangents``.

    Args:
        fun: a function of arrays, numbers and trees of them.
        primals: its arguments, a tuple or list.
        tangents: one for each, of the same tree and shapes.
        has_aux: ``fun`` returns ``(output, aux)``; then ``(output, tangent, aux)`` is returned.

    Raises:
        TypeError, ValueError: the tangents have not the trees or the shapes of the primals.

    >>> jvp(lambda x, y: x * y, (3.0, 5.0), (1.0, 0.0))
    (15.0, 5.0)
    """
    for given in (primals, tangents):
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"jvp takes a tuple of primals and one of tangents, not {type(given).__name__} {given!r:.60}")
    if len(primals) != len(tangents):
        raise TypeError(f"jvp got {len(primals)} primals and {len(tangents)} tangents")
    bridge = _bridge_of((tuple(primals), tuple(tangents)))
    if bridge is not None:
        return bridge.jvp(fun, tuple(primals), tuple(tangents), has_aux)
    return _make("jvp", fun, has_aux=has_aux)(tuple(primals), tuple(tangents))


def linearize(fun: Fun, *primals: Any) -> Any:
    """``(output, pushforward)``: the pushforward maps tangents of ``primals`` to the tangent of the output, many times.

    >>> out, pushforward = linearize(lambda x: x ** 2, 3.0)
    >>> out, pushforward(1.0), pushforward(2.0)
    (9.0, 6.0, 12.0)
    """
    bridge = _bridge_of(primals)
    if bridge is not None:
        return vjp(fun, *primals)[0], lambda *tangents: jvp(fun, primals, tangents)[1]
    trace = active_trace()
    if trace is not None:
        start = len(trace.graph)
        run = calculus.evaluate(trace, fun, range(len(primals)), primals, {})
        out = settle(start, primals, run.tree.unflatten(run.outputs))

        def pushforward(*tangents: Any) -> Any:
            _require_open(trace, run)
            return settle(start, (primals, tangents), calculus.push(trace, run, tangents))

        return out, pushforward
    out, kept, linear = _make("linearize", fun)(*primals)
    if linear is None:
        point = _copied(primals)
        return out, lambda *tangents: jvp(fun, point, tangents)[1]
    applied = _applied(linear)
    return out, lambda *tangents: applied(kept, tangents)
