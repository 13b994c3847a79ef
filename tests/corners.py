# ruff: noqa
"""Corners of Python where something outside a function may change, for ``test_staleness.py``.

Each case gives a function of a number and what changes, one after the other.
"""

import abc
import array
import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import json
import operator
import pickle
import re
import statistics
import threading
import types

import numpy as np

from symgrad import grad, hvp, jacobian, jvp, linearize, stop_gradient, vjp

CASES = []


def case(make):
    CASES.append(make)
    return make


@case
def prop_changes():
    class A:
        def __init__(s):
            s.k = 2.0

        @property
        def p(s):
            return s.k * 2

    a = A()

    def f(x):
        return a.p * x * x

    def s():
        a.k += 1

    def s2():
        A.p = property(lambda s: s.k * 5)

    return f, [s, s2]


@case
def getattr_dyn():
    class A:
        def __init__(s):
            s.d = {"k": 2.0}

        def __getattr__(s, n):
            return s.d[n]

    a = A()

    def f(x):
        return a.k * x * x

    def s():
        a.d["k"] = 5.0

    return f, [s]


@case
def class_attr_shadow():
    class A:
        k = 2.0

    a = A()

    def f(x):
        return a.k * x * x

    def s():
        a.k = 3.0

    def s2():
        A.k = 9.0

    def s3():
        del a.k

    return f, [s, s2, s3]


@case
def base_class_attr():
    class B:
        k = 2.0

    class A(B):
        pass

    a = A()

    def f(x):
        return a.k * x * x

    def s():
        A.k = 3.0

    def s2():
        del A.k
        B.k = 7.0

    return f, [s, s2]


@case
def default_mut():
    def f(x, acc=[1.0]):
        return x * x * acc[0]

    def s():
        f.__defaults__[0][0] = 4.0

    def s2():
        f.__defaults__ = ([6.0],)

    return f, [s, s2]


@case
def stateful_decorator():
    st = {"n": 0}

    def deco(fn):
        @functools.wraps(fn)
        def w(x):
            return fn(x) * st["scale"] if "scale" in st else fn(x)

        return w

    @deco
    def f(x):
        return x * x

    def s():
        st["scale"] = 3.0

    def s2():
        st["scale"] = 4.0

    return f, [s, s2]


@case
def thread_local():
    t = threading.local()
    t.k = 2.0

    def f(x):
        return t.k * x * x

    def s():
        t.k = 5.0

    return f, [s]


@case
def dataclass_arr():
    @dataclasses.dataclass
    class P:
        w: np.ndarray
        b: float

    p = P(np.array([1.0, 2.0]), 0.5)

    def f(x):
        return np.sum(p.w) * x * x + p.b * x

    def s():
        p.w = np.array([5.0, 6.0])

    def s2():
        p.w[0] = 9.0

    def s3():
        p.b = 4.0

    return f, [s, s2, s3]


@case
def slots_arr():
    class P:
        __slots__ = ("w",)

    p = P()
    p.w = np.array([1.0, 2.0])

    def f(x):
        return np.sum(p.w * x) * x

    def s():
        p.w = np.array([5.0, 6.0])

    def s2():
        p.w[0] = 9.0

    return f, [s, s2]


@case
def namedtuple_replace():
    P = collections.namedtuple("P", "w b")
    p = P(np.array([1.0, 2.0]), 0.5)

    def f(x):
        return np.sum(p.w * x) * x + p.b

    def s():
        nonlocal p
        p = p._replace(w=np.array([5.0, 6.0]))

    def s2():
        p.w[0] = 9.0

    return f, [s, s2]


@case
def simplenamespace():
    p = types.SimpleNamespace(w=np.array([1.0, 2.0]))

    def f(x):
        return np.sum(p.w * x) * x

    def s():
        p.w = np.array([5.0, 6.0, 7.0])

    def s2():
        p.w[0] = 9.0

    return f, [s, s2]


@case
def view_base():
    base = np.arange(4.0) + 1
    v = base[::2]

    def f(x):
        return np.sum(v * x) * x

    def s():
        base[0] = 7.0

    def s2():
        base[:] = 3.0

    return f, [s, s2]


@case
def loopvar_closure():
    fs = []
    for k in range(3):
        fs.append(lambda x: x * x * k)

    def f(x):
        return sum(h(x) for h in fs)

    def s():
        nonlocal k
        k = 7

    return f, [s]


@case
def list_elem_replaced():
    ws = [np.array([1.0, 2.0]), np.array([3.0])]

    def f(x):
        return sum(np.sum(w * x) for w in ws) * x

    def s():
        ws[1] = np.array([5.0, 6.0])

    def s2():
        ws.append(np.array([1.0]))

    def s3():
        ws[0][0] = 11.0

    return f, [s, s2, s3]


@case
def dict_replaced():
    ws = {"a": np.array([1.0, 2.0])}

    def f(x):
        return sum(np.sum(w * x) for w in ws.values()) * x

    def s():
        ws["a"] = np.array([5.0, 6.0])

    def s2():
        ws["b"] = np.array([5.0, 6.0])

    return f, [s, s2]


@case
def special_added_call():
    class A:
        def go(s, x):
            return x * 2.0

    a = A()

    def f(x):
        return a.go(x) * x

    def s():
        A.go = lambda s, x: x * 7.0

    def s2():
        a.go = lambda x: x * 11.0

    return f, [s, s2]


@case
def special_added_enter():
    class A:
        k = 1.0

        def __enter__(s):
            return s

        def __exit__(s, *a):
            return False

    a = A()

    def f(x):
        with a as q:
            return x * x * q.k

    def s():
        A.__enter__ = lambda s: types.SimpleNamespace(k=5.0)

    return f, [s]


@case
def partial_():
    def h(k, x):
        return k * x * x

    p = functools.partial(h, 2.0)

    def f(x):
        return p(x)

    def s():
        nonlocal p
        p = functools.partial(h, 5.0)

    return f, [s]


@case
def reduce_():
    ks = [1.0, 2.0, 3.0]

    def f(x):
        return functools.reduce(lambda a, b: a * x + b, ks, 0.0)

    def s():
        ks[0] = 4.0

    return f, [s]


@case
def lru():
    st = {"k": 2.0}

    @functools.lru_cache
    def h(n):
        return st["k"] * n

    def f(x):
        return x * x * h(3)

    def s():
        h.cache_clear()
        st["k"] = 5.0

    return f, [s]


@case
def opmod():
    st = {"k": 2.0}
    get = operator.itemgetter("k")

    def f(x):
        return x * x * get(st) + operator.mul(x, x)

    def s():
        st["k"] = 5.0

    return f, [s]


@case
def ctxmgr():
    st = {"k": 1.0}

    @contextlib.contextmanager
    def sc(v):
        old = st["k"]
        st["k"] = v
        yield
        st["k"] = old

    def f(x):
        with sc(3.0):
            return x * x * st["k"]

    return f, []


@case
def ctxmgr_pure():
    st = {"k": 1.0}

    @contextlib.contextmanager
    def sc(v):
        yield v * st["k"]

    def f(x):
        with sc(3.0) as q:
            return x * x * q

    def s():
        st["k"] = 2.0

    return f, [s]


@case
def tryexcept():
    d = {"k": 2.0}

    def f(x):
        try:
            k = d["z"]
        except KeyError:
            k = d["k"]
        return k * x * x

    def s():
        d["z"] = 7.0

    return f, [s]


@case
def assert_msg():
    st = {"k": 2.0}

    def f(x):
        assert x > 0, f"bad {x}"
        return x * x * st["k"]

    def s():
        st["k"] = 3.0

    return f, [s]


@case
def fstring():
    st = {"name": "a"}
    tab = {"p_a": 2.0, "p_b": 5.0}

    def f(x):
        return x * x * tab[f"p_{st['name']}"]

    def s():
        st["name"] = "b"

    def s2():
        tab["p_b"] = 8.0

    return f, [s, s2]


@case
def deepcopy_():
    st = {"w": np.array([1.0, 2.0])}

    def f(x):
        q = copy.deepcopy(st)
        q["w"] = q["w"] * x
        return np.sum(q["w"]) * x

    def s():
        st["w"][0] = 5.0

    return f, [s]


@case
def copy_():
    st = {"w": 2.0}

    def f(x):
        q = copy.copy(st)
        q["w"] = q["w"] * x
        return q["w"] * x

    def s():
        st["w"] = 5.0

    return f, [s]


@case
def class_inside():
    k = 2.0

    def f(x):
        class A:
            def go(s, x):
                return x * x * k

        return A().go(x)

    def s():
        nonlocal k
        k = 5.0

    return f, [s]


@case
def dc_compare():
    @dataclasses.dataclass
    class P:
        a: int

    p, q = P(1), P(1)

    def f(x):
        return x * x * (2.0 if p == q else 3.0)

    def s():
        q.a = 2

    return f, [s]


@case
def tqdm_like():
    class T:
        def __init__(s, it):
            s.it = it

        def __iter__(s):
            for v in s.it:
                yield v

    def f(x):
        t = 0.0
        for i in T(range(4)):
            t = t + x * x * i
        return t

    return f, []


@case
def nested_vjp():
    k = [2.0]

    def f(x):
        out, pb = vjp(lambda t: t * t * k[0], x)
        return pb(1.0)[0] * x

    def s():
        k[0] = 5.0

    return f, [s]


@case
def nested_jvp():
    k = np.array([2.0])

    def f(x):
        return jvp(lambda t: t * t * np.sum(k), (x,), (1.0,))[1] * x

    def s():
        k[0] = 5.0

    def s2():
        nonlocal k
        k = np.array([1.0, 2.0])

    return f, [s, s2]


@case
def nested_jac():
    k = {"a": 2.0}

    def f(x):
        J = jacobian(lambda t: t * np.array([1.0, 2.0]) * k["a"] * t)(x)
        return np.sum(J) * x

    def s():
        k["a"] = 5.0

    return f, [s]


@case
def nested_hvp():
    k = {"a": 2.0}

    def f(x):
        return hvp(lambda t: t**3 * k["a"])(x, 1.0) * x

    def s():
        k["a"] = 5.0

    return f, [s]


@case
def nested_grad_obj():
    class M:
        w = 2.0

    m = M()
    inner = grad(lambda t: t * t * m.w)

    def f(x):
        return inner(x) * x

    def s():
        m.w = 3.0

    def s2():
        nonlocal inner
        inner = grad(lambda t: t**3 * m.w)

    return f, [s, s2]


@case
def linearize_in():
    k = [2.0]

    def f(x):
        y, push = linearize(lambda t: t**3 * k[0], x)
        return push(1.0) * y

    def s():
        k[0] = 4.0

    return f, [s]


@case
def descr():
    class D:
        def __get__(s, o, t):
            return o._k * 2

    class A:
        p = D()

    a = A()
    a._k = 1.0

    def f(x):
        return a.p * x * x

    def s():
        a._k = 4.0

    def s2():
        D.__get__ = lambda s, o, t: 11.0

    return f, [s, s2]


@case
def metaclass_prop():
    class Me(type):
        @property
        def k(c):
            return c._k

    class A(metaclass=Me):
        _k = 2.0

    def f(x):
        return A.k * x * x

    def s():
        A._k = 4.0

    return f, [s]


@case
def dict_missing():
    class D(dict):
        def __missing__(s, k):
            return s.dflt

    d = D()
    d.dflt = 2.0

    def f(x):
        return d["q"] * x * x

    def s():
        d.dflt = 4.0

    def s2():
        d["q"] = 7.0

    return f, [s, s2]


@case
def defaultdict_():
    d = collections.defaultdict(lambda: 2.0)

    def f(x):
        return d["q"] * x * x

    def s():
        d["q"] = 4.0

    return f, [s]


@case
def chainmap():
    a = {"k": 1.0}
    b = {"k": 2.0, "z": 3.0}
    c = collections.ChainMap(a, b)

    def f(x):
        return c["z"] * x * x * c["k"]

    def s():
        a["z"] = 9.0

    def s2():
        del a["k"]

    return f, [s, s2]


@case
def userdict():
    c = collections.UserDict(k=2.0)

    def f(x):
        return c["k"] * x * x

    def s():
        c["k"] = 5.0

    return f, [s]


@case
def mappingproxy():
    d = {"k": 2.0}
    c = types.MappingProxyType(d)

    def f(x):
        return c["k"] * x * x

    def s():
        d["k"] = 5.0

    return f, [s]


@case
def mappingproxy_iter():
    d = {"k": 2.0}
    c = types.MappingProxyType(d)

    def f(x):
        return sum(c.values()) * x * x

    def s():
        d["k"] = 5.0

    def s2():
        d["z"] = 5.0

    return f, [s, s2]


@case
def dict_view():
    d = {"k": 2.0}
    c = d.values()

    def f(x):
        return sum(c) * x * x

    def s():
        d["k"] = 5.0

    return f, [s]


@case
def dict_items_view():
    d = {"k": 2.0}
    c = d.items()

    def f(x):
        t = 0.0
        for k, v in c:
            t = t + v
        return t * x * x

    def s():
        d["k"] = 5.0

    def s2():
        d["b"] = 5.0

    return f, [s, s2]


@case
def bytearray_():
    b = bytearray([2, 3])

    def f(x):
        return b[0] * x * x

    def s():
        b[0] = 5

    return f, [s]


@case
def array_array():
    b = array.array("d", [2.0, 3.0])

    def f(x):
        return b[0] * x * x + sum(b) * x

    def s():
        b[0] = 5

    return f, [s]


@case
def memoryview_():
    b = np.array([2.0, 3.0])
    m = memoryview(b)

    def f(x):
        return m[0] * x * x

    def s():
        b[0] = 5

    return f, [s]


@case
def struct_arr():
    b = np.zeros(2, dtype=[("a", float), ("b", float)])
    b["a"] = 2.0

    def f(x):
        return b["a"][0] * x * x

    def s():
        b["a"][0] = 5

    return f, [s]


@case
def obj_arr():
    b = np.array([1.0, "a", 2.0], dtype=object)

    def f(x):
        return b[0] * x * x

    def s():
        b[0] = 4.0

    return f, [s]


@case
def zero_d():
    b = np.array(2.0)

    def f(x):
        return b * x * x

    def s():
        b[...] = 5.0

    return f, [s]


@case
def bool_arr_mask():
    m = np.array([True, False, True])

    def f(x):
        return np.sum(np.array([1.0, 2.0, 3.0])[m] * x) * x

    def s():
        m[1] = True

    return f, [s]


@case
def int_idx():
    i = np.array([0, 1])
    w = np.array([1.0, 2.0, 3.0])

    def f(x):
        return np.sum(w[i] * x) * x

    def s():
        i[0] = 2

    def s2():
        w[2] = 9.0

    return f, [s, s2]


@case
def int_scalar_idx():
    st = {"i": 0}
    w = [1.0, 2.0, 3.0]

    def f(x):
        return w[st["i"]] * x * x

    def s():
        st["i"] = 2

    def s2():
        st["i"] = -1

    def s3():
        w.append(11.0)

    return f, [s, s2, s3]


@case
def slice_obj():
    st = {"s": slice(0, 2)}
    w = np.array([1.0, 2.0, 3.0])

    def f(x):
        return np.sum(w[st["s"]]) * x * x

    def s():
        st["s"] = slice(1, 3)

    return f, [s]


@case
def str_join():
    names = ["a", "b"]
    t = {"a": 1.0, "b": 2.0, "ab": 3.0, "cb": 9.0}

    def f(x):
        return t["".join(names)] * x * x

    def s():
        names[0] = "c"

    return f, [s]


@case
def set_member():
    on = {"a"}

    def f(x):
        return (2.0 if "a" in on else 3.0) * x * x + (1.0 if "b" in on else 0.0)

    def s():
        on.discard("a")

    def s2():
        on.add("b")

    return f, [s, s2]


@case
def sorted_key():
    items = [3.0, 1.0, 2.0]
    st = {"r": False}

    def f(x):
        return sorted(items, reverse=st["r"])[0] * x * x

    def s():
        st["r"] = True

    def s2():
        items[1] = 7.0

    return f, [s, s2]


@case
def max_key():
    items = [{"w": 1.0}, {"w": 2.0}]

    def f(x):
        return max(items, key=lambda d: d["w"])["w"] * x * x

    def s():
        items[0]["w"] = 7.0

    return f, [s]


@case
def zip_star():
    pairs = [(1.0, 2.0), (3.0, 4.0)]

    def f(x):
        a, b = zip(*pairs)
        return (sum(a) * x + sum(b)) * x

    def s():
        pairs[0] = (9.0, 2.0)

    def s2():
        pairs.append((1.0, 1.0))

    return f, [s, s2]


@case
def starargs_call():
    args = [2.0, 3.0]
    kw = {"c": 1.0}

    def h(x, a, b, c=0.0):
        return a * x * x + b * x + c * x

    def f(x):
        return h(x, *args, **kw)

    def s():
        args[0] = 7.0

    def s2():
        kw["c"] = 9.0

    return f, [s, s2]


@case
def closure_cell_swap():
    def mk():
        k = 2.0

        def f(x):
            return k * x * x

        def setk(v):
            nonlocal k
            k = v

        return f, setk

    f, setk = mk()

    def s():
        setk(5.0)

    return f, [s]


@case
def fn_attr():
    def f(x):
        return f.k * x * x

    f.k = 2.0

    def s():
        f.k = 5.0

    return f, [s]


@case
def code_swap():
    def f(x):
        return 2.0 * x * x

    def h(x):
        return 5.0 * x * x

    def s():
        f.__code__ = h.__code__

    return f, [s]


@case
def helper_code_swap():
    def k(x):
        return 2.0 * x * x

    def h(x):
        return 5.0 * x * x

    def f(x):
        return k(x)

    def s():
        k.__code__ = h.__code__

    return f, [s]


@case
def instance_dict_swap():
    class A:
        pass

    a = A()
    a.k = 2.0

    def f(x):
        return a.k * x * x

    def s():
        a.__dict__ = {"k": 5.0}

    return f, [s]


@case
def instance_class_swap():
    class A:
        def go(s, x):
            return x * x

    class B:
        def go(s, x):
            return x * x * 5

    a = A()

    def f(x):
        return a.go(x)

    def s():
        a.__class__ = B

    return f, [s]


def containers_with_methods_of_their_own():
    class L(list):
        def __getitem__(s, i):
            return list.__getitem__(s, i) * 2

        def count(s, item):
            return super().count(item) + 1

    class D(dict):
        def __getitem__(s, key):
            return super().__getitem__(key) * 3

        def __contains__(s, key):
            return not dict.__contains__(s, key)

        def values(s):
            return [v * 2 for v in dict.values(s)]

    class T(tuple):
        def index(s, item):
            return tuple.index(s, item) + 1

    return L([1.0, 2.0, 2.0]), D(a=1.0, b=2.0), T((1.0, 2.0))


@case
def own_items():
    l, d, _ = containers_with_methods_of_their_own()
    return lambda x: x * l[1] + x * x * d["b"], [lambda: l.append(3.0), lambda: l.reverse(), lambda: d.update(b=5.0)]


@case
def own_members():
    _, d, _ = containers_with_methods_of_their_own()
    return lambda x: x * x if "a" in d else x, [lambda: d.pop("a"), lambda: d.update(a=2.0)]


@case
def own_counts():
    l, d, t = containers_with_methods_of_their_own()
    counts = lambda x: x * l.count(2.0) + x * x * sum(d.values()) + x**3 * t.index(2.0)
    return counts, [lambda: l.append(2.0), lambda: d.update(c=3.0)]


@case
def cached_prop():
    class A:
        k = 2.0

        @functools.cached_property
        def p(s):
            return s.k * 2

    a = A()

    def f(x):
        return a.p * x * x

    def s():
        a.k = 5.0

    def s2():
        del a.__dict__["p"]

    return f, [s, s2]


@case
def static_class_methods():
    class A:
        k = 2.0

        @staticmethod
        def sm(x):
            return x * 3

        @classmethod
        def cm(c, x):
            return x * c.k

    def f(x):
        return A.sm(x) * A.cm(x)

    def s():
        A.k = 5.0

    def s2():
        A.sm = staticmethod(lambda x: x * 7)

    return f, [s, s2]


@case
def super_chain():
    class B:
        k = 2.0

        def go(s, x):
            return x * s.k

    class A(B):
        def go(s, x):
            return super().go(x) * x

    a = A()

    def f(x):
        return a.go(x)

    def s():
        B.k = 4.0

    def s2():
        B.go = lambda s, x: x * 11.0

    return f, [s, s2]


@case
def abc_register():
    class I(abc.ABC):
        pass

    class A:
        pass

    a = A()

    def f(x):
        return x * x * (2.0 if isinstance(a, I) else 3.0)

    def s():
        I.register(A)

    return f, [s]


@case
def subclass_hook():
    class Me(type):
        flag = True

        def __instancecheck__(c, o):
            return c.flag

    class I(metaclass=Me):
        pass

    a = object()

    def f(x):
        return x * x * (2.0 if isinstance(a, I) else 3.0)

    def s():
        Me.flag = False

    return f, [s]


@case
def singledispatch():
    @functools.singledispatch
    def h(o, x):
        return x * x

    def f(x):
        return h("a", x)

    def s():
        h.register(str)(lambda o, x: x * x * 5)

    return f, [s]


@case
def id_based():
    a = [1]
    b = [a]

    def f(x):
        return x * x * (2.0 if b[0] is a else 3.0)

    def s():
        b[0] = [1]

    return f, [s]


@case
def hash_based():
    class A:
        def __init__(s, v):
            s.v = v

        def __hash__(s):
            return s.v

        def __eq__(s, o):
            return s.v == o.v

    k = A(1)
    d = {A(1): 2.0, A(2): 5.0}

    def f(x):
        return d[k] * x * x

    def s():
        k.v = 2

    return f, [s]


@case
def len_obj():
    class A:
        n = 2

        def __len__(s):
            return s.n

    a = A()

    def f(x):
        return len(a) * x * x

    def s():
        a.n = 5

    return f, [s]


@case
def index_obj():
    class A:
        n = 1

        def __index__(s):
            return s.n

    a = A()
    w = [1.0, 2.0, 3.0]

    def f(x):
        return w[a] * x * x

    def s():
        a.n = 2

    return f, [s]


@case
def float_obj():
    class A:
        n = 2.0

        def __float__(s):
            return s.n

    a = A()

    def f(x):
        return float(a) * x * x

    def s():
        a.n = 5.0

    return f, [s]


@case
def array_obj():
    class A:
        def __init__(s):
            s.w = np.array([1.0, 2.0])

        def __array__(s, dtype=None, copy=None):
            return s.w

    a = A()

    def f(x):
        return np.sum(np.asarray(a)) * x * x

    def s():
        a.w = np.array([5.0, 6.0])

    return f, [s]


@case
def rmul_obj():
    class A:
        k = 2.0

        def __rmul__(s, o):
            return o * s.k

    a = A()

    def f(x):
        return x * a * x

    def s():
        a.k = 5.0

    return f, [s]


@case
def match_obj():
    @dataclasses.dataclass
    class P:
        k: float

    st = {"p": P(2.0)}

    def f(x):
        match st["p"]:
            case P(k=v):
                return v * x * x

    def s():
        st["p"].k = 5.0

    return f, [s]


@case
def match_dict():
    st = {"k": "a", "v": 2.0}

    def f(x):
        match st:
            case {"k": "a", "v": v}:
                return v * x * x
            case _:
                return 7.0 * x * x

    def s():
        st["v"] = 5.0

    def s2():
        st["k"] = "b"

    return f, [s, s2]


@case
def walrus():
    st = {"k": 2.0}

    def f(x):
        if (v := st.get("k")) is not None:
            return v * x * x
        return x

    def s():
        st["k"] = 5.0

    def s2():
        st["k"] = None

    return f, [s, s2]


@case
def comp_nested():
    m = [[1.0, 2.0], [3.0, 4.0]]

    def f(x):
        return sum(v * x for r in m for v in r if v > 1.5) * x

    def s():
        m[0][0] = 9.0

    def s2():
        m[1].append(5.0)

    return f, [s, s2]


@case
def cond_lambda():
    hs = {"a": lambda x: x * x, "b": lambda x: x**3}
    st = {"w": "a"}

    def f(x):
        return hs[st["w"]](x)

    def s():
        st["w"] = "b"

    def s2():
        hs["b"] = lambda x: 7 * x

    return f, [s, s2]


@case
def late_flag():
    st = types.SimpleNamespace(n=0)

    def f(x):
        return x * x * (3.0 if getattr(st, "on", False) else 2.0)

    def s():
        st.on = True

    def s2():
        st.on = 0

    def s3():
        del st.on

    return f, [s, s2, s3]


@case
def frozen_dc():
    @dataclasses.dataclass(frozen=True)
    class P:
        k: float = 2.0

    p = P()

    def f(x):
        return p.k * x * x

    def s():
        object.__setattr__(p, "k", 5.0)

    def s2():
        nonlocal p
        p = dataclasses.replace(p, k=9.0)

    return f, [s, s2]


@case
def dc_eq():
    @dataclasses.dataclass
    class P:
        k: float = 2.0

    p = P()
    q = P()

    def f(x):
        return x * x * (2.0 if p == q else 3.0)

    def s():
        p.k = 4.0

    return f, [s]


@case
def dc_fields():
    @dataclasses.dataclass
    class P:
        a: float = 2.0
        b: float = 3.0

    p = P()

    def f(x):
        return sum(getattr(p, fl.name) for fl in dataclasses.fields(p)) * x * x

    def s():
        p.b = 9.0

    return f, [s]


@case
def vars_obj():
    p = types.SimpleNamespace(a=1.0, b=2.0)

    def f(x):
        return sum(vars(p).values()) * x * x

    def s():
        p.c = 4.0

    def s2():
        p.a = 9.0

    return f, [s, s2]


@case
def asdict():
    @dataclasses.dataclass
    class P:
        a: float = 2.0

    p = P()

    def f(x):
        return sum(dataclasses.asdict(p).values()) * x * x

    def s():
        p.a = 9.0

    return f, [s]


@case
def nt_fields():
    P = collections.namedtuple("P", "a b")
    st = {"p": P(1.0, 2.0)}

    def f(x):
        return sum(st["p"]) * x * x + sum(st["p"]._asdict().values()) * x

    def s():
        st["p"] = P(4.0, 2.0)

    return f, [s]


@case
def iter_tools():
    w = [1.0, 2.0, 3.0]

    def f(x):
        return sum(a * b for a, b in itertools.combinations(w, 2)) * x * x + sum(itertools.accumulate(w)) * x

    def s():
        w[0] = 9.0

    def s2():
        w.append(1.0)

    return f, [s, s2]


@case
def reversed_enum():
    w = [1.0, 2.0, 3.0]

    def f(x):
        t = 0.0
        for i, v in enumerate(reversed(w)):
            t = t + i * v * x
        return t * x

    def s():
        w[0] = 9.0

    return f, [s]


@case
def any_all():
    w = [True, False]

    def f(x):
        return x * x * (2.0 if any(w) else 3.0) * (1.0 if all(w) else 5.0)

    def s():
        w[1] = True

    def s2():
        w[:] = [False, False]

    return f, [s, s2]


@case
def fmt():
    st = {"v": 2.5}

    def f(x):
        return float(f"{st['v']:.1f}") * x * x

    def s():
        st["v"] = 7.25

    return f, [s]


@case
def regex():
    st = {"t": "a1b2"}

    def f(x):
        return sum(float(m) for m in re.findall(r"\d", st["t"])) * x * x

    def s():
        st["t"] = "a5"

    return f, [s]


@case
def pickle_():
    st = {"t": 2.0}

    def f(x):
        return pickle.loads(pickle.dumps(st))["t"] * x * x

    def s():
        st["t"] = 5.0

    return f, [s]


@case
def json_():
    st = {"t": [2.0, 1.0]}

    def f(x):
        return sum(json.loads(json.dumps(st))["t"]) * x * x

    def s():
        st["t"][0] = 5.0

    return f, [s]


@case
def statistics_():
    w = [1.0, 2.0, 6.0]

    def f(x):
        return statistics.mean(w) * x * x

    def s():
        w[0] = 9.0

    return f, [s]


@case
def interp():
    xp = np.array([0.0, 1.0, 2.0])
    fp = np.array([0.0, 2.0, 3.0])

    def f(x):
        return np.interp(x, xp, fp) * x

    def s():
        fp[1] = 5.0

    return f, [s]


@case
def poly():
    c = np.poly1d([1.0, 2.0])

    def f(x):
        return c(x) * x

    def s():
        c.coeffs[0] = 5.0

    return f, [s]


@case
def poly2():
    c = np.polynomial.Polynomial([1.0, 2.0])

    def f(x):
        return c(x) * x

    def s():
        c.coef[1] = 5.0

    return f, [s]


@case
def vectorize():
    k = [2.0]
    v = np.vectorize(lambda t: t * k[0])

    def f(x):
        return np.sum(v(np.arange(3.0))) * x * x

    def s():
        k[0] = 5.0

    return f, [s]


@case
def frompyfunc():
    k = [2.0]
    v = np.frompyfunc(lambda t: t * k[0], 1, 1)

    def f(x):
        return v(3.0) * x * x

    def s():
        k[0] = 5.0

    return f, [s]


@case
def apply_along():
    k = [2.0]
    A = np.ones((2, 3))

    def f(x):
        return np.sum(np.apply_along_axis(lambda r: r * k[0], 0, A)) * x * x

    def s():
        k[0] = 5.0

    def s2():
        A[0, 0] = 7.0

    return f, [s, s2]


@case
def fromfunction():
    k = [2.0]

    def f(x):
        return np.sum(np.fromfunction(lambda i, j: i * k[0] + j, (2, 2))) * x * x

    def s():
        k[0] = 5.0

    return f, [s]


@case
def piecewise():
    k = [2.0]

    def f(x):
        return np.sum(np.piecewise(np.array([1.0, -1.0]) * x, [np.array([True, False])], [lambda t: t * k[0], lambda t: t * t]))

    def s():
        k[0] = 5.0

    return f, [s]


@case
def callable_inst():
    class C:
        def __init__(s):
            s.k = 2.0

        def __call__(s, x):
            return x * x * s.k

    c = C()

    def f(x):
        return c(x)

    def s():
        c.k = 5.0

    def s2():
        C.__call__ = lambda s, x: x * 9

    return f, [s, s2]


@case
def methodtype():
    class C:
        k = 2.0

    c = C()
    c.go = types.MethodType(lambda s, x: x * x * s.k, c)

    def f(x):
        return c.go(x)

    def s():
        c.k = 5.0

    return f, [s]


@case
def partialmethod():
    class C:
        def h(s, k, x):
            return x * x * k

        g = functools.partialmethod(h, 3.0)

    c = C()

    def f(x):
        return c.g(x)

    def s():
        C.g = functools.partialmethod(C.h, 5.0)

    return f, [s]


@case
def gen_close():
    log = [0.0]

    def gen():
        try:
            yield 2.0
            yield 3.0
        finally:
            log[0] += 1.0

    def f(x):
        for v in gen():
            break
        return v * x * x

    return f, []


@case
def stop_cond():
    k = [2.0]

    def f(x):
        return x * stop_gradient(x * 0 + k[0])

    def s():
        k[0] = 5.0

    return f, [s]
