"""Loaders of TensorFlow model files: frozen graphs, SavedModels and Keras files."""
