"""Take a gradient away: a module that imports only NumPy, for a machine where symgrad is not.

The graph that it was made from goes to ``output/export_gradient.svg``.
"""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from symgrad import export, graph, value_and_grad

DECADES = np.arange(16.0)
MILLIONS = np.array([3.93, 5.31, 7.24, 9.64, 12.87, 17.07, 23.19, 31.44, 39.82, 50.16, 62.95, 75.99, 91.97, 105.71, 122.78,
                     131.67])  # the United States' census, 1790 to 1940  # fmt: skip


def misfit(p):
    """A logistic curve through counts (Pearl and Reed 1920): height, rate, middle; large residuals count by size alone."""
    height, rate, middle = p
    r = height / (1.0 + np.exp(-rate * (DECADES - middle))) - MILLIONS
    return np.sum(np.where(np.abs(r) < 2.0, 0.5 * r**2, 2.0 * (np.abs(r) - 1.0)))


def main():
    output = Path("output")
    output.mkdir(exist_ok=True)
    derivative = value_and_grad(misfit)
    start = np.array([150.0, 0.3, 11.0])
    source = export(derivative, start, path=output / "misfit_gradient.py")

    head = source[: source.index("def _require")]
    print(head.rstrip())
    modules = [n.names[0].name if isinstance(n, ast.Import) else n.module for n in ast.parse(source).body if "Import" in str(n)]
    print(f"\nit imports {', '.join(modules)}; it says:")
    done = subprocess.run([sys.executable, "-I", output / "misfit_gradient.py"], capture_output=True, text=True)
    print(done.stdout.strip())
    assert done.returncode == 0
    assert not [name for name in modules if name.split(".")[0] not in ("__future__", "typing", "numpy")]

    # the exported function is an ordinary one
    space = {"__name__": "exported"}
    exec(compile(source, "misfit_gradient.py", "exec"), space)
    found = minimize(space["value_and_grad_misfit"], start, jac=True)
    height, rate, middle = found.x
    print(f"a limit of {height:.0f} million, growth of {rate:.3f} a decade, half of it in {1790 + 10 * middle:.0f}")
    assert found.fun < 0.1 * misfit(start)
    assert 170 < height < 220

    (output / "export_gradient.svg").write_text(graph(derivative, start)._repr_svg_(), encoding="utf-8")


if __name__ == "__main__":
    main()
