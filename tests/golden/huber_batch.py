def vmap_huber(r, delta):
    """vmap huber   for r: float64[5], delta: float"""
    # golden_functions.py:130: if abs(r) <= delta:
    less_equal = np.abs(r) <= delta
    if np.all(less_equal):  # golden_functions.py:130
        # golden_functions.py:131: return 0.5 * r**2
        result = 0.5 * r ** 2
        return result
    if not np.any(less_equal):  # golden_functions.py:130
        raise Unexplored('no call has gone this way yet (golden_functions.py:130)')
    logical_not = np.logical_not(less_equal)
    # golden_functions.py:131: return 0.5 * r**2
    result_2 = 0.5 * np.where(less_equal, r, r[np.argmax(less_equal)]) ** 2
    # golden_functions.py:132: return delta * (abs(r) - 0.5 * delta)
    diff = np.abs(np.where(logical_not, r, r[np.argmax(logical_not)])) - 0.5 * delta
    result_3 = delta * diff
    return np.where(less_equal, result_2, result_3)