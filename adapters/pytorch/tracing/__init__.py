"""Parts of PyTorch's traces: records of calls, layer paths, fused calls, and checks for work that a trace cannot see."""
