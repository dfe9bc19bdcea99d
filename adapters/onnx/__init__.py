"""ONNX: how a model is loaded and traced."""
