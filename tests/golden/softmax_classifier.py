def grad_softmax_classifier(w, b, x, labels):
    """grad softmax_classifier   for w: float64[3, 4], b: float64[4], x: float64[5, 3], labels: int64[5]"""
    z = x @ w + b  # golden_functions.py:25
    # golden_functions.py:26: z = z - np.max(z, axis=1, keepdims=True)
    max_ = np.max(z, axis=1, keepdims=True)
    z_2 = z - max_
    # golden_functions.py:27: logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    e = np.exp(z_2)
    # backward
    g_logp = np.zeros((5, 4))
    np.add.at(g_logp, (const, labels), np.broadcast_to(-0.2, 5))
    g_z = g_logp - np.sum(g_logp, axis=1, keepdims=True) / np.sum(e, axis=1, keepdims=True) * e
    equal = z == max_
    g_z_2 = g_z + np.where(equal, -(np.sum(g_z, axis=1, keepdims=True) / np.sum(equal, axis=1, dtype=np.float64, keepdims=True)), 0)
    return x.T @ g_z_2, np.sum(g_z_2, axis=0)


# the code that runs

def grad_softmax_classifier(w, b, x, labels):
    """grad softmax_classifier   for w: float64[3, 4], b: float64[4], x: float64[5, 3], labels: int64[5]"""
    # golden_functions.py:25: z = x @ w + b
    prod = x.dot(w)
    add(prod, b, prod)
    # golden_functions.py:26: z = z - np.max(z, axis=1, keepdims=True)
    max_ = maximum_reduce(prod, 1, None, None, True)
    z = subtract(prod, max_)
    # golden_functions.py:27: logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    exp(z, z)
    total = add_reduce(z, 1, None, None, True)
    # backward
    g_logp = np.zeros((5, 4))
    np.add.at(g_logp, (const, labels), np.broadcast_to(-0.2, 5))
    total_2 = add_reduce_2(g_logp, 1, None, None, True)
    divide(total_2, total, total_2)
    multiply(total_2, z, z)
    subtract(g_logp, z, z)
    total_3 = add_reduce_3(z, 1, None, None, True)
    equal_2 = equal(prod, max_)
    total_4 = np.sum(equal_2, axis=1, dtype=np.float64, keepdims=True)
    divide(total_3, total_4, total_3)
    negative(total_3, total_3)
    chosen = np.where(equal_2, total_3, 0)
    add(z, chosen, z)
    total_5 = add_reduce_4(z, 0)
    prod_2 = x.T.dot(z)
    return prod_2, total_5
