"""Operations, their families, and the registry that maps a NumPy function to what the tracer does with it.

A *rule* is a vector-Jacobian product in plain NumPy, ``rule(g, y, *args, **params)``: from the cotangent ``g`` of the
result ``y`` to the cotangent of one argument. Its arguments after ``y`` carry the names of NumPy's own signature: those
without a default are arrays, those with a default are static parameters, which arrive only when they were given. A rule
may look at shapes and dtypes with Python's ``if``, never at values, and it may leave broadcasting and dtypes to
``fit``: a cotangent may have the shape of ``y``, of the argument, or anything that broadcasts to them.

Cotangents follow the bilinear convention (no conjugates): a holomorphic ``f`` has the rule ``g * f'(x)``. The public API
conjugates at its borders.

==============  =============================  ================================================
family          reverse                        forward
==============  =============================  ================================================
``elementwise`` the rule                       the same rule with the tangent in place of ``g``
``linear``      the rule (its transpose)       the operation on the tangents
``multilinear`` one rule an argument           the operation with one argument replaced
``op``          one rule an argument           ``jvp`` where given, else the transposed rule
``constant``    no derivative (zero)           no derivative (zero)
==============  =============================  ================================================
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.errors import NotDifferentiable
from symgrad.ir import CONST, Aval, Node
from symgrad.runtime import native

Rule = Callable[..., Any]
Binder = Callable[..., "tuple[Sequence[Any], dict[str, Any]]"]


class Traced:
    """What a traced value is to the operations: something that records them, with a ``value``.

    ``symgrad.tracing.tracer`` has one subclass, ``symgrad.eager`` the other.
    """

    __slots__ = ()
    value: Any

    @property
    def like(self) -> Any:
        """What is of the value's type, shape and dtype."""
        return self.value

    def record(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run ``op`` and write it down."""
        raise NotImplementedError

    def adopt(self, value: Any) -> Any:
        """A plain array, or an object array of traced values, as a traced value of the same run."""
        raise NotImplementedError

    def laid_as(self, other: Any) -> Any:
        """The same value, lying in memory as ``other`` does: what NumPy makes a view of later hangs on that."""
        return self

    def second_name_of(self, array: Any) -> None:
        """Note that this is what NumPy takes for a view of an array of objects; writes to it must not go unseen there."""

    def over(self, y: Any) -> Any:
        """By what this is a multiple of ``y``, as far as that was written down; None where nothing is known."""
        return None

    def outside(self) -> Sequence[str]:
        """The attributes to be guarded where a traced function reads it from outside."""
        return ()


FEW = 32  # operations on literal numbers that are looked through: a counter in a long loop has any number of them
_LANES = {"elementwise": "same", "linear": "mixed", "multilinear": "mixed"}


class Op:
    """One operation: how to run it, how it is called, and its derivative rules. See the module's docstring.

    ``fun(*arrays, **params)`` runs it. ``spelling`` is how generated code names it. ``samples`` feed the generic tests.
    ``prepare`` rewrites the options of a call; where ``prepared`` names some, only of calls that have one of those.
    ``instead`` has, for options that change what is computed, the definition that a call with one of them stands for.
    ``alias`` marks an operation whose result may be a view of its first argument; ``sized`` one whose results' shapes
    (or dtypes) depend on values; ``anew`` one that may give another result of the same arguments at a later call;
    ``looks_back`` one whose rules ask how its arguments were made, which even a pass over plain values tells them.

    Two options tell reverse mode what stays zero where the cotangent is known to be (see ``symgrad.transform.lanes``).
    ``partial`` says what an elementwise rule multiplies by: something ``"constant"``, something ``"finite"`` wherever the
    arguments are, what has one ``"pole"``, where argument ``pole`` is zero, or what may have ``"poles"`` anywhere; or a
    function of the arguments that are literal numbers (None for others) says it, and may say ``"zero"``. ``lanes`` says, for
    each argument or for all, where its elements went: to the ``"same"`` places of the result, all ``"moved"`` to places that
    the rule finds again, ``"some"`` of them, by a ``Choice``, into the result of their ``"row"`` along ``axis``, into what a
    ``"scan"`` along it has from there on, anywhere in their matrix of a ``"stack"``, or wherever the rule, with ones for other
    arguments, takes them back from: ``"mixed"``.
    ``labels(*args, **params)`` names the axes of a product's arguments, and of the result, as ``einsum`` does.
    """

    def __init__(
        self,
        key: Any,
        family: str,
        rules: tuple[Rule | None, ...],
        *,
        name: str | None = None,
        fun: Callable[..., Any] | None = None,
        bind: Binder | None = None,
        prepare: Callable[..., dict[str, Any]] | None = None,
        prepared: Sequence[str] = (),
        instead: dict[str, Callable[..., Any]] | None = None,
        jvp: Rule | None = None,
        variadic: bool = False,
        alias: bool = False,
        sized: bool = False,
        partial: Any = "poles",
        pole: int = 0,
        lanes: Any = None,
        labels: Callable[..., tuple[Sequence[str], str]] | None = None,
        domain: Any = (-2.0, 2.0),
        samples: Sequence[Sample] = (),
        complex: bool = True,
        anew: bool = False,
        looks_back: bool = False,
    ) -> None:
        self.key, self.anew, self.looks_back = key, anew, looks_back
        self.family, self.rules, self.jvp = family, rules, jvp
        self.name = name or spelling_of(key)
        self.variadic, self.alias, self.sized = variadic, alias, sized
        self.fun: Callable[..., Any] = fun or ((lambda *arrays, **params: key(arrays, **params)) if variadic else key)
        self.partial, self.pole = partial, pole
        self.lanes = _LANES.get(family) if lanes is None else lanes
        self.labels = labels
        self.domain, self.samples, self.complex = domain, tuple(samples), complex
        self.reach: Callable[[int], list[int]] | None = None  # the arguments that a derivative of a result flows to
        self.smooth = bool(rules) and None not in rules and not variadic and type(self) is Op
        self.joint: Callable[..., list[Any]] | None = None  # all cotangents in one: joint(g, y, args, params)
        self.moved: Callable[..., Any] | None = None  # of a loop: the same, of a list of arguments that are given up
        self.like: Callable[..., Any] | None = None  # of a loop: what its results are like, given the same of its arguments
        self.saves: Sequence[Any] = ()  # of a loop: what is known of the elements of the lists that are its last results
        self.behind: int | None = None  # where its results stand among its arguments, if that is all that they are
        self._bind, self._prepare, self._prepared = bind, prepare, frozenset(prepared)
        self.instead = instead or {}
        self._signature: _Signature | None = None
        self._arity: int | None = None

    @functools.cached_property
    def chooses(self) -> bool:
        """Whether elements of its arguments may be left out of its result."""
        return any(isinstance(kind, Choice) or kind == "some" for kind in _each(self.lanes))

    @property
    def inside(self) -> int:
        """Of a loop: how bad the partial derivatives of its body get."""
        return 0

    @property
    def idle(self) -> frozenset[int]:
        """Of a loop: the arguments that nothing reads where it, or one in it, runs no iteration."""
        return frozenset()

    @property
    def idling(self) -> bool:
        """Of a loop: whether one in it, which may run no iteration, reads there what has poles."""
        return False

    @property
    def hides(self) -> bool:
        """Of a loop: whether masks in it may hide infinities of a derivative."""
        return False

    @property
    def alike(self) -> Any:
        """The same for operations that are one, but for arrays that each trace makes anew."""
        return self

    def contents(self) -> str:
        """What runs inside, for people: lines below the node's own."""
        return ""

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> Any:
        return (_lookup, (self.key,))

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        """Run the operation on plain or traced arrays."""
        for array in arrays:
            if isinstance(array, Traced):
                return array.record(self, arrays, {name: known(value) for name, value in params.items()} if params else params)
        return self.fun(*arrays, **params)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Split the arguments of a call into arrays and static parameters, leaving out defaults.

        Raises ``NotDifferentiable`` for an option of NumPy's that the rule does not know.
        """
        if self._bind is not None:
            return self._bind(*args, **kwargs)
        if self._signature is None:
            self._signature = _Signature(self)
        return self._signature.bind(args, kwargs, self._prepare, self._prepared)

    def definition(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
        """What a call with an option of ``instead`` stands for, to be called; None for other calls."""
        if not self.instead or (len(args) < 2 and self.instead.keys().isdisjoint(kwargs)):
            return None
        if self._signature is None:
            self._signature = _Signature(self)
        given = {**dict(zip(self._signature.order, args, strict=False)), **kwargs}
        for option, fun in self.instead.items():
            if option in given and not same(given[option], self._signature.defaults.get(option, np._NoValue)):
                return functools.partial(fun, **given)
        return None

    def arity(self) -> int:
        """How many arrays it takes, if a call with that many arguments, by position, is one of arrays alone; else -1."""
        if self._arity is None:
            simple = self._bind is None and (self._prepare is None or self._prepared) and not self.sized
            if simple and self._signature is None:
                self._signature = _Signature(self)
            self._arity = self._signature.arity if simple and self._signature else -1
        return self._arity

    def vjp(self, position: int, g: Any, y: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The cotangent of argument ``position``; ``None`` where it takes no derivative."""
        if self.variadic:
            rule = self.rules[0]
            return None if rule is None else rule(position, g, y, *args, **params)
        rule = self.rules[position]
        return None if rule is None else rule(g, y, *args, **params)

    def differentiable(self, position: int) -> bool:
        """Whether a derivative can flow into argument ``position``."""
        return bool(self.rules) and self.rules[0 if self.variadic else position] is not None

    def flows(self, args: Sequence[Node], params: Sequence[tuple[str, Any]]) -> tuple[int, ...]:
        """The positions of the arguments that derivatives flow through it from."""
        if callable(self.partial) and not all([arg.active for arg in args]) and self.partial_of(args) == "zero":
            return ()
        if self.smooth and len(args) == 1:
            return (0,)
        return tuple([i for i, arg in enumerate(args) if arg.differentiated and (self.smooth or self.differentiable(i))])

    def partial_of(self, args: Sequence[Node]) -> str:
        """How large its partial derivatives get, given what it is applied to: what ``partial`` says."""
        if self.family != "elementwise":
            return "constant"
        kind = self.partial
        if callable(kind):
            kind = kind(*[literal(arg) for arg in args])
        if kind == "pole":
            return "finite" if (least(args[self.pole]) or 0.0) >= AWAY else "poles"
        return str(kind)

    def lanes_of(self, position: int) -> Any:
        """What ``lanes`` says of one argument."""
        return self.lanes[position] if isinstance(self.lanes, tuple) else self.lanes

    def stays(self, position: int) -> bool:
        """Whether each element of an argument matters in its own place of the result alone, if their shapes are the same."""
        return self.family == "elementwise" or self.lanes_of(position) == "same"


def literal(node: Node) -> Any:
    """The value of a literal number, or of what a few operations compute of them alone; None for others, and where Python's
    numbers raise."""
    if node.active:
        return None
    known: dict[Node, Any] = {}
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one in known:
            continue
        if one.op is CONST:
            known[one] = dict(one.params)["value"]
            continue
        if one.active or not one.args or not isinstance(one.aval, Aval) or one.aval.shape:
            return None
        if len(known) + len(waiting) > FEW:
            return None
        missing = [arg for arg in one.args if arg not in known]
        if missing:
            waiting += [one, *missing]
        else:
            try:
                known[one] = one.op.fun(*[known[arg] for arg in one.args], **dict(one.params))
            except (ZeroDivisionError, OverflowError):  # of Python's numbers, in a derivative at a pole
                return None
    return known[node]


AWAY = 1e-12  # a number that is no less has powers within single precision
_DEPTH = 8  # operations that are looked through for bounds
_GREATER = 5e-324  # stands for what is greater than zero
_EXPONENTIALS = (np.exp, np.exp2, np.cosh)
_SIZES = (np.abs, np.fabs, np.var, np.std, np.linalg.norm)
_KEEPING = (np.sum, np.mean, np.max, np.min, np.minimum, np.sqrt, np.prod, np.multiply, np.divide, np.add)


def least(node: Node, depth: int = _DEPTH) -> float | None:
    """What a result is surely no less than, but for rounding and what overflows, if that is zero or more; None for others.

    How many elements are the largest, as rules of ties have it, is greater than zero, too.
    """
    if node.op is CONST:
        value = dict(node.params)["value"]
        return None if np.iscomplexobj(value) or not value >= 0 else float(value)
    if not node.args or not isinstance(node.aval, Aval) or node.aval.dtype.kind not in "fiub" or not depth:
        return None
    key, first = node.op.key, node.args[0]
    if key in _EXPONENTIALS or (key is np.sum and first.aval.dtype == bool):
        return _GREATER
    if key is np.square or (key is np.multiply and first is node.args[1]):
        return _product(*[least(first, depth - 1) or 0.0] * 2)
    if key in _SIZES:
        return 0.0
    if node.op.alias:
        return least(first, depth - 1)
    if key is np.power:
        return _power(least(first, depth - 1), literal(node.args[1]))
    if key is not np.maximum and key not in _KEEPING:
        return None
    found = [least(arg, depth - 1) for arg in node.args]
    known = [bound for bound in found if bound is not None]
    if key is np.maximum:
        return max(known, default=None)
    if len(known) < len(found):
        return None
    if key is np.add:
        return known[0] + known[1]
    if key is np.sqrt:
        return math.sqrt(known[0])
    if key is np.multiply:
        return _product(*known)
    if key in (np.divide, np.prod):
        return _GREATER if min(known) else 0.0
    return min(known) if first.aval.shape == () or 0 not in first.aval.shape else 0.0


def _product(a: float, b: float) -> float:
    return max(a * b, _GREATER) if a and b else 0.0


def _power(a: float | None, exponent: Any) -> float | None:
    if exponent is None or np.iscomplexobj(exponent) or a is None:
        return 0.0 if exponent == 2 else None
    return max(a**exponent, _GREATER) if 0 < exponent <= 2 and a else _GREATER if a else 0.0


class Choice:
    """An argument of which each element is in the result, in the same place, or not at all.

    ``test(y, *args, **params)`` gives ``(mask, taken, explicit)``: where the mask is ``taken``, the argument was; or None
    where nothing can be said. ``explicit``: it is the user's own mask, beyond which the argument may be anything, NaN too, and
    the rule does nothing but to select by it. Otherwise only what is computed from finite numbers is looked after.
    """

    def __init__(self, test: Callable[..., tuple[Any, bool, bool] | None]) -> None:
        self.test = test


def _each(lanes: Any) -> tuple[Any, ...]:
    return lanes if isinstance(lanes, tuple) else (lanes,)


class _Signature:
    """How a call's arguments map to an op's arrays and parameters: NumPy's own signature, else the rule's."""

    def __init__(self, op: Op) -> None:
        rule = next(rule for rule in op.rules if rule is not None)
        own = list(inspect.signature(rule).parameters.values())[3 if op.variadic else 2 :]
        positional = [p for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.name = op.name
        self.variadic, self.instead = op.variadic, op.instead
        self.params = {p.name: p.default for p in own if p.default is not p.empty}
        self.defaults: dict[str, Any] = dict(self.params)
        try:
            theirs = inspect.signature(op.key).parameters.values()
        except (TypeError, ValueError):
            theirs = None
        if theirs is None or any(p.kind is p.VAR_POSITIONAL for p in theirs):
            first = [own[0].name] if op.variadic else []
            self.order = first + [p.name for p in positional if p.name not in first]
        else:
            self.order = [p.name for p in theirs]
            for p in theirs:  # an option that NumPy has no default for is always passed on
                self.defaults.pop(p.name, None)
            self.defaults.update({p.name: p.default for p in theirs if p.default is not p.empty})
        if op.variadic:
            self.arrays = [self.order[0]]
        else:
            self.arrays = [p.name for p in positional if p.default is p.empty]
        plain = not op.variadic and self.order[: len(self.arrays)] == self.arrays
        self.arity = len(self.arrays) if plain else -1  # so many positional arguments are the arrays, as they are

    def bind(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        prepare: Callable[..., dict[str, Any]] | None,
        prepared: frozenset[str],
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        if len(args) > len(self.order):
            raise TypeError(f"{self.name}() takes {len(self.order)} arguments, got {len(args)}")
        given = dict(zip(self.order, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"{self.name}() got two values for {name!r}")
            given[name] = value
        missing = [name for name in self.arrays if name not in given]
        if missing:
            raise TypeError(f"{self.name}() misses its argument {missing[0]!r}")
        for name in self.instead.keys() & given.keys():  # of a call that has its default, see ``Op.definition``
            del given[name]
        if prepare is not None and (not prepared or prepared & given.keys()):
            given = prepare(**given)
        arrays = [given.pop(name) for name in self.arrays]
        params = {}
        for name, value in given.items():
            if name in self.defaults and same(value, self.defaults[name]):
                continue
            if value is np._NoValue:
                continue
            if name not in self.params:
                raise NotDifferentiable(f"{self.name}(..., {name}={value!r}) has no derivative rule for this option")
            params[name] = value
        return (tuple(arrays[0]) if self.variadic else arrays), params


def same(a: Any, b: Any) -> bool:
    """Whether a parameter has its default value, asked without comparing arrays."""
    return a is b or (type(a) is type(b) and isinstance(a, (int, float, str, tuple)) and a == b)


class Composite:
    """A function made of others: ``fun`` is its definition in NumPy terms, which is traced."""

    def __init__(self, key: Any, fun: Callable[..., Any], samples: Sequence[Sample] = (), complex: bool = True) -> None:
        self.key, self.fun, self.samples, self.complex = key, fun, tuple(samples), complex
        self.name = spelling_of(key)


class Static:
    """A function of shapes and dtypes alone (``np.shape``): run on plain values."""

    def __init__(self, key: Any, sizes: bool) -> None:
        self.key = key
        self.sizes = sizes  # whether it asks how many elements there are


class Refused:
    """A function that cannot be differentiated; ``why`` says so and what to write instead."""

    def __init__(self, key: Any, why: str) -> None:
        self.key, self.why = key, why


class _Registry(dict[Any, Any]):
    """What each function is. SciPy's ufuncs get their rules when the first of them is asked for."""

    def get(self, key: Any, default: Any = None) -> Any:
        if key in self:
            return self[key]
        if isinstance(key, np.ufunc):
            scipy = sys.modules.get("scipy.special")
            if scipy is not None and vars(scipy).get(key.__name__) is key:
                importlib.import_module("symgrad.scipy.special")
        return super().get(key, default)


REGISTRY: dict[Any, Op | Composite | Static | Refused] = _Registry()


def _lookup(key: Any) -> Any:
    return REGISTRY[key]


def spelling_of(key: Any) -> str:
    """How code names a function: ``np.exp``, ``np.linalg.inv``, ``runtime.scatter``."""
    name = {"absolute": "abs"}.get(key.__name__, key.__name__)
    module = (getattr(key, "__module__", None) or "numpy").replace("numpy", "np", 1)
    for prefix in ("np.linalg", "np.fft", "np.polynomial.polynomial", "np", "symgrad.runtime"):
        if module == prefix or module.startswith(prefix + "."):
            return f"{prefix.removeprefix('symgrad.')}.{name}"
    return str(name)


Decorator = Callable[[Rule], Rule]


class _Family:
    """Registers operations of one family: ``linear(np.sum, rule, ...)``, or as a decorator of its one rule."""

    def __init__(self, family: str) -> None:
        self.family = family

    def __call__(self, key: Any, *rules: Rule | None, **options: Any) -> Decorator:
        if rules:
            REGISTRY[key] = Op(key, self.family, rules, **options)

        def register(rule: Rule) -> Rule:
            REGISTRY[key] = Op(key, self.family, (rule,), **options)
            return rule

        return register


elementwise = _Family("elementwise")
linear = _Family("linear")
multilinear = _Family("multilinear")
op = _Family("op")


def _bind_plainly(*args: Any, **kwargs: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    return args, kwargs


def constant(*keys: Any, bind: Binder = _bind_plainly, **options: Any) -> None:
    """Register functions whose derivative is zero wherever it exists (``np.floor``, comparisons)."""
    for key in keys:
        REGISTRY[key] = Op(key, "constant", (), bind=bind, **options)


def composite(key: Any, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a definition in terms of other functions, which is traced in place of ``key``."""

    def register(fun: Callable[..., Any]) -> Callable[..., Any]:
        REGISTRY[key] = Composite(key, fun, **options)
        return fun

    return register


def static(*keys: Any, sizes: bool = True) -> None:
    """Register functions of shapes and dtypes alone, which run on plain values; ``sizes``: of more than ranks and dtypes."""
    for key in keys:
        REGISTRY[key] = Static(key, sizes)


def refused(why: str, *keys: Any) -> None:
    """Register functions that raise ``NotDifferentiable`` with this advice."""
    for key in keys:
        REGISTRY[key] = Refused(key, why)


# -- what the engine does for every rule ---------------------------------------------------------------------------


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype) if hasattr(x, "astype") else dtype.type(x)


ASTYPE = Op(_cast, "linear", (lambda g, y, x, dtype: g,), name="astype", lanes="same")


def fit(g: Any, aval: Aval) -> Any:
    """A cotangent made to fit its argument: summed over what was broadcast, broadcast, and of its dtype.

    ``g`` may be an array, a number or a traced value.
    """
    plain = g.like if isinstance(g, Traced) else g
    shape = plain.shape if hasattr(plain, "shape") else np.shape(plain)
    if shape != aval.shape:
        g = unbroadcast(g, shape, aval.shape)
    elif aval.kind == "python" and type(plain) is float:
        return g
    dtype = dtype_of(g)
    if dtype.kind == "c" and aval.dtype.kind == "f":
        g = np.real(g)
    if dtype_of(g) != aval.dtype and aval.kind != "python":
        dtype = native(aval.dtype)  # as NumPy's own results are
        g = g if dtype_of(g) == dtype else ASTYPE(g, dtype=dtype)
    return g


def multiple(g: Any, y: Any) -> Any:
    """By what a cotangent is a multiple of the result ``y``, if it is known to be one; None otherwise.

    ``norm(x) ** 2`` is smooth where ``norm(x)`` is not: a rule that divides by ``y`` need not divide what has that factor.
    """
    h = g.over(y) if isinstance(g, Traced) else None
    return h if h is None or np.shape(h) == np.shape(y) else np.broadcast_to(h, np.shape(y))


def known(value: Any) -> Any:
    """The value of an option: a traced number is looked at, and becomes Python's."""
    if type(value) is tuple:
        return tuple(map(known, value))
    if not isinstance(value, Traced):
        return value
    number: Any = value
    kind = dtype_of(value).kind
    return bool(number) if kind == "b" else int(number) if kind in "iu" else float(number)


def as_numpy(value: Any) -> Any:
    """A Python number with NumPy's arithmetic: ``1.0 / 0.0`` is inf."""
    return np.asarray(value)[()] if isinstance(value, (int, float, complex)) else value


def nonzero(y: Any) -> Any:
    """A divisor: ``y`` where it is not zero, else infinity, which makes the quotient zero."""
    return np.where(y == 0, np.inf, y)


def dtype_of(x: Any) -> np.dtype[Any]:
    return x.dtype if hasattr(x, "dtype") else np.result_type(x)


def unbroadcast(g: Any, shape: tuple[int, ...], target: tuple[int, ...]) -> Any:
    """Undo broadcasting ``target`` to ``shape``: sum over the axes that were added or stretched.

    A ``g`` smaller than ``target`` is broadcast to it: its rule said that all elements are alike.
    """
    total: Any = REGISTRY[np.sum]
    extra = len(shape) - len(target)
    if extra > 0:
        g = total(g, axis=tuple(range(extra)) if extra > 1 else 0)
        shape = shape[extra:]
    padded = (1,) * (len(target) - len(shape)) + shape
    axes = tuple([i for i, (have, want) in enumerate(zip(padded, target, strict=True)) if want == 1 and have != 1])
    if axes:
        g = np.reshape(g, padded) if padded != shape else g
        g = total(g, axis=axes if len(axes) > 1 else axes[0], keepdims=True)
        shape = tuple(1 if i in axes else n for i, n in enumerate(padded))
    return g if shape == target else spread(g, target)


def spread(g: Any, shape: tuple[int, ...]) -> Any:
    """``g`` broadcast to a shape."""
    if isinstance(g, Traced) or math.prod(shape) > 4096:
        return np.broadcast_to(g, shape)
    result = np.empty(shape, dtype_of(g))  # several times as fast for a small one
    result[...] = g
    return result


def expand(g: Any, a: Any, axis: Any, keepdims: bool = False) -> Any:
    """The cotangent of a reduction of ``a`` over ``axis``, with the reduced axes back as ones."""
    ndim = getattr(a, "ndim", 0)
    if keepdims or ndim == 0 or not getattr(g, "ndim", 0):
        return g
    if axis is None:
        return np.reshape(g, (1,) * ndim)
    insert: Any = REGISTRY[np.expand_dims]
    if not isinstance(axis, tuple):
        return insert(g, axis=axis % ndim)
    axes = tuple(sorted([i % ndim for i in axis]))
    return insert(g, axis=axes if len(axes) > 1 else axes[0]) if axes else g


def count(a: Any, axis: Any) -> int:
    """How many elements of ``a`` a reduction over ``axis`` puts together."""
    shape = np.shape(a)
    if axis is None or not shape:
        return math.prod(shape)
    return math.prod(shape[operator.index(i)] for i in (axis if isinstance(axis, tuple) else (axis,)))


# -- sample inputs for the generic tests ---------------------------------------------------------------------------


class A:
    """A random array in a sample: ``A(3, 4)`` of that shape, ``A()`` 0-d.

    Values are uniform in ``[lo, hi]``. ``kind``: ``"float"`` (the dtype under test), ``"int"``, ``"bool"``, ``"spd"``
    (symmetric positive definite), ``"well"`` (a well-conditioned matrix), ``"distinct"`` (no two values close).
    """

    def __init__(self, *shape: int, lo: float = -2.0, hi: float = 2.0, kind: str = "float") -> None:
        self.shape, self.lo, self.hi, self.kind = shape, lo, hi, kind

    def __repr__(self) -> str:
        return f"A({', '.join(map(str, self.shape))}{'' if self.kind == 'float' else f', kind={self.kind!r}'})"


class Sample:
    """Arguments of one call for the tests; each ``A`` in them, in lists and tuples too, becomes a random array."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __repr__(self) -> str:
        return f"({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


def ops_of(*keys: Any) -> set[Any]:
    """The operations of these NumPy functions and ops."""
    return {key if isinstance(key, Op) else REGISTRY[key] for key in keys}
