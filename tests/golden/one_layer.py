def grad_one_layer(w, b, x, y):
    """grad one_layer   for w: float64[5, 3], b: float64[3], x: float64[5], y: float64[3]"""
    z = x @ w + b  # golden_functions.py:15
    # golden_functions.py:16: return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    e = np.exp(-np.abs(z))
    # backward
    diff = np.heaviside(z, 0.5) - (e / (e + 1) * np.sign(z) + y)
    g_z = diff / 3
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
    total = add(abs_, c1)
    divide(abs_, total, abs_)
    sign(prod, total)
    multiply(abs_, total, abs_)
    add(abs_, y, abs_)
    heaviside(prod, c0_5, prod)
    subtract(prod, abs_, prod)
    multiply(c0_3333333333333333, prod, prod)
    outer = multiply(x[:, None], prod)
    return outer, prod
