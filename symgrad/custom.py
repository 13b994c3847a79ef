"""Rules of the user's own: ``primitive`` where tracing cannot go, ``custom_vjp`` and ``custom_jvp`` for better rules."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from threading import get_ident
from types import MethodType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from symgrad import pytree
from symgrad.api import vjp
from symgrad.equal import told
from symgrad.errors import NotDifferentiable
from symgrad.ir import Node, ancestors
from symgrad.ops.core import Op, Rule, Traced
from symgrad.source.origins import is_object, of_class
from symgrad.testing import check_grads
from symgrad.tracing.trace import Tape, active_trace, followed, is_held_so_often, tracing
from symgrad.tracing.tracer import Tracer, plain
from symgrad.transform.batch import Batch, Each, interned, rule
from symgrad.transform.calculus import conjugate, traced
from symgrad.transform.checkpoint import checkpointed
from symgrad.transform.hosted import hosted
from symgrad.watch.likeness import Derived, Ruled, name_of

Fun = Callable[..., Any]


def _needed(fun: Any, what: str) -> Any:
    """A function that the user gave, if it is one."""
    if not callable(fun):
        raise TypeError(f"{what} needs a function, got {type(fun).__name__}")
    return fun


def _handed(rule: Any) -> Any:
    """A rule of the user's, followed. It may write into what it is handed, which nobody else has."""
    if rule is None:
        return None
    follow = followed(_needed(rule, "a rule"))

    @functools.wraps(rule)
    def run(*args: Any, **kwargs: Any) -> Any:
        return follow(*[pytree.map_tree(_alone, arg) for arg in args], **kwargs)

    return run


def _alone(leaf: Any) -> Any:
    if type(leaf) is Tracer:
        if leaf.base is not None:
            leaf.refresh()
        return leaf.tape.lookup(leaf.node) if not leaf.tape.draft else leaf.value.copy("K")
    return leaf.copy("K") if isinstance(leaf, np.ndarray) else leaf


# -- primitives ----------------------------------------------------------------------------------------------------


class Primitive(Ruled):
    """A function that is not traced but called: by the trace, and again by generated code. Made by ``primitive``."""

    def __init__(self, fun: Fun) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._op = Op(fun, "op", (), name=getattr(fun, "__name__", "primitive"), fun=_owner(fun), anew=True)
        self._op.rules = _NoRules(self._op.name)
        self._implied = True  # the reverse rules, by the forward ones
        self._rules: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = active_trace()
        given: list[Any] = [value for value in kwargs.values() if isinstance(value, Traced)] if kwargs else []
        if trace is not None and any(map(np.ndim, given)):
            raise TypeError(f"keyword arguments of the primitive {self._op.name} are numbers; give arrays by position")
        if trace is None or not trace.symbolic or any([isinstance(arg, Traced) for arg in args]):
            return self._op(*args, **kwargs)
        if not args or not all(map(_is_number, args)):
            return followed(self._fun)(*args, **kwargs)
        return self._op(traced(trace, args[0]), *args[1:], **kwargs)  # recorded, as it may read what changes

    def defvjp(self, *rules: Rule | None, sample: Sequence[Any] | None = None) -> Primitive:
        """Give one rule an argument, ``rule(g, y, *args, **kwargs)``: from the cotangent of the result ``y`` to the argument's.

        ``None`` says that an argument takes no derivative. With a ``sample`` of arguments, the rules are checked against
        finite differences at once (``CheckFailed`` if they are wrong). Returns the primitive.
        """
        self._op.rules = _Rules(self._op.name, [rule and hosted(_handed(rule)) for rule in rules])
        self._implied = False
        self._rules = self._op.rules, self._op.jvp
        if sample is not None:
            self._check(sample)
        return self

    def defjvp(self, *rules: Rule | None, sample: Sequence[Any] | None = None) -> Primitive:
        """Give one rule an argument, ``rule(t, y, *args, **kwargs)``: from its tangent to that of the result ``y``.

        Reverse mode transposes them, unless ``defvjp`` gave rules of its own. Otherwise as ``defvjp``.
        """

        rules = tuple(map(_handed, rules))

        @hosted
        def jvp(ts: Sequence[Any], y: Any, *args: Any, **kwargs: Any) -> Any:
            if len(rules) < len(ts) and any([t is not None for t in ts[len(rules) :]]):
                raise _too_few(self._op.name, len(rules))
            parts = [rule(t, y, *args, **kwargs) for rule, t in zip(rules, ts, strict=False) if rule and t is not None]
            return functools.reduce(lambda a, b: a + b, parts) if parts else None

        self._op.jvp = jvp
        if self._implied:
            self._op.rules = _Rules(self._op.name, [rule and hosted(_transposed(rule, i)) for i, rule in enumerate(rules)])
        self._rules = self._op.rules, self._op.jvp
        if sample is not None:
            self._check(sample)
        return self

    def _check(self, sample: Sequence[Any]) -> None:
        argnums = [i for i, rule in enumerate(self._op.rules) if rule is not None]
        check_grads(self, tuple(sample), argnums=tuple(argnums), order=1, modes=("rev",))


def _owner(fun: Fun) -> Fun:
    """``fun``, with results in memory of their own: code may write into them, and the user's function into what it keeps."""

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        shared = isinstance(result, np.ndarray) and (result.base is not None or not is_held_so_often(result, 0, 0))
        return result.copy("K") if shared else result

    return run


class _NoRules(tuple[Any, ...]):
    """The rules of a primitive that has none yet: asking for one is an error, where an empty tuple would mean zero."""

    def __new__(cls, name: str) -> _NoRules:
        made = super().__new__(cls, (None,))
        made.name = name
        return made

    name: str

    def __getitem__(self, position: Any) -> Any:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise NotDifferentiable(f"the primitive {self.name} has no derivative rule yet; give it one with .defvjp")

        return refuse


class _Rules(tuple[Any, ...]):
    """The rules of a primitive: asking for one of an argument that has none is an error that says so."""

    def __new__(cls, name: str, rules: Sequence[Any]) -> _Rules:
        made = super().__new__(cls, rules)
        made.name = name
        return made

    name: str

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice) or position < len(self):
            return super().__getitem__(position)

        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise _too_few(self.name, len(self))

        return refuse


def _too_few(name: str, count: int) -> NotDifferentiable:
    return NotDifferentiable(
        f"the primitive {name} has {count} derivative rules, and more arguments; give one for each, or None where an argument "
        "takes no derivative"
    )


def _transposed(rule: Rule, position: int) -> Rule:
    """The reverse rule that a forward rule implies: it is linear in the tangent, so transpose it."""

    def reverse_rule(g: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        _, pullback = vjp(lambda t: rule(t, y, *args, **kwargs), np.zeros_like(args[position]))
        return conjugate(pullback(conjugate(g))[0])

    return reverse_rule


def primitive(fun: Fun) -> Primitive:
    """Make a function opaque to tracing: it is called with plain arrays, and its derivative is what you say.

    For functions that NumPy cannot trace: SciPy's, C extensions, table look-ups. Positional arguments are arrays or numbers;
    keyword arguments are static. The result is an array or number.

    >>> import math, symgrad
    >>> gamma = symgrad.primitive(np.vectorize(math.erf)).defvjp(lambda g, y, x: g * 2 / np.sqrt(np.pi) * np.exp(-x * x))
    >>> round(symgrad.grad(lambda x: gamma(x))(0.0), 6)
    1.128379
    """
    return Primitive(_needed(fun, "primitive"))


# -- custom rules for traced functions -----------------------------------------------------------------------------


class _Outputs(Op):
    """Stands behind the results of a custom function: takes (arguments, results, residuals), gives the results.

    Derivatives reach its arguments by the user's rule and do not go on into the results' own computation.
    """

    def __init__(self, name: str, count: int, results: int, joint: Any, jvp: Any) -> None:
        super().__init__(self, "op", (), name=name, fun=lambda *leaves: tuple(leaves[count : count + results]), jvp=jvp)
        self.count = self.behind = count
        self.results = results
        self.joint = joint

    def differentiable(self, position: int) -> bool:
        return position < self.count


class _Batched(_Outputs):
    """The same behind the batched results of a custom function: each element's derivative is by the user's rule."""

    def __init__(self, inner: _Outputs, flags: tuple[bool, ...]) -> None:
        each = Each(inner, flags)
        super().__init__(inner.name, inner.count, inner.results, each.joint, each.jvp)


@rule(_Outputs)
def outputs(b: Batch, node: Node, args: list[Any], flags: list[bool]) -> Any:
    """The results as they are, with the rule behind them."""
    op = node.op
    ends = range(op.count, op.count + op.results)
    whole = [b.full(a, flag) if i in ends else a for i, (a, flag) in enumerate(zip(args, flags, strict=True))]
    return b.trace.record(interned(_Batched, op, tuple([f or i in ends for i, f in enumerate(flags)])), whole, {})


class _Custom(Ruled):
    """What ``custom_vjp`` and ``custom_jvp`` share: a traced call with a node of its own behind its results."""

    def __init__(self, fun: Fun) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._ops = WeakValueDictionary[Any, _Outputs]()
        self._rules: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = self._positional(args, kwargs)
        leaves, tree = pytree.flatten(args)
        first = next((leaf for leaf in leaves if isinstance(leaf, Traced)), None)
        if first is None:
            arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]
            return pytree.map_tree(functools.partial(_apart, arrays), followed(self._fun)(*args))
        result, residuals = self._run(args)
        outs, out_tree = pytree.flatten(result)
        extra, extra_tree = pytree.flatten(residuals)
        places = [i for i, leaf in enumerate(leaves) if _is_number(leaf)]
        kept = [None if i in set(places) else leaf for i, leaf in enumerate(leaves)]
        fixed = [None if _is_number(leaf) else leaf for leaf in extra]
        key = (tree, out_tree, extra_tree, tuple(map(_key, kept)), tuple(map(_key, fixed)))
        op = self._ops.get(key)
        if op is None:
            op = self._ops[key] = self._make(tree, out_tree, extra_tree, places, kept, fixed)
        numbers = [leaves[i] for i in places] + outs + [leaf for leaf in extra if _is_number(leaf)]
        parts = first.record(op, numbers, {})
        return out_tree.unflatten(list(parts))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _positional(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """The arguments as the rules take them."""
        bound = inspect.signature(self._fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            name = getattr(self, "__name__", "a function with rules of its own")
            raise TypeError(f"{name}() takes arguments by position; {', '.join(bound.kwargs)} can be given by keyword only")
        return bound.args

    def _run(self, args: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def _make(self, *shape: Any) -> _Outputs:
        raise NotImplementedError


def _apart(arrays: Sequence[Any], leaf: Any) -> Any:
    """A result that no write to one of these arrays changes: in a derivative, it is another array, too."""
    shared = isinstance(leaf, np.ndarray) and any([np.may_share_memory(leaf, array) for array in arrays])
    return leaf.copy("K") if shared else leaf


def _is_number(leaf: Any) -> bool:
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind in "biufcmMO"  # objects may be traced numbers
    return isinstance(leaf, (Traced, int, float, complex)) and not isinstance(leaf, bool)


def _key(leaf: Any) -> Any:
    """What tells a leaf from others: its value, or which object it is; the operation holds that, the key must not."""
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    by_itself = is_object(leaf) or of_class(type(leaf), "__eq__") is of_class(object, "__eq__")
    return id(leaf) if by_itself else (told(leaf), leaf)  # users' objects may be equal, and hold something else


def _fill(kept: list[Any], places: list[int], numbers: Sequence[Any]) -> list[Any]:
    """Leaves put together from the fixed ones and the numbers at ``places``."""
    leaves = list(kept)
    for place, number in zip(places, numbers, strict=True):
        leaves[place] = number
    return leaves


_LATER = object()  # residuals that are not there yet


class CustomVJP(_Custom):
    """A function with a reverse rule of the user's. Made by ``custom_vjp``."""

    def __init__(self, fun: Fun) -> None:
        super().__init__(fun)
        self._running: set[int] = set()  # threads in which the forward rule runs

    def defvjp(self, fwd: Fun, bwd: Fun) -> CustomVJP:
        """``fwd(*args)`` returns ``(result, residuals)``; ``bwd(residuals, g)`` a tuple of cotangents, one an argument.

        A cotangent has the shape of its argument, or one that broadcasts to it; of the shape of a result that the argument
        broadcasts to, it is summed. It may be None for an argument that takes no derivative. ``fwd`` may call the function.
        Returns the function.
        """
        self._rules = followed(_needed(fwd, "a rule")), _handed(bwd)
        return self

    def _run(self, args: Any) -> tuple[Any, Any]:
        if self._rules is None:
            raise NotDifferentiable(f"{getattr(self, '__name__', 'custom_vjp')} has no rule yet; give it one with .defvjp")
        return (followed(self._fun)(*args), _LATER) if get_ident() in self._running else self._forwards(args)

    def _forwards(self, args: Any) -> tuple[Any, Any]:
        """What ``fwd`` returns; where it calls the function, that has its residuals when a derivative is asked for."""
        me = get_ident()
        within = me in self._running
        self._running.add(me)
        try:
            pair = self._rules[0](*args)
        finally:
            if not within:
                self._running.remove(me)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"fwd must return a pair (result, residuals), it returned {pair!r:.60}")
        return pair[0], pair[1]

    def _make(self, tree: Any, out_tree: Any, extra_tree: Any, places: Any, kept: Any, fixed: Any) -> _Outputs:
        spots = [i for i, leaf in enumerate(fixed) if leaf is None]
        count, results = len(places), out_tree.size

        @hosted
        def joint(g: Sequence[Any], y: Any, args: Sequence[Any], params: Any) -> list[Any]:
            outs, residuals = args[count : count + results], args[count + results :]
            g = [_filled(out) if part is None else conjugate(part) for part, out in zip(g, outs, strict=True)]
            rest = extra_tree.unflatten(_fill(fixed, spots, residuals))
            if rest is _LATER:
                rest = self._forwards(tree.unflatten(_fill(kept, places, args[:count])))[1]
            found = self._rules[1](rest, out_tree.unflatten(g))
            if not isinstance(found, tuple) or len(found) != len(tree.children):
                raise TypeError(f"bwd must return a tuple of {len(tree.children)} cotangents, it returned {found!r:.60}")
            leaves: list[Any] = []
            for i, (part, child) in enumerate(zip(found, tree.children, strict=True)):
                parts = [None] * child.size if part is None else pytree.flatten(part)[0]
                if len(parts) != child.size:
                    raise TypeError(
                        f"bwd returned {part!r:.60} as the cotangent of argument {i}, which has the structure {child!r}"
                    )
                leaves += parts
            found = [leaves[place] for place in places]
            shapes = {np.shape(out) for out in outs}
            for part, x, place in zip(found, args, places, strict=False):
                shape, whole = np.shape(part), np.shape(x)
                if not _reaches(shape, whole) and not (shape in shapes and _reaches(whole, shape)):
                    what = f"{_spelled(tree, place)}, which has shape {whole}"
                    raise ValueError(f"bwd of {name} returned a cotangent of shape {shape} for {what}")
            return [conjugate(part) for part in found]

        name = getattr(self, "__name__", "custom_vjp")

        def jvp(ts: Sequence[Any], y: Any, *args: Any) -> Any:
            raise NotDifferentiable(
                f"{name} has a reverse rule only (custom_vjp), and forward mode met it; use reverse mode "
                "(grad, jacrev, jacrev(grad(f)) for second derivatives), or custom_jvp, which serves both"
            )

        return _Outputs(name, count, results, joint, jvp)


class CustomJVP(_Custom):
    """A function with a forward rule of the user's. Made by ``custom_jvp``."""

    def defjvp(self, jvp: Fun) -> CustomJVP:
        """``jvp(primals, tangents)``, two tuples, returns ``(result, tangent of the result)``, linear in the tangents.

        Returns the function.
        """
        self._rules = _handed(jvp)
        return self

    def _run(self, args: Any) -> tuple[Any, Any]:
        if self._rules is None:
            raise NotDifferentiable(f"{getattr(self, '__name__', 'custom_jvp')} has no rule yet; give it one with .defjvp")
        return followed(self._fun)(*args), ()

    def _make(self, tree: Any, out_tree: Any, extra_tree: Any, places: Any, kept: Any, fixed: Any) -> _Outputs:
        count, results = len(places), out_tree.size
        name = getattr(self, "__name__", "custom_jvp")

        def push(numbers: Sequence[Any], ts: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
            primals = tree.unflatten(_fill(kept, places, numbers))
            tangents = tree.unflatten(_fill([0.0] * len(kept), places, ts))
            pair = self._rules(primals, tangents)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"the rule of {name} must return a pair (result, tangent), it returned {pair!r:.60}")
            parts = pytree.flatten(pair[1])[0]
            if len(parts) != results:
                raise TypeError(
                    f"the rule of {name} returned the tangent {pair[1]!r:.60}; its result has the structure {out_tree!r}"
                )
            return [_spread(part, out) for part, out in zip(parts, outs, strict=True)]

        @hosted
        def jvp(ts: Sequence[Any], y: Any, *args: Any) -> Any:
            numbers = args[:count]
            ts = [_filled(x) if t is None else t for t, x in zip(ts, numbers, strict=False)]
            return tuple(push(numbers, ts, args[count : count + results]))

        @hosted
        def joint(g: Sequence[Any], y: Any, args: Sequence[Any], params: Any) -> list[Any]:
            numbers = args[:count]
            ends = args[count : count + results]
            if active_trace() is None:
                with tracing(Tape()):
                    return [plain(part) for part in joint(g, y, args, params)]
            seen: list[Any] = []

            def moved(*ts: Any) -> Any:
                seen[:] = ts
                return push(numbers, ts, ends)

            def back(scale: float) -> tuple[list[Any], Any, list[Any]]:
                """The results at tangents that are no zeros, which the rule may leave out, and what is pulled back."""
                outs, pullback = vjp(moved, *[_filled(x, scale) for x in numbers])
                seeds = [_filled(out) if part is None else conjugate(part) for part, out in zip(g, outs, strict=True)]
                return seeds, outs, pullback(seeds)

            seeds, outs, found = back(1.0)
            if not _is_homogeneous(seeds, outs, found) or (_depend(found, seen) and not _alike(found, back(-2.0)[2])):
                raise NotDifferentiable(
                    f"the rule of {name} is not linear in its tangents, and reverse mode transposes it; write one that is, or "
                    "give a reverse rule (custom_vjp)"
                )
            return [conjugate(part) for part in found]

        return _Outputs(name, count, results, joint, jvp)


def _is_homogeneous(seeds: Sequence[Any], outs: Sequence[Any], found: Sequence[Any]) -> bool:
    """Whether a forward rule gives, for tangents of ones, what its transpose says; not so if it adds something."""
    terms = [np.asarray(np.real(np.conj(plain(g)) * plain(out))) for g, out in zip(seeds, outs, strict=True)]
    terms += [np.asarray(-np.real(plain(part))) for part in found]
    off, size = (abs(sum([float(np.sum(fun(term))) for term in terms])) for fun in (np.positive, np.abs))
    return not off > size * max([np.finfo(term.dtype).eps for term in terms], default=0.0) ** 0.25


def _depend(found: Sequence[Any], ts: Sequence[Any]) -> bool:
    """Whether the transpose of a forward rule may depend on the tangents."""
    ends = [part.node for part in found if type(part) is Tracer]
    return len(ends) < len(found) or not {t.node for t in ts}.isdisjoint(
        ancestors(ends, min([t.node.index for t in ts], default=0))
    )


def _alike(found: Sequence[Any], again: Sequence[Any]) -> bool:
    """Whether they are the same but for rounding."""
    pairs = [(np.asarray(plain(a)), np.asarray(plain(b))) for a, b in zip(found, again, strict=True)]
    return all([
        np.allclose(a, b, 0.0, np.finfo(a.dtype).eps ** 0.5 * np.max(np.abs(a), initial=0.0), equal_nan=True) for a, b in pairs
    ])  # fmt: skip


def _reaches(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether an array of one shape broadcasts to another."""
    pairs = zip(reversed(shape), reversed(whole), strict=False)
    return len(shape) <= len(whole) and all(n in (1, m) for n, m in pairs)


def _spelled(tree: pytree.TreeDef, place: int) -> str:
    """A leaf of the arguments, for messages: ``argument 1['w']``."""
    (_, position), *rest = tree.paths()[place]
    return f"argument {position}" + "".join([f".{key}" if step == "attr" else f"[{key!r}]" for step, key in rest])


def _spread(tangent: Any, result: Any) -> Any:
    """A tangent in the shape of its result: one number may stand for all."""
    shape = np.shape(result)
    return tangent if np.shape(tangent) == shape else np.broadcast_to(tangent, shape)


def _filled(x: Any, value: float = 0.0) -> Any:
    """A number, zero as a rule, of the kind of ``x``; of an integer, a float."""
    if not hasattr(x, "dtype"):
        return complex(value) if isinstance(x, complex) else value
    dtype = np.result_type(x.dtype, np.float16)
    return np.full(np.shape(x), value, dtype) if np.shape(x) else dtype.type(value)


def custom_vjp(fun: Fun) -> CustomVJP:
    """A function whose reverse rule you give: for numerical stability, clipping, or a cheaper formula.

    Positional arguments and results may be trees. ``fun`` runs where no derivative is asked for; under a derivative ``fwd``
    does.

    >>> import symgrad
    >>> @symgrad.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped = clipped.defvjp(lambda x: (x, None), lambda _, g: (np.clip(g, -1.0, 1.0),))
    >>> symgrad.grad(lambda x: clipped(x) ** 2)(3.0)
    1.0
    """
    return CustomVJP(_needed(fun, "custom_vjp"))


def custom_jvp(fun: Fun) -> CustomJVP:
    """A function whose forward rule you give; reverse mode transposes it.

    >>> import symgrad
    >>> @symgrad.custom_jvp
    ... def log1pexp(x):
    ...     return np.log1p(np.exp(x))
    >>> rule = lambda x, t: (log1pexp(*x), t[0] / (1.0 + np.exp(-x[0])))
    >>> log1pexp = log1pexp.defjvp(rule)
    >>> symgrad.grad(log1pexp)(0.0)
    0.5
    """
    return CustomJVP(_needed(fun, "custom_jvp"))


# -- checkpoints ---------------------------------------------------------------------------------------------------


class Checkpointed(Derived):
    """A function whose inner values the backward pass computes once more. Made by ``checkpoint``."""

    _made = ("checkpoint",)

    def __init__(self, fun: Fun) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = active_trace()
        if trace is None or not trace.symbolic:  # a tape keeps everything
            return followed(self._fun)(*args, **kwargs)
        start = trace.graph.next_index
        leaves, tree = pytree.flatten(followed(self._fun)(*args, **kwargs))
        places = [i for i, leaf in enumerate(leaves) if type(leaf) is Tracer and self._counts(leaf, start)]
        if places:
            for i, new in zip(places, checkpointed(trace, start, [leaves[i] for i in places]), strict=True):
                leaves[i] = new
        return tree.unflatten(leaves)

    def __reduce__(self) -> Any:
        return name_of(self) or (Checkpointed, (self._fun,))

    def _counts(self, result: Tracer, start: int) -> bool:
        """Whether a derivative flows into a result, and through what was computed here; views stay what they are."""
        return result.base is None and result.node.index >= start and result.node.differentiated

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def checkpoint(fun: Fun) -> Checkpointed:
    """``fun``, with a backward pass that saves memory: of what ``fun`` computes on the way nothing is kept, but computed anew.

    The derivatives are the same. Where a long chain of large arrays is split into ``n`` checkpointed parts, the backward
    pass needs the memory of one part and the ``n`` values between them, and the time of one more pass forwards. Nests; works
    in loops, as a decorator and on methods. It matters for compiled code: a trace, and so dynamic mode, keeps all values.

    Args:
        fun: a function of arrays, numbers and trees of them; it may read others from outside.

    >>> import symgrad
    >>> part = symgrad.checkpoint(lambda x: np.sin(np.sin(np.sin(x))))
    >>> round(symgrad.grad(lambda x: part(part(x)))(0.5), 6)
    0.522813
    """
    return Checkpointed(_needed(fun, "checkpoint"))
