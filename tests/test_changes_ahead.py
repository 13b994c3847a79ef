"""Loops over what is outside, which change items ahead of them: these come as they are when their turn comes."""

import collections
import contextlib
import itertools
import re
import types

import numpy as np
import pytest
from agreement import function_of

from symgrad import grad, value_and_grad
from symgrad.errors import MutatedInput

LOOPS = {  # what a ``for`` statement runs over, and a number that its target stands for
    "items": "a in items: A",
    "enumerated": "i, a in enumerate(items): A + 0.1 * i",
    "numbered": "i, a in enumerate(items, start=2): A * i",
    "zipped": "a, b in zip(items, others): A * B",
    "with_itself": "a, b in zip(items, items[1:]): A * B",
    "both_ways": "a, b in zip(items, reversed(items)): A * B",
    "backwards": "a in reversed(items): A",
    "numbered_backwards": "i, a in enumerate(reversed(items)): A * i",
    "neighbours": "a, b in itertools.pairwise(items): A * B",
    "first": "a in itertools.islice(items, SIZE - 1): A",
    "others": "a in itertools.islice(items, 1, None): A",
    "between": "a in itertools.islice(items, 1, SIZE - 1): A",
    "chained": "a in itertools.chain(items, others): A",
    "teed": "a, b in zip(*itertools.tee(items)): A * B",
    "one_by_one": "a in itertools.chain.from_iterable([items, others]): A",
    "of_an_iterator": "a in iter(items): A",
    "of_a_method": "a in items.__iter__(): A",
    "of_the_method_backwards": "a in items.__reversed__(): A",
    "mapped": "a in map(lambda v: v * x, items): A",
    "filtered": "a in filter(None, items): A",
    "summed_up": "a in itertools.accumulate(items): A",
    "selected": "a in itertools.compress(items, [k % 3 > 0 for k in range(SIZE)]): A",
    "filled": "a, b in itertools.zip_longest(items, others[1:], fillvalue=1.0): A * B",
    "round": "a, k in zip(itertools.cycle(items), range(SIZE + 3)): A * k",
    "repeated": "a, _ in itertools.product(items, range(2)): A",
    "of_a_generator": "a in (v * x for v in items): A",
    "of_pairs": "a, b in pairs: A * B",
    "of_numbered_pairs": "i, (a, b) in enumerate(pairs): A * B",
    "of_a_dict": "k in table: table[k]",
    "of_its_values": "a in table.values(): A",
    "of_its_items": "k, a in table.items(): A",
    "of_numbered_values": "i, a in enumerate(table.values()): A * i",
    "of_zipped_values": "a, b in zip(table.values(), items): A * B",
    "of_its_values_backwards": "a in reversed(table.values()): A",
    "of_its_items_backwards": "k, a in reversed(table.items()): A",
    "of_an_attribute": "a in o.items: A",
    "of_an_attribute_backwards": "a in reversed(o.items): A",
    "of_a_deque": "a in queue: A",
    "of_a_deque_backwards": "a in reversed(queue): A",
}
CHANGES = {
    "number": "LIST[{place}] = 0.5 * s + x",
    "constant": "LIST[{place}] = float(n)",
    "added": "LIST[{place}] += 0.1 * x",
    "by_a_function": "put(LIST, {place}, s * x)",
}
GROWING = {
    "appended": "LIST.append(x) if n == 2 else None",
    "taken": "LIST.pop() if n == 2 else None",
    "inserted": "LIST.insert(0, x) if n == 2 else None",
    "cut": "if n == 2: del LIST[-1]",
}


def put(owner, key, value):
    owner[key] = value


def made(path, loop, change, size, place):
    """A function of a number, and what fills the things outside that it reads as they were."""
    head, value = LOOPS[loop].rsplit(": ", 1)
    value = value.replace("A", "a").replace("B", "b")
    where = "o.items" if "o.items" in head else "queue" if "queue" in head else "items"
    where = "table" if "table" in head else "pairs" if "pairs" in head else where
    change = change.format(place=repr("k" + str(place % size)) if where == "table" else place)
    if where == "pairs":
        change = f"LIST[{place}] = (0.5 * s + x, 2.0)"
    lines = [
        "def fun(x):",
        "    s, n = 0.0, 0",
        f"    for {head}:",
        "        n += 1",
        f"        {change.replace('LIST', where)}",
        f"        s = s + ({value}) * x * 0.3",
        "    return s",
    ]

    fun = function_of("\n".join(lines), path)
    space = fun.__globals__
    space |= {"items": [], "others": [], "pairs": [], "table": {}, "queue": collections.deque(), "o": types.SimpleNamespace()}
    space |= {"itertools": itertools, "SIZE": size, "put": put}

    def fill():
        numbers = [0.5 + 0.1 * k for k in range(size)]
        space["items"][:] = numbers
        space["others"][:] = numbers[::-1]
        space["pairs"][:] = list(zip(numbers, numbers[::-1], strict=True))
        space["table"].clear()
        space["table"].update({f"k{k}": number for k, number in enumerate(numbers)})
        space["queue"].clear()
        space["queue"].extend(numbers)
        space["o"].items = [*numbers]

    return fun, fill


def agrees(fun, fill, x=0.7, step=1e-6):
    def value(at):
        fill()
        return fun(at)

    expected = (value(x + step) - value(x - step)) / (2 * step)
    g = grad(fun)
    for _ in range(4):
        fill()
        assert np.isclose(g(x), expected, rtol=1e-6)


@pytest.mark.parametrize("size", [4, 40])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("loop", LOOPS)
def test_items_that_a_loop_changes_ahead(loop, change, size, tmp_path):
    for place in (0, 2, size - 1):
        agrees(*made(tmp_path / f"at_{place}.py", loop, CHANGES[change], size, place))


@pytest.mark.parametrize("change", GROWING)
@pytest.mark.parametrize(
    "loop", [name for name, head in LOOPS.items() if not {"table", "queue", "pairs"} & set(re.split(r"\W", head))]
)
def test_lists_that_grow_or_shrink_meanwhile(loop, change, tmp_path):
    agrees(*made(tmp_path / "grown.py", loop, GROWING[change], 5, 0))


def test_iterators_that_are_asked_one_by_one():
    items, table = [1.0, 2.0, 3.0], {"a": 1.0, "b": 2.0}

    def fill():
        items[:] = [1.0, 2.0, 3.0]
        table.update(a=1.0, b=2.0)

    def of_a_list(x):
        rest = iter(items)
        first = next(rest)
        items[1] = first * x
        return next(rest) * x + next(rest)

    def of_the_end(x):
        rest = reversed(items)
        last = next(rest)
        items[1] = last * x
        return next(rest) * x + next(rest)

    def of_a_dict(x):
        rest = iter(table.items())
        _, first = next(rest)
        table["b"] = first * x
        return next(rest)[1] * x

    def generated(x):
        def numbers():
            yield from items

        rest = numbers()
        first = next(rest)
        items[1] = first * x
        return next(rest) * x

    for fun in (of_a_list, of_the_end, of_a_dict, generated):
        agrees(fun, fill)


def test_a_dict_that_grows_meanwhile_raises_as_in_python():
    table = {"a": 1.0, "b": 2.0}

    def fun(x):
        s = 0.0
        for value in table.values():
            table["c"] = 1.0
            s = s + value * x
        return s

    with pytest.raises(RuntimeError, match="changed size"):
        grad(fun)(1.0)


SHOWN = {
    "summed": "sum(table.values())",
    "listed": "sum(list(values))",
    "largest": "max(values)",
    "least_item": "sorted(entries)[0][1]",
    "unpacked": "[*values][0] + [*values][1]",
    "generated": "sum(v for v in values)",
    "of_entries": "sum(v for _, v in entries)",
    "as_an_array": "np.sum(np.array(list(values)))",
    "counted": "len(keys) + len(values) + len(entries)",
    "found": "2.0 if 'c' in keys else 1.0",
    "united": "len(keys | {'q'})",
    "turned_round": "sum(reversed(values))",
    "by_a_method": "sum([v for _, v in entries.__iter__()])",
    "disjoint": "2.0 if keys.isdisjoint({'c'}) else 1.0",
    "compared": "2.0 if keys == {'a', 'b', 'c'} else 1.0",
}


@pytest.mark.parametrize("change", ["table['a'] = x * x", "table['c'] = x * x", "del table['b']"])
@pytest.mark.parametrize("asked", SHOWN)
def test_what_a_dict_shows_of_itself_changes_with_it(asked, change, tmp_path):
    if "del" in change and asked == "unpacked":
        change = "table['b'] = x"
    shown = "values, keys, entries = table.values(), table.keys(), table.items()"
    fun = function_of(f"def fun(x):\n    {shown}\n    {change}\n    return ({SHOWN[asked]}) * x\n", tmp_path / "shown.py")
    table = fun.__globals__["table"] = {}

    def fill():
        table.clear()
        table.update(a=1.0, b=2.0)

    agrees(fun, fill, x=1.3)


def by_turns(*calls):
    """Each call is right, and leaves outside what the function does, from the first one on."""
    for fun, fill, left in calls:
        fill()
        expected, there = fun(0.7), left()
        slope = []
        for x in (0.7 + 1e-6, 0.7 - 1e-6):
            fill()
            slope.append(fun(x))
        g = value_and_grad(fun)
        for _ in range(4):
            fill()
            value, gradient = g(0.7)
            assert np.isclose(value, expected)
            assert np.isclose(gradient, (slope[0] - slope[1]) / 2e-6, rtol=1e-6)
            assert left() == there


ITEMS, OTHERS = [], []


def fill_items():
    ITEMS[:] = [0.5, 0.6, 0.7, 0.8]
    OTHERS[:] = [1.5]


def swaps(x):
    ITEMS[0], ITEMS[1] = ITEMS[1] + 1.0, ITEMS[0]
    for item in ITEMS:
        if isinstance(item, int):
            x = x + item
    return x * ITEMS[0]


def takes_out(x):
    last = ITEMS.pop()
    for item in ITEMS:
        if isinstance(item, int):
            x = x + item
    return x * ITEMS[0] * last * len(ITEMS)


def holds(x):
    held = []
    held.append(ITEMS)
    held[0][0] = 2.0
    return sum(ITEMS) * x


class Reader:
    """Reads what it holds by methods that code in C calls."""

    def __init__(self, held):
        self.held = held

    def __iter__(self):
        return iter(self.held)

    def __getitem__(self, k):
        return self.held[k]

    def __setitem__(self, k, value):
        self.held[k] = value


class Indexed:
    def __getitem__(self, k):
        return ITEMS[k]


def reads_by_iteration(x):
    return sum(Reader(ITEMS)) * x


def writes_by_a_method(x):
    reader = Reader(ITEMS)
    reader[0] = OTHERS[0]
    return ITEMS[0] * x


def reads_by_index(x):
    s = 0.0
    for item in Indexed():
        s = s + item * x
    return s


def test_runs_that_begin_anew_find_what_was_there():
    by_turns(*[(fun, fill_items, lambda: [*ITEMS]) for fun in (swaps, takes_out)])


def test_what_is_put_into_a_list_is_that_very_thing():
    by_turns((holds, fill_items, lambda: [*ITEMS]))


@pytest.mark.parametrize("fun", [reads_by_iteration, writes_by_a_method, reads_by_index])
def test_methods_of_own_objects_lead_outside(fun):
    by_turns((fun, fill_items, lambda: [*ITEMS]))
    g = grad(fun)
    for first in (0.5, 0.5, 1.5, 2.5):
        fill_items()
        ITEMS[0] = OTHERS[0] = first
        expected = (fun(1.7) - fun(0.7)) / 1.0
        fill_items()
        ITEMS[0] = OTHERS[0] = first
        assert np.isclose(g(0.7), expected)


def test_what_would_change_a_copy_is_refused():
    rows = [[1.0, 2.0], [3.0, 4.0]]

    def fun(x):
        for row in sorted(rows):
            row[0] = 5.0
        return x * rows[0][0]

    with pytest.raises(MutatedInput, match="a copy"):
        grad(fun)(1.0)


@pytest.mark.parametrize("kind", [collections.ChainMap, types.MappingProxyType])
def test_what_shows_a_dict_from_outside_shows_it_as_it_is(kind):
    table = {}

    def fill():
        table.update(a=1.0, b=2.0)

    def fun(x):
        shown = kind(table)
        table["a"] = 5.0
        return shown["a"] * x * sum(shown.values())

    agrees(fun, fill)


def test_generators_that_are_closed():
    def numbers(x):
        for k in range(3):
            yield x * k

    def fun(x):
        s = 0.0
        with contextlib.closing(numbers(x)) as every:
            for v in every:
                s = s + v * x
        return s

    agrees(fun, lambda: None)


LONGER = []


def added_to(numbers, more):
    numbers[0] = numbers[0] + more
    return 1.0


def counts_after_a_write(x):
    OTHERS[len(ITEMS) % 4] = 2.0 + ITEMS[0]
    for _ in LONGER:
        put(LONGER, 0, 1.5)
    return x * sum([item for item in LONGER if added_to(OTHERS, 0.1)])


def test_numbers_that_go_round_begin_with_what_was_put_there_by_an_index():
    def fill():
        fill_items()
        LONGER[:] = [0.5 + 0.1 * k for k in range(40)]

    by_turns((counts_after_a_write, fill, lambda: [round(item, 9) for item in OTHERS]))


class Link:
    """One of a chain, each of which knows the one before, and itself."""

    def __init__(self, value, before):
        self.value, self.before, self.itself = value, before, self

    def __iter__(self):
        return iter((self.value, self.value))


def of_a_chain(x):
    link = None
    for k in range(20):
        link = Link(x * k, link)
    return sum(link) * x


def test_long_chains_of_own_objects_are_compiled():
    by_turns((of_a_chain, fill_items, lambda: [*ITEMS]))
    g = grad(of_a_chain)
    for _ in range(3):
        g(0.7)
    assert "every call" not in g.explain()
