"""What eager tensors promise beyond torch's words: the same rules, long graphs, named culprits, NumPy and symgrad.grad."""

import copy
import gc
import math
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest
from ops_samples import DIFFERENTIABLE, cases, close

import symgrad
import symgrad.eager as torch
import symgrad.eager.nn.functional as F
from symgrad.eager import Tensor
from symgrad.errors import NotDifferentiable
from symgrad.ops.core import REGISTRY, Refused

name = lambda op: op.name


# -- the same rules ------------------------------------------------------------------------------------------------


def tensors(case):
    return [torch.from_numpy(np.array(x)).requires_grad_() for x in case.primals]


def arrays(values):
    return [x.detach().numpy() if isinstance(x, torch.Tensor) else x for x in values]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
def test_eager_equals_vjp(op):
    """On every sample of every rule: values and gradients are those of ``symgrad.vjp``."""
    for case in cases(op)[:4]:
        expected, pullback = symgrad.vjp(case, *case.primals)
        weights = case.like(case.outputs)
        inputs = tensors(case)
        outputs = case(*inputs)
        close(arrays(outputs), expected, 1e-11, "value")
        kept = [(y, torch.from_numpy(np.array(w))) for y, w in zip(outputs, weights, strict=True) if y.requires_grad]
        found = torch.autograd.grad(
            [y for y, _ in kept], inputs, [w for _, w in kept], materialize_grads=True, allow_unused=True
        )
        close(arrays(found), pullback(weights), 1e-11, "gradient")


SMOOTH = [F.softplus, F.silu, F.gelu, F.elu, F.logsigmoid, torch.sigmoid, torch.erf, torch.rsqrt, F.mish, F.relu, F.leaky_relu]
ROWS = [
    lambda x: torch.softmax(x, 1),
    lambda x: torch.log_softmax(x, 0),
    lambda x: x.logsumexp(1),
    lambda x: F.layer_norm(x, (3,)),
    lambda x: x.max(dim=1).values,
    lambda x: x.median(dim=0).values,
    lambda x: x.median(),
    lambda x: x.sort(dim=1).values,
    lambda x: x.std(dim=1),
    lambda x: x.norm(dim=0),
    lambda x: F.cross_entropy(x, torch.tensor([0, 2])),
    lambda x: F.cross_entropy(x, torch.tensor([0, 2]), label_smoothing=0.1),
    lambda x: x.repeat(2, 2),
    lambda x: x.lerp(x * x, 0.3),
    lambda x: torch.stack(x.unbind(1)[:2]),
    lambda x: torch.cat(x.split(1, dim=1)[1:], 0),
    lambda x: x.gather(1, torch.tensor([[0, 0], [1, 2]])),
    lambda x: F.smooth_l1_loss(x, x.flip(0) * 3),
    lambda x: F.mse_loss(x, x * x),
    lambda x: F.huber_loss(x * 4, x.flip(1)),
    lambda x: F.binary_cross_entropy_with_logits(x, x.sigmoid()),
    lambda x: F.binary_cross_entropy(x.sigmoid(), (x * x).sigmoid()),
    lambda x: F.linear(x, x, x.sum(1)),
    lambda x: x[0] @ x.T,
    lambda x: torch.addcmul(x, x, x),
    lambda x: torch.addcdiv(x, x, x + 3),
    lambda x: x.clamp(-0.5, 0.5),
    lambda x: x / (x + 3),
    lambda x: torch.where(x > 0, x, x * x),
    lambda x: x.prod(dim=1),
    lambda x: F.binary_cross_entropy_with_logits(
        x, torch.full((2, 3), 0.3, dtype=torch.double), pos_weight=torch.tensor([1.0, 2, 3], dtype=torch.double)
    ),
]


@pytest.mark.parametrize("fun", [*SMOOTH, *ROWS], ids=range(len(SMOOTH) + len(ROWS)))
def test_own_operations(fun):
    torch.manual_seed(3)
    x = torch.rand(2, 3, dtype=torch.float64).add_(0.1).requires_grad_()
    assert torch.autograd.gradcheck(fun, (x,))
    assert torch.autograd.gradgradcheck(fun, (x,))


def test_gradcheck_finds_a_wrong_backward():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(torch.autograd.GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        torch.autograd.gradcheck(Wrong.apply, (x,))
    assert not torch.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)


# -- long graphs ---------------------------------------------------------------------------------------------------


def test_long_chain():
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1e-5
    y.backward(retain_graph=True)
    assert x.grad.item() == 1.0
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 1.0
    del y, g
    gc.collect()


@pytest.mark.parametrize(
    "step", [lambda y: y.view(2), lambda y: y[:], lambda y: y.t().unsqueeze(0)[0], lambda y: y.mul_(1.0), lambda y: y.sin()]
)
def test_long_chain_of(step):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    top = y = x * 1.0
    for _ in range(5_000):
        y = step(y)
    y.sum().backward(retain_graph=True)
    assert x.grad is not None
    if y._base is top:
        y.mul_(3.0)
        assert y.grad_fn.name() == "AsStridedBackward0"
        x.grad = None
        top.sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
    del top, y
    gc.collect()


def test_long_chain_of_products_and_functions():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.ones(2, requires_grad=True)
    y = x
    for i in range(20_000):
        y = Twice.apply(y) if i % 100 == 0 else (y * 1.0)[:]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_graphs_do_not_leak():
    import weakref

    x = torch.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        y = x.exp() * x
        y.retain_grad()
        z = y.sum()
        z.backward()
        gone = [weakref.ref(y), weakref.ref(z), weakref.ref(z.grad_fn)]
        del y, z
        assert all(ref() is None for ref in gone)
    finally:
        gc.enable()


# -- writes --------------------------------------------------------------------------------------------------------


def test_the_write_is_named():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"changed by add_\(\) at .*test_eager.py:\d+, after ExpBackward0 had saved it"):
        y.sum().backward()
    y = x * 2
    z = y * y
    y[0] = 3
    with pytest.raises(RuntimeError, match=r"changed by copy_\(\) at .*test_eager.py:\d+, after MulBackward0 had saved it"):
        z.sum().backward()


def test_views_see_writes():
    x = torch.zeros(2, 3)
    row, flat = x[0], x.view(-1)
    x.add_(1)
    flat[1] = 5
    assert row.tolist() == [1, 5, 1]
    assert x._version == row._version == flat._version == 2
    assert row._base is x
    y = torch.ones(3, requires_grad=True) * 2
    a, b = y[:2], y[1:]
    a.mul_(3)
    assert b.grad_fn.name() == "AsStridedBackward0"
    b.sum().backward()


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y[0].mul_(3),
        lambda y: y[:, 1].zero_(),
        lambda y: y.t()[0].add_(torch.tensor([1.0, 2.0])),
        lambda y: y.view(-1)[2:4].exp_(),
        lambda y: y.unsqueeze(0)[0, 1].fill_(2),
        lambda y: y.diagonal().mul_(2),
        lambda y: y.__setitem__((0, 0), y[1, 1] * 3),
        lambda y: y.__setitem__(torch.tensor([0, 1]), 1.5),
        lambda y: y.__setitem__(y.detach() > 1, 0.0),
        lambda y: y.copy_(y * 2),
        lambda y: y.index_put_((torch.tensor([0, 0]),), torch.ones(2, dtype=torch.float64), accumulate=True),
        lambda y: y.masked_fill_(y.detach() > 1, 0),
    ],
)
def test_gradients_after_writes_into_views(write):
    check_write(write)


def augmented(key, start):
    """``y[key] *= 3`` and ``y[key] += x``, of a result, or of zeros that begin to require grad by that."""

    def write(y):
        x = y.clone()
        y[key] *= 3
        z = y if start else torch.zeros_like(y)
        z[key] += x[1, 1]
        z[0] -= x[1]
        y.copy_(z * 2)

    return write


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("key", [0, (0, 0), slice(None), slice(0, None), Ellipsis, (slice(None), 1), torch.tensor([0, 1])])
def test_gradients_after_augmented_assignments(key, start):
    check_write(augmented(key, start))


def check_write(write):
    def run(x):
        y = x * x
        write(y)
        return (y * torch.arange(4.0, dtype=torch.float64).reshape(2, 2)).sum()

    x = torch.tensor([[0.5, 1.5], [1.2, 2.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(run, (x,))


def test_second_backward_is_refused_only_where_something_was_freed():
    x = torch.ones(2, requires_grad=True)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0, 4.0]
    z = (x * x).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()


def test_leaves_own_their_gradients():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    seed = torch.ones(3)
    (x + y).backward(seed)
    assert len({id(t.grad.numpy().base) for t in (x, y)} | {id(t.grad) for t in (x, y, seed)}) > 2
    x.grad.add_(1)
    assert y.grad.tolist() == seed.tolist() == [1, 1, 1]


# -- modes, hooks, namespaces --------------------------------------------------------------------------------------


def test_modes_belong_to_threads():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append((torch.ones(1, requires_grad=True) * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_untracked_work_records_nothing():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert (x * 2).grad_fn is None
    assert (x.detach() * 2).grad_fn is None
    assert (x > 0).grad_fn is None


def test_generators_under_no_grad():
    @torch.no_grad()
    def steps():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    assert [(inside, torch.is_grad_enabled()) for inside in steps()] == [(False, True)] * 2


def test_anomaly_mode_names_the_operation():
    x = torch.zeros(1, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = torch.autograd.detect_anomaly()
    with mode:
        y = torch.sqrt(x) * 0
        with (
            pytest.warns(UserWarning, match=r"(?s)Error detected in SqrtBackward0.*test_eager.py"),
            pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"),
        ):
            y.sum().backward()


def test_hooks_of_nodes():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    seen = []
    y.grad_fn.register_hook(lambda ins, outs: seen.append((ins[0].tolist(), outs[0].tolist())))
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 2,))
    y.sum().backward()
    assert seen == [([6.0, 6.0], [2.0, 2.0])]
    assert x.grad.tolist() == [6.0, 6.0]


def test_gradients_are_taken_before_hooks_that_precede_a_node():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 2,))
    of_y, of_x = torch.autograd.grad((y * y).sum(), [y, x])
    assert (of_y.tolist(), of_x.tolist()) == ([6, 6], [36, 36])


def test_accumulate_nodes_keep_their_identity():
    x = torch.ones(2, requires_grad=True)
    a, b = (x * 2).grad_fn.next_functions[0][0], (x + 1).grad_fn.next_functions[0][0]
    assert a is b
    assert a.variable is x


def test_namespaces():
    assert torch.nn.functional is F
    for space in (torch.autograd, torch.autograd.functional, torch.optim, torch.linalg, torch.special):
        assert space.__doc__
    assert isinstance(torch.nn.Parameter(torch.ones(2)), torch.Tensor)
    assert repr(torch.nn.Parameter(torch.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_copies_and_pickles():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for same in (copy.copy(x.detach()), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert same.tolist() == [1.0, 2.0]
    assert pickle.loads(pickle.dumps(x)).requires_grad
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
    assert pickle.loads(pickle.dumps(x.shape)) == x.shape


def test_large_random_tensors_have_the_moments_of_their_distribution():
    torch.manual_seed(5)
    x = torch.randn(100_003)
    assert abs(x.mean().item()) < 0.01
    assert abs(x.std().item() - 1) < 0.01
    state = torch.get_rng_state()
    a = torch.rand(5)
    torch.set_rng_state(state)
    assert torch.equal(a, torch.rand(5))
    assert torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 1).tolist() == [1]


# -- NumPy's functions, and symgrad.grad ---------------------------------------------------------------------------


def test_numpys_functions_on_tensors():
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = np.sum(np.sqrt(x) * np.array([1.0, 2.0], dtype=np.float32))
    assert repr(y) == "tensor(5., grad_fn=<SumBackward0>)"
    y.backward()
    assert x.grad.tolist() == [0.5, 0.5]
    assert np.mean(x).item() == 2.5
    assert np.std(x.detach()).item() == 1.5  # NumPy's own, with no correction
    assert np.add.reduce(x).item() == 5.0
    assert np.hypot.reduce(x).item() == np.hypot.reduce(x.detach().numpy())
    assert np.multiply.outer(x, x).shape == (2, 2)
    assert np.maximum.accumulate(x).tolist() == [1.0, 4.0]
    assert np.concatenate([x, x]).shape == (4,)
    assert np.zeros_like(x).tolist() == [0.0, 0.0]
    assert np.allclose(x, [1, 4]) is True
    assert symgrad.grad(lambda x: x.sum() if np.array_equal(x, x * 2) else 2 * x.sum())(x.detach()).tolist() == [2, 2]
    assert np.shape(x) == (2,)
    assert np.asarray(x.detach()).tolist() == [1.0, 4.0]
    assert (np.array([2.0, 3.0], dtype=np.float32) * x).tolist() == [2.0, 12.0]
    out = torch.zeros(2)
    np.add(x.detach(), 1, out=out)
    assert out.tolist() == [2.0, 5.0]
    z = x * 1
    np.add.at(z, np.array([0, 0]), 1.0)
    assert z.tolist() == [3.0, 4.0]
    refused = next(key for key, handler in REGISTRY.items() if isinstance(handler, Refused))
    with pytest.raises(NotDifferentiable, match=rf"np\..*{refused.__name__}"):
        Tensor.__array_function__(x, refused, (), (x,), {})
    plain = np.zeros(2, np.float32)
    for use in (
        lambda: np.asarray(x),
        lambda: np.sin(x, out=plain),
        lambda: plain.__iadd__(x),
        lambda: np.add.at(plain, [0, 1], x),
        lambda: np.cumsum(x, out=plain),
    ):
        with pytest.raises(RuntimeError, match="Can't call numpy"):
            use()
    assert not plain.any()
    plain += x.detach()
    with torch.no_grad():
        np.multiply(x, 2, out=plain)
    assert plain.tolist() == [2.0, 8.0]


def test_tensors_pass_through_grad():
    fun = lambda x: (x.sin() * x).sum()
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    g = symgrad.grad(fun)(x)
    assert isinstance(g, torch.Tensor)
    assert g.dtype == torch.float32
    a = x.detach().numpy()
    np.testing.assert_allclose(g.detach().numpy(), np.sin(a) + a * np.cos(a), rtol=1e-6)
    g.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(a) - a * np.sin(a), rtol=1e-6)
    first = symgrad.grad(lambda x: (x**4).sum())(x)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    assert third.tolist() == [24.0, 48.0]


def test_grad_of_torch_like_functions():
    def fun(p, x):
        h = torch.relu(x @ p["w"] + p["b"]) * 1
        h[0] = 0
        h += 1
        return F.cross_entropy(h, torch.tensor([0, 1])) if h.sum() > 0 else h.sum()

    p = {"w": torch.eye(2), "b": torch.tensor([0.1, 0.2])}
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    value, grads = symgrad.value_and_grad(fun)(p, x)
    leaves = {k: v.clone().requires_grad_() for k, v in p.items()}
    loss = fun(leaves, x)
    loss.backward()
    assert value.item() == pytest.approx(loss.item())
    for key in p:
        np.testing.assert_allclose(grads[key].numpy(), leaves[key].grad.numpy(), rtol=1e-5)
    assert symgrad.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0])).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    nested = symgrad.grad(lambda x: symgrad.grad(lambda z: (z**3).sum())(x).sum())
    assert nested(torch.tensor([1.0, 2.0])).tolist() == [6.0, 12.0]


def test_eager_functions_on_traced_arrays():
    w = torch.tensor([2.0, 3.0])
    derivative = symgrad.grad(lambda a: (torch.sin(a) * w.numpy()).sum())
    for _ in range(3):
        np.testing.assert_allclose(derivative(np.array([0.5, 1.0])), np.cos([0.5, 1.0]) * [2, 3])


# -- functions of one's own, optimisers ----------------------------------------------------------------------------


def test_function_with_several_outputs():
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            assert h is None
            return g * 2

    x = torch.ones(2, requires_grad=True)
    Both.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_function_checks_what_backward_returns():
    class Few(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 1\)"):
        Few.apply(x, x).sum().backward()


def test_saved_tensors_of_a_function_are_watched():
    class Save(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = torch.ones(2, requires_grad=True)
    y = Save.apply(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*add_\(\) at"):
        y.sum().backward()
    z = Save.apply(x).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


def test_functions_save_tensors_only():
    class Save(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None, 3)
            return x.exp()

    assert torch.equal(Save.apply(torch.zeros(2)), torch.ones(2))  # where nothing is recorded, nobody looks
    with pytest.raises(TypeError, match="can only save variables, but argument 2 is of type int"):
        Save.apply(torch.zeros(2, requires_grad=True))


MATRICES = [
    (lambda x, w: x @ w),
    (lambda x, w: w @ x),
    (lambda x, w: x[0] @ w[0]),
    (lambda x, w: torch.einsum("ij,jk->ik", x, w)),
    (lambda x, w: torch.bmm(w[None], x[None])),
    (lambda x, w: torch.addmm(w, x, w)),
    (lambda x, w: torch.tensordot(x, w, 1)),
    (lambda x, w: F.linear(x, w, w[0])),
    (lambda x, w: F.bilinear(x, w, w[None])),
]


@pytest.mark.parametrize("product", MATRICES)
def test_a_product_saves_what_its_derivatives_read(product):
    w = torch.tensor([[0.5, 1.0], [2.0, -1.0]])
    x = torch.ones(2, 2, requires_grad=True)
    expected = torch.autograd.grad(product(x * 2, w).sum(), x)[0]
    y = x * 2
    z = product(y, w).sum()
    y.add_(1)  # which the derivative by it does not look at
    assert torch.equal(torch.autograd.grad(z, x, retain_graph=True)[0], expected)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("name", ["remainder", "fmod", "atan2"])
def test_results_that_no_derivative_reads_may_be_written_to(name):
    """As in torch, whose formulas are of the arguments alone."""
    start = np.array([1.7, -2.3]), np.array([0.5, 0.7])
    found = []
    for factor in (1.0, 2.0):
        x, y = (torch.from_numpy(a.copy()).requires_grad_() for a in start)
        result = getattr(torch, name)(x, y)
        result.mul_(2.0) if factor > 1 else None
        result.sum().backward()
        found.append((x.grad / factor, y.grad / factor))
    assert all(map(torch.equal, *found))


SINGULAR = {  # as torch has the value's gradients, all of cotangents 1 but the last, of 0
    "hypot": (torch.hypot, (0.0, 0.0), (math.nan, math.nan), (math.nan, math.nan)),
    "relu6": (F.relu6, (math.nan,), (1.0,), (0.0,)),
    "hardtanh": (F.hardtanh, (1.0,), (0.0,), (0.0,)),
    "xlogy": (torch.xlogy, (0.5, -1.0), (math.nan, -0.5), (0.0, 0.0)),
    "xlogy of zeros": (torch.xlogy, (0.0, 0.0), (0.0, math.nan), (0.0, math.nan)),
    "remainder": (torch.remainder, (1.5, 0.0), (1.0, -math.inf), (0.0, math.nan)),
    "fmod": (torch.fmod, (-1.5, 0.0), (1.0, math.inf), (0.0, math.nan)),
    "fmod of zeros": (torch.fmod, (0.0, 0.0), (1.0, math.nan), (0.0, math.nan)),
    "atan2": (torch.atan2, (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
}


@pytest.mark.parametrize("case", SINGULAR)
def test_gradients_at_singular_points_are_torchs(case):
    fun, point, *expected = SINGULAR[case]
    for cotangent, slopes in zip((1.0, 0.0), expected, strict=True):
        args = [torch.tensor([x], dtype=torch.float64, requires_grad=True) for x in point]
        fun(*args).backward(torch.tensor([cotangent], dtype=torch.float64))
        np.testing.assert_array_equal([arg.grad.item() for arg in args], slopes)


def test_powers_of_matrices_are_of_matrices():
    for n in (-1, 0, 1, 2):
        with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
            torch.linalg.matrix_power(torch.ones(2), n)
        with pytest.raises(RuntimeError, match="must be batches of square matrices, but they are 1 by 3"):
            torch.linalg.matrix_power(torch.ones(1, 3), n)
    assert torch.linalg.matrix_power(torch.tensor([[1, 2], [3, 4]]), 2).tolist() == [[7, 10], [15, 22]]


def test_a_view_that_was_written_to_keeps_its_history():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    first = y[:1]
    first.mul_(3)
    y.detach_()
    first.sum().backward()
    assert x.grad.tolist() == [6, 0, 0]


def test_variables():
    x = torch.ones(2)
    variable = torch.autograd.Variable(x, requires_grad=True)
    (variable * 3).sum().backward()
    variable.data[0] = 5
    assert variable.grad.tolist() == [3, 3]
    assert x.tolist() == [5, 1]
    assert not torch.autograd.Variable(x).requires_grad
    assert torch.autograd.Variable().shape == (0,)
    assert isinstance(x, torch.autograd.Variable)
    assert not isinstance(3, torch.autograd.Variable)
    with pytest.raises(TypeError, match="has to be a tensor, but got int"):
        torch.autograd.Variable(3)


@pytest.mark.parametrize("kind", [float, int, complex])
def test_several_numbers_are_not_one(kind):
    with pytest.raises(ValueError, match="only one element tensors"):
        kind(torch.ones(2))
    with pytest.raises(RuntimeError, match="2 elements cannot be converted to Scalar"):
        torch.ones(2).item()


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.5, nesterov=True),
        lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
        lambda p: torch.optim.AdamW(p, lr=0.1),
        lambda p: torch.optim.RMSprop(p, lr=0.1, centered=True, momentum=0.5),
    ],
)
def test_optimisers_take_up_their_state(make):
    def step(p, optimizer):
        optimizer.zero_grad()
        loss = (p**4).sum()
        loss.backward()
        optimizer.step()

    p = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = make([p])
    for _ in range(3):
        step(p, optimizer)
    q = p.detach().clone().requires_grad_()
    again = make([q])
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))  # else they share it, as in torch
    for _ in range(3):
        step(p, optimizer)
        step(q, again)
    assert torch.equal(p, q)


def test_closures():
    p = torch.tensor([1.0], requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 1.0
    assert p.item() == 0.5
    assert math.isclose(optimizer.step(closure).item(), 0.25)


@pytest.mark.parametrize(
    ("options", "expected"),  # torch's
    [
        ({}, [0.7329259658411951, -1.7043937969243457, 0.283001062704303]),
        (
            {"centered": True, "momentum": 0.5, "weight_decay": 0.1},
            [0.5689394123734856, -1.5093438616740438, 0.15248814892341855],
        ),
        ({"alpha": 0.9, "momentum": 0.9, "maximize": True}, [1.3296070846828445, -2.3195175816235962, 0.8465816924006165]),
    ],
)
def test_rmsprop(options, expected):
    p = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.RMSprop([p], lr=0.01, **options)
    for _ in range(5):
        optimizer.zero_grad()
        (p**4).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(p.detach(), expected, rtol=1e-13)


def descent(x, **options):
    """An optimiser of Rosenbrock's function, what it calls, and a list that grows at each call."""
    calls, optimizer = [], torch.optim.LBFGS(x, **options)

    def closure():
        optimizer.zero_grad()
        y = torch.cat(x)
        loss = (100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2).sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    return optimizer, closure, calls


@pytest.mark.parametrize(
    ("options", "evaluations", "expected"),  # torch's, after two steps
    [
        ({"line_search_fn": "strong_wolfe"}, 50, [0.9233061305856787, 0.844215921198743, 0.7056936558994678]),
        ({"line_search_fn": "strong_wolfe", "lr": 3.0}, 51, [0.7870851327748637, 0.596436960113771, 0.3345922707272145]),
        (
            {"line_search_fn": "strong_wolfe", "max_iter": 5, "history_size": 2},
            12,
            [-0.8506067545288635, 0.7157931180925015, 0.5018339349379158],
        ),
        ({"lr": 0.1}, 40, [-0.9260892415840689, 0.8605218138078842, 0.7363013976117353]),
        ({"lr": 0.01, "max_iter": 7, "max_eval": 4}, 8, [-1.1846345990605407, 0.9910240516515252, 0.5108112424191262]),
    ],
)
def test_lbfgs(options, evaluations, expected):
    x = [torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in ([-1.2, 1.0], [0.5])]
    optimizer, closure, calls = descent(x, **options)
    assert optimizer.step(closure).item() == calls[0]
    again = [part.detach().clone().requires_grad_() for part in x]
    other, over, _ = descent(again, **options)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    with torch.no_grad():  # closures are differentiated all the same
        optimizer.step(closure)
    other.step(over)
    assert len(calls) == evaluations == optimizer.state_dict()["state"][0]["func_evals"]
    np.testing.assert_allclose(torch.cat(x).detach(), expected, rtol=1e-5)  # rounding grows in so narrow a valley
    np.testing.assert_array_equal(torch.cat(again).detach(), torch.cat(x).detach())


def test_lbfgs_ends():
    x = [torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)]
    optimizer, closure, calls = descent(x, max_iter=100, line_search_fn="strong_wolfe")
    optimizer.step(closure)
    np.testing.assert_allclose(x[0].detach(), 1.0, rtol=1e-4)
    count = len(calls)
    assert count < 60
    optimizer.step(closure)
    assert len(calls) <= count + 2  # as nothing is left to do


def test_lbfgs_refuses():
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match="per-parameter options"):
        torch.optim.LBFGS([{"params": [x]}, {"params": [y]}])
    with pytest.raises(TypeError, match="closure"):
        torch.optim.LBFGS([x]).step()
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        torch.optim.LBFGS([x], line_search_fn="x").step(lambda: x.sum())


SCHEDULES = {  # what makes one, and the factor by which it changes the first rate until an epoch
    "StepLR": ({"step_size": 3, "gamma": 0.5}, lambda i: 0.5 ** (i // 3)),
    "MultiStepLR": ({"milestones": [2, 5, 5]}, lambda i: 0.1 ** ((i >= 2) + 2 * (i >= 5))),
    "ExponentialLR": ({"gamma": 0.9}, lambda i: 0.9**i),
    "ConstantLR": ({"factor": 0.5, "total_iters": 4}, lambda i: 0.5 if i < 4 else 1),
    "LinearLR": ({"start_factor": 0.25, "end_factor": 0.75, "total_iters": 6}, lambda i: 0.25 + 0.5 * min(i, 6) / 6),
    "PolynomialLR": ({"total_iters": 7, "power": 2.0}, lambda i: (1 - min(i, 7) / 7) ** 2),
    "CosineAnnealingLR": ({"T_max": 6}, lambda i: (1 + math.cos(math.pi * i / 6)) / 2),
    "LambdaLR": ({"lr_lambda": [lambda i: 1 / (1 + i), lambda i: 1 / (1 + i)]}, lambda i: 1 / (1 + i)),
    "MultiplicativeLR": ({"lr_lambda": lambda i: 0.97}, lambda i: 0.97**i),
}


def scheduled(name, options):
    p, q = (torch.ones(2, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.02}], lr=0.1)
    return optimizer, getattr(torch.optim.lr_scheduler, name)(optimizer, **options)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    options, factor = SCHEDULES[name]
    optimizer, scheduler = scheduled(name, options)
    again, resumed = scheduled(name, options)
    for i in range(20):
        expected = [0.1 * factor(i), 0.02 * factor(i)]
        np.testing.assert_allclose([group["lr"] for group in optimizer.param_groups], expected, rtol=1e-12, atol=1e-18)
        assert scheduler.get_last_lr() == [group["lr"] for group in optimizer.param_groups]
        again.load_state_dict(optimizer.state_dict())
        resumed.load_state_dict(pickle.loads(pickle.dumps(scheduler.state_dict())))
        for stepping in (optimizer, scheduler, again, resumed):
            stepping.step()
        assert resumed.get_last_lr() == scheduler.get_last_lr()


def test_schedules_work_together():
    optimizer, first = scheduled("ExponentialLR", {"gamma": 0.9})
    second = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(4):
        for stepping in (optimizer, first, second):
            stepping.step()
    assert math.isclose(optimizer.param_groups[0]["lr"], 0.1 * 0.9**4 * 0.25)


@pytest.mark.parametrize(("mode", "metric"), [("min", lambda loss: loss), ("max", lambda loss: 10 - loss)])
def test_rates_fall_on_plateaus(mode, metric):
    options = {"mode": mode, "factor": 0.5, "patience": 1, "cooldown": 1, "min_lr": [0.03, 0.0]}
    _, scheduler = scheduled("ReduceLROnPlateau", options)
    rates = []
    for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, math.nan, 1.0, 1.0):
        scheduler.step(torch.tensor(metric(loss)))
        rates.append(scheduler.get_last_lr())
    np.testing.assert_allclose(rates, [[0.1, 0.02]] * 3 + [[0.05, 0.01]] * 3 + [[0.03, 0.005]] * 4)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("LambdaLR", {"lr_lambda": [abs]}, "Expected 2 lr_lambdas, but got 1"),
        ("ConstantLR", {"factor": 2.0}, "between 0 and 1"),
        ("LinearLR", {"start_factor": 0.0}, "greater than 0"),
        ("LinearLR", {"end_factor": 2.0}, "between 0 and 1"),
        ("ReduceLROnPlateau", {"factor": 1.0}, "Factor should be < 1.0"),
        ("ReduceLROnPlateau", {"mode": "x"}, "mode x is unknown"),
        ("ReduceLROnPlateau", {"threshold_mode": "x"}, "threshold mode x is unknown"),
        ("ReduceLROnPlateau", {"min_lr": [0.1]}, "expected 2 min_lrs, got 1"),
    ],
)
def test_schedules_that_are_none(name, options, message):
    with pytest.raises(ValueError, match=message):
        scheduled(name, options)
    with pytest.raises(TypeError, match="list is not an Optimizer"):
        torch.optim.lr_scheduler.StepLR([], 3)
    with pytest.raises(KeyError, match="initial_lr"):
        torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)]), 3, last_epoch=2)


# -- tensors through symgrad's derivatives -------------------------------------------------------------------------


def cubes(t):
    return (torch.sigmoid(t) * t**2).sum()


def test_derivatives_of_tensors_are_compiled():
    g = symgrad.grad(cubes)
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(cubes(x), x)
    for _ in range(4):
        found = g(x)
        assert torch.allclose(found, expected)
        assert found.requires_grad
    assert g.cache_info().hits == 2
    assert "np.exp(-t)" in g.source(x)
    assert "compiled; 1 of 1" in g.explain()
    assert np.allclose(g.compiled(x)(x.detach().numpy()), expected.detach().numpy())
    g.cache_clear()
    assert g.cache_info().currsize == 0
    with torch.no_grad():
        assert not g(x).requires_grad


def test_backward_flows_through_derivatives_to_any_order():
    g = symgrad.grad(cubes)
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(g, (x,))
    assert torch.autograd.gradgradcheck(g, (x,))
    value, (a, b) = symgrad.value_and_grad(lambda x, y: (x * y).sum() ** 2, argnums=(0, 1))(x, 2.0)
    assert value.item() == 9.0
    (a.sum() + b).backward()  # 2 (x . y) y, then 2 (x . y) x, summed
    assert x.grad.tolist() == [24.0 + 2 * 2 * (1.5 + 1.5)] * 3


@pytest.mark.parametrize("derive", [symgrad.jacobian, symgrad.jacfwd, symgrad.hessian, symgrad.elementwise_grad])
def test_every_derivative_takes_tensors(derive):
    fun = (lambda x: (x**3).sum()) if derive is symgrad.hessian else lambda x: x**3 + x.sum()
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    found = derive(fun)(x)
    assert np.allclose(found.detach().numpy(), derive(fun)(x.detach().numpy()))
    assert torch.autograd.gradcheck(derive(fun), (x,))


def test_products_take_tensors():
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    one = torch.ones(2, dtype=torch.float64)
    fun = lambda x: (torch.sin(x) * x, x.sum())
    out, pullback = symgrad.vjp(fun, x)
    assert torch.equal(out[0], fun(x)[0])
    slope = torch.cos(x) * x + torch.sin(x)
    assert torch.allclose(pullback((one, one.sum()))[0], slope + 2)
    out, tangent = symgrad.jvp(fun, (x,), (one,))
    assert torch.allclose(tangent[0], slope)
    assert torch.allclose(symgrad.linearize(fun, x)[1](one)[0], slope)
    assert torch.autograd.gradcheck(lambda x: symgrad.jvp(fun, (x,), (one,))[1][0], (x,))
    assert torch.autograd.gradcheck(lambda x: symgrad.vjp(fun, x)[1]((one, one[0]))[0], (x,))
    out, pullback, aux = symgrad.vjp(lambda x: (x * x, x + 1), x, has_aux=True)
    assert torch.equal(aux, x + 1)
    assert torch.equal(pullback(one)[0], 2 * x)
    assert torch.equal(symgrad.hvp(lambda x: (x**3).sum())(x, one), 6 * x)
    assert torch.equal(symgrad.grad(lambda x: (x * symgrad.stop_gradient(x)).sum())(x), x)
    assert not symgrad.stop_gradient(x).requires_grad


class Scaled:
    def __init__(self):
        self.scale = torch.tensor(2.0, dtype=torch.float64)

    @symgrad.grad
    def loss(self, x):
        return (self.scale * x).sum()


def test_tensors_from_outside_are_read_anew():
    model, x = Scaled(), torch.ones(2, dtype=torch.float64)
    weights = torch.ones(2, dtype=torch.float64)
    g = symgrad.grad(lambda x: (weights * x).sum())
    for i in range(5):
        model.scale.add_(1)
        assert model.loss(x).tolist() == [i + 3.0] * 2
        assert g(x).tolist() == [i + 1.0] * 2
        weights = weights + 1
    assert g.cache_info().hits == 3
    assert "read anew at each call: weights.value" in g.explain()


def test_tensors_from_outside_that_require_grad_are_refused():
    """No gradient would flow to them, unless none is wanted."""
    weights = torch.tensor([1.0, 2.0])
    x = torch.ones(2)
    g = symgrad.grad(lambda x: (weights * x).sum())
    assert g(x).tolist() == [1.0, 2.0]
    weights.requires_grad_()
    with pytest.raises(NotDifferentiable, match=r"from outside that requires grad"):
        g(x)
    with torch.no_grad():
        assert g(x).tolist() == [1.0, 2.0]
    assert g(np.ones(2)).tolist() == [1.0, 2.0]
    assert symgrad.grad(lambda x: (weights.detach() * x).sum())(x).tolist() == [1.0, 2.0]
    symgrad.grad(lambda x, w: (w * x).sum())(x, weights).sum().backward()
    assert weights.grad.tolist() == [1.0, 1.0]


def test_what_draws_random_numbers_is_not_compiled():
    torch.manual_seed(0)
    g = symgrad.grad(lambda t: F.dropout(t).sum())
    assert len({tuple(g(torch.ones(20)).tolist()) for _ in range(6)}) == 6
    for draw in (lambda: torch.bernoulli(torch.tensor(0.5)), lambda: torch.randint(0, 2, ()), lambda: torch.randn(()) > 0):
        for seed in range(8):  # the first two draws may be the same
            torch.manual_seed(seed)
            g = symgrad.grad(lambda t: t * draw())  # noqa: B023 (it is called within the loop)
            g.cache_clear()
            assert len({g(torch.tensor(1.0)).item() for _ in range(12)}) == 2
    assert len(set(symgrad.vmap(lambda t: t + torch.rand(()))(torch.zeros(5)).tolist())) == 5


def by_no_grad(x):
    with torch.no_grad():
        y = x * 2
        y.add_(1)
        y[0].mul_(3)
    return y


def by_set_grad_enabled(x):
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(True)
    return y


def by_detach_(x):
    y = x * 1
    y.detach_()
    return y


@pytest.mark.parametrize(
    "constant",
    [
        Tensor.detach,
        lambda x: x.data,
        lambda x: x[:2].detach().sum(),
        lambda x: torch.ones(()) * x[0].item() * x.tolist()[1],
        by_no_grad,
        by_set_grad_enabled,
        by_detach_,
        torch.no_grad()(lambda x: x.sin()),
        torch.no_grad()(lambda x: np.sin(x)),
        torch.no_grad()(lambda x: x[1:].sum()),
        torch.no_grad()(lambda x: symgrad.grad(lambda t: (t**2).sum())(x)),
        torch.inference_mode()(lambda x: x.exp()),
    ],
)
def test_what_is_detached_is_a_constant_to_derivatives(constant):
    """As it is to ``torch.func.grad``; ``enable_grad`` within makes none."""
    x = torch.tensor([1.0, 2.0, 3.0])
    expected = constant(x.clone()).expand(3)
    for derive in (symgrad.grad, symgrad.jacfwd):
        g = derive(lambda x: (constant(x) * x).sum())
        for _ in range(3):
            assert torch.allclose(g(x), expected)
    assert torch.allclose(symgrad.grad(torch.no_grad()(torch.enable_grad()(lambda x: (x * x).sum())))(x), 2 * x)


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.detach().mul_(2),
        lambda y: y.detach()[0].mul_(2),
        lambda y: y.data.mul_(2),
        torch.no_grad()(lambda y: y.mul_(2)),
        torch.no_grad()(lambda y: y[0].mul_(2)),
    ],
)
def test_writes_past_a_derivative_are_refused(write):
    def fun(x):
        y = x * 1
        write(y)
        return (y * x).sum()

    with pytest.raises(NotDifferentiable, match=r"a write through detach\(\), \.data or under no_grad\(\)"):
        symgrad.grad(fun)(torch.ones(2))


def test_func():
    """What torch itself warns about, or NumPy where torch does not; the rest is in the cells."""
    x = torch.tensor([1.0, 2.0])
    out, push = torch.func.linearize(lambda x: x**2, x)
    assert torch.equal(out, x**2)
    assert torch.equal(push(x), 2 * x * x)
    out, slope = torch.func.jvp(lambda x, y: x * y, (x, x), (x, x))
    assert torch.equal(out, x * x)
    assert torch.equal(slope, 2 * x * x)
    assert torch.equal(torch.func.jacfwd(lambda x: x**2)(x), torch.diag(2 * x))
    assert torch.equal(torch.func.hessian(lambda x: (x**3).sum())(x), torch.diag(6 * x))
    ((xx, xy), (yx, yy)) = torch.func.hessian(lambda x, y: (x * y * y).sum(), argnums=(0, 1))(x, x)
    assert not xx.any()
    assert torch.equal(xy, torch.diag(2 * x))
    assert torch.equal(yx, xy)
    assert torch.equal(yy, xy)
    with np.errstate(all="ignore"):
        steep = torch.func.grad(lambda x: torch.where(x > 1, (x - 1).sqrt(), 0.0).sum())(x)
    assert steep.isnan().tolist() == [True, False]  # as backward() has it
    with pytest.raises(NotImplementedError, match="draw the numbers outside"):
        torch.vmap(torch.sin, randomness="same")(x)


def test_func_of_labels_and_places():
    """Integers that are arguments, as they are read anew at each call; places out of range are found at each call, too."""
    x = torch.tensor([[0.5, 1.0, -1.0], [2.0, 0.0, 0.3]])
    labels = torch.tensor([2, 0])
    slope = torch.func.grad(F.cross_entropy)
    for shift in range(4):
        given = (labels + shift) % 3
        leaf = x.clone().requires_grad_()
        F.cross_entropy(leaf, given).backward()
        assert torch.allclose(slope(x, given), leaf.grad)
        picked = torch.func.grad(lambda x, i: x.gather(1, i[:, None]).sum())(x, given)
        assert torch.equal(picked, F.one_hot(given, 3).float())
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
            slope(x, torch.tensor(wrong))
    rows = torch.tensor([[0, 2, 2]])
    for base in (torch.zeros(2, 3), x):
        for fun in (lambda x, b: b.scatter_add(1, rows, x[:1] ** 2), lambda x, b: b.index_add(1, rows[0], x**2)):
            leaf = x.clone().requires_grad_()
            fun(leaf, base).square().sum().backward()
            assert torch.allclose(torch.func.grad(lambda x: fun(x, base).square().sum())(x), leaf.grad)  # noqa: B023
    best = torch.func.grad(lambda x: x[x[1].argmin()].sum() + x[0, x[0].argmax(0)])
    for _ in range(3):
        assert best(x).tolist() == [[0, 1, 0], [1, 1, 1]]
        assert best(-x).tolist() == [[1, 1, 2], [0, 0, 0]]
    found = torch.vmap(torch.func.grad(F.gelu))(x.flatten())
    leaf = x.flatten().requires_grad_()
    F.gelu(leaf).sum().backward()
    assert torch.allclose(found, leaf.grad)


@pytest.mark.parametrize("p", [1, 2, 3, float("inf"), "fro"])
def test_norms_of_matrices_are_of_their_elements_under_derivatives(p):
    x = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
    slope, value = torch.func.grad_and_value(lambda x: x.norm(p))(x)
    leaf = x.clone().requires_grad_()
    leaf.norm(p).backward()
    assert torch.allclose(value, x.norm(p))
    assert torch.allclose(slope, leaf.grad)


def test_checkpoints_find_what_is_not_the_same_again():
    x, calls = torch.ones(2, requires_grad=True), []

    def changing(x):
        calls.append(1)
        return x.exp() if len(calls) == 1 else x.exp().exp()

    y = torch.utils.checkpoint.checkpoint(changing, x, use_reentrant=False)
    with pytest.raises(torch.utils.checkpoint.CheckpointError, match="A different number of tensors was saved"):
        y.sum().backward()
    states = []
    for preserve in (True, False):
        torch.manual_seed(0)
        y = torch.utils.checkpoint.checkpoint(lambda x: F.dropout(x) * x, x, use_reentrant=False, preserve_rng_state=preserve)
        y.sum().backward()
        states.append(torch.rand(()).item())
    assert states[0] != states[1]


factor = 1.0


class Fake(torch.autograd.Function):
    """Whose backward is not the derivative of its forward."""

    @staticmethod
    def forward(ctx, x, axis, title):
        ctx.axis, ctx.title, ctx.double = axis, [title], x * 2
        ctx.save_for_backward(x, None)
        count = x.sign()
        ctx.mark_non_differentiable(count)
        return x.round() * factor, count

    @staticmethod
    def backward(ctx, g, unseen):
        x, nothing = ctx.saved_tensors
        if nothing is not None or ctx.title != ["t"] or ctx.needs_input_grad != (True, False, False):
            return None  # too few
        return g * x * 10 * factor + (ctx.double - 2 * x).sum(ctx.axis) + unseen, None, None


def test_functions_keep_their_backward_under_derivatives():
    global factor
    x = torch.tensor([1.0, 2.0, 3.0])

    def fun(x):
        y, count = Fake.apply(x, 0, "t")
        return (y * count).sum()

    g, both = symgrad.grad(fun), symgrad.value_and_grad(fun)
    for factor in (1.0, 2.0, 3.0, 4.0):
        assert torch.equal(g(x), 10 * factor * x)
        assert torch.equal(both(x)[1], 10 * factor * x)
    factor = 1.0
    assert both(x)[0].item() == 6.0
    assert g.cache_info().hits == 2
    assert torch.equal(symgrad.jacrev(g)(x), 10 * torch.eye(3))
    assert torch.equal(symgrad.vmap(g)(torch.ones(2, 3)), torch.full((2, 3), 10.0))
    assert torch.equal(torch.no_grad()(symgrad.grad(lambda x: (torch.no_grad()(Fake.apply)(x, 0, "t")[0] * x).sum()))(x), x)
    with pytest.raises(NotDifferentiable, match="Fake has a reverse rule only"):
        symgrad.jacfwd(fun)(x)


def test_functions_that_are_once_differentiable_are_so_under_derivatives():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    x = torch.tensor([1.0, 3.0])
    slope = symgrad.grad(lambda x: Square.apply(x).sum())
    for _ in range(3):
        assert slope(x).tolist() == [2.0, 6.0]
    for derive, error in ((symgrad.jacrev, RuntimeError), (symgrad.jacfwd, NotDifferentiable)):
        with pytest.raises(error, match=r"differentiate twice|has a reverse rule only"):
            derive(slope)(x)


def test_functions_that_write_to_arguments_are_refused_under_derivatives():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

    with pytest.raises(NotDifferentiable, match="Twice writes to its arguments"):
        symgrad.grad(lambda x: Twice.apply(x * 1).sum())(torch.ones(2))


def test_a_dtype_keeps_all_digits():
    for data in (0.1, [0.1, 1 / 3], np.float64(0.1), np.array([0.1])):
        np.testing.assert_array_equal(torch.tensor(data, dtype=torch.float64).numpy(), np.array(data))
    assert torch.tensor(0.1 + 0.2j, dtype=torch.complex128).item() == 0.1 + 0.2j
    assert torch.tensor(2**53 + 1).item() == 2**53 + 1


def test_numbers_of_tensors_are_no_python_numbers():
    """The value of a 0-d tensor may be an np.float64, which is a float to Python."""
    x, z = torch.tensor(0.5, dtype=torch.float64), torch.tensor(1 + 1j, dtype=torch.complex128)
    assert ((x * x) * 1j).dtype == ((z * z) * (1.0 - 0.071j)).dtype == torch.complex128
    assert (z * z * (1.0 - 0.071j)).item() == 2j * (1.0 - 0.071j)
    for number in (np.float64(0.1), np.float32(0.1), 0.1):  # and NumPy's numbers are Python's
        assert (torch.tensor(1.0) * number).dtype == (number + torch.tensor([1.0])).dtype == torch.float32
        assert (torch.tensor(1) * number).dtype == torch.float32
        assert (x * x * number).dtype == torch.float64


@pytest.mark.parametrize(
    ("old", "new"), [({"size_average": False}, "sum"), ({"reduce": False}, "none"), ({"reduce": True}, "mean")]
)
def test_the_old_names_of_reductions(old, new):
    x, y = torch.tensor([0.5, 0.2]), torch.tensor([1.0, 0.0])
    for loss in (F.mse_loss, F.binary_cross_entropy, F.soft_margin_loss, F.kl_div):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "reduction: 'mean' divides")
            with pytest.warns(UserWarning, match=f"please use reduction='{new}' instead"):
                found = loss(x, y, **old)
            assert torch.equal(found, loss(x, y, reduction=new))
    with pytest.raises(ValueError, match="average is not a valid value for reduction"):
        F.kl_div(x, y, reduction="average")


def test_places_of_small_integers_do_not_overflow():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 3, 13, 13)))
    target = torch.arange(13 * 13).reshape(1, 13, 13) % 3
    assert torch.equal(F.nll_loss(x, target), F.nll_loss(x, target.to(torch.uint8)))


# -- after torch's own tests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [lambda y: y.mul_(5), lambda y: y[0].mul_(5), lambda y: y.unsqueeze_(0)])
def test_retain_grad_is_of_what_a_tensor_is_now(write):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    write(y)
    (y * 3).sum().backward()
    assert y.retains_grad
    assert y.grad.tolist() == torch.full_like(y, 3.0).tolist()


def test_retain_grad_of_a_view_whose_base_is_written_to():
    y = torch.ones(2, requires_grad=True) * 2
    view = y[:1]
    view.retain_grad()
    y.mul_(5)
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3.0]


def test_bytes_are_a_mask():
    x, mask = torch.arange(3.0), torch.tensor([1, 0, 1], dtype=torch.uint8)
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert x[mask].tolist() == x[..., mask].tolist() == [0.0, 2.0]


def test_windows_are_views():
    x = torch.arange(4.0, dtype=torch.double).requires_grad_()
    y = x * 1
    windows = y.unfold(0, 2, 2)
    assert windows._base is y
    windows.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0] * 4
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        y.unfold(0, 2, 1).mul_(3)


def complains(message, kind=RuntimeError):
    return pytest.raises(kind, match=message)


def test_errors_in_torchs_words():
    x = torch.ones(2, requires_grad=True)
    y, square = x * 2, torch.ones(2, 2)
    with complains("allow_unused to be True or not passed", ValueError):
        torch.autograd.grad(y.sum(), x, allow_unused=False, materialize_grads=True)
    with complains(r"Mismatch in dtype: grad_output\[0\] has a dtype of torch.complex64"):
        torch.autograd.grad(y, x, torch.ones(2, dtype=torch.complex64))
    with complains(r"The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        torch.ones(2) > torch.ones(3)  # noqa: B015 (it is called for its error)
    with complains(r"the number of sizes provided \(1\) must be greater or equal to the number of dimensions"):
        square.expand(2)
    with complains("fewer operands were provided"):
        torch.einsum("i,i", x)
    with complains("subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3"):
        torch.einsum("ij,jk", torch.ones(2, 3), square)
    with complains("output subscript j does not appear"):
        torch.einsum("i->j", x)
    for derivative in (torch.autograd.functional.jacobian, torch.autograd.functional.hessian):
        with complains("are not supported together"):
            derivative(lambda x: x.sum(), x, strict=True, vectorize=True)


NAN, INF = math.nan, math.inf
AT_CORNERS = [  # as torch has it: a function, where, its values, their slopes
    (torch.abs, [NAN, -2, 0, INF], [NAN, 2, 0, INF], [0, -1, 0, 1]),
    (torch.sign, [NAN, -2, 0, INF], [0, -1, 0, 1], [0, 0, 0, 0]),
    (torch.sgn, [NAN, -2, 0, INF], [0, -1, 0, 1], [0, 0, 0, 0]),
    (torch.relu, [NAN, -2, 0, INF], [NAN, 0, 0, INF], [1, 0, 0, 1]),
    (F.elu, [NAN, -INF, 2], [NAN, -1, 2], [1, 0, 1]),
    (F.celu, [NAN, -INF, 2], [NAN, -1, 2], [1, 0, 1]),
    (lambda x: F.l1_loss(x, torch.tensor([1.0, 2.0]).double(), reduction="none"), [NAN, 1], [NAN, 1], [0, -1]),
    (lambda x: F.huber_loss(x, torch.tensor([1.0, 2.0]).double(), reduction="none"), [NAN, 0], [NAN, 1.5], [NAN, -1]),
    (lambda x: x.clamp(1, -1), [-2, -1, 0, 1], [-1, -1, -1, -1], [0, 0, 0, 0]),
    (lambda x: torch.where(x.isnan(), 0.0, x.abs()), [NAN, -3], [0, 3], [0, -1]),
    (torch.max, [1, NAN, 3, NAN], NAN, [0, 0.5, 0, 0.5]),
    (torch.min, [1, NAN, 3, 1], NAN, [0, 1, 0, 0]),
    (torch.median, [1, NAN, 3, NAN], NAN, [0, 0.5, 0, 0.5]),
    (torch.nanmedian, [1, NAN, 2, 1, 2], 1, [0.5, 0, 0, 0.5, 0]),
    (lambda x: x.cummax(0).values, [1, NAN, 3, NAN, 0], [1, NAN, NAN, NAN, NAN], [1, 2, 0, 2, 0]),
    (lambda x: x.cummin(0).values, [1, 0, NAN, 0], [1, 0, NAN, NAN], [1, 1, 2, 0]),
]


@pytest.mark.parametrize(("fun", "x", "values", "slopes"), AT_CORNERS)
def test_corners(fun, x, values, slopes):
    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = fun(x)
    np.testing.assert_array_equal(y.detach().numpy(), values)
    y.backward(torch.ones_like(y))
    np.testing.assert_array_equal(x.grad.numpy(), slopes)


LABELS, OTHERS = torch.tensor([0, 2, 1, 0]), torch.tensor([1.0, -1.0, 0.0, 0.0]).double()
AT_KINKS = [  # as torch has it: a function, where, its slopes
    (torch.relu, [-1, 0, 2], [0, 0, 1]),
    (F.relu6, [-1, 0, 6, 7], [0, 0, 0, 0]),
    (F.hardtanh, [-1, 0, 1], [0, 1, 0]),
    (F.hardsigmoid, [-3, 0, 3], [0, 1 / 6, 0]),
    (F.hardswish, [-3, 0, 3], [0, 0.5, 1]),
    (lambda x: F.elu(x, 0.5), [0, 1], [0.5, 1]),
    (F.selu, [0, 1], [1.6732632423543772 * 1.0507009873554805, 1.0507009873554805]),
    (lambda x: F.celu(x, 2.0), [0, 1], [1, 1]),
    (lambda x: torch.fmax(x, OTHERS), [1, -2, 0, NAN], [0.5, 0, 0.5, 0]),
    (lambda x: torch.fmin(OTHERS, x), [1, -2, 0, NAN], [0.5, 1, 0.5, 0]),
    (lambda x: x.clamp(0, 1), [-1, 0, 0.5, 1, 2], [0, 0, 1, 0, 0]),
    (lambda x: x.clamp_min(1), [0, 1, 2], [0, 0, 1]),
    (lambda x: x.clip(max=1), [0, 1, 2], [1, 0, 0]),
    (lambda x: x.clamp(1, -1), [-2, -1, 0, 1, 3], [0, 0, 0, 0, 0]),
    (lambda x: x.clamp(OTHERS[2], OTHERS[0]), [-1, 0, 0.5, 1, 2], [0, 0.5, 1, 0.5, 0]),
    (lambda x: torch.tensor([0.0, 1, 2, 3]).double().clamp(x, torch.tensor(2.0).double()), [1, 1, 2, 0], [1, 0.5, 0, 0]),
    (lambda x: torch.tensor([0.0, 1, 2, 3]).double().clamp(max=x), [1, 1, 1, 1], [0, 0.5, 1, 1]),
    (lambda x: F.margin_ranking_loss(x, 0 * x, 0 * x + 1, margin=1.0, reduction="sum"), [0, 1, 2], [-1, 0, 0]),
    (lambda x: F.hinge_embedding_loss(x, 0 * x - 1, margin=1.0, reduction="sum"), [0, 1, 2], [-1, 0, 0]),
    (lambda x: torch.xlogy(x, torch.tensor([0.0, 1.0, math.e], dtype=torch.float64)), [0, 0, 0], [0, 0, 1]),
    (torch.median, [1, 2, 2, 3, 2], [0, 1 / 3, 1 / 3, 0, 1 / 3]),
    (torch.nanmedian, [1, NAN, 2, 1, 2], [0.5, 0, 0, 0.5, 0]),
    (lambda x: F.embedding(LABELS, x.reshape(3, 1), padding_idx=2), [5, 6, 7], [2, 1, 0]),
    (lambda x: F.embedding(LABELS, x.reshape(3, 1), scale_grad_by_freq=True), [5, 6, 7], [1, 1, 1]),
    (lambda x: F.binary_cross_entropy(x, torch.tensor([0.0, 1.0, 1.0]).double(), reduction="sum"), [0, 1, 0.5], [0, 0, -2]),
    (lambda x: F.gaussian_nll_loss(OTHERS[:2], OTHERS[2:], x, eps=0.5, reduction="sum"), [0.25, 1], [-1, 0]),
    (torch.sigmoid, [-1e4, 0, 1e4], [0, 0.25, 0]),
    (F.silu, [-1e4, 0, 1e4], [0, 0.5, 1]),
    (lambda x: F.multi_margin_loss(x, LABELS[:1]), [1, 0, 0.5], [-1 / 3, 0, 1 / 3]),
    (lambda x: torch.dist(x, torch.tensor([1.0, 2.0]).double()), [1, 2], [0, 0]),
    (lambda x: x.norm(0.5), [0, 1, 4], [0, 3, 1.5]),
    (lambda x: x.reshape(2, 2).norm(-1, (0, 1), keepdim=True), [0, 1, 2, 4], [0, 0, 0, 0]),
    (lambda x: x.max(0).values * x.max(0).indices.dtype.itemsize, [1, 3, 2], [0, 8, 0]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("fun", "x", "slopes"), AT_KINKS)
def test_kinks_are_torchs_under_derivatives_too(fun, x, slopes):
    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = fun(x)
    y.backward(torch.ones_like(y))
    np.testing.assert_allclose(x.grad, slopes, rtol=1e-12)
    x, total, along = x.detach(), lambda x: fun(x).sum(), np.arange(1.0, len(slopes) + 1)
    for _ in range(3):
        slope, value = torch.func.grad_and_value(total)(x)
        np.testing.assert_allclose(slope, slopes, rtol=1e-12)
        np.testing.assert_allclose(value, y.detach().sum())
        np.testing.assert_allclose(torch.func.jvp(total, (x,), (torch.tensor(along),))[1], along @ slopes)
        np.testing.assert_allclose(torch.vmap(torch.func.grad(total))(torch.stack([x, x])), [slopes, slopes], rtol=1e-12)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, y: (x * 1).copy_(y),
        lambda x, y: (x * 1).fill_(y[0, 0]) + x,
        lambda x, y: torch.diagflat(x) @ torch.diagflat(y),
        lambda x, y: x.diag_embed() @ y.T,
        lambda x, y: F.conv_transpose1d(x[None], torch.ones(2, 2, 2).double() * y[0, 0]),
        lambda x, y: torch.quantile(x * y, 0.3, dim=1),
        lambda x, y: torch.quantile(x + y, torch.tensor([0.2, 0.8]).double()),
        lambda x, y: torch.nanquantile(x * y, 0.7),
        lambda x, y: torch.matrix_exp(x @ y.T * 3),
    ],
)
def test_functions_that_make_arrays_of_traced_values(fun):
    def total(x, y):
        out = fun(x, y)
        return (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum()

    for seed in (0, 0, 1, 2):
        rng = np.random.default_rng(seed)
        x, y = (torch.tensor(rng.normal(size=(2, 3)), requires_grad=True) for _ in range(2))
        expected = torch.autograd.grad(total(x, y), (x, y), materialize_grads=True)
        for found, slope in zip(torch.func.grad(total, (0, 1))(x.detach(), y.detach()), expected, strict=True):
            np.testing.assert_allclose(found, slope, rtol=1e-9, atol=1e-12)


def filled(x):
    """Rows of a new tensor, an element, what a mask selects."""
    y = torch.zeros(3, 3, dtype=torch.float64)
    y[0] = x
    y[1, 2] = x[0] * x[1]
    y[y > 1] = x[2]
    return y.T @ x


def written_through_views(x):
    y = torch.full((2, 3), 0.5, dtype=torch.float64)
    row, column = y[1], y.t()[0]
    row.copy_(x)
    column.mul_(x[:2])
    return y


def added_up(x):
    total = torch.zeros((), dtype=torch.float64)
    for v in x:
        total += v * v
    return total


def on_diagonals(x):
    y = torch.zeros(2, 3, 3, dtype=torch.float64)
    y.diagonal(0, 1, 2).copy_(x)
    y[0].diagonal(1).add_(x[:2] * 2)
    return y @ y[1]


def scattered(x):
    y = torch.ones(4, dtype=torch.float64).index_add_(0, torch.tensor([0, 0, 2]), x)
    return y.scatter_(0, torch.tensor([1, 3]), x[:2]).cumsum(0)


def of_what_is_read_here(x):
    return x * torch.tensor(ARRAY) * torch.tensor([x[0].item(), SCALES[0], 1.0]) + torch.full((3,), SCALES[1]) * x**2


def partly_constant(x):
    """Writes under ``no_grad`` to what depends on nothing, and to a constant."""
    m, k = torch.ones(3, dtype=torch.float64), torch.tensor(x)
    with torch.no_grad():
        m[0] = x[1]
        m.add_(x)
    m[1] = x[2] * 2
    return m * x * k


ARRAY, SCALES = np.array([1.0, 2.0, 3.0]), [4.0, 5.0]


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(
    "fun", [filled, written_through_views, added_up, on_diagonals, scattered, of_what_is_read_here, partly_constant]
)
def test_new_tensors_take_what_is_traced(fun, monkeypatch):
    total = lambda x: fun(x).pow(2).sum()
    for number, point in enumerate(([0.5, 1.5, -0.7], [0.5, 1.5, -0.7], [2.0, -0.5, 1.25], [0.5, 1.5, -0.7])):
        if number == 3:
            monkeypatch.setattr(sys.modules[__name__], "ARRAY", ARRAY * 2)
            monkeypatch.setattr(sys.modules[__name__], "SCALES", [7.0, 5.0])
        x = torch.tensor(point, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(total(x), x)
        x = x.detach()
        np.testing.assert_allclose(torch.func.grad(total)(x), slope, rtol=1e-12)
        np.testing.assert_allclose(torch.vmap(torch.func.grad(total))(torch.stack([x, x])), [slope, slope], rtol=1e-12)


def test_products_with_jacobians_within_derivatives():
    k, x = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, -2.0, 0.5])
    for fun, slope in (
        (lambda x: torch.func.jvp(lambda y: y**2 * x, (k,), (x,))[1].sum(), 4 * k * x),
        (lambda x: torch.func.jvp(lambda y: (y * x, y), (x,), (k,), has_aux=True)[1].sum(), k),
        (lambda x: torch.func.vjp(lambda y: y**2 * x, k)[1](x)[0].sum(), 4 * k * x),
        (lambda x: torch.func.vjp(lambda y: (y**3, x * 2), x, has_aux=True)[1](k)[0].sum(), 6 * k * x),
    ):
        for _ in range(3):
            np.testing.assert_allclose(torch.func.grad(fun)(x), slope, rtol=1e-6)


def test_running_statistics_are_constants_under_derivatives():
    def fun(x):
        mean, var = torch.zeros(2), torch.ones(2)
        return F.batch_norm(x, mean, var, training=True).pow(3).sum() + mean.sum() + var.sum()

    x = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 4.5]], requires_grad=True)
    (slope,) = torch.autograd.grad(fun(x), x)
    np.testing.assert_allclose(torch.func.grad(fun)(x.detach()), slope, rtol=1e-4, atol=1e-5)


def test_what_a_gradient_flows_to_is_not_written_to_under_no_grad():
    def fun(x):
        y = torch.zeros(3)
        y[0] = x[1]
        with torch.no_grad():
            y[1] = x[0]
        return y.sum()

    with pytest.raises(NotDifferentiable, match="a write through"):
        torch.func.grad(fun)(torch.ones(3))


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, INF])
@pytest.mark.parametrize(("rows", "more"), [((3,), (5,)), ((2, 1, 3), (3, 4)), ((0,), (2,)), ((27,), (2,))])
def test_distances(p, rows, more):
    rng = np.random.default_rng(0)
    a, b = (torch.tensor(rng.normal(size=(*shape, 4)), requires_grad=True) for shape in (rows, more))
    expected = torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, -1)
    weights = torch.tensor(rng.normal(size=expected.shape))
    found = torch.cdist(a, b, p)
    np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-12)
    slopes = torch.autograd.grad((found * weights).sum(), (a, b))
    if p == 0:
        assert not any(slope.any() for slope in slopes)
    else:
        for slope, known in zip(slopes, torch.autograd.grad((expected * weights).sum(), (a, b)), strict=True):
            np.testing.assert_allclose(slope, known, rtol=1e-9, atol=1e-12)
    if len(rows) == 1:
        pairs = np.triu_indices(*rows, 1)
        np.testing.assert_allclose(F.pdist(a, p).detach(), torch.cdist(a, a, p).detach().numpy()[pairs], rtol=1e-6)


def test_distances_of_equal_rows():
    x = torch.ones(30, 2, requires_grad=True)
    for distance in (torch.cdist(x, x), torch.cdist(x[:2], x[:2]), torch.pdist(x)):
        assert not torch.autograd.grad(distance.sum(), x)[0].any()


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((3,), (5, 4)), {}, "at least 2D tensors, X1 got: 1D"),
        (((3, 3), (5, 4)), {}, "same number of columns. X1: 3 X2: 4"),
        (((3, 4), (5, 4)), {"p": -1}, "non-negative p"),
        (((3, 4), (5, 4)), {"compute_mode": "x"}, "x is not a valid value for compute_mode"),
    ],
)
def test_distances_that_are_none(shapes, options, message):
    with pytest.raises((RuntimeError, ValueError), match=message):
        torch.cdist(*map(torch.ones, shapes), **options)
    with pytest.raises(RuntimeError, match="got: 1D"):
        F.pdist(torch.ones(3))
    with pytest.raises(RuntimeError, match="X1 got: Long"):
        torch.cdist(torch.ones(2, 2, dtype=torch.int64), torch.ones(2, 2))


def test_large_cotangents_leave_the_matrix_exponential_its_digits():
    x = torch.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=torch.float64, requires_grad=True)
    slopes = []
    for scale in (1.0, 2.0**300):
        (g,) = torch.autograd.grad(torch.linalg.matrix_exp(x).sum() * scale, x, create_graph=True)
        (second,) = torch.autograd.grad((g / scale).pow(2).sum(), x)
        slopes.append((g.detach().numpy() / scale, second.numpy()))
    np.testing.assert_allclose(slopes[0][0], slopes[1][0], rtol=1e-12)
    np.testing.assert_allclose(slopes[0][1], slopes[1][1], rtol=1e-12)


def test_as_strided_scatter_passes_by_what_was_there():
    x, v = torch.arange(4.0).requires_grad_(), torch.ones(2, requires_grad=True)
    torch.as_strided_scatter(x, v, (2,), (2,), 1).pow(2).sum().backward()  # torch's gradient of x is that of the places written
    assert x.grad.tolist() == [0, 0, 4, 0]
    assert v.grad.tolist() == [2, 2]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_has_first_and_second_derivatives(mode, padding):
    torch.manual_seed(1)
    image = torch.rand(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    grid = torch.empty(1, 3, 2, 2, dtype=torch.float64).uniform_(-2, 2).requires_grad_()
    fun = lambda image, grid: F.grid_sample(image, grid, mode, padding, False)
    assert torch.autograd.gradcheck(fun, (image, grid))
    assert torch.autograd.gradgradcheck(fun, (image, grid))
    for traced, known in zip(
        torch.func.grad(lambda *args: fun(*args).pow(2).sum(), (0, 1))(image.detach(), grid.detach()),
        torch.autograd.grad(fun(image, grid).pow(2).sum(), (image, grid)),
        strict=True,
    ):
        close(arrays([traced]), arrays([known]), 1e-11, "gradient")


def test_ctc_loss_sums_over_all_alignments():
    torch.manual_seed(2)
    x = torch.randn(4, 1, 3, dtype=torch.float64).log_softmax(2)
    ways = [
        way for way in np.ndindex(3, 3, 3, 3) if [k for i, k in enumerate(way) if k and (not i or way[i - 1] != k)] == [1, 2]
    ]
    total = sum(math.exp(sum(x[t, 0, k].item() for t, k in enumerate(way))) for way in ways)
    found = F.ctc_loss(x, torch.tensor([[1, 2]]), [4], [2], reduction="sum").item()
    assert math.isclose(found, -math.log(total), rel_tol=1e-12)


def test_rows_count_alike_in_bags():
    weight = torch.ones(5, 1, requires_grad=True)
    F.embedding_bag(torch.tensor([[0, 0, 1, 3, 1, 4]]), weight, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert weight.grad.flatten().tolist() == [1, 1, 0, 1, 1]


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_istft_inverts_stft(normalized, onesided):
    torch.manual_seed(0)
    x, window = torch.rand(2, 30, dtype=torch.float64), torch.hamming_window(8, dtype=torch.float64)
    options = {"window": window, "normalized": normalized, "onesided": onesided}
    frame = torch.fft.fft(x[0, 10:20] * F.pad(window, (1, 1)), norm="ortho" if normalized else None)
    for center, place in ((False, 2), (True, 3)):
        y = torch.stft(x, 10, 5, 8, center=center, return_complex=True, **options)
        close(arrays([y[0, :, place]]), arrays([frame[: y.shape[1]]]), 1e-12, "frame")
    close(arrays([torch.istft(y, 10, 5, 8, **options)]), arrays([x]), 1e-12, "signal")


@pytest.mark.parametrize("fun", [np.linalg.cholesky, lambda a: np.linalg.eigh(a)[0]])
def test_triangles_of_results_have_second_derivatives(fun):
    a = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda a: fun((a + a.T) * 1), (a,))


STRAIGHT = [
    F.relu, F.relu6, F.leaky_relu, F.hardtanh, F.hardsigmoid, F.softshrink, F.hardshrink, lambda x: F.threshold(x, 0.0, 1.0),
    abs,
]  # fmt: skip


@pytest.mark.parametrize("fun", STRAIGHT)
def test_slopes_of_straight_pieces_have_the_derivative_zero(fun):
    x = torch.tensor([0.7, -0.2, -2.0], requires_grad=True)
    (g,) = torch.autograd.grad(fun(x).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad((g * g).sum(), x, create_graph=True)
    assert gg.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("fun", "option"),
    [(F.elu, "alpha"), (F.celu, "alpha"), (F.leaky_relu, "negative_slope"), (F.softplus, "beta"), (F.hardshrink, "lambd")],
)
def test_options_are_numbers(fun, option):
    x = torch.tensor([0.7, -0.2], requires_grad=True)
    assert fun(x, **{option: torch.tensor(0.5)}).tolist() == fun(x, **{option: 0.5}).tolist()
    for wrong in (x.sum(), torch.ones(2)):
        with pytest.raises((TypeError, RuntimeError), match=r"must be Number, not Tensor|ambiguous"):
            fun(x, **{option: wrong})


def test_assigned_values_may_have_more_dimensions_of_size_1():
    mask = torch.tensor([[True, False], [True, True]])
    for value in (torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True), np.array([[[1.0, 2.0, 3.0]]])):
        x = torch.zeros(2, 2)
        x[mask] = value
        assert x.tolist() == [[1, 0], [2, 3]]


def test_what_index_tensors_pick_lies_in_order():
    x, i = torch.arange(24.0).reshape(2, 3, 4), torch.tensor([0, 2])
    assert x[:, i].stride() == (8, 4, 1)
    assert x[..., i].stride() == (6, 2, 1)
    assert x[:, i, i].as_strided((4,), (1,)).tolist() == [0, 10, 12, 22]
