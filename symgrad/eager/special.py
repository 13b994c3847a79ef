"""``torch.special``: special functions, as far as NumPy's counterparts exist."""

from symgrad.eager.nn.functional import log_softmax, softmax
from symgrad.eager.pointwise import FUNCTIONS
from symgrad.eager.reductions import logsumexp

exp2, expm1, log1p, sinc, round = (FUNCTIONS[name] for name in "exp2 expm1 log1p sinc round".split())
erf, erfc, expit, i0, logit, xlogy = (FUNCTIONS[name] for name in "erf erfc sigmoid i0 logit xlogy".split())

__all__ = [
    "erf",
    "erfc",
    "exp2",
    "expit",
    "expm1",
    "i0",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]
