"""Hundreds of expressions give torch's text, torch's graph to the last ``next_functions``, and torch's gradients."""

import json
import random
import re
import warnings

import numpy as np
import pytest
from eager import graphs

import symgrad.eager

NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]\d+)?")


def alike(found, expected, signs=True):
    """The same text, but for the last digit of a number, which another library's rounding may decide.

    ``signs``: zeros must have the same sign.
    """
    if len(found) != len(expected):
        return False
    for a, b in zip(found, expected, strict=True):
        if a != b:
            x, y = (np.array(NUMBER.findall(text), float) for text in (a, b))
            shown = ["".join(NUMBER.sub("", text).replace("-", "-" * signs).split()) for text in (a, b)]
            if shown[0] != shown[1] or x.shape != y.shape or not np.allclose(x, y, rtol=2e-4, atol=1.5e-4):
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


REFUSED = ("index_add_", "copy_", "requires_grad_")  # writes into what is not traced


def test_derivatives_of_functions_of_tensors_are_what_backward_gives():
    """``func.grad``, which traces, of every expression; but for those that draw random numbers."""
    compared = 0
    for expression in graphs.expressions():
        if "dropout" in expression or any(name in expression for name in REFUSED):
            continue
        leaves = graphs._inputs(symgrad.eager)

        def total(given, expression=expression, leaves=leaves):
            result = eval(expression, {**leaves, **given})
            outs = result if isinstance(result, (tuple, list)) else [result]
            outs = [out for out in outs if isinstance(out, symgrad.eager.Tensor) and out.value.dtype.kind in "fc"]
            return sum((out * out.detach().cos()).real.sum() for out in outs)

        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = total({})
                value.backward()
            except Exception:
                continue
            expected = {name: leaves[name].grad for name in graphs.SHAPES}
            leaves |= {name: leaves[name].detach() for name in graphs.SHAPES}
            found = symgrad.eager.func.grad(total)({name: leaves[name] for name in graphs.SHAPES})
        for name, g in found.items():
            wanted = np.zeros(g.shape) if expected[name] is None else expected[name].numpy()
            np.testing.assert_allclose(g.numpy(), wanted, 1e-3, 1e-4, err_msg=f"{expression} by {name}")
        compared += 1
    assert compared > 400


def test_random_expressions_give_what_torch_gives():
    """Values, types, graphs and gradients; where torch refuses, so do we, in words of our own if it is far-fetched."""
    torch = pytest.importorskip("torch")
    for seed in range(400):
        source = random.Random(seed)
        expression = graphs.random_expression(source, source.randint(1, 4))
        expected, found = graphs.run(torch, expression), graphs.run(symgrad.eager, expression)
        refused = [" " not in lines[0].split(":")[0] and "Error" in lines[0].split(":")[0] for lines in (expected, found)]
        assert all(refused) or (not any(refused) and alike(found, expected, signs=False)), (expression, expected, found)
