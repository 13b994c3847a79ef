def grad_spread(x):
    """grad spread   for x: float64[4]"""
    # golden_functions.py:91: return np.std(x) / np.linalg.norm(x)
    std = np.std(x)
    norm = np.linalg.norm(x)
    result = std / norm
    # backward
    prod = 1.0 / norm / np.where(std == 0, np.inf, std) * (x - np.mean(x, keepdims=True))
    return prod / 4 - result / norm / np.where(norm == 0, np.inf, norm) * x