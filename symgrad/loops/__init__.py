"""Loops and ``if``s: iterations that were traced alike become one loop in the graph, with the ``if``s that they decided."""
