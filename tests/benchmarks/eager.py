"""Eager tensors beside torch's own, in one process: microseconds for forward and backward together, and their ratio.

python tests/benchmarks/eager.py
"""

from __future__ import annotations

import timeit

import torch

import symgrad.eager as eager

torch.set_num_threads(1)


def workloads(t):
    """Small forward passes; each returns a scalar."""
    t.manual_seed(0)
    x, y = t.ones(5), t.zeros(3)
    w, b = t.randn(5, 3, requires_grad=True), t.randn(3, requires_grad=True)
    a, c = t.randn(10, requires_grad=True), t.randn(10, requires_grad=True)
    m, n = t.randn(8, 8, requires_grad=True), t.randn(8, 8, requires_grad=True)
    d = t.randn(8, requires_grad=True)
    labels = t.tensor([1, 0, 3, 2, 1, 7, 5, 4])
    F = t.nn.functional
    return {
        "tutorial": lambda: F.binary_cross_entropy_with_logits(t.matmul(x, w) + b, y),
        "add": lambda: (a + c).sum(),
        "mul": lambda: (a * c).sum(),
        "mul scalar": lambda: (a * 2.0).sum(),
        "div": lambda: (a / c).sum(),
        "pow": lambda: (a**2).sum(),
        "sin": lambda: a.sin().sum(),
        "exp": lambda: a.exp().sum(),
        "sigmoid": lambda: t.sigmoid(a).sum(),
        "relu": lambda: F.relu(a).sum(),
        "where": lambda: t.where(a > 0, a, c).sum(),
        "clamp": lambda: a.clamp(-1, 1).sum(),
        "matmul": lambda: (m @ n).sum(),
        "linear": lambda: F.linear(m, n, d).sum(),
        "mean": lambda: m.mean(),
        "sum dim": lambda: m.sum(dim=1).sum(),
        "max dim": lambda: m.max(dim=1).values.sum(),
        "std": lambda: m.std(),
        "reshape": lambda: m.reshape(64).sum(),
        "transpose": lambda: m.T.sum(),
        "getitem": lambda: m[1:3, 2].sum(),
        "cat": lambda: t.cat([m, n]).sum(),
        "softmax": lambda: F.softmax(m, dim=1).sum(),
        "cross_entropy": lambda: F.cross_entropy(m, labels),
        "mse": lambda: F.mse_loss(a, c),
        "layer_norm": lambda: F.layer_norm(m, (8,)).sum(),
        "mlp": lambda: ((m @ n).tanh() @ n).pow(2).mean(),
        "chain of 50": lambda: _chain(a),
    }


def _chain(a):
    z = a
    for _ in range(25):
        z = z * 1.01 + 0.1
    return z.sum()


def microseconds(*funs, rounds=200):
    """The best time of each function, measured in turns, so that a busy machine disturbs all alike."""
    timers = [timeit.Timer(fun) for fun in funs]
    numbers = [max(timer.autorange()[0] // 400, 1) for timer in timers]
    best = [float("inf")] * len(funs)
    for _ in range(rounds):
        for i, (timer, number) in enumerate(zip(timers, numbers, strict=True)):
            best[i] = min(best[i], timer.timeit(number) / number * 1e6)
    return best


def main():
    """Print the table."""
    theirs, ours = workloads(torch), workloads(eager)
    print(f"{'':16}{'fwd+bwd torch':>15}{'ours':>9}{'ratio':>8}{'fwd torch':>12}{'ours':>9}{'untracked':>11}")
    for name, forth in theirs.items():
        back = ours[name]
        a, b, c, d = microseconds(lambda f=forth: f().backward(), lambda f=back: f().backward(), forth, back)
        with eager.no_grad():
            (free,) = microseconds(back)
        print(f"{name:16}{a:15.1f}{b:9.1f}{b / a:8.2f}{c:12.1f}{d:9.1f}{free:11.1f}")


if __name__ == "__main__":
    main()
