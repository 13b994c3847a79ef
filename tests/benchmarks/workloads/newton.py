"""A square root by Newton's method, until a tolerance is met: a loop whose length hangs on the input."""

from .common import Workload


def make(np):
    def root(a):
        x = a
        while abs(x * x - a) > 1e-10:
            x = 0.5 * (x + a / x)
        return x

    return root


def make_jax(jnp):
    import jax

    def root(a):  # as many steps as any input needs, those not wanted masked: a while loop has no reverse mode
        def step(_, x):
            return jnp.where(jnp.abs(x * x - a) > 1e-10, 0.5 * (x + a / x), x)

        return jax.lax.fori_loop(0, 12, step, a)

    return root


def inputs(rng, n):
    return (float(rng.uniform(0.1, 10.0)),)


def hand(a):
    x, xs = a, []
    while abs(x * x - a) > 1e-10:
        xs.append(x)
        x = 0.5 * (x + a / x)
    g, g_a = 1.0, 0.0
    for x in reversed(xs):
        part = 0.5 * g / x
        g_a += part
        g = 0.5 * g - part * a / x
    return g + g_a


WORKLOAD = Workload(
    "K",
    "Newton square root",
    make,
    inputs,
    hand,
    draws=64,
    words={"jax": make_jax},
    skips=("torch.compile", "pytensor", "mygrad"),
)
