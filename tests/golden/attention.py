def grad_attention(w_q, w_k, w_v, x):
    """grad attention   for w_q: float64[3, 2], w_k: float64[3, 2], w_v: float64[3, 2], x: float64[5, 3]"""
    # golden_functions.py:47: q, k, v = x @ w_q, x @ w_k, x @ w_v
    prod = x @ w_q
    prod_2 = x @ w_k
    prod_3 = x @ w_v
    # golden_functions.py:48: scores = np.einsum("ik,jk->ij", q, k) / np.sqrt(q.shape[-1])
    scores = np.einsum('ik,jk->ij', prod, prod_2) / 1.4142135623730951
    # golden_functions.py:49: e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    max_ = np.max(scores, axis=-1, keepdims=True)
    e = np.exp(scores - max_)
    # golden_functions.py:50: weights = e / e.sum(axis=-1, keepdims=True)
    total = np.sum(e, axis=-1, keepdims=True)
    weights = e / total
    # backward
    prod_4 = 2.0 * np.einsum('ij,jk->ik', weights, prod_3)
    ratio = np.einsum('ik,jk->ij', prod_4, prod_3) / total
    prod_5 = (ratio - np.sum(ratio * weights, axis=1, keepdims=True)) * e
    equal = scores == max_
    ratio_2 = (prod_5 + np.where(equal, -(np.sum(prod_5, axis=1, keepdims=True) / np.sum(equal, axis=-1, dtype=np.float64, keepdims=True)), 0)) / 1.4142135623730951
    return x.T @ np.einsum('ij,jk->ik', ratio_2, prod_2), x.T @ np.einsum('ij,ik->jk', ratio_2, prod), x.T @ np.einsum('ik,ij->jk', prod_4, weights)
