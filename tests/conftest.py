"""What all tests share: hypothesis profiles and golden files."""

import gc
import math
import os
import sys
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

collect_ignore = ["benchmarks", "golden", "typed_user.py", "eager/opinfo.py"]  # the last two are for mypy, and need torch
if sys.version_info < (3, 12):
    collect_ignore.append("shapes_new.py")

# Before NumPy is imported, here and in the workers of pytest-xdist: threads of BLAS that share processors with other workers
# wait for one another thousands of times as long as they compute. symgrad's own would heed this, too, and are to be tested.
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # code hangs on it, and tests tell which there is
os.environ.setdefault("SYMGRAD_NUM_THREADS", "8")

from ops_samples import deep  # noqa: E402

from symgrad import compile  # noqa: E402

# "default" finds the same examples at every run of CI; `pytest --hypothesis-profile=deep` searches for long.
settings.register_profile("default", deadline=None, max_examples=5, derandomize="CI" in os.environ)
settings.register_profile("deep", deadline=None, max_examples=5000, derandomize=False)
settings.load_profile("default")


ONE_OF = {1: 1, 4: 4, 12: 14, 32: math.inf}  # so many cases of a test one runs, where it has no more than those

compile.MAX_SHARED = 0  # each derivative of a test has code of its own, unless the test is about that
compile.GRACE = math.inf  # how fast the machine is decides on nothing


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of tests with many cases, most of which cross what others test, run some: other ones in each test.

    All where files or cases are named, golden files are written, and in deep runs.
    """
    options = config.option
    named = options.keyword or any([arg.partition("::")[0].endswith(".py") for arg in config.args])
    if named or options.every_case or options.update_golden or deep():
        return
    of_test = [item.nodeid.partition("[")[0] for item in items]
    cases, nth = Counter(of_test), Counter[str]()
    run, left = [], []
    for item, test in zip(items, of_test, strict=True):
        nth[test] += 1
        every = next(step for step, most in ONE_OF.items() if cases[test] <= most)
        chosen = (nth[test] + zlib.crc32(test.encode())) % every == 0 and not item.get_closest_marker("long")
        (run if chosen or item.get_closest_marker("whole") else left).append(item)
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
