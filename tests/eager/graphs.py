"""Expressions whose text, graph and gradients are compared with torch's: each over a few tensors that require grad.

``python tests/eager/graphs.py`` (with torch) writes what torch gives to ``recorded_graphs.json``.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORDED = HERE / "recorded_graphs.json"
SHAPES = {
    "x": (3, 4), "y": (3, 4), "a": (4,), "b": (4,), "m": (4, 4), "p": (2, 3, 4), "q": (2, 4, 5), "s": (), "w": (5, 4),
    "pos": (3, 4),
}  # fmt: skip


def expressions() -> list[str]:
    """All expressions, one a line."""
    lines = (HERE / "expressions.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _inputs(torch: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    draw = {"pos": torch.rand}
    space = {name: draw.get(name, torch.randn)(shape).requires_grad_() for name, shape in SHAPES.items()}
    space |= {"t": torch, "F": torch.nn.functional, "i": torch.tensor([0, 2]), "lab": torch.tensor([1, 0, 3])}
    space |= {
        "mask": torch.tensor([[True, False, True, False]] * 3),
        "u": torch.rand(3, 4),
        "tab": torch.tensor([[0, 1], [2, 0]]),
    }
    return space


def graph(node: Any) -> str:
    """A node, and in brackets where its cotangents go, all the way."""
    if node is None:
        return "None"
    name = node.name().split("::")[-1]
    inner = ", ".join(graph(after) + (f"#{number}" if number else "") for after, number in node.next_functions)
    return f"{name}({inner})" if inner else name


def run(torch: Any, expression: str) -> list[str]:
    """The text of the result (or of the error), its graph, and the gradients of a number made from it."""
    space = _inputs(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(expression, space)
        except Exception as error:
            return [f"{type(error).__name__}: {error}".split("\nException raised")[0]]
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        outputs = [out for out in outputs if hasattr(out, "grad_fn")]
        graphs = "; ".join(graph(out.grad_fn) for out in outputs)
        kept = [out for out in outputs if out.requires_grad]
        if not kept:
            return [repr(result), graphs]
        total = sum((out * out.detach().cos()).real.sum() for out in kept)
        total.backward()
    return [repr(result), graphs, *(f"{name}: {space[name].grad!r}" for name in SHAPES if space[name].grad is not None)]


ONE = """
{0}.sin() | {0}.tanh() | {0}.abs() | ({0}*{0}+1).sqrt() | ({0}.abs()+1).log() | {0}.sigmoid() | F.relu({0}) | F.softplus({0})
-{0} | {0}*2 | 2*{0} | {0}+1 | 1-{0} | {0}/3 | {0}**2 | {0}.clamp(-1,1) | {0}.cumsum(-1) | {0}.clone() | {0}.detach()
{0}.T | {0}.mT | {0}.sum(-1,keepdim=True) | {0}.mean(0,keepdim=True) | {0}.sum(0) | {0}.mean(-1) | {0}.max(-1).values
{0}.sort(-1).values | {0}.flip(0) | {0}.reshape(-1) | {0}.unsqueeze(0) | {0}.unsqueeze(-1) | {0}.squeeze() | {0}[0]
{0}[...,0] | {0}[1:] | {0}[...,1:] | {0}[::2] | {0}[[0,1]] | {0}[{0}>0] | {0}.norm() | {0}.logsumexp(-1) | {0}.double()
{0}.repeat(2,1) | t.cat([{0},{0}]) | t.stack([{0},{0}],-1) | {0}.split(2)[0] | {0}.unbind()[0] | {0}.expand(2,*{0}.shape)
{0}.masked_fill({0}>0.5,0.) | t.where({0}>0,{0},{0}*.1) | {0}.topk(2).values | {0}.median() | {0}.index_select(0,i[:1])
({0}*1).add_(1) | ({0}*1).mul_({0}) | ({0}*1).exp_()"""
TWO = """
{0}+{1} | {0}-{1} | {0}*{1} | {0}/({1}.abs()+1) | {0}@{1} | {0}@{1}.mT | t.where({0}>{1},{0},{1}) | t.cat([{0},{1}])
t.stack([{0},{1}]) | F.mse_loss({0},{1}) | t.atan2({0},{1}) | t.add({0},{1},alpha=2) | {0}.lerp({1},.3) | F.linear({0},{1})
t.outer({0},{1}) | t.addcmul({0},{1},{1}) | ({0}*1).sub_({1}) | t.dist({0},{1})"""
ONE_LIST, TWO_LIST = (text.strip().replace("\n", " | ").split(" | ") for text in (ONE, TWO))


def random_expression(source: random.Random, depth: int) -> str:
    """An expression of expressions, of which one in three takes two."""
    if depth == 0:
        return source.choice(list(SHAPES))
    inner = [f"({random_expression(source, depth - 1)})", f"({random_expression(source, source.randrange(depth))})"]
    return source.choice(ONE_LIST if source.random() < 0.65 else TWO_LIST).format(*inner)


def record() -> None:
    """Write down what torch gives."""
    import torch

    torch.set_num_threads(1)
    found = {expression: run(torch, expression) for expression in expressions()}
    RECORDED.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(found)} expressions recorded")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    record()
