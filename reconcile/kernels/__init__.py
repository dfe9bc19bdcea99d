"""What the kernels of a GPU multiplied, as Nsight Compute counted it, beside the work that ran (docs/kernels.md)."""
