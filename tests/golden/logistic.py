def grad_logistic(w, x, y):
    """grad logistic   for w: float64[3], x: float64[5, 3], y: float64[5]"""
    z = x @ w  # golden_functions.py:20
    # golden_functions.py:21: return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    e = np.exp(-np.abs(z))
    # backward
    return (np.heaviside(z, 0.5) - (e / (e + 1) * np.sign(z) + y)) @ x / 5

# the code that runs

def grad_logistic(w, x, y):
    """grad logistic   for w: float64[3], x: float64[5, 3], y: float64[5]"""
    # golden_functions.py:20: z = x @ w
    z = x.dot(w)
    # golden_functions.py:21: return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    abs_ = absolute(z)
    negative(abs_, abs_)
    exp(abs_, abs_)
    # backward
    greater_2 = greater(z, c0)
    maximum(abs_, greater_2, out=z)
    add(abs_, c1, abs_)
    divide(z, abs_, z)
    subtract(z, y, z)
    prod = z.dot(x)
    divide(prod, c5, prod)
    return prod