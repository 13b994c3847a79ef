"""Train a small network as one would with PyTorch: is a breast tumour benign?

The loss curve goes to ``output/torch_training.png``.
"""

import sys
from pathlib import Path

import numpy as np
from _picture import picture

import symgrad.eager as torch
import symgrad.eager.nn.functional as F


def load():
    """Standardised measurements and labels, 400 tumours to train on and 169 to test with."""
    table = np.loadtxt(Path(__file__).parent / "data" / "breast_cancer.csv", delimiter=",", skiprows=1, dtype=np.float32)
    columns, benign = table[:, :-1], table[:, -1]
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    order = torch.randperm(len(table))
    x, y = torch.from_numpy(columns)[order], torch.from_numpy(benign)[order]
    return (x[:400], y[:400]), (x[400:], y[400:])


def layer(inputs, outputs):
    """Weights and biases, small and random."""
    weight = torch.randn(outputs, inputs) * (2 / inputs) ** 0.5
    return weight.requires_grad_(), torch.zeros(outputs, requires_grad=True)


def network(parameters, x):
    """One hidden layer; a logit for each row."""
    w1, b1, w2, b2 = parameters
    return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2).squeeze(1)


def progress(done, total, text):
    """A line that is written over and over on a terminal, and once at the end elsewhere."""
    bar = "#" * (30 * done // total)
    if sys.stdout.isatty() or done == total:
        print(f"\r[{bar:30}] epoch {done}/{total}  {text}", end="\n" if done == total else "", flush=True)


def train(parameters, x, y, epochs=40, batch=50):
    """The mean loss of each epoch."""
    optimizer = torch.optim.Adam(parameters, lr=0.01, weight_decay=1e-4)
    losses = []
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(x)).split(batch):
            loss = F.binary_cross_entropy_with_logits(network(parameters, x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        losses.append(total / len(x))
        progress(epoch + 1, epochs, f"loss {losses[-1]:.4f}")
    return losses


def main():
    torch.manual_seed(0)
    (x, y), (x_test, y_test) = load()
    parameters = [*layer(30, 16), *layer(16, 1)]
    losses = train(parameters, x, y)
    with torch.no_grad():
        right = ((network(parameters, x_test) > 0) == (y_test > 0.5)).float().mean().item()
    print(f"right on {right:.1%} of the tumours that it was not trained on")
    assert losses[-1] < 0.05
    assert right > 0.95

    with picture("torch_training") as axes:
        axes.plot(range(1, len(losses) + 1), losses)
        axes.set(xlabel="epoch", ylabel="binary cross entropy", yscale="log", title="Training with symgrad.eager")


if __name__ == "__main__":
    main()
