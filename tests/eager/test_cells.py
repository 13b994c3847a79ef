"""Every cell and every random tensor prints what torch prints: as recorded, and as torch does where it is installed."""

import json
import warnings

import pytest
from eager import cells, reprs

import symgrad.eager

CELLS = cells.cells()
LONGEST = 60
OF_2_13 = (  # what torch 2.14 says in other words, or says of the machine
    "functional: torch.stft(torch.ones(10).long()",
    "names: torch.ones(2).cuda()",
    'tensors: torch.as_tensor([1, 2], device="cuda")',
    "names: x = torch.tensor([0.25, 0.5, 0.75]",  # rounding
    "walks: x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).double()",  # the steps of quantile
)


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.14"):
        pytest.skip("the words are those of torch 2.14")
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
        if once not in recorded[name] and not name.startswith(OF_2_13):
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
