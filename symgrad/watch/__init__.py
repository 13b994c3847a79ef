"""The user's function while it is traced: what it calls, what it reads from outside, and what later calls check of that."""
