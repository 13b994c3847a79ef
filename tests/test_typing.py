"""The public API is typed: type checkers know a derivative by its function's signature; exported modules are typed, too."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from golden_functions import huber, logistic, perceptron, rosenbrock

import symgrad

pytest.importorskip("mypy")
HERE = Path(__file__).parent
LINE = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): (?P<kind>error|note): (?P<text>.*?)(  \[(?P<code>[\w-]+)\])?")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What mypy says, by file and line."""
    folder = tmp_path_factory.mktemp("typed")
    x, y = np.ones((4, 3)), np.ones(4)
    net = {"hidden": {"w": np.ones((3, 2)), "b": np.ones(2)}, "out": {"w": np.ones(2), "b": 0.5}}
    symgrad.export(symgrad.value_and_grad(logistic), x[0], x, y, path=folder / "one.py")
    symgrad.export(symgrad.grad(huber), 0.5, 1.0, also=[(-3.0, 1.0)], path=folder / "branches.py")
    symgrad.export(symgrad.hessian(rosenbrock), y, also=[(x[0],), (y.astype(np.float32),)], path=folder / "shapes.py")
    symgrad.export(symgrad.grad(perceptron), net, x, y, path=folder / "structured.py")
    symgrad.export(symgrad.grad(lambda x: np.mean(np.maximum(x, 0) * x)), x.astype(np.float32), path=folder / "single.py")
    symgrad.export(symgrad.grad(lambda z: np.sum(np.abs(z * z) ** 2)), x + 1j, path=folder / "complex_numbers.py")
    symgrad.export(symgrad.grad(lambda a, b: np.sum(np.linalg.solve(a, b)), (0, 1)), np.eye(3), x[0], path=folder / "solve.py")
    symgrad.export(symgrad.grad(np.median), x[0], path=folder / "order.py")
    (folder / "typed_user.py").write_text((HERE / "typed_user.py").read_text(encoding="utf-8"), encoding="utf-8")
    paths = sorted(
        str(path) for path in folder.glob("*.py")
    )  # as the package itself is checked, so that both share what is known
    done = subprocess.run([sys.executable, "-m", "mypy", *paths], cwd=HERE.parent, capture_output=True, text=True)
    rows = [LINE.fullmatch(line) for line in done.stdout.splitlines()]
    return [row for row in rows if row is not None], done.stdout


def name_of(row):
    return Path(row["file"]).name


def test_mypy_knows_signatures(found):
    rows, said = found
    for number, line in enumerate((HERE / "typed_user.py").read_text(encoding="utf-8").splitlines(), 1):
        here = [row for row in rows if name_of(row) == "typed_user.py" and int(row["line"]) == number]
        kind, _, expected = line.partition("  # ")[2].partition(": ")
        if kind == "error":
            assert [row["code"] for row in here if row["kind"] == "error"] == expected.split(), f"line {number}\n{said}"
        elif kind == "note":
            assert len(here) == 1, f"line {number}\n{said}"
            assert expected in here[0]["text"]
        else:
            assert not here, said


def test_exported_modules_are_typed(found):
    rows, said = found
    assert not [row for row in rows if name_of(row) != "typed_user.py"], said
