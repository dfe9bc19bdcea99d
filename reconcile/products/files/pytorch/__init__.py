"""PyTorch models out of files."""
