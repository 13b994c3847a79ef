"""The user's function as it is written: what its source tells, and how it is rewritten so that a trace sees what it does."""
