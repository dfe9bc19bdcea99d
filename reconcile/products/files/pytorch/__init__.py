"""Loaders of PyTorch model files: torch.export programs and TorchScript."""
