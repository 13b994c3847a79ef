def grad_newton_root(x):
    """grad newton_root   for x: float"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = 1e-09 * x
    guess = x
    again = abs(x * x - x) > prod
    guesss = []
    while again:
        # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
        guess_2 = 0.5 * (guess + x / guess)
        guesss.append(guess)
        guess, again = guess_2, abs(guess_2 * guess_2 - x) > prod
    # backward
    g_guess = 1.0
    g_x = 0.0
    g_state = 0.0
    for guess_3 in reversed(guesss):
        ratio = g_guess / guess_3
        g_guess_2 = 0.5 * (g_guess - ratio * (x / guess_3))
        g_guess, g_x = g_guess_2, g_x + 0.5 * ratio
    return g_guess + g_x + g_state * 1e-09

# the code that runs

def grad_newton_root(x):
    """grad newton_root   for x: float"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = 1e-09 * x
    guess = x
    again = abs(x * x - x) > prod
    guesss = []
    while again:
        # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
        guess_2 = 0.5 * (guess + x / guess)
        guesss.append(guess)
        guess, again = guess_2, abs(guess_2 * guess_2 - x) > prod
    # backward
    g_guess = 1.0
    g_x = 0.0
    g_state = 0.0
    for guess_3 in reversed(guesss):
        ratio = g_guess / guess_3
        g_guess, g_x = 0.5 * (g_guess - ratio * (x / guess_3)), g_x + 0.5 * ratio
    return g_guess + g_x + g_state * 1e-09