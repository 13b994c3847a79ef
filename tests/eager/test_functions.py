"""What functions of tensors give and refuse where torch's have their own ways; the numbers are torch's."""

import math

import numpy as np
import pytest

import symgrad
import symgrad.eager as torch

NAN, INF = math.nan, math.inf


def given(numbers):
    return torch.tensor(numbers, dtype=torch.float64, requires_grad=True)


def slope(y, x, **options):
    return torch.autograd.grad(y, x, **options)[0]


def curvature(y, x, weights=1.0):
    """The gradient of the weighted sum of the gradient."""
    return slope((slope(y, x, create_graph=True) * weights).sum(), x)


# -- second derivatives --------------------------------------------------------------------------------------------


def test_the_direction_of_a_complex_zero_stays():
    x = given([0.0, 0.0])
    assert curvature(torch.complex(x, x * 2).abs().sum(), x).tolist() == [0, 0]
    assert not symgrad.hessian(lambda x: np.abs(x + 2j * x).sum())(np.zeros(2)).any()


def test_distances_by_products_of_equal_rows_are_zero():
    rng = np.random.default_rng(0)
    rows = rng.random((30, 2))
    x, weights = given(rows), torch.tensor(rng.random((30, 2)))
    found = [curvature(torch.cdist(x, torch.tensor(rows), compute_mode=f"{way}use_mm_for_euclid_dist").sum(), x, weights)
             for way in ("", "donot_")]  # fmt: skip
    np.testing.assert_allclose(*found, rtol=1e-6)


# -- matrices ------------------------------------------------------------------------------------------------------

UNEVEN = [[4.0, 1.2], [1.0, 3.0]]


EIGH = torch.linalg.eigh


@pytest.mark.parametrize("fun", [torch.linalg.cholesky, torch.linalg.eigvalsh, lambda x: EIGH(x)[0], lambda x: EIGH(x)[1]])
def test_gradients_of_matrices_that_are_read_by_halves_are_symmetric(fun):
    slopes = []
    for create_graph in (False, True):
        x = given(UNEVEN)
        y = fun(x)
        g = slope((y * torch.arange(y.numel()).reshape(y.shape)).sum(), x, create_graph=create_graph)
        np.testing.assert_allclose(g.detach(), g.mT.detach(), rtol=1e-12)
        slopes.append(g.detach())
    np.testing.assert_allclose(*slopes, rtol=1e-12)


# -- writes, gradients and modes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "expected"), [([1.0, 2.0], [1, 1]), (2.0, 2)])
def test_each_value_for_a_place_has_its_gradient(values, expected):
    places = torch.tensor([1, 1])
    for put in (lambda y, v: y.__setitem__(places, v), lambda y, v: y.index_put_((places,), v)):
        y, v = torch.zeros(3, dtype=torch.float64), given(values)
        put(y, v)
        assert slope(y.sum(), v).tolist() == expected


def test_gradients_are_not_added_to_what_repeats_an_element():
    x = given([1.0, 2.0])
    x.grad = torch.ones(1, dtype=torch.float64).expand(2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        (x**2).sum().backward()


def test_batches_of_gradients_of_what_is_unused():
    x, w = given([1.0, 1.0]), given([1.0, 1.0, 1.0])
    for options, expected in (({"allow_unused": True}, None), ({"materialize_grads": True}, [0, 0, 0])):
        found, unused = torch.autograd.grad(x * x, (x, w), torch.eye(2).double(), is_grads_batched=True, **options)
        assert found.tolist() == [[2, 0], [0, 2]]
        assert (unused if unused is None else unused.tolist()) == expected


def test_generators_under_no_grad_are_thrown_into_and_closed():
    seen = []

    @torch.no_grad()
    def steps():
        try:
            yield
        except ValueError:
            seen.append(torch.is_grad_enabled())
            yield "caught"
        finally:
            seen.append(torch.is_grad_enabled())

    run = steps()
    next(run)
    assert run.throw(ValueError()) == "caught"
    run.close()
    assert seen == [False, False]
    assert torch.is_grad_enabled()


def test_nothing_is_recorded_in_inference_mode():
    with torch.inference_mode(), torch.enable_grad():
        assert not (torch.ones(2, requires_grad=True) * 2).requires_grad
        with torch.inference_mode(False):
            assert (torch.ones(2, requires_grad=True) * 2).requires_grad


# -- integrals, counts and distances -------------------------------------------------------------------------------


def refused(message, kind=RuntimeError):
    return pytest.raises(kind, match=message)


def test_integrals_of_what_is_not_finite():
    assert torch.trapezoid(torch.tensor([INF, 1.0, 2.0])).isnan()
    assert torch.trapezoid(torch.tensor([NAN])).isnan()
    assert torch.cumulative_trapezoid(torch.zeros(0)).tolist() == []
    assert torch.trapezoid(torch.tensor([1.0, 2.0, 5.0]), dx=0.5).item() == 2.5
    assert torch.trapezoid(torch.ones(2, 3), torch.tensor(2.0), dim=0).tolist() == [0, 0, 0]


def test_places_of_samples_are_as_many():
    y = torch.arange(5.0)
    for fun in (torch.trapezoid, torch.cumulative_trapezoid):
        with refused("There must be one `x` value for each sample point"):
            fun(y, torch.tensor([0.0, 2.0]))
        with refused("bool is not supported", NotImplementedError):
            fun(y, y > 0)
    with refused("bool is not supported", NotImplementedError):
        torch.gradient(y > 0)


def test_counts_in_ranges():
    x = torch.tensor([0.1, 3.0, -2.0])
    assert [part.tolist() for part in torch.histogram(x, 2, range=(0.0, 0.0))] == [[0, 1], [-0.5, 0, 0.5]]
    assert torch.histc(x, 2).tolist() == [2, 1]
    wide = torch.tensor([0.0, 2.0], dtype=torch.float64)
    for args, options, message in (
        ((x, 0), {}, "bins must be > 0, but got 0"), ((x, 4), {"range": (0, INF)}, "not finite"),
        ((x / 0, 4), {}, "not finite"), ((x, 4), {"range": (1, 0)}, "max must be larger"), ((x, wide), {}, "the same dtype"),
        ((x, 4), {"weight": wide}, "the same dtype"),
    ):  # fmt: skip
        with refused(message):
            torch.histogram(*args, **options)
    with refused("histogramdd.* not implemented for 'Long'", NotImplementedError):
        torch.histogram(x.long(), 4)
    with refused("weights sum to zero"):
        torch.cov(torch.ones(2, 2), fweights=torch.tensor([0, 0]))


def test_the_most_frequent_element_is_the_least_of_several_and_the_last_one():
    rng = np.random.default_rng(0)
    for axis in (0, 1, 2):
        x = rng.integers(0, 4, (5, 6, 7))
        found = torch.mode(torch.tensor(x), axis)
        for row, value, place in zip(
            np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]), found[0].flatten(), found[1].flatten(), strict=True
        ):
            kinds, counts = np.unique(row, return_counts=True)
            assert value.item() == kinds[counts.argmax()]
            assert place.item() == np.flatnonzero(row == value.item())[-1]
    assert torch.mode(torch.tensor([NAN, NAN])).indices.item() == 0
    assert torch.mode(torch.arange(200000)).values.item() == 0  # not by comparing all pairs


def test_distances_at_ties_and_equal_rows():
    x = given([[0.0, 0.0], [3.0, 3.0]])
    assert slope(torch.pdist(x, INF).sum(), x).tolist() == [[-1, -1], [1, 1]]
    assert slope(torch.cdist(x, torch.ones(1, 2).double(), INF).sum(), x).tolist() == [[-1, -1], [1, 1]]
    x = given([[0.0, 0.0], [0.0, 0.0], [3.0, 1.0]])
    found = curvature(torch.pdist(x, 0.5).sum(), x, torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    np.testing.assert_allclose(found, [[-0.7698003, 2.3094011], [-0.3849001, 1.1547005], [1.1547005, -3.4641016]], rtol=1e-6)
    assert torch.pdist(torch.tensor([[NAN, 0.0], [0.0, 1.0]]), 0).isnan()


@pytest.mark.parametrize(
    ("fun", "message"),
    [
        (lambda: torch.pdist(torch.ones(2, 2), -1), "non-negative p"),
        (lambda: torch.searchsorted(torch.ones(2, 3), torch.ones(2, 1, 2)), r"got boundaries tensor \[2, 3\] and input value"),
        (lambda: torch.searchsorted(torch.ones(1, 3), torch.ones(5)), "the first N-1 dimensions"),
        (lambda: torch.searchsorted(torch.ones(3), 1.0, side="x"), "can only be 'left' or 'right' but got x"),
        (lambda: torch.bucketize(torch.ones(2), torch.ones(2, 3)), "must be 1 dimension"),
        (lambda: torch.isin(torch.ones(2), torch.ones(2) > 0), r"isin\(\): Bool"),
    ],
)
def test_places_and_distances_that_are_none(fun, message):
    with refused(message):
        fun()
