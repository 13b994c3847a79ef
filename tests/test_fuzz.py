"""The fuzzer itself: it runs for a moment, finds a wrong rule, shrinks it, and replays what it kept."""

import json
from collections import Counter
from pathlib import Path

import fuzz
import numpy as np
import pytest

from symgrad.ops.core import REGISTRY
from symgrad.testing import ALL_FORMS, Program, templates_of


def test_nothing_is_found(tmp_path: Path) -> None:
    search = fuzz.Search(1, fuzz.installed(["eager", "autograd"]), 8, ALL_FORMS, tmp_path)
    assert search.chunk(0, 4)
    assert search.counts["programs"]


def test_a_wrong_rule_is_found_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object) -> None:
    monkeypatch.setattr(REGISTRY[np.cos], "rules", (lambda g, y, x: g * np.sin(x),))
    search = fuzz.Search(2, {}, 6, ("smooth",), tmp_path)
    assert not all(search.chunk(number, 15) for number in range(2))  # the second only where the first found nothing
    kept = json.loads(search.failures[0].read_text())
    assert kept["source"].count("np.cos") == 1
    with pytest.raises(AssertionError):
        fuzz.replay(search.failures[0], {})
    monkeypatch.undo()
    fuzz.replay(search.failures[0], {})


def test_a_wrong_oracle_is_found() -> None:
    program = Program("def program(x):\n    return np.sin(x)\n", {"x": ("float", ())}, 0)
    with pytest.raises(fuzz.Disagreement, match="eager: "):
        fuzz.check(program, {"eager": lambda program, args: [np.zeros(())]}, Counter())
    slightly_off = lambda program, args: [np.cos(args[0]) + 1e-7]
    with pytest.raises(fuzz.Disagreement, match="other: "):
        fuzz.check(program, {"other": slightly_off}, Counter())
    fuzz.check(program, {"other": lambda program, args: [np.zeros(())]}, counts := Counter())
    assert counts["other differs from finite differences, too"] == 1


def test_every_registered_function_is_drawn() -> None:
    drawn = {text.split("= ")[1].split("(")[0] for text in templates_of("numpy")}
    assert len(drawn) > 200
    assert {"np.linalg.svd", "np.fft.rfft", "np.quantile", "np.interp", "np.where", "np.exp"} <= drawn
