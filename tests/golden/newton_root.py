def grad_newton_root(x):
    """grad newton_root   for x: float"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = x / 1000000000
    guess = x
    again = np.abs(x * x - x) > prod
    guesss = []
    while again:
        # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
        guess_2 = (guess + x / guess) / 2
        guesss.append(guess)
        guess, again = guess_2, np.abs(guess_2 * guess_2 - x) > prod
    # backward
    g_guess = 1.0
    g_x = 0.0
    g_state = 0.0
    for guess_3 in reversed(guesss):
        ratio = g_guess / guess_3
        g_guess, g_x = (g_guess - ratio * (x / guess_3)) / 2, g_x + ratio / 2
    return g_guess + g_x + g_state * 1e-09


# the code that runs

def grad_newton_root(x):
    """grad newton_root   for x: float"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = x / 1000000000
    guess = x
    again = abs(x * x - x) > prod
    guesss = []
    while again:
        # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
        guess_2 = (guess + x / guess) / 2
        guesss.append(guess)
        guess, again = guess_2, abs(guess_2 * guess_2 - x) > prod
    # backward
    g_guess = 1.0
    g_x = 0.0
    g_state = 0.0
    for guess_3 in reversed(guesss):
        ratio = g_guess / guess_3
        g_guess, g_x = (g_guess - ratio * (x / guess_3)) / 2, g_x + ratio / 2
    return g_guess + g_x + g_state * 1e-09
