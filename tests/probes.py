# ruff: noqa
"""Small programs as users write them, each of which reads something that then changes, for ``test_staleness.py``.

``PROBES`` has ``(name, function, changes, kind of derivative)``; ``reset()`` comes first.
"""

from __future__ import annotations

import abc, argparse, array, collections, configparser, contextlib, contextvars, copy, decimal, enum, functools, heapq, itertools
import inspect, json, math, operator, re, statistics, string, sys, threading, types, typing

import numpy as np

try:
    import scipy.integrate as sig
    import scipy.interpolate as spi
    import scipy.optimize as spo
    import scipy.sparse as spp
    import scipy.special as sps
    import scipy.stats as sst
except ImportError:
    sps = None

from symgrad import elementwise_grad, grad, hessian, hvp, jacobian, jvp, linearize, stop_gradient, value_and_grad, vjp

PROBES = []


def P(name, fun, *changes, kind=grad):
    PROBES.append((name, fun, changes, kind))


def setg(**values):
    return lambda: globals().update(values)


W = 2.0
L = [2.0, 3.0]
D = {"a": 2.0, "b": 3.0}
A = np.array([2.0, 3.0])
N = 2
FL = True
NS = types.SimpleNamespace(w=2.0, o=types.SimpleNamespace(r=1.0))
LL = [[1.0, 2.0], [3.0, 4.0]]
NAMES = ["a", "b"]
M = np.eye(2)


def reset():
    globals().update(
        EPS=0.1,
        W=2.0,
        L=[2.0, 3.0],
        D={"a": 2.0, "b": 3.0},
        A=np.array([2.0, 3.0]),
        N=2,
        FL=True,
        NS=types.SimpleNamespace(w=2.0, o=types.SimpleNamespace(r=1.0)),
        LL=[[1.0, 2.0], [3.0, 4.0]],
        NAMES=["a", "b"],
        M=np.eye(2),
    )


sW = setg(W=3.0)


def g1(x):
    def inner():
        return W

    fs = [inner]
    return np.sum(x) * fs[0]()


P("local list of functions", g1, sW)


def g2(x):
    class K:
        w = W

        def m(self):
            return self.w * 2

    return np.sum(x) * K().m()


P("local class", g2, sW)


def k1(x):
    class K:
        n, w = N, W
        __hidden = W

        def other(self):
            W = N = 0.0  # names of its own
            return W + N

        def power(self, v):
            return v**self.n * W + self.__hidden

    return np.sum(K().power(x)) * K.w


P("local class, its method", k1, sW, setg(N=3))


def _extended(kind):
    kind.extra = W * 3.0
    return kind


def k2(x):
    @_extended
    class K:
        pass

    return np.sum(x) * K.extra


P("local class, decorated", k2, sW)


class _Gain:
    gain = 2.0

    def out(self, v):
        return v * self.gain * W

    def __getitem__(self, i):
        return W * i


def k3(x):
    class K(_Gain):
        def out(self, v):
            return super().out(v) * self.gain

    return np.sum(K().out(x)) + K()[2] * x[0]


P("local class, its base", k3, sW, lambda: setattr(_Gain, "gain", 5.0), lambda: setattr(_Gain, "gain", 2.0))


class _Registered:
    def __init_subclass__(cls):
        cls.factor = W


def k4(x):
    class K(_Registered):
        pass

    return np.sum(x) * K.factor


P("local class, told to its base", k4, sW)


class _Named:
    def __set_name__(self, owner, name):
        self.value = W

    def __get__(self, instance, kind):
        return self.value


def k5(x):
    class K:
        item = _Named()

    return np.sum(x) * K().item


P("local class, its descriptor", k5, sW)


class _Meta(type):
    def __new__(cls, name, bases, space):
        return super().__new__(cls, name, bases, {**space, "factor": W})


def k6(x):
    class K(metaclass=_Meta):
        pass

    return np.sum(x) * K.factor


P("local class, its class", k6, sW)


def k7(x):
    import dataclasses

    @dataclasses.dataclass
    class D:
        a: float = W
        n: int = N
        f: list = dataclasses.field(default_factory=lambda: [W])

        def total(self):
            return self.a * self.f[0] ** self.n

    return np.sum(x) * D().total() + D(x[0]).total()


P("local dataclass", k7, sW, setg(N=3))


def k8(x):
    class Pair(typing.NamedTuple):
        a: float
        b: float = W

    return Pair(np.sum(x)).b * Pair(x[0]).a


P("local typed tuple", k8, sW)


def k9(x):
    if FL:

        class K:
            def get(self):
                return W

    else:

        class K:
            def get(self):
                return 3 * W

    return np.sum(x) * K().get()


P("local class by a flag", k9, sW, setg(FL=False))


def g3(x):
    f = functools.partial(lambda a, b: a * b * W, 2.0)
    return np.sum(f(x))


P("partial local", g3, sW)


def g4(x):
    return np.sum(np.apply_along_axis(lambda r: r * W, 0, np.ones((2, 2)))[0] * x)


P("apply_along_axis", g4, sW)


def g5(x):
    return np.sum(np.piecewise(np.array([1.0, -1.0]), [np.array([True, False])], [lambda v: v * W, lambda v: v]) * x)


P("piecewise", g5, sW)


def g6(x):
    return np.sum(np.fromfunction(lambda i: i * W, (2,)) * x)


P("fromfunction", g6, sW)


def g7(x):
    return np.sum(np.vectorize(lambda a: a * W)(np.ones(2)) * x)


P("vectorize local", g7, sW)


def g8(x):
    return np.sum(np.fromiter((v * W for v in (1.0, 2.0)), float) * x)


P("fromiter", g8, sW)


def g9(x):
    return np.sum(np.array([v * W for v in L]) * x)


P("array of products", g9, sW, lambda: L.__setitem__(0, 9.0))


def g10(x):
    return np.sum(np.array(LL) @ x)


P("nested list array", g10, lambda: LL[0].__setitem__(1, 9.0))


def g11(x):
    return np.sum(np.asarray(LL[0]) * x)


P("asarray", g11, lambda: LL[0].__setitem__(1, 9.0))


def g12(x):
    return np.sum(np.float64(W) * x) + float(N) * x[0] + int(W) * x[1] + complex(W).real * x[0]


P("casts", g12, sW, setg(N=5))


def g13(x):
    return np.sum(x) * max(L) + min(D.values()) * x[0] + sorted(D.items(), key=lambda kv: -kv[1])[0][1] * x[1]


P("max min sorted", g13, lambda: L.append(7.0), lambda: D.update(a=9.0))
P("fsum", lambda x: np.sum(x) * math.fsum(L) + math.prod(L) * x[0] + statistics.mean(L) * x[1], lambda: L.append(7.0))
P("json", lambda x: np.sum(x) * json.loads(json.dumps(D))["a"], lambda: D.update(a=9.0))
P("deepcopy", lambda x: np.sum(x) * copy.deepcopy(D)["a"], lambda: D.update(a=9.0))
P("copy obj", lambda x: np.sum(x) * copy.copy(NS).w, lambda: setattr(NS, "w", 9.0))
P("re", lambda x: np.sum(x) * len(re.findall("a", "".join(NAMES))), lambda: NAMES.append("a"))
P("format", lambda x: np.sum(x) * float("{:.2f}".format(W)), sW)
P("format list", lambda x: np.sum(x) * len("{}".format(L)), lambda: L.append(3.0))
P("percent", lambda x: np.sum(x) * float("%g" % W), sW)
P("fstring", lambda x: np.sum(x) * float(f"{W:.1f}"), sW)
P("fstring expr", lambda x: np.sum(x) * float(f"{W * 2!r}"), sW)
P("fstring width", lambda x: np.sum(x) * len(f"{'a':>{N}}"), setg(N=7))
P("str join", lambda x: np.sum(x) * len(",".join(NAMES)), lambda: NAMES.append("ccc"))
P("str method arg", lambda x: np.sum(x) * len("x".ljust(N)), setg(N=7))
P("list mult", lambda x: np.sum(np.array([1.0] * N)) * np.sum(x), setg(N=7))
P("np.zeros(N)", lambda x: np.sum(np.ones(N)) * np.sum(x), setg(N=7), setg(N=9), setg(N=3))
P("np.full", lambda x: np.sum(np.full(2, W) * x), sW)
P("np.arange", lambda x: np.sum(np.arange(N) * 1.0) * np.sum(x), setg(N=7))
P("linspace", lambda x: np.sum(np.linspace(0, W, 5)) * np.sum(x), sW)
P("eye", lambda x: np.sum(np.eye(2) * W @ x), sW)
P("diag", lambda x: np.sum(np.diag(L) @ x), lambda: L.__setitem__(0, 9.0))
P("where", lambda x: np.sum(np.where(A > 2.5, x, 0.0)), lambda: A.__setitem__(0, 9.0))
P("clip", lambda x: np.sum(np.clip(x, -W / 4, W / 4)), setg(W=0.1))
P("power", lambda x: np.sum(np.abs(x) ** W), sW, setg(W=0.0))
P("einsum str", lambda x: np.sum(np.einsum(NAMES[0] + "," + NAMES[0], x, A)), lambda: A.__setitem__(0, 9.0))
P("axis", lambda x: np.sum(np.sum(np.outer(x, A), axis=N - 2) ** 2), setg(N=3))
P("reshape", lambda x: np.sum(np.reshape(x, (N, -1))[0]), setg(N=1))
P("cumsum", lambda x: np.cumsum(L)[-1] * np.sum(x), lambda: L.append(5.0))
P("interp", lambda x: np.sum(np.interp(x, A, np.array([0.0, 1.0]))), lambda: A.__setitem__(0, -3.0))
P("interp list", lambda x: np.sum(x) * np.interp(2.5, L, [0.0, 1.0]), lambda: L.__setitem__(0, 1.0))
P("searchsorted", lambda x: np.sum(x) * np.searchsorted(A, 2.5), lambda: A.__setitem__(0, 2.9))
P("searchsorted list", lambda x: np.sum(x) * np.searchsorted(L, 2.5), lambda: L.__setitem__(1, 2.1))
P("polyval", lambda x: np.sum(np.polyval(L, x)), lambda: L.__setitem__(1, 2.1))
P("polyfit", lambda x: np.sum(x) * np.polyfit(np.arange(2.0), A, 1)[0], lambda: A.__setitem__(1, 12.1))
P("linalg", lambda x: np.sum(np.linalg.solve(M, x)), lambda: M.__setitem__((0, 1), 2.0))
P("linalg eig", lambda x: np.sum(x) * np.linalg.eigvalsh(M)[0], lambda: M.__setitem__((0, 0), -2.0))
P("unique", lambda x: np.sum(x) * len(np.unique(A)), lambda: A.__setitem__(0, 3.0))
P("histogram", lambda x: np.sum(x) * np.histogram(A, bins=2)[0][0], lambda: A.__setitem__(0, 3.0))
P("percentile", lambda x: np.sum(x) * np.percentile(A, 30), lambda: A.__setitem__(0, 9.0))
P("argsort", lambda x: np.sum(x[np.argsort(A)] * np.array([1.0, 5.0])), lambda: A.__setitem__(0, 9.0))
P("nonzero", lambda x: np.sum(x[np.nonzero(A > 2.5)[0]]), lambda: A.__setitem__(0, 9.0))
P("tuple(A)", lambda x: np.sum(x) * tuple(A)[0], lambda: A.__setitem__(0, 9.0))
P("list(A)", lambda x: np.sum(x) * list(A)[0], lambda: A.__setitem__(0, 9.0))
P("dict comp", lambda x: np.sum(x) * {k: v for k, v in D.items()}["a"], lambda: D.update(a=9.0))
P("zip dict", lambda x: np.sum(x) * dict(zip(NAMES, L))["a"], lambda: L.__setitem__(0, 9.0), lambda: NAMES.reverse())
P("enumerate", lambda x: np.sum(x) * [i for i, n in enumerate(NAMES) if n == "b"][0], lambda: NAMES.insert(0, "z"))
P("any gen", lambda x: np.sum(x) * (2.0 if any(n == "a" for n in NAMES) else 3.0), lambda: NAMES.remove("a"))
P("set", lambda x: np.sum(x) * len(set(NAMES)), lambda: NAMES.append("q"))
P("Counter", lambda x: np.sum(x) * collections.Counter(NAMES)["a"], lambda: NAMES.append("a"))
P("product", lambda x: np.sum(x) * sum(a * b for a, b in itertools.product(L, L)), lambda: L.__setitem__(0, 9.0))
P("chain", lambda x: np.sum(x) * sum(itertools.chain(L, L)), lambda: L.__setitem__(0, 9.0))
P("islice", lambda x: np.sum(x) * sum(itertools.islice(L, N)), setg(N=1))
P("repeat", lambda x: np.sum(x) * sum(itertools.repeat(W, 2)), sW)
P("starmap", lambda x: np.sum(x) * sum(itertools.starmap(lambda a, b: a * b * W, LL)), sW, lambda: LL[0].__setitem__(0, 9.0))
P("attrgetter", lambda x: np.sum(x) * operator.attrgetter("o.r")(NS), lambda: setattr(NS.o, "r", 9.0))
P("methodcaller", lambda x: np.sum(x) * operator.methodcaller("index", 3.0)(L), lambda: L.insert(0, 1.0))
P("getattr chain", lambda x: np.sum(x) * functools.reduce(getattr, ["o", "r"], NS), lambda: setattr(NS.o, "r", 9.0))
P("ns dict", lambda x: np.sum(x) * NS.__dict__.get("w"), lambda: setattr(NS, "w", 9.0))
P("repr", lambda x: np.sum(x) * len(repr(NS)), lambda: setattr(NS, "w", 9.123))
P("eq ns", lambda x: np.sum(x) * (2.0 if NS == types.SimpleNamespace(w=2.0, o=NS.o) else 3.0), lambda: setattr(NS, "w", 9.123))
P("hash tuple", lambda x: np.sum(x) * {(2.0, 3.0): 1.0, (9.0, 3.0): 5.0}[tuple(L)], lambda: L.__setitem__(0, 9.0))
P("isinstance", lambda x: np.sum(x) * (2.0 if isinstance(W, float) else 3.0), setg(W=2))
P("type is", lambda x: np.sum(x) * (2.0 if type(W) is float else 3.0), setg(W=np.float64(2)))
P("is", lambda x: np.sum(x) * (2.0 if L is LL else 3.0), lambda: globals().update(LL=L))
P("is2", lambda x: np.sum(x) * (2.0 if NS.o is NS else 3.0), lambda: setattr(NS, "o", NS))
P("is float", lambda x: np.sum(x) * (2.0 if W is None else 3.0), setg(W=None))
P("is not obj", lambda x: np.sum(x) * (2.0 if NS is not None else 3.0), setg(NS=None))
P("dict is None", lambda x: np.sum(x) * (2.0 if D is None else 3.0), setg(D=None))
P("fn is", lambda x: np.sum(x) * (2.0 if g1 is g2 else 3.0), lambda: globals().update(g1=g2))
P("callable", lambda x: np.sum(x) * (2.0 if callable(W) else 3.0), setg(W=abs))
P("tern nested", lambda x: np.sum(x) * (W if FL and N > 1 or not L else 3.0), sW, setg(N=0), setg(FL=False), lambda: L.clear())


def t1(x):
    try:
        return np.sum(x) * D["zz"]
    except KeyError:
        return np.sum(x) * W


P("try", t1, sW, lambda: D.update(zz=9.0))


def t2(x):
    for k in NAMES:
        if k in D:
            return np.sum(x) * D[k]
    return np.sum(x)


P("search", t2, lambda: D.pop("a"), lambda: NAMES.reverse(), lambda: D.clear())


def t3(x):
    s = 0.0
    i = 0
    while i < len(L):
        s = s + L[i] * x[0]
        i += 1
    return s


P("while len", t3, lambda: L.append(3.0), lambda: L.clear())


def t4(x):
    stack = [LL]
    s = 0.0
    while stack:
        top = stack.pop()
        if isinstance(top, list):
            stack.extend(top)
        else:
            s = s + top * x[0]
    return s


P("recursive tree", t4, lambda: LL.append(3.0), lambda: LL[0].append(2.0), lambda: LL[0].__setitem__(0, 9.0))


def walk(t, x):
    return sum(walk(v, x) for v in t) if isinstance(t, list) else t * x[0]


P("walk", lambda x: walk(LL, x), lambda: LL.append(3.0), lambda: LL[0].append(2.0), lambda: LL[0].__setitem__(0, 9.0))


def t5(x, ws):
    y = x
    for w in ws:
        y = np.tanh(w @ y)
    return np.sum(y)


WS = [np.eye(2), np.eye(2) * 2]
P(
    "layers",
    lambda x: t5(x, WS),
    lambda: WS.append(np.ones((2, 2))),
    lambda: WS[0].__setitem__((0, 1), 3.0),
    lambda: WS.reverse(),
)


def t6(x):
    p = dict(D)
    p["a"] = p["a"] * 2
    p.update(c=1.0)
    return np.sum(x) * sum(p.values())


P("dict copy", t6, lambda: D.update(a=9.0), lambda: D.update(q=9.0))


def t7(x):
    l = list(L)
    l.append(W)
    l[0] *= 2
    l.sort(reverse=True)
    return np.sum(x) * l[0]


P("list copy", t7, lambda: L.__setitem__(0, 9.0), sW)


def t8(x):
    l = L[:]
    l[0] = l[0] + 1
    del l[1]
    return np.sum(x) * sum(l)


P("slice copy", t8, lambda: L.__setitem__(0, 9.0), lambda: L.append(9.0))


def t9(x):
    B = A.copy()
    B[0] = 5.0
    return np.sum(B * x)


P("array copy", t9, lambda: A.__setitem__(1, 9.0))


def t10(x):
    y = np.zeros_like(x)
    y[:] = A
    y[N - 1] = x[0]
    return np.sum(y * x)


P("zeros_like write", t10, lambda: A.__setitem__(0, 9.0), setg(N=1))


def t11(x):
    rows = []
    for a in A:
        rows.append(a * x)
    return np.sum(np.stack(rows))


P("stack", t11, lambda: A.__setitem__(0, 9.0), setg(A=np.arange(3.0)))


def t12(x):
    return sum(a * b for a, b in zip(A, x))


P(
    "zip arrays",
    t12,
    lambda: A.__setitem__(0, 9.0),
)


def t13(x):
    gen = (w * 2 for w in L)
    nxt = next(gen)
    return np.sum(x) * nxt + sum(gen) * x[0]


P("gen next", t13, lambda: L.__setitem__(0, 9.0), lambda: L.__setitem__(1, 9.0))


def t14(x):
    it = iter(L)
    a = next(it)
    b = next(it, 1.0)
    return a * x[0] + b * x[1]


P("iter next", t14, lambda: L.__setitem__(0, 9.0), lambda: L.pop())


def t15(x):
    a, *b = L
    (c, d), e = LL
    return a * x[0] + sum(b) * x[1] + c * d * e[0] * x[0]


P("unpack", t15, lambda: L.append(9.0), lambda: LL[1].__setitem__(0, 7.0), lambda: LL[0].__setitem__(0, 7.0))


def t16(x):
    with np.errstate(all="ignore"):
        return np.sum(x) * W


P("errstate", t16, sW)


@contextlib.contextmanager
def cm():
    yield W


def t17(x):
    with cm() as w:
        return np.sum(x) * w


P("contextmanager", t17, sW)


def t18(x):
    with contextlib.suppress(KeyError):
        return np.sum(x) * D["zz"]
    return np.sum(x) * W


P("suppress", t18, sW, lambda: D.update(zz=9.0))


def deco(f):
    @functools.wraps(f)
    def w(*a, **k):
        return f(*a, **k) * W

    return w


@deco
def dd(x):
    return np.sum(x) * N


P("decorated root", dd, sW, setg(N=7))


class Call:
    def __init__(s):
        s.w = 2.0

    def __call__(s, x):
        return np.sum(x) * s.w * W


co = Call()
P("callable root", co, sW, lambda: setattr(co, "w", 9.0))
P("partial root", functools.partial(lambda w, x: np.sum(x) * w * W, 2.0), sW, kind=functools.partial(grad))
pr = functools.partial(lambda x, w: np.sum(x) * w[0], w=L)
P("partial list root", functools.partial(lambda x, w: np.sum(x) * w[0], w=L), lambda: L.__setitem__(0, 9.0))


class Mod:
    def __init__(s, n):
        s.n = n
        s.subs = []
        s.params = {"w": np.ones(2) * n}

    def forward(s, x):
        y = x * s.params["w"]
        for m in s.subs:
            y = m.forward(y)
        return y

    def __call__(s, x):
        return np.sum(s.forward(x) ** 2)


root = Mod(1.0)
root.subs = [Mod(2.0), Mod(3.0)]
root.subs[0].subs = [Mod(0.5)]
P(
    "modules",
    root,
    lambda: root.subs[0].subs[0].params["w"].__setitem__(0, 7.0),
    lambda: root.subs.append(Mod(4.0)),
    lambda: root.subs.reverse(),
    lambda: root.params.update(w=np.zeros(2)),
)
P("hessian", lambda x: np.sum(x**3) * W, sW, kind=hessian)
P("jac", lambda x: x**2 * A, lambda: A.__setitem__(0, 9.0), kind=jacobian)
P("elementwise", lambda x: x**2 * A, lambda: A.__setitem__(0, 9.0), kind=elementwise_grad)
P(
    "vg aux",
    lambda x: (np.sum(x) * W, (W, L, D["a"], NAMES)),
    sW,
    lambda: L.__setitem__(0, 9.0),
    lambda: NAMES.append("z"),
    kind=functools.partial(value_and_grad, has_aux=True),
)
P("linearize", lambda x: linearize(lambda y: np.sum(y**2) * W, x)[1](x), sW)
P("stop_gradient", lambda x: np.sum(x) * stop_gradient(np.sum(x) * W), sW)
P("stop_gradient2", lambda x: np.sum(x) * stop_gradient(W), sW)
P("hvp", lambda x: np.sum(hvp(lambda y: np.sum(y**3) * W)(x, A)), sW, lambda: A.__setitem__(0, 9.0))
P("hvp const", lambda x: np.sum(x) * np.sum(hvp(lambda y: np.sum(y**3) * W)(A, A)), sW, lambda: A.__setitem__(0, 9.0))
P("grad const arr", lambda x: np.sum(x) * np.sum(grad(lambda y: np.sum(y**3) * W)(A)), sW, lambda: A.__setitem__(0, 9.0))
P("grad const list", lambda x: np.sum(x) * grad(lambda y: y[0] * y[1] * W)(L)[0], sW, lambda: L.__setitem__(1, 9.0))
P("grad const dict", lambda x: np.sum(x) * grad(lambda y: y["a"] * y["b"])(D)["a"], lambda: D.update(b=9.0))
P("jac inside", lambda x: np.sum(jacobian(lambda y: y * A * W)(x) @ x), sW, lambda: A.__setitem__(0, 9.0))
P("vjp const", lambda x: np.sum(x) * np.sum(vjp(lambda y: y * A * W, A)[1](A)[0]), sW, lambda: A.__setitem__(0, 9.0))


def newton():
    t = 1.0
    for _ in range(5):
        t = t - (t * t - W) / (2 * t)
    return t


P("newton", lambda x: np.sum(x) * newton(), sW)


def newton2():
    t = 1.0
    while abs(t * t - W) > 1e-9:
        t = t - (t * t - W) / (2 * t)
    return t


P("newton while", lambda x: np.sum(x) * newton2(), sW, setg(W=50.0))
P("range N", lambda x: sum([x[0] * i for i in range(N)]), setg(N=5), setg(N=6), setg(N=3))


def loopy(x):
    s = x[0]
    for i in range(N * 3):
        s = s * W + LL[i % 2][0]
    return s


P("rolled", loopy, sW, setg(N=3), lambda: LL[0].__setitem__(0, 9.0))


class E(enum.Enum):
    A = "a"
    B = "b"

    @property
    def gain(self):
        return W if self is E.A else 1.0


EE = E.A
P("enum prop", lambda x: np.sum(x) * EE.gain, sW, setg(EE=E.B))
P("enum lookup", lambda x: np.sum(x) * D[E.A.value], lambda: D.update(a=9.0))
P("enum iter", lambda x: np.sum(x) * sum(D[e.value] for e in E), lambda: D.update(a=9.0))
P("enum call", lambda x: np.sum(x) * D[E(NAMES[0]).value], lambda: NAMES.reverse())
T = typing.NamedTuple("T", [("a", float), ("b", list)])
TT = T(2.0, [3.0])
P("namedtuple", lambda x: np.sum(x) * TT.a * TT.b[0], lambda: TT.b.__setitem__(0, 9.0), setg(TT=T(5.0, [1.0])))


class Abs(abc.ABC):
    @abc.abstractmethod
    def f(self): ...


class Con(Abs):
    w = 2.0

    def f(self):
        return self.w * W


con = Con()
P("abc", lambda x: np.sum(x) * con.f(), sW, lambda: setattr(Con, "w", 9.0))


class Meta(type):
    @property
    def mw(cls):
        return W


class WithMeta(metaclass=Meta):
    pass


P("meta prop", lambda x: np.sum(x) * WithMeta.mw, sW)


class Desc:
    def __get__(s, o, t):
        return W


class HasDesc:
    d = Desc()


hd = HasDesc()
P("descriptor", lambda x: np.sum(x) * hd.d, sW)
P("descriptor local", lambda x: np.sum(x) * HasDesc().d, sW)


class Reg(dict):
    def __getattr__(s, k):
        if k not in s:
            raise AttributeError(k)
        return s[k]


reg = Reg(w=2.0)
P("attrdict", lambda x: np.sum(x) * reg.w, lambda: reg.update(w=9.0))


class Lazy:
    def __init__(s):
        s._c = None

    @property
    def v(s):
        if s._c is None:
            s._c = W
        return s._c


lz = Lazy()
P("lazy", lambda x: np.sum(x) * lz.v, sW)
P(
    "np const",
    lambda x: np.sum(x) * np.pi * math.e,
)
P("type(self)", lambda x: np.sum(x) * type(con).w, lambda: setattr(Con, "w", 19.0))
P("__class__", lambda x: np.sum(x) * con.__class__.w, lambda: setattr(Con, "w", 9.0))
P("method via class", lambda x: np.sum(x) * Con.f(con), sW, lambda: setattr(Con, "f", lambda s: 1.0))
P("fn.__name__", lambda x: np.sum(x) * len(newton.__name__), lambda: setattr(newton, "__name__", "q"))


def dfl(a=2.0):
    return a


P("fn.__defaults__", lambda x: np.sum(x) * (dfl.__defaults__[0]), lambda: setattr(dfl, "__defaults__", (9.0,)))


def dfl(a=2.0):
    return a


P("globals()", lambda x: np.sum(x) * globals()["W"], sW)
P("eval", lambda x: np.sum(x) * eval("W"), sW)
P(
    "locals",
    lambda x: np.sum(x) * len(locals()),
)
P("sys.modules", lambda x: np.sum(x) * sys.modules[__name__].W, sW)
me = sys.modules[__name__]
P("main", lambda x: np.sum(x) * me.W, sW)
P("array attr", lambda x: np.sum(x) * A.nbytes * A.itemsize * A.strides[0], setg(A=np.ones(3, "f4")))
P("array flags", lambda x: np.sum(x) * (2.0 if A.flags.writeable else 3.0), lambda: A.setflags(write=False))
P("array ctypes", lambda x: np.sum(x) * (2.0 if A.base is None else 3.0), setg(A=np.ones(4)[::2]))
P("array T", lambda x: np.sum(x @ M.T), lambda: M.__setitem__((0, 1), 3.0))
P("array contains", lambda x: np.sum(x) * (2.0 if 3.0 in A else 5.0), lambda: A.__setitem__(1, 9.0))
P("array eq", lambda x: np.sum(x) * (2.0 if (A == np.array([2.0, 3.0])).all() else 5.0), lambda: A.__setitem__(1, 9.0))
P("array_equal", lambda x: np.sum(x) * (2.0 if np.array_equal(A, [2.0, 3.0]) else 5.0), lambda: A.__setitem__(1, 9.0))
P("allclose", lambda x: np.sum(x) * (2.0 if np.allclose(A, [2.0, 3.0]) else 5.0), lambda: A.__setitem__(1, 9.0))
P("isnan", lambda x: np.sum(x) * (2.0 if np.isnan(A).any() else 5.0), lambda: A.__setitem__(1, np.nan))
P("argmax idx", lambda x: x[np.argmax(A)] * 2, lambda: A.__setitem__(0, 9.0))
P("astype int", lambda x: np.sum(x[A.astype(int) - 2]), lambda: A.__setitem__(1, 2.0))
P("tobytes", lambda x: np.sum(x) * len(A.tobytes()), setg(A=np.ones(5)))
P("dtype name", lambda x: np.sum(x) * len(A.dtype.name), setg(A=np.ones(2, "f4")))
P("np.shape", lambda x: np.sum(x) * np.shape(A)[0] * np.ndim(A) * np.size(A), setg(A=np.ones((3, 2))))
P("shape list", lambda x: np.sum(x) * np.shape(LL)[0], lambda: LL.append([1.0, 2.0]))
P("broadcast", lambda x: np.sum(np.broadcast_to(W, x.shape) * x), sW)
P("meshgrid", lambda x: np.sum(np.meshgrid(L, L)[0]) * x[0], lambda: L.append(1.0))
P("np.r_", lambda x: np.sum(np.r_[A, W]) * x[0], sW, lambda: A.__setitem__(0, 9.0))
P("np.c_", lambda x: np.sum(np.c_[A, A]) * x[0], lambda: A.__setitem__(0, 9.0))
P("np.s_", lambda x: np.sum(x[np.s_[N - 1 :]]), setg(N=1))
P("np.ix_", lambda x: np.sum(M[np.ix_([0, 1], [N - 1])]) * x[0], lambda: M.__setitem__((0, 1), 9.0), setg(N=1))
P("np.vander", lambda x: np.sum(np.vander(A, 3) @ np.ones(3)) * x[0], lambda: A.__setitem__(0, 9.0))
P("np.block", lambda x: np.sum(np.block([[M, M]])) * x[0], lambda: M.__setitem__((0, 1), 9.0))
BYTES = np.array([2.0]).tobytes()
P("np.frombuffer", lambda x: np.sum(np.frombuffer(BYTES)) * x[0], lambda: globals().update(BYTES=np.array([9.0]).tobytes()))
BA = bytearray(b"ab")
P("bytearray", lambda x: np.sum(x) * BA[0], lambda: BA.__setitem__(0, 50))
P("bytearray len", lambda x: np.sum(x) * sum(BA), lambda: BA.append(50))
mv = memoryview(bytearray(b"ab"))
P("memoryview", lambda x: np.sum(x) * mv[0], lambda: mv.__setitem__(0, 50))
ar = array.array("d", [2.0, 3.0])
P("array.array", lambda x: np.sum(x) * ar[0], lambda: ar.__setitem__(0, 50.0))
P("array.array np", lambda x: np.sum(np.array(ar) * x), lambda: ar.__setitem__(0, 50.0))
P("array.array sum", lambda x: np.sum(x) * sum(ar), lambda: ar.__setitem__(0, 50.0))
P("array.array for", lambda x: sum([a * x[0] for a in ar]), lambda: ar.__setitem__(0, 50.0))
cv = contextvars.ContextVar("cv", default=2.0)
P("contextvar", lambda x: np.sum(x) * cv.get(), lambda: cv.set(9.0))
tl = threading.local()
tl.w = 2.0
P("thread local", lambda x: np.sum(x) * tl.w, lambda: setattr(tl, "w", 9.0))
cp = configparser.ConfigParser()
cp.read_string("[a]\nw=2.0")
P("configparser", lambda x: np.sum(x) * float(cp["a"]["w"]), lambda: cp.set("a", "w", "9.0"))
P("configparser get", lambda x: np.sum(x) * cp.getfloat("a", "w"), lambda: cp.set("a", "w", "11.0"))
ns = argparse.Namespace(w=2.0)
P("argparse", lambda x: np.sum(x) * ns.w, lambda: setattr(ns, "w", 9.0))
P("decimal ctx", lambda x: np.sum(x) * float(decimal.Decimal(1) / 3), lambda: setattr(decimal.getcontext(), "prec", 3))
P("heapq", lambda x: np.sum(x) * heapq.nsmallest(1, L)[0], lambda: L.__setitem__(0, 0.5))
P("bisect", lambda x: np.sum(x) * __import__("bisect").bisect(L, 2.5), lambda: L.__setitem__(1, 2.1))
P("weird getitem", lambda x: np.sum(x) * L[True], lambda: L.__setitem__(1, 9.0))
P("neg step", lambda x: np.sum(x) * L[::-1][0], lambda: L.__setitem__(1, 9.0))
P("del nested", lambda x: np.sum(x) * NS.o.r, lambda: delattr(NS, "o"), lambda: setattr(NS, "o", types.SimpleNamespace(r=4.0)))
P("int huge", lambda x: np.sum(x) * N, setg(N=10**30), setg(N=3))
P("int->huge lifted", lambda x: np.sum(x) * N, setg(N=3), setg(N=4), setg(N=10**30), setg(N=7))
P("bool lifted", lambda x: np.sum(x) * N, setg(N=3), setg(N=True), setg(N=False))
P("chars", lambda x: np.sum(x) * ord(NAMES[0]), lambda: NAMES.reverse())
P(
    "string const",
    lambda x: np.sum(x) * len(string.digits),
)
P("slices obj", lambda x: np.sum(x[slice(N - 2, None)]), setg(N=3))


# vector class with operators reading globals
EPS = 1e-1


class Vec:
    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return Vec(self.v + o.v * EPS)

    def __mul__(self, k):
        return Vec(self.v * k * EPS)

    __rmul__ = __mul__

    def __getitem__(self, i):
        return self.v[i] * EPS

    def __len__(self):
        return 2

    def norm(self):
        return np.sum(self.v**2) * EPS

    @property
    def total(self):
        return np.sum(self.v) * EPS

    def __matmul__(self, o):
        return np.sum(self.v * o.v)

    def __eq__(self, o):
        return EPS > 1

    def __float__(self):
        return EPS

    def __bool__(self):
        return EPS < 1

    def __iter__(self):
        return iter([self.v[0] * EPS, self.v[1]])

    def __call__(self, y):
        return y * EPS

    def __neg__(self):
        return Vec(-self.v * EPS)

    def __abs__(self):
        return np.sum(np.abs(self.v)) * EPS

    def __contains__(self, k):
        return k < EPS

    def __lt__(self, o):
        return EPS < 1

    def __hash__(self):
        return 3

    def __str__(self):
        return str(EPS)

    def __format__(self, s):
        return str(EPS)

    def __array__(self, dtype=None, copy=None):
        return np.array(EPS)

    def __index__(self):
        return int(EPS > 1)

    def __enter__(self):
        return EPS

    def __exit__(self, *e):
        return EPS > 1

    def __radd__(self, o):
        return Vec(self.v * EPS) if not isinstance(o, Vec) else self

    @classmethod
    def of(cls, v):
        return cls(v * EPS)

    @staticmethod
    def st(v):
        return v * EPS

    k = 3.0


ce = lambda: globals().__setitem__("EPS", 0.3)
ce2 = lambda: globals().__setitem__("EPS", 2.0)
V = {
    "add": lambda x: np.sum((Vec(x) + Vec(x)).v),
    "mul": lambda x: np.sum((Vec(x) * 2.0).v),
    "rmul": lambda x: np.sum((2.0 * Vec(x)).v),
    "get": lambda x: Vec(x)[0],
    "norm": lambda x: Vec(x).norm(),
    "total": lambda x: Vec(x).total,
    "eq": lambda x: np.sum(x) * (2.0 if Vec(x) == Vec(x) else 3.0),
    "ne": lambda x: np.sum(x) * (2.0 if Vec(x) != Vec(x) else 3.0),
    "float": lambda x: np.sum(x) * float(Vec(x)),
    "bool": lambda x: np.sum(x) * (2.0 if Vec(x) else 3.0),
    "not": lambda x: np.sum(x) * (2.0 if not Vec(x) else 3.0),
    "iter": lambda x: sum(v for v in Vec(x)),
    "unpack": lambda x: (lambda a, b: a)(*Vec(x)),
    "call": lambda x: np.sum(Vec(x)(x)),
    "neg": lambda x: np.sum((-Vec(x)).v),
    "abs": lambda x: abs(Vec(x)),
    "in": lambda x: np.sum(x) * (2.0 if 1 in Vec(x) else 3.0),
    "sorted": lambda x: np.sum(sorted([Vec(x), Vec(2 * x)])[0].v),
    "str": lambda x: np.sum(x) * float(str(Vec(x))),
    "fstr": lambda x: np.sum(x) * float(f"{Vec(x)}"),
    "pct": lambda x: np.sum(x) * float("%s" % Vec(x)),
    "array": lambda x: np.sum(x) * np.sin(np.asarray(Vec(x))),
    "index": lambda x: np.sum(x) * [1.0, 2.0][Vec(x)],
    "of": lambda x: np.sum(Vec.of(x).v),
    "st": lambda x: np.sum(Vec.st(x)),
    "sum": lambda x: np.sum(sum([Vec(x), Vec(x)]).v),
    "map": lambda x: np.sum(list(map(Vec.st, [x]))[0]),
    "max": lambda x: np.sum(max([Vec(x), Vec(2 * x)]).v),
    "k": lambda x: np.sum(x) * Vec(x).k,
    "mapabs": lambda x: list(map(abs, [Vec(x)]))[0],
    "any": lambda x: np.sum(x) * (2.0 if any([Vec(x)]) else 3.0),
    "reduce": lambda x: np.sum(functools.reduce(operator.add, [Vec(x), Vec(x)]).v),
    "opadd": lambda x: np.sum(operator.add(Vec(x), Vec(x)).v),
    "listeq": lambda x: np.sum(x) * (2.0 if [Vec(x)] == [Vec(x)] else 3.0),
    "inlist": lambda x: np.sum(x) * (2.0 if Vec(x) in [Vec(2 * x)] else 3.0),
    "with": lambda x: np.sum(x),
    "join": lambda x: np.sum(x) * float("".join([str(Vec(x))])),
    "starred": lambda x: [*Vec(x)][0],
    "enumerate": lambda x: sum(v for i, v in enumerate(Vec(x))),
    "zip": lambda x: sum(v for v, _ in zip(Vec(x), [1, 2])),
    "item": lambda x: Vec(x).v[0] * 3,
}
for nm, f in V.items():
    P("Vec." + nm, f, ce, ce2)


def withvec(x):
    with Vec(x) as e:
        return np.sum(x) * e


P("withvec", withvec, ce)


def unp(x):
    a, b = Vec(x)
    return a


P("unp", unp, ce)


def aug(x):
    v = Vec(x)
    v += Vec(x)
    return np.sum(v.v)


P("aug", aug, ce)


if sps is not None:
    P("scipy gamma", lambda x: np.sum(x) * sps.gamma(W), sW)

    spl = spi.CubicSpline([0, 1, 2], [0.0, 1.0, 4.0])

    P(
        "spline outside",
        lambda x: np.sum(x) * spl(0.5),
        lambda: globals().update(spl=spi.CubicSpline([0, 1, 2], [0.0, 5.0, 4.0])),
    )

    P("spline inside", lambda x: np.sum(x) * spi.CubicSpline(np.arange(2), A)(W - 1.5), sW, lambda: A.__setitem__(0, 9.0))

    P("interp1d inside", lambda x: np.sum(x) * float(spi.interp1d(A, L)(2.5)), lambda: L.__setitem__(0, 9.0))

    P("quad", lambda x: np.sum(x) * sig.quad(lambda t: t * W, 0, 1)[0], sW)

    def qf(t):
        return t * W

    P("quad fn", lambda x: np.sum(x) * sig.quad(qf, 0, 1)[0], sW)

    P("root", lambda x: np.sum(x) * spo.brentq(lambda t: t * t - W, 0, 10), sW)

    P("norm pdf", lambda x: np.sum(x) * sst.norm.pdf(W), sW)

    SP = spp.csr_matrix(np.eye(2))

    P("sparse", lambda x: np.sum(x) * SP.sum(), lambda: SP.data.__setitem__(0, 9.0))

    SP = spp.csr_matrix(np.eye(2))

    SP = spp.csr_matrix(np.eye(2))

    P("sparse", lambda x: np.sum(x) * SP.sum(), lambda: SP.data.__setitem__(0, 9.0))


# special methods that a class gets later


class Bare:
    k = 2.0


class Numbers(list):
    pass


class Number(float):
    pass


def gets(kind, **methods):
    def change():
        for name, method in methods.items():
            setattr(kind, f"__{name}__", method)

    return change


def later(name, read, **methods):
    """A probe of its own classes: ``read(x, one, other)`` of two instances; then the class gets the methods."""
    kind = type(name, (read.__defaults__[0],), {"k": 2.0})
    one, other = kind([2.0, 3.0] if issubclass(kind, list) else 2.0), kind([2.0, 3.0] if issubclass(kind, list) else 2.0)
    P(f"later {name}", lambda x: read(x, one, other), gets(kind, **methods))


class Thing:
    def __init__(self, *_):
        pass


later("eq", lambda x, a, b, kind=Thing: np.sum(x) * (3.0 if a == b else 2.0), eq=lambda a, b: True)
later("ne", lambda x, a, b, kind=Thing: np.sum(x) * (3.0 if a != b else 2.0), eq=lambda a, b: True)
later("bool", lambda x, a, b, kind=Thing: np.sum(x) * (3.0 if a else 2.0), bool=lambda a: False)
later("len", lambda x, a, b, kind=Thing: np.sum(x) * (3.0 if a else 2.0), len=lambda a: 0)
later("in", lambda x, a, b, kind=Thing: np.sum(x) * (3.0 if a in [b] else 2.0), eq=lambda a, b: True)
later("iter", lambda x, a, b, kind=list: np.sum(x) * sum([v for v in a]), iter=lambda a: iter([5.0, 6.0]))
later("sum", lambda x, a, b, kind=list: np.sum(x) * sum(a), iter=lambda a: iter([5.0, 6.0]))
later("len of a list", lambda x, a, b, kind=list: np.sum(x) * len(a), len=lambda a: 7)
later("getitem", lambda x, a, b, kind=list: np.sum(x) * a[0], getitem=lambda a, i: 9.0)
later("contains", lambda x, a, b, kind=list: np.sum(x) * (3.0 if 7.0 in a else 2.0), contains=lambda a, i: True)
later("mul", lambda x, a, b, kind=float: np.sum(x) * (a * 2.0), mul=lambda a, b: 9.0)
later("getattribute", lambda x, a, b, kind=Thing: np.sum(x) * a.k, getattribute=lambda a, name: 9.0)


# objects that stand in a class, and what they hold


class Scaled:
    def __init__(self):
        self.k = 2.0

    def __get__(self, owner, kind):
        return self.k

    def __set__(self, owner, value):
        owner.kept = value * self.k


class Holding:
    read = Scaled()
    written = Scaled()


HOLDING = Holding()


def into_the_descriptor(x):
    made = Holding()
    made.written = 3.0
    return np.sum(x) * made.kept


def in_descriptor(name, k):
    return lambda: setattr(vars(Holding)[name], "k", k)


P("state of a descriptor", lambda x: np.sum(x) * HOLDING.read, in_descriptor("read", 5.0), in_descriptor("read", 7))
P("state of a descriptor that is set", into_the_descriptor, in_descriptor("written", 4.0))


# memory that an object says is its own

LENT = np.array([1.0, 2.0])
LENDING = Thing()
LENDING.__array_interface__ = LENT.__array_interface__
P("__array_interface__", lambda x: np.sum(x * np.asarray(LENDING)), lambda: LENT.__setitem__(0, 5.0))


# what does not change, but may be another one

FOUND = {"pattern": re.compile("a+"), "match": re.match("a*", "aaab")}
P("pattern", lambda x: np.sum(x) * FOUND["pattern"].match("aaa").end(), lambda: FOUND.update(pattern=re.compile("a")))
P("match", lambda x: np.sum(x) * FOUND["match"].end(), lambda: FOUND.update(match=re.match("a*", "ab")))


# what inspect sees of functions


def of_default(x, k=2.0):
    return k * x


def by_signature(x):
    return np.sum(x) * inspect.signature(of_default).parameters["k"].default


P("defaults that inspect sees", by_signature, lambda: setattr(of_default, "__defaults__", (3.0,)))


# libraries that are changed


def put(module, name, value):
    """Something else under a name of a library's, and back again."""
    before = getattr(module, name)
    return lambda: setattr(module, name, value), lambda: setattr(module, name, before)


P("np.sin is replaced", lambda x: np.sum(np.sin(x)), *put(np, "sin", lambda x: x * 3.0))
P("np.linalg.norm is replaced", lambda x: np.linalg.norm(x), *put(np.linalg, "norm", lambda x: np.sum(x * 5.0)))
P("math.pi is replaced", lambda x: np.sum(x) * math.pi, *put(math, "pi", 3.0))
P("json.loads is replaced", lambda x: np.sum(x) * json.loads("[2.0]")[0], *put(json, "loads", lambda text: [5.0]))
if sps is not None:
    P("expit is replaced", lambda x: np.sum(sps.expit(x)), *put(sps, "expit", lambda x: x * 3.0))
