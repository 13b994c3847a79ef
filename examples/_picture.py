"""The pictures of the gallery: each example draws one into ``output/`` in the working directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # pictures go to files
from matplotlib import pyplot as plt


@contextmanager
def picture(name: str, columns: int = 1, size: tuple[float, float] = (6.0, 4.0)) -> Iterator[Any]:
    """Axes to draw on (a row of them for several ``columns``), saved as ``output/name.png`` at the end."""
    figure, axes = plt.subplots(1, columns, figsize=(size[0] * columns, size[1]))
    yield axes
    for one in [axes] if columns == 1 else axes:
        one.grid(alpha=0.3)
    figure.tight_layout()
    path = Path("output") / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)
    print(f"the picture is in {path}")
