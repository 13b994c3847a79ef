"""Bundle adjustment: from where were photographs taken, and where in space are the points that they show?

Five photographs of the Villa Balbianello at Lake Como show 544 points, each in two of them or more. Unknown are the lens, where
four of the cameras stood and looked (measured from the first), and the points: 1658 numbers. Each of the 2834 measurements
depends on 11 of them, so the Jacobian is nearly all zeros. ``sparse_jacobian`` finds the few entries that are not, and
computes them with a few pushforwards.
"""

from pathlib import Path

import numpy as np
from _picture import picture
from scipy.optimize import least_squares

from symgrad.sparse import sparse_jacobian

DATA = Path(__file__).parent / "data" / "balbianello.npz"
LENS = np.array([1.0, 0.0])  # focal length in units of FOCAL pixels, and distortion: to start with
FOCAL, DEPTH = 500.0, 2.0
CAMERAS = np.array([  # a guess: turn (its axis, as long as its angle) and shift of what each camera sees, for the first's eyes
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, -0.2, 0.0, -0.2, 0.0, -0.1],
    [0.1, -0.3, 0.0, -0.4, 0.0, -0.2],
    [0.1, -0.4, 0.0, -0.6, 0.0, -0.4],
    [0.0, -0.6, 0.1, -0.9, -0.1, -0.7],
])  # fmt: skip


def rotated(points, turn):
    """Points turned about the axis ``turn`` by its length (Rodrigues' formula)."""
    angle = np.sqrt(np.sum(turn**2, axis=-1, keepdims=True) + 1e-20)
    axis = turn / angle
    along = np.sum(axis * points, axis=-1, keepdims=True)
    across = np.cross(axis, points)
    return np.cos(angle) * points + np.sin(angle) * across + (1 - np.cos(angle)) * along * axis


def project(lens, cameras, points):
    """Pixels of points in cameras, row by row: turned, shifted, divided by the depth, through the lens."""
    seen = rotated(points, cameras[:, :3]) + cameras[:, 3:]
    flat = -seen[:, :2] / seen[:, 2:]  # cameras look down the z axis
    return FOCAL * lens[0] * (1.0 + lens[1] * np.sum(flat**2, axis=1, keepdims=True)) * flat


def split(parameters):
    """The lens, the cameras, and the points."""
    cameras = np.concatenate([np.zeros((1, 6)), parameters[2:26].reshape(4, 6)])
    return parameters[:2], cameras, parameters[26:].reshape(-1, 3)


def residuals(parameters, photograph, point, pixel):
    """Predicted minus measured pixels."""
    lens, cameras, points = split(parameters)
    return np.ravel(project(lens, cameras[photograph], points[point]) - pixel)


def guess(photograph, point, pixel):
    """Parameters to start from: each point lies at the same depth before the first camera that saw it."""
    _, first = np.unique(point, return_index=True)
    camera = CAMERAS[photograph[first]]
    seen = DEPTH * np.column_stack([pixel[first] / FOCAL, -np.ones(len(first))])
    return np.concatenate([LENS, CAMERAS[1:].ravel(), rotated(seen - camera[:, 3:], -camera[:, :3]).ravel()])


def main():
    data = np.load(DATA)
    given = data["photograph"].astype(int), data["point"].astype(int), data["pixel"].astype(float)
    start = guess(*given)
    jacobian = sparse_jacobian(residuals)
    entries = jacobian(start, *given)
    rows, columns = entries.shape
    print(f"the Jacobian is {rows} by {columns}; {entries.nnz / (rows * columns):.1%} of it is not zero")
    found = least_squares(residuals, start, jac=jacobian, args=given, x_scale="jac", ftol=1e-5)
    before, after = (np.sqrt(np.mean(residuals(x, *given) ** 2)) for x in (start, found.x))
    print(f"error {before:.1f} pixels before, {after:.3f} after {found.njev} Jacobians")
    assert after < 0.31
    (focal, bend), cameras, points = split(found.x)
    print(f"focal length {FOCAL * focal:.0f} pixels, distortion {bend:.3f}")

    colours, first = data["colour"] / 255.0, given[0] == 0
    stood = -rotated(cameras[:, 3:], -cameras[:, :3])
    with picture("bundle_adjustment", columns=3, size=(4.5, 4.0)) as (left, middle, right):
        left.scatter(*given[2][first].T, c=colours[given[1][first]], s=14)
        left.set(title="points in the first photograph", aspect="equal", xlabel="pixels")
        middle.spy(entries[::10], markersize=0.4, aspect="auto")
        middle.set(title="the Jacobian, every 10th row", xlabel="parameter", ylabel="measurement")
        right.scatter(points[:, 0], -points[:, 2], c=colours, s=8)
        right.plot(stood[:, 0], -stood[:, 2], "C3^", label="cameras")
        right.set(title="found, from above", aspect="equal", xlim=(-1.2, 1.8), ylim=(-0.4, 2.6))
        right.legend(loc="upper left")


if __name__ == "__main__":
    main()
