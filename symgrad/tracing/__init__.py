"""Tracers in place of values, and the trace: NumPy's calls become nodes of a graph, beside their real values."""
