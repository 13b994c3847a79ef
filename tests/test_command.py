"""The command line, run as a program and by its function."""

import shlex
import subprocess
import sys

import numpy as np
import pytest

from symgrad.__main__ import argument, main

MODEL = """
import math
import numpy as np
from symgrad import grad, primitive

def loss(w, x, scale=1.0):
    return scale * np.sum((x @ w) ** 2)

@grad
def slope(p):
    return np.sum(p["w"] ** 2) * p["b"]

def branch(t, kind="up"):
    return t ** 2 if kind == "up" else -t

@primitive
def wrong(x):
    return math.exp(x)

wrong.defvjp(lambda g, y, x: 2 * g * y)

class Bag:
    @staticmethod
    def inside(x):
        return x * 2.0

number = 3
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return str(path)


def test_as_a_program(model):
    command = [sys.executable, "-W", "error", "-m", "symgrad", "source", f"{model}:loss", "--args", "3", "4x3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("def grad_loss(w, x, scale):")
    assert "    return " in done.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("source {}:loss --args 30 40x30 2. --fast", "dot("),
        ("source {}:loss --args 3 4x3 --argnums w,x", "def grad_loss(w, x, scale):"),
        ("source {}:loss --args 3 4x3 --kind hessian", "def hessian_loss(w, x, scale):"),
        ("source {}:slope --args \"{{'w': [1.0, 2.0], 'b': 0.5}}\"", "p['w']"),
        ("source {}:branch --args 2.0 \"'down'\"", "-1.0"),
        ("source {}:Bag.inside --args 2.0", "2.0"),
        ("graph {}:loss --args 3 4x3 --kind function", "return %"),
        ("graph {}:loss --args 3 4x3 --dot", "digraph {"),
        ("check {}:loss --args 3 4x3 0.5", "agree with finite differences, up to order 2"),
        ("bench {}:loss --args 3 4x3", "times the function"),
    ],
)
def test_commands(model, capsys, line, expected):
    assert main(shlex.split(line.format(model))) == 0
    assert expected in capsys.readouterr().out


def test_check_finds_what_is_wrong(model, capsys):
    assert main(["check", f"{model}:wrong", "--args", "0.5", "--order", "1"]) == 1
    assert "is wrong" in capsys.readouterr().out


def test_errors_are_told_in_a_line(model, capsys):
    assert main(["source", f"{model}:loss", "--args", "3", "4x3", "3"]) == 1
    assert capsys.readouterr().err.startswith("NonScalarOutput: loss() must return one number for grad")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["source", "model"], "write file.py:function"),
        (["source", "nowhere.py:f"], "there is no file nowhere.py"),
        (["source", "{}:nothing"], "has no function nothing"),
        (["source", "{}:number"], "has no function number"),
        (["source", "{}:loss", "--args", "1 +"], "the argument '1 +' is none"),
        (["source", "{}:loss", "--args", "3"], "--args is no call of {}:loss: missing a required argument: 'x'"),
        (["draw", "{}:loss"], "invalid choice"),
    ],
)
def test_mistakes(model, capsys, arguments, message):
    with pytest.raises(SystemExit) as exit:
        main([part.format(model) for part in arguments])
    assert exit.value.code == 2
    assert message.format(model) in capsys.readouterr().err


def test_arguments(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", np.arange(3.0))
    assert argument("3", rng).shape == (3,)
    assert argument("3x4", rng).shape == (3, 4)
    assert argument("0x", rng).shape == ()
    assert argument("3.", rng) == 3.0
    assert argument("int:3", rng) == 3
    assert argument("'a'", rng) == "a"
    assert argument(str(tmp_path / "x.npy"), rng).tolist() == [0.0, 1.0, 2.0]
    found = argument("({'w': [[1.0], [2.0]]}, ['a', [1.0]])", rng)
    assert found[0]["w"].shape == (2, 1)
    assert found[1][0] == "a"
    assert found[1][1].tolist() == [1.0]
