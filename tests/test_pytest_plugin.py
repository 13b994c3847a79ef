"""The pytest fixture, as a user's test suite has it."""

import subprocess
import sys

CONFTEST = 'pytest_plugins = ["symgrad.pytest_plugin"]\n'
TESTS = """
import numpy as np
from symgrad import stop_gradient

def test_right(check_derivatives):
    check_derivatives(lambda w, x: np.sum((x @ w) ** 2), np.ones(3), np.ones((2, 3)), argnums=0)

def test_wrong(check_derivatives):
    check_derivatives(lambda x: x * stop_gradient(x), 3.0, order=1)
"""


def test_fixture(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tmp_path)]
    done = subprocess.run([*command, "test_mine.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "1 failed, 1 passed" in done.stdout
    assert "FAILED test_mine.py::test_wrong" in done.stdout
    assert "expected 6, by finite differences" in done.stdout
    assert "actual   3" in done.stdout
