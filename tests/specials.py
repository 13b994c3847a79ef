# ruff: noqa
"""Small programs in which code that is not followed asks objects of the user's for something, for ``test_staleness.py``.

Each of ``PROGRAMS`` is an expression of ``x``. What they read is there after ``reset()``, and is another after one of ``CHANGES``.
"""

import bisect, collections, copy, dataclasses, enum, functools, heapq, inspect, itertools, json, math, operator, statistics, types
from functools import partial

import numpy as np

k = 1.0


class Held:
    def __init__(s, a):
        s.a = a


class V(Held):
    """What can be asked for all that there is."""

    def __neg__(s, *others):
        return s.a * k

    __pos__ = __invert__ = __mul__ = __truediv__ = __matmul__ = __getitem__ = __call__ = __neg__

    def __add__(s, o):
        return s.a * k + getattr(o, "a", o)

    __radd__ = __iadd__ = __add__

    def __floor__(s):
        return int(s.a * k)

    __ceil__ = __trunc__ = __int__ = __index__ = __len__ = __length_hint__ = __hash__ = __floor__

    def __float__(s):
        return float(s.a * k)

    def __lt__(s, o):
        return s.a * k < 1.5

    def __bool__(s, *others):
        return s.a * k > 1.5

    __contains__ = __bool__

    def __eq__(s, o):
        return s.a * k == 1.0

    def __str__(s, *others):
        return "z" * int(10 + s.a * k)

    __repr__ = __format__ = __str__

    def __iter__(s):
        return iter([s.a * k])

    def __copy__(s, *others):
        return V(s.a * k)

    __deepcopy__ = __copy__


class P(Held):
    pass


class R(Held):
    def __reduce__(s):
        return (P, (s.a * k,))


class S(Held):
    def __getstate__(s):
        return {"a": s.a * k}


class E(Held):
    def __eq__(s, o):
        return s.a * k == 1.0

    def __hash__(s):
        return 0


class L(Held):
    def __lt__(s, o):
        return s.a * k < 1.5


class Add(Held):
    def __add__(s, o):
        return s.a * k + getattr(o, "a", o)

    __radd__ = __add__


class I(Held):
    def __iter__(s):
        return s

    def __next__(s):
        s.a += 1
        if s.a > 3:
            raise StopIteration
        return s.a * k


class Layer(Held):
    def __call__(s, x):
        return s.a * x * k


class Conv:
    def __init__(s, v):
        s.b = v.a * k


class Pair(tuple):
    def __new__(cls, v):
        return tuple.__new__(cls, (v.a,))


class MySet(set):
    pass


class MyPartial(partial):
    pass


class Slotted:
    __slots__ = ("p",)

    def __init__(s, p):
        s.p = p


@dataclasses.dataclass
class Rec:
    a: float = 1.0
    b: float = 2.0


@dataclasses.dataclass
class Outer:
    r: object


class Member(enum.Enum):
    ONE = 1
    TWO = 2


class Meta(type):
    def __iter__(c):
        return iter([k])

    def __eq__(c, o):
        return k > 1.5

    __lt__ = __eq__

    def __str__(c):
        return "z" * int(k)

    __repr__ = __str__

    def __int__(c):
        return int(k)

    __index__ = __hash__ = __int__

    def __float__(c):
        return float(k)


class Z(metaclass=Meta):
    pass


class O:
    kl = 1.0


class Sub(O):
    def m(s):
        return 0.0


O.m = lambda s: s.__dict__.get("q", k) * O.kl


@functools.singledispatch
def dispatching(v):
    return v * k


@dispatching.register
def _(v: P):
    return v.a * k


def base(x, b):
    return b * x


def setslice(v):
    r = [0.0]
    r[:] = v
    return r[0]


def slice_object(v):
    r = [0.0]
    r[slice(None)] = v
    return r[0]


def loop(v):
    t = 0.0
    for a in v:
        t += a
    return t


def yfrom(v):
    def g():
        yield from v

    return list(g())[0]


def reset():
    global k, vs, es, ls, ads, ps, rs, ss, layers, host, xs, named, pairs, cm, ud, rec, sub, pp
    k = 1.0
    vs, es, ls, ads, ps, rs, ss, layers = ([c(1.0), c(2.0)] for c in (V, E, L, Add, P, R, S, Layer))
    O.kl, Member.ONE.held, Member.TWO.held = 1.0, P(1.0), P(2.0)
    host = P(0.0)
    host.v, host.p = V(1.0), P(1.0)
    xs, named = [1.0, 2.0], {"a": vs[0], "b": vs[1]}
    pairs = [(e, 1) for e in es]
    cm, ud = collections.ChainMap({"a": 1.0}), collections.UserDict({"a": 1.0})
    rec, sub, pp = Rec(), Sub(), partial(base, b=3.0)


def change_globals():
    global k
    k, O.kl, xs[0], pp.keywords["b"] = 2.0, 2.0, 3.0, 7.0


def change_attributes():
    for one, other in (vs, es, ls, ads, ps, rs, ss):
        one.a, other.a = 5.0, 3.0
    host.v.a = host.p.a = 3.0
    cm.maps[0]["a"] = ud.data["a"] = 5.0
    rec.b, sub.q, Member.ONE.held.a = 22.0, 3.0, 9.0


CHANGES = (change_globals, change_attributes)


PROGRAMS = """
list(map(operator.neg, vs))[0] * x
list(map(operator.add, vs, vs))[0] * x
list(map(operator.eq, vs, [0, 0]))[0] * x
list(map(operator.call, vs))[0] * x
list(map(operator.pos, vs))[0] * x
list(map(operator.invert, vs))[0] * x
list(map(operator.truediv, vs, vs))[0] * x
list(map(operator.matmul, vs, vs))[0] * x
list(map(operator.lt, vs, vs))[0] * x
list(map(operator.getitem, vs, [0, 0]))[0] * x
list(map(operator.contains, vs, [0, 0]))[0] * x
list(map(operator.truth, vs))[0] * x
list(map(operator.not_, vs))[0] * x
list(map(operator.index, vs))[0] * x
list(map(operator.length_hint, vs))[0] * x
list(map(math.floor, vs))[0] * x
list(map(math.ceil, vs))[0] * x
list(map(math.trunc, vs))[0] * x
list(map(math.sqrt, vs))[0] * x
list(map(np.sqrt, vs))[0] * x
list(map(np.float64, vs))[0] * x
list(map(np.asarray, vs))[0] * x
sum(set(map(int, vs))) * x
sum(bytearray(map(int, vs))) * x
sum(bytes(map(int, vs))) * x
copy.deepcopy(vs)[0].a * x
copy.deepcopy(ps)[0].a * x
copy.deepcopy({"a": ps})["a"][0].a * x
copy.deepcopy(rs)[0].a * x
copy.deepcopy(ss)[0].a * x
copy.deepcopy(R(1.0)).a * x
copy.deepcopy(S(1.0)).a * x
copy.copy(R(1.0)).a * x
copy.copy(S(1.0)).a * x
copy.deepcopy(types.SimpleNamespace(p=ps[0])).p.a * x
list(map(copy.copy, vs))[0].a * x
list(map(copy.deepcopy, vs))[0].a * x
list(map(copy.deepcopy, ps))[0].a * x
list(map(copy.copy, ps))[0].a * x
sum(itertools.chain.from_iterable(vs)) * x
sum([x] * vs[1])
len("ab" * vs[1]) * x
len((1,) * vs[1]) * x
len(b"ab" * vs[1]) * x
len(bytearray(b"ab") * vs[1]) * x
heapq.nlargest(1, vs)[0].a * x
heapq.nlargest(1, vs, key=str)[0].a * x
sorted(vs, key=str, reverse=True)[0].a * x
sorted(vs, key=int, reverse=True)[0].a * x
sorted(vs, key=float, reverse=True)[0].a * x
sorted(vs, key=list, reverse=True)[0].a * x
sorted(vs, key=operator.neg, reverse=True)[0].a * x
sorted(vs, key=math.floor, reverse=True)[0].a * x
max(vs, key=int).a * x
min(vs, key=str).a * x
sum(Z) * x
(Z == 3) * x
(Z < 3) * x
len(str(Z)) * x
len(f"{Z}") * x
int(Z) * x
float(Z) * x
list(map(int, [Z]))[0] * x
list(map(operator.eq, [Z], [3]))[0] * x
([Z] == [3]) * x
[0.0, 1.0, 2.0, 3.0][Z] * x
len([0] * Z) * x
sum(list(Z)) * x
sum(itertools.chain(Z)) * x
sum(itertools.chain.from_iterable([Z])) * x
sorted([Z, Z])[0] is Z and (Z in [3]) * x
[3].count(Z) * x
[3].index(3) + (3 == Z) * x
sum(iter(ads)) * x
sum(itertools.islice(ads, 2)) * x
sum(reversed(ads)) * x
sum(itertools.chain(ads, ads)) * x
math.fsum(v for v in vs) * x
(lambda s: s.extend(vs[0]) or s[0])([]) * x
(lambda s: s.insert(vs[0], 5.0) or s[1])([0.0, 1.0, 2.0]) * x
(lambda s: s.extend(vs[0]) or s[0])(collections.deque()) * x
(lambda s: s.rotate(vs[0]) or s[0])(collections.deque([1.0, 2.0, 3.0])) * x
list(itertools.accumulate(ads))[1] * x
list(itertools.accumulate(ads, operator.add))[1] * x
list(itertools.accumulate(v for v in ads))[1] * x
len(list(itertools.groupby(es))) * x
len(list(filter(operator.not_, vs))) * x
len(list(itertools.filterfalse(None, vs))) * x
len(list(itertools.takewhile(operator.truth, vs))) * x
len(list(itertools.takewhile(bool, vs))) * x
len(list(itertools.dropwhile(bool, vs))) * x
sum(itertools.compress([1, 2], vs)) * x
sum(itertools.compress([1, 2], iter(vs))) * x
list(itertools.starmap(operator.add, zip(vs, vs)))[0] * x
list(itertools.starmap(lambda a: a, vs))[0] * x
functools.reduce(operator.add, (v for v in ads)) * x
functools.partial(map, operator.neg)(vs).__next__() * x
list(map("{}".format, vs))[0].count("z") * x
list(map("%s".__mod__, vs))[0].count("z") * x
f"{vs}".count("z") * x
operator.countOf((e for e in es), 1) * x
operator.mul([1.0], vs[0])[0] * len(operator.mul([1.0], vs[0])) * x
list(map(operator.iadd, vs, [0.0, 0.0]))[0] * x
np.add.reduce(ads) * x
np.vectorize(operator.neg)(vs)[0] * x
np.vectorize(float)(vs)[0] * x
np.vectorize(lambda v: v.a)(ps)[0] * x
np.fromiter((v for v in vs), float)[0] * x
np.fromiter(map(float, vs), float)[0] * x
bisect.bisect_left(vs, 1.5, key=float) * x
statistics.mean(map(float, vs)) * x
len(json.dumps(vs, default=str)) * x
type.__getattribute__(O, "kl") * x
list(map(type.__getattribute__, [O], ["kl"]))[0] * x
list(map(ps[0].__getattribute__, ["a"]))[0] * x
list(map(lambda v: v, I(1.0)))[0] * x
len(set(E(i) for i in range(3))) * x
len([0] * V(1.0)) * x
list.__mul__([1], vs[0]).__len__() * x
list.__getitem__([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], vs[0]) * x
[0.0, 1.0, 2.0, 3.0, 4.0, 5.0].__getitem__(vs[0]) * x
[1].__contains__(es[0]) * x
[1].__mul__(vs[0]).__len__() * x
es.__contains__(1) * x
(1 in (e for e in es)) * x
(1 in iter(es)) * x
Pair(ps[0])[0] * x
list(map(Pair, ps))[0][0] * x
list(map(cm.get, ["a"]))[0] * x
list(map(ud.get, ["a"]))[0] * x
list(map(ud.__getitem__, ["a"]))[0] * x
copy.deepcopy(Slotted(ps[0])).p.a * x
dataclasses.asdict(Outer(rec))["r"]["b"] * x
inspect.getattr_static(O, "kl") * x
dict(inspect.getmembers(O))["kl"] * x
(lambda s: s.__iadd__(vs[0]) and s[0])([]) * x
setslice(vs[0]) * x
loop(I(1.0)) * x
yfrom(vs[0]) * x
[*map(int, vs)][0] * x
next(filter(None, vs), ps[0]).a * x
next(map(float, vs)) * x
np.array([*map(float, vs)]).sum() * x
np.stack(vs)[0][0] * x
statistics.median(map(int, vs)) * x
collections.deque(map(int, vs), maxlen=1)[0] * x
"{0.v}".format(host).count("z") * x
"{0.p.a}".format(host).count("3") * x
setslice(xs) * x
slice_object(xs) * x
yfrom(xs) * x
partial(pp, x)()
partial(partial(pp), x)()
MyPartial(pp, x)()
list(map(partial, [pp], [x]))[0]()
super(Sub, sub).m() * x
super(Sub, sub).kl * x
super(*[Sub, sub]).m() * x
Member["ONE"].held.a * x
Member(1).held.a * x
[e.held.a for e in Member][0] * x
max(Member, key=lambda e: e.held.a).held.a * x
(lambda r: operator.setitem(r, slice(None), xs) or r[0])([0.0]) * x
(lambda r: operator.iconcat(r, xs)[0])([]) * x
(lambda r: operator.iadd(r, xs)[0])([]) * x
operator.iadd(V(1.0), 0.0) * x
sum({"a": ads[0], "b": ads[1]}.values()) * x
set({"a": es[0], "b": es[1]}.values()).__len__() * x
({"a": es[0]}.items() == {"a": 1}.items()) * x
(1 in {"a": es[0]}.values()) * x
sum(named.values()) * x
max(named.values()).a * x
f"{named}".count("z") * x
("%s" % named).count("z") * x
("%(a)s" % named).count("z") * x
""".strip().splitlines()
