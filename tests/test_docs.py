"""Every example in the README and in docstrings is collected as a doctest, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import symgrad

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def modules():
    """All of the package's."""
    names = [module.name for module in pkgutil.walk_packages(symgrad.__path__, "symgrad.")]
    return [symgrad, *map(importlib.import_module, names)]


def test_pytest_collects_every_example():
    finder = doctest.DocTestFinder(exclude_empty=True)
    expected = {f"::{test.name}" for module in modules() for test in finder.find(module) if test.examples}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "symgrad", "README.md"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    collected = {"::" + line.split("::")[1] for line in done.stdout.splitlines() if "::" in line}
    assert collected == expected | {"::README.md"}
    assert len(expected) > 20


@pytest.mark.parametrize("name", symgrad.__all__)
def test_public_name_has_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(symgrad, name))


def test_methods_of_a_derivative_are_documented():
    methods = [value for name, value in vars(symgrad.Derivative).items() if not name.startswith("_")]
    assert all(inspect.getdoc(method) for method in methods)


def test_python_blocks_of_the_readme_are_examples():
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        assert block.startswith(">>> "), block
        assert block.endswith("\n\n"), "a doctest's output ends at a blank line"
        assert "+SKIP" not in block


def test_readme_names_every_public_function():
    functions = README[README.index("## Functions") :]
    missing = [name for name in symgrad.__all__ if not re.search(rf"`{name}\b", functions)]
    assert not missing
