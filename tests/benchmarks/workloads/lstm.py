"""An LSTM, hidden 64, batch 16, over many steps: a loop of small matrix products."""

import numpy as np

from .common import Workload, empty

HIDDEN, BATCH, FEATURES = 64, 16, 32


def make(np):
    def sigmoid(z):
        return 1.0 / (1.0 + np.exp(-z))

    def loss(params, xs, h, c, target):
        w, u, b = params
        n = h.shape[1]
        for x in xs:
            z = x @ w + h @ u + b
            i, f, o = sigmoid(z[:, :n]), sigmoid(z[:, n : 2 * n]), sigmoid(z[:, 2 * n : 3 * n])
            c = f * c + i * np.tanh(z[:, 3 * n :])
            h = o * np.tanh(c)
        return np.mean((h - target) ** 2)

    return loss


def make_jax(jnp):
    import jax

    def loss(params, xs, h, c, target):
        w, u, b = params
        n = h.shape[1]

        def step(state, x):
            h, c = state
            z = x @ w + h @ u + b
            i, f, o = jnp.split(jax.nn.sigmoid(z[:, : 3 * n]), 3, axis=1)
            c = f * c + i * jnp.tanh(z[:, 3 * n :])
            return (o * jnp.tanh(c), c), None

        (h, _), _ = jax.lax.scan(step, (h, c), xs)
        return jnp.mean((h - target) ** 2)

    return loss


def inputs(rng, n):
    return (
        [
            rng.standard_normal((FEATURES, 4 * HIDDEN)) / 8,
            rng.standard_normal((HIDDEN, 4 * HIDDEN)) / 8,
            rng.standard_normal(4 * HIDDEN) / 8,
        ],
        rng.standard_normal((n, BATCH, FEATURES)),
        np.zeros((BATCH, HIDDEN)),
        np.zeros((BATCH, HIDDEN)),
        rng.standard_normal((BATCH, HIDDEN)),
    )


def hand(params, xs, h, c, target):
    w, u, b = params
    steps, batch, features = xs.shape
    n = h.shape[1]
    flat = xs.reshape(-1, features)
    gates = (flat @ w).reshape(steps, batch, 4 * n)  # outside the loop: one product for all steps
    gates += b
    hs, cs = np.empty((steps + 1, batch, n)), np.empty((steps + 1, batch, n))
    tanh_cs = np.empty((steps, batch, n))
    hs[0], cs[0] = h, c
    s, t = np.empty((batch, 4 * n)), np.empty((batch, n))
    for k in range(steps):
        z = gates[k]
        np.matmul(hs[k], u, out=s)
        z += s
        open_ = z[:, : 3 * n]
        np.negative(open_, out=open_)
        np.exp(open_, out=open_)
        open_ += 1.0
        np.reciprocal(open_, out=open_)
        new = z[:, 3 * n :]
        np.tanh(new, out=new)
        c = cs[k + 1]
        np.multiply(z[:, n : 2 * n], cs[k], out=c)
        np.multiply(z[:, :n], new, out=t)
        c += t
        np.tanh(c, out=tanh_cs[k])
        np.multiply(z[:, 2 * n : 3 * n], tanh_cs[k], out=hs[k + 1])

    g_h = hs[-1] - target
    g_h *= 2.0 / g_h.size
    g_c = np.zeros((batch, n))
    slope = np.empty((batch, n))
    transposed = np.ascontiguousarray(u.T)
    # d sigmoid = s - s^2, d tanh = 1 - t^2, for all steps at once
    slopes = np.square(gates)
    np.subtract(gates[:, :, : 3 * n], slopes[:, :, : 3 * n], out=slopes[:, :, : 3 * n])
    np.subtract(1.0, slopes[:, :, 3 * n :], out=slopes[:, :, 3 * n :])
    for k in reversed(range(steps)):
        z, g_z, tanh_c = gates[k], slopes[k], tanh_cs[k]
        g_z[:, 2 * n : 3 * n] *= tanh_c
        g_z[:, 2 * n : 3 * n] *= g_h
        np.multiply(tanh_c, tanh_c, out=slope)
        np.subtract(1.0, slope, out=slope)
        slope *= z[:, 2 * n : 3 * n]
        slope *= g_h
        g_c += slope
        g_z[:, :n] *= z[:, 3 * n :]
        g_z[:, :n] *= g_c
        g_z[:, n : 2 * n] *= cs[k]
        g_z[:, n : 2 * n] *= g_c
        g_z[:, 3 * n :] *= z[:, :n]
        g_z[:, 3 * n :] *= g_c
        g_c *= z[:, n : 2 * n]
        np.matmul(g_z, transposed, out=g_h)
    g = slopes.reshape(-1, 4 * n)
    return flat.T @ g, hs[:-1].reshape(-1, n).T @ g, g.sum(axis=0)


def floor(params, xs, h, c, target):
    """The matrix products, the exponentials and the hyperbolic tangents alone."""
    w, u, _ = params
    steps, batch, features = xs.shape
    n, flat = h.shape[1], xs.reshape(-1, features)
    gates, hs = empty((steps, batch, 4 * n)), np.ones((steps, batch, n))
    rows, t, g_h = empty((batch, 4 * n)), empty((batch, n)), empty((batch, n))
    g_w, g_u = empty(w.shape, w.dtype), empty(u.shape, u.dtype)

    def calls():
        np.dot(flat, w, gates.reshape(-1, 4 * n))
        for k in range(steps):
            np.dot(hs[k], u, rows)
            np.exp(gates[k, :, : 3 * n], gates[k, :, : 3 * n])
            np.tanh(gates[k, :, 3 * n :], t)
            np.tanh(t, t)
        for k in range(steps):
            np.dot(gates[k], u.T, g_h)
        np.dot(flat.T, gates.reshape(-1, 4 * n), g_w)
        np.dot(hs.reshape(-1, n).T, gates.reshape(-1, 4 * n), g_u)

    return calls


UNROLLING = ("torch.compile", "pytensor")  # they compile all steps as one, for many minutes
WORKLOAD = Workload("H", "LSTM", make, inputs, hand, 100, 3, words={"jax": make_jax}, skips=UNROLLING, floor=floor)
