"""Threads that share loops over blocks: nothing but the time tells that they do."""

import dataclasses
import functools
import gc
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_blocks import CASES, SHARED, TINY, compiled, each_alone, sizes, source

import symgrad
from symgrad import grad, parallel, value_and_grad, without
from symgrad.buffers import POOL, _Lease
from symgrad.parallel import MOST, VARIABLES, _helpers, alone, share, threads
from symgrad.pytree import flatten


@pytest.fixture(autouse=True)
def arrays_stay_arrays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiny arrays stand for big ones, and this process for one of several threads."""
    monkeypatch.setattr("symgrad.emit.blocks.several", lambda: True)
    with without("scalarize"):
        yield


def test_code_for_one_thread_has_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(1_000_000)
    monkeypatch.setattr("symgrad.emit.blocks.several", parallel.several)
    for processors, shared in ((1, False), (2, True)):
        monkeypatch.setattr(parallel, "_own", lambda processors=processors: processors)
        text = grad(lambda x: np.sum(np.exp(np.sin(x) * x) * np.cos(x))).source(x, fast=True)
        assert ("share(loop" in text) is shared


def whose(blocks: range) -> dict[int, str]:
    """Which thread runs each block."""
    found: dict[int, str] = {}

    def loop(turns):
        before = -1
        for block in turns:
            assert before < block not in found
            found[block], before = threading.current_thread().name, block
            time.sleep(1e-3)

    share(loop, blocks)
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_each_block_runs_once(count):
    blocks = range(0, 100, 3)
    with threads(count):
        found = whose(blocks)
    assert sorted(found) == list(blocks)
    assert len(set(found.values())) <= count
    if count > 1:
        assert any(name.startswith("symgrad") for name in found.values())


def test_one_thread_is_the_caller():
    with threads(1):
        assert set(whose(range(5)).values()) == {threading.current_thread().name}
    with threads(5):
        assert set(whose(range(1)).values()) == {threading.current_thread().name}


def test_the_first_error_is_raised_and_nothing_follows():
    ran = []

    def loop(turns):
        for block in turns:
            ran.append(block)
            time.sleep(2e-3 if block == 3 else 1e-3)
            if block in (3, 4):
                raise ValueError(block)

    for count in (1, 2, 4):
        ran.clear()
        with threads(count), pytest.raises(ValueError, match="3"):
            share(loop, range(40))
        assert {0, 1, 2, 3} <= set(ran)
        assert len(ran) < 20


def test_loops_within_loops_and_in_many_threads():
    total = []

    def inner(turns):
        total.extend(turns)

    def outer(turns):
        for _ in turns:
            with threads(8):
                share(inner, range(10))

    def call(_):
        with threads(8):
            share(outer, range(10))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))
    assert len(total) == 800


def test_a_limit_holds_where_it_is_set():
    def seen():
        return parallel._threads()

    with threads(3):
        assert seen() == 3
        with threads(1):
            assert seen() == 1
        assert seen() == 3
        with threads(100):
            assert seen() == MOST
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(seen).result() == min(parallel._allowed(), parallel._processors())
    with pytest.raises(ValueError, match="at least one"), threads(0):
        pass


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({}, MOST),
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OPENBLAS_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"MKL_NUM_THREADS": "2"}, 2),
        ({"SYMGRAD_NUM_THREADS": "6", "OMP_NUM_THREADS": "1"}, 6),
        ({"SYMGRAD_NUM_THREADS": "600"}, MOST),
        ({"OMP_NUM_THREADS": "0", "OPENBLAS_NUM_THREADS": "many"}, MOST),
    ],
)
def test_the_environment(given, allowed, monkeypatch):
    for variable in ("SYMGRAD_NUM_THREADS", *parallel.VARIABLES):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(parallel, "_quotas", list)
    assert parallel._allowed.__wrapped__() == allowed


def test_affinity(monkeypatch):
    monkeypatch.setattr(parallel, "_allowed", lambda: 5)
    for processors in (1, 3, 64):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=processors: set(range(n)), raising=False)
        assert parallel._threads() == min(processors, 5)


def test_control_groups(tmp_path):
    def group(path, **files):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (tmp_path / path / name.replace("_", ".", 1)).write_text(text)

    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    assert parallel._quotas(str(tmp_path), str(own)) == []
    group("a/b", cpu_max="max 100000\n")
    group("a", cpu_max="150000 100000\n")
    assert parallel._quotas(str(tmp_path), str(own)) == [2]
    own.write_text("5:memory:/a\n4:cpu,cpuacct:/c\n")
    group("cpu,cpuacct/c", cpu_cfs_quota_us="-1\n", cpu_cfs_period_us="100000\n")
    assert parallel._quotas(str(tmp_path), str(own)) == []
    group("cpu,cpuacct", cpu_cfs_quota_us="50000\n", cpu_cfs_period_us="100000\n")
    assert parallel._quotas(str(tmp_path), str(own)) == [1]
    assert parallel._quotas(str(tmp_path), str(tmp_path / "none")) == []


# -- compiled derivatives ------------------------------------------------------------------------------------------


ROWS = dataclasses.replace(SHARED, piece=80)  # two rows of the widest arrays


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_for_any_number_of_threads(name):
    fun, make = CASES[name]
    for size in (41, 42):
        args = make(size)
        make_derivative = functools.partial(value_and_grad, fun, argnums=tuple(range(len(args))))
        derivative = make_derivative()
        with threads(1):
            first = flatten(compiled(derivative, *args, given=ROWS))[0]
        found = []
        for count in (2, 3, 8):
            with threads(count):
                found.append(derivative(*args))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("symgrad.emit.blocks.share", each_alone)
            found.append(compiled(make_derivative(), *args, given=ROWS))
        for again in found:
            for a, b in zip(first, flatten(again)[0], strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"turned", "logistic"}))
def test_these_are_shared(name):
    """Not products, for which BLAS has threads of its own."""
    fun, make = CASES[name]
    args = make(42)
    assert "share(" in source(grad(fun), *args, given=ROWS)
    assert "share(" not in source(grad(fun), *args, given=TINY)
    with without("threads"):
        assert "share(" not in source(grad(fun), *args, given=ROWS)


def test_what_is_shared_by_default():
    def chain(x):
        return np.sum(np.exp(np.sin(x) * x) * np.cos(x))

    def shared(size):
        return "share(loop" in grad(chain).source(np.ones(size), fast=True)

    assert shared(1_000_000)
    assert not shared(150_000)
    assert not shared(1_000)


def test_blocks_too_short_for_what_they_have_in_common():
    """The last of three would not hold the two rows."""

    def fun(x):
        return np.sum(np.sin(x[2:]) * x[1:-1] * np.cos(x[:-2]))

    assert "share(" not in source(grad(fun), np.ones(12), given=SHARED)  # blocks of 3, 3, 3 and 1
    assert "share(" in source(grad(fun), np.ones(13), given=SHARED)


def test_floating_point_errors_are_the_callers():
    def fun(x):
        return np.sum(np.log(x) * np.exp(x) * x)

    x = np.linspace(0.0, 1.0, 60)
    with np.errstate(divide="ignore", invalid="ignore"):
        derivative = grad(fun)
        with threads(4):
            compiled(derivative, x, given=SHARED)
            assert np.isneginf(derivative(x)[0]) or np.isnan(derivative(x)[0])
    with threads(4):
        with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="divide by zero"):
            derivative(x)
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            derivative(x)
        calls = []
        with np.errstate(divide="call", invalid="call", call=lambda *error: calls.append(error)):
            derivative(x)
        assert calls
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            derivative(np.linspace(0.5, 1.0, 60))


def test_from_many_threads_at_once():
    def fun(x):
        return np.sum(np.sin(x[1:]) * x[:-1] ** 2)

    derivative = grad(fun)
    inputs = [np.linspace(0, k, 50) for k in range(1, 7)]
    with threads(1):
        expected = [compiled(derivative, x, given=SHARED) for x in inputs]

    def call(k):
        with threads(4):
            return [derivative(inputs[k % 6]) for _ in range(20)]

    with ThreadPoolExecutor(6) as pool:
        for k, found in enumerate(pool.map(call, range(12))):
            for gradient in found:
                np.testing.assert_array_equal(gradient, expected[k % 6])


@pytest.mark.parametrize(
    ("given", "processors", "one"),
    [
        ({}, 4, False),
        ({}, 1, True),
        ({"OMP_NUM_THREADS": "1"}, 4, True),
        ({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1,2"}, 4, True),
        ({"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "1"}, 4, False),
        ({"SYMGRAD_NUM_THREADS": "1"}, 4, False),  # which is no business of BLAS
    ],
)
def test_whether_blas_has_one_thread(monkeypatch, given, processors, one):
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr("symgrad.parallel._processors", lambda: processors)
    assert alone.__wrapped__() is one


@pytest.mark.parametrize("late", [False, True])
def test_threads_give_their_memory_back(late):
    """Also those that have other work until the loops are over."""

    def fun(x):
        return np.sum(np.exp(np.sin(x)) * x)

    def leased() -> int:
        gc.collect()  # what other tests left goes back now
        return sum(type(thing) is _Lease for thing in gc.get_objects())

    derivative, over = grad(fun), threading.Event()
    with threads(3):
        compiled(derivative, np.linspace(0, 1, 50), given=SHARED)
        before = leased()
        free = sum(len(blocks) for blocks in POOL.free.values())
        busy = [_helpers().submit(over.wait) for _ in range(MOST - 1)] if late else []
        try:
            for _ in range(50):
                derivative(np.linspace(0, 1, 50))
            assert leased() <= before
        finally:
            over.set()
        assert all(future.result() for future in busy)
    assert sum(len(blocks) for blocks in POOL.free.values()) <= free + 6  # two arrays for each thread


def test_the_profile_has_the_lines_of_a_shared_loop():
    def fun(x):
        return np.sum(np.exp(np.sin(x)) * x)

    x = np.linspace(0, 1, 50)
    derivative = grad(fun)
    compiled(derivative, x, given=SHARED)
    with sizes(SHARED):
        shown = str(derivative.profile(x, seconds=0.01))
    assert re.search(r"\d+ (ms|us|ns).*sin\(x_block", shown)


# -- processes -----------------------------------------------------------------------------------------------------


def script(text: str) -> str:
    """What a Python program prints."""
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(symgrad.__file__))}
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, timeout=100)
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


HEAD = """
import os, threading, time, sys
from symgrad.parallel import share, threads
def names():
    found = []
    def loop(turns):
        for block in turns:
            time.sleep(1e-3)
            found.append(threading.current_thread().name[:7])
    with threads(3):
        share(loop, range(30))
    assert len(found) == 30
    return len(set(found)) > 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_has_threads_of_its_own():
    child = """
assert names()
pid = os.fork()
if not pid:
    os._exit(0 if names() else 1)
assert os.waitpid(pid, 0)[1] == 0 and names()
print("done")
"""
    assert script(HEAD + child).startswith("done")


def test_at_exit_loops_run_alone():
    assert script(HEAD + "import atexit; atexit.register(lambda: print(names())); print(names())").split() == ["True", "False"]
    assert script(HEAD + "import atexit; atexit.register(lambda: print(names()))").split() == ["False"]
