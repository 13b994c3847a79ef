def grad_huber(r, delta):
    """grad huber   for r: float, delta: float"""
    # golden_functions.py:130: if abs(r) <= delta:
    abs_ = abs(r)
    if abs_ <= delta:  # golden_functions.py:130
        return r, 0.0
    # golden_functions.py:132: return delta * (abs(r) - 0.5 * delta)
    prod = 0.5 * delta
    # backward
    return float(delta * np.sign(r)), abs_ - prod - prod