"""Every example runs, and checks its own result."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("[!_]*.py"))


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
