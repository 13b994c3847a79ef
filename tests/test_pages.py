"""The generated pages in docs/ are what the generator writes now; ``pytest --update-golden`` writes them."""

import importlib.util
import re
from pathlib import Path

import pytest

import symgrad

DOCS = Path(__file__).parent.parent / "docs"


def generator():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


PAGES = generator().PAGES


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name, request):
    text = PAGES[name]()
    path = DOCS / name
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "run pytest tests/test_pages.py --update-golden"


def test_the_reference_names_all():
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    missing = [name for name in symgrad.__all__ if f"`{name}(" not in reference and f"`{name}`" not in reference]
    assert not missing


def test_the_reference_lists_parameters():
    """What goes on in a further line, with a colon in it, is no parameter; and what modules do not export is not there."""
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    for signature, text in re.findall(r"^### `\w+\((.*)\)`$((?:\n(?!#).*)*)", reference, re.MULTILINE):
        arguments = text.partition("**Args**")[2].partition("\n**")[0]
        listed = {name.strip(" *") for names in re.findall("^- `(.*?)`:", arguments, re.MULTILINE) for name in names.split(",")}
        assert listed <= {part.split("=")[0].strip(" *") for part in re.split(r",(?![^(]*\))", signature)}
    assert "`sparse_hessian(" in reference
    assert "`along_axis(" not in reference
