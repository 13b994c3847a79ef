def grad_newton_root(x):
    """grad newton_root   for x: float"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = x / 1000000000
    if not np.abs(x * x - x) > prod:  # golden_functions.py:137
        return 1.0
    # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
    ratio = x / x
    guess = (x + ratio) / 2
    if not np.abs(guess * guess - x) > prod:  # golden_functions.py:137
        raise Unexplored('no call has gone this way yet (golden_functions.py:137)')
    ratio_2 = x / guess
    guess_2 = (guess + ratio_2) / 2
    if not np.abs(guess_2 * guess_2 - x) > prod:  # golden_functions.py:137
        raise Unexplored('no call has gone this way yet (golden_functions.py:137)')
    ratio_3 = x / guess_2
    guess_3 = (guess_2 + ratio_3) / 2
    if not np.abs(guess_3 * guess_3 - x) > prod:  # golden_functions.py:137
        # backward
        g_guess = 0.5 - ratio_3 / guess_2 / 2
        ratio_4 = g_guess / guess
        diff = g_guess - ratio_4 * ratio_2
        ratio_5 = diff / x
        total = 0.5 / guess_2 + ratio_4 / 2 + diff / 4 + ratio_5 / 4
        return total - ratio_5 * ratio / 4
    ratio_6 = x / guess_3
    guess_4 = (guess_3 + ratio_6) / 2
    if np.abs(guess_4 * guess_4 - x) > prod:  # golden_functions.py:137
        raise Unexplored('no call has gone this way yet (golden_functions.py:137)')
    # backward
    g_guess_2 = 0.5 - ratio_6 / guess_3 / 2
    ratio_7 = g_guess_2 / guess_2
    diff_2 = g_guess_2 - ratio_7 * ratio_3
    ratio_8 = diff_2 / guess
    diff_3 = diff_2 - ratio_8 * ratio_2
    total_2 = 0.5 / guess_3 + ratio_7 / 2 + ratio_8 / 4 + diff_3 / 8
    ratio_9 = diff_3 / x
    return total_2 + ratio_9 / 8 - ratio_9 * ratio / 8


# the code that runs

def grad_newton_root(x):
    """grad newton_root   for x: float"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = x / 1000000000
    if not np.abs(x * x - x) > prod:  # golden_functions.py:137
        return 1.0
    # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
    ratio = x / x
    guess = (x + ratio) / 2
    if not np.abs(guess * guess - x) > prod:  # golden_functions.py:137
        raise Unexplored('no call has gone this way yet (golden_functions.py:137)')
    ratio_2 = x / guess
    guess_2 = (guess + ratio_2) / 2
    if not np.abs(guess_2 * guess_2 - x) > prod:  # golden_functions.py:137
        raise Unexplored('no call has gone this way yet (golden_functions.py:137)')
    ratio_3 = x / guess_2
    guess_3 = (guess_2 + ratio_3) / 2
    if not np.abs(guess_3 * guess_3 - x) > prod:  # golden_functions.py:137
        # backward
        g_guess = 0.5 - ratio_3 / guess_2 / 2
        ratio_4 = g_guess / guess
        diff = g_guess - ratio_4 * ratio_2
        ratio_5 = diff / x
        total = 0.5 / guess_2 + ratio_4 / 2 + diff / 4 + ratio_5 / 4
        return total - ratio_5 * ratio / 4
    ratio_6 = x / guess_3
    guess_4 = (guess_3 + ratio_6) / 2
    if np.abs(guess_4 * guess_4 - x) > prod:  # golden_functions.py:137
        raise Unexplored('no call has gone this way yet (golden_functions.py:137)')
    # backward
    g_guess_2 = 0.5 - ratio_6 / guess_3 / 2
    ratio_7 = g_guess_2 / guess_2
    diff_2 = g_guess_2 - ratio_7 * ratio_3
    ratio_8 = diff_2 / guess
    diff_3 = diff_2 - ratio_8 * ratio_2
    total_2 = 0.5 / guess_3 + ratio_7 / 2 + ratio_8 / 4 + diff_3 / 8
    ratio_9 = diff_3 / x
    return total_2 + ratio_9 / 8 - ratio_9 * ratio / 8
