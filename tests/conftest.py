"""What all tests share: hypothesis profiles and golden files."""

import gc
import math
import os
import sys
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

collect_ignore = ["benchmarks", "golden", "typed_user.py", "eager/opinfo.py"]  # the last two are for mypy, and need torch
if sys.version_info < (3, 12):
    collect_ignore.append("shapes_new.py")

# Before NumPy is imported, here and in the workers of pytest-xdist: threads of BLAS that share processors with other workers
# wait for one another thousands of times as long as they compute. symgrad's own would heed this, too, and are to be tested.
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # code hangs on it, and tests tell which there is
os.environ.setdefault("SYMGRAD_NUM_THREADS", "8")

# Where PYTHONDONTWRITEBYTECODE is set, each of the many processes that tests start would compile all of symgrad anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.set_threshold(20_000)  # traces and code are many objects that live long: to look at them often takes a tenth of a run

import numpy as np  # noqa: E402
from ops_samples import deep  # noqa: E402

from symgrad import buffers, compile, runtime  # noqa: E402
from symgrad.emit import blocks  # noqa: E402

# "default" finds the same examples at every run of CI; `pytest --hypothesis-profile=deep` searches for long.
settings.register_profile("default", deadline=None, max_examples=5, derandomize="CI" in os.environ)
settings.register_profile("deep", deadline=None, max_examples=5000, derandomize=False)
settings.load_profile("default")


ONE_OF = {1: 1, 4: 4, 12: 14, 32: math.inf}  # so many cases of a test one runs, where it has no more than those
NONE = set[str]()  # tests of which no case runs

compile.MAX_SHARED = 0  # each derivative of a test has code of its own, unless the test is about that
compile.GRACE = compile.QUICK = math.inf  # how fast the machine is decides on nothing


def _spoiled(empty: Any) -> Any:
    """Memory in which nothing is left of what was there, so that nobody reads what code has not written."""

    def made(shape: Any, dtype: Any) -> Any:
        array = empty(shape, dtype)
        array.fill(np.nan if array.dtype.kind in "fc" else 1)
        return array

    return made


blocks.empty = runtime.empty = _spoiled(buffers.empty)


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives of functions that are alike share their code, as they do for users."""
    monkeypatch.setattr(compile, "MAX_SHARED", 8)
    monkeypatch.setattr(compile, "_shared", OrderedDict())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing them")
    parser.addoption("--every-case", action="store_true", help="run all cases of all tests, as a run that names files does")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: left out where only some cases of tests run, as others look at the same")
    config.addinivalue_line("markers", "whole: run all cases of this test, as nothing else tests what it does")


def runs_all(config: pytest.Config) -> bool:
    """Files or cases are named, golden files are written, or the run is a deep one."""
    options = config.option
    named = options.keyword or any([arg.partition("::")[0].endswith(".py") for arg in config.args])
    return bool(named or options.every_case or options.update_golden or deep())


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Of tests with many cases, most of which cross what others test, run some: other ones in each test.

    The others are not even made items of, of which there would be 30,000 in each worker.
    """
    yield
    cases, test = metafunc._calls, metafunc.definition
    if len(cases) > 1 and not runs_all(metafunc.config) and not test.get_closest_marker("whole"):
        every = next(step for step, most in ONE_OF.items() if len(cases) <= most)
        start = zlib.crc32(test.nodeid.encode())
        chosen = [case for nth, case in enumerate(cases, 1) if (nth + start) % every == 0]
        if not chosen:  # which pytest takes for a test without parameters
            NONE.add(test.nodeid)
        metafunc._calls = chosen or cases[:1]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, and tests none of whose cases were chosen."""
    if runs_all(config):
        return
    run, left = [], []
    for item in items:
        long = item.get_closest_marker("long") or item.nodeid.partition("[")[0] in NONE
        (run if not long or item.get_closest_marker("whole") else left).append(item)
    items[:] = run
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    """What was collected stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)`` compares ``text`` to the file ``tests/golden/name``."""
    folder = Path(__file__).parent / "golden"

    def check(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path.name} is new: run pytest --update-golden, and read what it wrote"
        assert text == path.read_text(encoding="utf-8"), "run pytest --update-golden if the change is meant"

    return check
