def grad_attention(w_q, w_k, w_v, x):
    """grad attention   for w_q: float64[3, 2], w_k: float64[3, 2], w_v: float64[3, 2], x: float64[5, 3]"""
    # golden_functions.py:47: q, k, v = x @ w_q, x @ w_k, x @ w_v
    q = x @ w_q
    k = x @ w_k
    v = x @ w_v
    # golden_functions.py:48: scores = np.einsum("ik,jk->ij", q, k) / np.sqrt(q.shape[-1])
    scores = q @ k.T / 1.4142135623730951
    # golden_functions.py:49: e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    # golden_functions.py:50: weights = e / e.sum(axis=-1, keepdims=True)
    total = np.sum(e, axis=-1, keepdims=True)
    weights = e / total
    # golden_functions.py:51: return np.sum(np.einsum("ij,jk->ik", weights, v) ** 2)
    prod = weights @ v
    # backward
    ratio = 2.0 * prod @ v.T / total
    g_e = ratio - np.sum(ratio * weights, axis=1, keepdims=True)
    g_scores = g_e * e
    g_w_q = 0.7071067811865475 * (x.T @ (g_scores @ k))
    g_w_k = 0.7071067811865475 * (x.T @ (g_scores.T @ q))
    g_w_v = 2.0 * (x.T @ (weights.T @ prod))
    return g_w_q, g_w_k, g_w_v