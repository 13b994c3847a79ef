"""Eager tensors beside torch's own, in one process: microseconds for forward and backward together, and their ratio.

python tests/benchmarks/eager.py            # everything
python tests/benchmarks/eager.py norm cat   # what has one of these words in its name
"""

from __future__ import annotations

import sys
import time
import timeit

import torch

import symgrad.eager as eager

torch.set_num_threads(1)


def workloads(t):
    """Small forward passes. Each returns a tensor, whose sum is differentiated."""
    t.manual_seed(0)
    F = t.nn.functional
    x, y = t.ones(5), t.zeros(3)
    w, b = t.randn(5, 3, requires_grad=True), t.randn(3, requires_grad=True)
    a, c = t.randn(10, requires_grad=True), t.randn(10, requires_grad=True)
    m, n = t.randn(8, 8, requires_grad=True), t.randn(8, 8, requires_grad=True)
    p, q = t.randn(4, 3, 5, requires_grad=True), t.randn(4, 5, 2, requires_grad=True)
    d, s = t.randn(8, requires_grad=True), t.tensor(0.5, requires_grad=True)
    chances = t.rand(10, requires_grad=True)
    labels, places = t.tensor([1, 0, 3, 2, 1, 7, 5, 4]), t.tensor([2, 0, 5, 2])
    table = t.tensor([[0, 1, 2], [3, 3, 1]])
    targets, mask = t.rand(10), t.tensor([True, False] * 5)
    spd = t.eye(4) * 3 + t.rand(4, 4) * 0.1
    spd = (spd + spd.T).requires_grad_()
    return {
        "tutorial": lambda: F.binary_cross_entropy_with_logits(t.matmul(x, w) + b, y),
        "mlp": lambda: ((m @ n).tanh() @ n).pow(2).mean(),
        "chain of 50": lambda: _chain(a),
        # elementwise
        "add": lambda: a + c,
        "add broadcast": lambda: m + d,
        "sub": lambda: a - c,
        "rsub": lambda: 1 - a,
        "add alpha": lambda: t.add(a, c, alpha=2),
        "mul": lambda: a * c,
        "mul scalar": lambda: a * 2.0,
        "mul 0-d": lambda: a * s,
        "div": lambda: a / c,
        "div scalar": lambda: a / 2.0,
        "rdiv": lambda: 1 / a,
        "neg": lambda: -a,
        "pow": lambda: a**2,
        "pow tensor": lambda: chances**c,
        "sqrt": lambda: chances.sqrt(),
        "rsqrt": lambda: chances.rsqrt(),
        "reciprocal": lambda: a.reciprocal(),
        "square": lambda: a.square(),
        "sin": lambda: a.sin(),
        "cos": lambda: a.cos(),
        "tan": lambda: a.tan(),
        "atan": lambda: a.atan(),
        "exp": lambda: a.exp(),
        "log": lambda: chances.log(),
        "log1p": lambda: chances.log1p(),
        "expm1": lambda: a.expm1(),
        "tanh": lambda: a.tanh(),
        "sinh": lambda: a.sinh(),
        "sigmoid": lambda: t.sigmoid(a),
        "erf": lambda: a.erf(),
        "abs": lambda: a.abs(),
        "sign": lambda: a.sign(),
        "floor": lambda: a.floor(),
        "maximum": lambda: t.maximum(a, c),
        "atan2": lambda: t.atan2(a, c),
        "hypot": lambda: t.hypot(a, c),
        "logaddexp": lambda: t.logaddexp(a, c),
        "remainder": lambda: a % 0.7,
        "where": lambda: t.where(a > 0, a, c),
        "masked_fill": lambda: a.masked_fill(mask, 0.0),
        "clamp": lambda: a.clamp(-1, 1),
        "lerp": lambda: a.lerp(c, 0.3),
        "addcmul": lambda: t.addcmul(a, a, c),
        "addcdiv": lambda: t.addcdiv(a, a, chances),
        "to double": lambda: a.double(),
        "clone": lambda: a.clone(),
        # in place
        "add_": lambda: (a * 1).add_(1),
        "mul_": lambda: (a * 1).mul_(c),
        "exp_": lambda: (a * 1).exp_(),
        "zero_": lambda: (a * 1).zero_(),
        "copy_": lambda: (a * 1).copy_(c),
        "setitem": lambda: _set(a * 1, 2, s),
        "setitem slice": lambda: _set(m * 1, (slice(1, 3), 2), 0.0),
        "index_put_": lambda: _set(a * 1, places, 1.0),
        # reductions
        "sum": lambda: m.sum(),
        "sum dim": lambda: m.sum(dim=1),
        "sum keepdim": lambda: m.sum(dim=0, keepdim=True),
        "mean": lambda: m.mean(),
        "mean dim": lambda: m.mean(dim=1),
        "prod": lambda: d.prod(),
        "prod dim": lambda: m.prod(dim=1),
        "var": lambda: m.var(),
        "std": lambda: m.std(),
        "std dim": lambda: m.std(dim=1),
        "max": lambda: m.max(),
        "max dim": lambda: m.max(dim=1).values,
        "min dim": lambda: m.min(dim=1).values,
        "amax": lambda: m.amax(dim=1),
        "median dim": lambda: m.median(dim=1).values,
        "sort": lambda: m.sort(dim=1).values,
        "topk": lambda: m.topk(3, dim=1).values,
        "norm": lambda: m.norm(),
        "norm dim": lambda: m.norm(dim=1),
        "norm 1": lambda: m.norm(p=1),
        "logsumexp": lambda: m.logsumexp(dim=1),
        "cumsum": lambda: m.cumsum(dim=1),
        "cumprod": lambda: m.cumprod(dim=1),
        # shapes
        "reshape": lambda: m.reshape(64),
        "view": lambda: m.view(4, 16),
        "flatten": lambda: m.flatten(),
        "transpose": lambda: m.T,
        "permute": lambda: p.permute(2, 0, 1),
        "squeeze": lambda: d.unsqueeze(0).squeeze(0),
        "unsqueeze": lambda: d.unsqueeze(1),
        "expand": lambda: d.expand(8, 8),
        "repeat": lambda: d.repeat(2, 2),
        "flip": lambda: m.flip(0),
        "roll": lambda: m.roll(1, 0),
        "tril": lambda: m.tril(),
        "diagonal": lambda: m.diagonal(),
        "diag": lambda: t.diag(d),
        "trace": lambda: m.trace(),
        "cat": lambda: t.cat([m, n]),
        "cat dim": lambda: t.cat([m, n], dim=1),
        "stack": lambda: t.stack([a, c]),
        "stack 0-d": lambda: t.stack([s, s]),
        "split": lambda: m.split(4)[0],
        "chunk": lambda: m.chunk(2, dim=1)[1],
        "unbind": lambda: m.unbind()[0],
        # indexing
        "getitem": lambda: m[1:3, 2],
        "getitem row": lambda: m[1],
        "getitem array": lambda: m[places],
        "getitem mask": lambda: a[mask],
        "gather": lambda: m.gather(0, table),
        "index_select": lambda: m.index_select(0, places),
        "masked_select": lambda: a.masked_select(mask),
        "scatter": lambda: m.scatter(0, table, 1.0),
        "scatter_add": lambda: m.scatter_add(0, table, n[:2, :3]),
        "index_add": lambda: m.index_add(0, places, n[:4]),
        "narrow": lambda: m.narrow(0, 1, 3),
        # products
        "matmul": lambda: m @ n,
        "matvec": lambda: m @ d,
        "dot": lambda: a @ c,
        "bmm": lambda: p @ q,
        "matmul 3-d 2-d": lambda: p @ w,
        "outer": lambda: t.outer(a, c),
        "addmm": lambda: t.addmm(d, m, n),
        "einsum": lambda: t.einsum("ij,jk->ik", m, n),
        "einsum batch": lambda: t.einsum("bij,bjk->bik", p, q),
        # linear algebra
        "inv": lambda: t.linalg.inv(spd),
        "det": lambda: t.linalg.det(spd),
        "solve": lambda: t.linalg.solve(spd, d[:4]),
        "cholesky": lambda: t.linalg.cholesky(spd),
        # nn.functional: activations
        "relu": lambda: F.relu(a),
        "gelu": lambda: F.gelu(a),
        "gelu tanh": lambda: F.gelu(a, approximate="tanh"),
        "silu": lambda: F.silu(a),
        "leaky_relu": lambda: F.leaky_relu(a),
        "elu": lambda: F.elu(a),
        "softplus": lambda: F.softplus(a),
        "logsigmoid": lambda: F.logsigmoid(a),
        "hardtanh": lambda: F.hardtanh(a),
        "F.tanh": lambda: F.tanh(a),
        "F.sigmoid": lambda: F.sigmoid(a),
        "softmax": lambda: F.softmax(m, dim=1),
        "log_softmax": lambda: F.log_softmax(m, dim=1),
        # nn.functional: layers and losses
        "linear": lambda: F.linear(m, n, d),
        "layer_norm": lambda: F.layer_norm(m, (8,)),
        "layer_norm affine": lambda: F.layer_norm(m, (8,), d, d),
        "dropout": lambda: F.dropout(a, 0.5),
        "embedding": lambda: F.embedding(places, m),
        "bce": lambda: F.binary_cross_entropy(t.sigmoid(a), targets),
        "bce_logits": lambda: F.binary_cross_entropy_with_logits(a, targets),
        "bce_logits pos": lambda: F.binary_cross_entropy_with_logits(a, targets, pos_weight=targets),
        "cross_entropy": lambda: F.cross_entropy(m, labels),
        "cross_entropy smooth": lambda: F.cross_entropy(m, labels, label_smoothing=0.1),
        "nll_loss": lambda: F.nll_loss(m, labels),
        "mse": lambda: F.mse_loss(a, c),
        "l1": lambda: F.l1_loss(a, c),
        "smooth_l1": lambda: F.smooth_l1_loss(a, c),
        "huber": lambda: F.huber_loss(a, c),
    }


def _chain(a):
    z = a
    for _ in range(25):
        z = z * 1.01 + 0.1
    return z


def _set(x, key, value):
    x[key] = value
    return x


def microseconds(*funs, rounds=25, number=40):
    """The best time of each function, measured in turns, so that a busy machine disturbs all alike."""
    timers = [timeit.Timer(fun, timer=time.process_time) for fun in funs]
    best = [float("inf")] * len(funs)
    for _ in range(rounds):
        for i, timer in enumerate(timers):
            best[i] = min(best[i], timer.timeit(number) / number * 1e6)
    return best


def _step(fun):
    if fun().ndim:
        return lambda: fun().sum().backward()
    return lambda: fun().backward()


def main(words):
    """Print the table."""
    theirs, ours = workloads(torch), workloads(eager)
    print(f"{'':20}{'fwd+bwd torch':>15}{'ours':>9}{'ratio':>8}{'fwd torch':>12}{'ours':>9}{'untracked':>11}")
    for name, forth in theirs.items():
        if words and not any(word in name for word in words):
            continue
        back = ours[name]
        a, b, c, d = microseconds(_step(forth), _step(back), forth, back)
        with eager.no_grad():
            (free,) = microseconds(back)
        print(f"{name:20}{a:15.1f}{b:9.1f}{b / a:8.2f}{c:12.1f}{d:9.1f}{free:11.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
