"""A neural network in plain NumPy: handwritten digits, parameters in a dict, Adam in five lines."""

import sys
from pathlib import Path

import numpy as np
from _picture import picture

from symgrad import flatten, value_and_grad


def load():
    """Images as rows with values in [0, 1], and labels: 1400 to train with, 397 to test."""
    data = np.load(Path(__file__).parent / "data" / "digits.npz")
    order = np.random.default_rng(0).permutation(len(data["labels"]))
    x, y = data["images"][order] / 16.0, data["labels"][order].astype(int)
    return (x[:1400], y[:1400]), (x[1400:], y[1400:])


def network(params, x):
    """Two layers; a row of log probabilities for each image."""
    hidden = np.maximum(x @ params["w1"] + params["b1"], 0)
    z = hidden @ params["w2"] + params["b2"]
    z = z - np.max(z, axis=1, keepdims=True)
    return z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))


def loss(params, x, y):
    return -np.mean(network(params, x)[np.arange(len(y)), y])


def start(rng):
    he = lambda n, m: rng.normal(size=(n, m)) * np.sqrt(2.0 / n)
    return {"w1": he(64, 48), "b1": np.zeros(48), "w2": he(48, 10), "b2": np.zeros(10)}


def progress(done, total, text):
    """A line that is written over and over on a terminal, and once at the end elsewhere."""
    bar = "#" * (30 * done // total)
    if sys.stdout.isatty() or done == total:
        print(f"\r[{bar:30}] epoch {done}/{total}  {text}", end="\n" if done == total else "", flush=True)


def train(params, x, y, epochs=25, batch=100, rate=0.004):
    """Adam on the parameters as one vector; the mean loss of each epoch."""
    rng = np.random.default_rng(1)
    both = value_and_grad(loss)
    vector, unflatten = flatten(params)
    first, second, step, losses = np.zeros_like(vector), np.zeros_like(vector), 0, []
    for epoch in range(epochs):
        total = 0.0
        for rows in rng.permutation(len(y)).reshape(-1, batch):
            value, slope = both(unflatten(vector), x[rows], y[rows])
            g, _ = flatten(slope)
            step += 1
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
            vector = vector - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            total += value * len(rows)
        losses.append(total / len(y))
        progress(epoch + 1, epochs, f"loss {losses[-1]:.4f}")
    return unflatten(vector), losses


def main():
    (x, y), (x_test, y_test) = load()
    params, losses = train(start(np.random.default_rng(2)), x, y)
    guesses = np.argmax(network(params, x_test), axis=1)
    right = np.mean(guesses == y_test)
    print(f"right on {right:.1%} of the digits that it was not trained on")
    assert right > 0.95

    with picture("mlp", columns=2, size=(4.5, 3.5)) as (left, other):
        left.plot(range(1, len(losses) + 1), losses)
        left.set(xlabel="epoch", ylabel="cross entropy", yscale="log", title="Training")
        wrong = np.flatnonzero(guesses != y_test)[:8]
        other.imshow(np.hstack(x_test[wrong].reshape(-1, 8, 8)), cmap="gray_r")
        other.set(title="taken for " + " ".join(map(str, guesses[wrong])), xticks=[], yticks=[])


if __name__ == "__main__":
    main()
