"""Bundle adjustment: from where were the pictures taken, and where are the points that they show?

Each measurement hangs on one camera and one point, so the Jacobian of thousands of measurements by hundreds of parameters is
nearly all zeros. ``sparse_jacobian`` finds the few entries that are not, and computes them with a few pushforwards. The
scene is made up, so that we know the truth: twelve cameras around a tower, with noise of half a pixel.
"""

import numpy as np
from _picture import picture
from scipy.optimize import least_squares

from symgrad.sparse import sparse_jacobian

FOCAL, NOISE, CAMERAS, POINTS = 800.0, 0.5, 12, 150
FIXED = 2  # cameras that are known: they say where the world is, and how large


def rotated(points, turn):
    """Points turned about the axis ``turn`` by its length (Rodrigues' formula)."""
    angle = np.sqrt(np.sum(turn**2, axis=-1, keepdims=True) + 1e-20)
    axis = turn / angle
    along = np.sum(axis * points, axis=-1, keepdims=True)
    across = np.cross(axis, points)
    return np.cos(angle) * points + np.sin(angle) * across + (1 - np.cos(angle)) * along * axis


def project(cameras, points):
    """Pixels of points in cameras, row by row: turned, moved, divided by the depth."""
    seen = rotated(points, cameras[:, :3]) + cameras[:, 3:]
    return FOCAL * seen[:, :2] / seen[:, 2:]


def residuals(parameters, known, which_camera, which_point, measured):
    """Predicted minus measured pixels."""
    count = 6 * (CAMERAS - FIXED)
    cameras = np.concatenate([known, parameters[:count].reshape(-1, 6)])
    points = parameters[count:].reshape(-1, 3)
    return np.ravel(project(cameras[which_camera], points[which_point]) - measured)


def scene(rng):
    """Cameras on a circle that look at a tower, and the points on it."""
    angle, height = rng.uniform(0, 2 * np.pi, POINTS), rng.uniform(-3, 3, POINTS)
    points = np.stack([np.cos(angle), height, np.sin(angle)], axis=1)
    turns = np.linspace(0, 1.5 * np.pi, CAMERAS)
    cameras = np.stack([0 * turns, turns, 0 * turns, 0 * turns, 0 * turns, 0 * turns + 12.0], axis=1)
    return cameras, points


def main():
    rng = np.random.default_rng(0)
    cameras, points = scene(rng)
    which_camera, which_point = np.repeat(np.arange(CAMERAS), POINTS), np.tile(np.arange(POINTS), CAMERAS)
    measured = project(cameras[which_camera], points[which_point]) + rng.normal(size=(POINTS * CAMERAS, 2)) * NOISE
    given = (cameras[:FIXED], which_camera, which_point, measured)
    truth = np.concatenate([cameras[FIXED:].ravel(), points.ravel()])
    start = truth + 0.05 * rng.normal(size=truth.size)

    jacobian = sparse_jacobian(residuals)
    first = jacobian(start, *given)
    print(f"the Jacobian is {first.shape[0]} by {first.shape[1]}; {first.nnz / np.prod(first.shape):.1%} of it is not zero")
    found = least_squares(residuals, start, jac=jacobian, args=given, x_scale="jac", ftol=1e-10)
    before, after = (np.sqrt(np.mean(residuals(x, *given) ** 2)) for x in (start, found.x))
    print(f"error {before:.1f} pixels before, {after:.3f} after {found.njev} Jacobians")
    assert after < 1.05 * NOISE
    assert np.sqrt(np.mean((found.x - truth)[6 * (CAMERAS - FIXED) :] ** 2)) < 0.02

    with picture("bundle_adjustment", columns=2, size=(5.0, 4.5)) as (left, right):
        left.spy(first[:: POINTS // 10], markersize=0.5, aspect="auto")
        left.set(title="the Jacobian, every 15th row", xlabel="parameter", ylabel="measurement")
        for name, x, marker in (("start", start, "."), ("found", found.x, "+"), ("truth", truth, "o")):
            at = x[6 * (CAMERAS - FIXED) :].reshape(-1, 3)
            style = {"mfc": "none", "mec": "gray"} if name == "truth" else {}
            right.plot(at[:, 0], at[:, 2], marker, label=name, ms=4, **style)
        right.set(title="the tower from above", aspect="equal")
        right.legend()


if __name__ == "__main__":
    main()
