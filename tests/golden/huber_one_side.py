def grad_huber(r, delta):
    """grad huber   for r: float, delta: float"""
    if not abs(r) <= delta:  # golden_functions.py:130
        raise Unexplored('no call has gone this way yet (golden_functions.py:130)')
    return r