"""SciPy, as far as it can be differentiated: the same names and arguments, for traced and plain arrays.

SciPy's Python functions turn their arguments into plain arrays at once, so that no derivative could get through::

    from symgrad.scipy.special import logsumexp      # instead of scipy.special
    from symgrad.scipy import linalg, stats

The ufuncs of ``scipy.special`` (``erf``, ``gammaln`` …) need no mirror: importing this package gives them their rules.
"""

import importlib
from typing import Any

from symgrad.errors import not_installed

try:
    import scipy as _scipy
except ModuleNotFoundError as error:
    raise not_installed("symgrad.scipy", "scipy") from error

__all__ = [
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]


def __getattr__(name: str) -> Any:
    """A module, when somebody asks for it: SciPy takes half a second to import all of its own."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


del _scipy
