"""Readers of TensorFlow graphs: nodes, loops, shapes of function bodies, and copies of graphs that can run."""
