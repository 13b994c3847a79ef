"""Hundreds of expressions give torch's text, torch's graph to the last ``next_functions``, and torch's gradients."""

import json
import re

import numpy as np
import pytest
from eager import graphs

import symgrad.eager

NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]\d+)?")


def alike(found, expected):
    """The same text, but for the last digit of a number, which another library's rounding may decide."""
    if len(found) != len(expected):
        return False
    for a, b in zip(found, expected, strict=True):
        if a != b:
            x, y = (np.array(NUMBER.findall(text), float) for text in (a, b))
            if NUMBER.sub("", a) != NUMBER.sub("", b) or x.shape != y.shape or not np.allclose(x, y, rtol=2e-4, atol=1.5e-4):
                return False
    return True


@pytest.fixture(scope="module")
def recorded():
    return json.loads(graphs.RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("expression", graphs.expressions())
def test_expression_gives_what_torch_gave(expression, recorded):
    found = graphs.run(symgrad.eager, expression)
    assert alike(found, recorded[expression]), "\n".join(["found:", *found, "torch:", *recorded[expression]])


def test_recorded_is_what_torch_gives(recorded):
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13"):
        pytest.skip("the graphs are those of torch 2.13")
    for expression in graphs.expressions():
        assert alike(graphs.run(torch, expression), recorded[expression]), expression
