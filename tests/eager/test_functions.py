"""What functions of tensors give and refuse where torch's have their own ways; the numbers are torch's."""

import math

import numpy as np
import pytest

import symgrad
import symgrad.eager as torch
import symgrad.eager.nn.functional as F
from symgrad.eager.core import apply
from symgrad.eager.linalg import SUBSTITUTED

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


# -- singular matrices and refusals of torch.linalg ----------------------------------------------------------------

LA, SINGULAR, PAIR = torch.linalg, torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[2.0, 1.0], [1.0, 3.0]])
TALL = torch.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: LA.solve_triangular(SINGULAR, torch.ones(2, 1), upper=True), [[-INF], [INF]]),
        (lambda: LA.solve_triangular(SINGULAR.mT, torch.ones(1, 2), upper=False, left=False), [[-INF, INF]]),
        (lambda: LA.lu_solve(*LA.lu_factor_ex(torch.diag(torch.tensor([1.0, 0.0])))[:2], torch.ones(2, 1)), [[NAN], [INF]]),
        (lambda: LA.lu(torch.ones(3, 2)).L, [[1, 0], [1, 1], [1, 0]]),
        (lambda: LA.cond(torch.zeros(2, 2)), NAN),
        (lambda: LA.cond(torch.zeros(2, 0, 3)), [0, 0]),
        (lambda: LA.cond(torch.diag(torch.tensor([1.0, 4.0])), -2), 0.25),
        (lambda: LA.lstsq(torch.tensor([[1.0, 0], [0, 1e-9], [0, 0]]), torch.ones(3, 1), driver="gels").solution, [[1], [1e9]]),
        (lambda: LA.lstsq(torch.tensor([[1.0, 0], [0, 1.0], [1, 2]]), torch.ones(3, 1)).residuals, []),
        (lambda: LA.norm(TALL, 3, dim=[1]), [1, 35 ** (1 / 3), 189 ** (1 / 3)]),
        (lambda: LA.norm(TALL, 0, dim=(1,)), [1, 2, 2]),
        (lambda: LA.matrix_norm(TALL, 1, dtype=torch.float64), 9),
        (lambda: LA.norm(TALL, dtype=torch.float64), math.sqrt(55)),
        (lambda: LA.matrix_norm(torch.zeros(0, 3), INF), 0),
        (lambda: LA.matrix_norm(torch.zeros(2, 3, 0), 1), [0, 0]),
        (lambda: torch.vander(torch.ones(3), 1), [[1], [1], [1]]),
        (lambda: torch.vander(torch.ones(3), 0), [[], [], []]),
        (lambda: torch.vander(torch.tensor([2, 3]), 3), [[4, 2, 1], [9, 3, 1]]),
    ],
)
def test_matrices_on_the_edge(found, expected):
    np.testing.assert_allclose(found(), expected, rtol=1e-6)


@pytest.mark.parametrize("upper", [False, True])
def test_solutions_by_substitution_have_derivatives(upper):
    rng = np.random.default_rng(0)
    a, b = (torch.tensor(rng.random(shape), requires_grad=True) for shape in ((2, 3, 3), (3, 2)))
    triangle = lambda a: torch.triu(a) if upper else torch.tril(a)
    own = lambda a, b: apply(SUBSTITUTED, (triangle(a), b), {"upper": upper})
    np.testing.assert_allclose(own(a, b).detach(), np.linalg.solve(triangle(a), b).detach(), rtol=1e-9)
    assert torch.autograd.gradcheck(own, (a, b))
    assert torch.autograd.gradgradcheck(own, (a, b))


def test_gradients_of_factors_of_singular_matrices_are_not_numbers():
    x = given([[1.0, 1.0], [1.0, 1.0]])
    assert slope(torch.linalg.lu(x).U.sum(), x).isnan().all()


def test_solutions_by_factors_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    a, b = (torch.tensor(rng.random((2, 3, 3)) + 1j * rng.random((2, 3, 3))) for _ in range(2))
    factors = LA.lu_factor(a)
    for left in (True, False):
        for adjoint, matrix in ((False, a), (True, a.mH)):
            found = LA.lu_solve(*factors, b, left=left, adjoint=adjoint)
            np.testing.assert_allclose(matrix @ found if left else found @ matrix, b, rtol=1e-9, atol=1e-12)


def test_the_gradient_goes_through_renorm_in_place():
    x = given([[1.0, 2.0], [3.0, 4.0]])
    y = (x * 1).renorm_(2, 0, 1.0)
    np.testing.assert_allclose(slope(y[0, 0], x), [[0.35777086, -0.1788854], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("fun", "message"),
    [
        (lambda: LA.cholesky(torch.tensor([[1.0, 0.0], [NAN, 1.0]])), "the leading minor of order 2 is not positive"),
        (lambda: LA.svd(torch.full((2, 2), NAN)), "did not converge"),
        (lambda: LA.eig(torch.full((2, 2), NAN)), "infs or NaNs"),
        (lambda: LA.matrix_rank(torch.full((2, 2), NAN)), "linalg.svd: SVD did not converge"),
        (lambda: LA.lu_factor(torch.zeros(2, 2, 2)), r"\(Batch element 0\): U\[1,1\] is zero"),
        (lambda: LA.solve(torch.stack([PAIR, SINGULAR]), torch.ones(2, 2, 1)), r"\(Batch element 1\): The solver failed"),
        (lambda: LA.solve_triangular(PAIR, torch.ones(2), upper=True), "B must have at least 2 dimensions"),
        (lambda: LA.lu_solve(*LA.lu_factor(PAIR), torch.ones(2)), "B must have at least 2 dimensions"),
        (lambda: torch.cholesky_solve(torch.ones(2), PAIR), "b should have at least 2 dimensions, but has 1"),
        (lambda: torch.cholesky_solve(torch.ones(3, 1), PAIR), "each A matrix is 2 by 2 but each b matrix is 3 by 1"),
        (lambda: LA.solve(torch.ones(2, 2, 2), torch.ones(2, 2), left=False), r"equation XA = B \(2x2 and 2x1\)"),
        (lambda: LA.solve(PAIR, torch.ones(3)), r"equation AX = B \(2x2 and 3x1\)"),
        (lambda: LA.lstsq(torch.ones(2, 3, 3), torch.ones(3)), r"\(input.dim\(\) - other.dim\(\)\) <= 1"),
        (lambda: LA.lstsq(torch.ones(3, 4, 2), torch.ones(4, 1)), "should match other.size"),
        (lambda: LA.matrix_norm(torch.ones(3), dim=(0, 0)), "must have at least 2 dimensions"),
        (lambda: LA.matrix_norm(PAIR, dim=(0, 0)), "dims must be different"),
        (lambda: LA.matrix_norm(PAIR, dim=()), "must be a 2-tuple"),
        (lambda: LA.norm(torch.ones(2, 2, 2), 2, dim=(0, 1, 2)), "must be of length 1 or 2"),
        (lambda: LA.vector_norm(PAIR.double(), dtype=torch.float32), "without narrowing"),
        (lambda: LA.vector_norm(PAIR, dtype=torch.complex64), "dtype should be real for real inputs"),
        (lambda: torch.norm(torch.zeros(0, 3), -1), "cannot compute the -1 norm on an empty tensor"),
        (lambda: LA.vander(torch.ones(3) > 0), "but got Bool"),
        (lambda: LA.vander(torch.ones(1)), "N must be greater than 1"),
        (lambda: LA.vecdot(PAIR, PAIR.double()), "the same dtype, but found x of type Float and y of type Double"),
        (lambda: LA.multi_dot([PAIR > 0] * 2), "not implemented for 'Bool'"),
        (lambda: LA.tensorinv(PAIR, 0), "strictly positive integer for 'ind', but got 0"),
        (lambda: LA.tensorinv(torch.ones(2, 3, 4), 1), "but got 12 != 2"),
        (lambda: LA.qr(TALL.clone().requires_grad_(), "r").R.sum().backward(), "Q, which is not computed when mode='r'"),
        (lambda: LA.qr(TALL.clone().requires_grad_(), "complete").R.sum().backward(), "mode='complete' and nrows > ncols"),
    ],
)
def test_matrices_that_are_refused(fun, message):
    with refused(message):
        fun()


# -- new tensors and random numbers --------------------------------------------------------------------------------

TURNED = torch.ones(3, 2).t()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([np.array([1.0, 2.0]), [3, 4]], torch.float64),
        ([np.array([1, 2]), np.array([1.0, 2.0], np.float32)], torch.float32),
        ([np.float32(1), 2.0], torch.float32),
        ([2, np.float64(1)], torch.float64),
        ([np.int32(1), 2.0], torch.float32),
        ([np.float16(1), 1], torch.float16),
        ([1j, np.float64(1)], torch.complex128),
        ([torch.tensor(1.0, dtype=torch.float64), torch.tensor(2)], torch.float64),
        ([[torch.tensor([1], dtype=torch.int32)]], torch.int32),
    ],
)
def test_dtypes_of_lists(data, kind):
    assert torch.tensor(data).dtype == kind


def test_tensors_of_one_element_are_numbers_in_lists():
    assert torch.tensor([torch.tensor([[1.0]]), 2]).tolist() == [1, 2]
    with refused("only one element tensors can be converted to Python scalars", ValueError):
        torch.tensor([torch.tensor([1.0, 2.0])])


@pytest.mark.parametrize(
    ("x", "strides"),
    [
        (TURNED, (1, 2)),
        (torch.ones(2, 3, 4).permute(1, 2, 0), (4, 1, 12)),
        (torch.ones(3).expand(2, 3), (3, 1)),
        (torch.ones(2, 1, 3).expand(2, 4, 3).permute(2, 0, 1), (4, 12, 1)),
        (torch.ones(4, 3).t()[::2], (1, 2)),
    ],
)
def test_tensors_like_others_lie_like_them(x, strides):
    for like in (torch.zeros_like, torch.rand_like, lambda x: torch.full_like(x, 2), lambda x: torch.randint_like(x, 5)):
        y = like(x)
        assert (y.shape, y.stride()) == (x.shape, strides)
    assert torch.ones_like(x, memory_format=torch.contiguous_format).is_contiguous()


@pytest.mark.parametrize("copied", [torch.clone, lambda x: x.double(), lambda x: x.to(x.dtype, copy=True)])
def test_copies_of_what_repeats_elements(copied):
    x = torch.arange(6.0).reshape(2, 3)
    assert copied(x[:, None].expand(2, 4, 3)).stride() == (12, 3, 1)
    assert copied(x[:, :1].expand(2, 3)).stride() == (3, 1)
    assert copied(x.t()[:, None].expand(3, 4, 2)).stride() == (1, 3, 12)
    assert copied(x.t()).stride() == (1, 3)
    np.testing.assert_array_equal(copied(x.t()[:, None].expand(3, 4, 2)).numpy()[:, 2], x.t().numpy())
    assert torch.clone(x.t(), memory_format=torch.contiguous_format).stride() == (2, 1)


@pytest.mark.parametrize(
    ("draw", "expected"),  # of torch's seed 0
    [
        (lambda: torch.rand_like(TURNED)[0], [0.49625659, 0.08847743, 0.30742282]),
        (lambda: torch.randn_like(TURNED)[0], [1.54099607, -2.17878938, -1.08452237]),
        (lambda: F.dropout(TURNED, 0.5), [[0, 2, 0], [0, 0, 0]]),
        (lambda: torch.empty(4, 4).t().normal_()[0], [1.54099607, -1.08452237, -0.71925759, -0.85667461]),
        (lambda: torch.empty(20, 2)[:, 0].normal_()[:4], [1.54099607, -0.2934289, -2.17878938, 0.56843126]),
    ],
)
def test_random_numbers_come_in_the_order_of_memory(draw, expected):
    torch.manual_seed(0)
    np.testing.assert_allclose(draw(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("fun", "message", "kind"),
    [
        (lambda: torch.zeros(3).long().uniform_(), "check_uniform_bounds", NotImplementedError),
        (lambda: torch.zeros(3).long().normal_(), "normal_kernel_cpu", NotImplementedError),
        (lambda: torch.zeros(3).long().exponential_(), "not implemented for 'Long'", RuntimeError),
        (lambda: torch.rand(2, dtype=torch.int64), "check_uniform_bounds", NotImplementedError),
        (lambda: torch.randn(2, dtype=torch.int64), "normal_kernel_cpu", NotImplementedError),
        (lambda: torch.bernoulli(torch.tensor([1, 0])), "bernoulli_tensor_cpu_p_", NotImplementedError),
        (lambda: torch.bernoulli(torch.tensor([NAN])), "p_in >= 0", RuntimeError),
        (lambda: torch.zeros(3).uniform_(2, 1), "found from=2 > to=1", RuntimeError),
        (lambda: torch.zeros(3).exponential_(-1), "expects lambda > 0.0, but found lambd=-1", RuntimeError),
        (lambda: torch.zeros(3).cauchy_(0, 0), "sigma=0", RuntimeError),
        (lambda: torch.zeros(3).log_normal_(std=-1), "std=-1", RuntimeError),
        (lambda: torch.zeros(3).geometric_(1), r"p to be in \(0, 1\), but found p=1", RuntimeError),
        (lambda: torch.normal(0.0, -1.0, (2,)), "std >= 0.0, but found std -1", RuntimeError),
        (lambda: torch.normal(torch.zeros(2), NAN), "std >= 0.0, but found std nan", RuntimeError),
        (lambda: torch.randint(0, 300, (3,), dtype=torch.uint8), "to - 1 is out of bounds", RuntimeError),
        (lambda: torch.empty(2, dtype=torch.int8).random_(-200, 5), "from is out of bounds", RuntimeError),
        (lambda: torch.randperm(-1), "negative dimension -1", RuntimeError),
        (lambda: torch.randperm(3, dtype=torch.bool), "randperm", NotImplementedError),
        (lambda: torch.arange(0, 5, dtype=torch.bool), "arange_cpu", NotImplementedError),
        (lambda: torch.linspace(1j, 2, 3, dtype=torch.float32), "can't be safely cast to passed dtype Float", RuntimeError),
        (lambda: torch.ones(2, out=torch.empty(2).long(), dtype=torch.float32), "does not match dtype", RuntimeError),
        (lambda: torch.tensor(2**63), "Overflow when unpacking long long", ValueError),
        (lambda: torch.tensor([2**64]), "Overflow when unpacking long long", ValueError),
        (lambda: torch.zeros(2.0), "must be tuple of ints, not float", TypeError),
        (lambda: torch.full(3, 1), "must be tuple of ints, not int", TypeError),
        (lambda: torch.meshgrid(), "non-empty TensorList", RuntimeError),
        (lambda: torch.from_numpy(np.array(["a"])), "type numpy.str_", TypeError),
        (lambda: torch.from_numpy(np.arange(3.0)[::-1]), "one stride in the given", ValueError),
        (lambda: torch.tensor(np.array([1.0], ">f8")), "byte order", ValueError),
    ],
)
def test_numbers_that_are_refused(fun, message, kind):
    with refused(message, kind):
        fun()


def test_numbers_between_complex_ones():
    assert torch.linspace(1j, 2, 3).tolist() == [1j, 1 + 0.5j, 2]
    assert torch.linspace(1j, 2, 3).dtype == torch.complex64
    assert torch.ones(2, out=torch.empty(2, dtype=torch.int64)).tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_an_output_that_is_a_view_is_resized_in_its_memory():
    x = torch.zeros(2, 3)
    column = x[:, 1]
    torch.add(torch.ones(2, 2), 1, out=column)
    assert (x.tolist(), column.tolist()) == ([[0, 2, 2], [2, 2, 0]], [[2, 2], [2, 2]])
    torch.ones(1, out=x[0, :0])
    assert x[0, 0] == 1
    with refused("out of bounds for storage of size 24"):
        torch.ones(3, out=x[1, 1:])


@pytest.mark.parametrize("key", [slice(None), slice(1, None), ..., (slice(None), slice(1, None))])
def test_parts_of_a_tensor_are_spread_over_it(key):
    def spread(x):
        y = x * 1
        y[key] = y[0, 1]
        y[key] = y[key][:1]
        return y * y

    x = given([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = x.detach().clone()
    y[key] = y[0, 1]
    expected = x.detach().numpy().copy()
    expected[key] = 2
    assert y.tolist() == expected.tolist()
    assert torch.autograd.gradcheck(spread, (x,))


def test_writes_where_shapes_differ():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    x[:] = x[0]
    assert x.tolist() == [[1, 2], [1, 2]]
    assert x.fill_(x[0, 1]).tolist() == [[2, 2], [2, 2]]
    x[...] = torch.ones(1, 1, 2)
    assert x.tolist() == [[1, 1], [1, 1]]
    with refused(r"output with shape \[3\] doesn't match the broadcast shape \[1, 3\]"):
        torch.zeros(3).copy_(torch.ones(1, 3))
    with refused("some elements of the input tensor and the written-to tensor"):
        x.copy_(x[0])


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_reductions_by_places_give_no_views(reduce):
    x, places = given([[1.0, 2.0], [3.0, 4.0]]), torch.zeros(2, 2, dtype=torch.int64)
    assert x.scatter_reduce(0, places, x * 2, reduce).detach_()._base is None
    if reduce != "sum":
        assert x.index_reduce(0, places[0], x * 2, reduce).detach_()._base is None
    assert torch.autograd.gradcheck(lambda x: x.scatter_reduce(0, places, x * 2.5, reduce, include_self=False), (x,))


@pytest.mark.parametrize("name", ["scatter", "scatter_", "scatter_add", "index_copy", "index_copy_"])
def test_numbers_are_vectors_of_one_where_places_are_given(name):
    number, vector, nowhere = torch.tensor(3.0), torch.tensor([5.0]), torch.zeros(0, dtype=torch.int64)
    put = lambda x, places, source: getattr(x.clone(), name)(0, places, source).tolist()
    expected = 8 if name == "scatter_add" else 5
    assert put(number, torch.tensor([0]), vector[0]) == put(number, torch.tensor(0), vector) == expected
    assert put(vector - 2, torch.tensor([0]), vector[0]) == [expected]
    assert put(number, nowhere, vector[:0]) == 3
    if "index" not in name:
        assert put(number, nowhere, torch.ones(2, 2)) == put(number, nowhere, vector[0]) == 3


def test_unflatten_without_elements():
    assert torch.zeros(2, 0).unflatten(0, (-1, 1)).shape == torch.zeros(2, 0).unflatten(0, (2, -1)).shape == (2, 1, 0)
    with refused("only one dimension can be inferred"):
        torch.zeros(4, 2).unflatten(0, (-1, -1))


def test_gradients_of_nothing_add_up():
    for shape in ((0, 3), (2, 0)):
        x = torch.zeros(shape, requires_grad=True)
        for _ in range(2):
            (x * 2).sum().backward()
        assert x.grad.shape == shape


def test_derivatives_in_derivatives_of_arrays():
    cubes, x = lambda x: (x**3).sum(), torch.tensor([1.0, 2.0])
    assert torch.func.vmap(torch.func.grad(cubes))(torch.zeros(0, 3)).shape == (0, 3)
    assert torch.func.vmap(torch.func.hessian(cubes))(torch.zeros(0, 3)).shape == (0, 3, 3)
    assert symgrad.grad(lambda s: s * torch.func.grad(cubes)(x).sum().item())(2.0) == 15


# -- transforms and products ---------------------------------------------------------------------------------------


def test_transforms_of_nothing_are_zeros():
    x = torch.zeros(4, 0, dtype=torch.complex64, requires_grad=True)
    for y in (torch.fft.irfft(x, 6), torch.fft.hfft(x, 6), torch.fft.irfftn(x, (4, 6)), torch.fft.irfft(x.mT, 6, 0).mT):
        assert (y.shape, y.abs().sum().item()) == ((4, 6), 0)
        assert slope(y.sum(), x).shape == x.shape


def test_frequencies_of_nothing():
    assert torch.fft.fftfreq(0).tolist() == []
    np.testing.assert_array_equal(torch.fft.rfftfreq(4, 0.0), [NAN, INF, INF])
    np.testing.assert_array_equal(torch.fft.fftfreq(4, 0.0), [NAN, INF, -INF, -INF])


@pytest.mark.parametrize(
    ("fun", "message", "kind"),
    [
        (lambda: torch.fft.hfftn(torch.ones(4), dim=(0, 0)), "FFT dims must be unique", RuntimeError),
        (lambda: torch.fft.ihfftn(torch.ones(4), dim=()), "ihfftn must transform at least one axis", RuntimeError),
        (lambda: torch.fft.irfftn(torch.ones(4), dim=()), "irfftn must transform at least one axis", RuntimeError),
        (lambda: torch.fft.fft2(torch.ones(4, 4), dim=None), "must be tuple of ints, not NoneType", TypeError),
        (lambda: torch.fft.fft(torch.ones(4, dtype=torch.float16)), "Unsupported dtype Half", NotImplementedError),
        (lambda: torch.fft.fftfreq(4, dtype=torch.int64), "requires a floating point or complex dtype", RuntimeError),
        (lambda: torch.addr(torch.ones(4, 2, 3), torch.ones(2), torch.ones(3)), "the number of sizes provided", RuntimeError),
        (lambda: torch.addmv(torch.ones(2, 2), torch.ones(2, 3), torch.ones(3)), "the number of sizes provided", RuntimeError),
        (lambda: torch.addmm(PAIR, PAIR, PAIR, beta=1j), "without overflow", RuntimeError),
        (lambda: torch.addr(*[torch.ones(2).long()] * 3, alpha=0.5), "argument alpha must not be a floating", RuntimeError),
        (lambda: torch.dot(torch.ones(2) > 0, torch.ones(2) > 0), "not implemented for 'Bool'", NotImplementedError),
        (lambda: torch.mv(PAIR > 0, torch.ones(2) > 0), "addmv_impl_cpu", NotImplementedError),
        (lambda: torch.bmm(*[torch.ones(1, 2, 2) > 0] * 2), "bmm", NotImplementedError),
    ],
)
def test_transforms_and_products_that_are_refused(fun, message, kind):
    with refused(message, kind):
        fun()


@pytest.mark.parametrize(
    ("ord", "of_zeros", "of_one"),
    [("nuc", [1, 0, 0, 1], [1, 0, 0, 1]), (2, [0.5, 0, 0, 0.5], [1, 0, 0, 0]), (-2, [0.5, 0, 0, 0.5], [0, 0, 0, 1])],
)
def test_zero_singular_values_have_directions(ord, of_zeros, of_one):
    for corner, expected in ((0.0, of_zeros), (1.0, of_one)):
        x = given([[corner, 0.0], [0.0, 0.0]])
        for norm in (torch.linalg.matrix_norm, torch.norm) if ord == "nuc" else (torch.linalg.matrix_norm,):
            assert slope(norm(x, ord), x).flatten().tolist() == expected
    x = torch.tensor(np.random.default_rng(0).random((2, 3, 4)), requires_grad=True)
    for dim in ((0, 2), (2, 1), (-3, -2)):
        for keepdim in (False, True):
            found = torch.linalg.matrix_norm(x, ord, dim, keepdim)
            np.testing.assert_allclose(found.detach(), np.linalg.norm(x.detach().numpy(), ord, dim, keepdim), rtol=1e-12)
    assert torch.autograd.gradcheck(lambda x: torch.linalg.matrix_norm(x, ord, (2, 0)), (x,))


def test_one_matrix_is_turned():
    with refused("only supported on matrices"):
        torch.ones(2, 2, 2).H  # noqa: B018 (it is read for its error)
    assert torch.tensor([[1j, 2]]).H.tolist() == [[-1j], [2]]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_targets_that_are_all_ignored_give_no_gradient(reduction, smoothing):
    """The mean is NaN, its gradient zero: a batch with nothing in it leaves the weights alone."""
    for x, target in ((given([[1.0, 2.0], [0.5, 3.0]]), torch.tensor([-100, -100])), (given([1.0, 2.0]), torch.tensor(-100))):
        loss = F.cross_entropy(x, target, reduction=reduction, label_smoothing=smoothing).sum()
        assert math.isnan(loss.item()) if reduction == "mean" else loss == 0
        np.testing.assert_array_equal(slope(loss, x).numpy(), np.zeros(x.shape))


@pytest.mark.parametrize(
    ("loss", "kind"),
    [(F.mse_loss, "float64"), (F.l1_loss, "float64"), (F.smooth_l1_loss, "float64"), (F.huber_loss, "float32")],
)
def test_a_target_that_is_one_number_counts_as_many(loss, kind):
    x, target = torch.tensor([0.5, 1.5], requires_grad=True), torch.tensor(1.0, dtype=torch.float64)
    with pytest.warns(UserWarning, match="different to the input size"):
        y = loss(x, target)
    y.backward()
    assert (y.dtype, x.grad.dtype) == (getattr(torch, kind), torch.float32)
    expected = loss(x, torch.ones(2, dtype=torch.float64), reduction="none")
    assert expected.dtype == y.dtype
    assert torch.equal(expected.mean(), y)


ONES = torch.ones(2, dtype=torch.float64)
REFUSED = [
    (lambda: F.bilinear(torch.ones(3, 2), torch.ones(4), torch.ones(2, 2, 4)), RuntimeError, "not match: got 2 and 1"),
    (lambda: F.conv_transpose1d(torch.ones(2, 1), torch.ones(2, 2, 2), padding=1), RuntimeError, r"channel: \(1 x 0\)"),
    (lambda: F.conv_transpose2d(torch.ones(1, 4, 1), torch.ones(1, 1, 1, 1), padding=1), RuntimeError, r"\(2 x -1\)"),
    (lambda: F.avg_pool3d(torch.ones(1, 1, 2, 1, 6), 3, ceil_mode=True), RuntimeError, r"\(T: 2 H: 1 W: 6\) smaller"),
    (lambda: F.lp_pool3d(torch.ones(1, 1, 2, 2, 1), 2.0, 2, ceil_mode=True), RuntimeError, "kT: 2 kH: 2 kW: 2"),
    (lambda: F.pad(torch.ones(3, 1), (0, -1), "replicate"), RuntimeError, r"\(W: 1\) is too small\. Calculated output W: 0"),
    (lambda: F.pad(torch.ones(1), (-1, -1), "replicate"), NotImplementedError, "not supported for 1D"),
    (lambda: F.one_hot(torch.zeros(0, dtype=torch.int64)), RuntimeError, "number of classes from empty"),
    (lambda: F.soft_margin_loss(given([1.0]), given([1.0])), RuntimeError, "to argument 'target'"),
    (lambda: F.multi_margin_loss(ONES, torch.tensor(0), weight=given([1.0, 1.0])), RuntimeError, "to argument 'weight'"),
    (lambda: F.multi_margin_loss(ONES, torch.tensor(0), p=3), ValueError, "only p == 1 and p == 2"),
    (lambda: F.huber_loss(torch.tensor([1]), torch.ones(1)), RuntimeError, "Float can't be cast to .* Long"),
    (lambda: torch.broadcast_tensors(torch.ones(2), torch.ones(3)), RuntimeError, r"tensor a \(2\) must match"),
    (lambda: F.hardtanh(torch.ones(2, dtype=torch.uint8)), RuntimeError, "unsigned type with negative limits"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_layers_and_losses_that_are_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


STRICT = [
    (torch.autograd.functional.vjp, lambda x, y: x.sum() + 2 * y.sum(), "jacobian of .* independent of input 0"),
    (torch.autograd.functional.jvp, lambda x, y: x.sum() + 2 * y.sum(), "jacobian of .* independent of input 0"),
    (torch.autograd.functional.jacobian, lambda x, y: x.sum() + 2 * y.sum(), "jacobian of .* independent of input 0"),
    (torch.autograd.functional.vhp, lambda x, y: (x * y).sum(), "hessian of .* independent of input 0"),
    (torch.autograd.functional.hvp, lambda x, y: (x * y).sum(), "hessian of .* independent of input 0"),
    (torch.autograd.functional.hessian, lambda x, y: (x**2).sum() + (y**3).sum(), "Output 0 .* independent of input 1"),
]


@pytest.mark.parametrize(("derivative", "fun", "message"), STRICT)
def test_strict_derivatives_of_derivatives(derivative, fun, message):
    """Where they are to be differentiated in turn, strict mode refuses those that hang on nothing."""
    functional, inputs = torch.autograd.functional, (ONES, 2 * ONES)
    products = functional.jvp, functional.vhp, functional.hvp
    given = (fun, inputs, inputs) if derivative in products else (fun, inputs)
    with pytest.raises(RuntimeError, match=message):
        derivative(*given, strict=True, create_graph=True)
    derivative(*given, create_graph=True)


def test_gradients_that_hang_on_another_input_are_strict_enough():
    fun = lambda x, y: (x**2).sum() * y.sum()
    _, (left, right) = torch.autograd.functional.vhp(fun, (ONES, ONES), (ONES, ONES), strict=True)
    np.testing.assert_allclose(left.numpy(), 8.0)
    np.testing.assert_allclose(right.numpy(), 4.0)


# -- under a derivative of symgrad's -------------------------------------------------------------------------------


def _three_times(fun, *args):
    """What a derivative gives when it is traced, traced again and compiled."""
    return [fun(*args) for _ in range(3)]


def test_values_that_are_not_traced_are_torchs_under_a_derivative():
    """The norm of a constant matrix is the one of its elements there, too, not NumPy's of matrices."""
    ones = torch.full((2, 2), 3.0)
    for g in _three_times(torch.func.grad(lambda x: (x * torch.norm(ones, 1)).sum()), torch.ones(3)):
        assert g.tolist() == [12, 12, 12]
    kept = []

    def total(x):
        kept.append(0)  # so that each element runs alone
        return torch.norm(x, -math.inf)

    x = torch.tensor([[[1.0, -4.0], [3.0, 2.0]], [[5.0, 6.0], [-7.0, 8.0]]])
    for _ in range(3):
        assert torch.vmap(lambda x: total(x))(x).tolist() == [1, 5]


def test_eigenvalues_under_a_derivative():
    a = np.random.default_rng(0).normal(size=(3, 3))
    strength = lambda a: torch.linalg.eigvals(a).abs().sum()
    x = given(a)
    expected = slope(strength(x), x)
    for g in _three_times(torch.func.grad(strength), torch.from_numpy(a)):
        np.testing.assert_allclose(g, expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["cholesky", "eigvalsh", "pinv", "hermitian pinv"])
def test_factors_under_a_derivative_have_the_gradients_of_backward(name):
    """Symmetric ones of matrices of which one triangle is read; also where singular values are cut off."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(4, 2 if "pinv" in name else 4))
    a, weights = root @ root.T + 0.0, torch.from_numpy(rng.normal(size=(4, 4)))
    functions = {
        "cholesky": lambda a: (torch.linalg.cholesky(a) * weights).sum(),
        "eigvalsh": lambda a: (torch.linalg.eigvalsh(a, "U") * weights[0]).sum(),
        "pinv": lambda a: (torch.linalg.pinv(a, rtol=1e-10) * weights).sum(),
        "hermitian pinv": lambda a: (torch.linalg.pinv(a, rtol=1e-10, hermitian=True) * weights).sum(),
    }
    fun, x = functions[name], given(a)
    expected = slope(fun(x), x)
    for g in _three_times(torch.func.grad(fun), torch.from_numpy(a)):
        np.testing.assert_allclose(g, expected, rtol=1e-8, atol=1e-12)
    t = rng.normal(size=(4, 4))
    _, pushed = torch.func.jvp(fun, (torch.from_numpy(a),), (torch.from_numpy(t),))
    np.testing.assert_allclose(pushed.item(), (expected.numpy() * t).sum(), rtol=1e-8)


OF_NUMBERS = {
    "power": lambda x, k: x.abs() ** k,
    "sum": lambda x, k: k - x * k / (k + 1),
    "where": lambda x, k: torch.where(x > 0, x, k) * x,
    "clamp": lambda x, k: x.clamp(min=k) * x,
    "alpha": lambda x, k: torch.add(x, x * x, alpha=k),
    "softplus": lambda x, k: F.softplus(x, k),
    "full": lambda x, k: torch.full_like(x, k) * x,
    "tensor": lambda x, k: torch.tensor([k, k * 2, 1.0]) * x,
    "filled": lambda x, k: x.masked_fill(x > 0, k) * x,
    "norm": lambda x, k: torch.norm(x, k + 1),
    "quantile": lambda x, k: torch.quantile(x, k / 2),
}


@pytest.mark.parametrize("fun", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_numbers_among_the_arguments_stay_numbers(fun):
    """A Python number that a function of tensors is given is one to it, not a tensor."""
    derivative = torch.func.grad(lambda x, k: fun(x, k).sum())
    for k in (0.5, 0.5, 0.5, 0.75, 0.5):
        x = torch.tensor([0.3, -1.2, 2.1], requires_grad=True)
        np.testing.assert_allclose(derivative(x.detach(), k), slope(fun(x, k).sum(), x), rtol=1e-5)


SIZES, STEPS, CUT, SMALL = [1, 3], [0.5, 2.0], [1e-3], {"eps": 0.5}


def test_options_in_lists_outside():
    """Numbers of a list outside are traced, too."""
    x = torch.from_numpy(np.random.default_rng(2).normal(size=(2, 1, 3)))
    normed = lambda x, w: (F.layer_norm(x, SIZES, w, eps=SMALL["eps"]).sin()).sum()
    weight = torch.ones(1, 3, dtype=torch.float64)
    first, *later = _three_times(torch.func.grad(normed), x, weight)
    leaf = given(x.numpy())
    np.testing.assert_allclose(first, slope(normed(leaf, weight), leaf), rtol=1e-12)
    for g in later:
        np.testing.assert_allclose(g, first, rtol=1e-12)
    slopes = lambda x: sum([part.square().sum() for part in torch.gradient(x[:, 0], spacing=STEPS, dim=[0, 1])])
    inverse = lambda x: torch.linalg.pinv(x[:, 0], rtol=CUT[0]).square().sum()
    for fun in (slopes, inverse):
        for g in _three_times(torch.func.grad(fun), x):
            np.testing.assert_allclose(g, slope(fun(leaf), leaf), rtol=1e-9)


def test_no_gradient_flows_to_the_mean_of_normal_numbers():
    x = torch.ones(3)
    for derivative in (
        torch.func.grad(lambda x: torch.normal(x, 1.0).sum()),
        torch.func.grad(lambda x: torch.normal(0.0, x).sum()),
    ):
        for g in _three_times(derivative, x):
            assert g.tolist() == [0, 0, 0]


def test_what_vmap_is_given_by_name_is_the_same_for_all():
    x, k = torch.arange(6.0).reshape(2, 3), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    scaled = lambda x, k=None: (x * k).sum()
    for _ in range(3):
        found = torch.vmap(scaled)(x, k=k)
        assert found.tolist() == [8, 26]
        assert torch.vmap(scaled, (1,))(x, k=torch.tensor([1.0, 2.0])).tolist() == [6, 9, 12]
        assert slope(found.sum(), k).tolist() == [3, 5, 7]
        assert torch.func.grad(lambda k: torch.vmap(scaled)(x, k=k).sum())(k.detach()).tolist() == [3, 5, 7]


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_moves_complex_numbers_as_pairs(search):
    """Each real and each imaginary part as if it were a parameter of its own."""
    z, w = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128, requires_grad=True), given([0.5])
    pairs, v = given([[1.0, 2.0], [0.0, -0.5]]), given([0.5])

    def trained(params, loss):
        optimizer = torch.optim.LBFGS(params, lr=0.5, max_iter=4, line_search_fn=search)

        def closure():
            optimizer.zero_grad()
            value = loss()
            value.backward()
            return value

        return [optimizer.step(closure).item() for _ in range(3)]

    found = trained([z, w], lambda: ((z * (2 + 1j) - 1).abs() ** 4).sum() + (w**2 * z.real.sum()).sum())
    twin = lambda: torch.view_as_complex(pairs)
    expected = trained([pairs, v], lambda: ((twin() * (2 + 1j) - 1).abs() ** 4).sum() + (v**2 * twin().real.sum()).sum())
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(torch.view_as_real(z).detach().numpy(), pairs.detach().numpy(), rtol=1e-8)


# -- whole numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [torch.int8, torch.int32, torch.uint8])
def test_small_whole_numbers_are_summed_as_torch_does(kind):
    a = torch.tensor([[100, 27], [3, 4]], dtype=kind)
    small = torch.tensor([[1, 2], [3, 4]], dtype=kind)
    sums = torch.einsum("ij->i", a), torch.einsum("ij->", a), torch.einsum("ii", a), torch.einsum("ij,kl->", a, a)
    assert [x.tolist() for x in sums] == [[127, 7], 134, 104, 134**2]
    sums = (*sums, torch.cumsum(a[0, 0], 0), torch.cumprod(a[0, 0], 0))
    assert {x.dtype for x in sums} == {torch.int64}
    products = (
        torch.einsum("ij,jk->ik", small, small),
        torch.tensordot(small[:1, :1, None], small[:, :1, None], [[0, 1], [2, 1]]),
    )
    products = (*products, torch.addbmm(small, small[None], small[None]))
    assert {x.dtype for x in products} == {kind}
    assert products[-1].tolist() == [[8, 12], [18, 26]]
    assert torch.cumsum(a[0, 0], 0, dtype=kind).dtype == kind


def test_factors_of_whole_numbers_wrap_as_bytes_do():
    byte = torch.tensor([1], dtype=torch.uint8)
    assert torch.add(byte, byte, alpha=-3).tolist() == [254]
    assert torch.sub(byte, byte, alpha=-3).tolist() == [4]
    assert torch.scalar_tensor(-5, dtype=torch.uint8).item() == 251
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.add(torch.tensor([1], dtype=torch.int8), torch.tensor([1], dtype=torch.int8), alpha=300)


def test_functions_of_whole_numbers_are_of_the_default_dtype():
    a = torch.tensor([[1, 2], [3, 5]])
    torch.set_default_dtype(torch.float64)
    try:
        found = [torch.cov(a), torch.corrcoef(a), *torch.gradient(a), torch.polygamma(1, a)]
    finally:
        torch.set_default_dtype(torch.float32)
    assert {x.dtype for x in found} == {torch.float64}


# -- schedulers, memory --------------------------------------------------------------------------------------------


class Falling:
    """A factor that falls with each call."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, epoch):
        self.factor *= 0.5
        return self.factor


def test_schedulers_keep_the_state_of_callable_objects():
    optimizer = torch.optim.SGD([given([1.0])], lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, Falling(1.0))
    optimizer.step()
    scheduler.step()
    state = scheduler.state_dict()
    assert state["lr_lambdas"] == [{"factor": 0.25}]
    other = torch.optim.lr_scheduler.LambdaLR(optimizer, Falling(16.0))
    other.load_state_dict(state)
    other.step()
    assert other.get_last_lr() == [0.125]
    assert torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0).state_dict()["lr_lambdas"] == [None]


def test_ravel_copies_what_does_not_lie_in_order():
    x = torch.zeros(4, 2)
    x[:, 0].ravel()[0] = 1.0
    assert not x.any()
    x.ravel()[0] = 1.0
    assert x[0, 0] == 1
