"""Graph to Python: ``names`` chooses variables, ``build`` makes an AST, ``printer`` prints it (the only astor import)."""
