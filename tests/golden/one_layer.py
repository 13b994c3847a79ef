def grad_one_layer(w, b, x, y):
    """grad one_layer   for w: float64[5, 3], b: float64[3], x: float64[5], y: float64[3]"""
    z = x @ w + b  # golden_functions.py:15
    # golden_functions.py:16: return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    e = np.exp(-np.abs(z))
    # backward
    g_z = (np.heaviside(z, 0.5) - (e / (e + 1) * np.sign(z) + y)) / 3
    return np.outer(x, g_z), g_z

# the code that runs

def grad_one_layer(w, b, x, y):
    """grad one_layer   for w: float64[5, 3], b: float64[3], x: float64[5], y: float64[3]"""
    # golden_functions.py:15: z = x @ w + b
    prod = x.dot(w)
    add(prod, b, prod)
    # golden_functions.py:16: return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    abs_ = absolute(prod)
    negative(abs_, abs_)
    exp(abs_, abs_)
    # backward
    greater_2 = greater(prod, c0)
    maximum(abs_, greater_2, out=prod)
    add(abs_, c1, abs_)
    divide(prod, abs_, prod)
    subtract(prod, y, prod)
    divide(prod, c3, prod)
    g_w = multiply(x[:, None], prod)
    return g_w, prod