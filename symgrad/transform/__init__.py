"""Graph to graph: the derivative passes. Each walks the nodes of a trace and writes new ones behind them."""
