"""What an operation has read or given may be written to before the backward pass: the gradient is the right one, or refused.

Never is it another number. Each operation runs once as it is, then anew for each of its arguments and results, which is
written to.
"""

import functools
import itertools

import numpy as np
import pytest
from ops_samples import DIFFERENTIABLE, cases

import symgrad.eager as torch
import symgrad.eager.nn.functional as F

X = np.array([[0.3, -0.7, 1.4], [0.9, 0.2, -1.1]])
V = np.array([0.4, 1.3, -0.6])
SQUARE = np.array([[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 1.1]])
CHANCES = np.array([[0.3, 0.6, 0.2], [0.8, 0.1, 0.7]])
IMAGE = np.arange(16.0).reshape(1, 1, 4, 4) % 7
ROW, COLUMN = np.array([1, 0]), np.array([0, 2])
TABLE = np.array([[2, 0, 1], [1, 1, 0]])
MASK = X > 0
LOSSES = ("none", "mean", "sum")

OPERATIONS = {
    "x[i]": (lambda x, i: x[i], X, ROW),
    "x[:, i]": (lambda x, i: x[:, i], X, COLUMN),
    "x[i, j]": (lambda x, i, j: x[i, j], X, ROW, COLUMN),
    "x[0, i]": (lambda x, i: x[0, i], X, COLUMN),
    "x[mask]": (lambda x, mask: x[mask], X, MASK),
    "vector[i]": (lambda x, i: x[i], V, COLUMN),
    "gather": (lambda x, i: x.gather(1, i), X, TABLE),
    "gather of a vector": (lambda x, i: x.gather(0, i), V, COLUMN),
    "take": (torch.take, X, COLUMN),
    "take_along_dim": (lambda x, i: torch.take_along_dim(x, i, 1), X, TABLE),
    "index_select": (lambda x, i: x.index_select(1, i), X, COLUMN),
    "masked_select": (torch.masked_select, X, MASK),
    "index_put": (lambda x, i, v: x.index_put((i,), v), X, ROW, X),
    "index_put, accumulate": (lambda x, i, v: x.index_put((i,), v, accumulate=True), X, ROW, X),
    "index_add": (lambda x, i, v: x.index_add(1, i, v), X, COLUMN, X[:, :2]),
    "index_copy": (lambda x, i, v: x.index_copy(1, i, v), X, COLUMN, X[:, :2]),
    "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), X, COLUMN),
    "scatter": (lambda x, i, v: x.scatter(1, i, v), X, TABLE[:, :2], X[:, :2]),
    "scatter of a vector": (lambda x, i, v: x.scatter(0, i, v), V, COLUMN, V[:2]),
    "scatter_add": (lambda x, i, v: x.scatter_add(1, i, v), X, TABLE, X),
    "scatter_reduce": (lambda x, i, v: x.scatter_reduce(1, i, v, "prod"), X, TABLE, X),
    "masked_fill": (lambda x, mask, v: x.masked_fill(mask, v), X, MASK, V[0]),
    "masked_scatter": (lambda x, mask, v: x.masked_scatter(mask, v), X, MASK, X),
    "where": (torch.where, MASK, X, CHANCES),
    "y[i] = v": (lambda x, i, v: written(x, i, v), X, ROW, X),
    "y[mask] = 0": (lambda x, mask: written(x, mask, 0.0), X, MASK),
    "y[:, i] = v": (lambda x, i, v: written(x, (slice(None), i), v), X, COLUMN, X[:, :2]),
    "embedding": (F.embedding, ROW, X),
    "embedding, padded": (lambda i, w: F.embedding(i, w, padding_idx=0), ROW, X),
    "embedding, scaled": (lambda i, w: F.embedding(i, w, scale_grad_by_freq=True), ROW, X),
    "embedding_bag": (lambda i, w: F.embedding_bag(i, w, mode="sum"), ROW[None], X),
    "sort": (lambda x: x.sort(1), X),
    "sort of a vector": (torch.sort, V),
    "topk": (lambda x: x.topk(2), V),
    "kthvalue": (lambda x: x.kthvalue(2, keepdim=True), X),
    "max": (lambda x: x.max(1), X),
    "min of a vector": (lambda x: x.min(0), V),
    "max of a number": (lambda x: x.max(0), V[0]),
    "median": (lambda x: x.median(1), X),
    "mode": (lambda x: x.mode(1), X),
    "cummax": (lambda x: x.cummax(0), V),
    "cummin": (lambda x: x.cummin(1), X),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2, return_indices=True), IMAGE),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True), IMAGE),
    "std_mean": (torch.std_mean, X),
    "var_mean": (torch.var_mean, X),
    "frexp": (torch.frexp, X),
    "slogdet": (torch.linalg.slogdet, SQUARE),
    "qr": (torch.linalg.qr, SQUARE),
    "eigh": (torch.linalg.eigh, SQUARE),
    "eig": (torch.linalg.eig, SQUARE),
    "svd": (torch.linalg.svd, SQUARE),
    "svd, torch's": (torch.svd, SQUARE),
    "lu": (torch.linalg.lu, SQUARE),
    "lu_factor": (torch.linalg.lu_factor, SQUARE),
    "cholesky": (torch.linalg.cholesky, SQUARE),
    "solve": (torch.linalg.solve, SQUARE, V),
    "inv": (torch.linalg.inv, SQUARE),
    "vector @ matrix": (torch.matmul, V, SQUARE),
    "matrix @ vector": (torch.matmul, SQUARE, V),
    "stack @ matrix": (torch.matmul, X[None], SQUARE),
    "vector @ stack": (torch.matmul, V, SQUARE[None]),
    "dot": (torch.dot, V, V),
    "linear of a vector": (F.linear, V, SQUARE, V),
    "linear": (F.linear, X, SQUARE, V),
    "einsum": (lambda a, b: torch.einsum("ij,jk,k->i", a, b, b[0]), X, SQUARE),
    "kron": (torch.kron, X, SQUARE),
    "conv2d": (F.conv2d, IMAGE, SQUARE[None, None]),
    "layer_norm": (lambda x: F.layer_norm(x, (3,)), X),
    "layer_norm, affine": (lambda x, w, b: F.layer_norm(x, (3,), w, b), X, V, V),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), X),
    "batch_norm, kept": (lambda x, mean, var: F.batch_norm(x, mean, var), X, V, V * V),
    "instance_norm": (F.instance_norm, X[None]),
    "group_norm": (lambda x: F.group_norm(x, 3), X),
    "rms_norm": (lambda x: F.rms_norm(x, (3,)), X),
    "softmax": (lambda x: x.softmax(1), X),
    "log_softmax": (lambda x: x.log_softmax(1), X),
    "prelu": (F.prelu, X, V),
    "bilinear": (F.bilinear, X, X, SQUARE[None]),
    "attention": (lambda q, mask: F.scaled_dot_product_attention(q, q, q, mask), X, MASK[:, :2]),
    "nll_loss": (lambda x, y, w: F.nll_loss(x, y, w), X, ROW, V),
    "nll_loss of images": (lambda x, y: F.nll_loss(x, y), IMAGE.reshape(1, 4, 4), TABLE[:1, [0, 1, 2, 0]]),
    "cross_entropy": (F.cross_entropy, X, COLUMN),
    "cross_entropy, weighted": (lambda x, y, w: F.cross_entropy(x, y, w), X, COLUMN, V * V),
    "cross_entropy, smooth": (lambda x, y, w: F.cross_entropy(x, y, w, label_smoothing=0.2), X, COLUMN, V * V),
    "cross_entropy of chances": (lambda x, y, w: F.cross_entropy(x, y, w), X, CHANCES, V * V),
    "multi_margin_loss": (lambda x, y, w: F.multi_margin_loss(x, y, p=2, weight=w), X, COLUMN, V * V),
    "multilabel_margin_loss": (F.multilabel_margin_loss, X, TABLE),
    "ctc_loss": (lambda x, y: F.ctc_loss(x, y, [2], [1]), X[:, None], np.array([[1]])),
    "sum, where": (lambda x, mask: np.sum(x, where=mask), X, MASK),
    "erf of a number": (lambda x: torch.erf(x.mean()), X),
    "erfc of a number": (lambda x: torch.erfc(x[0, 1]), X),
    "gelu of a number": (lambda x: F.gelu(x[0] @ x[1]), X),
    **{f"bce, {kind}": (
        lambda x, y, w, kind=kind: F.binary_cross_entropy(x, y, w, reduction=kind),
        CHANCES, CHANCES.T.reshape(2, 3), X * X) for kind in LOSSES},
    **{f"bce of logits, {kind}": (
        lambda x, y, w, p, kind=kind: F.binary_cross_entropy_with_logits(x, y, w, reduction=kind, pos_weight=p),
        X, CHANCES, X * X, V * V) for kind in LOSSES},
    **{fun.__name__: (fun, X, CHANCES) for fun in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.kl_div)},
    **{name: (getattr(F, name), X) for name in (
        "relu leaky_relu elu selu celu silu gelu mish softplus softsign hardtanh relu6 hardsigmoid hardswish softshrink "
        "hardshrink logsigmoid tanhshrink").split()},
    **{name: (getattr(torch, name), CHANCES) for name in (
        "sin cos tan asin acos atan sinh cosh tanh asinh atanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal "
        "sigmoid erf erfc lgamma digamma square abs neg sinc logit prod").split()},
    **{name: (getattr(torch, name), CHANCES, X * X) for name in (
        "add sub mul div pow atan2 maximum minimum fmax hypot xlogy logaddexp remainder fmod copysign").split()},
}  # fmt: skip


def written(x, key, value):
    y = x.clone()
    y[key] = value
    return y


# -- one run, with or without a write ------------------------------------------------------------------------------


def parts(tree):
    """The tensors in what an operation returns."""
    return [x for part in tree for x in parts(part)] if isinstance(tree, (tuple, list)) else [tree]


def write(x):
    if x.dtype == torch.bool:
        x.logical_not_()
    elif x.dtype.is_floating_point or x.dtype.is_complex:
        x.mul_(3)
    else:
        x.zero_()


def total(outs, scaled=None):
    """A number that hangs on all results; ``scaled``: which of them counts three times, as if it had been multiplied."""
    terms = []
    for k, out in enumerate(outs):
        if out.requires_grad:
            weights = torch.from_numpy(np.cos(1 + k + np.arange(out.numel())).reshape(out.shape))
            real = out.real + 2 * out.imag if out.is_complex() else out
            terms.append((real * weights * (3 if k == scaled else 1)).sum())
    return sum(terms)


def run(fun, arrays, wanting, argument=None, result=None, scaled=None, second=False):
    """Gradients of those arguments that are ``wanting``, after a write to one argument or result.

    ``second``: of the gradients' squares, when the write comes after the first backward pass.
    """
    leaves = [torch.from_numpy(np.array(x)).requires_grad_(i in wanting) for i, x in enumerate(arrays)]
    given = [x.clone() if x.requires_grad else x for x in leaves]
    outs = parts(fun(*given))
    written_to = [given[argument]] if argument is not None else [outs[result]] if result is not None else []
    loss, wanted = total(outs, scaled), [leaves[i] for i in wanting]
    if not second:
        for x in written_to:
            write(x)
        loss = total(outs, scaled)
    found = torch.autograd.grad(loss, wanted, allow_unused=True, create_graph=second)
    if second:
        for x in written_to:
            write(x)
        squares = [(g * g).sum() for g in found if g is not None and g.requires_grad]
        found = torch.autograd.grad(sum(squares), wanted, allow_unused=True) if squares else ()
    return [None if g is None else g.numpy().copy() for g in found], outs, given


def equal(found, expected):
    return len(found) == len(expected) and all(
        x is y is None or (x is not None and y is not None and np.allclose(x, y, 1e-9, 1e-11, equal_nan=True))
        for x, y in zip(found, expected, strict=True)
    )


def differentiable(fun, arrays, place):
    """Whether a gradient flows to the argument at a place: to weights of classes it must not, to running means it does not."""
    try:
        outs = fun(*[torch.from_numpy(np.array(x)).requires_grad_(i == place) for i, x in enumerate(arrays)])
    except RuntimeError:
        return False
    return any(out.requires_grad for out in parts(outs))


def check(fun, arrays):
    """Every write to an argument or a result: the gradient, or the error that says what was written to."""
    floats = [i for i, x in enumerate(arrays) if np.asarray(x).dtype.kind == "f" and differentiable(fun, arrays, i)]
    for wanting in [floats] * bool(floats) + [[i] for i in floats if len(floats) > 1]:
        here = functools.partial(run, fun, arrays, wanting)
        expected, outs, given = here()
        aliased = any(out is x or out._is_view() for out, x in itertools.product(outs, given))
        for out, x in itertools.product(outs, given):  # what is no view has memory of its own
            assert aliased or not np.shares_memory(out.detach().numpy(), x.detach().numpy())
        try:
            twice = here(second=True)[0]
        except RuntimeError:  # that of ctc_loss cannot be differentiated
            twice = None
        for i in range(0 if aliased else len(given)):
            refused_or(expected, here, argument=i)
            if twice is not None:
                refused_or(twice, here, argument=i, second=True)
        for k, out in enumerate(outs):
            if out is not given[0] and out.detach().numpy().flags.writeable:
                refused_or(here(scaled=k)[0], here, result=k)


def refused_or(expected, run, **where):
    try:
        found = run(**where)[0]
    except RuntimeError:
        return
    assert equal(found, expected), where


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATIONS)
def test_writes_before_backward(name):
    fun, *arrays = OPERATIONS[name]
    check(fun, arrays)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_writes_before_backward_of_numpys_functions(op):
    for case in cases(op)[:3]:
        if all(np.asarray(x).dtype.kind == "f" for x in case.primals):
            check(case, case.primals)


# -- what changes beside ------------------------------------------------------------------------------------------


def test_the_only_place_is_the_tensors_own():
    _, place = torch.tensor(3.0).max(0)
    place.add_(1)
    assert torch.tensor(3.0).max(0).indices.item() == 0


def test_a_hook_stays_with_what_a_view_was():
    x = torch.ones(2, 2, dtype=torch.double, requires_grad=True)
    y = x * 2
    view = y.t()
    view.register_hook(lambda g: g * 10)
    other = view + 1
    view.mul_(3)
    (y.sum() + other.sum()).backward()
    assert x.grad.tolist() == [[26, 26], [26, 26]]


HOOKED = {
    "v.mul_(3)": lambda v: v.mul_(3),
    "v[:1] *= 3": lambda v: v[:1].mul_(3),
    "v[[0]] = 3": lambda v: v.__setitem__([0], 3.0),
    "v.lerp_": lambda v: v.lerp_(torch.full((2,), 3.0).double(), 0.3),
    "v.renorm_": lambda v: v[:, None].renorm_(2, 0, 1.0),
    "v.float_power_": lambda v: v.float_power_(2),
    "v.index_put_": lambda v: v.index_put_((torch.tensor([0]),), torch.ones(1).double(), accumulate=True),
    "np.multiply": lambda v: np.multiply(v, 3, out=v),
    "leaky_relu_": lambda v: F.leaky_relu_(v.neg_()),
    "silu": lambda v: F.silu(v[:1], inplace=True),
    "rrelu": lambda v: F.rrelu(v.neg_(), inplace=True),
}


@pytest.mark.parametrize("name", HOOKED)
@pytest.mark.parametrize("hooked", [lambda v: v.retain_grad(), lambda v: v.register_hook(lambda g: g * 0.5)])
def test_writes_to_a_view_pass_by_the_hooks_that_it_had(name, hooked):
    def squares(x, hooked=lambda v: None):
        y = x * 1
        view = y[1:]
        hooked(view)
        HOOKED[name](view)
        return (y * y).sum()

    x = torch.tensor([0.3, 1.2, 2.0], dtype=torch.double, requires_grad=True)
    expected = torch.autograd.functional.jacobian(squares, x)
    assert torch.autograd.gradcheck(squares, x)
    assert torch.allclose(torch.autograd.grad(squares(x, hooked), x)[0], expected)
    recorded = torch.autograd.grad(squares(x, hooked), x, create_graph=True)[0]
    assert torch.allclose(recorded, expected)
    squares(x, hooked).backward(inputs=[x])
    assert torch.allclose(x.grad, expected)


def test_a_hooked_view_that_is_scaled_by_its_own_sum_twice_differentiated():
    x = torch.tensor([0.3, 1.2, 2.0], dtype=torch.double, requires_grad=True)
    double = x * 2
    y = double * 1
    view = y[::2]
    view.retain_grad()
    view.mul_(view.sum())
    (gradient,) = torch.autograd.grad((double * double).sum() + (y * y).sum(), x, create_graph=True)
    gradient.sum().backward()
    assert np.allclose(gradient.detach().numpy(), [354.208, 19.2, 655.584])
    assert np.allclose(x.grad.numpy(), [865.92, 16.0, 1366.4])


class Scale(torch.autograd.Function):
    """``x.mul_(w)``, as a function of the user's own."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x.clone(), w)
        ctx.mark_dirty(x)
        return x.mul_(w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum_to_size(w.shape)


SCALED = [
    "out = scale(v, w)",
    "scale(v, w); out = y",
    "scale(v, w); out = v[:1]",
    "scale(v[:1], w); out = v",
    "scale(v, w); out = other",
    "scale(v, w); scale(v, w); out = v",
    "scale(v, w); v.mul_(w); out = v",
    "v.mul_(w); scale(v, w); out = v",
    "scale(v, w); y.mul_(w); out = v * other",
]


@pytest.mark.parametrize("code", SCALED)
def test_functions_that_write_to_a_view(code):
    def fun(x, w):
        y = x * 1
        names = {"y": y, "v": y[1:], "other": y[:2], "w": w, "scale": Scale.apply}
        exec(code, names)
        return names["out"].sin()

    x = torch.tensor([0.3, 1.2, 2.0], dtype=torch.double, requires_grad=True)
    w = torch.tensor([1.5], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(fun, (x, w))
    assert torch.autograd.gradgradcheck(lambda x: fun(x, w.detach()), (x,))


def test_functions_that_write_to_a_view_read_another_one():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    view, first = y[1:], y[:1]
    Scale.apply(view, first)
    (view * first).sum().backward()
    assert x.grad.tolist() == [10, 1, 1]


def test_hooks_of_what_a_function_writes_to():
    x, w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([0.5])
    y = x * 1
    view = y[1:]
    view.retain_grad()
    view.register_hook(lambda g: g * 5)
    (Scale.apply(view, w) ** 2).sum().backward()
    assert (x.grad.tolist(), view.grad.tolist()) == ([0, 1, 1.5], [2, 3])
    y = x * 1
    y.retain_grad()
    (Scale.apply(y, w) ** 2).sum().backward()
    assert y.grad.tolist() == [1, 2, 3]


def test_functions_of_several_results_do_not_write_to_views():
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2), None

        @staticmethod
        def backward(ctx, g, _):
            return g * 2

    y = torch.ones(3, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view of another Tensor"):
        Both.apply(y[1:])
    Both.apply(y)[0].sum().backward()


def test_a_function_may_write_to_the_array_of_its_argument():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            np.multiply(x.numpy(), 2, out=x.numpy())
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(3, requires_grad=True)
    y = x * 1
    Twice.apply(y[1:]).sum().backward()
    assert (x.grad.tolist(), y.tolist()) == ([0, 2, 2], [1, 2, 2])


def test_what_a_view_was_retains_its_gradient_until_it_is_looked_at():
    x = torch.ones(3, requires_grad=True)
    for look, expected in ((lambda v: None, [3, 3]), (lambda v: v.grad_fn, [1, 1])):
        y = x * 1
        view = y[1:]
        view.retain_grad()
        total = view.sum()
        view[0] = 5.0
        look(view)
        (3 * total + view.sum() if look(view) else 3 * total).backward()
        assert view.grad.tolist() == expected


@pytest.mark.parametrize("write", [lambda x, w: x.mul_(3), lambda x, w: w.mul_(3)])
@pytest.mark.parametrize("by_name", [False, True])
def test_arguments_of_a_checkpoint_are_watched(write, by_name):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    y = x * 1
    given = ((y,), {"w": w}) if by_name else ((y, w), {})
    out = torch.utils.checkpoint.checkpoint(lambda x, w: x.sin() * w, *given[0], use_reentrant=False, **given[1])
    write(y, w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize("write", ["z.imag = z.real", "z[0] = z[1].conj()", "z.real = z.imag * 2", "z[1].imag = z[0].imag"])
def test_parts_of_complex_numbers_are_not_saved(write):
    def fun(x):
        z = x.clone()
        exec(write, {"z": z})
        return torch.view_as_real(z * z)

    assert torch.autograd.gradcheck(fun, (torch.tensor([1 + 2j, 3 - 1j], dtype=torch.cdouble, requires_grad=True),))


STRIDED = {
    "z.real.as_strided((2,), (2,))": [1, 3],
    "z.imag.as_strided((2,), (2,))": [2, 4],
    "z.real.as_strided((4,), (1,))": [1, 2, 3, 4],
    "z.imag.as_strided((2, 2), (2, 1), 0)": [[1, 2], [3, 4]],
    "z[1:].real.as_strided((2,), (1,))": [3, 4],
    "z[1:].imag.as_strided((2,), (1,), 1)": [2, 3],
    "torch.view_as_real(z)[1:].as_strided((2,), (1,))": [3, 4],
    "torch.view_as_complex(torch.view_as_real(z)).as_strided((1,), (1,), 1)": [3 + 4j],
    "torch.view_as_complex(torch.view_as_real(z)[1:]).as_strided((1,), (1,))": [3 + 4j],
    "torch.view_as_real(z)[:1].as_strided((2, 1), (2, 1))[1:].real": [[3]],
}


@pytest.mark.parametrize("code", STRIDED)
def test_strides_in_parts_of_complex_numbers(code):
    def written(z):
        z = z * 1
        exec(f"{code}.mul_(3)", {"z": z, "torch": torch})
        return torch.view_as_real(z * z)

    z = torch.tensor([1 + 2j, 3 + 4j], dtype=torch.cdouble, requires_grad=True)
    assert eval(code).tolist() == STRIDED[code]
    assert torch.autograd.gradcheck(written, (z,))


def test_diagonals_of_parts_of_complex_numbers():
    z = torch.zeros(2, 2, dtype=torch.cdouble)
    z.real.fill_diagonal_(7)
    z.imag.fill_diagonal_(1)
    assert z.tolist() == [[7 + 1j, 0], [0, 7 + 1j]]


def test_writes_through_strides_beyond_a_view():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[:1].as_strided((3,), (1,))[1:].mul_(3)
    (y * y).sum().backward()
    assert x.grad.tolist() == [2, 36, 54]


def test_views_whose_base_must_not_have_been_written_to():
    y = torch.ones(3, requires_grad=True) * 1
    part = y.unbind(0)[0]
    with torch.no_grad():
        view = y[1:]
        y.mul_(2)
    assert part.requires_grad_() is part
    assert view.requires_grad_() is view
    assert repr(part) == "tensor(2., grad_fn=<Invalid>)"
    for x in (part, view):
        with pytest.raises(RuntimeError, match="has been modified inplace"):
            x.register_hook(lambda g: g)


def test_a_vector_that_became_a_variable_by_its_base():
    base, w = torch.zeros(2, 2, dtype=torch.double), torch.tensor([2.0, 3.0], dtype=torch.double, requires_grad=True)
    row = base[0]
    base.add_(w)
    (row @ torch.eye(2, dtype=torch.double)).sum().backward()
    assert w.grad.tolist() == [1, 1]


@pytest.mark.parametrize(
    "fun", [np.flipud, lambda x: np.split(x, 2)[1], lambda x: np.einsum("ij->ji", x), lambda x: np.rollaxis(x, 1)]
)
def test_views_that_numpys_functions_give_see_writes_and_are_seen(fun):
    x = torch.ones(2, 2, dtype=torch.double, requires_grad=True)
    y = x * 2
    view, weights = fun(y), torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.double)
    squares = y * y
    with torch.no_grad():
        view.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (squares * weights).sum().backward()
