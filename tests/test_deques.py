"""Deques of the function's own in loops that decide: what is in them goes round, as what is in lists does."""

from collections import deque

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad


def moving_sum(x):
    window, s = deque([0.0] * 4, maxlen=4), 0.0
    for v in x:
        window.append(v)
        if sum(window) > 0:
            s += v
    return s


def from_the_left(x):
    window, s = deque([0.0] * 4, maxlen=4), 0.0
    for v in x:
        window.appendleft(v)
        if window[0] > window[-1]:
            s += v * window[2]
        if s > 3.0:
            window.rotate(1)
    return s + sum(window)


def delayed(x):
    queue, s = deque([x[0], x[1]]), 0.0
    for v in x:
        first = queue.popleft()
        queue.append(0.5 * first + v if v > 0 else first)
        s += first
    return s + queue[0] * queue[1]


def under_two_names(x):
    queue, s = deque([0.0, 0.0], 2), 0.0
    same = queue
    for v in x:
        if v > 0:
            queue.append(v)
        else:
            same.append(-v)
        s += queue[0] * same[1]
    return s


def made_anew(x):
    queue, s = deque([0.0, 0.0], 2), 0.0
    for v in x:
        if v > 0:
            queue = deque([v, queue[0]], 2)
        s += queue[0] * queue[1]
        queue.append(v)
    return s


def filled_by_the_loop(x):
    window, s = deque(maxlen=3), 0.0
    for v in x:
        window.append(v)
        if len(window) == 3 and max(window) > 1:
            s += min(window)
    return s + len(window)


def from_both_ends(x):
    queue, s = deque([0.0] * 3), 0.0
    for v in x:
        queue.append(v)
        if v > 1:
            queue.popleft()
            s += queue[0]
        else:
            queue.pop()
            s += queue[-1]
    return s + sum(queue)


class Filter:
    def __init__(self):
        self.last = deque([0.0] * 3, maxlen=3)

    def step(self, v):
        self.last.append(v)
        return sum(self.last) / 3 if v > 0 else self.last[0]


def of_an_object(x):
    smooth, s = Filter(), 0.0
    for v in x:
        y = smooth.step(v)
        if y > 0.2:
            s += y
    return s


def one_of_two(x):
    above, below, s = deque([0.0] * 3, maxlen=3), deque([1.0] * 3, maxlen=3), 0.0
    for v in x:
        (above if v > 0 else below).append(v)
        s += above[0] * below[0]
    return s


def of_arrays(x):
    rows, s = deque([np.zeros(2), np.zeros(2)], maxlen=2), 0.0
    for i in range(len(x) - 1):
        rows.append(x[i : i + 2] * 2.0)
        if x[i] > 0:
            rows[0][0] = 5.0
        s += rows[0] @ rows[1]
    return s


CODE = [
    moving_sum, from_the_left, delayed, under_two_names, made_anew, filled_by_the_loop, from_both_ends, of_an_object,
    one_of_two, of_arrays,
]  # fmt: skip


def of_ints(x):
    queue, s = deque([x[0], 0.0, 0]), 0.0
    for v in x:
        queue[1] = queue[0] if v > 0 else v
        queue.rotate(1)
        s += queue[1]
    return s + (x[0] if isinstance(queue[2], int) else x[1])


def of_pairs(x):
    queue, s = deque([(0.0, 0)] * 3, maxlen=3), 0.0
    for i, v in enumerate(x):
        if v > 0:
            queue.append((v, i))
        a, k = queue[0]
        s += a * k
    return s


def medians(x):
    queue, s = deque([0.0] * 3, maxlen=3), 0.0
    for v in x:
        queue.append(v)
        s += np.median(queue) if v > 0 else np.mean(np.array(queue))
    return s


def until_it_is_empty(x):
    queue, s = deque(x[:3]), 0.0
    while queue:
        a = queue.popleft()
        s += a
        if a > 0.5:
            queue.append(a * 0.5)
    return s


def asked(x):
    queue, s = deque([0] * 3, maxlen=3), 0.0
    for v in x:
        if v > 0.5:
            queue.append(v if v > 1.0 else 0.0)
        s += (1.0 if isinstance(queue[0], int) else 2.0 if 0.0 in queue else 3.0) * v
    return s + (x[0] if queue == deque([0] * 3) else x[1])


@pytest.mark.parametrize("fun", [*CODE, of_ints, of_pairs, medians, until_it_is_empty, asked])
def test_values_and_slopes(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for i in range(20):
        x = rng.normal(size=20)
        right_at(derivative, fun, -np.abs(x) if i % 6 == 5 else x, (1e-12, 1e-12), (1e-9, 1e-12))


@pytest.mark.parametrize("fun", CODE)
def test_code_answers(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for _ in range(60):
        derivative(rng.normal(size=20))
    assert derivative.cache_info().misses <= 12
