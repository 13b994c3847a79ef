# ruff: noqa
"""Functions of all shapes that Python has, for ``test_instrument.py``: each is called with ``(a, b)``, an int and a float.

They are written as users write, and are not tidied up: their point is the syntax.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import functools
import math
from os.path import *

SHAPES = []
G = 3
TABLE = {"k": [1, 2, 3], "d": {"x": 2.5}}
COUNT = 0


def shape(fun):
    SHAPES.append(fun)
    return fun


def scale(a, b=2.0, /, c=3, *rest, d=4, **more):
    return a * b + c * d + sum(rest) + sum(more.values())


def twice(fun):
    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        return fun(*args, **kwargs) * 2

    return wrapper


class Box:
    kind = "box"
    __secret = 7

    def __init__(self, value=1):
        self.value = value
        self.__hidden = value * 2

    def hidden(self):
        return self.__hidden + self.__secret

    @property
    def double(self):
        return self.value * 2

    @double.setter
    def double(self, value):
        self.value = value / 2

    @classmethod
    def make(cls, value):
        return cls(value)

    @staticmethod
    def add(a, b):
        return a + b

    def __add__(self, other):
        return Box(self.value + getattr(other, "value", other))

    def __radd__(self, other):
        return self + other

    def __getitem__(self, key):
        return self.value + key

    def __len__(self):
        return 3

    def __bool__(self):
        return self.value > 1

    def __iter__(self):
        yield from (self.value, 2, 3)

    def __contains__(self, item):
        return item == self.value

    def __enter__(self):
        return self.value

    def __exit__(self, kind, error, tb):
        return kind is KeyError

    def __call__(self, x):
        return x + self.value

    def __eq__(self, other):
        return isinstance(other, Box) and self.value == other.value

    def __lt__(self, other):
        return self.value < other.value

    __hash__ = None


class Lambdas:
    plain = lambda self, a, b: a + b + G
    __k = 3
    private = lambda self, a, b: (a, self.__k)


class Sub(Box):
    def __init__(self, value=5):
        super().__init__(value)
        super(Sub, self).__init__(value)

    def hidden(self):
        return super().hidden() + 1

    @classmethod
    def make(cls, value):
        return super().make(value + 1)

    @property
    def double(self):
        return super().double + 1

    def method(self, a, b):
        cls = __class__
        return cls.__name__, [super(Sub, self).hidden() for _ in range(2)]


class _Under:
    __x = 3

    def get(self):
        return self.__x


@dataclasses.dataclass
class Point:
    x: float = 1.0
    y: float = 2.0


Pair = collections.namedtuple("Pair", "p q")


@shape
def arithmetic(a, b):
    c = a + b * 2 - a / 3 // 1 % 5
    c **= 2
    c = -c + +a - ~a
    return c, a << 2, a >> 1, a & 3, a | 8, a ^ 5, divmod(a, 3), pow(a, 2, 5)


@shape
def comparisons(a, b):
    return a < b, a <= b <= 5, 1 < a != b > 0 in (True,), a is a, a is not None, a in [1, 2], a not in {3}, not a, a == b != 1


@shape
def boolean(a, b):
    return a and b, a or b, not (a and b) or b, a and b and 3 or 4, (a if b else 7), [] or {} or 0


@shape
def chained_calls(a, b):
    return scale(a), scale(a, b), scale(a, b, 1), scale(a, b, 1, 2, 3, d=a, e=b), scale(*[a, b], **{"d": 1})


@shape
def star_calls(a, b):
    xs, ks = [a, b], {"d": 2, "z": 3}
    return scale(*xs, *xs, **ks, y=1), [*xs, 9, *xs], (*xs,), {*xs}, {**ks, "q": 1, **{"z": 4}}


@shape
def unpacking(a, b):
    x, y = a, b
    x, (y, z), *w = 1, (2, 3), 4, 5
    [p, q] = [a, b]
    (r) = 2
    *s, t = "hello"
    x = y = [a, b]
    x[0], y[1] = 5, 6
    return x, y, z, w, p, q, r, s, t


@shape
def subscripts(a, b):
    xs = list(range(10))
    xs[a % 3] = 7
    xs[1:3] = [4]
    xs[::2] = xs[::2][::-1]
    del xs[0], xs[-1]
    d = {(1, 2): {"x": [0]}}
    d[1, 2]["x"][0] += a
    d[1, 2]["y"] = d[1, 2].pop("x")
    return xs, xs[1:], xs[:-1], xs[-2:4:1], xs[...:] if 0 else 1, d, TABLE["k"][a % 3], TABLE["d"]["x"]


@shape
def errors_unpack(a, b):
    x, y = [a]
    return x


@shape
def errors_key(a, b):
    return {"x": 1}[
        a
    ]


@shape
def errors_attribute(a, b):
    return a.nothing + b


@shape
def errors_call(a, b):
    c = 3
    return scale(
        a,
        q=1,
        **{"q": 2},
    )


@shape
def errors_name(a, b):
    if a > 100:
        undefined = 1
    return undefined


@shape
def errors_global(a, b):
    return NOT_THERE + a


@shape
def errors_zero(a, b):
    y = a / 0
    return y


@shape
def errors_type(a, b):
    return len(a) + "x"


@shape
def errors_iter(a, b):
    for i in b:
        pass


@shape
def errors_star(a, b):
    return scale(*b)


@shape
def errors_mapping(a, b):
    return scale(**a)


@shape
def errors_format(a, b):
    return f"{a:nope}"


@shape
def errors_with(a, b):
    with a as c:
        return c


@shape
def errors_raise(a, b):
    try:
        raise ValueError("x") from KeyError("y")
    finally:
        b += 1


@shape
def errors_nested(a, b):
    def inner(z):
        return [1 / (z - i) for i in range(100)]

    return inner(a)


@shape
def errors_assert(a, b):
    assert a < 0 > b, f"no {a}"


@shape
def errors_del(a, b):
    c = 1
    del c
    return c


@shape
def errors_unbound_aug(a, b):
    c += 1
    return c


@shape
def errors_method(a, b):
    return Box(a).missing(b)


@shape
def errors_super(a, b):
    return super().x


@shape
def loops(a, b):
    total = 0
    for i in range(a + 3):
        if i == 2:
            continue
        if i == 7:
            break
        total += i * b
    else:
        total += 100
    n = 5
    while n > 0:
        n -= 1
        if n == a:
            break
    else:
        n = -1
    return total, n, i


@shape
def loop_targets(a, b):
    box, xs, out = Box(), [0, 0], []
    for box.value in range(2):
        out.append(box.value)
    for xs[0] in (5, 6):
        out.append(xs)
    for i, (j, *k) in enumerate([(1, 2, 3), (4,)]):
        out += [i, j, k]
    for x, y in {"a": 1}.items():
        out.append((x, y))
    return out, box.value


@shape
def comprehensions(a, b):
    xs = [i * j for i in range(3) if i for j in range(i) if j < 2]
    ys = {i: [k for k in range(i)] for i in range(3)}
    zs = {x % 2 for x in xs}
    a2 = [a for a in range(2)]
    gen = (x + a for x in range(3))
    return xs, ys, zs, a2, list(gen), a, sum(v for v in xs), [(x, y) for x, y in zip([1, 2], [3, 4])]


@shape
def comprehension_scope(a, b):
    fs = [lambda: i for i in range(3)]
    gs = [lambda i=i: i + G for i in range(3)]
    x = 10
    ys = [x := x + i for i in range(3)]
    return [f() for f in fs], [g() for g in gs], x, ys, [[b for _ in range(1)] for b in range(2)], b


@shape
def walrus(a, b):
    if (n := a + 1) > 1 and (m := n * 2):
        return n, m
    while (k := a) < 0:
        break
    return n, k


@shape
def lambdas(a, b):
    f = lambda x, *y, z=a, **w: (x, y, z, w)
    return f(1), f(1, 2, z=3, q=4), (lambda: b)(), (lambda *a: a)(1, 2), sorted([3, 1, 2], key=lambda v: -v)


@shape
def nested_functions(a, b):
    count = 0

    def bump(by=1, *, times=a):
        nonlocal count
        count += by * times
        return count

    @twice
    def inner(x):
        def deeper(y):
            return x + y + b

        return deeper(1)

    bump()
    bump(2, times=1)
    return count, inner(3)


@shape
def global_statement(a, b):
    global COUNT
    COUNT = 5
    COUNT += a

    def inner():
        global COUNT
        COUNT += 1
        return COUNT

    return inner(), COUNT


@shape
def shadowing(a, b):
    G = 10

    def inner():
        global G
        return G

    def other():
        return G

    return inner(), other(), [G for G in range(2)], G


@shape
def generators(a, b):
    def count(n):
        got = yield n
        while got:
            got = yield got * 2
        return "end"

    def outer():
        result = yield from count(a)
        yield result

    g = outer()
    return next(g), g.send(3), g.send(0), next(g, "gone")


@shape
def coroutines(a, b):
    async def one(x):
        await asyncio.sleep(0)
        return x + G

    async def numbers():
        for i in range(3):
            yield i

    class Manager:
        async def __aenter__(self):
            return 1

        async def __aexit__(self, *e):
            return False

    async def main():
        async with Manager() as m:
            xs = [x async for x in numbers()]
            async for y in numbers():
                xs.append(y)
        return m, xs, await one(a)

    return asyncio.run(main())


@shape
def exceptions(a, b):
    out = []
    try:
        {}["x"]
    except (KeyError, IndexError) as error:
        out.append(repr(error))
    except ValueError:
        out.append("never")
    else:
        out.append("else")
    finally:
        out.append("finally")
    try:
        pass
    except Exception:
        pass
    else:
        out.append("fine")
    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise ValueError("second") from e
    except ValueError as error:
        out.append(repr(error.__cause__))
    return out


@shape
def finally_return(a, b):
    for _ in range(2):
        try:
            raise KeyError
        finally:
            continue
    try:
        return 1 / 0
    finally:
        return "swallowed"


@shape
def groups(a, b):
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as e:
        x = len(e.exceptions)
    except* KeyError:
        pass
    return x


@shape
def managers(a, b):
    out = []
    with Box(a) as x, contextlib.nullcontext(b) as (y):
        out.append((x, y))
    with Box(3):
        raise KeyError("suppressed")
    with contextlib.suppress(ZeroDivisionError):
        1 / 0
    with (Box(1) as p, Box(2) as q):
        out.append(p + q)
    with contextlib.ExitStack() as stack:
        out.append(stack.enter_context(Box(4)))

    @contextlib.contextmanager
    def managed(v):
        out.append("in")
        yield v + G
        out.append("out")

    with managed(a) as m:
        out.append(m)
    return out


@shape
def matching(a, b):
    out = []
    for subject in [0, 1, "x", [1, 2], [1, 2, 3], {"k": 1, "z": 2}, Point(1, 5), Pair(1, 2), None, b, True, (a, (b,))]:
        match subject:
            case 0 | "x":
                out.append("zero")
            case int(n) if n == a:
                out.append(n)
            case [x, y]:
                out.append((x, y))
            case [first, *rest]:
                out.append((first, rest))
            case {"k": k, **others}:
                out.append((k, others))
            case Point(x=1, y=yy) as point:
                out.append((yy, point))
            case None:
                out.append(None)
            case math.pi:
                out.append("pi")
            case _:
                out.append("other")
    return out


@shape
def strings(a, b):
    w = 8
    return f"{a} {b:.3f} {a!r:>{w}} {a + 1 = } {{}} {'nested' + f'{b}'}", "%s %d" % (b, a), "a" "b", b"x", rf"\d{a}", "{}".format(a)


@shape
def classes(a, b):
    class Local(Box):
        shared = a
        table = [i * G for i in range(3)]

        def value2(self):
            return self.value + self.shared + b

    one = Local(3)
    one.double = 10
    return one.value2(), one.hidden(), Local.table, Local.make(2).value, one.value


@shape
def objects(a, b):
    box, sub = Box(a), Sub(a)
    box.value += 1
    box.double = 8
    del box.value
    box.value = 2
    return box.double, sub.double, sub.hidden(), Sub.make(1).value, Box.add(1, 2), sub.method(a, b), _Under().get(), box.kind


@shape
def operators(a, b):
    box = Box(a)
    c = box + 1
    d = 1 + box
    return (c.value, d.value, box[2], len(box), bool(box), list(box), a in box, 99 in box, box(3), box == Box(a), box != 3, sorted([Box(3), Box(1)])[0].value, [*box], scale(*box), max(Box(1), Box(2)).value)


@shape
def inplace(a, b):
    xs = [1]
    ys = xs
    ys += [2]
    zs = xs
    zs = zs + [3]
    s = {1}
    s |= {2}
    t = (1,)
    t += (2,)
    xs *= 2
    return xs, ys, zs, s, t, xs is ys


@shape
def identity(a, b):
    xs = TABLE["k"]
    return xs is TABLE["k"], xs is not TABLE, G is G, None is None, type(a) is int, (a is b) is False


@shape
def deletions(a, b):
    d = {"x": 1, "y": 2}
    box = Box()
    box.extra = 1
    del d["x"], box.extra
    x = 1
    del x
    return d, hasattr(box, "extra")


@shape
def annotations(a, b):
    x: int = 3
    y: "list[int]"
    box: Box = Box(a)
    box.value: int = 4
    z: undefined_name = 1

    def inner(p: nothing = 3, *q: nothing, **r: nothing) -> nothing:
        return p

    return x, box.value, z, inner()


@shape
def introspection(a, b):
    x = 1
    names = sorted(k for k in locals() if not k.startswith("__") and k not in ("k",))
    return "G" in globals(), eval("a + 1"), [n for n in names if n in "abx"], vars(Box(2))["value"], callable(len)


@shape
def builtins_of_all_kinds(a, b):
    return (
        list(map(lambda v: v * 2, [1, 2])), list(filter(None, [0, 1])), any(v for v in [0, 1]), all([]), list(zip([1], [2])),
        list(enumerate("ab")), getattr(Box, "kind"), getattr(a, "no", 3), hasattr(a, "real"), isinstance(a, (int, float)),
        next(iter([5])), next((v for v in [] if v), "none"), iter([1]).__next__(), sum([[1], [2]], []), min(3, 1), max([1, 2], key=lambda v: -v),
        functools.reduce(lambda p, q: p * q, [1, 2, 3]), functools.partial(scale, a)(2.0), abs(-a), round(b, 1), str(a), type(a).__name__,
    )


@shape
def imports(a, b):
    import math as m
    import os.path
    from math import floor, pi as PI

    return m.sqrt(4), floor(b), PI, os.path.join("a", "b"), basename("x/y")


@shape
def conditional(a, b):
    x = a if a > 1 else b if b else 3
    if a > 5:
        y = 1
    elif a == 5:
        y = 2
    else:
        y = 3
    return x, y


@shape
def chains(a, b):
    return Box(a).make(2).double, TABLE["k"].index(2), "a,b".split(",")[1].upper(), Point(a).x, Pair(1, q=2)._replace(p=3)


@shape
def multiline(a, b):
    result = (
        scale(
            a,
            b,
        )
        + scale(b)
    )
    return (result
            if a
            else 0)


@shape
def dataclass_made(a, b):
    return Point(a, y=b), dataclasses.replace(Point(), x=b), dataclasses.astuple(Point(a)), Point() == Point()


@shape
def posonly(a, b):
    def f(x, y=2, /, z=3, *, w=4):
        return x, y, z, w

    return f(1), f(1, a), f(1, z=b), f(1, 2, 3, w=9)


@shape
def recursion(a, b):
    def fact(n):
        return 1 if n <= 1 else n * fact(n - 1)

    return fact(5), recursive(a)


def recursive(n):
    return 0 if n <= 0 else 1 + recursive(n - 1)


@shape
def semicolons(a, b): x = a; y = b; return x + y


@shape
def empty(a, b):
    """Only a docstring."""


@shape
def ellipsis(a, b):
    ...
    pass


@shape
@twice
@twice
def decorated(a, b):
    return a + b


shape(lambda a, b: a + b * G)
shape(lambda a, b: a if a > 1 else b)
shape(lambda a, b: (a and b) or G)
shape(lambda a, b: 1)
shape(lambda a, b: (lambda c: c + a)(b)), shape(lambda a, b: a < b < 3)
shape(
    lambda a, b: [
        lambda c: c + a,
        lambda c: c * a if c else b,
    ][1](b)
)
SHAPES += [lambda a, b: a - i for i in range(2)] + [lambda a, b: -a]
shape((lambda: lambda a, b: a)())
shape((lambda c: lambda a, b: a + c)(3))
shape(lambda a, b, c=[1, 2]: [i + a for i in c])
shape(Box(3).make)  # a bound method: one argument too many
shape(Sub(4).method)
shape(Lambdas().plain)
shape(Lambdas().private)


def closure(n):
    def inner(a, b):
        return a + b + n

    return inner, lambda a, b: (a, [n + i for i in range(a)])


SHAPES += closure(5)


def self_named(n):
    def inner(a, b):
        return a if a > 50 else inner(a + n, b)

    return inner


shape(self_named(20))


@shape
def unicode_names(a, b):
    λ, ﬁ = a, b
    return λ + ﬁ


@shape
def long_expression(a, b):
    return a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a


@shape
def type_comments(a, b):
    x = []  # type: list
    return x


@shape
def conversion(a, b):
    return int(b), float(a), complex(a), bool(a), list((a,)), tuple([b]), dict(x=a), set([a]), frozenset([a]), bytes(2), range(a)


@shape
def dict_methods(a, b):
    d = {}
    d.setdefault("x", []).append(a)
    d.update(y=b, **{"z": 1})
    return d.get("x"), d.get("q", 3), sorted(d), list(d.keys()), [*d.items()], d.pop("y"), "x" in d, len(d)


@shape
def global_containers(a, b):
    xs = [v for v in TABLE["k"]]
    x, y, z = TABLE["k"]
    p, *q = TABLE["k"]
    return xs + TABLE["k"], TABLE["k"] * 2, TABLE["k"][1:], x, y, z, p, q, 2 in TABLE["k"], [*TABLE["k"]], dict(**TABLE["d"]), TABLE == TABLE


@shape
def yield_in_expression(a, b):
    def g():
        x = 1 + (yield a)
        y = [(yield b)]
        return x, y

    it = g()
    out = [next(it), it.send(2)]
    try:
        it.send(3)
    except StopIteration as stop:
        out.append(stop.value)
    return out


@shape
def class_private(a, b):
    class __Private:
        __v = 4

        def get(self):
            return self.__v

    return __Private().get()


@shape
def return_in_loop(a, b):
    for i in range(10):
        for j in range(10):
            if i * j > a:
                return i, j


@shape
def try_in_loop(a, b):
    out = []
    for i in range(3):
        try:
            if i == 1:
                continue
            out.append(1 / i)
        except ZeroDivisionError:
            out.append("z")
            if a:
                break
        finally:
            out.append("f")
    return out
