"""TensorFlow models out of files."""
