"""Every example runs, and checks its own result."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("[!_]*.py"))


@pytest.mark.whole
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    environment = os.environ | {"PYTHONWARNINGS": "error", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_gallery_shows_all():
    folder = EXAMPLES[0].parent
    gallery = (folder / "README.md").read_text(encoding="utf-8")
    assert not [path.name for path in EXAMPLES if f"[{path.name}]({path.name})" not in gallery]
    pictures = set(re.findall(r"\]\((output/[^)]+)\)", gallery))
    assert {Path(name).stem for name in pictures} == {path.stem for path in EXAMPLES}
    assert pictures == {f"output/{path.name}" for path in (folder / "output").glob("*.[ps][nv]g")}
    assert all((folder / name).exists() for name in pictures)


def test_the_extra_has_what_examples_need():
    root = EXAMPLES[0].parent.parent
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    installed = " ".join([*extras["examples"], *extras["scipy"], *extras["dask"]])
    for path in EXAMPLES:
        found = [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, (ast.Import, ast.ImportFrom))
        ]
        names = {
            name.split(".")[0]
            for node in found
            for name in ([node.module] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names])
        }
        others = names - sys.stdlib_module_names - {"symgrad", "numpy", "_picture"}
        assert not [name for name in others if name not in installed], path.name
