"""Cells to be run with torch and with symgrad.eager, which must print the same.

``python tests/eager/cells.py`` (with torch) writes what torch prints to ``recorded.json``; the tests compare with that,
and with torch itself where it is installed. A cell starts at "# %%". Every expression
statement is printed, as in a notebook; an error is printed by its type and text, warnings by theirs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"


def cells() -> dict[str, str]:
    """All cells by file and number."""
    found = {}
    for path in sorted((HERE / "cells").glob("*.txt")):
        for text in path.read_text(encoding="utf-8").split("# %%\n")[1:]:
            found[f"{path.stem}: {text.strip()}"] = text.strip()
    return found


def run(code: str, torch: Any) -> str:
    """What a cell prints."""
    out = io.StringIO()
    space: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    torch.manual_seed(0)
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tree = ast.parse(code)
            for statement in tree.body:
                if isinstance(statement, ast.Expr):
                    value = eval(compile(ast.Expression(statement.value), "<cell>", "eval"), space)
                    if value is not None:
                        print(value if isinstance(value, str) else repr(value))
                else:
                    exec(compile(ast.Module([statement], []), "<cell>", "exec"), space)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    for warning in caught:
        out.write(f"{warning.category.__name__}: {str(warning.message).splitlines()[0]}\n")
    text = re.sub(r"0x[0-9a-f]+", "0x…", out.getvalue())
    text = re.sub(r"<[\w.]*\.(\w+) object", r"<\1 object", text)
    text = re.sub(r" \(Triggered internally.*", "", text)
    text = re.sub(r" It was changed by .* had saved it\.", "", text)  # what we add to torch's message
    return text.split("\nException raised from")[0].rstrip()


def record() -> None:
    """Write down what torch prints."""
    import torch

    torch.set_num_threads(1)
    torch.backends.opt_einsum.enabled = False
    RECORDED.write_text(
        json.dumps({name: run(code, torch) for name, code in cells().items()}, indent=0, ensure_ascii=False) + "\n"
    )
    print(f"{len(cells())} cells recorded")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    record()
