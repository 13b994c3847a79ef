"""``torch.special``: special functions; those beyond NumPy's are SciPy's, which is needed only where one is called."""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

import numpy as np

from symgrad.eager.core import Fused, Tensor, apply, as_tensor_of, called, known, labelled, methods, wrap
from symgrad.eager.dtypes import default
from symgrad.eager.nn.functional import log_softmax, softmax
from symgrad.eager.pointwise import FUNCTIONS, apply_floating, as_floats, binary, delivered, in_place, where
from symgrad.eager.reductions import logsumexp
from symgrad.ops.core import Op

exp2, expm1, log1p, sinc, round = (FUNCTIONS[name] for name in "exp2 expm1 log1p sinc round".split())
erf, erfc, expit, i0, logit, xlogy = (FUNCTIONS[name] for name in "erf erfc sigmoid i0 logit xlogy".split())


def _module() -> Any:
    """SciPy's functions, with their rules."""
    return importlib.import_module("symgrad.scipy.special")


@functools.cache
def _scipy(name: str) -> Op:
    """The operation that is SciPy's ufunc of this name."""
    return known(getattr(_module(), name))


def _unary(name: str, scipys: str | None = None, label: str | None = None) -> Any:
    @called(name, f"SciPy's ``{scipys or name}`` of each element.")
    def fun(input: Tensor, *, out: Any = None) -> Any:
        title = label or f"Special{name.title().replace('_', '')}Backward0"
        if input.value.dtype == np.float16:  # for which SciPy gives other dtypes
            return delivered(fun(input.to(np.float32)).to(np.float16), out, name)
        return delivered(apply_floating(_scipy(scipys or name), input, label=title), out, name)

    return fun


digamma, gammaln = _unary("digamma", "digamma", "DigammaBackward0"), _unary("lgamma", "gammaln", "LgammaBackward0")
psi, erfinv, ndtr = digamma, _unary("erfinv", label="ErfinvBackward0"), _unary("ndtr", label="MulBackward1")
log_ndtr, ndtri, erfcx, i0e, i1, i1e = map(_unary, "log_ndtr ndtri erfcx i0e i1 i1e".split())
bessel_j0, bessel_j1, bessel_y0, bessel_y1 = (_unary(f"bessel_{name}", name) for name in "j0 j1 y0 y1".split())
modified_bessel_i0, modified_bessel_i1, modified_bessel_k0, modified_bessel_k1 = (
    _unary(f"modified_bessel_{name}", name) for name in "i0 i1 k0 k1".split()
)
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = (_unary(f"scaled_modified_bessel_{n}", f"{n}e") for n in ("k0", "k1"))


def spherical_bessel_j0(input: Tensor) -> Any:
    """``sin(input) / input``."""
    return apply_floating(known(np.sinc), input / math.pi)


def entr(input: Tensor, *, out: Any = None) -> Any:
    """``-input * log(input)``, zero at 0, and minus infinity below."""
    return delivered(apply_floating(ENTR, input, label="SpecialEntrBackward0"), out, "entr")


ENTR = Fused(
    lambda x: np.where(x > 0, -x * np.log(np.where(x > 0, x, 1)), np.where(x == 0, 0, np.where(np.isnan(x), x, -np.inf))),
    lambda g, y, x: g * np.where(x < 0, np.nan, -np.log(x) - 1),
    family="elementwise",
    name="special_entr",
)


def xlog1py(input: Any, other: Any, *, out: Any = None) -> Any:
    """``input * log1p(other)``, zero where ``input`` is."""
    return delivered(binary(XLOG1PY, input, other, "SpecialXlog1PyBackward0", floats=True), out, "xlog1py")


XLOG1PY = Fused(
    lambda x, y: np.where((x == 0) & ~np.isnan(y), 0, x * np.log1p(y)),
    lambda g, _, x, y: g * np.where((x == 0) & (y <= -1), 0, np.log1p(y)),
    lambda g, _, x, y: g * x / (y + 1),
    family="elementwise",
    name="special_xlog1py",
)


def polygamma(n: int, input: Tensor, *, out: Any = None) -> Any:
    """The ``n``-th derivative of ``digamma``."""
    if n == 0:
        return delivered(labelled(digamma(input), "PolygammaBackward0"), out, "polygamma")
    x = as_floats(input)
    y = apply(_module().POLYGAMMA, (n, x))
    return delivered(labelled(y.to(x.dtype), "PolygammaBackward0"), out, "polygamma")


def multigammaln(input: Tensor, p: int) -> Any:
    """The logarithm of the ``p``-dimensional gamma function."""
    x = as_floats(input)
    if np.any(x.value <= (p - 1) / 2):
        raise RuntimeError("All elements must be greater than (p-1)/2")
    return labelled(_module().multigammaln(x, p), "MvlgammaBackward0")


def zeta(input: Any, other: Any) -> Any:
    """Hurwitz' zeta function."""
    return binary(_module().ZETA, as_tensor_of(input), as_tensor_of(other), "SpecialZetaBackward0", floats=True)


def _incomplete(name: str, scipys: str) -> Any:
    @called(name, f"SciPy's ``{scipys}``.")
    def fun(input: Any, other: Any, *, out: Any = None) -> Any:
        return delivered(binary(_scipy(scipys), input, other, f"{name.title()}Backward0", floats=True), out, name)

    return fun


gammainc, gammaincc = _incomplete("igamma", "gammainc"), _incomplete("igammac", "gammaincc")


def _polynomial(name: str, scipys: str, shifted: bool = False) -> Any:
    @called(name, f"SciPy's ``{scipys}``{' of 2x - 1' if shifted else ''}.")
    def fun(input: Any, n: Any, *, out: Any = None) -> Any:
        x, degree = as_tensor_of(input), as_tensor_of(n).value.astype(np.int64)
        x = x if x.value.dtype.kind == "f" else x.to(default.real)
        found = apply(_scipy(scipys), (np.maximum(degree, 0), x * 2 - 1 if shifted else x)).to(x.dtype)
        return delivered(where(wrap(degree < 0), 0.0, found), out, name)

    return fun


chebyshev_polynomial_t, chebyshev_polynomial_u = (_polynomial(f"chebyshev_polynomial_{n}", f"eval_cheby{n}") for n in "tu")
shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u = (
    _polynomial(f"shifted_chebyshev_polynomial_{n}", f"eval_cheby{n}", True) for n in "tu"
)
legendre_polynomial_p = _polynomial("legendre_polynomial_p", "eval_legendre")
laguerre_polynomial_l = _polynomial("laguerre_polynomial_l", "eval_laguerre")

for _name, _fun in {
    "digamma": digamma, "lgamma": gammaln, "erfinv": erfinv, "igamma": gammainc, "igammac": gammaincc,
}.items():  # fmt: skip
    FUNCTIONS[_name] = _fun
    setattr(Tensor, _name, _fun)
    in_place(_name, _fun)
FUNCTIONS.update(polygamma=polygamma, mvlgamma=multigammaln)
methods(polygamma=lambda self, n: polygamma(n, self), mvlgamma=multigammaln)
in_place("polygamma", lambda self, n: polygamma(n, self))
in_place("mvlgamma", multigammaln)

__all__ = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u", "digamma", "entr",
    "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp",
    "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri",
    "polygamma", "psi", "round", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy", "zeta",
]  # fmt: skip
