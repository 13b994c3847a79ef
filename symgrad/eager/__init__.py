# ruff: noqa: F401 (this is where the names of torch are)
"""Eager tensors: torch.autograd's way of working, on NumPy and on symgrad's rules.

>>> import symgrad.eager as torch
>>> x = torch.tensor([1.0, 2.0], requires_grad=True)
>>> y = (x ** 2).sum()
>>> y
tensor(5., grad_fn=<SumBackward0>)
>>> y.backward()
>>> x.grad
tensor([2., 4.])
"""

import math as _math

from symgrad.eager import (
    arrange,
    autograd,
    bridge,
    cuda,
    fft,
    func,
    linalg,
    nn,
    optim,
    protocols,
    refusals,
    special,
    spectra,
    statistics,
    testing,
    utils,
)  # fmt: skip
from symgrad.eager.core import Tensor
from symgrad.eager.creation import (
    arange,
    as_tensor,
    asarray,
    complex,
    empty,
    empty_like,
    empty_permuted,
    empty_strided,
    eye,
    from_dlpack,
    from_numpy,
    frombuffer,
    full,
    full_like,
    linspace,
    logspace,
    meshgrid,
    ones,
    ones_like,
    range,
    scalar_tensor,
    tensor,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)  # fmt: skip
from symgrad.eager.dtypes import (
    Size,
    can_cast,
    cdouble,
    cfloat,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    device,
    double,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_device,
    get_default_dtype,
    half,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    layout,
    long,
    memory_format,
    preserve_format,
    promote_types,
    result_type,
    set_default_device,
    set_default_dtype,
    short,
    strided,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from symgrad.eager.dtypes import bool_ as bool
from symgrad.eager.dtypes import float32 as float
from symgrad.eager.dtypes import int32 as int
from symgrad.eager.func import vmap
from symgrad.eager.modes import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from symgrad.eager.pointwise import FUNCTIONS as _FUNCTIONS
from symgrad.eager.printing import set_printoptions
from symgrad.eager.random import (
    Generator,
    bernoulli,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)  # fmt: skip
from symgrad.eager.settings import (
    are_deterministic_algorithms_enabled,
    get_num_threads,
    set_num_threads,
    use_deterministic_algorithms,
)

pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None
refusals.apply()
globals().update(_FUNCTIONS)
_shared = """
    adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d cosine_similarity dropout feature_alpha_dropout group_norm hardshrink layer_norm
    max_pool1d max_pool2d max_pool3d pairwise_distance pixel_shuffle pixel_unshuffle prelu rms_norm rrelu rrelu_ selu selu_
    threshold threshold_
"""
globals().update({name: getattr(nn.functional, name) for name in _shared.split()})
_names = (f"{name}_" for name in (*_FUNCTIONS, "fill", "zero", "detach", "resize_as"))
globals().update({name: getattr(Tensor, name) for name in _names if hasattr(Tensor, name)})
