def vmap_newton_root(x):
    """vmap newton_root   for x: float64[3]"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = 1e-09 * x
    greater = np.abs(x * x - x) > prod
    guess = x
    active = greater
    again = np.any(greater)
    while again:
        argmax = np.argmax(active)
        chosen = np.where(active, guess, guess[argmax])
        chosen_2 = np.where(active, x, x[argmax])
        # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
        guess_2 = 0.5 * (chosen + chosen_2 / chosen)
        greater_2 = np.abs(guess_2 * guess_2 - chosen_2) > np.where(active, prod, prod[argmax])
        logical_and = np.logical_and(active, greater_2)
        guess, active, again = np.where(active, guess_2, guess), logical_and, np.any(logical_and)
    return guess.copy()