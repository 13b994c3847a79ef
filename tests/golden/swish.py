def elementwise_grad_swish(x):
    """elementwise_grad_swish   for x: float64[4]"""
    # golden_functions.py:106: return x / (1.0 + np.exp(-x))
    e = np.exp(-x)
    total = 1.0 + e
    result = x / total
    # backward
    return 1.0 / total + result / total * e