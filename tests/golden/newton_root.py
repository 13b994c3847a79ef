def grad_newton_root(x):
    """grad newton_root   for x: float"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = 1e-09 * x
    guess = x
    again = abs(x * x - x) > prod
    guesss = []
    while again:
        guesss.append(guess)
        # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
        guess_2 = 0.5 * (guess + x / guess)
        guess, again = guess_2, abs(guess_2 * guess_2 - x) > prod
    # backward
    g_guess = 1.0
    g_x = 0.0
    for guess_3 in reversed(guesss):
        prod_2 = g_guess * 0.5
        g_x_2 = prod_2 / guess_3
        g_guess_2 = prod_2 - g_x_2 * (x / guess_3)
        g_guess, g_x = g_guess_2, g_x + g_x_2
    return g_x + g_guess

# the code that runs

def grad_newton_root(x):
    """grad newton_root   for x: float"""
    # golden_functions.py:137: while abs(guess * guess - x) > 1e-9 * x:
    prod = 1e-09 * x
    guess = x
    again = abs(x * x - x) > prod
    guesss = []
    while again:
        guesss.append(guess)
        # golden_functions.py:138: guess = 0.5 * (guess + x / guess)
        guess_2 = 0.5 * (guess + x / guess)
        guess = guess_2
        again = abs(guess_2 * guess_2 - x) > prod
    # backward
    g_guess = 1.0
    g_x = 0.0
    for guess_3 in reversed(guesss):
        prod_2 = g_guess * 0.5
        g_x_2 = prod_2 / guess_3
        g_guess = prod_2 - g_x_2 * (x / guess_3)
        g_x = g_x + g_x_2
    return g_x + g_guess