def grad_ridge(w, FEATURES, TARGETS, PENALTY):
    """grad ridge   for w: float64[3], FEATURES: float64[4, 3], TARGETS: float64[4], PENALTY: float"""
    residual = FEATURES @ w - TARGETS  # golden_functions.py:122
    # backward
    return PENALTY * w + w * PENALTY + 2.0 * (residual @ FEATURES)