"""The functions of the golden files, in plain NumPy.

The files name this module's lines, so a new function goes to the end.
"""

import numpy as np

from symgrad import checkpoint, custom_vjp

# -- models --------------------------------------------------------------------------------------------------------


def one_layer(w, b, x, y):
    """The network of PyTorch's autograd tutorial: one linear layer, binary cross entropy with logits."""
    z = x @ w + b
    return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))


def logistic(w, x, y):
    z = x @ w
    return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))


def softmax_classifier(w, b, x, labels):
    z = x @ w + b
    z = z - np.max(z, axis=1, keepdims=True)
    logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    return -np.mean(logp[np.arange(len(labels)), labels])


def recurrent(params, xs, target):
    w_x, w_h, b = params
    h = np.zeros_like(b)
    for x in xs:
        h = np.tanh(x @ w_x + h @ w_h + b)
    return np.sum((h - target) ** 2)


def perceptron(params, x, y):
    """Layers in a dict."""
    h = np.tanh(x @ params["hidden"]["w"] + params["hidden"]["b"])
    out = h @ params["out"]["w"] + params["out"]["b"]
    return 0.5 * np.mean((out - y) ** 2)


def attention(w_q, w_k, w_v, x):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = np.einsum("ik,jk->ij", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return np.sum(np.einsum("ij,jk->ik", weights, v) ** 2)


# -- formulas ------------------------------------------------------------------------------------------------------


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def normal_cdf(x):
    """Abramowitz and Stegun's 26.2.18: good to 2.5e-4 for x >= 0."""
    poly = 1.0 + x * (0.196854 + x * (0.115194 + x * (0.000344 + x * 0.019527)))
    return 1.0 - 0.5 / poly**4


def black_scholes(spot, strike, rate, sigma, years):
    """A call in the money, as a Python float."""
    spread = sigma * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * sigma**2) * years) / spread
    d2 = d1 - spread
    return spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d2)


def marginal_likelihood(theta, x, y):
    """A Gaussian process with a squared-exponential kernel: its negative log marginal likelihood."""
    length, signal, noise = np.exp(theta)
    gap = (x[:, None] - x[None, :]) / length
    k = signal**2 * np.exp(-0.5 * gap**2) + noise**2 * np.eye(len(x))
    chol = np.linalg.cholesky(k)
    alpha = np.linalg.solve(k, y)
    return 0.5 * y @ alpha + np.sum(np.log(np.diagonal(chol)))


def log_sum_exp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def spread(x):
    return np.std(x) / np.linalg.norm(x)


def intensity(z):
    """The energy of a complex field behind a phase plate."""
    return np.sum(np.abs(z * np.exp(0.5j)) ** 2)


def projectile(v, angle):
    """Python floats all the way."""
    t = 2.0 * v * np.sin(angle) / 9.81
    return v * np.cos(angle) * t


def swish(x):
    return x / (1.0 + np.exp(-x))


def polar(p):
    r, phi = p
    return np.stack([r * np.cos(phi), r * np.sin(phi)])


# -- outside state -------------------------------------------------------------------------------------------------

FEATURES = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
TARGETS = np.array([0.5, -1.0, 2.0, 0.0])
PENALTY = 0.1


def ridge(w):
    residual = FEATURES @ w - TARGETS
    return residual @ residual + PENALTY * w @ w


# -- control flow --------------------------------------------------------------------------------------------------


def huber(r, delta):
    if abs(r) <= delta:
        return 0.5 * r**2
    return delta * (abs(r) - 0.5 * delta)


def newton_root(x):
    guess = x
    while abs(guess * guess - x) > 1e-9 * x:
        guess = 0.5 * (guess + x / guess)
    return guess


# -- writes and indices --------------------------------------------------------------------------------------------


def upwind(u, c):
    """One step of an advection scheme, written in place."""
    out = np.zeros_like(u)
    out[0] = u[0]
    out[1:] = u[1:] - c * (u[1:] - u[:-1])
    return np.sum(out**2)


def embedding(table, rows):
    return np.sum(table[rows] ** 3)


# -- a rule of the user's ------------------------------------------------------------------------------------------


@custom_vjp
def clip_gradient(x):
    return x


clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (np.clip(g, -1.0, 1.0),))


def clipped(x):
    return np.sum(clip_gradient(np.sin(x)) ** 4)


def fit_and_residual(w, x, y):
    """With an auxiliary output."""
    residual = x @ w - y
    return np.mean(residual**2), residual


# -- of one example, for batches of them; checkpoints --------------------------------------------------------------


def cross_entropy(w, b, x, label):
    z = np.tanh(x @ w + b)
    z = z - np.max(z)
    return np.log(np.sum(np.exp(z))) - z[label]


@checkpoint
def layer(x, w):
    return np.tanh(x @ w) + x


def two_layers(w, x):
    return np.sum(layer(layer(x, w), w) ** 2)
