"""Objects that go round in loops: what their slots hold, as what a ``__dict__`` does."""

import dataclasses

import numpy as np
import pytest

from symgrad import grad


class Turn:
    __slots__ = ("v", "w")

    def __init__(self, w, v):
        self.w, self.v = w, v

    def __mul__(self, other):
        return type(self)(self.w * other.w - self.v @ other.v, self.w * other.v + other.w * self.v + np.cross(self.v, other.v))


@dataclasses.dataclass(slots=True)
class TurnOfFields:
    w: float
    v: np.ndarray
    __mul__ = Turn.__mul__


@dataclasses.dataclass(slots=True, frozen=True)
class FrozenTurn:
    w: float
    v: np.ndarray
    __mul__ = Turn.__mul__


class Ball:
    __slots__ = ("__weakref__", "bounces", "v", "x")

    def __init__(self, x, v):
        self.x, self.v, self.bounces = x, v, 0

    def step(self, dt):
        self.v = self.v - dt
        self.x = self.x + dt * self.v
        self.bounces += 0


def turned_by(kind):
    def turned(p, x):
        q = kind(1.0, np.zeros(3))
        for _ in range(60):
            q = q * kind(1.0, 0.05 * x)
        return q.w + p * q.v @ x

    return turned


def thrown(p, x):
    ball, far = Ball(x[0] + 2.0, p), 0.0
    for _ in range(60):
        ball.step(0.1)
        if ball.x < 0.0:
            ball.x, ball.v = -ball.x, -0.8 * ball.v
            ball.bounces += 1
        far += ball.x**2 / (1 + ball.bounces)
    return far


@pytest.mark.parametrize("fun", [turned_by(Turn), turned_by(TurnOfFields), turned_by(FrozenTurn), thrown])
def test_objects_with_slots_go_round(fun):
    slope, theirs, rng = grad(fun, argnums=(0, 1)), grad(fun, argnums=(0, 1), mode="dynamic"), np.random.default_rng(0)
    for _ in range(6):
        p, x = rng.uniform(0.5, 1.5), rng.uniform(-0.5, 0.5, 3)
        for one, other in zip(slope(p, x), theirs(p, x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert len(slope.source(p, x).splitlines()) < 100


SEEN, HOLDER = [], Turn(0.0, 0.0)


def put_outside(x, n):
    SEEN.append(Turn(n * 2.0, [n + 1.0, Turn(n, x)]))
    HOLDER.w = n * 3.0
    HOLDER.v = Turn(n, n)
    return np.sum(x**2) * n


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_is_put_outside_in_slots_is_plain(mode):
    slope = grad(put_outside, mode=mode)
    for n in (0.5, 1.5, 2.5, 1.5):
        SEEN.clear()
        np.testing.assert_allclose(slope(np.ones(3), n), 2 * n * np.ones(3))
        held = [SEEN[0].w, SEEN[0].v[0], SEEN[0].v[1].w, HOLDER.w, HOLDER.v.w, HOLDER.v.v]
        assert {type(one) for one in held} <= {float, np.float64}
        np.testing.assert_allclose(held, [2 * n, n + 1, n, 3 * n, n, n])
