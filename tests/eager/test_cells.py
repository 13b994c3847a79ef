"""Every cell and every random tensor prints what torch prints: as recorded, and as torch does where it is installed."""

import json
import warnings

import pytest
from eager import cells, reprs

import symgrad.eager

CELLS = cells.cells()
LONGEST = 60


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13"):
        pytest.skip("the words are those of torch 2.13")
    torch.backends.opt_einsum.enabled = False  # which depends on what else is installed
    return torch


@pytest.fixture(scope="module")
def recorded():
    return json.loads(cells.RECORDED.read_text(encoding="utf-8"))


@pytest.mark.whole
@pytest.mark.parametrize("name", CELLS, ids=lambda name: " ".join(name.split())[:LONGEST])
def test_cell_prints_what_torch_printed(name, recorded):
    assert cells.run(CELLS[name], symgrad.eager) == recorded[name]


def test_recorded_is_what_torch_prints(torch, recorded):
    once = "UserWarning: Using backward() with create_graph=True"  # said once a process
    for name, code in CELLS.items():
        if once not in recorded[name]:
            assert cells.run(code, torch) == recorded[name]


def test_random_tensors_print_as_torchs_did():
    expected = json.loads(reprs.RECORDED.read_text(encoding="utf-8"))
    for seed, x in enumerate(reprs.arrays()):
        assert reprs.text(symgrad.eager, x, seed) == expected[seed], (seed, x.dtype, x.shape)


def test_random_tensors_print_as_torchs_do(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, x in enumerate(reprs.arrays()):
            assert reprs.text(symgrad.eager, x, seed) == reprs.text(torch, x, seed), (seed, x.dtype, x.shape)
