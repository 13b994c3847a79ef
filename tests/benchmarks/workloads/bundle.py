"""ADBench's bundle adjustment: the squared reprojection error of one observation, by camera, point and weight."""

import numpy as np

from .common import Workload


def make(np):
    def rotate(r, x):  # by Rodrigues' formula
        square = np.sum(r**2)
        if square == 0.0:
            return x + np.cross(r, x)
        angle = np.sqrt(square)
        axis = r / angle
        return x * np.cos(angle) + np.cross(axis, x) * np.sin(angle) + axis * (axis @ x) * (1.0 - np.cos(angle))

    def error(camera, point, weight, feature):
        seen = rotate(camera[:3], point - camera[3:6])
        p = seen[:2] / seen[2]
        square = np.sum(p**2)
        p = p * (1.0 + camera[9] * square + camera[10] * square**2)
        p = p * camera[6] + camera[7:9]
        return np.sum((weight * (p - feature)) ** 2)

    return error


def make_plain(np):
    """Without the branch, and the vector product written out, for who compiles before values are known."""

    def cross(a, b):
        return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])

    def error(camera, point, weight, feature):
        r, x = camera[:3], point - camera[3:6]
        angle = np.sqrt((r**2).sum())
        axis = r / angle
        seen = x * np.cos(angle) + cross(axis, x) * np.sin(angle) + axis * (axis * x).sum() * (1.0 - np.cos(angle))
        p = seen[:2] / seen[2]
        square = (p**2).sum()
        p = p * (1.0 + camera[9] * square + camera[10] * square**2)
        p = p * camera[6] + camera[7:9]
        return ((weight * (p - feature)) ** 2).sum()

    return error


def make_casadi(ca):
    def error(camera, point, weight, feature):
        r, x = camera[:3], point - camera[3:6]
        angle = ca.sqrt(ca.sumsqr(r))
        axis = r / angle
        cos, sin = ca.cos(angle), ca.sin(angle)
        seen = x * cos + ca.cross(axis, x) * sin + axis * ca.dot(axis, x) * (1 - cos)
        p = seen[:2] / seen[2]
        square = ca.sumsqr(p)
        p = p * (1 + camera[9] * square + camera[10] * square**2)
        return ca.sumsqr(weight * (p * camera[6] + camera[7:9] - feature))

    return error


def inputs(rng, n):
    camera = np.concatenate([0.3 * rng.standard_normal(3), [0.1, -0.2, -4.0], [500.0, 10.0, -5.0, 0.1, 0.01]])
    return camera, rng.uniform(-1.0, 1.0, 3), float(rng.uniform(0.5, 1.5)), rng.uniform(-50.0, 50.0, 2)


def hand(camera, point, weight, feature):
    r = camera[:3]
    x = point - camera[3:6]
    square = r.dot(r)
    if square == 0.0:
        cos, sin, angle, axis = 1.0, 0.0, 1.0, r
        turn = skew(r)
        rotation = np.eye(3) + turn
    else:
        angle = np.sqrt(square)
        axis = r / angle
        cos, sin = np.cos(angle), np.sin(angle)
        turn = skew(axis)
        rotation = cos * np.eye(3) + sin * turn + (1.0 - cos) * np.outer(axis, axis)
    seen = rotation @ x
    p = seen[:2] / seen[2]
    near = p.dot(p)
    k, l = camera[9], camera[10]
    stretch = 1.0 + near * (k + l * near)
    q = p * stretch
    off = q * camera[6] + camera[7:9] - feature
    squared = off.dot(off)

    g = (2.0 * weight * weight) * off
    g_camera = np.empty(11)
    g_camera[6] = g.dot(q)
    g_camera[7:9] = g
    g_q = g * camera[6]
    g_stretch = g_q.dot(p)
    g_camera[9] = g_stretch * near
    g_camera[10] = g_stretch * near * near
    g_p = g_q * stretch + (2.0 * g_stretch * (k + 2.0 * l * near)) * p
    g_seen = np.empty(3)
    g_seen[:2] = g_p / seen[2]
    g_seen[2] = -g_p.dot(p) / seen[2]
    g_point = g_seen @ rotation
    g_camera[3:6] = -g_point
    if square == 0.0:
        g_camera[:3] = skew(x) @ g_seen
    else:
        along = axis.dot(x)
        g_angle = g_seen.dot(cos * (turn @ x) - sin * (x - along * axis))
        g_axis = sin * (skew(x) @ g_seen) + (1.0 - cos) * (along * g_seen + axis.dot(g_seen) * x)
        g_camera[:3] = g_angle * axis + (g_axis - axis.dot(g_axis) * axis) / angle
    return g_camera, g_point, 2.0 * weight * squared


def skew(v):
    a, b, c = v.tolist()
    return np.array([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]])


WORDS = {"jax": make_plain, "torch": make_plain, "pytensor": make_plain, "casadi": make_casadi}
WORKLOAD = Workload("I", "bundle adjustment", make, inputs, hand, argnums=(0, 1, 2), draws=8, words=WORDS, skips=("mygrad",))
