# ruff: noqa
"""Functions with side effects, and functions whose result hangs on more than their arguments, for ``test_staleness.py``.

``CASES`` has ``(function, expected)``: ``"dynamic"`` where no call may be compiled, ``"once"`` where later ones may, ``"compiled"`` where some must. ``reset()`` puts all of it back.
"""

from __future__ import annotations

import array
import bisect
import collections
import contextlib
import copy
import datetime
import decimal
import functools
import heapq
import itertools
import logging
import operator
import os
import random
import sys
import tempfile
import threading
import time
import types
import uuid
import warnings

import numpy as np

try:
    import scipy.cluster.vq
    import scipy.sparse
    import scipy.stats.qmc
except ImportError:
    scipy = None

CASES = []
LOG: list = []
D: dict = {}
OBJ = types.SimpleNamespace(n=0)
QUEUE: collections.deque = collections.deque(maxlen=3)
BUF = np.zeros(3)
COUNT = 0
CELL = [0]
PATH = os.path.join(tempfile.gettempdir(), f"symgrad_impure_{os.getpid()}")


@functools.lru_cache
def cached(n):
    LOG.append(n)
    return float(n * 2)


@functools.cache
def cached_in_global(n):
    global COUNT
    COUNT += 1
    return float(n)


@functools.cache
def cached_in_attribute(n):
    OBJ.n += 1
    return float(n)


@functools.cache
def cached_in_array(n):
    TAIL[0] += 1.0
    return float(n)


@functools.cache
def cached_by_name(n):
    setattr(OBJ, "n", OBJ.n + 1)
    return float(n)


class Keeping:
    made = 0

    def __init__(self, n):
        self.scale = float(n)
        Keeping.made += 1

    def put(self, scale):
        self.scale = scale

    @functools.cached_property
    def kept(self):
        self.asked = getattr(self, "asked", 0) + 1
        return self.scale * self.asked


cached_object = functools.cache(Keeping)
KEEPING = Keeping(2)
CACHES = cached, cached_in_global, cached_in_attribute, cached_in_array, cached_by_name, cached_object


def reset():
    global counting, RNG, COUNT, ITERATOR, COUNTER, GENERATOR, RANDOM, CYCLE
    RNG = np.random.default_rng(1)
    np.random.seed(1)
    random.seed(1)
    RANDOM = random.Random(3)
    ITERATOR, COUNTER, CYCLE = iter([float(i) for i in range(1, 40)]), itertools.count(1.0), itertools.cycle([1.0, 2.0, 3.0])
    GENERATOR = (float(i) for i in range(50))
    COUNT, OBJ.n, CELL[0], BUF[:], OF_BYTES[:] = 0, 0, 0, 0.0, (1.0, 2.0)
    LOG.clear(), D.clear(), QUEUE.clear()
    for cache in CACHES:
        cache.cache_clear()
    KEEPING.__dict__.pop("kept", None)
    KEEPING.asked = Keeping.made = 0
    default_mutable.__defaults__[0].clear()
    os.environ["TRAP"] = "0"
    counting = make_counting()
    open(PATH, "w").close()


def state():
    """All that the functions change."""
    return repr((LOG, D, OBJ, QUEUE, BUF, COUNT, CELL, os.environ["TRAP"], open_text()))


def open_text():
    with open(PATH, errors="replace") as file:
        return file.read()


def dynamic(fun):
    CASES.append((fun, "dynamic"))
    return fun


def compiled(fun):
    CASES.append((fun, "compiled"))
    return fun


def once(fun):
    """What has an effect in one call may be compiled later on."""
    CASES.append((fun, "once"))
    return fun


@compiled
def legacy(x):
    return np.sum(x**2) * np.random.rand()


@compiled
def legacy_normal(x):
    return np.sum(x * np.random.normal(size=2))


@compiled
def generator(x):
    return np.sum(x * RNG.standard_normal(2))


@compiled
def generator_alias(x):
    draw = RNG.normal
    return np.sum(x * draw(size=2))


@compiled
def generator_choice(x):
    return x[RNG.integers(2)] ** 2


@compiled
def dropout(x):
    mask = RNG.random(2) > 0.5
    return np.sum(np.where(mask, x, 0.0) ** 2)


@dynamic
def shuffle(x):
    i = np.arange(2)
    RNG.shuffle(i)
    return np.sum(x[i] * np.array([1.0, 2.0]))


@compiled
def permutation(x):
    return np.sum(x[np.random.permutation(2)] * np.array([1.0, 2.0]))


@compiled
def seeded_inside(x):
    return np.sum(x * np.random.default_rng(0).normal(size=2))


def two_of(rng, n):
    chosen = np.arange(n)
    rng.shuffle(chosen)
    return chosen[:2]


@compiled
def seeded_and_shuffled(x):
    rng, total = np.random.RandomState(len(x)), 0.0
    for _ in range(8):
        total = total + np.sum(x[two_of(rng, 2)] * rng.uniform())
    return total


@compiled
def drawn_from_a_seed_until(x):
    rng, y = np.random.default_rng(0), x[0]
    while y > 0.01:
        y = y * (0.1 + 0.1 * rng.integers(0, 2))
    return y


@compiled
def spawned(x):
    return np.sum(x * np.random.default_rng(0).spawn(1)[0].normal(size=2))


@compiled
def written_through_calls_and_slices(x):
    """What an expression gives is of the function's own, whatever the expression."""
    table, named, rows = np.zeros((2, 2)), {}, [[0.0], [0.0]]
    table.reshape(-1)[1] = x[0] * 2.0
    table[1:].T[0, 0] += x[1]
    named.setdefault("a", {})["b"] = x[0]
    (rows[0] if len(x) else rows[1])[0] += x[1]
    return np.sum(table**2) * named["a"]["b"] + rows[0][0]


@dynamic
def written_through_a_call_outside(x):
    (lambda: OBJ)().n += 1
    return np.sum(x**2) * OBJ.n


@dynamic
def written_through_a_copy_of_a_list(x):
    [BUF].copy()[0] += 1.0
    return np.sum(x**2) * BUF[0]


@compiled
def pyrandom(x):
    return np.sum(x) * random.random()


@compiled
def pygauss(x):
    return np.sum(x) * random.gauss(0, 1)


@compiled
def pychoice(x):
    return np.sum(x) * random.choice([1.0, 2.0, 3.0])


@compiled
def pyRandom(x):
    return np.sum(x) * RANDOM.uniform(1, 2)


@dynamic
def iterator(x):
    return np.sum(x) * next(ITERATOR)


@dynamic
def iterator_for(x):
    for v in ITERATOR:
        return np.sum(x) * v


@dynamic
def counter(x):
    return np.sum(x) * next(COUNTER)


@dynamic
def gen(x):
    return np.sum(x) * next(GENERATOR)


@dynamic
def cycle(x):
    return np.sum(x) * next(CYCLE)


@compiled
def glob_counter(x):
    global COUNT
    COUNT += 1
    return np.sum(x) * COUNT


@compiled
def attr_counter(x):
    OBJ.n += 1
    return np.sum(x) * OBJ.n


@dynamic
def setattr_counter(x):
    setattr(OBJ, "n", OBJ.n + 1)
    return np.sum(x) * OBJ.n


@compiled
def dict_counter(x):
    D["n"] = D.get("n", 0) + 1
    return np.sum(x) * D["n"]


@dynamic
def dict_update(x):
    D.update(n=D.get("n", 0) + 1)
    return np.sum(x) * D["n"]


@dynamic
def log_append(x):
    LOG.append(1)
    return np.sum(x) * len(LOG)


@dynamic
def log_append_alias(x):
    a = LOG.append
    a(1)
    return np.sum(x) * len(LOG)


@dynamic
def log_iadd(x):
    l = LOG
    l += [1]
    return np.sum(x) * len(l)


@dynamic
def log_helper(x):
    def note(l):
        l.append(1)

    note(LOG)
    return np.sum(x) * len(LOG)


@dynamic
def log_slice(x):
    LOG[len(LOG) :] = [1]
    return np.sum(x) * len(LOG)


@dynamic
def log_del(x):
    LOG.extend([1, 2])
    del LOG[0]
    return np.sum(x) * len(LOG)


@dynamic
def deque_append(x):
    QUEUE.append(1)
    return np.sum(x) * len(QUEUE)


@once
def cache_dict(x):
    if "k" not in D:
        D["k"] = 2.0
        return np.sum(x)
    return np.sum(x) * D["k"]


@compiled
def cached_helper(x):
    return np.sum(x) * cached(3)


@dynamic
def buf_write(x):
    BUF[0] += 1.0
    return np.sum(x) * BUF[0]


@dynamic
def clock(x):
    return np.sum(x) * (time.time() > 0) * (time.perf_counter() > 0)


@dynamic
def monotonic(x):
    t = time.monotonic()
    return np.sum(x) * (2.0 if t > 0 else 1.0)


@dynamic
def now(x):
    return np.sum(x) * (datetime.datetime.now().year > 0)


@dynamic
def today(x):
    return np.sum(x) * (datetime.date.today().year > 0)


@dynamic
def npdatetime(x):
    return np.sum(x) * (np.datetime64("now") > np.datetime64("2000-01-01"))


@dynamic
def open_file(x):
    with open(PATH, "a") as h:
        h.write("b")
    with open(PATH) as h:
        return np.sum(x) * len(h.read())


@dynamic
def loadtxt(x):
    np.savetxt(PATH, np.array([len(D) + 1.0]))
    D[len(D)] = 1
    return np.sum(x) * np.loadtxt(PATH)


@dynamic
def exists(x):
    return np.sum(x) * os.path.exists(PATH)


@dynamic
def environ_set(x):
    os.environ["TRAP"] = str(int(os.environ["TRAP"]) + 1)
    return np.sum(x) * float(os.environ["TRAP"])


@dynamic
def printing(x):
    print(end="")
    return np.sum(x)


@dynamic
def logs(x):
    logging.getLogger("t").warning("hi")
    return np.sum(x)


@dynamic
def stdout(x):
    sys.stdout.write("")
    return np.sum(x)


@dynamic
def warned(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("x")
    return np.sum(x)


@dynamic
def pops(x):
    if not LOG:
        LOG.extend([3.0, 2.0, 1.0] * 5)
    return np.sum(x) * LOG.pop()


@dynamic
def walrus_global(x):
    global COUNT
    return np.sum(x) * (COUNT := COUNT + 1)


@dynamic
def for_global(x):
    global COUNT
    for COUNT in range(COUNT, COUNT + 2):
        pass
    return np.sum(x) * COUNT


@compiled
def for_attr(x):
    for OBJ.n in (OBJ.n, OBJ.n + 1):
        pass
    return np.sum(x) * OBJ.n


@once
def with_as(x):
    with contextlib.nullcontext(OBJ.n + 1) as OBJ.n:
        pass
    return np.sum(x) * OBJ.n


@dynamic
def del_global(x):
    D["a"] = D.get("b", 0) + 1
    D["b"] = D["a"]
    del D["a"]
    return np.sum(x) * D["b"]


@dynamic
def id_of(x):
    return np.sum(x) * (id(LOG) > 0)


@dynamic
def thread_id(x):
    return np.sum(x) * (threading.get_ident() > 0)


@dynamic
def star_target(x):
    (OBJ.n, *LOG[:]) = [OBJ.n + 1, 2, 3]
    return np.sum(x) * OBJ.n * len(LOG)


@dynamic
def comp_effect(x):
    [LOG.append(i) for i in range(2)]
    return np.sum(x) * len(LOG)


@dynamic
def map_effect(x):
    list(map(LOG.append, [1, 2]))
    return np.sum(x) * len(LOG)


@dynamic
def heap(x):
    import heapq

    heapq.heappush(LOG, float(len(LOG)))
    return np.sum(x) * len(LOG)


@dynamic
def random_shuffle(x):
    if not LOG:
        LOG.extend([1.0, 2.0, 3.0])
    random.shuffle(LOG)
    return np.sum(x) * LOG[0]


@dynamic
def dict_in_obj(x):
    OBJ.__dict__["n"] = OBJ.n + 1
    return np.sum(x) * OBJ.n


@dynamic
def vars_write(x):
    vars(OBJ)["n"] = OBJ.n + 1
    return np.sum(x) * OBJ.n


@dynamic
def globals_write(x):
    globals()["COUNT"] = COUNT + 1
    return np.sum(x) * COUNT


@compiled
def method_effect(x):
    class_holder.bump()
    return np.sum(x) * OBJ.n


class H:
    def bump(self):
        OBJ.n += 1


class_holder = H()


@dynamic
def default_mutable(x, acc=[]):
    acc.append(1)
    del acc[3:]
    return np.sum(x) * len(acc)


@dynamic
def sort_inplace(x):
    LOG[:] = [3.0, 1.0, 2.0]
    LOG.sort()
    return np.sum(x) * LOG[0]


@dynamic
def operator_setitem(x):
    import operator

    operator.setitem(D, "n", D.get("n", 0) + 1)
    return np.sum(x) * D["n"]


@dynamic
def copy_ok(x):
    y = copy.deepcopy(OBJ)
    return np.sum(x) * (y.n + 1)


@once
def suppressed(x):
    with contextlib.suppress(KeyError):
        return np.sum(x) * D["zz"]
    D["zz"] = 3.0
    return np.sum(x)


@compiled
def finally_return(x):
    try:
        v = D["zz"]
    except KeyError:
        v = 1.0
        D["zz"] = 5.0
    finally:
        D["yy"] = 1
    return np.sum(x) * v


@compiled
def nonlocal_counter(x):
    return counting(x)


def make_counting():
    n = 0

    def count(x):
        nonlocal n
        n += 1
        CELL[0] = n
        return np.sum(x) * 1.5

    return count


counting = make_counting()


@dynamic
def insort(x):
    bisect.insort(LOG, float(len(LOG)))
    return np.sum(x) * len(LOG)


@dynamic
def uuid_of(x):
    return np.sum(x) * (uuid.uuid4().int > 0)


@dynamic
def generator_bytes(x):
    return np.sum(x) * len(RNG.bytes(3))


@compiled
def generator_local_alias(x):
    r = RNG

    def draw(rng, n):
        return rng.uniform(size=n)

    return np.sum(x * draw(r, 2))


@compiled
def random_in_comprehension(x):
    return sum([x[i] * random.random() for i in range(2)])


@compiled
def random_in_default(x, r=random.random):
    return np.sum(x) * r()


@once
def random_as_key(x):
    return np.sum(x) * sorted([3.0, 1.0, 2.0], key=lambda v: random.random())[0]


@compiled
def random_import(x):
    from random import random as draw

    return np.sum(x) * draw()


@dynamic
def list_iterator_for(x):
    for v in ITERATOR:
        if v > 2:
            break
    return np.sum(x) * v


@dynamic
def zip_iterator(x):
    return np.sum(x) * [a * b for a, b in zip(ITERATOR, [1.0, 2.0])][1]


@dynamic
def star_iterator(x):
    return np.sum(x) * sum(itertools.islice(ITERATOR, 2))


@dynamic
def file_read(x):
    with open(PATH, "a") as h:
        h.write("1")
    return np.sum(x) * float(open_text() or 0)


@dynamic
def buffer_added_to(x):
    buffer = BUF
    buffer += 1.0
    return np.sum(buffer) * np.sum(x**2)


@dynamic
def buffer_two_names(x):
    one = BUF
    other = BUF
    one += 1.0
    return np.sum(other) * np.sum(x**2) + BUF[0]


@dynamic
def buffer_named_then_written(x):
    buffer = BUF
    BUF[0] = BUF[0] + 2.0
    return np.sum(buffer) * np.sum(x**2)


@dynamic
def buffer_out(x):
    np.add(BUF, 1.0, out=BUF)
    return BUF[1] * np.sum(x**2)


@dynamic
def buffer_filled(x):
    BUF.fill(BUF[0] + 1.0)
    return BUF[1] * np.sum(x**2)


@dynamic
def buffer_copied_to(x):
    np.copyto(BUF, BUF + 1.0)
    return BUF[1] * np.sum(x**2)


@dynamic
def buffer_sorted(x):
    BUF[:] = BUF[::-1] + np.array([1.0, 0.0, -1.0])
    BUF.sort()
    return BUF[0] * np.sum(x**2)


@dynamic
def buffer_view(x):
    part = BUF[1:]
    part[:] = part + 1.0
    return np.sum(BUF) * np.sum(x**2)


@dynamic
def buffer_view_read_before(x):
    part, whole = TAIL, BUF
    whole += 1.0
    return np.sum(part) * np.sum(x**2)


@dynamic
def buffer_put(x):
    np.put(BUF, [0], BUF[0] + 1.0)
    return BUF[0] * np.sum(x**2)


@dynamic
def buffer_at(x):
    np.add.at(BUF, [0, 0], 1.0)
    return BUF[0] * np.sum(x**2)


@dynamic
def buffer_flat(x):
    buffer = BUF
    BUF.flat[1] = BUF[1] + 1.0
    return buffer[1] * np.sum(x**2)


def _bump(array):
    array += 1.0


@dynamic
def buffer_handed_on(x):
    _bump(BUF)
    return BUF[2] * np.sum(x**2)


@dynamic
def buffer_in_a_dict(x):
    held = BOX["buffer"]
    held -= 1.0
    return np.sum(BOX["buffer"]) * np.sum(x**2)


@dynamic
def buffer_masked(x):
    BUF[BUF < 2.0] += 0.5
    return np.sum(BUF) * np.sum(x**2)


@dynamic
def buffer_in_a_loop(x):
    for i in range(3):
        buffer = BUF
        buffer[i] += 1.0
    return np.sum(BUF) * np.sum(x**2)


@dynamic
def buffer_decides(x):
    BUF[0] += 1.0
    return np.sum(x**3) if BUF[0] > 3 else np.sum(x**2)


@dynamic
def buffer_shuffled(x):
    BUF[:] = [1.0, 2.0, 3.0]
    np.random.shuffle(BUF)
    return BUF[0] * np.sum(x**2)


@dynamic
def buffer_part_shuffled(x):
    BUF[:] = [1.0, 2.0, 3.0]
    part = BUF[1:]
    RNG.shuffle(part)
    return part[0] * np.sum(x**2)


@dynamic
def settings_of_numpy(x):
    return np.sum(x**2) * np.get_printoptions()["precision"]


@dynamic
def errors_of_numpy(x):
    return np.sum(x**2) * (2.0 if np.geterr()["divide"] == "raise" else 1.0)


@dynamic
def file_loaded(x):
    np.savetxt(PATH, [2.0])
    return np.sum(x**2) * np.loadtxt(PATH)


TAIL = BUF[1:]
BOX = {"buffer": BUF}
VIEW = BUF.view()
BYTES = array.array("d", [1.0, 2.0])
OF_BYTES = np.frombuffer(BYTES)


def through_memory(change):
    """A function that has read an array when what shares its memory is changed, and reads it again."""

    @dynamic
    def fun(x):
        held = BUF
        before = held[:2] * 2.0
        change(held)
        return np.sum(x * before) + np.sum(x**2 * held[:2])

    fun.__name__ = fun.__qualname__ = change.__name__
    return fun


def assign_through_memoryview(array):
    memory = memoryview(array)
    memory[0] = array[0] + 1.0
    memory[1] = 3.0


def assign_through_memoryview_at_once(array):
    memoryview(array)[0] = array[0] + 1.0


def assign_through_a_buffer(array):
    np.frombuffer(array)[:1] += 2.0


def assign_through_an_attribute(array):
    np.frombuffer(array).real = array[0] + 1.0


def assign_to_all_elements(array):
    BUF.flat = array + 1.0


def fill_through_a_buffer(array):
    np.ndarray((2,), float, array).fill(array[1] + 1.0)


def copy_through_a_buffer(array):
    np.copyto(np.frombuffer(array), array + 2.0)


def accumulate_through_a_buffer(array):
    same = np.frombuffer(array)
    np.add(same, 1.0, same)
    np.cumsum(same, None, None, same)


def accumulate_in_a_method(array):
    same = np.frombuffer(array)
    same += 1.0
    same.cumsum(None, None, same)


def accumulate_in_another_name(array):
    same = VIEW
    np.add(same, 1.0, out=same)
    np.cumsum(same, out=same)


def set_field_of_another_name(array):
    VIEW.setfield(array + 1.0, float)


def swap_bytes_of_another_name(array):
    VIEW[:2] = array[0] + 1.0
    VIEW.byteswap(inplace=True)
    VIEW.byteswap(True)
    VIEW.setfield(VIEW.byteswap().byteswap() + 1.0, float)


def iterate_to_write(array):
    for item in np.nditer(BUF, op_flags=["readwrite"]):
        item[...] = 2.0 * item + 1.0


for _change in (
    assign_through_memoryview, assign_through_memoryview_at_once, assign_through_a_buffer, assign_through_an_attribute,
    assign_to_all_elements, fill_through_a_buffer, copy_through_a_buffer, accumulate_through_a_buffer, accumulate_in_a_method,
    accumulate_in_another_name, set_field_of_another_name, swap_bytes_of_another_name, iterate_to_write,
):  # fmt: skip
    through_memory(_change)


@dynamic
def reverse_below_an_array(x):
    held = OF_BYTES
    BYTES.reverse()
    return np.sum(x**2 * held)


@dynamic
def draw_into_an_array(x):
    RNG.random(3, float, BUF)
    RNG.standard_exponential(2, float, "zig", BUF[:2])
    return np.sum(x * x) * BUF[0]


@dynamic
def array_to_file(x):
    BUF.tofile(PATH)
    (BUF + 1.0).tofile(PATH)
    return np.sum(x * x)


@dynamic
def array_dumped(x):
    np.zeros(2).dump(PATH)
    return np.sum(x * x)


@dynamic
def decimal_precision(x):
    decimal.getcontext().prec = 11
    decimal.setcontext(decimal.Context(prec=28 + COUNT))
    return np.sum(x) * decimal.getcontext().prec


@dynamic
def memory_mapped(x):
    np.memmap(PATH, float, "w+", shape=2)[:] += 2.0
    return np.sum(x * np.memmap(PATH, float, "r", shape=2))


@dynamic
def time_in_capitals(x):
    return np.sum(x * x) + 0.0 * float(np.datetime64("NOW") > np.datetime64("2020-01-01"))


if scipy is not None:

    @dynamic
    def scipy_matrix_of_file(x):
        scipy.sparse.save_npz(PATH + ".npz", scipy.sparse.csr_array(np.eye(2) * 3.0))
        return np.sum(scipy.sparse.load_npz(PATH + ".npz") @ x)

    @dynamic
    def scipy_draws(x):
        return np.sum(x * scipy.sparse.random(2, 2, density=1.0).toarray()[0])

    @dynamic
    def scipy_searches(x):
        return np.sum(x * scipy.cluster.vq.kmeans(np.sin(np.arange(12.0).reshape(6, 2)), 2)[0][0])

    @dynamic
    def scipy_sequence(x):
        return np.sum(x * x) + 0.0 * scipy.stats.qmc.Sobol(2).random(2)[0, 0]

    @compiled
    def scipy_with_a_seed(x):
        return np.sum(x * scipy.cluster.vq.kmeans(np.sin(np.arange(12.0).reshape(6, 2)), 2, rng=1)[0][0])


def beside_a_cache(read):
    """A function that asks a cache, and reads what is changed where that is filled: in the calls that come later, too."""

    @dynamic
    def fun(x):
        return np.sum(x) * read()

    fun.__name__ = fun.__qualname__ = read.__name__
    return fun


beside_a_cache(lambda: cached(3) * len(LOG))
beside_a_cache(lambda: cached_in_global(3) * COUNT)
beside_a_cache(lambda: cached_in_attribute(3) * OBJ.n)
beside_a_cache(lambda: cached_in_array(3) * BUF[1])
beside_a_cache(lambda: cached_by_name(3) * OBJ.n)
beside_a_cache(lambda: cached_object(3).scale * Keeping.made)
beside_a_cache(lambda: KEEPING.kept * KEEPING.asked)
beside_a_cache(lambda: cached(3) * cached.cache_info().currsize)


@dynamic
def cache_emptied(x):
    cached.cache_clear()
    return np.sum(x) * cached(3) * len(LOG)


@compiled
def cached_object_helper(x):
    return np.sum(x) * cached_object(3).scale
