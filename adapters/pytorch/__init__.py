"""PyTorch: how a model is called, loaded, traced and trained. Python 3.6."""
