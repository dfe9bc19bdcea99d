"""PyTorch: one rank of a distributed program, run in one process on a process group that sends nothing (the fake backend)."""
