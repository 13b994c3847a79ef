def grad_softmax_classifier(w, b, x, labels):
    """grad softmax_classifier   for w: float64[3, 4], b: float64[4], x: float64[5, 3], labels: int64[5]"""
    z = x @ w + b  # golden_functions.py:25
    # golden_functions.py:26: z = z - np.max(z, axis=1, keepdims=True)
    z_2 = z - np.max(z, axis=1, keepdims=True)
    # golden_functions.py:27: logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    e = np.exp(z_2)
    # backward
    g_logp = np.zeros((5, 4))
    g_logp[np.arange(5), labels] = -0.2
    prod = np.sum(g_logp, axis=1, keepdims=True) / np.sum(e, axis=1, keepdims=True) * e
    g_z = g_logp - prod
    return x.T @ g_z, np.sum(g_z, axis=0)

# the code that runs

def grad_softmax_classifier(w, b, x, labels):
    """grad softmax_classifier   for w: float64[3, 4], b: float64[4], x: float64[5, 3], labels: int64[5]"""
    # golden_functions.py:25: z = x @ w + b
    prod = x.dot(w)
    add(prod, b, prod)
    # golden_functions.py:26: z = z - np.max(z, axis=1, keepdims=True)
    max_ = maximum_reduce(prod, 1, None, None, True)
    subtract(prod, max_, prod)
    # golden_functions.py:27: logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    exp(prod, prod)
    total = add_reduce(prod, 1, None, None, True)
    # backward
    divide(cm0_2, total, total)
    multiply(total, prod, prod)
    negative(prod, prod)
    prod[const, labels] += -0.2
    g_b = add_reduce(prod, 0)
    g_w = x.T.dot(prod)
    return g_w, g_b