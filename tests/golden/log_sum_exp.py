def grad_log_sum_exp(x):
    """grad log_sum_exp   for x: float64[4]"""
    top = np.max(x)  # golden_functions.py:86
    # golden_functions.py:87: return top + np.log(np.sum(np.exp(x - top)))
    e = np.exp(x - top)
    # backward
    return e / np.sum(e)