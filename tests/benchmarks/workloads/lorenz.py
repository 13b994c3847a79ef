"""Euler steps through Lorenz' attractor, by its parameters: a loop of numbers, and the same of 3-vectors."""

import numpy as np

from .common import Workload

DT = 0.001


def make(np):
    def lorenz(sigma, rho, beta, steps):
        x = y = z = 1.0
        for _ in range(steps):
            dx = sigma * (y - x)
            dy = x * (rho - z) - y
            dz = x * y - beta * z
            x = x + DT * dx
            y = y + DT * dy
            z = z + DT * dz
        return x + y + z

    return lorenz


def make_vector(np):
    def lorenz(state, sigma, rho, beta, steps):
        for _ in range(steps):
            x, y, z = state
            state = state + DT * np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])
        return np.sum(state)

    return lorenz


def make_vector_torch(torch):
    def lorenz(state, sigma, rho, beta, steps):
        for _ in range(steps):
            x, y, z = state
            state = state + DT * torch.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])
        return state.sum()

    return lorenz


def make_vector_jax(jnp):
    import jax

    def lorenz(state, sigma, rho, beta, steps):
        def step(state, _):
            x, y, z = state
            return state + DT * jnp.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z]), None

        return jnp.sum(jax.lax.scan(step, state, None, steps)[0])

    return lorenz


def make_jax(jnp):
    import jax

    def lorenz(sigma, rho, beta, steps):
        def step(state, _):
            x, y, z = state
            return (x + DT * (sigma * (y - x)), y + DT * (x * (rho - z) - y), z + DT * (x * y - beta * z)), None

        return sum(jax.lax.scan(step, (1.0, 1.0, 1.0), None, steps)[0])

    return lorenz


def inputs(rng, n):
    return float(10 + rng.random()), float(28 + rng.random()), 8 / 3, n


def inputs_vector(rng, n):
    return rng.uniform(0.5, 1.5, 3), *inputs(rng, n)


def hand(sigma, rho, beta, steps):
    x = y = z = 1.0
    xs, ys, zs = [], [], []
    for _ in range(steps):
        xs.append(x)
        ys.append(y)
        zs.append(z)
        x, y, z = x + DT * (sigma * (y - x)), y + DT * (x * (rho - z) - y), z + DT * (x * y - beta * z)
    g_x = g_y = g_z = 1.0
    g_sigma = g_rho = g_beta = 0.0
    for x, y, z in zip(reversed(xs), reversed(ys), reversed(zs), strict=True):
        h_x, h_y, h_z = DT * g_x, DT * g_y, DT * g_z
        g_sigma += h_x * (y - x)
        g_rho += h_y * x
        g_beta -= h_z * z
        back = h_x * sigma
        g_x, g_y, g_z = g_x - back + h_y * (rho - z) + h_z * y, g_y + back - h_y + h_z * x, g_z - h_y * x - h_z * beta
    return g_sigma, g_rho, g_beta


def hand_vector(state, sigma, rho, beta, steps):
    states = np.empty((steps, 3))
    for i in range(steps):
        states[i] = state
        x, y, z = state
        state = state + DT * np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])
    g = np.ones(3)
    g_sigma = g_rho = g_beta = 0.0
    jacobian = np.array([[-sigma, sigma, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -beta]])
    for x, y, z in states[::-1]:
        h = DT * g
        g_sigma += h[0] * (y - x)
        g_rho += h[1] * x
        g_beta -= h[2] * z
        jacobian[1, 0] = rho - z
        jacobian[1, 2] = -x
        jacobian[2, 0] = y
        jacobian[2, 1] = x
        g = g + h.dot(jacobian)
    return g, g_sigma, g_rho, g_beta


UNROLLING = ("torch.compile", "pytensor")  # they compile all steps as one, for many minutes
WORKLOAD = Workload(
    "J", "Lorenz, floats", make, inputs, hand, 1_000, 20, argnums=(0, 1, 2), draws=2,
    words={"jax": make_jax, "casadi": make}, skips=(*UNROLLING, "mygrad"),
)  # fmt: skip
VECTOR = Workload(
    "J2", "Lorenz, 3-vector", make_vector, inputs_vector, hand_vector, 1_000, 20, argnums=(0, 1, 2, 3),
    words={"jax": make_vector_jax, "torch": make_vector_torch}, skips=(*UNROLLING, "mygrad"),
)  # fmt: skip
