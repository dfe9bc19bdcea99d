"""Lists of the models of libraries that make models by functions (timm, torchvision), with inputs of their usual size.

A worker with PyTorch imports them, as it does ``small_models``; no weights are loaded.
"""
