"""SciPy, as far as it can be differentiated: the same names and arguments, for traced and plain arrays.

SciPy's Python functions turn their arguments into plain arrays at once, so that no derivative could get through::

    from symgrad.scipy.special import logsumexp      # instead of scipy.special
    from symgrad.scipy import linalg, stats

The ufuncs of ``scipy.special`` (``erf``, ``gammaln`` …) need no mirror: importing this package gives them their rules.
"""

from symgrad.errors import not_installed

try:
    from symgrad.scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats
except ModuleNotFoundError as error:
    raise not_installed("symgrad.scipy", "scipy") from error

__all__ = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "special", "stats"]
