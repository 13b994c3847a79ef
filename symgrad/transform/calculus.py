"""What each public derivative does during a trace: wrap the variables, run the function, run the passes, wrap up.

All functions here take the running trace first. Their arguments may be Tracers of it or plain values, so that derivatives
nest: an inner one appends to the same graph, behind identity nodes of its own.
"""

from __future__ import annotations

import enum
import gc
import inspect
import math
import numbers
from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType, NoneType
from typing import Any, NamedTuple

import numpy as np

from symgrad import pytree
from symgrad.errors import IntegerArgument, NonScalarOutput, NotDifferentiable, RecursiveDerivative
from symgrad.ir import Aval, Node
from symgrad.ops import create
from symgrad.ops.core import Traced, dtype_of, fit
from symgrad.ops.engine import ASTYPE, IDENTITY, TO_ARRAY, TO_FLOAT, TO_NUMPY, TO_PYTHON
from symgrad.ops.index import GETITEM
from symgrad.runtime import native
from symgrad.source.origins import module_of
from symgrad.tracing.frames import raised_at, recursing, where
from symgrad.tracing.trace import Carried, Trace
from symgrad.tracing.tracer import Tracer
from symgrad.transform.batch import batch
from symgrad.transform.forward import forward
from symgrad.transform.loop import Loop
from symgrad.transform.reverse import path, reverse
from symgrad.transform.units import at_units

Fun = Callable[..., Any]

FEW = 8  # numbers of an array, by each of which an output is differentiated on its own
LONG = 128  # elements from which on an array is worth calls of its own


# -- variables and outputs -----------------------------------------------------------------------------------------


class Variables(NamedTuple):
    """The leaves that a derivative is taken with respect to, behind fresh identities, and their tree."""

    tracers: list[Tracer]
    tree: pytree.TreeDef

    @property
    def nodes(self) -> list[Node]:
        return [tracer.node for tracer in self.tracers]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [np.shape(tracer.like) for tracer in self.tracers]


def traced(trace: Trace, value: Any) -> Tracer:
    """A plain value as a constant of the trace; a Tracer as it is."""
    if type(value) is Tracer:
        if value.base is not None:
            value.refresh()
        return trace.admit(value)
    return trace.lookup(trace.constant(value)[0])


def variables(trace: Trace, tree: Any, what: str, holomorphic: bool = False) -> tuple[Variables, Any]:
    """Fresh identities for the leaves of ``tree``, and the tree with them in place."""
    leaves, treedef = pytree.flatten(tree)
    tracers = []
    paths = treedef.paths() if trace.symbolic else None
    for i, leaf in enumerate(leaves):
        if type(leaf) is Tracer and leaf.node.aval.dtype.kind == "f" and not trace.symbolic and not holomorphic:
            tracers.append(trace.fresh(traced(trace, leaf)))  # nobody asks for its name
            continue
        name = what + "".join([f".{key}" if step == "attr" else f"[{key!r}]" for step, key in (paths or treedef.paths())[i]])
        tracer = trace.fresh(_inexact(traced_number(trace, leaf, name), name))
        tracer.node.name = tracer.node.name or _short(name)
        if holomorphic and tracer.node.aval.dtype.kind != "c":
            raise NotDifferentiable(
                f"{where()}: holomorphic=True needs complex variables, {name} is {tracer.node.aval.dtype}; leave it out, or "
                f"give {name} + 0j"
            )
        tracers.append(tracer)
    return Variables(tracers, treedef), with_leaves(trace, treedef, tracers, tree, True)


_SETTLED = (str, bytes, int, NoneType, enum.Enum)  # of which nothing is to be differentiated


def with_leaves(trace: Trace, treedef: pytree.TreeDef, leaves: Sequence[Any], like: Any, other: bool) -> Any:
    """The tree with these leaves, of containers with what those of ``like`` have beside their items; where these are ``other``
    than those of ``like``, what hangs on them is not there."""
    if not treedef.holds:
        return treedef.unflatten(leaves)
    made: list[tuple[Any, Any]] = []
    result = treedef.rebuild(iter(leaves), like, made, None)
    for one, copy in made:
        if pytree.holds_more(type(copy)):
            known = trace.carried.get(id(one)) or Carried(one, one, pytree.beside(one), None, other)
            known = trace.carried[id(copy)] = known._replace(copy=copy, other=known.other or other)
            for key, value in known.beside.items() if known.other else ():
                if vars(copy).get(key) is value and not isinstance(value, _SETTLED):  # it may hang on the fields
                    del vars(copy)[key]
    return result


def _short(name: str) -> str:
    """``w`` for ``params['w']``, where that is a name."""
    last = name.replace("]", "").replace("'", "").replace("[", ".").split(".")[-1]
    return last if last.isidentifier() else name  # until the function unpacks it into a name


def traced_number(trace: Trace, leaf: Any, name: str) -> Tracer:
    """The Tracer of a leaf that must be a number or an array."""
    if type(leaf) is Tracer or isinstance(leaf, (np.ndarray, np.generic, int, float, complex)):
        return traced(trace, leaf)
    remedy = "only numbers, arrays and trees of them can (tuples, lists, dicts, dataclasses); make it another argument"
    if hasattr(leaf, "to_numpy"):
        remedy = f"give {name}.to_numpy()"
    elif isinstance(leaf, numbers.Number):  # a fraction or a decimal
        remedy = f"give float({name})"
    shown = " ".join(repr(leaf).split())
    raise NotDifferentiable(f"{where()}: {name} is {type(leaf).__name__} {shown:.40}, which cannot be differentiated; {remedy}")


def _inexact(x: Tracer, name: str) -> Tracer:
    """A Python or NumPy integer as a float; anything else that is not floating point is refused."""
    aval = x.node.aval
    if aval.dtype.kind in "fc":
        return x
    if aval.dtype.kind in "iu" and aval.kind != "array":
        return TO_FLOAT(x) if aval.kind == "python" else ASTYPE(x, dtype=np.dtype(float))  # type: ignore[no-any-return]
    cast = f"float({name})" if aval.kind == "python" else f"{name}.astype(float)"
    raise IntegerArgument(
        f"{where()}: {name} is {aval.dtype}, and only floating point and complex values can be differentiated; cast it: {cast}"
    )


def outputs_of(trace: Trace, tree: Any) -> tuple[list[Any], pytree.TreeDef]:
    """The leaves of what a function returned. Object arrays of Tracers are stacked."""
    leaves, treedef = pytree.flatten(tree)
    result = []
    for leaf in leaves:
        if type(leaf) is Tracer:
            leaf = traced(trace, leaf)
        _refuse_hidden(leaf)
        if isinstance(leaf, np.ndarray) and leaf.dtype == object and create.contains_traced(np.asarray(leaf)):
            if type(leaf) is not np.ndarray:
                raise NotDifferentiable(
                    f"{where()}: a {type(leaf).__name__} of traced values is returned; return a plain array: np.asarray(y)"
                )
            leaf = trace.stack(leaf)
        result.append(leaf)
    return result, treedef


def _refuse_hidden(leaf: Any) -> None:
    """Raise for values that a derivative follows in what is no tree, as far as Python tells what it holds: it would be lost,
    and the caller be given traced ones."""
    if isinstance(leaf, _KNOWN):
        return
    waiting, seen = [leaf], set[int]()
    while waiting and len(seen) < MOST_LOOKED_INTO:
        one = waiting.pop()
        if type(one) is Tracer and one.node.differentiated:
            raise NotDifferentiable(
                f"{where()}: a {type(leaf).__name__} that holds traced values is returned; return these in tuples, lists, "
                "dicts or dataclasses (dict(...) of a Counter or a defaultdict, list(...) of a deque)"
            )
        if id(one) not in seen and not isinstance(one, _KNOWN) and not module_of(type(one)).startswith("symgrad."):
            seen.add(id(one))
            waiting += gc.get_referents(one)


MOST_LOOKED_INTO = 1000  # objects that one refers to
_KNOWN = (Tracer, np.ndarray, np.generic, int, float, complex, str, bytes, type, NoneType, ModuleType, FunctionType)


def finish(g: Any, trace: Trace, aval: Aval) -> Any:
    """A derivative in the shape, dtype and kind of what it belongs to; zeros for None."""
    if g is None:
        g = trace.constant_like(0.0, aval._replace(dtype=native(aval.dtype)))
    g = fit(g, aval)
    plain = type(_like(g))
    if (plain is np.ndarray and aval.kind == "array") or (plain is float and aval == _FLOAT):
        return g
    kind = "python" if plain in (int, float, complex, bool) else "numpy"
    if aval.kind == "python":
        g = g if kind == "python" else TO_PYTHON(g)
        return g + 0j if aval.dtype.kind == "c" and not isinstance(_like(g), complex) else g
    if kind == "python":
        g = ASTYPE(TO_NUMPY(g), dtype=aval.dtype)
    if aval.kind == "array" and not aval.shape and not isinstance(_like(g), np.ndarray):
        g = TO_ARRAY(g)
    elif aval.kind == "scalar" and isinstance(_like(g), np.ndarray):
        g = TO_NUMPY(g)
    return g


_FLOAT = Aval((), np.dtype(float), "python")


def _like(x: Any) -> Any:
    return x.like if type(x) is Tracer else x


def conjugate(g: Any, holomorphic: bool = False) -> Any:
    """From the rules' bilinear convention to the public one (steepest ascent), or back."""
    if g is None or holomorphic or (g.dtype if hasattr(g, "dtype") else np.result_type(g)).kind != "c":
        return g
    return np.conj(g)


def run(trace: Trace, fun: Fun, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The user's function, with a readable error for endless recursion."""
    outer = trace.user, trace.line, trace.phase
    trace.user, trace.line, trace.phase = True, None, None
    trace.depth += 1
    try:
        result = fun(*args, **kwargs) if trace.hooks is None else trace.hooks.run(fun, args, kwargs)
        trace.left = trace.depth == 1
        return result
    except RecursionError as error:
        if isinstance(error, RecursiveDerivative):
            raise
        library = recursing(error.__traceback__)
        if library is not None:
            raise NotDifferentiable(
                f"{raised_at(error.__traceback__)}: {library} calls itself without end on traced values; use other functions, "
                "or give it a rule with symgrad.primitive"
            ) from error
        raise RecursiveDerivative(
            f"{getattr(fun, '__name__', fun)}: Python's recursion limit was reached while the function was traced; "
            "does its recursion end on a value? sys.setrecursionlimit raises the limit"
        ) from error
    finally:
        trace.user, trace.line, trace.phase = outer
        trace.depth -= 1


# -- which arguments -----------------------------------------------------------------------------------------------

Argnums = int | str | Sequence[int | str]


class Call(NamedTuple):
    """A call taken apart: the selected arguments, and how to make the call with others in their place."""

    selected: list[Any]
    names: list[str]
    places: list[int | str]
    args: list[Any]
    kwargs: dict[str, Any]

    def run(self, trace: Trace, fun: Fun, selected: Sequence[Any]) -> Any:
        args, kwargs = list(self.args), dict(self.kwargs)
        for place, value in zip(self.places, selected, strict=True):
            if isinstance(place, str):
                kwargs[place] = value
            else:
                args[place] = value
        return run(trace, fun, args, kwargs)


def parameters(fun: Fun) -> list[inspect.Parameter]:
    """The parameters of a function, empty where Python cannot tell."""
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return []


def positional_names(fun: Fun) -> Sequence[str]:
    """The names of the parameters that can be passed by position."""
    if type(fun) is FunctionType and not fun.__dict__:  # as inspect finds, which is slow
        return fun.__code__.co_varnames[: fun.__code__.co_argcount]
    return [p.name for p in parameters(fun) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


class PlaceAfterSelf(int):
    """The position of a method's argument with ``self``, shown as the user gave it: without."""

    def __repr__(self) -> str:
        return str(self - 1)


def _listed(fun: Fun, args: Sequence[Any], kwargs: dict[str, Any], argnum: int | str) -> str:
    """The arguments of a call, for messages: ``x, y, mode=``. Where ``argnum`` does not count ``self``, that is not there."""
    given = positional_names(fun)[isinstance(argnum, PlaceAfterSelf) : len(args)]
    return ", ".join([*given, *(f"{name}=" for name in kwargs)])


def select(fun: Fun, argnums: Argnums, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
    """Find the arguments that ``argnums`` names, by position or by name, however they were passed."""
    positional = positional_names(fun)
    args, kwargs = list(args), dict(kwargs)
    places: list[int | str] = []
    names: list[str] = []
    title = getattr(fun, "__name__", repr(fun))
    for argnum in [argnums] if isinstance(argnums, (int, str)) else argnums:
        place: int | str = argnum
        if isinstance(place, str):
            if place not in kwargs and place in positional and positional.index(place) < len(args):
                place = positional.index(place)
        else:
            if place < 0:
                place += len(args)
            if not 0 <= place < len(args) and 0 <= place < len(positional):
                place = positional[place]
        if isinstance(place, str) and place not in kwargs:
            default = next((p.default for p in parameters(fun) if p.name == place), inspect.Parameter.empty)
            if default is inspect.Parameter.empty:
                given = _listed(fun, args, kwargs, argnum)
                raise TypeError(f"argnums={argnum!r}: {title}() was not given {place!r}, but ({given})")
            kwargs[place] = default
        if isinstance(place, int) and not 0 <= place < len(args):
            raise TypeError(
                f"argnums={argnum!r}: {title}() was given ({_listed(fun, args, kwargs, argnum)}); count positional arguments "
                "from 0, and name others"
            )
        if place in places:
            raise ValueError(f"argnums={argnums!r} names an argument of {title}() twice")
        places.append(place)
        names.append(place if isinstance(place, str) else positional[place] if place < len(positional) else f"args[{place}]")
    selected = [kwargs[place] if isinstance(place, str) else args[place] for place in places]
    return Call(selected, names, places, args, kwargs)


# -- the derivatives -----------------------------------------------------------------------------------------------


class Linearized(NamedTuple):
    """A function run on its variables: ready for either pass."""

    call: Call
    vars: list[Variables]
    outputs: list[Any]
    tree: pytree.TreeDef
    aux: Any

    @property
    def wrt(self) -> list[Node]:
        return [node for v in self.vars for node in v.nodes]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of the outputs."""
        return [np.shape(_like(out)) for out in self.outputs]

    def rebuild(self, leaves: Sequence[Any], single: bool) -> Any:
        """Derivatives of the variables in the trees of the arguments; one argument's alone if ``argnums`` was no tuple."""
        trees, start = [], 0
        for v in self.vars:
            trees.append(v.tree.unflatten(list(leaves[start : start + v.tree.size])))
            start += v.tree.size
        return trees[0] if single else tuple(trees)


def evaluate(
    trace: Trace,
    fun: Fun,
    argnums: Argnums,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    has_aux: bool = False,
    holomorphic: bool = False,
    every: bool = False,
) -> Linearized:
    """Run ``fun`` with fresh variables in place of the selected arguments; ``every``: for its derivatives in all directions."""
    trace.lean = False
    call = select(fun, argnums, args, kwargs)
    if trace.hooks is not None:
        for i, place in enumerate(call.places):
            if isinstance(place, str) and place not in kwargs:
                call.selected[i] = trace.hooks.default(fun, place, call.selected[i])
    made = [variables(trace, tree, name, holomorphic) for tree, name in zip(call.selected, call.names, strict=True)]
    directions = trace.directions
    trace.directions *= sum([np.size(x.like) for v, _ in made for x in v.tracers]) if every else 1
    out = call.run(trace, fun, [tree for _, tree in made])
    trace.directions, aux = directions, None
    if has_aux:
        if not isinstance(out, tuple) or len(out) != 2:
            raise NonScalarOutput(f"with has_aux=True, {_title(fun)} must return a pair (output, aux)")
        out, aux = out
        for leaf in pytree.flatten(aux)[0]:
            _refuse_hidden(leaf)
    leaves, tree = outputs_of(trace, out)
    if holomorphic and any([isinstance(leaf, Tracer) and leaf.node.aval.dtype.kind == "f" for leaf in leaves]):
        raise NonScalarOutput(f"holomorphic=True needs a complex output, {_title(fun)} returned a real one; leave it out")
    return Linearized(call, [v for v, _ in made], leaves, tree, aux)


def _title(fun: Fun) -> str:
    return f"{getattr(fun, '__name__', fun)}()"


def value_and_grad(
    trace: Trace,
    fun: Fun,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    elementwise: bool = False,
    symbolic: bool = True,
) -> tuple[Any, Any, Any]:
    """Value, gradient and aux of a function with one real number as output (or of the sum of its outputs)."""
    run = evaluate(trace, fun, argnums, args, kwargs, has_aux, holomorphic)
    if not elementwise:
        _require_scalar(run, fun, holomorphic)
    seeds = []
    for leaf in run.outputs:
        if isinstance(leaf, Tracer):
            aval = leaf.node.aval
            if elementwise and aval.dtype.kind == "c":
                raise NonScalarOutput(
                    f"{_title(fun)} has a complex output; elementwise_grad needs a real one (np.real, np.abs)"
                )
            if aval.dtype.kind in "fc":
                seeds.append((leaf.node, _seed(trace, aval, symbolic)))
    trace.lean = symbolic and not trace.depth  # nothing is to come but results
    grads = gradients(trace, run, seeds, symbolic, holomorphic)
    return run.tree.unflatten(run.outputs), run.rebuild(grads, isinstance(argnums, (int, str))), run.aux


def _seed(trace: Trace, aval: Aval, symbolic: bool) -> Any:
    if symbolic and not aval.shape and aval.dtype == float and not trace.graph.single:
        return trace.lookup(trace.constant(1.0)[0])  # a Python number reads better
    if symbolic:
        return trace.constant_like(1.0, aval)
    one = aval.dtype.type(1.0)
    return np.broadcast_to(one, aval.shape) if aval.shape else one.item() if aval.kind == "python" else one


def _require_scalar(run: Linearized, fun: Fun, holomorphic: bool) -> None:
    """Raise unless the output is one number: real, or complex for a holomorphic function."""
    if len(run.outputs) != 1:
        found = (
            f"{len(run.outputs)} values; use jacobian or vjp, or has_aux=True where the second of two is only to be handed on"
            if run.outputs
            else "None; is a return missing?"
        )
        raise NonScalarOutput(f"{_title(fun)} must return one number for grad, it returned {found}")
    (out,) = run.outputs
    if type(_like(out)) in (float, np.float64):
        return
    if not isinstance(out, (Tracer, np.ndarray, np.generic, int, float, complex)):
        raise NonScalarOutput(f"{_title(fun)} must return one number for grad, it returned {type(out).__name__} {out!r:.40}")
    if np.size(_like(out)) != 1:
        raise NonScalarOutput(
            f"{_title(fun)} must return one number for grad, it returned an array of shape {np.shape(_like(out))}; "
            "sum it, or use jacobian, vjp or elementwise_grad"
        )
    if np.iscomplexobj(_like(out)) and not holomorphic:
        raise NonScalarOutput(
            f"{_title(fun)} returned a complex number; grad needs a real one (np.real, np.abs), or holomorphic=True"
        )


def leaves_of(given: Any, what: str, tree: pytree.TreeDef, shapes: Sequence[tuple[int, ...]], of: str) -> list[Any]:
    """The leaves of a tangent or cotangent: ``what`` is given, of a tree and shapes of what it must be like.

    Raises ``TypeError`` or ``ValueError`` if it is not, or not of numbers.
    """
    leaves, given_tree = pytree.flatten(given)
    if given_tree != tree:
        raise TypeError(f"the {what} has the structure {given_tree}, its {of} {tree}")
    for leaf, shape in zip(leaves, shapes, strict=True):
        if np.shape(leaf) != shape:
            raise ValueError(f"a {what} has shape {np.shape(leaf)}, its {of} {shape}")
        dtype = dtype_of(leaf)
        boxed = dtype == object and all(isinstance(x, (Traced, numbers.Number)) for x in np.ravel(leaf))
        if dtype.kind not in "biufc" and not boxed:
            raise TypeError(f"a {what} has dtype {dtype}; it must be of numbers")
    return leaves


def require_direction(given: Any, what: str, of: str, aval: Aval) -> None:
    """Raise ``TypeError`` for a complex tangent or cotangent of what is real, which cannot move that way."""
    if dtype_of(given).kind == "c" and aval.dtype.kind == "f":
        raise TypeError(
            f"a {what} has dtype {dtype_of(given)}, its {of} {aval.dtype}, which is real; take the {what}'s real part"
        )


def pull(trace: Trace, run: Linearized, cotangents: Any, single: bool, symbolic: bool, holomorphic: bool = False) -> Any:
    """The pullback of ``run`` at cotangents of its outputs."""
    leaves = leaves_of(cotangents, "cotangent", run.tree, run.shapes, "output")
    seeds = []
    for out, g in zip(run.outputs, leaves, strict=True):
        if isinstance(out, Tracer) and out.node.aval.dtype.kind in "fc":
            require_direction(g, "cotangent", "output", out.node.aval)
            seeds.append((out.node, fit(conjugate(g, holomorphic), out.node.aval)))
    return run.rebuild(gradients(trace, run, seeds, symbolic, holomorphic), single)


def gradients(
    trace: Trace, run: Linearized, seeds: Sequence[tuple[Node, Any]], symbolic: bool = True, holomorphic: bool = False
) -> list[Any]:
    """The derivatives by all variables: what flows back to them from ``seeds``, the outputs' cotangents."""
    found = reverse(trace, seeds, run.wrt, symbolic)
    return [_finished(conjugate(g, holomorphic), trace, n.aval, symbolic) for g, n in zip(found, run.wrt, strict=True)]


def _finished(g: Any, trace: Trace, aval: Aval, symbolic: bool) -> Any:
    """``finish``, with plain zeros when the pass ran on plain values, perhaps after its trace has closed."""
    if g is None and not symbolic:
        dtype = native(aval.dtype)
        return np.zeros(aval.shape, dtype) if aval.kind == "array" else finish(dtype.type(0), trace, aval)
    return finish(g, trace, aval)


def push(trace: Trace, run: Linearized, tangents: Sequence[Any]) -> Any:
    """The tangents of the outputs of ``run``, given one tree of tangents for each selected argument."""
    ts: list[Any] = []
    for v, tangent in zip(run.vars, tangents, strict=True):
        leaves = leaves_of(tangent, "tangent", v.tree, v.shapes, "primal")
        for leaf, x in zip(leaves, v.tracers, strict=True):
            require_direction(leaf, "tangent", "primal", x.node.aval)
        ts += [fit(traced(trace, t), x.node.aval) for t, x in zip(leaves, v.tracers, strict=True)]
    nodes = [out.node for out in run.outputs if isinstance(out, Tracer)]
    found = iter(forward(trace, nodes, run.wrt, ts))
    results = []
    for out in run.outputs:
        if isinstance(out, Tracer):
            t = next(found)
            results.append(finish(t, trace, out.node.aval) if out.node.aval.dtype.kind in "fc" else zero_like(out.like))
        else:
            results.append(zero_like(out))
    return run.tree.unflatten(results)


def zero_like(value: Any) -> Any:
    """The zero derivative of a plain value: of its shape, kind and dtype (floating point at least)."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return 0j if isinstance(value, complex) else 0.0
    zero = np.zeros(np.shape(value), np.result_type(value, np.float16) if np.size(value) else value.dtype)
    return zero if isinstance(value, np.ndarray) else zero[()]


def jacobian(
    trace: Trace,
    fun: Fun,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    flat: bool = False,
    mode: str = "auto",
) -> tuple[Any, Any]:
    """The Jacobian (for each output leaf the tree of the variables, each of shape out.shape + variable.shape), and aux.

    ``flat``: for each output leaf one array, with all variables along its last axis.
    """
    run = evaluate(trace, fun, argnums, args, kwargs, has_aux, holomorphic, every=True)
    single = isinstance(argnums, (int, str))
    for out in run.outputs:
        if isinstance(out, Tracer) and out.node.aval.dtype.kind == "c" and not holomorphic:
            raise NonScalarOutput(f"{_title(fun)} has a complex output; take holomorphic=True, or real and imaginary parts")
    outs = [traced(trace, out) for out in run.outputs]
    rows = sum(np.size(out.like) for out in outs)
    columns = sum(
        np.size(v.like) * (2 if v.node.aval.dtype.kind == "c" and not holomorphic else 1)
        for group in run.vars
        for v in group.tracers
    )
    if mode == "auto":
        few = columns == rows and all([_reads_of_elements([out.node for out in outs], n) is not None for n in run.wrt])
        mode = "forward" if columns < rows or few else "reverse"
    blocks = _by_columns(trace, run, outs, holomorphic) if mode == "forward" else _by_rows(trace, run, outs, holomorphic)
    if flat:
        return run.tree.unflatten(
            [_side_by_side(out.node.aval.shape, block) for out, block in zip(outs, blocks, strict=True)]
        ), run.aux
    return run.tree.unflatten([run.rebuild(block, single) for block in blocks]), run.aux


def _side_by_side(shape: tuple[int, ...], block: list[Any]) -> Any:
    """The derivatives of an output of this shape by several variables, along one last axis."""
    if all(np.shape(d) == shape for d in block):
        return np.stack(block, axis=-1)
    return np.concatenate([np.reshape(d, (*shape, -1)) for d in block], axis=-1)


def _stand_in(trace: Trace, aval: Aval, value: complex = 1.0) -> Tracer:
    """A value to take linear maps apart with: what is linear in it does not depend on which it is."""
    return trace.fresh(trace.constant_like(value, aval))


def _by_rows(trace: Trace, run: Linearized, outs: list[Tracer], holomorphic: bool) -> list[list[Any]]:
    """Each output's pullback, at all unit cotangents at once."""
    blocks = []
    for out in outs:
        aval = out.node.aval
        if not aval.shape:
            blocks.append(gradients(trace, run, [(out.node, trace.constant_like(1.0, aval))], holomorphic=holomorphic))
            continue
        unit = _stand_in(trace, aval)
        rows = reverse(trace, [(out.node, unit)], run.wrt)
        maps = at_units(trace, unit, [None if g is None else fit(g, n.aval) for g, n in zip(rows, run.wrt, strict=True)])
        block = []
        for g, n in zip(maps, run.wrt, strict=True):
            target = Aval(aval.shape + n.aval.shape, n.aval.dtype, "array")
            g = None if g is None else np.reshape(g, target.shape)
            block.append(finish(conjugate(g, holomorphic), trace, target))
        blocks.append(block)
    return blocks


def _by_columns(trace: Trace, run: Linearized, outs: list[Tracer], holomorphic: bool) -> list[list[Any]]:
    """Each variable's pushforward, at all unit tangents at once.

    A complex variable has two directions, 1 and i, unless the function is holomorphic.
    """
    blocks: list[list[Any]] = [[] for _ in outs]
    nodes = [out.node for out in outs]
    for n in run.wrt:
        maps = _pushed(trace, run, nodes, n)
        if n.aval.dtype.kind == "c" and not holomorphic:
            turned = _pushed(trace, run, nodes, n, 1j)
            maps = [None if a is None else a + 1j * b for a, b in zip(maps, turned, strict=True)]
        for block, t, o in zip(blocks, maps, nodes, strict=True):
            target = Aval(o.aval.shape + n.aval.shape, n.aval.dtype, "array" if o.aval.shape else n.aval.kind)
            if t is not None and n.aval.shape:
                t = np.reshape(np.moveaxis(t, 0, -1) if o.aval.shape else t, target.shape)
            block.append(finish(t, trace, target))
    return blocks


def _pushed(trace: Trace, run: Linearized, outs: Sequence[Node], n: Node, scale: complex = 1.0) -> list[Any]:
    """What each output does when one variable moves by ``scale``; of an array by each unit vector, along a new first axis."""
    reads = _reads_of_elements(outs, n)
    if reads is not None:  # the zeros of unit tangents go no further
        one = [trace.constant_like(scale, nodes[0].aval) if nodes else None for nodes in reads]
        found = [forward(trace, outs, nodes, [g for _ in nodes]) for nodes, g in zip(reads, one, strict=True)]
        return [_rows(trace, [parts[i] for parts in found], out.aval) for i, out in enumerate(outs)]
    unit = _stand_in(trace, n.aval, scale) if n.aval.shape else trace.constant_like(scale, n.aval)
    ts = forward(trace, outs, run.wrt, [unit if m is n else None for m in run.wrt])
    linear = [None if t is None else fit(t, o.aval) for t, o in zip(ts, outs, strict=True)]
    return at_units(trace, unit, linear, scale) if n.aval.shape else linear


def _reads_of_elements(outs: Sequence[Node], n: Node) -> list[list[Node]] | None:
    """Of an array of few numbers the nodes that read each of them, if all that is done with it is to read them."""
    shape, names = n.aval.shape, {n}
    if len(shape) != 1 or shape[0] > FEW:
        return None
    reads: list[list[Node]] = [[] for _ in range(shape[0])]
    order = path(outs, [n])
    for node in order[1:]:
        if names.isdisjoint(node.args):
            continue
        place: Any = dict(node.params).get("spec") if node.op is GETITEM and len(node.args) == 1 else None
        if node.op is IDENTITY:
            names.add(node)
        elif place is not None and len(place) == 1 and type(place[0]) is int:
            reads[place[0]].append(node)
        else:
            return None
    sizes = [math.prod(node.aval.shape) for node in order if isinstance(node.aval, Aval)]
    # one loop, or few calls, for all of them are better
    short = shape[0] < max(sizes, default=0) < LONG or any([isinstance(node.op, Loop) for node in order])
    return reads if names.isdisjoint(outs) and not short else None


def _rows(trace: Trace, parts: Sequence[Any], aval: Aval) -> Any:
    """Tangents of an output as the rows of an array; None if there are none."""
    if all([part is None for part in parts]):
        return None
    columns = [trace.constant_like(0.0, aval) if part is None else fit(part, aval) for part in parts]
    return np.moveaxis(np.stack(columns, axis=-1), -1, 0)


def hessian_product(
    trace: Trace, fun: Fun, args: Sequence[Any], kwargs: dict[str, Any], tangents: Any, *, argnums: Argnums = 0
) -> Any:
    """The Hessian of a scalar function times a vector: a tangent of the gradient (forward over reverse)."""
    run = evaluate(trace, fun, argnums, args, kwargs)
    _require_scalar(run, fun, False)
    (out,) = run.outputs
    single = isinstance(argnums, (int, str))
    seeds = [(out.node, trace.constant_like(1.0, out.node.aval))] if isinstance(out, Tracer) else []
    grads = gradients(trace, run, seeds)
    inner = Linearized(run.call, run.vars, grads, pytree.flatten(grads)[1], None)
    trace.lean = not trace.depth  # nothing is to come but results
    return run.rebuild(push(trace, inner, [tangents] if single else tangents), single)


def products(
    trace: Trace, fun: Fun, args: Sequence[Any], kwargs: dict[str, Any], seeds: Any, *, argnums: Argnums = 0, mode: str
) -> Any:
    """The Jacobian times many vectors, or many times it: for each of ``seeds``, which are flat, a flat row of the result.

    Of functions of one array with one array as output.
    """
    run = evaluate(trace, fun, argnums, args, kwargs)
    (n,), out = run.wrt, traced(trace, run.outputs[0])
    start, end = (n.aval, out.node.aval) if mode == "forward" else (out.node.aval, n.aval)
    unit = _stand_in(trace, start)
    if mode == "forward":
        (linear,) = forward(trace, [out.node], [n], [unit])
    else:
        (linear,) = reverse(trace, [(out.node, unit)], [n])
    flat: Any = traced(trace, seeds)
    count = flat.shape[0]
    if isinstance(linear, Tracer):
        linear = fit(linear, end)
        inputs = {unit.node: flat.reshape((count, *start.shape)).astype(start.dtype)}
        linear = batch(trace, path([linear.node], [unit.node]), inputs, count).get(linear.node)
    target = Aval((count, math.prod(end.shape)), end.dtype, "array")
    return finish(None if linear is None else np.reshape(linear, target.shape), trace, target)
