def jacobian_swish(x):
    """jacobian swish   for x: float64[3]"""
    # golden_functions.py:106: return x / (1.0 + np.exp(-x))
    e = np.exp(-x)
    total = 1.0 + e
    result = x / total
    # backward
    g_x = 1.0 / total + result / total * e
    return np.diag(g_x)