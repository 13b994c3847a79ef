def grad_two_layers(w, x):
    """grad two_layers   for w: float64[3, 3], x: float64[5, 3]"""
    # golden_functions.py:189: return np.tanh(x @ w) + x
    total = np.tanh(x @ w) + x
    total_2 = np.tanh(total @ w) + total
    # once more
    tanh = np.tanh(total @ w)
    # backward
    prod = total_2 * (1 - tanh * tanh)
    total_3 = total_2 + prod @ w.T
    # once more
    tanh_2 = np.tanh(x @ w)
    # backward
    return 2.0 * (total.T @ prod + x.T @ (total_3 * (1 - tanh_2 * tanh_2)))